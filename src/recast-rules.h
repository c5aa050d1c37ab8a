// ================================================================================================
// >>recast-rules  rules that split, take out, share and cut statements
// Takes a statement of a graph; gives others that make the same, or the reason why there are none.
// ================================================================================================

// ---- unfold: a fold of an expression becomes the expression, stored, and its fold ----

static ein_status eini_rule_unfold(eini_recast *x, int64_t i, int part) {
  const eini_stmt *s = &x->from->stmt[i];
  const ein_dtype t = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  int *all = EINI_NEW(x->scratch, int, s->nindex), tensor;
  eini_stmt f;
  eini_map map;
  (void)part;
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) all[c] = c;
  if (s->fold == EIN_FOLD_NONE) return eini_recast_no(x, "it has no fold");
  if (eini_join_plain(s)) return eini_recast_no(x, "it folds what is stored already");
  if (t != ein_dtype_compute(t)) return eini_recast_no(x, "no tensor keeps the values it folds");
  if (x->g == NULL) return EIN_OK;
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nindex, 0, NULL, &f));
  EINI_TRY(eini_recast_temp(x, s, s->nindex, all, &tensor, &map));
  f.out = tensor;
  f.out_map = map;
  f.fold = EIN_FOLD_NONE;
  f.rest = EIN_REST_ERROR;
  EINI_TRY(eini_recast_append(x, &f, (int)s->expr.n - 1));
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nfree, 1, NULL, &f));
  memset(&f.expr, 0, sizeof f.expr);
  f.noperand = 0;
  return eini_recast_append(x, &f, eini_recast_read(x, &f, tensor, &map));
}

// ---- outline: what fewer indices move is computed before ----

// Points over which a node moves, of those of the statement; kept: its indices.
static double eini_outline_points(const eini_stmt *s, unsigned char *dep, int node, int *kept,
                                  int *n) {
  double points = 1;
  *n = 0;
  for (int c = 0; c < s->nindex; c++) {
    eini_draft_depends(s, node, c, dep);
    if (!dep[node]) continue;
    kept[(*n)++] = c;
    points *= (double)s->index[c].extent;
  }
  return points;
}

static ein_status eini_outline_apply(eini_recast *x, const eini_stmt *s, int node, int n,
                                     const int *kept) {
  eini_arena *a = x->scratch;
  int *at = EINI_NEW(a, int, s->nindex), *to = EINI_NEW(a, int, s->expr.n), tensor;
  eini_node *body = EINI_NEW(a, eini_node, node + 1);
  eini_stmt f;
  eini_map map;
  if (at == NULL || to == NULL || body == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) at[c] = -1;
  for (int c = 0; c < n; c++) at[kept[c]] = c;
  EINI_TRY(eini_recast_temp(x, s, n, kept, &tensor, &map));
  EINI_TRY(eini_recast_draft(x, s, n, n, 0, at, &f));
  memcpy(body, s->expr.node, (size_t)(node + 1) * sizeof *body);
  for (int k = 0; k <= node; k++)
    if (body[k].op == EIN_OP_INDEX) body[k].arg[0] = at[body[k].arg[0]];
  f.expr.node = body;
  f.expr.n = f.expr.cap = node + 1;
  f.out = tensor;
  f.fold = EIN_FOLD_NONE;
  f.rest = EIN_REST_ERROR;
  EINI_TRY(eini_map_new(a, n, n, &f.out_map));
  EINI_TRY(eini_map_units(a, &f.out_map, 0, 0, n));
  EINI_TRY(eini_recast_append(x, &f, node));
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nfree, 1, NULL, &f));
  memset(&f.expr, 0, sizeof f.expr);
  const int read = eini_recast_read(x, &f, tensor, &map);
  if (read < 0) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->expr.n; k++) {
    to[k] = k == node ? read : eini_node_copy(a, &s->expr, k, to, &f.expr);
    if (to[k] < 0) return EIN_ERR_NO_MEMORY;
  }
  return eini_recast_append(x, &f, to[s->expr.n - 1]);
}

