// ================================================================================================
// >>dist-public  fabrics, plans and runs
// Takes what callers give, checks it, and calls the sections above.
// ================================================================================================

static ein_status eini_fabric_init(int places, const char *name, ein_fabric *f) {
  if (f == NULL) return EIN_ERR_ARGUMENT;
  memset(f, 0, sizeof *f);
  if (places < 1 || places > EIN_PLACES_MAX) return EIN_ERR_ARGUMENT;
  f->name = name;
  f->places = f->count = places;
  f->shared = 1;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_serial(int places, ein_fabric *fabric) {
  return eini_fabric_init(places, "serial", fabric);
}

EIN_API ein_status ein_fabric_threads(int places, ein_fabric *fabric) {
  EINI_TRY(eini_fabric_init(places, "threads", fabric));
  fabric->threads = 1;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_copying(ein_ctx *ctx, int places, ein_fabric *fabric) {
  eini_arena arena;  // for the allocator alone
  EINI_TRY(eini_fabric_init(places, "copying", fabric));
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  eini_posts *c = (eini_posts *)arena.al.alloc_fn(sizeof *c, 16, arena.al.user);
  if (c == NULL) {
    memset(fabric, 0, sizeof *fabric);
    return EIN_ERR_NO_MEMORY;
  }
  memset(c, 0, sizeof *c);
  c->al = arena.al;
  fabric->shared = 0;
  fabric->user = c;
  fabric->send_fn = eini_copying_send;
  fabric->recv_fn = eini_copying_recv;
  fabric->test_fn = eini_copying_test;
  fabric->wait_fn = eini_copying_wait;
  fabric->memory_fn = eini_copying_memory;
  fabric->destroy_fn = eini_copying_destroy;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_sim(ein_ctx *ctx, int places, const ein_machine *machine,
                                  ein_fabric *fabric) {
  eini_arena arena;
  eini_timer *c;
  EINI_TRY(eini_fabric_init(places, "sim", fabric));
  if (ctx != NULL) eini_begin_call(ctx, NULL);
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_validate_machine(eini_diag_of(ctx), machine);
  if (st == EIN_OK) st = eini_timer_make(&arena, places, machine, &c);
  if (st != EIN_OK) {
    eini_arena_free(&arena);
    memset(fabric, 0, sizeof *fabric);
    return st;
  }
  c->arena = arena;
  fabric->shared = 0;
  fabric->user = c;
  fabric->machine = &c->machine;
  fabric->send_fn = eini_timer_send;
  fabric->recv_fn = eini_timer_recv;
  fabric->wait_fn = eini_timer_wait;
  fabric->room_fn = eini_timer_start;
  fabric->compute_fn = eini_timer_compute;
  fabric->next_fn = eini_timer_next;
  fabric->destroy_fn = eini_timer_destroy;
  return EIN_OK;
}

EIN_API void ein_fabric_moved(const ein_fabric *fabric, int64_t *messages, int64_t *bytes) {
  const eini_posts *own = NULL;
  if (fabric != NULL && fabric->send_fn == eini_copying_send)
    own = (const eini_posts *)fabric->user;
  if (fabric != NULL && fabric->send_fn == eini_timer_send)
    own = &((const eini_timer *)fabric->user)->posts;
  if (messages != NULL) *messages = own != NULL ? own->messages : 0;
  if (bytes != NULL) *bytes = own != NULL ? own->bytes : 0;
}

EIN_API void ein_fabric_destroy(ein_fabric *fabric) {
  if (fabric != NULL && fabric->destroy_fn != NULL) fabric->destroy_fn(fabric->user);
  if (fabric != NULL) memset(fabric, 0, sizeof *fabric);
}

static ein_status eini_dist_check(ein_ctx *ctx, const ein_graph *g, const ein_dist_desc *e) {
  EINI_TRY(eini_validate_graph(ctx, g, e->nlayout, e->layout, NULL));
  const ein_fabric *f = e->fabric;
  if (f != NULL && (f->places < 1 || f->places > EIN_PLACES_MAX || f->first < 0 || f->count < 1 ||
                    f->first + f->count > f->places))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric has no sane places");
  if (f != NULL && !f->shared && (f->send_fn == NULL || f->recv_fn == NULL || f->wait_fn == NULL))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric cannot move data");
  if (f != NULL && f->machine != NULL &&
      (f->shared || f->count < f->places || f->compute_fn == NULL || f->next_fn == NULL))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric's clock is not one of all places");
  if (f != NULL && f->count < f->places && f->agree_fn == NULL)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric's processes cannot agree");
  if (e->decomposition != NULL) {
    ein_decomp_info info;
    ein_decomposition_info(e->decomposition, &info);
    if (info.nstmt != g->nstmt)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the decomposition is of another graph");
  }
  return EIN_OK;
}

// Why places do not hold one box of a tensor each: those of this process, under a schedule.
static ein_status eini_dist_boxless(const ein_dist *d, int t, const char **why) {
  int64_t lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], n;
  *why = d->desc.schedule == NULL ? eini_dist_not_boxes(d, t) : NULL;
  if (d->desc.schedule != NULL && d->g->tensor[t].rank > EINI_NAMES_MAX)
    *why = "it has too many axes";
  for (int q = 0; q < d->fabric.count && d->desc.schedule != NULL && *why == NULL; q++)
    EINI_TRY(eini_steps_owned(d, t, d->fabric.first + q, lo, hi, &n, why));
  return EIN_OK;
}

// Can a run bind the blocks of its places?
static ein_status eini_dist_check_blocks(ein_ctx *ctx, const ein_dist *d) {
  const char *why = d->fabric.shared ? "places that share memory hold no blocks of their own"
                    : d->desc.nlayout > 0 ? "blocks are dense, a layout is of whole tensors" : NULL;
  if (!d->desc.blocks) return EIN_OK;
  if (why != NULL) return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "blocks: %s", why);
  for (int t = 0; t < d->g->ntensor; t++) {
    const ein_role role = d->g->tensor[t].role;  // of inputs cuts are always boxes
    if (role == EIN_ROLE_TEMP || (role == EIN_ROLE_INPUT && d->desc.schedule == NULL)) continue;
    EINI_TRY(eini_dist_boxless(d, t, &why));
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "the blocks of '%.60s' cannot be bound: %s",
                              d->g->tensor[t].name, why);
  }
  return EIN_OK;
}

