// Groups of statements: what the search takes from a group, element by element, in blocks, holds no
// more and moves no more than it says; no execution moves less than the bound; no partition of
// small programs moves less; and what theory says of known programs comes out.
//
//   test_fusion [programs [partitions [seed]]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"
#include "small_statements.h"

// The groups as "M+Y, Z"; the caller's until the next call.
static const char *groups(const ein_fusion *x) {
  static char buf[4096];
  ein_fusion_group g;
  size_t n = 0;
  buf[0] = 0;
  for (int64_t k = 0; ein_fusion_part(x, k, &g); k++)
    for (int64_t m = 0; m < g.nstmt; m++)
      n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s", m ? "+" : k ? ", " : "", g.out[m]);
  return buf;
}

static ein_fusion *fuse(const char *text, double fast, ein_fusion_info *info) {
  ein_fusion_desc d;
  ein_fusion *x = NULL;
  ein_graph *g = parse(text);
  memset(&d, 0, sizeof d);
  d.fast_memory = fast;
  CHECK(ein_fusion_create(NULL, g, &d, &x) == EIN_OK);
  CHECK(ein_fusion_get(x, info));
  ein_graph_destroy(g);
  return x;
}

// Are these the groups, and does fusion move so much less?
static void expect(const char *text, double fast, const char *want, double least, double most) {
  ein_fusion_info i;
  ein_fusion *x = fuse(text, fast, &i);
  const int same = strcmp(groups(x), want) == 0 && i.io >= least * i.alone &&
                   i.io <= most * i.alone;
  if (!same) printf("fast %g: %s, %.4g of %.4g\n%s\n", fast, groups(x), i.io, i.alone, text);
  CHECK(same);
  CHECK(i.proved);
  ein_fusion_destroy(x);
}

static void test_known(void) {
  static const char mttkrp[] = "input X[i=512,j=512,k=512], A[j,a=512], B[k,a] : f64\n"
                               "M[j,k,a] = A[j,a]*B[k,a]\nY[i,a] = X[i,j,k]*M[j,k,a]\noutput Y";
  expect(mttkrp, 3000, "M+Y", 0.2, 0.6);
  expect(mttkrp, 32768, "M+Y", 0.2, 0.6);
  expect(mttkrp, 1e6, "M+Y", 0.2, 0.6);
  // Products of large square matrices; holding a tile of the first pays where the last is narrow,
  // below about 2 sqrt(S).
  static const char wide[] = "input A[i=8192,j=8192], B[j,k=8192], C[k,l=8192] : f64\n"
                             "T[i,k] = A[i,j]*B[j,k]\nY[i,l] = T[i,k]*C[k,l]\noutput Y";
  expect(wide, 1000, "T, Y", 1, 1);
  expect(wide, 32768, "T, Y", 1, 1);
  expect(wide, 1e6, "T, Y", 1, 1);
  expect("input A[i=8192,j=8192], B[j,k=8192], C[k,l=8] : f64\n"
         "T[i,k] = A[i,j]*B[j,k]\nY[i,l] = T[i,k]*C[k,l]\noutput Y", 32768, "T+Y", 0, 0.99);
  // Scores of attention stay where rows of them fit; else the softmax is fused, and the products,
  // which need squares, are not.
  static const char attention[] = "input Q[s=1024,d=64], K[t=1024,d], V[t,e=64] : f32\n"
                                  "T[s,t] = Q[s,d]*K[t,d]\nC[s] = max[t](T[s,t])\n"
                                  "E[s,t] = exp(T[s,t]-C[s])\nL[s] = sum[t](E[s,t])\n"
                                  "P[s,t] = E[s,t]/L[s]\nY[s,e] = P[s,t]*V[t,e]\noutput Y";
  expect(attention, 300000, "T+C+E+L+P+Y", 0, 0.05);
  expect(attention, 20000, "T+C, E+L+P, Y", 0, 0.6);
  // Chains of products with one tensor, of stencils, and of small products per element.
  static const char ttm[] = "input X[i=256,j=256,k=256], A[i,a=16], B[j,b=16], C[k,c=16] : f64\n"
                            "P[a,j,k] = X[i,j,k]*A[i,a]\nQ[a,b,k] = P[a,j,k]*B[j,b]\n"
                            "R[a,b,c] = Q[a,b,k]*C[k,c]\noutput R";
  expect(ttm, 32768, "P+Q+R", 0, 0.9);
  expect("input X[1002,1002] : f64\n"
         "A[i=1000,j=1000] = X[i,j+1]+X[i+1,j]+X[i+2,j+1]+X[i+1,j+2]\n"
         "B[i=998,j=998] = A[i,j+1]+A[i+1,j]+A[i+2,j+1]+A[i+1,j+2]\noutput B", 3000, "A+B", 0.5,
         0.6);
  expect("input X[10000] : f64\nA[i=9998] = X[i]+X[i+1]+X[i+2]\nB[i=9996] = A[i]+A[i+1]+A[i+2]\n"
         "C[i=9994] = B[i]+B[i+1]+B[i+2]\noutput C", 100, "A+B+C", 1 / 3.0, 0.4);
  expect("input J[x=3,r=3,e=20000], D[r,i=20,j=20], U[e,j] : f64\nG[r,e,i] = D[r,i,j]*U[e,j]\n"
         "Y[x,e,i] = J[x,r,e]*G[r,e,i]\noutput Y", 3000, "G+Y", 0.4, 0.5);
}

