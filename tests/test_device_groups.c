// Groups that a device runs in one kernel: random chains of statements and attention under the stub
// of CUDA (cuda_stub.c), whose shared memory is not a number where nothing was stored. Results are
// held against the portable kernels', bit by bit where numbers are whole; the real NVRTC, where it
// is there, compiles the sources; calls that fail leave nothing behind.
//
//   test_device_groups STUB [programs [seed]]
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "chains.h"
#include "check.h"
#include "nvrtc.h"

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void);

static ein_cuda *device(int only) {
  ein_cuda_desc d;
  ein_cuda *cuda = NULL;
  memset(&d, 0, sizeof d);
  d.only = only;
  d.driver = d.nvrtc = d.cublas = stub;
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

static ein_status plan_of(ein_ctx *ctx, const char *text, const char *variant, int ungrouped,
                          ein_plan **plan) {
  ein_program_desc d;
  ein_options o;
  ein_graph *graph = NULL;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  d.text = text;
  o.variant = variant;
  o.ungrouped = ungrouped;
  *plan = NULL;
  ein_status st = ein_graph_parse(ctx, &d, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, &o, plan);
  ein_graph_destroy(graph);
  return st;
}

// ---- running them ----

typedef struct arrays {
  void *in[MOST], *out[2];
  int nin, nout;
  ein_dtype type;
  int64_t count[2];
  size_t bytes[2];
} arrays;

static void *array(const ein_tensor_info *t, int64_t *count) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  *count = n;
  char *x = (char *)malloc((size_t)n * 8 + 8);
  if (x == NULL) abort();
  for (int64_t k = 0; k < n; k++) {
    const double v = (double)draw(-2, 2);
    if (t->dtype == EIN_F32) ((float *)(void *)x)[k] = (float)v;
    else ((double *)(void *)x)[k] = v;
  }
  return x;
}

static void fill(const ein_plan *plan, arrays *a) {
  ein_tensor_info t;
  int64_t n;
  memset(a, 0, sizeof *a);
  while (ein_plan_input(plan, a->nin, &t)) a->in[a->nin++] = array(&t, &n);
  while (ein_plan_output(plan, a->nout, &t)) {
    a->out[a->nout] = array(&t, &a->count[a->nout]);
    a->type = t.dtype;
    a->bytes[a->nout] = (size_t)a->count[a->nout] * ein_dtype_size(t.dtype);
    a->nout++;
  }
}

static void empty(arrays *a) {
  for (int i = 0; i < a->nin; i++) free(a->in[i]);
  for (int i = 0; i < a->nout; i++) free(a->out[i]);
}

static ein_status run_plan(const ein_plan *plan, const arrays *a) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = (const void *const *)a->in;
  run.out = (void *const *)a->out;
  for (int o = 0; o < a->nout; o++) memset(a->out[o], 0xff, a->bytes[o]);
  return ein_plan_execute(plan, &run);
}

