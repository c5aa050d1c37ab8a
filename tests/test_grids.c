// Blocks of one statement over places: words of cuts against a count over all places, the best cut
// against every cut, and the least words against blocks and against points dealt at random.
//
//   test_grids [cases [seed]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "schedules.h"

enum { MOST_INDEX = 6, MOST_ELEMENTS = 4096 };

static const char *const forms[] = {
    "input A[%d,%d], B[%d,%d]\nC[i,k] = sum[j](A[i,j] * B[j,k])",
    "input X[%d,%d,%d], A[%d,%d], B[%d,%d]\nD[i,a] = sum[j,k](X[i,j,k] * A[j,a] * B[k,a])",
    "input X[%d,%d,%d], v[%d]\nY[i,j] = sum[k](X[i,j,k] * v[k])",
    "input a[%d], b[%d]\nS = sum[i](a[i] * b[i])",
    "input A[%d,%d]\nT[j,i] = A[i,j]",
    "input A[%d,%d]\nG[i,k] = sum[j](A[i,j] * A[k,j])",
    "input X[%d], K[%d]\nY[h] = sum[r](X[h+r] * K[r])",
    "input X[%d,%d], v[%d]\nM[j] = max[i](X[i,j] + v[i])"};
static const char *const axes[] = {"ij,jk", "ijk,ja,ka", "ijk,k", "i,i", "ij", "ij", "n,r", "ij,i"};

// One of the forms with random extents.
static ein_graph *random_form(int f) {
  char text[400];
  int extent[128], e[8] = {0}, n = 0;
  for (int c = 0; c < 128; c++) extent[c] = 1 + (int)draw(0, f == 1 ? 5 : 8);
  extent['n'] += extent['r'] - 1;
  for (const char *p = axes[f]; *p; p++)
    if (*p != ',') e[n++] = extent[(unsigned char)*p];
  snprintf(text, sizeof text, forms[f], e[0], e[1], e[2], e[3], e[4], e[5], e[6]);
  return parse(text);
}

// The coordinate of axis r at the values of the indices.
static int64_t coordinate(const eini_map *m, int r, const int64_t *at) {
  int64_t x = m->offset[r];
  for (int k = m->first[r]; k < m->first[r + 1]; k++) x += m->term[k].coef * at[m->term[k].index];
  return x;
}

static const eini_map *map_of(const eini_stmt *s, int k) {
  return k < 0 ? &s->out_map : &s->proj[k];
}
static int tensor_of(const eini_stmt *s, int k) { return k < 0 ? s->out : s->operand[k]; }

// Which place computes each point, row-major, and what the busiest then touches beyond its shares:
// the boxes around what accesses touch, or the elements alone.
static double words_of(const ein_graph *g, const eini_stmt *s, int places, const int *place,
                       int64_t points, int boxes, int result) {
  static char seen[MOST_ELEMENTS];
  double worst = 0;
  for (int q = 0; q < places; q++) {
    double words = 0;
    for (int k = result ? -1 : 0; k < s->noperand; k++) {
      int first = 1;
      for (int o = 0; o < k; o++) first &= tensor_of(s, o) != tensor_of(s, k);
      if (!first) continue;
      const eini_tensor *t = &g->tensor[tensor_of(s, k)];
      double touched = 0, most = 0;
      int64_t whole = 0, here = 0;
      memset(seen, 0, sizeof seen);
      for (int o = k; o < (k < 0 ? 0 : s->noperand); o++) {
        if (tensor_of(s, o) != tensor_of(s, k)) continue;
        int64_t lo[2][4], hi[2][4];
        for (int r = 0; r < 8; r++) lo[r / 4][r % 4] = INT64_MAX, hi[r / 4][r % 4] = -1;
        for (int64_t p = 0; p < points; p++) {
          int64_t at[MOST_INDEX], rest = p, element = 0;
          for (int i = s->nindex - 1; i >= 0; i--) {
            at[i] = rest % s->index[i].extent;
            rest /= s->index[i].extent;
          }
          for (int r = 0; r < t->rank; r++) {
            const int64_t c = coordinate(map_of(s, o), r, at);
            element = element * t->shape[r] + c;
            for (int own = 0; own < 1 + (place[p] == q); own++) {
              lo[own][r] = eini_min64(lo[own][r], c);
              hi[own][r] = eini_max64(hi[own][r], c);
            }
          }
          seen[element] |= (char)(place[p] == q ? 3 : 1);
        }
        double box[2] = {1, 1};
        for (int own = 0; own < 2; own++)
          for (int r = 0; r < t->rank; r++)
            box[own] *= (double)eini_max64(0, hi[own][r] - lo[own][r] + 1);
        int any = 0;
        for (int64_t p = 0; p < points; p++) any |= place[p] == q;
        touched += any ? box[1] : 0;
        if (box[0] > most) most = box[0];
      }
      for (int e = 0; e < MOST_ELEMENTS; e++) whole += seen[e] & 1, here += seen[e] >> 1 & 1;
      const double more = boxes ? touched - most / places : (double)here - (double)whole / places;
      words += more > 0 ? more : 0;
    }
    if (words > worst) worst = words;
  }
  return worst;
}

// The cut at hand, and the best of those before.
typedef struct all_cuts {
  const ein_graph *g;
  const eini_stmt *s;
  int places, point[MOST_ELEMENTS];
  int64_t points, cut[MOST_INDEX], tasks;
  double best, least;
} all_cuts;

