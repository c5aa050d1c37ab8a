// ================================================================================================
// >>graph-plan  plans of graphs
// Takes a finished graph; gives its statements in contraction orders, and a plan.
// ================================================================================================

static ein_status eini_carry_copy(eini_arena *a, const eini_stmt *s, const eini_carry **to) {
  const size_t n = (size_t)s->nindex;
  eini_carry *c = EINI_NEW(a, eini_carry, 1);
  int64_t *extent = EINI_NEW(a, int64_t, n);
  int *origin = EINI_NEW(a, int, n);
  if (c == NULL || extent == NULL || origin == NULL) return EIN_ERR_NO_MEMORY;
  *c = *s->carry;
  if (n > 0) memcpy(extent, c->extent, n * sizeof *extent);
  if (n > 0) memcpy(origin, c->origin, n * sizeof *origin);
  c->extent = extent;
  c->origin = origin;
  *to = c;
  return EIN_OK;
}

// Copies a statement into another graph, where its tensors have the numbers given.
static ein_status eini_stmt_copy(ein_graph *g, const eini_stmt *from, int out,
                                 const int *operand) {
  eini_arena *a = &g->arena;
  eini_stmt *s;
  EINI_TRY(eini_graph_add_like(g, from, 0, out, operand, &s));
  for (int i = 0; i < from->nindex; i++) {
    const char *name = from->index[i].name == NULL ? "" : from->index[i].name;
    s->index[i].name = eini_strndup(a, name, (int64_t)strlen(name));
    if (s->index[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  s->expr.node = EINI_NEW(a, eini_node, from->expr.n);
  s->expr.list = EINI_NEW(a, int, from->expr.nlist);
  if (s->expr.node == NULL || s->expr.list == NULL) return EIN_ERR_NO_MEMORY;
  s->expr.cap = from->expr.n;
  s->expr.caplist = from->expr.nlist;
  memcpy(s->expr.node, from->expr.node, (size_t)from->expr.n * sizeof *from->expr.node);
  if (from->expr.nlist > 0)
    memcpy(s->expr.list, from->expr.list, (size_t)from->expr.nlist * sizeof *from->expr.list);
  return s->carry == NULL ? EIN_OK : eini_carry_copy(a, from, &s->carry);
}

// Tensors, params and registrations of a graph, without its statements.
static ein_status eini_graph_copy_head(ein_graph *g, const ein_graph *from) {
  for (int64_t t = 0; t < from->ntensor; t++) {
    const eini_tensor *x = &from->tensor[t];
    int id;
    EINI_TRY(eini_graph_add_tensor(g, x->name, (int64_t)strlen(x->name), x->role, x->dtype, x->rank,
                                   x->shape, &id));
    g->tensor[id].partial = x->partial;
    g->tensor[id].shift = x->shift;
    g->tensor[id].line = x->line;
  }
  return eini_graph_copy_names(g, from);
}

// The strides that the caller gives a tensor; NULL: none.
static const int64_t *eini_layout_strides(const eini_tensor *t, int n, const ein_binding *layout) {
  for (int k = 0; k < n && t->role != EIN_ROLE_TEMP; k++)
    if (strcmp(layout[k].name, t->name) == 0) return layout[k].view->strides;
  return NULL;
}

// Asks the store about a statement of a graph.
static ein_status eini_graph_ask(ein_ctx *ctx, ein_plan *p, const ein_graph *graph,
                                 const eini_stmt *s, int nlayout, const ein_binding *layout,
                                 const ein_options *o, eini_tuned **t) {
  int64_t *word = EINI_NEW(&p->arena, int64_t, (int64_t)s->noperand + 1);
  if (word == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k <= s->noperand; k++) {
    const eini_tensor *x = &graph->tensor[k < s->noperand ? s->operand[k] : s->out];
    word[k] = eini_layout_word(x->rank, x->shape, eini_layout_strides(x, nlayout, layout));
  }
  return eini_tuned_add(ctx, p, graph, s, word, "", 0, eini_tuned_free(o), t);
}

// What was made of the statement, from statement `first` on, along a path, or NULL.
static ein_status eini_graph_asked(ein_plan *p, eini_tuned *t, int64_t first, const ein_options *o,
                                   const eini_path *path) {
  if (t == NULL) return EIN_OK;
  t->hint.unsplit = t->given.taken && t->given.path == NULL;
  EINI_TRY(eini_tuned_hint(p, t, first));
  return eini_tuned_done(p, t, o, p->unsplit, path);
}

// The statements of a graph, n-ary folds split, into p->graph.
static ein_status eini_plan_statements(ein_ctx *ctx, ein_plan *p, const ein_graph *graph,
                                       int nlayout, const ein_binding *layout,
                                       const ein_options *o) {
  eini_diag *diag = eini_diag_of(ctx);
  eini_path_opts opts;
  eini_way way;
  EINI_TRY(eini_path_options(ctx, diag, o, &opts, &way));
  if (way == EINI_WAY_USER)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "a path given step by step is for one expression, not for a program");
  p->graph->ordered = graph->ordered;
  eini_split sp;
  p->unsplit = way == EINI_WAY_UNSPLIT;
  memset(&sp, 0, sizeof sp);
  sp.g = p->graph;
  sp.diag = diag;
  sp.rates = o->deterministic ? NULL : eini_rates_of(ctx);
  sp.fastest = way == EINI_WAY_FASTEST;
  const int ask = eini_tuned_wanted(ctx, o) && !graph->ordered;
  int64_t *quotient;
  EINI_TRY(eini_quotients_find(&p->graph->arena, graph, &quotient));
  const int divides = !p->unsplit && !graph->ordered && !p->checked;
  for (int64_t i = 0; i < graph->nstmt; i++) {
    eini_stmt read = graph->stmt[i];
    const eini_stmt *s = &read;
    const int64_t first = p->graph->nstmt;
    eini_tuned *t = NULL;
    if (divides && quotient[s->out] > 0) continue;
    if (divides) EINI_TRY(eini_quotients_put(&p->graph->arena, graph, quotient, &read));
    if (ask && s->carry == NULL)
      EINI_TRY(eini_graph_ask(ctx, p, graph, s, nlayout, layout, o, &t));
    opts.given = t == NULL ? NULL : &t->given;
    EINI_TRY(eini_stmt_copy(p->graph, s, s->out, s->operand));
    const double flops = eini_points(s, NULL, 0, s->nindex) * eini_point_flops(s);
    p->info.naive_flops += flops;
    if (p->unsplit || graph->ordered || s->carry != NULL) {
      EINI_TRY(eini_graph_asked(p, t, first, o, NULL));
      continue;
    }
    p->graph->nstmt--;  // taken back if it is split, put back if not
    eini_stmt copy = p->graph->stmt[p->graph->nstmt];
    eini_path path;
    int done;
    memset(&path, 0, sizeof path);
    EINI_TRY(eini_split_stmt(&sp, &copy, &opts, &path, &done));
    if (done) {
      p->graph->tensor[s->out].nstmt--;
      EINI_TRY(eini_plan_path_info(p, &path, s->out));
    } else {
      p->info.flops += flops;
      p->graph->stmt[p->graph->nstmt++] = copy;
    }
    EINI_TRY(eini_graph_asked(p, t, first, o, done ? &path : NULL));
  }
  if (ask) EINI_TRY(eini_tuned_program(ctx, p, graph, o));
  return o->deterministic && !graph->ordered ? eini_order_graph(p->graph) : EIN_OK;
}

// A graph that can be planned, with valid layouts for its inputs and outputs.
static ein_status eini_validate_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                      const ein_binding *layout, const ein_options *o) {
  eini_diag *diag = eini_diag_of(ctx);
  const eini_where where = {o == NULL ? 0 : eini_ctx_space(ctx), o};
  if (graph == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is NULL");
  if (graph->open)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  EINI_TRY(eini_validate_bindings(diag, "layout", nlayout, layout, &where));
  for (int k = 0; k < nlayout; k++) {
    const ein_ztensor *v = layout[k].view;
    const eini_tensor *x = NULL;
    for (int64_t t = 0; x == NULL && t < graph->ntensor; t++)
      if (graph->tensor[t].role != EIN_ROLE_TEMP &&
          strcmp(graph->tensor[t].name, layout[k].name) == 0)
        x = &graph->tensor[t];
    if (x == NULL)
      return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL,
                       "'%.80s' is no input or output of the program", layout[k].name);
    int r = 0;
    while (r < v->rank && r < x->rank && v->shape[r] == x->shape[r]) r++;
    if (v->dtype != x->dtype)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL, "the layout of '%.80s' is %s, '%.80s' %s",
                       x->name, ein_dtype_name(v->dtype), x->name, ein_dtype_name(x->dtype));
    if (v->rank != x->rank)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL,
                       "the layout of '%.80s' has %d axes, not %d", x->name, v->rank, x->rank);
    if (r < x->rank)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL,
                       "the layout of '%.80s' has shape[%d] = %lld, not %lld", x->name, r,
                       (long long)v->shape[r], (long long)x->shape[r]);
  }
  for (int64_t t = 0; t < graph->ntensor; t++) {
    for (int k = 0; graph->tensor[t].role == EIN_ROLE_OUTPUT && k < nlayout; k++) {
      if (strcmp(layout[k].name, graph->tensor[t].name) != 0) continue;
      EINI_TRY(eini_check_writable(diag, layout[k].view));
    }
  }
  return EIN_OK;
}

// A plan without a budget. o is valid.
static ein_status eini_graph_plan(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                  const ein_binding *layout, const ein_options *o, ein_plan **p) {
  EINI_TRY(eini_plan_new(ctx, p));
  (*p)->may_overlap = o->may_overlap;
  (*p)->rows = (*p)->together = o->memory == 0;  // whose temporaries live longer
  EINI_TRY(eini_graph_copy_head((*p)->graph, graph));
  eini_plan_check(*p, o);
  EINI_TRY(eini_plan_want(*p, o));
  EINI_TRY(eini_plan_statements(ctx, *p, graph, nlayout, layout, o));
  EINI_TRY(eini_graph_lowers((*p)->graph, eini_diag_of(ctx)));
  EINI_TRY(eini_plan_constant(eini_diag_of(ctx), *p, o));
  EINI_TRY(eini_plan_build(*p, nlayout, layout, NULL));
  return eini_plan_wanted(eini_diag_of(ctx), *p);
}
