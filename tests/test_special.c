// NaN, infinities and rounding where one wrong instruction would do: extrema of contractions by
// every set of vector instructions, logsumexp of infinities, every 16-bit float and every tie
// between two of them, of every dtype. Expected values are written again here, from the formats'
// definitions.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "check.h"
#include "oracle.h"
#include "util.h"

static ein_ztensor view(ein_dtype t, int rank, const int64_t *shape, void *data) {
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = t;
  v.rank = rank;
  v.shape = shape;
  v.data = data;
  return v;
}

// A ctx whose kernels are those of an instruction set; isa NULL: the portable ones. NULL: this
// machine has it not.
static ein_ctx *ctx_of(const char *isa, int threads, ein_cpu **cpu) {
  ein_ctx_desc d;
  ein_cpu_desc machine;
  ein_ctx *ctx = NULL;
  const ein_kernels *kernels[1];
  memset(&d, 0, sizeof d);
  memset(&machine, 0, sizeof machine);
  *cpu = NULL;
  if (isa != NULL) {
    machine.isa = isa;
    machine.threads = threads;
    if (ein_cpu_create(&machine, NULL, cpu) != EIN_OK) return NULL;
    kernels[0] = ein_cpu_kernels(*cpu);
    d.kernels = kernels;
    d.nkernels = 1;
    d.executor = ein_cpu_executor(*cpu);
  }
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  return ctx;
}

static const char *const isas[] = {NULL, "plain", "avx2", "avx512", "neon"};

// ---- extrema of contractions --------------------------------------------------------------------

static double joined(int map, double a, double b) {
  return map == 0 ? a + b : map == 1 ? a * b : map == 2 ? fabs(a - b) : a - b;
}

// D[i,j] = max or min over k of a map of A[i,k] and B[k,j], some of them special.
static void extremum(ein_ctx *ctx, const char *isa, ein_dtype t, int fold, int map, int b_turned) {
  static const char *const maps[] = {"x0+x1", "x0*x1", "abs(x0-x1)", "x0-x1"};
  static const double odd[] = {0, 0, INFINITY, -INFINITY};
  const int64_t m = draw(1, 70), n = draw(1, 70), k = draw(1, 40);
  const int64_t sa[] = {m, k}, sb[] = {b_turned ? n : k, b_turned ? k : n}, sd[] = {m, n};
  double *x[3];
  char *data[3];
  const int64_t count[3] = {m * k, k * n, m * n};
  for (int q = 0; q < 3; q++) {
    x[q] = (double *)orc_alloc(count[q], sizeof(double));
    data[q] = (char *)orc_alloc(count[q], sizeof(double));
    for (int64_t i = 0; i < count[q]; i++) {
      x[q][i] = (double)draw(-32, 32) / 4;
      if (chance(1)) x[q][i] = chance(70) ? NAN : odd[draw(2, 3)];
      orc_put(t, data[q], i, orc_float(x[q][i], 0));
    }
  }
  ein_ztensor in[2], out = view(t, 2, sd, data[2]);
  in[0] = view(t, 2, sa, data[0]);
  in[1] = view(t, 2, sb, data[1]);
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = b_turned ? "ik,jk->ij" : "ik,kj->ij";
  d.nin = 2;
  d.in = in;
  d.out = &out;
  d.monoid = fold ? "min" : "max";
  d.map = maps[map];
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double best = fold ? INFINITY : -INFINITY, got = orc_load(t, data[2], i * n + j).re;
      for (int64_t q = 0; q < k && best == best; q++) {
        double v = joined(map, x[0][i * k + q], x[1][b_turned ? j * k + q : q * n + j]);
        if (v != v || (fold ? v < best : v > best)) best = v;
      }
      wrong += best != best ? got == got : !(got >= best && got <= best);
    }
  }
  CHECK(wrong == 0);
  if (wrong > 0)
    printf("  %s of %s, %s, %s: %lld of %lld wrong, k %lld\n", d.monoid, d.map,
           ein_dtype_name(t), isa == NULL ? "portable" : isa, (long long)wrong, (long long)(m * n),
           (long long)k);
  for (int q = 0; q < 3; q++) {
    free(x[q]);
    free(data[q]);
  }
}

// ---- logsumexp ----------------------------------------------------------------------------------

