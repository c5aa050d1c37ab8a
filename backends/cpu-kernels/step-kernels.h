// ================================================================================================
// >>step-kernels  steps of expressions, of one set
// A step is there twice: for a block of vectors that follow each other, and of one of each track.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_STEPS
#define EINI_STEP_ARGS \
  const eini_row_step *t, int64_t at, EINI_V a, EINI_V b, EINI_V c, EINI_V d, EINI_V e, \
  EINI_V f, EINI_V g, EINI_V h
typedef void (*EINI_FN(row))(EINI_STEP_ARGS);
#define EINI_STEP_NEXT ((EINI_FN(row))t[1].fn)(t + 1, at, a, b, c, d, e, f, g, h)
// Where vector k is from the first one.
#define EINI_STEP_AT(k) (tracks ? t->off[k] : (k) * (int)sizeof(EINI_V))

// One vector of an operation; swapped: the operands are exchanged.
EINI_VAT EINI_INLINE EINI_V EINI_FN(q_value)(int op, int swapped, EINI_V at_hand, const char *p) {
  const EINI_V with = EINI_VLOAD((const EINI_VT *)(const void *)p);
  const EINI_V x = swapped ? with : at_hand, y = swapped ? at_hand : with;
  switch (op) {
    case EIN_OP_ADD: return EINI_VADD(x, y);
    case EIN_OP_MUL: return EINI_VMUL(x, y);
    case EIN_OP_SUB: return EINI_VSUB(x, y);
    case EIN_OP_DIV: return EINI_VDIV(x, y);
    case EIN_OP_MAX: return EINI_VTOP(x, y);
    case EIN_OP_MIN: return EINI_VLOW(x, y);
    case EIN_OP_SQUARE: return EINI_VMUL(x, x);
    case EIN_OP_NEG: return EINI_VNEG(x);
    case EIN_OP_ABS: return EINI_VABS(x);
    case EIN_OP_RELU: return EINI_VRELU(x);
    default: return y;  // EINI_ROW_LOAD
  }
}

// Lines out of order are not foreseen by the processor, and compilers like to exchange loads.
#define EINI_IN_ORDER __asm__ volatile("" ::: "memory")
EINI_VAT EINI_INLINE void EINI_FN(q_do)(int tracks, int op, int swapped, EINI_STEP_ARGS) {
  const char *p = *t->with + (at & t->moves);
  a = EINI_FN(q_value)(op, swapped, a, p + EINI_STEP_AT(0)); EINI_IN_ORDER;
  b = EINI_FN(q_value)(op, swapped, b, p + EINI_STEP_AT(1)); EINI_IN_ORDER;
  c = EINI_FN(q_value)(op, swapped, c, p + EINI_STEP_AT(2)); EINI_IN_ORDER;
  d = EINI_FN(q_value)(op, swapped, d, p + EINI_STEP_AT(3)); EINI_IN_ORDER;
  e = EINI_FN(q_value)(op, swapped, e, p + EINI_STEP_AT(4)); EINI_IN_ORDER;
  f = EINI_FN(q_value)(op, swapped, f, p + EINI_STEP_AT(5)); EINI_IN_ORDER;
  g = EINI_FN(q_value)(op, swapped, g, p + EINI_STEP_AT(6)); EINI_IN_ORDER;
  h = EINI_FN(q_value)(op, swapped, h, p + EINI_STEP_AT(7));
  EINI_STEP_NEXT;
}
#undef EINI_IN_ORDER

EINI_VAT EINI_INLINE void EINI_FN(q_put)(int past, char *p, EINI_V x) {
  if (past) EINI_VPAST((EINI_VT *)(void *)p, x);
  else EINI_VSTORE((EINI_VT *)(void *)p, x);
}

EINI_VAT EINI_INLINE void EINI_FN(q_puts)(int tracks, int past, char *p, EINI_STEP_ARGS) {
  (void)at;
  EINI_FN(q_put)(past, p + EINI_STEP_AT(0), a);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(1), b);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(2), c);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(3), d);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(4), e);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(5), f);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(6), g);
  EINI_FN(q_put)(past, p + EINI_STEP_AT(7), h);
}

