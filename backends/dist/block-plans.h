// ================================================================================================
// >>block-plans  plans of a statement's blocks
// Takes a statement and the shape of a block; gives a plan of one statement over views into blocks.
// One plan serves all blocks of a shape: index values get the block's origin as params.
// ================================================================================================

// What a plan is made for. A result stored by free indices has one axis for each of them; otherwise
// it is the hull of the block in the tensor. States are stored by free indices, dense.
typedef struct eini_dist_job {
  const ein_graph *g;
  const eini_stmt *s;
  eini_stmt_block block;         // with ranges from 0 on
  const int64_t *cut;            // nindex: only cut indices have an origin
  const int64_t *const *stride;  // per operand: strides of its view; NULL entry: dense
  const int64_t *out_stride;     // of the result; NULL: dense
  int own;                       // 1: the result is the output's block
  int by_index;                  // the result is stored by free indices; 1: dense
  const eini_folder *folder;     // the results are its states, which the block is folded into
  ein_dtype dtype;               // of the result
  const int *space;              // per operand: of its view; NULL: all are the host's
  int own_space, part_space, merged_space;  // of the output's block, of partial results, and of
                                 //   those that arrive
} eini_dist_job;

// ---- graphs of one statement ----

// Is the first value of index i a param of blocks?
static int eini_dist_uses(const eini_stmt *s, const int64_t *cut, int i) {
  return cut[i] > 1 && eini_block_origin(s, i);
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
  return eini_graph_copy_names(*g, from);
}

// The result's tensor and map; of states, one tensor for each scalar.
static ein_status eini_dist_result(const eini_dist_job *j, ein_graph *g, eini_stmt *like,
                                   eini_block_view *v, int64_t **low) {
  const eini_stmt *s = j->s;
  const int rank = j->by_index ? s->nfree : j->g->tensor[s->out].rank;
  const int64_t *shape = j->block.hi;
  int64_t *hull;
  like->rest = EIN_REST_ERROR;  // what nobody defines is zero before any block is written
  if (j->by_index) {
    EINI_TRY(eini_map_new(&g->arena, rank, s->nindex, &like->out_map));
    EINI_TRY(eini_map_units(&g->arena, &like->out_map, 0, 0, rank));
  } else {
    EINI_TRY(eini_block_hull_new(&g->arena, s, &j->block, -1, low, &hull));
    shape = hull;
  }
  if (j->folder == NULL)
    return eini_dist_add_tensor(g, "y", EIN_ROLE_OUTPUT, j->dtype, rank, shape, &v->out);
  for (; v->nstate < j->folder->nstate; v->nstate++) {
    const char name[2] = {(char)('0' + v->nstate), 0};
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_OUTPUT,
                                  eini_state_dtype(j->folder, v->nstate), rank, shape,
                                  &v->state[v->nstate]));
  }
  v->out = v->state[0];
  return EIN_OK;
}

// The operands' boxes as inputs x0, x1, ..; two that read the same are one.
static ein_status eini_dist_inputs(const eini_dist_job *j, ein_graph *g, int *operand,
                                   int64_t **low) {
  const eini_stmt *s = j->s;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &j->g->tensor[s->operand[k]];
    int first = eini_operand_first(s, k);
    char name[24];
    int64_t *shape;
    operand[k] = operand[first];
    low[k] = low[first];
    if (first < k) continue;
    EINI_TRY(eini_block_hull_new(&g->arena, s, &j->block, k, &low[k], &shape));
    snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_INPUT, t->dtype, t->rank, shape, &operand[k]));
  }
  return EIN_OK;
}

// The statement for a block of shape len.
static ein_status eini_dist_block_stmt(const eini_dist_job *j, ein_graph *g) {
  static const ein_scalar none = {0, 0, 0};
  eini_stmt like = *j->s;
  eini_block_view v;
  int *param = EINI_NEW(&g->arena, int, j->s->nindex);
  int *operand = EINI_NEW(&g->arena, int, j->s->noperand);
  int64_t **low = EINI_NEW(&g->arena, int64_t *, j->s->noperand + 1);
  if (param == NULL || operand == NULL || low == NULL) return EIN_ERR_NO_MEMORY;
  memset(&v, 0, sizeof v);
  for (int i = 0; i < j->s->nindex; i++) {
    param[i] = -1;
    if (eini_dist_uses(j->s, j->cut, i))
      EINI_TRY(eini_graph_add_param(g, "", 0, EIN_I64, none, &param[i]));
  }
  EINI_TRY(eini_dist_inputs(j, g, operand, low));
  EINI_TRY(eini_dist_result(j, g, &like, &v, &low[j->s->noperand]));
  v.s = &like;
  v.block = &j->block;
  v.origin = param;
  v.operand = operand;
  v.low = (const int64_t *const *)low;
  return eini_block_stmt(g, &v);
}

