// The public calls for einsums: descriptors, plans, caching, executors, errors, memory.
//
//   test_einsum [seed]      prints "ok <n> checks" and exits 0; 1 with file:line on failure
//
// Random problems hold small integers, so that results are exact in every dtype used and are
// compared for equality with a loop over the whole index space.
#define _DEFAULT_SOURCE
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define HAVE_MMAP 1
#else
#define HAVE_MMAP 0
#endif

static long checks = 0;
static uint64_t rng_state = 1;

#define CHECK(cond)                                                        \
  do {                                                                     \
    checks++;                                                              \
    if (!(cond)) {                                                         \
      printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #cond);               \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

#define CHECK_STATUS(want, expr)                                           \
  do {                                                                     \
    ein_status check_status = (expr);                                      \
    checks++;                                                              \
    if (check_status != (want)) {                                          \
      printf("FAIL %s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #expr,  \
             ein_status_name(check_status), #want);                        \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

#define CHECK_OK(expr) CHECK_STATUS(EIN_OK, expr)

#include "scaled.h"

static uint64_t rng(void) {  // splitmix64
  uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int draw(int lo, int hi) {  // both inclusive
  return lo + (int)(rng() % (uint64_t)(hi - lo + 1));
}

static int chance(int percent) { return draw(0, 99) < percent; }

// ---- an allocator that counts and fails ---------------------------------------------------------

typedef struct counter {
  long calls, live;
  size_t bytes;
  long fail_at;  // the call that fails, counted from 0; -1: none
} counter;

static void *counting_alloc(size_t size, size_t align, void *user) {
  counter *c = (counter *)user;
  if (c->calls++ == c->fail_at) return NULL;
  char *raw = (char *)malloc(size + align + sizeof(void *));
  if (raw == NULL) return NULL;
  uintptr_t p = ((uintptr_t)raw + sizeof(void *) + align - 1) / align * align;
  memcpy(raw + (p - (uintptr_t)raw) - sizeof raw, &raw, sizeof raw);
  c->live++;
  c->bytes += size;
  return raw + (p - (uintptr_t)raw);
}

static void counting_free(void *ptr, size_t size, void *user) {
  counter *c = (counter *)user;
  void *raw;
  if (ptr == NULL) return;
  memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  free(raw);
  c->live--;
  c->bytes -= size;  // a wrong size shows at the end
}

static ein_ctx_desc counted_desc(counter *c) {
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  memset(c, 0, sizeof *c);
  c->fail_at = -1;
  d.allocator.alloc_fn = counting_alloc;
  d.allocator.free_fn = counting_free;
  d.allocator.user = c;
  return d;
}

static ein_ctx *counted_ctx(counter *c, int cache_plans) {
  ein_ctx_desc d = counted_desc(c);
  ein_ctx *ctx;
  d.cache_plans = cache_plans;
  CHECK_OK(ein_ctx_create(&d, &ctx));
  return ctx;
}

static void counted_end(counter *c, ein_ctx *ctx) {
  ein_ctx_destroy(ctx);
  CHECK(c->live == 0 && c->bytes == 0);
}

// ---- views --------------------------------------------------------------------------------------

static ein_ztensor view(ein_dtype dtype, void *data, int rank, const int64_t *shape,
                        const int64_t *strides) {
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = dtype;
  v.rank = rank;
  v.shape = shape;
  v.strides = strides;
  v.data = data;
  return v;
}

static ein_einsum_desc describe(const char *expr, int nin, const ein_ztensor *in,
                                const ein_ztensor *out) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  d.out = out;
  return d;
}

static ein_scalar scalar(double re, double im) {
  ein_scalar s;
  s.set = 1;
  s.re = re;
  s.im = im;
  return s;
}

static const int64_t S2[] = {2}, S3[] = {3}, S4[] = {4}, S23[] = {2, 3}, S34[] = {3, 4},
                     S24[] = {2, 4}, S33[] = {3, 3}, S22[] = {2, 2};

static int has(const char *text, const char *part) { return strstr(text, part) != NULL; }

// ---- random problems with an exact answer -------------------------------------------------------

enum { MAX_IN = 4, MAX_AXES = 7, MAX_LABELS = 8 };

typedef struct problem {
  int nin, nlabel, nout;
  int64_t extent[MAX_LABELS];
  int rank[MAX_IN + 1], label[MAX_IN + 1][MAX_AXES];     // the last one is the output
  int64_t shape[MAX_IN + 1][MAX_AXES], stride[MAX_IN + 1][MAX_AXES];
  int64_t lo[MAX_IN + 1], hi[MAX_IN + 1];                // elements spanned, from data
  ein_dtype dtype[MAX_IN + 1];
  char expr[128];
} problem;

static void problem_strides(problem *p, int k, int plain) {
  int order[MAX_AXES], rank = p->rank[k];
  int64_t span = 1;
  for (int a = 0; a < rank; a++) order[a] = a;
  for (int a = rank - 1; a > 0 && !plain; a--) {
    int b = draw(0, a), t = order[a];
    order[a] = order[b];
    order[b] = t;
  }
  p->lo[k] = p->hi[k] = 0;
  for (int i = rank - 1; i >= 0; i--) {
    int a = order[i];
    int64_t s = span * (plain ? 1 : draw(0, 3) ? 1 : draw(2, 3));
    span = s * p->shape[k][a];
    if (!plain && chance(20)) s = -s;
    if (!plain && k < p->nin && chance(4)) s = 0;
    p->stride[k][a] = s;
    *(s < 0 ? &p->lo[k] : &p->hi[k]) += s * (p->shape[k][a] - 1);
  }
}

static void problem_expr(problem *p) {
  char *s = p->expr;
  for (int k = 0; k <= p->nin; k++) {
    if (k == p->nin) {
      *s++ = '-';
      *s++ = '>';
    } else if (k > 0) {
      *s++ = ',';
    }
    for (int a = 0; a < p->rank[k]; a++) *s++ = (char)('a' + p->label[k][a]);
  }
  *s = 0;
}

// limit: size of the index space; zeros: extents may be 0.
static void problem_draw(problem *p, int limit) {
  static const ein_dtype dtypes[] = {EIN_F32, EIN_F64, EIN_I32, EIN_I64, EIN_C64, EIN_C128};
  int64_t space = 1;
  char used[MAX_LABELS] = {0};
  memset(p, 0, sizeof *p);
  p->nin = draw(1, MAX_IN);
  p->nlabel = draw(1, MAX_LABELS);
  for (int i = 0; i < p->nlabel; i++) {
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 70};
    int64_t n = sizes[draw(0, limit > 5000 ? 11 : 7)];
    if (space * n > limit) n = 1;
    p->extent[i] = n;
    space *= n;
  }
  ein_dtype base = dtypes[draw(0, 5)], top = EIN_NONE;
  for (int k = 0; k < p->nin; k++) {
    p->rank[k] = draw(0, 4);
    for (int a = 0; a < p->rank[k]; a++) {
      int l = draw(0, p->nlabel - 1), twice = 0;
      for (int b = 0; b < a; b++) twice |= p->label[k][b] == l;
      if (twice && chance(70)) {  // few diagonals
        p->rank[k] = a;
        break;
      }
      p->label[k][a] = l;
      p->shape[k][a] = p->extent[l];
      used[l] = 1;
    }
    p->dtype[k] = chance(75) ? base : dtypes[draw(0, 5)];
    top = ein_dtype_promote(top, p->dtype[k]);
    problem_strides(p, k, chance(40));
  }
  int o = p->nin;
  for (int l = 0; l < p->nlabel && p->rank[o] < 6; l++) {
    if (used[l] && chance(55)) p->label[o][p->rank[o]++] = l;
  }
  for (int a = p->rank[o] - 1; a > 0; a--) {
    int b = draw(0, a), t = p->label[o][a];
    p->label[o][a] = p->label[o][b];
    p->label[o][b] = t;
  }
  for (int a = 0; a < p->rank[o]; a++) p->shape[o][a] = p->extent[p->label[o][a]];
  p->dtype[o] = top;
  problem_strides(p, o, chance(40));
  for (int l = 0; l < p->nlabel; l++) {
    if (!used[l]) p->extent[l] = 1;
  }
  problem_expr(p);
}

static size_t problem_bytes(const problem *p, int k) {
  return (size_t)(p->hi[k] - p->lo[k] + 1) * ein_dtype_size(p->dtype[k]);
}

static void element_put(ein_dtype t, void *at, double re, double im) {
  float f[2];
  double d[2];
  int32_t i = (int32_t)re;
  int64_t l = (int64_t)re;
  f[0] = (float)re;
  f[1] = (float)im;
  d[0] = re;
  d[1] = im;
  switch (t) {
    case EIN_I32: memcpy(at, &i, sizeof i); break;
    case EIN_I64: memcpy(at, &l, sizeof l); break;
    case EIN_F32: memcpy(at, f, sizeof *f); break;
    case EIN_F64: memcpy(at, d, sizeof *d); break;
    case EIN_C64: memcpy(at, f, sizeof f); break;
    default: memcpy(at, d, sizeof d); break;
  }
}

static void element_get(ein_dtype t, const void *at, double *z) {
  float f[2];
  int32_t i;
  int64_t l;
  z[1] = 0;
  switch (t) {
    case EIN_I32: memcpy(&i, at, sizeof i); z[0] = i; break;
    case EIN_I64: memcpy(&l, at, sizeof l); z[0] = (double)l; break;
    case EIN_F32: memcpy(f, at, sizeof *f); z[0] = (double)f[0]; break;
    case EIN_F64: memcpy(z, at, sizeof *z); break;
    case EIN_C64:
      memcpy(f, at, sizeof f);
      z[0] = (double)f[0];
      z[1] = (double)f[1];
      break;
    default: memcpy(z, at, 2 * sizeof *z); break;
  }
}

static void problem_fill(const problem *p, int k, char *mem) {
  size_t size = ein_dtype_size(p->dtype[k]);
  for (int64_t i = 0; i <= p->hi[k] - p->lo[k]; i++) {
    element_put(p->dtype[k], mem + (size_t)i * size, draw(-3, 3), draw(-3, 3));
  }
}

// Views over memory that holds elements lo .. hi of each.
static void problem_views(const problem *p, char *const *mem, ein_ztensor *v) {
  for (int k = 0; k <= p->nin; k++) {
    v[k] = view(p->dtype[k], mem[k] - p->lo[k] * (int64_t)ein_dtype_size(p->dtype[k]), p->rank[k],
                p->shape[k], p->stride[k]);
  }
}

static int64_t problem_offset(const problem *p, int k, const int64_t *at) {
  int64_t off = 0;
  for (int a = 0; a < p->rank[k]; a++) off += at[p->label[k][a]] * p->stride[k][a];
  return off * (int64_t)ein_dtype_size(p->dtype[k]);
}

// The exact sum of products at each output element against what is there.
static int problem_right(const problem *p, const ein_ztensor *v) {
  int64_t at[MAX_LABELS] = {0};
  int order[MAX_LABELS], nfree = 0, n = 0;
  char is_free[MAX_LABELS] = {0};
  for (int a = 0; a < p->rank[p->nin]; a++) {
    order[n++] = p->label[p->nin][a];
    is_free[p->label[p->nin][a]] = 1;
  }
  nfree = n;
  for (int l = 0; l < p->nlabel; l++) {
    if (!is_free[l]) order[n++] = l;
  }
  double sum[2] = {0, 0};
  for (;;) {
    double z[2] = {1, 0}, x[2], got[2];
    for (int k = 0; k < p->nin; k++) {
      element_get(p->dtype[k], (const char *)v[k].data + problem_offset(p, k, at), x);
      double re = z[0] * x[0] - z[1] * x[1];
      z[1] = z[0] * x[1] + z[1] * x[0];
      z[0] = re;
    }
    sum[0] += z[0];
    sum[1] += z[1];
    int d = n - 1;
    while (d >= nfree && ++at[order[d]] == p->extent[order[d]]) at[order[d--]] = 0;
    if (d >= nfree) continue;
    int o = p->nin;
    element_get(p->dtype[o], (const char *)v[o].data + problem_offset(p, o, at), got);
    if (got[0] != sum[0] || got[1] != sum[1]) return 0;
    sum[0] = sum[1] = 0;
    while (d >= 0 && ++at[order[d]] == p->extent[order[d]]) at[order[d--]] = 0;
    if (d < 0) return 1;
  }
}

static void problem_alloc(const problem *p, char **mem) {
  for (int k = 0; k <= p->nin; k++) {
    mem[k] = (char *)malloc(problem_bytes(p, k));
    CHECK(mem[k] != NULL);
    problem_fill(p, k, mem[k]);
  }
}

static void problem_free(const problem *p, char **mem) {
  for (int k = 0; k <= p->nin; k++) free(mem[k]);
}

// ---- level 1 ------------------------------------------------------------------------------------

static void test_level1(void) {
  double a[6] = {1, 2, 3, 4, 5, 6}, b[12], c[8], t[6], s = 0;
  for (int i = 0; i < 12; i++) b[i] = i;
  ein_ztensor in[2], pair[2], out = view(EIN_F64, c, 2, S24, NULL);
  in[0] = view(EIN_F64, a, 2, S23, NULL);
  in[1] = view(EIN_F64, b, 2, S34, NULL);
  ein_ctx *ctx;
  CHECK_OK(ein_ctx_create(NULL, &ctx));
  for (int pass = 0; pass < 2; pass++) {
    ein_ctx *use = pass ? NULL : ctx;
    memset(c, 0, sizeof c);
    CHECK_OK(ein_einsum(use, "ij,jk->ik", 2, in, &out));
    CHECK(c[0] == 32 && c[1] == 38 && c[3] == 50 && c[4] == 68 && c[7] == 113);
    ein_ztensor tr = view(EIN_F64, t, 2, S23, NULL), sum = view(EIN_F64, &s, 0, NULL, NULL);
    const int64_t swapped[] = {3, 2};
    tr.shape = swapped;
    CHECK_OK(ein_einsum(use, "ij->ji", 1, in, &tr));
    CHECK(t[0] == 1 && t[1] == 4 && t[2] == 2 && t[5] == 6);
    CHECK_OK(ein_einsum(use, "ij->", 1, in, &sum));
    CHECK(s == 21);
    pair[0] = pair[1] = in[0];
    CHECK_OK(ein_einsum(use, "ij,ij->", 2, pair, &sum));
    CHECK(s == 91);
    const int64_t square[] = {2, 2};
    in[0].shape = square;
    CHECK_OK(ein_einsum(use, "ii", 1, in, &sum));
    CHECK(s == 5);
    in[0].shape = S23;
  }
  int64_t shape[4];
  ein_ztensor r;
  CHECK_OK(ein_einsum_out(ctx, "ij,jk", 2, in, &r, shape, 4));
  CHECK(r.rank == 2 && r.dtype == EIN_F64 && shape[0] == 2 && shape[1] == 4 && r.shape == shape);
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out(ctx, "ij,jk", 2, in, &r, shape, 1));
  CHECK(r.rank == 2 && shape[0] == 2);
  CHECK_OK(ein_einsum_out(NULL, "ij,jk->", 2, in, &r, NULL, 0));
  CHECK(r.rank == 0);
  ein_ctx_destroy(ctx);
}

static void test_random(void) {
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 0);
  for (int i = 0; i < 600; i++) {
    problem p;
    char *mem[MAX_IN + 1];
    ein_ztensor v[MAX_IN + 1];
    problem_draw(&p, i % 20 == 0 ? 20000 : 2000);
    problem_alloc(&p, mem);
    problem_views(&p, mem, v);
    CHECK_OK(ein_einsum(i % 3 ? ctx : NULL, p.expr, p.nin, v, &v[p.nin]));
    if (!problem_right(&p, v)) printf("problem %d: %s\n", i, p.expr);
    CHECK(problem_right(&p, v));
    problem_free(&p, mem);
  }
  counted_end(&c, ctx);
}

// ---- every choice of a descriptor ---------------------------------------------------------------

static void test_scaled(ein_ctx *ctx) {
  double a[6] = {1, 2, 3, 4, 5, 6}, b[12], c[8], d[8], nan = 0.0;
  nan = nan / nan;
  for (int i = 0; i < 12; i++) b[i] = i;
  ein_ztensor in[2], out = view(EIN_F64, d, 2, S24, NULL), cv = view(EIN_F64, c, 2, S24, NULL);
  in[0] = view(EIN_F64, a, 2, S23, NULL);
  in[1] = view(EIN_F64, b, 2, S34, NULL);
  ein_einsum_desc e = describe("ij,jk->ik", 2, in, &out);
  for (int i = 0; i < 8; i++) c[i] = 100 + i;
  e.alpha = scalar(2, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 64 && d[7] == 226);
  e.beta = scalar(3, 0);
  e.c = &cv;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 64 + 300 && d[7] == 226 + 321);
  e.c = NULL;  // C is the output itself
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 64 + 3 * 364 && d[7] == 226 + 3 * 547);
  e.alpha.set = 0;
  e.beta = scalar(-1, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 32 - 1156 && d[7] == 113 - 1867);
  for (int i = 0; i < 8; i++) d[i] = c[i] = nan;
  e.beta = scalar(0, 0);  // C is never read: its NaN stays out
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 32 && d[7] == 113);
  e.c = &cv;
  d[0] = nan;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 32 && d[7] == 113);
  e.alpha = scalar(0.5, 0);
  e.beta = scalar(1, 0);
  for (int i = 0; i < 8; i++) c[i] = i;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 16 && d[7] == 56.5 + 7);
  e.expr = "ij,jk->i";  // nothing of C's shape
  CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum_ex(ctx, &e));
  // Beta is honoured where nothing is summed, and where the sum is empty.
  double x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  const int64_t none[] = {4, 0};
  ein_ztensor xv = view(EIN_F64, x, 1, S4, NULL), yv = view(EIN_F64, y, 1, S4, NULL);
  e = describe("i->i", 1, &xv, &yv);
  e.beta = scalar(2, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(y[0] == 21 && y[3] == 84);
  ein_ztensor empty = view(EIN_F64, NULL, 2, none, NULL);
  e.expr = "ij->i";
  e.in = &empty;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(y[0] == 42 && y[3] == 168);
  // A strided, reversed C and a transposed output.
  const int64_t back[] = {-4, 1}, cross[] = {1, 2};
  cv.strides = back;
  cv.data = c + 4;
  out.strides = cross;
  e = describe("ij,jk->ik", 2, in, &out);
  e.c = &cv;
  e.beta = scalar(1, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(d[0] == 32 + 4 && d[1] == 68 && d[7] == 113 + 3);
}

// D = alpha * fold + beta * C where labels repeated in the output are equal, added to what was
// there with accumulate; the other elements are no part of the statement, whatever the factors.
static void test_scaled_rest(ein_ctx *ctx) {
  const int64_t s32[] = {3, 2}, s2[] = {2}, s33[] = {3, 3}, across[] = {1, 3};
  double a[6] = {1, -2, 3, 4, -5, 6}, x[2] = {2, 7}, c[9], d[9];
  ein_ztensor in[2], out = view(EIN_F64, d, 2, s33, NULL);
  ein_ztensor cv = view(EIN_F64, c, 2, s33, across);
  in[0] = view(EIN_F64, a, 2, s32, NULL);
  in[1] = view(EIN_F64, x, 1, s2, NULL);
  for (int t = 0; t < 3 * 2 * 3 * 2; t++) {
    int rest = EIN_REST_ZERO + t % 3, own = t / 18;
    double alpha = t / 3 % 2 ? -2 : 1, beta = t / 6 % 3 == 2 ? 3 : 0;
    ein_einsum_desc e = describe("ij,j->ii", 2, in, &out);
    e.rest = (ein_rest)rest;
    if (t / 3 % 2) e.alpha = scalar(alpha, 0);
    if (t / 6 % 3) e.beta = scalar(beta, 0);
    if (!own) e.c = &cv;
    for (int i = 0; i < 9; i++) d[i] = 10 + i, c[i] = 100 + i;
    CHECK_OK(ein_einsum_ex(ctx, &e));
    for (int i = 0; i < 3; i++) {
      for (int k = 0; k < 3; k++) {
        double was = 10 + 3 * i + k, sum = a[2 * i] * x[0] + a[2 * i + 1] * x[1];
        double want = rest == EIN_REST_ZERO ? 0 : was;
        if (i == k) {
          want = alpha * sum + beta * (own ? was : 100 + i + 3 * k);
          if (rest == EIN_REST_ACCUMULATE) want += was;
        }
        CHECK(d[3 * i + k] == want);
      }
    }
  }
}

// The same where nothing is folded, with axes in another order: one statement makes all of it.
static void test_scaled_maps(ein_ctx *ctx) {
  static const struct {
    const char *expr, *map;
    int nin;
  } list[] = {{"ij->ji", NULL, 1}, {"ij,i->ji", NULL, 2}, {"i,j->ji", NULL, 2},
              {"ij->ji", "x0*x0-1", 1}, {"ij,i->ji", "x0/x1", 2}};
  const int64_t s32[] = {3, 2};
  double a[6] = {1, -2, 3, 4, -5, 6}, x[3] = {2, 7, -1}, c[6], d[6];
  for (int t = 0; t < 5 * 2 * 3 * 2; t++) {
    const int k = t % 5, own = t / 30, two = k == 2;
    ein_ztensor in[2], out = view(EIN_F64, d, 2, s32, NULL), cv = view(EIN_F64, c, 2, s32, NULL);
    in[0] = two ? view(EIN_F64, a, 1, S2, NULL) : view(EIN_F64, a, 2, S23, NULL);
    in[1] = view(EIN_F64, x, 1, two ? S3 : S2, NULL);
    ein_einsum_desc e = describe(list[k].expr, list[k].nin, in, &out);
    const double alpha = t / 5 % 2 ? -2 : 1, beta = t / 10 % 3 == 2 ? 3 : 0;
    e.map = list[k].map;
    if (t / 5 % 2) e.alpha = scalar(alpha, 0);
    if (t / 10 % 3) e.beta = scalar(beta, 0);
    if (!own) e.c = &cv;
    for (int i = 0; i < 6; i++) d[i] = 10 + i, c[i] = 100 + i;
    CHECK_OK(ein_einsum_ex(ctx, &e));
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 3; j++) {
        const double was = own ? 10 + 2 * j + i : 100 + 2 * j + i, y = a[3 * i + j];
        const double value[] = {y, y * x[i], a[i] * x[j], y * y - 1, y / x[i]};
        CHECK(d[2 * j + i] == alpha * value[k] + beta * was);
      }
    }
  }
}

