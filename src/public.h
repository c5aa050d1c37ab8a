// ================================================================================================
// >>public  plans, the cache behind ein_einsum, one-call interface
// Least recently used plans by key: the text (or labels), dtypes, shapes, strides and options. A
// key is a flat array of words, so that a lookup is one hash and one comparison.
// ================================================================================================

// Gives the plan to the caller when all went well.
static ein_status eini_plan_give(ein_ctx *ctx, ein_status st, ein_plan *p, ein_plan **plan) {
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *plan = p;
  else ein_plan_destroy(p);
  return st;
}

EIN_API ein_status ein_plan_create(ein_ctx *ctx, const ein_einsum_desc *desc, ein_plan **plan) {
  ein_plan *p = NULL;
  if (plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  ein_status st = eini_plan_within(ctx, desc, 0, &p);
  return eini_plan_give(ctx, st, p, plan);
}

EIN_API ein_status ein_plan_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                  const ein_binding *layout, const ein_options *options,
                                  ein_plan **plan) {
  ein_options o;
  ein_plan *p = NULL;
  if (plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  eini_begin_call(ctx, NULL);
  memset(&o, 0, sizeof o);
  if (options != NULL) o = *options;
  ein_status st = eini_validate_graph(ctx, graph, nlayout, layout, &o);
  if (st == EIN_OK) st = eini_graph_closed(eini_diag_of(ctx), graph);
  if (st == EIN_OK) o.deterministic |= graph->ordered;
  if (st == EIN_OK) st = eini_validate_options(eini_diag_of(ctx), &o);
  if (st == EIN_OK) st = eini_order_check(ctx, &o);
  if (st == EIN_OK) st = eini_overflow_options(eini_diag_of(ctx), &o);
  if (st == EIN_OK && o.memory > 0) {
    const eini_want want = {graph, NULL, nlayout, layout, o};
    st = eini_budget_plan(ctx, &want, &p);
  } else if (st == EIN_OK) {
    st = eini_graph_plan(ctx, graph, nlayout, layout, &o, &p);
  }
  return eini_plan_give(ctx, st, p, plan);
}

// The tensors of a statement and itself, in an empty graph.
static ein_status eini_graph_alone(ein_graph *g, const ein_graph *from, const eini_stmt *s) {
  int *at = EINI_NEW(&g->arena, int, from->ntensor);
  int *operand = EINI_NEW(&g->arena, int, s->noperand);
  if (at == NULL || operand == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k <= s->noperand; k++) {
    const int id = k < s->noperand ? s->operand[k] : s->out;
    const eini_tensor *x = &from->tensor[id];
    int made;
    if (at[id] == 0) {
      EINI_TRY(eini_graph_add_tensor(g, x->name, (int64_t)strlen(x->name),
                                     k < s->noperand ? EIN_ROLE_INPUT : EIN_ROLE_OUTPUT, x->dtype,
                                     x->rank, x->shape, &made));
      g->tensor[made].partial = x->partial;
      at[id] = made + 1;
    }
    if (k < s->noperand) operand[k] = at[id] - 1;
  }
  EINI_TRY(eini_graph_copy_names(g, from));
  return eini_stmt_copy(g, s, at[s->out] - 1, operand);
}

EIN_API ein_status ein_graph_statement(ein_ctx *ctx, const ein_graph *graph, int64_t i,
                                       ein_graph **alone) {
  if (alone == NULL) return EIN_ERR_ARGUMENT;
  *alone = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  if (st == EIN_OK && (i < 0 || i >= graph->nstmt))
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "there is no statement %lld",
                   (long long)i);
  const eini_stmt *s = st == EIN_OK ? &graph->stmt[i] : NULL;
  if (st == EIN_OK && (graph->tensor[s->out].nstmt > 1 || s->carry != NULL))
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_UNSUPPORTED, -1, 0, NULL,
                   "statement %lld defines a piece of '%.80s'", (long long)i,
                   graph->tensor[s->out].name);
  ein_graph *g = st == EIN_OK ? eini_graph_new(ctx) : NULL;
  if (st == EIN_OK && g == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_graph_alone(g, graph, s);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *alone = g;
  else eini_graph_free(g);
  return st;
}

EIN_API int64_t ein_graph_line(const ein_graph *g, int64_t i) {
  return g == NULL || i < 0 || i >= g->nstmt ? 0 : g->stmt[i].line;
}

