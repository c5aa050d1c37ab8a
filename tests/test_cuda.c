// einsum_cuda.h where there is no GPU: this file sees declarations only. A stub (cuda_stub.c) takes
// the place of the driver, NVRTC and cuBLAS, so that host code and generated kernels run on the
// CPU; results are held against the portable kernels', every way of each statement, and calls that
// fail are statuses. Then the real NVRTC, where it is there, compiles sources that were made.
//
//   test_cuda STUB [NVRTC]    the stub's shared object; NVRTC's, default its usual names
#define _POSIX_C_SOURCE 200112L
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "check.h"
#include "nvrtc.h"

#if defined(EINI_CHUNK)
#error "the implementation is not to be seen here"
#endif

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void);

static ein_cuda *device(const char *blas) {
  const ein_cuda_desc d = {0, 1, 0, NULL, stub, stub, blas, NULL, 0, 0, NULL};
  ein_cuda *cuda = NULL;
  CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK && ein_cuda_ready(cuda));
  return cuda;
}

// With products of f32 in TF32.
static ein_cuda *rounding_device(void) {
  const ein_cuda_desc d = {0, 1, 1, NULL, stub, stub, stub, NULL, 0, 0, NULL};
  ein_cuda *cuda = NULL;
  CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK && ein_cuda_ready(cuda));
  return cuda;
}

static ein_ctx *ctx_of(ein_cuda *cuda) {
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  memset(&desc, 0, sizeof desc);
  desc.bare = 1;
  if (cuda != NULL) CHECK(ein_cuda_use(cuda, &desc) == EIN_OK);
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  return ctx;
}

// ---- without a device ----

static void test_absent(void) {
  const ein_cuda_desc none = {0, 0, 0, NULL, "./no-such-library.so", NULL, NULL, NULL, 0, 0, NULL};
  const ein_cuda_desc no_nvrtc = {0, 0, 0, NULL, stub, "./no-such-library.so", NULL, NULL, 0, 0,
                                  NULL};
  const ein_cuda_desc beyond = {7, 0, 0, NULL, stub, stub, stub, NULL, 0, 0, NULL};
  const ein_cuda_desc wrong = {-1, 0, 0, NULL, stub, stub, stub, NULL, 0, 0, NULL};
  const ein_cuda_desc *list[3];
  static const char *const says[3] = {"the driver", "NVRTC", "there is no device 7: there are 1"};
  char text[1024];
  ein_ctx_desc desc;
  ein_cuda *cuda;
  list[0] = &none, list[1] = &no_nvrtc, list[2] = &beyond;
  memset(&desc, 0, sizeof desc);
  for (int i = 0; i < 3; i++) {
    CHECK(ein_cuda_create(list[i], NULL, &cuda) == EIN_OK);
    CHECK(!ein_cuda_ready(cuda) && ein_cuda_kernels(cuda) == NULL);
    CHECK(ein_cuda_use(cuda, &desc) == EIN_ERR_UNSUPPORTED && desc.nuse == 0);
    CHECK(ein_cuda_info(cuda, text, sizeof text) == strlen(text));
    CHECK(strstr(text, "cuda: no device: ") == text && strstr(text, says[i]) != NULL);
    ein_cuda_destroy(cuda);
  }
  CHECK(ein_cuda_create(&wrong, NULL, &cuda) == EIN_ERR_ARGUMENT && cuda == NULL);
  CHECK(ein_cuda_create(&none, NULL, NULL) == EIN_ERR_ARGUMENT);
  ein_cuda_destroy(NULL);
  CHECK(ein_cuda_use(NULL, &desc) == EIN_ERR_ARGUMENT && ein_cuda_info(NULL, text, 3) == 0);
  cuda = device(stub);
  CHECK(ein_cuda_info(cuda, text, sizeof text) == strlen(text));
  CHECK(strstr(text, "a stub on the CPU, sm_90") != NULL && strstr(text, "cuBLAS 13") != NULL);
  ein_cuda_destroy(cuda);
  cuda = device("./no-such-library.so");  // cuBLAS alone may be missing
  CHECK(ein_cuda_info(cuda, text, sizeof text) && strstr(text, "no cuBLAS") != NULL);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
}

// ---- statements ----

enum { ALL = 0, REAL = 1, FLOAT = 2, FIELD = 4, LOGIC = 8 };  // which dtypes a program takes

typedef struct program {
  const char *text;            // over A[i,k], B[k,j], C[i,j], D[b,k,j], V[i], W[k], F[j],
                               //   G[b,j], E[b,c,i,k], H[c,b,k,j], X[n]
  int only;
  const char *ways;            // that have to be among those offered, by blanks
} program;

