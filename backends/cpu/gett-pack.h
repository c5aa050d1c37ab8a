// ================================================================================================
// >>gett-pack  packing for section gett, and its kernels by type
// A block of one side goes into panels [k][lane].
// ================================================================================================

#define EINI_GETT_NONE
// Positions of a box are numbered row-major and filled up to whole granules of G lanes with copies
// of what comes before; operands are contiguous along the lanes, along k, across positions that
// are some granules apart or an uneven step, or nowhere.
enum { EINI_GETT_ROWS, EINI_GETT_ALONG, EINI_GETT_ACROSS, EINI_GETT_UNEVEN, EINI_GETT_NOWHERE };

struct eini_gett_pack_arg {
  int kind;
  int64_t n, np, nk;           // positions, the same filled up, extent of k
  int64_t lanes;               // of one panel
  int64_t step, count;         // the contiguous index: its step in positions or k, its extent
  const int64_t *row, *col;    // [np], [nk] offsets in the operand
  const int64_t *place;        // [np / G] where a granule goes
  const unsigned char *flat;   // [np / G] whether its lanes are contiguous
  const void *src;
  void *dst;
};

// Asks for the lines at s + r[i] for i < 8, or for fewer lanes less. Vectors may lie in two lines:
// the one where a row starts, or ends, is asked for besides those of its vectors.
#define EINI_GETT_AHEAD2(s, r, i) \
  (EINI_FETCH((s) + (r)[i]), EINI_FETCH((s) + (r)[(i) + 1]))
#define EINI_GETT_AHEAD(G, s, r)                                                                 \
  do {                                                                                           \
    EINI_GETT_AHEAD2(s, r, 0);                                                                   \
    if (G > 2) EINI_GETT_AHEAD2(s, r, G > 2 ? 2 : 0);                                            \
    if (G > 4) EINI_GETT_AHEAD2(s, r, G > 4 ? 4 : 0), EINI_GETT_AHEAD2(s, r, G > 4 ? 6 : 0);     \
  } while (0)

