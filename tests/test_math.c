/* Accuracy of the vector elementary functions inside einsum.h, judged by libm in a wider type.
 *
 *   test_math               samples and hard cases; about a second
 *   test_math --all [fn]    also f32: every one of the 2^32 inputs (of one function, if named)
 *   test_math --more [fn]   also f64: 30 million samples a function
 *   test_math --time        also ns per element, beside libm
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#define BLOCK 1024

/* The bound is 2 ulp.  Where long double is double, the f64 reference itself is off by up to 1.
 * In the modes that leave the work to libm, the accuracy is libm's. */
#define LIMIT32 2.0
#if defined(EINI_VMATH_LIBM) && EINI_VMATH_LIBM
#define LIMIT64 4.0
#else
#define LIMIT64 (LDBL_MANT_DIG > DBL_MANT_DIG ? 2.0 : 3.0)
#endif

typedef struct {
  const char *name;
  void (*vec32)(int64_t n, const float *x, float *y);
  void (*vec64)(int64_t n, const double *x, double *y);
  double (*ref32)(double x);
  long double (*ref64)(long double x);
  float (*libm32)(float x);
  double lo, hi; /* where the function is interesting */
  int bounded;   /* |f| <= 1 */
} fn_entry;

/* The kernels' parameters are restrict qualified; these have the plain types above. */
#define WRAP(name)                                                  \
  static void name##_vec32(int64_t n, const float *x, float *y) {   \
    eini_v##name##_f32(n, x, y);                                    \
  }                                                                 \
  static void name##_vec64(int64_t n, const double *x, double *y) { \
    eini_v##name##_f64(n, x, y);                                    \
  }
WRAP(exp)
WRAP(log)
WRAP(sin)
WRAP(cos)
WRAP(tanh)
WRAP(erf)
#undef WRAP

static const fn_entry fns[] = {
    {"exp", exp_vec32, exp_vec64, exp, expl, expf, -750.0, 715.0, 0},
    {"log", log_vec32, log_vec64, log, logl, logf, 0.0, 4.0, 0},
    {"sin", sin_vec32, sin_vec64, sin, sinl, sinf, -2000.0, 2000.0, 1},
    {"cos", cos_vec32, cos_vec64, cos, cosl, cosf, -2000.0, 2000.0, 1},
    {"tanh", tanh_vec32, tanh_vec64, tanh, tanhl, tanhf, -21.0, 21.0, 1},
    {"erf", erf_vec32, erf_vec64, erf, erfl, erff, -6.2, 6.2, 1}};
#define NFNS ((int)(sizeof fns / sizeof fns[0]))

typedef struct {
  double ulp, x;
} worst_case;

static int failures;

