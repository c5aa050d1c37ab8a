// SPDX-License-Identifier: MIT
//
// Bytes from a given layout: EinDecomp's plans, by bytes, against the best of all cuts.
//
//   layouts [P ..]      places; default 4 8 16 64
//
// Every input lies in p blocks of its first axis, results stay where they are made. Statements are
// those of Deinsum's and DISTAL's lists, scaled. `plan`: what the plan moves in all; `busiest`:
// what its busiest place receives and sends, by the simulation, and for p <= 16 as counted in a run
// over places that copy (whose bytes are those of MPI ranks, see tests/test_mpi.c); `best`: the
// least of all vectors of pieces whose product is p, of all statements in all combinations.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"

enum { STATEMENTS = 3, INDICES = 10, TENSORS = 16, MOST = 4096 };

static const struct {
  const char *name, *text;
} list[] = {
    {"1MM", "input A[i=192,j=192], B[j,k=192] : f32\nY[i,k] = A[i,j]*B[j,k]\n"},
    {"1MM, 1024 x 64 x 64", "input A[i=1024,j=64], B[j,k=64] : f32\nY[i,k] = A[i,j]*B[j,k]\n"},
    {"2MM", "input A[i=192,j=192], B[j,k=192], C[k,l=192] : f32\nT[i,k] = A[i,j]*B[j,k]\n"
            "Y[i,l] = T[i,k]*C[k,l]\n"},
    {"3MM", "input A[i=192,j=192], B[j,k=192], C[k,l=192], D[l,m=192] : f32\n"
            "T[i,k] = A[i,j]*B[j,k]\nU[i,l] = T[i,k]*C[k,l]\nY[i,m] = U[i,l]*D[l,m]\n"},
    {"MTTKRP-03-M0", "input X[i=64,j=64,k=64], A[j,a=24], B[k,a] : f32\n"
                     "Y[i,a] = X[i,j,k]*A[j,a]*B[k,a]\n"},
    {"MTTKRP-03-M1", "input X[i=64,j=64,k=64], A[i,a=24], B[k,a] : f32\n"
                     "Y[j,a] = X[i,j,k]*A[i,a]*B[k,a]\n"},
    {"MTTKRP-03-M2", "input X[i=64,j=64,k=64], A[i,a=24], B[j,a] : f32\n"
                     "Y[k,a] = X[i,j,k]*A[i,a]*B[j,a]\n"},
    {"MTTKRP-05-M0", "input X[i=64,j=8,k=8,l=8,m=8], A[j,a=24], B[k,a], C[l,a], D[m,a] : f32\n"
                     "Y[i,a] = X[i,j,k,l,m]*A[j,a]*B[k,a]*C[l,a]*D[m,a]\n"},
    {"MTTKRP-05-M2", "input X[i=64,j=8,k=8,l=8,m=8], A[i,a=24], B[j,a], C[l,a], D[m,a] : f32\n"
                     "Y[k,a] = X[i,j,k,l,m]*A[i,a]*B[j,a]*C[l,a]*D[m,a]\n"},
    {"MTTKRP-05-M4", "input X[i=64,j=8,k=8,l=8,m=8], A[i,a=24], B[j,a], C[k,a], D[l,a] : f32\n"
                     "Y[m,a] = X[i,j,k,l,m]*A[i,a]*B[j,a]*C[k,a]*D[l,a]\n"},
    {"TTMc-03", "input X[i=64,j=64,k=64], A[j,b=16], B[k,c=16] : f32\n"
                "Y[i,b,c] = X[i,j,k]*A[j,b]*B[k,c]\n"},
    {"TTM", "input X[i=64,j=64,k=64], A[k,l=24] : f32\nY[i,j,l] = X[i,j,k]*A[k,l]\n"},
    {"TTV", "input X[i=64,j=64,k=64], A[k] : f32\nY[i,j] = X[i,j,k]*A[k]\n"},
    {"inner product", "input X[i=64,j=64,k=64], Z[i,j,k] : f32\n"
                      "Y = sum[i,j,k](X[i,j,k]*Z[i,j,k])\n"}};

static void die(ein_ctx *ctx, const char *what) {
  fprintf(stderr, "layouts: %s: %s\n", what, ein_ctx_message(ctx));
  exit(1);
}

// The first axis of every input in p pieces, or in as many as it has elements.
static int pins_of(const ein_graph *g, int p, char pin[TENSORS][64], const char **pins) {
  int n = 0;
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    if (e->role != EIN_ROLE_INPUT) continue;
    snprintf(pin[n], 64, "%.40s[0=%d]", e->name, e->shape[0] < p ? (int)e->shape[0] : p);
    pins[n] = pin[n];
    n++;
  }
  return n;
}

typedef struct search {
  ein_ctx *ctx;
  const ein_graph *g;
  ein_decompose_desc desc;
  char part[STATEMENTS][128];
  const char *parts[STATEMENTS];
  int64_t cut[INDICES];
  double best, ways;
} search;

static double total_bytes(search *s) {
  ein_decomposition *how = NULL;
  ein_decomp_info info;
  if (ein_decompose(s->ctx, s->g, &s->desc, &how) != EIN_OK) return INFINITY;
  ein_decomposition_info(how, &info);
  ein_decomposition_destroy(how);
  return info.total;
}

