// ================================================================================================
// >>block  a statement restricted to ranges of its indices
// Takes a statement and a block of its index space; gives the hulls of what the block touches, its
// expression with origins as params, and its partial results: values, or states that are merged and
// finished. Slices of budgets and tasks of places are made of it.
// ================================================================================================

// ---- hulls ----

// The smallest box [from, to) that holds the image of index ranges; without points it is empty.
// Every access was proved to stay inside a tensor, so nothing wraps.
EINI_UNUSED static void eini_block_hull(const eini_map *m, const int64_t *lo, const int64_t *hi,
                                        int64_t *from, int64_t *to) {
  const int empty = eini_zrange_empty(m->cols, lo, hi);
  for (int r = 0; r < m->rows; r++) {
    from[r] = to[r] = m->offset[r];
    for (int e = m->first[r]; e < m->first[r + 1] && !empty; e++) {
      int64_t k = m->term[e].coef, x = k * lo[m->term[e].index];
      int64_t y = k * (hi[m->term[e].index] - 1);
      from[r] += eini_min64(x, y);
      to[r] += eini_max64(x, y);
    }
    to[r] += !empty;
  }
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

// ---- partial results that are values ----

// Merges operands 0 and 1, partial results of a fold in its computation type; untyped. -1: no
// memory.
static int eini_block_merge_expr(eini_arena *a, int fold, ein_dtype type, eini_expr *e) {
  const int logic = type == EIN_BOOL, or_ = fold == EIN_FOLD_SUM || fold == EIN_FOLD_MAX;
  int x = eini_expr_add(a, e, EIN_OP_OPERAND, -1, 0, 0, 0);
  int y = eini_expr_add(a, e, EIN_OP_OPERAND, -1, 1, 0, 0);
  if (fold == EIN_FOLD_ANY || (logic && or_)) return eini_expr_pair(a, e, EIN_OP_OR, x, y);
  if (fold == EIN_FOLD_ALL || logic) return eini_expr_pair(a, e, EIN_OP_AND, x, y);
  if (fold == EIN_FOLD_SUM) return eini_expr_pair(a, e, EIN_OP_ADD, x, y);
  if (fold == EIN_FOLD_PROD) return eini_expr_pair(a, e, EIN_OP_MUL, x, y);
  if (fold == EIN_FOLD_MAX) return eini_expr_pair(a, e, EIN_OP_MAX, x, y);
  if (fold == EIN_FOLD_MIN) return eini_expr_pair(a, e, EIN_OP_MIN, x, y);
  EINSUM_ASSERT(fold == EIN_FOLD_LOGSUMEXP);  // equal infinities have no difference
  int hi = eini_expr_pair(a, e, EIN_OP_MAX, x, y), lo = eini_expr_pair(a, e, EIN_OP_MIN, x, y);
  int gap = eini_expr_pair(a, e, EIN_OP_SUB, lo, hi);
  int same = eini_expr_pair(a, e, EIN_OP_EQ, x, y), zero = eini_expr_int(a, e, -1, 0);
  if (gap < 0 || same < 0 || zero < 0) return -1;
  int d = eini_expr_add(a, e, EIN_OP_WHERE, -1, same, zero, gap);
  int rise = d < 0 ? -1 : eini_expr_add(a, e, EIN_OP_EXP, -1, d, 0, 0);
  rise = eini_expr_pair(a, e, EIN_OP_ADD, rise, eini_expr_int(a, e, -1, 1));
  rise = rise < 0 ? -1 : eini_expr_add(a, e, EIN_OP_LOG, -1, rise, 0, 0);
  return eini_expr_pair(a, e, EIN_OP_ADD, hi, rise);
}

// ---- partial results that are states ----

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

// Finished results of dense states with extents len, stored as dtype `to` with strides in elements.
static void eini_states_finish(const eini_folder *f, int rank, const int64_t *len,
                               void *const *state, ein_dtype to, char *dst,
                               const int64_t *stride) {
  double room[7][2 * EINI_STATES_CHUNK + 8];
  int64_t results = 1, row = rank > 0 ? len[rank - 1] : 1, step = rank > 0 ? stride[rank - 1] : 1;
  const int64_t size = (int64_t)ein_dtype_size(to);
  for (int i = 0; i < rank; i++) results *= len[i];
  for (int64_t n = 0; n < results; n += row) {
    int64_t rest = n / row, line = 0;
    for (int i = rank - 2; i >= 0; i--) {
      line += rest % len[i] * stride[i];
      rest /= len[i];
    }
    for (int64_t k = 0; k < row; k += EINI_STATES_CHUNK) {
      int64_t m = eini_min64(EINI_STATES_CHUNK, row - k);
      void *from[4];
      eini_states_from(f, state, n + k, from);
      for (int s = 0; s < f->nstate; s++) {  // conversions read whole lanes
        memcpy(room[s], from[s], (size_t)m * ein_dtype_size(eini_state_dtype(f, s)));
        from[s] = room[s];
      }
      const void *v = eini_fold_finish(f, m, from, room[4]);
      if (f->result != to) v = eini_narrow(f->result, to, m, v, room[5], room[6]);
      eini_scatter((size_t)size, m, v, dst + (line + k * step) * size, step, NULL);
    }
  }
}
