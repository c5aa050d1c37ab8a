// ================================================================================================
// >>results  decompositions from labels
// Takes what was searched; gives immutable decompositions and what is asked of them.
// ================================================================================================

static const char *const eini_cost_names[EIN_COST_COUNT] = {"paper", "paper-code", "bytes",
                                                            "seconds"};

EIN_API const char *ein_cost_name(ein_cost cost) {
  return (int)cost >= 0 && cost < EIN_COST_COUNT ? eini_cost_names[cost] : NULL;
}

EIN_API ein_cost ein_cost_find(const char *name) {
  int i = 0;
  while (i < EIN_COST_COUNT && (name == NULL || strcmp(name, eini_cost_names[i]) != 0)) i++;
  return (ein_cost)i;
}

static ein_status eini_decomp_fill(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                   const int *label, ein_decomposition *d) {
  d->parts = EINI_NEW(&d->arena, ein_parts, dc->nnode + dc->g->ntensor);
  d->pinned = EINI_NEW(&d->arena, int, dc->g->ntensor);
  d->sent = EINI_NEW(&d->arena, int, dc->nnode);
  d->home = EINI_NEW(&d->arena, ein_parts, dc->nnode);
  if (d->parts == NULL || d->pinned == NULL || d->sent == NULL || d->home == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    const eini_dform *f = eini_form(dc, i);
    int n = f->s->nindex;
    int64_t w = label[i];
    ein_parts *p = &d->parts[i];
    p->nindex = n;
    p->cut = f->ways.cut + w * n;
    p->norder = f->ways.norder[w];
    p->order = f->ways.order + w * n;
    ein_parts home = *p;
    home.cut = f->ways.home + w * n;
    home.norder = f->ways.home_norder[w];
    home.order = f->ways.home_order + w * n;
    EINI_TRY(eini_parts_respell(&d->arena, *p, dc->node[i].at, 1, p));
    d->sent[i] = -1;
    for (int c = 0; c < n && f->ways.sent[w] >= 0; c++)
      if ((dc->node[i].at == NULL ? c : dc->node[i].at[c]) == f->ways.sent[w]) d->sent[i] = c;
    d->nsent += d->sent[i] >= 0;
    if (d->sent[i] >= 0)
      EINI_TRY(eini_parts_respell(&d->arena, home, dc->node[i].at, 1, &d->home[i]));
    p->ntask = eini_tasks(p->cut, n);
    p->join = f->join[w];
    p->agg = f->agg[w];
    p->seconds = f->seconds[w];
    d->sim_work += (double)p->ntask * (1 + f->s->noperand);
  }
  for (int k = 0; k < dc->npinned; k++) d->pinned[k] = dc->node[dc->nnode - dc->npinned + k].s->out;
  d->npinned = dc->npinned;
  for (int64_t i = 0; i < q->n; i++) {
    const eini_dedge *e = &q->e[i];
    const eini_sumtable *t = &net->table[e->table];
    double cost = eini_table_at(t, label[e->x], label[e->y]);
    ein_parts *p = &d->parts[e->y];
    d->sim_work += 2 * (double)p->ntask;
    if (dc->desc->cost == EIN_COST_BYTES) p->join += cost;
    else if (dc->desc->cost == EIN_COST_SECONDS) p->seconds += cost;
    else p->repart += cost;
  }
  return dc->desc->inputs == EIN_INPUTS_DEALT ? eini_deal_all(dc, d) : EIN_OK;
}

#define EINI_CELLS_MAX 16777216.0  // a decomposition's maps have a coefficient for every index

static ein_status eini_decomp_zmap(eini_arena *a, const eini_map *from, ein_zmap *to) {
  to->rows = from->rows;
  to->cols = from->cols;
  to->offset = EINI_NEW(a, int64_t, from->rows);
  to->coef = EINI_NEW(a, int64_t, (int64_t)from->rows * from->cols);
  if (to->offset == NULL || to->coef == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < from->rows; r++) {
    to->offset[r] = from->offset[r];
    for (int e = from->first[r]; e < from->first[r + 1]; e++)
      to->coef[(int64_t)r * from->cols + from->term[e].index] = from->term[e].coef;
  }
  return EIN_OK;
}

