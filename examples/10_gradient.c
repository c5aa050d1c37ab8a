// Gradients: a network of two layers learns exclusive or. "grad" adds statements that compute the
// gradients of L, so one execution gives the loss and the weights of the next step.
//   cc examples/10_gradient.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

static const char text[] =
    "input X[b,2], t[b], W[h,2], u[h], v[h], w[] : f64\n"
    "param rate = 1\n"
    "H[b,h] = tanh(sum[i](X[b,i]*W[h,i]) + u[h])\n"
    "p[b]   = sigmoid(sum[h](H[b,h]*v[h]) + w)\n"
    "L      = mean[b](where(t[b] > 0.5, -log(p[b]), -log(1 - p[b])))\n"
    "grad L wrt W, u, v, w as dW, du, dv, dw\n"
    "nW[h,i] = W[h,i] - rate*dW[h,i]\n"
    "nu[h]   = u[h] - rate*du[h]\n"
    "nv[h]   = v[h] - rate*dv[h]\n"
    "nw      = w - rate*dw\n"
    "output p, L, nW, nu, nv, nw\n";

int main(void) {
  double x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, t[4] = {0, 1, 1, 0}, p[4], loss;
  // Weights twice: a step reads one set and writes the other.
  double W[2][3][2] = {{{0.5, -0.4}, {0.9, 0.8}, {-0.3, 0.7}}}, u[2][3] = {{0.1, -0.2, 0.3}};
  double v[2][3] = {{0.6, -0.5, 0.4}}, w[2] = {0};
  int64_t four_two[] = {4, 2}, four[] = {4}, three_two[] = {3, 2}, three[] = {3};
  ein_ztensor view[6] = {ein_tensor(EIN_F64, 2, four_two, NULL),
                         ein_tensor(EIN_F64, 1, four, NULL),
                         ein_tensor(EIN_F64, 2, three_two, NULL),
                         ein_tensor(EIN_F64, 1, three, NULL),
                         ein_tensor(EIN_F64, 1, three, NULL),
                         {.dtype = EIN_F64, .rank = 0}};
  ein_binding bind[] = {{"X", &view[0]}, {"t", &view[1]}, {"W", &view[2]},
                        {"u", &view[3]}, {"v", &view[4]}, {"w", &view[5]}};
  ein_program_desc desc = {.text = text, .nbind = 6, .bind = bind};
  ein_ctx *ctx;
  ein_graph *graph = NULL;
  ein_plan *plan = NULL;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (ein_graph_parse(ctx, &desc, &graph) != EIN_OK ||
      ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) != EIN_OK) {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
    return 1;
  }
  for (int step = 0; step <= 1000; step++) {
    int from = step % 2, to = 1 - from;
    const void *in[] = {x, t, W[from], u[from], v[from], &w[from]};
    void *out[] = {p, &loss, W[to], u[to], v[to], &w[to]};
    ein_run run = {.in = in, .out = out};
    if (ein_plan_execute(plan, &run) != EIN_OK) return 1;
    if (step % 250 == 0) printf("step %4d: loss %.3f\n", step, loss);
  }
  for (int b = 0; b < 4; b++) printf("%g xor %g: %.2f\n", x[b][0], x[b][1], p[b]);
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);

  // What has no gradient is an error that names the statement.
  desc.text = "input x[3]\ni = argmax[k](x[k])\nL = 2.5*i\ngrad L wrt x as dx\n";
  desc.nbind = 0;
  ein_graph_parse(ctx, &desc, &graph);
  printf("%s\n", ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
  return 0;
}