// ---- programs at random ----

enum { MEMBERS = 6 };

typedef struct text {
  size_t n;
  char s[4096];
} text;

#define SAY(t, ...) (t)->n += (size_t)snprintf((t)->s + (t)->n, sizeof (t)->s - (t)->n, __VA_ARGS__)

// Statements over tensors of rank 0 to 3 that are inputs or made before; letters have one extent
// each, but along halos. Every index of a statement stands in one of its operands.
static void random_program(text *t, int n, int most) {
  static const char letters[] = "abcd";
  int extent[4], rank[16], index[16][3], tensors = 3, later[16] = {0};
  t->n = 0;
  for (int c = 0; c < 4; c++) extent[c] = (int)draw(1, most);
  for (int k = 0; k < 3; k++) {
    rank[k] = (int)draw(1, 3);
    SAY(t, "input T%d[", k);
    for (int d = 0, used = 0; d < rank[k]; d++) {
      do index[k][d] = (int)draw(0, 3); while (used >> index[k][d] & 1);
      used |= 1 << index[k][d];
      SAY(t, "%s%d", d ? "," : "", extent[index[k][d]] + (d == 0 ? 2 : 0));
    }
    SAY(t, "] : f64\n");
  }
  for (int m = 0; m < n; m++, tensors++) {
    const int x = (int)draw(tensors > 3 && chance(70) ? tensors - 1 : 0, tensors - 1);
    const int y = (int)draw(0, tensors - 1), halo = x < 3 && chance(50);
    int in = 0, nout = 0;
    for (int d = 0; d < rank[x]; d++) in |= 1 << index[x][d];
    for (int d = 0; d < rank[y]; d++) in |= 1 << index[y][d];
    later[x] = later[y] = 1;
    SAY(t, "T%d[", tensors);
    for (int c = 0; c < 4 && nout < 3; c++) {
      if (!(in >> c & 1) || chance(30)) continue;
      SAY(t, "%s%c=%d", nout ? "," : "", letters[c], extent[c]);
      index[tensors][nout++] = c;
    }
    rank[tensors] = nout;
    SAY(t, "] = sum[");
    int reduced = 0;
    for (int c = 0; c < 4; c++) {
      int free = !(in >> c & 1);
      for (int d = 0; d < nout; d++) free |= index[tensors][d] == c;
      if (!free) SAY(t, "%s%c=%d", reduced++ ? "," : "", letters[c], extent[c]);
    }
    if (reduced == 0) t->n -= 4;
    SAY(t, "%s(", reduced ? "]" : "");
    for (int k = 0; k < 2 + halo; k++) {
      const int from = k == 1 ? y : x;
      SAY(t, "%sT%d[", k ? "*" : "", from);
      for (int d = 0; d < rank[from]; d++)
        SAY(t, "%s%c%s", d ? "," : "", letters[index[from][d]], k == 2 && d == 0 ? "+2" : "");
      SAY(t, "]");
    }
    SAY(t, ")\n");
  }
  SAY(t, "output ");
  for (int k = 3, some = 0; k < tensors; k++)
    if (!later[k] || chance(20)) SAY(t, "%sT%d", some++ ? ", " : "", k);
}
#undef SAY