// Operands hold S, panels T: one value of S converted, or N of them that follow each other along k;
// where k ends within them the others are 0. In what follows q counts T along k, c the offsets of
// its values. ONE(s, c, n): the T of n values at s + c[i]. COPY(d, s, c): G of them, from s + c[i]
// on. SWAP(s, r, c, d, o): from s + r[i] + c[..] on, transposed to d + o[i]; RUN: the same where
// values follow each other along k in the operand, too. But for ONE, c is in s where N is 1.
// Across: rows are often so far apart that eight of them fill a set of the cache, so lines are
// asked for when those before them are done with, and no more than four of a row ahead.
#define EINI_GETT_PACK(NAME, ATTR, S, T, G, N, ONE, COPY, SWAP, RUN)                             \
  ATTR static void NAME##_some(const eini_gett_pack_arg *a, int64_t p, int64_t q, int64_t to,    \
                               int64_t by) {                                                     \
    const S *src = (const S *)a->src;                                                            \
    T *d = (T *)a->dst + a->place[p / G];                                                        \
    const int64_t *r = a->row + p;                                                               \
    for (; q < to; q += by)                                                                      \
      for (int i = 0; i < G; i++)                                                                \
        d[q * a->lanes + i] = ONE(src + r[i], a->col + q * N, a->nk - q * N);                    \
  }                                                                                              \
  ATTR static void NAME##_rows(const eini_gett_pack_arg *a) {                                    \
    const int64_t *place = a->place, *row = a->row, ng = a->np / G, whole = a->nk / N;           \
    const unsigned char *flat = a->flat;                                                         \
    for (int64_t q = 0; q < whole; q++) {                                                        \
      const int64_t *c = a->col + q * N;                                                         \
      const S *src = (const S *)a->src, *s = N == 1 ? src + *c : src;                            \
      T *d = (T *)a->dst + q * a->lanes;                                                         \
      for (int64_t g = 0; g < ng; g++)                                                           \
        if (flat[g]) COPY(d + place[g], s + row[g * G], c);                                      \
        else                                                                                     \
          for (int i = 0; i < G; i++) d[place[g] + i] = ONE(src + row[g * G + i], c, N);         \
    }                                                                                            \
    for (int64_t p = 0; N > 1 && p < a->np; p += G)                                              \
      NAME##_some(a, p, whole, (a->nk + N - 1) / N, 1);                                          \
  }                                                                                              \
  ATTR static void NAME##_along(const eini_gett_pack_arg *a) {                                   \
    const int run = N > 1 && a->step == 1;                                                       \
    const int64_t along = run ? N : 1, whole = a->count / along / G * G;                         \
    const int64_t step = run || N == 1 ? a->step : a->step / N, by = step * a->lanes;            \
    const int64_t units = (a->count + along - 1) / along;                                        \
    int64_t o[G];                                                                                \
    for (int i = 0; i < G; i++) o[i] = i * by;                                                   \
    for (int64_t p = 0; p < a->np; p += G)                                                       \
      for (int64_t q0 = 0; q0 < a->nk; q0 += a->step * a->count)                                 \
        for (int64_t q = q0; q < q0 + a->step; q += N) {                                         \
          const int64_t *c = a->col + q, at = q / N;                                             \
          const S *s = (const S *)a->src + (N == 1 || run ? *c : 0);                             \
          T *d = (T *)a->dst + a->place[p / G] + at * a->lanes;                                  \
          const int64_t *then = p + G < a->np ? a->row + p + G : a->row + p;                     \
          EINI_GETT_AHEAD(G, s + (N == 1 || run ? 0 : *c), then);                                \
          for (int64_t t = 0; t < whole; t += G) {                                               \
            EINI_GETT_AHEAD(G, s + (N == 1 || run ? 0 : *c) + (t + G) * along - 1, then);        \
            if (run) RUN(s + t * along, a->row + p, c, d + t * by, o);                           \
            else SWAP(s + t, a->row + p, c, d + t * by, o);                                      \
          }                                                                                      \
          NAME##_some(a, p, at + whole * step, at + units * step, step);                         \
        }                                                                                        \
  }                                                                                              \
  ATTR static void NAME##_across_at(const eini_gett_pack_arg *a, int64_t p, int64_t t0,          \
                                    int64_t t1) {                                                \
    const int64_t ahead = eini_max64(256 / ((t1 - t0) * (int64_t)sizeof(S)), 1);                 \
    int64_t o[8][G];                                                                             \
    for (int64_t t = t0; t < t1; t++)                                                            \
      o[(t - t0) / G][(t - t0) % G] = a->place[p / G + t * (a->step / G)];                       \
    for (int64_t q = 0; q < a->nk / N; q++) {                                                    \
      const int64_t *c = a->col + q * N;                                                         \
      const S *s = (const S *)a->src + (N == 1 ? *c : 0);                                        \
      const S *now = (const S *)a->src + *c;                                                     \
      const S *then = (const S *)a->src + a->col[eini_min64(q * N + ahead, a->nk - 1)];          \
      T *d = (T *)a->dst + q * a->lanes;                                                         \
      EINI_GETT_AHEAD(G, now + t1 - 1, a->row + p);                                              \
      for (int64_t t = t0; t < t1; t += G) {                                                     \
        SWAP(s + t, a->row + p, c, d, o[(t - t0) / G]);                                          \
        EINI_GETT_AHEAD(G, then + t, a->row + p);                                                \
      }                                                                                          \
    }                                                                                            \
  }                                                                                              \
  ATTR static void NAME##_across(const eini_gett_pack_arg *a) {                                  \
    const int64_t whole = a->count / G * G, step = a->step, units = (a->nk + N - 1) / N;         \
    for (int64_t z = 0; z < a->n; z += step * a->count)                                          \
      for (int64_t p = z; p < z + step; p += G)                                                  \
        for (int64_t t = 0; t < whole; t += 8 * G)                                               \
          NAME##_across_at(a, p, t, eini_min64(t + 8 * G, whole));                               \
    for (int64_t z = 0; z < a->n; z += step * a->count)                                          \
      for (int64_t p = z + whole * step; p < z + step * a->count; p += G)                        \
        NAME##_some(a, p, 0, units, 1);                                                          \
    for (int64_t p = a->n; p < a->np; p += G) NAME##_some(a, p, 0, units, 1);                    \
    for (int64_t p = 0; a->nk / N < units && p < a->n; p += G)                                   \
      NAME##_some(a, p, units - 1, units, 1);                                                    \
  }                                                                                              \
  ATTR static void NAME(const eini_gett_pack_arg *a) {                                           \
    const int kind = N > 1 && a->kind == EINI_GETT_ALONG &&                                      \
                     (a->step == 1 ? a->count % N != 0 && a->count < a->nk : a->step % N != 0)   \
                         ? EINI_GETT_NOWHERE : a->kind;                                          \
    if (kind == EINI_GETT_ROWS) NAME##_rows(a);                                                  \
    else if (kind == EINI_GETT_ALONG) NAME##_along(a);                                           \
    else if (kind == EINI_GETT_ACROSS) NAME##_across(a);                                         \
    else {  /* uneven: few k at a time, so that other positions find their lines in the cache */ \
      const int64_t few = kind == EINI_GETT_UNEVEN ? 2 : a->nk, units = (a->nk + N - 1) / N;     \
      for (int64_t q = 0; q < units; q += few)                                                   \
        for (int64_t p = 0; p < a->np; p += G)                                                   \
          NAME##_some(a, p, q, eini_min64(q + few, units), 1);                                   \
    }                                                                                            \
  }

