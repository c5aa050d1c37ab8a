// Times the portable contract kernel on matrix products of many shapes, next to OpenBLAS where the
// dynamic loader finds it. Medians of interleaved runs on one thread.
//   cc -O3 -march=native bench/matmul_bench.c -o matmul_bench -lm -ldl
//   OPENBLAS_NUM_THREADS=1 ./matmul_bench [seconds per row] [first row only: 1]
#define _GNU_SOURCE
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void (*dgemm_fn)(int order, int ta, int tb, int m, int n, int k, double alpha,
                         const double *a, int lda, const double *b, int ldb, double beta, double *c,
                         int ldc);
typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef void (*zgemm_fn)(int order, int ta, int tb, int m, int n, int k, const void *alpha,
                         const void *a, int lda, const void *b, int ldb, const void *beta, void *c,
                         int ldc);

typedef struct blas {
  dgemm_fn dgemm;
  sgemm_fn sgemm;
  zgemm_fn cgemm, zgemm;
} blas;

// One matrix product: layouts "nn", "tn" (A stored k x m), "nt" (B stored n x k).
typedef struct shape {
  const char *name, *layout;
  ein_dtype type;
  int64_t batch, m, n, k;
} shape;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *t, int n) {
  qsort(t, (size_t)n, sizeof *t, by_value);
  return t[n / 2];
}

// A symbol as a function: through memory, since ISO C has no such cast.
static int symbol(void *lib, const char *name, void *fn) {
  void *p = dlsym(lib, name);
  memcpy(fn, &p, sizeof p);
  return p != NULL;
}

static int blas_load(blas *b) {
  const char *const names[3] = {"libopenblas.so.0", "libopenblas.so", "libopenblas.dylib"};
  typedef void (*threads_fn)(int);
  typedef char *(*core_fn)(void);
  threads_fn threads = NULL;
  core_fn core = NULL;
  void *lib = NULL;
  for (int i = 0; i < 3 && lib == NULL; i++) lib = dlopen(names[i], RTLD_NOW);
  memset(b, 0, sizeof *b);
  if (lib == NULL || !symbol(lib, "cblas_dgemm", &b->dgemm) ||
      !symbol(lib, "cblas_sgemm", &b->sgemm) || !symbol(lib, "cblas_cgemm", &b->cgemm) ||
      !symbol(lib, "cblas_zgemm", &b->zgemm)) {
    printf("OpenBLAS: not found, no ratios\n");
    return 0;
  }
  if (symbol(lib, "openblas_set_num_threads", &threads)) threads(1);
  printf("OpenBLAS: %s, one thread\n", symbol(lib, "openblas_get_corename", &core) ? core() : "?");
  return 1;
}

static void blas_run(const blas *b, const shape *s, const char *p, const char *q, char *out) {
  const double one[2] = {1, 0}, zero[2] = {0, 0};
  const float onef[2] = {1, 0}, zerof[2] = {0, 0};
  int m = (int)s->m, n = (int)s->n, k = (int)s->k, z = (int)ein_dtype_size(s->type);
  int ta = s->layout[0] == 't', tb = s->layout[1] == 't';
  int la = ta ? m : k, lb = tb ? k : n, oa = ta ? 112 : 111, ob = tb ? 112 : 111;
  for (int64_t i = 0; i < s->batch; i++) {
    const void *x = p + i * m * k * z, *y = q + i * k * n * z;
    void *c = out + i * m * n * z;
    switch (s->type) {
      case EIN_F64:
        b->dgemm(101, oa, ob, m, n, k, 1, (const double *)x, la, (const double *)y, lb, 0,
                 (double *)c, n);
        break;
      case EIN_F32:
        b->sgemm(101, oa, ob, m, n, k, 1, (const float *)x, la, (const float *)y, lb, 0,
                 (float *)c, n);
        break;
      case EIN_C64: b->cgemm(101, oa, ob, m, n, k, onef, x, la, y, lb, zerof, c, n); break;
      default: b->zgemm(101, oa, ob, m, n, k, one, x, la, y, lb, zero, c, n); break;
    }
  }
}

