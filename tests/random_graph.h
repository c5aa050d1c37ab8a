// Random graphs of statements, their values by the oracle, and a ctx whose tasks run on threads.
// Include after einsum.h's implementation, oracle.h, check.h and util.h.

#include "threads.h"
#include "monoids.h"

// ---- random graphs ------------------------------------------------------------------------------

#define MAX_TENSORS 24
#define MAX_INDEX 6

static const char *const names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9",
                                    "t10", "t11", "t12", "t13", "t14", "t15", "t16", "t17", "t18",
                                    "t19", "t20", "t21", "t22", "t23"};
static const char *const index_names[] = {"a", "b", "c", "d", "e", "f"};

typedef struct random_stmt {
  int64_t extent[MAX_INDEX], coef[4][4 * MAX_INDEX], offset[4][4], out_coef[4 * MAX_INDEX],
      out_offset[4];
  int operand[3];
  ein_zmap proj[3];
  ein_stmt_desc d;
} random_stmt;

static ein_dtype random_dtype(void) {
  static const ein_dtype list[] = {EIN_F64, EIN_F64, EIN_F32, EIN_F32, EIN_I32, EIN_I64, EIN_F16,
                                   EIN_I8, EIN_BOOL, EIN_C64};
  return list[draw(0, 9)];
}

// A random access of a tensor: every coordinate a sum of up to two terms that stays inside. 0: no
// access fits.
static int random_access(const eini_tensor *t, random_stmt *s, int k) {
  ein_zmap *m = &s->proj[k];
  int n = s->d.nindex, empty = 0;
  memset(m, 0, sizeof *m);
  memset(s->coef[k], 0, sizeof s->coef[k]);
  m->rows = t->rank;
  m->cols = n;
  m->coef = s->coef[k];
  m->offset = s->offset[k];
  for (int i = 0; i < n; i++) empty |= s->extent[i] == 0;
  for (int r = 0; r < t->rank; r++) {
    int64_t lo = 0, hi = 0;
    for (int terms = chance(75) ? 1 : 2; terms > 0 && n > 0 && !chance(8); terms--) {
      int i = (int)draw(0, n - 1);
      int64_t c = chance(75) ? 1 : draw(-2, 3), span = eini_max64(s->extent[i] - 1, 0);
      int64_t old = m->coef[r * n + i];
      if (old != 0 || hi - lo + eini_abs64(c) * span >= eini_max64(t->shape[r], 1)) continue;
      m->coef[r * n + i] = c;
      lo += c < 0 ? c * span : 0;
      hi += c > 0 ? c * span : 0;
    }
    int64_t room = t->shape[r] - 1 - (hi - lo);
    if (room < 0 && !empty) return 0;
    m->offset[r] = -lo + (room > 0 ? draw(0, room) : 0);
  }
  return 1;
}

static const char *random_map(int nop, int n, int has_param, int is_complex) {
  static const char *const one[] = {"x0", "x0*2", "tanh(x0)", "abs(x0-1)", "where(x0>0,x0,0)"};
  static const char *const two[] = {"x0*x1", "x0+x1", "(x0-x1)*(x0-x1)", "max(x0,x1)",
                                    "x0/(2+x1*x1)"};
  if (is_complex) return NULL;
  if (n > 0 && chance(20)) return nop > 1 ? "x0*(a+1)+x1" : "x0*(a+1)";
  if (n > 1 && chance(10)) return nop > 1 ? "where(b>=a,x0,x1)" : "where(b>=a,x0,0)";
  if (has_param && chance(20)) return "x0*s";
  if (chance(40)) return NULL;
  return nop == 1 ? one[draw(0, 4)] : nop == 2 ? two[draw(0, 4)] : NULL;
}

static const char *random_fold(int is_complex) {
  static const char *const list[] = {"sum", "mean", "sum", "prod", "max", "min", "any", "all",
                                     "logsumexp", "argmax", "mean", "var", "argmin", "sum", "span",
                                     "spread", "parity"};
  return is_complex ? list[draw(0, 3)] : list[draw(0, 16)];
}

static ein_ctx *monoid_ctx(void) {
  ein_ctx *ctx = NULL;
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  monoids_add(ctx);
  return ctx;
}

