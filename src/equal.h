// ================================================================================================
// >>equal  whether two programs compute the same, without data
// Takes two graphs; follows each access back to the inputs, region by region of its coordinates,
// and compares what stands there. Never wrong where it says yes: what is not understood is no.
// ================================================================================================

typedef struct eini_vpiece {
  eini_vrange *dom;        // of the coordinates in scope
  int64_t value;
  int64_t line;            // of the statement
} eini_vpiece;

typedef struct eini_vpieces {
  eini_vpiece *v;
  int64_t n, cap;
} eini_vpieces;

// Tensors of both graphs that are known to be equal, by name.
struct eini_vleaf {
  int64_t *name, n, cap;
};

typedef struct eini_vscope {  // a statement whose indices are affine forms of the coordinates
  const ein_graph *g;
  const eini_stmt *s;
  const eini_vrow *idx;
  const eini_vrange *dom;
  int n;
} eini_vscope;

static ein_status eini_vpieces_add(eini_proof *p, eini_vpieces *x, const eini_vrange *dom, int n,
                                   int64_t value, int64_t line) {
  eini_vpiece *v = (eini_vpiece *)eini_grow(&p->arena, x->v, x->n, &x->cap, sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  x->v = v;
  v += x->n++;
  v->value = value;
  v->line = line;
  v->dom = EINI_NEW(&p->arena, eini_vrange, n);
  if (v->dom == NULL) return EIN_ERR_NO_MEMORY;
  if (n > 0) memcpy(v->dom, dom, (size_t)n * sizeof *dom);
  return ++p->work > EINI_VALUE_WORK ? eini_proof_stuck(p, "it takes too long") : EIN_OK;
}

// Coordinates that both have; 0: none.
static int eini_domain_meet(const eini_vrange *a, const eini_vrange *b, int n, eini_vrange *to) {
  for (int v = 0; v < n; v++) {
    to[v] = eini_vrange_meet(&a[v], &b[v]);
    if (to[v].n == 0) return 0;
  }
  return 1;
}

static double eini_domain_points(const eini_vrange *d, int n) {
  double points = 1;
  for (int v = 0; v < n; v++) points *= (double)d[v].n;
  return points;
}

// ---- where a row meets a piece ----

// The numerator of a row: at the first coordinates, and what one more step of each adds.
static ein_status eini_row_steps(eini_proof *p, const eini_vrow *a, const eini_vrange *dom, int n,
                                 int64_t *first, int64_t *step) {
  double size = fabs((double)a->off) + (double)a->den;
  *first = a->off;
  for (int v = 0; v < n; v++) {
    const double c = fabs((double)a->c[v]);
    size += c * (fabs((double)dom[v].lo) + (double)dom[v].step * (double)dom[v].n);
    if (size > 1e15) return eini_proof_stuck(p, "its coordinates are too large");
    *first += a->c[v] * dom[v].lo;
    step[v] = dom[v].n > 1 ? a->c[v] * dom[v].step : 0;
  }
  return EIN_OK;
}

// Keeps of the coordinates those for which a row is whole. *in: whether there are any.
static ein_status eini_row_whole(eini_proof *p, const eini_vrow *a, eini_vrange *dom, int n,
                                 int *in) {
  int64_t first, step[EINI_VALUE_VARS], t = 0;
  int u = -1;
  EINI_TRY(eini_row_steps(p, a, dom, n, &first, step));
  for (int v = 0; v < n; v++) {
    if (step[v] % a->den == 0) continue;
    if (u >= 0) return eini_proof_stuck(p, "several indices say which piece is meant");
    u = v;
  }
  if (u < 0) {
    *in = first % a->den == 0;
    return EIN_OK;
  }
  const int64_t period = a->den / eini_gcd64(a->den, step[u] % a->den);
  if (period > 65536) return eini_proof_stuck(p, "its strides are too large");
  while (t < period && (first + step[u] * t) % a->den != 0) t++;
  *in = t < period && t < dom[u].n;
  if (!*in) return EIN_OK;
  dom[u].lo += t * dom[u].step;
  dom[u].n = (dom[u].n - t - 1) / period + 1;
  dom[u].step *= period;
  return EIN_OK;
}

// Keeps those for which it is at least lo and less than hi.
static ein_status eini_row_within(eini_proof *p, const eini_vrow *a, int64_t lo, int64_t hi,
                                  eini_vrange *dom, int n, int *in) {
  int64_t first, step[EINI_VALUE_VARS], least, most;
  int u = -1, several = 0;
  EINI_TRY(eini_row_whole(p, a, dom, n, in));
  if (!*in) return EIN_OK;
  EINI_TRY(eini_row_steps(p, a, dom, n, &first, step));
  least = most = first /= a->den;
  for (int v = 0; v < n; v++) {
    step[v] /= a->den;
    if (step[v] == 0) continue;
    several = u >= 0;
    u = v;
    *(step[v] < 0 ? &least : &most) += step[v] * (dom[v].n - 1);
  }
  *in = least < hi && most >= lo;
  if (!*in || (least >= lo && most < hi)) return EIN_OK;
  if (several) return eini_proof_stuck(p, "several indices cross the edge of a piece");
  int64_t from, to;  // of t, both inside
  if (step[u] > 0) {
    from = -eini_floor_div(first - lo, step[u]);
    to = eini_floor_div(hi - 1 - first, step[u]);
  } else {
    from = -eini_floor_div(hi - 1 - first, -step[u]);
    to = eini_floor_div(first - lo, -step[u]);
  }
  from = eini_max64(from, 0);
  to = eini_min64(to, dom[u].n - 1);
  *in = from <= to;
  dom[u].lo += from * dom[u].step;
  dom[u].n = to - from + 1;
  return EIN_OK;
}

// Keeps the coordinates whose elements a statement writes, and gives its free indices there.
static ein_status eini_stmt_within(eini_proof *p, const eini_stmt *s, const eini_vrow *row,
                                   eini_vrange *dom, int n, eini_vrow *idx, int *in) {
  int found[EINI_VALUE_VARS] = {0};
  *in = 1;
  if (s->nfree > EINI_VALUE_VARS) return eini_proof_stuck(p, "it has too many indices");
  for (int r = 0; r < s->out_map.rows && *in; r++) {
    int64_t coef, off = s->out_map.offset[r];
    const int i = eini_row_index(&s->out_map, r, &coef);
    if (i < 0 && eini_map_terms(&s->out_map, r) > 0)
      return eini_proof_stuck(p, "a coordinate of several indices is written");
    if (i < 0) {
      EINI_TRY(eini_row_within(p, &row[r], off, off + 1, dom, n, in));
      continue;
    }
    eini_vrow one;
    eini_vrow_of(&one, -1);
    one.off = 1;
    idx[i] = row[r];
    if (off != 0) EINI_TRY(eini_vrow_add(p, &idx[i], &one, -off));
    EINI_TRY(eini_vrow_over(p, &idx[i], coef));
    EINI_TRY(eini_row_within(p, &idx[i], 0, s->index[i].extent, dom, n, in));
    if (found[i]++) return eini_proof_stuck(p, "a diagonal is written");
  }
  for (int i = 0; i < s->nfree && *in; i++)
    if (!found[i]) return eini_proof_stuck(p, "an index of the result is nowhere in it");
  return EIN_OK;
}

// ---- expressions ----

static ein_status eini_value_access(eini_proof *p, const ein_graph *g, int t,
                                    const eini_vrow *row, const eini_vrange *dom, int n,
                                    eini_vpieces *out);

static ein_status eini_value_leaf(eini_proof *p, const int64_t *head, int nhead,
                                  const eini_vrow *row, int nrow, int64_t *value) {
  eini_vkey k;
  memset(&k, 0, sizeof k);
  EINI_TRY(eini_vkey_words(p, &k, head, nhead));
  for (int r = 0; r < nrow; r++) EINI_TRY(eini_vrow_say(p, &row[r], &k));
  return eini_value_of(p, &k, value);
}

// Does a dtype that is computed in have this number as it is?
static int eini_value_whole(ein_dtype t, int64_t x) {
  const int64_t most = (int64_t)1 << (t == EIN_F64 ? 53 : 24);
  return (t == EIN_F64 || t == EIN_F32) && x <= most && x >= -most;
}

static ein_status eini_value_number(eini_proof *p, int64_t dtype, int64_t x, int64_t *value) {
  int64_t head[5] = {EINI_V_CONST, dtype, 0, 0, 0};
  const double re = (double)x;
  memcpy(&head[3], &re, sizeof re);
  return eini_value_leaf(p, head, 5, NULL, 0, value);
}

// A position as an affine form. Returns 0: the value is no position.
static int eini_value_row(const eini_proof *p, int64_t value, eini_vrow *row) {
  const int64_t from = value > 0 ? p->keys.end[value - 1] : 0;
  const eini_vkey k = {p->keys.word, 0, 0};
  int64_t at = from + 2;
  if (k.w[from] != EINI_V_INDEX || k.w[from + 1] != EIN_I64) return 0;
  eini_vrow_read(&k, &at, row);
  return 1;
}

// Conditions that are decided: 0 or 1; -1: it is another value.
static int eini_value_truth(const eini_proof *p, int64_t value) {
  const int64_t *w = p->keys.word + (value > 0 ? p->keys.end[value - 1] : 0);
  return w[0] == EINI_V_CONST && w[1] == EIN_BOOL ? w[2] != 0 : -1;
}

static int64_t eini_value_dtype(const eini_proof *p, int64_t value) {
  return p->keys.word[(value > 0 ? p->keys.end[value - 1] : 0) + 1];
}

// Two positions are compared: regions of the coordinates where that is true, and where not.
static ein_status eini_value_compare(eini_proof *p, int op, const int64_t *arg,
                                     const eini_vrange *dom, int n, eini_vpieces *out, int *is) {
  static const unsigned char holds[][3] = {{1, 0, 0}, {1, 1, 0}, {0, 0, 1}, {0, 1, 1},
                                           {0, 1, 0}, {1, 0, 1}};  // less, equal, more
  static const int ops[] = {EIN_OP_LT, EIN_OP_LE, EIN_OP_GT, EIN_OP_GE, EIN_OP_EQ, EIN_OP_NE};
  const int64_t edge[4] = {-EINI_VALUE_FAR, 0, 1, EINI_VALUE_FAR};
  eini_vrange in[3][EINI_VALUE_VARS];
  eini_vrow a, b;
  double left = eini_domain_points(dom, n);
  int some[3], which = 0;
  *is = 0;
  while (which < 6 && ops[which] != op) which++;
  if (which == 6 || !eini_value_row(p, arg[0], &a) || !eini_value_row(p, arg[1], &b))
    return EIN_OK;
  EINI_TRY(eini_vrow_add(p, &a, &b, -1));
  if (a.den != 1) return EIN_OK;
  for (int k = 0; k < 3; k++) {
    if (n > 0) memcpy(in[k], dom, (size_t)n * sizeof *dom);
    const ein_status st = eini_row_within(p, &a, edge[k], edge[k + 1], in[k], n, &some[k]);
    if (st == EIN_ERR_UNSUPPORTED) return p->why = NULL, EIN_OK;
    if (st != EIN_OK) return st;
    if (some[k]) left -= eini_domain_points(in[k], n);
  }
  if (left > 0 || left < 0) return EIN_OK;
  for (int k = 0; k < 3; k++) {
    const int64_t head[5] = {EINI_V_CONST, EIN_BOOL, holds[which][k], 0, 0};
    int64_t value;
    if (!some[k]) continue;
    EINI_TRY(eini_value_leaf(p, head, 5, NULL, 0, &value));
    EINI_TRY(eini_vpieces_add(p, out, in[k], n, value, 0));
  }
  *is = 1;
  return EIN_OK;
}

// What decided conditions leave: a branch, the other condition, or one that is decided, too; and
// what conversions leave that change nothing.
static ein_status eini_value_decided(eini_proof *p, const eini_node *v, const int64_t *arg,
                                     int64_t *value, int *is) {
  const int both = v->op == EIN_OP_AND || v->op == EIN_OP_OR;
  *is = 0;
  const int cast = v->op == EIN_OP_CAST || v->op == EIN_OP_ROUNDTO;
  if (!both && !cast && v->op != EIN_OP_WHERE) return EIN_OK;
  for (int k = 0; k < 1 + both && !*is; k++) {
    const int truth = cast ? 1 : eini_value_truth(p, arg[k]);
    if (truth < 0) continue;
    if (!both) *value = arg[cast ? 0 : truth ? 1 : 2];
    else *value = truth == (v->op == EIN_OP_OR) ? arg[k] : arg[1 - k];
    *is = eini_value_dtype(p, *value) == v->dtype &&
          (!cast || ein_dtype_compute((ein_dtype)v->dtype) == (ein_dtype)v->dtype);
    eini_vrow row;
    if (!*is && eini_value_row(p, *value, &row) && eini_vrow_constant(&row) && row.den == 1 &&
        eini_value_whole((ein_dtype)v->dtype, row.off)) {
      EINI_TRY(eini_value_number(p, v->dtype, row.off, value));
      *is = 1;
    }
  }
  return EIN_OK;
}

// The fold that an operation is; EIN_FOLD_NONE: none.
static int eini_value_fold(int op) {
  switch (op) {
    case EIN_OP_ADD: case EIN_OP_SUB: return EIN_FOLD_SUM;
    case EIN_OP_MUL: case EIN_OP_SQUARE: return EIN_FOLD_PROD;
    case EIN_OP_MAX: return EIN_FOLD_MAX;
    case EIN_OP_MIN: return EIN_FOLD_MIN;
    case EIN_OP_AND: return EIN_FOLD_ALL;
    case EIN_OP_OR: return EIN_FOLD_ANY;
    default: return EIN_FOLD_NONE;
  }
}

// Sums of positions, and their products with whole numbers, are positions. *is: it was one.
static ein_status eini_value_position(eini_proof *p, const eini_node *v, const int64_t *arg, int n,
                                      int64_t *value, int *is) {
  const int64_t head[2] = {EINI_V_INDEX, EIN_I64};
  eini_vrow row[2];
  *is = 0;
  if (v->dtype != EIN_I64 || n > 2) return EIN_OK;
  for (int i = 0; i < n; i++)
    if (!eini_value_row(p, arg[i], &row[i])) return EIN_OK;
  const int times = v->op == EIN_OP_MUL;
  const int by = times && eini_vrow_constant(&row[0]) ? 0 : 1;
  if (v->op == EIN_OP_NEG) {
    row[1] = row[0];
    eini_vrow_of(&row[0], -1);
  } else if (v->op != EIN_OP_ADD && v->op != EIN_OP_SUB && !times) {
    return EIN_OK;
  }
  if (times && (!eini_vrow_constant(&row[by]) || row[by].den != 1)) return EIN_OK;
  if (times) {
    const int64_t factor = row[by].off;
    row[1] = row[1 - by];
    eini_vrow_of(&row[0], -1);
    EINI_TRY(eini_vrow_add(p, &row[0], &row[1], factor));
  } else {
    EINI_TRY(eini_vrow_add(p, &row[0], &row[1], v->op == EIN_OP_ADD ? 1 : -1));
  }
  *is = 1;
  return eini_value_leaf(p, head, 2, row, 1, value);
}

// An operation on values.
static ein_status eini_value_op(eini_proof *p, const eini_vscope *c, const eini_node *v,
                                const int64_t *arg, int n, int64_t *value) {
  const eini_vfold f = {v->dtype, eini_value_fold(v->op), 0};
  int64_t head[5] = {EINI_V_OP, v->dtype, v->op, 0, n};
  eini_vkey k;
  int is;
  memset(&k, 0, sizeof k);
  EINI_TRY(eini_value_position(p, v, arg, n, value, &is));
  if (!is) EINI_TRY(eini_value_decided(p, v, arg, value, &is));
  if (is) return EIN_OK;
  if (f.fold != EIN_FOLD_NONE) {
    eini_vparts q;
    memset(&q, 0, sizeof q);
    for (int i = 0; i < (v->op == EIN_OP_SQUARE ? 2 : n); i++) {
      eini_vpart x;
      x.n = 0;
      x.body = arg[v->op == EIN_OP_SQUARE ? 0 : i];
      if (v->op == EIN_OP_SUB && i == 1) {
        const int64_t minus[6] = {EINI_V_OP, v->dtype, EIN_OP_NEG, 0, 1, x.body};
        EINI_TRY(eini_value_leaf(p, minus, 6, NULL, 0, &x.body));
      }
      EINI_TRY(eini_vparts_add(p, &q, &x));
    }
    return eini_value_many(p, f, c->n, &q, value);
  }
  if (v->op == EIN_OP_CALL)
    EINI_TRY(eini_value_name(p, c->g->function[v->arg[0]].name, &head[3]));
  EINI_TRY(eini_vkey_words(p, &k, head, 5));
  EINI_TRY(eini_vkey_words(p, &k, arg, n));
  return eini_value_of(p, &k, value);
}

static ein_status eini_value_atom(eini_proof *p, const eini_vscope *c, const eini_node *v,
                                  eini_vpieces *out) {
  int64_t head[5] = {EINI_V_CONST, v->dtype, v->exact ? v->ival : 0, 0, 0}, value;
  if (v->op == EIN_OP_OPERAND) {
    const eini_map *m = &c->s->proj[v->arg[0]];
    eini_vrow *row = EINI_NEW(&p->arena, eini_vrow, m->rows);
    if (row == NULL) return EIN_ERR_NO_MEMORY;
    for (int r = 0; r < m->rows; r++) {
      eini_vrow_of(&row[r], -1);
      row[r].off = m->offset[r];
      for (int e = m->first[r]; e < m->first[r + 1]; e++)
        EINI_TRY(eini_vrow_add(p, &row[r], &c->idx[m->term[e].index], m->term[e].coef));
    }
    return eini_value_access(p, c->g, c->s->operand[v->arg[0]], row, c->dom, c->n, out);
  }
  if (v->op == EIN_OP_INDEX) {
    head[0] = EINI_V_INDEX;
    EINI_TRY(eini_value_leaf(p, head, 2, &c->idx[v->arg[0]], 1, &value));
  } else if (v->op == EIN_OP_PARAM) {
    const int64_t words[5] = {EINI_V_OP, v->dtype, v->op, 0, 0};
    memcpy(head, words, sizeof head);
    EINI_TRY(eini_value_name(p, c->g->param[v->arg[0]].name, &head[3]));
    EINI_TRY(eini_value_leaf(p, head, 5, NULL, 0, &value));
  } else if (v->dtype == EIN_I64 && v->exact) {
    eini_vrow row;
    eini_vrow_of(&row, -1);
    row.off = v->ival;
    head[0] = EINI_V_INDEX;
    EINI_TRY(eini_value_leaf(p, head, 2, &row, 1, &value));
  } else if (eini_value_whole((ein_dtype)v->dtype, v->ival) && v->exact) {
    EINI_TRY(eini_value_number(p, v->dtype, v->ival, &value));
  } else {
    memcpy(&head[3], &v->re, sizeof v->re);
    memcpy(&head[4], &v->im, sizeof v->im);
    EINI_TRY(eini_value_leaf(p, head, 5, NULL, 0, &value));
  }
  return eini_vpieces_add(p, out, c->dom, c->n, value, 0);
}

// Node i of the statement's expression.
static ein_status eini_value_node(eini_proof *p, const eini_vscope *c, int i, eini_vpieces *out) {
  const eini_node *v = &c->s->expr.node[i];
  const int n = eini_node_args(v);
  eini_vpieces some, more, arg;
  eini_vrange meet[EINI_VALUE_VARS];
  if (n == 0 && v->op != EIN_OP_CALL) return eini_value_atom(p, c, v, out);
  int64_t *list = EINI_NEW(&p->arena, int64_t, n + 1);  // arguments, behind them those of a region
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  memset(&some, 0, sizeof some);
  EINI_TRY(eini_vpieces_add(p, &some, c->dom, c->n, -1, 0));
  int64_t **of = EINI_NEW(&p->arena, int64_t *, 1);
  if (of == NULL) return EIN_ERR_NO_MEMORY;
  of[0] = list;
  for (int k = 0; k < n; k++) {
    memset(&arg, 0, sizeof arg);
    memset(&more, 0, sizeof more);
    EINI_TRY(eini_value_node(p, c, eini_node_arg(&c->s->expr, v, k), &arg));
    int64_t **next = EINI_NEW(&p->arena, int64_t *, some.n * arg.n);
    if (next == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t a = 0; a < some.n; a++)
      for (int64_t b = 0; b < arg.n; b++) {
        if (!eini_domain_meet(some.v[a].dom, arg.v[b].dom, c->n, meet)) continue;
        int64_t *both = next[more.n] = EINI_NEW(&p->arena, int64_t, n + 1);
        if (both == NULL) return EIN_ERR_NO_MEMORY;
        memcpy(both, of[a], (size_t)n * sizeof *both);
        both[k] = arg.v[b].value;
        EINI_TRY(eini_vpieces_add(p, &more, meet, c->n, -1, 0));
      }
    some = more;
    of = next;
  }
  for (int64_t a = 0; a < some.n; a++) {
    int64_t value;
    int is;
    EINI_TRY(eini_value_compare(p, v->op, of[a], some.v[a].dom, c->n, out, &is));
    if (is) continue;
    EINI_TRY(eini_value_op(p, c, v, of[a], n, &value));
    EINI_TRY(eini_vpieces_add(p, out, some.v[a].dom, c->n, value, 0));
  }
  return EIN_OK;
}
