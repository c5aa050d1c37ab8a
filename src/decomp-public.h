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
  ein_decomposition *best;         // the fastest so far
} eini_race;

// d takes the place of the best when it is simulated to be faster; d is the race's from here on.
static ein_status eini_race_enter(eini_race *r, ein_decomposition *d) {
  ein_sim_desc sim;
  ein_sim_info info;
  memset(&sim, 0, sizeof sim);
  sim.machine = r->desc->machine;
  ein_status st = ein_simulate(r->ctx, r->g, d, &sim, &info);
  if (st == EIN_OK) d->info.seconds = info.seconds;
  if (st == EIN_OK && (r->best == NULL || info.seconds < r->best->info.seconds)) {
    ein_decomposition *swap = r->best;
    r->best = d;
    d = swap;
  }
  ein_decomposition_destroy(d);
  return st;
}

// What a method gives, or (fixed) the search by another model, its answer's vectors as they are.
static ein_status eini_race_try(eini_race *r, int method, ein_cost cost) {
  ein_decompose_desc d = *r->desc;
  ein_decomposition *x = NULL, *by = NULL;
  ein_status st;
  if (method == EINI_METHOD_LINEAR) {
    d.method = eini_method_names[method];
    st = eini_decompose_once(r->ctx, r->g, &d, &x);
  } else if (method != EINI_METHOD_FIXED) {
    st = eini_decompose_with(r->ctx, r->g, &d, method, NULL, &x);
  } else {
    d.cost = cost;
    d.strict = 1;
    d.fewer = 0;
    st = eini_decompose_once(r->ctx, r->g, &d, &by);
    if (st == EIN_OK) {
      by->info.method = cost == EIN_COST_PAPER ? "eindecomp/paper" : "eindecomp/bytes";
      st = eini_decompose_with(r->ctx, r->g, r->desc, EINI_METHOD_FIXED, by, &x);
    }
    ein_decomposition_destroy(by);
  }
  if (st == EIN_OK) return eini_race_enter(r, x);
  if (st == EIN_ERR_NO_MEMORY) return st;
  // A method that does not apply, or that a constraint rules out, is no mistake.
  if (r->ctx != NULL) eini_diag_reset(eini_diag_of(r->ctx), NULL, 0);
  return EIN_OK;
}

EIN_API ein_status ein_decompose(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **out) {
  eini_race race;
  ein_decomposition *first;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  EINI_TRY(eini_validate_decompose(ctx, graph, desc));
  if (desc->cost != EIN_COST_SECONDS) return eini_decompose_once(ctx, graph, desc, out);
  memset(&race, 0, sizeof race);
  race.ctx = ctx;
  race.g = graph;
  race.desc = desc;
  EINI_TRY(eini_decompose_once(ctx, graph, desc, &first));
  double lower = first->info.lower;
  const char *family = first->info.family;
  int best = eini_method_find(desc->method) == EINI_METHOD_BEST;
  int named = desc->batch != NULL || desc->sequence != NULL || desc->heads != NULL ||
              desc->hidden != NULL;
  ein_status st = eini_race_enter(&race, first);
  for (int base = 0; best && st == EIN_OK && base < EINI_BASES; base++)
    if (named || base <= EINI_BASE_SQRT) st = eini_race_try(&race, base, EIN_COST_SECONDS);
  for (int k = 0; best && st == EIN_OK && k < EINI_CLASSES; k++)
    st = eini_race_try(&race, EINI_METHOD_CLASS + k, EIN_COST_SECONDS);
  if (best && st == EIN_OK) st = eini_race_try(&race, EINI_METHOD_LINEAR, EIN_COST_SECONDS);
  for (int k = 0; best && st == EIN_OK && k < 2; k++)
    st = eini_race_try(&race, EINI_METHOD_FIXED, k == 0 ? EIN_COST_PAPER : EIN_COST_BYTES);
  if (st != EIN_OK) {
    ein_decomposition_destroy(race.best);
    return st;
  }
  *out = race.best;
  ein_decomp_info *info = &race.best->info;
  info->family = family;
  info->lower = lower < info->total ? lower : info->total;
  info->proved = info->total - lower <= 1e-9 * info->total;
  info->gap = info->proved || info->total <= 0 ? 0 : (info->total - lower) / info->total;
  return EIN_OK;
}
