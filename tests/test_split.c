// Splits: paths given step by step, every monoid under every order of its operands, folds of single
// values, and what a cached plan may be used for.
//
//   test_split [seed]
//
// The reference is a loop over the whole index space in doubles.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

#define MAX_IN 6
#define MAX_LABELS 6
#define MAX_SPACE 8192

// An einsum over f64 (or bool), row-major.
typedef struct problem {
  int nin, nlabel, rank[MAX_IN + 1], label[MAX_IN + 1][MAX_LABELS];
  int64_t extent[MAX_LABELS], shape[MAX_IN + 1][MAX_LABELS];
  double value[MAX_IN][MAX_SPACE];
  unsigned char flag[MAX_IN][MAX_SPACE];
  ein_ztensor view[MAX_IN + 1];
  char expr[80];
} problem;

static int64_t count_of(const problem *p, int k) {
  int64_t n = 1;
  for (int a = 0; a < p->rank[k]; a++) n *= p->shape[k][a];
  return n;
}

// Labels are letters; extents by letter.
static void problem_of(problem *p, const char *expr, const int64_t *extent) {
  int k = 0;
  memset(p, 0, sizeof *p);
  snprintf(p->expr, sizeof p->expr, "%s", expr);
  for (const char *s = expr; *s; s++) {
    if (*s >= 'a' && *s <= 'z') {
      int l = *s - 'a', a = p->rank[k]++;
      p->label[k][a] = l;
      p->shape[k][a] = p->extent[l] = extent[l];
      if (l >= p->nlabel) p->nlabel = l + 1;
    } else {
      k += *s != '>';
    }
  }
  p->nin = k;
  for (int l = 0; l < p->nlabel; l++)
    if (p->extent[l] == 0) p->extent[l] = 1;
  for (k = 0; k <= p->nin; k++) {
    p->view[k].dtype = EIN_F64;
    p->view[k].rank = p->rank[k];
    p->view[k].shape = p->shape[k];
    if (k < p->nin) p->view[k].data = p->value[k];
  }
}

static int64_t place(const problem *p, int k, const int64_t *at) {
  int64_t x = 0;
  for (int a = 0; a < p->rank[k]; a++) x = x * p->shape[k][a] + at[p->label[k][a]];
  return x;
}

// ---- folds as a user would write them ----

static const char *const folds[] = {"sum", "prod", "max", "min", "any", "all", "logsumexp",
                                    "argmax", "argmin", "mean", "var", "norm", "total"};
#define FOLDS 13

static double fold_of(int f, const double *v, int64_t n) {
  double s = 0, m = f == 1 || f == 5, x = v[0];
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) s += f == 11 ? v[i] * v[i] : v[i];
  for (int64_t i = 1; i < n; i++) {
    int more = f == 3 || f == 8 ? v[i] < x : v[i] > x;
    if (x != x || !(more || v[i] != v[i])) continue;
    x = v[i];
    at = i;
  }
  switch (f) {
    case 0: case 12: return s;
    case 1: for (int64_t i = 0; i < n; i++) m *= v[i]; return m;
    case 2: case 3: return x;
    case 4: for (int64_t i = 0; i < n; i++) m = m > 0 || v[i] != 0; return m;
    case 5: for (int64_t i = 0; i < n; i++) m = m > 0 && v[i] != 0; return m;
    case 6:
      if (x - x != 0) return x;
      for (int64_t i = 0; i < n; i++) m += exp(v[i] - x);
      return log(m) + x;
    case 7: case 8: return (double)at;
    case 9: return s / (double)n;
    case 10:
      for (int64_t i = 0; i < n; i++) m += (v[i] - s / (double)n) * (v[i] - s / (double)n);
      return m / (double)n;
    default: return sqrt(s);
  }
}

static void oracle(const problem *p, int f, int boolean, double *out) {
  static double list[MAX_SPACE];
  int64_t at[MAX_LABELS] = {0}, n = count_of(p, p->nin);
  char free_label[MAX_LABELS] = {0};
  for (int a = 0; a < p->rank[p->nin]; a++) free_label[p->label[p->nin][a]] = 1;
  for (int64_t o = 0; o < n; o++) {
    int64_t rest = o, count = 0;
    for (int a = p->rank[p->nin] - 1; a >= 0; a--) {
      at[p->label[p->nin][a]] = rest % p->shape[p->nin][a];
      rest /= p->shape[p->nin][a];
    }
    for (int l = 0; l < p->nlabel; l++) at[l] = free_label[l] ? at[l] : 0;
    for (;;) {
      double x = 1;
      for (int k = 0; k < p->nin; k++)
        x *= boolean ? (double)p->flag[k][place(p, k, at)] : p->value[k][place(p, k, at)];
      list[count++] = x;
      int l = p->nlabel - 1;
      for (; l >= 0; l--) {
        if (free_label[l]) continue;
        if (++at[l] < p->extent[l]) break;
        at[l] = 0;
      }
      if (l < 0) break;
    }
    out[o] = fold_of(f, list, count);
  }
}

