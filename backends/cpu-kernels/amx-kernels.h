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
