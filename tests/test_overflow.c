// options.overflow_check: random einsums of integers, sums and products, against integers of any
// length, and programs one by one.
//
//   test_overflow [count] [seed]     defaults: 20000 1
#include <stdio.h>
#include <stdlib.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

#define WORDS 48
#define ROOM 512

// ---- integers of any length: sign and magnitude -------------------------------------------------

typedef struct big {
  int negative;
  uint32_t word[WORDS];  // the low one first
} big;

static big big_of(int64_t x) {
  big r = {x < 0, {0}};
  uint64_t u = x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x;
  r.word[0] = (uint32_t)u;
  r.word[1] = (uint32_t)(u >> 32);
  return r;
}

static int big_cmp(const big *a, const big *b) {  // of magnitudes
  for (int i = WORDS - 1; i >= 0; i--)
    if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
  return 0;
}

static big big_mul(const big *a, const big *b) {
  big r = {a->negative != b->negative, {0}};
  for (int i = 0; i < WORDS; i++) {
    uint64_t carry = 0;
    for (int j = 0; a->word[i] != 0 && i + j < WORDS; j++) {
      carry += (uint64_t)a->word[i] * b->word[j] + r.word[i + j];
      r.word[i + j] = (uint32_t)carry;
      carry >>= 32;
    }
  }
  return r;
}

static big big_add(const big *a, const big *b) {
  const big *large = big_cmp(a, b) >= 0 ? a : b, *small = large == a ? b : a;
  const int subtract = a->negative != b->negative;
  big r = *large;
  int64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += subtract ? -(int64_t)small->word[i] : (int64_t)small->word[i];
    carry += large->word[i];
    r.word[i] = (uint32_t)carry;
    carry = carry < 0 ? -1 : carry >> 32;
  }
  return r;
}

// The number, if 64 bits hold it, and whether a dtype does.
static int big_fits(const big *a, ein_dtype t, int64_t *x) {
  const int bits = 8 * (int)ein_dtype_size(t);
  const uint64_t u = (uint64_t)a->word[1] << 32 | a->word[0];
  for (int i = 2; i < WORDS; i++)
    if (a->word[i] != 0) return 0;
  const uint64_t top = (uint64_t)1 << (t == EIN_U8 ? 8 : bits - 1);
  if (t == EIN_U8 && a->negative && u > 0) return 0;
  if (a->negative ? u > top : u >= top) return 0;
  *x = a->negative ? (int64_t)((uint64_t)0 - u) : (int64_t)u;
  return 1;
}

// ---- random einsums -----------------------------------------------------------------------------

static int64_t load(ein_dtype t, const void *p, int64_t k) {
  switch (t) {
    case EIN_U8: return ((const uint8_t *)p)[k];
    case EIN_I8: return ((const int8_t *)p)[k];
    case EIN_I16: return ((const int16_t *)p)[k];
    case EIN_I32: return ((const int32_t *)p)[k];
    default: return ((const int64_t *)p)[k];
  }
}

static void store(ein_dtype t, void *p, int64_t k, int64_t x) {
  switch (t) {
    case EIN_U8: ((uint8_t *)p)[k] = (uint8_t)(uint64_t)x; break;
    case EIN_I8: ((int8_t *)p)[k] = (int8_t)x; break;
    case EIN_I16: ((int16_t *)p)[k] = (int16_t)x; break;
    case EIN_I32: ((int32_t *)p)[k] = (int32_t)x; break;
    default: ((int64_t *)p)[k] = x; break;
  }
}

// A value of at most so many bits; the extremes come often.
static int64_t some_value(ein_dtype t, int bits) {
  const int all = 8 * (int)ein_dtype_size(t);
  uint64_t u = rng();
  if (bits == all && chance(20)) u = (uint64_t)1 << (all - 1);
  if (chance(10)) return 0;
  if (t == EIN_U8) return (int64_t)(u & (((uint64_t)1 << bits) - 1));
  int64_t x;
  u <<= 64 - bits;
  memcpy(&x, &u, 8);
  return bits == 64 ? x : x / ((int64_t)1 << (63 - bits)) / 2;
}