// The parts of statement k; NULL: it is not cut.
static ein_status eini_dist_parts_of(ein_ctx *ctx, const ein_dist *d, int k, ein_parts *room,
                                     const ein_parts **parts) {
  *parts = d->desc.parts == NULL ? NULL : &d->desc.parts[k];
  if (d->desc.decomposition != NULL) {
    EINI_TRY(ein_decomposition_parts(d->desc.decomposition, k, room));
    *parts = room;
  }
  return *parts == NULL ? EIN_OK
                        : eini_dist_check_parts(ctx, d->g, &d->g->stmt[k], k, d->fabric.places,
                                                *parts);
}

static ein_status eini_dist_stmts(ein_ctx *ctx, ein_dist *d, eini_dist_shapes *shapes,
                                  eini_dist_room *room) {
  for (int k = 0; k < d->nstmt; k++) {
    ein_parts own;
    const ein_parts *parts;
    EINI_TRY(eini_dist_parts_of(ctx, d, k, &own, &parts));
    ein_status st = eini_dist_stmt_init(d, k, parts, shapes, room);
    if (st != EIN_OK && d->plans.ctx->diag.count > 0 && ctx != NULL)
      return eini_dist_refuse(ctx, st, "statement %d, '%.60s': %s", k,
                              d->g->tensor[d->g->stmt[k].out].name,
                              ein_ctx_message(d->plans.ctx));
    EINI_TRY(st);
  }
  return EIN_OK;
}

