// Random contractions through sections gett and moved of the CPU backend, against plain loops:
// dtypes, forms, pairs, ranks to 4 per group, strides of both signs and 0, instruction sets, cuts.
// Every third case is drawn so that its output is streamed, at any place within a cache line. Bytes
// around the output and between its elements must stay as they are.
// usage: test_cpu_gett [cases] [first seed]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "util.h"

enum { BATCH, M, N, K, GROUPS, AXES = 4, OPS = 3 };

static uint64_t seed_state;
static int64_t pick(int64_t n) {  // 0 .. n-1
  seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((seed_state >> 33) % (uint64_t)n);
}

typedef struct array {            // an operand, an extra or the output
  ein_dtype dtype;
  int64_t stride[GROUPS][AXES];
  int uses[GROUPS];
  int64_t elems, zero;            // of the buffer; where index 0 lies
  char *data;
  char *raw;                      // what is allocated: GUARD bytes more at both ends
  size_t raw_bytes;
} array;
enum { GUARD = 256, GUARD_BYTE = 0xa5 };

typedef struct problem {
  ein_contract c;
  int exact;                      // small whole numbers: results must be equal
  int stream;                     // drawn for an output that is streamed
  int narrow;                     // operands are f16, bf16 or short integers
  int converts;                   // the store does nothing but convert
  int subnormal;                  // some of their values are
  int64_t extent[GROUPS][AXES];
  int rank[GROUPS];
  array op[2][OPS], out, extra[2];
  int nop[2];
} problem;

static void put(array *a, int64_t i, double re, double im) {
  char *p = a->data + (size_t)i * ein_dtype_size(a->dtype);
  switch (a->dtype) {
    case EIN_BOOL: *(unsigned char *)p = re > 0; break;
    case EIN_I32: *(int32_t *)(void *)p = (int32_t)(uint32_t)(uint64_t)(int64_t)re; break;
    case EIN_I16: *(int16_t *)(void *)p = (int16_t)(uint16_t)(uint64_t)(int64_t)re; break;
    case EIN_I8: *(int8_t *)p = (int8_t)(uint8_t)(uint64_t)(int64_t)re; break;
    case EIN_U8: *(uint8_t *)p = (uint8_t)(uint64_t)(int64_t)re; break;
    case EIN_F16: *(uint16_t *)(void *)p = eini_f16_store((float)re); break;
    case EIN_BF16: *(uint16_t *)(void *)p = eini_bf16_store((float)re); break;
    case EIN_I64: *(int64_t *)(void *)p = (int64_t)re; break;
    case EIN_F32: *(float *)(void *)p = (float)re; break;
    case EIN_F64: *(double *)(void *)p = re; break;
    case EIN_C64: ((float *)(void *)p)[0] = (float)re, ((float *)(void *)p)[1] = (float)im; break;
    default: ((double *)(void *)p)[0] = re, ((double *)(void *)p)[1] = im; break;
  }
}

static void get(ein_dtype t, const char *base, int64_t i, double *v) {
  const char *p = base + i * (int64_t)ein_dtype_size(t);
  v[1] = 0;
  switch (t) {
    case EIN_BOOL: v[0] = *(const unsigned char *)p; break;
    case EIN_I32: v[0] = *(const int32_t *)(const void *)p; break;
    case EIN_I16: v[0] = *(const int16_t *)(const void *)p; break;
    case EIN_I8: v[0] = *(const int8_t *)p; break;
    case EIN_U8: v[0] = *(const uint8_t *)p; break;
    case EIN_F16: v[0] = eini_f16_load(*(const uint16_t *)(const void *)p); break;
    case EIN_BF16: v[0] = eini_bf16_load(*(const uint16_t *)(const void *)p); break;
    case EIN_I64: v[0] = (double)*(const int64_t *)(const void *)p; break;
    case EIN_F32: v[0] = *(const float *)(const void *)p; break;
    case EIN_F64: v[0] = *(const double *)(const void *)p; break;
    case EIN_C64:
      v[0] = ((const float *)(const void *)p)[0], v[1] = ((const float *)(const void *)p)[1];
      break;
    default:
      v[0] = ((const double *)(const void *)p)[0], v[1] = ((const double *)(const void *)p)[1];
  }
}

// The value of a side: the product of its operands, or for functions their sum.
typedef struct side_user {
  ein_form form;
  ein_dtype type;
  int nop;
  const ein_dtype *dtype;
} side_user;

static void combine(const side_user *s, double *acc, const double *v) {
  if (s->form == EIN_FORM_FUNCTION) {
    acc[0] += v[0], acc[1] += v[1];
  } else {
    const double re = acc[0] * v[0] - acc[1] * v[1];
    acc[1] = acc[0] * v[1] + acc[1] * v[0], acc[0] = re;
  }
}