EIN_API int64_t ein_graph_statements(const ein_graph *graph) {
  return graph == NULL ? 0 : graph->nstmt;
}

EIN_API ein_status ein_graph_deterministic(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_options *options, ein_graph **ordered) {
  ein_options o;
  ein_plan *p = NULL;
  if (ordered == NULL) return EIN_ERR_ARGUMENT;
  *ordered = NULL;
  eini_begin_call(ctx, NULL);
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  if (graph->open)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  EINI_TRY(eini_graph_closed(eini_diag_of(ctx), graph));
  memset(&o, 0, sizeof o);
  if (options != NULL) o = *options;
  o.deterministic = 1;
  ein_status st = eini_validate_options(eini_diag_of(ctx), &o);
  if (st == EIN_OK) st = eini_order_check(ctx, &o);
  if (st == EIN_OK) st = eini_plan_new(ctx, &p);
  if (st == EIN_OK) st = eini_graph_copy_head(p->graph, graph);
  if (st == EIN_OK) st = eini_plan_statements(ctx, p, graph, 0, NULL, &o);
  if (st == EIN_OK) {
    *ordered = p->graph;
    p->graph = NULL;
  }
  eini_fail_status(ctx, st);
  eini_plan_free(p);
  return st;
}

// ---- keys of calls ----

// What a call's plan depends on.
typedef struct eini_call_key {
  ein_allocator al;
  int64_t *word, n, cap;
} eini_call_key;

static void eini_key_free(eini_call_key *c) {
  if (c->word != NULL) c->al.free_fn(c->word, (size_t)c->cap * 8, c->al.user);
}

static ein_status eini_key_room(eini_call_key *c, int64_t more) {
  if (c->n + more <= c->cap) return EIN_OK;
  int64_t cap = eini_max64(2 * c->cap, c->n + more + 64);
  if (cap > (int64_t)1 << 40) return EIN_ERR_TOO_LARGE;
  int64_t *p = (int64_t *)c->al.alloc_fn((size_t)cap * 8, EINI_ALIGN, c->al.user);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  if (c->n > 0) memcpy(p, c->word, (size_t)c->n * 8);
  eini_key_free(c);
  c->word = p;
  c->cap = cap;
  return EIN_OK;
}

static ein_status eini_key_text(eini_call_key *c, const char *s) {
  size_t n = s == NULL ? 0 : strlen(s);
  EINI_TRY(eini_key_room(c, (int64_t)n / 8 + 2));
  c->word[c->n++] = s == NULL ? -1 : (int64_t)n;
  if (n == 0) return EIN_OK;
  c->word[c->n + (int64_t)(n - 1) / 8] = 0;
  memcpy(c->word + c->n, s, n);
  c->n += (int64_t)(n + 7) / 8;
  return EIN_OK;
}

// Strides of axes of extent 1 (or of empty views) do not matter and are left out.
static ein_status eini_key_view(eini_call_key *c, const ein_ztensor *v) {
  if (v == NULL) return eini_key_text(c, NULL);
  if (v->rank < 0 || (v->rank > 0 && v->shape == NULL)) return EIN_ERR_ARGUMENT;
  // The key does not tell the buffer.
  if (v->buffer_bytes > 0) EINI_TRY(eini_view_within(v, v->space));
  EINI_TRY(eini_key_room(c, 2 * (int64_t)v->rank + 1));
  int64_t *k = c->word + c->n;
  *k++ = (((int64_t)v->space << 32 | (int64_t)v->rank) << 8 | (int64_t)v->dtype) << 1 |
         (v->strides == NULL);
  for (int a = 0; a < v->rank; a++) *k++ = v->shape[a];
  for (int a = 0; v->strides != NULL && a < v->rank; a++)
    *k++ = v->shape[a] > 1 ? v->strides[a] : 0;
  c->n = k - c->word;
  return EIN_OK;
}

