// ================================================================================================
// >>block-grids  what a statement cut into blocks moves, and the best cut
// The block distribution of Ziogas et al. 2022, section V: a place works on one block of the
// indices and needs what the block touches; at first, and of the result at last, it has its share
// of every tensor, each element once. Halos count as what they are.
// ================================================================================================

#define EINI_GRIDS_MOST 4000000  // cuts that are tried

typedef struct eini_grid_search {
  const ein_graph *g;
  const eini_stmt *s;
  int64_t places;
  double memory;            // of a place; 0: as much as it needs
  double *share;            // of a place
  int64_t *lo, *hi, *from, *to, *limit, *cut, *best, *divisor;
  int ndivisor;
  int64_t looked;
  ein_grid_cost least;
  int any, found;           // a cut of so many pieces; one that fits
} eini_grid_search;

static double eini_grid_touched(eini_grid_search *w, int k) {
  const eini_stmt_block b = eini_block_of(w->lo, w->hi, NULL);
  const int t = k < 0 ? w->s->out : w->s->operand[k];
  eini_block_hull(w->s, &b, k, w->from, w->to);
  return eini_box_volume(w->g->tensor[t].rank, w->from, w->to);
}

// The first block is the largest.
static ein_grid_cost eini_grid_cost(eini_grid_search *w, const int64_t *cut) {
  const eini_stmt *s = w->s;
  ein_grid_cost c = {0, 0, 0};
  for (int i = 0; i < s->nindex; i++) w->hi[i] = eini_ceil_div(s->index[i].extent, cut[i]);
  for (int k = -1; k < s->noperand; k++) {
    double block = 0;
    if (w->share[k + 1] < 0) continue;
    for (int o = k; o < s->noperand; o++)  // of one tensor, whose share is had once
      if (o == k || (k >= 0 && s->operand[o] == s->operand[k] && eini_operand_first(s, o) == o))
        block += eini_grid_touched(w, o);
    c.words += fmax(0, block - w->share[k + 1]);
    c.holds += block;
  }
  return c;
}

// Of the result, and of the tensors of operands where they stand first, else -1.
static void eini_grid_shares(eini_grid_search *w) {
  const eini_stmt *s = w->s;
  for (int i = 0; i < s->nindex; i++) w->lo[i] = 0, w->hi[i] = s->index[i].extent;
  for (int k = -1; k < s->noperand; k++) {
    int first = k;
    for (int o = 0; o < k && first == k; o++)
      if (s->operand[o] == s->operand[k]) first = o;
    const double share = eini_grid_touched(w, k) / (double)w->places;
    w->share[k + 1] = first == k ? share : -1;
    if (first < k) w->share[first + 1] = fmax(w->share[first + 1], share);
  }
}

// Words at least, whatever the cut: the place with the most work has a share of the points, for
// which it touches so much, and had its share of that. Near what is touched the bound is exact.
static ein_status eini_grid_least(const eini_grid_search *w, double holds, double *least) {
  const eini_stmt *s = w->s;
  eini_arena a;
  double had = 0, touched = 0;
  ein_status st = EIN_OK;
  eini_arena_init(&a, &w->g->arena.al);
  for (int part = 1; part <= 16 && st == EIN_OK; part *= 2) {
    eini_limit limit;
    eini_touch touch;
    st = eini_touch_statement(&a, s, &touch);
    if (st == EIN_OK)
      st = eini_limit_find(&a, &touch, fmax(1, holds / part), (double)w->places, &limit);
    if (st == EIN_OK) touched = fmax(touched, limit.touched);
  }
  for (int k = s->nfree < s->nindex ? -1 : 0; k < s->noperand; k++)
    had += fmax(0, w->share[k + 1]);
  *least = fmax(0, touched - had);
  eini_arena_free(&a);
  return st;
}

