// ================================================================================================
// >>moved-cost  the cost models bytes and seconds
// What tasks fetch of what does not lie at their own place, exactly; and a prediction of the time:
// the slowest place of every statement, with its transfers.
// ================================================================================================

static double eini_element_bytes(const eini_decomposer *dc, int tensor) {
  return (double)ein_dtype_size(dc->g->tensor[tensor].dtype);
}

static double eini_log2_up(double n) {
  double steps = 0;
  for (double x = 1; x < n; x *= 2) steps++;
  return steps;
}

// Seconds of a message to a place.
static double eini_link_seconds(const ein_machine *m, double bytes) {
  return m->latency + bytes / m->bandwidth;
}

// Seconds of merging so many elements of partial results into others.
static double eini_merge_seconds(const ein_machine *m, double elements) {
  return elements / m->flops;
}

// Bytes and seconds of folding partial results at their homes, those of the largest block.
static void eini_fold_cost(const eini_decomposer *dc, const eini_stmt *s, const int64_t *cut,
                           double *bytes, double *seconds) {
  const eini_stmt_block longest = eini_block_of(NULL, NULL, cut);
  double nagg = (double)eini_tasks(cut + s->nfree, s->nindex - s->nfree);
  double size = (double)eini_partial_bytes(dc->g, s), block = eini_points(s, &longest, 0, s->nfree);
  *bytes = (nagg - 1) * eini_points(s, NULL, 0, s->nfree) * size;
  *seconds = eini_log2_up(nagg) * (eini_link_seconds(&dc->machine, block * size) +
                                   eini_merge_seconds(&dc->machine, block));
}

// What a block of a statement takes at a place of a machine. again: see eini_cost_of.
static eini_cost eini_machine_cost(const ein_machine *m, const ein_graph *g, const eini_stmt *s,
                                   const unsigned char *again, const eini_stmt_block *b) {
  const eini_speed speed = {m->flops, m->memory_bw, m->overhead, 0};
  return eini_cost_of(g, s, NULL, b, again, NULL, &speed);
}

// Elements that a task reads of operand k, a mean over all tasks; of uneven pieces of an index in
// several coordinates a little less.
static double eini_mean_box(const eini_stmt *s, int k, const int64_t *cut) {
  const eini_map *m = &s->proj[k];
  double box = 1;
  for (int r = 0; r < m->rows; r++) {
    double side = 1;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      const int c = m->term[e].index;
      side += (double)eini_abs64(m->term[e].coef) *
              ((double)s->index[c].extent / (double)cut[c] - 1);
    }
    box *= side;
  }
  return box;
}

// Bytes that tasks read of inputs beyond each element once, where inputs are dealt out.
static double eini_dealt_bytes(const eini_decomposer *dc, const eini_stmt *s,
                               const int64_t *cut) {
  const double tasks = (double)eini_tasks(cut, s->nindex);
  double sum = 0;
  if (dc->desc->inputs != EIN_INPUTS_DEALT || eini_points(s, NULL, 0, s->nindex) <= 0) return 0;
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k];
    int first = dc->g->tensor[t].role == EIN_ROLE_INPUT && dc->tensor_node[t] < 0;
    double read = 0, once = 0;
    for (int j = 0; j < k; j++) first &= s->operand[j] != t;
    for (int j = k; j < s->noperand && first; j++) {
      if (s->operand[j] != t || eini_operand_first(s, j) != j) continue;
      read += tasks * eini_mean_box(s, j, cut);
      once = fmax(once, eini_block_box(s, NULL, j));
    }
    sum += fmax(0, read - once) * eini_element_bytes(dc, t);
  }
  return sum;
}

static eini_cost eini_place_cost(const eini_decomposer *dc, const eini_dform *f,
                                 const eini_stmt_block *b) {
  return eini_machine_cost(&dc->machine, dc->g, f->s, f->again, b);
}

// ---- what moves on an edge ----------------------------------------------------------------------

#define EINI_PLACE_CHUNK 256
#define EINI_DIGITS_MAX (2 * EINI_CUTS_MAX)

