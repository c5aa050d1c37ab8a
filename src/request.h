// ================================================================================================
// >>request  einsum descriptors
// Takes notation, views, monoid, map, alpha and beta; gives the one statement that they mean.
// ================================================================================================

// Where views may lie: the memory space of the ctx's providers beside the host's; what is asked.
typedef struct eini_where {
  int space;
  const ein_options *o;
} eini_where;

static ein_status eini_fail_space(eini_diag *d, const ein_ztensor *v, const char *name) {
  return eini_fail(d, EIN_ERR_UNSUPPORTED, -1, 0, "copy it to the host",
                   "%s lies in memory space %d, which is not known here", name, v->space);
}

// What is wrong with a view: the field and its value.
static ein_status eini_fail_view(eini_diag *d, ein_status st, const ein_ztensor *v,
                                 const char *name) {
  int k = 0;
  if (st == EIN_ERR_UNSUPPORTED) return eini_fail_space(d, v, name);
  if (v->rank < 0)
    return eini_fail(d, st, -1, 0, NULL, "%s has rank %d", name, v->rank);
  if (v->rank > 0 && v->shape == NULL)
    return eini_fail(d, st, -1, 0, NULL, "%s has rank %d, but its shape is NULL", name, v->rank);
  if (v->buffer == NULL && v->buffer_bytes > 0)
    return eini_fail(d, st, -1, 0, NULL, "%s has buffer_bytes %llu, but its buffer is NULL",
                     name, (unsigned long long)v->buffer_bytes);
  if (st == EIN_ERR_DTYPE)
    return eini_fail(d, st, -1, 0, "set it: EIN_F32, EIN_F64, ..", "%s has no dtype, but %d", name,
                     (int)v->dtype);
  while (k < v->rank && v->shape[k] >= 0) k++;
  if (k < v->rank)
    return eini_fail(d, st, -1, 0, NULL, "%s has shape[%d] = %lld", name, k,
                     (long long)v->shape[k]);
  return eini_fail(d, st, -1, 0, NULL, "%s is not a valid view: %s", name, ein_status_text(st));
}

static ein_status eini_validate_view(eini_diag *d, const ein_ztensor *v, const eini_where *w,
                                     const char *name) {
  const ein_options *o = w->o;
  const ein_status st = eini_view_within(v, w->space);
  if (st != EIN_OK) return eini_fail_view(d, st, v, name);
  if (v->space == 0 || o == NULL || (!o->deterministic && !o->overflow_check && o->memory == 0))
    return EIN_OK;
  return eini_fail(d, EIN_ERR_UNSUPPORTED, -1, 0, "copy it to the host",
                   "%s lies in memory space %d, which does not go with %s", name, v->space,
                   o->memory > 0 ? "a memory budget" : o->deterministic ? "deterministic"
                                                                        : "overflow_check");
}

// Views by name: a list that is there, of names and valid views.
static ein_status eini_validate_bindings(eini_diag *d, const char *list, int n,
                                         const ein_binding *b, const eini_where *w) {
  if (n < 0 || (n > 0 && b == NULL))
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "n%s is %d%s", list, n,
                     n < 0 ? "" : ", but the list is NULL");
  for (int k = 0; k < n; k++) {
    char name[96];
    if (b[k].name == NULL || b[k].view == NULL)
      return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "%s[%d] has no %s: it is NULL", list, k,
                       b[k].name == NULL ? "name" : "view");
    snprintf(name, sizeof name, "'%.80s'", b[k].name);
    EINI_TRY(eini_validate_view(d, b[k].view, w, name));
  }
  return EIN_OK;
}

// No more operands are read than an expression names.
static int eini_terms_fit(const ein_einsum_desc *d) {
  int64_t terms = 1;
  for (const char *s = d->expr; s != NULL && *s != 0 && *s != '-'; s++) terms += *s == ',';
  return d->expr == NULL || d->nin <= terms;
}

static ein_status eini_validate_views(eini_diag *d, int nin, const ein_ztensor *in,
                                      const ein_ztensor *out, const ein_ztensor *c,
                                      const eini_where *w) {
  if (nin < 1)
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, "an einsum has at least one operand",
                     "nin is %d", nin);
  if (in == NULL)
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "nin is %d, but in is NULL", nin);
  for (int k = 0; k < nin + 2; k++) {
    const ein_ztensor *v = k < nin ? &in[k] : k == nin ? out : c;
    char name[32];
    if (v == NULL) continue;
    snprintf(name, sizeof name, k < nin ? "operand %d" : k == nin ? "the output" : "C", k);
    EINI_TRY(eini_validate_view(d, v, w, name));
  }
  return EIN_OK;
}

