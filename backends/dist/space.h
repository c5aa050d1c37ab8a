// ================================================================================================
// >>space  pieces, places and blocks of a cut index space
// Takes a statement's indices, its cuts and their order; gives ranges and boxes of a task by rules.
// ================================================================================================

#define EINI_CUTS_MAX 32       // cut indices: each has two pieces or more

// An index space cut for places: a statement's, or that of an input held in a partition. Its task
// number q runs at place q.
typedef struct eini_dist_space {
  int nindex, nfree;
  const int64_t *extent, *cut;  // nindex each
  const int64_t *weight;        // nindex: what one piece more adds to the place; 0: not cut
  int ncut, index[EINI_CUTS_MAX];  // the cut indices
  int64_t ntask, nagg;          // tasks; those that share a block of the output
  const eini_map *map;          // from indices to coordinates of the tensor it defines
  int separable;                // 1: every index occurs in at most one coordinate
} eini_dist_space;

static int64_t eini_dist_digit(const eini_dist_space *x, int64_t place, int i) {
  return x->cut[i] > 1 ? place / x->weight[i] % x->cut[i] : 0;
}

// The task's ranges of all indices.
static void eini_dist_range(const eini_dist_space *x, int64_t place, int64_t *lo, int64_t *hi) {
  for (int i = 0; i < x->nindex; i++) {
    int64_t k = eini_dist_digit(x, place, i);
    lo[i] = eini_piece_start(x->extent[i], x->cut[i], k);
    hi[i] = eini_piece_start(x->extent[i], x->cut[i], k + 1);
  }
}

// Number of the partial result a task computes: the pieces of cut reduced indices, row-major.
static int64_t eini_dist_partial(const eini_dist_space *x, int64_t place) {
  int64_t n = 0;
  for (int i = x->nfree; i < x->nindex; i++)
    if (x->cut[i] > 1) n = n * x->cut[i] + eini_dist_digit(x, place, i);
  return n;
}

// The place of partial number k of the block at `place`.
static int64_t eini_dist_partner(const eini_dist_space *x, int64_t place, int64_t k) {
  for (int i = x->nindex - 1; i >= x->nfree; i--) {
    if (x->cut[i] <= 1) continue;
    place += (k % x->cut[i] - eini_dist_digit(x, place, i)) * x->weight[i];
    k /= x->cut[i];
  }
  return place;
}

// The first operand that reads what operand k reads: the same tensor by the same projection.
static int eini_dist_first(const eini_stmt *s, int k) {
  for (int j = 0; j < k; j++)
    if (s->operand[j] == s->operand[k] && eini_map_equal(&s->proj[j], &s->proj[k])) return j;
  return k;
}

// ---- which blocks meet a box ----

// coef * i for lo <= i < hi, coef > 0.
typedef struct eini_dist_term {
  int64_t coef, lo, hi;
} eini_dist_term;

// How many sums of base and the terms lie in [from, to). The first term that can make a sum leave
// the interval is walked; whole runs of values inside count at once.
static int64_t eini_dist_row_count(const eini_dist_term *t, int n, int64_t base, int64_t from,
                                   int64_t to) {
  int64_t least = 0, most = 0, all = 1, count;
  if (n == 0) return base >= from && base < to;
  for (int k = 1; k < n; k++) {
    least += t[k].coef * t[k].lo;
    most += t[k].coef * (t[k].hi - 1);
    all *= t[k].hi - t[k].lo;
  }
  int64_t a = eini_max64(t->lo, eini_ceil_div(from - base - most, t->coef));
  int64_t b = eini_min64(t->hi, eini_ceil_div(to - base - least, t->coef));
  int64_t p = eini_max64(a, eini_ceil_div(from - base - least, t->coef));
  int64_t q = eini_min64(b, eini_ceil_div(to - base - most, t->coef));
  if (q < p) q = p = b;
  count = (q - p) * all;
  for (int64_t i = a; i < b; i++) {
    if (i == p) i = q;
    if (i < b) count += eini_dist_row_count(t + 1, n - 1, base + t->coef * i, from, to);
  }
  return count;
}

