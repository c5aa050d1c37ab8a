// ================================================================================================
// >>contract-kernels  register tiles, packing, dot, axpy and small products, per element type
// Takes packed panels or strided elements of one compute dtype; gives the table of kernels.
// ================================================================================================

// Vectors, shorter ones for small products, and elements, at any address; other compilers than gcc
// and clang get vectors of one element.
#if defined(__AVX512F__)
#define EINI_VECTOR 64
#elif defined(__AVX__)
#define EINI_VECTOR 32
#else
#define EINI_VECTOR 16
#endif
#define EINI_SHORT (EINI_VECTOR > 32 ? 32 : EINI_VECTOR)
#if defined(__GNUC__) || defined(__clang__)
#define EINI_VECTORS(name, T)                                                                     \
  typedef T eini_v_##name __attribute__((vector_size(EINI_VECTOR), aligned(1), may_alias));       \
  typedef T eini_w_##name __attribute__((vector_size(EINI_SHORT), aligned(1), may_alias));        \
  typedef T eini_u_##name __attribute__((aligned(1), may_alias));
#else
#define EINI_VECTORS(name, T) typedef T eini_v_##name, eini_w_##name, eini_u_##name;
#endif
EINI_VECTORS(f32, float)
EINI_VECTORS(f64, double)
EINI_VECTORS(i32, uint32_t)  // integers are instantiated unsigned, so that they wrap
EINI_VECTORS(i64, uint64_t)

// A tile has EINI_R rows of two vectors: 12 sums fit 16 registers. A tile of complex numbers has
// one vector of real and one of imaginary parts in each row.
#define EINI_R 6
#define EINI_4(X, V) X(V, 0) X(V, 1) X(V, 2) X(V, 3)
#define EINI_6(X, V) EINI_4(X, V) X(V, 4) X(V, 5)
#define EINI_ZERO(V, i) V x##i = {0}, y##i = {0};
#define EINI_LOAD(V, i) x##i = t[2 * i], y##i = t[2 * i + 1];
#define EINI_STORE(V, i) t[2 * i] = x##i, t[2 * i + 1] = y##i;
#define EINI_FMA(V, i) x##i += a[i] * b0, y##i += a[i] * b1;
#define EINI_FMA2(V, i)                                                                           \
  x##i += a[i] * b0, x##i -= a[EINI_R + i] * b1;                                                  \
  y##i += a[i] * b1, y##i += a[EINI_R + i] * b0;
#define EINI_SMALL_FMA(V, i) x##i += p##i[k * pk] * b0, y##i += p##i[k * pk] * b1;
#define EINI_SMALL_ROW(U, i) const U *p##i = p + row[i] * s->pm;
#define EINI_SMALL_STORE(W, i) *(W *)(o + row[i] * om) = x##i, *(W *)(o + row[i] * om + c) = y##i;

#define EINI_KC 192        // block of k: a panel of Q is half of a first-level cache
#define EINI_NC 512        // columns of a packed block of Q, of 4-byte elements at least
#define EINI_MC 504        // rows of sums kept between blocks of k; a multiple of EINI_R
#define EINI_ACROSS 48     // k up to which tiles go along the rows of the output

// A contract of at most one axis per group, for the small path. Strides are in elements.
typedef struct eini_small {
  int64_t m, n, k, pm, pk, qk, qn, om, on;
  int psign, qsign;  // -1: conjugated
} eini_small;

static int eini_consecutive(const int64_t *t, int64_t n) {  // are the offsets consecutive?
  int64_t i = 1;
  while (i < n && t[i] == t[0] + i) i++;
  return i >= n;
}

// tile[i,j] (+)= sum over p of a[p,i] * b[p,j]; complex: tile[i,re/im,j], a[p,re/im,i], b alike
#define EINI_TILE(fn, T, V, FMA, planes)                                                          \
  EINI_UNUSED static void fn(int64_t kc, const void *ap, const void *bp, void *tile, int load) {  \
    const T *a = (const T *)ap;                                                                   \
    const V *b = (const V *)bp;                                                                   \
    V *t = (V *)tile;                                                                             \
    EINI_6(EINI_ZERO, V)                                                                          \
    if (load) { EINI_6(EINI_LOAD, V) }                                                            \
    for (; kc > 0; kc--, a += EINI_R * (planes), b += 2) {                                        \
      const V b0 = b[0], b1 = b[1];                                                               \
      EINI_6(FMA, V)                                                                              \
    }                                                                                             \
    EINI_6(EINI_STORE, V)                                                                         \
  }