static ein_status eini_rule_outline(eini_recast *x, int64_t i, int node) {
  const eini_stmt *s = &x->from->stmt[i];
  const eini_node *v = &s->expr.node[node];
  int *kept = EINI_NEW(x->scratch, int, s->nindex), n, more, outside = 0, reads = 0;
  unsigned char *dep = EINI_NEW(x->scratch, unsigned char, s->expr.n);
  char *need = EINI_NEW(x->scratch, char, s->expr.n);
  if (kept == NULL || dep == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  if (node == s->expr.n - 1 || v->op <= EIN_OP_PARAM || v->op == EIN_OP_CAST ||
      v->op == EIN_OP_HASH || v->dtype != ein_dtype_compute((ein_dtype)v->dtype))
    return eini_recast_no(x, "nothing in it is worth a tensor");
  const double points = eini_outline_points(s, dep, node, kept, &n);
  if (!(points < eini_points(s, NULL, 0, s->nindex)))
    return eini_recast_no(x, "nothing in it moves over fewer indices than it has");
  eini_mark_needed(&s->expr, node, need);
  for (int k = 0; k <= node; k++)
    reads += need[k] && s->expr.node[k].op <= EIN_OP_INDEX && s->expr.node[k].op != EIN_OP_CONST;
  int *all = EINI_NEW(x->scratch, int, s->nindex);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = node + 1; k < s->expr.n && !outside; k++)
    for (int q = 0; q < eini_node_args(&s->expr.node[k]); q++)
      outside |= eini_node_arg(&s->expr, &s->expr.node[k], q) == node &&
                 eini_outline_points(s, dep, k, all, &more) > points;
  if (!outside || reads == 0)
    return eini_recast_no(x, "nothing in it moves over fewer indices than it has");
  return x->g == NULL ? EIN_OK : eini_outline_apply(x, s, node, n, kept);
}

// ---- hoist: factors that a sum does not depend on stand outside ----

static ein_status eini_rule_hoist(eini_recast *x, int64_t i, int part) {
  const eini_stmt *s = &x->from->stmt[i];
  const int root = (int)s->expr.n - 1;
  eini_grad_factors u;
  eini_stmt f;
  unsigned char *dep = EINI_NEW(x->scratch, unsigned char, s->expr.n);
  (void)part;
  memset(&u, 0, sizeof u);
  if (dep == NULL) return EIN_ERR_NO_MEMORY;
  if (s->fold != EIN_FOLD_SUM) return eini_recast_no(x, "it is no sum");
  if (s->rest != EIN_REST_ERROR) return eini_recast_no(x, "it leaves elements out");
  if (s->type != s->expr.node[root].dtype) return eini_recast_no(x, "its sum changes the dtype");
  if (eini_stmt_empty(s, 0, s->nindex)) return eini_recast_no(x, "its index space is empty");
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nfree, 1, NULL, &f));
  eini_draft_depends(&f, root, -1, dep);
  EINI_TRY(eini_draft_factors(&x->w, &f, root, dep, &u));
  if (u.inside == u.n && !u.minus)
    return eini_recast_no(x, "all its factors depend on what is summed");
  return x->g == NULL ? EIN_OK : eini_draft_take_out(&x->w, &f, root, &u);
}

// ---- split: two factors of a product first ----

static ein_status eini_rule_split(eini_recast *x, int64_t i, int part) {
  const eini_stmt *s = &x->from->stmt[i];
  ein_graph room, *g = x->g != NULL ? x->g : &room;
  int b = 1, n = 0, *kept = EINI_NEW(x->scratch, int, s->nindex);
  eini_split sp;
  eini_product q;
  eini_member out, t;
  eini_stmt copy = *s;
  while (b * (b + 1) / 2 <= part) b++;
  const int a = part - b * (b - 1) / 2;
  if (kept == NULL) return EIN_ERR_NO_MEMORY;
  memset(&room, 0, sizeof room);
  room.arena = *x->scratch;
  room.nmonoid = x->from->nmonoid;
  room.monoid = x->from->monoid;
  memset(&sp, 0, sizeof sp);
  sp.g = g;
  sp.diag = x->w.diag;
  copy.expr.cap = copy.expr.n;
  copy.expr.caplist = copy.expr.nlist;
  const ein_status st = eini_split_factors(&sp, &copy, &q);
  if (x->g == NULL) *x->scratch = room.arena;
  if (st != EIN_OK) return st;
  if (q.n < 3 || q.m > 0)
    return eini_recast_no(x, "it is no fold of a product of three factors or more");
  if (b >= q.n) return eini_recast_no(x, "it has no such pair of factors");
  if (x->g == NULL) return EIN_OK;
  for (int c = 0; c < s->nindex; c++) {
    int mine = 0;
    for (int k = 0; k < 2; k++) {
      const eini_member *v = &q.val[k ? b : a];
      for (int l = 0; l < v->nlabel; l++) mine += v->label[l] == c;
    }
    if (mine > 0 && (c < s->nfree || q.uses[c] > mine)) kept[n++] = c;
  }
  const eini_member *two[2] = {&q.val[a], &q.val[b]};
  int *freely = EINI_NEW(x->scratch, int, s->nfree), m = 1;
  const eini_member **rest = EINI_NEW(x->scratch, const eini_member *, q.n);
  if (freely == NULL || rest == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nfree; c++) freely[c] = c;
  EINI_TRY(eini_member_new(&sp, s->out, &s->out_map, s->nfree, freely, &out));
  EINI_TRY(eini_temp_member(&sp, n, kept, &t));
  EINI_TRY(eini_emit_stmt(&sp, &t, 2, two, EIN_REST_ERROR));
  rest[0] = &t;
  for (int k = 0; k < q.n; k++)
    if (k != a && k != b) rest[m++] = &q.val[k];
  return eini_emit_stmt(&sp, &out, m, rest, s->rest);
}