// What tells the ways of a statement apart on one edge: the digits that its blocks (k < 0) or the
// boxes of its operand k depend on, in order, the others as gaps; not moved: in no order, without
// gaps. Returns the number of entries, EINI_DIGITS_MAX at most.
static int eini_way_digits(const eini_dform *f, int64_t way, int k, int moved, int64_t *digit) {
  const eini_stmt *s = f->s;
  const eini_map *m = eini_access(s, k);
  const int64_t *cut = (k < 0 ? f->ways.home : f->ways.cut) + way * s->nindex;
  const int *order = (k < 0 ? f->ways.home_order : f->ways.order) + way * s->nindex;
  const int norder = (k < 0 ? f->ways.home_norder : f->ways.norder)[way];
  int n = 0;
  for (int i = 0; i < (moved ? norder : s->nindex); i++) {
    int c = moved ? order[i] : i, used = eini_map_uses(m, c) > 0;
    if (used && cut[c] > 1) {
      digit[n++] = c;
      digit[n++] = cut[c];
    } else if (used) {
      continue;
    } else if (moved && n > 0 && digit[n - 2] < 0) {
      digit[n - 1] *= cut[c];
    } else if (moved && (k >= 0 || n > 0)) {  // reduced digits in front of a home's are 0
      digit[n++] = -1;
      digit[n++] = cut[c];
    }
  }
  return n;
}

// Ways of a form that are alike on an edge.
typedef struct eini_wayset {
  int n;                   // classes
  int *of;                 // class of each way
  int64_t *first;          // a way of each class
} eini_wayset;

static ein_status eini_wayset_make(eini_decomposer *dc, const eini_dform *f, int k,
                                   eini_wayset *q) {
  const int64_t n = f->ways.n;
  int64_t *digit = EINI_NEW(&dc->arena, int64_t,
                            eini_min64(2 * (int64_t)f->s->nindex, EINI_DIGITS_MAX) + 1);
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  q->n = 0;
  q->of = EINI_NEW(&dc->arena, int, n);
  q->first = EINI_NEW(&dc->arena, int64_t, n);
  if (digit == NULL || q->of == NULL || q->first == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t w = 0; w < n; w++) {
    int len = eini_way_digits(f, w, k, dc->desc->cost >= EIN_COST_BYTES, digit);
    const int64_t id = eini_key_number(&dc->arena, &seen, digit, len);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    if (id == q->n) q->first[q->n++] = w;
    q->of[w] = (int)id;
  }
  return EIN_OK;
}

// One side of a table. Ways of equal digits for one of the producer's free indices have the same
// ranges of it at all places: they share a lane. The last index is [0, 1) where there is a block.
typedef struct eini_edgeside {
  eini_wayset set;
  int *lane;               // [class][index]
  int *at;                 // [index + 1] its first lane: lanes of an index are neighbours
  int *from;               // [lane] a class that has it
  double *lo, *hi;         // [lane][place] of a chunk
} eini_edgeside;

#define EINI_PLACE_WORDS (EINI_PLACE_CHUNK / 64)

// The places of a chunk, as bits, where something has this value.
typedef struct eini_level {
  double value;
  uint64_t at[EINI_PLACE_WORDS];
} eini_level;

typedef struct eini_levels {  // n of them from `first` on; everywhere else it is 0
  int64_t first;
  int n;
} eini_levels;

typedef struct eini_edgework {
  const eini_dform *x, *y;
  int k, several;          // several: a coordinate of the producer has not just one index
  int seconds;             // the most of a task is asked for, not the sum
  int nd;                  // free indices of the producer, + 1
  int chunk, nword;        // places at a time, and words of their bits
  eini_edgeside a, b;
  eini_level *level;
  int64_t nlevel, caplevel;
  eini_levels *meet;       // [index][producer's lane][reader's lane] overlap of their ranges
  int64_t *meet_at;        // [index] where its part of meet begins
  eini_levels *need;       // [reader's class] elements that tasks read
  double *one;             // [place] of one pair
  int64_t *lo, *hi, *from, *to, *klo, *khi, *s0, *s1, *stride;  // of one task
  double *cost;            // [class][class] elements fetched in all, or most by one task
} eini_edgework;

static int eini_way_ranges(const eini_dform *f, int64_t way, int64_t place, int home, int64_t *lo,
                           int64_t *hi) {
  const eini_ways *w = &f->ways;
  const int64_t at = way * f->s->nindex;
  return eini_task_ranges(f->s, (home ? w->home : w->cut) + at,
                          (home ? w->home_order : w->order) + at,
                          (home ? w->home_norder : w->norder)[way], place, home, lo, hi);
}

// Piece of index c at a place is place / stride[c] % cut[c]; returns the number of tasks.
static int64_t eini_way_strides(const eini_dform *f, int64_t way, int home, int64_t *stride) {
  const eini_ways *w = &f->ways;
  const int n = f->s->nindex;
  return eini_place_weights(n, (home ? w->home : w->cut) + way * n,
                            (home ? w->home_order : w->order) + way * n,
                            (home ? w->home_norder : w->norder)[way], stride);
}

// Does the producer's index c lie, for tasks of this side, where their index i says?
static int eini_lane_uses(const eini_edgework *w, int reader, int c, int i) {
  const eini_stmt *x = w->x->s, *y = w->y->s;
  if (c == w->nd - 1) return !reader && i >= x->nfree;
  for (int r = 0; r < x->out_map.rows && reader; r++) {
    if (eini_map_coef(&x->out_map, r, c) == 0) continue;
    if (eini_map_coef(&y->proj[w->k], r, i) != 0) return 1;
  }
  return !reader && i == c;
}

// What tells the lanes of index c apart. Returns the number of entries.
static int eini_lane_key(eini_edgework *w, int reader, int c, int64_t way, int64_t *key) {
  const eini_dform *f = reader ? w->y : w->x;
  const int64_t *cut = (reader ? f->ways.cut : f->ways.home) + way * f->s->nindex;
  int n = 0;
  int64_t tasks = eini_way_strides(f, way, !reader, w->stride);
  if (c == w->nd - 1) key[n++] = tasks;
  for (int i = 0; i < f->s->nindex; i++) {
    if (cut[i] == 1 || !eini_lane_uses(w, reader, c, i)) continue;
    key[n++] = i;
    key[n++] = cut[i];
    key[n++] = w->stride[i];
  }
  return n;
}

static ein_status eini_edge_lanes(eini_decomposer *dc, eini_edgework *w, int reader) {
  eini_edgeside *t = reader ? &w->b : &w->a;
  const int64_t most = t->set.n;
  int64_t *key = EINI_NEW(&dc->arena, int64_t,
                          3 * (int64_t)(reader ? w->y : w->x)->s->nindex + 2);
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  t->lane = EINI_NEW(&dc->arena, int, most * w->nd);
  t->at = EINI_NEW(&dc->arena, int, w->nd + 1);
  t->from = EINI_NEW(&dc->arena, int, most * w->nd);
  if (key == NULL || t->lane == NULL || t->at == NULL || t->from == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < w->nd; c++) {
    t->at[c] = (int)seen.n;
    for (int i = 0; i < t->set.n; i++) {
      key[0] = c;
      int len = eini_lane_key(w, reader, c, t->set.first[i], key + 1);
      const int64_t before = seen.n, id = eini_key_number(&dc->arena, &seen, key, len + 1);
      if (id < 0) return EIN_ERR_NO_MEMORY;
      if (id == before) t->from[id] = i;
      t->lane[i * w->nd + c] = (int)id;
    }
  }
  const int n = t->at[w->nd] = (int)seen.n;
  t->lo = EINI_NEW(&dc->arena, double, (int64_t)n * w->chunk);
  t->hi = EINI_NEW(&dc->arena, double, (int64_t)n * w->chunk);
  return t->lo == NULL || t->hi == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// What is known without ways, and scratch of one task.
static ein_status eini_edgework_rooms(eini_decomposer *dc, eini_edgework *w) {
  const eini_stmt *s = w->x->s;
  const eini_map *m = &s->out_map;
  int64_t room = eini_max64(s->nindex, w->y->s->nindex) + m->rows + 1;
  w->nd = s->nfree + 1;
  for (int r = 0; r < m->rows; r++) w->several |= eini_map_terms(m, r) != 1;
  w->seconds = dc->desc->cost == EIN_COST_SECONDS;
  w->lo = EINI_NEW(&dc->arena, int64_t, 9 * room);
  if (w->lo == NULL) return EIN_ERR_NO_MEMORY;
  w->hi = w->lo + room;
  w->from = w->hi + room;
  w->to = w->from + room;
  w->klo = w->to + room;
  w->khi = w->klo + room;
  w->s0 = w->khi + room;
  w->s1 = w->s0 + room;
  w->stride = w->s1 + room;
  return EIN_OK;
}

static ein_status eini_edgework_make(eini_decomposer *dc, eini_edgework *w) {
  int64_t meet = 0;
  EINI_TRY(eini_edgework_rooms(dc, w));
  EINI_TRY(eini_wayset_make(dc, w->x, -1, &w->a.set));
  EINI_TRY(eini_wayset_make(dc, w->y, w->k, &w->b.set));
  w->chunk = (int)eini_min64(dc->p, EINI_PLACE_CHUNK);
  w->nword = (w->chunk + 63) / 64;
  w->one = EINI_NEW(&dc->arena, double, w->chunk);
  w->cost = EINI_NEW(&dc->arena, double, (int64_t)w->a.set.n * w->b.set.n);
  w->meet_at = EINI_NEW(&dc->arena, int64_t, w->nd);
  w->need = EINI_NEW(&dc->arena, eini_levels, w->b.set.n);
  if (w->one == NULL || w->cost == NULL || w->meet_at == NULL || w->need == NULL)
    return EIN_ERR_NO_MEMORY;
  if (dc->desc->cost < EIN_COST_BYTES || w->several) return EIN_OK;
  EINI_TRY(eini_edge_lanes(dc, w, 0));
  EINI_TRY(eini_edge_lanes(dc, w, 1));
  for (int c = 0; c < w->nd; c++) {
    w->meet_at[c] = meet;
    meet += (int64_t)(w->a.at[c + 1] - w->a.at[c]) * (w->b.at[c + 1] - w->b.at[c]);
  }
  w->meet = EINI_NEW(&dc->arena, eini_levels, meet);
  return w->meet == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The range of index c at a place, for a way of one side of `ntask` tasks, its strides in
// w->stride.
static void eini_lane_range(eini_edgework *w, int reader, int c, int64_t way, int64_t ntask,
                            int64_t place, double *lo, double *hi) {
  const eini_dform *f = reader ? w->y : w->x;
  const eini_stmt *s = f->s;
  const int64_t *cut = (reader ? f->ways.cut : f->ways.home) + way * s->nindex;
  if (c < w->nd - 1 && !reader) {
    const int64_t k = place / w->stride[c] % cut[c], extent = s->index[c].extent;
    *lo = (double)eini_piece_start(extent, cut[c], k);
    *hi = (double)eini_piece_start(extent, cut[c], k + 1);
    return;
  }
  int there = place < ntask;
  for (int i = 0; i < s->nindex; i++) {
    int64_t k = place / w->stride[i] % cut[i], extent = s->index[i].extent;
    there &= reader || i < s->nfree || k == 0;
    if (c == w->nd - 1) continue;
    w->klo[i] = eini_piece_start(extent, cut[i], k);
    w->khi[i] = eini_piece_start(extent, cut[i], k + 1);
  }
  if (c == w->nd - 1) {
    *lo = 0;
    *hi = there;
    return;
  }
  const eini_stmt_block b = eini_block_of(w->klo, w->khi, NULL);
  eini_block_hull(s, &b, w->k, w->from, w->to);
  eini_box_ranges(w->x->s, w->from, w->to, w->lo, w->hi);
  *lo = (double)w->lo[c];
  *hi = (double)w->hi[c];
}

// Ranges of all lanes of one side at a chunk of places. They repeat with the most significant of
// the digits that count, and stay while the least significant one does.
static void eini_lanes_fill(eini_edgework *w, int reader, int64_t at) {
  const eini_edgeside *t = reader ? &w->b : &w->a;
  const eini_dform *f = reader ? w->y : w->x;
  for (int c = 0, l = 0; c < w->nd; c++) {
    for (; l < t->at[c + 1]; l++) {
      int64_t way = t->set.first[t->from[l]], step = INT64_MAX, period = 1;
      const int64_t *cut = (reader ? f->ways.cut : f->ways.home) + way * f->s->nindex;
      double *lo = t->lo + (int64_t)l * w->chunk, *hi = t->hi + (int64_t)l * w->chunk;
      const int64_t ntask = eini_way_strides(f, way, !reader, w->stride);
      for (int i = 0; i < f->s->nindex; i++) {
        if (cut[i] == 1 || !eini_lane_uses(w, reader, c, i)) continue;
        step = eini_min64(step, w->stride[i]);
        period = eini_max64(period, w->stride[i] * cut[i]);
      }
      if (c == w->nd - 1) step = 1, period = INT64_MAX;
      for (int64_t q = 0; q < w->chunk; q++) {
        int64_t same = q >= period ? q - period : q > 0 && (at + q) % step != 0 ? q - 1 : -1;
        if (same < 0) eini_lane_range(w, reader, c, way, ntask, at + q, &lo[q], &hi[q]);
        else lo[q] = lo[same], hi[q] = hi[same];
      }
    }
  }
}

// Values over a chunk of places as levels.
static ein_status eini_levels_make(eini_decomposer *dc, eini_edgework *w, const double *value,
                                   eini_levels *out) {
  out->first = w->nlevel;
  out->n = 0;
  for (int q = 0; q < w->chunk; q++) {
    int k = 0;
    if (value[q] <= 0) continue;
    for (; k < out->n; k++)
      if (w->level[out->first + k].value == value[q]) break;
    if (k == out->n) {
      eini_level *l = (eini_level *)eini_grow(&dc->arena, w->level, w->nlevel, &w->caplevel,
                                              sizeof *l);
      if (l == NULL) return EIN_ERR_NO_MEMORY;
      w->level = l;
      l += w->nlevel++;
      memset(l, 0, sizeof *l);
      l->value = value[q];
      out->n++;
    }
    w->level[out->first + k].at[q / 64] |= (uint64_t)1 << (q % 64);
  }
  return EIN_OK;
}

// What tasks of a class need at a chunk of places.
static void eini_edge_need(eini_edgework *w, int b, int64_t at) {
  for (int q = 0; q < w->chunk; q++) w->one[q] = 1;
  for (int c = 0; c < w->nd && !w->several; c++) {
    int64_t l = (int64_t)w->b.lane[b * w->nd + c] * w->chunk;
    for (int q = 0; q < w->chunk; q++)
      w->one[q] *= w->b.hi[l + q] > w->b.lo[l + q] ? w->b.hi[l + q] - w->b.lo[l + q] : 0;
  }
  for (int q = 0; q < w->chunk && w->several; q++) {
    const eini_stmt *s = w->x->s, *t = w->y->s;
    const eini_stmt_block block = eini_block_of(w->klo, w->khi, NULL);
    w->one[q] = 0;
    if (!eini_way_ranges(w->y, w->b.set.first[b], at + q, 0, w->klo, w->khi)) continue;
    eini_block_hull(t, &block, w->k, w->from, w->to);
    if (!eini_box_ranges(s, w->from, w->to, w->lo, w->hi)) continue;
    w->one[q] = eini_block_in_box(s, w->lo, w->hi, w->from, w->to, w->s0, w->s1);
  }
}

// Levels of what lanes have in common, and of what tasks need.
static ein_status eini_edge_levels(eini_decomposer *dc, eini_edgework *w, int64_t at) {
  w->nlevel = 0;
  for (int c = 0; c < w->nd && !w->several; c++) {
    eini_levels *meet = w->meet + w->meet_at[c];
    for (int a = w->a.at[c]; a < w->a.at[c + 1]; a++) {
      for (int b = w->b.at[c]; b < w->b.at[c + 1]; b++) {
        const double *alo = w->a.lo + (int64_t)a * w->chunk, *ahi = w->a.hi + (int64_t)a * w->chunk;
        const double *blo = w->b.lo + (int64_t)b * w->chunk, *bhi = w->b.hi + (int64_t)b * w->chunk;
        for (int q = 0; q < w->chunk; q++)
          w->one[q] = (ahi[q] < bhi[q] ? ahi[q] : bhi[q]) - (alo[q] > blo[q] ? alo[q] : blo[q]);
        EINI_TRY(eini_levels_make(dc, w, w->one, meet++));
      }
    }
  }
  for (int b = 0; b < w->b.set.n; b++) {
    eini_edge_need(w, b, at);
    EINI_TRY(eini_levels_make(dc, w, w->one, &w->need[b]));
  }
  return EIN_OK;
}

// Of a pair of classes: where tasks find something at their own places, and what they fetch.
typedef struct eini_edgepair {
  const eini_levels **meet, *need;  // meet: of each index
  uint64_t found[EINI_PLACE_WORDS];
  double sum, most;        // elements found; most that a task fetches which finds some
} eini_edgepair;

// `value` elements lie in both ranges of the indices before c at the places `at`, which it changes.
static void eini_edge_meet(const eini_edgework *w, eini_edgepair *p, int c, double value,
                           uint64_t *at) {
  int nword = w->nword;
  for (; c < w->nd && p->meet[c]->n == 1; c++) {  // most have one level: no list of places splits
    const eini_level *l = &w->level[p->meet[c]->first];
    uint64_t any = 0;
    for (int i = 0; i < nword; i++) any |= at[i] &= l->at[i];
    if (any == 0) return;
    value *= l->value;
  }
  if (c == w->nd && !w->seconds) {
    for (int i = 0; i < nword; i++) p->sum += value * eini_count_bits(at[i]);
    return;
  }
  const eini_levels *set = c == w->nd ? p->need : p->meet[c];
  for (int k = 0; k < set->n; k++) {
    const eini_level *l = &w->level[set->first + k];
    uint64_t both[EINI_PLACE_WORDS], any = 0;
    for (int i = 0; i < nword; i++) any |= both[i] = at[i] & l->at[i];
    if (any == 0) continue;
    if (c < w->nd) {
      eini_edge_meet(w, p, c + 1, value * l->value, both);
      continue;
    }
    for (int i = 0; i < nword; i++) p->found[i] |= both[i];
    if (l->value - value > p->most) p->most = l->value - value;
  }
}

// Adds to the cost of a pair of classes what a chunk of places fetches.
static void eini_edge_pair(const eini_edgework *w, int a, int b, eini_edgepair *p, double *cost) {
  uint64_t all[EINI_PLACE_WORDS];
  for (int c = 0; c < w->nd; c++) {
    int la = w->a.lane[a * w->nd + c] - w->a.at[c], lb = w->b.lane[b * w->nd + c] - w->b.at[c];
    p->meet[c] = w->meet + w->meet_at[c] + (int64_t)la * (w->b.at[c + 1] - w->b.at[c]) + lb;
  }
  p->need = &w->need[b];
  p->sum = p->most = 0;
  for (int i = 0; i < w->nword; i++) all[i] = ~(uint64_t)0, p->found[i] = 0;
  eini_edge_meet(w, p, 0, 1, all);
  for (int k = 0; k < p->need->n; k++) {
    const eini_level *l = &w->level[p->need->first + k];
    uint64_t rest = 0;
    for (int i = 0; i < w->nword; i++) {
      rest |= l->at[i] & ~p->found[i];
      if (!w->seconds) p->sum -= l->value * eini_count_bits(l->at[i]);
    }
    if (rest != 0 && l->value > p->most) p->most = l->value;
  }
  if (!w->seconds) *cost -= p->sum;
  else if (p->most > *cost) *cost = p->most;
}

// The same where a coordinate of the producer has several indices, or none.
static void eini_edge_several(eini_edgework *w, int a, int b, int64_t at, double *cost) {
  const eini_stmt *s = w->x->s, *t = w->y->s;
  const eini_stmt_block block = eini_block_of(w->klo, w->khi, NULL);
  for (int k = 0; k < w->need[b].n; k++) {
    const eini_level *l = &w->level[w->need[b].first + k];
    for (int q = 0; q < w->chunk; q++) {
      double found = 0;
      if ((l->at[q / 64] >> (q % 64) & 1) == 0) continue;
      eini_way_ranges(w->y, w->b.set.first[b], at + q, 0, w->klo, w->khi);
      eini_block_hull(t, &block, w->k, w->from, w->to);
      if (eini_way_ranges(w->x, w->a.set.first[a], at + q, 1, w->klo, w->khi))
        found = eini_block_in_box(s, w->klo, w->khi, w->from, w->to, w->s0, w->s1);
      if (!w->seconds) *cost += l->value - found;
      else if (l->value - found > *cost) *cost = l->value - found;
    }
  }
}

// Elements that move, for all pairs of classes.
static ein_status eini_edge_count(eini_decomposer *dc, eini_edgework *w) {
  eini_edgepair pair;
  pair.meet = EINI_NEW(&dc->arena, const eini_levels *, w->nd);
  if (pair.meet == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t at = 0; at < dc->p; at += w->chunk) {
    for (int side = 0; side < 2 && !w->several; side++) eini_lanes_fill(w, side, at);
    EINI_TRY(eini_edge_levels(dc, w, at));
    for (int a = 0; a < w->a.set.n; a++) {
      for (int b = 0; b < w->b.set.n; b++) {
        double *cost = &w->cost[(int64_t)a * w->b.set.n + b];
        if (w->several) eini_edge_several(w, a, b, at, cost);
        else eini_edge_pair(w, a, b, &pair, cost);
      }
    }
  }
  return EIN_OK;
}
