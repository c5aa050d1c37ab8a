// einsum_cpu_kernels.h - v0.1.0 - vector kernels of einsum_cpu.h - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cpu-kernels/: edit those.
//
// einsum_cpu.h includes this file many times, each time for some kernels of one set of vectors:
// they are written once, as plain C over the words of section vectors there. It lies beside
// einsum_cpu.h; by itself it is empty.
//
//
// CONTENTS (search for >>name)
//
//                 >>kernels >>line-kernels >>exp-kernels >>vectors-kernels >>dots-kernels
//                 >>direct-kernels >>sums-kernels >>chunk-kernels >>step-kernels >>peak-kernels
//                 >>plain-kernels >>tile-kernels >>pack-kernels >>amx-kernels >>kernels-end
#ifdef EINI_KERNELS

// ================================================================================================
// >>kernels  what is compiled for each set of vectors
// EINI_KERNELS says which of what follows, EINI_VEC for which set of einsum_cpu.h's vectors.
// ================================================================================================

// The words of section vectors, of the set at hand; EINI_FN(name) is a function of it.
#define EINI_VT EINI_X(T)
#define EINI_V EINI_X(V)
#define EINI_VW EINI_X(W)
#define EINI_VBYTES EINI_X(BYTES)
#define EINI_VAT EINI_X(AT)
#define EINI_VEND EINI_X(END)
#define EINI_VLOAD EINI_X(LOAD)
#define EINI_VSTORE EINI_X(STORE)
#define EINI_VSTREAM EINI_X(STREAM)
#define EINI_VPAST EINI_X(PAST)
#define EINI_VSET EINI_X(SET)
#define EINI_VADD EINI_X(ADD)
#define EINI_VSUB EINI_X(SUB)
#define EINI_VMUL EINI_X(MUL)
#define EINI_VFMA EINI_X(FMA)
#define EINI_VFNMA EINI_X(FNMA)
#define EINI_VDIV EINI_X(DIV)
#define EINI_VSQRT EINI_X(SQRT)
#define EINI_VNEG EINI_X(NEG)
#define EINI_VABS EINI_X(ABS)
#define EINI_VRELU EINI_X(RELU)
#define EINI_VMIN EINI_X(MIN)
#define EINI_VMAX EINI_X(MAX)
#define EINI_VTOP EINI_X(TOP)
#define EINI_VLOW EINI_X(LOW)
#define EINI_VKEEP EINI_X(KEEP)
#define EINI_VFLOOR EINI_X(FLOOR)
#define EINI_VCEIL EINI_X(CEIL)
#define EINI_VRINT EINI_X(RINT)
#define EINI_VEXP EINI_X(EXP)
#define EINI_VEXPS EINI_X(EXPS)
#define EINI_VB EINI_X(B)
#define EINI_VBITS EINI_X(BITS)
#define EINI_VFROM EINI_X(FROM)
#define EINI_VBSET EINI_X(BSET)
#define EINI_VBSUB EINI_X(BSUB)
#define EINI_VSHR EINI_X(SHR)
#define EINI_VSHL EINI_X(SHL)
#define EINI_VU EINI_X(U)
#define EINI_VREAL EINI_X(REAL)
#define EINI_VREGS EINI_X(REGS)
#define EINI_VM EINI_X(M)
#define EINI_VMASK EINI_X(MASK)
#define EINI_VLOADM EINI_X(LOADM)
#define EINI_VSTOREM EINI_X(STOREM)
#define EINI_FN(name) EINI_CAT(eini_##name##_, EINI_X(TAG))
#define EINI_FAR(name) EINI_CAT(eini_##name##_, EINI_X(FAR))  // of the set FAR
// The statements X(0), X(1), .. of the first n up to 8, n constant once it is inlined. In loops
// over arrays some compilers would leave vectors in memory.
#define EINI_FIRST(n, X)                                                                     \
  { X(0) }                                                                                   \
  if ((n) > 1) { X(1) }                                                                      \
  if ((n) > 2) { X(2) }                                                                      \
  if ((n) > 3) { X(3) }                                                                      \
  if ((n) > 4) { X(4) X(5) X(6) X(7) }

// ================================================================================================
// >>line-kernels  transposes of whole lines, of one set
// By 4, 8 and 16 bytes. Lines are one vector, or several with fewer lanes of 128 bits.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_LINES
// Four rows of words: lane L of q[j] has element 4 L + j of each.
EINI_VAT EINI_INLINE void EINI_FN(tile_quad)(EINI_V a, EINI_V b, EINI_V c, EINI_V d, EINI_V *q) {
  const EINI_V e = EINI_X(LO32)(a, b), f = EINI_X(HI32)(a, b);
  const EINI_V g = EINI_X(LO32)(c, d), h = EINI_X(HI32)(c, d);
  q[0] = EINI_X(LO64)(e, g), q[1] = EINI_X(HI64)(e, g);
  q[2] = EINI_X(LO64)(f, h), q[3] = EINI_X(HI64)(f, h);
}

#if EINI_X(LANES) == 4
EINI_VAT EINI_INLINE void EINI_FN(tile_fours)(const eini_tile *t, int r, EINI_V *q) {
  const EINI_V a = EINI_FN(tile_load)(t, r), b = EINI_FN(tile_load)(t, r + 1);
  const EINI_V c = EINI_FN(tile_load)(t, r + 2), d = EINI_FN(tile_load)(t, r + 3);
  EINI_FN(tile_quad)(a, b, c, d, q);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_32)(const eini_tile *t) {
  EINI_V a[4], b[4], c[4], d[4];
  EINI_FN(tile_fours)(t, 0, a);
  EINI_FN(tile_fours)(t, 4, b);
  EINI_FN(tile_fours)(t, 8, c);
  EINI_FN(tile_fours)(t, 12, d);
  EINI_FN(tile_lanes)(t, 0, 4, a[0], b[0], c[0], d[0]);
  EINI_FN(tile_lanes)(t, 1, 4, a[1], b[1], c[1], d[1]);
  EINI_FN(tile_lanes)(t, 2, 4, a[2], b[2], c[2], d[2]);
  EINI_FN(tile_lanes)(t, 3, 4, a[3], b[3], c[3], d[3]);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_64)(const eini_tile *t) {
  const EINI_V a = EINI_FN(tile_load)(t, 0), b = EINI_FN(tile_load)(t, 1);
  const EINI_V c = EINI_FN(tile_load)(t, 2), d = EINI_FN(tile_load)(t, 3);
  const EINI_V e = EINI_FN(tile_load)(t, 4), f = EINI_FN(tile_load)(t, 5);
  const EINI_V g = EINI_FN(tile_load)(t, 6), h = EINI_FN(tile_load)(t, 7);
  EINI_FN(tile_lanes)(t, 0, 2, EINI_X(LO64)(a, b), EINI_X(LO64)(c, d), EINI_X(LO64)(e, f),
                      EINI_X(LO64)(g, h));
  EINI_FN(tile_lanes)(t, 1, 2, EINI_X(HI64)(a, b), EINI_X(HI64)(c, d), EINI_X(HI64)(e, f),
                      EINI_X(HI64)(g, h));
}

EINI_VAT EINI_INLINE void EINI_FN(tile_128)(const eini_tile *t) {
  const EINI_V a = EINI_FN(tile_load)(t, 0), b = EINI_FN(tile_load)(t, 1);
  const EINI_V c = EINI_FN(tile_load)(t, 2), d = EINI_FN(tile_load)(t, 3);
  EINI_FN(tile_lanes)(t, 0, 1, a, b, c, d);
}

// To the caches.
EINI_VAT static void EINI_FN(reg_tile_32)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(reg_tile_64)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(reg_tile_128)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_128)(&t);
}

#else  // EINI_X(LANES)
// Vector h of lines, from the s-th 16 bytes of as many rows as it has elements of 16, 8, 4 bytes.
EINI_VAT EINI_INLINE void EINI_FN(tile_ones)(const eini_tile *t, int s, int h, EINI_V *q) {
  q[0] = EINI_FN(tile_rows)(t, s, EINI_X(LANES) * h, 1);
}
EINI_VAT EINI_INLINE void EINI_FN(tile_twos)(const eini_tile *t, int s, int h, EINI_V *q) {
  const int r = 2 * EINI_X(LANES) * h;
  const EINI_V a = EINI_FN(tile_rows)(t, s, r, 2), b = EINI_FN(tile_rows)(t, s, r + 1, 2);
  q[0] = EINI_X(LO64)(a, b), q[1] = EINI_X(HI64)(a, b);
}
EINI_VAT EINI_INLINE void EINI_FN(tile_fours)(const eini_tile *t, int s, int h, EINI_V *q) {
  const int r = 4 * EINI_X(LANES) * h;
  const EINI_V a = EINI_FN(tile_rows)(t, s, r, 4), b = EINI_FN(tile_rows)(t, s, r + 1, 4);
  const EINI_V c = EINI_FN(tile_rows)(t, s, r + 2, 4), d = EINI_FN(tile_rows)(t, s, r + 3, 4);
  EINI_FN(tile_quad)(a, b, c, d, q);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_32)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_fours)(t, s, 0, q[0]);
    EINI_FN(tile_fours)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_fours)(t, s, 2, q[2]);
    EINI_FN(tile_fours)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 4, q, 0);
    EINI_FN(tile_store)(t, s / 4 + 1, q, 1);
    EINI_FN(tile_store)(t, s / 4 + 2, q, 2);
    EINI_FN(tile_store)(t, s / 4 + 3, q, 3);
  }
}

EINI_VAT EINI_INLINE void EINI_FN(tile_64)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_twos)(t, s, 0, q[0]);
    EINI_FN(tile_twos)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_twos)(t, s, 2, q[2]);
    EINI_FN(tile_twos)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 8, q, 0);
    EINI_FN(tile_store)(t, s / 8 + 1, q, 1);
  }
}

EINI_VAT EINI_INLINE void EINI_FN(tile_128)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_ones)(t, s, 0, q[0]);
    EINI_FN(tile_ones)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_ones)(t, s, 2, q[2]);
    EINI_FN(tile_ones)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 16, q, 0);
  }
}
#endif  // EINI_X(LANES)

// Tiles of whole lines past the caches.
EINI_VAT static void EINI_FN(line_tile_32)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(line_tile_64)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(line_tile_128)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_128)(&t);
}

