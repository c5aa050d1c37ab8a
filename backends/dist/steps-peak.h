// ================================================================================================
// >>steps-peak  what lives at places under a schedule
// Takes a schedule while its plans are made; gives the most bytes that live at each place at once.
// ================================================================================================

// Of the statement at hand.
typedef struct eini_alive {
  int64_t *bytes;           // of each point: what it fetched by operand, its partial result, and a
                            //   block that is merged into it
  int64_t *now, *most;      // of each place, in a step
} eini_alive;

static ein_status eini_alive_init(eini_arena *a, const eini_tour *w, eini_alive *x) {
  x->bytes = EINI_NEW(a, int64_t, w->n->grid->npoint * (w->n->s->noperand + 2));
  x->now = EINI_NEW(a, int64_t, w->n->grid->places);
  x->most = EINI_NEW(a, int64_t, w->n->grid->places);
  return x->bytes == NULL || x->now == NULL || x->most == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Before the point at hand fetches: what it fetched anew is gone. wide: bytes of a result.
static void eini_alive_step(eini_alive *x, eini_tour *w, int64_t step, int64_t wide) {
  const int n = w->n->s->noperand;
  int64_t *at = x->bytes + w->move.point * (n + 2);
  for (int k = 0; k < n; k++)
    if (eini_tour_due(w, step, k, 0)) at[k] = 0;
  if (eini_tour_due(w, step, n, 0)) {
    (void)eini_tour_box(w, step, n);
    at[n] = (int64_t)eini_box_volume(w->n->s->nfree, w->lo, w->hi) * wide;
  }
  at[n + 1] = 0;
  if (!eini_loops_folds(w->n, w->n->nstep - 1)) return;
  eini_tour_values(w, step, w->n->nstep);
  eini_loops_ranges(w->n, w->value, w->lo, w->hi);
  at[n + 1] = (int64_t)eini_box_volume(w->n->s->nfree, w->lo, w->hi) * wide;
}

// All points have fetched what they need for a step.
static void eini_alive_count(eini_alive *x, const eini_tour *w) {
  const ein_grid *g = w->n->grid;
  const int n = w->n->s->noperand + 2;
  memset(x->now, 0, (size_t)g->places * sizeof *x->now);
  for (int64_t i = 0; i < g->npoint; i++)
    for (int k = 0; k < n; k++) x->now[eini_grid_place(g, i)] += x->bytes[i * n + k];
  for (int64_t q = 0; q < g->places; q++) x->most[q] = eini_max64(x->most[q], x->now[q]);
}

// ---- tensors at places ----

typedef struct eini_alive_boxes {
  const eini_owners *o;
  int64_t elements;
} eini_alive_boxes;

static ein_status eini_alive_box(void *user, const int64_t *lo, const int64_t *hi) {
  eini_alive_boxes *b = (eini_alive_boxes *)user;
  const eini_stmt *s = b->o->s;
  int64_t from[EINI_NAMES_MAX], to[EINI_NAMES_MAX];
  for (int i = 0; i < s->nfree; i++) {
    from[i] = b->o->rows ? 0 : lo[i];
    to[i] = b->o->rows ? s->index[i].extent : hi[i];
  }
  if (b->o->rows && !eini_box_narrow(&s->out_map, s->nfree, lo, hi, from, to)) return EIN_OK;
  b->elements += (int64_t)eini_box_volume(s->nfree, from, to);
  return EIN_OK;
}

// Boxes of what statement o->s writes: of its free indices, or, rows, of the axes.
static ein_status eini_owners_boxes(eini_arena *a, const ein_graph *g, const eini_owners *o,
                                    int64_t place, ein_box_fn fn, void *user) {
  int64_t extent[EINI_NAMES_MAX];
  for (int r = 0; r < o->d->rank; r++)
    extent[r] = o->rows ? g->tensor[o->s->out].shape[r] : o->s->index[r].extent;
  return eini_distribution_boxes(a, o->d, extent, place, fn, user);
}

// Bytes of input t that the points of a place read; u: scratch.
static int64_t eini_alive_reads(const ein_dist *d, int t, int64_t place, eini_tour *w,
                                eini_boxes *u) {
  const eini_dist_tensor *x = &d->tensor[t];
  u->n = 0;
  for (int i = 0; i < x->nread; i++) {
    int64_t from, to;
    w->n = &w->w->nest[x->read[i]];
    const eini_stmt *s = w->n->s;
    eini_grid_points(w->n->grid, place, &from, &to);
    for (; from < to; from++) {
      eini_grid_coords(w->n->grid, from, w->here);
      if (!eini_tour_works(w)) continue;
      eini_tour_values(w, 0, -1);
      eini_loops_ranges(w->n, w->value, w->lo, w->hi);
      const eini_stmt_block b = eini_block_of(w->lo, w->hi, NULL);
      if (eini_zrange_empty(s->nindex, w->lo, w->hi)) continue;
      for (int k = 0; k < s->noperand; k++) {
        if (s->operand[k] != t || eini_operand_first(s, k) < k) continue;
        eini_block_hull(s, &b, k, w->from, w->to);
        eini_boxes_add(u, w->from, w->to);
      }
    }
  }
  return (int64_t)eini_boxes_volume(u) * (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
}

// Adds inputs, which live all the time, to d->peak.
static ein_status eini_alive_inputs(eini_arena *a, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  eini_tour w;
  memset(&w, 0, sizeof w);
  w.w = s;
  w.value = EINI_NEW(a, int64_t, EINI_LOOPS_MAX);
  w.lo = EINI_NEW(a, int64_t, d->rank);
  w.hi = EINI_NEW(a, int64_t, d->rank);
  w.from = EINI_NEW(a, int64_t, d->rank);
  w.to = EINI_NEW(a, int64_t, d->rank);
  w.here = EINI_NEW(a, int64_t, EINI_NAMES_MAX);
  if (w.value == NULL || w.lo == NULL || w.hi == NULL || w.from == NULL || w.to == NULL ||
      w.here == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) {
    eini_boxes u;
    if (d->g->tensor[t].role != EIN_ROLE_INPUT) continue;
    EINI_TRY(eini_boxes_init(a, d->g->tensor[t].rank, &u));
    for (int64_t q = 0; q < d->fabric.places; q++) {
      eini_owners o;
      memset(&o, 0, sizeof o);
      o.d = s->place[t];
      o.s = s->axes[t];
      eini_alive_boxes b = {&o, 0};
      if (o.d != NULL) EINI_TRY(eini_owners_boxes(a, d->g, &o, q, eini_alive_box, &b));
      d->peak[q] += o.d == NULL ? eini_alive_reads(d, t, q, &w, &u)
                                : b.elements * (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
    }
  }
  return EIN_OK;
}

// What a place holds of the values of statement k, as they are stored.
static ein_status eini_alive_held(eini_arena *a, const ein_dist *d, int k, int64_t place,
                                  int64_t *elements) {
  eini_owners o;
  memset(&o, 0, sizeof o);
  eini_schedule_home(d->desc.schedule, k, &o);
  eini_alive_boxes b = {&o, 0};
  EINI_TRY(eini_owners_boxes(a, d->g, &o, place, eini_alive_box, &b));
  *elements = b.elements;
  return EIN_OK;
}

// The peaks: inputs, values until their last reader, outputs to the end, and of one statement at a
// time what `most` says, for each statement and place.
static ein_status eini_alive_peaks(eini_arena *a, ein_dist *d, const int64_t *most) {
  const int p = d->fabric.places, n = d->nstmt;
  int64_t *change = EINI_NEW(a, int64_t, n + 1);
  if (change == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_alive_inputs(a, d));
  for (int64_t q = 0; q < p; q++) {
    const int64_t inputs = d->peak[q];
    int64_t alive = inputs;
    memset(change, 0, ((size_t)n + 1) * sizeof *change);
    for (int k = 0; k < n; k++) {
      const int t = d->g->stmt[k].out;
      const eini_dist_tensor *x = &d->tensor[t];
      const int last = d->g->tensor[t].role == EIN_ROLE_OUTPUT ? n - 1
                       : x->nread > 0 ? x->read[x->nread - 1] : k;
      int64_t held;
      EINI_TRY(eini_alive_held(a, d, k, q, &held));
      held *= (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
      change[k] += held;
      change[last + 1] -= held;
    }
    for (int k = 0; k < n; k++) {
      alive += change[k];
      d->peak[q] = eini_max64(d->peak[q], alive + most[(int64_t)k * p + q]);
    }
  }
  return EIN_OK;
}
