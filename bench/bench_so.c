// The library behind a plain C interface for bench/kernels.py: plans one case, runs it n times with
// the clock in C, calls the one-call interface for the overhead case. Built with bench/roofline.c
// into one shared library: make build/libbench.so
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdlib.h>
#include <time.h>

#include "bench.h"

// The views of a case. dims holds shape and strides of the inputs in order, then of the output.
typedef struct case_views {
  int nin;
  ein_ztensor *view;  // nin inputs, then the output
} case_views;

struct bench {
  ein_ctx *ctx;
  ein_cpu *cpu;
  char path[256], variant[128];  // what the next plans are told; "": nothing
};

struct bench_case {
  bench *b;
  ein_plan *plan;
  case_views v;
  int64_t *dims;
  char *expr;
  void *raw, *workspace;
  size_t workspace_bytes;
  char error[256];
};

// BENCH_CLOCK set: the processor's time for this process, where others keep it busy.
static clockid_t clock_id = CLOCK_MONOTONIC;

static double now(void) {
  struct timespec t;
  clock_gettime(clock_id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double clock_now(void *user) {
  (void)user;
  return now();
}

// THE configuration that is measured: the pool and kernels of einsum_cpu.h, calibrated.
static ein_status make_ctx(int threads, bench *b) {
  ein_ctx_desc desc;
  ein_cpu_desc machine;
  memset(&desc, 0, sizeof desc);
  memset(&machine, 0, sizeof machine);
  machine.threads = threads;
  machine.pin = 1;
  machine.isa = getenv("BENCH_ISA");  // NULL: the best there is
  ein_status st = ein_cpu_create(&machine, NULL, &b->cpu);
  if (st == EIN_OK) st = ein_cpu_use(b->cpu, &desc);
  desc.now_fn = clock_now;
  ein_rates rates;
  if (st == EIN_OK) st = ein_ctx_create(&desc, &b->ctx);
  if (st == EIN_OK) st = ein_calibrate(b->ctx, 0, &rates);
  return st == EIN_OK ? ein_ctx_rates(b->ctx, &rates) : st;
}

bench *bench_open(int threads) {
  bench *b = (bench *)calloc(1, sizeof *b);
  if (getenv("BENCH_CLOCK") != NULL) clock_id = CLOCK_PROCESS_CPUTIME_ID;
  if (b == NULL) return NULL;
  if (make_ctx(threads, b) != EIN_OK) {
    bench_close(b);
    return NULL;
  }
  return b;
}

void bench_close(bench *b) {
  if (b == NULL) return;
  ein_ctx_destroy(b->ctx);
  ein_cpu_destroy(b->cpu);
  free(b);
}

const char *bench_message(bench *b) { return ein_ctx_message(b->ctx); }
int bench_dtype(const char *name) { return (int)ein_dtype_find(name); }
const char *bench_version(void) { return ein_version(); }

void bench_free(bench_case *c) {
  if (c == NULL) return;
  ein_plan_destroy(c->plan);
  free(c->v.view);
  free(c->dims);
  free(c->expr);
  free(c->raw);
  free(c);
}

static int copy_views(bench_case *c, const char *expr, int nin, int nout, const int *dtype,
                      const int *rank, const int64_t *dims) {
  int64_t total = 0, at = 0;
  for (int k = 0; k < nin + nout; k++) total += 2 * rank[k];
  c->dims = (int64_t *)malloc((size_t)(total + 1) * sizeof *c->dims);
  c->v.view = (ein_ztensor *)calloc((size_t)(nin + nout), sizeof *c->v.view);
  c->expr = (char *)malloc(strlen(expr) + 1);
  if (c->dims == NULL || c->v.view == NULL || c->expr == NULL) return 0;
  memcpy(c->dims, dims, (size_t)total * sizeof *dims);
  memcpy(c->expr, expr, strlen(expr) + 1);
  c->v.nin = nin;
  for (int k = 0; k < nin + nout; k++) {
    ein_ztensor *t = &c->v.view[k];
    t->dtype = (ein_dtype)dtype[k];
    t->rank = rank[k];
    t->shape = c->dims + at;
    t->strides = c->dims + at + rank[k];
    at += 2 * rank[k];
  }
  return 1;
}

static ein_options options_of(const bench *b) {
  ein_options o;
  memset(&o, 0, sizeof o);
  if (b->path[0]) o.path = b->path;
  if (b->variant[0]) o.variant = b->variant;
  return o;
}

int bench_fix(bench *b, const char *path, const char *variant) {
  if (strlen(path) >= sizeof b->path || strlen(variant) >= sizeof b->variant) return 0;
  memcpy(b->path, path, strlen(path) + 1);
  memcpy(b->variant, variant, strlen(variant) + 1);
  return 1;
}

size_t bench_path(const bench_case *c, char *buf, size_t size) {
  return ein_plan_path(c->plan, buf, size);
}

size_t bench_variants(const bench_case *c, char *buf, size_t size) {
  return ein_plan_variants(c->plan, buf, size);
}

// A program names its inputs x0, x1, ..; its outputs are row-major.
static ein_status plan_program(bench_case *c, const char *program) {
  enum { MOST = 64 };
  char names[MOST][16];
  ein_binding bind[MOST];
  if (c->v.nin > MOST) return EIN_ERR_ARGUMENT;
  for (int k = 0; k < c->v.nin; k++) {
    snprintf(names[k], sizeof names[k], "x%d", k);
    bind[k].name = names[k];
    bind[k].view = &c->v.view[k];
  }
  ein_program_desc d;
  memset(&d, 0, sizeof d);
  d.text = program;
  d.nbind = c->v.nin;
  d.bind = bind;
  ein_graph *graph;
  const ein_options o = options_of(c->b);
  ein_status st = ein_graph_parse(c->b->ctx, &d, &graph);
  if (st == EIN_OK) st = ein_plan_graph(c->b->ctx, graph, c->v.nin, bind, &o, &c->plan);
  ein_graph_destroy(graph);
  return st;
}

static ein_status plan_einsum(bench_case *c, const char *map, const char *fold) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = c->expr;
  d.nin = c->v.nin;
  d.in = c->v.view;
  d.out = &c->v.view[c->v.nin];
  d.map = map[0] ? map : NULL;
  d.monoid = fold[0] ? fold : NULL;
  d.options = options_of(c->b);
  return ein_plan_create(c->b->ctx, &d, &c->plan);
}

static int make_workspace(bench_case *c) {
  size_t bytes = ein_plan_workspace(c->plan);
  c->raw = malloc(bytes + 128);
  if (c->raw == NULL) return 0;
  memset(c->raw, 0, bytes + 128);  // its pages are there before anything is timed
  c->workspace = (void *)(((uintptr_t)c->raw + 63) / 64 * 64);
  c->workspace_bytes = bytes;
  return 1;
}

bench_case *bench_plan(bench *b, const char *expr, const char *map, const char *fold,
                       const char *program, int nin, const int *dtype, const int *rank,
                       const int64_t *dims, const char **why) {
  return bench_plan_rows(b, expr, map, fold, program, nin, 1, dtype, rank, dims, why);
}

bench_case *bench_plan_rows(bench *b, const char *expr, const char *map, const char *fold,
                            const char *program, int nin, int nout, const int *dtype,
                            const int *rank, const int64_t *dims, const char **why) {
  bench_case *c = (bench_case *)calloc(1, sizeof *c);
  *why = "out of memory";
  if (c == NULL) return NULL;
  c->b = b;
  if (!copy_views(c, expr, nin, nout, dtype, rank, dims)) {
    bench_free(c);
    return NULL;
  }
  ein_status st = program[0] ? plan_program(c, program) : plan_einsum(c, map, fold);
  if (st != EIN_OK || !make_workspace(c)) {
    if (st != EIN_OK) {
      *why = ein_ctx_message(b->ctx)[0] ? ein_ctx_message(b->ctx) : ein_status_text(st);
    }
    bench_free(c);
    return NULL;
  }
  *why = "";
  return c;
}

const char *bench_run(bench_case *c, int fields, const void *const *in, void *const *out, int batch,
                      int n, double *seconds) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.workspace = c->workspace;
  run.workspace_bytes = c->workspace_bytes;
  run.error = c->error;
  run.error_bytes = sizeof c->error;
  for (int r = 0; r < n; r++) {
    double t0 = now();
    for (int i = 0; i < batch; i++) {
      for (int f = 0; f < fields; f++) {
        run.in = in + (size_t)f * (size_t)c->v.nin;
        run.out = out + f;
        ein_status st = ein_plan_execute(c->plan, &run);
        if (st != EIN_OK) return c->error[0] ? c->error : ein_status_text(st);
      }
    }
    seconds[r] = (now() - t0) / batch;
  }
  return "";
}

const char *bench_call(bench_case *c, const void *const *in, void *const *out, int batch, int n,
                       double *seconds) {
  for (int k = 0; k < c->v.nin; k++) c->v.view[k].data = (void *)(uintptr_t)in[k];
  c->v.view[c->v.nin].data = out[0];
  for (int r = 0; r < n; r++) {
    double t0 = now();
    for (int i = 0; i < batch; i++) {
      ein_status st = ein_einsum(c->b->ctx, c->expr, c->v.nin, c->v.view, &c->v.view[c->v.nin]);
      if (st != EIN_OK) return ein_status_text(st);
    }
    seconds[r] = (now() - t0) / batch;
  }
  return "";
}

size_t bench_describe(const bench_case *c, int json, char *buf, size_t size) {
  return json ? ein_plan_json(c->plan, buf, size) : ein_plan_explain(c->plan, buf, size);
}
