// ================================================================================================
// >>memory-slice  plans of slices
// Takes regions; gives, for each, views of what it reads and writes outside, and one plan per shape
// of slices (whole blocks, and the shorter last ones). Partial results are merged by small plans.
// ================================================================================================

// A tensor as slices see it: shifted by step[l] bytes for each index of loop l.
typedef struct eini_fit_view {
  int tensor, sub;              // its number in the base, and in graphs of slices
  ein_dtype type;
  const int64_t *stride;
  int64_t *coef;                // [rank * nloop] coordinates per index
  int64_t step[EINI_FIT_LOOPS];
} eini_fit_view;

// Partial results of statement stmt and where they are merged. Those that are states have a part
// for each scalar, into which slices fold: they need no memory of their own.
typedef struct eini_fit_part {
  eini_fit_view view;           // of where they are merged
  int stmt;
  int state;                    // its number; -1: they are values
  eini_folder *folder;          // of states, from the first of their parts
  int fold;                     // that merges them
  unsigned folded, absent;      // loops whose slices are merged, and that the statement lacks
  int outer;                    // loops outside all that are folded
  int own;                      // merged in memory of the region's, of one block of these loops,
  int64_t to[EINI_FIT_LOOPS];   //   then stored, so many bytes further for each of their indices
  int64_t count;                // its elements
  int64_t bytes, own_bytes, at, own_at;
} eini_fit_part;

// Plans for slices of one shape, and where their views start when all loops are at 0.
typedef struct eini_fit_slice {
  int64_t size[EINI_FIT_LOOPS];
  ein_plan *plan;               // NULL: the shape does not occur
  int64_t *base;                // per input, output, part: bytes from the tensor's first element
  int64_t *merge, *store;       // per part: numbers of plans
  int64_t **len, *to;           // of what is stored: its extents, where it starts in the tensor
} eini_fit_slice;

typedef struct eini_fit_sliced {
  eini_fit_choice c;
  int nin, nout, npart;
  int alias;                    // 1: the last input is the output itself
  int ahead;                    // 1: its slices have room for two of a provider's at a time
  eini_fit_view *in, *out;
  eini_fit_part *part;
  eini_fit_slice *slice;        // 1 << nloop; bit l: loop l is in its last, shorter block
  int64_t work, at;             // bytes of the largest workspace of its plans, and their place
  double moves;                 // bytes of what is not its own that its slices read and write
} eini_fit_sliced;

// Everything a candidate is made of, in one arena.
typedef struct eini_fit_layout {
  eini_arena arena;
  ein_plan *whole;              // one plan for all, while it is searched for; or
  eini_fit_base base;           //   regions, whose graph a plan without tasks owns
  int nregion;
  eini_fit_sliced *region;
  eini_block_plans *each;       // that merge and store parts; NULL: none do
  int64_t *place;               // per tensor: bytes from the start of the workspace
  int widest_in, widest_out;    // of all regions
  int64_t workspace, away;      // bytes; away: of a provider's own memory, see ein_memory
  double seconds;               // predicted
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
  eini_fit_sliced *r;
  eini_fit_nest n;
  eini_fit_slice *s;
  int *inner;                   // per tensor of the base: its number in the slice's graph
  char *inside;                 // per tensor: a region's own; see eini_fit_outside
  int64_t *coef, *from, *to;    // of the access at hand: how it moves, its hull
  int64_t **low, **shape;       // of its views
} eini_fit_maker;

