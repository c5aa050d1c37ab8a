// ================================================================================================
// >>math  elementary functions on padded buffers
// Plain C kernels that compilers turn into vector code: every kernel walks its buffer in groups of
// EINI_VLANES lanes, and the lane code is branch free. At most 2 ulp; special values as C99.
// ================================================================================================
// Method.  Arguments are reduced as by Cody & Waite ("Software Manual for the Elementary
// Functions", 1980): a multiple of a constant is subtracted in two parts, the first short enough
// for its product to be exact.  Integers are rounded and extracted by adding 1.5 * 2^(p-1), whose
// ulp is 1.  The polynomials are weighted minimax or least-squares fits on Chebyshev nodes,
// computed with 50 digits, the coefficients rounded to the working format one at a time, lowest
// order first, with the others fitted again after each rounding.
//
// The kernels need strict IEEE evaluation in the type of the operands; where the compiler does
// not promise that (x87, fast-math modes), libm does the work instead.  Contraction into fused
// multiply-adds is fine.  The floating-point exception flags are left in no particular state.
#define EINI_VLANES 16

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST) || \
    !defined(FLT_EVAL_METHOD)
#define EINI_VMATH_LIBM 1
#elif FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#define EINI_VMATH_LIBM 1
#else
#define EINI_VMATH_LIBM 0
#endif

/* Close to a zero some libm's double functions are several ulp off.  The long double ones have
 * bits to spare where long double is wider, and are no worse elsewhere. */
static double eini_libm_sin(double x) {
  double y = sin(x);
  return fabs(y) < 1e-6 ? (double)sinl((long double)x) : y;
}

static double eini_libm_cos(double x) {
  double y = cos(x);
  return fabs(y) < 1e-6 ? (double)cosl((long double)x) : y;
}

#if EINI_VMATH_LIBM

#define EINI_VFUN(name, fn)                                                                   \
  static void eini_v##name##_f32(int64_t n, const float *EINI_RESTRICT x,                     \
                                 float *EINI_RESTRICT y) {                                    \
    int64_t i;                                                                                \
    for (i = 0; i < n; i++) y[i] = (float)name((double)x[i]);                                 \
  }                                                                                           \
  static void eini_v##name##_f64(int64_t n, const double *EINI_RESTRICT x,                    \
                                 double *EINI_RESTRICT y) {                                   \
    int64_t i;                                                                                \
    for (i = 0; i < n; i++) y[i] = fn(x[i]);                                                  \
  }

EINI_VFUN(exp, exp)
EINI_VFUN(log, log)
EINI_VFUN(sin, eini_libm_sin)
EINI_VFUN(cos, eini_libm_cos)
EINI_VFUN(tanh, tanh)
EINI_VFUN(erf, erf)

#undef EINI_VFUN

#else  // EINI_VMATH_LIBM

/* Adding one of these rounds to an integer, which then sits in the low bits of the sum. */
#define EINI_ROUND64 6755399441055744.0
#define EINI_ROUND64_BITS 0x4338000000000000u
#define EINI_ROUND32 12582912.0f
#define EINI_ROUND32_BITS 0x4b400000u

#define EINI_SIGN64 0x8000000000000000u
#define EINI_SIGN32 0x80000000u

/* ln 2 = HI + LO; HI times any exponent of the format is exact. */
#define EINI_LN2HI64 0.69314718055989033
#define EINI_LN2LO64 5.4979230187083712e-14
#define EINI_LN2HI32 0.693145752f
#define EINI_LN2LO32 1.42860677e-06f

