// ================================================================================================
// >>drafts  writing the statements of gradients
// Takes expressions over operands in scratch memory; appends statements, sums of products with what
// they do not depend on taken out.
// ================================================================================================

#define EINI_GRAD_STATEMENTS ((int64_t)1 << 16)  // of a graph with gradients

typedef struct eini_grad_part {  // one of the tensors whose sum is a cotangent
  struct eini_grad_part *next;
  int tensor, shared;     // shared: it was made for something else
  const eini_map *map;    // from the cotangent's axes; NULL: it has the same
} eini_grad_part;

typedef struct eini_grad {
  ein_graph *g;
  eini_diag *diag;
  int64_t pos, len;         // in the text, or -1
  eini_syn *const *at;      // names in the text: the loss, the seed, those of wrt; or NULL
  eini_arena *scratch;
  int64_t nstmt;            // of the graph before
  int loss;
  unsigned char *reach;     // per tensor: depends on what is differentiated by
  unsigned char *done;      // per tensor: cot is known
  int *cot, *want;          // per tensor: its cotangent and its gradient's tensor; -1: none
  eini_grad_part **share;
  int64_t nodes;
  ein_status status;        // why a function gave no node; EIN_OK: out of memory
} eini_grad;

#define EINI_COT_ONE (-2)   // the cotangent of the loss when there is no seed

static ein_status eini_grad_full(const eini_grad *w) {
  return eini_fail(w->diag, EIN_ERR_TOO_LARGE, w->pos, w->len, NULL, "the gradient is too large");
}

// A new tensor, named after another one.
static ein_status eini_grad_tensor(eini_grad *w, int like, ein_dtype t, int rank,
                                   const int64_t *shape, int *id) {
  const char *s = w->g->tensor[like].name;
  static const int64_t none[1] = {0};
  char name[96];
  int len = (int)strcspn(s, ".");
  snprintf(name, sizeof name, "%.*s.d%lld", eini_cut(s, len), s, (long long)w->g->ntensor);
  return eini_graph_add_tensor(w->g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, t, rank,
                               rank == 0 ? none : shape, id);
}

static ein_status eini_grad_failed(const eini_grad *w) {
  return w->status != EIN_OK ? w->status : EIN_ERR_NO_MEMORY;
}

// ---- writing statements ----

// A statement in scratch memory, with room for one more operand; the caller fills indices,
// operands, maps and expression.
static ein_status eini_draft(eini_grad *w, eini_stmt *f, int out, int n, int nfree, int nop) {
  memset(f, 0, sizeof *f);
  f->out = out;
  f->nindex = n;
  f->nfree = nfree;
  f->noperand = nop;
  f->fold = nfree < n ? EIN_FOLD_SUM : EIN_FOLD_NONE;
  f->index = EINI_NEW(w->scratch, eini_index, n);
  f->operand = EINI_NEW(w->scratch, int, nop + 1);
  f->proj = EINI_NEW(w->scratch, eini_map, nop + 1);
  if (f->index == NULL || f->operand == NULL || f->proj == NULL) return EIN_ERR_NO_MEMORY;
  return eini_map_new(w->scratch, w->g->tensor[out].rank, n, &f->out_map);
}

static ein_status eini_draft_operand(eini_grad *w, eini_stmt *f, int k, int tensor) {
  f->operand[k] = tensor;
  return eini_map_new(w->scratch, w->g->tensor[tensor].rank, f->nindex, &f->proj[k]);
}

// Marks the nodes below root in keep, and the operands they read by 0 in number (-1: not read).
static void eini_draft_mark(eini_grad *w, const eini_stmt *f, int root, int *keep, int *number) {
  const eini_expr *e = &f->expr;
  for (int k = 0; k < f->noperand; k++) number[k] = -1;
  keep[root] = 1;
  for (int id = root; id >= 0; id--) {
    const eini_node *v = &e->node[id];
    if (!keep[id]) continue;
    for (int i = 0; i < eini_node_args(v); i++) keep[eini_node_arg(e, v, i)] = 1;
    if (v->op == EIN_OP_OPERAND) number[v->arg[0]] = 0;
    w->nodes++;
  }
}

