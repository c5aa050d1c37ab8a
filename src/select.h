// ================================================================================================
// >>select  selectors: concat, stack, repeat, pad, slice and their like
// Takes trees; gives lines in their place, whose pieces and accesses say the same: a selector over
// an index is a tensor of its own, which the statement then reads, or the statement's itself.
// ================================================================================================

typedef struct eini_selecting {
  eini_prog *q;
  eini_line *line, *into;   // lines so far; the one being read
  int64_t n, cap, fresh;
} eini_selecting;

// What a selector reads along its index: an access where the index stands alone.
typedef struct eini_selected {
  const eini_syn *access;
  int axis;
} eini_selected;

typedef struct eini_indices {
  int *sym, n;
} eini_indices;

// ---- trees ----

static eini_syn *eini_sel_new(eini_selecting *x, const eini_syn *at, int kind, int sym,
                              int64_t value) {
  eini_syn *v = eini_part(&x->q->p, kind, at->pos);
  v->len = at->len;
  v->sym = sym;
  v->ival = value;
  v->re = (double)value;
  v->exact = 1;
  return v;
}

static eini_syn *eini_sel_num(eini_selecting *x, const eini_syn *at, int64_t value) {
  return eini_sel_new(x, at, EINI_S_NUM, -1, value);
}

// a + b, a - b, a * b
static eini_syn *eini_sel_op(eini_selecting *x, const eini_syn *at, int op, eini_syn *a,
                             eini_syn *b) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_syn *v = eini_sel_new(x, at, op == '*' ? EINI_S_TERM : EINI_S_SUM, -1, 0);
  eini_kids_add(&x->q->p, &k, a, 0);
  eini_kids_add(&x->q->p, &k, b, op == '-');
  return eini_syn_with(v, &k);
}

// The quotient of constants, rounded down.
static eini_syn *eini_sel_div(eini_selecting *x, const eini_syn *at, eini_syn *a, eini_syn *b) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_syn *v = eini_sel_new(x, at, EINI_S_CALL, eini_intern(&x->q->p, "div", 3), 0);
  v->op = EIN_OP_FLOORDIV;
  eini_kids_add(&x->q->p, &k, a, 0);
  eini_kids_add(&x->q->p, &k, b, 0);
  return eini_syn_with(v, &k);
}

static eini_syn *eini_sel_size(eini_selecting *x, const eini_selected *s) {
  return eini_sel_new(x, s->access, EINI_S_SIZE, s->access->sym, s->axis);
}

// A number of the selector's, where the name of a size stands for it.
static eini_syn *eini_sel_const(eini_selecting *x, const eini_syn *v) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_syn *r = eini_part(&x->q->p, v->kind, v->pos);
  *r = *v;
  if (v->kind == EINI_S_NAME) r->kind = EINI_S_SIZE, r->ival = -1;
  for (int i = 0; i < v->n && x->q->p.st == EIN_OK; i++)
    eini_kids_add(&x->q->p, &k, eini_sel_const(x, v->kid[i]), v->inv[i]);
  r->size = 1;
  return eini_syn_with(r, &k);
}

// The access with another coordinate along its axis.
static eini_syn *eini_sel_read(eini_selecting *x, const eini_selected *s, eini_syn *at,
                               const eini_edge *edge) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_syn *v = eini_part(&x->q->p, EINI_S_ACCESS, s->access->pos);
  *v = *s->access;
  for (int r = 0; r < s->access->n; r++)
    eini_kids_add(&x->q->p, &k, r == s->axis ? at : s->access->kid[r], 0);
  if (edge != NULL && (v->edge = EINI_NEW(x->q->p.arena, eini_edge, s->access->n)) == NULL)
    eini_pmem(&x->q->p);
  else if (edge != NULL) v->edge[s->axis] = *edge;
  v->size = 1;
  return eini_syn_with(v, &k);
}

// ---- indices ----

static int eini_sel_has(const eini_indices *w, int sym) {
  int i = 0;
  while (i < w->n && w->sym[i] != sym) i++;
  return i < w->n;
}

// Adds the indices of accesses that no reduction inside binds.
static void eini_sel_indices(eini_selecting *x, const eini_syn *v, eini_indices *bound, int coord,
                             eini_indices *w) {
  const int inside = bound->n;
  if (v->kind == EINI_S_REDUCE && v->nbind == 0)
    eini_perr(&x->q->p, EIN_ERR_NAME, EINI_AT(v), "like sum[j](A[i,j])",
              "reductions in a selector name their indices");
  if (v->kind == EINI_S_REDUCE)
    for (int i = 0; i < v->nbind; i++) bound->sym[bound->n++] = v->bind[i];
  if (v->kind == EINI_S_NAME && coord && !eini_sel_has(bound, v->sym) && !eini_sel_has(w, v->sym))
    w->sym[w->n++] = v->sym;
  for (int i = 0; i < v->n; i++)
    eini_sel_indices(x, v->kid[i], bound, coord || v->kind == EINI_S_ACCESS, w);
  bound->n = inside;
}