static int same(double x, double y) {
  if (x != x || y != y) return x != x && y != y;
  return x == y || fabs(x - y) <= 1e-9 * (fabs(x) + fabs(y));
}

static void merge_total(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)acc[0])[i] += ((const double *)more[0])[i];
}

static ein_ctx *new_ctx(int cache) {
  ein_ctx_desc d;
  ein_monoid m;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  d.cache_plans = cache;
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  m.name = "total";
  m.nstate = 1;
  m.merge_fn = merge_total;
  m.joins = EIN_JOIN_MUL;
  CHECK(ein_ctx_monoid(ctx, &m) == EIN_OK);
  return ctx;
}

// ---- paths as text ----

static void problem_plan(ein_ctx *ctx, const problem *p, const char *path, const char *want,
                         int column) {
  char json[8192];
  ein_einsum_desc d;
  ein_plan *plan;
  memset(&d, 0, sizeof d);
  d.expr = p->expr;
  d.nin = p->nin;
  d.in = p->view;
  d.out = &p->view[p->nin];
  d.options.path = path;
  ein_status st = ein_plan_create(ctx, &d, &plan);
  CHECK(st == (want == NULL ? EIN_ERR_ARGUMENT : EIN_OK));
  if (want == NULL) {
    const ein_error *e = ein_ctx_error(ctx, 0);
    CHECK(e != NULL && e->column == column && strcmp(e->source, path) == 0);
    if (e == NULL || e->column != column) printf("  '%s': %s\n", path, ein_ctx_message(ctx));
  } else if (st == EIN_OK) {
    ein_plan_json(plan, json, sizeof json);
    CHECK(strstr(json, want) != NULL);
    if (strstr(json, want) == NULL) printf("  '%s' is not %s in %s\n", path, want, json);
  } else {
    printf("  '%s': %s\n", path, ein_ctx_message(ctx));
  }
  ein_plan_destroy(plan);
}

static void test_texts(void) {
  static const struct {
    const char *path, *want;
    int column;
  } c[] = {
      {"(0,1) (0,1) (0,1)", "\"path\": [[0, 1], [0, 1], [0, 1]]", 0},
      {"(3) (0,1) (0,1) (0,1)", "\"path\": [[3], [0, 1], [0, 1], [0, 1]]", 0},
      {"[(3,), (1, 0), (0, 1), (0, 1)]", "\"path\": [[3], [0, 1], [0, 1], [0, 1]]", 0},
      {"[[0, 1, 2, 3]]", "\"path\": [[0, 1, 2, 3]]", 0},
      {"0,1,2 0,1", "\"path\": [[0, 1, 2], [0, 1]]", 0},
      {" (0,1),(0,1) , ( 0 , 1 ) (0) ", "\"path\": [[0, 1], [0, 1], [0, 1], [0]]", 0},
      {"0 0,1 0,1 0,1", "\"path\": [[0], [0, 1], [0, 1], [0, 1]]", 0},
      {"[0,1] [0,1] [0,1]", "\"path\": [[0, 1], [0, 1], [0, 1]]", 0},
      {"(0,1", NULL, 5},
      {"(0,1) (0,1) (0,1", NULL, 17},
      {"(0,1) (0,1) (0,1);", NULL, 18},
      {"(0,1) (0,1) (0,1))", NULL, 18},
      {"(0,1) (0,1) (0,1),", NULL, 19},
      {"(-1,0) (0,1) (0,1)", NULL, 2},
      {"(0,-1) (0,1) (0,1)", NULL, 4},
      {"[(0,1) (0,1) (0,1)", NULL, 19},
      {"(0,1) (0,1) () (0,1)", NULL, 14},
      {"(0,1) (0,2) (0,3)", NULL, 16},
      {"(0,0) (0,1) (0,1)", NULL, 4},
      {"(0,1) (0,1)", NULL, 12},
      {"(0,1) (0,1) (0,1) (0,1)", NULL, 22},
      {"(0,1) (0,1) (0,99999999999999999999)", NULL, 16},
      {"(0,1) (0,1) (0,4294967297)", NULL, 16},
      {"(0,1.5) (0,1) (0,1)", NULL, 5},
      {"( 0 1 ) (0,1) (0,1)", NULL, 5},
      {"(0,1) (0,1) (0,1) and more", NULL, 19},
      {"0,,1 0,1 0,1", NULL, 3}};
  static problem p;
  ein_ctx *ctx = new_ctx(-1);
  const int64_t abc[26] = {2, 3, 2, 3, 2};
  problem_of(&p, "ab,bc,cd,de->ae", abc);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    problem_plan(ctx, &p, c[i].path, c[i].want, c[i].column);
  ein_ctx_destroy(ctx);
}

