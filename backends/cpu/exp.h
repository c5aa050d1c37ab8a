// ================================================================================================
// >>exp  the exponential function of vectors
// At most 2 ulp, as in section math; special values as C99.
// ================================================================================================

#if EINI_CPU_X86
// 2^(j/16)
static const double eini_exp_parts[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};

// exp(x) = 2^m e^r, where m is x / ln 2 rounded to sixteenths: adding 1.5 * 2^48 rounds, and leaves
// the sixteenths j in the last four bits. 2^m comes as 2^(j/16) from two registers and as a power
// of two, which scalef also takes to subnormals, 0 and infinity. e^r = 1 + r + r^2 q(r), q fitted
// as those of section math; with y = r^2 + 19.99.. its degree of 4 takes three products. For x
// infinite, NaN or far out r means nothing and is made finite: m says what comes out. At most
// 1.13 ulp: 0.5 of the last sum, 0.5 of 2^(j/16), 0.1 of q; a second table with what 2^(j/16) lacks
// would halve that and take a fifth longer.
EINI_T512 static inline __m512d eini_exp_zd(__m512d x) {
  const __m512d shift = _mm512_set1_pd(6755399441055744.0 / 16);
  const __m512d t = _mm512_fmadd_pd(x, _mm512_set1_pd(1.4426950408889634), shift);
  const __m512d m = _mm512_sub_pd(t, shift);
  const __m512d part = _mm512_permutex2var_pd(_mm512_loadu_pd(eini_exp_parts),
                                              _mm512_castpd_si512(t),
                                              _mm512_loadu_pd(eini_exp_parts + 8));
  __m512d r = _mm512_fnmadd_pd(m, _mm512_set1_pd(0.69314718055989033), x);  // ln 2 in two parts
  r = _mm512_fnmadd_pd(m, _mm512_set1_pd(5.4979230187083712e-14), r);
  r = _mm512_max_pd(_mm512_min_pd(r, _mm512_set1_pd(1)), _mm512_set1_pd(-1));  // NaN: 1
  const __m512d r2 = _mm512_mul_pd(r, r);
  const __m512d y = _mm512_add_pd(r2, _mm512_set1_pd(19.999664536645206));
  __m512d q = _mm512_fmadd_pd(r, _mm512_set1_pd(0.008333473110926876),
                              _mm512_set1_pd(-0.013885661260104924));
  q = _mm512_fmadd_pd(y, _mm512_set1_pd(0.0013888314944317652), q);
  q = _mm512_fmadd_pd(q, y, _mm512_set1_pd(0.22219460522547685));
  q = _mm512_fmadd_pd(q, r2, r);
  return _mm512_scalef_pd(_mm512_fmadd_pd(q, part, part), m);
}

// Here m is an integer, and e^r that of section math.
EINI_T512 static inline __m512 eini_exp_zs(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0f);
  const __m512 m = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), shift), shift);
  __m512 r = _mm512_fnmadd_ps(m, _mm512_set1_ps(0.693145752f), x);
  r = _mm512_fnmadd_ps(m, _mm512_set1_ps(1.42860677e-06f), r);
  r = _mm512_max_ps(_mm512_min_ps(r, _mm512_set1_ps(1)), _mm512_set1_ps(-1));
  const __m512 r2 = _mm512_mul_ps(r, r);
  const __m512 low = _mm512_fmadd_ps(r, _mm512_set1_ps(0.166665167f), _mm512_set1_ps(0.499999881f));
  __m512 q = _mm512_fmadd_ps(r, _mm512_set1_ps(0.00836911518f), _mm512_set1_ps(0.0416696332f));
  q = _mm512_fmadd_ps(r2, _mm512_set1_ps(0.00137470546f), q);
  q = _mm512_fmadd_ps(_mm512_fmadd_ps(q, r2, low), r2, r);
  return _mm512_scalef_ps(_mm512_add_ps(q, _mm512_set1_ps(1)), m);
}
#endif  // EINI_CPU_X86

#if EINI_CPU_X86

// 2^(j/8), less the j/8 that a shift of m adds to it, as words of the two halves of its bits.
static const uint32_t eini_exp_high[8] = {0x3ff00000, 0x3fef72b8, 0x3fef06fe, 0x3feebfda,
                                          0x3feea09e, 0x3feeace5, 0x3feee89f, 0x3fef5818};
static const uint32_t eini_exp_low[8] = {0x00000000, 0x3c7d517b, 0x0a31b715, 0xd5362a27,
                                         0x667f3bcd, 0x422aa0db, 0x995ad3ad, 0xdcfba487};

