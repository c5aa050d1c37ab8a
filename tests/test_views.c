// Views and index spaces against worked numbers and brute force. Prints "ok <n> checks".
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long checks = 0;
#define CHECK(cond)                                                        \
  do {                                                                     \
    checks++;                                                              \
    if (!(cond)) {                                                         \
      printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #cond);               \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

static ein_ztensor make(int32_t *data, int64_t n, int rank, const int64_t *shape) {
  ein_ztensor t;
  memset(&t, 0, sizeof t);
  t.dtype = EIN_I32;
  t.rank = rank;
  t.shape = shape;
  t.data = data;
  t.buffer = data;
  t.buffer_bytes = (size_t)n * sizeof *data;
  return t;
}

static int32_t at(const ein_ztensor *t, int64_t i, int64_t j, int64_t k) {
  int64_t c[3];
  c[0] = i;
  c[1] = j;
  c[2] = k;
  const int32_t *p = (const int32_t *)ein_view_at(t, c);
  CHECK(p != NULL);
  return *p;
}

// ---- worked numbers -----------------------------------------------------------------------------

static void test_worked_views(void) {
  int32_t t4[4] = {8, 9, 10, 11}, a6[6] = {10, 20, 30, 40, 50, 60}, big[4 * 6 * 8];
  int64_t s4[1] = {4}, s23[2] = {2, 3}, s468[3] = {4, 6, 8}, d1[6], d2[6], d3[6], d4[8];
  int axes[2] = {1, 0};
  ein_ztensor t = make(t4, 4, 1, s4), r, b;
  CHECK(ein_view_reverse(&t, 0, &r, d1) == EIN_OK);
  CHECK(((int32_t *)r.data - t4) == 3 && r.strides[0] == -1 && r.shape[0] == 4);
  CHECK(at(&r, 2, 0, 0) == 9 && at(&r, 0, 0, 0) == 11 && ein_view_check(&r) == EIN_OK);
  CHECK(ein_view_reverse(&r, 0, &r, d2) == EIN_OK);  // in place, fresh dims
  CHECK(r.data == t.data && r.strides[0] == 1);

  ein_ztensor a = make(a6, 6, 2, s23);
  CHECK(eini_stride(&a, 0) == 3 && eini_stride(&a, 1) == 1 && at(&a, 1, 2, 0) == 60);
  CHECK(ein_view_permute(&a, axes, &b, d1) == EIN_OK);
  CHECK(b.shape[0] == 3 && b.shape[1] == 2 && b.strides[0] == 1 && b.strides[1] == 3);
  CHECK(at(&b, 2, 1, 0) == 60 && at(&b, 2, 0, 0) == 30);

  // t[0:3, 5, 0::2]
  for (int i = 0; i < 4 * 6 * 8; i++) big[i] = i;
  t = make(big, 4 * 6 * 8, 3, s468);
  CHECK(ein_view_slice(&t, 0, 0, 3, 1, &b, d1) == EIN_OK);
  CHECK(ein_view_slice(&b, 2, 0, 8, 2, &b, d2) == EIN_OK);
  CHECK(ein_view_select(&b, 1, 5, &b, d3) == EIN_OK);
  CHECK(b.rank == 2 && b.shape[0] == 3 && b.shape[1] == 4);
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 4; k++) CHECK(at(&b, i, k, 0) == (i * 6 + 5) * 8 + 2 * k);
  }
  CHECK(ein_view_unsqueeze(&b, 1, &b, d4) == EIN_OK);
  CHECK(b.rank == 3 && b.shape[1] == 1 && at(&b, 2, 0, 3) == (2 * 6 + 5) * 8 + 6);
  CHECK(ein_view_squeeze(&b, 1, &b, d1) == EIN_OK && b.rank == 2);
}

