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

// Who holds what a statement defines: all of a tensor, as a statement along its axes would, or the
// values of one of its statements.
typedef struct eini_owners {
  const ein_distribution *d;
  const eini_stmt *s;
  int rows, several;       // rows: d cuts the axes that s writes, not its free indices; several:
                           //   s adds indices in an axis
  int rank;                // of d: axes, or free indices
  eini_axis_owners *axis;
  int64_t *coord, *pick;   // of an owner; rank long
  int64_t *lo, *hi;        // the box at hand: of free indices, or of those of the axes
  int64_t *room[2];        // scratch
  int copy;                // number of the owner among those that hold the same
} eini_owners;

// The coordinates of the holders with number k along an axis.
static void eini_axis_coords(const ein_grid *g, const eini_axis_owners *x, int64_t k,
                             int64_t *coord) {
  for (int m = x->ndim - 1; m >= 0; k /= g->dim[x->dim[m--]].extent)
    coord[x->dim[m]] = k % g->dim[x->dim[m]].extent;
}

// The values of the index of row r that write what lies in some runs of its axis.
static ein_status eini_runs_written(eini_arena *a, const eini_stmt *s, int r, eini_runs *runs) {
  const eini_runs of = *runs;
  int64_t coef;
  const int i = eini_row_index(&s->out_map, r, &coef);
  memset(runs, 0, sizeof *runs);
  for (int64_t n = 0; n < of.n; n++) {
    const int64_t *v = of.v + 2 * (i >= 0 && coef < 0 ? of.n - 1 - n : n);
    int64_t lo = 0, hi = i < 0 ? 1 : s->index[i].extent;
    if (i >= 0) eini_narrow_range(coef, s->out_map.offset[r], v[0], v[1], &lo, &hi);
    else if (s->out_map.offset[r] < v[0] || s->out_map.offset[r] >= v[1]) continue;
    EINI_TRY(eini_runs_add(a, runs, lo, hi));
  }
  return EIN_OK;
}

// Takes d, s, rows of *o. shape: of the tensor.
static ein_status eini_owners_init(eini_arena *a, const int64_t *shape, eini_owners *o) {
  const ein_distribution *d = o->d;
  const ein_grid *g = d->grid;
  const eini_stmt *s = o->s;
  int64_t runs = 0;
  o->rank = d->rank;
  for (int r = 0; r < s->out_map.rows; r++) o->several |= eini_map_terms(&s->out_map, r) > 1;
  o->axis = EINI_NEW(a, eini_axis_owners, o->rank);
  o->coord = EINI_NEW(a, int64_t, g->ndim);
  o->pick = EINI_NEW(a, int64_t, o->rank);
  o->lo = EINI_NEW(a, int64_t, o->rank);
  o->hi = EINI_NEW(a, int64_t, o->rank);
  if (o->axis == NULL || o->coord == NULL || o->pick == NULL || o->lo == NULL || o->hi == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < 2; k++)
    if ((o->room[k] = EINI_NEW(a, int64_t, 2 * (int64_t)(s->nindex + s->out_map.rows))) == NULL)
      return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < o->rank; r++) {
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
      EINI_TRY(eini_distribution_runs(a, d, r, o->rows ? shape[r] : s->index[r].extent, o->coord,
                                      &x->run[k]));
      if (o->rows) EINI_TRY(eini_runs_written(a, s, r, &x->run[k]));
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
  eini_owners **owners;    // of each operand and the result
  int *nowners;            // 0: nothing moves
  const int *again;        // of operands: the one before that fetches the same; -1: none
  int64_t *value, *lo, *hi, *from, *to;
  int64_t *here;           // the coordinates of the point at hand
  int64_t *sent;           // messages of each place in the step at hand
  ein_schedule_info *info;  // NULL: nothing is counted
  ein_move_fn fn;
  void *user;
  ein_schedule_move move;
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

// A box of free indices that an owner holds.
typedef struct eini_owned {
  int64_t at[EINI_NAMES_MAX], lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], shape[EINI_NAMES_MAX];
} eini_owned;

