// ================================================================================================
// >>precompute  parts of expressions as statements of their own
// Takes an expression over what a statement reads; gives a graph in which it is computed first,
// into a tensor that the statement reads. It must occur there, or be factors of a product.
// ================================================================================================

#define EINI_ASIDE_MOST 1024     // nodes of an expression that is looked for

typedef struct eini_aside {
  eini_emit em;            // first, see eini_aside_leaf
  eini_scheduler *w;
  const eini_stmt *s;      // as it was
  eini_stmt was;
  eini_span at;            // the expression
  int64_t *coef;           // scratch: of a coordinate, by index
  eini_expr e;             // it, typed as the statement's; operands are those of the statement
  int *first;              // of its nodes: the first that is the same
  int *same;               // of the statement's: the first node of e that is the same; -1: none
  char *part;              // of the statement's: 1: it is e; 2: the product that has e's factors
  int nfactor, *factor;    // of e, as nodes of it, where it is a product
  int nrest, *rest;        // of that product, as nodes: those that are not e's, in order, and where
  int before;              //   e stands among them
  int nindex, *index;      // of the new tensor's axes: indices of the statement
  int *axis;               // back: by index; -1: none
} eini_aside;

// ---- the expression, over the operands of the statement ----

static int eini_aside_index(const eini_aside *x, int sym) {
  const eini_sym *v = &x->w->names.sym[sym];
  int i = x->s->nindex - 1;
  while (i >= 0 && !eini_word_is(v->s, v->n, x->s->index[i].name)) i--;
  return i;
}

static int eini_aside_tensor(const eini_aside *x, int sym) {
  const eini_sym *v = &x->w->names.sym[sym];
  int t = (int)x->w->g->ntensor - 1;
  while (t >= 0 && !eini_word_is(v->s, v->n, x->w->g->tensor[t].name)) t--;
  return t;
}

// size(i), size(X, axis); -1 after a mistake.
static int64_t eini_aside_size(eini_aside *x, const eini_syn *v) {
  const int i = eini_aside_index(x, v->sym), t = eini_aside_tensor(x, v->sym);
  if (v->ival < 0 && i >= 0) return x->s->index[i].extent;
  if (v->ival >= 0 && t >= 0 && v->ival < x->w->g->tensor[t].rank)
    return x->w->g->tensor[t].shape[v->ival];
  eini_perr(&x->w->p, EIN_ERR_NAME, EINI_AT(v), "size(i) of an index, size(X, 0) of an axis",
            "the statement has no such size");
  return -1;
}

// Adds `by` times a tree to x->coef and *offset; 0: it is not affine, or too large. Trees nest.
static int eini_aside_affine(eini_aside *x, const eini_syn *v, int64_t by, int64_t *offset) {
  int64_t one = 0, all = by;
  int i, good = 1, last = -1;
  switch (v->kind) {
    case EINI_S_PAREN: return eini_aside_affine(x, v->kid[0], by, offset);
    case EINI_S_NEG: return by != INT64_MIN && eini_aside_affine(x, v->kid[0], -by, offset);
    case EINI_S_NUM: case EINI_S_SIZE:
      one = v->kind == EINI_S_SIZE ? eini_aside_size(x, v) : v->ival;
      return (v->kind == EINI_S_SIZE || v->exact) && !eini_mul_overflow(by, one, &one) &&
             !eini_add_overflow(*offset, one, offset);
    case EINI_S_NAME:
      i = eini_aside_index(x, v->sym);
      return i >= 0 && !eini_add_overflow(x->coef[i], by, &x->coef[i]);
    case EINI_S_SUM:
      for (int k = 0; k < v->n && good; k++)
        good = by != INT64_MIN && eini_aside_affine(x, v->kid[k], v->inv[k] ? -by : by, offset);
      return good;
    case EINI_S_TERM:  // numbers, and one tree at most that is none
      for (int k = 0; k < v->n && good; k++) {
        const eini_syn *f = v->kid[k];
        const int number = f->kind == EINI_S_SIZE || (f->kind == EINI_S_NUM && f->exact);
        one = f->kind == EINI_S_SIZE ? eini_aside_size(x, f) : f->ival;
        good = !v->inv[k] && (number ? !eini_mul_overflow(all, one, &all) : last < 0);
        last = number ? last : k;
      }
      if (!good) return 0;
      return last < 0 ? !eini_add_overflow(*offset, all, offset)
                      : eini_aside_affine(x, v->kid[last], all, offset);
    default: return 0;
  }
}

