// ================================================================================================
// >>steps-run  graphs under a schedule
// Takes a schedule and the bindings of one call; gives places what they hold, runs statements, and
// returns what places hold of outputs. Without bindings it makes the plans.
// ================================================================================================

// The loop of a step whose iterations threads share, -1: none.
static int eini_steps_parallel(const eini_staged *x) {
  const eini_loops *n = x->w.n;
  for (int k = n->nstep; k < n->norder && x->d->fabric.threads && x->folder == NULL; k++) {
    const eini_loop *v = &n->loop[n->order[k]];
    if (v->parallel && v->made != EINI_MADE_FUSED && v->extent > 1) return n->order[k];
  }
  return -1;
}

static ein_status eini_steps_shares_new(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const int v = eini_steps_parallel(x);
  const int64_t nparam = x->d->g->nparam;
  if (v < 0) return EIN_OK;
  const int64_t n = eini_min64(x->w.n->loop[v].extent, EINI_SHARES_MAX);
  pt->share = EINI_NEW(x->scratch, eini_step_share, n);
  if (pt->share == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < n; k++) {
    eini_step_share *h = &pt->share[k];
    h->lo = EINI_NEW(x->scratch, int64_t, s->nindex);
    h->hi = EINI_NEW(x->scratch, int64_t, s->nindex);
    h->in = EINI_NEW(x->scratch, const void *, s->noperand);
    h->param = EINI_NEW(x->scratch, ein_scalar, nparam + s->nindex);
    if (h->lo == NULL || h->hi == NULL || h->in == NULL || h->param == NULL)
      return EIN_ERR_NO_MEMORY;
    memcpy(h->param, pt->param, (size_t)(nparam + s->nindex) * sizeof *h->param);
  }
  return EIN_OK;
}

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
  EINI_TRY(eini_steps_box_new(a, &pt->block, s->nfree));
  for (int k = 0; k <= s->noperand; k++)
    EINI_TRY(eini_steps_box_new(a, &pt->box[k], k < s->noperand ? g->tensor[s->operand[k]].rank
                                                                : s->nfree));
  return eini_steps_shares_new(x, pt);
}

// Shares out the block of a step by the parallel loop, where its iterations are one piece of an
// index behind another.
static ein_status eini_steps_shares(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int v = pt->share == NULL || pt->plan < 0 ? -1 : eini_steps_parallel(x);
  const eini_step_box *to = pt->apart ? &pt->block : &pt->box[s->noperand];
  int64_t *len = x->w.lo;
  pt->nshare = 0;
  if (v < 0) return EIN_OK;
  const eini_loop *loop = &x->w.n->loop[v];
  const int i = loop->index;
  const int64_t n = eini_min64(loop->extent, EINI_SHARES_MAX);
  int64_t at = pt->lo[i];
  for (int64_t k = 0; k < n; k++) {
    eini_step_share *h = &pt->share[k];
    eini_tour_values(&x->w, step, x->w.n->nstep);
    x->w.value[v] = eini_piece_start(loop->extent, n, k);
    eini_loops_ranges(x->w.n, x->w.value, h->lo, h->hi);
    const int64_t from = h->lo[i];
    x->w.value[v] = eini_piece_start(loop->extent, n, k + 1) - 1;
    eini_loops_ranges(x->w.n, x->w.value, h->lo, h->hi);
    h->lo[i] = from;
    if (from != at && h->hi[i] > from) return EIN_OK;  // pieces lie between each other
    at = eini_max64(at, h->hi[i]);
  }
  if (at != pt->hi[i]) return EIN_OK;
  for (int64_t k = 0; k < n; k++) {
    eini_step_share *h = &pt->share[k];
    h->plan = -1;
    if (eini_zrange_empty(s->nindex, h->lo, h->hi)) continue;
    eini_steps_bind(x, pt, h->lo, h->hi, h->in, h->param);
    h->to = eini_steps_at(to, s->nfree, h->lo, x->wide);
    for (int c = 0; c < s->nindex; c++) len[c] = h->hi[c] - h->lo[c];
    EINI_TRY(eini_steps_plan(x, len, pt->box, to->stride, &h->plan));
  }
  pt->nshare = (int)n;
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
  return eini_tour_owners(&x->w, x->w.owners[n], eini_tour_wide(&x->w), 1);
}