typedef struct problem {
  int nin, nlabel, rank[4], label[4][3];
  int64_t extent[4], shape[4][3], count[4];
  ein_dtype dtype;
  int prod;
  char expr[32];
  int64_t data[4][ROOM / 4];
} problem;

static void draw_problem(problem *p) {
  static const ein_dtype dtypes[] = {EIN_U8, EIN_I8, EIN_I16, EIN_I32, EIN_I64};
  char *s = p->expr;
  int used[4] = {0}, n = 0;
  p->nin = (int)draw(1, 3);
  p->nlabel = (int)draw(1, 4);
  p->dtype = dtypes[draw(0, 4)];
  p->prod = chance(25);
  for (int l = 0; l < p->nlabel; l++) p->extent[l] = draw(chance(3) ? 0 : 1, 4);
  for (int t = 0; t < p->nin; t++) {
    p->rank[t] = (int)draw(0, 3);
    for (int a = 0; a < p->rank[t]; a++) used[p->label[t][a] = (int)draw(0, p->nlabel - 1)] = 1;
  }
  for (int l = 0; l < p->nlabel && n < 3; l++)
    if (used[l] && chance(45)) p->label[p->nin][n++] = l;
  p->rank[p->nin] = n;
  const int bits = 8 * (int)ein_dtype_size(p->dtype);
  for (int t = 0; t <= p->nin; t++) {
    const int most = (int)draw(1, chance(40) ? bits : 1 + bits / p->nin);
    p->count[t] = 1;
    if (t > 0) *s++ = t == p->nin ? '-' : ',';
    if (t == p->nin) *s++ = '>';
    for (int a = 0; a < p->rank[t]; a++) {
      *s++ = (char)('a' + p->label[t][a]);
      p->count[t] *= p->shape[t][a] = p->extent[p->label[t][a]];
    }
    for (int64_t k = 0; k < p->count[t] && t < p->nin; k++)
      store(p->dtype, p->data[t], k, some_value(p->dtype, most < bits ? most : bits));
  }
  *s = 0;
}

static int64_t place(const problem *p, int t, const int64_t *x) {
  int64_t at = 0;
  for (int a = 0; a < p->rank[t]; a++) at = at * p->shape[t][a] + x[p->label[t][a]];
  return at;
}

// The exact values of all elements.
static void solve(const problem *p, big *out) {
  int64_t x[4] = {0}, used[4] = {0}, more = 1;
  for (int64_t k = 0; k < p->count[p->nin]; k++) out[k] = big_of(p->prod && 1);
  for (int t = 0; t < p->nin; t++)
    for (int a = 0; a < p->rank[t]; a++) used[p->label[t][a]] = 1;
  for (int l = 0; l < p->nlabel; l++) more = more && (p->extent[l] > 0 || !used[l]);
  while (more) {
    big v = big_of(1);
    for (int t = 0; t < p->nin; t++) {
      const big f = big_of(load(p->dtype, p->data[t], place(p, t, x)));
      v = big_mul(&v, &f);
    }
    big *o = &out[place(p, p->nin, x)];
    *o = p->prod ? big_mul(o, &v) : big_add(o, &v);
    more = 0;
    for (int l = p->nlabel - 1; l >= 0 && !more; l--) {
      if (!used[l]) continue;
      more = ++x[l] < p->extent[l];
      if (!more) x[l] = 0;
    }
  }
}

// The element of 'out[1,2]' in a message; -1 where there is none.
static int64_t named(const problem *p, const char *message) {
  const char *at = strstr(message, "'out");
  int64_t k = 0;
  if (at == NULL) return -1;
  at += 4;
  for (int a = 0; a < p->rank[p->nin]; a++) {
    const long long c = strtoll(at + 1, NULL, 10);
    if (*at != (a == 0 ? '[' : ',') || c < 0 || c >= p->shape[p->nin][a]) return -1;
    k = k * p->shape[p->nin][a] + c;
    at += 1 + strcspn(at + 1, ",]");
  }
  return k;
}

static int overflowed, sound;

