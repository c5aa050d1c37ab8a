// Ranks of MPI: a matrix product over the ranks that mpirun started. No rank holds a whole matrix:
// each fills its blocks of A and B by their coordinates and gets its block of C.
//   mpicc -I. examples/13_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <stdio.h>
#include <stdlib.h>

static const char text[] =
    "input A[i=60,k=90], B[k,j=40] : f64\n"
    "C[i,j] = A[i,k] * B[k,j]\n";

// What the matrices are, and the product by its definition.
static double element(int tensor, int64_t row, int64_t col) {
  double sum = 0;
  if (tensor == 0) return (double)((row + 2 * col) % 7 - 3);
  if (tensor == 1) return (double)((3 * row + col) % 5 - 2);
  for (int64_t k = 0; k < 90; k++) sum += element(0, row, k) * element(1, k, col);
  return sum;
}

// The block of a tensor at this rank, in memory of its own.
typedef struct block {
  int64_t origin[2], extent[2], elements;
  double *data;
} block;

static ein_status block_make(const ein_dist *plan, int tensor, int place, block *b) {
  ein_status st = ein_dist_block(plan, tensor, place, b->origin, b->extent, &b->elements);
  if (st != EIN_OK) return st;
  b->data = malloc(((size_t)b->elements + 1) * sizeof *b->data);
  if (b->data == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < b->elements && tensor < 2; i++)
    b->data[i] = element(tensor, b->origin[0] + i / b->extent[1], b->origin[1] + i % b->extent[1]);
  return EIN_OK;
}

static ein_status multiply(ein_ctx *ctx, const ein_graph *graph, ein_fabric *fabric, int *wrong) {
  char rows[2][32];
  const char *pin[] = {rows[0], rows[1]};
  ein_decompose_desc how = {.cost = EIN_COST_BYTES, .npin = 2, .pin = pin};
  ein_decomposition *cut = NULL;
  ein_dist *plan = NULL;
  ein_dist_stats stats = {0};
  block part[3] = {{.data = NULL}};
  snprintf(rows[0], sizeof rows[0], "A[0=%d]", fabric->places);  // places hold rows of A and B
  snprintf(rows[1], sizeof rows[1], "B[0=%d]", fabric->places);
  how.p = fabric->places;
  // All ranks make the same calls, so that none waits for one that gave up.
  ein_status st = ein_mpi_agree(fabric, ein_decompose(ctx, graph, &how, &cut));
  if (st == EIN_OK) {
    const ein_dist_desc desc = {.fabric = fabric, .decomposition = cut, .blocks = 1};
    st = ein_dist_create(ctx, graph, &desc, &plan);
  }
  if (st == EIN_OK) {
    for (int t = 0; t < 3 && st == EIN_OK; t++) st = block_make(plan, t, fabric->first, &part[t]);
    st = ein_mpi_agree(fabric, st);
  }
  if (st == EIN_OK) {
    const void *in[] = {part[0].data, part[1].data};
    void *out[] = {part[2].data};
    const ein_run run = {.in = in, .out = out};
    st = ein_dist_execute(plan, &run, &stats);
  }
  const block *c = &part[2];
  for (int64_t i = 0; i < c->elements && st == EIN_OK; i++)
    *wrong += c->data[i] != element(2, c->origin[0] + i / c->extent[1],
                                    c->origin[1] + i % c->extent[1]);
  printf("place %d: C[%d.., %d..] of %d x %d, %d bytes received\n", fabric->first,
         (int)c->origin[0], (int)c->origin[1], (int)c->extent[0], (int)c->extent[1],
         (int)stats.bytes);
  for (int t = 0; t < 3; t++) free(part[t].data);
  ein_dist_destroy(plan);
  ein_decomposition_destroy(cut);
  return st;
}

int main(int argc, char **argv) {
  ein_ctx *ctx = NULL;
  ein_graph *graph = NULL;
  ein_fabric fabric;
  const ein_program_desc program = {.text = text};
  int rank, level, wrong = 0, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ein_status st = ein_ctx_create(NULL, &ctx);
  if (st == EIN_OK) st = ein_graph_parse(ctx, &program, &graph);
  if (st != EIN_OK) MPI_Abort(MPI_COMM_WORLD, 1);               // a rank alone cannot go on
  st = ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric);         // a place at every rank
  if (st == EIN_OK) st = multiply(ctx, graph, &fabric, &wrong);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && st == EIN_OK && all == 0) puts("all blocks are right");
  if (st != EIN_OK && rank == 0) fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  ein_fabric_destroy(&fabric);
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  MPI_Finalize();
  return st == EIN_OK && all == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