// What a statement computes, and where it reads and writes.
static ein_status eini_decomp_maps(eini_arena *a, const ein_graph *g, const eini_stmt *s,
                                   ein_decomp_stmt *d) {
  char *map = NULL;
  ein_zmap *proj = EINI_NEW(a, ein_zmap, s->noperand);
  if (proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) EINI_TRY(eini_decomp_zmap(a, &s->proj[k], &proj[k]));
  EINI_TRY(eini_decomp_zmap(a, &s->out_map, &d->out_map));
  for (size_t size = 0;;) {
    eini_text t = eini_text_of(map, size);
    t.numbered = 1;
    eini_say_node(&t, g, s, (int)s->expr.n - 1, 0, 0);
    if (t.cut) map = NULL;
    if (t.cut || size > 0) break;
    size = t.at + 1;
    map = EINI_NEW(a, char, (int64_t)size);
    if (map == NULL) return EIN_ERR_NO_MEMORY;
  }
  d->proj = proj;
  d->rest = s->rest;
  d->map = map;
  d->dtype = s->type;
  if (s->fold == EIN_FOLD_NONE) return EIN_OK;
  const char *fold = eini_fold_name(g, s->fold);
  d->fold = eini_strndup(a, fold, (int64_t)strlen(fold));
  return d->fold == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// How far statements may be from the truth, in their order.
static ein_status eini_decomp_bounds(const eini_decomposer *dc, ein_decomposition *d) {
  const ein_graph *g = dc->g;
  eini_arena a;
  eini_arena_init(&a, &d->arena.al);
  double *of = EINI_NEW(&a, double, g->ntensor + 1);
  unsigned char *defined = EINI_NEW(&a, unsigned char, g->ntensor + 1);
  const int ok = of != NULL && defined != NULL;
  for (int64_t i = 0; i < g->nstmt && ok; i++) {
    ein_decomp_stmt *x = &d->stmt[i];
    x->accumulates = eini_stmt_accumulates(g, &g->stmt[i]);
    x->error_bound = eini_stmt_bound(g, &g->stmt[i], of, 1, &x->from_inputs);
    eini_bound_set(of, defined, g->stmt[i].out, x->from_inputs ? x->error_bound : -1);
  }
  eini_arena_free(&a);
  return ok ? EIN_OK : EIN_ERR_NO_MEMORY;
}

static ein_status eini_decomp_names(const eini_decomposer *dc, ein_decomposition *d) {
  d->stmt = EINI_NEW(&d->arena, ein_decomp_stmt, dc->nnode);
  if (d->stmt == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = &dc->g->stmt[i];
    const char *out = eini_node_name(dc, i);
    const char **name = EINI_NEW(&d->arena, const char *, s->nindex);
    const char **operand = EINI_NEW(&d->arena, const char *, s->noperand);
    int64_t *extent = EINI_NEW(&d->arena, int64_t, s->nindex);
    d->stmt[i].out = eini_strndup(&d->arena, out, (int64_t)strlen(out));
    if (name == NULL || operand == NULL || extent == NULL || d->stmt[i].out == NULL)
      return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < s->noperand; k++) {
      const char *read = dc->g->tensor[s->operand[k]].name;
      operand[k] = eini_strndup(&d->arena, read, (int64_t)strlen(read));
      if (operand[k] == NULL) return EIN_ERR_NO_MEMORY;
    }
    for (int c = 0; c < s->nindex; c++) {
      name[c] = eini_strndup(&d->arena, s->index[c].name, (int64_t)strlen(s->index[c].name));
      extent[c] = s->index[c].extent;
      if (name[c] == NULL) return EIN_ERR_NO_MEMORY;
    }
    d->stmt[i].line = s->line;
    d->stmt[i].nindex = s->nindex;
    d->stmt[i].nfree = s->nfree;
    d->stmt[i].index = name;
    d->stmt[i].extent = extent;
    d->stmt[i].noperand = s->noperand;
    d->stmt[i].operand = operand;
    EINI_TRY(eini_decomp_maps(&d->arena, dc->g, s, &d->stmt[i]));
  }
  return eini_decomp_bounds(dc, d);
}