static void test_worked_maps(void) {
  int64_t c1[6] = {1, 0, 0, 2, 1, 2}, o1[3] = {4, 5, 6}, c2[6] = {1, 0, 0, 1, 1, 1};
  int64_t o2[3] = {10, 20, 30}, block[3] = {4, 4, 1}, x[2] = {1, 1}, y[3], y1[3], x1[2] = {5, 6};
  ein_zmap m = {3, 2, NULL, NULL, NULL};
  ein_zpoint px = {2, NULL}, py = {0, NULL};
  ein_zrange ry = {0, NULL, NULL}, rx = {2, NULL, NULL};
  m.coef = c1;
  m.offset = o1;
  px.coord = x;
  py.coord = y;
  CHECK(ein_zmap_point(&m, &px, &py) == EIN_OK && py.rank == 3);
  CHECK(y[0] == 5 && y[1] == 7 && y[2] == 9);
  m.coef = c2;
  m.offset = o2;
  m.block = block;
  px.coord = x1;
  ry.start = y;
  ry.end = y1;
  CHECK(ein_zmap_block(&m, &px, &ry) == EIN_OK && ry.rank == 3);
  CHECK(y[0] == 15 && y[1] == 26 && y[2] == 41 && y1[0] == 19 && y1[1] == 30 && y1[2] == 42);
  m.block = NULL;
  CHECK(ein_zmap_block(&m, &px, &ry) == EIN_OK && y1[0] == 16 && y1[1] == 27 && y1[2] == 42);
  // i - j over [0,3) x [0,5): from -4 to 2, though the two extreme corners give 0 and -2.
  int64_t c3[2] = {1, -1}, o3[1] = {0}, s[2] = {0, 0}, e[2] = {3, 5};
  m.rows = 1;
  m.coef = c3;
  m.offset = o3;
  rx.start = s;
  rx.end = e;
  CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_OK && ry.rank == 1 && y[0] == -4 && y1[0] == 3);
  int64_t lo, hi;
  CHECK(eini_zmap_row_range(c3, 2, 7, e, &lo, &hi) == EIN_OK && lo == 3 && hi == 9);
  CHECK(eini_zmap_row_range(NULL, 0, 7, NULL, &lo, &hi) == EIN_OK && lo == 7 && hi == 7);
  e[1] = 0;  // no points: no image
  CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_OK && y[0] == y1[0]);
  e[1] = 5;
  block[0] = 0;
  m.block = block;
  CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_OK && y[0] == y1[0]);
  block[0] = -1;
  CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_ERR_SHAPE);
  m.cols = 1;
  CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_ERR_SHAPE);
  CHECK(ein_zmap_range(&m, NULL, &ry) == EIN_ERR_ARGUMENT);
}

// ---- index spaces against brute force -----------------------------------------------------------

// Visits the points of a box in order; false after the last. Needs a non-empty box.
static int next(int rank, const int64_t *start, const int64_t *end, int64_t *x) {
  for (int i = rank - 1; i >= 0; i--) {
    if (++x[i] < end[i]) return 1;
    x[i] = start[i];
  }
  return 0;
}

static void test_random_maps(void) {
  for (int round = 0; round < 2000; round++) {
    int64_t coef[12], offset[4], block[4], s[3], e[3], x[3], y[4], ys[4], ye[4], lo[4], hi[4];
    int rows = (int)draw(0, 4), cols = (int)draw(0, 3);
    ein_zmap m = {0, 0, NULL, NULL, NULL};
    ein_zrange rx = {0, NULL, NULL}, ry = {0, NULL, NULL};
    ein_zpoint px = {0, NULL}, py = {0, NULL};
    m.rows = rows;
    m.cols = cols;
    m.coef = coef;
    m.offset = offset;
    m.block = rng() % 2 ? block : NULL;
    for (int i = 0; i < 12; i++) coef[i] = draw(-4, 4);
    for (int i = 0; i < 4; i++) offset[i] = draw(-20, 20), block[i] = draw(1, 3);
    for (int i = 0; i < 3; i++) s[i] = x[i] = draw(-6, 6), e[i] = s[i] + draw(1, 5);
    rx.rank = px.rank = cols;
    rx.start = s;
    rx.end = e;
    px.coord = x;
    py.coord = y;
    ry.start = ys;
    ry.end = ye;
    for (int r = 0; r < 4; r++) lo[r] = INT64_MAX, hi[r] = INT64_MIN;
    do {
      CHECK(ein_zmap_point(&m, &px, &py) == EIN_OK && py.rank == rows);
      for (int r = 0; r < rows; r++) {
        int64_t v = offset[r];
        for (int c = 0; c < cols; c++) v += coef[r * cols + c] * x[c];
        CHECK(y[r] == v);
        if (v < lo[r]) lo[r] = v;
        if (v > hi[r]) hi[r] = v;
      }
    } while (next(cols, s, e, x));
    CHECK(ein_zmap_range(&m, &rx, &ry) == EIN_OK && ry.rank == rows);
    for (int r = 0; r < rows; r++) {
      CHECK(ys[r] == lo[r] && ye[r] == hi[r] + (m.block != NULL ? block[r] : 1));
    }
  }
}

