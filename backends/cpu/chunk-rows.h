// ================================================================================================
// >>chunk-rows  expressions over rows
// Takes a straight-line program; runs it over a row with its values in registers.
// ================================================================================================

// A row is made block by block. The value at hand stays in eight vectors, which a step hands on to
// the next as arguments, so in registers; the other operand is memory: a row of an operand, or a
// block that is always the same (constants, operands without a stride) or holds a value put away.
// The last step stores. Steps round as the operations of chunks do, so the bits are the same.
//
// A block is eight lines that follow each other, or a line of each of eight tracks: rows that
// follow each other in a walk. What they share, like the x of A[i,j]*x[j], is then read from the
// second cache once for eight, and what is done per row is done once.

#define EINI_ROW_BLOCK 512   // bytes
#define EINI_ROW_NEAR 8192   // bytes of a row whose operands are likely to be in the first cache
#define EINI_ROW_STEPS 32
#define EINI_ROW_REGS 32

struct eini_row_step;
typedef void (*eini_row_f32)(const struct eini_row_step *t, int64_t at, __m512 a, __m512 b,
                             __m512 c, __m512 d, __m512 e, __m512 f, __m512 g, __m512 h);
typedef void (*eini_row_f64)(const struct eini_row_step *t, int64_t at, __m512d a, __m512d b,
                             __m512d c, __m512d d, __m512d e, __m512d f, __m512d g, __m512d h);
typedef struct eini_row_step {
  eini_row_f32 f32;         // one of the two
  eini_row_f64 f64;
  char *with;                // the other operand, or where the value goes
  const int64_t *off;        // from there to each of its eight vectors, in bytes
  int64_t moves;             // -1: that moves with the row; 0: it stays
  ein_chunk_fn chunk;        // what the step calls, with two blocks of room
  char *room;
} eini_row_step;

// Operands that move with the row. A block's lines are asked for first, one of each operand in
// turn: processors foresee this order, that of a plain loop, better than the order of the steps.
typedef struct eini_row_from {
  int n;
  uintptr_t p[EINI_ROW_REGS];
  const int64_t *off[EINI_ROW_REGS];
} eini_row_from;

static const int64_t eini_row_lines[8] = {0, 64, 128, 192, 256, 320, 384, 448};

#define EINI_STEP_ARGS(V) \
  const eini_row_step *t, int64_t at, V a, V b, V c, V d, V e, V f, V g, V h
// Where vector k is: lines of a row, or a line of each track.
#define EINI_AT_lines(k) ((k) * 64)
#define EINI_AT_tracks(k) t->off[k]
#define EINI_STEP_PUT(way, F, put, T, p)                                                    \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(0)), a),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(1)), b),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(2)), c),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(3)), d),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(4)), e),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(5)), f),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(6)), g),                                      \
  put##_##F((T *)(void *)((p) + EINI_AT_##way(7)), h)
// Lines out of order are not foreseen by the processor, and compilers like to exchange loads.
#define EINI_IN_ORDER __asm__ volatile("" ::: "memory")
// x: the value at hand; y: the other operand.
#define EINI_STEP_WAY(name, way, s, V)                                                      \
  EINI_T512 static void eini_q_##way##_##name##_##s(EINI_STEP_ARGS(V)) {                    \
    const char *p = t->with + (at & t->moves);                                              \
    a = eini_q_##name##_##s(a, p + EINI_AT_##way(0)); EINI_IN_ORDER;                        \
    b = eini_q_##name##_##s(b, p + EINI_AT_##way(1)); EINI_IN_ORDER;                        \
    c = eini_q_##name##_##s(c, p + EINI_AT_##way(2)); EINI_IN_ORDER;                        \
    d = eini_q_##name##_##s(d, p + EINI_AT_##way(3)); EINI_IN_ORDER;                        \
    e = eini_q_##name##_##s(e, p + EINI_AT_##way(4)); EINI_IN_ORDER;                        \
    f = eini_q_##name##_##s(f, p + EINI_AT_##way(5)); EINI_IN_ORDER;                        \
    g = eini_q_##name##_##s(g, p + EINI_AT_##way(6)); EINI_IN_ORDER;                        \
    h = eini_q_##name##_##s(h, p + EINI_AT_##way(7));                                       \
    t[1].s(t + 1, at, a, b, c, d, e, f, g, h);                                              \
  }
