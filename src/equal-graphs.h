// ================================================================================================
// >>equal-graphs  statements, tensors and graphs that are compared
// Takes two graphs; cuts what folds are over into regions that do not depend on what is outside.
// ================================================================================================

// ---- folds ----

// A range without some of its values, which are a range, too: at most EINI_VALUE_REST others.
#define EINI_VALUE_REST 66
static ein_status eini_vrange_without(eini_proof *p, const eini_vrange *a, const eini_vrange *m,
                                      eini_vrange *to, int *n) {
  const int64_t by = m->n > 1 ? m->step / a->step : a->n;  // one in so many
  const int64_t at = (m->lo - a->lo) / a->step, end = at + by * (m->n - 1);
  *n = 0;
  if (m->n > 1 && by > 64) return eini_proof_stuck(p, "its strides are too large");
  for (int64_t r = 0; r < by && m->n > 1; r++) {
    if (r == at % by || r >= a->n) continue;
    const eini_vrange x = {a->lo + r * a->step, by * a->step, (a->n - r - 1) / by + 1};
    to[(*n)++] = x;
  }
  const int64_t mine = m->n > 1 ? by : 1, before = at / mine;
  const int64_t after = (a->n - 1 - end) / mine;
  if (before > 0) {
    const eini_vrange x = {a->lo + (at - before * mine) * a->step, mine * a->step, before};
    to[(*n)++] = x;
  }
  if (after > 0) {
    const eini_vrange x = {a->lo + (end + mine) * a->step, mine * a->step, after};
    to[(*n)++] = x;
  }
  return EIN_OK;
}

// Piece i is cut along coordinate v into the values of `keep`, which are among its own, and others.
static ein_status eini_piece_cut(eini_proof *p, eini_vpieces *x, int64_t i, int v, int n,
                                 const eini_vrange *keep) {
  eini_vrange rest[EINI_VALUE_REST], dom[EINI_VALUE_VARS];
  const eini_vpiece own = x->v[i];
  int count;
  EINI_TRY(eini_vrange_without(p, &own.dom[v], keep, rest, &count));
  memcpy(dom, own.dom, (size_t)n * sizeof *dom);
  for (int k = 0; k < count; k++) {
    dom[v] = rest[k];
    EINI_TRY(eini_vpieces_add(p, x, dom, n, own.value, own.line));
  }
  own.dom[v] = *keep;
  return EIN_OK;
}

// Pieces are cut until the first n of their coordinates are the same, or have nothing in common.
static ein_status eini_pieces_cut(eini_proof *p, eini_vpieces *x, int n, int all) {
  eini_vrange meet[EINI_VALUE_VARS];
  for (int64_t i = 0; i < x->n; i++) {
    for (int64_t j = 0; j < i; j++) {
      if (!eini_domain_meet(x->v[i].dom, x->v[j].dom, n, meet)) continue;
      for (int v = 0; v < n; v++) {
        if (eini_vrange_same(&x->v[i].dom[v], &x->v[j].dom[v])) continue;
        if (!eini_vrange_same(&x->v[i].dom[v], &meet[v]))
          EINI_TRY(eini_piece_cut(p, x, i, v, all, &meet[v]));
        if (!eini_vrange_same(&x->v[j].dom[v], &meet[v])) {
          EINI_TRY(eini_piece_cut(p, x, j, v, all, &meet[v]));
          i = j;  // what is new is looked at behind, and others beside this one again
        }
      }
    }
  }
  return EIN_OK;
}

static int eini_value_free_order(const eini_stmt *s) {
  return s->fold >= EIN_FOLD_SUM && s->fold <= EIN_FOLD_ALL;
}

