// SPDX-License-Identifier: MIT
//
// Products of matrices over ranks: ScaLAPACK's pdgemm against distributed tensors, in turn, one
// thread a rank. bench/ranks/matmul.sh compiles and runs it: mpirun -n N ranks_matmul [rounds].
// cyclic: the very buffers of pdgemm, in its cyclic blocks of 64; blocks: one block a rank on the
// same grid. Times are medians of the slowest rank; bytes are what all ranks send in one product by
// the calls of MPI that are counted here, through its profiling interface: all that distributed
// tensors use, and all that BLACS has to move data. Every element is compared.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#define EINSUM_CPU
#define EINSUM_MPI
#include "../../einsum.h"
#include "blacs.h"

enum { BLOCK = 64, MOST = 64 };

static ein_ctx *ctx;
static ein_fabric fabric;
static int rank, ranks;

static void need(ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_text(st), ein_ctx_message(ctx));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Small whole numbers, so that every order of sums gives the same.
static double element(int tensor, int64_t i, int64_t j) {
  return (double)((i * (tensor + 3) + j * (7 - tensor)) % 9 - 4);
}

static ein_status fill(void *user, const int64_t *at, void *x) {
  *(double *)x = element(*(int *)user, at[0], at[1]);
  return EIN_OK;
}

// A matrix in some distribution over the grid; fortran: local arrays by columns.
static ein_dtensor *matrix(const char *grid_text, const char *how, int64_t rows, int64_t cols,
                           int number, int fortran) {
  const int64_t shape[2] = {rows, cols};
  ein_grid *grid;
  ein_distribution *d;
  ein_dtensor *t;
  ein_dtensor_part part;
  need(ein_grid_create(ctx, grid_text, ranks, &grid));
  need(ein_distribution_create(ctx, how, 2, grid, &d));
  need(ein_dtensor_create(ctx, &fabric, d, EIN_F64, shape, 0, NULL, &t));
  if (fortran && ein_dtensor_part_get(t, 0, &part)) {
    const int64_t own[2] = {part.view.shape[0], part.view.shape[1]}, stride[2] = {1, own[0]};
    ein_ztensor view = ein_tensor(EIN_F64, 2, own,
                                  calloc((size_t)(own[0] * own[1]) + 1, sizeof(double)));
    view.strides = stride;
    ein_dtensor_destroy(t);
    need(ein_dtensor_create(ctx, &fabric, d, EIN_F64, shape, 1, &view, &t));
  }
  need(ein_dtensor_each(t, fill, &number));
  ein_distribution_destroy(d);
  ein_grid_destroy(grid);
  return t;
}

static ein_dtensor_part part_of(const ein_dtensor *t) {
  ein_dtensor_part p;
  memset(&p, 0, sizeof p);
  (void)ein_dtensor_part_get(t, 0, &p);
  return p;
}

typedef struct lapack {
  int desc[3][9], size[3];
  ein_dtensor **t;
} lapack;