static void fill(void *user, int64_t n, const char *const *base, const int64_t *const *off,
                 const int64_t *gap, void *out) {
  const side_user *s = (const side_user *)user;
  array to;
  memset(&to, 0, sizeof to);
  to.dtype = s->type, to.data = (char *)out;
  for (int64_t i = 0; i < n; i++) {
    double acc[2], v[2];
    for (int o = 0; o < s->nop; o++) {
      const int64_t at = gap == NULL ? off[o][i] : off[o][0] + i * gap[o];
      get(s->dtype[o], base[o], at, o == 0 ? acc : v);
      if (o > 0) combine(s, acc, v);
    }
    put(&to, i, acc[0], acc[1]);
  }
}

// out = by * fold + extras.
typedef struct store_user {
  ein_dtype type, out;
  int nextra;
  double by;
} store_user;

static void emit(void *user, int64_t n, const void *folds, char *out, const int64_t *off,
                 const char *const *base, const int64_t *const *xoff, const int64_t *step) {
  const store_user *s = (const store_user *)user;
  array to;
  memset(&to, 0, sizeof to);
  to.dtype = s->out, to.data = out;
  for (int64_t i = 0; i < n; i++) {
    double v[2], x[2];
    get(s->type, (const char *)folds, i, v);
    v[0] *= s->by, v[1] *= s->by;
    for (int e = 0; e < s->nextra; e++) {
      get(s->out, base[e], placed(xoff[e], step, e + 1, i), x);
      v[0] += x[0], v[1] += x[1];
    }
    put(&to, placed(off, step, 0, i), v[0], v[1]);
  }
}

static void check(int ok, const char *what) {
  if (ok) return;
  printf("test_cpu_gett: %s\n", what);
  exit(1);
}

// A layout for an array over some groups: axes in random order, now and then with gaps, negative
// or (not the output) zero strides.
static void lay_out(problem *p, array *a, ein_dtype t, const int *uses, int out) {
  int order[GROUPS * AXES], n = 0;
  memset(a, 0, sizeof *a);
  a->dtype = t, a->elems = 1;
  for (int g = 0; g < GROUPS; g++) {
    a->uses[g] = uses[g];
    for (int i = 0; uses[g] && i < p->rank[g]; i++) order[n++] = g * AXES + i;
  }
  const int tidy = pick(4) == 0;
  for (int i = n - 1; i > 0 && !tidy; i--) {
    const int j = (int)pick(i + 1), x = order[i];
    order[i] = order[j], order[j] = x;
  }
  const int plain = out && p->stream;
  if (plain)  // contiguous along the last axis of M or N, which has the longest run
    for (int i = 0; i < n - 1; i++)
      if (order[i] == p->stream * AXES) order[i] = order[n - 1], order[n - 1] = p->stream * AXES;
  int64_t step = !plain && pick(8) == 0 ? 2 : 1, low = 0, high = 0;
  for (int i = n - 1; i >= 0; i--) {
    const int g = order[i] / AXES, ax = order[i] % AXES;
    const int64_t e = p->extent[g][ax];
    int64_t s = step;
    if (!out && pick(12) == 0) s = 0;
    else if (pick(12) == 0 && !(plain && i == n - 1)) s = -s;
    a->stride[g][ax] = s;
    if (s < 0) low += s * (e - 1);
    else high += s * (e - 1);
    if (s != 0) step = step * e + (pick(plain ? 20 : 6) == 0 ? pick(5) : 0);
  }
  a->elems = high - low + 1, a->zero = -low;
  const size_t size = ein_dtype_size(t);
  a->raw_bytes = (size_t)a->elems * size + 2 * GUARD;
  a->raw = (char *)malloc(a->raw_bytes);
  check(a->raw != NULL, "no memory");
  memset(a->raw, GUARD_BYTE, a->raw_bytes);
  a->data = a->raw + (64 - (uintptr_t)a->raw % 64) % 64 +
            (pick(4) ? (size_t)pick(64 / (int64_t)size) * size : 0);
  for (int64_t i = 0; i < a->elems; i++) {
    if (out) break;
    if (p->narrow && p->c.type == EIN_I32) put(a, i, (double)(pick(65536) - 32768), 0);
    else if (p->exact) put(a, i, (double)(pick(7) - 3), (double)(pick(7) - 3));
    else if (p->subnormal && a == &p->op[0][0]) put(a, i, (double)pick(100) * 1e-40, 0);
    else if (p->subnormal) put(a, i, (double)(pick(100) - 50) * (t == EIN_F16 ? 1 : 1e36), 0);
    else put(a, i, (double)pick(2001) / 1000 - 1, (double)pick(2001) / 1000 - 1);
  }
}

static const char *base_of(const array *a) {
  return a->data + a->zero * (int64_t)ein_dtype_size(a->dtype);
}

