// Ranks of MPI: a matrix product is decomposed over the ranks that mpirun started, and rank 0
// compares the result with that of one plan. What moves is what the decomposition announced.
//   mpicc -I. examples/13_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 60, K = 90, N = 40 };

static const char text[] =
    "input A[i=60,k=90], B[k,j=40] : f64\n"
    "C[i,j] = A[i,k] * B[k,j]\n";

// Over the ranks, with the result whole at the first.
static ein_status multiply(ein_ctx *ctx, const ein_graph *graph, const ein_run *run, double *c) {
  const int64_t shape[] = {M, N};
  const ein_ztensor out = ein_tensor(EIN_F64, 2, shape, c);
  const char *keep[] = {"i", "j"};  // else rows would be cut, and nothing at all would move
  ein_decompose_desc how = {.cost = EIN_COST_BYTES, .nkeep = 2, .keep = keep};
  ein_decomposition *cut = NULL;
  ein_dist *plan = NULL;
  ein_dist_stats stats = {0};
  ein_fabric fabric;
  int rank;
  ein_status st = ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric);  // a place at every rank
  if (st != EIN_OK) return st;
  how.p = fabric.places;
  // From here on all ranks make the same calls, so that none waits for one that gave up.
  st = ein_mpi_agree(&fabric, ein_decompose(ctx, graph, &how, &cut));
  if (st == EIN_OK) {
    const ein_dist_desc desc = {.fabric = &fabric, .decomposition = cut};
    st = ein_dist_create(ctx, graph, &desc, &plan);
  }
  if (st == EIN_OK) st = ein_dist_execute(plan, run, &stats);
  if (st == EIN_OK) st = ein_mpi_gather(&fabric, &out, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("rank %d: %d task(s), %d bytes received\n", rank, (int)stats.tasks, (int)stats.bytes);
  ein_dist_destroy(plan);
  ein_decomposition_destroy(cut);
  ein_fabric_destroy(&fabric);
  return st;
}

int main(int argc, char **argv) {
  static double a[M * K], b[K * N], whole[M * N], c[M * N];  // c: zeros, blocks are put there
  const void *in[] = {a, b};
  void *out[] = {whole};
  ein_run run = {.in = in, .out = out};
  ein_ctx *ctx = NULL;
  ein_graph *graph = NULL;
  ein_plan *one = NULL;
  const ein_program_desc program = {.text = text};
  int rank, level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < M * K; i++) a[i] = i % 7 - 3;
  for (int i = 0; i < K * N; i++) b[i] = i % 5 - 2;
  ein_status st = ein_ctx_create(NULL, &ctx);
  if (st == EIN_OK) st = ein_graph_parse(ctx, &program, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, &one);
  if (st == EIN_OK) st = ein_plan_execute(one, &run);
  if (st != EIN_OK) MPI_Abort(MPI_COMM_WORLD, 1);  // a rank alone cannot go on
  out[0] = c;
  st = multiply(ctx, graph, &run, c);
  if (rank == 0 && st == EIN_OK && memcmp(c, whole, sizeof c) == 0) puts("the same result");
  ein_plan_destroy(one);
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  MPI_Finalize();
  return st == EIN_OK && (rank > 0 || memcmp(c, whole, sizeof c) == 0) ? 0 : EXIT_FAILURE;
}