// Does row r of a map say what is in x->coef and offset?
static int eini_aside_row_is(const eini_aside *x, const eini_map *m, int r, int64_t offset) {
  int same = m->offset[r] == offset;
  for (int i = 0; i < x->s->nindex && same; i++) same = eini_map_coef(m, r, i) == x->coef[i];
  return same;
}

// The operand of the statement that an access, or the name of a tensor without axes, is.
static int eini_aside_access(eini_aside *x, const eini_syn *v) {
  eini_parser *p = &x->w->p;
  const int t = eini_aside_tensor(x, v->sym), rank = v->kind == EINI_S_ACCESS ? v->n : 0;
  int reads = 0;
  for (int k = 0; k < x->s->noperand && p->st == EIN_OK; k++) {
    const eini_map *m = &x->s->proj[k];
    if (t < 0 || x->s->operand[k] != t) continue;
    reads = 1;
    int same = m->rows == rank && v->edge == NULL;
    for (int r = 0; r < rank && same; r++) {
      int64_t offset = 0;
      memset(x->coef, 0, ((size_t)x->s->nindex + 1) * sizeof *x->coef);
      if (!eini_aside_affine(x, v->kid[r], 1, &offset) && p->st == EIN_OK)
        eini_perr(p, EIN_ERR_NAME, EINI_AT(v->kid[r]), NULL, "no coordinate made of indices of the "
                  "statement");
      same = p->st == EIN_OK && eini_aside_row_is(x, m, r, offset);
    }
    if (same) return eini_emit_op(&x->em, EIN_OP_OPERAND, v->pos, k, 0);
  }
  eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, reads ? "the statement of '%.60s' does not read "
            "'%.*s' so" : "the statement of '%.60s' does not read '%.*s'",
            x->w->g->tensor[x->s->out].name, EINI_NAME_OF(p, v->sym));
  return -1;
}

static int eini_aside_leaf(eini_emit *em, const eini_syn *v) {
  eini_aside *x = (eini_aside *)(void *)em;
  eini_parser *p = &x->w->p;
  const ein_graph *g = x->w->g;
  if (v->kind == EINI_S_ACCESS) return eini_aside_access(x, v);
  if (v->kind == EINI_S_SIZE) {
    const int id = eini_expr_int(em->arena, &em->e, v->pos, eini_aside_size(x, v));
    if (id < 0) eini_pmem(p);
    return p->st == EIN_OK ? id : -1;
  }
  if (v->kind == EINI_S_NAME) {
    const eini_sym *s = &x->w->names.sym[v->sym];
    const int i = eini_aside_index(x, v->sym);
    if (i >= 0) return eini_emit_op(em, EIN_OP_INDEX, v->pos, i, 0);
    for (int k = 0; k < g->nparam; k++)
      if (eini_word_is(s->s, s->n, g->param[k].name))
        return eini_emit_op(em, EIN_OP_PARAM, v->pos, k, 0);
    return eini_aside_access(x, v);
  }
  eini_perr(p, EIN_ERR_UNSUPPORTED, EINI_AT(v), "folds are statements of their own: on NAME, as "
            "planned", "what is computed first is an expression without folds");
  return -1;
}

static ein_status eini_aside_read(eini_aside *x, const eini_syn *tree) {
  eini_parser *p = &x->w->p;
  eini_typing ty;
  ein_dtype *od = EINI_NEW(p->arena, ein_dtype, x->s->noperand + 1);
  x->coef = EINI_NEW(p->arena, int64_t, x->s->nindex + 1);
  if (od == NULL || x->coef == NULL) return eini_pmem(p);
  x->em.p = p;
  x->em.arena = p->arena;
  x->em.leaf_fn = eini_aside_leaf;
  if (eini_emit_tree(&x->em, tree) < 0 || p->st != EIN_OK) return p->st;
  for (int k = 0; k < x->s->noperand; k++) od[k] = x->w->g->tensor[x->s->operand[k]].dtype;
  memset(&ty, 0, sizeof ty);
  ty.operand = od;
  ty.param = x->w->g->param;
  ty.function = x->w->g->function;
  ty.diag = p->diag;
  const ein_status st = eini_expr_type(p->arena, &ty, &x->em.e, &x->e);
  if (st == EIN_OK && x->e.n > EINI_ASIDE_MOST)
    return eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(&x->at), NULL, "it has more than %d parts",
                     EINI_ASIDE_MOST);
  return eini_reported(p, st);
}

// ---- where it occurs ----