static int64_t at(const array *a, int64_t (*index)[AXES], const problem *p) {
  int64_t r = 0;
  for (int g = 0; g < GROUPS; g++)
    for (int i = 0; a->uses[g] && i < p->rank[g]; i++) r += index[g][i] * a->stride[g][i];
  return r;
}

static int next(int64_t *index, const int64_t *extent, int n) {
  for (int i = n - 1; i >= 0; i--) {
    if (++index[i] < extent[i]) return 1;
    index[i] = 0;
  }
  return 0;
}

static void side_value(const problem *p, const ein_side *s, const array *op,
                       int64_t (*index)[AXES], double *acc) {
  const side_user *u = (const side_user *)s->user;
  for (int o = 0; o < s->nop; o++) {
    double v[2];
    get(op[o].dtype, base_of(&op[o]), at(&op[o], index, p), v);
    if (o == 0) acc[0] = v[0], acc[1] = v[1];
    else combine(u, acc, v);
  }
  if (s->conj) acc[1] = -acc[1];
}

static void fold(ein_pair pair, double *acc, const double *x, const double *y, int first) {
  const double d = x[0] - y[0];
  double v = 0;
  switch (pair) {
    case EIN_PAIR_SUM_MUL:
      if (first) acc[0] = acc[1] = 0;
      acc[0] += x[0] * y[0] - x[1] * y[1], acc[1] += x[0] * y[1] + x[1] * y[0];
      return;
    case EIN_PAIR_MIN_ADD:
      v = x[0] + y[0];
      acc[0] = first || v < acc[0] ? v : acc[0];
      return;
    case EIN_PAIR_MAX_ADD: v = x[0] + y[0]; break;
    case EIN_PAIR_ANY_AND: v = x[0] != 0 && y[0] != 0; break;
    case EIN_PAIR_SUM_SQDIFF: acc[0] = (first ? 0 : acc[0]) + d * d; return;
    case EIN_PAIR_SUM_ABSDIFF: acc[0] = (first ? 0 : acc[0]) + fabs(d); return;
    default: v = fabs(d);
  }
  acc[0] = first || v > acc[0] ? v : acc[0];
}

// What a value becomes in a dtype.
static void rounded(ein_dtype t, double *x) {
  int64_t room[2];
  double v[2];
  array a;
  memset(&a, 0, sizeof a);
  a.dtype = t, a.data = (char *)room;
  put(&a, 0, *x, 0);
  get(t, a.data, 0, v);
  *x = v[0];
}

// Compares the output with plain loops; before: the output as it was.
static void verify(problem *p, const array *before) {
  int64_t index[GROUPS][AXES];
  memset(index, 0, sizeof index);
  int64_t terms = 1;
  for (int i = 0; i < p->rank[K]; i++) terms *= p->extent[K][i];
  const double eps = (p->c.type == EIN_F32 || p->c.type == EIN_C64 ? 2e-6 : 1e-14) * 3;
  do {
    do {
      do {
        double acc[2] = {0, 0}, got[2];
        int first = 1;
        memset(index[K], 0, sizeof index[K]);
        do {
          double x[2], y[2];
          side_value(p, &p->c.p, p->op[0], index, x);
          side_value(p, &p->c.q, p->op[1], index, y);
          fold(p->c.pair, acc, x, y, first);
          first = 0;
        } while (next(index[K], p->extent[K], p->rank[K]));
        const int64_t o = at(&p->out, index, p);
        if (!p->c.plain_out && !p->converts) {
          acc[0] *= 2, acc[1] *= 2;
          for (int e = 0; e < p->c.nextra; e++) {
            double x[2];
            get(p->extra[e].dtype, base_of(&p->extra[e]), at(&p->extra[e], index, p), x);
            acc[0] += x[0], acc[1] += x[1];
          }
        }
        get(p->out.dtype, base_of(&p->out), o, got);
        const double scale = sqrt((double)terms) + fabs(acc[0]) + fabs(acc[1]) + 4;
        double tol = p->exact ? 0 : eps * 16 * scale;
        if (p->out.dtype == EIN_BF16 || p->out.dtype == EIN_F16) {
          tol += p->exact ? 0 : fabs(acc[0]) / (p->out.dtype == EIN_BF16 ? 256 : 2048);
          if (p->exact) rounded(p->out.dtype, &acc[0]);
        } else if (p->c.type == EIN_I32) {
          rounded(p->out.dtype, &acc[0]);
        }
        if (!(fabs(got[0] - acc[0]) <= tol && fabs(got[1] - acc[1]) <= tol)) {
          printf("got %.17g %.17g, expected %.17g %.17g\n", got[0], got[1], acc[0], acc[1]);
          check(0, "wrong value");
        }
      } while (next(index[N], p->extent[N], p->rank[N]));
    } while (next(index[M], p->extent[M], p->rank[M]));
  } while (next(index[BATCH], p->extent[BATCH], p->rank[BATCH]));
  (void)before;
}

