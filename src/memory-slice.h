// ================================================================================================
// >>memory-slice  plans of slices
// Takes regions; gives, for each, views of what it reads and writes outside, and one plan per shape
// of slices (whole blocks, and the shorter last ones). Partial results are merged by small plans.
// ================================================================================================

// A tensor outside of slices as they see it: shifted by step[l] bytes for each index of loop l.
typedef struct eini_fit_port {
  int tensor, sub;              // its number in the base, and in graphs of slices
  int64_t *coef;                // [rank * nloop] coordinates per index
  int64_t step[EINI_FIT_LOOPS];
} eini_fit_port;

// Partial results of statement stmt and where they are merged. Those that are states have a part
// for each scalar, into which slices fold: they need no memory of their own.
typedef struct eini_fit_part {
  int stmt, tensor, sub;
  int state;                    // its number; -1: they are values
  eini_folder *folder;          // of states, from the first of their parts
  ein_dtype type;               // of partial results
  int fold;                     // that merges them
  unsigned folded, absent;      // loops whose slices are merged, and that the statement lacks
  int own;                      // merged in memory of the region's, then stored by `store`
  int64_t *coef;
  int64_t step[EINI_FIT_LOOPS];
  const int64_t *stride;        // of where they are merged
  int64_t bytes, own_bytes, at, own_at;
  ein_plan *store;
} eini_fit_part;

// Plans for slices of one shape, and where their views start when all loops are at 0.
typedef struct eini_fit_slice {
  int64_t size[EINI_FIT_LOOPS];
  ein_plan *plan;               // NULL: the shape does not occur
  int64_t *base;                // per input, output, part: bytes from the tensor's first element
  ein_plan **merge;             // per part
} eini_fit_slice;

typedef struct eini_fit_group {
  eini_fit_choice c;
  int nin, nout, npart;
  int alias;                    // 1: the last input is the output itself
  eini_fit_port *in, *out;
  eini_fit_part *part;
  eini_fit_slice *slice;        // 1 << nloop; bit l: loop l is in its last, shorter block
  int64_t work, at;             // bytes of the largest workspace of its plans, and their place
} eini_fit_group;

// Everything a candidate is made of, in one arena.
typedef struct eini_fit_layout {
  eini_arena arena;
  ein_plan *whole;              // one plan for all, while it is searched for; or
  eini_fit_base base;           //   regions, whose graph a plan without tasks owns
  int nregion;
  eini_fit_group *region;
  int64_t *place;               // per tensor: bytes from the start of the workspace
  int widest_in, widest_out;    // of all regions
  int64_t workspace;
  eini_fit_guess guess;
} eini_fit_layout;

// What a plan within a budget has: the count of its memory, and the slices in place of its tasks.
typedef struct eini_budget {
  eini_cap cap;
  int sliced;
  eini_fit_layout f;
} eini_budget;

// What the functions below build.
typedef struct eini_fit_maker {
  const eini_fit_job *j;
  eini_fit_layout *f;
  eini_fit_group *r;
  eini_fit_nest n;
  eini_fit_slice *s;
  int *inner;                   // per tensor of the base: its number in the slice's graph
} eini_fit_maker;

static void eini_fit_layout_free(eini_fit_layout *f) {
  eini_plan_free(f->whole);
  for (int k = 0; k < f->nregion && f->region != NULL; k++) {
    eini_fit_group *r = &f->region[k];
    for (int v = 0; v < 1 << r->c.nloop && r->slice != NULL; v++) {
      eini_plan_free(r->slice[v].plan);
      for (int i = 0; i < r->npart && r->slice[v].merge != NULL; i++) {
        int shared = 0;
        for (int w = 0; w < v; w++)
          shared |= r->slice[w].merge != NULL && r->slice[w].merge[i] == r->slice[v].merge[i];
        if (!shared) eini_plan_free(r->slice[v].merge[i]);
      }
    }
    for (int i = 0; i < r->npart && r->part != NULL; i++) eini_plan_free(r->part[i].store);
  }
  eini_arena_free(&f->arena);
  f->whole = NULL;
  f->nregion = 0;
  f->region = NULL;
}

// ---- views ----

// Is access m of statement s ever made? Results of empty folds are written, too.
static int eini_fit_touches(const eini_stmt *s, const eini_map *m) {
  return !eini_stmt_empty(s, 0, m == &s->out_map ? s->nfree : s->nindex);
}

// How an access of statement u moves with the loops: coef[row * nloop + loop].
static void eini_fit_moves(const eini_fit_nest *n, int u, const eini_map *m, int64_t *coef) {
  int still = !eini_fit_touches(&n->b->g->stmt[u], m);  // its coefficients may be any numbers
  for (int r = 0; r < m->rows; r++) {
    for (int l = 0; l < n->nloop; l++) {
      int c = n->cls[l]->col[u - n->from];
      coef[r * n->nloop + l] = c < 0 || still ? 0 : eini_map_coef(m, r, c);
    }
  }
}

