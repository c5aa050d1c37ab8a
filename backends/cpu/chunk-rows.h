// ================================================================================================
// >>chunk-rows  expressions over rows
// Takes an expression program; runs it over rows of a map with its values in registers.
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
#define EINI_ROW_LEAST 256   // elements of a row; shorter ones are chunks of several loops
// What an operation takes, as flops of what the peak counts: from a cache, and called. Estimates:
// they say only which of several providers is asked to run a map.
#define EINI_ROW_FLOPS 4
#define EINI_ROW_CALL_FLOPS 64

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

enum { EINI_ROW_LOAD = EIN_OP_COUNT, EINI_ROW_SAVE, EINI_ROW_STORE, EINI_ROW_STREAM };

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
    EINI_ROW(EIN_OP_ADD, add, add), EINI_ROW(EIN_OP_MUL, mul, mul),
    EINI_ROW(EIN_OP_SUB, sub, sub2), EINI_ROW(EIN_OP_DIV, div, div2),
    EINI_ROW(EIN_OP_MAX, max, max2), EINI_ROW(EIN_OP_MIN, min, min2),
    EINI_ROW(EIN_OP_SQUARE, square, square), EINI_ROW(EIN_OP_NEG, neg, neg),
    EINI_ROW(EIN_OP_ABS, abs, abs), EINI_ROW(EIN_OP_RELU, relu, relu),
    EINI_ROW(EINI_ROW_LOAD, load, load), EINI_ROW_ONE(EINI_ROW_SAVE, save),
    EINI_ROW(EINI_ROW_STORE, store, store), EINI_ROW(EINI_ROW_STREAM, stream, stream),
    EINI_ROW_ONE(EIN_OP_EXP, exp), EINI_ROW_CALL(EIN_OP_LOG), EINI_ROW_CALL(EIN_OP_SQRT),
    EINI_ROW_CALL(EIN_OP_RSQRT), EINI_ROW_CALL(EIN_OP_SIN), EINI_ROW_CALL(EIN_OP_COS),
    EINI_ROW_CALL(EIN_OP_TANH), EINI_ROW_CALL(EIN_OP_ERF), EINI_ROW_CALL(EIN_OP_SIGMOID),
    EINI_ROW_CALL(EIN_OP_SILU), EINI_ROW_CALL(EIN_OP_GELU), EINI_ROW_CALL(EIN_OP_FLOOR),
    EINI_ROW_CALL(EIN_OP_CEIL), EINI_ROW_CALL(EIN_OP_ROUND)};
#undef EINI_ROW_CALL
#undef EINI_ROW_ONE
#undef EINI_ROW
#undef EINI_ROW_WAYS

// A code as steps.
typedef struct eini_steps {
  const ein_map *map;
  int tracks, loop;                // 1, or 8: of rows along this loop of the map
  int n, calls;                    // steps, and those that call chunks or take as long
  eini_row_step step[EINI_ROW_STEPS];
  eini_row_from from;
  char *block;                     // a block of each register
  int64_t bytes;                   // of a row
  char *at[EINI_ROW_REGS];         // operands at the row, or the first of its rows
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
    r->calls += t->f64 == eini_q_lines_chunk_f64 || op == EIN_OP_EXP;
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

static int eini_step_loads(const ein_step *s) {
  return s->op == EIN_OP_OPERAND || s->op == EIN_OP_INDEX;
}

// Whether a step from the i-th on needs what register reg holds.
static int eini_steps_needs(const ein_code *code, int i, int reg) {
  for (; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) continue;
    if (s->a == reg || s->b == reg || s->c == reg) return 1;
    if (s->dst == reg) return 0;
  }
  return 0;
}

// Of an operand or the output: the stride along loop i.
static int64_t eini_row_stride(const ein_map *m, int stream, int i) {
  return m->stride[(int64_t)stream * m->pitch + i];
}

// Bytes from track to track.
static int64_t eini_steps_pitch(const eini_steps *r, int stream) {
  const int64_t size = r->map->code->type == EIN_F32 ? 4 : 8;
  return r->tracks == 1 ? 0 : eini_row_stride(r->map, stream, r->loop) * size;
}