// What is no element of the output has not been written.
static void verify_guards(const problem *p) {
  const array *a = &p->out;
  const size_t size = ein_dtype_size(a->dtype);
  int64_t index[GROUPS][AXES];
  char *mine = (char *)calloc(a->raw_bytes, 1);
  check(mine != NULL, "no memory");
  memset(index, 0, sizeof index);
  do {
    do {
      do {
        const char *e = base_of(a) + at(a, index, p) * (int64_t)size;
        memset(mine + (e - a->raw), 1, size);
      } while (next(index[N], p->extent[N], p->rank[N]));
    } while (next(index[M], p->extent[M], p->rank[M]));
  } while (next(index[BATCH], p->extent[BATCH], p->rank[BATCH]));
  for (size_t i = 0; i < a->raw_bytes; i++)
    check(mine[i] || (unsigned char)a->raw[i] == GUARD_BYTE, "a byte beside the output changed");
  free(mine);
}

// Runs the parts of a cut in turn, each with scratch memory full of NaN.
static void run_cut(const eini_cpu *cpu, const eini_cpu_family *family, const problem *p,
                    const ein_choice *choice, int cuts) {
  const ein_axes *x[3] = {&p->c.batch, &p->c.m, &p->c.n};
  int64_t all[3], edge[3][4];
  for (int g = 0; g < 3; g++) {
    all[g] = 1;
    for (int i = 0; i < x[g]->n; i++) all[g] *= x[g]->extent[i];
    edge[g][0] = 0, edge[g][3] = all[g];
    const int64_t units = (all[g] + choice->unit[g] - 1) / choice->unit[g];
    for (int i = 1; i < 3; i++) edge[g][i] = cuts ? pick(units + 1) * choice->unit[g] : all[g];
    if (edge[g][1] > edge[g][2]) {
      const int64_t t = edge[g][1];
      edge[g][1] = edge[g][2], edge[g][2] = t;
    }
    for (int i = 1; i < 3; i++) edge[g][i] = edge[g][i] < all[g] ? edge[g][i] : all[g];
  }
  char *scratch = (char *)malloc(choice->scratch + 64 + GUARD);
  check(scratch != NULL, "no memory");
  char *aligned = scratch + (64 - (uintptr_t)scratch % 64) % 64;
  memset(aligned + choice->scratch, GUARD_BYTE, GUARD);
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++)
      for (int d = 0; d < 3; d++) {
        const ein_part part = {{edge[0][a], edge[0][a + 1]}, {edge[1][b], edge[1][b + 1]},
                               {edge[2][d], edge[2][d + 1]}};
        if (part.batch[0] == part.batch[1] || part.m[0] == part.m[1] || part.n[0] == part.n[1])
          continue;
        memset(aligned, 0xff, choice->scratch);
        check(family->run(cpu, &p->c, choice, &part, aligned) == EIN_OK, "a status");
      }
  for (int i = 0; i < GUARD; i++)
    check((unsigned char)aligned[choice->scratch + (size_t)i] == GUARD_BYTE, "little scratch");
  free(scratch);
}

static int64_t draw_extent(int big) {
  static const int64_t some[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 33, 36, 40};
  return big ? some[pick(17)] : some[pick(8)];
}

// Some runs of one side that end within vectors, and many k.
static void draw_runs(problem *p) {
  const int side = pick(2) ? M : N;
  for (int g = 0; g < GROUPS; g++) p->rank[g] = 1;
  p->rank[side] = 2;
  p->extent[BATCH][0] = 1 + pick(2), p->extent[M + N - side][0] = 1 + pick(12);
  p->extent[side][0] = 2 + pick(3), p->extent[side][1] = 4 * (1 + pick(28));
  p->extent[K][0] = 120 + pick(80);
}

// Runs of the output of about a hundred elements at most, mostly whole lines, and a short K.
static void draw_streamed(problem *p) {
  static const int64_t runs[] = {16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 144, 160, 36, 101};
  static const int64_t few[] = {1, 2, 3, 5, 8, 9, 12, 16, 17, 24};
  p->stream = pick(2) ? M : N;
  int64_t work = 1;
  for (int g = 0; g < GROUPS; g++) {
    p->rank[g] = (int)(g == BATCH ? pick(2) : g == K ? pick(5) > 0 : 1 + pick(3));
    for (int i = 0; i < p->rank[g]; i++) {
      int64_t e = g == p->stream && i == 0 ? runs[pick(15)] : few[pick(g == BATCH ? 3 : 10)];
      if (g == K) e = 1 + pick(40);
      if (work * e > 300000) e = 1;
      p->extent[g][i] = e, work *= e;
    }
  }
}

