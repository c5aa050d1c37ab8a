// ================================================================================================
// >>dtensor-run  graphs of distributed tensors
// Takes the layouts of inputs and outputs as constraints of a decomposition; gives a plan that runs
// on their parts where they lie as it wants them, else on copies in its own layout.
// ================================================================================================

struct ein_dtensor_plan {
  eini_arena arena;
  ein_fabric fabric;
  const ein_graph *g;
  ein_decomposition *how;
  ein_dist *d;
  int n, *tensor;           // inputs, then outputs
  int nin;
  eini_layout *l;           // of each, as the plan wants it
  ein_dtensor **stage;      // a copy of each in that layout; NULL: it lies so
  int64_t moved;            // bytes that these copies move in all
};

// Texts of pins, for ein_decompose.
typedef struct eini_dtensor_pins {
  const char **text;
  int n, noutput;           // those of outputs come last
} eini_dtensor_pins;

// Is a layout that of a pin: equal pieces, block k at place k alone?
static int eini_layout_pins(const eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    if (l->nholder[k] != 1 || l->holder[k][0] != k) return 0;
  for (int r = 0; r < l->rank; r++) {
    if (l->npiece[r] > eini_max64(1, l->shape[r])) return 0;
    for (int64_t k = 0; k < l->npiece[r]; k++) {
      const eini_runs *p = &l->piece[r][k];
      const int64_t lo = eini_piece_start(l->shape[r], l->npiece[r], k);
      const int64_t hi = eini_piece_start(l->shape[r], l->npiece[r], k + 1);
      if (lo < hi && (p->n != 1 || p->v[0] != lo || p->v[1] != hi)) return 0;
    }
  }
  return 1;
}

static int eini_layout_everywhere(const eini_layout *l) {
  return l->nblock == 1 && l->nholder[0] == l->places;
}

// The pieces of an input in the plan: its own numbers of pieces where there can be as many, else
// of its longest axis; none where it is whole everywhere.
static ein_status eini_dtensor_pin(eini_arena *a, const eini_layout *l, const char *name,
                                   eini_dtensor_pins *pins) {
  const size_t size = strlen(name) + 32 * (size_t)l->rank + 8;
  char *text = (char *)eini_new(a, (int64_t)size, 1);
  int64_t all = 1;
  int sane = 1, longest = 0, n = 0;
  if (l->rank == 0 || eini_layout_everywhere(l)) return EIN_OK;
  if (text == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < l->rank; r++) {
    sane &= l->npiece[r] <= eini_max64(1, l->shape[r]);
    all *= l->npiece[r];  // of all: at most the points of a grid
    if (l->shape[r] > l->shape[longest]) longest = r;
  }
  eini_text t = eini_text_of(text, size);
  eini_say(&t, "%s[", name);
  for (int r = 0; r < l->rank; r++) {
    int64_t cut = r == longest ? eini_min64(l->places, eini_max64(1, l->shape[r])) : 1;
    if (sane && all <= l->places) cut = l->npiece[r];
    if (cut > 1 || (r + 1 == l->rank && n == 0))
      eini_say(&t, "%s%d=%lld", n++ > 0 ? "," : "", r, (long long)cut);
  }
  eini_say(&t, "]");
  pins->text[pins->n++] = text;
  return EIN_OK;
}

static int eini_dtensor_read(const ein_graph *g, int t) {
  for (int64_t k = 0; k < g->nstmt; k++)
    for (int o = 0; o < g->stmt[k].noperand; o++)
      if (g->stmt[k].operand[o] == t) return 1;
  return 0;
}

// Inputs are pinned, and outputs that have a block at every place: others would idle.
static ein_status eini_dtensor_pins_of(eini_arena *a, const ein_dtensor_plan *p,
                                       const ein_decompose_desc *desc,
                                       const ein_dtensor *const *io, eini_dtensor_pins *pins) {
  memset(pins, 0, sizeof *pins);
  pins->text = EINI_NEW(a, const char *, (int64_t)desc->npin + p->n);
  if (pins->text == NULL) return EIN_ERR_NO_MEMORY;
  for (; pins->n < desc->npin; pins->n++) pins->text[pins->n] = desc->pin[pins->n];
  for (int k = 0; k < p->n; k++) {
    const eini_layout *l = &io[k]->l;
    const int before = pins->n;
    if (k < p->nin && !eini_dtensor_read(p->g, p->tensor[k])) continue;
    if (k >= p->nin && (l->nblock < l->places || !eini_layout_pins(l))) continue;
    EINI_TRY(eini_dtensor_pin(a, l, p->g->tensor[p->tensor[k]].name, pins));
    if (k >= p->nin) pins->noutput += pins->n - before;
  }
  return EIN_OK;
}