// ---- executions, element by element ----

typedef struct use {
  int item, member, kind;        // kind: 0 read, 1 made or added to
  long block, run;               // run: of blocks along the last class
  long next;                     // use of the same element; -1: none
  int first;                     // 1: nobody made it before, in this pass
} use;

typedef struct trace {
  use *u;
  long n, cap;
  int *base, items;              // per tensor
} trace;

static void touch(trace *t, int item, int member, int kind, long block, long run) {
  if (t->n == t->cap) {
    t->cap = t->cap ? 2 * t->cap : 4096;
    use *p = (use *)realloc(t->u, (size_t)t->cap * sizeof *p);
    if (p == NULL) exit(1);
    t->u = p;
  }
  const use x = {item, member, kind, block, run, -1, 0};
  t->u[t->n++] = x;
}

static int element(const ein_graph *g, const int *base, int tensor, const eini_map *m,
                   const int64_t *at) {
  int64_t e = 0;
  for (int r = 0; r < m->rows; r++) {
    int64_t c = m->offset[r];
    for (int k = m->first[r]; k < m->first[r + 1]; k++) c += m->term[k].coef * at[m->term[k].index];
    e = e * g->tensor[tensor].shape[r] + c;
  }
  return base[tensor] + (int)e;
}

// The index that member m streams along, as the search has it.
static int streamed(const eini_fuse *f, int m) {
  const eini_fuse_member *x = &f->member[m];
  double least = eini_fuse_passing(f, m, -1);
  int one = -1;
  for (int i = x->first; i < x->first + x->s->nindex; i++) {
    const double room = f->index[i].like == i ? eini_fuse_passing(f, m, i) : least;
    if (room < least) least = room, one = i;
  }
  return one;
}

// All points of member m in the block that begins at `from`, those it streams along outermost.
static void walk_member(const ein_graph *g, const eini_fuse *f, int m, const int64_t *from,
                        long block, long run, trace *t) {
  const eini_fuse_member *x = &f->member[m];
  const int n = x->s->nindex, one = streamed(f, m);
  int64_t lo[16], hi[16], at[16];
  int order[16], k = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < n; i++)
      if ((f->index[x->first + i].like == one) == (pass == 0)) order[k++] = i;
  for (int i = 0; i < n; i++) {
    const eini_fuse_index *y = &f->index[x->first + i];
    const double d = fmin(f->side[y->cls], f->extent[y->cls] - (double)from[y->cls]);
    const double b = (double)from[y->cls];
    lo[i] = f->times[y->cls] <= 1 ? 0 : (int64_t)fmax(0, y->mul * b + y->lo);
    hi[i] = f->times[y->cls] <= 1 ? (int64_t)y->extent
                                  : (int64_t)fmin(y->extent, y->mul * (b + d - 1) + y->hi + 1);
    at[i] = lo[i];
    if (hi[i] <= lo[i]) return;
  }
  for (int more = 1; more;) {
    for (int p = 0; p < x->s->noperand; p++)
      touch(t, element(g, t->base, x->s->operand[p], &x->s->proj[p], at), m, 0, block, run);
    touch(t, element(g, t->base, x->s->out, &x->s->out_map, at), m, 1, block, run);
    more = 0;
    for (int j = n - 1; j >= 0 && !more; j--) {
      if (++at[order[j]] < hi[order[j]]) more = 1;
      else at[order[j]] = lo[order[j]];
    }
  }
}

// The group in blocks, those along its last class one after another.
static void walk(const ein_graph *g, const eini_fuse *f, trace *t) {
  int64_t from[EINI_FUSE_CLASSES] = {0};
  long block = 0, run = 0;
  t->n = 0;
  for (int more = 1; more; block++) {
    for (int m = 0; m < f->n; m++) {
      const int stays = f->last >= 0 && !(f->member[m].in >> f->last & 1);
      if (stays && from[f->last] > 0) continue;
      walk_member(g, f, m, from, block, run, t);
    }
    more = 0;
    for (int turn = -1; turn < f->ncls && !more; turn++) {
      const int c = turn < 0 ? f->last : turn;
      if (c < 0 || (turn >= 0 && c == f->last)) continue;
      if ((from[c] += (int64_t)f->side[c]) < (int64_t)f->extent[c]) more = 1;
      else from[c] = 0;
      run += more && c != f->last;
    }
  }
  int *last = (int *)malloc((size_t)t->items * sizeof *last);
  if (last == NULL) exit(1);
  for (int i = 0; i < t->items; i++) last[i] = -1;
  for (long a = t->n - 1; a >= 0; a--) {
    t->u[a].next = last[t->u[a].item];
    last[t->u[a].item] = (int)a;
  }
  free(last);
}