// ---- reuse: one statement instead of two that are equal ----

static ein_status eini_rule_reuse(eini_recast *x, int64_t i, int part) {
  const ein_graph *g = x->from;
  const eini_stmt *s = &g->stmt[i];
  eini_forms forms;
  eini_match m;
  ein_status st = EIN_OK;
  (void)part;
  if (g->tensor[s->out].nstmt > 1) return eini_recast_no(x, "it is one piece of several");
  if (g->tensor[s->out].role == EIN_ROLE_OUTPUT)
    return eini_recast_no(x, "what it makes is an output");
  eini_forms_init(&forms, x->scratch, 0);
  m.first = i;
  for (int64_t k = 0; k <= i && st == EIN_OK; k++) {
    const eini_stmt *p = &g->stmt[k];
    if (p->nindex != s->nindex || p->noperand != s->noperand || p->fold != s->fold ||
        g->tensor[p->out].nstmt > 1 || g->tensor[p->out].partial != g->tensor[s->out].partial)
      continue;
    int64_t *read = EINI_NEW(x->scratch, int64_t, (int64_t)s->noperand + 1);
    if (read == NULL) st = EIN_ERR_NO_MEMORY;
    for (int o = 0; st == EIN_OK && o < p->noperand; o++) read[o] = p->operand[o] + 1;
    const eini_besides b = {EINI_SAME_VALUES | EINI_SAME_EXTENTS | EINI_SAME_ALONE | EINI_SAME_AXES,
                            0, 1, NULL, read};
    if (st == EIN_OK) st = eini_forms_find(&forms, g, p, &b, k, &m);
  }
  eini_forms_free(&forms);
  if (st != EIN_OK) return st;
  if (m.first == i) return eini_recast_no(x, "no statement before it computes the same");
  if (x->g == NULL) return EIN_OK;
  x->alias = EINI_NEW(x->scratch, int, g->ntensor);
  if (x->alias == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) x->alias[t] = (int)t;
  x->alias[s->out] = g->stmt[m.first].out;
  return EIN_OK;
}

// ---- shard and merge: a statement in two pieces, and back ----

// Where an index is cut: where a piece of what is read ends, else in the middle.
static int64_t eini_shard_border(const ein_graph *g, const eini_stmt *s, int c) {
  const int64_t n = s->index[c].extent;
  for (int k = 0; k < s->noperand; k++)
    for (int r = 0; r < s->proj[k].rows; r++) {
      int64_t by;
      if (eini_row_index(&s->proj[k], r, &by) != c || by != 1) continue;
      for (int64_t i = 0; i < g->nstmt; i++) {
        const int64_t border = g->stmt[i].out_map.rows > r
                                   ? g->stmt[i].out_map.offset[r] - s->proj[k].offset[r] : 0;
        if (g->stmt[i].out == s->operand[k] && border > 0 && border < n) return border;
      }
    }
  return (n + 1) / 2;
}

