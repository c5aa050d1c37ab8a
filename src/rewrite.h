// ================================================================================================
// >>rewrite  from n-ary statements to sequences of small ones
// Takes a statement and the factors of its product, which are nodes of its expression; gives
// statements in a contraction order. Only legal splits (DESIGN: the way of the data); everything
// else stays one n-ary pass.
// ================================================================================================

// A factor, or several in their order: nodes of the statement's expression.
typedef struct eini_member {
  int nroot;
  const int *root;
  int nlabel;
  int *label;               // indices they depend on, ascending
} eini_member;

typedef struct eini_split {
  ein_graph *g;
  eini_diag *diag;
  eini_stmt w;              // the statement; what is made of its factors becomes an operand of it
  int64_t capop, capproj;
  int join;                 // EIN_OP_MUL, EIN_OP_ADD, ..
  int serial;               // numbers the temporaries
  int fastest;              // 1: a path gives way to one pass where that is predicted to be faster
  const ein_rates *rates;   // of the kernels that will run; NULL: not known
  int *local;               // index -> column of the statement being built, or -1
  int *seen, *copy, nodes;  // per node: the last walk that met it; its copy
  int walk;
  int *list;                // nodes that were met
  int64_t nlist, caplist;
  int64_t indices;          // of all statements that were made
  const uint64_t *rank;     // of indices, the order in which temporaries and folds have them; NULL:
} eini_split;               //   as they are numbered

#define EINI_INDICES_MOST ((int64_t)1 << 21)  // of a split: some 300 bytes each

// Begins with a statement whose arrays may grow.
static ein_status eini_split_begin(eini_split *sp, const eini_stmt *s) {
  sp->w = *s;
  sp->capop = sp->capproj = s->noperand;
  sp->nodes = 0;
  sp->local = EINI_NEW(&sp->g->arena, int, s->nindex);
  if (sp->local == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) sp->local[c] = -1;
  return EIN_OK;
}

// Appends the nodes below a root to the list, each after those it reads.
static ein_status eini_split_walk(eini_split *sp, int root) {
  eini_arena *a = &sp->g->arena;
  const eini_expr *e = &sp->w.expr;
  const int64_t from = sp->nlist;
  if (sp->nodes < e->n) {
    sp->nodes = (int)eini_min64(2 * e->n, INT_MAX);
    sp->seen = EINI_NEW(a, int, sp->nodes);
    sp->copy = EINI_NEW(a, int, sp->nodes);
    if (sp->seen == NULL || sp->copy == NULL) return EIN_ERR_NO_MEMORY;
  }
  sp->walk++;
  for (int64_t i = from - 1; i < sp->nlist; i++) {
    const eini_node *v = i < from ? NULL : &e->node[sp->list[i]];
    for (int k = 0; k < (v == NULL ? 1 : eini_node_args(v)); k++) {
      int id = v == NULL ? root : eini_node_arg(e, v, k);
      if (sp->seen[id] == sp->walk) continue;
      sp->seen[id] = sp->walk;
      int *list = (int *)eini_grow(a, sp->list, sp->nlist, &sp->caplist, sizeof *list);
      if (list == NULL) return EIN_ERR_NO_MEMORY;
      sp->list = list;
      list[sp->nlist++] = id;
    }
  }
  eini_sort_ints(sp->list + from, sp->nlist - from);
  return EIN_OK;
}

// A member as a node of its own.
static ein_status eini_member_wrap(eini_split *sp, int node, eini_member *m) {
  int *root = EINI_NEW(&sp->g->arena, int, 1);
  if (root == NULL || node < 0) return EIN_ERR_NO_MEMORY;
  *root = node;
  m->root = root;
  m->nroot = 1;
  return EIN_OK;
}

// A node with the labels of what it reads.
static ein_status eini_member_of(eini_split *sp, int root, eini_member *m) {
  const eini_stmt *s = &sp->w;
  int64_t n = 0;
  sp->nlist = 0;
  EINI_TRY(eini_split_walk(sp, root));
  for (int pass = 0; pass < 2; pass++) {
    if (pass > 0 && (m->label = EINI_NEW(&sp->g->arena, int, n)) == NULL) return EIN_ERR_NO_MEMORY;
    n = 0;
    for (int64_t i = 0; i < sp->nlist; i++) {
      const eini_node *v = &s->expr.node[sp->list[i]];
      const eini_map *x = v->op == EIN_OP_OPERAND ? &s->proj[v->arg[0]] : NULL;
      for (int e = 0; x != NULL && e < x->first[x->rows]; e++, n++)
        if (pass > 0) m->label[n] = x->term[e].index;
      if (v->op == EIN_OP_INDEX && pass > 0) m->label[n] = v->arg[0];
      n += v->op == EIN_OP_INDEX;
    }
  }
  m->nlabel = eini_sort_unique(m->label, (int)n);
  return eini_member_wrap(sp, root, m);
}