static void test_complex(ein_ctx *ctx) {
  double a[4] = {1, 2, 3, -1}, b[4] = {0, 1, 2, 2}, s[2], d[2];
  ein_ztensor in[2], out = view(EIN_C128, s, 0, NULL, NULL);
  in[0] = view(EIN_C128, a, 1, S2, NULL);
  in[1] = view(EIN_C128, b, 1, S2, NULL);
  unsigned char conj[2] = {1, 0};
  ein_einsum_desc e = describe("i,i->", 2, in, &out);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == -2 + 8 && s[1] == 1 + 4);
  e.conj = conj;  // conj(1+2i)*(i) + conj(3-i)*(2+2i) = (2+i) + (4+8i)
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == 6 && s[1] == 9);
  conj[1] = 1;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == 6 && s[1] == -5);
  conj[0] = 0;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == 6 && s[1] == -9);
  e.alpha = scalar(0, 1);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == 9 && s[1] == 6);
  d[0] = d[1] = 1;
  ein_ztensor c = view(EIN_C128, d, 0, NULL, NULL);
  e.c = &c;
  e.beta = scalar(0, 2);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s[0] == 7 && s[1] == 8);
  e = describe("i->i", 1, in, &in[1]);  // element-wise conjugation
  conj[0] = 1;
  e.conj = conj;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(b[0] == 1 && b[1] == -2 && b[2] == 3 && b[3] == 1);
}

static double fold_of(ein_ctx *ctx, const char *expr, const char *monoid, int nin,
                      const ein_ztensor *in) {
  double r[8] = {0};
  ein_ztensor out = view(EIN_F64, r, 0, NULL, NULL);
  ein_einsum_desc e = describe(expr, nin, in, &out);
  e.monoid = monoid;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  return r[0];
}