static ein_status eini_dist_build(ein_ctx *ctx, ein_dist *d) {
  eini_dist_room room;
  eini_dist_shapes shapes;
  int rank = 1;
  for (int64_t t = 0; t < d->g->ntensor; t++)
    if (d->g->tensor[t].rank > rank) rank = d->g->tensor[t].rank;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    if (s->nindex > rank) rank = s->nindex;
    if (s->noperand > rank) rank = s->noperand;
  }
  d->rank = rank < 2 ? 2 : rank;
  if (!eini_dist_room_init(&d->arena, d->rank, &room)) return EIN_ERR_NO_MEMORY;
  d->stmt = EINI_NEW(&d->arena, eini_dist_stmt, d->nstmt + d->g->ntensor);
  if (d->stmt == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_tensors(d));
  EINI_TRY(eini_dist_pins(ctx, d));
  EINI_TRY(eini_dist_ctx(ctx, d->fabric.threads, &d->plans.ctx));
  eini_dist_provider(d);
  d->held = EINI_NEW(&d->arena, void *, d->fabric.count);
  d->held_bytes = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (d->held == NULL || d->held_bytes == NULL) return EIN_ERR_NO_MEMORY;
  d->plans.a = &d->arena;
  d->plans.path = d->desc.path;
  if (d->desc.schedule != NULL) {
    EINI_TRY(eini_steps_fits(ctx, d));
    EINI_TRY(eini_dist_check_blocks(ctx, d));
    return eini_steps_prepare(ctx, d);
  }
  memset(&shapes, 0, sizeof shapes);
  eini_forms_init(&shapes.forms, &d->arena, 0);
  const ein_status st = eini_dist_stmts(ctx, d, &shapes, &room);
  eini_forms_free(&shapes.forms);
  EINI_TRY(st);
  EINI_TRY(eini_dist_check_blocks(ctx, d));
  if (!d->fabric.shared && (d->kept = EINI_NEW(&d->arena, char *, 1)) == NULL)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(d->fabric.shared ? eini_dist_memory(d) : eini_dist_copies_init(d, &room));
  EINI_TRY(eini_dist_peaks(d, &room));
  return eini_dist_jobs(d, &room);
}

// ---- what all processes must be given alike ----

static size_t eini_print_graph(const void *x, char *buf, size_t size) {
  return ein_graph_print((const ein_graph *)x, buf, size);
}

static size_t eini_print_schedule(const void *x, char *buf, size_t size) {
  return ein_schedule_print((const ein_schedule *)x, buf, size);
}

// A number for a text.
static ein_status eini_print_hash(const ein_allocator *al, const void *x,
                                  size_t (*fn)(const void *x, char *buf, size_t size),
                                  uint64_t *hash) {
  const size_t n = fn(x, NULL, 0) + 1;
  char *text = (char *)al->alloc_fn(n, 1, al->user);
  if (text == NULL) return EIN_ERR_NO_MEMORY;
  (void)fn(x, text, n);
  *hash = eini_hash(text, n, 1);
  al->free_fn(text, n, al->user);
  return EIN_OK;
}

static uint64_t eini_parts_hash(const ein_parts *p, uint64_t hash) {
  hash = eini_hash(&p->ntask, sizeof p->ntask, hash);
  if (p->nindex > 0) hash = eini_hash(p->cut, (size_t)p->nindex * sizeof *p->cut, hash);
  if (p->norder > 0) hash = eini_hash(p->order, (size_t)p->norder * sizeof *p->order, hash);
  return hash;
}

enum { EINI_SAME_GRAPH, EINI_SAME_CUTS, EINI_SAME_SCHEDULE, EINI_SAME_DESC, EINI_SAME_WORDS };

