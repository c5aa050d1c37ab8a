// ================================================================================================
// >>leaves  long folds with few results
// Takes a fold that threads could not share; gives the fold of its leaves, statements as any other.
// Leaves are no blocks of a statement: an index of its own numbers them, in place of origins.
// ================================================================================================

// How a fold is cut: column c in `leaves` leaves of `size` and a rest. The shape alone decides, so
// that results do not depend on the number of threads.
typedef struct eini_leaves {
  int column;
  int64_t leaves, size, rest;
} eini_leaves;

static int eini_leaves_of(const ein_graph *g, const eini_stmt *s, eini_leaves *f) {
  const double results = eini_points(s, NULL, 0, s->nfree);
  const double work = results * eini_points(s, NULL, s->nfree, s->nindex);
  int fold = s->fold, best = -1;
  double longest = 0;
  if (fold != EIN_FOLD_SUM && fold != EIN_FOLD_MAX && fold != EIN_FOLD_MIN &&
      fold != EIN_FOLD_PROD && fold != EIN_FOLD_ANY && fold != EIN_FOLD_ALL &&
      !(g->ordered && fold == EIN_FOLD_LOGSUMEXP)) {
    return 0;
  }
  if (results < 1 || results > EINI_LEAF_RESULTS || work < 2 * EINI_LEAF_WORK * results ||
      s->noperand == 0 || s->rest != EIN_REST_ERROR) {
    return 0;
  }
  // The reduced index that moves the first operands most: leaves are then runs of memory.
  for (int c = s->nfree; c < s->nindex; c++) {
    double reach = 0;
    if (s->index[c].extent < 16) continue;
    for (int k = 0; k < s->noperand; k++) {
      double size = 1;
      const eini_tensor *t = &g->tensor[s->operand[k]];
      for (int r = s->proj[k].rows - 1; r >= 0; r--) {
        double x = size * fabs((double)eini_map_coef(&s->proj[k], r, c));
        if (x > reach) reach = x;
        size *= (double)t->shape[r];
      }
    }
    if (reach > longest) longest = reach, best = c;
  }
  if (best < 0) return 0;
  for (int64_t i = 0; i < s->expr.n; i++) {
    if (s->expr.node[i].op == EIN_OP_INDEX && s->expr.node[i].arg[0] == best) return 0;
  }
  double want = work / results / EINI_LEAF_WORK;
  int64_t e = s->index[best].extent, n = want > EINI_LEAVES ? EINI_LEAVES : (int64_t)want;
  f->column = best;
  f->size = eini_ceil_div(e, n);
  f->leaves = e / f->size;
  f->rest = e % f->size;
  return f->leaves > 1;
}

// T[leaf, free] over one leaf (or, with `rest`, over what is left); appended to the graph.
static ein_status eini_leaf_stmt(ein_graph *g, const eini_stmt *from, const eini_leaves *f,
                                 int rest, int out) {
  eini_arena *a = &g->arena;
  eini_stmt like = *from, *s;
  int *still = EINI_NEW(a, int, from->nindex);
  if (still == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < from->nindex; i++) still[i] = -1;
  EINI_TRY(eini_map_new(a, from->nfree + 1, from->nindex, &like.out_map));
  EINI_TRY(eini_map_units(a, &like.out_map, 1, 0, from->nfree));
  EINI_TRY(eini_expr_shift(a, &from->expr, still, &like.expr));
  for (int64_t i = 0; i < like.expr.n; i++)
    if (like.expr.node[i].op == EIN_OP_INDEX) like.expr.node[i].arg[0]++;
  EINI_TRY(eini_graph_add_like(g, &like, 1, out, from->operand, &s));
  s->index[0].name = "leaf";
  s->index[0].extent = rest ? 1 : f->leaves;
  s->index[f->column + 1].extent = rest ? f->rest : f->size;
  s->out_map.offset[0] = rest ? f->leaves : 0;
  EINI_TRY(eini_map_set(a, &s->out_map, 0, 0, 1));
  for (int k = 0; k < s->noperand; k++) {
    for (int r = 0; r < s->proj[k].rows; r++) {
      int64_t step = eini_map_coef(&from->proj[k], r, f->column) * f->size;
      if (rest) s->proj[k].offset[r] += step * f->leaves;
      else EINI_TRY(eini_map_set(a, &s->proj[k], r, 0, step));
    }
  }
  if (g->tensor[out].dtype_open) g->tensor[out].dtype = ein_dtype_compute(from->type);
  return EIN_OK;
}

// Statement i becomes the fold of its leaves, which are appended to the graph.
static ein_status eini_leaf_split(ein_graph *g, int64_t i, const eini_leaves *f) {
  eini_arena *a = &g->arena;
  eini_stmt s = g->stmt[i];  // the table may move
  int64_t *shape = EINI_NEW(a, int64_t, s.nfree + 1);
  int out;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  shape[0] = f->leaves + (f->rest > 0);
  for (int k = 0; k < s.nfree; k++) shape[k + 1] = s.index[k].extent;
  EINI_TRY(
      eini_graph_add_tensor(g, "T.leaf", 6, EIN_ROLE_TEMP, EIN_NONE, s.nfree + 1, shape, &out));
  EINI_TRY(eini_leaf_stmt(g, &s, f, 0, out));
  if (f->rest > 0) EINI_TRY(eini_leaf_stmt(g, &s, f, 1, out));
  g->tensor[out].dtype_open = 0;
  eini_stmt *t = &g->stmt[i];
  int n = s.nfree + 1;
  t->nindex = n;
  t->index = EINI_NEW(a, eini_index, n);
  t->operand = EINI_NEW(a, int, 1);
  t->proj = EINI_NEW(a, eini_map, 1);
  if (t->index == NULL || t->operand == NULL || t->proj == NULL) return EIN_ERR_NO_MEMORY;
  t->noperand = 1;
  t->operand[0] = out;
  for (int k = 0; k < s.nfree; k++) t->index[k] = s.index[k];
  t->index[s.nfree].name = "leaf";
  t->index[s.nfree].extent = shape[0];
  EINI_TRY(eini_map_new(a, s.out_map.rows, n, &t->out_map));
  EINI_TRY(eini_map_new(a, n, n, t->proj));
  EINI_TRY(eini_map_copy(a, &t->out_map, &s.out_map, NULL));
  EINI_TRY(eini_map_set(a, t->proj, 0, s.nfree, 1));
  EINI_TRY(eini_map_units(a, t->proj, 1, 0, s.nfree));
  memset(&t->expr, 0, sizeof t->expr);
  int x = eini_expr_add(a, &t->expr, EIN_OP_OPERAND, s.pos, 0, 0, 0);
  if (x < 0) return EIN_ERR_NO_MEMORY;
  t->expr.node[x].dtype = (unsigned char)g->tensor[out].dtype;
  return EIN_OK;
}

// Cuts every fold that is long and has few results, so that threads share it.
static ein_status eini_leaf_graph(ein_graph *g) {
  int64_t n = g->nstmt, at = 0;
  eini_stmt *list = EINI_NEW(&g->arena, eini_stmt, 3 * n + 1);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    eini_leaves f;
    if (eini_leaves_of(g, &g->stmt[i], &f)) EINI_TRY(eini_leaf_split(g, i, &f));
    for (int64_t k = n; k < g->nstmt; k++) list[at++] = g->stmt[k];
    list[at++] = g->stmt[i];
    g->nstmt = n;
  }
  g->stmt = list;
  g->nstmt = at;
  g->capstmt = 3 * n + 1;
  return EIN_OK;
}
