// ================================================================================================
// >>batch  calls that run together
// Takes einsum calls one after another; gives stages of calls that do not wait for each other, each
// a plan of all their statements, in which those of one form are one task.
// ================================================================================================

typedef struct eini_batch_call {
  ein_einsum_desc d;           // in[nin]: the output
  eini_port *port;             // per operand, and of the output
  int kind, stage;
} eini_batch_call;

typedef struct eini_batch_kind {  // calls of one text, dtypes, shapes and strides
  ein_plan *plan;              // with the statements of them
  int *view;                   // per tensor: operand, or the number of operands; -1: of none
} eini_batch_kind;

typedef struct eini_batch_stage {
  int depth, unsplit;          // calls of one stage agree in both
  ein_plan *plan;
  const ein_ztensor **view;    // per tensor, while it is made
  int64_t nview, capview;
  ein_run run;
  eini_ports ports;            // which of its outputs overlap inputs: addresses stay
} eini_batch_stage;

struct ein_batch {
  eini_arena arena;            // of calls
  eini_arena run;              // of stages
  eini_arena seen;             // of kinds, which stay when a call is not taken
  ein_ctx *ctx;
  eini_call_key key;           // of the call at hand
  eini_keys keys;
  eini_batch_kind *kind;       // per key
  int64_t nkind, capkind;
  eini_batch_call *call;
  int64_t ncall, capcall;
  eini_batch_stage *stage;
  int64_t nstage, capstage;
  int made;                    // stages are those of all calls
  void *workspace;
  size_t workspace_bytes;
};

EIN_API ein_status ein_batch_create(ein_ctx *ctx, ein_batch **batch) {
  eini_arena arena;
  if (batch == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_batch *b = *batch = EINI_NEW(&arena, ein_batch, 1);
  if (b == NULL) eini_fail_status(ctx, EIN_ERR_NO_MEMORY);
  if (b == NULL) return EIN_ERR_NO_MEMORY;
  b->arena = arena;
  b->key.al = arena.al;
  b->ctx = ctx;
  eini_arena_init(&b->run, &arena.al);
  eini_arena_init(&b->seen, &arena.al);
  return EIN_OK;
}

// Forgets the stages.
static void eini_batch_undo(ein_batch *b) {
  for (int64_t i = 0; i < b->nstage; i++) eini_plan_free(b->stage[i].plan);
  if (b->workspace != NULL) b->arena.al.free_fn(b->workspace, b->workspace_bytes, b->arena.al.user);
  eini_arena_free(&b->run);
  eini_arena_init(&b->run, &b->arena.al);
  b->stage = NULL;
  b->nstage = b->capstage = 0;
  b->workspace = NULL;
  b->workspace_bytes = 0;
  b->made = 0;
}

EIN_API void ein_batch_destroy(ein_batch *b) {
  if (b == NULL) return;
  eini_batch_undo(b);
  for (int64_t i = 0; i < b->nkind; i++) eini_plan_free(b->kind[i].plan);
  eini_key_free(&b->key);
  eini_arena_free(&b->seen);
  eini_arena arena = b->arena;  // it lives in its own arena
  eini_arena_free(&arena);
}

// ---- calls ----

static void eini_batch_where(ein_batch *b, int64_t call) {
  eini_begin_call(b->ctx, call < b->ncall ? b->call[call].d.expr : NULL);
  if (b->ctx != NULL)
    snprintf(b->ctx->diag.where, sizeof b->ctx->diag.where, "call %lld: ", (long long)call);
}

// The statements of a call, in a graph of their own.
static ein_status eini_batch_graph(ein_batch *b, const eini_batch_call *c, eini_batch_kind *kind) {
  eini_request r;
  memset(&r, 0, sizeof r);
  r.d = &c->d;
  r.ctx = b->ctx;
  r.diag = eini_diag_of(b->ctx);
  EINI_TRY(eini_plan_new(b->ctx, &kind->plan));
  ein_plan *p = kind->plan;
  const int64_t room = 8 * (int64_t)c->d.nin + 16;
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, room);
  kind->view = EINI_NEW(&p->arena, int, room);
  if (view == NULL || kind->view == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_request_graph(&r, p, view));
  if (p->graph->ntensor > room) return EIN_ERR_INTERNAL;
  for (int64_t t = 0; t < p->graph->ntensor; t++)
    kind->view[t] = view[t] == NULL ? -1 : (int)(view[t] - c->d.in);
  return eini_graph_lowers(p->graph, r.diag);
}

