// Programs: several statements in a small language, here softmax attention of one head. Parsing
// gives a graph, planning decides how it runs, executing computes the named outputs.
//   cc examples/04_program.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

static const char text[] =
    "input Q[s,d], K[t,d], V[t,e] : f32\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "P[s,t] = softmax[t](T[s,t])\n"
    "Y[s,e] = sum[t](P[s,t] * V[t,e])\n"
    "output P, Y : f32\n";

int main(void) {
  float q[2][4] = {{1, 0, 0, 0}, {0, 2, 0, 0}}, v[3][2] = {{1, 10}, {2, 20}, {3, 30}};
  float k[3][4] = {{4, 0, 0, 0}, {0, 4, 0, 0}, {0, 0, 4, 0}}, p[2][3], y[2][2];
  int64_t sq[] = {2, 4}, sk[] = {3, 4}, sv[] = {3, 2};
  ein_ztensor tq = ein_tensor(EIN_F32, 2, sq, NULL);
  ein_ztensor tk = ein_tensor(EIN_F32, 2, sk, NULL);
  ein_ztensor tv = ein_tensor(EIN_F32, 2, sv, NULL);
  ein_binding bind[] = {{"Q", &tq}, {"K", &tk}, {"V", &tv}};
  ein_program_desc desc = {.text = text, .nbind = 3, .bind = bind};
  ein_ctx *ctx;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (ein_graph_parse(ctx, &desc, &graph) != EIN_OK ||
      ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) != EIN_OK) {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
    return 1;
  }
  ein_tensor_info info;
  for (int i = 0; ein_plan_output(plan, i, &info); i++) {
    printf("output %d is %s, %s, %d x %d\n", i, info.name, ein_dtype_name(info.dtype),
           (int)info.shape[0], (int)info.shape[1]);
  }
  const void *inputs[] = {q, k, v};
  void *outputs[] = {p, y};
  ein_run run = {.in = inputs, .out = outputs};
  if (ein_plan_execute(plan, &run) != EIN_OK) return 1;
  for (int s = 0; s < 2; s++) {
    printf("weights %.4f %.4f %.4f   value %.4f %.4f\n", p[s][0], p[s][1], p[s][2], y[s][0],
           y[s][1]);
  }
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);

  // A mistake is shown where it is, with a hint.
  desc.text = "input Q[s,d], K[t,d], V[t,e] : f32\nY[s,e] = Q[s,e] / sqrt(d)\n";
  printf("%s\n", ein_status_name(ein_graph_parse(ctx, &desc, &graph)));
  printf("%s\n", ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
  return 0;
}
