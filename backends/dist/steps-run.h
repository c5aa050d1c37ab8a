// ================================================================================================
// >>steps-run  graphs under a schedule
// Takes a schedule and the bindings of one call; gives places what they hold, runs statements, and
// returns what places hold of outputs. Without bindings it makes the plans.
// ================================================================================================

static ein_status eini_steps_point_new(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const ein_graph *g = x->d->g;
  eini_arena *a = x->scratch;
  pt->works = eini_tour_works(&x->w);
  pt->plan = -1;
  if (!pt->works || (!eini_steps_mine(x, x->w.move.place) && pt != x->point)) return EIN_OK;
  pt->box = EINI_NEW(a, eini_step_box, s->noperand + 1);
  pt->lo = EINI_NEW(a, int64_t, s->nindex);
  pt->hi = EINI_NEW(a, int64_t, s->nindex);
  pt->in = EINI_NEW(a, const void *, s->noperand);
  pt->param = EINI_NEW(a, ein_scalar, g->nparam + s->nindex);
  if (pt->box == NULL || pt->lo == NULL || pt->hi == NULL || pt->in == NULL || pt->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < g->nparam; k++) {
    const int given = x->run != NULL && x->run->param != NULL && x->run->param[k].set;
    pt->param[k] = given ? x->run->param[k] : g->param[k].value;
  }
  for (int i = 0; i < s->nindex; i++) pt->param[g->nparam + i].set = 1;
  EINI_TRY(eini_steps_box_new(a, &pt->block, g->tensor[s->out].rank));
  for (int k = 0; k <= s->noperand; k++)
    EINI_TRY(eini_steps_box_new(a, &pt->box[k],
                                g->tensor[k < s->noperand ? s->operand[k] : s->out].rank));
  return EIN_OK;
}

// The point at hand is number i; 0: it has no task.
static int eini_steps_goto(eini_staged *x, int64_t i) {
  x->w.move.point = i;
  x->w.move.place = eini_grid_place(x->w.n->grid, i);
  eini_grid_coords(x->w.n->grid, i, x->w.here);
  return x->point[i].works;
}

// And after it has computed.
static ein_status eini_steps_after(eini_staged *x, int64_t step) {
  const int n = x->stmt->noperand;
  if (!eini_tour_due(&x->w, step, n, 1) || !eini_tour_box(&x->w, step, n)) return EIN_OK;
  x->w.move.operand = -1;
  x->w.move.step = step;
  return eini_tour_owners(&x->w, &x->w.owners[n], eini_tour_wide(&x->w), 1);
}