// Rows of n values, as rows and as columns: what their logsumexp is, known without computing it.
static void infinities(ein_ctx *ctx, const char *isa, ein_dtype t, int64_t n) {
  enum { ROWS = 5 };
  static const double want[ROWS] = {-INFINITY, INFINITY, NAN, 3, INFINITY};
  char *data[2], out[ROWS * 8];
  const int64_t shape[2] = {ROWS, n}, column[2] = {n, ROWS}, rows[1] = {ROWS}, one[1] = {1};
  for (int by = 0; by < 2; by++) {
    data[by] = (char *)orc_alloc(ROWS * n, 8);
    for (int64_t i = 0; i < ROWS * n; i++) {
      int64_t row = by ? i % ROWS : i / n, at = by ? i / ROWS : i % n;
      double v = row == 1 || row == 4 ? (double)(at % 5) : -INFINITY;
      if (at == n / 2 && row > 0) v = want[row];
      if (row == 4) v = at % 3 == 0 ? INFINITY : v;  // several infinities
      orc_put(t, data[by], i, orc_float(v, 0));
    }
    ein_ztensor in = view(t, 2, by ? column : shape, data[by]), to = view(t, 1, rows, out);
    ein_einsum_desc d;
    memset(&d, 0, sizeof d);
    d.expr = by ? "ij->j" : "ij->i";
    d.nin = 1;
    d.in = &in;
    d.out = &to;
    d.monoid = "logsumexp";
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
    for (int row = 0; row < ROWS; row++) {
      double got = orc_load(t, out, row).re, tol = 1e-6;
      int ok = want[row] != want[row] ? got != got : want[row] - want[row] != 0
                   ? got >= want[row] && got <= want[row] : fabs(got - want[row]) <= tol;
      CHECK(ok);
      if (!ok)
        printf("  logsumexp, %s, %s, %lld by %s, row %d: %g, not %g\n", ein_dtype_name(t),
               isa == NULL ? "portable" : isa, (long long)n, by ? "columns" : "rows", row, got,
               want[row]);
    }
  }
  // All in one: a scalar.
  for (int64_t i = 0; i < n; i++) orc_put(t, data[0], i, orc_float(-INFINITY, 0));
  ein_ztensor in = view(t, 1, shape + 1, data[0]), to = view(t, 0, one, out);
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = "i->";
  d.nin = 1;
  d.in = &in;
  d.out = &to;
  d.monoid = "logsumexp";
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  double all = orc_load(t, out, 0).re;
  CHECK(all <= -INFINITY);
  free(data[0]);
  free(data[1]);
}

// ---- 16-bit floats ------------------------------------------------------------------------------

static void convert(ein_ctx *ctx, ein_dtype from, ein_dtype to, int64_t n, void *src, void *dst) {
  ein_ztensor in = view(from, 1, &n, src), out = view(to, 1, &n, dst);
  CHECK(ein_einsum(ctx, "i->i", 1, &in, &out) == EIN_OK);
}

// Every value there is to f32, f64 and back; NaN stays NaN, the sign of zeros stays.
static void widened(ein_ctx *ctx, ein_dtype half) {
  static uint16_t h[65536], back[65536];
  static float f[65536];
  static double d[65536];
  for (int i = 0; i < 65536; i++) h[i] = (uint16_t)i;
  convert(ctx, half, EIN_F32, 65536, h, f);
  convert(ctx, half, EIN_F64, 65536, h, d);
  for (int to = 0; to < 2; to++) {
    int wrong = 0;
    convert(ctx, to ? EIN_F64 : EIN_F32, half, 65536, to ? (void *)d : (void *)f, back);
    for (int i = 0; i < 65536; i++) {
      double v = half == EIN_F16 ? orc_f16_value((unsigned)i) : orc_bf16_value((unsigned)i);
      double x = to ? d[i] : (double)f[i];
      if (v != v) {
        double again = half == EIN_F16 ? orc_f16_value(back[i]) : orc_bf16_value(back[i]);
        wrong += x == x || again == again;
      } else {
        wrong += !(x >= v && x <= v) || !!signbit(x) != !!signbit(v) || back[i] != i;
      }
    }
    CHECK(wrong == 0);
    if (wrong > 0)
      printf("  %s by %s: %d wrong\n", ein_dtype_name(half), to ? "f64" : "f32", wrong);
  }
}

