// Random contractions against a plain loop: all compute types, strides of all signs, empty and
// one extents, expressions while packing, stores with extras, unaligned data, cut ranges.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "util.h"
#include <stdio.h>
#include <stdlib.h>

enum { MAX_AXES = 3, GUARD = 64 };
enum { GB, GM, GN, GK, GROUPS };

static uint64_t seed = 1;
static int failures;

static int64_t rnd(int64_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

// One operand: a buffer that holds every reachable element, and nothing more than a guard.
typedef struct operand {
  int64_t stride[GROUPS][MAX_AXES];
  char *raw, *base;
  size_t bytes;
  int size, spans[GROUPS];
} operand;

typedef struct problem {
  ein_dtype type;
  int n[GROUPS];
  int64_t extent[GROUPS][MAX_AXES];
  operand p[2], q[2], out, extra[2];
  int np, nq, nextra;
} problem;

static int is_complex(ein_dtype t) { return t == EIN_C64 || t == EIN_C128; }
static int is_int(ein_dtype t) { return t == EIN_I32 || t == EIN_I64; }

static void value_set(ein_dtype t, char *at, double re, double im, int64_t whole) {
  float f[2];
  double d[2];
  int32_t i = (int32_t)(whole & 0x7fffffff);
  f[0] = (float)re, f[1] = (float)im, d[0] = re, d[1] = im;
  switch (t) {
    case EIN_F32: memcpy(at, f, 4); break;
    case EIN_F64: memcpy(at, d, 8); break;
    case EIN_C64: memcpy(at, f, 8); break;
    case EIN_C128: memcpy(at, d, 16); break;
    case EIN_I32: memcpy(at, &i, 4); break;
    default: memcpy(at, &whole, 8); break;
  }
}

typedef struct value {
  double re, im, mag;  // mag bounds the sum of magnitudes
  uint64_t whole;
} value;

static value value_get(ein_dtype t, const char *at) {
  value v = {0, 0, 0, 0};
  float f[2] = {0, 0};
  double d[2] = {0, 0};
  int32_t i;
  if (t == EIN_F32 || t == EIN_C64) {
    memcpy(f, at, t == EIN_F32 ? 4 : 8);
    v.re = (double)f[0], v.im = (double)f[1];
  } else if (t == EIN_F64 || t == EIN_C128) {
    memcpy(d, at, t == EIN_F64 ? 8 : 16);
    v.re = d[0], v.im = d[1];
  } else if (t == EIN_I32) {
    memcpy(&i, at, 4);
    v.whole = (uint64_t)(int64_t)i;
  } else {
    memcpy(&v.whole, at, 8);
  }
  return v;
}

static value value_mul(value a, value b) {
  value r = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re,
             (fabs(a.re) + fabs(a.im)) * (fabs(b.re) + fabs(b.im)), a.whole * b.whole};
  return r;
}

static void value_add(value *a, value b) {
  a->re += b.re, a->im += b.im, a->mag += b.mag, a->whole += b.whole;
}

// Strides for the groups an operand spans: random axis order, gaps, signs; inputs may broadcast.
static void operand_make(problem *x, operand *o, int g0, int g1, int g2, int input, int unaligned) {
  int axis[GROUPS * MAX_AXES][2], count = 0;
  int64_t step = 1, low = 0, high = 0;
  memset(o, 0, sizeof *o);
  o->size = (int)ein_dtype_size(x->type);
  o->spans[g0] = o->spans[g1] = o->spans[g2] = 1;
  for (int g = GROUPS - 1; g >= 0; g--) {
    for (int d = x->n[g] - 1; o->spans[g] && d >= 0; d--) axis[count][0] = g, axis[count++][1] = d;
  }
  for (int i = count - 1; i > 0 && rnd(2); i--) {
    int j = (int)rnd(i + 1), g = axis[i][0], d = axis[i][1];
    axis[i][0] = axis[j][0], axis[i][1] = axis[j][1], axis[j][0] = g, axis[j][1] = d;
  }
  for (int i = 0; i < count; i++) {
    int g = axis[i][0], d = axis[i][1];
    int64_t e = x->extent[g][d], s = step;
    if (rnd(12) == 0) s *= 2;
    if (rnd(8) == 0) s = -s;
    if (input && rnd(12) == 0) s = 0;
    o->stride[g][d] = s;
    if (e > 0) step = s == 0 ? step : (s < 0 ? -s : s) * e;
    if (e > 0 && s < 0) low += s * (e - 1);
    if (e > 0 && s > 0) high += s * (e - 1);
  }
  o->bytes = (size_t)((high - low + 1) * o->size);
  o->raw = (char *)malloc(o->bytes + (size_t)(unaligned ? 1 : 0));
  o->base = o->raw + (unaligned ? 1 : 0) - low * o->size;
  for (int64_t i = 0; i < high - low + 1; i++) {
    double re = (double)rnd(2001) / 1000.0 - 1.0, im = (double)rnd(2001) / 1000.0 - 1.0;
    value_set(x->type, o->raw + (unaligned ? 1 : 0) + i * o->size, re, im,
              rnd(1 << 30) * rnd(1 << 30) * (is_int(x->type) ? 3 : 1));
  }
}