static void test_monoids(ein_ctx *ctx) {
  double a[3] = {2, -5, 3}, b[3] = {4, 2, -1}, nan = 0.0;
  const int64_t zero[] = {0};
  nan = nan / nan;
  ein_ztensor in[2], none = view(EIN_F64, NULL, 1, zero, NULL);
  in[0] = view(EIN_F64, a, 1, S3, NULL);
  in[1] = view(EIN_F64, b, 1, S3, NULL);
  CHECK(fold_of(ctx, "i->", "sum", 1, in) == 0);
  CHECK(fold_of(ctx, "i->", "max", 1, in) == 3);
  CHECK(fold_of(ctx, "i->", "min", 1, in) == -5);
  CHECK(fold_of(ctx, "i->", "prod", 1, in) == -30);
  CHECK(fold_of(ctx, "i,i->", "max", 2, in) == 8);
  CHECK(fold_of(ctx, "i,i->", "min", 2, in) == -10);
  CHECK(fold_of(ctx, "i,j->", "max", 2, in) == 12);
  CHECK(fold_of(ctx, "i,j->", "min", 2, in) == -20);
  double lse = fold_of(ctx, "i->", "logsumexp", 1, in);
  CHECK(lse > 3.3135 && lse < 3.3136);
  CHECK(fold_of(ctx, "i->", "sum", 1, &none) == 0);
  CHECK(fold_of(ctx, "i->", "prod", 1, &none) == 1);
  CHECK(fold_of(ctx, "i->", "max", 1, &none) < -1e308);
  CHECK(fold_of(ctx, "i->", "min", 1, &none) > 1e308);
  a[1] = nan;
  double m = fold_of(ctx, "i->", "max", 1, in);
  CHECK(m != m);
  a[1] = -5;
  unsigned char flags[4] = {0, 1, 1, 1}, yes = 9;
  ein_ztensor f = view(EIN_BOOL, flags, 2, S22, NULL), out = view(EIN_BOOL, &yes, 0, NULL, NULL);
  ein_einsum_desc e = describe("ij->", 1, &f, &out);
  e.monoid = "any";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(yes == 1);
  e.monoid = "all";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(yes == 0);
  unsigned char rows[2];
  out = view(EIN_BOOL, rows, 1, S2, NULL);
  e.expr = "ij->i";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(rows[0] == 0 && rows[1] == 1);
  e.monoid = "median";
  CHECK_STATUS(EIN_ERR_NAME, ein_einsum_ex(ctx, &e));
  CHECK(has(ein_ctx_message(ctx), "median"));
  int64_t at = 0;
  ein_ztensor pos = view(EIN_I64, &at, 0, NULL, NULL);
  e = describe("i->", 1, in, &pos);
  e.monoid = "argmax";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(at == 2);
  e.monoid = "argmin";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(at == 1);
  e.in = &none;
  CHECK_STATUS(EIN_ERR_EMPTY, ein_einsum_ex(ctx, &e));
}

static void test_maps(ein_ctx *ctx) {
  double a[3] = {1, 2, 3}, b[3] = {3, 5, 1}, r = 0, c[3];
  ein_ztensor in[2], out = view(EIN_F64, &r, 0, NULL, NULL), each = view(EIN_F64, c, 1, S3, NULL);
  in[0] = view(EIN_F64, a, 1, S3, NULL);
  in[1] = view(EIN_F64, b, 1, S3, NULL);
  ein_einsum_desc e = describe("i,i->", 2, in, &out);
  e.map = "(x0 - x1)^2";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r == 4 + 9 + 4);
  e.monoid = "max";
  e.map = "abs(x0 - x1)";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r == 3);
  e.monoid = NULL;
  e.expr = "i,j->";
  e.map = "x0 + 10*x1";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r == 18 + 270);
  e.map = "x1";  // an operand that only gives extents
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r == 27);
  const struct { const char *map; double value; } folded[] = {  // functions of constants
      {"x0*exp(0.5)", exp(0.5)}, {"x0*log(0.5)", log(0.5)}, {"x0*sqrt(0.5)", sqrt(0.5)},
      {"x0*rsqrt(0.5)", 1 / sqrt(0.5)}, {"x0*expm1(0.5)", expm1(0.5)},
      {"x0*log1p(0.5)", log1p(0.5)}, {"x0*sin(0.5)", sin(0.5)}, {"x0*cos(0.5)", cos(0.5)},
      {"x0*tan(0.5)", tan(0.5)}, {"x0*tanh(0.5)", tanh(0.5)},
      {"x0*atan2(0.5, -2)", atan2(0.5, -2)}, {"x0*abs(-0.5)", 0.5}, {"x0*floor(-0.5)", -1},
      {"x0*ceil(0.5)", 1}, {"x0*0.5^3", 0.125}, {"x0*mod(7.5, 2)", 1.5}};
  for (size_t k = 0; k < sizeof folded / sizeof *folded; k++) {
    e.expr = "i,i->";
    e.map = folded[k].map;
    CHECK_OK(ein_einsum_ex(ctx, &e));
    CHECK(fabs(r - 6 * folded[k].value) <= 1e-14 * fabs(r));
  }
  e.expr = "i,i->i";
  e.map = "where(x0 < x1, x0, 0)";
  e.out = &each;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(c[0] == 1 && c[1] == 2 && c[2] == 0);
  e.alpha = scalar(10, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(c[0] == 10 && c[1] == 20 && c[2] == 0);
  e.alpha.set = 0;
  e.expr = "i,i->";
  e.map = "x0 < x1";  // booleans of the language are counted
  int64_t shape[1], count = 0;
  ein_ztensor n = view(EIN_I64, &count, 0, NULL, NULL);
  e.out = NULL;
  ein_ztensor like;
  CHECK_OK(ein_einsum_out_ex(ctx, &e, &like, shape, 1));
  CHECK(like.dtype == EIN_I64 && like.rank == 0);
  e.out = &n;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(count == 2);
  e.out = &out;
  e.map = "x0 + x2";
  CHECK_STATUS(EIN_ERR_NAME, ein_einsum_ex(ctx, &e));
  CHECK(ein_ctx_error(ctx, 0)->column == 6 && has(ein_ctx_error(ctx, 0)->source, "x0 + x2"));
  e.map = "x0 +";
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum_ex(ctx, &e));
  e.map = "";
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum_ex(ctx, &e));
  unsigned char conj[2] = {1, 0};
  e.map = "x0*x1";
  e.conj = conj;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
}

// A quotient by a product is as far off as two roundings, of which the first is of the divisor.
static void test_error_bound(ein_ctx *ctx) {
  float x[3] = {1, 2, 3}, y[3] = {0};
  ein_ztensor in[3], out = view(EIN_F32, y, 1, S3, NULL);
  for (int k = 0; k < 3; k++) in[k] = view(EIN_F32, x, 1, S3, NULL);
  ein_einsum_desc e = describe("i,i,i->i", 3, in, &out);
  e.map = "x0/(x1*x2)";
  ein_plan *plan = NULL;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  static char text[1 << 14];
  CHECK(ein_plan_json(plan, text, sizeof text) < sizeof text);
  const char *at = strstr(text, "\"error_bound\": ");
  const double u = ldexp(1, -24), divisor = u / (1 - u), want = divisor + u + divisor * u;
  CHECK(at != NULL && fabs(strtod(at + 15, NULL) / want - 1) < 1e-12);
  CHECK(ein_plan_explain(plan, text, sizeof text) < sizeof text);
  CHECK(strstr(text, "error at most 1.19e-07 of") != NULL);
  ein_plan_destroy(plan);
}

static void test_labels(ein_ctx *ctx) {
  double a[6] = {1, 2, 3, 4, 5, 6}, b[12], c[8];
  for (int i = 0; i < 12; i++) b[i] = i;
  ein_ztensor in[2], out = view(EIN_F64, c, 2, S24, NULL);
  in[0] = view(EIN_F64, a, 2, S23, NULL);
  in[1] = view(EIN_F64, b, 2, S34, NULL);
  int la[] = {2147483647, 0}, lb[] = {0, 1000000007}, lc[] = {2147483647, 1000000007};
  const int *labels[3];
  int n[3] = {2, 2, 2};
  labels[0] = la;
  labels[1] = lb;
  labels[2] = lc;
  ein_einsum_desc e = describe(NULL, 2, in, &out);
  e.labels = labels;
  e.nlabels = n;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(c[0] == 32 && c[7] == 113);
  labels[2] = NULL;  // implicit: ascending, so transposed
  const int64_t S42[] = {4, 2};
  out.shape = S42;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(c[0] == 32 && c[1] == 68 && c[7] == 113);
  int da[] = {EIN_ELLIPSIS, 5}, db[] = {5, 7}, dc[] = {EIN_ELLIPSIS, 7};
  labels[0] = da;
  labels[1] = db;
  labels[2] = dc;
  out.shape = S24;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(c[0] == 32 && c[7] == 113);
  n[2] = 0;  // an empty list is an explicit scalar, so the ellipsis is missing
  CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum_ex(ctx, &e));
  n[2] = 2;
  da[1] = -2;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
  da[1] = EIN_ELLIPSIS;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
  da[1] = 5;
  n[0] = -1;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
  n[0] = 2;
  labels[0] = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
  labels[0] = da;
  dc[1] = 8;
  CHECK_STATUS(EIN_ERR_NAME, ein_einsum_ex(ctx, &e));
  CHECK(has(ein_ctx_message(ctx), "8"));
}

static void test_rest(ein_ctx *ctx) {
  double a[3] = {1, 2, 3}, m[9], b[6] = {1, 2, 3, 4, 5, 6}, t[12];
  const int64_t S223[] = {2, 2, 3};
  ein_ztensor in = view(EIN_F64, a, 1, S3, NULL), out = view(EIN_F64, m, 2, S33, NULL);
  ein_einsum_desc e = describe("i->ii", 1, &in, &out);
  CHECK_STATUS(EIN_ERR_NAME, ein_einsum_ex(ctx, &e));
  for (int rest = EIN_REST_ZERO; rest <= EIN_REST_ACCUMULATE; rest++) {
    e.rest = (ein_rest)rest;
    for (int twice = 0; twice < 2; twice++) {
      for (int i = 0; i < 9; i++) m[i] = 10;
      CHECK_OK(ein_einsum_ex(ctx, &e));
      double off = rest == EIN_REST_ZERO ? 0 : 10, on = rest == EIN_REST_ACCUMULATE ? 10 : 0;
      for (int i = 0; i < 9; i++) CHECK(m[i] == (i % 4 ? off : on + 1 + i / 4));
    }
  }
  in = view(EIN_F64, b, 2, S23, NULL);
  out = view(EIN_F64, t, 3, S223, NULL);
  e.expr = "ij->iij";
  for (int rest = EIN_REST_ZERO; rest <= EIN_REST_ACCUMULATE; rest++) {
    e.rest = (ein_rest)rest;
    for (int i = 0; i < 12; i++) t[i] = 10;
    CHECK_OK(ein_einsum_ex(ctx, &e));
    double off = rest == EIN_REST_ZERO ? 0 : 10, on = rest == EIN_REST_ACCUMULATE ? 10 : 0;
    for (int i = 0; i < 12; i++) {
      int diagonal = i < 3 || i >= 9;
      CHECK(t[i] == (diagonal ? on + b[i < 3 ? i : i - 6] : off));
    }
  }
  // With a sum, with an output that overlaps the input, and without a repeat.
  in = view(EIN_F64, m, 2, S33, NULL);
  out = view(EIN_F64, m, 2, S33, NULL);
  e.expr = "ij->ii";
  for (int rest = EIN_REST_ZERO; rest <= EIN_REST_ACCUMULATE; rest++) {
    e.rest = (ein_rest)rest;
    for (int i = 0; i < 9; i++) m[i] = i;
    CHECK_OK(ein_einsum_ex(ctx, &e));
    for (int i = 0; i < 9; i++) {
      double sum = 9.0 * (i / 3) + 3;
      CHECK(m[i] == (i % 4 ? (rest == EIN_REST_ZERO ? 0 : i)
                           : sum + (rest == EIN_REST_ACCUMULATE ? i : 0)));
    }
  }
  e = describe("ij->j", 1, &in, &out);
  double v[3] = {7, 7, 7};
  out = view(EIN_F64, v, 1, S3, NULL);
  for (int i = 0; i < 9; i++) m[i] = 1;
  e.rest = EIN_REST_ZERO;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(v[0] == 3 && v[2] == 3);
}

