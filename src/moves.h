// ================================================================================================
// >>moves  what a statement under a schedule moves, step by step
// Takes a nest and where tensors lie; gives, for a point of the machine and a step, the boxes that
// are fetched, and from whom, and the partial results that go home.
// ================================================================================================

// What of an axis each combination of coordinates holds, in the dimensions that cut the axis.
typedef struct eini_axis_owners {
  int ndim, dim[EINI_NAMES_MAX];
  int64_t n;               // combinations, the last dimension the fastest
  eini_runs *run;
  int64_t nmeet, *meet, *count;  // those that meet the box at hand, and how much of it they hold
} eini_axis_owners;

typedef struct eini_owners {
  const ein_distribution *d;
  eini_axis_owners *axis;
  int64_t *coord, *pick;   // of an owner; rank long
} eini_owners;

// The coordinates of the holders with number k along an axis.
static void eini_axis_coords(const ein_grid *g, const eini_axis_owners *x, int64_t k,
                             int64_t *coord) {
  for (int m = x->ndim - 1; m >= 0; k /= g->dim[x->dim[m--]].extent)
    coord[x->dim[m]] = k % g->dim[x->dim[m]].extent;
}

static ein_status eini_owners_init(eini_arena *a, const ein_distribution *d, const int64_t *shape,
                                   eini_owners *o) {
  const ein_grid *g = d->grid;
  int64_t runs = 0;
  o->d = d;
  o->axis = EINI_NEW(a, eini_axis_owners, d->rank);
  o->coord = EINI_NEW(a, int64_t, g->ndim);
  o->pick = EINI_NEW(a, int64_t, d->rank);
  if (o->axis == NULL || o->coord == NULL || o->pick == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < d->rank; r++) {
    eini_axis_owners *x = &o->axis[r];
    x->n = 1;
    for (int m = 0; m < g->ndim; m++) {
      if (d->held[m].kind != EINI_HELD_PIECES || d->held[m].axis != r) continue;
      x->dim[x->ndim++] = m;
      x->n *= g->dim[m].extent;
    }
    x->run = EINI_NEW(a, eini_runs, x->n);
    x->meet = EINI_NEW(a, int64_t, x->n);
    x->count = EINI_NEW(a, int64_t, x->n);
    if (x->run == NULL || x->meet == NULL || x->count == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t k = 0; k < x->n; k++) {
      eini_axis_coords(g, x, k, o->coord);
      EINI_TRY(eini_distribution_runs(a, d, r, shape[r], o->coord, &x->run[k]));
      if ((runs += x->run[k].n) > EINI_RUNS_MAX) return EIN_ERR_TOO_LARGE;
    }
  }
  return EIN_OK;
}

// Elements of runs in [lo, hi).
static int64_t eini_runs_meet(const eini_runs *r, int64_t lo, int64_t hi) {
  int64_t from = 0, to = r->n, n = 0;
  while (from < to) {  // the first that ends behind lo
    const int64_t middle = from + (to - from) / 2;
    if (r->v[2 * middle + 1] <= lo) from = middle + 1;
    else to = middle;
  }
  for (; from < r->n && r->v[2 * from] < hi; from++)
    n += eini_min64(hi, r->v[2 * from + 1]) - eini_max64(lo, r->v[2 * from]);
  return n;
}

#define EINI_TOUR_MAX 4e9      // points, steps and owners that are looked at: half a minute

// A statement that is gone through.
typedef struct eini_tour {
  const ein_schedule *w;
  const eini_loops *n;
  eini_owners *owners;     // of operands and the result; d NULL: nothing moves
  const int *again;        // of operands: the one before that fetches the same; -1: none
  int64_t *value, *lo, *hi, *from, *to;
  int64_t *here;           // the coordinates of the point at hand
  int64_t *sent;           // messages of each place in the step at hand
  ein_schedule_info *info;
  ein_move_fn fn;
  void *user;
  ein_schedule_move move;
  double *room;            // [point][operand, the result, a block of it] most bytes that it takes;
                           //   NULL: nobody asks
  // Every part of a box, also what the point's own place holds, with user; NULL: nobody asks.
  ein_status (*part_fn)(struct eini_tour *w, eini_owners *o, int64_t owner);
} eini_tour;

