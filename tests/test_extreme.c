// Plans of extreme extents and strides: 0, 1, 2^31, 2^59 .. INT64_MAX, INT64_MIN, and mixtures, as
// einsums, graphs of statements with such coefficients, budgets and decompositions. A plan succeeds
// or is refused with a status that fits; under UBSan nothing overflows. Empty views are ordinary,
// whatever their strides: what is planned with them is run.
// Usage: test_extreme [plans] [seed]; plan k of a seed is the same in every run.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#ifdef TEST_CPU
#include "../backends/einsum_cpu.h"
#endif
#include "check.h"
#include "util.h"

#include <stdlib.h>

#define RANK 4
#define OPERANDS 4

static long planned, refused, executed, budgets, cuts;

// ---- numbers ------------------------------------------------------------------------------------

static const int64_t ends[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 2 + 1,
                               INT64_MAX / 3, INT64_MAX / 8, INT64_MAX / 8 + 1};

// Mostly a power of two, give or take one.
static int64_t huge(void) {
  int64_t x = chance(30) ? ends[draw(0, 6)] : (int64_t)1 << draw(30, 62);
  return chance(30) ? x - 1 : chance(20) && x < INT64_MAX ? x + 1 : x;
}

static int64_t extent(int extreme) {
  if (chance(12)) return 0;
  if (chance(25)) return 1;
  return chance(extreme) ? huge() : draw(2, 9);
}

static int64_t stride(int extreme) {
  if (chance(15)) return INT64_MIN + (chance(50) ? 0 : draw(0, 3));
  int64_t x = chance(20) ? 0 : chance(extreme) ? huge() : draw(1, 40);
  return chance(30) ? -x : x;
}

// ---- views --------------------------------------------------------------------------------------

typedef struct view {
  ein_ztensor v;
  int64_t shape[RANK + 1], strides[RANK + 1];
} view;

static int empty(const view *x) {
  for (int r = 0; r < x->v.rank; r++)
    if (x->shape[r] == 0) return 1;
  return 0;
}

// Strides for a shape: none given, of a layout in some order, 0 along huge axes, or anything.
static void view_strides(view *x, int extreme) {
  int kind = (int)draw(0, 9), rank = x->v.rank;
  int64_t step = 1;
  x->v.shape = x->shape;
  x->v.strides = kind < 3 ? NULL : x->strides;
  for (int r = 0; r < rank; r++) {
    int axis = kind % 2 ? r : rank - 1 - r;
    int64_t e = x->shape[axis];
    x->strides[axis] = chance(20) ? -step : step;
    if (kind > 6 && e > 1000) x->strides[axis] = 0;
    else if (eini_mul_overflow(step, eini_max64(e, 1), &step)) step = 1;
    if (e <= 1 || kind == 9 || (empty(x) && chance(70))) x->strides[axis] = stride(extreme);
  }
}

static ein_dtype some_dtype(void) {
  static const ein_dtype list[] = {EIN_F64, EIN_F64, EIN_F32, EIN_F32, EIN_U8, EIN_BOOL, EIN_I64,
                                   EIN_I16, EIN_C128, EIN_C64, EIN_F16};
  return list[draw(0, 10)];
}

// ---- einsums ------------------------------------------------------------------------------------

typedef struct einsum {
  ein_einsum_desc d;
  view in[OPERANDS], out, c;
  ein_ztensor operand[OPERANDS];
  char expr[64], path[64];
  unsigned char conj[OPERANDS];
  double points;    // of the index space
} einsum;

static void einsum_text(einsum *e, const int64_t *size) {
  char *s = e->expr;
  int label[OPERANDS * RANK], n = 0;
  int64_t most[6] = {1, 1, 1, 1, 1, 1};
  for (int k = 0; k < e->d.nin; k++) {
    view *x = &e->in[k];
    x->v.dtype = k > 0 && chance(80) ? e->in[0].v.dtype : some_dtype();
    x->v.rank = (int)draw(0, RANK);
    if (k > 0) *s++ = ',';
    for (int r = 0; r < x->v.rank; r++) {
      int l = (int)draw(0, 5);
      label[n++] = l;
      *s++ = (char)('a' + l);
      x->shape[r] = chance(96) ? size[l] : extent(50);
      most[l] = eini_max64(most[l], x->shape[r]);
    }
  }
  e->points = 1;
  for (int l = 0; l < 6; l++) e->points *= (double)most[l];
  *s++ = '-';
  *s++ = '>';
  e->out.v.rank = 0;
  for (int i = 0, used = 0; i < n; i++) {
    if (used >> label[i] & 1 || chance(50) || e->out.v.rank == RANK) continue;
    if (chance(98)) used |= 1 << label[i];
    e->out.shape[e->out.v.rank++] = size[label[i]];
    *s++ = (char)('a' + label[i]);
  }
  *s = 0;
}

