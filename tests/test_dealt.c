// SPDX-License-Identifier: MIT
//
// Inputs that are dealt out over places: each element lies at one of them, a run moves what the
// model of bytes says, and results are the brute-force oracle's.
//
//   test_dealt [count] [seed]
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"

static ein_ctx *ctx;
static int64_t moved;

// How many places have each element of a tensor.
static void each_once(const ein_dist *d, const ein_graph *g, int t, int places) {
  const eini_tensor *x = &g->tensor[t];
  int64_t n = 1, origin[8], extent[8], count, wrong = 0;
  for (int r = 0; r < x->rank; r++) n *= x->shape[r];
  unsigned char *has = (unsigned char *)calloc((size_t)n + 1, 1);
  for (int q = 0; q < places; q++) {
    CHECK(ein_dist_block(d, t, q, origin, extent, &count) == EIN_OK);
    for (int64_t i = 0; i < count; i++) {
      int64_t left = i, at = 0, step = 1;
      for (int r = x->rank - 1; r >= 0; r--) {
        at += (origin[r] + left % extent[r]) * step;
        left /= extent[r];
        step *= x->shape[r];
      }
      has[at]++;
    }
  }
  for (int64_t i = 0; i < n; i++) wrong += has[i] != 1;
  CHECK(wrong == 0);
  free(has);
}

// A graph over p places; exact: inputs are read once, and long enough to be shared.
static void deal(const char *text, int p, int exact) {
  ein_program_desc pd;
  ein_decompose_desc dd;
  ein_dist_desc desc;
  ein_decomposition *how;
  ein_decomp_info info;
  ein_dist_stats stats;
  ein_dist_info plan;
  ein_sim_info sim;
  ein_graph *g;
  ein_fabric f;
  ein_dist *d;
  ein_run run;
  void *data[12], *out[4], *want[4];
  const void *in[8];
  int64_t size[4];
  int nin = 0, nout = 0, ok = 1;
  memset(&pd, 0, sizeof pd), memset(&dd, 0, sizeof dd), memset(&desc, 0, sizeof desc);
  memset(&stats, 0, sizeof stats), memset(&run, 0, sizeof run);
  pd.text = text;
  CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
  if (g == NULL) printf("%s%s\n", text, ein_ctx_message(ctx));
  if (g == NULL) return;
  for (int t = 0; t < g->ntensor; t++) {
    int64_t n = 1;
    for (int r = 0; r < g->tensor[t].rank; r++) n *= g->tensor[t].shape[r];
    data[t] = calloc((size_t)n + 1, 8);
    if (g->tensor[t].role == EIN_ROLE_INPUT) {
      orc_random_fill(EIN_F64, n, data[t], 7 + (uint64_t)t);
      in[nin++] = data[t];
    } else if (g->tensor[t].role == EIN_ROLE_OUTPUT) {
      size[nout] = n;
      want[nout] = data[t];
      out[nout++] = calloc((size_t)n + 1, 8);
    }
  }
  orc_eval(g, data, NULL);
  dd.p = p;
  dd.cost = EIN_COST_BYTES;
  dd.inputs = EIN_INPUTS_DEALT;
  CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
  ein_decomposition_info(how, &info);
  CHECK(ein_simulate(ctx, g, how, NULL, &sim) == EIN_OK);
  CHECK(ein_fabric_copying(ctx, p, &f) == EIN_OK);
  desc.fabric = &f;
  desc.decomposition = how;
  run.in = in;
  run.out = out;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_info_get(d, &plan) == EIN_OK && ein_dist_execute(d, &run, &stats) == EIN_OK);
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_INPUT) each_once(d, g, t, p);
  for (int k = 0; k < nout; k++) CHECK(orc_compare(EIN_F64, size[k], out[k], want[k], 4000));
  CHECK(plan.bytes == stats.bytes && sim.join + sim.agg == (double)stats.bytes);
  CHECK(sim.messages == (double)stats.messages && sim.peak_bytes == (double)plan.peak_bytes);
  moved += stats.bytes;
  if (exact) ok = fabs(info.total - (double)stats.bytes) <= 1e-9 * info.total + 1e-6;
  CHECK(ok);
  if (!ok) printf("%d places: %g planned, %g moved\n%s", p, info.total, (double)stats.bytes, text);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_decomposition_destroy(how);
  for (int t = 0; t < g->ntensor; t++) free(data[t]);
  for (int k = 0; k < nout; k++) free(out[k]);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  static const char *const product[] = {
      "input A[i=%d,j=%d], B[j,k=%d] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
      ("input A[i=%d,j=%d], B[j,k=%d], C[k,l=5] : f64\n"
       "T[i,k] = A[i,j]*B[j,k]\nY[i,l] = T[i,k]*C[k,l]\noutput Y\n"),
      "input X[i=%d,j=%d,k=%d], A[j,r=3], B[k,r] : f64\nY[i,r] = X[i,j,k]*A[j,r]*B[k,r]\n",
      "input X[i=%d,j=%d,k=%d], v[k] : f64\nY[i,j] = X[i,j,k]*v[k]\n",
      "input X[i=%d,j=%d,k=%d], Z[i,j,k] : f64\ns = sum[i,j,k](X[i,j,k]*Z[i,j,k])\noutput s\n",
      "input X[i=%d,j=%d,k=%d], a[] : f64\nY[i,j,k] = max(X[i,j,k], a)\n",
      "input X[b=%d,i=%d,j=%d], Z[b,j] : f64\nY[b,i] = max[j](X[b,i,j] - Z[b,j])\n"};
  static const char *const other[] = {  // with halos, strides, diagonals, and inputs read twice
      "input X[n=40], w[k=3] : f64\nY[i=38] = sum[k](X[i+k]*w[k])\n",
      "input X[i=23,j=18] : f64\nD[i,j] = X[i,j]*2\nE[i] = X[i,0] + X[i,17]\noutput D, E\n",
      "input X[n=19,f=4] : f64\nD[i,j] = sum[k]((X[i,k] - X[j,k])^2)\n",
      "input X[m=30,n=30] : f64\nY[i=15] = X[2*i,2*i]\nZ[j,i] = X[i,j]\noutput Y, Z\n",
      "input X[i=3,j=2], W[j,k=2] : f64\nY[i,k] = X[i,j]*W[j,k]\n"};
  const int count = argc > 1 ? atoi(argv[1]) : FEW(200);
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  for (int i = 0; i < count; i++) {
    const int p = (int)draw(1, 16);
    char text[400];
    snprintf(text, sizeof text, product[i % 7], (int)draw(p, p + 9), (int)draw(p, p + 9),
             (int)draw(p, p + 9));
    deal(text, p, 1);
  }
  for (int p = 2; p <= 8; p++)
    for (int i = 0; i < 5; i++) deal(other[i], p, 0);
  CHECK(moved > 0);
  ein_ctx_destroy(ctx);
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
