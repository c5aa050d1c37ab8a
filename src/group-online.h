// ================================================================================================
// >>group-online  folds that go on from block to block
// Takes a group; where its folds along one index can be merged, makes the steps by which blocks of
// that index follow each other: sums of exp(x - max) are scaled whenever the maximum has grown.
// ================================================================================================

// After: a softmax whose maximum and sum are states of one pass (Milakov, Gimelshein: Online
// normalizer calculation for softmax, 2018; Rabe, Staats: Self-attention does not need O(n^2)
// memory, 2021), as a rule about statements: exp(x - b) with another b is exp(x - a) exp(a - b).

#define EINI_ONLINE_SIDE 1024.0  // of blocks, at most
#define EINI_ONLINE_SIDES 4      // each half of the one before
#define EINI_ONLINE_ROOMS 2      // each twice the one before: maps in place, and what is read once,
                                 //   need less than is counted
#define EINI_STEP_SECONDS 2e-7   // a step of a group, for each block

enum { EINI_SPARE_PART, EINI_SPARE_SAFE, EINI_SPARE_SCALE };  // of a fold: see eini_tensor

typedef struct eini_role {       // of a unit of a group in which a class of indices is streamed
  int index;                     // its index of the class, -1: none
  int after;                     // 1: runs behind the last block
  int by;                        // unit of the maximum by which its values are scaled, or -1
  int at[EINI_LAYOUT_RANK];      //   and for each axis of that, its index
} eini_role;

typedef struct eini_online {
  eini_trail *w;
  const eini_fuse *f;
  const int64_t *list;
  int c;
  eini_bundle *b;
  eini_role role[EINI_FUSE_MOST];
} eini_online;

static int eini_role_folds(const eini_unit *u, const eini_role *r) {
  return r->index >= u->s->nfree;
}

// ---- tensors for it ----

static int eini_online_folds(const ein_graph *g, const eini_stmt *s) {
  const eini_tensor *t = &g->tensor[s->out];
  return (s->fold == EIN_FOLD_SUM || s->fold == EIN_FOLD_MAX || s->fold == EIN_FOLD_MIN) &&
         s->carry == NULL && s->rest == EIN_REST_ERROR && t->nstmt == 1 && t->dtype == s->type &&
         (s->type == EIN_F32 || s->type == EIN_F64) && t->rank <= EINI_LAYOUT_RANK &&
         t->rank == s->nfree;
}

// Sets aside a block's part of each fold that may be streamed, and for maxima two more.
static ein_status eini_online_spares(ein_plan *p) {
  ein_graph *g = p->graph;
  static const char *const what[] = {"part", "safe", "scale"};
  const int64_t n = g->ntensor;
  double temps = 0;
  if (p->rates == NULL || g->ordered || p->ungrouped) return EIN_OK;
  for (int64_t t = 0; t < n; t++)
    if (g->tensor[t].role == EIN_ROLE_TEMP && g->tensor[t].nstmt > 0)
      temps += eini_tensor_bytes(&g->tensor[t]);
  for (int64_t i = 0; i < g->nstmt && temps > p->rates->fast_bytes; i++) {
    const eini_stmt *s = &g->stmt[i];
    int made = 0;
    for (int k = 0; k < s->noperand; k++) made |= g->tensor[s->operand[k]].role == EIN_ROLE_TEMP;
    if (!made || !eini_online_folds(g, s)) continue;
    g->tensor[s->out].spare = (int)g->ntensor;
    for (int k = 0; k < (s->fold == EIN_FOLD_MAX ? 3 : 1); k++) {
      const eini_tensor *t = &g->tensor[s->out];
      char name[64];
      int id;
      snprintf(name, sizeof name, "%.48s.%s", t->name, what[k]);
      EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, t->dtype,
                                     t->rank, t->shape, &id));
    }
  }
  return EIN_OK;
}

// ---- what units do ----

