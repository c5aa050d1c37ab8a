// Einsums that other libraries got wrong, refused or never finished: each by every path, within
// shrinking memory budgets, and through the portable kernels, against a plain loop.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

#define MOST 12
#define RANK 20

typedef struct problem {
  const char *term[MOST + 1];
  int nin, rank[MOST + 1];
  int64_t extent[256], shape[MOST + 1][RANK], count[MOST + 1];
  double *data[MOST + 1], *want;
  ein_ztensor view[MOST + 1];
} problem;

static double *numbers(int64_t n) {
  double *p = (double *)malloc((size_t)(n > 0 ? n : 1) * sizeof *p);
  if (p == NULL) exit(1);
  for (int64_t i = 0; i < n; i++) p[i] = (double)draw(-3, 3);
  return p;
}

// sizes: pairs of a label and its extent as a digit, or of all others behind '*'.
static void open_problem(problem *p, const char *expr, const char *sizes) {
  memset(p, 0, sizeof *p);
  for (const char *s = sizes; *s; s += 2)
    for (int c = 0; c < 256 && *s == '*'; c++) p->extent[c] = s[1] - '0';
  for (const char *s = sizes; *s; s += 2) p->extent[(unsigned char)*s] = s[1] - '0';
  for (const char *s = expr;; p->nin++) {
    const int t = p->nin;
    p->term[t] = s;
    p->rank[t] = (int)strcspn(s, ",-");
    p->count[t] = 1;
    for (int a = 0; a < p->rank[t]; a++)
      p->count[t] *= p->shape[t][a] = p->extent[(unsigned char)s[a]];
    p->data[t] = numbers(p->count[t]);
    p->view[t].dtype = EIN_F64;
    p->view[t].rank = p->rank[t];
    p->view[t].shape = p->shape[t];
    p->view[t].data = p->data[t];
    s += p->rank[t];
    if (*s == 0) break;
    s += *s == '-' ? 2 : 1;
  }
}

static void close_problem(problem *p) {
  for (int t = 0; t <= p->nin; t++) free(p->data[t]);
  free(p->want);
}

// Whole numbers, so that sums are exact in every order.
static void solve(problem *p) {
  unsigned char label[256];
  int64_t x[256] = {0};
  int n = 0, empty = 0, more = 1;
  for (int c = 0; c < 256; c++) {
    int used = 0;
    for (int t = 0; t < p->nin; t++)
      for (int a = 0; a < p->rank[t]; a++) used |= (unsigned char)p->term[t][a] == c;
    if (used) label[n++] = (unsigned char)c, empty |= p->extent[c] == 0;
  }
  p->want = (double *)calloc((size_t)p->count[p->nin] + 1, sizeof(double));
  if (p->want == NULL) exit(1);
  while (more && !empty) {
    int64_t at[MOST + 1] = {0};
    double v = 1;
    for (int t = 0; t <= p->nin; t++) {
      for (int a = 0; a < p->rank[t]; a++)
        at[t] = at[t] * p->shape[t][a] + x[(unsigned char)p->term[t][a]];
      if (t < p->nin) v *= p->data[t][at[t]];
    }
    p->want[at[p->nin]] += v;
    more = 0;
    for (int l = n - 1; l >= 0 && !more; l--) {
      more = ++x[label[l]] < p->extent[label[l]];
      if (!more) x[label[l]] = 0;
    }
  }
}

static int right(const problem *p) {
  for (int64_t k = 0; k < p->count[p->nin]; k++)
    if (!(fabs(p->data[p->nin][k] - p->want[k]) <= 0)) return 0;
  return 1;
}

static ein_einsum_desc desc_of(const problem *p, const char *expr, const char *path) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = p->nin;
  d.in = p->view;
  d.out = &p->view[p->nin];
  d.options.path = path;
  return d;
}

// The same within budgets: a plan that keeps it and is right, or the least that works is named.
static void within_budgets(ein_ctx *ctx, const problem *p, const char *expr) {
  ein_einsum_desc d = desc_of(p, expr, NULL);
  size_t least = 0;
  int kept = 0;
  d.options.least = &least;
  for (size_t memory = (size_t)1 << 22; memory >= 4096; memory /= 4) {
    const void *in[MOST];
    void *out[1];
    ein_plan *plan = NULL;
    ein_run run;
    memset(&run, 0, sizeof run);
    d.options.memory = memory;
    const ein_status st = ein_plan_create(ctx, &d, &plan);
    CHECK(st == EIN_OK || (st == EIN_ERR_TOO_LARGE && least > memory));
    for (int t = 0; t < p->nin; t++) in[t] = p->data[t];
    out[0] = p->data[p->nin];
    run.in = in;
    run.out = out;
    for (int64_t k = 0; k < p->count[p->nin]; k++) p->data[p->nin][k] = 77;
    if (st == EIN_OK) CHECK(ein_plan_execute(plan, &run) == EIN_OK && right(p));
    kept += st == EIN_OK;
    ein_plan_destroy(plan);
  }
  CHECK(kept > 0);
}

