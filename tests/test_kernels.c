// Random statements: the planner and its kernels against the brute-force oracle.
//
//   test_kernels [count] [seed] [case]     defaults: 3000 1; with a case only that one, verbose
//
// Graphs of one to three statements are built through the internal calls: random index spaces,
// affine accesses, typed expressions over all operations and dtypes, all folds, registered
// functions and monoids, random layouts of inputs and outputs. Each is planned and executed, and
// compared element by element within the oracle's error bounds; bytes between and around the
// output's elements and all inputs must stay as they were. Prints "ok <n> cases" and exits 0.
// With -DNO_PLAN only the oracle runs.
#define EINI_LEAF_WORK 24  // folds are cut early
#define EINI_SUM_WORK 8
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#ifdef TEST_OPENBLAS
#include "../backends/einsum_openblas.h"
#endif
#ifdef TEST_CPU
#include "../backends/einsum_cpu.h"
#endif
#ifdef TEST_CUDA
#include "../backends/einsum_cuda.h"
#endif

#include "oracle.h"
#include "naive_kernels.h"
#include "patterns.h"
#include "util.h"

#define MAX_RANK 8
#define MAX_INDEX 8
#define GUARD 64
#ifdef TEST_CUDA  // a compiler runs for each kernel
#define PATTERNS 1499
#else
#define PATTERNS (count < 3000 ? 29 : 1)
#endif

// ---- registered functions and monoids -----------------------------------------------------------

static void fn_blend(int64_t n, const void *const *in, void *out, void *user) {
  const double *x = (const double *)in[0], *y = (const double *)in[1];
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = x[i] * 0.5 + y[i] * y[i];
}

static void fn_squash(int64_t n, const void *const *in, void *out, void *user) {
  const float *x = (const float *)in[0];
  (void)user;
  for (int64_t i = 0; i < n; i++) ((float *)out)[i] = x[i] / (1.0f + (x[i] < 0 ? -x[i] : x[i]));
}

static void fn_mix(int64_t n, const void *const *in, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    uint64_t v = ((const uint64_t *)in[0])[i] * 3u + ((const uint64_t *)in[1])[i];
    ((uint64_t *)out)[i] = v - ((const uint64_t *)in[2])[i];
  }
}

static void fn_turn(int64_t n, const void *const *in, void *out, void *user) {
  const double *x = (const double *)in[0];
  double *d = (double *)out;
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    double re = -x[2 * i + 1], im = x[2 * i];
    d[2 * i] = re;
    d[2 * i + 1] = im;
  }
}

static void mo_lift_abs(int64_t n, const void *x, void *const *state, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)state[0])[i] = fabs(((const double *)x)[i]);
}

static void mo_merge_max(int64_t n, void *const *acc, const void *const *more, void *user) {
  double *a = (double *)acc[0];
  const double *b = (const double *)more[0];
  (void)user;
  for (int64_t i = 0; i < n; i++) a[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];
}

static void mo_lift_square(int64_t n, const void *x, void *const *state, void *user) {
  const float *v = (const float *)x;
  (void)user;
  for (int64_t i = 0; i < n; i++) {
    ((float *)state[0])[i] = 1.0f;
    ((float *)state[1])[i] = v[i] * v[i];
  }
}

static void mo_merge_add2(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int s = 0; s < 2; s++) {
    for (int64_t i = 0; i < n; i++) ((float *)acc[s])[i] += ((const float *)more[s])[i];
  }
}

static void mo_finish_ratio(int64_t n, const void *const *state, void *out, void *user) {
  const float *c = (const float *)state[0], *s = (const float *)state[1];
  (void)user;
  for (int64_t i = 0; i < n; i++) ((float *)out)[i] = c[i] > 0 ? s[i] / c[i] : 0.0f;
}

static void mo_merge_xor(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((uint32_t *)acc[0])[i] ^= ((const uint32_t *)more[0])[i];
}

static void register_all(ein_ctx *ctx) {
  static const ein_function fns[] = {{"blend", 2, EIN_F64, fn_blend, NULL},
                                     {"squash", 1, EIN_F32, fn_squash, NULL},
                                     {"mix", 3, EIN_I64, fn_mix, NULL},
                                     {"turn", 1, EIN_C128, fn_turn, NULL}};
  static const ein_monoid monoids[] = {
      {"maxabs", 1, EIN_F64, {0, 0, 0, 0}, 0, mo_lift_abs, mo_merge_max, NULL, 0, NULL},
      {"meansq", 2, EIN_F32, {0, 0, 0, 0}, 0, mo_lift_square, mo_merge_add2, mo_finish_ratio, 0,
       NULL},
      {"xorall", 1, EIN_I32, {0, 0, 0, 0}, 1, NULL, mo_merge_xor, NULL, 0, NULL}};
  for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
    if (ein_ctx_function(ctx, &fns[i]) != EIN_OK) orc_die(ein_ctx_message(ctx));
  }
  for (size_t i = 0; i < sizeof monoids / sizeof *monoids; i++) {
    if (ein_ctx_monoid(ctx, &monoids[i]) != EIN_OK) orc_die(ein_ctx_message(ctx));
  }
}

// ---- printing a graph ---------------------------------------------------------------------------

#define OP_NAME(id, name, args, cls) #id,
static const char *const op_names[] = {EIN_OP_LIST(OP_NAME)};
#undef OP_NAME

static void dump_map(const eini_map *m) {
  printf("[");
  for (int r = 0; r < m->rows; r++) {
    printf("%s%lld", r ? ", " : "", (long long)m->offset[r]);
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      printf("%+lld*i%d", (long long)m->term[e].coef, m->term[e].index);
  }
  printf("]");
}

