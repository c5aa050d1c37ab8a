// A provider of one's own: this file sees the declarations of einsum.h only, and is linked to the
// library. What tests/map_provider.h makes of element-wise and map-reduce statements is what the
// portable kernels make; what a provider cannot do goes elsewhere; what fails, fails.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../einsum.h"
#include "check.h"
#include "map_provider.h"

#if defined(EINI_CHUNK)
#error "the implementation is not to be seen here"
#endif

enum { ROWS = 7, COLUMNS = 301, CELLS = ROWS * COLUMNS };

static int runs;

static ein_kernels provider(void) {
  ein_kernels k;
  memset(&k, 0, sizeof k);
  k.name = "mine";
  k.user = &runs;
  k.map_plan = maps_plan;
  k.map_run = maps_run;
  return k;
}

static ein_ctx *ctx_of(const ein_kernels *k) {
  ein_ctx_desc desc;
  ein_ctx *ctx;
  memset(&desc, 0, sizeof desc);
  desc.kernels = &k;
  desc.nkernels = k != NULL;
  desc.bare = 1;
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  return ctx;
}

static double half(double x) { return floor(x * 2) / 2; }

static void halves(int64_t n, const void *const *in, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = half(((const double *)in[0])[i]);
}

static const ein_function functions[] = {{"half", 1, EIN_F64, halves, NULL}};

typedef struct statement {
  const char *expr, *map, *monoid;
  int rank;                       // of the result
} statement;

static const statement statements[] = {
    {"ij,ij->ij", "x0*2.5-x1/(1.0+x0*x0)", NULL, 2}, {"ij,ij->ji", "exp(x0)+max(x1,0.5)", NULL, 2},
    {"ij,i->ij", "where(x0<x1,x0,-x1)", NULL, 2}, {"ij,ij->ij", "half(x0)*x1", NULL, 2},
    {"ij,ij->i", "abs(x0-x1)", "max", 1}, {"ij,ij->j", "x0*x0+x1", "sum", 1},
    {"ij,ij->i", "x0+x1", "argmin", 1}, {"ij,ij->", "x0-x1", "mean", 0}};

// Runs a statement over doubles; the kernel's name goes to `kernel`.
static void run_statement(const ein_kernels *k, const statement *s, double *y, char kernel[64]) {
  static const int64_t shapes[3][2] = {{ROWS, COLUMNS}, {COLUMNS, ROWS}, {ROWS, 0}};
  static double x[2][CELLS];
  ein_ctx *ctx = ctx_of(k);
  const int64_t *shape = shapes[s->rank == 2 && strstr(s->expr, "->ji") != NULL];
  const ein_dtype type = s->monoid != NULL && s->monoid[0] == 'a' ? EIN_I64 : EIN_F64;
  const int64_t one = s->expr[strlen(s->expr) - 1] == 'j' ? COLUMNS : ROWS;
  ein_ztensor in[2], out;
  ein_einsum_desc d;
  ein_plan *plan;
  char text[4096];
  for (int i = 0; i < 2 * CELLS; i++) x[i / CELLS][i % CELLS] = (double)(i * 37 % 101) / 25 - 2;
  CHECK(ein_ctx_function(ctx, functions) == EIN_OK);
  in[0] = ein_tensor(EIN_F64, 2, shapes[0], x[0]);
  in[1] = ein_tensor(EIN_F64, s->expr[4] == '-' ? 1 : 2, shapes[0], x[1]);
  out = ein_tensor(type, s->rank, s->rank == 1 ? &one : shape, y);
  memset(&d, 0, sizeof d);
  d.expr = s->expr;
  d.map = s->map;
  d.monoid = s->monoid;
  d.nin = 2;
  d.in = in;
  d.out = &out;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  CHECK(ein_plan_explain(plan, text, sizeof text) < sizeof text);
  snprintf(kernel, 64, "%s", strstr(text, "mine-elements") != NULL ? "mine" : "");
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
}