// Elements are moved whole, and those of c64 are aligned as their parts are.
#if defined(__GNUC__) || defined(__clang__)
typedef int64_t eini_gett_8 __attribute__((aligned(4), may_alias));
typedef double eini_gett_8d __attribute__((aligned(4), may_alias));
#else
typedef int64_t eini_gett_8;
#endif
typedef struct eini_gett_16 { double re, im; } eini_gett_16;
#define EINI_GETT_ONE(s, c, n) ((s)[*(c)])
#define EINI_GETT_COPY2(d, s, c) ((d)[0] = (s)[0], (d)[1] = (s)[1])
#define EINI_GETT_COPY4(d, s, c) \
  ((d)[0] = (s)[0], (d)[1] = (s)[1], (d)[2] = (s)[2], (d)[3] = (s)[3])
#define EINI_GETT_PLAIN_SWAP(NAME, T, G)                                                         \
  EINI_INLINE void NAME(const T *s, const int64_t *r, const int64_t *c, T *d, const int64_t *o) {\
    (void)c;                                                                                     \
    for (int i = 0; i < G; i++)                                                                  \
      for (int j = 0; j < G; j++) d[o[j] + i] = s[r[i] + j];                                     \
  }
EINI_GETT_PLAIN_SWAP(eini_gett_swap1, unsigned char, 4)
EINI_GETT_PLAIN_SWAP(eini_gett_swap4, int32_t, 4)
EINI_GETT_PLAIN_SWAP(eini_gett_swap8, eini_gett_8, 2)
EINI_GETT_PLAIN_SWAP(eini_gett_swap16, eini_gett_16, 2)
#undef EINI_GETT_PLAIN_SWAP
#define EINI_GETT_PACK_SAME(NAME, ATTR, T, G, COPY, SWAP) \
  EINI_GETT_PACK(NAME, ATTR, T, T, G, 1, EINI_GETT_ONE, COPY, SWAP, SWAP)