static const program programs[] = {
    {"Y[i,j] = sum[k](A[i,k]*B[k,j])", ALL, "tiles parts down across gemm"},
    {"Y[j,i] = sum[k](A[i,k]*B[k,j])", ALL, "tiles parts gemm"},
    {"Y[b,i,j] = sum[k](A[i,k]*D[b,k,j])", ALL, "tiles gemm"},
    {"Y[b,c,i,j] = sum[k](E[b,c,i,k]*H[c,b,k,j])", ALL, "tiles grouped"},
    {"Y[i,j] = sum[k](A[i,k]*B[k,j])*3 + C[i,j]", ALL, "tiles parts"},
    {"Y[i,j] = sum[k]((A[i,k] + 1) * B[k,j]*W[k]) - C[i,j]*V[i]", ALL, "tiles parts"},
    {"Y[i,j] = sum[k](exp(A[i,k]*0.25) * B[k,j])", FIELD, "tiles parts"},
    {"Y[i,j] = min[k](A[i,k] + B[k,j])", REAL, "tiles parts"},
    {"Y[i,j] = max[k](A[i,k] + B[k,j]) + C[i,j]", REAL, "tiles parts"},
    {"Y[i,j] = sum[k]((A[i,k] - B[k,j])^2)", REAL, "tiles parts"},
    {"Y[i,j] = max[k](abs(A[i,k] - B[k,j]))", REAL, "tiles parts"},
    {"Y[i,j] = any[k](A[i,k] and B[k,j])", LOGIC, "tiles parts"},
    {"Y[i] = sum[k](A[i,k]*W[k])", ALL, "tiles down across"},
    {"Y = sum[i,k](A[i,k]*A[i,k])", ALL, "down across"},
    {"Y[k] = prod[i](A[i,k])", REAL, "down across"},
    {"Y[i] = argmax[k](A[i,k])", REAL, "down across"},
    {"Y[k] = argmin[i](A[i,k])", REAL, "down across"},
    {"Y[i] = logsumexp[k](A[i,k])", FLOAT, "down across"},
    {"Y[i] = mean[k](A[i,k]*2)", FIELD, "down across"},
    {"Y[k] = var[i](A[i,k])", FLOAT, "down across"},
    {"Y[i] = all[k](A[i,k] < 3)", REAL, "down across"},
    {"Y[k,i] = A[i,k]", ALL, "elements turn"},
    {"Y[k,i] = A[i,k]*2 + W[k]", ALL, "elements turn"},
    {"Y[j,b,k] = D[b,k,j]", ALL, "elements turn"},
    {"Y[i,k] = A[i,k]*V[i] + i*k", REAL, "elements"},
    {"Y[i,j] = where(C[i,j] < 0, -C[i,j], tanh(C[i,j]))", FLOAT, "elements"},
    {"Y[i,j] = pow(abs(C[i,j]), 1.5) + sqrt(abs(C[i,j])) + floor(C[i,j])", FLOAT, "elements"},
    {"Y[h,j] = sum[r](X[2*h + r]*B[r,j])", ALL, ""},
    {"Y[i,j] = C[i,j]*C[i,j] / (C[i,j]*C[i,j] + 1)", FIELD, "elements"}};

static const ein_dtype dtypes[] = {EIN_F64, EIN_F32, EIN_I32, EIN_I64, EIN_C64, EIN_C128, EIN_F16,
                                   EIN_BF16, EIN_I8, EIN_U8, EIN_I16, EIN_BOOL};

static int takes(int only, ein_dtype t) {
  const int whole = t >= EIN_U8 && t <= EIN_I64, complex = t == EIN_C64 || t == EIN_C128;
  if (only == LOGIC) return t == EIN_BOOL;
  if (t == EIN_BOOL) return 0;
  return only == ALL || (only == REAL ? !complex : only == FLOAT ? !whole && !complex : !whole);
}

static uint64_t seed = 1;
static int draw(int n) {  // 0 .. n-1
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((seed >> 33) % (uint64_t)n);
}

static int64_t count_of(const ein_tensor_info *t) {
  int64_t n = 1;
  for (int a = 0; a < t->rank; a++) n *= t->shape[a];
  return n;
}