// Tells who asks for events. level: see ein_dist_event.
static ein_status eini_steps_event(const eini_staged *x, int level, int worker, int64_t place,
                                   int64_t step, double begin) {
  const ein_dist *d = x->d;
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = x->number;
  v.place = (int)place;
  v.level = level;
  v.worker = worker;
  v.step = step;
  v.begin = begin;
  v.end = eini_steps_now(d);
  return d->desc.event_fn(d->desc.event_user, &v);
}

// Fetches, or, after, sends home, of point i; tells who asks, if that moved data.
static ein_status eini_steps_moves(eini_staged *x, int64_t i, int64_t step, int after) {
  const int64_t before = x->info.messages;
  const double begin = eini_steps_now(x->d);
  EINI_TRY(after ? eini_steps_after(x, step) : eini_steps_before(x, &x->point[i], step));
  if (!after) EINI_TRY(eini_steps_shares(x, &x->point[i], step));
  if (x->run == NULL || x->d->desc.event_fn == NULL || x->nmemory == 1 ||
      x->info.messages == before || !eini_steps_mine(x, x->w.move.place))
    return EIN_OK;
  return eini_steps_goes_on(x, eini_steps_event(x, after ? EINI_STEPS_SENDS : EINI_STEPS_FETCHES,
                                                0, x->w.move.place, step, begin));
}

// Computes the block of a step.
static ein_status eini_steps_compute(const eini_staged *x, int worker, eini_step_point *pt) {
  const eini_step_box *acc = &pt->box[x->stmt->noperand], *to = pt->apart ? &pt->block : acc;
  const int rank = x->stmt->nfree;
  void *out[4] = {NULL, NULL, NULL, NULL};
  out[0] = pt->to;
  if (x->folder != NULL) {
    eini_steps_identity(x, to);
    eini_states_at(x->folder, eini_steps_volume(rank, to->lo, to->hi), to->data, out);
  }
  return eini_steps_execute(x, worker, pt->plan, pt->in, out, pt->param);
}

// Merges it into the partial result.
static ein_status eini_steps_join(const eini_staged *x, int worker, eini_step_point *pt) {
  const eini_step_box *acc = &pt->box[x->stmt->noperand];
  const int rank = x->stmt->nfree;
  int64_t shape[EINI_NAMES_MAX];
  if (!pt->apart) return EIN_OK;
  if (x->folder == NULL)
    return eini_steps_merge_run(x, worker, x->stmt->fold, pt->merge,
                                eini_steps_at(acc, rank, pt->lo, x->wide), pt->to);
  for (int r = 0; r < rank; r++) shape[r] = pt->hi[r] - pt->lo[r];
  eini_steps_states(x->folder, rank, shape, acc, pt->lo, eini_steps_volume(rank, pt->lo, pt->hi),
                    pt->to);
  return EIN_OK;
}

// Worker i takes every width-th of the blocks of a step, or of their shares.
static void eini_steps_worker(void *arg, int i) {
  eini_staged *x = (eini_staged *)arg;
  const ein_grid *g = x->w.n->grid;
  int64_t job = 0;
  for (int64_t q = 0; q < g->npoint; q++) {
    eini_step_point *pt = &x->point[q];
    if (!pt->works || pt->plan < 0) continue;
    for (int k = 0; k < pt->nshare || k == 0; k++) {
      if (job++ % x->width != i) continue;
      const double begin = eini_steps_now(x->d);
      eini_step_share *h = pt->nshare > 0 ? &pt->share[k] : NULL;
      ein_status *st = h != NULL ? &h->st : &pt->st;
      void *out[1];
      out[0] = h != NULL ? h->to : NULL;
      if (h == NULL) *st = eini_steps_compute(x, i, pt);
      else *st = h->plan < 0 ? EIN_OK : eini_steps_execute(x, i, h->plan, h->in, out, h->param);
      if (h == NULL && *st == EIN_OK) *st = eini_steps_join(x, i, pt);
      if (*st == EIN_OK && x->d->desc.event_fn != NULL)
        *st = eini_steps_event(x, -1, i, eini_grid_place(g, q), x->step, begin);
    }
  }
}

// And then merges those that were shared out.
static void eini_steps_joiner(void *arg, int i) {
  eini_staged *x = (eini_staged *)arg;
  for (int64_t q = i; q < x->w.n->grid->npoint; q += x->width) {
    eini_step_point *pt = &x->point[q];
    if (!pt->works || pt->plan < 0 || pt->nshare == 0) continue;
    for (int k = 0; k < pt->nshare && pt->st == EIN_OK; k++) pt->st = pt->share[k].st;
    if (pt->st == EIN_OK) pt->st = eini_steps_join(x, i, pt);
  }
}