static void eini_fit_layout_free(eini_fit_layout *f) {
  eini_plan_free(f->whole);
  for (int k = 0; k < f->nregion && f->region != NULL; k++) {
    eini_fit_sliced *r = &f->region[k];
    for (int v = 0; v < 1 << r->c.nloop && r->slice != NULL; v++)
      eini_plan_free(r->slice[v].plan);
  }
  if (f->each != NULL) eini_block_plans_end(f->each);
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

// The number among n views of tensor t that moves like access m of statement u; -1: none does.
static int eini_fit_find(const eini_fit_maker *w, const eini_fit_view *list, int n, int u, int t,
                         const eini_map *m) {
  const size_t bytes = (size_t)m->rows * (size_t)w->n.nloop * sizeof *w->coef;
  eini_fit_moves(&w->n, u, m, w->coef);
  for (int k = 0; k < n; k++)
    if (list[k].tensor == t && memcmp(list[k].coef, w->coef, bytes) == 0) return k;
  return -1;
}

// Fills the view of tensor t that moves like access m of statement u; from loop `first` on it moves
// by strides.
static ein_status eini_fit_view_fill(eini_fit_maker *w, eini_fit_view *p, int u, int t,
                                     const eini_map *m, int first) {
  const int64_t size = (int64_t)ein_dtype_size(p->type);
  p->tensor = t;
  p->coef = EINI_NEW(&w->f->arena, int64_t, (int64_t)m->rows * w->n.nloop);
  if (p->coef == NULL) return EIN_ERR_NO_MEMORY;
  eini_fit_moves(&w->n, u, m, p->coef);
  for (int l = first; l < w->n.nloop; l++)
    for (int r = 0; r < m->rows; r++)
      p->step[l] += p->coef[r * w->n.nloop + l] * p->stride[r] * size;
  return EIN_OK;
}

// Adds the view unless it is there.
static ein_status eini_fit_view_add(eini_fit_maker *w, eini_fit_view *list, int *count, int u,
                                    int t, const eini_map *m) {
  if (eini_fit_find(w, list, *count, u, t, m) >= 0) return EIN_OK;
  eini_fit_view *p = &list[(*count)++];
  p->type = w->f->base.g->tensor[t].dtype;
  p->stride = w->f->base.stride[t];
  return eini_fit_view_fill(w, p, u, t, m, 0);
}

// The box of the results of statement u in blocks of so many loops: its first coordinates and its
// extents, in *low and *shape.
static ein_status eini_fit_result_box(const eini_fit_maker *w, int u, int nloop,
                                      const int64_t *size, eini_arena *a, int64_t **low,
                                      int64_t **shape) {
  eini_walk walk;
  const eini_stmt_block block = eini_fit_walk(&w->n, u, size, &walk);
  const eini_stmt *s = &w->n.b->g->stmt[u];
  walk.nloop = nloop;
  EINI_TRY(eini_block_hull_new(a, s, &block, -1, low, shape));
  if (!eini_fit_touches(s, &s->out_map))  // its offsets may be any numbers
    memset(*low, 0, (size_t)s->out_map.rows * sizeof **low);
  return EIN_OK;
}

// The part that statement u makes; -1: its results are whole.
static int eini_fit_part_of(const eini_fit_sliced *r, int u) {
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
  p->stmt = u;
  p->state = state;
  p->folder = state == 0 ? f : NULL;
  p->view.type = state < 0 ? ein_dtype_compute(s->type) : eini_state_dtype(f, state);
  p->fold = fold;
  p->folded = folded;
  p->absent = absent;
  p->own = state >= 0 || p->view.type != x->dtype;
  p->view.stride = w->f->base.stride[s->out];
  while (p->own && !(folded >> p->outer & 1)) p->outer++;
  if (p->own) {
    int64_t *low, *shape;
    EINI_TRY(eini_fit_result_box(w, u, p->outer, w->n.block, a, &low, &shape));
    EINI_TRY(eini_dense_strides(a, x->rank, shape, NULL, &p->view.stride, &p->count));
    p->own_bytes = eini_fit_padded(p->count, p->view.type);
    if (p->own_bytes < 0) return EIN_ERR_TOO_LARGE;
  }
  EINI_TRY(eini_fit_view_fill(w, &p->view, u, s->out, &s->out_map, p->outer));
  for (int l = 0; l < p->outer; l++)
    for (int r = 0; r < x->rank; r++)
      p->to[l] += p->view.coef[r * w->n.nloop + l] * w->f->base.stride[s->out][r] *
                  (int64_t)ein_dtype_size(x->dtype);
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
static ein_status eini_fit_views_add(eini_fit_maker *w) {
  const eini_fit_nest *n = &w->n;
  eini_fit_sliced *r = w->r;
  int reads = 0, len = n->to - n->from;
  for (int u = n->from; u < n->to; u++) reads += n->b->g->stmt[u].noperand;
  r->in = EINI_NEW(&w->f->arena, eini_fit_view, reads);
  r->out = EINI_NEW(&w->f->arena, eini_fit_view, len);
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
        EINI_TRY(eini_fit_view_add(w, r->in, &r->nin, u, s->operand[k], &s->proj[k]));
    }
    if (eini_fit_inner(n, s->out)) continue;
    if (fold != EIN_FOLD_NONE) EINI_TRY(eini_fit_parts_add(w, u, fold, folded, absent));
    else EINI_TRY(eini_fit_view_add(w, r->out, &r->nout, u, s->out, &s->out_map));
  }
  for (int k = 0; k < r->nin; k++) {  // C that is the output: the last input of its plan
    if (r->in[k].tensor != n->b->plan->alias) continue;
    eini_fit_view last = r->in[r->nin - 1];
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

// ---- the views of a slice ----

static int eini_fit_views(const eini_fit_sliced *r) { return r->nin + r->nout + r->npart; }

// View i: of inputs, outputs, parts, in this order.
static eini_fit_view *eini_fit_nth_view(const eini_fit_sliced *r, int i) {
  if (i < r->nin) return &r->in[i];
  i -= r->nin;
  return i < r->nout ? &r->out[i] : &r->part[i - r->nout].view;
}

// The number of the view that statement u reads operand k through, or writes its result (k < 0);
// -1: the tensor is inside.
static int eini_fit_view_of(const eini_fit_maker *w, int u, int k) {
  const eini_fit_sliced *r = w->r;
  const eini_stmt *s = &w->n.b->g->stmt[u];
  if (k >= 0) {
    if (eini_fit_made(&w->n, s->operand[k])) return -1;
    return eini_fit_find(w, r->in, r->nin, u, s->operand[k], &s->proj[k]);
  }
  int part = eini_fit_part_of(r, u);
  if (part >= 0) return r->nin + r->nout + part;
  part = eini_fit_find(w, r->out, r->nout, u, s->out, &s->out_map);
  return part < 0 ? -1 : r->nin + part;
}

// The boxes that the views need in the slice at hand: the hulls of what its statements access.
static ein_status eini_fit_boxes(eini_fit_maker *w, eini_arena *a) {
  const eini_fit_nest *n = &w->n;
  const int views = eini_fit_views(w->r);
  w->low = EINI_NEW(a, int64_t *, views);
  w->shape = EINI_NEW(a, int64_t *, views);
  if (w->low == NULL || w->shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < views; i++) {
    const int rank = n->b->g->tensor[eini_fit_nth_view(w->r, i)->tensor].rank;
    w->low[i] = EINI_NEW(a, int64_t, rank);
    w->shape[i] = EINI_NEW(a, int64_t, rank);
    if (w->low[i] == NULL || w->shape[i] == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    eini_walk walk;
    const eini_stmt_block block = eini_fit_walk(n, u, w->s->size, &walk);
    for (int k = -1; k < s->noperand; k++) {
      const eini_map *m = eini_access(s, k);
      int i = eini_fit_view_of(w, u, k);
      if (i < 0 || !eini_fit_touches(s, m)) continue;
      eini_block_hull(s, &block, k, w->from, w->to);
      do {  // all scalars of a state
        for (int r = 0; r < m->rows; r++) {
          int64_t *low = &w->low[i][r], *shape = &w->shape[i][r], end = *low + *shape;
          *low = *shape == 0 ? w->from[r] : eini_min64(*low, w->from[r]);
          *shape = eini_max64(end, w->to[r]) - *low;
        }
      } while (k < 0 && ++i < views && i > w->r->nin + w->r->nout &&
               w->r->part[i - w->r->nin - w->r->nout].state > 0);
    }
  }
  return EIN_OK;
}
