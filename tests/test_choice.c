// What the planner decides when it knows the rates of a machine: one pass or pairs, groups, leaves,
// and the same plan for every order of operands. The provider promises fixed times, so that
// nothing here depends on the machine that runs it. Results are compared in test_kernels.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "util.h"
#include "naive_kernels.h"

static int checks, failures;

// A microsecond a call, and 200 GFLOP/s or 40 GB/s from memory, ten times that from the cache.
static int model_plan(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  double b = (double)eini_axes_size(&c->batch), m = (double)eini_axes_size(&c->m);
  double n = (double)eini_axes_size(&c->n), k = (double)eini_axes_size(&c->k);
  double bytes = 8 * b * (m * k + k * n + m * n);
  if (!naive_contract_plan(user, c, width, nth, h)) return 0;
  double compute = 2 * b * m * n * k / 2e11, memory = bytes / (bytes > 1 << 20 ? 4e10 : 4e11);
  h->seconds = 1e-6 + (compute > memory ? compute : memory);
  return 1;
}

// NAME=EXTENT of every label, into a table.
static void read_sizes(const char *text, int64_t *size) {
  while (*text != 0) {
    char *end;
    size[(unsigned char)text[0]] = strtoll(text + 2, &end, 10);
    text = *end == ',' ? end + 1 : end;
  }
}

// Shape of the labels from *text on; *text stands after them.
static int read_shape(const char **text, const int64_t *size, int64_t *shape) {
  int rank = 0;
  while (**text != 0 && **text != ',' && **text != '-')
    shape[rank++] = size[(unsigned char)*(*text)++];
  return rank;
}

static ein_plan *plan_by(ein_ctx *ctx, const char *expr, const char *sizes, const char *path,
                         int beta) {
  int64_t size[256] = {0}, shape[9][8];
  ein_ztensor view[9];
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  const char *at = expr;
  memset(view, 0, sizeof view);
  memset(&d, 0, sizeof d);
  read_sizes(sizes, size);
  for (int k = 0;; k++) {
    view[k].dtype = EIN_F64;
    view[k].rank = read_shape(&at, size, shape[k]);
    view[k].shape = shape[k];
    if (*at == 0) {
      d.out = &view[k];
      d.nin = k;
      break;
    }
    at += *at == ',' ? 1 : 2;
  }
  d.expr = expr;
  d.in = view;
  d.options.path = path;
  d.alpha.set = d.beta.set = beta;
  const ein_status st = ein_plan_create(ctx, &d, &plan);
  if (st != EIN_OK && st != EIN_ERR_NO_MEMORY) printf("%s\n", ein_ctx_message(ctx));
  return plan;
}

static ein_plan *plan_of(ein_ctx *ctx, const char *expr, const char *sizes) {
  return plan_by(ctx, expr, sizes, NULL, 0);
}

// Does the explained plan say it? The plan is freed.
static void says(ein_plan *plan, const char *what, int yes, const char *name) {
  static char text[1 << 16];
  text[0] = 0;
  if (plan != NULL) ein_plan_explain(plan, text, sizeof text);
  ein_plan_destroy(plan);
  checks++;
  if (text[0] != 0 && (strstr(text, what) != NULL) == yes) return;
  failures++;
  printf("FAIL %s: \"%s\" is %s in\n%s\n", name, what, yes ? "missing" : "not wanted", text);
}

