// Every pattern of labels of two operands and an output of up to three axes each, up to renaming:
// 18 thousand einsums, diagonals and repeated output labels included. Extents are all different,
// values small integers, so that results are exact; whole buffers are compared, what lies between
// the elements included. Include after oracle.h.

#define PATTERN_ROOM 1024  // elements of a buffer: 7 * 7 * 7 with gaps need 877

typedef struct pattern {
  int nlabel, rank[3], label[3][3];  // operands, output
  int64_t extent[6], shape[3][3], stride[3][3];
  char expr[16];
  double value[3][2 * PATTERN_ROOM];  // dense, row-major: real and imaginary parts
} pattern;

// Row-major, column-major, or row-major backwards with gaps.
static void pattern_lay_out(pattern *p, int t, int how) {
  int64_t step = how == 2 ? -2 : 1;
  for (int k = 0; k < p->rank[t]; k++) {
    int a = how == 1 ? k : p->rank[t] - 1 - k;
    p->shape[t][a] = p->extent[p->label[t][a]];
    p->stride[t][a] = step;
    step *= p->shape[t][a] + (how == 2);
  }
}

static void pattern_spell(pattern *p) {
  char *s = p->expr;
  for (int t = 0; t < 3; t++) {
    for (int a = 0; a < p->rank[t]; a++) *s++ = (char)('a' + p->label[t][a]);
    if (t == 0) *s++ = ',';
    if (t == 1) *s++ = '-', *s++ = '>';
  }
  *s = 0;
}

// Where x points to in operand t: the number of its element (dense), and its offset in the buffer.
static int64_t pattern_at(const pattern *p, int t, const int64_t *x, int64_t *offset) {
  int64_t at = 0;
  *offset = 0;
  for (int a = 0; a < p->rank[t]; a++) {
    at = at * p->shape[t][a] + x[p->label[t][a]];
    *offset += p->stride[t][a] * x[p->label[t][a]];
  }
  return at;
}

// Steps through all values of the labels; 0 at the end.
static int pattern_next(const pattern *p, int64_t *x) {
  for (int l = p->nlabel - 1; l >= 0; l--) {
    if (++x[l] < p->extent[l]) return 1;
    x[l] = 0;
  }
  return 0;
}

// The oracle: sums of products of parts, all whole numbers below 2^24.
static void pattern_solve(pattern *p) {
  int64_t x[6] = {0}, off;
  memset(p->value[2], 0, sizeof p->value[2]);
  do {
    const double *a = p->value[0] + 2 * pattern_at(p, 0, x, &off);
    const double *b = p->value[1] + 2 * pattern_at(p, 1, x, &off);
    double *c = p->value[2] + 2 * pattern_at(p, 2, x, &off);
    c[0] += a[0] * b[0] - a[1] * b[1];
    c[1] += a[0] * b[1] + a[1] * b[0];
  } while (pattern_next(p, x));
}

static int64_t pattern_count(const pattern *p, int t) {
  int64_t n = 1;
  for (int a = 0; a < p->rank[t]; a++) n *= p->shape[t][a];
  return n;
}

// Puts all elements of t into a buffer whose element (0, .., 0) is number `base`.
static void pattern_store(const pattern *p, int t, ein_dtype dtype, void *buf, int64_t base) {
  for (int64_t k = 0; k < pattern_count(p, t); k++) {
    int64_t off = base, at = k;
    for (int a = p->rank[t] - 1; a >= 0; a--) {
      off += at % p->shape[t][a] * p->stride[t][a];
      at /= p->shape[t][a];
    }
    orc_val v = orc_float(p->value[t][2 * k], p->value[t][2 * k + 1]);
    v.i = (int64_t)v.re;
    orc_put(dtype, buf, off, v);
  }
}

// Are two buffers equal, but for the signs of zeros?
static int pattern_same(ein_dtype dtype, const void *a, const void *b, size_t bytes) {
  int same = memcmp(a, b, bytes) == 0;
  if (same || !orc_is_float(dtype)) return same;
  for (size_t k = 0; k < bytes / orc_size(dtype); k++) {
    orc_val x = orc_load(dtype, a, (int64_t)k), y = orc_load(dtype, b, (int64_t)k);
    if (!(x.re == y.re && x.im == y.im)) return 0;
  }
  return 1;
}

