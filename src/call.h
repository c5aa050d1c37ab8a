// ================================================================================================
// >>call  from descriptors to plans
// Takes a checked descriptor; gives its graph, along the path chosen, and the plan.
// ================================================================================================

static ein_status eini_plan_path_info(ein_plan *p, const eini_path *path, int out) {
  int taken = EINI_AS_FOUND;
  p->info.flops += path->flops;
  if (path->largest > p->info.largest) p->info.largest = path->largest;
  p->info.method = path->method;
  p->info.proved = path->proved;
  for (int i = 1; i < 3; i++)
    if (path->method == eini_path_way[i]) taken = i;
  if (!(path->seconds[0] > 0)) return EIN_OK;
  return eini_plan_verdict(p, p->graph->tensor[out].name, 0, path->seconds, taken);
}

// Is the fold of the product that of its parts? Then *out's statements may follow a path.
static int eini_request_splits(const eini_request *r, const ein_graph *g) {
  int fold = r->fold, join = r->meet == EIN_BOOL ? EIN_OP_AND : EIN_OP_MUL;
  if (r->d->map != NULL || r->norm || !eini_legal_join(g, fold, join)) return 0;
  return eini_fold_value_dtype(g, fold, r->meet, 1) == ein_dtype_compute(r->meet);
}

// The path of a request. *way becomes what can be done.
static ein_status eini_request_path(eini_request *r, ein_plan *p, const eini_net *net,
                                    eini_path *path, eini_way *way) {
  const ein_einsum_desc *d = r->d;
  eini_path_opts opts;
  EINI_TRY(eini_path_options(r->ctx, r->diag, &d->options, &opts, way));
  int splits = eini_request_splits(r, p->graph);
  if (*way == EINI_WAY_USER) {
    EINI_TRY(eini_path_parse(&p->arena, r->diag, d->options.path, net, path));
    if (!splits && path->nstep > 1)
      return eini_fail(r->diag, EIN_ERR_ARGUMENT, 0, (int64_t)strlen(d->options.path),
                       "leave the path out", "%s of %s is not that of its parts: it has no path",
                       r->norm ? "norm" : eini_fold_name(p->graph, r->fold),
                       d->map != NULL ? "a map" : "products");
    eini_diag_text(r->diag, d->expr, d->expr == NULL ? 0 : (int64_t)strlen(d->expr));
    if (!splits) *way = EINI_WAY_UNSPLIT;
  } else if (splits && *way != EINI_WAY_UNSPLIT) {
    eini_given *given = p->ntuned > 0 ? &p->tuned[0].given : NULL;
    EINI_TRY(eini_path_find(&p->arena, net, &opts, path));
    EINI_TRY(eini_path_give(&p->arena, net, given, path));
    if (given != NULL && given->taken)
      *way = given->path == NULL ? EINI_WAY_UNSPLIT : EINI_WAY_SEARCH;
  } else {
    *way = EINI_WAY_UNSPLIT;
  }
  r->sp.fastest = *way == EINI_WAY_FASTEST && !p->as_found;
  if (*way != EINI_WAY_UNSPLIT) return EIN_OK;
  p->unsplit = 1;
  path->flops = p->info.naive_flops;
  path->method = "none";
  path->largest = 1;
  for (int a = 0; a < r->rank; a++) path->largest *= (double)r->shape[a];
  return EIN_OK;
}

// The product (or map) of all values, as one; of a norm |x|^2, which it adds up.
static ein_status eini_request_value(eini_request *r, eini_member *all) {
  eini_split *sp = &r->sp;
  eini_arena *a = &sp->g->arena;
  EINI_TRY(eini_member_join(sp, r->d->nin, r->value, NULL, all));
  if (r->d->map == NULL && !r->norm) return EIN_OK;
  int x = -1;
  if (r->d->map == NULL) x = eini_member_root(sp, all);
  else EINI_TRY(eini_expr_append(a, &r->map, &sp->w.expr, &x));
  if (r->norm && x >= 0) x = eini_expr_add(a, &sp->w.expr, EIN_OP_ABS, -1, x, 0, 0);
  if (r->norm && x >= 0) x = eini_expr_add(a, &sp->w.expr, EIN_OP_SQUARE, -1, x, 0, 0);
  return eini_member_wrap(sp, x, all);
}

