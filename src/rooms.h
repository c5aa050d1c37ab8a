// ================================================================================================
// >>rooms  what lives at places while a schedule runs
// Takes a schedule; gives the bytes of each place: what it holds of tensors, what it reads of
// inputs that are not placed, and of the statement at hand the boxes of its steps.
// ================================================================================================

// A box that grows around others that an owner holds: of the free indices of its statement, or,
// axes, of the tensor that this writes.
typedef struct eini_hull {
  const eini_owners *o;
  int axes, any, rank;
  int64_t *lo, *hi;
  int64_t *from, *to;      // scratch: as long as the indices and the axes
  double volume;           // of the boxes, added up
} eini_hull;

// Of what n owners hold.
static ein_status eini_hull_init(eini_arena *a, const eini_owners *o, int n, int axes,
                                 eini_hull *h) {
  int64_t room = 0;
  memset(h, 0, sizeof *h);
  h->axes = axes;
  h->rank = n == 0 ? 0 : axes ? o->s->out_map.rows : o->s->nfree;
  for (int i = 0; i < n; i++)
    room = eini_max64(room, o[i].s->nindex + (int64_t)o[i].s->out_map.rows);
  h->lo = EINI_NEW(a, int64_t, room);
  h->hi = EINI_NEW(a, int64_t, room);
  h->from = EINI_NEW(a, int64_t, room);
  h->to = EINI_NEW(a, int64_t, room);
  return h->lo == NULL || h->hi == NULL || h->from == NULL || h->to == NULL ? EIN_ERR_NO_MEMORY
                                                                            : EIN_OK;
}

static ein_status eini_hull_add(void *user, const int64_t *lo, const int64_t *hi) {
  eini_hull *h = (eini_hull *)user;
  const eini_stmt *s = h->o->s;
  if (h->o->rows) {  // they are of the axes
    if (!eini_box_ranges(s, lo, hi, h->from, h->to)) return EIN_OK;
    lo = h->from, hi = h->to;
  }
  if (eini_zrange_empty(s->nfree, lo, hi)) return EIN_OK;
  if (h->axes) {
    const eini_stmt_block b = eini_block_of(lo, hi, NULL);
    eini_block_hull(s, &b, -1, h->from, h->to);
    lo = h->from, hi = h->to;
  }
  for (int r = 0; r < h->rank; r++) {
    h->lo[r] = h->any ? eini_min64(h->lo[r], lo[r]) : lo[r];
    h->hi[r] = h->any ? eini_max64(h->hi[r], hi[r]) : hi[r];
  }
  h->any = 1;
  h->volume += eini_box_volume(h->rank, lo, hi);
  return EIN_OK;
}

// Boxes of what o holds at a place: of free indices, or, rows, of axes.
static ein_status eini_owners_boxes(eini_arena *a, const ein_graph *g, const eini_owners *o,
                                    int64_t place, ein_box_fn fn, void *user) {
  int64_t *extent = EINI_NEW(a, int64_t, o->d->rank);
  if (extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < o->d->rank; r++)
    extent[r] = o->rows ? g->tensor[o->s->out].shape[r] : o->s->index[r].extent;
  return eini_distribution_boxes(a, o->d, extent, place, fn, user);
}

// The hull of what n owners hold at a place.
static ein_status eini_owners_hull(eini_arena *a, const ein_graph *g, const eini_owners *o, int n,
                                   int64_t place, eini_hull *h) {
  h->any = 0;
  h->volume = 0;
  for (int r = 0; r < h->rank; r++) h->lo[r] = h->hi[r] = 0;
  for (int i = 0; i < n; i++) {
    h->o = &o[i];
    EINI_TRY(eini_owners_boxes(a, g, &o[i], place, eini_hull_add, h));
  }
  return EIN_OK;
}

// The places [from, to) that are looked at.
typedef struct eini_places {
  int64_t from, to;
} eini_places;

