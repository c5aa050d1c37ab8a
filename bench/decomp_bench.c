// Decompositions of programs over places: how long planning takes, and what the simulation says.
//
//   decomp_bench [layers [batch [seq]]]     planning times; default: 32 layers of the 7B model,
//                                           batch 1, seq 2048
//   decomp_bench chain                      (A*B)+(C*(D*E)), square and skewed, against sqrt
//   decomp_bench llama                      one layer against model, sequence and attention
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"

#include <stdlib.h>
#include <time.h>

#include "llama.h"

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
}

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  return g;
}

// Simulated seconds and bytes of a method; 0 where it does not apply.
static double simulated(ein_ctx *ctx, const ein_graph *g, int64_t p, const char *method,
                        ein_cost cost, int npin, const char *const *pin, double *bytes) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_sim_info info;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.method = method;
  d.cost = cost;
  d.strict = cost != EIN_COST_SECONDS;
  d.npin = npin;
  d.pin = pin;
  memset(&info, 0, sizeof info);
  if (ein_decompose(ctx, g, &d, &x) == EIN_OK) (void)ein_simulate(ctx, g, x, NULL, &info);
  ein_decomposition_destroy(x);
  *bytes = info.join + info.agg;
  return info.seconds;
}

// All inputs lie in sqrt(p) x sqrt(p) blocks at first, and so must the result.
static void chain(ein_ctx *ctx) {
  static const struct { const char *method; ein_cost cost; } how[] = {
      {"sqrt", EIN_COST_BYTES}, {"linear", EIN_COST_PAPER}, {NULL, EIN_COST_PAPER},
      {NULL, EIN_COST_BYTES}, {NULL, EIN_COST_SECONDS}};
  for (int skew = 0; skew < 2; skew++) {
    char text[512], pin[6][32];
    const char *pins[6];
    int s = 4096, a = skew ? s / 10 : s, b = skew ? 10 * s : s;
    snprintf(text, sizeof text, "input A[i=%d,j=%d], B[j,k=%d], C[i,l=%d], D[l,m=%d], E[m,k] : f32"
             "\nP[i,k] = A[i,j]*B[j,k]\nQ[l,k] = D[l,m]*E[m,k]\nR[i,k] = C[i,l]*Q[l,k]\n"
             "Y[i,k] = P[i,k] + R[i,k]\noutput Y\n", s, a, s, a, b);
    ein_graph *g = parse(ctx, text);
    printf("\n(A*B)+(C*(D*E)), %s, s = %d: bytes moved, then simulated seconds\n\n"
           "| p | sqrt | linear | paper | bytes | seconds | sqrt | linear | paper | bytes | seconds "
           "|\n|---|---|---|---|---|---|---|---|---|---|---|\n", skew ? "skewed" : "square", s);
    for (int root = 2; root <= 32 && g != NULL; root *= 2) {
      double bytes[5], t[5];
      for (int k = 0; k < 6; k++) {
        snprintf(pin[k], sizeof pin[k], "%c[0=%d,1=%d]", "ABCDEY"[k], root, root);
        pins[k] = pin[k];
      }
      for (int k = 0; k < 5; k++)
        t[k] = simulated(ctx, g, root * root, how[k].method, how[k].cost, 6, pins, &bytes[k]);
      printf("| %d ", root * root);
      for (int k = 0; k < 5; k++) printf("| %.4g ", bytes[k]);
      for (int k = 0; k < 5; k++) printf("| %.4g ", t[k]);
      puts("|");
      fflush(stdout);
    }
    ein_graph_destroy(g);
  }
}

static void layer(ein_ctx *ctx) {
  static const char *const base[] = {"model", "sequence", "attention", "data", "sqrt"};
  static const long shape[][2] = {{1, 512}, {1, 4096}, {8, 1024}};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    char text[8192];
    llama m = llama_7b;
    m.layers = 1;
    m.batch = shape[i][0];
    m.seq = shape[i][1];
    llama_program(&m, text, sizeof text);
    ein_graph *g = parse(ctx, text);
    printf("\nOne layer of the 7B model, batch %ld, length %ld: simulated seconds\n\n"
           "| p | eindecomp | model | sequence | attention | data | sqrt |\n"
           "|---|---|---|---|---|---|---|\n", m.batch, m.seq);
    for (int64_t p = 2; p <= 64 && g != NULL; p *= 2) {
      double bytes;
      printf("| %d | %.5g |", (int)p, simulated(ctx, g, p, NULL, EIN_COST_SECONDS, 0, NULL, &bytes));
      for (int k = 0; k < 5; k++)
        printf(" %.5g |", simulated(ctx, g, p, base[k], EIN_COST_SECONDS, 0, NULL, &bytes));
      puts("");
      fflush(stdout);
    }
    ein_graph_destroy(g);
  }
}

int main(int argc, char **argv) {
  static const char *const methods[] = {"eindecomp", "linear", "model", "sequence", "attention"};
  static const int64_t places[] = {8, 64, 1024};
  llama m = llama_7b;
  if (argc > 1 && argv[1][0] <= '9') m.layers = atoi(argv[1]);
  if (argc > 2) m.batch = atol(argv[2]);
  if (argc > 3) m.seq = atol(argv[3]);
  size_t room = 4096 * (size_t)(m.layers + 2);
  char *text = (char *)malloc(room);
  ein_ctx *ctx;
  ein_graph *g;
  ein_program_desc d;
  if (text == NULL || ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (argc > 1 && strcmp(argv[1], "chain") == 0) return chain(ctx), 0;
  if (argc > 1 && strcmp(argv[1], "llama") == 0) return layer(ctx), 0;
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