static void test_ranges(void) {
  int64_t as[3] = {0, -2, 5}, ae[3] = {4, 3, 6}, bs[3] = {2, 0, 0}, be[3] = {9, 1, 9};
  int64_t os[6], oe[6], by[3] = {1, -1, 10}, c[3] = {3, 0, 5}, n;
  ein_zrange a = {3, NULL, NULL}, b = {3, NULL, NULL}, o = {0, NULL, NULL}, none = {0, NULL, NULL};
  ein_zpoint p = {3, NULL};
  a.start = as, a.end = ae, b.start = bs, b.end = be, o.start = os, o.end = oe, p.coord = c;
  CHECK(ein_zrange_size(&a, &n) == EIN_OK && n == 20);
  CHECK(ein_zrange_size(&none, &n) == EIN_OK && n == 1);
  CHECK(ein_zrange_contains(&a, &p) && ein_zrange_contains(&b, &p));
  CHECK(ein_zrange_intersect(&a, &b, &o) == EIN_OK && ein_zrange_size(&o, &n) == EIN_OK && n == 2);
  CHECK(ein_zrange_contains_range(&a, &o) && ein_zrange_contains_range(&b, &o));
  CHECK(!ein_zrange_contains_range(&o, &a) && ein_zrange_contains_range(&a, &a));
  CHECK(ein_zrange_contains(&o, &p) && (c[0] = 4, !ein_zrange_contains(&a, &p)));
  CHECK(!ein_zrange_contains(&none, &p) && !ein_zrange_contains_range(&a, &none));
  CHECK(ein_zrange_intersect(&a, &none, &o) == EIN_ERR_SHAPE);
  CHECK(ein_zrange_product(&a, &b, &o) == EIN_OK && o.rank == 6);
  CHECK(os[2] == 5 && oe[2] == 6 && os[3] == 2 && oe[5] == 9);
  CHECK(ein_zrange_product(&none, &b, &o) == EIN_OK && o.rank == 3 && os[0] == 2);
  CHECK(ein_zrange_product(&a, &o, &o) == EIN_OK && o.rank == 6 && os[1] == -2 && os[3] == 2);
  o.rank = 3;
  CHECK(ein_zrange_product(&o, &b, &o) == EIN_OK && o.rank == 6 && oe[0] == 4 && oe[3] == 9);
  o.rank = 3;
  CHECK(ein_zrange_product(&o, &o, &o) == EIN_OK && o.rank == 6 && oe[0] == 4 && oe[3] == 4);
  CHECK(ein_zrange_translate(&a, by, &a) == EIN_OK && as[0] == 1 && ae[1] == 2 && as[2] == 15);
  CHECK(ein_zrange_intersect(&a, &b, &b) == EIN_OK);  // disjoint on axis 2, out is an input
  CHECK(ein_zrange_size(&b, &n) == EIN_OK && n == 0 && bs[2] == be[2]);
  CHECK(ein_zrange_contains_range(&a, &b));
  ae[0] = -5;  // an inverted axis is empty
  CHECK(ein_zrange_size(&a, &n) == EIN_OK && n == 0);
  CHECK(ein_zrange_split(&a, 0, 2, 1, &o) == EIN_OK && os[0] == oe[0]);
  CHECK(ein_zrange_size(NULL, &n) == EIN_ERR_ARGUMENT);
  CHECK(ein_zrange_translate(&a, NULL, &o) == EIN_ERR_ARGUMENT);
  a.rank = -1;
  CHECK(ein_zrange_size(&a, &n) == EIN_ERR_ARGUMENT);
}

static void test_split(void) {
  int64_t s[2], e[2], os[2], oe[2];
  ein_zrange a = {2, NULL, NULL}, o = {0, NULL, NULL};
  a.start = s, a.end = e, o.start = os, o.end = oe;
  for (int round = 0; round < 500; round++) {
    int64_t size = draw(0, 20), n = draw(1, 25), at_end;
    s[0] = draw(-9, 9), e[0] = s[0] + 3, s[1] = draw(-50, 50), e[1] = s[1] + size;
    at_end = s[1];
    for (int64_t i = 0; i < n; i++) {
      int64_t piece = (size + n - 1) / n;
      CHECK(ein_zrange_split(&a, 1, n, i, &o) == EIN_OK && o.rank == 2);
      CHECK(os[0] == s[0] && oe[0] == e[0]);
      CHECK(os[1] == at_end && oe[1] >= os[1] && oe[1] - os[1] <= piece);
      CHECK(oe[1] - os[1] == piece || oe[1] == e[1]);
      at_end = oe[1];
    }
    CHECK(at_end == e[1]);
    CHECK(ein_zrange_split(&a, 1, n, n, &o) == EIN_ERR_ARGUMENT);
  }
  s[1] = 1, e[1] = 4;
  CHECK(ein_zrange_split(&a, 1, INT64_MAX, INT64_MAX - 1, &o) == EIN_OK);
  CHECK(os[1] == 4 && oe[1] == 4);
  CHECK(ein_zrange_split(&a, 1, 2, 1, &a) == EIN_OK && s[1] == 3 && e[1] == 4);
  s[1] = 0, e[1] = INT64_MAX;
  CHECK(ein_zrange_split(&a, 1, 3, 2, &o) == EIN_OK && oe[1] == INT64_MAX);
  CHECK(ein_zrange_split(&a, 1, 0, 0, &o) == EIN_ERR_ARGUMENT);
  CHECK(ein_zrange_split(&a, 1, 2, -1, &o) == EIN_ERR_ARGUMENT);
  CHECK(ein_zrange_split(&a, 2, 2, 0, &o) == EIN_ERR_ARGUMENT);
  CHECK(ein_zrange_split(&a, -1, 2, 0, &o) == EIN_ERR_ARGUMENT);
}

