// ================================================================================================
// >>context  what a caller sets up once
// Owns the error records, registered functions and monoids, and the plan cache. Used by one thread
// at a time.
// ================================================================================================

struct eini_cache;
struct eini_records;
#define EINI_BACKENDS 3  // that a macro brings in and a ctx can use

struct ein_ctx {
  eini_arena arena;        // the ctx itself, registrations, error buffers
  ein_allocator al;
  ein_logger logger;
  ein_executor executor;
  int nkernels;
  const ein_kernels **kernels;
  int rated;               // 1: rates were given
  ein_rates given;
  ein_rates rates;         // those, as one of the ctx's threads has them beside the others
  double (*now_fn)(void *user);
  void *now_user;
  eini_diag diag;
  ein_function *function;
  const ein_operator **block;  // see ein_graph
  int64_t nfunction, capfunction, capblock;
  ein_monoid *monoid;
  int64_t nmonoid, capmonoid;
  struct eini_cache *cache;
  struct eini_records *store;  // what was tuned, or NULL
  const char *machine;     // that it is asked for, or NULL
  void *backend[EINI_BACKENDS];  // those that were brought in, ended with the ctx; NULL: none
};

// A ctx without backends and without a cache.
static ein_status eini_ctx_new(const ein_ctx_desc *desc, ein_ctx **out) {
  eini_arena arena;
  int use = 0, room = 0;
  eini_arena_init(&arena, desc == NULL ? NULL : &desc->allocator);
  ein_ctx *c = EINI_NEW(&arena, ein_ctx, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->al = arena.al;
  if (desc != NULL) {
    c->logger = desc->logger;
    c->executor = desc->executor;
    c->now_fn = desc->now_fn;
    c->now_user = desc->now_user;
    room = (int)(sizeof desc->use / sizeof *desc->use);
    use = desc->nuse < 0 ? 0 : desc->nuse > room ? room : desc->nuse;
    c->nkernels = desc->nkernels < 0 || desc->kernels == NULL ? 0 : desc->nkernels;
    c->nkernels += use;
  }
  c->kernels = EINI_NEW(&arena, const ein_kernels *, c->nkernels);
  if (c->kernels == NULL) c->nkernels = 0;
  for (int i = 0; i < c->nkernels; i++)
    c->kernels[i] = i < use ? desc->use[i] : desc->kernels[i - use];
  if (c->executor.parallel_for == NULL || c->executor.width < 1) c->executor.width = 1;
  c->diag.error = EINI_NEW(&arena, ein_error, EINI_ERRORS_MAX);
  c->diag.buf = EINI_NEW(&arena, char, EINI_ERROR_TEXT);
  c->arena = arena;
  if (c->diag.error == NULL || c->diag.buf == NULL || c->kernels == NULL) {
    eini_arena_free(&arena);
    return EIN_ERR_NO_MEMORY;
  }
  eini_diag_reset(&c->diag, NULL, 0);
  *out = c;
  return EIN_OK;
}

// The memory space of its providers that are not of the host's, 0: none.
static int eini_ctx_space(const ein_ctx *ctx) {
  for (int i = 0; ctx != NULL && i < ctx->nkernels; i++)
    if (ctx->kernels[i]->memory != NULL) return ctx->kernels[i]->memory->space;
  return 0;
}

static void eini_ctx_free(ein_ctx *ctx) {
  if (ctx == NULL) return;
  eini_arena arena = ctx->arena;
  eini_arena_free(&arena);
}

EIN_API int ein_ctx_errors(const ein_ctx *ctx) { return ctx == NULL ? 0 : ctx->diag.count; }

EIN_API const ein_error *ein_ctx_error(const ein_ctx *ctx, int i) {
  return ctx == NULL || i < 0 || i >= ctx->diag.count ? NULL : &ctx->diag.error[i];
}

EIN_API const char *ein_ctx_message(const ein_ctx *ctx) {
  return ctx == NULL ? "" : eini_diag_message(&ctx->diag);
}

static int eini_is_name(const char *s) {
  if (s == NULL || !s[0] || (s[0] >= '0' && s[0] <= '9')) return 0;
  for (int64_t n = (int64_t)strlen(s), used; n > 0; n -= used, s += used) {
    int64_t c = eini_utf8(s, n, &used);
    if (!((c >= '0' && c <= '9') || c == '_' || eini_is_label(c))) return 0;
  }
  return 1;
}

typedef enum eini_word_kind {  // what a name means to the language
  EINI_W_FREE, EINI_W_OP, EINI_W_FOLD, EINI_W_NORM, EINI_W_MONOID, EINI_W_FUNCTION,
  EINI_W_BLOCK, EINI_W_MACRO, EINI_W_CAST, EINI_W_DTYPE, EINI_W_WORD
} eini_word_kind;

static int eini_word_is(const char *s, int64_t n, const char *word) {
  return (int64_t)strlen(word) == n && memcmp(s, word, (size_t)n) == 0;
}

// Macros as text in the language: parameters; names that are defined, a number when no argument is,
// else stored; what the macro is. Its folds are over the indices of the call.
static const struct {
  const char *name;
  int least, most;        // arguments
  const char *text;
} eini_macros[] = {
    {"softmax", 1, 1, "x; e = exp(x - max[j](x)); e/sum[j](e)"},
    {"logsoftmax", 1, 1, "x; d = x - max[j](x); d - log(sum[j](exp(d)))"},
    {"layernorm", 3, 4, "x, g, b, eps; eps = 1e-5; (x - mean[j](x))/sqrt(var[j](x) + eps)*g + b"},
    {"rmsnorm", 2, 3, "x, g, eps; eps = 1e-6; x*rsqrt(mean[j](x^2) + eps)*g"},
    {"norm", 1, 1, "x; sqrt(sum[j](abs(x)^2))"}};  // a fold: its indices are its own

#define EINI_MACRO_NORM 4

// The i-th word with a meaning, its class and number; NULL after the last, "" for a gap. g holds
// the registered functions and monoids.
static const char *eini_known_word(const ein_graph *g, int i, int *cls, int *id) {
  static const char *const words[] = {
      "input", "param", "output", "def", "grad", "wrt", "as", "seed", "and", "or", "not", "inf",
      "nan", "pi", "true", "false", "size", "wrap", "clamp", "reflect", "for"};
  static const int classes[] = {EINI_W_FOLD, EINI_W_OP, EINI_W_MACRO, EINI_W_NORM, EINI_W_DTYPE,
                                EINI_W_FUNCTION, EINI_W_MONOID, EINI_W_WORD};
  const int count[] = {EIN_FOLD_BLOCK, EIN_OP_COUNT, EINI_MACRO_NORM, 1, EIN_DTYPE_COUNT,
                       g->nfunction, g->nmonoid, 21};
  int k = 0;
  for (; k < 8 && i >= count[k]; k++) i -= count[k];
  *cls = k < 8 ? classes[k] : EINI_W_FREE;
  if (*cls == EINI_W_FUNCTION && g->block[i] != NULL) *cls = EINI_W_BLOCK;
  *id = i;
  return k == 0 ? (i == EIN_FOLD_NONE ? "" : eini_folds[i].name) : k == 1 ? eini_ops[i].name :
         k <= 3 ? eini_macros[k == 2 ? i : EINI_MACRO_NORM].name :
         k == 4 ? (i == 0 ? "" : eini_dtypes[i].name) : k == 5 ? g->function[i].name :
         k == 6 ? g->monoid[i].name : k == 7 ? words[i] : NULL;
}

// What the language itself, or a registration, means by a name; *id says which one.
static int eini_word_class(const ein_graph *g, const char *s, int64_t n, int *id) {
  int cls, cast = n > 5 && memcmp(s, "cast_", 5) == 0 ? 5 : 0;
  const char *word;
  for (int i = 0; (word = eini_known_word(g, i, &cls, id)) != NULL; i++) {
    if (n > 0 && eini_word_is(s, n, word)) return cls;
    if (cast && cls == EINI_W_DTYPE && eini_word_is(s + 5, n - 5, word)) return EINI_W_CAST;
  }
  return EINI_W_FREE;
}

static ein_status eini_check_new_name(ein_ctx *ctx, const char *name) {
  eini_diag_reset(&ctx->diag, NULL, 0);
  if (!eini_is_name(name))
    return eini_fail(&ctx->diag, EIN_ERR_NAME, -1, 0, NULL, "'%s' is not a name",
                     name == NULL ? "" : name);
  ein_graph g;
  int id;
  memset(&g, 0, sizeof g);
  g.function = ctx->function;
  g.block = ctx->block;
  g.nfunction = (int)ctx->nfunction;
  g.monoid = ctx->monoid;
  g.nmonoid = (int)ctx->nmonoid;
  if (eini_word_class(&g, name, (int64_t)strlen(name), &id) == EINI_W_FREE) return EIN_OK;
  return eini_fail(&ctx->diag, EIN_ERR_NAME, -1, 0, NULL, "the name '%s' is taken", name);
}

// Room for one more registration, and its name; NULL when out of memory.
static void *eini_registry(ein_ctx *ctx, void *list, int64_t n, int64_t *cap, size_t size,
                           const char **name) {
  list = eini_grow(&ctx->arena, list, n, cap, size);
  *name = eini_strndup(&ctx->arena, *name, (int64_t)strlen(*name));
  if (list != NULL && *name != NULL) return list;
  eini_fail(&ctx->diag, EIN_ERR_NO_MEMORY, -1, 0, NULL, "%s", ein_status_text(EIN_ERR_NO_MEMORY));
  return NULL;
}

// A type that functions of the caller compute in.
static int eini_calls_in(ein_dtype t) {
  return eini_dtype_ok(t) && t != EIN_BOOL && ein_dtype_compute(t) == t;
}

// Registers a function; block: what it is over blocks, or NULL.
static ein_status eini_ctx_add_function(ein_ctx *ctx, const ein_function *f,
                                        const ein_operator *block) {
  const char *name = f->name;
  const ein_operator **b = (const ein_operator **)eini_grow(
      &ctx->arena, (void *)ctx->block, ctx->nfunction, &ctx->capblock, sizeof *b);
  ein_function *p = (ein_function *)eini_registry(ctx, ctx->function, ctx->nfunction,
                                      &ctx->capfunction, sizeof *p, &name);
  if (b != NULL) ctx->block = b;
  if (p != NULL) ctx->function = p;
  if (p == NULL || b == NULL)
    return eini_fail(&ctx->diag, EIN_ERR_NO_MEMORY, -1, 0, NULL, "%s",
                     ein_status_text(EIN_ERR_NO_MEMORY));
  p[ctx->nfunction] = *f;
  p[ctx->nfunction].name = name;
  b[ctx->nfunction++] = block;
  return EIN_OK;
}

EIN_API ein_status ein_ctx_operator(ein_ctx *ctx, const ein_operator *f) {
  eini_signature x;
  if (ctx == NULL || f == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_check_new_name(ctx, f->name));
  const ein_dtype t = f->dtype == EIN_NONE ? EIN_F64 : f->dtype;
  const int reads = f->signature != NULL && eini_signature_read(f->signature, &x);
  if (f->fn == NULL || !reads || !eini_calls_in(t) || (x.inner < x.nsize && f->size_fn == NULL))
    return eini_fail(&ctx->diag, EIN_ERR_ARGUMENT, -1, 0, "a signature is like \"(n,n),(n)->(n)\"",
                     "operator '%s': fn, a signature, size_fn for sizes that only outputs have, "
                     "and one of i32 i64 f32 f64 c64 c128", f->name);
  ein_operator *own = EINI_NEW(&ctx->arena, ein_operator, 1);
  ein_function call;
  memset(&call, 0, sizeof call);
  call.name = f->name;
  call.nargs = x.nin;
  call.dtype = t;
  if (own != NULL) {
    *own = *f;
    own->dtype = t;
    own->signature = eini_strndup(&ctx->arena, f->signature, (int64_t)strlen(f->signature));
    own->name = eini_strndup(&ctx->arena, f->name, (int64_t)strlen(f->name));
  }
  if (own == NULL || own->signature == NULL || own->name == NULL)
    return eini_fail(&ctx->diag, EIN_ERR_NO_MEMORY, -1, 0, NULL, "%s",
                     ein_status_text(EIN_ERR_NO_MEMORY));
  return eini_ctx_add_function(ctx, &call, own);
}

EIN_API ein_status ein_ctx_function(ein_ctx *ctx, const ein_function *f) {
  if (ctx == NULL || f == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_check_new_name(ctx, f->name));
  ein_function own = *f;
  if (own.dtype == EIN_NONE) own.dtype = EIN_F64;
  if (f->fn == NULL || f->nargs < 1 || f->nargs > EINI_ARGS_MAX || !eini_calls_in(own.dtype)) {
    return eini_fail(&ctx->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "function '%s': fn, 1 to 8 arguments, and one of i32 i64 f32 f64 c64 c128",
                     f->name);
  }
  return eini_ctx_add_function(ctx, &own, NULL);
}

EIN_API ein_status ein_ctx_monoid(ein_ctx *ctx, const ein_monoid *m) {
  if (ctx == NULL || m == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_check_new_name(ctx, m->name));
  ein_dtype t = m->dtype == EIN_NONE ? EIN_F64 : m->dtype;
  if (m->merge_fn == NULL || m->nstate < 1 || m->nstate > 4 ||
      (m->nstate > 1 && (m->lift_fn == NULL || m->finish_fn == NULL)) ||
      (t != EIN_F32 && t != EIN_F64 && t != EIN_I32 && t != EIN_I64)) {
    return eini_fail(&ctx->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "monoid '%s': merge_fn, 1 to 4 states (several need lift_fn and finish_fn), "
                     "and one of i32 i64 f32 f64", m->name);
  }
  const char *name = m->name;
  ein_monoid *p = (ein_monoid *)eini_registry(ctx, ctx->monoid, ctx->nmonoid,
                                      &ctx->capmonoid, sizeof *p, &name);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  ctx->monoid = p;
  p[ctx->nmonoid] = *m;
  p[ctx->nmonoid].dtype = t;
  p[ctx->nmonoid++].name = name;
  return EIN_OK;
}

// What the first provider that says so does per second, by table; NULL: not known.
static const ein_rates *eini_rates_table(int n, const ein_kernels *const *kernels) {
  for (int i = 0; i < n; i++)
    if (kernels[i]->rates.copy_bw[EIN_MEMORY] > 0) return &kernels[i]->rates;
  return NULL;
}

// What was given, else that.
static const ein_rates *eini_rates_of(const ein_ctx *ctx) {
  if (ctx == NULL) return NULL;
  return ctx->rated ? &ctx->rates : eini_rates_table(ctx->nkernels, ctx->kernels);
}

// Of a thread by itself, where all of a ctx's have less than so many times that.
static const ein_rates *eini_rates_one(const ein_ctx *ctx) {
  for (int l = 0; ctx != NULL && ctx->rated && l < EIN_MEMORY_LEVELS; l++)
    if (ctx->rates.read_bw[l] < ctx->given.read_bw[l] ||
        ctx->rates.copy_bw[l] < ctx->given.copy_bw[l])
      return &ctx->given;
  return NULL;
}

static eini_diag *eini_diag_of(ein_ctx *ctx) { return ctx == NULL ? NULL : &ctx->diag; }

// A new graph with copies of the ctx's registrations; NULL when out of memory.
static ein_graph *eini_graph_new(const ein_ctx *ctx) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_graph *g = EINI_NEW(&arena, ein_graph, 1);
  if (g == NULL) return NULL;
  g->arena = arena;
  if (ctx == NULL || eini_graph_register(g, (int)ctx->nfunction, ctx->function, ctx->block,
                                         (int)ctx->nmonoid, ctx->monoid) == EIN_OK)
    return g;
  eini_graph_free(g);
  return NULL;
}

// The machine as the first provider that knows it says.
static const char *eini_ctx_machine(const ein_ctx *ctx) {
  for (int i = 0; i < ctx->nkernels; i++)
    if (ctx->kernels[i]->machine != NULL) return ctx->kernels[i]->machine;
  return "";
}

// The fold or registered monoid of that name.
static ein_status eini_fold_named(const ein_graph *g, eini_diag *diag, const char *name,
                                  int *fold) {
  *fold = eini_fold_find(name, (int64_t)strlen(name));
  for (int i = 0; *fold == EIN_FOLD_NONE && i < g->nmonoid; i++)
    if (strcmp(g->monoid[i].name, name) == 0) *fold = EIN_FOLD_USER + i;
  if (*fold != EIN_FOLD_NONE) return EIN_OK;
  return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL, "no monoid is called '%s'", name);
}