// Pieces of what a fold is over, alike in the first n coordinates, become its value.
static ein_status eini_fold_close(eini_proof *p, const eini_vscope *c, const eini_vpiece *const *of,
                                  int64_t count, int64_t *value) {
  const eini_stmt *s = c->s;
  const int nred = s->nindex - s->nfree, n = c->n - nred;
  eini_vfold f = {s->type, s->fold, s->numpy};
  eini_vparts q;
  eini_vkey k;
  memset(&q, 0, sizeof q);
  memset(&k, 0, sizeof k);
  if (nred > EINI_VALUE_BOUND) return eini_proof_stuck(p, "it has too many indices");
  for (int64_t i = 0; i < count && eini_value_free_order(s); i++) {
    eini_vpart x;
    x.n = nred;
    x.body = of[i]->value;
    for (int v = 0; v < nred; v++) x.r[v] = of[i]->dom[n + v];
    EINI_TRY(eini_vparts_add(p, &q, &x));
  }
  if (eini_value_free_order(s)) return eini_value_many(p, f, n, &q, value);
  if (count != 1) return eini_proof_stuck(p, "a fold that is no sum or extreme is cut");
  const char *name = s->fold >= EIN_FOLD_USER ? c->g->monoid[s->fold - EIN_FOLD_USER].name : "";
  const int user = s->fold >= EIN_FOLD_USER;
  int64_t head[5] = {EINI_V_FOLD, s->type, user ? EIN_FOLD_USER : s->fold, 0, 0};
  EINI_TRY(eini_value_name(p, name, &head[3]));
  for (int i = 0; i < s->nfree; i++) head[4] += eini_index_whole(s, i);
  EINI_TRY(eini_vkey_words(p, &k, head, 5));
  for (int i = 0; i < s->nfree; i++)
    if (eini_index_whole(s, i)) EINI_TRY(eini_vrow_say(p, &c->idx[i], &k));
  EINI_TRY(eini_vkey_add(p, &k, nred));
  for (int v = 0; v < nred; v++) {
    const eini_vrange *r = &of[0]->dom[n + v];
    const int64_t words[3] = {r->lo, r->step, r->n};
    if (r->n != s->index[s->nfree + v].extent)
      return eini_proof_stuck(p, "a fold that is no sum or extreme is cut");
    EINI_TRY(eini_vkey_words(p, &k, words, 3));
  }
  EINI_TRY(eini_vkey_add(p, &k, of[0]->value));
  return eini_value_of(p, &k, value);
}

// The values of a fold, by regions of the first n coordinates.
static ein_status eini_fold_regions(eini_proof *p, const eini_vscope *c, eini_vpieces *x,
                                    eini_vpieces *out) {
  const int n = c->n - (c->s->nindex - c->s->nfree);
  EINI_TRY(eini_pieces_cut(p, x, n, c->n));
  const eini_vpiece **of = EINI_NEW(&p->arena, const eini_vpiece *, x->n);
  char *done = EINI_NEW(&p->arena, char, x->n);
  if (of == NULL || done == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t count = 0, value;
    for (int64_t j = i; j < x->n && !done[i]; j++) {
      int same = 1;
      for (int v = 0; v < n && same; v++)
        same = eini_vrange_same(&x->v[i].dom[v], &x->v[j].dom[v]);
      if (same) of[count++] = &x->v[j];
      if (same && j > i) done[j] = 1;
    }
    if (count == 0) continue;
    EINI_TRY(eini_fold_close(p, c, of, count, &value));
    EINI_TRY(eini_vpieces_add(p, out, x->v[i].dom, n, value, 0));
  }
  return EIN_OK;
}

// ---- statements and tensors ----

