// ================================================================================================
// >>edges  edge rules
// Turns accesses that leave their tensor into accesses of padded tensors, which are made of pieces
// (GRAMMAR rule 6).
// ================================================================================================

typedef struct eini_padding {  // what an edge rule makes of a tensor
  eini_edge edge;
  ein_dtype read, dtype;   // the tensor is read as, if not EIN_NONE; and what the rule gives
  int64_t pos;
} eini_padding;

typedef struct eini_pad {  // one axis of one tensor being padded
  ein_graph *g;
  eini_diag *diag;
  const eini_padding *by;
  int from, to, axis;
} eini_pad;

// A node that means the edge constant, -1 when out of memory.
static int eini_fill_node(ein_graph *g, eini_expr *e, const eini_syn *c) {
  if (c->kind == EINI_S_BOOL) return eini_expr_bool(&g->arena, e, c->pos, (int)c->ival);
  return c->exact ? eini_expr_int(&g->arena, e, c->pos, c->ival)
                  : eini_expr_real(&g->arena, e, c->pos, c->re);
}

static int eini_pad_cast(const eini_pad *w, eini_stmt *s, int id, ein_dtype t) {
  if (id < 0 || t == EIN_NONE) return id;
  id = eini_expr_add(&w->g->arena, &s->expr, EIN_OP_CAST, w->by->pos, id, 0, 0);
  if (id >= 0) s->expr.node[id].dtype = (unsigned char)t;
  return id;
}

// to[.., start + apart*m + j, ..] = from[.., at + step*j, ..] for j < count, m < times; step 0 of a
// constant: that. All periods of a rule are one statement.
static ein_status eini_pad_piece(const eini_pad *w, int64_t start, int64_t count, int64_t at,
                                 int64_t step, int64_t times, int64_t apart) {
  ein_graph *g = w->g;
  int rank = g->tensor[w->to].rank, many = times > 1, n = rank + many, id;
  int fills = w->by->edge.fill != NULL && step == 0, axis = w->axis;
  eini_stmt *s;
  EINI_TRY(eini_graph_add_stmt(g, w->to, n, !fills, &w->from, &s));
  s->pos = w->by->pos;
  for (int i = 0; i < n; i++) {  // m stands before j
    char name[16];
    int period = many && i == axis, r = i - (many && i > axis);
    int len = snprintf(name, sizeof name, period ? "m" : "i%d", r);
    if ((s->index[i].name = eini_strndup(&g->arena, name, len)) == NULL) return EIN_ERR_NO_MEMORY;
    s->index[i].extent = period ? times : r == axis ? count : g->tensor[w->to].shape[r];
    EINI_TRY(eini_map_set(&g->arena, &s->out_map, r, i, period ? apart : 1));
    if (!fills && !period)
      EINI_TRY(eini_map_set(&g->arena, &s->proj[0], r, i, r == axis ? step : 1));
  }
  s->out_map.offset[axis] = start;
  if (fills) {
    id = eini_pad_cast(w, s, eini_fill_node(g, &s->expr, w->by->edge.fill), w->by->dtype);
  } else {
    s->proj[0].offset[axis] = at;
    id = eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, w->by->pos, 0, 0, 0);
    id = eini_pad_cast(w, s, id, w->by->read);
  }
  return id < 0 ? EIN_ERR_NO_MEMORY : eini_stmt_finish(g, s, w->diag);
}

// The elements [x, end) outside an axis of extent n, low of which come before 0: whole periods, and
// what is left of one before and behind them. Reflecting, every other period runs backwards.
static ein_status eini_pad_side(const eini_pad *w, int64_t n, int64_t low, int64_t x, int64_t end) {
  int edge = w->by->edge.kind, reflect = edge == EINI_EDGE_REFLECT;
  if (x == end) return EIN_OK;
  if (edge == EINI_EDGE_CONST || edge == EINI_EDGE_CLAMP || n == 1)
    return eini_pad_piece(w, x + low, end - x, x < 0 ? 0 : n - 1, 0, 1, 0);
  int64_t period = n - reflect;
  while (x < end) {
    int64_t m = eini_floor_div(x, period), at = x - m * period;
    int64_t take = eini_min64(period - at, end - x), whole = at == 0 ? (end - x) / period : 0;
    int back = reflect && m % 2 != 0;
    for (int odd = 0; odd < 1 + reflect && odd < whole; odd++) {  // of whole periods, one in 1 or 2
      back = reflect && (m + odd) % 2 != 0;
      EINI_TRY(eini_pad_piece(w, x + low + odd * period, period, back ? n - 1 : 0, back ? -1 : 1,
                              reflect ? (whole - odd + 1) / 2 : whole, (1 + reflect) * period));
    }
    if (whole == 0)
      EINI_TRY(eini_pad_piece(w, x + low, take, back ? n - 1 - at : at, back ? -1 : 1, 1, 0));
    x += whole > 0 ? whole * period : take;
  }
  return EIN_OK;
}

// A new tensor: *tensor with low and high elements added along one axis.
static ein_status eini_pad_axis(ein_graph *g, eini_diag *diag, int *tensor, int axis,
                                const eini_padding *by, int64_t low, int64_t high,
                                const char *name) {
  const eini_tensor *t = &g->tensor[*tensor];
  eini_pad w = {g, diag, by, *tensor, 0, axis};
  int64_t n = t->shape[axis], end;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, t->rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  if (n == 0 && by->edge.kind != EINI_EDGE_CONST) {
    return eini_fail(diag, EIN_ERR_BOUNDS, by->pos, 1, "use a constant: X[i-1 | 0]",
                     "axis %d of '%s' is empty: there is nothing to repeat", axis, t->name);
  }
  memcpy(shape, t->shape, (size_t)t->rank * sizeof *shape);
  if (eini_add_overflow(n, high, &end) || eini_add_overflow(end, low, &shape[axis])) {
    return eini_fail(diag, EIN_ERR_TOO_LARGE, by->pos, 1, NULL, "the padded '%s' is too large",
                     t->name);
  }
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, by->dtype, t->rank,
                                 shape, &w.to));
  EINI_TRY(eini_pad_side(&w, n, low, -low, 0));
  if (n > 0) EINI_TRY(eini_pad_piece(&w, low, n, 0, 1, 1, 0));
  EINI_TRY(eini_pad_side(&w, n, low, n, end));
  *tensor = w.to;
  return EIN_OK;
}
