// SPDX-License-Identifier: MIT
//
// Distributed tensors: the worked table of Deinsum; what random distributions hold and random
// redistributions, element by element, bytes and messages counted; adopted buffers; scatter,
// gather, load and store; every allocation fails once, on one process. On the copying fabric, or
// with -DTEST_MPI over ranks: mpirun -n N test_dtensor [redistributions [seed]].
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#ifdef TEST_MPI
#define EINI_ARENA_FIRST 1  // each allocation is one
#define EINSUM_MPI
#else
#define EINSUM_DIST
#endif
#include "../einsum.h"
#include "check.h"
#include "util.h"

enum { MOST = 4, CELLS = 1 << 12, PLACES = 24 };

static int rank, ranks = 1;

// ---- the fabric, which counts messages of every pair of places ----------------------------------

static int pair[PLACES][PLACES];
static int64_t sent;
static ein_status (*send_inner)(void *, int, int, int64_t, const void *, size_t, ein_ticket *);

static ein_status send_counted(void *user, int from, int to, int64_t tag, const void *data,
                               size_t bytes, ein_ticket *ticket) {
  pair[from][to]++;
  sent += (int64_t)bytes;
  return send_inner(user, from, to, tag, data, bytes, ticket);
}

static ein_status (*spread_inner)(void *, int, int, int, int, void *, size_t, ein_ticket *);

// Broadcasts are made where each place is a rank: their bytes count where they come to.
static ein_status spread_counted(void *user, int number, int turns, int turn, int root, void *data,
                                 size_t bytes, ein_ticket *ticket) {
  sent += root != rank ? (int64_t)bytes : 0;
  return spread_inner(user, number, turns, turn, root, data, bytes, ticket);
}

// So are folds, which all but the first place of a group send to.
enum { GROUPS = 4096 };
static int first_of[GROUPS];
static ein_status (*groups_inner)(void *, int, const int *, const int *, const int *, int *);
static ein_status (*reduce_inner)(void *, int, int, int, int, ein_dtype, void *, size_t,
                                  ein_ticket *);

static ein_status groups_counted(void *user, int n, const int *first, const int *place,
                                 const int *turns, int *number) {
  const ein_status st = groups_inner(user, n, first, place, turns, number);
  for (int g = 0; g < n && st == EIN_OK; g++)
    if (number[g] >= 0 && number[g] < GROUPS) first_of[number[g]] = place[first[g]];
  return st;
}

static ein_status reduce_counted(void *user, int number, int turns, int turn, int fold,
                                 ein_dtype dtype, void *data, size_t bytes, ein_ticket *ticket) {
  CHECK(number < GROUPS);
  sent += first_of[number] != rank ? (int64_t)bytes : 0;
  return reduce_inner(user, number, turns, turn, fold, dtype, data, bytes, ticket);
}

static ein_status fabric_of(ein_ctx *ctx, int places, ein_fabric *f) {
#ifdef TEST_MPI
  const ein_status st = ein_fabric_mpi(ctx, MPI_COMM_WORLD, places, f);
#else
  const ein_status st = ein_fabric_copying(ctx, places, f);
#endif
  send_inner = f->send_fn;
  spread_inner = f->spread_fn;
  if (st == EIN_OK) f->send_fn = send_counted;
  if (st == EIN_OK && f->spread_fn != NULL) f->spread_fn = spread_counted;
  groups_inner = f->groups_fn;
  reduce_inner = f->reduce_fn;
  if (st == EIN_OK && f->groups_fn != NULL) f->groups_fn = groups_counted;
  if (st == EIN_OK && f->reduce_fn != NULL) f->reduce_fn = reduce_counted;
  return st;
}

static int64_t total(int64_t x) {
#ifdef TEST_MPI
  eini_mpi m;
  m.comm = MPI_COMM_WORLD;
  CHECK(eini_mpi_all(&m, &x, 1, MPI_INT64_T, MPI_SUM) == EIN_OK);
#endif
  return x;
}

static ein_distribution *distribution_of(ein_ctx *ctx, const char *machine, const char *text,
                                         int axes, int places, ein_grid **g) {
  ein_distribution *d = NULL;
  CHECK(ein_grid_create(ctx, machine, places, g) == EIN_OK);
  CHECK(ein_distribution_create(ctx, text, axes, *g, &d) == EIN_OK);
  if (d == NULL) printf("%s | %s: %s\n", machine, text, ein_ctx_message(ctx));
  return d;
}

// ---- elements -----------------------------------------------------------------------------------

typedef struct cells {
  int axes;
  const int64_t *shape;
  size_t size;
  int64_t wrong, n;
} cells;

static int64_t number_of(const cells *c, const int64_t *coord) {
  int64_t n = 0;
  for (int r = 0; r < c->axes; r++) n = n * c->shape[r] + coord[r];
  return n;
}