static void test_space_overflow(void) {
  int64_t s[2] = {INT64_MIN, 0}, e[2] = {INT64_MAX, 1}, os[2], oe[2], by[2] = {-1, 0}, n;
  int64_t coef[2], offset[1] = {0}, x[2] = {0, 0}, y[1];
  ein_zrange a = {2, NULL, NULL}, o = {0, NULL, NULL};
  ein_zmap m = {1, 2, NULL, NULL, NULL};
  ein_zpoint px = {2, NULL}, py = {0, NULL};
  a.start = s, a.end = e, o.start = os, o.end = oe;
  m.coef = coef, m.offset = offset, px.coord = x, py.coord = y;
  CHECK(ein_zrange_size(&a, &n) == EIN_ERR_TOO_LARGE);
  CHECK(ein_zrange_translate(&a, by, &o) == EIN_ERR_TOO_LARGE);
  CHECK(ein_zrange_split(&a, 0, 2, 0, &o) == EIN_ERR_TOO_LARGE);
  s[0] = 0, e[0] = e[1] = (int64_t)1 << 40;
  CHECK(ein_zrange_size(&a, &n) == EIN_ERR_TOO_LARGE);
  e[1] = 0;
  CHECK(ein_zrange_size(&a, &n) == EIN_OK && n == 0);
  // Every combination of signs: 2^32 * 2^32 does not fit, 2^31 * 2^31 does.
  for (int k = 0; k < 4; k++) {
    int64_t sa = k & 1 ? -1 : 1, sb = k & 2 ? -1 : 1;
    coef[0] = sa * ((int64_t)1 << 32), coef[1] = 0, x[0] = sb * ((int64_t)1 << 32);
    CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_TOO_LARGE);
    coef[0] = sa * ((int64_t)1 << 40), x[0] = sb * ((int64_t)1 << 30);
    CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_TOO_LARGE);
    coef[0] = sa * ((int64_t)1 << 30), x[0] = sb * ((int64_t)1 << 40);
    CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_TOO_LARGE);
    coef[0] = sa * 2, x[0] = sb * ((int64_t)1 << 40);
    CHECK(ein_zmap_point(&m, &px, &py) == EIN_OK && y[0] == sa * sb * ((int64_t)1 << 41));
    coef[0] = sa * ((int64_t)1 << 31), x[0] = sb * ((int64_t)1 << 31);
    CHECK(ein_zmap_point(&m, &px, &py) == EIN_OK && y[0] == sa * sb * ((int64_t)1 << 62));
  }
  coef[0] = coef[1] = 1, x[0] = 1, x[1] = INT64_MAX;
  CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_TOO_LARGE);
  x[0] = 0;
  CHECK(ein_zmap_point(&m, &px, &py) == EIN_OK && y[0] == INT64_MAX);
  CHECK(ein_zmap_block(&m, &px, &o) == EIN_ERR_TOO_LARGE);  // the end does not fit
  s[0] = s[1] = 0, e[0] = 2, e[1] = INT64_MAX;
  CHECK(ein_zmap_range(&m, &a, &o) == EIN_ERR_TOO_LARGE);
  px.rank = 1;
  CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_SHAPE);
  m.coef = NULL;
  CHECK(ein_zmap_point(&m, &px, &py) == EIN_ERR_ARGUMENT);
}

// ---- random compositions of views ---------------------------------------------------------------

enum { MAX_RANK = 6, MAX_IDS = 4096, MAX_OPS = 8 };

// The view as an explicit list: ids[k] is the element at the k-th coordinate in row-major order.
typedef struct list {
  int rank;
  int64_t shape[MAX_RANK];
  int64_t n;
  int32_t ids[MAX_IDS];
} list;

typedef struct op {
  int kind, a, b, rank, axes[MAX_RANK];
  int64_t start, step, shape[MAX_RANK];
} op;

enum { OP_PERMUTE, OP_REVERSE, OP_SLICE, OP_SELECT, OP_SQUEEZE, OP_UNSQUEEZE, OP_BROADCAST,
       OP_DIAGONAL, OP_COUNT };

static int64_t product(int rank, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  return n;
}

