// ================================================================================================
// >>parse  programs
// Takes a program's description; gives its graph, pruned to what is observed (GRAMMAR rule 11).
// ================================================================================================

// Claims a name for a declaration; 0 when it is taken.
static int eini_declare(eini_prog *q, const eini_syn *v, int kind, int64_t id) {
  eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_BAD) q->p.st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE || s->open != 0)
    eini_perr(&q->p, EIN_ERR_NAME, v->pos, s->n, NULL, "the name '%.*s' is taken",
              EINI_NAME_OF(&q->p, v->sym));
  if (q->p.st != EIN_OK) return 0;
  s->kind = kind;
  s->id = (int)id;
  s->pos = v->pos;
  return 1;
}

// The declared size of that name, new or known; NULL after a mistake.
static eini_dim *eini_dim_of(eini_prog *q, const eini_syn *d) {
  eini_sym *s = eini_sym_of(q, d->sym);
  if (s->kind == EINI_N_SIZE) return &q->dim[s->id];
  if (!eini_declare(q, d, EINI_N_SIZE, q->ndim)) return NULL;
  eini_dim *x = (eini_dim *)eini_grow(q->p.arena, q->dim, q->ndim, &q->capdim, sizeof *x);
  if (x == NULL) return eini_pmem(&q->p), x;
  q->dim = x;
  x += q->ndim++;
  x->sym = d->sym;
  x->by = x->axis = -1;
  x->value = -1;
  for (int k = 0; k < q->desc->nsize; k++) {
    if (eini_word_is(s->s, s->n, q->desc->size[k].name)) x->value = q->desc->size[k].value;
  }
  return x;
}

// A number in place of a size that nothing says.
static int64_t eini_open_size(eini_prog *q, int sym) {
  eini_open *o = q->open;
  const int size = q->nopen++;
  if (size == o->n) {
    const char **name = (const char **)eini_grow(o->arena, o->name, o->n, &o->cap, sizeof *name);
    int64_t *base = (int64_t *)eini_grow(o->arena, o->base, o->n, &o->capbase, sizeof *base);
    if (name == NULL || base == NULL) return eini_pmem(&q->p), -1;
    o->name = name;
    o->base = base;
    name[size] = eini_strndup(o->arena, q->names.sym[sym].s, q->names.sym[sym].n);
    if (name[size] == NULL) return eini_pmem(&q->p), -1;
    base[size] = eini_open_value(o, size);
    o->n++;
  }
  return eini_open_value(o, size);
}

// The extent of one axis of an input: its literal, its size, its view; all agree.
static int64_t eini_input_axis(eini_prog *q, const eini_syn *v, int axis, const ein_ztensor *view) {
  eini_parser *p = &q->p;
  const eini_syn *d = v->kid[axis];
  eini_dim literal = {0, -1, -1, -1}, *x = d->kind == EINI_S_NUM ? &literal : eini_dim_of(q, d);
  const int64_t given[2] = {d->ival, view == NULL ? -1 : view->shape[axis]};
  for (int k = 0; x != NULL && k < 2; k++) {
    if (given[k] < 0 || given[k] == x->value) continue;
    char by[128] = "as given";
    if (k == 1 && given[0] >= 0)
      snprintf(by, sizeof by, "as declared");
    else if (x->by >= 0)
      snprintf(by, sizeof by, "in axis %d of '%.*s'", x->axis, EINI_NAME_OF(p, x->by));
    if (x->value >= 0 && d->kind == EINI_S_NUM)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), NULL,
                "axis %d of '%.*s' has extent %lld, not %lld %s", axis,
                EINI_NAME_OF(p, v->sym), (long long)given[k], (long long)x->value, by);
    else if (x->value >= 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), NULL,
                "'%.*s' is %lld in axis %d of '%.*s', but %lld %s", EINI_NAME_OF(p, d->sym),
                (long long)given[k], axis, EINI_NAME_OF(p, v->sym), (long long)x->value, by);
    x->value = given[k];
    x->by = v->sym;
    x->axis = axis;
  }
  if (x != NULL && x->value < 0 && q->open != NULL) x->value = eini_open_size(q, d->sym);
  if (x != NULL && x->value < 0 && p->st == EIN_OK)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), "bind a view, or give the size",
              "nothing says how large '%.*s' is", EINI_NAME_OF(p, d->sym));
  return x == NULL ? -1 : x->value;
}

