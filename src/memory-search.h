// ================================================================================================
// >>memory-search  candidates, budgets, the least budget
// The candidates do not depend on the budget: for each set of providers, contraction path, order of
// statements and target of predicted bytes there is one. A candidate is planned and counted before
// it is taken.
// ================================================================================================

#define EINI_FIT_GOALS 4        // paths that are tried

// One candidate. set: 0 all providers, 1 none and one thread, 2 + i provider i alone. target -1:
// the plan that ein_plan_graph makes; else counted from the largest.
typedef struct eini_fit_name {
  int set, goal, order, target, whole;
} eini_fit_name;

typedef struct eini_fit_search {
  eini_fit_job j;
  eini_fit_layout *f;           // receives the best
  ein_options option[EINI_FIT_GOALS];
  int nset, ngoal, split;       // split: statements of the last base were
  int nkernels;                 // of the ctx, with all providers; and the others
  const ein_kernels **kernels;
  ein_executor executor;
  int found;
  eini_fit_name now, best;
  double seconds;               // of the best
  int64_t least, planning;      // bytes that the leanest candidate needs, and without a workspace
} eini_fit_search;

// Plans from now on with a set of providers.
static void eini_fit_use(eini_fit_search *s, int set) {
  ein_ctx *ctx = s->j.ctx;
  s->now.set = set;
  ctx->executor = s->executor;
  ctx->kernels = s->kernels + (set < 2 ? 0 : set - 2);
  ctx->nkernels = set == 0 ? s->nkernels : set > 1;
  if (set == 1) memset(&ctx->executor, 0, sizeof ctx->executor);
  if (set == 1) ctx->executor.width = 1;
  const ein_rates *rates = eini_rates_of(ctx);
  double width = ctx->executor.width;
  const double flops = rates == NULL ? 0 : eini_core_flops(rates, EIN_F32, HUGE_VAL);
  s->j.speed.flops = width * (flops > 0 ? flops : EINI_CORE_FLOPS);
  s->j.speed.bandwidth = rates != NULL ? rates->copy_bw[EIN_MEMORY] : EINI_CORE_BANDWIDTH;
  s->j.away = eini_ctx_space(ctx) != 0;
  s->j.packing = s->j.away ? EINI_FIT_MOST : ctx->executor.width * EINI_FIT_PACKING;
}

// What is needed when a layout was made, the most while it was made included.
static int64_t eini_fit_need(const eini_fit_search *s, const eini_fit_layout *f, size_t before) {
  const eini_cap *c = s->j.cap;
  int64_t need = (int64_t)(c->peak > before ? c->peak : before);
  return eini_max64(need, (int64_t)c->live + f->workspace + f->away);
}

// Weighs what the candidate at hand needs. What is sought below the least (lean) needs less from
// now on.
static void eini_fit_leaner(eini_fit_search *s, int64_t need, const eini_fit_layout *f, int lean) {
  if (s->least != 0 && need >= s->least) return;
  s->least = need;
  s->planning = (int64_t)s->j.cap->live;
  if (need > s->planning + f->workspace + f->away) s->planning = need;
  if (lean) s->j.cap->limit = (size_t)need - 1;
}

static ein_status eini_fit_whole(eini_fit_search *s, int goal, eini_fit_layout *f) {
  const eini_want *d = s->j.desc;
  ein_status st;
  eini_arena_init(&f->arena, &s->j.ctx->al);
  if (d->graph != NULL) {
    eini_begin_call(s->j.ctx, NULL);
    st = eini_graph_plan(s->j.ctx, d->graph, d->nlayout, d->layout, &s->option[goal], &f->whole);
  } else {
    ein_einsum_desc e = *d->einsum;
    e.options = s->option[goal];
    st = eini_plan_make(s->j.ctx, &e, 0, &f->whole);
  }
  if (st == EIN_OK) f->workspace = (int64_t)f->whole->info.workspace_bytes;
  if (st == EIN_OK) f->away = (int64_t)f->whole->away_bytes;
  return st;
}

// *same: the order asked for is the one the statements have.
static ein_status eini_fit_open(const eini_fit_search *s, int goal, int order, eini_fit_base *b,
                                int *same) {
  eini_arena scratch;
  int moved = 0;
  *same = 0;
  EINI_TRY(eini_fit_base_open(&s->j, &s->option[goal], b));
  if (order == 0) return EIN_OK;
  eini_arena_init(&scratch, &s->j.ctx->al);
  ein_status st = eini_fit_reorder(b, &scratch, &moved);
  eini_arena_free(&scratch);
  *same = !moved;
  if (st != EIN_OK) eini_fit_base_close(b);
  return st;
}