// From and to any places.
EINI_VAT static void EINI_FN(join_tile_32)(const char *src, const int64_t *column,
                                           char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(join_tile_64)(const char *src, const int64_t *column,
                                           char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(join_tile_128)(const char *src, const int64_t *column,
                                            char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_128)(&t);
}
EINI_VAT static void EINI_FN(put_tile_32)(const char *src, const int64_t *column, char *dst,
                                          const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(put_tile_64)(const char *src, const int64_t *column, char *dst,
                                          const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(put_tile_128)(const char *src, const int64_t *column, char *dst,
                                           const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_128)(&t);
}

// For elements of 4, 8 and 16 bytes.
static const eini_line_kind EINI_FN(line_kinds)[3] = {
    {16, EINI_FN(line_tile_32), EINI_FN(join_tile_32), EINI_FN(put_tile_32)},
    {8, EINI_FN(line_tile_64), EINI_FN(join_tile_64), EINI_FN(put_tile_64)},
    {4, EINI_FN(line_tile_128), EINI_FN(join_tile_128), EINI_FN(put_tile_128)}};
#endif  // EINI_KERNELS_LINES

// ================================================================================================
// >>exp-kernels  the exponential function, of one set
// Without scalef and a table in registers: section math's, with fused products.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_EXP
// t holds 2^52 (f32: 2^23) times 1.5 plus the integer m, so m in its low bits; 2^m, which may be
// beyond the exponents there are, comes in two factors. NaN goes through MIN and MAX as their
// second argument.
// Two steps of a polynomial.
#define EINI_EXP_TWO(p, r, r2, hi, lo) \
  EINI_VFMA(p, r2, EINI_VFMA(r, EINI_VSET(hi), EINI_VSET(lo)))
#if EINI_VBYTES == 8
EINI_VAT static inline EINI_V EINI_FN(exp)(EINI_V x) {
  const EINI_V shift = EINI_VSET(6755399441055744.0);
  x = EINI_VMAX(EINI_VSET(-746.0), EINI_VMIN(EINI_VSET(746.0), x));
  const EINI_V t = EINI_VFMA(x, EINI_VSET(1.4426950408889634), shift);
  const EINI_V m = EINI_VSUB(t, shift);
  EINI_V r = EINI_VFNMA(m, EINI_VSET(0.69314718055989033), x);
  r = EINI_VFNMA(m, EINI_VSET(5.4979230187083712e-14), r);
  const EINI_V r2 = EINI_VMUL(r, r);
  EINI_V p = EINI_VFMA(r, EINI_VSET(2.5027323383195078e-08), EINI_VSET(2.7631567772592245e-07));
  p = EINI_EXP_TWO(p, r, r2, 2.7557500050335439e-06, 2.4801489110158403e-05);
  p = EINI_EXP_TWO(p, r, r2, 0.00019841269603845463, 0.0013888888947879597);
  p = EINI_EXP_TWO(p, r, r2, 0.0083333333334489577, 0.041666666666511636);
  p = EINI_EXP_TWO(p, r, r2, 0.16666666666666485, 0.50000000000000133);
  p = EINI_VADD(EINI_VSET(1.0), EINI_VFMA(p, r2, r));
  // 1023 for each factor
  const EINI_VB k = EINI_VBSUB(EINI_VBITS(t), EINI_VBSET(0x4338000000000000 - 0x7fe));
  const EINI_VB h = EINI_VSHR(k, 1);
  p = EINI_VMUL(p, EINI_VFROM(EINI_VSHL(h, 52)));
  return EINI_VMUL(p, EINI_VFROM(EINI_VSHL(EINI_VBSUB(k, h), 52)));
}
#else  // EINI_VBYTES
EINI_VAT static inline EINI_V EINI_FN(exp)(EINI_V x) {
  const EINI_V shift = EINI_VSET(12582912.0f);
  x = EINI_VMAX(EINI_VSET(-104.0f), EINI_VMIN(EINI_VSET(104.0f), x));
  const EINI_V t = EINI_VFMA(x, EINI_VSET(1.44269504f), shift), m = EINI_VSUB(t, shift);
  EINI_V r = EINI_VFNMA(m, EINI_VSET(0.693145752f), x);
  r = EINI_VFNMA(m, EINI_VSET(1.42860677e-06f), r);
  const EINI_V r2 = EINI_VMUL(r, r);
  EINI_V p = EINI_EXP_TWO(EINI_VSET(0.00137470546f), r, r2, 0.00836911518f, 0.0416696332f);
  p = EINI_EXP_TWO(p, r, r2, 0.166665167f, 0.499999881f);
  p = EINI_VADD(EINI_VSET(1.0f), EINI_VFMA(p, r2, r));
  const EINI_VB k = EINI_VBSUB(EINI_VBITS(t), EINI_VBSET(0x4b400000 - 0xfe)), h = EINI_VSHR(k, 1);
  p = EINI_VMUL(p, EINI_VFROM(EINI_VSHL(h, 23)));
  return EINI_VMUL(p, EINI_VFROM(EINI_VSHL(EINI_VBSUB(k, h), 23)));
}
#endif  // EINI_VBYTES
#undef EINI_EXP_TWO
#endif  // EINI_KERNELS_EXP

// ================================================================================================
// >>vectors-kernels  operations of vectors, of one set
// What a set of plain C needs; and partial vectors by way of memory.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_GENERIC
EINI_INLINE EINI_V EINI_FN(load)(const EINI_VU *p) {
  EINI_V x;
  memcpy(&x, p, sizeof x);
  return x;
}

EINI_INLINE void EINI_FN(store)(EINI_VU *p, EINI_V x) { memcpy(p, &x, sizeof x); }

EINI_INLINE EINI_V EINI_FN(set)(EINI_VU x) {
  const EINI_V zero = {0};
  return x - zero;
}

// x where m is, else y: vectors select by masks.
EINI_INLINE EINI_V EINI_FN(pick)(EINI_VB m, EINI_V x, EINI_V y) {
#if defined(__GNUC__) || defined(__clang__)
  return (EINI_V)(((EINI_VB)x & m) | ((EINI_VB)y & ~m));
#else
  return m ? x : y;
#endif
}

EINI_INLINE EINI_V EINI_FN(top)(EINI_V x, EINI_V y) {
  const EINI_X(O) a = (EINI_X(O))x, b = (EINI_X(O))y;
  return EINI_FN(pick)((EINI_VB)((a > b) | EINI_X(IS_NAN)(a)), x, y);
}

EINI_INLINE EINI_V EINI_FN(low)(EINI_V x, EINI_V y) {
  const EINI_X(O) a = (EINI_X(O))x, b = (EINI_X(O))y;
  return EINI_FN(pick)((EINI_VB)((a < b) | EINI_X(IS_NAN)(a)), x, y);
}
#endif  // EINI_KERNELS_GENERIC

#if EINI_KERNELS == EINI_KERNELS_PARTIAL || EINI_KERNELS == EINI_KERNELS_GENERIC
EINI_VAT EINI_INLINE EINI_V EINI_FN(loadm)(const EINI_VU *p, int m) {
  EINI_V x = {0};
  if (m == EINI_VW) return EINI_VLOAD(p);
  memcpy(&x, p, (size_t)m * sizeof *p);
  return x;
}

EINI_VAT EINI_INLINE void EINI_FN(storem)(EINI_VU *p, int m, EINI_V x) {
  if (m == EINI_VW) EINI_VSTORE(p, x);
  else memcpy(p, &x, (size_t)m * sizeof *p);
}
#endif  // EINI_KERNELS_PARTIAL

// ================================================================================================
// >>dots-kernels  dot products and sums of the lanes of vectors, of one set
// Of rows, of one long run, and with the sums' lanes added up.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_DIRECT
// The sum of n values d apart, as a tree.
EINI_INLINE EINI_VU EINI_FN(sum2)(const EINI_VU *p, int d) { return p[0] + p[d]; }
EINI_INLINE EINI_VU EINI_FN(sum4)(const EINI_VU *p, int d) {
  return EINI_FN(sum2)(p, d) + EINI_FN(sum2)(p + 2 * d, d);
}
EINI_INLINE EINI_VU EINI_FN(sum8)(const EINI_VU *p, int d) {
  return EINI_FN(sum4)(p, d) + EINI_FN(sum4)(p + 4 * d, d);
}
EINI_INLINE EINI_VU EINI_FN(sum)(const int n, const EINI_VU *p, int d) {
  return n == 16  ? EINI_FN(sum8)(p, d) + EINI_FN(sum8)(p + 8 * d, d)
         : n == 8 ? EINI_FN(sum8)(p, d)
         : n == 4 ? EINI_FN(sum4)(p, d)
         : n == 2 ? EINI_FN(sum2)(p, d)
                  : p[0];
}

EINI_VAT static void EINI_FN(dir_fold)(int rows, int planes, const void *p1, const void *p2, int ca,
                                       int cx, void *yp) {
  const int half = EINI_VW / 2;
  const EINI_VU *s1 = (const EINI_VU *)p1, *s2 = (const EINI_VU *)p2;
  EINI_VU *y = (EINI_VU *)yp;
  for (int i = 0; i < rows; i++, s1 += EINI_VW, s2 += EINI_VW) {
    if (planes == 1) {
      y[i] += EINI_FN(sum)(EINI_VW, s1, 1);
    } else {
      const EINI_VU a = EINI_FN(sum)(half, s1, 2), b = EINI_FN(sum)(half, s1 + 1, 2);
      const EINI_VU c = EINI_FN(sum)(half, s2, 2), d = EINI_FN(sum)(half, s2 + 1, 2);
      y[2 * i] += ca != cx ? a + b : a - b;
      y[2 * i + 1] += (cx ? 0 - c : c) + (ca ? 0 - d : d);
    }
  }
}

// In place in x.
EINI_VAT static void EINI_FN(dir_join)(int64_t n, void *xp, const void *yp, int cv, int cs) {
  EINI_VU *x = (EINI_VU *)xp;
  const EINI_VU *y = (const EINI_VU *)yp;
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const EINI_VU re = cv != cs ? x[i] + y[i + 1] : x[i] - y[i + 1];
    x[i + 1] = (cv ? -x[i + 1] : x[i + 1]) + (cs ? -y[i] : y[i]);
    x[i] = re;
  }
}

// y[i] is the sum of the lanes of v[i] for as many i as there are lanes, in the order of `sum`:
// pairs of vectors are added lane by lane until each lane has the sum of one.
#if EINI_VW > 1 && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12))
typedef EINI_VT EINI_FN(lanes) __attribute__((vector_size(EINI_VW * EINI_VBYTES)));
// Lane l of every other g lanes of a, from lane h on, and of b, in turn.
#define EINI_DIR_LANE(l, g, h) \
  ((l) % (2 * (g)) < (g) ? 0 : EINI_VW) + (l) / (2 * (g)) * 2 * (g) + (l) % (g) + (h)
#define EINI_DIR_LANES2(l, g, h) EINI_DIR_LANE(l, g, h), EINI_DIR_LANE((l) + 1, g, h)
#define EINI_DIR_LANES4(l, g, h) EINI_DIR_LANES2(l, g, h), EINI_DIR_LANES2((l) + 2, g, h)
#define EINI_DIR_LANES8(l, g, h) EINI_DIR_LANES4(l, g, h), EINI_DIR_LANES4((l) + 4, g, h)
#if EINI_VW == 2
#define EINI_DIR_LANES(g, h) EINI_DIR_LANES2(0, g, h)
#elif EINI_VW == 4
#define EINI_DIR_LANES(g, h) EINI_DIR_LANES4(0, g, h)
#elif EINI_VW == 8
#define EINI_DIR_LANES(g, h) EINI_DIR_LANES8(0, g, h)
#else
#define EINI_DIR_LANES(g, h) EINI_DIR_LANES8(0, g, h), EINI_DIR_LANES8(8, g, h)
#endif  // EINI_VW
#define EINI_DIR_HALF(i, g, h)                                                            \
  (EINI_V)__builtin_shufflevector((EINI_FN(lanes))w[2 * (i)], (EINI_FN(lanes))w[2 * (i) + 1], \
                                  EINI_DIR_LANES(g, h))
#define EINI_DIR_PAIR1(i) w[i] = EINI_VADD(EINI_DIR_HALF(i, 1, 0), EINI_DIR_HALF(i, 1, 1));
#define EINI_DIR_PAIR2(i) w[i] = EINI_VADD(EINI_DIR_HALF(i, 2, 0), EINI_DIR_HALF(i, 2, 2));
#define EINI_DIR_PAIR4(i) w[i] = EINI_VADD(EINI_DIR_HALF(i, 4, 0), EINI_DIR_HALF(i, 4, 4));
#define EINI_DIR_PAIR8(i) w[i] = EINI_VADD(EINI_DIR_HALF(i, 8, 0), EINI_DIR_HALF(i, 8, 8));
EINI_VAT EINI_INLINE void EINI_FN(dir_each)(const EINI_V *v, EINI_VU *y) {
  EINI_V w[16];
  for (int i = 0; i < EINI_VW; i++) w[i] = v[i];
  EINI_FIRST(EINI_VW / 2, EINI_DIR_PAIR1)
#if EINI_VW > 2
  EINI_FIRST(EINI_VW / 4, EINI_DIR_PAIR2)
#endif
#if EINI_VW > 4
  EINI_FIRST(EINI_VW / 8, EINI_DIR_PAIR4)
#endif
#if EINI_VW > 8
  EINI_FIRST(EINI_VW / 16, EINI_DIR_PAIR8)
#endif
  EINI_VSTORE(y, w[0]);
}
#undef EINI_DIR_PAIR8
#undef EINI_DIR_PAIR4
#undef EINI_DIR_PAIR2
#undef EINI_DIR_PAIR1
#undef EINI_DIR_HALF
#undef EINI_DIR_LANES
#undef EINI_DIR_LANES8
#undef EINI_DIR_LANES4
#undef EINI_DIR_LANES2
#undef EINI_DIR_LANE
#else  // no __builtin_shufflevector
EINI_VAT EINI_INLINE void EINI_FN(dir_each)(const EINI_V *v, EINI_VU *y) {
  for (int i = 0; i < EINI_VW; i++) y[i] = EINI_FN(sum)(EINI_VW, (const EINI_VU *)(v + i), 1);
}
#endif  // no __builtin_shufflevector

// Rows of dot products: two sums each, so that bits do not depend on how many rows there are.
#define EINI_DIR_ZERO(i) u[i] = v[i] = zero;
#define EINI_DIR_DOT(i)                                \
  u[i] = EINI_VFMA(EINI_VLOAD(a[i] + l), b0, u[i]); \
  v[i] = EINI_VFMA(EINI_VLOAD(a[i] + l + EINI_VW), b1, v[i]);
#define EINI_DIR_DOTM(i) u[i] = EINI_VFMA(EINI_VLOADM(a[i] + l, m), b0, u[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_dot_rows)(const int R, const EINI_VU *const *a,
                                                const EINI_VU *x, int64_t len, EINI_V *u,
                                                EINI_V *v) {
  int64_t l = 0;
  for (; l + 2 * EINI_VW <= len; l += 2 * EINI_VW) {
    const EINI_V b0 = EINI_VLOAD(x + l), b1 = EINI_VLOAD(x + l + EINI_VW);
    EINI_FIRST(R, EINI_DIR_DOT)
  }
  for (; l < len; l += EINI_VW) {
    const EINI_VM m = EINI_VMASK(eini_min64(len - l, EINI_VW));
    const EINI_V b0 = EINI_VLOADM(x + l, m);
    EINI_FIRST(R, EINI_DIR_DOTM)
  }
}

#define EINI_DIR_ROW(i) a[i] = (const EINI_VU *)d->a + d->row[i] + d->run[r];
#define EINI_DIR_PUT(i) EINI_VSTORE((EINI_VU *)d->sums + i * EINI_VW, EINI_VADD(u[i], v[i]));
EINI_VAT EINI_INLINE void EINI_FN(dir_dots)(const eini_dir_dots *d, const int R) {
  const int64_t len = d->len;
  const EINI_V zero = EINI_VSET(0);
  EINI_V u[8], v[8];
  EINI_FIRST(R, EINI_DIR_ZERO)
  for (int64_t r = 0; r < d->runs; r++) {
    const EINI_VU *a[8];
    EINI_FIRST(R, EINI_DIR_ROW)
    EINI_FN(dir_dot_rows)(R, a, (const EINI_VU *)d->x + r * d->xrun, len, u, v);
  }
  EINI_FIRST(R, EINI_DIR_PUT)
}
#undef EINI_DIR_PUT
#undef EINI_DIR_ROW
EINI_VAT static void EINI_FN(dir_dots_1)(const eini_dir_dots *d) { EINI_FN(dir_dots)(d, 1); }
EINI_VAT static void EINI_FN(dir_dots_4)(const eini_dir_dots *d) { EINI_FN(dir_dots)(d, 4); }

// The same sums as those of dots and fold, without a call per row; R rows at once.
#define EINI_DIR_ROW(i) a[i] = p + (g + i < d->rows ? i : 0) * step;
#define EINI_DIR_PUT(i) s.v[g - r + i] = EINI_VADD(u[i], v[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_even)(const eini_dir_even *d, const int R) {
  const int rows = EINI_VW > R ? EINI_VW : R;
  const int64_t step = d->step;
  const EINI_V zero = EINI_VSET(0);
  const EINI_VU *p = (const EINI_VU *)d->a, *x = (const EINI_VU *)d->x;
  EINI_VU *y = (EINI_VU *)d->y;
  union { EINI_V v[EINI_VW + 4]; EINI_VU t[(EINI_VW + 4) * EINI_VW]; } s;
  for (int64_t r = 0; r < d->rows; r += rows) {
    const int64_t to = eini_min64(d->rows, r + rows);
    for (int64_t g = r; g < to; g += R, p += R * step, x += d->xstep) {
      EINI_V u[8], v[8];
      const EINI_VU *a[8];
      EINI_FIRST(R, EINI_DIR_ROW)
      EINI_FIRST(R, EINI_DIR_ZERO)
      EINI_FN(dir_dot_rows)(R, a, x, d->len, u, v);
      EINI_FIRST(R, EINI_DIR_PUT)
    }
    if (to - r == rows) {
      for (int i = 0; i < rows; i += EINI_VW) EINI_FN(dir_each)(s.v + i, y + r + i);
    } else {
      for (int i = 0; i < to - r; i++) y[r + i] = EINI_FN(sum)(EINI_VW, s.t + i * EINI_VW, 1);
    }
  }
}
#undef EINI_DIR_PUT
#undef EINI_DIR_ROW
#undef EINI_DIR_ZERO
EINI_VAT static void EINI_FN(dir_even_far)(const eini_dir_even *d) { EINI_FN(dir_even)(d, 1); }
EINI_VAT static void EINI_FN(dir_even_near)(const eini_dir_even *d) { EINI_FN(dir_even)(d, 4); }

// One long dot product: eight sums. far: it comes from memory, and some lines of one operand, then
// as many of the other, are asked for at once. Read in turn, rows of memory that share a bank would
// close one another.
#define EINI_DIR_ZERO(i) u[i] = zero;
#define EINI_DIR_DOT8(i) \
  u[i] = EINI_VFMA(EINI_VLOAD(a + l + i * EINI_VW), EINI_VLOAD(x + l + i * EINI_VW), u[i]);