// Appends a draft: only nodes below root, and only operands they read.
static ein_status eini_draft_append(eini_grad *w, const eini_stmt *f, int root) {
  ein_graph *g = w->g;
  int nop = 0, *map, *number, *op;
  eini_stmt *s;
  if (root < 0) return EIN_ERR_NO_MEMORY;
  map = EINI_NEW(w->scratch, int, root + 1);
  number = EINI_NEW(w->scratch, int, f->noperand);
  op = EINI_NEW(w->scratch, int, f->noperand);
  if (map == NULL || number == NULL || op == NULL) return EIN_ERR_NO_MEMORY;
  eini_draft_mark(w, f, root, map, number);
  for (int k = 0; k < f->noperand; k++) {
    if (number[k] < 0) continue;
    op[nop] = f->operand[k];
    number[k] = nop++;
  }
  if (w->nodes > EINI_NODES_MAX || g->nstmt >= EINI_GRAD_STATEMENTS)
    return eini_grad_full(w);
  EINI_TRY(eini_graph_add_stmt(g, f->out, f->nindex, nop, op, &s));
  s->nfree = f->nfree;
  s->fold = f->fold;
  s->pos = w->pos;
  for (int i = 0; i < f->nindex; i++) s->index[i] = f->index[i];
  EINI_TRY(eini_map_copy(&g->arena, &s->out_map, &f->out_map, NULL));
  for (int k = 0; k < f->noperand; k++)
    if (number[k] >= 0)
      EINI_TRY(eini_map_copy(&g->arena, &s->proj[number[k]], &f->proj[k], NULL));
  for (int id = 0; id <= root; id++) {
    if (!map[id]) continue;
    map[id] = eini_node_copy(&g->arena, &f->expr, id, map, &s->expr);
    if (map[id] < 0) return EIN_ERR_NO_MEMORY;
    eini_node *v = &s->expr.node[map[id]];
    if (v->op == EIN_OP_OPERAND) v->arg[0] = number[v->arg[0]];
  }
  EINI_TRY(eini_stmt_finish(g, s, w->diag));
  eini_tensor_fix_dtype(&g->tensor[f->out]);
  return EIN_OK;
}

// An operation on nodes of a draft, as in eini_adj_op.
static int eini_draft_op(eini_grad *w, eini_stmt *f, int op, int x, int y, int z) {
  return x < 0 || y < 0 || z < 0 ? -1 : eini_expr_add(w->scratch, &f->expr, op, -1, x, y, z);
}