static double from_bits(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static uint64_t to_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static float from_bits32(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static uint64_t rng(void) {
  static uint64_t s = 0x9e3779b97f4a7c15u;
  s ^= s >> 12;
  s ^= s << 25;
  s ^= s >> 27;
  return s * 0x2545f4914f6cdd1du;
}

static double rng_unit(void) { return (double)(rng() >> 11) * (1.0 / 9007199254740992.0); }

/* ---- the measure ---- */

/* |y - ref| in units of the spacing of the format at ref.  The format is taken to go on for one
 * more binade that starts with infinity, so that overflow is judged like any other rounding. */
static double ulps64(double y, long double ref) {
  const long double top = ldexpl(1.0L, DBL_MAX_EXP);
  long double v = (long double)y;
  int e;
  if (isnan(v) || isnan(ref)) return isnan(v) && isnan(ref) ? 0.0 : HUGE_VAL;
  v = v > top ? top : v < -top ? -top : v;
  ref = ref > top ? top : ref < -top ? -top : ref;
  if (v == ref) return v != 0.0L || signbit(v) == signbit(ref) ? 0.0 : HUGE_VAL;
  (void)frexpl(ref, &e);
  if (e < DBL_MIN_EXP) e = DBL_MIN_EXP;
  return (double)ldexpl(fabsl(v - ref), DBL_MANT_DIG - e);
}

static double ulps32(float y, double ref) {
  const double top = 340282366920938463463374607431768211456.0; /* 2^128 */
  double v = (double)y;
  uint64_t e;
  if (isnan(v) || isnan(ref)) return isnan(v) && isnan(ref) ? 0.0 : HUGE_VAL;
  v = v > top ? top : v < -top ? -top : v;
  ref = ref > top ? top : ref < -top ? -top : ref;
  if (v == ref) return v != 0.0 || signbit(v) == signbit(ref) ? 0.0 : HUGE_VAL;
  e = (to_bits(ref) >> 52) & 0x7ffu;
  if (e < 1023u - 126u) e = 1023u - 126u;
  return fabs(v - ref) * from_bits((2046u + 23u - e) << 52);
}

static void note(worst_case *w, double ulp, double x) {
  if (ulp > w->ulp) {
    w->ulp = ulp;
    w->x = x;
  }
}

static void check32(const fn_entry *f, const float *x, worst_case *w) {
  static float y[BLOCK];
  int i;
  f->vec32(BLOCK, x, y);
  for (i = 0; i < BLOCK; i++) {
    note(w, ulps32(y[i], f->ref32((double)x[i])), (double)x[i]);
    if (f->bounded && fabsf(y[i]) > 1.0f) note(w, HUGE_VAL, (double)x[i]);
  }
}

static void check64(const fn_entry *f, const double *x, worst_case *w) {
  static double y[BLOCK];
  int i;
  f->vec64(BLOCK, x, y);
  for (i = 0; i < BLOCK; i++) {
    note(w, ulps64(y[i], f->ref64((long double)x[i])), x[i]);
    if (f->bounded && fabs(y[i]) > 1.0) note(w, HUGE_VAL, x[i]);
  }
}

static void report(const fn_entry *f, const char *type, const worst_case *w, double limit) {
  int ok = w->ulp <= limit;
  printf("%-5s %s  max %.4f ulp at %.17g%s\n", f->name, type, w->ulp, w->x, ok ? "" : "  FAIL");
  if (!ok) failures++;
}

/* ---- inputs ---- */

/* Where something switches, overflows, underflows or cancels; the neighbours are taken too.
 * 6381956970095103 * 2^797 is the double closest to a multiple of pi/2, for its size. */
static const double hard[] = {
    0.0, 4.9406564584124654e-324, DBL_MIN, 1.4e-45, FLT_MIN, 1e-300, 1e-30, 1e-10, 0.01, 0.1, 0.3,
    0.34657359027997264, 0.5, 0.625, 0.69314718055994531, 0.70710678118654752, 1.0,
    1.4142135623730951, 1.5707963267948966, 2.0, 3.0, 3.1415926535897931, 3.95, 4.7123889803846899,
    5.0, 5.95, 6.0, 6.2831853071795862, 9.0, 9.0109, 10.0, 19.0615, 20.0, 22.0, 87.336544,
    88.722839, 103.97208, 104.0, 708.3964185322641, 709.78271289338397, 710.0, 745.13321910194122,
    746.0, 1000.0, 6433.0, 1e5, 1572864.0, 1.6e6, 25165824.0, 2.6e7, 1e9, 1e15, 1e22, FLT_MAX,
    1e100, 1e300, DBL_MAX, HUGE_VAL};
#define NHARD ((int)(sizeof hard / sizeof hard[0]))

static void fill64(const fn_entry *f, int kind, double *x) {
  int i;
  for (i = 0; i < BLOCK; i++) {
    double s = (rng() & 1u) != 0 ? 1.0 : -1.0;
    int e = (int)(rng() % 64u);
    if (kind == 0) { /* any bits */
      x[i] = from_bits(rng());
    } else if (kind == 1) { /* the interesting range */
      x[i] = f->lo + (f->hi - f->lo) * rng_unit();
    } else if (kind == 2) { /* one octave after the other */
      x[i] = s * ldexp(1.0 + rng_unit(), e - 52);
    } else if (kind == 3) { /* near 1 */
      x[i] = 1.0 + s * ldexp(rng_unit(), -e);
    } else if (kind == 4) { /* near multiples of pi/2 */
      double k = floor(ldexp(rng_unit(), e / 2));
      x[i] = s * (double)((long double)k * 1.57079632679489661923132169163975144L);
      x[i] = from_bits(to_bits(x[i]) + rng() % 3u);
    } else if (kind == 5) { /* around them */
      double k = floor(ldexp(rng_unit(), e / 3));
      x[i] = k * 1.5707963267948966 + s * ldexp(rng_unit(), -e / 2);
    } else { /* the middle of everything */
      x[i] = s * 8.0 * rng_unit();
    }
  }
}
#define NKINDS 7

static int fill_hard64(double *x) {
  int h, d, n = 0;
  for (h = 0; h < NHARD; h++) {
    for (d = -4; d <= 4; d++) {
      uint64_t u = to_bits(hard[h]);
      if (d < 0 && u < (uint64_t)-d) continue;
      x[n++] = from_bits(d < 0 ? u - (uint64_t)-d : u + (uint64_t)d);
      x[n] = -x[n - 1];
      n++;
    }
  }
  x[n++] = ldexp(6381956970095103.0, 797);
  while (n % BLOCK != 0) x[n++] = 0.75;
  return n;
}

static int fill_hard32(float *x) {
  int h, d, n = 0;
  for (h = 0; h < NHARD; h++) {
    float v = hard[h] > (double)FLT_MAX ? (float)HUGE_VAL : (float)hard[h];
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    for (d = -4; d <= 4; d++) {
      if (d < 0 && u < (uint32_t)-d) continue;
      x[n++] = from_bits32(d < 0 ? u - (uint32_t)-d : u + (uint32_t)d);
      x[n] = -x[n - 1];
      n++;
    }
  }
  while (n % BLOCK != 0) x[n++] = 0.75f;
  return n;
}

/* ---- the runs ---- */

static void sample(const fn_entry *f, int blocks64, worst_case *w32, worst_case *w64) {
  static float x32[4 * BLOCK];
  static double x64[4 * BLOCK];
  uint32_t bits = 0;
  int i, j, n = fill_hard32(x32);
  for (i = 0; i < n; i += BLOCK) check32(f, x32 + i, w32);
  n = fill_hard64(x64);
  for (i = 0; i < n; i += BLOCK) check64(f, x64 + i, w64);
  for (i = 0; i < 700; i++) {
    for (j = 0; j < BLOCK; j++, bits += 5993u) x32[j] = from_bits32(bits);
    check32(f, x32, w32);
  }
  for (i = 0; i < blocks64; i++) {
    fill64(f, i % NKINDS, x64);
    check64(f, x64, w64);
  }
}

static void exhaust32(const fn_entry *f, worst_case *w) {
  static float x[BLOCK];
  uint64_t u;
  int j;
  for (u = 0; u < (uint64_t)1 << 32; u += BLOCK) {
    for (j = 0; j < BLOCK; j++) x[j] = from_bits32((uint32_t)(u + (uint64_t)j));
    check32(f, x, w);
  }
}

static int same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

/* What C99 Annex F asks for, one value per call with the rest of the group far away. */
static void check_specials(void) {
  const double inf = HUGE_VAL, nan_ = from_bits(0x7ff8000000000000u);
  const struct {
    int fn;
    double x, y;
  } t[] = {{0, 0.0, 1.0},   {0, -0.0, 1.0}, {0, inf, inf},   {0, -inf, 0.0},  {0, 1e5, inf},
           {0, -1e5, 0.0},  {1, 1.0, 0.0},  {1, 0.0, -inf},  {1, -0.0, -inf}, {1, -1.0, nan_},
           {1, -inf, nan_}, {1, inf, inf},  {1, -1e-45, nan_}, {2, 0.0, 0.0}, {2, -0.0, -0.0},
           {2, inf, nan_},  {2, -inf, nan_}, {3, 0.0, 1.0},  {3, -0.0, 1.0},  {3, inf, nan_},
           {3, -inf, nan_}, {4, 0.0, 0.0},  {4, -0.0, -0.0}, {4, inf, 1.0},   {4, -inf, -1.0},
           {5, 0.0, 0.0},   {5, -0.0, -0.0}, {5, inf, 1.0},  {5, -inf, -1.0}, {0, nan_, nan_},
           {1, nan_, nan_}, {2, nan_, nan_}, {3, nan_, nan_}, {4, nan_, nan_}, {5, nan_, nan_},
           {0, -nan_, nan_}, {1, -nan_, nan_}, {2, -nan_, nan_}, {3, -nan_, nan_},
           {4, -nan_, nan_}, {5, -nan_, nan_}};
  int i, j;
  for (i = 0; i < (int)(sizeof t / sizeof t[0]); i++) {
    double x[16], y[16];
    float xf[16], yf[16];
    for (j = 0; j < 16; j++) {
      x[j] = j == i % 16 ? t[i].x : 0.5;
      xf[j] = (float)x[j];
    }
    fns[t[i].fn].vec64(16, x, y);
    fns[t[i].fn].vec32(16, xf, yf);
    j = i % 16;
    if (same(y[j], t[i].y) && same((double)yf[j], t[i].y)) continue;
    printf("%s(%g): f64 %g, f32 %g, expected %g  FAIL\n", fns[t[i].fn].name, t[i].x, y[j],
           (double)yf[j], t[i].y);
    failures++;
  }
}

static double seconds(void) { return (double)clock() / (double)CLOCKS_PER_SEC; }

static void time_all(void) {
  static float x32[BLOCK], y32[BLOCK];
  static double x64[BLOCK], y64[BLOCK];
  const int rounds = 2000;
  int i, j, k;
  printf("ns per element  f32    libm    f64    libm\n");
  for (i = 0; i < NFNS; i++) {
    const fn_entry *f = &fns[i];
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    double (*volatile libm64)(double) = f->ref32;
    float (*volatile libm32)(float) = f->libm32;
    for (j = 0; j < BLOCK; j++) {
      x64[j] = f->lo < 0.0 ? -8.0 + 16.0 * rng_unit() : 0.01 + 100.0 * rng_unit();
      x32[j] = (float)x64[j];
    }
    for (k = 0; k < 3; k++) {
      double t[5];
      int r, m;
      t[0] = seconds();
      for (r = 0; r < rounds; r++) f->vec32(BLOCK, x32, y32);
      t[1] = seconds();
      for (r = 0; r < rounds / 4; r++) {
        for (j = 0; j < BLOCK; j++) y32[j] = libm32(x32[j]);
      }
      t[2] = seconds();
      for (r = 0; r < rounds; r++) f->vec64(BLOCK, x64, y64);
      t[3] = seconds();
      for (r = 0; r < rounds / 4; r++) {
        for (j = 0; j < BLOCK; j++) y64[j] = libm64(x64[j]);
      }
      t[4] = seconds();
      for (m = 0; m < 4; m++) {
        int n = (m & 1) != 0 ? rounds / 4 : rounds;
        double ns = (t[m + 1] - t[m]) * 1e9 / ((double)n * BLOCK);
        if (ns < best[m]) best[m] = ns;
      }
    }
    printf("%-5s       %7.2f %7.2f %7.2f %7.2f\n", f->name, best[0], best[1], best[2], best[3]);
  }
}

int main(int argc, char **argv) {
  int all = argc > 1 && strcmp(argv[1], "--all") == 0;
  int more = argc > 1 && strcmp(argv[1], "--more") == 0;
  int i;
  check_specials();
  for (i = 0; i < NFNS; i++) {
    worst_case w32 = {0.0, 0.0}, w64 = {0.0, 0.0};
    if (argc > 2 && strcmp(argv[2], fns[i].name) != 0) continue;
    sample(&fns[i], more ? 30000 : 210, &w32, &w64);
    if (all) exhaust32(&fns[i], &w32);
    report(&fns[i], "f32", &w32, LIMIT32);
    report(&fns[i], "f64", &w64, LIMIT64);
  }
  if (argc > 1 && strcmp(argv[1], "--time") == 0) time_all();
  printf(failures != 0 ? "test_math: %d FAILED\n" : "test_math: ok\n", failures);
  return failures != 0;
}