static inline uint64_t eini_bits64(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline double eini_from64(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static inline uint32_t eini_bits32(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline float eini_from32(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* a where the mask is all ones, b where it is zero */
static inline double eini_pick64(uint64_t mask, double a, double b) {
  return eini_from64((eini_bits64(a) & mask) | (eini_bits64(b) & ~mask));
}

static inline float eini_pick32(uint32_t mask, float a, float b) {
  return eini_from32((eini_bits32(a) & mask) | (eini_bits32(b) & ~mask));
}

/* Two Horner steps, the inner of which need not wait for p. */
static inline double eini_two64(double p, double x, double x2, double hi, double lo) {
  return p * x2 + (hi * x + lo);
}

static inline float eini_two32(float p, float x, float x2, float hi, float lo) {
  return p * x2 + (hi * x + lo);
}

/* ---- exp ---- */

/* exp(x) = 2^k * result, with k stored modulo 2^64 so that NaN lanes stay defined. */
static inline double eini_exp_core64(double x, uint64_t *k) {
  double t = x * 1.4426950408889634 + EINI_ROUND64;
  double kd = t - EINI_ROUND64;
  double r = (x - kd * EINI_LN2HI64) - kd * EINI_LN2LO64;
  double r2 = r * r;
  double p = 2.5027323383195078e-08 * r + 2.7631567772592245e-07;
  p = eini_two64(p, r, r2, 2.7557500050335439e-06, 2.4801489110158403e-05);
  p = eini_two64(p, r, r2, 0.00019841269603845463, 0.0013888888947879597);
  p = eini_two64(p, r, r2, 0.0083333333334489577, 0.041666666666511636);
  p = eini_two64(p, r, r2, 0.16666666666666485, 0.50000000000000133);
  *k = eini_bits64(t) - EINI_ROUND64_BITS;
  return 1.0 + (r + r2 * p);
}

static inline float eini_exp_core32(float x, uint32_t *k) {
  float t = x * 1.44269504f + EINI_ROUND32;
  float kd = t - EINI_ROUND32;
  float r = (x - kd * EINI_LN2HI32) - kd * EINI_LN2LO32;
  float r2 = r * r;
  float p = 0.00137470546f;
  p = eini_two32(p, r, r2, 0.00836911518f, 0.0416696332f);
  p = eini_two32(p, r, r2, 0.166665167f, 0.499999881f);
  *k = eini_bits32(t) - EINI_ROUND32_BITS;
  return 1.0f + (r + r2 * p);
}

/* The full range needs 2^k in two factors: k reaches beyond both ends of the exponent range. */
static inline double eini_exp64(double x, double clip) {
  uint64_t k, h;
  double p;
  x = x > clip ? clip : x;
  x = x < -clip ? -clip : x;
  p = eini_exp_core64(x, &k);
  k += 2046u;
  h = k >> 1;
  return p * eini_from64(h << 52) * eini_from64((k - h) << 52);
}

static inline float eini_exp32(float x, float clip) {
  uint32_t k, h;
  float p;
  x = x > clip ? clip : x;
  x = x < -clip ? -clip : x;
  p = eini_exp_core32(x, &k);
  k += 254u;
  h = k >> 1;
  return p * eini_from32(h << 23) * eini_from32((k - h) << 23);
}

/* ---- log ---- */

/* x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); s = f / (2 + f) turns log(1 + f) into
 * the odd series 2 atanh(s) = f - f*f/2 + s * (f*f/2 + R(s*s)). */
static inline double eini_log64(double x, double inf) {
  uint64_t ux = eini_bits64(x);
  /* 2^6 in the exponent field for subnormals (and for the negative, which end as NaN) */
  uint64_t up = ((ux - 0x0010000000000000u) >> 63) << 58;
  uint64_t negative = 0u - ((ux & (ux - 1u)) >> 63);
  uint64_t u = eini_bits64(x * eini_from64(0x3ff0000000000000u + up)) - up +
               (0x43f0000000000000u - 0x3fe6a09e00000000u);
  double k = eini_from64((u >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1087.0);
  double f = eini_from64((u & 0x000fffffffffffffu) + 0x3fe6a09e00000000u) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  double z2 = z * z;
  double h = 0.5 * f * f;
  double special = x < inf ? 0.0 : x;
  double p = 0.1479822813313324;
  p = eini_two64(p, z, z2, 0.15313835159855219, 0.18183572247145291);
  p = eini_two64(p, z, z2, 0.22222198430723042, 0.28571428743674254);
  p = eini_two64(p, z, z2, 0.3999999999940938, 0.66666666666667351);
  p = p * z;
  special = x <= 0.0 ? -inf : special;
  p = k * EINI_LN2HI64 - ((h - (s * (h + p) + k * EINI_LN2LO64)) - f) + special;
  return eini_from64(eini_bits64(p) | negative);
}

static inline float eini_log32(float x, float inf) {
  uint32_t ux = eini_bits32(x);
  uint32_t up = ((ux - 0x00800000u) >> 31) << 28;
  uint32_t negative = 0u - ((ux & (ux - 1u)) >> 31);
  uint32_t u = eini_bits32(x * eini_from32(0x3f800000u + up)) - up + (0x4f800000u - 0x3f3504f3u);
  float k = (float)(int32_t)(u >> 23) - 159.0f;
  float f = eini_from32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float f2 = f * f;
  float h = 0.5f * f2;
  float special = x < inf ? 0.0f : x;
  float p = 0.0668478906f;
  p = eini_two32(p, f, f2, -0.116562396f, 0.119057335f);
  p = eini_two32(p, f, f2, -0.124096259f, 0.142175153f);
  p = eini_two32(p, f, f2, -0.166677296f, 0.20002228f);
  p = eini_two32(p, f, f2, -0.250000149f, 0.333333105f);
  p = p * f * f2;
  special = x <= 0.0f ? -inf : special;
  p = k * EINI_LN2HI32 - ((h - (p + k * EINI_LN2LO32)) - f) + special;
  return eini_from32(eini_bits32(p) | negative);
}

/* ---- sin and cos ---- */

/* pi/2 in two parts; q * PIO2HI64 is exact for |q| < 2^20, q * PIO2HI32 for |q| < 2^24. */
#define EINI_PIO2HI64 1.5707963267341256
#define EINI_PIO2LO64 6.0771005065061922e-11
#define EINI_PIO2HI32 1.5707963258028030
#define EINI_PIO2LO32 9.9209357968054043e-10
#define EINI_TRIG_MAX64 0x4138000000000000u /* the bits of 1.5 * 2^20 */
#define EINI_TRIG_MAX32 0x4bc00000u /* the bits of 1.5 * 2^24 */
#define EINI_1_PI 0.31830988618379067
#define EINI_2_PI 0.63661977236758134

/* sin(|x| + turn * pi/2).  |x| = k * pi/2 + r + lo, and k picks among +-sin(r) and +-cos(r).
 * The sign bit of *bad is set if |x| is too large, or so near to a multiple of pi/2 that the two
 * parts of pi/2 do not suffice. */
static inline double eini_sincos64(double x, uint64_t turn, uint64_t *bad) {
  double ax = eini_from64(eini_bits64(x) & ~EINI_SIGN64);
  double t = ax * EINI_2_PI + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double a = ax - k * EINI_PIO2HI64;
  double b = k * EINI_PIO2LO64;
  double r = a - b;
  double lo = (a - r) - b;
  double z = r * r;
  double z2 = z * z;
  double h = 0.5 * z;
  double w = 1.0 - h;
  double s = 1.5895850267243964e-10 * z + -2.5050740849276506e-08;
  double c = -1.1357910262993922e-11 * z + 2.0875687851671615e-09;
  double ar = eini_from64(eini_bits64(r) & ~EINI_SIGN64);
  uint64_t q = eini_bits64(t) + turn;
  *bad = eini_bits64(ar - k * 3.7252902984619141e-09) | (EINI_TRIG_MAX64 - eini_bits64(ax));
  s = eini_two64(s, z, z2, 2.7557313574001048e-06, -0.00019841269829439168);
  s = eini_two64(s, z, z2, 0.0083333333333219031, -0.1666666666666663);
  s = r + (r * z * s + lo);
  c = eini_two64(c, z, z2, -2.7557314075326331e-07, 2.4801587288453398e-05);
  c = eini_two64(c, z, z2, -0.0013888888888872334, 0.041666666666666588);
  c = w + (((1.0 - w) - h) + (z2 * c - r * lo));
  c = eini_pick64(0u - (q & 1u), c, s);
  return eini_from64(eini_bits64(c) ^ ((q << 62) & EINI_SIGN64));
}

static inline double eini_sin64(double x, uint64_t *bad) {
  double s = eini_sincos64(x, 0, bad);
  return eini_from64(eini_bits64(s) ^ (eini_bits64(x) & EINI_SIGN64));
}

static inline double eini_cos64(double x, uint64_t *bad) { return eini_sincos64(x, 1, bad); }

/* f32 lanes go through f64, which leaves two roundings and no hard cases below the limit.  There
 * is precision to spare for a single polynomial on [-pi/2, pi/2], where k is a multiple of pi;
 * q = 2k for sin, and for cos(x) = sin(x + pi/2) it is odd. */
static inline double eini_sin_core32(double ax, double q) {
  double r = (ax - q * EINI_PIO2HI32) - q * EINI_PIO2LO32;
  double z = r * r;
  double z2 = z * z;
  double p = -2.3887811763556932e-08;
  p = eini_two64(p, z, z2, 2.7525324822095269e-06, -0.000198408671063206);
  p = eini_two64(p, z, z2, 0.0083333311006432379, -0.16666666625975399);
  return r + r * z * p;
}

static inline float eini_sin32(float x) {
  uint64_t u = eini_bits64((double)x);
  double ax = eini_from64(u & ~EINI_SIGN64);
  double t = ax * EINI_1_PI + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double s = eini_sin_core32(ax, k + k);
  return (float)eini_from64(eini_bits64(s) ^ ((eini_bits64(t) << 63) ^ (u & EINI_SIGN64)));
}

static inline float eini_cos32(float x) {
  double ax = eini_from64(eini_bits64((double)x) & ~EINI_SIGN64);
  double t = (ax * EINI_1_PI + 0.5) + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double s = eini_sin_core32(ax, k + k - 1.0);
  return (float)eini_from64(eini_bits64(s) ^ (eini_bits64(t) << 63));
}

/* ---- tanh ---- */

/* x + x^3 P(x^2)/Q(x^2) near zero, else 1 - 2/(exp(2x) + 1); one division serves both. */
static inline double eini_tanh64(double x, double clip) {
  uint64_t u = eini_bits64(x), k;
  uint64_t a = u & ~EINI_SIGN64;
  uint64_t low = 0u - ((a - 0x3fe4000000000000u) >> 63); /* |x| < 0.625 */
  double ax = eini_from64(a);
  double z = ax * ax;
  double p = (-0.96439937649511431 * z + -99.28823395289669) * z + -1614.6982482967387;
  double q = ((z + 112.81223174112841) * z + 2235.5025998146953) * z + 4844.094744890218;
  double c = ax > clip ? clip : ax;
  double e = eini_exp_core64(c + c, &k) * eini_from64((k + 1023u) << 52);
  double num = eini_pick64(low, ax * z * p, -2.0);
  double den = eini_pick64(low, q, e + 1.0);
  double base = eini_pick64(low, ax, 1.0);
  return eini_from64(eini_bits64(base + num / den) | (u & EINI_SIGN64));
}

static inline float eini_tanh32(float x, float clip) {
  uint32_t u = eini_bits32(x), k;
  uint32_t a = u & ~EINI_SIGN32;
  uint32_t low = 0u - ((a - 0x3f200000u) >> 31); /* |x| < 0.625 */
  float ax = eini_from32(a);
  float z = ax * ax;
  float p = -0.00380947278f * z + -0.823834896f;
  float q = z + 2.4715066f;
  float c = ax > clip ? clip : ax;
  float e = eini_exp_core32(c + c, &k) * eini_from32((k + 127u) << 23);
  float num = eini_pick32(low, ax * z * p, -2.0f);
  float den = eini_pick32(low, q, e + 1.0f);
  float base = eini_pick32(low, ax, 1.0f);
  return eini_from32(eini_bits32(base + num / den) | (u & EINI_SIGN32));
}

/* ---- erf ---- */

/* x + x P(x^2) below 1, else 1 - exp(G(x)) with G a fit to log(erfc(x)): erfc is small there, so
 * its relative error matters less and less. */
static inline double eini_erf64(double x, double clip) {
  uint64_t u = eini_bits64(x), k;
  uint64_t a = u & ~EINI_SIGN64;
  uint64_t low = 0u - ((a - 0x3ff0000000000000u) >> 63); /* |x| < 1 */
  double ax = eini_from64(a);
  double c = ax > clip ? clip : ax;
  double z = c * c;
  double z2 = z * z;
  double g = 1.7174868866107602e-11;
  double y_low, y_high;
  double p = -7.7648058950077834e-10 * z + 1.370256913134439e-08;
  p = eini_two64(p, z, z2, -1.6204216644959769e-07, 1.6446833684025832e-06);
  p = eini_two64(p, z, z2, -1.4924685750072198e-05, 0.00012055292035174393);
  p = eini_two64(p, z, z2, -0.0008548325870703971, 0.0052239776046899659);
  p = eini_two64(p, z, z2, -0.026866170642899308, 0.11283791670942442);
  p = eini_two64(p, z, z2, -0.37612638903183454, 0.12837916709551256);
  g = eini_two64(g, c, z, -6.3299243477240135e-10, 1.0594651824859312e-08);
  g = eini_two64(g, c, z, -1.0512124760395883e-07, 6.6642278382360554e-07);
  g = eini_two64(g, c, z, -2.5663423512355742e-06, 3.2102332141058531e-06);
  g = eini_two64(g, c, z, 2.9152268463978148e-05, -0.00023322439866016372);
  g = eini_two64(g, c, z, 0.00092441801312092827, -0.0021048042062738093);
  g = eini_two64(g, c, z, 0.000590301270613488, 0.018860526847427173);
  g = eini_two64(g, c, z, -0.10263489651464047, -0.6366686501144585);
  g = eini_two64(g, c, z, -1.1283684564542626, -1.0918158117588841e-06);
  y_low = c + c * p;
  y_high = 1.0 - eini_exp_core64(g, &k) * eini_from64((k + 1023u) << 52);
  return eini_from64(eini_bits64(eini_pick64(low, y_low, y_high)) | (u & EINI_SIGN64));
}

static inline float eini_erf32(float x, float clip) {
  uint32_t u = eini_bits32(x), k;
  uint32_t a = u & ~EINI_SIGN32;
  uint32_t low = 0u - ((a - 0x3f800000u) >> 31); /* |x| < 1 */
  float ax = eini_from32(a);
  float c = ax > clip ? clip : ax;
  float z = c * c;
  float z2 = z * z;
  float p = 7.80689807e-05f;
  float g = 0.000187279715f;
  float y_low, y_high;
  p = eini_two32(p, z, z2, -0.000799785252f, 0.0051871622f);
  p = eini_two32(p, z, z2, -0.0268533472f, 0.112835787f);
  p = eini_two32(p, z, z2, -0.37612626f, 0.128379166f);
  g = eini_two32(g, c, z, -0.00295622251f, 0.0218713116f);
  g = eini_two32(g, c, z, -0.103174232f, -0.638069272f);
  g = eini_two32(g, c, z, -1.12713349f, -0.000330891373f);
  y_low = c + c * p;
  y_high = 1.0f - eini_exp_core32(g, &k) * eini_from32((k + 127u) << 23);
  return eini_from32(eini_bits32(eini_pick32(low, y_low, y_high)) | (u & EINI_SIGN32));
}

/* ---- the kernels ---- */

/* The clip values are volatile to keep them from the optimiser, which otherwise evaluates the
 * clipped case at compile time and so gives every lane a branch. */
#define EINI_VFUN(name, type, suffix, lane, clip_value)                                       \
  static void eini_v##name##_##suffix(int64_t n, const type *EINI_RESTRICT x,                 \
                                      type *EINI_RESTRICT y) {                                \
    static const volatile type clip_source = clip_value;                                      \
    const type clip = clip_source;                                                            \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      for (j = 0; j < EINI_VLANES; j++) y[i + j] = lane(x[i + j], clip);                      \
    }                                                                                         \
  }

EINI_VFUN(exp, float, f32, eini_exp32, 104.0f)
EINI_VFUN(log, float, f32, eini_log32, (float)HUGE_VAL)
EINI_VFUN(tanh, float, f32, eini_tanh32, 10.0f)
EINI_VFUN(erf, float, f32, eini_erf32, 3.95f)
EINI_VFUN(exp, double, f64, eini_exp64, 746.0)
EINI_VFUN(log, double, f64, eini_log64, HUGE_VAL)
EINI_VFUN(tanh, double, f64, eini_tanh64, 20.0)
EINI_VFUN(erf, double, f64, eini_erf64, 5.95)

#undef EINI_VFUN

/* Lanes beyond the reach of the reduction are rare; libm does them over again. */
#define EINI_VTRIG(name)                                                                      \
  static void eini_redo_##name##_f64(const double *x, double *y, const uint64_t *bad) {       \
    int j;                                                                                    \
    for (j = 0; j < EINI_VLANES; j++) {                                                       \
      if ((bad[j] & EINI_SIGN64) != 0) y[j] = eini_libm_##name(x[j]);                         \
    }                                                                                         \
  }                                                                                           \
  static void eini_v##name##_f64(int64_t n, const double *EINI_RESTRICT x,                    \
                                 double *EINI_RESTRICT y) {                                   \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      uint64_t any = 0, bad[EINI_VLANES];                                                     \
      for (j = 0; j < EINI_VLANES; j++) {                                                     \
        y[i + j] = eini_##name##64(x[i + j], &bad[j]);                                        \
        any |= bad[j];                                                                        \
      }                                                                                       \
      if ((any & EINI_SIGN64) != 0) eini_redo_##name##_f64(x + i, y + i, bad);                \
    }                                                                                         \
  }                                                                                           \
  static void eini_redo_##name##_f32(const float *x, float *y) {                              \
    int j;                                                                                    \
    for (j = 0; j < EINI_VLANES; j++) {                                                       \
      if ((eini_bits32(x[j]) & ~EINI_SIGN32) > EINI_TRIG_MAX32) {                             \
        y[j] = (float)name((double)x[j]);                                                     \
      }                                                                                       \
    }                                                                                         \
  }                                                                                           \
  static void eini_v##name##_f32(int64_t n, const float *EINI_RESTRICT x,                     \
                                 float *EINI_RESTRICT y) {                                    \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      uint32_t any = 0;                                                                       \
      for (j = 0; j < EINI_VLANES; j++) {                                                     \
        any |= EINI_TRIG_MAX32 - (eini_bits32(x[i + j]) & ~EINI_SIGN32);                      \
      }                                                                                       \
      for (j = 0; j < EINI_VLANES; j++) y[i + j] = eini_##name##32(x[i + j]);                 \
      if ((any & EINI_SIGN32) != 0) eini_redo_##name##_f32(x + i, y + i);                     \
    }                                                                                         \
  }

EINI_VTRIG(sin)
EINI_VTRIG(cos)

#undef EINI_VTRIG

#endif  // EINI_VMATH_LIBM