static void test_options(ein_ctx *ctx) {
  static const char *const paths[] = {"auto", "naive", "none", "optimal", "dp", "greedy", "random",
                                      "(0,1) (0,1)", "(1,2) (0,1)", "[(0, 2), (0, 1)]", "1,2 0,1"};
  double a[6] = {1, 2, 3, 4, 5, 6}, b[9], c[6], s = 0;
  for (int i = 0; i < 9; i++) b[i] = i;
  ein_ztensor in[3], out = view(EIN_F64, &s, 0, NULL, NULL);
  const int64_t S32[] = {3, 2};
  for (int i = 0; i < 6; i++) c[i] = 1 + i % 2;
  in[0] = view(EIN_F64, a, 2, S23, NULL);
  in[1] = view(EIN_F64, b, 2, S33, NULL);
  in[2] = view(EIN_F64, c, 2, S32, NULL);
  ein_einsum_desc e = describe("ij,jk,kl->", 3, in, &out);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  double want = s;
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    for (int goal = 0; goal < 3; goal++) {
      e.options.path = paths[i];
      e.options.goal = (ein_goal)goal;
      s = 0;
      CHECK_OK(ein_einsum_ex(ctx, &e));
      CHECK(s == want);
    }
    static const char *const steps[] = {"(0,1) (0,1)", "(1,2) (0,1)", "(0,2) (0,1)", "(1,2) (0,1)"};
    char said[32] = "";
    ein_plan *plan = NULL;
    CHECK_OK(ein_plan_create(ctx, &e, &plan));
    CHECK(ein_plan_path(plan, said, sizeof said) == strlen(said));
    if (i >= 7) CHECK(strcmp(said, steps[i - 7]) == 0);
    if (strcmp(paths[i], "none") == 0) CHECK(said[0] == 0);
    ein_plan_destroy(plan);
  }
  // Positions of two digits.
  ein_ztensor many[12];
  for (int i = 0; i < 12; i++) many[i] = view(EIN_F64, a, 1, S2, NULL);
  ein_einsum_desc twelve = describe("a,a,a,a,a,a,a,a,a,a,a,a->", 12, many, &out);
  const char *const long_path =
      "(10,11) (0,10) (8,9) (0,1) (2,7) (0,1) (0,5) (1,4) (1,2) (0,1) (0,1)";
  char long_said[128] = "";
  ein_plan *long_plan = NULL;
  twelve.options.path = long_path;
  CHECK_OK(ein_plan_create(ctx, &twelve, &long_plan));
  CHECK(ein_plan_path(long_plan, long_said, sizeof long_said) == strlen(long_said));
  CHECK(strcmp(long_said, long_path) == 0);
  ein_plan_destroy(long_plan);
  CHECK_OK(ein_einsum_ex(ctx, &twelve));
  CHECK(s == 1 + 4096);
  static const char *const bad[] = {"fastest", "(0,3) (0,1)", "(0,1)", "(0,0) (0,1)",
                                    "(0,1) (0,1) (0,1)", "(0", ""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    e.options.path = bad[i];
    ein_status st = ein_einsum_ex(ctx, &e);
    if (st != EIN_ERR_ARGUMENT) printf("path '%s': %s\n", bad[i], ein_status_name(st));
    CHECK(st == EIN_ERR_ARGUMENT);
    CHECK(ein_ctx_message(ctx)[0]);
  }
  e.options.path = NULL;
  e.options.goal = (ein_goal)17;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
  e.options.goal = EIN_GOAL_FLOPS;
  e.rest = (ein_rest)-1;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &e));
}

// ---- large counts -------------------------------------------------------------------------------

static void test_utf8(ein_ctx *ctx) {
  double a[6] = {1, 2, 3, 4, 5, 6}, c[6];
  const int64_t S32[] = {3, 2};
  ein_ztensor in = view(EIN_F64, a, 2, S23, NULL), out = view(EIN_F64, c, 2, S32, NULL);
  CHECK_OK(ein_einsum(ctx, "\xce\xb1\xce\xb2->\xce\xb2\xce\xb1", 1, &in, &out));
  CHECK(c[0] == 1 && c[1] == 4 && c[5] == 6);
  CHECK_OK(ein_einsum(ctx, "\xf0\x9f\x98\x80\xe6\xbc\xa2->\xe6\xbc\xa2\xf0\x9f\x98\x80", 1, &in,
                      &out));
  CHECK(c[0] == 1 && c[1] == 4 && c[5] == 6);
  // Implicit output is by code point: the Han letter comes before the emoji.
  CHECK_OK(ein_einsum(ctx, "\xf0\x9f\x98\x80\xe6\xbc\xa2", 1, &in, &out));
  CHECK(c[1] == 4);
  static const char *const bad[] = {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80",
                                    "i\x80", "\xe6\xbc", "\xf0\x8f\xbf\xbf", "\xe0\x9f\xbf",
                                    "\x01"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, bad[i], 1, &in, &out));
    CHECK(ein_ctx_error(ctx, 0)->line == 1);
  }
  CHECK_STATUS(EIN_ERR_NAME, ein_einsum(ctx, "\xce\xb1\xce\xb2->\xce\xb3", 1, &in, &out));
  CHECK(ein_ctx_error(ctx, 0)->column == 5 && ein_ctx_error(ctx, 0)->width == 1);
  CHECK(has(ein_ctx_message(ctx), "\xce\xb3"));
}

static void test_many(ein_ctx *ctx) {
  enum { N = 1000, R = 40 };
  static double x[N][2];
  static char expr[2 * N + 8];
  ein_ztensor *in = (ein_ztensor *)malloc(N * sizeof *in);
  double s = 0, v[2];
  CHECK(in != NULL);
  char *p = expr;
  for (int k = 0; k < N; k++) {
    x[k][0] = k % 2 ? 2.0 : 0.5;
    x[k][1] = k % 3 ? 1.0 : -1.0;
    in[k] = view(EIN_F64, x[k], 1, S2, NULL);
    if (k > 0) *p++ = ',';
    *p++ = 'i';
  }
  memcpy(p, "->", 3);
  ein_ztensor out = view(EIN_F64, &s, 0, NULL, NULL);
  CHECK_OK(ein_einsum(ctx, expr, N, in, &out));
  CHECK(s == 1 + 1);  // 334 factors -1
  memcpy(p, "->i", 4);
  out = view(EIN_F64, v, 1, S2, NULL);
  CHECK_OK(ein_einsum(ctx, expr, N, in, &out));
  CHECK(v[0] == 1 && v[1] == 1);
  // A chain of 1000 matrices by integer labels.
  static double m[N][4];
  static int label[N + 1][2], n[N + 1];
  static const int *labels[N + 1];
  double r[4];
  for (int k = 0; k < N; k++) {
    m[k][0] = m[k][1] = m[k][3] = 1;  // [[1 1] [0 1]]
    m[k][2] = 0;
    in[k] = view(EIN_F64, m[k], 2, S22, NULL);
    label[k][0] = k;
    label[k][1] = k + 1;
    labels[k] = label[k];
    n[k] = 2;
  }
  label[N][0] = 0;
  label[N][1] = N;
  labels[N] = label[N];
  n[N] = 2;
  out = view(EIN_F64, r, 2, S22, NULL);
  ein_einsum_desc e = describe(NULL, N, in, &out);
  e.labels = labels;
  e.nlabels = n;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r[0] == 1 && r[1] == N && r[2] == 0 && r[3] == 1);
  free(in);
  // Operands of 40 axes: extents 1 but for three, strided; and extents 2 under one label.
  int64_t shape[R], stride[R], d3[] = {3, 2, 2};
  int la[R], lo[3] = {5, 39, 20};
  double y[64], z[12], w[2];
  for (int i = 0; i < 64; i++) y[i] = i;
  for (int a = 0; a < R; a++) {
    shape[a] = 1;
    stride[a] = 17;
    la[a] = a;
  }
  shape[5] = 3;
  stride[5] = 4;
  shape[20] = 2;
  stride[20] = 1;
  shape[39] = 2;
  stride[39] = 2;
  ein_ztensor big = view(EIN_F64, y, R, shape, stride);
  out = view(EIN_F64, z, 3, d3, NULL);
  labels[0] = la;
  labels[1] = lo;
  n[0] = R;
  n[1] = 3;
  e = describe(NULL, 1, &big, &out);
  e.labels = labels;
  e.nlabels = n;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  for (int i = 0; i < 12; i++) CHECK(z[i] == i);
  for (int a = 0; a < R; a++) {
    shape[a] = 2;
    stride[a] = 1;
    la[a] = 3;
  }
  lo[0] = 3;
  n[1] = 1;
  out = view(EIN_F64, w, 1, S2, NULL);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(w[0] == 0 && w[1] == 40);
}

// ---- plans --------------------------------------------------------------------------------------

typedef struct bound {
  const void *in[MAX_IN + 2];
  void *out[1];
  ein_run run;
} bound;

static void bind(bound *b, const ein_ztensor *in, int nin, const ein_ztensor *out) {
  memset(b, 0, sizeof *b);
  for (int k = 0; k < nin; k++) b->in[k] = in[k].data;
  b->out[0] = out->data;
  b->run.in = b->in;
  b->run.out = b->out;
}

static void test_plans(void) {
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 0);
  for (int i = 0; i < 300; i++) {
    problem p;
    char *mem[MAX_IN + 1];
    ein_ztensor v[MAX_IN + 1];
    bound b;
    ein_plan *plan;
    ein_plan_info info;
    problem_draw(&p, i % 10 ? 1500 : 20000);
    problem_alloc(&p, mem);
    problem_views(&p, mem, v);
    ein_einsum_desc e = describe(p.expr, p.nin, v, &v[p.nin]);
    e.options.may_overlap = i & 1;
    CHECK_OK(ein_plan_create(ctx, &e, &plan));
    size_t need = ein_plan_workspace(plan);
    CHECK_OK(ein_plan_info_get(plan, &info));
    CHECK(info.nin == p.nin && info.nout == 1 && info.nparam == 0 && info.workspace_bytes == need);
    char *space = (char *)malloc(need + 1 + 64);
    CHECK(space != NULL);
    memset(space, 0x5A, need + 1);
    bind(&b, v, p.nin, &v[p.nin]);
    b.run.workspace = space;
    b.run.workspace_bytes = need;
    long calls = c.calls;
    CHECK_OK(ein_plan_execute(plan, &b.run));
    CHECK(c.calls == calls);  // nothing is allocated
    CHECK(problem_right(&p, v));
    CHECK(space[need] == 0x5A);
    // The same plan without a workspace, and with other data.
    for (int k = 0; k < p.nin; k++) problem_fill(&p, k, mem[k]);
    b.run.workspace = NULL;
    long live = c.live;
    CHECK_OK(ein_plan_execute(plan, &b.run));
    CHECK(c.live == live);
    CHECK(problem_right(&p, v));
    if (need > 0) {
      char message[64];
      b.run.workspace = space;
      b.run.workspace_bytes = 0;
      b.run.error = message;
      b.run.error_bytes = sizeof message;
      CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &b.run));
      CHECK(has(message, "workspace"));
    }
    free(space);
    ein_plan_destroy(plan);
    problem_free(&p, mem);
  }
  counted_end(&c, ctx);
}

// A plan outlives its ctx; params are bound by each run; infos name everything.
static void test_plan_params(void) {
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 0);
  double a[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 0, -1}, y[2] = {100, 200}, z[2];
  ein_ztensor in[2], out = view(EIN_F64, NULL, 1, S2, NULL), cv = out;
  in[0] = view(EIN_F64, NULL, 2, S23, NULL);
  in[1] = view(EIN_F64, NULL, 1, S3, NULL);
  ein_einsum_desc e = describe("ij,j->i", 2, in, &out);
  ein_plan *plan;
  e.alpha = scalar(1, 0);
  e.beta = scalar(2, 0);
  e.c = &cv;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  ein_ctx_destroy(ctx);
  ein_tensor_info t;
  ein_param_info q;
  CHECK(ein_plan_input(plan, 0, &t) && t.rank == 2 && t.shape[1] == 3 && t.dtype == EIN_F64);
  CHECK(t.role == EIN_ROLE_INPUT);
  CHECK(ein_plan_input(plan, 2, &t) && t.rank == 1 && !ein_plan_input(plan, 3, &t));
  CHECK(ein_plan_output(plan, 0, &t) && t.role == EIN_ROLE_OUTPUT && !ein_plan_output(plan, 1, &t));
  CHECK(ein_plan_param(plan, 0, &q) && strcmp(q.name, "alpha") == 0);
  CHECK(q.has_default && q.value.re == 1);
  CHECK(ein_plan_param(plan, 1, &q) && strcmp(q.name, "beta") == 0 && q.value.re == 2);
  CHECK(!ein_plan_param(plan, 2, &q) && !ein_plan_param(plan, -1, &q));
  CHECK(!ein_plan_input(plan, -1, &t) && !ein_plan_output(plan, -1, &t));
  const void *data[3];
  void *outs[1];
  ein_run run;
  ein_scalar params[2];
  memset(&run, 0, sizeof run);
  data[0] = a;
  data[1] = x;
  data[2] = y;
  outs[0] = z;
  run.in = data;
  run.out = outs;
  CHECK_OK(ein_plan_execute(plan, &run));
  CHECK(z[0] == -2 + 200 && z[1] == -2 + 400);
  params[0] = scalar(10, 0);
  params[1].set = 0;  // not given: the default
  run.param = params;
  CHECK_OK(ein_plan_execute(plan, &run));
  CHECK(z[0] == -20 + 200 && z[1] == -20 + 400);
  params[1] = scalar(0, 0);
  y[0] = y[1] = 0.0 / (y[0] - y[0]);
  CHECK_OK(ein_plan_execute(plan, &run));
  CHECK(z[0] == -20 && z[1] == -20);
  char message[80];
  run.error = message;
  run.error_bytes = sizeof message;
  data[1] = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK(has(message, "input 1"));
  data[1] = x;
  outs[0] = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK(has(message, "output 0"));
  outs[0] = z;
  run.error_bytes = 3;  // a short buffer is cut, not overrun
  message[3] = 'Q';
  data[0] = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK(message[2] == 0 && message[3] == 'Q');
  char text[4096];
  size_t n = ein_plan_explain(plan, text, sizeof text);
  CHECK(n > 0 && n == ein_plan_explain(plan, NULL, 0));
  n = ein_plan_json(plan, text, sizeof text);
  CHECK(n > 0 && n < sizeof text && text[0] == '{' && strlen(text) == n);
  CHECK(ein_plan_json(plan, text, 5) == n && strlen(text) == 4);
  ein_plan_destroy(plan);
  CHECK(c.live == 0 && c.bytes == 0);
}

