// ================================================================================================
// >>builder  graphs from C calls
// Takes tensors and statements one by one; gives a graph whose accesses and pieces are proved. The
// first mistake sticks.
// ================================================================================================

// May the graph be added to? Begins a call: its messages replace those before.
static ein_status eini_building(ein_graph *g) {
  if (g == NULL || !g->open) return EIN_ERR_ARGUMENT;
  if (g->status == EIN_OK && g->diag != NULL) eini_diag_reset(g->diag, NULL, 0);
  return g->status;
}

EINI_PRINTF(3, 4)
static ein_status eini_refuse(ein_graph *g, ein_status st, const char *format, ...) {
  va_list args;
  va_start(args, format);
  eini_vfail(g->diag, st, -1, 0, NULL, format, args);
  va_end(args);
  return st;
}

EIN_API ein_status ein_graph_create(ein_ctx *ctx, ein_graph **graph) {
  eini_diag *diag = eini_diag_of(ctx);
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  if (diag != NULL) eini_diag_reset(diag, NULL, 0);
  *graph = eini_graph_new(ctx);
  if (*graph == NULL) return EIN_ERR_NO_MEMORY;
  (*graph)->open = 1;
  (*graph)->diag = diag;
  return EIN_OK;
}

// A name of the language that is neither one of its words nor taken by a tensor or param.
static ein_status eini_check_free(ein_graph *g, const char *name) {
  int taken = 0, id;
  if (!eini_is_name(name) ||
      eini_word_class(g, name, (int64_t)strlen(name), &id) != EINI_W_FREE)
    return eini_refuse(g, EIN_ERR_NAME, "'%.60s' is not a name", name == NULL ? "" : name);
  for (int64_t i = 0; i < g->ntensor; i++) taken |= strcmp(g->tensor[i].name, name) == 0;
  for (int64_t i = 0; i < g->nparam; i++) taken |= strcmp(g->param[i].name, name) == 0;
  return taken ? eini_refuse(g, EIN_ERR_NAME, "the name '%.60s' is taken", name) : EIN_OK;
}

static ein_status eini_build_tensor(ein_graph *g, const char *name, ein_role role, ein_dtype dtype,
                                    int rank, const int64_t *shape, int *id) {
  static const int64_t none[1] = {0};
  int input = role == EIN_ROLE_INPUT;
  EINI_TRY(eini_check_free(g, name));
  if (rank == 0) shape = none;
  if ((int)role < 0 || role > EIN_ROLE_OUTPUT || rank < 0 || g->ntensor >= INT_MAX ||
      (dtype != EIN_NONE && !eini_dtype_ok(dtype)))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "tensor '%.60s': role, dtype or rank is wrong", name);
  if (input && (dtype == EIN_NONE || shape == NULL))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "the input '%.60s' needs a dtype and a shape", name);
  for (int r = 0; shape != NULL && r < rank; r++) {
    if (shape[r] < 0)
      return eini_refuse(g, EIN_ERR_SHAPE, "axis %d of '%.60s' has extent %lld", r, name,
                         (long long)shape[r]);
  }
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank, shape, id));
  eini_tensor *t = &g->tensor[*id];
  if (input) return EIN_OK;
  t->given = t->shape;
  t->shape = NULL;
  return EIN_OK;
}

EIN_API ein_status ein_graph_add_tensor(ein_graph *g, const char *name, ein_role role,
                                        ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  int none;
  if (id == NULL) id = &none;
  *id = -1;
  EINI_TRY(eini_building(g));
  return g->status = eini_build_tensor(g, name, role, dtype, rank, shape, id);
}

EIN_API ein_status ein_graph_add_param(ein_graph *g, const char *name, ein_dtype dtype,
                                       const ein_scalar *value, int *id) {
  static const ein_scalar no_value = {0, 0, 0};
  int none;
  if (id == NULL) id = &none;
  if (value == NULL) value = &no_value;
  *id = -1;
  EINI_TRY(eini_building(g));
  ein_status st = eini_check_free(g, name);
  if (st == EIN_OK && dtype != EIN_NONE && !eini_dtype_ok(dtype))
    st = eini_refuse(g, EIN_ERR_ARGUMENT, "param '%.60s': not a dtype", name);
  if (st == EIN_OK && !eini_param_holds(dtype, value))
    st = eini_refuse(g, EIN_ERR_DTYPE, "param '%.60s' is %s, which does not hold its default", name,
                     ein_dtype_name(dtype));
  if (st == EIN_OK)
    st = eini_graph_add_param(g, name, (int64_t)strlen(name), dtype, *value, id);
  return g->status = st;
}