// A constant on the box of shape `extent` at out_map of a draft made for it.
static ein_status eini_draft_fill(eini_grad *w, eini_stmt *f, double value) {
  int id = eini_expr_real(w->scratch, &f->expr, -1, value);
  id = eini_draft_op(w, f, EIN_OP_CAST, id, 0, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  f->expr.node[id].dtype = (unsigned char)w->g->tensor[f->out].dtype;
  return eini_draft_append(w, f, id);
}

// A name for index i that no program has.
static ein_status eini_draft_index(eini_grad *w, eini_stmt *f, int i, int64_t extent) {
  char name[24];
  int len = snprintf(name, sizeof name, "d.%d", i);
  f->index[i].extent = extent;
  f->index[i].name = eini_strndup(&w->g->arena, name, len);
  return f->index[i].name == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// All elements of a tensor get one value, or, from > 0, the sum of other tensors of its shape.
static ein_status eini_grad_whole(eini_grad *w, int out, double value, const eini_grad_part *from) {
  const eini_tensor *t = &w->g->tensor[out];
  int n = 0, rank = t->rank, sum = -1;
  eini_stmt f;
  for (const eini_grad_part *x = from; x != NULL; x = x->next) n++;
  EINI_TRY(eini_draft(w, &f, out, rank, rank, n));
  for (int r = 0; r < rank; r++)
    EINI_TRY(eini_draft_index(w, &f, r, w->g->tensor[out].shape[r]));
  EINI_TRY(eini_map_units(w->scratch, &f.out_map, 0, 0, rank));
  if (from == NULL) return eini_draft_fill(w, &f, value);
  for (int k = 0; k < n; k++, from = from->next) {
    EINI_TRY(eini_draft_operand(w, &f, k, from->tensor));
    EINI_TRY(eini_map_copy(w->scratch, &f.proj[k], from->map == NULL ? &f.out_map : from->map,
                           NULL));
    int x = eini_expr_add(w->scratch, &f.expr, EIN_OP_OPERAND, -1, k, 0, 0);
    sum = k == 0 ? x : eini_draft_op(w, &f, EIN_OP_ADD, sum, x, 0);
  }
  return eini_draft_append(w, &f, sum);
}

// ---- factors that a sum does not depend on ----

// The factors of a draft's sum. what: IN depends on what is summed; DIV divides; IF is a condition,
// elsewhere the product is 0; OUT any other factor.
enum { EINI_F_IN, EINI_F_OUT, EINI_F_DIV, EINI_F_IF };

typedef struct eini_grad_factor {
  int node, what;
} eini_grad_factor;

typedef struct eini_grad_factors {
  int64_t n, cap;
  eini_grad_factor *list;
  int minus, inside, gain;  // negative; factors that are IN; more than operands stands outside
} eini_grad_factors;

static ein_status eini_factor_add(eini_grad *w, eini_grad_factors *u, int node, int what) {
  eini_grad_factor *p =
      (eini_grad_factor *)eini_grow(w->scratch, u->list, u->n, &u->cap, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  u->list = p;
  p[u->n].node = node;
  p[u->n++].what = what;
  return EIN_OK;
}

// Which nodes depend on index i (-1: on a reduced index)?
static void eini_draft_depends(const eini_stmt *f, int root, int i, unsigned char *dep) {
  int from = i < 0 ? f->nfree : i, to = i < 0 ? f->nindex : i + 1;
  for (int id = 0; id <= root; id++) {
    const eini_node *v = &f->expr.node[id];
    dep[id] = v->op == EIN_OP_INDEX && v->arg[0] >= from && v->arg[0] < to;
    for (int k = 0; k < eini_node_args(v); k++) dep[id] |= dep[eini_node_arg(&f->expr, v, k)];
    if (v->op != EIN_OP_OPERAND) continue;
    const eini_map *m = &f->proj[v->arg[0]];
    for (int k = 0; k < m->first[m->rows]; k++)
      dep[id] |= m->term[k].index >= from && m->term[k].index < to;
  }
}

static ein_status eini_draft_factors(eini_grad *w, const eini_stmt *f, int root,
                                     const unsigned char *dep, eini_grad_factors *u) {
  EINI_TRY(eini_factor_add(w, u, root, EINI_F_IN));
  for (int64_t i = 0; i < u->n;) {
    const eini_node *v = &f->expr.node[u->list[i].node];
    int open = u->list[i].what == EINI_F_IN, z = v->arg[2];
    if (open && v->op == EIN_OP_MUL) {
      u->list[i].node = v->arg[0];
      EINI_TRY(eini_factor_add(w, u, v->arg[1], EINI_F_IN));
    } else if (open && v->op == EIN_OP_NEG) {
      u->list[i].node = v->arg[0];
      u->minus = !u->minus;
    } else if (open && v->op == EIN_OP_DIV && !dep[v->arg[1]]) {
      u->list[i].node = v->arg[0];
      EINI_TRY(eini_factor_add(w, u, v->arg[1], EINI_F_DIV));
    } else if (open && v->op == EIN_OP_WHERE && !dep[v->arg[0]] &&
               f->expr.node[z].op == EIN_OP_CONST && f->expr.node[z].re == 0) {
      u->list[i].node = v->arg[1];
      EINI_TRY(eini_factor_add(w, u, v->arg[0], EINI_F_IF));
    } else {
      if (open && !dep[u->list[i].node]) u->list[i].what = EINI_F_OUT;
      u->inside += u->list[i].what == EINI_F_IN;
      u->gain |= u->list[i].what > EINI_F_OUT ||
                 (u->list[i].what == EINI_F_OUT && v->op != EIN_OP_OPERAND);
      i++;
    }
  }
  u->gain |= u->minus;
  return EIN_OK;
}

// What stands outside the sum, over the draft's free indices; operand number `sum` is the sum.
static int eini_draft_outside(eini_grad *w, eini_stmt *f, const eini_grad_factors *u, int sum) {
  int x = eini_expr_add(w->scratch, &f->expr, EIN_OP_OPERAND, -1, sum, 0, 0), mask = -1;
  if (u->minus) x = eini_draft_op(w, f, EIN_OP_NEG, x, 0, 0);
  for (int64_t i = 0; i < u->n; i++) {
    int what = u->list[i].what, y = u->list[i].node;
    if (what == EINI_F_OUT) x = eini_draft_op(w, f, EIN_OP_MUL, x, y, 0);
    if (what == EINI_F_DIV) x = eini_draft_op(w, f, EIN_OP_DIV, x, y, 0);
    if (what == EINI_F_IF) mask = mask < 0 ? y : eini_draft_op(w, f, EIN_OP_AND, mask, y, 0);
  }
  if (mask < 0) return x;
  return eini_draft_op(w, f, EIN_OP_WHERE, mask, x, eini_expr_int(w->scratch, &f->expr, -1, 0));
}

// A draft over n other indices: index i of f becomes at[i] (-1: none; at NULL: they stay), the
// first nfree are free.
static ein_status eini_draft_pick(eini_grad *w, const eini_stmt *f, eini_stmt *to, int out, int n,
                                  int nfree, const int *at) {
  EINI_TRY(eini_draft(w, to, out, n, nfree, f->noperand));
  for (int i = 0; i < f->nindex; i++) {
    int j = at == NULL ? i : at[i];
    if (j >= 0 && j < n) to->index[j] = f->index[i];
  }
  for (int k = 0; k < f->noperand; k++) {
    EINI_TRY(eini_draft_operand(w, to, k, f->operand[k]));
    EINI_TRY(eini_map_copy(w->scratch, &to->proj[k], &f->proj[k], at));
  }
  to->expr = f->expr;
  return EIN_OK;
}

// Appends the sum of node `product` of a draft as a new tensor, over those of the draft's free
// indices that it depends on; reads it in draft `out` by one more operand, its last one.
static ein_status eini_draft_inside(eini_grad *w, eini_stmt *f, int product, eini_stmt *out) {
  int n = 0, kept, tensor, *col = EINI_NEW(w->scratch, int, f->nindex);
  int *at = EINI_NEW(w->scratch, int, f->nindex);
  unsigned char *dep = product < 0 ? NULL : EINI_NEW(w->scratch, unsigned char, product + 1);
  int64_t *shape = EINI_NEW(w->scratch, int64_t, f->nfree);
  eini_node *node = EINI_NEW(w->scratch, eini_node, product + 1);
  eini_stmt in;
  if (col == NULL || at == NULL || dep == NULL || shape == NULL || node == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->nindex; i++) {
    at[i] = -1;
    if (i < f->nfree) eini_draft_depends(f, product, i, dep);
    if (i < f->nfree && !dep[product]) continue;
    if (i < f->nfree) shape[n] = f->index[i].extent;
    at[i] = n;
    col[n++] = i;
  }
  kept = n - (f->nindex - f->nfree);
  EINI_TRY(eini_grad_tensor(w, f->out, EIN_NONE, kept, shape, &tensor));
  EINI_TRY(eini_draft_pick(w, f, &in, tensor, n, kept, at));
  EINI_TRY(eini_map_units(w->scratch, &in.out_map, 0, 0, kept));
  memcpy(node, f->expr.node, (size_t)(product + 1) * sizeof *node);
  in.expr.node = node;
  for (int id = 0; id <= product; id++)
    if (node[id].op == EIN_OP_INDEX) node[id].arg[0] = at[node[id].arg[0]];
  EINI_TRY(eini_draft_append(w, &in, product));
  EINI_TRY(eini_draft_operand(w, out, out->noperand, tensor));
  for (int j = 0; j < kept; j++)
    EINI_TRY(eini_map_set(w->scratch, &out->proj[out->noperand], j, col[j], 1));
  out->noperand++;
  return EIN_OK;
}

// Appends a draft, a sum whose factors are u: what does not depend on it stands outside.
static ein_status eini_draft_take_out(eini_grad *w, eini_stmt *f, int root,
                                      const eini_grad_factors *u) {
  eini_stmt out;
  int x = -1, sum = f->noperand;
  int64_t count = 1;
  for (int64_t i = 0; i < u->n; i++) {
    int y = u->list[i].node;
    if (u->list[i].what == EINI_F_IN) x = x < 0 ? y : eini_draft_op(w, f, EIN_OP_MUL, x, y, 0);
  }
  EINI_TRY(eini_draft_pick(w, f, &out, f->out, f->nfree, f->nfree, NULL));
  EINI_TRY(eini_map_copy(w->scratch, &out.out_map, &f->out_map, NULL));
  if (u->inside > 0) {
    EINI_TRY(eini_draft_inside(w, f, x, &out));
    return eini_draft_append(w, &out, eini_draft_outside(w, &out, u, sum));
  }
  for (int i = f->nfree; i < f->nindex; i++)
    if (eini_mul_overflow(count, f->index[i].extent, &count)) return eini_grad_full(w);
  x = eini_expr_int(w->scratch, &out.expr, -1, count);
  return eini_draft_append(w, &out, eini_draft_op(w, &out, EIN_OP_MUL, root, x, 0));
}

// Appends a draft. Where its sum is one of products, functions, divisors and conditions that do not
// depend on what is summed stand outside, so that a product of operands remains.
static ein_status eini_draft_split(eini_grad *w, eini_stmt *f, int root) {
  eini_grad_factors u;
  unsigned char *dep = root < 0 ? NULL : EINI_NEW(w->scratch, unsigned char, root + 1);
  memset(&u, 0, sizeof u);
  if (dep == NULL) return EIN_ERR_NO_MEMORY;
  if (f->fold != EIN_FOLD_SUM) return eini_draft_append(w, f, root);
  eini_draft_depends(f, root, -1, dep);
  EINI_TRY(eini_draft_factors(w, f, root, dep, &u));
  if (u.inside > 0 && !u.gain) return eini_draft_append(w, f, root);
  return eini_draft_take_out(w, f, root, &u);
}
