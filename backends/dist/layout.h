// ================================================================================================
// >>layout  what places hold of a tensor, and what two such layouts have in common
// Takes distributions and plans; gives blocks: of every axis a piece, which is ranges of it. Blocks
// are apart and cover the tensor; each lies at one place or more.
// ================================================================================================

typedef struct eini_layout {
  int rank, places;
  const int64_t *shape;
  int64_t *npiece;          // per axis
  eini_runs **piece;        // per axis: its pieces, which are apart and cover it
  int64_t nblock;           // numbered by their pieces, row-major
  int64_t *nholder, **holder;  // per block: places that have it, ascending
  int64_t *nheld, **held;   // per place: blocks, ascending
} eini_layout;

// The piece of axis r that a block has.
static const eini_runs *eini_layout_piece(const eini_layout *l, int64_t block, int r) {
  for (int i = l->rank - 1; i > r; i--) block /= l->npiece[i];
  return &l->piece[r][block % l->npiece[r]];
}

static int64_t eini_layout_elements(const eini_layout *l, int64_t block) {
  int64_t n = 1;
  for (int r = 0; r < l->rank; r++) n *= eini_layout_piece(l, block, r)->length;
  return n;
}

// Begins a layout; npiece is filled next, then pieces.
static ein_status eini_layout_begin(eini_arena *a, int rank, const int64_t *shape, int places,
                                    eini_layout *l) {
  int64_t count;
  memset(l, 0, sizeof *l);
  EINI_TRY(eini_view_elements(rank, shape, &count));
  int64_t *own = EINI_NEW(a, int64_t, rank);
  l->npiece = EINI_NEW(a, int64_t, rank);
  l->piece = EINI_NEW(a, eini_runs *, rank);
  if (own == NULL || l->npiece == NULL || l->piece == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < rank; r++) own[r] = shape[r];
  l->rank = rank;
  l->places = places;
  l->shape = own;
  l->nblock = 1;
  return EIN_OK;
}

// Room for npiece[r] pieces of every axis, and for lists of blocks and places.
static ein_status eini_layout_room(eini_arena *a, eini_layout *l) {
  for (int r = 0; r < l->rank; r++) {
    if (eini_mul_overflow(l->nblock, l->npiece[r], &l->nblock)) return EIN_ERR_TOO_LARGE;
    l->piece[r] = EINI_NEW(a, eini_runs, l->npiece[r]);
    if (l->piece[r] == NULL) return EIN_ERR_NO_MEMORY;
  }
  l->nholder = EINI_NEW(a, int64_t, l->nblock);
  l->holder = EINI_NEW(a, int64_t *, l->nblock);
  l->nheld = EINI_NEW(a, int64_t, l->places);
  l->held = EINI_NEW(a, int64_t *, l->places);
  return l->nholder == NULL || l->holder == NULL || l->nheld == NULL || l->held == NULL
             ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Blocks are said to lie at places, one after another: first counted, then kept. Those of one block
// come in ascending order, the same may come again.
static void eini_layout_count(eini_layout *l, int64_t block, int64_t place) {
  l->nholder[block]++;
  l->nheld[place]++;
}

static ein_status eini_layout_counted(eini_arena *a, eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    if ((l->holder[k] = EINI_NEW(a, int64_t, l->nholder[k])) == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t q = 0; q < l->places; q++)
    if ((l->held[q] = EINI_NEW(a, int64_t, l->nheld[q])) == NULL) return EIN_ERR_NO_MEMORY;
  memset(l->nholder, 0, (size_t)l->nblock * sizeof *l->nholder);
  memset(l->nheld, 0, (size_t)l->places * sizeof *l->nheld);
  return EIN_OK;
}

static void eini_layout_keep(eini_layout *l, int64_t block, int64_t place) {
  const int64_t n = l->nholder[block];
  if (n > 0 && l->holder[block][n - 1] == place) return;
  l->holder[block][l->nholder[block]++] = place;
}

// Blocks of places, from places of blocks.
static void eini_layout_end(eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    for (int64_t i = 0; i < l->nholder[k]; i++)
      l->held[l->holder[k][i]][l->nheld[l->holder[k][i]]++] = k;
}

// ---- of a distribution ----

// The block that a point has; -1: none.
static int64_t eini_layout_point(const eini_owners *o, const int64_t *coord) {
  const ein_grid *g = o->d->grid;
  int64_t block = 0;
  for (int m = 0; m < g->ndim; m++)
    if (o->d->held[m].kind == EINI_HELD_AT && o->d->held[m].at != coord[m]) return -1;
  for (int r = 0; r < o->d->rank; r++)
    for (int k = 0; k < o->axis[r].ndim; k++) {
      const int m = o->axis[r].dim[k];
      block = block * g->dim[m].extent + coord[m];
    }
  return block;
}

static ein_status eini_layout_of(eini_arena *a, const ein_distribution *d, const int64_t *shape,
                                 eini_layout *l) {
  const ein_grid *g = d->grid;
  eini_owners o;
  eini_stmt *axes;
  memset(&o, 0, sizeof o);
  EINI_TRY(eini_layout_begin(a, d->rank, shape, (int)g->places, l));
  EINI_TRY(eini_stmt_of_axes(a, d->rank, shape, &axes));
  o.d = d;
  o.s = axes;
  EINI_TRY(eini_owners_init(a, shape, &o));
  for (int r = 0; r < l->rank; r++) l->npiece[r] = o.axis[r].n;
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < l->rank; r++) l->piece[r] = o.axis[r].run;
  for (int kept = 0; kept < 2; kept++) {
    if (kept) EINI_TRY(eini_layout_counted(a, l));
    for (int64_t point = 0; point < g->npoint; point++) {
      eini_grid_coords(g, point, o.coord);
      const int64_t block = eini_layout_point(&o, o.coord), place = eini_grid_place(g, point);
      if (block < 0) continue;
      if (kept) eini_layout_keep(l, block, place);
      else eini_layout_count(l, block, place);
    }
  }
  eini_layout_end(l);
  return EIN_OK;
}