#define EINI_DIR_FETCH8(i) EINI_FETCH((const char *)(a + l + i * EINI_VW) + ahead);
EINI_VAT EINI_INLINE void EINI_FN(dir_long)(const eini_dir_dots *d, const int far) {
  const int64_t burst = 512 / EINI_VBYTES;  // a multiple of eight vectors
  const int64_t len = d->len, ahead = d->ahead, ask = far ? burst : 8 * EINI_VW;
  const EINI_V zero = EINI_VSET(0);
  EINI_V u[8];
  EINI_FIRST(8, EINI_DIR_ZERO)
  for (int64_t r = 0; r < d->runs; r++) {
    const EINI_VU *a = (const EINI_VU *)d->a + d->row[0] + d->run[r];
    const EINI_VU *x = (const EINI_VU *)d->x + r * d->xrun;
    int64_t l = 0;
    while (l + ask <= len) {
      if (far) {
        for (int64_t i = 0; i < 512; i += 64) EINI_FETCH((const char *)(a + l) + i);
        for (int64_t i = 0; i < 512; i += 64) EINI_FETCH((const char *)(x + l) + i);
      } else if (ahead) {
        EINI_FIRST(8, EINI_DIR_FETCH8)
      }
      const int64_t end = l + ask;
      do {
        EINI_FIRST(8, EINI_DIR_DOT8)
        l += 8 * EINI_VW;
      } while (l < end);
    }
    for (; l < len; l += EINI_VW) {
      const EINI_VM m = EINI_VMASK(eini_min64(len - l, EINI_VW));
      if (!far && ahead) EINI_DIR_FETCH8(0)
      u[0] = EINI_VFMA(EINI_VLOADM(a + l, m), EINI_VLOADM(x + l, m), u[0]);
    }
  }
  const EINI_V even = EINI_VADD(EINI_VADD(u[0], u[4]), EINI_VADD(u[2], u[6]));
  const EINI_V odd = EINI_VADD(EINI_VADD(u[1], u[5]), EINI_VADD(u[3], u[7]));
  EINI_VSTORE((EINI_VU *)d->sums, EINI_VADD(even, odd));
}
#undef EINI_DIR_FETCH8
#undef EINI_DIR_DOT8
#undef EINI_DIR_DOTM
#undef EINI_DIR_DOT
#undef EINI_DIR_ZERO
EINI_VAT static void EINI_FN(dir_long_near)(const eini_dir_dots *d) { EINI_FN(dir_long)(d, 0); }
EINI_UNUSED EINI_VAT static void EINI_FN(dir_long_far)(const eini_dir_dots *d) {
  EINI_FN(dir_long)(d, 1);
}
#endif  // EINI_KERNELS_DIRECT

// ================================================================================================
// >>direct-kernels  kernels of contractions without packing, of one set
// Inline functions of R rows, R constant, and what is made of them: the table of the set.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_DIRECT
#define EINI_DIR_P(i) p[i] = (const EINI_VU *)t->p + t->prow[i];
#define EINI_DIR_ZERO1(i) x[i] = zero;
#define EINI_DIR_ZERO3(i) x[i] = y[i] = z[i] = zero;

// A row of L vectors, the last of them up to the mask.
EINI_VAT EINI_INLINE void EINI_FN(dir_put)(const int L, EINI_VU *o, EINI_VM m, EINI_V x, EINI_V y,
                                           EINI_V z) {
  if (L > 1) EINI_VSTORE(o, x);
  if (L > 2) EINI_VSTORE(o + EINI_VW, y);
  EINI_VSTOREM(o + (L - 1) * EINI_VW, m, L == 1 ? x : L == 2 ? y : z);
}

// Adds up a tile along k: to rows x of one vector, x and y of two, or x, y and z of three. lanes:
// p has vectors, too.
#define EINI_DIR_ADD(i)                                                         \
  {                                                                             \
    const EINI_V c = lanes ? EINI_VLOADM(p[i] + k, m) : EINI_VSET(p[i][k]); \
    x[i] = EINI_VFMA(c, b0, x[i]);                                              \
    if (L > 1) y[i] = EINI_VFMA(c, b1, y[i]);                                   \
    if (L > 2) z[i] = EINI_VFMA(c, b2, z[i]);                                   \
    if (lanes) EINI_FETCH((const char *)(p[i] + k) + ahead);                    \
  }
EINI_VAT EINI_INLINE void EINI_FN(dir_add)(const int R, const int L, const int lanes, int64_t n,
                                           const EINI_VU *const *p, int64_t k, int64_t pk,
                                           const EINI_VU *b, int64_t qk, EINI_VM m, int64_t ahead,
                                           EINI_V *x, EINI_V *y, EINI_V *z) {
  for (; n > 0; n--, k += pk, b += qk) {
    const EINI_V b0 = L > 1 ? EINI_VLOAD(b) : EINI_VLOADM(b, m);
    const EINI_V b1 = L > 2   ? EINI_VLOAD(b + EINI_VW)
                      : L > 1 ? EINI_VLOADM(b + EINI_VW, m)
                              : b0;
    const EINI_V b2 = L > 2 ? EINI_VLOADM(b + 2 * EINI_VW, m) : b0;
    EINI_FIRST(R, EINI_DIR_ADD)
  }
}
#undef EINI_DIR_ADD

// Rows beyond those in use are the last of them.
#define EINI_DIR_ROW(i) (R == 8 && i > 4 && i >= t->rows ? t->rows - 1 : i)
#define EINI_DIR_TILE_P(i) p[i] = (const EINI_VU *)t->p + t->prow[EINI_DIR_ROW(i)];
#define EINI_DIR_PUT(i) EINI_FN(dir_put)(L, o + t->orow[EINI_DIR_ROW(i)], m, x[i], y[i], z[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_tile)(const eini_dir_tile *t, const int L, const int R,
                                            const int lanes) {
  EINI_VU *o = (EINI_VU *)t->out;
  const int64_t pk = t->pk, qk = t->qk, k0 = t->k0, k1 = t->k1;
  const EINI_V zero = EINI_VSET(0);
  const EINI_VU *p[8];
  EINI_V x[8], y[8], z[8];
  EINI_FIRST(R, EINI_DIR_TILE_P)
  EINI_FIRST(R, EINI_DIR_ZERO3)
  const EINI_VM m = EINI_VMASK(t->last);
  for (int64_t h = 0; h < k1; h++) {
    EINI_FN(dir_add)(R, L, lanes, k0, p, t->pk1[h], pk, (const EINI_VU *)t->q + t->qk1[h], qk, m,
                     t->ahead, x, y, z);
  }
  EINI_FIRST(R, EINI_DIR_PUT)
}
#undef EINI_DIR_PUT
#undef EINI_DIR_TILE_P
#undef EINI_DIR_ROW

// ---- for elements: of floating types
#if EINI_VREAL
// The sums of a group are in x, y, z, those of all groups in u, v, w. t is volatile so that what
// outer loops need is read there and registers are left for sums.
#define EINI_DIR_SCALED_P(i) p[i] = p0 + i * pe;
#define EINI_DIR_SCALED_ZERO(i) u[i] = v[i] = w[i] = zero;
#define EINI_DIR_SCALED_ADD(i)                \
  {                                           \
    const EINI_V c = EINI_VSET(s[i * se]);    \
    u[i] = EINI_VFMA(c, x[i], u[i]);          \
    if (L > 1) v[i] = EINI_VFMA(c, y[i], v[i]); \
    if (L > 2) w[i] = EINI_VFMA(c, z[i], w[i]); \
  }
#define EINI_DIR_SCALED_PUT(i) EINI_FN(dir_put)(L, o + i * oe, m, u[i], v[i], w[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_scaled)(const eini_dir_scaled *scaled, const int L,
                                              const int R) {
  const volatile eini_dir_scaled *t = scaled;
  const EINI_V zero = EINI_VSET(0);
  EINI_V x[8], y[8], z[8], u[8], v[8], w[8];
  EINI_FIRST(R, EINI_DIR_SCALED_ZERO)
  for (int64_t g = 0; g < t->groups; g++) {
    EINI_FIRST(R, EINI_DIR_ZERO3)
    for (int64_t h = 0; h < t->k1; h++) {
      const int64_t pk = t->pk, qk = t->qk, pe = t->pe;
      const EINI_VU *p0 = (const EINI_VU *)t->p + t->pg[g] + t->pk1[h], *p[8];
      const EINI_VU *b = (const EINI_VU *)t->q + t->qg[g] + t->qk1[h];
      const EINI_VM m = EINI_VMASK(t->last);
      EINI_FIRST(R, EINI_DIR_SCALED_P)
      EINI_FN(dir_add)(R, L, 0, t->k0, p, 0, pk, b, qk, m, 0, x, y, z);
    }
    const EINI_VU *s = (const EINI_VU *)t->s + t->sg[g];
    const int64_t se = t->se;
    EINI_FIRST(R, EINI_DIR_SCALED_ADD)
  }
  EINI_VU *o = (EINI_VU *)t->out;
  const int64_t oe = t->oe;
  const EINI_VM m = EINI_VMASK(t->last);
  EINI_FIRST(R, EINI_DIR_SCALED_PUT)
}
#undef EINI_DIR_SCALED_PUT
#undef EINI_DIR_SCALED_ADD
#undef EINI_DIR_SCALED_ZERO
#undef EINI_DIR_SCALED_P

// Of elements e up to `to`, vectors from l on up to `end`: whole ones, or (part) the rest of a row
// that the mask says, stored whole or (2) not.
#define EINI_DIR_ADD(i) x[i] = EINI_VFMA(EINI_VSET(p[i][from]), b, x[i]);
#define EINI_DIR_PUT(i)                           \
  if (part < 2) EINI_VSTORE(o[i] + at, x[i]); \
  else EINI_VSTOREM(o[i] + at, m, x[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_band)(const eini_dir_bands *t, const int R, const int part,
                                            const EINI_VU *const *p, EINI_VU *const *o, EINI_VM m,
                                            int64_t begin, int64_t to, int64_t l) {
  const int64_t depth = t->k, pe = t->pe, qe = t->qe, oe = t->oe, *pk = t->pk, *qk = t->qk;
  const EINI_VU *q = (const EINI_VU *)t->q + l;
  const EINI_V zero = EINI_VSET(0);
  for (int64_t e = begin, at = begin * oe + l; e < to; e++, at += oe) {
    EINI_V x[8];
    EINI_FIRST(R, EINI_DIR_ZERO1)
    for (int64_t k = 0; k < depth; k++) {
      const EINI_VU *bp = q + qk[k] + e * qe;
      const EINI_V b = part ? EINI_VLOADM(bp, m) : EINI_VLOAD(bp);
      const int64_t from = e * pe + pk[k];
      EINI_FIRST(R, EINI_DIR_ADD)
    }
    EINI_FIRST(R, EINI_DIR_PUT)
  }
}
#undef EINI_DIR_PUT
#undef EINI_DIR_ADD

#define EINI_DIR_O(i) o[i] = (EINI_VU *)t->out + t->orow[i];
EINI_VAT EINI_INLINE void EINI_FN(dir_bands)(const eini_dir_bands *t, const int R) {
  const int64_t n = t->n, masked = eini_max64(t->masked, 0);
  const int64_t whole = (t->len - 1) / EINI_VW * EINI_VW;
  const EINI_VM m = EINI_VMASK(t->len - whole);
  const EINI_VU *p[8];
  EINI_VU *o[8];
  EINI_FIRST(R, EINI_DIR_P)
  EINI_FIRST(R, EINI_DIR_O)
  EINI_FN(dir_band)(t, R, 1, p, o, m, 0, masked, whole);
  EINI_FN(dir_band)(t, R, 2, p, o, m, masked, n, whole);
  for (int64_t l = 0; l < whole; l += EINI_VW) EINI_FN(dir_band)(t, R, 0, p, o, m, 0, n, l);
}
#undef EINI_DIR_O

#define EINI_DIR_ADD(i) x[i] = EINI_VFMA(EINI_VLOAD(p[i] + t->pk[k] + l), b, x[i]);
#define EINI_DIR_PUT(i) EINI_VSTORE(o + t->orow[i] + l, x[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_pairs)(const eini_dir_pairs *t, const int R) {
  EINI_VU *o = (EINI_VU *)t->out;
  const EINI_V zero = EINI_VSET(0);
  const EINI_VU *p[8];
  EINI_FIRST(R, EINI_DIR_P)
  for (int64_t l = 0; l < t->n; l += EINI_VW) {
    EINI_V x[8];
    EINI_FIRST(R, EINI_DIR_ZERO1)
    for (int64_t k = 0; k < t->k; k++) {
      const EINI_V b = EINI_VLOAD((const EINI_VU *)t->q + t->qk[k] + l);
      EINI_FIRST(R, EINI_DIR_ADD)
    }
    EINI_FIRST(R, EINI_DIR_PUT)
  }
}
#undef EINI_DIR_PUT
#undef EINI_DIR_ADD
#endif  // EINI_VREAL
#undef EINI_DIR_ZERO3
#undef EINI_DIR_ZERO1
#undef EINI_DIR_P

// for l: for i < G: y[l] += x[i] * a[i][l], in this order; U vectors at once.
#define EINI_DIR_A(i) a[i] = (const EINI_VU *)ap[i], x[i] = EINI_VSET(((const EINI_VU *)xp)[i]);
#define EINI_DIR_BEGIN(i) u[i] = first ? zero : EINI_VLOAD(y + l + i * EINI_VW);
#define EINI_DIR_ADD(i)                                                          \
  u[0] = EINI_VFMA(x[i], EINI_VLOAD(a[i] + l), u[0]);                            \
  u[1] = EINI_VFMA(x[i], EINI_VLOAD(a[i] + l + EINI_VW), u[1]);                  \
  if (U > 2) u[2] = EINI_VFMA(x[i], EINI_VLOAD(a[i] + l + 2 * EINI_VW), u[2]); \
  if (U > 2) u[3] = EINI_VFMA(x[i], EINI_VLOAD(a[i] + l + 3 * EINI_VW), u[3]);
#define EINI_DIR_ADDM(i) u[0] = EINI_VFMA(x[i], EINI_VLOADM(a[i] + l, m), u[0]);
#define EINI_DIR_PUT(i) EINI_VSTORE(y + l + i * EINI_VW, u[i]);
EINI_VAT EINI_INLINE void EINI_FN(dir_axpy)(const int G, const int U, int64_t n, int first,
                                            const char *const *ap, const void *xp, void *yp) {
  EINI_VU *y = (EINI_VU *)yp;
  const EINI_V zero = EINI_VSET(0);
  const EINI_VU *a[8];
  EINI_V x[8], u[8];
  int64_t l = 0;
  EINI_FIRST(G, EINI_DIR_A)
  for (; l + U * EINI_VW <= n; l += U * EINI_VW) {
    EINI_FIRST(U, EINI_DIR_BEGIN)
    EINI_FIRST(G, EINI_DIR_ADD)
    EINI_FIRST(U, EINI_DIR_PUT)
  }
  for (; l < n; l += EINI_VW) {
    const EINI_VM m = EINI_VMASK(eini_min64(n - l, EINI_VW));
    EINI_DIR_BEGIN(0)
    EINI_FIRST(G, EINI_DIR_ADDM)
    EINI_VSTORE(y + l, u[0]);
  }
}
#undef EINI_DIR_PUT
#undef EINI_DIR_ADDM
#undef EINI_DIR_ADD
#undef EINI_DIR_BEGIN
#undef EINI_DIR_A

// Of several rows: G columns are read once, U vectors of each at a time. Half of the columns are
// added to what is there, half to zero: chains of sums are shorter so.
#define EINI_DIR_A(i) a[i] = (const EINI_VU *)d->a[i];
#define EINI_DIR_LOAD(i)                                       \
  b[i] = m ? EINI_VLOADM(a[i] + l, *m) : EINI_VLOAD(a[i] + l); \
  if (U > 1) c[i] = EINI_VLOAD(a[i] + l + EINI_VW);