// What an element is to a group.
static const eini_fuse_access *access_of(const eini_fuse *f, int tensor, int member, int kind) {
  const eini_fuse_access *hold = NULL, *own = NULL;
  for (int k = 0; k < f->naccess; k++) {
    const eini_fuse_access *x = &f->access[k];
    if (x->tensor != tensor) continue;
    if (x->kind == EINI_FUSE_HOLD) hold = x;
    else if (x->member == member && (x->kind == EINI_FUSE_STORE) == kind) own = x;
  }
  return hold != NULL ? hold : own;
}

// Is what an access reads there for the next one, which may be another member's?
static int shared(const eini_fuse *f, const eini_fuse_access *x, const eini_fuse_access *y) {
  if (x == NULL || y == NULL || !eini_fuse_kept(f, x) || !eini_fuse_kept(f, y)) return 0;
  return (x->same < 0 ? x : &f->access[x->same]) == (y->same < 0 ? y : &f->access[y->same]);
}

// Runs a trace as the search says: elements stay to their next use where that is in the same member
// of the same block, in the same block for held ones and those that are kept for other members, in
// the same run of blocks for those that stay. Returns what moves; *most: what is there at once.
static double run_blocks(const ein_graph *g, const eini_fuse *f, const trace *t, int *most) {
  char *here = (char *)calloc((size_t)t->items, 1), *stored = (char *)calloc((size_t)t->items, 1);
  double moved = 0;
  int n = 0;
  if (here == NULL || stored == NULL) exit(1);
  *most = 0;
  for (long a = 0; a < t->n; a++) {
    const use *u = &t->u[a], *v = u->next < 0 ? NULL : &t->u[u->next];
    int tensor = 0;
    while (tensor + 1 < g->ntensor && t->base[tensor + 1] <= u->item) tensor++;
    const eini_fuse_access *x = access_of(f, tensor, u->member, u->kind);
    const eini_fuse_member *maker = NULL;
    for (int m = 0; m < f->n; m++)
      if (f->member[m].s->out == tensor) maker = &f->member[m];
    if (!here[u->item]) {
      here[u->item] = 1;
      n++;
      if (u->kind == 0 || (stored[u->item] && maker->s->nfree < maker->s->nindex && !maker->held))
        moved++;
    }
    *most = n > *most ? n : *most;
    const int stays = x != NULL && x->stays;
    const int keep = v != NULL && (stays ? v->run == u->run : v->block == u->block) &&
                     (stays || (x != NULL && x->kind == EINI_FUSE_HOLD) ||
                      v->member == u->member ||
                      shared(f, x, access_of(f, tensor, v->member, v->kind)));
    if (keep) continue;
    here[u->item] = 0;
    n--;
    if (maker == NULL || !maker->stored || (u->kind == 0 && !maker->held)) continue;
    moved++;
    stored[u->item] = 1;
  }
  free(here);
  free(stored);
  return moved;
}

// The same trace where what is needed last goes first (Belady): what is made here and not needed
// outside costs nothing when it is dead.
static double run_best(const ein_graph *g, const eini_fuse *f, const trace *t, int fast) {
  char *dirty = (char *)calloc((size_t)t->items, 1), *stored = (char *)calloc((size_t)t->items, 1);
  int *held = (int *)malloc((size_t)fast * sizeof *held), n = 0;
  long *when = (long *)malloc((size_t)t->items * sizeof *when);
  double moved = 0;
  if (dirty == NULL || stored == NULL || held == NULL || when == NULL) exit(1);
  for (int i = 0; i < t->items; i++) when[i] = -2;
  for (long a = 0; a < t->n; a++) {
    const use *u = &t->u[a];
    int tensor = 0, leaves = 0, made = 0;
    while (tensor + 1 < g->ntensor && t->base[tensor + 1] <= u->item) tensor++;
    for (int m = 0; m < f->n; m++)
      if (f->member[m].s->out == tensor) made = 1, leaves = f->member[m].stored;
    if (when[u->item] == -2) {
      if (n == fast) {
        int to = 0;
        for (int i = 1; i < n; i++)
          if (when[held[i]] > when[held[to]]) to = i;
        const int out = held[to];
        if (dirty[out]) moved++, stored[out] = 1, dirty[out] = 0;
        when[out] = -2;
        held[to] = held[--n];
      }
      held[n++] = u->item;
      moved += u->kind == 0 || stored[u->item];
    }
    dirty[u->item] = (char)(dirty[u->item] | u->kind);
    when[u->item] = u->next < 0 ? t->n : u->next;
    if (u->next >= 0) continue;
    moved += dirty[u->item] && made && leaves;
    dirty[u->item] = 0;
    for (int i = 0; i < n; i++)
      if (held[i] == u->item) held[i] = held[--n];
    when[u->item] = -2;
  }
  free(dirty);
  free(stored);
  free(held);
  free(when);
  return moved;
}