static void try_cut(all_cuts *a) {
  const eini_stmt *s = a->s;
  ein_grid_cost c;
  for (int64_t p = 0; p < a->points; p++) {
    int64_t rest = p, place = 0, step = 1;
    for (int i = s->nindex - 1; i >= 0; i--) {
      const int64_t e = s->index[i].extent, at = rest % e;
      rest /= e;
      int64_t k = 0;
      while ((k + 1) * e / a->cut[i] <= at) k++;
      place += k * step;
      step *= a->cut[i];
    }
    a->point[p] = (int)place;
  }
  const double want = words_of(a->g, s, a->places, a->point, a->points, 1, 1);
  CHECK(ein_grid_words(a->g, 0, a->places, a->cut, &c) == EIN_OK);
  CHECK(fabs(c.words - want) < 1e-9 * (1 + want));
  const int result = s->nfree < s->nindex;
  CHECK(words_of(a->g, s, a->places, a->point, a->points, 0, result) >= a->least - 1e-6);
  if (want < a->best) a->best = want;
}

// All cuts of indices from i on; counts with `tasks` 0 how many pieces there can be.
static int64_t cuts_from(all_cuts *a, const int64_t *limit, int i, int64_t pieces, int tried) {
  int64_t most = 0;
  if (i == a->s->nindex) {
    if (tried && pieces == a->tasks) try_cut(a);
    return pieces;
  }
  for (int64_t c = 1; c <= limit[i] && pieces * c <= a->places; c++) {
    a->cut[i] = c;
    const int64_t n = cuts_from(a, limit, i + 1, pieces * c, tried);
    if (n > most) most = n;
  }
  return most;
}

static void test_form(int f) {
  static all_cuts a;
  ein_graph *g = random_form(f);
  int64_t cut[MOST_INDEX], limit[MOST_INDEX];
  ein_grid_cost c;
  if (g == NULL) return;
  memset(&a, 0, sizeof a);
  a.g = g;
  a.s = &g->stmt[0];
  a.places = (int)draw(1, 12);
  a.points = 1;
  for (int i = 0; i < a.s->nindex; i++) a.points *= a.s->index[i].extent;
  for (int i = 0; i < a.s->nindex; i++) limit[i] = a.s->index[i].extent;
  eini_cut_limits(g, a.s, limit);
  a.best = INFINITY;
  CHECK(ein_grid_best(g, 0, a.places, 0, cut, &c) == EIN_OK);
  a.least = c.least;
  a.tasks = cuts_from(&a, limit, 0, 1, 0);
  (void)cuts_from(&a, limit, 0, 1, 1);
  CHECK(fabs(c.words - a.best) < 1e-9 * (1 + a.best));
  int64_t tasks = 1;
  for (int i = 0; i < a.s->nindex; i++) tasks *= cut[i];
  CHECK(tasks == a.tasks && c.least <= c.words + 1e-6);
  for (int again = 0; again < 3; again++) {  // points dealt at random, as evenly as can be
    for (int64_t p = 0; p < a.points; p++) a.point[p] = (int)(p % a.places);
    for (int64_t p = a.points - 1; p > 0; p--) {
      const int64_t other = draw(0, p);
      const int x = a.point[p];
      a.point[p] = a.point[other];
      a.point[other] = x;
    }
    const int result = a.s->nfree < a.s->nindex;
    CHECK(words_of(g, a.s, a.places, a.point, a.points, 0, result) >= c.least - 1e-6);
  }
  // A memory of what the best cut touches is enough; with less another is taken, or none is left.
  ein_grid_cost less;
  CHECK(ein_grid_best(g, 0, a.places, c.holds, cut, &less) == EIN_OK && less.words == c.words);
  const ein_status st = ein_grid_best(g, 0, a.places, c.holds - 0.5, cut, &less);
  CHECK(st == EIN_ERR_NO_MEMORY || (st == EIN_OK && less.holds < c.holds && less.words >= c.words));
  ein_graph_destroy(g);
}

// Products on cubes of places move what a cube must: n^2 (1 / p^(2/3) - 1 / p) of three matrices.
static void test_cubes(void) {
  for (int side = 1; side <= 16; side *= 2) {
    ein_graph *g = parse("input A[i=512,j=512], B[j,k=512] : f64\nC[i,k] = A[i,j]*B[j,k]");
    const double p = (double)side * side * side, n2 = 512.0 * 512;
    const double want = 3 * n2 * (1 / (p / side) - 1 / p);
    int64_t cut[3];
    ein_grid_cost c;
    CHECK(ein_grid_best(g, 0, (int)p, 0, cut, &c) == EIN_OK);
    CHECK(cut[0] == side && cut[1] == side && cut[2] == side);
    CHECK(fabs(c.words - want) <= 1e-9 * n2 && fabs(c.least - want) <= 1e-6 * n2);
    ein_graph_destroy(g);
  }
}

static void test_bad(void) {
  ein_graph *g = parse("input A[i=4,j=4]\nB[j,i] = A[i,j]");
  int64_t cut[2] = {1, 0};
  ein_grid_cost c;
  CHECK(ein_grid_words(g, 0, 4, cut, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_grid_words(g, 1, 4, cut, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_grid_words(NULL, 0, 4, cut, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_grid_best(g, 0, 0, 0, cut, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_grid_best(g, 0, 4, -1, cut, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_grid_best(g, 0, 4, 0, NULL, &c) == EIN_ERR_ARGUMENT);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : FEW(160);
  unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  printf("seed %u\n", seed);
  rng_state = seed;
  test_bad();
  test_cubes();
  for (int n = 0; n < count; n++) test_form(n % (int)(sizeof forms / sizeof *forms));
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
