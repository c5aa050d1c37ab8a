// Counted traffic. The models of a fast memory against plain ones, and the ideal one against every
// way to choose what goes; no execution of small statements, by every order of loops and tiles of
// a set, moves less than the bound, with the best replacement there is.
//
//   test_count [traces [statements [seed]]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"
#include "small_statements.h"

// ---- the models of a fast memory ----

typedef struct access {
  int line, how;
} access;

typedef struct trace {
  int n, nline;
  access *at;
  unsigned char *flag;     // [nline] kind, and EINI_LINE_FETCH
} trace;

// What the library's model moves: read and written in all, of each kind.
static double modelled(const trace *t, int room, int ideal, double *read) {
  eini_arena a;
  eini_fast f;
  double moved = 0;
  eini_arena_init(&a, NULL);
  CHECK(eini_fast_new(&a, ideal, room, t->nline, &f) == EIN_OK);
  memcpy(f.flag, t->flag, (size_t)t->nline);
  for (int i = 0; i < t->n; i++) eini_fast_touch(&f, t->at[i].line, t->at[i].how);
  CHECK(eini_fast_end(&f, 0, NULL, &moved) == EIN_OK);
  *read = 0;
  for (int k = 0; k < EINI_LINE_KINDS; k++) *read += f.read[k];
  CHECK(moved == eini_fast_moved(&f));
  eini_arena_free(&a);
  return moved;
}

// The same from scratch: of the lines that are there the one with the least (LRU) or the largest
// (ideal) time goes, that of its last access or that of its next one.
static double plain(const trace *t, int room, int ideal, double *read) {
  int there[64] = {0}, dirty[64] = {0}, stored[64] = {0}, time[64] = {0}, held = 0;
  double moved = 0;
  *read = 0;
  for (int i = 0; i < t->n; i++) {
    const int e = t->at[i].line, how = t->at[i].how;
    if (!there[e]) {
      int out = -1;
      for (int k = 0; held == room && k < t->nline; k++)
        if (there[k] && (out < 0 || (ideal ? time[k] > time[out] : time[k] < time[out]))) out = k;
      if (out >= 0) {
        const int kind = t->flag[out] & EINI_LINE_KIND;
        const int dead = ideal && time[out] == t->n && kind >= EINI_LINE_TEMP;
        if (dirty[out] && !dead) moved++, stored[out] = 1;
        there[out] = dirty[out] = 0;
        held--;
      }
      const int fetch = how != EINI_SET || (t->flag[e] & EINI_LINE_FETCH && stored[e]);
      moved += fetch, *read += fetch;
      there[e] = 1;
      held++;
    }
    dirty[e] |= how != EINI_READ;
    time[e] = i;
    for (int k = i + 1; ideal; k++) {
      time[e] = k;
      if (k == t->n || t->at[k].line == e) break;
    }
  }
  for (int k = 0; k < t->nline; k++)
    moved += dirty[k] && (t->flag[k] & EINI_LINE_KIND) < EINI_LINE_TEMP;
  return moved;
}

// The fewest reads of a trace that only reads, from access i on with the lines of a set there.
static int fewest(const trace *t, int room, int i, unsigned set, signed char *known) {
  if (i == t->n) return 0;
  signed char *is = &known[(size_t)i << t->nline | set];
  const unsigned bit = 1u << t->at[i].line;
  int best = 1 << 20;
  if (*is >= 0) return *is;
  if (set & bit) return *is = (signed char)fewest(t, room, i + 1, set, known);
  if (eini_count_bits(set) < room) best = 1 + fewest(t, room, i + 1, set | bit, known);
  for (int k = 0; k < t->nline && eini_count_bits(set) == room; k++) {
    if (!(set >> k & 1)) continue;
    const int x = 1 + fewest(t, room, i + 1, (set ^ 1u << k) | bit, known);
    best = x < best ? x : best;
  }
  return *is = (signed char)best;
}

static void test_models(int traces) {
  static const int hows[3] = {EINI_READ, EINI_WRITE, EINI_SET};
  access at[400];
  unsigned char flag[64];
  trace t = {0, 0, at, flag};
  signed char *known = (signed char *)malloc(40 << 7);
  for (int r = 0; r < traces; r++) {
    const int small = r % 2, ways = chance(50) ? 1 : 3;
    t.n = (int)draw(0, small ? 40 : 400);
    t.nline = (int)draw(1, small ? 7 : 60);
    for (int k = 0; k < t.nline; k++)
      flag[k] = (unsigned char)(draw(0, 3) | (chance(30) ? EINI_LINE_FETCH : 0));
    for (int i = 0; i < t.n; i++) {
      at[i].line = chance(60) || i == 0 ? (int)draw(0, t.nline - 1) : at[draw(0, i - 1)].line;
      at[i].how = hows[draw(0, ways - 1)];
    }
    const int room = (int)draw(1, small ? 5 : 40);
    double read[4], moved[4];
    for (int ideal = 0; ideal < 2; ideal++) {
      moved[ideal] = modelled(&t, room, ideal, &read[ideal]);
      moved[2 + ideal] = plain(&t, room, ideal, &read[2 + ideal]);
      if (moved[ideal] != moved[2 + ideal])
        printf("trace %d, ideal %d: %g, not %g\n", r, ideal, moved[ideal], moved[2 + ideal]);
      CHECK(moved[ideal] == moved[2 + ideal] && read[ideal] == read[2 + ideal]);
    }
    if (ways > 1) continue;
    CHECK(read[1] <= read[0]);
    if (!small) continue;
    memset(known, -1, 40 << 7);
    CHECK(read[1] == fewest(&t, room, 0, 0, known));
  }
  free(known);
}

