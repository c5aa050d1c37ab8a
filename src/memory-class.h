// ================================================================================================
// >>memory-class  indices of several statements that one loop runs over
// Takes statements [from, to) and an index of one of them; gives the indices and axes that have to
// run with it. Invariant: within a slice, statements read of the tensors made here only the slice.
// ================================================================================================

typedef struct eini_fit_class {
  int64_t extent;
  int stmt, index;              // where it was found
  int *col;                     // per statement of the region: its index in the class; -1: none
  int *axis;                    // per tensor made in the region (eini_fit_row): axis + 1
  char *part;                   // likewise: slices of the class hold a part of its values, to be
                                //   folded; it is read in the region
  char *linear;                 // per statement: it reads such a tensor, and its results are parts
  int fold;                     // of these parts
} eini_fit_class;

// Statements [from, to) of a base, inside loops over classes.
typedef struct eini_fit_nest {
  const eini_fit_base *b;
  int from, to, nloop, whole;   // whole: as of the job
  const eini_fit_class *cls[EINI_FIT_LOOPS];
  int64_t block[EINI_FIT_LOOPS];
} eini_fit_nest;

static int eini_fit_made(const eini_fit_nest *n, int t) {  // all of it, in the region
  return n->b->first[t] >= n->from && n->b->last[t] < n->to;
}

// The place among the region's statements of the first that defines the tensor; -1: none does.
static int eini_fit_row(const eini_fit_nest *n, int t) {
  int u = n->b->first[t];
  return u >= n->from && u < n->to ? u - n->from : -1;
}

// Is the tensor alive only inside the region?
static int eini_fit_inner(const eini_fit_nest *n, int t) {
  return n->b->g->tensor[t].role == EIN_ROLE_TEMP && eini_fit_made(n, t) &&
         n->b->read[t] < n->to && n->b->read[t] >= 0;
}

// Is it read by a statement of the region? (It is made there, so nobody reads it earlier.)
static int eini_fit_read(const eini_fit_nest *n, int t) {
  if (n->b->read[t] < n->to) return n->b->read[t] >= n->from;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = 0; k < s->noperand; k++)
      if (s->operand[k] == t) return 1;
  }
  return 0;
}

// Declared ahead: an index marks axes, an axis marks indices.
static int eini_fit_mark_axis(const eini_fit_nest *n, eini_fit_class *c, int t, int axis);

// The row of a map that is the index alone; -2: it stands in other places, -1: in none.
static int eini_fit_plain(const eini_stmt *s, const eini_map *m, const int64_t *shape, int index) {
  int found = -1;
  for (int r = 0; r < m->rows; r++) {
    if (eini_map_coef(m, r, index) == 0) continue;
    if (found >= 0 || eini_plain_row(m, r) != index || shape[r] != s->index[index].extent)
      return -2;
    found = r;
  }
  return found;
}

// Is statement s a product (in the sense of the fold) with tensor t as one factor, so that parts of
// t give parts of the result?
static int eini_fit_linear(const ein_graph *g, const eini_stmt *s, int t, int fold) {
  const eini_expr *e = &s->expr;
  int64_t at = -1;
  int slots = 0;
  if ((s->fold != EIN_FOLD_NONE && s->fold != fold) || s->rest != EIN_REST_ERROR ||
      g->tensor[s->out].nstmt != 1) {
    return 0;
  }
  for (int k = 0; k < s->noperand; k++) slots += s->operand[k] == t;
  for (int64_t i = 0; i < e->n; i++) {
    if (e->node[i].op != EIN_OP_OPERAND || s->operand[e->node[i].arg[0]] != t) continue;
    if (at >= 0 || slots != 1) return 0;
    at = i;
  }
  while (at >= 0 && at != e->n - 1) {  // up to the root, through products only
    int64_t parent = -1;
    for (int64_t i = at + 1; i < e->n; i++) {
      for (int k = 0; k < eini_node_args(&e->node[i]); k++) {
        if (eini_node_arg(e, &e->node[i], k) != at) continue;
        if (parent >= 0 || !eini_legal_join(g, fold, e->node[i].op)) return 0;
        parent = i;
      }
    }
    at = parent;
  }
  return at >= 0;
}

