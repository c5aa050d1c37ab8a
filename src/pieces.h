// ================================================================================================
// >>pieces  tensors defined by several statements, and edge rules
// Proves that the images of a tensor's statements are disjoint and fill its box (GRAMMAR rule 7);
// turns accesses that leave their tensor into padded tensors made of such pieces.
// ================================================================================================

#define EINI_BITMAP_MAX ((int64_t)1 << 22)   // elements that are checked one by one
#define EINI_COVER_EFFORT ((int64_t)1 << 27)

// A mistake in a cover; at: the coordinate concerned; a, b: statements (b -1: not known).
typedef struct eini_cover {
  ein_status status;
  const char *what;       // how the sentence about the coordinate ends
  int64_t *at;            // rank coordinates, or NULL
  int64_t a, b;
  int holes;              // elements may be left out
} eini_cover;

typedef struct eini_ap {  // start, start+step, ..
  int64_t start, step, count;
} eini_ap;

static ein_status eini_cover_fail(eini_cover *c, ein_status st, const char *what, int64_t *at,
                                  int64_t a, int64_t b) {
  c->status = st;
  c->what = what;
  c->at = at;
  c->a = a;
  c->b = b;
  return st;
}

static int eini_ap_has(const eini_ap *a, int64_t x) {
  int64_t d = x - a->start;
  return d >= 0 && d % a->step == 0 && d / a->step < a->count;
}

// The image of one coordinate as a progression; 0 when it is none. Extents of 1 do not count.
static int eini_row_ap(const eini_stmt *s, int r, eini_ap *ap) {
  const eini_map *m = &s->out_map;
  ap->start = s->out_map.offset[r];
  ap->step = ap->count = 1;
  for (int64_t below = 0, next;;) {  // indices by absolute coefficient
    int best = -1, equal = 0;
    int64_t least = INT64_MAX;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      int64_t v = eini_abs64(m->term[e].coef);
      if (v <= below || v > least || s->index[m->term[e].index].extent == 1) continue;
      equal = v == least;
      least = v;
      best = e;
    }
    if (best < 0) return 1;
    if (below == 0) ap->step = least;
    else if (eini_mul_overflow(ap->step, ap->count, &next) || next != least) return 0;
    if (equal) return 0;  // i+j is not one-to-one
    int64_t extent = s->index[m->term[best].index].extent;
    if (m->term[best].coef < 0) ap->start += m->term[best].coef * (extent - 1);
    ap->count *= extent;
    below = least;
  }
}

// Fills ap (rank of them) and adds the points of one piece; 0 when its image is no box of
// progressions.
static int eini_piece_aps(const eini_stmt *s, int rank, eini_ap *ap, int64_t *total) {
  int64_t points = 1;
  for (int c = 0; c < s->nfree; c++)
    if (eini_map_uses(&s->out_map, c) != 1 && s->index[c].extent > 1) return 0;
  for (int r = 0; r < rank; r++)
    if (!eini_row_ap(s, r, &ap[r]) || eini_mul_overflow(points, ap[r].count, &points)) return 0;
  return !eini_add_overflow(*total, points, total);
}

// The first common element of two progressions. Of the one with larger steps, at most as many
// elements as the other's step have different remainders.
static int eini_ap_meet(const eini_ap *a, const eini_ap *b, int64_t *effort, int64_t *x) {
  if (a->step < b->step) return eini_ap_meet(b, a, effort, x);
  int64_t from = a->start < b->start ? (b->start - a->start - 1) / a->step + 1 : 0;
  for (int64_t k = from; k < a->count && k - from < b->step && --*effort > 0; k++) {
    *x = a->start + k * a->step;
    if (eini_ap_has(b, *x)) return 1;
  }
  return 0;
}