#define EINI_DIR_ADD(i)                                         \
  {                                                             \
    const EINI_V s = EINI_VSET(x[i]);                           \
    u[i * 2 / G] = EINI_VFMA(s, b[i], u[i * 2 / G]);            \
    if (U > 1) v[i * 2 / G] = EINI_VFMA(s, c[i], v[i * 2 / G]); \
  }
EINI_VAT EINI_INLINE void EINI_FN(dir_axpys_at)(const eini_dir_axpys *d, const int G, const int U,
                                                const EINI_VU *const *a, int64_t l,
                                                const EINI_VM *m) {
  const EINI_V zero = EINI_VSET(0);
  const int64_t rows = d->rows, xstep = d->xstep, ystep = d->ystep;
  const int first = d->first;
  const char *xr = d->x;
  char *yr = d->y + l * EINI_VBYTES;
  EINI_V b[8], c[8];
  EINI_FIRST(G, EINI_DIR_LOAD)
  for (int64_t r = 0; r < rows; r++, xr += xstep, yr += ystep) {
    const EINI_VU *x = (const EINI_VU *)xr;
    EINI_VU *y = (EINI_VU *)yr;
    EINI_V u[2] = {zero, zero}, v[2] = {zero, zero};
    if (!first) u[0] = EINI_VLOAD(y);
    if (U > 1 && !first) v[0] = EINI_VLOAD(y + EINI_VW);
    EINI_FIRST(G, EINI_DIR_ADD)
    EINI_VSTORE(y, EINI_VADD(u[0], u[1]));
    if (U > 1) EINI_VSTORE(y + EINI_VW, EINI_VADD(v[0], v[1]));
  }
}

EINI_VAT EINI_INLINE void EINI_FN(dir_axpys)(const eini_dir_axpys *d, const int G) {
  const int64_t n = d->n;
  const EINI_VU *a[8];
  int64_t l = 0;
  EINI_FIRST(G, EINI_DIR_A)
  for (; l + 2 * EINI_VW <= n; l += 2 * EINI_VW) EINI_FN(dir_axpys_at)(d, G, 2, a, l, NULL);
  for (; l < n; l += EINI_VW) {
    const EINI_VM m = EINI_VMASK(eini_min64(n - l, EINI_VW));
    EINI_FN(dir_axpys_at)(d, G, 1, a, l, &m);
  }
}
#undef EINI_DIR_ADD
#undef EINI_DIR_LOAD
#undef EINI_DIR_A

EINI_VAT static void EINI_FN(dir_mul)(const eini_dir_mul *d) {
  const int64_t len = d->len, runs = d->runs, whole = (len - 1) / EINI_VW * EINI_VW;
  const int64_t *ao = d->aoff, *bo = d->boff;
  const EINI_VU *a = (const EINI_VU *)d->a, *b = (const EINI_VU *)d->b;
  const EINI_VM m = EINI_VMASK(len - whole);
  EINI_VU *y = (EINI_VU *)d->y;
  for (int64_t r = 0; r < runs; r++, y += d->step) {
    const EINI_VU *u = a + ao[r], *v = b + bo[r];
    int64_t l = 0;
    EINI_FETCH((const char *)u + d->ahead[0]);
    EINI_FETCH((const char *)v + d->ahead[1]);
    for (; l < whole; l += EINI_VW) EINI_FETCH((const char *)(u + l) + d->ahead[0] + 64);
    l = 0;
    if (d->sa && d->sb) {
      for (; l < whole; l += EINI_VW)
        EINI_VSTORE(y + l, EINI_VMUL(EINI_VLOAD(u + l), EINI_VLOAD(v + l)));
      EINI_VSTOREM(y + l, m, EINI_VMUL(EINI_VLOADM(u + l, m), EINI_VLOADM(v + l, m)));
    } else {
      const EINI_V w = EINI_VSET(*v);
      for (; l < whole; l += EINI_VW) EINI_VSTORE(y + l, EINI_VMUL(EINI_VLOAD(u + l), w));
      EINI_VSTOREM(y + l, m, EINI_VMUL(EINI_VLOADM(u + l, m), w));
    }
  }
}

EINI_VAT static void EINI_FN(dir_t1_1)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 1, 0); }
EINI_VAT static void EINI_FN(dir_t2_1)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 2, 1, 0); }
EINI_VAT static void EINI_FN(dir_t3_1)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 3, 1, 0); }
EINI_VAT static void EINI_FN(dir_lane_1)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 1, 1); }
EINI_VAT static void EINI_FN(dir_t1_2)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 2, 0); }
EINI_VAT static void EINI_FN(dir_t2_2)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 2, 2, 0); }
EINI_VAT static void EINI_FN(dir_t3_2)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 3, 2, 0); }
EINI_VAT static void EINI_FN(dir_lane_2)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 2, 1); }
EINI_VAT static void EINI_FN(dir_t1_3)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 3, 0); }
EINI_VAT static void EINI_FN(dir_t2_3)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 2, 3, 0); }
EINI_VAT static void EINI_FN(dir_t3_3)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 3, 3, 0); }
EINI_VAT static void EINI_FN(dir_lane_3)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 3, 1); }
EINI_VAT static void EINI_FN(dir_t1_4)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 4, 0); }
EINI_VAT static void EINI_FN(dir_t2_4)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 2, 4, 0); }
EINI_VAT static void EINI_FN(dir_t3_4)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 3, 4, 0); }
EINI_VAT static void EINI_FN(dir_lane_4)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 4, 1); }
#if EINI_VREGS == 32
EINI_VAT static void EINI_FN(dir_t1_8)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 8, 0); }
EINI_VAT static void EINI_FN(dir_t2_8)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 2, 8, 0); }
EINI_VAT static void EINI_FN(dir_t3_8)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 3, 8, 0); }
EINI_VAT static void EINI_FN(dir_lane_8)(const eini_dir_tile *t) { EINI_FN(dir_tile)(t, 1, 8, 1); }
#define EINI_DIR_ROWS 8
#define EINI_DIR_LAST(name) EINI_FN(name##_8)
#else  // EINI_VREGS
#define EINI_DIR_ROWS 4
#define EINI_DIR_LAST(name) NULL
#endif
#if EINI_VREAL
EINI_VAT static void EINI_FN(dir_pairs_1)(const eini_dir_pairs *t) { EINI_FN(dir_pairs)(t, 1); }
EINI_VAT static void EINI_FN(dir_pairs_2)(const eini_dir_pairs *t) { EINI_FN(dir_pairs)(t, 2); }
EINI_VAT static void EINI_FN(dir_pairs_3)(const eini_dir_pairs *t) { EINI_FN(dir_pairs)(t, 3); }
EINI_VAT static void EINI_FN(dir_pairs_4)(const eini_dir_pairs *t) { EINI_FN(dir_pairs)(t, 4); }
#if EINI_VREGS == 32
EINI_VAT static void EINI_FN(dir_pairs_8)(const eini_dir_pairs *t) { EINI_FN(dir_pairs)(t, 8); }
#endif
EINI_VAT static void EINI_FN(dir_bands_1)(const eini_dir_bands *t) { EINI_FN(dir_bands)(t, 1); }
EINI_VAT static void EINI_FN(dir_bands_2)(const eini_dir_bands *t) { EINI_FN(dir_bands)(t, 2); }
EINI_VAT static void EINI_FN(dir_bands_3)(const eini_dir_bands *t) { EINI_FN(dir_bands)(t, 3); }
EINI_VAT static void EINI_FN(dir_bands_4)(const eini_dir_bands *t) { EINI_FN(dir_bands)(t, 4); }
EINI_VAT static void EINI_FN(dir_scaled_1_1)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 1, 1);
}
EINI_VAT static void EINI_FN(dir_scaled_2_1)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 2, 1);
}
EINI_VAT static void EINI_FN(dir_scaled_3_1)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 3, 1);
}
EINI_VAT static void EINI_FN(dir_scaled_1_8)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 1, 8);
}
EINI_VAT static void EINI_FN(dir_scaled_2_4)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 2, 4);
}
EINI_VAT static void EINI_FN(dir_scaled_3_4)(const eini_dir_scaled *t) {
  EINI_FN(dir_scaled)(t, 3, 4);
}
#endif  // EINI_VREAL
EINI_VAT static void EINI_FN(dir_axpy_1)(int64_t n, int first, const char *const *a,
                                         const void *x, void *y) {
  EINI_FN(dir_axpy)(1, 4, n, first, a, x, y);
}
EINI_VAT static void EINI_FN(dir_axpy_2)(int64_t n, int first, const char *const *a,
                                         const void *x, void *y) {
  EINI_FN(dir_axpy)(2, 4, n, first, a, x, y);
}
EINI_VAT static void EINI_FN(dir_axpy_4)(int64_t n, int first, const char *const *a,
                                         const void *x, void *y) {
  EINI_FN(dir_axpy)(4, 4, n, first, a, x, y);
}
EINI_VAT static void EINI_FN(dir_axpy_8)(int64_t n, int first, const char *const *a,
                                         const void *x, void *y) {
  EINI_FN(dir_axpy)(8, 2, n, first, a, x, y);
}
#define EINI_DIR_LOG (EINI_VREGS == 32 ? 3 : 2)
EINI_VAT static void EINI_FN(dir_axpys_1)(const eini_dir_axpys *d) { EINI_FN(dir_axpys)(d, 1); }
EINI_VAT static void EINI_FN(dir_axpys_some)(const eini_dir_axpys *d) {
  EINI_FN(dir_axpys)(d, 1 << EINI_DIR_LOG);
}

#define EINI_DIR_FNS(name) \
  {EINI_FN(name##_1), EINI_FN(name##_2), EINI_FN(name##_3), EINI_FN(name##_4), EINI_DIR_LAST(name)}
static const eini_dir_kern EINI_FN(dir_kern) = {
    EINI_VW, EINI_VBYTES, EINI_DIR_ROWS,
    {EINI_DIR_FNS(dir_t1), EINI_DIR_FNS(dir_t2), EINI_DIR_FNS(dir_t3)},
    EINI_DIR_FNS(dir_lane),
    {EINI_FN(dir_axpy_1), EINI_FN(dir_axpy_2), EINI_FN(dir_axpy_4), EINI_FN(dir_axpy_8)},
    EINI_FAR(dir_axpy_1), EINI_DIR_LOG, {EINI_FN(dir_axpys_1), EINI_FN(dir_axpys_some)},
    EINI_FN(dir_dots_1), EINI_FN(dir_dots_4), EINI_FN(dir_long_near), EINI_FAR(dir_long_far),
    EINI_FN(dir_fold), EINI_FN(dir_join), EINI_FN(dir_even_far), EINI_FN(dir_even_near),
    EINI_FN(dir_mul),
#if EINI_VREAL
    EINI_DIR_FNS(dir_pairs),
    {EINI_FN(dir_bands_1), EINI_FN(dir_bands_2), EINI_FN(dir_bands_3), EINI_FN(dir_bands_4)},
    {{EINI_FN(dir_scaled_1_1), EINI_FN(dir_scaled_1_8)},
     {EINI_FN(dir_scaled_2_1), EINI_FN(dir_scaled_2_4)},
     {EINI_FN(dir_scaled_3_1), EINI_FN(dir_scaled_3_4)}}};
#else  // EINI_VREAL
    {NULL, NULL, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL},
    {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}}};
#endif
#undef EINI_DIR_FNS
#undef EINI_DIR_LOG
#undef EINI_DIR_LAST
#undef EINI_DIR_ROWS
#endif  // EINI_KERNELS_DIRECT

// ================================================================================================
// >>sums-kernels  sums and extrema over one operand, of one set
// op: 0 for sums, 1 for maxima, 2 for minima, constant once it is inlined.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_SUMS
EINI_VAT EINI_INLINE EINI_V EINI_FN(sums_op)(const int op, EINI_V x, EINI_V y) {
  return op == 0 ? EINI_VADD(x, y) : op == 1 ? EINI_VTOP(x, y) : EINI_VLOW(x, y);
}

// The other chains of an extremum start with the first one's vector, and its last vector is a whole
// one: some of it is seen twice. Long runs may be read four pages at a time: on some machines what
// is read ahead stays within a page.
EINI_VAT EINI_INLINE void EINI_FN(sums_along)(const int op, int64_t runs, int64_t step, int64_t to,
                                              int64_t len, int64_t apart, const void *xp,
                                              void *sums) {
  const EINI_V zero = EINI_VSET(0);
  const int64_t page = apart > 0 ? apart / EINI_VBYTES : len;
  const EINI_VU *x = (const EINI_VU *)xp;
  EINI_VU *y = (EINI_VU *)sums;
  for (int64_t r = 0; r < runs; r++, x += step, y += to) {
    EINI_V u = EINI_VLOAD(y), u1 = op == 0 ? zero : u, u2 = u1, u3 = u1;
    int64_t l = 0;
    for (; l + 4 * page <= len; l += 3 * page)
      for (const int64_t end = l + page; l < end; l += EINI_VW) {
        u = EINI_FN(sums_op)(op, u, EINI_VLOAD(x + l));
        u1 = EINI_FN(sums_op)(op, u1, EINI_VLOAD(x + l + page));
        u2 = EINI_FN(sums_op)(op, u2, EINI_VLOAD(x + l + 2 * page));
        u3 = EINI_FN(sums_op)(op, u3, EINI_VLOAD(x + l + 3 * page));
      }
    for (; l + 4 * EINI_VW <= len; l += 4 * EINI_VW) {
      u = EINI_FN(sums_op)(op, u, EINI_VLOAD(x + l));
      u1 = EINI_FN(sums_op)(op, u1, EINI_VLOAD(x + l + EINI_VW));
      u2 = EINI_FN(sums_op)(op, u2, EINI_VLOAD(x + l + 2 * EINI_VW));
      u3 = EINI_FN(sums_op)(op, u3, EINI_VLOAD(x + l + 3 * EINI_VW));
    }
    for (; l + EINI_VW <= len; l += EINI_VW)
      u1 = EINI_FN(sums_op)(op, u1, EINI_VLOAD(x + l));
    if (l < len && op == 0) u2 = EINI_VADD(u2, EINI_VLOADM(x + l, EINI_VMASK(len - l)));
    if (l < len && op != 0) u2 = EINI_FN(sums_op)(op, u2, EINI_VLOAD(x + len - EINI_VW));
    u = EINI_FN(sums_op)(op, u, u1), u2 = EINI_FN(sums_op)(op, u2, u3);
    EINI_VSTORE(y, EINI_FN(sums_op)(op, u, u2));
  }
}

// Of as many n vectors as there are, from l on: how far it came.
#define EINI_SUMS_GET(i) u[i] = EINI_VLOAD(y + l + i * EINI_VW);
#define EINI_SUMS_ADD(i) u[i] = EINI_FN(sums_op)(op, u[i], EINI_VLOAD(a + i * EINI_VW));
#define EINI_SUMS_PUT(i) EINI_VSTORE(y + l + i * EINI_VW, u[i]);
EINI_VAT EINI_INLINE int64_t EINI_FN(sums_by)(const int op, const int n, int64_t l, int64_t runs,
                                              int64_t step, int64_t len, const EINI_VU *x,
                                              EINI_VU *y) {
  for (; l + n * EINI_VW <= len; l += n * EINI_VW) {
    const EINI_VU *a = x + l;
    EINI_V u[8];
    EINI_FIRST(n, EINI_SUMS_GET)
    for (int64_t r = 0; r < runs; r++, a += step) { EINI_FIRST(n, EINI_SUMS_ADD) }
    EINI_FIRST(n, EINI_SUMS_PUT)
  }
  return l;
}
#undef EINI_SUMS_PUT
#undef EINI_SUMS_ADD
#undef EINI_SUMS_GET