static void einsum_make(einsum *e, int extreme) {
  static const char *const monoids[] = {"max", "prod", "min", "any", "all", "logsumexp"};
  static const char *const paths[] = {"auto", "naive", "none", "optimal", "dp", "greedy", "random",
                                      "(0,1)", "(0,1) (0,1)", "(1,2) (0,1)"};
  int64_t size[6];
  memset(e, 0, sizeof *e);
  for (int l = 0; l < 6; l++) size[l] = extent(extreme);
  e->d.nin = (int)draw(1, OPERANDS);
  einsum_text(e, size);
  for (int k = 0; k < e->d.nin; k++) {
    view_strides(&e->in[k], extreme);
    e->operand[k] = e->in[k].v;
    e->conj[k] = (unsigned char)chance(50);
  }
  e->d.expr = e->expr;
  e->d.in = e->operand;
  e->d.out = &e->out.v;
  e->out.v.dtype = e->in[0].v.dtype;
  view_strides(&e->out, chance(60) ? 0 : extreme);
  if (chance(50)) e->out.v.strides = NULL;
  if (chance(20)) e->d.monoid = monoids[draw(0, 5)];
  if (chance(15)) e->d.map = e->d.nin > 1 ? "exp(x0) + x1*2" : "x0*x0 + 1";
  if (chance(20)) e->d.conj = e->conj;
  if (chance(20)) e->d.alpha.set = 1;
  e->d.alpha.re = 2;
  e->d.rest = chance(90) ? EIN_REST_ERROR : (ein_rest)draw(0, 3);
  e->d.beta.set = chance(20);
  e->d.beta.re = 0.5;
  if (e->d.beta.set && chance(60)) {
    e->c = e->out;
    view_strides(&e->c, extreme);
    e->d.c = &e->c.v;
  }
  if (chance(60)) e->d.options.path = paths[draw(0, 9)];
  e->d.options.goal = (ein_goal)draw(0, 2);
  e->d.options.may_overlap = chance(20);
}

// What a size, shape, access or text may be refused with.
static int refusal(ein_status st) {
  return st == EIN_ERR_TOO_LARGE || st == EIN_ERR_SHAPE || st == EIN_ERR_BOUNDS ||
         st == EIN_ERR_ARGUMENT || st == EIN_ERR_SYNTAX || st == EIN_ERR_DTYPE ||
         st == EIN_ERR_EMPTY || st == EIN_ERR_UNSUPPORTED || st == EIN_ERR_NAME ||
         st == EIN_ERR_OVERLAP || st == EIN_ERR_NO_MEMORY;
}

static void account(ein_status st) {
  CHECK(st == EIN_OK || refusal(st));
  planned += st == EIN_OK;
  refused += st != EIN_OK;
}

// Elements that are touched lie within room bytes of the data pointer, on either side.
static int within(const view *x, int64_t room) {
  int64_t lo, hi, size = (int64_t)ein_dtype_size(x->v.dtype);
  if (eini_view_extent(&x->v, &lo, &hi) != EIN_OK) return 0;
  return lo > -(room / size) && hi < room / size;
}

// Runs a plan whose inputs are empty or small.
static void einsum_run(const einsum *e, const ein_plan *plan) {
  static double memory[1 << 12];
  const int64_t room = (int64_t)sizeof memory / 4;
  const void *in[OPERANDS + 1];
  void *out[1];
  ein_run run;
  int small = within(&e->out, room);
  for (int k = 0; k < e->d.nin; k++) small = small && within(&e->in[k], room);
  if (e->d.c != NULL) small = small && within(&e->c, room);
  if (!small) return;
  for (int k = 0; k < e->d.nin; k++) in[k] = memory + (1 << 10);
  in[e->d.nin] = memory + (1 << 10);
  out[0] = memory + 3 * (1 << 10);
  memset(&run, 0, sizeof run);
  ein_scalar param[2];
  int n = 0;
  if (e->d.alpha.set) param[n++] = e->d.alpha;
  if (e->d.beta.set) param[n++] = e->d.beta;
  run.in = in;
  run.out = out;
  run.param = param;
  size_t bytes = ein_plan_workspace(plan);
  if (bytes > (1 << 24) || e->points > 1e5) return;
  ein_status st = ein_plan_execute(plan, &run);
  // A beta of 0.5 is no integer.
  CHECK(st == EIN_OK || st == EIN_ERR_OVERLAP ||
        (st == EIN_ERR_DTYPE && (e->d.alpha.set || e->d.beta.set)));
  executed++;
}