static void dump_graph(const ein_graph *g) {
  static const char *const roles[] = {"temp", "input", "output"};
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    printf("  %s %s %s(", roles[x->role], x->name, ein_dtype_name(x->dtype));
    for (int r = 0; r < x->rank; r++) printf("%s%lld", r ? "," : "", (long long)x->shape[r]);
    printf(")\n");
  }
  for (int64_t k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    const char *fold = s->fold < EIN_FOLD_USER ? eini_folds[s->fold].name
                                                : g->monoid[s->fold - EIN_FOLD_USER].name;
    printf("  %s", g->tensor[s->out].name);
    dump_map(&s->out_map);
    printf(" = %s over", fold);
    for (int i = 0; i < s->nindex; i++) {
      printf(" %si%d=%lld", i >= s->nfree ? "*" : "", i, (long long)s->index[i].extent);
    }
    printf(" type %s rest %d numpy %d\n", ein_dtype_name(s->type), (int)s->rest, s->numpy);
    for (int o = 0; o < s->noperand; o++) {
      printf("    x%d = %s", o, g->tensor[s->operand[o]].name);
      dump_map(&s->proj[o]);
      printf("\n");
    }
    for (int64_t i = 0; i < s->expr.n; i++) {
      const eini_node *v = &s->expr.node[i];
      printf("    n%lld: %s ", (long long)i, op_names[v->op]);
      printf("%s", ein_dtype_name((ein_dtype)v->dtype));
      if (v->op == EIN_OP_CONST) printf(" %g %lld", v->re, (long long)v->ival);
      else if (v->op <= EIN_OP_PARAM) printf(" %d", v->arg[0]);
      for (int a = 0; a < eini_node_args(v); a++) printf(" n%d", eini_node_arg(&s->expr, v, a));
      printf("\n");
    }
  }
}

// ---- random graphs ------------------------------------------------------------------------------

// Everything can fail for want of memory only; the rest says that the draw was not a legal graph.
static ein_dtype any_dtype(void) {
  static const ein_dtype often[] = {EIN_F32, EIN_F64, EIN_F32, EIN_F64, EIN_I64, EIN_I32};
  if (chance(50)) return often[draw(0, 5)];
  return (ein_dtype)draw(EIN_BOOL, chance(50) ? EIN_C128 : EIN_F64);
}

typedef struct builder {
  ein_graph *g;
  eini_expr *e;
  int noperand, nindex;
  int first, step;  // what it reads of the operands
} builder;

static int node(builder *b, int op, int x, int y, int z) {
  int id = eini_expr_add(&b->g->arena, b->e, op, -1, x, y, z);
  if (id < 0) orc_die("out of memory");
  return id;
}

static int leaf(builder *b) {
  int k = (int)draw(0, 9);
  if (k == 0) return eini_expr_int(&b->g->arena, b->e, -1, draw(-3, 3));
  if (k == 1) return eini_expr_real(&b->g->arena, b->e, -1, (double)draw(-16, 16) / 8);
  if (k == 2 && b->nindex > 0) return node(b, EIN_OP_INDEX, (int)draw(0, b->nindex - 1), 0, 0);
  if (k == 3 && b->g->nparam > 0) {
    return node(b, EIN_OP_PARAM, (int)draw(0, b->g->nparam - 1), 0, 0);
  }
  if (k == 4 && chance(20)) return eini_expr_bool(&b->g->arena, b->e, -1, (int)draw(0, 1));
  if (b->noperand == 0) return eini_expr_real(&b->g->arena, b->e, -1, 1.5);
  int most = (b->noperand - 1 - b->first) / b->step;
  return node(b, EIN_OP_OPERAND, b->first + b->step * (int)draw(0, most), 0, 0);
}

static int grow(builder *b, int depth);

static int grow_call(builder *b, int depth) {
  int f = (int)draw(0, b->g->nfunction - 1), args[3];
  for (int k = 0; k < b->g->function[f].nargs; k++) args[k] = grow(b, depth - 1);
  return eini_expr_call(&b->g->arena, b->e, -1, f, b->g->function[f].nargs, args);
}

// A random expression; operations that need it get an argument of one sign most of the time.
static int grow(builder *b, int depth) {
  if (depth <= 0 || chance(10)) return leaf(b);
  if (b->e->n > 0 && chance(5)) return (int)draw(0, b->e->n - 1);
  if (b->g->nfunction > 0 && chance(4)) return grow_call(b, depth);
  if (chance(50)) {
    static const int often[] = {EIN_OP_ADD, EIN_OP_SUB, EIN_OP_MUL, EIN_OP_MUL, EIN_OP_MAX,
                                EIN_OP_MIN, EIN_OP_DIV};
    int x = grow(b, depth - 1), y = grow(b, depth - 1);
    return node(b, often[draw(0, 6)], x, y, 0);
  }
  int op = (int)draw(EIN_OP_CAST, EIN_OP_COUNT - 1);
  if (op == EIN_OP_CALL || op == EIN_OP_SQUARE) op = EIN_OP_EXP;
  int x = grow(b, depth - 1), y = 0, z = 0;
  if (op == EIN_OP_CAST || op == EIN_OP_ROUNDTO) {
    int id = node(b, EIN_OP_CAST, x, 0, 0);
    b->e->node[id].dtype = (unsigned char)draw(EIN_BOOL, EIN_C128);
    return id;
  }
  if ((op == EIN_OP_LOG || op == EIN_OP_SQRT || op == EIN_OP_RSQRT || op == EIN_OP_POW) &&
      chance(75)) {
    x = node(b, EIN_OP_ABS, x, 0, 0);
    y = eini_expr_real(&b->g->arena, b->e, -1, 0.25);
    x = node(b, EIN_OP_ADD, x, y, 0);
  }
  if (op == EIN_OP_POW && chance(60)) y = eini_expr_int(&b->g->arena, b->e, -1, draw(-1, 4));
  else if (eini_ops[op].args > 1) y = grow(b, depth - 1);
  if (eini_ops[op].args > 2) z = grow(b, depth - 1);
  return node(b, op, x, y, z);
}

