// ================================================================================================
// >>factors  products in the statements of programs
// Takes a statement; finds the product that its fold distributes over, and has it split.
// ================================================================================================

// Does join distribute over fold, and is it a commutative, associative product?
static int eini_legal_join(const ein_graph *g, int fold, int op) {
  unsigned joins =
      fold >= EIN_FOLD_USER ? g->monoid[fold - EIN_FOLD_USER].joins : eini_folds[fold].joins;
  switch (op) {
    case EIN_OP_MUL: return (joins & EIN_JOIN_MUL) && fold != EIN_FOLD_ANY;
    case EIN_OP_AND: return fold == EIN_FOLD_ANY;
    case EIN_OP_OR: return fold == EIN_FOLD_ALL;
    case EIN_OP_ADD: return (joins & EIN_JOIN_ADD) != 0;
    case EIN_OP_MAX: return (joins & EIN_JOIN_MAX) && fold != EIN_FOLD_ALL;
    case EIN_OP_MIN: return (joins & EIN_JOIN_MIN) != 0;
    default: return 0;
  }
}

// Is the node a quotient of sums as well as a sum of quotients? Its divisor must be the same for
// all reduced indices, and what is divided of the same type. need: room for all nodes.
static int eini_hoistable(const eini_stmt *s, int id, char *need) {
  const eini_node *v = &s->expr.node[id];
  if (v->op != EIN_OP_DIV || s->fold != EIN_FOLD_SUM) return 0;
  const int top = v->arg[0], under = v->arg[1];
  if (ein_dtype_compute((ein_dtype)s->expr.node[top].dtype) !=
      ein_dtype_compute((ein_dtype)v->dtype)) {
    return 0;
  }
  memset(need, 0, (size_t)s->expr.n);
  eini_mark_needed(&s->expr, under, need);
  for (int i = 0; i <= under; i++) {
    const eini_node *x = &s->expr.node[i];
    if (!need[i]) continue;
    if (x->op == EIN_OP_INDEX && x->arg[0] >= s->nfree) return 0;
    if (x->op != EIN_OP_OPERAND) continue;
    const eini_map *m = &s->proj[x->arg[0]];
    for (int k = 0; k < m->first[m->rows]; k++)
      if (m->term[k].index >= s->nfree) return 0;
  }
  return 1;
}

