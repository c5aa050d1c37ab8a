// Folds that places share, split into partial results and a fold of their blocks: against the
// oracle on random graphs over places that copy, and where the search has to find them.
//
//   test_scatter [cases [seed]]
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

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  return g;
}

// Runs a graph with a decomposition over p places that copy; its outputs are those of the values,
// which are of a graph with the same inputs and outputs.
static int runs_right(ein_ctx *ctx, const ein_graph *g, const ein_graph *as, const values *v,
                      const ein_decomposition *how, int p) {
  const void *in[MAX_TENSORS];
  void *out[MAX_TENSORS];
  int nin = 0, nout = 0, ok = 1;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_run run;
  ein_dist_info info;
  ein_dist_stats stats;
  memset(&desc, 0, sizeof desc), memset(&run, 0, sizeof run), memset(&stats, 0, sizeof stats);
  CHECK(ein_fabric_copying(ctx, p, &f) == EIN_OK);
  desc.fabric = &f;
  desc.decomposition = how;
  for (int t = 0; t < as->ntensor; t++) {
    if (as->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = v->data[t];
    if (as->tensor[t].role == EIN_ROLE_OUTPUT)
      out[nout++] = orc_alloc(orc_count(&as->tensor[t]), 16);
  }
  run.in = in;
  run.out = out;
  ok = ein_dist_create(ctx, g, &desc, &d) == EIN_OK && ein_dist_execute(d, &run, &stats) == EIN_OK;
  if (ok) ein_dist_info_get(d, &info);
  CHECK(!ok || info.bytes == stats.bytes);
  for (int t = 0, o = 0; t < as->ntensor; t++) {
    if (as->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    ok = ok && orc_compare_err(as->tensor[t].dtype, orc_count(&as->tensor[t]), out[o],
                               v->data[t], v->err[t]);
    free(out[o++]);
  }
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  return ok;
}

static void report(const ein_graph *g, const char *what, int n) {
  static char text[16384];
  ein_graph_print(g, text, sizeof text);
  printf("FAIL case %d: %s\n%s", n, what, text);
  failures++;
}

// A random fold of a random graph is split, however little that is worth.
static int split_one(ein_ctx *ctx, const ein_graph *g, int n, ein_graph **out) {
  eini_arena a;
  eini_respelled f;
  eini_scattering x[64];
  int found = 0;
  eini_arena_init(&a, NULL);
  CHECK(eini_respelled_find(&a, g, &f) == EIN_OK);
  for (int k = 0; k < g->nstmt; k++)
    for (int c = g->stmt[k].nfree; c < g->stmt[k].nindex; c++)
      for (int pieces = 2; pieces <= 4; pieces++)
        if (f.first[k] == k && found < 64 && eini_scatter_may(g, &g->stmt[k], c, pieces)) {
          const eini_scattering one = {k, c, pieces};
          x[found++] = one;
        }
  if (found > 0) {
    *out = eini_graph_new(ctx);
    CHECK(eini_scatter_graph(*out, g, &f, &x[n % found]) == EIN_OK);
    CHECK((*out)->nstmt > g->nstmt);
  }
  eini_arena_free(&a);
  return found > 0;
}

static void test_random(int count, uint64_t seed) {
  static char text[16384];
  static const int places[] = {2, 3, 4, 6, 8};
  int split = 0;
  for (int n = 0; n < count; n++) {
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_ctx *ctx = monoid_ctx();
    ein_graph *g = random_graph(ctx, (int)draw(1, 5)), *s = NULL, *again = NULL;
    if (g != NULL && split_one(ctx, g, n, &s)) {
      ein_decompose_desc d;
      ein_decomposition *how = NULL;
      ein_program_desc pd;
      values v;
      memset(&d, 0, sizeof d), memset(&pd, 0, sizeof pd);
      d.p = places[draw(0, 4)];
      d.cost = chance(50) ? EIN_COST_BYTES : EIN_COST_SECONDS;
      values_make(g, seed + (uint64_t)n, &v);
      CHECK(ein_decompose(ctx, s, &d, &how) == EIN_OK);
      checks++;
      if (!runs_right(ctx, s, g, &v, how, (int)d.p)) report(s, "a split fold differs", n);
      CHECK(ein_graph_print(s, text, sizeof text) < sizeof text);  // it is a program
      pd.text = text;
      if (g->nmonoid == 0 && ein_graph_parse(ctx, &pd, &again) != EIN_OK)
        report(s, ein_ctx_message(ctx), n);
      ein_graph_destroy(again);
      ein_decomposition_destroy(how);
      values_free(g, &v);
      split++;
    }
    ein_graph_destroy(s);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
  printf("%d of %d graphs have a fold that is split\n", split, count);
  CHECK(split * 20 > count);
}

// ---- what the search finds ----

static double cost_of(ein_ctx *ctx, const ein_graph *g, const ein_decompose_desc *d) {
  ein_decomposition *how = NULL;
  ein_decomp_info info;
  CHECK(ein_decompose(ctx, g, d, &how) == EIN_OK);
  ein_decomposition_info(how, &info);
  ein_decomposition_destroy(how);
  return info.seconds > 0 ? info.seconds : info.total;
}

// Pieces of an index in the statement that defines a tensor.
static int64_t pieces_of(const ein_graph *g, const ein_decomposition *how, const char *out,
                         const char *index) {
  for (int k = 0; k < g->nstmt; k++) {
    ein_parts p;
    if (strcmp(g->tensor[g->stmt[k].out].name, out) != 0) continue;
    CHECK(ein_decomposition_parts(how, k, &p) == EIN_OK);
    for (int i = 0; i < p.nindex; i++)
      if (strcmp(g->stmt[k].index[i].name, index) == 0) return p.cut[i];
  }
  return 0;
}

static const char mlp[] =
    "input X[s=%d,a=%d], G[a], W[a,f=%d], V[f,a] : f32\n"
    "M[s] = mean[a](X[s,a]^2)\nN[s,a] = X[s,a] * rsqrt(M[s] + 1e-6) * G[a]\n"
    "H[s,f] = sum[a](N[s,a]*W[a,f])\nJ[s,f] = silu(H[s,f])\n"
    "K[s,a] = sum[f](J[s,f]*V[f,a])\nY[s,a] = X[s,a] + K[s,a]\noutput Y\n";

// Weights that are held in columns and rows, as Megatron's, and rows of a sequence: what is between
// the products is cut along the sequence, sums are scattered over it, and rows are gathered.
static void test_megatron(void) {
  static const char *const pin[] = {"X[s=8]", "W[f=8]", "V[f=8]"};
  for (int p = 4; p <= 8; p *= 2) {
    char text[1024];
    ein_ctx *ctx = monoid_ctx();
    ein_decompose_desc d;
    ein_decomposition *how = NULL;
    ein_graph *s = NULL;
    snprintf(text, sizeof text, mlp, 2048, 4096, 11008);
    ein_graph *g = parse(ctx, text);
    memset(&d, 0, sizeof d);
    d.p = p;
    d.cost = EIN_COST_SECONDS;
    d.npin = p == 8 ? 3 : 0;
    d.pin = pin;
    CHECK(ein_graph_scatter(ctx, g, &d, &s) == EIN_OK);
    if (p == 8) CHECK(s != NULL);
    if (s != NULL) {
      CHECK(cost_of(ctx, s, &d) < cost_of(ctx, g, &d));
      CHECK(ein_decompose(ctx, s, &d, &how) == EIN_OK);
    }
    if (p == 8 && how != NULL) {
      CHECK(pieces_of(s, how, "M", "s") == 8 && pieces_of(s, how, "N", "s") == 8);
      CHECK(pieces_of(s, how, "H", "f") == 8 && pieces_of(s, how, "J", "f") == 8);
      CHECK(pieces_of(s, how, "K", "s") == 8 && pieces_of(s, how, "Y", "s") == 8);
      CHECK(pieces_of(s, how, "K_p1", "f_1") > 1);
    }
    ein_decomposition_destroy(how);
    ein_graph_destroy(s);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// Small enough to run: the result is that of the program as written.
static void test_runs(void) {
  char text[1024];
  ein_machine slow;
  ein_decompose_desc d;
  static const char *const pin[] = {"X[s=4]", "W[f=4]", "V[f=4]"};
  ein_ctx *ctx = monoid_ctx();
  ein_decomposition *how = NULL;
  ein_graph *s = NULL;
  values v;
  snprintf(text, sizeof text, mlp, 16, 32, 256);
  ein_graph *g = parse(ctx, text);
  memset(&d, 0, sizeof d), memset(&slow, 0, sizeof slow);
  slow.latency = slow.overhead = 1e-12;
  slow.bandwidth = 1e6;
  d.p = 4, d.cost = EIN_COST_SECONDS, d.machine = &slow, d.npin = 3, d.pin = pin;
  values_make(g, 5, &v);
  CHECK(ein_graph_scatter(ctx, g, &d, &s) == EIN_OK && s != NULL);
  CHECK(ein_decompose(ctx, s, &d, &how) == EIN_OK);
  CHECK(runs_right(ctx, s, g, &v, how, 4));
  ein_decomposition_destroy(how);
  ein_graph_destroy(s);
  values_free(g, &v);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// What is not split: one place, the paper's models, graphs whose order is fixed; and mistakes.
static void test_none(void) {
  ein_ctx *ctx = monoid_ctx();
  ein_graph *g = parse(ctx, "input A[i=8,k=64], B[k,j=8] : f32\nC[i,j] = sum[k](A[i,k]*B[k,j])\n"
                       "output C\n"), *s = NULL, *fixed = NULL;
  ein_decompose_desc d;
  memset(&d, 0, sizeof d);
  d.p = 1;
  d.cost = EIN_COST_BYTES;
  CHECK(ein_graph_scatter(ctx, g, &d, &s) == EIN_OK && s == NULL);
  d.p = 4;
  d.cost = EIN_COST_PAPER;
  CHECK(ein_graph_scatter(ctx, g, &d, &s) == EIN_OK && s == NULL);
  d.cost = EIN_COST_BYTES;
  CHECK(ein_graph_deterministic(ctx, g, NULL, &fixed) == EIN_OK);
  CHECK(ein_graph_scatter(ctx, fixed, &d, &s) == EIN_OK && s == NULL);
  CHECK(ein_graph_scatter(ctx, g, &d, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_scatter(ctx, NULL, &d, &s) == EIN_ERR_ARGUMENT && s == NULL);
  d.p = 0;
  CHECK(ein_graph_scatter(ctx, g, &d, &s) == EIN_ERR_ARGUMENT && s == NULL);
  ein_graph_destroy(fixed);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// Every allocation fails once.
static void test_memory(void) {
  static const char *const pin[] = {"X[s=4]", "W[f=4]", "V[f=4]"};
  char text[1024];
  snprintf(text, sizeof text, mlp, 16, 12, 24);
  ein_graph *g = parse(NULL, text);
  for (long n = 0;; n++) {
    counter count = {0, n, 0};
    ein_ctx *ctx = test_ctx(1, &count);
    ein_graph *s = NULL;
    ein_decompose_desc d;
    memset(&d, 0, sizeof d);
    d.p = 4, d.cost = EIN_COST_BYTES, d.npin = 3, d.pin = pin;
    const ein_status st = ctx == NULL ? EIN_ERR_NO_MEMORY : ein_graph_scatter(ctx, g, &d, &s);
    checks++;
    if (st != EIN_OK && (st != EIN_ERR_NO_MEMORY || s != NULL)) failures++;
    const int done = st == EIN_OK && count.calls <= n;
    ein_graph_destroy(s);
    ein_ctx_destroy(ctx);
    if (count.live != 0) failures++;
    if (done || failures > 20) break;
  }
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(400);
  const uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  printf("seed %llu\n", (unsigned long long)seed);
  test_none();
  test_megatron();
  test_runs();
  test_memory();
  test_random(count, seed);
  if (failures > 0) return printf("%d of %d checks failed\n", failures, checks), 1;
  printf("ok %d checks\n", checks);
  return 0;
}
