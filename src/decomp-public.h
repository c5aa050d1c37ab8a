// ================================================================================================
// >>decomp-public  choices made by simulation
// Under `seconds` the search adds up what overlaps in truth, so its answer is simulated, and so are
// none and sqrt, what cuts one class of indices everywhere, baselines whose indices are named, the
// paper's linearisation and the answers of the other models. The fastest is taken.
// ================================================================================================

typedef struct eini_race {
  ein_ctx *ctx;
  const ein_graph *g;
  const ein_decompose_desc *desc;  // under seconds
  ein_decomposition *hint;         // the search by the paper's cost, without a limit to memory
  ein_decomposition *best;         // the fastest so far
  int simulated;                   // max_work is enough for two simulations at least: else
                                   //   candidates are told apart by the model
  double work;                     // so far, see max_work
  uint64_t classes;                // methods that cut classes of indices
} eini_race;

// Is there work left?
static int eini_race_goes_on(const eini_race *r) {
  return r->work < eini_work_limit(r->desc);
}

// Are they the same statements, cut and placed alike? Both are of one graph.
static int eini_race_same(const ein_decomposition *a, const ein_decomposition *b) {
  int same = a->info.nstmt == b->info.nstmt && (a->graph == NULL) == (b->graph == NULL);
  same &= a->nsent == 0 && b->nsent == 0;
  for (int i = 0; i < a->info.nstmt && same; i++) {
    const ein_parts *p = &a->parts[i], *q = &b->parts[i];
    same = p->nindex == q->nindex && p->norder == q->norder;
    for (int c = 0; c < p->nindex && same; c++)
      same = p->cut[c] == q->cut[c] && a->stmt[i].extent[c] == b->stmt[i].extent[c];
    for (int j = 0; j < p->norder && same; j++) same = p->order[j] == q->order[j];
  }
  return same;
}

// d takes the place of the best when it is faster; d is the race's from here on.
static ein_status eini_race_enter(eini_race *r, ein_decomposition *d) {
  double most = eini_work_limit(r->desc), work = d->sim_work;
  ein_status st = EIN_OK;
  ein_sim_desc sim;
  ein_sim_info info;
  memset(&sim, 0, sizeof sim);
  sim.machine = r->desc->machine;
  sim.max_work = INFINITY;
  r->work += d->work;
  if (r->best == NULL) r->simulated = r->work + 2 * work <= most;
  int late = r->best != NULL && r->simulated && r->work + work > most;
  if (r->simulated) r->work += work;
  if (st == EIN_OK && r->simulated && !late)
    st = eini_simulate(r->ctx, r->g, d, &sim, r->best == NULL ? INFINITY : r->best->info.seconds,
                       &info);
  if (st == EIN_OK && r->simulated && !late) d->info.seconds = info.seconds;
  double mine = r->simulated ? d->info.seconds : d->info.total;
  if (st == EIN_OK && !late &&
      (r->best == NULL || mine < (r->simulated ? r->best->info.seconds : r->best->info.total))) {
    ein_decomposition *swap = r->best;
    r->best = d;
    d = swap;
  }
  ein_decomposition_destroy(d);
  return st;
}

// What was searched, or why nothing was found.
static ein_status eini_race_add(eini_race *r, ein_status st, ein_decomposition *x) {
  if (st == EIN_OK) return eini_race_enter(r, x);
  if (st == EIN_ERR_NO_MEMORY) return st;
  // A method that does not apply, or that a constraint rules out, is no mistake.
  if (r->ctx != NULL) eini_diag_reset(eini_diag_of(r->ctx), NULL, 0);
  return EIN_OK;
}

static ein_status eini_race_method(eini_race *r, int method) {
  ein_decompose_desc d = *r->desc;
  ein_decomposition *x = NULL, *hint = method == EINI_METHOD_LINEAR ? r->hint : NULL;
  if (!eini_race_goes_on(r)) return EIN_OK;
  d.max_work = eini_work_limit(r->desc) - r->work;
  const ein_status st = eini_decompose_with(r->ctx, r->g, &d, method, hint, &x);
  return eini_race_add(r, st, x);
}