static void draw_extents(problem *p) {
  int64_t work = 1;
  if (pick(8) == 0) {
    draw_runs(p);
    return;
  }
  if (p->narrow && pick(3) == 0) {  // whole tiles of tile registers
    for (int g = 0; g < GROUPS; g++) p->rank[g] = g != BATCH || pick(4) == 0;
    for (int g = 0; g < GROUPS; g++)
      p->extent[g][0] = g == BATCH ? 2 : g == K ? 1 + pick(90) : 32 * (1 + pick(2)) + pick(20);
    return;
  }
  for (int g = 0; g < GROUPS; g++) {
    p->rank[g] = (int)(g == BATCH ? pick(3) : pick(4) == 0 ? pick(AXES + 1) : 1 + pick(2));
    for (int i = 0; i < p->rank[g]; i++) {
      int64_t e = g == BATCH ? 1 + pick(3) : draw_extent(p->rank[g] < 3);
      if (p->rank[g] == 1 && pick(6) == 0) e = 1 + pick(300);
      while (work * e > 400000) e = (e + 1) / 2;
      if (work * e > 800000) e = 1;
      p->extent[g][i] = e, work *= e;
    }
  }
}

static void draw_side(problem *p, int which, ein_side *s, side_user *user, ein_dtype *dtypes,
                      const int64_t *strides[3][OPS], const char **base) {
  static const int uses_p[GROUPS] = {1, 1, 0, 1}, uses_q[GROUPS] = {1, 0, 1, 1};
  const int *uses = which == 0 ? uses_p : uses_q;
  static const ein_dtype ints[] = {EIN_I8, EIN_I8, EIN_U8, EIN_U8, EIN_I16};
  const ein_dtype t = p->c.type;
  const int real = t == EIN_F32 || t == EIN_F64;
  memset(s, 0, sizeof *s);
  s->form = pick(3) != 0 ? EIN_FORM_PLAIN : (ein_form)pick(4);
  if (p->narrow) s->form = EIN_FORM_CONVERT;
  if (t == EIN_BOOL) s->form = EIN_FORM_PLAIN;
  if (s->form == EIN_FORM_CONVERT && !real && !p->narrow) s->form = EIN_FORM_PLAIN;
  s->nop = s->form == EIN_FORM_PRODUCT ? 2 + (int)pick(2)
           : s->form == EIN_FORM_FUNCTION ? 1 + (int)pick(3) : 1;
  s->conj = s->form == EIN_FORM_PLAIN && (t == EIN_C64 || t == EIN_C128) && pick(2);
  for (int o = 0; o < s->nop; o++) {
    dtypes[o] = t;
    if (s->form == EIN_FORM_CONVERT) dtypes[o] = pick(2) ? EIN_F32 : EIN_I32;
    if (p->narrow) dtypes[o] = t == EIN_F32 ? (pick(5) ? EIN_BF16 : EIN_F16) : ints[pick(5)];
    array *a = &p->op[which][o];
    lay_out(p, a, dtypes[o], uses, 0);
    strides[0][o] = a->stride[which == 0 ? M : N];
    strides[1][o] = a->stride[K], strides[2][o] = a->stride[BATCH];
    base[o] = base_of(a);
  }
  s->dtype = dtypes, s->row = strides[0], s->k = strides[1], s->batch = strides[2], s->base = base;
  user->form = s->form, user->type = t, user->nop = s->nop, user->dtype = dtypes;
  s->fill_fn = fill, s->user = user;
}

static void draw_pair(problem *p) {
  static const ein_dtype types[] = {EIN_F64, EIN_F32, EIN_F64, EIN_F32, EIN_C64, EIN_C128,
                                    EIN_I32, EIN_I64};
  p->c.type = types[pick(8)];
  p->c.pair = EIN_PAIR_SUM_MUL;
  if (p->c.type != EIN_C64 && p->c.type != EIN_C128 && pick(3) == 0) {
    p->c.pair = (ein_pair)pick(7);
    if (p->c.pair == EIN_PAIR_ANY_AND) p->c.type = EIN_BOOL;
  }
  if (p->narrow) p->c.type = pick(2) ? EIN_F32 : EIN_I32, p->c.pair = EIN_PAIR_SUM_MUL;
  if (p->c.type == EIN_F32 && pick(4) == 0) p->narrow = 1;
  p->exact = p->c.type == EIN_I32 || p->c.type == EIN_I64 || p->c.type == EIN_BOOL || pick(2);
  p->subnormal = p->narrow && !p->exact && p->c.pair == EIN_PAIR_SUM_MUL && pick(3) == 0;
}

