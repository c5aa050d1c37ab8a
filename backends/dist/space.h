// ================================================================================================
// >>space  blocks that meet a box, and copies of boxes
// Takes a statement's space (section placement); gives the tasks whose blocks, or what they read,
// may meet a box, and how many elements do.
// ================================================================================================

// ---- which blocks meet a box ----

// Buffers of one thread, nindex or rank long.
typedef struct eini_dist_room {
  int64_t *lo, *hi, *from, *to;        // of the task at hand
  int64_t *blo, *bhi, *bfrom, *bto;    // of a block
  int64_t *len, *box, *dst, *src;      // extents and strides of what is copied
  int64_t *s0, *s1;                    // scratch, twice as long
} eini_dist_room;

#define EINI_ROOM 16

// p: EINI_ROOM * n integers.
static void eini_dist_room_carve(int64_t *p, int64_t n, eini_dist_room *m) {
  int64_t **part[14];
  part[0] = &m->lo, part[1] = &m->hi, part[2] = &m->from, part[3] = &m->to;
  part[4] = &m->blo, part[5] = &m->bhi, part[6] = &m->bfrom, part[7] = &m->bto;
  part[8] = &m->len, part[9] = &m->box, part[10] = &m->dst, part[11] = &m->src;
  part[12] = &m->s0, part[13] = &m->s1;
  for (int k = 0; k < 14; k++) *part[k] = p + (k < 13 ? k : 14) * n;
}

static int eini_dist_room_init(eini_arena *a, int64_t n, eini_dist_room *m) {
  int64_t *p = EINI_NEW(a, int64_t, EINI_ROOM * n);
  if (p == NULL) return 0;
  eini_dist_room_carve(p, n, m);
  return 1;
}

// How many elements of the block at `place` lie in a box.
static int64_t eini_dist_overlap(const eini_space *x, int64_t place, const int64_t *from,
                                 const int64_t *to, eini_dist_room *m) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  return (int64_t)eini_block_in_box(x->s, m->blo, m->bhi, from, to, m->s0, m->s1);
}

// The tasks of a space that may touch a box, one after another.
typedef struct eini_dist_near {
  int n, index[EINI_CUTS_MAX];   // cut indices; those left out have piece 0
  int64_t lo[EINI_CUTS_MAX], hi[EINI_CUTS_MAX], at[EINI_CUTS_MAX];  // their pieces
} eini_dist_near;

// The pieces from which row r of a map may reach [from, to), into w. What a task reads is a hull:
// between the points that it needs there are others.
static int eini_dist_row_pieces(const eini_space *x, const eini_map *m, int n, int r, int64_t from,
                                int64_t to, eini_dist_room *room, eini_dist_near *w) {
  int64_t *lo = room->s0, *hi = room->s1, gap = 0;
  for (int i = 0; i < n; i++) {
    lo[i] = 0;
    hi[i] = x->s->index[i].extent;
    if (hi[i] == 0) return 0;
  }
  for (int e = m->first[r]; e < m->first[r + 1]; e++)
    if (hi[m->term[e].index] > 1) gap = eini_max64(gap, eini_abs64(m->term[e].coef) - 1);
  if (!eini_row_meets(m, n, r, from - gap, to + gap, lo, hi)) return 0;
  for (int k = 0; k < w->n; k++) {
    int i = w->index[k];
    int64_t extent = x->s->index[i].extent;
    if (hi[i] <= lo[i]) return 0;
    w->lo[k] = eini_max64(w->lo[k], eini_piece_of(extent, x->cut[i], lo[i]));
    w->hi[k] = eini_min64(w->hi[k], eini_piece_of(extent, x->cut[i], hi[i] - 1) + 1);
    if (w->lo[k] >= w->hi[k]) return 0;
  }
  return 1;
}

// Begins with the first task whose image under the map m may meet a box; 0 when there is none. Cut
// indices from n on keep piece 0.
static int eini_dist_near_begin(const eini_space *x, const eini_map *m, int n,
                                const int64_t *from, const int64_t *to, eini_dist_room *room,
                                eini_dist_near *w) {
  w->n = 0;
  if (eini_zrange_empty(m->rows, from, to)) return 0;
  for (int k = x->norder - 1; k >= 0; k--) {
    if (x->order[k] >= n) continue;
    w->index[w->n] = x->order[k];
    w->lo[w->n] = 0;
    w->hi[w->n++] = x->cut[x->order[k]];
  }
  for (int r = 0; r < m->rows; r++)
    if (!eini_dist_row_pieces(x, m, n, r, from[r], to[r], room, w)) return 0;
  for (int k = 0; k < w->n; k++) w->at[k] = w->lo[k];
  return 1;
}

// The same of blocks: homes are the tasks whose reduced indices have piece 0.
static int eini_dist_near_first(const eini_space *x, const int64_t *from, const int64_t *to,
                                eini_dist_room *room, eini_dist_near *w) {
  return eini_dist_near_begin(x, &x->s->out_map, x->s->nfree, from, to, room, w);
}

static int eini_dist_near_next(eini_dist_near *w) {
  for (int k = w->n - 1; k >= 0; k--) {
    if (++w->at[k] < w->hi[k]) return 1;
    w->at[k] = w->lo[k];
  }
  return 0;
}

// The place of the task at hand.
static int64_t eini_dist_near_place(const eini_space *x, const eini_dist_near *w) {
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
