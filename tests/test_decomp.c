// Decompositions: every worked number of the EinDecomp paper, optimality against brute force on
// random graphs, constraints and their mistakes, and every allocation failing once.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"
#include "../examples/models/llama.h"

#include <stdlib.h>
#include <time.h>

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

// Kernel calls of a vector, N = prod d[lX (.) lY], and bounds projected to the labels of a fold.
static void projections(void) {
  static const char *const given = "C[i=16,j=2,k=4]";
  ein_graph *g = program("input A[i=64,j=64], B[j,k=64] : f64\nC[i,k] = A[i,j]*B[j,k]\n");
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_parts parts;
  ein_decomp_stmt s;
  memset(&d, 0, sizeof d);
  d.p = 128;
  d.method = "given";
  d.nparts = 1;
  d.parts = &given;
  CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
  CHECK(ein_decomposition_parts(x, 0, &parts) == EIN_OK && parts.ntask == 128);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
  g = program("input X[i=10,j=100,b=20], Y[j,b,k=2000] : f32\n"
              "Z[i,k] = sum[b,j](X[i,j,b]*Y[j,b,k])\n");
  memset(&d, 0, sizeof d);
  d.p = 4;
  CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
  CHECK(ein_decomposition_stmt(x, 0, &s) == EIN_OK && s.nindex == 4 && s.nfree == 2);
  CHECK(s.extent[0] == 10 && s.extent[1] == 2000 && s.extent[2] == 20 && s.extent[3] == 100);
  CHECK(strcmp(s.index[2], "b") == 0 && strcmp(s.index[3], "j") == 0);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
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

// ---- random programs and brute force ------------------------------------------------------------

#define STMTS 6
#define WAYS 400

// A random program of up to STMTS statements over indices a..e; its text is in `text`. Each tensor
// is read once when tree is set.
static ein_graph *random_program(int nstmt, int tree, int even, char *text, size_t size) {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 8, 12, 16}, twelves[] = {12, 24, 48, 96};
  char shape[3 + STMTS][8], used[3 + STMTS];
  int64_t extent[5];
  size_t n = 0;
  memset(used, 0, sizeof used);
  for (int i = 0; i < 5; i++) extent[i] = even ? twelves[draw(0, 3)] : extents[draw(0, 8)];
  for (int t = 0; t < 3; t++) {
    int len = 0;
    for (int i = 0; i < 5 && len < 3; i++)
      if (chance(45)) shape[t][len++] = (char)('a' + i);
    if (len == 0) shape[t][len++] = 'a';
    shape[t][len] = 0;
    n += (size_t)snprintf(text + n, size - n, "input X%d[", t);
    for (int i = 0; i < len; i++)
      n += (size_t)snprintf(text + n, size - n, "%s%c=%d", i ? "," : "", shape[t][i],
                            (int)extent[shape[t][i] - 'a']);
    n += (size_t)snprintf(text + n, size - n, "] : f32\n");
  }
  for (int k = 0; k < nstmt; k++) {
    int nop = (int)draw(1, 3), op[3], in_use = 0, len = 0, nred = 0;
    char *out = shape[3 + k], red[8];
    for (int i = 0; i < nop; i++) {
      do op[i] = chance(60) && k > 0 ? (int)draw(eini_max64(3, k), 2 + k) : (int)draw(0, 2 + k);
      while (tree && op[i] >= 3 && used[op[i]]);
      if (op[i] >= 3) used[op[i]] = 1;
      for (const char *s = shape[op[i]]; *s; s++) in_use |= 1 << (*s - 'a');
    }
    for (int i = 0; i < 5; i++) {
      if ((in_use >> i & 1) == 0) continue;
      if (len < 3 && chance(65)) out[len++] = (char)('a' + i);
      else red[nred++] = (char)('a' + i);
    }
    out[len] = red[nred] = 0;
    n += (size_t)snprintf(text + n, size - n, "T%d[", 3 + k);
    for (int i = 0; i < len; i++)
      n += (size_t)snprintf(text + n, size - n, "%s%c", i ? "," : "", out[i]);
    n += (size_t)snprintf(text + n, size - n, "] = %s", nred == 0 ? "(" : chance(80) ? "sum[" :
                          chance(70) ? "max[" : "var[");
    for (int i = 0; i < nred; i++)
      n += (size_t)snprintf(text + n, size - n, "%s%c%s", i ? "," : "", red[i],
                            i == nred - 1 ? "](" : "");
    for (int i = 0; i < nop; i++) {
      n += (size_t)snprintf(text + n, size - n, "%s%c%d[", i ? " * " : "", op[i] < 3 ? 'X' : 'T',
                            op[i]);
      for (const char *s = shape[op[i]]; *s; s++)
        n += (size_t)snprintf(text + n, size - n, "%s%c", s == shape[op[i]] ? "" : ",", *s);
      n += (size_t)snprintf(text + n, size - n, "]");
    }
    n += (size_t)snprintf(text + n, size - n, ")\n");
  }
  return program(text);
}

// All viable vectors by trying every combination of pieces; even: those that divide extents first.
static int brute_ways(const eini_stmt *s, int64_t p, int prefer_even, int64_t way[WAYS][8]) {
  int64_t limit[8], cut[8], best = 0;
  int n = 0, best_even = 0;
  for (int c = 0; c < s->nindex; c++) {
    limit[c] = eini_min64(p, eini_max64(1, s->index[c].extent));
    cut[c] = 1;
  }
  for (int c = 0; c >= 0;) {
    int64_t tasks = 1;
    int even = 1;
    for (c = 0; c < s->nindex; c++) {
      tasks *= cut[c];
      even &= !prefer_even || s->index[c].extent % cut[c] == 0;
    }
    if (tasks <= p && (tasks > best || (tasks == best && even > best_even))) {
      best = tasks;
      best_even = even;
      n = 0;
    }
    if (tasks == best && even == best_even && n < WAYS) {
      memset(way[n], 0, sizeof way[n]);
      memcpy(way[n++], cut, (size_t)s->nindex * sizeof *cut);
    }
    for (c = s->nindex - 1; c >= 0 && ++cut[c] > limit[c]; c--) cut[c] = 1;
  }
  return n;
}

// Pieces of axis r under a map of plain labels.
static double side(const eini_stmt *s, const eini_map *m, int r, const int64_t *cut,
                   int64_t *pieces) {
  for (int c = 0; c < s->nindex; c++) {
    if (eini_map_coef(m, r, c) == 0) continue;
    if (pieces != NULL) *pieces *= cut[c];
    return (double)s->index[c].extent / (double)cut[c];
  }
  return 0;
}

static int same_operand(const eini_stmt *s, int j, int k) {
  return s->operand[j] == s->operand[k] && eini_map_equal(&s->proj[j], &s->proj[k]);
}

static double brute_vertex(const eini_stmt *s, const int64_t *cut) {
  double tasks = 1, nagg = 1, read = 0, nz = 1;
  for (int c = 0; c < s->nindex; c++) {
    tasks *= (double)cut[c];
    if (c >= s->nfree) nagg *= (double)cut[c];
    else nz *= (double)s->index[c].extent / (double)cut[c];
  }
  for (int k = 0; k < s->noperand; k++) {
    double block = 1;
    int again = 0;
    for (int j = 0; j < k; j++) again |= same_operand(s, j, k);
    for (int r = 0; r < s->proj[k].rows; r++) block *= side(s, &s->proj[k], r, cut, NULL);
    if (!again) read += block;
  }
  return tasks * read + tasks / nagg * (nagg - 1) * nz * (s->fold == EIN_FOLD_VAR ? 3 : 1);
}

static double brute_edge(const eini_stmt *x, const int64_t *xcut, const eini_stmt *y, int k,
                         const int64_t *ycut) {
  double np = 1, nc = 1, nint = 1, n = 1;
  for (int r = 0; r < y->proj[k].rows; r++) {
    int64_t pieces = 1;
    double a = side(x, &x->out_map, r, xcut, NULL), b = side(y, &y->proj[k], r, ycut, &pieces);
    np *= a;
    nc *= b;
    nint *= a < b ? a : b;
    n *= b * (double)pieces;
  }
  return (nc / nint - 1) * (n / nc) * (nc + np) + (np != nint ? np * (n / nc) : 0);
}

// The least total over all vectors of all statements; -1 when there are too many.
static double brute_best(const ein_graph *g, int64_t p) {
  static int64_t way[STMTS][WAYS][8];
  static double edge[STMTS * 3][WAYS * WAYS / 8], unary[STMTS][WAYS];
  int n[STMTS], at[STMTS], nedge = 0, ex[STMTS * 3], ey[STMTS * 3];
  double combos = 1, best = INFINITY;
  for (int i = 0; i < g->nstmt; i++) {
    n[i] = brute_ways(&g->stmt[i], p, 1, way[i]);
    for (int w = 0; w < n[i]; w++) unary[i][w] = brute_vertex(&g->stmt[i], way[i][w]);
    combos *= n[i];
    at[i] = 0;
  }
  if (combos > 200000) return -1;
  for (int y = 0; y < g->nstmt; y++) {
    const eini_stmt *s = &g->stmt[y];
    for (int k = 0; k < s->noperand; k++) {
      int again = 0;
      for (int j = 0; j < k; j++) again |= same_operand(s, j, k);
      for (int x = 0; x < y && !again; x++) {
        if (g->stmt[x].out != s->operand[k]) continue;
        if (n[x] * n[y] > WAYS * WAYS / 8) return -1;
        for (int a = 0; a < n[x]; a++)
          for (int b = 0; b < n[y]; b++)
            edge[nedge][a * n[y] + b] = brute_edge(&g->stmt[x], way[x][a], s, k, way[y][b]);
        ex[nedge] = x;
        ey[nedge++] = y;
      }
    }
  }
  for (int i = 0; i >= 0;) {
    double sum = 0;
    for (i = 0; i < g->nstmt; i++) sum += unary[i][at[i]];
    for (int e = 0; e < nedge; e++) sum += edge[e][at[ex[e]] * n[ey[e]] + at[ey[e]]];
    if (sum < best) best = sum;
    for (i = (int)g->nstmt - 1; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
  }
  return best;
}

static double total_of(const ein_graph *g, ein_decompose_desc *d, ein_decomp_info *info);

// Statements share tables only when their expressions take the same operations.
static void forms(void) {
  static const struct { const char *a, *b; int same; } c[] = {
      {"X[i]*2", "X[i]*3", 1},            {"X[i]*2", "X[i]+2", 0},
      {"exp(sqrt(abs(X[i])))", "abs(abs(abs(X[i])))", 0}, {"X[i]-W[i]", "W[i]-X[i]", 1},
      {"X[i]*X[i]-W[i]", "W[i]*W[i]-X[i]", 1}, {"X[i]*W[i]+X[i]", "X[i]*(W[i]+X[i])", 0},
      {"p*X[i]", "q*X[i]", 1},            {"abs(X[i])+W[i]", "abs(X[i]+W[i])", 0}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    char text[256];
    ein_decompose_desc d;
    ein_decomp_info info;
    snprintf(text, sizeof text, "input X[i=64], W[i] : f64\nparam p = 1 : f64\nparam q = 2 : f64\n"
             "Y[i] = %s\nZ[i] = %s\noutput Y, Z\n", c[i].a, c[i].b);
    ein_graph *g = program(text);
    memset(&d, 0, sizeof d);
    d.p = 4;
    d.cost = EIN_COST_SECONDS;
    total_of(g, &d, &info);
    CHECK(info.nform == 2 - c[i].same);
    if (info.nform != 2 - c[i].same) printf("  %s, %s: %d forms\n", c[i].a, c[i].b, info.nform);
    ein_graph_destroy(g);
  }
  // One machine operation takes a second: 1 of 64, and 3 of 64.
  ein_graph *g = program("input X[i=64] : f64\nY[i] = X[i]*2+1\nZ[i] = exp(sqrt(abs(X[i])))\n"
                         "output Y, Z\n");
  ein_machine m;
  ein_decompose_desc d;
  ein_decomp_info info;
  memset(&m, 0, sizeof m);
  memset(&d, 0, sizeof d);
  m.flops = 1;
  m.overhead = 1e-12;
  d.p = 4;
  d.cost = EIN_COST_SECONDS;
  d.machine = &m;
  CHECK(fabs(total_of(g, &d, &info) - 16 * 2 - 16 * 3) < 1e-6);
  ein_graph_destroy(g);
}

static double total_of(const ein_graph *g, ein_decompose_desc *d, ein_decomp_info *info) {
  ein_decomposition *x;
  memset(info, 0, sizeof *info);
  if (ein_decompose(ctx, g, d, &x) != EIN_OK) {
    printf("%s\n", ein_ctx_message(ctx));
    failures++;
    return -1;
  }
  ein_decomposition_info(x, info);
  ein_decomposition_destroy(x);
  return info->total;
}

static void optimality(int cases, uint64_t seed) {
  static const int64_t places[] = {2, 3, 4, 5, 6, 7, 8, 12, 16};
  int done = 0, trees = 0, worse = 0, split_proved = 0, split = 0;
  double far = 0;
  rng_state = seed;
  while (done < cases) {
    char text[2048];
    int tree = chance(40);
    ein_graph *g = random_program((int)draw(2, STMTS), tree, chance(50), text, sizeof text);
    int64_t p = places[draw(0, 8)];
    double best = brute_best(g, p);
    if (best < 0) {
      ein_graph_destroy(g);
      continue;
    }
    ein_decompose_desc d;
    ein_decomp_info info;
    memset(&d, 0, sizeof d);
    d.p = p;
    d.strict = 1;
    double total = total_of(g, &d, &info);
    int ok = fabs(total - best) <= 1e-9 * best && info.proved;
    d.method = "linear";
    double linear = total_of(g, &d, &info);
    ok &= linear >= best * (1 - 1e-9) && info.lower <= best * (1 + 1e-9);
    worse += linear > best * (1 + 1e-9);
    if (linear / best > far) far = linear / best;
    // Tables too small for exact elimination: a bound from below, and never less than the least.
    d.method = NULL;
    d.max_table = 2;
    d.beam = 16;
    double beam = total_of(g, &d, &info);
    ok &= beam >= best * (1 - 1e-9) && info.lower <= best * (1 + 1e-9);
    ok &= !info.proved || beam <= best * (1 + 1e-9);
    split_proved += info.proved;
    split++;
    CHECK(ok);
    if (!ok) printf("case %d p %d: %.9g, brute force %.9g, linear %.9g, beam %.9g >= %.9g\n%s",
                    done, (int)p, total, best, linear, beam, info.lower, text);
    ein_graph_destroy(g);
    trees += tree;
    done++;
  }
  printf("seed %d: %d graphs (%d trees) as brute force; linear is worse in %d, by %.2f at most; "
         "split tables proved %d of %d\n", (int)seed, done, trees, worse, far, split_proved, split);
}

// ---- constraints and mistakes -------------------------------------------------------------------

static const char attention[] =
    "input Q[s=8,d=4], K[t=8,d], V[t,e=4] : f32\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d])\nC[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\n"
    "S[s] = sum[t](E[s,t])\nY[s,e] = sum[t](E[s,t] / S[s] * V[t,e])\nB[s] = argmax[t](T[s,t])\n"
    "output Y, B\n";

typedef struct mistake {
  int64_t p;
  const char *method, *parts, *pin, *keep;
  ein_status status;
  const char *says;
} mistake;

// Inputs are one of three things; dealt out they have a price in bytes alone.
static void mistaken_inputs(const ein_graph *g) {
  for (int inputs = -1; inputs < 4; inputs++) {
    for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
      ein_decompose_desc d;
      ein_decomposition *x = NULL;
      memset(&d, 0, sizeof d);
      d.p = 4;
      d.cost = (ein_cost)cost;
      d.inputs = (ein_inputs)inputs;
      const int good = inputs == 0 || inputs == 1 || (inputs == 2 && cost == EIN_COST_BYTES);
      CHECK(ein_decompose(ctx, g, &d, &x) == (good ? EIN_OK : EIN_ERR_ARGUMENT));
      CHECK(good || strstr(ein_ctx_message(ctx), inputs == 2 ? "dealt out" : "held, outside"));
      ein_decomposition_destroy(x);
    }
  }
}