// Longer runs are read four at a time: the sums stay in registers.
EINI_VAT EINI_INLINE void EINI_FN(sums_down)(const int op, int64_t runs, int64_t step, int64_t len,
                                             const void *xp, void *sums) {
  const EINI_VU *x = (const EINI_VU *)xp;
  EINI_VU *y = (EINI_VU *)sums;
  for (int64_t few; runs > 0; runs -= few, x += few * step) {
    few = len <= 8 * EINI_VW || runs < 4 ? runs : 4;
    int64_t l = EINI_FN(sums_by)(op, 8, 0, few, step, len, x, y);
    l = EINI_FN(sums_by)(op, 4, l, few, step, len, x, y);
    l = EINI_FN(sums_by)(op, 2, l, few, step, len, x, y);
    l = EINI_FN(sums_by)(op, 1, l, few, step, len, x, y);
    if (l == len) continue;
    const EINI_VM m = EINI_VMASK(len - l);
    const EINI_VU *a = x + l;
    EINI_V u = EINI_VLOADM(y + l, m);
    for (int64_t r = 0; r < few; r++, a += step) u = EINI_FN(sums_op)(op, u, EINI_VLOADM(a, m));
    EINI_VSTOREM(y + l, m, u);
  }
}

// Lanes are halved in memory, all sums together.
EINI_VAT EINI_INLINE void EINI_FN(sums_end)(const int op, int64_t n, int along, void *sums,
                                            const void *one, void *yp) {
  EINI_VU *s = (EINI_VU *)sums, *y = (EINI_VU *)yp;
  const EINI_VU c = *(const EINI_VU *)one;
  const int64_t step = along ? EINI_VW : 1;
  for (int64_t w = along ? EINI_VW / 2 : 0; w > 0; w /= 2) {
    for (int64_t i = 0; i < n * step; i += step)
      EINI_VSTORE(s + i, EINI_FN(sums_op)(op, EINI_VLOAD(s + i), EINI_VLOAD(s + i + w)));
  }
  for (int64_t i = 0; i < n; i++) y[i] = s[i * step] + c;
}

EINI_UNUSED
EINI_VAT static void EINI_FN(sums_along_sum)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                             int64_t page, const void *x, void *y) {
  EINI_FN(sums_along)(0, runs, step, to, len, page, x, y);
}
EINI_VAT static void EINI_FN(sums_down_sum)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                            int64_t page, const void *x, void *y) {
  (void)to, (void)page;
  EINI_FN(sums_down)(0, runs, step, len, x, y);
}
EINI_VAT static void EINI_FN(sums_along_max)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                             int64_t page, const void *x, void *y) {
  EINI_FN(sums_along)(1, runs, step, to, len, page, x, y);
}
EINI_VAT static void EINI_FN(sums_down_max)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                            int64_t page, const void *x, void *y) {
  (void)to, (void)page;
  EINI_FN(sums_down)(1, runs, step, len, x, y);
}
EINI_VAT static void EINI_FN(sums_end_max)(int64_t n, int along, void *s, const void *one,
                                           void *y) {
  EINI_FN(sums_end)(1, n, along, s, one, y);
}
EINI_VAT static void EINI_FN(sums_along_min)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                             int64_t page, const void *x, void *y) {
  EINI_FN(sums_along)(2, runs, step, to, len, page, x, y);
}
EINI_VAT static void EINI_FN(sums_down_min)(int64_t runs, int64_t step, int64_t to, int64_t len,
                                            int64_t page, const void *x, void *y) {
  (void)to, (void)page;
  EINI_FN(sums_down)(2, runs, step, len, x, y);
}
EINI_VAT static void EINI_FN(sums_end_min)(int64_t n, int along, void *s, const void *one,
                                           void *y) {
  EINI_FN(sums_end)(2, n, along, s, one, y);
}
static const eini_dir_sums_kern EINI_FN(sums_kern)[] = {
    {EINI_FAR(sums_along_sum), EINI_FN(sums_down_sum), NULL},
    {EINI_FN(sums_along_max), EINI_FN(sums_down_max), EINI_FN(sums_end_max)},
    {EINI_FN(sums_along_min), EINI_FN(sums_down_min), EINI_FN(sums_end_min)}};
#endif  // EINI_KERNELS_SUMS

// ================================================================================================
// >>chunk-kernels  operations of expressions and folds, of one set
// EINI_CHUNK_REAL: whether the set's type has the functions of reals.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_CHUNKS
#if EINI_CHUNK_REAL
// libm's names keep compilers from vector code (errno, traps), so these say it themselves.
EINI_VAT EINI_INLINE EINI_V EINI_FN(c_value)(int op, EINI_V x) {
  switch (op) {
    case EIN_OP_SQRT: return EINI_VSQRT(x);
    case EIN_OP_RSQRT: return EINI_VDIV(EINI_VSET(1), EINI_VSQRT(x));
#if EINI_VW * EINI_VBYTES < 64
    case EIN_OP_FLOOR: return EINI_VFLOOR(x);
    case EIN_OP_CEIL: return EINI_VCEIL(x);
    case EIN_OP_ROUND: return EINI_VRINT(x);
#endif
    case EIN_OP_EXP: return EINI_VEXP(x);
    default: break;
  }
  const EINI_V y = EINI_VADD(EINI_VSET(1), EINI_VEXP(EINI_VSUB(EINI_VSET(0), x)));
  return EINI_VDIV(op == EIN_OP_SILU ? x : EINI_VSET(1), y);
}

EINI_VAT EINI_INLINE void EINI_FN(c_values)(int op, EINI_OP_ARGS) {
  const EINI_VT *x = (const EINI_VT *)a;
  EINI_VT *y = (EINI_VT *)d;
  (void)b;
  (void)c;
  for (int64_t i = 0; i < n; i += EINI_VW)
    EINI_VSTORE(y + i, EINI_FN(c_value)(op, EINI_VLOAD(x + i)));
}

#define EINI_SELF(op) EINI_FN(c_values)(op, n, a, b, c, d)
EINI_VAT static void EINI_FN(c_sqrt)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SQRT); }
EINI_VAT static void EINI_FN(c_rsqrt)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_RSQRT); }
EINI_VAT static void EINI_FN(c_exp)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_EXP); }
EINI_VAT static void EINI_FN(c_sigmoid)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SIGMOID); }
EINI_VAT static void EINI_FN(c_silu)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SILU); }
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT static void EINI_FN(c_floor)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_FLOOR); }
EINI_VAT static void EINI_FN(c_ceil)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_CEIL); }
EINI_VAT static void EINI_FN(c_round)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_ROUND); }
#endif
#undef EINI_SELF
#endif  // EINI_CHUNK_REAL

#if EINI_CPU_X86
// A function of sections math, eval and fold for the type.
#define EINI_OF(name) EINI_CAT(eini_##name##_, EINI_X(TYPE))
#define EINI_FLAT_OP(name) EINI_OF(c_##name)(n, a, b, c, d)
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_add)(EINI_OP_ARGS) { EINI_FLAT_OP(add); }
EINI_VAT EINI_FLAT static void EINI_FN(c_sub)(EINI_OP_ARGS) { EINI_FLAT_OP(sub); }
EINI_VAT EINI_FLAT static void EINI_FN(c_mul)(EINI_OP_ARGS) { EINI_FLAT_OP(mul); }
EINI_VAT EINI_FLAT static void EINI_FN(c_square)(EINI_OP_ARGS) { EINI_FLAT_OP(square); }
EINI_VAT EINI_FLAT static void EINI_FN(c_neg)(EINI_OP_ARGS) { EINI_FLAT_OP(neg); }
EINI_VAT EINI_FLAT static void EINI_FN(c_max)(EINI_OP_ARGS) { EINI_FLAT_OP(max); }
EINI_VAT EINI_FLAT static void EINI_FN(c_min)(EINI_OP_ARGS) { EINI_FLAT_OP(min); }
EINI_VAT EINI_FLAT static void EINI_FN(c_lt)(EINI_OP_ARGS) { EINI_FLAT_OP(lt); }
EINI_VAT EINI_FLAT static void EINI_FN(c_le)(EINI_OP_ARGS) { EINI_FLAT_OP(le); }
EINI_VAT EINI_FLAT static void EINI_FN(c_gt)(EINI_OP_ARGS) { EINI_FLAT_OP(gt); }
EINI_VAT EINI_FLAT static void EINI_FN(c_ge)(EINI_OP_ARGS) { EINI_FLAT_OP(ge); }
EINI_VAT EINI_FLAT static void EINI_FN(c_eq)(EINI_OP_ARGS) { EINI_FLAT_OP(eq); }
EINI_VAT EINI_FLAT static void EINI_FN(c_ne)(EINI_OP_ARGS) { EINI_FLAT_OP(ne); }
EINI_VAT EINI_FLAT static void EINI_FN(c_where)(EINI_OP_ARGS) { EINI_FLAT_OP(where); }
EINI_VAT EINI_FLAT static void EINI_FN(c_relu)(EINI_OP_ARGS) { EINI_FLAT_OP(relu); }
EINI_VAT EINI_FLAT static void EINI_FN(c_abs)(EINI_OP_ARGS) { EINI_FLAT_OP(abs); }
#endif  // EINI_VW, EINI_VBYTES
#if EINI_CHUNK_REAL
EINI_VAT EINI_FLAT static void EINI_FN(c_quot)(EINI_OP_ARGS) { EINI_FLAT_OP(quot); }
EINI_VAT EINI_FLAT static void EINI_FN(c_log)(EINI_OP_ARGS) { EINI_FLAT_OP(log); }
EINI_VAT EINI_FLAT static void EINI_FN(c_sin)(EINI_OP_ARGS) { EINI_FLAT_OP(sin); }
EINI_VAT EINI_FLAT static void EINI_FN(c_cos)(EINI_OP_ARGS) { EINI_FLAT_OP(cos); }
EINI_VAT EINI_FLAT static void EINI_FN(c_tanh)(EINI_OP_ARGS) { EINI_FLAT_OP(tanh); }
EINI_VAT EINI_FLAT static void EINI_FN(c_erf)(EINI_OP_ARGS) { EINI_FLAT_OP(erf); }
#if EINI_VW * EINI_VBYTES < 64  // clang makes no good 512-bit code of it
EINI_VAT EINI_FLAT static void EINI_FN(c_gelu)(EINI_OP_ARGS) { EINI_FLAT_OP(gelu); }
#endif
#endif  // EINI_CHUNK_REAL
// Storage dtypes: NaN keeps its bits, which instructions that convert f16 would make quiet.
#define EINI_STORED(name) eini_c_##name(n, a, b, c, d)
#if EINI_VBYTES == 4 && EINI_CHUNK_REAL
EINI_VAT EINI_FLAT static void EINI_FN(c_load_f16)(EINI_OP_ARGS) { EINI_STORED(load_f16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_bf16)(EINI_OP_ARGS) { EINI_STORED(load_bf16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_f16)(EINI_OP_ARGS) { EINI_STORED(store_f16); }
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_store_bf16)(EINI_OP_ARGS) { EINI_STORED(store_bf16); }
#endif
#elif EINI_VBYTES == 4 && EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_load_i8)(EINI_OP_ARGS) { EINI_STORED(load_i8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_u8)(EINI_OP_ARGS) { EINI_STORED(load_u8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_i16)(EINI_OP_ARGS) { EINI_STORED(load_i16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_8)(EINI_OP_ARGS) { EINI_STORED(store_8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_16)(EINI_OP_ARGS) { EINI_STORED(store_16); }
#endif
#undef EINI_STORED
#undef EINI_FLAT_OP

EINI_VAT EINI_INLINE EINI_V EINI_FN(h_value)(int fold, EINI_V x, EINI_V y) {
  return fold == EIN_FOLD_SUM    ? EINI_VADD(x, y)
         : fold == EIN_FOLD_PROD ? EINI_VMUL(x, y)
         : fold == EIN_FOLD_MAX  ? EINI_VTOP(x, y)
                                 : EINI_VLOW(x, y);
}

// Folds in EINI_LANES lanes as section fold does, so that the bits are the same: the body here,
// the rest with its functions. Callers fold one chunk after the other: what comes next is on its
// way when a short one ends. Along longer ones the processor asks by itself.
#define EINI_ACROSS_AHEAD 4096  // bytes
EINI_VAT EINI_INLINE void EINI_FN(h_fold)(int fold, eini_horizontal_fn few,
                                          void (*into)(int64_t n, EINI_VT *a, const EINI_VT *b),
                                          int64_t n, const void *px, void *acc) {
  const EINI_VT *x = (const EINI_VT *)px;
  EINI_VT lane[EINI_LANES];
  EINI_V v[EINI_LANES / EINI_VW];
  int64_t i = EINI_LANES;
  const int ahead = n * (int64_t)sizeof *x <= 2 * EINI_ACROSS_AHEAD;
  if (n < EINI_LANES) {
    few(n, px, acc);
    return;
  }
  for (int k = 0; k < EINI_LANES / EINI_VW; k++) v[k] = EINI_VLOAD(x + k * EINI_VW);
  for (; i + EINI_LANES <= n; i += EINI_LANES) {
    for (size_t line = 0; ahead && line < sizeof lane; line += 64)
      EINI_FETCH((uintptr_t)(x + i) + EINI_ACROSS_AHEAD + line);
    for (int k = 0; k < EINI_LANES / EINI_VW; k++)
      v[k] = EINI_FN(h_value)(fold, v[k], EINI_VLOAD(x + i + k * EINI_VW));
  }
  memcpy(lane, v, sizeof lane);
  _mm256_zeroupper();  // gcc 12 forgets it here: SSE code after it would wait
  into(n - i, lane, x + i);
  for (int64_t w = EINI_LANES / 2; w > 0; w /= 2) into(w, lane, lane + w);
  into(1, (EINI_VT *)acc, lane);
}
#undef EINI_ACROSS_AHEAD

EINI_VAT static void EINI_FN(h_sum)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_SUM, EINI_OF(h_sum), EINI_OF(v_sum), n, x, acc);
}
EINI_VAT static void EINI_FN(h_prod)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_PROD, EINI_OF(h_prod), EINI_OF(v_prod), n, x, acc);
}
EINI_VAT static void EINI_FN(h_max)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_MAX, EINI_OF(h_max), EINI_OF(v_max), n, x, acc);
}
EINI_VAT static void EINI_FN(h_min)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_MIN, EINI_OF(h_min), EINI_OF(v_min), n, x, acc);
}
#undef EINI_OF
#endif  // EINI_CPU_X86
#endif  // EINI_KERNELS_CHUNKS

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