static void test_strings(ein_ctx *ctx, ein_ctx *blind) {
  static const struct {
    const char *expr, *sizes, *what;
    int yes;
  } c[] = {
      // MTTKRP in any mode: no Khatri-Rao product, no tensor of intermediate results
      {"ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", "path: one pass", 1},
      {"ijk,ia,ka->ja", "i=200,j=200,k=200,a=20", "path: one pass", 1},
      {"ja,ijk,ia->ka", "i=200,j=200,k=200,a=20", "path: one pass", 1},
      // a chain of matrices has nothing to gain from one pass
      {"ij,jk,kl->il", "i=200,j=200,k=200,l=200", "path: one pass", 0},
      // tensor times matrix in every mode: blocks of the first results stay in the cache
      {"abcde,ai,bj,ck,dl,em->ijklm", "a=40,b=40,c=40,d=40,e=40,i=9,j=9,k=9,l=9,m=9",
       "group of 3", 1},
      {"abc,ai,bj,ck->ijk", "a=400,b=400,c=400,i=8,j=8,k=8", "group of 2", 1},
      {"abc,ai,bj,ck->ijk", "a=20,b=20,c=20,i=4,j=4,k=4", "group of", 0},
      // long folds with few results are cut into leaves, short ones are not
      {"ij->", "i=2000,j=2000", "T.leaf", 1},
      {"i,i->", "i=4000000", "T.leaf", 1},
      {"ij->", "i=20,j=20", "T.leaf", 0},
      {"ij->ij", "i=2000,j=2000", "T.leaf", 0},
      // nor have small networks, whose results stay in the cache
      {"ab,bc,cd,de->ae", "a=8,b=8,c=8,d=8,e=8", "path: one pass", 0},
      {"ab,bc,cd,de->ae", "a=8,b=8,c=8,d=8,e=8", " 3072 flops", 1},
      {"abc,adf,b,ce,d,e->f", "a=6,b=6,c=6,d=6,e=3,f=3", "path: one pass", 0},
      // the choice is shown with its predictions
      {"ij,jk,kl->il", "i=200,j=200,k=200,l=200", "choice: out: as found", 1},
      {"abc,ai,bj,ck->ijk", "a=400,b=400,c=400,i=8,j=8,k=8", "before it: group ", 1},
      // a block of a batch takes its time, and so does a row of two elements
      {"bj,bj->b", "b=1000,j=2", "contract-small", 0},
      {"bj,bfej->bef", "b=8,e=3,f=3,j=2", "contract-stream", 0},
      // the only traffic is that of operands and results
      {"ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", "(temporaries 0)", 1},
  };
  for (size_t k = 0; k < sizeof c / sizeof *c; k++)
    says(plan_of(ctx, c[k].expr, c[k].sizes), c[k].what, c[k].yes, c[k].expr);
  // without rates the cheapest path in flops stands
  says(plan_of(blind, c[0].expr, c[0].sizes), "path: one pass", 0, "no rates");
  says(plan_of(blind, c[4].expr, c[4].sizes), "group of", 0, "no rates");
}

// A path asked for is taken, also where one pass is predicted to be faster.
static void test_asked(ein_ctx *ctx) {
  static const char *const paths[] = {"naive", "optimal", "dp", "greedy", "random", "(1,2) (0,1)"};
  for (int i = 0; i < 6; i++) {
    ein_plan *plan = plan_by(ctx, "ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", paths[i], 0);
    says(plan, "one pass", 0, paths[i]);
  }
  says(plan_by(ctx, "ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", "none", 0), "path: none", 1, "none");
}

// What follows a sum costs a tenth of a millisecond.
static int averse_plan(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  if (!model_plan(user, c, width, nth, h)) return 0;
  if (!c->plain_out) h->seconds = 1e-4;
  return 1;
}

// A product of factors on one side takes a second.
static int averse_join(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  if (!model_plan(user, c, width, nth, h)) return 0;
  if (c->p.nop > 1 || c->q.nop > 1) h->seconds = 1;
  return 1;
}

// Ways give way to others where the kernels say that they are slower; and nothing is lost when
// memory runs out meanwhile.
static void test_weighed(const ein_rates *rates, const char *expr, const char *sizes,
                         int (*plan_fn)(void *user, const ein_contract *c, int width, int nth,
                                        ein_choice *h),
                         const char *what, int yes) {
  ein_kernels averse = naive_kernels;
  const ein_kernels *kernels[1] = {&averse};
  counter count = {0, 0, 0};
  ein_ctx_desc desc;
  int done = 0;
  averse.rates = *rates;
  averse.contract_plan = plan_fn;
  memset(&desc, 0, sizeof desc);
  desc.nkernels = 1;
  desc.kernels = kernels;
  desc.allocator.alloc_fn = count_alloc;
  desc.allocator.free_fn = count_free;
  desc.allocator.user = &count;
  for (long n = 0; n < 2000 && !done; n++) {
    ein_ctx *ctx;
    count.calls = 0;
    count.fail_at = n;
    if (ein_ctx_create(&desc, &ctx) != EIN_OK) continue;
    ein_plan *plan = plan_by(ctx, expr, sizes, NULL, 0);
    done = plan != NULL;
    if (done) says(plan, what, yes, expr);
    ein_ctx_destroy(ctx);
    checks++;
    failures += count.live != 0;
  }
  failures += !done;
}