static void eini_do_input(eini_prog *q, const eini_line *l, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  const ein_ztensor *view = NULL;
  int tensor = 0;
  for (int i = q->desc->nbind - 1; i >= 0; i--) {
    if (eini_word_is(s->s, s->n, q->desc->bind[i].name)) view = q->desc->bind[i].view;
  }
  ein_dtype given = l->dtype != EIN_NONE ? l->dtype : view != NULL ? view->dtype : q->dtype;
  int64_t *shape = EINI_NEW(p->arena, int64_t, v->n);
  if (shape == NULL) eini_pmem(p);
  if (view != NULL && view->rank != v->n)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "'%.*s' has %d axes, the bound view %d",
              EINI_NAME_OF(p, v->sym), v->n, view->rank);
  if (view != NULL && !ein_dtype_same_kind(view->dtype, given))
    eini_perr(p, EIN_ERR_DTYPE, EINI_AT(v), NULL, "'%.*s' is declared %s, the bound view is %s",
              EINI_NAME_OF(p, v->sym), ein_dtype_name(given), ein_dtype_name(view->dtype));
  for (int i = 0; i < v->n && p->st == EIN_OK; i++) shape[i] = eini_input_axis(q, v, i, view);
  if (p->st != EIN_OK || !eini_declare(q, v, EINI_N_TENSOR, q->g->ntensor)) return;
  ein_dtype stored = view != NULL ? view->dtype : given;
  if (eini_graph_add_tensor(q->g, s->s, s->n, EIN_ROLE_INPUT, stored, v->n, shape, &tensor)) {
    eini_pmem(p);
    return;
  }
  q->g->tensor[tensor].pos = v->pos;
  while (p->st == EIN_OK && q->ndeclared < q->g->ntensor) {
    ein_dtype *t = (ein_dtype *)eini_grow(p->arena, q->declared, q->ndeclared, &q->capdeclared,
                                          sizeof *t);
    if (t == NULL) eini_pmem(p);
    else (q->declared = t)[q->ndeclared++] = EIN_NONE;
  }
  if (p->st == EIN_OK && stored != given) q->declared[tensor] = given;
}

static void eini_do_param(eini_prog *q, const eini_line *l, const eini_syn *v) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  ein_scalar value = {v->op, v->re, 0};
  int id;
  if (!eini_param_holds(l->dtype, &value))
    eini_perr(&q->p, EIN_ERR_DTYPE, EINI_AT(v), NULL, "'%.*s' is %s, which does not hold %.17g",
              EINI_NAME_OF(&q->p, v->sym), ein_dtype_name(l->dtype), v->re);
  if (eini_declare(q, v, EINI_N_PARAM, q->g->nparam) &&
      eini_graph_add_param(q->g, s->s, s->n, l->dtype, value, &id))
    eini_pmem(&q->p);
}

// Outputs are marked before any statement is lowered; here only what they name is checked.
static void eini_do_output(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  eini_near w;
  if (s->ndef > 0) return;
  if (s->kind == EINI_N_TENSOR && q->g->tensor[s->id].role == EIN_ROLE_TEMP) {
    q->g->tensor[s->id].role = EIN_ROLE_OUTPUT;  // it was in the graph before
    return;
  }
  if (s->bad || s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind == EINI_N_TENSOR)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), "define an output from it: Y[i] = X[i]",
              "'%.*s' is an input", EINI_NAME_OF(p, v->sym));
  eini_near_init(&w, s->s, s->n);
  for (int64_t i = 0; i < eini_min64(p->names->n, 4096); i++) {
    if (p->names->sym[i].ndef > 0) eini_near_try(&w, p->names->sym[i].s, p->names->sym[i].n);
  }
  eini_perr(p, EIN_ERR_NAME, EINI_AT(v), eini_near_hint(&w), "the output '%.*s' is not defined",
            EINI_NAME_OF(p, v->sym));
}

static void eini_do_def(eini_prog *q, eini_line *l) {
  eini_line **d = (eini_line **)eini_grow(q->p.arena, (void *)q->def, q->ndef, &q->capdef,
                                          sizeof *d);
  eini_syn *v = eini_part(&q->p, EINI_S_NAME, l->pos);
  if (d == NULL) eini_pmem(&q->p);
  if (q->p.st != EIN_OK) return;
  q->def = d;
  v->sym = l->sym;
  l->stmt = q->ndef;
  if (eini_declare(q, v, EINI_N_DEF, q->ndef)) d[q->ndef++] = l;
}

// ---- defining statements ----

