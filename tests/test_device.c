// Programs whose tensors stay in the memory of a device: under the stub of CUDA (cuda_stub.c), what
// crosses between host and device is counted, results are held against the portable kernels', views
// of the device's memory are used as they are, and calls that fail leave nothing behind.
//
//   test_device STUB    the stub's shared object
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "check.h"

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void);
static void (*stub_room)(size_t bytes);
static size_t (*stub_most)(void);
static void (*stub_capture)(int on);
static int (*stub_replay)(void);
static double (*stub_together)(void);

static ein_cuda *device(int only) {
  ein_cuda_desc d;
  ein_cuda *cuda = NULL;
  memset(&d, 0, sizeof d);
  d.only = only;
  d.driver = d.nvrtc = d.cublas = stub;
  CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK && ein_cuda_ready(cuda));
  return cuda;
}

static void hyper(int64_t n, const void *const *in, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = 2 * ((const double *)in[0])[i] + 0.125;
}

// Sums up to each element of a block, as an operator: memory that the host may not touch shows.
static ein_status running(const int64_t *size, const void *const *in, void *const *out,
                          void *user) {
  double sum = 0;
  (void)user;
  for (int64_t i = 0; i < size[0]; i++)
    ((double *)out[0])[i] = sum += ((const double *)in[0])[i];
  return EIN_OK;
}

// With a function and a function over blocks that no GPU knows.
static ein_ctx *ctx_of(ein_cuda *cuda) {
  ein_ctx_desc desc;
  ein_function f;
  ein_operator over;
  ein_ctx *ctx = NULL;
  memset(&desc, 0, sizeof desc);
  memset(&f, 0, sizeof f);
  desc.bare = 1;
  f.name = "hyper";
  f.nargs = 1;
  f.fn = hyper;
  memset(&over, 0, sizeof over);
  over.name = "running";
  over.signature = "(n)->(n)";
  over.fn = running;
  if (cuda != NULL) CHECK(ein_cuda_use(cuda, &desc) == EIN_OK);
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  CHECK(ein_ctx_function(ctx, &f) == EIN_OK);
  CHECK(ein_ctx_operator(ctx, &over) == EIN_OK);
  return ctx;
}

// ---- programs ----

enum { TENSORS = 8 };

typedef struct work {
  const char *text;
  int nin, nout;
  double *in[TENSORS], *out[TENSORS];
  int64_t size[2][TENSORS];    // elements of inputs and outputs
} work;

static int64_t count_of(const ein_tensor_info *t) {
  int64_t n = 1;
  for (int a = 0; a < t->rank; a++) n *= t->shape[a];
  return n;
}

static ein_status plan_of(ein_ctx *ctx, const char *text, ein_plan **plan) {
  ein_program_desc d;
  ein_graph *graph = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  *plan = NULL;
  ein_status st = ein_graph_parse(ctx, &d, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, plan);
  ein_graph_destroy(graph);
  return st;
}

// Inputs with values, room for outputs.
static void work_begin(ein_ctx *host, const char *text, work *w) {
  ein_tensor_info t;
  ein_plan *plan;
  memset(w, 0, sizeof *w);
  w->text = text;
  const ein_status st = plan_of(host, text, &plan);
  CHECK(st == EIN_OK);
  if (st != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(host)), exit(1);
  while (ein_plan_input(plan, w->nin, &t)) {
    const int64_t n = w->size[0][w->nin] = count_of(&t);
    double *x = w->in[w->nin++] = (double *)malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) x[i] = (double)((i * 37 + w->nin * 11) % 101) / 64 - 0.75;
  }
  while (ein_plan_output(plan, w->nout, &t)) {
    const int64_t n = w->size[1][w->nout] = count_of(&t);
    w->out[w->nout++] = (double *)malloc((size_t)n * 8);
  }
  ein_plan_destroy(plan);
}

static void work_end(work *w) {
  for (int i = 0; i < TENSORS; i++) free(w->in[i]), free(w->out[i]);
}

