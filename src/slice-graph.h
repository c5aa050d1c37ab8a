// ================================================================================================
// >>slice-graph  the graph of a slice
// Takes the views of a region's slice; gives its statements as a graph, its plans and merges.
// ================================================================================================

// Adds a tensor of a base to the slice's graph; stride: its layout, or NULL.
static ein_status eini_fit_tensor(eini_fit_maker *w, ein_graph *g, int t, ein_role role,
                                  ein_dtype dtype, const int64_t *shape, const int64_t *stride,
                                  const ein_ztensor **view, int *id) {
  const eini_tensor *x = &w->n.b->g->tensor[t];
  EINI_TRY(eini_graph_add_tensor(g, x->name, (int64_t)strlen(x->name), role, dtype, x->rank, shape,
                                 id));
  if (stride == NULL) return EIN_OK;
  ein_ztensor *v = EINI_NEW(&g->arena, ein_ztensor, 1);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  v->dtype = dtype;
  v->rank = x->rank;
  v->shape = g->tensor[*id].shape;
  v->strides = stride;
  view[*id] = v;
  return EIN_OK;
}

// Bytes from element 0 of a layout to the one at x, beside the one at `less` (NULL: 0).
static int64_t eini_fit_shift(int rank, const int64_t *x, const int64_t *less,
                              const int64_t *stride, ein_dtype dtype) {
  int64_t sum = 0;
  for (int r = 0; r < rank; r++) sum += (x[r] - (less == NULL ? 0 : less[r])) * stride[r];
  return sum * (int64_t)ein_dtype_size(dtype);
}

// What is stored of part i after slices of the shape at hand, and where they lie in its memory.
static ein_status eini_fit_own_box(eini_fit_maker *w, int i) {
  const eini_fit_part *p = &w->r->part[i];
  const eini_fit_base *b = w->n.b;
  const int rank = b->g->tensor[p->view.tensor].rank, view = w->r->nin + w->r->nout + i;
  int64_t *low;
  if (!p->own) return EIN_OK;
  EINI_TRY(eini_fit_result_box(w, p->stmt, p->outer, w->s->size, &w->f->arena, &low,
                               &w->s->len[i]));
  w->s->to[i] = eini_fit_shift(rank, low, NULL, b->stride[p->view.tensor],
                               b->g->tensor[p->view.tensor].dtype);
  w->s->base[view] = eini_fit_shift(rank, w->low[view], low, p->view.stride, p->view.type);
  return EIN_OK;
}

// Inputs, outputs, parts and inner tensors of the slice, in this order.
static ein_status eini_fit_tensors(eini_fit_maker *w, ein_graph *g, const ein_ztensor **view) {
  const eini_fit_base *b = w->n.b;
  eini_fit_sliced *r = w->r;
  for (int i = 0; i < eini_fit_views(r); i++) {
    eini_fit_view *p = eini_fit_nth_view(r, i);
    const int rank = b->g->tensor[p->tensor].rank;
    eini_fit_part *part = i < r->nin + r->nout ? NULL : &r->part[i - r->nin - r->nout];
    int64_t count = 1;
    w->s->base[i] = eini_fit_shift(rank, w->low[i], NULL, p->stride, p->type);
    EINI_TRY(eini_fit_tensor(w, g, p->tensor, i < r->nin ? EIN_ROLE_INPUT : EIN_ROLE_OUTPUT,
                             p->type, w->shape[i],
                             part != NULL && part->state < 0 ? NULL : p->stride, view, &p->sub));
    if (i >= r->nin && part == NULL) w->inner[p->tensor] = p->sub;
    if (part == NULL) continue;
    EINI_TRY(eini_fit_own_box(w, i - r->nin - r->nout));
    for (int k = 0; k < rank; k++) count *= w->shape[i][k];
    if (part->state < 0) part->bytes = eini_max64(part->bytes, eini_fit_padded(count, p->type));
  }
  for (int u = w->n.from; u < w->n.to; u++) {
    int t = b->g->stmt[u].out;
    const eini_tensor *x = &b->g->tensor[t];
    if (b->first[t] != u || !eini_fit_inner(&w->n, t)) continue;
    int64_t *shape = EINI_NEW(&g->arena, int64_t, x->rank);
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < x->rank; k++) {
      shape[k] = x->shape[k];
      for (int l = 0; l < w->n.nloop; l++)
        if (w->n.cls[l]->axis[u - w->n.from] == k + 1) shape[k] = w->s->size[l];
    }
    EINI_TRY(eini_fit_tensor(w, g, t, EIN_ROLE_TEMP, x->dtype, shape, NULL, view, &w->inner[t]));
  }
  return EIN_OK;
}

