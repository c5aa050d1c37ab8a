// ================================================================================================
// >>build  from resolved trees to statements
// Takes resolved trees; gives statements of the graph. What is not one fold over one expression is
// split; the parts become temporaries.
// ================================================================================================

#define EINI_SAME_MAX 64                   // equal operands are looked for this far

// A statement being emitted: its indices, and its operands with their rows.
typedef struct eini_build {
  eini_emit em;            // first, see eini_emit_leaf
  eini_prog *q;
  int n, nfree, *var, *saved;
  int64_t nop, cap, cap2;
  int *op;
  const eini_row **row;
} eini_build;

static int eini_emit_leaf(eini_emit *em, const eini_syn *v);  // of temporaries: they nest

static int eini_rows_equal(const eini_row *a, const eini_row *b, int rank) {
  for (int r = 0; r < rank; r++) {
    if (a[r].n != b[r].n || a[r].offset != b[r].offset) return 0;
    for (int i = 0; i < a[r].n; i++)
      if (a[r].var[i] != b[r].var[i] || a[r].coef[i] != b[r].coef[i]) return 0;
  }
  return 1;
}

// The number of an operand; equal accesses share one. -1 when out of memory.
static int eini_operand(eini_build *b, int tensor, const eini_row *row) {
  eini_parser *p = b->em.p;
  for (int64_t k = b->nop - 1; k >= eini_max64(0, b->nop - EINI_SAME_MAX); k--) {
    if (b->op[k] == tensor && eini_rows_equal(b->row[k], row, b->q->g->tensor[tensor].rank))
      return (int)k;
  }
  int *op = (int *)eini_grow(p->arena, b->op, b->nop, &b->cap, sizeof *op);
  void *rows = eini_grow(p->arena, (void *)b->row, b->nop, &b->cap2, sizeof *b->row);
  if (op == NULL || rows == NULL) return eini_pmem(p), -1;
  b->op = op;
  b->row = (const eini_row **)rows;
  op[b->nop] = tensor;
  b->row[b->nop] = row;
  return (int)b->nop++;
}

// Emits a tree over free and bound indices.
static ein_status eini_build_tree(eini_prog *q, eini_build *b, const int *freev, int64_t nfree,
                                  const int *bind, int nbind, const eini_syn *tree) {
  eini_parser *p = &q->p;
  memset(b, 0, sizeof *b);
  b->q = q;
  b->em.p = p;
  b->em.arena = &q->g->arena;
  b->em.leaf_fn = eini_emit_leaf;
  b->nfree = (int)nfree;
  b->var = EINI_NEW(p->arena, int, nfree + nbind);
  b->saved = EINI_NEW(p->arena, int, nfree + nbind);
  if (b->var == NULL || b->saved == NULL) return eini_pmem(p);
  for (; b->n < nfree + nbind; b->n++) {
    b->var[b->n] = b->n < nfree ? freev[b->n] : bind[b->n - nfree];
    b->saved[b->n] = q->var[b->var[b->n]].col;
    q->var[b->var[b->n]].col = b->n;
  }
  eini_emit_tree(&b->em, tree);
  return p->st;
}

static ein_status eini_fill_map(const eini_prog *q, eini_map *m, const eini_row *row) {
  for (int r = 0; r < m->rows; r++) {
    m->offset[r] = row[r].offset;
    for (int i = 0; i < row[r].n; i++)
      EINI_TRY(eini_map_set(&q->g->arena, m, r, q->var[row[r].var[i]].col, row[r].coef[i]));
  }
  return EIN_OK;
}

