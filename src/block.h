// ================================================================================================
// >>block  a statement restricted to ranges of its indices
// Takes a statement and a block of its index space (section cost); gives it as a statement of its
// own, with origins as params, and its partial results: values, or states that are merged and
// finished. Slices of budgets and tasks of places are made of it.
// ================================================================================================

// The hull of what it touches, as first coordinates and extents.
EINI_UNUSED static ein_status eini_block_hull_new(eini_arena *a, const eini_stmt *s,
                                                  const eini_stmt_block *b, int k, int64_t **low,
                                                  int64_t **shape) {
  const int rows = eini_access(s, k)->rows;
  *low = EINI_NEW(a, int64_t, rows);
  *shape = EINI_NEW(a, int64_t, rows);
  if (*low == NULL || *shape == NULL) return EIN_ERR_NO_MEMORY;
  eini_block_hull(s, b, k, *low, *shape);
  for (int r = 0; r < rows; r++) (*shape)[r] -= (*low)[r];
  return EIN_OK;
}

// ---- origins ----

// Does a block need the first value of index i? Where its expression has the value, and where the
// fold counts positions.
EINI_UNUSED static int eini_block_origin(const eini_stmt *s, int i) {
  if (i >= s->nfree && eini_fold_counts(s->fold)) return 1;
  for (int64_t v = 0; v < s->expr.n; v++)
    if (s->expr.node[v].op == EIN_OP_INDEX && s->expr.node[v].arg[0] == i) return 1;
  return 0;
}

// A statement's block in another graph, over views there. Where it begins at 0, low[k] are the
// first coordinates of operand k's, and behind them those of the result's; NULL: all are 0.
typedef struct eini_block_view {
  const eini_stmt *s;
  const eini_stmt_block *block;  // its extents are the view's
  const int *origin;             // nindex: params with the first values of indices, or -1
  const int *operand;
  const int64_t *const *low;
  int out, nstate;               // nstate > 0: the results are states, in these tensors
  int state[4];
} eini_block_view;

// Appends it to g. Names stay where they are.
EINI_UNUSED static ein_status eini_block_stmt(ein_graph *g, const eini_block_view *v) {
  const eini_stmt *from = v->s;
  eini_arena *a = &g->arena;
  eini_stmt *s;
  EINI_TRY(eini_graph_add_like(g, from, 0, v->out, v->operand, &s));
  for (int i = 0; i < s->nindex; i++) {
    int64_t lo, hi;
    eini_block_range(from, v->block, i, &lo, &hi);
    s->index[i].extent = eini_max64(hi - lo, 0);
  }
  for (int k = 0; k <= s->noperand; k++) {
    eini_map *m = k < s->noperand ? &s->proj[k] : &s->out_map;
    for (int r = 0; r < m->rows && v->low[k] != NULL; r++) m->offset[r] -= v->low[k][r];
  }
  EINI_TRY(eini_expr_shift(a, &from->expr, v->origin, &s->expr));
  if (v->nstate == 0) return EIN_OK;
  eini_carry *c = EINI_NEW(a, eini_carry, 1);
  int64_t *extent = EINI_NEW(a, int64_t, s->nindex);
  if (c == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) extent[i] = from->index[i].extent;
  for (int k = 0; k < v->nstate; k++) c->state[k] = v->state[k];
  c->extent = extent;
  c->origin = v->origin;
  s->carry = c;
  return EIN_OK;
}

// ---- partial results ----

// Is a partial result of the fold its state? Those of other folds are values.
static int eini_fold_carries(int fold) { return fold >= EIN_FOLD_ARGMAX; }

// Scalars of one element of a partial result: of its state, or one where that merges finished
// values (the state of logsumexp has two).
static int eini_partial_scalars(const ein_graph *g, const eini_stmt *s) {
  if (!eini_fold_carries(s->fold)) return 1;
  return s->fold < EIN_FOLD_USER ? eini_folds[s->fold].nstate
                                  : g->monoid[s->fold - EIN_FOLD_USER].nstate;
}

// Bytes of one element of a partial result.
static int64_t eini_partial_bytes(const ein_graph *g, const eini_stmt *s) {
  if (!eini_fold_carries(s->fold)) return (int64_t)ein_dtype_size(ein_dtype_compute(s->type));
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  int64_t size = (int64_t)ein_dtype_size(eini_fold_value_dtype(g, s->fold, value, s->numpy));
  return eini_fold_counts(s->fold) ? size + (int64_t)ein_dtype_size(EIN_I64)
                                   : size * eini_partial_scalars(g, s);
}