static void mistakes(void) {
  static const mistake m[] = {
      {0, NULL, NULL, NULL, NULL, EIN_ERR_ARGUMENT, "0 places"},
      {-3, NULL, NULL, NULL, NULL, EIN_ERR_ARGUMENT, "-3 places"},
      {EIN_PLACES_MAX + 1, NULL, NULL, NULL, NULL, EIN_ERR_ARGUMENT, "1048577 places"},
      {4, "best", NULL, NULL, NULL, EIN_ERR_ARGUMENT, "no method 'best'"},
      {4, "data", NULL, NULL, NULL, EIN_ERR_NAME, "method 'data'"},
      {4, NULL, "T[s=2", NULL, NULL, EIN_ERR_SYNTAX, "'T[s=2'"},
      {4, NULL, "T", NULL, NULL, EIN_ERR_SYNTAX, "'T'"},
      {4, NULL, "T[s]", NULL, NULL, EIN_ERR_SYNTAX, "'T[s]'"},
      {4, NULL, "T[s=]", NULL, NULL, EIN_ERR_SYNTAX, "'T[s=]'"},
      {4, NULL, "T[s=2]x", NULL, NULL, EIN_ERR_SYNTAX, "'T[s=2]x'"},
      {4, NULL, "X[s=2]", NULL, NULL, EIN_ERR_NAME, "defines 'X'"},
      {4, NULL, "T[e=2]", NULL, NULL, EIN_ERR_NAME, "statement 'T' has no index 'e'"},
      {16, NULL, "T[s=9]", NULL, NULL, EIN_ERR_SHAPE, "'T': index 's' of extent 8"},
      {16, NULL, "T[s=0]", NULL, NULL, EIN_ERR_SHAPE, "0 pieces"},
      {16, NULL, "T[s=99999999999999999999999]", NULL, NULL, EIN_ERR_SYNTAX, "T[s=999"},
      {4, NULL, "T[s=2,t=4]", NULL, NULL, EIN_ERR_SHAPE, "more tasks than the 4 places"},
      {4, NULL, "B[t=2]", NULL, NULL, EIN_OK, ""},
      {4, NULL, "B[t=2]", NULL, "B.t", EIN_ERR_SHAPE, "'B': index 't' must not be cut"},
      {4, NULL, "T[s=2]", NULL, "s", EIN_ERR_SHAPE, "'T': index 's' must not be cut"},
      {4, NULL, "T[s=2]", "T[s=4]", NULL, EIN_ERR_SHAPE, "'s' is asked to have 4 and 2 pieces"},
      {4, NULL, NULL, "Z[s=4]", NULL, EIN_ERR_NAME, "no tensor 'Z'"},
      {4, NULL, NULL, "Q[t=4]", NULL, EIN_ERR_NAME, "'t' alone at an axis of 'Q'"},
      {4, NULL, NULL, "Q[7=4]", NULL, EIN_ERR_NAME, "'7'"},
      {16, NULL, NULL, "Q[s=4,d=8]", NULL, EIN_ERR_SHAPE, "of extent 4 cannot have 8"},
      {4, NULL, NULL, NULL, "q", EIN_ERR_NAME, "keep 'q'"},
      {4, NULL, NULL, NULL, "Q.s", EIN_ERR_NAME, "keep 'Q.s'"},
      {4, NULL, NULL, NULL, "", EIN_ERR_SYNTAX, "keep ''"},
      {4, NULL, NULL, NULL, "s=4", EIN_ERR_SYNTAX, "keep 's=4'"},
      {4, NULL, NULL, NULL, NULL, EIN_OK, ""},
      {4, "given", "T[]", "Y[s=4]", "E.t", EIN_OK, ""},
      {8, "sequence", NULL, "K[t=8]", "T.s", EIN_OK, ""}};
  ein_graph *g = program(attention);
  for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
    ein_decompose_desc d;
    ein_decomposition *x;
    memset(&d, 0, sizeof d);
    d.p = m[i].p;
    d.method = m[i].method;
    d.nparts = m[i].parts != NULL;
    d.parts = &m[i].parts;
    d.npin = m[i].pin != NULL;
    d.pin = &m[i].pin;
    d.nkeep = m[i].keep != NULL;
    d.keep = &m[i].keep;
    for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
      d.cost = (ein_cost)cost;
      ein_status st = ein_decompose(ctx, g, &d, &x);
      int ok = st == m[i].status && strstr(ein_ctx_message(ctx), m[i].says) != NULL;
      CHECK(ok);
      if (!ok) printf("  case %d: %s: %s\n", (int)i, ein_status_name(st), ein_ctx_message(ctx));
      CHECK((x != NULL) == (st == EIN_OK));
      ein_decomposition_destroy(x);
      if (st == EIN_OK) continue;
      CHECK(ein_decompose(NULL, g, &d, &x) == m[i].status && x == NULL);
    }
  }
  ein_decompose_desc d;
  ein_decomposition *x;
  memset(&d, 0, sizeof d);
  d.p = 4;
  CHECK(ein_decompose(ctx, NULL, &d, &x) == EIN_ERR_ARGUMENT && x == NULL);
  CHECK(ein_decompose(ctx, g, NULL, &x) == EIN_ERR_ARGUMENT);
  CHECK(ein_decompose(ctx, g, &d, NULL) == EIN_ERR_ARGUMENT);
  d.nparts = 1;
  CHECK(ein_decompose(ctx, g, &d, &x) == EIN_ERR_ARGUMENT);
  ein_decomposition_destroy(NULL);
  mistaken_inputs(g);
  ein_graph_destroy(g);
}

static int64_t cut_of(const ein_graph *g, const ein_decomposition *x, const char *out,
                      const char *index) {
  for (int i = 0; i < g->nstmt; i++) {
    ein_parts parts;
    if (strcmp(g->tensor[g->stmt[i].out].name, out) != 0) continue;
    CHECK(ein_decomposition_parts(x, i, &parts) == EIN_OK);
    for (int c = 0; c < parts.nindex; c++)
      if (strcmp(g->stmt[i].index[c].name, index) == 0) return parts.cut[c];
  }
  return -1;
}

static void constraints(void) {
  static const char *const parts[] = {"T[s=2,t=4]", "S[t=2]"}, *const pin[] = {"K[t=4,d=2]",
      "Y[s=2,e=2]"}, *const keep[] = {"C.s", "e"}, *const conflict[] = {"Y[e=2]"};
  ein_graph *g = program(attention);
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_parts p;
  memset(&d, 0, sizeof d);
  d.p = 8;
  d.no_scatter = 1;  // statements keep their numbers
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    d.cost = (ein_cost)cost;
    d.parts = parts;
    d.nparts = 2;
    d.pin = pin;
    d.npin = 2;
    d.keep = keep;
    d.nkeep = 1;
    CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
    CHECK(cut_of(g, x, "T", "s") == 2 && cut_of(g, x, "T", "t") == 4);
    CHECK(cut_of(g, x, "T", "d") == 1 && cut_of(g, x, "C", "s") == 1);
    CHECK(cut_of(g, x, "S", "s") == 1 && cut_of(g, x, "S", "t") == 2);
    CHECK(cut_of(g, x, "Y", "s") == 2 && cut_of(g, x, "Y", "e") == 2);
    CHECK(ein_decomposition_pin(x, 1, &p) == EIN_OK && p.nindex == 2 && p.cut[0] == 4 &&
          p.cut[1] == 2 && p.ntask == 8 && p.norder == 2 && p.order[0] == 0);
    CHECK(ein_decomposition_pin(x, 0, &p) == EIN_ERR_ARGUMENT);
    CHECK(ein_decomposition_parts(x, 6, &p) == EIN_ERR_ARGUMENT);
    CHECK(ein_decomposition_parts(x, -1, &p) == EIN_ERR_ARGUMENT);
    // The blocks of a pinned output lie as the pin says: reduced digits first, then the axes.
    CHECK(ein_decomposition_parts(x, 4, &p) == EIN_OK);
    CHECK(p.order[p.norder - 2] == 0 && p.order[p.norder - 1] == 1);
    CHECK(p.norder == 2 || (p.norder == 3 && p.order[0] == 2));
    ein_decomposition_destroy(x);
    d.nkeep = 2;
    CHECK(ein_decompose(ctx, g, &d, &x) == EIN_ERR_SHAPE);
    d.npin = 0;
    CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
    CHECK(cut_of(g, x, "Y", "e") == 1);
    ein_decomposition_destroy(x);
    d.nparts = 1;
    d.parts = conflict;
    CHECK(ein_decompose(ctx, g, &d, &x) == EIN_ERR_SHAPE);
  }
  // A pinned input is repartitioned where it is read: 8 pieces of rows, 2 x 4 blocks are needed.
  static const char *const rows = "X[i=8]", *const given = "Y[i=2,j=4]";
  ein_graph *h = program("input X[i=8,j=8] : f64\nY[i,j] = exp(X[i,j])\n");
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  d.p = 8;
  d.method = "given";
  d.parts = &given;
  d.nparts = 1;
  CHECK(total_of(h, &d, &info) == 64);
  d.pin = &rows;
  d.npin = 1;
  CHECK(total_of(h, &d, &info) == 64 + (4 - 1) * 8 * (8 + 8) + 8 * 8);
  ein_graph_destroy(h);
  ein_graph_destroy(g);
}

// ---- bytes: element by element ------------------------------------------------------------------

// The home of each element of a tensor, -1 where a block has none: by trying every index value.
static int64_t offset_of(const ein_graph *g, int tensor, const eini_map *m, const int64_t *i) {
  int64_t at = 0;
  for (int r = 0; r < m->rows; r++) {
    int64_t x = m->offset[r];
    for (int c = 0; c < m->cols; c++) x += eini_map_coef(m, r, c) * i[c];
    at = at * g->tensor[tensor].shape[r] + x;
  }
  return at;
}

static int64_t piece_of(int64_t extent, int64_t d, int64_t i) {
  int64_t k = 0;
  while (extent > 0 && (k + 1) * extent / d <= i) k++;
  return k;
}

static int64_t place_of(const eini_stmt *s, const ein_parts *p, const int64_t *i) {
  int64_t place = 0;
  for (int k = 0; k < p->norder; k++) {
    int c = p->order[k];
    place = place * p->cut[c] + piece_of(s->index[c].extent, p->cut[c], i[c]);
  }
  return place;
}

static int step(const eini_stmt *s, int n, int64_t *i) {  // of the first n indices
  int c = n - 1;
  while (c >= 0 && ++i[c] == s->index[c].extent) i[c--] = 0;
  return c >= 0;
}

#define ELEMENTS 20000

// Bytes of one element's partial result: three scalars of a var, value and position of an argmax.
static double partial_bytes(const eini_stmt *s) {
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  if (s->fold == EIN_FOLD_VAR) return 3 * (double)ein_dtype_size(ein_dtype_compute(s->type));
  if (s->fold == EIN_FOLD_ARGMAX) return 8 + (double)ein_dtype_size(ein_dtype_compute(value));
  return (double)ein_dtype_size(ein_dtype_compute(s->type));
}

// No two of its rates are alike, so that none can stand for another.
static const ein_machine uneven = {3e10, 7e10, 5e-6, 2e9, 1e-6, 0, 0, 0, 0};

static int read_before(const ein_graph *g, const eini_stmt *s, int k) {
  int again = 0;
  for (int j = 0; j < k; j++)
    again |= same_operand(s, j, k) &&
             memcmp(s->proj[j].offset, s->proj[k].offset,
                    (size_t)g->tensor[s->operand[k]].rank * 8) == 0;
  return again;
}

// Operations of a point: nodes that compute something, and the step of the fold; at least one.
static double point_work(const eini_stmt *s) {
  double n = s->nindex > s->nfree;
  for (int k = 0; k < s->expr.n; k++) {
    switch (s->expr.node[k].op) {
      case EIN_OP_CONST: case EIN_OP_OPERAND: case EIN_OP_INDEX: case EIN_OP_PARAM:
      case EIN_OP_CAST: case EIN_OP_ROUNDTO: break;
      default: n++;
    }
  }
  return n < 1 ? 1 : n;
}

