// ================================================================================================
// >>gradient  reverse-mode differentiation
// Takes a scalar (or a tensor and a seed) and tensors of a graph; appends statements that define
// the gradients. They are like any other statements: no other part of the library knows them.
// ================================================================================================

// Says what stopped a cotangent.
static ein_status eini_back_stop(eini_back *b) {
  eini_grad *w = b->w;
  const ein_graph *g = w->g;
  const eini_node *v = b->d.stop < 0 ? NULL : &b->d.e.node[b->d.stop];
  const eini_stmt *s = &b->s;
  char what[96] = "a value that is no float";
  if (v != NULL && v->op == EIN_OP_OPERAND) {  // the statement that made it
    int tensor = b->operand[v->arg[0]];
    for (int64_t i = 0; i < w->nstmt; i++)
      if (g->stmt[i].out == tensor) s = &g->stmt[i];
  }
  if (v != NULL && v->op == EIN_OP_CALL)
    snprintf(what, sizeof what, "the %s %.60s", g->block[v->arg[0]] != NULL ? "operator"
             : "function", g->function[v->arg[0]].name);
  else if (s->fold >= EIN_FOLD_ANY && (s->fold <= EIN_FOLD_ALL || s->fold > EIN_FOLD_LOGSUMEXP) &&
           s->fold != EIN_FOLD_MEAN && s->fold != EIN_FOLD_VAR)
    snprintf(what, sizeof what, "%s%.60s", s->fold >= EIN_FOLD_USER ? "the monoid " : "",
             eini_fold_name(g, s->fold));
  return eini_fail(w->diag, EIN_ERR_UNSUPPORTED, w->pos, w->len,
                   "conditions, as in where(c, x, y), need none",
                   "the gradient of '%.40s' needs that of %s, in the statement of '%.40s'",
                   g->tensor[w->loss].name, what, g->tensor[s->out].name);
}

// Marks sqrt(sum(x^2)), which stands in two statements: the sum's tensor is read by the root.
static void eini_back_norms(eini_back *b) {
  const eini_grad *w = b->w;
  for (int id = 0; id < b->d.nprimal; id++) {
    const eini_node *v = &b->d.e.node[id];
    if (v->op != EIN_OP_SQRT) continue;
    v = &b->d.e.node[v->arg[0]];
    for (int64_t i = 0; v->op == EIN_OP_OPERAND && i < w->nstmt; i++) {
      const eini_stmt *s = &w->g->stmt[i];
      if (s->out != b->operand[v->arg[0]]) continue;
      b->d.norm[id] = s->fold == EIN_FOLD_SUM && s->expr.node[s->expr.n - 1].op == EIN_OP_SQUARE;
    }
  }
}

static ein_status eini_back_begin(eini_grad *w, eini_back *b, int64_t stmt) {
  memset(b, 0, sizeof *b);
  b->w = w;
  b->s = w->g->stmt[stmt];
  const eini_stmt *s = &b->s;
  unsigned char *reads = EINI_NEW(w->scratch, unsigned char, s->noperand);
  b->operand = EINI_NEW(w->scratch, int, s->noperand);
  b->proj = EINI_NEW(w->scratch, eini_map, s->noperand);
  if (reads == NULL || b->operand == NULL || b->proj == NULL) return EIN_ERR_NO_MEMORY;
  b->n = b->cap = b->cap2 = s->noperand;
  for (int k = 0; k < s->noperand; k++) {
    b->operand[k] = s->operand[k];
    b->proj[k] = s->proj[k];
    reads[k] = w->reach[s->operand[k]];
  }
  return eini_adj_begin(&b->d, w->scratch, &s->expr, reads, s->noperand);
}

// The cotangent of the operand read by node id; one that others have too is stored once.
static int eini_back_common(eini_back *b, int id) {
  eini_adjoint *d = &b->d;
  int val = d->val[id], mask = d->mask[id], n = b->s.nindex, more = 0;
  int x = eini_adj_plain(d, val, mask);
  for (int i = id + 1; i < d->nprimal; i++)
    more += d->e.node[i].op == EIN_OP_OPERAND && d->val[i] == val && d->mask[i] == mask;
  if (x < 0 || more == 0 || n > b->s.nfree || d->e.node[x].op == EIN_OP_OPERAND ||
      d->e.node[x].op == EIN_OP_CONST)
    return x;
  x = eini_back_store(b, x, n, n, EIN_FOLD_NONE);
  for (int i = id; i < d->nprimal; i++) {
    if (d->e.node[i].op != EIN_OP_OPERAND || d->val[i] != val || d->mask[i] != mask) continue;
    d->val[i] = x;
    d->mask[i] = -1;
  }
  return x;
}