// ---- executions that are counted ----

// Operand k's element at a point; that of the result after the operands.
static int element(const statement *s, int k, const int *at) {
  int e = 0;
  if (k == s->nop) {
    for (int i = 0; i < s->nfree; i++) e = e * s->extent[i] + at[i];
    return e;
  }
  for (int d = 0; d < s->rank[k]; d++)
    e = e * shape_of(s, k, d) + at[s->index[k][d]] + (s->add[k][d] < 0 ? 0 : at[s->add[k][d]]);
  return e;
}

// The accesses of loops over tiles outside, over points inside, both in the order given: an element
// of the result is set at its first point, and added to at the others.
static void walk(const statement *s, const int *order, const int *tile, trace *t) {
  int base[OPERANDS + 2] = {0}, from[MOST] = {0}, at[MOST];
  static char made[CELLS];
  for (int k = 0; k <= s->nop; k++) {
    int cells = 1;
    for (int d = 0; k < s->nop && d < s->rank[k]; d++) cells *= shape_of(s, k, d);
    for (int i = 0; k == s->nop && i < s->nfree; i++) cells *= s->extent[i];
    base[k + 1] = base[k] + cells;
  }
  t->nline = base[s->nop + 1];
  t->n = 0;
  for (int e = 0; e < t->nline; e++)
    t->flag[e] = e < base[s->nop] ? EINI_LINE_INPUT : EINI_LINE_OUTPUT;
  memset(made, 0, sizeof made);
  for (int more = 1; more;) {
    for (int i = 0; i < s->n; i++) at[i] = from[i];
    for (int inner = 1; inner;) {
      for (int k = 0; k <= s->nop; k++) {
        const int e = element(s, k, at);
        access *x = &t->at[t->n++];
        x->line = base[k] + e;
        x->how = k < s->nop ? EINI_READ : made[e] ? EINI_WRITE : EINI_SET;
        if (k == s->nop) made[e] = 1;
      }
      inner = 0;
      for (int d = s->n - 1; d >= 0 && !inner; d--) {
        const int i = order[d], end = from[i] + tile[i] < s->extent[i] ? from[i] + tile[i]
                                                                      : s->extent[i];
        if (++at[i] < end) inner = 1;
        else at[i] = from[i];
      }
    }
    more = 0;
    for (int d = s->n - 1; d >= 0 && !more; d--) {
      const int i = order[d];
      if ((from[i] += tile[i]) < s->extent[i]) more = 1;
      else from[i] = 0;
    }
  }
}

// Order and tiles number q of a statement; 0: it is that of another number.
static int execution(const statement *s, int q, int *order, int *tile) {
  static const int tiles[4] = {1, 2, 4, 1 << 20};
  int perm[MOST] = {0, 1, 2, 3};
  for (int i = 0; i < s->n; i++, q /= 4) {
    tile[i] = tiles[q % 4];
    if (tile[i] <= s->extent[i]) continue;
    if (q % 4 < 3) return 0;
    tile[i] = s->extent[i];
  }
  for (int i = 0; i < s->n; i++) {  // the permutation of that number
    const int p = i + q % (s->n - i), x = perm[p];
    q /= s->n - i;
    perm[p] = perm[i];
    perm[i] = order[i] = x;
  }
  return 1;
}

static void small_statement(statement *s, int compound, int *points) {
  for (int cells = CELLS; cells >= CELLS || *points > CELLS;) {
    random_statement(s, 8, compound);
    *points = cells = 1;
    for (int i = 0; i < s->n; i++) *points *= s->extent[i];
    for (int k = 0, c = 1; k < s->nop; k++, c = 1) {
      for (int d = 0; d < s->rank[k]; d++) c *= shape_of(s, k, d);
      cells = c > cells ? c : cells;
    }
  }
}

static void test_bounds(int statements) {
  trace t;
  double least = INFINITY, sharp = INFINITY, runs = 0;
  t.at = (access *)malloc(sizeof *t.at * CELLS * (OPERANDS + 1));
  t.flag = (unsigned char *)malloc(CELLS * (OPERANDS + 1));
  for (int r = 0; r < statements; r++) {
    statement s;
    char text[1024];
    ein_bound *b;
    int points, order[MOST], tile[MOST], tries = 1;
    double best = INFINITY, read;
    small_statement(&s, r % 2, &points);
    spell(&s, text, sizeof text);
    const int fast = (int)(chance(60) ? draw(4, 16) : draw(4, 400));
    const ein_bound_stmt x = bound_of(text, fast, 1, &b);
    for (int i = 0; i < s.n; i++) tries *= 4 * (i + 1);
    for (int q = 0; q < tries; q++) {
      if (!execution(&s, q, order, tile)) continue;
      if (tries > 1000 && points > 300 && !chance(25)) continue;
      walk(&s, order, tile, &t);
      best = fmin(best, modelled(&t, fast, 1, &read));
      runs++;
    }
    const double ratio = best / x.bound;
    least = fmin(least, ratio);
    if (x.bound > x.compulsory) sharp = fmin(sharp, ratio);
    if (best < x.bound) printf("fast %d moved %g bound %g\n%s\n", fast, best, x.bound, text);
    CHECK(best >= x.bound);
    ein_bound_destroy(b);
  }
  printf("%d statements, %.0f executions counted: least ratio to the bound %.4f, where that is "
         "more than compulsory %.4f\n", statements, runs, least, sharp);
  free(t.at);
  free(t.flag);
}

int main(int argc, char **argv) {
  const int traces = argc > 1 ? atoi(argv[1]) : FEW(6000);
  const int statements = argc > 2 ? atoi(argv[2]) : FEW(2000);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_models(traces);
  test_bounds(statements);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
