// Counted traffic. The models of a fast memory against plain ones, and the ideal one against every
// way to choose what goes; no execution of small statements, by every order of loops and tiles of
// a set, moves less than the bound, with the best replacement there is. Plans that are counted give
// what plans give, move no less than the bound, and what is known where everything fits.
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

// ---- plans that are counted ----

typedef struct counted {
  ein_count info;
  double bound, compulsory, task[64];  // the bound of one statement; 0: there are several
  int ntask;
} counted;

// Runs and counts a program on small integers, of the dtypes its text says; results are equal.
static counted count_of(const char *text, double fast, int64_t line, int ideal) {
  enum { MOST_PORTS = 8 };
  counted c;
  ein_ctx *ctx;
  ein_plan *plan = NULL;
  ein_plan_info info;
  ein_bound *b;
  ein_bound_desc bd;
  ein_bound_stmt x;
  ein_options options;
  ein_run run;
  ein_tensor_info t;
  void *in[MOST_PORTS], *out[2][MOST_PORTS];
  size_t size[MOST_PORTS];
  char error[128] = "";
  ein_graph *g = parse(text);
  memset(&c, 0, sizeof c);
  memset(&bd, 0, sizeof bd);
  memset(&run, 0, sizeof run);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  bd.fast_memory = fast;
  CHECK(ein_bound_create(ctx, g, &bd, &b) == EIN_OK);
  CHECK(ein_bound_statement(b, 0, &x));
  if (ein_graph_statements(g) == 1) c.bound = x.bound, c.compulsory = x.compulsory;
  ein_bound_destroy(b);
  memset(&options, 0, sizeof options);
  options.path = "none";
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &options, &plan) == EIN_OK);
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK && info.nin <= MOST_PORTS);
  for (int k = 0; k < info.nin + info.nout; k++) {
    const int o = k - info.nin;
    int64_t n = 1;
    CHECK(o < 0 ? ein_plan_input(plan, k, &t) : ein_plan_output(plan, o, &t));
    for (int r = 0; r < t.rank; r++) n *= t.shape[r];
    const size_t bytes = (size_t)n * ein_dtype_size(t.dtype);
    if (o >= 0) {
      size[o] = bytes;
      for (int v = 0; v < 2; v++) out[v][o] = malloc(bytes + 1), memset(out[v][o], v + 1, bytes);
      continue;
    }
    in[k] = malloc(bytes + 1);
    for (int64_t i = 0; i < n; i++) {
      const int v = (int)draw(-3, 3);
      if (t.dtype == EIN_F64) ((double *)in[k])[i] = v;
      else if (t.dtype == EIN_F32) ((float *)in[k])[i] = (float)v;
      else if (t.dtype == EIN_I32) ((int32_t *)in[k])[i] = v;
      else if (t.dtype == EIN_I64) ((int64_t *)in[k])[i] = v;
      else ((double *)in[k])[2 * i] = v, ((double *)in[k])[2 * i + 1] = (double)draw(-3, 3);
    }
  }
  run.in = (const void *const *)in;
  run.error = error;
  run.error_bytes = sizeof error;
  run.out = out[0];
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  run.out = out[1];
  c.info.fast_memory = fast;
  c.info.line = line;
  c.info.ideal = ideal;
  c.info.task = c.task;
  c.ntask = info.ntask;
  CHECK(info.ntask <= 64);
  CHECK(ein_plan_count(plan, &run, &c.info) == EIN_OK);
  for (int o = 0; o < info.nout; o++) {
    const int same = memcmp(out[0][o], out[1][o], size[o]) == 0;
    if (!same) printf("other results\n%s\n", text);
    CHECK(same);
    free(out[0][o]), free(out[1][o]);
  }
  double sum = 0, tasks = 0;
  for (int k = 0; k < 4; k++) sum += c.info.read[k] + c.info.written[k];
  for (int k = 0; k < c.ntask; k++) tasks += c.task[k];
  CHECK(sum == c.info.moved && tasks == sum);
  for (int k = 0; k < info.nin; k++) free(in[k]);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  return c;
}