// Statements of the product (or map) of all values into *out. With `all`, that value, whose labels
// are the output's, and no statement.
static ein_status eini_request_emit(eini_request *r, ein_plan *p, const eini_member *out,
                                    ein_rest rest, eini_member *all) {
  const ein_einsum_desc *d = r->d;
  eini_split *sp = &r->sp;
  const eini_given *given = p->ntuned > 0 ? &p->tuned[0].given : NULL;
  eini_net net;
  eini_way way;
  EINI_TRY(eini_net_build(&sp->g->arena, sp, d->nin, r->value, out, &net));
  eini_path *path = p->path = EINI_NEW(&p->arena, eini_path, 1);
  if (path == NULL) return EIN_ERR_NO_MEMORY;
  p->npath = 1;
  double naive = 1;  // summed if operands share a label
  int total = 0;
  for (int i = 0; i < sp->w.nindex; i++) naive *= (double)sp->w.index[i].extent;
  for (int k = 0; k < d->nin; k++) total += r->value[k].nlabel;
  p->info.naive_flops = naive * eini_product_flops(d->nin, total > r->no.nlabel);
  EINI_TRY(eini_request_path(r, p, &net, path, &way));
  if (way != EINI_WAY_UNSPLIT && all == NULL)
    EINI_TRY(eini_split_given(sp, given, &net, r->value, out, 0, path, rest));
  EINI_TRY(eini_plan_path_info(p, path, sp->w.operand[eini_member_operand(sp, out)]));
  if (all != NULL) return eini_request_value(r, all);
  if (way != EINI_WAY_UNSPLIT) return EIN_OK;
  if (d->map == NULL && !r->norm)
    return eini_split_given(sp, given, &net, r->value, out, 1, path, rest);
  eini_member one;
  EINI_TRY(eini_request_value(r, &one));
  return eini_emit_whole(sp, 1, &one, out, rest);
}

// What follows the fold, at the places the output's map reaches: D = alpha*T + where(beta == 0, 0,
// beta*C) + what was there, T of a dtype being the fold's result, its root for a norm, or the value
// itself where nothing is folded. Each term where asked for.
static ein_status eini_request_finish(eini_request *r, ein_plan *p, const eini_member *t,
                                      ein_dtype dtype, const eini_member *target, int c, int old,
                                      ein_rest rest) {
  ein_graph *g = p->graph;
  const ein_einsum_desc *d = r->d;
  eini_arena *a = &g->arena;
  eini_split *sp = &r->sp;
  eini_expr *e = &sp->w.expr;
  eini_member all = *target, made;
  const eini_member *one = &all;
  int alpha = -1, beta = -1, x = eini_member_root(sp, t);
  const int out = eini_member_operand(sp, target);
  // Of both dtypes, so that a real factor of integers in a real output stays what it is.
  ein_dtype pt = ein_dtype_promote(dtype, g->tensor[sp->w.operand[out]].dtype);
  if (eini_kind_of(pt) < EINI_KREAL) pt = pt == EIN_BOOL ? EIN_BOOL : EIN_I64;
  if (d->alpha.set) EINI_TRY(eini_graph_add_param(g, "alpha", 5, pt, d->alpha, &alpha));
  if (d->beta.set) EINI_TRY(eini_graph_add_param(g, "beta", 4, pt, d->beta, &beta));
  if (r->norm && x >= 0) x = eini_expr_add(a, e, EIN_OP_SQRT, -1, x, 0, 0);
  if (alpha >= 0) {
    int q = eini_expr_add(a, e, EIN_OP_PARAM, -1, alpha, 0, 0);
    x = eini_expr_pair(a, e, EIN_OP_MUL, q, x);
  }
  for (int k = 0; k < 2; k++) {
    if (k == 0 ? beta < 0 : old < 0) continue;
    int w = eini_split_operand(sp, k == 0 ? c : old, &sp->w.proj[out]);
    if (k == 0) {
      int b = eini_expr_add(a, e, EIN_OP_PARAM, -1, beta, 0, 0), z = eini_expr_int(a, e, -1, 0);
      int q = eini_expr_pair(a, e, EIN_OP_EQ, b, z), m = eini_expr_pair(a, e, EIN_OP_MUL, b, w);
      w = z < 0 || q < 0 || m < 0 ? -1 : eini_expr_add(a, e, EIN_OP_WHERE, -1, q, z, m);
    }
    x = eini_expr_pair(a, e, EIN_OP_ADD, x, w);
  }
  EINI_TRY(eini_member_wrap(sp, x, &all));
  if (rest != EIN_REST_ZERO || p->alias < 0) return eini_emit_stmt(sp, target, 1, &one, rest);
  // Before zeros go over what is read.
  EINI_TRY(eini_temp_member(sp, t->nlabel, t->label, &made));
  EINI_TRY(eini_emit_stmt(sp, &made, 1, &one, EIN_REST_ERROR));
  one = &made;
  return eini_emit_stmt(sp, target, 1, &one, rest);
}