// Walks over the points that disjoint boxes of progressions hold, to the first one left out; 0 when
// it is not found with bounded effort.
static int eini_cover_hole(const eini_tensor *t, const eini_ap *ap, int64_t m, int64_t *at) {
  int last = t->rank - 1;
  memset(at, 0, (size_t)t->rank * sizeof *at);
  for (int64_t effort = EINI_COVER_EFFORT; effort > 0 && last >= 0;) {
    int64_t next = -1;
    for (int64_t k = 0; k < m && next < 0; k++) {
      const eini_ap *a = &ap[k * t->rank];
      int r = 0;
      while (r <= last && eini_ap_has(&a[r], at[r])) r++;
      if (r > last) next = a[last].step == 1 ? a[last].start + a[last].count : at[last] + 1;
      effort -= r + 1;
    }
    if (next < 0) return 1;
    at[last] = next;
    for (int r = last; r > 0 && at[r] >= t->shape[r]; r--) {
      at[r] = 0;
      at[r - 1]++;
    }
  }
  return 0;
}

// Marks every point of the pieces; finds a point marked twice or never.
static ein_status eini_cover_bitmap(const ein_graph *g, const eini_tensor *t, const int64_t *piece,
                                    int64_t n, int64_t box, eini_arena *scratch, eini_cover *out,
                                    int64_t *at) {
  int *seen = EINI_NEW(scratch, int, box);  // the number of the piece, + 1
  if (seen == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < n; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    int64_t *i = EINI_NEW(scratch, int64_t, s->nfree);
    if (i == NULL) return EIN_ERR_NO_MEMORY;
    for (int c = eini_stmt_empty(s, 0, s->nfree) ? -1 : 0; c >= 0;) {
      int64_t x = 0;
      for (int r = 0; r < t->rank; r++) {
        at[r] = s->out_map.offset[r];
        for (int e = s->out_map.first[r]; e < s->out_map.first[r + 1]; e++)
          at[r] += s->out_map.term[e].coef * i[s->out_map.term[e].index];
        x = x * t->shape[r] + at[r];
      }
      if (seen[x] != 0) {
        return eini_cover_fail(out, EIN_ERR_SHAPE, "is defined twice", at, piece[k],
                               seen[x] == k + 1 ? -1 : piece[seen[x] - 1]);
      }
      seen[x] = (int)k + 1;
      for (c = s->nfree - 1; c >= 0 && ++i[c] == s->index[c].extent; c--) i[c] = 0;
    }
  }
  for (int64_t x = 0; x < box && !out->holes; x++) {
    if (seen[x] != 0) continue;
    for (int r = t->rank - 1; r >= 0; r--) {
      at[r] = x % t->shape[r];
      x /= t->shape[r];
    }
    return eini_cover_fail(out, EIN_ERR_SHAPE, "is undefined", at, piece[0], -1);
  }
  return EIN_OK;
}

// The box of a tensor: up to the largest coordinate of its pieces. Empty pieces count only when
// all are empty; then the extents of indices that stand alone say what the shape is.
static ein_status eini_cover_box(const ein_graph *g, eini_tensor *t, const int64_t *piece,
                                 int64_t n, eini_arena *scratch, eini_cover *out, int64_t *at,
                                 int64_t *box) {
  int any = 0, over = 0;
  for (int64_t k = 0; k < n; k++)
    any |= !eini_stmt_empty(&g->stmt[piece[k]], 0, g->stmt[piece[k]].nfree);
  for (int64_t k = 0; k < n; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    if (any && eini_stmt_empty(s, 0, s->nfree)) continue;
    int64_t *extent = EINI_NEW(scratch, int64_t, s->nindex);
    if (extent == NULL) return EIN_ERR_NO_MEMORY;
    for (int c = 0; c < s->nindex; c++) extent[c] = c < s->nfree ? s->index[c].extent : 1;
    for (int r = 0; r < t->rank; r++) {
      const eini_map *m = &s->out_map;
      int64_t lo = 0, hi = -1;
      if (any) EINI_TRY(eini_map_row_range(m, r, extent, &lo, &hi));
      for (int e = m->first[r]; !any && e < m->first[r + 1]; e++)
        if (m->term[e].coef == 1 && m->offset[r] == 0) hi = extent[m->term[e].index] - 1;
      if (lo < 0) {
        at[r] = lo;
        return eini_cover_fail(out, EIN_ERR_BOUNDS, "is written: coordinates start at 0", at,
                               piece[k], -1);
      }
      if (hi == INT64_MAX) return eini_cover_fail(out, EIN_ERR_TOO_LARGE, "", NULL, piece[k], -1);
      t->shape[r] = eini_max64(t->shape[r], hi + 1);
    }
  }
  *box = 1;
  for (int r = 0; r < t->rank; r++) {
    if (t->shape[r] == 0) *box = over = 0;
    if (*box > 0) over |= eini_mul_overflow(*box, t->shape[r], box);
  }
  return over ? eini_cover_fail(out, EIN_ERR_TOO_LARGE, "", NULL, piece[0], -1) : EIN_OK;
}