typedef struct tally {
  double groups, fused, exact, worst, ratio;
} tally;

// One group, as it was chosen: what it moves, holds, and must.
static void check_group(const ein_graph *g, eini_fuse_graph *w, const ein_fusion_group *q, int fast,
                        trace *t, tally *sum) {
  eini_arena a;
  eini_fuse f;
  int fits, most;
  eini_arena_init(&a, NULL);
  eini_fuse_of(w, q->stmt, (int)q->nstmt, &f);
  CHECK(eini_fuse_make(&a, w, &f, &fits) == EIN_OK && fits && f.ncls == q->nindex);
  for (int c = 0; c < f.ncls; c++) f.side[c] = (double)q->tile[c];
  f.last = q->last;
  if (eini_fuse_weigh(&f, fast, INFINITY) < INFINITY) {
    walk(g, &f, t);
    const double moved = run_blocks(g, &f, t, &most), best = run_best(g, &f, t, fast);
    const int ok = f.io == q->io && moved <= f.io * (1 + 1e-9) && most <= f.room + 1e-9 &&
                   fmin(best, moved) >= q->bound && f.again >= f.points * (1 - 1e-9);
    if (!ok)
      printf("fast %d, groups of %lld: moved %g of %g, held %d of %g, best %g, bound %g\n", fast,
             (long long)q->nstmt, moved, q->io, most, f.room, best, q->bound);
    CHECK(ok);
    sum->groups++;
    sum->fused += q->nstmt > 1;
    sum->exact += moved >= f.io * (1 - 1e-9);
    sum->worst = fmin(sum->worst, moved / f.io);
    sum->ratio = fmin(sum->ratio, fmin(best, moved) / q->bound);
  }
  CHECK(q->alone >= q->bound && q->bound >= q->compulsory && q->io >= q->compulsory);
  eini_arena_free(&a);
}

static void test_counted(int programs) {
  trace t;
  tally sum = {0, 0, 0, 1, INFINITY};
  text p;
  memset(&t, 0, sizeof t);
  for (int r = 0; r < programs; r++) {
    ein_fusion_info i;
    ein_fusion_group q;
    eini_fuse_graph w;
    eini_arena a;
    random_program(&p, (int)draw(1, 4), 7);
    ein_graph *g = parse(p.s);
    const int fast = (int)draw(5, chance(50) ? 30 : 200), before = failures;
    ein_fusion *x = fuse(p.s, fast, &i);
    eini_arena_init(&a, NULL);
    CHECK(eini_fuse_graph_make(&a, g, &w) == EIN_OK);
    t.items = 0;
    t.base = EINI_NEW(&a, int, g->ntensor);
    for (int k = 0; k < g->ntensor; k++) {
      int size = 1;
      for (int d = 0; d < g->tensor[k].rank; d++) size *= (int)g->tensor[k].shape[d];
      t.base[k] = t.items;
      t.items += size;
    }
    for (int64_t k = 0; ein_fusion_part(x, k, &q); k++) check_group(g, &w, &q, fast, &t, &sum);
    if (failures > before) printf("%s\n", p.s);
    ein_fusion_destroy(x);
    ein_graph_destroy(g);
    eini_arena_free(&a);
  }
  free(t.u);
  printf("%.0f groups run, %.0f fused: as predicted %.0f, least %.4f of it; least ratio to the "
         "bound %.4f\n", sum.groups, sum.fused, sum.exact, sum.worst, sum.ratio);
  CHECK(sum.exact >= 0.8 * sum.groups && sum.fused > 0.1 * sum.groups);
}

