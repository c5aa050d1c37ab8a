// ================================================================================================
// >>group-away  groups that a provider with a memory of its own runs
// Takes a run of units; gives their statements in blocks as such a provider sees them, of the sizes
// for which it predicts least, where that is less than what they take one after another.
// ================================================================================================

#define EINI_AWAY_SIZES 4       // of blocks: all of a block's own memory, a quarter, and so on
#define EINI_AWAY_UNITS 256     // plans of more are not searched

typedef struct eini_away_search {
  eini_trail trail[EINI_AWAY_SIZES];
  int n;
  ein_rates rates;              // sides are those that move least: speeds make no difference
} eini_away_search;

static void eini_away_search_free(eini_away_search *x) {
  for (int k = 0; k < x->n; k++) eini_trail_free(&x->trail[k]);
}

static ein_status eini_away_search_make(eini_away_search *x, eini_arena *a, const ein_plan *p,
                                        const eini_unit *unit, int n, const int *rows) {
  double fast = 0;
  memset(x, 0, sizeof *x);
  if (p->away == NULL || p->away->group_plan == NULL || p->ungrouped || p->checked ||
      n > EINI_AWAY_UNITS)
    return EIN_OK;
  x->rates.flops_f64 = x->rates.flops_f32 = 1e12;
  for (int l = 0; l < EIN_MEMORY_LEVELS; l++) x->rates.read_bw[l] = x->rates.copy_bw[l] = 1e12;
  fast = (double)p->away->group_bytes;
  for (int k = 0; k < EINI_AWAY_SIZES; k++, fast /= 4) {
    double temps = 0, *weight;
    eini_trail *w = &x->trail[k];
    EINI_TRY(eini_trail_begin(w, a, p->graph, unit, n, &x->rates, rows, &weight, &temps));
    w->as_found = 1;
    EINI_TRY(eini_trail_open(w, a, fast, NULL));
    x->n++;
  }
  return EIN_OK;
}

// ---- what the provider is told ----

static ein_status eini_away_stage(eini_arena *a, const eini_group_variant *v, const eini_task *t,
                                  int nloop, ein_stage *s) {
  int *tensor = EINI_NEW(a, int, t->nstream);
  int64_t *offset = EINI_NEW(a, int64_t, t->nstream);
  int64_t *step = EINI_NEW(a, int64_t, (int64_t)t->nstream * nloop);
  if (tensor == NULL || offset == NULL || step == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < t->nstream; k++) {
    const eini_ref *r = &t->ref[k];
    const int id = r->slot >= 0 ? r->slot : r->origin;  // of a value: 0 where it does not move
    tensor[k] = r->slot >= 0 ? id : -1;
    offset[k] = r->slot >= 0 || id == 0 ? r->offset : v->slot[id].offset;
    for (int l = 0; l < nloop; l++) step[(int64_t)k * nloop + l] = v->slot[id].step[l];
  }
  s->map = eini_map_of(t);
  s->tensor = tensor;
  s->offset = offset;
  s->step = step;
  s->along = t->along > 0 && t->along <= t->live ? t->along - 1 : -1;
  return EIN_OK;
}

// Where the slots of a variant lie in a block's own memory, and which are the same. 0: one is
// staged.
static int eini_away_places(const eini_lowering *lo, const eini_group_variant *v, int64_t *local,
                            int *same) {
  int yes = 1;
  local[0] = -1;
  same[0] = 0;
  for (int k = 1; k < v->nslot; k++) {
    const eini_group_slot *s = &v->slot[k];
    local[k] = s->slot == -1 ? s->offset : -1;
    if (s->slot >= 0 && !lo->stay[s->slot].kept) yes = 0;
    for (same[k] = 1; same[k] < k; same[k]++)
      if (v->slot[same[k]].slot == s->slot && local[same[k]] == local[k]) break;
  }
  return yes;
}