// pack:   dst[p,i] = src[row[i] + k[p]]; two planes: dst[p,re/im,i], imaginary parts times sign
// unpack: out[on[i]] = tile[i], or tile[re/im,i]; on NULL: out[i]
// dot:    sum += the sum of a[i] * x[i]
// axpy:   y[i] += sum over p of a[i + k[p]] * x[p], in this order; n a multiple of the vector
// turn:   re, im: coefficients that give both parts of z * x, or of conj(z) * x, as sums over z
// small:  out[m,n] = sum over k of p[m,k] * q[k,n]; tiles where columns are next to each other, the
//         last ones overlap those before
// scale:  out[on[i]] = alpha * x[i] + beta * y[yn[i]]; on, yn NULL: i; beta NULL: y is not read
#define EINI_KERNELS(name, T, U, V, W)                                                            \
  EINI_TILE(eini_kernel1_##name, T, V, EINI_FMA, 1)                                               \
  EINI_TILE(eini_kernel2_##name, T, V, EINI_FMA2, 2)                                              \
  static void eini_pack_##name(const char *src, const int64_t *row, int64_t width,                \
                               const int64_t *k, int64_t kc, int planes, int sign, void *dst) {   \
    const U *s = (const U *)src;                                                                  \
    T *d = (T *)dst;                                                                              \
    if (planes == 1 && width > 1 && eini_consecutive(row, width)) {                               \
      const size_t bytes = (size_t)width * sizeof(T);                                             \
      for (int64_t p = 0; p < kc; p++, d += width) memcpy(d, s + row[0] + k[p], bytes);           \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t i = 0; i < width; i++) {                                                         \
      T *o = d + i;                                                                               \
      for (int64_t p = 0; p < kc; p++, o += planes * width) {                                     \
        const U *z = s + planes * (row[i] + k[p]);                                                \
        o[0] = z[0];                                                                              \
        if (planes == 2) o[width] = (T)sign * z[1];                                               \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void eini_unpack_##name(const void *tile, int64_t n, int64_t plane, int planes,          \
                                 char *dst, const int64_t *on) {                                  \
    const T *t = (const T *)tile;                                                                 \
    const int plain = planes == 1 && on == NULL;                                                  \
    if (plain) memcpy(dst, t, (size_t)n * sizeof(T));                                             \
    for (int64_t i = plain ? n : 0; i < n; i++) {                                                 \
      U *o = (U *)dst + planes * (on == NULL ? i : on[i]);                                        \
      o[0] = t[i];                                                                                \
      if (planes == 2) o[1] = t[plane + i];                                                       \
    }                                                                                             \
  }                                                                                               \
  static void eini_scale_##name(int64_t n, int planes, const void *alpha, const void *beta,       \
                                const void *xp, const char *yp, const int64_t *yn, char *out,     \
                                const int64_t *on) {                                              \
    enum { L = (int)(sizeof(V) / sizeof(T)) };                                                    \
    const U *x = (const U *)xp, *y = (const U *)yp, *a = (const U *)alpha, *b = (const U *)beta;  \
    U *o = (U *)out;                                                                              \
    int64_t i = 0;                                                                                \
    if (planes == 1) {                                                                            \
      const T ar = a == NULL ? (T)1 : a[0], br = b == NULL ? (T)0 : b[0];                         \
      const int even = n >= L && (on == NULL || eini_consecutive(on, n)) &&                       \
                       (b == NULL || yn == NULL || eini_consecutive(yn, n));                      \
      const U *c = b != NULL && even ? y + (yn == NULL ? 0 : yn[0]) : x;                          \
      for (U *d = even && on != NULL ? o + on[0] : o; even && i + L <= n; i += L) {               \
        const V z = *(const V *)(x + i) * ar;                                                     \
        if (b == NULL) *(V *)(d + i) = z;                                                         \
        else *(V *)(d + i) = z + *(const V *)(c + i) * br;                                        \
      }                                                                                           \
      for (; i < n; i++) {                                                                        \
        U *d = o + (on == NULL ? i : on[i]);                                                      \
        *d = b == NULL ? ar * x[i] : ar * x[i] + br * y[yn == NULL ? i : yn[i]];                  \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    for (; i < n; i++) {                                                                          \
      T re = x[2 * i], im = x[2 * i + 1];                                                         \
      U *d = o + 2 * (on == NULL ? i : on[i]);                                                    \
      if (a != NULL) re = a[0] * x[2 * i] - a[1] * im, im = a[0] * im + a[1] * x[2 * i];          \
      if (b != NULL) {                                                                            \
        const U *c = y + 2 * (yn == NULL ? i : yn[i]);                                            \
        re += b[0] * c[0] - b[1] * c[1], im += b[0] * c[1] + b[1] * c[0];                         \
      }                                                                                           \
      d[0] = re, d[1] = im;                                                                       \
    }                                                                                             \
  }                                                                                               \
  static void eini_dot_##name(int64_t n, const char *ap, const void *xp, void *sum) {             \
    enum { L = (int)(sizeof(V) / sizeof(T)) };                                                    \
    const U *a = (const U *)ap;                                                                   \
    const T *x = (const T *)xp;                                                                   \
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                                     \
    T lane[L], r = 0;                                                                             \
    for (; n >= 4 * L; n -= 4 * L, a += 4 * L, x += 4 * L) {                                      \
      s0 += *(const V *)a * *(const V *)x, s1 += *(const V *)(a + L) * *(const V *)(x + L);       \
      s2 += *(const V *)(a + 2 * L) * *(const V *)(x + 2 * L);                                    \
      s3 += *(const V *)(a + 3 * L) * *(const V *)(x + 3 * L);                                    \
    }                                                                                             \
    for (int64_t i = 0; i < n; i++) r += a[i] * x[i];                                             \
    s0 += s1, s2 += s3, s0 += s2;                                                                 \
    memcpy(lane, &s0, sizeof lane);                                                               \
    for (int l = 0; l < L; l++) r += lane[l];                                                     \
    *(T *)sum += r;                                                                               \
  }                                                                                               \
  static void eini_axpy_##name(int64_t n, const char *ap, const int64_t *k, int64_t kc,           \
                               const void *xp, void *y) {                                         \
    const U *a = (const U *)ap;                                                                   \
    const T *x = (const T *)xp;                                                                   \
    V *s = (V *)y;                                                                                \
    n /= (int64_t)(sizeof(V) / sizeof(T));                                                        \
    for (; kc >= 4; kc -= 4, k += 4, x += 4) {                                                    \
      const V *a0 = (const V *)(a + k[0]), *a1 = (const V *)(a + k[1]);                           \
      const V *a2 = (const V *)(a + k[2]), *a3 = (const V *)(a + k[3]);                           \
      const T x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];                                         \
      for (int64_t i = 0; i < n; i++) {                                                           \
        s[i] = (((s[i] + a0[i] * x0) + a1[i] * x1) + a2[i] * x2) + a3[i] * x3;                    \
      }                                                                                           \
    }                                                                                             \
    for (; kc > 0; kc--, k++, x++) {                                                              \
      for (int64_t i = 0; i < n; i++) s[i] += ((const V *)(a + k[0]))[i] * x[0];                  \
    }                                                                                             \
  }                                                                                               \
  static void eini_turn_##name(int64_t n, const void *xp, int conj, void *rp, void *ip) {         \
    const T *x = (const T *)xp, sign = conj ? (T)1 : (T)-1;                                       \
    T *re = (T *)rp, *im = (T *)ip;                                                               \
    for (n *= 2; n > 0; n -= 2, re += 2, im += 2, x += 2) {                                       \
      re[0] = x[0], re[1] = sign * x[1], im[0] = x[1], im[1] = -sign * x[0];                      \
    }                                                                                             \
  }                                                                                               \
  static void eini_dots_##name(const eini_small *s, int planes, const U *p, const U *q, U *out) { \
    const T ps = (T)s->psign, qs = (T)s->qsign;                                                   \
    const int64_t pk = planes * s->pk, qk = planes * s->qk;                                       \
    for (int64_t i = 0; i < s->m; i++) {                                                          \
      for (int64_t j = 0; j < s->n; j++) {                                                        \
        const U *a = p + planes * i * s->pm, *b = q + planes * j * s->qn;                         \
        U *o = out + planes * (i * s->om + j * s->on);                                            \
        T re = 0, im = 0;                                                                         \
        for (int64_t k = 0; k < s->k; k++, a += pk, b += qk) {                                    \
          re += a[0] * b[0];                                                                      \
          if (planes == 1) continue;                                                              \
          re -= ps * a[1] * (qs * b[1]);                                                          \
          im += a[0] * (qs * b[1]), im += ps * a[1] * b[0];                                       \
        }                                                                                         \
        o[0] = re;                                                                                \
        if (planes == 2) o[1] = im;                                                               \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void eini_small_##name(const eini_small *s, int planes, const char *pp, const char *qp,  \
                                char *op) {                                                       \
    enum { L = (int)(sizeof(W) / sizeof(T)) };                                                    \
    const U *p = (const U *)pp, *q = (const U *)qp;                                               \
    const int64_t m = s->m, n = s->n, pk = s->pk, om = s->om;                                     \
    if (planes == 2 || n < L || s->qn != 1 || s->on != 1) {                                       \
      eini_dots_##name(s, planes, p, q, (U *)op);                                                 \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t i = 0; i < m; i += 4) {                                                          \
      const int64_t row[4] = {i, eini_min64(i + 1, m - 1), eini_min64(i + 2, m - 1),              \
                              eini_min64(i + 3, m - 1)};                                          \
      EINI_4(EINI_SMALL_ROW, U)                                                                   \
      for (int64_t j = 0; j < n; j += 2 * L) {                                                    \
        const int64_t c = eini_min64(L, n - L), j0 = eini_min64(j, n - L - c);                    \
        const U *b = q + j0;                                                                      \
        U *o = (U *)op + j0;                                                                      \
        EINI_4(EINI_ZERO, W)                                                                      \
        for (int64_t k = 0; k < s->k; k++, b += s->qk) {                                          \
          const W b0 = *(const W *)b, b1 = *(const W *)(b + c);                                   \
          EINI_4(EINI_SMALL_FMA, W)                                                               \
        }                                                                                         \
        EINI_4(EINI_SMALL_STORE, W)                                                               \
      }                                                                                           \
    }                                                                                             \
  }

EINI_KERNELS(f32, float, eini_u_f32, eini_v_f32, eini_w_f32)
EINI_KERNELS(f64, double, eini_u_f64, eini_v_f64, eini_w_f64)
EINI_KERNELS(i32, uint32_t, eini_u_i32, eini_v_i32, eini_w_i32)
EINI_KERNELS(i64, uint64_t, eini_u_i64, eini_v_i64, eini_w_i64)
#undef EINI_KERNELS
#undef EINI_TILE

// Kernels of one compute dtype. size: bytes of a real; an element has `planes` of them.
typedef struct eini_ckern {
  int size, planes, lanes, nr;  // reals per vector, columns of a tile
  void (*kernel)(int64_t kc, const void *a, const void *b, void *tile, int load);
  void (*pack)(const char *src, const int64_t *row, int64_t width, const int64_t *k, int64_t kc,
               int planes, int sign, void *dst);
  void (*unpack)(const void *tile, int64_t n, int64_t plane, int planes, char *out,
                 const int64_t *on);
  void (*scale)(int64_t n, int planes, const void *alpha, const void *beta, const void *x,
                const char *y, const int64_t *yn, char *out, const int64_t *on);
  void (*dot)(int64_t n, const char *a, const void *x, void *sum);
  void (*axpy)(int64_t n, const char *a, const int64_t *k, int64_t kc, const void *x, void *y);
  void (*turn)(int64_t n, const void *x, int conj, void *re, void *im);
  void (*small)(const eini_small *s, int planes, const char *p, const char *q, char *out);
} eini_ckern;

#define EINI_CKERN(name, T, planes)                                                               \
  {(int)sizeof(T), planes, (int)(sizeof(eini_v_##name) / sizeof(T)),                              \
   (int)(2 / (planes) * sizeof(eini_v_##name) / sizeof(T)), eini_kernel##planes##_##name,         \
   eini_pack_##name, eini_unpack_##name, eini_scale_##name, eini_dot_##name, eini_axpy_##name,    \
   eini_turn_##name, eini_small_##name}
static const eini_ckern eini_ckerns[6] = {
    EINI_CKERN(i32, uint32_t, 1), EINI_CKERN(i64, uint64_t, 1), EINI_CKERN(f32, float, 1),
    EINI_CKERN(f64, double, 1), EINI_CKERN(f32, float, 2), EINI_CKERN(f64, double, 2)};

static const eini_ckern *eini_ckern_of(ein_dtype t) {
  return &eini_ckerns[t <= EIN_I64 ? t - EIN_I32 : 2 + (t - EIN_F32)];
}
