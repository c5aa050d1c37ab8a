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

static int64_t eini_fit_shift(int rank, const int64_t *lo, const int64_t *stride, ein_dtype dtype) {
  int64_t sum = 0;
  for (int r = 0; r < rank; r++) sum += lo[r] * stride[r] * (int64_t)ein_dtype_size(dtype);
  return sum;
}

// Inputs, outputs, parts and inner tensors of the slice, in this order. low: where views start.
static ein_status eini_fit_tensors(eini_fit_maker *w, ein_graph *g, const ein_ztensor **view,
                                   int64_t **low) {
  const eini_fit_base *b = w->n.b;
  eini_fit_group *r = w->r;
  int n = r->nin + r->nout + r->npart;
  for (int i = 0; i < n; i++) {
    int kind = i < r->nin ? 0 : i < r->nin + r->nout ? 1 : 2;
    int id = kind == 0 ? i : kind == 1 ? i - r->nin : i - r->nin - r->nout;
    int t = kind == 0 ? r->in[id].tensor : kind == 1 ? r->out[id].tensor : r->part[id].tensor;
    const eini_tensor *x = &b->g->tensor[t];
    const int64_t *stride = kind == 2 ? r->part[id].stride : b->stride[t];
    ein_dtype dtype = kind == 2 ? r->part[id].type : x->dtype;
    int64_t *shape, count = 1;
    EINI_TRY(eini_fit_box(w, kind, id, &g->arena, &low[i], &shape));
    w->s->base[i] = eini_fit_shift(x->rank, low[i], stride, dtype);
    EINI_TRY(eini_fit_tensor(w, g, t, kind == 0 ? EIN_ROLE_INPUT : EIN_ROLE_OUTPUT, dtype, shape,
                             kind == 2 && r->part[id].state < 0 ? NULL : stride, view,
                             kind == 0 ? &r->in[id].sub : kind == 1 ? &r->out[id].sub
                                                                    : &r->part[id].sub));
    if (kind == 1) w->inner[t] = r->out[id].sub;
    if (kind < 2 || r->part[id].state >= 0) continue;
    for (int k = 0; k < x->rank; k++) count *= shape[k];
    r->part[id].bytes = eini_max64(r->part[id].bytes, eini_fit_padded(count, dtype));
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
static ein_status eini_fit_origins(const eini_fit_maker *w, int u, eini_arena *a, eini_stmt *s) {
  const eini_stmt *from = &w->n.b->g->stmt[u];
  int part = eini_fit_part_of(w->r, u);
  int *param = EINI_NEW(a, int, from->nindex);
  int64_t *extent = EINI_NEW(a, int64_t, from->nindex);
  eini_carry *c = EINI_NEW(a, eini_carry, 1);
  if (param == NULL || extent == NULL || c == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < from->nindex; i++) {
    extent[i] = from->index[i].extent;
    param[i] = -1;
    for (int l = 0; l < w->n.nloop; l++)
      if (w->n.cls[l]->col[u - w->n.from] == i) param[i] = (int)w->n.b->g->nparam + l;
  }
  c->origin = param;
  c->extent = extent;
  if (part >= 0 && w->r->part[part].state == 0) {
    for (int k = 0; k < w->r->part[part].folder->nstate; k++)
      c->state[k] = w->r->part[part + k].sub;
    s->carry = c;
  }
  return eini_expr_shift(a, &from->expr, param, &s->expr);
}

// Which view an access to a tensor outside goes through.
static int eini_fit_port_find(const eini_fit_maker *w, int u, int t, const eini_map *m,
                              int64_t *mine) {
  eini_fit_moves(&w->n, u, m, mine);
  size_t bytes = (size_t)m->rows * (size_t)w->n.nloop * sizeof *mine;
  for (int k = 0; k < w->r->nin; k++)
    if (w->r->in[k].tensor == t && memcmp(w->r->in[k].coef, mine, bytes) == 0) return k;
  return -1;
}

static ein_status eini_fit_stmt(eini_fit_maker *w, ein_graph *g, int u, int64_t *const *low) {
  const eini_stmt *from = &w->n.b->g->stmt[u];
  eini_arena *a = &g->arena;
  int part = eini_fit_part_of(w->r, u), row;
  int *operand = EINI_NEW(a, int, from->noperand);
  const int64_t **lo = EINI_NEW(a, const int64_t *, from->noperand);
  int64_t *e, bad;
  eini_stmt *s;
  if (operand == NULL || lo == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_fit_extents(w, u, a, &e));
  for (int k = 0; k < from->noperand; k++) {
    int t = from->operand[k];
    int64_t *mine = EINI_NEW(a, int64_t, (int64_t)from->proj[k].rows * w->n.nloop + 1);
    if (mine == NULL) return EIN_ERR_NO_MEMORY;
    int port = eini_fit_made(&w->n, t) ? -1 : eini_fit_port_find(w, u, t, &from->proj[k], mine);
    operand[k] = port >= 0 ? w->r->in[port].sub : w->inner[t];
    if (port >= 0) lo[k] = low[port];
    if (operand[k] < 0) return EIN_ERR_INTERNAL;
  }
  int to = part >= 0 ? w->r->part[part].sub : w->inner[from->out];
  EINI_TRY(eini_graph_add_stmt(g, to, from->nindex, from->noperand, operand, &s));
  s->nfree = from->nfree;
  s->fold = from->fold;
  s->numpy = from->numpy;
  s->type = from->type;
  s->rest = from->rest;
  s->order = from->order;
  s->line = from->line;
  for (int i = 0; i < from->nindex; i++) {
    s->index[i].name = from->index[i].name;
    s->index[i].extent = e[i];
  }
  const int empty = eini_stmt_empty(s, 0, s->nindex);
  EINI_TRY(eini_map_copy(a, &s->out_map, &from->out_map, NULL));
  for (int i = 0; i < w->r->nin + w->r->nout + w->r->npart; i++) {
    int sub = i < w->r->nin ? -1 : i < w->r->nin + w->r->nout ? w->r->out[i - w->r->nin].sub
                                          : w->r->part[i - w->r->nin - w->r->nout].sub;
    for (int r = 0; r < s->out_map.rows && sub == to; r++) s->out_map.offset[r] -= low[i][r];
  }
  for (int k = 0; k < from->noperand; k++) {
    EINI_TRY(eini_map_copy(a, &s->proj[k], &from->proj[k], NULL));
    for (int r = 0; r < s->proj[k].rows && lo[k] != NULL; r++) s->proj[k].offset[r] -= lo[k][r];
    if (!empty) EINI_TRY(eini_map_bounds(&s->proj[k], e, g->tensor[operand[k]].shape, &row, &bad));
  }
  if (!empty) EINI_TRY(eini_map_bounds(&s->out_map, e, g->tensor[to].shape, &row, &bad));
  return eini_fit_origins(w, u, a, s);
}

// ---- plans ----

static ein_status eini_fit_slice_fill(eini_fit_maker *w, ein_plan *p) {
  const ein_graph *from = w->n.b->g;
  ein_graph *g = p->graph;
  static const ein_scalar none = {0, 0, 0};
  int ports = w->r->nin + w->r->nout + w->r->npart, id;
  int64_t most = ports + (int64_t)(w->n.to - w->n.from);
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, most);
  int64_t **low = EINI_NEW(&p->arena, int64_t *, ports);
  if (view == NULL || low == NULL) return EIN_ERR_NO_MEMORY;
  g->ordered = from->ordered;
  EINI_TRY(eini_graph_register(g, from->nfunction, from->function, from->nmonoid, from->monoid));
  EINI_TRY(eini_graph_copy_params(g, from));
  for (int l = 0; l < w->n.nloop; l++)
    EINI_TRY(eini_graph_add_param(g, "origin", 6, EIN_I64, none, &id));
  EINI_TRY(eini_fit_tensors(w, g, view, low));
  for (int u = w->n.from; u < w->n.to; u++) EINI_TRY(eini_fit_stmt(w, g, u, low));
  if (w->r->alias) p->alias = w->r->in[w->r->nin - 1].sub;
  p->inner = w->n.to - w->n.from < from->nstmt;
  p->slices = w->r->npart > 0 ? 1 : 0;
  for (int l = 0; l < w->n.nloop && w->r->npart > 0; l++)
    p->slices *= (double)eini_fit_slices(w->r->c.extent[l], w->r->c.block[l]);
  for (int k = 0; k < w->r->npart; k++) {
    const double unit = eini_half_ulp(from->tensor[w->r->part[k].tensor].dtype);
    if (unit > p->slice_unit) p->slice_unit = unit;
  }
  return eini_plan_build(p, 0, NULL, view);
}

static ein_status eini_fit_slice_plan(eini_fit_maker *w) {
  ein_plan *p = NULL;
  w->s->base = EINI_NEW(&w->f->arena, int64_t, w->r->nin + w->r->nout + w->r->npart);
  if (w->s->base == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_plan_new(w->j->ctx, &p));
  w->s->plan = p;
  EINI_TRY(eini_fit_slice_fill(w, p));
  w->r->work = eini_max64(w->r->work, (int64_t)p->info.workspace_bytes);
  return EIN_OK;
}

// first ? x : fold(old, x), untyped. Operands: old, x; param 0: first.
static int eini_fit_merge_expr(eini_arena *a, eini_expr *e, int fold, ein_dtype type) {
  int both = eini_block_merge_expr(a, fold, type, e);
  int x = both < 0 ? -1 : eini_expr_add(a, e, EIN_OP_OPERAND, -1, 1, 0, 0);
  int first = x < 0 ? -1 : eini_expr_add(a, e, EIN_OP_PARAM, -1, 0, 0, 0);
  return first < 0 ? -1 : eini_expr_add(a, e, EIN_OP_WHERE, -1, first, x, both);
}

// A plan of one element-wise statement from `nop` tensors of `type` to one of `to`, all of a shape.
// The first operand and the output have layout `stride`, the others none.
static ein_status eini_fit_each_plan(eini_fit_maker *w, int rank, const int64_t *shape, int fold,
                                     ein_dtype type, ein_dtype to, const int64_t *stride,
                                     ein_plan **plan) {
  static const ein_scalar none = {0, 0, 0};
  const ein_ztensor *view[4] = {NULL, NULL, NULL, NULL};
  ein_ztensor v;
  int op[2] = {0, 0}, out, id, nop = fold == EIN_FOLD_NONE ? 1 : 2;
  eini_stmt *s;
  EINI_TRY(eini_plan_new(w->j->ctx, plan));
  ein_graph *g = (*plan)->graph;
  memset(&v, 0, sizeof v);
  v.rank = rank;
  v.shape = shape;
  v.strides = stride;
  if (nop == 2) EINI_TRY(eini_graph_add_param(g, "first", 5, EIN_BOOL, none, &id));
  for (int k = 0; k < nop; k++)
    EINI_TRY(eini_graph_add_tensor(g, "x", 1, EIN_ROLE_INPUT, type, rank, shape, &op[k]));
  EINI_TRY(eini_graph_add_tensor(g, "y", 1, EIN_ROLE_OUTPUT, to, rank, shape, &out));
  EINI_TRY(eini_graph_add_each(g, out, nop, op, &s));
  id = nop == 2 ? eini_fit_merge_expr(&g->arena, &s->expr, fold, type)
                : eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, -1, 0, 0, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_stmt_finish(g, s, NULL));
  if (nop == 2) view[op[0]] = &v;
  view[out] = &v;
  EINI_TRY(eini_plan_build(*plan, 0, NULL, view));
  w->r->work = eini_max64(w->r->work, (int64_t)(*plan)->info.workspace_bytes);
  return EIN_OK;
}

