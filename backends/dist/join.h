// ================================================================================================
// >>join  tensor relations: join and aggregate
// Takes relations and a statement; gives the relation of its blocks, and folds partial ones.
// ================================================================================================

// The state of one join.
typedef struct eini_rel_join {
  const ein_graph *g;
  const eini_stmt *s;
  const ein_relation *const *rel;
  ein_block_fn fn;
  void *user;
  ein_relation *out;
  eini_space space;
  eini_arena arena, boxes;      // what lives for the join, and for one block
  eini_block_plans plans;
  int64_t *lo, *len, *hi;       // nindex
  ein_ztensor *in;              // noperand
  const int64_t **stride;       // noperand
  const void **data;            // noperand
  ein_scalar *param;
  int64_t *key;                 // of a plan
} eini_rel_join;

// The statement's index space under cut, row-major over all cut indices.
static ein_status eini_rel_space(eini_rel_join *j, const int64_t *cut) {
  const eini_stmt *s = j->s;
  int *order = EINI_NEW(&j->arena, int, s->nindex), norder = 0;
  int64_t n = 1;
  if (order == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    if (cut[i] < 1 || cut[i] > eini_max64(s->index[i].extent, 1)) return EIN_ERR_SHAPE;
    if (eini_mul_overflow(n, cut[i], &n) || n > INT32_MAX) return EIN_ERR_TOO_LARGE;
    if (cut[i] > 1) order[norder++] = i;
  }
  return eini_space_init(&j->arena, s, cut, order, norder, &j->space);
}

static ein_status eini_rel_validate(ein_ctx *ctx, const eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int plain = t->rank == s->nfree && s->rest == EIN_REST_ERROR;
  for (int r = 0; plain && r < t->rank; r++) plain = eini_plain_row(&s->out_map, r) == r;
  if (!plain)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED,
                            "a join into '%s': the free indices are not its axes in order",
                            t->name);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &j->g->tensor[s->operand[k]];
    const ein_relation *r = j->rel[k];
    if (r == NULL || r->info.nkey != r->info.rank || r->info.rank != x->rank ||
        r->info.dtype != x->dtype)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "operand %d: not a relation of '%s'", k, x->name);
    for (int a = 0; a < x->rank; a++)
      if (r->bound[a] != x->shape[a])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE,
                                "operand %d: bound %d of '%s' is %lld, not %lld", k, a, x->name,
                                (long long)x->shape[a], (long long)r->bound[a]);
  }
  return EIN_OK;
}

// The result's blocks are states of the statement's monoid, which outlive graph and ctx.
static ein_status eini_rel_carry(eini_rel_join *j) {
  ein_relation *r = j->out;
  const eini_stmt *s = j->s;
  const char *name = eini_fold_name(j->g, s->fold);
  EINI_TRY(eini_states_folder(j->g, s, &r->folder));
  r->monoid = eini_strndup(&r->arena, name, (int64_t)strlen(name));
  if (r->monoid == NULL) return EIN_ERR_NO_MEMORY;
  if (r->folder.user != NULL) {
    r->own = *r->folder.user;
    r->folder.user = &r->own;
  }
  r->info.nstate = r->folder.nstate;
  return EIN_OK;
}

// The relation of the results: keys of the free indices, then of the cut reduced ones.
static ein_status eini_rel_result(ein_ctx *ctx, eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int nkey = s->nfree;
  int64_t *pieces = EINI_NEW(&j->arena, int64_t, s->nindex);
  if (pieces == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++)
    if (i < s->nfree || j->space.cut[i] > 1) pieces[i < s->nfree ? i : nkey++] = j->space.cut[i];
  j->out = eini_rel_new(ctx, s->nfree, nkey);
  if (j->out == NULL) return EIN_ERR_NO_MEMORY;
  ein_dtype partial = ein_dtype_compute(s->type);
  if (j->space.nagg > 1 && j->fn == NULL && eini_fold_carries(s->fold)) {
    EINI_TRY(eini_rel_carry(j));
    partial = j->out->folder.type;
  }
  EINI_TRY(eini_rel_shape(j->out, j->space.nagg > 1 ? partial : t->dtype, t->shape, pieces));
  j->out->result = t->dtype;
  return eini_rel_alloc(j->out);
}