static void eini_steps_each(eini_staged *x, void (*task)(void *arg, int i)) {
  const ein_executor *e = &x->d->executor;
  if (x->width > 1) e->parallel_for(x->width, task, x, e->user);
  else task(x, 0);
}

static ein_status eini_steps_walk(eini_staged *x) {
  const int64_t n = x->w.n->grid->npoint;
  for (int64_t step = 0; step < x->w.n->steps; step++) {
    memset(x->w.sent, 0, (size_t)x->d->fabric.places * sizeof *x->w.sent);
    x->step = step;
    for (int64_t i = 0; i < n; i++) {
      if (!eini_steps_goto(x, i)) continue;
      EINI_TRY(eini_steps_moves(x, i, step, 0));
    }
    if (x->run != NULL) eini_steps_each(x, eini_steps_worker);
    if (x->run != NULL && eini_steps_parallel(x) >= 0) eini_steps_each(x, eini_steps_joiner);
    for (int64_t i = 0; i < n; i++) {
      if (!eini_steps_goto(x, i)) continue;
      EINI_TRY(eini_steps_goes_on(x, x->point[i].st));
      EINI_TRY(eini_steps_moves(x, i, step, 1));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_moved(void *user, const ein_schedule_move *m) {
  eini_staged *x = (eini_staged *)user;
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
  int64_t key = 8 + 3 * (int64_t)s->nfree + s->nindex;
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
  x->message = x->spare = NULL;
  x->room = x->spare_room = 0;
  EINI_TRY(eini_tour_init(x->scratch, &x->w));
  if (eini_tour_work(&x->w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  x->whole = eini_loops_whole(x->w.n);
  x->folder = NULL;
  if (eini_loops_states(x->w.n)) {
    EINI_TRY(eini_states_folder(g, s, &x->states));
    x->folder = &x->states;
  }
  x->wide = x->folder != NULL ? eini_states_bytes(x->folder) : ein_dtype_size(eini_steps_type(x));
  for (int o = 0; o < s->noperand; o++) key += g->tensor[s->operand[o]].rank;
  x->key = EINI_NEW(x->scratch, int64_t, key);
  x->cut = EINI_NEW(x->scratch, int64_t, s->nindex);
  x->stride = EINI_NEW(x->scratch, const int64_t *, s->noperand);
  x->point = EINI_NEW(x->scratch, eini_step_point, x->w.n->grid->npoint);
  if (x->key == NULL || x->cut == NULL || x->stride == NULL || x->point == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++)
    x->cut[i] = eini_loops_cuts(x->w.n, i, x->w.n->nstep - 1) ? 2 : 1;
  const int v = eini_steps_parallel(x);
  if (v >= 0) x->cut[x->w.n->loop[v].index] = 2;
  for (int64_t i = 0; i < x->w.n->grid->npoint; i++) {
    (void)eini_steps_goto(x, i);
    EINI_TRY(eini_steps_point_new(x, &x->point[i]));
    if (x->point[i].works && (x->run == NULL || eini_steps_mine(x, x->w.move.place)))
      eini_dist_count(x->stats, k, x->w.move.place, x->w.n->steps, &nothing);
  }
  return EIN_OK;
}

// ---- tensors at places ----

// The hull of what owners hold at a place becomes box b; axes: see eini_hull.
static ein_status eini_steps_hull(eini_arena *a, const eini_staged *x, const eini_owners *o, int n,
                                  int axes, int64_t place, eini_step_box *b) {
  eini_hull h;
  EINI_TRY(eini_hull_init(a, o, n, axes, &h));
  EINI_TRY(eini_owners_hull(a, x->d->g, o, n, place, &h));
  for (int r = 0; r < h.rank; r++) b->lo[r] = h.lo[r], b->hi[r] = h.hi[r];
  return EIN_OK;
}

// A tensor between a place and the memory of the caller.
typedef struct eini_steps_handing {
  const eini_stmt *s;       // whose free indices the boxes are of
  int back;                 // from the place to the caller
  size_t size;
  eini_step_box *place;
  const eini_step_box *caller;
} eini_steps_handing;

static ein_status eini_steps_give(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_handing *c = (const eini_steps_handing *)user;
  const int n = c->s->nfree;
  int64_t shape[EINI_NAMES_MAX], a[EINI_NAMES_MAX], b[EINI_NAMES_MAX];
  if (eini_zrange_empty(n, lo, hi)) return EIN_OK;
  for (int i = 0; i < n; i++) shape[i] = hi[i] - lo[i];
  char *p = eini_steps_written(c->s, c->place, lo, c->size, a);
  char *w = eini_steps_written(c->s, c->caller, lo, c->size, b);
  if (c->back) eini_dist_copy(n, shape, w, b, p, a, c->size);
  else eini_dist_copy(n, shape, p, a, w, b, c->size);
  return EIN_OK;
}

// Zeros for all elements of a box.
static void eini_steps_clear(const eini_step_box *b, int rank, size_t size) {
  static const char zero[16] = {0};
  int64_t shape[EINI_NAMES_MAX], none[EINI_NAMES_MAX];
  for (int r = 0; r < rank; r++) shape[r] = b->hi[r] - b->lo[r], none[r] = 0;
  if (b->data != NULL && !eini_zrange_empty(rank, b->lo, b->hi))
    eini_dist_copy(rank, shape, b->data, b->stride, zero, none, size);
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

// Calls for all boxes of a tensor at a place.
static ein_status eini_steps_share_all(eini_arena *a, const eini_staged *x, const eini_owners *o,
                                       int n, int64_t place, eini_steps_handing *c) {
  for (int i = 0; i < n; i++) {
    c->s = o[i].s;
    EINI_TRY(eini_owners_boxes(a, x->d->g, &o[i], place, eini_steps_give, c));
  }
  return EIN_OK;
}

// Memory of a tensor at places and what they hold of an input; back: what they hold of an output.
static ein_status eini_steps_tensor(eini_staged *x, int t, int back) {
  const eini_tensor *e = &x->d->g->tensor[t];
  const int input = e->role == EIN_ROLE_INPUT, port = x->d->tensor[t].port >= 0;
  eini_arena *a = &x->lives[t];
  eini_step_box caller;
  eini_owners *o;
  int n;
  EINI_TRY(eini_steps_caller(x, t, &caller));
  EINI_TRY(eini_schedule_owners(a, x->s, t, &o, &n));
  const int own = input ? x->nmemory == 1 || n == 0 : x->nmemory == 1 && port;
  const int zeros = !back && !input && eini_steps_zeros(x->d, t);
  eini_steps_handing c = {NULL, back, ein_dtype_size(e->dtype), NULL, &caller};
  if (zeros) eini_steps_clear(&caller, e->rank, c.size);
  for (int q = 0; q < x->nmemory; q++) {
    eini_step_box *b = c.place = eini_steps_home(x, t, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    if (own) {
      *b = caller;
      continue;
    }
    if (!back) EINI_TRY(eini_steps_box_new(a, b, e->rank));
    for (int r = 0; r < e->rank && x->nmemory == 1; r++) b->hi[r] = e->shape[r];
    if (!back && x->nmemory > 1) EINI_TRY(eini_steps_hull(a, x, o, n, 1, q, b));
    int64_t shape[EINI_NAMES_MAX];
    for (int r = 0; r < e->rank; r++) shape[r] = b->hi[r] - b->lo[r];
    eini_dist_dense(e->rank, shape, b->stride);
    const size_t bytes = eini_steps_bytes(e->rank, shape, c.size);
    if (!back && x->run != NULL && (b->data = EINI_NEW(a, char, bytes)) == NULL)
      return EIN_ERR_NO_MEMORY;
    if (zeros) eini_steps_clear(b, e->rank, c.size);
    if (x->run != NULL && (back || input)) EINI_TRY(eini_steps_share_all(a, x, o, n, q, &c));
  }
  return EIN_OK;
}

// Sums at places begin as folds of nothing.
static ein_status eini_steps_sums(eini_staged *x) {
  static const double none[2] = {0, 0};
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point[0];  // has a task in every nest
  for (int o = 0; o < s->noperand; o++) {
    memcpy(pt->box[o].stride, eini_steps_home(x, s->operand[o], x->d->fabric.first)->stride,
           (size_t)x->d->g->tensor[s->operand[o]].rank * sizeof(int64_t));
    pt->in[o] = none;  // nothing is read
  }
  for (int q = 0; q < x->nmemory; q++) {
    eini_step_box *b = &x->sum[q];
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    EINI_TRY(eini_steps_box_new(x->scratch, b, s->nfree));
    for (int i = 0; i < s->nfree && x->nmemory == 1; i++) b->hi[i] = s->index[i].extent;
    if (x->nmemory > 1)
      EINI_TRY(eini_steps_hull(x->scratch, x, x->w.owners[s->noperand], 1, 0, q, b));
    EINI_TRY(eini_steps_results(x, b, b->lo, b->hi, 0));
    EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, b));
  }
  return EIN_OK;
}

// Sums become what is stored.
static ein_status eini_steps_finish(eini_staged *x) {
  const eini_stmt *s = x->stmt;
  int64_t shape[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  for (int q = 0; q < x->nmemory; q++) {
    const eini_step_box *b = &x->sum[q];
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    if (eini_zrange_empty(s->nfree, b->lo, b->hi)) continue;
    for (int i = 0; i < s->nfree; i++) shape[i] = b->hi[i] - b->lo[i];
    char *to = eini_steps_written(s, eini_steps_home(x, s->out, q), b->lo,
                                  ein_dtype_size(x->d->g->tensor[s->out].dtype), stride);
    EINI_TRY(eini_steps_store(x, shape, to, stride, b, b->lo));
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
  const int t = x->d->g->stmt[k].out;
  ein_status st = x->d->tensor[t].define[0] == k ? eini_steps_tensor(x, t, 0) : EIN_OK;
  if (st == EIN_OK) st = eini_steps_begin(x, k);
  if (st == EIN_OK && x->run != NULL) st = eini_steps_rooms_of(x);
  if (st == EIN_OK && !x->whole) st = eini_steps_sums(x);
  if (x->run != NULL) st = eini_dist_agree(&x->d->fabric, st);  // before the first message
  EINI_TRY(st);
  EINI_TRY(eini_steps_walk(x));
  if (x->run == NULL) EINI_TRY(eini_steps_rooms_of(x));
  return x->whole || x->failed != EIN_OK ? EIN_OK : eini_steps_finish(x);
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
    size_t room = 0;  // two messages at once, which lie behind each other
    for (int k = 0; k < d->nstmt; k++)
      if (d->rooms[k].message > room) room = d->rooms[k].message;
    st = d->fabric.room_fn(d->fabric.user, 2, (int64_t)room);
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
static const char *eini_steps_reason(const ein_schedule *sc, int k) {
  const eini_stmt *s = &sc->g->stmt[k];
  const eini_loops *n = &sc->nest[k];
  int used[EINI_NAMES_MAX] = {0};
  int64_t coef;
  eini_owners o;
  memset(&o, 0, sizeof o);
  eini_schedule_home(sc, k, &o);
  if (n->loop == NULL) return "it has too many indices";
  if (o.d == NULL) return "nothing says where its result lies: place it";
  if (sc->g->ordered && !eini_order_exact(sc->g, s) && eini_loops_folds(n, n->nstep - 1))
    return "it is deterministic, and its fold would be cut";
  if (s->out_map.rows > EINI_NAMES_MAX || s->nfree > EINI_NAMES_MAX)
    return "its result has too many axes";
  for (int r = 0; r < s->out_map.rows && o.rows; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    if (eini_map_terms(&s->out_map, r) > 1 || (i >= 0 && used[i]++))
      return "its result is placed, and not written by an index for each axis";
  }
  return NULL;
}

// The peaks of the places of this process, which the machine of the schedule must have.
static ein_status eini_steps_peaks(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  double *place = EINI_NEW(&d->arena, double, d->fabric.places);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (place == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_schedule_rooms(&d->arena, s, d->desc.inputs, NULL, place));
  for (int q = 0; q < d->fabric.count; q++) {
    d->peak[q] = (int64_t)place[d->fabric.first + q];
    if (!d->fabric.shared) d->info.place_bytes = eini_max64(d->info.place_bytes, d->peak[q]);
  }
  for (int q = 0; q < d->fabric.places; q++)
    if (s->machine.memory > 0 && place[q] > s->machine.memory)
      return eini_dist_refuse(ctx, EIN_ERR_TOO_LARGE, "under the schedule a place has %.0f bytes "
                              "alive, more than the %.0f it may have", place[q],
                              s->machine.memory);
  return EIN_OK;
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
    const char *why = eini_steps_reason(s, k);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->rooms = EINI_NEW(&d->arena, eini_steps_rooms, d->nstmt);
  if (made.stmt_bytes == NULL || d->rooms == NULL) return EIN_ERR_NO_MEMORY;
  ein_status st = eini_steps_all(d, &d->plans, NULL, &made);
  if (st == EIN_ERR_TOO_LARGE)
    return eini_dist_refuse(ctx, st, "there are too many points and steps to run");
  EINI_TRY(st);
  EINI_TRY(eini_steps_peaks(ctx, d));
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
}