// Sends the cotangent of a statement's tensor to its operands.
static ein_status eini_back_stmt(eini_grad *w, int64_t stmt) {
  eini_back b;
  EINI_TRY(eini_back_begin(w, &b, stmt));
  const eini_stmt *s = &b.s;
  eini_adjoint *d = &b.d;
  int root = d->nprimal - 1, cot = w->cot[s->out];
  if (!d->needs[root] || eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  if (eini_node_kind(d, root) < EINI_KREAL || s->fold >= EIN_FOLD_USER) {
    d->stop = s->fold >= EIN_FOLD_USER ? -1 : root;
    return eini_back_stop(&b);
  }
  d->val[root] = eini_back_seed(&b, root, cot, &d->mask[root]);
  if (s->fold == EIN_FOLD_NONE && eini_back_kept(&b, (ein_dtype)d->e.node[root].dtype)) {
    int op = d->e.node[root].op;
    if (op == EIN_OP_EXP || op == EIN_OP_EXPM1 || op == EIN_OP_TAN || op == EIN_OP_TANH ||
        op == EIN_OP_SIGMOID || op == EIN_OP_SQRT || op == EIN_OP_RSQRT || op == EIN_OP_SILU ||
        op == EIN_OP_POW ||
        (op == EIN_OP_DIV && d->needs[d->e.node[root].arg[1]]))
      d->stored = eini_back_read(&b, s->out, &s->out_map);
  }
  eini_back_norms(&b);
  if (d->val[root] < 0) return eini_grad_failed(w);
  ein_status st = eini_adj_run(d);
  if (d->stop >= 0) return eini_back_stop(&b);
  EINI_TRY(st);
  for (int id = 0; id < d->nprimal; id++) {
    if (d->e.node[id].op != EIN_OP_OPERAND || d->val[id] < 0) continue;
    int x = eini_back_common(&b, id);
    if (x < 0) return eini_grad_failed(w);
    EINI_TRY(eini_back_send(&b, d->e.node[id].arg[0], x));
  }
  return EIN_OK;
}

// The cotangent of a tensor from what was sent to it; a wanted one goes to the tensor for it.
static ein_status eini_grad_settle(eini_grad *w, int t) {
  ein_graph *g = w->g;
  const eini_grad_part *u = w->share[t];
  int want = w->want[t], out = want;
  if (w->done[t]) return EIN_OK;
  w->done[t] = 1;
  if (w->cot[t] != -1) {  // the loss
    eini_grad_part seed = {NULL, w->cot[t], 1, NULL};
    return want < 0 ? EIN_OK : eini_grad_whole(w, want, 1, seed.tensor < 0 ? NULL : &seed);
  }
  if (u == NULL) return want < 0 ? EIN_OK : eini_grad_whole(w, want, 0, NULL);
  if (u->next == NULL && want >= 0 && !u->shared) {  // what would be copied is written there
    for (int64_t i = w->nstmt; i < g->nstmt; i++)
      if (g->stmt[i].out == u->tensor) g->stmt[i].out = want;
    g->tensor[want].nstmt = g->tensor[u->tensor].nstmt;
    g->tensor[u->tensor].nstmt = 0;
  } else if (u->next == NULL && want < 0 && u->map == NULL) {
    out = u->tensor;
  } else {
    if (want < 0)
      EINI_TRY(eini_grad_tensor(w, t, ein_dtype_compute(g->tensor[t].dtype), g->tensor[t].rank,
                                g->tensor[t].shape, &out));
    EINI_TRY(eini_grad_whole(w, out, 0, u));
  }
  w->cot[t] = out;
  return EIN_OK;
}

// Which tensors depend on those with reach, in the order of the statements?
static ein_status eini_grad_reach(eini_grad *w) {
  int64_t most = 0, operands = 0;
  for (int64_t i = 0; i < w->nstmt; i++) {
    most = eini_max64(most, w->g->stmt[i].expr.n);
    operands = eini_max64(operands, w->g->stmt[i].noperand);
  }
  unsigned char *needs = EINI_NEW(w->scratch, unsigned char, most);
  unsigned char *reads = EINI_NEW(w->scratch, unsigned char, operands);
  if (needs == NULL || reads == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < w->nstmt; i++) {
    const eini_stmt *s = &w->g->stmt[i];
    for (int k = 0; k < s->noperand; k++) reads[k] = w->reach[s->operand[k]];
    eini_adj_needs(&s->expr, reads, needs);
    if (!w->g->tensor[s->out].shift) w->reach[s->out] |= needs[s->expr.n - 1];
  }
  return EIN_OK;
}

// Gradients of loss, times seed unless -1, by nwrt tensors; grad: tensors without statements, with
// their shapes and dtypes.
static ein_status eini_gradient(eini_grad *w, int seed, int nwrt, const int *wrt,
                                const int *grad) {
  ein_graph *g = w->g;
  int64_t n = g->ntensor;
  w->nstmt = g->nstmt;
  w->reach = EINI_NEW(w->scratch, unsigned char, n);
  w->done = EINI_NEW(w->scratch, unsigned char, n);
  w->cot = EINI_NEW(w->scratch, int, n);
  w->want = EINI_NEW(w->scratch, int, n);
  w->share = EINI_NEW(w->scratch, eini_grad_part *, n);
  if (w->reach == NULL || w->done == NULL || w->cot == NULL || w->want == NULL || w->share == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < n; t++) w->cot[t] = w->want[t] = -1;
  for (int k = 0; k < nwrt; k++) {
    w->reach[wrt[k]] = 1;
    w->want[wrt[k]] = grad[k];
  }
  EINI_TRY(eini_grad_reach(w));
  w->cot[w->loss] = seed < 0 ? EINI_COT_ONE : seed;
  for (int64_t i = w->nstmt - 1; i >= 0; i--) {
    int t = g->stmt[i].out;
    if (w->reach[t]) EINI_TRY(eini_grad_settle(w, t));
    if (w->reach[t] && w->cot[t] != -1) EINI_TRY(eini_back_stmt(w, i));
  }
  for (int k = 0; k < nwrt; k++) EINI_TRY(eini_grad_settle(w, wrt[k]));
  return EIN_OK;
}

// ---- what is asked for ----

// A mistake about item i: 0 the loss, 1 the seed, 2 + k the k-th of wrt.
EINI_PRINTF(5, 6)
static ein_status eini_grad_refuse(const eini_grad *w, int i, ein_status st, const char *hint,
                                   const char *format, ...) {
  const eini_syn *v = w->at == NULL ? NULL : w->at[i];
  va_list args;
  va_start(args, format);
  eini_vfail(w->diag, st, v == NULL ? -1 : v->pos, v == NULL ? 0 : v->len, hint, format, args);
  va_end(args);
  return st;
}

static ein_status eini_grad_check_float(const eini_grad *w, int i, int tensor) {
  const eini_tensor *t = &w->g->tensor[tensor];
  if (eini_kind_of(t->dtype) >= EINI_KREAL) return EIN_OK;
  return eini_grad_refuse(w, i, EIN_ERR_DTYPE, NULL, "'%.60s' is of %s: only floats have gradients",
                          t->name, ein_dtype_name(t->dtype));
}

static ein_status eini_grad_check(const eini_grad *w, int seed, int nwrt, const int *wrt) {
  const eini_tensor *l = &w->g->tensor[w->loss], *s = seed < 0 ? NULL : &w->g->tensor[seed];
  EINI_TRY(eini_grad_check_float(w, 0, w->loss));
  if (s == NULL && l->rank > 0)
    return eini_grad_refuse(w, 0, EIN_ERR_SHAPE, "a seed says how much each element counts",
                            "'%.60s' has %d axes: without a seed it must be a scalar", l->name,
                            l->rank);
  if (s == NULL && eini_kind_of(l->dtype) == EINI_KCOMPLEX)
    return eini_grad_refuse(w, 0, EIN_ERR_DTYPE, "take real(..), or give a seed",
                            "'%.60s' is complex", l->name);
  if (s != NULL) {
    EINI_TRY(eini_grad_check_float(w, 1, seed));
    int same = s->rank == l->rank;
    for (int r = 0; same && r < s->rank; r++) same = s->shape[r] == l->shape[r];
    if (!same)
      return eini_grad_refuse(w, 1, EIN_ERR_SHAPE, NULL, "'%.60s' does not have the shape of "
                              "'%.60s'", s->name, l->name);
    if (eini_kind_of(s->dtype) > eini_kind_of(l->dtype))
      return eini_grad_refuse(w, 1, EIN_ERR_DTYPE, NULL, "'%.60s' is complex, '%.60s' is real",
                              s->name, l->name);
  }
  for (int k = 0; k < nwrt; k++) {
    EINI_TRY(eini_grad_check_float(w, 2 + k, wrt[k]));
    for (int j = 0; j < k; j++)
      if (wrt[j] == wrt[k])
        return eini_grad_refuse(w, 2 + k, EIN_ERR_NAME, NULL, "'%.60s' occurs twice",
                                w->g->tensor[wrt[k]].name);
  }
  return EIN_OK;
}

// A tensor for the gradient by tensor wrt: its shape, and its dtype if none was given.
static ein_status eini_grad_result(const eini_grad *w, int i, int wrt, int grad) {
  const eini_tensor *x = &w->g->tensor[wrt];
  eini_tensor *t = &w->g->tensor[grad];
  int same = t->rank == x->rank;
  for (int r = 0; same && t->given != NULL && r < t->rank; r++) same = t->given[r] == x->shape[r];
  if (!same)
    return eini_grad_refuse(w, i, EIN_ERR_SHAPE, NULL, "'%.60s' does not have the shape of '%.60s'",
                            t->name, x->name);
  if (t->dtype == EIN_NONE) t->dtype = x->dtype;
  if (eini_kind_of(t->dtype) < eini_kind_of(x->dtype))
    return eini_grad_refuse(w, i, EIN_ERR_DTYPE, NULL, "'%.60s' is of %s, '%.60s' of %s", t->name,
                            ein_dtype_name(t->dtype), x->name, ein_dtype_name(x->dtype));
  t->dtype_open = 0;
  t->shape = EINI_NEW(&w->g->arena, int64_t, t->rank);
  if (t->shape == NULL) return EIN_ERR_NO_MEMORY;
  if (t->rank > 0) memcpy(t->shape, x->shape, (size_t)t->rank * sizeof *t->shape);
  return EIN_OK;
}

// Checks what is asked for, then appends the statements.
static ein_status eini_grad_all(eini_grad *w, int seed, int nwrt, const int *wrt,
                                const int *grad) {
  EINI_TRY(eini_grad_check(w, seed, nwrt, wrt));
  for (int k = 0; k < nwrt; k++) EINI_TRY(eini_grad_result(w, 2 + k, wrt[k], grad[k]));
  return eini_gradient(w, seed, nwrt, wrt, grad);
}

static ein_status eini_grad_ids(ein_graph *g, int loss, int nwrt, const int *wrt, int seed,
                                const int *grad) {
  if (nwrt < 1 || wrt == NULL || grad == NULL || loss < 0 || loss >= g->ntensor ||
      seed >= g->ntensor)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "gradient: counts, pointers, the loss or the seed");
  EINI_TRY(eini_seal_tensor(g, loss));
  if (seed >= 0) EINI_TRY(eini_seal_tensor(g, seed));
  for (int k = 0; k < nwrt; k++) {
    if (wrt[k] < 0 || wrt[k] >= g->ntensor || grad[k] < 0 || grad[k] >= g->ntensor)
      return eini_refuse(g, EIN_ERR_ARGUMENT, "gradient: number %d is no tensor", k);
    EINI_TRY(eini_seal_tensor(g, wrt[k]));
  }
  for (int k = 0; k < nwrt; k++) {
    const eini_tensor *t = &g->tensor[grad[k]];
    int again = 0;
    for (int j = 0; j < k; j++) again |= grad[j] == grad[k];
    if (again || t->shape != NULL || t->nstmt > 0)
      return eini_refuse(g, EIN_ERR_NAME, "gradient: '%.60s' is defined already", t->name);
  }
  return EIN_OK;
}

EIN_API ein_status ein_graph_add_gradient(ein_graph *g, int loss, int nwrt, const int *wrt,
                                          int seed, const int *grad) {
  EINI_TRY(eini_building(g));
  eini_grad w;
  eini_arena scratch;
  ein_status st = eini_grad_ids(g, loss, nwrt, wrt, seed, grad);
  if (st != EIN_OK) return g->status = st;
  memset(&w, 0, sizeof w);
  eini_arena_init(&scratch, &g->arena.al);
  w.g = g;
  w.diag = g->diag;
  w.pos = -1;
  w.loss = loss;
  w.scratch = &scratch;
  st = eini_grad_all(&w, seed, nwrt, wrt, grad);
  eini_arena_free(&scratch);
  return g->status = st;
}
