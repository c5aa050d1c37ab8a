// ================================================================================================
// >>graph  tensors and statements
// The one representation: out[out_map(i)] = fold over reduced i of expr(operand[k][proj_k(i)], ..).
// Invariant after eini_stmt_finish: every access is proved inside its tensor, every node typed.
// ================================================================================================

typedef struct eini_index {
  const char *name;
  int64_t extent;
} eini_index;

// From the indices of a statement to the coordinates of a tensor: coordinate r is offset[r] + the
// sum of coef * index over the terms from first[r] to first[r + 1]. A map costs what it says, not
// rows * indices.
typedef struct eini_mapterm {
  int index;             // ascending in a row
  int64_t coef;          // not 0
} eini_mapterm;

typedef struct eini_map {
  int rows, cols;
  int *first;            // rows + 1
  eini_mapterm *term;
  int room;              // of terms
  int64_t *offset;
} eini_map;

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
  int spare;             // in a plan, of a fold: the first of its temporaries for blocks, or 0
  int64_t line;
} eini_tensor;

// Results that are states of the statement's fold, into which a block of its points is folded: what
// a statement over all points would make is what blocks make one after another, finished.
typedef struct eini_carry {
  int state[4];          // tensors of the fold's scalars; state[0] is the statement's output
  const int64_t *extent; // nindex: of the indices of all points, which positions are counted in
  const int *origin;     // nindex: param that holds the first value of an index; -1: 0
} eini_carry;

// How a statement is to be computed, where it can be so.
typedef struct eini_hint {
  const char *variant;   // "cpu:gett direct", as ein_options.variant; or NULL
  int unsplit;           // 1: in one pass
} eini_hint;

typedef struct eini_stmt {
  int out;               // tensor
  eini_map out_map;      // rank(out) x nindex; no term of a reduced index
  int nindex, nfree;     // free indices first, then the reduced ones in the order written
  eini_index *index;
  int noperand;
  int *operand;          // tensors
  eini_map *proj;        // rank(operand) x nindex
  eini_expr expr;        // last node is the root; typed by eini_stmt_finish
  int fold;              // ein_fold, or EIN_FOLD_USER + number
  int numpy;             // NumPy string: bool sums by or
  ein_dtype type;        // logical dtype of the result, before it is stored
  double block_flops;    // of a function over blocks: its operations for each point
  ein_rest rest;         // what happens to elements of out that out_map does not reach
  int order;             // how kernels must fold, EINI_ORDER_*; 0: as they like
  const eini_carry *carry;  // NULL: results are finished values
  const eini_hint *hint; // or NULL
  int64_t pos;           // byte in the source, or -1
  int64_t line;          // line in the source, or 0
} eini_stmt;

// Ways of folding that blocks of a statement share: chunks along reduced indices, or along free
// ones, one reduced value after the other; in tiles of a contraction where there are kernels.
enum { EINI_ORDER_ACROSS = 1, EINI_ORDER_DOWN = 2, EINI_ORDER_TILES = 4 };