// The dtype einsum gives for a fold over operands that promote to `meet`, or over a map.
static ein_status eini_request_dtype(eini_request *r, ein_graph *g) {
  if (r->d->map == NULL) r->dtype = r->meet;
  if (r->norm) {
    r->dtype = eini_real_part(eini_float_for(r->dtype));
  } else if (r->fold >= EIN_FOLD_USER) {
    r->dtype = g->monoid[r->fold - EIN_FOLD_USER].dtype;
  } else if (r->lone || eini_request_reduces(r)) {
    if (r->d->map != NULL && (r->fold == EIN_FOLD_SUM || r->fold == EIN_FOLD_PROD) &&
        r->dtype == EIN_BOOL)
      r->dtype = EIN_I64;
    r->dtype = eini_fold_dtype(r->fold, r->dtype);
  }
  return EIN_OK;
}

// No two elements of an output may be one: a stride of 0, or one axis stepping onto another.
static ein_status eini_check_writable(eini_diag *diag, const ein_ztensor *v) {
  for (int a = 0; v->strides != NULL && ein_view_count(v) > 0 && a < v->rank; a++) {
    int64_t s = v->strides[a];
    if (v->shape[a] < 2) continue;
    if (s == 0)
      return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                       "the output has stride 0 at axis %d: its elements coincide", a);
    for (int b = 0; b < v->rank; b++) {
      if (a == b || v->shape[b] < 2 || v->strides[b] % s != 0) continue;
      if (eini_abs64(v->strides[b] / s) < v->shape[a])
        return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                         "the output's axes %d and %d reach the same elements", a, b);
    }
  }
  return EIN_OK;
}

static ein_status eini_check_out(eini_request *r, const ein_ztensor *v, const char *what) {
  if (v->rank != r->rank)
    return eini_fail(r->diag, EIN_ERR_SHAPE, -1, 0, NULL, "%s has %d axes, the result has %d", what,
                     v->rank, r->rank);
  for (int a = 0; a < r->rank; a++) {
    if (v->shape[a] == r->shape[a]) continue;
    return eini_fail(r->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "%s has extent %lld at axis %d, the result has %lld", what,
                     (long long)v->shape[a], a, (long long)r->shape[a]);
  }
  if (v == r->d->out) EINI_TRY(eini_check_writable(r->diag, v));
  if (v == r->d->out && !ein_dtype_same_kind(r->dtype, v->dtype))
    return eini_fail(r->diag, EIN_ERR_DTYPE, -1, 0, "same_kind casts only, as in NumPy",
                     "the result is %s, the output is %s", ein_dtype_name(r->dtype),
                     ein_dtype_name(v->dtype));
  return EIN_OK;
}

// Is each result made of one element of each operand, in one step, so that what follows is too?
static int eini_request_direct(const eini_request *r, const eini_member *target) {
  if (r->norm || r->lone || eini_request_reduces(r) || (r->d->nin > 2 && r->d->map == NULL))
    return 0;
  for (int c = 0; c < target->nlabel; c++) {
    int held = 0;
    for (int k = 0; k < r->d->nin; k++)
      held |= eini_find_sorted(r->value[k].label, r->value[k].nlabel, target->label[c]) >= 0;
    if (!held) return 0;
  }
  return 1;
}

// Where the output is written: the labels of its axes, and the map from labels to them.
static ein_status eini_request_target(const eini_request *r, ein_graph *g, int **label,
                                      eini_map *map) {
  *label = EINI_NEW(&g->arena, int, r->rank);
  if (*label == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_map_new(&g->arena, r->rank, r->sp.w.nindex, map));
  for (int a = 0; a < r->rank; a++) {
    (*label)[a] = r->axes[a];
    EINI_TRY(eini_map_set(&g->arena, map, a, r->axes[a], 1));
  }
  return EIN_OK;
}