static ein_status work_run(ein_ctx *ctx, const work *w) {
  ein_plan *plan;
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = (const void *const *)w->in;
  run.out = (void *const *)w->out;
  for (int o = 0; o < w->nout; o++) memset(w->out[o], 0xff, (size_t)w->size[1][o] * 8);
  ein_status st = plan_of(ctx, w->text, &plan);
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  ein_plan_destroy(plan);
  return st;
}

static int64_t bytes_of(const work *w, int out) {
  int64_t n = 0;
  for (int i = 0; i < TENSORS; i++) n += 8 * w->size[out][i];
  return n;
}

// As the host has it, from other memory.
static int work_right(ein_ctx *host, const work *w) {
  work own = *w;
  int right = 1;
  for (int o = 0; o < w->nout; o++) own.out[o] = (double *)malloc((size_t)w->size[1][o] * 8);
  CHECK(work_run(host, &own) == EIN_OK);
  for (int o = 0; o < w->nout; o++) {
    for (int64_t i = 0; i < w->size[1][o]; i++)
      if (!(fabs(own.out[o][i] - w->out[o][i]) <= 1e-10 * (1 + fabs(own.out[o][i])))) right = 0;
    free(own.out[o]);
  }
  return right;
}

typedef struct program {
  const char *text;
  int host;                    // a statement is the host's
  int64_t more[2];             // bytes that go to the device and home beside inputs and outputs
} program;

#define HEAD "input A[i=24,k=40], B[k,j=18], C[i,j] : f64\n"
static const program programs[] = {
    // inputs are read twice, two temporaries follow each other
    {HEAD "T[i,j] = sum[k](A[i,k]*B[k,j])\nU[i,j] = exp(T[i,j]*0.01) + C[i,j]\n"
     "Y[i] = sum[j](U[i,j]*T[i,j]) + sum[j](C[i,j])\noutput Y", 0, {0, 0}},
    // attention
    {"input Q[s=12,d=8], K[t=20,d], V[t,e=10] : f64\nT[s,t] = sum[d](Q[s,d]*K[t,d]) / sqrt(8.0)\n"
     "C[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nS[s] = sum[t](E[s,t])\n"
     "Y[s,e] = sum[t](E[s,t]/S[s]*V[t,e])\noutput Y", 0, {0, 0}},
    // an output that is read again, and another one
    {HEAD "Y[i,j] = sum[k](A[i,k]*B[k,j])\nZ[j,i] = Y[i,j] + C[i,j]\noutput Y, Z", 0, {0, 0}},
    // pieces
    {"input A[i=10,j=6], B[i,j] : f64\nY[2*i,j] = A[i,j]*2\nY[2*i+1,j] = B[i,j] + A[i,j]\n"
     "Z[j] = sum[r](Y[r,j])\noutput Y, Z", 0, {0, 0}},
    // the host's function needs T, which comes home once and is read on the device again
    {HEAD "T[i,j] = sum[k](A[i,k]*B[k,j])\nU[i,j] = hyper(T[i,j])\n"
     "Y[i] = sum[j](U[i,j]*T[i,j]*C[i,j])\noutput Y", 1, {24 * 18 * 8, 24 * 18 * 8}},
    // the host is the last one
    {HEAD "T[i,j] = sum[k](A[i,k]*B[k,j]) + C[i,j]\nU[i,j] = T[i,j]*T[j-j+i,j]\n"
     "Y[i,j] = hyper(U[i,j])\noutput Y", 1, {0, 0}},
    // a function over blocks between statements of the device
    {HEAD "T[i,j] = sum[k](A[i,k]*B[k,j])\nU[i,j] = running[j](T[i,j])\n"
     "Y[i] = sum[j](U[i,j]*T[i,j]*C[i,j])\noutput Y", 1, {24 * 18 * 8, 24 * 18 * 8}}};

