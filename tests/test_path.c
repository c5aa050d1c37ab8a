// Contraction order: costs against a direct count, optimality against brute force, edge cases.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(cond)                                                  \
  do {                                                               \
    if (!(cond)) {                                                   \
      failures++;                                                    \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);      \
    }                                                                \
  } while (0)

typedef struct problem {
  eini_net net;
  int64_t extent[4096];
  int start[512];
  int labels[4096];
} problem;

static void bind(problem *p) {
  p->net.extent = p->extent;
  p->net.start = p->start;
  p->net.labels = p->labels;
}

// Letters are labels in order of their code; every extent is `extent`, or 2 + letter % 5 if 0.
static void parse(problem *p, const char *s, int extent) {
  int id[128], term = 0, at = 0, n = 0;
  for (int c = 0; c < 128; c++) {
    id[c] = -1;
    if (c >= 'A' && strchr(s, c) != NULL) {
      p->extent[n] = extent > 0 ? extent : 2 + c % 5;
      id[c] = n++;
    }
  }
  p->net.nlabel = n;
  p->start[0] = 0;
  unsigned char has[128];
  memset(has, 0, sizeof has);
  for (;; s++) {
    if (*s >= 'A') {
      has[(unsigned char)*s] = 1;
      continue;
    }
    for (int c = 0; c < 128; c++) {
      if (has[c]) p->labels[at++] = id[c];
      has[c] = 0;
    }
    p->start[++term] = at;
    if (*s == '-') s++;
    if (*s == '\0') break;
  }
  p->net.nterm = term - 1;
  bind(p);
}

static uint64_t state = 1;

static int below(int n) { return eini_path_below(&state, n); }

// Labels in any number of terms, some in the output; extents from lo to hi.
static void random_problem(problem *p, int n, int nlabel, int lo, int hi) {
  int at = 0;
  static unsigned char has[64][256];
  memset(has, 0, sizeof has);
  for (int l = 0; l < nlabel; l++) {
    p->extent[l] = lo + below(hi - lo + 1);
    int kind = below(10), count = kind < 6 ? 2 : kind < 8 ? 1 : 3 + below(2);
    for (int i = 0; i < count; i++) has[below(n)][l] = 1;
    if (below(4) == 0) has[n][l] = 1;
  }
  if (below(4) == 0 && n > 1) memcpy(has[0], has[1], sizeof has[0]);
  if (below(4) == 0) memset(has[below(n)], 0, sizeof has[0]);
  for (int l = 0; l < nlabel; l++) {  // the output has labels of operands only
    int any = 0;
    for (int t = 0; t < n; t++) any |= has[t][l];
    has[n][l] = (unsigned char)(has[n][l] && any);
  }
  for (int t = 0; t <= n; t++) {
    p->start[t] = at;
    for (int l = 0; l < nlabel; l++) {
      if (has[t][l]) p->labels[at++] = l;
    }
  }
  p->start[n + 1] = at;
  p->net.nterm = n;
  p->net.nlabel = nlabel;
  bind(p);
}

// ---- costs, directly ----

typedef struct term {
  unsigned char has[256];
} term;

static term terms[600];

static double product(const problem *p, const term *t) {
  double r = 1;
  for (int l = 0; l < p->net.nlabel; l++) {
    if (t->has[l]) r *= (double)p->extent[l];
  }
  return r;
}

static int load_terms(const problem *p, term *list) {
  int n = p->net.nterm;
  memset(list, 0, (size_t)(n + 1) * sizeof *list);
  for (int t = 0; t <= n; t++) {
    for (int i = p->start[t]; i < p->start[t + 1]; i++) list[t].has[p->labels[i]] = 1;
  }
  return n;
}

// Contract positions a < b (b = -1: a alone) of the list; the result is appended.
static void contract(const problem *p, term *list, int *n, const term *out, int a, int b,
                     double cost[3]) {
  term all = list[a], result;
  double moved = product(p, &list[a]);
  int summed = 0;
  if (b >= 0) {
    moved += product(p, &list[b]);
    for (int l = 0; l < p->net.nlabel; l++) all.has[l] |= list[b].has[l];
  }
  if (b >= 0) memmove(list + b, list + b + 1, (size_t)(--*n - b) * sizeof *list);
  memmove(list + a, list + a + 1, (size_t)(--*n - a) * sizeof *list);
  memset(&result, 0, sizeof result);
  for (int l = 0; l < p->net.nlabel; l++) {
    int keep = out->has[l];
    for (int t = 0; t < *n; t++) keep |= list[t].has[l];
    result.has[l] = (unsigned char)(all.has[l] && keep);
    summed |= all.has[l] && !keep;
  }
  double size = product(p, &result);
  cost[0] += product(p, &all) * (summed ? 2 : 1);
  cost[1] = cost[1] > size ? cost[1] : size;
  cost[2] += moved + size;
  list[(*n)++] = result;
}