// ---- executors ----------------------------------------------------------------------------------

typedef struct fake_pool {
  long calls;
  int inside, order, nested;
  const ein_plan *plan;  // run once more inside a task: executing is reentrant
  ein_run *run;
} fake_pool;

static void fake_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  fake_pool *f = (fake_pool *)user;
  if (f->inside) f->nested = 1;
  f->inside++;
  f->calls++;
  for (int i = 0; i < n; i++) {  // backwards, or the even parts before the odd ones
    int half = (n + 1) / 2;
    task(arg, f->order == 0 ? n - 1 - i : i < half ? 2 * i : 2 * (i - half) + 1);
  }
  f->inside--;
  if (f->plan != NULL) {
    const ein_plan *plan = f->plan;
    f->plan = NULL;
    CHECK_OK(ein_plan_execute(plan, f->run));
    f->plan = plan;
  }
}

static ein_ctx *pooled_ctx(fake_pool *f, int width) {
  ein_ctx_desc d;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  d.executor.width = width;
  d.executor.parallel_for = fake_for;
  d.executor.user = f;
  d.cache_plans = -1;
  CHECK_OK(ein_ctx_create(&d, &ctx));
  return ctx;
}

// Real numbers whose sums do round, so that another order would show.
static void fill_rough(const problem *p, int k, char *mem) {
  size_t size = ein_dtype_size(p->dtype[k]);
  for (int64_t i = 0; i <= p->hi[k] - p->lo[k]; i++) {
    double re = (double)(rng() >> 11) / 9007199254740992.0, im = (double)(rng() >> 40) / 16777216.0;
    element_put(p->dtype[k], mem + (size_t)i * size, re - 0.5, im - 0.5);
  }
}

static void test_widths(void) {
  static const char *const monoids[] = {NULL, NULL, NULL, "max", "prod", "logsumexp"};
  ein_ctx *one;
  fake_pool f;
  long cut = 0;
  CHECK_OK(ein_ctx_create(NULL, &one));
  for (int i = 0; i < 300; i++) {
    problem p;
    char *mem[MAX_IN + 1], *first;
    ein_ztensor v[MAX_IN + 1];
    double space;
    do {  // tasks that are too small are not cut
      space = 1;
      problem_draw(&p, 300000);
      for (int l = 0; l < p.nlabel; l++) space *= (double)p.extent[l];
    } while (space < 40000);
    for (int k = 0; k <= p.nin; k++) {
      if (p.dtype[k] == EIN_C64 || p.dtype[k] == EIN_C128) p.dtype[k] = EIN_F32;
    }
    if (p.dtype[p.nin] < EIN_F32) p.dtype[p.nin] = EIN_F64;
    problem_alloc(&p, mem);
    for (int k = 0; k < p.nin; k++) fill_rough(&p, k, mem[k]);
    problem_views(&p, mem, v);
    ein_einsum_desc e = describe(p.expr, p.nin, v, &v[p.nin]);
    e.monoid = monoids[draw(0, 5)];
    if (e.monoid != NULL && strcmp(e.monoid, "logsumexp") == 0) {
      p.dtype[p.nin] = EIN_F64;
      free(mem[p.nin]);
      mem[p.nin] = (char *)malloc(problem_bytes(&p, p.nin));
      CHECK(mem[p.nin] != NULL);
      problem_views(&p, mem, v);
    }
    if (chance(20)) e.alpha = scalar(0.7, 0);
    size_t bytes = problem_bytes(&p, p.nin);
    memset(mem[p.nin], 0x11, bytes);
    CHECK_OK(ein_einsum_ex(one, &e));
    first = (char *)malloc(bytes);
    CHECK(first != NULL);
    memcpy(first, mem[p.nin], bytes);
    for (int w = 2; w <= 7; w += draw(1, 3)) {
      memset(&f, 0, sizeof f);
      f.order = draw(0, 1);
      ein_ctx *many = pooled_ctx(&f, w);
      memset(mem[p.nin], 0x11, bytes);
      CHECK_OK(ein_einsum_ex(many, &e));
      if (memcmp(first, mem[p.nin], bytes) != 0) {
        printf("width %d: %s %s\n", w, p.expr, e.monoid == NULL ? "" : e.monoid);
      }
      CHECK(memcmp(first, mem[p.nin], bytes) == 0);
      CHECK(!f.nested && f.inside == 0);
      cut += f.calls > 0;
      ein_ctx_destroy(many);
    }
    free(first);
    problem_free(&p, mem);
  }
  if (cut <= 100) printf("only %ld tasks were cut\n", cut);
  CHECK(cut > 100);  // the executor was really used
  ein_ctx_destroy(one);
}

static void test_reentrant(void) {
  enum { N = 64 };
  static float a[N * N], b[N * N], x[N * N], y[N * N], want[N * N];
  const int64_t shape[] = {N, N};
  ein_ztensor in[2], out = view(EIN_F32, x, 2, shape, NULL);
  fake_pool f;
  memset(&f, 0, sizeof f);
  ein_ctx *ctx = pooled_ctx(&f, 4);
  for (int i = 0; i < N * N; i++) {
    a[i] = (float)draw(-9, 9);
    b[i] = (float)draw(-9, 9);
  }
  in[0] = view(EIN_F32, a, 2, shape, NULL);
  in[1] = view(EIN_F32, b, 2, shape, NULL);
  CHECK_OK(ein_einsum(NULL, "ij,jk->ik", 2, in, &out));
  memcpy(want, x, sizeof x);
  ein_einsum_desc e = describe("ij,jk->ik", 2, in, &out);
  ein_plan *plan;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  bound outer, inner;
  bind(&outer, in, 2, &out);
  out.data = y;
  bind(&inner, in, 2, &out);
  f.plan = plan;
  f.run = &inner.run;
  memset(x, 0, sizeof x);
  CHECK_OK(ein_plan_execute(plan, &outer.run));
  CHECK(f.calls == 2);
  CHECK(memcmp(x, want, sizeof x) == 0 && memcmp(y, want, sizeof y) == 0);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
}

// ---- the cache ----------------------------------------------------------------------------------

static void test_cache(void) {
  static const char *const exprs[] = {"ij->ji", "ij->i", "ij->j"};
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 2);
  double a[9], b[9];
  for (int i = 0; i < 9; i++) a[i] = i;
  ein_ztensor in = view(EIN_F64, a, 2, S33, NULL), out[3];
  out[0] = view(EIN_F64, b, 2, S33, NULL);
  out[1] = out[2] = view(EIN_F64, b, 1, S3, NULL);
  static const int use[] = {0, 0, 1, 0, 1, 2, 1, 2, 0, 2, 1, 0};
  static const int hit[] = {0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0};  // least recently used goes
  for (int i = 0; i < 12; i++) {
    long calls = c.calls;
    CHECK_OK(ein_einsum(ctx, exprs[use[i]], 1, &in, &out[use[i]]));
    CHECK((c.calls == calls) == hit[i]);
    CHECK(b[1] == (use[i] == 0 ? 3 : 12));
  }
  // Other strides, dtypes, and options are other plans; strides of extent-1 axes are not.
  const int64_t S31[] = {3, 1}, one[] = {1, 1}, odd[] = {1, 77}, two[] = {2, 1};
  in = view(EIN_F64, a, 2, S31, one);
  CHECK_OK(ein_einsum(ctx, "ij->i", 1, &in, &out[1]));
  CHECK(b[2] == 2);
  long calls = c.calls;
  in.strides = odd;
  CHECK_OK(ein_einsum(ctx, "ij->i", 1, &in, &out[1]));
  CHECK(c.calls == calls && b[2] == 2);
  in.strides = two;
  CHECK_OK(ein_einsum(ctx, "ij->i", 1, &in, &out[1]));
  CHECK(c.calls > calls && b[2] == 4);
  float f[3];
  ein_ztensor narrow = view(EIN_F32, f, 1, S3, NULL);
  CHECK_OK(ein_einsum(ctx, "ij->i", 1, &in, &narrow));
  CHECK(f[2] == 4.0f);
  ein_einsum_desc e = describe("ij->i", 1, &in, &out[1]);
  e.alpha = scalar(2, 0);
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(b[2] == 8);
  calls = c.calls;
  e.alpha = scalar(3, 0);  // its value is no part of the plan
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(b[2] == 12 && c.calls == calls);
  e.alpha.set = 0;
  e.monoid = "max";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  e.monoid = "min";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(b[2] == 4);
  e.monoid = NULL;
  e.map = "-x0";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(b[2] == -4);
  CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum(ctx, "ijk->i", 1, &in, &out[1]));
  CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum(ctx, "ijk->i", 1, &in, &out[1]));  // errors are not kept
  CHECK(has(ein_ctx_message(ctx), "2 axes"));
  counted_end(&c, ctx);
  ctx = counted_ctx(&c, -1);  // no cache
  in = view(EIN_F64, a, 2, S33, NULL);
  long before = c.live;
  for (int i = 0; i < 3; i++) {
    calls = c.calls;
    CHECK_OK(ein_einsum(ctx, "ij->ji", 1, &in, &out[0]));
    CHECK(c.calls > calls && c.live == before);
  }
  counted_end(&c, ctx);
}

// ---- overlap ------------------------------------------------------------------------------------

static void test_overlap(ein_ctx *ctx) {
  double m[16], want[16];
  const int64_t S44[] = {4, 4};
  ein_ztensor a = view(EIN_F64, m, 2, S44, NULL), out = a;
  ein_einsum_desc e = describe("ij->ji", 1, &a, &out);
  ein_plan *plan;
  bound b;
  char message[80];
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  bind(&b, &a, 1, &out);
  b.run.error = message;
  b.run.error_bytes = sizeof message;
  CHECK_STATUS(EIN_ERR_OVERLAP, ein_plan_execute(plan, &b.run));
  CHECK(has(message, "overlaps input 0"));
  ein_plan_destroy(plan);
  e.options.may_overlap = 1;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  for (int i = 0; i < 16; i++) m[i] = i;
  CHECK_OK(ein_plan_execute(plan, &b.run));
  for (int i = 0; i < 16; i++) CHECK(m[i] == i % 4 * 4 + i / 4);
  ein_plan_destroy(plan);
  // Element-wise in place needs no copy, so no may_overlap either.
  ein_ztensor in[2];
  in[0] = in[1] = a;
  e = describe("ij,ij->ij", 2, in, &out);
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  bind(&b, in, 2, &out);
  b.run.error = message;
  b.run.error_bytes = sizeof message;
  CHECK_OK(ein_plan_execute(plan, &b.run));
  for (int i = 0; i < 16; i++) CHECK(m[i] == (i % 4 * 4 + i / 4) * (i % 4 * 4 + i / 4));
  ein_plan_destroy(plan);
  // One operand in place, the other read through another order: not safe.
  e.expr = "ij,ji->ij";
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  CHECK_STATUS(EIN_ERR_OVERLAP, ein_plan_execute(plan, &b.run));
  ein_plan_destroy(plan);
  // Interleaved but disjoint: even and odd elements.
  const int64_t two[] = {2}, S8[] = {8};
  ein_ztensor even = view(EIN_F64, m, 1, S8, two), odd = view(EIN_F64, m + 1, 1, S8, two);
  for (int i = 0; i < 16; i++) m[i] = i;
  e = describe("i->i", 1, &even, &odd);
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  bind(&b, &even, 1, &odd);
  CHECK_OK(ein_plan_execute(plan, &b.run));
  for (int i = 0; i < 16; i++) CHECK(m[i] == i / 2 * 2);
  ein_plan_destroy(plan);
  // Shifted by one, by level 1 and by a plan.
  const int64_t S15[] = {15};
  for (int by = 0; by < 2; by++) {
    for (int i = 0; i < 16; i++) want[i] = m[i] = i;
    ein_ztensor from = view(EIN_F64, m + (by ? 0 : 1), 1, S15, NULL);
    ein_ztensor to = view(EIN_F64, m + (by ? 1 : 0), 1, S15, NULL);
    for (int i = 0; i < 15; i++) want[i + (by ? 1 : 0)] = i + (by ? 0 : 1);
    CHECK_OK(ein_einsum(ctx, "i->i", 1, &from, &to));
    CHECK(memcmp(m, want, sizeof m) == 0);
  }
  for (int i = 0; i < 16; i++) m[i] = i;  // reversed onto itself
  const int64_t S16[] = {16}, back[] = {-1};
  ein_ztensor from = view(EIN_F64, m, 1, S16, NULL), to = view(EIN_F64, m + 15, 1, S16, back);
  CHECK_OK(ein_einsum(ctx, "i->i", 1, &from, &to));
  for (int i = 0; i < 16; i++) CHECK(m[i] == 15 - i);
  // A scalar result on top of its operand; several inputs over the output.
  ein_ztensor dot = view(EIN_F64, m + 3, 0, NULL, NULL);
  CHECK_OK(ein_einsum(ctx, "i->", 1, &from, &dot));
  CHECK(m[3] == 120);
  for (int i = 0; i < 16; i++) m[i] = i % 4 == i / 4 ? 2 : 1;
  in[0] = in[1] = a;
  CHECK_OK(ein_einsum(ctx, "ij,jk->ik", 2, in, &out));
  for (int i = 0; i < 16; i++) CHECK(m[i] == (i % 4 == i / 4 ? 7 : 6));
  // In place across dtypes of one size, and of another size.
  int64_t w[4] = {1, 2, 3, 4};
  ein_ztensor wi = view(EIN_I64, w, 1, S4, NULL), wd = view(EIN_F64, w, 1, S4, NULL);
  double d[4];
  CHECK_OK(ein_einsum(ctx, "i->i", 1, &wi, &wd));
  memcpy(d, w, sizeof d);
  CHECK(d[0] == 1 && d[3] == 4);
  float f[8] = {1, 2, 3, 4};
  ein_ztensor fi = view(EIN_F32, f, 1, S4, NULL), fd = view(EIN_F64, f, 1, S4, NULL);
  CHECK_OK(ein_einsum(ctx, "i->i", 1, &fi, &fd));
  memcpy(d, f, sizeof d);
  CHECK(d[0] == 1 && d[1] == 2 && d[3] == 4);
}