static void sort_axes(problem *p, int g) {  // by the output, small strides last
  for (int pass = 0; pass < p->rank[g]; pass++)
    for (int i = 0; i + 1 < p->rank[g]; i++) {
      if (llabs(p->out.stride[g][i]) >= llabs(p->out.stride[g][i + 1])) continue;
      array *all[2 * OPS + 3];
      int n = 0;
      for (int s = 0; s < 2; s++)
        for (int o = 0; o < p->nop[s]; o++) all[n++] = &p->op[s][o];
      for (int e = 0; e < p->c.nextra; e++) all[n++] = &p->extra[e];
      all[n++] = &p->out;
      for (int a = 0; a < n; a++) {
        const int64_t t = all[a]->stride[g][i];
        all[a]->stride[g][i] = all[a]->stride[g][i + 1], all[a]->stride[g][i + 1] = t;
      }
      const int64_t t = p->extent[g][i];
      p->extent[g][i] = p->extent[g][i + 1], p->extent[g][i + 1] = t;
    }
}

// How an output leaves: counts[8] tiles ask for what they add to; where it is to be streamed [0]
// at all, [1] tiles store lines, [2] through the buffer, [3] boxes are moved to lines, [4] tiles
// store parts of vectors, [5] runs wait for those behind them.
static void count_ways(const eini_cpu *cpu, const problem *p, const ein_choice *choice,
                       long *counts) {
  if (choice->state[0] & EINI_GETT_BARE) return;
  eini_gett_sketch sketch;
  eini_gett_job j;
  char *scratch = (char *)malloc(choice->scratch + 64);
  check(scratch != NULL, "no memory");
  eini_gett_job_init(cpu, &p->c, choice->state, &sketch, scratch, &j);
  counts[8] += j.comes && j.k.total > 1;
  if (j.stream) {
    eini_gett_align(&j);
    counts[0]++, counts[1] += j.direct, counts[2] += !j.direct, counts[3] += j.v.g.early > 0;
    counts[4] += j.masked, counts[5] += j.chained;
  }
  free(scratch);
}

static void run_family(const eini_cpu *cpu, const eini_cpu_family *family, problem *p,
                       const ein_choice *choice) {
  const size_t bytes = p->out.raw_bytes;
  char *copy = (char *)malloc(bytes);
  check(copy != NULL, "no memory");
  run_cut(cpu, family, p, choice, 0);
  verify(p, NULL);
  verify_guards(p);
  memcpy(copy, p->out.raw, bytes);
  run_cut(cpu, family, p, choice, 1);
  check(memcmp(copy, p->out.raw, bytes) == 0, "a cut changes bits");
  free(copy);
}

// The families of dot products that take the problem.
static void run_dots(const eini_rated *cpu, problem *p, long *counts) {
  static const eini_cpu_family *const dots[] = {&eini_gett_bf16, &eini_gett_i16, &eini_gett_i8,
                                                &eini_gett_amx_f, &eini_gett_amx_i};
  for (int i = 0; i < 5; i++) {
    ein_choice choice;
    if (!dots[i]->plan(cpu, &p->c, cpu->is.width, &choice)) continue;
    check(choice.seconds > 0, "no time predicted");
    memset(p->out.raw, GUARD_BYTE, p->out.raw_bytes);
    run_family(&cpu->is, dots[i], p, &choice);
    counts[9 + i]++, counts[14] += p->subnormal && i % 3 == 0;
  }
}

