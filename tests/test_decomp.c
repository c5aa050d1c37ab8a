// Decompositions: every worked number of the EinDecomp paper, optimality against brute force on
// random graphs, constraints and their mistakes, and every allocation failing once.
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"
#include "check.h"
#include "util.h"
#include "../examples/models/llama.h"

#include <stdlib.h>

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
static double side(const eini_stmt *s, const ein_zmap *m, int r, const int64_t *cut,
                   int64_t *pieces) {
  for (int c = 0; c < s->nindex; c++) {
    if (m->coef[r * s->nindex + c] == 0) continue;
    if (pieces != NULL) *pieces *= cut[c];
    return (double)s->index[c].extent / (double)cut[c];
  }
  return 0;
}

static int same_operand(const eini_stmt *s, int j, int k) {
  return s->operand[j] == s->operand[k] &&
         memcmp(s->proj[j].coef, s->proj[k].coef, (size_t)(s->proj[j].rows * s->nindex) * 8) == 0;
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
  return tasks * read + tasks / nagg * (nagg - 1) * nz * (s->fold == EINI_VAR ? 3 : 1);
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
static int64_t offset_of(const ein_graph *g, int tensor, const ein_zmap *m, const int64_t *i) {
  int64_t at = 0;
  for (int r = 0; r < m->rows; r++) {
    int64_t x = m->offset[r];
    for (int c = 0; c < m->cols; c++) x += m->coef[r * m->cols + c] * i[c];
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
  if (s->fold == EINI_VAR) return 3 * (double)ein_dtype_size(ein_dtype_compute(s->type));
  if (s->fold == EINI_ARGMAX) return 8 + (double)ein_dtype_size(ein_dtype_compute(value));
  return (double)ein_dtype_size(ein_dtype_compute(s->type));
}

// Seconds of statement s by itself under the default machine.
static double own_seconds(const ein_graph *g, const eini_stmt *s, const int64_t *cut) {
  eini_decomposer dc;
  double bytes, seconds;
  memset(&dc, 0, sizeof dc);
  dc.g = g;
  dc.machine = eini_machine_of(NULL);
  eini_fold_cost(&dc, s, cut, &bytes, &seconds);
  return seconds + eini_parts_seconds(&dc, s, cut);
}

// Bytes that statement n fetches (join) and folds (agg) under the parts of all statements, and its
// seconds: per producer of an operand, the task that fetches most from it.
static void brute_moved(const ein_graph *g, const ein_parts *parts, int n, double *join,
                        double *agg, double *seconds) {
  static int64_t home[ELEMENTS], who[ELEMENTS], box[2][8];
  static unsigned char covered[64][ELEMENTS];
  const eini_stmt *s = &g->stmt[n];
  const ein_parts *p = &parts[n];
  *join = *agg = 0;
  *seconds = own_seconds(g, s, p->cut);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &g->tensor[s->operand[k]];
    int again = 0;
    int64_t count = 1;
    double most[16] = {0};
    for (int j = 0; j < k; j++)
      again |= same_operand(s, j, k) && memcmp(s->proj[j].offset, s->proj[k].offset,
                                               (size_t)t->rank * 8) == 0;
    if (again || t->role == EIN_ROLE_INPUT) continue;
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
          for (int c = 0; c < s->nindex; c++) x += s->proj[k].coef[r * s->nindex + c] * i[c];
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
    for (int x = 0; x < n; x++) *seconds += most[x] > 0 ? 2e-6 + most[x] / 1e10 : 0;
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
      CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
      if (x == NULL) printf("%s\n", ein_ctx_message(ctx));
      ein_decomposition_info(x, &info);
      int before = failures;
      double sum = moved(g, x, d.cost);
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
                                double memory) {
  ein_machine machine;
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info info;
  memset(&d, 0, sizeof d);
  memset(&machine, 0, sizeof machine);
  machine.memory = memory;
  d.p = p;
  d.cost = cost;
  d.strict = strict;
  d.machine = &machine;
  d.max_vectors = 1024;  // the same with a limit to the memory as without
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
    double points = 0, best = -1;
    for (int i = 0; i < g->nstmt; i++) {
      double size = 1;
      for (int c = 0; c < g->stmt[i].nindex; c++) size *= (double)g->stmt[i].index[c].extent;
      points += size;
    }
    if (points < 300) best = brute_least(g, p, cost);
    if (best >= 0) {
      ein_decomp_info info = searched(g, p, cost, 1, 0);
      int ok = fabs(info.total - best) <= (cost == EIN_COST_BYTES ? 0 : 1e-12 * best);
      CHECK(ok && info.proved);
      if (!ok) printf("case %d p %d: %.17g, brute force %.17g\n%s", done, (int)p, info.total, best,
                      text);
      done++;
    }
    ein_graph_destroy(g);
  }
  printf("seed %d: least bytes and seconds of %d graphs over vectors and orders as brute force\n",
         (int)seed, done);
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
    ein_graph *g = fixed ? program(affine_programs[n / 8])
                         : random_program((int)draw(2, STMTS), 0, chance(50), text, sizeof text);
    int64_t p = places[fixed ? n % 8 : draw(0, 7)];
    for (int k = 0; k < 4; k++) {
      ein_cost cost = k / 2 == 0 ? EIN_COST_BYTES : EIN_COST_SECONDS;
      ein_decomp_info some = searched(g, p, cost, k % 2, 0);
      ein_decomp_info all = searched(g, p, cost, k % 2, 1e30);
      int ok = fabs(some.total - all.total) <= 1e-12 * all.total || !some.proved || !all.proved;
      ok &= some.nvector == all.nvector && some.proved >= all.proved;
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
  CHECK(each[0].end == 4.5 && each[1].start == 4.5 && peak[0] == 40 && info.peak_bytes == 40);
  ein_decomposition_destroy(x);
  // One task of 8 points, which waits for half of Y: 32 bytes.
  x = decompose(g, 2, EIN_COST_SECONDS, "given", 1, whole, &m);
  CHECK(ein_simulate(ctx, g, x, &d, &info) == EIN_OK);
  CHECK(info.seconds == 4.5 + 10 + 32 + 8.5 && info.messages == 1 && info.join == 32);
  CHECK(info.agg == 0 && info.tasks == 3 && peak[0] == 32 + 32 + 8 && peak[1] == 32);
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
  CHECK(ein_decompose(ctx, g, &too_small, &x) == EIN_ERR_TOO_LARGE);
  // T, its row maxima and E are alive at once: 64 + 8 + 64 bytes.
  CHECK(strstr(ein_ctx_message(ctx), "'E' (s=8, t=8): a place takes 136 bytes at least") != NULL);
  m.memory = 210;
  for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
    x = decompose(g, 4, (ein_cost)cost, NULL, 0, NULL, &m);
    CHECK(x != NULL && cut_of(g, x, "T", "s") * cut_of(g, x, "T", "t") *
                       cut_of(g, x, "T", "d") == 4);
    ein_decomposition_destroy(x);
  }
  ein_graph_destroy(g);
}

// ---- memory of places ----

// Total and simulated peak of given vectors, one per statement.
static void given_peak(const ein_graph *g, int64_t p, ein_cost cost, int64_t (*cut)[8],
                       double *total, double *peak) {
  static char text[STMTS][256];
  const char *parts[STMTS];
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_decomp_info info;
  ein_sim_info sim;
  for (int i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    size_t n = (size_t)snprintf(text[i], sizeof text[i], "%s[", g->tensor[s->out].name);
    for (int c = 0; c < s->nindex; c++)
      n += (size_t)snprintf(text[i] + n, sizeof text[i] - n, "%s%s=%d", c ? "," : "",
                            s->index[c].name, (int)cut[i][c]);
    snprintf(text[i] + n, sizeof text[i] - n, "]");
    parts[i] = text[i];
  }
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = cost;
  d.method = "given";
  d.nparts = (int)g->nstmt;
  d.parts = parts;
  *total = *peak = -1;
  CHECK(ein_decompose(ctx, g, &d, &x) == EIN_OK);
  if (x == NULL) return;
  ein_decomposition_info(x, &info);
  CHECK(ein_simulate(ctx, g, x, NULL, &sim) == EIN_OK);
  *total = info.total;
  *peak = sim.peak_bytes;
  ein_decomposition_destroy(x);
}

// One limit: the least total of what fits, or the error when nothing does.
static void limited(const ein_graph *g, int64_t p, ein_cost cost, double limit, int n,
                    const double *total, const double *peak, long *found) {
  ein_decompose_desc d;
  ein_decomposition *x;
  ein_machine m;
  double best = INFINITY;
  for (int i = 0; i < n; i++)
    if (peak[i] <= limit && total[i] < best) best = total[i];
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  m.memory = limit;
  d.p = p;
  d.cost = cost;
  d.strict = 1;
  d.machine = &m;
  ein_status st = ein_decompose(ctx, g, &d, &x);
  CHECK(st == (best < INFINITY ? EIN_OK : EIN_ERR_TOO_LARGE));
  if (st != EIN_OK) {
    CHECK(strstr(ein_ctx_message(ctx), "statement 'T") != NULL &&
          strstr(ein_ctx_message(ctx), "bytes at least") != NULL &&
          strstr(ein_ctx_message(ctx), "searched") == NULL);
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

// Limits below, at and above the least need of random programs against all vectors.
static void memory_limits(int cases, uint64_t seed) {
  static int64_t way[STMTS][WAYS][8];
  static double total[4096], peak[4096];
  long found[2] = {0, 0}, dearer = 0;
  int done = 0;
  rng_state = seed;
  for (int tries = 0; done < cases && tries < 40 * cases; tries++) {
    static const int64_t places[] = {2, 3, 4, 6, 8};
    char text[2048];
    int n[STMTS], at[STMTS] = {0}, all = 0;
    int64_t p = places[draw(0, 4)], cut[STMTS][8];
    double combos = 1, free_total = INFINITY, free_peak = 0, least = INFINITY;
    ein_graph *g = random_program((int)draw(2, 4), 0, 0, text, sizeof text);
    for (int i = 0; i < g->nstmt; i++) combos *= n[i] = brute_ways(&g->stmt[i], p, 1, way[i]);
    if (combos > 4096) {
      ein_graph_destroy(g);
      continue;
    }
    for (int i = 0; i >= 0;) {
      for (i = 0; i < g->nstmt; i++) memcpy(cut[i], way[i][at[i]], sizeof cut[i]);
      given_peak(g, p, EIN_COST_PAPER, cut, &total[all], &peak[all]);
      if (peak[all] < least) least = peak[all];
      if (total[all] < free_total) free_total = total[all], free_peak = peak[all];
      all++;
      for (i = (int)g->nstmt - 1; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
    }
    limited(g, p, EIN_COST_PAPER, least - 1, all, total, peak, found);
    limited(g, p, EIN_COST_PAPER, least, all, total, peak, found);
    limited(g, p, EIN_COST_PAPER, (least + free_peak) / 2, all, total, peak, found);
    limited(g, p, EIN_COST_PAPER, free_peak - 1, all, total, peak, found);
    dearer += free_peak > least;
    done++;
    ein_graph_destroy(g);
  }
  printf("seed %d: memory limits of %d programs as brute force, %ld fit, %ld do not; the least "
         "cost takes more than need be in %ld\n", (int)seed, done, found[1], found[0], dearer);
  CHECK(done == cases && found[0] >= cases && found[1] >= cases && dearer > 0);
}

// The answer for seconds is never slower in the simulation than a baseline; tasks do not overlap.
static void fastest(int cases, uint64_t seed) {
  static const char *const base[] = {"none", "sqrt", "data", "model", "sequence", "attention"};
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
    ein_decomposition *x = decompose(g, p, EIN_COST_SECONDS, NULL, 0, NULL, &m);
    CHECK(ein_simulate(ctx, g, x, &d, &best) == EIN_OK);
    CHECK(!line.wrong && line.tasks == (int)best.tasks);
    CHECK(fabs(line.busy - best.busy) <= 1e-9 * best.busy);
    ein_decomp_info info;
    ein_decomposition_info(x, &info);
    CHECK(info.seconds == best.seconds && info.lower <= info.total);
    ein_decomposition_destroy(x);
    d.task_fn = NULL;
    for (int k = 0; k < 6; k++) {
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
      d.method = NULL;  // they are in the search space
      CHECK(total_of(g, &d, &info) >= 0 && (info.proved || cost == EIN_COST_SECONDS));
      double best = info.total;
      d.method = c[i].method;
      if (i > 0) CHECK(total_of(g, &d, &info) >= best * (1 - 1e-12));
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
  tight.memory = 200;
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
    CHECK(total_of(g, &d, &info) > 0 && !info.proved && info.lower < info.total);
    CHECK(info.nvector <= 2 * 4096);
  }
  ein_graph_destroy(g);
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

int main(void) {
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  paper_numbers();
  counts();
  projections();
  optimality(300, 1);
  bytes_moved(200, 2);
  least_moved(100, 3);
  test_levels();
  dropped_ways(100, 8);
  simulation();
  fastest(30, 4);
  memory_limits(60, 7);
  mistakes();
  constraints();
  baselines();
  out_of_memory();
  many();
  bounds(60, 5);
  layers();
  hostile_texts(2000, 6);
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