// One factor (or addend) per operand: the shape contractions are recognised in.
static int grow_chain(builder *b, int op) {
  int id = -1;
  for (int k = 0; k < b->noperand; k++) {
    int x = node(b, EIN_OP_OPERAND, k, 0, 0);
    if (chance(10)) x = node(b, chance(50) ? EIN_OP_NEG : EIN_OP_CONJ, x, 0, 0);
    if (chance(6)) x = node(b, EIN_OP_TANH, x, 0, 0);
    id = id < 0 ? x : node(b, op, id, x, 0);
  }
  if (id >= 0 && chance(20)) id = node(b, op, id, leaf(b), 0);
  return id >= 0 ? id : leaf(b);
}

// Fills row r of a map with an affine form of the indices; *extent is what it needs, or what is
// there when fixed (0: no form fits).
static int draw_row(const eini_stmt *s, ein_zmap *m, int r, int64_t *extent, int fixed) {
  int64_t *coef = m->coef + (int64_t)r * m->cols, lo = 0, hi = 0;
  int terms = s->nindex == 0 || chance(8) ? 0 : chance(85) ? 1 : 2;
  for (int attempt = 0; attempt < 8; attempt++) {
    for (int c = 0; c < m->cols; c++) coef[c] = 0;
    lo = hi = 0;
    for (int k = 0; k < (attempt == 7 ? 0 : terms); k++) {
      coef[draw(0, s->nindex - 1)] = chance(75) ? 1 : chance(60) ? -1 : draw(-3, 3);
    }
    for (int c = 0; c < m->cols; c++) {
      int64_t e = s->index[c].extent < 1 ? 0 : s->index[c].extent - 1;
      *(coef[c] < 0 ? &lo : &hi) += coef[c] * e;
    }
    if (!fixed || hi - lo < *extent) break;
  }
  int64_t slack = fixed ? *extent - 1 - (hi - lo) : chance(75) ? 0 : draw(1, 3);
  if (slack < 0) {
    m->offset[r] = 0;
    return eini_stmt_empty(s, 0, s->nindex);
  }
  m->offset[r] = -lo + (slack > 0 ? draw(0, slack) : 0);
  if (!fixed) *extent = hi - lo + 1 + slack;
  if (!fixed && eini_stmt_empty(s, 0, s->nindex) && chance(50)) *extent = draw(0, 2);
  return 1;
}

// The output: every free index in an axis of its own, perhaps also repeated (a diagonal), strided,
// reversed or shifted. Returns 1 when the box is covered.
static int draw_out(const eini_stmt *s, int rank, const int *axis_index, ein_zmap *m,
                    int64_t *shape) {
  int full = 1;
  for (int r = 0; r < rank; r++) {
    int c = axis_index[r];
    int64_t e = c < 0 ? 1 : s->index[c].extent, k = 1, top = e < 1 ? 0 : e - 1;
    if (c >= 0 && chance(8)) k = -1;
    if (c >= 0 && chance(4)) k = 2;
    int64_t slack = chance(92) ? 0 : draw(1, 2);
    if (c >= 0) m->coef[(int64_t)r * m->cols + c] = k;
    m->offset[r] = (k < 0 ? top : 0) + (slack > 0 ? draw(0, slack) : 0);
    shape[r] = (k == 2 ? 2 : 1) * top + 1 + slack;
    if (e == 0) shape[r] = slack;
    if (shape[r] != e) full = 0;
    for (int q = 0; q < r; q++) full &= c < 0 || axis_index[q] != c;
  }
  return full;
}

static int64_t draw_extent(int64_t *budget) {
  int64_t e = chance(3) ? 0 : chance(88) ? draw(1, 6) : draw(7, 300);
  if (e > *budget) e = 1;
  if (e > 1) *budget /= e;
  return e;
}

static int draw_rank(void) { return chance(90) ? (int)draw(0, 4) : (int)draw(5, MAX_RANK); }

// (x-y)^2 or |x-y|, folded by sum or max.
static int grow_distance(builder *b, int *fold) {
  int x = node(b, EIN_OP_OPERAND, 0, 0, 0), y = node(b, EIN_OP_OPERAND, 1, 0, 0);
  int square = chance(40);
  *fold = square || chance(50) ? EIN_FOLD_SUM : EIN_FOLD_MAX;
  return node(b, square ? EIN_OP_SQUARE : EIN_OP_ABS, node(b, EIN_OP_SUB, x, y, 0), 0, 0);
}

// A contraction whose two factors are expressions, over operands of their own most of the time.
static int grow_factors(builder *b, int *fold) {
  static const int folds[3] = {EIN_FOLD_SUM, EIN_FOLD_MIN, EIN_FOLD_MAX};
  const int k = chance(60) ? 0 : (int)draw(1, 2);
  *fold = folds[k];
  b->step = 2;
  int x = grow(b, (int)draw(0, 3));
  b->first = 1;
  int y = grow(b, (int)draw(1, 3));
  return node(b, k == 0 ? EIN_OP_MUL : EIN_OP_ADD, x, y, 0);
}

