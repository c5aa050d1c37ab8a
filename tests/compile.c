// Compiled by tests/matrix.sh in every language and mode, so it calls into every part of the
// library: a configuration macro that is misspelled anywhere would otherwise go unnoticed.
//   COMPILE_MAIN             the file with main; else the second translation unit
//   COMPILE_PLAIN_FIRST      plainly before the implementation
//   COMPILE_DIST, _CPU, _BLAS, _MPI   with that header of backends/, included by itself
//   COMPILE_BRING            with backends brought in by macro
//   EINSUM_IMPLEMENTATION, EINSUM_STATIC, EINSUM_CORE_ONLY, ..   as the row of the matrix says
#ifdef COMPILE_MALLOC
#include <stdlib.h>
#define EINSUM_MALLOC(size) compile_malloc(size)
#define EINSUM_FREE(ptr) compile_free(ptr)
static long compile_live, compile_calls;
static void *compile_malloc(size_t size) {
  void *p = malloc(size);
  compile_live += p != NULL;
  compile_calls++;
  return p;
}
static void compile_free(void *p) {
  compile_live -= p != NULL;
  free(p);
}
#endif
#ifdef COMPILE_ASSERT
#include <assert.h>
#define EINSUM_ASSERT(cond) assert(cond)
#endif
#ifdef COMPILE_BRING  // backends by macro
#define EINSUM_CPU
#define EINSUM_CUDA
#define EINSUM_DIST
#endif
#ifdef COMPILE_PLAIN_FIRST
#undef EINSUM_IMPLEMENTATION
#include "../einsum.h"
#define EINSUM_IMPLEMENTATION
#endif
#include "../einsum.h"
#include "../einsum.h"  // twice must do no harm
#ifdef COMPILE_DIST
#include "../backends/einsum_dist.h"
#include "../backends/einsum_dist.h"
#endif
#ifdef COMPILE_CPU
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_cpu.h"
#endif
#ifdef COMPILE_CUDA
#include "../backends/einsum_cuda.h"
#include "../backends/einsum_cuda.h"
#endif
#ifdef COMPILE_BLAS
#include "../backends/einsum_openblas.h"
#include "../backends/einsum_openblas.h"
#endif
#ifdef COMPILE_MPI
#include "../backends/einsum_mpi.h"
#include "../backends/einsum_mpi.h"
#endif
#include "../einsum.h"
#if defined(COMPILE_BRING)
#define COMPILE_DIST
#define COMPILE_CPU
#endif

#include <stdio.h>
#include <string.h>

#define CHECK(cond)                                                   \
  do {                                                                \
    if (!(cond)) {                                                    \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);       \
      return 1;                                                       \
    }                                                                 \
  } while (0)

#ifdef __cplusplus
extern "C" int compile_other(void);
#else
int compile_other(void);
#endif

static ein_ztensor matrix(double *data, const int64_t *shape) {
  ein_ztensor t;
  memset(&t, 0, sizeof t);
  t.dtype = EIN_F64;
  t.rank = 2;
  t.shape = shape;
  t.data = data;
  return t;
}

