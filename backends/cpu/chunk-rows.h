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
// second cache once for eight, and what is done per row is done once. So short rows run; where they
// follow each other in the output, they are joined to longer ones instead, for which operands that
// do not follow each other are laid out.

#define EINI_ROW_BLOCK 512   // bytes
#define EINI_ROW_NEAR 8192   // bytes of a row whose operands are likely to be in the first cache
#define EINI_ROW_STEPS 32
#define EINI_ROW_REGS 32
#define EINI_ROW_LEAST 256   // elements of a row; shorter ones are joined or run in eight tracks,
#define EINI_ROW_SHORT 64    //   from so many bytes on; else they are chunks of several loops
#define EINI_ROW_JOIN 4096   // bytes of joined rows at most
#define EINI_ROW_CYCLES 8    // of a short row of an operand, laid out or found: an estimate
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
  char *const *with;         // where the other operand is, or where the value goes
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
    const char *p = *t->with + (at & t->moves);                                             \
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
    char *p = *t->with + (at & t->moves);                                                   \
    EINI_STEP_PUT(way, F, _mm512_storeu, T, p);                                             \
  }                                                                                         \
  EINI_T512 static void eini_q_##way##_stream_##s(EINI_STEP_ARGS(V)) {                      \
    char *p = *t->with + at;                                                                \
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
    EINI_STEP_PUT(lines, F, _mm512_storeu, T, *t->with);                                    \
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

// A code as steps. Streams: operands, then the output.
typedef struct eini_steps {
  const ein_map *map;
  int tracks;                      // 1, or 8
  int n, calls;                    // steps, and those that call chunks or take as long
  eini_row_step step[EINI_ROW_STEPS];
  eini_row_from from;
  char *block;                     // of each register a block, or room for rows laid out,
  int64_t pitch;                   //   so many bytes apart
  int64_t bytes;                   // of a row
  int64_t joined;                  // rows to one, of so many bytes each, or 0
  int64_t each;
  int near;                        // nothing is asked for ahead
  char *next[EINI_ROW_REGS + 1];   // streams at the row that comes next
  char *at[EINI_ROW_REGS + 1];     // .. at the row of the first track,
  int64_t track[EINI_ROW_REGS + 1][8];  // and from there to those of all
  char *with[EINI_ROW_REGS + 1];   // where registers are; then where the last step stores
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
  with.with = &r->with[reg];
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

static int64_t eini_steps_size(const eini_steps *r) {
  return r->map->code->type == EIN_F32 ? 4 : 8;
}

// A line of the value at p.
EINI_T512 EINI_INLINE __m512i eini_row_value(int64_t size, const char *p) {
  int32_t four;
  long long eight;
  if (size == 4) {
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
  }
  memcpy(&eight, p, sizeof eight);
  return _mm512_set1_epi64(eight);
}

// One for each track.
EINI_T512 static void eini_steps_equal(int64_t size, const char *p, const int64_t *track,
                                       char *block) {
  for (int k = 0; k < 8; k++)
    _mm512_storeu_si512((void *)(block + 64 * k), eini_row_value(size, p + track[k]));
}

// Lays out rows of an operand: `each` bytes of it, or of one value, from every row.
EINI_T512 static void eini_row_lay(const eini_steps *r, int o, char *to) {
  const int64_t size = eini_steps_size(r), each = r->each;
  const int64_t by = eini_row_stride(r->map, o, r->map->n - 2) * size;
  const int along = eini_row_stride(r->map, o, r->map->n - 1) != 0;
  const char *p = r->at[o];
  for (int64_t k = 0; k < r->joined; k++, p += by, to += each) {
    if (along) {
      int64_t i = 0;
      for (; i + 64 <= each; i += 64)
        _mm512_storeu_si512((void *)(to + i), _mm512_loadu_si512((const void *)(p + i)));
      if (i < each)  // the last line, which overlaps the one before
        _mm512_storeu_si512((void *)(to + each - 64),
                            _mm512_loadu_si512((const void *)(p + each - 64)));
      continue;
    }
    const __m512i v = eini_row_value(size, p);
    for (int64_t i = 0; i < each; i += 64) _mm512_storeu_si512((void *)(to + i), v);
  }
}

// Operands are at the rows that are joined.
static void eini_rows_lay(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int64_t size = eini_steps_size(r);
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    r->with[reg] = r->block + reg * r->pitch;
    if (r->bytes >= EINI_ROW_BLOCK && eini_row_stride(m, o, m->n - 1) != 0 &&
        eini_row_stride(m, o, m->n - 2) * size == r->each)
      r->with[reg] = r->at[o];
    else eini_row_lay(r, o, r->with[reg]);
  }
}

