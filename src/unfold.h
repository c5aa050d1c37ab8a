// ================================================================================================
// >>unfold  cotangents of what a statement folds
// Takes a statement and the cotangent of its tensor; gives that of the value that is folded, with
// tensors of what the fold needs for it.
// ================================================================================================

// A statement whose cotangent is being carried to its operands. More operands are added to it:
// the cotangent, stored results, and tensors made for its fold.
typedef struct eini_back {
  eini_grad *w;
  eini_stmt s;              // as it is in the graph
  eini_adjoint d;
  int64_t n, cap, cap2;     // operands
  int *operand;
  eini_map *proj;           // over the statement's indices
  // For eini_back_part: `room` of each, for nodes or operands.
  int *mark;                // of a node: 1: met, 2: copied; 0 between calls
  int *map;                 // of a node: its copy
  int *from;                // of a copy: its node
  int *used;                // of an operand: its number where it is used
  int *stack;               // nodes to be looked at
  int64_t room, capstack;
} eini_back;

// A node that reads one more operand; map NULL: its axes are the first indices.
static int eini_back_read(eini_back *b, int tensor, const eini_map *map) {
  eini_arena *a = b->w->scratch;
  int rank = b->w->g->tensor[tensor].rank;
  int *op = (int *)eini_grow(a, b->operand, b->n, &b->cap, sizeof *op);
  eini_map *proj = (eini_map *)eini_grow(a, b->proj, b->n, &b->cap2, sizeof *proj);
  if (op == NULL || proj == NULL || eini_map_new(a, rank, b->s.nindex, &proj[b->n]) != EIN_OK)
    return -1;
  b->operand = op;
  b->proj = proj;
  op[b->n] = tensor;
  if ((map != NULL ? eini_map_copy(a, &proj[b->n], map, NULL)
                   : eini_map_units(a, &proj[b->n], 0, 0, rank)) != EIN_OK)
    return -1;
  return eini_expr_add(a, &b->d.e, EIN_OP_OPERAND, -1, (int)b->n++, 0, 0);
}

// A draft over the statement's first n indices, with all operands.
static ein_status eini_back_draft(eini_back *b, eini_stmt *f, int out, int n, int nfree) {
  eini_grad *w = b->w;
  EINI_TRY(eini_draft(w, f, out, n, nfree, (int)b->n));
  for (int i = 0; i < n; i++) f->index[i] = b->s.index[i];
  for (int k = 0; k < b->n; k++) {
    EINI_TRY(eini_draft_operand(w, f, k, b->operand[k]));
    EINI_TRY(eini_map_copy(w->scratch, &f->proj[k], &b->proj[k], NULL));
  }
  f->expr = b->d.e;
  return EIN_OK;
}

static ein_status eini_back_storing(eini_back *b, int root, int nfree, int n, int fold, int *id) {
  eini_grad *w = b->w;
  eini_stmt f;
  int64_t *shape = EINI_NEW(w->scratch, int64_t, nfree);
  if (shape == NULL || root < 0) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nfree; i++) shape[i] = b->s.index[i].extent;
  EINI_TRY(eini_grad_tensor(w, b->s.out, EIN_NONE, nfree, shape, id));
  EINI_TRY(eini_back_draft(b, &f, *id, n, nfree));
  EINI_TRY(eini_map_units(w->scratch, &f.out_map, 0, 0, nfree));
  f.fold = fold;
  return eini_draft_append(w, &f, root);
}

// A node that reads a new tensor over the first nfree indices: a fold of node root over those from
// nfree to n.
static int eini_back_store(eini_back *b, int root, int nfree, int n, int fold) {
  int tensor;
  if (b->w->status == EIN_OK)
    b->w->status = eini_back_storing(b, root, nfree, n, fold, &tensor);
  return b->w->status != EIN_OK ? -1 : eini_back_read(b, tensor, NULL);
}

// May the stored result stand for the value that was computed? Not when storing rounded it.
static int eini_back_kept(const eini_back *b, ein_dtype t) {
  ein_dtype stored = b->w->g->tensor[b->s.out].dtype;
  return stored == t && ein_dtype_compute(t) == t;
}

// max and min: what equals the result shares its cotangent. The values compared are stored, so that
// they are computed once.
static int eini_back_extreme(eini_back *b, int root, int g, int *mask) {
  const eini_stmt *s = &b->s;
  eini_adjoint *d = &b->d;
  const eini_node *v = &d->e.node[root];
  int plain = v->op == EIN_OP_OPERAND, nfree = s->nfree, n = s->nindex;
  int same = plain && b->w->g->tensor[b->operand[v->arg[0]]].dtype ==
                          b->w->g->tensor[s->out].dtype;
  ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  int x = plain ? root : eini_back_store(b, root, n, n, EIN_FOLD_NONE);
  int most = same ? eini_back_read(b, s->out, &s->out_map)
                  : eini_back_store(b, x, nfree, n, s->fold);
  *mask = eini_adj_op(d, EIN_OP_EQ, x, most, 0);
  int count = eini_back_store(b, eini_adj_one(d, *mask, t), nfree, n, EIN_FOLD_SUM);
  return eini_back_store(b, eini_adj_op(d, EIN_OP_DIV, g, count, 0), nfree, nfree,
                         EIN_FOLD_NONE);
}