static void test_programs(ein_ctx *host) {
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    const program *p = &programs[k];
    ein_cuda *cuda = device(1);
    ein_ctx *ctx = ctx_of(cuda);
    work w;
    work_begin(host, p->text, &w);
    const ein_status st = work_run(ctx, &w);
    CHECK(st == EIN_OK);
    if (st != EIN_OK) printf("  %s\n  %s\n", p->text, ein_ctx_message(ctx));
    const ein_cuda_counts c = ein_cuda_counts_get(cuda);
    CHECK(c.to_device == bytes_of(&w, 0) + p->more[0]);
    CHECK(c.from_device == bytes_of(&w, 1) + p->more[1]);
    if (c.to_device != bytes_of(&w, 0) + p->more[0] ||
        c.from_device != bytes_of(&w, 1) + p->more[1])
      printf("  %s\n  %lld of %lld to the device, %lld of %lld home\n", p->text,
             (long long)c.to_device, (long long)(bytes_of(&w, 0) + p->more[0]),
             (long long)c.from_device, (long long)(bytes_of(&w, 1) + p->more[1]));
    CHECK(c.launches + c.gemms > 1 && c.seconds > 0);
    CHECK(work_right(host, &w));
    work_end(&w);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
  }
}

// Alone it says what it cannot run.
static void test_alone(void) {
  ein_cuda *cuda = device(2);
  ein_ctx *ctx = ctx_of(cuda);
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    ein_plan *plan;
    const ein_status st = plan_of(ctx, programs[k].text, &plan);
    CHECK(st == (programs[k].host ? EIN_ERR_UNSUPPORTED : EIN_OK));
    const char *says = strstr(ein_ctx_message(ctx), "the kernels 'cuda' cannot run");
    CHECK(!programs[k].host || says != NULL);
    ein_plan_destroy(plan);
  }
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
}

// ---- views of the device's memory ----

typedef struct place {
  ein_cuda *cuda;
  void *at;
  size_t bytes;
} place;

static place place_of(ein_cuda *cuda, size_t bytes, const void *from) {
  place p = {cuda, NULL, bytes};
  CHECK(ein_cuda_alloc(cuda, bytes, &p.at) == EIN_OK);
  CHECK(ein_cuda_write(cuda, p.at, from, bytes) == EIN_OK);
  return p;
}

static void place_read(const place *p, void *to) {
  CHECK(ein_cuda_read(p->cuda, p->at, to, p->bytes) == EIN_OK);
}

static void place_end(place *p) { ein_cuda_free(p->cuda, p->at); }

static ein_ztensor view_of(int rank, const int64_t *shape, const void *data, int away) {
  ein_ztensor v = ein_tensor(EIN_F64, rank, shape, data);
  v.space = away ? EIN_CUDA_SPACE : 0;
  return v;
}

enum { M = 15, K = 40, N = 12 };

// Products of views here and there: what lies there does not move.
static void test_views(ein_cuda *cuda, ein_ctx *ctx) {
  static double a[M * K], b[K * N], right[M * N], y[M * N];
  const int64_t sa[2] = {M, K}, sb[2] = {K, N}, sy[2] = {M, N};
  for (int i = 0; i < M * K; i++) a[i] = i % 13 - 6;
  for (int i = 0; i < K * N; i++) b[i] = i % 7 - 3;
  for (int i = 0; i < M * N; i++)
    for (int k = 0; k < K; k++) right[i] += a[i / N * K + k] * b[k * N + i % N];
  place pa = place_of(cuda, sizeof a, a), pb = place_of(cuda, sizeof b, b);
  place py = place_of(cuda, sizeof y, y);
  for (int set = 0; set < 16; set++) {  // every one twice: the second time from the cache
    const int away[3] = {set >> 1 & 1, set >> 2 & 1, set >> 3 & 1};
    const ein_cuda_counts before = ein_cuda_counts_get(cuda);
    ein_ztensor in[2], out = view_of(2, sy, away[2] ? py.at : (void *)y, away[2]);
    in[0] = view_of(2, sa, away[0] ? pa.at : (void *)a, away[0]);
    in[1] = view_of(2, sb, away[1] ? pb.at : (void *)b, away[1]);
    memset(y, 0xff, sizeof y);
    if (away[2]) CHECK(ein_cuda_write(cuda, py.at, y, sizeof y) == EIN_OK);
    const ein_cuda_counts ready = ein_cuda_counts_get(cuda);
    CHECK(ein_einsum(ctx, "ik,kj->ij", 2, in, &out) == EIN_OK);
    const ein_cuda_counts after = ein_cuda_counts_get(cuda);
    CHECK(after.to_device - ready.to_device ==
          (int64_t)((away[0] ? 0 : sizeof a) + (away[1] ? 0 : sizeof b)));
    CHECK(after.from_device - before.from_device == (int64_t)(away[2] ? 0 : sizeof y));
    if (away[2]) place_read(&py, y);
    CHECK(memcmp(y, right, sizeof y) == 0);
  }
  place_end(&pa), place_end(&pb), place_end(&py);
}

