// Hello: one call. A tensor is a view of your memory (dtype, rank, shape, data); an expression in
// NumPy's notation says what to compute; the result goes into memory of yours. Nothing is
// allocated that you must free.
//   cc examples/01_hello.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

int main(void) {
  float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {1, 1}}, c[2][2];
  int64_t sa[] = {2, 3}, sb[] = {3, 2}, sc[] = {2, 2};
  ein_ztensor in[] = {ein_tensor(EIN_F32, 2, sa, a), ein_tensor(EIN_F32, 2, sb, b)};
  ein_ztensor out = ein_tensor(EIN_F32, 2, sc, c);

  ein_status st = ein_einsum(NULL, "ij,jk->ik", 2, in, &out);
  if (st != EIN_OK) {
    fprintf(stderr, "%s\n", ein_status_text(st));
    return 1;
  }
  printf("%g %g\n%g %g\n", c[0][0], c[0][1], c[1][0], c[1][1]);

  // With a ctx, plans are kept for the next call of the same shapes, and mistakes are explained.
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  st = ein_einsum(ctx, "ij,ik->jk", 2, in, &out);
  printf("%s\n%s\n", ein_status_name(st), ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
  return 0;
}