static char *operand_at(const problem *x, const operand *o, int64_t lin[GROUPS]) {
  int64_t off = 0;
  for (int g = 0; g < GROUPS; g++) {
    int64_t r = lin[g];
    if (!o->spans[g]) continue;
    for (int d = x->n[g] - 1; d >= 0; d--) {
      off += r % x->extent[g][d] * o->stride[g][d];
      r /= x->extent[g][d];
    }
  }
  return o->base + off * o->size;
}

static int64_t total(const problem *x, int g) {
  int64_t r = 1;
  for (int d = 0; d < x->n[g]; d++) r *= x->extent[g][d];
  return r;
}

// The expressions of the test: a product of two operands while packing; sum + 2 * e0 + e1 stored.
typedef struct user_data {
  const problem *x;
  int nop;
  int64_t points;  // stored so far
} user_data;

static void value_put(ein_dtype t, char *at, value v) {
  value_set(t, at, v.re, v.im, (int64_t)v.whole);
  if (t == EIN_I32) {
    uint32_t w = (uint32_t)v.whole;
    memcpy(at, &w, 4);
  }
}

static void fill_product(void *user, int64_t n, const char *const *base, const int64_t *const *off,
                         const int64_t *gap, void *out) {
  user_data *u = (user_data *)user;
  int64_t z = (int64_t)ein_dtype_size(u->x->type);
  if (gap != NULL || n > EIN_POINTS) failures++;
  for (int64_t i = 0; i < n; i++) {
    value v = value_get(u->x->type, base[0] + off[0][i] * z);
    if (u->nop > 1) v = value_mul(v, value_get(u->x->type, base[1] + off[1][i] * z));
    value_put(u->x->type, (char *)out + i * z, v);
  }
}

static value stored(const problem *x, value v, const char *const *e) {
  for (int i = 0; i < x->nextra; i++) {
    value_add(&v, value_get(x->type, e[i]));
    if (i == 0) value_add(&v, value_get(x->type, e[i]));
  }
  return v;
}

static void emit_sum(void *user, int64_t n, const void *acc, char *out, const int64_t *off,
                     const char *const *base, const int64_t *const *xoff, const int64_t *step) {
  user_data *u = (user_data *)user;
  int64_t z = (int64_t)ein_dtype_size(u->x->type);
  if (n > EIN_POINTS) failures++;
  u->points += n;
  for (int64_t i = 0; i < n; i++) {
    const char *e[2] = {NULL, NULL};
    for (int k = 0; k < u->x->nextra; k++) e[k] = base[k] + placed(xoff[k], step, k + 1, i) * z;
    value_put(u->x->type, out + placed(off, step, 0, i) * z,
              stored(u->x, value_get(u->x->type, (const char *)acc + i * z), e));
  }
}

static void side_operands(const problem *x, const operand *o, int count, const char **base,
                          ein_dtype *dtype, const int64_t **row, const int64_t **k,
                          const int64_t **batch, int g, ein_side *s) {
  for (int i = 0; i < count; i++) {
    base[i] = o[i].base;
    dtype[i] = x->type;
    row[i] = o[i].stride[g];
    k[i] = o[i].stride[GK];
    batch[i] = o[i].stride[GB];
  }
  s->nop = count;
  s->base = base, s->dtype = dtype, s->row = row, s->k = k, s->batch = batch;
}

// Everything a contract points to.
typedef struct bound {
  ein_contract c;
  ein_choice h;
  const char *base[3][2];
  ein_dtype dtype[3][2];
  const int64_t *row[3][2], *k[3][2], *batch[3][2];
  user_data user[3];
} bound;