// Is node v, whose children are nodes kid[] of e, node j of e? Sums and products of two may stand
// the other way round: that gives the same bits.
static int eini_aside_node_is(const eini_aside *x, const eini_node *v, const int *kid, int j) {
  const eini_node *u = &x->e.node[j];
  const int n = eini_node_args(u);
  if (u->op != v->op || u->dtype != v->dtype || eini_node_args(v) != n) return 0;
  if (u->op == EIN_OP_CONST)
    return u->exact == v->exact && u->ival == v->ival &&
           memcmp(&u->re, &v->re, sizeof u->re) == 0 &&
           memcmp(&u->im, &v->im, sizeof u->im) == 0;
  if (u->op == EIN_OP_OPERAND) {
    if (eini_operand_first(x->s, u->arg[0]) != eini_operand_first(x->s, v->arg[0])) return 0;
  } else if (n == 0 || u->op == EIN_OP_CALL) {
    if (u->arg[0] != v->arg[0]) return 0;
  } else if (u->op == EIN_OP_CAST && u->arg[1] != v->arg[1]) {
    return 0;
  }
  int same = 1;
  for (int k = 0; k < n; k++) same &= x->first[eini_node_arg(&x->e, u, k)] == kid[k];
  if (!same && (u->op == EIN_OP_MUL || u->op == EIN_OP_ADD))
    same = x->first[u->arg[0]] == kid[1] && x->first[u->arg[1]] == kid[0];
  return same;
}

// Of each node of an expression the first node of e, up to `most`, that is the same; -1: none.
static void eini_aside_classes(const eini_aside *x, const eini_expr *of, int most, int *first) {
  for (int64_t i = 0; i < of->n; i++) {
    const eini_node *v = &of->node[i];
    int kid[EINI_ARGS_MAX] = {0}, known = 1;
    for (int k = 0; k < eini_node_args(v); k++)
      known &= (kid[k] = first[eini_node_arg(of, v, k)]) >= 0;
    const int end = most < 0 ? (int)i + 1 : most;
    first[i] = -1;
    for (int j = 0; j < end && known && first[i] < 0; j++)
      if (eini_aside_node_is(x, v, kid, j)) first[i] = j;
  }
}

// The factors of the product at a node, in order, into list (NULL: they are counted): those of its
// products of the same dtype.
static int eini_aside_factors(const eini_expr *e, int root, int *stack, int *list) {
  int n = 0, top = 0;
  stack[top++] = root;
  while (top > 0) {
    const int i = stack[--top];
    const eini_node *v = &e->node[i];
    if (v->op == EIN_OP_MUL && v->dtype == e->node[root].dtype) {
      stack[top++] = v->arg[1];
      stack[top++] = v->arg[0];
      continue;
    }
    if (list != NULL) list[n] = i;
    if (++n >= EINI_ASIDE_MOST || top + 2 > 2 * EINI_ASIDE_MOST) break;
  }
  return n;
}

// Are all factors of e among those of the product at node i of the statement? Then the others are
// in x->rest.
static int eini_aside_covers(eini_aside *x, int i, int *stack, int *list) {
  const int n = eini_aside_factors(&x->s->expr, i, stack, list);
  int found = 0;
  x->nrest = 0;
  if (n >= EINI_ASIDE_MOST || n <= x->nfactor) return 0;
  for (int k = 0; k < n; k++) {
    int is = -1;
    for (int f = 0; f < x->nfactor && is < 0; f++)
      if (x->factor[f] >= 0 && x->first[x->factor[f]] == x->same[list[k]]) is = f;
    if (is < 0) x->rest[x->nrest++] = list[k];
    else {
      if (found++ == 0) x->before = x->nrest;
      x->factor[is] = -1 - x->factor[is];  // taken
    }
  }
  for (int f = 0; f < x->nfactor; f++)
    if (x->factor[f] < 0) x->factor[f] = -1 - x->factor[f];
  return found == x->nfactor;
}