// Values [lo, hi) of index c of the statement, as a piece.
static ein_status eini_shard_piece(eini_recast *x, const eini_stmt *s, int c, int64_t lo,
                                   int64_t hi) {
  eini_arena *a = x->scratch;
  int *to = EINI_NEW(a, int, s->expr.n);
  eini_map shift;
  eini_stmt f;
  if (to == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nfree, 0, NULL, &f));
  EINI_TRY(eini_map_new(a, s->nindex, s->nindex, &shift));
  EINI_TRY(eini_map_units(a, &shift, 0, 0, s->nindex));
  shift.offset[c] = lo;
  f.index[c].extent = hi - lo;
  EINI_TRY(eini_map_through(a, &s->out_map, &shift, &f.out_map));
  for (int k = 0; k < s->noperand; k++)
    EINI_TRY(eini_map_through(a, &s->proj[k], &shift, &f.proj[k]));
  memset(&f.expr, 0, sizeof f.expr);
  for (int i = 0; i < s->expr.n; i++) {
    const eini_node *v = &s->expr.node[i];
    to[i] = v->op == EIN_OP_INDEX ? eini_recast_row(x, &f.expr, &shift, v->arg[0])
                                  : eini_node_copy(a, &s->expr, i, to, &f.expr);
    if (to[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  return eini_recast_append(x, &f, to[s->expr.n - 1]);
}

static ein_status eini_rule_shard(eini_recast *x, int64_t i, int c) {
  const eini_stmt *s = &x->from->stmt[i];
  if (c >= s->nfree) return eini_recast_no(x, "it has no free index");
  if (s->index[c].extent < 2) return eini_recast_no(x, "no free index has two values");
  if (s->rest != EIN_REST_ERROR) return eini_recast_no(x, "it leaves elements out");
  if (eini_stmt_empty(s, 0, s->nindex)) return eini_recast_no(x, "its index space is empty");
  if (x->g == NULL) return EIN_OK;
  const int64_t border = eini_shard_border(x->from, s, c);
  EINI_TRY(eini_shard_piece(x, s, c, 0, border));
  return eini_shard_piece(x, s, c, border, s->index[c].extent);
}

// Are two maps one but for b being further along index c by n?
static int eini_merge_map(const eini_map *a, const eini_map *b, int c, int64_t n) {
  if (!eini_map_alike(a, b)) return 0;
  for (int r = 0; r < a->rows; r++) {
    int64_t by;
    if (eini_mul_overflow(eini_map_coef(a, r, c), n, &by) || b->offset[r] - a->offset[r] != by)
      return 0;
  }
  return 1;
}

static int eini_merge_expr(const eini_stmt *s, const eini_stmt *p, int c) {
  if (s->expr.n != p->expr.n || s->expr.nlist != p->expr.nlist) return 0;
  for (int i = 0; i < s->expr.n; i++) {
    eini_node a = s->expr.node[i], b = p->expr.node[i];
    a.pos = b.pos = -1;
    if (a.op != b.op || a.dtype != b.dtype || memcmp(a.arg, b.arg, sizeof a.arg) != 0 ||
        a.ival != b.ival || memcmp(&a.re, &b.re, sizeof a.re) != 0 ||
        memcmp(&a.im, &b.im, sizeof a.im) != 0 || (a.op == EIN_OP_INDEX && a.arg[0] == c)) return 0;
  }
  return s->expr.nlist == 0 ||
         memcmp(s->expr.list, p->expr.list, (size_t)s->expr.nlist * sizeof *s->expr.list) == 0;
}

// Does piece b continue piece a along index c?
static int eini_merge_along(const eini_stmt *a, const eini_stmt *b, int c) {
  if (a->nindex != b->nindex || a->nfree != b->nfree || a->noperand != b->noperand ||
      a->fold != b->fold || a->out != b->out || !eini_merge_expr(a, b, c) ||
      !eini_merge_map(&a->out_map, &b->out_map, c, a->index[c].extent)) return 0;
  for (int k = 0; k < a->nindex; k++)
    if (k != c && a->index[k].extent != b->index[k].extent) return 0;
  for (int k = 0; k < a->noperand; k++)
    if (a->operand[k] != b->operand[k] ||
        !eini_merge_map(&a->proj[k], &b->proj[k], c, a->index[c].extent)) return 0;
  return 1;
}

static ein_status eini_rule_merge(eini_recast *x, int64_t i, int part) {
  const ein_graph *g = x->from;
  const eini_stmt *s = &g->stmt[i];
  (void)part;
  if (g->tensor[s->out].nstmt < 2) return eini_recast_no(x, "its tensor has no other piece");
  for (int64_t k = 0; k < i; k++) {
    for (int c = 0; g->stmt[k].out == s->out && c < s->nfree; c++) {
      const int after = eini_merge_along(&g->stmt[k], s, c);
      if (!after && !eini_merge_along(s, &g->stmt[k], c)) continue;
      if (x->g == NULL) return EIN_OK;
      const eini_stmt *low = after ? &g->stmt[k] : s, *high = after ? s : &g->stmt[k];
      eini_stmt f;
      EINI_TRY(eini_recast_draft(x, low, low->nindex, low->nfree, 0, NULL, &f));
      f.index[c].extent += high->index[c].extent;
      x->skip = k;
      return eini_recast_append(x, &f, (int)f.expr.n - 1);
    }
  }
  return eini_recast_no(x, "no piece before it goes on where it ends");
}

// ---- prune: what nobody observes ----

static ein_status eini_rule_prune(eini_recast *x, int64_t tensor, int part) {
  const eini_tensor *t = &x->from->tensor[tensor];
  (void)part;
  return t->role == EIN_ROLE_TEMP && t->nstmt == 0 && t->line > 0
             ? EIN_OK : eini_recast_no(x, "what it makes is observed");
}