// The terms of coordinate r, the largest first; returns their number.
static int eini_dist_terms(const eini_dist_space *x, int r, const int64_t *lo, const int64_t *hi,
                           eini_dist_term *t) {
  int n = 0;
  for (int e = x->map->first[r]; e < x->map->first[r + 1]; e++) {
    const int i = x->map->term[e].index;
    int64_t c = x->map->term[e].coef;
    int k = n++;
    for (; k > 0 && t[k - 1].coef < eini_abs64(c); k--) t[k] = t[k - 1];
    t[k].coef = eini_abs64(c);
    t[k].lo = c > 0 ? lo[i] : 1 - hi[i];
    t[k].hi = c > 0 ? hi[i] : 1 - lo[i];
  }
  return n;
}

// Buffers of one thread, nindex or rank long.
typedef struct eini_dist_room {
  int64_t *lo, *hi, *from, *to;        // of the task at hand
  int64_t *blo, *bhi, *bfrom, *bto;    // of a block
  int64_t *len, *box, *dst, *src;      // extents and strides of what is copied
  eini_dist_term *term;
} eini_dist_room;

#define EINI_ROOM 12

// p: EINI_ROOM * n integers.
static void eini_dist_room_carve(int64_t *p, int64_t n, eini_dist_room *m) {
  int64_t **part[EINI_ROOM];
  part[0] = &m->lo, part[1] = &m->hi, part[2] = &m->from, part[3] = &m->to;
  part[4] = &m->blo, part[5] = &m->bhi, part[6] = &m->bfrom, part[7] = &m->bto;
  part[8] = &m->len, part[9] = &m->box, part[10] = &m->dst, part[11] = &m->src;
  for (int k = 0; k < EINI_ROOM; k++) *part[k] = p + k * n;
}

static int eini_dist_room_init(eini_arena *a, int64_t n, eini_dist_room *m) {
  int64_t *p = EINI_NEW(a, int64_t, EINI_ROOM * n);
  m->term = EINI_NEW(a, eini_dist_term, n);
  if (p == NULL || m->term == NULL) return 0;
  eini_dist_room_carve(p, n, m);
  return 1;
}

// Coordinate r of a point of the index space.
static int64_t eini_dist_coordinate(const eini_map *m, int r, const int64_t *at) {
  int64_t y = m->offset[r];
  for (int e = m->first[r]; e < m->first[r + 1]; e++) y += m->term[e].coef * at[m->term[e].index];
  return y;
}

// Elements of the block at `place` in a box, point by point.
static int64_t eini_dist_walk(const eini_dist_space *x, const int64_t *from, const int64_t *to,
                              eini_dist_room *m) {
  int64_t count = 0, *at = m->bfrom;
  for (int i = 0; i < x->nfree; i++) {
    at[i] = m->blo[i];
    if (m->bhi[i] <= m->blo[i]) return 0;
  }
  for (int i = 0; i >= 0;) {
    int inside = 1;
    for (int r = 0; r < x->map->rows && inside; r++) {
      int64_t y = eini_dist_coordinate(x->map, r, at);
      inside = y >= from[r] && y < to[r];
    }
    count += inside;
    for (i = x->nfree - 1; i >= 0 && ++at[i] == m->bhi[i]; i--) at[i] = m->blo[i];
  }
  return count;
}

// How many elements of the block at `place` lie in a box.
static int64_t eini_dist_overlap(const eini_dist_space *x, int64_t place, const int64_t *from,
                                 const int64_t *to, eini_dist_room *m) {
  int64_t n = 1;
  eini_dist_range(x, place, m->blo, m->bhi);
  for (int i = 0; i < x->nfree; i++)
    if (m->bhi[i] <= m->blo[i]) return 0;
  if (!x->separable) return eini_dist_walk(x, from, to, m);
  for (int r = 0; r < x->map->rows && n > 0; r++) {
    int k = eini_dist_terms(x, r, m->blo, m->bhi, m->term);
    n *= eini_dist_row_count(m->term, k, x->map->offset[r], from[r], to[r]);
  }
  return n;
}