// Appends the statement; left NULL: the free indices in order.
static ein_status eini_build_stmt(eini_build *b, int out, const eini_row *left, int fold,
                                  int64_t pos) {
  eini_prog *q = b->q;
  ein_graph *g = q->g;
  eini_stmt *s;
  if (eini_graph_add_stmt(g, out, b->n, (int)b->nop, b->op, &s) != EIN_OK) return eini_pmem(&q->p);
  s->nfree = b->nfree;
  s->fold = fold;
  s->pos = pos;
  s->expr = b->em.e;
  for (int i = 0; i < b->n; i++) {
    const eini_var *x = &q->var[b->var[i]];
    const eini_sym *name = &q->names.sym[x->sym];
    int hides = 0;
    char other[96];  // an index that hides another: told apart in what is printed; an axis of a
                     // block may, since no argument has what it hides
    for (int k = 0; k < i && b->n <= 64 && fold != EIN_FOLD_BLOCK; k++)
      hides |= q->var[b->var[k]].sym == x->sym;
    int len = snprintf(other, sizeof other, "%.*s.%d", eini_cut(name->s, name->n), name->s, i);
    s->index[i].extent = x->extent;
    s->index[i].name =
        eini_strndup(&g->arena, hides ? other : name->s, hides ? len : name->n);
    if (s->index[i].name == NULL) return eini_pmem(&q->p);
  }
  ein_status st = left != NULL ? eini_fill_map(q, &s->out_map, left)
                               : eini_map_units(&g->arena, &s->out_map, 0, 0, b->nfree);
  for (int64_t k = 0; k < b->nop && st == EIN_OK; k++)
    st = eini_fill_map(q, &s->proj[k], b->row[k]);
  if (st != EIN_OK) return eini_reported(&q->p, st);
  return eini_reported(&q->p, eini_stmt_finish(g, s, q->p.diag));
}

// ---- temporaries ----

// An access to tensor at variables.
static eini_syn *eini_temp_access(eini_prog *q, int tensor, const eini_vars *u, int64_t pos) {
  eini_syn *v = eini_syn_new(&q->p, EINI_S_ACCESS, pos);
  eini_row *row = EINI_NEW(q->p.arena, eini_row, u->n);
  int64_t *one = EINI_NEW(q->p.arena, int64_t, 1);
  if (row == NULL || one == NULL) eini_pmem(&q->p);
  if (v == NULL || row == NULL || one == NULL) return NULL;
  *one = 1;
  v->id = tensor;
  v->row = row;
  for (int64_t i = 0; i < u->n; i++) {
    row[i].n = 1;
    row[i].var = &u->v[i];
    row[i].coef = one;
    row[i].pos = pos;
  }
  return v;
}

// The name of a temporary, after the tensor being defined.
static void eini_fresh_name(eini_prog *q, char *name, size_t size) {
  const eini_sym *s = &q->names.sym[q->line[q->cur].sym];
  snprintf(name, size, "%.*s.%lld", eini_cut(s->s, s->n), s->s, (long long)++q->fresh);
}

// Does a temporary compute what the last statement does, if need be with its axes in another order?
// Then that is taken, at the indices that u becomes.
static ein_status eini_temp_known(eini_prog *q, int *tensor, eini_vars *u) {
  ein_graph *g = q->g;
  const eini_stmt *s = &g->stmt[g->nstmt - 1];
  int64_t *read = EINI_NEW(q->p.arena, int64_t, s->noperand + 1);  // a result may be any
  int *axis = EINI_NEW(q->p.arena, int, u->n);
  const eini_besides b = {EINI_SAME_VALUES | EINI_SAME_EXTENTS | EINI_SAME_ALONE, 0, 1, NULL,
                          read};
  eini_match m;
  if (read == NULL || axis == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) read[k] = s->operand[k];
  EINI_TRY(eini_forms_find(&q->temps, g, s, &b, *tensor, &m));
  g->tensor[*tensor].shift = 1;
  if (m.first == *tensor) return EIN_OK;
  for (int64_t i = 0; i < u->n; i++) axis[eini_match_index(&m, (int)i)] = u->v[i];
  for (int64_t i = 0; i < u->n; i++) u->v[i] = axis[i];
  *tensor = (int)m.first;
  g->nstmt--;
  g->ntensor--;
  q->fresh--;
  return EIN_OK;
}