static void einsum_plan(ein_ctx *ctx, int extreme) {
  static einsum e;
  int64_t shape[2 * RANK];
  ein_ztensor as;
  ein_plan *plan;
  einsum_make(&e, extreme);
  ein_status st = ein_einsum_out_ex(ctx, &e.d, &as, shape, 2 * RANK);
  CHECK(st == EIN_OK || refusal(st));
  if (st == EIN_OK && chance(90)) {
    e.out.v.dtype = as.dtype;
    e.c.v.dtype = as.dtype;
  }
  st = ein_plan_create(ctx, &e.d, &plan);
  account(st);
  if (st == EIN_OK) {
    CHECK(ein_plan_json(plan, NULL, 0) > 0 && ein_plan_explain(plan, NULL, 0) > 0);
    einsum_run(&e, plan);
  }
  ein_plan_destroy(plan);
  if (!chance(25)) return;
  size_t least = 0;
  e.d.options.memory = chance(20) ? SIZE_MAX : (size_t)1 << draw(8, 40);
  e.d.options.least = &least;
  ein_status within_st = ein_plan_create(ctx, &e.d, &plan);
  CHECK(within_st == EIN_OK || refusal(within_st));
  // A budget refuses what is wrong for the same reason as a plan does.
  if (st != EIN_OK && st != EIN_ERR_TOO_LARGE && st != EIN_ERR_NO_MEMORY) CHECK(within_st == st);
  if (within_st == EIN_OK) CHECK(ein_plan_json(plan, NULL, 0) > 0);
  ein_plan_destroy(plan);
  budgets++;
}

// ---- graphs -------------------------------------------------------------------------------------

// An access: mostly the index itself, else anything.
static void random_map(ein_zmap *m, int rows, int cols, int64_t *coef, int64_t *offset,
                       int64_t *shape, const int64_t *size, int extreme) {
  memset(m, 0, sizeof *m);
  m->rows = rows;
  m->cols = cols;
  m->coef = coef;
  m->offset = offset;
  for (int r = 0; r < rows; r++) {
    int64_t lo = 0, hi = 0;
    offset[r] = chance(85) ? 0 : stride(extreme);
    for (int c = 0; c < cols; c++) coef[r * cols + c] = chance(10) ? stride(extreme) : 0;
    if (cols > 0) coef[r * cols + (int)draw(0, cols - 1)] = chance(80) ? 1 : chance(50) ? -1 : 2;
    for (int c = 0; c < cols; c++) {
      if (size[c] > 0 && chance(98) &&
          eini_zmap_row_range(coef + r * cols, cols, offset[r], size, &lo, &hi) != EIN_OK) {
        coef[r * cols + c] = 0;
      }
    }
    int64_t points = 1;
    for (int c = 0; c < cols; c++) points = size[c] == 0 ? 0 : points;
    if (points > 0 && eini_zmap_row_range(coef + r * cols, cols, offset[r], size, &lo, &hi) ==
                          EIN_OK) {
      if (lo < 0 && chance(95) && offset[r] > INT64_MIN && lo > INT64_MIN &&
          !eini_add_overflow(offset[r], -lo, &offset[r])) {
        if (eini_add_overflow(hi, -lo, &hi)) hi = 0;
      }
      shape[r] = hi < INT64_MAX && hi >= 0 ? hi + 1 : extent(extreme);
    } else {
      shape[r] = extent(extreme);
    }
  }
}

static void graph_cut(ein_ctx *ctx, const ein_graph *g) {
  static const char *const methods[] = {"eindecomp", "linear", "none", "sqrt", "data", "model",
                                        "sequence"};
  ein_decompose_desc d;
  ein_decomposition *how;
  ein_sim_info sim;
  memset(&d, 0, sizeof d);
  d.p = chance(50) ? draw(1, 16) : (int64_t)1 << draw(0, 10);
  d.method = methods[draw(0, 6)];
  d.cost = (ein_cost)draw(0, EIN_COST_COUNT - 1);
  d.strict = chance(30);
  ein_machine m;
  memset(&m, 0, sizeof m);
  m.memory = chance(20) ? (double)huge() : 0;
  d.machine = &m;
  ein_status st = ein_decompose(ctx, g, &d, &how);
  CHECK(st == EIN_OK || refusal(st));
  if (st == EIN_OK) {
    st = ein_simulate(ctx, g, how, NULL, &sim);
    CHECK(st == EIN_OK || refusal(st));
  }
  ein_decomposition_destroy(how);
  cuts++;
}