// Gaps there stay as they are; a host's function of what lies there; in place.
static void test_gaps(ein_cuda *cuda, ein_ctx *ctx) {
  static double x[3 * M * N], y[3 * M * N];
  const int64_t shape[2] = {M, N}, strides[2] = {3 * N, -3};
  ein_einsum_desc d;
  for (int i = 0; i < 3 * M * N; i++) x[i] = i, y[i] = -1;
  place px = place_of(cuda, sizeof x, x), py = place_of(cuda, sizeof y, y);
  ein_ztensor in = view_of(2, shape, px.at, 1);
  ein_ztensor out = view_of(2, shape, (double *)py.at + 3 * (N - 1), 1);
  out.strides = strides;
  CHECK(ein_einsum(ctx, "ij->ij", 1, &in, &out) == EIN_OK);
  place_read(&py, y);
  int wrong = 0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      const double *at = y + 3 * N * i + 3 * (N - 1 - j);
      wrong += at[0] != i * N + j || at[1] != -1 || at[2] != -1;
    }
  CHECK(wrong == 0);
  memset(&d, 0, sizeof d);
  d.expr = "ij->ij";
  d.nin = 1;
  d.in = &in;
  d.out = &in;
  d.map = "hyper(x0)";
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);  // the host's, through memory of its own
  d.map = "x0 - 1";
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  place_read(&px, x);
  for (int i = 0; i < M * N; i++) wrong += x[i] != 2.0 * i + 0.125 - 1;
  CHECK(wrong == 0);
  d.out = &out;
  d.map = "hyper(x0)";
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_UNSUPPORTED);  // it would write the gaps
  out = in;
  out.data = (double *)px.at + 1;
  d.map = "x0 - 1";
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_OVERLAP);
  place_end(&px), place_end(&py);
}

// Where views of the device are not known.
static void test_refused(ein_ctx *host, ein_cuda *cuda, ein_ctx *ctx) {
  double x[4] = {1, 2, 3, 4};
  const int64_t n = 4;
  place p = place_of(cuda, sizeof x, x);
  ein_ztensor in = view_of(1, &n, p.at, 1), out = view_of(1, &n, x, 0);
  ein_einsum_desc d;
  ein_batch *batch;
  CHECK(ein_einsum(host, "i->i", 1, &in, &out) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(host), "operand 0 lies in memory space 1") != NULL);
  CHECK(ein_einsum(NULL, "i->i", 1, &in, &out) == EIN_ERR_UNSUPPORTED);
  in.space = 2;
  CHECK(ein_einsum(ctx, "i->i", 1, &in, &out) == EIN_ERR_UNSUPPORTED);
  in.space = 1;
  memset(&d, 0, sizeof d);
  d.expr = "i->i", d.nin = 1, d.in = &in, d.out = &out;
  d.options.deterministic = 1;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(ctx), "does not go with deterministic") != NULL);
  d.options.deterministic = 0, d.options.memory = 1 << 20;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(ctx), "does not go with a memory budget") != NULL);
  d.options.memory = 0, d.options.overflow_check = 1;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_UNSUPPORTED);
  CHECK(ein_batch_create(ctx, &batch) == EIN_OK);
  CHECK(ein_batch_add(batch, "i->i", 1, &in, &out) == EIN_ERR_UNSUPPORTED);
  ein_batch_destroy(batch);
  CHECK(ein_einsum(ctx, "i->i", 1, &in, &out) == EIN_OK);
  CHECK(ein_cuda_alloc(cuda, 0, &in.data) == EIN_ERR_ARGUMENT);
  CHECK(ein_cuda_alloc(NULL, 8, &in.data) == EIN_ERR_ARGUMENT);
  CHECK(ein_cuda_read(cuda, NULL, x, 8) == EIN_ERR_ARGUMENT);
  CHECK(ein_cuda_write(cuda, NULL, NULL, 0) == EIN_OK);
  ein_cuda_free(cuda, NULL);
  place_end(&p);
}