// Sliced indices count from the slice's origin, a param; and so do positions.
static ein_status eini_fit_stmt(eini_fit_maker *w, ein_graph *g, int u) {
  const eini_stmt *from = &w->n.b->g->stmt[u];
  const int part = eini_fit_part_of(w->r, u), views = eini_fit_views(w->r);
  eini_walk walk;
  const eini_stmt_block block = eini_fit_walk(&w->n, u, w->s->size, &walk);
  int *operand = EINI_NEW(&g->arena, int, from->noperand);
  int *param = EINI_NEW(&g->arena, int, from->nindex);
  int64_t **low = EINI_NEW(&g->arena, int64_t *, from->noperand + 1);
  eini_block_view v;
  if (operand == NULL || param == NULL || low == NULL) return EIN_ERR_NO_MEMORY;
  memset(&v, 0, sizeof v);
  for (int k = 0; k <= from->noperand; k++) {
    int i = eini_fit_view_of(w, u, k < from->noperand ? k : -1);
    int id = i >= 0 ? eini_fit_nth_view(w->r, i)->sub
                    : w->inner[k < from->noperand ? from->operand[k] : from->out];
    if (id < 0) return EIN_ERR_INTERNAL;
    if (i >= 0 && i < views) low[k] = w->low[i];
    if (k < from->noperand) operand[k] = id;
    else v.out = id;
  }
  for (int i = 0; i < from->nindex; i++) {
    param[i] = -1;
    for (int l = 0; l < w->n.nloop; l++)
      if (w->n.cls[l]->col[u - w->n.from] == i) param[i] = (int)w->n.b->g->nparam + l;
  }
  if (part >= 0 && w->r->part[part].state == 0) v.nstate = w->r->part[part].folder->nstate;
  for (int k = 0; k < v.nstate; k++) v.state[k] = w->r->part[part + k].view.sub;
  v.s = from;
  v.block = &block;
  v.origin = param;
  v.operand = operand;
  v.low = (const int64_t *const *)low;
  EINI_TRY(eini_block_stmt(g, &v));
  const eini_stmt *s = &g->stmt[g->nstmt - 1];
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  for (int k = -1; k < s->noperand; k++) {
    const int64_t *shape = g->tensor[k < 0 ? v.out : operand[k]].shape;
    eini_block_hull(s, NULL, k, w->from, w->to);
    for (int r = 0; r < eini_access(s, k)->rows; r++)
      if (w->from[r] < 0 || w->to[r] > shape[r]) return EIN_ERR_BOUNDS;
  }
  return EIN_OK;
}

// ---- plans ----

