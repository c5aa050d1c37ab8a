// ================================================================================================
// >>block-plans  plans of a statement's blocks
// Takes a statement and the shape of a block; gives a plan of one statement over views into blocks.
// One plan serves all blocks of a shape: index values get the block's origin as params.
// ================================================================================================

// What a plan is made for. A result stored by free indices has one axis for each of them, dense;
// otherwise it is the hull of the block in the tensor. States are stored by free indices.
typedef struct eini_dist_job {
  const ein_graph *g;
  const eini_stmt *s;
  const int64_t *len;            // nindex: extents of the block
  const int64_t *cut;            // nindex: only cut indices have an origin
  const int64_t *const *stride;  // per operand: strides of its view; NULL entry: dense
  const int64_t *out_stride;     // of the hull; NULL: dense
  int by_index;                  // 1: the result is stored by free indices
  const eini_folder *folder;     // the results are its states, which the block is folded into
  ein_dtype dtype;               // of the result
  int how;                       // of a merge: see eini_dist_merge_plan
} eini_dist_job;

typedef struct eini_dist_entry {
  int64_t *key;
  int64_t nkey;
  ein_plan *plan;
} eini_dist_entry;

// Plans by what they were made for.
typedef struct eini_dist_plans {
  eini_arena *a;                 // of keys and entries; plans have memory of their own
  ein_ctx *ctx;                  // kernels and executor of a task
  eini_dist_entry *entry;
  int64_t n, cap;
  size_t workspace;              // largest of all, bytes
  const char *path;
} eini_dist_plans;

static void eini_dist_plans_end(eini_dist_plans *l) {
  for (int64_t i = 0; i < l->n; i++) ein_plan_destroy(l->entry[i].plan);
  l->n = 0;
}

// Where in the list a key is, or -1.
static int64_t eini_dist_find(const eini_dist_plans *l, const int64_t *key, int64_t n) {
  for (int64_t i = 0; i < l->n; i++) {
    if (l->entry[i].nkey == n && memcmp(l->entry[i].key, key, (size_t)n * sizeof *key) == 0)
      return i;
  }
  return -1;
}

static ein_status eini_dist_keep(eini_dist_plans *l, const int64_t *key, int64_t n,
                                 ein_plan *plan) {
  eini_dist_entry *p = (eini_dist_entry *)eini_grow(l->a, l->entry, l->n, &l->cap, sizeof *p);
  int64_t *own = p == NULL ? NULL : EINI_NEW(l->a, int64_t, n);
  if (own == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(own, key, (size_t)n * sizeof *key);
  l->entry = p;
  p += l->n++;
  p->key = own;
  p->nkey = n;
  p->plan = plan;
  if (ein_plan_workspace(plan) > l->workspace) l->workspace = ein_plan_workspace(plan);
  return EIN_OK;
}

// ---- graphs of one statement ----

// Is the first value of index i a param of blocks?
static int eini_dist_uses(const eini_stmt *s, const int64_t *cut, int i) {
  return cut[i] > 1 && eini_block_origin(s, i);
}

// A map of the block: coordinates count from the block's hull, where index 0 has the coordinate
// that falling terms leave below it.
static void eini_dist_local_map(eini_map *m, const int64_t *len) {
  for (int r = 0; r < m->rows; r++) {
    m->offset[r] = 0;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      int64_t k = m->term[e].coef, n = len[m->term[e].index];
      if (k < 0 && n > 0) m->offset[r] -= k * (n - 1);
    }
  }
}

// Extents of the hull of a map over a block.
static void eini_dist_local_shape(const eini_map *m, const int64_t *len, int nfree,
                                  int64_t *shape) {
  int empty = 0;
  for (int c = 0; c < nfree; c++) empty |= len[c] == 0;
  for (int r = 0; r < m->rows; r++) {
    shape[r] = !empty;
    for (int e = m->first[r]; e < m->first[r + 1] && !empty; e++)
      shape[r] += eini_abs64(m->term[e].coef) * (len[m->term[e].index] - 1);
  }
}

static ein_status eini_dist_add_tensor(ein_graph *g, const char *name, ein_role role,
                                       ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  static const int64_t none[1] = {0};
  return eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank,
                               rank > 0 ? shape : none, id);
}

// An empty graph with the params and registrations of another.
static ein_status eini_dist_graph(ein_ctx *ctx, const ein_graph *from, ein_graph **g) {
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  (*g)->ordered = from->ordered;
  EINI_TRY(eini_graph_register(*g, from->nfunction, from->function, from->nmonoid, from->monoid));
  return eini_graph_copy_params(*g, from);
}