// What is wrong with the shape that its statements give a tensor of a given one; 0: nothing is.
static int eini_given_text(const eini_tensor *t, char *text, size_t size) {
  for (int r = 0; t->given != NULL && r < t->rank; r++) {
    if (t->shape[r] == t->given[r] || (t->partial && t->shape[r] < t->given[r])) continue;
    snprintf(text, size, "axis %d of '%.*s' has extent %lld, its statements give %lld", r,
             eini_cut(t->name, (int64_t)strlen(t->name)), t->name, (long long)t->given[r],
             (long long)t->shape[r]);
    return 1;
  }
  return 0;
}

// All pieces of a tensor are there: proves that they fill it, and gives it its shape and dtype.
static ein_status eini_seal_tensor(ein_graph *g, int id) {
  eini_tensor *t = &g->tensor[id];
  int64_t n = t->nstmt, k = n, i = g->nstmt;
  eini_arena scratch;
  eini_cover c;
  char text[320];
  if (t->shape != NULL) return EIN_OK;
  if (n == 0) return eini_refuse(g, EIN_ERR_NAME, "'%s' is not defined", t->name);
  memset(&c, 0, sizeof c);
  c.holes = t->partial;
  eini_arena_init(&scratch, &g->arena.al);
  int64_t *piece = EINI_NEW(&scratch, int64_t, n);
  while (piece != NULL && k > 0)
    if (g->stmt[--i].out == id) piece[--k] = i;
  ein_status st = piece == NULL ? EIN_ERR_NO_MEMORY
                                : eini_cover_prove(g, id, piece, n, &scratch, &c);
  if (st != EIN_OK && st != EIN_ERR_NO_MEMORY) {
    c.status = st;
    eini_cover_text(&c, t->name, eini_cut(t->name, (int64_t)strlen(t->name)), t->rank, text,
                    sizeof text);
    eini_refuse(g, st, "%s", text);
  }
  if (st == EIN_OK && eini_given_text(t, text, sizeof text))
    st = eini_refuse(g, EIN_ERR_SHAPE, "%s", text);
  if (st == EIN_OK && c.holes) memcpy(t->shape, t->given, (size_t)t->rank * sizeof *t->shape);
  eini_tensor_fix_dtype(t);
  eini_arena_free(&scratch);
  return st;
}

// A map of the caller against a tensor and the indices; from: no index from that one on occurs;
// blocks: it may have the shape of one.
static ein_status eini_check_zmap(ein_graph *g, const ein_zmap *m, int tensor, int nindex,
                                  int from, int blocks) {
  const eini_tensor *t = &g->tensor[tensor];
  if (m->rows != t->rank || m->cols != nindex)
    return eini_refuse(g, EIN_ERR_SHAPE,
                       "a map of %d rows and %d columns for '%s' of %d axes and %d indices",
                       m->rows, m->cols, t->name, t->rank, nindex);
  if (m->block != NULL && !blocks)
    return eini_refuse(g, EIN_ERR_UNSUPPORTED, "the map of '%s' has a block, but fold names no "
                       "operator", t->name);
  for (int r = 0; m->block != NULL && r < m->rows; r++)
    if (m->block[r] < 0)
      return eini_refuse(g, EIN_ERR_SHAPE, "axis %d of the block of '%s' has extent %lld", r,
                         t->name, (long long)m->block[r]);
  if (m->coef == NULL && m->rows > 0 && m->cols > 0)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "the map of '%s' has no coefficients", t->name);
  for (int r = 0; r < m->rows; r++) {
    for (int i = from; i < nindex; i++) {
      if (m->coef[(int64_t)r * nindex + i] != 0)
        return eini_refuse(g, EIN_ERR_SHAPE, "axis %d of '%s' depends on the reduced index %d", r,
                           t->name, i);
    }
  }
  return EIN_OK;
}