// Blocks in the cache take ten times as long where the output's lines are not along the side of 24,
// "apart"; whole tensors from memory take the same both ways.
static int lines_plan(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  int near = 0;
  if (!model_plan(user, c, width, nth, h)) return 0;
  if (c->m.n == 1 && c->m.extent[0] == 24) near = c->out_m[0] == 1;
  else if (c->n.n == 1 && c->n.extent[0] == 24) near = c->out_n[0] == 1;
  snprintf(h->variant, sizeof h->variant, "%s", near ? "near" : "apart");
  if (!near && h->seconds < 1e-3) h->seconds *= 10;
  return 1;
}

// What a group makes lies as its blocks are fastest, not as whole tensors would be.
static void test_group_layouts(const ein_rates *rates) {
  ein_kernels lines = naive_kernels;
  const ein_kernels *kernels[1] = {&lines};
  ein_ctx_desc desc;
  ein_ctx *ctx;
  lines.rates = *rates;
  lines.contract_plan = lines_plan;
  memset(&desc, 0, sizeof desc);
  desc.nkernels = 1;
  desc.kernels = kernels;
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) orc_die("no ctx");
  for (int k = 0; k < 2; k++)
    says(plan_of(ctx, "ijklm,jb,kc,ld,me->ibcde",
                 "i=40,j=40,k=40,l=40,m=40,b=24,c=24,d=24,e=24"),
         k ? "   0  naive-apart" : "group of 3", !k, "layouts of a group");
  ein_ctx_destroy(ctx);
}

// beta is applied where the product is stored: no room for the product itself. What a plan tried
// and did not take is no part of it.
static size_t square_room(ein_ctx *ctx, const char *sizes, int beta) {
  ein_plan *plan = plan_by(ctx, "ij,jk->ik", sizes, NULL, beta);
  if (plan == NULL) orc_die("no plan");
  size_t room = ein_plan_workspace(plan);
  failures += plan->temp_bytes != 0;
  checks++;
  ein_plan_destroy(plan);
  return room;
}

// Buffers are as long as there are values for them.
static void at_most(const char *what, size_t room, size_t most) {
  checks++;
  if (room <= most) return;
  failures++;
  printf("FAIL %s takes %zu bytes, not %zu\n", what, room, most);
}

static void test_room(ein_ctx *blind) {
  static const char small[] = "i=3,j=3,k=3", large[] = "i=300,j=300,k=300";
  const size_t bare = square_room(blind, large, 0);
  at_most("beta of 300x300", square_room(blind, large, 1) - bare, 8192);
  at_most("3x3", square_room(blind, small, 0), 1024);
  at_most("3x3 with beta", square_room(blind, small, 1), 1024);
  // so it is where nothing is folded
  static const char *const maps[] = {"ij->ij", "ij->ji", "ij,ij->ji", "i,j->ij"};
  for (int i = 0; i < 4; i++) {
    ein_plan *plan = plan_by(blind, maps[i], "i=300,j=300", NULL, 1);
    if (plan == NULL) orc_die("no plan");
    at_most(maps[i], ein_plan_workspace(plan), 65536);
    ein_plan_destroy(plan);
  }
  ein_plan *tried = plan_by(blind, "ij,ij->i", "i=3,j=3", NULL, 0);
  if (tried == NULL) orc_die("no plan");
  at_most("a sum of 3x3", ein_plan_workspace(tried), 6144);
  ein_plan_destroy(tried);
}

// A group that is tried and not taken leaves the plan as it was.
static void test_rollback(void) {
  eini_arena a;
  eini_arena_init(&a, NULL);
  for (int i = 0; i < 50; i++) {
    if (eini_new(&a, 37, 8) == NULL) orc_die("out of memory");
    const eini_arena_at at = eini_arena_mark(&a);
    size_t total = a.total, used = a.head->used;
    char *last = (char *)eini_new(&a, 16, 1);
    for (int k = 0; k < i; k++)
      if (eini_new(&a, 5000 * (1 + k % 3), 1) == NULL) orc_die("out of memory");
    eini_arena_rollback(&a, &at);
    checks++;
    int same = a.total == total && a.head->used == used && eini_new(&a, 16, 1) == (void *)last;
    failures += !same;
    if (!same) printf("FAIL rollback %d\n", i);
  }
  eini_arena_free(&a);
}