// The next box of the owner's at hand that meets o->lo and o->hi; first: the first one. lo, hi: of
// all free indices, where d cuts axes.
static int eini_owners_next(const eini_owners *o, const int64_t *lo, const int64_t *hi,
                            eini_owned *p, int first) {
  int r = o->rank - 1;
  for (int k = 0; k < o->rank && first; k++) p->at[k] = 0;
  for (; r >= 0 && !first; r--) {
    const eini_axis_owners *x = &o->axis[r];
    if (++p->at[r] < x->run[x->meet[o->pick[r]]].n) break;
    p->at[r] = 0;
  }
  if (!first && r < 0) return 0;
  for (int i = 0; i < o->s->nfree && o->rows; i++) p->lo[i] = lo[i], p->hi[i] = hi[i];
  for (r = 0; r < o->rank; r++) {
    const eini_axis_owners *x = &o->axis[r];
    const int64_t *v = x->run[x->meet[o->pick[r]]].v + 2 * p->at[r];
    int64_t coef;
    const int i = o->rows ? eini_row_index(&o->s->out_map, r, &coef) : r;
    if (i < 0) continue;
    p->lo[i] = eini_max64(v[0], o->lo[r]);
    p->hi[i] = eini_max64(p->lo[i], eini_min64(v[1], o->hi[r]));
  }
  for (int i = 0; i < o->s->nfree; i++) p->shape[i] = p->hi[i] - p->lo[i];
  return 1;
}

// The box at hand: home: that of the statement at hand, in w->lo and w->hi; else of what writes the
// box in w->from and w->to. 0: it is empty.
static int eini_tour_meets(const eini_tour *w, eini_owners *o, int home) {
  if (!home) return eini_box_ranges(o->s, w->from, w->to, o->lo, o->hi);
  for (int r = 0; r < o->rank; r++) {
    int64_t coef;
    const int i = o->rows ? eini_row_index(&o->s->out_map, r, &coef) : r;
    o->lo[r] = i < 0 ? 0 : w->lo[i];
    o->hi[r] = i < 0 ? 1 : w->hi[i];
  }
  return 1;
}

// Elements of the box at hand that an owner holds, of those between w->from and w->to.
static int64_t eini_tour_elements(const eini_tour *w, const eini_owners *o, int home) {
  int64_t n = 1;
  eini_owned p;
  for (int r = 0; r < o->rank; r++) n *= o->axis[r].count[o->pick[r]];
  if (home || !o->several) return n;
  n = 0;
  for (int more = eini_owners_next(o, NULL, NULL, &p, 1); more;
       more = eini_owners_next(o, NULL, NULL, &p, 0))
    n += (int64_t)eini_block_in_box(o->s, p.lo, p.hi, w->from, w->to, o->room[0], o->room[1]);
  return n;
}

// What the owner at o->coord has of the box at hand.
static ein_status eini_tour_owner(eini_tour *w, eini_owners *o, int64_t owner, int64_t bytes,
                                  int home) {
  const int64_t own = w->move.place;
  if (w->part_fn != NULL) EINI_TRY(w->part_fn(w, o, owner));
  if (owner == own) return EIN_OK;
  w->move.from = home ? own : owner;
  w->move.to = home ? owner : own;
  w->move.bytes = bytes;
  if (w->info != NULL) {
    w->info->messages++;
    w->info->bytes += bytes;
    w->info->fan = eini_max64(w->info->fan, ++w->sent[w->move.from]);
  }
  return w->fn == NULL ? EIN_OK : w->fn(w->user, &w->move);
}

// The next point that holds the same as the one at o->coord; 0: there is none.
static int eini_owners_again(const eini_owners *o) {
  const ein_grid *g = o->d->grid;
  for (int m = g->ndim - 1; m >= 0; m--) {
    if (o->d->held[m].kind != EINI_HELD_EVERY) continue;
    if (++o->coord[m] < g->dim[m].extent) return 1;
    o->coord[m] = 0;
  }
  return 0;
}