// Runs that follow each other without waiting.
static void test_tickets(ein_cuda *cuda, ein_ctx *ctx) {
  enum { RUNS = 40 };
  static double x[200];
  const int64_t n = 200;
  ein_einsum_desc d;
  ein_plan *plan;
  ein_ticket ticket, first = 0;
  ein_run run;
  for (int i = 0; i < n; i++) x[i] = i;
  place p = place_of(cuda, sizeof x, x);
  ein_ztensor v = view_of(1, &n, p.at, 1);
  void *at[1] = {p.at};
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.expr = "i->i", d.map = "x0 + 1", d.nin = 1, d.in = d.out = &v;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  run.in = (const void *const *)at;
  run.out = at;
  for (int i = 0; i < RUNS; i++) {
    CHECK(ein_plan_enqueue(plan, &run, &ticket) == EIN_OK && ticket > first);
    if (i == 0) first = ticket;
  }
  CHECK(ein_plan_wait(plan, ticket) == EIN_OK && ein_plan_wait(plan, first) == EIN_OK);
  CHECK(ein_plan_wait(plan, 0) == EIN_OK && ein_plan_wait(plan, ticket + 1) == EIN_ERR_ARGUMENT);
  place_read(&p, x);
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += x[i] != i + RUNS;
  CHECK(wrong == 0);
  ein_plan_destroy(plan);
  v = view_of(1, &n, x, 0);
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  at[0] = x;
  CHECK(ein_plan_enqueue(plan, &run, &ticket) == EIN_OK && ticket == 0);  // all is done
  CHECK(x[1] == 2 + RUNS);
  ein_plan_destroy(plan);
  place_end(&p);
}

// A stream that is captured: nothing runs until the graph does, as often as it does.
static void test_capture(ein_cuda *cuda, ein_ctx *ctx) {
  static double x[64];
  const int64_t n = 64;
  ein_einsum_desc d;
  ein_plan *plan;
  ein_ticket ticket;
  ein_run run;
  for (int i = 0; i < n; i++) x[i] = i;
  place p = place_of(cuda, sizeof x, x);
  ein_ztensor v = view_of(1, &n, p.at, 1);
  void *at[1] = {p.at};
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.expr = "i->i", d.map = "2*x0 + 1", d.nin = 1, d.in = d.out = &v;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  run.in = (const void *const *)at;
  run.out = at;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);  // compiles
  stub_capture(1);
  CHECK(ein_plan_enqueue(plan, &run, &ticket) == EIN_OK && ticket == 0);
  CHECK(ein_cuda_read(cuda, p.at, x, sizeof x) == EIN_ERR_UNSUPPORTED);
  stub_capture(0);
  place_read(&p, x);
  CHECK(x[5] == 11);
  CHECK(stub_replay() == 0 && stub_replay() == 0);
  place_read(&p, x);
  CHECK(x[5] == 47);
  ein_plan_destroy(plan);
  v = view_of(1, &n, x, 0);
  at[0] = x;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  stub_capture(1);
  CHECK(ein_plan_enqueue(plan, &run, &ticket) == EIN_ERR_UNSUPPORTED);  // it lies on the host
  stub_capture(0);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK && x[5] == 95);
  ein_plan_destroy(plan);
  place_end(&p);
}

// ---- budgets ----

static ein_status budget_run(ein_ctx *ctx, const work *w, size_t memory, ein_plan_info *info) {
  ein_program_desc d;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  ein_options o;
  ein_run run;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  memset(&run, 0, sizeof run);
  d.text = w->text;
  o.memory = memory;
  run.in = (const void *const *)w->in;
  run.out = (void *const *)w->out;
  ein_status st = ein_graph_parse(ctx, &d, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, &o, &plan);
  if (st == EIN_OK) st = ein_plan_info_get(plan, info);
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);
  return st;
}