// The index x, a free one or one of sums without a name, has extent e; 1 when there is one.
static int eini_give_extent(eini_prog *q, const eini_syn *x, const eini_syn *e) {
  eini_parser *p = &q->p;
  int64_t n = 0;
  int found = 0;
  for (int64_t i = 0; i < q->nvar && p->st == EIN_OK; i++) {
    eini_var *v = &q->var[i];
    if (v->sym != x->sym || v->mark != 0 || v->kind == EINI_V_NAMED || v->kind == EINI_V_SCAN)
      continue;
    if (found++ == 0 && eini_const(q, e, NULL, 1, &n) > 0 && n < 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(e), NULL,
                "an extent is an expression of integers and sizes, at least 0");
    if (v->axis == -2 && v->extent != n)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(e), NULL, "two extents for '%.*s'",
                EINI_NAME_OF(p, x->sym));
    v->extent = n;
    v->axis = -2;
  }
  return found > 0;
}

// Free indices in the order they occur on the left, with their extents.
static void eini_left_indices(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  const eini_syn *left = l->left;
  for (int i = 0; i < left->n && p->st == EIN_OK; i++)
    eini_scan(q, left->kid[i], NULL, EINI_V_FREE, 0, 1);
  for (int i = 0; i < left->n && p->st == EIN_OK; i++) {
    const eini_syn *x = left->kid[i];
    if (!left->inv[i] && !eini_give_extent(q, x, left->bext[i]))
      eini_perr(p, EIN_ERR_NAME, EINI_AT(x), NULL, "the name '%.*s' is taken",
                EINI_NAME_OF(p, x->sym));
  }
  for (int64_t i = 0; i < l->given.n && p->st == EIN_OK; i += 2)
    eini_give_extent(q, l->given.kid[i], l->given.kid[i + 1]);
}

// Extents of the indices summed without a name; every name after "for" is an index.
static void eini_given_indices(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  for (int64_t i = 0; i < l->given.n && p->st == EIN_OK; i += 2) {
    const eini_syn *x = l->given.kid[i];
    if (!eini_give_extent(q, x, l->given.kid[i + 1]) && p->st == EIN_OK)
      eini_perr_name(p, EIN_ERR_NAME, x->pos, x->sym,
                     "named reductions have their own: sum[k=4](..)",
                     "is no index on the left, and none that is summed without a name");
  }
}

// The right side with its terms resolved.
static eini_syn *eini_right_side(eini_prog *q, eini_syn *rhs) {
  if (rhs->kind != EINI_S_SUM) return eini_resolve_term(q, rhs);
  eini_kids k = {NULL, NULL, 0, 0};
  for (int i = 0; i < rhs->n && q->p.st == EIN_OK; i++)
    eini_kids_add(&q->p, &k, eini_resolve_term(q, rhs->kid[i]), rhs->inv[i]);
  eini_syn *r = eini_resolved(q, rhs, EINI_S_SUM, -1);
  return r == NULL ? r : eini_syn_with(r, &k);
}

// The tensor a statement defines; its first piece makes it. -1 after a mistake.
static int eini_left_tensor(eini_prog *q, const eini_line *l) {
  static const char *const what[] = {"", "a size", "a param", "an input", "a macro", ""};
  eini_parser *p = &q->p;
  eini_sym *s = eini_sym_of(q, l->sym);
  int tensor = s->open - 1, role = (q->outputs ? s->isout : !s->read) ? EIN_ROLE_OUTPUT
                                                                      : EIN_ROLE_TEMP;
  if (s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE)
    eini_perr(p, EIN_ERR_NAME, l->pos, s->n, NULL, "'%.*s' is %s already", EINI_NAME_OF(p, l->sym),
              what[s->kind]);
  if (tensor >= 0 && q->g->tensor[tensor].rank != l->left->n)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(l), NULL, "'%.*s' has %d axes%s, here %d",
              EINI_NAME_OF(p, l->sym), q->g->tensor[tensor].rank,
              q->g->tensor[tensor].nstmt > 0 ? " in an earlier piece" : "", l->left->n);
  if (p->st == EIN_OK && tensor >= 0 && s->isout) q->g->tensor[tensor].role = EIN_ROLE_OUTPUT;
  if (p->st != EIN_OK || tensor >= 0) return p->st == EIN_OK ? tensor : -1;
  if (eini_graph_add_tensor(q->g, s->s, s->n, (ein_role)role, s->dtype, l->left->n, NULL, &tensor))
    return eini_pmem(p), -1;
  q->g->tensor[tensor].pos = l->pos;
  s->open = tensor + 1;
  return tensor;
}

