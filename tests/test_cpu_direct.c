// Random contractions through every family of section direct that takes them, against plain loops.
//
//   test_cpu_direct [count] [seed] [case]     defaults: 2000 1; with a case only that one
//
// All compute dtypes and forms, up to four axes a group, strides of both signs and 0, operands at
// the edges of inaccessible pages, every instruction set of the machine. Each case runs whole and
// in random parts, which must give the same bits, and may touch nothing but its output's elements.
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "util.h"

#define AXES 4
#define OPS 3

// ---- memory between inaccessible pages ----------------------------------------------------------

typedef struct region {
  char *map, *data;
  size_t map_bytes, bytes;
} region;

static region region_new(size_t bytes, int at_end) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page + page;
  region r;
  r.map_bytes = body + 2 * page;
  r.map = (char *)mmap(NULL, r.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
  if (r.map == MAP_FAILED) exit(3);
  mprotect(r.map, page, PROT_NONE);
  mprotect(r.map + page + body, page, PROT_NONE);
  r.bytes = bytes;
  r.data = at_end ? r.map + page + body - bytes : r.map + page;
  return r;
}

static void region_free(region *r) { munmap(r->map, r->map_bytes); }

// ---- a random contraction -----------------------------------------------------------------------

typedef struct operand {
  ein_dtype dtype;
  int64_t stride[4][AXES];   // by group
  const int64_t *st[4];
  int64_t low;               // elements from the lowest address to index 0
  int64_t count;
  region mem;
} operand;

typedef struct test_case {
  ein_contract c;
  int64_t extent[4][AXES];
  operand op[2][OPS], out, extra;
  const int64_t *rows[2][OPS], *ks[2][OPS], *batches[2][OPS], *xb, *xm, *xn;
  const char *bases[2][OPS], *xbase;
  ein_dtype types[2][OPS], xtype;
  int elements;                // the group with a long index in two factors; 0: none
  int tile;                  // all fits one tile of a kernel
  int pieces;                // 1 + the group whose first index steps over short pieces; 0: none
  int number, none;          // the value of the side (none) without operands; 0: both have some
} test_case;

static ein_axes *axes_of(ein_contract *c, int g) {
  return g == 0 ? &c->batch : g == 1 ? &c->m : g == 2 ? &c->n : &c->k;
}

static int planes(ein_dtype t) { return t == EIN_C64 || t == EIN_C128 ? 2 : 1; }

static void set_real(ein_dtype t, char *p, int64_t i, int64_t v) {
  switch (t) {
    case EIN_F32: case EIN_C64: ((float *)(void *)p)[i] = (float)v / 8; break;
    case EIN_F64: case EIN_C128: ((double *)(void *)p)[i] = (double)v / 8; break;
    case EIN_I32: ((int32_t *)(void *)p)[i] = (int32_t)v; break;
    default: ((int64_t *)(void *)p)[i] = v;
  }
}

// Real i of an array, scaled by 8 where floating: small numbers, so that sums are exact.
static double get_real(ein_dtype t, const char *p, int64_t i) {
  switch (t) {
    case EIN_F32: case EIN_C64: return (double)((const float *)(const void *)p)[i];
    case EIN_F64: case EIN_C128: return ((const double *)(const void *)p)[i];
    case EIN_I32: return (double)((const int32_t *)(const void *)p)[i];
    default: return (double)((const int64_t *)(const void *)p)[i];
  }
}