// ---- of a plan, and of a whole tensor ----

// Axis r in one piece, or in n equal ones.
static ein_status eini_layout_equal(eini_arena *a, eini_layout *l, int r) {
  for (int64_t k = 0; k < l->npiece[r]; k++) {
    eini_runs *p = &l->piece[r][k];
    EINI_TRY(eini_runs_add(a, p, eini_piece_start(l->shape[r], l->npiece[r], k),
                           eini_piece_start(l->shape[r], l->npiece[r], k + 1)));
  }
  return EIN_OK;
}

// Whole at places [from, to).
static ein_status eini_layout_whole(eini_arena *a, int rank, const int64_t *shape, int places,
                                    int from, int to, eini_layout *l) {
  EINI_TRY(eini_layout_begin(a, rank, shape, places, l));
  for (int r = 0; r < rank; r++) l->npiece[r] = 1;
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < rank; r++) EINI_TRY(eini_layout_equal(a, l, r));
  for (int q = from; q < to; q++) eini_layout_count(l, 0, q);
  EINI_TRY(eini_layout_counted(a, l));
  for (int q = from; q < to; q++) eini_layout_keep(l, 0, q);
  eini_layout_end(l);
  return EIN_OK;
}

// What ein_dist_block says of a tensor whose blocks are boxes.
static ein_status eini_layout_of_plan(eini_arena *a, const ein_dist *d, int t, eini_layout *l) {
  const eini_tensor *e = &d->g->tensor[t];
  const int places = d->fabric.places;
  const ein_schedule *s = d->desc.schedule;
  if (s != NULL && s->place[t] != NULL) return eini_layout_of(a, s->place[t], e->shape, l);
  if (s != NULL || d->tensor[t].ndefine == 0)
    return eini_layout_whole(a, e->rank, e->shape, places, 0, places, l);
  const eini_space *x = &d->stmt[d->tensor[t].define[0]].space;
  EINI_TRY(eini_layout_begin(a, e->rank, e->shape, places, l));
  for (int r = 0; r < e->rank; r++) {
    const int i = eini_plain_row(&x->s->out_map, r);
    l->npiece[r] = i < 0 ? 1 : x->cut[i];
  }
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < e->rank; r++) EINI_TRY(eini_layout_equal(a, l, r));
  for (int kept = 0; kept < 2; kept++) {
    if (kept) EINI_TRY(eini_layout_counted(a, l));
    for (int64_t block = 0; block < l->nblock; block++) {
      int64_t place = 0, left = block;  // its home: pieces of reduced indices are 0
      for (int r = e->rank - 1; r >= 0; r--) {
        const int i = eini_plain_row(&x->s->out_map, r);
        if (i >= 0 && x->cut[i] > 1) place += left % l->npiece[r] * x->weight[i];
        left /= l->npiece[r];
      }
      if (kept) eini_layout_keep(l, block, place);
      else eini_layout_count(l, block, place);
    }
  }
  eini_layout_end(l);
  return EIN_OK;
}

// ---- two layouts ----

// Block number i of those at a place that have elements, from *at on; -1: no more.
static int64_t eini_layout_next(const eini_layout *l, int64_t place, int64_t *at) {
  while (*at < l->nheld[place]) {
    const int64_t block = l->held[place][(*at)++];
    if (eini_layout_elements(l, block) > 0) return block;
  }
  return -1;
}

// Has every place the same of both?
static int eini_layout_same(const eini_layout *a, const eini_layout *b) {
  for (int64_t q = 0; q < a->places; q++) {
    int64_t i = 0, j = 0, x, y;
    do {
      x = eini_layout_next(a, q, &i);
      y = eini_layout_next(b, q, &j);
      if ((x < 0) != (y < 0)) return 0;
      for (int r = 0; r < a->rank && x >= 0; r++) {
        const eini_runs *u = eini_layout_piece(a, x, r), *v = eini_layout_piece(b, y, r);
        if (u->n != v->n || memcmp(u->v, v->v, 2 * (size_t)u->n * sizeof *u->v) != 0) return 0;
      }
    } while (x >= 0);
  }
  return 1;
}