static int close_to(double a, double b) { return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)); }

static double of_goal(const eini_path *path, int goal) {
  return goal == EINI_GOAL_SIZE ? path->largest : goal == EINI_GOAL_BYTES ? path->moved
                                                                         : path->flops;
}

static void check_path(const problem *p, const eini_path *path) {
  int n = load_terms(p, terms), first = n;
  term out = terms[n];
  double cost[3] = {0, 0, 0};
  CHECK(path->nstep == (n <= 1 ? n : n - 1) && path->method != NULL);
  for (int i = 0; i < path->nstep; i++) {
    const int *at = path->pos + path->first[i], m = path->first[i + 1] - path->first[i];
    CHECK(m == (first == 1 ? 1 : 2) && at[0] >= 0 && at[0] < n);
    CHECK(m == 1 || (at[1] > at[0] && at[1] < n));
    contract(p, terms, &n, &out, at[0], m == 1 ? -1 : at[1], cost);
  }
  CHECK(first == 0 || n == 1);
  CHECK(close_to(cost[0], path->flops));
  CHECK(close_to(cost[1], path->largest));
  CHECK(close_to(cost[2], path->moved));
}

// ---- brute force ----

static void brute(const problem *p, const term *list, int n, const term *out, const double cost[3],
                  int connected, double best[3]) {
  if (n == 1) {
    for (int g = 0; g < 3; g++) best[g] = cost[g] < best[g] ? cost[g] : best[g];
    return;
  }
  for (int b = 1; b < n; b++) {
    for (int a = 0; a < b; a++) {
      term next[8];
      double c[3];
      int m = n, shared = 0, a_open = 0, b_open = 0;
      for (int l = 0; l < p->net.nlabel; l++) {
        shared |= list[a].has[l] && list[b].has[l];
        for (int t = 0; t < n; t++) {
          a_open |= t != a && list[a].has[l] && list[t].has[l];
          b_open |= t != b && list[b].has[l] && list[t].has[l];
        }
      }
      if (connected && !shared && (a_open || b_open)) continue;
      memcpy(next, list, (size_t)n * sizeof *list);
      memcpy(c, cost, sizeof c);
      contract(p, next, &m, out, a, b, c);
      brute(p, next, m, out, c, connected, best);
    }
  }
}

static ein_status find(eini_arena *arena, const problem *p, eini_path_algo algo, int goal,
                       int64_t steps, uint64_t seed, eini_path *path) {
  eini_path_opts o;
  memset(&o, 0, sizeof o);
  o.algo = algo;
  o.goal = (eini_path_goal)goal;
  o.steps = steps;
  o.seed = seed;
  return eini_path_find(arena, &p->net, &o, path);
}

static const eini_path_algo algos[] = {EINI_PATH_AUTO, EINI_PATH_NAIVE,  EINI_PATH_OPTIMAL,
                                       EINI_PATH_DP,   EINI_PATH_GREEDY, EINI_PATH_RANDOM};

// Every algorithm gives a path whose costs are right, and is not worse than left to right.
static void check_all(const problem *p, int64_t steps) {
  for (int goal = 0; goal < 3; goal++) {
    double naive = 0;
    for (int i = 1; i < 7; i++) {
      eini_arena arena;
      eini_path path;
      eini_arena_init(&arena, NULL);
      CHECK(find(&arena, p, algos[i % 6], goal, steps, 7, &path) == EIN_OK);
      check_path(p, &path);
      CHECK(path.nstep < 2 || algos[i % 6] != EINI_PATH_GREEDY ||
            strstr("greedy left to right right to left", path.method) != NULL);
      if (i == 1) naive = of_goal(&path, goal);
      CHECK(of_goal(&path, goal) <= naive);
      eini_path copy = path;
      int bad;
      CHECK(eini_path_cost(&arena, &p->net, &copy, &bad) == EIN_OK);
      CHECK(close_to(copy.flops, path.flops) && close_to(copy.moved, path.moved));
      eini_arena_free(&arena);
    }
  }
}

