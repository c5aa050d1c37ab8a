// SPDX-License-Identifier: MIT
//
// Which process drives which places, where nodes have several: ein_nodes_map against all ways on
// small problems, and what it saves of grids of products and of a LLaMA layer on 4 nodes of 4.
//
//   test_nodes [table [LAYERS]]    prints the rows of bench/RESULTS.md
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "../examples/models/llama.h"
#include "check.h"
#include "util.h"

enum { MOST = 64 };

static int table;

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  return g;
}

// Bytes between places, from the messages of the simulation.
typedef struct traffic {
  int p;
  double w[MOST][MOST];
} traffic;

static void traffic_move(void *user, const ein_sim_move *m) {
  ((traffic *)user)->w[m->from][m->to] += m->bytes;
}

// Between nodes, where process[r] drives run r of the places.
static double between_nodes(const traffic *t, int n, const int *node, const int *process) {
  double sum = 0;
  for (int from = 0; from < t->p; from++) {
    for (int to = 0; to < t->p; to++) {
      const int a = (int)((((int64_t)from + 1) * n - 1) / t->p);
      const int b = (int)((((int64_t)to + 1) * n - 1) / t->p);
      if (node[process[a]] != node[process[b]]) sum += t->w[from][to];
    }
  }
  return sum;
}

static void traffic_of(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *d, int p,
                       traffic *t) {
  ein_sim_desc desc;
  ein_sim_info info;
  double sum = 0;
  memset(&desc, 0, sizeof desc);
  memset(t, 0, sizeof *t);
  t->p = p;
  desc.move_fn = traffic_move;
  desc.user = t;
  CHECK(ein_simulate(ctx, g, d, &desc, &info) == EIN_OK);
  for (int a = 0; a < p; a++)
    for (int b = 0; b < p; b++) sum += t->w[a][b];
  CHECK(sum == info.join + info.agg);
}

// The least of all ways to give runs to processes: *best.
static void all_ways(const traffic *t, int n, const int *node, int k, int *process, double *best) {
  if (k == n) {
    const double bytes = between_nodes(t, n, node, process);
    if (bytes < *best) *best = bytes;
    return;
  }
  for (int s = 0; s < n; s++) {
    int taken = 0, first = 1;
    for (int i = 0; i < k; i++) taken |= process[i] == s;
    for (int i = 0; i < s && !taken; i++) {  // of a node's free ones the first is enough
      int free_one = node[i] == node[s];
      for (int j = 0; j < k; j++) free_one &= process[j] != i;
      first &= !free_one;
    }
    if (taken || !first) continue;
    process[k] = s;
    all_ways(t, n, node, k + 1, process, best);
  }
}

// A map is a permutation, its figures are those of the messages, and it is no worse than none.
static double mapped(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *d, int p, int n,
                     const int *node, const traffic *t, double *before) {
  int process[MOST], again[MOST], same[MOST], seen = 0;
  double bytes[2], twice[2];
  CHECK(ein_nodes_map(ctx, g, d, NULL, p, n, node, process, bytes) == EIN_OK);
  CHECK(ein_nodes_map(ctx, g, d, NULL, p, n, node, again, twice) == EIN_OK);
  CHECK(memcmp(process, again, (size_t)n * sizeof *process) == 0 && bytes[1] == twice[1]);
  for (int r = 0; r < n; r++) {
    same[r] = r;
    for (int k = 0; k < n; k++) seen += process[k] == r;
  }
  CHECK(seen == n);
  CHECK(bytes[0] == between_nodes(t, n, node, same));
  CHECK(bytes[1] == between_nodes(t, n, node, process) && bytes[1] <= bytes[0]);
  *before = bytes[0];
  return bytes[1];
}