// out[.., ostep*i + oat] = x[.., xstep*i + xat] * y[.., ystep*i + yat] for i < count; y may be -1.
static ein_status eini_back_pair(eini_back *b, int out, int64_t ostep, int64_t oat, int64_t count,
                                 int x, int64_t xstep, int64_t xat, int y, int64_t ystep,
                                 int64_t yat) {
  eini_grad *w = b->w;
  int n = b->s.nfree + 1, root = -1;
  eini_stmt f;
  if (count == 0) return EIN_OK;
  EINI_TRY(eini_draft(w, &f, out, n, n, y < 0 ? 1 : 2));
  for (int i = 0; i < n - 1; i++) f.index[i] = b->s.index[i];
  EINI_TRY(eini_draft_index(w, &f, n - 1, count));
  EINI_TRY(eini_map_units(w->scratch, &f.out_map, 0, 0, n));
  for (int k = 0; k < f.noperand; k++) {
    EINI_TRY(eini_draft_operand(w, &f, k, k == 0 ? x : y));
    EINI_TRY(eini_map_copy(w->scratch, &f.proj[k], &f.out_map, NULL));
    EINI_TRY(eini_map_set(w->scratch, &f.proj[k], n - 1, n - 1, k == 0 ? xstep : ystep));
    f.proj[k].offset[n - 1] = k == 0 ? xat : yat;
    int v = eini_expr_add(w->scratch, &f.expr, EIN_OP_OPERAND, -1, k, 0, 0);
    root = k == 0 ? v : eini_draft_op(w, &f, EIN_OP_MUL, root, v, 0);
  }
  EINI_TRY(eini_map_set(w->scratch, &f.out_map, n - 1, n - 1, ostep));
  f.out_map.offset[n - 1] = oat;
  return eini_draft_append(w, &f, root);
}

// The map from a statement's indices to its free ones and, as one last axis, its reduced ones.
static ein_status eini_back_rows(eini_back *b, eini_map *m) {
  const eini_stmt *s = &b->s;
  int64_t step = 1;
  EINI_TRY(eini_map_units(b->w->scratch, m, 0, 0, s->nfree));
  for (int i = s->nindex - 1; i >= s->nfree; i--, step *= s->index[i + 1].extent)
    EINI_TRY(eini_map_set(b->w->scratch, m, s->nfree, i, step));
  return EIN_OK;
}

// The values of node root, reduced indices as one last axis of n elements.
static ein_status eini_back_values(eini_back *b, int root, int64_t n, int64_t *shape, int *id) {
  const eini_stmt *s = &b->s;
  int nfree = s->nfree;
  ein_dtype t = ein_dtype_compute((ein_dtype)b->d.e.node[root].dtype);
  eini_stmt f;
  for (int i = 0; i < nfree; i++) shape[i] = s->index[i].extent;
  shape[nfree] = n;
  EINI_TRY(eini_grad_tensor(b->w, s->out, t, nfree + 1, shape, id));
  EINI_TRY(eini_back_draft(b, &f, *id, s->nindex, s->nindex));
  EINI_TRY(eini_back_rows(b, &f.out_map));
  return eini_draft_append(b->w, &f, root);
}

// A tensor of the products of all values but each, by a tree of products of pairs (up) and of
// products of all that is not below (down): no division, so zeros need no care.
static ein_status eini_back_others(eini_back *b, int64_t n, int64_t *shape, int *id) {
  int level[64], nfree = b->s.nfree, k = 0, other = -1, made;
  int64_t size[64];
  ein_dtype t = b->w->g->tensor[*id].dtype;
  level[0] = *id;
  for (size[0] = n; size[k] > 2; k++) {
    int64_t half = size[k] / 2;
    shape[nfree] = size[k + 1] = size[k] - half;
    EINI_TRY(eini_grad_tensor(b->w, b->s.out, t, nfree + 1, shape, &level[k + 1]));
    EINI_TRY(eini_back_pair(b, level[k + 1], 1, 0, half, level[k], 2, 0, level[k], 2,
                            1));
    EINI_TRY(eini_back_pair(b, level[k + 1], 1, half, size[k] % 2, level[k], 1, size[k] - 1, -1,
                            0, 0));
  }
  for (; k >= 0; k--, other = made) {
    int64_t half = size[k] / 2;
    shape[nfree] = size[k];
    EINI_TRY(eini_grad_tensor(b->w, b->s.out, t, nfree + 1, shape, &made));
    for (int side = 0; side < 2; side++)
      EINI_TRY(eini_back_pair(b, made, 2, side, half, level[k], 2, 1 - side, other, 1, 0));
    if (size[k] % 2 != 0)
      EINI_TRY(eini_back_pair(b, made, 1, size[k] - 1, 1, other, 1, half, -1, 0, 0));
  }
  *id = other;
  return EIN_OK;
}