// The members that are in the set (bits; NULL: all), as one.
static ein_status eini_member_join(eini_split *sp, int n, const eini_member *val,
                                   const uint32_t *set, eini_member *all) {
  int64_t roots = 0, labels = 0;
  for (int k = 0; k < n; k++) roots += val[k].nroot, labels += val[k].nlabel;
  int *root = EINI_NEW(&sp->g->arena, int, roots);
  all->label = EINI_NEW(&sp->g->arena, int, labels);
  all->root = root;
  all->nroot = all->nlabel = 0;
  if (root == NULL || all->label == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) {
    if (set != NULL && !(*set >> k & 1)) continue;
    for (int i = 0; i < val[k].nroot; i++) root[all->nroot++] = val[k].root[i];
    for (int i = 0; i < val[k].nlabel; i++) all->label[all->nlabel++] = val[k].label[i];
  }
  all->nlabel = eini_sort_unique(all->label, all->nlabel);
  return EIN_OK;
}

// One node for a member; -1 when out of memory.
static int eini_member_root(eini_split *sp, const eini_member *m) {
  int x = m->root[0];
  for (int i = 1; i < m->nroot && x >= 0; i++)
    x = eini_expr_add(&sp->g->arena, &sp->w.expr, sp->join, sp->w.pos, x, m->root[i], 0);
  return x;
}

// The operand that a member is as it is stored; -1: it is more than that.
static int eini_member_operand(const eini_split *sp, const eini_member *m) {
  const eini_node *v = m->nroot == 1 ? &sp->w.expr.node[m->root[0]] : NULL;
  return v != NULL && v->op == EIN_OP_OPERAND ? v->arg[0] : -1;
}

// One more operand, and the node that reads (or writes) it; -1 when out of memory.
static int eini_split_operand(eini_split *sp, int tensor, const eini_map *map) {
  eini_arena *a = &sp->g->arena;
  eini_stmt *w = &sp->w;
  const int k = w->noperand;
  int *op = (int *)eini_grow(a, w->operand, k, &sp->capop, sizeof *op);
  eini_map *proj = (eini_map *)eini_grow(a, w->proj, k, &sp->capproj, sizeof *proj);
  if (op == NULL || proj == NULL) return -1;
  w->operand = op;
  w->proj = proj;
  op[k] = tensor;
  proj[k] = *map;
  w->noperand++;
  return eini_expr_add(a, &w->expr, EIN_OP_OPERAND, w->pos, k, 0, 0);
}

// The labels of a statement: the output's in the order of its axes, then the reduced ones.
static ein_status eini_stmt_labels(eini_split *sp, const eini_member *out, int nval,
                                   const eini_member *const *val, int **list, int *n, int *nfree) {
  const eini_map *m = &sp->w.proj[eini_member_operand(sp, out)];
  int64_t room = out->nlabel;
  for (int i = 0; i < nval; i++) room += val[i]->nlabel;
  int *ids = EINI_NEW(&sp->g->arena, int, room), at = 0;
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  for (int e = 0; e < m->first[m->rows]; e++) {
    int id = m->term[e].index;
    if (sp->local[id] < 0) sp->local[id] = at, ids[at++] = id;
  }
  for (int i = -1; i < nval; i++) {  // extent-1 labels of the output may have no coefficient
    const eini_member *v = i < 0 ? out : val[i];
    for (int c = 0; c < v->nlabel; c++) {
      int id = v->label[c];
      if (sp->local[id] < 0) sp->local[id] = at, ids[at++] = id;
    }
    if (i < 0) *nfree = at;
  }
  if (sp->rank != NULL) {
    eini_sort_by(ids + *nfree, at - *nfree, sp->rank);
    for (int i = *nfree; i < at; i++) sp->local[ids[i]] = i;
  }
  *list = ids;
  *n = at;
  return EIN_OK;
}

// What a statement being built reads: operand number num[i] for node list[i], nop of them.
typedef struct eini_reading {
  int nop, *op, *tensor, *num;
  int64_t *end;             // of each root: the end of its nodes in the list
} eini_reading;

