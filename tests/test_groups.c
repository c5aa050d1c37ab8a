// Groups of statements in blocks. Random chains of statements (points beside each other, strides,
// index values, products, rows folded and spread again, axes turned, tensors without a loop's
// index) on machines with caches of some hundred bytes; what groups give is, bit by bit, what the
// statements give one after another, on one thread and with blocks dealt out to several, and where
// memory ends.
//
//   test_groups [programs [seed]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "chains.h"
#include "check.h"

// ---- running them ----

// Parts one after another, the last one first.
static void backwards(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

typedef struct arrays {
  void *in[MOST], *out[2];
  int nin, nout;
  size_t bytes[2];
} arrays;

static double *array(const ein_tensor_info *t, size_t *bytes) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  *bytes = (size_t)n * 8;
  double *x = (double *)malloc(*bytes + 8);
  if (x == NULL) abort();
  for (int64_t k = 0; k < n; k++) x[k] = t->role == EIN_ROLE_INPUT ? (double)draw(-2, 2) : 1e300;
  return x;
}

static void fill(const ein_plan *plan, arrays *a) {
  ein_tensor_info t;
  size_t bytes;
  memset(a, 0, sizeof *a);
  while (ein_plan_input(plan, a->nin, &t)) a->in[a->nin++] = array(&t, &bytes);
  while (ein_plan_output(plan, a->nout, &t)) {
    a->out[a->nout] = array(&t, &bytes);
    a->bytes[a->nout++] = bytes;
  }
}

static void empty(arrays *a) {
  for (int i = 0; i < a->nin; i++) free(a->in[i]);
  for (int i = 0; i < a->nout; i++) free(a->out[i]);
}

static ein_ctx *machine(int width, int64_t cache, counter *count) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  ein_rates r;
  memset(&d, 0, sizeof d);
  memset(&r, 0, sizeof r);
  d.executor.width = width;
  d.executor.parallel_for = backwards;
  if (count != NULL) {
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = count;
  }
  if (ein_ctx_create(&d, &ctx) != EIN_OK) return NULL;
  r.fast_bytes = (double)cache;
  r.flops_f64 = r.flops_f32 = 1e12;
  for (int k = 0; k < EIN_MEMORY_LEVELS; k++) r.read_bw[k] = r.copy_bw[k] = 1e4;
  if (ein_ctx_rates(ctx, &r) == EIN_OK) return ctx;
  ein_ctx_destroy(ctx);
  return NULL;
}

static ein_status plan_of(ein_ctx *ctx, const char *text, int ungrouped, ein_plan **plan) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_options o;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  d.text = text;
  o.ungrouped = ungrouped;
  *plan = NULL;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st == EIN_OK) st = ein_plan_graph(ctx, g, 0, NULL, &o, plan);
  else if (st != EIN_ERR_NO_MEMORY) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  ein_graph_destroy(g);
  return st;
}

// What a plan's groups are: how many, with how many loops at most, with blocks that differ, with
// tasks that stay, with points that are computed again where blocks meet, that move less than 1.5
// times what any order must, whose folds go on from block to block, whose maps write in place.
typedef struct seen {
  int groups, loops[EINI_GROUP_LOOPS + 1], edges, stay, again, near, streams, masks, over;
} seen;

static void look(const ein_plan *p, seen *s) {
  for (int k = 0; k < p->ntask; k++) {
    const eini_group *g = p->task[k].group;
    if (p->task[k].kind != EINI_TASK_GROUP || g->nrow > 0) continue;
    s->groups++;
    s->loops[g->nloop]++;
    int edges = 0;
    double blocks = 1;
    for (int l = 0; l < g->nloop; l++) {
      edges += g->edge[l] < g->extent[l];
      blocks *= (double)eini_ceil_div(g->extent[l], g->block[l]);
    }
    s->edges += edges;
    s->streams += g->streams;
    s->over += g->in_place;
    s->masks += g->variant[0].mask != NULL;
    int mixed = 0, open = 0;
    for (int t = 0; t < g->variant[0].ntask; t++) {
      const int when = g->variant[0].when[t] & EINI_AT_ANY;
      mixed += when == EINI_AT_MIXED, open += when == EINI_AT_OPEN;
    }
    CHECK(mixed == (g->variant[0].mask != NULL) && open == mixed);
    const double least = eini_group_io(p, g);
    CHECK(g->moves >= least * (1 - 1e-9));
    s->near += g->moves < 1.5 * least;
    for (int t = 0; t < g->variant[0].ntask; t++) {
      const eini_stmt *x = g->variant[0].task[t].stmt;
      const double points = eini_points(x, NULL, 0, x->nindex);
      const int stays = (g->variant[0].when[t] & ~EINI_AT_ANY) == EINI_AT_FIRST;
      s->stay += stays;
      s->again += edges == 0 && !stays && !g->streams &&
                  g->variant[0].task[t].work * blocks > points;
    }
  }
}