static ein_status eini_check_statement(ein_graph *g, const ein_stmt_desc *d, int blocks) {
  if (d == NULL || d->nindex < 0 || d->nfree < 0 || d->nfree > d->nindex || d->noperand < 0 ||
      (d->nindex > 0 && d->extent == NULL) ||
      (d->noperand > 0 && (d->operand == NULL || d->proj == NULL)) || d->out < 0 ||
      d->out >= g->ntensor || (d->map == NULL && d->noperand == 0))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "counts, pointers or the tensor defined are wrong");
  const eini_tensor *t = &g->tensor[d->out];
  if (g->diag != NULL)
    snprintf(g->diag->where, sizeof g->diag->where, "statement %lld, '%.40s': ",
             (long long)g->nstmt, t->name);
  if (t->shape != NULL)
    return eini_refuse(g, EIN_ERR_NAME, t->role == EIN_ROLE_INPUT ? "it is an input"
                                                                  : "it is read already");
  for (int i = 0; i < d->nindex; i++) {
    if (d->extent[i] < 0)
      return eini_refuse(g, EIN_ERR_SHAPE, "index %d has extent %lld", i, (long long)d->extent[i]);
    if (d->index != NULL && !eini_is_name(d->index[i]))
      return eini_refuse(g, EIN_ERR_NAME, "index %d has no proper name", i);
  }
  if (d->rest != EIN_REST_ERROR && d->rest != EIN_REST_ZERO)
    return eini_refuse(g, EIN_ERR_UNSUPPORTED, "the rest can only be zero");
  if ((d->rest == EIN_REST_ZERO && t->given == NULL) || (t->nstmt > 0 && (d->rest || t->partial)))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "a rest needs a given shape and a single statement");
  if (d->out_map.coef != NULL)
    EINI_TRY(eini_check_zmap(g, &d->out_map, d->out, d->nindex, d->nfree, blocks));
  else if (d->nfree != t->rank || blocks)
    return eini_refuse(g, EIN_ERR_SHAPE, "%d free indices for %d axes", d->nfree, t->rank);
  for (int k = 0; k < d->noperand; k++) {
    if (d->operand[k] < 0 || d->operand[k] >= g->ntensor || d->operand[k] == d->out)
      return eini_refuse(g, EIN_ERR_ARGUMENT, "operand %d is no tensor to read", k);
    EINI_TRY(eini_seal_tensor(g, d->operand[k]));
    EINI_TRY(eini_check_zmap(g, &d->proj[k], d->operand[k], d->nindex, d->nindex, blocks));
  }
  return EIN_OK;
}