// The result's tensor and map; of states, one tensor for each scalar.
static ein_status eini_dist_result(const eini_dist_job *j, ein_graph *g, const int *origin,
                                   eini_stmt *like) {
  const eini_stmt *s = j->s;
  int rank = j->by_index ? s->nfree : j->g->tensor[s->out].rank;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_map_new(&g->arena, rank, s->nindex, &like->out_map));
  if (j->by_index) {
    for (int r = 0; r < rank; r++) {
      shape[r] = j->len[r];
      EINI_TRY(eini_map_set(&g->arena, &like->out_map, r, r, 1));
    }
  } else {
    EINI_TRY(eini_map_copy(&g->arena, &like->out_map, &s->out_map, NULL));
    eini_dist_local_shape(&s->out_map, j->len, s->nfree, shape);
    eini_dist_local_map(&like->out_map, j->len);
  }
  like->rest = EIN_REST_ERROR;  // what nobody defines is zero before any block is written
  if (j->folder == NULL)
    return eini_dist_add_tensor(g, "y", EIN_ROLE_OUTPUT, j->dtype, rank, shape, &like->out);
  eini_carry *c = EINI_NEW(&g->arena, eini_carry, 1);
  int64_t *extent = EINI_NEW(&g->arena, int64_t, s->nindex);
  if (c == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < j->folder->nstate; k++) {
    const char name[2] = {(char)('0' + k), 0};
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_OUTPUT, eini_state_dtype(j->folder, k), rank,
                                  shape, &c->state[k]));
  }
  for (int i = 0; i < s->nindex; i++) extent[i] = s->index[i].extent;
  c->extent = extent;
  c->origin = origin;
  like->carry = c;
  like->out = c->state[0];
  return EIN_OK;
}

// The operands' boxes as inputs x0, x1, ..; two that read the same are one.
static ein_status eini_dist_inputs(const eini_dist_job *j, ein_graph *g, eini_stmt *like) {
  const eini_stmt *s = j->s;
  like->operand = EINI_NEW(&g->arena, int, s->noperand);
  if (like->operand == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &j->g->tensor[s->operand[k]];
    char name[24];
    int first = eini_dist_first(s, k);
    like->operand[k] = like->operand[first];
    if (first < k) continue;
    int64_t *shape = EINI_NEW(&g->arena, int64_t, t->rank);
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    eini_dist_local_shape(&s->proj[k], j->len, s->nindex, shape);
    snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_INPUT, t->dtype, t->rank, shape,
                              &like->operand[k]));
  }
  return EIN_OK;
}

// The statement for a block of shape len.
static ein_status eini_dist_block_stmt(const eini_dist_job *j, ein_graph *g) {
  eini_stmt like = *j->s, *s;
  static const ein_scalar none = {0, 0, 0};
  int *param = EINI_NEW(&g->arena, int, j->s->nindex);
  if (param == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < j->s->nindex; i++) {
    param[i] = -1;
    if (eini_dist_uses(j->s, j->cut, i))
      EINI_TRY(eini_graph_add_param(g, "", 0, EIN_I64, none, &param[i]));
  }
  EINI_TRY(eini_dist_inputs(j, g, &like));
  EINI_TRY(eini_dist_result(j, g, param, &like));
  EINI_TRY(eini_expr_shift(&g->arena, &j->s->expr, param, &like.expr));
  EINI_TRY(eini_stmt_copy(g, &like));
  s = &g->stmt[g->nstmt - 1];
  for (int i = 0; i < s->nindex; i++) s->index[i].extent = j->len[i];
  for (int k = 0; k < s->noperand; k++) eini_dist_local_map(&s->proj[k], j->len);
  return EIN_OK;
}

// Plans a graph whose tensors have the given strides (NULL: dense).
static ein_status eini_dist_plan_graph(eini_dist_plans *l, ein_graph *g,
                                       const int64_t *const *stride, ein_plan **plan) {
  ein_options o;
  memset(&o, 0, sizeof o);
  o.path = l->path;
  ein_binding *bind = EINI_NEW(&g->arena, ein_binding, g->ntensor);
  ein_ztensor *view = EINI_NEW(&g->arena, ein_ztensor, g->ntensor);
  if (bind == NULL || view == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    view[t].dtype = g->tensor[t].dtype;
    view[t].rank = g->tensor[t].rank;
    view[t].shape = g->tensor[t].shape;
    view[t].strides = stride[t];
    bind[t].name = g->tensor[t].name;
    bind[t].view = &view[t];
  }
  return ein_plan_graph(l->ctx, g, (int)g->ntensor, bind, &o, plan);
}

static ein_status eini_dist_block_build(eini_dist_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  EINI_TRY(eini_dist_graph(l->ctx, j->g, g));
  EINI_TRY(eini_dist_block_stmt(j, *g));
  const int64_t **stride = EINI_NEW(&(*g)->arena, const int64_t *, (*g)->ntensor);
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < j->s->noperand; k++)
    if (eini_dist_first(j->s, k) == k) stride[n++] = j->stride[k];
  stride[n] = j->by_index ? NULL : j->out_stride;
  return eini_dist_plan_graph(l, *g, stride, plan);
}