// The targets of a base, from what everything in one region needs down to the least, by a seventh
// each. *n: how many.
static ein_status eini_fit_targets(const eini_fit_job *j, const eini_fit_base *b, int64_t *most,
                                   int64_t *least, int *n) {
  eini_fit_choice *list = NULL;
  eini_fit_target t = {EINI_FIT_MOST, 0};
  eini_fit_guess g;
  eini_arena a;
  int count;
  memset(&g, 0, sizeof g);
  eini_arena_init(&a, &j->ctx->al);
  ein_status st = eini_fit_choose(j, b, &a, &t, &list, &count, &g);
  *most = *least = g.bytes;
  t.least = 1;
  if (st == EIN_OK) st = eini_fit_choose(j, b, &a, &t, &list, &count, &g);
  eini_arena_free(&a);
  if (st != EIN_OK) return st;
  *least = g.bytes < *most ? g.bytes : *most;
  *n = 1;
  double end = (double)eini_max64(*least, EINI_FIT_FLOOR);
  for (double x = (double)*most; x > end; x *= 0.85) ++*n;
  return EIN_OK;
}

static int64_t eini_fit_target_at(int64_t most, int64_t least, int n, int k) {
  double x = (double)most;
  if (k == n - 1) return least;
  for (int i = 0; i < k; i++) x *= 0.85;
  return eini_max64((int64_t)x, least);
}

// Makes the layout of a target. bound: give up when it takes as long (0: none). *made: it was.
// last: the regions of the layouts before, as hashes; the same ones are not made again.
static ein_status eini_fit_make(eini_fit_search *s, const eini_fit_base *b, int64_t target,
                                double bound, uint64_t *last, eini_fit_layout *f, int *made) {
  eini_fit_choice *list = NULL;
  eini_fit_target t = {target, 0};
  eini_fit_guess g;
  int count = 0;
  *made = 0;
  eini_arena_init(&f->arena, &s->j.ctx->al);
  EINI_TRY(eini_fit_choose(&s->j, b, &f->arena, &t, &list, &count, &g));
  if (count == 0 && b->g->nstmt > 0) return EIN_OK;
  f->seconds = count > 0 ? g.seconds : 0;
  if (bound > 0 && f->seconds >= bound) return EIN_OK;
  const uint64_t now = eini_hash(list, (size_t)count * sizeof *list, 1);
  const int same = now == last[0] || now == last[1];
  last[s->j.whole] = now;
  if (same) return EIN_OK;
  EINI_TRY(eini_fit_layout_make(&s->j, b, list, count, f));
  *made = 1;
  return EIN_OK;
}

// Tries the targets of one base under the cap's limit, each with and without what `whole` says.
// lean: all of them, for `least`; else down to the first that fits.
static ein_status eini_fit_try(eini_fit_search *s, int lean) {
  eini_cap *c = s->j.cap;
  eini_fit_base b;
  int64_t most = 0, least[2] = {0, 0};
  uint64_t last[2] = {0, 0};
  int n[2] = {0, 0}, same = 0, done = 0;
  c->peak = c->live;
  EINI_TRY(eini_fit_open(s, s->now.goal, s->now.order, &b, &same));
  s->split = b.split;
  ein_status st = EIN_OK;
  for (int i = 0; i < 2 && !same && st == EIN_OK; i++) {
    s->j.whole = i;
    st = eini_fit_targets(&s->j, &b, &most, &least[i], &n[i]);
  }
  size_t before = c->peak;
  for (int k = 0; k < 2 * n[n[1] > n[0]] && st == EIN_OK && !done; k++) {
    const int whole = s->j.whole = k % 2 == 0;
    if (k / 2 >= n[whole] || (!whole && s->found && !lean)) continue;
    int64_t target = eini_fit_target_at(most, least[whole], n[whole], k / 2), need = 0;
    int64_t firm = (target - s->j.packing) / EINI_FIT_OPTIMISM;
    eini_fit_layout f;
    int made = 0;
    if (firm > 0 && (uint64_t)firm > c->limit) continue;
    memset(&f, 0, sizeof f);
    c->peak = c->live;
    st = eini_fit_make(s, &b, target, lean || !s->found ? 0 : s->seconds, last, &f, &made);
    if (made) need = eini_fit_need(s, &f, before);
    int good = made && firm <= need && f.seconds <= EINI_FIT_PATIENCE;
    if (good) eini_fit_leaner(s, need, &f, lean);
    eini_fit_layout_free(&f);
    if (eini_cap_hit(c, st)) st = EIN_OK;
    if (!good || lean || (uint64_t)need > c->limit) continue;
    s->found = 1;
    s->seconds = f.seconds;
    s->best = s->now;
    s->best.target = k / 2;
    s->best.whole = whole;
    done = whole;  // otherwise a smaller target may have one that is faster
  }
  eini_fit_base_close(&b);
  return st;
}

// Tries the plan that the library makes without this header.
static ein_status eini_fit_try_whole(eini_fit_search *s, int lean) {
  eini_cap *c = s->j.cap;
  eini_fit_layout f;
  memset(&f, 0, sizeof f);
  c->peak = c->live;
  ein_status st = eini_fit_whole(s, 0, &f);
  if (st == EIN_OK) {
    int64_t need = eini_fit_need(s, &f, 0);
    eini_fit_leaner(s, need, &f, lean);
    if (!lean && (uint64_t)need <= c->limit) {
      s->found = 1;
      s->best = s->now;
      s->best.goal = s->best.order = 0;
      s->best.target = -1;
    }
  }
  eini_fit_layout_free(&f);
  return eini_cap_hit(c, st) ? EIN_OK : st;
}