// Adds to sum[place] elements of size `bytes` in the hulls of what n owners hold.
static ein_status eini_rooms_hulls(eini_arena *a, const ein_schedule *s, eini_places at,
                                   const eini_owners *o, int n, int axes, double bytes,
                                   double *sum) {
  eini_hull h;
  if (n == 0) return EIN_OK;
  EINI_TRY(eini_hull_init(a, o, n, axes, &h));
  for (int64_t q = at.from; q < at.to; q++) {
    EINI_TRY(eini_owners_hull(a, s->g, o, n, q, &h));
    if (h.any) sum[q] += bytes * eini_box_volume(h.rank, h.lo, h.hi);
  }
  return EIN_OK;
}

// The statements [*from, *to) while which tensor t is at places: inputs are always, results from
// the first of their statements to their last reader, outputs to the end.
static void eini_rooms_life(const ein_graph *g, int t, int *from, int *to) {
  const int role = (int)g->tensor[t].role, n = (int)g->nstmt;
  *from = role == EIN_ROLE_INPUT ? 0 : n;
  *to = role == EIN_ROLE_TEMP ? 0 : n;
  for (int i = 0; i < n; i++) {
    const eini_stmt *s = &g->stmt[i];
    int reads = s->out == t;
    if (reads && i < *from) *from = i;
    for (int o = 0; o < s->noperand; o++) reads |= s->operand[o] == t;
    if (reads && i + 1 > *to) *to = i + 1;
  }
}

typedef struct eini_reader {  // operand k of a statement
  int stmt, k;
} eini_reader;

// Adds the boxes that the tasks of a reader at a place read to a union of them.
static void eini_rooms_boxes(const ein_schedule *sc, eini_reader r, int64_t place, int64_t *room,
                             eini_boxes *u) {
  const eini_loops *n = &sc->nest[r.stmt];
  int64_t first, end, here[EINI_NAMES_MAX];
  int64_t *value = room, *lo = value + EINI_LOOPS_MAX, *hi = lo + n->s->nindex;
  int64_t *from = hi + n->s->nindex, *to = from + u->rank;
  eini_tour w;
  memset(&w, 0, sizeof w);
  w.n = n, w.here = here, w.value = value;
  eini_grid_points(n->grid, place, &first, &end);
  for (int64_t point = first; point < end; point++) {
    eini_grid_coords(n->grid, point, here);
    if (!eini_tour_works(&w)) continue;
    eini_tour_values(&w, 0, -1);
    eini_loops_ranges(n, value, lo, hi);
    const eini_stmt_block b = eini_block_of(lo, hi, NULL);
    if (eini_zrange_empty(n->s->nindex, lo, hi)) continue;
    eini_block_hull(n->s, &b, r.k, from, to);
    eini_boxes_add(u, from, to);
  }
}

// Adds what tasks read of input t, which is not placed.
static ein_status eini_rooms_read(eini_arena *a, const ein_schedule *sc, eini_places at, int t,
                                  double *sum) {
  const ein_graph *g = sc->g;
  const eini_tensor *e = &g->tensor[t];
  int64_t n = 0, cap = 0, nindex = 0;
  eini_reader *r = NULL;
  eini_boxes u;
  for (int k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    nindex = eini_max64(nindex, s->nindex);
    for (int o = 0; o < s->noperand; o++) {
      if (s->operand[o] != t || eini_operand_first(s, o) < o) continue;
      if ((r = (eini_reader *)eini_grow(a, r, n, &cap, sizeof *r)) == NULL)
        return EIN_ERR_NO_MEMORY;
      r[n].stmt = k;
      r[n++].k = o;
    }
  }
  int64_t *room = EINI_NEW(a, int64_t, EINI_LOOPS_MAX + 2 * nindex + 2 * (int64_t)e->rank);
  if (room == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_boxes_init(a, e->rank, &u));
  for (int64_t q = at.from; q < at.to; q++) {
    u.n = 0;
    for (int64_t i = 0; i < n; i++) eini_rooms_boxes(sc, r[i], q, room, &u);
    sum[q] += (double)ein_dtype_size(e->dtype) * eini_boxes_volume(&u);
  }
  return EIN_OK;
}