// ---- merging of partial results ----

// Which of the two sides of a merge live in the block of the output, in its dtype; the others are
// partial results by free indices, in the computation type.
enum { EINI_MERGE_FROM_OUT = 1, EINI_MERGE_TO_OUT = 2 };

// Adds the tensor of one side to the graph.
static ein_status eini_dist_side(const eini_dist_job *j, ein_graph *g, const char *name,
                                 ein_role role, int out, int *id) {
  const eini_stmt *s = j->s;
  int affine = out && !j->by_index;
  int rank = affine ? j->g->tensor[s->out].rank : s->nfree;
  ein_dtype dtype = out ? j->dtype : ein_dtype_compute(s->type);
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  if (affine) eini_dist_local_shape(&s->out_map, j->len, s->nfree, shape);
  for (int r = 0; r < rank && !affine; r++) shape[r] = j->len[r];
  return eini_dist_add_tensor(g, name, role, dtype, rank, shape, id);
}

// The map of one side: of the output, without the columns of reduced indices, or the identity.
static ein_status eini_dist_side_map(const eini_dist_job *j, eini_arena *a, int out, eini_map *m) {
  EINI_TRY(out && !j->by_index ? eini_map_copy(a, m, &j->s->out_map, NULL)
                               : eini_map_units(a, m, 0, 0, m->rows));
  eini_dist_local_map(m, j->len);
  return EIN_OK;
}

// out = left merged with right; left is the output itself with EINI_MERGE_FROM_OUT, and then the
// result goes there, too.
static ein_status eini_dist_merge_build(eini_dist_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  const int from = j->how & EINI_MERGE_FROM_OUT, to = j->how & EINI_MERGE_TO_OUT;
  const int64_t *stride[3];
  int ops[2], y;
  eini_stmt *s;
  *g = eini_graph_new(l->ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_side(j, *g, "a", EIN_ROLE_INPUT, from, &ops[0]));
  EINI_TRY(eini_dist_side(j, *g, "b", EIN_ROLE_INPUT, 0, &ops[1]));
  EINI_TRY(eini_dist_side(j, *g, "y", EIN_ROLE_OUTPUT, to, &y));
  EINI_TRY(eini_graph_add_stmt(*g, y, j->s->nfree, 2, ops, &s));
  for (int i = 0; i < s->nindex; i++) {
    s->index[i].name = "";
    s->index[i].extent = j->len[i];
  }
  EINI_TRY(eini_dist_side_map(j, &(*g)->arena, from, &s->proj[0]));
  EINI_TRY(eini_dist_side_map(j, &(*g)->arena, 0, &s->proj[1]));
  EINI_TRY(eini_dist_side_map(j, &(*g)->arena, to, &s->out_map));
  if (eini_block_merge_expr(&(*g)->arena, j->s->fold, ein_dtype_compute(j->s->type),
                            &s->expr) < 0)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_stmt_finish(*g, s, NULL));
  stride[0] = from && !j->by_index ? j->out_stride : NULL;
  stride[1] = NULL;
  stride[2] = to && !j->by_index ? j->out_stride : NULL;
  return eini_dist_plan_graph(l, *g, stride, plan);
}

// The plan of a job, made when there is none yet; *id is its number in the list. merge: 0, or 1 for
// a merge of partial results. key: what tells the job from others.
static ein_status eini_dist_plan(eini_dist_plans *l, const eini_dist_job *j, int merge,
                                 const int64_t *key, int64_t nkey, int64_t *id) {
  *id = eini_dist_find(l, key, nkey);
  if (*id >= 0) return EIN_OK;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_status st = merge ? eini_dist_merge_build(l, j, &g, &plan)
                        : eini_dist_block_build(l, j, &g, &plan);
  eini_graph_free(g);
  if (st == EIN_OK) st = eini_dist_keep(l, key, nkey, plan);
  if (st != EIN_OK) ein_plan_destroy(plan);
  else *id = l->n - 1;
  return st;
}

// A ctx for the plans of tasks: allocator, kernels and clock of the caller's, and its executor
// unless every task is to run on one thread.
static ein_status eini_dist_ctx(const ein_ctx *ctx, int one_thread, ein_ctx **sub) {
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  if (ctx != NULL) {
    d.allocator = ctx->al;
    d.nkernels = ctx->nkernels;
    d.kernels = (const ein_kernels *const *)ctx->kernels;
    if (!one_thread) d.executor = ctx->executor;
  }
  return eini_ctx_new(&d, sub);
}