// d is normal and sane. What a plan depends on is in the key; what that does not hold was checked.
static ein_status eini_key_build(eini_call_key *c, const ein_einsum_desc *d) {
  const ein_options *o = &d->options;
  c->n = 0;
  EINI_TRY(eini_key_text(c, d->expr));
  for (int k = 0; d->expr == NULL && k <= d->nin; k++) {
    int n = d->labels[k] == NULL ? -1 : d->nlabels[k];
    EINI_TRY(eini_key_room(c, (int64_t)eini_max64(n, 0) + 2));
    if (k == 0) c->word[c->n++] = d->nin;
    c->word[c->n++] = n;
    for (int i = 0; i < n; i++) c->word[c->n++] = d->labels[k][i];
  }
  for (int k = 0; k < d->nin; k++) EINI_TRY(eini_key_view(c, &d->in[k]));
  EINI_TRY(eini_key_view(c, d->out));
  int plain = !d->alpha.set && !d->beta.set && d->conj == NULL && d->monoid == NULL &&
              d->map == NULL && o->path == NULL && o->seed == 0 && o->path_steps == 0 &&
              !(o->path_seconds > 0) && !o->deterministic && o->memory == 0 && !o->overflow_check &&
              o->variant == NULL && !o->ungrouped;
  EINI_TRY(eini_key_room(c, 4));
  c->word[c->n++] = plain | (int)d->rest << 1 | (int)o->goal << 4;
  if (plain) return EIN_OK;
  EINI_TRY(eini_key_view(c, d->c));
  EINI_TRY(eini_key_text(c, d->monoid));
  EINI_TRY(eini_key_text(c, d->map));
  EINI_TRY(eini_key_text(c, o->path));
  EINI_TRY(eini_key_text(c, o->variant));
  EINI_TRY(eini_key_room(c, (int64_t)d->nin + 11));
  c->word[c->n++] = d->alpha.set | d->beta.set << 1 | (d->conj != NULL) << 2;
  c->word[c->n++] = (int64_t)o->seed;
  c->word[c->n++] = o->path_steps;
  c->word[c->n++] = (o->deterministic != 0) | (o->overflow_check != 0) << 1 |
                    (o->ungrouped != 0) << 2;
  c->word[c->n++] = (int64_t)o->memory;
  c->word[c->n++] = (int64_t)o->reserved;
  memcpy(c->word + c->n++, &o->path_seconds, 8);
  for (int k = 0; d->conj != NULL && k < d->nin; k++) c->word[c->n++] = d->conj[k] != 0;
  return EIN_OK;
}

// ---- the cache ----

typedef struct eini_entry {
  uint64_t hash;
  int64_t *key;
  int64_t nkey, capkey;
  ein_plan *plan;
  uint64_t used;
} eini_entry;

struct eini_cache {
  int n, cap;
  eini_entry *entry;
  uint64_t clock;
  eini_call_key key;  // of the call at hand
  void *workspace;    // shared by the calls of one ctx
  size_t workspace_bytes;
};