static int eini_dtensor_dense(const ein_dtensor *t) {
  for (int k = 0; k < t->nparts; k++) {
    const ein_ztensor *v = &t->part[k].view;
    int64_t n = 1;
    for (int r = v->rank - 1; r >= 0 && ein_view_count(v) > 0; r--) {
      if (v->shape[r] > 1 && v->strides[r] != n) return 0;
      n *= v->shape[r];
    }
  }
  return 1;
}

// What staging costs, in the unit of the model.
static ein_status eini_dtensor_staging(eini_arena *a, const ein_dtensor_plan *p, const ein_dist *d,
                                       const ein_dtensor *const *io, double unit, double *cost) {
  eini_layout_walk w;
  for (int k = 0; k < p->n; k++) {
    const int in = k < p->nin;
    const int64_t size = (int64_t)ein_dtype_size(io[k]->dtype);
    eini_layout l;
    int64_t n = 0;
    EINI_TRY(eini_layout_of_plan(a, d, p->tensor[k], &l));
    EINI_TRY(eini_layout_walk_init(a, in ? &io[k]->l : &l, in ? &l : &io[k]->l, 0, l.places, &w));
    EINI_TRY(eini_layout_walk_all(a, &w, eini_dtensor_count, &n));
    *cost += unit * (double)(n * size);
  }
  return EIN_OK;
}

// One plan with those pins; *cost: of the model, staging with it. Collective.
static ein_status eini_dtensor_try(ein_ctx *ctx, const ein_dtensor_plan *p,
                                   const ein_dtensor *const *io, const ein_decompose_desc *desc,
                                   ein_decomposition **how, ein_dist **d, double *cost) {
  const ein_fabric *f = &p->fabric;
  ein_decomp_info info;
  ein_dist_desc dd;
  eini_arena scratch;
  *d = NULL;
  EINI_TRY(eini_dist_agree(f, ein_decompose(ctx, p->g, desc, how)));
  memset(&dd, 0, sizeof dd);
  dd.fabric = f;
  dd.decomposition = *how;
  dd.blocks = 1;
  EINI_TRY(ein_dist_create(ctx, p->g, &dd, d));
  ein_decomposition_info(*how, &info);
  const double unit = info.cost == EIN_COST_BYTES ? 1 : info.cost == EIN_COST_SECONDS
                      ? 1 / eini_machine_of(desc->machine).bandwidth : 0.125;
  *cost = info.total;
  eini_arena_init(&scratch, &p->arena.al);
  const ein_status st = eini_dtensor_staging(&scratch, p, *d, io, unit, cost);
  eini_arena_free(&scratch);
  return eini_dist_agree(f, st);
}

// With outputs as constraints, and without: the one that costs less.
static ein_status eini_dtensor_search(ein_ctx *ctx, ein_dtensor_plan *p,
                                      const ein_dtensor *const *io, ein_decompose_desc *desc,
                                      const eini_dtensor_pins *pins) {
  ein_decomposition *how = NULL;
  ein_dist *d = NULL;
  double cost = 0, other = 0;
  desc->pin = pins->text;
  desc->npin = pins->n - pins->noutput;
  ein_status st = eini_dtensor_try(ctx, p, io, desc, &p->how, &p->d, &cost);
  if (st != EIN_OK || pins->noutput == 0) return st;
  desc->npin = pins->n;
  st = eini_dtensor_try(ctx, p, io, desc, &how, &d, &other);
  if (st == EIN_OK && other <= cost) {
    ein_dist *worse = p->d;
    ein_decomposition *from = p->how;
    p->d = d, p->how = how;
    d = worse, how = from;
  }
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  if (st == EIN_ERR_NO_MEMORY) return st;
  eini_begin_call(ctx, NULL);  // outputs that cannot be pinned are no mistake
  return EIN_OK;
}