static void graph_views(ein_ctx *ctx, const ein_graph *g, int extreme) {
  static view v[8];
  ein_binding layout[8];
  ein_tensor_info t;
  ein_plan *plan;
  ein_options f;
  int n = 0;
  for (int i = 0; ein_graph_tensor(g, i, &t) && n < 8; i++) {
    if (t.role == EIN_ROLE_TEMP || t.rank > RANK || chance(40)) continue;
    memset(&v[n], 0, sizeof v[n]);
    v[n].v.dtype = t.dtype;
    v[n].v.rank = t.rank;
    memcpy(v[n].shape, t.shape, (size_t)t.rank * sizeof *t.shape);
    view_strides(&v[n], t.role == EIN_ROLE_OUTPUT ? 0 : extreme);
    layout[n].name = t.name;
    layout[n].view = &v[n].v;
    n++;
  }
  account(ein_plan_graph(ctx, g, n, layout, NULL, &plan));
  if (plan != NULL) CHECK(ein_plan_json(plan, NULL, 0) > 0);
  ein_plan_destroy(plan);
  if (!chance(25)) return;
  memset(&f, 0, sizeof f);
  f.memory = (size_t)1 << draw(8, 40);
  ein_status st = ein_plan_graph(ctx, g, n, layout, &f, &plan);
  CHECK(st == EIN_OK || refusal(st));
  ein_plan_destroy(plan);
  budgets++;
}

// Statements one after the other; what each reads has the shape its access needs.
static void graph_plan(ein_ctx *ctx, int extreme) {
  static const char *const folds[] = {"sum", "sum", "max", "mean", "argmax", "logsumexp", "prod"};
  static const char *const maps[] = {NULL, NULL, "exp(x0)*2", "x0 + i0", "abs(x0)"};
  ein_graph *g;
  int last = -1, last_rank = 0;
  static int64_t last_shape[RANK];
  if (ein_graph_create(ctx, &g) != EIN_OK) return;
  int nstmt = (int)draw(1, 3);
  for (int u = 0; u < nstmt; u++) {
    ein_stmt_desc d;
    int64_t size[RANK], coef[3][RANK * RANK], offset[3][RANK], shape[RANK], out_shape[RANK];
    ein_zmap proj[3];
    int operand[3], id;
    char name[8];
    memset(&d, 0, sizeof d);
    d.nindex = (int)draw(1, RANK);
    d.nfree = (int)draw(0, d.nindex);
    for (int i = 0; i < d.nindex; i++) size[i] = extent(extreme);
    d.noperand = (int)draw(1, 3);
    for (int k = 0; k < d.noperand; k++) {
      if (last >= 0 && k == 0 && last_rank <= d.nindex && last_rank > 0) {
        memset(&proj[k], 0, sizeof proj[k]);
        memset(coef[k], 0, sizeof coef[k]);
        proj[k].rows = last_rank;
        proj[k].cols = d.nindex;
        proj[k].coef = coef[k];
        for (int r = 0; r < last_rank; r++) {
          size[r] = last_shape[r];
          coef[k][r * d.nindex + r] = 1;
        }
        operand[k] = last;
        continue;
      }
      int rank = (int)draw(0, RANK);
      random_map(&proj[k], rank, d.nindex, coef[k], offset[k], shape, size, extreme);
      snprintf(name, sizeof name, "X%d%d", u, k);
      (void)ein_graph_add_tensor(g, name, EIN_ROLE_INPUT, some_dtype(), rank, shape, &operand[k]);
    }
    snprintf(name, sizeof name, "Y%d", u);
    (void)ein_graph_add_tensor(g, name, u == nstmt - 1 || chance(30) ? EIN_ROLE_OUTPUT
                                                                     : EIN_ROLE_TEMP,
                               EIN_NONE, d.nfree, NULL, &id);
    for (int i = 0; i < d.nfree; i++) out_shape[i] = size[i];
    d.out = id;
    d.extent = size;
    d.operand = operand;
    d.proj = proj;
    d.map = maps[draw(0, 4)];
    if (d.nfree < d.nindex) d.fold = folds[draw(0, 6)];
    if (ein_graph_add_statement(g, &d) != EIN_OK) break;
    last = id;
    last_rank = d.nfree;
    memcpy(last_shape, out_shape, sizeof last_shape);
  }
  ein_status st = ein_graph_finish(g);
  if (st != EIN_OK) account(st);
  else graph_views(ctx, g, extreme);
  if (st == EIN_OK && chance(15)) graph_cut(ctx, g);
  ein_graph_destroy(g);
}

// ---- programs -----------------------------------------------------------------------------------