// Names that may be bound in a tree.
static int64_t eini_sel_binds(const eini_syn *v) {
  int64_t n = v->nbind;
  for (int i = 0; i < v->n; i++) n += eini_sel_binds(v->kid[i]);
  return n;
}

static ein_status eini_sel_indices_of(eini_selecting *x, const eini_syn *v, eini_indices *w) {
  eini_indices bound = {EINI_NEW(x->q->p.arena, int, eini_sel_binds(v) + 1), 0};
  w->sym = EINI_NEW(x->q->p.arena, int, v->size + 1);
  w->n = 0;
  if (bound.sym == NULL || w->sym == NULL) return eini_pmem(&x->q->p);
  eini_sel_indices(x, v, &bound, 0, w);
  return x->q->p.st;
}

// ---- lines ----

// Appends `sym[indices] = right`; NULL after a mistake. It begins with no extents.
static eini_line *eini_sel_line(eini_selecting *x, const eini_syn *at, int sym,
                                const eini_indices *w, eini_syn *right) {
  eini_parser *p = &x->q->p;
  eini_kids k = {NULL, NULL, 0, 0}, left = {NULL, NULL, 0, 0}, e = {NULL, NULL, 0, 0};
  eini_line *l = (eini_line *)eini_grow(p->arena, x->line, x->n, &x->cap, sizeof *l);
  if (l == NULL) return eini_pmem(p), l;
  x->line = l;
  l += x->n;
  memset(l, 0, sizeof *l);
  l->kind = EINI_L_DEFINE;
  l->sym = sym;
  l->pos = at->pos;
  l->len = at->len;
  l->stmt = -1;
  l->dtype = sym == x->into->sym ? x->into->dtype : EIN_NONE;
  eini_kids_add(p, &k, right, 0);
  l->kid = k.kid;
  l->n = 1;
  for (int i = 0; i < w->n; i++) {
    eini_syn *name = eini_sel_new(x, at, EINI_S_NAME, w->sym[i], 0);
    eini_kids_add(p, &left, name, 0);
    eini_kids_add(p, &e, name, 1);
  }
  l->left = eini_syn_with(eini_sel_new(x, at, EINI_S_ACCESS, sym, 0), &left);
  l->left->bext = e.kid;
  l->left->inv = e.inv;
  x->n += p->st == EIN_OK;
  return p->st == EIN_OK ? l : NULL;
}

static int eini_sel_fresh(eini_selecting *x, const char *what) {
  const eini_sym *s = eini_sym_of(x->q, x->into->sym);
  char name[128];
  const int n = snprintf(name, sizeof name, "%.*s.%s%lld", eini_cut(s->s, s->n), s->s, what,
                         (long long)++x->fresh);
  const char *kept = eini_strndup(x->q->p.arena, name, n);
  return kept == NULL ? (eini_pmem(&x->q->p), -1) : eini_intern(&x->q->p, kept, n);
}

static eini_syn *eini_sel_whole(eini_selecting *x, const eini_syn *at, int sym,
                                const eini_indices *w) {
  eini_kids k = {NULL, NULL, 0, 0};
  for (int i = 0; i < w->n; i++)
    eini_kids_add(&x->q->p, &k, eini_sel_new(x, at, EINI_S_NAME, w->sym[i], 0), 0);
  return eini_syn_with(eini_sel_new(x, at, EINI_S_ACCESS, sym, 0), &k);
}

// An argument as an access where index c stands alone: itself, or that of a tensor made for it.
static ein_status eini_sel_source(eini_selecting *x, eini_syn *v, int c, const eini_indices *w,
                                  eini_selected *s) {
  int alone = 0, others = 0;
  while (v->kind == EINI_S_PAREN) v = v->kid[0];
  for (int r = 0; r < v->n && v->kind == EINI_S_ACCESS; r++) {
    const eini_syn *at = v->kid[r];
    if (at->kind == EINI_S_NAME && at->sym == c) alone++, s->axis = r;
    else if (at->kind != EINI_S_NAME) others++;
  }
  s->access = v;
  if (alone == 1 && others == 0 && v->edge == NULL) return EIN_OK;
  const int sym = eini_sel_fresh(x, "part");
  if (sym >= 0) eini_sel_line(x, v, sym, w, v);
  s->access = eini_sel_whole(x, v, sym, w);
  for (s->axis = 0; s->axis < w->n - 1 && w->sym[s->axis] != c;) s->axis++;
  return x->q->p.st;
}