// One statement with its new tensors; 0: not a legal one.
static int add_statement(ein_graph *g, int number, int last) {
  eini_stmt shape_of, *s = &shape_of;
  eini_index index[MAX_INDEX];
  int nred = chance(35) ? 0 : (int)draw(1, 3), nfree = (int)draw(0, chance(90) ? 4 : 5);
  int nop = chance(4) ? 0 : (int)draw(1, 4), operand[4], fresh[4], axis[MAX_RANK], out, rank;
  int64_t budget = 20000, ext[4][MAX_RANK], out_ext[MAX_RANK];
  int64_t coef[4][MAX_RANK * MAX_INDEX], offset[4][MAX_RANK];
  int64_t out_coef[MAX_RANK * MAX_INDEX], out_offset[MAX_RANK];
  ein_zmap map[4], out_map;
  char name[16];
  memset(&shape_of, 0, sizeof shape_of);
  memset(out_coef, 0, sizeof out_coef);
  s->index = index;
  s->nindex = nfree + nred;
  s->nfree = nfree;
  for (int i = 0; i < s->nindex; i++) {
    index[i].name = "i";
    index[i].extent = draw_extent(&budget);
  }
  for (int k = 0; k < nop; k++) {
    int64_t cells = 1;
    fresh[k] = g->ntensor == 0 || chance(60);
    operand[k] = fresh[k] ? -1 : (int)draw(0, g->ntensor - 1);
    map[k].rows = fresh[k] ? draw_rank() : g->tensor[operand[k]].rank;
    map[k].cols = s->nindex;
    map[k].coef = coef[k];
    map[k].offset = offset[k];
    map[k].block = NULL;
    for (int r = 0; r < map[k].rows; r++) {
      if (!fresh[k]) ext[k][r] = g->tensor[operand[k]].shape[r];
      if (!draw_row(s, &map[k], r, &ext[k][r], !fresh[k])) return 0;
      if (ext[k][r] > 0) cells *= ext[k][r];
      if (cells > 60000) return 0;
    }
    if (!fresh[k]) continue;
    snprintf(name, sizeof name, "a%d_%d", number, k);
    if (eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_INPUT, any_dtype(),
                              map[k].rows, ext[k], &operand[k]) != EIN_OK) {
      orc_die("out of memory");
    }
  }
  rank = 0;
  for (int i = 0; i < nfree; i++) axis[rank++] = i;
  while (rank < MAX_RANK && chance(6)) {
    axis[rank++] = nfree > 0 && chance(50) ? (int)draw(0, nfree - 1) : -1;
  }
  for (int i = rank - 1; i > 0; i--) {
    int j = (int)draw(0, i), t = axis[i];
    axis[i] = axis[j];
    axis[j] = t;
  }
  out_map.rows = rank;
  out_map.cols = s->nindex;
  out_map.coef = out_coef;
  out_map.offset = out_offset;
  int full = draw_out(s, rank, axis, &out_map, out_ext);
  int64_t cells = 1;
  for (int r = 0; r < rank; r++) cells *= out_ext[r] > 0 ? out_ext[r] : 1;
  if (cells > 1000000) return 0;  // a long axis several times
  snprintf(name, sizeof name, "y%d", number);
  ein_role role = last || chance(30) ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP;
  ein_dtype dtype = chance(50) ? EIN_NONE : any_dtype();
  if (eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank, out_ext, &out) !=
          EIN_OK ||
      eini_graph_add_stmt(g, out, s->nindex, nop, operand, &s) != EIN_OK) {
    orc_die("out of memory");
  }
  s->nfree = nfree;
  s->rest = EIN_REST_ERROR;
  if (!full) s->rest = role == EIN_ROLE_TEMP || chance(60) ? EIN_REST_ZERO : EIN_REST_KEEP;
  for (int i = 0; i < s->nindex; i++) s->index[i] = index[i];
  int read = eini_map_read(&g->arena, &s->out_map, &out_map) == EIN_OK;
  for (int k = 0; k < nop; k++) read &= eini_map_read(&g->arena, &s->proj[k], &map[k]) == EIN_OK;
  if (!read) orc_die("out of memory");
  builder b;
  b.g = g;
  b.e = &s->expr;
  b.noperand = nop;
  b.nindex = s->nindex;
  b.first = 0;
  b.step = 1;
  int style = (int)draw(0, 9), root;
  if (nred > 0) {
    s->fold = style < 5 ? EIN_FOLD_SUM : (int)draw(EIN_FOLD_SUM, EIN_FOLD_VAR + g->nmonoid);
    if (s->fold >= EIN_FOLD_BLOCK) s->fold += EIN_FOLD_USER - EIN_FOLD_BLOCK;
  }
  s->numpy = chance(15);
  if (nop >= 2 && nred > 0 && chance(25)) root = grow_factors(&b, &s->fold);
  else if (style < 4) root = grow_chain(&b, EIN_OP_MUL);
  else if (style == 9 && nred > 0) root = grow_chain(&b, chance(50) ? EIN_OP_ADD : EIN_OP_MAX);
  else if (style == 8 && nop >= 2 && nred > 0) root = grow_distance(&b, &s->fold);
  else root = grow(&b, (int)draw(1, 5));
  if (root != (int)s->expr.n - 1) node(&b, EIN_OP_CONJ, root, 0, 0);
  if (eini_stmt_finish(g, s, NULL) != EIN_OK) return 0;
  eini_tensor_fix_dtype(&g->tensor[out]);
  return 1;
}

