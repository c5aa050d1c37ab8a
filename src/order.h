// ================================================================================================
// >>order  folds whose additions have one order
// Takes the statements of a graph; gives statements whose values do not depend on how their free
// indices are cut, and that need no other cuts: long folds with few results become folds of leaves,
// every other fold is told its order. A graph so made says `ordered`.
// ================================================================================================

// Does the fold give the same bits in every order? Integers wrap, logic and positions are exact.
static int eini_order_exact(const ein_graph *g, const eini_stmt *s) {
  switch (s->fold) {
    case EIN_FOLD_NONE: case EIN_FOLD_ANY: case EIN_FOLD_ALL:
    case EIN_FOLD_ARGMAX: case EIN_FOLD_ARGMIN: case EIN_FOLD_BLOCK: return 1;
    default: break;
  }
  const ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  return s->fold < EIN_FOLD_USER &&
         eini_kind_of(eini_fold_value_dtype(g, s->fold, value, s->numpy)) < EINI_KREAL;
}

// May the index be cut for places, or walked in slices? In deterministic mode reduced ones may not;
// those of blocks never.
EINI_UNUSED static int eini_order_cuts(const ein_graph *g, const eini_stmt *s, int index) {
  if (eini_index_whole(s, index)) return 0;
  return !g->ordered || index < s->nfree || eini_order_exact(g, s);
}

// Statement i, a mean, becomes the sum into a temporary, and its division is appended.
static ein_status eini_order_mean(ein_graph *g, int64_t i) {
  eini_arena *a = &g->arena;
  const eini_stmt s = g->stmt[i];
  const ein_dtype type = ein_dtype_compute(s.type);
  int64_t *shape = EINI_NEW(a, int64_t, s.nfree + 1);
  const double count = eini_points(&s, NULL, s.nfree, s.nindex);
  int sum;
  eini_stmt *t;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s.nfree; k++) shape[k] = s.index[k].extent;
  EINI_TRY(eini_graph_add_tensor(g, "T.sum", 5, EIN_ROLE_TEMP, type, s.nfree, shape, &sum));
  EINI_TRY(eini_graph_add_stmt(g, s.out, s.nfree, 1, &sum, &t));
  g->tensor[s.out].nstmt--;  // statement i no longer defines it
  g->tensor[sum].nstmt++;
  t->pos = s.pos;
  t->line = s.line;
  t->numpy = s.numpy;
  for (int k = 0; k < s.nfree; k++) t->index[k] = s.index[k];
  EINI_TRY(eini_map_units(a, &t->proj[0], 0, 0, s.nfree));
  EINI_TRY(eini_map_copy(a, &t->out_map, &s.out_map, NULL));
  // In f64, as the fold's own division.
  int x = eini_expr_add(a, &t->expr, EIN_OP_OPERAND, s.pos, 0, 0, 0);
  int y = x < 0 ? -1 : eini_expr_add(a, &t->expr, EIN_OP_CAST, s.pos, x, 0, 0);
  int z = y < 0 ? -1 : eini_expr_real(a, &t->expr, s.pos, count);
  int root = eini_expr_pair(a, &t->expr, EIN_OP_DIV, y, z);
  root = root < 0 ? -1 : eini_expr_add(a, &t->expr, EIN_OP_CAST, s.pos, root, 0, 0);
  if (root < 0) return EIN_ERR_NO_MEMORY;
  t->expr.node[y].dtype = EIN_F64;
  t->expr.node[root].dtype = (unsigned char)type;
  EINI_TRY(eini_stmt_finish(g, t, NULL));
  t->type = s.type;
  eini_stmt *u = &g->stmt[i];
  u->out = sum;
  u->fold = EIN_FOLD_SUM;
  u->type = type;
  EINI_TRY(eini_expr_to(a, &u->expr, type));
  EINI_TRY(eini_map_new(a, s.nfree, s.nindex, &u->out_map));
  return eini_map_units(a, &u->out_map, 0, 0, s.nfree);
}

// Means whose sums have leaves become sums and divisions.
static ein_status eini_order_means(ein_graph *g) {
  int64_t n = g->nstmt, at = 0;
  eini_stmt *list = EINI_NEW(&g->arena, eini_stmt, 2 * n + 1);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    eini_stmt sum = g->stmt[i];
    eini_leaves f;
    sum.fold = EIN_FOLD_SUM;
    if (g->stmt[i].fold == EIN_FOLD_MEAN && eini_kind_of(sum.type) == EINI_KREAL &&
        eini_leaves_of(g, &sum, &f))
      EINI_TRY(eini_order_mean(g, i));
    list[at++] = g->stmt[i];
    for (int64_t k = n; k < g->nstmt; k++) list[at++] = g->stmt[k];
    g->nstmt = n;
  }
  g->stmt = list;
  g->nstmt = at;
  g->capstmt = 2 * n + 1;
  return EIN_OK;
}