// ---- all partitions ----

typedef struct partition {
  const ein_graph *g;
  eini_fuse_search *z;
  int n, of[MEMBERS], parts;
  double best;
} partition;

// What the groups of a partition move; INFINITY: they are not connected, or have no order.
static double partition_io(const partition *p) {
  double io = 0;
  int before[MEMBERS] = {0}, done = 0;
  for (int k = 0; k < p->parts; k++) {
    int64_t list[MEMBERS] = {0};
    int n = 0, seen = 0, all = 0;
    double alone = 0;
    eini_fuse_known *known;
    for (int i = 0; i < p->n; i++)
      if (p->of[i] == k) list[n++] = i, all |= 1 << i;
    for (int i = 0; i < p->n; i++) {
      const eini_stmt *s = &p->g->stmt[i];
      for (int o = 0; o < s->noperand; o++)
        for (int j = 0; j < i; j++)
          if (p->g->stmt[j].out == s->operand[o] && p->of[i] == k && p->of[j] != k)
            before[k] |= 1 << p->of[j];
    }
    for (int more = seen = 1 << list[0]; more;) {
      more = 0;
      for (int i = 0; i < p->n; i++) {
        const eini_stmt *s = &p->g->stmt[i];
        for (int o = 0; o < s->noperand; o++)
          for (int j = 0; j < i; j++)
            if (p->g->stmt[j].out == s->operand[o] && p->of[i] == k && p->of[j] == k &&
                (seen >> i & 1) != (seen >> j & 1))
              seen |= more = 1 << i | 1 << j;
      }
    }
    if (seen != all) return INFINITY;
    for (int i = 0; i < n; i++) {
      CHECK(eini_fuse_ask(p->z, &list[i], 1, INFINITY, &known) == EIN_OK);
      alone += known->io;
    }
    CHECK(eini_fuse_ask(p->z, list, n, n > 1 ? alone : INFINITY, &known) == EIN_OK);
    io += known->io;
  }
  for (int turn = 0; turn < p->parts; turn++)
    for (int k = 0; k < p->parts; k++)
      if (!(before[k] & ~done)) done |= 1 << k;
  return done == (1 << p->parts) - 1 ? io : INFINITY;
}

static void every_partition(partition *p, int i) {
  if (i == p->n) {
    p->best = fmin(p->best, partition_io(p));
    return;
  }
  const int parts = p->parts;
  for (int k = 0; k <= parts; k++) {
    p->of[i] = k;
    p->parts = k == parts ? parts + 1 : parts;
    every_partition(p, i + 1);
  }
  p->parts = parts;
}

static void test_partitions(int programs) {
  text p;
  int fewer = 0;
  for (int r = 0; r < programs; r++) {
    ein_fusion_info info;
    eini_fuse_search z;
    eini_arena a;
    random_program(&p, (int)draw(2, MEMBERS), 40);
    ein_graph *g = parse(p.s);
    if (g->nstmt > MEMBERS) {
      ein_graph_destroy(g);
      continue;
    }
    const double fast = (double)draw(8, 2000);
    ein_fusion *x = fuse(p.s, fast, &info);
    memset(&z, 0, sizeof z);
    eini_arena_init(&a, NULL);
    eini_arena_init(&z.scratch, NULL);
    z.a = &a;
    z.fast = fast;
    z.work = 1 << 30;
    z.number = EINI_NEW(&a, int, g->ntensor);
    CHECK(eini_fuse_graph_make(&a, g, &z.w) == EIN_OK && eini_fuse_shapes(&z) == EIN_OK);
    partition all = {g, &z, (int)g->nstmt, {0}, 0, INFINITY};
    every_partition(&all, 0);
    const int ok = fabs(all.best - info.io) <= 1e-9 * info.io && info.io <= info.alone &&
                   info.proved;
    if (!ok) printf("fast %g: %g, the best partition %g\n%s\n", fast, info.io, all.best, p.s);
    CHECK(ok);
    fewer += info.io < 0.9 * info.alone;
    eini_arena_free(&z.scratch);
    eini_arena_free(&a);
    ein_fusion_destroy(x);
    ein_graph_destroy(g);
  }
  printf("%d programs of up to %d statements, %d of them a tenth better in groups\n", programs,
         MEMBERS, fewer);
  CHECK(10 * fewer > programs);
}