// ---- numbers to 16-bit floats, rounded once -----------------------------------------------------

typedef struct half_format {
  ein_dtype dtype;
  const char *name;
  int mant, low;  // bits behind the leading one; the least subnormal is 2^low
} half_format;

static const half_format halves[] = {{EIN_F16, "f16", 10, -24}, {EIN_BF16, "bf16", 7, -133}};

static double half_value(const half_format *h, unsigned bits) {
  return h->dtype == EIN_F16 ? orc_f16_value(bits) : orc_bf16_value(bits);
}

// The bits of the value nearest to m * 2^e, the even one of two. In integers.
static unsigned half_nearest(const half_format *h, uint64_t m, int e) {
  const unsigned inf = (0x7fffu >> h->mant) << h->mant;
  int length = 0, q = h->low;  // q: of the last bit that stays
  while (length < 64 && m >> length != 0) length++;
  if (e + length - h->mant - 1 > q) q = e + length - h->mant - 1;
  const int shift = q - e;
  uint64_t kept = shift > 63 ? 0 : shift > 0 ? m >> shift : m << -shift;
  if (shift > 0 && shift <= 64) {
    const uint64_t rest = shift == 64 ? m : m & (((uint64_t)1 << shift) - 1);
    const uint64_t tie = (uint64_t)1 << (shift - 1);
    kept += rest > tie || (rest == tie && kept % 2 == 1);
  }
  if (m == 0) return 0;
  if (q - h->low > 300) return inf;
  const unsigned bits = ((unsigned)(q - h->low) << h->mant) + (unsigned)kept;
  return bits < inf ? bits : inf;
}

// The same of a number of a dtype, which is element k of src.
static unsigned half_want(const half_format *h, ein_dtype t, const void *src, int64_t k) {
  const orc_val v = orc_load(t, src, k);
  const int neg = orc_is_float(t) ? !!signbit(v.re) : v.i < 0;
  int e = 0;
  uint64_t m = neg ? (uint64_t)0 - (uint64_t)v.i : (uint64_t)v.i;
  if (orc_is_float(t)) {
    if (v.re - v.re != 0) return (neg ? 0x8000u : 0) | (0x7fffu >> h->mant) << h->mant;
    m = (uint64_t)ldexp(frexp(fabs(v.re), &e), 53);
    e -= 53;
  }
  return (neg ? 0x8000u : 0) | half_nearest(h, m, e);
}

// Appends a number to src if it is of dtype t, between what is next to it below and above.
static int64_t half_put(ein_dtype t, void *src, int64_t n, double x) {
  const double end = t == EIN_I16 ? 32767 : t == EIN_I32 ? 2147483647 : 9223372036854773760.0;
  for (int side = -1; side <= 1; side++) {
    orc_val v = orc_float(x, 0);
    if (!orc_is_float(t)) {
      if (fabs(x) >= end || floor(x) != x) return n;
      v = orc_int((int64_t)x + side);
    } else if (side != 0 && t == EIN_F64) {
      v.re = nextafter(x, (double)side * INFINITY);
    } else if (side != 0) {
      v.re = (double)nextafterf((float)x, (float)side * INFINITY);
    }
    orc_put(t, src, n++, v);
  }
  return n;
}

// Ties between values next to each other, of all sizes and both signs, with what is next to them,
// and numbers less regular; *src is theirs. Numbers of them are a multiple of 8.
static int64_t half_numbers(const half_format *h, ein_dtype t, void **src) {
  static const double odd[] = {0, 0.0, 65504, 65519.99, 65520, 3.4028234663852886e38, 1e39, 1e308,
                               5e-324, 1e-310, 1e-45, 9007199254740992.0, 4611686018427387904.0};
  const int top = (0x7fff >> h->mant) << h->mant;
  int64_t n = 0;
  *src = orc_alloc(6 * ((int64_t)top + 4096), 8);
  for (int i = 0; i < top; i += FEW_STEP) {
    const double a = half_value(h, (unsigned)i), step = a - half_value(h, (unsigned)i - (i > 1));
    const double b = i + 1 < top ? half_value(h, (unsigned)i + 1) : a + step;
    for (int neg = 0; neg < 2; neg++) n = half_put(t, *src, n, (neg ? -1 : 1) * (a / 2 + b / 2));
  }
  for (int i = 0; i < 2000; i++) {
    const double a = half_value(h, (unsigned)draw(1, top - 2));
    n = half_put(t, *src, n, orc_is_float(t) ? a * (1 + (double)draw(-4096, 4096) / 4194304)
                                            : floor(a) + (double)draw(-3, 3));
  }
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) n = half_put(t, *src, n, odd[i]);
  return n / 8 * 8;
}