// What a plan is made of, as numbers.
static ein_status eini_dist_words(const ein_allocator *al, const ein_graph *g,
                                  const ein_dist_desc *e, uint64_t *word) {
  const int64_t said[4] = {e->blocks != 0, e->no_overlap != 0, (int64_t)e->inputs,
                           e->fabric->places};
  uint64_t cuts = (uint64_t)(e->decomposition != NULL);
  ein_parts parts;
  EINI_TRY(eini_print_hash(al, g, eini_print_graph, &word[EINI_SAME_GRAPH]));
  for (int k = 0; k < (int)g->nstmt && e->decomposition != NULL; k++)
    if (ein_decomposition_parts(e->decomposition, k, &parts) == EIN_OK)
      cuts = eini_parts_hash(&parts, cuts);
  for (int t = 0; t < (int)g->ntensor && e->decomposition != NULL; t++)
    if (ein_decomposition_pin(e->decomposition, t, &parts) == EIN_OK)
      cuts = eini_parts_hash(&parts, cuts + (uint64_t)t);
  for (int k = 0; k < (int)g->nstmt && e->parts != NULL; k++)
    cuts = eini_parts_hash(&e->parts[k], cuts);
  for (int t = 0; t < (int)g->ntensor && e->parts != NULL && e->pins != NULL; t++)
    if (e->pins[t].ntask > 0) cuts = eini_parts_hash(&e->pins[t], cuts + (uint64_t)t);
  word[EINI_SAME_CUTS] = cuts;
  if (e->schedule != NULL)
    EINI_TRY(eini_print_hash(al, e->schedule, eini_print_schedule, &word[EINI_SAME_SCHEDULE]));
  word[EINI_SAME_DESC] = eini_hash(said, sizeof said, 1);
  return EIN_OK;
}

// Do all processes say the same? st: whether this one can say. what: for the message, per word.
static ein_status eini_dist_same(ein_ctx *ctx, const ein_fabric *f, ein_status st, int64_t n,
                                 uint64_t *word, const char *const *what) {
  int64_t first = n;
  if (f->same_fn == NULL || f->count == f->places) return st;
  if (st != EIN_OK) memset(word, 0, (size_t)n * sizeof *word);
  const ein_status failed = f->same_fn(f->user, n, word, &first);
  if (failed != EIN_OK) return failed;
  if (first == n && st == EIN_OK) return st;
  const ein_status all = eini_dist_agree(f, st);  // nobody goes on
  if (all != EIN_OK)
    return st != EIN_OK ? all : eini_dist_refuse(ctx, all, "another process: %s",
                                                 ein_status_text(all));
  return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "processes have different %s", what[first]);
}

// Checks what a plan is made of, on all processes.
static ein_status eini_dist_check_all(ein_ctx *ctx, const ein_graph *g, const ein_dist_desc *e) {
  static const char *const what[EINI_SAME_WORDS] = {
      "graphs, or sizes of them", "decompositions or parts", "schedules",
      "descriptions: blocks, no_overlap, inputs or places"};
  uint64_t word[EINI_SAME_WORDS] = {0, 0, 0, 0};
  eini_arena arena;  // for the allocator alone
  ein_status st = eini_dist_check(ctx, g, e);
  if (e->fabric == NULL || e->fabric->same_fn == NULL) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  if (st == EIN_OK) st = eini_dist_words(&arena.al, g, e, word);
  return eini_dist_same(ctx, e->fabric, st, EINI_SAME_WORDS, word, what);
}