// A sum takes a product of its factors without rounding it. Is what is computed first rounded in a
// deterministic graph, as storing it does? What chooses among values is given them rounded.
static ein_status eini_aside_rounded(eini_aside *x) {
  const eini_expr *e = &x->s->expr;
  char *taken = EINI_NEW(x->w->p.arena, char, e->n);
  if (taken == NULL) return eini_pmem(&x->w->p);
  const int fold = x->s->fold;
  taken[e->n - 1] = fold != EIN_FOLD_NONE && fold != EIN_FOLD_MAX && fold != EIN_FOLD_MIN &&
                    fold != EIN_FOLD_ARGMAX && fold != EIN_FOLD_ARGMIN;
  for (int64_t i = e->n - 1; i >= 0; i--) {
    const eini_node *v = &e->node[i];
    taken[i] &= v->op == EIN_OP_MUL || v->op == EIN_OP_DIV || v->op == EIN_OP_SQUARE ||
                v->op == EIN_OP_NEG || v->op == EIN_OP_CAST;
    for (int k = 0; k < eini_node_args(v) && taken[i]; k++) taken[eini_node_arg(e, v, k)] = 1;
    if (taken[i] && x->part[i])
      return eini_perr(&x->w->p, EIN_ERR_UNSUPPORTED, EINI_AT(&x->at), NULL, "deterministic: the "
                       "fold takes this product without rounding it, and stored it would be "
                       "rounded");
  }
  return EIN_OK;
}

// Marks where e stands in the statement's expression.
static ein_status eini_aside_find(eini_aside *x) {
  eini_parser *p = &x->w->p;
  const eini_expr *of = &x->s->expr;
  const int root = (int)x->e.n - 1, many = 2 * EINI_ASIDE_MOST + 2;
  int *stack = EINI_NEW(p->arena, int, 2 * many), found = 0;
  x->first = EINI_NEW(p->arena, int, x->e.n);
  x->same = EINI_NEW(p->arena, int, of->n);
  x->part = EINI_NEW(p->arena, char, of->n);
  x->factor = EINI_NEW(p->arena, int, many);
  x->rest = EINI_NEW(p->arena, int, many);
  if (stack == NULL || x->first == NULL || x->same == NULL || x->part == NULL ||
      x->factor == NULL || x->rest == NULL)
    return eini_pmem(p);
  eini_aside_classes(x, &x->e, -1, x->first);
  eini_aside_classes(x, of, (int)x->e.n, x->same);
  for (int64_t i = 0; i < of->n; i++) {
    if (x->same[i] < 0 || x->same[i] != x->first[root]) continue;
    found = x->part[i] = 1;
  }
  if (found) return x->w->g->ordered ? eini_aside_rounded(x) : EIN_OK;
  const int product = x->e.node[root].op == EIN_OP_MUL;
  x->nfactor = product ? eini_aside_factors(&x->e, root, stack, x->factor) : 0;
  for (int64_t i = of->n - 1; i >= 0 && product && !found; i--) {
    const eini_node *v = &of->node[i];
    if (v->op != EIN_OP_MUL || v->dtype != x->e.node[root].dtype) continue;
    found = eini_aside_covers(x, (int)i, stack, stack + many);
    if (found) x->part[i] = 2;
  }
  if (!found)
    return eini_perr(p, EIN_ERR_NAME, EINI_AT(&x->at), "a part of its expression as planned, or "
                     "some factors of a product", "this does not occur in the statement of '%.60s'",
                     x->w->g->tensor[x->s->out].name);
  if (x->w->g->ordered)
    return eini_perr(p, EIN_ERR_UNSUPPORTED, EINI_AT(&x->at), NULL, "deterministic: these factors "
                     "are not multiplied first, other products round otherwise");
  return EIN_OK;
}

// ---- the axes ----

