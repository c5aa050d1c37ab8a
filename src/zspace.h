// ================================================================================================
// >>zspace  images of affine maps
// Takes maps and boxes of an index space; gives what they select. Invariant: nothing wraps.
// ================================================================================================

// Whether out lacks the arrays for a result of this rank (its own rank is ignored).
static int eini_zrange_no_room(const ein_zrange *out, int rank) {
  return out == NULL || (rank > 0 && (out->start == NULL || out->end == NULL));
}

static int eini_zrange_empty(int rank, const int64_t *start, const int64_t *end) {
  for (int i = 0; i < rank; i++)
    if (end[i] <= start[i]) return 1;
  return 0;
}

// Maps: y and x never share memory, since every row reads all of x.
static int eini_zmap_bad(const ein_zmap *m) {
  return m == NULL || m->rows < 0 || m->cols < 0 || (m->rows > 0 && m->offset == NULL) ||
         (m->rows > 0 && m->cols > 0 && m->coef == NULL);
}

// Exact minimum and maximum of offset + sum(coef[i] * x[i]) for start[i] <= x[i] < end[i]; start
// NULL: from 0, end NULL: the one point start. Each term takes its corner by the sign of coef: the
// two extreme corners of x would be wrong for i-j. Fails also when only a partial sum wraps.
static ein_status eini_zmap_row(const int64_t *coef, int cols, int64_t offset,
                                const int64_t *start, const int64_t *end, int64_t *lo,
                                int64_t *hi) {
  *lo = *hi = offset;
  for (int i = 0; i < cols; i++) {
    int64_t first = start != NULL ? start[i] : 0, last = end != NULL ? end[i] - 1 : first, a, b;
    if (eini_mul_overflow(coef[i], first, &a) || eini_mul_overflow(coef[i], last, &b) ||
        eini_add_overflow(*lo, eini_min64(a, b), lo) ||
        eini_add_overflow(*hi, eini_max64(a, b), hi)) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  return EIN_OK;
}

// The same for 0 <= x[i] < extent[i], where all extents are >= 1.
static ein_status eini_zmap_row_range(const int64_t *coef, int cols, int64_t offset,
                                      const int64_t *extent, int64_t *lo, int64_t *hi) {
  return eini_zmap_row(coef, cols, offset, NULL, extent, lo, hi);
}

// What the points select together. No points, or an empty block, give empty rows.
EINI_UNUSED static ein_status eini_zmap_image(const ein_zmap *m, int rank, const int64_t *start,
                                              const int64_t *end, ein_zrange *y) {
  if (eini_zmap_bad(m) || eini_zrange_no_room(y, m->rows)) return EIN_ERR_ARGUMENT;
  if (rank != m->cols) return EIN_ERR_SHAPE;
  int empty = end != NULL && eini_zrange_empty(rank, start, end);
  for (int r = 0; r < m->rows; r++) {
    int64_t lo = m->offset[r], hi = lo, block = m->block != NULL ? m->block[r] : 1;
    if (block < 0) return EIN_ERR_SHAPE;
    const int64_t *coef = m->cols > 0 ? m->coef + (ptrdiff_t)r * m->cols : NULL;
    if (!empty) EINI_TRY(eini_zmap_row(coef, m->cols, lo, start, end, &lo, &hi));
    if (empty || block == 0) hi = lo;
    else if (eini_add_overflow(hi, block, &hi)) return EIN_ERR_TOO_LARGE;
    y->start[r] = lo;
    y->end[r] = hi;
  }
  y->rank = m->rows;
  return EIN_OK;
}
