// ================================================================================================
// >>scatter  folds that places share, with results scattered over them
// Takes a graph and what is asked of its decomposition; gives a graph in which such a fold is two
// statements: partial results that stay where they are made, and a fold of their blocks.
// ================================================================================================

// T[i] = sum[k](..) over k in g pieces becomes P[q,i] = sum[k](.. q*K/g + k ..) and
// T[i] = sum[q](P[q,i]): cut over q and over i, each place sends the others their blocks of its
// partial result: a reduce-scatter, by what statements already are. Every model, the simulation
// and all fabrics see it as any other movement.

// Which statements are split: those of one kind, at an index in the words of the first.
typedef struct eini_scattering {
  int64_t first;
  int index;
  int64_t pieces;
} eini_scattering;

// Could the fold over index c of a statement be split into so many pieces?
static int eini_scatter_may(const ein_graph *g, const eini_stmt *s, int c, int64_t pieces) {
  const eini_tensor *t = &g->tensor[s->out];
  if (s->fold == EIN_FOLD_NONE || eini_fold_carries(s->fold) || s->carry != NULL) return 0;
  if (c < s->nfree || s->rest != EIN_REST_ERROR || t->nstmt != 1 || s->type == EIN_BOOL) return 0;
  if (s->index[c].extent < 2 * pieces || s->index[c].extent % pieces != 0) return 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_block_origin(s, i)) return 0;  // what is computed depends on where
  for (int r = 0; r < t->rank; r++)
    if (eini_plain_row(&s->out_map, r) < 0 &&
        (eini_map_terms(&s->out_map, r) > 0 || s->out_map.offset[r] != 0)) return 0;
  return 1;
}

// A name that nothing of the graph has: base and a tail.
static ein_status eini_scatter_name(ein_graph *g, const char *base, char *name, size_t size) {
  for (int n = 1; n < 10000; n++) {
    int taken = 0;
    snprintf(name, size, "%.80s_p%d", base, n);
    for (int64_t t = 0; t < g->ntensor; t++) taken |= strcmp(g->tensor[t].name, name) == 0;
    for (int64_t k = 0; k < g->nparam; k++) taken |= strcmp(g->param[k].name, name) == 0;
    if (!taken) return EIN_OK;
  }
  return EIN_ERR_TOO_LARGE;
}

// The statement of the partial results.
static ein_status eini_scatter_parts(ein_graph *g, const eini_stmt *s, int c, int64_t pieces,
                                     int part) {
  const int rank = g->tensor[s->out].rank;
  const int64_t step = s->index[c].extent / pieces;
  eini_arena *a = &g->arena;
  eini_stmt *x;
  char name[96];
  EINI_TRY(eini_graph_add_like(g, s, 1, s->out, s->operand, &x));
  g->tensor[s->out].nstmt--;
  g->tensor[part].nstmt++;
  x->out = part;
  x->hint = NULL;
  EINI_TRY(eini_map_new(a, rank + 1, x->nindex, &x->out_map));
  EINI_TRY(eini_map_set(a, &x->out_map, 0, 0, 1));
  for (int r = 0; r < rank; r++) {
    const int i = eini_plain_row(&s->out_map, r);
    if (i >= 0) EINI_TRY(eini_map_set(a, &x->out_map, r + 1, i + 1, 1));
  }
  for (int n = 1;; n++) {
    int taken = 0;
    snprintf(name, sizeof name, "%.60s_%d", s->index[c].name, n);
    for (int i = 0; i < s->nindex; i++) taken |= strcmp(s->index[i].name, name) == 0;
    if (!taken) break;
  }
  x->index[0].name = eini_strndup(a, name, (int64_t)strlen(name));
  x->index[0].extent = pieces;
  x->index[c + 1].extent = step;
  if (x->index[0].name == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    for (int r = 0; r < s->proj[k].rows; r++) {
      const int64_t coef = eini_map_coef(&s->proj[k], r, c);
      if (coef != 0) EINI_TRY(eini_map_set(a, &x->proj[k], r, 0, coef * step));
    }
  }
  return eini_stmt_finish(g, x, NULL);
}