// The steps: of lines, then of tracks.
#define EINI_STEP_HAND t, at, a, b, c, d, e, f, g, h
#define EINI_LINES(op, swapped) EINI_FN(q_do)(0, op, swapped, EINI_STEP_HAND)
#define EINI_TRACKS(op, swapped) EINI_FN(q_do)(1, op, swapped, EINI_STEP_HAND)
EINI_VAT static void EINI_FN(q_lines_load)(EINI_STEP_ARGS) { EINI_LINES(EINI_ROW_LOAD, 0); }
EINI_VAT static void EINI_FN(q_lines_add)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_ADD, 0); }
EINI_VAT static void EINI_FN(q_lines_mul)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_MUL, 0); }
EINI_VAT static void EINI_FN(q_lines_sub)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_SUB, 0); }
EINI_VAT static void EINI_FN(q_lines_sub2)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_SUB, 1); }
EINI_VAT static void EINI_FN(q_lines_div)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_DIV, 0); }
EINI_VAT static void EINI_FN(q_lines_div2)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_DIV, 1); }
EINI_VAT static void EINI_FN(q_lines_max)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_MAX, 0); }
EINI_VAT static void EINI_FN(q_lines_max2)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_MAX, 1); }
EINI_VAT static void EINI_FN(q_lines_min)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_MIN, 0); }
EINI_VAT static void EINI_FN(q_lines_min2)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_MIN, 1); }
EINI_VAT static void EINI_FN(q_lines_square)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_SQUARE, 0); }
EINI_VAT static void EINI_FN(q_lines_neg)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_NEG, 0); }
EINI_VAT static void EINI_FN(q_lines_abs)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_ABS, 0); }
EINI_VAT static void EINI_FN(q_lines_relu)(EINI_STEP_ARGS) { EINI_LINES(EIN_OP_RELU, 0); }
EINI_VAT static void EINI_FN(q_tracks_load)(EINI_STEP_ARGS) { EINI_TRACKS(EINI_ROW_LOAD, 0); }
EINI_VAT static void EINI_FN(q_tracks_add)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_ADD, 0); }
EINI_VAT static void EINI_FN(q_tracks_mul)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_MUL, 0); }
EINI_VAT static void EINI_FN(q_tracks_sub)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_SUB, 0); }
EINI_VAT static void EINI_FN(q_tracks_sub2)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_SUB, 1); }
EINI_VAT static void EINI_FN(q_tracks_div)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_DIV, 0); }
EINI_VAT static void EINI_FN(q_tracks_div2)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_DIV, 1); }
EINI_VAT static void EINI_FN(q_tracks_max)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_MAX, 0); }
EINI_VAT static void EINI_FN(q_tracks_max2)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_MAX, 1); }
EINI_VAT static void EINI_FN(q_tracks_min)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_MIN, 0); }
EINI_VAT static void EINI_FN(q_tracks_min2)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_MIN, 1); }
EINI_VAT static void EINI_FN(q_tracks_square)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_SQUARE, 0); }
EINI_VAT static void EINI_FN(q_tracks_neg)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_NEG, 0); }
EINI_VAT static void EINI_FN(q_tracks_abs)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_ABS, 0); }
EINI_VAT static void EINI_FN(q_tracks_relu)(EINI_STEP_ARGS) { EINI_TRACKS(EIN_OP_RELU, 0); }
#undef EINI_LINES
#undef EINI_TRACKS

EINI_VAT static void EINI_FN(q_lines_store)(EINI_STEP_ARGS) {
  EINI_FN(q_puts)(0, 0, *t->with + (at & t->moves), EINI_STEP_HAND);
}
EINI_VAT static void EINI_FN(q_tracks_store)(EINI_STEP_ARGS) {
  EINI_FN(q_puts)(1, 0, *t->with + (at & t->moves), EINI_STEP_HAND);
}
EINI_VAT static void EINI_FN(q_lines_stream)(EINI_STEP_ARGS) {
  EINI_FN(q_puts)(0, 1, *t->with + at, EINI_STEP_HAND);
}
EINI_VAT static void EINI_FN(q_tracks_stream)(EINI_STEP_ARGS) {
  EINI_FN(q_puts)(1, 1, *t->with + at, EINI_STEP_HAND);
}

// What is there for both: a block of the room is always lines.
EINI_VAT static void EINI_FN(q_save)(EINI_STEP_ARGS) {
  EINI_FN(q_puts)(0, 0, *t->with, EINI_STEP_HAND);
  EINI_STEP_NEXT;
}
EINI_VAT static void EINI_FN(q_chunk)(EINI_STEP_ARGS) {
  char *p = t->room, *q = p + EINI_ROW_BLOCK;
  const EINI_VT *y = (const EINI_VT *)(void *)q;
  EINI_FN(q_puts)(0, 0, p, EINI_STEP_HAND);
  t->chunk(8 * EINI_VW, p, p, p, q);
  a = EINI_VLOAD(y), b = EINI_VLOAD(y + EINI_VW);
  c = EINI_VLOAD(y + 2 * EINI_VW), d = EINI_VLOAD(y + 3 * EINI_VW);
  e = EINI_VLOAD(y + 4 * EINI_VW), f = EINI_VLOAD(y + 5 * EINI_VW);
  g = EINI_VLOAD(y + 6 * EINI_VW), h = EINI_VLOAD(y + 7 * EINI_VW);
  EINI_STEP_NEXT;
}
EINI_VAT static void EINI_FN(q_exp)(EINI_STEP_ARGS) {
  EINI_VEXPS(a, b, c, d, e, f, g, h);
  EINI_STEP_NEXT;
}
#undef EINI_STEP_HAND
#undef EINI_STEP_AT
#undef EINI_STEP_NEXT
#undef EINI_STEP_ARGS