static void test_random_overlap(void) {
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 0);
  for (int i = 0; i < 400; i++) {
    problem p;
    char *mem[MAX_IN + 1], *pool, *was[MAX_IN + 1];
    ein_ztensor v[MAX_IN + 1], before[MAX_IN + 1];
    problem_draw(&p, 600);
    problem_alloc(&p, was);
    size_t total = 256;
    for (int k = 0; k <= p.nin; k++) total += problem_bytes(&p, k);
    pool = (char *)malloc(total);
    CHECK(pool != NULL);
    // Inputs side by side; the output anywhere over them.
    size_t at = 64;
    for (int k = 0; k < p.nin; k++) {
      mem[k] = pool + at;
      memcpy(mem[k], was[k], problem_bytes(&p, k));
      at += (problem_bytes(&p, k) + 15) / 16 * 16;
    }
    int room = (int)(total - problem_bytes(&p, p.nin) - 1);
    mem[p.nin] = chance(40) ? mem[draw(0, p.nin - 1)] : pool + draw(0, room);
    if (mem[p.nin] + problem_bytes(&p, p.nin) > pool + total) mem[p.nin] = pool;
    problem_views(&p, mem, v);
    CHECK_OK(ein_einsum(i % 4 ? ctx : NULL, p.expr, p.nin, v, &v[p.nin]));
    problem_views(&p, was, before);
    before[p.nin] = v[p.nin];
    if (!problem_right(&p, before)) printf("overlap %d: %s\n", i, p.expr);
    CHECK(problem_right(&p, before));
    free(pool);
    problem_free(&p, was);
  }
  counted_end(&c, ctx);
}

// ---- registered functions and monoids -----------------------------------------------------------

static void fn_half(int64_t n, const void *const *in, void *out, void *user) {
  const double *x = (const double *)in[0];
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = x[i] * *(const double *)user;
}

static void merge_bits(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((int64_t *)acc[0])[i] |= ((const int64_t *)more[0])[i];
}

static void lift_pair(int64_t n, const void *x, void *const *state, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    ((double *)state[0])[i] = ((const double *)x)[i];
    ((double *)state[1])[i] = ((const double *)x)[i];
  }
}

static void merge_pair(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    double *lo = (double *)acc[0], *hi = (double *)acc[1];
    const double *l = (const double *)more[0], *h = (const double *)more[1];
    if (l[i] < lo[i]) lo[i] = l[i];
    if (h[i] > hi[i]) hi[i] = h[i];
  }
}

static void finish_pair(int64_t n, const void *const *state, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    ((double *)out)[i] = ((const double *)state[1])[i] - ((const double *)state[0])[i];
  }
}

static void test_registered(void) {
  counter c;
  ein_ctx *ctx = counted_ctx(&c, 0);
  double half = 0.5, a[6] = {1, 7, 3, 10, -2, 4}, r[3], s;
  char name[16] = "half";
  ein_function f;
  memset(&f, 0, sizeof f);
  f.name = name;
  f.nargs = 1;
  f.fn = fn_half;
  f.user = &half;
  CHECK_OK(ein_ctx_function(ctx, &f));
  memset(name, 'x', 4);  // the name was copied
  ein_monoid m;
  memset(&m, 0, sizeof m);
  m.name = "bits";
  m.nstate = 1;
  m.dtype = EIN_I64;
  m.merge_fn = merge_bits;
  CHECK_OK(ein_ctx_monoid(ctx, &m));
  memset(&m, 0, sizeof m);
  m.name = "spread";
  m.nstate = 2;
  m.identity[0] = 1e300;
  m.identity[1] = -1e300;
  m.no_identity = 1;
  m.lift_fn = lift_pair;
  m.merge_fn = merge_pair;
  m.finish_fn = finish_pair;
  CHECK_OK(ein_ctx_monoid(ctx, &m));
  ein_ztensor in = view(EIN_F64, a, 2, S23, NULL), out = view(EIN_F64, r, 1, S2, NULL), one;
  ein_einsum_desc e = describe("ij->i", 1, &in, &out);
  e.map = "half(x0) + 1";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r[0] == 5.5 + 3 && r[1] == 6 + 3);
  half = 2;  // user data is read when it runs
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r[0] == 22 + 3 && r[1] == 24 + 3);
  e.map = NULL;
  e.monoid = "spread";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r[0] == 6 && r[1] == 12);
  e.expr = "ij->j";
  out.shape = S3;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(r[0] == 9 && r[1] == 9 && r[2] == 1);
  e.expr = "ij->";
  one = view(EIN_F64, &s, 0, NULL, NULL);
  e.out = &one;
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(s == 12);
  const int64_t none[] = {0, 3};
  in.shape = none;
  CHECK_STATUS(EIN_ERR_EMPTY, ein_einsum_ex(ctx, &e));
  int64_t bits[4] = {1, 4, 1, 16}, all = 0;
  ein_ztensor bv = view(EIN_I64, bits, 1, S4, NULL), bo = view(EIN_I64, &all, 0, NULL, NULL);
  e = describe("i->", 1, &bv, &bo);
  e.monoid = "bits";
  CHECK_OK(ein_einsum_ex(ctx, &e));
  CHECK(all == 21);
  // Names: taken, reserved, malformed; incomplete descriptions.
  static const char *const bad[] = {"half", "spread", "sum", "exp", "f64", "cast_f32", "softmax",
                                    "pi", "input", "", "2x", "a b", "a-b"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    f.name = bad[i];
    m.name = bad[i];
    CHECK_STATUS(EIN_ERR_NAME, ein_ctx_function(ctx, &f));
    CHECK_STATUS(EIN_ERR_NAME, ein_ctx_monoid(ctx, &m));
    CHECK(ein_ctx_errors(ctx) == 1);
  }
  f.name = NULL;
  CHECK_STATUS(EIN_ERR_NAME, ein_ctx_function(ctx, &f));
  f.name = "g";
  f.nargs = 0;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_function(ctx, &f));
  f.nargs = 9;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_function(ctx, &f));
  f.nargs = 1;
  f.dtype = EIN_F16;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_function(ctx, &f));
  f.dtype = EIN_NONE;
  f.fn = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_function(ctx, &f));
  m.name = "g";
  m.finish_fn = NULL;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_monoid(ctx, &m));
  m.nstate = 5;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_monoid(ctx, &m));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_monoid(ctx, NULL));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_function(NULL, &f));
  counted_end(&c, ctx);
}

// ---- messages -----------------------------------------------------------------------------------

typedef struct mistake {
  const char *expr;
  int shapes;  // which shapes the operands have, see below
  ein_status status;
  int column, width;
  const char *message, *hint;
} mistake;

static void log_last(ein_level level, const char *message, void *user) {
  CHECK(level == EIN_LOG_ERROR);
  snprintf((char *)user, 512, "%s", message);
}

static void test_messages(void) {
  // shapes 0: (2,3) and (3,4); 1: (2,3) and (4,3); 2: (2,3) and (2); 3: one operand (2,3)
  static const mistake table[] = {
      {"ij,jk->ik", 1, EIN_ERR_SHAPE, 4, 1,
       "index 'j': operand 0 axis 1 has extent 3, operand 1 axis 0 has 4", ""},
      {"ijk,jk", 0, EIN_ERR_SHAPE, 1, 3, "operand 0 has 2 axes, its term names 3", ""},
      {"ij,k", 0, EIN_ERR_SHAPE, 4, 1, "operand 1 has 2 axes, its term names 1", "ellipsis"},
      {"ii", 3, EIN_ERR_SHAPE, 2, 1,
       "index 'i' repeats in operand 0: axis 0 has extent 2, axis 1 has 3", ""},
      {"ij,jk->im", 0, EIN_ERR_NAME, 9, 1, "output index 'm' is in no operand", ""},
      {"ij->ii", 3, EIN_ERR_NAME, 6, 1, "output index 'i' is repeated", "rest"},
      {"i1", 3, EIN_ERR_SYNTAX, 2, 1, "'1' is not a label", "letters"},
      {"ij->i,j", 3, EIN_ERR_SYNTAX, 6, 1, "the output is one term, the last", ""},
      {"i.j", 3, EIN_ERR_SYNTAX, 2, 1, "a lone '.' is not an ellipsis", "three dots"},
      {"...i...", 3, EIN_ERR_SYNTAX, 5, 3, "a second ellipsis in one term", ""},
      {"i\tj", 3, EIN_ERR_SYNTAX, 2, 1, "a control character is not a label", "letters"},
      {"...i->i", 3, EIN_ERR_SHAPE, 7, 1, "no ellipsis for 1 broadcast axes", "output too"},
      {"ij", 0, EIN_ERR_ARGUMENT, 0, 0, "the expression names 1 operands, 2 are given", ""},
      {"ij,jk->ikj", 0, EIN_ERR_SHAPE, 0, 0, "the output has 2 axes, the result has 3", ""},
      {"ij,jk->ki", 0, EIN_ERR_SHAPE, 0, 0, "the output has extent 2 at axis 0, the result has 4",
       ""},
      {"  \xce\xb1\xce\xb2,  \xce\xb2k->\xce\xb1k", 1, EIN_ERR_SHAPE, 8, 1,
       "index '\xce\xb2'", ""}};
  static const int64_t second[3][2] = {{3, 4}, {4, 3}, {2, 0}};
  char logged[512];
  ein_ctx_desc d;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  d.logger.log_fn = log_last;
  d.logger.user = logged;
  CHECK_OK(ein_ctx_create(&d, &ctx));
  CHECK(ein_ctx_errors(ctx) == 0 && ein_ctx_error(ctx, 0) == NULL && ein_ctx_message(ctx)[0] == 0);
  double a[12] = {0}, b[12] = {0}, r[12];
  ein_ztensor in[2], out = view(EIN_F64, r, 2, S24, NULL);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const mistake *t = &table[i];
    in[0] = view(EIN_F64, a, 2, S23, NULL);
    if (t->shapes < 3) in[1] = view(EIN_F64, b, t->shapes == 2 ? 1 : 2, second[t->shapes], NULL);
    ein_status st = ein_einsum(ctx, t->expr, t->shapes == 3 ? 1 : 2, in, &out);
    const ein_error *e = ein_ctx_error(ctx, 0);
    CHECK(e != NULL && ein_ctx_errors(ctx) == 1);
    if (st != t->status || e->column != t->column || e->width != t->width ||
        !has(e->message, t->message) || !has(e->hint, t->hint) || (!t->hint[0] && e->hint[0])) {
      printf("%s: %s %d:%d+%d: %s | %s\n", t->expr, ein_status_name(st), e->line, e->column,
             e->width, e->message, e->hint);
    }
    CHECK(st == t->status && e->status == st && e->line == (t->column > 0));
    CHECK(e->column == t->column && e->width == t->width);
    CHECK(has(e->message, t->message) && has(e->hint, t->hint) && (t->hint[0] || !e->hint[0]));
    CHECK(strcmp(logged, ein_ctx_message(ctx)) == 0);
  }
  in[0] = view(EIN_F64, a, 2, S23, NULL);
  in[1] = view(EIN_F64, b, 2, second[1], NULL);
  CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum(ctx, "ij,jk->ik", 2, in, &out));
  CHECK(strcmp(ein_ctx_message(ctx),
               "1:4: index 'j': operand 0 axis 1 has extent 3, operand 1 axis 0 has 4\n"
               "  ij,jk->ik\n"
               "     ^") == 0);
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, "i\tj1", 1, in, &out));
  CHECK(strcmp(ein_ctx_error(ctx, 0)->source, "i j1") == 0);  // carets stay aligned
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, "i1", 1, in, &out));
  CHECK(strcmp(ein_ctx_message(ctx),
               "1:2: '1' is not a label\n  i1\n   ^\n"
               "  hint: labels are letters; terms are separated by ',', the output by '->'") == 0);
  in[1] = view(EIN_F64, b, 2, second[0], NULL);
  CHECK_OK(ein_einsum(ctx, "ij,jk->ik", 2, in, &out));
  CHECK(ein_ctx_errors(ctx) == 0 && ein_ctx_message(ctx)[0] == 0);
  // A very long expression: the caret stays in sight.
  static char text[4096];
  memset(text, 'i', 3000);
  memcpy(text + 3000, "1ii", 4);
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, text, 1, in, &out));
  const ein_error *e = ein_ctx_error(ctx, 0);
  CHECK(e->column == 3001 && e->width == 1 && strlen(e->source) < 300);
  CHECK(e->caret < 200 && e->source[e->caret] == '1' && e->mark == 1);
  // Characters of two columns, and of none, before the mistake and under it.
  const char *mixed = "\xe6\xbc\xa2\xe5\xad\x97" "e\xcc\x81" "1";
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, mixed, 1, in, &out));
  e = ein_ctx_error(ctx, 0);
  CHECK(e->column == 5 && e->caret == 5 && e->width == 1 && e->mark == 1);
  CHECK(has(ein_ctx_message(ctx), "\n       ^\n"));
  for (int n = 0; n < 1200; n++) {  // wide ones only: cut between them, the caret where it belongs
    memcpy(text + 3 * n, "\xe6\xbc\xa2", 3);
  }
  memcpy(text + 3600, "1ii", 4);
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, text, 1, in, &out));
  e = ein_ctx_error(ctx, 0);
  int wide = e->caret / 2;
  CHECK(e->column == 1201 && wide > 40 && e->caret % 2 == 0);
  CHECK((unsigned char)e->source[0] == 0xe6 && e->source[3 * wide] == '1');
  // What is no character is no label: surrogates, overlong forms, noncharacters.
  static const char *const bad[] = {"i\xed\xa0\x80", "i\xc0\xaf", "i\xe0\x82\xaf", "i\xef\xbf\xbe",
                                    "i\xef\xbf\xbf", "i\xef\xb7\x90",
                                    "i\xf0\x9f\xbf\xbf"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, bad[i], 1, in, &out));
    CHECK(ein_ctx_error(ctx, 0)->column == 2);
  }
  // Dtypes.
  int32_t n[12];
  ein_ztensor narrow = view(EIN_I32, n, 2, S24, NULL);
  CHECK_STATUS(EIN_ERR_DTYPE, ein_einsum(ctx, "ij,jk->ik", 2, in, &narrow));
  CHECK(has(ein_ctx_message(ctx), "the result is f64, the output is i32"));
  ein_ctx_destroy(ctx);
}