// All vectors of statement k, then of those behind it.
static void every_cut(search *s, int k, int i, int64_t left) {
  const eini_stmt *e = &s->g->stmt[k];
  if (i < e->nindex) {
    for (int64_t c = 1; c <= left && c <= e->index[i].extent; c++) {
      if (left % c != 0) continue;
      s->cut[i] = c;
      every_cut(s, k, i + 1, left / c);
    }
    return;
  }
  if (left > 1) return;
  size_t n = (size_t)snprintf(s->part[k], 128, "%.40s[", s->g->tensor[e->out].name);
  for (int c = 0, some = 0; c < e->nindex; c++)
    if (s->cut[c] > 1)
      n += (size_t)snprintf(s->part[k] + n, 128 - n, "%s%.20s=%d", some++ ? "," : "",
                            e->index[c].name, (int)s->cut[c]);
  snprintf(s->part[k] + n, 128 - n, "]");
  if (k + 1 < s->g->nstmt) {
    every_cut(s, k + 1, 0, s->desc.p);
    return;
  }
  const double bytes = total_bytes(s);
  if (bytes < s->best) s->best = bytes;
  s->ways++;
}

static double place_bytes[MOST];

static void moved(void *user, const ein_sim_move *m) {
  (void)user;
  place_bytes[m->from] += m->bytes;
  place_bytes[m->to] += m->bytes;
}

// What a run over places that copy counts at the busiest; its bytes in all.
static double run_bytes(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *how, int p,
                        double *all) {
  static ein_place_stats place[MOST];
  void *data[TENSORS], *out[TENSORS];
  const void *in[TENSORS];
  int nin = 0, nout = 0, n = 0;
  double most = 0;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_run run;
  ein_dist_stats stats;
  memset(&desc, 0, sizeof desc), memset(&run, 0, sizeof run), memset(&stats, 0, sizeof stats);
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    size_t bytes = ein_dtype_size(e->dtype);
    for (int r = 0; r < e->rank; r++) bytes *= (size_t)e->shape[r];
    if (e->role != EIN_ROLE_INPUT && e->role != EIN_ROLE_OUTPUT) continue;
    data[n] = calloc(1, bytes);
    if (e->role == EIN_ROLE_INPUT) in[nin++] = data[n++];
    else out[nout++] = data[n++];
  }
  stats.nplace = p;
  stats.place = place;
  desc.fabric = &f;
  desc.decomposition = how;
  run.in = in;
  run.out = out;
  if (ein_fabric_copying(ctx, p, &f) != EIN_OK ||
      ein_dist_create(ctx, g, &desc, &d) != EIN_OK || ein_dist_execute(d, &run, &stats) != EIN_OK)
    die(ctx, "a run");
  for (int q = 0; q < p; q++)
    most = fmax(most, (double)(place[q].received_bytes + place[q].sent_bytes));
  *all = (double)stats.bytes;
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  while (n > 0) free(data[--n]);
  return most;
}

static void row(ein_ctx *ctx, int k, int p) {
  char pin[TENSORS][64];
  const char *pins[TENSORS];
  ein_program_desc pd;
  ein_graph *g = NULL;
  ein_decomposition *how = NULL;
  ein_sim_desc sd;
  ein_sim_info sim;
  search s;
  double most = 0, all = 0, ran = 0;
  memset(&pd, 0, sizeof pd), memset(&sd, 0, sizeof sd), memset(&s, 0, sizeof s);
  pd.text = list[k].text;
  if (ein_graph_parse(ctx, &pd, &g) != EIN_OK) die(ctx, list[k].name);
  s.ctx = ctx;
  s.g = g;
  s.desc.p = p;
  s.desc.cost = EIN_COST_BYTES;
  s.desc.npin = pins_of(g, p, pin, pins);
  s.desc.pin = pins;
  s.best = INFINITY;
  if (ein_decompose(ctx, g, &s.desc, &how) != EIN_OK) die(ctx, list[k].name);
  memset(place_bytes, 0, sizeof place_bytes);
  sd.move_fn = moved;
  if (ein_simulate(ctx, g, how, &sd, &sim) != EIN_OK) die(ctx, "simulation");
  for (int q = 0; q < p; q++) most = fmax(most, place_bytes[q]);
  if (p <= 16) {
    ran = run_bytes(ctx, g, how, p, &all);
    if (ran != most || all != sim.join + sim.agg) die(ctx, "a run moves something else");
  }
  s.desc.method = "given";
  s.desc.nparts = (int)g->nstmt;
  s.desc.parts = s.parts;
  for (int i = 0; i < STATEMENTS; i++) s.parts[i] = s.part[i];
  every_cut(&s, 0, 0, p);
  const double plan = sim.join + sim.agg;
  printf("| %s | %d | %.0f | %.0f | %s | %.0f | %.0f | %.3f |\n", list[k].name, p, plan, most,
         p <= 16 ? "run" : "sim", s.best, s.ways, s.best > 0 ? plan / s.best : plan > 0 ? INFINITY
                                                                                     : 1.0);
  fflush(stdout);
  ein_decomposition_destroy(how);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  static const int places[] = {4, 8, 16, 64};
  ein_ctx *ctx = NULL;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  puts("| statement | places | plan | busiest | by | best | ways | plan / best |\n"
       "|---|--:|--:|--:|---|--:|--:|--:|");
  for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
    for (int i = 1; i < argc; i++) row(ctx, (int)k, atoi(argv[i]));
    for (int i = 0; argc == 1 && i < 4; i++) row(ctx, (int)k, places[i]);
  }
  ein_ctx_destroy(ctx);
  return 0;
}