// Strides of an operand over the groups it has, in a random order of axes; `zeros` percent are 0.
static void layout(test_case *t, operand *o, const int *has, int zeros) {
  const int rows = t->elements;          // the group of the long index, if there is one
  const int pieces = t->pieces > 0 && has[t->pieces - 1], gaps = pieces && chance(80) ? 0 : 15;
  // The batch may lie along memory, too; of the output any may.
  const int inside = pieces && (t->pieces == 1 || o == &t->out) && chance(40);
  int g[16], a[16], n = 0;
  int64_t step = 1, high = 0;
  memset(o->stride, 0, sizeof o->stride);
  for (int i = 0; i < 4; i++) {
    o->st[i] = o->stride[i];
    for (int d = 0; has[i] && d < axes_of(&t->c, i)->n; d++) g[n] = i, a[n++] = d;
  }
  for (int i = 0; i < n && pieces; i++)  // its first index goes first
    if (g[i] == t->pieces - 1 && a[i] == 0)
      g[i] = g[0], a[i] = a[0], g[0] = t->pieces - 1, a[0] = 0;
  if (chance(60)) {
    for (int i = n - 1; i > pieces; i--) {
      int k = (int)draw(pieces, i), x = g[i], y = a[i];
      g[i] = g[k], a[i] = a[k], g[k] = x, a[k] = y;
    }
  }
  if (inside) {
    memmove(g, g + 1, (size_t)(n - 1) * sizeof *g);
    memmove(a, a + 1, (size_t)(n - 1) * sizeof *a);
    g[n - 1] = t->pieces - 1, a[n - 1] = 0;
  }
  o->low = 0;
  if (chance(gaps)) step = draw(1, 3);
  for (int i = n - 1; i >= 0; i--) {
    int64_t e = t->extent[g[i]][a[i]], s = chance(gaps) ? -step : step;
    if (chance(gaps ? zeros : 0) && !(rows > 0 && g[i] == rows && a[i] == 0)) continue;
    o->stride[g[i]][a[i]] = s;
    if (e > 0) {
      if (s < 0) o->low += -s * (e - 1);
      high += step * (e - 1);
    }
    step *= e > 0 ? e : 1;
    if (chance(pieces && i == 1 ? 40 : gaps)) step += draw(1, 3);
  }
  o->count = high + 1;
}

static void operand_new(operand *o, int64_t most) {
  const int p = planes(o->dtype), size = (int)eini_dtype_bytes(o->dtype);
  o->mem = region_new((size_t)(o->count * size), chance(70));
  for (int64_t i = 0; i < o->count * p; i++) set_real(o->dtype, o->mem.data, i, draw(-most, most));
}

// Infinities, NaNs and zeros of either sign here and there, which extrema take as they are.
static void operand_odd(operand *o) {
  static const double odd[] = {HUGE_VAL, -HUGE_VAL, -0.0, NAN};
  const int kinds = chance(50) ? 4 : 3;
  const int64_t shift = draw(-30, 30);  // of integers
  for (int64_t i = 0; i < o->count; i++) {
    if (o->dtype == EIN_I32) ((int32_t *)(void *)o->mem.data)[i] += (int32_t)shift;
    if (o->dtype == EIN_I64) ((int64_t *)(void *)o->mem.data)[i] += shift;
    if (o->dtype != EIN_F32 && o->dtype != EIN_F64) continue;
    if (!chance(kinds == 4 ? 1 : 5)) continue;
    const double v = odd[draw(0, kinds - 1)];
    if (o->dtype == EIN_F32) ((float *)(void *)o->mem.data)[i] = (float)v;
    else ((double *)(void *)o->mem.data)[i] = v;
  }
}

static void value_at(const test_case *t, int s, const char *const *base, const int64_t *off,
                     double *v) {
  const ein_side *x = s ? &t->c.q : &t->c.p;
  const int p = planes(t->c.type);
  v[0] = x->nop == 0 ? t->number : 1, v[1] = 0;
  for (int o = 0; o < x->nop; o++) {
    double a[2] = {0, 0};
    for (int i = 0; i < planes(x->dtype[o]); i++) {
      a[i] = get_real(x->dtype[o], base[o] + off[o] * (int)eini_dtype_bytes(x->dtype[o]), i);
    }
    if (x->form == EIN_FORM_FUNCTION) a[0] += 1;
    double re = v[0] * a[0] - v[1] * a[1], im = v[0] * a[1] + v[1] * a[0];
    v[0] = re, v[1] = im;
  }
  if (p == 2 && x->form == EIN_FORM_PLAIN && x->conj) v[1] = -v[1];
}

static void put_value(ein_dtype t, char *p, int64_t i, const double *v) {
  for (int k = 0; k < planes(t); k++) {
    const int64_t at = i * planes(t) + k;
    switch (t) {
      case EIN_F32: case EIN_C64: ((float *)(void *)p)[at] = (float)v[k]; break;
      case EIN_F64: case EIN_C128: ((double *)(void *)p)[at] = v[k]; break;
      case EIN_I32: ((int32_t *)(void *)p)[i] = (int32_t)(int64_t)v[k]; break;
      default: ((int64_t *)(void *)p)[i] = (int64_t)v[k];
    }
  }
}

typedef struct fill_user {
  const test_case *t;
  int s;
} fill_user;