// The caller's indices.
static ein_status eini_build_names(ein_graph *g, const ein_stmt_desc *d, eini_stmt *s) {
  for (int i = 0; i < d->nindex; i++) {
    char name[16];
    snprintf(name, sizeof name, "i%d", i);
    const char *given = d->index != NULL ? d->index[i] : name;
    s->index[i].extent = d->extent[i];
    s->index[i].name = eini_strndup(&g->arena, given, (int64_t)strlen(given));
    if (s->index[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// ---- functions over blocks ----

static int eini_block_axes(const ein_zmap *m) {
  int n = 0;
  for (int r = 0; m->block != NULL && r < m->rows; r++) n += m->block[r] > 0;
  return n;
}

// A map whose coordinates with a block have an index of it each, from `index` on.
static ein_status eini_block_map(ein_graph *g, eini_stmt *s, eini_map *to, const ein_zmap *from,
                                 int *index) {
  EINI_TRY(eini_map_read(&g->arena, to, from));
  for (int r = 0; from->block != NULL && r < from->rows; r++) {
    char name[16];
    if (from->block[r] == 0) continue;
    snprintf(name, sizeof name, "b%d", *index);
    s->index[*index].extent = from->block[r];
    s->index[*index].name = eini_strndup(&g->arena, name, (int64_t)strlen(name));
    if (s->index[*index].name == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_map_set(&g->arena, to, r, (*index)++, 1));
  }
  return EIN_OK;
}

// The statement of function f, whose maps have blocks: their axes are indices, those of the result
// free, behind those of the caller, all others reduced.
static ein_status eini_build_blocks(ein_graph *g, const ein_stmt_desc *d, int f) {
  eini_stmt *s;
  int64_t more = eini_block_axes(&d->out_map);
  int arg[EINI_ARGS_MAX] = {0}, index = d->nfree;
  if (d->nfree != d->nindex || d->map != NULL || d->rest != EIN_REST_ERROR ||
      d->noperand != g->function[f].nargs)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "the operator '%.60s' takes %d operand%s with blocks, "
                       "and no reduced index, map or rest", g->function[f].name,
                       g->function[f].nargs, g->function[f].nargs == 1 ? "" : "s");
  const int nfree = d->nfree + (int)more;
  for (int k = 0; k < d->noperand; k++) more += eini_block_axes(&d->proj[k]);
  EINI_TRY(eini_graph_add_stmt(g, d->out, d->nindex + (int)more, d->noperand, d->operand, &s));
  s->nfree = nfree;
  s->fold = EIN_FOLD_BLOCK;
  EINI_TRY(eini_build_names(g, d, s));
  EINI_TRY(eini_block_map(g, s, &s->out_map, &d->out_map, &index));
  for (int k = 0; k < d->noperand; k++)
    EINI_TRY(eini_block_map(g, s, &s->proj[k], &d->proj[k], &index));
  for (int k = 0; k < d->noperand; k++)
    if ((arg[k] = eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, -1, k, 0, 0)) < 0)
      return EIN_ERR_NO_MEMORY;
  if (eini_expr_call(&g->arena, &s->expr, -1, f, d->noperand, arg) < 0) return EIN_ERR_NO_MEMORY;
  return eini_stmt_finish(g, s, g->diag);
}

static ein_status eini_build_statement(ein_graph *g, const ein_stmt_desc *d) {
  eini_stmt *s;
  int f = d == NULL || d->fold == NULL ? -1 : g->nfunction - 1;
  while (f >= 0 && (g->block[f] == NULL || strcmp(g->block[f]->name, d->fold) != 0)) f--;
  EINI_TRY(eini_check_statement(g, d, f >= 0));
  if (f >= 0) return eini_build_blocks(g, d, f);
  EINI_TRY(eini_graph_add_stmt(g, d->out, d->nindex, d->noperand, d->operand, &s));
  s->nfree = d->nfree;
  s->rest = d->rest;
  g->tensor[d->out].partial = d->rest == EIN_REST_ZERO;
  EINI_TRY(eini_build_names(g, d, s));
  EINI_TRY(d->out_map.coef != NULL ? eini_map_read(&g->arena, &s->out_map, &d->out_map)
                                   : eini_map_units(&g->arena, &s->out_map, 0, 0, d->nfree));
  for (int k = 0; k < d->noperand; k++)
    EINI_TRY(eini_map_read(&g->arena, &s->proj[k], &d->proj[k]));
  if (d->fold != NULL && d->nfree == d->nindex)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "a fold, but no reduced index");
  if (d->nfree < d->nindex) s->fold = EIN_FOLD_SUM;
  if (d->fold != NULL) EINI_TRY(eini_fold_named(g, g->diag, d->fold, &s->fold));
  if (d->map == NULL) {
    for (int k = 0, x = 0; k < d->noperand; k++) {
      int y = eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, -1, k, 0, 0);
      x = k == 0 ? y : eini_expr_pair(&g->arena, &s->expr, EIN_OP_MUL, x, y);
      if (x < 0) return EIN_ERR_NO_MEMORY;
    }
  } else {
    if (g->diag != NULL) {
      g->diag->text = d->map;
      g->diag->length = (int64_t)strlen(d->map);
    }
    EINI_TRY(eini_parse_map(g, g->diag, d->map, d->noperand, d->nindex, s->index, &s->expr));
  }
  return eini_stmt_finish(g, s, g->diag);
}

EIN_API ein_status ein_graph_add_statement(ein_graph *g, const ein_stmt_desc *desc) {
  EINI_TRY(eini_building(g));
  int64_t before = g->nstmt;
  ein_status st = g->status = eini_build_statement(g, desc);
  if (st != EIN_OK) g->nstmt = before;
  if (g->diag != NULL) g->diag->text = NULL;
  if (g->diag != NULL) g->diag->where[0] = 0;
  return st;
}

EIN_API ein_status ein_graph_finish(ein_graph *g) {
  EINI_TRY(eini_building(g));
  ein_status st = EIN_OK;
  int outputs = 0;
  for (int64_t t = 0; st == EIN_OK && t < g->ntensor; t++) {
    outputs += g->tensor[t].role == EIN_ROLE_OUTPUT;
    st = eini_seal_tensor(g, (int)t);
  }
  if (st == EIN_OK && outputs == 0)
    st = eini_refuse(g, EIN_ERR_ARGUMENT, "the graph has no output");
  g->status = st == EIN_OK ? eini_graph_prune(g) : st;
  g->open = g->status != EIN_OK;
  return g->status;
}
