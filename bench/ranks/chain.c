// SPDX-License-Identifier: MIT
//
// EinDecomp's experiment 1 (Bourgeois et al. 2024) over ranks: (A*B) + (C*(D*E)), all s x s, and
// skewed, by EinDecomp's plan, by slices of sqrt(n) x sqrt(n), and by ScaLAPACK's pdgemm in cyclic
// blocks of 64, in turn, one thread a rank. bench/ranks/matmul.sh compiles and runs it: mpirun -n N
// ranks_chain [rounds]. Inputs are dealt out in all three; times are medians of the slowest rank,
// bytes what all ranks send. Every element is compared.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#define EINSUM_CPU
#define EINSUM_MPI
#include "../../einsum.h"
#include "blacs.h"

enum { BLOCK = 64, MOST = 64, INPUTS = 5, TENSORS = 7 };  // A to E, D*E, and the result

static ein_ctx *ctx;
static ein_fabric fabric;
static int rank, ranks;

static void need(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s: %s\n", what, ein_ctx_message(ctx));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Whole numbers, so that every order of sums gives the same.
static double element(int tensor, int64_t i, int64_t j) {
  return (double)((i * (tensor + 3) + j * (11 - tensor)) % 5 - 2);
}

typedef struct local {  // of a matrix in cyclic blocks, by columns
  int desc[9], rows, cols;
  double *data;
} local;

static int owned(int n, int place, int places) {
  int own = 0;
  for (int b = place * BLOCK; b < n; b += places * BLOCK) own += n - b < BLOCK ? n - b : BLOCK;
  return own;
}

// The global number of local row or column i.
static int global(int i, int place, int places) {
  return (i / BLOCK * places + place) * BLOCK + i % BLOCK;
}

static void product(local *a, local *b, local *c, double beta) {
  const double one = 1;
  const int first = 1;
  pdgemm_("N", "N", &c->desc[2], &c->desc[3], &a->desc[3], &one, a->data, &first, &first, a->desc,
          b->data, &first, &first, b->desc, &beta, c->data, &first, &first, c->desc);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static ein_dist *plan(const ein_graph *g, const char *method, ein_decomposition **how) {
  ein_decompose_desc d = {.cost = EIN_COST_BYTES, .inputs = EIN_INPUTS_DEALT};
  ein_dist_desc dd = {.fabric = &fabric};
  ein_dist *dist;
  d.p = ranks;
  d.method = method;
  need(ein_decompose(ctx, g, &d, how) == EIN_OK, "ein_decompose");
  dd.decomposition = *how;
  need(ein_dist_create(ctx, g, &dd, &dist) == EIN_OK, "ein_dist_create");
  return dist;
}

typedef struct chain {
  int shape[TENSORS][2], rows, cols, row, col, context;  // of the grid, and where this rank is
  local t[TENSORS];
  double *whole[TENSORS];
  ein_graph *g;
  ein_decomposition *how[2];
  ein_dist *dist[2];
} chain;

// A matrix, whole and in this rank's blocks; those that are no input are zero.
static void matrix(chain *x, int number) {
  const int m = x->shape[number][0], n = x->shape[number][1], zero = 0, size = BLOCK;
  local *t = &x->t[number];
  int info;
  t->rows = owned(m, x->row, x->rows), t->cols = owned(n, x->col, x->cols);
  const int ld = t->rows > 0 ? t->rows : 1;
  descinit_(t->desc, &m, &n, &size, &size, &zero, &zero, &x->context, &ld, &info);
  t->data = (double *)calloc((size_t)ld * (size_t)t->cols + 1, sizeof(double));
  double *whole = x->whole[number] = (double *)calloc((size_t)m * (size_t)n, sizeof(double));
  need(t->data != NULL && whole != NULL, "memory");
  for (int i = 0; i < m && number < INPUTS; i++)
    for (int j = 0; j < n; j++) whole[(size_t)i * (size_t)n + (size_t)j] = element(number, i, j);
  for (int j = 0; j < t->cols && number < INPUTS; j++)
    for (int i = 0; i < t->rows; i++)
      t->data[(size_t)j * (size_t)ld + (size_t)i] =
          element(number, global(i, x->row, x->rows), global(j, x->col, x->cols));
}

static void begin(chain *x, int m, int n, int k, int l) {
  const int shape[TENSORS][2] = {{m, k}, {k, n}, {m, k}, {k, l}, {l, n}, {k, n}, {m, n}};
  char text[300];
  ein_program_desc pd = {.text = text};
  x->rows = 1;
  while ((x->rows + 1) * (x->rows + 1) <= ranks) x->rows++;
  while (ranks % x->rows != 0) x->rows--;
  x->cols = ranks / x->rows;
  x->row = rank / x->cols, x->col = rank % x->cols;
  Cblacs_get(-1, 0, &x->context);
  Cblacs_gridinit(&x->context, "Row", x->rows, x->cols);
  memcpy(x->shape, shape, sizeof shape);
  for (int i = 0; i < TENSORS; i++) matrix(x, i);
  snprintf(text, sizeof text, "input A[i=%d,k=%d], B[k,j=%d], C[i,k], D[k,l=%d], E[l,j] : f64\n"
           "P[i,j] = A[i,k]*B[k,j]\nQ[k,j] = D[k,l]*E[l,j]\nR[i,j] = C[i,k]*Q[k,j]\n"
           "Z[i,j] = P[i,j] + R[i,j]\noutput Z\n", m, k, n, l);
  need(ein_graph_parse(ctx, &pd, &x->g) == EIN_OK, "ein_graph_parse");
  x->dist[0] = plan(x->g, NULL, &x->how[0]);
  x->dist[1] = plan(x->g, "sqrt", &x->how[1]);
}

// way: 0 EinDecomp, 1 sqrt, 2 ScaLAPACK.
static void once(chain *x, int way) {
  const void *in[INPUTS];
  void *out[1] = {x->whole[6]};
  const ein_run run = {.in = in, .out = out};
  for (int i = 0; i < INPUTS; i++) in[i] = x->whole[i];
  if (way < 2) {
    need(ein_dist_execute(x->dist[way], &run, NULL) == EIN_OK, "ein_dist_execute");
    return;
  }
  product(&x->t[3], &x->t[4], &x->t[5], 0);
  product(&x->t[0], &x->t[1], &x->t[6], 0);
  product(&x->t[2], &x->t[5], &x->t[6], 1);
}

// Compares what the library made with what ScaLAPACK has.
static void check(chain *x) {
  const int64_t shape[2] = {x->shape[6][0], x->shape[6][1]};
  const ein_ztensor z = ein_tensor(EIN_F64, 2, shape, x->whole[6]);
  const local *t = &x->t[6];
  need(ein_mpi_gather(&fabric, &z, -1) == EIN_OK, "ein_mpi_gather");
  for (int j = 0; j < t->cols; j++)
    for (int i = 0; i < t->rows; i++) {
      const int64_t at = global(i, x->row, x->rows) * shape[1] + global(j, x->col, x->cols);
      need(x->whole[6][at] == t->data[(size_t)j * (size_t)t->rows + (size_t)i], "wrong elements");
    }
  memset(x->whole[6], 0, (size_t)(shape[0] * shape[1]) * sizeof(double));
}

static void end(chain *x) {
  for (int i = 0; i < TENSORS; i++) free(x->t[i].data), free(x->whole[i]);
  for (int w = 0; w < 2; w++) ein_dist_destroy(x->dist[w]), ein_decomposition_destroy(x->how[w]);
  ein_graph_destroy(x->g);
  Cblacs_gridexit(x->context);
}

static void bench(const char *name, int m, int n, int k, int l, int rounds) {
  chain x;
  double time[3][MOST];
  int64_t bytes[3];
  begin(&x, m, n, k, l);
  once(&x, 2);
  for (int way = 0; way < 2; way++) once(&x, way), check(&x);
  for (int r = 0; r < rounds; r++) {
    for (int way = 0; way < 3; way++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const int64_t before = sent;
      const double start = MPI_Wtime();
      once(&x, way);
      time[way][r] = MPI_Wtime() - start;
      bytes[way] = sent - before;
      PMPI_Allreduce(MPI_IN_PLACE, &time[way][r], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      PMPI_Allreduce(MPI_IN_PLACE, &bytes[way], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    }
  }
  for (int way = 0; way < 3; way++) qsort(time[way], (size_t)rounds, sizeof(double), by_size);
  if (rank == 0)
    printf("| %s | %d | %.3f | %.3f | %.3f | %.1f | %.1f | %.1f |\n", name, ranks,
           (double)bytes[0] / 1e6, (double)bytes[1] / 1e6, (double)bytes[2] / 1e6,
           1e3 * time[0][rounds / 2], 1e3 * time[1][rounds / 2], 1e3 * time[2][rounds / 2]);
  end(&x);
}

int main(int argc, char **argv) {
  const ein_cpu_desc one = {.threads = 1};
  ein_cpu *cpu;
  ein_ctx_desc desc = {.bare = 1};
  int level, rounds = argc > 1 ? atoi(argv[1]) : 5;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rounds < 1 || rounds > MOST) rounds = 5;
  need(ein_cpu_create(&one, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &desc) == EIN_OK &&
       ein_ctx_create(&desc, &ctx) == EIN_OK, "a context");
  need(ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric) == EIN_OK, "ein_fabric_mpi");
  if (rank == 0)
    puts("| chain | ranks | EinDecomp, MB | sqrt, MB | ScaLAPACK, MB | EinDecomp, ms | "
         "sqrt, ms | ScaLAPACK, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|");
  bench("square", 640, 640, 640, 640, rounds);
  bench("skewed", 640, 640, 64, 6400, rounds);
  ein_fabric_destroy(&fabric);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  MPI_Finalize();
  return 0;
}