static void test_brute(void) {
  static problem p;
  for (int round = 0; round < 150; round++) {
    int n = 2 + below(round % 10 == 0 ? 5 : 4), lo = below(4) == 0 ? below(2) : 2;
    random_problem(&p, n, 1 + below(9), lo, 5);
    term list[8], out;
    double none[3] = {0, 0, 0}, best[3] = {1e300, 1e300, 1e300}, near[3] = {1e300, 1e300, 1e300};
    load_terms(&p, list);
    out = list[n];
    brute(&p, list, n, &out, none, 0, best);
    brute(&p, list, n, &out, none, 1, near);
    for (int goal = 0; goal < 3; goal++) {
      eini_arena arena;
      eini_path path;
      eini_arena_init(&arena, NULL);
      CHECK(find(&arena, &p, EINI_PATH_OPTIMAL, goal, 0, 1, &path) == EIN_OK);
      CHECK(close_to(of_goal(&path, goal), best[goal]));
      CHECK(path.proved == 1);
      CHECK(find(&arena, &p, EINI_PATH_DP, goal, 0, 1, &path) == EIN_OK);
      CHECK(of_goal(&path, goal) <= near[goal] * (1 + 1e-9));
      CHECK(of_goal(&path, goal) >= best[goal] * (1 - 1e-9));
      CHECK(n <= 2 || path.proved == 2);
      eini_arena_free(&arena);
    }
    check_all(&p, 200000);
  }
  // Larger ones: the costs are right, and the exact searches agree where they should.
  for (int round = 0; round < 25; round++) {
    random_problem(&p, 7 + below(20), 10 + below(40), round % 5 == 0 ? 0 : 1, 4);
    check_all(&p, 1000000);
  }
}

// A ring with chords of extents of at least 2: no outer product helps.
static void test_exact_agree(void) {
  static problem p;
  for (int n = 4; n <= 14; n += 2) {
    eini_arena arena;
    eini_path a, b;
    int at = 0;
    for (int t = 0; t < n; t++) {  // label t joins t and t+1, label n+t/2 joins t and t+1 again
      p.start[t] = at;
      int l0 = t == 0 ? 0 : t - 1, l1 = t == 0 ? n - 1 : t;
      p.labels[at++] = l0;
      p.labels[at++] = l1;
      p.labels[at++] = n + t / 2;
      p.extent[t] = 4 + t % 3;
      p.extent[n + t / 2] = 3;
    }
    p.start[n] = p.start[n + 1] = at;
    p.net.nterm = n;
    p.net.nlabel = n + n / 2;
    bind(&p);
    eini_arena_init(&arena, NULL);
    for (int goal = 0; goal < 3; goal++) {
      CHECK(find(&arena, &p, EINI_PATH_OPTIMAL, goal, 0, 1, &a) == EIN_OK);
      CHECK(find(&arena, &p, EINI_PATH_DP, goal, 0, 1, &b) == EIN_OK);
      CHECK(a.proved == 1 && b.proved == 2);
      CHECK(close_to(of_goal(&a, goal), of_goal(&b, goal)));
    }
    eini_arena_free(&arena);
  }
}

// A chain, whose optimum interval dynamic programming knows.
static void test_chain(void) {
  static problem p;
  static double c[130][130];
  for (int n = 3; n <= 120; n += 13) {
    eini_arena arena;
    eini_path path;
    for (int l = 0; l <= n; l++) p.extent[l] = 2 + below(30);
    for (int t = 0; t < n; t++) {
      p.start[t] = 2 * t;
      p.labels[2 * t] = t;
      p.labels[2 * t + 1] = t + 1;
    }
    p.start[n] = 2 * n;
    p.labels[2 * n] = 0;
    p.labels[2 * n + 1] = n;
    p.start[n + 1] = 2 * n + 2;
    p.net.nterm = n;
    p.net.nlabel = n + 1;
    bind(&p);
    for (int len = 1; len <= n; len++) {
      for (int i = 0; i + len <= n; i++) {
        c[i][i + len] = len == 1 ? 0 : 1e300;
        for (int k = i + 1; k < i + len; k++) {
          double x = c[i][k] + c[k][i + len] +
                     2.0 * (double)p.extent[i] * (double)p.extent[k] * (double)p.extent[i + len];
          if (x < c[i][i + len]) c[i][i + len] = x;
        }
      }
    }
    eini_arena_init(&arena, NULL);
    CHECK(find(&arena, &p, EINI_PATH_AUTO, 0, 0, 1, &path) == EIN_OK);
    CHECK(path.flops <= c[0][n] * 1.01 && path.flops >= c[0][n] * (1 - 1e-12));
    if (n <= 64) {
      CHECK(find(&arena, &p, EINI_PATH_DP, 0, 0, 1, &path) == EIN_OK);
      CHECK(close_to(path.flops, c[0][n]) && path.proved == 2);
    }
    eini_arena_free(&arena);
  }
}