// What element n of a tensor is: bytes of a hash.
static void value_of(int64_t n, size_t size, unsigned char *v) {
  uint64_t h = eini_hash_step((uint64_t)n);
  for (size_t i = 0; i < size; i++) v[i] = (unsigned char)(h >> 8 * (i % 8));
}

static ein_status put(void *user, const int64_t *coord, void *element) {
  const cells *c = (const cells *)user;
  value_of(number_of(c, coord), c->size, (unsigned char *)element);
  return EIN_OK;
}

static ein_status look(void *user, const int64_t *coord, void *element) {
  cells *c = (cells *)user;
  unsigned char want[16];
  value_of(number_of(c, coord), c->size, want);
  c->wrong += memcmp(element, want, c->size) != 0;
  c->n++;
  return EIN_OK;
}

// ---- what a place holds, by the boxes of its distribution ---------------------------------------

typedef struct marks {
  int axes;
  const int64_t *shape;
  unsigned char *has;       // of each element
  int64_t n;
} marks;

static ein_status mark_box(void *user, const int64_t *lo, const int64_t *hi) {
  marks *b = (marks *)user;
  int64_t x[MOST] = {0};
  for (int r = 0; r < b->axes; r++) x[r] = lo[r];
  for (int r = 0; r >= 0;) {
    int64_t at = 0;
    for (r = 0; r < b->axes; r++) at = at * b->shape[r] + x[r];
    b->n += !b->has[at];
    b->has[at] = 1;
    for (r = b->axes - 1; r >= 0 && ++x[r] == hi[r]; r--) x[r] = lo[r];
  }
  return EIN_OK;
}

static int64_t held(const ein_distribution *d, int axes, const int64_t *shape, int64_t place,
                    unsigned char *has) {
  marks b = {axes, shape, has, 0};
  memset(has, 0, CELLS);
  CHECK(ein_distribution_boxes(d, shape, place, mark_box, &b) == EIN_OK);
  return b.n;
}

// ---- the worked table ---------------------------------------------------------------------------

// Deinsum, section V: MTTKRP with all extents 10 on 8 ranks as a grid of 2x2x2x1. Here for as many
// ranks as there are.
static void test_deinsum(ein_ctx *ctx) {
  const int64_t ten[3] = {10, 10, 10};
  ein_fabric f;
  ein_grid *g, *h;
  ein_dtensor *x, *a;
  ein_dtensor_part p;
  if (ranks > 8) return;
  CHECK(fabric_of(ctx, 8, &f) == EIN_OK);
  ein_distribution *dx = distribution_of(ctx, "i=2, j=2, k=2, a=1", "ijk->ijk*", 3, 8, &g);
  ein_distribution *da = distribution_of(ctx, "i=2, j=2, k=2, a=1", "ja->*j*a", 2, 8, &h);
  CHECK(ein_dtensor_create(ctx, &f, dx, EIN_F64, ten, 0, NULL, &x) == EIN_OK);
  CHECK(ein_dtensor_create(ctx, &f, da, EIN_F32, ten, 0, NULL, &a) == EIN_OK);
  CHECK(ein_dtensor_parts(x) == f.count && ein_dtensor_parts(a) == f.count);
  for (int i = 0; i < f.count; i++) {
    const int q = f.first + i, digit[3] = {q / 4, q / 2 % 2, q % 2};
    CHECK(ein_dtensor_part_get(x, i, &p) && p.place == q && p.view.rank == 3);
    for (int r = 0; r < 3; r++)
      CHECK(p.nrange[r] == 1 && p.range[r][0] == 5 * digit[r] && p.view.shape[r] == 5 &&
            p.range[r][1] == 5 * digit[r] + 5);
    CHECK(ein_dtensor_part_get(a, i, &p) && p.place == q && p.view.shape[0] == 5);
    CHECK(p.range[0][0] == 5 * digit[1] && p.range[1][0] == 0 && p.range[1][1] == 10);
  }
  CHECK(!ein_dtensor_part_get(x, f.count, &p) && !ein_dtensor_part_get(x, -1, &p));
  ein_dtensor_destroy(x);
  ein_dtensor_destroy(a);
  ein_distribution_destroy(dx);
  ein_distribution_destroy(da);
  ein_grid_destroy(g);
  ein_grid_destroy(h);
  ein_fabric_destroy(&f);
}

// ---- random redistributions ---------------------------------------------------------------------