// The indices that the expression depends on must be those that are named.
static ein_status eini_aside_axes(eini_aside *x, const eini_command *c) {
  eini_parser *p = &x->w->p;
  const eini_stmt *s = x->s;
  const eini_loops *n = &x->w->to->nest[x->w->stmt];
  char *uses = EINI_NEW(p->arena, char, s->nindex + 1);
  x->nindex = c->list[1].n;
  x->index = EINI_NEW(p->arena, int, x->nindex);
  x->axis = EINI_NEW(p->arena, int, s->nindex + 1);
  if (uses == NULL || x->index == NULL || x->axis == NULL) return eini_pmem(p);
  for (int64_t i = 0; i < x->e.n; i++) {
    const eini_node *v = &x->e.node[i];
    if (v->op == EIN_OP_INDEX) uses[v->arg[0]] = 1;
    for (int k = 0; k < s->nindex && v->op == EIN_OP_OPERAND; k++)
      uses[k] |= eini_map_uses(&s->proj[v->arg[0]], k) > 0;
  }
  for (int i = 0; i < s->nindex; i++) x->axis[i] = -1;
  for (int k = 0; k < x->nindex && p->st == EIN_OK; k++) {
    const eini_span at = c->list[1].name[k];
    const int i = x->index[k] = eini_loops_find(x->w, n, at);
    if (i < 0) return p->st;
    if (x->axis[i] >= 0 || !uses[i])
      eini_perr(p, EIN_ERR_NAME, EINI_AT(&at), NULL, uses[i] ? "'%.60s' is named twice"
                : "the expression does not depend on '%.60s'", s->index[i].name);
    x->axis[i] = k;
  }
  for (int i = 0; i < s->nindex && p->st == EIN_OK; i++)
    if (uses[i] && x->axis[i] < 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&c->list[1].all), NULL, "the expression depends on "
                "'%.60s', too", s->index[i].name);
  if (p->st == EIN_OK && c->list[2].n != x->nindex)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&c->list[2].all), NULL, "%d name%s for %d ind%s",
              c->list[2].n, c->list[2].n == 1 ? "" : "s", x->nindex,
              x->nindex == 1 ? "ex" : "ices");
  for (int k = 0; k < c->list[2].n && p->st == EIN_OK; k++) {
    const eini_span at = c->list[2].name[k];
    for (int j = 0; j < k; j++)
      if (at.len == c->list[2].name[j].len &&
          memcmp(p->s + at.pos, p->s + c->list[2].name[j].pos, (size_t)at.len) == 0)
        eini_perr(p, EIN_ERR_NAME, EINI_AT(&at), NULL, "'%.*s' is named twice",
                  eini_cut(p->s + at.pos, at.len), p->s + at.pos);
  }
  return p->st;
}

// Is the name of a new tensor, or of an index, free?
static ein_status eini_aside_name(eini_scheduler *w, eini_span at, int tensor) {
  eini_parser *p = &w->p;
  const ein_graph *g = w->g;
  const char *text = p->s + at.pos;
  int id, taken = eini_word_class(g, text, at.len, &id) != EINI_W_FREE;
  for (int t = 0; t < g->ntensor && tensor; t++)
    taken |= eini_word_is(text, at.len, g->tensor[t].name);
  for (int q = 0; q < g->nparam; q++) taken |= eini_word_is(text, at.len, g->param[q].name);
  if (taken)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(&at), NULL, "the name '%.*s' is taken",
              eini_cut(text, at.len), text);
  return p->st;
}

// The new tensor, and its indices, have names of their own.
static ein_status eini_aside_names(eini_aside *x, const eini_command *c) {
  for (int k = 0; k < x->nindex && x->w->p.st == EIN_OK; k++)
    eini_aside_name(x->w, c->list[2].name[k], 0);
  return x->w->p.st == EIN_OK ? eini_aside_name(x->w, c->list[3].name[0], 1) : x->w->p.st;
}

// ---- the graph ----

// Appends nodes of an expression to another; operand k becomes at[k], and where that is -1, the
// next of *n; index i axis[i], unless that is NULL.
static int eini_aside_copy(eini_arena *a, const eini_expr *from, int i, int *map, int *at, int *n,
                         const int *axis, eini_expr *to) {
  const int id = eini_node_copy(a, from, i, map, to);
  if (id < 0) return -1;
  eini_node *v = &to->node[id];
  if (v->op == EIN_OP_OPERAND) {
    if (at[v->arg[0]] < 0) at[v->arg[0]] = (*n)++;
    v->arg[0] = at[v->arg[0]];
  }
  if (v->op == EIN_OP_INDEX && axis != NULL) v->arg[0] = axis[v->arg[0]];
  return map[i] = id;
}

// The operands that at[] says, of n, and that behind them.
static int *eini_aside_operands(eini_aside *x, const int *at, int n, int behind) {
  int *operand = EINI_NEW(x->w->p.arena, int, n + 1);
  for (int k = 0; k < x->s->noperand && operand != NULL; k++)
    if (at[k] >= 0) operand[at[k]] = x->s->operand[k];
  if (operand != NULL) operand[n] = behind;
  return operand;
}

static int *eini_aside_none(eini_aside *x, int64_t n) {
  int *list = EINI_NEW(x->w->p.arena, int, n + 1);
  for (int64_t k = 0; k < n && list != NULL; k++) list[k] = -1;
  return list;
}