// A chain of statements over one or two common indices, which planners may run in blocks:
// T[e,f,b] = fold over a of T'[e,f,a] (x) X[a,b] or X[e,a,b], now and then without a fold, with
// index values, or with the axes in another order.
static ein_graph *draw_chain(const ein_ctx *ctx) {
  ein_graph *g = eini_graph_new(ctx);
  int links = (int)draw(2, 5), wide = chance(50), out = -1, turned = 0;
  int64_t e = draw(2, 70), f = wide ? draw(2, 9) : 1, a = draw(1, 9), b;
  ein_dtype type = chance(60) ? EIN_F64 : any_dtype();
  if (g == NULL) orc_die("out of memory");
  for (int k = 0; k <= links; k++, a = b) {
    char name[16];
    int last = k == links, swap = chance(25), own = chance(30), ops[2], id = out, x, root;
    eini_stmt *s;
    b = draw(1, 9);
    const int64_t in_shape[3] = {e, f, a}, x_shape[3] = {e, a, b};
    const int64_t shape[2][3] = {{e, f, b}, {b, e, f}};
    if (k == 0 &&
        eini_graph_add_tensor(g, "in", 2, EIN_ROLE_INPUT, type, 3, in_shape, &id) != EIN_OK) {
      orc_die("out of memory");
    }
    snprintf(name, sizeof name, "x%d", k);
    if (eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_INPUT, type, own ? 3 : 2,
                              own ? x_shape : x_shape + 1, &x) != EIN_OK) {
      orc_die("out of memory");
    }
    snprintf(name, sizeof name, "t%d", k);
    ein_role role = last || chance(15) ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP;
    if (eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, EIN_NONE, 3, shape[swap],
                              &out) != EIN_OK) {
      orc_die("out of memory");
    }
    ops[0] = id;
    ops[1] = x;
    if (eini_graph_add_stmt(g, out, 4, 2, ops, &s) != EIN_OK) orc_die("out of memory");
    const int64_t extent[4] = {e, f, b, a};  // the columns
    for (int i = 0; i < 4; i++) s->index[i].name = "i", s->index[i].extent = extent[i];
    s->nfree = 3;
    s->fold = chance(70) ? EIN_FOLD_SUM : chance(50) ? EIN_FOLD_MAX : EIN_FOLD_MIN;
    eini_arena *ar = &g->arena;
    int full = 0;
    for (int r = 0; r < 3; r++) {
      const int in_axis[2][3] = {{0, 1, 3}, {3, 0, 1}}, out_axis[2][3] = {{0, 1, 2}, {2, 0, 1}};
      full |= eini_map_set(ar, &s->proj[0], r, in_axis[turned][r], 1) != EIN_OK;
      full |= eini_map_set(ar, &s->out_map, r, out_axis[swap][r], 1) != EIN_OK;
    }
    if (own) full |= eini_map_set(ar, &s->proj[1], 0, 0, 1) != EIN_OK;
    full |= eini_map_set(ar, &s->proj[1], own, 3, 1) != EIN_OK;
    full |= eini_map_set(ar, &s->proj[1], own + 1, 2, 1) != EIN_OK;
    if (full) orc_die("out of memory");
    turned = swap;
    builder bu;
    bu.g = g;
    bu.e = &s->expr;
    bu.noperand = 2;
    bu.nindex = 4;
    int p = node(&bu, EIN_OP_OPERAND, 0, 0, 0), q = node(&bu, EIN_OP_OPERAND, 1, 0, 0);
    if (chance(15)) {
      int i = node(&bu, EIN_OP_INDEX, (int)draw(0, 3), 0, 0);
      q = node(&bu, EIN_OP_ADD, q, i, 0);
    }
    root = node(&bu, s->fold == EIN_FOLD_SUM && chance(85) ? EIN_OP_MUL : EIN_OP_ADD, p, q, 0);
    (void)root;
    if (eini_stmt_finish(g, s, NULL) != EIN_OK) {
      ein_graph_destroy(g);
      return NULL;
    }
    eini_tensor_fix_dtype(&g->tensor[out]);
  }
  return g;
}

static ein_graph *draw_graph(const ein_ctx *ctx) {
  if (chance(15)) return draw_chain(ctx);
  ein_graph *g = eini_graph_new(ctx);
  if (g == NULL) orc_die("out of memory");
  for (int n = (int)draw(0, 2), k = 0; k < n; k++) {
    ein_scalar v = {1, 0, 0};
    int id;
    v.re = (double)draw(-16, 16) / 8;
    if (eini_graph_add_param(g, "p", 1, chance(70) ? EIN_F64 : EIN_F32, v, &id) != EIN_OK) {
      orc_die("out of memory");
    }
  }
  for (int n = chance(60) ? 1 : (int)draw(2, 3), k = 0; k < n; k++) {
    if (!add_statement(g, k, k == n - 1)) {
      ein_graph_destroy(g);
      return NULL;
    }
  }
  return g;
}

// ---- buffers ------------------------------------------------------------------------------------

// A strided buffer with guards, and the dense copy the oracle works on.
typedef struct buffer {
  int64_t stride[MAX_RANK];
  int64_t base, cells;  // element (0, .., 0) and size of raw, in elements
  char *raw, *before;   // before: raw as it was
  void *dense;
  double *err;
  int64_t count;
} buffer;

// A random layout: axes in any order, gaps, reversed axes, for inputs also stride 0.
static void draw_layout(const eini_tensor *t, int plain, buffer *b) {
  int order[MAX_RANK];
  int64_t step = 1, low = 0, high = 0;
  for (int r = 0; r < t->rank; r++) order[r] = t->rank - 1 - r;
  for (int r = t->rank - 1; r > 0 && !plain && chance(60); r--) {
    int j = (int)draw(0, r), o = order[r];
    order[r] = order[j];
    order[j] = o;
  }
  for (int k = 0; k < t->rank; k++) {
    int r = order[k];
    int64_t e = t->shape[r] < 1 ? 1 : t->shape[r];
    if (!plain && chance(12)) step *= 2;
    b->stride[r] = step;
    if (!plain && t->role == EIN_ROLE_INPUT && chance(6)) {
      b->stride[r] = 0;
      continue;
    }
    step *= e;
    if (!plain && chance(8)) step += draw(1, 3);
    if (!plain && chance(15)) b->stride[r] = -b->stride[r];
  }
  for (int r = 0; r < t->rank; r++) {
    if (t->shape[r] > 1) *(b->stride[r] < 0 ? &low : &high) += b->stride[r] * (t->shape[r] - 1);
  }
  b->base = GUARD - low + (plain ? 0 : draw(0, 3));
  b->cells = b->base + high + 1 + GUARD;
}