static ein_status eini_grid_begin(eini_arena *a, const ein_graph *g, int stmt, int places,
                                  eini_grid_search *w) {
  memset(w, 0, sizeof *w);
  if (g == NULL || stmt < 0 || stmt >= g->nstmt || places < 1 || places > EIN_PLACES_MAX)
    return EIN_ERR_ARGUMENT;
  w->g = g;
  w->s = &g->stmt[stmt];
  w->places = places;
  const int n = w->s->nindex;
  int rank = g->tensor[w->s->out].rank;
  for (int k = 0; k < w->s->noperand; k++)
    if (g->tensor[w->s->operand[k]].rank > rank) rank = g->tensor[w->s->operand[k]].rank;
  int64_t *room = EINI_NEW(a, int64_t, 5 * (int64_t)n + 2 * (int64_t)rank + 2);
  w->divisor = EINI_NEW(a, int64_t, places);
  w->share = EINI_NEW(a, double, w->s->noperand + 1);
  if (room == NULL || w->divisor == NULL || w->share == NULL) return EIN_ERR_NO_MEMORY;
  w->lo = room, w->hi = w->lo + n, w->limit = w->hi + n, w->cut = w->limit + n;
  w->best = w->cut + n, w->from = w->best + n, w->to = w->from + rank;
  eini_cut_limits(g, w->s, w->limit);
  eini_grid_shares(w);
  return EIN_OK;
}

// All cuts of indices from i on into `left` pieces.
static ein_status eini_grid_try(eini_grid_search *w, int i, int64_t left) {
  if (i < w->s->nindex) {
    for (int d = 0; d < w->ndivisor && w->divisor[d] <= left; d++) {
      if (left % w->divisor[d] != 0 || w->divisor[d] > w->limit[i]) continue;
      w->cut[i] = w->divisor[d];
      EINI_TRY(eini_grid_try(w, i + 1, left / w->divisor[d]));
    }
    return EIN_OK;
  }
  if (++w->looked > EINI_GRIDS_MOST) return EIN_ERR_TOO_LARGE;
  if (left > 1) return EIN_OK;
  w->any = 1;
  const ein_grid_cost c = eini_grid_cost(w, w->cut);
  if (w->memory > 0 && c.holds > w->memory) return EIN_OK;
  if (w->found && c.words >= w->least.words) return EIN_OK;
  w->found = 1;
  w->least = c;
  if (w->s->nindex > 0) memcpy(w->best, w->cut, (size_t)w->s->nindex * sizeof *w->best);
  return EIN_OK;
}

EIN_API ein_status ein_grid_words(const ein_graph *graph, int stmt, int places, const int64_t *cut,
                                  ein_grid_cost *cost) {
  eini_arena a;
  eini_grid_search w;
  eini_arena_init(&a, graph == NULL ? NULL : &graph->arena.al);
  ein_status st = cost == NULL ? EIN_ERR_ARGUMENT : eini_grid_begin(&a, graph, stmt, places, &w);
  for (int i = 0; st == EIN_OK && i < w.s->nindex; i++)
    if (cut == NULL || cut[i] < 1 || cut[i] > places) st = EIN_ERR_ARGUMENT;
  if (st == EIN_OK) *cost = eini_grid_cost(&w, cut);
  eini_arena_free(&a);
  return st;
}

EIN_API ein_status ein_grid_best(const ein_graph *graph, int stmt, int places, double memory,
                                 int64_t *cut, ein_grid_cost *cost) {
  eini_arena a;
  eini_grid_search w;
  eini_arena_init(&a, graph == NULL ? NULL : &graph->arena.al);
  ein_status st = cut == NULL || cost == NULL || !(memory >= 0)
                      ? EIN_ERR_ARGUMENT : eini_grid_begin(&a, graph, stmt, places, &w);
  int64_t most = 1;
  for (int i = 0; st == EIN_OK && i < w.s->nindex; i++)
    most = eini_min64(places, most * eini_min64(places, w.limit[i]));
  w.memory = memory;
  for (int64_t tasks = most; st == EIN_OK && tasks > 0 && !w.any; tasks--) {
    w.ndivisor = eini_divisors(tasks, w.divisor);
    st = eini_grid_try(&w, 0, tasks);
  }
  if (st == EIN_OK && !w.found) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK && w.s->nindex > 0) memcpy(cut, w.best, (size_t)w.s->nindex * sizeof *cut);
  if (st == EIN_OK) st = eini_grid_least(&w, w.least.holds, &w.least.least);
  if (st == EIN_OK) *cost = w.least;
  eini_arena_free(&a);
  return st;
}
