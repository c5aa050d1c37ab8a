// Patterns: random ones against loops over their parts, which say where each element goes and
// whether the result is a view; einops' examples by hand; every mistake; failing allocations.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

static int has(const char *text, const char *part) { return strstr(text, part) != NULL; }

// ---- random patterns ----------------------------------------------------------------------------

enum { PARTS = 6, AXES = 16, ROOM = 4096 };

typedef struct side {  // axes, each of some parts, by their numbers
  int naxis, n[AXES], part[AXES][PARTS];
} side;

typedef struct pattern {
  int npart, ndot;          // parts; those from 0 on that "..." stands for
  int64_t extent[PARTS];
  side left, right;
  char text[512];
  int nsize;
  ein_size size[PARTS];
} pattern;

static const char *const names[PARTS] = {"b", "h", "w1", "longer_name", "b2", "\xc3\xa9"};

static void add_axis(side *v) { v->n[v->naxis++] = 0; }  // of the parts that follow

// Parts in the order given, at random made into axes; "..." on the left is an axis for each.
static void draw_side(const pattern *p, const int *order, int left, side *v, char *text) {
  int in = 0;
  v->naxis = 0;
  for (int i = 0; i <= p->npart; i++) {
    if (in && (i == p->npart || chance(40) || (left && p->ndot > 0 && order[i] < p->ndot)))
      strcat(text, " )"), in = 0;
    while (chance(10)) {
      if (!in) add_axis(v);
      strcat(text, in || chance(50) ? " 1" : " ()");
    }
    if (i == p->npart) break;
    const int dot = order[i] < p->ndot;
    if (!in && !(left && dot) && chance(50)) strcat(text, "("), add_axis(v), in = 1;
    const char *open = in ? " " : "  ";
    if (dot) strcat(strcat(text, open), "...");
    for (int k = 0; k < (dot ? p->ndot : 1); k++) {
      if (!in) add_axis(v);
      v->part[v->naxis - 1][v->n[v->naxis - 1]++] = order[i] + k;
    }
    if (dot) i += p->ndot - 1;
    else strcat(strcat(text, open), names[order[i]]);
  }
}

// The parts in some order; those of "..." stay together.
static void draw_order(const pattern *p, int *order) {
  int n = 0, first = (int)draw(p->ndot, p->npart), used[PARTS] = {0};
  while (n < p->npart) {
    if (n == first - p->ndot)
      for (int k = 0; k < p->ndot; k++) order[n++] = k;
    if (n == p->npart) break;
    int k = (int)draw(p->ndot, p->npart - 1);
    while (used[k]) k = k + 1 < p->npart ? k + 1 : p->ndot;
    used[k] = 1;
    order[n++] = k;
  }
}

static void draw_pattern(pattern *p) {
  int order[PARTS];
  memset(p, 0, sizeof *p);
  p->npart = (int)draw(0, PARTS);
  p->ndot = chance(40) ? (int)draw(0, p->npart < 3 ? p->npart : 3) : 0;
  for (int i = 0; i < p->npart; i++) p->extent[i] = chance(4) ? 0 : draw(1, 3);
  draw_order(p, order);
  const char *dots = p->ndot == 0 && chance(20) ? "..." : "";  // of no axes
  draw_side(p, order, 1, &p->left, p->text);
  strcat(strcat(p->text, dots), "->");
  draw_order(p, order);
  draw_side(p, order, 0, &p->right, p->text);
  strcat(strcat(p->text, " "), dots);
  for (int a = 0; a < p->left.naxis; a++) {
    int open = chance(60) ? (int)draw(0, PARTS - 1) : -1, zero = 0;
    for (int i = 0; i < p->left.n[a]; i++) zero |= p->extent[p->left.part[a][i]] == 0;
    for (int i = 0; i < p->left.n[a]; i++) {
      const int part = p->left.part[a][i];
      if (part < p->ndot || (i == open && !zero)) continue;
      if (p->left.n[a] == 1 && chance(50)) continue;
      p->size[p->nsize].name = names[part];
      p->size[p->nsize++].value = p->extent[part];
    }
  }
}