static void fill(void *user, int64_t n, const char *const *base, const int64_t *const *off,
                 const int64_t *gap, void *out) {
  const fill_user *u = (const fill_user *)user;
  const ein_side *x = u->s ? &u->t->c.q : &u->t->c.p;
  for (int64_t i = 0; i < n; i++) {
    int64_t at[OPS];
    double v[2];
    for (int o = 0; o < x->nop; o++) at[o] = gap == NULL ? off[o][i] : off[o][0] + i * gap[o];
    value_at(u->t, u->s, base, at, v);
    put_value(u->t->c.type, (char *)out, i, v);
  }
}

static void emit(void *user, int64_t n, const void *folds, char *out, const int64_t *off,
                 const char *const *base, const int64_t *const *xoff, const int64_t *step) {
  const test_case *t = (const test_case *)user;
  for (int64_t i = 0; i < n; i++) {
    double v[2] = {0, 0};
    for (int k = 0; k < planes(t->c.type); k++) {
      v[k] = 2 * get_real(t->c.type, (const char *)folds, i * planes(t->c.type) + k);
      if (t->c.nextra) {
        v[k] += get_real(t->xtype, base[0], placed(xoff[0], step, 1, i) * planes(t->xtype) + k);
      }
    }
    put_value(t->c.out_dtype, out, placed(off, step, 0, i), v);
  }
}

static void shape(test_case *t) {
  static const int64_t some[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 33, 35, 64, 100};
  static const int64_t most[3] = {40, 700, 6000};
  const int kind = t->elements || t->pieces ? 0 : (int)eini_min64(draw(0, 9), 7);
  if (kind == 7 && !t->tile) t->number = (int)draw(1, 3), t->none = (int)draw(0, 1);  // sums
  for (int g = 0; g < 4 && t->elements; g++) {
    ein_axes *x = axes_of(&t->c, g);
    x->extent = t->extent[g];
    x->n = (int)draw(g == t->elements || g == 3, g == 0 ? 1 : AXES);
    for (int d = 0; d < x->n; d++) t->extent[g][d] = chance(20) ? draw(1, 20) : draw(2, 5);
    if (g == t->elements) t->extent[g][0] = chance(50) ? draw(1, 40) : draw(100, 700);
  }
  const int paged = t->pieces == 1 && chance(50);
  if (paged) t->c.type = chance(50) ? EIN_F64 : EIN_F32;
  for (int g = 0; g < 4 && t->pieces; g++) {
    ein_axes *x = axes_of(&t->c, g);
    x->extent = t->extent[g];
    x->n = (int)draw(g == t->pieces - 1, g == 0 ? 1 + (t->pieces == 1) : g == 3 ? 2 : 3);
    if (t->pieces == 1 && x->n > 1 && g > 0 && g < 3) x->n = 1;
    for (int d = 0; d < x->n; d++) t->extent[g][d] = chance(20) ? draw(1, 12) : draw(2, 4);
    if (g == t->pieces - 1) t->extent[g][0] = draw(30, 400);
  }
  static const int64_t least[4] = {1030, 4, 1, 8}, more[4] = {1200, 5, 2, 9};
  for (int g = 0; g < 4 && paged; g++) {  // rows of a long batch in pages of their own
    axes_of(&t->c, g)->n = 1;
    t->extent[g][0] = draw(least[g], more[g]);
  }
  for (int g = 0; g < 4 && t->tile; g++) {
    ein_axes *x = axes_of(&t->c, g);
    x->n = g == 0 ? 0 : !chance(5);
    x->extent = t->extent[g];
    t->extent[g][0] = g == 3 ? draw(0, 9) : draw(1, chance(50) ? 9 : 50);
  }
  for (int g = 0; g < 4 && !t->elements && !t->tile && !t->pieces; g++) {
    ein_axes *x = axes_of(&t->c, g);
    x->n = chance(30) ? 0 : (int)draw(1, chance(20) ? AXES : 2);
    if (g == 0 && kind < 4) x->n = chance(60) ? 0 : 1;
    if ((kind == 0 && g == 2) || (kind == 1 && g == 1)) x->n = 0;      // matvec
    if (kind == 2 && (g == 1 || g == 2)) x->n = 0;                     // dot
    if (kind == 3 && g == 3) x->n = 0;                                 // outer
    if (kind == 7) x->n = g == 1 + t->none ? 0 : (int)draw(g != 0, g == 0 ? 1 : 3);
    x->extent = t->extent[g];
    int64_t size = 1, cap = most[draw(0, 2)];
    if (kind > 3 && kind < 7) cap = chance(20) ? 600 : 40;
    if (kind == 7 && g == 0) cap = 3;
    for (int d = 0; d < x->n; d++) {
      int64_t e = chance(2) ? 0 : some[draw(0, 16)];
      if (chance(3)) e = draw(100, 6000);
      if (e > 0 && size * e > cap) e = draw(1, cap / size);
      t->extent[g][d] = e;
      if (e > 0) size *= e;
    }
  }
}