EINI_GETT_PACK_SAME(eini_gett_pack1, EINI_GETT_NONE, unsigned char, 4, EINI_GETT_COPY4,
                    eini_gett_swap1)
EINI_GETT_PACK_SAME(eini_gett_pack4, EINI_GETT_NONE, int32_t, 4, EINI_GETT_COPY4, eini_gett_swap4)
EINI_GETT_PACK_SAME(eini_gett_pack8, EINI_GETT_NONE, eini_gett_8, 2, EINI_GETT_COPY2,
                    eini_gett_swap8)
EINI_GETT_PACK_SAME(eini_gett_pack16, EINI_GETT_NONE, eini_gett_16, 2, EINI_GETT_COPY2,
                    eini_gett_swap16)

#if EINI_CPU_X86
EINI_T512 EINI_INLINE void eini_gett_swap_zd(const eini_gett_8d *s, const int64_t *r,
                                             const int64_t *c, eini_gett_8d *d,
                                             const int64_t *o) {
  (void)c;
  const __m512d a0 = _mm512_loadu_pd(s + r[0]), a1 = _mm512_loadu_pd(s + r[1]),
                a2 = _mm512_loadu_pd(s + r[2]), a3 = _mm512_loadu_pd(s + r[3]),
                a4 = _mm512_loadu_pd(s + r[4]), a5 = _mm512_loadu_pd(s + r[5]),
                a6 = _mm512_loadu_pd(s + r[6]), a7 = _mm512_loadu_pd(s + r[7]);
  const __m512d b0 = _mm512_unpacklo_pd(a0, a1), b1 = _mm512_unpackhi_pd(a0, a1),
                b2 = _mm512_unpacklo_pd(a2, a3), b3 = _mm512_unpackhi_pd(a2, a3),
                b4 = _mm512_unpacklo_pd(a4, a5), b5 = _mm512_unpackhi_pd(a4, a5),
                b6 = _mm512_unpacklo_pd(a6, a7), b7 = _mm512_unpackhi_pd(a6, a7);
  // b: pairs of rows at columns 0 2 4 6 (even) and 1 3 5 7 (odd); then fours of rows, then all.
  const __m512d c0 = _mm512_shuffle_f64x2(b0, b2, 0x88), c1 = _mm512_shuffle_f64x2(b1, b3, 0x88),
                c2 = _mm512_shuffle_f64x2(b0, b2, 0xdd), c3 = _mm512_shuffle_f64x2(b1, b3, 0xdd),
                c4 = _mm512_shuffle_f64x2(b4, b6, 0x88), c5 = _mm512_shuffle_f64x2(b5, b7, 0x88),
                c6 = _mm512_shuffle_f64x2(b4, b6, 0xdd), c7 = _mm512_shuffle_f64x2(b5, b7, 0xdd);
  _mm512_storeu_pd(d + o[0], _mm512_shuffle_f64x2(c0, c4, 0x88));
  _mm512_storeu_pd(d + o[1], _mm512_shuffle_f64x2(c1, c5, 0x88));
  _mm512_storeu_pd(d + o[2], _mm512_shuffle_f64x2(c2, c6, 0x88));
  _mm512_storeu_pd(d + o[3], _mm512_shuffle_f64x2(c3, c7, 0x88));
  _mm512_storeu_pd(d + o[4], _mm512_shuffle_f64x2(c0, c4, 0xdd));
  _mm512_storeu_pd(d + o[5], _mm512_shuffle_f64x2(c1, c5, 0xdd));
  _mm512_storeu_pd(d + o[6], _mm512_shuffle_f64x2(c2, c6, 0xdd));
  _mm512_storeu_pd(d + o[7], _mm512_shuffle_f64x2(c3, c7, 0xdd));
}