// Coordinate y of the result of o to coordinate x of its operand of this rank.
static void pull_back(const op *o, const list *from, const int64_t *y, int64_t *x) {
  for (int i = 0; i < from->rank; i++) {
    int drop = o->kind == OP_SELECT || o->kind == OP_SQUEEZE ? o->a : MAX_RANK;
    switch (o->kind) {
      case OP_PERMUTE:
        for (int k = 0; k < from->rank; k++) x[o->axes[k]] = y[k];
        break;
      case OP_REVERSE: x[i] = i == o->a ? from->shape[i] - 1 - y[i] : y[i]; break;
      case OP_SLICE: x[i] = i == o->a ? o->start + y[i] * o->step : y[i]; break;
      case OP_UNSQUEEZE: x[i] = y[i < o->a ? i : i + 1]; break;
      case OP_BROADCAST: x[i] = from->shape[i] == 1 ? 0 : y[i + o->rank - from->rank]; break;
      case OP_DIAGONAL: {
        int k = i == o->b ? o->a : i;
        x[i] = y[k - (k > o->b)];
        break;
      }
      default: x[i] = i == drop ? o->start : y[i - (i > drop)]; break;
    }
  }
}

static void apply(const op *o, const list *from, list *to) {
  int64_t y[MAX_RANK], x[MAX_RANK];
  to->rank = o->rank;
  memcpy(to->shape, o->shape, sizeof to->shape);
  to->n = product(o->rank, o->shape);
  CHECK(to->n <= MAX_IDS);
  for (int64_t k = 0; k < to->n; k++) {
    int64_t rest = k, pos = 0;
    for (int i = o->rank - 1; i >= 0; i--) {
      y[i] = rest % o->shape[i];
      rest /= o->shape[i];
    }
    pull_back(o, from, y, x);
    for (int i = 0; i < from->rank; i++) pos = pos * from->shape[i] + x[i];
    to->ids[k] = from->ids[pos];
  }
}

static void remove_axis(op *o, int axis) {
  o->rank--;
  for (int i = axis; i < o->rank; i++) o->shape[i] = o->shape[i + 1];
}

// Draws an operation that fits; the result's shape goes into o. stop is for slices only.
static int draw_op(const list *l, op *o, int64_t *stop) {
  memset(o, 0, sizeof *o);
  o->kind = (int)draw(0, OP_COUNT - 1);
  o->rank = l->rank;
  memcpy(o->shape, l->shape, sizeof o->shape);
  if (o->kind == OP_UNSQUEEZE) {
    if (l->rank == MAX_RANK) return 0;
    o->a = (int)draw(0, l->rank);
    for (int i = l->rank; i > o->a; i--) o->shape[i] = o->shape[i - 1];
    o->shape[o->a] = 1;
    o->rank++;
    return 1;
  }
  if (o->kind == OP_BROADCAST) {
    int more = l->rank < MAX_RANK - 1 ? (int)draw(0, 1) : 0;
    o->rank = l->rank + more;
    for (int i = 0; i < o->rank; i++) {
      int64_t n = i < more ? 1 : l->shape[i - more];
      o->shape[i] = n == 1 ? draw(i < more ? 1 : 0, 3) : n;
    }
    return product(o->rank, o->shape) <= MAX_IDS;
  }
  if (o->kind == OP_PERMUTE) {
    for (int i = 0; i < l->rank; i++) o->axes[i] = i;
    for (int i = l->rank - 1; i > 0; i--) {
      int j = (int)draw(0, i), t = o->axes[i];
      o->axes[i] = o->axes[j];
      o->axes[j] = t;
    }
    for (int i = 0; i < l->rank; i++) o->shape[i] = l->shape[o->axes[i]];
    return 1;
  }
  if (l->rank == 0) return 0;
  o->a = (int)draw(0, l->rank - 1);
  o->b = (int)draw(0, l->rank - 1);
  int64_t n = l->shape[o->a];
  if (o->kind == OP_REVERSE) return 1;
  if (o->kind == OP_SLICE) {
    int64_t count = 0;
    o->step = draw(1, 3) * (draw(0, 1) ? 1 : -1);
    o->start = n > 0 ? draw(0, n - 1) : 0;
    *stop = draw(o->step > 0 ? 0 : -1, n);
    for (int64_t i = o->start; n > 0; i += o->step, count++) {
      if (o->step > 0 ? i >= *stop : i <= *stop) break;
    }
    o->shape[o->a] = count;
    return 1;
  }
  if (o->kind == OP_DIAGONAL) {
    if (o->a == o->b || n != l->shape[o->b]) return 0;
    remove_axis(o, o->b);
    return 1;
  }
  if (n == 0 || (o->kind == OP_SQUEEZE && n != 1)) return 0;
  o->start = o->kind == OP_SELECT ? draw(0, n - 1) : 0;
  remove_axis(o, o->a);
  return 1;
}

