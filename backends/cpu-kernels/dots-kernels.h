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
