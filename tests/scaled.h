// Random contractions with D = alpha * fold + beta * C in every dtype that has kernels, against
// loops over all labels. Values are small integers, so that results are equal in any
// order of sums.
// Included after einsum.h and CHECK.

#include <math.h>

static uint64_t scaled_state = 88172645463325252u;

static int64_t scaled_pick(int64_t n) {
  scaled_state ^= scaled_state << 13;
  scaled_state ^= scaled_state >> 7;
  scaled_state ^= scaled_state << 17;
  return (int64_t)(scaled_state % (uint64_t)n);
}

static void scaled_get(ein_dtype t, const void *p, int64_t i, double *v) {
  v[0] = v[1] = 0;
  switch (t) {
    case EIN_I32: v[0] = ((const int32_t *)p)[i]; break;
    case EIN_I64: v[0] = (double)((const int64_t *)p)[i]; break;
    case EIN_F32: v[0] = (double)((const float *)p)[i]; break;
    case EIN_F64: v[0] = ((const double *)p)[i]; break;
    case EIN_C64:
      v[0] = (double)((const float *)p)[2 * i], v[1] = (double)((const float *)p)[2 * i + 1];
      break;
    default: v[0] = ((const double *)p)[2 * i], v[1] = ((const double *)p)[2 * i + 1];
  }
}

static void scaled_set(ein_dtype t, void *p, int64_t i, double re, double im) {
  switch (t) {
    case EIN_I32: ((int32_t *)p)[i] = (int32_t)re; break;
    case EIN_I64: ((int64_t *)p)[i] = (int64_t)re; break;
    case EIN_F32: ((float *)p)[i] = (float)re; break;
    case EIN_F64: ((double *)p)[i] = re; break;
    case EIN_C64: ((float *)p)[2 * i] = (float)re, ((float *)p)[2 * i + 1] = (float)im; break;
    default: ((double *)p)[2 * i] = re, ((double *)p)[2 * i + 1] = im;
  }
}

typedef struct scaled_tensor {
  ein_ztensor v;
  char label[5];
  int64_t shape[4], strides[4], count;
} scaled_tensor;

// Axes in the order of memory, in another one, or with gaps.
static void scaled_make(scaled_tensor *x, ein_dtype t, const char *label, int n,
                        const int64_t *extent, int nan) {
  const int way = (int)scaled_pick(3);
  memset(x, 0, sizeof *x);
  memcpy(x->label, label, (size_t)n);
  x->count = 1;
  for (int i = 0; i < n; i++) {
    const int a = way == 1 ? i : n - 1 - i;
    x->shape[a] = extent[label[a] - 'a'];
    x->strides[a] = x->count;
    x->count *= x->shape[a] + (way == 2 ? 3 : 0);
  }
  x->v.dtype = t;
  x->v.rank = n;
  x->v.shape = x->shape;
  x->v.strides = x->strides;
  x->v.data = malloc((size_t)x->count * 16);
  const int pairs = t == EIN_C64 || t == EIN_C128;
  for (int64_t i = 0; i < x->count; i++) {
    const double re = nan ? NAN : (double)(scaled_pick(7) - 3);
    scaled_set(t, x->v.data, i, re, pairs ? (double)(scaled_pick(5) - 2) : 0);
  }
}

static int64_t scaled_at(const scaled_tensor *x, const int64_t *index) {
  int64_t at = 0;
  for (int a = 0; a < x->v.rank; a++) at += index[x->label[a] - 'a'] * x->strides[a];
  return at;
}

// One case; returns whether all of the output is right, and nothing else was written.
static int scaled_case(ein_ctx *ctx, const char *expr, ein_dtype t, const int64_t *extent,
                       const ein_scalar *alpha, const ein_scalar *beta, int own) {
  scaled_tensor x[4];  // operands, output, C
  ein_einsum_desc d;
  ein_ztensor in[2];
  const char *at = expr;
  const int none = beta->re == 0 && beta->im == 0 && t >= EIN_F32;
  int good = 1;
  for (int k = 0; k < 4; k++) {
    const char *from = k < 3 ? at : x[2].label;
    const int n = k < 3 ? (int)strcspn(at, ",-") : x[2].v.rank;
    scaled_make(&x[k], t, from, n, extent, none && k > 1);
    at += n + (k == 0 ? 1 : 2);
    if (k < 2) in[k] = x[k].v;
    if (k == 1 && expr[strlen(expr) - 1] == '>') at = "";
  }
  const size_t bytes = (size_t)x[2].count * 16;
  char *want = (char *)malloc(bytes);
  memcpy(want, x[2].v.data, bytes);
  for (int64_t o[4] = {0, 0, 0, 0}, go = 1, k; go;) {  // over the output's labels
    double sum[2] = {0, 0}, y[2], w[2] = {0, 0};
    int64_t i[4], all[4];
    for (k = 0; k < 4; k++) {
      const int letter = (int)('a' + k);
      all[k] = strchr(x[2].label, letter) != NULL || strchr(expr, letter) == NULL;
      i[k] = all[k] ? o[k] : 0;
    }
    for (int64_t more = 1; more;) {
      double p[2], q[2];
      scaled_get(t, x[0].v.data, scaled_at(&x[0], i), p);
      scaled_get(t, x[1].v.data, scaled_at(&x[1], i), q);
      sum[0] += p[0] * q[0] - p[1] * q[1], sum[1] += p[0] * q[1] + p[1] * q[0];
      for (k = 3; k >= 0 && (all[k] || ++i[k] == extent[k]); k--)
        if (!all[k]) i[k] = 0;
      more = k >= 0;
    }
    const scaled_tensor *c = &x[own ? 2 : 3];
    if (alpha->set) {
      y[0] = alpha->re * sum[0] - alpha->im * sum[1];
      sum[1] = alpha->re * sum[1] + alpha->im * sum[0], sum[0] = y[0];
    }
    if (beta->set && !none) {
      scaled_get(t, c->v.data, scaled_at(c, o), w);
      sum[0] += beta->re * w[0] - beta->im * w[1], sum[1] += beta->re * w[1] + beta->im * w[0];
    }
    scaled_set(t, want, scaled_at(&x[2], o), sum[0], sum[1]);
    for (k = 3; k >= 0; k--) {
      if (strchr(x[2].label, (int)('a' + k)) == NULL) continue;
      if (++o[k] < extent[k]) break;
      o[k] = 0;
    }
    go = k >= 0;
  }
  memset(&d, 0, sizeof d);
  d.expr = expr, d.nin = 2, d.in = in, d.out = &x[2].v;
  d.alpha = *alpha, d.beta = *beta;
  if (!own) d.c = &x[3].v;
  good = ein_einsum_ex(ctx, &d) == EIN_OK;
  for (int64_t i = 0; i < x[2].count; i++) {
    double a[2], b[2];
    scaled_get(t, want, i, a);
    scaled_get(t, x[2].v.data, i, b);
    for (int h = 0; h < 2; h++) good &= a[h] == b[h] || (isnan(a[h]) && isnan(b[h]));
  }
  for (int k = 0; k < 4; k++) free(x[k].v.data);
  free(want);
  return good;
}