// The coordinates of the point at hand in a grid; in one of another statement's, those of the first
// point at its place.
static void eini_tour_near(const eini_tour *w, const ein_grid *g, int64_t *coord) {
  int64_t from = w->move.point, to;
  if (g != w->n->grid) eini_grid_points(g, w->move.place, &from, &to);
  eini_grid_coords(g, from < g->npoint ? from : 0, coord);
}

// Every owner of a part of the box in w->from and w->to: its coordinates are in o->coord.
static ein_status eini_tour_owners(eini_tour *w, eini_owners *o, int64_t bytes, int home) {
  const ein_grid *g = o->d->grid;
  const int rank = o->d->rank;
  eini_tour_near(w, g, o->coord);
  for (int m = 0; m < g->ndim; m++)
    if (o->d->held[m].kind == EINI_HELD_AT) o->coord[m] = o->d->held[m].at;
  for (int r = 0; r < rank; r++) {
    eini_axis_owners *x = &o->axis[r];
    x->nmeet = 0;
    for (int64_t k = 0; k < x->n; k++) {
      const int64_t n = eini_runs_meet(&x->run[k], w->from[r], w->to[r]);
      if (n > 0) x->meet[x->nmeet] = k, x->count[x->nmeet++] = n;
    }
    if (x->nmeet == 0) return EIN_OK;
    o->pick[r] = 0;
  }
  for (int r = 0; r >= 0;) {
    int64_t elements = 1;
    for (r = 0; r < rank; r++) {
      const eini_axis_owners *x = &o->axis[r];
      elements *= x->count[o->pick[r]];
      eini_axis_coords(g, x, x->meet[o->pick[r]], o->coord);
    }
    const int64_t owner = eini_grid_place(g, eini_grid_point(g, o->coord)), own = w->move.place;
    if (w->part_fn != NULL) EINI_TRY(w->part_fn(w, o, owner));
    if (owner != own) {
      w->move.from = home ? own : owner;
      w->move.to = home ? owner : own;
      w->move.bytes = elements * bytes;
      w->info->messages++;
      w->info->bytes += w->move.bytes;
      w->info->fan = eini_max64(w->info->fan, ++w->sent[w->move.from]);
      if (w->fn != NULL) EINI_TRY(w->fn(w->user, &w->move));
    }
    for (r = rank - 1; r >= 0 && ++o->pick[r] == o->axis[r].nmeet; r--) o->pick[r] = 0;
  }
  return EIN_OK;
}

// The values of all loops at the point and step at hand, those over time only up to `depth` of the
// order: the others are whole.
static void eini_tour_values(eini_tour *w, int64_t step, int depth) {
  const eini_loops *n = w->n;
  for (int v = 0; v < n->nloop; v++) w->value[v] = -1;
  for (int i = n->nstep - 1; i >= 0; i--) {
    const eini_loop *x = &n->loop[n->order[i]];
    const int64_t extent = eini_max64(x->extent, 1);
    if (x->dim >= 0) w->value[n->order[i]] = w->here[x->dim];
    else if (i <= depth) w->value[n->order[i]] = step % extent;
    if (x->dim < 0) step /= extent;
  }
}

// The outermost loop over time whose value is another one in the next step: its position.
static int eini_tour_change(const eini_loops *n, int64_t step) {
  int at = -1;
  if (step + 1 >= n->steps) return -1;
  for (int i = n->nstep - 1; i >= 0; i--) {
    const eini_loop *x = &n->loop[n->order[i]];
    const int64_t extent = eini_max64(x->extent, 1);
    if (x->dim >= 0) continue;
    at = i;
    if (step % extent != extent - 1) return at;
    step /= extent;
  }
  return at;
}