static void bind(bound *b, const problem *x, int plain, int conj, int plain_out) {
  ein_contract *c = &b->c;
  memset(b, 0, sizeof *b);
  c->type = x->type;
  c->batch.n = x->n[GB], c->batch.extent = x->extent[GB];
  c->m.n = x->n[GM], c->m.extent = x->extent[GM];
  c->n.n = x->n[GN], c->n.extent = x->extent[GN];
  c->k.n = x->n[GK], c->k.extent = x->extent[GK];
  side_operands(x, x->p, x->np, b->base[0], b->dtype[0], b->row[0], b->k[0], b->batch[0], GM,
                &c->p);
  side_operands(x, x->q, x->nq, b->base[1], b->dtype[1], b->row[1], b->k[1], b->batch[1], GN,
                &c->q);
  c->p.form = plain && x->np == 1 ? EIN_FORM_PLAIN : EIN_FORM_FUNCTION;
  c->q.form = plain && x->nq == 1 ? EIN_FORM_PLAIN : EIN_FORM_FUNCTION;
  c->p.conj = conj & 1;
  c->q.conj = conj >> 1;
  b->user[0].x = b->user[1].x = b->user[2].x = x;
  b->user[0].nop = x->np, b->user[1].nop = x->nq;
  c->p.fill_fn = c->q.fill_fn = fill_product;
  c->p.user = &b->user[0], c->q.user = &b->user[1];
  c->out = x->out.base;
  c->out_dtype = x->type;
  c->out_batch = x->out.stride[GB], c->out_m = x->out.stride[GM], c->out_n = x->out.stride[GN];
  c->plain_out = plain_out;
  c->nextra = x->nextra;
  for (int i = 0; i < x->nextra; i++) {
    b->base[2][i] = x->extra[i].base;
    b->dtype[2][i] = x->type;
    b->batch[2][i] = x->extra[i].stride[GB];
    b->row[2][i] = x->extra[i].stride[GM];
    b->k[2][i] = x->extra[i].stride[GN];
  }
  c->extra_base = b->base[2], c->extra_dtype = b->dtype[2], c->extra_batch = b->batch[2];
  c->extra_m = b->row[2], c->extra_n = b->k[2];
  c->emit_fn = emit_sum;
  c->emit_user = &b->user[2];
}

static void run(const bound *b, const ein_part *part) {
  char *raw = (char *)malloc(b->h.scratch + 64);
  char *scratch = (char *)((((uintptr_t)raw) + 63) / 64 * 64);
  if (raw == NULL || b->h.scratch > ((size_t)24 << 20)) failures++;
  if (raw != NULL) eini_contract_run(&b->c, &b->h, part, scratch);
  free(raw);
}

static ein_part whole_of(const problem *x) {
  ein_part w;
  memset(&w, 0, sizeof w);
  w.batch[1] = total(x, GB);
  w.m[1] = total(x, GM);
  w.n[1] = total(x, GN);
  return w;
}

static int path_of(const bound *b) {
  eini_cplan w;
  memcpy(&w, b->h.state, sizeof w);
  return w.path;
}

static value product_at(const problem *x, const operand *o, int count, int conj,
                        int64_t lin[GROUPS]) {
  value v = value_get(x->type, operand_at(x, &o[0], lin));
  if (conj) v.im = -v.im;
  if (count > 1) v = value_mul(v, value_get(x->type, operand_at(x, &o[1], lin)));
  return v;
}

static int close_to(const problem *x, value want, value got, int64_t k) {
  double eps = x->type == EIN_F32 || x->type == EIN_C64 ? 1.2e-7 : 2.3e-16;
  double tol = 4.0 * eps * (double)(k + 4) * (want.mag + 8.0);
  if (x->type == EIN_I32) return (uint32_t)want.whole == (uint32_t)got.whole;
  if (x->type == EIN_I64) return want.whole == got.whole;
  return fabs(want.re - got.re) <= tol && fabs(want.im - got.im) <= tol;
}