static ein_status eini_fit_slice_fill(eini_fit_maker *w, ein_plan *p) {
  const ein_graph *from = w->n.b->g;
  ein_graph *g = p->graph;
  static const ein_scalar none = {0, 0, 0};
  int id;
  int64_t most = eini_fit_views(w->r) + (int64_t)(w->n.to - w->n.from);
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, most);
  if (view == NULL) return EIN_ERR_NO_MEMORY;
  g->ordered = from->ordered;
  EINI_TRY(eini_graph_copy_names(g, from));
  for (int l = 0; l < w->n.nloop; l++)
    EINI_TRY(eini_graph_add_param(g, "origin", 6, EIN_I64, none, &id));
  EINI_TRY(eini_fit_boxes(w, &g->arena));
  EINI_TRY(eini_fit_tensors(w, g, view));
  for (int u = w->n.from; u < w->n.to; u++) EINI_TRY(eini_fit_stmt(w, g, u));
  if (w->r->alias) p->alias = w->r->in[w->r->nin - 1].sub;
  p->inner = w->n.to - w->n.from < from->nstmt;
  p->slices = w->r->npart > 0 ? 1 : 0;
  for (int l = 0; l < w->n.nloop && w->r->npart > 0; l++)
    p->slices *= (double)eini_fit_slices(w->r->c.extent[l], w->r->c.block[l]);
  for (int k = 0; k < w->r->npart; k++) {
    const double unit = eini_half_ulp(from->tensor[w->r->part[k].view.tensor].dtype);
    if (unit > p->slice_unit) p->slice_unit = unit;
  }
  return eini_plan_build(p, 0, NULL, view);
}

static ein_status eini_fit_slice_plan(eini_fit_maker *w) {
  ein_plan *p = NULL;
  eini_arena *a = &w->f->arena;
  w->s->base = EINI_NEW(a, int64_t, eini_fit_views(w->r) + 3 * (int64_t)w->r->npart);
  w->s->len = EINI_NEW(a, int64_t *, w->r->npart);
  if (w->s->base == NULL || w->s->len == NULL) return EIN_ERR_NO_MEMORY;
  w->s->to = w->s->base + eini_fit_views(w->r);
  w->s->merge = w->s->to + w->r->npart;
  w->s->store = w->s->merge + w->r->npart;
  EINI_TRY(eini_plan_new(w->j->ctx, &p));
  w->s->plan = p;
  EINI_TRY(eini_fit_slice_fill(w, p));
  w->r->work = eini_max64(w->r->work, (int64_t)p->info.workspace_bytes);
  const ein_memory *memory = p->away == NULL ? NULL : p->away->memory;
  const int ahead = w->j->ahead && w->r->npart == 0 && !w->r->alias && memory != NULL &&
                    memory->later_fn != NULL;
  w->r->ahead = ahead;
  w->f->away = eini_max64(w->f->away, (1 + ahead) * (int64_t)p->away_bytes);
  return eini_plan_alone(eini_diag_of(w->j->ctx), p);
}

// A plan that merges partial results (fold EIN_FOLD_NONE: stores them), all of a shape. The first
// operand has layout `from`, the output `stride`, the other none. *id: its number.
static ein_status eini_fit_each(eini_fit_maker *w, int rank, const int64_t *shape, int fold,
                                ein_dtype type, ein_dtype to, const int64_t *from,
                                const int64_t *stride, int64_t *id) {
  eini_block_plans *l = w->f->each;
  const eini_merge_side left = {type, rank, shape, from, NULL, NULL, 0};
  const eini_merge_side right = {type, rank, shape, NULL, NULL, NULL, 0};
  const eini_merge_side result = {to, rank, shape, stride, NULL, NULL, 0};
  const eini_block_merge x = {fold, fold != EIN_FOLD_NONE, type, rank, shape, left, right, result};
  eini_arena scratch;
  if (l == NULL) l = w->f->each = EINI_NEW(&w->f->arena, eini_block_plans, 1);
  if (l == NULL) return EIN_ERR_NO_MEMORY;
  l->a = &w->f->arena;
  l->ctx = w->j->ctx;
  eini_arena_init(&scratch, &w->j->ctx->al);
  int64_t *key = EINI_NEW(&scratch, int64_t, 3 * (int64_t)rank + 3), n = 3;
  for (int k = 0; k < rank && key != NULL; k++, n += 3)
    key[n] = shape[k], key[n + 1] = from[k], key[n + 2] = stride[k];
  if (key != NULL) key[0] = fold, key[1] = type, key[2] = to;
  ein_status st = key == NULL ? EIN_ERR_NO_MEMORY : eini_block_merge_plan(l, &x, key, n, id);
  eini_arena_free(&scratch);
  if (st != EIN_OK) return st;
  w->r->work = eini_max64(w->r->work, (int64_t)l->plan[*id]->info.workspace_bytes);
  w->f->away = eini_max64(w->f->away, (int64_t)l->plan[*id]->away_bytes);
  return EIN_OK;
}