static int eini_back_product(eini_back *b, int root, int g) {
  const eini_stmt *s = &b->s;
  int64_t n = 1, *shape = EINI_NEW(b->w->scratch, int64_t, s->nfree + 1);
  int tensor, x;
  eini_map m;
  for (int i = s->nfree; i < s->nindex; i++)
    if (eini_mul_overflow(n, s->index[i].extent, &n))
      return b->w->status = eini_grad_full(b->w), -1;
  if (n == 1) return g;
  if (shape == NULL) return -1;
  b->w->status = eini_back_values(b, root, n, shape, &tensor);
  if (b->w->status == EIN_OK) b->w->status = eini_back_others(b, n, shape, &tensor);
  if (b->w->status != EIN_OK ||
      eini_map_new(b->w->scratch, s->nfree + 1, s->nindex, &m) != EIN_OK ||
      eini_back_rows(b, &m) != EIN_OK)
    return -1;
  x = eini_back_read(b, tensor, &m);
  return x < 0 ? -1 : eini_adj_mul(&b->d, g, eini_adj_conj(&b->d, x, root));
}

// The number of values folded, as a literal.
static int eini_back_count(eini_back *b) {
  int64_t n = 1;
  double x = 1;
  int over = 0;
  for (int i = b->s.nfree; i < b->s.nindex; i++) {
    over |= eini_mul_overflow(n, b->s.index[i].extent, &n);
    x *= (double)b->s.index[i].extent;
  }
  return over ? eini_adj_real(&b->d, x) : eini_adj_int(&b->d, n);
}

// g as a value per point of the free indices, stored unless it is a literal.
static int eini_back_scaled(eini_back *b, int g) {
  if (g < 0 || b->w->g->tensor[b->s.out].rank == 0) return g;
  return eini_back_store(b, g, b->s.nfree, b->s.nfree, EIN_FOLD_NONE);
}

// The cotangent of the value that is folded, from that of the statement's tensor.
static int eini_back_seed(eini_back *b, int root, int cot, int *mask) {
  const eini_stmt *s = &b->s;
  eini_adjoint *d = &b->d;
  int nfree = s->nfree, n = s->nindex, x;
  int g = cot == EINI_COT_ONE ? eini_adj_int(d, 1) : eini_back_read(b, cot, &s->out_map);
  *mask = -1;
  if (cot != EINI_COT_ONE && eini_kind_of(b->w->g->tensor[s->out].dtype) == EINI_KCOMPLEX &&
      eini_kind_of(s->type) < EINI_KCOMPLEX)
    g = eini_adj_op(d, EIN_OP_REAL, g, 0, 0);
  switch (s->fold) {
    case EIN_FOLD_PROD: return eini_back_product(b, root, g);
    case EIN_FOLD_MAX: case EIN_FOLD_MIN: return eini_back_extreme(b, root, g, mask);
    case EIN_FOLD_MEAN:
      return eini_back_scaled(b, eini_adj_op(d, EIN_OP_DIV, g, eini_back_count(b), 0));
    case EIN_FOLD_VAR:
      g = eini_adj_mul(d, eini_adj_int(d, 2), g);
      g = eini_back_scaled(b, eini_adj_op(d, EIN_OP_DIV, g, eini_back_count(b), 0));
      x = eini_back_store(b, root, nfree, n, EIN_FOLD_MEAN);
      return eini_adj_mul(d, g, eini_adj_op(d, EIN_OP_SUB, root, x, 0));
    case EIN_FOLD_LOGSUMEXP:
      x = eini_back_kept(b, s->type) ? eini_back_read(b, s->out, &s->out_map)
                                     : eini_back_store(b, root, nfree, n, EIN_FOLD_LOGSUMEXP);
      *mask = eini_adj_op(d, EIN_OP_NE, root, eini_adj_real(d, -(double)INFINITY), 0);
      x = eini_adj_op(d, EIN_OP_SUB, root, x, 0);
      return eini_adj_mul(d, g, eini_adj_op(d, EIN_OP_EXP, x, 0, 0));
    default: return g;
  }
}
