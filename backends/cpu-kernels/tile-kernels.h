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
