// ================================================================================================
// >>factors  products in the statements of programs
// Takes a statement; finds the product that its fold distributes over, and has it split.
// ================================================================================================

// Does join distribute over fold, and is it a commutative, associative product?
static int eini_legal_join(const ein_graph *g, int fold, int op) {
  unsigned joins =
      fold >= EINI_FOLD_USER ? g->monoid[fold - EINI_FOLD_USER].joins : eini_folds[fold].joins;
  switch (op) {
    case EINI_OP_MUL: return (joins & EIN_JOIN_MUL) && fold != EINI_ANY;
    case EINI_OP_AND: return fold == EINI_ANY;
    case EINI_OP_OR: return fold == EINI_ALL;
    case EINI_OP_ADD: return (joins & EIN_JOIN_ADD) != 0;
    case EINI_OP_MAX: return (joins & EIN_JOIN_MAX) && fold != EINI_ALL;
    case EINI_OP_MIN: return (joins & EIN_JOIN_MIN) != 0;
    default: return 0;
  }
}

static void eini_mark_needed(const eini_expr *e, int root, char *need) {
  need[root] = 1;
  for (int i = root; i >= 0; i--) {
    const eini_node *n = &e->node[i];
    for (int k = 0; need[i] && k < eini_node_args(n); k++) need[eini_node_arg(e, n, k)] = 1;
  }
}