// Tensor t, read in the region, holds parts: whoever reads it must be linear in it.
static int eini_fit_mark_part(const eini_fit_nest *n, eini_fit_class *c, int t) {
  const ein_graph *g = n->b->g;
  if (!eini_fit_inner(n, t) || g->tensor[t].nstmt != 1) return 0;
  char *part = &c->part[eini_fit_row(n, t)];
  if (*part) return 1;
  *part = 1;
  for (int v = n->from; v < n->to; v++) {
    const eini_stmt *s = &g->stmt[v];
    int reads = 0;
    for (int k = 0; k < s->noperand; k++) reads |= s->operand[k] == t;
    if (!reads) continue;
    if (c->linear[v - n->from] || !eini_fit_linear(g, s, t, c->fold)) return 0;
    c->linear[v - n->from] = 1;
    if (eini_fit_read(n, s->out) && !eini_fit_mark_part(n, c, s->out)) return 0;
  }
  return 1;
}

// Puts an index of statement u into the class; 0 when it cannot be sliced.
static int eini_fit_mark_index(const eini_fit_nest *n, eini_fit_class *c, int u, int index) {
  const ein_graph *g = n->b->g;
  const eini_stmt *s = &g->stmt[u];
  const eini_tensor *out = &g->tensor[s->out];
  int *mine = &c->col[u - n->from];
  if (*mine >= 0) return *mine == index;
  *mine = index;
  if (s->rest != EIN_REST_ERROR || s->index[index].extent != c->extent) return 0;
  if (!eini_order_cuts(g, s, index)) return 0;
  if (index >= s->nfree) {
    if (out->nstmt != 1) return 0;
    if (eini_fit_read(n, s->out)) {
      if (eini_fold_carries(s->fold)) return 0;  // states are read by nobody
      if (c->fold != EIN_FOLD_NONE && c->fold != s->fold) return 0;
      c->fold = s->fold;
      if (!eini_fit_mark_part(n, c, s->out)) return 0;
    }
  } else if (eini_fit_read(n, s->out) || out->nstmt > 1) {
    int r = eini_fit_plain(s, &s->out_map, out->shape, index);
    if (r < 0 || !eini_fit_made(n, s->out) || !eini_fit_mark_axis(n, c, s->out, r)) return 0;
  }
  for (int k = 0; k < s->noperand; k++) {
    int t = s->operand[k];
    if (!eini_fit_made(n, t)) continue;
    int r = eini_fit_plain(s, &s->proj[k], g->tensor[t].shape, index);
    if (r == -2 || (r >= 0 && !eini_fit_mark_axis(n, c, t, r))) return 0;
  }
  return 1;
}

static int eini_fit_mark_axis(const eini_fit_nest *n, eini_fit_class *c, int t, int axis) {
  const ein_graph *g = n->b->g;
  int *mine = &c->axis[eini_fit_row(n, t)];
  if (*mine != 0) return *mine == axis + 1;
  *mine = axis + 1;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &g->stmt[u];
    for (int k = -1; k < s->noperand; k++) {
      if ((k < 0 ? s->out : s->operand[k]) != t) continue;
      const eini_map *m = eini_access(s, k);
      int index = eini_plain_row(m, axis);
      if (index < 0 || eini_fit_plain(s, m, g->tensor[t].shape, index) != axis ||
          (k < 0 && index >= s->nfree) || !eini_fit_mark_index(n, c, u, index)) {
        return 0;
      }
    }
  }
  return 1;
}