// Plans that merge the parts of slice variant v; those of one shape are shared.
static ein_status eini_fit_merges(eini_fit_maker *w, int v) {
  eini_fit_group *r = w->r;
  eini_fit_slice *s = &r->slice[v];
  s->merge = EINI_NEW(&w->f->arena, ein_plan *, r->npart);
  if (s->merge == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < r->npart; i++) {
    eini_fit_part *p = &r->part[i];
    const eini_tensor *x = &s->plan->graph->tensor[p->sub];
    if (p->state >= 0) continue;
    for (int o = 0; o < v && s->merge[i] == NULL; o++) {
      if (r->slice[o].plan == NULL) continue;
      const eini_tensor *y = &r->slice[o].plan->graph->tensor[p->sub];
      size_t bytes = (size_t)x->rank * sizeof *x->shape;
      if (bytes == 0 || memcmp(x->shape, y->shape, bytes) == 0) s->merge[i] = r->slice[o].merge[i];
    }
    if (s->merge[i] == NULL) {
      EINI_TRY(eini_fit_each_plan(w, x->rank, x->shape, p->fold, p->type, p->type, p->stride,
                                  &s->merge[i]));
    }
    if (p->own && p->store == NULL) {
      const eini_tensor *y = &w->n.b->g->tensor[p->tensor];
      EINI_TRY(eini_fit_each_plan(w, y->rank, y->shape, EIN_FOLD_NONE, p->type, y->dtype,
                                  w->n.b->stride[p->tensor], &p->store));
    }
  }
  return EIN_OK;
}