// Do tensors fit the graph?
static ein_status eini_dtensor_fit(ein_ctx *ctx, const ein_dtensor_plan *p,
                                   const ein_dtensor *const *io) {
  for (int k = 0; k < p->n; k++) {
    const eini_tensor *e = &p->g->tensor[p->tensor[k]];
    if (io[k] == NULL)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "'%.60s': the tensor is NULL", e->name);
    const eini_layout *l = &io[k]->l;
    if (io[k]->dtype != e->dtype)
      return eini_dist_refuse(ctx, EIN_ERR_DTYPE, "'%.60s' is %s, the tensor %s", e->name,
                              ein_dtype_name(e->dtype), ein_dtype_name(io[k]->dtype));
    if (l->rank != e->rank)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "'%.60s' has %d axes, the tensor %d", e->name,
                              e->rank, l->rank);
    for (int r = 0; r < l->rank; r++)
      if (l->shape[r] != e->shape[r])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d of '%.60s' has %lld elements, of the "
                                "tensor %lld", r, e->name, (long long)e->shape[r],
                                (long long)l->shape[r]);
    if (io[k]->fabric.user != p->fabric.user || io[k]->fabric.places != p->fabric.places)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "'%.60s' is on another fabric", e->name);
  }
  return EIN_OK;
}

// Copies in the plan's layout of what lies otherwise; a process whose buffers have strides makes
// all copy.
static ein_status eini_dtensor_stages(ein_ctx *ctx, ein_dtensor_plan *p,
                                      const ein_dtensor *const *io) {
  for (int k = 0; k < p->n; k++) {
    EINI_TRY(eini_dist_agree(&p->fabric, eini_layout_of_plan(&p->arena, p->d, p->tensor[k],
                                                             &p->l[k])));
    const int lies = eini_layout_same(&io[k]->l, &p->l[k]) && eini_dtensor_dense(io[k]);
    if (eini_dist_agree(&p->fabric, lies ? EIN_OK : EIN_ERR_OVERLAP) == EIN_OK) continue;
    EINI_TRY(ein_dtensor_of_plan(ctx, p->d, p->tensor[k], &p->stage[k]));
    const int64_t n = k < p->nin ? ein_dtensor_bytes(io[k], p->stage[k])
                                 : ein_dtensor_bytes(p->stage[k], io[k]);
    p->moved += eini_max64(n, 0);
  }
  return EIN_OK;
}

// What one process alone can do: lists of tensors, and what they say to the decomposition.
static ein_status eini_dtensor_begin(ein_ctx *ctx, ein_dtensor_plan *p, const ein_dtensor **io,
                                     const ein_dtensor *const *in, ein_dtensor *const *out,
                                     const ein_decompose_desc *desc, eini_dtensor_pins *pins) {
  for (int output = 0; output < 2; output++) {
    int n = 0;
    for (int t = 0; t < p->g->ntensor; t++) {
      if (p->g->tensor[t].role != (output ? EIN_ROLE_OUTPUT : EIN_ROLE_INPUT)) continue;
      if (output ? out == NULL : in == NULL) return EIN_ERR_ARGUMENT;
      io[p->n] = output ? out[n] : in[n];
      p->tensor[p->n++] = t;
      n++;
    }
    if (!output) p->nin = p->n;
  }
  if (p->n == 0) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_dtensor_fit(ctx, p, io));
  return eini_dtensor_pins_of(&p->arena, p, desc, io, pins);
}

EIN_API void ein_dtensor_plan_destroy(ein_dtensor_plan *p) {
  if (p == NULL) return;
  for (int k = 0; k < p->n; k++) ein_dtensor_destroy(p->stage[k]);
  ein_dist_destroy(p->d);
  ein_decomposition_destroy(p->how);
  eini_arena arena = p->arena;
  eini_arena_free(&arena);
}