static void test_strings(void) {
  static const char *const s[] = {"a,b,c,d,e,ab,ac,ad,bc,bd,cd,ce->",
                                  "ij,j,jk->",
                                  "a,c,d,db,ab,cb,ac,cd,ad,b->dbc",
                                  "abcdefghijklmn,nopqrstuvwxyzAB,aB->bA",
                                  ("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm,mn,no,op,pq,qr,rs,st,tu,"
                                   "uv,vw,wx,xy,yz,zA,AB->aB"),
                                  "cq,cqje,rji,cqik,cqlf,slk->cresf",
                                  "",
                                  "->",
                                  ",,,,->",
                                  "ab->",
                                  "ab,ab,ab,ab->ab",
                                  "ab,cd,ef,gh->aceg",
                                  "a,ab,abc,abcd,abcde,abcdef,abcdefg->bdf"};
  static problem p;
  for (size_t i = 0; i < sizeof s / sizeof s[0]; i++) {
    eini_arena arena;
    eini_path a, b;
    for (int extent = 0; extent < 3; extent += 2) {
      parse(&p, s[i], extent);
      check_all(&p, 2000000);
      eini_arena_init(&arena, NULL);
      CHECK(find(&arena, &p, EINI_PATH_OPTIMAL, 0, 0, 1, &a) == EIN_OK);
      CHECK(find(&arena, &p, EINI_PATH_GREEDY, 0, 0, 1, &b) == EIN_OK);
      CHECK(a.flops <= b.flops && a.proved != 0);
      eini_arena_free(&arena);
    }
  }
}

static void test_user_path(void) {
  static problem p;
  static const struct {
    int n, size[4], pos[8];
    ein_status want;
    int bad;
  } paths[] = {{2, {2, 2}, {0, 1, 0, 1}, EIN_OK, -1},
               {2, {2, 2}, {2, 0, 1, 0}, EIN_OK, -1},
               {3, {1, 2, 2}, {0, 0, 1, 0, 1}, EIN_OK, -1},
               {4, {1, 1, 2, 2}, {2, 2, 0, 1, 0, 1}, EIN_OK, -1},
               {1, {3}, {2, 0, 1}, EIN_OK, -1},
               {2, {3, 1}, {2, 0, 1, 0}, EIN_OK, -1},
               {1, {2}, {0, 1}, EIN_ERR_ARGUMENT, -1},
               {3, {2, 2, 2}, {0, 1, 0, 1, 0, 1}, EIN_ERR_ARGUMENT, 5},
               {2, {2, 2}, {0, 3, 0, 1}, EIN_ERR_ARGUMENT, 1},
               {2, {2, 2}, {1, 1, 0, 1}, EIN_ERR_ARGUMENT, 1},
               {2, {2, 2}, {-1, 1, 0, 1}, EIN_ERR_ARGUMENT, 0},
               {2, {2, 2}, {0, 1, 0, -2}, EIN_ERR_ARGUMENT, 3},
               {2, {3, 0}, {0, 1, 2}, EIN_ERR_ARGUMENT, -1},
               {0, {0}, {0}, EIN_ERR_ARGUMENT, -1}};
  parse(&p, "abx,bc,cd->ad", 3);
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    eini_arena arena;
    eini_path path;
    int first[5] = {0}, pos[8], bad = -7;
    memset(&path, 0, sizeof path);
    memcpy(pos, paths[i].pos, sizeof pos);
    for (int k = 0; k < 4; k++) first[k + 1] = first[k] + paths[i].size[k];
    path.nstep = paths[i].n;
    path.first = first;
    path.pos = pos;
    eini_arena_init(&arena, NULL);
    CHECK(eini_path_cost(&arena, &p.net, &path, &bad) == paths[i].want && bad == paths[i].bad);
    eini_arena_free(&arena);
    if (paths[i].want != EIN_OK) continue;
    term out;
    double cost[3] = {0, 0, 0};
    int n = load_terms(&p, terms), pairs = 1;
    out = terms[n];
    for (int k = 0; k < path.nstep; k++) {
      const int *at = pos + first[k], m = first[k + 1] - first[k];
      pairs &= m <= 2;
      if (pairs) contract(&p, terms, &n, &out, at[0], m == 1 ? -1 : at[1], cost);
    }
    if (!pairs) continue;
    CHECK(close_to(cost[0], path.flops) && close_to(cost[1], path.largest));
    CHECK(close_to(cost[2], path.moved));
  }
}