// What statement k writes, its free indices being idx.
static ein_status eini_value_stmt(eini_proof *p, const ein_graph *g, const eini_stmt *s,
                                  const eini_vrow *idx, const eini_vrange *dom, int n,
                                  eini_vpieces *out) {
  const int nred = s->nindex - s->nfree, root = (int)s->expr.n - 1;
  eini_vrow *all = EINI_NEW(&p->arena, eini_vrow, s->nindex);
  eini_vrange *scope = EINI_NEW(&p->arena, eini_vrange, (int64_t)n + nred);
  eini_vpieces inner;
  int64_t empty;
  if (all == NULL || scope == NULL) return EIN_ERR_NO_MEMORY;
  if (n + nred > EINI_VALUE_VARS) return eini_proof_stuck(p, "it has too many indices");
  if (s->carry != NULL) return eini_proof_stuck(p, "it is no statement of a program");
  if (n > 0) memcpy(scope, dom, (size_t)n * sizeof *dom);
  for (int i = 0; i < s->nfree; i++) all[i] = idx[i];
  for (int i = 0; i < nred; i++) {
    const eini_vrange whole = {0, 1, s->index[s->nfree + i].extent};
    scope[n + i] = whole;
    eini_vrow_of(&all[s->nfree + i], n + i);
    if (whole.n > 0) continue;
    const eini_vfold f = {s->type, s->fold, s->numpy};
    eini_vparts none;
    memset(&none, 0, sizeof none);
    if (!eini_value_free_order(s)) return eini_proof_stuck(p, "it folds nothing");
    EINI_TRY(eini_value_many(p, f, n, &none, &empty));
    return eini_vpieces_add(p, out, dom, n, empty, s->line);
  }
  const eini_vscope c = {g, s, all, scope, n + nred};
  if (s->fold == EIN_FOLD_NONE) return eini_value_node(p, &c, root, out);
  memset(&inner, 0, sizeof inner);
  EINI_TRY(eini_value_node(p, &c, root, &inner));
  return eini_fold_regions(p, &c, &inner, out);
}

// Values as a tensor has them: rounded to its dtype where that is another one.
static ein_status eini_value_stored(eini_proof *p, const eini_tensor *t, const eini_stmt *s,
                                    eini_vpieces *x, int64_t from) {
  const int narrow = t->dtype != s->type || ein_dtype_compute(t->dtype) != t->dtype;
  for (int64_t i = from; i < x->n; i++) {
    x->v[i].line = s->line;
    const int64_t head[6] = {EINI_V_OP, t->dtype, EIN_OP_ROUNDTO, s->type, 1, x->v[i].value};
    eini_vrow row;
    if (eini_value_row(p, x->v[i].value, &row) && eini_vrow_constant(&row) && row.den == 1 &&
        eini_value_whole(t->dtype, row.off)) {
      EINI_TRY(eini_value_number(p, t->dtype, row.off, &x->v[i].value));
      continue;
    }
    if (narrow) EINI_TRY(eini_value_leaf(p, head, 6, NULL, 0, &x->v[i].value));
  }
  return EIN_OK;
}

static ein_status eini_value_access(eini_proof *p, const ein_graph *g, int t,
                                    const eini_vrow *row, const eini_vrange *dom, int n,
                                    eini_vpieces *out) {
  const eini_tensor *e = &g->tensor[t];
  int64_t head[4] = {EINI_V_INPUT, e->dtype, 0, e->rank}, value;
  double left = eini_domain_points(dom, n);
  int leaf = e->role == EIN_ROLE_INPUT;
  EINI_TRY(eini_value_name(p, e->name, &head[2]));
  for (int64_t i = 0; i < p->leaf->n && !leaf; i++) leaf = p->leaf->name[i] == head[2];
  if (leaf) {
    EINI_TRY(eini_value_leaf(p, head, 4, row, e->rank, &value));
    return eini_vpieces_add(p, out, dom, n, value, 0);
  }
  for (int64_t k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    eini_vrange in[EINI_VALUE_VARS];
    const int64_t from = out->n;
    int some;
    if (s->out != t) continue;
    eini_vrow *idx = EINI_NEW(&p->arena, eini_vrow, s->nfree);
    if (idx == NULL) return EIN_ERR_NO_MEMORY;
    if (n > 0) memcpy(in, dom, (size_t)n * sizeof *in);
    EINI_TRY(eini_stmt_within(p, s, row, in, n, idx, &some));
    if (!some) continue;
    left -= eini_domain_points(in, n);
    EINI_TRY(eini_value_stmt(p, g, s, idx, in, n, out));
    EINI_TRY(eini_value_stored(p, e, s, out, from));
  }
  if (left > 0 || left < 0) return eini_proof_stuck(p, "elements are read that nothing writes");
  return EIN_OK;
}

// ---- graphs ----

static int eini_graph_named(const ein_graph *g, const char *name) {
  int t = (int)g->ntensor - 1;
  while (t >= 0 && strcmp(g->tensor[t].name, name) != 0) t--;
  return t;
}