// The index of statement number x in the class: -1: none; -2: several, or not block for block.
static int eini_online_index(const eini_online *z, int64_t x) {
  int m = 0, found = -1;
  while (z->list[m] != x) m++;
  for (int i = 0; i < z->f->member[m].s->nindex; i++) {
    const eini_fuse_index *y = &z->f->index[z->f->member[m].first + i];
    if (y->cls != z->c) continue;
    if (found != -1 || y->mul != 1 || y->lo != 0 || y->hi != 0) return -2;
    found = i;
  }
  return found;
}

// Where each axis of the maximum that unit `by` makes lies among the indices of s, which reads x at
// operand a as the maximum does, and it at operand k. 0: it does not.
static int eini_online_lies(const eini_stmt *max, const eini_stmt *s, int a, int k, int *at) {
  for (int q = 0; q < max->out_map.rows; q++) {
    const int i = eini_plain_row(&max->out_map, q);
    at[q] = eini_plain_row(&s->proj[k], q);
    if (i < 0 || at[q] < 0) return 0;
    for (int r = 0; r < max->proj[0].rows; r++)
      if (eini_plain_row(&max->proj[0], r) == i && eini_plain_row(&s->proj[a], r) != at[q])
        return 0;
  }
  for (int r = 0; r < max->proj[0].rows; r++)
    if (eini_plain_row(&max->proj[0], r) < 0 || eini_plain_row(&s->proj[a], r) < 0) return 0;
  return 1;
}

// Is s exp(x - m), where m, its operand k, is the maximum of x along the class?
static int eini_online_shift(const eini_stmt *max, const eini_stmt *s, int k, int *at) {
  const eini_node *v = s->expr.node;
  if (s->fold != EIN_FOLD_NONE || s->expr.n != 4 || v[3].op != EIN_OP_EXP ||
      v[v[3].arg[0]].op != EIN_OP_SUB || max->fold != EIN_FOLD_MAX || max->noperand != 1 ||
      max->expr.n != 1 || s->type != max->type)
    return 0;
  const eini_node *x = &v[v[v[3].arg[0]].arg[0]], *m = &v[v[v[3].arg[0]].arg[1]];
  return x->op == EIN_OP_OPERAND && m->op == EIN_OP_OPERAND && m->arg[0] == k &&
         x->dtype == s->type && s->operand[x->arg[0]] == max->operand[0] &&
         eini_online_lies(max, s, x->arg[0], k, at);
}

// What unit x, counted from the first, does with operand k, which unit `from` made. 0: what blocks
// cannot do one after another.
static int eini_online_reads(eini_online *z, int x, int k, int from) {
  const eini_unit *u = &z->w->unit[z->b->from + x], *y = &z->w->unit[z->b->from + from];
  const eini_stmt *s = u->s;
  eini_role *r = &z->role[x];
  const eini_role *o = &z->role[from];
  const int own = k < s->noperand;  // else what is fused into it reads it
  if (o->after || eini_role_folds(y, o)) {
    if (r->index < 0 || (!own && eini_role_folds(u, r))) return r->after |= r->index < 0, 1;
    if (!own || y->f != NULL || r->by >= 0 || !eini_online_shift(y->s, s, k, r->at)) return 0;
    r->by = from;
    return z->w->local[u->out] && u->f == NULL;
  }
  if (o->by < 0) return o->index < 0 || r->index >= 0;
  if (!own || r->index < 0 || r->by >= 0) return 0;
  if (eini_role_folds(u, r) ? s->fold != EIN_FOLD_SUM
                            : s->fold != EIN_FOLD_NONE || !z->w->local[u->out] || u->f != NULL)
    return 0;
  if (!eini_expr_factor(&s->expr, k)) return 0;
  r->by = o->by;
  for (int q = 0; q < z->w->g->tensor[z->w->unit[z->b->from + o->by].s->out].rank; q++) {
    r->at[q] = -1;
    for (int axis = 0; axis < y->s->out_map.rows; axis++)
      if (eini_plain_row(&y->s->out_map, axis) == o->at[q])
        r->at[q] = eini_plain_row(&s->proj[k], axis);
    if (r->at[q] < 0 || r->at[q] >= s->nfree) return 0;
  }
  return 1;
}

