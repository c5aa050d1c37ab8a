// ================================================================================================
// >>rewrite  from n-ary statements to sequences of small ones
// Takes a product of values and its fold; gives statements in a contraction order. Only legal
// splits (DESIGN: the way of the data); everything else stays one n-ary pass.
// ================================================================================================

typedef struct eini_split {
  ein_graph *g;
  eini_diag *diag;
  const eini_index *label;  // name and extent of each label id
  int nlabel;
  int *local;               // label id -> column of the statement being built, or -1
  int fold, join;           // join: EINI_OP_MUL, EINI_OP_ADD, ..
  int numpy;
  int64_t pos;
  int serial;               // numbers the temporaries
  int fastest;              // 1: a path gives way to one pass where that is predicted to be faster
  const ein_rates *rates;   // of the kernels that will run; NULL: not known
} eini_split;

// Appends a copy of a value's expression to *e, its operands numbered from op0 and its index
// values mapped to columns. Returns the root's node, -1 when out of memory.
static int eini_value_append(eini_split *sp, eini_expr *e, const eini_value *v, int op0) {
  int64_t base = e->n;
  for (int64_t i = 0; i < v->expr.n; i++) {
    eini_node n = v->expr.node[i];
    int id;
    if (n.op == EINI_OP_CALL) {
      int args[EINI_ARGS_MAX] = {0};
      for (int k = 0; k < n.arg[2]; k++) args[k] = v->expr.list[n.arg[1] + k] + (int)base;
      id = eini_expr_call(&sp->g->arena, e, n.pos, n.arg[0], n.arg[2], args);
      if (id < 0) return -1;
      e->node[id].dtype = n.dtype;
      continue;
    }
    id = eini_expr_add(&sp->g->arena, e, n.op, n.pos, 0, 0, 0);
    if (id < 0) return -1;
    if (n.op == EINI_OP_OPERAND) n.arg[0] += op0;
    if (n.op == EINI_OP_INDEX) n.arg[0] = sp->local[n.arg[0]];
    for (int k = 0; k < eini_ops[n.op].args; k++) n.arg[k] += (int)base;
    e->node[id] = n;
  }
  return (int)e->n - 1;
}

// The labels of a statement: the output's in the order of its axes, then the reduced ones.
static ein_status eini_stmt_labels(eini_split *sp, const eini_value *out, int nval,
                                   const eini_value *const *val, int **list, int *n, int *nfree) {
  int64_t room = out->nlabel;
  for (int i = 0; i < nval; i++) room += val[i]->nlabel;
  int *ids = EINI_NEW(&sp->g->arena, int, room);
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  int at = 0;
  for (int r = 0; r < out->map->rows; r++) {
    for (int c = 0; c < out->nlabel; c++) {
      int id = out->label[c];
      if (out->map->coef[(int64_t)r * out->nlabel + c] == 0 || sp->local[id] >= 0) continue;
      sp->local[id] = at;
      ids[at++] = id;
    }
  }
  for (int c = 0; c < out->nlabel; c++) {  // extent-1 labels may have no coefficient
    if (sp->local[out->label[c]] >= 0) continue;
    sp->local[out->label[c]] = at;
    ids[at++] = out->label[c];
  }
  *nfree = at;
  for (int i = 0; i < nval; i++) {
    for (int c = 0; c < val[i]->nlabel; c++) {
      int id = val[i]->label[c];
      if (sp->local[id] >= 0) continue;
      sp->local[id] = at;
      ids[at++] = id;
    }
  }
  *list = ids;
  *n = at;
  return EIN_OK;
}

static void eini_map_columns(const eini_split *sp, const eini_value *v, const ein_zmap *from,
                             ein_zmap *to) {
  for (int r = 0; r < from->rows; r++) {
    to->offset[r] = from->offset[r];
    for (int c = 0; c < v->nlabel; c++) {
      to->coef[(int64_t)r * to->cols + sp->local[v->label[c]]] =
          from->coef[(int64_t)r * v->nlabel + c];
    }
  }
}

