// Multi-head attention over ranks of MPI: rows of X and of the result lie at ranks, weights in
// parts by heads. How the statements are cut is found for what lies where; the result is held
// against that of one rank alone.
//   mpicc -I. examples/15_attention_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <math.h>
#include <stdio.h>

static const char text[] =
    "input X[s=48,a=32], WQ[h=4,a,d=8], WK[h,a,d], WV[h,a,d], WO[h,d,a] : f64\n"
    "Q[h,s,d] = X[s,a]*WQ[h,a,d]\n"
    "K[h,t,d] = X[t,a]*WK[h,a,d]\n"
    "V[h,t,d] = X[t,a]*WV[h,a,d]\n"
    "T[h,s,t] = sum[d](Q[h,s,d]*K[h,t,d]) / sqrt(size(d))\n"
    "P[h,s,t] = softmax[t](T[h,s,t])\n"
    "O[h,s,d] = P[h,s,t]*V[h,t,d]\n"
    "Y[s,a] = O[h,s,d]*WO[h,d,a]\n"
    "output Y\n";

enum { IN = 5, ALL = 6, MOST = 48 * 32 };
static ein_ctx *ctx;
static ein_fabric fabric;

static void need(ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_text(st), ein_ctx_message(ctx));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// The same at one rank alone; *worst: the largest difference.
static void compare(const ein_graph *graph, const double *y, double *worst) {
  static double whole[IN][MOST], right[MOST];
  const void *in[IN];
  void *out[] = {right};
  const ein_run run = {.in = in, .out = out};
  ein_plan *plan;
  for (int k = 0; k < IN; k++) {
    in[k] = whole[k];
    for (int64_t i = 0; i < MOST; i++)
      ein_random_element(EIN_F64, (uint64_t)k, i, &whole[k][i]);
  }
  need(ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan));
  need(ein_plan_execute(plan, &run));
  for (int i = 0; i < MOST; i++) *worst = fmax(*worst, fabs(y[i] - right[i]));
  ein_plan_destroy(plan);
}

int main(int argc, char **argv) {
  static const int64_t w[3] = {4, 32, 8}, o[3] = {4, 8, 32}, x[2] = {48, 32};
  static const int64_t *const shapes[ALL] = {x, w, w, w, o, x};
  static double y[MOST];
  const ein_program_desc program = {.text = text};
  const ein_ztensor whole = ein_tensor(EIN_F64, 2, x, y);
  ein_dtensor *t[ALL];
  ein_dtensor_plan *plan;
  ein_dtensor_plan_info made;
  ein_graph *graph;
  double worst = 0;
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  need(ein_ctx_create(NULL, &ctx));
  need(ein_graph_parse(ctx, &program, &graph));
  need(ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric));
  for (int k = 0; k < ALL; k++) {
    const int heads = k > 0 && k < IN;
    ein_grid *grid;
    ein_distribution *how;
    need(ein_grid_create(ctx, "r=p", fabric.places, &grid));
    need(ein_distribution_create(ctx, heads ? "had->h" : "sa->s", heads ? 3 : 2, grid, &how));
    need(ein_dtensor_create(ctx, &fabric, how, EIN_F64, shapes[k], 0, NULL, &t[k]));
    need(ein_dtensor_random(t[k], (uint64_t)k));
    ein_distribution_destroy(how);
    ein_grid_destroy(grid);
  }
  const ein_dtensor *const *in = (const ein_dtensor *const *)t;
  need(ein_dtensor_plan_create(ctx, graph, &fabric, NULL, in, &t[IN], &plan));
  need(ein_dtensor_plan_run(plan, in, &t[IN], NULL, NULL));
  need(ein_dtensor_gather(t[IN], 0, &whole));
  need(ein_dtensor_plan_get(plan, &made));
  ein_decomp_stmt s;  // results may be scattered, by statements of their own
  for (int i = 0; fabric.first == 0 && !ein_decomposition_stmt(made.decomposition, i, &s); i++) {
    ein_parts p;
    need(ein_decomposition_parts(made.decomposition, i, &p));
    printf("%-4s", s.out);
    for (int c = 0; c < p.nindex; c++) printf(" %s/%d", s.index[c], (int)p.cut[c]);
    printf(", rank 0 reads %d bytes\n", (int)ein_dist_bytes(made.dist, i));
  }
  if (fabric.first == 0) compare(graph, y, &worst);
  if (fabric.first == 0) puts(worst < 1e-12 ? "as on one rank" : "wrong");
  for (int k = 0; k < ALL; k++) ein_dtensor_destroy(t[k]);
  ein_dtensor_plan_destroy(plan);
  ein_fabric_destroy(&fabric);
  ein_ctx_destroy(ctx);
  MPI_Finalize();
  return worst >= 1e-12;
}
