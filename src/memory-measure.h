// ================================================================================================
// >>memory-measure  predicted bytes and seconds of statements inside loops
// Rough, and only for choices: what is taken is planned and counted.
// ================================================================================================

typedef struct eini_fit_guess {
  int64_t bytes;
  double seconds, flops, again; // again: flops of statements that lack a loop's index
} eini_fit_guess;

static int64_t eini_fit_slices(int64_t extent, int64_t block) {
  return block < 1 ? 1 : (extent - 1) / block + 1;
}

// Bytes of a tensor made in the region, for one slice.
static int64_t eini_fit_slice_bytes(const eini_fit_nest *n, int t, ein_dtype dtype) {
  const eini_tensor *x = &n->b->g->tensor[t];
  int64_t count = 1;
  int row = eini_fit_row(n, t);
  for (int r = 0; r < x->rank; r++) {
    int64_t e = x->shape[r];
    for (int l = 0; l < n->nloop && row >= 0; l++)
      if (n->cls[l]->axis[row] == r + 1) e = n->block[l];
    if (eini_mul_overflow(count, e, &count)) return EINI_FIT_MOST;
  }
  count = eini_fit_padded(count, dtype);
  return count < 0 ? EINI_FIT_MOST : eini_min64(count, EINI_FIT_MOST);
}

// Tensors that are stored as a whole while the region runs.
static int64_t eini_fit_stored(const eini_fit_nest *n) {
  const eini_fit_base *b = n->b;
  double sum = b->made[n->to] - b->gone[n->from];
  for (int u = n->from; u < n->to; u++) {
    int t = b->g->stmt[u].out;
    if (b->first[t] == u && eini_fit_inner(n, t)) sum -= (double)b->bytes[t];
  }
  return sum >= (double)EINI_FIT_MOST ? EINI_FIT_MOST : sum > 0 ? (int64_t)sum : 0;
}

#define EINI_FIT_PLAN (2 * EINI_ARENA_FIRST)  // bytes of a plan: the first blocks of its arenas

// Are results of statement u merged where they are stored?
static int eini_fit_whole_type(const eini_fit_nest *n, int u) {
  const eini_stmt *s = &n->b->g->stmt[u];
  return n->b->g->tensor[s->out].dtype == ein_dtype_compute(s->type);
}