static int eini_tensor_alike(const eini_tensor *a, const eini_tensor *b) {
  int same = a->rank == b->rank && a->dtype == b->dtype;
  for (int r = 0; r < a->rank && same; r++) same = a->shape[r] == b->shape[r];
  return same;
}

// Where two regions meet: is the same there?
static ein_status eini_equal_region(eini_proof *p, const eini_vpiece *a, const eini_vpiece *b,
                                    const eini_vrange *meet, int n, int *same) {
  eini_vrow to[EINI_VALUE_VARS];
  int64_t x, y;
  eini_vsub s = {n, n, 0, 1, to};
  for (int v = 0; v < n; v++) {
    eini_vrow_of(&to[v], meet[v].n == 1 ? -1 : v);
    if (meet[v].n == 1) to[v].off = meet[v].lo;
  }
  EINI_TRY(eini_value_sub(p, a->value, &s, &x));
  EINI_TRY(eini_value_sub(p, b->value, &s, &y));
  *same = x == y;
  return EIN_OK;
}

// ---- what is written alike ----

// Is name the same input, or known to be equal?
static int eini_equal_known(eini_proof *p, const ein_graph *g, int t, const ein_graph *h, int u) {
  int64_t name;
  if (strcmp(g->tensor[t].name, h->tensor[u].name) != 0) return 0;
  if (g->tensor[t].role == EIN_ROLE_INPUT) return h->tensor[u].role == EIN_ROLE_INPUT;
  if (eini_value_name(p, g->tensor[t].name, &name) != EIN_OK) return 0;
  for (int64_t i = 0; i < p->leaf->n; i++)
    if (p->leaf->name[i] == name) return 1;
  return 0;
}

static int eini_equal_expr(const ein_graph *g, const eini_expr *a, const ein_graph *h,
                           const eini_expr *b) {
  int same = a->n == b->n && a->nlist == b->nlist;
  for (int64_t i = 0; i < a->n && same; i++) {
    const eini_node *x = &a->node[i], *y = &b->node[i];
    same = x->op == y->op && x->dtype == y->dtype && x->exact == y->exact &&
           (!x->exact || x->ival == y->ival) && memcmp(&x->re, &y->re, sizeof x->re) == 0 &&
           memcmp(&x->im, &y->im, sizeof x->im) == 0;
    if (same && x->op == EIN_OP_PARAM)
      same = strcmp(g->param[x->arg[0]].name, h->param[y->arg[0]].name) == 0;
    else if (same && x->op == EIN_OP_CALL)
      same = strcmp(g->function[x->arg[0]].name, h->function[y->arg[0]].name) == 0 &&
             x->arg[1] == y->arg[1] && x->arg[2] == y->arg[2];
    else
      for (int k = 0; k < 3 && same && x->op != EIN_OP_CONST; k++) same = x->arg[k] == y->arg[k];
  }
  for (int64_t i = 0; i < a->nlist && same; i++) same = a->list[i] == b->list[i];
  return same;
}

static int eini_equal_stmt(eini_proof *p, const ein_graph *g, const eini_stmt *a,
                           const ein_graph *h, const eini_stmt *b) {
  int same = a->nindex == b->nindex && a->nfree == b->nfree && a->noperand == b->noperand &&
             a->fold == b->fold && a->fold < EIN_FOLD_USER && a->numpy == b->numpy &&
             a->type == b->type && a->rest == b->rest && a->carry == NULL && b->carry == NULL &&
             eini_map_equal(&a->out_map, &b->out_map) && eini_equal_expr(g, &a->expr, h, &b->expr);
  for (int i = 0; i < a->nindex && same; i++) same = a->index[i].extent == b->index[i].extent;
  for (int k = 0; k < a->noperand && same; k++)
    same = eini_equal_known(p, g, a->operand[k], h, b->operand[k]) &&
           eini_map_equal(&a->proj[k], &b->proj[k]);
  return same;
}

