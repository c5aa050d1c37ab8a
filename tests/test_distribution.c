// Grids of places and tensor distribution notation: the worked tables of the papers; what random
// distributions hold, element by element; the blocks that meet in a redistribution, by the formula
// and by looking; mistakes and their places in the text.
//
//   test_distribution [distributions [redistributions [seed]]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

enum { MOST = 4, CELLS = 1 << 12 };

static ein_ctx *ctx;

static ein_grid *grid_of(const char *text, int64_t places) {
  ein_grid *g;
  if (ein_grid_create(ctx, text, places, &g) != EIN_OK)
    printf("%s: %s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

static ein_distribution *distribution_of(const char *text, int rank, const ein_grid *g) {
  ein_distribution *d;
  if (ein_distribution_create(ctx, text, rank, g, &d) != EIN_OK)
    printf("%s: %s\n", text, ein_ctx_message(ctx));
  CHECK(d != NULL);
  return d;
}

// ---- boxes as text and as counts ----------------------------------------------------------------

typedef struct boxes {
  int rank;
  int64_t n;
  char text[256];
  const int64_t *shape;
  unsigned char *count;     // of each element; NULL: text
} boxes;

static ein_status take_text(void *user, const int64_t *lo, const int64_t *hi) {
  boxes *b = (boxes *)user;
  size_t at = strlen(b->text);
  b->n++;
  for (int r = 0; r < b->rank; r++, at = strlen(b->text))
    snprintf(b->text + at, sizeof b->text - at, "%s%d:%d", r ? "," : at > 0 ? " " : "", (int)lo[r],
             (int)hi[r]);
  return EIN_OK;
}

static ein_status take_count(void *user, const int64_t *lo, const int64_t *hi) {
  boxes *b = (boxes *)user;
  int64_t x[MOST] = {0};
  for (int r = 0; r < b->rank; r++) x[r] = lo[r];
  for (int r = 0; r >= 0;) {
    int64_t at = 0;
    for (r = 0; r < b->rank; r++) at = at * b->shape[r] + x[r];
    b->count[at]++;
    for (r = b->rank - 1; r >= 0 && ++x[r] == hi[r]; r--) x[r] = lo[r];
  }
  return EIN_OK;
}

// What a place holds, as "0:5,0:5 5:10,0:5".
static const char *held(const ein_distribution *d, int rank, int64_t extent, int64_t place) {
  static boxes b;
  const int64_t shape[MOST] = {extent, extent, extent, extent};
  memset(&b, 0, sizeof b);
  b.rank = rank;
  CHECK(ein_distribution_boxes(d, shape, place, take_text, &b) == EIN_OK);
  return b.text;
}

// DISTAL, section 3.2: T of 2x2 on a machine of 2x2x2.
static void test_distal(void) {
  ein_grid *g = grid_of("a=2, b=2, c=2", 8);
  ein_distribution *all = distribution_of("xy->xy*", 2, g), *one = distribution_of("xy->xy1", 2, g);
  static const char *const cell[4] = {"0:1,0:1", "0:1,1:2", "1:2,0:1", "1:2,1:2"};
  for (int q = 0; q < 8; q++) {
    CHECK(strcmp(held(all, 2, 2, q), cell[q / 2]) == 0);
    CHECK(strcmp(held(one, 2, 2, q), q % 2 == 1 ? cell[q / 2] : "") == 0);
  }
  ein_distribution_destroy(all);
  ein_distribution_destroy(one);
  ein_grid_destroy(g);
}

// Deinsum, section V: MTTKRP with all extents 10 on 8 ranks as a grid of 2x2x2x1.
static void test_deinsum(void) {
  ein_grid *g = grid_of("i=2, j=2, k=2, a=1", 8);
  ein_distribution *x = distribution_of("ijk->ijk*", 3, g), *a = distribution_of("ja->*j*a", 2, g);
  static const char *const xs[8] = {
      "0:5,0:5,0:5", "0:5,0:5,5:10", "0:5,5:10,0:5", "0:5,5:10,5:10",
      "5:10,0:5,0:5", "5:10,0:5,5:10", "5:10,5:10,0:5", "5:10,5:10,5:10"};
  for (int q = 0; q < 8; q++) {
    CHECK(strcmp(held(x, 3, 10, q), xs[q]) == 0);
    CHECK(strcmp(held(a, 2, 10, q), q / 2 % 2 == 0 ? "0:5,0:10" : "5:10,0:10") == 0);
  }
  ein_distribution_destroy(x);
  ein_distribution_destroy(a);
  ein_grid_destroy(g);
}

// Levels, blocks dealt in turn, more and fewer points than places.
static void test_small(void) {
  ein_grid *g = grid_of("node[x=2, y=2], gpu[g=2]", 8);
  ein_distribution *d = distribution_of("xy->xy, zw->z in device", 2, g);
  CHECK(strcmp(held(d, 2, 8, 0), "0:2,0:4") == 0);
  CHECK(strcmp(held(d, 2, 8, 1), "2:4,0:4") == 0);
  CHECK(strcmp(held(d, 2, 8, 6), "4:6,4:8") == 0);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
  g = grid_of("x=2", 2);
  d = distribution_of("x->x:3", 1, g);
  CHECK(strcmp(held(d, 1, 10, 0), "0:3 6:9") == 0);
  CHECK(strcmp(held(d, 1, 10, 1), "3:6 9:10") == 0);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
  g = grid_of("x=2, y=2, z=2", 3);  // two or three points a place
  d = distribution_of("xy->xy0", 2, g);
  CHECK(ein_grid_size(g) == 8 && ein_grid_place(g, 0) == 0 && ein_grid_place(g, 7) == 2);
  CHECK(ein_grid_place(g, 8) == -1 && ein_grid_place(g, -1) == -1);
  CHECK(strcmp(held(d, 2, 2, 0), "0:1,0:1") == 0);
  CHECK(strcmp(held(d, 2, 2, 1), "0:1,1:2 1:2,0:1") == 0);
  CHECK(strcmp(held(d, 2, 2, 2), "1:2,1:2") == 0);
  ein_distribution_destroy(d);
  d = distribution_of("xy->x**", 2, g);  // a place holds once what several points of it hold
  CHECK(strcmp(held(d, 2, 2, 0), "0:1,0:2") == 0);
  CHECK(strcmp(held(d, 2, 2, 1), "0:1,0:2 1:2,0:2") == 0);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
  g = grid_of("x=2", 5);
  d = distribution_of("x->x", 1, g);
  CHECK(strcmp(held(d, 1, 4, 1), "2:4") == 0 && strcmp(held(d, 1, 4, 4), "") == 0);
  CHECK(strcmp(held(d, 1, 0, 0), "") == 0);
  CHECK(ein_distribution_boxes(d, NULL, 0, take_text, d) == EIN_ERR_ARGUMENT);
  ein_distribution_destroy(d);
  d = distribution_of("->0", 0, g);
  boxes b = {0, 0, "", NULL, NULL};
  CHECK(ein_distribution_boxes(d, NULL, 0, take_text, &b) == EIN_OK && b.n == 1);
  CHECK(ein_distribution_boxes(d, NULL, 1, take_text, &b) == EIN_OK && b.n == 1);
  CHECK(ein_distribution_boxes(d, NULL, 5, take_text, &b) == EIN_ERR_ARGUMENT);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
}

// ---- random distributions against the definition ------------------------------------------------

typedef struct mark {
  char kind;                // x: axis, =: coordinate, *
  int axis;
  int64_t at, block, extent;
} mark;

// Does a point hold element x? Position by position: what a level leaves of an axis is numbered
// anew for the next.
static int holds(const mark *m, int n, const int64_t *coord, const int64_t *shape,
                 const int64_t *x) {
  for (int k = 0; k < n; k++)
    if (m[k].kind == '=' && m[k].at != coord[k]) return 0;
  for (int axis = 0; axis < MOST; axis++) {
    int64_t length = shape[axis], at = x[axis];
    for (int k = 0; k < n; k++) {
      if (m[k].kind != 'x' || m[k].axis != axis) continue;
      int64_t before = 0, all = 0, owner = -1;
      for (int64_t e = 0; e < length; e++) {
        int64_t of = m[k].block > 0 ? e / m[k].block % m[k].extent : 0;
        while (m[k].block == 0 && (of + 1) * length / m[k].extent <= e) of++;
        if (e == at) owner = of;
        if (of == coord[k]) all++;
        if (of == coord[k] && e < at) before++;
      }
      if (owner != coord[k]) return 0;
      at = before;
      length = all;
    }
  }
  return 1;
}

// A random machine of one or two levels, and a distribution; text of both.
static int draw_text(mark *m, int rank, char *machine, char *text) {
  int n = 0, levels = (int)draw(1, 2);
  machine[0] = text[0] = 0;
  for (int level = 0; level < levels; level++) {
    int dims = (int)draw(1, 3), used[MOST] = {0};
    sprintf(machine + strlen(machine), "%sl%d[", level ? ", " : "", level);
    sprintf(text + strlen(text), "%s%.*s->", level ? ", " : "", rank, "ijkl");
    for (int k = 0; k < dims; k++, n++) {
      const int axis = rank > 0 ? (int)draw(0, rank - 1) : 0;
      m[n].extent = draw(1, 3);
      m[n].axis = m[n].kind = 0;
      m[n].at = m[n].block = 0;
      sprintf(machine + strlen(machine), "%sd%d=%d", k ? "," : "", n, (int)m[n].extent);
      if (rank > 0 && !used[axis] && chance(60)) {
        used[axis] = 1;
        m[n].kind = 'x';
        m[n].axis = axis;
        m[n].block = chance(40) ? draw(1, 3) : 0;
        sprintf(text + strlen(text), "%c", "ijkl"[axis]);
        if (m[n].block > 0) sprintf(text + strlen(text), ":%d", (int)m[n].block);
      } else if (chance(50)) {
        m[n].kind = '=';
        m[n].at = draw(0, m[n].extent - 1);
        sprintf(text + strlen(text), "(%d)", (int)m[n].at);
      } else {
        m[n].kind = '*';
        strcat(text, "*");
      }
    }
    strcat(machine, "]");
  }
  return n;
}

static void test_random(int cases) {
  static unsigned char count[CELLS];
  for (int c = 0; c < cases; c++) {
    mark m[6];
    char machine[256], text[256], again[256];
    const int rank = (int)draw(0, 3), n = draw_text(m, rank, machine, text);
    const int64_t places = draw(1, 12);
    int64_t shape[MOST] = {1, 1, 1, 1}, points = 1, coord[6], cells = 1, got = 0;
    for (int r = 0; r < rank; r++) cells *= shape[r] = draw(0, 7);
    for (int k = 0; k < n; k++) points *= m[k].extent;
    ein_grid *g = grid_of(machine, places), *h;
    ein_distribution *d = distribution_of(text, rank, g), *e;
    CHECK(ein_grid_size(g) == points);
    for (int64_t q = 0; q < places; q++) {
      boxes b = {rank, 0, "", shape, count};
      memset(count, 0, sizeof count);
      CHECK(ein_distribution_boxes(d, shape, q, take_count, &b) == EIN_OK);
      int wrong = 0;
      for (int64_t i = 0; i < cells; i++) {
        int64_t x[MOST] = {0}, rest = i;
        int want = 0;
        for (int r = rank - 1; r >= 0; rest /= shape[r--]) x[r] = rest % shape[r];
        for (int64_t p = 0; p < points; p++) {
          rest = p;
          for (int k = n - 1; k >= 0; rest /= m[k--].extent) coord[k] = rest % m[k].extent;
          if (ein_grid_place(g, p) == q) want |= holds(m, n, coord, shape, x);
        }
        wrong += count[i] != want;
        got += want;
      }
      if (wrong) printf("%s | %s, %d places, place %d\n", machine, text, (int)places, (int)q);
      CHECK(!wrong);
    }
    CHECK(got >= cells);  // every element is somewhere
    ein_grid_print(g, again, sizeof again);
    h = grid_of(again, places);
    ein_distribution_print(d, text, sizeof text);
    e = distribution_of(text, rank, h);
    ein_distribution_print(e, again, sizeof again);
    CHECK(strcmp(text, again) == 0);
    ein_distribution_destroy(d);
    ein_distribution_destroy(e);
    ein_grid_destroy(g);
    ein_grid_destroy(h);
  }
}

// Deinsum, section V-B: from blocks of B to blocks of C, of P and Q ranks, rank p sends to ranks
// ceil((p*B + 1)/C) - 1 <= q < ceil((p + 1)*B/C).
static void test_redistribution(int cases) {
  static unsigned char mine[2][CELLS];
  for (int c = 0; c < cases; c++) {
    const int64_t extent = draw(1, 60), p = draw(1, 9), q = draw(1, 9);
    const int64_t b = (extent + p - 1) / p, s = (extent + q - 1) / q;
    char text[2][64];
    ein_grid *g[2];
    ein_distribution *d[2];
    for (int k = 0; k < 2; k++) {
      sprintf(text[k], "x=%d", (int)(k ? q : p));
      g[k] = grid_of(text[k], k ? q : p);
      sprintf(text[k], "x->x:%d", (int)(k ? s : b));
      d[k] = distribution_of(text[k], 1, g[k]);
    }
    int wrong = 0;
    for (int64_t i = 0; i < p; i++) {
      for (int64_t j = 0; j < q; j++) {
        int meet = 0, begins = i * b < extent && j * s < extent;
        for (int k = 0; k < 2; k++) {
          boxes of = {1, 0, "", &extent, mine[k]};
          memset(mine[k], 0, (size_t)extent);
          CHECK(ein_distribution_boxes(d[k], &extent, k ? j : i, take_count, &of) == EIN_OK);
        }
        for (int64_t e = 0; e < extent; e++) meet |= mine[0][e] && mine[1][e];
        const int said = (i * b + 1 + s - 1) / s - 1 <= j && j < ((i + 1) * b + s - 1) / s;
        wrong += meet != (said && begins);
      }
    }
    CHECK(!wrong);
    for (int k = 0; k < 2; k++) {
      ein_distribution_destroy(d[k]);
      ein_grid_destroy(g[k]);
    }
  }
}

// ---- mistakes -----------------------------------------------------------------------------------

static void test_errors(void) {
  static const struct { const char *text; int64_t places; ein_status st; int column; } grids[] = {
      {"", 4, EIN_ERR_SYNTAX, 1},           {"x", 4, EIN_ERR_SYNTAX, 2},
      {"x=", 4, EIN_ERR_SYNTAX, 3},         {"x=0", 4, EIN_ERR_ARGUMENT, 3},
      {"x=-1", 4, EIN_ERR_ARGUMENT, 3},     {"x=1.5", 4, EIN_ERR_ARGUMENT, 3},
      {"x=p/3", 4, EIN_ERR_ARGUMENT, 3},    {"x=sqrt(2)", 4, EIN_ERR_ARGUMENT, 3},
      {"x=2, x=2", 4, EIN_ERR_NAME, 6},     {"x=y", 4, EIN_ERR_NAME, 3},
      {"p=2", 4, EIN_ERR_NAME, 1},          {"x=2 y=2", 4, EIN_ERR_SYNTAX, 5},
      {"a[x=2], y=2", 4, EIN_ERR_SYNTAX, 10}, {"x=2, a[y=2]", 4, EIN_ERR_SYNTAX, 8},
      {"a[x=2", 4, EIN_ERR_SYNTAX, 2},      {"x=1/0", 4, EIN_ERR_ARGUMENT, 3},
      {"x=1048576, y=2", 4, EIN_ERR_TOO_LARGE, 12}, {"x=9e99", 4, EIN_ERR_ARGUMENT, 3},
      {"x=2", 0, EIN_ERR_ARGUMENT, 0},      {NULL, 4, EIN_ERR_ARGUMENT, 0}};
  static const struct { const char *text; ein_status st; int column; } spreads[] = {
      {"", EIN_ERR_SYNTAX, 1},            {"xy", EIN_ERR_SYNTAX, 1},
      {"xy->", EIN_ERR_SYNTAX, 1},        {"x->x0", EIN_ERR_SHAPE, 1},
      {"xyz->xy", EIN_ERR_SHAPE, 1},      {"xy->x", EIN_ERR_SHAPE, 1},
      {"xy->xy*", EIN_ERR_SHAPE, 1},      {"xx->x*", EIN_ERR_NAME, 2},
      {"xy->xx", EIN_ERR_NAME, 6},        {"xy->xz", EIN_ERR_NAME, 6},
      {"xy->x3", EIN_ERR_BOUNDS, 6},      {"xy->x(3)", EIN_ERR_BOUNDS, 6},
      {"xy->x(1", EIN_ERR_SYNTAX, 6},     {"xy->x()", EIN_ERR_SYNTAX, 7},
      {"xy->x:y", EIN_ERR_SYNTAX, 7},     {"xy->x:0y", EIN_ERR_SYNTAX, 7},
      {"xy->x?", EIN_ERR_SYNTAX, 6},      {"xy->xy, xy->xy", EIN_ERR_SHAPE, 9},
      {"xy->xy in disk", EIN_ERR_SYNTAX, 11}, {"xy->xy xy", EIN_ERR_SYNTAX, 8},
      {"xy->\xff", EIN_ERR_SYNTAX, 5},    {"xy->x:99999999999999999999y", EIN_ERR_SYNTAX, 7}};
  ein_grid *g = grid_of("a=2, b=3", 6);
  const ein_error *e;
  for (size_t k = 0; k < sizeof grids / sizeof *grids; k++) {
    ein_grid *h;
    const ein_status st = ein_grid_create(ctx, grids[k].text, grids[k].places, &h);
    const int right = st == grids[k].st && h == NULL && (e = ein_ctx_error(ctx, 0)) != NULL &&
                      (grids[k].column == 0 || e->column == grids[k].column);
    if (!right) printf("%s: %s\n", grids[k].text, ein_ctx_message(ctx));
    CHECK(right);
  }
  for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) {
    ein_distribution *d;
    const ein_status st = ein_distribution_create(ctx, spreads[k].text, 2, g, &d);
    const int right = st == spreads[k].st && d == NULL && (e = ein_ctx_error(ctx, 0)) != NULL &&
                      e->column == spreads[k].column;
    if (!right) printf("%s: %s\n", spreads[k].text, ein_ctx_message(ctx));
    CHECK(right);
  }
  ein_grid_destroy(g);
  ein_grid_destroy(NULL);
  ein_distribution_destroy(NULL);
}

// Extents as expressions in the number of places.
static void test_amounts(void) {
  static const struct { const char *text; int64_t places; const char *is; } cases[] = {
      {"x=sqrt(p), y=p/x", 16, "x=4, y=4"}, {"q=p^(1/3), r=q, s=q", 27, "q=3, r=3, s=3"},
      {"c=2, s=sqrt(p/c), t=s", 32, "c=2, s=4, t=4"}, {"q=ceil(p^(1/3)), r=q", 20, "q=3, r=3"},
      {"x=floor(sqrt(p)), y=max(1, p - x*x, 2)", 8, "x=2, y=4"}, {"x=min(p,3)", 8, "x=3"},
      {"node[x=p/4], gpu[g=4]", 8, "node[x=2], gpu[g=4]"}, {"x=2^3^0*(1+1)", 1, "x=4"},
      {"x = -2 + p # rows", 4, "x=2"}};
  char text[64];
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ein_grid *g = grid_of(cases[k].text, cases[k].places);
    CHECK(ein_grid_print(g, text, sizeof text) == strlen(cases[k].is));
    if (strcmp(text, cases[k].is) != 0) printf("%s: %s\n", cases[k].text, text);
    CHECK(strcmp(text, cases[k].is) == 0);
    ein_grid_dim dim;
    CHECK(ein_grid_dimension(g, 0, &dim) && !ein_grid_dimension(g, 3, &dim));
    ein_grid_destroy(g);
  }
}

