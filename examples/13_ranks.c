// Ranks of MPI: a matrix product over the ranks that mpirun started, of distributed tensors. No
// rank has a whole matrix: A lies in cyclic blocks of 8 x 8, as ScaLAPACK has it, B and C in rows.
//   mpicc -I. examples/13_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <stdio.h>

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

typedef struct matrix {
  ein_grid *grid;
  ein_distribution *how;
  ein_dtensor *t;
  int number, wrong;
} matrix;

static ein_status matrix_make(ein_ctx *ctx, const ein_fabric *fabric, const char *machine,
                              const char *how, int64_t rows, int64_t cols, matrix *m) {
  const int64_t shape[2] = {rows, cols};
  ein_status st = ein_grid_create(ctx, machine, fabric->places, &m->grid);
  if (st == EIN_OK) st = ein_distribution_create(ctx, how, 2, m->grid, &m->how);
  st = ein_mpi_agree(fabric, st);  // all ranks make the same calls, so that none waits in vain
  if (st != EIN_OK) return st;
  return ein_dtensor_create(ctx, fabric, m->how, EIN_F64, shape, 0, NULL, &m->t);
}

static void matrix_free(matrix *m) {
  ein_dtensor_destroy(m->t);
  ein_distribution_destroy(m->how);
  ein_grid_destroy(m->grid);
}

static ein_status fill(void *user, const int64_t *coord, void *at) {
  *(double *)at = element(((matrix *)user)->number, coord[0], coord[1]);
  return EIN_OK;
}

static ein_status look(void *user, const int64_t *coord, void *at) {
  ((matrix *)user)->wrong += *(double *)at != element(2, coord[0], coord[1]);
  return EIN_OK;
}

static ein_status multiply(ein_ctx *ctx, const ein_graph *graph, const ein_fabric *f, matrix *m) {
  ein_dtensor_plan *plan = NULL;
  ein_dtensor_plan_info made;
  ein_dist_info info;
  ein_status st = matrix_make(ctx, f, "r=floor(sqrt(p)), c=floor(p/r)", "ij->i:8j:8", 60, 90, m);
  if (st == EIN_OK) st = matrix_make(ctx, f, "r=p", "ij->i", 90, 40, &m[1]);
  if (st == EIN_OK) st = matrix_make(ctx, f, "r=p", "ij->i", 60, 40, &m[2]);
  for (int k = 0; k < 2 && st == EIN_OK; k++) {
    m[k].number = k;
    ein_dtensor_each(m[k].t, fill, &m[k]);
  }
  const ein_dtensor *in[] = {m[0].t, m[1].t};
  if (st == EIN_OK) st = ein_dtensor_plan_create(ctx, graph, f, NULL, in, &m[2].t, &plan);
  if (st == EIN_OK) st = ein_dtensor_plan_run(plan, in, &m[2].t, NULL, NULL);
  if (st == EIN_OK) st = ein_dtensor_each(m[2].t, look, &m[2]);
  if (st == EIN_OK && f->first == 0 && ein_dtensor_plan_get(plan, &made) == EIN_OK &&
      ein_dist_info_get(made.dist, &info) == EIN_OK)
    printf("%d bytes move for A, rank 0 reads %d then\n", (int)made.moved, (int)info.bytes);
  ein_dtensor_plan_destroy(plan);
  return st;
}

int main(int argc, char **argv) {
  ein_ctx *ctx = NULL;
  ein_graph *graph = NULL;
  ein_fabric fabric;
  matrix m[3] = {{.t = NULL}};
  const ein_program_desc program = {.text = text};
  int level, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  ein_status st = ein_ctx_create(NULL, &ctx);
  if (st == EIN_OK) st = ein_graph_parse(ctx, &program, &graph);
  if (st != EIN_OK) MPI_Abort(MPI_COMM_WORLD, 1);               // a rank alone cannot go on
  st = ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric);         // a place at every rank
  if (st == EIN_OK) st = multiply(ctx, graph, &fabric, m);
  MPI_Allreduce(&m[2].wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (fabric.first == 0)
    puts(st != EIN_OK ? ein_ctx_message(ctx) : all == 0 ? "all blocks are right" : "wrong");
  for (int k = 0; k < 3; k++) matrix_free(&m[k]);
  ein_fabric_destroy(&fabric);
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  MPI_Finalize();
  return st != EIN_OK || all != 0;
}
