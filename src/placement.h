// ================================================================================================
// >>placement  pieces, tasks and boxes: what lies where and what is read
// Takes a statement, its cuts and their order; gives index ranges of the task at a place, the box
// it reads of an operand, and how many elements of the box a block defines.
// ================================================================================================

// Piece k of d of an extent: [k*E/d, (k+1)*E/d), rounded down; k <= d <= EIN_PLACES_MAX.
static int64_t eini_piece_start(int64_t extent, int64_t d, int64_t k) {
  return k * (extent / d) + k * (extent % d) / d;
}

// The piece of an extent cut into d that holds element i.
static int64_t eini_piece_of(int64_t extent, int64_t d, int64_t i) {
  int64_t q = extent / d, k = q > 0 ? eini_min64(d - 1, i / q) : d - 1;
  while (eini_piece_start(extent, d, k) > i) k--;
  while (eini_piece_start(extent, d, k + 1) <= i) k++;
  return k;
}

// What one piece more of every index adds to the place of a task; returns the number of tasks.
static int64_t eini_place_weights(int nindex, const int64_t *cut, const int *order, int norder,
                                  int64_t *weight) {
  int64_t tasks = 1;
  for (int c = 0; c < nindex; c++) weight[c] = 1;
  for (int i = norder - 1; i >= 0; i--) {
    weight[order[i]] = tasks;
    tasks *= cut[order[i]];
  }
  return tasks;
}

// Index ranges of the task at a place. 0: there is none; home: nor if its reduced digits are not 0.
static int eini_task_ranges(const eini_stmt *s, const int64_t *cut, const int *order, int norder,
                            int64_t place, int home, int64_t *lo, int64_t *hi) {
  for (int c = 0; c < s->nindex; c++) {
    lo[c] = 0;
    hi[c] = s->index[c].extent;
  }
  for (int i = norder - 1; i >= 0; i--) {
    int c = order[i];
    int64_t k = place % cut[c];
    place /= cut[c];
    if (home && c >= s->nfree && k != 0) return 0;
    lo[c] = eini_piece_start(s->index[c].extent, cut[c], k);
    hi[c] = eini_piece_start(s->index[c].extent, cut[c], k + 1);
  }
  return place == 0;
}

// A statement cut for places, or an input held in a partition, as a statement that copies it: task
// number q runs at place q.
typedef struct eini_space {
  const eini_stmt *s;
  const int64_t *cut;      // nindex
  const int *order;        // cut indices, most significant digit first
  int norder;
  int64_t *weight;         // nindex, see eini_place_weights
  int64_t ntask, nagg;     // tasks; those that share a block of the output
} eini_space;

static ein_status eini_space_init(eini_arena *a, const eini_stmt *s, const int64_t *cut,
                                  const int *order, int norder, eini_space *x) {
  x->s = s;
  x->cut = cut;
  x->order = order;
  x->norder = norder;
  x->weight = EINI_NEW(a, int64_t, s->nindex);
  if (x->weight == NULL) return EIN_ERR_NO_MEMORY;
  x->ntask = eini_place_weights(s->nindex, cut, order, norder, x->weight);
  x->nagg = eini_tasks(cut + s->nfree, s->nindex - s->nfree);
  return EIN_OK;
}

// The place of a task's pieces.
static int64_t eini_space_place(const eini_space *x, const int64_t *piece) {
  int64_t place = 0;
  for (int i = 0; i < x->norder; i++) place += piece[x->order[i]] * x->weight[x->order[i]];
  return place;
}

static int64_t eini_space_piece(const eini_space *x, int64_t place, int c) {
  return x->cut[c] > 1 ? place / x->weight[c] % x->cut[c] : 0;
}

// The task's ranges of all indices.
EINI_UNUSED static void eini_space_ranges(const eini_space *x, int64_t place, int64_t *lo,
                                          int64_t *hi) {
  eini_task_ranges(x->s, x->cut, x->order, x->norder, place, 0, lo, hi);
}

// The number of the partial result a task computes: the pieces of cut reduced indices, row-major.
EINI_UNUSED static int64_t eini_space_partial(const eini_space *x, int64_t place) {
  int64_t n = 0;
  for (int c = x->s->nfree; c < x->s->nindex; c++)
    if (x->cut[c] > 1) n = n * x->cut[c] + eini_space_piece(x, place, c);
  return n;
}