// What a descriptor means once its notation is read.
typedef struct eini_request {
  const ein_einsum_desc *d;
  ein_ctx *ctx;
  eini_diag *diag;
  eini_notation no;
  int **in;                  // label ids of the operands' axes
  int *axes, rank;           // of the output's
  eini_split sp;             // the product (or map) of all operands, as one statement
  eini_member *value;        // the operands in it
  int64_t *shape;            // of the output
  ein_dtype dtype;           // logical dtype of the result
  ein_dtype meet;            // what operands promote to
  int fold;
  int sums;                  // the fold is numpy.einsum's: a sum, of bool any
  int norm;                  // the root of a sum of squares
  int lone;                  // a fold of single values that changes them
  eini_expr map;             // with desc->map
} eini_request;

static ein_status eini_request_fold(eini_request *r, ein_graph *g) {
  const char *name = r->d->monoid;
  r->norm = name != NULL && strcmp(name, "norm") == 0;
  r->fold = EIN_FOLD_SUM;
  if (name != NULL && !r->norm) EINI_TRY(eini_fold_named(g, r->diag, name, &r->fold));
  r->sums = r->fold == EIN_FOLD_SUM && !r->norm && r->d->map == NULL;
  if (r->sums && r->meet == EIN_BOOL) r->fold = EIN_FOLD_ANY;
  return EIN_OK;
}

static int eini_request_reduces(const eini_request *r) {
  int reduces = 0;
  for (int i = 0; i < r->no.nlabel; i++) {
    int kept = 0;
    for (int a = 0; a < r->rank; a++) kept |= r->axes[a] == i;
    reduces |= !kept;
  }
  return reduces;
}

// What all operands (and a dtype t, or none) promote to. As in NumPy the highest comes first: u8,
// i8 and f16 meet in f16, though u8 and i8 alone meet in i16.
static ein_dtype eini_meet_all(int nin, const ein_ztensor *in, ein_dtype t) {
  ein_dtype top = t;
  for (int k = 0; k < nin; k++) top = in[k].dtype > top ? in[k].dtype : top;
  top = ein_dtype_promote(top, t);
  for (int k = 0; k < nin; k++) top = ein_dtype_promote(top, in[k].dtype);
  return top;
}

// Parses and types the map: positions of its mistakes are in its text. Sets the dtype it gives.
static ein_status eini_request_map(eini_request *r, ein_graph *g) {
  const ein_einsum_desc *d = r->d;
  for (int k = 0; d->conj != NULL && k < d->nin; k++) {
    if (!d->conj[k]) continue;
    return eini_fail(r->diag, EIN_ERR_ARGUMENT, -1, 0, "write conj(x0) in the map",
                     "conj flags do not go with a map");
  }
  eini_diag_text(r->diag, d->map, (int64_t)strlen(d->map));
  eini_typing ty;
  eini_expr typed;
  memset(&ty, 0, sizeof ty);
  ein_dtype *od = EINI_NEW(&g->arena, ein_dtype, d->nin);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nin; k++) od[k] = d->in[k].dtype;
  ty.operand = od;
  ty.function = g->function;
  ty.diag = r->diag;
  EINI_TRY(eini_parse_map(g, r->diag, d->map, d->nin, 0, NULL, &r->map));
  EINI_TRY(eini_expr_type(&g->arena, &ty, &r->map, &typed));
  r->dtype = (ein_dtype)typed.node[typed.n - 1].dtype;
  eini_diag_text(r->diag, d->expr, d->expr == NULL ? 0 : (int64_t)strlen(d->expr));
  return EIN_OK;
}

static ein_status eini_request_read(eini_request *r, ein_graph *g) {
  const ein_einsum_desc *d = r->d;
  r->no.arena = &g->arena;
  r->no.diag = r->diag;
  EINI_TRY(eini_notation_read(&r->no, d, &r->in, &r->axes, &r->rank));
  r->shape = EINI_NEW(&g->arena, int64_t, r->rank);
  if (r->shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int a = 0; a < r->rank; a++) r->shape[a] = r->no.label[r->axes[a]].extent;
  r->meet = eini_meet_all(d->nin, d->in, EIN_NONE);
  EINI_TRY(eini_request_fold(r, g));
  r->lone = d->monoid != NULL && !r->sums && !r->norm && !eini_request_reduces(r);
  return d->map != NULL ? eini_request_map(r, g) : EIN_OK;
}