// The plan's results, in new arrays with the inputs of `like`.
static int same(const ein_plan *plan, const arrays *like) {
  arrays a;
  ein_run run;
  int equal = 1;
  fill(plan, &a);
  memset(&run, 0, sizeof run);
  run.in = (const void *const *)like->in;
  run.out = a.out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  for (int o = 0; o < a.nout; o++) equal &= memcmp(a.out[o], like->out[o], like->bytes[o]) == 0;
  empty(&a);
  return equal;
}

static void test_one(const chain *c, int64_t cache, seen *s) {
  ein_ctx *ctx[3] = {machine(1, cache, NULL), machine(1, cache, NULL), machine(3, cache, NULL)};
  ein_plan *plan[3];
  ein_run run;
  arrays a;
  for (int k = 0; k < 3; k++) CHECK(plan_of(ctx[k], c->text, k == 0, &plan[k]) == EIN_OK);
  if (plan[0] != NULL && plan[1] != NULL && plan[2] != NULL) {
    fill(plan[0], &a);
    memset(&run, 0, sizeof run);
    run.in = (const void *const *)a.in;
    run.out = a.out;
    CHECK(ein_plan_execute(plan[0], &run) == EIN_OK);
    for (int k = 1; k < 3; k++) {
      const int equal = same(plan[k], &a);
      if (!equal) {
        static char said[1 << 15];
        ein_plan_explain(plan[k], said, sizeof said);
        printf("cache of %d bytes, plan %d\n%s%s\n", (int)cache, k, c->text, said);
      }
      CHECK(equal);
    }
    look(plan[1], s);
    empty(&a);
  }
  for (int k = 0; k < 3; k++) {
    ein_plan_destroy(plan[k]);
    ein_ctx_destroy(ctx[k]);
  }
}

// Every allocation of a plan with groups fails once, and nothing is lost.
static void test_memory(const chain *c, int64_t cache) {
  int done = 0;
  for (long n = 0; n < 4000 && !done; n++) {
    counter count = {0, n, 0};
    ein_plan *plan = NULL;
    ein_ctx *ctx = machine(1, cache, &count);
    const ein_status st = ctx == NULL ? EIN_ERR_NO_MEMORY : plan_of(ctx, c->text, 0, &plan);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && plan == NULL));
    done = st == EIN_OK && count.calls <= n;
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
  CHECK(done);
}

// The last block of a fold that goes on has nothing of it, but what follows the fold: T3 reads nine
// of eleven k.
static void test_nothing_left(seen *s) {
  chain c;
  memset(&c, 0, sizeof c);
  put(&c, "input T0[8,7,11], T4[9,7]\nT1[i,j] = max[k](T0[i,j,k])\n"
          "T2[i,j,k] = T0[i,j,k] - T1[i,j]\n"
          "T3[i=3,j,k=9] = T2[2*i,j,k] - T2[2*i+2,j,k] + T2[2*i,j,k]\n"
          "T5[i,j,n] = sum[k](T3[i,j,k] * T4[k,n])\nT6[j,i,k] = T5[i,j,k] * 2\n"
          "T7[i=5,j=3,k=3] = T6[i,j,2*k] + T6[i+2,j,2*k] + T6[i+2,j,2*k+1]\n"
          "T8[i,j] = max[k](T7[i,j,k])\nT9[i,j,k] = T7[i,j,k] - T8[i,j]\noutput T9\n");
  test_one(&c, 8192, s);
}

// ---- softmax ----

// Sums of exp(x - max) and what is made of them: with masks, products, several heads, the maximum
// and the sum as results.
static void write_softmax(chain *c) {
  static const char *const masks[] = {"X[b,s,t]", "where(t <= s, X[b,s,t], -inf)",
                                      "where(t > 2*s, -inf, X[b,s,t]) * 0.5",
                                      "where(s < 3, -inf, X[b,s,t])",
                                      "where(t <= s and s - t < 4, X[b,s,t], -inf)",
                                      "where(t > s or t + 5 < s, -inf, X[b,s,t])",
                                      "where(t <= s, where(s <= t + 3, X[b,s,t], -inf), -inf)",
                                      "where(t >= s + 4 and t < 9 + s, X[b,s,t], -inf)",
                                      "where(not (t > s) and W[t] > 0, X[b,s,t], -inf)",
                                      "where(2*t == s + 4, X[b,s,t], -inf)",
                                      "where(t != s + 1 or b > 0, -inf, X[b,s,t])"};
  static const char *const made[] = {"W[t] * E[b,s,t]", "W[t] * E[b,s,t]^3", "E[b,s,t]^3 * W[t]",
                                     "W[t] * E[b,s,t]^2", "E[b,s,t] * E[b,s,t]"};
  const int product = pick(2), scaled = pick(2), ends = pick(4), t = 3 + pick(30);
  const int some = pick(4) == 0 ? 1 + pick(t) : t;  // of the t
  memset(c, 0, sizeof *c);
  put(c, "input Q[b=%d,s=%d,d=%d], K[b,t=%d,d], V[b,t,e=%d], W[t]\n", 1 + pick(3), 2 + pick(12),
      1 + pick(5), t, 1 + pick(6));
  put(c, product ? "X[b,s,t] = sum[d](Q[b,s,d] * K[b,t,d])\n"
                 : "X[b,s,t] = Q[b,s,0] - 2 * K[b,t,0]\n");
  put(c, "T[b,s,t=%d] = %s\nM[b,s] = max[t](T[b,s,t])\nE[b,s,t] = exp(T[b,s,t] - M[b,s])\n", some,
      masks[pick((int)(sizeof masks / sizeof *masks))]);
  if (scaled) put(c, "F[b,s,t=%d] = %s\n", some, made[pick(2) ? 0 : pick(5)]);
  put(c, "L[b,s] = sum[t](E[b,s,t])\nZ[b,s,e] = sum[t=%d](%s[b,s,t] * V[b,t,e])\n", some,
      scaled ? "F" : "E");
  put(c, "Y[b,s,e] = Z[b,s,e] / L[b,s]\n");
  if (ends == 1) put(c, "N[b,s] = M[b,s] + log(L[b,s])\n");
  put(c, "output Y%s\n", ends == 1 ? ", N" : ends == 2 ? ", L" : ends == 3 ? ", M" : "");
}

