// ================================================================================================
// >>plain-kernels  sets of vectors in plain C
// Four scalars. Sums and products are formed in the set's type A (unsigned: they wrap).
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_FOUR
// The words of a set are functions here, of which none is left under such a name.
typedef struct EINI_V { EINI_VT x[4]; } EINI_V;

EINI_ALWAYS EINI_V EINI_VLOAD(const EINI_VT *p) {
  const EINI_V r = {{p[0], p[1], p[2], p[3]}};
  return r;
}
EINI_ALWAYS void EINI_VSTORE(EINI_VT *p, EINI_V r) {
  p[0] = r.x[0], p[1] = r.x[1], p[2] = r.x[2], p[3] = r.x[3];
}
EINI_ALWAYS void EINI_VSTREAM(EINI_VT *p, EINI_V r, unsigned lanes) {
  (void)lanes;
  EINI_VSTORE(p, r);
}
EINI_ALWAYS EINI_V EINI_VSET(EINI_VT x) {
  const EINI_V r = {{x, x, x, x}};
  return r;
}

// a.x[i] = e for each i; a loop would stay one.
#define EINI_PLAIN_EACH(e)                                               \
  do {                                                                   \
    int i = 0;                                                           \
    a.x[0] = e, i = 1, a.x[1] = e, i = 2, a.x[2] = e, i = 3, a.x[3] = e; \
  } while (0)
EINI_ALWAYS EINI_V EINI_VMIN(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] < b.x[i] ? a.x[i] : b.x[i]);
  return a;
}
EINI_ALWAYS EINI_V EINI_VMAX(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] > b.x[i] ? a.x[i] : b.x[i]);
  return a;
}
#if EINI_VBYTES == 1
// Truth: "or" for sums, "and" for products.
EINI_ALWAYS EINI_V EINI_VADD(EINI_V a, EINI_V b) { return EINI_VMAX(a, b); }
EINI_ALWAYS EINI_V EINI_VMUL(EINI_V a, EINI_V b) { return EINI_VMIN(a, b); }
#else
#define EINI_A EINI_X(A)
EINI_ALWAYS EINI_V EINI_VADD(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] + (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VSUB(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] - (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VMUL(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH((EINI_VT)((EINI_A)a.x[i] * (EINI_A)b.x[i]));
  return a;
}
EINI_ALWAYS EINI_V EINI_VKEEP(EINI_V a, EINI_V b) {
  EINI_PLAIN_EACH(a.x[i] == a.x[i] ? b.x[i] : a.x[i]);
  return a;
}
EINI_ALWAYS EINI_V EINI_VABS(EINI_V a) {
  return EINI_VMAX(a, EINI_VSUB(EINI_VSET(0), a));
}
#undef EINI_A
#endif  // EINI_VBYTES
EINI_ALWAYS EINI_V EINI_VFMA(EINI_V a, EINI_V b, EINI_V c) {
  return EINI_VADD(c, EINI_VMUL(a, b));
}
#undef EINI_PLAIN_EACH
#endif  // EINI_KERNELS_FOUR

#if EINI_KERNELS == EINI_KERNELS_COMPLEX
static void EINI_FN(gett_times_complex)(int64_t n, void *to, const void *from) {
  EINI_VT *d = (EINI_VT *)to;
  const EINI_VT *s = (const EINI_VT *)from;
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const EINI_VT re = d[i] * s[i] - d[i + 1] * s[i + 1];
    d[i + 1] = d[i] * s[i + 1] + d[i + 1] * s[i], d[i] = re;
  }
}

// Complex results from the sums a = v*re(u) and b = v*im(u); they replace a.
static void EINI_FN(gett_join)(int64_t n, int conj_v, int conj_u, EINI_VT *a, const EINI_VT *b) {
  const EINI_VT sv = conj_v ? -1 : 1, su = conj_u ? -1 : 1, sb = -sv * su;
  for (int64_t i = 0; i < 2 * n; i += 2) {
    const EINI_VT re = a[i] + sb * b[i + 1];
    a[i + 1] = sv * a[i + 1] + su * b[i], a[i] = re;
  }
}
#endif  // EINI_KERNELS_COMPLEX