static void eini_fit_steps(const eini_fit_nest *n, const int64_t *coef, int rank,
                           const int64_t *stride, ein_dtype dtype, int64_t *step) {
  for (int l = 0; l < n->nloop; l++) {
    step[l] = 0;
    for (int r = 0; r < rank; r++)
      step[l] += coef[r * n->nloop + l] * stride[r] * (int64_t)ein_dtype_size(dtype);
  }
}

// Finds or adds the view of tensor t that moves like access m of statement u. *id is its number.
static ein_status eini_fit_port_of(eini_fit_maker *w, eini_fit_port *list, int *count, int u, int t,
                                   const eini_map *m, int *id) {
  const eini_tensor *x = &w->f->base.g->tensor[t];
  int64_t cells = (int64_t)x->rank * w->n.nloop;
  int64_t *coef = EINI_NEW(&w->f->arena, int64_t, cells);
  if (coef == NULL) return EIN_ERR_NO_MEMORY;
  eini_fit_moves(&w->n, u, m, coef);
  for (int k = 0; k < *count; k++) {
    *id = k;
    if (list[k].tensor == t &&
        (cells == 0 || memcmp(list[k].coef, coef, (size_t)cells * sizeof *coef) == 0)) {
      return EIN_OK;
    }
  }
  eini_fit_port *p = &list[*id = (*count)++];
  p->tensor = t;
  p->coef = coef;
  eini_fit_steps(&w->n, coef, x->rank, w->f->base.stride[t], x->dtype, p->step);
  return EIN_OK;
}

// The part that statement u makes; -1: its results are whole.
static int eini_fit_part_of(const eini_fit_group *r, int u) {
  for (int i = 0; i < r->npart; i++)
    if (r->part[i].stmt == u) return i;
  return -1;
}

static ein_status eini_fit_part_add(eini_fit_maker *w, int u, int fold, unsigned folded,
                                    unsigned absent, eini_folder *f, int state) {
  const eini_stmt *s = &w->f->base.g->stmt[u];
  const eini_tensor *x = &w->f->base.g->tensor[s->out];
  eini_arena *a = &w->f->arena;
  eini_fit_part *p = &w->r->part[w->r->npart++];
  int64_t count = 0;
  p->stmt = u;
  p->tensor = s->out;
  p->state = state;
  p->folder = state == 0 ? f : NULL;
  p->type = state < 0 ? ein_dtype_compute(s->type) : eini_state_dtype(f, state);
  p->fold = fold;
  p->folded = folded;
  p->absent = absent;
  p->own = state >= 0 || p->type != x->dtype;
  p->stride = w->f->base.stride[s->out];
  p->coef = EINI_NEW(a, int64_t, (int64_t)x->rank * w->n.nloop);
  if (p->coef == NULL) return EIN_ERR_NO_MEMORY;
  if (p->own) {
    EINI_TRY(eini_dense_strides(a, x->rank, x->shape, NULL, &p->stride, &count));
    p->own_bytes = eini_fit_padded(count, p->type);
    if (p->own_bytes < 0) return EIN_ERR_TOO_LARGE;
  }
  eini_fit_moves(&w->n, u, &s->out_map, p->coef);
  eini_fit_steps(&w->n, p->coef, x->rank, p->stride, p->type, p->step);
  return EIN_OK;
}

// The parts of a statement that is folded over slices.
static ein_status eini_fit_parts_add(eini_fit_maker *w, int u, int fold, unsigned folded,
                                     unsigned absent) {
  if (!eini_fold_carries(fold)) return eini_fit_part_add(w, u, fold, folded, absent, NULL, -1);
  eini_folder *f = EINI_NEW(&w->f->arena, eini_folder, 1);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_states_folder(w->f->base.g, &w->f->base.g->stmt[u], f));
  for (int k = 0; k < f->nstate; k++)
    EINI_TRY(eini_fit_part_add(w, u, fold, folded, absent, f, k));
  return EIN_OK;
}