static ein_status eini_fit_group_make(eini_fit_maker *w, const eini_fit_choice *c) {
  eini_arena *a = &w->f->arena;
  eini_fit_group *r = w->r;
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
  EINI_TRY(eini_fit_ports(w));
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
    EINI_TRY(eini_fit_merges(w, v));
  }
  return EIN_OK;
}

// ---- the workspace ----

// Something that needs a place while regions [from, to] run.
typedef struct eini_fit_item {
  int from, to;
  int64_t bytes, *at;
} eini_fit_item;

// Places items, which come in the order of `from`, each at the lowest address that is free while it
// is alive. alive: [n], those placed that are, by address. *top: bytes in all.
static ein_status eini_fit_place(eini_fit_item *item, int n, int64_t head, int *alive,
                                 int64_t *top) {
  int live = 0;
  *top = head;
  for (int i = 0; i < n; i++) {
    int kept = 0, where = 0;
    int64_t at = head, end;
    for (int k = 0; k < live; k++)
      if (item[alive[k]].to >= item[i].from) alive[kept++] = alive[k];
    live = kept;
    for (; where < live; where++) {
      const eini_fit_item *o = &item[alive[where]];
      if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
      if (end <= *o->at) break;
      at = eini_max64(at, *o->at + o->bytes);
    }
    if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
    *item[i].at = at;
    *top = eini_max64(*top, end);
    memmove(alive + where + 1, alive + where, (size_t)(live - where) * sizeof *alive);
    alive[where] = i;
    live++;
  }
  return EIN_OK;
}

