// ================================================================================================
// >>group-along  blocks that go along an index
// Takes a run of units; gives blocks of some rows that go, piece by piece, along an index that is
// an axis of what the group makes for itself and is folded there: of it only a piece is held.
// ================================================================================================

// Sides that are tried: rows of a block, and values in a piece.
#define EINI_ALONG_SIZES 6
static const unsigned char eini_along_sizes[EINI_ALONG_SIZES][2] = {
    {128, 64}, {64, 64}, {64, 32}, {32, 32}, {16, 32}, {16, 16}};

// Have all members that have class c one index of it, which goes value by value with the class?
static int eini_along_even(const eini_fuse *f, int c) {
  if (f->whole[c]) return 0;
  for (int i = 0; i < f->nindex; i++) {
    const eini_fuse_index *x = &f->index[i];
    if (x->cls == c && (x->mul != 1 || x->lo != 0 || x->hi != 0 || x->extent != f->extent[c]))
      return 0;
  }
  return 1;
}

// The class to go along: held by a member, folded by another; of several the longest; or -1.
static int eini_along_class(const eini_fuse *f) {
  int best = -1;
  for (int c = 0; c < f->ncls; c++) {
    const uint64_t bit = (uint64_t)1 << c;
    int held = 0, folded = 0;
    for (int m = 0; m < f->n; m++) {
      const eini_fuse_member *x = &f->member[m];
      held |= x->held && (x->in & bit) && !(x->fold & bit);
      folded |= (x->fold & bit) != 0;
    }
    if (held && folded && f->extent[c] > 1 && eini_along_even(f, c) &&
        (best < 0 || f->extent[c] > f->extent[best]))
      best = c;
  }
  return best;
}

// Is class c free in all members? 2: and what one reads from outside, going along, has not got it.
static int eini_along_rows(const eini_fuse *f, int c, int along) {
  int rows = eini_along_even(f, c) ? 1 : 0;
  for (int m = 0; m < f->n; m++)
    if (!(f->member[m].in >> c & 1) || (f->member[m].fold >> c & 1)) rows = 0;
  for (int k = 0; k < f->naccess && rows > 0; k++)
    if (f->access[k].kind == EINI_FUSE_READ && (f->access[k].in >> along & 1) &&
        !(f->access[k].in >> c & 1))
      rows = 2;
  return rows;
}

// Sides of classes: `rows` values of those that share what is read, or of the longest; one of
// others that are free everywhere. 0: there are too many loops.
static int eini_along_sides(eini_fuse *f, int along, double rows, eini_bundle *b) {
  char done[EINI_FUSE_CLASSES] = {0};
  b->nloop = 0;
  for (;;) {
    int c = -1, most = 0;
    for (int i = 0; i < f->ncls; i++) {
      const int r = i == along || done[i] ? 0 : eini_along_rows(f, i, along);
      if (r > most || (r > 0 && r == most && f->extent[i] > f->extent[c])) c = i, most = r;
    }
    if (c < 0) break;
    done[c] = 1;
    f->side[c] = most == 2 || b->nloop == 0 ? fmin(rows, f->extent[c]) : 1;
    rows = fmax(1, floor(rows / f->side[c]));
    if (f->side[c] >= f->extent[c]) continue;
    if (b->nloop == EINI_GROUP_LOOPS - 1) return 0;
    b->cls[b->nloop++] = c;
  }
  b->cls[b->nloop++] = along;
  b->along = b->nloop;
  return 1;
}

static int eini_along_loops(const eini_trail *w, eini_fuse *f, const int64_t *list, int64_t rows,
                            int64_t piece, eini_bundle *b) {
  const int c = eini_along_class(f);
  if (c < 0 || !eini_along_sides(f, c, (double)rows, b)) return 0;
  f->side[c] = fmin((double)piece, f->extent[c]);
  for (int l = 0; l < b->nloop; l++) {
    if (!eini_bundle_loop(w, f, list, b->cls[l], b, l)) return 0;
    if (l == b->along - 1) b->edge[l] = b->extent[l];
    else if (!eini_bundle_edge(w, b, l)) return 0;
  }
  return 1;
}

// Such blocks of units [from, to]; *yes 0: there are none.
static ein_status eini_along_make(eini_trail *w, int from, int to, int64_t rows, int64_t piece,
                                  eini_bundle *b, int *yes) {
  const eini_arena_at mark = eini_arena_mark(&w->z.scratch);
  int64_t list[EINI_FUSE_MOST];
  eini_fuse f;
  int fits = 0;
  const int n = eini_bundle_list(w, from, to, list);
  *yes = 0;
  memset(b, 0, sizeof *b);
  b->from = from, b->to = to;
  if (n == 0) return EIN_OK;
  eini_fuse_of(&w->z.w, list, n, &f);
  w->z.w.along = 1;
  const ein_status st = eini_fuse_make(&w->z.scratch, &w->z.w, &f, &fits);
  w->z.w.along = 0;
  if (st == EIN_OK && fits) *yes = eini_along_loops(w, &f, list, rows, piece, b);
  eini_arena_rollback(&w->z.scratch, &mark);
  return st;
}