// Eight T of four bytes each, as LOAD(s, c) makes them, from each of eight rows.
#define EINI_GETT_SWAP8(NAME, S, T, LOAD)                                                        \
  EINI_T512 EINI_INLINE void NAME(const S *s, const int64_t *r, const int64_t *c, T *to,         \
                                  const int64_t *o) {                                            \
    float *d = (float *)(void *)to;                                                              \
    (void)c;                                                                                     \
    const __m256 a0 = LOAD(s + r[0], c), a1 = LOAD(s + r[1], c), a2 = LOAD(s + r[2], c),         \
                 a3 = LOAD(s + r[3], c), a4 = LOAD(s + r[4], c), a5 = LOAD(s + r[5], c),         \
                 a6 = LOAD(s + r[6], c), a7 = LOAD(s + r[7], c);                                 \
    const __m256 b0 = _mm256_unpacklo_ps(a0, a1), b1 = _mm256_unpackhi_ps(a0, a1),               \
                 b2 = _mm256_unpacklo_ps(a2, a3), b3 = _mm256_unpackhi_ps(a2, a3),               \
                 b4 = _mm256_unpacklo_ps(a4, a5), b5 = _mm256_unpackhi_ps(a4, a5),               \
                 b6 = _mm256_unpacklo_ps(a6, a7), b7 = _mm256_unpackhi_ps(a6, a7);               \
    const __m256 c0 = _mm256_shuffle_ps(b0, b2, 0x44), c1 = _mm256_shuffle_ps(b0, b2, 0xee),     \
                 c2 = _mm256_shuffle_ps(b1, b3, 0x44), c3 = _mm256_shuffle_ps(b1, b3, 0xee),     \
                 c4 = _mm256_shuffle_ps(b4, b6, 0x44), c5 = _mm256_shuffle_ps(b4, b6, 0xee),     \
                 c6 = _mm256_shuffle_ps(b5, b7, 0x44), c7 = _mm256_shuffle_ps(b5, b7, 0xee);     \
    _mm256_storeu_ps(d + o[0], _mm256_permute2f128_ps(c0, c4, 0x20));                            \
    _mm256_storeu_ps(d + o[1], _mm256_permute2f128_ps(c1, c5, 0x20));                            \
    _mm256_storeu_ps(d + o[2], _mm256_permute2f128_ps(c2, c6, 0x20));                            \
    _mm256_storeu_ps(d + o[3], _mm256_permute2f128_ps(c3, c7, 0x20));                            \
    _mm256_storeu_ps(d + o[4], _mm256_permute2f128_ps(c0, c4, 0x31));                            \
    _mm256_storeu_ps(d + o[5], _mm256_permute2f128_ps(c1, c5, 0x31));                            \
    _mm256_storeu_ps(d + o[6], _mm256_permute2f128_ps(c2, c6, 0x31));                            \
    _mm256_storeu_ps(d + o[7], _mm256_permute2f128_ps(c3, c7, 0x31));                            \
  }

// The same of four.
#define EINI_GETT_SWAP4(NAME, S, T, LOAD)                                                        \
  EINI_T256 EINI_INLINE void NAME(const S *s, const int64_t *r, const int64_t *c, T *to,         \
                                  const int64_t *o) {                                            \
    float *d = (float *)(void *)to;                                                              \
    __m128 a0 = LOAD(s + r[0], c), a1 = LOAD(s + r[1], c), a2 = LOAD(s + r[2], c),               \
           a3 = LOAD(s + r[3], c);                                                               \
    (void)c;                                                                                     \
    _MM_TRANSPOSE4_PS(a0, a1, a2, a3);                                                           \
    _mm_storeu_ps(d + o[0], a0);                                                                 \
    _mm_storeu_ps(d + o[1], a1);                                                                 \
    _mm_storeu_ps(d + o[2], a2);                                                                 \
    _mm_storeu_ps(d + o[3], a3);                                                                 \
  }
