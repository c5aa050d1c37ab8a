// ================================================================================================
// >>quotients  what is divided before a sum that does not depend on the divisor
// Takes a graph; finds quotients of tensors whose readers are sums of products that have the
// divisor's indices, so that each may divide its sum in their place: softmax's, for one.
// ================================================================================================

// The index that coordinate r of a tensor is, as s reads or makes it; -1: another form.
static int eini_quotient_row(const eini_stmt *s, const eini_map *m, int r) {
  const int c = eini_plain_row(m, r);
  return c >= 0 && c < s->nindex && eini_map_uses(m, c) == 1 ? c : -1;
}

// Is a statement nothing but a temporary of one quotient, each index an axis?
static int eini_quotient_is(const ein_graph *g, const eini_stmt *s) {
  const eini_tensor *t = &g->tensor[s->out];
  const eini_node *v = s->expr.node;
  if (t->role != EIN_ROLE_TEMP || t->nstmt != 1 || s->fold != EIN_FOLD_NONE || s->noperand != 2 ||
      s->expr.n != 3 || s->rest != EIN_REST_ERROR || s->carry != NULL || t->rank != s->nindex ||
      s->type != t->dtype || ein_dtype_compute(t->dtype) != t->dtype || t->dtype < EIN_F32)
    return 0;
  if (v[2].op != EIN_OP_DIV || v[0].op != EIN_OP_OPERAND || v[1].op != EIN_OP_OPERAND ||
      v[2].arg[0] == v[2].arg[1] || v[2].arg[0] > 1 || v[2].arg[1] > 1 ||
      v[0].arg[0] == v[1].arg[0] || v[0].dtype != t->dtype || v[1].dtype != t->dtype)
    return 0;
  for (int r = 0; r < t->rank; r++) {
    const int c = eini_quotient_row(s, &s->out_map, r);
    if (c < 0 || s->index[c].extent != t->shape[r]) return 0;
  }
  return 1;
}

// The operand of a quotient that is divided, and the divisor.
static int eini_quotient_part(const eini_stmt *q, int under) {
  return q->expr.node[q->expr.node[2].arg[under]].arg[0];
}

// May s divide its sum in place of reading quotient q by operand k?
static int eini_quotient_taken(const ein_graph *g, const eini_stmt *q, const eini_stmt *s, int k) {
  const eini_map *under = &q->proj[eini_quotient_part(q, 1)], *m = &s->proj[k];
  int sums = 0;
  if (s->fold != EIN_FOLD_SUM || s->carry != NULL || s->hint != NULL || s->numpy ||
      s->type != g->tensor[q->out].dtype || eini_stmt_empty(s, 0, s->nindex) ||
      s->expr.n == 1 || !eini_expr_factor(&s->expr, k))
    return 0;
  for (int r = 0; r < m->rows; r++) {
    const int c = eini_quotient_row(s, m, r);
    if (c < 0 || s->index[c].extent != g->tensor[q->out].shape[r]) return 0;
    if (c < s->nfree) continue;
    sums += s->index[c].extent > 1;
    if (eini_map_uses(under, eini_plain_row(&q->out_map, r)) > 0) return 0;
  }
  return sums > 0;
}

// by[t]: statement + 1 of the quotient that tensor t is, if all that read it take it and divide
// less than it does; else 0.
static ein_status eini_quotients_find(eini_arena *a, const ein_graph *g, int64_t **by) {
  double *left = EINI_NEW(a, double, g->ntensor + 1);
  *by = EINI_NEW(a, int64_t, g->ntensor + 1);
  if (*by == NULL || left == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    for (int k = 0; k < s->noperand; k++) {
      const int t = s->operand[k];
      if ((*by)[t] == 0) continue;
      if (!eini_quotient_taken(g, &g->stmt[(*by)[t] - 1], s, k)) left[t] = -INFINITY;
      left[t] -= eini_points(s, NULL, 0, s->nfree);
    }
    if (!eini_quotient_is(g, s)) continue;
    (*by)[s->out] = i + 1;
    left[s->out] = eini_points(s, NULL, 0, s->nindex);
  }
  for (int64_t t = 0; t < g->ntensor; t++)
    if (!(left[t] > 0)) (*by)[t] = 0;
  return EIN_OK;
}

// s with quotient q in place of operand k.
static ein_status eini_quotient_put(eini_arena *a, const ein_graph *g, const eini_stmt *q, int k,
                                    eini_stmt *s) {
  const int n = s->noperand, top = eini_quotient_part(q, 0), under = eini_quotient_part(q, 1);
  int *operand = EINI_NEW(a, int, n + 1), *at = EINI_NEW(a, int, q->nindex + 1);
  int *to = EINI_NEW(a, int, s->expr.n + 1);
  eini_map *proj = EINI_NEW(a, eini_map, n + 1);
  eini_expr e;
  memset(&e, 0, sizeof e);
  if (operand == NULL || at == NULL || to == NULL || proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < s->proj[k].rows; r++)
    at[eini_plain_row(&q->out_map, r)] = eini_plain_row(&s->proj[k], r);
  memcpy(operand, s->operand, (size_t)n * sizeof *operand);
  memcpy(proj, s->proj, (size_t)n * sizeof *proj);
  operand[k] = q->operand[top];
  operand[n] = q->operand[under];
  EINI_TRY(eini_map_new(a, g->tensor[operand[k]].rank, s->nindex, &proj[k]));
  EINI_TRY(eini_map_copy(a, &proj[k], &q->proj[top], at));
  EINI_TRY(eini_map_new(a, g->tensor[operand[n]].rank, s->nindex, &proj[n]));
  EINI_TRY(eini_map_copy(a, &proj[n], &q->proj[under], at));
  for (int i = 0; i < s->expr.n; i++) {
    if ((to[i] = eini_node_copy(a, &s->expr, i, to, &e)) < 0) return EIN_ERR_NO_MEMORY;
    const eini_node v = e.node[to[i]];
    if (v.op != EIN_OP_OPERAND || v.arg[0] != k) continue;
    const int by = eini_expr_add(a, &e, EIN_OP_OPERAND, v.pos, n, 0, 0);
    const int made = by < 0 ? -1 : eini_expr_add(a, &e, EIN_OP_DIV, v.pos, to[i], by, 0);
    if (made < 0) return EIN_ERR_NO_MEMORY;
    e.node[by].dtype = e.node[made].dtype = v.dtype;
    to[i] = made;
  }
  s->noperand = n + 1;
  s->operand = operand;
  s->proj = proj;
  s->expr = e;
  return EIN_OK;
}

// The statement with the quotients that it reads; they live in `a`.
static ein_status eini_quotients_put(eini_arena *a, const ein_graph *g, const int64_t *by,
                                     eini_stmt *s) {
  const int n = s->noperand;
  for (int k = 0; k < n; k++) {
    const int64_t q = by[s->operand[k]];
    if (q > 0) EINI_TRY(eini_quotient_put(a, g, &g->stmt[q - 1], k, s));
  }
  return EIN_OK;
}
