// All cores and the processor's vector units: einsum_cpu.h brings a pool of threads and kernels for
// the instruction set it finds at run time. Only the ctx changes; every call stays as it was.
//   cc -O2 examples/09_cpu.c -lm -pthread && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include <stdio.h>
#include <stdlib.h>

enum { N = 300 };

static int compute(const ein_ctx_desc *desc, const ein_ztensor *in, const ein_ztensor *out) {
  ein_ctx *ctx;
  if (ein_ctx_create(desc, &ctx) != EIN_OK) return 0;
  ein_status st = ein_einsum(ctx, "ik,jk,k->ij", 3, in, out);
  if (st != EIN_OK) fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
  return st == EIN_OK;
}

int main(void) {
  static double a[N][N], b[N][N], w[N], fast[N][N], plain[N][N];
  int64_t square[] = {N, N}, line[] = {N};
  for (int i = 0; i < N; i++) {
    w[i] = 1 + i % 3;
    for (int k = 0; k < N; k++) a[i][k] = (i + k) % 7, b[i][k] = (i * k) % 5;
  }
  ein_ztensor in[] = {ein_tensor(EIN_F64, 2, square, a),
                      ein_tensor(EIN_F64, 2, square, b),
                      ein_tensor(EIN_F64, 1, line, w)};
  ein_ztensor out = ein_tensor(EIN_F64, 2, square, plain);
  if (!compute(NULL, in, &out)) return 1;  // the portable kernels, on this thread

  ein_cpu *cpu;
  ein_ctx_desc desc = {.nkernels = 0};
  if (ein_cpu_create(NULL, NULL, &cpu) != EIN_OK) return 1;  // one thread per core
  if (ein_cpu_use(cpu, &desc) != EIN_OK) return 1;
  out.data = fast;
  if (!compute(&desc, in, &out)) return 1;
  ein_cpu_destroy(cpu);  // after every ctx and plan that uses it

  int differ = 0;  // whole numbers: no order of additions changes them
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++) differ += fast[i][j] != plain[i][j];
  }
  printf("%g %g, %d of %d elements differ\n", fast[0][1], fast[N - 1][N - 1], differ, N * N);
  return 0;
}