// Bytes of the results of statement u in a block of the first nloop loops, `size` each.
static int64_t eini_fit_block_bytes(const eini_fit_nest *n, int u, int nloop, int64_t size) {
  const eini_stmt *s = &n->b->g->stmt[u];
  const eini_tensor *x = &n->b->g->tensor[s->out];
  for (int r = 0; r < x->rank; r++) {
    int64_t e = x->shape[r];
    for (int l = 0; l < nloop; l++) {
      int c = n->cls[l]->col[u - n->from];
      if (c >= 0 && c < s->nfree && eini_plain_row(&s->out_map, r) == c) e = n->block[l];
    }
    if (eini_mul_overflow(size, e, &size)) return EINI_FIT_MOST;
  }
  return (eini_min64(size, EINI_FIT_MOST) + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// Bytes of partial results of statement u, and of where they are merged: a block of the loops
// outside those that are folded. *outer: their number.
static int64_t eini_fit_part_bytes(const eini_fit_nest *n, int u, int *outer) {
  const eini_stmt *s = &n->b->g->stmt[u];
  unsigned folded;
  int fold = eini_fit_inner(n, s->out) ? EIN_FOLD_NONE : eini_fit_merge_fold(n, u, &folded);
  *outer = 0;
  if (fold <= EIN_FOLD_NONE) return 0;
  while (!n->whole && !(folded >> *outer & 1)) ++*outer;
  if (eini_fold_carries(fold))
    return eini_fit_block_bytes(n, u, *outer, eini_partial_bytes(n->b->g, s) +
                                                   n->whole * (int64_t)EINI_ALIGN);
  int64_t size = (int64_t)ein_dtype_size(ein_dtype_compute(s->type));
  int64_t bytes = eini_fit_block_bytes(n, u, n->nloop, size);
  if (eini_fit_whole_type(n, u)) return bytes;
  return eini_fit_sum(bytes, eini_fit_block_bytes(n, u, *outer, size));
}

// Bytes that partial results of statement u move: values are stored, read again, and merged; states
// are read and stored, the block of a slice at a time.
static double eini_fit_part_traffic(const eini_fit_nest *n, int u) {
  const eini_stmt *s = &n->b->g->stmt[u];
  double times = EINI_PART_TIMES;
  int outer;
  const int64_t bytes = eini_fit_part_bytes(n, u, &outer);
  for (int l = 0; l < n->nloop; l++)
    if (l < outer || !eini_fold_carries(s->fold) || n->cls[l]->col[u - n->from] >= s->nfree)
      times *= (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
  return times * (double)bytes;
}

// Most bytes of intermediates alive within one slice, and of partial results; those that are values
// need a plan that merges them, and perhaps one that stores them.
static int64_t eini_fit_peak(const eini_fit_nest *n) {
  const eini_fit_base *b = n->b;
  int64_t live = 0, peak = 0, parts = 0;
  int outer;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &b->g->stmt[u];
    const int64_t part = eini_fit_part_bytes(n, u, &outer);
    parts = eini_fit_sum(parts, part);
    if (part > 0 && !n->whole && !eini_fold_carries(s->fold))
      parts = eini_fit_sum(parts, eini_fit_whole_type(n, u) ? EINI_FIT_PLAN : 2 * EINI_FIT_PLAN);
    if (b->first[s->out] == u && eini_fit_inner(n, s->out))
      live = eini_fit_sum(live, eini_fit_slice_bytes(n, s->out, b->g->tensor[s->out].dtype));
    peak = eini_max64(peak, live);
    for (int k = 0; k < s->noperand; k++) {
      int t = s->operand[k], before = 0;
      if (b->read[t] != u || !eini_fit_inner(n, t)) continue;
      for (int i = 0; i < k; i++) before |= s->operand[i] == t;
      if (!before)
        live = eini_max64(0, live - eini_fit_slice_bytes(n, t, b->g->tensor[t].dtype));
    }
  }
  return eini_fit_sum(peak, parts);
}

// Statement u in the loops of a nest, walked; len NULL: all of it, else a slice.
static eini_stmt_block eini_fit_walk(const eini_fit_nest *n, int u, const int64_t *len,
                                     eini_walk *w) {
  w->nloop = n->nloop;
  for (int l = 0; l < n->nloop; l++) {
    w->loop[l] = n->cls[l]->col[u - n->from];
    w->times[l] = len != NULL ? 1 : (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
  }
  return eini_walk_block(w, len);
}

// Elements of operand k in buffers: what windows share is packed with each.
static double eini_fit_packed(const ein_graph *g, const eini_stmt *s, const eini_stmt_block *slice,
                              int k) {
  const eini_tensor *x = &g->tensor[s->operand[k]];
  double all = 1, n = 1;
  for (int r = 0; r < x->rank; r++) all *= (double)x->shape[r];
  for (int i = 0; i < s->nindex; i++)
    if (eini_map_uses(&s->proj[k], i) > 0) n *= eini_length(s, slice, i);
  return n < all ? n : all;
}

// Bytes that kernels pack into within a slice: copies of what a fold of several operands reads and
// makes, where those are smaller than the largest buffers. In another memory all is copied.
static int64_t eini_fit_packing(const eini_fit_job *j, const eini_fit_nest *n) {
  double most = 0;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    if (!j->away && (s->fold == EIN_FOLD_NONE || s->noperand < 2)) continue;
    eini_walk w;
    const eini_stmt_block slice = eini_fit_walk(n, u, n->block, &w);
    double count = eini_points(s, &slice, 0, s->nfree);
    for (int k = 0; k < s->noperand; k++) count += eini_fit_packed(n->b->g, s, &slice, k);
    count *= (double)ein_dtype_size(ein_dtype_compute(s->type));
    if (count > most) most = count;
  }
  return most < (double)j->packing ? (int64_t)most : j->packing;
}

// All that slices of the nest need, beside what is stored.
static int64_t eini_fit_inside(const eini_fit_job *j, const eini_fit_nest *n) {
  return eini_fit_sum(eini_fit_peak(n), eini_fit_packing(j, n));
}

// stored: what eini_fit_stored gave.
static void eini_fit_measure(const eini_fit_job *j, const eini_fit_nest *n, int64_t stored,
                             eini_fit_guess *out) {
  double slices = 1;
  memset(out, 0, sizeof *out);
  out->bytes = eini_fit_sum(stored, eini_fit_inside(j, n));
  for (int l = 0; l < n->nloop; l++)
    slices *= (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    eini_walk w;
    const eini_stmt_block walk = eini_fit_walk(n, u, NULL, &w);
    const eini_cost c = eini_cost_of(n->b->g, s, NULL, &walk, NULL, NULL, NULL);
    out->flops += c.flops;
    out->again += c.flops - c.flops / eini_walk_times(&w, NULL);
    out->seconds += eini_seconds(&j->speed, c.flops, c.traffic + eini_fit_part_traffic(n, u)) +
                    EINI_SLICE_SECONDS * slices;
  }
  out->seconds += EINI_SLICE_SECONDS;
}