// ---- wrong arguments ----------------------------------------------------------------------------

static void test_arguments(ein_ctx *ctx) {
  double a[12] = {0}, r[12];
  const int64_t neg[] = {2, -3};
  ein_ztensor in = view(EIN_F64, a, 2, S23, NULL), out = view(EIN_F64, r, 2, S23, NULL), bad, got;
  int64_t shape[4];
  ein_plan *plan = NULL;
  ein_einsum_desc e = describe("ij->ij", 1, &in, &out);
  for (int i = 0; i < 2; i++, ctx = NULL) {
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, NULL, 1, &in, &out));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 0, &in, &out));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", -1, &in, &out));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, NULL, &out));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &in, NULL));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, NULL));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out(ctx, "ij->ij", 1, &in, NULL, shape, 4));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out(ctx, "ij->ij", 1, &in, &got, NULL, 4));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out(ctx, "ij->ij", 1, &in, &got, shape, -1));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out(ctx, NULL, 1, &in, &got, shape, 4));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_out_ex(ctx, NULL, &got, shape, 4));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_create(ctx, &e, NULL));
    plan = (ein_plan *)(void *)a;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_create(ctx, NULL, &plan));
    CHECK(plan == NULL);
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_graph(ctx, NULL, 0, NULL, NULL, &plan));
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_graph(ctx, NULL, 0, NULL, NULL, NULL));
    bad = in;
    bad.shape = NULL;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = in;
    bad.rank = -1;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = in;
    bad.shape = neg;
    CHECK_STATUS(EIN_ERR_SHAPE, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = in;
    bad.dtype = (ein_dtype)99;
    CHECK_STATUS(EIN_ERR_DTYPE, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    CHECK_STATUS(EIN_ERR_DTYPE, ein_einsum(ctx, "ij->ij", 1, &in, &bad));
    bad.dtype = EIN_NONE;
    CHECK_STATUS(EIN_ERR_DTYPE, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = in;
    bad.data = NULL;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = out;
    bad.data = NULL;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &in, &bad));
    bad = in;
    bad.buffer = a;
    bad.buffer_bytes = 5 * sizeof(double);
    CHECK_STATUS(EIN_ERR_BOUNDS, ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad.buffer_bytes = 6 * sizeof(double);
    CHECK_OK(ein_einsum(ctx, "ij->ij", 1, &bad, &out));
    bad = out;  // elements of an output are distinct
    const int64_t flat[] = {0, 1}, row[] = {3, 0};
    bad.strides = flat;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &in, &bad));
    bad.strides = row;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &in, &bad));
    int none[1] = {0};
    ein_einsum_desc f = e;
    f.expr = NULL;
    f.nlabels = none;
    CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum_ex(ctx, &f));
  }
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_create(NULL, NULL));
  ein_ctx_desc half;
  ein_ctx *none;
  memset(&half, 0, sizeof half);
  half.allocator.alloc_fn = counting_alloc;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_ctx_create(&half, &none));
  CHECK(none == NULL);
  ein_ctx_destroy(NULL);
  ein_plan_destroy(NULL);
  CHECK(ein_ctx_errors(NULL) == 0 && ein_ctx_error(NULL, 0) == NULL && !ein_ctx_message(NULL)[0]);
  ein_run run;
  ein_plan_info info;
  ein_tensor_info ti;
  ein_param_info pi;
  memset(&run, 0, sizeof run);
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(NULL, &run));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_info_get(NULL, &info));
  CHECK(ein_plan_workspace(NULL) == 0 && ein_plan_explain(NULL, NULL, 0) == 0);
  CHECK(ein_plan_json(NULL, NULL, 0) == 0);
  CHECK(!ein_plan_input(NULL, 0, &ti) && !ein_plan_output(NULL, 0, &ti));
  CHECK(!ein_plan_param(NULL, 0, &pi));
  CHECK_OK(ein_plan_create(NULL, &e, &plan));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, NULL));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_info_get(plan, NULL));
  CHECK(!ein_plan_input(plan, 0, NULL) && !ein_plan_output(plan, 0, NULL));
  ein_plan_destroy(plan);
  CHECK(strcmp(ein_status_name(EIN_ERR_SHAPE), "EIN_ERR_SHAPE") == 0);
  CHECK(ein_status_name((ein_status)-5)[0] && ein_status_text((ein_status)1000)[0]);
  CHECK(strcmp(ein_version(), EINSUM_VERSION) == 0);
}

// Messages name the field and its value.
static void test_fields(ein_ctx *ctx) {
  double a[6] = {0}, r[6];
  const int64_t neg[] = {2, -3};
  ein_ztensor in = view(EIN_F64, a, 2, S23, NULL), out = view(EIN_F64, r, 2, S23, NULL), two[2];
  const ein_ztensor good = in;
  static const char *const wrong[] = {
      "operand 0 has rank -1", "operand 0 has rank 2, but its shape", "operand 0 has shape[1] = -3",
      "operand 0 has no dtype, but 0", "operand 0 has buffer_bytes 8, but its buffer is NULL"};
  for (int k = 0; k < 5; k++) {
    in = good;
    if (k == 0) in.rank = -1;
    if (k == 1) in.shape = NULL;
    if (k == 2) in.shape = neg;
    if (k == 3) in.dtype = EIN_NONE;
    if (k == 4) in.buffer_bytes = 8;
    CHECK(ein_einsum(ctx, "ij->ij", 1, &in, &out) != EIN_OK);
    CHECK(has(ein_ctx_message(ctx), wrong[k]));
  }
  in = good;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 0, &in, &out));
  CHECK(has(ein_ctx_message(ctx), "nin is 0"));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, NULL, &out));
  CHECK(has(ein_ctx_message(ctx), "nin is 1, but in is NULL"));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 1, &in, NULL));
  CHECK(has(ein_ctx_message(ctx), "out is NULL"));
  // More operands than the expression names: the array may end after those it does name.
  memset(two, 0xff, sizeof two);
  two[0] = good;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "ij->ij", 2, two, &out));
  CHECK(has(ein_ctx_message(ctx), "the expression names 1 operands, 2 are given"));
  CHECK_STATUS(EIN_ERR_SYNTAX, ein_einsum(ctx, "i;j->ij", 2, two, &out));
  ein_plan *plan = NULL;
  char said[128] = "", work[1];
  const void *ins[1] = {a};
  ein_run run;
  ein_einsum_desc e = describe("ij->i", 1, &good, &out);
  e.map = "exp(x0)*x0";
  out.rank = 1;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  memset(&run, 0, sizeof run);
  run.error = said;
  run.error_bytes = sizeof said;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK(has(said, "in is NULL, not the addresses of 1 inputs"));
  run.in = ins;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  CHECK(has(said, "out is NULL"));
  void *outs[1] = {r};
  char need[64];
  run.out = outs;
  run.workspace = work;
  run.workspace_bytes = 1;
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_plan_execute(plan, &run));
  snprintf(need, sizeof need, "has 1 bytes, %zu are needed", ein_plan_workspace(plan));
  CHECK(has(said, need));
  ein_plan_destroy(plan);
}

// ---- odd views ----------------------------------------------------------------------------------

static void test_odd_views(ein_ctx *ctx) {
  double x = 3, y[4] = {1, 2, 3, 4}, s = -1, r[4];
  const int64_t huge[] = {(int64_t)1 << 33}, zero[] = {0}, still[] = {0};
  ein_ztensor in[2], out = view(EIN_F64, &s, 0, NULL, NULL);
  // 2^33 elements at one address: only planning is quick.
  in[0] = view(EIN_F64, &x, 1, huge, zero);
  ein_einsum_desc e = describe("i->", 1, in, &out);
  ein_plan *plan;
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  ein_plan_destroy(plan);
  int64_t shape[2];
  ein_ztensor like;
  CHECK_OK(ein_einsum_out(ctx, "i->i", 1, in, &like, shape, 2));
  CHECK(shape[0] == huge[0]);
  // Along an extent of 2^31 + 3 of which the other operand has none: nothing runs.
  const int64_t wide[] = {((int64_t)1 << 31) + 3, 0}, wides[] = {0, 0};
  in[0] = view(EIN_F64, NULL, 2, wide, wides);
  CHECK_OK(ein_einsum(ctx, "ij->", 1, in, &out));
  CHECK(s == 0);
  // The product of extents does not fit 64 bits.
  const int64_t vast[] = {(int64_t)1 << 40, (int64_t)1 << 40}, vasts[] = {0, 0};
  in[0] = view(EIN_F64, &x, 2, vast, vasts);
  CHECK_STATUS(EIN_ERR_TOO_LARGE, ein_einsum(ctx, "ij->", 1, in, &out));
  const int64_t side[] = {(int64_t)1 << 40};
  in[0] = in[1] = view(EIN_F64, &x, 1, side, zero);
  e = describe("i,j->", 2, in, &out);  // an index space of 2^80: only planned
  CHECK_OK(ein_plan_create(ctx, &e, &plan));
  ein_plan_destroy(plan);
  // Empty arrays need no data.
  const int64_t S04[] = {0, 4}, S40[] = {4, 0};
  in[0] = view(EIN_F64, NULL, 2, S04, NULL);
  in[1] = view(EIN_F64, y, 1, S4, NULL);
  s = 5;
  CHECK_OK(ein_einsum(ctx, "ij,j->", 2, in, &out));
  CHECK(s == 0);
  ein_ztensor none = view(EIN_F64, NULL, 1, still, NULL), four = view(EIN_F64, r, 1, S4, NULL);
  CHECK_OK(ein_einsum(ctx, "ij,j->i", 2, in, &none));
  for (int i = 0; i < 4; i++) r[i] = 9;
  CHECK_OK(ein_einsum(ctx, "ij,j->j", 2, in, &four));
  for (int i = 0; i < 4; i++) CHECK(r[i] == 0);
  in[0] = view(EIN_F64, NULL, 2, S40, NULL);
  CHECK_OK(ein_einsum(ctx, "ij->i", 1, in, &four));
  CHECK(r[0] == 0 && r[3] == 0);
  const int64_t S01[] = {0, 1};
  in[0] = view(EIN_F64, NULL, 2, S01, NULL);  // 1 against 4 beside an extent of 0
  CHECK_OK(ein_einsum(ctx, "ij,j->j", 2, in, &four));
  CHECK(r[0] == 0);
  // Misaligned data of every size.
  static const ein_dtype dtypes[] = {EIN_F32, EIN_F64, EIN_I32, EIN_I64, EIN_C64, EIN_C128};
  char raw[3][600];
  for (int t = 0; t < 6; t++) {
    for (int off = 0; off < 16; off++) {
      problem p;
      ein_ztensor v[MAX_IN + 1];
      char *mem[MAX_IN + 1];
      memset(&p, 0, sizeof p);
      p.nin = 2;
      p.nlabel = 3;
      p.extent[0] = p.extent[1] = p.extent[2] = 5;
      for (int k = 0; k < 3; k++) {
        p.rank[k] = 2;
        p.dtype[k] = dtypes[t];
        p.shape[k][0] = p.shape[k][1] = 5;
        p.label[k][0] = k == 1;
        p.label[k][1] = k == 0 ? 1 : 2;
        problem_strides(&p, k, 1);
        mem[k] = raw[k] + off;
        problem_fill(&p, k, mem[k]);
      }
      problem_views(&p, mem, v);
      CHECK_OK(ein_einsum(ctx, "ij,jk->ik", 2, v, &v[2]));
      CHECK(problem_right(&p, v));
      p.label[2][1] = 1;
      p.label[1][0] = 0;
      p.label[1][1] = 1;
      CHECK_OK(ein_einsum(ctx, "ij,ij->ij", 2, v, &v[2]));
      p.extent[2] = 1;
      CHECK(problem_right(&p, v));
    }
  }
}