// Is the fold best taken along reduced indices? The shape says so: with few results, or where one
// of them moves the last axis of the largest operand. *run: the values it moves over, in steps of
// one.
static int eini_order_across(const ein_graph *g, const eini_stmt *s, int64_t *run) {
  const double results = eini_points(s, NULL, 0, s->nfree);
  double most = 0;
  int across = 0, reduced = 0;
  *run = 1;
  for (int i = s->nfree; i < s->nindex; i++) {
    reduced |= s->index[i].extent > 1;
    if (s->index[i].extent == 0) return 0;
  }
  for (int k = 0; k < s->noperand; k++) {
    const eini_map *m = &s->proj[k];
    double size = 1;
    for (int r = 0; r < m->rows; r++) size *= (double)g->tensor[s->operand[k]].shape[r];
    if (m->rows == 0 || size <= most) continue;
    int best = -1;  // of the indices that move the last axis the one in the least steps
    int64_t least = 0;
    for (int e = m->first[m->rows - 1]; e < m->first[m->rows]; e++) {
      const eini_mapterm *x = &m->term[e];
      if (s->index[x->index].extent < 2 || (best >= 0 && eini_abs64(x->coef) >= least)) continue;
      best = x->index;
      least = eini_abs64(x->coef);
    }
    most = size;
    across = best >= s->nfree && s->index[best].extent >= 16;
    *run = best < 0 || least > 1 ? 1 : s->index[best].extent;
  }
  return !reduced || results < 16 ? reduced : across;
}

#define EINI_ORDER_AXES 12  // a contraction of more indices or factors goes without tiles
#define EINI_ORDER_FACTORS 6

// Is the fold a contraction, or a plain sum that is one with ones, for tiles? Long runs of values
// that are summed as they are stored are faster without, and few sums along reduced indices.
static ein_status eini_order_tiles(ein_graph *g, const eini_stmt *s, int *yes) {
  int x, y, pair = eini_pair_match(s, &x, &y), sum = s->fold == EIN_FOLD_SUM && eini_plain_sum(s);
  int values = 0;  // 1: of indices
  const double results = eini_points(s, NULL, 0, s->nfree);
  const double work = results * eini_points(s, NULL, s->nfree, s->nindex);
  double side[2] = {1, 1};
  eini_half v[2];
  *yes = 0;
  if ((pair < 0 && !sum) || s->nindex > EINI_ORDER_AXES || eini_stmt_empty(s, 0, s->nindex))
    return EIN_OK;
  if (sum) {
    int64_t run;
    const int across = eini_order_across(g, s, &run);
    const ein_dtype type = g->tensor[s->operand[0]].dtype;
    const int stored = eini_kind_of(type) == EINI_KREAL && type == ein_dtype_compute(type);
    *yes = work < 9e18 && results >= (across ? 512 : 16) &&
           (!stored || run < (across ? EINI_CHUNK : 2 * EINI_LANES));
    return EIN_OK;
  }
  for (int64_t i = 0; i < s->expr.n; i++) {
    const eini_node *e = &s->expr.node[i];
    if (e->op != EIN_OP_INDEX) continue;
    if (s->index[e->arg[0]].extent > EINI_VALUES_MOST) return EIN_OK;
    values = 1;
  }
  EINI_TRY(eini_half_of(&g->arena, s, x, &v[0]));
  EINI_TRY(eini_half_of(&g->arena, s, y, &v[1]));
  for (int i = 0; i < s->nfree; i++) {
    int p = v[0].uses[i], q = v[1].uses[i];
    if (p != q) side[q] *= (double)s->index[i].extent;
  }
  // Values of indices are made once each by a map, too, unless both factors are used again.
  *yes = side[0] * side[1] >= 16 && (!values || (side[0] > 1 && side[1] > 1)) && work < 9e18 &&
         v[0].nop > 0 && v[1].nop > 0 && v[0].nop <= EINI_ORDER_FACTORS &&
         v[1].nop <= EINI_ORDER_FACTORS;
  return EIN_OK;
}

static ein_status eini_order_graph(ein_graph *g) {
  g->ordered = 1;
  EINI_TRY(eini_order_means(g));
  EINI_TRY(eini_leaf_graph(g));
  for (int64_t i = 0; i < g->nstmt; i++) {
    eini_stmt *s = &g->stmt[i];
    int tiles = 0;
    int64_t run;
    s->order = 0;
    if (eini_order_exact(g, s)) continue;
    EINI_TRY(eini_order_tiles(g, s, &tiles));
    s->order = (eini_order_across(g, s, &run) ? EINI_ORDER_ACROSS : EINI_ORDER_DOWN) |
               (tiles ? EINI_ORDER_TILES : 0);
  }
  return EIN_OK;
}