// Every owner of a part of the box at hand, of copies the one at hand or, home, all: its
// coordinates are in o->coord.
static ein_status eini_tour_owners(eini_tour *w, eini_owners *o, int64_t bytes, int home) {
  const ein_grid *g = o->d->grid;
  const int rank = o->rank;
  if (!eini_tour_meets(w, o, home)) return EIN_OK;
  eini_tour_near(w, g, o->coord);
  for (int m = 0; m < g->ndim; m++) {
    if (o->d->held[m].kind == EINI_HELD_AT) o->coord[m] = o->d->held[m].at;
    if (o->d->held[m].kind == EINI_HELD_EVERY && home) o->coord[m] = 0;
  }
  for (int r = 0; r < rank; r++) {
    eini_axis_owners *x = &o->axis[r];
    x->nmeet = 0;
    for (int64_t k = 0; k < x->n; k++) {
      const int64_t n = eini_runs_meet(&x->run[k], o->lo[r], o->hi[r]);
      if (n > 0) x->meet[x->nmeet] = k, x->count[x->nmeet++] = n;
    }
    if (x->nmeet == 0) return EIN_OK;
    o->pick[r] = 0;
  }
  for (int r = 0; r >= 0;) {
    int64_t last = -1;
    for (r = 0; r < rank; r++)
      eini_axis_coords(g, &o->axis[r], o->axis[r].meet[o->pick[r]], o->coord);
    const int64_t elements = eini_tour_elements(w, o, home);
    o->copy = 0;
    for (int more = elements > 0; more; more = home && eini_owners_again(o)) {
      const int64_t owner = eini_grid_place(g, eini_grid_point(g, o->coord));
      if (owner == last) continue;  // points of a place hold the same once
      EINI_TRY(eini_tour_owner(w, o, last = owner, elements * bytes, home));
      o->copy++;
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

// What statements compute, if not states: values to be merged, or, of folds that carry states and
// that no step cuts, what is stored.
static ein_dtype eini_loops_type(const ein_graph *g, const eini_stmt *s) {
  return eini_fold_carries(s->fold) ? g->tensor[s->out].dtype : ein_dtype_compute(s->type);
}

// Are its partial results states?
static int eini_loops_states(const eini_loops *n) {
  return eini_fold_carries(n->s->fold) && (eini_loops_folds(n, n->nstep - 1) ||
                                           eini_stmt_empty(n->s, n->s->nfree, n->s->nindex));
}

// Is what goes home complete?
static int eini_loops_whole(const eini_loops *n) {
  return !eini_loops_folds(n, eini_loops_depth(n, n->s->noperand)) &&
         !eini_stmt_empty(n->s, n->s->nfree, n->s->nindex);
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

// The box of access k for the values at hand, in w->from and w->to; 0: there are no points.
static int eini_tour_hull(eini_tour *w, int k) {
  const eini_stmt *s = w->n->s;
  eini_loops_ranges(w->n, w->value, w->lo, w->hi);
  const eini_stmt_block b = eini_block_of(w->lo, w->hi, NULL);
  eini_block_hull(s, &b, k == s->noperand ? -1 : k, w->from, w->to);
  return !eini_zrange_empty(s->nindex, w->lo, w->hi);
}

// That between two such steps.
static int eini_tour_box(eini_tour *w, int64_t step, int k) {
  eini_tour_values(w, step, eini_loops_depth(w->n, k));
  return eini_tour_hull(w, k);
}

// What access k of the point at hand moves before (operands) or after (the result) a step.
static ein_status eini_tour_access(eini_tour *w, int64_t step, int k) {
  const eini_stmt *s = w->n->s;
  const int result = k == s->noperand;
  if (w->nowners[k] == 0 || (!result && w->again[k] >= 0)) return EIN_OK;
  if (!eini_tour_due(w, step, k, result) || !eini_tour_box(w, step, k)) return EIN_OK;
  const int64_t bytes = result ? eini_tour_wide(w) :
                        (int64_t)ein_dtype_size(w->w->g->tensor[s->operand[k]].dtype);
  w->move.operand = result ? -1 : k;
  w->move.step = step;
  for (int i = 0; i < w->nowners[k]; i++)
    EINI_TRY(eini_tour_owners(w, &w->owners[k][i], bytes, result));
  return EIN_OK;
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
    for (int i = 0; i < w->nowners[k]; i++) {
      const eini_owners *o = &w->owners[k][i];
      for (int r = 0; r < o->rank; r++) work += (double)o->axis[r].n;
    }
  return work * (double)w->n->grid->npoint * (double)w->n->steps;
}

// All points fetch, compute, and send what is complete home.
static ein_status eini_tour_run(eini_tour *w) {
  const ein_grid *g = w->n->grid;
  const int n = w->n->s->noperand;
  for (int64_t step = 0; step < w->n->steps; step++) {
    memset(w->sent, 0, (size_t)g->places * sizeof *w->sent);
    for (int64_t i = 0; i < 2 * g->npoint; i++) {
      const int after = i >= g->npoint;
      w->move.point = i % g->npoint;
      eini_grid_coords(g, w->move.point, w->here);
      if (!eini_tour_works(w)) continue;
      w->move.place = eini_grid_place(g, w->move.point);
      w->info->tasks += after;
      for (int k = after ? n : 0; k < n + after; k++) EINI_TRY(eini_tour_access(w, step, k));
    }
  }
  return EIN_OK;
}

// Who holds a tensor, number t: what it is made of, with d, s and rows of each; *n of them.
static ein_status eini_schedule_owners(eini_arena *a, const ein_schedule *w, int t,
                                       eini_owners **list, int *n) {
  const int whole = w->place[t] != NULL;
  *n = 0;
  *list = EINI_NEW(a, eini_owners, whole ? 1 : w->g->tensor[t].nstmt);
  if (*list == NULL) return EIN_ERR_NO_MEMORY;
  if (whole) (*list)->d = w->place[t], (*list)->s = w->axes[t], *n = 1;
  for (int k = 0; k < w->g->nstmt && !whole; k++)
    if (w->g->stmt[k].out == t && w->home[k] != NULL)
      (*list)[*n].d = w->home[k], (*list)[(*n)++].s = &w->g->stmt[k];
  return EIN_OK;
}

// Who holds what statement k defines.
static void eini_schedule_home(const ein_schedule *w, int k, eini_owners *o) {
  o->s = &w->g->stmt[k];
  o->rows = w->place[o->s->out] != NULL;
  o->d = o->rows ? w->place[o->s->out] : w->home[k];
}

static ein_status eini_tour_access_init(eini_arena *a, eini_tour *w, int k) {
  const eini_stmt *s = w->n->s;
  const int t = k < s->noperand ? s->operand[k] : s->out;
  if (k < s->noperand) {
    EINI_TRY(eini_schedule_owners(a, w->w, t, &w->owners[k], &w->nowners[k]));
  } else {
    if ((w->owners[k] = EINI_NEW(a, eini_owners, 1)) == NULL) return EIN_ERR_NO_MEMORY;
    eini_schedule_home(w->w, (int)(s - w->w->g->stmt), w->owners[k]);
    w->nowners[k] = w->owners[k]->d != NULL;
  }
  for (int i = 0; i < w->nowners[k]; i++)
    EINI_TRY(eini_owners_init(a, w->w->g->tensor[t].shape, &w->owners[k][i]));
  return EIN_OK;
}

static ein_status eini_tour_init(eini_arena *a, eini_tour *w) {
  const ein_schedule *sc = w->w;
  const eini_stmt *s = w->n->s;
  int rank = sc->g->tensor[s->out].rank;
  int *again = EINI_NEW(a, int, s->noperand + 1);
  w->owners = EINI_NEW(a, eini_owners *, s->noperand + 1);
  w->nowners = EINI_NEW(a, int, s->noperand + 1);
  if (again == NULL || w->owners == NULL || w->nowners == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k <= s->noperand; k++) {
    const int t = k < s->noperand ? s->operand[k] : s->out;
    rank = sc->g->tensor[t].rank > rank ? sc->g->tensor[t].rank : rank;
    again[k] = -1;
    for (int j = 0; j < k && k < s->noperand && again[k] < 0; j++)
      if (s->operand[j] == t && eini_map_equal(&s->proj[j], &s->proj[k]) &&
          eini_loops_depth(w->n, j) == eini_loops_depth(w->n, k))
        again[k] = j;
    EINI_TRY(eini_tour_access_init(a, w, k));
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
