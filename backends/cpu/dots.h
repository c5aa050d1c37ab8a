// ================================================================================================
// >>dots  sums of the lanes of vectors
// And rows of dot products that end with them, per instruction set and real type as in direct.
// ================================================================================================

// The sum of n values d apart, as a tree.
#define EINI_DIR_SUM2(p, d) ((p)[0] + (p)[d])
#define EINI_DIR_SUM4(p, d) (EINI_DIR_SUM2(p, d) + EINI_DIR_SUM2((p) + 2 * (d), d))
#define EINI_DIR_SUM8(p, d) (EINI_DIR_SUM4(p, d) + EINI_DIR_SUM4((p) + 4 * (d), d))
#define EINI_DIR_SUM16(p, d) (EINI_DIR_SUM8(p, d) + EINI_DIR_SUM8((p) + 8 * (d), d))
#define EINI_DIR_FOLD(fn, S)                                                                       \
  EINI_INLINE S##_T fn##_sum(int n, const S##_T *p, int d) {                                   \
    return n == 16  ? EINI_DIR_SUM16(p, d)                                                         \
           : n == 8 ? EINI_DIR_SUM8(p, d)                                                          \
           : n == 4 ? EINI_DIR_SUM4(p, d)                                                          \
           : n == 2 ? EINI_DIR_SUM2(p, d)                                                          \
                    : p[0];                                                                        \
  }                                                                                                \
  static void fn(int rows, int planes, const void *p1, const void *p2, int ca, int cx, void *yp) { \
    const S##_T *s1 = (const S##_T *)p1, *s2 = (const S##_T *)p2;                                  \
    S##_T *y = (S##_T *)yp;                                                                        \
    for (int i = 0; i < rows; i++, s1 += S##_N, s2 += S##_N) {                                     \
      if (planes == 1) {                                                                           \
        y[i] += fn##_sum(S##_N, s1, 1);                                                            \
      } else {                                                                                     \
        const S##_T a = fn##_sum(S##_N / 2, s1, 2), b = fn##_sum(S##_N / 2, s1 + 1, 2);            \
        const S##_T c = fn##_sum(S##_N / 2, s2, 2), d = fn##_sum(S##_N / 2, s2 + 1, 2);            \
        y[2 * i] += ca != cx ? a + b : a - b;                                                      \
        y[2 * i + 1] += (cx ? 0 - c : c) + (ca ? 0 - d : d);                                       \
      }                                                                                            \
    }                                                                                              \
  }

// fn(v, y): y[i] is the sum of the lanes of v[i] for as many i as there are lanes, in the order of
// EINI_DIR_FOLD: pairs of vectors are added lane by lane until each lane has the sum of one.
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
// Lane l of every other g lanes of a, from lane h on, and of b, in turn.
#define EINI_DIR_LANE(l, g, N, h) \
  ((l) % (2 * (g)) < (g) ? 0 : (N)) + (l) / (2 * (g)) * 2 * (g) + (l) % (g) + (h)
#define EINI_DIR_LANES4(l, g, N, h)                             \
  EINI_DIR_LANE(l, g, N, h), EINI_DIR_LANE((l) + 1, g, N, h),   \
      EINI_DIR_LANE((l) + 2, g, N, h), EINI_DIR_LANE((l) + 3, g, N, h)
#define EINI_DIR_LANES_2(g, h) EINI_DIR_LANE(0, g, 2, h), EINI_DIR_LANE(1, g, 2, h)
#define EINI_DIR_LANES_4(g, h) EINI_DIR_LANES4(0, g, 4, h)
#define EINI_DIR_LANES_8(g, h) EINI_DIR_LANES4(0, g, 8, h), EINI_DIR_LANES4(4, g, 8, h)
#define EINI_DIR_LANES_16(g, h)                               \
  EINI_DIR_LANES4(0, g, 16, h), EINI_DIR_LANES4(4, g, 16, h), \
      EINI_DIR_LANES4(8, g, 16, h), EINI_DIR_LANES4(12, g, 16, h)