// The statements of a request, into p->graph. view gets the layout of each tensor.
static ein_status eini_request_graph(eini_request *r, ein_plan *p, const ein_ztensor **view) {
  ein_graph *g = p->graph;
  const ein_einsum_desc *d = r->d;
  int id, out, c = -1, old = -1;
  for (int k = 0; k < d->nin; k++) {
    char name[24];
    int n = snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_graph_add_tensor(g, name, n, EIN_ROLE_INPUT, d->in[k].dtype, d->in[k].rank,
                                   d->in[k].shape, &id));
    view[id] = &d->in[k];
  }
  EINI_TRY(eini_request_read(r, g));
  EINI_TRY(eini_request_dtype(r, g));
  EINI_TRY(eini_check_out(r, d->out, "the output"));
  eini_request_widen(r);
  EINI_TRY(eini_request_stmt(r, g));
  eini_split *sp = &r->sp;
  eini_member target, temp;
  eini_map map;
  int *label;
  EINI_TRY(eini_request_target(r, g, &label, &map));
  const int nlabel = eini_sort_unique(label, r->rank), repeated = nlabel < r->rank;
  ein_rest rest = repeated ? d->rest : EIN_REST_ERROR;
  if (d->beta.set && d->c != NULL) {
    EINI_TRY(eini_check_out(r, d->c, "C"));
    EINI_TRY(eini_graph_add_tensor(g, "C", 1, EIN_ROLE_INPUT, d->c->dtype, r->rank, r->shape, &c));
    view[c] = d->c;
  }
  if ((d->beta.set && d->c == NULL) || rest == EIN_REST_ACCUMULATE) {
    EINI_TRY(eini_graph_add_tensor(g, c < 0 ? "C" : "D", 1, EIN_ROLE_INPUT, d->out->dtype, r->rank,
                                   r->shape, &p->alias));
    view[p->alias] = d->out;
    if (c < 0) c = p->alias;
    if (rest == EIN_REST_ACCUMULATE) old = p->alias, rest = EIN_REST_KEEP;
  }
  EINI_TRY(
      eini_graph_add_tensor(g, "out", 3, EIN_ROLE_OUTPUT, d->out->dtype, r->rank, r->shape, &out));
  view[out] = d->out;
  p->keeps = rest == EIN_REST_KEEP || p->alias >= 0;
  EINI_TRY(eini_member_new(sp, out, &map, nlabel, label, &target));
  if (!d->alpha.set && !d->beta.set && old < 0 && !r->norm)
    return eini_request_emit(r, p, &target, rest, NULL);
  if (eini_request_direct(r, &target)) {
    EINI_TRY(eini_request_emit(r, p, &target, rest, &temp));
    const ein_dtype dtype = ein_dtype_compute(d->map == NULL ? r->meet : r->dtype);
    return eini_request_finish(r, p, &temp, dtype, &target, c, old, rest);
  }
  int *order = EINI_NEW(&g->arena, int, r->rank), n = 0;  // of the temporary, as in the output
  if (order == NULL) return EIN_ERR_NO_MEMORY;
  for (int a = 0; a < r->rank; a++) {
    int known = eini_find_sorted(target.label, target.nlabel, r->axes[a]) < 0;
    for (int b = 0; b < n; b++) known |= order[b] == r->axes[a];
    if (!known) order[n++] = r->axes[a];
  }
  EINI_TRY(eini_temp_member(sp, n, order, &temp));
  EINI_TRY(eini_request_emit(r, p, &temp, EIN_REST_ERROR, NULL));
  const int made = sp->w.operand[eini_member_operand(sp, &temp)];
  return eini_request_finish(r, p, &temp, g->tensor[made].dtype, &target, c, old, rest);
}