// Operands are at the rows of the tracks; one that does not move along rows is a block of its
// values.
static void eini_steps_aim(eini_steps *r) {
  const ein_code *code = r->map->code;
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    if (r->moves[reg] == 0) {
      eini_steps_equal(eini_steps_size(r), r->at[o], r->track[o], r->with[reg]);
      continue;
    }
    r->with[reg] = r->at[o];
    if (r->tracks > 1) memcpy(r->off[reg], r->track[o], sizeof r->off[reg]);
    if (r->near || (r->tracks > 1 && r->track[o][7] == 0)) continue;
    r->from.p[r->from.n] = (uintptr_t)r->at[o];
    r->from.off[r->from.n++] = r->off[reg];
  }
}

// All steps but the one that stores. 0: there is an operation or an operand without steps.
static int eini_steps_make(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  int hand = -1;  // the register whose value is at hand
  r->n = r->calls = 0;
  for (int i = 0; i < code->nreg; i++) {
    r->with[i] = r->block == NULL ? NULL : r->block + i * r->pitch;
    r->moves[i] = 0;
    memcpy(r->off[i], eini_row_lines, sizeof eini_row_lines);
  }
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) {
      if (s->op != EIN_OP_OPERAND || s->from != code->type) return 0;
      const int64_t stride = eini_row_stride(m, s->a, m->n - 1);
      if (stride >> 1 != 0) return 0;
      r->moves[s->dst] = r->joined > 0 ? -1 : -stride;
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
  r->with[EINI_ROW_REGS] = out;
  with.with = &r->with[EINI_ROW_REGS];
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
static void eini_steps_rows(eini_steps *r) {
  static const int64_t twos[8] = {0, 128, 256, 384, 512, 640, 768, 896};
  char first[EINI_ROW_BLOCK], last[2 * EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *pitch = r->track[r->map->nop], bytes = r->bytes;
  int64_t head[8], off[8], end = bytes / 64 * 64, odd = bytes % 64;
  for (int k = 0; k < 8; k++) {
    head[k] = eini_to_line(to + pitch[k]);
    odd |= head[k];
    end = eini_min64(end, (bytes - head[k]) / 64 * 64);
    off[k] = pitch[k] + head[k];
  }
  if (odd != 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, first, eini_row_lines, 0);
    eini_steps_go(r, bytes - 128, bytes - 127, EINI_ROW_STORE, last, twos, 0);
    eini_steps_go(r, bytes - 64, bytes - 63, EINI_ROW_STORE, last + 64, twos, 0);
  }
  for (int k = 0; odd != 0 && k < 8; k++) {
    const int64_t tail = bytes - head[k] - end;
    memcpy(to + pitch[k], first + 64 * k, (size_t)head[k]);
    memcpy(to + pitch[k] + bytes - tail, last + twos[k] + 128 - tail, (size_t)tail);
    for (int i = 0; i < r->map->code->nreg; i++) r->off[i][k] += head[k] & r->moves[i];
  }
  eini_steps_go(r, 0, end, EINI_ROW_STREAM, to, off, -1);
}

// Eight short rows. Their last lines, which overlap those before, are made first: the output may be
// an operand.
static void eini_steps_short(eini_steps *r) {
  char last[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *off = r->track[r->map->nop], bytes = r->bytes, end = bytes / 64 * 64;
  if (end < bytes)
    eini_steps_go(r, bytes - 64, bytes - 63, EINI_ROW_STORE, last, eini_row_lines, 0);
  eini_steps_go(r, 0, end, EINI_ROW_STORE, to, off, -1);
  for (int k = 0; k < 8 && end < bytes; k++)
    memcpy(to + off[k] + bytes - 64, last + 64 * k, 64);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, int stream) {
  const int64_t bytes = r->bytes;
  char part[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  if (bytes < EINI_ROW_BLOCK) {  // operands are laid out
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