static int run_problem(ein_ctx *ctx, const problem *p) {
  static big want[ROOM];
  int64_t got[ROOM / 4], x = 0, first = -1;
  ein_ztensor view[4];
  ein_einsum_desc d;
  memset(view, 0, sizeof view);
  memset(&d, 0, sizeof d);
  memset(got, 0x5A, sizeof got);
  for (int t = 0; t <= p->nin; t++) {
    union { const int64_t *c; int64_t *v; } u;  // operands are only read
    u.c = p->data[t];
    view[t].dtype = p->dtype;
    view[t].rank = p->rank[t];
    view[t].shape = p->shape[t];
    view[t].data = t < p->nin ? u.v : got;
  }
  d.expr = p->expr;
  d.nin = p->nin;
  d.in = view;
  d.out = &view[p->nin];
  d.monoid = p->prod ? "prod" : NULL;
  d.options.overflow_check = 1;
  solve(p, want);
  for (int64_t k = p->count[p->nin] - 1; k >= 0; k--)
    if (!big_fits(&want[k], p->dtype, &x)) first = k;
  const ein_status st = ein_einsum_ex(ctx, &d);
  overflowed += first >= 0;
  sound += first < 0;
  if (first >= 0) {
    const int64_t k = named(p, ein_ctx_message(ctx));
    return st == EIN_ERR_OVERFLOW && k >= 0 && !big_fits(&want[k], p->dtype, &x);
  }
  int same = st == EIN_OK;
  for (int64_t k = 0; k < p->count[p->nin] && same; k++)
    same = big_fits(&want[k], p->dtype, &x) && load(p->dtype, got, k) == x;
  if (!same) return 0;
  d.options.overflow_check = 0;  // what fits is right without a check, too
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  for (int64_t k = 0; k < p->count[p->nin]; k++)
    CHECK(big_fits(&want[k], p->dtype, &x) && load(p->dtype, got, k) == x);
  return 1;
}

static void test_random(ein_ctx *ctx, int64_t count, uint64_t seed) {
  problem p;
  for (int64_t k = 0; k < count && failures < 10; k++) {
    rng_state = seed * 1000003 + (uint64_t)k;
    draw_problem(&p);
    const int ok = run_problem(ctx, &p);
    if (!ok) printf("case %lld: %s, %s of %s: %s\n", (long long)k, p.expr, p.prod ? "prod" : "sum",
                    ein_dtype_name(p.dtype), ein_ctx_message(ctx));
    CHECK(ok);
  }
  CHECK(overflowed > count / 8 && sound > count / 8);
}

// ---- programs -----------------------------------------------------------------------------------

// Runs a program over n[4] : i32, u[4] : u8, l[4] : i64, x[4] : f64; its output is Y. The status,
// the message in text, elements of Y in out.
static ein_status run_program(ein_ctx *ctx, const char *program, int check, char *text,
                              size_t size, void *out) {
  static const int32_t n[] = {INT32_MIN, 65536, -3, 50000};
  static const uint8_t u[] = {250, 10, 0, 3};
  static const int64_t l[] = {INT64_MIN, INT64_MAX, -1, 4000000000};
  static const double x[] = {1e300, -2.5, 0, 3};
  char full[512];
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_options o;
  ein_run run;
  ein_tensor_info t;
  const void *in[4];
  void *outs[1] = {out};
  snprintf(full, sizeof full, "input n[4] : i32\ninput u[4] : u8\ninput l[4] : i64\n"
           "input x[4] : f64\n%s\noutput Y", program);
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  memset(&run, 0, sizeof run);
  d.text = full;
  o.overflow_check = check;
  text[0] = 0;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st == EIN_OK) st = ein_plan_graph(ctx, g, 0, NULL, &o, &plan);
  if (st != EIN_OK) printf("%s: %s\n", program, ein_ctx_message(ctx));
  for (int i = 0; plan != NULL && ein_plan_input(plan, i, &t); i++)
    in[i] = t.name[0] == 'n' ? (const void *)n : t.name[0] == 'u' ? (const void *)u :
            t.name[0] == 'l' ? (const void *)l : (const void *)x;
  run.in = in;
  run.out = outs;
  run.error = text;
  run.error_bytes = size;
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  return st;
}