#define EINI_GETT_LOAD_ZS(s, c) _mm256_loadu_ps(s)
#define EINI_GETT_LOAD_YS(s, c) _mm_loadu_ps(s)
EINI_GETT_SWAP8(eini_gett_swap_zs, float, float, EINI_GETT_LOAD_ZS)
EINI_GETT_SWAP4(eini_gett_swap_ys, float, float, EINI_GETT_LOAD_YS)

#define EINI_GETT_LOAD_YD(s) _mm256_loadu_pd((const double *)(const void *)(s))
#define EINI_GETT_SAVE_YD(d, v) _mm256_storeu_pd((double *)(void *)(d), v)
EINI_T256 EINI_INLINE void eini_gett_swap_yd(const eini_gett_8d *s, const int64_t *r,
                                             const int64_t *c, eini_gett_8d *d,
                                             const int64_t *o) {
  (void)c;
  const __m256d a0 = EINI_GETT_LOAD_YD(s + r[0]), a1 = EINI_GETT_LOAD_YD(s + r[1]),
                a2 = EINI_GETT_LOAD_YD(s + r[2]), a3 = EINI_GETT_LOAD_YD(s + r[3]);
  const __m256d b0 = _mm256_unpacklo_pd(a0, a1), b1 = _mm256_unpackhi_pd(a0, a1),
                b2 = _mm256_unpacklo_pd(a2, a3), b3 = _mm256_unpackhi_pd(a2, a3);
  EINI_GETT_SAVE_YD(d + o[0], _mm256_permute2f128_pd(b0, b2, 0x20));
  EINI_GETT_SAVE_YD(d + o[1], _mm256_permute2f128_pd(b1, b3, 0x20));
  EINI_GETT_SAVE_YD(d + o[2], _mm256_permute2f128_pd(b0, b2, 0x31));
  EINI_GETT_SAVE_YD(d + o[3], _mm256_permute2f128_pd(b1, b3, 0x31));
}

#define EINI_GETT_COPY_ZD(d, s, c) _mm512_storeu_pd(d, _mm512_loadu_pd(s))
#define EINI_GETT_COPY_ZS(d, s, c) _mm256_storeu_ps(d, _mm256_loadu_ps(s))
#define EINI_GETT_COPY_YD(d, s, c) EINI_GETT_SAVE_YD(d, EINI_GETT_LOAD_YD(s))
#define EINI_GETT_COPY_YS(d, s, c) _mm_storeu_ps(d, _mm_loadu_ps(s))
EINI_GETT_PACK_SAME(eini_gett_pack_zd, EINI_T512, eini_gett_8d, 8, EINI_GETT_COPY_ZD,
                    eini_gett_swap_zd)
EINI_GETT_PACK_SAME(eini_gett_pack_zs, EINI_T512, float, 8, EINI_GETT_COPY_ZS, eini_gett_swap_zs)
EINI_GETT_PACK_SAME(eini_gett_pack_yd, EINI_T256, eini_gett_8d, 4, EINI_GETT_COPY_YD,
                    eini_gett_swap_yd)
EINI_GETT_PACK_SAME(eini_gett_pack_ys, EINI_T256, float, 4, EINI_GETT_COPY_YS, eini_gett_swap_ys)
#elif EINI_CPU_NEON
EINI_INLINE void eini_gett_swap_nd(const eini_gett_8d *s, const int64_t *r, const int64_t *c,
                                   eini_gett_8d *d, const int64_t *o) {
  (void)c;
  const float64x2_t a = vld1q_f64((const double *)(const void *)(s + r[0])),
                    b = vld1q_f64((const double *)(const void *)(s + r[1]));
  vst1q_f64((double *)(void *)(d + o[0]), vzip1q_f64(a, b));
  vst1q_f64((double *)(void *)(d + o[1]), vzip2q_f64(a, b));
}

