// Decompositions: every worked number of the EinDecomp paper, optimality against brute force on
// random graphs, constraints and their mistakes, and every allocation failing once.
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"
#include "util.h"

#include <stdlib.h>

static int checks, failures;

#define CHECK(cond)                                              \
  do {                                                           \
    checks++;                                                    \
    if (!(cond)) {                                               \
      failures++;                                                \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);  \
    }                                                            \
  } while (0)

static ein_ctx *ctx;

static ein_graph *program(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) {
    printf("%s\n%s\n", text, ein_ctx_message(ctx));
    exit(1);
  }
  return g;
}

// ---- worked numbers of the paper ----------------------------------------------------------------

// The cost of vectors given for statements, or the best (given NULL).
static double cost_of(const ein_graph *g, int64_t p, ein_cost cost, int n,
                      const char *const *given) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = cost;
  d.strict = 1;
  d.nparts = n;
  d.parts = given;
  d.method = n > 0 ? "given" : NULL;
  if (ein_decompose(ctx, g, &d, &x) != EIN_OK) {
    printf("%s\n", ein_ctx_message(ctx));
    failures++;
    return -1;
  }
  ein_decomposition_info(x, &info);
  double sum = 0;
  for (int i = 0; i < info.nstmt; i++) {
    ein_parts parts;
    CHECK(ein_decomposition_parts(x, i, &parts) == EIN_OK);
    sum += parts.join + parts.agg + parts.repart;
    CHECK(parts.ntask <= p);
  }
  CHECK(fabs(sum - info.total) <= 1e-9 * sum);
  CHECK(info.proved && info.lower == info.total && info.gap == 0);
  ein_decomposition_destroy(x);
  return info.total;
}

static double one(const ein_graph *g, int64_t p, const char *given) {
  return cost_of(g, p, EIN_COST_PAPER, given != NULL, &given);
}

static void paper_numbers(void) {
  ein_graph *g = program("input A[i=8,j=8], B[j,k=8] : f64\nC[i,k] = A[i,j]*B[j,k]\n");
  CHECK(one(g, 16, "C[i=4,k=4]") == 512);
  CHECK(one(g, 16, "C[i=2,j=2,k=4]") == 16 * (16 + 8) + 64);
  CHECK(one(g, 8, "C[i=2,j=2,k=2]") == 256 + 64);
  CHECK(one(g, 8, "C[i=1,j=2,k=4]") == 320 + 64);
  CHECK(one(g, 8, "C[i=1,j=4,k=2]") == 192 + 192);
  CHECK(one(g, 8, "C[i=2,k=4]") == 384);
  CHECK(one(g, 8, "C[k=8]") == 576);
  CHECK(one(g, 8, "C[j=8]") == 128 + 448);
  CHECK(one(g, 8, NULL) == 320);
  CHECK(one(g, 16, NULL) == 448);
  ein_graph_destroy(g);
  g = program("input A[i=64,j=64], B[j,k=64] : f64\nC[i,k] = A[i,j]*B[j,k]\n");
  CHECK(one(g, 8, NULL) == 20480);
  ein_graph_destroy(g);
  g = program("input A[i=8,j=8], B[j,k=8], C[k,l=8] : f64\n"
              "T[i,k] = A[i,j]*B[j,k]\nY[i,l] = T[i,k]*C[k,l]\n");
  CHECK(one(g, 4, NULL) == 512);
  CHECK(one(g, 8, NULL) == 640);
  CHECK(one(g, 16, NULL) == 896);
  ein_graph_destroy(g);
  // The producer leaves [2,4], the consumer needs [4,1]: np 8, nc 16, nint 4.
  static const char *const repart[] = {"T[i=2,j=4]", "Y[i=4]"};
  g = program("input X[i=8,j=8] : f64\nT[i,j] = exp(X[i,j])\nY[i,j] = exp(T[i,j])\n");
  CHECK(cost_of(g, 8, EIN_COST_PAPER, 2, repart) == 64 + 64 + 320);
  CHECK(cost_of(g, 8, EIN_COST_PAPER_CODE, 2, repart) == 64 + 64 + 384);
  ein_graph_destroy(g);
  static const char *const sum[] = {
      "input A[i=16,j=16], B[j,k=16], C[i,l=16], D[l,m=16], E[m,k] : f64\n",
      "input A[i=64,j=8], B[j,k=64], C[i,l=64], D[l,m=512], E[m,k] : f64\n"};
  static const double totals[2][3] = {{3584, 5120, 6656}, {109056, 138240, 180224}};
  for (int skew = 0; skew < 2; skew++) {
    char text[512];
    snprintf(text, sizeof text, "%s%s", sum[skew], "P[i,k] = A[i,j]*B[j,k]\nQ[l,k] = "
             "D[l,m]*E[m,k]\nR[i,k] = C[i,l]*Q[l,k]\nY[i,k] = P[i,k] + R[i,k]\noutput Y\n");
    g = program(text);
    for (int k = 0; k < 3; k++) {
      double total = one(g, 4 << k, NULL);
      CHECK(total == totals[skew][k]);
      if (total != totals[skew][k]) printf("  %g, not %g\n", total, totals[skew][k]);
    }
    ein_graph_destroy(g);
  }
}

// Counts of viable vectors: (n+D-1)! / (n! (D-1)!) for 2^n tasks over D indices.
static void counts(void) {
  static const struct { const char *text; int64_t p, count; } c[] = {
      {"input X[i=8,j=8], Y[j,k=8] : f64\nZ[i,k] = X[i,j]*Y[j,k]\n", 8, 10},
      {"input X[a=1024,b=1024,c=1024], Y[d=1024,e=1024,f=1024] : f64\n"
       "Z[a,b,d,e] = sum[c,f](X[a,b,c]*Y[d,e,f])\n", 1024, 3003},
      {"input X[i=9,j=5] : f64\nZ[i,j] = exp(X[i,j])\n", 6, 3},   // (2,3), (3,2), (6,1)
      {"input X[i=2,j=3] : f64\nZ[i,j] = exp(X[i,j])\n", 16, 1},  // 6 pieces at most
      {"input X[i=2,j=3] : f64\nZ[i] = argmax[j](X[i,j])\n", 4, 1},
      {"input X[i=0] : f64\nZ[i] = exp(X[i])\n", 4, 1}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    ein_graph *g = program(c[i].text);
    ein_decompose_desc d;
    ein_decomposition *x;
    ein_decomp_info info;
    memset(&d, 0, sizeof d);
    d.p = c[i].p;
    d.strict = 1;
    CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
    ein_decomposition_info(x, &info);
    CHECK(info.nvector == c[i].count);
    if (info.nvector != c[i].count) printf("  case %d: %d\n", (int)i, (int)info.nvector);
    ein_decomposition_destroy(x);
    ein_graph_destroy(g);
  }
}

int main(void) {
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  paper_numbers();
  counts();
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