static void test_programs(ein_ctx *ctx) {
  static const struct {
    const char *program, *message;  // NULL: all fits
  } c[] = {
      {"Y[i] = n[i] + n[i]", "the exact value of 'Y[0]', -4294967296, does not fit i32"},
      {"Y[i] = n[i]*n[i]", "'Y[0]', 4611686018427387904, does not fit i32"},
      {"Y[i] = l[i]*l[i]", "'Y[0]', about 8.507059173e+37, does not fit i64"},
      {"Y[i] = n[i]*n[i] - n[i]*n[i]", NULL},  // sums may pass what fits
      {"Y[i=4] = n[i]*u[3-i]", "'Y[0]', -6442450944, does not fit i32"},
      {"Y[i] = n[i]^3", "'Y[0]'"},
      {"Y[i] = u[i]^2", "'Y[0]', 62500, does not fit u8"},
      {"Y[i] : i32 = u[i]^2", NULL},
      {"Y[i] = u[i] + u[i]", "'Y[0]', 500, does not fit u8"},
      {"T[i] = u[i] + u[i]\nY[i] = div(T[i], 2)", NULL},
      {"Y = sum(n[i] - 200000)", "'Y', -2148168115, does not fit i32"},
      {"Y = sum(n[i])", NULL},
      {"Y = sum[i=3](n[i+1])", NULL},
      {"Y = prod(n[i])", "'Y', "},
      {"Y = prod(u[i])", NULL},  // a factor is 0
      {"Y[i] = -n[i]", "'Y[0]', 2147483648, does not fit i32"},
      {"Y[i] = abs(l[i])", "'Y[0]', about 9.223372037e+18, does not fit i64"},
      {"Y[i=3] = abs(l[i+1])", NULL},
      {"Y[i] = div(n[i], -1)", "'Y[0]', 2147483648, does not fit i32"},
      {"Y[i] = mod(n[i], -1)", NULL},
      {"Y[i] = max(n[i]*n[i], 7)", "an integer on the way to 'Y[0]' does not fit i32"},
      {"Y = max(n[i]*n[i])", "an integer on the way to 'Y' does not fit i32"},
      {"Y[i] = n[i]*n[i] > 0", "an integer on the way to 'Y[0]' does not fit i32"},
      {"Y = argmax(n[i]*n[i])", "an integer on the way to 'Y' does not fit i32"},
      {"Y[i] = where(abs(x[i]) < 3, n[i]*n[i], 5)", "'Y[1]', 4294967296, does not fit i32"},
      {"Y[i] = where(x[i] >= 3, 1, 0)*n[i]", NULL},
      {"Y[i] = where(n[i] < 0, 0, n[i]*n[3])", "'Y[1]', 3276800000, does not fit i32"},
      {"Y[i] = cast_i8(n[i])", "'Y[0]' does not fit i8"},
      {"Y[i] : u8 = n[i]", "'Y[0]', -2147483648, does not fit u8"},
      {"Y[i] : f32 = n[i]*n[i]", "'Y[0]', 4611686018427387904, does not fit i32"},
      {"Y[i] = 1.0*n[i]*n[i]", NULL},
      {"Y[i] = n[i]*n[i]*1.0", "an integer on the way to 'Y[0]' does not fit i32"},
      {"Y = mean(l[i])", NULL},
      {"Y[i=4] = i*4611686018427387904", "'Y[2]', about 9.223372037e+18, does not fit i64"},
      {"Y[i] : i32 = x[i]", NULL},  // reals are not looked at
      {"Y = any(n[i])", NULL},
      {"Y = sum(x[i] > 0)", NULL},
      {"C[i] = n[i]\nC[i+4] = n[i]*2\nY[i] = C[i]", "'C[4]', -4294967296, does not fit i32"},
      {"T[i] = 2*u[i]\nY[i=2] : u8 = T[2*i+1]", NULL},
      {"Y[i,j=2] = n[3-i]*(j+1)*50000", NULL},  // index values have 64 bits
      {"Y[i] : i32 = u[i] - u[i]", NULL},
      {"T[i=3] = sum[j=2](n[i+1])\nY[i] = T[i]*100000", "'Y[0]', 13107200000, does not fit i32"},
      {"Y[j=2,i=3] = 50000*n[3-i]", "'Y[0,0]', 2500000000, does not fit i32"},
  };
  for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
    int64_t out[16], plain[16];
    char text[256], none[256];
    memset(out, 0, sizeof out);
    memset(plain, 0, sizeof plain);
    const ein_status st = run_program(ctx, c[k].program, 1, text, sizeof text, out);
    const int right = c[k].message == NULL ? st == EIN_OK
                                           : st == EIN_ERR_OVERFLOW && strstr(text, c[k].message);
    if (!right) printf("%s: %s, %s\n", c[k].program, ein_status_name(st), text);
    CHECK(right);
    CHECK(run_program(ctx, c[k].program, 0, none, sizeof none, plain) == EIN_OK);
    CHECK(st != EIN_OK || memcmp(out, plain, sizeof out) == 0);
  }
}