static void program_plan(ein_ctx *ctx, int extreme) {
  static const char *const texts[] = {
      "input X[n,m] : f32\nY[i] = sum[j](X[i,j]*X[i,j])\nZ[i] = exp(Y[i]) - Y[n-1-i]\noutput Z\n",
      "input X[n] : f64\nY[i=m] = X[i | wrap] + X[i-1 | 0]\noutput Y\n",
      "input X[n] : f64\nY[i=n] = X[i-k | reflect]\noutput Y\n",
      "input X[n], W[m] : f32\nY[i=k] = sum[r](X[2*i+r]*W[r])\noutput Y\n",
      "input X[n,m] : f32\nY[i,j=k] = X[i,j*3-1 | nearest]\noutput Y\n",
      "input X[n,m], Y[m,k] : f16\nZ[i,j] = sum[l](X[i,l]*Y[l,j])/size(i)\noutput Z\n",
      "Y[i=n,j=m] = i*k + j\noutput Y\n",
      "input A[n], B[m] : i64\nC[i] = A[i]\nC[i+n] = B[i]\noutput C\n"};
  ein_size size[3];
  ein_program_desc d;
  ein_graph *g;
  memset(&d, 0, sizeof d);
  size[0].name = "n";
  size[1].name = "m";
  size[2].name = "k";
  for (int i = 0; i < 3; i++) size[i].value = extent(extreme);
  d.text = texts[draw(0, 7)];
  d.size = size;
  d.nsize = 3;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st != EIN_OK) account(st);
  else graph_views(ctx, g, extreme);
  if (st == EIN_OK && chance(15)) graph_cut(ctx, g);
  ein_graph_destroy(g);
}

// ---- faults that were there ---------------------------------------------------------------------

// Output strides {-1, INT64_MIN}: refused by plans and budgets alike.
static void test_output_strides(ein_ctx *ctx) {
  int64_t shape[] = {3, 4}, s[] = {-1, INT64_MIN};
  ein_ztensor in, out;
  ein_einsum_desc d;
  ein_plan *plan;
  memset(&in, 0, sizeof in);
  memset(&d, 0, sizeof d);
  in.dtype = EIN_F64;
  in.rank = 2;
  in.shape = shape;
  out = in;
  out.strides = s;
  d.expr = "ij->ij";
  d.nin = 1;
  d.in = &in;
  d.out = &out;
  size_t least = 0;
  ein_status st = ein_plan_create(ctx, &d, &plan);
  CHECK(st == EIN_ERR_TOO_LARGE && plan == NULL);
  d.options.memory = 1 << 20;
  d.options.least = &least;
  CHECK(ein_plan_create(ctx, &d, &plan) == st && plan == NULL && least == 0);
  CHECK(strstr(ein_ctx_message(ctx), "budget") == NULL && ein_ctx_message(ctx)[0] != 0);
  d.options.memory = SIZE_MAX;
  CHECK(ein_plan_create(ctx, &d, &plan) == st && plan == NULL && least == 0);
}

int main(int argc, char **argv) {
  long plans = argc > 1 ? atol(argv[1]) : 6000;
  uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  long only = argc > 3 ? atol(argv[3]) : -1;
  ein_ctx_desc cd;
  ein_ctx *ctx;
  memset(&cd, 0, sizeof cd);
#ifdef TEST_CPU
  ein_cpu *cpu;
  ein_cpu_desc cpu_desc;
  memset(&cpu_desc, 0, sizeof cpu_desc);
  cpu_desc.threads = 3;
  if (ein_cpu_create(&cpu_desc, NULL, &cpu) != EIN_OK || ein_cpu_use(cpu, &cd) != EIN_OK) return 1;
#endif
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) return 1;
  test_output_strides(ctx);
  for (long k = only >= 0 ? only : 0; k < (only >= 0 ? only + 1 : plans); k++) {
    rng_state = seed * 1000003u + (uint64_t)k * 7919u;
    int before = failures, extreme = (int)draw(0, 3) * 30;
    int kind = (int)draw(0, 9);
    if (kind < 6) einsum_plan(ctx, extreme);
    else if (kind < 9) graph_plan(ctx, extreme);
    else program_plan(ctx, extreme);
    if (failures > before) printf("plan %ld of seed %llu\n", k, (unsigned long long)seed);
  }
  ein_ctx_destroy(ctx);
#ifdef TEST_CPU
  ein_cpu_destroy(cpu);
#endif
  printf("%s %d checks, %d failures: %ld planned, %ld refused, %ld run, %ld budgets, %ld cuts\n",
         failures ? "FAIL" : "ok", checks, failures, planned, refused, executed, budgets, cuts);
  return failures != 0;
}