// Those candidates under the cap's limit; the best that fits of the first set of providers that has
// one, or with lean what the leanest of all needs. Where only blocks of results fit, the others may
// be faster.
static ein_status eini_fit_look_at(eini_fit_search *s, int lean) {
  s->found = 0;
  s->least = 0;
  const int nset = s->j.ahead ? 1 : s->nset;
  for (int set = 0; set < nset && !(s->found && s->best.whole); set++) {
    eini_fit_use(s, set);
    s->split = 1;
    EINI_TRY(eini_fit_try_whole(s, lean));
    if (s->found && s->best.target < 0) return EIN_OK;
    for (int goal = 0; goal < s->ngoal && (goal == 0 || s->split); goal++) {
      for (int order = 0; order < 2; order++) {
        s->now.goal = goal;
        s->now.order = order;
        ein_status st = eini_fit_try(s, lean);
        if (st != EIN_OK && !eini_cap_hit(s->j.cap, st)) return st;
      }
    }
  }
  return EIN_OK;
}

// All candidates; where a provider copies, first those with room for two slices at a time, of which
// one is copied while the other is computed.
static ein_status eini_fit_look(eini_fit_search *s, int lean) {
  eini_fit_use(s, 0);
  s->j.ahead = s->j.away && !lean;
  if (s->j.ahead) EINI_TRY(eini_fit_look_at(s, lean));
  if (s->j.ahead && s->found) return EIN_OK;
  s->j.ahead = 0;
  return eini_fit_look_at(s, lean);
}

// Makes the candidate that was found, for good.
static ein_status eini_fit_take(eini_fit_search *s) {
  eini_fit_layout *f = s->f;
  int64_t most, least;
  uint64_t last[2] = {0, 0};
  int n, same, made = 0;
  eini_fit_use(s, s->best.set);
  if (s->best.target < 0) return eini_fit_whole(s, s->best.goal, f);
  EINI_TRY(eini_fit_open(s, s->best.goal, s->best.order, &f->base, &same));
  eini_fit_base b = f->base;
  s->j.whole = s->best.whole;
  EINI_TRY(eini_fit_targets(&s->j, &b, &most, &least, &n));
  EINI_TRY(eini_fit_make(s, &b, eini_fit_target_at(most, least, n, s->best.target), 0, last, f,
                         &made));
  return made ? EIN_OK : EIN_ERR_INTERNAL;
}

// Nothing fits: says what would.
static ein_status eini_fit_fail(eini_fit_search *s) {
  const ein_options *o = &s->j.desc->options;
  eini_cap *c = s->j.cap;
  c->limit = SIZE_MAX;
  EINI_TRY(eini_fit_look(s, 1));
  if (s->least == 0) {  // not for want of memory
    eini_fit_layout f;
    memset(&f, 0, sizeof f);
    eini_fit_use(s, 0);
    ein_status st = eini_fit_whole(s, 0, &f);
    eini_fit_layout_free(&f);
    return st == EIN_OK ? EIN_ERR_INTERNAL : st;
  }
  eini_begin_call(s->j.ctx, NULL);
  if (o->least != NULL) *o->least = (size_t)s->least + o->reserved;
  return eini_fail(eini_diag_of(s->j.ctx), EIN_ERR_TOO_LARGE, -1, 0, NULL,
                   "a memory budget of %llu bytes is too small: with %llu for planning, the least "
                   "that works is %llu", (unsigned long long)o->memory,
                   (unsigned long long)s->planning,
                   (unsigned long long)s->least + (unsigned long long)o->reserved);
}

// Searches; the cap is set up.
static ein_status eini_fit_search_run(eini_fit_search *s) {
  const eini_want *d = s->j.desc;
  s->nkernels = s->j.ctx->nkernels;
  s->kernels = s->j.ctx->kernels;
  s->executor = s->j.ctx->executor;
  s->nset = s->nkernels > 1 ? 2 + s->nkernels : s->nkernels > 0 || s->executor.width > 1 ? 2 : 1;
  s->option[0] = d->options;
  s->option[0].memory = 0;  // of the plans it is made of
  s->option[0].may_overlap = 0;
  s->option[1] = s->option[2] = s->option[3] = s->option[0];
  s->option[1].goal = s->option[2].goal = EIN_GOAL_SIZE;
  s->option[2].path = "greedy";  // a search that takes little memory itself
  s->option[3].path = "none";
  s->ngoal = eini_path_auto(&d->options) ? EINI_FIT_GOALS : 1;
  for (int i = 0; i < s->nkernels; i++)
    if (s->kernels[i]->alone) s->nset = 1;
  // Other providers, and other paths, add in another order.
  if (s->option[0].deterministic || (d->graph != NULL && d->graph->ordered)) s->nset = s->ngoal = 1;
  EINI_TRY(eini_order_check(s->j.ctx, &s->option[0]));
  EINI_TRY(eini_fit_look(s, 0));
  if (!s->found) return eini_fit_fail(s);
  s->j.cap->peak = s->j.cap->live;
  return eini_fit_take(s);
}