// Work that plain loops do at once.
static void shrink(test_case *t) {
  for (;;) {
    int64_t work = 1, *most = NULL;
    for (int g = 0; g < 4; g++) {
      for (int d = 0; d < axes_of(&t->c, g)->n; d++) {
        int64_t *e = &t->extent[g][d];
        if (*e > 0) work *= *e;
        if (most == NULL || *e > *most) most = e;
      }
    }
    if (work < 100000) return;
    *most = (*most + 1) / 2;
  }
}

static void side_new(test_case *t, int s, fill_user *u) {
  static const int has[2][4] = {{1, 1, 0, 1}, {1, 0, 1, 1}};
  ein_side *x = s ? &t->c.q : &t->c.p;
  x->form = t->tile || t->pieces || chance(60) ? EIN_FORM_PLAIN : (ein_form)draw(0, 3);
  if (t->c.type == EIN_BOOL) x->form = EIN_FORM_PLAIN;
  if (t->elements) x->form = t->elements == s + 1 ? EIN_FORM_PRODUCT : EIN_FORM_PLAIN;
  if (t->number > 0) x->form = s == t->none || chance(10) ? EIN_FORM_FUNCTION : EIN_FORM_PLAIN;
  x->nop = 1;
  if (x->form == EIN_FORM_PRODUCT) x->nop = t->elements ? 2 : (int)draw(2, 3);
  if (x->form == EIN_FORM_FUNCTION) x->nop = (int)draw(1, 2);
  if (s == t->none && t->number > 0) x->nop = 0;
  x->conj = planes(t->c.type) == 2 && chance(50);
  for (int o = 0; o < x->nop; o++) {
    operand *p = &t->op[s][o];
    int part[4];
    for (int g = 0; g < 4; g++) part[g] = has[s][g] && (o == 0 || t->elements || chance(60));
    p->dtype = t->c.type;
    if (x->form == EIN_FORM_CONVERT && t->c.type == EIN_F64) p->dtype = EIN_F32;
    if (x->form == EIN_FORM_CONVERT && t->c.type == EIN_I64) p->dtype = EIN_I32;
    if (x->form == EIN_FORM_CONVERT && t->c.type == EIN_C128) p->dtype = EIN_C64;
    layout(t, p, part, t->elements && x->form == EIN_FORM_PRODUCT ? 40 : 6);
    operand_new(p, x->nop > 1 ? 3 : 9);
    t->types[s][o] = p->dtype;
    t->rows[s][o] = p->stride[s ? 2 : 1];
    t->ks[s][o] = p->stride[3];
    t->batches[s][o] = p->stride[0];
    t->bases[s][o] = p->mem.data + p->low * (int)eini_dtype_bytes(p->dtype);
  }
  x->dtype = t->types[s];
  x->row = t->rows[s];
  x->k = t->ks[s];
  x->batch = t->batches[s];
  x->base = t->bases[s];
  x->fill_fn = fill;
  x->user = u;
}

static void case_new(test_case *t, fill_user *u) {
  static const ein_dtype types[] = {EIN_F64, EIN_F32, EIN_C64, EIN_C128, EIN_I32, EIN_I64};
  static const int has[4] = {1, 1, 1, 0};
  memset(t, 0, sizeof *t);
  t->c.pair = EIN_PAIR_SUM_MUL;
  t->c.type = types[draw(0, 5)];
  // Products of two factors with a long index, times an operand without it.
  if (planes(t->c.type) == 1 && chance(30)) t->elements = (int)draw(1, 2);
  else if (chance(25)) t->pieces = (int)draw(1, 3);
  else t->tile = chance(20);
  shape(t);
  shrink(t);
  for (int s = 0; s < 2; s++) {
    u[s].t = t;
    u[s].s = s;
    side_new(t, s, &u[s]);
  }
  t->out.dtype = t->c.out_dtype = t->c.type;
  if (t->number > 0 && planes(t->c.type) == 1 && chance(50)) {
    t->c.pair = chance(50) ? EIN_PAIR_MAX_ADD : EIN_PAIR_MIN_ADD;
    if (chance(60)) operand_odd(&t->op[!t->none][0]);
  }
  layout(t, &t->out, has, 0);
  operand_new(&t->out, 9);
  t->c.out_batch = t->out.stride[0], t->c.out_m = t->out.stride[1], t->c.out_n = t->out.stride[2];
  t->c.out = t->out.mem.data + t->out.low * (int)eini_dtype_bytes(t->c.type);
  t->c.plain_out = t->elements || t->tile || t->pieces || chance(75);
  t->c.emit_fn = emit;
  t->c.emit_user = t;
  t->c.nextra = !t->c.plain_out && chance(60);
  if (!t->c.nextra) return;
  t->extra.dtype = t->xtype = t->c.type;
  layout(t, &t->extra, has, 6);
  operand_new(&t->extra, 9);
  t->c.extra_dtype = &t->xtype;
  t->xb = t->extra.stride[0], t->xm = t->extra.stride[1], t->xn = t->extra.stride[2];
  t->c.extra_batch = &t->xb, t->c.extra_m = &t->xm, t->c.extra_n = &t->xn;
  t->xbase = t->extra.mem.data + t->extra.low * (int)eini_dtype_bytes(t->xtype);
  t->c.extra_base = &t->xbase;
}

