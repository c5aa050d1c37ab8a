// ================================================================================================
// >>recast-read  reading through what is read
// Takes a statement and an operand; puts what makes the operand in its place: substitution, and
// folds of folds. Pieces are read through where all that is read lies in one of them.
// ================================================================================================

// Indices of p, the free ones, as the statement s says them where it reads operand k; `inner` has a
// row for each index of p. Says why not where p does not make all that is read.
static ein_status eini_pull_rows(eini_recast *x, const eini_stmt *s, int k, const eini_stmt *p,
                                 eini_map *inner) {
  const eini_map *m = &s->proj[k];
  int *have = EINI_NEW(x->scratch, int, p->nindex);
  int64_t *extent = EINI_NEW(x->scratch, int64_t, inner->cols);
  if (have == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) extent[i] = s->index[i].extent;
  for (int r = 0; r < m->rows; r++) {
    int64_t by, lo, hi;
    const int c = eini_row_index(&p->out_map, r, &by);
    const int64_t apart = m->offset[r] - p->out_map.offset[r];
    if (eini_map_terms(&p->out_map, r) > 1)
      return eini_recast_no(x, "it is written at coordinates that are sums of indices");
    EINI_TRY(eini_map_row_range(m, r, extent, &lo, &hi));
    if (c < 0) {
      if (lo == hi && lo == p->out_map.offset[r]) continue;
      return eini_recast_no(x, "not all that is read is made by one statement");
    }
    if (have[c]++) return eini_recast_no(x, "it is written on a diagonal");
    int even = apart % by == 0;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) even &= m->term[e].coef % by == 0;
    if (!even) return eini_recast_no(x, "not all that is read is made by one statement");
    inner->offset[c] = apart / by;
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      EINI_TRY(eini_map_set(x->scratch, inner, c, m->term[e].index, m->term[e].coef / by));
    EINI_TRY(eini_map_row_range(inner, c, extent, &lo, &hi));
    if (lo < 0 || hi >= p->index[c].extent)
      return eini_recast_no(x, "not all that is read is made by one statement");
  }
  for (int c = 0; c < p->nfree; c++)
    if (!have[c] && p->index[c].extent != 1)
      return eini_recast_no(x, "it is written at fewer coordinates than it has indices");
  return EIN_OK;
}

// The statement that makes all that s reads by operand k; NULL, with the reason, where none does.
// inner: see above, its columns are those of s and behind them `more`.
static ein_status eini_pull_maker(eini_recast *x, const eini_stmt *s, int k,
                                  const eini_stmt **maker, eini_map *inner) {
  const ein_graph *g = x->from;
  *maker = NULL;
  x->why = g->tensor[s->operand[k]].role == EIN_ROLE_INPUT ? EINI_RECAST_INPUT
                                                           : "nothing makes what it reads";
  if (eini_stmt_empty(s, 0, s->nindex)) return eini_recast_no(x, "its index space is empty");
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *p = &g->stmt[i];
    if (p == s) break;
    if (p->out != s->operand[k]) continue;
    x->why = NULL;
    EINI_TRY(eini_map_new(x->scratch, p->nindex, s->nindex + p->nindex - p->nfree, inner));
    EINI_TRY(eini_pull_rows(x, s, k, p, inner));
    if (x->why != NULL) continue;
    for (int c = p->nfree; c < p->nindex; c++)
      EINI_TRY(eini_map_set(x->scratch, inner, c, s->nindex + c - p->nfree, 1));
    *maker = p;
    return EIN_OK;
  }
  return EIN_OK;
}