// A block of one value, or of a line of one for each track.
EINI_T512 static void eini_steps_equal(int64_t size, const char *p, int64_t pitch, char *block) {
  for (int k = 0; k < 8; k++, p += pitch, block += 64) {
    int32_t four;
    long long eight;
    if (size == 4) {
      memcpy(&four, p, sizeof four);
      _mm512_storeu_si512((void *)block, _mm512_set1_epi32(four));
    } else {
      memcpy(&eight, p, sizeof eight);
      _mm512_storeu_si512((void *)block, _mm512_set1_epi64(eight));
    }
  }
}

// An operand that does not move along rows is a block of its values; so is a row of less than a
// block. run: there are addresses.
static int eini_steps_load(eini_steps *r, const ein_step *s, int run) {
  const ein_map *m = r->map;
  if (s->op != EIN_OP_OPERAND || s->from != m->code->type) return 0;
  const int64_t size = s->from == EIN_F32 ? 4 : 8, pitch = eini_steps_pitch(r, s->a);
  const int64_t stride = eini_row_stride(m, s->a, m->n - 1);
  char *block = r->with[s->dst], *at = r->at[s->a];
  if (stride >> 1 != 0) return 0;
  if (!run) return 1;
  if (stride == 0) {
    eini_steps_equal(size, at, pitch, block);
    return 1;
  }
  if (r->bytes < EINI_ROW_BLOCK) {
    memset(block, 0, EINI_ROW_BLOCK);
    memcpy(block, at, (size_t)r->bytes);
    return 1;
  }
  r->with[s->dst] = at;
  r->moves[s->dst] = -1;
  for (int k = 0; r->tracks > 1 && k < 8; k++) r->off[s->dst][k] = k * pitch;
  if (r->from.n < EINI_ROW_REGS && (r->tracks == 1 || pitch != 0)) {
    r->from.p[r->from.n] = (uintptr_t)at;
    r->from.off[r->from.n++] = r->off[s->dst];
  }
  return 1;
}

// All steps but the one that stores. 0: there is an operation or an operand without steps.
static int eini_steps_make(eini_steps *r, int run) {
  const ein_code *code = r->map->code;
  int hand = -1;  // the register whose value is at hand
  r->n = r->calls = r->from.n = 0;
  for (int i = 0; i < code->nreg; i++) {
    r->with[i] = run ? r->block + (size_t)i * EINI_ROW_BLOCK : NULL;
    r->moves[i] = 0;
    if (r->tracks > 1) memcpy(r->off[i], eini_row_lines, sizeof eini_row_lines);
  }
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) {
      if (!eini_steps_load(r, s, run)) return 0;
      continue;
    }
    if (s->op == EIN_OP_CALL || r->n + 4 > EINI_ROW_STEPS) return 0;
    const int two = eini_ops[s->op].args == 2, swapped = two && hand == s->b && hand != s->a;
    int with = swapped ? s->a : s->b;
    if (hand >= 0 && ((two && hand == with) || eini_steps_needs(code, i + 1, hand)))
      eini_steps_add(r, EINI_ROW_SAVE, 0, hand, NULL);
    if (hand != s->a && !swapped) eini_steps_add(r, EINI_ROW_LOAD, 0, s->a, NULL);
    if (!eini_steps_add(r, s->op, swapped, with, s->fn)) return 0;
    hand = s->dst;
  }
  return hand >= 0 && hand == code->result;
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
  if (r->map->code->type == EIN_F32) {
    if (r->tracks > 1) eini_q_tracks_go_f32(r->step, &r->from, at, to);
    else eini_q_lines_go_f32(r->step, &r->from, at, to);
  } else {
    if (r->tracks > 1) eini_q_tracks_go_f64(r->step, &r->from, at, to);
    else eini_q_lines_go_f64(r->step, &r->from, at, to);
  }
}

