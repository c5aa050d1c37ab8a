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

// ---- paths that were known before ----

// Factors in another order, factor k here being factor at[k] there, and perhaps a path over those.
typedef struct eini_given {
  int n;
  const int *at;
  const uint64_t *letter;   // of indices, their order there
  int order;                // 1: statements are made in that order, as they are for other spellings
  int wanted;               // 1: the path is wanted
  const eini_path *path;    // NULL: one pass
  int taken;                // 1: it was
} eini_given;

// A path that was found may be so many times better in flops and largest intermediate before one
// that is given is not taken: what others wrote must not make a product that fits one that does
// not.
#define EINI_GIVEN_WORSE 16

// A path over n factors as one over the same in another order: factor at[k] of the old order is
// factor k of the new one. EIN_ERR_ARGUMENT: it is none.
static ein_status eini_path_reorder(eini_arena *a, const eini_path *from, int n, const int *at,
                                    eini_path *to) {
  const int npos = from->first[from->nstep];
  if (npos > INT_MAX / 4 - n || from->nstep > INT_MAX / 4 - n) return EIN_ERR_TOO_LARGE;
  int *old = EINI_NEW(a, int, n), *list = EINI_NEW(a, int, n), *id = EINI_NEW(a, int, npos);
  int left = n;
  memset(to, 0, sizeof *to);
  EINI_TRY(eini_path_room(a, from->nstep, npos, to));
  if (old == NULL || list == NULL || id == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) old[at[k]] = list[k] = k;
  to->nstep = from->nstep;
  for (int i = 0; i < from->nstep; i++) {
    const int first = to->first[i] = from->first[i], m = from->first[i + 1] - first;
    if (m < 1) return EIN_ERR_ARGUMENT;
    for (int k = 0; k < m; k++) {
      const int p = from->pos[first + k];
      if (p < 0 || p >= left || old[p] < 0) return EIN_ERR_ARGUMENT;
      id[k] = old[p];
      old[p] = -1;
    }
    int kept = 0, found = 0;
    for (int k = 0; k < left; k++)
      if (old[k] >= 0) old[kept++] = old[k];
    old[kept] = n + i;
    kept = 0;
    for (int k = 0; k < left; k++) {
      int taken = 0;
      for (int q = 0; q < m && !taken; q++) taken = id[q] == list[k];
      if (taken) to->pos[first + found++] = k;
      else list[kept++] = list[k];
    }
    list[kept] = n + i;
    left = kept + 1;
  }
  to->first[from->nstep] = npos;
  return left == 1 ? EIN_OK : EIN_ERR_ARGUMENT;
}

// One pass over n factors as a path.
static ein_status eini_path_whole(eini_arena *a, int n, eini_path *path) {
  memset(path, 0, sizeof *path);
  EINI_TRY(eini_path_room(a, 1, n, path));
  path->nstep = 1;
  path->first[1] = n;
  for (int k = 0; k < n; k++) path->pos[k] = k;
  return EIN_OK;
}

// A path that is given takes the place of the one found, if it is one and not much worse.
static ein_status eini_path_give(eini_arena *a, const eini_net *net, eini_given *g,
                                 eini_path *path) {
  eini_path mine;
  int bad;
  if (g == NULL || !g->wanted || g->n != net->nterm || net->nterm < 2) return EIN_OK;
  ein_status st = g->path == NULL ? eini_path_whole(a, g->n, &mine)
                                  : eini_path_reorder(a, g->path, g->n, g->at, &mine);
  if (st == EIN_OK) st = eini_path_cost(a, net, &mine, &bad);
  if (st == EIN_ERR_ARGUMENT || st == EIN_ERR_TOO_LARGE) return EIN_OK;
  if (st != EIN_OK) return st;
  g->taken = mine.flops <= EINI_GIVEN_WORSE * path->flops &&
             mine.largest <= EINI_GIVEN_WORSE * path->largest;
  mine.method = "store";
  if (g->taken) *path = mine;
  return EIN_OK;
}

// Emits the product of n members in one statement.
static ein_status eini_emit_whole(eini_split *sp, int n, const eini_member *val,
                                  const eini_member *target, ein_rest rest) {
  const eini_member **list = EINI_NEW(&sp->g->arena, const eini_member *, n);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) list[k] = &val[k];
  return eini_emit_stmt(sp, target, n, list, rest);
}