static void eini_cover_report(eini_prog *q, const eini_line *l, const eini_cover *c) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, l->sym);
  char text[320], hint[96] = "";
  const eini_line *x = l, *a = NULL, *b = NULL;
  for (;; x = &q->line[x->prev - 1]) {
    if (x->stmt == c->a) a = x;
    if (x->stmt == c->b) b = x;
    if (x->prev == 0) break;
  }
  if (a != NULL && b != NULL) {
    int line[2] = {1, 1};
    for (int64_t i = 0; i < a->pos; i++) line[0] += p->s[i] == '\n';
    for (int64_t i = 0; i < b->pos; i++) line[1] += p->s[i] == '\n';
    snprintf(hint, sizeof hint, "by lines %d and %d", line[1], line[0]);
  }
  if (a == NULL) a = l;
  eini_cover_text(c, s->s, eini_cut(s->s, s->n), l->left->n, text, sizeof text);
  eini_perr(p, c->status, EINI_AT(a), hint[0] ? hint : NULL, "%s", text);
}

// After its last piece a tensor has a shape and a dtype, and may be read.
static void eini_seal(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  eini_sym *s = eini_sym_of(q, l->sym);
  int64_t n = s->ndef, *piece = EINI_NEW(p->arena, int64_t, n);
  eini_cover c;
  char text[320];
  memset(&c, 0, sizeof c);
  if (s->kind == EINI_N_BAD || s->open == 0) return;
  s->kind = EINI_N_BAD;
  if (s->bad && p->status != EIN_OK) return;  // a piece of it may have failed to parse
  for (const eini_line *x = l; piece != NULL; x = &q->line[x->prev - 1]) {
    piece[--n] = x->stmt;  // in the order of the text
    if (x->prev == 0) break;
  }
  ein_status st = piece == NULL ? EIN_ERR_NO_MEMORY :
                  eini_cover_prove(q->g, s->open - 1, piece, s->ndef, p->arena, &c);
  if (c.status == EIN_OK) c.status = st;
  if (st == EIN_ERR_NO_MEMORY) eini_pmem(p);
  else if (st != EIN_OK) eini_cover_report(q, l, &c);
  else if (eini_given_text(&q->g->tensor[s->open - 1], text, sizeof text))
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(l), NULL, "%s", text);
  if (p->st != EIN_OK) return;
  s->kind = EINI_N_TENSOR;
  s->id = s->open - 1;
  eini_tensor_fix_dtype(&q->g->tensor[s->id]);
}

// A function over blocks reads tensors as they are stored: what else its arguments are becomes one.
static void eini_block_arguments(eini_prog *q, eini_syn *call) {
  for (int k = 0; k < call->n && q->p.st == EIN_OK; k++) {
    eini_syn *v = call->kid[k];
    while (v->kind == EINI_S_PAREN) v = v->kid[0];
    const int stored = v->kind == EINI_S_ACCESS &&
                       (v->id >= q->ndeclared || q->declared[v->id] == EIN_NONE);
    call->kid[k] = stored ? v : eini_temp(q, v, v, EIN_FOLD_NONE, NULL, 0, v->pos);
  }
}

static void eini_lower(eini_prog *q, eini_line *l) {
  eini_parser *p = &q->p;
  eini_build b;
  q->nvar = q->access.n = 0;
  eini_row *left = EINI_NEW(p->arena, eini_row, l->left->n);
  if (left == NULL) eini_pmem(p);
  int tensor = p->st == EIN_OK ? eini_left_tensor(q, l) : -1;
  if (tensor < 0) return;
  eini_left_indices(q, l);
  int nfree = (int)q->nvar, *freev = EINI_NEW(p->arena, int, nfree);
  if (freev == NULL) eini_pmem(p);
  eini_syn *r = p->st == EIN_OK ? eini_right_side(q, l->kid[0]) : NULL, *body = r;
  for (int i = 0; i < l->left->n && p->st == EIN_OK; i++)
    left[i] = eini_affine_row(q, l->left->kid[i], NULL);
  if (p->st == EIN_OK) eini_check_unnamed(q);
  if (p->st == EIN_OK) eini_given_indices(q, l);
  while (body != NULL && (body->kind == EINI_S_PAREN || body->kind == EINI_S_BODY))
    body = body->kid[0];
  int direct = body != NULL && body->kind == EINI_S_REDUCE && !body->exact;
  if (p->st == EIN_OK) eini_solve(q, direct && body->op == EIN_FOLD_BLOCK ? body : NULL);
  if (p->st == EIN_OK) eini_check_bounds(q);
  if (p->st != EIN_OK || r == NULL) return;
  for (int i = 0; i < nfree; i++) freev[i] = i;
  if (direct && body->op == EIN_FOLD_BLOCK) eini_block_arguments(q, body->kid[0]);
  if (p->st != EIN_OK) return;
  if (eini_build_tree(q, &b, freev, nfree, direct ? body->bind : NULL, direct ? body->nbind : 0,
                      direct ? body->kid[0] : r) == EIN_OK)
    eini_build_stmt(&b, tensor, left, direct ? body->op : EIN_FOLD_NONE, l->pos);
  if (p->st == EIN_OK) l->stmt = q->g->nstmt - 1;
}

