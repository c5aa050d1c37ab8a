// Many places: attention is decomposed over four places and run on threads, a task as soon as what
// it reads is there. The result is that of one plan; the bytes are those the model predicts.
//   cc -I. examples/11_places.c -lm -pthread && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_dist.h"
#include <math.h>
#include <stdio.h>

static const char text[] =
    "input Q[s=64,d=16], K[t=64,d], V[t,e=16] : f64\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "P[s,t] = softmax[t](T[s,t])\n"
    "Y[s,e] = sum[t](P[s,t] * V[t,e])\n"
    "output Y : f64\n";

static void print_parts(const ein_decomposition *how) {
  ein_decomp_info info;
  ein_decomposition_info(how, &info);
  for (int i = 0; i < info.nstmt; i++) {
    ein_decomp_stmt s;
    ein_parts p;
    if (ein_decomposition_stmt(how, i, &s) != EIN_OK) return;
    if (ein_decomposition_parts(how, i, &p) != EIN_OK) return;
    printf("%-4s", s.out);
    for (int c = 0; c < p.nindex; c++) printf(" %s/%d", s.index[c], (int)p.cut[c]);
    printf("\n");
  }
  printf("%g bytes move%s\n", info.total, info.proved ? ", the least possible" : "");
}

static int run(ein_ctx *ctx, const ein_graph *graph, double *in[3], double *whole, double *parts) {
  const void *inputs[] = {in[0], in[1], in[2]};
  void *out[] = {whole};
  ein_run r = {.in = inputs, .out = out};
  ein_plan *plan = NULL;
  ein_decomposition *how = NULL;
  ein_dist *dist = NULL;
  ein_fabric threads;
  ein_dist_stats stats = {0};
  ein_decompose_desc d = {.p = 4, .cost = EIN_COST_BYTES, .nkeep = 1};
  const char *keep[] = {"s"};  // else rows would be cut, and nothing at all would move
  d.keep = keep;
  int ok = ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) == EIN_OK &&
           ein_plan_execute(plan, &r) == EIN_OK &&
           ein_decompose(ctx, graph, &d, &how) == EIN_OK &&
           ein_fabric_threads(4, &threads) == EIN_OK;
  if (ok) {
    ein_dist_desc dd = {.fabric = &threads, .decomposition = how};
    print_parts(how);
    out[0] = parts;
    ok = ein_dist_create(ctx, graph, &dd, &dist) == EIN_OK &&
         ein_dist_execute(dist, &r, &stats) == EIN_OK;
    printf("%d tasks, %d bytes from other places\n", (int)stats.tasks, (int)stats.bytes);
    ein_dist_destroy(dist);
    ein_fabric_destroy(&threads);
  }
  ein_plan_destroy(plan);
  ein_decomposition_destroy(how);
  return ok;
}

int main(void) {
  static double q[64 * 16], k[64 * 16], v[64 * 16], whole[64 * 16], parts[64 * 16];
  for (int i = 0; i < 64 * 16; i++) {
    q[i] = i % 7 - 3;
    k[i] = i % 5 - 2;
    v[i] = i % 11;
  }
  ein_cpu *cpu;
  ein_ctx_desc cd = {0};
  ein_cpu_desc four = {.threads = 4};
  ein_ctx *ctx;
  ein_graph *graph = NULL;
  ein_program_desc pd = {.text = text};
  if (ein_cpu_create(&four, NULL, &cpu) != EIN_OK) return 1;
  ein_cpu_use(cpu, &cd);
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) return 1;
  double *in[] = {q, k, v}, far = 0;
  int ok = ein_graph_parse(ctx, &pd, &graph) == EIN_OK && run(ctx, graph, in, whole, parts);
  if (!ok) fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  for (int i = 0; i < 64 * 16; i++)
    far = fmax(far, fabs(whole[i] - parts[i]));
  printf("%s\n", far < 1e-12 ? "the same result" : "another result");
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  return !ok;
}