// Blocks of small groups against all sides there are, and every last class.
static void test_sides(int programs) {
  text p;
  double worst = 1, sum = 0;
  int n = 0;
  for (int r = 0; r < programs; r++) {
    eini_fuse_graph w;
    eini_arena a;
    eini_fuse f;
    int fits;
    int64_t list[2] = {0, 1};
    random_program(&p, 2, 10);
    ein_graph *g = parse(p.s);
    if (g->stmt[1].operand[0] != g->stmt[0].out) {
      ein_graph_destroy(g);
      continue;
    }
    eini_arena_init(&a, NULL);
    CHECK(eini_fuse_graph_make(&a, g, &w) == EIN_OK);
    eini_fuse_of(&w, list, 2, &f);
    CHECK(eini_fuse_make(&a, &w, &f, &fits) == EIN_OK && fits);
    const double fast = (double)draw(6, 300);
    double best = INFINITY;
    for (f.last = -1; f.last < f.ncls; f.last++) {
      eini_fuse_begin(&f);
      for (int more = 1; more;) {
        const double io = eini_fuse_weigh(&f, fast, best);
        if (io < best && f.again <= EINI_FUSE_AGAIN * f.points * (1 + 1e-9)) best = io;
        more = 0;
        for (int c = 0; c < f.ncls && !more; c++) {
          if (f.whole[c]) continue;
          if (++f.side[c] <= f.extent[c]) more = 1;
          else f.side[c] = 1;
        }
      }
    }
    eini_fuse_tile(&f, fast, INFINITY);
    CHECK(f.io >= best * (1 - 1e-9) && (f.io < INFINITY || !(best < INFINITY)));
    if (best < INFINITY) {
      n++;
      sum += f.io / best;
      worst = fmax(worst, f.io / best);
    }
    ein_graph_destroy(g);
    eini_arena_free(&a);
  }
  printf("%d groups of two: blocks move %.4f times the least on average, %.4f at most\n", n,
         sum / n, worst);
  CHECK(sum <= 1.05 * n && worst < 2);
}

// ---- long programs, errors, memory ----

// Layers of one form are searched once, and come out alike.
static void test_layers(void) {
  int64_t looked = 0;
  for (int layers = 8; layers <= 64; layers *= 8) {
    ein_fusion_info i;
    char *program = (char *)malloc(300 * (size_t)layers + 256);
    if (program == NULL) exit(1);
    size_t n = (size_t)sprintf(program, "input x0[s=300,a=200], w[a,f=200], v[f,a]\n");
    for (int l = 0; l < layers; l++)
      n += (size_t)sprintf(program + n,
                           "m%d[s] = mean[a](x%d[s,a]^2)\nn%d[s,a] = x%d[s,a]*rsqrt(m%d[s])\n"
                           "g%d[s,f] = n%d[s,a]*w[a,f]\nh%d[s,f] = tanh(g%d[s,f])\n"
                           "x%d[s,a] = sum[f](h%d[s,f]*v[f,a])\n", l, l, l, l, l, l, l, l, l, l + 1,
                           l);
    sprintf(program + n, "output x%d\n", layers);
    ein_fusion *x = fuse(program, 20000, &i);
    CHECK(!i.proved && i.io < 0.9 * i.alone);
    CHECK(looked == 0 || i.looked <= looked + 20);
    looked = i.looked;
    ein_fusion_group g;
    int64_t all = 0;
    for (int64_t k = 0; ein_fusion_part(x, k, &g); k++) all += g.nstmt;
    CHECK(all == 5 * layers);
    ein_fusion_destroy(x);
    free(program);
  }
}

