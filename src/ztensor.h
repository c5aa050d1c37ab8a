// ================================================================================================
// >>ztensor  views: shape and strides over the caller's memory
// Takes valid views; gives views of the same elements, never copies. Invariant: a view without
// elements touches nothing, so its strides are never looked at and its data pointer never moves.
// ================================================================================================

// Product of the extents; 0 when any is 0, even if the others alone would not fit.
static ein_status eini_view_elements(int rank, const int64_t *shape, int64_t *count) {
  int64_t n = 1;
  int wraps = 0;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) return EIN_ERR_SHAPE;
    if (shape[i] == 0) n = 0;
    if (n > 0 && eini_mul_overflow(n, shape[i], &n)) wraps = 1;
  }
  *count = n;
  return n > 0 && wraps ? EIN_ERR_TOO_LARGE : EIN_OK;
}

EIN_API int64_t ein_view_count(const ein_ztensor *t) {
  int64_t count;
  if (t == NULL || t->rank < 0 || (t->rank > 0 && t->shape == NULL)) return -1;
  return eini_view_elements(t->rank, t->shape, &count) == EIN_OK ? count : -1;
}

// Stride of an axis in elements. Row-major strides that do not fit occur only in views without
// elements and are given as 0.
static int64_t eini_stride(const ein_ztensor *t, int axis) {
  if (t->strides != NULL) return t->strides[axis];
  int64_t stride = 1;
  for (int i = t->rank - 1; i > axis; i--)
    if (eini_mul_overflow(stride, t->shape[i], &stride)) return 0;
  return stride;
}

// Lowest and highest element offset from data; 0 and -1 without elements. Offsets and the span
// fit in bytes, too.
static ein_status eini_view_extent(const ein_ztensor *t, int64_t *lo, int64_t *hi) {
  int64_t count, first, last, size = (int64_t)ein_dtype_size(t->dtype);
  EINI_TRY(eini_view_elements(t->rank, t->shape, &count));
  *lo = 0;
  *hi = count - 1;
  if (count == 0) return EIN_OK;
  if (t->strides) EINI_TRY(eini_zmap_row_range(t->strides, t->rank, 0, t->shape, lo, hi));
  if (eini_mul_overflow(*lo, size, &first) || eini_muladd_overflow(*hi, size, size, &last) ||
      (uint64_t)last - (uint64_t)first > (uint64_t)PTRDIFF_MAX) {
    return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

// Whether elements lo .. hi of the view lie in its buffer. Addresses are compared as integers,
// since data may point anywhere.
static int eini_view_inside(const ein_ztensor *t, int64_t lo, int64_t hi) {
  uint64_t data = (uint64_t)(uintptr_t)t->data, base = (uint64_t)(uintptr_t)t->buffer;
  uint64_t size = (uint64_t)ein_dtype_size(t->dtype);
  uint64_t below = (uint64_t)0 - (uint64_t)lo * size;       // bytes before data
  uint64_t above = ((uint64_t)hi + 1) * size;               // bytes from data on
  if (data < base || data - base > (uint64_t)t->buffer_bytes) return 0;
  return below <= data - base && above <= (uint64_t)t->buffer_bytes - (data - base);
}

// Of the host's memory or of `space`. Without data (planning) the buffer is not looked at.
static ein_status eini_view_within(const ein_ztensor *t, int space) {
  int64_t lo, hi;
  if (t == NULL || t->rank < 0 || (t->rank > 0 && t->shape == NULL)) return EIN_ERR_ARGUMENT;
  if (t->buffer == NULL && t->buffer_bytes > 0) return EIN_ERR_ARGUMENT;
  if (ein_dtype_size(t->dtype) == 0) return EIN_ERR_DTYPE;
  if (t->space != 0 && t->space != space) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_view_extent(t, &lo, &hi));
  if (lo <= hi && t->data != NULL && t->buffer_bytes > 0 && !eini_view_inside(t, lo, hi))
    return EIN_ERR_BOUNDS;
  return EIN_OK;
}

static ein_status eini_view_validate(const ein_ztensor *t) { return eini_view_within(t, 0); }

// Arguments of a view function about an axis, whose result has rank t->rank + more.
static ein_status eini_view_begin(const ein_ztensor *t, int axis, int more,
                                  const ein_ztensor *view, const int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  if (more > 0 && t->rank == INT_MAX) return EIN_ERR_TOO_LARGE;
  if (axis < 0 || axis >= t->rank + (more > 0)) return EIN_ERR_ARGUMENT;
  return view == NULL || (dims == NULL && t->rank + more > 0) ? EIN_ERR_ARGUMENT : EIN_OK;
}

// Shape and strides of t into dims, without axis drop (-1: all). Returns where the strides are.
static int64_t *eini_view_dims(const ein_ztensor *t, int drop, int64_t *dims) {
  int rank = t->rank - (drop >= 0);
  int64_t *strides = rank > 0 ? dims + rank : dims;
  for (int k = 0; k < rank; k++) {
    int i = drop >= 0 && k >= drop ? k + 1 : k;
    dims[k] = t->shape[i];
    strides[k] = eini_stride(t, i);
  }
  return strides;
}

// view may be t: t is read as a whole first. A valid view holds index * stride where it has
// elements; where it has none, nothing moves.
static void eini_view_end(const ein_ztensor *t, int rank, int64_t index, int64_t stride,
                          ein_ztensor *view, int64_t *dims) {
  int64_t by = index > 0 && ein_view_count(t) > 0 ? index * stride : 0;
  ptrdiff_t bytes = (ptrdiff_t)(by * (int64_t)ein_dtype_size(t->dtype));
  *view = *t;
  view->rank = rank;
  view->shape = dims;
  view->strides = rank > 0 ? dims + rank : NULL;
  if (view->data != NULL) view->data = (char *)view->data + bytes;
}

EIN_API ein_status ein_view_permute(const ein_ztensor *t, const int *axes, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  int rank = t->rank;
  if (view == NULL || (rank > 0 && (axes == NULL || dims == NULL))) return EIN_ERR_ARGUMENT;
  for (int i = 0; i < rank; i++) {
    if (axes[i] < 0 || axes[i] >= rank) return EIN_ERR_ARGUMENT;
    for (int j = 0; j < i; j++)
      if (axes[j] == axes[i]) return EIN_ERR_ARGUMENT;
    dims[i] = t->shape[axes[i]];
    dims[(ptrdiff_t)rank + i] = eini_stride(t, axes[i]);
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_slice(const ein_ztensor *t, int axis, int64_t start, int64_t stop,
                                  int64_t step, ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 0, view, dims));
  if (step == 0) return EIN_ERR_ARGUMENT;
  int64_t n = t->shape[axis], count = 0;
  if (stop < (step < 0 ? -1 : 0) || stop > n) return EIN_ERR_BOUNDS;
  if (n > 0 && (step > 0 ? start < stop : start > stop)) {
    if (start < 0 || start >= n) return EIN_ERR_BOUNDS;
    uint64_t by = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    uint64_t span = (uint64_t)(step > 0 ? stop - start : start - stop);
    count = (int64_t)((span - 1) / by) + 1;
  }
  int64_t stride = eini_stride(t, axis), *strides = eini_view_dims(t, -1, dims);
  // A stride that is stepped lies inside the view's extent; others mean nothing and stay.
  if (count > 1 && eini_mul_overflow(stride, step, &strides[axis])) strides[axis] = 0;
  dims[axis] = count;
  eini_view_end(t, t->rank, count > 0 ? start : 0, stride, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_reverse(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 0, view, dims));
  return ein_view_slice(t, axis, t->shape[axis] - 1, -1, -1, view, dims);
}

EIN_API ein_status ein_view_select(const ein_ztensor *t, int axis, int64_t index,
                                   ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, -1, view, dims));
  if (index < 0 || index >= t->shape[axis]) return EIN_ERR_BOUNDS;
  int64_t stride = eini_stride(t, axis);
  eini_view_dims(t, axis, dims);
  eini_view_end(t, t->rank - 1, index, stride, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_squeeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, -1, view, dims));
  if (t->shape[axis] != 1) return EIN_ERR_SHAPE;
  return ein_view_select(t, axis, 0, view, dims);
}