// The class of an index of statement u; 0 when it cannot be sliced.
static int eini_fit_class_of(const eini_fit_nest *n, int u, int index, eini_fit_class *c) {
  c->stmt = u;
  c->index = index;
  c->extent = n->b->g->stmt[u].index[index].extent;
  for (int k = 0; k < n->to - n->from; k++) c->col[k] = -1;
  memset(c->axis, 0, (size_t)(n->to - n->from) * sizeof *c->axis);
  memset(c->part, 0, (size_t)(n->to - n->from));
  memset(c->linear, 0, (size_t)(n->to - n->from));
  c->fold = EIN_FOLD_NONE;
  int good = eini_fit_mark_index(n, c, u, index);
  for (int k = 0; k < n->to - n->from; k++) good = good && !(c->linear[k] && c->col[k] >= 0);
  return good;
}

// How results of statement u are merged over the slices of the nest; EIN_FOLD_NONE: they are
// whole. *folded gets the loops, as bits. -1: loops would need different folds.
static int eini_fit_merge_fold(const eini_fit_nest *n, int u, unsigned *folded) {
  const eini_stmt *s = &n->b->g->stmt[u];
  int fold = EIN_FOLD_NONE;
  *folded = 0;
  for (int l = 0; l < n->nloop; l++) {
    const eini_fit_class *c = n->cls[l];
    int mine = c->linear[u - n->from] ? c->fold : EIN_FOLD_NONE;
    if (c->col[u - n->from] >= s->nfree) mine = s->fold;
    if (mine == EIN_FOLD_NONE) continue;
    if (fold != EIN_FOLD_NONE && fold != mine) return -1;
    fold = mine;
    *folded |= 1u << l;
  }
  return fold;
}

// Can the loops of a nest stand together? What is folded into states is computed once.
static int eini_fit_agree(const eini_fit_nest *n) {
  unsigned folded;
  for (int u = n->from; u < n->to; u++) {
    int fold = eini_fit_merge_fold(n, u, &folded);
    if (fold < 0) return 0;
    for (int l = 0; l < n->nloop && eini_fold_carries(fold); l++)
      if (n->cls[l]->col[u - n->from] < 0) return 0;
  }
  return 1;
}

static ein_status eini_fit_class_new(const eini_fit_nest *n, eini_arena *a, eini_fit_class *c) {
  c->col = EINI_NEW(a, int, n->to - n->from);
  c->axis = EINI_NEW(a, int, n->to - n->from);
  c->part = EINI_NEW(a, char, n->to - n->from);
  c->linear = EINI_NEW(a, char, n->to - n->from);
  return c->col == NULL || c->axis == NULL || c->part == NULL || c->linear == NULL
             ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The classes of a region, at most EINI_FIT_CLASSES: those of large extents.
static ein_status eini_fit_classes(const eini_fit_nest *n, eini_arena *a, eini_fit_class *list,
                                   int *count) {
  eini_fit_class c;
  *count = 0;
  EINI_TRY(eini_fit_class_new(n, a, &c));
  for (int u = n->from; u < n->to && n->b->plan->alias < 0; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int i = 0; i < s->nindex; i++) {
      int known = s->index[i].extent < 2, least = 0;
      for (int k = 0; k < *count; k++) known |= list[k].col[u - n->from] == i;
      if (known || !eini_fit_class_of(n, u, i, &c)) continue;
      if (*count < EINI_FIT_CLASSES) {
        list[(*count)++] = c;
        EINI_TRY(eini_fit_class_new(n, a, &c));
        continue;
      }
      for (int k = 1; k < *count; k++)
        if (list[k].extent < list[least].extent) least = k;
      if (list[least].extent >= c.extent) continue;
      eini_fit_class swap = list[least];
      list[least] = c;
      c = swap;
    }
  }
  return EIN_OK;
}

// Statements read in the region what was made wholly before it or wholly in it.
static int eini_fit_legal(const eini_fit_nest *n) {
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = 0; k < s->noperand; k++) {
      int t = s->operand[k];
      if (n->b->last[t] >= n->from && !eini_fit_made(n, t)) return 0;
    }
  }
  return 1;
}
