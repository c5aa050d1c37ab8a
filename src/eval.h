// ================================================================================================
// >>eval  expressions in vector chunks
// Takes typed expressions; gives straight-line code over chunks of up to EINI_CHUNK values, one
// indirect call per operation and chunk. Chunk buffers are padded to EINI_LANES, so that every
// loop has a constant inner trip count that compilers turn into vector code.
// ================================================================================================

#define EINI_CHUNK 256
#define EINI_LANES 16

// d = op(a, b, c) for n values, n a multiple of EINI_LANES; d is distinct from a, b, c. (restrict
// stands on the parameters: gcc's cheap vectoriser at -O2 does not believe it on locals.)
typedef void (*eini_chunk_fn)(int64_t n, const void *a, const void *b, const void *c, void *d);

#define EINI_CHUNK_OP(name, TA, TD, expr)                                                   \
  static void eini_c_##name(int64_t n, const void *EINI_RESTRICT pa,                        \
                            const void *EINI_RESTRICT pb, const void *EINI_RESTRICT pc,     \
                            void *EINI_RESTRICT pd) {                                       \
    const TA *a = (const TA *)pa, *b = (const TA *)pb;                                      \
    TD *d = (TD *)pd;                                                                       \
    (void)pc;                                                                               \
    (void)b;                                                                                \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const TA x = a[i + j];                                                              \
        d[i + j] = (TD)(expr);                                                              \
      }                                                                                     \
    }                                                                                       \
  }
#define EINI_Y b[i + j]