// 0: blocks along the class cannot follow each other.
static int eini_online_roles(eini_online *z) {
  const eini_map *m;
  const int *column;
  int folds = 0;
  for (int x = 0; x <= z->b->to - z->b->from; x++) {
    const eini_unit *u = &z->w->unit[z->b->from + x];
    eini_role *r = &z->role[x];
    memset(r, 0, sizeof *r);
    r->by = -1;
    if ((r->index = eini_online_index(z, u->number[0])) == -2) return 0;
    const int then = u->f == NULL ? -1 : eini_online_index(z, u->number[1]);
    if (then == -2) return 0;
    if (eini_role_folds(u, r)) {
      const eini_tensor *t = &z->w->g->tensor[u->s->out];
      if (t->spare == 0 || then >= 0 || !eini_online_folds(z->w->g, u->s)) return 0;
      folds = 1;
    } else if (u->f != NULL && (then < 0 ? -1 : u->column[then]) != r->index) {
      return 0;
    }
    for (int k = 0, t; (t = eini_unit_operand(u, k, &m, &column)) >= 0; k++) {
      const int from = z->w->made[t] - z->b->from;
      if (u->f != NULL && t == u->s->out) continue;
      if (from >= 0 && from < x && !eini_online_reads(z, x, k, from)) return 0;
    }
  }
  return folds;
}

// ---- masks ----

#define EINI_MASK_NODES 256      // of an expression, at most

// Adds `by` times the node, a sum of indices by whole numbers, to coef, the constant behind them.
static int eini_mask_affine(const eini_expr *e, int id, int64_t by, int n, int64_t *coef) {
  const eini_node *v = &e->node[id], *x = &e->node[v->arg[0]];
  const int64_t most = (int64_t)1 << 20;
  switch (v->op) {
    case EIN_OP_INDEX: coef[v->arg[0]] += by; return 1;
    case EIN_OP_CONST:
      coef[n] += by * v->ival;
      return v->exact && eini_abs64(v->ival) < most && eini_abs64(by) < most;
    case EIN_OP_NEG: return eini_mask_affine(e, v->arg[0], -by, n, coef);
    case EIN_OP_ADD:
    case EIN_OP_SUB:
      return eini_mask_affine(e, v->arg[0], by, n, coef) &&
             eini_mask_affine(e, v->arg[1], v->op == EIN_OP_ADD ? by : -by, n, coef);
    case EIN_OP_MUL:
      if (x->op != EIN_OP_CONST) return 0;
      return x->exact && eini_abs64(x->ival) < most && eini_abs64(by) < most &&
             eini_mask_affine(e, v->arg[1], by * x->ival, n, coef);
    default: return 0;
  }
}

// Adds what a comparison of indices says where it holds, or where it does not: terms at most 0.
// 0: it is another one, or one too many.
static int eini_mask_compares(const eini_stmt *s, int id, int holds, eini_bundle *b) {
  const eini_expr *e = &s->expr;
  const eini_node *c = &e->node[id];
  const int less = c->op == EIN_OP_LE || c->op == EIN_OP_LT, n = s->nindex;
  const int strict = c->op == EIN_OP_LT || c->op == EIN_OP_GT;
  const int equal = c->op == (holds ? EIN_OP_EQ : EIN_OP_NE);
  if ((!less && !strict && !equal && c->op != EIN_OP_GE) ||
      eini_kind_of((ein_dtype)e->node[c->arg[0]].dtype) == EINI_KREAL ||
      eini_kind_of((ein_dtype)e->node[c->arg[1]].dtype) == EINI_KREAL)
    return 0;
  for (int side = 0; side <= equal; side++) {  // equal: neither is less
    int64_t *coef = b->mask_by + (int64_t)b->mask_terms * (n + 1);
    const int by = side ? -1 : equal || less == holds ? 1 : -1;
    if (b->mask_terms == EINI_MASK_TERMS) return 0;
    memset(coef, 0, (size_t)(n + 1) * sizeof *coef);
    if (!eini_mask_affine(e, c->arg[0], by, n, coef) ||
        !eini_mask_affine(e, c->arg[1], -by, n, coef))
      return 0;
    // x < y: x - y + 1 <= 0. What is kept where it does not hold, is so where 1 - (x - y) <= 0.
    if (!equal) coef[n] += strict == holds;
    b->mask_terms++;
  }
  return 1;
}