static eini_fit_item eini_fit_item_of(int from, int to, int64_t bytes, int64_t *at) {
  eini_fit_item x;
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
  eini_fit_item *item = EINI_NEW(&scratch, eini_fit_item, room);
  int *region = EINI_NEW(&scratch, int, b->g->nstmt), *alive = EINI_NEW(&scratch, int, room);
  ein_status st = item == NULL || region == NULL || alive == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++)
    for (int u = f->region[k].c.from; u < f->region[k].c.to; u++) region[u] = k;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++) {
    eini_fit_group *r = &f->region[k];
    for (int u = r->c.from; u < r->c.to; u++) {  // stored, and made first in this region
      int t = b->g->stmt[u].out;
      if (b->g->tensor[t].role != EIN_ROLE_TEMP || b->first[t] != u) continue;
      int last = region[b->read[t] > b->last[t] ? b->read[t] : b->last[t]];
      if (last > k || b->read[t] < 0)
        item[n++] = eini_fit_item_of(k, last, b->bytes[t], &f->place[t]);
    }
    for (int i = 0; i < r->npart; i++) {
      eini_fit_part *p = &r->part[i];
      item[n++] = eini_fit_item_of(k, k, p->bytes, &p->at);
      if (p->own) item[n++] = eini_fit_item_of(k, k, p->own_bytes, &p->own_at);
    }
    item[n++] = eini_fit_item_of(k, k, r->work, &r->at);
  }
  if (st == EIN_OK) st = eini_fit_place(item, n, eini_fit_head(f), alive, &f->workspace);
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
  f->region = EINI_NEW(&f->arena, eini_fit_group, n);
  f->place = EINI_NEW(&f->arena, int64_t, b->g->ntensor);
  w.inner = EINI_NEW(&f->arena, int, b->g->ntensor);
  if (f->region == NULL || f->place == NULL || w.inner == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < b->g->ntensor; t++) w.inner[t] = -1;
  f->nregion = n;
  for (int k = 0; k < n; k++) {
    w.r = &f->region[k];
    EINI_TRY(eini_fit_group_make(&w, &list[k]));
  }
  return eini_fit_workspace_plan(f);
}