static ein_status eini_steps_walk(eini_staged *x) {
  const int64_t n = x->w.n->grid->npoint;
  const ein_executor *e = &x->d->executor;
  for (int64_t step = 0; step < x->w.n->steps; step++) {
    memset(x->w.sent, 0, (size_t)x->d->fabric.places * sizeof *x->w.sent);
    for (int64_t i = 0; i < n; i++)
      if (eini_steps_goto(x, i)) EINI_TRY(eini_steps_before(x, &x->point[i], step));
    if (x->run != NULL && x->width > 1) e->parallel_for(x->width, eini_steps_worker, x, e->user);
    else if (x->run != NULL) eini_steps_worker(x, 0);
    for (int64_t i = 0; i < n; i++) {
      if (!eini_steps_goto(x, i)) continue;
      EINI_TRY(eini_steps_goes_on(x, x->point[i].st));
      EINI_TRY(eini_steps_after(x, step));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_moved(void *user, const ein_schedule_move *m) {
  const eini_staged *x = (const eini_staged *)user;
  const eini_dist_read r = {m->bytes, 1, NULL};
  const int all = x->run == NULL;  // a run's figures are those of its own places
  if (all || eini_steps_mine(x, m->to)) eini_dist_count(x->stats, m->stmt, m->to, 0, &r);
  if (all || eini_steps_mine(x, m->from)) eini_dist_sent(x->stats, m->from, m->bytes);
  return EIN_OK;
}

static ein_status eini_steps_begin(eini_staged *x, int k) {
  static const eini_dist_read nothing = {0, 0, NULL};
  const ein_graph *g = x->d->g;
  const eini_stmt *s = x->stmt = &g->stmt[k];
  int64_t key = 8 + 3 * (int64_t)g->tensor[s->out].rank + s->nindex;
  memset(&x->w, 0, sizeof x->w);
  memset(&x->info, 0, sizeof x->info);
  x->number = k;
  x->w.w = x->s;
  x->w.n = &x->s->nest[k];
  x->w.info = &x->info;
  x->w.move.stmt = k;
  x->w.part_fn = eini_steps_part_of;
  x->w.fn = eini_steps_moved;
  x->w.user = x;
  x->message = NULL;
  x->room = 0;
  EINI_TRY(eini_tour_init(x->scratch, &x->w));
  if (eini_tour_work(&x->w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  x->whole = eini_loops_whole(x->w.n);
  for (int o = 0; o < s->noperand; o++) key += g->tensor[s->operand[o]].rank;
  x->key = EINI_NEW(x->scratch, int64_t, key);
  x->cut = EINI_NEW(x->scratch, int64_t, s->nindex);
  x->stride = EINI_NEW(x->scratch, const int64_t *, s->noperand);
  x->point = EINI_NEW(x->scratch, eini_step_point, x->w.n->grid->npoint);
  if (x->key == NULL || x->cut == NULL || x->stride == NULL || x->point == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) x->cut[i] = 2;  // all have an origin
  for (int64_t i = 0; i < x->w.n->grid->npoint; i++) {
    (void)eini_steps_goto(x, i);
    EINI_TRY(eini_steps_point_new(x, &x->point[i]));
    if (x->point[i].works && (x->run == NULL || eini_steps_mine(x, x->w.move.place)))
      eini_dist_count(x->stats, k, x->w.move.place, x->w.n->steps, &nothing);
  }
  return EIN_OK;
}

// ---- tensors at places ----

// A tensor between a place and the memory of the caller; hull: that of its boxes is asked for.
typedef struct eini_steps_share {
  int rank, hull, back;     // back: from the place to the caller
  size_t size;
  eini_step_box *place;
  const eini_step_box *caller;
} eini_steps_share;

static ein_status eini_steps_shared(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_share *c = (const eini_steps_share *)user;
  eini_step_box *b = c->place;
  int64_t shape[EINI_NAMES_MAX];
  for (int r = 0; r < c->rank; r++) {
    shape[r] = hi[r] - lo[r];
    if (!c->hull) continue;
    b->lo[r] = b->hi[r] == 0 ? lo[r] : eini_min64(b->lo[r], lo[r]);
    b->hi[r] = eini_max64(b->hi[r], hi[r]);
  }
  if (c->hull) return EIN_OK;
  char *p = eini_steps_at(b, c->rank, lo, c->size);
  char *w = eini_steps_at(c->caller, c->rank, lo, c->size);
  if (c->back) eini_dist_copy(c->rank, shape, w, c->caller->stride, p, b->stride, c->size);
  else eini_dist_copy(c->rank, shape, p, b->stride, w, c->caller->stride, c->size);
  return EIN_OK;
}

// The caller's memory of a tensor; NULL data: it has none.
static ein_status eini_steps_caller(const eini_staged *x, int t, eini_step_box *b) {
  const eini_dist_tensor *e = &x->d->tensor[t];
  const eini_tensor *of = &x->d->g->tensor[t];
  union { const void *c; char *v; } u;  // inputs are only read
  u.v = NULL;
  if (x->run != NULL && e->port >= 0) {
    if (of->role == EIN_ROLE_INPUT) u.c = x->run->in[e->port];
    else u.v = (char *)x->run->out[e->port];
  }
  EINI_TRY(eini_steps_box_new(&x->lives[t], b, of->rank));
  b->data = u.v;
  for (int r = 0; r < of->rank; r++) b->hi[r] = of->shape[r], b->stride[r] = e->stride[r];
  return EIN_OK;
}

// Memory of a tensor at places and what they hold of an input; back: what they hold of an output.
static ein_status eini_steps_tensor(eini_staged *x, int t, int back) {
  const eini_tensor *e = &x->d->g->tensor[t];
  const int input = e->role == EIN_ROLE_INPUT, port = x->d->tensor[t].port >= 0;
  const int own = input ? x->nmemory == 1 || x->s->place[t] == NULL : x->nmemory == 1 && port;
  eini_step_box caller;
  EINI_TRY(eini_steps_caller(x, t, &caller));
  eini_steps_share c = {e->rank, 0, back, ein_dtype_size(e->dtype), NULL, &caller};
  for (int q = 0; q < x->nmemory; q++) {
    eini_step_box *b = c.place = eini_steps_home(x, t, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    if (own) {
      *b = caller;
      continue;
    }
    c.hull = !back;
    if (!back) EINI_TRY(eini_steps_box_new(&x->lives[t], b, e->rank));
    for (int r = 0; r < e->rank && x->nmemory == 1; r++) b->hi[r] = e->shape[r];
    if (!back && x->nmemory > 1)
      EINI_TRY(eini_distribution_boxes(&x->lives[t], x->s->place[t], e->shape, q,
                                       eini_steps_shared, &c));
    int64_t shape[EINI_NAMES_MAX];
    for (int r = 0; r < e->rank; r++) shape[r] = b->hi[r] - b->lo[r];
    eini_dist_dense(e->rank, shape, b->stride);
    const size_t bytes = eini_steps_bytes(e->rank, shape, c.size);
    if (!back && x->run != NULL && (b->data = EINI_NEW(&x->lives[t], char, bytes)) == NULL)
      return EIN_ERR_NO_MEMORY;
    c.hull = 0;
    if (x->run != NULL && (back || input))
      EINI_TRY(eini_distribution_boxes(&x->lives[t], x->s->place[t], e->shape, q,
                                       eini_steps_shared, &c));
  }
  return EIN_OK;
}

// Sums at places begin as folds of nothing.
static ein_status eini_steps_sums(eini_staged *x) {
  static const double none[2] = {0, 0};
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank;
  eini_step_point *pt = &x->point[0];  // has a task in every nest
  for (int o = 0; o < s->noperand; o++) {
    memcpy(pt->box[o].stride, eini_steps_home(x, s->operand[o], x->d->fabric.first)->stride,
           (size_t)x->d->g->tensor[s->operand[o]].rank * sizeof(int64_t));
    pt->in[o] = none;  // nothing is read
  }
  for (int q = 0; q < x->nmemory; q++) {
    const eini_step_box *home = eini_steps_home(x, s->out, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    for (int r = 0; r < rank; r++) x->w.from[r] = home->lo[r], x->w.to[r] = home->hi[r];
    EINI_TRY(eini_steps_box_new(x->scratch, &x->sum[q], rank));
    EINI_TRY(eini_steps_dense(x, &x->sum[q], rank, ein_dtype_size(ein_dtype_compute(s->type)),
                              0));
    for (int i = 0; i < s->nindex; i++) x->w.lo[i] = x->w.hi[i] = 0;
    for (int r = 0; r < rank; r++) {  // free index i is the axis r that it writes
      int64_t coef;
      const int i = eini_row_index(&s->out_map, r, &coef);
      x->w.lo[i] = home->lo[r];
      x->w.hi[i] = home->hi[r];
    }
    EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, x->w.hi, &x->sum[q]));
  }
  return EIN_OK;
}

// Memory of tensors that nothing behind statement k reads.
static void eini_steps_forget(eini_staged *x, int k) {
  const ein_graph *g = x->d->g;
  for (int o = 0; o <= g->stmt[k].noperand; o++) {
    const int t = o < g->stmt[k].noperand ? g->stmt[k].operand[o] : g->stmt[k].out;
    int from, to;
    eini_rooms_life(g, t, &from, &to);
    if (to == k + 1 && g->tensor[t].role == EIN_ROLE_TEMP) eini_arena_free(&x->lives[t]);
  }
}

static ein_status eini_steps_stmt(eini_staged *x, int k) {
  ein_status st = eini_steps_tensor(x, x->d->g->stmt[k].out, 0);
  if (st == EIN_OK) st = eini_steps_begin(x, k);
  if (st == EIN_OK && x->run != NULL) st = eini_steps_rooms_of(x);
  if (st == EIN_OK && !x->whole) st = eini_steps_sums(x);
  if (x->run != NULL) st = eini_dist_agree(&x->d->fabric, st);  // before the first message
  EINI_TRY(st);
  const eini_stmt *s = x->stmt;
  const eini_tensor *out = &x->d->g->tensor[s->out];
  EINI_TRY(eini_steps_walk(x));
  if (x->run == NULL) EINI_TRY(eini_steps_rooms_of(x));
  for (int q = 0; q < x->nmemory && !x->whole && x->failed == EIN_OK; q++) {
    const eini_step_box *home = eini_steps_home(x, s->out, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    for (int r = 0; r < out->rank; r++) x->w.from[r] = home->hi[r] - home->lo[r];
    EINI_TRY(eini_steps_merge(x, EIN_FOLD_NONE, out->rank, x->w.from, out->dtype, home->data,
                              home->stride, ein_dtype_compute(s->type), x->sum[q].data,
                              x->sum[q].stride));
  }
  return EIN_OK;
}

// ---- all of a graph ----

static ein_status eini_steps_memory(eini_staged *x) {
  const ein_dist *d = x->d;
  x->nmemory = d->fabric.shared ? 1 : d->fabric.places;
  x->width = d->fabric.threads && d->executor.parallel_for != NULL ? d->width : 1;
  x->home = EINI_NEW(x->a, eini_step_box, d->g->ntensor * x->nmemory);
  x->sum = EINI_NEW(x->a, eini_step_box, x->nmemory);
  x->lives = EINI_NEW(x->a, eini_arena, d->g->ntensor);
  if (x->home == NULL || x->sum == NULL || x->lives == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) eini_arena_init(&x->lives[t], &d->al);
  for (int t = 0; t < d->g->ntensor; t++)
    if (d->g->tensor[t].role == EIN_ROLE_INPUT) EINI_TRY(eini_steps_tensor(x, t, 0));
  if (x->run == NULL) return EIN_OK;
  x->work = EINI_NEW(x->a, char, (size_t)x->width * (x->d->plans.workspace + EINI_ALIGN));
  return x->work == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Plans (run NULL) or runs (plans NULL) all statements.
static ein_status eini_steps_all(const ein_dist *d, eini_block_plans *plans, const ein_run *run,
                                 ein_dist_stats *stats) {
  const ein_graph *g = d->g;
  eini_arena arena, scratch;
  eini_staged x;
  memset(&x, 0, sizeof x);
  eini_arena_init(&arena, &d->al);
  x.d = d;
  x.plans = plans;
  x.s = d->desc.schedule;
  x.run = run;
  x.stats = stats;
  x.a = &arena;
  x.scratch = &scratch;
  ein_status st = eini_steps_memory(&x);
  if (st == EIN_OK && run != NULL && d->fabric.room_fn != NULL) {
    size_t most = 0;  // two messages at once, which lie behind each other
    for (int k = 0; k < d->nstmt; k++)
      if (d->rooms[k].message > most) most = d->rooms[k].message;
    st = d->fabric.room_fn(d->fabric.user, 2, (int64_t)most);
  }
  if (run != NULL) st = eini_dist_agree(&d->fabric, st);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) {
    eini_arena_init(&scratch, &d->al);
    st = eini_steps_stmt(&x, k);
    eini_arena_free(&scratch);
    eini_steps_forget(&x, k);
  }
  if (st == EIN_OK) st = x.failed;
  for (int t = 0; t < g->ntensor && st == EIN_OK && run != NULL && x.nmemory > 1; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) st = eini_steps_tensor(&x, t, 1);
  for (int t = 0; t < g->ntensor && x.lives != NULL; t++) eini_arena_free(&x.lives[t]);
  eini_arena_free(&arena);
  return st;
}

// Why a statement cannot be run so; NULL: it can.
static const char *eini_steps_reason(const ein_schedule *sc, const eini_stmt *s,
                                     const eini_loops *n) {
  const eini_tensor *t = &sc->g->tensor[s->out];
  const ein_distribution *d = sc->place[s->out];
  int64_t coef;
  if (n->loop == NULL) return "it has too many indices";
  if (d == NULL || t->nstmt != 1) return "nothing says where its result lies: place it";
  for (int m = 0; m < d->grid->ndim; m++)
    if (d->held[m].kind == EINI_HELD_EVERY && d->grid->dim[m].extent > 1)
      return "its result is replicated";
  if (eini_fold_carries(s->fold) &&
      (eini_loops_folds(n, n->nstep - 1) || eini_stmt_empty(s, s->nfree, s->nindex)))
    return "its fold has states of several scalars, and is cut";
  if (sc->g->ordered && !eini_order_exact(sc->g, s) && eini_loops_folds(n, n->nstep - 1))
    return "it is deterministic, and its fold would be cut";
  if (t->rank > EINI_NAMES_MAX) return "its result has too many axes";
  int plain = s->rest == EIN_REST_ERROR && t->rank == s->nfree;
  for (int r = 0; r < t->rank && plain; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    plain = i >= 0 && coef == 1 && s->out_map.offset[r] == 0 && s->index[i].extent == t->shape[r];
  }
  return plain ? NULL : "it does not write each element of its result by an index of its own";
}

static ein_status eini_steps_prepare(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  ein_dist_stats made;
  memset(&made, 0, sizeof made);
  if (s->g != d->g) return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is of another "
                                                                  "graph");
  if (s->grid == NULL || s->grid->places != d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is not for the fabric's places");
  for (int k = 0; k < d->nstmt; k++) {
    const char *why = eini_steps_reason(s, &d->g->stmt[k], &s->nest[k]);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.places);
  d->rooms = EINI_NEW(&d->arena, eini_steps_rooms, d->nstmt);
  if (made.stmt_bytes == NULL || d->peak == NULL || d->rooms == NULL) return EIN_ERR_NO_MEMORY;
  const ein_status st = eini_steps_all(d, &d->plans, NULL, &made);
  if (st == EIN_ERR_TOO_LARGE)
    return eini_dist_refuse(ctx, st, "there are too many points and steps to run");
  EINI_TRY(st);
  double *peak = EINI_NEW(&d->arena, double, d->fabric.places);
  if (peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_schedule_rooms(&d->arena, s, d->desc.inputs, NULL, peak));
  for (int q = 0; q < d->fabric.places; q++) {
    d->peak[q] = (int64_t)peak[q];
    d->info.peak_bytes = eini_max64(d->info.peak_bytes, d->peak[q]);
  }
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
}