// The place of partial number k of the block at `place`.
static int64_t eini_space_partner(const eini_space *x, int64_t place, int64_t k) {
  for (int c = x->s->nindex - 1; c >= x->s->nfree; c--) {
    if (x->cut[c] <= 1) continue;
    place += (k % x->cut[c] - eini_space_piece(x, place, c)) * x->weight[c];
    k /= x->cut[c];
  }
  return place;
}

// Narrows [*lo, *hi) to the i with from <= coef*i + offset < to.
static void eini_narrow_range(int64_t coef, int64_t offset, int64_t from, int64_t to, int64_t *lo,
                        int64_t *hi) {
  int64_t a = from - offset, b = to - 1 - offset;
  if (coef < 0) {
    int64_t swap = -a;
    coef = -coef;
    a = -b;
    b = swap;
  }
  *lo = eini_max64(*lo, -eini_floor_div(-a, coef));
  *hi = eini_min64(*hi, eini_floor_div(b, coef) + 1);
}

// Narrows the ranges of the first n indices that meet in row r of a map: each by what it is with
// the least and the most of all others. No other index is in the row.
static void eini_narrow_row(const eini_map *m, int n, int r, int64_t from, int64_t to, int64_t *lo,
                            int64_t *hi) {
  int64_t least = 0, most = 0;
  for (int c = 0; c < n; c++)
    if (hi[c] <= lo[c]) return;
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    int64_t k = m->term[e].coef, a = k * lo[m->term[e].index], b = k * (hi[m->term[e].index] - 1);
    least += eini_min64(a, b);
    most += eini_max64(a, b);
  }
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    const int c = m->term[e].index;
    int64_t k = m->term[e].coef, a = k * lo[c], b = k * (hi[c] - 1);
    eini_narrow_range(k, m->offset[r], from - (most - eini_max64(a, b)),
                      to - (least - eini_min64(a, b)), &lo[c], &hi[c]);
    if (hi[c] <= lo[c]) return;
  }
}

// Narrows ranges of the first n indices to those from which row r of a map may meet [from, to): to
// no others where the row has one of them. 0: it does not meet.
static int eini_row_meets(const eini_map *m, int n, int r, int64_t from, int64_t to, int64_t *lo,
                          int64_t *hi) {
  int64_t coef;
  int c = eini_row_index(m, r, &coef);
  if (c >= 0) eini_narrow_range(coef, m->offset[r], from, to, &lo[c], &hi[c]);
  else if (coef == 0) return m->offset[r] >= from && m->offset[r] < to;
  else eini_narrow_row(m, n, r, from, to, lo, hi);
  return 1;
}

// The same for all rows.
static int eini_box_narrow(const eini_map *m, int n, const int64_t *from, const int64_t *to,
                           int64_t *lo, int64_t *hi) {
  int meets = 1;
  for (int r = 0; r < m->rows; r++) meets &= eini_row_meets(m, n, r, from[r], to[r], lo, hi);
  for (int c = 0; c < n; c++) meets &= hi[c] > lo[c];
  return meets;
}

// The index ranges of statement s, which defines the tensor, that the box [from, to) meets.
static int eini_box_ranges(const eini_stmt *s, const int64_t *from, const int64_t *to,
                           int64_t *lo, int64_t *hi) {
  for (int c = 0; c < s->nfree; c++) {
    lo[c] = 0;
    hi[c] = s->index[c].extent;
  }
  return eini_box_narrow(&s->out_map, s->nfree, from, to, lo, hi);
}

// Counts the tuples of a coordinate's indices with from <= sum of coef * index < to: those after
// index c (-1: all) in the order of their coefficients, the largest first. In a coordinate that is
// one-to-one few values of an index are partly inside with the indices after it.
static double eini_count_row(const eini_stmt *s, int r, int c, const int64_t *lo,
                             const int64_t *hi, int64_t from, int64_t to) {
  const eini_map *m = &s->out_map;
  int64_t before = c < 0 ? INT64_MAX : eini_abs64(eini_map_coef(m, r, c)), least = 0, most = 0;
  int64_t v = 0, some[2], full[2];
  int next = -1;
  double all = 1, count = 0;
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    int64_t coef = m->term[e].coef, x = eini_abs64(coef);
    int k = m->term[e].index;
    if (x > before || (x == before && k <= c)) continue;
    if (next < 0 || x > eini_abs64(v)) next = k, v = coef;
    least += coef * (coef >= 0 ? lo[k] : hi[k] - 1);
    most += coef * (coef >= 0 ? hi[k] - 1 : lo[k]);
    all *= (double)(hi[k] - lo[k]);
  }
  if (most < from || least >= to) return 0;
  if (least >= from && most < to) return all;
  least -= v * (v >= 0 ? lo[next] : hi[next] - 1);
  most -= v * (v >= 0 ? hi[next] - 1 : lo[next]);
  some[0] = full[0] = lo[next];
  some[1] = full[1] = hi[next];
  eini_narrow_range(v, 0, from - most, to - least, &some[0], &some[1]);
  eini_narrow_range(v, 0, from - least, to - most, &full[0], &full[1]);
  if (full[1] > full[0]) count = all / (double)(hi[next] - lo[next]) * (double)(full[1] - full[0]);
  else full[0] = full[1] = some[1];
  for (int64_t i = some[0]; i < some[1]; i++) {
    if (i == full[0]) i = full[1];
    if (i < some[1]) count += eini_count_row(s, r, next, lo, hi, from - i * v, to - i * v);
  }
  return count;
}