// Adds what places have of tensors: of statement k to sum[(k+1) * places], of all to sum[0].
static ein_status eini_rooms_tensors(eini_arena *a, const ein_schedule *s, eini_places at,
                                     ein_inputs inputs, double *sum) {
  const ein_graph *g = s->g;
  const int64_t p = s->grid->places;
  double *mine = EINI_NEW(a, double, p);
  if (mine == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < g->ntensor; t++) {
    const int input = g->tensor[t].role == EIN_ROLE_INPUT;
    const double bytes = (double)ein_dtype_size(g->tensor[t].dtype);
    int from, to, n;
    eini_owners *o;
    eini_arena scratch;
    eini_rooms_life(g, t, &from, &to);
    for (int64_t q = at.from; q < at.to; q++) mine[q] = 0;
    eini_arena_init(&scratch, &a->al);
    ein_status st = eini_schedule_owners(&scratch, s, t, &o, &n);
    if (st == EIN_OK) st = eini_rooms_hulls(&scratch, s, at, o, n, 1, bytes, mine);
    if (st == EIN_OK && n == 0 && input && inputs != EIN_INPUTS_OUTSIDE)
      st = eini_rooms_read(&scratch, s, at, t, mine);
    eini_arena_free(&scratch);
    EINI_TRY(st);
    for (int k = input ? -1 : from; k < (input ? 0 : to); k++)
      for (int64_t q = at.from; q < at.to; q++) sum[(k + 1) * p + q] += mine[q];
  }
  return EIN_OK;
}

// ---- boxes of steps ----

// A statement whose boxes are noted: the most bytes of each at each point.
typedef struct eini_rooms {
  eini_tour w;
  double wide;             // bytes of an element of a partial result
  double *room;            // [point][operand, the partial result, a block that is merged into it]
  unsigned char *fresh;    // [point] nothing is in its partial result yet
} eini_rooms;

static void eini_rooms_note(eini_rooms *x, int k, double bytes) {
  double *room = &x->room[x->w.move.point * (x->w.n->s->noperand + 2) + k];
  if (bytes > *room) *room = bytes;
}

// The block of a step is merged where others have been before, or where it is no more than a part;
// of states and of others alike.
static void eini_rooms_block(eini_rooms *x, int64_t step) {
  eini_tour *w = &x->w;
  const eini_loops *n = w->n;
  const int nfree = n->s->nfree, k = n->s->noperand;
  if (!eini_loops_folds(n, n->nstep - 1) || !eini_tour_box(w, step, k)) return;
  const double all = eini_box_volume(nfree, w->lo, w->hi);
  eini_tour_values(w, step, n->nstep);
  eini_loops_ranges(n, w->value, w->lo, w->hi);
  if (eini_zrange_empty(n->s->nindex, w->lo, w->hi)) return;
  const double block = eini_box_volume(nfree, w->lo, w->hi);
  if (!x->fresh[w->move.point] || block < all) eini_rooms_note(x, k + 1, x->wide * block);
  x->fresh[w->move.point] = 0;
}

// The point at hand in a step: of a single place, which has all there is, operands take nothing.
static void eini_rooms_step(eini_rooms *x, int64_t step) {
  eini_tour *w = &x->w;
  const eini_stmt *s = w->n->s;
  const int n = s->noperand;
  for (int k = 0; k < n && w->n->grid->places > 1; k++) {
    const eini_tensor *t = &w->w->g->tensor[s->operand[k]];
    if (w->nowners[k] == 0 || w->again[k] >= 0 || !eini_tour_due(w, step, k, 0)) continue;
    if (eini_tour_box(w, step, k))
      eini_rooms_note(x, k, eini_box_volume(t->rank, w->from, w->to) *
                                (double)ein_dtype_size(t->dtype));
  }
  if (w->nowners[n] == 0) return;
  if (eini_tour_due(w, step, n, 0)) {
    x->fresh[w->move.point] = 1;
    (void)eini_tour_box(w, step, n);  // results of nothing are there, too
    eini_rooms_note(x, n, eini_box_volume(s->nfree, w->lo, w->hi) * x->wide);
  }
  eini_rooms_block(x, step);
}