EIN_API ein_status ein_dist_create(ein_ctx *ctx, const ein_graph *graph, const ein_dist_desc *desc,
                                   ein_dist **out) {
  ein_dist_desc none;
  eini_arena arena;
  memset(&none, 0, sizeof none);
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (desc == NULL) desc = &none;
  if (ein_decomposition_graph(desc->decomposition) != NULL && graph != NULL)
    graph = ein_decomposition_graph(desc->decomposition);
  eini_begin_call(ctx, NULL);
  ein_status st = eini_dist_check_all(ctx, graph, desc);
  if (st != EIN_OK) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_dist *d = EINI_NEW(&arena, ein_dist, 1);
  if (d == NULL)
    return desc->fabric == NULL ? EIN_ERR_NO_MEMORY
                                : eini_dist_agree(desc->fabric, EIN_ERR_NO_MEMORY);
  d->arena = arena;
  d->al = arena.al;
  d->g = desc->schedule != NULL && desc->schedule->of == graph ? desc->schedule->g : graph;
  d->desc = *desc;
  d->nstmt = (int)d->g->nstmt;
  eini_fabric_init(1, "serial", &d->fabric);
  if (desc->fabric != NULL) d->fabric = *desc->fabric;
  d->executor.width = 1;
  if (ctx != NULL) {
    d->executor = ctx->executor;
    d->now_fn = ctx->now_fn;
    d->now_user = ctx->now_user;
  }
  d->width = d->fabric.threads && d->executor.parallel_for != NULL ? d->executor.width : 1;
  if (d->width < 1 || !EINI_DIST_THREADS || eini_dist_clocked(d)) d->width = 1;
  st = eini_dist_build(ctx, d);
  eini_ctx_free(d->plans.ctx);
  d->plans.ctx = NULL;
  st = eini_dist_agree(&d->fabric, st);
  if (st == EIN_OK) st = d->steps != NULL ? eini_steps_groups_make(d) : eini_dist_groups_make(d);
  if (st != EIN_OK) {
    ein_dist_destroy(d);
    if (ctx != NULL && ctx->diag.count == 0)
      eini_dist_refuse(ctx, st, "%s", ein_status_text(st));
    return st;
  }
  eini_dist_exec x;
  eini_steps_exec y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  d->workspace = EINI_ALIGN + (d->steps != NULL ? eini_steps_layout(d, &y, NULL)
                                                : eini_dist_layout(d, &x, NULL));
  d->info.places = d->fabric.places;
  d->info.nstmt = d->nstmt;
  d->info.workspace_bytes = d->workspace;
  d->info.plan_bytes = d->arena.total;
  d->info.nplan = (int)d->plans.n;
  for (int i = 0; i < d->fabric.count; i++)
    d->info.peak_bytes = eini_max64(d->info.peak_bytes, d->peak[i]);
  *out = d;
  return EIN_OK;
}

EIN_API void ein_dist_destroy(ein_dist *d) {
  if (d == NULL) return;
  eini_arena arena = d->arena;
  eini_own_release(d);
  if (d->kept != NULL && *d->kept != NULL) d->al.free_fn(*d->kept, d->workspace, d->al.user);
  eini_block_plans_end(&d->plans);
  eini_arena_free(&arena);
}

EIN_API ein_status ein_dist_info_get(const ein_dist *d, ein_dist_info *info) {
  if (d == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = d->info;
  return EIN_OK;
}

EIN_API int64_t ein_dist_peak(const ein_dist *d, int place) {
  return d == NULL || !eini_dist_driven(d, place) ? 0 : d->peak[place - d->fabric.first];
}

EIN_API int64_t ein_dist_bytes(const ein_dist *d, int stmt) {
  return d == NULL || stmt < 0 || stmt >= d->nstmt ? 0 : d->stmt[stmt].bytes;
}

// The same under a schedule.
static ein_status eini_dist_step_block(const ein_dist *d, int t, int place, int64_t *origin,
                                       int64_t *extent, int64_t *elements) {
  int64_t lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], n;
  const int rank = d->g->tensor[t].rank;
  const char *why;
  if (rank > EINI_NAMES_MAX) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_steps_owned(d, t, place, lo, hi, &n, &why));
  if (why != NULL) return EIN_ERR_UNSUPPORTED;
  for (int r = 0; r < rank; r++) {
    if (origin != NULL) origin[r] = lo[r];
    if (extent != NULL) extent[r] = hi[r] - lo[r];
  }
  if (elements != NULL) *elements = n;
  return EIN_OK;
}

EIN_API ein_status ein_dist_block(const ein_dist *d, int tensor, int place, int64_t *origin,
                                  int64_t *extent, int64_t *elements) {
  if (d == NULL || tensor < 0 || tensor >= d->g->ntensor || place < 0 ||
      place >= d->fabric.places) return EIN_ERR_ARGUMENT;
  if (d->desc.schedule != NULL)
    return eini_dist_step_block(d, tensor, place, origin, extent, elements);
  if (eini_dist_not_boxes(d, tensor) != NULL) return EIN_ERR_UNSUPPORTED;
  const int there = eini_dist_owns(d, tensor, place);
  for (int r = 0; r < d->g->tensor[tensor].rank; r++) {
    int64_t lo = 0, hi = 0;
    if (there) eini_dist_own(d, tensor, place, r, &lo, &hi);
    if (origin != NULL) origin[r] = lo;
    if (extent != NULL) extent[r] = hi - lo;
  }
  if (elements != NULL) *elements = eini_dist_own_elements(d, tensor, place);
  return EIN_OK;
}