// The bound holds, whatever runs a statement.
static void test_plans(void) {
  static const char *const text[] = {
      "input A[i=40,k=50], B[k,j=60] : f64\nC[i,j] = A[i,k]*B[k,j]",
      "input A[i=31,k=33], B[k,j=35] : f32\nC[i,j] = A[i,k]*B[k,j]",
      "input A[k=20,i=20], B[j=20,k] : c128\nC[j,i] = conj(A[k,i])*B[j,k]",
      "input A[i=19,k=23], B[k,j=29] : i32\nC[i,j] = A[i,k]*B[k,j]",
      "input A[i=19,k=23], B[k,j=29] : i64\nC[i,j] = A[i,k]*B[k,j]",
      "input X[i=20,j=20,k=20], A[j,a=10], B[k,a] : f64\nY[i,a] = X[i,j,k]*A[j,a]*B[k,a]",
      "input X[b=3,i=20,k=20], A[b,k,a=15] : f64\nY[b,i,a] = X[b,i,k]*A[b,k,a]",
      "input X[c=3,20,21], K[o=4,c,r=3,s=3] : f64\nY[o,h,w] = X[c,h+r,w+s]*K[o,c,r,s]",
      "input A[i=40,k=40], B[k,j=40] : f64\nC[i,j] = relu(sum[k](A[i,k]*B[k,j]) - 5)",
      "input A[i=40,k=40], B[k,j=40], D[i,j] : f64\nC[i,j] = 2*sum[k](A[i,k]*B[k,j]) + 3*D[i,j]",
      "input A[i=30,k=30], B[k,j=30] : f64\nC[i,j] = sum[k](A[i,k]*k*B[k,j])",
      "input A[i=100,j=100] : f64\nY[j,i] = A[i,j]",
      "input A[i=100,j=100] : f64\nY[i] = sum[j](A[i,j])",
      "input A[i=100,j=100] : f64\nY[j] = max[i](A[i,j])",
      "input A[i=30,j=30,k=20] : f64\nY[i] = sum[j,k](A[i,j,k]^2)",
      "input A[i=50,k=20], B[j=50,k] : f64\nD[i,j] = sum[k](abs(A[i,k]-B[j,k]))",
      "input A[i=100,j=100] : f64\nY[j] = argmax[i](A[i,j])",
      "input A[3,0], B[0,5] : f64\nY[i,j] = A[i,k]*B[k,j]",
      "input A[0,3], B[3,5] : f64\nY[i,j] = A[i,k]*B[k,j]",
      "input a[], b[] : f64\nY = a[]*b[]"};
  for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
    for (double fast = 12; fast < 1e6; fast *= 7) {
      const counted lru = count_of(text[k], fast, 0, 0);
      const counted best = count_of(text[k], fast, 0, 1);
      if (best.info.moved < best.bound)
        printf("fast %g moved %g bound %g\n%s\n", fast, best.info.moved, best.bound, text[k]);
      CHECK(best.info.moved >= best.bound && lru.info.moved >= best.bound);
      CHECK(lru.info.accesses == best.info.accesses && lru.info.accesses >= best.compulsory);
      const counted lines = count_of(text[k], fast, 4, 1);
      CHECK(lines.info.moved >= best.bound);
    }
    // Where all fits, what is needed moves once.
    const counted all = count_of(text[k], 1e6, 1, 0);
    CHECK(all.bound == 0 || all.info.moved == all.compulsory);
    CHECK(all.info.read[3] + all.info.written[3] == 0);
  }
}