// Programs that do not fit the device run there in slices, within what was asked for.
static void test_budgets(ein_ctx *host) {
  static const char *const list[] = {
      "input A[i=300,k=200], B[k,j=250] : f64\nY[i,j] = sum[k](A[i,k]*B[k,j])\noutput Y",
      "input X[i=400,j=300] : f64\nY[i,j] = exp(X[i,j]*0.5) + X[i,j]\noutput Y",
      ("input A[i=300,k=64], B[k,j=250], C[j,m=80] : f64\nT[i,j] = sum[k](A[i,k]*B[k,j])\n"
       "U[i,j] = exp(T[i,j]*0.1)\nY[i,m] = sum[j](U[i,j]*C[j,m])\noutput Y")};
  for (int k = 0; k < 3; k++) {
    ein_cuda *cuda = device(2);
    ein_ctx *ctx = ctx_of(cuda);
    ein_plan_info info;
    work w;
    work_begin(host, list[k], &w);
    const size_t all = (size_t)(bytes_of(&w, 0) + bytes_of(&w, 1));
    for (int share = 1; share <= 4; share++) {
      const size_t memory = all / (size_t)share + (200 << 10);  // plans take some, too
      stub_room(all / (size_t)share + (200 << 10));
      const double before = stub_together();
      const ein_status st = budget_run(ctx, &w, memory, &info);
      CHECK(st == EIN_OK);
      // results come home, and the next slice goes there, while a kernel runs; k 0: with gaps
      CHECK(k == 0 || share == 1 || stub_together() > before);
      if (st != EIN_OK) printf("  %s\n  1/%d: %s\n", list[k], share, ein_ctx_message(ctx));
      CHECK(st != EIN_OK || (info.peak_bytes <= memory && stub_most() <= info.peak_bytes));
      CHECK(st != EIN_OK || share < 3 || info.nslice > 1);
      if (st == EIN_OK) CHECK(work_right(host, &w));
    }
    stub_room(SIZE_MAX);
    work_end(&w);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
  }
}

// ---- calls that fail ----

static void test_failures(ein_ctx *host) {
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k += 4) {
    work w;
    work_begin(host, programs[k].text, &w);
    for (long n = 0; n < 300; n++) {
      const int code = n % 2 ? 2 : 1;
      ein_cuda *cuda = device(1);
      ein_ctx *ctx = ctx_of(cuda);
      const long before = stub_live(), from = stub_calls();
      stub_fail(n, code);
      const ein_status st = work_run(ctx, &w);
      const int hit = stub_calls() - from > n;
      stub_fail(-1, 0);
      CHECK(hit ? st == EIN_ERR_NO_MEMORY || st == EIN_ERR_INTERNAL : st == EIN_OK);
      CHECK(stub_live() == before + ein_cuda_counts_get(cuda).compiled);  // modules stay
      if (hit && n % 8 == 0) CHECK(work_run(ctx, &w) == EIN_OK && work_right(host, &w));
      ein_ctx_destroy(ctx);
      ein_cuda_destroy(cuda);
      CHECK(stub_live() == 0);
      if (!hit) break;
    }
    work_end(&w);
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
  *(void **)&stub_room = dlsym(h, "stub_room");
  *(void **)&stub_most = dlsym(h, "stub_most");
  *(void **)&stub_capture = dlsym(h, "stub_capture");
  *(void **)&stub_replay = dlsym(h, "stub_replay");
  *(void **)&stub_together = dlsym(h, "stub_together");
  ein_ctx *host = ctx_of(NULL);
  test_programs(host);
  test_alone();
  ein_cuda *cuda = device(1);
  ein_ctx *ctx = ctx_of(cuda);
  test_views(cuda, ctx);
  test_gaps(cuda, ctx);
  test_refused(host, cuda, ctx);
  test_tickets(cuda, ctx);
  test_capture(cuda, ctx);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
  test_budgets(host);
  test_failures(host);
  ein_ctx_destroy(host);
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
