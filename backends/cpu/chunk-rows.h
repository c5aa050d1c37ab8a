// ================================================================================================
// >>chunk-rows  expressions over rows
// Takes an expression program; runs it over rows of a map with its values in registers.
// ================================================================================================

// A row is made block by block. The value at hand stays in eight vectors, which a step hands on to
// the next as arguments, so in registers; the other operand is memory: a row of an operand, or a
// block that is always the same (constants, operands without a stride) or holds a value put away.
// The last step stores. Steps round as the operations of chunks do, so the bits are the same.
//
// A block is eight vectors that follow each other, or a vector of each of eight tracks: rows that
// follow each other in a walk. What they share, like the x of A[i,j]*x[j], is then read from the
// second cache once for eight, and what is done per row is done once. So short rows run; where they
// follow each other in the output, they are joined to longer ones instead, for which operands that
// do not follow each other are laid out.

#define EINI_ROW_BLOCK 512   // bytes at most
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

// Steps have the type eini_row_zs or another, by the vectors of a set; they are kept as this one.
typedef void (*eini_row_fn)(void);
typedef struct eini_row_step {
  eini_row_fn fn;
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

#define EINI_STEP_ARGS(V) \
  const eini_row_step *t, int64_t at, V a, V b, V c, V d, V e, V f, V g, V h
// Where vector k is: one after the other, or one of each track.
#define EINI_AT_lines(X, k) ((k) * (int)sizeof(X##V))
#define EINI_AT_tracks(X, k) t->off[k]
#define EINI_STEP_PUT(way, X, PUT, p)                                                       \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 0)), a);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 1)), b);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 2)), c);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 3)), d);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 4)), e);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 5)), f);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 6)), g);                                      \
  PUT((X##T *)(void *)((p) + EINI_AT_##way(X, 7)), h)
#define EINI_STEP_NEXT(s) ((eini_row_##s)t[1].fn)(t + 1, at, a, b, c, d, e, f, g, h)
// Lines out of order are not foreseen by the processor, and compilers like to exchange loads.
#define EINI_IN_ORDER __asm__ volatile("" ::: "memory")
// x: the value at hand; y: the other operand.
#define EINI_STEP_WAY(name, way, s, X)                                                      \
  X##AT static void eini_q_##way##_##name##_##s(EINI_STEP_ARGS(X##V)) {                     \
    const char *p = *t->with + (at & t->moves);                                             \
    a = eini_q_##name##_##s(a, p + EINI_AT_##way(X, 0)); EINI_IN_ORDER;                     \
    b = eini_q_##name##_##s(b, p + EINI_AT_##way(X, 1)); EINI_IN_ORDER;                     \
    c = eini_q_##name##_##s(c, p + EINI_AT_##way(X, 2)); EINI_IN_ORDER;                     \
    d = eini_q_##name##_##s(d, p + EINI_AT_##way(X, 3)); EINI_IN_ORDER;                     \
    e = eini_q_##name##_##s(e, p + EINI_AT_##way(X, 4)); EINI_IN_ORDER;                     \
    f = eini_q_##name##_##s(f, p + EINI_AT_##way(X, 5)); EINI_IN_ORDER;                     \
    g = eini_q_##name##_##s(g, p + EINI_AT_##way(X, 6)); EINI_IN_ORDER;                     \
    h = eini_q_##name##_##s(h, p + EINI_AT_##way(X, 7));                                    \
    EINI_STEP_NEXT(s);                                                                      \
  }
#define EINI_STEP(name, s, X, expr)                                                         \
  X##AT static inline X##V eini_q_##name##_##s(X##V x, const char *p) {                     \
    const X##V y = X##LOAD((const X##T *)(const void *)p);                                  \
    (void)x;                                                                                \
    (void)y;                                                                                \
    return expr;                                                                            \
  }                                                                                         \
  EINI_STEP_WAY(name, lines, s, X)                                                          \
  EINI_STEP_WAY(name, tracks, s, X)
#define EINI_STEP_LAST(way, s, X)                                                           \
  X##AT static void eini_q_##way##_store_##s(EINI_STEP_ARGS(X##V)) {                        \
    char *p = *t->with + (at & t->moves);                                                   \
    EINI_STEP_PUT(way, X, X##STORE, p);                                                     \
  }                                                                                         \
  X##AT static void eini_q_##way##_stream_##s(EINI_STEP_ARGS(X##V)) {                       \
    char *p = *t->with + at;                                                                \
    EINI_STEP_PUT(way, X, X##PAST, p);                                                      \
  }
#define EINI_FROM_lines(X, k) ((k) * (int)sizeof(X##V))
#define EINI_FROM_tracks(X, k) from->off[i][k]
// A line is asked for once; each: vectors from one to the next that is.
#define EINI_STEP_GO(way, step, each, s, X)                                                 \
  X##AT static void eini_q_##way##_go_##s(const eini_row_step *t, const eini_row_from *from,\
                                          int64_t at, int64_t to) {                         \
    const X##V z = X##SET(0);                                                               \
    for (; at < to; at += step) {                                                           \
      for (int k = at % 64 < step ? 0 : 8; k < 8; k += each)                                \
        for (int i = 0; i < from->n; i++)                                                   \
          EINI_FETCH(from->p[i] + (uintptr_t)(at + EINI_FROM_##way(X, k)));                 \
      ((eini_row_##s)t->fn)(t, at, z, z, z, z, z, z, z, z);                                 \
    }                                                                                       \
    X##END;                                                                                 \
  }
// Blocks, and rows, that are laid out: see eini_row_set.
#define EINI_STEP_LAY(s, X)                                                                 \
  X##AT static void eini_q_equal_##s(const char *p, const int64_t *track, char *block) {    \
    X##T x;                                                                                 \
    for (int k = 0; k < 8; k++) {                                                           \
      memcpy(&x, p + track[k], sizeof x);                                                   \
      X##STORE((X##T *)(void *)(block + k * (int)sizeof(X##V)), X##SET(x));                 \
    }                                                                                       \
  }                                                                                         \
  X##AT static void eini_q_lay_##s(int64_t rows, int64_t each, int along, const char *p,    \
                                   int64_t by, char *to) {                                  \
    for (; rows > 0; rows--, p += by, to += each) {                                         \
      const int64_t n = each / (int)sizeof(X##T), last = n - X##W;                          \
      const X##T *x = (const X##T *)(const void *)p;                                        \
      X##T *y = (X##T *)(void *)to;                                                         \
      const X##V v = X##SET(*x);                                                            \
      if (!along) {                                                                         \
        for (int64_t i = 0; i < n; i += X##W) X##STORE(y + i, v);                           \
        continue;                                                                           \
      }                                                                                     \
      for (int64_t i = 0; i < last; i += X##W) X##STORE(y + i, X##LOAD(x + i));             \
      X##STORE(y + last, X##LOAD(x + last)); /* it overlaps the one before */               \
    }                                                                                       \
  }
#define EINI_STEPS(s, X)                                                                    \
  typedef void (*eini_row_##s)(EINI_STEP_ARGS(X##V));                                       \
  EINI_STEP(load, s, X, y)                                                                  \
  EINI_STEP(add, s, X, X##ADD(x, y))                                                        \
  EINI_STEP(mul, s, X, X##MUL(x, y))                                                        \
  EINI_STEP(sub, s, X, X##SUB(x, y))                                                        \
  EINI_STEP(sub2, s, X, X##SUB(y, x))                                                       \
  EINI_STEP(div, s, X, X##DIV(x, y))                                                        \
  EINI_STEP(div2, s, X, X##DIV(y, x))                                                       \
  EINI_STEP(max, s, X, X##TOP(x, y))                                                        \
  EINI_STEP(max2, s, X, X##TOP(y, x))                                                       \
  EINI_STEP(min, s, X, X##LOW(x, y))                                                        \
  EINI_STEP(min2, s, X, X##LOW(y, x))                                                       \
  EINI_STEP(square, s, X, X##MUL(x, x))                                                     \
  EINI_STEP(neg, s, X, X##NEG(x))                                                           \
  EINI_STEP(abs, s, X, X##ABS(x))                                                           \
  EINI_STEP(relu, s, X, X##RELU(x))                                                         \
  EINI_STEP_LAST(lines, s, X)                                                               \
  EINI_STEP_LAST(tracks, s, X)                                                              \
  X##AT static void eini_q_lines_save_##s(EINI_STEP_ARGS(X##V)) {                           \
    EINI_STEP_PUT(lines, X, X##STORE, *t->with);                                            \
    EINI_STEP_NEXT(s);                                                                      \
  }                                                                                         \
  X##AT static void eini_q_lines_chunk_##s(EINI_STEP_ARGS(X##V)) {                          \
    char *p = t->room, *q = p + EINI_ROW_BLOCK;                                             \
    const X##T *y = (const X##T *)(void *)q;                                                \
    EINI_STEP_PUT(lines, X, X##STORE, p);                                                   \
    t->chunk(8 * X##W, p, p, p, q);                                                         \
    a = X##LOAD(y), b = X##LOAD(y + X##W);                                                  \
    c = X##LOAD(y + 2 * X##W), d = X##LOAD(y + 3 * X##W);                                   \
    e = X##LOAD(y + 4 * X##W), f = X##LOAD(y + 5 * X##W);                                   \
    g = X##LOAD(y + 6 * X##W), h = X##LOAD(y + 7 * X##W);                                   \
    EINI_STEP_NEXT(s);                                                                      \
  }                                                                                         \
  X##AT static void eini_q_lines_exp_##s(EINI_STEP_ARGS(X##V)) {                            \
    X##EXPS(a, b, c, d, e, f, g, h);                                                        \
    EINI_STEP_NEXT(s);                                                                      \
  }                                                                                         \
  EINI_STEP_GO(lines, 8 * (int)sizeof(X##V), 64 / (int)sizeof(X##V), s, X)                  \
  EINI_STEP_GO(tracks, (int)sizeof(X##V), 1, s, X)                                          \
  EINI_STEP_LAY(s, X)
#if EINI_CPU_X86
EINI_STEPS(zs, EINI_ZS_)
EINI_STEPS(zd, EINI_ZD_)
EINI_STEPS(ys, EINI_YS_)
EINI_STEPS(yd, EINI_YD_)
#elif EINI_CPU_NEON
EINI_STEPS(ns, EINI_NS_)
EINI_STEPS(nd, EINI_ND_)
#endif
#undef EINI_STEPS
#undef EINI_STEP_LAY
#undef EINI_STEP_GO
#undef EINI_FROM_tracks
#undef EINI_FROM_lines
#undef EINI_STEP_LAST
#undef EINI_STEP
#undef EINI_STEP_WAY
#undef EINI_IN_ORDER
#undef EINI_STEP_NEXT
#undef EINI_STEP_PUT
#undef EINI_AT_tracks
#undef EINI_AT_lines
#undef EINI_STEP_ARGS

enum { EINI_ROW_LOAD = EIN_OP_COUNT, EINI_ROW_SAVE, EINI_ROW_STORE, EINI_ROW_STREAM };

// Steps of an operation, in lines and in tracks; the second of a pair has its operands exchanged.
typedef struct eini_row_op {
  int op;
  eini_row_fn fn[2][2];
} eini_row_op;

#define EINI_ROW_AS(way, n, s) (eini_row_fn)eini_q_##way##_##n##_##s
#define EINI_ROW(op, n, n2, s)                                                              \
  {op, {{EINI_ROW_AS(lines, n, s), EINI_ROW_AS(lines, n2, s)},                              \
        {EINI_ROW_AS(tracks, n, s), EINI_ROW_AS(tracks, n2, s)}}}
#define EINI_ROW_ONE(op, n, s)                                                              \
  {op, {{EINI_ROW_AS(lines, n, s), EINI_ROW_AS(lines, n, s)},                               \
        {EINI_ROW_AS(lines, n, s), EINI_ROW_AS(lines, n, s)}}}
#define EINI_ROW_CALL(op, s) EINI_ROW_ONE(EIN_OP_##op, chunk, s)
#define EINI_ROW_TABLE(s)                                                                   \
  static const eini_row_op eini_row_table_##s[EINI_ROW_OPS] = {                             \
      EINI_ROW(EINI_ROW_STORE, store, store, s),                                            \
      EINI_ROW(EINI_ROW_STREAM, stream, stream, s),                                         \
      EINI_ROW(EIN_OP_ADD, add, add, s), EINI_ROW(EIN_OP_MUL, mul, mul, s),                 \
      EINI_ROW(EIN_OP_SUB, sub, sub2, s), EINI_ROW(EIN_OP_DIV, div, div2, s),               \
      EINI_ROW(EIN_OP_MAX, max, max2, s), EINI_ROW(EIN_OP_MIN, min, min2, s),               \
      EINI_ROW(EIN_OP_SQUARE, square, square, s), EINI_ROW(EIN_OP_NEG, neg, neg, s),        \
      EINI_ROW(EIN_OP_ABS, abs, abs, s), EINI_ROW(EIN_OP_RELU, relu, relu, s),              \
      EINI_ROW(EINI_ROW_LOAD, load, load, s), EINI_ROW_ONE(EINI_ROW_SAVE, save, s),         \
      EINI_ROW_ONE(EIN_OP_EXP, exp, s), EINI_ROW_CALL(LOG, s), EINI_ROW_CALL(SQRT, s),      \
      EINI_ROW_CALL(RSQRT, s), EINI_ROW_CALL(SIN, s), EINI_ROW_CALL(COS, s),                \
      EINI_ROW_CALL(TANH, s), EINI_ROW_CALL(ERF, s), EINI_ROW_CALL(SIGMOID, s),             \
      EINI_ROW_CALL(SILU, s), EINI_ROW_CALL(GELU, s), EINI_ROW_CALL(FLOOR, s),              \
      EINI_ROW_CALL(CEIL, s), EINI_ROW_CALL(ROUND, s)};
enum { EINI_ROW_CALLED = 14, EINI_ROW_OPS = 28 };  // the first that takes long; all

// The steps of a set and what runs them. equal: a block of one value, or of one for each track.
// lay: `each` bytes, or the first value, from every one of rows that are `by` bytes apart.
typedef struct eini_row_set {
  int wide;                        // bytes of a vector
  const eini_row_op *op;
  void (*go[2])(const eini_row_step *t, const eini_row_from *from, int64_t at, int64_t to);
  void (*equal)(const char *p, const int64_t *track, char *block);
  void (*lay)(int64_t rows, int64_t each, int along, const char *p, int64_t by, char *to);
} eini_row_set;

#define EINI_ROW_SET(s, wide)                                                               \
  {wide, eini_row_table_##s, {eini_q_lines_go_##s, eini_q_tracks_go_##s}, eini_q_equal_##s, \
   eini_q_lay_##s}
#if EINI_CPU_X86
EINI_ROW_TABLE(zs)
EINI_ROW_TABLE(zd)
EINI_ROW_TABLE(ys)
EINI_ROW_TABLE(yd)
#elif EINI_CPU_NEON
EINI_ROW_TABLE(ns)
EINI_ROW_TABLE(nd)
#endif
#undef EINI_ROW_TABLE
#undef EINI_ROW_CALL
#undef EINI_ROW_ONE
#undef EINI_ROW
#undef EINI_ROW_AS

// By instruction set: f32, f64. wide 0: none.
#define EINI_ROW_NONE {{0, NULL, {NULL, NULL}, NULL, NULL}, {0, NULL, {NULL, NULL}, NULL, NULL}}
static const eini_row_set eini_row_sets[EINI_ISA_COUNT][2] = {
    EINI_ROW_NONE,
#if EINI_CPU_NEON
    {EINI_ROW_SET(ns, 16), EINI_ROW_SET(nd, 16)}, EINI_ROW_NONE, EINI_ROW_NONE};
#elif EINI_CPU_X86
    EINI_ROW_NONE,
    {EINI_ROW_SET(ys, 32), EINI_ROW_SET(yd, 32)},
    {EINI_ROW_SET(zs, 64), EINI_ROW_SET(zd, 64)}};
#else
    EINI_ROW_NONE, EINI_ROW_NONE, EINI_ROW_NONE};
#endif
#undef EINI_ROW_NONE
#undef EINI_ROW_SET

// A code as steps. Streams: operands, then the output.
typedef struct eini_steps {
  const ein_map *map;
  int isa;
  const eini_row_set *set;
  int64_t wide, whole;             // bytes of a vector, of a block
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
  for (int i = 0; i < EINI_ROW_OPS; i++) {
    const eini_row_op *o = &r->set->op[i];
    if (o->op != op) continue;
    *t = with;
    t->fn = o->fn[r->tracks > 1][swapped];
    t->room = r->room + eini_to_line(r->room);
    r->calls += i >= EINI_ROW_CALLED;
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
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    const int64_t by = eini_row_stride(m, o, m->n - 2) * size;
    if (r->bytes >= r->whole && along && by == r->each) r->with[reg] = r->at[o];
    else r->set->lay(r->joined, r->each, along, r->at[o], by, r->with[reg]);
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
      r->set->equal(r->at[o], r->track[o], r->with[reg]);
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
    for (int k = 0; k < 8; k++) r->off[i][k] = k * r->wide;
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

// Blocks from byte `at` on until `to`, stored at out (of tracks: and off), or always at the same
// place.
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
  r->set->go[r->tracks > 1](r->step, &r->from, at, to);
}

// Eight rows past the caches, by vectors that are lines. A track is the lines of a row's output;
// the ends, which share a line with others, are taken from blocks of the first and the last bytes
// of each row.
static void eini_steps_rows(eini_steps *r) {
  static const int64_t ones[8] = {0, 64, 128, 192, 256, 320, 384, 448};
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
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, first, ones, 0);
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

// Eight short rows. Their last vectors, which overlap those before, are made first: the output may
// be an operand.
static void eini_steps_short(eini_steps *r) {
  char last[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *off = r->track[r->map->nop], bytes = r->bytes, wide = r->wide;
  const int64_t end = bytes / wide * wide;
  int64_t each[8];
  for (int k = 0; k < 8; k++) each[k] = k * wide;
  if (end < bytes)
    eini_steps_go(r, bytes - wide, bytes - wide + 1, EINI_ROW_STORE, last, each, 0);
  eini_steps_go(r, 0, end, EINI_ROW_STORE, to, off, -1);
  for (int k = 0; k < 8 && end < bytes; k++)
    memcpy(to + off[k] + bytes - wide, last + each[k], (size_t)wide);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, int stream) {
  const int64_t bytes = r->bytes, whole = r->whole;
  char part[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  if (bytes < whole) {  // operands are laid out
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)bytes);
    return;
  }
  const int64_t head = stream ? eini_to_line(to) : 0;
  const int64_t end = head + (bytes - head) / whole * whole;
  if (head > 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)head);
  }
  eini_steps_go(r, head, end, stream ? EINI_ROW_STREAM : EINI_ROW_STORE, to, NULL, -1);
  if (end < bytes) {
    eini_steps_go(r, bytes - whole, bytes, EINI_ROW_STORE, part, NULL, 0);
    char *last = part + whole - (bytes - end);
    if (stream) eini_stream_row(r->isa, (size_t)(bytes - end), last, to + end);
    else memcpy(to + end, last, (size_t)(bytes - end));
  }
}