static ein_plan *program_of(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) == EIN_OK) ein_plan_graph(ctx, g, 0, NULL, NULL, &plan);
  else printf("%s\n", ein_ctx_message(ctx));
  ein_graph_destroy(g);
  return plan;
}

// Pairs of a fold and a map that real numbers have kernels for.
static void test_pairs(ein_ctx *ctx) {
  static const char *const maps[] = {
      "min[j](A[i,j]+B[j,k])", "max[j](A[i,j]+B[j,k])", "sum[j]((A[i,j]-B[j,k])^2)",
      "sum[j](abs(A[i,j]-B[j,k]))", "max[j](abs(A[i,j]-B[j,k]))"};
  for (int i = 0; i < 5; i++) {
    char text[200];
    snprintf(text, sizeof text, "input A[i=64,j=64], B[j,k=64] : f64\nY[i,k] = %s\noutput Y\n",
             maps[i]);
    says(program_of(ctx, text), "naive-loops", 1, maps[i]);
  }
}

#define ATTENTION "input Q[s=2048,d=64], K[t=2048,d], V[t,e=64] : f32\n"

static void test_attention(ein_ctx *ctx) {
  static const char apart[] =
      ATTENTION "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
      "P[s,t] = softmax[t](T[s,t])\nY[s,e] = sum[t](P[s,t] * V[t,e])\noutput Y : f32\n";
  // what divides the whole sum must not keep the product from the kernels
  static const char within[] =
      ATTENTION "T[s,t] = Q[s,d] * K[t,d] / sqrt(size(d))\n"
      "Y[s,e] = sum[t](softmax[t](T[s,t]) * V[t,e])\noutput Y : f32\n";
  // nor may a divisor that is summed over leave the sum
  static const char other[] =
      ATTENTION "Z[s] = sum[d](Q[s,d] / K[s,d])\nW[s] = sum[d](Q[s,d] / (1 + d))\noutput Z, W\n";
  // an epilogue that reads index values keeps the product from the kernels too: it stays apart
  static const char masked[] =
      ATTENTION "Y[s,t] = where(t <= s, sum[d](Q[s,d] * K[t,d]) / sqrt(size(d)), -inf)\n"
      "Z[s] = sum[d](Q[s,d]) * s\noutput Y, Z\n";
  says(program_of(ctx, apart), "group of", 1, "attention");
  says(program_of(ctx, masked), "map-reduce", 0, "masked product");
  says(program_of(ctx, within), "sum[d=64](Q[s,d]*K[t,d]), then T", 1, "scaled product");
  says(program_of(ctx, within), "*V[t,e]), then Y", 1, "normalised product");
  says(program_of(ctx, other), "sum[d=64](Q[s,d]/K[s,d])", 1, "quotients");
  says(program_of(ctx, other), "sum[d=64](Q[s,d]/(1+d))", 1, "quotients by an index");
}

// Plans of one problem as JSON, its operands in both orders and its labels renamed.
static void test_orders(ein_ctx *ctx) {
  static const char *const expr[] = {"adb,cd->cba", "cd,adb->cba"};
  static char json[2][1 << 14];
  for (int k = 0; k < 2; k++) {
    ein_plan *plan = plan_of(ctx, expr[k], "a=48,b=40,c=32,d=24");
    json[k][0] = 0;
    if (plan != NULL) ein_plan_json(plan, json[k], sizeof json[k]);
    ein_plan_destroy(plan);
  }
  for (int k = 0; k < 2; k++) {  // what follows names the operands
    char *end = strstr(json[k], "\"einsum\"");
    if (end != NULL) *end = 0;
  }
  checks++;
  if (json[0][0] != 0 && strcmp(json[0], json[1]) == 0) return;
  failures++;
  printf("FAIL orders of operands:\n%s\n%s\n", json[0], json[1]);
}

