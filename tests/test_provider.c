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
  CHECK(ein_ctx_add_function(ctx, functions) == EIN_OK);
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
    double worst = 0;
    for (int i = 0; i < CELLS; i++) worst = fmax(worst, fabs(by[0][i] - by[1][i]));
    CHECK(worst <= 1e-11);
    if (worst > 1e-11) printf("  %s %s: off by %g\n", statements[k].expr, statements[k].map, worst);
  }
  CHECK(memcmp(by[0], by[1], sizeof by) != 0 || by[0][0] != 0);
}

int main(void) {
  test_statements();
  printf("provider: %d checks, %d failed\n", checks, failures);
  return failures > 0;
}