// ---- random steps ----

static void random_problem(problem *p) {
  char expr[80];
  int64_t extent[26] = {0}, space = 1;
  int at = 0, used = 0, nin = (int)draw(1, 5), nlabel = (int)draw(1, MAX_LABELS);
  for (int l = 0; l < nlabel; l++) {
    extent[l] = draw(1, 4);
    if (space * extent[l] > 600) extent[l] = 1;
    space *= extent[l];
  }
  for (int k = 0; k < nin; k++) {
    int rank = (int)draw(0, 3);
    if (k > 0) expr[at++] = ',';
    for (int a = 0; a < rank; a++) {
      int l = (int)draw(0, nlabel - 1);
      used |= 1 << l;
      expr[at++] = (char)('a' + l);
    }
  }
  expr[at++] = '-';
  expr[at++] = '>';
  for (int l = nlabel - 1; l >= 0; l--)
    if ((used >> l & 1) && chance(50)) expr[at++] = (char)('a' + l);
  expr[at] = 0;
  problem_of(p, expr, extent);
  for (int k = 0; k < nin; k++)
    for (int64_t i = 0; i < count_of(p, k); i++) p->value[k][i] = (double)draw(-3, 3);
}

// Steps of 1 to n positions as text; gives whether they are a path of n operands.
static int random_steps(int n, char *text, size_t room) {
  size_t at = 0;
  int valid = 1, whole = chance(20), wrong = chance(40);
  if (whole) at += (size_t)snprintf(text + at, room - at, "[");
  for (int step = 0; step < 12; step++) {
    int m = n > 1 && chance(70) ? 2 : (int)draw(1, n), taken[8], done = n == 1 && chance(60);
    if (done && step > 0 && !(wrong && chance(10))) break;
    at += (size_t)snprintf(text + at, room - at, "%s(", step > 0 ? chance(50) ? "," : " " : "");
    for (int k = 0; k < m; k++) {
      int again = 1;
      while (again) {
        taken[k] = (int)draw(0, n - 1);
        for (int j = again = 0; j < k; j++) again |= taken[j] == taken[k];
      }
      if (wrong && chance(8)) taken[k] = (int)draw(-2, n + 1);
      valid &= taken[k] >= 0 && taken[k] < n;
      for (int j = 0; j < k; j++) valid &= taken[j] != taken[k];
      at += (size_t)snprintf(text + at, room - at, "%s%d", k > 0 ? "," : "", taken[k]);
    }
    at += (size_t)snprintf(text + at, room - at, ")");
    n -= m - 1;
    if (wrong && chance(5)) break;
  }
  if (whole) at += (size_t)snprintf(text + at, room - at, "]");
  if (wrong && chance(10)) text[draw(0, (int64_t)at - 1)] = ";-x([)],"[draw(0, 7)], valid = -1;
  return valid < 0 ? -1 : valid && n == 1;
}

static void test_random(int rounds) {
  static problem p;
  static double got[MAX_SPACE], want[MAX_SPACE];
  ein_ctx *ctx = new_ctx(8);
  int valid = 0, refused = 0;
  for (int i = 0; i < rounds; i++) {
    char path[256];
    ein_einsum_desc d;
    random_problem(&p);
    int ok = random_steps(p.nin, path, sizeof path);
    memset(&d, 0, sizeof d);
    p.view[p.nin].data = got;
    d.expr = p.expr;
    d.nin = p.nin;
    d.in = p.view;
    d.out = &p.view[p.nin];
    d.options.path = path;
    for (int64_t o = 0; o < count_of(&p, p.nin); o++) got[o] = 7e77;
    ein_status st = ein_einsum_ex(ctx, &d);
    int right = ok < 0 ? st == EIN_OK || st == EIN_ERR_ARGUMENT
                       : st == (ok ? EIN_OK : EIN_ERR_ARGUMENT);
    oracle(&p, 0, 0, want);
    for (int64_t o = 0; st == EIN_OK && o < count_of(&p, p.nin); o++) right &= got[o] == want[o];
    CHECK(right);
    if (!right) printf("  %s with '%s': %s\n", p.expr, path, ein_status_name(st));
    valid += st == EIN_OK;
    refused += st != EIN_OK;
  }
  CHECK(valid > rounds / 4 && refused > rounds / 20);
  ein_ctx_destroy(ctx);
}

// ---- every monoid, every order ----

static double run_bool[MAX_SPACE];