// The vectors of another search, as they are, under the name `method`; it takes by's graph over.
static ein_status eini_race_fixed(eini_race *r, ein_decomposition *by, const char *method) {
  const ein_graph *g = by->graph != NULL ? by->graph : r->g;
  ein_decompose_desc d = *r->desc;
  ein_decomposition *x = NULL;
  if (eini_race_same(by, r->best)) return EIN_OK;
  d.max_work = eini_work_limit(r->desc) - r->work;
  if (by->graph != NULL) d.nparts = d.nkeep = 0;  // which it fulfils
  const ein_status st = eini_decompose_with(r->ctx, g, &d, EINI_METHOD_FIXED, by, &x);
  if (st == EIN_OK) {
    x->info.method = method;
    x->graph = by->graph;
    by->graph = NULL;
  }
  return eini_race_add(r, st, x);
}

// What the search by another model gives.
static ein_status eini_race_model(eini_race *r, ein_cost cost) {
  const int limited = r->desc->machine != NULL && r->desc->machine->memory > 0;
  ein_decompose_desc d = *r->desc;
  ein_decomposition *by = NULL;
  if (!eini_race_goes_on(r)) return EIN_OK;
  if (cost == EIN_COST_PAPER && !limited) return eini_race_fixed(r, r->hint, "eindecomp/paper");
  d.max_work = eini_work_limit(r->desc) - r->work;
  d.cost = cost;
  d.strict = 1;
  d.fewer = 0;
  ein_status st = eini_decompose_with(r->ctx, r->g, &d, EINI_METHOD_BEST,
                                      cost == EIN_COST_PAPER ? NULL : r->hint, &by);
  if (st != EIN_OK) return eini_race_add(r, st, NULL);
  r->work += by->work;
  st = eini_race_fixed(r, by, cost == EIN_COST_PAPER ? "eindecomp/paper" : "eindecomp/bytes");
  ein_decomposition_destroy(by);
  return st;
}

// All that runs against the search, which has been entered, with what was found beside it.
static ein_status eini_race_run(eini_race *r, eini_answers *a) {
  const ein_decompose_desc *d = r->desc;
  int named = d->batch != NULL || d->sequence != NULL || d->heads != NULL || d->hidden != NULL;
  ein_decomposition *plain = a->plain, *linear = a->linear;
  ein_status st = EIN_OK;
  a->plain = NULL;
  if (plain != NULL) st = eini_race_enter(r, plain);
  if (st != EIN_OK) return st;
  a->linear = NULL;
  st = linear != NULL ? eini_race_enter(r, linear) : eini_race_method(r, EINI_METHOD_LINEAR);
  for (int base = 0; st == EIN_OK && base < EINI_BASES; base++)
    if (named || base <= EINI_BASE_SQRT) st = eini_race_method(r, base);
  for (int k = 0; st == EIN_OK && k < EINI_CLASSES * EINI_CLASSES; k++)
    if (r->classes >> k & 1) st = eini_race_method(r, EINI_METHOD_CLASS + k);
  if (st == EIN_OK) st = eini_race_model(r, EIN_COST_PAPER);
  if (st == EIN_OK) st = eini_race_model(r, EIN_COST_BYTES);
  return st;
}