// The plan of a request starts empty: a graph with the ctx's registrations.
static ein_status eini_plan_new(ein_ctx *ctx, ein_plan **out) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_plan *p = EINI_NEW(&arena, ein_plan, 1);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  p->al = arena.al;
  p->executor.width = 1;
  if (ctx != NULL) p->executor = ctx->executor;
  p->now_fn = ctx == NULL ? NULL : ctx->now_fn;
  p->now_user = ctx == NULL ? NULL : ctx->now_user;
  const ein_kernels **kernels = EINI_NEW(&arena, const ein_kernels *,
                                         ctx == NULL ? 0 : ctx->nkernels);
  p->kernels = kernels;
  p->rates = eini_rates_of(ctx);
  p->one = eini_rates_one(ctx);
  p->nkernels = ctx == NULL || kernels == NULL ? 0 : ctx->nkernels;
  for (int i = 0; i < p->nkernels; i++) kernels[i] = ctx->kernels[i];
  p->alias = -1;
  p->info.method = "none";
  p->graph = eini_graph_new(ctx);
  p->arena = arena;
  if (p->graph == NULL || kernels == NULL) {
    eini_graph_free(p->graph);
    eini_arena_free(&arena);
    return EIN_ERR_NO_MEMORY;
  }
  *out = p;
  return EIN_OK;
}

static void eini_fail_status(ein_ctx *ctx, ein_status st) {
  if (ctx != NULL && st != EIN_OK && ctx->diag.count == 0)
    eini_fail(&ctx->diag, st, -1, 0, NULL, "%s", ein_status_text(st));
  if (ctx != NULL && st != EIN_OK && ctx->logger.log_fn != NULL)
    ctx->logger.log_fn(EIN_LOG_ERROR, eini_diag_message(&ctx->diag), ctx->logger.user);
}

static void eini_begin_call(ein_ctx *ctx, const char *text) {
  if (ctx != NULL) eini_diag_reset(&ctx->diag, text, text == NULL ? 0 : (int64_t)strlen(text));
}

static ein_status eini_validate_options(eini_diag *g, const ein_options *o) {
  if ((int)o->goal < 0 || o->goal > EIN_GOAL_BYTES)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "goal is out of range: %d", (int)o->goal);
  if (!(o->path_seconds >= 0 && o->path_seconds < HUGE_VAL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "path_seconds is no time: %g",
                     o->path_seconds);
  if (o->reserved > 0 && o->reserved >= o->memory)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "reserved is %llu bytes of a memory of %llu",
                     (unsigned long long)o->reserved, (unsigned long long)o->memory);
  if (o->variant != NULL && o->memory > 0)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "plan it without a budget",
                     "a variant does not go with a memory budget");
  if (o->constant != NULL && o->memory > 0)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "plan it without a budget",
                     "constant inputs do not go with a memory budget");
  if (o->ungrouped && o->memory > 0)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "plan it without a budget",
                     "ungrouped does not go with a memory budget");
  if (o->path_steps < 0)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "path_steps is negative: %lld",
                     (long long)o->path_steps);
  return EIN_OK;
}

// Checks of integers look at statements as they are: in one pass, by the portable kernels.
static ein_status eini_overflow_options(eini_diag *g, ein_options *o) {
  o->overflow_check = o->overflow_check != 0;
  if (!o->overflow_check) return EIN_OK;
  if (o->deterministic)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, NULL,
                     "overflow_check does not go with deterministic");
  if (o->path != NULL && strcmp(o->path, "auto") != 0 && strcmp(o->path, "none") != 0)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, "path is auto or none",
                     "overflow_check looks at products in one pass, not in the order of a path");
  if (o->memory > 0)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "plan it without a budget",
                     "overflow_check does not go with a memory budget");
  o->path = "none";
  return EIN_OK;
}

static void eini_plan_check(ein_plan *p, const ein_options *o) {
  p->checked = o->overflow_check;
  p->ungrouped = o->ungrouped != 0;
  if (!p->checked) return;
  p->nkernels = 0;
  p->rates = NULL;
}