static void put(ein_dtype t, void *p, int64_t i) {
  const int v = draw(9) - 4;
  const double x = v * 0.25 + draw(5) * 0.0625;
  switch (t) {
    case EIN_BOOL: ((uint8_t *)p)[i] = v > 0; break;
    case EIN_U8: ((uint8_t *)p)[i] = (uint8_t)(v & 7); break;
    case EIN_I8: ((int8_t *)p)[i] = (int8_t)v; break;
    case EIN_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case EIN_I32: ((int32_t *)p)[i] = v * 40000; break;
    case EIN_I64: ((int64_t *)p)[i] = v * 3000000000; break;
    case EIN_F16: ((uint16_t *)p)[i] = (uint16_t)(0x3800 | draw(0x400) | draw(2) << 15); break;
    case EIN_BF16: ((uint16_t *)p)[i] = (uint16_t)(0x3f00 | draw(0x80) | draw(2) << 15); break;
    case EIN_F32: ((float *)p)[i] = (float)x; break;
    case EIN_F64: ((double *)p)[i] = x; break;
    case EIN_C64: ((float *)p)[2 * i] = (float)x, ((float *)p)[2 * i + 1] = (float)(v * 0.5); break;
    default: ((double *)p)[2 * i] = x, ((double *)p)[2 * i + 1] = v * 0.5; break;
  }
}

static double half(ein_dtype t, uint16_t h) {
  const int e = t == EIN_F16 ? h >> 10 & 31 : h >> 7 & 255, m = t == EIN_F16 ? h & 1023 : h & 127;
  const double x = t == EIN_F16 ? (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24))
                                : (e ? ldexp(128 + m, e - 134) : ldexp(m, -133));
  return h >> 15 ? -x : x;
}

// Number i of an output, as reals; of integers how they differ is all that counts.
static double number(ein_dtype t, const void *p, int64_t i) {
  switch (t) {
    case EIN_BOOL: case EIN_U8: return ((const uint8_t *)p)[i];
    case EIN_I8: return ((const int8_t *)p)[i];
    case EIN_I16: return ((const int16_t *)p)[i];
    case EIN_I32: return ((const int32_t *)p)[i];
    case EIN_I64: return (double)((const int64_t *)p)[i];
    case EIN_F16: case EIN_BF16: return half(t, ((const uint16_t *)p)[i]);
    case EIN_F32: case EIN_C64: return ((const float *)p)[i];
    default: return ((const double *)p)[i];
  }
}

static double apart_at_most(ein_dtype t) {
  return t == EIN_F16 ? 2e-3 : t == EIN_BF16 ? 2e-2 : t == EIN_F32 || t == EIN_C64 ? 1e-4
         : t == EIN_F64 || t == EIN_C128 ? 1e-11 : 0;
}

enum { TENSORS = 12 };

typedef struct work {
  ein_graph *graph;
  void *in[TENSORS], *out;
  size_t bytes;                // of the output
  int64_t numbers;
  ein_dtype type;              // of the output
} work;

// Plans with one way, runs; the status. The output is zeroed before.
static ein_status run_way(ein_ctx *ctx, const work *w, const char *way, char *ways, size_t size) {
  ein_options o;
  ein_plan *plan = NULL;
  ein_run run;
  void *out[1];
  memset(&o, 0, sizeof o);
  o.variant = way;
  o.ungrouped = 1;
  ein_status st = ein_plan_graph(ctx, w->graph, 0, NULL, &o, &plan);
  if (st == EIN_OK && ways != NULL) (void)ein_plan_variants(plan, ways, size);
  memset(&run, 0, sizeof run);
  run.in = (const void *const *)w->in;
  run.out = out;
  out[0] = w->out;
  memset(w->out, 0, w->bytes);
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  ein_plan_destroy(plan);
  return st;
}

static int same(const work *w, const void *a, const void *b) {
  const double most = apart_at_most(w->type);
  if (most == 0) return memcmp(a, b, w->bytes) == 0;
  double scale = 1;
  for (int64_t i = 0; i < w->numbers; i++) scale = fmax(scale, fabs(number(w->type, a, i)));
  for (int64_t i = 0; i < w->numbers; i++)
    if (!(fabs(number(w->type, a, i) - number(w->type, b, i)) <= most * scale)) return 0;
  return 1;
}