static void test_scaled_store(ein_ctx *ctx, int cases) {
  static const char *const expr[] = {"ab,bc->ac", "ab,cb->ac", "ab,bc->ca", "ba,bc->ac",
                                     "dab,dbc->dac", "abd,bcd->acd", "ab,b->a", "b,ba->a", "a,a->",
                                     "a,b->ab", "abc,cd->abd", "da,da->d"};
  static const ein_dtype type[] = {EIN_F32, EIN_F64, EIN_C64, EIN_C128, EIN_I32, EIN_I64};
  static const int64_t size[] = {1, 2, 3, 4, 7, 16, 17, 33, 64, 100};
  for (int i = 0; i < cases; i++) {
    const ein_dtype t = type[scaled_pick(6)];
    const char *e = expr[scaled_pick((int64_t)(sizeof expr / sizeof *expr))];
    int64_t extent[4], work = 1;
    for (int k = 0; k < 4; k++) {
      extent[k] = size[scaled_pick(10)];
      if (i % 17 == 0 && k == 1) extent[k] = 250;
      if (strchr(e, 'a' + k) == NULL) extent[k] = 1;
      while (work * extent[k] > 400000) extent[k] = (extent[k] + 1) / 2;
      work *= extent[k];
    }
    ein_scalar alpha = {(int)scaled_pick(2), (double)(scaled_pick(5) - 2), 0}, beta = {0, 0, 0};
    if (scaled_pick(4) > 0) beta.set = 1, beta.re = (double)(scaled_pick(4) - 1);
    if (t == EIN_C64 || t == EIN_C128) alpha.im = (double)scaled_pick(2), beta.im = beta.re;
    if (!alpha.set) alpha.re = alpha.im = 0;
    const int good = scaled_case(ctx, e, t, extent, &alpha, &beta, (int)scaled_pick(2));
    if (!good)
      printf("%s %s %lld %lld %lld %lld alpha %d %g beta %d %g\n", e, ein_dtype_name(t),
             (long long)extent[0], (long long)extent[1], (long long)extent[2],
             (long long)extent[3], alpha.set, alpha.re, beta.set, beta.re);
    CHECK(good);
  }
}

// Workspace of n x n products; scaled: with alpha and beta; variant: of ein_options.
static size_t scaled_room(ein_ctx *ctx, ein_dtype t, int64_t n, int scaled, const char *variant) {
  const int64_t shape[2] = {n, n};
  ein_ztensor v[2];
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  memset(v, 0, sizeof v);
  v[0].dtype = t, v[0].rank = 2, v[0].shape = shape;
  v[1] = v[0];
  d.expr = "ij,jk->ik", d.nin = 2, d.in = v, d.out = &v[0];
  d.alpha.set = d.beta.set = scaled;
  d.alpha.re = 2, d.beta.re = 3;
  d.options.variant = variant;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  const size_t room = plan == NULL ? SIZE_MAX : ein_plan_workspace(plan);
  ein_plan_destroy(plan);
  return room;
}

// alpha and beta are applied where sums are stored: every thread needs next to nothing for them.
// A plain product that needs no workspace at all may win: then that of `variant` (or NULL) counts.
static void test_scaled_room(ein_ctx *ctx, size_t threads, const char *variant) {
  static const ein_dtype type[] = {EIN_F32, EIN_F64, EIN_C64, EIN_C128, EIN_I32, EIN_I64};
  for (int i = 0; i < 6; i++) {
    const size_t small = scaled_room(ctx, type[i], 3, 1, NULL);
    const size_t large = scaled_room(ctx, type[i], 300, 1, NULL);
    const size_t won = scaled_room(ctx, type[i], 300, 0, NULL);
    const size_t same = scaled_room(ctx, type[i], 300, 0, variant), bare = won > same ? won : same;
    printf("alpha and beta, %s: 3 by 3 %zu bytes (%zu without), 300 by 300 %zu (%zu)\n",
           ein_dtype_name(type[i]), small, scaled_room(ctx, type[i], 3, 0, NULL), large, bare);
    CHECK(small <= 1024 * threads);
    CHECK(large <= bare + 65536 * threads);
  }
}