static ein_status eini_plan_want(ein_plan *p, const ein_options *o) {
  if (o->variant == NULL) return EIN_OK;
  p->wanted = EINI_NEW(&p->arena, eini_wanted, 1);
  if (p->wanted == NULL) return EIN_ERR_NO_MEMORY;
  p->wanted->name = eini_strndup(&p->arena, o->variant, (int64_t)strlen(o->variant));
  return p->wanted->name == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Names of constant inputs, each of which the complete graph has.
static ein_status eini_plan_constant(eini_diag *g, ein_plan *p, const ein_options *o) {
  if (o->constant == NULL) return EIN_OK;
  p->constant = eini_strndup(&p->arena, o->constant, (int64_t)strlen(o->constant));
  if (p->constant == NULL) return EIN_ERR_NO_MEMORY;
  for (const char *s = p->constant;; s++) {
    const int n = (int)strcspn(s, ",");
    const eini_tensor *t = p->graph->tensor, *last = t + p->graph->ntensor;
    while (t < last && (t->role != EIN_ROLE_INPUT || (int)strlen(t->name) != n ||
                        memcmp(t->name, s, (size_t)n) != 0))
      t++;
    if (t == last)
      return eini_fail(g, EIN_ERR_NAME, -1, 0, "operands of an einsum are x0, x1, ..",
                       "constant: '%.*s' is no input", n < 80 ? n : 80, s);
    if (*(s += n) == 0) return EIN_OK;
  }
}

// Does a task run the variant that was asked for?
static int eini_plan_has_wanted(const ein_plan *p) {
  const eini_task *t;
  const eini_stmt *s, *f;
  for (int k = 0; k < p->ntask; k++) {
    if (p->task[k].best != NULL && p->task[k].best->fixed) return 1;
    for (int i = 0; (t = eini_task_from(&p->task[k], i, &s, &f)) != NULL; i++)
      if (t->best != NULL && t->best->fixed) return 1;
  }
  return 0;
}

// A provider that is to run all of it does.
static ein_status eini_plan_alone(eini_diag *g, const ein_plan *p) {
  for (int k = 0; k < p->ntask && p->away != NULL && p->away->alone; k++) {
    const eini_stmt *s = NULL, *f = NULL;
    if (p->task[k].kernels == p->away) continue;
    (void)eini_task_from(&p->task[k], 0, &s, &f);
    if (f != NULL) s = f;
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "name other kernels, too, and they run it",
                     "the kernels '%s' cannot run the statement of '%.80s'", p->away->name,
                     s == NULL ? "" : p->graph->tensor[s->out].name);
  }
  return EIN_OK;
}

static ein_status eini_plan_wanted(eini_diag *g, const ein_plan *p) {
  char hint[1024];
  eini_text t = eini_text_of(hint, sizeof hint);
  EINI_TRY(eini_plan_alone(g, p));
  if (p->wanted == NULL || strcmp(p->wanted->name, EINI_ANY) == 0 || eini_plan_has_wanted(p))
    return EIN_OK;
  eini_say(&t, p->wanted->at > 0 ? "known here: " : "known here: none");
  for (const char *s = p->wanted->known, *end; *s != 0; s = end + 1) {
    end = strchr(s, '\n');
    eini_say(&t, "%s'%.*s'", s > p->wanted->known ? ", " : "", (int)(end - s), s);
  }
  return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, hint, "no task of this plan has a variant '%.80s'",
                   p->wanted->name);
}

// What means the same becomes the same, before anything is decided or remembered by it.
static ein_einsum_desc eini_desc_normal(const ein_einsum_desc *desc) {
  ein_einsum_desc d = *desc;
  d.alpha.set = desc->alpha.set != 0;
  d.beta.set = desc->beta.set != 0;
  if (!d.beta.set) d.c = NULL;
  d.options.may_overlap = desc->options.may_overlap != 0;
  return d;
}

// There are more operands than an expression names: what is wrong in it, or that.
static ein_status eini_notation_misfit(ein_ctx *ctx, const ein_einsum_desc *d) {
  eini_arena scratch;
  eini_notation no;
  eini_arena_init(&scratch, ctx == NULL ? NULL : &ctx->al);
  memset(&no, 0, sizeof no);
  no.arena = &scratch;
  no.diag = eini_diag_of(ctx);
  no.is_text = 1;
  ein_status st = eini_notation_scan(&no, d->expr, (int64_t)strlen(d->expr));
  if (st == EIN_OK) st = eini_fail_count(&no, d);
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_validate_desc(ein_ctx *ctx, const ein_einsum_desc *d, int need_out) {
  eini_diag *g = eini_diag_of(ctx);
  if (d == NULL) return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "the descriptor is NULL");
  if (d->expr == NULL && (d->labels == NULL || d->nlabels == NULL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "expr is NULL, and labels and nlabels are not both given");
  if (need_out && d->out == NULL)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "out is NULL: the view of the result");
  if ((int)d->rest < 0 || d->rest > EIN_REST_ACCUMULATE)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "rest is out of range: %d", (int)d->rest);
  EINI_TRY(eini_validate_options(g, &d->options));
  if (!eini_terms_fit(d)) EINI_TRY(eini_notation_misfit(ctx, d));
  const eini_where where = {eini_ctx_space(ctx), &d->options};
  EINI_TRY(eini_validate_views(g, d->nin, d->in, need_out ? d->out : NULL,
                               d->beta.set ? d->c : NULL, &where));
  for (int k = 0; d->expr == NULL && k <= d->nin; k++) {
    if (d->labels[k] != NULL ? d->nlabels[k] >= 0 : k == d->nin) continue;
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "label list %d is missing or its length is negative", k);
  }
  return EIN_OK;
}

