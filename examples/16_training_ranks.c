// A training step over ranks of MPI: two layers, gradients and new weights. Samples lie at ranks,
// weights in parts. Where the batch is large the cheapest plan moves weights (data parallel), where
// it is small, activations (model parallel): nobody says which, the bytes do.
//   mpicc -I. examples/16_training_ranks.c -lm && mpirun -n 4 ./a.out
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include <stdio.h>
#include <stdlib.h>

static const char text[] =
    "input X[b=%d,i=24], T[b,o=16], W[i,f=%d], V[f,o] : f64\n"
    "H[b,f] = max(0, sum[i](X[b,i]*W[i,f]))\n"
    "Y[b,o] = H[b,f]*V[f,o]\n"
    "L = sum[b,o]((Y[b,o] - T[b,o])^2) / (size(b)*size(o))\n"
    "grad L wrt W, V as dW, dV\n"
    "nW[i,f] = W[i,f] - 0.02*dW[i,f]\n"
    "nV[f,o] = V[f,o] - 0.02*dV[f,o]\n"
    "output L, nW, nV\n";

enum { IN = 4, ALL = 7 };
static ein_ctx *ctx;
static ein_fabric fabric;

static void need(ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_text(st), ein_ctx_message(ctx));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Which index of the first layer is cut into how many pieces.
static void say(const ein_dtensor_plan *plan, int batch, int hidden) {
  ein_dtensor_plan_info made;
  ein_dist_info info;
  ein_decomp_stmt s;
  ein_parts p;
  need(ein_dtensor_plan_get(plan, &made));
  need(ein_dist_info_get(made.dist, &info));
  need(ein_decomposition_stmt(made.decomposition, 0, &s));
  need(ein_decomposition_parts(made.decomposition, 0, &p));
  printf("batch %d, %d hidden: %s", batch, hidden, s.out);
  for (int c = 0; c < p.nindex; c++) printf(" %s/%d", s.index[c], (int)p.cut[c]);
  printf(", rank 0 reads %d bytes a step\n", (int)info.bytes);
}

static int train(int batch, int hidden) {
  const int64_t b = batch, f = hidden;
  const int64_t shapes[ALL][2] = {{b, 24}, {b, 16}, {24, f}, {f, 16}, {0, 0}, {24, f}, {f, 16}};
  static const char *const how[ALL] = {"bi->b", "bo->b", "if->f", "fo->f", "->*", "if->f", "fo->f"};
  char program_text[512];
  const ein_program_desc program = {.text = program_text};
  ein_dtensor *t[ALL];
  ein_dtensor_plan *plan;
  ein_dtensor_part loss;
  ein_graph *graph;
  double first = 0, last = 0;
  snprintf(program_text, sizeof program_text, text, batch, hidden);
  need(ein_graph_parse(ctx, &program, &graph));
  for (int k = 0; k < ALL; k++) {
    ein_grid *grid;
    ein_distribution *d;
    need(ein_grid_create(ctx, "r=p", fabric.places, &grid));
    need(ein_distribution_create(ctx, how[k], k == IN ? 0 : 2, grid, &d));
    need(ein_dtensor_create(ctx, &fabric, d, EIN_F64, shapes[k], 0, NULL, &t[k]));
    need(ein_dtensor_random(t[k], (uint64_t)k));
    ein_distribution_destroy(d);
    ein_grid_destroy(grid);
  }
  for (int step = 0; step < 40; step++) {  // new weights become the old ones
    const int from = step % 2 == 0 ? 2 : 5, to = 7 - from;
    const ein_dtensor *in[] = {t[0], t[1], t[from], t[from + 1]};
    ein_dtensor *out[] = {t[IN], t[to], t[to + 1]};
    if (step == 0) need(ein_dtensor_plan_create(ctx, graph, &fabric, NULL, in, out, &plan));
    need(ein_dtensor_plan_run(plan, in, out, NULL, NULL));
    ein_dtensor_part_get(t[IN], 0, &loss);
    last = *(double *)loss.view.data;
    if (step == 0) first = last;
  }
  if (fabric.first == 0) say(plan, batch, hidden);
  if (fabric.first == 0) printf("loss %.4f, %.4f after 40 steps\n", first, last);
  ein_dtensor_plan_destroy(plan);
  for (int k = 0; k < ALL; k++) ein_dtensor_destroy(t[k]);
  ein_graph_destroy(graph);
  return last < 0.8 * first;
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  need(ein_ctx_create(NULL, &ctx));
  need(ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric));
  const int learns = train(512, 32) + train(16, 512);
  if (fabric.first == 0) puts(learns == 2 ? "both learn" : "wrong");
  ein_fabric_destroy(&fabric);
  ein_ctx_destroy(ctx);
  MPI_Finalize();
  return learns == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