// ================================================================================================
// >>peak-kernels  arithmetic to be timed, of one set
// Chains of fused multiply-adds, enough of them to hide their latency.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_PEAK
EINI_VAT static double EINI_FN(peak)(int64_t n, double seed) {
  EINI_V a[12], b = EINI_VSET((EINI_VT)seed), c = EINI_VSET((EINI_VT)0.5);
  EINI_VT out[sizeof(EINI_V) / sizeof(EINI_VT)];
  for (int k = 0; k < 12; k++) a[k] = EINI_VSET((EINI_VT)k);
  for (int64_t i = 0; i < n; i++) {
    a[0] = EINI_VFMA(a[0], b, c), a[1] = EINI_VFMA(a[1], b, c), a[2] = EINI_VFMA(a[2], b, c);
    a[3] = EINI_VFMA(a[3], b, c), a[4] = EINI_VFMA(a[4], b, c), a[5] = EINI_VFMA(a[5], b, c);
    a[6] = EINI_VFMA(a[6], b, c), a[7] = EINI_VFMA(a[7], b, c), a[8] = EINI_VFMA(a[8], b, c);
    a[9] = EINI_VFMA(a[9], b, c), a[10] = EINI_VFMA(a[10], b, c), a[11] = EINI_VFMA(a[11], b, c);
  }
  double sum = 0;
  for (int k = 0; k < 12; k++) {
    memcpy(out, &a[k], sizeof out);
    sum += (double)out[0];
  }
  return sum;
}
#endif  // EINI_KERNELS_PEAK

// ================================================================================================
// >>plain-kernels  sets of vectors in plain C
// Four scalars. Sums and products are formed in the set's type A (unsigned: they wrap).
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_FOUR
// The words of a set are functions here, of which none is left under such a name.
typedef struct EINI_V { EINI_VT x[4]; } EINI_V;

EINI_ALWAYS EINI_V EINI_VLOAD(const EINI_VT *p) {
  const EINI_V r = {{p[0], p[1], p[2], p[3]}};
  return r;
}
EINI_ALWAYS void EINI_VSTORE(EINI_VT *p, EINI_V r) {
  p[0] = r.x[0], p[1] = r.x[1], p[2] = r.x[2], p[3] = r.x[3];
}
EINI_ALWAYS void EINI_VSTREAM(EINI_VT *p, EINI_V r, unsigned lanes) {
  (void)lanes;
  EINI_VSTORE(p, r);
}
EINI_ALWAYS EINI_V EINI_VSET(EINI_VT x) {
  const EINI_V r = {{x, x, x, x}};
  return r;
}

// a.x[i] = e for each i; a loop would stay one.
#define EINI_PLAIN_EACH(e)                                               \
  do {                                                                   \
    int i = 0;                                                           \
    a.x[0] = e, i = 1, a.x[1] = e, i = 2, a.x[2] = e, i = 3, a.x[3] = e; \
  } while (0)
EINI_ALWAYS EINI_V EINI_VMIN(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] < b.x[i] ? a.x[i] : b.x[i]);
  return a;
}
EINI_ALWAYS EINI_V EINI_VMAX(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] > b.x[i] ? a.x[i] : b.x[i]);
  return a;
}
#if EINI_VBYTES == 1
// Truth: "or" for sums, "and" for products.
EINI_ALWAYS EINI_V EINI_VADD(EINI_V a, EINI_V b) { return EINI_VMAX(a, b); }
EINI_ALWAYS EINI_V EINI_VMUL(EINI_V a, EINI_V b) { return EINI_VMIN(a, b); }
#else
#define EINI_A EINI_X(A)
EINI_ALWAYS EINI_V EINI_VADD(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] + (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VSUB(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] - (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VMUL(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] * (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VKEEP(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] == a.x[i] ? b.x[i] : a.x[i]);
  return a;
}
EINI_ALWAYS EINI_V EINI_VABS(EINI_V a) {
  return EINI_VMAX(a, EINI_VSUB(EINI_VSET(0), a));
}
#undef EINI_A
#endif  // EINI_VBYTES
EINI_ALWAYS EINI_V EINI_VFMA(EINI_V a, EINI_V b, EINI_V c) {
  return EINI_VADD(c, EINI_VMUL(a, b));
}
#undef EINI_PLAIN_EACH
#endif  // EINI_KERNELS_FOUR

#if EINI_KERNELS == EINI_KERNELS_COMPLEX
static void EINI_FN(gett_times_complex)(int64_t n, void *to, const void *from) {
  EINI_VT *d = (EINI_VT *)to;
  const EINI_VT *s = (const EINI_VT *)from;
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const EINI_VT re = d[i] * s[i] - d[i + 1] * s[i + 1];
    d[i + 1] = d[i] * s[i + 1] + d[i + 1] * s[i], d[i] = re;
  }
}

// Complex results from the sums a = v*re(u) and b = v*im(u); they replace a.
static void EINI_FN(gett_join)(int64_t n, int conj_v, int conj_u, EINI_VT *a, const EINI_VT *b) {
  const EINI_VT sv = conj_v ? -1 : 1, su = conj_u ? -1 : 1, sb = -sv * su;
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const EINI_VT re = a[i] + sb * b[i + 1];
    a[i + 1] = sv * a[i + 1] + su * b[i], a[i] = re;
  }
}
#endif  // EINI_KERNELS_COMPLEX

// ================================================================================================
// >>tile-kernels  register tiles of section gett, of one set
// EINI_TILE_KIND: what there is of it.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_TILE
// Vectors and columns of the largest tile.
#ifdef EINI_TILE_PLAIN
#define EINI_TILE_NV 1
#define EINI_TILE_NU 4
#elif EINI_CPU_X86
#define EINI_TILE_NV 3
#define EINI_TILE_NU (EINI_VBYTES * EINI_VW / 8)
#else
#define EINI_TILE_NV 2
#define EINI_TILE_NU 8
#endif
// What minima begin as, and maxima.
#if EINI_TILE_KIND == EINI_TILE_FLOATS
#define EINI_TILE_MOST ((EINI_VT)HUGE_VAL)
#define EINI_TILE_LEAST (-EINI_TILE_MOST)
#elif EINI_TILE_KIND == EINI_TILE_INTS
#define EINI_TILE_MOST ((EINI_VT)(INT64_MAX >> (64 - 8 * EINI_VBYTES)))
#define EINI_TILE_LEAST (-EINI_TILE_MOST - 1)
#endif

// A pair's sum of sums c with d, which is there.
EINI_VAT EINI_INLINE EINI_V EINI_FN(gett_both)(const int pair, EINI_V c, EINI_V d) {
  switch (pair) {
#if EINI_TILE_KIND >= EINI_TILE_INTS
    case EIN_PAIR_MIN_ADD: return EINI_VKEEP(d, EINI_VMIN(d, c));
    case EIN_PAIR_MAX_ADD: return EINI_VKEEP(d, EINI_VMAX(d, c));
    case EIN_PAIR_MAX_ABSDIFF: return EINI_VKEEP(d, EINI_VMAX(d, c));
#endif
    default: return EINI_VADD(d, c);
  }
}

// One step of a pair's sum. KEEP: what is NaN already stays so. min and max give their second
// argument when one is NaN.
EINI_VAT EINI_INLINE EINI_V EINI_FN(gett_step)(const int pair, EINI_V c, EINI_V v, EINI_V b) {
  switch (pair) {
#if EINI_TILE_KIND >= EINI_TILE_INTS
    case EIN_PAIR_MIN_ADD: return EINI_VKEEP(c, EINI_VMIN(c, EINI_VADD(v, b)));
    case EIN_PAIR_MAX_ADD: return EINI_VKEEP(c, EINI_VMAX(c, EINI_VADD(v, b)));
    case EIN_PAIR_SUM_SQDIFF: return EINI_VFMA(EINI_VSUB(v, b), EINI_VSUB(v, b), c);
    case EIN_PAIR_SUM_ABSDIFF: return EINI_VADD(c, EINI_VABS(EINI_VSUB(v, b)));
    case EIN_PAIR_MAX_ABSDIFF: return EINI_VKEEP(c, EINI_VMAX(c, EINI_VABS(EINI_VSUB(v, b))));
#elif EINI_TILE_KIND == EINI_TILE_HEADS
    case EINI_GETT_FIRST: return EINI_VADD(v, b);
#endif
    default: return EINI_VFMA(v, b, c);
  }
}

// One column of U.
EINI_VAT EINI_INLINE void EINI_FN(gett_column)(const int nv, const int pair, EINI_V *c,
                                               const EINI_V *v, EINI_VT u) {
  const EINI_V b = EINI_VSET(u);
  c[0] = EINI_FN(gett_step)(pair, c[0], v[0], b);
  if (nv > 1) c[1] = EINI_FN(gett_step)(pair, c[1], v[1], b);
  if (nv > 2) c[2] = EINI_FN(gett_step)(pair, c[2], v[2], b);
}

EINI_VAT EINI_INLINE void EINI_FN(gett_row)(const int nv, const int nu, const int pair,
                                            EINI_V (*c)[3], const EINI_VT *from,
                                            const EINI_VT *u0, const EINI_VT *u3,
                                            const EINI_VT *u6, int64_t us) {
  const EINI_V v0 = EINI_VLOAD(from);
  const EINI_V v[3] = {v0, nv > 1 ? EINI_VLOAD(from + EINI_VW) : v0,
                       nv > 2 ? EINI_VLOAD(from + 2 * EINI_VW) : v0};
  EINI_FN(gett_column)(nv, pair, c[0], v, u0[0]);
  if (nu > 1) EINI_FN(gett_column)(nv, pair, c[1], v, u0[us]);
  if (nu > 2) EINI_FN(gett_column)(nv, pair, c[2], v, u0[2 * us]);
  if (nu > 3) EINI_FN(gett_column)(nv, pair, c[3], v, u3[0]);
  if (nu > 4) EINI_FN(gett_column)(nv, pair, c[4], v, u3[us]);
  if (nu > 5) EINI_FN(gett_column)(nv, pair, c[5], v, u3[2 * us]);
  if (nu > 6) EINI_FN(gett_column)(nv, pair, c[6], v, u6[0]);
  if (nu > 7) EINI_FN(gett_column)(nv, pair, c[7], v, u6[us]);
}

EINI_VAT EINI_INLINE void EINI_FN(gett_take)(const int nv, const int pair, EINI_V *c,
                                             const EINI_VT *d, const int64_t *o) {
  c[0] = EINI_FN(gett_both)(pair, c[0], EINI_VLOAD(d + o[0]));
  if (nv > 1) c[1] = EINI_FN(gett_both)(pair, c[1], EINI_VLOAD(d + o[1]));
  if (nv > 2) c[2] = EINI_FN(gett_both)(pair, c[2], EINI_VLOAD(d + o[2]));
}

EINI_VAT EINI_INLINE void EINI_FN(gett_leave)(const int nv, int how, const unsigned *lanes,
                                              const EINI_V *c, EINI_VT *d, const int64_t *o) {
  (void)lanes;
  if (how == EINI_GETT_STREAM) {
    EINI_VSTREAM(d + o[0], c[0], lanes[0]);
    if (nv > 1) EINI_VSTREAM(d + o[1], c[1], lanes[1]);
    if (nv > 2) EINI_VSTREAM(d + o[2], c[2], lanes[2]);
  } else {
    EINI_VSTORE(d + o[0], c[0]);
    if (nv > 1) EINI_VSTORE(d + o[1], c[1]);
    if (nv > 2) EINI_VSTORE(d + o[2], c[2]);
  }
}

// All that is there is taken before anything is stored: a load that looks like it overlaps a store
// (the same place in a page) would wait for it.
EINI_VAT EINI_INLINE void EINI_FN(gett_out)(const int nv, const int nu, const int pair,
                                            const eini_gett_tile_arg *a, EINI_V (*c)[3]) {
  EINI_VT *dst = (EINI_VT *)a->dst;
  const int how = a->how;
  const int64_t o[3] = {a->voff[0], nv > 1 ? a->voff[1] : 0, nv > 2 ? a->voff[2] : 0};
  if (how == EINI_GETT_ADD) {
    EINI_FN(gett_take)(nv, pair, c[0], dst + a->uoff[0], o);
    if (nu > 1) EINI_FN(gett_take)(nv, pair, c[1], dst + a->uoff[1], o);
    if (nu > 2) EINI_FN(gett_take)(nv, pair, c[2], dst + a->uoff[2], o);
    if (nu > 3) EINI_FN(gett_take)(nv, pair, c[3], dst + a->uoff[3], o);
    if (nu > 4) EINI_FN(gett_take)(nv, pair, c[4], dst + a->uoff[4], o);
    if (nu > 5) EINI_FN(gett_take)(nv, pair, c[5], dst + a->uoff[5], o);
    if (nu > 6) EINI_FN(gett_take)(nv, pair, c[6], dst + a->uoff[6], o);
    if (nu > 7) EINI_FN(gett_take)(nv, pair, c[7], dst + a->uoff[7], o);
  }
  EINI_FN(gett_leave)(nv, how, a->lanes, c[0], dst + a->uoff[0], o);
  if (nu > 1) EINI_FN(gett_leave)(nv, how, a->lanes, c[1], dst + a->uoff[1], o);
  if (nu > 2) EINI_FN(gett_leave)(nv, how, a->lanes, c[2], dst + a->uoff[2], o);
  if (nu > 3) EINI_FN(gett_leave)(nv, how, a->lanes, c[3], dst + a->uoff[3], o);
  if (nu > 4) EINI_FN(gett_leave)(nv, how, a->lanes, c[4], dst + a->uoff[4], o);
  if (nu > 5) EINI_FN(gett_leave)(nv, how, a->lanes, c[5], dst + a->uoff[5], o);
  if (nu > 6) EINI_FN(gett_leave)(nv, how, a->lanes, c[6], dst + a->uoff[6], o);
  if (nu > 7) EINI_FN(gett_leave)(nv, how, a->lanes, c[7], dst + a->uoff[7], o);
}

EINI_VAT EINI_INLINE EINI_V EINI_FN(gett_zero)(const int pair) {
  switch (pair) {
#if EINI_TILE_KIND >= EINI_TILE_INTS
    case EIN_PAIR_MIN_ADD: return EINI_VSET(EINI_TILE_MOST);
    case EIN_PAIR_MAX_ADD: return EINI_VSET(EINI_TILE_LEAST);
    case EIN_PAIR_MAX_ABSDIFF: return EINI_VSET(EINI_TILE_LEAST);
#endif
    default: return EINI_VSET(0);
  }
}