// By every path, also the dear ones, within seconds; the best is no worse than the greedy one.
static void test_case(ein_ctx *ctx, const char *expr, const char *sizes) {
  static const char *const paths[] = {"auto", "optimal", "dp", "greedy", "random", "naive", "none"};
  double flops[7] = {0};
  problem p;
  open_problem(&p, expr, sizes);
  solve(&p);
  for (int i = 0; i < 7; i++) {
    ein_einsum_desc d = desc_of(&p, expr, paths[i]);
    ein_plan *plan = NULL;
    ein_plan_info info = {0};
    const clock_t start = clock();
    for (int64_t k = 0; k < p.count[p.nin]; k++) p.data[p.nin][k] = 77;
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
    CHECK((double)(clock() - start) < 5.0 * CLOCKS_PER_SEC);
    CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
    flops[i] = info.flops;
    ein_plan_destroy(plan);
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
    if (!right(&p)) printf("%s by %s is wrong\n", expr, paths[i]);
    CHECK(right(&p));
  }
  CHECK(flops[1] <= flops[3] && flops[1] <= flops[2] && flops[1] <= flops[4]);
  within_budgets(ctx, &p, expr);
  close_problem(&p);
}

// 28 indices of extent 2: a chain of matrices with two long sides, which are summed.
static void test_many_indices(ein_ctx *ctx) {
  static const char *const expr = "abcdefghijklmn,klmnopqrstu,rstuvwxyzAB->vwxyzAB";
  double v[16] = {0}, w[16] = {0};
  problem p;
  open_problem(&p, expr, "*2");
  for (int i = 0; i < 1 << 14; i++) v[i % 16] += p.data[0][i];
  for (int i = 0; i < 1 << 11; i++) w[i % 16] += v[i >> 7] * p.data[1][i];
  p.want = (double *)calloc(128, sizeof(double));
  if (p.want == NULL) exit(1);
  for (int i = 0; i < 1 << 11; i++) p.want[i % 128] += w[i >> 7] * p.data[2][i];
  for (int i = 0; i < 3; i++) {
    const ein_einsum_desc d = desc_of(&p, expr, i == 0 ? "auto" : i == 1 ? "optimal" : "greedy");
    for (int k = 0; k < 128; k++) p.data[3][k] = 77;
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK && right(&p));
  }
  within_budgets(ctx, &p, expr);
  close_problem(&p);
}

// An output that lies over an operand: moved, never read half done.
static void test_overlap(ein_ctx *ctx) {
  problem p;
  open_problem(&p, "ij,jk->ik", "*5");
  solve(&p);
  p.view[2].data = p.data[0];
  ein_einsum_desc d = desc_of(&p, "ij,jk->ik", NULL);
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  memcpy(p.data[2], p.data[0], 25 * sizeof(double));
  CHECK(right(&p));
  close_problem(&p);
  open_problem(&p, "ij->ji", "*5");
  solve(&p);
  p.view[1].data = p.data[0];
  d = desc_of(&p, "ij->ji", NULL);
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  memcpy(p.data[1], p.data[0], 25 * sizeof(double));
  CHECK(right(&p));
  close_problem(&p);
}

static void test_rejected(ein_ctx *ctx) {
  static const int64_t tall[] = {5, 1}, two[] = {2}, three[] = {3};
  double a[5] = {0}, b[3] = {0}, r[1];
  ein_ztensor in[3], out;
  memset(in, 0, sizeof in);
  memset(&out, 0, sizeof out);
  in[0].dtype = in[1].dtype = out.dtype = EIN_F64;
  in[0].rank = 2, in[0].shape = tall, in[0].data = a;
  in[1].rank = 1, in[1].shape = two, in[1].data = b;
  out.data = r;
  CHECK(ein_einsum(ctx, "ij,i->", 2, in, &out) == EIN_ERR_SHAPE);
  CHECK(strstr(ein_ctx_message(ctx), "operand 0 axis 0 has extent 5, operand 1 axis 0 has 2"));
  CHECK(ein_einsum(NULL, "ij,i->", 2, in, &out) == EIN_ERR_SHAPE);
  // The operand that is named is the one that says the extent, not the first that has the index.
  in[2] = in[1];
  in[2].shape = three;
  CHECK(ein_einsum(ctx, "ji,i,i->", 3, in, &out) == EIN_ERR_SHAPE);
  CHECK(strstr(ein_ctx_message(ctx), "operand 1 axis 0 has extent 2, operand 2 axis 0 has 3"));
}

int main(void) {
  static const char *const cases[][2] = {
      {"ab,ac->", "a3b4c5"}, {"ac,b->abc", "a2b3c4"}, {"ij,j->", "i0j4"}, {"ij,j->", "i4j0"},
      {"abc,a,b->c", "a0b3c2"}, {"abc,a,b->c", "a2b0c3"}, {"abc,a,b->c", "a2b3c0"},
      {"a,b,c,d,e,ab,ac,ad,bc,bd,cd,ce->", "a2b3c2d3e2"}, {"ij,j,jk->", "i3j4k5"},
      {"a,c,d,db,ab,cb,ac,cd,ad,b->dbc", "a2b5c3d4"},
      {"cq,cqje,rji,cqik,cqlf,slk->cresf", "*3"},
      {"jk,ijkl->il", "i3j4k5l6"}, {"ij,ijkl->kl", "i4j5k6l3"}};
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rng_state = k;
    test_case(ctx, cases[k][0], cases[k][1]);
  }
  test_many_indices(ctx);
  test_overlap(ctx);
  test_rejected(ctx);
  ein_ctx_destroy(ctx);
  printf("users: %d checks, %d failed\n", checks, failures);
  return failures != 0;
}