// The same of all comparisons that have to hold, or not to, for the node to do so.
static void eini_mask_conditions(const eini_stmt *s, int id, int holds, eini_bundle *b) {
  const eini_node *c = &s->expr.node[id];
  if (c->op == EIN_OP_NOT) {
    eini_mask_conditions(s, c->arg[0], !holds, b);
  } else if (c->op == (holds ? EIN_OP_AND : EIN_OP_OR)) {
    eini_mask_conditions(s, c->arg[0], holds, b);
    eini_mask_conditions(s, c->arg[1], holds, b);
  } else if (!eini_mask_compares(s, id, holds, b)) {
    b->mask_all = 0;
  }
}

// The node of s that it keeps where its terms are at most 0, with -inf elsewhere; -1: none.
static int eini_mask_of(const eini_stmt *s, eini_bundle *b) {
  const eini_expr *e = &s->expr;
  int id = (int)e->n - 1;
  b->mask_terms = 0;
  b->mask_all = 1;
  if (e->n > EINI_MASK_NODES) return -1;
  for (int kept = 1; e->node[id].op == EIN_OP_WHERE && kept > 0;) {
    const eini_node *v = &e->node[id];
    kept = 0;
    for (int k = 1; k < 3; k++) {
      const eini_node *x = &e->node[v->arg[k]];
      if (x->op == EIN_OP_CONST && x->re == -INFINITY) kept = 3 - k;
    }
    if (kept == 0) break;
    eini_mask_conditions(s, v->arg[0], kept == 1, b);
    id = v->arg[kept];
  }
  return b->mask_terms > 0 ? id : -1;
}

// Operands beside those that exp's values go through, which are to be finite. 0: too many, or some
// that are not there where a block is left out.
static int eini_mask_factors(eini_online *z, int x) {
  const eini_unit *u = &z->w->unit[z->b->from + x];
  for (int k = 0; k < u->s->noperand; k++) {
    const eini_tensor *t = &z->w->g->tensor[u->s->operand[k]];
    const int from = z->w->made[u->s->operand[k]] - z->b->from;
    if (from >= 0 && from < x && z->role[from].by >= 0) continue;
    if (z->b->nfactor == EINI_MASK_FACTORS || t->rank > EINI_LAYOUT_RANK ||
        (t->dtype != EIN_F32 && t->dtype != EIN_F64) ||
        (from >= 0 && from < x && z->role[from].index >= 0))
      return 0;
    z->b->factor[z->b->nfactor][0] = x;
    z->b->factor[z->b->nfactor++][1] = k;
  }
  return 1;
}

// Finds the unit whose mask decides which blocks do anything: what it makes goes to one maximum and
// to exp, and nothing else goes on from block to block. *kept: the node that it keeps.
static ein_status eini_mask_find(eini_online *z, ein_graph *g, int *kept) {
  const eini_trail *w = z->w;
  const int n = z->b->to - z->b->from + 1;
  const eini_map *m;
  const int *column;
  int max = -1, mask;
  z->b->mask = z->b->nfactor = 0;
  for (int x = 0; x < n && max < 0; x++) max = z->role[x].by;
  if (max < 0) return EIN_OK;
  mask = w->made[w->unit[z->b->from + max].s->operand[0]] - z->b->from;
  if (mask < 0 || mask >= max) return EIN_OK;
  const eini_unit *u = &w->unit[z->b->from + mask];
  z->b->mask_by = EINI_NEW(&g->arena, int64_t, EINI_MASK_TERMS * ((int64_t)u->s->nindex + 1));
  if (z->b->mask_by == NULL) return EIN_ERR_NO_MEMORY;
  if (u->f != NULL || u->s->fold != EIN_FOLD_NONE || !w->local[u->out] ||
      (*kept = eini_mask_of(u->s, z->b)) < 0)
    return EIN_OK;
  for (int x = 0; x < n; x++) {
    const eini_unit *y = &w->unit[z->b->from + x];
    const eini_role *r = &z->role[x];
    int reads = 0;
    for (int k = 0, t; (t = eini_unit_operand(y, k, &m, &column)) >= 0; k++) reads |= t == u->out;
    if (r->index < 0 || r->after) continue;
    const int shift = r->by == max && reads;
    if ((reads && !shift && x != max) || (r->by != max && eini_role_folds(y, r) && x != max) ||
        (!eini_role_folds(y, r) && !w->local[y->out]))
      return EIN_OK;
    if (r->by == max && !shift && !eini_mask_factors(z, x)) return EIN_OK;
  }
  z->b->mask = mask + 1;
  return EIN_OK;
}