// Stores fold over bind of tree in a temporary over the indices in scope that owner uses; one that
// is stored already is taken.
static eini_syn *eini_temp(eini_prog *q, const eini_syn *owner, const eini_syn *tree, int fold,
                           const int *bind, int nbind, int64_t pos) {
  eini_parser *p = &q->p;
  ein_graph *g = q->g;
  eini_vars u = {NULL, 0, 0};
  eini_build b;
  char name[96];
  int tensor = -1, shift = owner->kind == EINI_S_REDUCE && owner->ival != 0;
  if (tree == NULL) return NULL;
  eini_used(q, owner, &u, ++q->stamp);
  if (u.n <= 64) eini_vars_sort(&u);
  int64_t *shape = EINI_NEW(p->arena, int64_t, u.n);
  if (shape == NULL) eini_pmem(p);
  for (int64_t i = 0; shape != NULL && i < u.n; i++) shape[i] = q->var[u.v[i]].extent;
  if (p->st != EIN_OK) return NULL;
  eini_build_tree(q, &b, u.v, u.n, bind, nbind, tree);
  if (p->st == EIN_OK) {
    eini_fresh_name(q, name, sizeof name);
    eini_reported(p, eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, EIN_NONE,
                                           (int)u.n, shape, &tensor));
  }
  if (p->st == EIN_OK) eini_build_stmt(&b, tensor, NULL, fold, pos);
  for (int i = b.n - 1; i >= 0; i--) q->var[b.var[i]].col = b.saved[i];
  if (p->st != EIN_OK) return NULL;
  eini_tensor_fix_dtype(&g->tensor[tensor]);
  if (eini_reported(p, eini_temp_known(q, &tensor, &u)) != EIN_OK) return NULL;
  g->tensor[tensor].shift &= shift;
  return eini_temp_access(q, tensor, &u, pos);
}

// ---- macros ----

// A macro, parsed once; NULL when out of memory.
static eini_macro *eini_macro_of(eini_prog *q, int id) {
  eini_macro *m = q->macro[id];
  const char *s = eini_macros[id].text;
  eini_parser p;
  if (m != NULL) return m;
  if ((m = EINI_NEW(q->p.arena, eini_macro, 1)) == NULL) return eini_pmem(&q->p), m;
  eini_parser_init(&p, q->p.arena, NULL, &m->none, s, (int64_t)strlen(s), 64);
  p.names = &m->names;
  do eini_kids_add(&p, &m->part, eini_parse_expr(&p, 0), 0);
  while (eini_accept(&p, ',') || eini_accept(&p, '=') || eini_accept(&p, EINI_T_EOL));
  return eini_reported(&q->p, p.st) == EIN_OK ? q->macro[id] = m : NULL;
}

// A copy of part of a macro's text, with values by name and the indices of v, the call.
static eini_syn *eini_fill_in(eini_prog *q, const eini_macro *m, const eini_syn *v,
                              eini_syn *const *value, eini_syn *part) {
  eini_kids k = {NULL, NULL, 0, 0};
  if (part->kind == EINI_S_NAME) return value[part->sym];
  part->pos = part->kind == EINI_S_NUM ? v->pos : value[0]->pos;  // mistakes are the call's
  eini_syn *r = eini_resolved(q, part, part->kind, -1);
  for (int i = 0; i < part->n && q->p.st == EIN_OK; i++)
    eini_kids_add(&q->p, &k, eini_fill_in(q, m, v, value, part->kid[i]), part->inv[i]);
  if (r == NULL || q->p.st != EIN_OK) return NULL;
  if (r->kind == EINI_S_CALL)
    r->sym = eini_intern(&q->p, m->names.sym[part->sym].s, m->names.sym[part->sym].n);
  if (r->kind == EINI_S_REDUCE) r->ival = r->op == EIN_FOLD_MAX;  // cancels in the macro
  r->bind = v->bind;
  r->nbind = v->nbind;
  return eini_adopt(q, r, &k, NULL);
}

// What a call of a macro, or a norm, stands for; NULL after a mistake.
static eini_syn *eini_expand(eini_prog *q, const eini_syn *v) {
  int id = v->exact ? EINI_MACRO_NORM : v->op;
  eini_syn *x = v->kid[0], *value[16] = {NULL};  // by the number of a name; that of x is 0
  const eini_macro *m = eini_macro_of(q, id);
  if (m != NULL && !v->exact && (x->kind != EINI_S_ACCESS || x->edge != NULL))
    x = eini_temp(q, x, x, EIN_FOLD_NONE, NULL, 0, x->pos);
  if (x == NULL || q->p.st != EIN_OK) return NULL;
  for (int i = 0; i < v->n; i++) value[m->part.kid[i]->sym] = i == 0 ? x : v->kid[i];
  for (int64_t i = eini_macros[id].most; i < m->part.n - 1 && q->p.st == EIN_OK; i += 2) {
    eini_syn **is = &value[m->part.kid[i]->sym], *part = m->part.kid[i + 1];
    if (*is != NULL) continue;  // an argument
    *is = eini_fill_in(q, m, v, value, part);
    if (part->kind != EINI_S_NUM) *is = eini_temp(q, *is, *is, EIN_FOLD_NONE, NULL, 0, x->pos);
  }
  return q->p.st == EIN_OK ? eini_fill_in(q, m, v, value, m->part.kid[m->part.n - 1]) : NULL;
}