// Deterministic mode needs a provider that folds in order, or none at all, and no clock.
static ein_status eini_order_check(ein_ctx *ctx, const ein_options *o) {
  if (!o->deterministic) return EIN_OK;
  if (o->path_seconds > 0)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, "path_steps is a budget in steps",
                     "deterministic: a path searched for by the clock may differ each time");
  int able = ctx == NULL || ctx->nkernels == 0;
  for (int i = 0; !able && i < ctx->nkernels; i++) able = ctx->kernels[i]->ordered;
  if (able) return EIN_OK;
  return eini_fail(eini_diag_of(ctx), EIN_ERR_UNSUPPORTED, -1, 0, "the portable kernels can",
                   "deterministic: the kernels '%s' do not add in a fixed order",
                   ctx->kernels[0]->name);
}

static ein_status eini_plan_einsum(ein_ctx *ctx, const ein_einsum_desc *d, ein_plan *p) {
  eini_request r;
  memset(&r, 0, sizeof r);
  r.d = d;
  r.ctx = ctx;
  r.diag = eini_diag_of(ctx);
  // Inputs, C, output; further tensors are temporaries without a view.
  int64_t room = 8 * (int64_t)d->nin + 16;
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, room);
  if (view == NULL) return EIN_ERR_NO_MEMORY;
  p->may_overlap = d->options.may_overlap;
  EINI_TRY(eini_plan_want(p, &d->options));
  EINI_TRY(eini_order_check(ctx, &d->options));
  EINI_TRY(eini_request_graph(&r, p, view));
  if (p->graph->ntensor > room / 2) return EIN_ERR_INTERNAL;
  if (p->ntuned > 0) {
    EINI_TRY(eini_tuned_hint(p, &p->tuned[0], 0));
    EINI_TRY(eini_tuned_done(p, &p->tuned[0], &d->options, p->unsplit, p->path));
  }
  if (d->options.deterministic) EINI_TRY(eini_order_graph(p->graph));
  EINI_TRY(eini_graph_lowers(p->graph, eini_diag_of(ctx)));
  EINI_TRY(eini_plan_constant(eini_diag_of(ctx), p, &d->options));
  return eini_plan_build(p, 0, NULL, view);
}

// What stands behind the statement that a request folds.
static void eini_request_more(eini_text *t, const ein_einsum_desc *d) {
  if (d->alpha.set) eini_say(t, " alpha");
  if (d->beta.set) eini_say(t, d->c == NULL ? " beta" : " beta C");
  if (d->monoid != NULL && strcmp(d->monoid, "norm") == 0) eini_say(t, " norm");
}

// Asks the store about a request: about the statement that it is in one pass, in a plan of its own.
static ein_status eini_plan_ask(ein_ctx *ctx, const ein_einsum_desc *desc, ein_plan *p) {
  ein_einsum_desc d = *desc;
  const int use = eini_tuned_free(&d.options), nin = d.nin;
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, 8 * (int64_t)nin + 16);
  int64_t *layout = EINI_NEW(&p->arena, int64_t, (int64_t)nin + 1);
  ein_plan *q = NULL;
  eini_tuned *t;
  eini_request r;
  char more[64];
  eini_text text = eini_text_of(more, sizeof more);
  if (view == NULL || layout == NULL) return EIN_ERR_NO_MEMORY;
  d.options.path = "none";
  memset(&r, 0, sizeof r);
  r.d = &d;
  r.ctx = ctx;
  eini_request_more(&text, &d);
  ein_status st = eini_plan_new(ctx, &q);
  if (st == EIN_OK) st = eini_request_graph(&r, q, view);
  if (st == EIN_OK && q->graph->stmt[0].noperand <= nin) {
    const eini_stmt *s = &q->graph->stmt[0];
    for (int k = 0; k <= s->noperand; k++) {
      const ein_ztensor *v = k < s->noperand ? view[s->operand[k]] : d.out;
      if (v != NULL) layout[k] = eini_layout_word(v->rank, v->shape, v->strides);
    }
    st = eini_tuned_add(ctx, p, q->graph, s, layout, more, 1, use, &t);
    if (st == EIN_OK && t != NULL && t->given.order)
      st = eini_tuned_rename(&p->arena, t, s, &r.sp.w);
  } else if (st != EIN_ERR_NO_MEMORY) {
    st = EIN_OK;  // what is wrong with it is said where it is planned
  }
  eini_plan_free(q);
  return st;
}