// Processor seconds of planning a program of one kind and length; -1 when that fails.
static double long_seconds(ein_ctx *ctx, int kind, int length) {
  enum { ROOM = 1 << 20 };
  char *text = (char *)malloc(ROOM);
  if (text == NULL) orc_die("no memory");
  int n = snprintf(text, ROOM, "input X[i=%d] : f64\nY0[i=4] = X[i]\nS0 = 0*sum[i](X[i])\n",
                   length + 4);
  if (kind == 2) n += snprintf(text + n, ROOM - (size_t)n, "S = sum[i=4](0");
  for (int k = 0; k < length; k++) {
    const size_t room = ROOM - (size_t)n;
    if (kind == 0) n += snprintf(text + n, room, "Y%d[i] = Y%d[i]*Y%d[i]\n", k + 1, k, k);
    if (kind == 1) n += snprintf(text + n, room, "S%d = S%d + sum[i](X[i])\n", k + 1, k);
    if (kind == 2) n += snprintf(text + n, room, "+%d*X[i+%d]", k, k);
  }
  if (kind == 0) n += snprintf(text + n, ROOM - (size_t)n, "S = sum[i](Y%d[i])", length);
  if (kind == 1) n += snprintf(text + n, ROOM - (size_t)n, "S = 2*S%d", length);
  if (kind == 2) n += snprintf(text + n, ROOM - (size_t)n, ")");
  snprintf(text + n, ROOM - (size_t)n, "\ngrad S wrt X as G\noutput S, G\n");
  clock_t start = clock();
  ein_plan *plan = program_of(ctx, text);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (plan == NULL) seconds = -1;
  ein_plan_destroy(plan);
  free(text);
  return seconds;
}

// Long programs with gradients take time in proportion to their length: a chain, one tensor that
// many statements read, and one statement that reads it often. Twenty times the length takes twenty
// times as long, and some more for the caches, where its square would take 400 times; the least of
// three counts.
static void test_long(ein_ctx *ctx) {
  static const char *const name[] = {"a chain", "many readers", "one reader"};
  for (int kind = 0; kind < 3; kind++) {
    double least[2] = {HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < 6; i++) {
      const double seconds = long_seconds(ctx, kind, i % 2 ? 8000 : 400);
      if (seconds < least[i % 2]) least[i % 2] = seconds;
    }
    checks++;
    if (least[0] >= 0 && least[1] >= 0 && least[1] < 250 * least[0] + 0.05) continue;
    failures++;
    printf("FAIL %s: %g s, a twentieth of it %g s\n", name[kind], least[1], least[0]);
  }
}

int main(void) {
  ein_kernels model = naive_kernels;
  const ein_kernels *kernels[1] = {&model};
  ein_ctx_desc desc;
  ein_ctx *ctx, *blind;
  ein_rates rates;
  memset(&rates, 0, sizeof rates);
  rates.flops_f64 = rates.flops_f32 = 2e11;
  rates.read_bw[EIN_MEMORY] = 4e10, rates.copy_bw[EIN_MEMORY] = 5e10;
  rates.fast_bytes = 1 << 20;
  model.rates = rates;
  model.contract_plan = model_plan;
  memset(&desc, 0, sizeof desc);
  if (ein_ctx_create(&desc, &blind) != EIN_OK) orc_die("no ctx");
  desc.nkernels = 1;
  desc.kernels = kernels;
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) orc_die("no ctx");
  test_strings(ctx, blind);
  test_pairs(ctx);
  test_attention(ctx);
  test_orders(ctx);
  test_long(ctx);
  test_asked(ctx);
  // pairs as found, which end in a product after a sum
  test_weighed(&rates, "ce,cdf,abce,bdf->ce", "a=8,b=6,c=16,d=6,e=16,f=2", averse_plan,
               "path: left to right,", 1);
  // one pass, of whatever length
  test_weighed(&rates, "ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", averse_join, "one pass,", 0);
  test_weighed(&rates, "ijk,ja,ka->ia", "i=200,j=200,k=200,a=20", model_plan, "path: one pass", 1);
  test_group_layouts(&rates);
  test_room(blind);
  test_rollback();
  ein_ctx_destroy(ctx);
  ein_ctx_destroy(blind);
  printf("choice: %d checks, %d failed\n", checks, failures);
  return failures > 0;
}