static ein_status eini_decompose_method(eini_decomposer *dc, int method) {
  eini_kinds kinds;
  EINI_TRY(eini_kinds_find(dc, &kinds));
  EINI_TRY(eini_prefer(dc, &kinds));
  for (int i = 0; i < dc->nnode - dc->npinned && dc->hint != NULL; i++) {
    ein_parts p;
    EINI_TRY(eini_parts_respell(&dc->arena, dc->hint->parts[i], dc->node[i].at, 0, &p));
    dc->node[i].hint = p.cut;
  }
  if (method >= EINI_METHOD_CLASS) {
    EINI_TRY(eini_class_mark(dc, &kinds, method - EINI_METHOD_CLASS));
    return eini_baseline_need(dc, &kinds, EINI_BASE_MODEL);
  }
  dc->classes = eini_classes_all(dc, &kinds);
  if (method > EINI_METHOD_GIVEN) return EIN_OK;
  return eini_baseline_need(dc, &kinds, method == EINI_METHOD_GIVEN ? EINI_BASE_NONE : method);
}

// The vectors and placements of another decomposition, as the only ways.
static ein_status eini_decompose_fixed(eini_decomposer *dc) {
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    eini_dform *f = &dc->node[i];
    ein_parts *p = EINI_NEW(&dc->arena, ein_parts, 1);
    if (p == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_parts_respell(&dc->arena, dc->hint->parts[i], f->at, 0, p));
    for (int c = 0; c < p->nindex; c++) f->need[c] = p->cut[c];
    f->fixed = p;
  }
  return EIN_OK;
}

// Labels by a method, and the decomposition that they are.
static ein_status eini_decompose_label(eini_decomposer *dc, int method, const eini_edges *edges,
                                       eini_sums *net, ein_decomposition *d) {
  int *label = EINI_NEW(&dc->arena, int, dc->nnode);
  if (label == NULL) return EIN_ERR_NO_MEMORY;
  ein_decomp_info *info = &d->info;
  if (method == EINI_METHOD_LINEAR) {
    EINI_TRY(eini_linear(dc, edges, net, label));
    info->total = eini_sums_value(net, label);
    info->lower = dc->lower;
  } else {
    int beam = dc->desc->beam > 0 ? dc->desc->beam : 256;
    beam = (int)eini_min64(beam, eini_max64(256, EINI_BEAM_CELLS / eini_max64(1, dc->nnode)));
    EINI_TRY(eini_sums_solve(net, beam, label, &info->total, &info->lower));
    if (dc->cut_short) info->lower = dc->lower < info->total ? dc->lower : info->total;
  }
  if (dc->machine.memory > 0) {
    double before = info->total;
    int proved;
    EINI_TRY(eini_lim_search(dc, edges, net, label, &proved));
    info->total = eini_sums_value(net, label);
    if (info->total > before && proved && !dc->cut_short) info->lower = info->total;
  }
  info->nstmt = dc->nnode - dc->npinned;
  info->nform = dc->nform;
  info->nvector = dc->nvector;
  double gap = info->total - info->lower;
  info->proved = gap <= 1e-9 * info->total;
  info->gap = info->proved || info->total <= 0 ? 0 : gap / info->total;
  EINI_TRY(eini_decomp_names(dc, d));
  return eini_decomp_fill(dc, edges, net, label, d);
}

// What a search gives with the same tables.
typedef struct eini_answers {
  ein_decomposition *best;
  ein_decomposition *linear;  // the paper's linearisation; NULL: it is not asked for
  ein_decomposition *plain;   // without scattered results; of no statements where best has none
} eini_answers;