// Seconds of statement s by itself under `uneven`, from the sizes of its pieces: the longest task,
// then the rounds in which partial results of the largest block are folded.
static double own_seconds(const ein_graph *g, const eini_stmt *s, const int64_t *cut) {
  double points = 1, block = 1, pieces = 1, bytes = 0, rounds = 0;
  int64_t longest[8];
  for (int c = 0; c < s->nindex; c++) {
    longest[c] = 0;
    for (int64_t i = 0, n = 0, at = 0; i < s->index[c].extent; i++) {  // pieces follow each other
      int64_t piece = piece_of(s->index[c].extent, cut[c], i);
      n = piece == at ? n + 1 : 1;
      at = piece;
      if (n > longest[c]) longest[c] = n;
    }
    points *= (double)longest[c];
    if (c < s->nfree) block *= (double)longest[c];
    else pieces *= (double)cut[c];
  }
  for (int k = 0; k < s->noperand; k++) {
    double box = 1;
    if (read_before(g, s, k)) continue;
    for (int r = 0; r < s->proj[k].rows; r++) {
      int64_t lo = 0, hi = 0;
      int empty = 0;
      for (int c = 0; c < s->nindex; c++) {
        int64_t step = eini_map_coef(&s->proj[k], r, c) * (longest[c] - 1);
        if (eini_map_coef(&s->proj[k], r, c) == 0) continue;
        empty |= longest[c] == 0;
        *(step < 0 ? &lo : &hi) += step;
      }
      box *= empty ? 0 : (double)(hi - lo + 1);
    }
    bytes += box * (double)ein_dtype_size(g->tensor[s->operand[k]].dtype);
  }
  bytes += block * (double)ein_dtype_size(g->tensor[s->out].dtype);
  while (ldexp(1, (int)rounds) < pieces) rounds++;
  double work = points * point_work(s) / 3e10, traffic = bytes / 7e10;
  return 1e-6 + (work > traffic ? work : traffic) +
         rounds * (5e-6 + block * partial_bytes(s) / 2e9 + block / 3e10);
}

static int dealt;  // inputs are: bytes count what is read of them beyond each element once

// Elements that the tasks of a statement read of operand k, in boxes.
static double brute_read(const ein_graph *g, const eini_stmt *s, const ein_parts *p, int k) {
  double sum = 0;
  if (eini_stmt_empty(s, 0, s->nindex)) return 0;
  for (int64_t q = 0; q < p->ntask; q++) {
    int64_t i[8] = {0}, box[2][8], volume = 0;
    do {
      if (place_of(s, p, i) != q) continue;
      for (int r = 0; r < g->tensor[s->operand[k]].rank; r++) {
        int64_t x = s->proj[k].offset[r];
        for (int c = 0; c < s->nindex; c++) x += eini_map_coef(&s->proj[k], r, c) * i[c];
        if (volume == 0 || x < box[0][r]) box[0][r] = x;
        if (volume == 0 || x > box[1][r]) box[1][r] = x;
      }
      volume = 1;
    } while (step(s, s->nindex, i));
    for (int r = 0; r < g->tensor[s->operand[k]].rank; r++) volume *= box[1][r] - box[0][r] + 1;
    sum += (double)volume;
  }
  return sum;
}

static double brute_dealt(const ein_graph *g, const eini_stmt *s, const ein_parts *p) {
  static const int64_t whole[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const ein_parts one = {s->nindex, whole, 0, NULL, 1, 0, 0, 0, 0};
  double bytes = 0;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &g->tensor[s->operand[k]];
    double read = 0, once = 0;
    int first = t->role == EIN_ROLE_INPUT;
    for (int j = 0; j < k; j++) first &= s->operand[j] != s->operand[k];
    for (int j = k; j < s->noperand && first; j++) {
      if (s->operand[j] != s->operand[k] || read_before(g, s, j)) continue;
      read += brute_read(g, s, p, j);
      once = fmax(once, brute_read(g, s, &one, j));
    }
    if (read > once) bytes += (read - once) * (double)ein_dtype_size(t->dtype);
  }
  return bytes;
}

// Bytes that statement n fetches (join) and folds (agg) under the parts of all statements, and its
// seconds: per producer of an operand, the task that fetches most from it.
static void brute_moved(const ein_graph *g, const ein_parts *parts, int n, double *join,
                        double *agg, double *seconds) {
  static int64_t home[ELEMENTS], who[ELEMENTS], box[2][8];
  static unsigned char covered[64][ELEMENTS];
  const eini_stmt *s = &g->stmt[n];
  const ein_parts *p = &parts[n];
  *join = dealt ? brute_dealt(g, s, p) : 0;
  *agg = 0;
  *seconds = own_seconds(g, s, p->cut);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &g->tensor[s->operand[k]];
    int64_t count = 1;
    double most[16] = {0};
    if (read_before(g, s, k) || t->role == EIN_ROLE_INPUT) continue;
    for (int r = 0; r < t->rank; r++) count *= t->shape[r];
    for (int64_t x = 0; x < count; x++) home[x] = -1;
    for (int x = 0; x < n; x++) {
      const eini_stmt *w = &g->stmt[x];
      int64_t i[8] = {0};
      if (w->out != s->operand[k] || eini_stmt_empty(w, 0, w->nfree)) continue;
      do {
        int64_t at = offset_of(g, w->out, &w->out_map, i);
        home[at] = place_of(w, &parts[x], i);
        who[at] = x;
      } while (step(w, w->nfree, i));
    }
    for (int64_t q = 0; q < p->ntask; q++) {  // the hull of what the task at q reads
      int64_t i[8] = {0};
      int any = 0;
      double fetched[16] = {0};
      if (eini_stmt_empty(s, 0, s->nindex)) break;
      do {
        if (place_of(s, p, i) != q) continue;
        for (int r = 0; r < t->rank; r++) {
          int64_t x = s->proj[k].offset[r];
          for (int c = 0; c < s->nindex; c++) x += eini_map_coef(&s->proj[k], r, c) * i[c];
          if (!any || x < box[0][r]) box[0][r] = x;
          if (!any || x > box[1][r]) box[1][r] = x;
        }
        any = 1;
      } while (step(s, s->nindex, i));
      for (int64_t x = 0; x < count && any; x++) {
        int64_t rest = x;
        int inside = 1;
        for (int r = t->rank - 1; r >= 0; r--) {
          int64_t at = rest % t->shape[r];
          rest /= t->shape[r];
          inside &= at >= box[0][r] && at <= box[1][r];
        }
        if (!inside || home[x] == q) continue;
        *join += (double)ein_dtype_size(t->dtype);
        if (home[x] >= 0) fetched[who[x]] += (double)ein_dtype_size(t->dtype);
      }
      for (int x = 0; x < n; x++) most[x] = fetched[x] > most[x] ? fetched[x] : most[x];
    }
    for (int x = 0; x < n; x++) *seconds += most[x] > 0 ? 5e-6 + most[x] / 2e9 : 0;
  }
  // Partial results: each place but the home that computes some of an element sends it once.
  int64_t i[8] = {0};
  memset(covered, 0, sizeof covered);
  if (eini_stmt_empty(s, 0, s->nindex)) return;
  do {
    int64_t at = offset_of(g, s->out, &s->out_map, i), q = place_of(s, p, i), zero[8];
    memcpy(zero, i, sizeof zero);
    for (int c = s->nfree; c < s->nindex; c++) zero[c] = 0;
    if (covered[q][at] || place_of(s, p, zero) == q) continue;
    covered[q][at] = 1;
    *agg += partial_bytes(s);
  } while (step(s, s->nindex, i));
}

// Sum over statements; checks every term that the decomposition states.
static double moved(const ein_graph *g, const ein_decomposition *x, ein_cost cost) {
  ein_parts parts[16];
  ein_sim_stmt sim[16];
  ein_sim_desc d;
  ein_sim_info info;
  double sum = 0;
  memset(&d, 0, sizeof d);
  d.stmt = sim;
  for (int i = 0; i < g->nstmt; i++) ein_decomposition_parts(x, i, &parts[i]);
  CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
  for (int i = 0; i < g->nstmt; i++) {
    double join, agg, seconds;
    brute_moved(g, parts, i, &join, &agg, &seconds);
    sum += join + agg;
    int ok = sim[i].join == join && sim[i].agg == agg && sim[i].tasks == (double)parts[i].ntask;
    if (cost == EIN_COST_BYTES)
      ok &= parts[i].join == join && parts[i].agg == agg && parts[i].repart == 0;
    else ok &= fabs(parts[i].seconds - seconds) <= 1e-12 * seconds;
    CHECK(ok);
    if (!ok) printf("  statement %d: join %g agg %g, stated %g %g, simulated %g %g\n", i, join, agg,
                    parts[i].join, parts[i].agg, sim[i].join, sim[i].agg);
  }
  CHECK(info.join + info.agg == sum);
  return sum;
}

static const char *const affine_programs[] = {
    "input X[n=23], K[r=3] : f32\nA[i] = X[i]*2\nY[h] = sum[r](A[2*h+r]*K[r])\n"
    "Z[h=11] = Y[h] + A[h]\n",
    "input X[s=6,d=8] : f32\nQ[s,d] = exp(X[s,d])\nR[s,2*i] = Q[s,2*i] - Q[s,2*i+1]\n"
    "R[s,2*i+1] = Q[s,2*i+1] + Q[s,2*i]\nY[s,t] = sum[d](R[s,d]*R[t,d])\n",
    "input X[i=5,j=5], Z[k=4] : f64\nA[i,j] = X[i,j]+1\nB[i] = A[i,i]\nC[] = sum[i](B[i])\n"
    "D[i,k] = C[]*B[i]*Z[k]\nE[4*i+k] = D[i,k]\nF[i] = E[2*i+3] + E[18-i]\nG = max[i](F[i])\n",
    "input X[n=9] : i16\nA[i] = X[i]\nY[i=9] = A[i-1 | 0] + A[i]\nS = sum[i](Y[i])\n"
    "M = argmax[i](Y[i])\nP[i] = any[j](Y[i] > Y[j])\n",
    "input X[n=0,m=4] : f32\nA[i,j] = X[i,j]\nB[j] = sum[i](A[i,j])\nC[j] = B[j]+1\n",
    // Two statements of one form, whose readers want them otherwise.
    "input X[i=64,j=8] : f32\nA[i,j] = exp(X[i,j])\nB[i,j] = exp(X[i,j])\n"
    "C[8*i+j] = A[i,j]\nD[64*j+i] = B[i,j]\n"};

static void bytes_moved(int cases, uint64_t seed) {
  static const int64_t places[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};
  static const char *const methods[] = {NULL, "sqrt", "none", "linear"};
  int programs = (int)(sizeof affine_programs / sizeof *affine_programs);
  double most = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[2048];
    int fixed = n % 4 == 0;
    ein_graph *g = fixed ? program(affine_programs[n / 4 % programs])
                         : random_program((int)draw(2, 4), 0, 0, text, sizeof text);
    double points = 0;
    for (int i = 0; i < g->nstmt; i++) {
      double size = 1;
      for (int c = 0; c < g->stmt[i].nindex; c++) size *= (double)g->stmt[i].index[c].extent;
      if (size > points) points = size;
    }
    for (int k = 0; k < 4 && points <= 8000; k++) {
      ein_decompose_desc d;
      ein_decomposition *x;
      ein_decomp_info info;
      memset(&d, 0, sizeof d);
      d.p = places[draw(0, 8)];
      d.cost = chance(70) ? EIN_COST_BYTES : EIN_COST_SECONDS;
      d.method = methods[k];
      d.strict = chance(50);
      d.machine = &uneven;
      CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
      if (x == NULL) printf("%s\n", ein_ctx_message(ctx));
      ein_decomposition_info(x, &info);
      int before = failures;
      const ein_graph *of = ein_decomposition_graph(x);
      double sum = moved(of != NULL ? of : g, x, d.cost);
      if (d.cost == EIN_COST_BYTES) CHECK(sum == info.total);
      if (failures > before)
        printf("case %d p %d method %s: %g, not %g\n%s", n, (int)d.p, info.method, info.total, sum,
               fixed ? affine_programs[n / 4 % programs] : text);
      if (sum > most) most = sum;
      ein_decomposition_destroy(x);
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: bytes of %d programs as element by element, %g at most\n", (int)seed, cases,
         most);
}