// Do the same statements, in order, write both tensors?
static int eini_equal_written(eini_proof *p, const ein_graph *g, int t, const ein_graph *h,
                              int u) {
  int64_t j = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    if (g->stmt[i].out != t) continue;
    while (j < h->nstmt && h->stmt[j].out != u) j++;
    if (j == h->nstmt || !eini_equal_stmt(p, g, &g->stmt[i], h, &h->stmt[j++])) return 0;
  }
  while (j < h->nstmt && h->stmt[j].out != u) j++;
  return j == h->nstmt;
}

typedef struct eini_unequal {  // the first region that differs
  int rank;
  eini_vrange at[EINI_VALUE_VARS];
  int64_t line[2];
} eini_unequal;

// Tensor t of a, and u of b, with the same extents: *same, or where not.
static ein_status eini_equal_tensor(eini_proof *p, const ein_graph *a, int t, const ein_graph *b,
                                    int u, int *same, eini_unequal *where) {
  const eini_tensor *e = &a->tensor[t];
  eini_vrow row[EINI_VALUE_VARS];
  eini_vrange dom[EINI_VALUE_VARS];
  eini_vpieces x, y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  *same = 1;
  where->rank = e->rank;
  if (eini_equal_written(p, a, t, b, u)) return EIN_OK;
  if (e->rank > EINI_VALUE_VARS) return eini_proof_stuck(p, "it has too many axes");
  for (int r = 0; r < e->rank; r++) {
    const eini_vrange whole = {0, 1, e->shape[r]};
    if (whole.n == 0) return EIN_OK;
    dom[r] = whole;
    eini_vrow_of(&row[r], r);
  }
  EINI_TRY(eini_value_access(p, a, t, row, dom, e->rank, &x));
  EINI_TRY(eini_value_access(p, b, u, row, dom, e->rank, &y));
  for (int64_t i = 0; i < x.n && *same; i++)
    for (int64_t j = 0; j < y.n && *same; j++) {
      if (!eini_domain_meet(x.v[i].dom, y.v[j].dom, e->rank, where->at)) continue;
      where->line[0] = x.v[i].line;
      where->line[1] = y.v[j].line;
      EINI_TRY(eini_equal_region(p, &x.v[i], &y.v[j], where->at, e->rank, same));
    }
  return EIN_OK;
}

// Tensors that both have by one name are compared first, and stand for themselves then.
static ein_status eini_equal_leaves(eini_proof *p, const ein_graph *a, const ein_graph *b) {
  for (int64_t k = 0; k < a->nstmt; k++) {
    const int t = a->stmt[k].out, u = eini_graph_named(b, a->tensor[t].name);
    eini_unequal where;
    int64_t name;
    int same;
    if (a->tensor[t].role != EIN_ROLE_TEMP || u < 0 || b->tensor[u].role == EIN_ROLE_INPUT ||
        !eini_tensor_alike(&a->tensor[t], &b->tensor[u]) || (k > 0 && a->stmt[k - 1].out == t))
      continue;
    p->work = 0;
    const ein_status st = eini_equal_tensor(p, a, t, b, u, &same, &where);
    if (st == EIN_ERR_NO_MEMORY) return st;
    if (st != EIN_OK || !same) continue;
    struct eini_vleaf *l = p->leaf;
    int64_t *all = (int64_t *)eini_grow(&p->arena, l->name, l->n, &l->cap, sizeof *all);
    if (all == NULL) return EIN_ERR_NO_MEMORY;
    l->name = all;
    EINI_TRY(eini_value_name(p, a->tensor[t].name, &name));
    all[l->n++] = name;
  }
  return EIN_OK;
}