static void case_free(test_case *t) {
  for (int o = 0; o < t->c.p.nop; o++) region_free(&t->op[0][o].mem);
  for (int o = 0; o < t->c.q.nop; o++) region_free(&t->op[1][o].mem);
  region_free(&t->out.mem);
  if (t->c.nextra) region_free(&t->extra.mem);
}

// ---- plain loops --------------------------------------------------------------------------------

static int64_t offset(const ein_axes *x, const int64_t *stride, int64_t at) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) off += at % x->extent[d] * stride[d], at /= x->extent[d];
  return off;
}

static void expect(const test_case *t, char *image) {
  const ein_contract *c = &t->c;
  const int64_t bn = eini_axes_size(&c->batch), mn = eini_axes_size(&c->m);
  const int64_t nn = eini_axes_size(&c->n), kn = eini_axes_size(&c->k);
  for (int64_t i = 0; i < bn * mn * nn; i++) {
    const int64_t b = i / nn / mn, m = i / nn % mn, n = i % nn;
    double sum[2] = {0, 0}, sign = c->pair == EIN_PAIR_MIN_ADD ? -1 : 1;
    for (int64_t k = 0; k < kn; k++) {
      double v[2][2], x0;
      for (int s = 0; s < 2; s++) {
        const ein_side *x = s ? &c->q : &c->p;
        int64_t off[OPS];
        for (int o = 0; o < x->nop; o++) {
          off[o] = offset(&c->batch, x->batch[o], b) + offset(&c->k, x->k[o], k);
          off[o] += s ? offset(&c->n, x->row[o], n) : offset(&c->m, x->row[o], m);
        }
        value_at(t, s, x->base, off, v[s]);
      }
      x0 = v[0][0] + v[1][0];
      if (c->pair != EIN_PAIR_SUM_MUL) {
        if (k == 0 || x0 != x0 || sign * x0 > sign * sum[0]) sum[0] = x0;
        continue;
      }
      sum[0] += v[0][0] * v[1][0] - v[0][1] * v[1][1];
      sum[1] += v[0][0] * v[1][1] + v[0][1] * v[1][0];
    }
    int64_t at = offset(&c->batch, c->out_batch, b) + offset(&c->m, c->out_m, m);
    at += offset(&c->n, c->out_n, n);
    if (!c->plain_out) {
      for (int k = 0; k < 2; k++) {
        sum[k] *= 2;
        if (c->nextra && k < planes(c->type)) {
          int64_t x = offset(&c->batch, t->xb, b) + offset(&c->m, t->xm, m);
          x += offset(&c->n, t->xn, n);
          sum[k] += get_real(t->xtype, t->xbase, x * planes(t->xtype) + k);
        }
      }
    }
    put_value(c->type, image + t->out.low * (int)eini_dtype_bytes(c->type), at, sum);
  }
}

static int differ(const test_case *t, const char *image) {
  const ein_dtype type = t->c.type;
  const int64_t n = t->out.count * planes(type);
  for (int64_t i = 0; i < n; i++) {
    double a = get_real(type, t->out.mem.data, i), b = get_real(type, image, i), d = a - b;
    double tol = type == EIN_F32 || type == EIN_C64 ? 1e-4 : 0;
    if (type == EIN_F64 || type == EIN_C128) tol = 1e-11;
    tol *= (b < 0 ? -b : b) + 30;
    if (a == b || (a != a && b != b)) continue;
    if (!(d <= tol && -d <= tol)) {
      printf("real %lld: %.17g, not %.17g\n", (long long)i, a, b);
      return 1;
    }
  }
  return 0;
}

