// A graph from C calls, without text: y[i] = sum over r of x[i+r] * w[r], then the largest of
// relu(y) scaled by a param. ein_graph_parse reads the same from the text of a program.
//   cc examples/08_graph.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

int main(void) {
  double x[6] = {1, 2, 3, 4, 5, 6}, w[3] = {1, 0, -1}, y[4], top;
  int64_t six[] = {6}, three[] = {3}, extent[] = {4, 3};
  int64_t i_plus_r[] = {1, 1}, r[] = {0, 1}, i[] = {1}, zero[] = {0};
  ein_scalar two = {.set = 1, .re = 2};
  int ids[2], result, largest;
  ein_ctx *ctx;
  ein_graph *graph;
  ein_plan *plan = NULL;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK || ein_graph_create(ctx, &graph) != EIN_OK) return 1;

  // The first mistake sticks, so only ein_graph_finish is checked.
  ein_graph_add_tensor(graph, "x", EIN_ROLE_INPUT, EIN_F64, 1, six, &ids[0]);
  ein_graph_add_tensor(graph, "w", EIN_ROLE_INPUT, EIN_F64, 1, three, &ids[1]);
  ein_graph_add_tensor(graph, "y", EIN_ROLE_OUTPUT, EIN_NONE, 1, NULL, &result);
  ein_graph_add_tensor(graph, "top", EIN_ROLE_OUTPUT, EIN_NONE, 0, NULL, &largest);
  ein_graph_add_param(graph, "a", EIN_F64, &two, NULL);

  // Rows are axes of the operand, columns the indices i and r.
  ein_zmap proj[] = {{.rows = 1, .cols = 2, .coef = i_plus_r, .offset = zero},
                     {.rows = 1, .cols = 2, .coef = r, .offset = zero}};
  ein_stmt_desc sum = {.out = result, .nindex = 2, .nfree = 1, .extent = extent, .noperand = 2,
                       .operand = ids, .proj = proj};
  ein_graph_add_statement(graph, &sum);
  ein_zmap along = {.rows = 1, .cols = 1, .coef = i, .offset = zero};
  ein_stmt_desc max = {.out = largest, .nindex = 1, .extent = extent, .noperand = 1,
                       .operand = &result, .proj = &along, .map = "a*relu(-x0)", .fold = "max"};
  ein_graph_add_statement(graph, &max);
  if (ein_graph_finish(graph) != EIN_OK ||
      ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan) != EIN_OK) {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
    return 1;
  }
  const void *in[] = {x, w};
  void *out[] = {y, &top};
  ein_run run = {.in = in, .out = out};
  if (ein_plan_execute(plan, &run) != EIN_OK) return 1;
  printf("y = %g %g %g %g, top = %g\n", y[0], y[1], y[2], y[3], top);
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);

  // An operand that would be read outside is a mistake, named with its statement.
  extent[0] = 5;
  if (ein_graph_create(ctx, &graph) != EIN_OK) return 1;
  ein_graph_add_tensor(graph, "x", EIN_ROLE_INPUT, EIN_F64, 1, six, &ids[0]);
  ein_graph_add_tensor(graph, "y", EIN_ROLE_OUTPUT, EIN_NONE, 1, NULL, &result);
  sum.out = result;
  sum.noperand = 1;
  ein_graph_add_statement(graph, &sum);
  printf("%s\n", ein_status_name(ein_graph_finish(graph)));
  printf("%s\n", ein_ctx_message(ctx));
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  return 0;
}
