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
#include "check.h"
#include "util.h"
#include "schedules.h"

enum { PLACES = 64, STEPS = 64 };

// Elements (of 8 bytes) and messages that a place gets of operands 0 and 1, of the result (2) that
// come home, and of operand 2 (3).
typedef struct tally {
  int64_t elements[STEPS][PLACES][4], messages[STEPS][PLACES][4];
  int wrong;
} tally;

static tally moved;

static ein_status take(void *user, const ein_schedule_move *m) {
  tally *t = (tally *)user;
  if (m->operand == -2) return EIN_OK;  // a task
  const int k = m->operand < 0 ? 2 : m->operand + (m->operand == 2);
  t->wrong += m->from == m->to || m->bytes % 8 != 0 || (k != 2 ? m->to : m->from) != m->place;
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
      for (int k = 0; k < 4; k++)
        elements += moved.elements[step][q][k], messages += moved.messages[step][q][k];
  CHECK(info.bytes == 8 * elements && info.messages == messages);
  return info;
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
    CHECK(ein_grid_dimension(ein_schedule_grid(s, -1), k, &dim) && dim.extent == (k == 0 ? 2 : 4));
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

// What place q gets of operands 0, 1, of the result, of operand 2 in a step: elements, messages.
static void receives(int step, int q, const int64_t *elements, const int64_t *messages) {
  for (int k = 0; k < 4; k++)
    CHECK(moved.elements[step][q][k] == elements[k] && moved.messages[step][q][k] == messages[k]);
}

// DISTAL, section 7.2: a tensor times a vector, an inner product, a tensor times a matrix, on g
// places; the matricized tensor times a Khatri-Rao product on a cube of g*g*g.
static void test_higher(int g) {
  static const char *const names[] = {"ttv", "inner", "ttm", "mttkrp"};
  static const char *const programs[] = {
      "input B[m=%d,n=%d,o=%d], c[o]\nA[i,j] = B[i,j,k] * c[k]\n",
      "input B[m=%d,n=%d,o=%d], C[m,n,o]\na = sum[i,j,k](B[i,j,k] * C[i,j,k])\n",
      "input B[m=%d,n=%d,o=%d], C[o=%d,r=%d]\nA[i,j,l] = B[i,j,k] * C[k,l]\n",
      "input B[m=%d,n=%d,o=%d], C[n,r=%d], D[o,r]\nA[i,l] = B[i,j,k] * C[j,l] * D[k,l]\n"};
  for (int which = 0; which < 4; which++) {
    const int places = which < 3 ? g : g * g * g, rank = 5;
    const int m = 2 * g, n = 3 * g, o = 4 * g, most = g - 1;
    char text[256];
    const int mid = which == 3 ? rank : o;
    snprintf(text, sizeof text, programs[which], m, n, o, mid, rank);
    ein_graph *graph = parse(text);
    ein_schedule *s = schedule_of(graph, read_file(names[which]), places);
    const ein_schedule_info info = tally_of(s);
    CHECK(info.steps == (which == 2 ? g : 1) && info.tasks == places * info.steps);
    for (int step = 0; step < info.steps; step++) {
      for (int q = 0; q < places; q++) {
        const int x = q / g / g, y = q / g % g, z = q % g, first = q == 0 ? most : 0;
        int64_t e[4] = {0, 0, 0, 0}, t[4] = {0, 0, 0, 0};
        if (which == 0) t[1] = most, e[1] = most * (o / g);
        if (which == 1) t[2] = e[2] = first;
        if (which == 2) t[1] = (step + q) % g != q, e[1] = t[1] * (o / g) * rank;
        if (which == 3) {
          t[1] = x > 0 || z > 0, e[1] = t[1] * (n / g) * rank;
          t[3] = x > 0 || y > 0, e[3] = t[3] * (o / g) * rank;
          t[2] = y > 0 || z > 0 ? 0 : g * g - 1, e[2] = t[2] * (m / g) * rank;
        }
        receives(step, q, e, t);
      }
    }
    ein_schedule_destroy(s);
    ein_graph_destroy(graph);
  }
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
    const int places = (int)draw(1, 10), gx = (int)draw(1, 3), gy = (int)draw(1, 3);
    draw_nest(text, sizeof text, gx, gy);
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
  // Loops may be cut before there is a machine.
  const int64_t bytes = info.bytes;
  s = schedule_of(g, "divide(i,io,ii,2); divide(j,jo,ji,2); reorder(io,jo,ii,ji)\n"
                  "machine g=4; place A xy->x; place B xy->x; place C xy->x\n"
                  "collapse(io,jo,f); distribute(f)\n", 4);
  info = tally_of(s);
  CHECK(info.bytes == bytes && bytes > 0);
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
      {"machine x=2; split(i,a,b,2); machine y=2; distribute(a)", EIN_ERR_SHAPE, 43,
       "the machine before"},
      {"machine x=2; split(i,a,b,2); distribute([b],[c],[d],[x]); communicate(C,c)",
       EIN_ERR_SHAPE, 73, "has gaps"},
      {"machine x=2; place A xyz->x", EIN_ERR_SHAPE, 22, "has 2"},
      {"split(i,io,ii,1); communicate(A,io); split(j,u,v,1); communicate(B,u); split(k,a,b,1); "
       "communicate(C,b); C", EIN_ERR_SYNTAX, 106, "command"},
      {"precompute(A)", EIN_ERR_SYNTAX, 13, "','"},
      {"precompute(A,i,a,W)", EIN_ERR_NAME, 12, "does not read 'A' so"},
      {"precompute(A[i,k],i)", EIN_ERR_SYNTAX, 20, "','"},
      {"precompute(A[k,i],[i,k],[a,b],W)", EIN_ERR_NAME, 12, "does not read 'A' so"},
      {"precompute(D[k,i],[i,k],[a,b],W)", EIN_ERR_NAME, 12, "does not read 'D'"},
      {"precompute(q*A[i,k],[i,k],[a,b],W)", EIN_ERR_NAME, 12, "does not read 'q'"},
      {"precompute(A[i*i,k],[i,k],[a,b],W)", EIN_ERR_NAME, 14, "coordinate"},
      {"precompute(A[i,k]+1,[i,k],[a,b],W)", EIN_ERR_NAME, 12, "does not occur"},
      {"precompute(sum[k](A[i,k]),[i],[a],W)", EIN_ERR_UNSUPPORTED, 12, "without folds"},
      {"precompute(A[i,k],[i,j],[a,b],W)", EIN_ERR_NAME, 22, "does not depend on 'j'"},
      {"precompute(A[i,k],[i,q],[a,b],W)", EIN_ERR_NAME, 22, "no loop 'q'"},
      {"precompute(A[i,k],[i,i],[a,b],W)", EIN_ERR_NAME, 22, "named twice"},
      {"precompute(A[i,k],i,a,W)", EIN_ERR_SHAPE, 19, "depends on 'k', too"},
      {"precompute(A[i,k],[i,k],a,W)", EIN_ERR_SHAPE, 25, "1 name for 2 indices"},
      {"precompute(A[i,k],[i,k],[a,a],W)", EIN_ERR_NAME, 28, "named twice"},
      {"precompute(A[i,k],[i,k],[a,b],B)", EIN_ERR_NAME, 31, "'B' is taken"},
      {"precompute(A[i,k],[i,k],[a,b],sum)", EIN_ERR_NAME, 31, "'sum' is taken"},
      {"split(i,u,v,2); precompute(A[i,k],[i,k],[a,b],W)", EIN_ERR_SHAPE, 17, "cut or placed"},
      {"precompute(A[i,k],[i,k],[a,b],W); on W; divide(i,u,v,2)", EIN_ERR_NAME, 48, "no loop 'i'"},
      {"rfactor(k,u,P)", EIN_ERR_SYNTAX, 14, "','"},
      {"rfactor(q,u,P,2)", EIN_ERR_NAME, 9, "no loop 'q'"},
      {"rfactor(i,u,P,2)", EIN_ERR_SHAPE, 9, "not reduced"},
      {"rfactor(k,i,P,2)", EIN_ERR_NAME, 11, "index 'i'"},
      {"rfactor(k,u,A,2)", EIN_ERR_NAME, 13, "'A' is taken"},
      {"rfactor(k,u,P,3)", EIN_ERR_SHAPE, 15, "not 3 equal pieces"},
      {"rfactor(k,u,P,8)", EIN_ERR_SHAPE, 15, "not 8 equal pieces"},
      {"split(i,u,v,2); rfactor(k,w,P,2)", EIN_ERR_SHAPE, 17, "cut or placed"}};
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

// What is computed first is a statement of its own, with names of its own; others keep theirs.
static void test_precompute(void) {
  static const struct { const char *program, *commands, *want; } cases[] = {
      {"input A[m=4,k=5], B[k,n=6], c[k]\nC[i,j] = A[i,k] * B[k,j] * c[k]\n",
       "precompute(A[i,k] * c[k], [i, k], [x, y], W)\non W; divide(x, u, v, 2)\non C; "
       "divide(i, u, v, 2)\n", "W[x,y] = A[x,y] * c[y]\nC[i,j] = sum[k](W[i,k] * B[k,j])"},
      {"input A[m=4,k=5], B[k,n=6]\nC[i,j] = sum[k](exp(A[i,k] - k) * B[k,j] + (A[i,k] - k) * 2)\n",
       "precompute(A[i,k] - k, [k, i], [k, i], W)\nprecompute(2 * W[k,i], [i, k], [i, k], V)\n",
       "W[k,i] = A[i,k] - k\nV[i,k] = 2 * W[k,i]\n"
       "C[i,j] = sum[k](exp(W[k,i]) * B[k,j] + V[i,k])"},
      {"input X[h=9], K[r=3], z[]\nparam a = 2\nY[i=7] = sum[r](a * X[i+r] * K[r]) + z^2\n",
       "on Y.1; precompute(X[r+i] * a, [i, r], i, W)\n", NULL},
      {"input X[h=20]\nY[i=7] = sum[r=3](X[2*i+r+1]^2 * size(i))\n",
       "precompute(X[r + 2*i + 1]^2, [i, r], [s, t], W)\n",
       "W[s=7,t=3] = X[2*s + t + 1]^2\nY[i=7] = sum[r=3](W[i,r] * 7)"},
      {"input X[m=6]\nY[2*i] = exp(X[i]); Y[2*i+1] = exp(X[i]) + 1\n",
       "on Y 2; precompute(exp(X[i]), i, w, W)\non Y 2; divide(i, a, b, 2)\n",
       "Y[2*i] = exp(X[i])\nW[w] = exp(X[w])\nY[2*i+1] = W[i] + 1"},
      {"input A[m=4,k=6], B[k,n=6]\nC[i,j] = sum[k](A[i,k] * B[k,j])\n",
       "rfactor(k, u, P, 3); on P; divide(u, uo, ui, 3); on C; divide(i, io, ii, 2)\n",
       "P[u=3,i,j] = sum[k=2](A[i,2*u+k] * B[2*u+k,j])\nC[i,j] = sum[u](P[u,i,j])"},
      {"input A[m=4,n=6]\nM[i] = max[j](A[i,j])\nz = sum[i](M[i])\n",
       "on M; rfactor(j, s, Q, 2); on Q; precompute(A[i,3*s+j], [s, i, j], [s, i, j], W)\n",
       "W[s=2,i,j=3] = A[i,3*s+j]\nQ[s,i] = max[j](W[s,i,j])\nM[i] = max[s](Q[s,i])\n"
       "z = sum[i](M[i])"},
      {"input A[m=4,n=6]\nM[i] = mean[j](A[i,j])\n", "on M; rfactor(j, s, Q, 2)\n", NULL}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ein_graph *g = parse(cases[k].program), *want;
    char is[1024], should[1024], text[512], again[512];
    ein_schedule_desc d;
    ein_schedule *s = NULL;
    memset(&d, 0, sizeof d);
    d.text = cases[k].commands;
    const ein_status st = ein_schedule_create(ctx, g, &d, &s);
    if (cases[k].want == NULL)
      CHECK((st == EIN_ERR_SHAPE || st == EIN_ERR_UNSUPPORTED) && s == NULL);
    else {
      if (st != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
      CHECK(st == EIN_OK);
      snprintf(text, sizeof text, "%.*s%s\n", (int)(strchr(cases[k].program, '\n') + 1 -
               cases[k].program), cases[k].program, cases[k].want);
      want = parse(text);
      ein_graph_print(ein_schedule_graph(s), is, sizeof is);
      ein_graph_print(want, should, sizeof should);
      if (strcmp(is, should) != 0) printf("is\n%sshould be\n%s", is, should);
      CHECK(strcmp(is, should) == 0 && ein_schedule_graph(s) != g);
      ein_graph_destroy(want);
      CHECK(ein_schedule_print(s, text, sizeof text) < sizeof text);
      ein_schedule *r = schedule_of(g, text, 1);
      CHECK(ein_schedule_print(r, again, sizeof again) < sizeof again && !strcmp(text, again));
      ein_schedule_destroy(r);
    }
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
  }
  ein_graph *g = parse("input A[m=4]\nB[i] = A[i]\n");  // that of the program, if nothing is
  ein_schedule *s = schedule_of(g, "split(i,a,b,2)", 1);
  CHECK(ein_schedule_graph(s) == g && ein_schedule_graph(NULL) == NULL);
  ein_schedule_destroy(s);
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
  CHECK(ein_schedule_print(s, text, sizeof text) == 0 && ein_schedule_grid(s, -1) == NULL);
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

// Every allocation fails once.
static void test_memory(const char *text) {
  ein_graph *g = parse("input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n");
  for (long n = 0, done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_ctx_desc how;
    ein_ctx *own;
    ein_schedule_desc d;
    ein_schedule *s = NULL;
    ein_schedule_info info;
    memset(&how, 0, sizeof how);
    memset(&d, 0, sizeof d);
    d.text = text;
    d.places = 4;
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    CHECK(ein_ctx_create(&how, &own) == EIN_OK);
    count.fail_at = count.calls + n;
    ein_status st = ein_schedule_create(own, g, &d, &s);
    double stmt[3], place[4];
    if (st == EIN_OK) st = ein_schedule_cost(own, s, 0, NULL, NULL, &info);
    if (st == EIN_OK) st = ein_schedule_peaks(own, s, EIN_INPUTS_HELD, stmt, place);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    done = st == EIN_OK;
    CHECK(!done || n > 3);
    ein_schedule_destroy(s);
    ein_ctx_destroy(own);
    CHECK(count.live == 0);
  }
  ein_graph_destroy(g);
}

// The same of a simulation: of places in nodes, whose links are shared, and of those without.
static void test_simulated(void) {
  ein_graph *g = parse("input A[m=8,k=8], B[k,n=8], v[n]\nC[i,j] = A[i,k] * B[k,j]\n"
                       "w[i] = argmax[j](C[i,j] - v[j])\nz = var[i,j](C[i,j] + w[i])\n");
  ein_decompose_desc how;
  ein_decomposition *d;
  ein_machine m;
  memset(&how, 0, sizeof how);
  memset(&m, 0, sizeof m);
  how.p = 8;
  how.cost = EIN_COST_BYTES;
  CHECK(ein_decompose(ctx, g, &how, &d) == EIN_OK);
  for (long n = 0, node = 0; node < 2; n++) {
    counter count = {0, -1, 0};
    ein_ctx_desc desc;
    ein_ctx *own;
    ein_sim_desc sim;
    ein_sim_info info;
    double peak[8];
    memset(&desc, 0, sizeof desc);
    memset(&sim, 0, sizeof sim);
    m.node = node == 0 ? 2 : 0;
    sim.machine = &m;
    sim.peak = peak;
    desc.allocator.alloc_fn = count_alloc;
    desc.allocator.free_fn = count_free;
    desc.allocator.user = &count;
    CHECK(ein_ctx_create(&desc, &own) == EIN_OK);
    count.fail_at = count.calls + n;
    const ein_status st = ein_simulate(own, g, d, &sim, &info);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    CHECK(st != EIN_OK || (n > 2 && info.messages > 0));
    ein_ctx_destroy(own);
    CHECK(count.live == 0);
    if (st == EIN_OK) n = -1, node++;
  }
  ein_decomposition_destroy(d);
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
  for (int g = 1; g <= 4; g++) test_higher(g);
  test_kept();
  test_words();
  test_precompute();
  test_pins();
  test_errors();
  test_memory(read_file("cannon"));
  test_memory("machine x=2, y=2; place A,B xy->xy\nprecompute(B[k,j], [k, j], [k, j], W)\n"
              "precompute(A[i,k]*W[k,j], [i, j, k], [i, j, k], V)\non V\n"
              "distribute([i, j], [io, jo], [ii, ji], [x, y])\n"
              "split(k, ko, ki, 2); reorder(ko, ii)\n"
              "on C; distribute([i, j], [io, jo], [ii, ji], [x, y])\n");
  test_memory("machine x=2; rfactor(k, u, P, x); on P; distribute([u], [uo], [ui], [x])\n"
              "on C; distribute([i], [io], [ii], [x])\n");
  test_simulated();
  test_nests(cases);
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
