// ================================================================================================
// >>steps-plan  what places do under a schedule
// Takes a schedule; gives, for the places of this process, plans of blocks, messages, memory and
// jobs. Who sends to these places, and who receives, is found by going through loops as long as
// what is read, or written, may lie at these places.
// ================================================================================================

// ---- tasks and messages ----

typedef struct eini_steps_noting {
  eini_staged x;
  eini_owners *o;           // whose part is at hand
  int owner, mine;          // which of its tensor's; is the point a place's of this process?
  int32_t *tag[2];          // by memory and other place: messages out of it, and into it
  int64_t *last;            // by memory: the last step with messages
  char *fresh;              // by point: nothing is in its partial result yet
  int64_t **near;           // by tensor: the hull of what the places of this process hold
  eini_arena *a;            // of what follows
  eini_ranked *other;       // what points of other processes do, a heap by eini_steps_when
  int64_t nother, capother;
} eini_steps_noting;

static ein_status eini_steps_note(eini_steps_noting *z, int kind, int64_t place, int64_t peer,
                                  int64_t bytes) {
  eini_staged *x = &z->x;
  const ein_dist *d = x->d;
  eini_steps_stmt *e = x->e;
  eini_step_move *all = (eini_step_move *)eini_grow(x->plans->a, e->move, e->nmove, &e->capmove,
                                                    sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  e->move = all;
  eini_step_move *v = &all[e->nmove++];
  const int64_t i = eini_steps_memory(d, place);
  memset(v, 0, sizeof *v);
  v->kind = kind;
  v->place = (int32_t)(place - d->fabric.first);
  v->peer = (int32_t)peer;
  v->access = e->w.move.operand < 0 ? x->stmt->noperand : e->w.move.operand;
  v->owner = z->owner;
  v->job = v->group = -1;
  v->point = e->w.move.point;
  v->step = e->w.move.step;
  v->bytes = bytes;
  if (z->o == NULL) v->pieces = -1;
  for (int r = 0; z->o != NULL && r < z->o->rank; r++)
    v->pieces = v->pieces * z->o->axis[r].n + z->o->axis[r].meet[z->o->pick[r]];
  if (kind == EINI_JOB_NONE) return EIN_OK;
  v->tag = z->tag[kind != EINI_JOB_SEND][i * d->fabric.places + peer]++;
  if (z->last[i] != v->step) e->nround[i]++;
  z->last[i] = v->step;
  v->round = (int32_t)(e->nround[i] - 1);
  return EIN_OK;
}

// What a place holds itself of a box of its point's.
static ein_status eini_steps_part(eini_tour *w, eini_owners *o, int64_t owner) {
  eini_steps_noting *z = (eini_steps_noting *)w->user;
  z->o = o;
  if (owner != w->move.place || !z->mine || eini_steps_one(z->x.d)) return EIN_OK;
  return eini_steps_note(z, EINI_JOB_NONE, owner, owner, 0);
}

static ein_status eini_steps_moved(void *user, const ein_schedule_move *m) {
  eini_steps_noting *z = (eini_steps_noting *)user;
  const ein_dist *d = z->x.d;
  const int sends = eini_dist_driven(d, m->from), receives = eini_dist_driven(d, m->to);
  int64_t *to = z->x.e->total + 4 * (m->to - d->fabric.first);
  int64_t *from = z->x.e->total + 4 * (m->from - d->fabric.first);
  if (receives) to[1]++, to[2] += m->bytes;
  if (sends) from[3] += m->bytes;
  if (d->fabric.shared) return EIN_OK;
  if (receives) EINI_TRY(eini_steps_note(z, EINI_JOB_RECEIVE, m->to, m->from, m->bytes));
  return sends ? eini_steps_note(z, EINI_JOB_SEND, m->from, m->to, m->bytes) : EIN_OK;
}

// May the box at hand have a part at a place of this process?
static int eini_steps_near(const eini_steps_noting *z, int t) {
  const eini_tour *w = &z->x.e->w;
  const int rank = z->x.d->g->tensor[t].rank;
  for (int r = 0; r < rank; r++)
    if (w->from[r] >= z->near[t][2 * r + 1] || w->to[r] <= z->near[t][2 * r]) return 0;
  return 1;
}

// The hulls of eini_steps_near.
static ein_status eini_steps_hulls(eini_arena *a, eini_steps_noting *z) {
  const ein_dist *d = z->x.d;
  const int64_t memories = eini_steps_memories(d);
  if ((z->near = EINI_NEW(a, int64_t *, d->g->ntensor)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) {
    const int rank = d->g->tensor[t].rank;
    int64_t *at = z->near[t] = EINI_NEW(a, int64_t, 2 * rank);
    if (at == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t i = 0; i < memories; i++) {
      const eini_step_box *b = &d->home[t * memories + i].box;
      for (int r = 0; r < rank && !eini_zrange_empty(rank, b->lo, b->hi); r++) {
        const int first = at[2 * r] == at[2 * r + 1];
        at[2 * r] = first ? b->lo[r] : eini_min64(at[2 * r], b->lo[r]);
        at[2 * r + 1] = eini_max64(at[2 * r + 1], b->hi[r]);
      }
    }
  }
  return EIN_OK;
}

// What access k of the point at hand moves before a step (operands) or behind it (the result), as
// far as places of this process have to do with it.
static ein_status eini_steps_access(eini_steps_noting *z, int64_t step, int k) {
  eini_tour *w = &z->x.e->w;
  const eini_stmt *s = w->n->s;
  const int result = k == s->noperand;
  if (w->nowners[k] == 0 || (!result && w->again[k] >= 0)) return EIN_OK;
  if (!eini_tour_due(w, step, k, result) || !eini_tour_box(w, step, k)) return EIN_OK;
  if (!z->mine && !eini_steps_near(z, result ? s->out : s->operand[k])) return EIN_OK;
  const int64_t bytes = result ? eini_tour_wide(w)
                               : (int64_t)ein_dtype_size(w->w->g->tensor[s->operand[k]].dtype);
  w->move.operand = result ? -1 : k;
  w->move.step = step;
  for (int i = 0; i < w->nowners[k]; i++) {
    z->owner = i;
    EINI_TRY(eini_tour_owners(w, &w->owners[k][i], bytes, result));
  }
  z->o = NULL;
  return result && z->mine && eini_steps_one(z->x.d)
             ? eini_steps_note(z, EINI_JOB_NONE, w->move.place, w->move.place, 0) : EIN_OK;
}

// The shares of the block at hand, and their plans; 0: it is computed at once.
static ein_status eini_steps_shares(eini_staged *x, int64_t step, int32_t *nshare) {
  const int v = x->point.plan < 0 ? -1 : x->e->parallel;
  *nshare = 0;
  if (v < 0) return EIN_OK;
  const int i = x->w.n->loop[v].index;
  const int64_t n = eini_min64(x->w.n->loop[v].extent, EINI_SHARES_MAX), end = x->point.hi[i];
  int64_t at = x->point.lo[i];
  for (int64_t k = 0; k < n; k++) {
    const int some = eini_steps_share(x, step, k, n);
    if (x->point.lo[i] != at && x->point.hi[i] > x->point.lo[i]) return EIN_OK;
    at = eini_max64(at, x->point.hi[i]);
    if (some) EINI_TRY(eini_steps_share_plan(x));
  }
  if (at == end) *nshare = (int32_t)n;
  return EIN_OK;
}

// A point of a place of this process in a step; first: its moves.
static ein_status eini_steps_task(eini_steps_noting *z, int64_t step, int64_t first) {
  eini_staged *x = &z->x;
  eini_steps_stmt *e = x->e;
  eini_step_task *all = (eini_step_task *)eini_grow(x->plans->a, e->task, e->ntask, &e->captask,
                                                    sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  e->task = all;
  eini_step_task *t = &all[e->ntask++];
  memset(t, 0, sizeof *t);
  t->point = e->w.move.point;
  t->step = step;
  t->first = first;
  t->nmove = e->nmove - first;
  t->ends = (int16_t)eini_tour_due(&e->w, step, x->stmt->noperand, 1);
  e->total[4 * (e->w.move.place - x->d->fabric.first)]++;
  return EIN_OK;
}

// ---- points of other processes ----

// When point `point` fetches before a step, or, after, sends home behind it: what all are ordered
// by. Sums of products of them are below EINI_TOUR_MAX.
static int64_t eini_steps_when(const eini_tour *w, int64_t step, int after, int64_t point) {
  return (2 * step + after) * w->n->grid->npoint + point;
}

// Is a loop that has a value rotated by one that will have one, from position i of the order on?
static int eini_steps_turned(const eini_loops *n, int i) {
  for (int u = 0; u < i; u++) {
    const eini_loop *r = &n->loop[n->order[u]];
    for (int k = 0; k < r->nturn; k++) {
      const int at = eini_loops_at(n, r->turn[k]);
      if (at >= i && at < n->nstep) return 1;
    }
  }
  return 0;
}

// Notes when points of other processes fetch, or send home, what may lie here: access k, with the
// values of the first i loops at hand, and the step that these are of so far.
static ein_status eini_steps_others(eini_steps_noting *z, int k, int i, int64_t step) {
  eini_tour *w = &z->x.e->w;
  const eini_loops *n = w->n;
  const eini_stmt *s = n->s;
  const int result = k == s->noperand;
  if (!eini_steps_turned(n, i) &&
      (!eini_tour_hull(w, k) || !eini_steps_near(z, result ? s->out : s->operand[k])))
    return EIN_OK;
  if (i == n->nstep) {
    const int64_t point = eini_grid_point(n->grid, w->here);
    if (eini_dist_driven(z->x.d, eini_grid_place(n->grid, point))) return EIN_OK;
    eini_ranked *all = (eini_ranked *)eini_grow(z->a, z->other, z->nother, &z->capother,
                                                sizeof *all);
    if (all == NULL) return EIN_ERR_NO_MEMORY;
    z->other = all;
    all[z->nother].what = eini_steps_when(w, step, result, point);
    all[z->nother].key = (double)all[z->nother].what;
    all[z->nother].seq = k;
    eini_heap_rise(all, z->nother++);
    return EIN_OK;
  }
  const int v = n->order[i];
  const eini_loop *x = &n->loop[v];
  const int64_t extent = eini_max64(x->extent, 1);
  if (x->dim < 0 && i > eini_loops_depth(n, k))  // whole: at the first, or the last, of its values
    return eini_steps_others(z, k, i + 1, step * extent + (result ? extent - 1 : 0));
  for (int64_t value = 0; value < extent; value++) {
    w->value[v] = value;
    if (x->dim >= 0) w->here[x->dim] = value;
    EINI_TRY(eini_steps_others(z, k, i + 1, x->dim >= 0 ? step : step * extent + value));
  }
  w->value[v] = -1;
  if (x->dim >= 0) w->here[x->dim] = 0;
  return EIN_OK;
}

static void eini_steps_point(eini_steps_noting *z, int64_t point) {
  eini_tour *w = &z->x.e->w;
  w->move.point = point;
  eini_grid_coords(w->n->grid, point, w->here);
  w->move.place = eini_grid_place(w->n->grid, point);
  z->mine = eini_dist_driven(z->x.d, w->move.place);
}

// What they do before `when`.
static ein_status eini_steps_until(eini_steps_noting *z, int64_t when) {
  const int64_t npoint = z->x.e->w.n->grid->npoint;
  while (z->nother > 0 && z->other[0].what < when) {
    const eini_ranked e = eini_heap_pop(z->other, &z->nother);
    eini_steps_point(z, e.what % npoint);
    EINI_TRY(eini_steps_access(z, e.what / npoint / 2, (int)e.seq));
  }
  return EIN_OK;
}

// All steps of a statement.
static ein_status eini_steps_walk(eini_steps_noting *z) {
  eini_staged *x = &z->x;
  eini_tour *w = &x->e->w;
  const eini_loops *nest = w->n;
  const int n = x->stmt->noperand;
  for (int v = 0; v < nest->nloop; v++) w->value[v] = -1;
  for (int m = 0; m < nest->grid->ndim; m++) w->here[m] = 0;
  for (int k = 0; k <= n && x->d->fabric.count < x->d->fabric.places; k++)
    if (w->nowners[k] > 0) EINI_TRY(eini_steps_others(z, k, 0, 0));
  for (int64_t step = 0; step < nest->steps; step++) {
    for (int64_t q = 0; q < 2 * x->e->npoint; q++) {
      const int64_t first = x->e->nmove, point = x->e->first + q % x->e->npoint;
      const int after = q >= x->e->npoint;
      EINI_TRY(eini_steps_until(z, eini_steps_when(w, step, after, point)));
      eini_steps_point(z, point);
      if (!eini_tour_works(w)) continue;
      for (int k = after ? n : 0; k < n + after; k++) EINI_TRY(eini_steps_access(z, step, k));
      if (!after) EINI_TRY(eini_steps_task(z, step, first));
    }
  }
  return eini_steps_until(z, INT64_MAX);
}

// ---- statements and tensors ----

static ein_status eini_steps_box_new(eini_arena *a, eini_step_box *b, int rank) {
  memset(b, 0, sizeof *b);
  b->lo = EINI_NEW(a, int64_t, rank);
  b->hi = EINI_NEW(a, int64_t, rank);
  b->stride = EINI_NEW(a, int64_t, rank);
  return b->lo == NULL || b->hi == NULL || b->stride == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The hull of what n owners hold at a place becomes box b, dense; axes: see eini_hull. *bytes: of
// elements of `size`.
static ein_status eini_steps_hull(const ein_dist *d, const eini_owners *o, int n, int axes,
                                  int64_t place, size_t size, eini_step_box *b, int64_t *bytes) {
  int64_t shape[EINI_NAMES_MAX];
  eini_arena a;
  eini_hull h;
  eini_arena_init(&a, &d->al);
  ein_status st = eini_hull_init(&a, o, n, axes, &h);
  if (st == EIN_OK) st = eini_owners_hull(&a, d->g, o, n, place, &h);
  for (int r = 0; r < h.rank && st == EIN_OK; r++) {
    b->lo[r] = h.lo[r], b->hi[r] = h.hi[r];
    shape[r] = h.hi[r] - h.lo[r];
  }
  if (st == EIN_OK) {
    eini_dist_dense(h.rank, shape, b->stride);
    *bytes = (int64_t)eini_steps_bytes(h.rank, shape, size);
  }
  eini_arena_free(&a);
  return st;
}

// What a place has of tensor t, as one box of its axes, lo and hi: so many elements. *why: it is
// none; or NULL.
static ein_status eini_steps_owned(const ein_dist *d, int t, int64_t place, int64_t *lo,
                                   int64_t *hi, int64_t *elements, const char **why) {
  const eini_tensor *e = &d->g->tensor[t];
  int64_t coef;
  eini_owners *o;
  eini_arena a;
  eini_hull h;
  int n, any = 1;
  *why = NULL;
  for (int r = 0; r < e->rank; r++) lo[r] = 0, hi[r] = e->shape[r];
  eini_arena_init(&a, &d->al);
  ein_status st = eini_schedule_owners(&a, d->desc.schedule, t, &o, &n);
  if (st == EIN_OK && n == 0 && e->nstmt > 0) *why = "nothing says where it lies";
  if (st == EIN_OK && e->nstmt > 1) *why = "several statements write it";
  for (int k = 0; st == EIN_OK && k < d->nstmt && *why == NULL; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    for (int r = 0; r < e->rank && s->out == t; r++)
      if (s->rest != EIN_REST_ERROR || (eini_plain_row(&s->out_map, r) < 0 &&
                                        (e->shape[r] > 1 ||
                                         eini_row_index(&s->out_map, r, &coef) >= 0)))
        *why = "what places hold of it are not boxes";
  }
  if (st == EIN_OK && *why == NULL && n > 0) {
    st = eini_hull_init(&a, o, n, 1, &h);
    if (st == EIN_OK) st = eini_owners_hull(&a, d->g, o, n, place, &h);
    for (int r = 0; r < e->rank && st == EIN_OK; r++) lo[r] = h.lo[r], hi[r] = h.hi[r];
    const double gap = st == EIN_OK && h.any ? eini_box_volume(e->rank, lo, hi) - h.volume : 0;
    if (gap > 0 || gap < 0) *why = "a place holds several boxes of it";
    any = st == EIN_OK && h.any;
  }
  for (int r = 0; r < e->rank && !any; r++) lo[r] = hi[r] = 0;
  *elements = any ? eini_steps_volume(e->rank, lo, hi) : 0;
  eini_arena_free(&a);
  return st;
}

// What each memory holds of tensor t.
static ein_status eini_steps_tensor(ein_dist *d, int t) {
  const eini_tensor *e = &d->g->tensor[t];
  const int64_t memories = eini_steps_memories(d);
  const int input = e->role == EIN_ROLE_INPUT, one = eini_steps_one(d);
  int64_t shape[EINI_NAMES_MAX];
  eini_owners *o;
  eini_arena a;
  int n;
  eini_arena_init(&a, &d->al);
  ein_status st = eini_schedule_owners(&a, d->desc.schedule, t, &o, &n);
  for (int64_t i = 0; i < memories && st == EIN_OK; i++) {
    eini_step_home *h = &d->home[(int64_t)t * memories + i];
    const int block = d->desc.blocks && d->tensor[t].port >= 0 && n > 0;
    h->own = block || (input ? one || n == 0 : one && d->tensor[t].port >= 0);
    st = eini_steps_box_new(&d->arena, &h->box, e->rank);
    for (int r = 0; r < e->rank && st == EIN_OK; r++) h->box.hi[r] = e->shape[r];
    for (int r = 0; r < e->rank && st == EIN_OK && h->own; r++)
      h->box.stride[r] = d->tensor[t].stride[r];
    h->bytes = d->tensor[t].hi - d->tensor[t].lo;
    if ((h->own && !block) || st != EIN_OK) continue;
    if (block) {
      const char *why;
      st = eini_steps_owned(d, t, d->fabric.first + i, h->box.lo, h->box.hi, &h->bytes, &why);
      h->bytes *= (int64_t)ein_dtype_size(e->dtype);
      for (int r = 0; r < e->rank; r++) shape[r] = h->box.hi[r] - h->box.lo[r];
      eini_dist_dense(e->rank, shape, h->box.stride);
      continue;
    }
    eini_dist_dense(e->rank, e->shape, h->box.stride);
    h->bytes = (int64_t)eini_steps_bytes(e->rank, e->shape, ein_dtype_size(e->dtype));
    if (!one)
      st = eini_steps_hull(d, o, n, 1, d->fabric.first + i, ein_dtype_size(e->dtype), &h->box,
                           &h->bytes);
    h->bytes = eini_dist_pad(h->bytes);
  }
  eini_arena_free(&a);
  return st;
}

// The loop of a step whose iterations threads share, -1: none.
static int eini_steps_parallel(const ein_dist *d, const eini_steps_stmt *e) {
  const eini_loops *n = e->w.n;
  for (int k = n->nstep; k < n->norder && d->fabric.threads && e->folder == NULL; k++) {
    const eini_loop *v = &n->loop[n->order[k]];
    if (v->parallel && v->made != EINI_MADE_FUSED && v->extent > 1) return n->order[k];
  }
  return -1;
}

static ein_status eini_steps_rooms(ein_dist *d, eini_steps_stmt *e) {
  const int64_t memories = eini_steps_memories(d), n = e->w.n->s->noperand + 2;
  int64_t **each[7], from, to;
  eini_arena *a = &d->arena;
  each[0] = &e->nround, each[1] = &e->boxes_at, each[2] = &e->boxes_bytes, each[3] = &e->inbox_at;
  each[4] = &e->inbox_bytes, each[5] = &e->in, each[6] = &e->out;
  for (int i = 0; i < 7; i++)
    if ((*each[i] = EINI_NEW(a, int64_t, 2 * memories)) == NULL) return EIN_ERR_NO_MEMORY;
  eini_grid_points(e->w.n->grid, d->fabric.first, &e->first, &to);
  eini_grid_points(e->w.n->grid, d->fabric.first + d->fabric.count - 1, &from, &to);
  e->npoint = to - e->first;
  e->box = EINI_NEW(a, size_t, e->npoint * n);
  e->box_at = EINI_NEW(a, int64_t, e->npoint * n);
  e->total = EINI_NEW(a, int64_t, 4 * (int64_t)d->fabric.count);
  e->sum = EINI_NEW(a, eini_step_box, memories);
  e->over = EINI_NEW(a, int32_t, memories);
  e->cut = EINI_NEW(a, int64_t, e->w.n->s->nindex);
  return e->box == NULL || e->box_at == NULL || e->total == NULL || e->sum == NULL ||
         e->over == NULL || e->cut == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_steps_stmt_init(ein_dist *d, int k) {
  const ein_schedule *sc = d->desc.schedule;
  const eini_stmt *s = &d->g->stmt[k];
  eini_steps_stmt *e = &d->steps[k];
  e->w.w = sc;
  e->w.n = &sc->nest[k];
  e->w.move.stmt = k;
  EINI_TRY(eini_tour_init(&d->arena, &e->w));
  if (eini_tour_work(&e->w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  e->whole = eini_loops_whole(e->w.n);
  if (eini_loops_states(e->w.n)) {
    EINI_TRY(eini_states_folder(d->g, s, &e->states));
    e->folder = &e->states;
  }
  e->wide = e->folder != NULL ? eini_states_bytes(e->folder)
                              : ein_dtype_size(eini_loops_type(d->g, s));
  e->parallel = eini_steps_parallel(d, e);
  EINI_TRY(eini_steps_rooms(d, e));
  for (int i = 0; i < s->nindex; i++)
    e->cut[i] = eini_loops_cuts(e->w.n, i, e->w.n->nstep - 1) ? 2 : 1;
  if (e->parallel >= 0) e->cut[e->w.n->loop[e->parallel].index] = 2;
  return EIN_OK;
}

// Partial results of nothing, in the memory of sums.
static ein_status eini_steps_sum_begin(eini_staged *x, int64_t memory) {
  const eini_step_box sum = eini_steps_sum(x, memory);
  for (int o = 0; o < x->stmt->noperand; o++)
    x->point.box[o] = eini_steps_home(x, x->stmt->operand[o], 0);
  return eini_steps_nothing(x, &sum);
}

// Stores sums.
static ein_status eini_steps_sum_end(eini_staged *x, int64_t memory) {
  const eini_stmt *s = x->stmt;
  const eini_step_box b = eini_steps_sum(x, memory), home = eini_steps_home(x, s->out, memory);
  int64_t shape[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  if (eini_zrange_empty(s->nfree, b.lo, b.hi)) return EIN_OK;
  if (x->run != NULL && home.data == NULL) return EIN_OK;  // a scalar's block is elsewhere
  for (int i = 0; i < s->nfree; i++) shape[i] = b.hi[i] - b.lo[i];
  const eini_dist_end to = eini_steps_written(
      s, &home, b.lo, ein_dtype_size(x->d->g->tensor[s->out].dtype), stride);
  return eini_steps_store(x, shape, &to, &b, b.lo);
}

// What is merged at home, by memory. *bytes: that takes.
static ein_status eini_steps_sums(eini_staged *x, int64_t *bytes) {
  const ein_dist *d = x->d;
  eini_steps_stmt *e = x->e;
  for (int64_t i = 0; i < eini_steps_memories(d) && !e->whole; i++) {
    int64_t shape[EINI_NAMES_MAX];
    eini_step_box *b = &e->sum[i];
    EINI_TRY(eini_steps_box_new(x->plans->a, b, x->stmt->nfree));
    for (int r = 0; r < x->stmt->nfree; r++) shape[r] = b->hi[r] = x->stmt->index[r].extent;
    eini_dist_dense(x->stmt->nfree, shape, b->stride);
    bytes[i] = (int64_t)eini_steps_bytes(x->stmt->nfree, shape, e->wide);
    if (!eini_steps_one(d))
      EINI_TRY(eini_steps_hull(d, x->w.owners[x->stmt->noperand], 1, 0, d->fabric.first + i,
                               e->wide, b, &bytes[i]));
  }
  return EIN_OK;
}

// What places hold of tensor t, but what is the caller's, is in the provider's memory, or not.
static void eini_steps_settle_homes(ein_dist *d, int t, int away) {
  const int64_t memories = eini_steps_memories(d);
  for (int64_t i = 0; i < memories; i++) {
    eini_step_home *h = &d->home[t * memories + i];
    h->box.away = away && !h->own;
  }
}

// Does the schedule let the provider run a statement?
static int eini_steps_lets(const ein_dist *d, const eini_steps_stmt *e) {
  const char *leaf = e->w.n->leaf;
  return d->away != NULL && (leaf == NULL || strcmp(leaf, d->away->name) == 0);
}

// Tries the statement at hand in the provider's memory, or not. The host merges states, and moves
// what is no box. Where its tensor is, the first statement that writes that says; the only place
// reads it there, by the kernels of the schedule.
static void eini_steps_settle(ein_dist *d, eini_staged *x, int away) {
  eini_steps_stmt *e = x->e;
  const eini_stmt *s = x->stmt;
  const eini_dist_tensor *t = &d->tensor[s->out];
  away &= eini_steps_lets(d, e);
  for (int o = 0; o < s->noperand; o++)
    for (int i = 0; i < x->w.nowners[o]; i++) away &= !x->w.owners[o][i].several;
  e->away = away;
  e->part_away = away && e->folder == NULL;
  away = e->part_away;
  for (int u = 0; u < t->ndefine; u++) {
    const eini_steps_stmt *by = &d->steps[t->define[u]];
    away &= by->folder == NULL && !by->w.owners[by->w.n->s->noperand]->several;
  }
  for (int u = 0; u < t->nread && eini_steps_one(d); u++)
    away &= eini_steps_lets(d, &d->steps[t->read[u]]);
  if (t->define[0] == x->number) eini_steps_settle_homes(d, s->out, away);
}

// Inputs are where a statement reads them.
static void eini_steps_settle_inputs(ein_dist *d) {
  for (int t = 0; t < d->g->ntensor; t++) {
    int away = 0;
    for (int u = 0; u < d->tensor[t].nread; u++) away |= d->steps[d->tensor[t].read[u]].away;
    if (d->g->tensor[t].role == EIN_ROLE_INPUT) eini_steps_settle_homes(d, t, away);
  }
}

// Plans the blocks of the statement at hand, and what leaves and comes home. EIN_ERR_UNSUPPORTED:
// not all of it goes as it was settled.
static ein_status eini_steps_plans(eini_steps_noting *z) {
  eini_staged *x = &z->x;
  eini_steps_stmt *e = x->e;
  const int n = x->stmt->noperand;
  e->plan = 0;
  memset(z->fresh, 0, (size_t)e->npoint);
  for (int64_t i = 0; i < e->ntask; i++) {
    eini_step_task *t = &e->task[i];
    char *fresh = &z->fresh[t->point - e->first];
    if (eini_tour_due(&x->w, t->step, n, 0)) *fresh = 1;
    t->fresh = *fresh;
    eini_steps_goto(x, t->point);
    eini_steps_boxes(x, t->step);
    EINI_TRY(eini_steps_block(x, t, 1));
    if (x->point.plan >= 0) *fresh = 0;
    EINI_TRY(eini_steps_shares(x, t->step, &t->nshare));
  }
  for (int64_t i = 0; i < eini_steps_memories(x->d) && !e->whole; i++) {
    EINI_TRY(eini_steps_sum_begin(x, i));
    EINI_TRY(eini_steps_sum_end(x, i));
  }
  for (int64_t i = 0; i < e->nmove; i++)
    if (e->move[i].access == n) EINI_TRY(eini_steps_homeward(x, &e->move[i]));
  return EIN_OK;
}

// Where the boxes of a statement lie; sums: bytes of those that are merged at home.
static void eini_steps_place_boxes(ein_dist *d, eini_steps_stmt *e, const int64_t *sums) {
  const int64_t n = e->w.n->s->noperand + 2;
  for (int64_t i = 0; i < eini_steps_memories(d); i++)
    e->boxes_bytes[eini_steps_side(d, i, e->part_away)] = eini_dist_pad(sums[i]);
  for (int64_t i = 0; i < e->npoint * n; i++) {
    const int64_t place = eini_grid_place(e->w.n->grid, e->first + i / n);
    int64_t *bytes = &e->boxes_bytes[eini_steps_side(d, eini_steps_memory(d, place),
                                                     eini_steps_is_away(e, (int)(i % n)))];
    e->box_at[i] = *bytes;
    *bytes += eini_dist_pad((int64_t)e->box[i]);
  }
}

// Where its messages do, those of a step behind each other; now: of sides, in and out.
static void eini_steps_place_messages(ein_dist *d, eini_steps_stmt *e, int64_t *last,
                                      int64_t *now[2]) {
  const int64_t memories = eini_steps_memories(d), rounds = d->desc.no_overlap ? 1 : 2;
  for (int64_t i = 0; i < memories; i++) last[i] = -1;
  for (int64_t i = 0; i < e->nmove; i++) {
    eini_step_move *v = &e->move[i];
    const int out = v->kind == EINI_JOB_SEND;
    if (v->kind == EINI_JOB_NONE) continue;
    const int64_t side = eini_steps_side(d, v->place, eini_steps_wired(d, e, v->access));
    for (int k = 0; k < 2 && last[v->place] != v->round; k++)
      now[k][v->place] = now[k][memories + v->place] = 0;
    last[v->place] = v->round;
    v->at = now[out][side];
    now[out][side] += eini_dist_pad(v->bytes);
    int64_t *most = out ? &e->out[side] : &e->in[side];
    *most = eini_max64(*most, now[out][side]);
  }
  for (int64_t i = 0; i < e->nmove; i++) {
    eini_step_move *v = &e->move[i];
    if (v->kind == EINI_JOB_NONE) continue;
    const int64_t side = eini_steps_side(d, v->place, eini_steps_wired(d, e, v->access));
    v->at += v->round % rounds * (e->in[side] + e->out[side]);
    if (v->kind == EINI_JOB_SEND) v->at += e->in[side];
  }
  for (int64_t i = 0; i < 2 * memories; i++)
    e->inbox_bytes[i] = eini_min64(rounds, e->nround[i % memories]) * (e->in[i] + e->out[i]);
}

static ein_status eini_steps_derive(ein_dist *d, int k, eini_steps_noting *z) {
  eini_steps_stmt *e = &d->steps[k];
  const int64_t memories = eini_steps_memories(d);
  int64_t *now[2], *sums;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  z->last = EINI_NEW(&a, int64_t, memories);
  now[0] = EINI_NEW(&a, int64_t, 2 * memories);
  now[1] = EINI_NEW(&a, int64_t, 2 * memories);
  sums = EINI_NEW(&a, int64_t, memories);
  z->fresh = EINI_NEW(&a, char, e->npoint);
  ein_status st = z->last == NULL || now[0] == NULL || now[1] == NULL || sums == NULL ||
                  z->fresh == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int64_t i = 0; i < memories && st == EIN_OK; i++) z->last[i] = -1;
  z->a = &a;
  z->other = NULL;
  z->nother = z->capother = 0;
  e->w.part_fn = eini_steps_part;
  e->w.fn = eini_steps_moved;
  e->w.user = z;
  eini_steps_on(&z->x, k);
  if (st == EIN_OK) st = eini_steps_walk(z);
  if (st == EIN_OK) st = eini_steps_sums(&z->x, sums);
  for (int away = 1, again = st == EIN_OK; again; away = 0) {
    eini_steps_settle(d, &z->x, away);
    st = eini_steps_plans(z);
    again = st == EIN_ERR_UNSUPPORTED && e->away;
  }
  if (st == EIN_OK) eini_steps_place_boxes(d, e, sums);
  if (st == EIN_OK) eini_steps_place_messages(d, e, z->last, now);
  eini_arena_free(&a);
  return st;
}
