// CP decomposition over ranks of MPI by alternating least squares, until it has converged: of a
// tensor of rank 4 every rank holds slices, of the factors all. MTTKRP is one statement, the Gram
// matrices come with it, and each rank solves the small normal equations for itself.
//   mpicc -I. examples/14_cp_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <stdio.h>

// Mode by mode the right sides and the matrix of the normal equations; the error; the tensor.
static const char *const texts[5] = {
    "input X[i=30,j=24,k=20], B[j,r=4], C[k,r] : f64\nM[i,r] = X[i,j,k]*B[j,r]*C[k,r]\n"
    "G[r,s] = sum[j](B[j,r]*B[j,s]) * sum[k](C[k,r]*C[k,s])\noutput M, G\n",
    "input X[i=30,j=24,k=20], C[k,r=4], A[i,r] : f64\nM[j,r] = X[i,j,k]*A[i,r]*C[k,r]\n"
    "G[r,s] = sum[i](A[i,r]*A[i,s]) * sum[k](C[k,r]*C[k,s])\noutput M, G\n",
    "input X[i=30,j=24,k=20], A[i,r=4], B[j,r] : f64\nM[k,r] = X[i,j,k]*A[i,r]*B[j,r]\n"
    "G[r,s] = sum[i](A[i,r]*A[i,s]) * sum[j](B[j,r]*B[j,s])\noutput M, G\n",
    "input X[i=30,j=24,k=20], B[j,r=4], C[k,r], A[i,r] : f64\nY[i,j,k] = A[i,r]*B[j,r]*C[k,r]\n"
    "E = sqrt(sum[i,j,k]((X[i,j,k] - Y[i,j,k])^2) / sum[i,j,k](X[i,j,k]^2))\noutput E\n",
    "input A[i=30,r=4], B[j=24,r], C[k=20,r] : f64\nX[i,j,k] = A[i,r]*B[j,r]*C[k,r]\n"};
enum { R = 4 };
static ein_ctx *ctx;
static ein_fabric fabric;
static ein_dtensor_plan *plan[5];

static void need(ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_text(st), ein_ctx_message(ctx));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void run(int n, const ein_dtensor *const *in, ein_dtensor *const *out) {
  const ein_program_desc program = {.text = texts[n]};
  ein_graph *graph;
  if (plan[n] == NULL) {  // the first time
    need(ein_graph_parse(ctx, &program, &graph));
    need(ein_dtensor_plan_create(ctx, graph, &fabric, NULL, in, out, &plan[n]));
  }
  need(ein_dtensor_plan_run(plan[n], in, out, NULL, NULL));
}

static ein_dtensor *tensor(const char *how, int rank, int64_t n, int64_t m, int64_t l) {
  const int64_t shape[3] = {n, m, l};
  ein_grid *grid;
  ein_distribution *d;
  ein_dtensor *t;
  need(ein_grid_create(ctx, "x=p", fabric.places, &grid));
  need(ein_distribution_create(ctx, how, rank, grid, &d));
  need(ein_dtensor_create(ctx, &fabric, d, EIN_F64, shape, 0, NULL, &t));
  return t;
}

static double *part(const ein_dtensor *t) {  // what this rank has
  ein_dtensor_part p;
  return ein_dtensor_part_get(t, 0, &p) ? p.view.data : NULL;
}

// f = m * inverse of g, which is positive definite, row by row; Gauss and Jordan.
static void solve(double (*g)[R], const double *m, double *f, int64_t rows) {
  for (int k = 0; k < R; k++) {
    const double pivot = g[k][k];
    for (int j = 0; j < R; j++) g[k][j] = (j == k ? 1 : g[k][j]) / pivot;
    for (int i = 0; i < R; i++) {
      const double q = g[i][k];
      for (int j = 0; j < R && i != k; j++) g[i][j] = (j == k ? 0 : g[i][j]) - q * g[k][j];
    }
  }
  for (int64_t i = 0; i < rows * R; i++)
    for (int s = 0; s < R; s++) f[i] = (s > 0 ? f[i] : 0) + m[i / R * R + s] * g[s][i % R];
}

int main(int argc, char **argv) {
  const int64_t extent[3] = {30, 24, 20};
  int level, step = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  need(ein_ctx_create(NULL, &ctx));
  need(ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric));
  ein_dtensor *f[3], *m[3], *x = tensor("ijk->i", 3, 30, 24, 20), *g = tensor("rs->*", 2, R, R, 0);
  ein_dtensor *error = tensor("->*", 0, 0, 0, 0);
  for (int n = 0; n < 3; n++) {
    f[n] = tensor("ir->*", 2, extent[n], R, 0), m[n] = tensor("ir->*", 2, extent[n], R, 0);
    need(ein_dtensor_random(f[n], 7 + (uint64_t)n));
  }
  run(4, (const ein_dtensor *const *)f, &x);  // a tensor whose factors are forgotten then
  for (int n = 0; n < 3; n++) need(ein_dtensor_random(f[n], 1 + (uint64_t)n));
  do {
    for (int n = 0; n < 4; n++) {
      const ein_dtensor *in[] = {x, f[(n + 1) % 3], f[(n + 2) % 3], f[n % 3]};
      ein_dtensor *out[] = {n < 3 ? m[n] : error, g};
      run(n, in, out);
      if (n < 3) solve((double (*)[R])part(g), part(m[n]), part(f[n]), extent[n]);
    }
  } while (++step < 500 && *part(error) > 1e-8);
  if (fabric.first == 0)
    printf("%d steps, error %s 1e-8\n", step, *part(error) > 1e-8 ? "above" : "below");
  ein_fabric_destroy(&fabric);
  MPI_Finalize();
  return step == 500;
}
