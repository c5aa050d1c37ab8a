// ================================================================================================
// >>lowering  streams and loops of tasks
// Takes accesses of a statement; gives streams of strides over its loops, which are merged and
// ordered, and what chunks run along.
// ================================================================================================

// A tensor as tasks see it: its slot and its strides in elements.
typedef struct eini_seat {
  int slot;
  const int64_t *stride;
} eini_seat;

// Of a slot, where a plan's provider has a memory of its own (part staging).
typedef struct eini_stay {
  int64_t lo, bytes;            // what it spans, in bytes from its address
  int kept;                     // 1: it may lie there from task to task
  int gaps;                     // 1: its elements are not all of what it spans
  int port;                     // 1: of the caller's
  int space;                    // where the caller has it, see ein_ztensor
} eini_stay;

enum { EINI_HOME = 1, EINI_AWAY = 2 };

// What a contraction's loops are axes of (section products).
enum { EINI_AXES_BATCH, EINI_AXES_M, EINI_AXES_N, EINI_AXES_K };

typedef struct eini_lowering {
  eini_arena *a;
  ein_graph *g;
  const eini_seat *seat;    // per tensor
  int width;                // threads
  int nkernels;
  const ein_kernels *const *kernels;
  const ein_kernels *fast;  // provider of chunk functions, or NULL
  const ein_rates *rates;   // or NULL
  const ein_rates *given;   // the same, where providers are to predict from them; or NULL
  const ein_rates *one;     // with given: of a thread that runs while others rest; or NULL
  double slower;            // with given: see eini_rates_slower
  eini_walk walk;           // in a group: its loops, by indices of the statement at hand,
  int64_t len[EINI_GROUP_LOOPS];   //   how many values a task sees: of a block that begins at b,
  int64_t mul[EINI_GROUP_LOOPS], from[EINI_GROUP_LOOPS];  // those from mul * b + from on
  int along;                // 1 + the one of them that stays a loop by itself, or 0
  const char *local;        // per tensor: lives in the group only,
  const int64_t *shift;     //   and has a block with so many elements in front that are not there
  const char *constant;     // inputs that are, as ein_options.constant; or NULL
  int unsplit;
  struct eini_wanted *wanted;  // the variant that was asked for, or NULL
  const ein_kernels *away;  // the provider whose memory is used, or NULL,
  const eini_stay *stay;    //   what of slots lies in it, and where they are before this task
  unsigned char *valid;
  int at_home;              // 1: it is not asked
  int maps;                 // 1: tasks are maps that nobody is asked about: stages of its groups
} eini_lowering;

// Stride of every column of a map, and the offset of index 0, in elements. column[c]: the index of
// statement st that it is (NULL: c), or -1. The access is made for all values of the first n
// indices: without values there is none, and an index that is never stepped may have any
// coefficient; both give 0. All others lie within the tensor, so that they fit in bytes.
static ein_status eini_access_strides(const eini_stmt *st, int n, const eini_map *m,
                                      const int *column, const int64_t *tensor_stride,
                                      int64_t *stride, int64_t *offset) {
  *offset = 0;
  if (eini_stmt_empty(st, 0, n)) return EIN_OK;
  for (int r = 0; r < m->rows; r++) {
    int64_t s = tensor_stride[r];
    if (s == 0) continue;
    if (eini_muladd_overflow(m->offset[r], s, *offset, offset)) return EIN_ERR_TOO_LARGE;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      int64_t k = m->term[e].coef;
      int c = m->term[e].index, i = column == NULL ? c : column[c];
      if (i < 0 || st->index[i].extent < 2) continue;
      if (eini_muladd_overflow(k, s, stride[c], &stride[c])) return EIN_ERR_TOO_LARGE;
    }
  }
  return EIN_OK;
}