// Adds the statement out = fold over the labels out lacks of join(values).
static ein_status eini_emit_stmt(eini_split *sp, const eini_value *out, int nval,
                            const eini_value *const *val, ein_rest rest) {
  ein_graph *g = sp->g;
  int *ids, n, nfree;
  EINI_TRY(eini_stmt_labels(sp, out, nval, val, &ids, &n, &nfree));
  int nop = 0;
  for (int i = 0; i < nval; i++) nop += val[i]->nop;
  int *ops = EINI_NEW(&g->arena, int, nop);
  if (ops == NULL) return EIN_ERR_NO_MEMORY;
  nop = 0;
  for (int i = 0; i < nval; i++) {
    for (int k = 0; k < val[i]->nop; k++) ops[nop++] = val[i]->op[k];
  }
  eini_stmt *s;
  EINI_TRY(eini_graph_add_stmt(g, out->op[0], n, nop, ops, &s));
  s->nfree = nfree;
  s->fold = n > nfree ? sp->fold : EINI_FOLD_NONE;
  s->numpy = sp->numpy;
  s->rest = rest;
  s->pos = sp->pos;
  for (int i = 0; i < n; i++) s->index[i] = sp->label[ids[i]];
  eini_map_columns(sp, out, out->map, &s->out_map);
  int op0 = 0, root = -1;
  for (int i = 0; i < nval; i++) {
    for (int k = 0; k < val[i]->nop; k++)
      eini_map_columns(sp, val[i], &val[i]->map[k], &s->proj[op0 + k]);
    int r = eini_value_append(sp, &s->expr, val[i], op0);
    op0 += val[i]->nop;
    if (r >= 0 && root >= 0) r = eini_expr_add(&g->arena, &s->expr, sp->join, sp->pos, root, r, 0);
    if (r < 0) return EIN_ERR_NO_MEMORY;
    root = r;
  }
  for (int i = 0; i < n; i++) sp->local[ids[i]] = -1;
  EINI_TRY(eini_stmt_finish(g, s, sp->diag));
  eini_tensor_fix_dtype(&g->tensor[out->op[0]]);
  return EIN_OK;
}

// A temporary over the given labels, one axis each, and the value that reads (or writes) it.
static ein_status eini_temp_value(eini_split *sp, int nlabel, const int *label, eini_value *v) {
  eini_arena *a = &sp->g->arena;
  memset(v, 0, sizeof *v);
  v->nlabel = nlabel;
  v->nop = 1;
  v->label = EINI_NEW(a, int, nlabel);
  v->op = EINI_NEW(a, int, 1);
  v->map = EINI_NEW(a, ein_zmap, 1);
  int64_t *shape = EINI_NEW(a, int64_t, nlabel);
  if (v->label == NULL || v->op == NULL || v->map == NULL || shape == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nlabel; i++) v->label[i] = label[i], shape[i] = sp->label[label[i]].extent;
  eini_sort_ints(v->label, nlabel);
  EINI_TRY(eini_zmap_new(a, nlabel, nlabel, v->map));
  for (int i = 0; i < nlabel; i++) {
    v->map->coef[(int64_t)i * nlabel + eini_find_sorted(v->label, nlabel, label[i])] = 1;
  }
  char name[32];
  int len = snprintf(name, sizeof name, "T.%d", ++sp->serial);
  EINI_TRY(eini_graph_add_tensor(sp->g, name, len, EIN_ROLE_TEMP, EIN_NONE, nlabel, shape, v->op));
  return eini_expr_add(a, &v->expr, EINI_OP_OPERAND, sp->pos, 0, 0, 0) < 0 ? EIN_ERR_NO_MEMORY
                                                                          : EIN_OK;
}

static void eini_count_labels(int *uses, const eini_value *v, int by) {
  for (int c = 0; c < v->nlabel; c++) uses[v->label[c]] += by;
}

// A value that is more than a tensor's elements at its labels: a diagonal, a conversion, a product.
static int eini_value_plain(const eini_value *v) {
  return v->nop == 1 && v->expr.n == 1 && v->map->rows == v->nlabel;
}

// Reduces a value over the labels that nothing else needs, in a statement of its own.
static ein_status eini_prereduce(eini_split *sp, int *uses, eini_value *v, int *kept) {
  int n = 0, gone = 0;
  for (int c = 0; c < v->nlabel; c++) {
    if (uses[v->label[c]] > 1) kept[n++] = v->label[c];
    else gone |= sp->label[v->label[c]].extent != 1;
  }
  if (!gone) return EIN_OK;
  eini_value t;
  EINI_TRY(eini_temp_value(sp, n, kept, &t));
  const eini_value *one = v;
  EINI_TRY(eini_emit_stmt(sp, &t, 1, &one, EIN_REST_ERROR));
  eini_count_labels(uses, v, -1);
  eini_count_labels(uses, &t, 1);
  *v = t;
  return EIN_OK;
}

// The network of a product, for the path search.
static ein_status eini_net_build(eini_arena *a, const eini_split *sp, int nval,
                                 const eini_value *val, const eini_value *out, eini_net *net) {
  memset(net, 0, sizeof *net);
  int64_t total = out->nlabel;
  for (int k = 0; k < nval; k++) total += val[k].nlabel;
  int *start = EINI_NEW(a, int, nval + 2), *labels = EINI_NEW(a, int, total + 1);
  int64_t *extent = EINI_NEW(a, int64_t, sp->nlabel + 1);
  if (start == NULL || labels == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  if (total > INT_MAX - 2) return EIN_ERR_TOO_LARGE;
  int at = 0;
  for (int k = 0; k <= nval; k++) {
    const eini_value *v = k < nval ? &val[k] : out;
    start[k] = at;
    for (int c = 0; c < v->nlabel; c++) labels[at++] = v->label[c];
  }
  start[nval + 1] = at;
  for (int i = 0; i < sp->nlabel; i++) extent[i] = sp->label[i].extent;
  net->nterm = nval;
  net->nlabel = sp->nlabel;
  net->extent = extent;
  net->start = start;
  net->labels = labels;
  return EIN_OK;
}