// A random machine of one or two levels, and a distribution; text of both.
static void draw_text(int axes, char *machine, char *text) {
  int n = 0, levels = (int)draw(1, 2);
  machine[0] = text[0] = 0;
  for (int level = 0; level < levels; level++) {
    int dims = (int)draw(1, 3), used[MOST] = {0};
    sprintf(machine + strlen(machine), "%sl%d[", level ? ", " : "", level);
    sprintf(text + strlen(text), "%s%.*s->", level ? ", " : "", axes, "ijkl");
    for (int k = 0; k < dims; k++, n++) {
      const int axis = axes > 0 ? (int)draw(0, axes - 1) : 0, extent = (int)draw(1, 3);
      sprintf(machine + strlen(machine), "%sd%d=%d", k ? "," : "", n, extent);
      if (axes > 0 && !used[axis] && chance(65)) {
        used[axis] = 1;
        sprintf(text + strlen(text), "%c", "ijkl"[axis]);
        if (chance(40)) sprintf(text + strlen(text), ":%d", (int)draw(1, 3));
      } else if (chance(50)) {
        sprintf(text + strlen(text), "(%d)", (int)draw(0, extent - 1));
      } else {
        strcat(text, "*");
      }
    }
    strcat(machine, "]");
  }
}

static void test_random(ein_ctx *ctx, int cases) {
  static const ein_dtype types[4] = {EIN_F64, EIN_F32, EIN_U8, EIN_C128};
  static unsigned char has[2][CELLS];
  int64_t moved = 0;
  for (int c = 0; c < cases; c++) {
    char machine[2][256], text[2][256];
    const int axes = (int)draw(0, 3), places = (int)draw(ranks, ranks > 12 ? PLACES : 12);
    const ein_dtype type = types[draw(0, 3)];
    int64_t shape[MOST] = {1, 1, 1, 1}, need = 0, elements = 0, bytes = -1;
    ein_distribution *d[2];
    ein_dtensor *t[2];
    ein_grid *g[2];
    ein_fabric f;
    int most = 0;
    for (int r = 0; r < axes; r++) shape[r] = draw(0, chance(20) ? 3 : 13);
    CHECK(fabric_of(ctx, places, &f) == EIN_OK);
    for (int k = 0; k < 2; k++) {
      draw_text(axes, machine[k], text[k]);
      d[k] = distribution_of(ctx, machine[k], text[k], axes, places, &g[k]);
      CHECK(ein_dtensor_create(ctx, &f, d[k], type, shape, 0, NULL, &t[k]) == EIN_OK);
    }
    for (int q = 0; q < places; q++) {
      held(d[0], axes, shape, q, has[0]);
      const int64_t n = held(d[1], axes, shape, q, has[1]);
      if (q >= f.first && q < f.first + f.count) elements += n;
      for (int64_t i = 0; i < CELLS; i++) need += has[1][i] && !has[0][i];
    }
    cells all = {axes, shape, ein_dtype_size(type), 0, 0};
    memset(pair, 0, sizeof pair);
    sent = 0;
    CHECK(ein_dtensor_each(t[0], put, &all) == EIN_OK);
    CHECK(ein_dtensor_copy(t[0], t[1], &bytes) == EIN_OK);
    CHECK(ein_dtensor_each(t[1], look, &all) == EIN_OK);
    const int right = all.wrong == 0 && all.n == elements;
    if (!right) printf("%s | %s -> %s | %s\n", machine[0], text[0], machine[1], text[1]);
    CHECK(right);
    need *= (int64_t)all.size;
    CHECK(total(bytes) == need && total(sent) == need);
    CHECK(ein_dtensor_bytes(t[0], t[1]) == need);
    for (int i = 0; i < PLACES * PLACES; i++)
      most = pair[i / PLACES][i % PLACES] > most ? pair[i / PLACES][i % PLACES] : most;
    CHECK(most <= 1 && pair[0][0] == 0);
    moved += need;
    for (int k = 0; k < 2; k++) {
      ein_dtensor_destroy(t[k]);
      ein_distribution_destroy(d[k]);
      ein_grid_destroy(g[k]);
    }
    ein_fabric_destroy(&f);
  }
  CHECK(moved > 0);
}

// ---- whole tensors, buffers of the caller's -----------------------------------------------------

