// Out of memory in programs: the n-th allocation of parsing, listing inputs, planning and executing
// fails, for n = 0, 1, 2, .. until all succeed. Every failure is a status, nothing stays behind.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "util.h"

#include <stdlib.h>

static const char *const programs[] = {
    "input Q[s=3,d=2], K[t=4,d], V[t,e=2] : f32\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "Y[s,e] = softmax[t](T[s,t]) * V[t,e]\n",
    "input X[n=6] : f64\nparam a = 2 : f64\nY[i=n] = a * X[i-1 | wrap] + X[i+2 | 0]\nM = "
    "argmax[i](Y[i])\n"
    "output Y, M",
    "input A[i=3,j=4], B[j,k=5], C[k,l=2] : f64\nY[i,l] = sum[j,k](A[i,j]*B[j,k]*C[k,l])",
    "input b[n=2], x[m=3] : f64\nC[i] = b[i]\nC[i+2] = x[i]\nD[i] = C[4-i]",
};

static void count_input(const char *name, ein_dtype dtype, int rank, void *user) {
  (void)name;
  (void)dtype;
  (void)rank;
  ++*(int *)user;
}

// One whole use of a program with the allocator's n-th call failing; its status.
static ein_status use(const char *text, counter *c) {
  static double data[64], result[8][64];
  ein_ctx_desc d;
  ein_ctx *ctx;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  d.allocator.alloc_fn = count_alloc;
  d.allocator.free_fn = count_free;
  d.allocator.user = c;
  ein_program_desc pd;
  memset(&pd, 0, sizeof pd);
  pd.text = text;
  ein_status st = ein_ctx_create(&d, &ctx);
  int inputs = 0;
  if (st == EIN_OK) st = ein_program_inputs(ctx, &pd, count_input, &inputs);
  if (st == EIN_OK) st = ein_graph_parse(ctx, &pd, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan);
  if (st == EIN_OK) {
    const void *in[8];
    void *out[8];
    for (int i = 0; i < 8; i++) {
      in[i] = data;
      out[i] = result[i];
    }
    ein_run run;
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    st = ein_plan_execute(plan, &run);
  }
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  return st;
}

int main(void) {
  long total = 0;
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    for (long n = 0;; n++) {
      counter c = {0, n, 0};
      ein_status st = use(programs[k], &c);
      if (c.live != 0 || (st != EIN_OK && st != EIN_ERR_NO_MEMORY)) {
        printf("FAIL program %d, allocation %ld: %s, %ld blocks left\n", (int)k, n,
               ein_status_name(st), c.live);
        return 1;
      }
      total++;
      if (st == EIN_OK) break;
    }
  }
  printf("ok %ld runs\n", total);
  return 0;
}