// ---- leaves ----

static int eini_same_fill(const eini_syn *a, const eini_syn *b) {
  if (a == NULL || b == NULL) return a == b;
  return a->kind == b->kind && a->exact == b->exact && a->ival == b->ival &&
         memcmp(&a->re, &b->re, sizeof a->re) == 0;
}

// Does x hold the tensor padded by these numbers of elements, by the same rules?
static int eini_same_padding(const eini_padded *x, const eini_edge *edge, int rank,
                             const int64_t *low, const int64_t *high) {
  for (int r = 0; r < rank; r++) {
    if (x->low[r] != low[r] || x->high[r] != high[r]) return 0;
    if (low[r] == 0 && high[r] == 0) continue;
    if (x->edge[r].kind != edge[r].kind || !eini_same_fill(x->edge[r].fill, edge[r].fill)) return 0;
  }
  return 1;
}

// The dtype of an access with an edge constant: that of where(inside, X, constant). A constant that
// this dtype does not hold is a mistake.
static ein_dtype eini_fill_dtype(eini_prog *q, const eini_syn *c, ein_dtype t) {
  eini_expr e;
  memset(&e, 0, sizeof e);
  int k = eini_fill_node(q->g, &e, c);
  int x = k < 0 ? -1 : eini_expr_add(&q->g->arena, &e, EIN_OP_OPERAND, -1, 0, 0, 0);
  if (x < 0) return eini_pmem(&q->p), EIN_NONE;
  e.node[x].dtype = (unsigned char)t;
  ein_dtype meet = eini_meet(&e.node[x], &e.node[k]);
  if (!(c->exact && meet == EIN_I64) && !eini_dtype_holds(meet, c->re))
    eini_perr(&q->p, EIN_ERR_DTYPE, EINI_AT(c), "convert first: Z[i] : f64 = X[i], then read Z",
              "no %s has this value", ein_dtype_name(meet));
  return meet;
}

// The tensor an access with an edge rule reads, and its rows there.
static int eini_padded_access(eini_prog *q, const eini_syn *v, const eini_padding *by,
                              const eini_row **rows) {
  eini_parser *p = &q->p;
  int rank = q->g->tensor[v->id].rank, tensor = v->id;
  eini_padded *d = EINI_NEW(p->arena, eini_padded, 1);
  eini_row *moved = EINI_NEW(p->arena, eini_row, rank);
  int64_t *low = EINI_NEW(p->arena, int64_t, rank), *high = EINI_NEW(p->arena, int64_t, rank);
  if (d == NULL || moved == NULL || low == NULL || high == NULL) return eini_pmem(p), -1;
  for (int r = 0; r < rank; r++) {
    int64_t lo, hi, n = q->g->tensor[v->id].shape[r];
    int empty = 0;
    moved[r] = v->row[r];
    for (int i = 0; i < v->row[r].n; i++) empty |= q->var[v->row[r].var[i]].extent == 0;
    if (empty) continue;
    if (eini_row_range(q, &v->row[r], &lo, &hi) != EIN_OK) return -1;
    if (lo < -(INT64_MAX / 4) || hi > INT64_MAX / 4)
      return eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(&v->row[r]), NULL, "the padding is too large"),
             -1;
    if (v->edge[r].kind == EINI_EDGE_NONE) continue;  // proved to stay inside
    low[r] = lo < 0 ? -lo : 0;
    high[r] = hi >= n ? hi - n + 1 : 0;
    moved[r].offset += low[r];
  }
  *rows = moved;
  for (const eini_padded *x = q->padded; x != NULL; x = x->next)
    if (x->from == v->id && x->dtype == by->dtype && eini_same_padding(x, v->edge, rank, low, high))
      return x->to;
  eini_padding w = *by;
  for (int r = 0; r < rank && p->st == EIN_OK; r++) {
    char name[96];
    if (low[r] == 0 && high[r] == 0) continue;
    eini_fresh_name(q, name, sizeof name);
    w.pos = v->row[r].pos;
    w.edge = v->edge[r];
    eini_reported(p, eini_pad_axis(q->g, p->diag, &tensor, r, &w, low[r], high[r], name));
    w.read = EIN_NONE;
  }
  eini_padded made = {q->padded, v->id, tensor, by->dtype, v->edge, low, high};
  *d = made;
  if (p->st == EIN_OK) q->padded = d;
  return p->st == EIN_OK ? tensor : -1;
}