// ---- gradients ----

// The tensor a name of a grad statement means; -1 after a mistake.
static int eini_grad_name(eini_prog *q, const eini_syn *v) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (q->p.st == EIN_OK && s->kind != EINI_N_TENSOR) eini_bad_name(q, v, 0);
  return q->p.st == EIN_OK ? s->id : -1;
}

// Is the name of a gradient new?
static void eini_grad_check_name(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE || s->ndef > 1)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, s->ndef > 1 ? "'%.*s' is defined more than once"
                                                             : "the name '%.*s' is taken",
              EINI_NAME_OF(p, v->sym));
}

// A tensor for a gradient by tensor wrt, of the dtype it was declared with; or one added before.
static int eini_grad_left(eini_prog *q, const eini_syn *v, int wrt) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  ein_dtype dtype = s->dtype != EIN_NONE || wrt >= q->ndeclared ? s->dtype : q->declared[wrt];
  int id, role = (q->outputs ? s->isout : !s->read) ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP;
  if (s->open > 0) {
    if (s->isout) q->g->tensor[s->open - 1].role = EIN_ROLE_OUTPUT;
    return s->open - 1;
  }
  if (eini_graph_add_tensor(q->g, s->s, s->n, (ein_role)role, dtype, q->g->tensor[wrt].rank,
                            NULL, &id) != EIN_OK)
    return eini_pmem(&q->p), -1;
  q->g->tensor[id].pos = v->pos;
  return id;
}

static void eini_do_grad(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  int n = l->nparam, *wrt = EINI_NEW(p->arena, int, n), *grad = EINI_NEW(p->arena, int, n);
  eini_grad w;
  if (wrt == NULL || grad == NULL) eini_pmem(p);
  memset(&w, 0, sizeof w);
  w.g = q->g;
  w.diag = p->diag;
  w.pos = l->pos;
  w.len = l->len;
  w.at = l->kid;
  w.scratch = p->arena;
  for (int k = 0; k < n && p->st == EIN_OK; k++) eini_grad_check_name(q, l->kid[2 + n + k]);
  w.loss = p->st == EIN_OK ? eini_grad_name(q, l->kid[0]) : -1;
  int seed = p->st == EIN_OK && l->kid[1]->sym >= 0 ? eini_grad_name(q, l->kid[1]) : -1;
  for (int k = 0; k < n && p->st == EIN_OK; k++) wrt[k] = eini_grad_name(q, l->kid[2 + k]);
  for (int k = 0; k < n && p->st == EIN_OK; k++)
    grad[k] = eini_grad_left(q, l->kid[2 + n + k], wrt[k]);
  if (p->st == EIN_OK) eini_reported(p, eini_grad_all(&w, seed, n, wrt, grad));
  for (int k = 0; k < n; k++) {
    eini_sym *s = eini_sym_of(q, l->kid[2 + n + k]->sym);
    if (s->kind != EINI_N_NONE) continue;
    s->kind = p->st == EIN_OK ? EINI_N_TENSOR : EINI_N_BAD;
    if (p->st == EIN_OK) s->id = grad[k];
  }
}

// ---- before lowering: what is read, defined, observed ----

static void eini_mark_read(eini_prog *q, const eini_syn *v) {
  if (v->kind == EINI_S_ACCESS || v->kind == EINI_S_NAME) q->names.sym[v->sym].read = 1;
  for (int i = 0; i < v->n && v->kind != EINI_S_ACCESS; i++) eini_mark_read(q, v->kid[i]);
}

static void eini_survey_grad(eini_prog *q, int64_t number) {
  const eini_line *l = &q->line[number];
  for (int k = 0; k < l->n; k++) {
    eini_sym *s = l->kid[k]->sym < 0 ? NULL : eini_sym_of(q, l->kid[k]->sym);
    if (s != NULL && k < 2 + l->nparam) s->read = 1;
    if (k < 2 + l->nparam) continue;
    s->ndef++;
    s->lastdef = (int)number;
  }
}