// The result of one fold along one path as doubles; the status.
static ein_status run_fold(ein_ctx *ctx, problem *p, int f, const char *path, ein_dtype dtype,
                           double *out) {
  static union { double d[MAX_SPACE]; int64_t i[MAX_SPACE]; unsigned char b[MAX_SPACE]; } r;
  ein_einsum_desc d;
  int64_t shape[8];
  ein_ztensor v;
  memset(&d, 0, sizeof d);
  for (int k = 0; k < p->nin; k++) {
    p->view[k].dtype = dtype;
    p->view[k].data = dtype == EIN_BOOL ? (void *)p->flag[k] : (void *)p->value[k];
  }
  d.expr = p->expr;
  d.nin = p->nin;
  d.in = p->view;
  d.monoid = folds[f];
  d.options.path = path;
  CHECK(ein_einsum_out_ex(ctx, &d, &v, shape, 8) == EIN_OK);
  v.data = &r;
  d.out = &v;
  ein_status st = ein_einsum_ex(ctx, &d);
  for (int64_t i = 0; st == EIN_OK && i < count_of(p, p->nin); i++)
    out[i] = v.dtype == EIN_BOOL ? r.b[i] : v.dtype == EIN_I64 ? (double)r.i[i] : r.d[i];
  return st;
}

static void check_fold(ein_ctx *ctx, problem *p, int f, const char *path, ein_dtype dtype,
                       ein_status status, const double *want) {
  double *got = run_bool;
  ein_status st = run_fold(ctx, p, f, path, dtype, got);
  int right = st == status;
  for (int64_t i = 0; right && st == EIN_OK && i < count_of(p, p->nin); i++)
    right = same(got[i], want[i]);
  CHECK(right);
  if (!right) printf("  %s %s, path %s: %s\n", folds[f], p->expr, path, ein_status_name(st));
}

typedef struct orders {
  ein_ctx *ctx;
  problem *p;
  int f, splits;
  ein_dtype dtype;
  const double *want;
  char path[64];
} orders;

// All orders of pairs of the n operands left.
static void every_order(orders *o, int n, int at) {
  if (n == 1) {
    check_fold(o->ctx, o->p, o->f, o->path, o->dtype, o->splits ? EIN_OK : EIN_ERR_ARGUMENT,
               o->want);
    return;
  }
  for (int a = 0; a < n; a++) {
    for (int b = a + 1; b < n; b++) {
      int more = snprintf(o->path + at, sizeof o->path - (size_t)at, "(%d,%d)", a, b);
      every_order(o, n - 1, at + more);
    }
  }
}

static void test_orders(void) {
  static const char *const exprs[] = {"k,ij->ik", "kj,k->k", "k,ij,jl->ik", "ij,jk,k->i",
                                      "a,b,c,d->ac", "ab,bc,cd,d->a", "ab,a,b,bc,c->c"};
  static const char *const methods[] = {"auto", "naive", "optimal", "greedy", "random", "none"};
  static const double special[] = {-2, 0.5, INFINITY, NAN};
  static problem p;
  static double want[MAX_SPACE];
  ein_ctx *ctx = new_ctx(-1);
  for (size_t e = 0; e < sizeof exprs / sizeof *exprs; e++) {
    int64_t extent[26];
    for (int l = 0; l < 26; l++) extent[l] = 2;
    if (e < 3) extent['j' - 'a'] = 3;
    char moved[80];  // to the letters from a
    for (size_t i = 0; i <= strlen(exprs[e]); i++)
      moved[i] = (char)(exprs[e][i] >= 'i' && exprs[e][i] <= 'l' ? exprs[e][i] - 8 : exprs[e][i]);
    for (int values = 0; values < 6; values++) {
      problem_of(&p, moved, extent);
      // All finite; all of the special ones; mostly finite.
      for (int k = 0; k < p.nin; k++) {
        for (int64_t i = 0; i < count_of(&p, k); i++) {
          p.value[k][i] = special[values < 2 ? draw(0, 1) : chance(70) ? draw(0, 1) : draw(0, 3)];
          p.flag[k][i] = (unsigned char)chance(60);
        }
      }
      for (int f = 0; f < FOLDS; f++) {
        for (int boolean = 0; boolean < 2; boolean++) {
          ein_dtype dtype = boolean ? EIN_BOOL : EIN_F64;
          if (boolean && f != 4 && f != 5) continue;
          oracle(&p, f, boolean, want);
          // inf and NaN in sums: paths may differ from one pass, as the manual says.
          int loose = (f == 0 || f == 12) && values >= 2;
          check_fold(ctx, &p, f, "none", dtype, EIN_OK, want);
          for (int m = 0; m < 6 && !loose; m++)
            check_fold(ctx, &p, f, methods[m], dtype, EIN_OK, want);
          orders o = {ctx, &p, f, 0, dtype, want, ""};
          o.splits = p.nin == 2 || f == 0 || f == 12 || (f == 4 && boolean);
          if (!loose) every_order(&o, p.nin, 0);
        }
      }
    }
  }
  ein_ctx_destroy(ctx);
}