static int eini_build_access(eini_build *b, const eini_syn *v) {
  eini_prog *q = b->q;
  const eini_row *rows = v->row;
  int tensor = v->id;
  ein_dtype read = v->id < q->ndeclared ? q->declared[v->id] : EIN_NONE, t = read;
  if (v->edge != NULL && q->g->tensor[tensor].rank > 0) {
    ein_dtype own = read != EIN_NONE ? read : q->g->tensor[tensor].dtype;
    eini_padding by = {{EINI_EDGE_NONE, NULL}, read, own, v->pos};
    for (int r = 0; r < q->g->tensor[tensor].rank; r++)
      if (v->edge[r].fill != NULL) by.dtype = eini_fill_dtype(q, v->edge[r].fill, by.dtype);
    if (q->p.st != EIN_OK) return -1;
    tensor = eini_padded_access(q, v, &by, &rows);
    t = tensor != v->id || by.dtype == q->g->tensor[v->id].dtype ? EIN_NONE : by.dtype;
  }
  int k = tensor < 0 ? -1 : eini_operand(b, tensor, rows);
  int id = eini_emit_op(&b->em, EIN_OP_OPERAND, v->pos, k, 0);
  if (t == EIN_NONE) return id;
  id = eini_emit_op(&b->em, EIN_OP_CAST, v->pos, id, 0);
  if (id >= 0) b->em.e.node[id].dtype = (unsigned char)t;
  return id;
}

static int eini_build_size(eini_build *b, const eini_syn *v) {
  int64_t n = v->id >= 0 ? b->q->var[v->id].extent : v->ival;
  if (v->ival >= 0 && v->ival != n)
    return eini_perr(b->em.p, EIN_ERR_NAME, EINI_AT(v), "rename the index",
                     "size() is ambiguous here: the declared size is %lld, the index's extent %lld",
                     (long long)v->ival, (long long)n), -1;
  int id = eini_expr_int(b->em.arena, &b->em.e, v->pos, n);
  if (id < 0) return eini_pmem(b->em.p), -1;
  b->em.e.node[id].arg[0] = b->q->nopen > 0;
  return id;
}

static int eini_emit_leaf(eini_emit *em, const eini_syn *v) {
  eini_build *b = (eini_build *)(void *)em;
  eini_prog *q = b->q;
  eini_syn *x;
  switch (v->kind) {
    case EINI_S_INDEX: return eini_emit_op(em, EIN_OP_INDEX, v->pos, q->var[v->id].col, 0);
    case EINI_S_PARAM: return eini_emit_op(em, EIN_OP_PARAM, v->pos, v->id, 0);
    case EINI_S_SIZE: return eini_build_size(b, v);
    case EINI_S_ACCESS: return eini_build_access(b, v);
    case EINI_S_BODY: return eini_emit_tree(em, v->kid[0]);
    case EINI_S_MACRO: case EINI_S_REDUCE:
      x = v->kind == EINI_S_MACRO || v->exact
              ? eini_expand(q, v) : eini_temp(q, v, v->kid[0], v->op, v->bind, v->nbind, v->pos);
      if (x != NULL && v->exact) x->pos = x->kid[0]->pos = v->pos;  // a norm's root and sum
      return x == NULL ? -1 : eini_emit_tree(em, x);
    default: eini_perr(&q->p, EIN_ERR_INTERNAL, v->pos, v->len, NULL, "an unexpected tree");
  }
  return -1;
}