// Random products of few places, on nodes of any sizes: the best of all ways, nearly always.
static void test_small(ein_ctx *ctx, int cases) {
  int worse = 0;
  for (int c = 0; c < cases; c++) {
    char text[256];
    traffic t;
    ein_decompose_desc dd;
    ein_decomposition *how = NULL;
    const int p = (int)draw(2, 8), n = (int)draw(2, p);
    int node[MOST], process[MOST];
    double before, best = 1e300;
    snprintf(text, sizeof text, "input A[i=%d,j=%d], B[j,k=%d], C[k,l=%d] : f64\n"
             "T[i,k] = A[i,j]*B[j,k]\nY[l,i] = T[i,k]*C[k,l]\n", (int)draw(8, 40),
             (int)draw(8, 40), (int)draw(8, 40), (int)draw(8, 40));
    for (int r = 0; r < n; r++) node[r] = (int)draw(0, 2) * 7;
    ein_graph *g = parse(ctx, text);
    memset(&dd, 0, sizeof dd);
    dd.p = p;
    CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
    traffic_of(ctx, g, how, p, &t);
    const double bytes = mapped(ctx, g, how, p, n, node, &t, &before);
    all_ways(&t, n, node, 0, process, &best);
    CHECK(bytes >= best && bytes <= 1.1 * best);
    worse += bytes > best;
    ein_decomposition_destroy(how);
    ein_graph_destroy(g);
  }
  CHECK(worse * 50 <= cases);
}

// On 4 nodes of 4 places: in the order of nodes, and dealt to them in turn.
static void fours(ein_ctx *ctx, const char *name, const ein_graph *g, const ein_decompose_desc *dd,
                  double least) {
  ein_decomposition *how = NULL;
  traffic t;
  int rows[16], dealt[16];
  double before, other;
  CHECK(ein_decompose(ctx, g, dd, &how) == EIN_OK);
  traffic_of(ctx, g, how, 16, &t);
  for (int r = 0; r < 16; r++) rows[r] = r / 4, dealt[r] = r % 4;
  const double bytes = mapped(ctx, g, how, 16, 16, rows, &t, &before);
  const double turned = mapped(ctx, g, how, 16, 16, dealt, &t, &other);
  CHECK(bytes == turned || bytes < 1.05 * turned);
  CHECK(least < 0 || (bytes == least && turned == least));
  double all = 0;
  for (int a = 0; a < 16; a++)
    for (int b = 0; b < 16; b++) all += t.w[a][b];
  if (table)
    printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", name, all, before, other,
           bytes < turned ? bytes : turned);
  ein_decomposition_destroy(how);
}

// Products whose inputs lie in blocks: rows of a grid need columns of the other, and the long side
// of what moves has to stay within nodes. 8 bytes an element.
static void test_grids(ein_ctx *ctx) {
  static const struct {
    const char *name, *text, *part, *pin[2];
    double least;
  } grid[] = {
      {"product 512, 4 x 4", "input A[i=512,j=512], B[j,k=512] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
       "C[i=4,k=4]", {"A[0=4,1=4]", "B[0=4,1=4]"}, 3.0 * 512 * 512 * 8},
      {"product 2048 x 512 x 128, 4 x 4",
       "input A[i=2048,j=512], B[j,k=128] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
       "C[i=4,k=4]", {"A[0=4,1=4]", "B[0=4,1=4]"}, 3.0 * 512 * 128 * 8},
      {"product 128 x 512 x 2048, 4 x 4",
       "input A[i=128,j=512], B[j,k=2048] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
       "C[i=4,k=4]", {"A[0=4,1=4]", "B[0=4,1=4]"}, 3.0 * 128 * 512 * 8},
      {"product 512, 2 x 2 x 4", "input A[i=512,j=512], B[j,k=512] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
       "C[i=2,k=2,j=4]", {"A[0=4,1=4]", "B[0=4,1=4]"}, -1},
      {"product 512, 4 x 1 x 4", "input A[i=512,j=512], B[j,k=512] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
       "C[i=4,j=4]", {"A[0=4,1=4]", "B[0=4,1=4]"}, -1}};
  for (size_t k = 0; k < sizeof grid / sizeof *grid; k++) {
    ein_decompose_desc dd;
    ein_graph *g = parse(ctx, grid[k].text);
    memset(&dd, 0, sizeof dd);
    dd.p = 16;
    dd.method = "given";
    dd.cost = EIN_COST_BYTES;
    dd.nparts = 1;
    dd.parts = &grid[k].part;
    dd.npin = 2;
    dd.pin = grid[k].pin;
    fours(ctx, grid[k].name, g, &dd, grid[k].least);
    ein_graph_destroy(g);
  }
}