// How good the tiles are, and what lies between statements.
static void test_tiles(void) {
  counted c = count_of("input A[i=150,k=150], B[k,j=150] : f64\nC[i,j] = A[i,k]*B[k,j]", 1024, 1,
                       0);
  CHECK(c.info.moved <= 1.25 * c.bound);
  CHECK(c.info.written[1] == 150 * 150 && c.info.read[1] == 0);
  c = count_of("input X[i=50,j=50,k=50], A[j,a=50], B[k,a] : f64\nY[i,a] = X[i,j,k]*A[j,a]*B[k,a]",
               1000, 1, 1);
  CHECK(c.info.moved <= 1.5 * c.bound);
  // A temporary stays where it fits, and goes to memory and back where it does not.
  static const char two[] = "input A[i=64,k=64] : f64\nB[i,k] = exp(0*A[i,k])\n"
                            "Y[k] = sum[i](B[i,k])\nZ[k] = max[i](B[i,k])";
  c = count_of(two, 1e5, 1, 0);
  CHECK(c.info.moved == 64 * 64 + 2 * 64 && c.info.written[2] == 0);
  c = count_of(two, 600, 1, 0);
  CHECK(c.info.written[2] >= 64 * 64 - 600 && c.info.read[2] >= 64 * 64 - 600);
}

static void test_count_errors(void) {
  ein_count d;
  ein_run run;
  ein_ctx *ctx;
  ein_plan *plan = NULL;
  double x[5] = {1, 2, 3, 4, 5}, y[5];
  const void *in[1] = {x};
  void *out[1] = {y};
  char error[128];
  ein_graph *g = parse("input A[i=5] : f64\nY[i] = A[i]*2");
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  run.in = in, run.out = out, run.error = error, run.error_bytes = sizeof error;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_ERR_ARGUMENT);
  CHECK(strstr(error, "fast_memory") != NULL);
  d.fast_memory = 3;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_OK && d.moved == 10 && y[4] == 10);
  d.line = 3;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_ERR_ARGUMENT && strstr(error, "line") != NULL);
  d.line = 2;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_OK && d.moved == 12);
  d.ideal = 2;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_ERR_ARGUMENT);
  d.ideal = 0;
  CHECK(ein_plan_count(NULL, &run, &d) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_count(plan, NULL, &d) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_count(plan, &run, NULL) == EIN_ERR_ARGUMENT);
  in[0] = NULL;
  CHECK(ein_plan_count(plan, &run, &d) == EIN_ERR_ARGUMENT);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// Every allocation fails once: a status, and nothing is left.
static void test_count_memory(void) {
  static double x[9 * 9], y[9 * 9], z[9], sums[9 * 9];
  const void *in[2] = {x, y};
  void *out[2] = {sums, z};
  ein_graph *g = parse("input A[i=9,k=9], B[k,j=9] : f64\nC[i,j] = exp(sum[k](A[i,k]*B[k,j]))\n"
                       "Z[j] = max[i](C[i,j]+A[i,j])\noutput C, Z");
  long n = 0;
  for (int ideal = 0; ideal < 2; ideal++) {
    for (int done = 0; !done; n++) {
      counter count = {0, -1, 0};
      ein_ctx_desc d;
      ein_count cd;
      ein_ctx *ctx;
      ein_plan *plan;
      ein_run run;
      memset(&d, 0, sizeof d);
      memset(&cd, 0, sizeof cd);
      memset(&run, 0, sizeof run);
      d.allocator.alloc_fn = count_alloc;
      d.allocator.free_fn = count_free;
      d.allocator.user = &count;
      run.in = in, run.out = out;
      cd.fast_memory = 20;
      cd.ideal = ideal;
      CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
      CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
      const long live = count.live;
      count.fail_at = count.calls + n;
      const ein_status st = ein_plan_count(plan, &run, &cd);
      CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
      CHECK(count.live == live);
      done = st == EIN_OK;
      ein_plan_destroy(plan);
      ein_ctx_destroy(ctx);
      CHECK(count.live == 0);
    }
    CHECK(n > 1);
    n = 0;
  }
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int traces = argc > 1 ? atoi(argv[1]) : FEW(6000);
  const int statements = argc > 2 ? atoi(argv[2]) : FEW(2000);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_count_errors();
  test_count_memory();
  test_plans();
  test_tiles();
  test_models(traces);
  test_bounds(statements);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