// Adds a statement for a new tensor of up to 3 axes, in one or two pieces. 0: nothing fits.
static int random_stmt_add(ein_graph *g, int id, int has_param) {
  static random_stmt s;
  memset(&s, 0, sizeof s);
  int n = s.d.nindex = (int)draw(0, 4), nop = s.d.noperand = (int)draw(1, 3), is_complex = 0, rank;
  s.d.nfree = n == 0 ? 0 : (int)draw(0, n > 3 ? 3 : n);
  for (int i = 0; i < n; i++) s.extent[i] = chance(3) ? 0 : chance(12) ? 1 : draw(2, 7);
  for (int k = 0, tries = 0; k < nop; k++) {
    do {
      if (++tries > 60) return 0;
      s.operand[k] = k > 0 && chance(15) ? s.operand[0] : (int)draw(0, id - 1);
    } while (!random_access(&g->tensor[s.operand[k]], &s, k));
    ein_dtype t = g->tensor[s.operand[k]].dtype;
    is_complex |= t == EIN_C64 || t == EIN_C128;
  }
  int style = s.d.nfree == 0 ? 0 : (int)draw(0, 9);  // of the output's first coordinate
  if (style == 8 && s.d.nfree < 2) style = 0;
  rank = s.d.nfree - (style == 8);
  int holes = s.d.nfree > 0 && style == 0 && chance(50);  // Y[2*a,b] or Y[2*a,b,a], zero elsewhere
  rank += holes && rank < 3 && chance(50);
  int64_t shape[3] = {0, 0, 0};
  for (int r = 0; r < rank && holes; r++)
    shape[r] = r == 0 ? 2 * s.extent[0] + 1 : s.extent[r < s.d.nfree ? r : 0] + draw(0, 1);
  if (ein_graph_add_tensor(g, names[id], chance(25) ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP, EIN_NONE,
                           rank, holes ? shape : NULL, NULL) != EIN_OK)
    return 0;
  for (int r = 0; r < rank; r++)
    s.out_coef[r * n + (r < s.d.nfree ? r + (style == 8) : 0)] = r == 0 && holes ? 2 : 1;
  s.d.rest = holes ? EIN_REST_ZERO : EIN_REST_ERROR;
  if (style == 8) {  // Y[E*a+b] or Y[a+E*b]
    int turn = chance(50);
    s.out_coef[turn] = 1;
    s.out_coef[!turn] = eini_max64(s.extent[turn], 1);
    if (s.extent[0] == 0 || s.extent[1] == 0) return 0;
  }
  if (style == 7 && s.extent[0] > 0) {  // backwards
    s.out_coef[0] = -1;
    s.out_offset[0] = s.extent[0] - 1;
  }
  int pieces = style == 5 || style == 6 ? 2 : 1;
  if (pieces == 2 && s.extent[0] == 0) return 0;
  if (style == 6) s.out_coef[0] = 2;  // interleaved
  s.d.out = id;
  s.d.extent = s.extent;
  s.d.index = index_names;
  s.d.operand = s.operand;
  s.d.proj = s.proj;
  s.d.out_map.rows = rank;
  s.d.out_map.cols = n;
  s.d.out_map.coef = s.out_coef;
  s.d.out_map.offset = s.out_offset;
  s.d.fold = n > s.d.nfree ? random_fold(is_complex) : NULL;
  for (int piece = 0; piece < pieces; piece++) {
    s.d.map = random_map(nop, n, has_param, is_complex);
    if (ein_graph_add_statement(g, &s.d) != EIN_OK) return 0;
    s.out_offset[0] += style == 6 ? 1 : s.extent[0];
  }
  return eini_seal_tensor(g, id) == EIN_OK;
}

// A random graph of up to nstmt tensors made by statements; NULL when the dice were bad.
static ein_graph *random_graph(ein_ctx *ctx, int nstmt) {
  ein_graph *g;
  static const ein_scalar half = {1, 0.5, 0};
  if (ein_graph_create(ctx, &g) != EIN_OK) return NULL;
  int id, nin = (int)draw(1, 3), has_param = chance(40);
  for (int k = 0; k < nin; k++) {
    int64_t shape[3];
    int rank = (int)draw(chance(10) ? 0 : 1, 3);
    for (int r = 0; r < rank; r++) shape[r] = chance(2) ? 0 : chance(8) ? 1 : draw(2, 9);
    ein_graph_add_tensor(g, names[k], EIN_ROLE_INPUT, random_dtype(), rank, shape, &id);
  }
  if (has_param) ein_graph_add_param(g, "s", EIN_F32, &half, NULL);
  for (int k = 0; k < nstmt; k++) {
    if (random_stmt_add(g, nin + k, has_param)) continue;
    ein_graph_destroy(g);
    return NULL;
  }
  g->tensor[nin + nstmt - 1].role = EIN_ROLE_OUTPUT;  // so that something is observed
  if (ein_graph_finish(g) == EIN_OK) return g;
  ein_graph_destroy(g);
  return NULL;
}