// ---- steps ----

static eini_group_step *eini_group_step_add(eini_bundle *b, const eini_stmt *s, int unit,
                                            int when) {
  eini_group_step *x = &b->step[b->nstep++];
  memset(x, 0, sizeof *x);
  x->s = s;
  x->via = -1;
  x->unit = unit;
  x->when = when & EINI_AT_ANY || !(when & (EINI_AT_FIRST | EINI_AT_OTHERS)) ? when
                                                                            : when | EINI_AT_ANY;
  return x;
}

// A statement about the elements of what unit x folds: of these tensors, of which `scale`, if it is
// not -1, has the axes of the maximum. Its expression is the caller's to add.
static ein_status eini_online_each(eini_online *z, ein_graph *g, int x, int out, int n,
                                   const int *operand, int scale, int when, eini_stmt **s) {
  const eini_role *r = &z->role[x];
  const eini_stmt *fold = z->w->unit[z->b->from + x].s;
  const int rank = g->tensor[out].rank;
  eini_stmt *added;
  EINI_TRY(eini_graph_add_stmt(g, out, rank, n, operand, &added));
  *s = EINI_NEW(&g->arena, eini_stmt, 1);
  if (*s == NULL) return EIN_ERR_NO_MEMORY;
  **s = *added;
  g->nstmt--;  // it is the group's own
  g->tensor[out].nstmt--;
  for (int i = 0; i < rank; i++) {
    (*s)->index[i].name = "";
    (*s)->index[i].extent = g->tensor[out].shape[i];
  }
  EINI_TRY(eini_map_units(&g->arena, &(*s)->out_map, 0, 0, rank));
  for (int k = 0; k < n; k++) {
    if (k != scale) EINI_TRY(eini_map_units(&g->arena, &(*s)->proj[k], 0, 0, rank));
    for (int q = 0; k == scale && q < g->tensor[operand[k]].rank; q++)
      for (int axis = 0; axis < rank; axis++)
        if (eini_plain_row(&fold->out_map, axis) == r->at[q])
          EINI_TRY(eini_map_set(&g->arena, &(*s)->proj[k], q, axis, 1));
  }
  eini_group_step_add(z->b, *s, x, when)->axes = 1;
  return EIN_OK;
}

static int eini_online_operand(ein_graph *g, eini_stmt *s, int k) {
  return eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, -1, k, 0, 0);
}

// What s computes ends with the node; -1: out of memory.
static ein_status eini_online_end(ein_graph *g, eini_stmt *s, int node) {
  return node < 0 ? EIN_ERR_NO_MEMORY : eini_stmt_finish(g, s, NULL);
}

// out = one op two.
static ein_status eini_online_pair(eini_online *z, ein_graph *g, int x, int out, int op, int one,
                                   int two, int when) {
  const int operand[2] = {one, two};
  eini_stmt *s;
  EINI_TRY(eini_online_each(z, g, x, out, 2, operand, -1, when, &s));
  const int a = eini_online_operand(g, s, 0), b = eini_online_operand(g, s, 1);
  return eini_online_end(g, s, a < 0 || b < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, op, a, b));
}

