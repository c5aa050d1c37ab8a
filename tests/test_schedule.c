// Schedules: what the six algorithms for products of matrices move, place by place and step by
// step, against the formulas of their papers; the table of rotation; nests against a count of every
// point; commands that are illegal, and why; printing.
//
//   test_schedule [nests [seed]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "check.h"
#include "util.h"

enum { PLACES = 64, STEPS = 64 };

static ein_ctx *ctx;

static ein_graph *parse(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

static ein_schedule *schedule_of(const ein_graph *g, const char *text, int64_t places) {
  ein_schedule_desc d;
  ein_schedule *s = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.places = places;
  if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK)
    printf("%s\n%s\n", text == NULL ? "" : text, ein_ctx_message(ctx));
  CHECK(s != NULL);
  return s;
}

// Elements (of 8 bytes) and messages that a place gets of A (0), B (1), and of C (2) that come
// home.
typedef struct tally {
  int64_t elements[STEPS][PLACES][3], messages[STEPS][PLACES][3];
  int wrong;
} tally;

static tally moved;

static ein_status take(void *user, const ein_schedule_move *m) {
  tally *t = (tally *)user;
  const int k = m->operand < 0 ? 2 : m->operand;
  t->wrong += m->from == m->to || m->bytes % 8 != 0 || (k < 2 ? m->to : m->from) != m->place;
  t->elements[m->step][m->to][k] += m->bytes / 8;
  t->messages[m->step][m->to][k]++;
  return EIN_OK;
}

static ein_schedule_info tally_of(const ein_schedule *s) {
  ein_schedule_info info;
  memset(&moved, 0, sizeof moved);
  CHECK(ein_schedule_cost(ctx, s, 0, take, &moved, &info) == EIN_OK);
  CHECK(moved.wrong == 0);
  int64_t elements = 0, messages = 0;
  for (int step = 0; step < STEPS; step++)
    for (int q = 0; q < PLACES; q++)
      for (int k = 0; k < 3; k++)
        elements += moved.elements[step][q][k], messages += moved.messages[step][q][k];
  CHECK(info.bytes == 8 * elements && info.messages == messages);
  return info;
}

static const char *read_file(const char *name) {
  static char text[4096];
  char path[256];
  snprintf(path, sizeof path, "examples/schedules/%s.sched", name);
  FILE *f = fopen(path, "rb");
  const size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
  CHECK(n > 0);
  if (f != NULL) fclose(f);
  text[n] = 0;
  int lines = 0;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  CHECK(lines <= 12);
  return text;
}

// One tile, when it is somebody else's.
#define TILE(own, size) CHECK(moved.elements[step][q][k] == ((own) ? 0 : (size)) && \
                              moved.messages[step][q][k] == !(own))