// Fills one tensor stream of a task of statement s. column[c]: its index that column c of the map
// is, or -1; NULL: that of its own.
static ein_status eini_stream_tensor(const eini_lowering *lo, const eini_stmt *s, eini_task *t,
                                     int stream, int tensor, const eini_map *m,
                                     const int *column) {
  const eini_seat *h = &lo->seat[tensor];
  eini_ref *r = &t->ref[stream];
  int64_t *stride = EINI_NEW(lo->a, int64_t, m->cols);
  int64_t offset;
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  int n = stream < t->nop ? s->nindex : s->nfree;  // what the epilogue reads, it reads once
  EINI_TRY(eini_access_strides(s, n, m, column, h->stride, stride, &offset));
  for (int c = 0; c < m->cols; c++) {
    int i = column == NULL ? c : column[c];
    if (i >= 0) t->stride[(int64_t)stream * t->nindex + i] = stride[c];
  }
  r->slot = h->slot;
  r->dtype = lo->g->tensor[tensor].dtype;
  const int local = lo->walk.nloop > 0 && lo->local[tensor];
  for (int j = 0; j < lo->walk.nloop; j++) {
    for (int c = 0; c < m->cols && lo->walk.loop[j] >= 0; c++) {
      if ((column == NULL ? c : column[c]) != lo->walk.loop[j]) continue;
      const int64_t by = stride[c] * (int64_t)ein_dtype_size(r->dtype);
      if (!local) r->step[j] += by * lo->mul[j];
      offset += stride[c] * lo->from[j];
    }
  }
  if (local) offset -= lo->shift[tensor];
  return eini_mul_overflow(offset, (int64_t)ein_dtype_size(r->dtype), &r->offset)
             ? EIN_ERR_TOO_LARGE : EIN_OK;
}

// ---- merging and ordering of loops ----

static void eini_task_swap(eini_task *t, int i, int j) {
  int64_t e = t->extent[i];
  t->extent[i] = t->extent[j];
  t->extent[j] = e;
  unsigned char r = t->reduced[i];
  t->reduced[i] = t->reduced[j];
  t->reduced[j] = r;
  if (t->along == i + 1 || t->along == j + 1) t->along = i + j + 2 - t->along;
  for (int s = 0; s < t->nstream; s++) {
    int64_t *v = t->stride + (int64_t)s * t->nindex;
    int64_t x = v[i];
    v[i] = v[j];
    v[j] = x;
  }
}

// Drops loop i. The stride rows keep their pitch (nindex is the pitch), so extents of dropped
// loops become 1 and move behind the live ones, whose order stays.
static void eini_task_drop(eini_task *t, int i, int *live) {
  for (--*live; i < *live; i++) eini_task_swap(t, i, i + 1);
}

// Must loop i stay as the statement has it, because it gives the order of a fold? Contractions have
// their reduced loops among EINI_AXES_K.
static int eini_task_kept(const eini_task *t, int i) {
  return t->order && t->reduced[i] == (t->kind == EINI_TASK_CONTRACT ? EINI_AXES_K : 1);
}

// Can loops o (outer) and i (inner) be one loop of extent e(o)*e(i)?
static int eini_task_fusable(const eini_task *t, int o, int i) {
  if (t->reduced[o] != t->reduced[i] || eini_task_kept(t, i)) return 0;
  if (t->along == o + 1 || t->along == i + 1) return 0;
  for (int s = 0; s < t->nstream; s++) {
    const int64_t *v = t->stride + (int64_t)s * t->nindex;
    int64_t want;
    if (eini_mul_overflow(v[i], t->extent[i], &want) || v[o] != want) return 0;
  }
  return 1;
}

// Sort key of a loop: how far it moves the output, and then the operands.
static int eini_task_before(const eini_task *t, int i, int j) {
  if (t->reduced[i] != t->reduced[j]) return t->reduced[i] < t->reduced[j];
  if (eini_task_kept(t, i)) return 0;
  for (int k = 0; k <= t->nop; k++) {
    int s = k == 0 ? t->out : k - 1;
    int64_t a = eini_abs64(t->stride[(int64_t)s * t->nindex + i]);
    int64_t b = eini_abs64(t->stride[(int64_t)s * t->nindex + j]);
    if (a != b) return a > b;
  }
  return 0;
}