// Eight rows past the caches. A track is the lines of a row's output; the ends, which share a line
// with others, are taken from blocks of the first and the last bytes of each row.
static void eini_steps_rows(eini_steps *r, char *to) {
  static const int64_t twos[8] = {0, 128, 256, 384, 512, 640, 768, 896};
  char first[EINI_ROW_BLOCK], last[2 * EINI_ROW_BLOCK];
  const int64_t pitch = eini_steps_pitch(r, r->map->nstream - 1), bytes = r->bytes;
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
    for (int i = 0; i < r->map->code->nreg; i++) r->off[i][k] += head[k] & r->moves[i];
  }
  eini_steps_go(r, 0, end, EINI_ROW_STREAM, to, off, -1);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, char *to, int stream) {
  const int64_t bytes = r->bytes;
  char part[EINI_ROW_BLOCK];
  if (bytes < EINI_ROW_BLOCK) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, eini_row_lines, 0);
    memcpy(to, part, (size_t)bytes);
    return;
  }
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

// ---- the provider's slots ----

// Words of ein_choice.state; together: eight rows at a time.
enum { EINI_ROWS_STREAM, EINI_ROWS_TOGETHER };

// Do tracks gain? Few operands come from memory, and nothing is called, which takes longer than
// memory does. They are faster on Zen 4; on Zen 5 they take 1.2 to 1.8 times as long.
static int eini_rows_together(const eini_cpu *cpu, const eini_steps *r) {
  const ein_map *m = r->map;
  int own = 0, shared = 0;
  if (!cpu->halves || m->n < 2 || r->calls > 0) return 0;
  for (int o = 0; o < m->nop; o++) {
    const int moves = eini_row_stride(m, o, m->n - 2) != 0;
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    own += moves && along;
    shared += !moves && along;
  }
  return own < 2 || (own == 2 && shared > 0);
}

// A row that all operations have steps for: values of f32 or f64, stored as they are, one after the
// other, read one after the other or always the same.
static int eini_rows_fit(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int out = m->nstream - 1;
  if (m->fold != EIN_FOLD_NONE || m->store != NULL || m->nvalue > 0 || m->n == 0) return 0;
  if (code->type != EIN_F32 && code->type != EIN_F64) return 0;
  if (code->nreg > EINI_ROW_REGS || m->nop > EINI_ROW_REGS || m->dtype[out] != code->type) return 0;
  if (m->extent[m->n - 1] < EINI_ROW_LEAST || eini_row_stride(m, out, m->n - 1) != 1) return 0;
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].type != code->type) return 0;
  return eini_steps_make(r, 0);
}

// Seconds of memory, or of operations where these take longer.
static double eini_rows_seconds(const eini_rated *cpu, const eini_steps *r, int stream,
                                int threads) {
  const ein_map *m = r->map;
  const int f32 = m->code->type == EIN_F32;
  double work = 1, bytes = 0;
  for (int i = 0; i < m->n; i++) work *= (double)m->extent[i];
  for (int s = 0; s < m->nstream; s++) {
    double n = f32 ? 4 : 8;
    for (int i = 0; i < m->n; i++) n *= eini_row_stride(m, s, i) != 0 ? (double)m->extent[i] : 1;
    bytes += n;
  }
  const double rate = stream ? cpu->copy_bw : bytes > (double)cpu->is.l2 ? cpu->l3_bw : cpu->l2_bw;
  const double flops = EINI_ROW_FLOPS * (r->n - r->calls) + EINI_ROW_CALL_FLOPS * r->calls;
  const double time = work * flops / (f32 ? cpu->peak_f32 : cpu->peak_f64);
  return cpu->call + fmax(time, bytes / rate) / threads;
}

// Ways: through the caches, past them, and eight rows at a time where that gains.
static int eini_cpu_map_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                             ein_choice *choice) {
  static const char *const names[] = {"rows", "rows stream", "rows of eight"};
  eini_steps r;
  r.map = m;
  r.tracks = 1;
  if (cpu->is.isa != EINI_ISA_AVX512 || !eini_rows_fit(&r)) return 0;
  const int past = eini_cpu_past(cpu, m->out_bytes), gains = eini_rows_together(&cpu->is, &r);
  const int best = past ? 1 + gains : 0, way = nth < 0 ? best : nth;
  if (way > 1 + gains) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  choice->seconds = eini_rows_seconds(cpu, &r, past, threads);
  if (way != best) choice->seconds *= 1.5;  // memory is read once more
  choice->scratch = (size_t)m->code->nreg * EINI_ROW_BLOCK + (size_t)m->n * sizeof(int64_t);
  choice->state[EINI_ROWS_STREAM] = way > 0;
  choice->state[EINI_ROWS_TOGETHER] = way > 1;
  eini_cpu_name(choice, names[way]);
  return 1;
}