// Gathers the elements into the dense copy, or marks their places.
static void each_element(const eini_tensor *t, buffer *b, int to_dense, char *mark) {
  size_t size = orc_size(t->dtype);
  for (int64_t k = 0; k < b->count; k++) {
    int64_t rest = k, at = b->base;
    for (int r = t->rank - 1; r >= 0; r--) {
      at += rest % t->shape[r] * b->stride[r];
      rest /= t->shape[r];
    }
    if (mark != NULL) mark[at] = 1;
    if (to_dense) memcpy((char *)b->dense + (size_t)k * size, b->raw + (size_t)at * size, size);
  }
}

static void buffer_make(const eini_tensor *t, int plain, uint64_t seed, buffer *b) {
  memset(b, 0, sizeof *b);
  b->count = orc_count(t);
  size_t size = orc_size(t->dtype);
  b->dense = orc_alloc(b->count, size);
  b->err = (double *)orc_alloc(b->count, sizeof *b->err);
  if (t->role == EIN_ROLE_TEMP) return;
  draw_layout(t, plain, b);
  b->raw = (char *)orc_alloc(b->cells, size);
  b->before = (char *)orc_alloc(b->cells, size);
  if (orc_one_pass) orc_special_fill(t->dtype, b->cells, b->raw, seed);
  else orc_random_fill(t->dtype, b->cells, b->raw, seed);
  memcpy(b->before, b->raw, (size_t)b->cells * size);
  each_element(t, b, 1, NULL);
}

static void buffer_free(buffer *b) {
  free(b->raw);
  free(b->before);
  free(b->dense);
  free(b->err);
}

// ---- one case -----------------------------------------------------------------------------------

static int64_t elements = 0, undetermined = 0, statements = 0;

#ifndef NO_PLAN
// Nothing but the output's elements may have changed.
static int untouched(const eini_tensor *t, buffer *b) {
  size_t size = orc_size(t->dtype);
  char *mark = (char *)orc_alloc(b->cells, 1);
  int ok = 1;
  if (t->role == EIN_ROLE_OUTPUT) each_element(t, b, 0, mark);
  for (int64_t k = 0; k < b->cells && ok; k++) {
    size_t at = (size_t)k * size;
    ok = mark[k] || memcmp(b->raw + at, b->before + at, size) == 0;
  }
  free(mark);
  if (!ok) printf("  memory of %s outside its elements was written\n", t->name);
  return ok;
}