// Is the node a quotient of sums as well as a sum of quotients? Its divisor must be the same for
// all reduced indices, and what is divided of the same type. need: room for all nodes.
static int eini_hoistable(const eini_stmt *s, int id, char *need) {
  const eini_node *v = &s->expr.node[id];
  if (v->op != EINI_OP_DIV || s->fold != EINI_SUM) return 0;
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
    if (x->op == EINI_OP_INDEX && x->arg[0] >= s->nfree) return 0;
    if (x->op != EINI_OP_OPERAND) continue;
    const ein_zmap *m = &s->proj[x->arg[0]];
    for (int64_t c = 0; c < (int64_t)m->rows * m->cols; c++)
      if (m->coef[c] != 0 && c % m->cols >= s->nfree) return 0;
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
    } else if (join == EINI_OP_MUL && *m < e->n && eini_hoistable(s, id, need)) {
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

// The sub-expression under a root as a value of its own. label ids are the statement's columns.
static ein_status eini_factor_value(ein_graph *g, const eini_stmt *s, int root, eini_value *v) {
  eini_arena *a = &g->arena;
  memset(v, 0, sizeof *v);
  int *map = EINI_NEW(a, int, root + 1), *opmap = EINI_NEW(a, int, s->noperand + 1);
  char *need = EINI_NEW(a, char, root + 1), *seen = EINI_NEW(a, char, s->nindex + 1);
  v->op = EINI_NEW(a, int, s->noperand + 1);
  v->map = EINI_NEW(a, ein_zmap, s->noperand + 1);
  v->label = EINI_NEW(a, int, s->nindex + 1);
  if (map == NULL || opmap == NULL || need == NULL || seen == NULL || v->op == NULL ||
      v->map == NULL || v->label == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  eini_mark_needed(&s->expr, root, need);
  for (int i = 0; i <= root; i++) {
    if (!need[i]) continue;
    eini_node n = s->expr.node[i];
    if (n.op == EINI_OP_OPERAND) {
      int k = n.arg[0];
      if (opmap[k] == 0) {
        v->op[v->nop] = s->operand[k];
        v->map[v->nop] = s->proj[k];
        opmap[k] = ++v->nop;
        for (int64_t c = 0; c < (int64_t)s->proj[k].rows * s->nindex; c++)
          if (s->proj[k].coef[c] != 0) seen[c % s->nindex] = 1;
      }
      n.arg[0] = opmap[k] - 1;
    } else if (n.op == EINI_OP_INDEX) {
      seen[n.arg[0]] = 1;
    }
    int args[EINI_ARGS_MAX] = {0};
    for (int k = 0; k < eini_node_args(&n); k++) args[k] = map[eini_node_arg(&s->expr, &n, k)];
    if (n.op == EINI_OP_CALL) {
      map[i] = eini_expr_call(a, &v->expr, n.pos, n.arg[0], n.arg[2], args);
      if (map[i] >= 0) v->expr.node[map[i]].dtype = n.dtype;
    } else {
      map[i] = eini_expr_add(a, &v->expr, n.op, n.pos, 0, 0, 0);
      for (int k = 0; k < eini_ops[n.op].args; k++) n.arg[k] = args[k];
      if (map[i] >= 0) v->expr.node[map[i]] = n;
    }
    if (map[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  for (int c = 0; c < s->nindex; c++)
    if (seen[c]) v->label[v->nlabel++] = c;
  for (int k = 0; k < v->nop; k++) {  // keep the columns of its own labels only
    ein_zmap full = v->map[k];
    EINI_TRY(eini_zmap_new(a, full.rows, v->nlabel, &v->map[k]));
    for (int r = 0; r < full.rows; r++) {
      v->map[k].offset[r] = full.offset[r];
      for (int c = 0; c < v->nlabel; c++) {
        v->map[k].coef[(int64_t)r * v->nlabel + c] =
            full.coef[(int64_t)r * full.cols + v->label[c]];
      }
    }
  }
  return EIN_OK;
}

// Factors without an index (literals, params, rank-0 tensors) ride along with the smallest factor.
static ein_status eini_merge_scalars(eini_split *sp, eini_value *val, int *n) {
  int best = -1, kept = 0;
  double low = 0;
  for (int k = 0; k < *n; k++) {
    double size = 1;
    for (int c = 0; c < val[k].nlabel; c++) size *= (double)sp->label[val[k].label[c]].extent;
    if (val[k].nlabel > 0 && (best < 0 || size < low)) best = k, low = size;
  }
  if (best < 0) return EIN_OK;
  eini_arena *a = &sp->g->arena;
  eini_value *v = &val[best];
  for (int k = 0; k < *n; k++) {
    if (val[k].nlabel > 0) continue;
    eini_value *x = &val[k];
    int *op = EINI_NEW(a, int, v->nop + x->nop);
    ein_zmap *map = EINI_NEW(a, ein_zmap, v->nop + x->nop);
    if (op == NULL || map == NULL) return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < v->nop; i++) op[i] = v->op[i], map[i] = v->map[i];
    for (int i = 0; i < x->nop; i++) {
      op[v->nop + i] = x->op[i];
      EINI_TRY(eini_zmap_new(a, x->map[i].rows, v->nlabel, &map[v->nop + i]));
      for (int r = 0; r < x->map[i].rows; r++) map[v->nop + i].offset[r] = x->map[i].offset[r];
    }
    int left = (int)v->expr.n - 1;
    int right = eini_value_append(sp, &v->expr, x, v->nop);
    if (right < 0 || eini_expr_add(a, &v->expr, sp->join, sp->pos, left, right, 0) < 0)
      return EIN_ERR_NO_MEMORY;
    v->nop += x->nop;
    v->op = op;
    v->map = map;
  }
  for (int k = 0; k < *n; k++)
    if (val[k].nlabel > 0) val[kept++] = val[k];
  *n = kept;
  return EIN_OK;
}

// Emits the product of n values into target, in an order of its own when there are two or more.
static ein_status eini_split_product(eini_split *sp, int n, eini_value *val,
                                     const eini_value *target, const eini_path_opts *opts,
                                     eini_path *path, ein_rest rest) {
  const eini_value *one = val;
  eini_net net;
  if (n == 1) return eini_emit_stmt(sp, target, 1, &one, rest);
  EINI_TRY(eini_net_build(&sp->g->arena, sp, n, val, target, &net));
  EINI_TRY(eini_path_find(&sp->g->arena, &net, opts, path));
  return eini_split_best(sp, &net, val, target, path, rest);
}

// The product into a temporary over the free labels that it has, then that over the m divisors.
static ein_status eini_split_quotient(eini_split *sp, int n, eini_value *val, int m,
                                      const eini_value *under, const int *uses,
                                      const eini_value *out, const eini_path_opts *opts,
                                      eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  int *kept = EINI_NEW(a, int, out->nlabel), nkept = 0;
  const eini_value **all = EINI_NEW(a, const eini_value *, m + 1);
  eini_value t;
  if (kept == NULL || all == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < out->nlabel; c++)
    if (uses[out->label[c]] > 0) kept[nkept++] = out->label[c];
  EINI_TRY(eini_temp_value(sp, nkept, kept, &t));
  EINI_TRY(eini_split_product(sp, n, val, &t, opts, path, EIN_REST_ERROR));
  all[0] = &t;
  for (int k = 0; k < m; k++) all[k + 1] = &under[k];
  sp->join = EINI_OP_DIV;
  return eini_emit_stmt(sp, out, m + 1, all, rest);
}

// Splits one folded statement of a program when that is legal and there are three factors or more,
// an index that only one factor has, or a divisor that the whole sum has. *done tells whether it
// was replaced by emitted statements.
static ein_status eini_split_stmt(eini_split *sp, const eini_stmt *s, const eini_path_opts *opts,
                                  eini_path *path, int *done) {
  ein_graph *g = sp->g;
  eini_arena *a = &g->arena;
  *done = 0;
  int join = s->expr.node[s->expr.n - 1].op, n, m;
  if (join == EINI_OP_DIV) join = EINI_OP_MUL;
  if (s->fold == EINI_FOLD_NONE || !eini_legal_join(g, s->fold, join)) return EIN_OK;
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int *roots;
  EINI_TRY(eini_factors(a, s, join, &roots, &n, &m));
  eini_value *val = EINI_NEW(a, eini_value, n + m);
  int *uses = EINI_NEW(a, int, s->nindex);
  if (val == NULL || uses == NULL) return EIN_ERR_NO_MEMORY;
  const eini_value *under = val + n;
  for (int k = 0; k < n + m; k++) {
    EINI_TRY(eini_factor_value(g, s, roots[k], &val[k]));
    for (int c = 0; k < n && c < val[k].nlabel; c++) uses[val[k].label[c]]++;
  }
  int alone = 0;
  for (int c = s->nfree; c < s->nindex; c++) {
    if (uses[c] == 0) return EIN_OK;  // needs the monoid's power: one pass does it by itself
    alone += uses[c] == 1 && s->index[c].extent > 1;
  }
  sp->label = s->index;
  sp->nlabel = s->nindex;
  sp->local = EINI_NEW(a, int, s->nindex);
  if (sp->local == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) sp->local[c] = -1;
  sp->fold = s->fold;
  sp->join = join;
  sp->numpy = s->numpy;
  sp->pos = s->pos;
  int written = n;
  EINI_TRY(eini_merge_scalars(sp, val, &n));
  if (m == 0 && (n < 2 || (n < 3 && n == written && !alone))) return EIN_OK;
  eini_value out;
  memset(&out, 0, sizeof out);
  out.nlabel = s->nfree;
  out.label = EINI_NEW(a, int, s->nfree);
  out.op = EINI_NEW(a, int, 1);
  out.map = EINI_NEW(a, ein_zmap, 1);
  if (out.label == NULL || out.op == NULL || out.map == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(a, s->out_map.rows, s->nfree, out.map));
  out.op[0] = s->out;
  for (int c = 0; c < s->nfree; c++) out.label[c] = c;
  for (int r = 0; r < s->out_map.rows; r++) {
    out.map->offset[r] = s->out_map.offset[r];
    for (int c = 0; c < s->nfree; c++) {
      out.map->coef[(int64_t)r * s->nfree + c] = s->out_map.coef[(int64_t)r * s->nindex + c];
    }
  }
  *done = 1;
  if (m == 0) return eini_split_product(sp, n, val, &out, opts, path, s->rest);
  return eini_split_quotient(sp, n, val, m, under, uses, &out, opts, path, s->rest);
}
