// Times the core on one thread: call overhead on 2x2 matrices, element-wise programs and permuted
// copies against copy bandwidth, reductions against read bandwidth. Prints one line per case;
// medians of interleaved runs.
//   cc -O3 -march=native bench/core_bench.c -o build/core_bench -lm && build/core_bench
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return v[n / 2];
}

static ein_ztensor view(ein_dtype t, int rank, const int64_t *shape, void *data) {
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = t;
  v.rank = rank;
  v.shape = shape;
  v.data = data;
  return v;
}

static void die(ein_ctx *ctx, const char *what, ein_status st) {
  fprintf(stderr, "%s: %s %s\n", what, ein_status_name(st), ein_ctx_message(ctx));
  exit(1);
}

// ---- 2x2 calls ----

#define BATCHES 21
static volatile double sink;

static void bare_loop(const double *a, const double *b, double *c) {
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 2; k++) {
      double s = 0;
      for (int j = 0; j < 2; j++) s += a[i * 2 + j] * b[j * 2 + k];
      c[i * 2 + k] = s;
    }
  }
}

static void overhead(ein_ctx *ctx) {
  static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
  static const int64_t shape[2] = {2, 2};
  ein_ztensor in[2], out = view(EIN_F64, 2, shape, c);
  in[0] = view(EIN_F64, 2, shape, a);
  in[1] = view(EIN_F64, 2, shape, b);
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = "ij,jk->ik";
  d.nin = 2;
  d.in = in;
  d.out = &out;
  ein_plan *plan;
  ein_status st = ein_plan_create(ctx, &d, &plan);
  if (st != EIN_OK) die(ctx, "plan", st);
  const void *pin[2] = {a, b};
  void *pout[1] = {c};
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = pin;
  run.out = pout;
  double t[4][BATCHES];
  for (int r = 0; r < BATCHES; r++) {
    for (int way = 0; way < 4; way++) {
      int n = way == 2 ? 2000 : 100000;
      double t0 = now();
      for (int i = 0; i < n; i++) {
        if (way == 0) ein_einsum(ctx, "ij,jk->ik", 2, in, &out);
        else if (way == 1) ein_plan_execute(plan, &run);
        else if (way == 2) ein_einsum(NULL, "ij,jk->ik", 2, in, &out);
        else bare_loop(a, b, c);
        sink = c[3];
      }
      t[way][r] = (now() - t0) / n * 1e9;
    }
  }
  static const char *const names[] = {"ein_einsum with a ctx", "ein_plan_execute",
                                      "ein_einsum, ctx NULL", "bare C loop"};
  for (int way = 0; way < 4; way++)
    printf("2x2 f64 ij,jk->ik  %-24s %9.1f ns\n", names[way], median(t[way], BATCHES));
  ein_plan_destroy(plan);
}

// ---- streaming cases: fraction of copy bandwidth ----

typedef struct stream_case {
  const char *name, *expr, *map;
  ein_dtype dtype;
  int rank, nin;
  int64_t in_shape[4], out_shape[4];
  int out_rank;
} stream_case;

#define REPS 9

static void stream(ein_ctx *ctx, const stream_case *s) {
  int64_t n = 1, m = 1;
  for (int i = 0; i < s->rank; i++) n *= s->in_shape[i];
  for (int i = 0; i < s->out_rank; i++) m *= s->out_shape[i];
  size_t size = ein_dtype_size(s->dtype), nb = (size_t)n * size, mb = (size_t)m * size;
  char *src = (char *)malloc(nb), *dst = (char *)malloc(nb > mb ? nb : mb);
  if (src == NULL || dst == NULL) exit(1);
  for (int64_t i = 0; i < n; i++) {
    double x = (double)(i % 1000) * 0.001;
    if (s->dtype == EIN_F64) ((double *)(void *)src)[i] = x;
    else ((float *)(void *)src)[i] = (float)x;
  }
  memset(dst, 0, nb > mb ? nb : mb);
  ein_ztensor in = view(s->dtype, s->rank, s->in_shape, src),
              out = view(s->dtype, s->out_rank, s->out_shape, dst);
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = s->expr;
  d.nin = 1;
  d.in = &in;
  d.out = &out;
  d.map = s->map;
  double ours[REPS], copy[REPS], read[REPS];
  for (int r = -1; r < REPS; r++) {
    double t0 = now();
    ein_status st = ein_einsum_ex(ctx, &d);
    double t1 = now();
    if (st != EIN_OK) die(ctx, s->name, st);
    memcpy(dst, src, nb);
    double t2 = now();
    double sum[8] = {0};
    for (int64_t i = 0; i + 8 <= (int64_t)(nb / 8); i += 8) {
      for (int j = 0; j < 8; j++) sum[j] += ((const double *)(const void *)src)[i + j];
    }
    sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
    double t3 = now();
    if (r < 0) continue;
    ours[r] = t1 - t0;
    copy[r] = t2 - t1;
    read[r] = t3 - t2;
  }
  double t = median(ours, REPS), c = median(copy, REPS), rd = median(read, REPS);
  double copy_bw = 2 * (double)nb / c, bw = (double)(nb + mb) / t;
  printf("%-34s %-4s %8.2f ms  %6.2f GB/s  %.2f of copy (%.2f GB/s), %.2f of read (%.2f GB/s)\n",
         s->name, ein_dtype_name(s->dtype), t * 1e3, bw * 1e-9, bw / copy_bw, copy_bw * 1e-9,
         bw / ((double)nb / rd), (double)nb / rd * 1e-9);
  free(src);
  free(dst);
}

int main(void) {
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  printf("einsum.h %s\n", ein_version());
  overhead(ctx);
  static const stream_case cases[] = {
      {"exp(2*x+1)/3", "i->i", "exp(2*x0+1)/3", EIN_F32, 1, 1, {1 << 24}, {1 << 24}, 1},
      {"exp(2*x+1)/3", "i->i", "exp(2*x0+1)/3", EIN_F64, 1, 1, {1 << 23}, {1 << 23}, 1},
      {"2*x+1", "i->i", "2*x0+1", EIN_F64, 1, 1, {1 << 23}, {1 << 23}, 1},
      {"copy ij->ij", "ij->ij", NULL, EIN_F64, 2, 1, {4096, 2048}, {4096, 2048}, 2},
      {"transpose ij->ji 4096", "ij->ji", NULL, EIN_F64, 2, 1, {4096, 4096}, {4096, 4096}, 2},
      {"transpose ij->ji 4095", "ij->ji", NULL, EIN_F64, 2, 1, {4095, 4095}, {4095, 4095}, 2},
      {"transpose ij->ji 4096", "ij->ji", NULL, EIN_F32, 2, 1, {4096, 4096}, {4096, 4096}, 2},
      {"permute ijk->kji 200^3",
       "ijk->kji",
       NULL,
       EIN_F64,
       3,
       1,
       {200, 200, 200},
       {200, 200, 200},
       3},
      {"permute ijkl->iklj 64^4",
       "ijkl->iklj",
       NULL,
       EIN_F32,
       4,
       1,
       {64, 64, 64, 64},
       {64, 64, 64, 64},
       4},
      {"sum ij->", "ij->", NULL, EIN_F64, 2, 1, {4096, 2048}, {0}, 0},
      {"sum ij->i", "ij->i", NULL, EIN_F64, 2, 1, {4096, 2048}, {4096}, 1},
      {"sum ij->j", "ij->j", NULL, EIN_F64, 2, 1, {4096, 2048}, {2048}, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) stream(ctx, &cases[i]);
  ein_ctx_destroy(ctx);
  return 0;
}