EIN_API ein_status ein_view_unsqueeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                      int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 1, view, dims));
  int rank = t->rank + 1;
  for (int k = 0; k < rank; k++) {
    dims[k] = k == axis ? 1 : t->shape[k - (k > axis)];
    dims[(ptrdiff_t)rank + k] = k == axis ? 0 : eini_stride(t, k - (k > axis));
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_broadcast(const ein_ztensor *t, int rank, const int64_t *shape,
                                      ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  int64_t count;
  if (rank < 0 || view == NULL || (rank > 0 && (shape == NULL || dims == NULL)))
    return EIN_ERR_ARGUMENT;
  if (rank < t->rank) return EIN_ERR_SHAPE;
  EINI_TRY(eini_view_elements(rank, shape, &count));
  for (int i = 0; i < rank; i++) {
    int k = i - (rank - t->rank), repeat = k < 0 || t->shape[k] == 1;
    if (!repeat && t->shape[k] != shape[i]) return EIN_ERR_SHAPE;
    dims[i] = shape[i];
    dims[(ptrdiff_t)rank + i] = repeat ? 0 : eini_stride(t, k);
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_diagonal(const ein_ztensor *t, int a, int b, ein_ztensor *view,
                                     int64_t *dims) {
  EINI_TRY(eini_view_begin(t, a, -1, view, dims));
  if (b < 0 || b >= t->rank || a == b) return EIN_ERR_ARGUMENT;
  if (t->shape[a] != t->shape[b]) return EIN_ERR_SHAPE;
  int64_t sum;
  // With two elements or more the sum lies inside the view's extent; else it means nothing.
  if (eini_add_overflow(eini_stride(t, a), eini_stride(t, b), &sum)) sum = 0;
  eini_view_dims(t, b, dims)[a - (b < a)] = sum;
  eini_view_end(t, t->rank - 1, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_check(const ein_ztensor *t) {
  EINI_TRY(eini_view_validate(t));
  // Nothing can be proved about elements at an unknown place.
  int unknown = t->data == NULL && t->buffer_bytes > 0 && ein_view_count(t) > 0;
  return unknown ? EIN_ERR_BOUNDS : EIN_OK;
}

EIN_API void *ein_view_at(const ein_ztensor *t, const int64_t *coord) {
  if (eini_view_validate(t) != EIN_OK || t->data == NULL) return NULL;
  if (coord == NULL && t->rank > 0) return NULL;
  int64_t at = 0;
  for (int i = 0; i < t->rank; i++) {
    if (coord[i] < 0 || coord[i] >= t->shape[i]) return NULL;
    if (eini_muladd_overflow(coord[i], eini_stride(t, i), at, &at)) return NULL;
  }
  return (char *)t->data + (ptrdiff_t)(at * (int64_t)ein_dtype_size(t->dtype));
}