static void work_begin(ein_ctx *ctx, work *w, const program *p, ein_dtype type, const int *extent) {
  char text[1024];
  ein_program_desc d;
  ein_tensor_info t;
  ein_plan *plan = NULL;
  snprintf(text, sizeof text, "input A[i=%d,k=%d], B[k,j=%d], C[i,j], D[b=3,k,j], V[i], W[k], "
           "F[j], G[b,j], E[b,c=2,i,k], H[c,b,k,j], X[n=%d] : %s\n%s\noutput Y\n",
           extent[0], extent[1], extent[2], 2 * extent[0] + extent[1], ein_dtype_name(type),
           p->text);
  memset(&d, 0, sizeof d);
  memset(w, 0, sizeof *w);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &w->graph) != EIN_OK ||
      ein_plan_graph(ctx, w->graph, 0, NULL, NULL, &plan) != EIN_OK) {
    printf("%s: %s\n", text, ein_ctx_message(ctx));
    exit(1);
  }
  for (int i = 0; i < TENSORS && ein_plan_input(plan, i, &t); i++) {
    const int64_t n = count_of(&t);
    w->in[i] = malloc((size_t)n * 16 + 16);
    for (int64_t k = 0; k < n; k++) put(t.dtype, w->in[i], k);
  }
  CHECK(ein_plan_output(plan, 0, &t) == 1);
  w->type = t.dtype;
  w->bytes = (size_t)count_of(&t) * ein_dtype_size(t.dtype);
  w->numbers = count_of(&t) * (t.dtype == EIN_C64 || t.dtype == EIN_C128 ? 2 : 1);
  w->out = malloc(w->bytes + 16);
  ein_plan_destroy(plan);
}

static void work_end(work *w) {
  for (int i = 0; i < TENSORS; i++) free(w->in[i]);
  free(w->out);
  ein_graph_destroy(w->graph);
}

// All ways of a program, against the portable kernels'.
static void check_program(ein_cuda *cuda, ein_ctx *host, ein_ctx *ctx, const program *p,
                          ein_dtype type, const int *extent) {
  static const char *const ways[] = {"elements", "turn", "down", "across", "tiles", "parts",
                                     "cores", "cores parts", "gemm", "grouped", "lt"};
  char known[1024] = "", name[32];
  work w;
  work_begin(host, &w, p, type, extent);
  void *right = malloc(w.bytes + 16);
  CHECK(run_way(host, &w, NULL, NULL, 0) == EIN_OK);
  memcpy(right, w.out, w.bytes);
  CHECK(run_way(ctx, &w, "any", known, sizeof known) == EIN_OK);
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    char line[40];
    snprintf(name, sizeof name, "cuda:%s", ways[k]);
    snprintf(line, sizeof line, "%s\n", name);
    if (strstr(known, line) == NULL) {
      const int due = strstr(p->ways, ways[k]) != NULL && type == EIN_F64 && extent[1] > 200;
      CHECK(!due);
      if (due) printf("  no %s for %s\n  %s\n", name, p->text, known);
      continue;
    }
    const ein_cuda_counts before = ein_cuda_counts_get(cuda);
    CHECK(run_way(ctx, &w, name, NULL, 0) == EIN_OK);
    const ein_cuda_counts after = ein_cuda_counts_get(cuda);
    CHECK(after.launches + after.gemms > before.launches + before.gemms);
    CHECK(after.from_device - before.from_device >= (int64_t)w.bytes);
    CHECK(after.seconds > before.seconds);
    const int ok = same(&w, right, w.out);
    CHECK(ok);
    if (!ok)
      printf("  %s, %s, %s, i=%d k=%d j=%d\n", p->text, ein_dtype_name(type), name, extent[0],
             extent[1], extent[2]);
  }
  free(right);
  work_end(&w);
}

static void test_programs(ein_cuda *cuda, ein_ctx *host, ein_ctx *ctx) {
  static const int extents[][3] = {{37, 301, 21}, {16, 32, 64}, {3, 5, 70}};
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
      // a compiler runs for each kernel: most programs take some of the dtypes
      if (t > 1 && k > 0 && k != 3 && k != 4 && k != 21 && (k + t) % 4 != 0) continue;
      if (!takes(programs[k].only, dtypes[t])) continue;
      for (int e = 0; e < (t == 0 && k < 5 ? 3 : 1); e++)
        check_program(cuda, host, ctx, &programs[k], dtypes[t], extents[e]);
    }
  }
}

// ---- tensor cores ----