static ein_status eini_runs_common(eini_arena *a, const eini_runs *x, const eini_runs *y,
                                 eini_runs *r) {
  memset(r, 0, sizeof *r);
  for (int64_t i = 0, j = 0; i < x->n && j < y->n;) {
    const int64_t xe = x->v[2 * i + 1], ye = y->v[2 * j + 1];
    EINI_TRY(eini_runs_add(a, r, eini_max64(x->v[2 * i], y->v[2 * j]), eini_min64(xe, ye)));
    if (xe <= ye) i++;
    if (ye <= xe) j++;
  }
  return EIN_OK;
}

// Do they meet? Without memory.
static int eini_runs_overlap(const eini_runs *x, const eini_runs *y) {
  for (int64_t i = 0, j = 0; i < x->n && j < y->n;) {
    if (eini_max64(x->v[2 * i], y->v[2 * j]) < eini_min64(x->v[2 * i + 1], y->v[2 * j + 1]))
      return 1;
    if (x->v[2 * i + 1] <= y->v[2 * j + 1]) i++;
    else j++;
  }
  return 0;
}

// What block `source` of one layout gives to block `target` of another: of every axis the ranges
// that both have, which are not empty. home: the place it comes from.
typedef struct eini_layout_move {
  int64_t source, target, home, place, elements;
  eini_runs *run;           // rank
} eini_layout_move;

typedef ein_status (*eini_layout_fn)(void *user, const eini_layout_move *m);

// The place that gives a block to `place`: that itself where it has it, else all in turn.
static int64_t eini_layout_home(const eini_layout *l, int64_t block, int64_t place) {
  const int64_t *at = l->holder[block], n = l->nholder[block];
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (at[mid] < place) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && at[lo] == place ? place : at[place % n];
}

// Walks the blocks of `from` that meet a block of `to` at a place, in ascending order.
typedef struct eini_layout_walk {
  const eini_layout *from, *to;
  int first, count;         // places whose moves are wanted, on one side or the other
  int64_t **meets, *nmeet, *at;  // per axis: pieces of `from` that meet that of the block; which
  eini_layout_move move;
} eini_layout_walk;

static ein_status eini_layout_walk_init(eini_arena *a, const eini_layout *from,
                                        const eini_layout *to, int first, int count,
                                        eini_layout_walk *w) {
  memset(w, 0, sizeof *w);
  w->from = from;
  w->to = to;
  w->first = first;
  w->count = count;
  w->meets = EINI_NEW(a, int64_t *, from->rank);
  w->nmeet = EINI_NEW(a, int64_t, from->rank);
  w->at = EINI_NEW(a, int64_t, from->rank);
  w->move.run = EINI_NEW(a, eini_runs, from->rank);
  if (w->meets == NULL || w->nmeet == NULL || w->at == NULL || w->move.run == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < from->rank; r++)
    if ((w->meets[r] = EINI_NEW(a, int64_t, from->npiece[r])) == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

// One move, of pieces w->at, unless it concerns other places.
static ein_status eini_layout_walk_one(eini_arena *a, eini_layout_walk *w, eini_layout_fn fn,
                                       void *user) {
  eini_layout_move *m = &w->move;
  m->source = 0;
  for (int r = 0; r < w->from->rank; r++)
    m->source = m->source * w->from->npiece[r] + w->meets[r][w->at[r]];
  m->home = eini_layout_home(w->from, m->source, m->place);
  if ((m->home < w->first || m->home >= w->first + w->count) &&
      (m->place < w->first || m->place >= w->first + w->count)) return EIN_OK;
  const eini_arena_at mark = eini_arena_mark(a);
  ein_status st = EIN_OK;
  m->elements = 1;
  for (int r = 0; r < w->from->rank && st == EIN_OK; r++) {
    st = eini_runs_common(a, eini_layout_piece(w->from, m->source, r),
                        eini_layout_piece(w->to, m->target, r), &m->run[r]);
    m->elements *= m->run[r].length;
  }
  if (st == EIN_OK) st = fn(user, m);
  eini_arena_rollback(a, &mark);
  return st;
}

// Calls fn for all moves; a: scratch.
static ein_status eini_layout_walk_all(eini_arena *a, eini_layout_walk *w, eini_layout_fn fn,
                                       void *user) {
  const int rank = w->from->rank;
  for (int64_t q = 0; q < w->to->places; q++) {
    w->move.place = q;
    for (int64_t i = 0, block; (block = eini_layout_next(w->to, q, &i)) >= 0;) {
      w->move.target = block;
      for (int r = 0; r < rank; r++) {
        const eini_runs *piece = eini_layout_piece(w->to, block, r);
        w->nmeet[r] = w->at[r] = 0;
        for (int64_t k = 0; k < w->from->npiece[r]; k++)
          if (eini_runs_overlap(&w->from->piece[r][k], piece)) w->meets[r][w->nmeet[r]++] = k;
      }
      for (int r = rank; r >= 0;) {
        EINI_TRY(eini_layout_walk_one(a, w, fn, user));
        for (r = rank - 1; r >= 0 && ++w->at[r] == w->nmeet[r]; r--) w->at[r] = 0;
      }
    }
  }
  return EIN_OK;
}