static ein_status eini_decompose_run(eini_decomposer *dc, int method, eini_answers *a) {
  const int few = dc->most < eini_ways_most(dc);
  eini_edges edges;
  eini_formwork work;
  eini_sums net;
  eini_unscattered plain;
  memset(&edges, 0, sizeof edges);
  EINI_TRY(eini_nodes_make(dc));
  EINI_TRY(eini_constrain(dc));
  if (method == EINI_METHOD_FIXED) EINI_TRY(eini_decompose_fixed(dc));
  else EINI_TRY(eini_decompose_method(dc, method));
  EINI_TRY(eini_edges_find(dc, &edges));
  EINI_TRY(eini_dforms_find(dc, &work));
  EINI_TRY(eini_edges_share(dc, &edges));
  for (int i = 0; i < dc->nnode; i++) dc->lower += eini_form(dc, i)->least;
  if (few) EINI_TRY(eini_compulsory_bound(dc, &edges, 1));
  EINI_TRY(eini_dforms_place(dc, &work));
  EINI_TRY(eini_edges_fit(dc, &edges));
  if (!few && dc->cut_short && dc->desc->cost >= EIN_COST_BYTES)
    EINI_TRY(eini_compulsory_bound(dc, &edges, 0));
  a->best->work = dc->work;
  a->best->classes = dc->classes;
  EINI_TRY(eini_sums_make(dc, &edges, &eini_way_labels, &net));
  if (a->linear != NULL)
    EINI_TRY(eini_decompose_label(dc, EINI_METHOD_LINEAR, &edges, &net, a->linear));
  if (dc->scatter) EINI_TRY(eini_unscattered_keep(dc, &edges, &net, &plain));
  if (method == EINI_METHOD_BEST && dc->desc->cost >= EIN_COST_BYTES && dc->machine.memory <= 0)
    EINI_TRY(eini_drop_ways(dc, &edges, &net));  // in memory those dropped may be needed
  else EINI_TRY(eini_sums_expand(&net));
  EINI_TRY(eini_decompose_label(dc, method, &edges, &net, a->best));
  if (a->plain == NULL || a->best->nsent == 0) return EIN_OK;
  EINI_TRY(eini_unscattered_net(dc, &edges, &plain, &net));
  return eini_decompose_label(dc, method, &edges, &net, a->plain);
}

static ein_machine eini_machine_of(const ein_machine *given) {
  ein_machine m;
  memset(&m, 0, sizeof m);
  if (given != NULL) m = *given;
  if (m.flops <= 0) m.flops = EINI_PLACE_FLOPS;
  if (m.memory_bw <= 0) m.memory_bw = EINI_PLACE_MEMORY_BW;
  if (m.latency <= 0) m.latency = EINI_PLACE_LATENCY;
  if (m.bandwidth <= 0) m.bandwidth = EINI_PLACE_BANDWIDTH;
  if (m.overhead <= 0) m.overhead = EINI_PLACE_OVERHEAD;
  if (m.node_latency <= 0) m.node_latency = m.latency;
  if (m.node_bandwidth <= 0) m.node_bandwidth = m.bandwidth;
  return m;
}

EIN_API ein_status ein_machine_threads(const ein_ctx *ctx, const ein_graph *graph,
                                       ein_machine *m) {
  const ein_rates *r = eini_rates_of(ctx);
  int wide = 0;
  if (graph == NULL || m == NULL) return EIN_ERR_ARGUMENT;
  if (r == NULL) return EIN_ERR_UNSUPPORTED;
  for (int64_t i = 0; i < graph->nstmt; i++) {
    ein_dtype type = ein_dtype_compute(graph->stmt[i].type);
    wide |= type == EIN_F64 || type == EIN_C128;
  }
  m->flops = eini_core_flops(r, wide ? EIN_F64 : EIN_F32, HUGE_VAL);
  m->memory_bw = r->copy_bw[EIN_MEMORY];
  m->latency = r->start > 0 ? r->start : EINI_THREAD_LATENCY;
  m->bandwidth = EINI_THREAD_BANDWIDTH;
  m->overhead = EINI_PLACE_OVERHEAD;
  m->node = 0;
  m->node_latency = m->node_bandwidth = 0;
  return EIN_OK;
}

