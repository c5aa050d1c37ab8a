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