// Counts index tuples from index c on whose image lies in the box, as far as the coordinates in
// `open` say, which share indices; at: the coordinates so far.
static double eini_count_from(const eini_stmt *s, int c, const int64_t *lo, const int64_t *hi,
                              const int64_t *from, const int64_t *to, const int64_t *open,
                              int64_t *at) {
  const eini_map *m = &s->out_map;
  int inside = 1;
  double all = 1;
  for (int k = c; k < s->nfree; k++) all *= (double)(hi[k] - lo[k]);
  for (int r = 0; r < m->rows; r++) {
    int64_t least = at[r], most = at[r];
    if (!open[r]) continue;
    for (int e = eini_map_find(m, r, c); e < m->first[r + 1]; e++) {
      const int k = m->term[e].index;
      int64_t v = m->term[e].coef;
      least += v * (v >= 0 ? lo[k] : hi[k] - 1);
      most += v * (v >= 0 ? hi[k] - 1 : lo[k]);
    }
    if (most < from[r] || least >= to[r]) return 0;
    inside &= least >= from[r] && most < to[r];
  }
  if (inside) return all;
  double count = 0;
  for (int64_t i = lo[c]; i < hi[c]; i++) {
    for (int r = 0; r < m->rows; r++) at[r] += i * eini_map_coef(m, r, c);
    count += eini_count_from(s, c + 1, lo, hi, from, to, open, at);
    for (int r = 0; r < m->rows; r++) at[r] -= i * eini_map_coef(m, r, c);
  }
  return count;
}

// Do coordinate r's indices occur in no other one of those in `open`?
static int eini_row_alone(const eini_stmt *s, int r, const int64_t *open) {
  const eini_map *m = &s->out_map;
  for (int q = 0; q < m->rows; q++) {
    if (q == r || !open[q]) continue;
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      if (eini_map_coef(m, q, m->term[e].index) != 0) return 0;
  }
  return 1;
}

// The same where coordinates have several indices, the others have narrowed the ranges [lo, hi);
// it changes them. open: of coordinates, 1 where there are several. at: scratch.
static double eini_count_several(const eini_stmt *s, int64_t *lo, int64_t *hi, const int64_t *from,
                                 const int64_t *to, int64_t *open, int64_t *at) {
  const eini_map *m = &s->out_map;
  double count = 1;
  int left = 0;
  for (int r = 0; r < m->rows; r++) {
    at[r] = m->offset[r];
    if (!open[r] || !eini_row_alone(s, r, open)) {
      left |= open[r] != 0;
      continue;
    }
    count *= eini_count_row(s, r, -1, lo, hi, from[r] - at[r], to[r] - at[r]);
    open[r] = 0;
    for (int e = m->first[r]; e < m->first[r + 1]; e++)  // counted
      hi[m->term[e].index] = lo[m->term[e].index] + 1;
  }
  for (int c = 0; c < s->nfree; c++) {
    int used = 0;
    for (int r = 0; r < m->rows; r++) used |= open[r] && eini_map_coef(m, r, c) != 0;
    if (used) continue;
    count *= (double)(hi[c] - lo[c]);
    hi[c] = lo[c] + 1;
  }
  return left ? count * eini_count_from(s, 0, lo, hi, from, to, open, at) : count;
}