// The box operand k reads: a view of one block, or put together.
static ein_status eini_rel_operand(eini_rel_join *j, int k) {
  const ein_relation *r = j->rel[k];
  int rank = r->info.rank;
  int64_t *from = EINI_NEW(&j->boxes, int64_t, 5 * (int64_t)rank), n;
  if (from == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *to = from + rank, *shape = to + rank, *stride = shape + rank;
  const eini_stmt_block block = eini_block_of(j->lo, j->hi, NULL);
  eini_block_hull(j->s, &block, k, from, to);
  for (int a = 0; a < rank; a++) shape[a] = to[a] - from[a];
  ein_ztensor *v = &j->in[k];
  memset(v, 0, sizeof *v);
  v->dtype = r->info.dtype;
  v->rank = rank;
  v->shape = shape;
  for (int64_t b = 0; b < r->info.nblock; b++) {
    const int64_t *origin = r->origin + b * rank;
    int64_t at = 0;
    int a = 0;
    for (; a < rank; a++) {
      if (from[a] < origin[a] || to[a] > origin[a] + r->block[b].shape[a]) break;
      at += (from[a] - origin[a]) * r->block[b].strides[a];
    }
    if (a < rank) continue;
    v->strides = r->block[b].strides;
    v->data = r->block[b].data;
    if (v->data != NULL && ein_view_count(v) > 0)
      v->data = (char *)v->data + at * (int64_t)ein_dtype_size(v->dtype);
    return EIN_OK;
  }
  EINI_TRY(eini_view_elements(rank, shape, &n));
  eini_dist_dense(rank, shape, stride);
  v->strides = stride;
  v->data = eini_new(&j->boxes, n, ein_dtype_size(v->dtype));
  if (v->data == NULL) return EIN_ERR_NO_MEMORY;
  if (n > 0) eini_rel_gather(r, from, (char *)v->data, shape, stride, stride + rank);
  return EIN_OK;
}

// Runs the statement's plan for block b, which is at hand.
static ein_status eini_rel_run(eini_rel_join *j, int64_t b) {
  const ein_ztensor *out = &j->out->block[b];
  const eini_stmt *s = j->s;
  eini_dist_job job;
  int64_t n = 0, id;
  int nin = 0, norigin = 0;
  memset(&job, 0, sizeof job);
  for (int i = 0; i < s->nindex; i++) j->key[n++] = j->len[i];
  for (int k = 0; k < s->noperand; k++) {
    j->stride[k] = j->in[k].strides;
    if (eini_operand_first(s, k) < k) continue;
    for (int a = 0; a < j->in[k].rank; a++) j->key[n++] = j->in[k].strides[a];
    j->data[nin++] = j->in[k].data;
  }
  job.g = j->g;
  job.s = s;
  job.block = eini_block_of(NULL, j->len, NULL);
  job.cut = j->space.cut;
  job.stride = j->stride;
  job.by_index = 1;
  job.dtype = out->dtype;
  job.folder = j->out->monoid != NULL ? &j->out->folder : NULL;
  EINI_TRY(eini_dist_plan(&j->plans, &job, j->key, n, &id));
  for (int i = 0; i < s->nindex; i++) {
    if (!eini_dist_uses(s, j->space.cut, i)) continue;
    ein_scalar *p = &j->param[j->g->nparam + norigin++];
    p->set = 1;
    p->re = (double)j->lo[i];
  }
  ein_run run;
  void *data[4] = {out->data, NULL, NULL, NULL};
  if (job.folder != NULL) {
    eini_states_at(job.folder, ein_view_count(out), eini_rel_states(j->out, b), data);
    eini_fold_identity(job.folder, ein_view_count(out), data);
  }
  memset(&run, 0, sizeof run);
  run.in = j->data;
  run.out = data;
  run.param = j->param;
  return ein_plan_execute(j->plans.plan[id], &run);
}

static ein_status eini_rel_block(eini_rel_join *j, int64_t q) {
  const eini_stmt *s = j->s;
  int64_t b = 0;
  eini_space_ranges(&j->space, q, j->lo, j->hi);
  for (int i = 0; i < s->nindex; i++) {
    j->len[i] = j->hi[i] - j->lo[i];
    b = b * j->space.cut[i] + eini_space_piece(&j->space, q, i);
  }
  for (int k = 0; k < s->noperand; k++) {
    int first = eini_operand_first(s, k);
    if (first == k || j->rel[first] != j->rel[k]) EINI_TRY(eini_rel_operand(j, k));
    else j->in[k] = j->in[first];
  }
  const ein_ztensor *out = &j->out->block[b];
  return j->fn != NULL ? j->fn(j->user, j->lo, j->len, j->in, out) : eini_rel_run(j, b);
}

static ein_status eini_rel_task(void *user, int64_t q) {
  eini_rel_join *j = (eini_rel_join *)user;
  eini_arena_init(&j->boxes, &j->arena.al);
  const ein_status st = eini_rel_block(j, q);
  eini_arena_free(&j->boxes);
  return st;
}

static ein_status eini_rel_join_all(ein_ctx *ctx, eini_rel_join *j, const int64_t *cut,
                                    const ein_scalar *param) {
  const eini_stmt *s = j->s;
  eini_arena *a = &j->arena;
  int64_t nkey = s->nindex;
  EINI_TRY(eini_rel_space(j, cut));
  EINI_TRY(eini_rel_validate(ctx, j));
  for (int k = 0; k < s->noperand; k++) nkey += j->g->tensor[s->operand[k]].rank;
  j->lo = EINI_NEW(a, int64_t, s->nindex);
  j->hi = EINI_NEW(a, int64_t, s->nindex);
  j->len = EINI_NEW(a, int64_t, s->nindex);
  j->in = EINI_NEW(a, ein_ztensor, s->noperand);
  j->stride = EINI_NEW(a, const int64_t *, s->noperand);
  j->data = EINI_NEW(a, const void *, s->noperand);
  j->key = EINI_NEW(a, int64_t, nkey);
  j->param = EINI_NEW(a, ein_scalar, j->g->nparam + s->nindex);
  if (j->lo == NULL || j->hi == NULL || j->len == NULL || j->in == NULL || j->stride == NULL ||
      j->data == NULL || j->key == NULL || j->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; param != NULL && k < j->g->nparam; k++) j->param[k] = param[k];
  EINI_TRY(eini_dist_ctx(ctx, 0, &j->plans.ctx));
  j->plans.a = a;
  EINI_TRY(eini_rel_result(ctx, j));
  return eini_flow_tasks(&a->al, j->space.ntask, eini_rel_task, j);
}

EIN_API ein_status ein_relation_join(ein_ctx *ctx, const ein_graph *graph, int stmt,
                                     const int64_t *cut, const ein_relation *const *rel,
                                     const ein_scalar *param, ein_block_fn fn, void *user,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (graph == NULL || graph->open || graph->symbols != NULL || stmt < 0 || stmt >= graph->nstmt)
    return EIN_ERR_ARGUMENT;
  eini_rel_join j;
  memset(&j, 0, sizeof j);
  j.g = graph;
  j.s = &graph->stmt[stmt];
  j.rel = rel;
  j.fn = fn;
  j.user = user;
  if ((j.s->nindex > 0 && cut == NULL) || (j.s->noperand > 0 && rel == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  eini_arena_init(&j.arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_rel_join_all(ctx, &j, cut, param);
  eini_block_plans_end(&j.plans);
  eini_ctx_free(j.plans.ctx);
  eini_arena_free(&j.arena);
  return eini_rel_give(ctx, st, j.out, out);
}

// ---- aggregation ----

// A graph y[i..] = fold[k](x[k, i..]) for blocks of one shape.
static ein_status eini_rel_fold_graph(ein_ctx *ctx, const ein_relation *r, const int64_t *shape,
                                      int64_t n, const char *monoid, ein_graph **g) {
  int rank = r->info.rank, x, y;
  eini_stmt *s;
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stack = EINI_NEW(&(*g)->arena, int64_t, rank + 1);
  if (stack == NULL) return EIN_ERR_NO_MEMORY;
  stack[0] = n;
  for (int k = 0; k < rank; k++) stack[k + 1] = shape[k];
  EINI_TRY(eini_dist_add_tensor(*g, "x", EIN_ROLE_INPUT, r->info.dtype, rank + 1, stack, &x));
  EINI_TRY(eini_dist_add_tensor(*g, "y", EIN_ROLE_OUTPUT, r->result, rank, stack + 1, &y));
  EINI_TRY(eini_graph_add_stmt(*g, y, rank + 1, 1, &x, &s));
  s->nfree = rank;
  for (int k = 0; k <= rank; k++) {
    s->index[k].name = "";
    s->index[k].extent = stack[k < rank ? k + 1 : 0];
  }
  EINI_TRY(eini_map_set(&(*g)->arena, &s->proj[0], 0, rank, 1));
  EINI_TRY(eini_map_units(&(*g)->arena, &s->proj[0], 1, 0, rank));
  EINI_TRY(eini_map_units(&(*g)->arena, &s->out_map, 0, 0, rank));
  EINI_TRY(eini_fold_named(*g, eini_diag_of(ctx), monoid, &s->fold));
  if (eini_expr_add(&(*g)->arena, &s->expr, EIN_OP_OPERAND, -1, 0, 0, 0) < 0)
    return EIN_ERR_NO_MEMORY;
  s->numpy = 1;  // partial sums of bool are combined by or
  return eini_stmt_finish(*g, s, eini_diag_of(ctx));
}

// Folds the n blocks of one group, which follow each other from block `first`.
static ein_status eini_rel_fold(ein_ctx *ctx, eini_block_plans *l, const ein_relation *r,
                                int64_t first, int64_t n, const char *monoid, char *stack,
                                const ein_ztensor *out) {
  static const int64_t *const dense[2] = {NULL, NULL};
  const ein_ztensor *b = &r->block[first];
  size_t bytes = (size_t)ein_view_count(b) * ein_dtype_size(b->dtype);
  int64_t id = eini_block_plan_find(l, b->shape, b->rank);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  if (id == l->n) {
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    ein_status st = eini_rel_fold_graph(ctx, r, b->shape, n, monoid, &g);
    if (st == EIN_OK) st = eini_dist_plan_graph(l, g, dense, NULL, &plan);
    eini_graph_free(g);
    if (st == EIN_OK) st = eini_block_plan_keep(l, plan);
    if (st != EIN_OK) return st;
  }
  for (int64_t k = 0; k < n && bytes > 0; k++)
    memcpy(stack + (size_t)k * bytes, r->block[first + k].data, bytes);
  ein_run run;
  const void *in = stack;
  void *data = out->data;
  memset(&run, 0, sizeof run);
  run.in = &in;
  run.out = &data;
  return ein_plan_execute(l->plan[id], &run);
}

// Merges the states of n blocks that follow each other from block `first`, along the tree of
// executions, and finishes them.
static void eini_rel_merge_states(const ein_relation *r, int64_t first, int64_t n, char *stack,
                                  const ein_ztensor *out) {
  int64_t count = ein_view_count(out), used = count * (int64_t)eini_rel_wide(r);
  int64_t bytes = (used + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  if (count == 0) return;
  for (int64_t k = 0; k < n; k++)
    memcpy(stack + k * bytes, eini_rel_states(r, first + k), (size_t)used);
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t k = 0; k + step < n; k += 2 * step)
      eini_states_merge(&r->folder, count, stack + k * bytes, stack + (k + step) * bytes);
  void *state[4];
  eini_states_at(&r->folder, count, stack, state);
  eini_states_finish(&r->folder, out->rank, out->shape, state, NULL, out->dtype,
                     (char *)out->data, out->strides);
}

typedef struct eini_rel_folding {
  ein_ctx *ctx;
  eini_block_plans plans;
  const ein_relation *r;
  ein_relation *x;
  int64_t n;                // blocks of a group
  const char *monoid;
  char *stack;              // room for them
} eini_rel_folding;

static ein_status eini_rel_fold_block(void *user, int64_t b) {
  eini_rel_folding *f = (eini_rel_folding *)user;
  const ein_ztensor *out = &f->x->block[b];
  if (f->r->monoid == NULL)
    return eini_rel_fold(f->ctx, &f->plans, f->r, b * f->n, f->n, f->monoid, f->stack, out);
  eini_rel_merge_states(f->r, b * f->n, f->n, f->stack, out);
  return EIN_OK;
}

static ein_status eini_rel_aggregate_all(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                         ein_relation *x) {
  int64_t largest = 0, bytes;
  eini_arena scratch;
  eini_rel_folding f;
  memset(&f, 0, sizeof f);
  if (r->monoid != NULL && strcmp(monoid, r->monoid) != 0)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the blocks are states of '%.60s', not of "
                            "'%.60s'", r->monoid, monoid);
  EINI_TRY(eini_rel_shape(x, r->result, r->bound, r->pieces));
  EINI_TRY(eini_rel_alloc(x));
  f.ctx = ctx, f.r = r, f.x = x, f.monoid = monoid, f.n = 1;
  for (int k = r->info.rank; k < r->info.nkey; k++) f.n *= r->pieces[k];
  for (int64_t b = 0; b < r->info.nblock; b++)
    largest = eini_max64(largest, ein_view_count(&r->block[b]));
  if (r->monoid != NULL) largest += EINI_ALIGN;  // states of a block begin aligned
  if (eini_mul_overflow(f.n, largest, &bytes)) return EIN_ERR_TOO_LARGE;
  eini_arena_init(&scratch, &x->arena.al);
  f.stack = (char *)eini_new(&scratch, bytes, eini_rel_wide(r));
  ein_status st = f.stack == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK && r->monoid == NULL) st = eini_dist_ctx(ctx, 0, &f.plans.ctx);
  f.plans.a = &scratch;
  if (st == EIN_OK) st = eini_flow_tasks(&x->arena.al, x->info.nblock, eini_rel_fold_block, &f);
  eini_block_plans_end(&f.plans);
  eini_ctx_free(f.plans.ctx);
  eini_arena_free(&scratch);
  return st;
}

EIN_API ein_status ein_relation_aggregate(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                          ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || monoid == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_relation *x = eini_rel_new(ctx, r->info.rank, r->info.rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY : eini_rel_aggregate_all(ctx, r, monoid, x);
  return eini_rel_give(ctx, st, x, out);
}