// scale = where(all == part, 1, exp(all - part)): part is the maximum after this block, all before.
static ein_status eini_online_scale(eini_online *z, ein_graph *g, int x, int all, int spare) {
  const int operand[2] = {all, spare + EINI_SPARE_PART};
  eini_arena *a = &g->arena;
  eini_stmt *s;
  EINI_TRY(eini_online_each(z, g, x, spare + EINI_SPARE_SCALE, 2, operand, -1, EINI_AT_OTHERS, &s));
  const int was = eini_online_operand(g, s, 0), is = eini_online_operand(g, s, 1);
  const int same = was < 0 || is < 0 ? -1 : eini_expr_pair(a, &s->expr, EIN_OP_EQ, was, is);
  const int one = same < 0 ? -1 : eini_expr_real(a, &s->expr, -1, 1);
  const int less = one < 0 ? -1 : eini_expr_pair(a, &s->expr, EIN_OP_SUB, was, is);
  const int by = less < 0 ? -1 : eini_expr_add(a, &s->expr, EIN_OP_EXP, -1, less, 0, 0);
  return eini_online_end(g, s, by < 0 ? -1 : eini_expr_add(a, &s->expr, EIN_OP_WHERE, -1, same, one,
                                                           by));
}

// safe = max(all, the least finite number): exp(x - safe) is 0 where nothing but -inf came so far.
static ein_status eini_online_safe(eini_online *z, ein_graph *g, int x, int all, int spare) {
  eini_stmt *s;
  EINI_TRY(eini_online_each(z, g, x, spare + EINI_SPARE_SAFE, 1, &all, -1,
                            EINI_AT_FIRST | EINI_AT_OTHERS, &s));
  const double least = g->tensor[all].dtype == EIN_F32 ? -(double)FLT_MAX : -DBL_MAX;
  const int a = eini_online_operand(g, s, 0);
  const int b = a < 0 ? -1 : eini_expr_real(&g->arena, &s->expr, -1, least);
  return eini_online_end(g, s, b < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, EIN_OP_MAX, a, b));
}

// all = all * scale + part.
static ein_status eini_online_scaled(eini_online *z, ein_graph *g, int x, int all, int scale) {
  const int operand[3] = {all, scale, g->tensor[all].spare + EINI_SPARE_PART};
  eini_stmt *s;
  EINI_TRY(eini_online_each(z, g, x, all, 3, operand, 1, EINI_AT_OTHERS, &s));
  const int a = eini_online_operand(g, s, 0), b = eini_online_operand(g, s, 1);
  const int c = eini_online_operand(g, s, 2);
  const int by = a < 0 || b < 0 || c < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, EIN_OP_MUL, a,
                                                              b);
  return eini_online_end(g, s, by < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, EIN_OP_ADD, by,
                                                            c));
}

// all = all + (max - max): where the maximum is infinite, exp(x - max) has been NaN.
static ein_status eini_online_exact(eini_online *z, ein_graph *g, int x, int all, int max) {
  const int operand[2] = {all, max};
  eini_stmt *s;
  EINI_TRY(eini_online_each(z, g, x, all, 2, operand, 1, EINI_AT_LAST, &s));
  const int a = eini_online_operand(g, s, 0), b = eini_online_operand(g, s, 1);
  const int no = a < 0 || b < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, EIN_OP_SUB, b, b);
  return eini_online_end(g, s, no < 0 ? -1 : eini_expr_pair(&g->arena, &s->expr, EIN_OP_ADD, a,
                                                            no));
}

// The steps of a fold along the class.
static ein_status eini_online_fold(eini_online *z, ein_graph *g, int x) {
  const eini_unit *u = &z->w->unit[z->b->from + x];
  const int all = u->s->out, spare = g->tensor[all].spare, part = spare + EINI_SPARE_PART;
  const int by = z->role[x].by;
  int shifts = 0;
  eini_stmt *of = EINI_NEW(&g->arena, eini_stmt, 1);
  if (of == NULL) return EIN_ERR_NO_MEMORY;
  *of = *u->s;
  of->out = part;
  eini_group_step_add(z->b, u->s, x, EINI_AT_FIRST);
  eini_group_step_add(z->b, of, x, EINI_AT_OTHERS);
  for (int y = x + 1; y <= z->b->to - z->b->from; y++) shifts |= z->role[y].by == x;
  if (shifts) {
    EINI_TRY(eini_online_pair(z, g, x, part, EIN_OP_MAX, all, part, EINI_AT_OTHERS));
    EINI_TRY(eini_online_scale(z, g, x, all, spare));
    EINI_TRY(eini_online_pair(z, g, x, all, EIN_OP_MAX, part, part, EINI_AT_OTHERS));
    EINI_TRY(eini_online_safe(z, g, x, all, spare));
  } else if (by < 0) {
    const int op = u->s->fold == EIN_FOLD_SUM ? EIN_OP_ADD
                   : u->s->fold == EIN_FOLD_MAX ? EIN_OP_MAX : EIN_OP_MIN;
    EINI_TRY(eini_online_pair(z, g, x, all, op, all, part, EINI_AT_OTHERS));
  } else {
    const int max = z->w->unit[z->b->from + by].s->out;
    EINI_TRY(eini_online_scaled(z, g, x, all, g->tensor[max].spare + EINI_SPARE_SCALE));
    EINI_TRY(eini_online_exact(z, g, x, all, max));
  }
  if (u->f != NULL) eini_group_step_add(z->b, u->f, x, EINI_AT_LAST)->then = 1;
  return EIN_OK;
}

