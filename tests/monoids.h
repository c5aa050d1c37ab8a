// Monoids of our own. Include after einsum.h's implementation, with CHECK defined.

// span: f64, least and greatest value; their difference.
static void span_lift(int64_t n, const void *x, void *const *state, void *user) {
  (void)user;
  for (int s = 0; s < 2; s++) memcpy(state[s], x, (size_t)n * sizeof(double));
}

static void span_merge(int64_t n, void *const *acc, const void *const *more, void *user) {
  double *a = (double *)acc[0], *b = (double *)acc[1];
  const double *c = (const double *)more[0], *d = (const double *)more[1];
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    if (c[i] < a[i]) a[i] = c[i];
    if (d[i] > b[i]) b[i] = d[i];
  }
}

static void span_finish(int64_t n, const void *const *state, void *out, void *user) {
  const double *a = (const double *)state[0], *b = (const double *)state[1];
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = b[i] >= a[i] ? b[i] - a[i] : -1;
}

// spread: f32, count, sum and sum of absolute values; their quotient.
static void spread_lift(int64_t n, const void *x, void *const *state, void *user) {
  const float *v = (const float *)x;
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    ((float *)state[0])[i] = 1;
    ((float *)state[1])[i] = v[i];
    ((float *)state[2])[i] = v[i] < 0 ? -v[i] : v[i];
  }
}

static void spread_merge(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int s = 0; s < 3; s++)
    for (int64_t i = 0; i < n; i++) ((float *)acc[s])[i] += ((const float *)more[s])[i];
}

static void spread_finish(int64_t n, const void *const *state, void *out, void *user) {
  const float *a = (const float *)state[0], *b = (const float *)state[1],
              *c = (const float *)state[2];
  (void)user;
  for (int64_t i = 0; i < n; i++) ((float *)out)[i] = (b[i] + c[i]) / (a[i] + 1);
}

static void parity_merge(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((uint32_t *)acc[0])[i] ^= ((const uint32_t *)more[0])[i];
}

// Registers span, spread and parity.
static void monoids_add(ein_ctx *ctx) {
  static const ein_monoid own[] = {
      {"span", 2, EIN_F64, {HUGE_VAL, -HUGE_VAL, 0, 0}, 0, span_lift, span_merge, span_finish, 0,
       NULL},
      {"spread", 3, EIN_F32, {0, 0, 0, 0}, 0, spread_lift, spread_merge, spread_finish, 0, NULL},
      {"parity", 1, EIN_I32, {0, 0, 0, 0}, 1, NULL, parity_merge, NULL, 0, NULL}};
  for (int k = 0; k < 3; k++) CHECK(ein_ctx_monoid(ctx, &own[k]) == EIN_OK);
}