// Every root has operands of its own.
static ein_status eini_split_read(eini_split *sp, int nval, const eini_member *const *val,
                                  eini_reading *r) {
  eini_arena *a = &sp->g->arena;
  int64_t n = 0;
  for (int i = 0; i < nval; i++) n += val[i]->nroot;
  r->end = EINI_NEW(a, int64_t, n);
  if (r->end == NULL) return EIN_ERR_NO_MEMORY;
  sp->nlist = n = 0;
  for (int i = 0; i < nval; i++) {
    for (int k = 0; k < val[i]->nroot; k++) {
      EINI_TRY(eini_split_walk(sp, val[i]->root[k]));
      r->end[n++] = sp->nlist;
    }
  }
  r->nop = 0;
  r->op = EINI_NEW(a, int, sp->nlist);
  r->tensor = EINI_NEW(a, int, sp->nlist);
  r->num = EINI_NEW(a, int, sp->nlist);
  if (r->op == NULL || r->tensor == NULL || r->num == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0, at = 0; i < n; i++) {
    for (int first = r->nop; at < r->end[i]; at++) {
      const eini_node *v = &sp->w.expr.node[sp->list[at]];
      int k = first;
      if (v->op != EIN_OP_OPERAND) continue;
      while (k < r->nop && r->op[k] != v->arg[0]) k++;
      if (k == r->nop) {
        r->op[r->nop] = v->arg[0];
        r->tensor[r->nop++] = sp->w.operand[v->arg[0]];
      }
      r->num[at] = k;
    }
  }
  return EIN_OK;
}