// The least bytes or seconds over all vectors and all orders of all statements; -1 when there are
// too many.
static double brute_least(const ein_graph *g, int64_t p, ein_cost cost) {
  static int64_t way[4][WAYS][8], cut[4][WAYS * 6][8];
  static int order[4][WAYS * 6][8];
  ein_parts parts[4];
  int n[4], at[4] = {0}, combos = 1;
  double best = INFINITY;
  for (int i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    int ways = brute_ways(s, p, 0, way[i]);
    n[i] = 0;
    for (int w = 0; w < ways; w++) {
      int m = 0, cuts[8];
      for (int c = 0; c < s->nindex; c++)
        if (way[i][w][c] > 1) cuts[m++] = c;
      do {
        memcpy(cut[i][n[i]], way[i][w], sizeof cut[i][0]);
        memcpy(order[i][n[i]++], cuts, sizeof cuts);
      } while (m < 4 && eini_permute(cuts, m));
    }
    combos *= n[i];
    if (combos > 3000) return -1;
  }
  for (int i = 0; i >= 0;) {
    double sum = 0;
    for (i = 0; i < g->nstmt; i++) {
      const eini_stmt *s = &g->stmt[i];
      parts[i].nindex = s->nindex;
      parts[i].cut = cut[i][at[i]];
      parts[i].order = order[i][at[i]];
      parts[i].norder = 0;
      parts[i].ntask = 1;
      for (int c = 0; c < s->nindex; c++) {
        parts[i].norder += parts[i].cut[c] > 1;
        parts[i].ntask *= parts[i].cut[c];
      }
    }
    for (i = 0; i < g->nstmt && sum < best; i++) {
      double join, agg, seconds;
      brute_moved(g, parts, i, &join, &agg, &seconds);
      sum += cost == EIN_COST_BYTES ? join + agg : seconds;
    }
    if (sum < best) best = sum;
    for (i = (int)g->nstmt - 1; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
  }
  return best;
}

// What the search finds, before the simulation chooses; memory: of a place, 0 for no limit.
static ein_decomp_info searched(const ein_graph *g, int64_t p, ein_cost cost, int strict,
                                double memory, int scattered) {
  ein_machine machine = uneven;
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  machine.memory = memory;
  d.p = p;
  d.cost = cost;
  d.strict = strict;
  d.machine = &machine;
  d.inputs = dealt ? EIN_INPUTS_DEALT : EIN_INPUTS_OUTSIDE;
  d.max_vectors = 1024;  // the same with a limit to the memory as without
  d.no_scatter = !scattered;
  CHECK(eini_decompose_once(ctx, g, &d, &x) == EIN_OK);
  ein_decomposition_info(x, &info);
  ein_decomposition_destroy(x);
  return info;
}

static void least_moved(int cases, uint64_t seed) {
  static const int64_t places[] = {2, 3, 4, 6, 8, 12, 16};
  int done = 0;
  rng_state = seed;
  while (done < cases) {
    char text[2048];
    ein_graph *g = random_program((int)draw(2, 3), 0, 0, text, sizeof text);
    int64_t p = places[draw(0, 6)];
    ein_cost cost = done % 2 == 0 ? EIN_COST_BYTES : EIN_COST_SECONDS;
    dealt = done % 4 == 2;
    double points = 0, best = -1;
    for (int i = 0; i < g->nstmt; i++) {
      double size = 1;
      for (int c = 0; c < g->stmt[i].nindex; c++) size *= (double)g->stmt[i].index[c].extent;
      points += size;
    }
    if (points < 300) best = brute_least(g, p, cost);
    if (best >= 0) {
      ein_decomp_info info = searched(g, p, cost, 1, 0, 0);
      int ok = fabs(info.total - best) <= (cost == EIN_COST_BYTES && !dealt ? 0 : 1e-12 * best);
      CHECK(ok && info.proved);
      if (!ok) printf("case %d p %d: %.17g, brute force %.17g\n%s", done, (int)p, info.total, best,
                      text);
      done++;
    }
    ein_graph_destroy(g);
  }
  dealt = 0;
  printf("seed %d: least bytes and seconds of %d graphs over vectors and orders as brute force\n",
         (int)seed, done);
}

// ---- results that are scattered -----------------------------------------------------------------

#define SPLITS 16              // ways to split the folds of a graph
#define SPREAD 1024            // ways of a statement

// A statement's ways: its fold as it is (index -1), or split over `index` in `pieces`, with the
// blocks of the result cut along `over`.
typedef struct spread {
  int64_t cut[8], home[8];
  int order[8], norder, home_order[8], home_norder;
} spread;

// Where blocks lie: the digit of the split index is one of `over`, next to what `over` has. 0: that
// is elsewhere.
static int spread_home(const eini_stmt *s, spread *w, int index, int over) {
  memcpy(w->home, w->cut, sizeof w->home);
  w->home_norder = 0;
  for (int j = 0; j < w->norder; j++) {
    const int c = w->order[j];
    if (c == index && w->cut[over] > 1 && (j == 0 || w->order[j - 1] != over)) return 0;
    if (c != index) w->home_order[w->home_norder++] = c;
    else if (w->cut[over] == 1) w->home_order[w->home_norder++] = over;
  }
  w->home[over] *= w->cut[index];
  w->home[index] = 1;
  return w->home[over] <= s->index[over].extent;
}

static int spread_ways(const eini_stmt *s, int64_t p, int index, int64_t pieces, spread *to) {
  static int64_t way[WAYS][8];
  const int ways = brute_ways(s, p, 0, way);
  int n = 0;
  for (int k = 0; k < ways; k++) {
    int m = 0, cuts[8], other = 0;
    for (int c = 0; c < s->nindex; c++) {
      if (way[k][c] > 1) cuts[m++] = c;
      other |= c >= s->nfree && c != index && way[k][c] > 1;
    }
    if (index >= 0 && (other || way[k][index] != pieces)) continue;
    do {
      for (int over = 0; over < (index < 0 ? 1 : s->nfree) && n < SPREAD; over++) {
        spread *w = &to[n];
        memcpy(w->cut, way[k], sizeof w->cut);
        memcpy(w->order, cuts, sizeof w->order);
        w->norder = m;
        n += index < 0 || spread_home(s, w, index, over);
      }
    } while (eini_permute(cuts, m));
  }
  return n;
}

// The parts of the statements that a way is: one, or the partial results and their fold.
static int spread_parts(const eini_stmt *s, const spread *w, int index, int64_t cut[2][9],
                        int order[2][9], ein_parts *p) {
  const int two = index >= 0, rank = s->out_map.rows;
  memset(p, 0, 2 * sizeof *p);
  cut[0][0] = two ? w->cut[index] : 1;
  for (int c = 0; c < s->nindex; c++) cut[0][c + two] = c == index ? 1 : w->cut[c];
  for (int j = 0; j < w->norder; j++)
    order[0][j] = w->order[j] == index ? 0 : w->order[j] + two;
  p[0].nindex = s->nindex + two;
  p[0].norder = w->norder;
  for (int r = 0; r < rank && two; r++) {
    int64_t coef;
    const int i = eini_row_index(&s->out_map, r, &coef);
    cut[1][r] = i < 0 ? 1 : w->home[i];
    for (int j = 0; j < w->home_norder; j++)
      if (w->home_order[j] == i) order[1][j] = r;
  }
  cut[1][rank] = 1;
  p[1].nindex = rank + 1;
  p[1].norder = w->home_norder;
  for (int k = 0; k <= two; k++) {
    p[k].cut = cut[k];
    p[k].order = order[k];
    p[k].ntask = 1;
    for (int c = 0; c < p[k].nindex; c++) p[k].ntask *= cut[k][c];
  }
  return 1 + two;
}

// The least over all ways of a graph whose folds are split so; -1: too many.
static double spread_least(const ein_graph *g, int64_t p, ein_cost cost, const int *index,
                           const int64_t *pieces, double best) {
  static spread way[3][SPREAD];
  int n[3], at[3] = {0};
  double combos = 1;
  ein_graph *s = eini_graph_new(ctx);
  CHECK(s != NULL && eini_scatter_graph(s, g, index, pieces) == EIN_OK);
  for (int i = 0; i < g->nstmt; i++) {
    n[i] = spread_ways(&g->stmt[i], p, index[i], pieces[i], way[i]);
    combos *= n[i] < SPREAD ? n[i] : 1e9;
  }
  for (int i = combos > 0 && combos <= 20000 ? 0 : -1; i >= 0;) {
    int64_t cut[6][9];
    int order[6][9], m = 0;
    ein_parts parts[6];
    double sum = 0;
    for (i = 0; i < g->nstmt; i++)
      m += spread_parts(&g->stmt[i], &way[i][at[i]], index[i], cut + m, order + m, parts + m);
    for (int k = 0; k < s->nstmt && sum < best; k++) {
      double join, agg, seconds;
      brute_moved(s, parts, k, &join, &agg, &seconds);
      sum += cost == EIN_COST_BYTES ? join + agg : seconds;
    }
    if (sum < best) best = sum;
    for (i = (int)g->nstmt - 1; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
  }
  ein_graph_destroy(s);
  return combos > 20000 ? -1 : best;
}

// The least over all splits of all folds, all vectors, all orders, and all places of blocks.
static double brute_spread(const ein_graph *g, int64_t p, ein_cost cost) {
  int index[3][SPLITS], n[3], at[3] = {0};
  int64_t pieces[3][SPLITS];
  double best = INFINITY;
  for (int k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    index[k][0] = -1, pieces[k][0] = 1, n[k] = 1;
    for (int c = s->nfree; c < s->nindex; c++)
      for (int64_t q = 2; q <= p; q++)
        if (n[k] < SPLITS && eini_scatter_may(g, s, c, q))
          index[k][n[k]] = c, pieces[k][n[k]++] = q;
  }
  for (int k = 0; k >= 0;) {
    int i[3];
    int64_t q[3];
    for (k = 0; k < g->nstmt; k++) i[k] = index[k][at[k]], q[k] = pieces[k][at[k]];
    const double least = spread_least(g, p, cost, i, q, best);
    if (least < 0) return -1;
    best = least;
    for (k = (int)g->nstmt - 1; k >= 0 && ++at[k] == n[k]; k--) at[k] = 0;
  }
  return best;
}

// Two products and what is between and behind them, of extents with which folds are worth a cut; or
// any program.
static ein_graph *fold_program(char *text, size_t size) {
  static const char *const tails[] = {
      "Y[i,j] = exp(C[i,j])\noutput Y\n", "Y[j] = max[i](C[i,j])\noutput Y\n",
      "Y[j,i] = C[i,j]*2\nZ[i] = C[i,0]\noutput Y, Z\n", "output C\n", "Y[i] = C[i,1]\noutput Y\n"};
  static const char *const folds[] = {"sum", "max", "mean"};
  static const int few[] = {2, 3, 4}, many[] = {8, 12, 16, 24};
  if (chance(20)) return random_program((int)draw(1, 3), 0, 0, text, size);
  snprintf(text, size, "input X[i=%d,k=%d], W[k,j=%d] : %s\nA[i,k] = X[i,k]+1\n"
           "C[i,j] = %s[k](A[i,k]*W[k,j])\n%s", few[draw(0, 2)], many[draw(0, 3)], few[draw(0, 2)],
           chance(50) ? "f32" : "f64", folds[draw(0, 2)], tails[draw(0, 4)]);
  return program(text);
}

static void least_scattered(int cases, uint64_t seed) {
  static const int64_t places[] = {2, 3, 4, 6, 8};
  int done = 0, better = 0;
  rng_state = seed;
  while (done < cases) {
    char text[2048];
    ein_graph *g = fold_program(text, sizeof text);
    const int64_t p = places[draw(0, 4)];
    const ein_cost cost = done % 2 == 0 ? EIN_COST_BYTES : EIN_COST_SECONDS;
    double points = 0, best = -1;
    for (int i = 0; i < g->nstmt; i++) {
      double size = 1;
      for (int c = 0; c < g->stmt[i].nindex; c++) size *= (double)g->stmt[i].index[c].extent;
      points += size;
    }
    if (points < 900 && g->nstmt <= 3) best = brute_spread(g, p, cost);
    if (best >= 0) {
      const ein_decomp_info info = searched(g, p, cost, 1, 0, 1);
      const int ok = fabs(info.total - best) <= 1e-12 * best;
      CHECK(ok && info.proved);
      if (!ok) printf("case %d p %d %s: %.17g, brute force %.17g\n%s", done, (int)p,
                      ein_cost_name(cost), info.total, best, text);
      better += best < searched(g, p, cost, 1, 0, 0).total * (1 - 1e-9);
      done++;
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: least of %d graphs over vectors, orders and scattered results as brute force; "
         "scattered in %d\n", (int)seed, done, better);
  CHECK(better > 0);
}

// Two statements of one form, each read in ways of its own: what one of them never needs the other
// may need.
static ein_graph *twin_program(char *text, size_t size) {
  static const char *const readers[] = {
      "[i] = sum[j](%c[i,j])",          "[j] = max[i](%c[i,j])",         "[j,i] = %c[i,j]",
      "[i,k] = sum[j](%c[i,j]*V[j,k])", "[j,k] = sum[i](%c[i,j]*W[i,k])", "[i,j] = %c[i,j]*2"};
  static const int extents[] = {2, 3, 4, 6, 8, 12, 16, 24, 64};
  size_t n = (size_t)snprintf(text, size, "input X[i=%d,j=%d], V[j,k=4], W[i,k=4] : f32\n"
                              "A[i,j] = exp(X[i,j])\nB[i,j] = exp(X[i,j])\n",
                              extents[draw(0, 8)], extents[draw(0, 8)]);
  for (int twin = 0, name = 'C'; twin < 2; twin++) {
    for (int64_t more = draw(1, 2); more > 0; more--) {
      n += (size_t)snprintf(text + n, size - n, "%c", name++);
      n += (size_t)snprintf(text + n, size - n, readers[draw(0, 5)], 'A' + twin);
      n += (size_t)snprintf(text + n, size - n, "\n");
    }
  }
  return program(text);
}

// Under a limit, of more memory than there is, all ways stay: without one those that others never
// cost more than go, and the least must be the same.
static void dropped_ways(int cases, uint64_t seed) {
  static const int64_t places[] = {4, 6, 8, 12, 16, 24, 64, 320};
  int programs = (int)(sizeof affine_programs / sizeof *affine_programs), proved = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[4096];
    int fixed = n < 8 * programs;
    ein_graph *g = fixed       ? program(affine_programs[n / 8])
                   : n % 3 > 0 ? twin_program(text, sizeof text)
                               : random_program((int)draw(2, STMTS), 0, chance(50), text,
                                                sizeof text);
    int64_t p = places[fixed ? n % 8 : draw(0, 7)];
    for (int k = 0; k < 4; k++) {
      ein_cost cost = k / 2 == 0 ? EIN_COST_BYTES : EIN_COST_SECONDS;
      ein_decomp_info some = searched(g, p, cost, k % 2, 0, 0);
      ein_decomp_info all = searched(g, p, cost, k % 2, 1e30, 0);
      int ok = fabs(some.total - all.total) <= 1e-12 * all.total || !some.proved || !all.proved;
      ok &= some.nvector <= all.nvector && some.proved >= all.proved;
      CHECK(ok);
      if (!ok) printf("case %d p %d k %d: %.17g, %.17g with all ways\n%s", n, (int)p, k, some.total,
                      all.total, fixed ? affine_programs[n / 8] : text);
      proved += some.proved && all.proved;
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: %d least sums without the ways that are dropped as with them\n", (int)seed,
         proved);
}

// Bounds of a search with few ways of each statement hold: the least total is never below what is
// said, and with enough of them it is found.
static void few_ways(int cases, uint64_t seed) {
  int proved = 0, within = 0, tried = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[4096];
    ein_graph *g = random_program((int)draw(2, STMTS), 0, chance(50), text, sizeof text);
    ein_decompose_desc d;
    ein_decomposition *x;
    memset(&d, 0, sizeof d);
    d.p = draw(1, 4) * draw(1, 16);
    d.cost = n % 2 == 0 ? EIN_COST_BYTES : EIN_COST_SECONDS;
    d.max_vectors = 2048;  // all from the start
    CHECK(eini_decompose_once(ctx, g, &d, &x) == EIN_OK);
    const ein_decomp_info least = x->info;
    ein_decomposition_destroy(x);
    d.max_vectors = 0;
    proved += least.proved;
    for (int most = 1; most <= 64 && least.proved; most *= 4) {
      int all = 0;
      x = eini_decomp_new(ctx, &d, EINI_METHOD_BEST);
      CHECK(x != NULL);
      eini_answers of = {x, NULL, NULL};
      CHECK(eini_decompose_most(ctx, g, &d, EINI_METHOD_BEST, NULL, most, &all, &of) == EIN_OK);
      const ein_decomp_info *few = &x->info;
      CHECK(few->lower <= least.total * (1 + 1e-9) && few->total >= least.total * (1 - 1e-9));
      CHECK(!all || few->total <= least.total * (1 + 1e-9));
      CHECK(!few->proved || few->total <= least.total * (1 + 1e-9));
      within += few->total > 0 && few->lower >= 0.9 * few->total;
      tried += few->total > 0;
      ein_decomposition_destroy(x);
    }
    ein_graph_destroy(g);
  }
  CHECK(2 * proved > cases && 4 * within > tried);
  printf("seed %d: %d least totals, few ways known to be within 10 %% in %d of %d searches\n",
         (int)seed, proved, within, tried);
}

// ---- simulation ---------------------------------------------------------------------------------

static ein_decomposition *decompose(const ein_graph *g, int64_t p, ein_cost cost,
                                    const char *method, int nparts, const char *const *parts,
                                    const ein_machine *machine) {
  ein_decompose_desc d;
  ein_decomposition *x;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = cost;
  d.method = method;
  d.nparts = nparts;
  d.parts = parts;
  d.machine = machine;
  if (ein_decompose(ctx, g, &d, &x) != EIN_OK && method == NULL) {
    printf("%s\n", ein_ctx_message(ctx));
    failures++;
  }
  return x;
}

typedef struct timeline {
  double clock[64], busy;
  int tasks, wrong;
} timeline;

static void on_task(void *user, int stmt, int64_t place, double start, double end) {
  timeline *t = (timeline *)user;
  (void)stmt;
  t->wrong += place < 0 || place >= 64 || end < start || start < t->clock[place];
  t->clock[place] = end;
  t->busy += end - start;
  t->tasks++;
}

static void simulation(void) {
  static const char *const folded[] = {"Y[i=2]", "Z[i=2]"}, *const whole[] = {"Y[i=2]"};
  ein_machine m;
  ein_sim_desc d;
  ein_sim_info info;
  ein_sim_stmt each[2];
  double peak[2];
  memset(&m, 0, sizeof m);
  m.flops = 1;
  m.memory_bw = 1e12;
  m.latency = 10;
  m.bandwidth = 1;
  m.overhead = 0.5;
  memset(&d, 0, sizeof d);
  d.machine = &m;
  d.stmt = each;
  d.peak = peak;
  ein_graph *g = program("input X[i=8] : f64\nY[i] = exp(X[i])\nZ = sum[i](Y[i])\n");
  // Two tasks of 4 points each; then 4 additions each, and one partial result of 8 bytes.
  ein_decomposition *x = decompose(g, 2, EIN_COST_SECONDS, "given", 2, folded, &m);
  CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
  CHECK(info.seconds == 4.5 + 4.5 + 10 + 8 + 1 && info.messages == 1 && info.agg == 8);
  CHECK(info.join == 0 && info.tasks == 4 && info.busy == 18 && info.flops == 16);
  // Half of X, half of Y, and Z.
  CHECK(each[0].end == 4.5 && each[1].start == 4.5 && peak[0] == 72 && info.peak_bytes == 72);
  CHECK(info.input_bytes == 32 && peak[1] == 72);
  ein_decomposition_destroy(x);
  // One task of 8 points, which waits for half of Y: 32 bytes.
  x = decompose(g, 2, EIN_COST_SECONDS, "given", 1, whole, &m);
  CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
  CHECK(info.seconds == 4.5 + 10 + 32 + 8.5 && info.messages == 1 && info.join == 32);
  CHECK(info.agg == 0 && info.tasks == 3 && peak[0] == 32 + 32 + 32 + 8 && peak[1] == 64);
  CHECK(ein_simulate(ctx, NULL, x, &d, &info) == EIN_ERR_ARGUMENT);
  CHECK(ein_simulate(ctx, g, NULL, &d, &info) == EIN_ERR_ARGUMENT);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
  // A machine without the memory: the least that will do is named.
  ein_decompose_desc too_small;
  g = program(attention);
  memset(&too_small, 0, sizeof too_small);
  too_small.p = 4;
  m.memory = 100;
  too_small.machine = &m;
  too_small.inputs = EIN_INPUTS_OUTSIDE;
  CHECK(ein_decompose(ctx, g, &too_small, &x) == EIN_ERR_TOO_LARGE);
  // T cut once over d, and 2 partial results of 64 bytes; 168 is the least for all statements.
  CHECK(strstr(ein_ctx_message(ctx), "'T' (s=8, t=8, d=4): a place takes 128 bytes at least") !=
        NULL);
  for (m.memory = 128; m.memory <= 168; m.memory += 20) {
    ein_status st = ein_decompose(ctx, g, &too_small, &x);
    CHECK(st == (m.memory < 168 ? EIN_ERR_TOO_LARGE : EIN_OK));
    CHECK(st == EIN_OK ||
          strstr(ein_ctx_message(ctx), "'C' (s=8, t=8): a place takes 168 bytes at least") != NULL);
    ein_decomposition_destroy(x);
  }
  m.memory = 100;
  // Inputs count unless they are outside: half of Q and the whole K, or the other way round.
  too_small.inputs = EIN_INPUTS_HELD;
  CHECK(ein_decompose(ctx, g, &too_small, &x) == EIN_ERR_TOO_LARGE);
  CHECK(strstr(ein_ctx_message(ctx), "'T' (s=8, t=8, d=4): a place takes 192 bytes at least") !=
        NULL);
  m.memory = 600;
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    x = decompose(g, 4, (ein_cost)cost, NULL, 0, NULL, &m);
    CHECK(x != NULL && cut_of(g, x, "T", "s") * cut_of(g, x, "T", "t") *
                       cut_of(g, x, "T", "d") == 4);
    ein_decomposition_destroy(x);
  }
  ein_graph_destroy(g);
}

// Simulated seconds of given vectors under the default machine: 1e10 bytes a second each way.
static double simulated(const char *text, int64_t p, int nparts, const char *const *parts,
                        ein_sim_info *info) {
  ein_graph *g = program(text);
  ein_decomposition *x = decompose(g, p, EIN_COST_BYTES, "given", nparts, parts, NULL);
  CHECK(x != NULL && ein_simulate(ctx, g, x, NULL, info) == EIN_OK);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
  return info->seconds;
}

// What a place receives and sends takes its link's time, whatever it is.
static void links(void) {
  static const char *const folds[] = {"Y[i=2]", "Z[i=2]"}, *const reader[] = {"B[j=8]"};
  static const char *const round[] = {"A[i=1048576]", "B[j=1048576]"};
  ein_sim_info info;
  // Two partial results of 8 MB into place 0; 7 times 9 MB out of place 0.
  double s = simulated("input X[i=2,j=1000000] : f64\nY[j] = sum[i](X[i,j])\n"
                       "Z[j] = sum[i](X[i,j]*2)\n", 2, 2, folds, &info);
  CHECK(info.agg == 16e6 && s >= 1.6e-3 && s < 2e-3);
  s = simulated("input X[i=1125000] : f64\nA[i] = X[i]\nB[j=8,i] = A[i]*2\n", 8, 1, reader, &info);
  CHECK(info.join == 63e6 && info.messages == 7 && s >= 6.3e-3 && s < 7e-3);
  // All read all: too many messages to follow one by one. Every place sends and receives 8 MiB.
  clock_t begin = clock();
  s = simulated("input X[i=1048576] : f64\nA[i] = X[i]\nB[j=1048576] = sum[i](A[i])\n", 1048576,
                2, round, &info);
  double places = 1048576, bytes = 8 * (places - 1);
  CHECK(info.join == places * bytes && info.messages == places * (places - 1));
  CHECK(s >= bytes / 1e10 && s < 2 * bytes / 1e10);
  CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
}

// ---- nodes ----

typedef struct last_moves { double first, last[4]; int n; } last_moves;  // last: at each place

static void note_last(void *user, const ein_sim_move *x) {
  last_moves *l = (last_moves *)user;
  if (l->n++ == 0 || x->sent < l->first) l->first = x->sent;
  l->last[x->to] = fmax(l->last[x->to], x->arrived);
}

// Four places read all of Y, of which each has 8 bytes, at a byte a second, in turns: first of the
// place before. In two nodes each link carries 32 bytes each way, from the first turn on. Without
// nodes every place's link is busy in all three turns.
static void nodes(void) {
  static const double link[] = {1, 0.5, 0.25, 0}, last[] = {32, 64, 128, 24};
  ein_graph *g = program("input X[i=4], W[k=4,i] : f64\nY[i] = exp(X[i])\n"
                         "Z[k] = sum[i](Y[i]*W[k,i])\noutput Z\n");
  static const char *const parts[] = {"Y[i=4]", "Z[k=4]"};
  ein_decompose_desc how;
  ein_decomposition *x;
  memset(&how, 0, sizeof how);
  how.p = 4;
  how.method = "given";
  how.parts = parts;
  how.nparts = 2;
  CHECK(ein_decompose(ctx, g, &how, &x) == EIN_OK);
  for (int k = 0; k < 4; k++) {
    ein_machine m;
    ein_sim_desc d;
    ein_sim_info info;
    last_moves l;
    memset(&m, 0, sizeof m), memset(&d, 0, sizeof d), memset(&l, 0, sizeof l);
    m.latency = 1e-30, m.bandwidth = 1;
    m.node = k < 3 ? 2 : 0;
    m.node_bandwidth = link[k];
    d.machine = &m;
    d.move_fn = note_last;
    d.user = &l;
    CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
    CHECK(l.n == 12 && info.messages >= 12 && info.messages <= 12);
    double most = 0;
    for (int q = 0; q < 4; q++) most = fmax(most, l.last[q] - l.first);
    if (fabs(most - last[k]) > 1e-9) printf("link %g: %.17g, not %g\n", link[k], most, last[k]);
    CHECK(fabs(most - last[k]) < 1e-9);
  }
  ein_decomposition_destroy(x);
  // Nodes that cannot be.
  ein_machine m;
  memset(&m, 0, sizeof m);
  how.machine = &m;
  for (int k = 0; k < 2; k++) {
    m.node = k == 0 ? -1 : EIN_PLACES_MAX + 1;
    CHECK(ein_decompose(ctx, g, &how, &x) == EIN_ERR_ARGUMENT && x == NULL);
    CHECK(strstr(ein_ctx_message(ctx), "a node cannot have ") != NULL);
  }
  ein_graph_destroy(g);
}

// A machine is what can be: else an error, and no number that is not finite.
static void machines(void) {
  static const double bad[] = {NAN, -1, INFINITY, -INFINITY, 1e-320, 1e-31, 1e31};
  static const double odd[] = {1e-30, 1e30, 0};
  static const char *const names[] = {"flops", "memory_bw", "latency", "bandwidth", "overhead",
                                      "memory", "node_latency", "node_bandwidth"};
  char says[64];
  ein_graph *g = program(attention);
  ein_decompose_desc d;
  ein_decomposition *x, *plain = decompose(g, 4, EIN_COST_BYTES, NULL, 0, NULL, NULL);
  ein_sim_info defaults;
  CHECK(ein_simulate(ctx, g, plain, NULL, &defaults) == EIN_OK);
  ein_machine is = defaults.machine;
  CHECK(fabs(is.flops / 1e11 - 1) < 1e-12 && fabs(is.memory_bw / 1e11 - 1) < 1e-12);
  CHECK(fabs(is.latency / 2e-6 - 1) < 1e-12 && fabs(is.bandwidth / 1e10 - 1) < 1e-12);
  CHECK(fabs(is.overhead / 2e-6 - 1) < 1e-12 && is.memory <= 0 && is.node == 0);
  memset(&d, 0, sizeof d);
  d.p = 4;
  d.cost = EIN_COST_SECONDS;
  for (int field = 0; field < 8; field++) {
    ein_machine m;
    ein_sim_stmt each[16];
    ein_sim_desc sim;
    ein_sim_info info;
    memset(&m, 0, sizeof m);
    memset(&sim, 0, sizeof sim);
    double *const at[] = {&m.flops, &m.memory_bw, &m.latency, &m.bandwidth, &m.overhead, &m.memory,
                          &m.node_latency, &m.node_bandwidth};
    m.node = field > 5 ? 2 : 0;
    d.machine = sim.machine = &m;
    sim.stmt = each;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
      *at[field] = bad[k];
      CHECK(ein_decompose(ctx, g, &d, &x) == EIN_ERR_ARGUMENT && x == NULL);
      snprintf(says, sizeof says, "a machine cannot have %s ", names[field]);
      CHECK(strstr(ein_ctx_message(ctx), says) != NULL);
      CHECK(ein_simulate(ctx, g, plain, &sim, &info) == EIN_ERR_ARGUMENT);
    }
    for (size_t k = 0; k < sizeof odd / sizeof *odd && field != 5; k++) {
      *at[field] = odd[k];
      CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
      CHECK(ein_simulate(ctx, g, x, &sim, &info) == EIN_OK);
      CHECK(isfinite(info.seconds) && isfinite(info.busy) && info.busy > 0);
      for (int i = 0; i < g->nstmt; i++)
        CHECK(isfinite(each[i].start) && isfinite(each[i].end) && each[i].end >= each[i].start);
      ein_decomposition_destroy(x);
    }
  }
  ein_decomposition_destroy(plain);
  ein_graph_destroy(g);
}