static void half_check(const char *what, const half_format *h, ein_dtype t, int64_t n,
                       const void *src, ein_dtype to, const void *got) {
  int64_t wrong = 0;
  for (int64_t k = 0; k < n; k++) {
    const double want = half_value(h, half_want(h, t, src, k)), x = orc_load(to, got, k).re;
    if (x >= want && x <= want && !!signbit(x) == !!signbit(want)) continue;
    if (wrong++ > 0) continue;
    const orc_val v = orc_load(t, src, k);
    printf("  %s of %.17g (%lld), %s by %s: %.17g, not %.17g\n", h->name, v.re, (long long)v.i,
           what, ein_dtype_name(t), x, want);
  }
  CHECK(wrong == 0);
  if (wrong > 0) printf("  %lld of %lld are wrong\n", (long long)wrong, (long long)n);
}

// What a program makes of x and, beside a matrix, of the 8x8 unit matrix I; out: in its order.
static void half_program(ein_ctx *ctx, const char *text, ein_ztensor x, void *unit, void **out) {
  const int64_t square[2] = {8, 8};
  ein_ztensor one = view(EIN_F32, 2, square, unit);
  ein_binding bind[2];
  ein_program_desc d;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  ein_run run;
  const void *in[2];
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  bind[0].name = "x";
  bind[0].view = &x;
  bind[1].name = "I";
  bind[1].view = &one;
  d.text = text;
  d.bind = bind;
  d.nbind = x.rank;
  const ein_status st = ein_graph_parse(ctx, &d, &graph);
  CHECK(st == EIN_OK && ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) == EIN_OK);
  if (plan == NULL) printf("%s\n", ein_ctx_message(ctx));
  in[0] = x.data;
  in[1] = unit;
  run.in = in;
  run.out = out;
  if (plan != NULL) CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);
}

// Stores, conversions that are stored, kept, or multiplied, and what is fused with a store.
static void rounded(ein_ctx *ctx, const half_format *h, ein_dtype t) {
  const char *type = ein_dtype_name(t);
  char text[400];
  float unit[64] = {0};
  void *src, *out[5];
  const int64_t n = half_numbers(h, t, &src), shape[2] = {n / 8, 8};
  for (int k = 0; k < 5; k++) out[k] = orc_alloc(n, 8);
  for (int k = 0; k < 8; k++) unit[9 * k] = 1;
  if (t != EIN_I64) {  // NumPy's way is by f64, the common dtype
    convert(ctx, t, h->dtype, n, src, out[0]);
    half_check("a copy", h, t, n, src, h->dtype, out[0]);
  }
  sprintf(text, "input x[n] : %s\nA[i] : %s = x[i]\nB[i] = cast_%s(x[i])\n"
          "C[i] : f32 = cast_%s(x[i])\nD[i] : f64 = cast_%s(x[size(n)-1-i])\n"
          "T[i] : %s = x[i]\nE[i] : f32 = T[i]*1\noutput A, B, C, D, E\n",
          type, h->name, h->name, h->name, h->name, h->name);
  half_program(ctx, text, view(t, 1, &n, src), unit, out);
  half_check("a store", h, t, n, src, h->dtype, out[0]);
  half_check("a stored cast", h, t, n, src, h->dtype, out[1]);
  half_check("a cast", h, t, n, src, EIN_F32, out[2]);
  for (int64_t i = 0; i < n / 2; i++) {
    double *d = (double *)out[3], x = d[i];
    d[i] = d[n - 1 - i];
    d[n - 1 - i] = x;
  }
  half_check("a turned cast", h, t, n, src, EIN_F64, out[3]);
  half_check("what was stored", h, t, n, src, EIN_F32, out[4]);
  // Infinities times zeros would be NaN.
  for (int64_t k = 0; k < n; k++) {
    const double x = half_value(h, half_want(h, t, src, k));
    if (x - x != 0) orc_put(t, src, k, orc_float(0, 0));
  }
  sprintf(text, "input x[m,n] : %s\ninput I[n,k] : f32\n"
          "Y[i,j] : f32 = sum[l](cast_%s(x[i,l])*I[l,j]) + 0\n", type, h->name);
  half_program(ctx, text, view(t, 2, shape, src), unit, out);
  for (int64_t k = 0; k < n; k++) {  // 0 is added: -0 is lost
    if (half_want(h, t, src, k) == 0x8000u) orc_put(t, src, k, orc_float(0, 0));
  }
  half_check("a factor", h, t, n, src, EIN_F32, out[0]);
  for (int k = 0; k < 5; k++) free(out[k]);
  free(src);
}