static int pattern_run(ein_ctx *ctx, pattern *p, ein_dtype dtype, uint64_t seed) {
  static double room[4][2 * PATTERN_ROOM];  // operands, output, what it should be
  static const char *const layouts[] = {"row-major", "column-major", "backwards with gaps"};
  ein_ztensor view[3];
  ein_einsum_desc d;
  int how[3];
  memset(view, 0, sizeof view);
  for (int t = 0; t < 3; t++) {
    pattern_lay_out(p, t, how[t] = (int)(orc_hash(seed, (uint64_t)t) % 3));
    int64_t base = how[t] == 2 ? PATTERN_ROOM - 1 : 0;
    memset(room[t], 0x5A, sizeof room[t]);
    for (int64_t k = 0; k < 2 * pattern_count(p, t) && t < 2; k++) {
      int64_t h = (int64_t)(orc_hash(seed, (uint64_t)(k + 2000 * t)) % 4);
      int64_t x = h < 2 ? h - 2 : h - 1;
      int parts = dtype == EIN_C64 || dtype == EIN_C128;
      p->value[t][k] = k % 2 && !parts ? 0 : dtype == EIN_BOOL ? (double)(h > 1) : (double)x;
    }
    if (t < 2) pattern_store(p, t, dtype, room[t], base);
    view[t].dtype = dtype;
    view[t].rank = p->rank[t];
    view[t].shape = p->shape[t];
    view[t].strides = p->stride[t];
    view[t].data = (char *)room[t] + (size_t)base * ein_dtype_size(dtype);
  }
  memset(&d, 0, sizeof d);
  d.expr = p->expr;
  d.nin = 2;
  d.in = view;
  d.out = &view[2];
  d.rest = EIN_REST_ZERO;
  memset(room[3], 0x5A, sizeof room[3]);
  pattern_solve(p);
  pattern_store(p, 2, dtype, room[3], how[2] == 2 ? PATTERN_ROOM - 1 : 0);
  ein_status st = ein_einsum_ex(ctx, &d);
  if (st == EIN_OK && pattern_same(dtype, room[2], room[3], sizeof room[2])) return 1;
  printf("%s, %s, output %s: %s\n", p->expr, ein_dtype_name(dtype), layouts[how[2]],
         st == EIN_OK ? "wrong" : ein_ctx_message(ctx));
  return 0;
}

// All outputs for the operands of p: each with f64 and one more dtype, by each ctx.
static int64_t pattern_outputs(ein_ctx *const *ctx, int nctx, pattern *p, int64_t every,
                               int64_t *count) {
  static const ein_dtype more[] = {EIN_F32, EIN_C64, EIN_I32, EIN_C128, EIN_I64, EIN_F32,
                                   EIN_F16, EIN_I16, EIN_BOOL, EIN_BF16, EIN_U8, EIN_I8};
  int64_t failures = 0;
  for (p->rank[2] = 0; p->rank[2] <= 3; p->rank[2]++) {
    int64_t ways = 1;
    for (int a = 0; a < p->rank[2]; a++) ways *= p->nlabel;
    for (int64_t w = 0; w < ways; w++) {
      int64_t left = w, k = (*count)++;
      if (k % every != 0) continue;
      for (int a = 0; a < p->rank[2]; a++, left /= p->nlabel)
        p->label[2][a] = (int)(left % p->nlabel);
      for (int l = 0; l < 6; l++) p->extent[l] = 2 + (5 * l + k) % 6;
      pattern_spell(p);
      for (int c = 0; c < nctx; c++) {
        failures += !pattern_run(ctx[c], p, EIN_F64, (uint64_t)k);
        failures += !pattern_run(ctx[c], p, more[k / every % 12], (uint64_t)k);
      }
    }
  }
  return failures;
}

// every: only one pattern in so many. Returns the number of wrong results.
static int64_t patterns_run(ein_ctx *const *ctx, int nctx, int64_t every, int64_t *count) {
  static pattern p;
  int64_t failures = 0;
  *count = 0;
  for (int ranks = 0; ranks < 16; ranks++) {
    int n = ranks / 4 + ranks % 4, label[6] = {0}, top[7] = {0};  // top: labels before each place
    p.rank[0] = ranks / 4;
    p.rank[1] = ranks % 4;
    for (int more = 1; more && failures < 10;) {
      for (int i = 0; i < n; i++) {
        p.label[i >= p.rank[0]][i >= p.rank[0] ? i - p.rank[0] : i] = label[i];
        top[i + 1] = label[i] == top[i] ? top[i] + 1 : top[i];
      }
      p.nlabel = top[n];
      failures += pattern_outputs(ctx, nctx, &p, every, count);
      int i = n - 1;  // the next one in which every label is new at most by one
      while (i >= 0 && label[i] == top[i]) i--;
      more = i >= 0;
      if (more) label[i]++;
      for (i++; more && i < n; i++) label[i] = 0;
    }
  }
  return failures;
}