// The boxes of a statement's steps at points [first, end), in x->room.
static ein_status eini_rooms_boxes_of(eini_arena *a, const ein_schedule *sc, int stmt,
                                      int64_t first, int64_t end, eini_rooms *x) {
  const eini_loops *n = &sc->nest[stmt];
  const ein_grid *g = n->grid;
  eini_tour *w = &x->w;
  memset(x, 0, sizeof *x);
  w->w = sc, w->n = n, w->move.stmt = stmt;
  EINI_TRY(eini_tour_init(a, w));
  if (eini_tour_work(w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  x->wide = eini_loops_states(n) ? (double)eini_partial_bytes(sc->g, n->s)
                                 : (double)ein_dtype_size(eini_loops_type(sc->g, n->s));
  x->room = EINI_NEW(a, double, g->npoint * (n->s->noperand + 2));
  x->fresh = EINI_NEW(a, unsigned char, g->npoint);
  if (x->room == NULL || x->fresh == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = first; i < end; i++) {
    w->move.point = i;
    eini_grid_coords(g, i, w->here);
    for (int64_t step = 0; step < n->steps && eini_tour_works(w); step++) eini_rooms_step(x, step);
  }
  return EIN_OK;
}

// Adds what a statement takes itself in its steps: boxes, and where results are merged at home what
// is merged there.
static ein_status eini_rooms_steps(eini_arena *a, const ein_schedule *sc, eini_places at, int stmt,
                                   double *sum) {
  const eini_loops *nest = &sc->nest[stmt];
  const int n = nest->s->noperand + 2;
  int64_t first, end, none;
  eini_rooms x;
  eini_owners o;
  if (nest->loop == NULL) return EIN_OK;
  eini_grid_points(nest->grid, at.from, &first, &none);
  eini_grid_points(nest->grid, at.to - 1, &none, &end);
  EINI_TRY(eini_rooms_boxes_of(a, sc, stmt, first, end, &x));
  for (int64_t i = first; i < end; i++)
    for (int k = 0; k < n; k++) sum[eini_grid_place(nest->grid, i)] += x.room[i * n + k];
  memset(&o, 0, sizeof o);
  eini_schedule_home(sc, stmt, &o);
  if (o.d == NULL || eini_loops_whole(nest)) return EIN_OK;
  return eini_rooms_hulls(a, sc, at, &o, 1, 0, x.wide, sum);
}

// Most bytes at a place while each statement runs, and most at each place; either may be NULL. Of
// others places nothing is said.
static ein_status eini_schedule_rooms(eini_arena *a, const ein_schedule *s, eini_places at,
                                      ein_inputs inputs, double *stmt, double *place) {
  const int64_t p = s->grid == NULL ? 0 : s->grid->places;
  double *sum = EINI_NEW(a, double, (s->g->nstmt + 1) * p);
  if (sum == NULL) return EIN_ERR_NO_MEMORY;
  if (p > 0) EINI_TRY(eini_rooms_tensors(a, s, at, inputs, sum));
  for (int64_t q = at.from; q < at.to && place != NULL; q++) place[q] = sum[q];
  for (int k = 0; k < s->g->nstmt; k++) {
    double most = 0, *mine = sum + (k + 1) * p;
    eini_arena scratch;
    eini_arena_init(&scratch, &a->al);
    const ein_status st = p > 0 ? eini_rooms_steps(&scratch, s, at, k, mine) : EIN_OK;
    eini_arena_free(&scratch);
    EINI_TRY(st);
    for (int64_t q = at.from; q < at.to; q++) {
      mine[q] += sum[q];
      if (mine[q] > most) most = mine[q];
      if (place != NULL && mine[q] > place[q]) place[q] = mine[q];
    }
    if (stmt != NULL) stmt[k] = most;
  }
  return EIN_OK;
}