// With one place, a statement takes in the simulation what it costs under `seconds`.
static void one_cost(int cases, uint64_t seed) {
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[2048];
    ein_sim_stmt each[STMTS];
    ein_sim_desc d;
    ein_sim_info info;
    ein_graph *g = random_program(STMTS, 0, 0, text, sizeof text);
    ein_decomposition *x = decompose(g, 1, EIN_COST_SECONDS, NULL, 0, NULL, NULL);
    double sum = 0;
    memset(&d, 0, sizeof d);
    d.stmt = each;
    CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
    for (int i = 0; i < g->nstmt; i++) {
      ein_parts p;
      ein_decomposition_parts(x, i, &p);
      CHECK(fabs(each[i].end - each[i].start - p.seconds) <= 1e-12 * info.seconds);
      sum += p.seconds;
    }
    CHECK(fabs(info.seconds - sum) <= 1e-12 * sum && fabs(info.busy - sum) <= 1e-12 * sum);
    ein_decomposition_destroy(x);
    ein_graph_destroy(g);
  }
}

// ---- memory of places ----

// Total and simulated peak of given vectors and orders, one per statement.
static void given_peak(const ein_graph *g, int64_t p, ein_cost cost, ein_inputs inputs,
                       ein_parts *parts, double *total, double *peak) {
  ein_decomposition hint, *x;
  ein_decompose_desc d;
  ein_decomp_info info;
  ein_sim_info sim;
  memset(&d, 0, sizeof d);
  memset(&hint, 0, sizeof hint);
  hint.parts = parts;
  hint.info.method = "given";
  d.p = p;
  d.cost = cost;
  d.inputs = inputs;
  *total = *peak = -1;
  CHECK(eini_decompose_with(ctx, g, &d, EINI_METHOD_FIXED, &hint, &x) == EIN_OK);
  if (x == NULL) return;
  ein_decomposition_info(x, &info);
  CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
  *total = info.total;
  *peak = sim.peak_bytes;
  ein_decomposition_destroy(x);
}

