// ================================================================================================
// >>fusion-bound  how little a group can move
// Takes a group; gives a number of elements that every execution of its members moves, in any order
// of their points, mixed at will, with any tensors between them stored or computed again.
// ================================================================================================

// A point of a member reads of each held tensor an element that either counts as an access, or was
// made in the same segment, by a point that touches what its maker reads. So points of a member are
// of several kinds, one for each way of cutting what it is made from: of each kind there are no
// more in a segment that touches x elements than the accesses behind the cut allow (bound), and of
// all no more than their sum. Of makers' indices only those count that the member's own say; of
// what members fold for others nothing need be touched twice, so that results count only where they
// leave the group.

#define EINI_FUSE_KINDS 32       // of points of a member; with more, points may touch nothing

typedef struct eini_fuse_touch {   // an access, and the member's indices that its own are
  const eini_map *map;
  int tensor;
  const int *at;
} eini_fuse_touch;

typedef struct eini_fuse_open {    // an access to a held tensor, that may be cut or not
  int member, operand;
  const int *at;
} eini_fuse_open;

typedef struct eini_fuse_cuts {
  eini_arena *a;
  const eini_fuse_graph *w;
  const eini_fuse *f;
  int m;                           // the member
  double fast;
  int64_t *extent;                 // of its indices, and 1
  eini_fuse_touch *touch;
  eini_fuse_open *open;
  int64_t captouch, capopen;
  int ntouch, nopen;
  int nkind, many;                 // many: kinds are too many
  double loose[EINI_FUSE_KINDS], all[EINI_FUSE_KINDS];  // log points: of what no access sees, and
                                                        //   of what some do
  eini_io *io;                     // [EINI_FUSE_KINDS]
} eini_fuse_cuts;

static ein_status eini_fuse_cut(eini_fuse_cuts *c, const eini_map *map, int tensor, const int *at) {
  eini_fuse_touch *p =
      (eini_fuse_touch *)eini_grow(c->a, c->touch, c->ntouch, &c->captouch, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  c->touch = p;
  p += c->ntouch++;
  p->map = map;
  p->tensor = tensor;
  p->at = at;
  return EIN_OK;
}

// All that a member reads, at indices `at`: from outside, or of held tensors.
static ein_status eini_fuse_cut_reads(eini_fuse_cuts *c, int member, const int *at) {
  const eini_stmt *s = c->f->member[member].s;
  for (int k = 0; k < s->noperand; k++) {
    if (!eini_fuse_here(c->w, s->operand[k])) {
      EINI_TRY(eini_fuse_cut(c, &s->proj[k], s->operand[k], at));
      continue;
    }
    eini_fuse_open *p =
        (eini_fuse_open *)eini_grow(c->a, c->open, c->nopen, &c->capopen, sizeof *p);
    if (p == NULL) return EIN_ERR_NO_MEMORY;
    c->open = p;
    p += c->nopen++;
    p->member = member;
    p->operand = k;
    p->at = at;
  }
  return EIN_OK;
}

// The indices of whoever makes an operand, by those of the member that reads it. Those that cannot
// be said are the last one, of extent 1.
static ein_status eini_fuse_cut_through(eini_fuse_cuts *c, const eini_fuse_open *o, int maker,
                                        const int **to) {
  const eini_stmt *s = c->f->member[o->member].s, *p = c->f->member[maker].s;
  const eini_map *map = &s->proj[o->operand];
  int *at = EINI_NEW(c->a, int, p->nindex);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < p->nindex; i++) at[i] = c->f->member[c->m].s->nindex;
  for (int r = 0; r < map->rows; r++) {
    int64_t x, y;
    const int i = eini_row_index(&p->out_map, r, &x), j = eini_row_index(map, r, &y);
    if (i >= 0 && j >= 0) at[i] = o->at[j];
  }
  *to = at;
  return EIN_OK;
}