// The coordinates of a side at values of the parts.
static void coordinates(const pattern *p, const side *v, const int64_t *at, int64_t *c) {
  for (int a = 0; a < v->naxis; a++) {
    c[a] = 0;
    for (int i = 0; i < v->n[a]; i++) c[a] = c[a] * p->extent[v->part[a][i]] + at[v->part[a][i]];
  }
}

static void shape_of(const pattern *p, const side *v, int64_t *shape) {
  for (int a = 0; a < v->naxis; a++) {
    shape[a] = 1;
    for (int i = 0; i < v->n[a]; i++) shape[a] *= p->extent[v->part[a][i]];
  }
}

// A tensor of that shape: axes in any order in memory, some backwards, with gaps, or repeated.
static ein_ztensor draw_tensor(int32_t *data, int rank, const int64_t *shape, int64_t *strides,
                               int repeated) {
  int order[AXES];
  int64_t step = 1, at = 0;
  ein_ztensor t;
  memset(&t, 0, sizeof t);
  for (int r = 0; r < rank; r++) order[r] = rank - 1 - r;
  for (int r = rank - 1; r > 0 && chance(40); r--) {
    const int k = (int)draw(0, r), x = order[r];
    order[r] = order[k];
    order[k] = x;
  }
  for (int i = 0; i < rank; i++) {
    const int r = order[i];
    if (chance(10)) step++;
    strides[r] = chance(10) ? -step : step;
    if (repeated && chance(5)) strides[r] = 0;
    if (strides[r] < 0 && shape[r] > 0) at += step * (shape[r] - 1);
    if (shape[r] > 0) step *= shape[r];
  }
  t.dtype = EIN_I32;
  t.rank = rank;
  t.shape = shape;
  t.strides = strides;
  t.data = data + at;
  t.buffer = data;
  t.buffer_bytes = ROOM * sizeof *data;
  CHECK(step < ROOM);
  return t;
}

static int next(const pattern *p, int64_t *at) {
  for (int i = p->npart - 1; i >= 0; i--) {
    if (++at[i] < p->extent[i]) return 1;
    at[i] = 0;
  }
  return 0;
}

// Is where elements lie a sum of strides times coordinates of the result?
static int is_view(const pattern *p, const ein_ztensor *t) {
  int64_t stride[AXES] = {0}, at[PARTS] = {0}, from[AXES], c[AXES];
  int view = 1;
  const int32_t *base = (const int32_t *)t->data;
  for (int round = 0; round < 2; round++) {
    do {
      int64_t sum = 0, units = 0, axis = 0;
      coordinates(p, &p->left, at, from);
      coordinates(p, &p->right, at, c);
      const int64_t lies = (const int32_t *)ein_view_at(t, from) - base;
      for (int a = 0; a < p->right.naxis; a++) {
        sum += c[a] * stride[a];
        units += c[a];
        if (c[a] > 0) axis = a;
      }
      if (round == 0 && units == 1) stride[axis] = lies;
      if (round == 1) view &= lies == sum;
    } while (next(p, at));
  }
  return view;
}

