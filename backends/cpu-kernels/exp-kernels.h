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