// Sets the tensor's shape and proves that its pieces define every element once.
static ein_status eini_cover_prove(ein_graph *g, int tensor, const int64_t *piece, int64_t n,
                                   eini_arena *scratch, eini_cover *out) {
  eini_tensor *t = &g->tensor[tensor];
  int64_t box = 0, total = 0, m = 0, effort = EINI_COVER_EFFORT;
  int rank = t->rank, exact = 1;
  t->shape = EINI_NEW(&g->arena, int64_t, rank);
  int64_t *who = EINI_NEW(scratch, int64_t, n), *at = EINI_NEW(scratch, int64_t, rank);
  eini_ap *ap = EINI_NEW(scratch, eini_ap, n * rank);
  if (t->shape == NULL || who == NULL || at == NULL || ap == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cover_box(g, t, piece, n, scratch, out, at, &box));
  for (int64_t k = 0; k < n && exact; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    const eini_ap *mine = ap + m * rank;
    if (eini_stmt_empty(s, 0, s->nfree)) continue;
    exact = eini_piece_aps(s, rank, ap + m * rank, &total);
    for (int64_t j = 0; j < m && exact; j++) {
      int r = 0;
      while (r < rank && eini_ap_meet(&ap[j * rank + r], &mine[r], &effort, &at[r])) r++;
      if (r == rank)
        return eini_cover_fail(out, EIN_ERR_SHAPE, "is defined twice", at, piece[k], who[j]);
      exact = --effort > 0;
    }
    who[m++] = piece[k];
  }
  if (exact && (total == box || out->holes)) return EIN_OK;
  if (box <= EINI_BITMAP_MAX)
    return eini_cover_bitmap(g, t, piece, n, box, scratch, out, at);
  if (!exact) return eini_cover_fail(out, EIN_ERR_UNSUPPORTED, "", NULL, piece[0], -1);
  if (eini_cover_hole(t, ap, m, at))
    return eini_cover_fail(out, EIN_ERR_SHAPE, "is undefined", at, piece[0], -1);
  return eini_cover_fail(out, EIN_ERR_SHAPE, "has undefined elements", NULL, piece[0], -1);
}

// A mistake in a cover as a sentence; n: the bytes of the tensor's name that are shown.
static void eini_cover_text(const eini_cover *c, const char *name, int n, int rank, char *buf,
                            size_t size) {
  size_t at = (size_t)snprintf(buf, size, "'%.*s", n, name);
  for (int r = 0; c->at != NULL && r < rank && at < size - 96; r++)
    at += (size_t)snprintf(buf + at, size - at, "%s%lld%s", r ? "," : "[", (long long)c->at[r],
                           r == rank - 1 ? "]" : "");
  snprintf(buf + at, size - at, "' %s", c->status == EIN_ERR_TOO_LARGE ? "is too large" :
           c->status == EIN_ERR_UNSUPPORTED ? "has pieces too large to be checked point by point" :
           c->what);
}

// Statements whose value nobody observes are dropped (Tapestry: pruning); order stays.
static ein_status eini_graph_prune(ein_graph *g) {
  char *used = EINI_NEW(&g->arena, char, g->ntensor);
  if (used == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) used[t] = g->tensor[t].role == EIN_ROLE_OUTPUT;
  char *keep = EINI_NEW(&g->arena, char, g->nstmt);
  if (keep == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = g->nstmt - 1; i >= 0; i--) {
    const eini_stmt *s = &g->stmt[i];
    keep[i] = used[s->out];
    if (!keep[i]) continue;
    for (int k = 0; k < s->noperand; k++) used[s->operand[k]] = 1;
  }
  int64_t n = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    eini_tensor *t = &g->tensor[g->stmt[i].out];
    if (!keep[i]) t->nstmt--, t->line = g->stmt[i].line;  // where it was
    else g->stmt[n++] = g->stmt[i];
  }
  g->nstmt = n;
  return EIN_OK;
}