static int random_pattern(ein_ctx *ctx, uint64_t seed) {
  static int32_t in[ROOM], out[ROOM];
  int64_t si[AXES], so[AXES], ti[AXES], to[AXES], dims[2 * AXES], at[PARTS] = {0};
  int64_t from[AXES], c[AXES];
  pattern p;
  rng_state = seed;
  draw_pattern(&p);
  shape_of(&p, &p.left, si);
  shape_of(&p, &p.right, so);
  for (int i = 0; i < ROOM; i++) in[i] = i, out[i] = -7;
  const ein_ztensor t = draw_tensor(in, p.left.naxis, si, ti, 1);
  const ein_ztensor o = draw_tensor(out, p.right.naxis, so, to, 0);
  const int empty = ein_view_count(&t) == 0, want = empty || is_view(&p, &t);
  ein_ztensor v;
  ein_status st = ein_view_rearrange(ctx, p.text, p.nsize, p.size, &t, &v, dims, AXES);
  CHECK(st == (want ? EIN_OK : EIN_ERR_UNSUPPORTED));
  if (failures > 0) printf("%d '%s': %s\n", (int)st, p.text, ein_ctx_message(ctx));
  if (failures > 0) return 0;
  CHECK(v.rank == p.right.naxis && (v.data != NULL) == want && ein_view_check(&v) == EIN_OK);
  for (int a = 0; a < v.rank; a++) CHECK(v.shape[a] == so[a]);
  st = ein_rearrange(ctx, p.text, p.nsize, p.size, &t, &o);
  CHECK(st == EIN_OK);
  if (failures > 0) printf("'%s': %s\n", p.text, ein_ctx_message(ctx));
  int64_t written = 0;
  if (!empty && failures == 0) do {
    coordinates(&p, &p.left, at, from);
    coordinates(&p, &p.right, at, c);
    const int32_t value = *(const int32_t *)ein_view_at(&t, from);
    CHECK(*(const int32_t *)ein_view_at(&o, c) == value);
    if (want) CHECK(ein_view_at(&v, c) == ein_view_at(&t, from));
    written++;
  } while (next(&p, at));
  for (int i = 0; i < ROOM; i++) written -= out[i] != -7;
  CHECK(written == 0);
  return want && !empty;
}

// ---- by hand ------------------------------------------------------------------------------------

static void test_worked(ein_ctx *ctx) {
  int32_t x[2 * 6 * 3], y[36];
  const int64_t shape[] = {2, 6, 3}, flat[] = {36}, back[] = {2, 3, 3, 2};
  const ein_size h = {"h", 3};
  int64_t dims[10];
  ein_ztensor t = ein_tensor(EIN_I32, 3, shape, x), v, o = ein_tensor(EIN_I32, 1, flat, y);
  for (int i = 0; i < 36; i++) x[i] = i;
  CHECK(ein_view_rearrange(ctx, "b (h w) c -> b c h w", 1, &h, &t, &v, dims, 5) == EIN_OK);
  CHECK(v.rank == 4 && v.shape[0] == 2 && v.shape[1] == 3 && v.shape[2] == 3 && v.shape[3] == 2);
  CHECK(v.strides[0] == 18 && v.strides[1] == 1 && v.strides[2] == 6 && v.strides[3] == 3);
  CHECK(ein_view_rearrange(NULL, "... -> (...)", 0, NULL, &t, &v, dims, 1) == EIN_OK);
  CHECK(v.rank == 1 && v.shape[0] == 36 && v.strides[0] == 1);
  v = t;  // the view may be the tensor
  CHECK(ein_view_rearrange(ctx, "a b c->c (a b) 1", 0, NULL, &v, &v, dims, 3) == EIN_OK);
  CHECK(v.rank == 3 && v.shape[1] == 12 && v.strides[0] == 1 && v.strides[1] == 3);
  CHECK(ein_view_rearrange(ctx, "a b c -> (c a b)", 0, NULL, &t, &v, dims, 3) ==
        EIN_ERR_UNSUPPORTED && v.rank == 1 && v.shape[0] == 36 && v.data == NULL);
  CHECK(has(ein_ctx_message(ctx), "a b c -> (c a b)\n           ^^^^^^^\n"));
  CHECK(ein_rearrange(ctx, "a b c -> (c a b)", 0, NULL, &t, &o) == EIN_OK);
  for (int i = 0; i < 36; i++) CHECK(y[i] == i % 12 * 3 + i / 12);
  ein_ztensor f = ein_tensor(EIN_I32, 4, back, y);  // an output that is split
  CHECK(ein_rearrange(ctx, "b (h w) c -> b c h w", 1, &h, &t, &f) == EIN_OK);
  CHECK(y[0] == 0 && y[1] == 3 && y[2] == 6 && y[6] == 1 && y[18] == 18 && y[35] == 35);
  ein_ztensor s = ein_tensor(EIN_I32, 0, NULL, x);
  CHECK(ein_view_rearrange(ctx, "-> 1 ()", 0, NULL, &s, &v, dims, 2) == EIN_OK && v.rank == 2);
  CHECK(ein_view_rearrange(ctx, " -> ", 0, NULL, &s, &v, NULL, 0) == EIN_OK && v.rank == 0);
}

