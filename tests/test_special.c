// NaN, infinities and rounding where one wrong instruction would do: extrema of contractions by
// every set of vector instructions, logsumexp of infinities, every 16-bit float and every tie
// between two of them. Expected values are written again here, from the formats' definitions.
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

// Between each value and the next: the tie goes to the even one, and what is next to the tie in the
// wider type to its own side. The largest value's next is what would follow it: infinity.
static void ties(ein_ctx *ctx, ein_dtype half, ein_dtype wide) {
  enum { MOST = 0x7c00 * 3 };
  static double x[MOST];
  static float f[MOST];
  static uint16_t want[MOST], got[MOST];
  int n = 0, wrong = 0, top = half == EIN_F16 ? 0x7c00 : 0x7f80;
  int from = half == EIN_F16 ? 0 : 0x3c00, end = half == EIN_F16 ? top : 0x4400;
  for (int pass = 0; pass < 2; pass++) {  // both signs
    n = 0;
    for (int i = from; i < end; i++) {
      double a = half == EIN_F16 ? orc_f16_value((unsigned)i) : orc_bf16_value((unsigned)i);
      double b = half == EIN_F16 ? orc_f16_value((unsigned)i + 1) : orc_bf16_value((unsigned)i + 1);
      double tie = i + 1 == top ? 65520 : (a + b) / 2;
      for (int side = -1; side <= 1; side++, n++) {
        double v = tie;
        if (side != 0 && wide == EIN_F64) v = nextafter(tie, side < 0 ? 0 : INFINITY);
        else if (side != 0) v = (double)nextafterf((float)tie, side < 0 ? 0 : INFINITY);
        int up = side > 0 || (side == 0 && i % 2 == 1);
        x[n] = pass ? -v : v;
        f[n] = (float)x[n];
        want[n] = (uint16_t)((i + up) | (pass ? 0x8000 : 0));
      }
    }
    convert(ctx, wide, half, n, wide == EIN_F64 ? (void *)x : (void *)f, got);
    for (int k = 0; k < n; k++) {
      if (got[k] == want[k]) continue;
      if (wrong++ == 0)
        printf("  %s of %.17g by %s: %04x, not %04x\n", ein_dtype_name(half), x[k],
               ein_dtype_name(wide), got[k], want[k]);
    }
  }
  CHECK(wrong == 0);
}

int main(void) {
  static const ein_dtype floats[] = {EIN_F32, EIN_F64};
  static const ein_dtype all[] = {EIN_F32, EIN_F64, EIN_F16, EIN_BF16};
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
    for (int t = 2; t < 4; t++) {
      widened(ctx, all[t]);
      ties(ctx, all[t], EIN_F32);
      ties(ctx, all[t], EIN_F64);
    }
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  printf("%d sets of kernels\n", tried);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