// Plans that merge and store the parts of the slice at hand.
static ein_status eini_fit_merges(eini_fit_maker *w) {
  eini_fit_slice *s = w->s;
  for (int i = 0; i < w->r->npart; i++) {
    eini_fit_part *p = &w->r->part[i];
    const eini_tensor *x = &s->plan->graph->tensor[p->view.sub];
    const eini_tensor *y = &w->n.b->g->tensor[p->view.tensor];
    if (p->state >= 0) continue;
    EINI_TRY(eini_fit_each(w, x->rank, x->shape, p->fold, p->view.type, p->view.type,
                           p->view.stride, p->view.stride, &s->merge[i]));
    if (p->own)
      EINI_TRY(eini_fit_each(w, y->rank, s->len[i], EIN_FOLD_NONE, p->view.type, y->dtype,
                             p->view.stride, w->n.b->stride[p->view.tensor], &s->store[i]));
  }
  return EIN_OK;
}

// Bytes of tensors that are not the region's own that its slices read and write. inside: per
// tensor, those of the regions so far; no other region reads them.
static double eini_fit_outside(const eini_fit_nest *n, char *inside) {
  const ein_graph *g = n->b->g;
  double all = 0, some = 0;  // as if all came from memory, as if what is inside came from a cache
  for (int u = n->from; u < n->to; u++) {
    eini_walk w;
    const eini_stmt_block walk = eini_fit_walk(n, u, NULL, &w);
    inside[g->stmt[u].out] = (char)eini_fit_inner(n, g->stmt[u].out);
    all += eini_cost_of(g, &g->stmt[u], NULL, &walk, NULL, NULL, NULL).traffic;
    some += eini_cost_of(g, &g->stmt[u], NULL, &walk, NULL, inside, NULL).traffic;
  }
  return fmax(0, (some - EINI_CACHED * all) / (1 - EINI_CACHED));
}

static ein_status eini_fit_sliced_make(eini_fit_maker *w, const eini_fit_choice *c) {
  eini_arena *a = &w->f->arena;
  eini_fit_sliced *r = w->r;
  eini_fit_class *cls = EINI_NEW(a, eini_fit_class, c->nloop);
  if (cls == NULL) return EIN_ERR_NO_MEMORY;
  r->c = *c;
  r->slice = EINI_NEW(a, eini_fit_slice, 1 << c->nloop);
  if (r->slice == NULL) return EIN_ERR_NO_MEMORY;
  memset(&w->n, 0, sizeof w->n);
  w->n.b = &w->f->base;
  w->n.from = c->from;
  w->n.to = c->to;
  w->n.nloop = c->nloop;
  for (int l = 0; l < c->nloop; l++) {
    EINI_TRY(eini_fit_class_new(&w->n, a, &cls[l]));
    if (!eini_fit_class_of(&w->n, c->stmt[l], c->index[l], &cls[l])) return EIN_ERR_INTERNAL;
    w->n.cls[l] = &cls[l];
    w->n.block[l] = c->block[l];
  }
  r->moves = eini_fit_outside(&w->n, w->inside);
  EINI_TRY(eini_fit_views_add(w));
  for (int v = 0; v < 1 << c->nloop; v++) {
    int there = 1;
    w->s = &r->slice[v];
    for (int l = 0; l < c->nloop; l++) {
      int64_t rest = c->extent[l] % c->block[l];
      w->s->size[l] = v >> l & 1 ? rest : c->block[l];
      there = there && w->s->size[l] > 0;
    }
    if (!there) continue;
    EINI_TRY(eini_fit_slice_plan(w));
    EINI_TRY(eini_fit_merges(w));
  }
  return EIN_OK;
}

// ---- the workspace ----