// ---- running ------------------------------------------------------------------------------------

static const eini_cpu_family *const families[] = {&eini_dir_matvec, &eini_dir_dot, &eini_dir_small,
                                                  &eini_dir_tiny, &eini_dir_inner_family,
                                                  &eini_dir_elements, &eini_dir_rows_family,
                                                  &eini_dir_sums_family, &eini_lanes_family,
                                                  &eini_lanes_batch};
#define FAMILIES ((int)(sizeof families / sizeof families[0]))
static long counts[FAMILIES], spreads, several[2];
static long stored, copied;      // lanes stored where they belong; operands copied to them
static long past[3], joined[2];  // of both kinds of lanes, and of small products

static void cut_one(int64_t size, int64_t grid, int64_t unit, int64_t *at, int *n) {
  *n = 0;
  at[(*n)++] = 0;
  for (int64_t g = 1; g < grid && *n < 4; g++) {
    int64_t p = draw(1, grid - 1) * unit;
    if (p > at[*n - 1] && p < size) at[(*n)++] = p;
  }
  at[*n] = size;
}

static ein_status run_parts(const eini_cpu *cpu, const eini_cpu_family *f, const ein_contract *c,
                            const ein_choice *choice, char *scratch, int whole) {
  int64_t at[3][8], size[3];
  int n[3] = {1, 1, 1};
  size[0] = eini_axes_size(&c->batch);
  size[1] = eini_axes_size(&c->m);
  size[2] = eini_axes_size(&c->n);
  for (int g = 0; g < 3; g++) {
    at[g][0] = 0, at[g][1] = size[g];
    if (!whole) cut_one(size[g], choice->grid[g], choice->unit[g], at[g], &n[g]);
  }
  for (int b = 0; b < n[0]; b++) {
    for (int i = 0; i < n[1]; i++) {
      for (int l = 0; l < n[2]; l++) {
        ein_part part = {{at[0][b], at[0][b + 1]},
                         {at[1][i], at[1][i + 1]},
                         {at[2][l], at[2][l + 1]}};
        const ein_status st = f->run(cpu, c, choice, &part, scratch);
        if (st != EIN_OK) return st;
      }
    }
  }
  return EIN_OK;
}

static void count_lanes(const eini_cpu_family *f, const ein_contract *c, const eini_rated *cpu,
                        const ein_choice *choice) {
  eini_lanes_job j;
  eini_lanes_three k;
  if (f == &eini_lanes_family && eini_lanes_take(&j, c, cpu->is.isa)) {
    j.lanes = choice->state[EINI_LANES_BLOCK];
    (void)eini_lanes_carve(&j, NULL);
    stored += j.move[1].step == 1, joined[0] += j.by.apart;
    past[0] += choice->state[EINI_LANES_PAST] != 0;
  }
  if (f == &eini_lanes_batch && eini_lanes_three_take(&k, c, cpu->is.isa)) {
    k.lanes = choice->state[EINI_LANES_BLOCK];
    (void)eini_lanes_three_carve(&k, NULL);
    joined[1] += k.by.apart, past[1] += choice->state[EINI_LANES_PAST] != 0;
    copied += choice->state[EINI_LANES_COPIED] != 0;
  }
}

// 0: a small product goes past the caches although less than two lines of a row lie together.
static int long_enough(const eini_cpu_family *f, const ein_contract *c, const ein_choice *choice) {
  const ein_axes *x[3] = {&c->m, &c->n, &c->batch};
  const int64_t *stride[3] = {c->out_m, c->out_n, c->out_batch};
  int64_t run = 1;
  if (f != &eini_dir_small || choice->state[EINI_NEST_NT] == 0) return 1;
  past[2]++;
  for (int more = 1; more && run > 0;) {
    more = 0;
    for (int g = 0; g < 3; g++)
      for (int i = 0; i < x[g]->n && !more; i++)
        if (x[g]->extent[i] > 1 && stride[g][i] == run) run *= x[g]->extent[i], more = 1;
  }
  return run * (int64_t)ein_dtype_size(c->out_dtype) >= 128;
}