// Where in the order an access is communicated: operands in the innermost loop of a step unless
// told.
static int eini_loops_depth(const eini_loops *n, int k) {
  return k == n->s->noperand ? n->sent : n->fetch[k] < 0 ? n->nstep - 1
                                                         : eini_loops_at(n, n->fetch[k]);
}

// Bytes of an element of what goes home: a state where there is more to fold, else a value.
static int64_t eini_tour_wide(const eini_tour *w) {
  const eini_stmt *s = w->n->s;
  return eini_loops_folds(w->n, eini_loops_depth(w->n, s->noperand)) ?
         eini_partial_bytes(w->w->g, s) : (int64_t)ein_dtype_size(w->w->g->tensor[s->out].dtype);
}

// Does access k begin anew with a step (end: does it end with it)?
static int eini_tour_due(const eini_tour *w, int64_t step, int k, int end) {
  const int change = eini_tour_change(w->n, end ? step : step - 1);
  return (end ? step + 1 == w->n->steps : step == 0) || change <= eini_loops_depth(w->n, k);
}

// The box of access k between two such steps, in w->from and w->to; 0: there are no points.
static int eini_tour_box(eini_tour *w, int64_t step, int k) {
  const eini_stmt *s = w->n->s;
  eini_tour_values(w, step, eini_loops_depth(w->n, k));
  eini_loops_ranges(w->n, w->value, w->lo, w->hi);
  const eini_stmt_block b = eini_block_of(w->lo, w->hi, NULL);
  eini_block_hull(s, &b, k == s->noperand ? -1 : k, w->from, w->to);
  return !eini_zrange_empty(s->nindex, w->lo, w->hi);
}

// What statements compute: values to be merged, or, of folds with states of several scalars, which
// no step cuts, what is stored.
static ein_dtype eini_loops_type(const ein_graph *g, const eini_stmt *s) {
  return eini_fold_carries(s->fold) ? g->tensor[s->out].dtype : ein_dtype_compute(s->type);
}

// Notes what the box in w->from and w->to takes, of access k of the point at hand; k one more than
// the result's: a block that is merged into it.
static void eini_tour_room(eini_tour *w, int k) {
  const eini_stmt *s = w->n->s;
  const eini_tensor *t = &w->w->g->tensor[k < s->noperand ? s->operand[k] : s->out];
  const ein_dtype type = k < s->noperand ? t->dtype : eini_loops_type(w->w->g, s);
  const double bytes = eini_box_volume(t->rank, w->from, w->to) * (double)ein_dtype_size(type);
  double *room = &w->room[w->move.point * (s->noperand + 2) + k];
  const int copied = k >= s->noperand || w->n->grid->places > 1;  // a single place has all there is
  if (copied && bytes > *room) *room = bytes;
}

// The block of a step is merged where others have been before, or where it is no more than a part.
static void eini_tour_block(eini_tour *w, int64_t step) {
  const eini_stmt *s = w->n->s;
  const int last = w->n->nstep - 1, rank = w->w->g->tensor[s->out].rank;
  double box;
  if (!eini_loops_folds(w->n, last) || !eini_tour_box(w, step, s->noperand)) return;
  box = eini_box_volume(rank, w->from, w->to);
  eini_tour_values(w, step, last);
  eini_loops_ranges(w->n, w->value, w->lo, w->hi);
  const eini_stmt_block b = eini_block_of(w->lo, w->hi, NULL);
  if (eini_zrange_empty(s->nindex, w->lo, w->hi)) return;
  eini_block_hull(s, &b, -1, w->from, w->to);
  if (!eini_tour_due(w, step, s->noperand, 0) || eini_box_volume(rank, w->from, w->to) < box)
    eini_tour_room(w, s->noperand + 1);
}