static void pdgemm(const lapack *l) {
  const double one = 1, zero = 0;
  const int first = 1;
  pdgemm_("N", "N", &l->size[0], &l->size[1], &l->size[2], &one,
          (const double *)part_of(l->t[0]).view.data, &first, &first, l->desc[0],
          (const double *)part_of(l->t[1]).view.data, &first, &first, l->desc[1], &zero,
          (double *)part_of(l->t[2]).view.data, &first, &first, l->desc[2]);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Compares the result, element by element, by what rows and columns repeat: patterns of 9.
static ein_status look(void *user, const int64_t *at, void *x) {
  const double *right = (const double *)user;
  return *(double *)x == right[at[0] % 9 * 9 + at[1] % 9] ? EIN_OK : EIN_ERR_INTERNAL;
}

static void check(ein_dtensor *c, int64_t k, const char *what) {
  double right[81] = {0};
  for (int i = 0; i < 81; i++)
    for (int64_t l = 0; l < k; l++) right[i] += element(0, i / 9, l) * element(1, l, i % 9);
  if (ein_dtensor_each(c, look, right) == EIN_OK) return;
  fprintf(stderr, "%s: a wrong result\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void bench(const char *grid_text, int rows, int cols, int m, int n, int k, int rounds) {
  const int shape[3][2] = {{m, k}, {k, n}, {m, n}};
  static double time[3][MOST];
  int64_t bytes[3] = {0, 0, 0};
  char text[200];
  const ein_program_desc program = {.text = text};
  ein_dtensor *cyclic[3], *block[3];
  ein_dtensor_plan *plan[2];
  ein_graph *graph;
  lapack l = {.size = {m, n, k}, .t = cyclic};
  int context, info, zero = 0, size = BLOCK;
  snprintf(text, sizeof text, "input A[i=%d,k=%d], B[k,j=%d] : f64\nC[i,j] = A[i,k]*B[k,j]\n",
           m, k, n);
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", rows, cols);
  for (int t = 0; t < 3; t++) {
    cyclic[t] = matrix(grid_text, "ij->i:64j:64", shape[t][0], shape[t][1], t, 1);
    block[t] = matrix(grid_text, "ij->ij", shape[t][0], shape[t][1], t, 0);
    const int ld = (int)eini_max64(1, part_of(cyclic[t]).view.shape[0]);
    descinit_(l.desc[t], &shape[t][0], &shape[t][1], &size, &size, &zero, &zero, &context, &ld,
              &info);
  }
  need(ein_graph_parse(ctx, &program, &graph));
  need(ein_dtensor_plan_create(ctx, graph, &fabric, NULL, (const ein_dtensor *const *)cyclic,
                               &cyclic[2], &plan[0]));
  need(ein_dtensor_plan_create(ctx, graph, &fabric, NULL, (const ein_dtensor *const *)block,
                               &block[2], &plan[1]));
  for (int r = -1; r < rounds; r++) {  // the first warms up
    for (int way = 0; way < 3; way++) {
      ein_dtensor **t = way < 2 ? cyclic : block;
      const ein_dtensor *const *in = (const ein_dtensor *const *)t;
      sent = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      const int64_t before = sent;
      double seconds = MPI_Wtime();
      if (way == 0) pdgemm(&l);
      else need(ein_dtensor_plan_run(plan[way - 1], in, &t[2], NULL, NULL));
      seconds = MPI_Wtime() - seconds;
      bytes[way] = sent - before;
      PMPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      PMPI_Allreduce(MPI_IN_PLACE, &bytes[way], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
      if (r < 0) check(t[2], k, way == 0 ? "pdgemm" : way == 1 ? "cyclic" : "blocks");
      else time[way][r] = seconds;
    }
  }
  for (int way = 0; way < 3; way++) qsort(time[way], (size_t)rounds, sizeof(double), by_size);
  const double *t[3] = {&time[0][rounds / 2], &time[1][rounds / 2], &time[2][rounds / 2]};
  if (rank == 0)
    printf("| %dx%dx%d | %d | %dx%d | %.1f | %.1f | %.1f | %.2f | %.2f | %.3f | %.3f | %.3f |\n", m,
           n, k, ranks, rows, cols, 1e3 * *t[0], 1e3 * *t[1], 1e3 * *t[2], *t[0] / *t[1],
           *t[0] / *t[2], (double)bytes[0] / 1e6, (double)bytes[1] / 1e6, (double)bytes[2] / 1e6);
  for (int k2 = 0; k2 < 3; k2++) {
    free(part_of(cyclic[k2]).view.data);
    ein_dtensor_destroy(cyclic[k2]);
    ein_dtensor_destroy(block[k2]);
  }
  for (int p = 0; p < 2; p++) ein_dtensor_plan_destroy(plan[p]);
  ein_graph_destroy(graph);
  Cblacs_gridexit(context);
}

int main(int argc, char **argv) {
  static const int sizes[4][3] = {
      {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 256, 1024}, {512, 512, 8192}};
  const ein_cpu_desc one = {.threads = 1};
  ein_cpu *cpu;
  ein_ctx_desc desc = {.bare = 1};
  int level, rounds = argc > 1 ? atoi(argv[1]) : 7;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rounds < 1 || rounds > MOST) rounds = 7;
  need(ein_cpu_create(&one, NULL, &cpu));
  need(ein_cpu_use(cpu, &desc));
  need(ein_ctx_create(&desc, &ctx));
  need(ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric));
  if (rank == 0)
    puts("| m x n x k | ranks | grid | pdgemm, ms | cyclic, ms | blocks, ms | pdgemm / cyclic | "
         "pdgemm / blocks | pdgemm, MB | cyclic, MB | blocks, MB |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|");
  for (int s = 0; s < 4; s++) {
    int rows = 1;
    while ((rows + 1) * (rows + 1) <= ranks) rows++;
    while (ranks % rows != 0) rows--;
    char grid[40];
    snprintf(grid, sizeof grid, "r=%d, c=%d", rows, ranks / rows);
    bench(grid, rows, ranks / rows, sizes[s][0], sizes[s][1], sizes[s][2], rounds);
  }
  ein_fabric_destroy(&fabric);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  MPI_Finalize();
  return 0;
}