// Literals that take the dtype of a 16-bit operand: beside ties, and ties.
static void literals(ein_ctx *ctx, const half_format *h) {
  enum { MANY = 60 };
  static char text[MANY * 100];
  static const char *const how[] = {"where(x[i] > 0, x[i], %.17g)", "max(%.17g, x[i])",
                                    "x[i] + %.17g", "x[8-i]*0 - (%.17g)"};
  const char *type = h->name;
  float unit[64] = {0};
  double src[MANY];
  uint16_t x[9];
  void *out[MANY];
  const int64_t n = 9;
  const unsigned top = h->dtype == EIN_F16 ? 0x7c00u : 0x7f80u;
  for (int k = 0; k < MANY; k++) out[k] = orc_alloc(n, 2);
  for (int round = 0; round < FEW(40); round++) {
    size_t at = (size_t)sprintf(text, "input x[n=9] : %s\n", type);
    for (int k = 0; k < MANY; k++) {
      const unsigned i = (unsigned)draw(1, top - 2);
      const double tie = half_value(h, i) / 2 + half_value(h, i + 1) / 2;
      const double put = tie * (1 + (double)draw(-1, 1) / 1099511627776.0);
      char line[64];
      src[k] = k % 4 == 1 ? put : (chance(50) ? -1 : 1) * put;
      snprintf(line, sizeof line, how[k % 4], k % 4 == 3 ? -src[k] : src[k]);
      at += (size_t)sprintf(text + at, "Y%d[i] : %s = %s\n", k, type, line);
    }
    for (int k = 0; k < MANY; k++)
      at += (size_t)sprintf(text + at, "%sY%d", k > 0 ? ", " : "output ", k);
    sprintf(text + at, "\n");
    memset(x, 0, sizeof x);
    half_program(ctx, text, view(h->dtype, 1, &n, x), unit, out);
    for (int k = 0; k < MANY; k++)
      for (int64_t i = 0; i < n; i++)
        CHECK(((uint16_t *)out[k])[i] == half_want(h, EIN_F64, src, k));
  }
  for (int k = 0; k < MANY; k++) free(out[k]);
}

int main(void) {
  static const ein_dtype floats[] = {EIN_F32, EIN_F64};
  static const ein_dtype all[] = {EIN_F32, EIN_F64, EIN_F16, EIN_BF16};
  static const ein_dtype sources[] = {EIN_F64, EIN_F32, EIN_I64, EIN_I32, EIN_I16};
  static const int64_t lengths[] = {1, 2, 7, 8, 9, 33, 256, 1000, 5003};
  int tried = 0;
  rng_state = 1;
  for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
    ein_cpu *cpu;
    ein_ctx *ctx = ctx_of(isas[k], 1 + (int)(k % 3), &cpu);
    if (ctx == NULL) continue;
    tried++;
    for (int i = 0; i < 96; i++)
      extremum(ctx, isas[k], floats[i % 2], i / 2 % 2, i / 4 % 4, i / 16 % 2);
    for (int t = 0; t < 4; t++)
      for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        infinities(ctx, isas[k], all[t], lengths[i]);
    for (int h = 0; h < 2; h++) {
      widened(ctx, halves[h].dtype);
      literals(ctx, &halves[h]);
      for (size_t t = 0; t < sizeof sources / sizeof *sources; t++)
        rounded(ctx, &halves[h], sources[t]);
    }
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  printf("%d sets of kernels\n", tried);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