static void eini_survey(eini_prog *q) {
  for (int64_t i = 0; i < q->nline; i++) {
    eini_line *l = &q->line[i];
    int output = l->kind == EINI_L_OUTPUT;
    q->p.st = EIN_OK;
    if (l->kind == EINI_L_DEF || l->kind == EINI_L_DEFINE) eini_mark_read(q, l->kid[0]);
    if (l->kind == EINI_L_GRAD) eini_survey_grad(q, i);
    for (int k = 0; k < l->n && (output || l->kind == EINI_L_DEFINE); k++) {
      int sym = output ? l->kid[k]->sym : l->sym;
      eini_sym *s = eini_sym_of(q, sym);
      if (l->dtype != EIN_NONE && s->dtype != EIN_NONE && s->dtype != l->dtype)
        eini_perr(&q->p, EIN_ERR_DTYPE, output ? l->kid[k]->pos : l->pos, s->n, NULL,
                  "'%.*s' is given two dtypes, %s and %s", EINI_NAME_OF(&q->p, sym),
                  ein_dtype_name(s->dtype), ein_dtype_name(l->dtype));
      if (l->dtype != EIN_NONE) s->dtype = l->dtype;
      if (output) {
        q->outputs = s->isout = 1;
      } else {
        l->prev = s->ndef++ > 0 ? s->lastdef + 1 : 0;
        s->lastdef = (int)i;
      }
    }
  }
}

static void eini_do_line(eini_prog *q, int64_t number) {
  eini_line *l = &q->line[number];
  eini_parser *p = &q->p;
  q->cur = number;
  p->st = EIN_OK;
  p->depth = 0;
  if (l->kind == EINI_L_DEF) eini_do_def(q, l);
  if (l->kind == EINI_L_DEFINE) {
    eini_lower(q, l);
    for (int64_t i = 0; i < q->nvar; i++) p->names->sym[q->var[i].sym].var = 0;
    eini_sym *s = eini_sym_of(q, l->sym);
    if (p->st != EIN_OK && s->kind == EINI_N_NONE) s->kind = EINI_N_BAD;
    if (p->st == EIN_OK && s->lastdef == number) eini_seal(q, l);
    if (p->st == EIN_OK && l->output < 0) eini_outputs_read(q, l);
  }
  if (l->kind == EINI_L_GRAD) eini_do_grad(q, l);
  for (int k = 0; k < l->n && l->kind < EINI_L_DEF; k++) {
    const eini_syn *v = l->kid[k];
    p->st = EIN_OK;
    if (l->kind == EINI_L_INPUT) eini_do_input(q, l, v);
    if (l->kind == EINI_L_PARAM) eini_do_param(q, l, v);
    if (l->kind == EINI_L_OUTPUT) eini_do_output(q, v);
    eini_sym *s = eini_sym_of(q, v->sym);
    if (p->st != EIN_OK && s->kind == EINI_N_NONE) s->kind = EINI_N_BAD;
  }
}

// ---- the caller's side ----

// Views and sizes that name nothing are mistakes of the caller.
static void eini_check_given(eini_prog *q) {
  eini_parser *p = &q->p;
  p->st = EIN_OK;
  for (int i = 0; i < q->desc->nbind + q->desc->nsize; i++) {
    int bind = i < q->desc->nbind, found = 0;
    const char *name = bind ? q->desc->bind[i].name : q->desc->size[i - q->desc->nbind].name;
    eini_near w;
    eini_near_init(&w, name, (int64_t)strlen(name));
    for (int64_t k = 0; k < p->names->n && !found; k++) {
      const eini_sym *s = &p->names->sym[k];
      int input = s->kind == EINI_N_TENSOR && q->g->tensor[s->id].role == EIN_ROLE_INPUT;
      found = eini_word_is(s->s, s->n, name) && (input || !bind);
      if (bind ? input : s->kind == EINI_N_SIZE) eini_near_try(&w, s->s, s->n);
    }
    if (!found)
      eini_perr(p, EIN_ERR_NAME, -1, 0, eini_near_hint(&w),
                bind ? "no input is named '%.60s'" : "no size or index is named '%.60s'", name);
  }
}

// Mistakes in the order of the text; those of lowering come after those of parsing.
static void eini_diag_sort(eini_diag *d) {
  for (int i = 1; d->error != NULL && i < d->count; i++) {
    for (int j = i; j > 0 && d->error[j].line > 0; j--) {
      ein_error e = d->error[j], f = d->error[j - 1];
      if (f.line < e.line || (f.line == e.line && f.column <= e.column)) break;
      d->error[j - 1] = e;
      d->error[j] = f;
    }
  }
  if (d->error != NULL && d->count > 0) d->status = d->error[0].status;
}

