// Plans: everything that does not depend on the data is decided once, here the order in which four
// matrices are multiplied. Executing a plan only computes; a plan is immutable, so many threads
// may execute it at the same time.
//   cc examples/03_plan.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

enum { N = 40, M = 3 };

int main(void) {
  static double a[N][M], b[M][N], c[N][M], d[M], y[N];
  int64_t tall[] = {N, M}, wide[] = {M, N}, small[] = {M}, longs[] = {N};
  ein_ztensor in[] = {ein_tensor(EIN_F64, 2, tall, NULL),
                      ein_tensor(EIN_F64, 2, wide, NULL),
                      ein_tensor(EIN_F64, 2, tall, NULL),
                      ein_tensor(EIN_F64, 1, small, NULL)};
  ein_ztensor out = ein_tensor(EIN_F64, 1, longs, NULL);
  ein_einsum_desc desc = {.expr = "ij,jk,kl,l->i", .nin = 4, .in = in, .out = &out};
  ein_ctx *ctx;
  ein_plan *plan;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (ein_plan_create(ctx, &desc, &plan) != EIN_OK) {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
    return 1;
  }
  ein_plan_info info;
  if (ein_plan_info_get(plan, &info) != EIN_OK) return 1;
  printf("in one pass %.0f operations, as planned %.0f\n", info.naive_flops, info.flops);
  printf("largest intermediate %.0f elements\n", info.largest);

  // Execute it for three sets of data.
  for (int step = 1; step <= 3; step++) {
    for (int i = 0; i < N; i++) {
      for (int j = 0; j < M; j++) {
        a[i][j] = i == j ? step : 0;
        b[j][i] = i == j;
        c[i][j] = i == j;
        d[j] = j + 1;
      }
    }
    const void *inputs[] = {a, b, c, d};
    void *outputs[] = {y};
    ein_run run = {.in = inputs, .out = outputs};
    if (ein_plan_execute(plan, &run) != EIN_OK) return 1;
    printf("y = %g %g %g, then %g\n", y[0], y[1], y[2], y[3]);
  }
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
  return 0;
}