// Sums that tensor cores make of numbers they have, and of those that are rounded to theirs: all
// extents that do not fill a fragment, tile or split.
static void test_cores(ein_ctx *host, ein_dtype type, int tf32, const char *arch) {
  static const int extents[][3] = {{37, 301, 21}, {130, 40, 70}, {70, 1500, 5}};
  static const program list[] = {
      {"Y[i,j] = sum[k](A[i,k]*B[k,j])", ALL, ""},
      {"Y[j,i] = sum[k](A[i,k]*B[k,j]) + C[i,j]", ALL, ""},
      {"Y[b,i,j] = sum[k](A[i,k]*D[b,k,j])", ALL, ""},
      {"Y[i,j] = sum[k]((A[i,k] + 1) * B[k,j]*W[k]) - C[i,j]*V[i]", ALL, ""}};
  if (arch != NULL) setenv("STUB_ARCH", arch, 1);
  ein_cuda *cuda = tf32 ? rounding_device() : device(stub);
  ein_ctx *ctx = ctx_of(cuda);
  const int half = type == EIN_F16 || type == EIN_BF16;
  for (int k = 0; k < (half ? 3 : 4); k++) {
    for (int e = k % 2; e < 3; e++) {
      char known[1024] = "";
      work w;
      work_begin(host, &w, &list[k], type, extents[e]);
      void *right = malloc(w.bytes + 16);
      CHECK(run_way(host, &w, NULL, NULL, 0) == EIN_OK);
      memcpy(right, w.out, w.bytes);
      CHECK(run_way(ctx, &w, "any", known, sizeof known) == EIN_OK);
      CHECK(strstr(known, "cuda:cores\n") != NULL);
      for (int parts = 0; parts < 2; parts++) {
        const char *way = parts ? "cuda:cores parts" : "cuda:cores";
        if (strstr(known, parts ? "cuda:cores parts\n" : "cuda:cores\n") == NULL) continue;
        CHECK(run_way(ctx, &w, way, NULL, 0) == EIN_OK);
        const int ok = same(&w, right, w.out);
        CHECK(ok);
        if (!ok) printf("  %s, %s, %s, i=%d k=%d j=%d\n", list[k].text, ein_dtype_name(type), way,
                        extents[e][0], extents[e][1], extents[e][2]);
      }
      free(right);
      work_end(&w);
    }
  }
  compile_sources(cuda, NULL, 3);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  if (arch != NULL) unsetenv("STUB_ARCH");
}

// ---- stores of cuBLASLt ----

// Stores that it has are one call of it, whatever side is dense; others are not.
static void test_stores(ein_cuda *cuda, ein_ctx *host, ein_ctx *ctx) {
  static const int extent[3] = {19, 23, 21};
  static const struct { program of; int has; } list[] = {
      {{"Y[i,j] = relu(sum[k](A[i,k]*B[k,j]))", ALL, ""}, 1},
      {{"Y[i,j] = sum[k](A[i,k]*B[k,j]) + F[j]", ALL, ""}, 2},
      {{"Y[j,i] = relu(V[i] + sum[k](A[i,k]*B[k,j]))", ALL, ""}, 2},
      {{"Y[i,j] = relu(sum[k](A[i,k]*B[k,j])*3 + 0.5*C[i,j] + F[j])", ALL, ""}, 2},
      {{"Y[b,i,j] = max(C[i,j] + sum[k](A[i,k]*D[b,k,j]), 0)", ALL, ""}, 2},
      {{"Y[b,i,j] = sum[k](A[i,k]*D[b,k,j]) + G[b,j]", ALL, ""}, 2},
      {{"Y[i,j] = sum[k](A[i,k]*B[k,j])*2 + C[i,j]", ALL, ""}, 2},
      {{"Y[i,j] = cast_bf16(relu(sum[k](A[i,k]*B[k,j]) + 2*C[i,j] + F[j]))", ALL, ""}, 3},
      {{"Y[i,j] = sum[k](A[i,k]*B[k,j]) + V[i]", ALL, ""}, 0},   // along columns
      {{"Y[i,j] = gelu(sum[k](A[i,k]*B[k,j]))", ALL, ""}, 0},
      {{"Y[j,i] = sum[k](A[i,k]*B[k,j]) + C[i,j]", ALL, ""}, 0},  // lies the other way
      {{"Y[i,j] = sum[k](A[i,k]*B[k,j]) + C[i,j] + C[i,j]*2", ALL, ""}, 0},
      {{"Y[i,j] = max(sum[k](A[i,k]*B[k,j]), 1)", ALL, ""}, 0}};
  static const ein_dtype types[] = {EIN_F64, EIN_F32, EIN_BF16, EIN_F16};
  for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
    for (int t = 0; t < 4; t++) {
      char known[1024] = "";
      work w;
      work_begin(host, &w, &list[k].of, types[t], extent);
      void *right = malloc(w.bytes + 16);
      CHECK(run_way(host, &w, NULL, NULL, 0) == EIN_OK);
      memcpy(right, w.out, w.bytes);
      CHECK(run_way(ctx, &w, "any", known, sizeof known) == EIN_OK);
      const int has = strstr(known, "cuda:lt\n") != NULL;
      const int due = list[k].has == 1 || (list[k].has == 2 && t < 2) ||  // of f32, halves are no C
                      (list[k].has == 3 && t == 2);
      CHECK(has == due);
      if (has != due) printf("  %s, %s:\n%s\n", list[k].of.text,
                                     ein_dtype_name(types[t]), known);
      if (has) {
        const int64_t before = ein_cuda_counts_get(cuda).gemms;
        CHECK(run_way(ctx, &w, "cuda:lt", NULL, 0) == EIN_OK);
        CHECK(ein_cuda_counts_get(cuda).gemms == before + 1);
        const int ok = same(&w, right, w.out);
        CHECK(ok);
        if (!ok) printf("  %s, %s\n", list[k].of.text, ein_dtype_name(types[t]));
        setenv("STUB_NO_STORES", "1", 1);  // the library is asked
        known[0] = 0;
        CHECK(run_way(ctx, &w, "any", known, sizeof known) == EIN_OK);
        CHECK(strstr(known, "cuda:lt\n") == NULL);
        unsetenv("STUB_NO_STORES");
      }
      free(right);
      work_end(&w);
    }
  }
}