static int one_call(void) {
  double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {0, 0, 0, 0};
  const int64_t sa[2] = {2, 3}, sb[2] = {3, 2}, sc[2] = {2, 2};
  ein_ztensor in[2], out = matrix(c, sc);
  in[0] = matrix(a, sa);
  in[1] = matrix(b, sb);
  CHECK(ein_einsum(NULL, "ij,jk->ik", 2, in, &out) == EIN_OK);
  CHECK(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
  return 0;
}

#ifdef COMPILE_MAIN
static int plans(ein_ctx *ctx) {
  double a[4] = {1, 2, 3, 4}, c[4] = {0, 0, 0, 0};
  const int64_t s[2] = {2, 2};
  ein_ztensor in[2], out = matrix(c, s);
  ein_einsum_desc desc;
  ein_plan *plan = NULL;
  ein_run run;
  const void *inputs[2];
  void *outputs[1];
  char text[512];
  inputs[0] = inputs[1] = a;
  outputs[0] = c;
  in[0] = in[1] = matrix(a, s);
  memset(&desc, 0, sizeof desc);
  desc.expr = "ij,jk";
  desc.nin = 2;
  desc.in = in;
  desc.out = &out;
  CHECK(ein_plan_create(ctx, &desc, &plan) == EIN_OK);
  memset(&run, 0, sizeof run);
  run.in = inputs;
  run.out = outputs;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  CHECK(c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22);
  CHECK(ein_plan_explain(plan, text, sizeof text) > 0);
  ein_plan_destroy(plan);
  return 0;
}

#ifndef EINSUM_CORE_ONLY
static int decompositions(ein_ctx *ctx, const ein_graph *graph) {
  ein_decompose_desc desc;
  ein_decomposition *d = NULL;
  ein_decomp_info info;
  ein_parts parts;
  ein_sim_info sim;
  memset(&desc, 0, sizeof desc);
  desc.p = 3;
  CHECK(ein_decompose(ctx, graph, &desc, &d) == EIN_OK);
  ein_decomposition_info(d, &info);
  CHECK(info.nstmt == 1 && info.total == 3 && info.proved);
  CHECK(ein_decomposition_parts(d, 0, &parts) == EIN_OK && parts.cut[0] == 3);
  CHECK(ein_simulate(ctx, graph, d, NULL, &sim) == EIN_OK && sim.tasks == 3);
  ein_decomposition_destroy(d);
  CHECK(ein_cost_find(ein_cost_name(EIN_COST_BYTES)) == EIN_COST_BYTES);
  return 0;
}
#endif

#ifdef COMPILE_DIST
static int places(ein_ctx *ctx, const ein_graph *graph, const ein_run *run) {
  const int64_t pieces[1] = {3}, cut[1] = {3}, shape[1] = {3};
  double x[3] = {1, 2, 3};
  ein_ztensor view = matrix(x, shape);
  ein_fabric fabric;
  ein_dist_desc desc;
  ein_dist_stats stats;
  ein_dist *d = NULL;
  ein_relation *r = NULL, *y = NULL;
  const ein_relation *in[1];
  memset(&desc, 0, sizeof desc);
  memset(&stats, 0, sizeof stats);
  CHECK(ein_fabric_threads(3, &fabric) == EIN_OK);
  desc.fabric = &fabric;
  CHECK(ein_dist_create(ctx, graph, &desc, &d) == EIN_OK);
  CHECK(ein_dist_execute(d, run, &stats) == EIN_OK && stats.tasks == 1);
  ein_dist_destroy(d);
  ein_fabric_destroy(&fabric);
  view.rank = 1;
  CHECK(ein_relation_view(ctx, &view, pieces, &r) == EIN_OK);
  in[0] = r;
  CHECK(ein_relation_join(ctx, graph, 0, cut, in, NULL, NULL, NULL, &y) == EIN_OK);
  CHECK(ein_relation_read(y, &view) == EIN_OK && x[2] == 8);
  ein_relation_destroy(y);
  ein_relation_destroy(r);
  return 0;
}
#endif

#ifndef EINSUM_CORE_ONLY
static int programs(ein_ctx *ctx) {
  double x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
  const int64_t shape[1] = {3};
  ein_ztensor view = matrix(x, shape);
  ein_binding bind;
  ein_program_desc desc;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  ein_run run;
  const void *inputs[1];
  void *outputs[1];
  inputs[0] = x;
  outputs[0] = y;
  view.rank = 1;
  bind.name = "x";
  bind.view = &view;
  memset(&desc, 0, sizeof desc);
  desc.text = "input x[n]\nL = sum(x[i]^2)/2\ngrad L wrt x as g\ny[i] = x[i]*g[i] - 1\noutput y\n";
  desc.nbind = 1;
  desc.bind = &bind;
  CHECK(ein_graph_parse(ctx, &desc, &graph) == EIN_OK);
  CHECK(ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) == EIN_OK);
  memset(&run, 0, sizeof run);
  run.in = inputs;
  run.out = outputs;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  CHECK(y[0] == 0 && y[1] == 3 && y[2] == 8);
  ein_plan_destroy(plan);
  ein_graph *plain = NULL;
  desc.text = "input x[n]\ny[i] = x[i]^2 - 1\noutput y\n";
  CHECK(ein_graph_parse(ctx, &desc, &plain) == EIN_OK);
  CHECK(decompositions(ctx, plain) == 0);
#ifdef COMPILE_DIST
  CHECK(places(ctx, plain, &run) == 0);
#endif
  ein_graph_destroy(plain);
  ein_graph_destroy(graph);
  return 0;
}
#endif