// The folder of a statement's states.
static ein_status eini_states_folder(const ein_graph *g, const eini_stmt *s, eini_folder *f) {
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  const double count = eini_points(s, NULL, s->nfree, s->nindex);
  return eini_folder_init(f, g, s->fold, eini_fold_value_dtype(g, s->fold, value, s->numpy), count,
                          NULL);
}

// Bytes of a state.
EINI_UNUSED static size_t eini_states_bytes(const eini_folder *f) {
  size_t bytes = 0;
  for (int k = 0; k < f->nstate; k++) bytes += ein_dtype_size(eini_state_dtype(f, k));
  return bytes;
}

// n states in memory, one array per scalar; positions, which are the widest, come first.
EINI_UNUSED static void eini_states_at(const eini_folder *f, int64_t n, char *memory,
                                       void **state) {
  for (int k = 0; k < f->nstate; k++) {
    int s = eini_fold_counts(f->fold) ? 1 - k : k;
    state[s] = memory;
    memory += n * (int64_t)ein_dtype_size(eini_state_dtype(f, s));
  }
  for (int s = f->nstate; s < 4; s++) state[s] = NULL;
}

// The states from number `at` on.
static void eini_states_from(const eini_folder *f, void *const *state, int64_t at, void **to) {
  for (int s = 0; s < 4; s++) {
    to[s] = state[s];
    if (s < f->nstate)
      to[s] = (char *)state[s] + at * (int64_t)ein_dtype_size(eini_state_dtype(f, s));
  }
}

// left = left merged with right, n states each.
EINI_UNUSED static void eini_states_merge(const eini_folder *f, int64_t n, char *left,
                                          char *right) {
  void *a[4], *b[4], *acc[4], *from[4];
  eini_states_at(f, n, left, a);
  eini_states_at(f, n, right, b);
  for (int64_t at = 0; at < n; at += EINI_CHUNK) {
    const void *more[4];
    eini_states_from(f, a, at, acc);
    eini_states_from(f, b, at, from);
    for (int s = 0; s < 4; s++) more[s] = from[s];
    f->merge(eini_min64(EINI_CHUNK, n - at), acc, more, f->user == NULL ? NULL : f->user->user);
  }
}

#define EINI_STATES_CHUNK 64  // finished at a time, on the stack

// Finished results of states with extents len and strides `from` (NULL: dense; the last axis is),
// stored as dtype `to` with strides in elements.
static void eini_states_finish(const eini_folder *f, int rank, const int64_t *len,
                               void *const *state, const int64_t *from, ein_dtype to, char *dst,
                               const int64_t *stride) {
  double room[7][2 * EINI_STATES_CHUNK + 8];
  int64_t results = 1, row = rank > 0 ? len[rank - 1] : 1, step = rank > 0 ? stride[rank - 1] : 1;
  const int64_t size = (int64_t)ein_dtype_size(to);
  for (int i = 0; i < rank; i++) results *= len[i];
  for (int64_t n = 0; n < results; n += row) {
    int64_t rest = n / row, line = 0, at = from == NULL ? n : 0;
    for (int i = rank - 2; i >= 0; i--) {
      line += rest % len[i] * stride[i];
      if (from != NULL) at += rest % len[i] * from[i];
      rest /= len[i];
    }
    for (int64_t k = 0; k < row; k += EINI_STATES_CHUNK) {
      int64_t m = eini_min64(EINI_STATES_CHUNK, row - k);
      void *part[4];
      eini_states_from(f, state, at + k, part);
      for (int s = 0; s < f->nstate; s++) {  // conversions read whole lanes
        memcpy(room[s], part[s], (size_t)m * ein_dtype_size(eini_state_dtype(f, s)));
        part[s] = room[s];
      }
      const void *v = eini_fold_finish(f, m, part, room[4]);
      const eini_chunk_fn store = eini_storage_find(NULL, EIN_OP_CAST, to);
      if (f->result != to) v = eini_narrow(f->result, to, m, v, store, room[5], room[6]);
      eini_scatter((size_t)size, m, v, dst + (line + k * step) * size, step, NULL);
    }
  }
}
