// ================================================================================================
// >>turn-kernels  turning rows of granules, of one set
// For section lanes; see there. The granules are those of section gett-pack.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_TURN
EINI_VAT static void EINI_FN(turn)(int64_t n, const void *src, const int64_t *r, int64_t ss,
                                   void *dst, const int64_t *o, int64_t ds) {
#if EINI_VBYTES == 8
  const eini_gett_8d *s = (const eini_gett_8d *)src;
  eini_gett_8d *d = (eini_gett_8d *)dst;
#else
  const float *s = (const float *)src;
  float *d = (float *)dst;
#endif
  for (; n > 0; n--, s += ss, d += ds) EINI_FN(gett_swap)(s, r, NULL, d, o);
}
#endif  // EINI_KERNELS_TURN