static int budgets(ein_ctx *ctx) {
  static double a[400], c[400];
  const int64_t s[2] = {20, 20};
  ein_ztensor in[3], out = matrix(c, s);
  ein_einsum_desc desc;
  ein_plan_info info;
  ein_plan *plan = NULL;
  ein_run run;
  const void *inputs[3];
  void *outputs[1];
  size_t least = 0;
  outputs[0] = c;
  for (int k = 0; k < 3; k++) {
    in[k] = matrix(a, s);
    inputs[k] = a;
  }
  for (int i = 0; i < 20; i++) a[21 * i] = 2;
  memset(&desc, 0, sizeof desc);
  desc.expr = "ij,jk,kl->il";
  desc.nin = 3;
  desc.in = in;
  desc.out = &out;
  desc.options.memory = 1;
  desc.options.least = &least;
  CHECK(ein_plan_create(ctx, &desc, &plan) == EIN_ERR_TOO_LARGE && plan == NULL && least > 1);
  desc.options.memory = least;  // the finest slices: a plan's call for each few elements
  CHECK(ein_plan_create(ctx, &desc, &plan) == EIN_OK);
  memset(&run, 0, sizeof run);
  run.in = inputs;
  run.out = outputs;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK && c[0] == 8 && c[1] == 0 && c[399] == 8);
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK && info.peak_bytes <= least);
  CHECK(ein_plan_explain(plan, NULL, 0) > 0 && ein_plan_json(plan, NULL, 0) > 0);
  ein_plan_destroy(plan);
  return 0;
}

static int views(void) {
  double a[6] = {1, 2, 3, 4, 5, 6};
  const int64_t s[2] = {2, 3};
  const int axes[2] = {1, 0};
  int64_t dims[4], at[2] = {2, 1};
  ein_ztensor t = matrix(a, s), v;
  CHECK(ein_view_permute(&t, axes, &v, dims) == EIN_OK);
  CHECK(*(double *)ein_view_at(&v, at) == 6 && ein_view_count(&v) == 6);
#ifndef EINSUM_CORE_ONLY
  int64_t size = 0, start[1] = {0}, end[1] = {4};
  ein_zrange r;
  r.rank = 1;
  r.start = start;
  r.end = end;
  CHECK(ein_zrange_size(&r, &size) == EIN_OK && size == 4);
#endif
  return 0;
}

#ifdef COMPILE_CPU
static int backend(void) {
  ein_cpu *cpu = NULL;
  ein_ctx *ctx = NULL;
  ein_ctx_desc desc;
  char text[600];
  memset(&desc, 0, sizeof desc);
  CHECK(ein_cpu_create(NULL, NULL, &cpu) == EIN_OK);
  CHECK(ein_cpu_use(cpu, &desc) == EIN_OK && ein_cpu_executor(cpu).width >= 1);
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK && plans(ctx) == 0);
  CHECK(ein_cpu_info(cpu, text, sizeof text) > 0 && ein_cpu_kernels(cpu) != NULL);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  return 0;
}
#endif

int main(void) {
  ein_ctx *ctx = NULL;
  ein_ztensor none[1];
  CHECK(strcmp(ein_version(), EINSUM_VERSION) == 0);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(one_call() == 0 && compile_other() == 0);
  CHECK(budgets(ctx) == 0);
#ifdef COMPILE_CPU
  CHECK(backend() == 0);
#endif
  CHECK(plans(ctx) == 0 && views() == 0);
#ifndef EINSUM_CORE_ONLY
  CHECK(programs(ctx) == 0);
#endif
  memset(none, 0, sizeof none);
  CHECK(ein_einsum(ctx, "i-", 1, none, none) != EIN_OK && ein_ctx_message(ctx)[0] != 0);
  ein_ctx_destroy(ctx);
#ifdef COMPILE_MALLOC
  CHECK(compile_calls > 0 && compile_live == 0);
#endif
  return 0;
}
#else
int compile_other(void) { return one_call(); }
#endif
