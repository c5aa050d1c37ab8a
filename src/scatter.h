// ================================================================================================
// >>scatter  folds that places share, with results scattered over them
// Takes statements whose folds are cut; gives what it costs to leave partial results where they are
// made and to fold their blocks at all places that hold them, and the graph with both statements.
// ================================================================================================

// T[i] = sum[k](..) over k in g pieces becomes P[q,i] = sum[k](.. q*K/g + k ..) and
// T[i] = sum[q](P[q,i]): cut over q and over i, each place sends the others their blocks of its
// partial result: a reduce-scatter, by what statements already are. Every model, the simulation
// and all fabrics see it as any other movement.

#define EINI_SCATTER_MAX 64  // indices of a statement whose results are scattered

// Could the fold over index c of a statement be split into so many pieces?
static int eini_scatter_may(const ein_graph *g, const eini_stmt *s, int c, int64_t pieces) {
  const eini_tensor *t = &g->tensor[s->out];
  if (s->fold == EIN_FOLD_NONE || eini_fold_carries(s->fold) || s->carry != NULL) return 0;
  if (s->nindex > EINI_SCATTER_MAX) return 0;
  if (c < s->nfree || s->rest != EIN_REST_ERROR || t->nstmt != 1 || s->type == EIN_BOOL) return 0;
  if (s->index[c].extent < 2 * pieces || s->index[c].extent % pieces != 0) return 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_block_origin(s, i)) return 0;  // what is computed depends on where
  for (int r = 0; r < t->rank; r++)
    if (eini_plain_row(&s->out_map, r) < 0 &&
        (eini_map_terms(&s->out_map, r) > 0 || s->out_map.offset[r] != 0)) return 0;
  return 1;
}

// A name that nothing of the graph has: base and a tail. It may stand in texts, so without dots.
static ein_status eini_scatter_name(ein_graph *g, const char *base, char *name, size_t size) {
  for (int n = 1; n < 10000; n++) {
    int taken = 0;
    snprintf(name, size, "%.80s_p%d", base, n);
    for (char *c = name; *c != 0; c++) *c = *c == '.' ? '_' : *c;
    for (int64_t t = 0; t < g->ntensor; t++) taken |= strcmp(g->tensor[t].name, name) == 0;
    for (int64_t k = 0; k < g->nparam; k++) taken |= strcmp(g->param[k].name, name) == 0;
    if (!taken) return EIN_OK;
  }
  return EIN_ERR_TOO_LARGE;
}

// The statement of the partial results. index: the name of the new one, or NULL.
static ein_status eini_scatter_parts(ein_graph *g, const eini_stmt *s, int c, int64_t pieces,
                                     int part, const char *index) {
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
  for (int n = 1; index == NULL; n++) {
    int taken = 0;
    snprintf(name, sizeof name, "%.60s_%d", s->index[c].name, n);
    for (char *z = name; *z != 0; z++) *z = *z == '.' ? '_' : *z;
    for (int i = 0; i < s->nindex; i++) taken |= strcmp(s->index[i].name, name) == 0;
    if (!taken) break;
  }
  if (index == NULL) index = name;
  x->index[0].name = eini_strndup(a, index, (int64_t)strlen(index));
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

// Appends both, of a statement that g has no longer. name, index: of the partial results and of
// their first axis, or NULL.
static ein_status eini_scatter_stmt(ein_graph *g, const eini_stmt *s, int c, int64_t pieces,
                                    const char *name, const char *index) {
  const int rank = g->tensor[s->out].rank;
  char made[128];
  int part;
  if (name == NULL) EINI_TRY(eini_scatter_name(g, g->tensor[s->out].name, made, sizeof made));
  if (name == NULL) name = made;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank + 1);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  shape[0] = pieces;
  for (int r = 0; r < rank; r++) shape[r + 1] = g->tensor[s->out].shape[r];
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP,
                                 ein_dtype_compute(s->type), rank + 1, shape, &part));
  g->tensor[part].line = g->tensor[s->out].line;
  EINI_TRY(eini_scatter_parts(g, s, c, pieces, part, index));
  return eini_scatter_fold(g, s, part);
}

// The graph with folds split: of statement k that over index[k], in pieces[k]; -1: it stays.
static ein_status eini_scatter_graph(ein_graph *g, const ein_graph *from, const int *index,
                                     const int64_t *pieces) {
  EINI_TRY(eini_graph_copy_head(g, from));
  for (int64_t k = 0; k < from->nstmt; k++) {
    const eini_stmt *s = &from->stmt[k];
    EINI_TRY(eini_stmt_copy(g, s, s->out, s->operand));
    if (index[k] < 0) continue;
    const eini_stmt copy = g->stmt[--g->nstmt];  // it is this graph's own
    g->tensor[s->out].nstmt--;
    EINI_TRY(eini_scatter_stmt(g, &copy, index[k], pieces[k], NULL, NULL));
  }
  return EIN_OK;
}

// ---- ways whose results are scattered -----------------------------------------------------------