// ---- around it ----------------------------------------------------------------------------------

static void test_around(ein_ctx *ctx) {
  static const int64_t shape[] = {2, 2}, half[] = {2};
  int32_t a[4] = {30000, 3, 2, 1}, r[4] = {0};
  ein_ztensor in, out, row;
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  memset(&in, 0, sizeof in);
  in.dtype = EIN_I32;
  in.rank = 2;
  in.shape = shape;
  in.data = a;
  out = in;
  out.data = r;
  row = in;
  row.rank = 1;
  row.shape = half;
  row.data = r;
  memset(&d, 0, sizeof d);
  d.expr = "ij->ij";
  d.nin = 1;
  d.in = &in;
  d.out = &out;
  d.alpha.set = 1;
  d.alpha.re = 100000;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);  // a call that wraps is kept, the check is another
  d.options.overflow_check = 1;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_OVERFLOW);
  CHECK(strstr(ein_ctx_message(ctx), "'out[0,0]', 3000000000, does not fit i32") != NULL);
  CHECK(ein_einsum_ex(NULL, &d) == EIN_ERR_OVERFLOW);
  d.alpha.re = 1000;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK && r[0] == 30000000 && r[3] == 1000);
  d.out = &in;  // in place
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK && a[0] == 30000000 && a[1] == 3000);
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_OVERFLOW && a[0] == 30000000);
  d.alpha.set = 0;
  d.beta.set = 1;
  d.beta.re = 80;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_OVERFLOW);  // 30000000 + 80 * 30000000
  d.beta.set = 0;
  d.out = &row;
  d.expr = "ij->i";
  d.options.path = "greedy";
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "in one pass") != NULL);
  d.options.path = "auto";
  d.options.deterministic = 1;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_ERR_UNSUPPORTED);
  d.options.deterministic = 0;
  d.options.memory = 1 << 20;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_ERR_UNSUPPORTED && plan == NULL);
  d.options.memory = 0;
  // all memory is in the workspace
  counter c = {0, -1, 0};
  ein_ctx_desc desc;
  ein_ctx *own = NULL;
  memset(&desc, 0, sizeof desc);
  desc.allocator.alloc_fn = count_alloc;
  desc.allocator.free_fn = count_free;
  desc.allocator.user = &c;
  CHECK(ein_ctx_create(&desc, &own) == EIN_OK);
  CHECK(ein_plan_create(own, &d, &plan) == EIN_OK);
  const void *ins[1] = {a};
  void *outs[1] = {r};
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = ins;
  run.out = outs;
  run.workspace_bytes = ein_plan_workspace(plan);
  char *space = (char *)malloc(run.workspace_bytes + 1);
  if (space == NULL) exit(1);
  run.workspace = space;
  space[run.workspace_bytes] = 0x5A;
  const long calls = c.calls;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK && r[0] == 30003000 && r[1] == 3000);
  a[1] = INT32_MAX;
  CHECK(ein_plan_execute(plan, &run) == EIN_ERR_OVERFLOW);
  CHECK(c.calls == calls && space[run.workspace_bytes] == 0x5A);
  free(space);
  ein_plan_destroy(plan);
  ein_ctx_destroy(own);
  CHECK(c.live == 0);
}

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : 20000;
  ein_ctx *ctx;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  test_random(ctx, count, argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
  test_programs(ctx);
  test_around(ctx);
  ein_ctx_destroy(ctx);
  printf("overflow: %d checks, %d failed; %d einsums overflow, %d do not\n", checks, failures,
         overflowed, sound);
  return failures != 0;
}
