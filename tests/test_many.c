// One plan for many problems (ein_plan_execute_many) against executions one by one, to the bit:
// packed, interleaved, shared, backwards and overlapping operands, one thread and several.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

enum { ROOM = 1 << 21, PORTS = 5 };

static char *memory[2];  // what many run in, and the same for one by one
static char said[512];

// ---- an executor that counts and runs backwards ----

typedef struct runs { long jobs, kernels; const ein_kernels *own; } runs;

static void counting_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  ((runs *)user)->jobs++;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

static ein_status counting_run(void *user, const ein_contract *c, const ein_choice *choice,
                               const ein_part *part, void *scratch) {
  runs *r = (runs *)user;
  r->kernels++;
  return r->own->contract_run(r->own->user, c, choice, part, scratch);
}

static int counting_plan(void *user, const ein_contract *c, int width, int nth,
                         ein_choice *choice) {
  const ein_kernels *own = ((runs *)user)->own;
  return own->contract_plan(own->user, c, width, nth, choice);
}

static ein_ctx *core_ctx(int width, runs *r, counter *count) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  d.executor.width = width;
  d.executor.parallel_for = counting_for;
  d.executor.user = r;
  if (count != NULL) {
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = count;
  }
  ein_ctx_create(&d, &ctx);
  return ctx;
}

// Rates by which threads start in no time, so that small problems are shared, too.
static void start_at_once(ein_ctx *ctx) {
  ein_rates r = ein_ctx_rates_get(ctx);
  if (!(r.flops_f64 > 0)) {
    r.flops_f64 = r.flops_f32 = r.hz = r.fast_bytes = 1e9;
    for (int i = 0; i < EIN_MEMORY_LEVELS; i++) r.read_bw[i] = r.copy_bw[i] = 1e9;
  }
  r.machine[0] = 0;
  r.start = 1e-11;
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
}

// ---- random problems ----

static const struct { const char *expr; int nin; } form[] = {
    {"ij,jk->ik", 2}, {"ij,jk->ki", 2}, {"ij->ji", 1}, {"ij->i", 1}, {"ij,ij->", 2}, {"ij,j->i", 2},
    {"i,j->ij", 2}, {"ij,jk,kl->il", 3}, {"ii->i", 1}, {"ij->ij", 1}, {"bij,bjk->bik", 2},
    {"i,i->i", 2}, {"ij,kj->ik", 2}, {"ijk,kl->jil", 2}};
enum { FORMS = sizeof form / sizeof form[0] };

typedef struct port {
  int rank;
  int64_t shape[4], stride[4], step, at;  // at: elements from the memory's beginning
} port;

typedef struct trial {
  int nport;
  int64_t n;
  ein_dtype dtype;
  port p[PORTS];
} trial;

// A place for n arrays of a shape: how they lie is drawn.
static void place(port *p, int64_t n, int input, int wild, int64_t *used, int64_t most) {
  int64_t count = 1, span;
  const int how = (int)draw(0, wild ? 5 : input ? 4 : 3);
  for (int a = p->rank - 1; a >= 0; a--) p->stride[a] = count, count *= p->shape[a];
  span = (n > 0 ? n : 1) * count;
  p->step = count;
  p->at = *used;
  if (how == 1) {  // interleaved
    for (int a = 0; a < p->rank; a++) p->stride[a] *= n > 0 ? n : 1;
    p->step = 1;
  } else if (how == 2) {  // backwards
    p->at += n > 0 ? (n - 1) * count : 0;
    p->step = -count;
  } else if (how == 3) {  // with gaps
    p->step = count + draw(0, 5);
    span += n * 5;
  } else if (how == 4) {
    p->step = 0;
  } else if (how == 5) {
    p->step = draw(0, count);
    p->at = draw(0, *used);
  }
  *used += span;
  CHECK(*used < most);
}

static void fill(ein_dtype t) {
  const size_t n = 1 << 16;
  for (size_t i = 0; i < n; i++) {
    const int x = (int)draw(-500, 500);
    if (t == EIN_F32) ((float *)(void *)memory[0])[i] = (float)x / 97;
    else if (t == EIN_I32) ((int32_t *)(void *)memory[0])[i] = x;
    else ((double *)(void *)memory[0])[i] = (double)x / 97;
  }
  for (size_t at = 1 << 18; at < ROOM; at *= 2) memcpy(memory[0] + at, memory[0], at);
  memcpy(memory[1], memory[0], ROOM);
}

static void *address(const trial *t, int which, int k, int64_t i) {
  return memory[which] + (t->p[k].at + i * t->p[k].step) * (int64_t)ein_dtype_size(t->dtype);
}