EIN_API ein_status ein_dtensor_plan_create(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_fabric *fabric, const ein_decompose_desc *how,
                                           const ein_dtensor *const *in, ein_dtensor *const *out,
                                           ein_dtensor_plan **plan) {
  eini_arena arena;
  ein_decompose_desc desc;
  eini_dtensor_pins pins;
  if (fabric == NULL || plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  eini_begin_call(ctx, NULL);
  memset(&desc, 0, sizeof desc);
  desc.cost = EIN_COST_BYTES;
  if (how != NULL) desc = *how;
  desc.p = fabric->places;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  const int64_t n = st == EIN_OK ? graph->ntensor : 0;
  ein_dtensor_plan *p = EINI_NEW(&arena, ein_dtensor_plan, 1);
  int *tensor = EINI_NEW(&arena, int, n);
  eini_layout *l = EINI_NEW(&arena, eini_layout, n);
  ein_dtensor **stage = EINI_NEW(&arena, ein_dtensor *, n);
  const ein_dtensor **io = EINI_NEW(&arena, const ein_dtensor *, n);
  const int room = p != NULL && tensor != NULL && l != NULL && stage != NULL && io != NULL;
  if (st == EIN_OK && !room) st = EIN_ERR_NO_MEMORY;
  if (room) {
    p->g = graph, p->tensor = tensor, p->l = l, p->stage = stage;
    p->arena = arena;
    p->fabric = *fabric;
  }
  if (st == EIN_OK) st = eini_dtensor_begin(ctx, p, io, in, out, &desc, &pins);
  ein_status all = eini_dist_agree(fabric, st);
  if (all == EIN_OK) all = eini_dtensor_search(ctx, p, io, &desc, &pins);
  if (all == EIN_OK) all = eini_dtensor_stages(ctx, p, io);
  if (all == EIN_OK) {
    *plan = p;
    return EIN_OK;
  }
  if (room) ein_dtensor_plan_destroy(p);
  else eini_arena_free(&arena);
  if (ctx != NULL && ctx->diag.count == 0)
    eini_dist_refuse(ctx, all, st == EIN_OK ? "another process, or the plan: %s" : "%s",
                     ein_status_text(all));
  return all;
}

EIN_API ein_status ein_dtensor_plan_get(const ein_dtensor_plan *p, ein_dtensor_plan_info *info) {
  if (p == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  info->decomposition = p->how;
  info->dist = p->d;
  info->moved = p->moved;
  return EIN_OK;
}

// The block of a tensor at driven place number i; NULL: it has no elements.
static void *eini_dtensor_block(const ein_dtensor *t, int i) {
  for (int k = t->first[i]; k < t->first[i + 1]; k++)
    if (ein_view_count(&t->part[k].view) > 0) return t->part[k].view.data;
  return NULL;
}

// Addresses of blocks for a run; what is not staged has to lie as the plan wants it.
static ein_status eini_dtensor_bind(const ein_dtensor_plan *p, const ein_dtensor *const *io,
                                    const void **in, void **out) {
  const int count = p->fabric.count;
  EINI_TRY(eini_dtensor_fit(NULL, p, io));
  for (int k = 0; k < p->n; k++) {
    const ein_dtensor *t = p->stage[k] != NULL ? p->stage[k] : io[k];
    if (p->stage[k] == NULL && (!eini_layout_same(&t->l, &p->l[k]) || !eini_dtensor_dense(t)))
      return EIN_ERR_ARGUMENT;
    for (int i = 0; i < count; i++) {
      void *block = eini_dtensor_block(t, i);
      if (k < p->nin) in[k * count + i] = block;
      else out[(k - p->nin) * count + i] = block;
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_plan_run(const ein_dtensor_plan *p, const ein_dtensor *const *in,
                                        ein_dtensor *const *out, const ein_scalar *param,
                                        ein_dist_stats *stats) {
  eini_arena arena;
  ein_run run;
  if (p == NULL) return EIN_ERR_ARGUMENT;
  const ein_fabric *f = &p->fabric;
  eini_arena_init(&arena, &p->arena.al);
  memset(&run, 0, sizeof run);
  const ein_dtensor **io = EINI_NEW(&arena, const ein_dtensor *, p->n);
  const void **from = EINI_NEW(&arena, const void *, (int64_t)p->nin * f->count);
  void **to = EINI_NEW(&arena, void *, (int64_t)(p->n - p->nin) * f->count);
  ein_status st = io == NULL || from == NULL || to == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < p->n && st == EIN_OK; k++) {
    if (k < p->nin ? in == NULL : out == NULL) st = EIN_ERR_ARGUMENT;
    else io[k] = k < p->nin ? in[k] : out[k - p->nin];
  }
  if (st == EIN_OK) st = eini_dtensor_bind(p, io, from, to);
  st = eini_dist_agree(f, st);
  for (int k = 0; k < p->nin && st == EIN_OK; k++)
    if (p->stage[k] != NULL) st = ein_dtensor_copy(io[k], p->stage[k], NULL);
  run.in = from;
  run.out = to;
  run.param = param;
  if (st == EIN_OK) st = ein_dist_execute(p->d, &run, stats);
  for (int k = p->nin; k < p->n && st == EIN_OK; k++)
    if (p->stage[k] != NULL) st = ein_dtensor_copy(p->stage[k], out[k - p->nin], NULL);
  eini_arena_free(&arena);
  return st;
}