// Column-major local arrays with room between columns, cyclic blocks: ScaLAPACK's.
static void test_adopt(ein_ctx *ctx) {
  const int64_t shape[2] = {23, 17};
  double whole[23 * 17], back[23 * 17];
  static double room[PLACES][23 * 40];
  static int64_t local[PLACES][4];
  ein_ztensor adopt[PLACES];
  ein_fabric f;
  ein_grid *g, *h;
  ein_dtensor *t, *u;
  ein_dtensor_part p;
  const int places = ranks > 4 ? ranks : 4;
  CHECK(fabric_of(ctx, places, &f) == EIN_OK);
  ein_distribution *d = distribution_of(ctx, "r=2, c=2", "ij->i:3j:4", 2, places, &g);
  ein_distribution *e = distribution_of(ctx, "r=3", "ij->j", 2, places, &h);
  CHECK(ein_dtensor_create(ctx, &f, e, EIN_F64, shape, 0, NULL, &u) == EIN_OK);
  CHECK(ein_dtensor_create(ctx, &f, d, EIN_F64, shape, 0, NULL, &t) == EIN_OK);
  const int n = ein_dtensor_parts(t);
  for (int k = 0; k < n; k++) {
    CHECK(ein_dtensor_part_get(t, k, &p));
    for (int r = 0; r < 2; r++) local[k][r] = p.view.shape[r];
    local[k][2] = 1;
    local[k][3] = p.view.shape[0] + 2;
    adopt[k] = ein_tensor(EIN_F64, 2, local[k], room[k]);
    adopt[k].strides = local[k] + 2;
    for (int i = 0; i < 23 * 40; i++) room[k][i] = -7;
  }
  ein_dtensor_destroy(t);
  CHECK(ein_dtensor_create(ctx, &f, d, EIN_F64, shape, n, adopt, &t) == EIN_OK);
  for (int i = 0; i < 23 * 17; i++) whole[i] = i + 1, back[i] = 0;
  const ein_ztensor from = ein_tensor(EIN_F64, 2, shape, whole);
  const ein_ztensor to = ein_tensor(EIN_F64, 2, shape, back);
  const int root = places - 1, here = root >= f.first && root < f.first + f.count;
  CHECK(ein_dtensor_scatter(t, root, here ? &from : NULL) == EIN_OK);
  for (int k = 0; k < n; k++) {
    int64_t kept = 0, wrong = 0;
    CHECK(ein_dtensor_part_get(t, k, &p) && p.view.data == room[k]);
    for (int i = 0; i < 23 * 40; i++) kept += room[k][i] == -7;
    CHECK(kept == 23 * 40 - local[k][0] * local[k][1]);
    for (int64_t i = 0; i < local[k][0]; i++)
      for (int64_t j = 0; j < local[k][1]; j++) {
        const int64_t x = i / 3 * 6 + p.place / 2 * 3 + i % 3;
        const int64_t y = j / 4 * 8 + p.place % 2 * 4 + j % 4;
        wrong += room[k][i + j * local[k][3]] != whole[x * 17 + y];
      }
    CHECK(wrong == 0);
  }
  CHECK(ein_dtensor_copy(t, u, NULL) == EIN_OK);
  CHECK(ein_dtensor_gather(u, root, here ? &to : NULL) == EIN_OK);
  if (here) CHECK(memcmp(whole, back, sizeof whole) == 0);
  // Every process has the whole tensor; together they give it back.
  memset(back, 0, sizeof back);
  CHECK(ein_dtensor_load(u, &from) == EIN_OK && ein_dtensor_copy(u, t, NULL) == EIN_OK);
  CHECK(ein_dtensor_store(t, &to) == EIN_OK);
  int64_t stored = 0, wrong = 0;
  for (int i = 0; i < 23 * 17; i++) {
    stored += back[i] != 0;
    wrong += back[i] != 0 && back[i] != whole[i];
  }
  CHECK(wrong == 0 && total(stored) == 23 * 17);
  // Buffers that do not fit, on one process only: all get the error.
  if (rank == ranks - 1) local[0][0]++;
  ein_dtensor *bad = NULL;
  const ein_status st = ein_dtensor_create(ctx, &f, d, EIN_F64, shape, n, adopt, &bad);
  CHECK((st == EIN_ERR_SHAPE && bad == NULL) || places > 4);
  CHECK(st != EIN_OK ? *ein_ctx_message(ctx) != 0 : 1);
  ein_dtensor_destroy(bad);
  ein_dtensor_destroy(t);
  ein_dtensor_destroy(u);
  ein_distribution_destroy(d);
  ein_distribution_destroy(e);
  ein_grid_destroy(g);
  ein_grid_destroy(h);
  ein_fabric_destroy(&f);
}