// All vectors of a statement in all orders.
static int brute_placed(const eini_stmt *s, int64_t p, int prefer_even, int64_t (*cut)[8],
                        int (*order)[8]) {
  static int64_t way[WAYS][8];
  int ways = brute_ways(s, p, prefer_even, way), n = 0;
  for (int w = 0; w < ways; w++) {
    int m = 0, cuts[8] = {0};
    for (int c = 0; c < s->nindex; c++)
      if (way[w][c] > 1) cuts[m++] = c;
    do {
      memcpy(cut[n], way[w], sizeof cut[n]);
      memcpy(order[n++], cuts, sizeof cuts);
    } while (n < WAYS && eini_permute(cuts, m));
    if (n == WAYS) break;
  }
  return n;
}

static ein_parts parts_of(const eini_stmt *s, const int64_t *cut, const int *order) {
  ein_parts p;
  memset(&p, 0, sizeof p);
  p.nindex = s->nindex;
  p.cut = cut;
  p.order = order;
  p.ntask = 1;
  for (int c = 0; c < s->nindex; c++) {
    p.norder += cut[c] > 1;
    p.ntask *= cut[c];
  }
  return p;
}

// One limit: the least total of what fits, or the error when nothing does.
static void limited(const ein_graph *g, int64_t p, ein_cost cost, ein_inputs inputs, double limit,
                    int n, const double *total, const double *peak, long *found) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_machine m;
  double best = INFINITY, least = INFINITY;
  for (int i = 0; i < n; i++) {
    if (peak[i] <= limit && total[i] < best) best = total[i];
    if (peak[i] < least) least = peak[i];
  }
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  m.memory = limit;
  d.p = p;
  d.cost = cost;
  d.strict = 1;
  d.inputs = inputs;
  d.max_vectors = 1024;
  d.machine = &m;
  // With folds split it may be less, and fit where nothing else does.
  ein_status st = ein_decompose(ctx, g, &d, &x);
  CHECK(st == EIN_OK || (st == EIN_ERR_TOO_LARGE && best >= INFINITY));
  if (st == EIN_OK) {
    ein_decomp_info info;
    ein_sim_info sim;
    ein_decomposition_info(x, &info);
    const int split = ein_decomposition_graph(x) != NULL;
    CHECK(split ? info.total < best : fabs(info.total - best) <= 1e-9 * best);
    CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK && sim.peak_bytes <= limit);
    ein_decomposition_destroy(x);
  }
  d.no_scatter = 1;
  st = ein_decompose(ctx, g, &d, &x);
  CHECK(st == (best < INFINITY ? EIN_OK : EIN_ERR_TOO_LARGE));
  if (st != EIN_OK) {
    CHECK(strstr(ein_ctx_message(ctx), "statement 'T") != NULL &&
          strstr(ein_ctx_message(ctx), "bytes at least") != NULL &&
          strstr(ein_ctx_message(ctx), "searched") == NULL);
    // No less than what is named will do: the least where places are all that a statement needs.
    const char *takes = strstr(ein_ctx_message(ctx), "takes ");
    double named = takes != NULL ? strtod(takes + 6, NULL) : 0;
    CHECK(named > limit && named <= least);
    if (named > least) printf("  %s: %g will do\n", ein_ctx_message(ctx), least);
    found[2] += named >= least;
    found[0]++;
    return;
  }
  ein_decomp_info info;
  ein_sim_info sim;
  ein_decomposition_info(x, &info);
  CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
  CHECK(sim.peak_bytes <= limit);
  int ok = info.proved && fabs(info.total - best) <= 1e-9 * best;
  CHECK(ok);
  if (!ok) printf("  total %g, brute force %g, proved %d\n", info.total, best, info.proved);
  found[1]++;
  ein_decomposition_destroy(x);
}

// Limits below, at and above the least need of random programs against all vectors and orders.
static void memory_limits(int cases, uint64_t seed) {
  static int64_t cut[STMTS][WAYS][8];
  static int order[STMTS][WAYS][8];
  static double total[2048], peak[2048];
  long found[3] = {0, 0, 0}, dearer = 0;
  int done = 0;
  rng_state = seed;
  for (int tries = 0; done < cases && tries < 100 * cases; tries++) {
    static const int64_t places[] = {2, 3, 4, 6, 8};
    char text[2048];
    int n[STMTS], at[STMTS] = {0}, all = 0;
    int64_t p = places[draw(0, 4)];
    ein_cost cost = chance(50) ? EIN_COST_PAPER : EIN_COST_BYTES;
    ein_inputs inputs = chance(50) ? EIN_INPUTS_HELD : EIN_INPUTS_OUTSIDE;
    ein_parts parts[STMTS];
    double combos = 1, free_total = INFINITY, free_peak = 0, least = INFINITY;
    ein_graph *g = random_program((int)draw(2, 4), 0, 0, text, sizeof text);
    for (int i = 0; i < g->nstmt; i++)
      combos *= n[i] = brute_placed(&g->stmt[i], p, cost == EIN_COST_PAPER, cut[i], order[i]);
    if (combos > 2048) {
      ein_graph_destroy(g);
      continue;
    }
    for (int i = 0; i >= 0;) {
      for (i = 0; i < g->nstmt; i++)
        parts[i] = parts_of(&g->stmt[i], cut[i][at[i]], order[i][at[i]]);
      given_peak(g, p, cost, inputs, parts, &total[all], &peak[all]);
      if (peak[all] < least) least = peak[all];
      if (total[all] < free_total) free_total = total[all], free_peak = peak[all];
      all++;
      for (i = (int)g->nstmt - 1; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
    }
    int before = failures;
    limited(g, p, cost, inputs, least - 1, all, total, peak, found);
    limited(g, p, cost, inputs, least, all, total, peak, found);
    limited(g, p, cost, inputs, (least + free_peak) / 2, all, total, peak, found);
    limited(g, p, cost, inputs, free_peak - 1, all, total, peak, found);
    if (failures > before)
      printf("  p %d, %s, inputs %d\n%s", (int)p, ein_cost_name(cost), (int)inputs, text);
    dearer += free_peak > least;
    done++;
    ein_graph_destroy(g);
  }
  printf("seed %d: memory limits of %d programs as brute force, %ld fit, %ld do not, what is named "
         "fits in %ld; the least cost takes more than need be in %ld\n", (int)seed, done, found[1],
         found[0], found[2], dearer);
  CHECK(done == cases && found[0] >= cases && found[1] >= cases && dearer > 0);
}

// Orders that no edge tells apart decide where the larger blocks lie together.
static void residency(void) {
  ein_graph *g = program("input A[w=3,r=2], B[z=5,y=5], C[j=4] : f64\n"
                         "T[w] = sum[r](A[w,r])\nV[j] = C[j]*2\nU[z,y] = B[z,y]*2\n"
                         "output T, V, U\n");
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    for (int limit = 39; limit < 42; limit++) {
      ein_machine m;
      ein_decompose_desc d;
      ein_decomposition *x;
      ein_sim_info sim;
      memset(&m, 0, sizeof m);
      memset(&d, 0, sizeof d);
      m.memory = limit < 40 ? 47 : limit == 40 ? 48 : 56;
      d.p = 6;
      d.cost = (ein_cost)cost;
      d.strict = 1;
      d.inputs = EIN_INPUTS_OUTSIDE;
      d.machine = &m;
      ein_status st = ein_decompose(ctx, g, &d, &x);
      CHECK(st == (limit < 40 ? EIN_ERR_TOO_LARGE : EIN_OK));
      if (st != EIN_OK) printf("  %s\n", ein_ctx_message(ctx));
      if (st == EIN_OK) CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
      if (st == EIN_OK) CHECK(sim.peak_bytes <= m.memory);
      ein_decomposition_destroy(x);
    }
  }
  ein_graph_destroy(g);
}

// The answer for seconds is never slower in the simulation than a baseline; tasks do not overlap.
static void fastest(int cases, uint64_t seed) {
  static const char *const base[] = {"none", "sqrt",     "linear",   "data",
                                     "model", "sequence", "attention"};
  static const char *const layer =
      "input x[b=2,s=32,a=16], wq[a,h=4,d=4], wk[a,h,d], wv[a,h,d], wo[h,d,a] : f32\n"
      "input w1[a,f=64], w2[f,a] : f32\n"
      "q[b,s,h,d] = sum[a](x[b,s,a]*wq[a,h,d])\nk[b,t,h,d] = sum[a](x[b,t,a]*wk[a,h,d])\n"
      "v[b,t,h,d] = sum[a](x[b,t,a]*wv[a,h,d])\nz[b,h,s,t] = sum[d](q[b,s,h,d]*k[b,t,h,d])\n"
      "p[b,h,s,t] = softmax[t](z[b,h,s,t])\no[b,s,h,d] = sum[t](p[b,h,s,t]*v[b,t,h,d])\n"
      "y[b,s,a] = x[b,s,a] + o[b,s,h,d]*wo[h,d,a]\nu[b,s,f] = relu(sum[a](y[b,s,a]*w1[a,f]))\n"
      "g[b,s,a] = y[b,s,a] + u[b,s,f]*w2[f,a]\noutput g\n";
  static const double rates[] = {1e6, 1e8, 1e10, 1e12};
  int compared = 0, better = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[2048];
    ein_machine m;
    ein_sim_desc d;
    ein_sim_info best, other;
    timeline line;
    ein_graph *g = n % 3 == 0 ? program(layer) : random_program(4, 0, 0, text, sizeof text);
    int64_t p = draw(1, 64);
    memset(&m, 0, sizeof m);
    memset(&line, 0, sizeof line);
    memset(&d, 0, sizeof d);
    m.flops = rates[draw(0, 3)];
    m.bandwidth = rates[draw(0, 3)];
    m.latency = 1 / rates[draw(0, 3)];
    m.overhead = 1 / rates[draw(0, 3)];
    d.machine = &m;
    d.task_fn = on_task;
    d.user = &line;
    ein_decomposition *x;
    ein_decompose_desc named;
    memset(&named, 0, sizeof named);
    named.p = p;
    named.cost = EIN_COST_SECONDS;
    named.machine = &m;
    named.batch = "b,batch,n";
    CHECK(ein_decompose(ctx, g, &named, &x) == EIN_OK);
    CHECK(ein_simulate(ctx, g, x, &d, &best) == EIN_OK);
    CHECK(!line.wrong && line.tasks == (int)best.tasks);
    CHECK(fabs(line.busy - best.busy) <= 1e-9 * best.busy);
    ein_decomp_info info;
    ein_decomposition_info(x, &info);
    CHECK(info.seconds == best.seconds && info.lower <= info.total);
    d.task_fn = NULL;
    for (int k = 0; k < 3; k++) {  // one that ends early says so, or what it says without
      const double limit = best.seconds * (0.5 + 0.5 * k);
      CHECK(eini_simulate(ctx, g, x, &d, limit, &other) == EIN_OK);
      CHECK(best.seconds < limit ? other.seconds == best.seconds : other.seconds >= INFINITY);
    }
    ein_decomposition_destroy(x);
    for (int k = 0; k < 7; k++) {
      x = decompose(g, p, EIN_COST_SECONDS, base[k], 0, NULL, &m);
      if (x == NULL) continue;
      CHECK(ein_simulate(ctx, g, x, &d, &other) == EIN_OK);
      CHECK(best.seconds <= other.seconds);
      better += best.seconds < other.seconds;
      compared++;
      ein_decomposition_destroy(x);
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: %d programs never slower than a baseline in the simulation, faster %d of %d "
         "times\n", (int)seed, cases, better, compared);
}

// ---- names and orders ---------------------------------------------------------------------------

// The text with other names for the indices a to e, as chosen, and brackets backwards.
static void renamed(const char *text, const int *name, int backwards, char *to) {
  static const char *const names[] = {"b", "s", "h", "f", "seq", "n", "a", "hidden", "ff", "w2"};
  for (const char *t = text; *t; t++) {
    const char *end = strchr(t, ']'), *s = end;
    if (*t != '[') {
      *to++ = *t;
      continue;
    }
    *to++ = '[';
    for (const char *from = backwards ? end : t + 1; backwards ? from > t + 1 : from < end;) {
      const char *stop = from;
      if (backwards) {
        for (from--; from > t + 1 && from[-1] != ',';) from--;
        s = from;
      } else {
        while (*stop != ',' && stop < end) stop++;
        s = from;
      }
      if (to[-1] != '[') *to++ = ',';
      to += sprintf(to, "%s%.*s", names[name[*s - 'a']], (int)(stop - s - 1), s + 1);
      if (backwards) from = from > t + 1 ? from - 1 : from;
      else from = stop < end ? stop + 1 : end;
    }
    *to++ = ']';
    t = end;
  }
  *to = 0;
}

