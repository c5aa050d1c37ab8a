// The experiments of the EinDecomp paper in shape, simulated: EinDecomp beside the baselines.
//
//   decomp_experiments chain|llama|train [SVG]
//
// chain: (A B) + (C (D E)), square and skewed (section 9.1); train: a step of a classifier against
// data parallel (9.2); llama: the first token of LLaMA-7B (9.3). Tables in Markdown; SVG gets a
// plot of the simulated seconds. The machine is ein_machine's default.
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <time.h>

#include "../tools/svg.h"
#include "plot.h"
#include "../examples/models/llama.h"

enum { WAYS_MAX = 8, POINTS_MAX = 64 };

// A method and its cost model; the first one is what the others are compared with.
typedef struct way {
  const char *name, *method;
  ein_cost cost;
} way;

static svg_line plot[64];
static int nplot;
static double plot_x[64][POINTS_MAX], plot_y[64][POINTS_MAX];
static char plot_name[64][80];

// A point of the line named so.
static void plot_add(const char *name, double x, double y) {
  int k = 0;
  while (k < nplot && strcmp(plot_name[k], name) != 0) k++;
  if (k == 64) return;
  if (k == nplot) {
    snprintf(plot_name[k], sizeof plot_name[k], "%s", name);
    plot[k].name = plot_name[k];
    plot[k].x = plot_x[k], plot[k].y = plot_y[k];
    nplot++;
  }
  if (plot[k].n == POINTS_MAX) return;
  plot_x[k][plot[k].n] = x, plot_y[k][plot[k].n++] = y;
}

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) == EIN_OK) return g;
  fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Cost of a decomposition under another model: its vectors given to that model.
static double cost_under(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *x, int64_t p,
                         ein_cost cost) {
  ein_decomp_info info;
  ein_decomposition *y;
  ein_decompose_desc d;
  ein_decomposition_info(x, &info);
  if (info.cost == cost) return info.total;
  char **part = (char **)calloc((size_t)info.nstmt + 1, sizeof *part);
  memset(&d, 0, sizeof d);
  for (int i = 0; i < info.nstmt; i++) {
    ein_parts parts;
    ein_decomp_stmt s;
    ein_decomposition_parts(x, i, &parts);
    ein_decomposition_stmt(x, i, &s);
    size_t room = strlen(s.out) + 8, n;
    for (int c = 0; c < s.nindex; c++) room += strlen(s.index[c]) + 24;
    part[i] = (char *)malloc(room);
    n = (size_t)snprintf(part[i], room, "%s[", s.out);
    for (int c = 0; c < s.nindex; c++)
      if (parts.cut[c] > 1)
        n += (size_t)snprintf(part[i] + n, room - n, "%s%s=%lld", part[i][n - 1] == '[' ? "" : ",",
                              s.index[c], (long long)parts.cut[c]);
    snprintf(part[i] + n, room - n, "]");
  }
  d.p = p;
  d.method = "given";
  d.cost = cost;
  d.nparts = info.nstmt;
  d.parts = (const char *const *)part;
  double total = NAN;
  if (ein_decompose(ctx, g, &d, &y) == EIN_OK) {
    ein_decomposition_info(y, &info);
    total = info.total;
    ein_decomposition_destroy(y);
  } else {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
  }
  for (int i = 0; i < d.nparts; i++) free(part[i]);
  free(part);
  return total;
}

// One row: every way's seconds and bytes, and the paper's cost.
static void row(ein_ctx *ctx, const char *what, const ein_graph *g, int64_t p, int nway,
                const way *ways) {
  double first = 0;
  for (int k = 0; k < nway; k++) {
    ein_decompose_desc d;
    ein_decomposition *x;
    ein_decomp_info info;
    ein_sim_info sim;
    char name[80];
    memset(&d, 0, sizeof d);
    d.p = p;
    d.method = ways[k].method;
    d.cost = ways[k].cost;
    double start = now();
    if (ein_decompose(ctx, g, &d, &x) != EIN_OK) {
      printf("| %s | %lld | %s | %s |\n", what, (long long)p, ways[k].name, ein_ctx_message(ctx));
      continue;
    }
    double spent = now() - start;
    ein_decomposition_info(x, &info);
    if (ein_simulate(ctx, g, x, NULL, &sim) != EIN_OK) exit(1);
    double paper = cost_under(ctx, g, x, p, EIN_COST_PAPER);
    if (k == 0) first = sim.seconds;
    printf("| %s | %lld | %s | %.4g | %.2f | %.4g | %.4g | %.4g | %.0f ms%s |\n", what,
           (long long)p, ways[k].name, sim.seconds, sim.seconds / first, sim.join + sim.agg, paper,
           sim.peak_bytes, 1e3 * spent, strcmp(ways[k].name, "eindecomp") != 0 ? ""
           : info.proved ? ", proved" : ", not proved");
    fflush(stdout);
    snprintf(name, sizeof name, "%s, %s", what, ways[k].name);
    plot_add(name, (double)p, sim.seconds);
    ein_decomposition_destroy(x);
  }
}