// The reduced index whose partial results can be scattered: the only one that is cut; or -1.
static int eini_scatter_index(const eini_decomposer *dc, const eini_dform *f, const int64_t *cut) {
  int found = -1;
  for (int c = f->s->nfree; c < f->s->nindex && dc->scatter; c++) {
    if (cut[c] == 1) continue;
    if (found >= 0 || f->need[c] != 0) return -1;
    found = c;
  }
  return found >= 0 && eini_scatter_may(dc->g, f->s, found, cut[found]) ? found : -1;
}

// Can blocks of a vector be cut along index `over` for the places that share a fold over index c?
static int eini_scatter_over(const eini_dform *f, const int64_t *cut, int c, int over) {
  const int64_t pieces = cut[over] * cut[c];
  return pieces <= f->limit[over] && (f->need[over] == 0 || f->need[over] == pieces);
}

// Of a pinned result: the index that has fewer pieces than its pin asks for, which scattering them
// makes up for; -1: none.
static int eini_scatter_lacks(const eini_dform *f, const int64_t *cut) {
  int c = f->pinned ? f->s->nfree - 1 : -1;
  while (c >= 0 && cut[c] == f->need[c]) c--;
  return c;
}

// Where results of a way lie: with its tasks, or (c >= 0) the digit of index c is one of `over`.
// 0: no index can have it, for its own is elsewhere.
static int eini_scatter_home(const eini_dform *f, eini_ways *w, int64_t way, int c, int over) {
  const int n = f->s->nindex, norder = w->norder[way];
  const int64_t *cut = w->cut + way * n;
  const int *order = w->order + way * n;
  int64_t *home = w->home + way * n;
  int *digit = w->home_order + way * n, m = 0;
  w->sent[way] = c;
  for (int i = 0; i < n; i++) home[i] = cut[i];
  for (int j = 0; j < norder; j++) {
    if (order[j] != c) digit[m++] = order[j];
    else if (cut[over] == 1) digit[m++] = over;
    else if (m == 0 || digit[m - 1] != over) return 0;
  }
  w->home_norder[way] = m;
  if (c < 0) return 1;
  home[over] *= cut[c];
  home[c] = 1;
  return 1;
}

// The two statements of a form whose fold over index c has so many pieces: numbers in dc->pairs.
static ein_status eini_scatter_pair(eini_decomposer *dc, const eini_dform *f, int c,
                                    int64_t pieces, int64_t *first) {
  const int64_t key[3] = {f - dc->node, c, pieces};
  if (dc->pairs == NULL) {
    dc->pairs = eini_graph_new(dc->ctx);
    if (dc->pairs == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_graph_copy_head(dc->pairs, dc->g));
  }
  const int64_t known = dc->paired.n;
  const int64_t id = eini_key_number(&dc->pairs->arena, &dc->paired, key, 3);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  *first = 2 * id;
  if (id < known) return EIN_OK;
  EINI_TRY(eini_stmt_copy(dc->pairs, f->s, f->s->out, f->s->operand));
  const eini_stmt copy = dc->pairs->stmt[--dc->pairs->nstmt];
  dc->pairs->tensor[f->s->out].nstmt--;
  return eini_scatter_stmt(dc->pairs, &copy, c, pieces, NULL, NULL);
}

// What a vector costs whose results over index c are scattered to blocks of `home` pieces: bytes,
// and seconds of both statements with what goes between them.
static ein_status eini_scatter_cost(eini_decomposer *dc, const eini_dform *f, const int64_t *cut,
                                    int c, const int64_t *home, double *bytes, double *seconds) {
  const eini_stmt *s = f->s;
  const ein_machine *m = &dc->machine;
  const double others = (double)(cut[c] - 1);
  double size = (double)ein_dtype_size(ein_dtype_compute(s->type));
  int64_t at;
  *bytes = others * eini_points(s, NULL, 0, s->nfree) * size;
  *seconds = 0;
  if (dc->desc->cost == EIN_COST_BYTES) return EIN_OK;
  EINI_TRY(eini_scatter_pair(dc, f, c, cut[c], &at));
  const eini_arena_at mark = eini_arena_mark(&dc->arena);
  const eini_stmt *part = &dc->pairs->stmt[at], *fold = &dc->pairs->stmt[at + 1];
  int64_t *own = EINI_NEW(&dc->arena, int64_t, part->nindex + fold->nindex);
  if (own == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *its = own + part->nindex;
  own[0] = cut[c];
  for (int i = 0; i < s->nindex; i++) own[i + 1] = i == c ? 1 : cut[i];
  its[fold->nfree] = 1;
  for (int r = 0; r < fold->nfree; r++) {
    const int i = eini_plain_row(&s->out_map, r);
    its[r] = i >= 0 ? home[i] : 1;
  }
  const eini_stmt_block mine = eini_block_of(NULL, NULL, own), theirs = eini_block_of(NULL, NULL,
                                                                                      its);
  *seconds = eini_machine_cost(m, dc->pairs, part, f->again, &mine).seconds +
             eini_machine_cost(m, dc->pairs, fold, NULL, &theirs).seconds +
             eini_link_seconds(m, others * eini_points(fold, &theirs, 0, fold->nfree) * size);
  eini_arena_rollback(&dc->arena, &mark);
  return EIN_OK;
}