static int run_case(test_case *t, const eini_rated *cpu, int64_t number, const char *old,
                    const char *image) {
  const size_t bytes = (size_t)(t->out.count * (int)eini_dtype_bytes(t->c.type));
  char *keep = (char *)malloc(bytes);
  int bad = 0;
  for (int i = 0; i < FAMILIES && !bad; i++) {
    ein_choice choice;
    ein_contract blank = t->c;
    memset(&choice, 0, sizeof choice);
    if (!families[i]->plan(cpu, &blank, 2, &choice)) continue;
    counts[i]++;
    spreads += strcmp(choice.variant, "sums spread") == 0;
    several[0] += strcmp(choice.variant, "matvec several columns") == 0;
    several[1] += strcmp(choice.variant, "matvec several rows") == 0;
    count_lanes(families[i], &t->c, cpu, &choice);
    bad = !long_enough(families[i], &t->c, &choice);
    region scratch = region_new((choice.scratch + 63) / 64 * 64, 1);
    for (int whole = 1; whole >= 0 && !bad; whole--) {
      memcpy(t->out.mem.data, old, bytes);
      memset(scratch.data, 0xff, scratch.bytes);
      bad = run_parts(&cpu->is, families[i], &t->c, &choice, scratch.data, whole) != EIN_OK;
      bad = bad || differ(t, image);
      if (whole) memcpy(keep, t->out.mem.data, bytes);
      if (!whole && memcmp(keep, t->out.mem.data, bytes) != 0) {
        printf("parts give other bits\n");
        bad = 1;
      }
    }
    region_free(&scratch);
    if (bad) {
      printf("case %lld: family %s (%s), isa %d\n", (long long)number, families[i]->name,
             choice.variant, cpu->is.isa);
    }
  }
  free(keep);
  return bad;
}

static int best_isa(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return EINI_ISA_AVX512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return EINI_ISA_AVX2;
#elif defined(__aarch64__)
  return EINI_ISA_NEON;
#endif
  return EINI_ISA_PLAIN;
}

// Seconds of 7 by 192 elements, as one axis or as two.
static double predicted(const eini_rated *cpu, int axes, int emits) {
  static const int64_t extent[] = {7, 64, 3, 192}, row[] = {21, 1}, out[] = {3, 1}, each[] = {4, 1};
  static const int64_t one = 1, k[] = {3, 192}, *none = NULL;
  static const ein_dtype type = EIN_F64;
  const int64_t *prow = NULL, *qrow = axes == 2 ? row : &one, *qk = &k[axes == 1];
  const int64_t *pk = &one;
  const char *base = NULL;
  eini_dir_job j;
  ein_contract c;
  memset(&c, 0, sizeof c);
  c.pair = EIN_PAIR_SUM_MUL, c.type = c.out_dtype = EIN_F64;
  c.k.n = 1, c.k.extent = extent;
  c.n.n = axes, c.n.extent = axes == 2 ? extent + 1 : extent + 3;
  c.p.form = c.q.form = EIN_FORM_PLAIN, c.p.nop = c.q.nop = 1;
  c.p.dtype = c.q.dtype = &type, c.p.base = c.q.base = &base, c.p.batch = c.q.batch = &none;
  c.p.row = &prow, c.p.k = &pk, c.q.row = &qrow, c.q.k = &qk;
  c.out_n = axes == 1 ? &one : emits ? each : out;
  c.plain_out = !emits;
  eini_dir_init(&j, &cpu->is, &c);
  return eini_dir_nest_cost(cpu, &j, EINI_DIR_OPS);
}

// Seconds of `ij,ik->jk` for 32 j and k.
static double tiny_predicted(const eini_rated *cpu, int64_t sum) {
  static const int64_t n = 32, one = 1, step = 32;
  static const int64_t *row = &one, *apart = &step, *none = NULL;
  static const ein_dtype type = EIN_F64;
  const char *base = NULL;
  ein_choice choice;
  ein_contract c;
  memset(&c, 0, sizeof c), memset(&choice, 0, sizeof choice);
  c.pair = EIN_PAIR_SUM_MUL, c.type = c.out_dtype = EIN_F64;
  c.m.n = c.n.n = c.k.n = 1, c.m.extent = c.n.extent = &n, c.k.extent = &sum;
  c.p.form = c.q.form = EIN_FORM_PLAIN, c.p.nop = c.q.nop = 1;
  c.p.dtype = c.q.dtype = &type, c.p.base = c.q.base = &base, c.p.batch = c.q.batch = &none;
  c.p.row = c.q.row = &row, c.p.k = c.q.k = &apart, c.out_m = &step, c.out_n = &one;
  c.plain_out = 1;
  return eini_dir_tiny.plan(cpu, &c, 1, &choice) ? choice.seconds : -1;
}