static ein_status eini_cache_create(ein_ctx *ctx, int plans) {
  if (plans > 65536) plans = 65536;
  struct eini_cache *c = EINI_NEW(&ctx->arena, struct eini_cache, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->entry = EINI_NEW(&ctx->arena, eini_entry, plans);
  if (c->entry == NULL) return EIN_ERR_NO_MEMORY;
  c->cap = plans;
  c->key.al = ctx->al;
  ctx->cache = c;
  return EIN_OK;
}

static void eini_cache_clear(ein_ctx *ctx) {
  struct eini_cache *c = ctx->cache;
  for (int i = 0; c != NULL && i < c->n; i++) {
    ein_plan_destroy(c->entry[i].plan);
    ctx->al.free_fn(c->entry[i].key, (size_t)c->entry[i].capkey * 8, ctx->al.user);
  }
  if (c != NULL) c->n = 0;
}

static void eini_cache_destroy(ein_ctx *ctx) {
  struct eini_cache *c = ctx->cache;
  if (c == NULL) return;
  eini_cache_clear(ctx);
  eini_key_free(&c->key);
  if (c->workspace != NULL) ctx->al.free_fn(c->workspace, c->workspace_bytes, ctx->al.user);
  ctx->cache = NULL;
}

// ---- the store ----

// The machine whose records count, without what would break a line.
static ein_status eini_store_machine(ein_ctx *ctx, const char *machine) {
  const char *known = machine == NULL ? eini_ctx_machine(ctx) : machine;
  char width[32] = "";
  eini_text t = eini_text_of(width, sizeof width);
  if (machine == NULL && known[0] == 0) return EIN_OK;
  if (machine == NULL) eini_say(&t, ", width %d", ctx->executor.width);
  const size_t n = strlen(known), all = n + strlen(width);
  char *own = EINI_NEW(&ctx->arena, char, (int64_t)all + 1);
  if (own == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(own, known, n);
  memcpy(own + n, width, all - n + 1);
  ctx->machine = own[0] == 0 ? "-" : own;
  for (; *own != 0; own++)
    if ((unsigned char)*own < 32 || *own == 127) *own = '?';
  return EIN_OK;
}

EIN_API ein_status ein_ctx_store(ein_ctx *ctx, const char *text, size_t bytes) {
  eini_records *s = NULL;
  if (ctx == NULL || (text == NULL && bytes > 0)) return EIN_ERR_ARGUMENT;
  eini_diag_reset(&ctx->diag, NULL, 0);
  ein_status st = text == NULL ? EIN_OK : eini_store_new(&ctx->al, &s);
  if (st == EIN_OK && s != NULL) st = eini_store_text(s, text, bytes);
  if (st != EIN_OK) {
    eini_store_free(s);
    eini_fail_status(ctx, st);
    return st;
  }
  eini_cache_clear(ctx);
  eini_store_free(ctx->store);
  ctx->store = s;
  if (s != NULL && s->skipped > 0 && ctx->logger.log_fn != NULL) {
    char line[128];
    snprintf(line, sizeof line, "store: %lld lines are no records of this version, the first is "
             "line %lld", (long long)s->skipped, (long long)s->where);
    ctx->logger.log_fn(EIN_LOG_WARNING, line, ctx->logger.user);
  }
  return EIN_OK;
}

EIN_API int ein_ctx_store_info(const ein_ctx *ctx, ein_store_info *info) {
  if (ctx == NULL || info == NULL || ctx->store == NULL) return 0;
  const eini_records *s = ctx->store;
  info->records = s->nrecord;
  info->mine = 0;
  for (int64_t i = 0; i < s->nrecord; i++)
    info->mine += ctx->machine == NULL ||
                  strcmp(s->record[i].field[EINI_S_MACHINE], ctx->machine) == 0;
  info->skipped = s->skipped;
  info->line = s->where;
  info->machine = ctx->machine;
  return 1;
}

EIN_API ein_status ein_store_merge(ein_ctx *ctx, int n, const char *const *text,
                                   const size_t *bytes, char *buf, size_t size, size_t *length) {
  eini_records *s;
  if (n < 0 || (n > 0 && (text == NULL || bytes == NULL)) || length == NULL ||
      (buf == NULL && size > 0)) return EIN_ERR_ARGUMENT;
  ein_status st = eini_store_new(ctx == NULL ? NULL : &ctx->al, &s);
  for (int k = 0; k < n && st == EIN_OK; k++)
    if (bytes[k] > 0) st = text[k] == NULL ? EIN_ERR_ARGUMENT
                                           : eini_store_text(s, text[k], bytes[k]);
  if (st == EIN_OK) {
    eini_bytes t = {buf, size, 0};
    eini_store_print(s, &t);
    *length = t.at;
  }
  eini_store_free(s);
  return st;
}

EIN_API size_t ein_plan_store(const ein_plan *p, double seconds, double untuned, char *buf,
                              size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p == NULL || p->ntuned == 0 || !(seconds >= 0 && seconds < 1e8) ||
      !(untuned >= 0 && untuned < 1e8)) return 0;
  const eini_tuned *x = &p->tuned[p->ntuned - 1];
  if (p->ntuned > 1 && x->out != NULL) return 0;  // of statements without a form among others
  eini_say(&t, "%s\t%s\t%s\t", x->machine, x->own.form, x->own.dtypes);
  for (int i = 0; i < x->own.nindex; i++)
    eini_say(&t, "%s%lld", i > 0 ? "," : "", (long long)x->own.extent[i]);
  eini_say(&t, "%s\t%s\t%s\t%.0f\t%.0f\n", x->own.nindex == 0 ? "-" : "", x->path, x->variant,
           seconds * 1e9, untuned * 1e9);
  return t.at;
}

EIN_API size_t ein_plan_path(const ein_plan *p, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p != NULL && p->npath > 0 && p->path[0].first != NULL) eini_say_path(&t, &p->path[0]);
  return t.at;
}

EIN_API size_t ein_plan_variants(const ein_plan *p, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p != NULL && p->wanted != NULL) eini_say(&t, "%s", p->wanted->known);
  return t.at;
}

static eini_entry *eini_cache_find(struct eini_cache *c, uint64_t hash) {
  for (int i = 0; i < c->n; i++) {
    eini_entry *e = &c->entry[i];
    if (e->hash == hash && e->nkey == c->key.n &&
        memcmp(e->key, c->key.word, (size_t)c->key.n * 8) == 0) {
      e->used = ++c->clock;
      return e;
    }
  }
  return NULL;
}

