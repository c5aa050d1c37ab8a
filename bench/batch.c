// Many small statements of one form: a program of n products of k x k matrices, as rows and one by
// one, and the same products as calls and as a batch of calls; DG-FEM's face mass for b fields that
// share geometry and matrix; one plan for many products.
//
//   cc -std=c99 -O2 -DEINSUM_CPU bench/batch.c -lm -lpthread -o batch
//   ./batch [threads [elements]]
//
// Prints microseconds, medians.
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200112L
#endif
#ifndef BATCH_LINKED
#define EINSUM_IMPLEMENTATION
#endif
#include "../einsum.h"
#if defined(EINSUM_CPU) && defined(BATCH_LINKED)
#include "../backends/einsum_cpu.h"
#endif
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 101 };

static void need(ein_ctx *ctx, ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_name(st), ein_ctx_message(ctx));
  exit(1);
}

static void *room(size_t bytes) {
  void *p = malloc(bytes);
  if (p == NULL) exit(1);
  return p;
}

static double *fill(size_t n) {
  double *x = (double *)room(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (double)(i * 7 % 31) / 31;
  return x;
}

// Times plan and run of the program in text, whose inputs and outputs have the sizes given.
static void program(ein_ctx *ctx, const char *text, const size_t *in_size, const size_t *out_size,
                    int ungrouped, double *plan_us, double *run_us) {
  double t[MOST];
  ein_program_desc d;
  ein_graph *g;
  ein_plan *p = NULL;
  ein_plan_info info;
  ein_run run;
  ein_options o;
  int n = 0;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  o.ungrouped = ungrouped;
  memset(&run, 0, sizeof run);
  memset(&info, 0, sizeof info);
  d.text = text;
  need(ctx, ein_graph_parse(ctx, &d, &g));
  for (double begin = now(); n < MOST && (n < 3 || now() - begin < 1e6); n++) {
    ein_plan_destroy(p);
    const double at = now();
    need(ctx, ein_plan_graph(ctx, g, 0, NULL, &o, &p));
    t[n] = now() - at;
  }
  *plan_us = median(t, n);
  ein_plan_info_get(p, &info);
  const void **in = (const void **)room(sizeof *in * (size_t)info.nin);
  void **out = (void **)room(sizeof *out * (size_t)info.nout);
  for (int i = 0; i < info.nin; i++) in[i] = fill(in_size[i]);
  for (int i = 0; i < info.nout; i++) out[i] = fill(out_size[i]);
  run.in = in;
  run.out = out;
  run.workspace_bytes = info.workspace_bytes + 64;
  run.workspace = room(run.workspace_bytes);
  n = 0;
  for (double begin = now(); n < MOST && (n < 5 || now() - begin < 1e6); n++) {
    const double at = now();
    need(ctx, ein_plan_execute(p, &run));
    t[n] = now() - at;
  }
  *run_us = median(t, n);
  for (int i = 0; i < info.nin; i++) free((void *)(size_t)in[i]);
  for (int i = 0; i < info.nout; i++) free(out[i]);
  free(run.workspace);
  free((void *)in);
  free(out);
  ein_plan_destroy(p);
  ein_graph_destroy(g);
}

// n calls of ein_einsum, planned once, and the same calls as a batch.
static void calls(ein_ctx *ctx, int n, int64_t k, double *alone_us, double *make_us,
                  double *batch_us) {
  double t[MOST];
  const int64_t shape[2] = {k, k};
  const size_t kk = (size_t)(k * k);
  double *x = fill(3 * kk * (size_t)n);
  ein_ztensor *v = (ein_ztensor *)room(3 * (size_t)n * sizeof *v);
  ein_batch *b;
  int r = 0;
  for (int i = 0; i < 3 * n; i++) v[i] = ein_tensor(EIN_F64, 2, shape, x + kk * (size_t)i);
  for (double begin = now(); r < MOST && (r < 5 || now() - begin < 1e6); r++) {
    const double at = now();
    for (int i = 0; i < n; i++)
      need(ctx, ein_einsum(ctx, "ij,jk->ik", 2, &v[3 * i], &v[3 * i + 2]));
    t[r] = now() - at;
  }
  *alone_us = median(t, r);
  const double made = now();
  need(ctx, ein_batch_create(ctx, &b));
  for (int i = 0; i < n; i++)
    need(ctx, ein_batch_add(b, "ij,jk->ik", 2, &v[3 * i], &v[3 * i + 2]));
  need(ctx, ein_batch_run(b));
  *make_us = now() - made;
  r = 0;
  for (double begin = now(); r < MOST && (r < 5 || now() - begin < 1e6); r++) {
    const double at = now();
    need(ctx, ein_batch_run(b));
    t[r] = now() - at;
  }
  *batch_us = median(t, r);
  ein_batch_destroy(b);
  free(v);
  free(x);
}

// One plan of k x k for n problems in one call, against n executions of it and against one call
// with a batch index; shared: all have one B. Nanoseconds of a product, medians of rounds in turn.
static void many(ein_ctx *ctx, int n, int64_t k, int shared) {
  double t[3][MOST];
  const int64_t shape[3] = {n, k, k}, kk = k * k, strides[3] = {shared ? 0 : kk, k, 1};
  const int64_t in_step[2] = {kk, shared ? 0 : kk};
  double *x = fill(3 * (size_t)kk * (size_t)n);
  ein_plan *p[2];
  int r = 0;
  for (int w = 0; w < 2; w++) {
    ein_ztensor v[3];
    ein_einsum_desc d;
    memset(&d, 0, sizeof d);
    for (int i = 0; i < 3; i++) v[i] = ein_tensor(EIN_F64, 3 - !w, shape + !w, NULL);
    v[1].strides = strides + !w;
    d.expr = w ? "bij,bjk->bik" : "ij,jk->ik";
    d.nin = 2;
    d.in = v;
    d.out = &v[2];
    need(ctx, ein_plan_create(ctx, &d, &p[w]));
  }
  ein_run run;
  memset(&run, 0, sizeof run);
  run.workspace_bytes = 64 * ein_plan_workspace(p[0]) + ein_plan_workspace(p[1]);
  run.workspace = room(run.workspace_bytes);
  for (double begin = now(); r < MOST && (r < 5 || now() - begin < 1e6); r++)
    for (int w = 0; w < 3; w++) {
      const void *in[2] = {x, x + kk * n};
      void *out[1] = {x + 2 * kk * n};
      run.in = in;
      run.out = out;
      const double at = now();
      if (w == 0) need(ctx, ein_plan_execute_many(p[0], &run, n, in_step, &kk));
      if (w == 1) need(ctx, ein_plan_execute(p[1], &run));
      for (int i = 0; i < n && w == 2; i++) {
        in[0] = x + kk * i, in[1] = x + kk * n + in_step[1] * i, out[0] = x + kk * (2 * n + i);
        need(ctx, ein_plan_execute(p[0], &run));
      }
      t[w][r] = (now() - at) * 1e3 / n;
    }
  printf("%5d of %2d^3%s in one call: %8.1f ns each; with a batch index %8.1f; one by one %8.1f\n",
         n, (int)k, shared ? ", one B," : "", median(t[0], r), median(t[1], r), median(t[2], r));
  for (int w = 0; w < 2; w++) ein_plan_destroy(p[w]);
  free(run.workspace);
  free(x);
}

static void products(ein_ctx *ctx, int n, int k) {
  char *text = (char *)room((size_t)n * 160 + 64), *at = text;
  size_t *size = (size_t *)room(sizeof *size * 2 * (size_t)n);
  double plan, run, apart[2], alone, make, batch;
  for (int i = 0; i < n; i++) {
    at += sprintf(at, "input A%d[%d,%d], B%d[%d,%d]\n", i, k, k, i, k, k);
    at += sprintf(at, "C%d[i,k] = sum[j](A%d[i,j] * B%d[j,k])\noutput C%d\n", i, i, i, i);
    size[2 * i] = size[2 * i + 1] = (size_t)(k * k);
  }
  program(ctx, text, size, size, 0, &plan, &run);
  program(ctx, text, size, size, 1, &apart[0], &apart[1]);
  calls(ctx, n, k, &alone, &make, &batch);
  printf("%5d of %2d^3: plan %9.1f, run %8.1f; one by one %9.1f, %8.1f; "
         "calls %8.1f, batch made %9.1f, run %8.1f\n",
         n, k, plan, run, apart[0], apart[1], alone, make, batch);
  free(text);
  free(size);
}

// y_k[e,i] = sum[f,j](F_k[f,e,j] * J[f,e] * M[i,f,j]) for b fields, in one program, and one alone.
static void fields(ein_ctx *ctx, int elements, int i, int j, int b, double *run) {
  char *text = (char *)room((size_t)b * 160 + 256), *at = text;
  size_t in[64], out[64];
  double plan;
  at += sprintf(at, "input J[4,%d], M[%d,4,%d]\n", elements, i, j);
  in[0] = 4 * (size_t)elements;
  in[1] = 4 * (size_t)(i * j);
  for (int k = 0; k < b; k++) {
    at += sprintf(at, "input F%d[4,%d,%d]\n", k, elements, j);
    if (k % 2) at += sprintf(at, "Y%d[e,i] = sum[f,j](M[i,f,j] * J[f,e] * F%d[f,e,j])\n", k, k);
    else at += sprintf(at, "Y%d[q,r] = sum[g,s](J[g,q] * M[r,g,s] * F%d[g,q,s])\n", k, k);
    at += sprintf(at, "output Y%d\n", k);
    in[2 + k] = 4 * (size_t)elements * (size_t)j;
    out[k] = (size_t)elements * (size_t)i;
  }
  program(ctx, text, in, out, 0, &plan, run);
  free(text);
}

int main(int argc, char **argv) {
  static const int order[4][2] = {{4, 3}, {10, 6}, {20, 10}, {35, 15}}, batch[] = {5, 20};
  ein_ctx_desc d;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
#ifdef EINSUM_CPU
  ein_cpu *cpu;
  ein_cpu_desc c;
  memset(&c, 0, sizeof c);
  c.threads = argc > 1 ? atoi(argv[1]) : 1;
  if (ein_cpu_create(&c, NULL, &cpu) != EIN_OK) return 1;
  ein_cpu_use(cpu, &d);
#endif
  need(NULL, ein_ctx_create(&d, &ctx));
  for (int k = 4; k <= 64; k *= 2) many(ctx, 64000 / (int)(k * k), k, 0);
  for (int k = 8; k <= 64; k *= 8) many(ctx, 64000 / (int)(k * k), k, 1);
  for (int n = 10; n <= 10000; n *= 10) products(ctx, n, 8);
  products(ctx, 1000, 4);
  products(ctx, 1000, 16);
  for (int o = 0; o < 4 && argc > 2; o++) {
    double alone, run;
    const int e = atoi(argv[2]);
    fields(ctx, e, order[o][0], order[o][1], 1, &alone);
    printf("face mass, order %d, %d elements: 1 field %.0f", o + 1, e, alone);
    for (int k = 0; k < 2; k++) {
      fields(ctx, e, order[o][0], order[o][1], batch[k], &run);
      printf("; %d fields %.0f (%.3f of %d alone)", batch[k], run, run / (batch[k] * alone),
             batch[k]);
    }
    printf("\n");
  }
  ein_ctx_destroy(ctx);
#ifdef EINSUM_CPU
  ein_cpu_destroy(cpu);
#endif
  return 0;
}