// Elements that the free indices in [lo, hi) define inside a box. a, b: scratch, nindex + rank.
static double eini_block_in_box(const eini_stmt *s, const int64_t *lo, const int64_t *hi,
                                const int64_t *from, const int64_t *to, int64_t *a, int64_t *b) {
  const eini_map *m = &s->out_map;
  int64_t *open = b + s->nindex;
  double count = 1;
  int several = 0;
  for (int c = 0; c < s->nfree; c++) {
    a[c] = lo[c];
    b[c] = hi[c];
  }
  for (int r = 0; r < m->rows; r++) {
    const int terms = eini_map_terms(m, r);
    int64_t coef;
    int only = eini_row_index(m, r, &coef);
    if (terms == 0 && (m->offset[r] < from[r] || m->offset[r] >= to[r])) return 0;
    if (terms == 1) eini_narrow_range(coef, m->offset[r], from[r], to[r], &a[only], &b[only]);
    open[r] = terms > 1;
    several |= terms > 1;
  }
  for (int c = 0; c < s->nfree; c++) {
    if (b[c] <= a[c]) return 0;
    count *= (double)(b[c] - a[c]);
  }
  return several ? eini_count_several(s, a, b, from, to, open, a + s->nindex) : count;
}

// ---- unions of boxes ----

#define EINI_BOXES_MAX 256     // disjoint boxes of a union; beyond, its hull stands for it

// A union of boxes as disjoint ones. Each is 2 * rank integers: its first coordinates, its ends.
typedef struct eini_boxes {
  int rank;
  int64_t n;
  int64_t *at;
} eini_boxes;

static ein_status eini_boxes_init(eini_arena *a, int rank, eini_boxes *u) {
  u->rank = rank;
  u->n = 0;
  u->at = EINI_NEW(a, int64_t, (2 * EINI_BOXES_MAX + 2 * (int64_t)rank + 2) * 2 * rank);
  return u->at == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static double eini_box_volume(int rank, const int64_t *from, const int64_t *to) {
  double n = 1;
  for (int r = 0; r < rank; r++) n *= to[r] > from[r] ? (double)(to[r] - from[r]) : 0;
  return n;
}

static double eini_boxes_volume(const eini_boxes *u) {
  double n = 0;
  for (int64_t i = 0; i < u->n; i++)
    n += eini_box_volume(u->rank, u->at + i * 2 * u->rank, u->at + (i * 2 + 1) * u->rank);
  return n;
}

// The first of n boxes becomes the hull of all.
static void eini_boxes_hull(eini_boxes *u, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const int64_t *box = u->at + i * 2 * u->rank;
    for (int r = 0; r < u->rank; r++) {
      u->at[r] = eini_min64(u->at[r], box[r]);
      u->at[u->rank + r] = eini_max64(u->at[u->rank + r], box[u->rank + r]);
    }
  }
  u->n = 1;
}

// Takes the inside of box `cut` out of box number j of `end`; its pieces outside go behind the
// others. Returns the new number of boxes; when it is the old one, box j has nothing of it left.
static int64_t eini_boxes_cut(eini_boxes *u, int64_t j, const int64_t *cut, int64_t end) {
  int rank = u->rank;
  int64_t *box = u->at + j * 2 * rank;
  size_t bytes = 2 * (size_t)rank * sizeof *box;
  for (int r = 0; r < rank; r++)
    if (box[r] >= cut[rank + r] || box[rank + r] <= cut[r]) return end;
  for (int r = 0; r < rank; r++) {
    for (int side = 0; side < 2; side++) {  // below cut, above cut
      int64_t edge = cut[side * rank + r];
      if (side ? box[rank + r] <= edge : box[r] >= edge) continue;
      int64_t *piece = u->at + end++ * 2 * rank;
      memcpy(piece, box, bytes);
      piece[side ? r : rank + r] = edge;
      box[side ? rank + r : r] = edge;
    }
  }
  if (--end != j) memcpy(box, u->at + end * 2 * rank, bytes);
  return end;
}

// Adds a box that is not empty.
static void eini_boxes_add(eini_boxes *u, const int64_t *from, const int64_t *to) {
  int64_t end = u->n + 1, step = 2 * u->rank;
  size_t bytes = (size_t)u->rank * sizeof *from;
  if (u->rank == 0) u->n = 1;
  if (u->rank == 0) return;
  memcpy(u->at + u->n * step, from, bytes);
  memcpy(u->at + u->n * step + u->rank, to, bytes);
  for (int64_t i = 0; i < u->n; i++) {
    for (int64_t j = u->n; j < end && end <= 2 * EINI_BOXES_MAX;) {
      int64_t left = eini_boxes_cut(u, j, u->at + i * step, end);
      if (left == end) j++;
      else end = left;
    }
  }
  if (end <= EINI_BOXES_MAX) u->n = end;
  else eini_boxes_hull(u, end);
}
