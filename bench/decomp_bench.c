// How long planning takes, and simulating: a LLaMA-shaped decoder.
//
//   decomp_bench [layers [batch [seq]]]     default: 32 layers of the 7B model, batch 1, seq 2048
//   decomp_bench chain N                    N matrix products, one after the other
//   decomp_bench experts N LAYERS           N experts of each layer, by the paper's cost and bytes
//   decomp_bench nodes [LAYERS [BATCH]]     layers of the 7B model on 8 nodes of 8 places
//   decomp_bench scatter [LAYERS [BATCH]]   whether results are scattered, and the time to say so
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdlib.h>
#include <time.h>

#include "../examples/models/llama.h"

// Of the processor's time: planning takes one thread, and machines are shared.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// One whole simulation.
static void simulate(ein_ctx *ctx, const ein_graph *g, int64_t p, const char *method) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_sim_desc how;
  ein_sim_info info;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.method = method;
  if (ein_decompose(ctx, g, &d, &x) != EIN_OK) return;
  memset(&how, 0, sizeof how);
  how.max_work = 1e18;
  double start = now();
  if (ein_simulate(ctx, g, x, &how, &info) == EIN_OK)
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

// A chain of n products, or (layers > 0) layers of n experts each, which are summed.
static int large(const char *what, int n, int layers) {
  size_t room = 400 * (size_t)n * (size_t)(layers + 1) + 4096, at = 0;
  char *text = (char *)malloc(room);
  ein_ctx *ctx;
  ein_graph *g;
  ein_program_desc d;
  if (text == NULL || ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  at += (size_t)snprintf(text, room, "input X0[i=512,j=1024], W[j,k=1024], A[j,f=4096], B[f,k] : "
                                     "f32\n");
  for (int k = 0; k < n && layers == 0; k++)
    at += (size_t)snprintf(text + at, room - at, "X%d[i,k] = X%d[i,j]*W[j,k]\n", k + 1, k);
  for (int l = 0; l < layers; l++) {
    for (int e = 0; e < n; e++)
      at += (size_t)snprintf(text + at, room - at, "H%d_%d[i,f] = relu(sum[j](X%d[i,j]*A[j,f]))\n"
                             "Y%d_%d[i,k] = sum[f](H%d_%d[i,f]*B[f,k])\n", l, e, l, l, e, l, e);
    at += (size_t)snprintf(text + at, room - at, "X%d[i,k] = X%d[i,k]", l + 1, l);
    for (int e = 0; e < n; e++)
      at += (size_t)snprintf(text + at, room - at, " + Y%d_%d[i,k]", l, e);
    at += (size_t)snprintf(text + at, room - at, "\n");
  }
  snprintf(text + at, room - at, "output X%d\n", layers > 0 ? layers : n);
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) {
    printf("%s\n", ein_ctx_message(ctx));
    return 1;
  }
  printf("%s: %d\n", what, n);
  measure(ctx, g, layers > 0 ? 512 : 8, NULL, EIN_COST_PAPER);
  if (layers > 0) measure(ctx, g, 512, NULL, EIN_COST_BYTES);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  free(text);
  return 0;
}

// Methods on 8 nodes of 8 places: links of 1e11 bytes a second within a node, of 2.5e10 that its
// places share; and on 64 places without nodes that have links of 1e11. Inputs are in place.
static int nodes(ein_ctx *ctx, const ein_graph *g) {
  static const char *const methods[] = {"eindecomp", "eindecomp", "eindecomp", "data", "model",
                                        "sequence", "attention", "sqrt"};
  static const ein_cost costs[] = {EIN_COST_SECONDS, EIN_COST_BYTES, EIN_COST_PAPER};
  for (int k = 0; k < 8; k++) {
    ein_machine m;
    ein_decompose_desc d;
    ein_decomposition *x;
    ein_sim_desc how;
    double seconds[2];
    ein_decomp_info made;
    ein_sim_info info;
    memset(&m, 0, sizeof m), memset(&d, 0, sizeof d), memset(&how, 0, sizeof how);
    m.flops = 1e13, m.memory_bw = 1e12, m.bandwidth = 1e11;
    m.node = 8, m.node_bandwidth = 2.5e10, m.node_latency = 5e-6;
    d.p = 64;
    d.method = methods[k];
    d.cost = k < 3 ? costs[k] : EIN_COST_BYTES;
    d.machine = how.machine = &m;
    how.max_work = 1e18;
    const double start = now();
    if (ein_decompose(ctx, g, &d, &x) != EIN_OK) {
      printf("%-10s %s\n", methods[k], ein_ctx_message(ctx));
      continue;
    }
    const double took = now() - start;
    for (int flat = 0; flat < 2; flat++) {
      m.node = flat ? 0 : 8;
      if (ein_simulate(ctx, g, x, &how, &info) != EIN_OK) return 1;
      seconds[flat] = info.seconds;
    }
    ein_decomposition_info(x, &made);
    printf("%-10s %-8s (%s) %10.2f ms on nodes, %10.2f ms without, %.4g bytes, %.4g messages, idle "
           "%.1f%%; planned in %.2f s\n", methods[k], k < 3 ? ein_cost_name(d.cost) : "",
           made.method, 1e3 * seconds[0], 1e3 * seconds[1], info.join + info.agg, info.messages,
           100 * (1 - info.busy / (64 * seconds[0])), took);
    fflush(stdout);
    ein_decomposition_destroy(x);
  }
  return 0;
}

// Looks for folds whose results are better scattered.
static int scatters(ein_ctx *ctx, const ein_graph *g) {
  for (int k = 0; k < 4; k++) {
    ein_decompose_desc d;
    ein_decomposition *s;
    memset(&d, 0, sizeof d);
    d.p = k % 2 == 0 ? 8 : 64;
    d.cost = k < 2 ? EIN_COST_BYTES : EIN_COST_SECONDS;
    const double start = now();
    if (ein_decompose(ctx, g, &d, &s) != EIN_OK) return 1;
    printf("scatter  %-8s p %7lld  %9.2f ms  %s\n", ein_cost_name(d.cost), (long long)d.p,
           1e3 * (now() - start), ein_decomposition_graph(s) != NULL ? "better" : "not better");
    fflush(stdout);
    ein_decomposition_destroy(s);
  }
  return 0;
}

int main(int argc, char **argv) {
  static const char *const methods[] = {"eindecomp", "linear", "model", "sequence", "attention"};
  static const int64_t places[] = {8, 64, 1024};
  llama m = llama_7b;
  if (argc > 2 && strcmp(argv[1], "chain") == 0) return large("chain", atoi(argv[2]), 0);
  if (argc > 3 && strcmp(argv[1], "experts") == 0)
    return large("experts", atoi(argv[2]), atoi(argv[3]));
  const int many = argc > 1 && strcmp(argv[1], "nodes") == 0;
  const int scattered = argc > 1 && strcmp(argv[1], "scatter") == 0;
  argc -= many + scattered, argv += many + scattered;
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
  if (many || scattered) {
    const int failed = many ? nodes(ctx, g) : scatters(ctx, g);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    free(text);
    return failed;
  }
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
