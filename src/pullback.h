// ================================================================================================
// >>pullback  from a statement to its operands
// Takes a statement and the cotangent of what it defines; appends statements that define what its
// operands share of it.
// ================================================================================================

// What a piece reads outside of its operands is 0 there: padded copies.
typedef struct eini_pads {
  char *keep;              // nodes that are needed
  int *tensor;             // per operand, -1 for one that is not read
  int64_t **low, **high;   // per operand and axis
} eini_pads;

static ein_status eini_pads_new(eini_back *b, int root, eini_pads *q) {
  eini_arena *a = b->w->scratch;
  char *keep = q->keep = EINI_NEW(a, char, root + 1);
  q->tensor = EINI_NEW(a, int, b->n);
  q->low = EINI_NEW(a, int64_t *, b->n);
  q->high = EINI_NEW(a, int64_t *, b->n);
  if (keep == NULL || q->tensor == NULL || q->low == NULL || q->high == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < b->n; k++) q->tensor[k] = -1;
  eini_mark_needed(&b->d.e, root, keep);
  for (int id = 0; id <= root; id++) {
    const eini_node *v = &b->d.e.node[id];
    if (keep[id] && v->op == EIN_OP_OPERAND) q->tensor[v->arg[0]] = b->operand[v->arg[0]];
  }
  for (int k = 0; k < b->n; k++) {
    q->low[k] = EINI_NEW(a, int64_t, b->proj[k].rows);
    q->high[k] = EINI_NEW(a, int64_t, b->proj[k].rows);
    if (q->low[k] == NULL || q->high[k] == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// How far one piece reads outside; c: room for a form.
static ein_status eini_pads_widen(eini_back *b, eini_pads *q, eini_preimage *p, int64_t *c) {
  for (int k = 0; k < b->n; k++) {
    const eini_tensor *t = &b->w->g->tensor[b->operand[k]];
    const eini_map *m = &b->proj[k];
    for (int r = 0; q->tensor[k] >= 0 && r < m->rows; r++) {
      int64_t lo, hi;
      int64_t at = eini_pre_form(p, m, r, c);
      if (p->over || eini_zmap_row_range(c, p->n, at, p->extent, &lo, &hi) != EIN_OK ||
          lo < -(INT64_MAX / 4) || hi > INT64_MAX / 4)
        return eini_grad_full(b->w);
      q->low[k][r] = eini_max64(q->low[k][r], -lo);
      q->high[k][r] = eini_max64(q->high[k][r], hi - t->shape[r] + 1);
    }
  }
  return EIN_OK;
}

static ein_status eini_pads_make(eini_back *b, eini_pads *q) {
  eini_grad *w = b->w;
  eini_syn zero;
  memset(&zero, 0, sizeof zero);
  zero.kind = EINI_S_NUM;
  zero.exact = 1;
  zero.pos = w->pos;
  for (int k = 0; k < b->n; k++) {
    eini_padding by = {{EINI_EDGE_CONST, &zero}, EIN_NONE, EIN_NONE, w->pos};
    if (q->tensor[k] >= 0) by.dtype = w->g->tensor[q->tensor[k]].dtype;
    for (int r = 0; q->tensor[k] >= 0 && r < b->proj[k].rows; r++) {
      char name[32];
      if (q->low[k][r] == 0 && q->high[k][r] == 0) continue;
      snprintf(name, sizeof name, "pad.d%lld", (long long)w->g->ntensor);
      EINI_TRY(eini_pad_axis(w->g, w->diag, &q->tensor[k], r, &by, q->low[k][r], q->high[k][r],
                             name));
    }
  }
  return EIN_OK;
}

// Is node root a product of operands, one of which is 0 wherever a condition fails, once it is
// padded with zeros? Then conditions need not be asked.
static int eini_back_vanishes(const eini_back *b, const eini_pads *q, const eini_preimage *p,
                              int root) {
  for (int id = 0; id <= root; id++) {
    int op = b->d.e.node[id].op;
    if (q->keep[id] && op != EIN_OP_MUL && op != EIN_OP_NEG && op != EIN_OP_CONJ &&
        op != EIN_OP_CAST && op != EIN_OP_OPERAND && op != EIN_OP_CONST && op != EIN_OP_PARAM &&
        op != EIN_OP_INDEX)
      return 0;
  }
  for (int i = 0; i < p->ncond; i++) {
    int found = 0, who = p->who[i];
    for (int k = 0; k < b->n && who >= 0; k++) {
      const eini_map *m = &b->proj[k];
      for (int r = 0; q->tensor[k] >= 0 && r < m->rows; r++) {
        found |= eini_plain_row(m, r) == who &&
                 b->w->g->tensor[b->operand[k]].shape[r] == b->s.index[who].extent;
      }
    }
    if (!found) return 0;
  }
  return 1;
}

// A form over new indices as nodes of a draft; at: their numbers there.
static int eini_pre_node(eini_grad *w, eini_stmt *f, const eini_preimage *p, const int *at,
                         const int64_t *c, int64_t offset) {
  int sum = -1;
  for (int x = 0; x < p->n; x++) {
    if (c[x] == 0) continue;
    int y = eini_expr_add(w->scratch, &f->expr, EIN_OP_INDEX, -1, at[x], 0, 0);
    if (c[x] != 1)
      y = eini_draft_op(w, f, EIN_OP_MUL, eini_expr_int(w->scratch, &f->expr, -1, c[x]), y, 0);
    sum = sum < 0 ? y : eini_draft_op(w, f, EIN_OP_ADD, sum, y, 0);
  }
  if (sum >= 0 && offset == 0) return sum;
  int y = eini_expr_int(w->scratch, &f->expr, -1, offset);
  return sum < 0 ? y : eini_draft_op(w, f, EIN_OP_ADD, sum, y, 0);
}

// The expression of a piece: old indices in it become forms of new ones. A literal index would not
// be an i64, so one that is constant is converted.
static int eini_back_nodes(eini_back *b, const eini_preimage *p, const eini_pads *q, const int *at,
                           int root, eini_stmt *f) {
  eini_grad *w = b->w;
  int *map = EINI_NEW(w->scratch, int, root + 1);
  if (map == NULL) return -1;
  for (int id = 0; id <= root; id++) {
    const eini_node *v = &b->d.e.node[id];
    if (!q->keep[id]) continue;
    if (v->op == EIN_OP_INDEX) {
      int i = v->arg[0], x;
      map[id] = x = eini_pre_node(w, f, p, at, p->coef + (int64_t)i * p->cap, p->offset[i]);
      if (x < 0) return -1;
      if (f->expr.node[x].op != EIN_OP_CONST) continue;
      map[id] = eini_draft_op(w, f, EIN_OP_CAST, x, 0, 0);
      if (map[id] >= 0) f->expr.node[map[id]].dtype = EIN_I64;
    } else {
      map[id] = eini_node_copy(w->scratch, &b->d.e, id, map, &f->expr);
    }
    if (map[id] < 0) return -1;
  }
  return map[root];
}

// Node x where all conditions of a piece hold that could fail, else 0.
static int eini_back_where(eini_back *b, const eini_preimage *p, const int *at, int x,
                           eini_stmt *f) {
  eini_grad *w = b->w;
  int mask = -1;
  for (int i = 0; i < p->ncond && x >= 0; i++) {
    int row = p->nold + p->nout + i, equal = p->bound[i] < 0, y;
    const int64_t *c = p->coef + (int64_t)row * p->cap;
    int64_t lo, hi;
    if (eini_zmap_row_range(c, p->n, p->offset[row], p->extent, &lo, &hi) != EIN_OK)
      return w->status = eini_grad_full(w), -1;
    for (int side = 0; side < (equal ? 1 : 2); side++) {
      if (equal ? lo == 0 && hi == 0 : side == 0 ? lo >= 0 : hi < p->bound[i]) continue;
      y = eini_expr_int(w->scratch, &f->expr, -1, equal || side == 0 ? 0 : p->bound[i]);
      y = eini_draft_op(w, f, equal ? EIN_OP_EQ : side == 0 ? EIN_OP_GE : EIN_OP_LT,
                        eini_pre_node(w, f, p, at, c, p->offset[row]), y, 0);
      mask = mask < 0 ? y : eini_draft_op(w, f, EIN_OP_AND, mask, y, 0);
      if (mask < 0) return -1;
    }
  }
  if (mask < 0) return x;
  return eini_draft_op(w, f, EIN_OP_WHERE, mask, x, eini_expr_int(w->scratch, &f->expr, -1, 0));
}

// Numbers the new indices: free ones in the order of the coordinates, then those to be summed.
static int eini_pre_number(const eini_preimage *p, int *at, int *nfree) {
  int n = 0;
  for (int x = 0; x < p->n; x++) at[x] = -1;
  for (int r = 0; r < p->nout; r++) {
    const int64_t *c = p->coef + (int64_t)(p->nold + r) * p->cap;
    for (int x = 0; x < p->n; x++)
      if (c[x] != 0 && at[x] < 0) at[x] = n++;
  }
  *nfree = n;
  for (int x = 0; x < p->n; x++)
    if (p->state[x] == EINI_X_REST) at[x] = n++;
  return n;
}

// Writes one piece of what node root sends to an operand; ask: conditions must be asked.
static ein_status eini_back_piece(eini_back *b, eini_preimage *p, const eini_pads *q, int root,
                                  int out, int ask, int64_t *c) {
  eini_grad *w = b->w;
  eini_stmt f;
  int nfree, *at = EINI_NEW(w->scratch, int, p->cap);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  int n = eini_pre_number(p, at, &nfree);
  if (p->none) n = nfree;
  EINI_TRY(eini_draft(w, &f, out, n, nfree, (int)b->n));
  for (int x = 0; x < p->n; x++) {
    if (at[x] < 0 || at[x] >= n) continue;
    f.index[at[x]].extent = p->extent[x];
    f.index[at[x]].name = p->name[x];
  }
  for (int r = 0; r < p->nout; r++) {
    const int64_t *row = p->coef + (int64_t)(p->nold + r) * p->cap;
    f.out_map.offset[r] = p->offset[p->nold + r];
    for (int x = 0; x < p->n; x++)
      if (row[x] != 0) EINI_TRY(eini_map_set(w->scratch, &f.out_map, r, at[x], row[x]));
  }
  if (p->none) return eini_draft_fill(w, &f, 0);
  for (int k = 0; k < b->n; k++) {
    const eini_map *m = &b->proj[k];
    f.operand[k] = b->operand[k];
    if (q->tensor[k] < 0) continue;
    EINI_TRY(eini_draft_operand(w, &f, k, q->tensor[k]));
    for (int r = 0; r < m->rows; r++) {
      int64_t off = eini_pre_form(p, m, r, c);
      f.proj[k].offset[r] = off + q->low[k][r];
      for (int x = 0; x < p->n; x++)
        if (c[x] != 0) EINI_TRY(eini_map_set(w->scratch, &f.proj[k], r, at[x], c[x]));
    }
  }
  int x = eini_back_nodes(b, p, q, at, root, &f);
  if (ask) x = eini_back_where(b, p, at, x, &f);
  return x < 0 ? eini_grad_failed(w) : eini_draft_split(w, &f, x);
}

// ---- zeros where a one-to-one coordinate leaves elements out ----

// One coordinate: base + sum of step[l]*i_l, the least step first; span: the largest sum below l.
typedef struct eini_comb {
  int n, *index;
  int64_t base, *step, *span;
} eini_comb;

static ein_status eini_comb_of(eini_grad *w, const eini_preimage *p, int r, eini_comb *u) {
  const int64_t *c = p->coef + (int64_t)(p->nold + r) * p->cap;
  int64_t above = 0, span = 0;
  int equal;
  u->n = 0;
  u->base = p->offset[p->nold + r];
  u->index = EINI_NEW(w->scratch, int, p->n);
  u->step = EINI_NEW(w->scratch, int64_t, p->n);
  u->span = EINI_NEW(w->scratch, int64_t, p->n + 1);
  if (u->index == NULL || u->step == NULL || u->span == NULL) return EIN_ERR_NO_MEMORY;
  for (int x; (x = eini_pre_next(p, c, above, &equal)) >= 0; u->n++) {
    u->index[u->n] = x;
    u->step[u->n] = above = eini_abs64(c[x]);
    if (c[x] < 0) u->base += c[x] * (p->extent[x] - 1);
    span += above * (p->extent[x] - 1);
    u->span[u->n + 1] = span;
  }
  return EIN_OK;
}

// A piece of zeros: in coordinate r `count` elements from `start` on, repeated over step `level`
// but its last and over those above it; combs before r, everything after it.
static ein_status eini_back_gap(eini_grad *w, const eini_preimage *p, const eini_comb *comb,
                                int out, int r, int level, int64_t start, int64_t count) {
  const eini_tensor *t = &w->g->tensor[out];
  int n = 0, most = p->n + t->rank, rank = t->rank;
  int64_t *extent = EINI_NEW(w->scratch, int64_t, most + 1);
  int64_t *step = EINI_NEW(w->scratch, int64_t, most + 1);
  int *row = EINI_NEW(w->scratch, int, most + 1);
  eini_stmt f;
  if (extent == NULL || step == NULL || row == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < rank; k++) {
    const eini_comb *u = &comb[k];
    int whole = k == r || k > r || !p->direct[k];
    if (whole) {
      extent[n] = k == r ? count : w->g->tensor[out].shape[k];
      step[n] = 1;
      row[n++] = k;
    }
    for (int l = k == r ? level : whole ? u->n : 0; l < u->n; l++) {
      extent[n] = p->extent[u->index[l]] - (k == r && l == level);
      step[n] = u->step[l];
      row[n++] = k;
    }
  }
  for (int i = 0; i < n; i++)
    if (extent[i] <= 0) return EIN_OK;
  EINI_TRY(eini_draft(w, &f, out, n, n, 0));
  for (int i = 0; i < n; i++) {
    EINI_TRY(eini_draft_index(w, &f, i, extent[i]));
    EINI_TRY(eini_map_set(w->scratch, &f.out_map, row[i], i, step[i]));
  }
  for (int k = 0; k < rank; k++)
    f.out_map.offset[k] = k == r ? start : k < r && p->direct[k] ? comb[k].base : 0;
  return eini_draft_fill(w, &f, 0);
}

static ein_status eini_back_zeros(eini_grad *w, const eini_preimage *p, int out) {
  eini_comb *comb = EINI_NEW(w->scratch, eini_comb, p->nout);
  if (comb == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < p->nout; r++)
    if (p->direct[r]) EINI_TRY(eini_comb_of(w, p, r, &comb[r]));
  for (int r = 0; r < p->nout; r++) {
    eini_comb *u = &comb[r];
    if (!p->direct[r]) continue;
    int64_t end = u->base + u->span[u->n] + 1;
    EINI_TRY(eini_back_gap(w, p, comb, out, r, u->n, 0, u->base));
    for (int l = 0; l < u->n; l++)
      EINI_TRY(eini_back_gap(w, p, comb, out, r, l, u->base + u->span[l] + 1,
                             u->step[l] - u->span[l] - 1));
    EINI_TRY(eini_back_gap(w, p, comb, out, r, u->n, end, w->g->tensor[out].shape[r] - end));
  }
  return EIN_OK;
}

// Names for new indices, one per coordinate.
static ein_status eini_pre_names(eini_grad *w, int n, const char ***names) {
  *names = EINI_NEW(w->scratch, const char *, n);
  for (int r = 0; *names != NULL && r < n; r++) {
    char name[24];
    int len = snprintf(name, sizeof name, "c%d.%lld", r, (long long)w->g->ntensor);
    if (((*names)[r] = eini_strndup(&w->g->arena, name, len)) == NULL) return EIN_ERR_NO_MEMORY;
  }
  return *names == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Is what node root sends to operand k a tensor that is there, seen from the operand's axes, each
// of them an index? Then it need not be made.
static int eini_back_shares(const eini_back *b, int k, int root, eini_grad_part *share) {
  const eini_grad *w = b->w;
  const eini_node *v = &b->d.e.node[root];
  const eini_tensor *to = &w->g->tensor[b->s.operand[k]], *from;
  const eini_map *m = &b->proj[k], *by;
  if (v->op != EIN_OP_OPERAND || m->rows != m->cols) return 0;
  for (int r = 0; r < m->rows; r++) {
    if (eini_plain_row(m, r) != r || to->shape[r] != b->s.index[r].extent) return 0;
  }
  by = &b->proj[v->arg[0]];
  from = &w->g->tensor[b->operand[v->arg[0]]];
  int same = eini_map_equal(by, m) &&
             from->dtype == ein_dtype_compute(to->dtype);
  for (int r = 0; same && r < m->rows; r++) same = from->shape[r] == to->shape[r];
  share->tensor = b->operand[v->arg[0]];
  share->map = same ? NULL : by;
  return share->shared = 1;
}

static ein_status eini_back_push(eini_back *b, int64_t *n, int id) {
  int *more = (int *)eini_grow(b->w->scratch, b->stack, *n, &b->capstack, sizeof *more);
  if (more == NULL) return EIN_ERR_NO_MEMORY;
  b->stack = more;
  more[(*n)++] = id;
  return EIN_OK;
}

// Copies the nodes below root, each after those it reads.
static ein_status eini_back_gather(eini_back *b, int root, eini_expr *to) {
  const eini_expr *e = &b->d.e;
  int64_t n = 0;
  EINI_TRY(eini_back_push(b, &n, root));
  while (n > 0) {
    int id = b->stack[n - 1];
    if (b->mark[id] != 0) n--;  // met a second time, after what it reads; or on another way
    if (b->mark[id] == 1) {
      b->map[id] = eini_node_copy(b->w->scratch, e, id, b->map, to);
      if (b->map[id] < 0) return EIN_ERR_NO_MEMORY;
      b->from[b->map[id]] = id;
      b->mark[id] = 2;
    }
    if (b->mark[id] != 0) continue;
    b->mark[id] = 1;
    for (int i = eini_node_args(&e->node[id]) - 1; i >= 0; i--)
      EINI_TRY(eini_back_push(b, &n, eini_node_arg(e, &e->node[id], i)));
  }
  for (int64_t i = 0; i < to->n; i++) b->mark[b->from[i]] = 0;
  return EIN_OK;
}

// The operands that a part reads, once each and in their order.
static ein_status eini_back_pick(const eini_back *b, eini_back *part) {
  part->operand = EINI_NEW(b->w->scratch, int, part->d.e.n);
  part->proj = EINI_NEW(b->w->scratch, eini_map, part->d.e.n);
  if (part->operand == NULL || part->proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < part->d.e.n; i++) {
    const eini_node *v = &part->d.e.node[i];
    int64_t to = part->n;
    if (v->op != EIN_OP_OPERAND) continue;
    while (to > 0 && part->operand[to - 1] > v->arg[0]) to--;
    if (to > 0 && part->operand[to - 1] == v->arg[0]) continue;
    memmove(part->operand + to + 1, part->operand + to,
            (size_t)(part->n++ - to) * sizeof *part->operand);
    part->operand[to] = v->arg[0];
  }
  for (int64_t k = 0; k < part->n; k++) {
    int old = part->operand[k];
    b->used[old] = (int)k;
    part->operand[k] = b->operand[old];
    part->proj[k] = b->proj[old];
  }
  for (int64_t i = 0; i < part->d.e.n; i++) {
    eini_node *v = &part->d.e.node[i];
    if (v->op == EIN_OP_OPERAND) v->arg[0] = b->used[v->arg[0]];
  }
  return EIN_OK;
}

// What node root needs of a statement's cotangents, and no more: what is sent to one of many
// operands must not cost more because of the others. *at: the root in it.
static ein_status eini_back_part(eini_back *b, int root, eini_back *part, int *at) {
  int64_t need = eini_max64(b->d.e.n, b->n);
  if (b->room < need) {
    b->mark = EINI_NEW(b->w->scratch, int, 8 * need);
    if (b->mark == NULL) return EIN_ERR_NO_MEMORY;
    b->room = 2 * need;
    b->map = b->mark + b->room;
    b->from = b->map + b->room;
    b->used = b->from + b->room;
  }
  memset(part, 0, sizeof *part);
  part->w = b->w;
  part->s = b->s;
  EINI_TRY(eini_back_gather(b, root, &part->d.e));
  *at = b->map[root];
  return eini_back_pick(b, part);
}

// A new tensor that is what node root, over all indices of the statement, sends to operand k:
// element c is the sum of root over all index values at which operand k is read at c.
static ein_status eini_back_send(eini_back *b, int k, int root) {
  eini_grad *w = b->w;
  int to = b->s.operand[k], rank = w->g->tensor[to].rank, out, ask;
  const int64_t *shape = w->g->tensor[to].shape;
  const char **names;
  eini_preimage p;
  eini_pads q;
  eini_back part;
  eini_grad_part *share = EINI_NEW(w->scratch, eini_grad_part, 1);
  if (share == NULL) return EIN_ERR_NO_MEMORY;
  share->next = w->share[to];
  w->share[to] = share;
  if (eini_back_shares(b, k, root, share)) return EIN_OK;
  EINI_TRY(eini_pre_new(&p, w->scratch, b->s.nindex, rank));
  int64_t *c = EINI_NEW(w->scratch, int64_t, p.cap);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_pre_names(w, rank, &names));
  EINI_TRY(eini_back_part(b, root, &part, &root));
  EINI_TRY(eini_pads_new(&part, root, &q));
  for (int64_t i = 0; i == 0 || i < p.pieces; i++) {
    if (eini_pre_build(&p, &b->s, &b->proj[k], shape, names, i, c) != EIN_OK)
      return eini_grad_full(w);
    if (!p.none && !p.empty) EINI_TRY(eini_pads_widen(&part, &q, &p, c));
  }
  ask = !eini_back_vanishes(&part, &q, &p, root);
  EINI_TRY(eini_pads_make(&part, &q));
  EINI_TRY(eini_grad_tensor(w, to, ein_dtype_compute(w->g->tensor[to].dtype), rank, shape, &out));
  for (int64_t i = 0; i == 0 || i < p.pieces; i++) {
    if (eini_pre_build(&p, &b->s, &b->proj[k], shape, names, i, c) != EIN_OK)
      return eini_grad_full(w);
    if (!p.empty) EINI_TRY(eini_back_piece(&part, &p, &q, root, out, ask, c));
  }
  share->tensor = out;
  return eini_back_zeros(w, &p, out);
}