// Appends the statement that computes the expression.
static ein_status eini_aside_first(eini_aside *x, ein_graph *g, const eini_command *c, int *made) {
  eini_arena *a = &g->arena;
  const eini_parser *p = &x->w->p;
  const eini_stmt *s = x->s;
  const eini_span name = c->list[3].name[0];
  int *at = eini_aside_none(x, s->noperand), *map = eini_aside_none(x, x->e.n), n = 0;
  int64_t *shape = EINI_NEW(a, int64_t, x->nindex);
  eini_expr e;
  eini_stmt *t;
  memset(&e, 0, sizeof e);
  if (at == NULL || map == NULL || shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < x->e.n; i++)
    if (eini_aside_copy(a, &x->e, i, map, at, &n, x->axis, &e) < 0) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < x->nindex; k++) shape[k] = s->index[x->index[k]].extent;
  EINI_TRY(eini_graph_add_tensor(g, p->s + name.pos, name.len, EIN_ROLE_TEMP,
                                 ein_dtype_compute((ein_dtype)x->e.node[x->e.n - 1].dtype),
                                 x->nindex, shape, made));
  g->tensor[*made].line = s->line;
  int *operand = eini_aside_operands(x, at, n, 0);
  if (operand == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_graph_add_stmt(g, *made, x->nindex, n, operand, &t));
  for (int k = 0; k < x->nindex; k++) {
    const eini_span index = c->list[2].name[k];
    t->index[k].extent = shape[k];
    t->index[k].name = eini_strndup(a, p->s + index.pos, index.len);
    if (t->index[k].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  EINI_TRY(eini_map_units(a, &t->out_map, 0, 0, x->nindex));
  for (int k = 0; k < s->noperand; k++)
    if (at[k] >= 0) EINI_TRY(eini_map_copy(a, &t->proj[at[k]], &s->proj[k], x->axis));
  t->expr = e;
  t->numpy = s->numpy;
  t->line = s->line;
  t->pos = s->pos;
  return eini_stmt_finish(g, t, NULL);
}

// The statement's expression with the new tensor in place of e: operand number 0. at, n: of others,
// from 1 on.
static ein_status eini_aside_rest(eini_aside *x, eini_arena *a, int *at, int *n, eini_expr *to) {
  const eini_expr *e = &x->s->expr;
  char *need = EINI_NEW(x->w->p.arena, char, e->n);
  int *map = eini_aside_none(x, e->n);
  if (need == NULL || map == NULL) return EIN_ERR_NO_MEMORY;
  need[e->n - 1] = 1;
  for (int64_t i = e->n - 1; i >= 0; i--) {
    const eini_node *v = &e->node[i];
    if (!need[i] || x->part[i] == 1) continue;
    for (int k = 0; k < x->nrest && x->part[i] == 2; k++) need[x->rest[k]] = 1;
    for (int k = 0; k < eini_node_args(v) && !x->part[i]; k++) need[eini_node_arg(e, v, k)] = 1;
  }
  for (int i = 0; i < e->n; i++) {
    if (!need[i]) continue;
    if (!x->part[i]) {
      if (eini_aside_copy(a, e, i, map, at, n, NULL, to) < 0) return EIN_ERR_NO_MEMORY;
      continue;
    }
    int id = eini_expr_add(a, to, EIN_OP_OPERAND, e->node[i].pos, 0, 0, 0), root = -1;
    if (id < 0) return EIN_ERR_NO_MEMORY;
    to->node[id].dtype = e->node[i].dtype;
    for (int k = 0; k <= x->nrest && x->part[i] == 2; k++) {
      const int f = k == x->before ? id : map[x->rest[k - (k > x->before)]];
      root = root < 0 ? f : eini_expr_pair(a, to, EIN_OP_MUL, root, f);
      if (root < 0) return EIN_ERR_NO_MEMORY;
      if (k > 0) to->node[root].dtype = e->node[i].dtype;
    }
    map[i] = x->part[i] == 2 ? root : id;
  }
  return EIN_OK;
}

// The last two statements stand in place of one.
static void eini_two_for_one(ein_graph *g, int old) {
  const eini_stmt second = g->stmt[g->nstmt - 1], first = g->stmt[g->nstmt - 2];
  g->nstmt--;
  memmove(g->stmt + old + 1, g->stmt + old, (size_t)(g->nstmt - 1 - old) * sizeof *g->stmt);
  g->stmt[old] = first;
  g->stmt[old + 1] = second;
}

// Appends the statement that reads it; statement number `old` gives way to it.
static ein_status eini_aside_second(eini_aside *x, ein_graph *g, int made, int old) {
  eini_arena *a = &g->arena;
  const eini_stmt s = g->stmt[old];
  int *at = eini_aside_none(x, s.noperand), n = 1;
  eini_expr e;
  eini_stmt *t;
  memset(&e, 0, sizeof e);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_aside_rest(x, a, at, &n, &e));
  int *operand = eini_aside_operands(x, at, n, 0);
  if (operand == NULL) return EIN_ERR_NO_MEMORY;
  operand[0] = made;
  EINI_TRY(eini_graph_add_stmt(g, s.out, s.nindex, n, operand, &t));
  g->tensor[s.out].nstmt--;
  const eini_stmt own = *t;
  *t = s;
  t->noperand = n;
  t->operand = own.operand;
  t->proj = own.proj;
  t->hint = NULL;
  for (int k = 0; k < x->nindex; k++) EINI_TRY(eini_map_set(a, &t->proj[0], k, x->index[k], 1));
  for (int k = 0; k < s.noperand; k++)
    if (at[k] > 0) EINI_TRY(eini_map_copy(a, &t->proj[at[k]], &s.proj[k], NULL));
  t->expr = e;
  EINI_TRY(eini_stmt_finish(g, t, NULL));
  if (s.fold != EIN_FOLD_NONE && ein_dtype_compute(t->type) != ein_dtype_compute(s.type))
    return EIN_ERR_DTYPE;
  t->type = s.type;
  eini_two_for_one(g, old);
  return EIN_OK;
}

