// ================================================================================================
// >>rooms  what lives at places while a schedule runs
// Takes a schedule; gives the bytes of each place: what it holds of tensors, what it reads of
// inputs that are not placed, and of the statement at hand the boxes of its steps.
// ================================================================================================

// A box that grows around others.
typedef struct eini_hull {
  int rank, any;
  int64_t *lo, *hi;
} eini_hull;

static ein_status eini_hull_add(void *user, const int64_t *lo, const int64_t *hi) {
  eini_hull *h = (eini_hull *)user;
  for (int r = 0; r < h->rank; r++) {
    h->lo[r] = h->any ? eini_min64(h->lo[r], lo[r]) : lo[r];
    h->hi[r] = h->any ? eini_max64(h->hi[r], hi[r]) : hi[r];
  }
  h->any = 1;
  return EIN_OK;
}

// Adds to sum[place] elements of size `bytes` in the hull of what places hold of a tensor.
static ein_status eini_rooms_home(eini_arena *a, const ein_schedule *s, int t, double bytes,
                                  double *sum) {
  const eini_tensor *e = &s->g->tensor[t];
  eini_hull h;
  memset(&h, 0, sizeof h);
  h.rank = e->rank;
  h.lo = EINI_NEW(a, int64_t, e->rank);
  h.hi = EINI_NEW(a, int64_t, e->rank);
  if (h.lo == NULL || h.hi == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t q = 0; q < s->grid->places; q++) {
    h.any = 0;
    EINI_TRY(eini_distribution_boxes(a, s->place[t], e->shape, q, eini_hull_add, &h));
    if (h.any) sum[q] += bytes * eini_box_volume(e->rank, h.lo, h.hi);
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
static ein_status eini_rooms_read(eini_arena *a, const ein_schedule *sc, int t, double *sum) {
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
  for (int64_t q = 0; q < sc->grid->places; q++) {
    u.n = 0;
    for (int64_t i = 0; i < n; i++) eini_rooms_boxes(sc, r[i], q, room, &u);
    sum[q] += (double)ein_dtype_size(e->dtype) * eini_boxes_volume(&u);
  }
  return EIN_OK;
}

// Adds what places have of tensors: of statement k to sum[(k+1) * places], of all to sum[0].
static ein_status eini_rooms_tensors(eini_arena *a, const ein_schedule *s, ein_inputs inputs,
                                     double *sum) {
  const ein_graph *g = s->g;
  const int64_t p = s->grid->places;
  double *mine = EINI_NEW(a, double, p);
  if (mine == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < g->ntensor; t++) {
    const int input = g->tensor[t].role == EIN_ROLE_INPUT, placed = s->place[t] != NULL;
    int from, to;
    ein_status st = EIN_OK;
    eini_arena scratch;
    eini_rooms_life(g, t, &from, &to);
    if (!placed && (!input || inputs == EIN_INPUTS_OUTSIDE)) continue;
    for (int64_t q = 0; q < p; q++) mine[q] = 0;
    eini_arena_init(&scratch, &a->al);
    if (placed) st = eini_rooms_home(&scratch, s, t, (double)ein_dtype_size(g->tensor[t].dtype),
                                     mine);
    else st = eini_rooms_read(&scratch, s, t, mine);
    eini_arena_free(&scratch);
    EINI_TRY(st);
    for (int k = input ? -1 : from; k < (input ? 0 : to); k++)
      for (int64_t q = 0; q < p; q++) sum[(k + 1) * p + q] += mine[q];
  }
  return EIN_OK;
}

// Is what goes home complete?
static int eini_loops_whole(const eini_loops *n) {
  return !eini_loops_folds(n, eini_loops_depth(n, n->s->noperand)) &&
         !eini_stmt_empty(n->s, n->s->nfree, n->s->nindex);
}

// Adds what a statement takes itself in its steps.
static ein_status eini_rooms_steps(eini_arena *a, const ein_schedule *sc, int stmt, double *sum) {
  const eini_loops *nest = &sc->nest[stmt];
  const eini_stmt *s = nest->s;
  const int n = s->noperand + 2;
  ein_schedule_info info;
  eini_tour w;
  memset(&w, 0, sizeof w);
  memset(&info, 0, sizeof info);
  w.w = sc, w.n = nest, w.info = &info, w.move.stmt = stmt;
  if (nest->loop == NULL) return EIN_OK;
  EINI_TRY(eini_tour_init(a, &w));
  if (eini_tour_work(&w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  if ((w.room = EINI_NEW(a, double, nest->grid->npoint * n)) == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_tour_run(&w));
  for (int64_t i = 0; i < nest->grid->npoint; i++)
    for (int k = 0; k < n; k++) sum[eini_grid_place(nest->grid, i)] += w.room[i * n + k];
  if (sc->place[s->out] == NULL || eini_loops_whole(nest)) return EIN_OK;
  return eini_rooms_home(a, sc, s->out, (double)ein_dtype_size(ein_dtype_compute(s->type)), sum);
}

// Most bytes at a place while each statement runs, and most at each place; either may be NULL.
static ein_status eini_schedule_rooms(eini_arena *a, const ein_schedule *s, ein_inputs inputs,
                                      double *stmt, double *place) {
  const int64_t p = s->grid == NULL ? 0 : s->grid->places;
  double *sum = EINI_NEW(a, double, (s->g->nstmt + 1) * p);
  if (sum == NULL) return EIN_ERR_NO_MEMORY;
  if (p > 0) EINI_TRY(eini_rooms_tensors(a, s, inputs, sum));
  for (int64_t q = 0; q < p && place != NULL; q++) place[q] = sum[q];
  for (int k = 0; k < s->g->nstmt; k++) {
    double most = 0, *mine = sum + (k + 1) * p;
    eini_arena scratch;
    eini_arena_init(&scratch, &a->al);
    const ein_status st = p > 0 ? eini_rooms_steps(&scratch, s, k, mine) : EIN_OK;
    eini_arena_free(&scratch);
    EINI_TRY(st);
    for (int64_t q = 0; q < p; q++) {
      mine[q] += sum[q];
      if (mine[q] > most) most = mine[q];
      if (place != NULL && mine[q] > place[q]) place[q] = mine[q];
    }
    if (stmt != NULL) stmt[k] = most;
  }
  return EIN_OK;
}