// What is predicted counts the packing of short runs, a call for each run of results that something
// follows, and that tiles read again what no cache keeps.
static int test_predicted(const eini_rated *cpu) {
  const double run = predicted(cpu, 1, 0), runs = predicted(cpu, 2, 0);
  const double calls = predicted(cpu, 2, 1);
  const double kept = tiny_predicted(cpu, 2000), again = tiny_predicted(cpu, 200000);
  if (run < 1e-6 && runs > run + 1e-6 && calls > runs + 3e-6 && kept > 0 && again > 200 * kept)
    return 0;
  printf("predicted: %g s for a run, %g s for short ones, %g s with calls; %g s for sums in a "
         "cache, %g s for a hundred times longer ones\n", run, runs, calls, kept, again);
  return 1;
}

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? atoll(argv[1]) : 2000, only = argc > 3 ? atoll(argv[3]) : -1;
  const uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  eini_rated cpu;
  memset(&cpu, 0, sizeof cpu);
  cpu.is.isa = best_isa();
  if (eini_dir_kern_of(cpu.is.isa, EIN_F64) == NULL) {
    printf("test_cpu_direct: SKIPPED, no such kernels here\n");
    return 77;
  }
  cpu.is.l1 = 48 << 10, cpu.is.l2 = 1 << 20, cpu.is.l3 = cpu.is.l3_whole = 8 << 20;
  cpu.is.l3s = cpu.is.width = 1;
  cpu.hz = 4e9, cpu.peak_f64 = 100e9, cpu.peak_f32 = 200e9;
  cpu.read_bw = 20e9, cpu.copy_bw = 25e9, cpu.l2_bw = 100e9, cpu.l3_bw = 40e9;
  cpu.l2_store = 50e9, cpu.l3_store = 40e9;
  cpu.call = 1e-8, cpu.past = 4e6, cpu.pages = 1;
  if (test_predicted(&cpu)) return 1;
  for (int64_t i = 0; i < count; i++) {
    test_case t;
    fill_user u[2];
    if (only >= 0 && i != only) continue;
    rng_state = seed * 0x9e3779b97f4a7c15u + (uint64_t)i * 0xd1342543de82ef95u;
    case_new(&t, u);
    const size_t bytes = t.out.mem.bytes;
    char *old = (char *)malloc(bytes), *image = (char *)malloc(bytes);
    memcpy(old, t.out.mem.data, bytes);
    memcpy(image, old, bytes);
    expect(&t, image);
    for (int isa = EINI_ISA_PLAIN; isa <= best_isa(); isa++) {
      if (isa == EINI_ISA_NEON && best_isa() != EINI_ISA_NEON) continue;
      if (eini_dir_kern_of(isa, EIN_F64) == NULL) continue;
      cpu.is.isa = isa;
      cpu.is.l3 = i % 2 ? 8 << 20 : 1 << 10;  // small: reading ahead
      cpu.past = i % 2 ? 4e6 : 512;           // small: stores past the caches
      cpu.is.l2 = i % 4 ? 1 << 20 : 1 << 10;  // small: blocks of long rows, small blocks of sums
      cpu.is.l1 = i % 4 ? 48 << 10 : 1 << 9;
      if (run_case(&t, &cpu, i, old, image)) return 1;
    }
    free(old);
    free(image);
    case_free(&t);
  }
  for (int i = 0; i < FAMILIES; i++) printf("%s %ld ", families[i]->name, counts[i]);
  const int none = spreads == 0 || several[0] == 0 || several[1] == 0 ||
                   counts[FAMILIES - 2] == 0 || counts[FAMILIES - 1] == 0 || stored == 0 ||
                   stored == counts[FAMILIES - 2] || joined[0] + joined[1] == 0 || copied == 0 ||
                   (EINI_STREAM_LINE > 0 && (past[0] + past[1] == 0 || past[2] == 0));
  if (count >= 1000 && only < 0 && none) {
    printf("\nno sums over short runs, no few rows, no pieces turned to lanes, or none past the "
           "caches\n");
    return 1;
  }
  printf("sums spread %ld, few rows %ld and %ld, lanes stored at once %ld, past the caches %ld "
         "and %ld, small %ld, joined %ld and %ld, copied %ld\nok %lld cases\n",
         spreads, several[0], several[1], stored, past[0], past[1], past[2], joined[0], joined[1],
         copied, (long long)count);
  return 0;
}