// Beyond these limits sums of seconds would not stay numbers.
static ein_status eini_validate_machine(eini_diag *diag, const ein_machine *m) {
  static const char *const names[] = {"flops", "memory_bw", "latency", "bandwidth", "overhead",
                                      "memory", "node_latency", "node_bandwidth"};
  if (m == NULL) return EIN_OK;
  double value[8];
  value[0] = m->flops, value[1] = m->memory_bw, value[2] = m->latency, value[3] = m->bandwidth;
  value[4] = m->overhead, value[5] = m->memory;
  value[6] = m->node_latency, value[7] = m->node_bandwidth;
  if (m->node < 0 || m->node > EIN_PLACES_MAX)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, "0: there are no nodes",
                     "a node cannot have %lld places", (long long)m->node);
  for (int i = 0; i < 8; i++)
    if (!(value[i] >= 1e-30 && value[i] <= 1e30) && !(value[i] <= 0 && value[i] >= 0))
      return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, "0 is the default; else from 1e-30 to 1e30",
                       "a machine cannot have %s %g", names[i], value[i]);
  return EIN_OK;
}

static ein_status eini_validate_decompose(ein_ctx *ctx, const ein_graph *g,
                                          const ein_decompose_desc *d) {
  eini_diag *diag = eini_diag_of(ctx);
  if (ctx != NULL) eini_diag_reset(diag, NULL, 0);
  if (g == NULL || d == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the %s is NULL",
                     g == NULL ? "graph" : "description");
  if (g->open)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  EINI_TRY(eini_graph_closed(diag, g));
  if (d->p < 1 || d->p > EIN_PLACES_MAX)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "%lld places: from 1 to %d can be had",
                     (long long)d->p, EIN_PLACES_MAX);
  if (ein_cost_name(d->cost) == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "there is no such cost model");
  EINI_TRY(eini_validate_machine(diag, d->machine));
  if ((int)d->inputs < EIN_INPUTS_HELD || d->inputs > EIN_INPUTS_DEALT)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "inputs are held, outside or dealt");
  if (d->inputs == EIN_INPUTS_DEALT && d->cost != EIN_COST_BYTES)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "inputs are dealt out under the model of bytes alone");
  if (eini_method_find(d->method) < 0)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0,
                     "eindecomp, linear, none, sqrt, data, model, sequence, attention, or given",
                     "there is no method '%.80s'", d->method);
  if (d->nparts < 0 || d->npin < 0 || d->nkeep < 0 || (d->nparts > 0 && d->parts == NULL) ||
      (d->npin > 0 && d->pin == NULL) || (d->nkeep > 0 && d->keep == NULL))
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "a list of constraints is missing");
  double cells = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    double rows = s->out_map.rows;
    for (int k = 0; k < s->noperand; k++) rows += s->proj[k].rows;
    cells += rows * s->nindex;
  }
  if (cells > EINI_CELLS_MAX)
    return eini_fail(diag, EIN_ERR_TOO_LARGE, -1, 0, NULL,
                     "the graph has too many indices and operands for a decomposition");
  return EIN_OK;
}

// An empty one, in its own arena.
static ein_decomposition *eini_decomp_new(ein_ctx *ctx, const ein_decompose_desc *desc,
                                          int method) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_decomposition *d = EINI_NEW(&arena, ein_decomposition, 1);
  if (d == NULL) return NULL;
  int searched = method == EINI_METHOD_BEST || method == EINI_METHOD_LINEAR;
  d->arena = arena;
  d->info.p = desc->p;
  d->info.cost = desc->cost;
  d->info.method = eini_method_names[eini_min64(method, EINI_METHOD_CLASS)];
  d->info.family = !searched ? "method" : eini_all_divisors(desc) ? "divisors" : "paper";
  d->info.inputs = desc->inputs;
  return d;
}