#define EINI_STEP(name, s, V, F, expr)                                                      \
  EINI_T512 static inline V eini_q_##name##_##s(V x, const char *p) {                       \
    const V y = _mm512_loadu_##F((const void *)p);                                          \
    (void)x;                                                                                \
    (void)y;                                                                                \
    return expr;                                                                            \
  }                                                                                         \
  EINI_STEP_WAY(name, lines, s, V)                                                          \
  EINI_STEP_WAY(name, tracks, s, V)
#define EINI_STEP_LAST(way, s, T, V, F)                                                     \
  EINI_T512 static void eini_q_##way##_store_##s(EINI_STEP_ARGS(V)) {                       \
    char *p = t->with + (at & t->moves);                                                    \
    EINI_STEP_PUT(way, F, _mm512_storeu, T, p);                                             \
  }                                                                                         \
  EINI_T512 static void eini_q_##way##_stream_##s(EINI_STEP_ARGS(V)) {                      \
    char *p = t->with + at;                                                                 \
    EINI_STEP_PUT(way, F, _mm512_stream, T, p);                                             \
  }
#define EINI_FROM_lines(k) ((k) * 64)
#define EINI_FROM_tracks(k) from->off[i][k]
#define EINI_STEP_GO(way, step, s, V, F)                                                    \
  EINI_T512 static void eini_q_##way##_go_##s(const eini_row_step *t, const eini_row_from *from,\
                                              int64_t at, int64_t to) {                     \
    const V z = _mm512_setzero_##F();                                                       \
    for (; at < to; at += step) {                                                           \
      for (int k = 0; k < 8; k++)                                                           \
        for (int i = 0; i < from->n; i++)                                                   \
          EINI_FETCH(from->p[i] + (uintptr_t)(at + EINI_FROM_##way(k)));                    \
      t->s(t, at, z, z, z, z, z, z, z, z);                                                  \
    }                                                                                       \
    _mm256_zeroupper();                                                                     \
  }
#define EINI_STEPS(s, T, V, F)                                                              \
  EINI_STEP(load, s, V, F, y)                                                               \
  EINI_STEP(add, s, V, F, _mm512_add_##F(x, y))                                             \
  EINI_STEP(mul, s, V, F, _mm512_mul_##F(x, y))                                             \
  EINI_STEP(sub, s, V, F, _mm512_sub_##F(x, y))                                             \
  EINI_STEP(sub2, s, V, F, _mm512_sub_##F(y, x))                                            \
  EINI_STEP(div, s, V, F, _mm512_div_##F(x, y))                                             \
  EINI_STEP(div2, s, V, F, _mm512_div_##F(y, x))                                            \
  EINI_STEP(max, s, V, F, eini_max_512##F(x, y))                                            \
  EINI_STEP(max2, s, V, F, eini_max_512##F(y, x))                                           \
  EINI_STEP(min, s, V, F, eini_min_512##F(x, y))                                            \
  EINI_STEP(min2, s, V, F, eini_min_512##F(y, x))                                           \
  EINI_STEP(square, s, V, F, _mm512_mul_##F(x, x))                                          \
  EINI_STEP(neg, s, V, F, _mm512_xor_##F(x, _mm512_set1_##F((T)-0.0)))                      \
  EINI_STEP(abs, s, V, F, _mm512_andnot_##F(_mm512_set1_##F((T)-0.0), x))                   \
  EINI_STEP(relu, s, V, F, _mm512_maskz_mov_##F(                                            \
      _mm512_cmp_##F##_mask(x, _mm512_setzero_##F(), _CMP_NLT_UQ), x))                      \
  EINI_STEP_LAST(lines, s, T, V, F)                                                         \
  EINI_STEP_LAST(tracks, s, T, V, F)                                                        \
  EINI_T512 static void eini_q_lines_save_##s(EINI_STEP_ARGS(V)) {                          \
    EINI_STEP_PUT(lines, F, _mm512_storeu, T, t->with);                                     \
    t[1].s(t + 1, at, a, b, c, d, e, f, g, h);                                              \
  }                                                                                         \
  EINI_T512 static void eini_q_lines_chunk_##s(EINI_STEP_ARGS(V)) {                         \
    char *p = t->room, *q = p + EINI_ROW_BLOCK;                                             \
    EINI_STEP_PUT(lines, F, _mm512_storeu, T, p);                                           \
    t->chunk(EINI_ROW_BLOCK / (int)sizeof(T), p, p, p, q);                                  \
    a = _mm512_loadu_##F((void *)q), b = _mm512_loadu_##F((void *)(q + 64));                \
    c = _mm512_loadu_##F((void *)(q + 128)), d = _mm512_loadu_##F((void *)(q + 192));       \
    e = _mm512_loadu_##F((void *)(q + 256)), f = _mm512_loadu_##F((void *)(q + 320));       \
    g = _mm512_loadu_##F((void *)(q + 384)), h = _mm512_loadu_##F((void *)(q + 448));       \
    t[1].s(t + 1, at, a, b, c, d, e, f, g, h);                                              \
  }                                                                                         \
  EINI_T512 static void eini_q_lines_exp_##s(EINI_STEP_ARGS(V)) {                           \
    a = eini_exp_512##F(a), b = eini_exp_512##F(b), c = eini_exp_512##F(c);                 \
    d = eini_exp_512##F(d), e = eini_exp_512##F(e), f = eini_exp_512##F(f);                 \
    g = eini_exp_512##F(g), h = eini_exp_512##F(h);                                         \
    t[1].s(t + 1, at, a, b, c, d, e, f, g, h);                                              \
  }                                                                                         \
  EINI_STEP_GO(lines, EINI_ROW_BLOCK, s, V, F)                                              \
  EINI_STEP_GO(tracks, 64, s, V, F)
EINI_STEPS(f32, float, __m512, ps)
EINI_STEPS(f64, double, __m512d, pd)
#undef EINI_STEPS
#undef EINI_STEP_GO
#undef EINI_FROM_tracks
#undef EINI_FROM_lines
#undef EINI_STEP_LAST
#undef EINI_STEP
#undef EINI_STEP_WAY
#undef EINI_IN_ORDER
#undef EINI_STEP_PUT
#undef EINI_AT_tracks
#undef EINI_AT_lines
#undef EINI_STEP_ARGS

enum { EINI_ROW_LOAD = EINI_OP_COUNT, EINI_ROW_SAVE, EINI_ROW_STORE, EINI_ROW_STREAM };

// Steps of an operation; the second pair has its operands exchanged.
typedef struct eini_row_op {
  int op;
  eini_row_f32 f32[2][2];    // lines, tracks
  eini_row_f64 f64[2][2];
} eini_row_op;

#define EINI_ROW_WAYS(l, n, t, n2, s)                                                       \
  {{eini_q_##l##_##n##_##s, eini_q_##l##_##n2##_##s},                                       \
   {eini_q_##t##_##n##_##s, eini_q_##t##_##n2##_##s}}
#define EINI_ROW(op, n, n2)                                                                 \
  {op, EINI_ROW_WAYS(lines, n, tracks, n2, f32), EINI_ROW_WAYS(lines, n, tracks, n2, f64)}
#define EINI_ROW_ONE(op, n)                                                                 \
  {op, EINI_ROW_WAYS(lines, n, lines, n, f32), EINI_ROW_WAYS(lines, n, lines, n, f64)}
#define EINI_ROW_CALL(op) EINI_ROW_ONE(op, chunk)
static const eini_row_op eini_row_table[] = {
    EINI_ROW(EINI_OP_ADD, add, add), EINI_ROW(EINI_OP_MUL, mul, mul),
    EINI_ROW(EINI_OP_SUB, sub, sub2), EINI_ROW(EINI_OP_DIV, div, div2),
    EINI_ROW(EINI_OP_MAX, max, max2), EINI_ROW(EINI_OP_MIN, min, min2),
    EINI_ROW(EINI_OP_SQUARE, square, square), EINI_ROW(EINI_OP_NEG, neg, neg),
    EINI_ROW(EINI_OP_ABS, abs, abs), EINI_ROW(EINI_OP_RELU, relu, relu),
    EINI_ROW(EINI_ROW_LOAD, load, load), EINI_ROW_ONE(EINI_ROW_SAVE, save),
    EINI_ROW(EINI_ROW_STORE, store, store), EINI_ROW(EINI_ROW_STREAM, stream, stream),
    EINI_ROW_ONE(EINI_OP_EXP, exp), EINI_ROW_CALL(EINI_OP_LOG), EINI_ROW_CALL(EINI_OP_SQRT),
    EINI_ROW_CALL(EINI_OP_RSQRT), EINI_ROW_CALL(EINI_OP_SIN), EINI_ROW_CALL(EINI_OP_COS),
    EINI_ROW_CALL(EINI_OP_TANH), EINI_ROW_CALL(EINI_OP_ERF), EINI_ROW_CALL(EINI_OP_SIGMOID),
    EINI_ROW_CALL(EINI_OP_SILU), EINI_ROW_CALL(EINI_OP_GELU), EINI_ROW_CALL(EINI_OP_FLOOR),
    EINI_ROW_CALL(EINI_OP_CEIL), EINI_ROW_CALL(EINI_OP_ROUND)};
#undef EINI_ROW_CALL
#undef EINI_ROW_ONE
#undef EINI_ROW
#undef EINI_ROW_WAYS

// A code as steps.
typedef struct eini_steps {
  eini_nest *walk;                 // at the row, or the first of its rows
  int tracks, loop;                // 1, or 8: of rows along this loop of the walk
  int n, calls;                    // steps, and those that call chunks or take as long
  eini_row_step step[EINI_ROW_STEPS];
  eini_row_from from;
  char *with[EINI_ROW_REGS];       // where registers are
  int64_t moves[EINI_ROW_REGS];
  int64_t off[EINI_ROW_REGS][8];
  char room[2 * EINI_ROW_BLOCK + 64];
} eini_steps;

// Appends one, with register reg; 0 where the operation has no step.
static int eini_steps_put(eini_steps *r, int op, int swapped, eini_row_step with) {
  eini_row_step *t = &r->step[r->n];
  for (size_t i = 0; i < sizeof eini_row_table / sizeof *eini_row_table; i++) {
    const eini_row_op *o = &eini_row_table[i];
    if (o->op != op) continue;
    *t = with;
    t->f32 = o->f32[r->tracks > 1][swapped];
    t->f64 = o->f64[r->tracks > 1][swapped];
    t->room = r->room + eini_to_line(r->room);
    r->calls += t->f64 == eini_q_lines_chunk_f64 || op == EINI_OP_EXP;
    r->n++;
    return 1;
  }
  return 0;
}

static int eini_steps_add(eini_steps *r, int op, int swapped, int reg, ein_chunk_fn chunk) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  with.with = r->with[reg];
  with.off = r->off[reg];
  with.moves = r->moves[reg];
  with.chunk = chunk;
  return eini_steps_put(r, op, swapped, with);
}

// Whether an instruction from the i-th on needs what register reg holds.
static int eini_steps_needs(const eini_code *code, int i, int reg) {
  for (; i < code->nins; i++) {
    const eini_ins *ins = &code->ins[i];
    if (ins->kind == EINI_INS_LOAD) continue;
    if (ins->a == reg || ins->b == reg || ins->c == reg) return 1;
    if (ins->dst == reg) return 0;
  }
  return 0;
}

// Bytes from track to track, of an operand or the output.
static int64_t eini_steps_pitch(const eini_steps *r, int stream) {
  const int64_t size = (int64_t)eini_dtypes[r->walk->ev.code->type].size;
  if (r->tracks == 1) return 0;
  const eini_task *t = r->walk->t;
  return t->stride[(int64_t)stream * t->nindex + r->loop] * size;
}

// An operand without a stride along rows: a block of its values, a line for each track.
static void eini_steps_fill(eini_steps *r, const eini_ins *ins, int64_t pitch) {
  const int64_t size = (int64_t)eini_dtypes[ins->dtype].size;
  const char *p = r->walk->ev.base[ins->a] + r->walk->ev.at[ins->a] * size;
  const size_t bytes = eini_reg_bytes(r->walk->ev.code);
  char *mem = r->walk->ev.mem + (size_t)ins->dst * bytes;
  const int64_t made = 0;  // the block is not what section eval makes of one value
  memcpy(mem + bytes - 64, &made, sizeof made);
  for (int k = 0; k < 8; k++)
    eini_gather((size_t)size, 64 / size, p + k * pitch, 0, NULL, mem + 64 * k);
}

static int eini_steps_load(eini_steps *r, const eini_ins *ins) {
  const eini_eval *ev = &r->walk->ev;
  if (ins->a < 0 || ins->dtype != ev->code->type || ev->step[ins->a] >> 1 != 0) return 0;
  const int64_t size = (int64_t)eini_dtypes[ins->dtype].size, pitch = eini_steps_pitch(r, ins->a);
  if (ev->step[ins->a] == 0) {
    if (pitch != 0) eini_steps_fill(r, ins, pitch);
    else eini_run_load(ev, ins, EINI_ROW_BLOCK / size);
    return 1;
  }
  union { const char *c; char *v; } u;  // only read
  u.c = ev->base[ins->a] + ev->at[ins->a] * size;
  r->with[ins->dst] = u.v;
  r->moves[ins->dst] = -1;
  for (int k = 0; r->tracks > 1 && k < 8; k++) r->off[ins->dst][k] = k * pitch;
  if (r->from.n < EINI_ROW_REGS && (r->tracks == 1 || pitch != 0)) {
    r->from.p[r->from.n] = (uintptr_t)u.c;
    r->from.off[r->from.n++] = r->off[ins->dst];
  }
  return 1;
}

// All steps but the one that stores. 0: there is an operation or an operand without steps.
static int eini_steps_make(eini_steps *r) {
  const eini_code *code = r->walk->ev.code;
  int hand = -1;  // the register whose value is at hand
  r->n = r->calls = r->from.n = 0;
  if (code->nreg > EINI_ROW_REGS || (code->type != EIN_F32 && code->type != EIN_F64)) return 0;
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].compute != code->type) return 0;
  for (int i = 0; i < code->nreg; i++) {
    r->with[i] = r->walk->ev.mem + (size_t)i * eini_reg_bytes(code);
    r->moves[i] = 0;
    if (r->tracks > 1) memcpy(r->off[i], eini_row_lines, sizeof eini_row_lines);
  }
  for (int i = 0; i < code->nins; i++) {
    const eini_ins *ins = &code->ins[i];
    if (ins->kind == EINI_INS_LOAD) {
      if (!eini_steps_load(r, ins)) return 0;
      continue;
    }
    if (ins->kind != EINI_INS_OP || ins->op >= EINI_OP_COUNT || r->n + 4 > EINI_ROW_STEPS) return 0;
    int two = eini_ops[ins->op].args == 2, swapped = two && hand == ins->b && hand != ins->a;
    int with = swapped ? ins->a : ins->b;
    if (hand >= 0 && ((two && hand == with) || eini_steps_needs(code, i + 1, hand)))
      eini_steps_add(r, EINI_ROW_SAVE, 0, hand, NULL);
    if (hand != ins->a && !swapped) eini_steps_add(r, EINI_ROW_LOAD, 0, ins->a, NULL);
    if (!eini_steps_add(r, ins->op, swapped, with, ins->fn)) return 0;
    hand = ins->dst;
  }
  return hand >= 0;
}

// Blocks from byte `at` on until `to`, stored at out and off, or always at the same place.
static void eini_steps_go(eini_steps *r, int64_t at, int64_t to, int op, char *out,
                          const int64_t *off, int64_t moves) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  with.with = out;
  with.off = off;
  with.moves = moves;
  eini_steps_put(r, op, 0, with);
  r->n--;
  if (r->walk->ev.code->type == EIN_F32) {
    if (r->tracks > 1) eini_q_tracks_go_f32(r->step, &r->from, at, to);
    else eini_q_lines_go_f32(r->step, &r->from, at, to);
  } else {
    if (r->tracks > 1) eini_q_tracks_go_f64(r->step, &r->from, at, to);
    else eini_q_lines_go_f64(r->step, &r->from, at, to);
  }
}

// Eight rows past the caches. A track is the lines of a row's output; the ends, which share a line
// with others, are taken from blocks of the first and the last bytes of each row.
static void eini_steps_rows(eini_steps *r, int64_t bytes, char *to) {
  static const int64_t twos[8] = {0, 128, 256, 384, 512, 640, 768, 896};
  char first[EINI_ROW_BLOCK], last[2 * EINI_ROW_BLOCK];
  const int64_t pitch = eini_steps_pitch(r, r->walk->t->out);
  int64_t head[8], off[8], end = bytes / 64 * 64, odd = bytes % 64;
  for (int k = 0; k < 8; k++) {
    head[k] = eini_to_line(to + k * pitch);
    odd |= head[k];
    end = eini_min64(end, (bytes - head[k]) / 64 * 64);
    off[k] = k * pitch + head[k];
  }
  if (odd != 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, first, eini_row_lines, 0);
    eini_steps_go(r, bytes - 128, bytes - 127, EINI_ROW_STORE, last, twos, 0);
    eini_steps_go(r, bytes - 64, bytes - 63, EINI_ROW_STORE, last + 64, twos, 0);
  }
  for (int k = 0; odd != 0 && k < 8; k++) {
    const int64_t tail = bytes - head[k] - end;
    memcpy(to + k * pitch, first + 64 * k, (size_t)head[k]);
    memcpy(to + k * pitch + bytes - tail, last + twos[k] + 128 - tail, (size_t)tail);
    for (int i = 0; i < r->walk->ev.code->nreg; i++) r->off[i][k] += head[k] & r->moves[i];
  }
  eini_steps_go(r, 0, end, EINI_ROW_STREAM, to, off, -1);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, int64_t bytes, char *to, int stream) {
  char part[EINI_ROW_BLOCK];
  const int64_t head = stream ? eini_to_line(to) : 0;
  const int64_t end = head + (bytes - head) / EINI_ROW_BLOCK * EINI_ROW_BLOCK;
  if (head > 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, eini_row_lines, 0);
    memcpy(to, part, (size_t)head);
  }
  eini_steps_go(r, head, end, stream ? EINI_ROW_STREAM : EINI_ROW_STORE, to, eini_row_lines, -1);
  if (end < bytes) {
    eini_steps_go(r, bytes - EINI_ROW_BLOCK, bytes, EINI_ROW_STORE, part, eini_row_lines, 0);
    char *last = part + EINI_ROW_BLOCK - (bytes - end);
    if (stream) eini_stream_row(EINI_ISA_AVX512, (size_t)(bytes - end), last, to + end);
    else memcpy(to + end, last, (size_t)(bytes - end));
  }
}

// Sets r to rows that follow each other in the walk, if it has eight and tracks gain: few operands
// come from memory, and nothing is called, which takes longer than memory does.
static int eini_row_together(eini_steps *r) {
  const eini_nest *w = r->walk;
  const eini_task *t = w->t;
  int own = 0, shared = 0;
  if (t->nouter == 0 || r->calls > 0) return 0;
  const int loop = t->outer[t->nouter - 1];
  if (w->extent[loop] - w->index[loop] < 8) return 0;
  for (int o = 0; o < t->nop; o++) {
    const int moves = t->stride[(int64_t)o * t->nindex + loop] != 0;
    own += moves && w->ev.step[o] != 0;
    shared += !moves && w->ev.step[o] != 0;
  }
  if (own > 2 || (own == 2 && shared == 0)) return 0;
  r->loop = loop;
  r->tracks = 8;
  return 1;
}

// The walk goes on at the last of eight rows.
static void eini_row_pass(const eini_steps *r) {
  eini_nest *w = r->walk;
  const eini_task *t = w->t;
  w->index[r->loop] += 7;
  for (int s = 0; s < t->nstream; s++)
    w->at[s] += 7 * t->stride[(int64_t)s * t->nindex + r->loop];
}

static int eini_cpu_row(const eini_cpu *m, eini_nest *w, int64_t n, void *out, int stream) {
  const eini_eval *ev = &w->ev;
  eini_steps r;
  const int64_t bytes = n * (int64_t)eini_dtypes[ev->code->type].size;
  if (m->isa != EINI_ISA_AVX512 || out == NULL || n < EINI_CHUNK) return 0;
  r.walk = w;
  r.tracks = 1;
  if (!eini_steps_make(&r)) return 0;
  // Eight rows at a time are faster on Zen 4; on Zen 5 they take 1.2 to 1.8 times as long.
  if (stream && m->halves && eini_row_together(&r)) {
    eini_steps_make(&r);
    eini_steps_rows(&r, bytes, (char *)out);
    eini_row_pass(&r);
    return 1;
  }
  if (!stream && bytes <= EINI_ROW_NEAR) r.from.n = 0;
  eini_steps_row(&r, bytes, (char *)out, stream);
  return 1;
}
#undef EINI_ROW_BLOCK
#undef EINI_ROW_NEAR
#undef EINI_ROW_STEPS
#undef EINI_ROW_REGS

#else  // EINI_CPU_X86

// NEON is what the compiler uses anyway.
static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  (void)isa;
  (void)op;
  (void)type;
  return NULL;
}

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  (void)isa;
  (void)fold;
  (void)type;
  return NULL;
}

static int eini_cpu_row(const eini_cpu *m, eini_nest *w, int64_t n, void *out, int stream) {
  (void)m;
  (void)w;
  (void)n;
  (void)out;
  (void)stream;
  return 0;
}

#endif  // EINI_CPU_X86