// A unit that reads the maximum so far in place of the last one.
static ein_status eini_online_shifted(eini_online *z, ein_graph *g, int x) {
  const eini_stmt *s = z->w->unit[z->b->from + x].s;
  const int max = z->w->unit[z->b->from + z->role[x].by].s->out;
  eini_stmt *own = EINI_NEW(&g->arena, eini_stmt, 1);
  int *operand = EINI_NEW(&g->arena, int, s->noperand);
  if (own == NULL || operand == NULL) return EIN_ERR_NO_MEMORY;
  *own = *s;
  own->operand = operand;
  for (int k = 0; k < s->noperand; k++)
    operand[k] = s->operand[k] == max ? g->tensor[max].spare + EINI_SPARE_SAFE : s->operand[k];
  eini_group_step_add(z->b, own, x, EINI_AT_FIRST | EINI_AT_OTHERS);
  return EIN_OK;
}

// What a mask makes where it keeps all: without it.
static ein_status eini_online_open(eini_online *z, ein_graph *g, int x, int kept) {
  const eini_stmt *s = z->w->unit[z->b->from + x].s;
  eini_stmt *own = EINI_NEW(&g->arena, eini_stmt, 1);
  int *at = EINI_NEW(&g->arena, int, s->expr.n);
  char *need = EINI_NEW(&g->arena, char, s->expr.n);
  if (own == NULL || at == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  *own = *s;
  memset(&own->expr, 0, sizeof own->expr);
  eini_mark_needed(&s->expr, kept, need);
  for (int i = 0; i <= kept; i++)
    if (need[i] && (at[i] = eini_node_copy(&g->arena, &s->expr, i, at, &own->expr)) < 0)
      return EIN_ERR_NO_MEMORY;
  eini_group_step_add(z->b, own, x, EINI_AT_FIRST | EINI_AT_OTHERS | EINI_AT_OPEN);
  return EIN_OK;
}

static ein_status eini_online_steps(eini_online *z, ein_graph *g) {
  const int n = z->b->to - z->b->from + 1;
  int kept = -1;
  z->b->nstep = 0;
  EINI_TRY(eini_mask_find(z, g, &kept));
  z->b->step = EINI_NEW(&g->arena, eini_group_step, EINI_STEPS_MOST * n);
  if (z->b->step == NULL) return EIN_ERR_NO_MEMORY;
  for (int x = 0; x < n; x++) {
    const eini_unit *u = &z->w->unit[z->b->from + x];
    const eini_role *r = &z->role[x];
    if (eini_role_folds(u, r)) {
      EINI_TRY(eini_online_fold(z, g, x));
    } else if (r->by >= 0) {
      EINI_TRY(eini_online_shifted(z, g, x));
    } else {
      eini_group_step *s = eini_group_step_add(z->b, u->s, x, r->after ? EINI_AT_LAST
                                                  : r->index < 0 ? EINI_AT_FIRST
                                                                 : EINI_AT_FIRST | EINI_AT_OTHERS);
      s->f = u->f;
      s->via = u->via;
      if (z->b->mask != x + 1) continue;
      s->when = (s->when & ~EINI_AT_ANY) | EINI_AT_MIXED;
      EINI_TRY(eini_online_open(z, g, x, kept));
    }
  }
  return EIN_OK;
}

// ---- blocks ----

// Longer sides of all classes but the streamed one, as long as less moves.
static void eini_online_grow(eini_fuse *f, int c, double fast) {
  double best = eini_fuse_weigh(f, fast, INFINITY);
  for (int at = 0; best < INFINITY && at >= 0;) {
    double least = best, to = 0;
    at = -1;
    for (int d = 0; d < f->ncls; d++) {
      const double was = f->side[d];
      if (d == c || was >= f->extent[d]) continue;
      f->side[d] = fmin(2 * was, f->extent[d]);
      const double io = eini_fuse_weigh(f, fast, least);
      if (io < least) least = io, at = d, to = f->side[d];
      f->side[d] = was;
    }
    if (at >= 0) f->side[at] = to, best = least;
  }
  eini_fuse_settle(f, fast);
}

// The side of blocks along a class of that extent that is tried as number k: equal parts, or those
// in whole vectors. 0: none is.
static double eini_online_side(double extent, int k, int vectors) {
  const double side = ceil(fmin(EINI_ONLINE_SIDE, ceil(extent / 2)) / (double)(1 << k));
  const double whole = ceil(side / EINI_LANES) * EINI_LANES;
  if (k >= EINI_ONLINE_SIDES || side < 2 || (vectors && whole == side)) return 0;
  return vectors ? whole : side;
}

// Seconds that the steps of all blocks take to start.
static double eini_online_starts(const eini_bundle *b) {
  double steps = b->nstep;
  for (int l = 0; l < b->nloop; l++) steps *= (double)eini_ceil_div(b->extent[l], b->block[l]);
  return steps * EINI_STEP_SECONDS;
}

// The group b, whose classes `of` has, with blocks of a side along class c, innermost, in a room.
// b->nloop 0: there are none.
static ein_status eini_online_bundle(eini_trail *w, ein_graph *g, const eini_fuse *of,
                                     const int64_t *list, int c, double side, int room,
                                     eini_bundle *b) {
  eini_fuse f = *of;
  eini_online z;
  b->nloop = 0;
  if (side == 0 || !f.whole[c] || side >= f.extent[c]) return EIN_OK;
  memset(&z, 0, sizeof z);
  z.w = w, z.f = &f, z.list = list, z.c = c, z.b = b;
  eini_bundle_mark(w, b->from, b->to);
  const int can = eini_online_roles(&z);
  const ein_status st = can ? eini_online_steps(&z, g) : EIN_OK;
  eini_bundle_unmark(w, b->from, b->to);
  if (st != EIN_OK || !can) return st;
  eini_fuse_begin(&f);
  f.whole[c] = 0;
  f.last = c;
  f.side[c] = side;
  eini_online_grow(&f, c, w->z.fast * (double)(1 << room));
  b->stream = c + 1;
  eini_bundle_weigh(w, &f, list, b);
  if (!(b->gain > -INFINITY) || b->nloop < 2 || b->cls[b->nloop - 1] != c) b->nloop = 0;
  if (eini_online_starts(b) > b->alone) b->nloop = 0;  // not worth a prediction
  return EIN_OK;
}

// ---- tensors of steps ----

// Tensor number i that the steps of a fold of unit x use and no unit makes; -1: there are no more.
static int eini_online_extra(const eini_trail *w, const eini_bundle *b, int x, int i) {
  const eini_unit *u = &w->unit[b->from + x];
  const int spare = w->g->tensor[u->s->out].spare;
  int folds = 0;
  for (int k = 0; k < b->nstep; k++) folds |= b->step[k].unit == x && b->step[k].axes;
  if (!folds) return -1;
  if (u->f != NULL && i-- == 0) return u->s->out;
  return i < (u->s->fold == EIN_FOLD_MAX ? 3 : 1) ? spare + i : -1;
}

// Makes them the group's own, or not.
static void eini_online_own(const eini_trail *w, const eini_bundle *b, int own) {
  for (int x = 0, t; x <= b->to - b->from && b->stream; x++)
    for (int i = 0; (t = eini_online_extra(w, b, x, i)) >= 0; i++) w->local[t] = (char)own;
}