// ---- selectors ----

// The extent of the i-th index of a line.
static void eini_sel_extent(eini_line *l, int i, eini_syn *extent) {
  if (l == NULL) return;
  l->left->bext[i] = extent;
  l->left->inv[i] = 0;
}

// A line `sym[.., at, ..] = right`, with `at` in place of the index at axis.
static eini_line *eini_sel_piece(eini_selecting *x, const eini_syn *v, int sym,
                                 const eini_indices *w, int axis, eini_syn *at, eini_syn *right) {
  eini_line *l = eini_sel_line(x, v, sym, w, right);
  if (l != NULL && at != NULL) l->left->kid[axis] = at;
  return l;
}

// concat, stack and interleave: a piece for each argument.
static void eini_sel_join(eini_selecting *x, const eini_syn *v, int sym, const eini_indices *w,
                          const eini_indices *of, int axis) {
  eini_syn *from = NULL;
  for (int k = 0; k < v->n && x->q->p.st == EIN_OK; k++) {
    eini_syn *name = eini_sel_new(x, v, EINI_S_NAME, v->bind[0], 0), *at = from;
    eini_selected s;
    if (v->op == EINI_SEL_STACK) {
      eini_sel_piece(x, v, sym, w, axis, eini_sel_num(x, v, k), v->kid[k]);
    } else if (eini_sel_source(x, v->kid[k], v->bind[0], of, &s) != EIN_OK) {
      return;
    } else if (v->op == EINI_SEL_CONCAT) {
      at = from == NULL ? NULL : eini_sel_op(x, v, '+', name, from);
      from = from == NULL ? eini_sel_size(x, &s)
                          : eini_sel_op(x, v, '+', from, eini_sel_size(x, &s));
      eini_sel_piece(x, v, sym, w, axis, at, eini_sel_read(x, &s, s.access->kid[s.axis], NULL));
    } else {
      at = eini_sel_op(x, v, '+', eini_sel_op(x, v, '*', eini_sel_num(x, v, v->n), name),
                       eini_sel_num(x, v, k));
      eini_sel_piece(x, v, sym, w, axis, at, eini_sel_read(x, &s, s.access->kid[s.axis], NULL));
    }
  }
}

// repeat and tile: the copy's number is an index that no text can name.
static void eini_sel_again(eini_selecting *x, const eini_syn *v, int sym, const eini_indices *w,
                           int axis, const eini_selected *s) {
  const int copy = eini_sel_fresh(x, "copy");
  eini_syn *name = eini_sel_new(x, v, EINI_S_NAME, v->bind[0], 0);
  eini_syn *other = eini_sel_new(x, v, EINI_S_NAME, copy, 0);
  eini_syn *n = eini_sel_const(x, v->kid[1]);
  eini_syn *at = v->op == EINI_SEL_TILE
                     ? eini_sel_op(x, v, '+', eini_sel_op(x, v, '*', eini_sel_size(x, s), other),
                                   name)
                     : eini_sel_op(x, v, '+', eini_sel_op(x, v, '*', n, name), other);
  eini_line *l = eini_sel_piece(x, v, sym, w, axis, at,
                                eini_sel_read(x, s, s->access->kid[s->axis], NULL));
  if (l == NULL) return;
  eini_kids_add(&x->q->p, &l->given, other, 0);
  eini_kids_add(&x->q->p, &l->given, n, 0);
}

// A coordinate of Python's: one below zero counts from the end.
static eini_syn *eini_sel_from(eini_selecting *x, const eini_syn *v, const eini_selected *s) {
  eini_syn *c = eini_sel_const(x, v);
  return v->kind != EINI_S_NEG ? c : eini_sel_op(x, v, '+', c, eini_sel_size(x, s));
}

// Where part k of so many begins: k*n/parts, rounded up.
static eini_syn *eini_sel_split(eini_selecting *x, const eini_syn *v, eini_syn *k, eini_syn *n,
                                eini_syn *parts) {
  eini_syn *all = eini_sel_op(x, v, '+', eini_sel_op(x, v, '*', k, n), parts);
  return eini_sel_div(x, v, eini_sel_op(x, v, '-', all, eini_sel_num(x, v, 1)), parts);
}