static int alike(const double *x, const double *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const double apart = x[i] > y[i] ? x[i] - y[i] : y[i] - x[i];
    const double least = 1e-12 * (1 + (y[i] < 0 ? -y[i] : y[i]));
    if (x[i] != x[i] ? y[i] == y[i] : x[i] != y[i] && !(apart <= least)) return 0;
  }
  return 1;
}

// What groups give is what statements give one after another, but for rounding: infinities and NaN
// are in the same places.
static void test_softmax(const chain *c, int64_t cache, seen *s) {
  static const double odd[] = {1e300 * 1e10, -1e300 * 1e10, 0, 700, -700};
  ein_ctx *ctx[3] = {machine(1, cache, NULL), machine(1, cache, NULL), machine(3, cache, NULL)};
  ein_plan *plan[3];
  ein_run run;
  arrays a, b;
  for (int k = 0; k < 3; k++) CHECK(plan_of(ctx[k], c->text, k == 0, &plan[k]) == EIN_OK);
  for (int k = 1; k < 3 && plan[0] != NULL && plan[k] != NULL; k++) {
    fill(plan[0], &a);
    fill(plan[k], &b);
    if (pick(3) == 0) ((double *)a.in[pick(a.nin)])[pick(2)] = odd[pick(5)];
    if (pick(9) == 0) ((double *)a.in[pick(a.nin)])[pick(2)] = odd[0] - odd[0];
    memset(&run, 0, sizeof run);
    run.in = (const void *const *)a.in;
    run.out = a.out;
    CHECK(ein_plan_execute(plan[0], &run) == EIN_OK);
    run.out = b.out;
    CHECK(ein_plan_execute(plan[k], &run) == EIN_OK);
    for (int o = 0; o < a.nout; o++) {
      const int same = alike((double *)b.out[o], (double *)a.out[o], a.bytes[o] / 8);
      if (!same) printf("cache of %d bytes, plan %d, output %d\n%s\n", (int)cache, k, o, c->text);
      CHECK(same);
    }
    look(plan[k], s);
    empty(&a);
    empty(&b);
  }
  for (int k = 0; k < 3; k++) {
    ein_plan_destroy(plan[k]);
    ein_ctx_destroy(ctx[k]);
  }
}

static void test_softmaxes(int count) {
  seen s;
  memset(&s, 0, sizeof s);
  for (int i = 0; i < count; i++) {
    chain c;
    write_softmax(&c);
    const int64_t cache = (int64_t)256 << pick(6);
    const int before = s.streams;
    test_softmax(&c, cache, &s);
    if (s.streams > before && i % (count / 8 + 1) == 0) test_memory(&c, cache);
  }
  printf("%d programs with softmax: %d groups, %d with folds that go on, %d leave out what a mask "
         "does, %d write over what they read\n", count, s.groups, s.streams, s.masks, s.over);
  // most need more than the search finds
  CHECK(s.streams > count / 4 && s.masks > count / 20 && s.over > count / 10);
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(3000);
  const unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  rng_state = seed;
  seen s;
  memset(&s, 0, sizeof s);
  for (int i = 0; i < count; i++) {
    chain c;
    write_chain(&c);
    const int64_t cache = (int64_t)128 << pick(7);
    const int before = s.groups;
    test_one(&c, cache, &s);
    if (s.groups > before && i % (count / 8 + 1) == 0) test_memory(&c, cache);
  }
  printf("%d programs, seed %llu: %d groups, of 1, 2, 3, 4 loops %d %d %d %d, %d loops with "
         "another last block, %d tasks that stay, %d compute again, %d near the bound, %d with "
         "folds that go on\n",
         count, seed, s.groups, s.loops[1], s.loops[2], s.loops[3], s.loops[4], s.edges, s.stay,
         s.again, s.near, s.streams);
  CHECK(s.groups > count / 20 && s.loops[1] > 0 && s.loops[2] > 0 && s.edges > 0 && s.stay > 0 &&
        s.again > 0 && s.near > s.groups / 4 && s.streams > 0);
  memset(&s, 0, sizeof s);
  test_nothing_left(&s);
  CHECK(s.streams == 1);
  test_softmaxes(count);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