EINI_INLINE void eini_gett_swap_ns(const float *s, const int64_t *r, const int64_t *c, float *d,
                                   const int64_t *o) {
  (void)c;
  const float32x4_t a0 = vld1q_f32(s + r[0]), a1 = vld1q_f32(s + r[1]),
                    a2 = vld1q_f32(s + r[2]), a3 = vld1q_f32(s + r[3]);
  const float32x4_t b0 = vzip1q_f32(a0, a2), b1 = vzip2q_f32(a0, a2),  // pairs of columns
                    b2 = vzip1q_f32(a1, a3), b3 = vzip2q_f32(a1, a3);
  vst1q_f32(d + o[0], vzip1q_f32(b0, b2));
  vst1q_f32(d + o[1], vzip2q_f32(b0, b2));
  vst1q_f32(d + o[2], vzip1q_f32(b1, b3));
  vst1q_f32(d + o[3], vzip2q_f32(b1, b3));
}

#define EINI_GETT_COPY_ND(d, s, c) \
  vst1q_f64((double *)(void *)(d), vld1q_f64((const double *)(const void *)(s)))
#define EINI_GETT_COPY_NS(d, s, c) vst1q_f32(d, vld1q_f32(s))
EINI_GETT_PACK_SAME(eini_gett_pack_nd, EINI_GETT_NONE, eini_gett_8d, 2, EINI_GETT_COPY_ND,
                    eini_gett_swap_nd)
EINI_GETT_PACK_SAME(eini_gett_pack_ns, EINI_GETT_NONE, float, 4, EINI_GETT_COPY_NS,
                    eini_gett_swap_ns)
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#define EINI_KERNELS EINI_KERNELS_COMPLEX
#define EINI_VEC EINI_PD
#include EINSUM_CPU_FILE
#define EINI_VEC EINI_PS
#include EINSUM_CPU_FILE
#undef EINI_KERNELS

// Rows of a panel of so many k that a tile multiplies.
static int64_t eini_gett_rows(const eini_gett_kit *kit, int64_t nk) {
  return eini_up((nk + kit->group - 1) / kit->group, kit->round);
}

// The shape of a tile in reals.
static void eini_gett_shape(eini_gett_kit *k, int w, int nv, int nu) {
  k->w = w, k->nv = nv, k->nu = nu;
}

// Sums that are only scaled are stored as others are, and scaled there.
static int eini_gett_plain(const ein_contract *c, const eini_gett_kit *k) {
  return c->plain_out || (c->scaled && c->nextra == 0 && k->by != NULL && k->parts == 1);
}

static void eini_gett_kit_f64(int isa, ein_pair pair, eini_gett_kit *k) {
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) eini_gett_kit_zd(pair, k);
  else if (isa == EINI_ISA_AVX2) eini_gett_kit_yd(pair, k);
  else eini_gett_kit_pd(pair, k);
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) eini_gett_kit_nd(pair, k);
  else eini_gett_kit_pd(pair, k);
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
  eini_gett_kit_pd(pair, k);
#endif
}

static void eini_gett_kit_f32(int isa, ein_pair pair, eini_gett_kit *k) {
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) eini_gett_kit_zs(pair, k);
  else if (isa == EINI_ISA_AVX2) eini_gett_kit_ys(pair, k);
  else eini_gett_kit_ps(pair, k);
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) eini_gett_kit_ns(pair, k);
  else eini_gett_kit_ps(pair, k);
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
  eini_gett_kit_ps(pair, k);
#endif
}

// Of integers vectors have sums of products; the other pairs are plain C's.
static void eini_gett_kit_int(int isa, int wide, ein_pair pair, eini_gett_kit *k) {
  k->size = wide ? 8 : 4;
  if (wide) eini_gett_kit_pl(pair, k);
  else eini_gett_kit_pi(pair, k);
  if (pair != EIN_PAIR_SUM_MUL) return;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512 && wide) eini_gett_kit_zl(pair, k);
  else if (isa == EINI_ISA_AVX512) eini_gett_kit_zi(pair, k);
  else if (isa == EINI_ISA_AVX2 && !wide) eini_gett_kit_yi(pair, k);
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON && !wide) eini_gett_kit_ni(pair, k);
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