static ein_status call_op(const op *o, const ein_ztensor *t, int64_t stop, ein_ztensor *view,
                          int64_t *dims) {
  switch (o->kind) {
    case OP_PERMUTE: return ein_view_permute(t, o->axes, view, dims);
    case OP_REVERSE: return ein_view_reverse(t, o->a, view, dims);
    case OP_SLICE: return ein_view_slice(t, o->a, o->start, stop, o->step, view, dims);
    case OP_SELECT: return ein_view_select(t, o->a, o->start, view, dims);
    case OP_SQUEEZE: return ein_view_squeeze(t, o->a, view, dims);
    case OP_UNSQUEEZE: return ein_view_unsqueeze(t, o->a, view, dims);
    case OP_BROADCAST: return ein_view_broadcast(t, o->rank, o->shape, view, dims);
    default: return ein_view_diagonal(t, o->a, o->b, view, dims);
  }
}

static void compare(const ein_ztensor *v, const list *l, const int32_t *data) {
  int64_t c[MAX_RANK] = {0}, zero[MAX_RANK] = {0}, lo, hi, low = INT64_MAX, high = INT64_MIN;
  CHECK(v->rank == l->rank && ein_view_count(v) == l->n && ein_view_check(v) == EIN_OK);
  for (int i = 0; i < l->rank; i++) CHECK(v->shape[i] == l->shape[i]);
  for (int64_t k = 0; k < l->n; k++) {
    const int32_t *p = (const int32_t *)ein_view_at(v, c);
    CHECK(p == data + l->ids[k] && *p == l->ids[k]);
    if (p - (const int32_t *)v->data < low) low = p - (const int32_t *)v->data;
    if (p - (const int32_t *)v->data > high) high = p - (const int32_t *)v->data;
    CHECK(next(l->rank, zero, l->shape, c) == (k + 1 < l->n));
  }
  CHECK(eini_view_extent(v, &lo, &hi) == EIN_OK);
  CHECK(l->n > 0 ? lo == low && hi == high : lo == 0 && hi == -1);
  for (int i = 0; i < l->rank; i++) {
    c[i] = l->shape[i];
    CHECK(ein_view_at(v, c) == NULL);
    c[i] = -1;
    CHECK(ein_view_at(v, c) == NULL);
    c[i] = 0;
  }
}

static void test_random_views(void) {
  static int32_t data[625];
  static list lists[2];
  for (int i = 0; i < 625; i++) data[i] = i;
  for (int round = 0; round < 3000; round++) {
    int64_t dims[MAX_OPS][2 * MAX_RANK], shape[4], stop = 0;
    int cur = 0, rank = (int)draw(0, 4), zeros = draw(0, 9) == 0;
    for (int i = 0; i < rank; i++) shape[i] = draw(zeros ? 0 : 1, 5);
    if (draw(0, 1) && rank > 1) shape[1] = shape[0];  // diagonals
    list *l = &lists[0];
    l->rank = rank;
    memcpy(l->shape, shape, sizeof shape);
    l->n = product(rank, shape);
    for (int64_t i = 0; i < l->n; i++) l->ids[i] = (int32_t)i;
    ein_ztensor t = make(data, l->n, rank, shape), v = t, w;
    compare(&v, l, data);
    for (int k = 0; k < MAX_OPS; k++) {
      op o;
      if (!draw_op(&lists[cur], &o, &stop)) continue;
      apply(&o, &lists[cur], &lists[1 - cur]);
      CHECK(call_op(&o, &v, stop, &w, dims[k]) == EIN_OK);
      CHECK(call_op(&o, &v, stop, &v, dims[k]) == EIN_OK);  // in place
      CHECK(memcmp(&v, &w, sizeof v) == 0);
      cur = 1 - cur;
      compare(&v, &lists[cur], data);
    }
  }
}

// ---- errors -------------------------------------------------------------------------------------