static void run_backwards(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

static int check_output(const eini_tensor *t, buffer *b) {
  void *want = b->dense;
  b->dense = orc_alloc(b->count, orc_size(t->dtype));
  each_element(t, b, 1, NULL);
  int ok = orc_compare_err(t->dtype, b->count, b->dense, want, b->err);
  if (!ok) printf("  in tensor %s\n", t->name);
  for (int64_t k = 0; k < b->count; k++) undetermined += !(b->err[k] < HUGE_VAL);
  elements += b->count;
  free(want);
  return ok;
}

static int execute(ein_ctx *ctx, const ein_graph *g, buffer *b, const ein_scalar *param) {
  int n = (int)g->ntensor, nin = 0, nout = 0, nlayout = 0, ok = 1;
  ein_ztensor *view = (ein_ztensor *)orc_alloc(n, sizeof *view);
  ein_binding *layout = (ein_binding *)orc_alloc(n, sizeof *layout);
  const void **in = (const void **)orc_alloc(n, sizeof *in);
  void **out = (void **)orc_alloc(n, sizeof *out);
  for (int t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (x->role == EIN_ROLE_TEMP) continue;
    view[t].dtype = x->dtype;
    view[t].rank = x->rank;
    view[t].shape = x->shape;
    view[t].strides = b[t].stride;
    layout[nlayout].name = x->name;
    layout[nlayout++].view = &view[t];
    void *data = b[t].raw + (size_t)b[t].base * orc_size(x->dtype);
    if (x->role == EIN_ROLE_INPUT) in[nin++] = data;
    else out[nout++] = data;
  }
  static const char *const paths[] = {"auto", "naive", "none", "optimal", "dp", "greedy", "random"};
  ein_options options;
  memset(&options, 0, sizeof options);
  options.path = orc_one_pass ? "none" : paths[draw(0, 6)];
  ein_plan *plan = NULL;
  const ein_options *given = !orc_one_pass && chance(70) ? NULL : &options;
  ein_status st = ein_plan_graph(ctx, g, nlayout, layout, given, &plan);
  if (st != EIN_OK) {
    printf("  planning: %s %s\n", ein_status_name(st), ein_ctx_message(ctx));
    ok = 0;
  } else {
    char message[256];
    ein_run run;
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    run.param = param;
    run.error = message;
    run.error_bytes = sizeof message;
    size_t need = ein_plan_workspace(plan);
    char *work = (char *)orc_alloc((int64_t)need + 192, 1);
    size_t skew = 64 - (size_t)((uintptr_t)work % 64);
    if (chance(50)) {
      memset(work, 0x5a, need + 192);
      run.workspace = work + skew;
      run.workspace_bytes = need;
    }
    st = ein_plan_execute(plan, &run);
    if (st != EIN_OK) {
      printf("  executing: %s %s\n", ein_status_name(st), message);
      ok = 0;
    }
    for (size_t k = 0; run.workspace != NULL && k < 64; k++) {
      if (work[skew + need + k] != 0x5a) {
        printf("  the workspace was overrun\n");
        ok = 0;
        break;
      }
    }
    free(work);
  }
  ein_plan_destroy(plan);
  for (int t = 0; t < n && ok; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (x->role == EIN_ROLE_TEMP) continue;
    ok = untouched(x, &b[t]);
    if (ok && x->role == EIN_ROLE_OUTPUT) ok = check_output(x, &b[t]);
  }
  free(view);
  free(layout);
  free(in);
  free(out);
  return ok;
}
#endif  // NO_PLAN

// Checks a graph, which ends here. 1: passed.
static int run_graph(ein_ctx *ctx, ein_graph *g, int verbose) {
  int n = (int)g->ntensor, plain = chance(40), ok = 1;
  orc_one_pass = chance(25);
  buffer *b = (buffer *)orc_alloc(n, sizeof *b);
  void **data = (void **)orc_alloc(n, sizeof *data);
  double **err = (double **)orc_alloc(n, sizeof *err);
  ein_scalar param[2] = {{0, 0, 0}, {0, 0, 0}};
  if (chance(50)) {
    param[0].set = 1;
    param[0].re = 0.75;
  }
  for (int t = 0; t < n; t++) {
    buffer_make(&g->tensor[t], plain, rng(), &b[t]);
    data[t] = b[t].dense;
    err[t] = b[t].err;
  }
  if (verbose) dump_graph(g);
  orc_eval_err(g, data, err, param);
  statements += g->nstmt;
#ifndef NO_PLAN
  ok = execute(ctx, g, b, param);
#endif
  if (!ok) {
    if (!verbose) dump_graph(g);
    for (int t = 0; t < n; t++) {
      if (g->tensor[t].role == EIN_ROLE_TEMP) continue;
      printf("  strides of %s:", g->tensor[t].name);
      for (int r = 0; r < g->tensor[t].rank; r++) printf(" %lld", (long long)b[t].stride[r]);
      printf("\n");
    }
  }
  for (int t = 0; t < n; t++) buffer_free(&b[t]);
  free(b);
  free(data);
  free(err);
  ein_graph_destroy(g);
  return ok;
}

// Draws graphs until one is legal, and checks it. 1: passed.
static int run_case(ein_ctx *ctx, uint64_t seed, int64_t number, int verbose) {
  ein_graph *g = NULL;
  rng_state = orc_hash(seed, (uint64_t)number);
  while (g == NULL) g = draw_graph(ctx);
  const int ok = run_graph(ctx, g, verbose);
  if (!ok) printf("FAIL case %lld of seed %llu\n", (long long)number, (unsigned long long)seed);
  return ok;
}

// ---- functions as factors -----------------------------------------------------------------------

// Contractions of values that are made while packing, several blocks of them, and what is stored.
static const char *const functional[] = {
    "Y[i,j] = sum[k]((2*A[i,k] + 1) * (B[k,j]*0.5 - 3))\n",
    "Y[j,i] = sum[k]((2*A[i,k] + 1) * B[k,j])\n",
    "Y[i,j] = sum[k](A[i,k] * tanh(B[k,j])) * C[i,j] + V[i]\n",
    "T[i,j] = sum[k](exp(A[i,k]*0.25) * B[k,j])\nY[j,i] = 0.5*T[i,j] - C[i,j]*V[i]\n",
    "Y[i,j] = sum[k](A[i,k]*V[i] * B[k,j]*W[k])\n",
    "Y[i,j] = sum[k](cos(i*k*0.5)*A[i,k] * (B[k,j] + k))\n",
    "Y[i] = sum[k]((A[i,k] - 1) * W[k])\n",
    "Y = sum[i,k]((A[i,k] - 1) * (A[i,k] + V[i]))\n",
    "Y[k] = sum[i](abs(A[i,k]) * (V[i] + 0.25))\n",
    "Y[b,i,j] = sum[k]((A[i,k] + D[b,k,j]) * (D[b,k,j]*2 - 1))\n",
    "Y[b,i,j] = sum[k]((A[i,k]*A[i,k]) * (D[b,k,j]*2 - 1)) + C[i,j]\n",
    "Y[i,j] = min[k]((A[i,k]*2) + abs(B[k,j] - 1))\n",
    "Y[i,j] = max[k]((A[i,k]*2) + abs(B[k,j] - 1)) + C[i,j]\n"};

static int run_functional(ein_ctx *ctx, uint64_t seed) {
  static const char *const type[] = {"f64", "f32", "i32", "f16"};
  static const int extent[][3] = {{29, 41, 23}, {7, 64, 19}, {64, 7, 19}, {5, 3, 70}};
  int ok = 1;
  for (int k = 0; k < (int)(sizeof functional / sizeof *functional); k++) {
    for (int e = 0; e < 4; e++) {
      for (int t = 0; t < 4; t++) {
        char text[512];
        ein_program_desc d;
        ein_graph *g = NULL;
        if (t == 2 && (strpbrk(functional[k], ".x") != NULL || strstr(functional[k], "tanh")))
          continue;
        snprintf(text, sizeof text,
                 "input A[i=%d,k=%d], B[k,j=%d], C[i,j], D[b=3,k,j], V[i], W[k] : %s\n%soutput Y\n",
                 extent[e][0], extent[e][2], extent[e][1], type[t], functional[k]);
        memset(&d, 0, sizeof d);
        d.text = text;
        if (ein_graph_parse(ctx, &d, &g) != EIN_OK) orc_die(ein_ctx_message(ctx));
        rng_state = orc_hash(seed, (uint64_t)(k * 16 + e * 4 + t));
        if (run_graph(ctx, g, 0)) continue;
        printf("FAIL of seed %llu\n%s", (unsigned long long)seed, text);
        ok = 0;
      }
    }
  }
  return ok;
}

// ---- out of memory ------------------------------------------------------------------------------

// Plans a graph and fails the n-th allocation, for n = 0, 1, .. until planning succeeds: every
// failure is a status, and nothing is lost. Groups, leaves and layouts of temporaries take part.
// Where tests are fewer, so are the later ones of these.
static int check_memory(const ein_kernels *const *kernels, const ein_graph *graph) {
  for (long n = 0; n < 100000; n += fewer() > 1 ? 1 + n / 4 : 1) {
    counter c = {0, n, 0};
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    ein_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    desc.allocator.alloc_fn = count_alloc;
    desc.allocator.free_fn = count_free;
    desc.allocator.user = &c;
    desc.executor.width = 3;
    desc.executor.parallel_for = run_backwards;
    desc.nkernels = 1;
    desc.kernels = kernels;
    ein_status st = ein_ctx_create(&desc, &ctx);
    if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan);
    int done = c.calls <= n;
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
    if (c.live != 0 || (done ? st != EIN_OK : st != EIN_ERR_NO_MEMORY)) {
      printf("allocation %ld failed: %s, %ld blocks are lost\n", n, ein_status_name(st), c.live);
      return 0;
    }
    if (done) return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  int64_t count = argc > 1 ? strtoll(argv[1], NULL, 10) : FEW(3000), failures = 0;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int64_t only = argc > 3 ? strtoll(argv[3], NULL, 10) : -1;
  ein_ctx_desc desc;
  enum { CTXS = 4 };
  ein_ctx *ctx[CTXS];
  const ein_kernels *kernels[1];
  memset(&desc, 0, sizeof desc);
#ifdef TEST_OPENBLAS
  ein_openblas *blas;
  const int threads = (int)(seed % 2) + 1;  // OpenBLAS's own, of the whole process
  openblas_set_num_threads(threads);
  if (ein_openblas_create(NULL, NULL, &blas) != EIN_OK) orc_die("no OpenBLAS");
  ein_kernels eager_one = eager_of(ein_openblas_kernels(blas));
#elif defined(TEST_CPU)
  ein_cpu *cpu;
  ein_cpu_desc machine = {3, argc > 4 ? argv[4] : NULL, 0, 0};
  ein_status st = ein_cpu_create(&machine, NULL, &cpu);
  if (st == EIN_ERR_UNSUPPORTED) {
    printf("skipped: this machine has no %s\n", machine.isa);
    return 77;
  }
  if (st != EIN_OK) orc_die("no ein_cpu");
  ein_kernels eager_one = eager_of(ein_cpu_kernels(cpu));
#elif defined(TEST_CUDA)  // the path of tests/cuda_stub.c's object
  ein_cuda *cuda;
  const ein_cuda_desc device = {0, 0, 0, NULL, TEST_CUDA, TEST_CUDA, TEST_CUDA, NULL};
  if (ein_cuda_create(&device, NULL, &cuda) != EIN_OK || !ein_cuda_ready(cuda))
    orc_die("no ein_cuda");
  ein_kernels eager_one = eager_of(ein_cuda_kernels(cuda));
#else
  ein_kernels eager_one = naive_kernels;
#endif
  for (int k = 0; k < CTXS; k++) {
    kernels[0] = k == 2 ? &naive_kernels : &eager_one;
#ifndef NO_PLAN
    desc.executor.width = k == 0 ? 1 : 3;
    desc.nkernels = k >= 2;
    desc.kernels = kernels;
    desc.executor.parallel_for = run_backwards;
#endif
    if (ein_ctx_create(&desc, &ctx[k]) != EIN_OK) orc_die("no ctx");
    register_all(ctx[k]);
  }
  printf("seed %llu\n", (unsigned long long)seed);
  for (int64_t k = 0; k < count && failures < 10; k++) {
    if (only >= 0 && k != only) continue;
    failures += !run_case(ctx[k % CTXS], seed, k, only >= 0);
  }
#ifdef TEST_OPENBLAS
  openblas_set_num_threads(1);  // so that the provider cuts
#endif
  for (int k = 0; k < CTXS && only < 0; k++) failures += !run_functional(ctx[k], seed);
#ifdef TEST_OPENBLAS
  openblas_set_num_threads(threads);
#endif
  kernels[0] = &eager_one;
  for (int k = 0; k < 6 && only < 0; k++) {
    ein_graph *g = NULL;
    rng_state = seed + (uint64_t)k;
    while (g == NULL) g = draw_chain(ctx[0]);
    failures += !check_memory(kernels, g);
    ein_graph_destroy(g);
  }
  int64_t patterns = 0;
  if (only < 0) {  // the portable kernels, those of the provider wherever they can, and in earnest
    ein_ctx *by[3] = {ctx[0], ctx[3], NULL};
    memset(&desc, 0, sizeof desc);
#ifdef TEST_OPENBLAS
    if (ein_openblas_use(blas, &desc) != EIN_OK) orc_die("no room");
#elif defined(TEST_CPU)
    if (ein_cpu_use(cpu, &desc) != EIN_OK) orc_die("no room");
#elif defined(TEST_CUDA)
    if (ein_cuda_use(cuda, &desc) != EIN_OK) orc_die("no room");
#endif
    if (ein_ctx_create(&desc, &by[2]) != EIN_OK) orc_die("no ctx");
    failures += patterns_run(by, 3, PATTERNS, &patterns);
    ein_ctx_destroy(by[2]);
    printf("%lld patterns of labels\n", (long long)patterns);
  }
  for (int k = 0; k < CTXS; k++) ein_ctx_destroy(ctx[k]);
#ifdef TEST_OPENBLAS
  ein_openblas_destroy(blas);
  if (openblas_get_num_threads() != threads) {
    printf("the process's number of OpenBLAS threads was changed\n");
    failures++;
  }
#elif defined(TEST_CPU)
  ein_cpu_destroy(cpu);
#elif defined(TEST_CUDA)
  const ein_cuda_counts ran = ein_cuda_counts_get(cuda);
  printf("%lld kernels compiled, %lld started, %lld products\n", (long long)ran.compiled,
         (long long)ran.launches, (long long)ran.gemms);
  if (ran.launches < count / 2 || ran.gemms == 0) failures++;
  ein_cuda_destroy(cuda);
#endif
  if (elements > 0) {
    printf("%lld statements, %lld elements, %.1f%% undetermined\n", (long long)statements,
           (long long)elements, 100.0 * (double)undetermined / (double)elements);
  }
  if (failures > 0) {
    printf("%lld failures\n", (long long)failures);
    return 1;
  }
  printf("ok %lld cases\n", (long long)count);
  return 0;
}