// The kind of a call, made where it is the first of it.
static ein_status eini_batch_kind_of(ein_batch *b, eini_batch_call *c) {
  EINI_TRY(eini_key_build(&b->key, &c->d));
  eini_batch_kind *kind = (eini_batch_kind *)eini_grow(&b->seen, b->kind, b->nkind, &b->capkind,
                                                       sizeof *kind);
  if (kind == NULL) return EIN_ERR_NO_MEMORY;
  b->kind = kind;
  const int64_t at = eini_key_number(&b->seen, &b->keys, b->key.word, b->key.n);
  if (at < 0) return EIN_ERR_NO_MEMORY;
  kind += at;
  if (at == b->nkind) memset(&b->kind[b->nkind++], 0, sizeof *kind);
  c->kind = (int)at;
  if (kind->plan != NULL) return EIN_OK;
  const ein_status st = eini_batch_graph(b, c, kind);
  if (st != EIN_OK) eini_plan_free(kind->plan);
  if (st != EIN_OK) kind->plan = NULL;
  return st;
}

static ein_status eini_batch_view(ein_batch *b, const ein_ztensor *from, ein_ztensor *to) {
  int64_t *dims = EINI_NEW(&b->arena, int64_t, 2 * (int64_t)from->rank), count;
  const int64_t *dense;
  if (dims == NULL) return EIN_ERR_NO_MEMORY;
  *to = *from;
  if (from->rank > 0) memcpy(dims, from->shape, (size_t)from->rank * sizeof *dims);
  EINI_TRY(eini_dense_strides(&b->arena, from->rank, dims, NULL, &dense, &count));
  if (from->strides != NULL) dense = from->strides;
  if (from->rank > 0) memcpy(dims + from->rank, dense, (size_t)from->rank * sizeof *dims);
  to->shape = dims;
  to->strides = dims + from->rank;
  return EIN_OK;
}

