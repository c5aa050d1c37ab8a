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