static void fill(ein_dtype t, char *p, int64_t n) {
  int reals = t == EIN_C64 || t == EIN_C128 ? 2 : 1;
  for (int64_t i = 0; i < n * reals; i++) {
    double d = (double)(i * 7919 % 1000) / 1000.0 - 0.5;
    float f = (float)d;
    if (t == EIN_F64 || t == EIN_C128) {
      memcpy(p + i * 8, &d, 8);
    } else if (t == EIN_I64) {
      memcpy(p + i * 8, &i, 8);
    } else {
      memcpy(p + i * 4, &f, 4);
    }
  }
}

static void row(const blas *b, int have, const shape *s, double budget) {
  enum { MOST = 101 };
  int64_t z = (int64_t)ein_dtype_size(s->type), ta = s->layout[0] == 't', tb = s->layout[1] == 't';
  int64_t pb = s->m * s->k, qb = s->k * s->n, ob = s->m * s->n;
  int64_t pm = ta ? 1 : s->k, pk = ta ? s->m : 1, qk = tb ? 1 : s->n, qn = tb ? s->k : 1;
  int64_t om = s->n, on = 1;
  const int64_t *spm = &pm, *spk = &pk, *sqk = &qk, *sqn = &qn, *spb = &pb, *sqb = &qb;
  char *p = (char *)malloc((size_t)(s->batch * pb * z));
  char *q = (char *)malloc((size_t)(s->batch * qb * z));
  char *out = (char *)malloc((size_t)(s->batch * ob * z)), *raw, *scratch;
  const char *pp = p, *qq = q;
  int blas_ok = have && s->type >= EIN_F32, runs = 0;
  double ours[MOST], theirs[MOST], spent = 0, flops, t, each = 1;
  ein_contract c;
  ein_choice h;
  const ein_part part = {{0, s->batch}, {0, s->m}, {0, s->n}};
  memset(&c, 0, sizeof c);
  c.type = s->type;
  c.batch.n = s->batch > 1;
  c.m.n = c.n.n = c.k.n = 1;
  c.batch.extent = &s->batch, c.m.extent = &s->m, c.n.extent = &s->n, c.k.extent = &s->k;
  c.p.nop = c.q.nop = c.plain_out = 1;
  c.p.base = &pp, c.q.base = &qq, c.p.dtype = c.q.dtype = &s->type;
  c.p.row = &spm, c.p.k = &spk, c.p.batch = &spb;
  c.q.row = &sqn, c.q.k = &sqk, c.q.batch = &sqb;
  c.out = out, c.out_dtype = s->type, c.out_m = &om, c.out_n = &on, c.out_batch = &ob;
  eini_contract_plan(&c, 1, -1, &h);
  raw = (char *)malloc(h.scratch + 64);
  scratch = (char *)(((uintptr_t)raw + 63) / 64 * 64);
  fill(s->type, p, s->batch * pb);
  fill(s->type, q, s->batch * qb);
  memset(out, 0, (size_t)(s->batch * ob * z));
  eini_contract_run(&c, &h, &part, scratch);
  if (blas_ok) blas_run(b, s, p, q, out);
  t = now();
  for (; each < 20000 && now() - t < 4e-3; each++) eini_contract_run(&c, &h, &part, scratch);
  while (runs < MOST && (runs < 3 || spent < budget)) {
    double t0 = now(), t1;
    for (int i = 0; i < (int)each; i++) eini_contract_run(&c, &h, &part, scratch);
    t1 = now();
    ours[runs] = (t1 - t0) / each;
    for (int i = 0; blas_ok && i < (int)each; i++) blas_run(b, s, p, q, out);
    theirs[runs] = (now() - t1) / each;
    spent += now() - t0;
    runs++;
  }
  flops = (s->type >= EIN_C64 ? 8.0 : 2.0) * (double)s->batch * (double)s->m * (double)s->n *
          (double)s->k;
  t = median(ours, runs);
  printf("%-5s %-14s %s %7lld %6lld %6lld %6lld %11.3f us %8.2f GFLOP/s %7.2f GB/s",
         ein_dtype_name(s->type), s->name, s->layout, (long long)s->batch, (long long)s->m,
         (long long)s->n, (long long)s->k, t * 1e6, flops / t * 1e-9,
         (double)(s->batch * (pb + qb + ob) * z) / t * 1e-9);
  if (blas_ok) {
    double u = median(theirs, runs);
    printf("   OpenBLAS %8.2f   fraction %5.2f", flops / u * 1e-9, u / t);
  }
  printf("  %s\n", h.variant), fflush(stdout);
  free(p), free(q), free(out), free(raw);
}

