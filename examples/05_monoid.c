// Folds of your own: a monoid says how values are lifted into a state, how two states merge, and
// what a state finishes as. Here the range (largest minus smallest) of each row, in one pass, and a
// scalar function of your own inside the expression.
//   cc examples/05_monoid.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <math.h>
#include <stdio.h>

// A state is (smallest, largest), in two arrays; all three work on chunks of n.
static void lift(int64_t n, const void *x, void *const *state, void *user) {
  (void)user;
  for (int s = 0; s < 2; s++) {
    for (int64_t i = 0; i < n; i++) ((double *)state[s])[i] = ((const double *)x)[i];
  }
}

static void merge(int64_t n, void *const *acc, const void *const *more, void *user) {
  double *lo = (double *)acc[0], *hi = (double *)acc[1];
  const double *lo2 = (const double *)more[0], *hi2 = (const double *)more[1];
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    if (lo2[i] < lo[i]) lo[i] = lo2[i];
    if (hi2[i] > hi[i]) hi[i] = hi2[i];
  }
}

static void finish(int64_t n, const void *const *state, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    ((double *)out)[i] = ((const double *)state[1])[i] - ((const double *)state[0])[i];
  }
}

// in[0] is an amplitude, user the scale: out = 20 log10(x / scale).
static void decibel(int64_t n, const void *const *in, void *out, void *user) {
  for (int64_t i = 0; i < n; i++) {
    ((double *)out)[i] = 20 * log10(((const double *)in[0])[i] / *(const double *)user);
  }
}

int main(void) {
  double a[3][4] = {{1, 10, 100, 1000}, {5, 5, 5, 5}, {0.1, 1, 10, 1}}, y[3], scale = 1;
  int64_t sa[] = {3, 4}, sy[] = {3};
  ein_ztensor in = ein_tensor(EIN_F64, 2, sa, a);
  ein_ztensor out = ein_tensor(EIN_F64, 1, sy, y);
  ein_monoid range = {.name = "range", .nstate = 2, .dtype = EIN_F64,
                      .identity = {INFINITY, -INFINITY}, .no_identity = 1,
                      .lift_fn = lift, .merge_fn = merge, .finish_fn = finish};
  ein_function db = {.name = "db", .nargs = 1, .dtype = EIN_F64, .fn = decibel, .user = &scale};
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  if (ein_ctx_monoid(ctx, &range) != EIN_OK || ein_ctx_function(ctx, &db) != EIN_OK) return 1;

  ein_einsum_desc desc = {.expr = "ij->i", .nin = 1, .in = &in, .out = &out, .monoid = "range"};
  if (ein_einsum_ex(ctx, &desc) != EIN_OK) return 1;
  printf("range    %g %g %g\n", y[0], y[1], y[2]);
  desc.map = "db(x0)";
  if (ein_einsum_ex(ctx, &desc) != EIN_OK) return 1;
  printf("in dB    %g %g %g\n", y[0], y[1], y[2]);
  desc.monoid = "logsumexp";  // those of the library, too
  desc.map = "-x0";
  if (ein_einsum_ex(ctx, &desc) != EIN_OK) return 1;
  printf("softmin  %.4f %.4f %.4f\n", -y[0], -y[1], -y[2]);
  ein_ctx_destroy(ctx);
  return 0;
}
