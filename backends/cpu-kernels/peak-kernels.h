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
