// ================================================================================================
// >>block-plan  plans of blocks, and of what merges them
// Takes keys; gives plans that were made for them. Takes the layouts of partial results that are
// values; gives plans that merge two, or store one. Slices of budgets and tasks of places use both.
// ================================================================================================

// Plans that serve all blocks of a shape.
typedef struct eini_block_plans {
  eini_arena *a;                 // of keys; plans have memory of their own
  ein_ctx *ctx;                  // what they are made with
  eini_keys keys;
  ein_plan **plan;               // per key
  int64_t n, cap;
  size_t workspace;              // largest of all, bytes
  const char *path;
} eini_block_plans;

EINI_UNUSED static void eini_block_plans_end(eini_block_plans *l) {
  for (int64_t i = 0; i < l->n; i++) ein_plan_destroy(l->plan[i]);
  l->n = 0;
}

// The number of a key's plan; that of the next one to be kept when there is none. -1: no memory.
EINI_UNUSED static int64_t eini_block_plan_find(eini_block_plans *l, const int64_t *key,
                                                int64_t n) {
  return eini_key_number(l->a, &l->keys, key, n);
}

// Keeps the plan of the key that was looked for last; destroys it where there is no memory.
EINI_UNUSED static ein_status eini_block_plan_keep(eini_block_plans *l, ein_plan *plan) {
  ein_plan **p = (ein_plan **)eini_grow(l->a, l->plan, l->n, &l->cap, sizeof *p);
  if (p == NULL) ein_plan_destroy(plan);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  l->plan = p;
  l->plan[l->n++] = plan;
  if (ein_plan_workspace(plan) > l->workspace) l->workspace = ein_plan_workspace(plan);
  return EIN_OK;
}

// ---- merging of partial results that are values ----

// Merges operands 0 and 1, partial results of a fold in its computation type; untyped. -1: no
// memory.
static int eini_block_merge_pair(eini_arena *a, int fold, ein_dtype type, eini_expr *e) {
  const int logic = type == EIN_BOOL, or_ = fold == EIN_FOLD_SUM || fold == EIN_FOLD_MAX;
  int x = eini_expr_add(a, e, EIN_OP_OPERAND, -1, 0, 0, 0);
  int y = eini_expr_add(a, e, EIN_OP_OPERAND, -1, 1, 0, 0);
  if (fold == EIN_FOLD_ANY || (logic && or_)) return eini_expr_pair(a, e, EIN_OP_OR, x, y);
  if (fold == EIN_FOLD_ALL || logic) return eini_expr_pair(a, e, EIN_OP_AND, x, y);
  if (fold == EIN_FOLD_SUM) return eini_expr_pair(a, e, EIN_OP_ADD, x, y);
  if (fold == EIN_FOLD_PROD) return eini_expr_pair(a, e, EIN_OP_MUL, x, y);
  if (fold == EIN_FOLD_MAX) return eini_expr_pair(a, e, EIN_OP_MAX, x, y);
  if (fold == EIN_FOLD_MIN) return eini_expr_pair(a, e, EIN_OP_MIN, x, y);
  EINSUM_ASSERT(fold == EIN_FOLD_LOGSUMEXP);  // equal infinities have no difference
  int hi = eini_expr_pair(a, e, EIN_OP_MAX, x, y), lo = eini_expr_pair(a, e, EIN_OP_MIN, x, y);
  int gap = eini_expr_pair(a, e, EIN_OP_SUB, lo, hi);
  int same = eini_expr_pair(a, e, EIN_OP_EQ, x, y), zero = eini_expr_int(a, e, -1, 0);
  if (gap < 0 || same < 0 || zero < 0) return -1;
  int d = eini_expr_add(a, e, EIN_OP_WHERE, -1, same, zero, gap);
  int rise = d < 0 ? -1 : eini_expr_add(a, e, EIN_OP_EXP, -1, d, 0, 0);
  rise = eini_expr_pair(a, e, EIN_OP_ADD, rise, eini_expr_int(a, e, -1, 1));
  rise = rise < 0 ? -1 : eini_expr_add(a, e, EIN_OP_LOG, -1, rise, 0, 0);
  return eini_expr_pair(a, e, EIN_OP_ADD, hi, rise);
}