// The statement that folds them.
static ein_status eini_scatter_fold(ein_graph *g, const eini_stmt *s, int part) {
  const int rank = g->tensor[s->out].rank;
  const char *name = g->stmt[g->nstmt - 1].index[0].name;
  const int64_t pieces = g->stmt[g->nstmt - 1].index[0].extent;
  eini_arena *a = &g->arena;
  eini_stmt *x;
  EINI_TRY(eini_graph_add_stmt(g, s->out, rank + 1, 1, &part, &x));
  x->nfree = rank;
  for (int r = 0; r < rank; r++) {
    const int i = eini_plain_row(&s->out_map, r);
    x->index[r].name = i >= 0 ? eini_strndup(a, s->index[i].name,
                                             (int64_t)strlen(s->index[i].name)) : "";
    x->index[r].extent = g->tensor[s->out].shape[r];
    if (x->index[r].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  x->index[rank].name = name;
  x->index[rank].extent = pieces;
  x->fold = s->fold;
  x->numpy = s->numpy;
  x->line = s->line;
  x->pos = s->pos;
  EINI_TRY(eini_map_set(a, &x->proj[0], 0, rank, 1));
  EINI_TRY(eini_map_units(a, &x->proj[0], 1, 0, rank));
  EINI_TRY(eini_map_units(a, &x->out_map, 0, 0, rank));
  if (eini_expr_add(a, &x->expr, EIN_OP_OPERAND, -1, 0, 0, 0) < 0) return EIN_ERR_NO_MEMORY;
  return eini_stmt_finish(g, x, NULL);
}

static ein_status eini_scatter_stmt(ein_graph *g, const ein_graph *from, const eini_stmt *s, int c,
                                    int64_t pieces) {
  const eini_tensor *t = &from->tensor[s->out];
  const int rank = t->rank;
  char name[128];
  int part;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank + 1);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  shape[0] = pieces;
  for (int r = 0; r < rank; r++) shape[r + 1] = t->shape[r];
  EINI_TRY(eini_scatter_name(g, t->name, name, sizeof name));
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP,
                                 ein_dtype_compute(s->type), rank + 1, shape, &part));
  g->tensor[part].line = t->line;
  EINI_TRY(eini_scatter_parts(g, s, c, pieces, part));
  return eini_scatter_fold(g, s, part);
}

// The graph with these statements split.
static ein_status eini_scatter_graph(ein_graph *g, const ein_graph *from,
                                     const eini_respelled *f, const eini_scattering *x) {
  EINI_TRY(eini_graph_copy_head(g, from));
  for (int64_t k = 0; k < from->nstmt; k++) {
    const eini_stmt *s = &from->stmt[k];
    int c = f->first[k] == x->first ? s->nindex - 1 : -1;
    while (c >= 0 && (f->at[k] == NULL ? c : f->at[k][c]) != x->index) c--;
    EINI_TRY(eini_stmt_copy(g, s, s->out, s->operand));
    if (c < 0 || !eini_scatter_may(from, s, c, x->pieces)) continue;
    const eini_stmt copy = g->stmt[--g->nstmt];  // it is this graph's own
    g->tensor[s->out].nstmt--;
    EINI_TRY(eini_scatter_stmt(g, from, &copy, c, x->pieces));
  }
  return EIN_OK;
}

// ---- the search ----

// The search by the model, with few ways of each form: those of the least that must move.
static ein_status eini_scatter_model(ein_ctx *ctx, const ein_graph *g,
                                     const ein_decompose_desc *desc, ein_decomposition **how) {
  const int limited = desc->machine != NULL && desc->machine->memory > 0;
  int all;
  if (limited || desc->max_vectors > 0 || eini_method_find(desc->method) != EINI_METHOD_BEST)
    return eini_decompose_once(ctx, g, desc, how);
  ein_decomposition *d = eini_decomp_new(ctx, desc, EINI_METHOD_BEST);
  if (d == NULL) return EIN_ERR_NO_MEMORY;
  const ein_status st = eini_decompose_most(ctx, g, desc, EINI_METHOD_BEST, NULL, EINI_WAYS_FEW,
                                            &all, d, NULL);
  if (st == EIN_OK) *how = d;
  else ein_decomposition_destroy(d);
  return st;
}

// What a graph's decomposition costs; infinite where there is none. model: as the model adds up,
// without what ein_decompose simulates besides.
static ein_status eini_scatter_cost(ein_ctx *ctx, const ein_graph *g, const ein_decompose_desc *d,
                                    int model, double *cost) {
  ein_decomposition *how = NULL;
  const ein_status st = model ? eini_scatter_model(ctx, g, d, &how)
                              : ein_decompose(ctx, g, d, &how);
  *cost = INFINITY;
  if (st == EIN_ERR_NO_MEMORY) return st;
  if (st == EIN_OK) {
    *cost = model || how->info.seconds == 0 ? how->info.total : how->info.seconds;
    ein_decomposition_destroy(how);
  } else if (ctx != NULL) {
    eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  }
  return EIN_OK;
}

