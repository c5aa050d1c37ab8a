#ifndef EINSUM_CORE_ONLY

// ================================================================================================
// >>spaces  points, ranges and affine maps of integer index spaces
// Takes and fills the caller's arrays (a result's rank is set here). Invariant: nothing wraps.
// ================================================================================================

// Arrays of rank 0 may be NULL.
static int eini_zrange_bad(const ein_zrange *r) {
  return r == NULL || r->rank < 0 || (r->rank > 0 && (r->start == NULL || r->end == NULL));
}

static int eini_zpoint_bad(const ein_zpoint *p) {
  return p == NULL || p->rank < 0 || (p->rank > 0 && p->coord == NULL);
}

static ein_status eini_zrange_extent(const ein_zrange *r, int axis, int64_t *extent) {
  int64_t start = r->start[axis], end = r->end[axis];
  if (start < 0 && end > INT64_MAX + start) return EIN_ERR_TOO_LARGE;
  *extent = end > start ? end - start : 0;
  return EIN_OK;
}

EIN_API ein_status ein_zrange_size(const ein_zrange *r, int64_t *size) {
  if (eini_zrange_bad(r) || size == NULL) return EIN_ERR_ARGUMENT;
  int64_t n = eini_zrange_empty(r->rank, r->start, r->end) ? 0 : 1;
  for (int i = 0; i < r->rank && n > 0; i++) {  // an empty range is never too large
    int64_t extent;
    EINI_TRY(eini_zrange_extent(r, i, &extent));
    if (eini_mul_overflow(n, extent, &n)) return EIN_ERR_TOO_LARGE;
  }
  *size = n;
  return EIN_OK;
}

EIN_API int ein_zrange_contains(const ein_zrange *r, const ein_zpoint *p) {
  if (eini_zrange_bad(r) || eini_zpoint_bad(p) || r->rank != p->rank) return 0;
  for (int i = 0; i < r->rank; i++)
    if (p->coord[i] < r->start[i] || p->coord[i] >= r->end[i]) return 0;
  return 1;
}

// As a set of points: an empty range lies in every range of its rank.
EIN_API int ein_zrange_contains_range(const ein_zrange *r, const ein_zrange *inner) {
  if (eini_zrange_bad(r) || eini_zrange_bad(inner) || r->rank != inner->rank) return 0;
  if (eini_zrange_empty(r->rank, inner->start, inner->end)) return 1;
  for (int i = 0; i < r->rank; i++)
    if (inner->start[i] < r->start[i] || inner->end[i] > r->end[i]) return 0;
  return 1;
}

EIN_API ein_status ein_zrange_intersect(const ein_zrange *a, const ein_zrange *b,
                                        ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_bad(b)) return EIN_ERR_ARGUMENT;
  if (eini_zrange_no_room(out, a->rank)) return EIN_ERR_ARGUMENT;
  if (a->rank != b->rank) return EIN_ERR_SHAPE;
  out->rank = a->rank;
  for (int i = 0; i < out->rank; i++) {  // both ends are read before out, which may be a or b
    int64_t start = eini_max64(a->start[i], b->start[i]);
    int64_t end = eini_min64(a->end[i], b->end[i]);
    out->start[i] = start;
    out->end[i] = eini_max64(start, end);
  }
  return EIN_OK;
}

EIN_API ein_status ein_zrange_translate(const ein_zrange *a, const int64_t *by, ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_no_room(out, a->rank)) return EIN_ERR_ARGUMENT;
  if (by == NULL && a->rank > 0) return EIN_ERR_ARGUMENT;
  for (int i = 0; i < a->rank; i++) {
    if (eini_add_overflow(a->start[i], by[i], &out->start[i]) ||
        eini_add_overflow(a->end[i], by[i], &out->end[i])) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  out->rank = a->rank;
  return EIN_OK;
}

EIN_API ein_status ein_zrange_split(const ein_zrange *a, int axis, int64_t n, int64_t i,
                                    ein_zrange *out) {
  if (eini_zrange_bad(a) || axis < 0 || axis >= a->rank || n < 1 || i < 0 || i >= n)
    return EIN_ERR_ARGUMENT;
  int64_t size, first = a->start[axis];
  EINI_TRY(eini_zrange_extent(a, axis, &size));
  EINI_TRY(ein_zrange_intersect(a, a, out));  // a copy; out may be a
  int64_t piece = size / n + (size % n != 0);
  int64_t at = piece > 0 && i <= size / piece ? i * piece : size;  // i * piece alone may wrap
  out->start[axis] = first + at;
  out->end[axis] = first + at + eini_min64(piece, size - at);
  return EIN_OK;
}

EIN_API ein_status ein_zrange_product(const ein_zrange *a, const ein_zrange *b, ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_bad(b)) return EIN_ERR_ARGUMENT;
  if (a->rank > INT_MAX - b->rank) return EIN_ERR_TOO_LARGE;
  int rank = a->rank, more = b->rank;
  if (eini_zrange_no_room(out, rank + more)) return EIN_ERR_ARGUMENT;
  for (int i = more - 1; i >= 0; i--) {  // b first and backwards: out may share memory with a or b
    out->start[rank + i] = b->start[i];
    out->end[rank + i] = b->end[i];
  }
  for (int i = 0; i < rank; i++) {
    out->start[i] = a->start[i];
    out->end[i] = a->end[i];
  }
  out->rank = rank + more;
  return EIN_OK;
}

EIN_API ein_status ein_zmap_point(const ein_zmap *m, const ein_zpoint *x, ein_zpoint *y) {
  if (eini_zmap_bad(m) || eini_zpoint_bad(x)) return EIN_ERR_ARGUMENT;
  if (y == NULL || (m->rows > 0 && y->coord == NULL)) return EIN_ERR_ARGUMENT;
  if (x->rank != m->cols) return EIN_ERR_SHAPE;
  for (int r = 0; r < m->rows; r++) {
    const int64_t *coef = m->cols > 0 ? m->coef + (ptrdiff_t)r * m->cols : NULL;
    int64_t *at = &y->coord[r], same;
    EINI_TRY(eini_zmap_row(coef, m->cols, m->offset[r], x->coord, NULL, at, &same));
  }
  y->rank = m->rows;
  return EIN_OK;
}

EIN_API ein_status ein_zmap_block(const ein_zmap *m, const ein_zpoint *x, ein_zrange *y) {
  if (eini_zpoint_bad(x)) return EIN_ERR_ARGUMENT;
  return eini_zmap_image(m, x->rank, x->coord, NULL, y);
}

EIN_API ein_status ein_zmap_range(const ein_zmap *m, const ein_zrange *x, ein_zrange *y) {
  if (eini_zrange_bad(x)) return EIN_ERR_ARGUMENT;
  return eini_zmap_image(m, x->rank, x->start, x->end, y);
}