// The tasks of a space that may touch a box, one after another.
typedef struct eini_dist_near {
  int n, index[EINI_CUTS_MAX];   // cut indices; those left out have piece 0
  int64_t lo[EINI_CUTS_MAX], hi[EINI_CUTS_MAX], at[EINI_CUTS_MAX];  // their pieces
} eini_dist_near;

// The pieces [*lo, *hi) of cut index i from which row r of a map may reach the box.
static void eini_dist_row_pieces(const eini_dist_space *x, const eini_map *m, int r, int i,
                                 int64_t from, int64_t to, int64_t *lo, int64_t *hi) {
  int64_t c = eini_map_coef(m, r, i), least = m->offset[r], most = least;
  int64_t first = *hi, end = *lo;
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    const int j = m->term[e].index;
    int64_t k = j == i ? 0 : m->term[e].coef * (x->extent[j] - 1);
    if (k < 0) least += k;
    else most += k;
  }
  for (int64_t k = *lo; k < *hi; k++) {
    int64_t a = c * eini_piece_start(x->extent[i], x->cut[i], k);
    int64_t b = c * (eini_piece_start(x->extent[i], x->cut[i], k + 1) - 1);
    if (eini_max64(a, b) + most < from || eini_min64(a, b) + least >= to) continue;
    first = eini_min64(first, k);
    end = k + 1;
  }
  *lo = first;
  *hi = end;
}

// Begins with the first task whose image under the map m may meet a box; 0 when there is none. Cut
// indices from n on keep piece 0.
static int eini_dist_near_begin(const eini_dist_space *x, const eini_map *m, int n,
                                const int64_t *from, const int64_t *to, eini_dist_near *w) {
  w->n = 0;
  if (eini_block_volume(m->rows, from, to) == 0) return 0;
  for (int k = 0; k < x->ncut; k++) {
    int i = x->index[k], at = w->n;
    if (i >= n) continue;
    w->index[at] = i;
    w->lo[at] = 0;
    w->hi[at] = x->cut[i];
    for (int r = 0; r < m->rows; r++) {
      if (eini_map_coef(m, r, i) == 0) continue;
      eini_dist_row_pieces(x, m, r, i, from[r], to[r], &w->lo[at], &w->hi[at]);
      if (w->lo[at] >= w->hi[at]) return 0;
    }
    w->at[at] = w->lo[at];
    w->n++;
  }
  return 1;
}

// The same of blocks: homes are the tasks whose reduced indices have piece 0.
static int eini_dist_near_first(const eini_dist_space *x, const int64_t *from, const int64_t *to,
                                eini_dist_near *w) {
  return eini_dist_near_begin(x, x->map, x->nfree, from, to, w);
}

static int eini_dist_near_next(eini_dist_near *w) {
  for (int k = w->n - 1; k >= 0; k--) {
    if (++w->at[k] < w->hi[k]) return 1;
    w->at[k] = w->lo[k];
  }
  return 0;
}

// The place of the task at hand.
static int64_t eini_dist_near_place(const eini_dist_space *x, const eini_dist_near *w) {
  int64_t place = 0;
  for (int k = 0; k < w->n; k++) place += w->at[k] * x->weight[w->index[k]];
  return place;
}

// ---- copies of boxes ----

// dst[i] = src[i] for i < shape, strides in elements of `size` bytes.
static void eini_dist_copy(int rank, const int64_t *shape, char *dst, const int64_t *dst_stride,
                           const char *src, const int64_t *src_stride, size_t size) {
  if (rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  int64_t n = shape[0], a = dst_stride[0] * (int64_t)size, b = src_stride[0] * (int64_t)size;
  if (rank == 1 && dst_stride[0] == 1 && src_stride[0] == 1) {
    if (n > 0) memcpy(dst, src, (size_t)n * size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    eini_dist_copy(rank - 1, shape + 1, dst + i * a, dst_stride + 1, src + i * b, src_stride + 1,
                   size);
}

static void eini_dist_dense(int rank, const int64_t *shape, int64_t *stride) {
  int64_t n = 1;
  for (int r = rank - 1; r >= 0; r--) {
    stride[r] = n;
    n *= eini_max64(shape[r], 1);
  }
}