// Removes loops of extent 1, sorts the others, merges what is one loop in memory. Returns the
// number of live loops (they come first).
static int eini_task_merge(eini_task *t) {
  int live = t->nindex;
  for (int i = live - 1; i >= 0; i--)
    if (t->extent[i] == 1) eini_task_drop(t, i, &live);
  for (int i = 1; i < live; i++) {
    for (int j = i; j > 0 && eini_task_before(t, j, j - 1); j--) eini_task_swap(t, j, j - 1);
  }
  for (int i = live - 1; i > 0; i--) {
    int64_t e;
    if (!eini_task_fusable(t, i - 1, i) || eini_mul_overflow(t->extent[i - 1], t->extent[i], &e))
      continue;
    t->extent[i] = e;
    for (int k = i - 1; k + 1 < live; k++) eini_task_swap(t, k, k + 1);
    live--;
  }
  return live;
}

// Relative cost of running chunks along loop i: cache lines touched per element, and the overhead
// of short chunks. A short free loop's go on along the innermost other one.
static double eini_chunk_cost(const eini_task *t, int i) {
  int more = t->reduced[i] || t->extent[i] >= EINI_CHUNK / 2 ? -1 : t->nindex - 1;
  while (more >= 0 && (more == i || t->reduced[more] || t->extent[more] == 1)) more--;
  const int64_t many = more < 0 ? 1 : eini_min64(t->extent[more], EINI_CHUNK);
  double cost = EINI_CHUNK_START / (double)eini_min64(t->extent[i] * many, EINI_CHUNK);
  for (int s = 0; s < t->nstream; s++) {
    if (t->ref[s].slot < 0) continue;
    const int64_t *v = t->stride + (int64_t)s * t->nindex;
    double step = (double)eini_abs64(v[i]);
    double bytes = step * (double)ein_dtype_size(t->ref[s].dtype);
    if (s == t->out && t->reduced[i]) continue;
    const int apart =
        step > 1 || (more >= 0 && (double)v[more] != (double)v[i] * (double)t->extent[i]);
    cost += bytes > EINI_LINE_BYTES ? 1
            : bytes / EINI_LINE_BYTES + (apart ? EINI_CHUNK_APART : 0);
  }
  // A chunk along a reduced index ends in one output element each time round.
  if (t->reduced[i]) cost += EINI_CHUNK_END / (double)t->extent[i];
  return cost;
}

// Do a stream's elements follow each other through a chunk in even steps?
static int eini_chunk_even(const eini_task *t, int s) {
  const int64_t *v = t->stride + (int64_t)s * t->nindex;
  for (int k = t->nchunk - 1; k > 0; k--) {
    int64_t want;
    if (eini_mul_overflow(v[t->chunk[k]], t->extent[t->chunk[k]], &want) ||
        v[t->chunk[k - 1]] != want)
      return 0;
  }
  return 1;
}

// Offsets of all elements of a chunk over several loops, of streams whose steps are not even.
static ein_status eini_chunk_tables(eini_arena *a, eini_task *t) {
  t->table = EINI_NEW(a, int64_t *, t->nstream);
  if (t->table == NULL) return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < t->nstream; s++) {
    if (eini_chunk_even(t, s)) continue;
    t->table[s] = EINI_NEW(a, int64_t, t->chunk_len);
    if (t->table[s] == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t j = 0; j < t->chunk_len; j++) {
      int64_t rest = j, off = 0;
      for (int k = t->nchunk - 1; k >= 0; k--) {
        int i = t->chunk[k];
        off += rest % t->extent[i] * t->stride[(int64_t)s * t->nindex + i];
        rest /= t->extent[i];
      }
      t->table[s][j] = off;
    }
  }
  return EIN_OK;
}