// Totals do not depend on names, nor on the order of axes and statements.
static void invariance(int cases, uint64_t seed) {
  static const int64_t places[] = {2, 4, 6, 8, 16};
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[4096], other[8192], line[16][512];
    int name[5] = {0, 1, 2, 3, 4}, nline = 0;
    ein_graph *g = random_program((int)draw(2, 5), 0, chance(50), text, sizeof text);
    for (int i = 0; i < 5; i++) {
      int again = 1;
      while (again) {
        name[i] = (int)draw(0, 9);
        again = 0;
        for (int j = 0; j < i; j++) again |= name[j] == name[i];
      }
    }
    for (int mode = 0; mode < 3; mode++) {
      renamed(text, name, mode == 1, other);
      if (mode == 2) {  // statements change places where neither reads the other
        nline = 0;
        for (char *s = strtok(text, "\n"); s != NULL && nline < 16; s = strtok(NULL, "\n"))
          snprintf(line[nline++], sizeof line[0], "%s", s);
        for (int k = 0; k < 20; k++) {
          int i = (int)draw(3, nline - 2);
          char mine[8], swap[512];
          if (nline < 5) break;
          snprintf(mine, sizeof mine, "%.2s[", line[i]);
          if (strstr(line[i + 1], mine) != NULL) continue;
          memcpy(swap, line[i], sizeof swap);
          memcpy(line[i], line[i + 1], sizeof swap);
          memcpy(line[i + 1], swap, sizeof swap);
        }
        other[0] = 0;
        for (int k = 0; k < nline; k++) strcat(strcat(other, line[k]), "\n");
      }
      ein_graph *h = program(other);
      for (int cost = 0; cost < (mode == 0 ? EIN_COST_COUNT : EIN_COST_SECONDS); cost++) {
        ein_decompose_desc d;
        ein_decomp_info a, b;
        memset(&d, 0, sizeof d);
        d.p = places[n % 5];
        d.cost = (ein_cost)cost;
        total_of(g, &d, &a);
        total_of(h, &d, &b);
        int ok = fabs(a.total - b.total) <= 1e-9 * a.total && a.seconds == b.seconds;
        ok &= a.proved == b.proved;
        CHECK(ok);
        if (!ok) printf("case %d mode %d: %.17g, %.17g\n%s", n, mode, a.total, b.total, other);
      }
      ein_graph_destroy(h);
    }
    ein_graph_destroy(g);
  }
}

// ---- baselines ----------------------------------------------------------------------------------

static void baselines(void) {
  ein_graph *g = program(
      "input x[b=4,s=16,a=8], wq[a,h=4,d=8], wk[a,h,d], w1[a,f=32], w2[f,a] : f32\n"
      "q[b,s,h,d] = sum[a](x[b,s,a]*wq[a,h,d])\nk[b,t,h,d] = sum[a](x[b,t,a]*wk[a,h,d])\n"
      "z[b,h,s,t] = sum[d](q[b,s,h,d]*k[b,t,h,d])\nu[b,s,f] = sum[a](x[b,s,a]*w1[a,f])\n"
      "y[b,s,a] = sum[f](u[b,s,f]*w2[f,a])\nm[b,s] = mean[a](x[b,s,a])\noutput z, y, m\n");
  static const struct { const char *method, *out, *index; int64_t cut, tasks; } c[] = {
      {"none", "z", "h", 1, 1}, {"data", "q", "b", 4, 4}, {"data", "m", "b", 4, 4},
      {"model", "z", "h", 4, 4}, {"megatron", "u", "f", 8, 8}, {"model", "y", "f", 8, 8},
      {"model", "m", "a", 1, 1}, {"sequence", "k", "t", 8, 8}, {"sequence", "z", "s", 8, 8},
      {"sequence", "z", "t", 1, 8}, {"attention", "k", "h", 4, 4}, {"attention", "u", "f", 1, 1},
      {"sqrt", "u", "f", 4, 8}, {"sqrt", "u", "s", 2, 8}, {"sqrt", "m", "s", 4, 8}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
      ein_decompose_desc d;
      ein_decomposition *x;
      ein_decomp_info info;
      memset(&d, 0, sizeof d);
      d.p = 8;
      d.method = c[i].method;
      d.cost = (ein_cost)cost;
      if (ein_decompose(ctx, g, &d, &x) != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
      CHECK(x != NULL && cut_of(g, x, c[i].out, c[i].index) == c[i].cut);
      ein_decomposition_info(x, &info);
      ein_decomposition_destroy(x);
      CHECK(strcmp(info.family, "method") == 0);
      d.method = NULL;
      CHECK(total_of(g, &d, &info) >= 0 && (info.proved || cost == EIN_COST_SECONDS));
      CHECK(strcmp(info.family, cost == EIN_COST_SECONDS ? "divisors" : "paper") == 0);
      double best = info.total;
      d.method = c[i].method;  // those of p tasks everywhere are in the family
      if (cost != EIN_COST_SECONDS && strcmp(d.method, "sequence") == 0)
        CHECK(total_of(g, &d, &info) >= best * (1 - 1e-12));
    }
  }
  // Names of one's own.
  ein_decompose_desc d;
  ein_decomposition *x;
  memset(&d, 0, sizeof d);
  d.p = 4;
  d.method = "data";
  d.batch = "q,d,f";
  CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK && cut_of(g, x, "z", "d") == 4 &&
        cut_of(g, x, "q", "b") == 1 && cut_of(g, x, "u", "f") == 4);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
}

// ---- out of memory ------------------------------------------------------------------------------

static void out_of_memory(void) {
  ein_machine tight;  // where the least cost does not fit
  memset(&tight, 0, sizeof tight);
  tight.memory = 600;
  static const char *const pin = "Q[s=2]";
  ein_graph *g = program(attention);
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    for (long n = 0, ok = 0; !ok; n++) {
      counter c;
      ein_ctx_desc desc;
      ein_ctx *mine;
      ein_decompose_desc d;
      ein_decomposition *x = NULL;
      memset(&desc, 0, sizeof desc);
      memset(&c, 0, sizeof c);
      c.fail_at = n;
      desc.allocator.alloc_fn = count_alloc;
      desc.allocator.free_fn = count_free;
      desc.allocator.user = &c;
      memset(&d, 0, sizeof d);
      d.p = 6;
      d.cost = (ein_cost)cost;
      d.pin = &pin;
      d.npin = 1;
      d.max_table = n % 2 ? 8 : 0;
      d.machine = n % 3 ? &tight : NULL;
      d.max_vectors = 4;  // where the search is short it meets as many allocations
      ein_status st = ein_ctx_create(&desc, &mine);
      if (st == EIN_OK) st = ein_decompose(mine, g, &d, &x);
      if (st == EIN_OK) {
        ein_sim_info info;
        st = ein_simulate(mine, g, x, NULL, &info);
        if (st != EIN_OK) ein_decomposition_destroy(x);
        if (st != EIN_OK) x = NULL;
      }
      ok = st == EIN_OK;
      CHECK(ok || (st == EIN_ERR_NO_MEMORY && x == NULL));
      ein_decomposition_destroy(x);
      ein_ctx_destroy(mine);
      CHECK(c.live == 0);
    }
  }
  ein_graph_destroy(g);
}

// Many indices and places: lists of vectors and orders end somewhere, and the answer says so.
static void many(void) {
  static const ein_cost cost[] = {EIN_COST_PAPER, EIN_COST_BYTES};
  ein_graph *g = program(
      "input X[a=16,b=16,c=16,d=16,e=16,f=16], Y[f,g=16,h=16,i=16,j=16,k=16] : f32\n"
      "Z[a,b,c,g,h,i] = sum[d,e,f,j,k](X[a,b,c,d,e,f]*Y[f,g,h,i,j,k])\n"
      "W[a,b,c] = sum[g,h,i](exp(Z[a,b,c,g,h,i]))\n");
  for (int k = 0; k < 2; k++) {
    ein_decompose_desc d;
    ein_decomp_info info;
    memset(&d, 0, sizeof d);
    d.p = k == 0 ? 1048576 : 1024;
    d.cost = cost[k];
    d.strict = 1;
    double total = total_of(g, &d, &info);
    // Bytes: what both statements have free is cut alike.
    if (k == 0) CHECK(total > 0 && !info.proved && info.lower < total);
    else CHECK(total <= 0 && info.proved);
    CHECK(info.nvector <= 2 * 4096);
  }
  ein_graph_destroy(g);
  // More vectors than can be kept: the best are there, and nothing is proved that is not.
  g = program("input X[a=32,i=32] : f64\n"
              "T[a,i,c=64,d=64,e=16,g=16,j=16,k=16,l=16,m=16] = X[a,i]\n");
  CHECK(one(g, 1024, NULL) == 1024);
  ein_graph_destroy(g);
  char text[2000];
  size_t n = 0;
  for (int round = 0; round < 2; round++) {  // a gate on the first of 20 qubits, on its last axis
    n = (size_t)snprintf(text, sizeof text, "input S[");
    for (int c = 0; c < 20; c++)
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%c=2", c ? "," : "", 'a' + c);
    n += (size_t)snprintf(text + n, sizeof text - n, "], G[z=2,y=2] : f32\n");
    for (int line = 0; line < 4; line++) {
      static const char *const start[] = {"A[", "] = S[", "]*2\nY[", "] = sum[z](G[a,z]*A["};
      n += (size_t)snprintf(text + n, sizeof text - n, "%s", start[line]);
      for (int c = 0; c < 20; c++) {
        int q = line == 1 || !round ? c : 19 - c;
        char name = line == 3 && q == 0 ? 'z' : (char)('a' + q);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c", c ? "," : "", name);
      }
    }
    snprintf(text + n, sizeof text - n, "])\n");
    g = program(text);
    for (int model = 0; model <= EIN_COST_BYTES; model += 2) {
      ein_decompose_desc d;
      ein_decomp_info info;
      memset(&d, 0, sizeof d);
      d.p = 1024;
      d.cost = (ein_cost)model;
      double total = total_of(g, &d, &info), most = model == EIN_COST_PAPER ? 2101248 : 0;
      CHECK(total == most && info.proved && info.lower == most);
    }
    ein_graph_destroy(g);
  }
}

// Vectors and orders that there is no room for are not said to have been looked at, and no number
// of places or ways asks for more time or memory than there is.
static void room_for_ways(void) {
  static const char *const pin[] = {"X[0=2,1=2,2=2]", "Z[0=2,1=2,2=2]"};
  ein_graph *g = program("input X[2,2,2] : f32\ninput Z[2,2,2] : f64\n"
                         "T[a,b,c] = X[a,b,c] + Z[c,b,a]\n");
  ein_decompose_desc d;
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  d.p = 8;
  d.cost = EIN_COST_BYTES;
  d.pin = pin;
  d.npin = 2;
  for (d.max_vectors = 1; d.max_vectors < 8; d.max_vectors++) {  // 6 orders; the last is the best
    double total = total_of(g, &d, &info);
    CHECK(total == (d.max_vectors < 6 ? 32 : 16) && info.proved == (d.max_vectors >= 6));
  }
  d.max_vectors = 1 << 30;
  d.beam = 1 << 30;
  CHECK(total_of(g, &d, &info) == 16 && info.proved);
  d.max_table = 2;
  CHECK(total_of(g, &d, &info) == 16);
  ein_graph_destroy(g);
  char axes[200], text[1000];
  for (int k = 0; k < 2; k++) {  // places that have no factors in common with the extents
    size_t n = 0;
    for (int c = 0; c < (k ? 30 : 20); c++)
      n += (size_t)snprintf(axes + n, sizeof axes - n, "%sa%d", c ? "," : "", c);
    n = (size_t)snprintf(text, sizeof text, "input X[");
    for (int c = 0; c < (k ? 30 : 20); c++)
      n += (size_t)snprintf(text + n, sizeof text - n, "%sa%d=%d", c ? "," : "", c, 2 + k);
    snprintf(text + n, sizeof text - n, "] : f32\nT[%s] = X[%s]*2\n", axes, axes);
    g = program(text);
    memset(&d, 0, sizeof d);
    for (int cost = EIN_COST_PAPER; cost <= EIN_COST_BYTES; cost++) {
      ein_decomposition *x;
      ein_parts parts;
      d.p = k ? 390625 : 1000;
      d.cost = (ein_cost)cost;
      CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
      if (x == NULL) printf("%s\n", ein_ctx_message(ctx));
      if (x == NULL) continue;
      CHECK(ein_decomposition_parts(x, 0, &parts) == EIN_OK && parts.ntask == (k ? 373248 : 512));
      ein_decomposition_info(x, &info);
      CHECK(info.total == (cost == EIN_COST_BYTES ? 0 : pow(2 + k, k ? 30 : 20)));
      CHECK(info.proved || k == 1);
      ein_decomposition_destroy(x);
    }
    ein_graph_destroy(g);
  }
}