// out[b,m,n] = stored(sum over k of P[b,m,k] * Q[b,k,n]); checks up to about 2000 elements.
static int check(const problem *x, const bound *b) {
  const ein_contract *c = &b->c;
  int64_t lin[GROUPS], kn = total(x, GK);
  int64_t size = total(x, GB) * total(x, GM) * total(x, GN), step = size / 2000 + 1;
  for (int64_t at = 0; at < size; at += step) {
    value sum = {0, 0, 0, 0}, got;
    const char *e[2] = {NULL, NULL};
    lin[GN] = at % total(x, GN);
    lin[GM] = at / total(x, GN) % total(x, GM);
    lin[GB] = at / total(x, GN) / total(x, GM);
    for (lin[GK] = 0; lin[GK] < kn; lin[GK]++) {
      value_add(&sum, value_mul(product_at(x, x->p, x->np, c->p.conj, lin),
                                product_at(x, x->q, x->nq, c->q.conj, lin)));
    }
    for (int i = 0; i < x->nextra; i++) e[i] = operand_at(x, &x->extra[i], lin);
    if (!c->plain_out) sum = stored(x, sum, e);
    got = value_get(x->type, operand_at(x, &x->out, lin));
    if (!close_to(x, sum, got, kn)) {
      printf("%s path %s: element %lld is %g%+gi/%llu, should be %g%+gi/%llu\n",
             ein_dtype_name(x->type), b->h.variant, (long long)at, got.re, got.im,
             (unsigned long long)got.whole, sum.re, sum.im, (unsigned long long)sum.whole);
      return 0;
    }
  }
  return 1;
}

// Cut one group in two and run the parts with the plan of the whole: the bits must be the same.
// So must be those of every part of the grid.
static int check_cut(const problem *x, const bound *b) {
  int g = path_of(b) == EINI_SMALL ? GB : (int)rnd(3), same;
  ein_part whole = whole_of(x), part = whole;
  int64_t *range = g == GB ? part.batch : g == GM ? part.m : part.n, e = range[1], at, parts;
  char *want, *got = x->out.raw;
  if (e < 2) return 1;
  at = 1 + rnd(e - 1);
  want = (char *)malloc(x->out.bytes + 1);
  memcpy(want, got, x->out.bytes);
  memset(got, 0x55, rnd(2) ? 0 : x->out.bytes);
  range[1] = at;
  run(b, &part);
  range[0] = at, range[1] = e;
  run(b, &part);
  parts = b->h.grid[0] * b->h.grid[1] * b->h.grid[2];
  for (int64_t i = 0; i < parts; i++) {
    if (eini_grid_part(&b->h, &whole, (int)i, &part)) run(b, &part);
  }
  same = check(x, b);
  for (size_t i = 0; same && i < x->out.bytes; i++) same = want[i] == got[i] || got[i] == 0x55;
  if (!same) {
    printf("%s path %s: cutting group %d at %lld of %lld changes bits\n", ein_dtype_name(x->type),
           b->h.variant, g, (long long)at, (long long)e);
  }
  free(want);
  return same;
}

static void extents(problem *x, int g, int64_t most) {
  x->n[g] = (int)rnd(MAX_AXES + 1);
  for (int d = 0; d < x->n[g]; d++) {
    int64_t top = most;
    for (int i = 1; i < x->n[g]; i++) top = top > 12 ? 6 : top;
    x->extent[g][d] = rnd(40) == 0 ? 0 : 1 + rnd(top);
  }
}