// The plan becomes that of way `there`, if kernels predict it to take less.
static ein_status eini_plan_against(ein_ctx *ctx, const ein_einsum_desc *d, int there,
                                    ein_plan **plan) {
  ein_plan *p = *plan, *q = NULL;
  eini_verdict *v = &p->verdict[0];
  double seconds[3] = {v->seconds[0], v->seconds[1], v->seconds[2]};
  ein_einsum_desc other = *d;
  if (there == EINI_LEFT_TO_RIGHT) other.options.path = "naive";
  ein_status st = eini_plan_new(ctx, &q);
  if (st == EIN_OK) q->as_found = 1;
  if (st == EIN_OK) st = eini_plan_einsum(ctx, &other, q);
  seconds[v->taken] = p->info.seconds;
  seconds[there] = q == NULL ? 0 : q->info.seconds;
  const int has = eini_plan_has_wanted(p), more = st == EIN_OK && eini_plan_has_wanted(q);
  const int better = st == EIN_OK && (has == more ? seconds[there] < seconds[v->taken] : more);
  int out = 0;  // the same tensor in both
  while (p->graph->tensor[out].name != v->out) out++;
  for (int i = 0; i < 3 && !better; i++) v->seconds[i] = seconds[i];
  if (better) st = eini_plan_verdict(q, q->graph->tensor[out].name, 0, seconds, there);
  if (better && st == EIN_OK && p->ntuned > 0) st = eini_plan_ask(ctx, d, q);
  if (better && st == EIN_OK && q->ntuned > 0)
    st = eini_tuned_done(q, &q->tuned[0], &d->options, 0, NULL);
  eini_plan_free(better ? p : q);
  if (better) *plan = q;
  return st;
}

// Of pairs as found, those from left to right, and one pass where that was chosen, the kernels'
// predictions choose: they tell more than the time model of paths, which knows no strides.
static ein_status eini_plan_weigh(ein_ctx *ctx, const ein_einsum_desc *d, ein_plan **plan) {
  const eini_path *path = (*plan)->path;
  if (path == NULL || !(path->seconds[EINI_AS_FOUND] > 0)) return EIN_OK;
  const double model[2] = {path->seconds[EINI_AS_FOUND], path->seconds[EINI_LEFT_TO_RIGHT]};
  const double most = EINI_WEIGH_TIMES * path->seconds[(*plan)->verdict[0].taken];
  const int plain = path->plain;  // then these two are one
  for (int there = EINI_AS_FOUND; there <= EINI_LEFT_TO_RIGHT; there++) {
    const int here = (*plan)->verdict[0].taken;
    const int same = plain && (here != EINI_ONE_PASS || there == EINI_LEFT_TO_RIGHT);
    if (there == here || same || model[there] > most) continue;
    EINI_TRY(eini_plan_against(ctx, d, there, plan));
  }
  return EIN_OK;
}

static ein_status eini_plan_make(ein_ctx *ctx, const ein_einsum_desc *desc, int may_overlap,
                                 ein_plan **p) {
  eini_begin_call(ctx, desc == NULL ? NULL : desc->expr);
  EINI_TRY(eini_validate_desc(ctx, desc, 1));
  EINI_TRY(eini_plan_new(ctx, p));
  ein_einsum_desc d = eini_desc_normal(desc);
  d.options.may_overlap |= may_overlap;
  EINI_TRY(eini_overflow_options(eini_diag_of(ctx), &d.options));
  eini_plan_check(*p, &d.options);
  if (eini_tuned_wanted(ctx, &d.options)) EINI_TRY(eini_plan_ask(ctx, &d, *p));
  EINI_TRY(eini_plan_einsum(ctx, &d, *p));
  EINI_TRY(eini_plan_weigh(ctx, &d, p));
  return eini_plan_wanted(eini_diag_of(ctx), *p);
}