static void one_case(uint64_t seed, int isa_only, long *counts) {
  static const int uses_out[GROUPS] = {1, 1, 1, 0};
  static problem p;
  memset(&p, 0, sizeof p);
  seed_state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++) pick(2);
  p.narrow = seed % 4 == 1;
  if (seed % 3 == 0) draw_streamed(&p);
  else draw_extents(&p);
  draw_pair(&p);
  ein_dtype dtypes[2][OPS], xtypes[2];
  const int64_t *strides[2][3][OPS], *xs[3][2];
  const char *base[2][OPS], *xbase[2];
  side_user users[2];
  draw_side(&p, 0, &p.c.p, &users[0], dtypes[0], strides[0], base[0]);
  draw_side(&p, 1, &p.c.q, &users[1], dtypes[1], strides[1], base[1]);
  p.nop[0] = p.c.p.nop, p.nop[1] = p.c.q.nop;
  p.c.plain_out = p.c.type == EIN_BOOL || (p.stream && !p.narrow) || pick(3) != 0;
  p.converts = !p.c.plain_out && p.narrow && pick(4) != 0;
  p.c.nextra = p.c.plain_out || p.converts ? 0 : (int)pick(3);
  // Sums that the kernel itself scales, as the store would.
  static const double two = 2;
  static const float single_two = 2;
  p.c.scaled = !p.c.plain_out && !p.converts && p.c.nextra == 0 && pick(2) &&
               (p.c.type == EIN_F32 || p.c.type == EIN_F64);
  if (p.c.scaled) p.c.alpha = p.c.type == EIN_F32 ? (const void *)&single_two : (const void *)&two;
  p.c.out_dtype = p.c.type;
  static const ein_dtype halves[] = {EIN_BF16, EIN_F16}, ints[] = {EIN_I8, EIN_U8, EIN_I16};
  if (p.converts) p.c.out_dtype = p.c.type == EIN_F32 ? halves[pick(2)] : ints[pick(3)];
  lay_out(&p, &p.out, p.c.out_dtype, uses_out, 1);
  static const ein_code some;
  if (!p.converts && !p.c.plain_out) p.c.store = &some;
  for (int e = 0; e < p.c.nextra; e++) {
    lay_out(&p, &p.extra[e], p.c.type, uses_out, 0);
    xtypes[e] = p.c.type, xbase[e] = base_of(&p.extra[e]);
    xs[0][e] = p.extra[e].stride[BATCH], xs[1][e] = p.extra[e].stride[M];
    xs[2][e] = p.extra[e].stride[N];
  }
  for (int g = 0; g < K; g++) sort_axes(&p, g);
  ein_axes *axes[GROUPS] = {&p.c.batch, &p.c.m, &p.c.n, &p.c.k};
  for (int g = 0; g < GROUPS; g++) axes[g]->n = p.rank[g], axes[g]->extent = p.extent[g];
  store_user store = {p.c.type, p.c.out_dtype, p.c.nextra, p.converts ? 1 : 2};
  p.c.out_batch = p.out.stride[BATCH], p.c.out_m = p.out.stride[M];
  p.c.out_n = p.out.stride[N];
  p.c.out = p.out.data + p.out.zero * (int64_t)ein_dtype_size(p.c.out_dtype);
  p.c.extra_dtype = xtypes, p.c.extra_batch = xs[0], p.c.extra_m = xs[1], p.c.extra_n = xs[2];
  p.c.extra_base = xbase, p.c.emit_fn = emit, p.c.emit_user = &store;
  // Caches of all sizes, so that few elements make many blocks.
  eini_rated cpu;
  memset(&cpu, 0, sizeof cpu);
  const int small = p.stream ? 2 : (int)pick(3);
  cpu.is.l1 = small == 0 ? 48 << 10 : 4096, cpu.is.l2 = small == 0 ? 1 << 20 : 16 << 10;
  cpu.is.l3 = small == 2 ? 4096 : 16 << 20;
  cpu.is.width = 1 + (int)pick(4), cpu.is.l3s = 1;
  cpu.hz = 4e9, cpu.peak_f64 = 1e11, cpu.peak_f32 = 2e11, cpu.read_bw = cpu.copy_bw = 3e10;
  cpu.l2_bw = cpu.l3_bw = cpu.l2_store = cpu.l3_store = 1e11;
  cpu.past = (double)(cpu.is.l3 * cpu.is.width) / 2;
  static const int isas[] = {EINI_ISA_PLAIN, EINI_ISA_AVX2, EINI_ISA_AVX512, EINI_ISA_AVX512};
  cpu.is.isa = isa_only >= 0 ? isa_only : p.stream && pick(2) ? EINI_ISA_AVX512 : isas[pick(4)];
#if EINI_CPU_X86
  if (isa_only < 0 && cpu.is.isa > eini_isa_best()) cpu.is.isa = eini_isa_best();
#endif
  // Tiles in plain C: they are slow, and not all machines have others.
  if (cpu.is.isa == EINI_ISA_AVX512)
    cpu.is.has = eini_cpu_has() | (pick(3) ? 0 : EINI_HAS_AMX_PLAIN);
  cpu.peak_bf16 = 4e11, cpu.peak_i8 = 8e11;
  ein_choice choice;
  check(eini_gett_family.plan(&cpu, &p.c, cpu.is.width, &choice), "declined");
  check(choice.seconds > 0, "no time predicted");
  count_ways(&cpu.is, &p, &choice, counts);
  run_family(&cpu.is, &eini_gett_family, &p, &choice);
  run_dots(&cpu, &p, counts);
  if (eini_moved_plan(&cpu, &p.c, cpu.is.width, &choice))
    for (int v = 1; v <= 2; v++) {
      check(eini_moved_try(&cpu, &p.c, v, cpu.is.width, &choice) && choice.seconds > 0, "declined");
      memset(p.out.raw, GUARD_BYTE, p.out.raw_bytes);
      run_family(&cpu.is, &eini_moved_family, &p, &choice);
      counts[6]++, counts[7] += choice.state[EINI_MOVED_STREAM];
    }
  for (int s = 0; s < 2; s++)
    for (int o = 0; o < p.nop[s]; o++) free(p.op[s][o].raw);
  for (int e = 0; e < p.c.nextra; e++) free(p.extra[e].raw);
  free(p.out.raw);
}