static void one(int big) {
  static const ein_dtype types[6] = {EIN_F32, EIN_F64, EIN_I32, EIN_I64, EIN_C64, EIN_C128};
  problem x;
  bound b;
  int unaligned = rnd(6) == 0, plain = rnd(3) != 0, plain_out = rnd(3) != 0;
  memset(&x, 0, sizeof x);
  x.type = types[rnd(6)];
  extents(&x, GB, big ? 2 : 4);
  extents(&x, GM, rnd(3) == 0 ? 3 : big ? 300 : 40);
  extents(&x, GN, rnd(3) == 0 ? 3 : big ? 300 : 40);
  extents(&x, GK, rnd(3) == 0 ? 3 : big ? 900 : 40);
  x.np = plain ? 1 : 1 + (int)rnd(2);
  x.nq = plain ? 1 : 1 + (int)rnd(2);
  x.nextra = plain_out ? 0 : (int)rnd(3);
  for (int i = 0; i < x.np; i++) operand_make(&x, &x.p[i], GB, GM, GK, 1, unaligned);
  for (int i = 0; i < x.nq; i++) operand_make(&x, &x.q[i], GB, GN, GK, 1, unaligned);
  for (int i = 0; i < x.nextra; i++) operand_make(&x, &x.extra[i], GB, GM, GN, 1, unaligned);
  operand_make(&x, &x.out, GB, GM, GN, 0, unaligned);
  bind(&b, &x, plain, plain && is_complex(x.type) ? (int)rnd(4) : 0, plain_out);
  ein_part whole = whole_of(&x);
  const int width = 1 + (int)rnd(5);
  double least = HUGE_VAL;
  for (int nth = 0; eini_contract_plan(&b.c, width, nth, &b.h); nth++) {
    least = fmin(least, b.h.seconds);
    b.user[2].points = 0;
    run(&b, &whole);
    if (!plain_out && b.user[2].points != total(&x, GB) * total(&x, GM) * total(&x, GN)) failures++;
    if (!check(&x, &b) || (!unaligned && plain_out && !check_cut(&x, &b))) failures++;
  }
  if (!eini_contract_plan(&b.c, width, -1, &b.h) || b.h.seconds != least) failures++;
  for (int i = 0; i < x.np; i++) free(x.p[i].raw);
  for (int i = 0; i < x.nq; i++) free(x.q[i].raw);
  for (int i = 0; i < x.nextra; i++) free(x.extra[i].raw);
  free(x.out.raw);
}

// An infinity in the padding or next to the k tail must not make a NaN.
static void test_infinity(void) {
  enum { M = 7, K = 5, N = 37 };
  double p[M * K], q[K * N], out[M * N];
  int64_t em = M, en = N, ek = K, sk = K, s1 = 1, sn = N;
  const char *pb = (const char *)p, *qb = (const char *)q;
  const int64_t *prow = &sk, *pk = &s1, *qrow = &s1, *qk = &sn;
  ein_dtype z[1] = {EIN_F64};
  ein_part part;
  bound b;
  ein_contract *c = &b.c;
  eini_cplan w;
  memset(&b, 0, sizeof b);
  memset(&part, 0, sizeof part);
  for (int path = 0; path < 2; path++) {
    for (int i = 0; i < M * K; i++) p[i] = i / K == 3 ? HUGE_VAL : 1.0;
    for (int i = 0; i < K * N; i++) q[i] = i % N == 2 ? HUGE_VAL : 2.0;
    c->type = EIN_F64;
    c->m.n = c->n.n = c->k.n = 1;
    c->m.extent = &em, c->n.extent = &en, c->k.extent = &ek;
    if (path == 1) en = 1, c->n.n = 0;
    c->p.nop = c->q.nop = 1;
    c->plain_out = 1;
    c->p.base = &pb, c->q.base = &qb;
    c->p.dtype = c->q.dtype = z;
    c->p.row = &prow, c->p.k = &pk, c->q.row = &qrow, c->q.k = &qk;
    c->out = (char *)out, c->out_dtype = EIN_F64;
    c->out_m = &sn, c->out_n = &s1;
    part.batch[1] = 1, part.m[1] = M, part.n[1] = en;
    if (!eini_contract_plan(c, 1, -1, &b.h)) failures++;
    memcpy(&w, b.h.state, sizeof w);
    for (int small = 0; small < 2; small++) {
      w.path = small ? EINI_SMALL : path == 1 ? EINI_STREAM : EINI_BLOCK;
      b.h.scratch = eini_contract_scratch(c, &w);
      memcpy(b.h.state, &w, sizeof w);
      run(&b, &part);
      for (int i = 0; i < M; i++) {
        for (int n = 0; n < (int)en; n++) {
          double want = i == 3 || n == 2 ? HUGE_VAL : 2.0 * (double)K;
          if (out[i * N + n] != want) failures++;
        }
      }
    }
  }
}

int main(int argc, char **argv) {
  int64_t small = argc > 1 ? atoi(argv[1]) : FEW(6000), big = argc > 2 ? atoi(argv[2]) : FEW(120);
  if (argc > 3) seed = (uint64_t)atoi(argv[3]);
  test_infinity();
  for (int64_t i = 0; i < small && failures == 0; i++) one(0);
  for (int64_t i = 0; i < big && failures == 0; i++) one(1);
  if (failures != 0) {
    printf("test_contract: FAILED\n");
    return 1;
  }
  printf("ok test_contract\n");
  return 0;
}