typedef struct eini_symbols eini_symbols;

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
  const ein_operator **block;  // of each function: what it does to blocks; NULL: it is of scalars
  ein_monoid *monoid;
  int nmonoid;
  int ordered;             // 1: made by section order: statements run as they are, in their order
  int open;                // while it is being built: the first mistake, and where messages go
  ein_status status;
  eini_diag *diag;
  const char *text;        // a program with commands of a schedule, which begin at byte `commands`;
  int64_t length, commands;  //   NULL: there are none
  eini_symbols *symbols;   // what numbers stand for where sizes were left open; NULL: themselves
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
                                      const ein_operator *const *block, int nmonoid,
                                      const ein_monoid *monoid) {
  g->nfunction = nfunction;
  g->nmonoid = nmonoid;
  g->function = EINI_NEW(&g->arena, ein_function, nfunction);
  g->monoid = EINI_NEW(&g->arena, ein_monoid, nmonoid);
  g->block = EINI_NEW(&g->arena, const ein_operator *, nfunction);
  if (g->function == NULL || g->monoid == NULL || g->block == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nfunction; i++) {
    g->function[i] = function[i];
    if (block[i] == NULL) continue;
    ein_operator *own = EINI_NEW(&g->arena, ein_operator, 1);
    if (own == NULL) return EIN_ERR_NO_MEMORY;
    *own = *block[i];
    own->name = g->function[i].name =
        eini_strndup(&g->arena, own->name, (int64_t)strlen(own->name));
    own->signature = eini_strndup(&g->arena, own->signature, (int64_t)strlen(own->signature));
    if (own->name == NULL || own->signature == NULL) return EIN_ERR_NO_MEMORY;
    g->block[i] = own;
  }
  for (int i = 0; i < nmonoid; i++) {
    g->monoid[i] = monoid[i];
    g->monoid[i].name = eini_strndup(&g->arena, monoid[i].name, (int64_t)strlen(monoid[i].name));
    if (g->monoid[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// What expressions of another graph name: its registrations and params.
static ein_status eini_graph_copy_names(ein_graph *g, const ein_graph *from) {
  for (int64_t k = 0; k < from->nparam; k++) {
    const eini_param *x = &from->param[k];
    int id;
    EINI_TRY(eini_graph_add_param(g, x->name, (int64_t)strlen(x->name), x->dtype, x->value, &id));
  }
  return eini_graph_register(g, from->nfunction, from->function, from->block, from->nmonoid,
                             from->monoid);
}

// A map without terms, with room for one in each row.
static ein_status eini_map_new(eini_arena *a, int rows, int cols, eini_map *m) {
  m->rows = rows;
  m->cols = cols;
  m->room = rows;
  // Of one piece: offsets, terms, first; a term takes two words at most.
  int64_t *p = EINI_NEW(a, int64_t, 3 * (int64_t)rows + rows / 2 + 1);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  m->offset = p;
  m->term = (eini_mapterm *)(void *)(p + rows);
  m->first = (int *)(void *)(p + 3 * (int64_t)rows);
  return EIN_OK;
}

// Where the term of an index stands in a row, or would.
static int eini_map_find(const eini_map *m, int r, int index) {
  int e = m->first[r];
  while (e < m->first[r + 1] && m->term[e].index < index) e++;
  return e;
}

static int64_t eini_map_coef(const eini_map *m, int r, int index) {
  int e = eini_map_find(m, r, index);
  return e < m->first[r + 1] && m->term[e].index == index ? m->term[e].coef : 0;
}

static ein_status eini_map_set(eini_arena *a, eini_map *m, int r, int index, int64_t coef) {
  int e = eini_map_find(m, r, index), n = m->first[m->rows];
  int old = e < m->first[r + 1] && m->term[e].index == index, by = (coef != 0) - old;
  int64_t room = m->room;
  if (by > 0 && n == INT_MAX) return EIN_ERR_TOO_LARGE;
  eini_mapterm *t = (eini_mapterm *)eini_grow(a, m->term, n + (int64_t)by - 1, &room, sizeof *t);
  if (t == NULL) return EIN_ERR_NO_MEMORY;
  m->term = t;
  m->room = (int)eini_min64(room, INT_MAX);
  if (by != 0 && n > e + old)
    memmove(t + e + old + by, t + e + old, (size_t)(n - e - old) * sizeof *t);
  for (int q = r + 1; q <= m->rows; q++) m->first[q] += by;
  if (coef != 0) t[e].index = index, t[e].coef = coef;
  return EIN_OK;
}

// Coordinates row, row + 1, .. of n become the indices from `index` on.
static ein_status eini_map_units(eini_arena *a, eini_map *m, int row, int index, int n) {
  for (int k = 0; k < n; k++) EINI_TRY(eini_map_set(a, m, row + k, index + k, 1));
  return EIN_OK;
}

// A map of as many rows becomes a copy, in which index c is at[c]; those that are -1, or beyond
// what the copy has, are left out. at NULL: they stay.
static ein_status eini_map_copy(eini_arena *a, eini_map *to, const eini_map *from, const int *at) {
  int n = from->first[from->rows];
  if (n > to->room && (to->term = EINI_NEW(a, eini_mapterm, n)) == NULL) return EIN_ERR_NO_MEMORY;
  to->room = n > to->room ? n : to->room;
  for (int r = n = 0; r < from->rows; r++) {
    to->offset[r] = from->offset[r];
    for (int e = from->first[r]; e < from->first[r + 1]; e++) {
      eini_mapterm x = from->term[e];
      eini_mapterm *p = to->term + n;
      if (at != NULL) x.index = at[x.index];
      if (x.index < 0 || x.index >= to->cols) continue;
      for (; p > to->term + to->first[r] && p[-1].index > x.index; p--) *p = p[-1];
      *p = x;
      n++;
    }
    to->first[r + 1] = n;
  }
  return EIN_OK;
}

// From a map with a coefficient for every index, which may have no offset.
EINI_UNUSED static ein_status eini_map_read(eini_arena *a, eini_map *to, const ein_zmap *from) {
  for (int r = 0; r < from->rows; r++) {
    to->offset[r] = from->offset == NULL ? 0 : from->offset[r];
    for (int c = 0; c < from->cols; c++)
      EINI_TRY(eini_map_set(a, to, r, c, from->coef[(int64_t)r * from->cols + c]));
  }
  return EIN_OK;
}

// Are two maps one but for offsets?
static int eini_map_alike(const eini_map *a, const eini_map *b) {
  if (a->rows != b->rows || a->cols != b->cols) return 0;
  if (memcmp(a->first, b->first, ((size_t)a->rows + 1) * sizeof *a->first) != 0) return 0;
  for (int e = 0; e < a->first[a->rows]; e++)
    if (a->term[e].index != b->term[e].index || a->term[e].coef != b->term[e].coef) return 0;
  return 1;
}

EINI_UNUSED static int eini_map_equal(const eini_map *a, const eini_map *b) {
  return eini_map_alike(a, b) &&
         (a->rows == 0 || memcmp(a->offset, b->offset, (size_t)a->rows * sizeof *a->offset) == 0);
}

// In how many coordinates an index occurs.
static int eini_map_uses(const eini_map *m, int index) {
  int n = 0;
  for (int e = 0; e < m->first[m->rows]; e++) n += m->term[e].index == index;
  return n;
}

// How many indices a coordinate has.
static int eini_map_terms(const eini_map *m, int r) { return m->first[r + 1] - m->first[r]; }

// The only index of a coordinate, -1 when there is none or several; its coefficient.
EINI_UNUSED static int eini_row_index(const eini_map *m, int r, int64_t *coef) {
  const eini_mapterm *x = &m->term[m->first[r]];
  *coef = eini_map_terms(m, r) > 0 ? x->coef : 0;
  return eini_map_terms(m, r) == 1 ? x->index : -1;
}

// The index that alone, and as it is, makes a coordinate; -1: another form.
static int eini_plain_row(const eini_map *m, int r) {
  int64_t coef;
  int index = eini_row_index(m, r, &coef);
  return m->offset[r] == 0 && coef == 1 ? index : -1;
}

// The least and the greatest value of a coordinate, as eini_zmap_row; all extents are >= 1.
static ein_status eini_map_row_range(const eini_map *m, int r, const int64_t *extent, int64_t *lo,
                                     int64_t *hi) {
  *lo = *hi = m->offset[r];
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    int64_t d;
    if (eini_mul_overflow(m->term[e].coef, extent[m->term[e].index] - 1, &d) ||
        eini_add_overflow(*lo, eini_min64(d, 0), lo) ||
        eini_add_overflow(*hi, eini_max64(d, 0), hi))
      return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
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
  p->proj = EINI_NEW(&g->arena, eini_map, noperand);
  p->pos = -1;
  if (p->index == NULL || p->operand == NULL || p->proj == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_map_new(&g->arena, g->tensor[out].rank, nindex, &p->out_map));
  for (int k = 0; k < noperand; k++) {
    p->operand[k] = operand[k];
    EINI_TRY(eini_map_new(&g->arena, g->tensor[operand[k]].rank, nindex, &p->proj[k]));
  }
  g->nstmt++;
  g->tensor[out].nstmt++;
  *s = p;
  return EIN_OK;
}

// Appends a copy of a statement over other tensors, with `more` free indices before its own, which
// stand in no map yet; names, carry and expression are shared, and this counts indices as before.
static ein_status eini_graph_add_like(ein_graph *g, const eini_stmt *from, int more, int out,
                                      const int *operand, eini_stmt **s) {
  int *at = more > 0 ? EINI_NEW(&g->arena, int, from->nindex) : NULL;
  if (more > 0 && at == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < from->nindex && more > 0; i++) at[i] = i + more;
  EINI_TRY(eini_graph_add_stmt(g, out, from->nindex + more, from->noperand, operand, s));
  const eini_stmt own = **s;
  **s = *from;
  (*s)->out = own.out;
  (*s)->nindex = own.nindex;
  (*s)->nfree = from->nfree + more;
  (*s)->index = own.index;
  (*s)->operand = own.operand;
  (*s)->proj = own.proj;
  (*s)->out_map = own.out_map;
  for (int i = 0; i < from->nindex; i++) own.index[i + more] = from->index[i];
  for (int k = 0; k < from->noperand; k++)
    EINI_TRY(eini_map_copy(&g->arena, &own.proj[k], &from->proj[k], at));
  return eini_map_copy(&g->arena, &(*s)->out_map, &from->out_map, at);
}

// Appends a statement that visits every element of a tensor, and of its operands; the caller gives
// the expression.
static ein_status eini_graph_add_each(ein_graph *g, int out, int nop, const int *op,
                                      eini_stmt **s) {
  int rank = g->tensor[out].rank;
  EINI_TRY(eini_graph_add_stmt(g, out, rank, nop, op, s));
  for (int r = 0; r < rank; r++) {
    (*s)->index[r].name = "";
    (*s)->index[r].extent = g->tensor[out].shape[r];
  }
  for (int k = 0; k < nop; k++) EINI_TRY(eini_map_units(&g->arena, &(*s)->proj[k], 0, 0, rank));
  return eini_map_units(&g->arena, &(*s)->out_map, 0, 0, rank);
}

// A statement, in no graph, whose indices are axes of these extents.
EINI_UNUSED static ein_status eini_stmt_of_axes(eini_arena *a, int rank, const int64_t *shape,
                                                eini_stmt **out) {
  eini_stmt *s = *out = EINI_NEW(a, eini_stmt, 1);
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  s->out = -1;
  s->nindex = s->nfree = rank;
  s->index = EINI_NEW(a, eini_index, rank);
  if (s->index == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < rank; r++) s->index[r].name = "", s->index[r].extent = shape[r];
  EINI_TRY(eini_map_new(a, rank, rank, &s->out_map));
  return eini_map_units(a, &s->out_map, 0, 0, rank);
}

// The same of a tensor's: for one that is held in pieces.
EINI_UNUSED static ein_status eini_stmt_of_tensor(eini_arena *a, const ein_graph *g, int tensor,
                                                  eini_stmt **out) {
  EINI_TRY(eini_stmt_of_axes(a, g->tensor[tensor].rank, g->tensor[tensor].shape, out));
  (*out)->out = tensor;
  (*out)->type = g->tensor[tensor].dtype;
  return EIN_OK;
}

// The access of operand k; -1: of the result.
static inline const eini_map *eini_access(const eini_stmt *s, int k) {
  return k < 0 ? &s->out_map : &s->proj[k];
}

// Is the statement's index space empty? Then nothing is accessed.
static int eini_stmt_empty(const eini_stmt *s, int from, int to) {
  for (int i = from; i < to; i++)
    if (s->index[i].extent == 0) return 1;
  return 0;
}

// Proves that a map stays inside a tensor (GRAMMAR rule 6); all extents are >= 1. *row is the
// coordinate that leaves it.
static ein_status eini_map_bounds(const eini_map *m, const int64_t *extent, const int64_t *shape,
                                  int *row, int64_t *bad) {
  for (int r = 0; r < m->rows; r++) {
    int64_t lo, hi;
    *row = r;
    EINI_TRY(eini_map_row_range(m, r, extent, &lo, &hi));
    if (lo < 0 || hi >= shape[r]) {
      *bad = lo < 0 ? lo : hi;
      return EIN_ERR_BOUNDS;
    }
  }
  return EIN_OK;
}

// ---- functions over blocks ----

// Does a function over blocks take the index whole? Those that it reads are reduced, those that it
// writes stand in no operand.
static int eini_index_whole(const eini_stmt *s, int i) {
  if (s->fold != EIN_FOLD_BLOCK || i >= s->nfree) return s->fold == EIN_FOLD_BLOCK;
  for (int k = 0; k < s->noperand; k++)
    if (eini_map_uses(&s->proj[k], i) > 0) return 0;
  return 1;
}

static const ein_operator *eini_stmt_operator(const ein_graph *g, const eini_stmt *s) {
  const eini_node *v = s->fold == EIN_FOLD_BLOCK ? &s->expr.node[s->expr.n - 1] : NULL;
  return v != NULL && v->op == EIN_OP_CALL ? g->block[v->arg[0]] : NULL;
}

// The operand that argument k of it is; -1: it is no access.
static int eini_operator_operand(const eini_stmt *s, int k) {
  const eini_expr *e = &s->expr;
  int id = eini_node_arg(e, &e->node[e->n - 1], k);
  while (e->node[id].op == EIN_OP_CAST && e->node[id].arg[1] == 1) id = e->node[id].arg[0];
  return e->node[id].op == EIN_OP_OPERAND ? e->node[id].arg[0] : -1;
}

// The indices that are axes of the block of operand k, or of the result (-1), in the order of the
// coordinates; their number, or -1: they are no axes.
static int eini_operator_axes(const eini_stmt *s, int k, int *axis) {
  const eini_map *m = eini_access(s, k);
  int n = 0;
  for (int r = 0; r < m->rows; r++) {
    int found = 0;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      const int i = m->term[e].index;
      if (!eini_index_whole(s, i)) continue;
      if (found++ > 0 || n == EINI_BLOCK_AXES || eini_map_uses(m, i) > 1) return -1;
      axis[n++] = i;
    }
  }
  return n;
}

// Axis a of a side has that extent.
static ein_status eini_operator_size(const ein_operator *f, const eini_signature *x, int side,
                                     int a, int64_t extent, int64_t *size, int64_t pos,
                                     eini_diag *diag) {
  const int k = x->size[x->first[side] + a];
  if (side >= x->nin || size[k] >= 0) {
    if (size[k] == extent) return EIN_OK;
    return eini_fail(diag, EIN_ERR_SHAPE, pos, 1, NULL,
                     "'%.60s' %s: axis %d of %s %d is '%.*s', which is %lld, not %lld", f->name,
                     f->signature, a, side < x->nin ? "argument" : "output",
                     side < x->nin ? side : side - x->nin, (int)x->len[k], f->signature + x->pos[k],
                     (long long)size[k], (long long)extent);
  }
  size[k] = extent;
  return EIN_OK;
}

static ein_status eini_operator_rank(const ein_operator *f, int n, int want, const char *what,
                                     int64_t pos, eini_diag *diag) {
  if (n == want) return EIN_OK;
  if (n < 0)
    return eini_fail(diag, EIN_ERR_SHAPE, pos, 1, NULL,
                     "an axis of a block of '%.60s' is a coordinate with one index of the block, "
                     "and no index is two axes", f->name);
  return eini_fail(diag, EIN_ERR_SHAPE, pos, 1,
                   "axes of the result are the indices on the left that no argument has",
                   "'%.60s' %s: %s has %d axes in its block, here %d", f->name, f->signature, what,
                   want, n);
}

// Proves that accesses fit the signature; gives the sizes of it.
static ein_status eini_operator_sizes(const ein_graph *g, const eini_stmt *s,
                                      const eini_signature *x, int64_t *size, eini_diag *diag) {
  const ein_operator *f = eini_stmt_operator(g, s);
  int axis[EINI_BLOCK_AXES];
  for (int k = 0; k < EINI_BLOCK_SIZES; k++) size[k] = -1;
  for (int k = 0; k < x->nin; k++) {
    const int op = eini_operator_operand(s, k);
    if (op < 0)
      return eini_fail(diag, EIN_ERR_UNSUPPORTED, s->pos, 1, "store it in a tensor of its own",
                       "argument %d of '%.60s' is no access to a tensor", k, f->name);
    char what[32];
    snprintf(what, sizeof what, "argument %d", k);
    const int n = eini_operator_axes(s, op, axis);
    EINI_TRY(eini_operator_rank(f, n, eini_signature_rank(x, k), what, s->pos, diag));
    for (int a = 0; a < n; a++)
      EINI_TRY(eini_operator_size(f, x, k, a, s->index[axis[a]].extent, size, s->pos, diag));
  }
  EINI_TRY(eini_signature_outer(f, x, size, s->pos, diag));
  const int n = eini_operator_axes(s, -1, axis), one = x->nout == 1;
  EINI_TRY(eini_operator_rank(f, n, one ? eini_signature_rank(x, x->nin) : 1, "the result", s->pos,
                              diag));
  for (int a = 0; a < n && one; a++)
    EINI_TRY(eini_operator_size(f, x, x->nin, a, s->index[axis[a]].extent, size, s->pos, diag));
  if (!one && s->index[axis[0]].extent != eini_signature_total(x, 1, size))
    return eini_fail(diag, EIN_ERR_SHAPE, s->pos, 1, NULL,
                     "the outputs of '%.60s' have %lld elements, not %lld", f->name,
                     (long long)eini_signature_total(x, 1, size),
                     (long long)s->index[axis[0]].extent);
  return EIN_OK;
}

// Proves that a function over blocks, if there is one, is all of its statement; what it costs.
static ein_status eini_operator_finish(const ein_graph *g, eini_stmt *s, eini_diag *diag) {
  eini_signature x;
  int64_t size[EINI_BLOCK_SIZES];
  double points = 1;
  for (int64_t k = 0; k < s->expr.n; k++) {
    const eini_node *v = &s->expr.node[k];
    if (v->op != EIN_OP_CALL || g->block[v->arg[0]] == NULL) continue;
    if (s->fold != EIN_FOLD_BLOCK || k < s->expr.n - 1)
      return eini_fail(diag, EIN_ERR_UNSUPPORTED, v->pos, 1, "like Y[i,j] = f[j](X[i,j])",
                       "'%.60s' works on blocks: it is a statement of its own",
                       g->function[v->arg[0]].name);
  }
  if (s->fold != EIN_FOLD_BLOCK) return EIN_OK;
  const ein_operator *f = eini_stmt_operator(g, s);
  if (f == NULL || !eini_signature_read(f->signature, &x)) return EIN_ERR_INTERNAL;
  EINI_TRY(eini_operator_sizes(g, s, &x, size, diag));
  for (int i = 0; i < s->nindex; i++)
    if (eini_index_whole(s, i)) points *= (double)s->index[i].extent;
  const double flops = f->flops_fn != NULL ? f->flops_fn(size, f->user)
                                           : (double)eini_signature_total(&x, 0, size) +
                                                 (double)eini_signature_total(&x, 1, size);
  s->block_flops = points > 0 ? fmax(flops, 0) / points : 0;
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
  if (s->fold != EIN_FOLD_NONE) {
    int fold = s->fold;
    int order = fold == EIN_FOLD_MAX || fold == EIN_FOLD_MIN || fold == EIN_FOLD_ARGMAX ||
                fold == EIN_FOLD_ARGMIN;
    if (eini_kind_of(t) == EINI_KCOMPLEX &&
        (order || fold == EIN_FOLD_LOGSUMEXP || fold == EIN_FOLD_VAR))
      return eini_fail(diag, EIN_ERR_DTYPE, s->pos, 1, "reduce real(z), imag(z) or abs(z)",
                       "%s of complex numbers is not defined", eini_folds[fold].name);
    if (t == EIN_BOOL && (fold == EIN_FOLD_SUM || fold == EIN_FOLD_PROD) && !s->numpy) t = EIN_I64;
    const ein_monoid *m = fold >= EIN_FOLD_USER ? &g->monoid[fold - EIN_FOLD_USER] : NULL;
    if (eini_stmt_empty(s, s->nfree, s->nindex) && !eini_stmt_empty(s, 0, s->nfree) &&
        (m != NULL ? m->no_identity : !eini_folds[fold].has_identity)) {
      return eini_fail(diag, EIN_ERR_EMPTY, s->pos, 1, NULL, "%s of nothing",
                       m != NULL ? m->name : eini_folds[fold].name);
    }
    t = m != NULL ? m->dtype : eini_fold_dtype(fold, t);
  }
  s->expr = typed;
  s->type = t;
  EINI_TRY(eini_operator_finish(g, s, diag));
  eini_tensor *out = &g->tensor[s->out];
  if (out->dtype_open) out->dtype = ein_dtype_promote(out->dtype, t);
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int64_t *extent = EINI_NEW(&g->arena, int64_t, s->nindex);
  if (extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) extent[c] = s->index[c].extent;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &g->tensor[s->operand[k]];
    int row = 0;
    int64_t bad = 0;
    ein_status st = eini_map_bounds(&s->proj[k], extent, x->shape, &row, &bad);
    if (st == EIN_OK) continue;
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