// Arithmetic; W is the type integers wrap in, T itself for floats.
#define EINI_CHUNK_ARITH(s, T, W)                                                           \
  EINI_CHUNK_OP(add_##s, T, T, (W)x + (W)EINI_Y)                                            \
  EINI_CHUNK_OP(sub_##s, T, T, (W)x - (W)EINI_Y)                                            \
  EINI_CHUNK_OP(mul_##s, T, T, (W)x *(W)EINI_Y)                                             \
  EINI_CHUNK_OP(square_##s, T, T, (W)x *(W)x)
// What every ordered type has.
#define EINI_CHUNK_ORDERED(s, T)                                                            \
  EINI_CHUNK_OP(max_##s, T, T, ((x > EINI_Y) | (x != x)) ? x : EINI_Y)                      \
  EINI_CHUNK_OP(min_##s, T, T, ((x < EINI_Y) | (x != x)) ? x : EINI_Y)                      \
  EINI_CHUNK_OP(lt_##s, T, uint8_t, x < EINI_Y)                                             \
  EINI_CHUNK_OP(le_##s, T, uint8_t, x <= EINI_Y)                                            \
  EINI_CHUNK_OP(gt_##s, T, uint8_t, x > EINI_Y)                                             \
  EINI_CHUNK_OP(ge_##s, T, uint8_t, x >= EINI_Y)                                            \
  EINI_CHUNK_OP(eq_##s, T, uint8_t, x == EINI_Y)                                            \
  EINI_CHUNK_OP(ne_##s, T, uint8_t, x != EINI_Y)

static double eini_remainder(double x, double y) {
  double r = fmod(x, y);
  if (r != 0.0) return (r < 0.0) != (y < 0.0) ? r + y : r;
  return y == y && x == x && y != 0.0 ? copysign(0.0, y) : r;
}

// As NumPy: the quotient that belongs to the remainder above, snapped to an integer.
static double eini_quotient(double x, double y) {
  if (y == 0.0) return x / y;
  double r = fmod(x, y), q = (x - r) / y;
  if (r != 0.0 && (r < 0.0) != (y < 0.0)) q -= 1.0;
  if (q == 0.0) return copysign(0.0, x / y);
  double f = floor(q);
  return q - f > 0.5 ? f + 1.0 : f;
}

static int64_t eini_idiv(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0u - (uint64_t)x);
  int64_t q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

static int64_t eini_imod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

#define EINI_UNIT (1 / 9007199254740992.0)  // 2^-53

// splitmix64 by Steele, Lea and Flood (2014): one step, of which all bits depend on all.
static uint64_t eini_hash_step(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

EINI_CHUNK_ARITH(f32, float, float)
EINI_CHUNK_ARITH(f64, double, double)
EINI_CHUNK_ARITH(i32, int32_t, uint32_t)
EINI_CHUNK_ARITH(i64, int64_t, uint64_t)
EINI_CHUNK_ORDERED(f32, float)
EINI_CHUNK_ORDERED(f64, double)
EINI_CHUNK_ORDERED(i32, int32_t)
EINI_CHUNK_ORDERED(i64, int64_t)
EINI_CHUNK_ORDERED(bool, uint8_t)
EINI_CHUNK_OP(neg_f32, float, float, -x)
EINI_CHUNK_OP(neg_f64, double, double, -x)
EINI_CHUNK_OP(neg_i32, int32_t, int32_t, 0u - (uint32_t)x)
EINI_CHUNK_OP(neg_i64, int64_t, int64_t, (uint64_t)0 - (uint64_t)x)
EINI_CHUNK_OP(relu_f32, float, float, x < 0.0f ? 0.0f : x)
EINI_CHUNK_OP(relu_f64, double, double, x < 0.0 ? 0.0 : x)
EINI_CHUNK_OP(relu_i32, int32_t, int32_t, x < 0 ? 0 : x)
EINI_CHUNK_OP(relu_i64, int64_t, int64_t, x < 0 ? 0 : x)
EINI_CHUNK_OP(and_bool, uint8_t, uint8_t, x &EINI_Y)
EINI_CHUNK_OP(or_bool, uint8_t, uint8_t, x | EINI_Y)
EINI_CHUNK_OP(not_bool, uint8_t, uint8_t, x ^ 1)
EINI_CHUNK_OP(apart_f32, float, float, x - b[0])  // from one value
EINI_CHUNK_OP(apart_f64, double, double, x - b[0])
EINI_CHUNK_OP(div_i32, int32_t, int32_t, eini_idiv(x, EINI_Y))
EINI_CHUNK_OP(div_i64, int64_t, int64_t, eini_idiv(x, EINI_Y))
EINI_CHUNK_OP(mod_i32, int32_t, int32_t, eini_imod(x, EINI_Y))
EINI_CHUNK_OP(mod_i64, int64_t, int64_t, eini_imod(x, EINI_Y))
EINI_CHUNK_OP(hash_i64, int64_t, int64_t, eini_hash_step((uint64_t)x) ^ (uint64_t)EINI_Y)
EINI_CHUNK_OP(rand_i64, int64_t, double, (double)(eini_hash_step((uint64_t)x) >> 11) * EINI_UNIT)
EINI_CHUNK_OP(abs_i32, int32_t, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
EINI_CHUNK_OP(abs_i64, int64_t, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
EINI_CHUNK_OP(sign_i32, int32_t, int32_t, (x > 0) - (x < 0))
EINI_CHUNK_OP(sign_i64, int64_t, int64_t, (x > 0) - (x < 0))

#define EINI_CHUNK_V(name, s, T)                                                            \
  static void eini_c_##name##_##s(int64_t n, const void *a, const void *b, const void *c,   \
                                  void *d) {                                                \
    (void)b; (void)c;                                                                       \
    eini_v##name##_##s(n, (const T *)a, (T *)d);                                            \
  }

// Operations of real floats; the elementary functions are in >>math. FN(f) names libm's version.
#define EINI_CHUNK_REAL(s, T, FN)                                                           \
  EINI_CHUNK_OP(quot_##s, T, T, x / EINI_Y)                                                 \
  EINI_CHUNK_OP(fdiv_##s, T, T, eini_quotient((double)x, (double)EINI_Y))                   \
  EINI_CHUNK_OP(fmod_##s, T, T, eini_remainder((double)x, (double)EINI_Y))                   \
  EINI_CHUNK_OP(pow_##s, T, T, FN(pow)(x, EINI_Y))                                          \
  EINI_CHUNK_OP(expm1_##s, T, T, FN(expm1)(x))                                              \
  EINI_CHUNK_OP(log1p_##s, T, T, FN(log1p)(x))                                              \
  EINI_CHUNK_OP(tan_##s, T, T, FN(tan)(x))                                                  \
  EINI_CHUNK_OP(atan2_##s, T, T, FN(atan2)(x, EINI_Y))                                      \
  EINI_CHUNK_OP(sign_##s, T, T, x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x)           \
  EINI_CHUNK_OP(sqrt_##s, T, T, FN(sqrt)(x))                                                \
  EINI_CHUNK_OP(rsqrt_##s, T, T, (T)1 / FN(sqrt)(x))                                        \
  EINI_CHUNK_OP(floor_##s, T, T, FN(floor)(x))                                              \
  EINI_CHUNK_OP(ceil_##s, T, T, FN(ceil)(x))                                                \
  EINI_CHUNK_OP(round_##s, T, T, FN(rint)(x))                                               \
  EINI_CHUNK_OP(abs_##s, T, T, FN(fabs)(x))                                                 \
  EINI_CHUNK_OP(half1p_##s, T, T, (T)0.5 * EINI_Y * ((T)1 + x))                             \
  EINI_CHUNK_OP(scale_##s, T, T, x *(T)0.70710678118654752440)                              \
  EINI_CHUNK_OP(rec1p_##s, T, T, (T)1 / ((T)1 + x))                                         \
  EINI_CHUNK_OP(over1p_##s, T, T, EINI_Y / ((T)1 + x))                                      \
  EINI_CHUNK_V(exp, s, T)                                                                   \
  EINI_CHUNK_V(log, s, T)                                                                   \
  EINI_CHUNK_V(sin, s, T)                                                                   \
  EINI_CHUNK_V(cos, s, T)                                                                   \
  EINI_CHUNK_V(tanh, s, T)                                                                  \
  EINI_CHUNK_V(erf, s, T)                                                                   \
  /* sigmoid = 1/(1+exp(-x)), silu = x*sigmoid(x), gelu = x/2*(1+erf(x/sqrt 2)) */          \
  static void eini_c_sigmoid_##s(int64_t n, const void *a, const void *b, const void *c,    \
                                 void *d) {                                                 \
    T t[EINI_CHUNK];                                                                        \
    eini_c_neg_##s(n, a, b, c, d);                                                          \
    eini_vexp_##s(n, (const T *)d, t);                                                      \
    eini_c_rec1p_##s(n, t, b, c, d);                                                        \
  }                                                                                         \
  static void eini_c_silu_##s(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    T t[EINI_CHUNK];                                                                        \
    eini_c_neg_##s(n, a, b, c, d);                                                          \
    eini_vexp_##s(n, (const T *)d, t);                                                      \
    eini_c_over1p_##s(n, t, a, c, d);                                                       \
  }                                                                                         \
  static void eini_c_gelu_##s(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    T t[EINI_CHUNK];                                                                        \
    eini_c_scale_##s(n, a, b, c, d);                                                        \
    eini_verf_##s(n, (const T *)d, t);                                                      \
    eini_c_half1p_##s(n, t, a, c, d);                                                       \
  }
#define EINI_FN_F32(g) g##f
#define EINI_FN_F64(g) g
EINI_CHUNK_REAL(f32, float, EINI_FN_F32)
EINI_CHUNK_REAL(f64, double, EINI_FN_F64)
#undef EINI_CHUNK_V
#undef EINI_FN_F32
#undef EINI_FN_F64

// Selection by a bool: where(a, b, c).
#define EINI_CHUNK_WHERE(s, T)                                                              \
  static void eini_c_where_##s(int64_t n, const void *EINI_RESTRICT pa,                     \
                               const void *EINI_RESTRICT pb, const void *EINI_RESTRICT pc,  \
                               void *EINI_RESTRICT pd) {                                    \
    const uint8_t *a = (const uint8_t *)pa;                                                 \
    const T *b = (const T *)pb, *c = (const T *)pc;                                         \
    T *d = (T *)pd;                                                                         \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      for (int j = 0; j < EINI_LANES; j++) {  /* both are read: no branch */                \
        const T x = b[i + j], y = c[i + j];                                                 \
        d[i + j] = a[i + j] ? x : y;                                                        \
      }                                                                                     \
    }                                                                                       \
  }

typedef struct eini_c64 { float re, im; } eini_c64;
typedef struct eini_c128 { double re, im; } eini_c128;

EINI_CHUNK_WHERE(bool, uint8_t)
EINI_CHUNK_WHERE(i32, int32_t)
EINI_CHUNK_WHERE(i64, int64_t)
EINI_CHUNK_WHERE(f32, float)
EINI_CHUNK_WHERE(f64, double)
EINI_CHUNK_WHERE(c64, eini_c64)
EINI_CHUNK_WHERE(c128, eini_c128)
#undef EINI_CHUNK_WHERE

// Complex elementary functions in double, from real ones; no _Complex in C++.
static eini_c128 eini_cmk(double re, double im) {
  eini_c128 z;
  z.re = re;
  z.im = im;
  return z;
}
static eini_c128 eini_cmul(eini_c128 x, eini_c128 y) {
  return eini_cmk(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
// Smith's division avoids overflow of |y|^2.
static eini_c128 eini_cdiv(eini_c128 x, eini_c128 y) {
  if (fabs(y.re) >= fabs(y.im)) {
    if (y.re == 0.0 && y.im == 0.0) return eini_cmk(x.re / y.re, x.im / y.re);
    double r = y.im / y.re, d = y.re + y.im * r;
    return eini_cmk((x.re + x.im * r) / d, (x.im - x.re * r) / d);
  }
  double r = y.re / y.im, d = y.re * r + y.im;
  return eini_cmk((x.re * r + x.im) / d, (x.im * r - x.re) / d);
}
static eini_c128 eini_cexp(eini_c128 x) {
  double e = exp(x.re);
  if (x.im == 0.0) return eini_cmk(e, x.im);
  if (e == 0.0) return eini_cmk(0.0, 0.0);
  return eini_cmk(e * cos(x.im), e * sin(x.im));
}
static eini_c128 eini_clog(eini_c128 x) {
  return eini_cmk(log(hypot(x.re, x.im)), atan2(x.im, x.re));
}
static eini_c128 eini_csqrt(eini_c128 x) {
  if (x.re == 0.0 && x.im == 0.0) return eini_cmk(0.0, x.im);
  double t = sqrt(0.5 * (hypot(x.re, x.im) + fabs(x.re)));
  return x.re >= 0.0 ? eini_cmk(t, x.im / (2.0 * t))
                     : eini_cmk(fabs(x.im) / (2.0 * t), copysign(t, x.im));
}
static eini_c128 eini_crsqrt(eini_c128 x) { return eini_cdiv(eini_cmk(1.0, 0.0), eini_csqrt(x)); }
static eini_c128 eini_csin(eini_c128 x) {
  return eini_cmk(sin(x.re) * cosh(x.im), cos(x.re) * sinh(x.im));
}
static eini_c128 eini_ccos(eini_c128 x) {
  return eini_cmk(cos(x.re) * cosh(x.im), -sin(x.re) * sinh(x.im));
}
// exp(x)-1 and log(1+x), also near 0: cos(y)-1 is -2 sin(y/2)^2, |1+x|^2-1 has no 1 to lose.
static eini_c128 eini_cexpm1(eini_c128 x) {
  const double e = expm1(x.re), s = sin(0.5 * x.im);
  if (x.im == 0.0) return eini_cmk(e, x.im);
  return eini_cmk(e * cos(x.im) - 2.0 * s * s, exp(x.re) * sin(x.im));
}
static eini_c128 eini_clog1p(eini_c128 x) {
  const double m = hypot(1.0 + x.re, x.im);
  const double re = m > 0.5 && m < 2.0 ? 0.5 * log1p(x.re * (2.0 + x.re) + x.im * x.im) : log(m);
  return eini_cmk(re, atan2(x.im, 1.0 + x.re));
}
static eini_c128 eini_csign(eini_c128 x) {
  const double m = hypot(x.re, x.im);
  return m == 0.0 ? eini_cmk(0.0, 0.0) : eini_cmk(x.re / m, x.im / m);
}
static eini_c128 eini_ctanh(eini_c128 x) {
  if (fabs(x.re) > 20.0)
    return eini_cmk(copysign(1.0, x.re), 4.0 * sin(x.im) * cos(x.im) * exp(-2.0 * fabs(x.re)));
  double t = tan(x.im), s = sinh(x.re), b = 1.0 + t * t, c = sqrt(1.0 + s * s), d = 1.0 + b * s * s;
  return eini_cmk(b * c * s / d, t / d);
}
static eini_c128 eini_ctan(eini_c128 x) {  // tanh(ix)/i
  const eini_c128 t = eini_ctanh(eini_cmk(-x.im, x.re));
  return eini_cmk(t.im, -t.re);
}
static eini_c128 eini_cpow(eini_c128 x, eini_c128 y) {
  if (y.re == 0.0 && y.im == 0.0) return eini_cmk(1.0, 0.0);
  if (x.re == 0.0 && x.im == 0.0) return eini_cmk(y.re > 0.0 ? 0.0 : x.re / 0.0 * 0.0, 0.0);
  return eini_cexp(eini_cmul(y, eini_clog(x)));
}

// Complex chunks: x and y are widened to double, so c64 loses nothing on the way.
#define EINI_CHUNK_C(name, T, R, expr)                                                      \
  static void eini_c_##name(int64_t n, const void *pa, const void *pb, const void *pc, void *pd) { \
    const T *a = (const T *)pa, *b = pb != NULL ? (const T *)pb : a;                        \
    T *d = (T *)pd;                                                                         \
    (void)pc;                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const eini_c128 x = eini_cmk(a[i].re, a[i].im), y = eini_cmk(b[i].re, b[i].im);       \
      const eini_c128 z = (expr);                                                           \
      (void)y;                                                                              \
      d[i].re = (R)z.re;                                                                    \
      d[i].im = (R)z.im;                                                                    \
    }                                                                                       \
  }
#define EINI_CHUNK_CR(name, T, R, expr)                                                     \
  static void eini_c_##name(int64_t n, const void *pa, const void *pb, const void *pc, void *pd) { \
    const T *a = (const T *)pa, *b = pb != NULL ? (const T *)pb : a;                        \
    R *d = (R *)pd;                                                                         \
    (void)pc;                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T x = a[i], y = b[i];                                                           \
      (void)y;                                                                              \
      d[i] = (R)(expr);                                                                     \
    }                                                                                       \
  }
#define EINI_CHUNK_COMPLEX(s, T, R)                                                         \
  EINI_CHUNK_C(add_##s, T, R, eini_cmk(x.re + y.re, x.im + y.im))                           \
  EINI_CHUNK_C(sub_##s, T, R, eini_cmk(x.re - y.re, x.im - y.im))                           \
  EINI_CHUNK_C(mul_##s, T, R, eini_cmul(x, y))                                              \
  EINI_CHUNK_C(square_##s, T, R, eini_cmul(x, x))                                           \
  EINI_CHUNK_C(quot_##s, T, R, eini_cdiv(x, y))                                             \
  EINI_CHUNK_C(neg_##s, T, R, eini_cmk(-x.re, -x.im))                                       \
  EINI_CHUNK_C(conj_##s, T, R, eini_cmk(x.re, -x.im))                                       \
  EINI_CHUNK_C(exp_##s, T, R, eini_cexp(x))                                                 \
  EINI_CHUNK_C(log_##s, T, R, eini_clog(x))                                                 \
  EINI_CHUNK_C(sqrt_##s, T, R, eini_csqrt(x))                                               \
  EINI_CHUNK_C(rsqrt_##s, T, R, eini_crsqrt(x))                                             \
  EINI_CHUNK_C(expm1_##s, T, R, eini_cexpm1(x))                                             \
  EINI_CHUNK_C(log1p_##s, T, R, eini_clog1p(x))                                             \
  EINI_CHUNK_C(sign_##s, T, R, eini_csign(x))                                               \
  EINI_CHUNK_C(sin_##s, T, R, eini_csin(x))                                                 \
  EINI_CHUNK_C(tan_##s, T, R, eini_ctan(x))                                                 \
  EINI_CHUNK_C(cos_##s, T, R, eini_ccos(x))                                                 \
  EINI_CHUNK_C(tanh_##s, T, R, eini_ctanh(x))                                               \
  EINI_CHUNK_C(pow_##s, T, R, eini_cpow(x, y))                                              \
  EINI_CHUNK_CR(abs_##s, T, R, hypot((double)x.re, (double)x.im))                           \
  EINI_CHUNK_CR(real_##s, T, R, x.re)                                                       \
  EINI_CHUNK_CR(imag_##s, T, R, x.im)                                                       \
  EINI_CHUNK_CR(eq_##s, T, uint8_t, (x.re == y.re) & (x.im == y.im))                        \
  EINI_CHUNK_CR(ne_##s, T, uint8_t, (x.re != y.re) | (x.im != y.im))                        \
  static void eini_c_complex_##s(int64_t n, const void *a, const void *b, const void *c,    \
                                 void *d) {                                                 \
    (void)c;                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)d)[i].re = ((const R *)a)[i];                                                   \
      ((T *)d)[i].im = ((const R *)b)[i];                                                   \
    }                                                                                       \
  }
EINI_CHUNK_COMPLEX(c64, eini_c64, float)
EINI_CHUNK_COMPLEX(c128, eini_c128, double)
#undef EINI_CHUNK_COMPLEX
#undef EINI_CHUNK_C
#undef EINI_CHUNK_CR

// ---- conversions between computation types ----

EINI_CHUNK_OP(bool_to_i32, uint8_t, int32_t, x)
EINI_CHUNK_OP(bool_to_i64, uint8_t, int64_t, x)
EINI_CHUNK_OP(bool_to_f32, uint8_t, float, x)
EINI_CHUNK_OP(bool_to_f64, uint8_t, double, x)
EINI_CHUNK_OP(i32_to_i64, int32_t, int64_t, x)
EINI_CHUNK_OP(i32_to_f32, int32_t, float, x)
EINI_CHUNK_OP(i32_to_f64, int32_t, double, x)
EINI_CHUNK_OP(i64_to_i32, int64_t, int32_t, x)
EINI_CHUNK_OP(i64_to_f32, int64_t, float, x)
EINI_CHUNK_OP(i64_to_f64, int64_t, double, x)
EINI_CHUNK_OP(i32_to_bool, int32_t, uint8_t, x != 0)
EINI_CHUNK_OP(i64_to_bool, int64_t, uint8_t, x != 0)
EINI_CHUNK_OP(f32_to_bool, float, uint8_t, x != 0)
EINI_CHUNK_OP(f64_to_bool, double, uint8_t, x != 0)
EINI_CHUNK_OP(c64_to_bool, eini_c64, uint8_t, (x.re != 0) | (x.im != 0))
EINI_CHUNK_OP(c128_to_bool, eini_c128, uint8_t, (x.re != 0) | (x.im != 0))
EINI_CHUNK_OP(f32_to_f64, float, double, x)
EINI_CHUNK_OP(f64_to_f32, double, float, x)
EINI_CHUNK_OP(f32_to_i32, float, int32_t, eini_f64_to_i64((double)x))
EINI_CHUNK_OP(f64_to_i32, double, int32_t, eini_f64_to_i64(x))
EINI_CHUNK_OP(f32_to_i64, float, int64_t, eini_f64_to_i64((double)x))
EINI_CHUNK_OP(f64_to_i64, double, int64_t, eini_f64_to_i64(x))
#define EINI_CAST_COMPLEX(s, T, R)                                                          \
  static void eini_c_##s##_from(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    (void)b; (void)c; /* from reals of its own precision */                                 \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)d)[i].re = ((const R *)a)[i];                                                   \
      ((T *)d)[i].im = 0;                                                                   \
    }                                                                                       \
  }
EINI_CAST_COMPLEX(c64, eini_c64, float)
EINI_CAST_COMPLEX(c128, eini_c128, double)
#undef EINI_CAST_COMPLEX
static void eini_c_c64_to_c128(int64_t n, const void *a, const void *b, const void *c, void *d) {
  eini_c_f32_to_f64(2 * n, a, b, c, d);
}
static void eini_c_c128_to_c64(int64_t n, const void *a, const void *b, const void *c, void *d) {
  eini_c_f64_to_f32(2 * n, a, b, c, d);
}

// Rounding to a storage dtype, still held in its computation type.
EINI_CHUNK_OP(round_i8, int32_t, int32_t, (int8_t)(uint8_t)(uint32_t)x)
EINI_CHUNK_OP(round_u8, int32_t, int32_t, (uint8_t)(uint32_t)x)
EINI_CHUNK_OP(round_i16, int32_t, int32_t, (int16_t)(uint16_t)(uint32_t)x)
EINI_CHUNK_OP(round_f16_f32, float, float, eini_f16_load(eini_f16_store(x)))
EINI_CHUNK_OP(round_bf16_f32, float, float, eini_bf16_load(eini_bf16_store(x)))

// From a storage dtype to its computation type, and back.
EINI_CHUNK_OP(load_f16, uint16_t, float, eini_f16_load(x))
EINI_CHUNK_OP(load_bf16, uint16_t, float, eini_bf16_load(x))
EINI_CHUNK_OP(load_i8, int8_t, int32_t, x)
EINI_CHUNK_OP(load_u8, uint8_t, int32_t, x)
EINI_CHUNK_OP(load_i16, int16_t, int32_t, x)
EINI_CHUNK_OP(store_f16, float, uint16_t, eini_f16_store(x))
EINI_CHUNK_OP(store_bf16, float, uint16_t, eini_bf16_store(x))
EINI_CHUNK_OP(store_8, int32_t, uint8_t, (uint32_t)x)
EINI_CHUNK_OP(store_16, int32_t, uint16_t, (uint32_t)x)
EINI_CHUNK_OP(odd_i32, int32_t, float, eini_round_odd((double)x))
EINI_CHUNK_OP(odd_i64, int64_t, float, eini_round_odd(eini_i64_odd(x)))
EINI_CHUNK_OP(odd_f64, double, float, eini_round_odd(x))
#define EINI_ROUND_ODD(t, s)                                                                \
  static void eini_c_round_##t##_##s(int64_t n, const void *a, const void *b, const void *c, \
                                     void *d) {                                             \
    float odd[EINI_CHUNK];                                                                  \
    eini_c_odd_##s(n, a, b, c, odd);                                                        \
    eini_c_round_##t##_f32(n, odd, b, c, d);                                                \
  }
EINI_ROUND_ODD(f16, i32)
EINI_ROUND_ODD(f16, i64)
EINI_ROUND_ODD(f16, f64)
EINI_ROUND_ODD(bf16, i32)
EINI_ROUND_ODD(bf16, i64)
EINI_ROUND_ODD(bf16, f64)
#undef EINI_ROUND_ODD

#undef EINI_CHUNK_REAL
#undef EINI_CHUNK_ORDERED
#undef EINI_CHUNK_ARITH
#undef EINI_CHUNK_OP
#undef EINI_Y
