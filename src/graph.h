// ================================================================================================
// >>graph  tensors and statements
// The one representation: out[out_map(i)] = fold over reduced i of expr(operand[k][proj_k(i)], ..).
// Invariant after eini_stmt_finish: every access is proved inside its tensor, every node typed.
// ================================================================================================

typedef struct eini_index {
  const char *name;
  int64_t extent;
} eini_index;

typedef struct eini_tensor {
  const char *name;
  ein_role role;
  ein_dtype dtype;       // storage dtype
  int dtype_open;        // 1: the dtype is still the promotion of the pieces seen so far
  int rank;
  int64_t *shape;        // NULL until sealed
  const int64_t *given;  // shape the builder was told, or NULL
  int partial;           // its only statement leaves elements out; they are zero
  int shift;             // softmax's max: what is made of it does not depend on its value
  int64_t pos;           // byte in the source, or -1
  int nstmt;             // defining statements so far
  int64_t line;
} eini_tensor;

// Results that are states of the statement's fold, into which a block of its points is folded: what
// a statement over all points would make is what blocks make one after another, finished.
typedef struct eini_carry {
  int state[4];          // tensors of the fold's scalars; state[0] is the statement's output
  const int64_t *extent; // nindex: of the indices of all points, which positions are counted in
  const int *origin;     // nindex: param that holds the first value of an index; -1: 0
} eini_carry;

typedef struct eini_stmt {
  int out;               // tensor
  ein_zmap out_map;      // rank(out) x nindex; columns of reduced indices are 0
  int nindex, nfree;     // free indices first, then the reduced ones in the order written
  eini_index *index;
  int noperand;
  int *operand;          // tensors
  ein_zmap *proj;        // rank(operand) x nindex
  eini_expr expr;        // last node is the root; typed by eini_stmt_finish
  int fold;              // eini_fold, or EINI_FOLD_USER + number
  int numpy;             // NumPy string: bool sums by or
  ein_dtype type;        // logical dtype of the result, before it is stored
  ein_rest rest;         // what happens to elements of out that out_map does not reach
  int order;             // how kernels must fold, EINI_ORDER_*; 0: as they like
  const eini_carry *carry;  // NULL: results are finished values
  int64_t pos;           // byte in the source, or -1
  int64_t line;          // line in the source, or 0
} eini_stmt;

// Ways of folding that blocks of a statement share: chunks along reduced indices, or along free
// ones, one reduced value after the other; in tiles of a contraction where there are kernels.
enum { EINI_ORDER_ACROSS = 1, EINI_ORDER_DOWN = 2, EINI_ORDER_TILES = 4 };

struct ein_graph {
  eini_arena arena;
  eini_tensor *tensor;
  int64_t ntensor, captensor;
  eini_stmt *stmt;
  int64_t nstmt, capstmt;
  eini_param *param;
  int64_t nparam, capparam;
  ein_function *function;
  int nfunction;
  ein_monoid *monoid;
  int nmonoid;
  int ordered;             // 1: made by section order: statements run as they are, in their order
  int open;                // while it is being built: the first mistake, and where messages go
  ein_status status;
  eini_diag *diag;
};

static void eini_graph_free(ein_graph *g) {
  if (g == NULL) return;
  eini_arena arena = g->arena;  // the graph lives in its own arena
  eini_arena_free(&arena);
}