// Where a call reads and writes.
static ein_status eini_batch_ports(ein_batch *b, eini_batch_call *c) {
  c->port = EINI_NEW(&b->arena, eini_port, (int64_t)c->d.nin + 1);
  if (c->port == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k <= c->d.nin; k++) {
    const ein_ztensor *v = &c->d.in[k];
    eini_tensor t;
    memset(&t, 0, sizeof t);
    t.dtype = v->dtype;
    t.rank = v->rank;
    t.shape = (int64_t *)(size_t)v->shape;
    EINI_TRY(eini_port_init(&b->arena, &t, v, &c->port[k]));
    if (v->data == NULL && c->port[k].lo != c->port[k].hi)
      return eini_fail(eini_diag_of(b->ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "no data for %s %d",
                       k < c->d.nin ? "operand" : "the output, view", k);
  }
  return EIN_OK;
}

static ein_status eini_batch_take(ein_batch *b, const ein_einsum_desc *d) {
  EINI_TRY(eini_validate_desc(b->ctx, d, 1));
  for (int k = 0; k <= d->nin; k++)
    if ((k < d->nin ? d->in[k] : *d->out).space != 0)
      return eini_fail_space(eini_diag_of(b->ctx), k < d->nin ? &d->in[k] : d->out, "a view");
  eini_batch_call *c = (eini_batch_call *)eini_grow(&b->arena, b->call, b->ncall, &b->capcall,
                                                    sizeof *c);
  ein_ztensor *v = EINI_NEW(&b->arena, ein_ztensor, (int64_t)d->nin + 1);
  char *expr = eini_strndup(&b->arena, d->expr, (int64_t)strlen(d->expr));
  if (c == NULL || v == NULL || expr == NULL) return EIN_ERR_NO_MEMORY;
  b->call = c;
  c += b->ncall;
  memset(c, 0, sizeof *c);
  for (int k = 0; k <= d->nin; k++)
    EINI_TRY(eini_batch_view(b, k < d->nin ? &d->in[k] : d->out, &v[k]));
  c->d.expr = expr;
  c->d.nin = d->nin;
  c->d.in = v;
  c->d.out = &v[d->nin];
  EINI_TRY(eini_batch_ports(b, c));
  return eini_batch_kind_of(b, c);
}

EIN_API ein_status ein_batch_add(ein_batch *b, const char *expr, int nin, const ein_ztensor *in,
                                 const ein_ztensor *out) {
  ein_einsum_desc d;
  if (b == NULL) return EIN_ERR_ARGUMENT;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  d.out = out;
  eini_batch_undo(b);
  eini_batch_where(b, b->ncall);
  if (b->ctx != NULL && expr != NULL)
    eini_diag_text(&b->ctx->diag, expr, (int64_t)strlen(expr));
  const eini_arena_at at = eini_arena_mark(&b->arena);
  const int64_t cap = b->capcall;
  eini_batch_call *call = b->call;
  const ein_status st = eini_batch_take(b, &d);
  eini_fail_status(b->ctx, st);
  if (st == EIN_OK) b->ncall++;
  if (st == EIN_OK) return st;
  b->call = call;
  b->capcall = cap;
  eini_arena_rollback(&b->arena, &at);
  return st;
}

// ---- stages ----

// What a call waits for: earlier ones that it meets, in lists.
typedef struct eini_batch_wait { int call, next; } eini_batch_wait;

typedef struct eini_batch_waits {
  const ein_batch *b;
  eini_arena *a;
  int *call, *operand;         // of each interval; what is read first, then every call's output
  int *first;                  // per call: its list, + 1
  eini_batch_wait *list;
  int64_t n, cap;
} eini_batch_waits;

static ein_status eini_batch_meet(void *user, int w, int i) {
  eini_batch_waits *x = (eini_batch_waits *)user;
  const eini_batch_call *c = &x->b->call[x->call[w]], *e = &x->b->call[x->call[i]];
  const int co = x->operand[w], eo = x->operand[i];
  if (c == e || !eini_ports_overlap(&c->port[co], (const char *)c->d.in[co].data, &e->port[eo],
                                    (const char *)e->d.in[eo].data))
    return EIN_OK;
  eini_batch_wait *list = (eini_batch_wait *)eini_grow(x->a, x->list, x->n, &x->cap, sizeof *list);
  if (list == NULL || x->n >= INT32_MAX) return EIN_ERR_NO_MEMORY;
  x->list = list;
  const int later = c > e ? x->call[w] : x->call[i], earlier = c > e ? x->call[i] : x->call[w];
  list[x->n].call = earlier;
  list[x->n].next = x->first[later];
  x->first[later] = (int)++x->n;
  return EIN_OK;
}

// Finds what every call waits for.
static ein_status eini_batch_wait_for(const ein_batch *b, eini_arena *a, eini_batch_waits *x) {
  int64_t n = 0;
  eini_sweep s;
  memset(x, 0, sizeof *x);
  memset(&s, 0, sizeof s);
  for (int64_t i = 0; i < b->ncall; i++) n += (int64_t)b->call[i].d.nin + 1;
  if (n > INT32_MAX / 4) return EIN_ERR_TOO_LARGE;
  x->b = b, x->a = a;
  x->call = EINI_NEW(a, int, 4 * n);
  x->first = EINI_NEW(a, int, b->ncall);
  s.lo = EINI_NEW(a, uintptr_t, 2 * n);
  if (x->call == NULL || x->first == NULL || s.lo == NULL) return EIN_ERR_NO_MEMORY;
  x->operand = x->call + n, s.list = x->call + 2 * n;
  s.hi = s.lo + n;
  s.n = (int)n, s.nread = (int)(n - b->ncall);
  s.meet_fn = eini_batch_meet;
  s.user = x;
  int read = 0;
  for (int64_t i = 0; i < b->ncall; i++) {
    const eini_batch_call *c = &b->call[i];
    for (int k = 0; k <= c->d.nin; k++) {
      const int at = k < c->d.nin ? read++ : s.nread + (int)i;
      x->call[at] = (int)i, x->operand[at] = k;
      s.lo[at] = (uintptr_t)c->d.in[k].data + (uintptr_t)c->port[k].lo;
      s.hi[at] = (uintptr_t)c->d.in[k].data + (uintptr_t)c->port[k].hi;
    }
  }
  return eini_sweep_run(&s);
}

static ein_status eini_batch_stage_of(ein_batch *b, int depth, int unsplit, int *at) {
  for (*at = 0; *at < b->nstage; ++*at)
    if (b->stage[*at].depth == depth && b->stage[*at].unsplit == unsplit) return EIN_OK;
  eini_batch_stage *s = (eini_batch_stage *)eini_grow(&b->run, b->stage, b->nstage, &b->capstage,
                                                      sizeof *s);
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  b->stage = s;
  s += b->nstage;
  memset(s, 0, sizeof *s);
  s->depth = depth;
  s->unsplit = unsplit;
  EINI_TRY(eini_plan_new(b->ctx, &s->plan));
  b->nstage++;
  s->plan->unsplit = unsplit;
  s->plan->may_overlap = s->plan->rows = s->plan->together = 1;
  return EIN_OK;
}

// Tensor t of a call's graph in the plan of its stage; views that are the same are one tensor.
static ein_status eini_batch_tensor(ein_batch *b, eini_batch_stage *s, eini_keys *seen,
                                    int64_t call, const eini_tensor *t, const ein_ztensor *v,
                                    int *id) {
  char name[64];
  int n = snprintf(name, sizeof name, "call %lld %s", (long long)call, t->name);
  int64_t *key = EINI_NEW(&b->run, int64_t, 3 + 2 * (int64_t)t->rank);
  const ein_ztensor **view = (const ein_ztensor **)eini_grow(&b->run, s->view, s->nview,
                                                             &s->capview, sizeof *view);
  if (key == NULL || view == NULL) return EIN_ERR_NO_MEMORY;
  s->view = view;
  key[0] = t->role == EIN_ROLE_INPUT ? (int64_t)t->dtype : -1 - s->nview;
  if (key[0] >= 0) {
    key[1] = (int64_t)(uintptr_t)v->data;
    for (int r = 0; r < t->rank; r++) key[2 + 2 * r] = v->shape[r], key[3 + 2 * r] = v->strides[r];
  }
  const int64_t known = seen->n, at = eini_key_number(&b->run, seen, key, 2 + 2 * (int64_t)t->rank);
  if (at < 0) return EIN_ERR_NO_MEMORY;
  *id = (int)at;
  if (at < known) return EIN_OK;
  EINI_TRY(eini_graph_add_tensor(s->plan->graph, name, n, t->role, t->dtype, t->rank, t->shape,
                                 id));
  s->plan->graph->tensor[*id].partial = t->partial;
  s->view[s->nview++] = v;
  return *id == at ? EIN_OK : EIN_ERR_INTERNAL;
}

// Appends the statements of a call to the plan of its stage.
static ein_status eini_batch_append(ein_batch *b, int64_t call, eini_keys *seen) {
  const eini_batch_call *c = &b->call[call];
  const eini_batch_kind *kind = &b->kind[c->kind];
  eini_batch_stage *s = &b->stage[c->stage];
  const ein_graph *g = kind->plan->graph;
  int *id = EINI_NEW(&b->run, int, g->ntensor);
  if (id == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++)
    EINI_TRY(eini_batch_tensor(b, s, seen, call, &g->tensor[t],
                               kind->view[t] < 0 ? NULL : &c->d.in[kind->view[t]], &id[t]));
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *x = &g->stmt[i];
    int *operand = EINI_NEW(&b->run, int, x->noperand);
    if (operand == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < x->noperand; k++) operand[k] = id[x->operand[k]];
    EINI_TRY(eini_stmt_copy(s->plan->graph, x, id[x->out], operand));
  }
  s->plan->info.flops += kind->plan->info.flops;
  s->plan->info.naive_flops += kind->plan->info.naive_flops;
  return EIN_OK;
}