// One step of all: the size of the space, times a product for every factor but one and a sum.
static void test_one_step(void) {
  static problem p;
  for (int i = 0; i < 300; i++) {
    eini_arena arena;
    eini_path path;
    int n = 1 + below(8), pos[8], first[2], bad;
    random_problem(&p, n, 2 + below(7), 2, 3);
    double all = 1, read = 0, made = 1;
    int summed = 0;
    for (int l = 0; l < p.net.nlabel; l++) {
      int used = 0, kept = 0;
      for (int c = 0; c < p.net.start[n + 1]; c++) {
        used |= p.net.labels[c] == l && c < p.net.start[n];
        kept |= p.net.labels[c] == l && c >= p.net.start[n];
      }
      if (used) all *= (double)p.extent[l];
      if (used && kept) made *= (double)p.extent[l];
      summed |= used && !kept;
    }
    for (int k = 0; k < n; k++) {
      double size = 1;
      for (int c = p.net.start[k]; c < p.net.start[k + 1]; c++)
        size *= (double)p.extent[p.net.labels[c]];
      read += size;
      pos[k] = n - 1 - k;
    }
    memset(&path, 0, sizeof path);
    path.nstep = 1;
    path.first = first;
    path.pos = pos;
    first[0] = 0;
    first[1] = n;
    eini_arena_init(&arena, NULL);
    CHECK(eini_path_cost(&arena, &p.net, &path, &bad) == EIN_OK);
    CHECK(close_to(path.flops, all * ((n > 2 ? n - 1 : 1) + summed)));
    CHECK(close_to(path.largest, made) && close_to(path.moved, read + made));
    eini_arena_free(&arena);
  }
}

static void test_overflow(void) {
  static problem p;
  eini_arena arena;
  eini_path path;
  int bad;
  for (int e = 0; e < 2; e++) {
    for (int n = 6; n <= 60; n += 9) {
      random_problem(&p, n, 4 * n, 2, 3);
      for (int l = 0; l < p.net.nlabel; l++) {
        p.extent[l] = e == 0 || l % 3 ? (int64_t)1 << 60 : 0;
      }
      for (int i = 0; i < 6; i++) {
        eini_arena_init(&arena, NULL);
        CHECK(find(&arena, &p, algos[i], 0, 1000000, 1, &path) == EIN_OK);
        CHECK(eini_path_cost(&arena, &p.net, &path, &bad) == EIN_OK);
        eini_arena_free(&arena);
      }
    }
  }
}

static void test_same_seed(void) {
  static problem p;
  random_problem(&p, 40, 70, 2, 5);
  for (int i = 0; i < 6; i++) {
    eini_arena arena;
    eini_path a, b;
    eini_arena_init(&arena, NULL);
    CHECK(find(&arena, &p, algos[i], 0, 3000000, 5, &a) == EIN_OK);
    CHECK(find(&arena, &p, algos[i], 0, 3000000, 5, &b) == EIN_OK);
    CHECK(memcmp(a.pos, b.pos, 2 * (size_t)a.nstep * sizeof a.pos[0]) == 0);
    eini_arena_free(&arena);
  }
}

// ---- an allocator that fails, and counts ----

typedef struct counter {
  int left;
  size_t live;
} counter;

static void *count_alloc(size_t size, size_t align, void *user) {
  counter *c = (counter *)user;
  if (c->left == 0) return NULL;
  c->left--;
  c->live += size;
  return eini_default_alloc(size, align, NULL);
}

static void count_free(void *ptr, size_t size, void *user) {
  counter *c = (counter *)user;
  if (ptr == NULL) return;
  c->live -= size;
  eini_default_free(ptr, size, NULL);
}