// Who does not ask for it gets no TF32, and an old device has no such instructions, nor cp.async.
static void test_no_cores(ein_ctx *host) {
  static const program one = {"Y[i,j] = sum[k](A[i,k]*B[k,j])", ALL, ""};
  static const int extent[3] = {20, 30, 24};
  for (int k = 0; k < 2; k++) {
    char known[1024] = "";
    work w;
    if (k == 1) setenv("STUB_ARCH", "75", 1);
    ein_cuda *cuda = k == 0 ? device(stub) : rounding_device();
    ein_ctx *ctx = ctx_of(cuda);
    work_begin(host, &w, &one, EIN_F32, extent);
    CHECK(run_way(ctx, &w, "any", known, sizeof known) == EIN_OK);
    CHECK(strstr(known, "cuda:tiles") != NULL && strstr(known, "cores") == NULL);
    int async = 0;  // what is as it is stored goes to shared memory by itself
    for (int i = 0; ein_cuda_source(cuda, i) != NULL; i++)
      async |= strstr(ein_cuda_source(cuda, i), "cp.async") != NULL;
    CHECK(async == (k == 0));
    work_end(&w);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    unsetenv("STUB_ARCH");
  }
}

// ---- views ----

// A transposed sum of views with gaps and negative strides, longer than a pinned buffer: what lies
// between the output's elements stays as it is.
static void test_views(ein_ctx *ctx) {
  enum { M = 700, N = 1100 };
  double *a = (double *)malloc(sizeof(double) * 2 * M * N);
  double *y = (double *)malloc(sizeof(double) * 3 * M * N);
  const int64_t shape[2] = {M, N}, turned[2] = {N, M};
  const int64_t across[2] = {-2 * N, 2}, apart[2] = {3 * M, -3};
  ein_ztensor in[1], out;
  int64_t wrong = 0;
  for (int i = 0; i < 2 * M * N; i++) a[i] = i % 1013;
  for (int i = 0; i < 3 * M * N; i++) y[i] = -7;
  memset(in, 0, sizeof in);
  in[0] = ein_tensor(EIN_F64, 2, shape, a + (size_t)(M - 1) * 2 * N);
  in[0].strides = across;
  out = ein_tensor(EIN_F64, 2, turned, y + 3 * (M - 1));
  out.strides = apart;
  CHECK(ein_einsum(ctx, "ij->ji", 1, in, &out) == EIN_OK);
  for (int j = 0; j < N; j++)
    for (int i = 0; i < M; i++) {
      const double *at = y + 3 * (size_t)M * (size_t)j + 3 * (size_t)(M - 1 - i);
      wrong += at[0] != a[(size_t)(M - 1 - i) * 2 * N + 2 * (size_t)j];
      wrong += at[1] != -7 || at[2] != -7;
    }
  CHECK(wrong == 0);
  free(a);
  free(y);
}

// In place, and a param that changes from run to run of one plan.
static void test_again(ein_ctx *ctx) {
  enum { N = 3000 };
  static float x[N];
  const int64_t n = N;
  ein_ztensor in[1], out;
  ein_einsum_desc d;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  in[0] = ein_tensor(EIN_F32, 1, &n, x);
  out = in[0];
  memset(&d, 0, sizeof d);
  d.expr = "i->i";
  d.map = "x0*2+1";
  d.nin = 1;
  d.in = in;
  d.out = &out;
  for (int run = 0; run < 2; run++) {
    d.alpha.set = 1;
    d.alpha.re = run + 1;
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  }
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += x[i] != 2 * (2 * (float)(2 * i + 1) + 1);
  CHECK(wrong == 0);
}