// pad, reverse, roll, slice and split: one access at other coordinates.
static void eini_sel_move(eini_selecting *x, const eini_syn *v, int sym, const eini_indices *w,
                          int axis, const eini_selected *s) {
  eini_edge zero = {EINI_EDGE_CONST, NULL}, wrap = {EINI_EDGE_WRAP, NULL}, *edge = NULL;
  eini_syn *name = eini_sel_new(x, v, EINI_S_NAME, v->bind[0], 0), *at = name;
  eini_syn *n = eini_sel_size(x, s), *one = eini_sel_num(x, v, 1);
  if (v->op == EINI_SEL_PAD) {
    edge = v->edge != NULL ? v->edge : &zero;
    zero.fill = eini_sel_num(x, v, 0);
    at = eini_sel_op(x, v, '-', name, eini_sel_const(x, v->kid[1]));
    n = eini_sel_op(x, v, '+', eini_sel_op(x, v, '+', n, eini_sel_const(x, v->kid[1])),
                    eini_sel_const(x, v->kid[2]));
  } else if (v->op == EINI_SEL_REVERSE) {
    at = eini_sel_op(x, v, '-', eini_sel_op(x, v, '-', n, one), name);
  } else if (v->op == EINI_SEL_ROLL) {
    edge = &wrap;
    at = eini_sel_op(x, v, '-', name, eini_sel_const(x, v->kid[1]));
  } else {
    eini_syn *step = v->op == EINI_SEL_SLICE && v->n > 3 ? eini_sel_const(x, v->kid[3]) : one;
    eini_syn *from, *to;
    if (v->op == EINI_SEL_SLICE) {
      from = eini_sel_from(x, v->kid[1], s);
      to = eini_sel_from(x, v->kid[2], s);
    } else {  // part k of so many, as even as can be, larger ones first
      eini_syn *k = eini_sel_const(x, v->kid[1]), *parts = eini_sel_const(x, v->kid[2]);
      from = eini_sel_split(x, v, k, n, parts);
      to = eini_sel_split(x, v, eini_sel_op(x, v, '+', k, one), n, parts);
    }
    at = eini_sel_op(x, v, '+', from, eini_sel_op(x, v, '*', step, name));
    n = eini_sel_div(x, v, eini_sel_op(x, v, '-', eini_sel_op(x, v, '+', eini_sel_op(
                               x, v, '-', to, from), step), one), step);
  }
  eini_line *l = eini_sel_piece(x, v, sym, w, axis, NULL, eini_sel_read(x, s, at, edge));
  eini_sel_extent(l, axis, n);
}

// The indices of a selector's result, by those of its first argument; the others have the same.
static ein_status eini_sel_check(eini_selecting *x, const eini_syn *v, eini_indices *of) {
  static const int joins = 1 << EINI_SEL_CONCAT | 1 << EINI_SEL_STACK | 1 << EINI_SEL_INTERLEAVE;
  eini_parser *p = &x->q->p;
  const int c = v->bind[0], list = joins >> v->op & 1;
  for (int k = 0; k < (list ? v->n : 1) && p->st == EIN_OK; k++) {
    eini_indices w;
    const eini_syn *a = v->kid[k];
    EINI_TRY(eini_sel_indices_of(x, a, &w));
    if (k == 0) *of = w;
    if (eini_sel_has(&w, c) != (v->op != EINI_SEL_STACK))
      return eini_perr(p, EIN_ERR_NAME, EINI_AT(a), NULL, v->op == EINI_SEL_STACK
                       ? "'%.*s' is the index of the stack: what is stacked has it not"
                       : "'%.*s' is no index of this", EINI_NAME_OF(p, c));
    for (int i = 0; i < of->n; i++)
      if (!eini_sel_has(&w, of->sym[i]))
        return eini_perr(p, EIN_ERR_SHAPE, EINI_AT(a), "all parts have the same indices",
                         "this has no index '%.*s', which the first part has",
                         EINI_NAME_OF(p, of->sym[i]));
    if (w.n > of->n)
      return eini_perr(p, EIN_ERR_SHAPE, EINI_AT(a), "all parts have the same indices",
                       "this has more indices than the first part");
  }
  return p->st;
}