static void test_out_of_memory(void) {
  static problem p;
  static const int sizes[] = {1, 2, 5, 13, 40};
  for (int k = 0; k < 5; k++) {
    random_problem(&p, sizes[k], 2 * sizes[k], 2, 3);
    for (int i = 0; i < 6; i++) {
      ein_status status = EIN_ERR_NO_MEMORY;
      for (int room = 0; status != EIN_OK && room < 200; room++) {
        counter c;
        ein_allocator al;
        eini_arena arena;
        eini_path path;
        c.left = room;
        c.live = 0;
        memset(&al, 0, sizeof al);
        al.alloc_fn = count_alloc;
        al.free_fn = count_free;
        al.user = &c;
        eini_arena_init(&arena, &al);
        status = find(&arena, &p, algos[i], 0, 1000000, 1, &path);
        CHECK(status == EIN_OK || status == EIN_ERR_NO_MEMORY);
        eini_arena_free(&arena);
        CHECK(c.live == 0);
      }
      CHECK(status == EIN_OK);
    }
  }
}

// ---- many operands ----

// Sorted labels of operand t of a random cubic graph; returns how many.
static int cubic_labels(const int *slot, int t, int *labels) {
  int a[3], m = 0;
  memcpy(a, slot + 3 * t, sizeof a);
  for (int i = 0; i < 3; i++) {
    int least = i;
    for (int j = i + 1; j < 3; j++) least = a[j] < a[least] ? j : least;
    int x = a[i];
    a[i] = a[least];
    a[least] = x;
    if (i == 0 || a[i] != a[i - 1]) labels[m++] = a[i];
  }
  return m;
}

// kind 0: a chain with one label in all; 1: a random cubic graph; 2: a star: one label in all and
// one of its own each. start: [n+2], labels and slot: [3n].
static void large_net(int n, int kind, int *start, int *labels, int *slot) {
  int at = 0;
  for (int i = 0; i < 3 * n; i++) slot[i] = i / 2;
  for (int i = 3 * n - 1; i > 0; i--) {
    int j = below(i + 1), t = slot[i];
    slot[i] = slot[j];
    slot[j] = t;
  }
  for (int t = 0; t < n; t++) {
    start[t] = at;
    if (kind == 1) {
      at += cubic_labels(slot, t, labels + at);
    } else {
      labels[at++] = 0;
      if (kind == 0 && t > 0) labels[at++] = t;
      labels[at++] = t + 1;
    }
  }
  start[n] = start[n + 1] = at;
}

static void test_large(int n, int kind) {
  eini_net net;
  size_t room = (size_t)(3 * n);
  net.nterm = n;
  net.nlabel = kind == 1 ? (3 * n + 1) / 2 : n + 1;
  int64_t *extent = (int64_t *)malloc((size_t)net.nlabel * sizeof(int64_t));
  int *start = (int *)malloc((size_t)(n + 2) * sizeof(int));
  int *labels = (int *)malloc(room * sizeof(int)), *slot = (int *)malloc(room * sizeof(int));
  if (extent == NULL || start == NULL || labels == NULL || slot == NULL) exit(2);
  for (int l = 0; l < net.nlabel; l++) extent[l] = 2 + below(3);
  large_net(n, kind, start, labels, slot);
  net.extent = extent;
  net.start = start;
  net.labels = labels;
  eini_path_opts o;
  memset(&o, 0, sizeof o);
  o.steps = 20000000;
  double naive = HUGE_VAL;
  static const eini_path_algo some[] = {EINI_PATH_NAIVE, EINI_PATH_GREEDY, EINI_PATH_AUTO};
  for (int i = 0; i < 3; i++) {
    eini_path path;
    eini_arena arena;
    o.algo = some[i];
    eini_arena_init(&arena, NULL);
    CHECK(eini_path_find(&arena, &net, &o, &path) == EIN_OK);
    CHECK(path.nstep == n - 1);
    if (i == 0) naive = path.flops;
    CHECK(path.flops <= naive);
    int bad;
    CHECK(eini_path_cost(&arena, &net, &path, &bad) == EIN_OK);
    eini_arena_free(&arena);
  }
  free(extent);
  free(start);
  free(labels);
  free(slot);
}

int main(void) {
  test_strings();
  test_user_path();
  test_one_step();
  test_brute();
  test_exact_agree();
  test_chain();
  test_overflow();
  test_same_seed();
  test_out_of_memory();
  for (int kind = 0; kind < 3; kind++) test_large(kind == 1 ? 8000 : 20000, kind);
  printf(failures == 0 ? "ok\n" : "%d failures\n", failures);
  return failures != 0;
}