// ---- memory runs out ----------------------------------------------------------------------------

typedef struct attempt {
  ein_ctx *ctx;
  int kind;
  const problem *p;
  ein_ztensor *v;
} attempt;

enum { TRY_EINSUM, TRY_OUT, TRY_PLAN, TRY_SCALED, TRY_MAP, TRY_MONOID, TRY_REST, TRY_OVERLAP,
       TRY_FUNCTION, TRY_REGISTER_MONOID, TRY_WIDE, TRY_KINDS };

static ein_status try_plan(const attempt *t) {
  ein_einsum_desc e = describe(t->p->expr, t->p->nin, t->v, &t->v[t->p->nin]);
  ein_plan *plan;
  bound b;
  e.options.may_overlap = 1;
  ein_status st = ein_plan_create(t->ctx, &e, &plan);
  if (st != EIN_OK) {
    CHECK(plan == NULL);
    return st;
  }
  bind(&b, t->v, t->p->nin, &t->v[t->p->nin]);
  st = ein_plan_execute(plan, &b.run);
  ein_plan_destroy(plan);
  return st;
}

static ein_status try_one(const attempt *t) {
  const problem *p = t->p;
  ein_einsum_desc e = describe(p->expr, p->nin, t->v, &t->v[p->nin]);
  static double m[600], big[20][2];
  ein_ztensor v, w, list[20];
  int64_t shape[16], n[] = {200, 3};
  ein_function f;
  ein_monoid o;
  switch (t->kind) {
    case TRY_EINSUM: return ein_einsum(t->ctx, p->expr, p->nin, t->v, &t->v[p->nin]);
    case TRY_OUT: return ein_einsum_out(t->ctx, p->expr, p->nin, t->v, &v, shape, 16);
    case TRY_PLAN: return try_plan(t);
    case TRY_SCALED:
      e.alpha = scalar(2, 0);
      e.beta = scalar(0, 0);
      return ein_einsum_ex(t->ctx, &e);
    case TRY_MAP:
      v = view(EIN_F64, m, 1, S3, NULL);
      w = view(EIN_F64, m + 10, 0, NULL, NULL);
      e = describe("i->", 1, &v, &w);
      e.map = "exp(x0) + where(x0 > 1, 2*x0, 1)^3";
      return ein_einsum_ex(t->ctx, &e);
    case TRY_MONOID:
      e.monoid = "max";
      return p->dtype[p->nin] == EIN_C64 || p->dtype[p->nin] == EIN_C128 ? EIN_OK
                                                                        : ein_einsum_ex(t->ctx, &e);
    case TRY_REST:
      v = view(EIN_F64, m, 1, S3, NULL);
      w = view(EIN_F64, m + 10, 2, S33, NULL);
      e = describe("i->ii", 1, &v, &w);
      e.rest = EIN_REST_ACCUMULATE;
      return ein_einsum_ex(t->ctx, &e);
    case TRY_OVERLAP: {  // the copy is larger than the stack's share
      int64_t s[] = {1, 200};
      n[1] = 2;
      v = view(EIN_F64, m, 2, n, NULL);
      w = view(EIN_F64, m, 2, n, s);
      return ein_einsum(t->ctx, "ij->ij", 1, &v, &w);
    }
    case TRY_FUNCTION:
      memset(&f, 0, sizeof f);
      f.name = "half";
      f.nargs = 1;
      f.fn = fn_half;
      return ein_ctx_function(t->ctx, &f);
    case TRY_REGISTER_MONOID:
      memset(&o, 0, sizeof o);
      o.name = "bits";
      o.nstate = 1;
      o.dtype = EIN_I64;
      o.merge_fn = merge_bits;
      return ein_ctx_monoid(t->ctx, &o);
    default:  // more operands than a call keeps on its stack
      for (int k = 0; k < 20; k++) list[k] = view(EIN_F64, big[k], 1, S2, NULL);
      v = view(EIN_F64, m, 0, NULL, NULL);
      return ein_einsum(t->ctx, "a,a,a,a,a,a,a,a,a,a,b,b,b,b,b,b,b,b,b,b->", 20, list, &v);
  }
}

// Fails the n-th allocation for n = 0, 1, .. until the call succeeds; nothing may stay behind, and
// the ctx must stay usable. Returns the number of allocations.
static long try_until(int kind, int plans, const problem *p, ein_ztensor *v) {
  for (long n = 0;; n++) {
    counter c;
    attempt t;
    t.ctx = counted_ctx(&c, plans);
    t.kind = kind;
    t.p = p;
    t.v = v;
    c.fail_at = c.calls + n;
    ein_status st = try_one(&t);
    long used = c.calls > c.fail_at;
    c.fail_at = -1;
    CHECK(st == EIN_OK ? !used : st == EIN_ERR_NO_MEMORY);
    if (st != EIN_OK) {
      int said = has(ein_ctx_message(t.ctx), "memory") || kind == TRY_PLAN;  // its run has no ctx
      if (!said) printf("kind %d, allocation %ld: %s\n", kind, n, ein_ctx_message(t.ctx));
      CHECK(said);
      CHECK_OK(try_one(&t));
    }
    if (kind == TRY_EINSUM) CHECK(problem_right(p, v));
    counted_end(&c, t.ctx);
    if (st == EIN_OK) return n;
  }
}

static void test_memory(void) {
  long calls = 0;
  for (long n = 0;; n++) {
    counter c;
    ein_ctx_desc d = counted_desc(&c);
    ein_ctx *ctx = NULL;
    c.fail_at = n;
    ein_status st = ein_ctx_create(&d, &ctx);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && ctx == NULL && c.live == 0));
    if (st != EIN_OK) continue;
    counted_end(&c, ctx);
    CHECK(n > 0);
    break;
  }
  for (int i = 0; i < 60; i++) {
    problem p;
    char *mem[MAX_IN + 1];
    ein_ztensor v[MAX_IN + 1];
    problem_draw(&p, i % 6 ? 500 : 20000);
    problem_alloc(&p, mem);
    problem_views(&p, mem, v);
    for (int kind = 0; kind < TRY_KINDS; kind++) {
      if (kind > TRY_MONOID && i > 1) continue;
      calls += try_until(kind, i % 3 - 1, &p, v);
    }
    problem_free(&p, mem);
  }
  CHECK(calls > 500);
}

// ---- guard pages --------------------------------------------------------------------------------

#if HAVE_MMAP
// Memory whose neighbours fault; the bytes lie against its end or its start.
typedef struct guarded {
  char *base;
  size_t page, body;
} guarded;

static void guarded_open(guarded *g, size_t body) {
  g->page = (size_t)sysconf(_SC_PAGESIZE);
  g->body = (body + g->page - 1) / g->page * g->page;
  void *p = mmap(NULL, g->body + 2 * g->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
  CHECK(p != MAP_FAILED);
  g->base = (char *)p;
  CHECK(mprotect(g->base, g->page, PROT_NONE) == 0);
  CHECK(mprotect(g->base + g->page + g->body, g->page, PROT_NONE) == 0);
}

static void test_guard_pages(void) {
  guarded g[MAX_IN + 1];
  ein_ctx *ctx;
  CHECK_OK(ein_ctx_create(NULL, &ctx));
  for (int k = 0; k <= MAX_IN; k++) guarded_open(&g[k], (size_t)1 << 20);
  // The operands' array ends at a page that cannot be read; a count too large is seen before that.
  double x[1] = {3}, y[1] = {0};
  ein_ztensor *last = (ein_ztensor *)(void *)(g[0].base + g[0].page + g[0].body) - 1;
  ein_ztensor one = view(EIN_F64, y, 0, NULL, NULL);
  *last = view(EIN_F64, x, 0, NULL, NULL);
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(ctx, "->", 2, last, &one));
  CHECK_STATUS(EIN_ERR_ARGUMENT, ein_einsum(NULL, "->", 2, last, &one));
  CHECK_OK(ein_einsum(ctx, "->", 1, last, &one));
  CHECK(y[0] == 3);
  for (int i = 0; i < 700; i++) {
    problem p;
    char *mem[MAX_IN + 1];
    ein_ztensor v[MAX_IN + 1];
    problem_draw(&p, i % 8 ? 3000 : 60000);
    int fits = 1;
    for (int k = 0; k <= p.nin; k++) fits &= problem_bytes(&p, k) <= g[k].body;
    if (!fits) continue;
    int end = i & 1;
    for (int k = 0; k <= p.nin; k++) {
      mem[k] = g[k].base + g[k].page + (end ? g[k].body - problem_bytes(&p, k) : 0);
      problem_fill(&p, k, mem[k]);
    }
    problem_views(&p, mem, v);
    for (int k = 0; k < p.nin; k++) {
      CHECK(mprotect(g[k].base + g[k].page, g[k].body, PROT_READ) == 0);
    }
    ein_einsum_desc e = describe(p.expr, p.nin, v, &v[p.nin]);
    CHECK_OK(ein_einsum_ex(ctx, &e));
    CHECK(problem_right(&p, v));
    e.alpha = scalar(1, 0);  // through the epilogue
    CHECK_OK(ein_einsum_ex(ctx, &e));
    CHECK(problem_right(&p, v));
    for (int k = 0; k < p.nin; k++) {
      CHECK(mprotect(g[k].base + g[k].page, g[k].body, PROT_READ | PROT_WRITE) == 0);
    }
  }
  for (int k = 0; k <= MAX_IN; k++) munmap(g[k].base, g[k].body + 2 * g[k].page);
  ein_ctx_destroy(ctx);
}
#else
static void test_guard_pages(void) { printf("guard pages: SKIPPED, no mmap here\n"); }
#endif

int main(int argc, char **argv) {
  ein_ctx *ctx;
  if (argc > 1) rng_state = (uint64_t)strtoull(argv[1], NULL, 10);
  CHECK_OK(ein_ctx_create(NULL, &ctx));
  test_level1();
  test_scaled(ctx);
  test_scaled_rest(ctx);
  test_scaled_maps(ctx);
  test_scaled_store(ctx, 1500);
  test_scaled_room(ctx, 1, NULL);
  test_complex(ctx);
  test_monoids(ctx);
  test_maps(ctx);
  test_error_bound(ctx);
  test_labels(ctx);
  test_rest(ctx);
  test_options(ctx);
  test_utf8(ctx);
  test_many(ctx);
  test_arguments(ctx);
  test_fields(ctx);
  test_odd_views(ctx);
  test_overlap(ctx);
  ein_ctx_destroy(ctx);
  test_messages();
  test_registered();
  test_cache();
  test_plan_params();
  test_reentrant();
  test_random();
  test_plans();
  test_random_overlap();
  test_memory();
  test_widths();
  test_guard_pages();
  printf("ok %ld checks\n", checks);
  return 0;
}