static ein_status eini_batch_stage_plan(ein_batch *b, eini_batch_stage *s) {
  ein_plan *p = s->plan;
  const int64_t nt = p->graph->ntensor;
  const ein_ztensor **view = EINI_NEW(&b->run, const ein_ztensor *, 4 * nt + 64);
  int in = 0, out = 0;
  const void **from = EINI_NEW(&b->run, const void *, nt);
  void **to = EINI_NEW(&b->run, void *, nt);
  if (view == NULL || from == NULL || to == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < nt; t++) {
    const ein_role role = p->graph->tensor[t].role;
    view[t] = s->view[t];
    if (role == EIN_ROLE_INPUT) from[in++] = view[t]->data;
    if (role == EIN_ROLE_OUTPUT) to[out++] = view[t]->data;
  }
  EINI_TRY(eini_plan_build(p, 0, NULL, view));
  s->run.in = from;
  s->run.out = to;
  s->ports.p = p;
  s->ports.run = &s->run;
  EINI_TRY(eini_exec_overlap(&s->ports));
  if (ein_plan_workspace(p) > b->workspace_bytes) b->workspace_bytes = ein_plan_workspace(p);
  return p->graph->ntensor <= 4 * nt + 64 ? EIN_OK : EIN_ERR_INTERNAL;
}