typedef struct eini_scatter_search {
  ein_ctx *ctx;
  const ein_decompose_desc *desc;
  ein_graph *best;          // of all that was tried, if it is better than what is given
  double cost;              // of that
} eini_scatter_search;

static ein_status eini_scatter_try(eini_scatter_search *w, const ein_graph *from,
                                   const eini_respelled *f, const eini_scattering *x,
                                   int *better) {
  double cost = INFINITY;
  ein_graph *g = eini_graph_new(w->ctx);
  ein_status st = g == NULL ? EIN_ERR_NO_MEMORY : eini_scatter_graph(g, from, f, x);
  if (st == EIN_OK) st = eini_scatter_cost(w->ctx, g, w->desc, 1, &cost);
  if (st == EIN_OK && cost < w->cost * (1 - 1e-6)) {
    ein_graph *swap = w->best;
    w->best = g;
    g = swap;
    w->cost = cost;
    *better = 1;
  }
  eini_graph_free(g);
  return st;
}

// Tries every kind with p pieces of each of its indices, then the best one with fewer. better: 1
// if w->best is a new one.
static ein_status eini_scatter_round(eini_scatter_search *w, eini_arena *a, const ein_graph *from,
                                     int *better) {
  eini_scattering best = {-1, 0, 0};
  eini_respelled f;
  EINI_TRY(eini_respelled_find(a, from, &f));
  for (int64_t k = 0; k < from->nstmt; k++) {
    const eini_stmt *s = &from->stmt[k];
    for (int c = s->nfree; c < s->nindex && f.first[k] == k; c++) {
      eini_scattering x = {k, c, w->desc->p};
      int found = 0;
      while (x.pieces > 1 && !eini_scatter_may(from, s, c, x.pieces))  // what divides both
        do x.pieces--;
        while (w->desc->p % x.pieces != 0);
      if (x.pieces > 1) EINI_TRY(eini_scatter_try(w, from, &f, &x, &found));
      if (found) best = x;
    }
  }
  *better = best.first >= 0;
  for (int64_t n = best.pieces - 1; n > 1; n--) {
    eini_scattering x = {best.first, best.index, n};
    if (w->desc->p % n == 0 && eini_scatter_may(from, &from->stmt[x.first], x.index, n))
      EINI_TRY(eini_scatter_try(w, from, &f, &x, better));
  }
  return EIN_OK;
}

EIN_API ein_status ein_graph_scatter(ein_ctx *ctx, const ein_graph *graph,
                                     const ein_decompose_desc *desc, ein_graph **scattered) {
  eini_scatter_search w;
  ein_graph *from = NULL;
  int better = 1;
  if (scattered == NULL) return EIN_ERR_ARGUMENT;
  *scattered = NULL;
  EINI_TRY(eini_validate_decompose(ctx, graph, desc));
  if (desc->cost <= EIN_COST_PAPER_CODE || graph->ordered || desc->p == 1) return EIN_OK;
  memset(&w, 0, sizeof w);
  w.ctx = ctx;
  w.desc = desc;
  ein_status st = eini_scatter_cost(ctx, graph, desc, 1, &w.cost);
  for (int round = 0; round < 8 && better && st == EIN_OK; round++) {
    eini_arena a;
    eini_arena_init(&a, ctx == NULL ? NULL : &ctx->al);
    from = w.best;
    w.best = NULL;
    st = eini_scatter_round(&w, &a, from == NULL ? graph : from, &better);
    eini_arena_free(&a);
    if (!better || st != EIN_OK) {
      eini_graph_free(w.best);
      w.best = from;
    } else {
      eini_graph_free(from);
    }
  }
  double before = 0, after = 0;
  if (st == EIN_OK && w.best != NULL) st = eini_scatter_cost(ctx, graph, desc, 0, &before);
  if (st == EIN_OK && w.best != NULL) st = eini_scatter_cost(ctx, w.best, desc, 0, &after);
  if (st == EIN_OK && after < before) *scattered = w.best;
  else eini_graph_free(w.best);
  return st;
}