// The same with `most` ways of a form; 0: as many as there is room for. *all: no more can be had.
static ein_status eini_decompose_most(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, int method,
                                      const ein_decomposition *hint, int64_t most, int *all,
                                      eini_answers *answers) {
  eini_decomposer dc;
  memset(&dc, 0, sizeof dc);
  eini_arena_init(&dc.arena, ctx == NULL ? NULL : &ctx->al);
  dc.diag = eini_diag_of(ctx);
  dc.g = graph;
  dc.desc = desc;
  dc.hint = hint;
  dc.p = desc->p;
  dc.ndivisor = eini_divisors(dc.p, dc.divisor);
  dc.machine = eini_machine_of(desc->machine);
  dc.ctx = ctx;
  dc.scatter = !desc->no_scatter && desc->cost >= EIN_COST_BYTES && dc.machine.memory <= 0 &&
               !graph->ordered && method == EINI_METHOD_BEST;
  dc.most = eini_ways_most(&dc);
  if (most > 0) dc.most = eini_min64(dc.most, most);
  if (method == EINI_METHOD_FIXED) answers->best->info.method = hint->info.method;
  const ein_status st = eini_decompose_run(&dc, method, answers);
  *all = !dc.cut_short || dc.most == eini_ways_most(&dc);
  eini_graph_free(dc.pairs);
  eini_arena_free(&dc.arena);
  return st;
}

EIN_API void ein_decomposition_destroy(ein_decomposition *d) {
  if (d == NULL) return;
  eini_graph_free(d->graph);
  eini_arena arena = d->arena;  // it lives in its own arena
  eini_arena_free(&arena);
}

// Nothing of the family costs less than `lower`.
static void eini_info_bound(ein_decomp_info *info, double lower) {
  info->lower = lower < info->total ? lower : info->total;
  info->proved = info->total - lower <= 1e-9 * info->total;
  info->gap = info->proved || info->total <= 0 ? 0 : (info->total - lower) / info->total;
}

// The parts of both statements of one whose results are scattered, as eini_scatter_stmt makes them.
static ein_status eini_scattered_parts(eini_arena *a, const eini_stmt *s, const ein_parts *p,
                                       int sent, const ein_parts *home, ein_parts *two) {
  const int n = s->nindex, rank = s->out_map.rows;
  int64_t *cut = EINI_NEW(a, int64_t, n + rank + 2);
  int *order = EINI_NEW(a, int, n + rank + 2);
  if (cut == NULL || order == NULL) return EIN_ERR_NO_MEMORY;
  two[0].cut = cut;
  two[0].order = order;
  two[0].nindex = n + 1;
  cut[0] = p->cut[sent];
  for (int c = 0; c < n; c++) cut[c + 1] = c == sent ? 1 : p->cut[c];
  for (int j = 0; j < p->norder; j++) order[j] = p->order[j] == sent ? 0 : p->order[j] + 1;
  two[0].norder = p->norder;
  two[1].cut = cut += n + 1;
  two[1].order = order += n + 1;
  two[1].nindex = rank + 1;
  cut[rank] = 1;
  for (int r = 0; r < rank; r++) {
    const int i = eini_plain_row(&s->out_map, r);
    cut[r] = i >= 0 ? home->cut[i] : 1;
    for (int j = 0; j < home->norder; j++)
      if (home->order[j] == i) order[j] = r;
  }
  two[1].norder = home->norder;
  two[0].ntask = eini_tasks(two[0].cut, n + 1);
  two[1].ntask = eini_tasks(two[1].cut, rank + 1);
  return EIN_OK;
}