// Folds of sums, and of and, or, max and min, in programs.
static void test_programs(void) {
  static const char *const bodies[] = {
      "max[j,k](A[i,j] + B[j,k] + C[k,i])", "min[j,k](A[i,j] + B[j,k] + C[k,i])",
      "logsumexp[j,k](A[i,j] + B[j,k] + C[k,i])", "max[j,k](min(A[i,j], B[j,k], C[k,i]))",
      "min[j,k](max(A[i,j], B[j,k], C[k,i]))", "max[j,k](A[i,j] * B[j,k] * C[k,i])",
      "min[j,k](A[i,j] * B[j,k] * C[k,i])", "prod[j,k](A[i,j] * B[j,k] * C[k,i])",
      "any[j,k](A[i,j] * B[j,k] * C[k,i])", "all[j,k](A[i,j] * B[j,k] * C[k,i])",
      "any[j,k](A[i,j] > 0 and B[j,k] > 0 and C[k,i] > 0)",
      "all[j,k](A[i,j] > 0 or B[j,k] > 0 or C[k,i] > 0)", "mean[j,k](A[i,j] * B[j,k] * C[k,i])",
      "argmax[j,k](A[i,j] + B[j,k] + C[k,i])"};
  static const char *const methods[] = {"none", "auto", "naive", "optimal", "dp", "greedy",
                                        "random"};
  static const double special[] = {-2, 0.5, INFINITY, NAN};
  ein_ctx *ctx = new_ctx(-1);
  for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
    for (int round = 0; round < 8; round++) {
      double in[3][12], out[2][3];
      const void *data[3];
      char text[256];
      ein_program_desc d;
      ein_graph *g = NULL;
      for (int k = 0; k < 3; k++) {
        data[k] = in[k];
        for (int i = 0; i < 12; i++) in[k][i] = special[draw(0, round < 4 ? 1 : 3)];
      }
      snprintf(text, sizeof text, "input A[i=3,j=4], B[j,k=2], C[k,i] : f64\nY[i] = %s\n"
               "output Y : f64\n", bodies[b]);
      memset(&d, 0, sizeof d);
      d.text = text;
      CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
      for (int m = 0; m < 7; m++) {
        ein_options o;
        ein_plan *plan = NULL;
        ein_run run;
        void *result[1];
        result[0] = out[m > 0];
        memset(&o, 0, sizeof o);
        memset(&run, 0, sizeof run);
        o.path = methods[m];
        o.seed = (uint64_t)round;
        run.in = data;
        run.out = result;
        CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_OK);
        CHECK(plan != NULL && ein_plan_execute(plan, &run) == EIN_OK);
        for (int i = 0; i < 3; i++) {
          CHECK(same(out[0][i], out[m > 0][i]));
          if (!same(out[0][i], out[m > 0][i]))
            printf("  %s by %s: %g, not %g\n", bodies[b], methods[m], out[1][i], out[0][i]);
        }
        ein_plan_destroy(plan);
      }
      ein_graph_destroy(g);
    }
  }
  ein_ctx_destroy(ctx);
}

// A fold over an index of extent 1, and over none: one dtype, one value.
static void test_singles(void) {
  static problem p[2];
  static const double special[] = {-2, 0.5, INFINITY, NAN, 0, 3};
  const int64_t extent[26] = {6, 1};
  ein_ctx *ctx = new_ctx(-1);
  problem_of(&p[0], "a->a", extent);
  problem_of(&p[1], "ab->a", extent);
  for (int f = 0; f < FOLDS; f++) {
    for (int boolean = 0; boolean < 2; boolean++) {
      double got[2][6];
      ein_dtype dtype[2];
      if (boolean && f == 12) continue;
      for (int which = 0; which < 2; which++) {
        ein_einsum_desc d;
        ein_ztensor v;
        int64_t shape[4];
        for (int i = 0; i < 6; i++) {
          p[which].value[0][i] = special[i];
          p[which].flag[0][i] = special[i] == 0;
        }
        ein_dtype t = boolean ? EIN_BOOL : EIN_F64;
        CHECK(run_fold(ctx, &p[which], f, NULL, t, got[which]) == EIN_OK);
        memset(&d, 0, sizeof d);
        d.expr = p[which].expr;
        d.nin = 1;
        d.in = p[which].view;
        d.monoid = folds[f];
        CHECK(ein_einsum_out_ex(ctx, &d, &v, shape, 4) == EIN_OK);
        dtype[which] = v.dtype;
      }
      CHECK(dtype[0] == dtype[1]);
      for (int i = 0; i < 6; i++) {
        double x = boolean ? special[i] == 0 : special[i];
        CHECK(same(got[0][i], got[1][i]));
        if (!same(got[0][i], got[1][i]))
          printf("  %s: %g and %g\n", folds[f], got[0][i], got[1][i]);
        if (!boolean) CHECK(same(got[0][i], fold_of(f, &x, 1)));
      }
    }
  }
  ein_ctx_destroy(ctx);
}