// Runs a plan both ways, and compares all memory.
static void both(const ein_plan *plan, const trial *t, int roomy) {
  const void *in[PORTS];
  void *out[1], *room = NULL;
  int64_t step[PORTS];
  ein_run run;
  const int nin = t->nport - 1;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.error = said;
  run.error_bytes = sizeof said;
  if (roomy > 0) {
    run.workspace_bytes = ein_plan_workspace(plan) * (size_t)roomy;
    run.workspace = room = malloc(run.workspace_bytes);
  }
  fill(t->dtype);
  for (int k = 0; k < t->nport; k++) step[k] = t->p[k].step;
  for (int k = 0; k < nin; k++) in[k] = address(t, 0, k, 0);
  out[0] = address(t, 0, nin, 0);
  const ein_status st = ein_plan_execute_many(plan, &run, t->n, step, step + nin);
  ein_status one = EIN_OK;
  for (int64_t i = 0; i < t->n && one == EIN_OK; i++) {
    for (int k = 0; k < nin; k++) in[k] = address(t, 1, k, i);
    out[0] = address(t, 1, nin, i);
    one = ein_plan_execute(plan, &run);
  }
  CHECK(st == one);
  CHECK(st == EIN_OK || st == EIN_ERR_OVERLAP);
  const int same = memcmp(memory[0], memory[1], ROOM) == 0;
  CHECK(same);
  if (!same) printf("  n %lld of %d ports, dtype %s\n", (long long)t->n, t->nport,
                    ein_dtype_name(t->dtype));
  free(room);
}

static void test_random(ein_ctx *ctx, int trials) {
  static const ein_dtype types[] = {EIN_F64, EIN_F32, EIN_C128, EIN_I32};
  for (int at = 0; at < trials; at++) {
    const uint64_t seed = rng_state;
    const int f = (int)draw(0, FORMS - 1), wild = chance(25), large = chance(20), was = failures;
    trial t;
    ein_ztensor v[PORTS];
    ein_einsum_desc d;
    ein_plan *plan;
    int64_t extent[128], used = 0;
    memset(&t, 0, sizeof t);
    memset(&d, 0, sizeof d);
    memset(v, 0, sizeof v);
    t.nport = form[f].nin + 1;
    t.n = large ? draw(0, 4) : chance(10) ? draw(100, 200) : draw(0, 24);
    t.dtype = types[draw(0, 3)];
    for (int c = 'a'; c <= 'z'; c++)
      extent[c] = large ? draw(20, 40) : t.n > 24 ? draw(1, 5) : draw(1, 9);
    if (large && form[f].expr[3] == ',' && form[f].expr[0] == 'i') extent['j'] = draw(40, 60);
    if (strchr(form[f].expr, 'b') != NULL || strstr(form[f].expr, "ijk") != NULL)
      extent['b'] = extent['i'] = draw(1, 6);
    const char *s = form[f].expr;
    for (int k = 0; k < t.nport; k++, s += *s == ',' || *s == '-' ? 1 + (*s == '-') : 0) {
      for (; *s >= 'a' && *s <= 'z'; s++) t.p[k].shape[t.p[k].rank++] = extent[(int)*s];
      place(&t.p[k], t.n, k + 1 < t.nport, wild, &used, ROOM / 16);
      v[k].dtype = t.dtype;
      v[k].rank = t.p[k].rank;
      v[k].shape = t.p[k].shape;
      v[k].strides = t.p[k].stride;
    }
    d.expr = form[f].expr;
    d.nin = form[f].nin;
    d.in = v;
    d.out = &v[d.nin];
    if (chance(20)) d.alpha.set = 1, d.alpha.re = 3;
    if (chance(20)) d.beta.set = 1, d.beta.re = 2;
    d.options.may_overlap = wild && chance(50);
    d.options.deterministic = chance(10);
    const ein_status st = ein_plan_create(ctx, &d, &plan);
    CHECK(st == EIN_OK);
    if (st == EIN_OK) both(plan, &t, (int)draw(0, 3));
    if (failures > was)
      printf("  %s, seed %llu: %s\n", d.expr, (unsigned long long)seed, ein_ctx_message(ctx));
    ein_plan_destroy(plan);
  }
}