// Writes d's folds whose results are scattered as two statements: *d is then of its own graph.
static ein_status eini_scattered(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **d) {
  ein_decomposition *was = *d;
  if (was == NULL || was->nsent == 0) return EIN_OK;
  const int64_t n = graph->nstmt;
  ein_decompose_desc fixed = *desc;
  int all;
  fixed.nparts = fixed.nkeep = 0;  // which it fulfils
  ein_graph *g = eini_graph_new(ctx);
  ein_decomposition *x = eini_decomp_new(ctx, desc, EINI_METHOD_BEST);
  ein_decomposition *hint = eini_decomp_new(ctx, desc, EINI_METHOD_BEST);
  ein_status st = g == NULL || x == NULL || hint == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) {
    int64_t *pieces = EINI_NEW(&hint->arena, int64_t, n);
    hint->parts = EINI_NEW(&hint->arena, ein_parts, 2 * n);
    x->factored = EINI_NEW(&x->arena, int, n);
    if (pieces == NULL || hint->parts == NULL || x->factored == NULL) st = EIN_ERR_NO_MEMORY;
    ein_parts *to = hint->parts;
    for (int64_t k = 0; k < n && st == EIN_OK; k++) {
      const int sent = x->factored[k] = was->sent[k];
      if (sent >= 0) pieces[k] = was->parts[k].cut[sent];
      if (sent >= 0) st = eini_scattered_parts(&hint->arena, &graph->stmt[k], &was->parts[k], sent,
                                               &was->home[k], to);
      else *to = was->parts[k];
      to += sent >= 0 ? 2 : 1;
    }
    if (st == EIN_OK) st = eini_scatter_graph(g, graph, was->sent, pieces);
    hint->info = was->info;
  }
  eini_answers made = {x, NULL, NULL};
  if (st == EIN_OK)
    st = eini_decompose_most(ctx, g, &fixed, EINI_METHOD_FIXED, hint, 0, &all, &made);
  ein_decomposition_destroy(hint);
  if (st != EIN_OK) {
    eini_graph_free(g);
    ein_decomposition_destroy(x);
    return st;
  }
  x->graph = g;
  x->classes = was->classes;
  x->work += was->work;
  eini_info_bound(&x->info, was->info.lower);
  x->info.family = was->info.family;
  ein_decomposition_destroy(was);
  *d = x;
  return EIN_OK;
}

#define EINI_WAYS_FEW 32     // of a form, to begin with
#define EINI_GAP_FINE 0.002  // of the total: more ways are not worth their time

static void eini_answers_free(eini_answers *a) {
  ein_decomposition_destroy(a->best);
  ein_decomposition_destroy(a->linear);
  ein_decomposition_destroy(a->plain);
  memset(a, 0, sizeof *a);
}

// By one method and model. hint may be NULL but for EINI_METHOD_FIXED. linear, plain: whether they
// are asked for. plain is NULL where the best has no scattered results; all are on failure.
static ein_status eini_decompose_all(ein_ctx *ctx, const ein_graph *graph,
                                     const ein_decompose_desc *desc, int method,
                                     const ein_decomposition *hint, int linear, int plain,
                                     eini_answers *a) {
  const int limited = desc->machine != NULL && desc->machine->memory > 0;
  const int few = method == EINI_METHOD_BEST && desc->cost >= EIN_COST_BYTES && desc->p > 8 &&
                  desc->max_vectors <= 0 && !limited;
  for (int64_t most = few ? EINI_WAYS_FEW : 0;; most = desc->p > 64 ? 4 * most : 0) {
    int all = 1;
    a->best = eini_decomp_new(ctx, desc, method);
    a->linear = linear ? eini_decomp_new(ctx, desc, EINI_METHOD_LINEAR) : NULL;
    a->plain = plain ? eini_decomp_new(ctx, desc, method) : NULL;
    ein_status st = a->best == NULL || (linear && a->linear == NULL) || (plain && a->plain == NULL)
                    ? EIN_ERR_NO_MEMORY
                    : eini_decompose_most(ctx, graph, desc, method, hint, most, &all, a);
    const int done = all || a->best->info.proved ||
                     (desc->p > 64 && a->best->info.gap <= EINI_GAP_FINE);
    if (st == EIN_OK && done && plain && a->best->nsent == 0) {
      ein_decomposition_destroy(a->plain);
      a->plain = NULL;
    }
    if (st == EIN_OK && done) st = eini_scattered(ctx, graph, desc, &a->best);
    if (st == EIN_OK && done) st = eini_scattered(ctx, graph, desc, &a->linear);
    if (st == EIN_OK && done) return EIN_OK;
    eini_answers_free(a);
    if (st != EIN_OK) return st;
  }
}