static void test_arguments(void) {
  int32_t data[24];
  int64_t shape[3] = {2, 3, 4}, d[8], target[3] = {2, 3, 5};
  int twice[3] = {0, 1, 1}, range[3] = {0, 1, 3};
  ein_ztensor t = make(data, 24, 3, shape), v;
  memset(data, 0, sizeof data);
  CHECK(ein_view_permute(&t, twice, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_permute(&t, range, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_permute(&t, NULL, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_permute(NULL, twice, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_reverse(&t, 3, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_reverse(&t, -1, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_reverse(&t, 0, NULL, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_reverse(&t, 0, &v, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_select(&t, 1, 3, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_select(&t, 1, -1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_select(&t, 3, 0, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_squeeze(&t, 1, &v, d) == EIN_ERR_SHAPE);
  CHECK(ein_view_unsqueeze(&t, 4, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_unsqueeze(&t, 3, &v, d) == EIN_OK && v.rank == 4 && v.shape[3] == 1);
  CHECK(ein_view_diagonal(&t, 0, 1, &v, d) == EIN_ERR_SHAPE);
  CHECK(ein_view_diagonal(&t, 1, 1, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_diagonal(&t, 0, 3, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_broadcast(&t, 3, target, &v, d) == EIN_ERR_SHAPE);
  CHECK(ein_view_broadcast(&t, 2, target, &v, d) == EIN_ERR_SHAPE);
  CHECK(ein_view_broadcast(&t, 3, NULL, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_broadcast(&t, -1, shape, &v, d) == EIN_ERR_ARGUMENT);
  target[2] = -4;
  CHECK(ein_view_broadcast(&t, 3, target, &v, d) == EIN_ERR_SHAPE);
  CHECK(ein_view_at(&t, NULL) == NULL && ein_view_at(NULL, shape) == NULL);
  CHECK(ein_view_check(NULL) == EIN_ERR_ARGUMENT && ein_view_count(NULL) == -1);
  t.rank = 0;  // a scalar
  CHECK(ein_view_check(&t) == EIN_OK && ein_view_count(&t) == 1 && ein_view_at(&t, NULL) == data);
  CHECK(ein_view_permute(&t, NULL, &v, NULL) == EIN_OK && v.rank == 0 && v.data == data);
  CHECK(ein_view_reverse(&t, 0, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_select(&t, 0, 0, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_broadcast(&t, 2, shape, &v, d) == EIN_OK && v.strides[0] == 0);
}

static void test_slices(void) {
  int32_t data[5] = {0, 1, 2, 3, 4};
  int64_t n5[1] = {5}, n0[1] = {0}, d[2];
  ein_ztensor t = make(data, 5, 1, n5), e = make(data, 5, 1, n0), v;
  CHECK(ein_view_slice(&t, 0, 0, 5, 0, &v, d) == EIN_ERR_ARGUMENT);
  CHECK(ein_view_slice(&t, 0, 0, 6, 1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, -1, 5, 1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, 0, -1, 1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, 4, -2, -1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, 5, -1, -1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, INT64_MIN, 5, 1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, 0, INT64_MAX, 1, &v, d) == EIN_ERR_BOUNDS);
  CHECK(ein_view_slice(&t, 0, 5, 5, 1, &v, d) == EIN_OK && d[0] == 0 && v.data == data);
  CHECK(ein_view_slice(&t, 0, 3, 2, 1, &v, d) == EIN_OK && d[0] == 0);
  CHECK(ein_view_slice(&t, 0, 2, 2, -1, &v, d) == EIN_OK && d[0] == 0);
  CHECK(ein_view_slice(&t, 0, 4, -1, -2, &v, d) == EIN_OK && d[0] == 3 && d[1] == -2);
  CHECK(at(&v, 0, 0, 0) == 4 && at(&v, 2, 0, 0) == 0);
  CHECK(ein_view_slice(&t, 0, 4, 0, -2, &v, d) == EIN_OK && d[0] == 2 && at(&v, 1, 0, 0) == 2);
  CHECK(ein_view_slice(&t, 0, 1, 5, INT64_MAX, &v, d) == EIN_OK && d[0] == 1);
  CHECK(at(&v, 0, 0, 0) == 1);
  CHECK(ein_view_slice(&t, 0, 4, -1, INT64_MIN, &v, d) == EIN_OK && d[0] == 1);
  CHECK(ein_view_slice(&e, 0, 0, 0, 1, &v, d) == EIN_OK && d[0] == 0);
  CHECK(ein_view_slice(&e, 0, -1, -1, -1, &v, d) == EIN_OK && d[0] == 0);
  CHECK(ein_view_reverse(&e, 0, &v, d) == EIN_OK && d[0] == 0 && v.data == data);
  t.data = NULL;  // planning: no data yet
  CHECK(ein_view_slice(&t, 0, 1, 5, 2, &v, d) == EIN_OK && d[0] == 2 && v.data == NULL);
}

static void test_bounds(void) {
  double data[12];
  int64_t shape[2] = {3, 4}, strides[2] = {4, 1}, d[4];
  ein_ztensor t, v;
  memset(data, 0, sizeof data);
  memset(&t, 0, sizeof t);
  t.dtype = EIN_F64, t.rank = 2, t.shape = shape, t.strides = strides, t.data = data;
  CHECK(ein_view_check(&t) == EIN_OK);  // unknown buffer
  t.buffer = data, t.buffer_bytes = sizeof data;
  CHECK(ein_view_check(&t) == EIN_OK);
  t.buffer_bytes--;
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS);
  CHECK(ein_view_reverse(&t, 0, &v, d) == EIN_ERR_BOUNDS && ein_view_at(&t, d) == NULL);
  t.buffer_bytes++;
  strides[0] = -4;
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS);
  t.data = data + 8;
  CHECK(ein_view_check(&t) == EIN_OK);
  t.data = data + 7;
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS);
  t.data = data + 9;
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS);
  t.buffer = data + 10, t.buffer_bytes = 16;  // data before its buffer
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS);
  shape[1] = 0;  // touches nothing
  CHECK(ein_view_check(&t) == EIN_OK && ein_view_count(&t) == 0);
  strides[0] = INT64_MIN, strides[1] = INT64_MAX;
  CHECK(ein_view_check(&t) == EIN_OK);
  CHECK(ein_view_slice(&t, 0, 2, -1, -2, &v, d) == EIN_OK && v.data == t.data);
  CHECK(ein_view_select(&t, 0, 2, &v, d) == EIN_OK && v.data == t.data);
  shape[1] = 4, strides[0] = 4, strides[1] = 1, t.buffer = data, t.buffer_bytes = sizeof data;
  t.data = NULL;
  CHECK(ein_view_check(&t) == EIN_ERR_BOUNDS && ein_view_at(&t, d) == NULL);
  t.data = data, t.buffer = NULL;
  CHECK(ein_view_check(&t) == EIN_ERR_ARGUMENT);
  t.buffer = data, t.dtype = EIN_NONE;
  CHECK(ein_view_check(&t) == EIN_ERR_DTYPE);
  t.dtype = EIN_F64, shape[0] = -1;
  CHECK(ein_view_check(&t) == EIN_ERR_SHAPE && ein_view_count(&t) == -1);
  shape[0] = 3, t.shape = NULL;
  CHECK(ein_view_check(&t) == EIN_ERR_ARGUMENT && ein_view_count(&t) == -1);
  t.shape = shape, t.rank = -1;
  CHECK(ein_view_check(&t) == EIN_ERR_ARGUMENT);
}

static void test_view_overflow(void) {
  int64_t big = (int64_t)1 << 32, shape[3], strides[3] = {1, 0, 0}, d[6], one[1] = {1}, two[2];
  double x = 0;
  ein_ztensor t, v;
  memset(&t, 0, sizeof t);
  t.dtype = EIN_F64, t.rank = 2, t.shape = shape, t.data = &x;
  shape[0] = shape[1] = shape[2] = big;
  CHECK(ein_view_count(&t) == -1 && ein_view_check(&t) == EIN_ERR_TOO_LARGE);
  shape[1] = big / 4;  // 2^62 elements fit, their bytes do not
  CHECK(ein_view_count(&t) == big * (big / 4) && ein_view_check(&t) == EIN_ERR_TOO_LARGE);
  t.strides = strides;  // one row, repeated
  CHECK(ein_view_check(&t) == EIN_OK);
  strides[0] = big;
  CHECK(ein_view_check(&t) == EIN_ERR_TOO_LARGE);
  strides[0] = -big;
  CHECK(ein_view_check(&t) == EIN_ERR_TOO_LARGE);
  CHECK(ein_view_reverse(&t, 0, &v, d) == EIN_ERR_TOO_LARGE);
  // Either side fits in bytes, the span of both does not.
  shape[0] = shape[1] = 2, strides[0] = ((int64_t)1 << 59), strides[1] = -((int64_t)1 << 59);
  t.rank = 2;
  CHECK(ein_view_check(&t) == EIN_ERR_TOO_LARGE);
  strides[0] = 1, strides[1] = -1;
  CHECK(ein_view_check(&t) == EIN_OK);
  // Strides that are never stepped may be anything.
  shape[0] = shape[1] = 1, strides[0] = INT64_MAX, strides[1] = INT64_MAX;
  CHECK(ein_view_check(&t) == EIN_OK && ein_view_diagonal(&t, 0, 1, &v, d) == EIN_OK);
  CHECK(ein_view_at(&v, strides + 2) == &x);
  // Zero extents never overflow, wherever they stand.
  t.strides = NULL, t.rank = 3;
  for (int k = 0; k < 3; k++) {
    shape[0] = shape[1] = shape[2] = INT64_MAX;
    shape[k] = 0;
    CHECK(ein_view_count(&t) == 0 && ein_view_check(&t) == EIN_OK);
    CHECK(ein_view_reverse(&t, (k + 1) % 3, &v, d) == EIN_OK && v.data == &x);
    CHECK(ein_view_select(&t, (k + 1) % 3, 5, &v, d) == EIN_OK && v.data == &x);
    CHECK(ein_view_check(&v) == EIN_OK && ein_view_count(&v) == 0);
  }
  t.rank = 1, t.shape = one, two[0] = two[1] = big;
  CHECK(ein_view_broadcast(&t, 2, two, &v, d) == EIN_ERR_TOO_LARGE);
  two[1] = 3;
  CHECK(ein_view_broadcast(&t, 2, two, &v, d) == EIN_OK && ein_view_count(&v) == 3 * big);
}

int main(void) {
  const uint64_t seed = 20240611;
  rng_state = seed;
  printf("seed %lu\n", (unsigned long)seed);
  test_worked_views();
  test_worked_maps();
  test_random_maps();
  test_ranges();
  test_split();
  test_space_overflow();
  test_random_views();
  test_arguments();
  test_slices();
  test_bounds();
  test_view_overflow();
  printf("ok %ld checks\n", checks);
  return 0;
}