// What access k of the point at hand moves before (operands) or after (the result) a step.
static ein_status eini_tour_access(eini_tour *w, int64_t step, int k) {
  const eini_stmt *s = w->n->s;
  const int result = k == s->noperand;
  if (w->owners[k].d == NULL || (!result && w->again[k] >= 0)) return EIN_OK;
  if (result && w->room != NULL) eini_tour_block(w, step);
  if (!eini_tour_due(w, step, k, result) || !eini_tour_box(w, step, k)) return EIN_OK;
  if (w->room != NULL) eini_tour_room(w, k);
  const int64_t bytes = result ? eini_tour_wide(w) :
                        (int64_t)ein_dtype_size(w->w->g->tensor[s->operand[k]].dtype);
  w->move.operand = result ? -1 : k;
  w->move.step = step;
  return eini_tour_owners(w, &w->owners[k], bytes, result);
}

// Does the point at w->here have a task?
static int eini_tour_works(const eini_tour *w) {
  const eini_loops *n = w->n;
  const ein_grid *g = n->grid;
  for (int m = 0; m < g->ndim; m++)
    if (!n->used[m] && w->here[m] > 0) return 0;
  for (int i = 0; i < n->nstep; i++) {
    const eini_loop *x = &n->loop[n->order[i]];
    if (x->dim >= 0 && w->here[x->dim] >= eini_max64(x->extent, 1)) return 0;
  }
  return 1;
}

static double eini_tour_work(const eini_tour *w) {
  double work = 10;
  for (int k = 0; k <= w->n->s->noperand; k++)
    for (int r = 0; w->owners[k].d != NULL && r < w->owners[k].d->rank; r++)
      work += (double)w->owners[k].axis[r].n;
  return work * (double)w->n->grid->npoint * (double)w->n->steps;
}

static ein_status eini_tour_run(eini_tour *w) {
  const ein_grid *g = w->n->grid;
  for (int64_t step = 0; step < w->n->steps; step++) {
    memset(w->sent, 0, (size_t)g->places * sizeof *w->sent);
    for (int64_t point = 0; point < g->npoint; point++) {
      eini_grid_coords(g, point, w->here);
      if (!eini_tour_works(w)) continue;
      w->move.point = point;
      w->move.place = eini_grid_place(g, point);
      w->info->tasks++;
      for (int k = 0; k <= w->n->s->noperand; k++) EINI_TRY(eini_tour_access(w, step, k));
    }
  }
  return EIN_OK;
}

static ein_status eini_tour_init(eini_arena *a, eini_tour *w) {
  const ein_schedule *sc = w->w;
  const eini_stmt *s = w->n->s;
  int rank = sc->g->tensor[s->out].rank;
  int *again = EINI_NEW(a, int, s->noperand + 1);
  w->owners = EINI_NEW(a, eini_owners, s->noperand + 1);
  if (again == NULL || w->owners == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k <= s->noperand; k++) {
    const int t = k < s->noperand ? s->operand[k] : s->out;
    rank = sc->g->tensor[t].rank > rank ? sc->g->tensor[t].rank : rank;
    again[k] = -1;
    for (int j = 0; j < k && k < s->noperand && again[k] < 0; j++)
      if (s->operand[j] == t && eini_map_equal(&s->proj[j], &s->proj[k]) &&
          eini_loops_depth(w->n, j) == eini_loops_depth(w->n, k))
        again[k] = j;
    if (sc->place[t] != NULL)
      EINI_TRY(eini_owners_init(a, sc->place[t], sc->g->tensor[t].shape, &w->owners[k]));
  }
  w->again = again;
  w->value = EINI_NEW(a, int64_t, EINI_LOOPS_MAX);
  w->lo = EINI_NEW(a, int64_t, s->nindex);
  w->hi = EINI_NEW(a, int64_t, s->nindex);
  w->from = EINI_NEW(a, int64_t, rank);
  w->to = EINI_NEW(a, int64_t, rank);
  w->here = EINI_NEW(a, int64_t, w->n->grid->ndim);
  w->sent = EINI_NEW(a, int64_t, sc->grid->places);
  return w->value == NULL || w->lo == NULL || w->hi == NULL || w->from == NULL || w->to == NULL ||
         w->here == NULL || w->sent == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}