static void test_llama(ein_ctx *ctx, int layers) {
  static const char *const method[] = {"eindecomp", "megatron", "sequence", "attention"};
  static char text[1 << 16];
  llama m = {layers, 1, 128, 256, 32, 512};
  if (table) m = llama_7b, m.layers = layers;
  CHECK(llama_program(&m, text, sizeof text) < sizeof text);
  ein_graph *g = parse(ctx, text);
  for (int k = 0; k < 4; k++) {
    char name[64];
    ein_decompose_desc dd;
    memset(&dd, 0, sizeof dd);
    dd.p = 16;
    dd.method = method[k];
    dd.cost = EIN_COST_SECONDS;
    snprintf(name, sizeof name, "LLaMA-7B, %d layer%s, %s", layers, layers > 1 ? "s" : "",
             method[k]);
    fours(ctx, name, g, &dd, -1);
  }
  ein_graph_destroy(g);
}

static void test_mistakes(ein_ctx *ctx) {
  ein_graph *g = parse(ctx, "input A[i=8,j=8] : f64\nB[i] = sum[j](A[i,j])\n");
  ein_decompose_desc dd;
  ein_decomposition *how = NULL;
  int node[4] = {0, 0, 1, 1}, process[4];
  counter c = {0, -1, 0};
  memset(&dd, 0, sizeof dd);
  dd.p = 4;
  CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
  CHECK(ein_nodes_map(ctx, g, how, NULL, 4, 0, node, process, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_nodes_map(ctx, g, how, NULL, 2, 4, node, process, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_nodes_map(ctx, g, NULL, NULL, 4, 4, node, process, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_nodes_map(ctx, g, how, NULL, 4, 4, node, NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_nodes_map(ctx, g, how, NULL, 4, 4, node, process, NULL) == EIN_OK);
  for (int k = 0; k < 4; k++) CHECK(process[k] == k);
  ein_ctx_desc cd;
  ein_ctx *bare = NULL;
  memset(&cd, 0, sizeof cd);
  cd.bare = 1;
  cd.allocator.alloc_fn = count_alloc;
  cd.allocator.free_fn = count_free;
  cd.allocator.user = &c;
  CHECK(ein_ctx_create(&cd, &bare) == EIN_OK);
  const long live = c.live;
  ein_status st = EIN_ERR_NO_MEMORY;
  for (long n = 0; n < 500 && st != EIN_OK; n++) {
    c.fail_at = c.calls + n;
    st = ein_nodes_map(bare, g, how, NULL, 4, 4, node, process, NULL);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    CHECK(c.live == live);
  }
  CHECK(st == EIN_OK);
  c.fail_at = -1;
  ein_ctx_destroy(bare);
  ein_decomposition_destroy(how);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  ein_ctx *ctx = NULL;
  table = argc > 1 && strcmp(argv[1], "table") == 0;
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  if (table)
    puts("| plan for 16 places | bytes in all | between nodes, 4 ranks each | dealt in turn | "
         "mapped |\n|---|--:|--:|--:|--:|");
  test_grids(ctx);
  test_llama(ctx, table && argc > 2 ? atoi(argv[2]) : 1);
  if (!table) test_small(ctx, FEW(200));
  if (!table) test_mistakes(ctx);
  ein_ctx_destroy(ctx);
  if (!table || failures > 0)
    printf("%s %d checks\n", failures > 0 ? "FAIL" : "ok", checks);
  return failures > 0;
}