// The output's dtype takes part in the promotion of sums and products, as out= does in NumPy: small
// integers do not wrap in a wide output. A complex output alone does not make the work complex.
static void eini_request_widen(eini_request *r) {
  if (!r->sums && (r->d->map != NULL || (r->fold != EIN_FOLD_PROD && !r->norm))) return;
  ein_dtype t = r->d->out->dtype;
  if (eini_kind_of(r->meet) != EINI_KCOMPLEX)
    t = t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
  r->meet = eini_meet_all(r->d->nin, r->d->in, t);
  if (r->sums && r->meet != EIN_BOOL) r->fold = EIN_FOLD_SUM;
}

// Operands as nodes: converted to the common dtype (NumPy casts before it multiplies) and
// conjugated where asked. -1 when out of memory.
static int eini_request_leaf(eini_request *r, ein_graph *g, int k) {
  eini_expr *e = &r->sp.w.expr;
  ein_dtype t = r->d->in[k].dtype;
  int id = eini_expr_add(&g->arena, e, EIN_OP_OPERAND, -1, k, 0, 0);
  if (id >= 0 && r->d->map == NULL && ein_dtype_compute(t) != ein_dtype_compute(r->meet)) {
    id = eini_expr_add(&g->arena, e, EIN_OP_CAST, -1, id, 0, 0);
    if (id >= 0) e->node[id].dtype = (unsigned char)r->meet;
  }
  if (id >= 0 && r->d->conj != NULL && r->d->conj[k] && eini_kind_of(t) == EINI_KCOMPLEX)
    id = eini_expr_add(&g->arena, e, EIN_OP_CONJ, -1, id, 0, 0);
  return id;
}

// The indices of the statement. A fold asked for is taken of single values too, so that a result
// does not depend on whether an index of extent 1 is there: then there is one beyond those of the
// expression.
static ein_status eini_request_indices(eini_request *r, ein_graph *g, eini_stmt *w) {
  const int n = r->no.nlabel;
  char *names = EINI_NEW(&g->arena, char, (int64_t)n * 16);
  w->nindex = n + r->lone;
  w->index = EINI_NEW(&g->arena, eini_index, w->nindex);
  if (w->index == NULL || names == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    w->index[i].extent = r->no.label[i].extent;
    w->index[i].name = eini_label_text(r->no.label[i].key, names + (size_t)i * 16, 16,
                                       r->no.is_text);
  }
  if (r->lone) w->index[n].extent = 1, w->index[n].name = "_";
  return EIN_OK;
}

// The statement of a request, of tensors 0, 1, .. Axes of extent 1 under a longer label broadcast.
static ein_status eini_request_stmt(eini_request *r, ein_graph *g) {
  const ein_einsum_desc *d = r->d;
  eini_arena *a = &g->arena;
  eini_stmt w;
  memset(&w, 0, sizeof w);
  EINI_TRY(eini_request_indices(r, g, &w));
  w.noperand = d->nin;
  w.operand = EINI_NEW(a, int, d->nin);
  w.proj = EINI_NEW(a, eini_map, d->nin);
  r->value = EINI_NEW(a, eini_member, d->nin);
  if (w.operand == NULL || w.proj == NULL || r->value == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nin; k++) {
    w.operand[k] = k;
    EINI_TRY(eini_map_new(a, d->in[k].rank, w.nindex, &w.proj[k]));
    for (int x = 0; x < d->in[k].rank; x++)
      if (d->in[k].shape[x] == w.index[r->in[k][x]].extent)
        EINI_TRY(eini_map_set(a, &w.proj[k], x, r->in[k][x], 1));
  }
  w.fold = r->fold;
  w.numpy = d->map == NULL;  // a map is of the language: its booleans are counted
  w.pos = -1;
  r->sp.g = g;
  r->sp.diag = r->diag;
  r->sp.join = EIN_OP_MUL;
  r->sp.rates = d->options.deterministic ? NULL : eini_rates_of(r->ctx);
  EINI_TRY(eini_split_begin(&r->sp, &w));
  for (int k = 0; k < d->nin; k++) {
    const int id = eini_request_leaf(r, g, k);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_member_of(&r->sp, id, &r->value[k]));
  }
  if (!r->lone) return EIN_OK;
  eini_member *v = &r->value[0];
  int *label = EINI_NEW(a, int, v->nlabel + 1);
  if (label == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < v->nlabel; i++) label[i] = v->label[i];
  label[v->nlabel++] = r->no.nlabel;
  v->label = label;
  return EIN_OK;
}