// Where merges read or write: element i is the one at map(i) - low of a tensor. map NULL: at i.
typedef struct eini_merge_side {
  ein_dtype dtype;
  int rank;
  const int64_t *shape, *stride;  // stride NULL: dense
  const eini_map *map;
  const int64_t *low;
  int space;                    // as of views
} eini_merge_side;

// result = left merged with right, for all indices. With `choice` param 0 says that there is no
// left yet: the result is right. EIN_FOLD_NONE: the result is left, as it is stored.
typedef struct eini_block_merge {
  int fold, choice;
  ein_dtype type;               // of partial results
  int nindex;
  const int64_t *len;           // extents of the indices
  eini_merge_side left, right, result;
} eini_block_merge;

static ein_status eini_merge_side_map(eini_arena *a, const eini_merge_side *x, eini_map *m) {
  if (x->map == NULL) return eini_map_units(a, m, 0, 0, m->rows);
  EINI_TRY(eini_map_copy(a, m, x->map, NULL));
  for (int r = 0; r < m->rows; r++) m->offset[r] -= x->low[r];
  return EIN_OK;
}

static ein_status eini_block_merge_expr(eini_arena *a, const eini_block_merge *x, eini_expr *e) {
  if (x->fold == EIN_FOLD_NONE)
    return eini_expr_add(a, e, EIN_OP_OPERAND, -1, 0, 0, 0) < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  int both = eini_block_merge_pair(a, x->fold, x->type, e);
  if (both < 0 || !x->choice) return both < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  int right = eini_expr_add(a, e, EIN_OP_OPERAND, -1, 1, 0, 0);
  int first = right < 0 ? -1 : eini_expr_add(a, e, EIN_OP_PARAM, -1, 0, 0, 0);
  if (first < 0 || eini_expr_add(a, e, EIN_OP_WHERE, -1, first, right, both) < 0)
    return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

static ein_status eini_block_merge_fill(ein_plan *p, const eini_block_merge *x) {
  static const ein_scalar none = {0, 0, 0};
  const eini_merge_side *side[3] = {&x->left, &x->right, &x->result};
  const int nop = x->fold == EIN_FOLD_NONE ? 1 : 2;
  const ein_ztensor *layout[3];
  ein_ztensor view[3];
  ein_graph *g = p->graph;
  eini_arena *a = &g->arena;
  eini_stmt *s;
  int id[3];
  memset(view, 0, sizeof view);
  if (x->choice) EINI_TRY(eini_graph_add_param(g, "first", 5, EIN_BOOL, none, &id[0]));
  for (int k = 0; k < 3; k++) {
    const eini_merge_side *v = side[k];
    if (k == 1 && nop == 1) continue;
    EINI_TRY(eini_graph_add_tensor(g, k < 2 ? "x" : "y", 1,
                                   k < 2 ? EIN_ROLE_INPUT : EIN_ROLE_OUTPUT, v->dtype, v->rank,
                                   v->shape, &id[k]));
    view[k].rank = v->rank;
    view[k].shape = v->shape;
    view[k].strides = v->stride;
    view[k].space = v->space;
    layout[id[k]] = v->stride == NULL && v->space == 0 ? NULL : &view[k];
  }
  EINI_TRY(eini_graph_add_stmt(g, id[2], x->nindex, nop, id, &s));
  for (int i = 0; i < s->nindex; i++) s->index[i].name = "", s->index[i].extent = x->len[i];
  for (int k = 0; k < nop; k++) EINI_TRY(eini_merge_side_map(a, side[k], &s->proj[k]));
  EINI_TRY(eini_merge_side_map(a, &x->result, &s->out_map));
  EINI_TRY(eini_block_merge_expr(a, x, &s->expr));
  EINI_TRY(eini_stmt_finish(g, s, NULL));
  return eini_plan_build(p, 0, NULL, layout);
}

// The plan of a merge, made when there is none yet; *id is its number in the list. key: what tells
// the merge from others.
static ein_status eini_block_merge_plan(eini_block_plans *l, const eini_block_merge *x,
                                        const int64_t *key, int64_t nkey, int64_t *id) {
  ein_plan *plan = NULL;
  *id = eini_block_plan_find(l, key, nkey);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  if (*id < l->n) return EIN_OK;
  EINI_TRY(eini_plan_new(l->ctx, &plan));
  ein_status st = eini_block_merge_fill(plan, x);
  if (st != EIN_OK) eini_plan_free(plan);
  return st == EIN_OK ? eini_block_plan_keep(l, plan) : st;
}