static ein_status eini_decompose_graph(ein_ctx *ctx, const ein_graph *graph,
                                       const ein_decompose_desc *desc, ein_decomposition **out) {
  eini_race race;
  eini_answers found = {NULL, NULL, NULL};
  const char *family = NULL;
  double lower = 0;
  if (desc->cost != EIN_COST_SECONDS) return eini_decompose_once(ctx, graph, desc, out);
  memset(&race, 0, sizeof race);
  race.ctx = ctx;
  race.g = graph;
  race.desc = desc;
  const int limited = desc->machine != NULL && desc->machine->memory > 0;
  const int method = eini_method_find(desc->method), best = method == EINI_METHOD_BEST;
  if (best || method == EINI_METHOD_LINEAR)
    EINI_TRY(eini_decompose_hint(ctx, graph, desc, EIN_COST_PAPER, &race.hint));
  ein_status st = eini_decompose_all(ctx, graph, desc, method, race.hint, best && !limited, best,
                                     &found);
  if (st == EIN_OK) {
    ein_decomposition *first = found.best;
    lower = first->info.lower;
    family = first->info.family;
    race.classes = first->classes;
    found.best = NULL;
    st = eini_race_enter(&race, first);
  }
  if (best && st == EIN_OK) st = eini_race_run(&race, &found);
  eini_answers_free(&found);
  ein_decomposition_destroy(race.hint);
  if (st != EIN_OK) {
    ein_decomposition_destroy(race.best);
    return st;
  }
  *out = race.best;
  race.best->info.family = family;
  eini_info_bound(&race.best->info, lower);
  return EIN_OK;
}

// In limited memory: with those folds split whose results are scattered without a limit. *out is
// NULL where that is nothing, or does not fit.
static ein_status eini_decompose_split(ein_ctx *ctx, const ein_graph *graph,
                                       const ein_decompose_desc *desc, ein_decomposition **out) {
  ein_decompose_desc d = *desc;
  ein_machine m = *desc->machine;
  ein_decomposition *hint = NULL, *x = NULL;
  m.memory = 0;
  d.machine = &m;
  EINI_TRY(eini_decompose_hint(ctx, graph, desc, EIN_COST_PAPER, &hint));
  ein_status st = eini_decompose_with(ctx, graph, &d, EINI_METHOD_BEST, hint, &x);
  ein_decomposition_destroy(hint);
  d.machine = desc->machine;
  d.no_scatter = 1;
  if (st == EIN_OK && x->graph != NULL) {
    st = eini_decompose_graph(ctx, x->graph, &d, out);
    int *factored = st == EIN_OK ? EINI_NEW(&(*out)->arena, int, graph->nstmt) : NULL;
    if (factored != NULL) {
      memcpy(factored, x->factored, (size_t)graph->nstmt * sizeof *factored);
      (*out)->factored = factored;
      (*out)->graph = x->graph;
      (*out)->work += x->work;
      x->graph = NULL;
    } else if (st == EIN_OK) {
      ein_decomposition_destroy(*out);
      *out = NULL;
      st = EIN_ERR_NO_MEMORY;
    }
  }
  ein_decomposition_destroy(x);
  return st;
}

EIN_API ein_status ein_decompose(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **out) {
  ein_decomposition *split = NULL;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  EINI_TRY(eini_validate_decompose(ctx, graph, desc));
  const int method = eini_method_find(desc->method);
  if (desc->machine != NULL && desc->machine->memory > 0 && desc->cost >= EIN_COST_BYTES &&
      !desc->no_scatter && desc->nparts == 0 && desc->nkeep == 0 && !graph->ordered &&
      method == EINI_METHOD_BEST && eini_decompose_split(ctx, graph, desc, &split) ==
                                    EIN_ERR_NO_MEMORY)
    return EIN_ERR_NO_MEMORY;
  if (ctx != NULL) eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  const ein_status st = eini_decompose_graph(ctx, graph, desc, out);
  if (split == NULL || st == EIN_ERR_NO_MEMORY) return ein_decomposition_destroy(split), st;
  const int seconds = desc->cost == EIN_COST_SECONDS;
  if (st != EIN_OK || (seconds ? split->info.seconds < (*out)->info.seconds
                               : split->info.total < (*out)->info.total)) {
    ein_decomposition *worse = *out;
    *out = split;
    split = worse;
    if (ctx != NULL) eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  }
  ein_decomposition_destroy(split);
  return EIN_OK;
}