static ein_status eini_check_desc(eini_diag *g, const ein_program_desc *d) {
  if (d->text == NULL) return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "text is NULL");
  if ((int)d->dtype < 0 || d->dtype >= EIN_DTYPE_COUNT)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "dtype is no dtype, but %d", (int)d->dtype);
  const eini_where where = {0, NULL};
  EINI_TRY(eini_validate_bindings(g, "bind", d->nbind, d->bind, &where));
  if (d->nsize < 0 || (d->nsize > 0 && d->size == NULL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "nsize is %d%s", d->nsize,
                     d->nsize < 0 ? "" : ", but the list is NULL");
  for (int i = 0; i < d->nsize; i++) {
    if (d->size[i].name == NULL)
      return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "size[%d] has no name: it is NULL", i);
    if (d->size[i].value < 0)
      return eini_fail(g, EIN_ERR_SHAPE, -1, 0, NULL, "size '%.80s' is %lld", d->size[i].name,
                       (long long)d->size[i].value);
  }
  return EIN_OK;
}

// Source lines of statements, from one on, from their positions.
static ein_status eini_graph_lines(eini_arena *a, ein_graph *g, int64_t from, const char *text,
                                   int64_t length) {
  int64_t n = 0, *end;  // where lines end
  for (int64_t i = 0; i < length; i++) n += text[i] == '\n';
  if ((end = EINI_NEW(a, int64_t, n)) == NULL) return EIN_ERR_NO_MEMORY;
  n = 0;
  for (int64_t i = 0; i < length; i++)
    if (text[i] == '\n') end[n++] = i;
  for (int64_t i = from; i < g->nstmt; i++) {  // those of gradients are not in the text's order
    int64_t low = 0, high = n;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (end[middle] < g->stmt[i].pos) low = middle + 1;
      else high = middle;
    }
    g->stmt[i].line = g->stmt[i].pos < 0 ? 0 : low + 1;
  }
  return EIN_OK;
}

// What a graph that is being built has is known by name: tensors, open ones until they are defined.
static void eini_names_of_graph(eini_prog *q) {
  const ein_graph *g = q->g;
  q->outputs = 1;  // roles are given
  for (int64_t k = 0; k < g->ntensor + g->nparam; k++) {
    const eini_tensor *t = k < g->ntensor ? &g->tensor[k] : NULL;
    const int64_t id = t != NULL ? k : k - g->ntensor;
    const char *name = t != NULL ? t->name : g->param[id].name;
    const int sym = eini_intern(&q->p, name, (int64_t)strlen(name));
    if (sym < 0) return;
    eini_sym *s = eini_sym_of(q, sym);
    s->pos = -1;
    if (t != NULL && t->shape == NULL) {
      s->open = (int)id + 1;
      s->dtype = t->dtype;
    } else {
      s->kind = t != NULL ? EINI_N_TENSOR : EINI_N_PARAM;
      s->id = (int)id;
    }
  }
}