// Registers of constants and params, once.
static void eini_rows_begin(eini_steps *r, char *scratch) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  r->block = scratch;
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    const double v = f->param >= 0 ? m->param[f->param].re : f->re;
    const float s = (float)v;
    char *block = r->block + (size_t)f->reg * EINI_ROW_BLOCK;
    if (f->type == EIN_F32) eini_steps_equal(4, (const char *)&s, 0, block);
    else eini_steps_equal(8, (const char *)&v, 0, block);
  }
}

// Moves on by `rows` along the innermost outer loop, which has as many left; 0: all rows are made.
static int eini_rows_next(eini_steps *r, int64_t *index, int64_t rows, char **to) {
  const ein_map *m = r->map;
  const int64_t size = m->code->type == EIN_F32 ? 4 : 8;
  for (int i = m->n - 2; i >= 0; i--, rows = 1) {
    index[i] += rows;
    const int ends = index[i] == m->extent[i];
    const int64_t by = ends ? rows - m->extent[i] : rows;
    if (ends) index[i] = 0;
    for (int o = 0; o < m->nop; o++) r->at[o] += by * eini_row_stride(m, o, i) * size;
    *to += by * eini_row_stride(m, m->nstream - 1, i) * size;
    if (!ends) return 1;
  }
  return 0;
}

static ein_status eini_cpu_map_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                   void *scratch) {
  eini_steps r;
  const int64_t size = m->code->type == EIN_F32 ? 4 : 8, n = m->extent[m->n - 1];
  int64_t *index = (int64_t *)(void *)((char *)scratch + (size_t)m->code->nreg * EINI_ROW_BLOCK);
  char *to = m->base[m->nstream - 1];
  const int whole = ((uintptr_t)to & (uintptr_t)(size - 1)) == 0 && cpu->isa == EINI_ISA_AVX512;
  const int stream = choice->state[EINI_ROWS_STREAM] && whole;
  int64_t rows;
  r.map = m;
  r.bytes = n * size;
  memset(index, 0, (size_t)m->n * sizeof *index);
  for (int o = 0; o < m->nop; o++) r.at[o] = m->base[o];
  eini_rows_begin(&r, (char *)scratch);
  do {
    rows = 1;
    r.loop = m->n - 2;
    if (stream && choice->state[EINI_ROWS_TOGETHER] && r.bytes >= 2 * EINI_ROW_BLOCK &&
        m->extent[r.loop] - index[r.loop] >= 8)
      rows = 8;
    r.tracks = (int)rows;
    eini_steps_make(&r, 1);
    if (!stream && r.bytes <= EINI_ROW_NEAR) r.from.n = 0;
    if (rows == 8) eini_steps_rows(&r, to);
    else eini_steps_row(&r, to, stream);
  } while (eini_rows_next(&r, index, rows, &to));
  if (stream) eini_stream_end();
  return EIN_OK;
}
#undef EINI_ROW_BLOCK
#undef EINI_ROW_NEAR
#undef EINI_ROW_STEPS
#undef EINI_ROW_REGS
#undef EINI_ROW_LEAST
#undef EINI_ROW_FLOPS
#undef EINI_ROW_CALL_FLOPS

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

static int eini_cpu_map_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                             ein_choice *choice) {
  (void)cpu;
  (void)m;
  (void)width;
  (void)nth;
  (void)choice;
  return 0;
}

static ein_status eini_cpu_map_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                   void *scratch) {
  (void)cpu;
  (void)m;
  (void)choice;
  (void)scratch;
  return EIN_ERR_INTERNAL;
}

#endif  // EINI_CPU_X86