// ---- the command ----

// A graph of the schedule's own: a copy of the one that it is of.
static ein_status eini_aside_own(eini_scheduler *w) {
  if (w->to->own != NULL) return EIN_OK;
  ein_graph *g = w->to->own = eini_graph_new(w->ctx);
  if (g == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_graph_copy_head(g, w->g));
  for (int64_t k = 0; k < w->g->nstmt; k++)
    EINI_TRY(eini_stmt_copy(g, &w->g->stmt[k], w->g->stmt[k].out, w->g->stmt[k].operand));
  g->ordered = w->g->ordered;
  return EIN_OK;
}

// The schedule is of graph g, in which statement `at` and the last tensor are new, and the
// statement behind it is another one.
static ein_status eini_aside_move(eini_scheduler *w, const ein_graph *g, int at) {
  ein_schedule *s = w->to;
  eini_arena *a = w->p.arena;
  ein_distribution **place = EINI_NEW(a, ein_distribution *, g->ntensor);
  unsigned char *said = EINI_NEW(a, unsigned char, g->ntensor);
  eini_loops *nest = EINI_NEW(a, eini_loops, g->nstmt);
  s->home = EINI_NEW(a, ein_distribution *, g->nstmt);
  s->axes = EINI_NEW(a, eini_stmt *, g->ntensor);
  if (place == NULL || said == NULL || nest == NULL || s->home == NULL || s->axes == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < g->ntensor - 1; t++) place[t] = s->place[t], said[t] = s->said[t];
  for (int k = 0; k < g->nstmt; k++) {
    if (k == at || k == at + 1) {
      EINI_TRY(eini_loops_init(&w->p, &g->stmt[k], &nest[k]));
      continue;
    }
    nest[k] = s->nest[k - (k > at)];
    nest[k].s = &g->stmt[k];
  }
  s->place = place;
  s->said = said;
  s->nest = nest;
  s->g = w->g = w->p.g = g;
  w->stmt = at + 1;
  return EIN_OK;
}

static ein_status eini_aside_make(eini_aside *x, const eini_command *c) {
  eini_scheduler *w = x->w;
  const int at = w->stmt;
  int made;
  EINI_TRY(eini_aside_own(w));
  ein_graph *g = w->to->own;
  const int64_t ntensor = g->ntensor, nstmt = g->nstmt;
  const int pieces = g->tensor[x->s->out].nstmt;
  ein_status st = eini_aside_first(x, g, c, &made);
  if (st == EIN_OK) st = eini_aside_second(x, g, made, at);
  if (st == EIN_OK) return eini_aside_move(w, g, at);
  g->ntensor = ntensor;
  g->nstmt = nstmt;
  g->tensor[x->s->out].nstmt = pieces;
  return st;
}

// Can a statement be written as two still?
static ein_status eini_aside_early(eini_scheduler *w, const eini_command *c) {
  eini_parser *p = &w->p;
  const eini_loops *n = &w->to->nest[w->stmt];
  if (n->loop == NULL)
    eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(&c->word), NULL, "the statement has too many indices");
  else if (n->at.len > 0)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&c->word), c->kind == EINI_C_RFACTOR ? "rfactor(..) before "
              "them" : "precompute(..) before them", "loops of the statement are cut or placed "
              "already");
  return p->st;
}