// Roots of the factors of a typed product, then of the m divisors that may follow the fold; casts
// stop it, so types never change.
static ein_status eini_factors(eini_arena *a, const eini_stmt *s, int join, int **roots, int *n,
                               int *m) {
  const eini_expr *e = &s->expr;
  int *stack = EINI_NEW(a, int, e->n + 1), *list = EINI_NEW(a, int, 2 * e->n + 2);
  int *under = EINI_NEW(a, int, e->n + 1);
  char *need = EINI_NEW(a, char, e->n);
  if (stack == NULL || list == NULL || under == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  int top = 0;
  *n = *m = 0;
  stack[top++] = (int)e->n - 1;
  while (top > 0) {
    int id = stack[--top];
    const eini_node *v = &e->node[id];
    if (v->op == join && top + 2 <= e->n && *n + top < e->n) {
      stack[top++] = v->arg[1];
      stack[top++] = v->arg[0];
    } else if (join == EIN_OP_MUL && *m < e->n && eini_hoistable(s, id, need)) {
      stack[top++] = v->arg[0];
      under[(*m)++] = v->arg[1];
    } else {
      list[(*n)++] = id;
    }
  }
  for (int k = 0; k < *m; k++) list[*n + k] = under[k];
  *roots = list;
  return EIN_OK;
}

// Factors without an index (literals, params, rank-0 tensors) ride along with the smallest factor.
static ein_status eini_merge_scalars(eini_split *sp, eini_member *val, int *n) {
  int best = -1, kept = 0, roots = 1;
  double low = 0;
  for (int k = 0; k < *n; k++) {
    double size = 1;
    for (int c = 0; c < val[k].nlabel; c++) size *= (double)sp->w.index[val[k].label[c]].extent;
    if (val[k].nlabel > 0 && (best < 0 || size < low)) best = k, low = size;
    roots += val[k].nlabel == 0;
  }
  if (best < 0 || roots == 1) return EIN_OK;
  int *root = EINI_NEW(&sp->g->arena, int, roots);
  if (root == NULL) return EIN_ERR_NO_MEMORY;
  root[0] = val[best].root[0];
  for (int k = 0, at = 1; k < *n; k++)
    if (val[k].nlabel == 0) root[at++] = val[k].root[0];
  val[best].root = root;
  val[best].nroot = roots;
  for (int k = 0; k < *n; k++)
    if (val[k].nlabel > 0) val[kept++] = val[k];
  *n = kept;
  return EIN_OK;
}

// Emits the product of n members into target, in an order of its own when there are two or more.
static ein_status eini_split_product(eini_split *sp, int n, eini_member *val,
                                     const eini_member *target, const eini_path_opts *opts,
                                     eini_path *path, ein_rest rest) {
  const eini_member *one = val;
  eini_net net;
  if (n == 1) return eini_emit_stmt(sp, target, 1, &one, rest);
  EINI_TRY(eini_net_build(&sp->g->arena, sp, n, val, target, &net));
  EINI_TRY(eini_path_find(&sp->g->arena, &net, opts, path));
  return eini_split_best(sp, &net, val, target, path, rest);
}

// The product into a temporary over the free labels that it has, then that over the m divisors.
static ein_status eini_split_quotient(eini_split *sp, int n, eini_member *val, int m,
                                      const eini_member *under, const int *uses,
                                      const eini_member *out, const eini_path_opts *opts,
                                      eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  int *kept = EINI_NEW(a, int, out->nlabel), nkept = 0;
  const eini_member **all = EINI_NEW(a, const eini_member *, m + 1);
  eini_member t;
  if (kept == NULL || all == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < out->nlabel; c++)
    if (uses[out->label[c]] > 0) kept[nkept++] = out->label[c];
  EINI_TRY(eini_temp_member(sp, nkept, kept, &t));
  EINI_TRY(eini_split_product(sp, n, val, &t, opts, path, EIN_REST_ERROR));
  all[0] = &t;
  for (int k = 0; k < m; k++) all[k + 1] = &under[k];
  sp->join = EIN_OP_DIV;
  return eini_emit_stmt(sp, out, m + 1, all, rest);
}

// Splits one folded statement of a program when that is legal and there are three factors or more,
// an index that only one factor has, or a divisor that the whole sum has. *done tells whether it
// was replaced by emitted statements.
static ein_status eini_split_stmt(eini_split *sp, const eini_stmt *s, const eini_path_opts *opts,
                                  eini_path *path, int *done) {
  eini_arena *a = &sp->g->arena;
  *done = 0;
  int join = s->expr.node[s->expr.n - 1].op, n, m;
  if (join == EIN_OP_DIV) join = EIN_OP_MUL;
  if (s->fold == EIN_FOLD_NONE || !eini_legal_join(sp->g, s->fold, join)) return EIN_OK;
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int *roots;
  EINI_TRY(eini_factors(a, s, join, &roots, &n, &m));
  EINI_TRY(eini_split_begin(sp, s));
  sp->join = join;
  eini_member *val = EINI_NEW(a, eini_member, n + m), out;
  int *uses = EINI_NEW(a, int, s->nindex), *freely = EINI_NEW(a, int, s->nfree);
  if (val == NULL || uses == NULL || freely == NULL) return EIN_ERR_NO_MEMORY;
  const eini_member *under = val + n;
  for (int k = 0; k < n + m; k++) {
    EINI_TRY(eini_member_of(sp, roots[k], &val[k]));
    if (k < n) eini_count_labels(uses, &val[k], 1);
  }
  int alone = 0;
  for (int c = s->nfree; c < s->nindex; c++) {
    if (uses[c] == 0) return EIN_OK;  // needs the monoid's power: one pass does it by itself
    alone += uses[c] == 1 && s->index[c].extent > 1;
  }
  int written = n;
  EINI_TRY(eini_merge_scalars(sp, val, &n));
  if (m == 0 && (n < 2 || (n < 3 && n == written && !alone))) return EIN_OK;
  for (int c = 0; c < s->nfree; c++) freely[c] = c;
  EINI_TRY(eini_member_new(sp, s->out, &s->out_map, s->nfree, freely, &out));
  *done = 1;
  if (m == 0) return eini_split_product(sp, n, val, &out, opts, path, s->rest);
  return eini_split_quotient(sp, n, val, m, under, uses, &out, opts, path, s->rest);
}