static eini_item eini_fit_item(int from, int to, int64_t bytes, int64_t *at) {
  eini_item x;
  x.from = from;
  x.to = to;
  x.bytes = (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  x.at = at;
  return x;
}

// Bytes of the tables a run needs: addresses of tensors, inputs and outputs of a slice, params.
static int64_t eini_fit_head(const eini_fit_layout *f) {
  int64_t pointers = f->base.g->ntensor + f->widest_in + f->widest_out;
  int64_t bytes = pointers * (int64_t)sizeof(char *) +
                  (f->base.g->nparam + EINI_FIT_LOOPS) * (int64_t)sizeof(ein_scalar);
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

static ein_status eini_fit_workspace_plan(eini_fit_layout *f) {
  const eini_fit_base *b = &f->base;
  eini_arena scratch;
  // Of a statement folded over slices up to four parts, each with its memory and its result's.
  int64_t room = b->g->ntensor + f->nregion + 8 * b->g->nstmt;
  int n = 0;
  eini_arena_init(&scratch, &f->arena.al);
  eini_item *item = EINI_NEW(&scratch, eini_item, room);
  int *region = EINI_NEW(&scratch, int, b->g->nstmt), *alive = EINI_NEW(&scratch, int, room);
  ein_status st = item == NULL || region == NULL || alive == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++)
    for (int u = f->region[k].c.from; u < f->region[k].c.to; u++) region[u] = k;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++) {
    eini_fit_sliced *r = &f->region[k];
    for (int u = r->c.from; u < r->c.to; u++) {  // stored, and made first in this region
      int t = b->g->stmt[u].out;
      if (b->g->tensor[t].role != EIN_ROLE_TEMP || b->first[t] != u) continue;
      int last = region[b->read[t] > b->last[t] ? b->read[t] : b->last[t]];
      if (last > k || b->read[t] < 0)
        item[n++] = eini_fit_item(k, last, b->bytes[t], &f->place[t]);
    }
    for (int i = 0; i < r->npart; i++) {
      eini_fit_part *p = &r->part[i];
      item[n++] = eini_fit_item(k, k, p->bytes, &p->at);
      if (p->own) item[n++] = eini_fit_item(k, k, p->own_bytes, &p->own_at);
    }
    item[n++] = eini_fit_item(k, k, r->work, &r->at);
  }
  if (st == EIN_OK) st = eini_items_place(item, n, eini_fit_head(f), alive, &f->workspace);
  f->workspace += EINI_ALIGN;
  eini_arena_free(&scratch);
  return st;
}

// Makes all plans of a cut into regions. The layout owns them, also on failure.
static ein_status eini_fit_layout_make(const eini_fit_job *j, const eini_fit_base *b,
                                       const eini_fit_choice *list, int n, eini_fit_layout *f) {
  eini_fit_maker w;
  memset(&w, 0, sizeof w);
  w.j = j;
  w.f = f;
  f->base = *b;
  f->region = EINI_NEW(&f->arena, eini_fit_sliced, n);
  f->place = EINI_NEW(&f->arena, int64_t, b->g->ntensor);
  w.inner = EINI_NEW(&f->arena, int, b->g->ntensor);
  w.inside = EINI_NEW(&f->arena, char, b->g->ntensor);
  int64_t rank = 0;
  for (int64_t t = 0; t < b->g->ntensor; t++) rank = eini_max64(rank, b->g->tensor[t].rank);
  w.coef = EINI_NEW(&f->arena, int64_t, (2 + EINI_FIT_LOOPS) * rank);
  if (f->region == NULL || f->place == NULL || w.inner == NULL || w.inside == NULL ||
      w.coef == NULL)
    return EIN_ERR_NO_MEMORY;
  w.from = w.coef + EINI_FIT_LOOPS * rank;
  w.to = w.from + rank;
  for (int64_t t = 0; t < b->g->ntensor; t++) w.inner[t] = -1;
  f->nregion = n;
  for (int k = 0; k < n; k++) {
    w.r = &f->region[k];
    EINI_TRY(eini_fit_sliced_make(&w, &list[k]));
  }
  return eini_fit_workspace_plan(f);
}