// Blocks of a variant; *yes 0: something in them is not there, or is staged.
static ein_status eini_away_told(eini_arena *a, const eini_lowering *lo, eini_group *gr,
                                 int number, int *yes) {
  eini_group_variant *v = &gr->variant[number];
  ein_group *g = EINI_NEW(a, ein_group, 1);
  ein_stage *stage = EINI_NEW(a, ein_stage, v->ntask);
  int64_t *number_of = EINI_NEW(a, int64_t, 3 * (int64_t)gr->nloop);
  int64_t *local = EINI_NEW(a, int64_t, v->nslot);
  int *same = EINI_NEW(a, int, v->nslot);
  if (g == NULL || stage == NULL || number_of == NULL || local == NULL || same == NULL)
    return EIN_ERR_NO_MEMORY;
  *yes &= eini_away_places(lo, v, local, same);
  for (int k = 0; k < v->ntask; k++) {
    if (v->task[k].dtype == NULL) *yes = 0;  // a fold of nothing
    EINI_TRY(eini_away_stage(a, v, &v->task[k], gr->nloop, &stage[k]));
    stage[k].map.rates = lo->given;
  }
  for (int l = 0; l < gr->nloop; l++) {
    const int last = number >> l & 1;
    number_of[l] = last ? gr->edge[l] : 0;
    number_of[gr->nloop + l] = gr->block[l];
    number_of[2 * gr->nloop + l] = last ? 1 : eini_ceil_div(gr->edge[l], gr->block[l]);
  }
  g->nloop = gr->nloop;
  g->from = number_of;
  g->block = number_of + gr->nloop;
  g->count = number_of + 2 * gr->nloop;
  g->nstage = v->ntask;
  g->stage = stage;
  g->ntensor = v->nslot;
  g->local = local;
  g->same = same;
  g->bytes = gr->local_bytes;
  g->along = gr->along - 1;
  g->length = gr->along > 0 ? gr->extent[gr->along - 1] : 0;
  v->told = g;
  return EIN_OK;
}

// Asks about all blocks of a group; what they take is its candidate.
static ein_status eini_away_asked(eini_arena *a, const eini_lowering *lo, eini_task *t, int *yes) {
  const ein_kernels *k = lo->away;
  eini_candidate *x = EINI_NEW(a, eini_candidate, 1);
  if (x == NULL) return EIN_ERR_NO_MEMORY;
  double traffic = 0;
  *yes = 1;
  for (int n = 0; n < 1 << t->group->nloop && *yes; n++) {
    eini_group_variant *v = &t->group->variant[n];
    if (v->ntask == 0) continue;
    EINI_TRY(eini_away_told(a, lo, t->group, n, yes));
    if (!*yes) break;
    memset(&v->choice, 0, sizeof v->choice);
    *yes = k->group_plan(k->user, v->told, lo->wanted != NULL ? 0 : -1, &v->choice);
    if (!*yes) break;
    x->seconds += v->choice.seconds;
    t->choice.away += v->choice.away;
    traffic += v->choice.traffic;
    if (v->choice.scratch > t->group->room) t->group->room = v->choice.scratch;
    memcpy(x->variant, v->choice.variant, sizeof x->variant);
    for (int i = 0; i < v->ntask; i++) {  // for explain
      v->task[i].kernels = k;
      memcpy(v->task[i].choice.variant, v->choice.variant, sizeof v->choice.variant);
    }
  }
  if (traffic > 0) t->group->moves = traffic;
  x->name = k->name;
  x->fixed = *yes && lo->wanted != NULL && eini_wanted_is(lo->wanted, k->name, x->variant);
  t->kernels = k;
  t->candidate = x;
  t->ncandidate = 1;
  t->best = x;
  t->choice.seconds = x->seconds;
  return EIN_OK;
}

// ---- the choice ----

// A group of these blocks; what it took is given back unless it is kept.
static ein_status eini_away_try(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                const eini_bundle *b, eini_seat *seat, int keep,
                                eini_candidate *found, int *yes) {
  const eini_arena_at plan = eini_arena_mark(&p->arena), graph = eini_arena_mark(&lo->g->arena);
  eini_task *t = &p->task[p->ntask];
  eini_lowering sub = *lo;
  EINI_TRY(eini_group_new(p, lo, w, b, t));
  eini_group *gr = t->group;
  sub.width = sub.maps = t->parts = 1;
  sub.along = b->along;
  sub.local = w->local;
  sub.shift = w->shift;
  sub.seat = seat;
  ein_status st = EIN_OK;
  for (int v = 0; v < 1 << gr->nloop && st == EIN_OK; v++)
    if (eini_group_has(gr, v)) st = eini_group_blocks(p, &sub, w, b, seat, gr, v);
  if (st == EIN_OK) st = eini_away_asked(&p->arena, lo, t, yes);
  if (st == EIN_OK && *yes) *found = *t->best;
  for (int u = b->from; u <= b->to && st == EIN_OK && *yes && keep; u++)
    if (w->local[w->unit[u].out]) seat[w->unit[u].out].slot = -1;  // needs no place of its own
  eini_bundle_unmark(w, b->from, b->to);
  t->scratch = 0;
  eini_nest_carve(NULL, &t->scratch, (size_t)gr->slots * sizeof(char *));
  if (st != EIN_OK || (*yes && keep)) return st;
  eini_arena_rollback(&p->arena, &plan);
  eini_arena_rollback(&lo->g->arena, &graph);
  return EIN_OK;
}