// One kind of points, by the accesses at hand. Those by sums of indices do not count, for boxes are
// not the best sets for them.
static ein_status eini_fuse_kind(eini_fuse_cuts *c) {
  const int n = c->f->member[c->m].s->nindex;
  eini_touch t;
  eini_io *io = &c->io[c->nkind];
  memset(&t, 0, sizeof t);
  t.n = n + 1;
  t.extent = c->extent;
  for (int k = 0; k < c->ntouch; k++) {
    const eini_fuse_touch *x = &c->touch[k];
    int mixed = 0;
    for (int r = 0; r < x->map->rows; r++) mixed |= eini_map_terms(x->map, r) > 1;
    if (!mixed) EINI_TRY(eini_touch_add(c->a, &t, x->map, x->tensor, x->at));
  }
  EINI_TRY(eini_io_make(c->a, &t, 1, c->fast, io));
  c->loose[c->nkind] = c->all[c->nkind] = 0;
  for (int i = 0; i < n; i++)
    (io->var[i] < 0 ? c->loose : c->all)[c->nkind] += log((double)c->extent[i]);
  eini_io_intensity(io, 1);
  c->nkind++;
  return EIN_OK;
}

// Every way of cutting what is open from number k on.
static ein_status eini_fuse_kinds(eini_fuse_cuts *c, int k) {
  const int ntouch = c->ntouch, nopen = c->nopen;
  int maker = -1;
  if (c->nkind == EINI_FUSE_KINDS) c->many = 1;
  if (c->many) return EIN_OK;
  if (k == c->nopen) return eini_fuse_kind(c);
  const eini_fuse_open o = c->open[k];
  const eini_stmt *s = c->f->member[o.member].s;
  const int t = s->operand[o.operand];
  EINI_TRY(eini_fuse_cut(c, &s->proj[o.operand], t, o.at));
  EINI_TRY(eini_fuse_kinds(c, k + 1));
  c->ntouch = ntouch;
  if (c->w->made[t] == 1) {  // else: any of its makers may have made it
    const int *at;
    for (int p = 0; p < c->f->n; p++)
      if (c->f->member[p].s->out == t) maker = p;
    EINI_TRY(eini_fuse_cut_through(c, &o, maker, &at));
    EINI_TRY(eini_fuse_cut_reads(c, maker, at));
  }
  EINI_TRY(eini_fuse_kinds(c, k + 1));
  c->ntouch = ntouch;
  c->nopen = nopen;
  return EIN_OK;
}

// The most points of a member in a segment that touches x elements.
static double eini_fuse_reach(const eini_fuse_cuts *c, double x) {
  double n = 0;
  if (c->many) return INFINITY;
  for (int k = 0; k < c->nkind; k++) {
    double most = c->all[k];
    if (c->io[k].least > x && c->io[k].least > 0) continue;
    if (c->io[k].nreach > 0) most = fmin(most, eini_io_points(&c->io[k], log(x)));
    n += exp(most + c->loose[k] + EINI_IO_ERROR);
  }
  return n;
}

static ein_status eini_fuse_cuts_make(eini_arena *a, const eini_fuse_graph *w, const eini_fuse *f,
                                      int m, double fast, eini_fuse_cuts *c) {
  const eini_stmt *s = f->member[m].s;
  int *at = EINI_NEW(a, int, s->nindex);
  memset(c, 0, sizeof *c);
  c->a = a;
  c->w = w;
  c->f = f;
  c->m = m;
  c->fast = fast;
  c->extent = EINI_NEW(a, int64_t, (int64_t)s->nindex + 1);
  c->io = EINI_NEW(a, eini_io, EINI_FUSE_KINDS);
  if (at == NULL || c->extent == NULL || c->io == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) c->extent[at[i] = i] = s->index[i].extent;
  c->extent[s->nindex] = 1;
  if (f->member[m].stored && !f->member[m].held && s->nfree < s->nindex)
    EINI_TRY(eini_fuse_cut(c, &s->out_map, s->out, at));
  EINI_TRY(eini_fuse_cut_reads(c, m, at));
  return eini_fuse_kinds(c, 0);
}