// Runs them over a row. A line is asked for once; each: vectors from one to the next that is.
EINI_VAT EINI_INLINE void EINI_FN(q_go)(int tracks, const eini_row_step *t,
                                        const eini_row_from *from, int64_t at, int64_t to) {
  const int wide = (int)sizeof(EINI_V), step = tracks ? wide : 8 * wide;
  const int each = tracks ? 1 : 64 / wide;
  const EINI_V z = EINI_VSET(0);
  for (; at < to; at += step) {
    for (int k = at % 64 < step ? 0 : 8; k < 8; k += each)
      for (int i = 0; i < from->n; i++)
        EINI_FETCH(from->p[i] + (uintptr_t)(at + (tracks ? from->off[i][k] : k * wide)));
    ((EINI_FN(row))t->fn)(t, at, z, z, z, z, z, z, z, z);
  }
  EINI_VEND;
}
EINI_VAT static void EINI_FN(q_lines_go)(const eini_row_step *t, const eini_row_from *from,
                                         int64_t at, int64_t to) {
  EINI_FN(q_go)(0, t, from, at, to);
}
EINI_VAT static void EINI_FN(q_tracks_go)(const eini_row_step *t, const eini_row_from *from,
                                          int64_t at, int64_t to) {
  EINI_FN(q_go)(1, t, from, at, to);
}

// Blocks, and rows, that are laid out: see eini_row_set.
EINI_VAT static void EINI_FN(q_equal)(const char *p, const int64_t *track, char *block) {
  EINI_VT x;
  for (int k = 0; k < 8; k++) {
    memcpy(&x, p + track[k], sizeof x);
    EINI_VSTORE((EINI_VT *)(void *)(block + k * (int)sizeof(EINI_V)), EINI_VSET(x));
  }
}
EINI_VAT static void EINI_FN(q_lay)(int64_t rows, int64_t each, int along, const char *p,
                                    int64_t by, char *to) {
  for (; rows > 0; rows--, p += by, to += each) {
    const int64_t n = each / (int)sizeof(EINI_VT), last = n - EINI_VW;
    const EINI_VT *x = (const EINI_VT *)(const void *)p;
    EINI_VT *y = (EINI_VT *)(void *)to;
    const EINI_V v = EINI_VSET(*x);
    if (!along) {
      for (int64_t i = 0; i < n; i += EINI_VW) EINI_VSTORE(y + i, v);
      continue;
    }
    for (int64_t i = 0; i < last; i += EINI_VW) EINI_VSTORE(y + i, EINI_VLOAD(x + i));
    EINI_VSTORE(y + last, EINI_VLOAD(x + last));  // it overlaps the one before
  }
}

#define EINI_STEP(op, name, name2)                                                          \
  {op, {{(eini_row_fn)EINI_FN(q_lines_##name), (eini_row_fn)EINI_FN(q_lines_##name2)},      \
        {(eini_row_fn)EINI_FN(q_tracks_##name), (eini_row_fn)EINI_FN(q_tracks_##name2)}}}
#define EINI_STEP_ONE(op, name)                                                             \
  {op, {{(eini_row_fn)EINI_FN(q_##name), (eini_row_fn)EINI_FN(q_##name)},                   \
        {(eini_row_fn)EINI_FN(q_##name), (eini_row_fn)EINI_FN(q_##name)}}}
static const eini_row_op EINI_FN(row_table)[EINI_ROW_OPS] = {
    EINI_STEP(EINI_ROW_STORE, store, store), EINI_STEP(EINI_ROW_STREAM, stream, stream),
    EINI_STEP(EIN_OP_ADD, add, add), EINI_STEP(EIN_OP_MUL, mul, mul),
    EINI_STEP(EIN_OP_SUB, sub, sub2), EINI_STEP(EIN_OP_DIV, div, div2),
    EINI_STEP(EIN_OP_MAX, max, max2), EINI_STEP(EIN_OP_MIN, min, min2),
    EINI_STEP(EIN_OP_SQUARE, square, square), EINI_STEP(EIN_OP_NEG, neg, neg),
    EINI_STEP(EIN_OP_ABS, abs, abs), EINI_STEP(EIN_OP_RELU, relu, relu),
    EINI_STEP(EINI_ROW_LOAD, load, load), EINI_STEP_ONE(EINI_ROW_SAVE, save),
    EINI_STEP_ONE(EIN_OP_EXP, exp), EINI_STEP_ONE(EIN_OP_LOG, chunk),
    EINI_STEP_ONE(EIN_OP_SQRT, chunk), EINI_STEP_ONE(EIN_OP_RSQRT, chunk),
    EINI_STEP_ONE(EIN_OP_SIN, chunk), EINI_STEP_ONE(EIN_OP_COS, chunk),
    EINI_STEP_ONE(EIN_OP_TANH, chunk), EINI_STEP_ONE(EIN_OP_ERF, chunk),
    EINI_STEP_ONE(EIN_OP_SIGMOID, chunk), EINI_STEP_ONE(EIN_OP_SILU, chunk),
    EINI_STEP_ONE(EIN_OP_GELU, chunk), EINI_STEP_ONE(EIN_OP_FLOOR, chunk),
    EINI_STEP_ONE(EIN_OP_CEIL, chunk), EINI_STEP_ONE(EIN_OP_ROUND, chunk)};
#undef EINI_STEP_ONE
#undef EINI_STEP
#endif  // EINI_KERNELS_STEPS