int main(int argc, char **argv) {
  static const shape table[] = {
      {"square", "nn", EIN_F64, 1, 1024, 1024, 1024},
      {"square", "nn", EIN_F32, 1, 1024, 1024, 1024},
      {"square", "nt", EIN_F64, 1, 1024, 1024, 1024},
      {"square", "tn", EIN_F64, 1, 1024, 1024, 1024},
      {"square", "nn", EIN_C64, 1, 512, 512, 512},
      {"square", "nn", EIN_C128, 1, 512, 512, 512},
      {"square", "nn", EIN_I32, 1, 512, 512, 512},
      {"square", "nn", EIN_I64, 1, 512, 512, 512},
      {"square", "nn", EIN_F64, 1, 256, 256, 256},
      {"square", "nn", EIN_F64, 1, 128, 128, 128},
      {"square", "nn", EIN_F64, 1, 64, 64, 64},
      {"odd", "nn", EIN_F64, 1, 257, 251, 263},
      {"tiny", "nn", EIN_F64, 1, 2, 2, 2},
      {"tiny", "nn", EIN_F64, 1, 4, 4, 4},
      {"tiny", "nn", EIN_F64, 1, 8, 8, 8},
      {"tiny", "nn", EIN_F64, 1, 16, 16, 16},
      {"tiny", "nn", EIN_F64, 1, 20, 20, 20},
      {"tiny", "nn", EIN_F64, 1, 24, 24, 24},
      {"tiny", "nn", EIN_F64, 1, 32, 32, 32},
      {"tiny", "nn", EIN_F64, 1, 48, 48, 48},
      {"batched", "nn", EIN_F64, 100000, 4, 4, 4},
      {"batched", "nn", EIN_F64, 50000, 8, 8, 8},
      {"batched", "nn", EIN_F64, 10000, 16, 16, 16},
      {"batched", "nt", EIN_F64, 10000, 16, 16, 16},
      {"batched", "nn", EIN_F64, 3000, 32, 32, 32},
      {"batched", "nn", EIN_F32, 100000, 4, 4, 4},
      {"batched", "nn", EIN_F32, 10000, 16, 16, 16},
      {"batched", "nn", EIN_C128, 10000, 4, 4, 4},
      {"tall-skinny", "nn", EIN_F64, 1, 100000, 8, 64},
      {"tall-skinny", "nn", EIN_F64, 1, 100000, 32, 32},
      {"wide", "nn", EIN_F64, 1, 8, 100000, 64},
      {"long k", "nn", EIN_F64, 1, 16, 16, 200000},
      {"long k", "tn", EIN_F64, 1, 32, 32, 100000},
      {"tiny k", "nn", EIN_F64, 1, 1024, 1024, 2},
      {"tiny k", "nn", EIN_F64, 1, 1024, 1024, 8},
      {"tiny k", "nn", EIN_F64, 1, 1024, 1024, 32},
      {"outer", "nn", EIN_F64, 1, 2048, 2048, 1},
      {"matvec", "nn", EIN_F64, 1, 4096, 1, 4096},
      {"matvec", "tn", EIN_F64, 1, 4096, 1, 4096},
      {"vecmat", "nn", EIN_F64, 1, 1, 4096, 4096},
      {"matvec", "nn", EIN_F32, 1, 4096, 1, 4096},
      {"matvec", "nn", EIN_C128, 1, 2048, 1, 2048},
      {"matvec", "nn", EIN_F64, 1, 256, 1, 256},
      {"dot", "nn", EIN_F64, 1, 1, 1, 4000000}};
  double budget = argc > 1 ? atof(argv[1]) : 0.6;
  size_t rows = argc > 2 ? (size_t)atoi(argv[2]) : sizeof table / sizeof table[0];
  blas b;
  int have = blas_load(&b);
  for (size_t i = 0; i < rows && i < sizeof table / sizeof table[0]; i++) {
    row(&b, have, &table[i], budget);
  }
  return 0;
}