// The loop that chunks run along where the statement says of which kind: of free ones the cheapest;
// of reduced ones the last, or the longest if that is short. Extents of reduced loops are the same
// in all blocks of a statement.
static int eini_ordered_chunk(const eini_task *t, int live) {
  int best = -1;
  for (int i = 0; i < live; i++) {
    if (t->reduced[i] != ((t->order & EINI_ORDER_ACROSS) != 0)) continue;
    if (best < 0 || (t->reduced[i] ? t->extent[i] >= 32 || t->extent[i] > t->extent[best]
                                   : eini_chunk_cost(t, i) < eini_chunk_cost(t, best)))
      best = i;
  }
  return best;
}

// Chooses the chunk's indices and the loops around it.
static ein_status eini_task_chunk(eini_arena *a, eini_task *t, int live) {
  char *taken = EINI_NEW(a, char, live + 1);
  t->chunk = EINI_NEW(a, int, live + 1);
  t->outer = EINI_NEW(a, int, live + 1);
  t->inner = EINI_NEW(a, int, live + 1);
  if (taken == NULL || t->chunk == NULL || t->outer == NULL || t->inner == NULL)
    return EIN_ERR_NO_MEMORY;
  int best = -1;
  double low = 0;
  if (t->order) best = eini_ordered_chunk(t, live);
  for (int i = 0; i < live && !t->order; i++) {
    double c = eini_chunk_cost(t, i);
    if (best < 0 || c < low) best = i, low = c;
  }
  t->chunk_row = t->chunk_steps = t->chunk_len = 1;
  if (best >= 0) {
    int64_t len = 1;
    t->chunk_reduced = t->reduced[best];
    // Short: take more loops of the same kind into the chunk, next in memory order first; of the
    // last one, if it is free, some values at a time.
    for (int i = best, next = live - 1; i >= 0; i = next--) {
      const int first = t->nchunk == 0;
      if (taken[i] || t->reduced[i] != t->reduced[best] ||
          (!first && t->reduced[i] && t->extent[i] > EINI_CHUNK / len))
        continue;
      for (int k = t->nchunk; k > 0; k--) t->chunk[k] = t->chunk[k - 1];
      t->chunk[0] = i;
      t->nchunk++;
      taken[i] = 1;
      t->chunk_row = len;
      t->chunk_steps = eini_max64(1, EINI_CHUNK / len);
      if (t->extent[i] >= t->chunk_steps) break;
      len *= t->extent[i];
      if (len >= EINI_CHUNK / 2) break;
    }
    t->chunk_len = t->chunk_row * eini_min64(t->chunk_steps, t->extent[t->chunk[0]]);
  }
  for (int i = 0; i < live; i++) {
    if (taken[i]) continue;
    if (t->reduced[i]) t->inner[t->ninner++] = i;
    else t->outer[t->nouter++] = i;
  }
  return t->nchunk > 1 ? eini_chunk_tables(a, t) : EIN_OK;
}

// A copy runs plane by plane: a is the loop src is dense in, b the one dst is dense in.
static ein_status eini_task_plane(eini_arena *a, eini_task *t, int live) {
  t->chunk = EINI_NEW(a, int, 2);
  t->outer = EINI_NEW(a, int, live + 1);
  if (t->chunk == NULL || t->outer == NULL) return EIN_ERR_NO_MEMORY;
  const int64_t *in = t->stride, *out = t->stride + (int64_t)t->out * t->nindex;
  int x = -1, y = -1;
  for (int i = 0; i < live; i++) {
    if (in[i] != 0 && (x < 0 || eini_abs64(in[i]) < eini_abs64(in[x]))) x = i;
    if (y < 0 || eini_abs64(out[i]) < eini_abs64(out[y])) y = i;
  }
  if (x < 0) x = y;
  if (x == y) {  // dense in both: b is the next loop of the output
    y = -1;
    for (int i = 0; i < live; i++)
      if (i != x && (y < 0 || eini_abs64(out[i]) < eini_abs64(out[y]))) y = i;
  }
  if (y >= 0) t->chunk[t->nchunk++] = y;
  if (x >= 0) t->chunk[t->nchunk++] = x;
  for (int i = 0; i < live; i++)
    if (i != x && i != y) t->outer[t->nouter++] = i;
  return EIN_OK;
}