EIN_API size_t ein_dist_kernels(const ein_dist *d, int stmt, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  const eini_task *task;
  eini_task room;
  if (d == NULL || stmt < 0 || stmt >= d->nstmt) return 0;
  if (d->steps == NULL && d->stmt[stmt].nown < 1) return 0;
  const int64_t k = d->steps != NULL ? d->steps[stmt].plan - 1 : d->stmt[stmt].plan[0];
  const ein_plan *p = k < 0 || k >= d->plans.n ? NULL : d->plans.plan[k];
  for (int i = 0, n = 0; p != NULL && i < p->ntask; i++) {
    for (int j = 0; (task = eini_task_inner(&p->task[i], j, &room)) != NULL; j++) {
      if (n++ > 0) eini_say(&t, "\n");
      eini_say_kernel(&t, task);
    }
  }
  return t.at;
}

// ---- runs ----

static ein_status eini_dist_error(const ein_run *run, ein_status st, const char *what,
                                  const char *name) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s '%s'", what, name);
  return st;
}

// How many addresses a run binds for an input or output.
static int eini_dist_nbound(const ein_dist *d) { return d->desc.blocks ? d->fabric.count : 1; }

// The bytes of what a run binds as the i-th of a tensor: *a is their first; 0: there are none.
static int eini_dist_span(const ein_dist *d, const ein_run *run, int t, int i, uintptr_t *a,
                          uintptr_t *b) {
  const eini_dist_tensor *x = &d->tensor[t];
  int64_t lo = x->lo, hi = x->hi;
  if (x->port < 0) return 0;
  if (d->desc.blocks) {
    lo = 0;
    hi = d->steps != NULL ? d->home[(int64_t)t * d->fabric.count + i].bytes
                          : eini_dist_own_elements(d, t, d->fabric.first + i) *
                                (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
  }
  const uintptr_t p = (uintptr_t)eini_dist_bound(d, run, t, i);
  *a = p + (uintptr_t)lo;
  *b = p + (uintptr_t)hi;
  return lo != hi;
}

// Do the outputs overlap each other or inputs? By their address intervals.
static ein_status eini_dist_overlaps(const ein_dist *d, const ein_run *run) {
  const int64_t n = eini_dist_nbound(d);
  uintptr_t a, b, from, to;
  for (int64_t k = 0; k < d->g->ntensor * n; k++) {
    const int t = (int)(k / n);
    if (d->g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    if (!eini_dist_span(d, run, t, (int)(k % n), &a, &b)) continue;
    for (int64_t j = 0; j < d->g->ntensor * n; j++)
      if (j != k && eini_dist_span(d, run, (int)(j / n), (int)(j % n), &from, &to) && a < to &&
          from < b)
        return eini_dist_error(run, EIN_ERR_OVERLAP, "an output overlaps",
                               d->g->tensor[j / n].name);
  }
  return EIN_OK;
}

static ein_status eini_dist_check_run(const ein_dist *d, const ein_run *run) {
  uintptr_t a, b;
  if (d == NULL) return EIN_ERR_ARGUMENT;
  if (eini_dist_clocked(d)) return EIN_OK;  // nothing is bound
  const int n = eini_dist_nbound(d);
  EINI_TRY(eini_run_begin(run, d->nin * n, d->nout * n));
  for (int t = 0; t < d->g->ntensor; t++)
    for (int i = 0; i < n; i++)
      if (eini_dist_span(d, run, t, i, &a, &b) && eini_dist_bound(d, run, t, i) == NULL)
        return eini_dist_error(run, EIN_ERR_ARGUMENT, "no data for", d->g->tensor[t].name);
  EINI_TRY(eini_params_check(d->g, run));
  return eini_dist_overlaps(d, run);
}

// Base addresses of tensors and the values of params.
static void eini_dist_bind(eini_dist_exec *x, char *mem) {
  const ein_dist *d = x->d;
  for (int64_t t = 0; t < d->g->ntensor; t++) {
    const eini_dist_tensor *e = &d->tensor[t];
    x->base[t] = mem;  // empty tensors: addresses are formed
    if (e->port >= 0 && e->lo != e->hi) x->base[t] = eini_dist_bound(d, x->run, (int)t, 0);
    else if (e->item >= 0) x->base[t] = x->temp + d->item[e->item].at;
  }
  for (int i = 0; i < d->width; i++) {
    for (int64_t k = 0; k < d->g->nparam; k++) {
      int given = x->run->param != NULL && x->run->param[k].set;
      x->worker[i].param[k] = given ? x->run->param[k] : d->g->param[k].value;
    }
  }
}

static void eini_dist_stats_clear(ein_dist_stats *stats) {
  stats->tasks = stats->messages = stats->bytes = 0;
  stats->seconds = 0;
  for (int64_t k = 0; stats->stmt_bytes != NULL && k < stats->nstmt; k++) stats->stmt_bytes[k] = 0;
  for (int64_t q = 0; stats->place != NULL && q < stats->nplace; q++)
    memset(&stats->place[q], 0, sizeof *stats->place);
}

// Runs in `mem`.
static ein_status eini_dist_run(const ein_dist *d, const ein_run *run, ein_dist_stats *stats,
                                char *mem) {
  const uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  eini_dist_exec x;
  memset(&x, 0, sizeof x);
  x.d = d;
  x.run = run;
  x.stats = stats;
  eini_dist_layout(d, &x, mem + skew);
  if (!eini_dist_clocked(d)) eini_dist_bind(&x, mem + skew);
  x.flow.run_fn = eini_dist_job_run;
  x.flow.done_fn = eini_dist_job_done;
  x.flow.over_fn = eini_dist_job_over;
  x.flow.user = &x;
  const ein_status st = eini_own_end(d, eini_flow_all(&x.flow, &d->executor));
  for (int i = 0; i < d->width && x.worker[i].sent != NULL; i++)
    for (int q = 0; q < d->fabric.places; q++) eini_dist_sent(stats, q, x.worker[i].sent[q]);
  return eini_dist_failed(run, st, d->width, x.worker[0].error, sizeof *x.worker);
}

// The memory of a run: the caller's, or the plan's own, which it keeps where only one run at a time
// may be under way; *own: to be freed.
static ein_status eini_dist_room_of(const ein_dist *d, const ein_run *run, char **mem,
                                    char **own) {
  *mem = run == NULL ? NULL : (char *)run->workspace;
  if (*mem != NULL && run->workspace_bytes < d->workspace) return eini_run_small(run, d->workspace);
  if (*mem == NULL && d->kept != NULL) *mem = *d->kept;
  if (*mem != NULL) return EIN_OK;
  *mem = (char *)d->al.alloc_fn(d->workspace, EINI_ALIGN, d->al.user);
  if (d->kept != NULL) *d->kept = *mem;
  else *own = *mem;
  return *mem == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

EIN_API ein_status ein_dist_execute(const ein_dist *d, const ein_run *run, ein_dist_stats *stats) {
  ein_status st = eini_dist_check_run(d, run);
  char *mem = NULL, *own = NULL;
  eini_steps_exec x;
  if (d == NULL) return st;
  const ein_fabric *f = &d->fabric;
  const int64_t moved = d->copies != NULL ? d->copies->total : d->temp_bytes;
  if (stats != NULL) eini_dist_stats_clear(stats);
  if (st == EIN_OK) st = eini_dist_room_of(d, run, &mem, &own);
  if (st == EIN_OK) st = eini_own_hold(d);
  if (st == EIN_OK && d->steps != NULL) st = eini_steps_begin(d, run, mem, &x);
  if (st == EIN_OK && f->room_fn != NULL) st = f->room_fn(f->user, d->jobs.ntransfer, moved);
  st = eini_dist_agree(f, st);  // before anybody waits for a message
  if (st == EIN_OK)
    st = eini_dist_agree(f, d->steps != NULL ? eini_steps_run(&x, stats)
                                             : eini_dist_run(d, run, stats, mem));
  if (own != NULL) d->al.free_fn(own, d->workspace, d->al.user);
  return st;
}