// ---- random cuts --------------------------------------------------------------------------------

#define MAX_STMTS 24

typedef struct cuts {
  ein_parts parts[MAX_STMTS], pins[MAX_TENSORS];
  int64_t pin_cut[MAX_TENSORS][4];
  int pin_order[MAX_TENSORS][4];
  int64_t cut[MAX_STMTS][MAX_INDEX];
  int order[MAX_STMTS][MAX_INDEX];
} cuts;

// Holds some inputs in random partitions.
static void random_pins(const ein_graph *g, int p, cuts *c) {
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    ein_parts *e = &c->pins[t];
    if (x->role != EIN_ROLE_INPUT || chance(60)) continue;
    e->nindex = x->rank;
    e->cut = c->pin_cut[t];
    e->order = c->pin_order[t];
    e->ntask = 1;
    for (int r = 0; r < x->rank; r++) {
      c->pin_cut[t][r] = eini_max64(1, draw(1, eini_min64(x->shape[r], p / e->ntask) + 1) - 1);
      e->ntask *= c->pin_cut[t][r];
      if (c->pin_cut[t][r] > 1) c->pin_order[t][e->norder++] = r;
    }
  }
}

// Random cuts of every statement for p places, in random orders.
EINI_UNUSED static void random_cuts(const ein_graph *g, int p, cuts *c) {
  memset(c, 0, sizeof *c);
  random_pins(g, p, c);
  for (int k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    ein_parts *e = &c->parts[k];
    e->nindex = s->nindex;
    e->cut = c->cut[k];
    e->order = c->order[k];
    e->ntask = 1;
    for (int i = 0; i < s->nindex; i++) c->cut[k][i] = 1;
    for (int tries = chance(10) ? 0 : 6; tries > 0 && s->nindex > 0; tries--) {
      int i = (int)draw(0, s->nindex - 1);
      int64_t most = eini_min64(s->index[i].extent, p / e->ntask);
      if (c->cut[k][i] > 1 || most < 2) continue;
      c->cut[k][i] = chance(50) ? most : draw(2, most);
      e->ntask *= c->cut[k][i];
      int at = (int)draw(0, e->norder);
      for (int j = e->norder++; j > at; j--) c->order[k][j] = c->order[k][j - 1];
      c->order[k][at] = i;
    }
  }
}

// ---- data ---------------------------------------------------------------------------------------

typedef struct values {
  void *data[MAX_TENSORS];    // of every tensor, by the oracle
  double *err[MAX_TENSORS];
} values;

// With NaN, infinities, zeros of both signs and subnormals among the inputs, for statements that
// nothing splits.
static int values_special = 0;

static void values_make(const ein_graph *g, uint64_t seed, values *v) {
  ein_scalar param[4] = {{0, 0, 0}};
  memset(v, 0, sizeof *v);
  for (int t = 0; t < g->ntensor; t++) {
    int64_t n = orc_count(&g->tensor[t]);
    v->data[t] = orc_alloc(n, 16);
    v->err[t] = (double *)orc_alloc(n, sizeof(double));
    if (g->tensor[t].role == EIN_ROLE_INPUT)
      (values_special ? orc_special_fill : orc_random_fill)(g->tensor[t].dtype, n, v->data[t],
                                                            seed + (uint64_t)t);
  }
  for (int k = 0; k < g->nparam; k++) param[k] = g->param[k].value;
  orc_one_pass = values_special;
  orc_eval_err(g, v->data, v->err, param);
  orc_one_pass = 0;
}

static void values_free(const ein_graph *g, values *v) {
  for (int t = 0; t < g->ntensor; t++) {
    free(v->data[t]);
    free(v->err[t]);
  }
}

EINI_UNUSED static ein_ztensor dense(const eini_tensor *t, void *data) {
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = t->dtype;
  v.rank = t->rank;
  v.shape = t->shape;
  v.data = data;
  return v;
}

EINI_UNUSED static ein_ctx *test_ctx(int width, counter *c) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  if (c != NULL) {
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = c;
  }
  d.executor.width = width;
  d.executor.parallel_for = test_for;
  ein_ctx_create(&d, &ctx);
  return ctx;
}