// What the region reads and writes outside of its slices.
static ein_status eini_fit_ports(eini_fit_maker *w) {
  const eini_fit_nest *n = &w->n;
  eini_fit_group *r = w->r;
  int reads = 0, id, len = n->to - n->from;
  for (int u = n->from; u < n->to; u++) reads += n->b->g->stmt[u].noperand;
  r->in = EINI_NEW(&w->f->arena, eini_fit_port, reads);
  r->out = EINI_NEW(&w->f->arena, eini_fit_port, len);
  r->part = EINI_NEW(&w->f->arena, eini_fit_part, 4 * (int64_t)len);  // a state's scalars
  if (r->in == NULL || r->out == NULL || r->part == NULL) return EIN_ERR_NO_MEMORY;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    unsigned folded, absent = 0;
    int fold = eini_fit_merge_fold(n, u, &folded);
    for (int l = 0; l < n->nloop; l++)
      if (n->cls[l]->col[u - n->from] < 0 && !(folded >> l & 1)) absent |= 1u << l;
    for (int k = 0; k < s->noperand; k++) {
      if (!eini_fit_made(n, s->operand[k]))
        EINI_TRY(eini_fit_port_of(w, r->in, &r->nin, u, s->operand[k], &s->proj[k], &id));
    }
    if (eini_fit_inner(n, s->out)) continue;
    if (fold != EIN_FOLD_NONE) EINI_TRY(eini_fit_parts_add(w, u, fold, folded, absent));
    else
      EINI_TRY(eini_fit_port_of(w, r->out, &r->nout, u, s->out, &s->out_map, &id));
  }
  for (int k = 0; k < r->nin; k++) {  // C that is the output: the last input of its plan
    if (r->in[k].tensor != n->b->plan->alias) continue;
    eini_fit_port last = r->in[r->nin - 1];
    r->in[r->nin - 1] = r->in[k];
    r->in[k] = last;
    r->alias = 1;
    break;
  }
  if (r->nin > w->f->widest_in) w->f->widest_in = r->nin;
  if (r->npart > 0 && w->f->widest_in < 2) w->f->widest_in = 2;  // what a merge reads
  if (r->nout + r->npart > w->f->widest_out) w->f->widest_out = r->nout + r->npart;
  return EIN_OK;
}

// Extents of statement u's indices in the slice.
static ein_status eini_fit_extents(const eini_fit_maker *w, int u, eini_arena *a, int64_t **e) {
  const eini_stmt *s = &w->n.b->g->stmt[u];
  *e = EINI_NEW(a, int64_t, s->nindex);
  if (*e == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) (*e)[i] = s->index[i].extent;
  for (int l = 0; l < w->n.nloop; l++) {
    int c = w->n.cls[l]->col[u - w->n.from];
    if (c >= 0) (*e)[c] = w->s->size[l];
  }
  return EIN_OK;
}

// Widens rows [lo, hi] of a view by what access m reaches in the slice.
static ein_status eini_fit_reach(const eini_fit_maker *w, int u, const eini_map *m, eini_arena *a,
                                 int64_t *lo, int64_t *hi) {
  int64_t *e, x, y;
  if (!eini_fit_touches(&w->n.b->g->stmt[u], m)) return EIN_OK;
  EINI_TRY(eini_fit_extents(w, u, a, &e));
  for (int i = 0; i < m->cols; i++) e[i] = eini_max64(e[i], 1);  // folded ones do not matter
  for (int r = 0; r < m->rows; r++) {
    EINI_TRY(eini_map_row_range(m, r, e, &x, &y));
    lo[r] = eini_min64(lo[r], x);
    hi[r] = eini_max64(hi[r], y);
  }
  return EIN_OK;
}

// The box a view needs in a slice: lo[r] is its first coordinate, shape[r] its extent. Axes that
// do not move are seen whole. kind 0: reads of in[id], 1: writes to out[id], 2: part[id].
static ein_status eini_fit_box(const eini_fit_maker *w, int kind, int id, eini_arena *a,
                               int64_t **low, int64_t **shape) {
  const eini_fit_nest *n = &w->n;
  const eini_fit_group *r = w->r;
  const int64_t *coef = kind == 0 ? r->in[id].coef : kind == 1 ? r->out[id].coef : r->part[id].coef;
  int t = kind == 0 ? r->in[id].tensor : kind == 1 ? r->out[id].tensor : r->part[id].tensor;
  const eini_tensor *x = &n->b->g->tensor[t];
  int64_t *lo = EINI_NEW(a, int64_t, x->rank), *hi = EINI_NEW(a, int64_t, x->rank);
  int64_t *mine = EINI_NEW(a, int64_t, (int64_t)x->rank * n->nloop + 1);
  if (lo == NULL || hi == NULL || mine == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < x->rank; i++) {
    lo[i] = INT64_MAX;
    hi[i] = -1;
  }
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = kind == 0 ? 0 : -1; k < (kind == 0 ? s->noperand : 0); k++) {
      const eini_map *m = k < 0 ? &s->out_map : &s->proj[k];
      if ((k < 0 ? s->out : s->operand[k]) != t) continue;
      eini_fit_moves(n, u, m, mine);
      if (memcmp(mine, coef, (size_t)x->rank * (size_t)n->nloop * sizeof *coef) == 0)
        EINI_TRY(eini_fit_reach(w, u, m, a, lo, hi));
    }
  }
  for (int i = 0; i < x->rank; i++) {
    int moves = 0;
    for (int l = 0; l < n->nloop; l++) moves |= coef[i * n->nloop + l] != 0;
    if (!moves || hi[i] < 0) lo[i] = 0;
    hi[i] = moves ? hi[i] - lo[i] + 1 : x->shape[i];
  }
  *low = lo;
  *shape = hi;
  return EIN_OK;
}