// Hostile sizes are refused or finish.
static void test_hostile(void) {
  const int64_t far[1] = {INT64_MAX};
  ein_grid *g = grid_of("x=1048576", 1048576);
  ein_distribution *d = distribution_of("x->x:1", 1, g);
  boxes b = {1, 0, "", NULL, NULL};
  CHECK(ein_distribution_boxes(d, far, 5, take_text, &b) == EIN_ERR_TOO_LARGE);
  ein_distribution_destroy(d);
  d = distribution_of("x->x", 1, g);
  memset(&b, 0, sizeof b);
  b.rank = 1;
  CHECK(ein_distribution_boxes(d, far, 1048575, take_text, &b) == EIN_OK && b.n == 1);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
  static char deep[4096];
  strcpy(deep, "x=");
  memset(deep + 2, '(', 4000);
  CHECK(ein_grid_create(ctx, deep, 1, &g) == EIN_ERR_TOO_LARGE && g == NULL);
}

// Every allocation fails once.
static void test_memory(void) {
  const int64_t shape[2] = {12, 12};
  for (long n = 0, done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_ctx_desc how;
    ein_ctx *own;
    ein_grid *g = NULL;
    ein_distribution *d = NULL;
    boxes b = {2, 0, "", NULL, NULL};
    memset(&how, 0, sizeof how);
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    CHECK(ein_ctx_create(&how, &own) == EIN_OK);
    count.fail_at = count.calls + n;
    ein_status st = ein_grid_create(own, "a=2, b=2", 4, &g);
    if (st == EIN_OK) st = ein_distribution_create(own, "xy->x:2y", 2, g, &d);
    if (st == EIN_OK) st = ein_distribution_boxes(d, shape, 3, take_text, &b);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    done = st == EIN_OK;
    CHECK(!done || n > 3);
    ein_distribution_destroy(d);
    ein_grid_destroy(g);
    ein_ctx_destroy(own);
    CHECK(count.live == 0);
  }
}

int main(int argc, char **argv) {
  const int cases = argc > 1 ? atoi(argv[1]) : FEW(400);
  const int moved = argc > 2 ? atoi(argv[2]) : FEW(400);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  test_distal();
  test_deinsum();
  test_small();
  test_errors();
  test_amounts();
  test_hostile();
  test_memory();
  test_random(cases);
  test_redistribution(moved);
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
