// Functions over blocks: FFTW along axes of a program that solves a Poisson equation, on one place
// and over eight that share no memory. Each transform is cut along every index but its own.
//   cc -I. examples/18_fftw.c -lfftw3 -lm -pthread && ./a.out      (Debian: libfftw3-dev)
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 64, PLACES = 8 };

// user: a plan for blocks of N, which FFTW may execute on other arrays, on several threads.
static ein_status transform(const int64_t *size, const void *const *in, void *const *out,
                            void *user) {
  fftw_complex work[N];
  if (size[0] != N) return EIN_ERR_SHAPE;
  memcpy(work, in[0], sizeof work);
  fftw_execute_dft((fftw_plan)user, work, (fftw_complex *)out[0]);
  return EIN_OK;
}

static double flops(const int64_t *size, void *user) {
  (void)user;
  return 5 * (double)size[0] * log2((double)size[0]);
}

static const char text[] =
    "input R[n=64,n] : c128\n"
    "A[p,j] = fft[i](R[i,j])\n"
    "B[p,q] = fft[j](A[p,j])\n"
    "C[p,q] = where(p+q==0, 0, B[p,q] / (2*cos(2*pi*p/size(n)) + 2*cos(2*pi*q/size(n)) - 4))\n"
    "D[p,j] = ifft[q](C[p,q])\n"
    "U[i,j] = ifft[p](D[p,j]) \n"
    "V[i,j] = U[i,j] / size(n)^2\n"
    "E = max[i,j](abs(V[i+1|wrap,j] + V[i-1|wrap,j] + V[i,j+1|wrap] + V[i,j-1|wrap]\n"
    "                 - 4*V[i,j] - R[i,j]))\n"
    "output E, V\n";

static int run(ein_ctx *ctx, const ein_graph *graph, const double *r, double *e, double *v,
               int places) {
  const void *in[] = {r};
  void *out[] = {v, e};  // in the order in which the graph has them
  ein_run go = {.in = in, .out = out};
  ein_decompose_desc d = {.p = places, .cost = EIN_COST_BYTES};
  ein_decomposition *how = NULL;
  ein_dist_stats stats = {0};
  ein_fabric fabric;
  ein_dist *dist = NULL;
  int ok = ein_decompose(ctx, graph, &d, &how) == EIN_OK &&
           ein_fabric_copying(ctx, places, &fabric) == EIN_OK;
  if (ok) {
    const ein_dist_desc dd = {.fabric = &fabric, .decomposition = how};
    ok = ein_dist_create(ctx, graph, &dd, &dist) == EIN_OK &&
         ein_dist_execute(dist, &go, &stats) == EIN_OK;
    printf("%d place%s: %d tasks, %d bytes move, residual below 1e-12: %s\n", places,
           places > 1 ? "s" : "", (int)stats.tasks, (int)stats.bytes, *e < 1e-12 ? "yes" : "no");
    ein_dist_destroy(dist);
    ein_fabric_destroy(&fabric);
  }
  ein_decomposition_destroy(how);
  return ok;
}

int main(void) {
  static double r[2 * N * N], v[2][2 * N * N];
  double e[2] = {1, 1};
  fftw_complex *a = fftw_malloc(N * sizeof *a), *b = fftw_malloc(N * sizeof *b);
  const unsigned how = FFTW_ESTIMATE | FFTW_UNALIGNED;
  fftw_plan forth = fftw_plan_dft_1d(N, a, b, FFTW_FORWARD, how);
  fftw_plan back = fftw_plan_dft_1d(N, a, b, FFTW_BACKWARD, how);
  const ein_operator fft = {"fft", "(n)->(n)", EIN_C128, transform, NULL, flops, forth};
  const ein_operator ifft = {"ifft", "(n)->(n)", EIN_C128, transform, NULL, flops, back};
  const ein_program_desc program = {.text = text};
  ein_graph *graph = NULL;
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  ein_ctx_operator(ctx, &fft);
  ein_ctx_operator(ctx, &ifft);
  for (int i = 0; i < N * N; i++) r[2 * i] = (i == 5 * N + 9) - (i == 40 * N + 31);  // two charges
  int ok = ein_graph_parse(ctx, &program, &graph) == EIN_OK &&
           run(ctx, graph, r, &e[0], v[0], 1) && run(ctx, graph, r, &e[1], v[1], PLACES);
  if (ok) printf("same bits: %s\n", memcmp(v[0], v[1], sizeof v[0]) == 0 ? "yes" : "no");
  else printf("%s\n", ein_ctx_message(ctx));
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  fftw_destroy_plan(forth);
  fftw_destroy_plan(back);
  fftw_free(a);
  fftw_free(b);
  return !ok;
}