static void head(void) {
  printf("| problem | places | method | seconds | of EinDecomp's | bytes moved | paper's cost | "
         "peak bytes of a place | planning |\n|---|--:|---|--:|--:|--:|--:|--:|--:|\n");
}

static const way chain_ways[] = {{"eindecomp", NULL, EIN_COST_SECONDS},
                                 {"eindecomp, paper's cost", NULL, EIN_COST_PAPER},
                                 {"eindecomp, bytes", NULL, EIN_COST_BYTES},
                                 {"sqrt", "sqrt", EIN_COST_PAPER},
                                 {"none", "none", EIN_COST_PAPER}};

static void chain(ein_ctx *ctx) {
  char text[1000];
  head();
  for (int skewed = 0; skewed < 2; skewed++) {
    long s = skewed ? 2000 : 8192, thin = skewed ? s / 10 : s, wide = skewed ? s * 10 : s;
    snprintf(text, sizeof text,
             "input A[i=%ld,j=%ld], B[j,k=%ld], C[i,l=%ld], D[l,m=%ld], E[m,k] : f32\n"
             "P[i,k] = A[i,j] * B[j,k]\nQ[l,k] = D[l,m] * E[m,k]\nR[i,k] = C[i,l] * Q[l,k]\n"
             "Z[i,k] = P[i,k] + R[i,k]\noutput Z\n", s, thin, s, thin, wide);
    ein_graph *g = parse(ctx, text);
    for (int64_t p = 4; p <= 1024; p *= 4)
      row(ctx, skewed ? "skewed" : "square", g, p, 5, chain_ways);
    ein_graph_destroy(g);
  }
}

static const way llama_ways[] = {{"eindecomp", NULL, EIN_COST_SECONDS},
                                 {"eindecomp, paper's cost", NULL, EIN_COST_PAPER},
                                 {"megatron", "megatron", EIN_COST_PAPER},
                                 {"sequence", "sequence", EIN_COST_PAPER},
                                 {"attention", "attention", EIN_COST_PAPER}};

static void decoder(ein_ctx *ctx) {
  static const long shapes[][2] = {{1, 1024}, {1, 4096}, {8, 1024}, {64, 512}};
  size_t room = 4096 * 34;
  char *text = (char *)malloc(room), name[80];
  head();
  for (int k = 0; k < 4; k++) {
    llama m = llama_7b;
    m.batch = shapes[k][0];
    m.seq = shapes[k][1];
    llama_program(&m, text, room);
    ein_graph *g = parse(ctx, text);
    snprintf(name, sizeof name, "batch %ld, length %ld", m.batch, m.seq);
    for (int64_t p = 2; p <= 64; p *= 2) row(ctx, name, g, p, 5, llama_ways);
    ein_graph_destroy(g);
  }
  free(text);
}

static const way train_ways[] = {{"eindecomp", NULL, EIN_COST_SECONDS},
                                 {"eindecomp, paper's cost", NULL, EIN_COST_PAPER},
                                 {"data", "data", EIN_COST_PAPER}};

static void train(ein_ctx *ctx) {
  static const long features[] = {8192, 65536, 597540};
  char text[2000], name[80];
  head();
  for (long batch = 128; batch <= 512; batch *= 4) {
    for (int k = 0; k < 3; k++) {
      snprintf(text, sizeof text,
               "input X[b=%ld,a=%ld], W[a,f=8192], V[f,c=14588], L[b,c] : f32\n"
               "param rate = 0.1 : f32\n"
               "H[b,f] = X[b,a] * W[a,f]\nR[b,f] = relu(H[b,f])\nY[b,c] = R[b,f] * V[f,c]\n"
               "P[b,c] = logsoftmax[c](Y[b,c])\nE = -sum[b,c](L[b,c] * P[b,c])\n"
               "grad E wrt W, V as dW, dV\n"
               "W2[a,f] = W[a,f] - rate * dW[a,f]\nV2[f,c] = V[f,c] - rate * dV[f,c]\n"
               "output W2, V2\n", batch, features[k]);
      ein_graph *g = parse(ctx, text);
      snprintf(name, sizeof name, "batch %ld, %ld features", batch, features[k]);
      for (int64_t p = 2; p <= 64; p *= 2) row(ctx, name, g, p, 3, train_ways);
      ein_graph_destroy(g);
    }
  }
}

int main(int argc, char **argv) {
  ein_ctx *ctx;
  const char *what = argc > 1 ? argv[1] : "";
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (strcmp(what, "chain") == 0) chain(ctx);
  else if (strcmp(what, "llama") == 0) decoder(ctx);
  else if (strcmp(what, "train") == 0) train(ctx);
  else return fprintf(stderr, "decomp_experiments chain|llama|train [SVG]\n"), 2;
  if (argc > 2) {
    FILE *f = fopen(argv[2], "w");
    if (f == NULL) return 3;
    svg_plot(f, "Simulated seconds by places", "places", nplot, plot);
    fclose(f);
  }
  ein_ctx_destroy(ctx);
  return 0;
}