static void eini_do_precompute(eini_scheduler *w, const eini_command *c) {
  eini_parser *p = &w->p;
  eini_aside *x = EINI_NEW(p->arena, eini_aside, 1);
  if (x == NULL) eini_pmem(p);
  if (p->st != EIN_OK || eini_aside_early(w, c) != EIN_OK) return;
  x->w = w;
  x->was = w->g->stmt[w->stmt];
  x->s = &x->was;
  x->at = c->list[0].all;
  ein_status st = eini_aside_read(x, c->expr);
  if (st == EIN_OK) st = eini_aside_find(x);
  if (st == EIN_OK) st = eini_aside_axes(x, c);
  if (st == EIN_OK) st = eini_aside_names(x, c);
  if (st != EIN_OK) return;
  st = eini_aside_make(x, c);
  if (st == EIN_ERR_NO_MEMORY) eini_pmem(p);
  else if (st != EIN_OK)
    eini_perr(p, st, EINI_AT(&x->at), NULL, st == EIN_ERR_DTYPE ? "what is stored would be folded "
              "in another type" : "it cannot be computed first");
}

// ---- folds in two ----

static ein_status eini_rfactor_make(eini_scheduler *w, const eini_command *c, int index) {
  const int at = w->stmt;
  const eini_span u = c->list[1].name[0], part = c->list[2].name[0];
  EINI_TRY(eini_aside_own(w));
  ein_graph *g = w->to->own;
  const eini_stmt s = g->stmt[at];
  const int64_t ntensor = g->ntensor, nstmt = g->nstmt;
  const char *name = eini_strndup(&g->arena, w->p.s + part.pos, part.len);
  const char *piece = eini_strndup(&g->arena, w->p.s + u.pos, u.len);
  if (name == NULL || piece == NULL) return EIN_ERR_NO_MEMORY;
  g->tensor[s.out].nstmt--;
  ein_status st = eini_scatter_stmt(g, &s, index, c->amount[0], name, piece);
  if (st == EIN_OK) {
    eini_two_for_one(g, at);
    return eini_aside_move(w, g, at);
  }
  g->ntensor = ntensor;
  g->nstmt = nstmt;
  g->tensor[s.out].nstmt = 1;
  return st;
}

// Partial results of pieces of a reduced index become a tensor, which another statement folds.
static void eini_do_rfactor(eini_scheduler *w, const eini_command *c) {
  eini_parser *p = &w->p;
  const eini_loops *n = &w->to->nest[w->stmt];
  const eini_stmt *s = &w->g->stmt[w->stmt];
  const eini_span k = c->list[0].name[0], u = c->list[1].name[0];
  const long long pieces = (long long)c->amount[0];
  if (eini_aside_early(w, c) != EIN_OK) return;
  const int i = eini_loops_find(w, n, k);
  if (i < 0) return;
  const long long extent = (long long)s->index[i].extent;
  for (int j = 0; j < s->nindex; j++)
    if (eini_word_is(p->s + u.pos, u.len, s->index[j].name))
      eini_perr(p, EIN_ERR_NAME, EINI_AT(&u), NULL, "the statement has an index '%.60s'",
                s->index[j].name);
  if (p->st != EIN_OK || eini_aside_name(w, u, 0) != EIN_OK ||
      eini_aside_name(w, c->list[2].name[0], 1) != EIN_OK)
    return;
  if (i < s->nfree)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&k), "divide(..) cuts it", "'%.60s' is not reduced",
              s->index[i].name);
  else if (extent % pieces != 0 || extent < 2 * pieces)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&c->number), NULL, "the %lld values of '%.60s' are not "
              "%lld equal pieces of two or more", extent, s->index[i].name, pieces);
  else if (w->g->ordered)
    eini_perr(p, EIN_ERR_UNSUPPORTED, EINI_AT(&c->word), NULL, "deterministic: the fold would be "
              "another one");
  else if (!eini_scatter_may(w->g, s, i, pieces))
    eini_perr(p, EIN_ERR_UNSUPPORTED, EINI_AT(&c->word), "means, arg folds and what depends on "
              "values of indices are not", "the fold of '%.60s' cannot be split",
              w->g->tensor[s->out].name);
  if (p->st != EIN_OK) return;
  const ein_status st = eini_rfactor_make(w, c, i);
  if (st == EIN_ERR_NO_MEMORY) eini_pmem(p);
  else if (st != EIN_OK) eini_perr(p, st, EINI_AT(&c->word), NULL, "the fold cannot be split");
}