// Keeps a plan under the key at hand; the key's memory moves into the entry.
static ein_status eini_cache_keep(ein_ctx *ctx, uint64_t hash, ein_plan *plan) {
  struct eini_cache *c = ctx->cache;
  eini_entry *e = &c->entry[0];
  int64_t *key =
      (int64_t *)ctx->al.alloc_fn((size_t)eini_max64(c->key.n, 1) * 8, EINI_ALIGN, ctx->al.user);
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(key, c->key.word, (size_t)c->key.n * 8);
  if (c->n < c->cap) {
    e = &c->entry[c->n++];
  } else {
    for (int i = 1; i < c->n; i++)
      if (c->entry[i].used < e->used) e = &c->entry[i];
    ein_plan_destroy(e->plan);
    ctx->al.free_fn(e->key, (size_t)e->capkey * 8, ctx->al.user);
  }
  e->hash = hash;
  e->key = key;
  e->nkey = c->key.n;
  e->capkey = eini_max64(c->key.n, 1);
  e->plan = plan;
  e->used = ++c->clock;
  return EIN_OK;
}

static ein_status eini_call_workspace(ein_ctx *ctx, const ein_plan *p, ein_run *run) {
  struct eini_cache *c = ctx->cache;
  if (p->workspace <= EINI_STACK_WORKSPACE) return EIN_OK;
  if (c->workspace_bytes < p->workspace) {
    size_t bytes = p->workspace + p->workspace / 4;
    if (c->workspace != NULL) ctx->al.free_fn(c->workspace, c->workspace_bytes, ctx->al.user);
    c->workspace_bytes = 0;
    c->workspace = ctx->al.alloc_fn(bytes, EINI_ALIGN, ctx->al.user);
    if (c->workspace == NULL) return EIN_ERR_NO_MEMORY;
    c->workspace_bytes = bytes;
  }
  run->workspace = c->workspace;
  run->workspace_bytes = c->workspace_bytes;
  return EIN_OK;
}