// Packing functions and granules, once the shape of the tile is known.
static void eini_gett_kit_pack(int isa, ein_dtype type, eini_gett_kit *k) {
  k->pack_v = k->pack_u = k->size == 1   ? eini_gett_pack1
                          : k->size == 4 ? eini_gett_pack4
                          : k->size == 8 ? eini_gett_pack8
                                         : eini_gett_pack16;
  k->gv = k->gu = k->size < 8 ? 4 : 2;
  k->times = type == EIN_F64    ? eini_gett_times_pd
             : type == EIN_F32  ? eini_gett_times_ps
             : type == EIN_I64  ? eini_gett_times_pl
             : type == EIN_I32  ? eini_gett_times_pi
             : type == EIN_C128 ? eini_gett_times_complex_pd
             : type == EIN_C64  ? eini_gett_times_complex_ps
                                : NULL;
#if EINI_CPU_X86
  if (isa != EINI_ISA_AVX512 && isa != EINI_ISA_AVX2) return;
  const eini_gett_pack_fn y = k->size == 4   ? eini_gett_pack_ys
                              : k->size == 8 ? eini_gett_pack_yd
                                             : NULL;
  const eini_gett_pack_fn z = k->size == 4   ? eini_gett_pack_zs
                              : k->size == 8 ? eini_gett_pack_zd
                                             : NULL;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->w % 8 == 0) k->pack_v = z, k->gv = 8;
  else if (y != NULL && k->w % 4 == 0) k->pack_v = y, k->gv = 4;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->nu % 8 == 0) k->pack_u = z, k->gu = 8;
  else if (y != NULL && k->nu % 4 == 0) k->pack_u = y, k->gu = 4;
  if (type == EIN_F64) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zd : eini_gett_times_yd;
  if (type == EIN_F32) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zs : eini_gett_times_ys;
#elif EINI_CPU_NEON
  if (isa != EINI_ISA_NEON) return;
  if (k->size == 4) k->pack_v = k->pack_u = eini_gett_pack_ns;  // (granules are as in plain C)
  if (k->size == 8) k->pack_v = k->pack_u = eini_gett_pack_nd;
  if (type == EIN_F64) k->times = eini_gett_times_nd;
  if (type == EIN_F32) k->times = eini_gett_times_ns;
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

static int eini_gett_pick(const eini_cpu *cpu, ein_dtype type, ein_pair pair, eini_gett_kit *k) {
  memset(k, 0, sizeof *k);
  k->isa = cpu->isa, k->type = (int)type;
  k->group = k->round = 1;
  k->parts = type == EIN_C64 || type == EIN_C128 ? 2 : 1;
  if (k->parts == 2 && pair != EIN_PAIR_SUM_MUL) return 0;
  if (type == EIN_BOOL) {
    if (pair == EIN_PAIR_ANY_AND) eini_gett_kit_pb(EIN_PAIR_SUM_MUL, k);
    k->size = 1;
  } else if (type == EIN_F64 || type == EIN_C128) {
    eini_gett_kit_f64(cpu->isa, pair, k);
    k->size = 8 * k->parts;
  } else if (type == EIN_F32 || type == EIN_C64) {
    eini_gett_kit_f32(cpu->isa, pair, k);
    k->size = 4 * k->parts;
  } else if (type == EIN_I64 || type == EIN_I32) {
    eini_gett_kit_int(cpu->isa, type == EIN_I64, pair, k);
  }
  if (k->tile == NULL) return 0;
  k->w /= k->parts, k->nu /= k->parts;
  const int ints = type == EIN_I32 || type == EIN_I64;
  k->cols = pair != EIN_PAIR_SUM_MUL ? k->nu : ints ? 4 : 1;
  eini_gett_kit_pack(cpu->isa, type, k);
  return 1;
}