// Have they the same inputs and outputs, and params with the same values, where both have them?
static ein_status eini_equal_ports(eini_diag *diag, const ein_graph *a, const ein_graph *b) {
  for (int64_t i = 0; i < a->nparam; i++)
    for (int64_t k = 0; k < b->nparam; k++) {
      const eini_param *x = &a->param[i], *y = &b->param[k];
      if (strcmp(x->name, y->name) == 0 &&
          (x->dtype != y->dtype || x->value.set != y->value.set ||
           memcmp(&x->value.re, &y->value.re, sizeof x->value.re) != 0 ||
           memcmp(&x->value.im, &y->value.im, sizeof x->value.im) != 0))
        return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "param '%.60s' has another value, or "
                         "dtype, in one of them", x->name);
    }
  for (int side = 0; side < 2; side++) {
    const ein_graph *g = side == 0 ? a : b, *h = side == 0 ? b : a;
    for (int64_t t = 0; t < g->ntensor; t++) {
      const eini_tensor *e = &g->tensor[t];
      const int u = eini_graph_named(h, e->name), input = e->role == EIN_ROLE_INPUT;
      if (e->role == EIN_ROLE_TEMP) continue;
      if (u < 0 || h->tensor[u].role != e->role)
        return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL, "'%.60s' is an %s of only one of them",
                         e->name, input ? "input" : "output");
      if (!eini_tensor_alike(e, &h->tensor[u]))
        return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL, "'%.60s' has another dtype, or other "
                         "extents, in one of them", e->name);
    }
  }
  return EIN_OK;
}

// Says why a tensor is not proved equal.
static ein_status eini_equal_says(eini_proof *p, eini_diag *diag, const char *name, ein_status st,
                                  const eini_unequal *x) {
  char at[400];
  eini_text t = eini_text_of(at, sizeof at);
  if (st != EIN_OK)
    return eini_fail(diag, EIN_ERR_UNSUPPORTED, -1, 0, NULL, "whether '%.60s' is equal cannot be "
                     "decided: %s", name, p->why);
  for (int r = 0; r < x->rank; r++) {
    const eini_vrange *v = &x->at[r];
    eini_say(&t, r > 0 ? ", " : "");
    if (v->n == 1) eini_say(&t, "%lld", (long long)v->lo);
    else eini_say(&t, "%lld..%lld", (long long)v->lo, (long long)eini_vrange_last(v));
    if (v->n > 1 && v->step > 1) eini_say(&t, " by %lld", (long long)v->step);
  }
  return eini_fail(diag, EIN_ERR_UNSUPPORTED, -1, 0, NULL, "'%.60s' is not proved equal: at "
                   "[%.300s] line %lld and line %lld of the other do not compute the same", name,
                   at, (long long)x->line[0], (long long)x->line[1]);
}

EIN_API ein_status ein_rewrite_equal(ein_ctx *ctx, const ein_graph *graph, const ein_graph *other) {
  struct eini_vleaf leaf = {NULL, 0, 0}, none = {NULL, 0, 0};
  eini_proof p;
  eini_begin_call(ctx, NULL);
  eini_diag *diag = eini_diag_of(ctx);
  memset(&p, 0, sizeof p);
  ein_status st = EIN_OK;
  for (int side = 0; side < 2 && st == EIN_OK; side++) {
    st = eini_validate_graph(ctx, side ? other : graph, 0, NULL, NULL);
    if (st == EIN_OK) st = eini_graph_closed(diag, side ? other : graph);
  }
  if (st == EIN_OK) st = eini_equal_ports(diag, graph, other);
  if (st != EIN_OK) return eini_fail_status(ctx, st), st;
  eini_arena_init(&p.arena, ctx == NULL ? NULL : &ctx->al);
  p.leaf = &leaf;
  st = eini_equal_leaves(&p, graph, other);
  for (int t = 0; t < graph->ntensor && st == EIN_OK; t++) {
    const char *name = graph->tensor[t].name;
    eini_unequal where;
    int same = 0;
    if (graph->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    ein_status said = EIN_OK;
    for (int turn = 0; turn < 2 && !same && said != EIN_ERR_NO_MEMORY; turn++) {
      p.leaf = turn == 0 ? &leaf : &none;
      p.work = 0;
      said = eini_equal_tensor(&p, graph, t, other, eini_graph_named(other, name), &same, &where);
      same &= said == EIN_OK;
    }
    st = said == EIN_ERR_NO_MEMORY ? said
         : same ? EIN_OK : eini_equal_says(&p, diag, name, said, &where);
  }
  eini_arena_free(&p.arena);
  return eini_fail_status(ctx, st), st;
}