EINI_VAT EINI_INLINE void EINI_FN(gett_tile)(const int nv, const int nu, const int late,
                                             const int pair, const eini_gett_tile_arg *a) {
  const EINI_V zero = EINI_FN(gett_zero)(pair);
  EINI_V c[8][3] = {{zero, zero, zero}, {zero, zero, zero}, {zero, zero, zero},
                    {zero, zero, zero}, {zero, zero, zero}, {zero, zero, zero},
                    {zero, zero, zero}, {zero, zero, zero}};
  const int64_t sv = a->sv, uk = late ? nu : a->uk, us = late ? 1 : a->us;
  const EINI_VT *v = (const EINI_VT *)a->v, *u0 = (const EINI_VT *)a->u;
  const EINI_VT *u3 = u0 + 3 * us, *u6 = u0 + 6 * us;
  const int64_t *soon = a->soon, soon_step = a->soon_step;
  const uintptr_t soon_base = a->soon_base;
#if EINI_TILE_KIND == EINI_TILE_HEADS
  EINI_FN(gett_row)(nv, nu, EINI_GETT_FIRST, c, v, u0, u3, u6, us);
  v += sv, u0 += uk, u3 += uk, u6 += uk;
#endif
  for (int64_t left = late ? a->late : 0, k = a->k - left;; k = left, left = 0) {
    for (; k > 0; k--) {
      EINI_FETCH2(soon_base + (uintptr_t)*soon);
      soon += soon_step;
      EINI_FN(gett_row)(nv, nu, pair, c, v, u0, u3, u6, us);
      v += sv, u0 += uk, u3 += uk, u6 += uk;
    }
    if (!late || left == 0) break;
    for (int j = 0; j < nu; j++) {
      const EINI_VT *d = (const EINI_VT *)a->dst + a->uoff[j];
      for (int i = 0; i < nv; i++) EINI_FETCH(d + a->voff[i]);
      EINI_FETCH(d + a->voff[nv - 1] + EINI_VW - 1);
    }
  }
  EINI_FN(gett_out)(nv, nu, pair, a, c);
}

// Tiles of one vector and more.
#define EINI_TILE_ONE(nv, nu) \
  case (nv) * 16 + (nu): EINI_FN(gett_tile)(nv, nu, 0, pair, a); break;
#define EINI_TILE_FOUR(nv, nu)                              \
  EINI_TILE_ONE(nv, (nu) - 3) EINI_TILE_ONE(nv, (nu) - 2)   \
  EINI_TILE_ONE(nv, (nu) - 1) EINI_TILE_ONE(nv, nu)
#if EINI_TILE_NV == 3
#define EINI_TILE_EACH(these, nu) these(1, nu) these(2, nu) these(3, nu)
#elif EINI_TILE_NV == 2
#define EINI_TILE_EACH(these, nu) these(1, nu) these(2, nu)
#else
#define EINI_TILE_EACH(these, nu) these(1, nu)
#endif
// Of integers and of narrow types four columns or all, of the other pairs all: what is too much
// stays in the buffer.
EINI_VAT static void EINI_FN(gett_sum_mul)(const eini_gett_tile_arg *a) {
  const int pair = EIN_PAIR_SUM_MUL;
  switch ((a->late > 0 ? EINI_GETT_LATE_TILE : 0) + a->nv * 16 + a->nu) {
#if EINI_TILE_KIND == EINI_TILE_FLOATS
    case EINI_GETT_LATE_TILE + EINI_TILE_NV * 16 + EINI_TILE_NU:
      EINI_FN(gett_tile)(EINI_TILE_NV, EINI_TILE_NU, 1, pair, a);
      break;
    EINI_TILE_EACH(EINI_TILE_FOUR, 4)
#if EINI_TILE_NU > 4
    EINI_TILE_EACH(EINI_TILE_FOUR, 8)
#endif
#else  // EINI_TILE_KIND
    EINI_TILE_EACH(EINI_TILE_ONE, 4)
#if EINI_TILE_NU > 4
    EINI_TILE_EACH(EINI_TILE_ONE, 8)
#endif
#endif  // EINI_TILE_KIND
    default: break;
  }
}

#if EINI_TILE_KIND >= EINI_TILE_INTS
EINI_VAT EINI_INLINE void EINI_FN(gett_whole)(const int pair, const eini_gett_tile_arg *a) {
  switch (a->nv * 16 + a->nu) {
    EINI_TILE_EACH(EINI_TILE_ONE, EINI_TILE_NU)
    default: break;
  }
}
EINI_VAT static void EINI_FN(gett_min_add)(const eini_gett_tile_arg *a) {
  EINI_FN(gett_whole)(EIN_PAIR_MIN_ADD, a);
}
EINI_VAT static void EINI_FN(gett_max_add)(const eini_gett_tile_arg *a) {
  EINI_FN(gett_whole)(EIN_PAIR_MAX_ADD, a);
}
EINI_VAT static void EINI_FN(gett_sqdiff)(const eini_gett_tile_arg *a) {
  EINI_FN(gett_whole)(EIN_PAIR_SUM_SQDIFF, a);
}
EINI_VAT static void EINI_FN(gett_absdiff)(const eini_gett_tile_arg *a) {
  EINI_FN(gett_whole)(EIN_PAIR_SUM_ABSDIFF, a);
}
EINI_VAT static void EINI_FN(gett_far)(const eini_gett_tile_arg *a) {
  EINI_FN(gett_whole)(EIN_PAIR_MAX_ABSDIFF, a);
}
#endif  // EINI_TILE_KIND

#if EINI_TILE_KIND >= EINI_TILE_SUMS
EINI_VAT EINI_INLINE void EINI_FN(gett_fold)(const int pair, int64_t n, void *to,
                                             const void *from) {
  EINI_VT *d = (EINI_VT *)to, x[EINI_VW] = {0};
  const EINI_VT *s = (const EINI_VT *)from;
  for (; n >= EINI_VW; n -= EINI_VW, d += EINI_VW, s += EINI_VW)
    EINI_VSTORE(d, EINI_FN(gett_both)(pair, EINI_VLOAD(s), EINI_VLOAD(d)));
#if EINI_VW * EINI_VBYTES == 64
#define EINI_HALF(word) EINI_CAT(EINI_X(HALF), _##word)
  for (; n >= EINI_HALF(W); n -= EINI_HALF(W), d += EINI_HALF(W), s += EINI_HALF(W))
    EINI_HALF(STORE)(d, EINI_CAT(eini_gett_both_, EINI_HALF(TAG))(pair, EINI_HALF(LOAD)(s),
                                                                  EINI_HALF(LOAD)(d)));
#undef EINI_HALF
#endif
  if (n == 0) return;
  memcpy(x, d, (size_t)n * sizeof *d);
  EINI_VSTORE(x, EINI_FN(gett_both)(pair, EINI_VLOAD(s), EINI_VLOAD(x)));
  memcpy(d, x, (size_t)n * sizeof *d);
}
EINI_VAT static void EINI_FN(gett_sum)(int64_t n, void *d, const void *s) {
  EINI_FN(gett_fold)(EIN_PAIR_SUM_MUL, n, d, s);
}
#endif  // EINI_TILE_KIND

#if EINI_TILE_KIND >= EINI_TILE_INTS
EINI_VAT static void EINI_FN(gett_min)(int64_t n, void *d, const void *s) {
  EINI_FN(gett_fold)(EIN_PAIR_MIN_ADD, n, d, s);
}
EINI_VAT static void EINI_FN(gett_max)(int64_t n, void *d, const void *s) {
  EINI_FN(gett_fold)(EIN_PAIR_MAX_ADD, n, d, s);
}

EINI_VAT static void EINI_FN(gett_times)(int64_t n, void *to, const void *from) {
  EINI_VT *d = (EINI_VT *)to;
  const EINI_VT *s = (const EINI_VT *)from;
  for (int64_t i = 0; i < n; i += EINI_VW)
    EINI_VSTORE(d + i, EINI_VMUL(EINI_VLOAD(d + i), EINI_VLOAD(s + i)));
}
#endif  // EINI_TILE_KIND

#if EINI_TILE_KIND == EINI_TILE_FLOATS
// What is added to products keeps their signs.
EINI_VAT static void EINI_FN(gett_by)(int64_t n, void *to, const void *from) {
  EINI_VT *d = (EINI_VT *)to, x[EINI_VW] = {0};
  const EINI_V s = EINI_VSET(*(const EINI_VT *)from), zero = EINI_VSET((EINI_VT)-0.0);
  for (; n >= EINI_VW; n -= EINI_VW, d += EINI_VW)
    EINI_VSTORE(d, EINI_VFMA(EINI_VLOAD(d), s, zero));
  if (n == 0) return;
  memcpy(x, d, (size_t)n * sizeof *d);
  EINI_VSTORE(x, EINI_VFMA(EINI_VLOAD(x), s, zero));
  memcpy(d, x, (size_t)n * sizeof *d);
}
#endif  // EINI_TILE_KIND

#if EINI_TILE_KIND >= EINI_TILE_SUMS
static void EINI_FN(gett_kit)(ein_pair pair, eini_gett_kit *k) {
  k->w = EINI_VW, k->nv = EINI_TILE_NV, k->nu = EINI_TILE_NU;
#if EINI_TILE_KIND == EINI_TILE_FLOATS
  k->by = EINI_FN(gett_by);
#endif
  switch (pair) {
    case EIN_PAIR_SUM_MUL: k->tile = EINI_FN(gett_sum_mul), k->fold = EINI_FN(gett_sum); break;
#if EINI_TILE_KIND >= EINI_TILE_INTS
    case EIN_PAIR_MIN_ADD: k->tile = EINI_FN(gett_min_add), k->fold = EINI_FN(gett_min); break;
    case EIN_PAIR_MAX_ADD: k->tile = EINI_FN(gett_max_add), k->fold = EINI_FN(gett_max); break;
    case EIN_PAIR_SUM_SQDIFF: k->tile = EINI_FN(gett_sqdiff), k->fold = EINI_FN(gett_sum); break;
    case EIN_PAIR_SUM_ABSDIFF: k->tile = EINI_FN(gett_absdiff), k->fold = EINI_FN(gett_sum); break;
    case EIN_PAIR_MAX_ABSDIFF: k->tile = EINI_FN(gett_far), k->fold = EINI_FN(gett_max); break;
#endif
    default: break;
  }
}
#endif  // EINI_TILE_KIND
#undef EINI_TILE_NV
#undef EINI_TILE_NU
#undef EINI_TILE_ONE
#undef EINI_TILE_FOUR
#undef EINI_TILE_EACH
#undef EINI_TILE_MOST
#undef EINI_TILE_LEAST
#endif  // EINI_KERNELS_TILE

// ================================================================================================
// >>pack-kernels  the walk that packs a block for section gett
// Operands hold EINI_PACK_S, panels EINI_PACK_T: one value converted, or EINI_PACK_N of them that
// follow each other along k; where k ends within them the others are 0.
// ================================================================================================

// In what follows q counts T along k, c the offsets of its values. Narrow operands have a kind,
// EINI_PACK, with which names begin, and S; else both are T, the set's where it is not given.
// load_.. and run_.. load a granule, G lanes; save_.. and turn_.. of the set store and transpose.
// EINI_PACK_PLAIN: there are none of these.
#if EINI_KERNELS == EINI_KERNELS_PACK
#ifndef EINI_PACK_PLAIN
#define EINI_PACK_G (EINI_VBYTES * EINI_VW == 16 ? 16 / EINI_VBYTES : EINI_VBYTES * EINI_VW / 8)
#else
#define EINI_PACK_G (EINI_VBYTES < 8 ? 4 : 2)
#endif
#define EINI_PACK_NAME(name) EINI_CAT(EINI_CAT(name, EINI_PACK), EINI_X(TAG))
#define EINI_PACK_FN(name) EINI_PACK_NAME(eini_pack_##name##_)
#if EINI_PACK_N > 1
#define EINI_PACK_T int32_t
#define EINI_PACK_ONE(s, c, n) EINI_CAT(eini_one_, EINI_PACK)(s, c, n)
#define EINI_PACK_LOAD(s, c) EINI_PACK_NAME(eini_load_)(s, c)
#else
#define EINI_PACK_ONE(s, c, n) EINI_PACK_OF((s)[*(c)])
#define EINI_PACK_LOAD(s, c) EINI_PACK_NAME(eini_load_)(s)
#ifndef EINI_PACK_T
#define EINI_PACK_T EINI_VT
#endif
#ifdef EINI_PACK
#define EINI_PACK_OF(x) EINI_CAT(EINI_CAT(eini_, EINI_PACK), _load)(x)
#else
#define EINI_PACK
#define EINI_PACK_OF(x) (x)
#define EINI_PACK_S EINI_PACK_T
#endif
#endif  // EINI_PACK_N

// copy: G of T, from s + c[i] on. swap: from s + r[i] + c[..] on, transposed to d + o[i]; turn: the
// same where values follow each other along k in the operand, too. c is in s where N is 1.
#ifndef EINI_PACK_PLAIN
#define EINI_PACK_TURN EINI_CAT(eini_turn_, EINI_X(TAG))
#if EINI_PACK_G == 8
#define EINI_PACK_EACH(load) load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)
#elif EINI_PACK_G == 4
#define EINI_PACK_EACH(load) load(0), load(1), load(2), load(3)
#else
#define EINI_PACK_EACH(load) load(0), load(1)
#endif
EINI_VAT EINI_INLINE void EINI_PACK_FN(copy)(EINI_PACK_T *d, const EINI_PACK_S *s,
                                                 const int64_t *c) {
  (void)c;
  EINI_CAT(eini_save_, EINI_X(TAG))(d, EINI_PACK_LOAD(s, c));
}
EINI_VAT EINI_INLINE void EINI_PACK_FN(swap)(const EINI_PACK_S *s, const int64_t *r,
                                                 const int64_t *c, EINI_PACK_T *d,
                                                 const int64_t *o) {
#define EINI_PACK_ROW(i) EINI_PACK_LOAD(s + r[i], c)
  (void)c;
  EINI_PACK_TURN(EINI_PACK_EACH(EINI_PACK_ROW), d, o);
#undef EINI_PACK_ROW
}
#if EINI_PACK_N > 1
EINI_VAT EINI_INLINE void EINI_PACK_FN(turn)(const EINI_PACK_S *s, const int64_t *r,
                                                 EINI_PACK_T *d, const int64_t *o) {
#define EINI_PACK_ROW(i) EINI_PACK_NAME(eini_run_)(s + r[i])
  EINI_PACK_TURN(EINI_PACK_EACH(EINI_PACK_ROW), d, o);
#undef EINI_PACK_ROW
}
#endif
#undef EINI_PACK_EACH
#undef EINI_PACK_TURN
#else  // EINI_PACK_PLAIN
EINI_INLINE void EINI_PACK_FN(copy)(EINI_PACK_T *d, const EINI_PACK_S *s, const int64_t *c) {
  (void)c;
  d[0] = EINI_PACK_OF(s[0]), d[1] = EINI_PACK_OF(s[1]);
#if EINI_PACK_G > 2
  d[2] = EINI_PACK_OF(s[2]), d[3] = EINI_PACK_OF(s[3]);
#endif
}
EINI_INLINE void EINI_PACK_FN(swap)(const EINI_PACK_S *s, const int64_t *r, const int64_t *c,
                                    EINI_PACK_T *d, const int64_t *o) {
  (void)c;
  for (int i = 0; i < EINI_PACK_G; i++)
    for (int j = 0; j < EINI_PACK_G; j++) d[o[j] + i] = EINI_PACK_OF(s[r[i] + j]);
}
#endif  // EINI_PACK_PLAIN

// Asks for the lines at s + r[i]. Vectors may lie in two lines: the one where a row starts, or
// ends, is asked for besides those of its vectors.
EINI_INLINE void EINI_PACK_FN(ahead)(const EINI_PACK_S *s, const int64_t *r) {
  EINI_FETCH(s + r[0]), EINI_FETCH(s + r[1]);
#if EINI_PACK_G > 2
  EINI_FETCH(s + r[2]), EINI_FETCH(s + r[3]);
#endif
#if EINI_PACK_G > 4
  EINI_FETCH(s + r[4]), EINI_FETCH(s + r[5]), EINI_FETCH(s + r[6]), EINI_FETCH(s + r[7]);
#endif
}