// ---- calibration ----

static double clock_now(void *user) {
  struct timespec t;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Does a product run so with these rates?
static int runs_as(ein_ctx *ctx, const ein_rates *rates, const char *way) {
  static double a[64 * 64];
  static char text[1 << 14];
  const int64_t shape[2] = {64, 64};
  ein_ztensor in[2], out = ein_tensor(EIN_F64, 2, shape, a);
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  in[0] = in[1] = out;
  d.expr = "ij,jk->ik", d.nin = 2, d.in = in, d.out = &out;
  CHECK(ein_ctx_rates(ctx, rates) == EIN_OK);
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  (void)ein_plan_explain(plan, text, sizeof text);
  ein_plan_destroy(plan);
  return strstr(text, way) != NULL;
}

// The device's rates are measured there, go through their text, and decide.
static void test_measured(void) {
  static char text[4096];
  ein_cuda *cuda = device(stub);
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  ein_rates r, again;
  memset(&desc, 0, sizeof desc);
  desc.bare = 1;
  desc.now_fn = clock_now;
  CHECK(ein_cuda_use(cuda, &desc) == EIN_OK && ein_ctx_create(&desc, &ctx) == EIN_OK);
  const ein_cuda_counts before = ein_cuda_counts_get(cuda);
  CHECK(ein_calibrate(ctx, 0.02, &r) == EIN_OK);
  const ein_cuda_counts after = ein_cuda_counts_get(cuda);
  CHECK(after.launches > before.launches + 20 && after.gemms > before.gemms);
  for (int i = 0; i < 13; i++) CHECK(i == 7 ? r.away[i] <= 1 : r.away[i] > 1);  // TF32: not asked
  CHECK(fabs(r.away[2] - 2000) < 1);  // the stub's events are 0.5 ms apart
  CHECK(ein_rates_print(&r, text, sizeof text) < sizeof text);
  CHECK(ein_rates_parse(ctx, text, &again) == EIN_OK);
  for (int i = 0; i < 16; i++) CHECK(fabs(again.away[i] - r.away[i]) <= 0.5);
  for (int i = 4; i < 13; i++) r.away[i] = 1e9;
  r.away[12] = 1e15;
  CHECK(runs_as(ctx, &r, "cuda-gemm"));
  r.away[12] = 1e9, r.away[6] = 1e15;
  CHECK(runs_as(ctx, &r, "cuda-cores"));
  r.away[6] = 1e9, r.away[5] = 1e15;
  CHECK(runs_as(ctx, &r, "cuda-tiles"));
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
}

// ---- kernels that are kept ----

static struct { char name[96]; char *at; size_t bytes; } shelf[8];
static int shelved, spoilt;

static int shelf_load(void *user, const char *name, void *to, size_t room, size_t *bytes) {
  (void)user;
  for (int i = 0; i < shelved; i++) {
    if (strcmp(shelf[i].name, name) != 0) continue;
    *bytes = shelf[i].bytes;
    memcpy(to == NULL ? shelf[i].at : to, shelf[i].at, room < *bytes ? room : *bytes);
    if (spoilt > 0 && room == *bytes) ((char *)to)[(size_t)spoilt * *bytes / 4 - 1] ^= 1;
    return 1;
  }
  return 0;
}

static void shelf_save(void *user, const char *name, const void *from, size_t bytes) {
  (void)user;
  if (shelved == 8 || spoilt) return;
  snprintf(shelf[shelved].name, sizeof shelf->name, "%s", name);
  shelf[shelved].at = (char *)malloc(bytes);
  memcpy(shelf[shelved].at, from, bytes);
  shelf[shelved++].bytes = bytes;
}

// The second ein_cuda compiles nothing; of what was spoilt, anywhere, or is of another architecture
// all.
static void test_shelf(ein_ctx *host) {
  static const int extent[3] = {20, 150, 24};
  static const ein_cuda_shelf kept = {shelf_load, shelf_save, NULL};
  work w;
  work_begin(host, &w, &programs[5], EIN_F64, extent);
  CHECK(run_way(host, &w, NULL, NULL, 0) == EIN_OK);
  void *right = malloc(w.bytes);
  memcpy(right, w.out, w.bytes);
  for (int turn = 0; turn < 7; turn++) {
    const ein_cuda_desc d = {0, 1, 0, NULL, stub, stub, stub, &kept, 0, 0, NULL};
    ein_cuda *cuda = NULL;
    spoilt = turn < 2 ? 0 : turn < 6 ? turn - 1 : 0;
    if (turn == 6) setenv("STUB_ARCH", "80", 1);
    CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK);
    unsetenv("STUB_ARCH");
    ein_ctx *ctx = ctx_of(cuda);
    CHECK(run_way(ctx, &w, "cuda:parts", NULL, 0) == EIN_OK && same(&w, right, w.out));
    const ein_cuda_counts n = ein_cuda_counts_get(cuda);
    CHECK(n.compiled == (turn == 1 ? 0 : 3) && n.loaded == (turn == 1 ? 3 : 0));
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
  }
  CHECK(shelved == 6 && strstr(shelf[0].name, "sm_90-nvrtc13.0-") == shelf[0].name);
  for (int i = 0; i < shelved; i++) free(shelf[i].at);
  free(right);
  work_end(&w);
}