// A run under a schedule that binds parts of tensors: nothing is whole anywhere. What lies in turn
// is no box.
static void test_schedule(ein_ctx *ctx) {
  static const char *const text = "machine x=2, y=p/2; place A, B, C xy->%s\n"
                                  "distribute([i,j], [io,jo], [ii,ji], [x,y])\n"
                                  "divide(k, ko, ki, 3); reorder(ko, ii, ji); "
                                  "communicate([A,B], ko)\n";
  static const int64_t extent[3][2] = {{13, 9}, {9, 10}, {13, 10}};
  static double whole[3][130];
  const int places = ranks > 4 ? ranks + ranks % 2 : 4;
  for (int turn = 0; turn < 2; turn++) {
    char line[400];
    void *bound[3][PLACES] = {{NULL}};
    ein_dtensor *t[3] = {NULL, NULL, NULL};
    ein_program_desc program;
    ein_schedule_desc sd;
    ein_dist_desc dd;
    ein_schedule *s = NULL;
    ein_graph *g = NULL;
    ein_dist *d = NULL;
    ein_dtensor_part p;
    ein_fabric f;
    ein_run run;
    memset(&program, 0, sizeof program), memset(&sd, 0, sizeof sd), memset(&dd, 0, sizeof dd);
    memset(&run, 0, sizeof run);
    program.text = "input A[m=13,k=9], B[k,n=10]\nC[i,j] = A[i,k] * B[k,j]\n";
    snprintf(line, sizeof line, text, turn ? "x:2y" : "xy");
    sd.text = line;
    sd.places = places;
    CHECK(ein_graph_parse(ctx, &program, &g) == EIN_OK);
    CHECK(ein_schedule_create(ctx, g, &sd, &s) == EIN_OK);
    CHECK(fabric_of(ctx, places, &f) == EIN_OK);
    dd.fabric = &f, dd.schedule = s, dd.blocks = 1;
    const ein_status st = ein_dist_create(ctx, g, &dd, &d);
    CHECK(st == (turn ? EIN_ERR_UNSUPPORTED : EIN_OK));
    if (turn) CHECK(strstr(ein_ctx_message(ctx), "several boxes") != NULL);
    for (int k = 0; k < 3 && st == EIN_OK; k++) {
      CHECK(ein_dtensor_of_plan(ctx, d, k, &t[k]) == EIN_OK);
      CHECK(k == 2 || ein_dtensor_random(t[k], 5 + (uint64_t)k) == EIN_OK);
      for (int i = 0; ein_dtensor_part_get(t[k], i, &p); i++)
        bound[k][p.place - f.first] = p.view.data;
    }
    const void *in[2 * PLACES];
    for (int i = 0; i < 2 * f.count; i++) in[i] = bound[i / f.count][i % f.count];
    run.in = in, run.out = bound[2];
    if (st == EIN_OK) CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
    for (int k = 0; k < 3 && st == EIN_OK; k++) {
      const ein_ztensor to = ein_tensor(EIN_F64, 2, extent[k], whole[k]);
      CHECK(ein_dtensor_gather(t[k], 0, f.first == 0 ? &to : NULL) == EIN_OK);
    }
    for (int i = 0; i < 13 * 10 && st == EIN_OK && f.first == 0; i++) {
      double sum = 0;  // exact
      for (int k = 0; k < 9; k++) sum += whole[0][i / 10 * 9 + k] * whole[1][k * 10 + i % 10];
      CHECK(sum == whole[2][i]);
    }
    for (int k = 0; k < 3; k++) ein_dtensor_destroy(t[k]);
    ein_dist_destroy(d);
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
    ein_fabric_destroy(&f);
  }
}

// The same elements for every distribution and number of places, of every dtype.
static void test_elements(ein_ctx *ctx) {
  const int64_t shape[2] = {11, 6};
  for (int type = EIN_NONE + 1; type < EIN_DTYPE_COUNT; type++) {
    unsigned char first[66 * 16], next[66 * 16];
    for (int way = 0; way < 3; way++) {
      static const char *const machine[3] = {"a=1", "a=2, b=2", "a=3"};
      static const char *const text[3] = {"ij->0", "ij->i:2j", "ij->j"};
      const int places = ranks + way * 2;
      const ein_ztensor to = ein_tensor((ein_dtype)type, 2, shape, way ? next : first);
      ein_fabric f;
      ein_grid *g;
      ein_dtensor *t;
      CHECK(fabric_of(ctx, places, &f) == EIN_OK);
      ein_distribution *d = distribution_of(ctx, machine[way], text[way], 2, places, &g);
      CHECK(ein_dtensor_create(ctx, &f, d, (ein_dtype)type, shape, 0, NULL, &t) == EIN_OK);
      CHECK(ein_dtensor_random(t, 5) == EIN_OK);
      CHECK(ein_dtensor_gather(t, 0, rank == 0 ? &to : NULL) == EIN_OK);
      if (way > 0 && rank == 0)
        CHECK(memcmp(first, next, 66 * ein_dtype_size((ein_dtype)type)) == 0);
      ein_dtensor_destroy(t);
      ein_distribution_destroy(d);
      ein_grid_destroy(g);
      ein_fabric_destroy(&f);
    }
  }
}

// ---- graphs over distributed tensors ------------------------------------------------------------