// The statement with what p computes in place of operand k. reduced: p's reduced indices are its
// own, behind those it has.
static ein_status eini_pull_apply(eini_recast *x, const eini_stmt *s, int k, const eini_stmt *p,
                                  const eini_map *inner, int fold) {
  eini_arena *a = x->scratch;
  const int first = s->noperand, n = inner->cols;
  int *at = EINI_NEW(a, int, p->expr.n + 1), *to = EINI_NEW(a, int, s->expr.n + 1), made = -1;
  eini_stmt f;
  if (at == NULL || to == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_recast_draft(x, s, n, s->nfree, p->noperand, NULL, &f));
  for (int c = p->nfree; c < p->nindex; c++) f.index[s->nindex + c - p->nfree] = p->index[c];
  for (int q = 0; q < p->noperand; q++) {
    f.operand[first + q] = p->operand[q];
    EINI_TRY(eini_map_through(a, &p->proj[q], inner, &f.proj[first + q]));
  }
  f.noperand += p->noperand;
  f.fold = fold;
  memset(&f.expr, 0, sizeof f.expr);
  for (int i = 0; i < p->expr.n; i++) {
    const eini_node *v = &p->expr.node[i];
    made = at[i] = v->op == EIN_OP_INDEX ? eini_recast_row(x, &f.expr, inner, v->arg[0])
                                         : eini_node_copy(a, &p->expr, i, at, &f.expr);
    if (made < 0) return EIN_ERR_NO_MEMORY;
    if (v->op == EIN_OP_OPERAND) f.expr.node[made].arg[0] += first;
  }
  if (!eini_recast_kept(x->from, p))
    made = eini_recast_cast(x, &f.expr, made, x->from->tensor[p->out].dtype);
  for (int i = 0; i < s->expr.n; i++) {
    const eini_node *v = &s->expr.node[i];
    to[i] = v->op == EIN_OP_OPERAND && v->arg[0] == k
                ? made : eini_node_copy(a, &s->expr, i, to, &f.expr);
    if (to[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  return eini_recast_append(x, &f, to[s->expr.n - 1]);
}

// ---- inline, recompute ----

// Substitution of what has no fold. again: others read it, too, or it is observed, so that it is
// computed again in place of being read.
static ein_status eini_pull(eini_recast *x, int64_t i, int k, int again) {
  const eini_stmt *s = &x->from->stmt[i], *p;
  const int shared = eini_recast_readers(x->from, s->operand[k]) > 1;
  eini_map inner;
  EINI_TRY(eini_pull_maker(x, s, k, &p, &inner));
  if (p == NULL) return EIN_OK;
  if (p->fold != EIN_FOLD_NONE) return eini_recast_no(x, "what it reads is a fold");
  if (again != shared)
    return eini_recast_no(x, shared ? "what it reads is read elsewhere or observed: recompute it"
                                    : "nothing else reads what it reads: inline it");
  if (p->expr.n + s->expr.n > EINI_RECAST_NODES)
    return eini_recast_no(x, "the expression would be too long");
  return x->g == NULL ? EIN_OK : eini_pull_apply(x, s, k, p, &inner, s->fold);
}

static ein_status eini_rule_inline(eini_recast *x, int64_t i, int k) {
  return eini_pull(x, i, k, 0);
}

static ein_status eini_rule_recompute(eini_recast *x, int64_t i, int k) {
  return eini_pull(x, i, k, 1);
}

// ---- join ----

static int eini_join_plain(const eini_stmt *s) {
  return s->expr.node[s->expr.n - 1].op == EIN_OP_OPERAND;
}

static ein_status eini_rule_join(eini_recast *x, int64_t i, int k) {
  const eini_stmt *s = &x->from->stmt[i], *p;
  eini_map inner;
  int fold = 0;
  EINI_TRY(eini_pull_maker(x, s, k, &p, &inner));
  if (p == NULL) return EIN_OK;
  fold = p->fold;
  if (fold == EIN_FOLD_NONE) return eini_recast_no(x, "what it reads is no fold");
  if (eini_recast_readers(x->from, s->operand[k]) > 1)
    return eini_recast_no(x, "what it reads is read elsewhere or observed");
  if (!eini_recast_kept(x->from, p))
    return eini_recast_no(x, "what it reads is rounded when it is stored");
  const int same = s->fold == fold && fold <= EIN_FOLD_ALL && fold != EIN_FOLD_NONE;
  if (eini_join_plain(s) ? s->fold != EIN_FOLD_NONE && !same
                         : fold != EIN_FOLD_SUM || (s->fold != EIN_FOLD_NONE && !same))
    return eini_recast_no(x, "the folds are not of one kind, or not a sum of products");
  if (!eini_join_plain(s) && !eini_expr_factor(&s->expr, k))
    return eini_recast_no(x, "what it reads is not one factor of its product");
  const ein_dtype t = (ein_dtype)p->expr.node[p->expr.n - 1].dtype;
  if (t != x->from->tensor[p->out].dtype && !eini_join_plain(s))
    return eini_recast_no(x, "the fold changes the dtype");
  if (p->expr.n + s->expr.n > EINI_RECAST_NODES)
    return eini_recast_no(x, "the expression would be too long");
  return x->g == NULL ? EIN_OK : eini_pull_apply(x, s, k, p, &inner, fold);
}
