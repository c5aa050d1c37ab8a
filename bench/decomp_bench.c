// How long planning takes, and simulating: a LLaMA-shaped decoder.
//
//   decomp_bench [layers [batch [seq]]]     default: 32 layers of the 7B model, batch 1, seq 2048
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"

#include <stdlib.h>
#include <time.h>

#include "../examples/models/llama.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// One whole simulation.
static void simulate(ein_ctx *ctx, const ein_graph *g, int64_t p, const char *method) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_sim_info info;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.method = method;
  if (ein_decompose(ctx, g, &d, &x) != EIN_OK) return;
  double start = now();
  if (ein_simulate(ctx, g, x, NULL, &info) == EIN_OK)
    printf("sim      %-10s p %7lld  %9.2f ms  %.6g s, %.4g tasks, %.4g messages, %.4g bytes, peak "
           "%.4g\n", method == NULL ? "eindecomp" : method, (long long)p, 1e3 * (now() - start),
           info.seconds, info.tasks, info.messages, info.join + info.agg, info.peak_bytes);
  ein_decomposition_destroy(x);
}

static void measure(ein_ctx *ctx, const ein_graph *g, int64_t p, const char *method,
                    ein_cost cost) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.method = method;
  d.cost = cost;
  double best = 1e300;
  for (int k = 0; k < 3; k++) {
    double start = now();
    if (ein_decompose(ctx, g, &d, &x) != EIN_OK) {
      printf("%s\n", ein_ctx_message(ctx));
      return;
    }
    double t = now() - start;
    if (t < best) best = t;
    ein_decomposition_info(x, &info);
    ein_decomposition_destroy(x);
    if (t > 2) break;
  }
  printf("%-8s %-10s p %7lld  %9.2f ms  total %.6g  %s gap %.2g%%  %d forms, %lld vectors\n",
         ein_cost_name(cost), info.method, (long long)p, 1e3 * best, info.total,
         info.proved ? "proved," : "not proved,", 100 * info.gap, info.nform,
         (long long)info.nvector);
  fflush(stdout);
}

int main(int argc, char **argv) {
  static const char *const methods[] = {"eindecomp", "linear", "model", "sequence", "attention"};
  static const int64_t places[] = {8, 64, 1024};
  llama m = llama_7b;
  if (argc > 1) m.layers = atoi(argv[1]);
  if (argc > 2) m.batch = atol(argv[2]);
  if (argc > 3) m.seq = atol(argv[3]);
  size_t room = 4096 * (size_t)(m.layers + 2);
  char *text = (char *)malloc(room);
  ein_ctx *ctx;
  ein_graph *g;
  ein_program_desc d;
  if (text == NULL || ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  llama_program(&m, text, room);
  memset(&d, 0, sizeof d);
  d.text = text;
  double start = now();
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) {
    printf("%s\n", ein_ctx_message(ctx));
    return 1;
  }
  printf("%d layers, batch %ld, seq %ld: %.2f ms to parse\n", m.layers, m.batch, m.seq,
         1e3 * (now() - start));
  for (int k = 0; k < 5; k++)
    for (int i = 0; i < 3; i++) measure(ctx, g, places[i], methods[k], EIN_COST_PAPER);
  for (int cost = EIN_COST_BYTES; cost <= EIN_COST_SECONDS; cost++)
    for (int i = 0; i < 3; i++) measure(ctx, g, places[i], NULL, (ein_cost)cost);
  for (int i = 0; i < 4; i++) simulate(ctx, g, i < 3 ? places[i] : EIN_PLACES_MAX, "sequence");
  for (int i = 0; i < 4; i++) simulate(ctx, g, i < 3 ? places[i] : EIN_PLACES_MAX, "sqrt");
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  free(text);
  return 0;
}