static void test_statements(void) {
  static double by[2][CELLS];
  const ein_kernels mine = provider();
  char kernel[64];
  for (size_t k = 0; k < sizeof statements / sizeof *statements; k++) {
    const int before = runs;
    memset(by, 0, sizeof by);
    run_statement(NULL, &statements[k], by[0], kernel);
    CHECK(kernel[0] == 0 && runs == before);
    run_statement(&mine, &statements[k], by[1], kernel);
    CHECK(kernel[0] != 0 && runs > before);
    double worst = 0, most = 0;
    for (int i = 0; i < CELLS; i++) {
      worst = fmax(worst, fabs(by[0][i] - by[1][i]));
      most = fmax(most, fabs(by[1][i]));
    }
    CHECK(worst <= 1e-11 && most > 0);
    if (worst > 1e-11) printf("  %s %s: off by %g\n", statements[k].expr, statements[k].map, worst);
  }
}

// ---- providers that fail ----

// What a provider returns of a map, a copy and a contraction is what the caller of execute gets.
typedef struct failing {
  ein_status status;
  int calls;
} failing;

static int fails_map(void *user, const ein_map *m, int width, int nth, ein_choice *choice) {
  (void)user, (void)m, (void)width;
  if (nth > 0) return 0;
  memcpy(choice->variant, "never", 6);
  return 1;
}
static int fails_copy(void *user, const ein_copy *c, int width, int nth, ein_choice *choice) {
  (void)c;
  return fails_map(user, NULL, width, nth, choice);
}
static int fails_contract(void *user, const ein_contract *c, int width, int nth,
                          ein_choice *choice) {
  (void)c;
  for (int i = 0; i < 3; i++) choice->grid[i] = choice->unit[i] = 1;
  choice->seconds = -1;
  return fails_map(user, NULL, width, nth, choice);
}
static ein_status failed(void *user) {
  ((failing *)user)->calls++;
  return ((failing *)user)->status;
}
static ein_status fails_map_run(void *user, const ein_map *m, const ein_choice *choice,
                                void *scratch) {
  (void)m, (void)choice, (void)scratch;
  return failed(user);
}
static ein_status fails_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                                 void *scratch) {
  (void)c, (void)choice, (void)scratch;
  return failed(user);
}
static ein_status fails_contract_run(void *user, const ein_contract *c, const ein_choice *choice,
                                     const ein_part *part, void *scratch) {
  (void)c, (void)choice, (void)part, (void)scratch;
  return failed(user);
}

static void test_failures(void) {
  static const char *const exprs[] = {"ij,ij->ij", "ij->ji", "ij,jk->ik"};
  static const ein_status all[] = {EIN_ERR_NO_MEMORY, EIN_ERR_INTERNAL, EIN_ERR_UNSUPPORTED};
  static const int64_t shape[2] = {40, 40};
  static double x[2][1600], y[1600];
  for (int i = 0; i < 9; i++) {
    failing f = {all[i / 3], 0};
    ein_kernels k;
    ein_plan *plan;
    char message[200] = "";
    const void *in[2] = {x[0], x[1]};
    void *to = y;
    ein_run run;
    memset(&k, 0, sizeof k);
    memset(&run, 0, sizeof run);
    k.name = "failing";
    k.user = &f;
    k.map_plan = fails_map;
    k.map_run = fails_map_run;
    k.copy_plan = fails_copy;
    k.copy_run = fails_copy_run;
    k.contract_plan = fails_contract;
    k.contract_run = fails_contract_run;
    ein_ctx *ctx = ctx_of(&k);
    const ein_ztensor views[2] = {ein_tensor(EIN_F64, 2, shape, x[0]),
                                  ein_tensor(EIN_F64, 2, shape, x[1])};
    const ein_ztensor out = ein_tensor(EIN_F64, 2, shape, y);
    ein_einsum_desc d;
    memset(&d, 0, sizeof d);
    d.expr = exprs[i % 3];
    d.nin = i % 3 == 1 ? 1 : 2;
    d.in = views;
    d.out = &out;
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
    run.in = in;
    run.out = &to;
    run.error = message;
    run.error_bytes = sizeof message;
    CHECK(ein_plan_execute(plan, &run) == f.status && f.calls == 1);
    CHECK(strstr(message, "a kernel failed in task 0") && strstr(message, "failing"));
    CHECK(ein_einsum_ex(ctx, &d) == f.status && f.calls == 2);
    CHECK(strstr(ein_ctx_message(ctx), "failing") != NULL);
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
  }
}

int main(void) {
  test_statements();
  test_failures();
  printf("provider: %d checks, %d failed\n", checks, failures);
  return failures > 0;
}