// ---- what may share a cached plan ----

// A call with one field changed at a time. Every field of ein_einsum_desc, ein_ztensor, ein_options
// and ein_scalar is here; `like` names a variant that means the same.
typedef struct call {
  ein_einsum_desc d;
  ein_ztensor in[2], out, c;
  int64_t shape[4][2], stride[4][2];
  int label[4][3], nlabels[4];
  const int *labels[4];
  unsigned char conj[2];
  double data[4][64];
} call;

static void call_init(call *x) {
  ein_ztensor *v[4];
  memset(x, 0, sizeof *x);
  v[0] = &x->in[0];
  v[1] = &x->in[1];
  v[2] = &x->out;
  v[3] = &x->c;
  for (int k = 0; k < 4; k++) {
    v[k]->dtype = EIN_F64;
    v[k]->rank = 2;
    v[k]->shape = x->shape[k];
    v[k]->strides = x->stride[k];
    v[k]->data = x->data[k];
    x->shape[k][0] = x->shape[k][1] = 2;
    x->stride[k][0] = 2;
    x->stride[k][1] = 1;
    for (int i = 0; i < 64; i++) x->data[k][i] = (k + 1) * (i % 7) - 3 * k;
  }
  x->d.expr = "ij,jk->ik";
  x->d.nin = 2;
  x->d.in = x->in;
  x->d.out = &x->out;
}

static void call_labels(call *x, int third) {
  for (int k = 0; k < 3; k++) {
    x->labels[k] = x->label[k];
    x->nlabels[k] = 2;
    x->label[k][0] = k == 1 ? 1 : 0;
    x->label[k][1] = k == 0 ? 1 : third;
  }
  x->d.expr = NULL;
  x->d.labels = x->labels;
  x->d.nlabels = x->nlabels;
}

#define VARIANTS 58

// Makes variant i; gives the variant it is equivalent to, or -1.
static int call_vary(call *x, int i) {
  call_init(x);
  ein_einsum_desc *d = &x->d;
  switch (i) {
    case 0: return -1;
    case 1: d->expr = "ij,jk->ki"; return -1;
    case 2: d->expr = "ij,kj->ik"; return -1;
    case 3: call_labels(x, 2); return -1;
    case 4: call_labels(x, 3); return 3;
    case 5: call_labels(x, 2); x->labels[2] = NULL; return -1;
    case 6: call_labels(x, 2); x->label[2][1] = 1; return -1;
    case 7: d->nin = 1; d->expr = "ij->ji"; return -1;
    case 8: d->nin = 3; return -1;
    case 9: d->alpha.set = 1; d->alpha.re = 2; return -1;
    case 10: d->alpha.set = 2; d->alpha.re = 2; return 9;
    case 11: d->alpha.set = -1; d->alpha.re = 2; return 9;
    case 12: d->beta.set = 1; d->beta.re = 2; return -1;
    case 13: d->beta.set = 3; d->beta.re = 2; return 12;
    case 14: d->alpha.set = d->beta.set = 1; d->alpha.re = 2; return -1;
    case 15: d->alpha.set = 4; d->alpha.re = 2; d->conj = x->conj; return -1;
    case 16: d->beta.set = 1; d->beta.re = 2; d->c = &x->c; return -1;
    case 17: d->c = &x->c; return 0;  // nothing without beta
    case 18: d->conj = x->conj; return -1;
    case 19: d->conj = x->conj; x->conj[1] = 1; return -1;
    case 20: d->conj = x->conj; x->conj[1] = 200; return 19;
    case 21: d->monoid = "max"; return -1;
    case 22: d->monoid = "min"; return -1;
    case 23: d->monoid = ""; return -1;
    case 24: d->map = "x0+x1"; return -1;
    case 25: d->map = "max"; return -1;
    case 26: d->rest = EIN_REST_ZERO; return -1;
    case 27: d->rest = EIN_REST_KEEP; return -1;
    case 28: d->rest = EIN_REST_ACCUMULATE; return -1;
    case 29: d->rest = (ein_rest)4; return -1;
    case 30: d->rest = (ein_rest)8; return -1;
    case 31: d->rest = (ein_rest)-1; return -1;
    case 32: d->options.path = "naive"; return -1;
    case 33: d->options.path = "(0,1)"; return -1;
    case 34: d->options.path = "(0,1"; return -1;
    case 35: d->options.goal = EIN_GOAL_SIZE; return -1;
    case 36: d->options.goal = EIN_GOAL_BYTES; return -1;
    case 37: d->options.goal = (ein_goal)3; return -1;
    case 38: d->options.goal = (ein_goal)16; return -1;
    case 39: d->options.path_seconds = 0.5; return -1;
    case 40: d->options.path_seconds = NAN; return -1;
    case 41: d->options.path_seconds = -1; return -1;
    case 42: d->options.path_seconds = INFINITY; return -1;
    case 43: d->options.path_steps = 7; return -1;
    case 44: d->options.path_steps = -7; return -1;
    case 45: d->options.seed = 7; return -1;
    case 46: d->options.may_overlap = 1; return 0;  // ein_einsum_ex copes with overlap anyway
    case 47: x->in[0].dtype = (ein_dtype)(EIN_F64 + 256); return -1;
    case 48: x->in[0].dtype = EIN_I64; return -1;
    case 49: x->in[0].space = 1; return -1;
    case 50: x->out.space = -1; return -1;
    case 51: x->in[0].strides = NULL; return 0;
    case 52: x->stride[1][0] = 3; return -1;
    case 53: x->shape[0][0] = x->shape[2][0] = 3; return -1;
    case 54: x->in[0].rank = 1; return -1;
    case 55: x->in[0].buffer = x->data[0]; x->in[0].buffer_bytes = 24; return -1;
    case 56: x->in[0].buffer = x->data[0]; x->in[0].buffer_bytes = 512; return 0;
    default: x->shape[0][0] = x->shape[2][0] = -1; return -1;
  }
}