// Plans a graph whose tensors have the given strides (NULL: dense) and are in the given spaces
// (NULL: all the host's).
static ein_status eini_dist_plan_graph(eini_block_plans *l, ein_graph *g,
                                       const int64_t *const *stride, const int *space,
                                       ein_plan **plan) {
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
    view[t].space = space == NULL ? 0 : space[t];
    bind[t].name = g->tensor[t].name;
    bind[t].view = &view[t];
  }
  return ein_plan_graph(l->ctx, g, (int)g->ntensor, bind, &o, plan);
}

static ein_status eini_dist_block_build(eini_block_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  EINI_TRY(eini_dist_graph(l->ctx, j->g, g));
  EINI_TRY(eini_dist_block_stmt(j, *g));
  const int64_t **stride = EINI_NEW(&(*g)->arena, const int64_t *, (*g)->ntensor);
  int *space = EINI_NEW(&(*g)->arena, int, (*g)->ntensor);
  if (stride == NULL || space == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < j->s->noperand; k++) {
    if (eini_operand_first(j->s, k) < k) continue;
    space[n] = j->space == NULL ? 0 : j->space[k];
    stride[n++] = j->stride[k];
  }
  stride[n] = j->by_index == 1 ? NULL : j->out_stride;
  for (int64_t k = n; k < (*g)->ntensor; k++) space[k] = j->own ? j->own_space : j->part_space;
  return eini_dist_plan_graph(l, *g, stride, space, plan);
}

// ---- merging of partial results ----

// Which of the two sides of a merge live in the block of the output, in its dtype; the others are
// partial results by free indices, in the computation type.
enum { EINI_MERGE_FROM_OUT = 1, EINI_MERGE_TO_OUT = 2 };

// The plan of a merge of a job's partial results. With EINI_MERGE_FROM_OUT the result goes there,
// too. Numbers and keys as below.
static ein_status eini_dist_merge_plan(eini_block_plans *l, const eini_dist_job *j, int how,
                                       const int64_t *key, int64_t nkey, int64_t *id) {
  const eini_stmt *s = j->s;
  const ein_dtype type = ein_dtype_compute(s->type);
  const eini_merge_side part = {type, s->nfree, j->block.hi, NULL, NULL, NULL, j->part_space};
  eini_merge_side out = {j->dtype, s->nfree, j->block.hi, NULL, NULL, NULL, j->own_space};
  eini_block_merge x = {s->fold, 0, type, s->nfree, j->block.hi, part, part, part};
  eini_arena scratch;
  int64_t *low, *shape;
  eini_arena_init(&scratch, &l->a->al);
  ein_status st = eini_block_hull_new(&scratch, s, &j->block, -1, &low, &shape);
  if (!j->by_index && st == EIN_OK) {
    const eini_merge_side affine = {j->dtype, s->out_map.rows, shape, j->out_stride, &s->out_map,
                                    low, 0};
    out = affine;
  }
  x.right.space = j->merged_space;
  if (how & EINI_MERGE_FROM_OUT) x.left = out;
  if (how & EINI_MERGE_TO_OUT) x.result = out;
  if (st == EIN_OK) st = eini_block_merge_plan(l, &x, key, nkey, id);
  eini_arena_free(&scratch);
  return st;
}

// The plan of a job, made when there is none yet; *id is its number in the list. key: what tells
// the job from others.
static ein_status eini_dist_plan(eini_block_plans *l, const eini_dist_job *j, const int64_t *key,
                                 int64_t nkey, int64_t *id) {
  *id = eini_block_plan_find(l, key, nkey);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  if (*id < l->n) return EIN_OK;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_status st = eini_dist_block_build(l, j, &g, &plan);
  eini_graph_free(g);
  return st == EIN_OK ? eini_block_plan_keep(l, plan) : st;
}

// Does all of a plan run where a provider's memory is? NULL: it could not be made.
static int eini_dist_plan_away(const ein_plan *p) {
  int away = p != NULL && p->away != NULL;
  for (int t = 0; away && t < p->ntask; t++) away = eini_task_away(&p->task[t]);
  return away;
}

// A plan of blocks could not be made in the provider's memory: its key has a number.
static ein_status eini_dist_plan_none(eini_block_plans *l) {
  while (l->n < l->keys.n) EINI_TRY(eini_block_plan_keep(l, NULL));
  return EIN_OK;
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