#define EINI_DIR_PAIR(N, g, i)                                                                \
  w[i] = __builtin_shufflevector(w[2 * (i)], w[2 * (i) + 1], EINI_DIR_LANES_##N(g, 0)) +      \
         __builtin_shufflevector(w[2 * (i)], w[2 * (i) + 1], EINI_DIR_LANES_##N(g, g));
#define EINI_DIR_PAIRS_2(N, g) EINI_DIR_PAIR(N, g, 0) EINI_DIR_PAIR(N, g, 1)
#define EINI_DIR_PAIRS_4(N, g) \
  EINI_DIR_PAIRS_2(N, g) EINI_DIR_PAIR(N, g, 2) EINI_DIR_PAIR(N, g, 3)
#define EINI_DIR_PAIRS_8(N, g)                                         \
  EINI_DIR_PAIRS_4(N, g) EINI_DIR_PAIR(N, g, 4) EINI_DIR_PAIR(N, g, 5) \
  EINI_DIR_PAIR(N, g, 6) EINI_DIR_PAIR(N, g, 7)
#define EINI_DIR_LEVELS_2 EINI_DIR_PAIR(2, 1, 0)
#define EINI_DIR_LEVELS_4 EINI_DIR_PAIRS_2(4, 1) EINI_DIR_PAIR(4, 2, 0)
#define EINI_DIR_LEVELS_8 \
  EINI_DIR_PAIRS_4(8, 1) EINI_DIR_PAIRS_2(8, 2) EINI_DIR_PAIR(8, 4, 0)
#define EINI_DIR_LEVELS_16                                               \
  EINI_DIR_PAIRS_8(16, 1) EINI_DIR_PAIRS_4(16, 2) EINI_DIR_PAIRS_2(16, 4) \
  EINI_DIR_PAIR(16, 8, 0)
#define EINI_DIR_SUMS(fn, S, N)                   \
  EINI_INLINE void fn(const S##_V *v, S##_T *y) { \
    S##_V w[N];                                   \
    for (int i = 0; i < (N); i++) w[i] = v[i];    \
    EINI_DIR_LEVELS_##N                           \
    S##_PUT(y, w[0]);                             \
  }
#else  // no __builtin_shufflevector
#define EINI_DIR_SUMS(fn, S, N) EINI_DIR_SUMS_PLAIN(fn, S)
#endif  // no __builtin_shufflevector
#define EINI_DIR_SUMS_PLAIN(fn, S)                                                         \
  EINI_INLINE void fn(const S##_V *v, S##_T *y) {                                          \
    for (int i = 0; i < S##_N; i++) y[i] = S##_fold_sum(S##_N, (const S##_T *)(v + i), 1); \
  }
#define EINI_DIR_SUMS_NEON_4(fn, S) EINI_DIR_SUMS(fn, S, 4)
#define EINI_DIR_SUMS_NEON_8(fn, S) EINI_DIR_SUMS(fn, S, 2)
#define EINI_DIR_SUMS_AVX2_4(fn, S) EINI_DIR_SUMS(fn, S, 8)
#define EINI_DIR_SUMS_AVX2_8(fn, S) EINI_DIR_SUMS(fn, S, 4)
#define EINI_DIR_SUMS_AVX512_4(fn, S) EINI_DIR_SUMS(fn, S, 16)
#define EINI_DIR_SUMS_AVX512_8(fn, S) EINI_DIR_SUMS(fn, S, 8)

// The same sums as EINI_DIR_DOTS and EINI_DIR_FOLD, without a call per row.
#define EINI_DIR_E(S, i) const S##_T *a##i = a + (g + i < d->rows ? i : 0) * step;
#define EINI_DIR_EPUT(S, i) s.v[g - r + i] = u##i + v##i;
#define EINI_DIR_EVEN(fn, S, R)                                                                  \
  static void fn(const eini_dir_even *d) {                                                       \
    enum { fn##_rows = (int)S##_N > R ? (int)S##_N : R };                                        \
    const int64_t step = d->step, whole = d->len / (2 * S##_N) * (2 * S##_N);                    \
    const S##_T *a = (const S##_T *)d->a, *x = (const S##_T *)d->x;                              \
    S##_T *y = (S##_T *)d->y;                                                                    \
    union { S##_V v[fn##_rows]; S##_T t[(int)fn##_rows * (int)S##_N]; } s;                       \
    for (int64_t r = 0; r < d->rows; r += fn##_rows) {                                           \
      const int64_t to = eini_min64(d->rows, r + fn##_rows);                                     \
      for (int64_t g = r; g < to; g += R, a += R * step) {                                       \
        int64_t l = 0;                                                                           \
        EINI_DIR_##R(EINI_DIR_E, S)                                                              \
        EINI_DIR_##R(EINI_DIR_DZERO, S)                                                          \
        for (; l < whole; l += 2 * S##_N) {                                                      \
          const S##_V b0 = S##_GET(x + l), b1 = S##_GET(x + l + S##_N);                          \
          EINI_DIR_##R(EINI_DIR_DX, S)                                                           \
        }                                                                                        \
        for (; l < d->len; l += S##_N) {                                                         \
          const S##_M m = S##_MASK(d->len - l < S##_N ? d->len - l : (int64_t)S##_N);            \
          const S##_V b0 = S##_GETM(x + l, m);                                                   \
          EINI_DIR_##R(EINI_DIR_DX1, S)                                                          \
        }                                                                                        \
        EINI_DIR_##R(EINI_DIR_EPUT, S)                                                           \
      }                                                                                          \
      if (to - r == fn##_rows) {                                                                 \
        for (int i = 0; i < fn##_rows; i += S##_N) S##_each(s.v + i, y + r + i);                 \
      } else {                                                                                   \
        for (int i = 0; i < to - r; i++) y[r + i] = S##_fold_sum(S##_N, s.t + i * S##_N, 1);     \
      }                                                                                          \
    }                                                                                            \
  }
