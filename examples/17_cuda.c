// A GPU where there is one: einsum_cuda.h looks for CUDA at run time, and the program runs without,
// too. Only the ctx changes. What is used is said on stderr.
//   cc -O2 examples/17_cuda.c -lm -pthread -ldl && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include <stdio.h>
#include <string.h>

enum { N = 200 };

int main(void) {
  static float a[N][N], b[N][N], y[N][N];
  const int64_t square[] = {N, N};
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) a[i][k] = (float)((i + k) % 7), b[i][k] = (float)((i * k) % 5);
  ein_ztensor in[] = {ein_tensor(EIN_F32, 2, square, a), ein_tensor(EIN_F32, 2, square, b)};
  const ein_ztensor out = ein_tensor(EIN_F32, 2, square, y);

  ein_cuda_desc want;
  ein_ctx_desc desc;
  ein_cuda *cuda;
  ein_ctx *ctx;
  char facts[1024];
  memset(&want, 0, sizeof want);
  memset(&desc, 0, sizeof desc);
  want.only = 1;  // use it even for a product as small as this
  if (ein_cuda_create(&want, NULL, &cuda) != EIN_OK) return 1;
  if (ein_cuda_use(cuda, &desc) != EIN_OK) desc.bare = 1;
  ein_cuda_info(cuda, facts, sizeof facts);
  fprintf(stderr, "%s\n", facts);
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) return 1;

  // Squared distances of rows of a and columns of b: one pass, no difference is stored.
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = "ik,kj->ij";
  d.map = "(x0-x1)^2";
  d.nin = 2;
  d.in = in;
  d.out = &out;
  const ein_status st = ein_einsum_ex(ctx, &d);
  if (st != EIN_OK) fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  printf("%g %g %g\n", (double)y[0][0], (double)y[1][2], (double)y[N - 1][N - 1]);

  const ein_cuda_counts n = ein_cuda_counts_get(cuda);
  fprintf(stderr, "%lld kernels ran on it\n", (long long)(n.launches + n.gemms));
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  return st != EIN_OK;
}