// AVX2: m in eighths, e^r = 1 + r + r^2 q(r). Near 0 the exponents of 2^m are there and are added
// to those of 2^(j/8); else they come in two factors, after the sum, which gives the same bits.
EINI_T256 EINI_INLINE __m256d eini_exp_eighths(__m256d x, int near) {
  const __m256d shift = _mm256_set1_pd(6755399441055744.0 / 8);
  const __m256d t = _mm256_fmadd_pd(x, _mm256_set1_pd(1.4426950408889634), shift);
  const __m256d m = _mm256_sub_pd(t, shift);
  const __m256i bits = _mm256_castpd_si256(t), j = _mm256_shuffle_epi32(bits, 0xa0);
  const __m256i high = _mm256_permutevar8x32_epi32(
      _mm256_loadu_si256((const __m256i *)(const void *)eini_exp_high), j);
  const __m256i low = _mm256_permutevar8x32_epi32(
      _mm256_loadu_si256((const __m256i *)(const void *)eini_exp_low), j);
  const __m256i by = near ? bits : _mm256_and_si256(bits, _mm256_set1_epi64x(7));
  const __m256d part = _mm256_castsi256_pd(
      _mm256_add_epi64(_mm256_blend_epi32(low, high, 0xaa), _mm256_slli_epi64(by, 49)));
  __m256d r = _mm256_fnmadd_pd(m, _mm256_set1_pd(0.69314718055989033), x);
  r = _mm256_fnmadd_pd(m, _mm256_set1_pd(5.4979230187083712e-14), r);
  const __m256d r2 = _mm256_mul_pd(r, r);
  __m256d q = _mm256_fmadd_pd(r, _mm256_set1_pd(0.00019841090331182177),
                              _mm256_set1_pd(0.0013889786727626482));
  const __m256d q1 = _mm256_fmadd_pd(r, _mm256_set1_pd(0.008333333355552619),
                                     _mm256_set1_pd(0.041666666568360045));
  const __m256d q0 = _mm256_fmadd_pd(r, _mm256_set1_pd(0.1666666666666483),
                                     _mm256_set1_pd(0.5000000000000308));
  q = _mm256_fmadd_pd(_mm256_fmadd_pd(q, r2, q1), r2, q0);
  q = _mm256_fmadd_pd(q, r2, r);
  q = _mm256_fmadd_pd(q, part, part);
  if (near) return q;
  const __m256i k = _mm256_srli_epi64(
      _mm256_sub_epi64(bits, _mm256_set1_epi64x(0x4338000000000000 - 8 * 0x7fe)), 3);
  const __m256i h = _mm256_srli_epi64(k, 1), l = _mm256_sub_epi64(k, h);
  q = _mm256_mul_pd(q, _mm256_castsi256_pd(_mm256_slli_epi64(h, 52)));
  return _mm256_mul_pd(q, _mm256_castsi256_pd(_mm256_slli_epi64(l, 52)));
}

EINI_T256 static inline __m256d eini_exp_near_yd(__m256d x) { return eini_exp_eighths(x, 1); }

EINI_T256 static __m256d eini_exp_far_yd(__m256d x) {
  x = _mm256_min_pd(_mm256_set1_pd(746), x);  // NaN goes through as the second argument
  return eini_exp_eighths(_mm256_max_pd(_mm256_set1_pd(-746), x), 0);
}

// Negative where x is far from 0, or NaN.
EINI_T256 EINI_INLINE __m256i eini_exp_sign_yd(__m256d x) {
  const __m256i bits = _mm256_castpd_si256(_mm256_andnot_pd(_mm256_set1_pd(-0.0), x));
  return _mm256_sub_epi64(_mm256_castpd_si256(_mm256_set1_pd(350)), bits);
}

EINI_T256 static inline __m256d eini_exp_yd(__m256d x) {
  if (_mm256_movemask_pd(_mm256_castsi256_pd(eini_exp_sign_yd(x)))) return eini_exp_far_yd(x);
  return eini_exp_near_yd(x);
}

// Of eight vectors at once.
EINI_T256 EINI_INLINE __m256i eini_exp_signs_yd(__m256d a, __m256d b, __m256d c, __m256d d) {
  return _mm256_or_si256(_mm256_or_si256(eini_exp_sign_yd(a), eini_exp_sign_yd(b)),
                         _mm256_or_si256(eini_exp_sign_yd(c), eini_exp_sign_yd(d)));
}
EINI_T256 EINI_INLINE int eini_exp_is_far_yd(__m256i x, __m256i y) {
  return _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(x, y))) != 0;
}
#define EINI_EXPS_YD(a, b, c, d, e, f, g, h)                                                \
  if (eini_exp_is_far_yd(eini_exp_signs_yd(a, b, c, d), eini_exp_signs_yd(e, f, g, h)))     \
    EINI_EXPS(eini_exp_far_yd, a, b, c, d, e, f, g, h);                                     \
  else EINI_EXPS(eini_exp_near_yd, a, b, c, d, e, f, g, h)
#endif  // EINI_CPU_X86
#define EINI_EXPS(fn, a, b, c, d, e, f, g, h) \
  (a = fn(a), b = fn(b), c = fn(c), d = fn(d), e = fn(e), f = fn(f), g = fn(g), h = fn(h))

#if EINI_CPU_X86
#define EINI_KERNELS EINI_KERNELS_EXP
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_KERNELS EINI_KERNELS_EXP
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS
