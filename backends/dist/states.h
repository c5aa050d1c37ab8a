// ================================================================================================
// >>states  partial results that are states of several scalars
// Takes a fold; gives states of a task's points, merged states, and finished results. States lie in
// planes, one per scalar. The values of a piece of the task at a time are computed by a plan and
// folded by the functions of einsum.h.
// ================================================================================================

// Is a partial result of the fold its state? (Those of other folds are values.)
static int eini_dist_carries(int fold) { return fold >= EINI_ARGMAX; }

static ein_status eini_dist_folder(const ein_graph *g, const eini_stmt *s, eini_folder *f) {
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  double count = 1;
  for (int i = s->nfree; i < s->nindex; i++) count *= (double)s->index[i].extent;
  return eini_folder_init(f, g, s->fold, eini_fold_value_dtype(g, s->fold, value, s->numpy), count,
                          NULL);
}

static int eini_dist_is_arg(const eini_folder *f) {
  return f->fold == EINI_ARGMAX || f->fold == EINI_ARGMIN;
}

// The planes of n states in memory; positions, which are the widest, come first.
static void eini_dist_planes(const eini_folder *f, int64_t n, char *memory, void **plane) {
  for (int k = 0; k < f->nstate; k++) {
    int s = eini_dist_is_arg(f) ? f->nstate - 1 - k : k;
    plane[s] = memory;
    memory += n * (int64_t)ein_dtype_size(eini_state_dtype(f, s));
  }
  for (int s = f->nstate; s < 4; s++) plane[s] = NULL;
}

// The planes from state number `at` on.
static void eini_dist_planes_at(const eini_folder *f, void *const *plane, int64_t at, void **to) {
  for (int s = 0; s < 4; s++) {
    to[s] = plane[s];
    if (s < f->nstate)
      to[s] = (char *)plane[s] + at * (int64_t)ein_dtype_size(eini_state_dtype(f, s));
  }
}

// left = left merged with right, n states each.
static void eini_dist_states_merge(const eini_folder *f, int64_t n, char *left, char *right) {
  void *a[4], *b[4], *acc[4], *from[4];
  eini_dist_planes(f, n, left, a);
  eini_dist_planes(f, n, right, b);
  for (int64_t at = 0; at < n; at += EINI_CHUNK) {
    const void *more[4];
    eini_dist_planes_at(f, a, at, acc);
    eini_dist_planes_at(f, b, at, from);
    for (int s = 0; s < 4; s++) more[s] = from[s];
    f->merge(eini_min64(EINI_CHUNK, n - at), acc, more, f->user == NULL ? NULL : f->user->user);
  }
}

// ---- scratch ----

#define EINI_DIST_VALUES 16384  // of one piece of a task

// Of one thread.
typedef struct eini_dist_scratch {
  char *values;
  int64_t *position;        // of the piece's reduced points
  int64_t *same;            // one position for a chunk of values
  void *tmp[4], *out, *conv, *conv2;
} eini_dist_scratch;

#define EINI_DIST_SCRATCH (EINI_DIST_VALUES * 16 + 8 * EINI_REG_BYTES)

static void eini_dist_scratch_carve(char *memory, eini_dist_scratch *c) {
  c->values = memory;
  c->position = (int64_t *)(void *)(memory + EINI_DIST_VALUES * 8);
  memory += EINI_DIST_VALUES * 16;
  c->same = (int64_t *)(void *)memory;
  for (int k = 0; k < 4; k++) c->tmp[k] = memory += EINI_REG_BYTES;
  c->out = memory += EINI_REG_BYTES;
  c->conv = memory += EINI_REG_BYTES;
  c->conv2 = memory + EINI_REG_BYTES;
}

// ---- pieces of a task ----

// A task's points in pieces of at most EINI_DIST_VALUES: along the axes of values, those before
// `split` one by one, `split` in steps, and those behind it whole.
typedef struct eini_dist_pieces {
  int across, split;
  int64_t step;
} eini_dist_pieces;

static eini_dist_pieces eini_dist_pieces_of(const eini_stmt *s, const int64_t *len) {
  eini_dist_pieces p;
  int64_t inner = 1, results = 1;
  for (int i = 0; i < s->nfree; i++) results *= len[i];
  p.across = results < EINI_LANES;
  for (p.split = s->nindex - 1; p.split > 0; p.split--) {
    int64_t n = eini_max64(1, len[eini_dist_axis(s, p.across, p.split)]);
    if (n > EINI_DIST_VALUES / inner) break;
    inner *= n;
  }
  int64_t n = eini_max64(1, len[eini_dist_axis(s, p.across, p.split)]);
  p.step = eini_min64(n, EINI_DIST_VALUES / inner);
  return p;
}

// The extents of a whole piece, or of the last one along the split axis; 0: there is none shorter.
static int eini_dist_piece_len(const eini_stmt *s, const eini_dist_pieces *p, const int64_t *len,
                               int last, int64_t *to) {
  for (int k = 0; k < s->nindex; k++) {
    int i = eini_dist_axis(s, p->across, k);
    to[i] = k < p->split ? 1 : k > p->split ? len[i] : last ? len[i] % p->step : p->step;
  }
  return !last || to[eini_dist_axis(s, p->across, p->split)] > 0;
}

// What folding the points of one task takes. Buffers: see eini_dist_room.
typedef struct eini_dist_fold {
  const eini_stmt *s;
  const eini_folder *f;
  const int64_t *lo, *len;          // the task
  const void *const *data;          // per operand: its box, and strides
  const int64_t *const *stride;
  const size_t *size;               // per operand: bytes of an element
  const ein_plan *plan, *rest;      // values of a whole piece, of the last one
  ein_run run;                      // inputs, params and workspace of these plans
  const void **in;                  // run.in
  ein_scalar *origin;               // behind the graph's params
  eini_dist_scratch *scratch;
  int64_t *at, *plo, *phi, *from, *to, *bfrom, *bto;
} eini_dist_fold;

// Positions of the piece's reduced points; returns their number.
static int64_t eini_dist_positions(const eini_dist_fold *t, int64_t *at, int64_t *position) {
  const eini_stmt *s = t->s;
  int64_t n = 0;
  for (int i = s->nfree; i < s->nindex; i++) at[i] = t->plo[i];
  for (int i = 0; i >= 0;) {
    int64_t p = 0;
    for (int c = s->nfree; c < s->nindex; c++) p = p * s->index[c].extent + at[c];
    position[n++] = p;
    for (i = s->nindex - 1; i >= s->nfree && ++at[i] == t->phi[i]; i--) at[i] = t->plo[i];
    if (i < s->nfree) break;
  }
  return n;
}

// Folds the values of nfree results with nred points each into states.
static void eini_dist_fold_values(const eini_dist_fold *t, int across, int64_t nfree, int64_t nred,
                                  void *const *plane) {
  const eini_folder *f = t->f;
  const eini_dist_scratch *c = t->scratch;
  const int64_t size = (int64_t)ein_dtype_size(f->type), n = across ? nred : nfree;
  void *acc[4];
  for (int64_t i = 0; i < (across ? nfree : nred); i++) {
    char *value = c->values + i * n * size;
    for (int64_t j = 0; j < EINI_CHUNK && !across; j++) c->same[j] = c->position[i];
    for (int64_t at = 0; at < n; at += EINI_CHUNK) {
      int64_t m = eini_min64(EINI_CHUNK, n - at);
      eini_dist_planes_at(f, plane, across ? i : at, acc);
      if (across) eini_fold_across(f, m, value + at * size, c->position + at, acc, c->tmp);
      else eini_fold_down(f, m, value + at * size, c->same, acc, c->tmp);
    }
  }
}

// The ranges of the piece that begins at t->at; returns its extent along the split axis.
static int64_t eini_dist_piece(const eini_dist_fold *t, const eini_dist_pieces *p) {
  int64_t n = 0;
  for (int k = 0; k < t->s->nindex; k++) {
    int i = eini_dist_axis(t->s, p->across, k);
    int64_t left = t->len[i] - t->at[i];
    int64_t m = k < p->split ? 1 : k == p->split ? eini_min64(p->step, left) : left;
    t->plo[i] = t->lo[i] + t->at[i];
    t->phi[i] = t->plo[i] + m;
    if (k == p->split) n = m;
  }
  return n;
}

// Goes on to the next piece; 0 after the last.
static int eini_dist_piece_next(const eini_dist_fold *t, const eini_dist_pieces *p) {
  for (int k = p->split; k >= 0; k--) {
    int i = eini_dist_axis(t->s, p->across, k);
    t->at[i] += k == p->split ? p->step : 1;
    if (t->at[i] < t->len[i]) return 1;
    t->at[i] = 0;
  }
  return 0;
}

// Computes the values of the piece at hand.
static ein_status eini_dist_piece_values(const eini_dist_fold *t, const ein_plan *plan) {
  const eini_stmt *s = t->s;
  int n = 0, norigin = 0;
  for (int o = 0; o < s->noperand; o++) {
    int64_t at = 0;
    if (eini_dist_first(s, o) < o) continue;
    for (int i = 0; i < s->nindex; i++) t->bto[i] = t->lo[i] + t->len[i];
    eini_dist_hull(&s->proj[o], t->lo, t->bto, t->bfrom, t->to);
    eini_dist_hull(&s->proj[o], t->plo, t->phi, t->from, t->to);
    for (int r = 0; r < s->proj[o].rows; r++) at += (t->from[r] - t->bfrom[r]) * t->stride[o][r];
    t->in[n++] = (const char *)t->data[o] + at * (int64_t)t->size[o];
  }
  for (int i = 0; i < s->nindex; i++) {
    if (!eini_dist_uses(s, NULL, i)) continue;
    ein_scalar *p = &t->origin[norigin++];
    memset(p, 0, sizeof *p);
    p->set = 1;
    p->re = (double)t->plo[i];
  }
  void *out = t->scratch->values;
  ein_run run = t->run;
  run.out = &out;
  return ein_plan_execute(plan, &run);
}

// Folds all points of a task into the states of its results, by free indices.
static ein_status eini_dist_fold_task(const eini_dist_fold *t, char *states) {
  const eini_stmt *s = t->s;
  const eini_dist_pieces p = eini_dist_pieces_of(s, t->len);
  int64_t results = 1;
  void *plane[4], *acc[4];
  int empty = 0;
  for (int i = 0; i < s->nfree; i++) results *= t->len[i];
  for (int i = 0; i < s->nindex; i++) {
    empty |= t->len[i] == 0;
    t->at[i] = 0;
  }
  eini_dist_planes(t->f, results, states, plane);
  eini_fold_identity(t->f, results, plane);
  if (empty) return EIN_OK;
  do {
    int64_t n = eini_dist_piece(t, &p), first = 0, nfree = 1, nred = 1;
    EINI_TRY(eini_dist_piece_values(t, n == p.step ? t->plan : t->rest));
    for (int i = 0; i < s->nindex; i++) {
      if (i < s->nfree) first = first * t->len[i] + t->at[i];
      if (i < s->nfree) nfree *= t->phi[i] - t->plo[i];
      else nred *= t->phi[i] - t->plo[i];
    }
    if (eini_dist_is_arg(t->f)) eini_dist_positions(t, t->bto, t->scratch->position);
    eini_dist_planes_at(t->f, plane, first, acc);
    eini_dist_fold_values(t, p.across, nfree, nred, acc);
  } while (eini_dist_piece_next(t, &p));
  return EIN_OK;
}

// Finished results of the states of a block with extents len, stored as dtype `to` with strides by
// free index. at: nfree integers.
static void eini_dist_states_finish(const eini_folder *f, int nfree, const int64_t *len,
                                    char *states, ein_dtype to, char *dst, const int64_t *stride,
                                    const eini_dist_scratch *c, int64_t *at) {
  int64_t results = 1, row = nfree > 0 ? len[nfree - 1] : 1, size = (int64_t)ein_dtype_size(to);
  void *plane[4], *from[4];
  for (int i = 0; i < nfree; i++) results *= len[i];
  for (int i = 0; i < nfree; i++) at[i] = 0;
  eini_dist_planes(f, results, states, plane);
  for (int64_t n = 0; n < results; n += row) {
    char *line = dst;
    for (int i = 0; i + 1 < nfree; i++) line += at[i] * stride[i] * size;
    for (int64_t k = 0; k < row; k += EINI_CHUNK) {
      int64_t m = eini_min64(EINI_CHUNK, row - k), step = nfree > 0 ? stride[nfree - 1] : 1;
      eini_dist_planes_at(f, plane, n + k, from);
      for (int s = 0; s < f->nstate; s++) {  // conversions read whole lanes
        memcpy(c->tmp[s], from[s], (size_t)m * ein_dtype_size(eini_state_dtype(f, s)));
        from[s] = c->tmp[s];
      }
      const void *v = eini_fold_finish(f, m, from, c->out);
      if (f->result != to) v = eini_narrow(f->result, to, m, v, c->conv, c->conv2);
      eini_scatter((size_t)size, m, v, line + k * step * size, step, NULL);
    }
    for (int i = nfree - 2; i >= 0 && ++at[i] == len[i]; i--) at[i] = 0;
  }
}

// Plans of the values of a task with extents j->len: of its whole pieces, and of the last ones (-1:
// none is shorter). j->stride: of the boxes. key: tag, its length n, and room for 2 * nindex more.
static ein_status eini_dist_values_plans(eini_dist_plans *l, const eini_dist_job *task,
                                         int64_t *key, int64_t n, int64_t *whole, int64_t *rest) {
  const eini_stmt *s = task->s;
  const eini_dist_pieces p = eini_dist_pieces_of(s, task->len);
  eini_dist_job j = *task;
  int64_t *len = key + n;
  for (int i = 0; i < s->nindex; i++) len[s->nindex + i] = task->len[i];
  j.len = len;
  j.cut = NULL;
  j.by_index = 0;
  j.out_stride = NULL;
  j.values = 1;
  j.across = p.across;
  *whole = *rest = -1;
  for (int last = 0; last < 2; last++) {
    if (!eini_dist_piece_len(s, &p, task->len, last, len)) continue;
    EINI_TRY(eini_dist_plan(l, &j, 0, key, n + 2 * (int64_t)s->nindex, last ? rest : whole));
  }
  return EIN_OK;
}