static const char *const texts[] = {
    "input A[i=17,j=23], B[j,k=19] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
    "input A[i=14,j=21], B[j,k=18], C[k,l=17] : f64\nT[i,k] = A[i,j]*B[j,k]\n"
    "Y[i,l] = T[i,k]*C[k,l]\noutput Y, T\n",
    "input X[i=6,j=8,k=9], A[j,r=5], B[k,r] : f64\nY[i,r] = X[i,j,k]*A[j,r]*B[k,r]\n",
    "input A[i=13,j=12], N[n=3] : f64\nB[j,i] = A[i,j]*3\nS = sum[i,j](B[j,i])\n"
    "M[i] = max[j](B[j,i])\noutput B, S, M\n",
    "input Q[s=10,d=8], K[t=12,d], V[t,e=6] : f64\nT[s,t] = sum[d](Q[s,d]*K[t,d])/sqrt(size(d))\n"
    "P[s,t] = softmax[t](T[s,t])\nY[s,e] = sum[t](P[s,t]*V[t,e])\n"};

typedef struct bound {
  int nin, n;
  ein_tensor_info info[8];
  double *whole[8];
  ein_distribution *d[8];
  ein_grid *g[8];
  ein_dtensor *t[8];
} bound;

// Tensors of a graph, inputs first: whole ones, and random distributions; ways: 0 random, 1 rows.
static void bound_make(ein_ctx *ctx, const ein_plan *plan, const ein_fabric *f, int way, bound *b) {
  memset(b, 0, sizeof *b);
  while (ein_plan_input(plan, b->nin, &b->info[b->nin])) b->nin++;
  for (b->n = b->nin; ein_plan_output(plan, b->n - b->nin, &b->info[b->n]);) b->n++;
  for (int k = 0; k < b->n; k++) {
    char machine[256], text[256];
    const ein_tensor_info *e = &b->info[k];
    int64_t n = 1;
    for (int r = 0; r < e->rank; r++) n *= e->shape[r];
    b->whole[k] = (double *)malloc((size_t)(n + 1) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
      ein_random_element(EIN_F64, k < b->nin ? (uint64_t)k : 99, i, &b->whole[k][i]);
    draw_text(e->rank, machine, text);
    if (way == 1) sprintf(machine, "x=%d", f->places);
    if (way == 1) sprintf(text, "%.*s->%s", e->rank, "ijkl", e->rank > 0 ? "i" : "*");
    b->d[k] = distribution_of(ctx, machine, text, e->rank, f->places, &b->g[k]);
    CHECK(ein_dtensor_create(ctx, f, b->d[k], EIN_F64, e->shape, 0, NULL, &b->t[k]) == EIN_OK);
    if (k < b->nin) CHECK(ein_dtensor_random(b->t[k], (uint64_t)k) == EIN_OK);
  }
}

static void bound_free(bound *b) {
  for (int k = 0; k < b->n; k++) {
    free(b->whole[k]);
    ein_dtensor_destroy(b->t[k]);
    ein_distribution_destroy(b->d[k]);
    ein_grid_destroy(b->g[k]);
  }
}

static const ein_dtensor *const *inputs(const bound *b) {
  return (const ein_dtensor *const *)b->t;
}

// The same as the plan of one place computes; what moves is what is said.
static void test_graph(ein_ctx *ctx, const ein_graph *g, const ein_plan *plan, int way) {
  static double back[4096];
  bound b;
  ein_fabric f;
  ein_dtensor_plan *p = NULL;
  ein_dist_info info;
  ein_dist_stats stats;
  ein_run run;
  ein_dtensor_plan_info made;
  const void *in[8];
  void *out[8];
  const int places = (int)draw(ranks, ranks + 5);
  CHECK(fabric_of(ctx, places, &f) == EIN_OK);
  bound_make(ctx, plan, &f, way, &b);
  memset(&run, 0, sizeof run);
  memset(&stats, 0, sizeof stats);
  for (int k = 0; k < b.n; k++) {
    if (k < b.nin) in[k] = b.whole[k];
    else out[k - b.nin] = b.whole[k];
  }
  run.in = in;
  run.out = out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  const ein_status st = ein_dtensor_plan_create(ctx, g, &f, NULL, inputs(&b), b.t + b.nin, &p);
  if (st != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  CHECK(st == EIN_OK);
  CHECK(ein_dtensor_plan_get(p, &made) == EIN_OK);
  CHECK(ein_dist_info_get(made.dist, &info) == EIN_OK);
  for (int k = 0; k < b.nin && way == 1; k++)  // rows of what is read stay where they are
    CHECK(p->stage[k] == NULL || b.info[k].shape[0] < places || b.info[k].rank < 2);
  for (int turn = 0; turn < 2; turn++) {
    sent = 0;
    CHECK(ein_dtensor_plan_run(p, inputs(&b), b.t + b.nin, NULL, &stats) == EIN_OK);
    const int64_t planned = total(info.bytes), read = total(stats.bytes), moved = total(sent);
    CHECK(read == planned && moved == planned + made.moved);
  }
  for (int k = b.nin; k < b.n; k++) {
    const ein_ztensor to = ein_tensor(EIN_F64, b.info[k].rank, b.info[k].shape, back);
    int64_t wrong = 0;
    CHECK(ein_dtensor_gather(b.t[k], 0, rank == 0 ? &to : NULL) == EIN_OK);
    for (int64_t i = 0; i < ein_view_count(&to) && rank == 0; i++)
      wrong += !(fabs(back[i] - b.whole[k][i]) <= 1e-12 * (1 + fabs(b.whole[k][i])));
    CHECK(wrong == 0);
  }
  // One process gives a tensor that does not fit.
  ein_dtensor *first = b.t[0];
  if (rank == ranks - 1) b.t[0] = NULL;
  CHECK(ein_dtensor_plan_run(p, inputs(&b), b.t + b.nin, NULL, NULL) == EIN_ERR_ARGUMENT);
  ein_dtensor_plan_destroy(p);
  CHECK(ein_dtensor_plan_create(ctx, g, &f, NULL, inputs(&b), b.t + b.nin, &p) ==
        EIN_ERR_ARGUMENT && p == NULL);
  b.t[0] = first;
  bound_free(&b);
  ein_fabric_destroy(&f);
}

static void test_graphs(ein_ctx *ctx, int cases) {
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    ein_program_desc pd;
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    memset(&pd, 0, sizeof pd);
    pd.text = texts[k];
    CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
    for (int c = 0; c < cases; c++) test_graph(ctx, g, plan, c % 4 == 3);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
  }
}

// ---- mistakes and memory ------------------------------------------------------------------------

static ein_status stop(void *user, const int64_t *coord, void *element) {
  (void)coord, (void)element;
  return --*(int *)user < 0 ? EIN_ERR_BOUNDS : EIN_OK;
}

static void test_mistakes(ein_ctx *ctx) {
  const int64_t shape[2] = {6, 4}, other[2] = {6, 5};
  int left = 0;
  double room[24];
  ein_fabric f, more;
  ein_grid *g;
  ein_dtensor *t, *u, *v, *w;
  CHECK(fabric_of(ctx, ranks + 1, &f) == EIN_OK && fabric_of(ctx, ranks + 2, &more) == EIN_OK);
  ein_distribution *d = distribution_of(ctx, "a=2", "ij->i", 2, ranks + 1, &g);
  const ein_ztensor whole = ein_tensor(EIN_F64, 2, shape, room);
  const ein_ztensor no = ein_tensor(EIN_F64, 2, other, room);
  CHECK(ein_dtensor_create(ctx, &f, d, EIN_F64, shape, 0, NULL, &t) == EIN_OK);
  CHECK(ein_dtensor_create(ctx, &f, d, EIN_F64, other, 0, NULL, &u) == EIN_OK);
  CHECK(ein_dtensor_create(ctx, &f, d, EIN_F32, shape, 0, NULL, &v) == EIN_OK);
  CHECK(ein_dtensor_create(ctx, &more, d, EIN_F64, shape, 0, NULL, &w) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "places") != NULL && w == NULL);
  CHECK(ein_dtensor_create(ctx, &f, NULL, EIN_F64, shape, 0, NULL, &w) == EIN_ERR_ARGUMENT);
  CHECK(ein_dtensor_create(ctx, &f, d, (ein_dtype)77, shape, 0, NULL, &w) == EIN_ERR_DTYPE);
  CHECK(ein_dtensor_create(ctx, NULL, d, EIN_F64, shape, 0, NULL, &w) == EIN_ERR_ARGUMENT);
  CHECK(ein_dtensor_copy(t, u, NULL) == EIN_ERR_SHAPE);
  CHECK(ein_dtensor_copy(t, v, NULL) == EIN_ERR_DTYPE);
  CHECK(ein_dtensor_copy(t, NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_dtensor_bytes(t, u) == -1 && ein_dtensor_bytes(t, t) == 0);
  CHECK(ein_dtensor_scatter(t, ranks + 1, &whole) == EIN_ERR_ARGUMENT);
  // The root alone is wrong.
  CHECK(ein_dtensor_scatter(t, 0, rank == 0 ? &no : &whole) == EIN_ERR_SHAPE);
  CHECK(ein_dtensor_gather(t, 0, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_dtensor_load(t, &no) == EIN_ERR_SHAPE);
  CHECK(ein_dtensor_store(t, NULL) == EIN_ERR_ARGUMENT);
  if (ein_dtensor_parts(t) > 0) CHECK(ein_dtensor_each(t, stop, &left) == EIN_ERR_BOUNDS);
  ein_dtensor_destroy(NULL);
  ein_dtensor_destroy(t);
  ein_dtensor_destroy(u);
  ein_dtensor_destroy(v);
  ein_distribution_destroy(d);
  ein_grid_destroy(g);
  ein_fabric_destroy(&f);
  ein_fabric_destroy(&more);
}

// Each allocation fails once, at the last rank: all get one status, and nothing stays.
static void test_memory(void) {
  const int64_t shape[2] = {12, 12};
  for (long n = 0, done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_ctx_desc how;
    ein_ctx *ctx;
    ein_fabric f;
    ein_grid *g[2];
    ein_dtensor *t[2] = {NULL, NULL};
    double whole[144] = {0};
    const ein_ztensor view = ein_tensor(EIN_F64, 2, shape, whole);
    memset(&how, 0, sizeof how);
    how.bare = 1;
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    CHECK(ein_ctx_create(&how, &ctx) == EIN_OK);
    CHECK(fabric_of(ctx, ranks + 1, &f) == EIN_OK);
    ein_distribution *d = distribution_of(ctx, "a=2", "xy->x:2", 2, ranks + 1, &g[0]);
    ein_distribution *e = distribution_of(ctx, "a=2", "xy->y", 2, ranks + 1, &g[1]);
    if (rank == ranks - 1) count.fail_at = count.calls + n;
    ein_status st = ein_dtensor_create(ctx, &f, d, EIN_F64, shape, 0, NULL, &t[0]);
    if (st == EIN_OK) st = ein_dtensor_create(ctx, &f, e, EIN_F64, shape, 0, NULL, &t[1]);
    if (st == EIN_OK) st = ein_dtensor_copy(t[0], t[1], NULL);
    if (st == EIN_OK) st = ein_dtensor_gather(t[1], 0, rank == 0 ? &view : NULL);
    CHECK(total((int64_t)st) == (int64_t)st * ranks && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
    done = st == EIN_OK;
    CHECK(!done || n > 2);
    for (int k = 0; k < 2; k++) ein_dtensor_destroy(t[k]);
    ein_distribution_destroy(d);
    ein_distribution_destroy(e);
    for (int k = 0; k < 2; k++) ein_grid_destroy(g[k]);
    ein_fabric_destroy(&f);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
}

// The same of a plan and its run.
static void test_plan_memory(void) {
  const int64_t shape[2] = {9, 8}, cols[2] = {8, 7}, prod[2] = {9, 7};
  const int64_t *const shapes[3] = {shape, cols, prod};
  for (long n = 0, done = 0; !done; n += n < 30 ? 1 : 23) {
    counter count = {0, -1, 0};
    ein_ctx_desc how;
    ein_program_desc pd;
    ein_ctx *ctx;
    ein_fabric f;
    ein_grid *grid;
    ein_graph *g = NULL;
    ein_dtensor *t[3] = {NULL, NULL, NULL};
    ein_dtensor_plan *p = NULL;
    memset(&how, 0, sizeof how);
    memset(&pd, 0, sizeof pd);
    how.bare = 1;
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    pd.text = "input A[i=9,j=8], B[j,k=7] : f64\nC[i,k] = A[i,j]*B[j,k]\n";
    CHECK(ein_ctx_create(&how, &ctx) == EIN_OK && ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(fabric_of(ctx, ranks + 1, &f) == EIN_OK);
    ein_distribution *d = distribution_of(ctx, "a=2", "xy->x:2", 2, ranks + 1, &grid);
    for (int k = 0; k < 3; k++)
      CHECK(ein_dtensor_create(ctx, &f, d, EIN_F64, shapes[k], 0, NULL, &t[k]) == EIN_OK);
    if (rank == ranks - 1) count.fail_at = count.calls + n;
    const ein_dtensor *const *in = (const ein_dtensor *const *)t;
    ein_status st = ein_dtensor_plan_create(ctx, g, &f, NULL, in, t + 2, &p);
    if (st == EIN_OK) st = ein_dtensor_plan_run(p, in, t + 2, NULL, NULL);
    CHECK(total((int64_t)st) == (int64_t)st * ranks && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
    done = st == EIN_OK;
    CHECK(!done || n > 5);
    ein_dtensor_plan_destroy(p);
    for (int k = 0; k < 3; k++) ein_dtensor_destroy(t[k]);
    ein_distribution_destroy(d);
    ein_grid_destroy(grid);
    ein_graph_destroy(g);
    ein_fabric_destroy(&f);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
}

int main(int argc, char **argv) {
  ein_ctx *ctx;
#ifdef TEST_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
  const int cases = argc > 1 ? atoi(argv[1]) : FEW(200);
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (rank == 0) printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  test_deinsum(ctx);
  test_random(ctx, cases);
  test_adopt(ctx);
  test_schedule(ctx);
  test_elements(ctx);
  test_graphs(ctx, FEW(12));
  test_mistakes(ctx);
  test_memory();
  test_plan_memory();
  ein_ctx_destroy(ctx);
  const int64_t failed = total(failures);
  if (rank == 0)
    printf("%s %d checks on each of %d processes\n", failed ? "FAIL" : "ok", checks, ranks);
#ifdef TEST_MPI
  MPI_Finalize();
#endif
  return failed != 0;
}