// The stage of every call: behind those of the calls it waits for.
static ein_status eini_batch_depths(ein_batch *b, eini_arena *a) {
  eini_batch_waits x;
  EINI_TRY(eini_batch_wait_for(b, a, &x));
  for (int64_t i = 0; i < b->ncall; i++) {
    eini_batch_call *c = &b->call[i];
    int depth = 0;
    for (int w = x.first[i]; w > 0; w = x.list[w - 1].next) {
      const int d = b->stage[b->call[x.list[w - 1].call].stage].depth;
      if (d >= depth) depth = d + 1;
    }
    EINI_TRY(eini_batch_stage_of(b, depth, b->kind[c->kind].plan->unsplit, &c->stage));
  }
  return EIN_OK;
}

static ein_status eini_batch_make(ein_batch *b) {
  eini_arena scratch;
  eini_arena_init(&scratch, &b->arena.al);
  const ein_status st = eini_batch_depths(b, &scratch);
  eini_arena_free(&scratch);
  if (st != EIN_OK) return st;
  eini_keys *seen = EINI_NEW(&b->run, eini_keys, b->nstage);
  if (seen == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < b->ncall; i++) {
    eini_batch_where(b, i);
    EINI_TRY(eini_batch_append(b, i, &seen[b->call[i].stage]));
  }
  eini_begin_call(b->ctx, NULL);
  b->workspace_bytes = EINI_ALIGN;
  for (int64_t i = 0; i < b->nstage; i++) EINI_TRY(eini_batch_stage_plan(b, &b->stage[i]));
  b->workspace = b->arena.al.alloc_fn(b->workspace_bytes, EINI_ALIGN, b->arena.al.user);
  return b->workspace == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Stages by depth; those of one depth as they come.
static ein_status eini_batch_stages(ein_batch *b) {
  char message[256];
  int last = -1;
  message[0] = 0;
  for (int64_t i = 0; i < b->nstage; i++)
    last = last > b->stage[i].depth ? last : b->stage[i].depth;
  for (int depth = 0; depth <= last; depth++) {
    for (int64_t i = 0; i < b->nstage; i++) {
      eini_batch_stage *s = &b->stage[i];
      if (s->depth != depth) continue;
      s->run.workspace = b->workspace;
      s->run.workspace_bytes = b->workspace_bytes;
      s->run.error = message;
      s->run.error_bytes = sizeof message;
      s->ports.ticket = NULL;
      s->ports.later = 0;
      const ein_status st = eini_execute_at(s->ports.p, &s->run, &s->ports, 1, NULL);
      if (st != EIN_OK && message[0])
        return eini_fail(eini_diag_of(b->ctx), st, -1, 0, NULL, "%s", message);
      if (st != EIN_OK) return st;
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_batch_run(ein_batch *b) {
  if (b == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(b->ctx, NULL);
  ein_status st = EIN_OK;
  if (!b->made) {
    st = eini_batch_make(b);
    if (st != EIN_OK) eini_fail_status(b->ctx, st);
    if (st != EIN_OK) eini_batch_undo(b);
    if (st != EIN_OK) return st;
    b->made = 1;
  }
  st = eini_batch_stages(b);
  eini_fail_status(b->ctx, st);
  return st;
}

EIN_API size_t ein_batch_explain(const ein_batch *b, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  for (int64_t i = 0; b != NULL && i < b->nstage; i++) {
    const size_t room = t.at < size ? size - t.at : 0;
    t.at += ein_plan_explain(b->stage[i].plan, room > 0 ? buf + t.at : NULL, room);
  }
  return t.at;
}