// With less work the answer may be dearer, never than the paper's, and it is not said to be proved.
static void limited_work(void) {
  ein_graph *g = program(attention);
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info full, info;
  ein_sim_desc how;
  ein_sim_info sim;
  int refused[2] = {0, 0}, worse = 0, by_model = 0, by_time = 0;
  memset(&how, 0, sizeof how);
  x = decompose(g, 64, EIN_COST_PAPER, NULL, 0, NULL, NULL);
  CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
  double paper = sim.join + sim.agg;
  for (how.max_work = 64; how.max_work < 1e5; how.max_work *= 2) {
    ein_status st = ein_simulate(ctx, g, x, &how, &sim);
    CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
    CHECK(st == EIN_OK || strstr(ein_ctx_message(ctx), "6 statements over 64 places") != NULL);
    refused[0] += st != EIN_OK;
  }
  CHECK(refused[0] >= 3 && refused[0] <= 6);
  ein_decomposition_destroy(x);
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    memset(&d, 0, sizeof d);
    d.p = 64;
    d.cost = (ein_cost)cost;
    total_of(g, &d, &full);
    for (d.max_work = 64; d.max_work < 1e7; d.max_work *= 2) {
      ein_status st = ein_decompose(ctx, g, &d, &x);
      if (st != EIN_OK) {
        CHECK(cost >= EIN_COST_BYTES && st == EIN_ERR_TOO_LARGE);
        CHECK(strstr(ein_ctx_message(ctx), "over 64 places") != NULL);
        refused[1]++;
        continue;
      }
      ein_decomposition_info(x, &info);
      CHECK(info.lower <= full.total * (1 + 1e-9));
      CHECK(!info.proved || info.total <= full.total * (1 + 1e-9));
      CHECK(cost >= EIN_COST_BYTES || (info.proved && info.total == full.total));
      if (cost == EIN_COST_BYTES) CHECK(info.total <= paper && info.total >= full.total);
      worse += cost == EIN_COST_BYTES && info.total > full.total;
      CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
      if (cost == EIN_COST_SECONDS) CHECK(info.seconds == 0 || info.seconds == sim.seconds);
      by_time += info.seconds > 0;
      by_model += cost == EIN_COST_SECONDS && info.seconds <= 0;
      ein_decomposition_destroy(x);
    }
  }
  CHECK(refused[1] >= 6 && worse > 0 && by_model > 0 && by_time > 3);
  ein_graph_destroy(g);
}

// The most tasks that there can be, against all vectors.
static void most_tasks(int cases, uint64_t seed) {
  rng_state = seed;
  for (int done = 0; done < cases; done++) {
    int n = (int)draw(0, 4);
    int64_t limit[4], need[4], cut[4], most = 0, tasks, asked = 1;
    eini_decomposer dc;
    eini_dform f;
    eini_stmt s;
    memset(&dc, 0, sizeof dc);
    memset(&f, 0, sizeof f);
    memset(&s, 0, sizeof s);
    eini_arena_init(&dc.arena, NULL);
    s.nindex = n;
    f.s = &s;
    f.limit = limit;
    f.need = need;
    dc.p = draw(1, chance(50) ? 30 : 3000);
    for (int c = 0; c < n; c++) {
      cut[c] = 1;
      limit[c] = draw(1, chance(50) ? 4 : 40);
      need[c] = chance(20) ? draw(1, limit[c]) : 0;
      if (asked * need[c] > dc.p) need[c] = 0;
      if (need[c] != 0) asked *= need[c];
    }
    for (int c = 0; c >= 0;) {
      int64_t all = 1;
      int ok = 1;
      for (c = 0; c < n; c++) {
        all *= cut[c];
        ok &= need[c] == 0 || need[c] == cut[c];
      }
      if (ok && all <= dc.p && all > most) most = all;
      for (c = n - 1; c >= 0 && ++cut[c] > limit[c]; c--) cut[c] = 1;
    }
    CHECK(eini_tasks_most(&dc, &f, &tasks) == EIN_OK && tasks == most);
    eini_arena_free(&dc.arena);
  }
}

// Larger graphs: exact elimination and split tables must not contradict each other, and what is
// stated must be what the parts add up to.
static void bounds(int cases, uint64_t seed) {
  int proved = 0, exact = 0;
  double far = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[4096];
    ein_graph *g = random_program(STMTS, 0, chance(50), text, sizeof text);
    int64_t p = draw(1, 48);
    for (int cost = 0; cost < EIN_COST_SECONDS; cost++) {
      ein_decompose_desc d;
      ein_decomp_info whole, split;
      memset(&d, 0, sizeof d);
      d.p = p;
      d.cost = (ein_cost)cost;
      d.max_vectors = 64;
      total_of(g, &d, &whole);
      d.max_table = 100;
      d.beam = 32;
      total_of(g, &d, &split);
      CHECK(whole.lower <= whole.total && split.lower <= split.total);
      CHECK(split.lower <= whole.total * (1 + 1e-9) && whole.lower <= split.total * (1 + 1e-9));
      CHECK(!whole.proved || split.total >= whole.total * (1 - 1e-9));
      CHECK(whole.proved == (whole.gap == 0) || whole.total == 0);
      if (whole.total > 0 && split.total / whole.total > far) far = split.total / whole.total;
      exact += whole.proved;
      proved += split.proved;
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: %d totals proved, %d of them with split tables, which cost %.3f of it at most\n",
         (int)seed, exact, proved, far);
}

// Pieces of an index of the statement that defines a tensor.
static int64_t pieces_of(const ein_decomposition *x, const char *out, const char *index) {
  ein_decomp_stmt s;
  ein_parts p;
  for (int i = 0; ein_decomposition_stmt(x, i, &s) == EIN_OK; i++) {
    CHECK(ein_decomposition_parts(x, i, &p) == EIN_OK);
    for (int c = 0; c < s.nindex && strcmp(s.out, out) == 0; c++)
      if (strcmp(s.index[c], index) == 0) return p.cut[c];
  }
  return -1;
}

// Statements that differ in names and orders have one form, and are cut alike: index by index.
static void spellings(void) {
  static const char *const as[] = {"ikjl", "xzqp"};  // alike, letter by letter
  ein_graph *both = program(
      "input A[i=8,j=4,l=16], B[l,k=32], C[i,j,l], D[l,k], s[] : f32\n"
      "T[i,k] = sum[j,l](max(A[i,j,l]*B[l,k], 2*B[l,k]))\n"
      "U[x,z] = sum[p,q](max(D[p,z]*3, D[p,z]*C[x,q,p]))\noutput T, U\n");
  ein_graph *one = program(
      "input A[i=8,j=4,l=16], B[l,k=32], s[] : f32\n"
      "T[i,k] = sum[j,l](max(A[i,j,l]*B[l,k], 2*B[l,k]))\noutput T\n");
  for (int k = 0; k < 24; k++) {
    static const char *const asked[] = {NULL, "U[x=2,q=4]", "U[p=8]", "T[j=4,l=2]"};
    const char *parts = asked[k / 4 % 4];
    const char first[2] = {as[0][k % 4], 0}, second[2] = {as[1][k % 4], 0};
    ein_decompose_desc d;
    ein_decomp_info info;
    ein_decomposition *x = NULL;
    memset(&d, 0, sizeof d);
    d.p = 8;
    d.cost = k < 8 ? EIN_COST_BYTES : k < 16 ? EIN_COST_SECONDS : EIN_COST_PAPER;
    const double half = total_of(one, &d, &info);
    d.parts = &parts;
    d.nparts = parts != NULL;
    CHECK(ein_decompose(ctx, both, &d, &x) == EIN_OK);
    if (x == NULL) continue;
    ein_decomposition_info(x, &info);
    CHECK(info.nform == 1 + (parts != NULL));
    CHECK(parts != NULL || fabs(info.total - 2 * half) <= 1e-12 * half);
    CHECK(parts != NULL || pieces_of(x, "T", first) == pieces_of(x, "U", second));
    CHECK(k / 4 % 4 != 1 || pieces_of(x, "U", second) == (k % 4 == 0 ? 2 : k % 4 == 2 ? 4 : 1));
    CHECK(k / 4 % 4 != 2 || pieces_of(x, "U", second) == (k % 4 == 3 ? 8 : 1));
    CHECK(k / 4 % 4 != 3 || pieces_of(x, "T", first) == (k % 4 == 2 ? 4 : k % 4 == 3 ? 2 : 1));
    ein_decomposition_destroy(x);
  }
  ein_graph_destroy(both);
  ein_graph_destroy(one);
}

// Layers are isomorphic: more of them make no new forms, and each adds the same cost.
static void layers(void) {
  static char text[65536];
  double total[3];
  int form[3];
  for (int k = 0; k < 3; k++) {
    static const llama small = {0, 2, 16, 32, 4, 64};
    llama m = small;
    ein_decompose_desc d;
    ein_decomp_info info;
    m.layers = 2 + 2 * k;
    llama_program(&m, text, sizeof text);
    ein_graph *g = program(text);
    memset(&d, 0, sizeof d);
    d.p = 8;
    d.strict = 1;
    total[k] = total_of(g, &d, &info);
    form[k] = info.nform;
    CHECK(info.proved && info.nstmt > 24 * m.layers);
    d.cost = EIN_COST_BYTES;
    total_of(g, &d, &info);
    ein_graph_destroy(g);
  }
  CHECK(form[0] == form[1] && form[1] == form[2]);
  CHECK(fabs((total[2] - total[1]) - (total[1] - total[0])) <= 1e-9 * total[0]);
}

// Constraints of any text: a status, never more.
static void hostile_texts(int cases, uint64_t seed) {
  static const char alphabet[] = "TSYEQKstde[]=,.0123456789 -x";
  ein_graph *g = program(attention);
  int fine = 0;
  rng_state = seed;
  for (int n = 0; n < cases; n++) {
    char text[3][24];
    const char *list[3];
    ein_decompose_desc d;
    ein_decomposition *x;
    memset(&d, 0, sizeof d);
    for (int k = 0; k < 3; k++) {
      int len = (int)draw(0, 12);
      snprintf(text[k], sizeof text[k], "%s", k == 2 ? "T.s" : k ? "Q[s=4,d=2]" : "T[s=2,t=2]");
      if (chance(50)) {
        for (int i = 0; i < len; i++) text[k][i] = alphabet[draw(0, (int)sizeof alphabet - 2)];
        text[k][len] = 0;
      } else if (chance(80)) {
        text[k][draw(0, (int)strlen(text[k]) - 1)] = alphabet[draw(0, (int)sizeof alphabet - 2)];
      }
      list[k] = text[k];
    }
    d.p = draw(-1, 40);
    d.parts = &list[0];
    d.pin = &list[1];
    d.keep = &list[2];
    d.nparts = chance(50);
    d.npin = chance(50);
    d.nkeep = chance(50);
    ein_status st = ein_decompose(ctx, g, &d, &x);
    CHECK((st == EIN_OK) == (x != NULL) && (st == EIN_OK || ein_ctx_message(ctx)[0] != 0));
    fine += st == EIN_OK;
    ein_decomposition_destroy(x);
  }
  printf("seed %d: %d random constraints, %d of them good\n", (int)seed, cases, fine);
  ein_graph_destroy(g);
}

// Every value has one level, in whatever order values come.
static void test_levels(void) {
  static const double values[] = {5, 1, 3, 0, 5, 3, 1, 4};
  eini_decomposer dc;
  eini_edgework w;
  eini_levels out;
  memset(&dc, 0, sizeof dc);
  memset(&w, 0, sizeof w);
  eini_arena_init(&dc.arena, NULL);
  w.chunk = 8;
  CHECK(eini_levels_make(&dc, &w, values, &out) == EIN_OK && out.n == 4);
  for (int q = 0; q < 8; q++) {
    double found = 0;
    for (int k = 0; k < out.n; k++)
      if (w.level[out.first + k].at[0] >> q & 1) found += w.level[out.first + k].value;
    CHECK(fabs(found - values[q]) <= 0);
  }
  eini_arena_free(&dc.arena);
}

// Elements of a block in a box, counted one by one: coordinates of none, one or several indices,
// which they share or have of their own.
static void blocks_in_boxes(int cases, uint64_t seed) {
  int some = 0;
  rng_state = seed;
  for (int done = 0; done < cases; done++) {
    int n = (int)draw(1, 4), rows = (int)draw(1, 3), left = n;
    int64_t coef[12], offset[3], lo[4], hi[4], from[3], to[3], a[7], b[7], i[4], count = 0;
    eini_stmt s;
    memset(&s, 0, sizeof s);
    memset(coef, 0, sizeof coef);
    s.nindex = s.nfree = n;
    ein_zmap dense = {rows, n, coef, offset, NULL};
    eini_arena arena;
    eini_arena_init(&arena, NULL);
    for (int c = 0; c < n; c++) i[c] = lo[c] = draw(0, 3), hi[c] = lo[c] + draw(1, 6);
    for (int r = 0; r < rows; r++) {
      offset[r] = draw(-3, 3);
      from[r] = draw(-8, 12);
      to[r] = from[r] + draw(1, 20);
      for (int c = 0; c < n; c++)
        if (chance(done % 2 ? 40 : 0)) coef[r * n + c] = draw(-7, 7);
      for (int c = 0; c < n && left > 0 && done % 2 == 0 && chance(80); c++)
        coef[r * n + --left] = chance(20) ? -draw(1, 30) : draw(1, 30);
    }
    for (int c = 0; c >= 0;) {
      int inside = 1;
      for (int r = 0; r < rows; r++) {
        int64_t at = offset[r];
        for (int k = 0; k < n; k++) at += coef[r * n + k] * i[k];
        inside &= at >= from[r] && at < to[r];
      }
      count += inside;
      for (c = n - 1; c >= 0 && ++i[c] == hi[c]; c--) i[c] = lo[c];
    }
    CHECK(eini_map_new(&arena, rows, n, &s.out_map) == EIN_OK &&
          eini_map_read(&arena, &s.out_map, &dense) == EIN_OK);
    double have = eini_block_in_box(&s, lo, hi, from, to, a, b);
    CHECK(fabs(have - (double)count) <= 0);
    eini_arena_free(&arena);
    some += count > 0;
  }
  printf("seed %d: %d of %d boxes meet their blocks\n", (int)seed, some, cases);
}

int main(void) {
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  paper_numbers();
  counts();
  projections();
  forms();
  spellings();
  optimality(FEW(300), 1);
  blocks_in_boxes(FEW(20000), 10);
  bytes_moved(FEW(200), 2);
  least_moved(FEW(100), 3);
  least_scattered(FEW(200) > 40 ? FEW(200) : 40, 18);  // enough for one that is scattered
  test_levels();
  dropped_ways(FEW(200), 8);
  few_ways(FEW(200), 8);
  simulation();
  links();
  machines();
  nodes();
  one_cost(FEW(60), 9);
  fastest(FEW(30), 4);
  memory_limits(FEW(60), 7);
  residency();
  invariance(FEW(60), 9);
  mistakes();
  constraints();
  baselines();
  out_of_memory();
  many();
  room_for_ways();
  limited_work();
  most_tasks(FEW(300), 12);
  bounds(FEW(60), 5);
  layers();
  hostile_texts(FEW(2000), 6);
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