// ---- calls that fail ----

// Each call to the driver, NVRTC and cuBLAS fails once, with an error and out of memory: the status
// says so, nothing is left behind, and the next run is right.
static void test_failures(ein_ctx *host) {
  static const int extent[3] = {20, 150, 24};
  static const char *const ways[] = {"cuda:gemm", "cuda:parts", "cuda:turn", "cuda:grouped"};
  static const int which[] = {0, 5, 21, 3};
  for (int k = 0; k < 4; k++) {
    work w;
    work_begin(host, &w, &programs[which[k]], EIN_F64, extent);
    for (int code = 2 - k % 2; code <= 2 - k % 2; code++) {
      for (long n = 0; n < 200; n++) {
        ein_cuda *cuda = device(stub);
        ein_ctx *ctx = ctx_of(cuda);
        const long before = stub_live(), from = stub_calls();
        stub_fail(n, code);
        const ein_status st = run_way(ctx, &w, ways[k], NULL, 0);
        const int hit = stub_calls() - from > n;
        stub_fail(-1, 0);
        CHECK(hit ? st == (code == 2 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL) ||
                        st == EIN_ERR_INTERNAL : st == EIN_OK);
        CHECK(stub_live() == before + ein_cuda_counts_get(cuda).compiled);  // modules stay
        ein_ctx_destroy(ctx);
        ein_cuda_destroy(cuda);
        CHECK(stub_live() == 0);
        if (!hit) break;
      }
    }
    work_end(&w);
  }
  for (long n = 0; n < 50; n++) {  // creation
    const ein_cuda_desc d = {0, 0, 0, NULL, stub, stub, stub, NULL, 0, 0, NULL};
    ein_cuda *cuda = NULL;
    const long from = stub_calls();
    stub_fail(n, 1);
    CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK);
    const int hit = stub_calls() - from > n;
    stub_fail(-1, 0);
    char text[1024];
    CHECK(ein_cuda_info(cuda, text, sizeof text) > 0);
    CHECK(ein_cuda_ready(cuda) || hit);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (!hit) break;
  }
}

int main(int argc, char **argv) {
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  void *h = dlopen(stub, RTLD_NOW);
  if (h == NULL) {
    printf("no stub: %s\n", dlerror());
    return 1;
  }
  *(void **)&stub_fail = dlsym(h, "stub_fail");
  *(void **)&stub_calls = dlsym(h, "stub_calls");
  *(void **)&stub_live = dlsym(h, "stub_live");
  test_absent();
  ein_cuda *cuda = device(stub);
  ein_ctx *host = ctx_of(NULL), *ctx = ctx_of(cuda);
  test_views(ctx);
  test_again(ctx);
  test_cores(host, EIN_F64, 0, NULL);
  test_cores(host, EIN_F16, 0, NULL);
  test_cores(host, EIN_BF16, 0, NULL);
  test_cores(host, EIN_F16, 0, "75");
  test_cores(host, EIN_F32, 1, NULL);
  test_no_cores(host);
  test_stores(cuda, host, ctx);
  test_programs(cuda, host, ctx);
  const ein_cuda_counts ran = ein_cuda_counts_get(cuda);
  compile_sources(cuda, argc > 2 ? argv[2] : NULL, 6);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
  test_measured();
  test_shelf(host);
  test_failures(host);
  ein_ctx_destroy(host);
  printf("%lld kernels compiled, %lld started, %lld products\n", (long long)ran.compiled,
         (long long)ran.launches, (long long)ran.gemms);
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