// The best alone. *out is NULL on failure.
static ein_status eini_decompose_with(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, int method,
                                      const ein_decomposition *hint, ein_decomposition **out) {
  eini_answers a = {NULL, NULL, NULL};
  const ein_status st = eini_decompose_all(ctx, graph, desc, method, hint, 0, 0, &a);
  *out = a.best;
  return st;
}

// The search by another model, over the paper's family and without a limit to memory.
static ein_status eini_decompose_hint(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, ein_cost cost,
                                      ein_decomposition **out) {
  ein_decompose_desc d = *desc;
  d.cost = cost;
  d.max_vectors = 0;
  d.strict = 1;
  d.fewer = 0;
  d.machine = NULL;
  return eini_decompose_with(ctx, graph, &d, EINI_METHOD_BEST, NULL, out);
}

// The same; where bytes and seconds cannot look at all vectors, the paper's are looked at.
static ein_status eini_decompose_once(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, ein_decomposition **out) {
  int method = eini_method_find(desc->method);
  ein_decomposition *hint = NULL;
  *out = NULL;
  if (desc->cost >= EIN_COST_BYTES && (method == EINI_METHOD_BEST || method == EINI_METHOD_LINEAR))
    EINI_TRY(eini_decompose_hint(ctx, graph, desc, EIN_COST_PAPER, &hint));
  eini_answers a = {NULL, NULL, NULL};
  const ein_status st = eini_decompose_all(ctx, graph, desc, method, hint, 0, 1, &a);
  if (a.plain != NULL && a.plain->info.total <= a.best->info.total) {
    *out = a.plain;
    a.plain = NULL;
    eini_info_bound(&(*out)->info, a.best->info.lower);
  } else {
    *out = a.best;
    a.best = NULL;
  }
  eini_answers_free(&a);
  ein_decomposition_destroy(hint);
  return st;
}

EIN_API const ein_graph *ein_decomposition_graph(const ein_decomposition *d) {
  return d == NULL ? NULL : d->graph;
}

EIN_API void ein_decomposition_info(const ein_decomposition *d, ein_decomp_info *info) {
  if (info == NULL) return;
  memset(info, 0, sizeof *info);
  if (d != NULL) *info = d->info;
}

EIN_API ein_status ein_decomposition_parts(const ein_decomposition *d, int stmt,
                                           ein_parts *parts) {
  if (d == NULL || parts == NULL || stmt < 0 || stmt >= d->info.nstmt) return EIN_ERR_ARGUMENT;
  *parts = d->parts[stmt];
  return EIN_OK;
}

EIN_API ein_status ein_decomposition_stmt(const ein_decomposition *d, int stmt,
                                          ein_decomp_stmt *s) {
  if (d == NULL || s == NULL || stmt < 0 || stmt >= d->info.nstmt) return EIN_ERR_ARGUMENT;
  *s = d->stmt[stmt];
  return EIN_OK;
}

EIN_API ein_status ein_decomposition_pin(const ein_decomposition *d, int tensor,
                                         ein_parts *parts) {
  if (d == NULL || parts == NULL) return EIN_ERR_ARGUMENT;
  for (int k = 0; k < d->npinned; k++) {
    if (d->pinned[k] != tensor) continue;
    *parts = d->parts[d->info.nstmt + k];
    return EIN_OK;
  }
  return EIN_ERR_ARGUMENT;
}