// Programs of several statements, with temporaries, params and folds that are not sums.
static void test_programs(ein_ctx *ctx, int trials) {
  static const char *const text[] = {
      "input A[%d,%d]\nM[i] = max[j](A[i,j])\nE[i,j] = exp(A[i,j] - M[i])\n"
      "S[i] = sum[j](E[i,j])\nP[i,j] = E[i,j] / S[i]\noutput P\n",
      "param c = 3\ninput A[%d,%d]\nB[i,j] = sum[k](A[i,k] * A[j,k])\nR[i,j] = B[i,j] * c\n"
      "output R\n",
      "input A[%d,%d]\nS = sum[i,j](A[i,j])\noutput S\n"};
  for (int at = 0; at < trials; at++) {
    const uint64_t seed = rng_state;
    const int was = failures, which = (int)draw(0, 2), rows = (int)draw(1, 20);
    const int cols = (int)draw(1, 20);
    char buffer[512];
    ein_program_desc pd;
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    trial t;
    int64_t used = 0;
    memset(&pd, 0, sizeof pd);
    memset(&t, 0, sizeof t);
    snprintf(buffer, sizeof buffer, text[which], rows, cols);
    pd.text = buffer;
    CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
    t.dtype = EIN_F64;
    t.n = draw(0, 30);
    t.nport = 2;
    for (int k = 0; k < 2; k++) {
      ein_tensor_info info;
      CHECK((k ? ein_plan_output(plan, 0, &info) : ein_plan_input(plan, 0, &info)) == 1);
      int64_t count = 1;
      for (int a = 0; a < info.rank; a++) count *= info.shape[a];
      t.p[k].at = used;
      t.p[k].step = k == 0 && chance(20) ? 0 : chance(50) ? count : count + 3;
      used += (count + 3) * (t.n + 1);
    }
    both(plan, &t, (int)draw(0, 4));
    if (failures > was) printf("  program %d, seed %llu\n", which, (unsigned long long)seed);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
  }
}

// ---- decided once ----

static ein_plan *products(ein_ctx *ctx, int64_t k) {
  const int64_t shape[2] = {k, k};
  const ein_ztensor v[3] = {ein_tensor(EIN_F64, 2, shape, NULL),
                            ein_tensor(EIN_F64, 2, shape, NULL),
                            ein_tensor(EIN_F64, 2, shape, NULL)};
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  d.expr = "ij,jk->ik";
  d.nin = 2;
  d.in = v;
  d.out = &v[2];
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  return plan;
}

// Kernels are called once by each thread, threads are woken once, and nothing is allocated.
static void test_once(void) {
  enum { N = 5000, K = 8 };
  for (int width = 1; width <= 64; width *= 4)
    for (int cpu = 0; cpu < 2; cpu++) {
      runs r = {0, 0, NULL};
      counter count = {0, -1, 0};
      ein_ctx *ctx = core_ctx(width, &r, &count);
      ein_cpu *own = NULL;
      ein_kernels kernels;
      if (cpu) {
        ein_ctx_desc d;
        ein_cpu_desc one;
        memset(&d, 0, sizeof d);
        memset(&one, 0, sizeof one);
        one.threads = 1;
        ein_ctx_destroy(ctx);
        CHECK(ein_cpu_create(&one, NULL, &own) == EIN_OK);
        r.own = ein_cpu_kernels(own);
        memset(&kernels, 0, sizeof kernels);
        kernels.name = "counting";
        kernels.user = &r;
        kernels.contract_plan = counting_plan;
        kernels.contract_run = counting_run;
        kernels.rates = r.own->rates;
        d.nuse = 1;
        d.use[0] = &kernels;
        d.allocator.alloc_fn = count_alloc;
        d.allocator.free_fn = count_free;
        d.allocator.user = &count;
        d.executor.width = width;
        d.executor.parallel_for = counting_for;
        d.executor.user = &r;
        CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
      }
      ein_plan *plan = products(ctx, K);
      double *x = (double *)calloc(3 * N * K * K, sizeof *x);
      const void *in[2] = {x, x + N * K * K};
      void *out[1] = {x + 2 * N * K * K};
      const int64_t in_step[2] = {K * K, K * K}, out_step[1] = {K * K};
      ein_run run;
      memset(&run, 0, sizeof run);
      run.in = in;
      run.out = out;
      run.workspace_bytes = (size_t)width * ein_plan_workspace(plan);
      run.workspace = malloc(run.workspace_bytes);
      const long calls = count.calls;
      CHECK(ein_plan_execute_many(plan, &run, N, in_step, out_step) == EIN_OK);
      CHECK(count.calls == calls);
      CHECK(r.jobs == (width > 1));
      if (cpu) CHECK(r.kernels == width);
      free(run.workspace);
      free(x);
      ein_plan_destroy(plan);
      ein_ctx_destroy(ctx);
      ein_cpu_destroy(own);
      CHECK(count.live == 0);
    }
}

// ---- mistakes ----

static ein_status refuse(const int64_t *size, const void *const *in, void *const *out,
                         void *user) {
  ++*(int *)user;
  memcpy(out[0], in[0], (size_t)size[0] * sizeof(double));
  return *(const double *)in[0] > 6 ? EIN_ERR_EMPTY : EIN_OK;
}