#if EINI_PACK_N == 1
// n granules of rows, ss apart, turned to columns, ds apart: for section lanes. What is so far
// behind each row is asked for, unless that is 0.
EINI_UNUSED EINI_VAT static void EINI_PACK_FN(turned)(int64_t n, const void *src, const int64_t *r,
                                                      int64_t ss, void *dst, const int64_t *o,
                                                      int64_t ds, int64_t behind) {
  const EINI_PACK_S *s = (const EINI_PACK_S *)src;
  EINI_PACK_T *d = (EINI_PACK_T *)dst;
  for (; n > 0; n--, s += ss, d += ds) {
    EINI_PACK_FN(swap)(s, r, NULL, d, o);
    const uintptr_t then = (uintptr_t)s + (uintptr_t)behind * sizeof *s;
    if (behind != 0) EINI_PACK_FN(ahead)((const EINI_PACK_S *)then, r);
  }
}
#endif  // EINI_PACK_N

EINI_VAT static void EINI_PACK_FN(some)(const eini_gett_pack_arg *a, int64_t p, int64_t q,
                                            int64_t to, int64_t by) {
  const EINI_PACK_S *src = (const EINI_PACK_S *)a->src;
  EINI_PACK_T *d = (EINI_PACK_T *)a->dst + a->place[p / EINI_PACK_G];
  const int64_t *r = a->row + p;
  for (; q < to; q += by)
    for (int i = 0; i < EINI_PACK_G; i++)
      d[q * a->lanes + i] =
          EINI_PACK_ONE(src + r[i], a->col + q * EINI_PACK_N, a->nk - q * EINI_PACK_N);
}

// The next row is asked for: rows are often as far apart as pages, where prefetchers end.
EINI_VAT static void EINI_PACK_FN(rows)(const eini_gett_pack_arg *a) {
  const int64_t *place = a->place, *row = a->row;
  const int64_t ng = a->np / EINI_PACK_G, whole = a->nk / EINI_PACK_N;
  const unsigned char *flat = a->flat;
  for (int64_t q = 0; q < whole; q++) {
    const int64_t *c = a->col + q * EINI_PACK_N;
    const EINI_PACK_S *src = (const EINI_PACK_S *)a->src, *s = EINI_PACK_N == 1 ? src + *c : src;
    EINI_PACK_T *d = (EINI_PACK_T *)a->dst + q * a->lanes;
    const EINI_PACK_S *then = src + a->col[eini_min64((q + 1) * EINI_PACK_N, a->nk - 1)];
    for (int64_t g = 0; g < ng; g++) {
      EINI_FETCH(then + row[g * EINI_PACK_G]);
      if (flat[g]) EINI_PACK_FN(copy)(d + place[g], s + row[g * EINI_PACK_G], c);
      else
        for (int i = 0; i < EINI_PACK_G; i++)
          d[place[g] + i] = EINI_PACK_ONE(src + row[g * EINI_PACK_G + i], c, EINI_PACK_N);
    }
  }
  for (int64_t p = 0; EINI_PACK_N > 1 && p < a->np; p += EINI_PACK_G)
    EINI_PACK_FN(some)(a, p, whole, (a->nk + EINI_PACK_N - 1) / EINI_PACK_N, 1);
}

EINI_VAT static void EINI_PACK_FN(along)(const eini_gett_pack_arg *a) {
  const int run = EINI_PACK_N > 1 && a->step == 1;
  const int64_t along = run ? EINI_PACK_N : 1;
  const int64_t whole = a->count / along / EINI_PACK_G * EINI_PACK_G;
  const int64_t step = run || EINI_PACK_N == 1 ? a->step : a->step / EINI_PACK_N;
  const int64_t by = step * a->lanes, units = (a->count + along - 1) / along;
  int64_t o[EINI_PACK_G];
  for (int i = 0; i < EINI_PACK_G; i++) o[i] = i * by;
  for (int64_t p = 0; p < a->np; p += EINI_PACK_G)
    for (int64_t q0 = 0; q0 < a->nk; q0 += a->step * a->count)
      for (int64_t q = q0; q < q0 + a->step; q += EINI_PACK_N) {
        const int64_t *c = a->col + q, at = q / EINI_PACK_N;
        const EINI_PACK_S *s = (const EINI_PACK_S *)a->src + (EINI_PACK_N == 1 || run ? *c : 0);
        EINI_PACK_T *d = (EINI_PACK_T *)a->dst + a->place[p / EINI_PACK_G] + at * a->lanes;
        const int64_t *then = p + EINI_PACK_G < a->np ? a->row + p + EINI_PACK_G : a->row + p;
        EINI_PACK_FN(ahead)(s + (EINI_PACK_N == 1 || run ? 0 : *c), then);
        for (int64_t t = 0; t < whole; t += EINI_PACK_G) {
          EINI_PACK_FN(ahead)(s + (EINI_PACK_N == 1 || run ? 0 : *c) +
                              (t + EINI_PACK_G) * along - 1, then);
#if EINI_PACK_N > 1
          if (run) {
            EINI_PACK_FN(turn)(s + t * along, a->row + p, d + t * by, o);
            continue;
          }
#endif
          EINI_PACK_FN(swap)(s + t, a->row + p, c, d + t * by, o);
        }
#if EINI_PACK_N == 1
        if (whole < a->count && whole > 0) {  // the last granule ends with the run
          const int64_t t = a->count - EINI_PACK_G;
          EINI_PACK_FN(swap)(s + t, a->row + p, c, d + t * by, o);
          continue;
        }
#endif
        EINI_PACK_FN(some)(a, p, at + whole * step, at + units * step, step);
      }
}

// Rows are often so far apart that eight of them fill a set of the cache, so lines are asked for
// when those before them are done with, and no more than four of a row ahead. Columns of a run in
// whole granules, of which the last one ends with the run.
EINI_VAT static void EINI_PACK_FN(across_at)(const eini_gett_pack_arg *a, int64_t p,
                                                 int64_t t0, int64_t t1) {
  const int64_t ahead = eini_max64(256 / ((t1 - t0) * (int64_t)sizeof(EINI_PACK_S)), 1);
  int64_t o[8][EINI_PACK_G], from[8];
  int n = 0;
  for (int64_t t = t0; t < t1; t += EINI_PACK_G, n++) {
    from[n] = eini_min64(t, a->count - EINI_PACK_G);
    for (int i = 0; i < EINI_PACK_G; i++)
      o[n][i] = a->place[(p + a->across[from[n] + i]) / EINI_PACK_G];
  }
  for (int64_t q = 0; q < a->nk / EINI_PACK_N; q++) {
    const int64_t *c = a->col + q * EINI_PACK_N;
    const EINI_PACK_S *src = (const EINI_PACK_S *)a->src, *s = src + (EINI_PACK_N == 1 ? *c : 0);
    const EINI_PACK_S *then = src + a->col[eini_min64(q * EINI_PACK_N + ahead, a->nk - 1)];
    EINI_PACK_T *d = (EINI_PACK_T *)a->dst + q * a->lanes;
    EINI_PACK_FN(ahead)(src + *c + t1 - 1, a->row + p);
    for (int i = 0; i < n; i++) {
      EINI_PACK_FN(swap)(s + from[i], a->row + p, c, d, o[i]);
      EINI_PACK_FN(ahead)(then + from[i], a->row + p);
    }
  }
}

EINI_VAT static void EINI_PACK_FN(across)(const eini_gett_pack_arg *a) {
  const int64_t units = (a->nk + EINI_PACK_N - 1) / EINI_PACK_N;
  for (int64_t i = 0; i < a->nfirst; i++)
    for (int64_t t = 0; t < a->count; t += 8 * EINI_PACK_G)
      EINI_PACK_FN(across_at)(a, a->first[i], t, eini_min64(t + 8 * EINI_PACK_G, a->count));
  for (int64_t p = a->n; p < a->np; p += EINI_PACK_G) EINI_PACK_FN(some)(a, p, 0, units, 1);
  for (int64_t p = 0; a->nk / EINI_PACK_N < units && p < a->n; p += EINI_PACK_G)
    EINI_PACK_FN(some)(a, p, units - 1, units, 1);
}

EINI_VAT static void EINI_PACK_NAME(eini_pack_)(const eini_gett_pack_arg *a) {
  const int n = EINI_PACK_N;
  const int kind = n > 1 && a->kind == EINI_GETT_ALONG &&
                   (a->step == 1 ? a->count % n != 0 && a->count < a->nk : a->step % n != 0)
                       ? EINI_GETT_NOWHERE : a->kind;
  if (kind == EINI_GETT_ROWS) EINI_PACK_FN(rows)(a);
  else if (kind == EINI_GETT_ALONG) EINI_PACK_FN(along)(a);
  else if (kind == EINI_GETT_ACROSS) EINI_PACK_FN(across)(a);
  else {  // uneven: few k at a time, so that other positions find their lines in the cache
    const int64_t few = kind == EINI_GETT_UNEVEN ? 2 : a->nk, units = (a->nk + n - 1) / n;
    for (int64_t q = 0; q < units; q += few)
      for (int64_t p = 0; p < a->np; p += EINI_PACK_G)
        EINI_PACK_FN(some)(a, p, q, eini_min64(q + few, units), 1);
  }
}
#undef EINI_PACK_G
#undef EINI_PACK_NAME
#undef EINI_PACK_FN
#undef EINI_PACK_ONE
#undef EINI_PACK_LOAD
#undef EINI_PACK_OF
#undef EINI_PACK_S
#undef EINI_PACK_T
#undef EINI_PACK
#endif  // EINI_KERNELS_PACK

// ================================================================================================
// >>amx-kernels  the walk of section gett-amx
// With the instructions and, where there are none, in plain C: functions eini_gett_EINI_AMX_..
// ================================================================================================

// Registers 0 to 3 hold sums: U's halves by V's; 4 and 5 U, 6 and 7 V. U's panel has each 16 rows
// of 16 lanes turned. Instructions want numbers of registers as they are in the text.
#if EINI_KERNELS == EINI_KERNELS_AMX
#define EINI_AMX_FN(name) EINI_CAT(EINI_CAT(eini_gett_, EINI_AMX), _##name)
EINI_AMX_AT EINI_INLINE void EINI_AMX_FN(walk)(const int kind, const eini_gett_tile_arg *a) {
  eini_gett_regs regs;
  float sums[32 * 32];  // or of i32
  const char *v = (const char *)a->v, *u = (const char *)a->u;
  const int64_t sv = 4 * a->sv, su = 4 * a->uk;
  const int low = a->nu > 16, right = a->nv > 1;
  const int64_t ld = eini_gett_amx_even(a);  // sums begin as what is there, and go there
  float *d = ld > 0 ? (float *)a->dst + a->uoff[0] + a->voff[0] : sums;
  const int64_t sd = 4 * (ld > 0 ? ld : 32);
  (void)regs;
  if (ld > 0 && a->how == EINI_GETT_ADD) {
    EINI_AMX_LOAD(0, d, sd);
    EINI_AMX_LOAD(1, d + 16, sd);
    EINI_AMX_LOAD(2, d + 4 * sd, sd);
    EINI_AMX_LOAD(3, d + 4 * sd + 16, sd);
  } else {
    EINI_AMX_ZERO(0);
    EINI_AMX_ZERO(1);
    EINI_AMX_ZERO(2);
    EINI_AMX_ZERO(3);
  }
  for (int64_t k = 0; k < a->k; k += 16, v += 16 * sv, u += 16 * su) {
    EINI_AMX_LOAD(4, u, su);
    EINI_AMX_LOAD(6, v, sv);
    EINI_AMX_DOT(0, 4, 6);
    if (right) {
      EINI_AMX_LOAD(7, v + 64, sv);
      EINI_AMX_DOT(1, 4, 7);
    }
    if (low) {
      EINI_AMX_LOAD(5, u + 64, su);
      EINI_AMX_DOT(2, 5, 6);
    }
    if (low && right) EINI_AMX_DOT(3, 5, 7);
  }
  EINI_AMX_SAVE(0, d, sd);
  EINI_AMX_SAVE(1, d + 16, sd);
  EINI_AMX_SAVE(2, d + 4 * sd, sd);
  EINI_AMX_SAVE(3, d + 4 * sd + 16, sd);
  if (ld == 0) eini_gett_amx_leave(kind != EINI_AMX_BF16, a, sums);
}
EINI_AMX_AT static void EINI_AMX_FN(bf16)(const eini_gett_tile_arg *a) {
  EINI_AMX_FN(walk)(EINI_AMX_BF16, a);
}
EINI_AMX_AT static void EINI_AMX_FN(ss)(const eini_gett_tile_arg *a) {
  EINI_AMX_FN(walk)(EINI_AMX_SS, a);
}
EINI_AMX_AT static void EINI_AMX_FN(su)(const eini_gett_tile_arg *a) {
  EINI_AMX_FN(walk)(EINI_AMX_SU, a);
}
EINI_AMX_AT static void EINI_AMX_FN(us)(const eini_gett_tile_arg *a) {
  EINI_AMX_FN(walk)(EINI_AMX_US, a);
}
EINI_AMX_AT static void EINI_AMX_FN(uu)(const eini_gett_tile_arg *a) {
  EINI_AMX_FN(walk)(EINI_AMX_UU, a);
}
#undef EINI_AMX_FN
#undef EINI_AMX
#undef EINI_AMX_AT
#undef EINI_AMX_ZERO
#undef EINI_AMX_LOAD
#undef EINI_AMX_SAVE
#endif  // EINI_KERNELS_AMX

// ================================================================================================
// >>kernels-end  the end of what is compiled for each set
// The words and the set go; EINI_KERNELS stays for the next one.
// ================================================================================================

#undef EINI_VT
#undef EINI_V
#undef EINI_VW
#undef EINI_VBYTES
#undef EINI_VAT
#undef EINI_VEND
#undef EINI_VLOAD
#undef EINI_VSTORE
#undef EINI_VSTREAM
#undef EINI_VPAST
#undef EINI_VSET
#undef EINI_VADD
#undef EINI_VSUB
#undef EINI_VMUL
#undef EINI_VFMA
#undef EINI_VFNMA
#undef EINI_VDIV
#undef EINI_VSQRT
#undef EINI_VNEG
#undef EINI_VABS
#undef EINI_VRELU
#undef EINI_VMIN
#undef EINI_VMAX
#undef EINI_VTOP
#undef EINI_VLOW
#undef EINI_VKEEP
#undef EINI_VFLOOR
#undef EINI_VCEIL
#undef EINI_VRINT
#undef EINI_VEXP
#undef EINI_VEXPS
#undef EINI_VB
#undef EINI_VBITS
#undef EINI_VFROM
#undef EINI_VBSET
#undef EINI_VBSUB
#undef EINI_VSHR
#undef EINI_VSHL
#undef EINI_VU
#undef EINI_VREAL
#undef EINI_VREGS
#undef EINI_VM
#undef EINI_VMASK
#undef EINI_VLOADM
#undef EINI_VSTOREM
#undef EINI_FIRST
#undef EINI_FAR
#undef EINI_FN
#undef EINI_VEC
#endif  // EINI_KERNELS