// The best blocks of some units, and whose trail they are of, or -1.
typedef struct eini_away_found {
  eini_bundle b;
  eini_candidate candidate;
  int at;
} eini_away_found;

// Blocks of trail k against the best before.
static ein_status eini_away_one(ein_plan *p, const eini_lowering *lo, const eini_away_search *x,
                                int k, const eini_bundle *b, eini_seat *seat,
                                eini_away_found *best) {
  eini_candidate one;
  int yes = 0;
  if (best->at >= 0 && b->nloop == best->b.nloop && b->along == best->b.along &&
      memcmp(b->block, best->b.block, (size_t)b->nloop * sizeof *b->block) == 0)
    return EIN_OK;
  EINI_TRY(eini_away_try(p, lo, &x->trail[k], b, seat, 0, &one, &yes));
  if (!yes || (best->at >= 0 && !eini_better(&one, &best->candidate))) return EIN_OK;
  best->b = *b;
  best->candidate = one;
  best->at = k;
  return EIN_OK;
}

// Of units [u, v]: blocks that go along an index, and those that hold all they make.
static ein_status eini_away_best(ein_plan *p, const eini_lowering *lo, eini_away_search *x, int u,
                                 int v, eini_seat *seat, eini_away_found *best) {
  eini_bundle b;
  best->at = -1;
  for (int k = 0, yes = 1; k < EINI_ALONG_SIZES && yes; k++) {
    EINI_TRY(eini_along_make(&x->trail[0], u, v, eini_along_sizes[k][0], eini_along_sizes[k][1], &b,
                             &yes));
    if (yes) EINI_TRY(eini_away_one(p, lo, x, 0, &b, seat, best));
  }
  for (int k = 0; k < x->n; k++) {
    EINI_TRY(eini_bundle_make(&x->trail[k], u, v, 0, &b));
    if (b.gain > -INFINITY) EINI_TRY(eini_away_one(p, lo, x, k, &b, seat, best));
  }
  return EIN_OK;
}

// The group that begins at unit u and that the provider runs, if there is one: *last, its last
// unit.
static ein_status eini_plan_away(ein_plan *p, const eini_lowering *lo, eini_away_search *x, int u,
                                 eini_seat *seat, int *last) {
  const eini_trail *w = &x->trail[0];
  int v = u;
  *last = 0;
  if (x->n == 0 || !w->joins[u] || w->g->tensor[w->unit[u].out].role != EIN_ROLE_TEMP)
    return EIN_OK;
  while (v + 1 < w->nunit && v + 1 < u + EINI_FUSE_MOST && w->joins[v + 1] &&
         eini_unit_follows(w, u, v + 1))
    v++;
  for (; v > u && *last == 0; v--) {
    double seconds[3] = {0, 0, 0};
    eini_away_found found;
    eini_lowering sub = *lo;
    eini_arena scratch;
    int yes = 0;
    EINI_TRY(eini_away_best(p, lo, x, u, v, seat, &found));
    if (found.at < 0) continue;
    eini_arena_init(&scratch, &lo->a->al);
    sub.a = &scratch;
    ein_status st = EIN_OK;
    for (int i = u; i <= v && st == EIN_OK; i++)
      st = eini_unit_seconds(&sub, NULL, w->unit, i, &seconds[1]);
    eini_arena_free(&scratch);
    EINI_TRY(st);
    seconds[0] = found.candidate.seconds;
    const int take = found.candidate.fixed || EINI_SURELY * seconds[0] < seconds[1];
    EINI_TRY(eini_plan_verdict(p, w->g->tensor[w->unit[v].out].name, v - u + 1, seconds, !take));
    if (!take) continue;
    EINI_TRY(eini_away_try(p, lo, &x->trail[found.at], &found.b, seat, 1, &found.candidate, &yes));
    if (yes) p->info.seconds += seconds[0];
    if (yes) *last = v;
  }
  return EIN_OK;
}