static void test_mistakes(int width) {
  runs r = {0, 0, NULL};
  ein_ctx *ctx = core_ctx(width, &r, NULL);
  ein_plan *plan = products(ctx, 3);
  double *x = (double *)(void *)memory[0];
  const void *in[2] = {x, x + 1000};
  void *out[1] = {x + 2000};
  const int64_t step[2] = {9, 9}, far[2] = {9, INT64_MAX / 16};
  ein_run run;
  fill(EIN_F64);
  memset(&run, 0, sizeof run);
  CHECK(ein_plan_execute_many(NULL, &run, 3, step, step) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_execute_many(plan, &run, 3, step, step) == EIN_ERR_ARGUMENT);
  run.in = in;
  run.out = out;
  run.error = said;
  run.error_bytes = sizeof said;
  CHECK(ein_plan_execute_many(plan, &run, -1, step, step) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_execute_many(plan, &run, 3, NULL, step) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_execute_many(plan, &run, 3, step, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_execute_many(plan, &run, 3, far, step) == EIN_ERR_TOO_LARGE);
  CHECK(ein_plan_execute_many(plan, &run, 1, NULL, NULL) == EIN_OK);
  CHECK(ein_plan_execute_many(plan, &run, 0, NULL, NULL) == EIN_OK);
  in[1] = NULL;
  CHECK(ein_plan_execute_many(plan, &run, 3, step, step) == EIN_ERR_ARGUMENT);
  CHECK(strstr(said, "no data for input 1") != NULL);
  in[1] = x + 1000;
  run.workspace = x;
  run.workspace_bytes = 8;
  CHECK(ein_plan_execute_many(plan, &run, 3, step, step) == EIN_ERR_ARGUMENT);
  CHECK(strstr(said, "the workspace has 8 bytes") != NULL);
  ein_plan_destroy(plan);

  int calls = 0;
  ein_operator op;
  ein_program_desc pd;
  ein_graph *g = NULL;
  memset(&op, 0, sizeof op);
  memset(&pd, 0, sizeof pd);
  op.name = "refuse";
  op.signature = "(n)->(n)";
  op.fn = refuse;
  op.user = &calls;
  CHECK(ein_ctx_operator(ctx, &op) == EIN_OK);
  pd.text = "input A[1]\nB[i] = refuse[i](A[i])\noutput B\n";
  CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  memset(&run, 0, sizeof run);
  for (int i = 0; i < 100; i++) x[i] = i / 10.0;
  run.in = in;
  run.out = out;
  run.error = said;
  run.error_bytes = sizeof said;
  const int64_t one = 1;
  CHECK(ein_plan_execute_many(plan, &run, 50, &one, &one) == EIN_OK && calls == 50);
  CHECK(ein_plan_execute_many(plan, &run, 100, &one, &one) == EIN_ERR_EMPTY);
  CHECK(strstr(said, "problem 61 failed") != NULL);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

static void test_out_of_memory(void) {
  for (long at = 0, ok = 0; !ok; at++) {
    runs r = {0, 0, NULL};
    counter count = {0, -1, 0};
    ein_ctx *ctx = core_ctx(2, &r, &count);
    ein_plan *plan = products(ctx, 40);
    const void *in[2] = {memory[0], memory[0]};
    void *out[1] = {memory[1]};
    const int64_t step[2] = {0, 1600};
    ein_run run;
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    count.fail_at = count.calls + at;
    const ein_status st = ein_plan_execute_many(plan, &run, 10, step, step + 1);
    ok = st == EIN_OK;
    CHECK(ok || st == EIN_ERR_NO_MEMORY);
    if (ok) CHECK(at > 0);
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) rng_state = strtoull(argv[1], NULL, 10);
  for (int i = 0; i < 2; i++) memory[i] = (char *)malloc(ROOM);
  if (memory[0] == NULL || memory[1] == NULL) return 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  for (int width = 1; width <= 4; width++) {
    runs r = {0, 0, NULL};
    ein_ctx *ctx = core_ctx(width, &r, NULL);
    for (int at_once = 0; at_once < 2; at_once++) {
      if (at_once) start_at_once(ctx);
      test_random(ctx, FEW(300));
      test_programs(ctx, FEW(60));
    }
    ein_ctx_destroy(ctx);
    ein_cpu_desc c;
    ein_ctx_desc d;
    ein_cpu *cpu;
    memset(&c, 0, sizeof c);
    memset(&d, 0, sizeof d);
    c.threads = width;
    CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &d) == EIN_OK);
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    for (int at_once = 0; at_once < 2; at_once++) {
      if (at_once) start_at_once(ctx);
      test_random(ctx, FEW(600));
      test_programs(ctx, FEW(60));
    }
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
    test_mistakes(width);
  }
  test_once();
  test_out_of_memory();
  for (int i = 0; i < 2; i++) free(memory[i]);
  if (failures == 0) printf("ok %d checks\n", checks);
  return failures > 0;
}