// The join of the members as an expression over the operands they read.
static ein_status eini_split_expr(eini_split *sp, int nval, const eini_member *const *val,
                                  const eini_reading *r, eini_expr *e) {
  eini_arena *a = &sp->g->arena;
  int all = -1;
  int64_t at = 0;
  for (int i = 0, n = 0; i < nval; i++) {
    int one = -1;
    for (int k = 0; k < val[i]->nroot; k++, n++) {
      int x = -1;
      for (; at < r->end[n]; at++) {
        x = sp->copy[sp->list[at]] = eini_node_copy(a, &sp->w.expr, sp->list[at], sp->copy, e);
        if (x < 0) return EIN_ERR_NO_MEMORY;
        if (e->node[x].op == EIN_OP_OPERAND) e->node[x].arg[0] = r->num[at];
        if (e->node[x].op == EIN_OP_INDEX) e->node[x].arg[0] = sp->local[e->node[x].arg[0]];
      }
      one = one < 0 ? x : eini_expr_add(a, e, sp->join, sp->w.pos, one, x, 0);
      if (one < 0) return EIN_ERR_NO_MEMORY;
    }
    all = all < 0 ? one : eini_expr_add(a, e, sp->join, sp->w.pos, all, one, 0);
    if (all < 0) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Adds the statement out = fold over the labels out lacks of join(members).
static ein_status eini_emit_stmt(eini_split *sp, const eini_member *out, int nval,
                                 const eini_member *const *val, ein_rest rest) {
  ein_graph *g = sp->g;
  const int to = eini_member_operand(sp, out), tensor = sp->w.operand[to];
  int *ids, n = 0, nfree = 0;
  eini_reading r;
  eini_stmt *s;
  EINI_TRY(eini_stmt_labels(sp, out, nval, val, &ids, &n, &nfree));
  if ((sp->indices += n) > EINI_INDICES_MOST)
    return eini_fail(sp->diag, EIN_ERR_TOO_LARGE, sp->w.pos, 1, "another path needs less",
                     "the steps of the path have too many indices and operands");
  EINI_TRY(eini_split_read(sp, nval, val, &r));
  EINI_TRY(eini_graph_add_stmt(g, tensor, n, r.nop, r.tensor, &s));
  s->nfree = nfree;
  s->fold = n > nfree ? sp->w.fold : EIN_FOLD_NONE;
  s->numpy = sp->w.numpy;
  s->rest = rest;
  s->pos = sp->w.pos;
  for (int i = 0; i < n; i++) s->index[i] = sp->w.index[ids[i]];
  EINI_TRY(eini_map_copy(&g->arena, &s->out_map, &sp->w.proj[to], sp->local));
  for (int k = 0; k < r.nop; k++)
    EINI_TRY(eini_map_copy(&g->arena, &s->proj[k], &sp->w.proj[r.op[k]], sp->local));
  EINI_TRY(eini_split_expr(sp, nval, val, &r, &s->expr));
  for (int i = 0; i < n; i++) sp->local[ids[i]] = -1;
  EINI_TRY(eini_stmt_finish(g, s, sp->diag));
  eini_tensor_fix_dtype(&g->tensor[tensor]);
  return EIN_OK;
}

// A member that reads (or writes) a tensor by a map.
static ein_status eini_member_new(eini_split *sp, int tensor, const eini_map *map, int nlabel,
                                  const int *label, eini_member *m) {
  m->label = EINI_NEW(&sp->g->arena, int, nlabel);
  if (m->label == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nlabel; i++) m->label[i] = label[i];
  m->nlabel = eini_sort_unique(m->label, nlabel);
  return eini_member_wrap(sp, eini_split_operand(sp, tensor, map), m);
}

// A temporary over the given labels, one axis each.
static ein_status eini_temp_member(eini_split *sp, int nlabel, const int *label, eini_member *m) {
  eini_arena *a = &sp->g->arena;
  int64_t *shape = EINI_NEW(a, int64_t, nlabel);
  int tensor;
  eini_map map;
  char name[32];
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_map_new(a, nlabel, sp->w.nindex, &map));
  for (int i = 0; i < nlabel; i++) {
    shape[i] = sp->w.index[label[i]].extent;
    EINI_TRY(eini_map_set(a, &map, i, label[i], 1));
  }
  int len = snprintf(name, sizeof name, "T.%d", ++sp->serial);
  EINI_TRY(eini_graph_add_tensor(sp->g, name, len, EIN_ROLE_TEMP, EIN_NONE, nlabel, shape,
                                 &tensor));
  return eini_member_new(sp, tensor, &map, nlabel, label, m);
}

static void eini_count_labels(int *uses, const eini_member *v, int by) {
  for (int c = 0; c < v->nlabel; c++) uses[v->label[c]] += by;
}

// Is a member no more than a tensor's elements at its labels: no diagonal, conversion or product?
static int eini_member_plain(const eini_split *sp, const eini_member *m) {
  const int k = eini_member_operand(sp, m);
  return k >= 0 && sp->w.proj[k].rows == m->nlabel;
}

// Reduces a member over the labels that nothing else needs, in a statement of its own.
static ein_status eini_prereduce(eini_split *sp, int *uses, eini_member *v, int *kept) {
  int n = 0, gone = 0;
  for (int c = 0; c < v->nlabel; c++) {
    if (uses[v->label[c]] > 1) kept[n++] = v->label[c];
    else gone |= sp->w.index[v->label[c]].extent != 1;
  }
  if (!gone) return EIN_OK;
  eini_member t;
  if (sp->rank != NULL) eini_sort_by(kept, n, sp->rank);
  EINI_TRY(eini_temp_member(sp, n, kept, &t));
  const eini_member *one = v;
  EINI_TRY(eini_emit_stmt(sp, &t, 1, &one, EIN_REST_ERROR));
  eini_count_labels(uses, v, -1);
  eini_count_labels(uses, &t, 1);
  *v = t;
  return EIN_OK;
}

// The network of a product, for the path search.
static ein_status eini_net_build(eini_arena *a, const eini_split *sp, int nval,
                                 const eini_member *val, const eini_member *out, eini_net *net) {
  memset(net, 0, sizeof *net);
  int64_t total = out->nlabel;
  for (int k = 0; k < nval; k++) total += val[k].nlabel;
  int *start = EINI_NEW(a, int, nval + 2), *labels = EINI_NEW(a, int, total + 1);
  int64_t *extent = EINI_NEW(a, int64_t, sp->w.nindex + 1);
  if (start == NULL || labels == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  if (total > INT_MAX - 2) return EIN_ERR_TOO_LARGE;
  int at = 0;
  for (int k = 0; k <= nval; k++) {
    const eini_member *v = k < nval ? &val[k] : out;
    start[k] = at;
    for (int c = 0; c < v->nlabel; c++) labels[at++] = v->label[c];
  }
  start[nval + 1] = at;
  for (int i = 0; i < sp->w.nindex; i++) extent[i] = sp->w.index[i].extent;
  net->nterm = nval;
  net->nlabel = sp->w.nindex;
  net->extent = extent;
  net->start = start;
  net->labels = labels;
  return EIN_OK;
}