// The name as a C string in the arena; NULL when out of memory.
static ein_status eini_graph_add_tensor(ein_graph *g, const char *name, int64_t len, ein_role role,
                                        ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  eini_tensor *p =
      (eini_tensor *)eini_grow(&g->arena, g->tensor, g->ntensor, &g->captensor, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->tensor = p;
  eini_tensor *t = &g->tensor[g->ntensor];
  memset(t, 0, sizeof *t);
  t->name = eini_strndup(&g->arena, name, len);
  t->role = role;
  t->dtype = dtype;
  t->dtype_open = dtype == EIN_NONE;
  t->rank = rank;
  t->pos = -1;
  if (t->name == NULL) return EIN_ERR_NO_MEMORY;
  if (shape != NULL) {
    t->shape = EINI_NEW(&g->arena, int64_t, rank);
    if (t->shape == NULL) return EIN_ERR_NO_MEMORY;
    if (rank > 0) memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
  }
  *id = (int)g->ntensor++;
  return EIN_OK;
}

static ein_status eini_graph_add_param(ein_graph *g, const char *name, int64_t len,
                                       ein_dtype dtype, ein_scalar value, int *id) {
  eini_param *p = (eini_param *)eini_grow(&g->arena, g->param, g->nparam, &g->capparam, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->param = p;
  p = &g->param[g->nparam];
  memset(p, 0, sizeof *p);
  p->name = eini_strndup(&g->arena, name, len);
  p->dtype = dtype;
  p->value = value;
  if (p->name == NULL) return EIN_ERR_NO_MEMORY;
  *id = (int)g->nparam++;
  return EIN_OK;
}

// Copies registrations, so that a graph does not depend on its ctx.
static ein_status eini_graph_register(ein_graph *g, int nfunction, const ein_function *function,
                                      int nmonoid, const ein_monoid *monoid) {
  g->nfunction = nfunction;
  g->nmonoid = nmonoid;
  g->function = EINI_NEW(&g->arena, ein_function, nfunction);
  g->monoid = EINI_NEW(&g->arena, ein_monoid, nmonoid);
  if (g->function == NULL || g->monoid == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nfunction; i++) g->function[i] = function[i];
  for (int i = 0; i < nmonoid; i++) {
    g->monoid[i] = monoid[i];
    g->monoid[i].name = eini_strndup(&g->arena, monoid[i].name, (int64_t)strlen(monoid[i].name));
    if (g->monoid[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Maps are dense: thousands of operands over as many indices would take gigabytes.
#define EINI_CELLS_MOST ((int64_t)1 << 26)  // of the maps in an arena

static ein_status eini_zmap_new(eini_arena *a, int rows, int cols, ein_zmap *m) {
  int64_t n;
  if (eini_mul_overflow(rows, cols, &n) || (a->cells += n) > EINI_CELLS_MOST)
    return EIN_ERR_TOO_LARGE;
  m->rows = rows;
  m->cols = cols;
  m->block = NULL;
  m->coef = EINI_NEW(a, int64_t, n);
  m->offset = EINI_NEW(a, int64_t, rows);
  return m->coef == NULL || m->offset == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Copies a map into one of its size; no offset: zeros.
static void eini_zmap_fill(ein_zmap *to, const ein_zmap *from) {
  size_t rows = (size_t)to->rows, cells = rows * (size_t)to->cols;
  if (cells > 0) memcpy(to->coef, from->coef, cells * sizeof *to->coef);
  if (rows > 0 && from->offset != NULL) memcpy(to->offset, from->offset, rows * sizeof *to->offset);
}

EINI_UNUSED static int eini_zmap_equal(const ein_zmap *a, const ein_zmap *b) {
  size_t rows = (size_t)a->rows, cells = rows * (size_t)a->cols;
  return a->rows == b->rows && a->cols == b->cols &&
         (rows == 0 || memcmp(a->offset, b->offset, rows * sizeof *a->offset) == 0) &&
         (cells == 0 || memcmp(a->coef, b->coef, cells * sizeof *a->coef) == 0);
}

// Appends a statement with room for its indices and operands; the caller fills index[], nfree,
// operand[] and the maps (zero at first), expr and fold. *s is valid until the next call.
static ein_status eini_graph_add_stmt(ein_graph *g, int out, int nindex, int noperand,
                                      const int *operand, eini_stmt **s) {
  eini_stmt *p = (eini_stmt *)eini_grow(&g->arena, g->stmt, g->nstmt, &g->capstmt, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->stmt = p;
  p = &g->stmt[g->nstmt];
  memset(p, 0, sizeof *p);
  p->out = out;
  p->nindex = p->nfree = nindex;
  p->noperand = noperand;
  p->index = EINI_NEW(&g->arena, eini_index, nindex);
  p->operand = EINI_NEW(&g->arena, int, noperand);
  p->proj = EINI_NEW(&g->arena, ein_zmap, noperand);
  p->pos = -1;
  if (p->index == NULL || p->operand == NULL || p->proj == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(&g->arena, g->tensor[out].rank, nindex, &p->out_map));
  for (int k = 0; k < noperand; k++) {
    p->operand[k] = operand[k];
    EINI_TRY(eini_zmap_new(&g->arena, g->tensor[operand[k]].rank, nindex, &p->proj[k]));
  }
  g->nstmt++;
  g->tensor[out].nstmt++;
  *s = p;
  return EIN_OK;
}

// Is the statement's index space empty? Then nothing is accessed.
static int eini_stmt_empty(const eini_stmt *s, int from, int to) {
  for (int i = from; i < to; i++)
    if (s->index[i].extent == 0) return 1;
  return 0;
}

// Proves that a map stays inside a tensor (GRAMMAR rule 6). *row is the coordinate that leaves it.
static ein_status eini_map_bounds(const ein_zmap *m, const eini_index *index, const int64_t *shape,
                                  eini_arena *scratch, int *row, int64_t *bad) {
  int64_t *extent = EINI_NEW(scratch, int64_t, m->cols);
  if (extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < m->cols; c++) {
    extent[c] = index[c].extent;
    if (extent[c] == 0) return EIN_OK;
  }
  for (int r = 0; r < m->rows; r++) {
    int64_t lo, hi;
    *row = r;
    EINI_TRY(eini_zmap_row_range(m->coef + (int64_t)r * m->cols, m->cols, m->offset[r], extent,
                                 &lo, &hi));
    if (lo < 0 || hi >= shape[r]) {
      *bad = lo < 0 ? lo : hi;
      return EIN_ERR_BOUNDS;
    }
  }
  return EIN_OK;
}

// Types the statement, proves its accesses, decides the dtype of its tensor. Call it once the
// operands' tensors are sealed and s is filled. Errors are reported at node or statement positions.
static ein_status eini_stmt_finish(ein_graph *g, eini_stmt *s, eini_diag *diag) {
  eini_typing ty;
  memset(&ty, 0, sizeof ty);
  ein_dtype *od = EINI_NEW(&g->arena, ein_dtype, s->noperand);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) od[k] = g->tensor[s->operand[k]].dtype;
  ty.operand = od;
  ty.param = g->param;
  ty.function = g->function;
  ty.diag = diag;
  eini_expr typed;
  EINI_TRY(eini_expr_type(&g->arena, &ty, &s->expr, &typed));
  ein_dtype t = (ein_dtype)typed.node[typed.n - 1].dtype;
  if (s->fold != EINI_FOLD_NONE) {
    int fold = s->fold;
    int order = fold == EINI_MAX || fold == EINI_MIN || fold == EINI_ARGMAX || fold == EINI_ARGMIN;
    if (eini_kind_of(t) == EINI_KCOMPLEX && (order || fold == EINI_LOGSUMEXP || fold == EINI_VAR))
      return eini_fail(diag, EIN_ERR_DTYPE, s->pos, 1, "reduce real(z), imag(z) or abs(z)",
                       "%s of complex numbers is not defined", eini_folds[fold].name);
    if (t == EIN_BOOL && (fold == EINI_SUM || fold == EINI_PROD) && !s->numpy) t = EIN_I64;
    const ein_monoid *m = fold >= EINI_FOLD_USER ? &g->monoid[fold - EINI_FOLD_USER] : NULL;
    if (eini_stmt_empty(s, s->nfree, s->nindex) && !eini_stmt_empty(s, 0, s->nfree) &&
        (m != NULL ? m->no_identity : !eini_folds[fold].has_identity)) {
      return eini_fail(diag, EIN_ERR_EMPTY, s->pos, 1, NULL, "%s of nothing",
                       m != NULL ? m->name : eini_folds[fold].name);
    }
    t = m != NULL ? m->dtype : eini_fold_dtype(fold, t);
  }
  s->expr = typed;
  s->type = t;
  eini_tensor *out = &g->tensor[s->out];
  if (out->dtype_open) out->dtype = ein_dtype_promote(out->dtype, t);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &g->tensor[s->operand[k]];
    int row = 0;
    int64_t bad = 0;
    ein_status st = eini_map_bounds(&s->proj[k], s->index, x->shape, &g->arena, &row, &bad);
    if (st == EIN_OK) continue;
    if (st == EIN_ERR_NO_MEMORY) return st;
    return eini_fail(diag, st, s->pos, 1,
                     s->pos < 0 ? NULL : "an edge rule like X[i-1 | 0] says what is read outside",
                     "coordinate %d of '%s' reaches %lld, its extent is %lld", row, x->name,
                     (long long)bad, (long long)x->shape[row]);
  }
  return EIN_OK;
}

// Once all pieces of a tensor are known: a temporary keeps its computation type (GRAMMAR rule 8).
static void eini_tensor_fix_dtype(eini_tensor *t) {
  if (!t->dtype_open) return;
  if (t->role == EIN_ROLE_TEMP) t->dtype = ein_dtype_compute(t->dtype);
  t->dtype_open = 0;
}

EIN_API void ein_graph_destroy(ein_graph *g) { eini_graph_free(g); }

EIN_API int ein_graph_tensors(const ein_graph *g) { return g == NULL ? 0 : (int)g->ntensor; }

EIN_API int ein_graph_tensor(const ein_graph *g, int i, ein_tensor_info *info) {
  if (g == NULL || info == NULL || i < 0 || i >= g->ntensor) return 0;
  const eini_tensor *t = &g->tensor[i];
  info->name = t->name;
  info->role = t->role;
  info->dtype = t->dtype;
  info->rank = t->rank;
  info->shape = t->shape;
  return 1;
}

EIN_API int ein_graph_params(const ein_graph *g) { return g == NULL ? 0 : (int)g->nparam; }

static void eini_param_info(const eini_param *p, ein_param_info *info) {
  info->name = p->name;
  info->dtype = p->dtype;
  info->has_default = p->value.set;
  info->value = p->value;
}

EIN_API int ein_graph_param(const ein_graph *g, int i, ein_param_info *info) {
  if (g == NULL || info == NULL || i < 0 || i >= g->nparam) return 0;
  eini_param_info(&g->param[i], info);
  return 1;
}
