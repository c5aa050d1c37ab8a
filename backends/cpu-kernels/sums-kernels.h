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
