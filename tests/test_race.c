// The answer by seconds against what people do by hand: over the models and random programs, for 4,
// 8 and 16 places, alone and in nodes, it never takes longer in the simulation.
//
//   test_race [cases [seed]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

static const struct { const char *name; int nsize; ein_size size[6]; } models[] = {
    {"llama_layer", 5, {{"s", 256}, {"a", 512}, {"h", 8}, {"d", 64}, {"f", 1024}}},
    {"llama_layer", 5, {{"s", 16}, {"a", 1024}, {"h", 16}, {"d", 64}, {"f", 4096}}},
    {"attention", 4, {{"s", 512}, {"d", 64}, {"t", 512}, {"e", 64}}},
    {"mha", 4, {{"s", 256}, {"a", 512}, {"h", 8}, {"d", 64}}},
    {"softmax", 2, {{"s", 64}, {"t", 4096}}},
    {"chain", 5, {{"i", 512}, {"j", 48}, {"k", 512}, {"l", 512}, {"m", 4096}}},
    {"mm", 3, {{"m", 512}, {"k", 2048}, {"n", 256}}},
    {"training", 4, {{"b", 64}, {"a", 1024}, {"f", 512}, {"c", 256}}},
    {"training", 4, {{"b", 2048}, {"a", 128}, {"f", 64}, {"c", 32}}}};
enum { MODELS = (int)(sizeof models / sizeof *models) };

static ein_graph *read_model(ein_ctx *ctx, int k) {
  static char text[1 << 13];
  char path[256];
  ein_program_desc d;
  ein_graph *g = NULL;
  snprintf(path, sizeof path, "examples/models/%s.ein", models[k].name);
  FILE *f = fopen(path, "rb");
  text[f == NULL ? 0 : fread(text, 1, sizeof text - 1, f)] = 0;
  if (f != NULL) fclose(f);
  memset(&d, 0, sizeof d);
  d.text = text;
  d.nsize = models[k].nsize;
  d.size = models[k].size;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s: %s\n", path, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

// Fast places on slow links, and the other way round; alone, and two or four to a node.
static ein_machine machine_of(int k) {
  ein_machine m;
  memset(&m, 0, sizeof m);
  m.flops = k % 3 == 0 ? 1e11 : 1e13;
  m.memory_bw = k % 3 == 0 ? 1e11 : 1e12;
  m.bandwidth = k % 3 == 2 ? 1e11 : 1e10;
  m.node = k < 3 ? 0 : k % 2 == 0 ? 2 : 4;
  m.node_bandwidth = m.bandwidth / 4;
  m.node_latency = 5e-6;
  return m;
}

// What the executor takes on a clock.
static double clock_of(ein_ctx *ctx, const ein_graph *g, int p, const ein_machine *m,
                       const ein_decomposition *x) {
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_dist_stats stats;
  memset(&desc, 0, sizeof desc), memset(&stats, 0, sizeof stats);
  CHECK(ein_fabric_sim(ctx, p, m, &f) == EIN_OK);
  desc.fabric = &f;
  desc.decomposition = x;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_execute(d, NULL, &stats) == EIN_OK);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  return stats.seconds;
}

// Simulated; NAN: the method does not apply, for no index has such a name. *clock: on a clock.
static double seconds_of(ein_ctx *ctx, const ein_graph *g, int p, const ein_machine *m,
                         const char *method, double *clock) {
  ein_decompose_desc d;
  ein_decomposition *x = NULL;
  ein_sim_desc how;
  ein_sim_info info;
  memset(&d, 0, sizeof d), memset(&how, 0, sizeof how);
  d.p = p;
  d.cost = EIN_COST_SECONDS;
  d.method = method;
  d.machine = how.machine = m;
  const ein_status st = ein_decompose(ctx, g, &d, &x);
  CHECK(st == EIN_OK || (st == EIN_ERR_NAME && method != NULL));
  if (st != EIN_OK) return NAN;
  *clock = clock_of(ctx, g, p, m, x);
  CHECK(ein_simulate(ctx, g, x, &how, &info) == EIN_OK);
  ein_decomposition_destroy(x);
  return info.seconds;
}

static int slower, compared, faster;
static double worst;  // on a clock, over a baseline

static void race(ein_ctx *ctx, const ein_graph *g, const char *name, int p, int k) {
  static const char *const named[] = {"data", "megatron", "sequence", "attention", "sqrt"};
  const ein_machine m = machine_of(k);
  double clock, its;
  const double best = seconds_of(ctx, g, p, &m, NULL, &clock);
  for (int i = 0; i < 5; i++) {
    const double other = seconds_of(ctx, g, p, &m, named[i], &its);
    if (!(other >= 0)) continue;
    const int ok = best <= other * (1 + 1e-9);
    if (clock > its * worst) worst = clock / its;
    CHECK(ok);
    if (!ok) printf("%s, %d places, machine %d: %g s, %s %g\n", name, p, k, best, named[i], other);
    slower += !ok;
    faster += best < other * (1 - 1e-9);
    compared++;
  }
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(60);
  const uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  ein_ctx *ctx = monoid_ctx();
  printf("seed %llu\n", (unsigned long long)seed);
  for (int k = 0; k < MODELS; k++) {
    ein_graph *g = read_model(ctx, k);
    for (int n = 0; n < 18 && g != NULL; n++)
      race(ctx, g, models[k].name, 4 << n % 3, n / 3);
    ein_graph_destroy(g);
  }
  for (int n = 0; n < count; n++) {
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_graph *g = random_graph(ctx, (int)draw(2, 6));
    if (g != NULL) race(ctx, g, "a random graph", 4 << n % 3, (int)draw(0, 5));
    ein_graph_destroy(g);
  }
  ein_ctx_destroy(ctx);
  printf("%d of %d times faster than a baseline, %d times slower; on a clock, where a place may "
         "run what comes later, %.3f of a baseline at most\n", faster, compared, slower, worst);
  CHECK(worst < 1.1);
  if (failures > 0) return printf("%d of %d checks failed\n", failures, checks), 1;
  printf("ok %d checks\n", checks);
  return 0;
}