// The call in a ctx: status, and what is in the output afterwards.
static ein_status call_run(ein_ctx *ctx, int i, double *out) {
  static call x;
  (void)call_vary(&x, i);
  ein_status st = ein_einsum_ex(ctx, &x.d);
  memcpy(out, x.data[2], sizeof x.data[2]);
  return st;
}

static void test_shared(void) {
  static call x, y;
  double alone[64], after[64];
  ein_ctx *fresh = new_ctx(-1);
  for (int i = 0; i < VARIANTS; i++) {
    ein_status st = call_run(fresh, i, alone);
    for (int before = 0; before < VARIANTS; before++) {
      ein_ctx *ctx = new_ctx(4);
      (void)call_run(ctx, before, after);
      ein_status other = call_run(ctx, i, after);
      int right = st == other && (st != EIN_OK || memcmp(alone, after, sizeof alone) == 0);
      CHECK(right);
      if (!right) printf("  variant %d after %d: %s\n", i, before, ein_status_name(other));
      // Keys of different meanings differ.
      int like = call_vary(&x, i), of = call_vary(&y, before);
      const int sane = eini_key_sane(ctx, &x.d) && eini_key_sane(ctx, &y.d);
      if (i != before && sane && like != before && of != i && (like < 0 || like != of)) {
        const ein_einsum_desc a = eini_desc_normal(&x.d), b = eini_desc_normal(&y.d);
        eini_call_key *at = &ctx->cache->key;
        int64_t key[256];
        CHECK(eini_key_build(at, &a) == EIN_OK && at->n <= 256);
        const int64_t n = at->n;
        memcpy(key, at->word, (size_t)n * 8);
        CHECK(eini_key_build(at, &b) == EIN_OK);
        int differ = n != at->n || memcmp(key, at->word, (size_t)n * 8) != 0;
        CHECK(differ);
        if (!differ) printf("  variants %d and %d share a key\n", i, before);
      }
      ein_ctx_destroy(ctx);
    }
  }
  CHECK(call_run(fresh, 49, alone) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(fresh), "operand 0 lies in memory space 1") != NULL);
  CHECK(call_run(fresh, 50, alone) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(fresh), "the output lies in memory space -1") != NULL);
  ein_ctx_destroy(fresh);
}

// Other memory is refused wherever a view is taken.
static void test_space(void) {
  static const char text[] = "input A[i,j] : f64\nY[i] = A[i,j]\noutput Y\n";
  int64_t shape[2] = {2, 2}, dims[8];
  int axes[2] = {1, 0};
  double data[4] = {1, 2, 3, 4};
  ein_ztensor t, v;
  ein_binding bind;
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_ctx *ctx = new_ctx(4);
  memset(&t, 0, sizeof t);
  memset(&d, 0, sizeof d);
  t.dtype = EIN_F64;
  t.rank = 2;
  t.shape = shape;
  t.data = data;
  bind.name = "A";
  bind.view = &t;
  d.text = text;
  d.nbind = 1;
  d.bind = &bind;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  t.space = 3;
  CHECK(ein_plan_graph(ctx, g, 1, &bind, NULL, &plan) == EIN_ERR_UNSUPPORTED && plan == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "'A' lies in memory space 3") != NULL);
  ein_graph_destroy(g);
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(ctx), "'A' lies in memory space 3") != NULL);
  CHECK(ein_view_check(&t) == EIN_ERR_UNSUPPORTED);
  CHECK(ein_view_permute(&t, axes, &v, dims) == EIN_ERR_UNSUPPORTED);
  CHECK(ein_view_at(&t, shape) == NULL);
  ein_ctx_destroy(ctx);
}