static double number(ein_dtype t, const void *x, int64_t i) {
  return t == EIN_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

// Largest difference of what is there to what the host gives. exact: bits count.
static double differs(ein_ctx *host, const char *text, const arrays *a, int exact) {
  arrays own = *a;
  ein_plan *plan;
  double most = 0;
  CHECK(plan_of(host, text, NULL, 1, &plan) == EIN_OK);
  for (int o = 0; o < a->nout; o++) own.out[o] = malloc(a->bytes[o] + 8);
  CHECK(run_plan(plan, &own) == EIN_OK);
  for (int o = 0; o < a->nout; o++) {
    if (exact && memcmp(own.out[o], a->out[o], a->bytes[o]) != 0) most = 1;
    for (int64_t i = 0; i < a->count[o] && !exact; i++) {
      const double d = fabs(number(a->type, own.out[o], i) - number(a->type, a->out[o], i));
      if (!(d <= most)) most = d >= 0 ? d : 1e300;
    }
    free(own.out[o]);
  }
  ein_plan_destroy(plan);
  return most;
}

static int tasks_of(const ein_plan *plan) {
  ein_plan_info info;
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
  return info.ntask;
}

// ---- chains ----

// variant: of groups; one of so many chains has some at least.
static void test_chains(ein_cuda *cuda, ein_ctx *host, ein_ctx *ctx, const char *variant, int of,
                        int programs, uint64_t seed) {
  int grouped = 0, whole = 0;
  for (int k = 0; k < programs; k++) {
    ein_plan *plan, *apart;
    chain c;
    arrays a;
    rng_state = seed + (uint64_t)k;
    write_chain(&c);
    const ein_status st = plan_of(ctx, c.text, variant, 0, &plan);
    CHECK(st == EIN_OK || st == EIN_ERR_ARGUMENT);  // there is no group
    if (st != EIN_OK && st != EIN_ERR_ARGUMENT)
      printf("seed %llu: %s\n%s", (unsigned long long)seed + (unsigned)k, ein_ctx_message(ctx),
             c.text);
    if (st != EIN_OK) continue;
    CHECK(plan_of(ctx, c.text, NULL, 1, &apart) == EIN_OK);
    const int fewer = tasks_of(apart) - tasks_of(plan);
    CHECK(fewer > 0);
    grouped++;
    whole += tasks_of(plan) == 1;
    fill(plan, &a);
    const ein_cuda_counts before = ein_cuda_counts_get(cuda);
    CHECK(run_plan(plan, &a) == EIN_OK);
    CHECK(ein_cuda_counts_get(cuda).seconds > before.seconds);
    const int right = differs(host, c.text, &a, 1) <= 0;
    CHECK(right);
    if (!right) printf("seed %llu:\n%s", (unsigned long long)seed + (unsigned)k, c.text);
    empty(&a);
    ein_plan_destroy(plan);
    ein_plan_destroy(apart);
  }
  printf("%d of %d chains with %s, %d in one kernel\n", grouped, programs, variant, whole);
  CHECK(programs < 30 || (grouped * of > programs && whole > 0));
}

// ---- attention and its like ----

static const char *const programs[] = {
    ("input Q[h=2,s=37,d=16], K[h,t=50,d], V[h,t,e=12] : f64\n"
     "T[h,s,t] = sum[d](Q[h,s,d]*K[h,t,d]) / sqrt(16.0)\nC[h,s] = max[t](T[h,s,t])\n"
     "E[h,s,t] = exp(T[h,s,t] - C[h,s])\nS[h,s] = sum[t](E[h,s,t])\n"
     "Y[h,s,e] = sum[t](E[h,s,t]/S[h,s]*V[h,t,e])\noutput Y"),
    ("input Q[s=70,d=16], K[t=33,d], V[t,e=12] : f32\n"
     "T[s,t] = sum[d](Q[s,d]*K[t,d]) + 0.125*(s - t)\nC[s] = max[t](T[s,t])\n"
     "E[s,t] = exp(T[s,t] - C[s])\nS[s] = sum[t](E[s,t])\n"
     "Y[s,e] = sum[t](E[s,t]/S[s]*V[t,e])\noutput Y"),
    ("input X[i=90,j=41], G[j] : f64\nparam eps = 0.001\nM[i] = mean[j](X[i,j])\n"
     "D[i,j] = X[i,j] - M[i]\nW[i] = mean[j](D[i,j]*D[i,j])\n"
     "Y[i,j] = D[i,j] / sqrt(W[i] + eps) * G[j]\noutput Y"),
    ("input X[i=60,j=24] : f64\nP[i] = argmax[j](X[i,j])\nL[i] = logsumexp[j](X[i,j] - P[i])\n"
     "Y[i,j] = X[i,j]*L[i] + P[i]\noutput Y, L")};

static void test_programs(ein_ctx *host, ein_ctx *ctx) {
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    ein_plan *plan;
    arrays a;
    static char text[1 << 16];
    const ein_status st = plan_of(ctx, programs[k], "cuda:group", 0, &plan);
    CHECK(st == EIN_OK);
    if (st != EIN_OK) printf("%s\n%s\n", programs[k], ein_ctx_message(ctx));
    if (st != EIN_OK) continue;
    CHECK(tasks_of(plan) == 1);
    (void)ein_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, "cuda-group") != NULL);
    fill(plan, &a);
    CHECK(run_plan(plan, &a) == EIN_OK);
    const double most = differs(host, programs[k], &a, 0);
    const int right = most <= (a.type == EIN_F32 ? 1e-5 : 1e-11);
    CHECK(right);
    if (!right) printf("%g\n%s\n%s\n", most, programs[k], text);
    empty(&a);
    ein_plan_destroy(plan);
  }
}

// ---- the choice ----

// What is long gains by not being stored; a device that runs all of it takes the group by itself.
static void test_choice(void) {
  static const char *const text =
      "input X[i=60000,j=96] : f32\nM[i] = max[j](X[i,j])\nE[i,j] = exp(X[i,j] - M[i])\n"
      "S[i] = sum[j](E[i,j])\nY[i,j] = E[i,j] / S[i]\noutput Y";
  ein_cuda *cuda = device(2);
  ein_ctx *ctx = ctx_of(cuda);
  ein_plan *plan;
  CHECK(plan_of(ctx, text, NULL, 0, &plan) == EIN_OK);
  CHECK(plan != NULL && tasks_of(plan) == 1);
  ein_plan_destroy(plan);
  CHECK(plan_of(ctx, text, NULL, 1, &plan) == EIN_OK && tasks_of(plan) > 1);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
}

static void test_failures(void) {
  for (long n = 0; n < 200; n++) {
    const int code = n % 2 ? 2 : 1;
    ein_cuda *cuda = device(1);
    ein_ctx *ctx = ctx_of(cuda);
    ein_plan *plan;
    arrays a;
    CHECK(plan_of(ctx, programs[2], "cuda:group", 0, &plan) == EIN_OK);
    fill(plan, &a);
    const long before = stub_live(), from = stub_calls();
    stub_fail(n, code);
    const ein_status st = run_plan(plan, &a);
    const int hit = stub_calls() - from > n;
    stub_fail(-1, 0);
    CHECK(hit ? st == EIN_ERR_NO_MEMORY || st == EIN_ERR_INTERNAL : st == EIN_OK);
    CHECK(stub_live() == before + ein_cuda_counts_get(cuda).compiled);
    empty(&a);
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (!hit) break;
  }
}

int main(int argc, char **argv) {
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  const int chains = argc > 2 ? atoi(argv[2]) : 60 / fewer();
  const uint64_t seed = argc > 3 ? (uint64_t)strtoull(argv[3], NULL, 10) : 1;
  void *h = dlopen(stub, RTLD_NOW);
  if (h == NULL) {
    printf("no stub: %s\n", dlerror());
    return 1;
  }
  *(void **)&stub_fail = dlsym(h, "stub_fail");
  *(void **)&stub_calls = dlsym(h, "stub_calls");
  *(void **)&stub_live = dlsym(h, "stub_live");
  ein_cuda *cuda = device(1);
  ein_ctx *host = ctx_of(NULL), *ctx = ctx_of(cuda);
  test_programs(host, ctx);
  test_chains(cuda, host, ctx, "cuda:group", 3, chains, seed);
  test_chains(cuda, host, ctx, "cuda:along", 8, chains, seed);
  compile_sources(cuda, NULL, 12);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
  test_choice();
  test_failures();
  ein_ctx_destroy(host);
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