static void test_mistakes(ein_ctx *ctx) {
  static const struct {
    const char *text;
    ein_status st;
    const char *want;
    ein_size size[2];
  } bad[] = {
      {NULL, EIN_ERR_ARGUMENT, "the pattern is NULL", {{NULL, 0}}},
      {"a b c", EIN_ERR_SYNTAX, "1:6: '->' and the axes of the result expected", {{NULL, 0}}},
      {"a b c -> a -> b", EIN_ERR_SYNTAX, "1:12: a second '->'", {{NULL, 0}}},
      {"a b c -> a (b (c))", EIN_ERR_SYNTAX, "1:15: brackets in brackets", {{NULL, 0}}},
      {"a b c) -> a b c", EIN_ERR_SYNTAX, "1:6: nothing is open here", {{NULL, 0}}},
      {"a b c -> a (b c", EIN_ERR_SYNTAX, "1:12: this '(' is never closed", {{NULL, 0}}},
      {"a ... ... -> a ...", EIN_ERR_SYNTAX, "1:7: a second '...'", {{NULL, 0}}},
      {"a (b ...) -> a b ...", EIN_ERR_SYNTAX, "'...' is in brackets", {{NULL, 0}}},
      {"a b 2 -> a b 2", EIN_ERR_SYNTAX, "1:5: the only number in a pattern is 1", {{NULL, 0}}},
      {"a b c -> a b 1c", EIN_ERR_SYNTAX, "1:14: the only number", {{NULL, 0}}},
      {"a, b, c -> a b c", EIN_ERR_SYNTAX, "1:2: neither a name", {{NULL, 0}}},
      {"a b \xff -> a b c", EIN_ERR_SYNTAX, "1:5: neither a name", {{NULL, 0}}},
      {"a b a -> a b", EIN_ERR_NAME, "1:5: 'a' occurs twice", {{NULL, 0}}},
      {"a b c -> a b c a", EIN_ERR_NAME, "1:16: 'a' occurs twice", {{NULL, 0}}},
      {"a b c -> a b", EIN_ERR_NAME, "1:5: 'c' is on one side only", {{NULL, 0}}},
      {"a b c -> a b c dd", EIN_ERR_NAME, "1:16: 'dd' is on one side only", {{NULL, 0}}},
      {"a b c ... -> a b c", EIN_ERR_NAME, "'...' is on one side only", {{NULL, 0}}},
      {"a b c -> a b c ...", EIN_ERR_NAME, "'...' is on one side only", {{NULL, 0}}},
      {"a b -> b a", EIN_ERR_SHAPE, "the tensor has 3 axes, the pattern 2", {{NULL, 0}}},
      {"a b c d ... -> b a c d ...", EIN_ERR_SHAPE, "at least 4", {{NULL, 0}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "1:3: nothing says how large 'h' and 'w' are",
       {{NULL, 0}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "1:3: axis 1 has extent 6, which is no multiple of 4",
       {{"h", 4}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "1:3: axis 1 has extent 6, here it is 4",
       {{"h", 2}, {"w", 2}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "no multiple of 0", {{"h", 0}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "1:4: size 'h' is -1", {{"h", -1}}},
      {"a (h w) c -> a h w c", EIN_ERR_SHAPE, "1:4: 'h' is given two sizes", {{"h", 2}, {"h", 3}}},
      {"a (h w) c -> a h w c", EIN_ERR_TOO_LARGE, "1:3: the extent of this is no int64",
       {{"h", INT64_MAX}, {"w", 3}}},
      {"a b c -> a b c", EIN_ERR_NAME, "no axis is named 'd'", {{"d", 4}}},
      {"a b c -> a b c", EIN_ERR_SHAPE, "1:1: axis 0 has extent 2, here it is 3", {{"a", 3}}},
      {"1 b c -> b c", EIN_ERR_SHAPE, "1:1: axis 0 has extent 2, here it is 1", {{NULL, 0}}},
      {"a b c -> a b c 1", EIN_ERR_ARGUMENT, "the result has 4 axes, room is for 3", {{NULL, 0}}},
      {"a b c -> c b a", EIN_ERR_SHAPE, "extent", {{NULL, 0}}},
      {"a b c -> a (b c)", EIN_ERR_SHAPE, "the output has 3 axes, the result 2", {{NULL, 0}}},
  };
  int32_t x[36], y[36];
  const int64_t shape[] = {2, 6, 3}, none[] = {0, 1, 1};
  int64_t dims[6];
  ein_ztensor t = ein_tensor(EIN_I32, 3, shape, x), v, o = ein_tensor(EIN_I32, 3, shape, y);
  memset(x, 0, sizeof x);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    const int n = (bad[k].size[0].name != NULL) + (bad[k].size[1].name != NULL);
    ein_status st = ein_view_rearrange(ctx, bad[k].text, n, bad[k].size, &t, &v, dims, 3);
    if (st == EIN_OK) st = ein_rearrange(ctx, bad[k].text, n, bad[k].size, &t, &o);
    CHECK(st == bad[k].st && has(ein_ctx_message(ctx), bad[k].want));
    if (st != bad[k].st || !has(ein_ctx_message(ctx), bad[k].want))
      printf("pattern %d: %d, %s\n", (int)k, (int)st, ein_ctx_message(ctx));
    if (bad[k].st != EIN_ERR_ARGUMENT)
      CHECK(ein_rearrange(NULL, bad[k].text, n, bad[k].size, &t, &o) == bad[k].st);
  }
  const ein_size nameless = {NULL, 1}, zero = {"h", 0};
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", 1, &nameless, &t, &v, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", -1, NULL, &t, &v, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", 1, NULL, &t, &v, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", 0, NULL, NULL, &v, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", 0, NULL, &t, NULL, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "a b c -> a b c", 0, NULL, &t, &v, NULL, 3) != EIN_OK);
  CHECK(ein_rearrange(ctx, "a b c -> a b c", 0, NULL, &t, NULL) == EIN_ERR_ARGUMENT);
  t.shape = none;
  CHECK(ein_view_rearrange(ctx, "(h w) b c -> h w c", 1, &zero, &t, &v, dims, 3) != EIN_OK);
  CHECK(ein_view_rearrange(ctx, "(h w) b 1 -> h w b", 1, &zero, &t, &v, dims, 3) == EIN_ERR_SHAPE);
  CHECK(has(ein_ctx_message(ctx), "nothing says how large 'w' is"));
}

static void test_memory(void) {
  int32_t x[36], y[36];
  const int64_t shape[] = {2, 6, 3}, flat[] = {36};
  int64_t dims[2];
  memset(x, 0, sizeof x);
  for (long n = 0;; n++) {
    counter c = {0, n, 0};
    ein_ctx_desc desc;
    ein_ctx *ctx;
    ein_ztensor t = ein_tensor(EIN_I32, 3, shape, x), o = ein_tensor(EIN_I32, 1, flat, y), v;
    memset(&desc, 0, sizeof desc);
    desc.allocator.alloc_fn = count_alloc;
    desc.allocator.free_fn = count_free;
    desc.allocator.user = &c;
    ein_status st = ein_ctx_create(&desc, &ctx);
    if (st == EIN_OK) st = ein_view_rearrange(ctx, "a b c -> (a b c)", 0, NULL, &t, &v, dims, 1);
    if (st == EIN_OK) st = ein_rearrange(ctx, "a b c -> (c a b)", 0, NULL, &t, &o);
    ein_ctx_destroy(ctx);
    CHECK(c.live == 0 && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
    if (st != EIN_ERR_NO_MEMORY) break;
  }
}

int main(void) {
  ein_ctx *ctx;
  int views = 0;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  test_worked(ctx);
  test_mistakes(ctx);
  const int rounds = 4000 / fewer();
  for (int seed = 1; seed <= rounds && failures == 0; seed++) {
    views += random_pattern(ctx, (uint64_t)seed);
    if (failures > 0) printf("at seed %d\n", seed);
  }
  CHECK(views > rounds / 10 && views < rounds * 9 / 10);
  test_memory();
  ein_ctx_destroy(ctx);
  if (failures == 0) printf("ok %d checks, %d of %d patterns are views\n", checks, views, rounds);
  return failures != 0;
}