// div and mod are numpy.floor_divide and numpy.mod: what NumPy gives for these pairs.
static void test_division(void) {
  static const double x[] = {5, -5, 0, INFINITY, 5, -5, 5, -7, 7, INFINITY};
  static const double y[] = {0, 0, 0, 2, INFINITY, INFINITY, -INFINITY, 2, -2, INFINITY};
  static const double div[] = {INFINITY, -INFINITY, NAN, NAN, 0, -1, -1, -4, -4, NAN};
  static const double mod[] = {NAN, NAN, NAN, NAN, 5, INFINITY, -INFINITY, 1, -1, NAN};
  static const int64_t n[] = {5, -5, 0, -7, 7}, d[] = {0, 0, 0, 2, -2};
  static const int64_t whole[2][5] = {{0, 0, 0, -4, -4}, {0, 0, 0, 1, -1}};
  const int64_t ten[] = {10}, five[] = {5};
  for (int which = 0; which < 4; which++) {
    double f[10];
    int64_t i[5];
    ein_ztensor v[3];
    ein_einsum_desc e;
    union { const void *c; void *v; } u[2];
    memset(v, 0, sizeof v);
    memset(&e, 0, sizeof e);
    u[0].c = which < 2 ? (const void *)x : (const void *)n;
    u[1].c = which < 2 ? (const void *)y : (const void *)d;
    for (int k = 0; k < 3; k++) {
      v[k].dtype = which < 2 ? EIN_F64 : EIN_I64;
      v[k].rank = 1;
      v[k].shape = which < 2 ? ten : five;
      v[k].data = k < 2 ? u[k].v : which < 2 ? (void *)f : (void *)i;
    }
    e.expr = "a,a->a";
    e.nin = 2;
    e.in = v;
    e.out = &v[2];
    e.map = which % 2 ? "mod(x0,x1)" : "div(x0,x1)";
    CHECK(ein_einsum_ex(NULL, &e) == EIN_OK);
    for (int k = 0; which < 2 && k < 10; k++) CHECK(same(f[k], which ? mod[k] : div[k]));
    for (int k = 0; which >= 2 && k < 5; k++) CHECK(i[k] == whole[which - 2][k]);
  }
}

// A statement costs what its text says: a product of 1000 factors over 9001 indices is split as one
// of a few is.
static void test_wide(void) {
  enum { N = 1000, OWN = 8 };
  const size_t room = (size_t)N * (OWN + 2) * 40;
  char *text = (char *)malloc(room);
  ein_ctx *ctx = NULL;
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  size_t at = 0;
  CHECK(text != NULL && ein_ctx_create(NULL, &ctx) == EIN_OK);
  if (text == NULL) return;
  for (int k = 0; k < N; k++)
    at += (size_t)snprintf(text + at, room - at, "%sX%d[2,2,1,1,1,1,1,1,1,2]", k ? ", " : "input ",
                           k);
  at += (size_t)snprintf(text + at, room - at, "\nY[p0,p%d] = ", N);
  for (int k = 0; k < N; k++) {
    at += (size_t)snprintf(text + at, room - at, "%sX%d[p%d,p%d", k ? "*" : "", k, k, k + 1);
    for (int i = 0; i < OWN; i++)
      at += (size_t)snprintf(text + at, room - at, ",q%d", OWN * k + i);
    at += (size_t)snprintf(text + at, room - at, "]");
  }
  snprintf(text + at, room - at, "\noutput Y\n");
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  CHECK(g != NULL && g->nstmt == 1 && g->stmt[0].noperand == N && g->stmt[0].nindex == 9001);
  CHECK(g != NULL && g->arena.total < (size_t)16 << 20);
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  free(text);
}

int main(int argc, char **argv) {
  rng_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int rounds = argc > 2 ? atoi(argv[2]) : 3000;
  test_texts();
  test_random(rounds);
  test_singles();
  test_orders();
  test_programs();
  test_shared();
  test_space();
  test_division();
  test_wide();
  printf("split: %d checks, %d failed\n", checks, failures);
  return failures > 0;
}