// Cannon, PUMMA and SUMMA on g*g places: in every step a place uses tile t of its row of A and of
// its column of B; t is what they differ in. Each receives 2*(g-1) tiles of (n/g)^2 elements, the
// 2*n^2/sqrt(p) of the papers less what it has.
static void test_flat(const char *name, int64_t n, int g, int io, int jo, int fan) {
  char program[128];
  const int64_t tile = n / g * (n / g);
  snprintf(program, sizeof program, "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n",
           (int)n, (int)n, (int)n);
  ein_graph *graph = parse(program);
  ein_schedule *s = schedule_of(graph, read_file(name), g * g);
  const ein_schedule_info info = tally_of(s);
  const int steps = (int)info.steps, each = steps / g;  // steps for a tile
  CHECK(strcmp(name, "summa") == 0 ? steps == n / 4 : steps == g);
  CHECK(info.tasks == (int64_t)g * g * steps && info.fan == fan);
  CHECK(info.bytes == 8 * 2 * (int64_t)g * g * (g - 1) * tile);
  CHECK(info.messages == 2 * (int64_t)g * g * (g - 1) * each);
  for (int step = 0; step < steps; step++) {
    for (int q = 0; q < g * g; q++) {
      const int i = q / g, j = q % g, t = (step / each + io * i + jo * j) % g;
      for (int k = 0; k < 2; k++) TILE(t == (k == 0 ? j : i), tile / each);
      CHECK(moved.messages[step][q][2] == 0);
    }
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(graph);
}

// Johnson on q^3: a place has at most one tile to receive of A and B, and sends one of C.
static void test_johnson(int64_t n, int q) {
  char program[128];
  const int64_t tile = n / q * (n / q);
  snprintf(program, sizeof program, "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n",
           (int)n, (int)n, (int)n);
  ein_graph *graph = parse(program);
  ein_schedule *s = schedule_of(graph, read_file("johnson"), q * q * q);
  const ein_schedule_info info = tally_of(s);
  CHECK(info.steps == 1 && info.tasks == q * q * q);
  CHECK(info.messages == 3 * q * q * (q - 1) && info.bytes == 8 * info.messages * tile);
  for (int x = 0; x < q * q * q; x++) {
    const int i = x / q / q, j = x / q % q, l = x % q;
    CHECK(moved.elements[0][x][0] == (j == 0 ? 0 : tile));
    CHECK(moved.elements[0][x][1] == (i == 0 ? 0 : tile));
    CHECK(moved.messages[0][x][2] == (l == 0 ? q - 1 : 0));
    CHECK(moved.elements[0][x][2] == (l == 0 ? (q - 1) * tile : 0));
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(graph);
}

// 2.5D with p = 32 and c = 2: a grid of 4*4*2, sqrt(p/c^3) = 2 steps a layer. A place uses
// 2*n^2/sqrt(c*p) elements of A and B.
static void test_solomonik(void) {
  const int64_t n = 32, tile = 64;
  ein_graph *graph = parse("input A[m=32,k=32], B[k,n=32]\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_schedule *s = schedule_of(graph, read_file("solomonik"), 32);
  const ein_schedule_info info = tally_of(s);
  ein_grid_dim dim;
  for (int k = 0; k < 3; k++)
    CHECK(ein_grid_dimension(ein_schedule_grid(s), k, &dim) && dim.extent == (k == 0 ? 2 : 4));
  CHECK(info.steps == 2 && info.tasks == 64);
  CHECK(2 * info.steps * tile * 8 == 2 * n * n);  // sqrt(c*p) = 8
  for (int step = 0; step < 2; step++) {
    for (int q = 0; q < 32; q++) {
      const int l = q / 16, i = q / 4 % 4, j = q % 4, t = 2 * l + (step + i + j) % 2;
      for (int k = 0; k < 2; k++) TILE(l == 0 && t == (k == 0 ? j : i), tile);
      CHECK(moved.messages[step][q][2] == (step == 1 && l == 0));
      CHECK(moved.elements[step][q][2] == (step == 1 && l == 0 ? tile : 0));
    }
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(graph);
}

// COSMA on gz*gx*gy = 2*2*4, two sequential steps: in each n/4 columns of A and rows of B.
static void test_cosma(void) {
  const int64_t n = 32;
  ein_graph *graph = parse("input A[m=32,k=32], B[k,n=32]\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_schedule *s = schedule_of(graph, read_file("cosma"), 16);
  const ein_schedule_info info = tally_of(s);
  CHECK(info.steps == 2 && info.tasks == 32);
  for (int step = 0; step < 2; step++) {
    for (int q = 0; q < 16; q++) {
      const int l = q / 8, i = q / 4 % 2, j = q % 4;
      CHECK(moved.elements[step][q][0] == (j == 0 ? 0 : n / 2 * (n / 4)));
      CHECK(moved.elements[step][q][1] == (i == 0 ? 0 : n / 4 * (n / 4)));
      CHECK(moved.elements[step][q][2] == (l == 0 && step == 1 ? n / 2 * (n / 4) : 0));
    }
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(graph);
}

// SPEC: on 3*3, (1,2) goes through 0, 1, 2; (0,1) through 1, 2, 0; in no step two places of a row
// or column are at one tile.
static void test_rotation(void) {
  ein_graph *g = parse("input A[m=3,k=3], B[k,n=3]\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_schedule *s = schedule_of(g, read_file("cannon"), 9);
  const eini_loops *n = &s->nest[0];
  int64_t lo[3], hi[3], value[EINI_LOOPS_MAX], ko[3][3][3];
  for (int i = 0; i < 27; i++) {
    for (int v = 0; v < n->nloop; v++) value[v] = -1;
    value[n->order[0]] = i / 9;
    value[n->order[1]] = i / 3 % 3;
    value[n->order[2]] = i % 3;
    eini_loops_ranges(n, value, lo, hi);
    CHECK(hi[2] == lo[2] + 1 && lo[0] == i / 9 && lo[1] == i / 3 % 3);
    ko[i % 3][i / 9][i / 3 % 3] = lo[2];
  }
  for (int step = 0; step < 3; step++) {
    CHECK(ko[step][1][2] == step && ko[step][0][1] == (step + 1) % 3);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        CHECK(ko[step][i][j] != ko[step][i][(j + 1) % 3] &&
              ko[step][i][j] != ko[step][(i + 1) % 3][j]);
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// TTV and TTM move nothing when i is distributed; an inner product moves one number a place.
static void test_higher(void) {
  static const char ttv[] = "machine g=p\nplace X xyz->x\nplace Y xy->x\n"
                            "divide(i, io, ii, g)\ndistribute(io)\n";
  static const char inner[] = "machine g=p\nplace X, Z xyz->x\n"
                              "divide(i, io, ii, g)\ndistribute(io)\n";
  ein_graph *g = parse("input X[m=8,n=4,o=3], v[o]\nY[i,j] = X[i,j,k] * v[k]\n");
  ein_schedule *s = schedule_of(g, ttv, 4);
  ein_schedule_info info = tally_of(s);
  CHECK(info.messages == 0 && info.tasks == 4 && info.steps == 1);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
  g = parse("input X[m=8,n=4,o=3], Z[m,n,o]\ny = sum[i,j,k](X[i,j,k] * Z[i,j,k])\n");
  s = schedule_of(g, inner, 4);
  info = tally_of(s);
  CHECK(info.messages == 3 && info.bytes == 24 && moved.messages[0][0][2] == 3);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// ---- runs: the result is that of a plan without places, and what moves is what was counted ------

enum { CELLS = 4096 };

static double data[8][CELLS], want[4][CELLS], got[4][CELLS];

static int same(const double *a, const double *b, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double d = a[i] - b[i], size = b[i] < 0 ? -b[i] : b[i];
    if (!(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]) ||
          (d <= 1e-12 * (1 + size) && -d <= 1e-12 * (1 + size))))
      return 0;
  }
  return 1;
}

// Runs a program (f64) under a schedule on the three fabrics; EIN_OK, or why it is refused.
static ein_status run_of(const ein_graph *g, const ein_schedule *s, int places) {
  const void *in[8];
  void *out[4], *into[4];
  int64_t size[4];
  int nin = 0, nout = 0;
  ein_tensor_info t;
  ein_plan *plan;
  ein_run run;
  for (int k = 0; ein_graph_tensor(g, k, &t); k++) {
    int64_t n = 1;
    for (int r = 0; r < t.rank; r++) n *= t.shape[r];
    CHECK(n <= CELLS);
    if (t.role == EIN_ROLE_INPUT) {
      for (int64_t i = 0; i < n; i++) data[nin][i] = (double)draw(-8, 8) / 4;
      in[nin] = data[nin];
      nin++;
    } else if (t.role == EIN_ROLE_OUTPUT) {
      size[nout] = n;
      out[nout] = want[nout];
      into[nout] = got[nout];
      nout++;
    }
  }
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  ein_plan_destroy(plan);
  run.out = into;
  for (int kind = 0; kind < 3; kind++) {
    ein_fabric f;
    ein_dist_desc how;
    ein_dist *d;
    ein_dist_info info;
    ein_dist_stats stats;
    int64_t bytes = 0, messages = 0, sent = 0, sends = 0;
    CHECK((kind == 0 ? ein_fabric_serial(places, &f) : kind == 1 ? ein_fabric_threads(places, &f)
           : ein_fabric_copying(ctx, places, &f)) == EIN_OK);
    memset(&how, 0, sizeof how);
    memset(&stats, 0, sizeof stats);
    how.fabric = &f;
    how.schedule = s;
    const ein_status st = ein_dist_create(ctx, g, &how, &d);
    if (st != EIN_OK) {
      ein_fabric_destroy(&f);
      return st;
    }
    for (int again = 0; again < 2; again++) {
      for (int k = 0; k < nout; k++) memset(got[k], 0xff, sizeof got[k]);
      CHECK(ein_dist_execute(d, &run, &stats) == EIN_OK);
      for (int k = 0; k < nout; k++) CHECK(same(got[k], want[k], size[k]));
    }
    for (int k = 0; k < ein_graph_statements(g); k++) {
      ein_schedule_info each;
      CHECK(ein_schedule_cost(ctx, s, k, NULL, NULL, &each) == EIN_OK);
      bytes += each.bytes;
      messages += each.messages;
    }
    CHECK(ein_dist_info_get(d, &info) == EIN_OK);
    CHECK(stats.bytes == bytes && stats.messages == messages);
    CHECK(info.bytes == bytes && info.messages == messages && info.tasks == stats.tasks);
    ein_fabric_moved(&f, &sends, &sent);
    if (kind == 2) CHECK(sends == 2 * messages && sent == 2 * bytes);
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
  return EIN_OK;
}

// ---- random nests: every point of the index space is in one step of one point of the machine ----

static void test_nests(int cases) {
  static int seen[16 * 16 * 16];
  int legal = 0;
  for (int c = 0; c < cases; c++) {
    char program[160], text[512], again[512];
    int64_t e[3];
    for (int i = 0; i < 3; i++) e[i] = draw(1, 9);
    snprintf(program, sizeof program, "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n",
             (int)e[0], (int)e[2], (int)e[1]);
    ein_graph *g = parse(program);
    // Two of the three indices over places, the third cut, and one of the inner loops.
    static const char index[] = "ijk";
    const int third = (int)draw(0, 2), one = (third + 1) % 3, two = (third + 2) % 3;
    const int again_cut = chance(50) ? one : two, other = one + two - again_cut;
    const int places = (int)draw(1, 10), gx = (int)draw(1, 3), gy = (int)draw(1, 3);
    int at = snprintf(text, sizeof text, "machine gx=%d, gy=%d; place A,B xy->yx\n"
                      "distribute([%c, %c], [%co, %co], [%ci, %ci], [gx, gy])\n", gx, gy,
                      index[one], index[two], index[one], index[two], index[one], index[two]);
    at += snprintf(text + at, sizeof text - (size_t)at, "%s(%c, u, v, %d)\n%s(%ci, w, x, %d)\n",
                   chance(50) ? "divide" : "split", index[third], (int)draw(1, 4),
                   chance(50) ? "divide" : "split", index[again_cut], (int)draw(1, 4));
    at += snprintf(text + at, sizeof text - (size_t)at, chance(50) ? "reorder(u, w, %ci, v, x)\n" :
                   chance(80) ? "reorder(w, u, x, v, %ci)\n" : "reorder(w, %ci, u, x, v)\n",
                   index[other]);
    if (chance(70))
      at += snprintf(text + at, sizeof text - (size_t)at, "rotate(%s, [%co, %co], t)\n",
                     chance(50) ? "u" : "w", index[one], index[two]);
    if (chance(50))
      snprintf(text + at, sizeof text - (size_t)at, "communicate(%s, %ci)\n",
               chance(50) ? "A" : "C", index[other]);
    ein_schedule_desc d;
    ein_schedule *s = NULL, *r;
    memset(&d, 0, sizeof d);
    d.text = text;
    d.places = places;
    if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK) {  // loops are not in an order that goes
      CHECK(ein_ctx_error(ctx, 0)->line > 0);
      ein_graph_destroy(g);
      continue;
    }
    legal++;
    const eini_loops *n = &s->nest[0];
    int64_t lo[3], hi[3], here[2], value[EINI_LOOPS_MAX];
    memset(seen, 0, sizeof seen);
    for (here[0] = 0; here[0] < gx; here[0]++) {
      for (here[1] = 0; here[1] < gy; here[1]++) {
        for (int64_t step = 0; step < n->steps; step++) {
          eini_tour w;
          memset(&w, 0, sizeof w);
          w.n = n;
          w.here = here;
          w.value = value;
          eini_tour_values(&w, step, n->nstep);
          eini_loops_ranges(n, value, lo, hi);
          for (int64_t i = lo[0]; i < hi[0]; i++)
            for (int64_t j = lo[1]; j < hi[1]; j++)
              for (int64_t k = lo[2]; k < hi[2]; k++) seen[(i * 16 + j) * 16 + k]++;
        }
      }
    }
    int wrong = 0;
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++)
        for (int k = 0; k < 16; k++)
          wrong += seen[(i * 16 + j) * 16 + k] != (i < e[0] && j < e[1] && k < e[2]);
    if (wrong) printf("%s%s", program, text);
    CHECK(!wrong);
    ein_schedule_info info, twin;
    CHECK(ein_schedule_cost(ctx, s, 0, NULL, NULL, &info) == EIN_OK);
    CHECK(ein_schedule_print(s, again, sizeof again) < sizeof again);
    r = schedule_of(g, again, places);
    CHECK(ein_schedule_cost(ctx, r, 0, NULL, NULL, &twin) == EIN_OK);
    CHECK(memcmp(&info, &twin, sizeof info) == 0);
    if (c % 20 == 0) CHECK(run_of(g, s, places) == EIN_OK);
    CHECK(ein_schedule_print(r, text, sizeof text) == strlen(again) && strcmp(text, again) == 0);
    ein_schedule_destroy(r);
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
  }
  CHECK(2 * legal > cases);
}

// Tiles of A that a place reads twice are fetched once; collapsed loops go over places together.
static void test_kept(void) {
  ein_graph *g = parse("input A[m=4,k=4], B[k,n=4]\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_schedule *s = schedule_of(g, "machine g=4; place A xy->x; place B xy->x; place C xy->x\n"
                                "divide(i,io,ii,2); divide(j,jo,ji,2); reorder(io,jo,ii,ji)\n"
                                "collapse(io,jo,f); distribute(f)\n", 4);
  ein_schedule_info info = tally_of(s);
  ein_loop loop;
  CHECK(ein_schedule_loop(s, 0, 0, &loop) && strcmp(loop.name, "f") == 0 && loop.extent == 4 &&
        loop.kind == EIN_LOOP_PLACE && loop.dimension == 0);
  CHECK(ein_schedule_loop(s, 0, 3, &loop) && loop.kind == EIN_LOOP_WHOLE);
  CHECK(!ein_schedule_loop(s, 0, 4, &loop) && !ein_schedule_loop(s, 1, 0, &loop));
  // A place needs two rows of A, one of which it may have, and half of each row of B.
  for (int q = 0; q < 4; q++) {
    CHECK(moved.elements[0][q][0] == 4);
    CHECK(moved.elements[0][q][1] == 6 && moved.messages[0][q][1] == 3);
  }
  ein_schedule_destroy(s);
  // Rows of A are fetched once for all steps over j, where that is said.
  static const char twice[] = "machine g=2; place A xy->x; place B xy->x\n"
                              "divide(j,jo,ji,2); split(i,io,ii,2)\nreorder(jo,io,ii)\n"
                              "distribute(jo)\nsplit(ji,u,v,1)\nreorder(u,ii,v)\n";
  s = schedule_of(g, twice, 2);
  info = tally_of(s);
  CHECK(info.steps == 4);
  CHECK(moved.elements[1][0][0] == 0 && moved.elements[2][0][0] == 8);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// ---- mistakes -----------------------------------------------------------------------------------

static void test_errors(void) {
#define DIVIDED "machine x=2,y=2; divide(i,io,ii,2); divide(k,ko,ki,2); "
  static const struct { const char *text; ein_status st; int column; const char *says; } cases[] = {
      {"divde(i,io,ii,2)", EIN_ERR_SYNTAX, 1, "command"},
      {"divide i", EIN_ERR_SYNTAX, 8, "'('"},
      {"divide(i,io,ii)", EIN_ERR_SYNTAX, 15, "','"},
      {"divide(i,io,ii,2) on C", EIN_ERR_SYNTAX, 19, "end of the line"},
      {"divide(q,io,ii,2)", EIN_ERR_NAME, 8, "no loop"},
      {"divide(i,io,io,2)", EIN_ERR_NAME, 13, "taken"},
      {"divide(i,j,ii,2)", EIN_ERR_NAME, 10, "taken"},
      {"divide(i,io,ii,0)", EIN_ERR_ARGUMENT, 16, "whole number"},
      {"divide(i,io,ii,gx)", EIN_ERR_NAME, 16, "dimension"},
      {"divide(i,io,ii,2^30)", EIN_ERR_TOO_LARGE, 16, "pieces"},
      {"divide(i,io,ii,2); split(i,a,b,2)", EIN_ERR_NAME, 26, "has become 'io' and 'ii'"},
      {"collapse(i,k,f)", EIN_ERR_SHAPE, 10, "directly inside"},
      {"collapse(i,j,f); divide(f,a,b,2)", EIN_ERR_UNSUPPORTED, 25, "collapsed"},
      {"reorder(i,i)", EIN_ERR_NAME, 11, "twice"},
      {"distribute(i)", EIN_ERR_NAME, 1, "no machine"},
      {"machine x=2; distribute(i)", EIN_ERR_SHAPE, 25, "8 values"},
      {"machine x=9; distribute(i,j)", EIN_ERR_SHAPE, 27, "no dimension left"},
      {"machine x=9; distribute([i],[io],[ii],[y])", EIN_ERR_NAME, 40, "no dimension 'y'"},
      {"machine x=9; distribute([i,j],[io],[ii],[x])", EIN_ERR_SHAPE, 32, "but 2 loops"},
      {"machine x=9; distribute([i,i],[a,b],[c,d],[x,x])", EIN_ERR_SHAPE, 28, "cannot be cut"},
      {DIVIDED "distribute(io); distribute(io)", EIN_ERR_SHAPE, 0, "runs over places"},
      {DIVIDED "distribute(io); rotate(io,ko,t)", EIN_ERR_SHAPE, 0, "runs over places"},
      {DIVIDED "rotate(ki,io,t)", EIN_ERR_SHAPE, 0, "no loop over time"},
      {DIVIDED "rotate(io,ko,t)", EIN_ERR_SHAPE, 0, "outside of"},
      {DIVIDED "rotate(ko,io,t); reorder(t,io)", EIN_ERR_SHAPE, 0, "rotated by"},
      {DIVIDED "communicate(D,io)", EIN_ERR_NAME, 0, "does not use"},
      {DIVIDED "communicate(A,io); communicate(A,ko)", EIN_ERR_NAME, 0, "already"},
      {DIVIDED "communicate(A,ko); divide(ko,a,b,2)", EIN_ERR_SHAPE, 0, "no loop any more"},
      {DIVIDED "reorder(ii,j,io); communicate(A,ii)", EIN_ERR_SHAPE, 0, "below its use"},
      {DIVIDED "reorder(ko,io); communicate(A,ko); distribute(io)", EIN_ERR_SHAPE, 0,
       "'io' runs over places inside of"},
      {"parallelize(k)", EIN_ERR_SHAPE, 13, "a race"},
      {DIVIDED "parallelize(ii); reorder(ii,ko); communicate(B,ko)", EIN_ERR_SHAPE, 0, "parallel"},
      {DIVIDED "substitute([ii], portable)", EIN_ERR_SHAPE, 0, "not the"},
      {DIVIDED "substitute([ii,j,ki], magic)", EIN_ERR_NAME, 0, "no kernels"},
      {"on A", EIN_ERR_NAME, 4, "is an input"},
      {"on Q", EIN_ERR_NAME, 4, "called 'Q'"},
      {"place A xy->xy", EIN_ERR_NAME, 1, "no machine"},
      {"machine x=2; place A xy->y; place A xy->x", EIN_ERR_NAME, 35, "already"},
      {"machine x=2; machine y=2", EIN_ERR_NAME, 14, "already"},
      {"machine x=2; place A xyz->x", EIN_ERR_SHAPE, 22, "has 2"},
      {"split(i,io,ii,1); communicate(A,io); split(j,u,v,1); communicate(B,u); split(k,a,b,1); "
       "communicate(C,b); C", EIN_ERR_SYNTAX, 106, "command"},
      {"precompute(A)", EIN_ERR_SYNTAX, 1, "command"}};
  ein_graph *g = parse("input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ein_schedule_desc d;
    ein_schedule *s;
    memset(&d, 0, sizeof d);
    d.text = cases[k].text;
    d.places = 4;
    const ein_status st = ein_schedule_create(ctx, g, &d, &s);
    const ein_error *e = ein_ctx_error(ctx, 0);
    const int right = st == cases[k].st && s == NULL && e != NULL && e->line == 1 &&
                      (cases[k].column == 0 || e->column == cases[k].column) &&
                      strstr(e->message, cases[k].says) != NULL;
    if (!right) printf("%s\n%s\n", cases[k].text, ein_ctx_message(ctx));
    CHECK(right);
    ein_schedule_destroy(s);
  }
  ein_graph_destroy(g);
  // Steps without end, points without end.
  g = parse("input X[n=1000000000]\nY[i] = X[i] + 1\n");
  ein_schedule_desc d;
  ein_schedule *s;
  memset(&d, 0, sizeof d);
  d.text = "split(i,io,ii,1)";
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_ERR_TOO_LARGE);
  CHECK(strstr(ein_ctx_message(ctx), "steps") != NULL);
  d.text = "machine x=1048576; place X x->x; divide(i,io,ii,x); distribute(io); "
           "split(ii,a,b,1); communicate(X, a)";
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_OK);
  ein_schedule_info info;
  CHECK(ein_schedule_cost(ctx, s, 0, NULL, NULL, &info) == EIN_ERR_TOO_LARGE);
  ein_schedule_destroy(s);
  d.places = -1;
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_ERR_ARGUMENT && s == NULL);
  CHECK(ein_schedule_create(ctx, g, NULL, &s) == EIN_ERR_ARGUMENT);
  ein_graph_destroy(g);
}

// Behind the statements of a program: words of commands may be names of tensors all the same.
static void test_words(void) {
  ein_graph *g = parse("input place[m=4], on[m]\nmachine[i] = place[i]*on[i]\nsplit = 3\n"
                       "distribute[i] = machine[i]*split\nmachine x=p  # from here on\n"
                       "place machine x->x; on distribute\ndivide(i, io, ii, x); distribute(io)\n");
  ein_schedule *s = schedule_of(g, NULL, 4);
  char text[256];
  CHECK(ein_graph_commands(g));
  ein_schedule_print(s, text, sizeof text);
  CHECK(strcmp(text, "machine x=4\nplace machine x->x\non distribute\ndivide(i, io, ii, 4)\n"
                     "distribute(io)\n") == 0);
  ein_schedule_destroy(s);
  ein_schedule_desc d;
  memset(&d, 0, sizeof d);
  d.text = "machine x=2; divide(i,io,ii,2)";
  d.places = 2;
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_ERR_NAME);
  CHECK(strstr(ein_ctx_message(ctx), "of which statement") != NULL);
  ein_graph_destroy(g);
  ein_program_desc bad;
  memset(&bad, 0, sizeof bad);
  bad.text = "input A[m=4]\nB[i] = A[i]\nmachine x=\nplace A x-x\nC[i] = A[i]\nsplit(i,)\n";
  CHECK(ein_graph_parse(ctx, &bad, &g) == EIN_ERR_SYNTAX && ein_ctx_errors(ctx) == 4);
  for (int k = 0; k < 4; k++) CHECK(ein_ctx_error(ctx, k)->line == 3 + k);
  CHECK(strstr(ein_ctx_error(ctx, 2)->hint, "before all commands") != NULL);
  g = parse("input A[m=4]\nB[i] = A[i]\n");
  CHECK(!ein_graph_commands(g));
  s = schedule_of(g, NULL, 4);
  CHECK(ein_schedule_print(s, text, sizeof text) == 0 && ein_schedule_grid(s) == NULL);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

static void test_pins(void) {
  static const struct { const char *text, *pin; } cases[] = {
      {"xy->xy", "A[0=2,1=3]"}, {"xy->0x", "A[0=3]"}, {"xy->x*", NULL}, {"xy->yx", NULL},
      {"xy->x0", NULL}, {"xy->1x", NULL}, {"xy->x:1y", NULL}, {"xy->00", "A[]"}};
  ein_graph *g = parse("input A[m=6,k=6]\nB[i,j] = A[i,j]\n");
  char text[128], pin[64];
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    snprintf(text, sizeof text, "machine x=2, y=3\nplace A %s\n", cases[k].text);
    ein_schedule *s = schedule_of(g, text, 6);
    const ein_status st = ein_schedule_pin(ctx, s, 0, pin, sizeof pin);
    if (cases[k].pin == NULL) CHECK(st == EIN_ERR_UNSUPPORTED);
    else CHECK(st == EIN_OK && strcmp(pin, cases[k].pin) == 0);
    CHECK(ein_schedule_pin(ctx, s, 1, pin, sizeof pin) == EIN_OK && pin[0] == 0);
    CHECK(ein_schedule_pin(ctx, s, 2, pin, sizeof pin) == EIN_ERR_ARGUMENT);
    if (cases[k].pin != NULL) CHECK(ein_schedule_pin(ctx, s, 0, pin, 3) == EIN_ERR_ARGUMENT);
    ein_schedule_destroy(s);
  }
  ein_graph_destroy(g);
}

static void test_runs(void) {
  static const char *const names[] = {"cannon", "pumma", "summa", "johnson", "solomonik", "cosma"};
  static const int places[] = {4, 1, 6, 9, 16, 27, 32};
  for (int k = 0; k < 6; k++) {
    for (int i = 0; i < 7; i++) {
      char program[128];
      snprintf(program, sizeof program, "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n",
               (int)draw(1, 20), (int)draw(1, 20), (int)draw(1, 20));
      ein_graph *g = parse(program);
      ein_schedule *s = schedule_of(g, read_file(names[k]), places[i]);
      CHECK(run_of(g, s, places[i]) == EIN_OK);
      ein_schedule_destroy(s);
      ein_graph_destroy(g);
    }
  }
}

// Several statements, folds and layouts; what is refused.
static void test_programs(void) {
  static const struct { const char *program, *schedule; int places; ein_status st; } cases[] = {
      {"input A[m=7,k=6], B[k,n=5], v[n]\nC[i,j] = sum[k](A[i,k] * B[k,j] + i - k)\n"
       "y[i] = max[j](C[i,j] - v[j])\nz = sum[i](y[i])\noutput y, z\n",
       "machine a=2, b=3\nplace A xy->x:2y:1\nplace B xy->*x\non C\n"
       "distribute([i,j],[io,jo],[ii,ji],[a,b])\nsplit(k,ko,ki,4); reorder(ko,ii,ji,ki)\n"
       "rotate(ko,[io,jo],t)\non y\ndivide(j,jo,ji,3); reorder(jo,i)\n"
       "divide(i,io,ii,2); reorder(io,jo)\ndistribute(io,jo)\non z\ndivide(i,io,ii,2)\n"
       "distribute(io)\n", 6, EIN_OK},
      {"input X[m=6,n=5,o=4], u[n], w[o]\nY[k,i] = logsumexp[j](X[i,j,k] * u[j])\n"
       "Z[i] = prod[k](Y[k,i] + w[k]*0.01)\noutput Y, Z\n",
       "machine p0=2, q=2\nplace X xyz->zx; place Y xy->x:1y\non Y\n"
       "divide(k,ko,ki,2); divide(i,io,ii,2); reorder(ko,io,ki,ii); distribute(ko,io)\n"
       "divide(j,jo,ji,3); reorder(jo,ki,ii); communicate(X,io); communicate(u,jo)\non Z\n"
       "divide(i,io,ii,2); divide(k,ko,ki,2); reorder(io,ko,ii,ki)\n"
       "distribute(io,ko)\n", 3, EIN_OK},
      {"input X[h=9], K[r=3]\nY[i=7] = X[i+r] * K[r]\n",
       "machine x=3\nplace X x->x\nplace K x->0\ndivide(i,io,ii,x)\ndistribute(io)\n", 3, EIN_OK},
      {"input X[m=6,n=6]\nY[i,j] = X[i,j] + X[j,i] * X[i,j]\n",
       "machine x=2,y=2\nplace X xy->xy\ndistribute([i,j],[a,b],[c,d],[x,y])\n"
       "split(c,e,f,1)\n", 4, EIN_OK},
      {"input X[m=6,n=6]\nY[i] = mean[j](X[i,j])\n", "machine x=2\n"
       "divide(i,a,b,2); distribute(a)\n", 2, EIN_ERR_UNSUPPORTED},
      {"input X[m=6]\nY[2*i] = X[i]; Y[2*i+1] = X[i]\n", "machine x=2; place X x->x\n", 2,
       EIN_ERR_UNSUPPORTED},
      {"input X[m=6]\nY[i] = X[i]\n", "machine x=2; place Y x->*\n", 2, EIN_ERR_UNSUPPORTED},
      {"input X[m=6]\nY[i] = X[i]\n", "machine x=2; split(i,a,b,3); divide(b,c,d,2)\n"
       "reorder(c,a); distribute(c)\n", 2, EIN_ERR_UNSUPPORTED}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ein_graph *g = parse(cases[k].program);
    ein_schedule *s = schedule_of(g, cases[k].schedule, cases[k].places);
    const ein_status st = run_of(g, s, cases[k].places);
    if (st != cases[k].st) printf("%s%s%s\n", cases[k].program, cases[k].schedule,
                                  ein_ctx_message(ctx));
    CHECK(st == cases[k].st);
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
  }
}

// Every allocation fails once.
static void test_memory(void) {
  ein_graph *g = parse("input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n");
  for (long n = 0, done = 0; !done; n += 1 + n / 16) {
    counter count = {0, -1, 0};
    ein_ctx_desc how;
    ein_ctx *own;
    ein_schedule_desc d;
    ein_schedule *s = NULL;
    ein_schedule_info info;
    ein_dist_desc places;
    ein_dist *dist = NULL;
    ein_fabric f;
    const void *in[2] = {data[0], data[1]};
    void *out[1] = {got[0]};
    ein_run run;
    memset(&run, 0, sizeof run);
    memset(&places, 0, sizeof places);
    memset(&f, 0, sizeof f);
    run.in = in;
    run.out = out;
    memset(&how, 0, sizeof how);
    memset(&d, 0, sizeof d);
    d.text = read_file("cannon");
    d.places = 4;
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    CHECK(ein_ctx_create(&how, &own) == EIN_OK);
    count.fail_at = count.calls + n;
    ein_status st = ein_schedule_create(own, g, &d, &s);
    if (st == EIN_OK) st = ein_schedule_cost(own, s, 0, NULL, NULL, &info);
    if (st == EIN_OK) st = ein_fabric_copying(own, 4, &f);
    places.fabric = &f;
    places.schedule = s;
    if (st == EIN_OK) st = ein_dist_create(own, g, &places, &dist);
    if (st == EIN_OK) st = ein_dist_execute(dist, &run, NULL);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    done = st == EIN_OK;
    CHECK(!done || n > 3);
    ein_dist_destroy(dist);
    ein_fabric_destroy(&f);
    ein_schedule_destroy(s);
    ein_ctx_destroy(own);
    CHECK(count.live == 0);
  }
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int cases = argc > 1 ? atoi(argv[1]) : FEW(2000);
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  for (int g = 1; g <= 4; g++) {
    const int most = g > 1;
    test_flat("cannon", 24, g, 1, 1, 2 * most);
    test_flat("pumma", 24, g, 1, 0, g == 1 ? 0 : g);
    test_flat("summa", 8 * g, g, 0, 0, 2 * (g - 1));
  }
  test_johnson(12, 2);
  test_johnson(12, 3);
  test_solomonik();
  test_cosma();
  test_rotation();
  test_higher();
  test_kept();
  test_words();
  test_pins();
  test_errors();
  test_memory();
  test_runs();
  test_programs();
  test_nests(cases);
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