// Parses; with fn NULL also lowers, perhaps into a graph being built, else calls fn for each input.
static ein_status eini_prog_run(eini_arena *arena, ein_graph *g, eini_diag *d,
                                const ein_program_desc *desc, eini_open *open,
                                void (*fn)(const char *, ein_dtype, int, void *), void *user) {
  size_t n = 0, most = desc->max_source > 0 ? desc->max_source : (size_t)16 << 20;
  int depth = desc->max_nesting > 0 ? desc->max_nesting : 256;
  const int64_t before = g->nstmt;
  eini_prog *q = EINI_NEW(arena, eini_prog, 1);
  if (q == NULL) return EIN_ERR_NO_MEMORY;
  if (d != NULL) eini_diag_reset(d, NULL, 0);
  EINI_TRY(eini_check_desc(d, desc));
  n = desc->length > 0 ? desc->length : strlen(desc->text);
  if (n > most || n > INT_MAX)
    return eini_fail(d, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the source has more than %llu bytes",
                     (unsigned long long)most);
  if (d != NULL) eini_diag_reset(d, desc->text, (int64_t)n);
  if (d != NULL) d->max = desc->max_errors > 0 ? desc->max_errors : 20;
  eini_parser_init(&q->p, arena, d, g, desc->text, (int64_t)n, depth < 1000 ? depth : 1000);
  q->p.names = &q->names;
  q->g = g;
  q->commands = -1;
  q->desc = desc;
  q->open = open;
  q->dtype = desc->dtype != EIN_NONE ? desc->dtype : EIN_F64;
  if (g->open) eini_names_of_graph(q);
  eini_parse_program(q);
  for (int64_t i = 0; fn != NULL && q->p.status == EIN_OK && i < q->nline; i++) {
    const eini_line *l = &q->line[i];
    for (int k = 0; k < l->n && l->kind == EINI_L_INPUT; k++) {
      const eini_sym *s = eini_sym_of(q, l->kid[k]->sym);
      char *name = eini_strndup(arena, s->s, s->n);
      if (name == NULL) return EIN_ERR_NO_MEMORY;
      fn(name, l->dtype, l->kid[k]->n, user);
    }
  }
  if (fn != NULL || q->p.status == EIN_ERR_NO_MEMORY) return q->p.status;
  eini_output_lines(q);
  eini_select_lines(q);
  eini_survey(q);
  eini_forms_init(&q->temps, arena, 0);
  for (int64_t i = 0; i < q->nline && !eini_diag_full(&q->p); i++) eini_do_line(q, i);
  eini_forms_free(&q->temps);
  if (q->p.status == EIN_OK) eini_check_given(q);
  if (q->p.status == EIN_OK) q->p.status = eini_graph_lines(arena, g, before, q->p.s, q->p.n);
  if (q->p.status == EIN_OK && q->commands >= 0 && g->open)
    return eini_fail(d, EIN_ERR_UNSUPPORTED, q->commands, 1, "ein_graph_parse takes them",
                     "commands of a schedule in a graph that is being built");
  if (q->p.status == EIN_OK && q->commands >= 0) {
    g->text = eini_strndup(&g->arena, q->p.s, q->p.n);
    g->length = q->p.n;
    g->commands = q->commands;
    if (g->text == NULL) return EIN_ERR_NO_MEMORY;
  }
  return q->p.status == EIN_OK && !g->open ? eini_graph_prune(g) : q->p.status;
}

static ein_status eini_add_text(ein_graph *g, const char *text) {
  ein_program_desc d;
  eini_arena arena;
  memset(&d, 0, sizeof d);
  d.text = text;
  for (int64_t t = 0; t < g->ntensor; t++)
    if (g->tensor[t].nstmt > 0) EINI_TRY(eini_seal_tensor(g, (int)t));
  eini_arena_init(&arena, &g->arena.al);
  ein_status st = eini_prog_run(&arena, g, g->diag, &d, NULL, NULL, NULL);
  eini_arena_free(&arena);
  if (g->diag == NULL) return st;
  eini_diag_sort(g->diag);
  g->diag->text = NULL;
  return st == EIN_OK || st == EIN_ERR_NO_MEMORY ? st : g->diag->status;
}

EIN_API ein_status ein_graph_add_text(ein_graph *g, const char *text) {
  EINI_TRY(eini_building(g));
  return g->status = eini_add_text(g, text);
}

// open: takes sizes that nothing says; NULL: these are mistakes.
static ein_status eini_program(ein_ctx *ctx, const ein_program_desc *desc, eini_open *open,
                               ein_graph **graph,
                               void (*fn)(const char *, ein_dtype, int, void *), void *user) {
  if (desc == NULL) {
    eini_begin_call(ctx, NULL);
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "the description is NULL");
  }
  ein_graph *g = eini_graph_new(ctx);
  if (g == NULL) return EIN_ERR_NO_MEMORY;
  eini_arena arena;
  eini_arena_init(&arena, &g->arena.al);
  ein_status st = eini_prog_run(&arena, g, eini_diag_of(ctx), desc, open, fn, user);
  if (ctx != NULL) eini_diag_sort(&ctx->diag);
  if (st != EIN_OK && st != EIN_ERR_NO_MEMORY && ctx != NULL) st = ctx->diag.status;
  eini_arena_free(&arena);
  if (ctx != NULL) ctx->diag.text = NULL;
  if (st == EIN_OK && graph != NULL) *graph = g;
  else eini_graph_free(g);
  return st;
}

EIN_API ein_status ein_program_inputs(ein_ctx *ctx, const ein_program_desc *desc,
                                      void (*fn)(const char *name, ein_dtype dtype, int rank,
                                                 void *user), void *user) {
  return fn == NULL ? EIN_ERR_ARGUMENT : eini_program(ctx, desc, NULL, NULL, fn, user);
}