// The lines of a selector whose result is tensor sym over the indices w.
static void eini_sel_lines(eini_selecting *x, const eini_syn *v, int sym, const eini_indices *w,
                           const eini_indices *of) {
  int axis = 0;
  eini_selected s;
  while (axis < w->n - 1 && w->sym[axis] != v->bind[0]) axis++;
  if (v->op <= EINI_SEL_INTERLEAVE) eini_sel_join(x, v, sym, w, of, axis);
  else if (eini_sel_source(x, v->kid[0], v->bind[0], of, &s) != EIN_OK) return;
  else if (v->op <= EINI_SEL_TILE) eini_sel_again(x, v, sym, w, axis, &s);
  else eini_sel_move(x, v, sym, w, axis, &s);
}

// Is the left side of the line the selector's indices alone, in any order? They are its order then.
static int eini_sel_direct(eini_selecting *x, const eini_syn *v, eini_indices *w) {
  const eini_line *l = x->into;
  const eini_syn *right = l->kid[0];
  int n = 0;
  while (right->kind == EINI_S_PAREN) right = right->kid[0];
  if (right != v || l->left->n != w->n || l->given.n > 0) return 0;
  for (int i = 0; i < w->n; i++) {
    const eini_syn *at = l->left->kid[i];
    n += at->kind == EINI_S_NAME && l->left->inv[i] && eini_sel_has(w, at->sym);
  }
  for (int i = 0; i < w->n; i++)
    for (int j = 0; j < i && n == w->n; j++) n -= l->left->kid[i]->sym == l->left->kid[j]->sym;
  if (n < w->n) return 0;
  for (int i = 0; i < w->n; i++) w->sym[i] = l->left->kid[i]->sym;
  return 1;
}

// A tree without selectors. *direct: the line that it is the right side of is written already.
static eini_syn *eini_sel_tree(eini_selecting *x, eini_syn *v, int *direct) {
  for (int i = 0; i < v->n && x->q->p.st == EIN_OK; i++)
    if (v->kind != EINI_S_ACCESS) v->kid[i] = eini_sel_tree(x, v->kid[i], direct);
  if (v->kind != EINI_S_SELECT || x->q->p.st != EIN_OK) return v;
  eini_indices of, w;
  if (eini_sel_check(x, v, &of) != EIN_OK) return v;
  w.n = 0;
  w.sym = EINI_NEW(x->q->p.arena, int, of.n + 1);
  if (w.sym == NULL) return eini_pmem(&x->q->p), v;
  if (v->op == EINI_SEL_STACK) w.sym[w.n++] = v->bind[0];
  for (int i = 0; i < of.n; i++) w.sym[w.n++] = of.sym[i];
  *direct = eini_sel_direct(x, v, &w);
  const int sym = *direct ? x->into->sym : eini_sel_fresh(x, eini_selectors[v->op].name);
  if (sym < 0) return v;
  eini_sel_lines(x, v, sym, &w, &of);
  return eini_sel_whole(x, v, sym, &w);
}

static int eini_sel_in(const eini_syn *v) {
  int found = v->kind == EINI_S_SELECT;
  for (int i = 0; i < v->n && !found; i++) found = eini_sel_in(v->kid[i]);
  return found;
}

// Puts lines in place of those that have selectors.
static void eini_select_lines(eini_prog *q) {
  eini_parser *p = &q->p;
  eini_selecting x;
  int any = 0;
  for (int64_t i = 0; i < q->nline && !any; i++)
    any = q->line[i].kind >= EINI_L_DEF && q->line[i].kind <= EINI_L_DEFINE &&
          eini_sel_in(q->line[i].kid[0]);
  if (!any || p->st != EIN_OK) return;
  memset(&x, 0, sizeof x);
  x.q = q;
  for (int64_t i = 0; i < q->nline && !eini_diag_full(p); i++) {
    eini_line now = q->line[i];
    int direct = 0, mine = now.kind == EINI_L_DEFINE || now.kind == EINI_L_DEF;
    x.into = &now;
    p->st = EIN_OK;
    mine = mine && eini_sel_in(now.kid[0]);
    if (mine && now.kind == EINI_L_DEF)
      eini_perr(p, EIN_ERR_UNSUPPORTED, EINI_AT(&now), NULL,
                "a macro has no selectors: their indices are those of a statement");
    else if (mine) now.kid[0] = eini_sel_tree(&x, now.kid[0], &direct);
    if (p->st != EIN_OK) eini_sym_of(q, now.sym)->bad = 1;
    if (direct || p->st != EIN_OK) continue;
    eini_line *l = (eini_line *)eini_grow(p->arena, x.line, x.n, &x.cap, sizeof *l);
    if (l == NULL) eini_pmem(p);
    else (x.line = l)[x.n++] = now;
  }
  q->line = x.line;
  q->nline = x.n;
  p->st = EIN_OK;
}