// Emits a product along a path, or in one pass, its factors in the order that is wanted. A path is
// that of the order here, before and after.
static ein_status eini_split_given(eini_split *sp, const eini_given *g, const eini_net *net,
                                   eini_member *val, const eini_member *target, int whole,
                                   eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  const int n = net->nterm;
  if (g == NULL || !g->order || g->n != n)
    return whole ? eini_emit_whole(sp, n, val, target, rest)
                 : eini_split_best(sp, net, val, target, path, rest);
  eini_member *there = EINI_NEW(a, eini_member, n);
  int *back = EINI_NEW(a, int, n);
  if (there == NULL || back == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) there[g->at[k]] = val[k], back[g->at[k]] = k;
  eini_net other;
  eini_path own, steps = *path;
  ein_status st;
  sp->rank = g->letter;
  if (whole) {
    st = eini_emit_whole(sp, n, there, target, rest);
    sp->rank = NULL;
    return st;
  }
  EINI_TRY(eini_net_build(a, sp, n, there, target, &other));
  EINI_TRY(eini_path_reorder(a, path, n, back, &own));
  steps.first = own.first;
  steps.pos = own.pos;
  st = eini_split_best(sp, &other, there, target, &steps, rest);
  sp->rank = NULL;
  if (st != EIN_OK) return st;
  EINI_TRY(eini_path_reorder(a, &steps, n, g->at, &own));
  *path = steps;
  path->first = own.first;
  path->pos = own.pos;
  return EIN_OK;
}

// Emits the product of n members into target, in an order of its own when there are two or more.
static ein_status eini_split_product(eini_split *sp, int n, eini_member *val,
                                     const eini_member *target, const eini_path_opts *opts,
                                     eini_path *path, ein_rest rest) {
  const eini_member *one = val;
  const int fastest = sp->fastest;
  eini_net net;
  if (n == 1) return eini_emit_stmt(sp, target, 1, &one, rest);
  EINI_TRY(eini_net_build(&sp->g->arena, sp, n, val, target, &net));
  EINI_TRY(eini_path_find(&sp->g->arena, &net, opts, path));
  EINI_TRY(eini_path_give(&sp->g->arena, &net, opts->given, path));
  const int taken = opts->given != NULL && opts->given->taken;
  if (taken) sp->fastest = 0;
  const ein_status st = eini_split_given(sp, opts->given, &net, val, target,
                                         taken && opts->given->path == NULL, path, rest);
  sp->fastest = fastest;
  return st;
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

// The product that a statement's fold distributes over.
typedef struct eini_product {
  int n, m;                  // factors, and divisors that may follow the fold; n 0: there is none
  eini_member *val, *under;
  int *uses;                 // factors that have an index
  int written;               // factors, those without an index included
} eini_product;

static ein_status eini_split_factors(eini_split *sp, const eini_stmt *s, eini_product *q) {
  eini_arena *a = &sp->g->arena;
  int join = s->expr.node[s->expr.n - 1].op, n, m;
  memset(q, 0, sizeof *q);
  if (join == EIN_OP_DIV) join = EIN_OP_MUL;
  if (s->fold == EIN_FOLD_NONE || !eini_legal_join(sp->g, s->fold, join)) return EIN_OK;
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int *roots;
  EINI_TRY(eini_factors(a, s, join, &roots, &n, &m));
  EINI_TRY(eini_split_begin(sp, s));
  sp->join = join;
  q->val = EINI_NEW(a, eini_member, n + m);
  q->uses = EINI_NEW(a, int, s->nindex);
  if (q->val == NULL || q->uses == NULL) return EIN_ERR_NO_MEMORY;
  q->under = q->val + n;
  for (int k = 0; k < n + m; k++) {
    EINI_TRY(eini_member_of(sp, roots[k], &q->val[k]));
    if (k < n) eini_count_labels(q->uses, &q->val[k], 1);
  }
  for (int c = s->nfree; c < s->nindex; c++)  // needs the monoid's power: one pass does it itself
    if (q->uses[c] == 0) return EIN_OK;
  q->written = n;
  EINI_TRY(eini_merge_scalars(sp, q->val, &n));
  q->n = n;
  q->m = m;
  return EIN_OK;
}

// Splits one folded statement of a program when that is legal and there are three factors or more,
// an index that only one factor has, or a divisor that the whole sum has. *done tells whether it
// was replaced by emitted statements.
static ein_status eini_split_stmt(eini_split *sp, const eini_stmt *s, const eini_path_opts *opts,
                                  eini_path *path, int *done) {
  int *freely = EINI_NEW(&sp->g->arena, int, s->nfree), alone = 0;
  eini_product q;
  eini_member out;
  *done = 0;
  if (freely == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_split_factors(sp, s, &q));
  for (int c = s->nfree; q.n > 0 && c < s->nindex; c++)
    alone += q.uses[c] == 1 && s->index[c].extent > 1;
  if (q.n == 0 || (q.m == 0 && (q.n < 2 || (q.n < 3 && q.n == q.written && !alone)))) return EIN_OK;
  for (int c = 0; c < s->nfree; c++) freely[c] = c;
  EINI_TRY(eini_member_new(sp, s->out, &s->out_map, s->nfree, freely, &out));
  *done = 1;
  if (q.m == 0) return eini_split_product(sp, q.n, q.val, &out, opts, path, s->rest);
  return eini_split_quotient(sp, q.n, q.val, q.m, q.under, q.uses, &out, opts, path, s->rest);
}