// Rounding to nearest, ties to even: neither neighbour of what is stored is nearer.
static void check_rounded(ein_dtype t, uint32_t bits, uint16_t h) {
  const double most = t == EIN_F16 ? 65504 : 3.3895313892515355e38, x = eini_f32_from_bits(bits);
  if (!(fabs(x) <= most)) return;
  for (int by = -1; by <= 1; by += 2) {
    const uint16_t g = (uint16_t)(h + by);
    const double a = t == EIN_F16 ? eini_f16_load(h) : eini_bf16_load(h);
    const double b = t == EIN_F16 ? eini_f16_load(g) : eini_bf16_load(g);
    if (b != b || ((g ^ h) & 0x8000) != 0) continue;
    check(fabs(a - x) < fabs(b - x) || (fabs(a - x) == fabs(b - x) && h % 2 == 0), "rounding");
  }
}

// Conversions of chunks: the same bits in every instruction set, for all that is stored and for
// values to store at random and around ties.
static void check_conversions(void) {
  static const ein_dtype types[] = {EIN_F16, EIN_BF16, EIN_I8, EIN_U8, EIN_I16};
  enum { COUNT = 65536 };
  static uint16_t stored[COUNT], back[2][COUNT];
  static uint32_t wide[2][COUNT];
  const int best = EINI_CPU_X86 ? eini_isa_best() : EINI_ISA_PLAIN;
  for (int k = 0; k < 5; k++) {
    const ein_dtype t = types[k];
    const int half = t == EIN_F16 || t == EIN_BF16;
    const size_t size = ein_dtype_size(t);
    for (int i = 0; i < COUNT; i++) stored[i] = (uint16_t)i;
    eini_storage_find(NULL, EIN_OP_OPERAND, t)(COUNT, stored, stored, stored, wide[0]);
    for (int turn = 0; turn < 8; turn++) {
      for (int i = 0; i < COUNT && turn > 0; i++)
        wide[0][i] = half && turn < 4
                         ? wide[0][i] + (uint32_t)(pick(3) * 2048 - 2049 + pick(3))
                         : (uint32_t)pick((int64_t)1 << 31) ^ (uint32_t)pick(2) << 31;
      eini_storage_find(NULL, EIN_OP_CAST, t)(COUNT, wide[0], wide[0], wide[0], back[0]);
      for (int i = 0; i < COUNT && half; i++) check_rounded(t, wide[0][i], back[0][i]);
      for (int isa = EINI_ISA_AVX2; isa <= best; isa++) {
        eini_cpu_chunk_fn(isa, EIN_OP_CAST, t)(COUNT, wide[0], wide[0], wide[0], back[1]);
        check(memcmp(back[0], back[1], COUNT * size) == 0, "a stored chunk");
        if (turn > 0) continue;
        eini_cpu_chunk_fn(isa, EIN_OP_OPERAND, t)(COUNT, stored, stored, stored, wide[1]);
        check(memcmp(wide[0], wide[1], sizeof wide[0]) == 0, "a loaded chunk");
      }
    }
  }
}

#include "panels.h"

int main(int argc, char **argv) {
  const long cases = argc > 1 ? atol(argv[1]) : 2000;
  const long first = argc > 2 ? atol(argv[2]) : 1;
  long counts[15] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  int isa = -1;
#if !EINI_CPU_X86
  isa = EINI_CPU_NEON ? EINI_ISA_NEON : EINI_ISA_PLAIN;
#endif
  if (argc > 3) isa = atoi(argv[3]);
  seed_state = (uint64_t)first;
  check_conversions();
  check_panels();
  for (long i = first; i < first + cases; i++) {
    if (argc > 2 && cases < 10) printf("seed %ld\n", i), fflush(stdout);
    FILE *f = getenv("GETT_SEED") ? fopen(getenv("GETT_SEED"), "w") : NULL;
    if (f) fprintf(f, "%ld\n", i), fclose(f);
    one_case((uint64_t)i, isa, counts);
  }
  check(cases < 1000 || (counts[6] > 0 && counts[7] > 0), "nothing was moved");
  check(cases < 1000 || counts[8] > 0, "no tile asks for what it adds to");
  printf("test_cpu_gett: %ld cases; %ld streamed: %ld by tiles, %ld through the buffer, %ld in"
         " boxes moved to lines, %ld with parts of vectors, %ld chained; %ld in blocks that are"
         " moved, %ld of them streamed; %ld ask for what they add to\n", cases, counts[0],
         counts[1], counts[2], counts[3], counts[4], counts[5], counts[6], counts[7], counts[8]);
  printf("dot products: %ld of bf16, %ld of i16, %ld of i8; tiles: %ld of bf16, %ld of i8; %ld with"
         " subnormal values\n", counts[9], counts[10], counts[11], counts[12], counts[13],
         counts[14]);
  return 0;
}