static ein_status eini_call_run(ein_ctx *ctx, const ein_einsum_desc *d, const ein_plan *p) {
  const void *few[16];
  const void **in = few;
  void *out[1];
  ein_scalar param[2];
  char message[256];
  ein_run run;
  memset(&run, 0, sizeof run);
  int n = p->info.nin;
  if (n > 16) {
    in = (const void **)p->al.alloc_fn((size_t)n * sizeof *in, EINI_ALIGN, p->al.user);
    if (in == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int k = 0; k < n; k++) in[k] = k < d->nin ? d->in[k].data : d->c->data;
  out[0] = d->out->data;
  int np = 0;
  if (d->alpha.set) param[np++] = d->alpha;
  if (d->beta.set) param[np++] = d->beta;
  run.in = in;
  run.out = out;
  run.param = param;
  run.error = message;
  run.error_bytes = sizeof message;
  message[0] = 0;
  ein_status st = EIN_OK;
  if (ctx != NULL && ctx->cache != NULL) st = eini_call_workspace(ctx, p, &run);
  if (st == EIN_OK) st = eini_execute(p, &run, 1);
  if (st != EIN_OK && ctx != NULL && message[0])
    eini_fail(&ctx->diag, st, -1, 0, NULL, "%s", message);
  if (n > 16) p->al.free_fn((void *)in, (size_t)n * sizeof *in, p->al.user);
  return st;
}

// May the key of the call be built? Whatever the key does not hold is checked here; what is wrong
// beyond that is in the key, and a wrong call never has a plan.
static int eini_key_sane(const ein_ctx *ctx, const ein_einsum_desc *d) {
  if (d == NULL || d->nin < 1 || d->in == NULL || d->out == NULL || (int)d->rest < 0 ||
      d->rest > EIN_REST_ACCUMULATE || eini_validate_options(NULL, &d->options) != EIN_OK ||
      (d->expr == NULL && (d->labels == NULL || d->nlabels == NULL)) || !eini_terms_fit(d)) {
    return 0;
  }
  for (int k = 0; k < d->nin + 2; k++) {
    const ein_ztensor *v = k < d->nin ? &d->in[k] : k == d->nin ? d->out : d->c;
    if (v == NULL || (k > d->nin && !d->beta.set)) continue;
    if (v->rank < 0 || (v->rank > 0 && v->shape == NULL)) return 0;
    if (v->space != 0 && v->space != eini_ctx_space(ctx)) return 0;
    if ((int)v->dtype < 0 || v->dtype >= EIN_DTYPE_COUNT) return 0;
    if ((v->buffer_bytes > 0 || v->buffer != NULL) && eini_view_within(v, v->space) != EIN_OK)
      return 0;
  }
  for (int k = 0; d->expr == NULL && k <= d->nin; k++)
    if (d->labels[k] != NULL ? d->nlabels[k] < 0 : k < d->nin) return 0;
  return 1;
}

// The plan of a call that was made before. What the key holds was valid then and is not checked
// again. *plan NULL: not there, or the call is wrong, which the full validation will say.
static ein_status eini_call_known(ein_ctx *ctx, const ein_einsum_desc *d, uint64_t *hash,
                                  const ein_plan **plan) {
  *plan = NULL;
  if (!eini_key_sane(ctx, d)) return EIN_OK;
  const ein_einsum_desc normal = eini_desc_normal(d);
  eini_call_key *key = &ctx->cache->key;
  EINI_TRY(eini_key_build(key, &normal));
  *hash = eini_hash(key->word, (size_t)key->n * 8, 0);
  const eini_entry *e = eini_cache_find(ctx->cache, *hash);
  if (e != NULL) *plan = e->plan;
  return EIN_OK;
}

EIN_API ein_status ein_einsum_ex(ein_ctx *ctx, const ein_einsum_desc *desc) {
  ein_einsum_desc once;
  uint64_t hash = 0;
  ein_plan *p = NULL;
  int kept = 0;
  const ein_plan *known = NULL;
  if (desc != NULL && desc->options.constant != NULL) {  // for one execution, of a plan or not
    once = *desc;
    once.options.constant = NULL;
    desc = &once;
  }
  if (ctx != NULL) eini_diag_reset(&ctx->diag, NULL, 0);
  ein_status st = EIN_OK;
  if (ctx != NULL && ctx->cache != NULL) st = eini_call_known(ctx, desc, &hash, &known);
  if (st == EIN_OK && known != NULL) st = eini_call_run(ctx, desc, known);
  if (st != EIN_OK || known != NULL) {
    eini_fail_status(ctx, st);
    return st;
  }
  st = eini_plan_within(ctx, desc, 1, &p);
  if (st == EIN_OK && ctx != NULL && ctx->cache != NULL) {
    st = eini_cache_keep(ctx, hash, p);  // under the key built above: what is wrong has no plan
    kept = st == EIN_OK;
  }
  if (st == EIN_OK) st = eini_call_run(ctx, desc, p);
  if (!kept) ein_plan_destroy(p);
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_einsum(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                              const ein_ztensor *out) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  d.out = out;
  return ein_einsum_ex(ctx, &d);
}

static ein_status eini_out_shape(eini_request *r, ein_graph *g, ein_ztensor *out, int64_t *shape,
                                 int max_rank) {
  EINI_TRY(eini_request_read(r, g));
  EINI_TRY(eini_request_dtype(r, g));
  memset(out, 0, sizeof *out);
  out->dtype = r->dtype;
  out->rank = r->rank;
  out->shape = shape;
  for (int a = 0; a < r->rank && a < max_rank; a++) shape[a] = r->shape[a];
  if (r->rank <= max_rank) return EIN_OK;
  return eini_fail(r->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the result has %d axes, room is for %d",
                   r->rank, max_rank);
}

EIN_API ein_status ein_einsum_out_ex(ein_ctx *ctx, const ein_einsum_desc *desc, ein_ztensor *out,
                                     int64_t *shape, int max_rank) {
  eini_begin_call(ctx, desc == NULL ? NULL : desc->expr);
  if (out == NULL || max_rank < 0 || (max_rank > 0 && shape == NULL)) return EIN_ERR_ARGUMENT;
  ein_status st = eini_validate_desc(ctx, desc, 0);
  if (st == EIN_OK) {
    ein_graph *g = eini_graph_new(ctx);
    eini_request r;
    memset(&r, 0, sizeof r);
    r.d = desc;
    r.ctx = ctx;
    r.diag = eini_diag_of(ctx);
    st = g == NULL ? EIN_ERR_NO_MEMORY : eini_out_shape(&r, g, out, shape, max_rank);
    eini_graph_free(g);
  }
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_einsum_out(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                                  ein_ztensor *out, int64_t *shape, int max_rank) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  return ein_einsum_out_ex(ctx, &d, out, shape, max_rank);
}