// What is read from outside, once each, and stored.
static ein_status eini_fuse_compulsory(eini_arena *a, const eini_fuse *f, double *sum) {
  double *most = EINI_NEW(a, double, f->naccess);
  *sum = 0;
  if (most == NULL) return EIN_ERR_NO_MEMORY;
  for (int m = 0; m < f->n; m++) {
    const eini_stmt *s = f->member[m].s;
    eini_touch t;
    EINI_TRY(eini_touch_statement(a, s, &t));
    if (f->member[m].stored) *sum += eini_points(s, NULL, 0, s->nfree);
    for (int i = 0; i < t.nimage; i++) {
      int k = 0;
      while (k < f->naccess && (f->access[k].kind != EINI_FUSE_READ ||
                                f->access[k].tensor != t.image[i].tensor)) k++;
      if (k < f->naccess && t.image[i].tensor != s->out) most[k] = fmax(most[k], t.image[i].whole);
    }
  }
  for (int k = 0; k < f->naccess; k++) *sum += most[k];
  return EIN_OK;
}

// Are there points that blocks leave out? Of what is held, those that nobody reads.
static int eini_fuse_idle(const eini_fuse *f) {
  double most[EINI_FUSE_CLASSES] = {0};  // values of those that need no more than their own
  for (int k = 0; k < f->nindex; k++) {
    const eini_fuse_index *i = &f->index[k];
    if (i->mul == 1 && i->lo == 0 && i->hi == 0) most[i->cls] = fmax(most[i->cls], i->extent);
  }
  for (int k = 0; k < f->nindex; k++) {
    const eini_fuse_index *i = &f->index[k];
    if (f->whole[i->cls]) continue;
    if (i->lo > 0 || i->hi - i->lo + 1 < i->mul ||
        i->mul * (most[i->cls] - 1) + i->hi + 1 < i->extent) return 1;
  }
  return 0;
}

// What so many segments move, each of which moves n elements, but for the last one.
static double eini_fuse_segments(double n, double segments) {
  return n * fmax(0, ceil(segments * (1 - EINI_IO_ERROR)) - 1);
}

// The bound of a group: compulsory traffic, or whole segments of the points of a member, or of all.
static ein_status eini_fuse_bound(eini_arena *a, eini_fuse_graph *w, const eini_fuse *f,
                                  double fast, double *compulsory, double *bound) {
  static const double by[] = {1.25, 1.5, 2, 2.25, 2.5, 3, 3.5, 4, 5, 6, 8, 16, 64};
  const size_t nby = sizeof by / sizeof *by;
  eini_fuse_cuts *cuts = EINI_NEW(a, eini_fuse_cuts, f->n);
  if (cuts == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_fuse_compulsory(a, f, compulsory));
  if (eini_fuse_idle(f)) {  // what those touch need not move
    *compulsory = 0;
    for (int m = 0; m < f->n; m++)
      if (f->member[m].stored) *compulsory += eini_points(f->member[m].s, NULL, 0,
                                                          f->member[m].s->nfree);
    *bound = *compulsory;
    return EIN_OK;
  }
  *bound = *compulsory;
  eini_fuse_count(w, f, 1);
  ein_status st = EIN_OK;
  for (int m = 0; m < f->n && st == EIN_OK; m++)
    st = eini_fuse_cuts_make(a, w, f, m, fast, &cuts[m]);
  eini_fuse_count(w, f, -1);
  for (int m = 0; m < f->n && st == EIN_OK; m++) {
    for (size_t i = 0; i < nby + (size_t)cuts[m].nkind; i++) {
      const double x = floor(i < nby ? by[i] * fast + 1 : cuts[m].io[i - nby].x0);
      double points = 0;
      if (!(x > fast && x < 1e300)) continue;
      for (int q = 0; q < f->n; q++) {
        const double mine = fmax(1, eini_fuse_reach(&cuts[q], x));
        points += mine;
        *bound = fmax(*bound, eini_fuse_segments(x - fast, f->member[q].points / mine));
      }
      *bound = fmax(*bound, eini_fuse_segments(x - fast, f->points / points));
    }
  }
  return st;
}