static void test_special(void) {
  ein_fusion_info i;
  ein_fusion_group g;
  ein_fusion *x = fuse("input A[i=0,k=7], B[k,j=5]\nY[i,j] = A[i,k]*B[k,j]\nZ[i] = Y[i,0]", 10, &i);
  CHECK(i.io == i.alone && i.ngroup == 2);
  ein_fusion_destroy(x);
  x = fuse("input a[], b[]\nY = a[]*b[]\nZ = Y[]+1", 4, &i);
  CHECK(i.ngroup == 1 && i.io == 3);
  ein_fusion_destroy(x);
  // Too small for any block.
  x = fuse("input A[i=9,j=9], B[j,k=9]\nY[i,k] = A[i,j]*B[j,k]", 1, &i);
  CHECK(i.io == 4 * 729 && ein_fusion_part(x, 0, &g) && g.held == 0);
  ein_fusion_destroy(x);
  // A stored tensor that is read with a halo, and two statements that make one tensor.
  x = fuse("input X[100]\nA[i=98] = X[i]+X[i+2]\nB[i=96] = A[i]+A[i+2]\noutput A, B", 20, &i);
  CHECK(i.io >= 100 + 98 + 96 && i.io <= i.alone);
  ein_fusion_destroy(x);
  x = fuse("input Q[s=64,d=8]\nR[s,2*j] = Q[s,2*j]-Q[s,2*j+1] for j=4\n"
           "R[s,2*j+1] = Q[s,2*j]+Q[s,2*j+1] for j=4\nT[s,t=64] = R[s,d]*R[t,d]\noutput T", 2000,
           &i);
  CHECK(i.io <= i.alone && strcmp(groups(x), "R+R+T") == 0);
  ein_fusion_destroy(x);
}

static void test_errors(void) {
  ein_fusion_desc d;
  ein_fusion *x = NULL;
  ein_fusion_info i;
  ein_fusion_group q;
  ein_ctx *ctx;
  ein_graph *g = parse("input A[i=5]\nY[i] = A[i]");
  memset(&d, 0, sizeof d);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(ein_fusion_create(ctx, g, &d, &x) == EIN_ERR_ARGUMENT && x == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "fast_memory") != NULL);
  d.fast_memory = 10;
  d.work = -1;
  CHECK(ein_fusion_create(ctx, g, &d, &x) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "work") != NULL);
  CHECK(ein_fusion_create(ctx, NULL, &d, &x) != EIN_OK && x == NULL);
  CHECK(ein_fusion_create(ctx, g, NULL, &x) == EIN_ERR_ARGUMENT);
  CHECK(ein_fusion_create(ctx, g, &d, NULL) == EIN_ERR_ARGUMENT);
  CHECK(!ein_fusion_get(NULL, &i) && !ein_fusion_part(NULL, 0, &q));
  ein_fusion_destroy(NULL);
  ein_graph_destroy(g);
  // 15 statements read one, in as many ways: more groups than there is work.
  char many[2048];
  size_t n = (size_t)snprintf(many, sizeof many, "input A[i=50,j=50]\nX[i,j] = exp(A[i,j])\n");
  for (int k = 0; k < 15; k++)
    n += (size_t)snprintf(many + n, sizeof many - n, "Y%d[i] = sum[j=%d](X[i,j])\n", k, k + 20);
  g = parse(many);
  d.work = 100;
  CHECK(ein_fusion_create(ctx, g, &d, &x) == EIN_OK && ein_fusion_get(x, &i));
  CHECK(!i.proved && i.looked <= 116 && i.io <= i.alone);
  ein_fusion_destroy(x);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// Every allocation fails once: a status, and nothing is left.
static void test_memory(void) {
  ein_graph *g = parse("input X[i=20,j=20,k=20], A[j,a=9], B[k,a]\nM[j,k,a] = A[j,a]*B[k,a]\n"
                       "Y[i,a] = X[i,j,k]*M[j,k,a]\nZ[i] = sum[a](exp(Y[i,a]))\noutput Z");
  long n = 0;
  for (int done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_fusion_desc b;
    ein_ctx_desc d;
    ein_ctx *ctx;
    ein_fusion *made;
    memset(&d, 0, sizeof d);
    memset(&b, 0, sizeof b);
    b.fast_memory = 100;
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = &count;
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    count.fail_at = count.calls + n;
    const ein_status st = ein_fusion_create(ctx, g, &b, &made);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && made == NULL));
    done = st == EIN_OK;
    ein_fusion_destroy(made);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
  CHECK(n > 5);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int programs = argc > 1 ? atoi(argv[1]) : FEW(1000);
  const int partitions = argc > 2 ? atoi(argv[2]) : FEW(200);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_known();
  test_special();
  test_layers();
  test_errors();
  test_memory();
  test_counted(programs);
  test_sides(2 * partitions);
  test_partitions(partitions);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
