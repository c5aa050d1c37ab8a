// ================================================================================================
// >>adjoint  derivatives of scalar expressions
// Takes a typed expression and the cotangent of its value; appends to the same nodes the cotangents
// of its operands: reverse mode, every function's rule in one table of cases.
// ================================================================================================

#define EINI_LEAVES_MAX 64  // of max(a,b,c,..), which share a tie equally

// A cotangent is a value and the condition under which it counts (-1: always); elsewhere it is 0.
// Conditions are carried to the operands, so that no value that is masked is ever computed with.
typedef struct eini_adjoint {
  eini_arena *arena;
  eini_expr e;            // the nodes of the expression, then those of derivatives
  int nprimal;
  unsigned char *needs;   // per node of the expression: depends on what is differentiated by
  int *val, *mask;        // per node of the expression: its cotangent, -1 for none
  int *same;              // per node: the first one that reads the same operand
  int stored;             // node that reads the stored value of the whole expression, or -1
  unsigned char *norm;    // per node: the square root of a sum of squares
  int stop;               // a node that no gradient flows through, or -1
} eini_adjoint;

// An operation on nodes; -1 when out of memory, also when an argument is.
static int eini_adj_op(eini_adjoint *d, int op, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0) return -1;
  return eini_expr_add(d->arena, &d->e, op, -1, x, y, z);
}

static int eini_adj_int(eini_adjoint *d, int64_t x) {
  return eini_expr_int(d->arena, &d->e, -1, x);
}

static int eini_adj_real(eini_adjoint *d, double x) {
  return eini_expr_real(d->arena, &d->e, -1, x);
}

static int eini_is_literal(const eini_adjoint *d, int x, int64_t value) {
  const eini_node *v = &d->e.node[x];
  return v->op == EIN_OP_CONST && v->weak && v->exact && v->ival == value;
}

static int eini_adj_mul(eini_adjoint *d, int x, int y) {
  if (x >= 0 && eini_is_literal(d, x, 1)) return y;
  if (y >= 0 && eini_is_literal(d, y, 1)) return x;
  return eini_adj_op(d, EIN_OP_MUL, x, y, 0);
}

static int eini_adj_cast(eini_adjoint *d, int x, ein_dtype t) {
  int id = eini_adj_op(d, EIN_OP_CAST, x, 0, 0);
  if (id >= 0) d->e.node[id].dtype = (unsigned char)t;
  return id;
}

static int eini_node_kind(const eini_adjoint *d, int x) {
  return eini_kind_of((ein_dtype)d->e.node[x].dtype);
}

// The conjugate of x, which is of the kind of node like.
static int eini_adj_conj(eini_adjoint *d, int x, int like) {
  const eini_node *v = x < 0 ? NULL : &d->e.node[x];
  if (v == NULL || eini_node_kind(d, like) < EINI_KCOMPLEX) return x;
  if (v->op == EIN_OP_CONJ) return v->arg[0];
  return v->op == EIN_OP_CONST && v->im == 0 ? x : eini_adj_op(d, EIN_OP_CONJ, x, 0, 0);
}

static int eini_adj_and(eini_adjoint *d, int x, int y) {
  return x < 0 ? y : eini_adj_op(d, EIN_OP_AND, x, y, 0);
}

// A cotangent as one value.
static int eini_adj_plain(eini_adjoint *d, int val, int mask) {
  return mask < 0 ? val : eini_adj_op(d, EIN_OP_WHERE, mask, val, eini_adj_int(d, 0));
}

// Adds to the cotangent of a node; EIN_ERR_NO_MEMORY when val is none.
static ein_status eini_adj_add(eini_adjoint *d, int x, int val, int mask) {
  x = d->same[x];
  if (val < 0) return EIN_ERR_NO_MEMORY;
  if (!d->needs[x]) return EIN_OK;
  if (d->val[x] >= 0 && d->mask[x] != mask) {
    d->val[x] = eini_adj_plain(d, d->val[x], d->mask[x]);
    val = eini_adj_plain(d, val, mask);
    mask = -1;
  }
  d->mask[x] = mask;
  d->val[x] = d->val[x] < 0 ? val : eini_adj_op(d, EIN_OP_ADD, d->val[x], val, 0);
  return d->val[x] < 0 || val < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// 1 where condition x holds, else 0, as a constant of dtype t.
static int eini_adj_one(eini_adjoint *d, int x, ein_dtype t) {
  int one = eini_adj_op(d, EIN_OP_WHERE, x, eini_adj_int(d, 1), eini_adj_int(d, 0));
  return eini_adj_cast(d, one, t);
}

// Is a factor the value of a condition? Then it is a mask, and a constant.
static int eini_is_mask(const eini_adjoint *d, int x) {
  const eini_node *v = &d->e.node[x];
  return (v->op == EIN_OP_CAST || v->op == EIN_OP_ROUNDTO) &&
         eini_node_kind(d, v->arg[0]) == EINI_KBOOL;
}

// d gelu(x) / dx = Phi(x) + x*phi(x), of the normal distribution.
static int eini_adj_gelu(eini_adjoint *d, int x) {
  int erf1 = eini_adj_op(d, EIN_OP_ERF,
                         eini_adj_mul(d, x, eini_adj_real(d, 0.70710678118654752440)), 0, 0);
  int phi = eini_adj_mul(d, eini_adj_op(d, EIN_OP_SQUARE, x, 0, 0), eini_adj_real(d, -0.5));
  phi = eini_adj_mul(d, eini_adj_op(d, EIN_OP_EXP, phi, 0, 0),
                     eini_adj_real(d, 0.39894228040143267794));
  erf1 = eini_adj_op(d, EIN_OP_ADD, erf1, eini_adj_int(d, 1), 0);
  return eini_adj_op(d, EIN_OP_ADD, eini_adj_mul(d, erf1, eini_adj_real(d, 0.5)),
                     eini_adj_mul(d, x, phi), 0);
}

// The derivative of a function of x whose value is r, at least where it is differentiable.
static int eini_adj_slope(eini_adjoint *d, int op, int x, int r) {
  int one = eini_adj_int(d, 1), t = -1;
  switch (op) {
    case EIN_OP_SQUARE: return eini_adj_mul(d, eini_adj_int(d, 2), x);
    case EIN_OP_EXP: return r;
    case EIN_OP_RSQRT:
      t = eini_adj_mul(d, r, eini_adj_op(d, EIN_OP_SQUARE, r, 0, 0));
      return eini_adj_mul(d, eini_adj_real(d, -0.5), t);
    case EIN_OP_EXPM1: return eini_adj_op(d, EIN_OP_ADD, r, one, 0);
    case EIN_OP_LOG1P:
      return eini_adj_op(d, EIN_OP_DIV, one, eini_adj_op(d, EIN_OP_ADD, x, one, 0), 0);
    case EIN_OP_TAN:
      return eini_adj_op(d, EIN_OP_ADD, eini_adj_op(d, EIN_OP_SQUARE, r, 0, 0), one, 0);
    case EIN_OP_SIN: return eini_adj_op(d, EIN_OP_COS, x, 0, 0);
    case EIN_OP_COS:
      return eini_adj_op(d, EIN_OP_NEG, eini_adj_op(d, EIN_OP_SIN, x, 0, 0), 0, 0);
    case EIN_OP_TANH:
      return eini_adj_op(d, EIN_OP_SUB, one, eini_adj_op(d, EIN_OP_SQUARE, r, 0, 0), 0);
    case EIN_OP_ERF:
      t = eini_adj_op(d, EIN_OP_NEG, eini_adj_op(d, EIN_OP_SQUARE, x, 0, 0), 0, 0);
      return eini_adj_mul(d, eini_adj_real(d, 1.12837916709551257390),
                          eini_adj_op(d, EIN_OP_EXP, t, 0, 0));
    case EIN_OP_SIGMOID: return eini_adj_mul(d, r, eini_adj_op(d, EIN_OP_SUB, one, r, 0));
    case EIN_OP_SILU:
      t = eini_adj_op(d, EIN_OP_SIGMOID, x, 0, 0);
      r = eini_adj_mul(d, r, eini_adj_op(d, EIN_OP_SUB, one, t, 0));
      return eini_adj_op(d, EIN_OP_ADD, t, r, 0);
    case EIN_OP_GELU: return eini_adj_gelu(d, x);
    default: return -1;
  }
}

// Conversions: the cotangent takes the other way, to the real part where that loses one.
static int eini_adj_convert(eini_adjoint *d, int id, int x, int g) {
  ein_dtype to = (ein_dtype)d->e.node[x].dtype, from = (ein_dtype)d->e.node[id].dtype;
  if (eini_kind_of(to) < EINI_KREAL) return g;  // x stops it
  if (eini_kind_of(from) == EINI_KCOMPLEX && eini_kind_of(to) == EINI_KREAL) {
    g = eini_adj_op(d, EIN_OP_REAL, g, 0, 0);
    from = eini_real_part(from);
  }
  to = ein_dtype_compute(to);
  return ein_dtype_compute(from) == to ? g : eini_adj_cast(d, g, to);
}

static ein_status eini_adj_unary(eini_adjoint *d, int id, int g, int m) {
  int op = d->e.node[id].op, x = d->e.node[id].arg[0], zero = eini_adj_int(d, 0);
  int r = id == d->nprimal - 1 && d->stored >= 0 ? d->stored : id, t = -1;
  if (zero < 0) return EIN_ERR_NO_MEMORY;
  switch (op) {
    case EIN_OP_NEG: return eini_adj_add(d, x, eini_adj_op(d, EIN_OP_NEG, g, 0, 0), m);
    case EIN_OP_CONJ: return eini_adj_add(d, x, eini_adj_conj(d, g, id), m);
    case EIN_OP_REAL: return eini_adj_add(d, x, g, m);
    case EIN_OP_IMAG:
      return eini_adj_add(d, x, eini_adj_op(d, EIN_OP_COMPLEX, zero, g, 0), m);
    case EIN_OP_CAST: case EIN_OP_ROUNDTO:
      return eini_adj_add(d, x, eini_adj_convert(d, id, x, g), m);
    case EIN_OP_FLOOR: case EIN_OP_CEIL: case EIN_OP_ROUND: return EIN_OK;  // constant
    case EIN_OP_SIGN:  // of a complex x what is across x moves it
      if (eini_node_kind(d, x) < EINI_KCOMPLEX) return EIN_OK;
      t = eini_adj_op(d, EIN_OP_REAL, eini_adj_mul(d, g, eini_adj_conj(d, r, id)), 0, 0);
      t = eini_adj_op(d, EIN_OP_SUB, g, eini_adj_mul(d, r, t), 0);
      t = eini_adj_op(d, EIN_OP_DIV, t, eini_adj_op(d, EIN_OP_ABS, x, 0, 0), 0);
      return eini_adj_add(d, x, t, eini_adj_and(d, m, eini_adj_op(d, EIN_OP_NE, x, zero, 0)));
    case EIN_OP_RELU:
      return eini_adj_add(d, x, g, eini_adj_and(d, m, eini_adj_op(d, EIN_OP_GT, x, zero, 0)));
    case EIN_OP_ABS:
      if (eini_node_kind(d, x) == EINI_KCOMPLEX) {
        t = eini_adj_mul(d, x, eini_adj_op(d, EIN_OP_DIV, g, r, 0));
      } else {
        t = eini_adj_op(d, EIN_OP_NEG, g, 0, 0);
        t = eini_adj_op(d, EIN_OP_WHERE, eini_adj_op(d, EIN_OP_LT, x, zero, 0), t, g);
      }
      return eini_adj_add(d, x, t, eini_adj_and(d, m, eini_adj_op(d, EIN_OP_NE, x, zero, 0)));
    case EIN_OP_LOG:
      return eini_adj_add(d, x, eini_adj_op(d, EIN_OP_DIV, g, eini_adj_conj(d, x, id), 0), m);
    case EIN_OP_SQRT:
      t = eini_adj_conj(d, eini_adj_mul(d, eini_adj_int(d, 2), r), id);
      if (d->norm[id]) m = eini_adj_and(d, m, eini_adj_op(d, EIN_OP_NE, r, zero, 0));
      return eini_adj_add(d, x, eini_adj_op(d, EIN_OP_DIV, g, t, 0), m);
    default:
      t = eini_adj_conj(d, eini_adj_slope(d, op, x, r), id);
      return eini_adj_add(d, x, eini_adj_mul(d, g, t), m);
  }
}

// x^y; a literal y gives y*x^(y-1), else 0 where y = 0, and r*log(x), 0 where x = 0.
static ein_status eini_adj_pow(eini_adjoint *d, int id, int r, int g, int m) {
  int x = d->e.node[id].arg[0], y = d->e.node[id].arg[1], zero = eini_adj_int(d, 0), t;
  const eini_node c = d->e.node[y];
  int literal = c.op == EIN_OP_CONST, mx = m;
  if (literal && c.re == 0 && c.im == 0) return EIN_OK;
  if (literal) {
    t = eini_adj_op(d, EIN_OP_CONST, 0, 0, 0);
    if (t < 0) return EIN_ERR_NO_MEMORY;
    d->e.node[t] = c;
    d->e.node[t].re = c.re - 1;
    d->e.node[t].ival = c.ival - (c.ival > INT64_MIN);
  } else {
    t = eini_adj_op(d, EIN_OP_SUB, y, eini_adj_int(d, 1), 0);
    mx = eini_adj_and(d, m, eini_adj_op(d, EIN_OP_NE, y, zero, 0));
  }
  t = eini_adj_mul(d, y, eini_adj_op(d, EIN_OP_POW, x, t, 0));
  if (d->needs[x]) EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, eini_adj_conj(d, t, id)), mx));
  if (!d->needs[y]) return EIN_OK;
  t = eini_adj_mul(d, r, eini_adj_op(d, EIN_OP_LOG, x, 0, 0));
  m = eini_adj_and(d, m, eini_adj_op(d, EIN_OP_NE, x, zero, 0));
  return eini_adj_add(d, y, eini_adj_mul(d, g, eini_adj_conj(d, t, id)), m);
}

// max or min of two or more: those that equal the result share its cotangent.
static ein_status eini_adj_extreme(eini_adjoint *d, int id, int g, int m) {
  int leaf[EINI_LEAVES_MAX], equal[EINI_LEAVES_MAX], n = 1, op = d->e.node[id].op, count = -1;
  leaf[0] = id;
  for (int i = 0; i < n;) {
    const eini_node *v = &d->e.node[leaf[i]];
    if (v->op != op || n == EINI_LEAVES_MAX) {
      i++;
    } else {
      leaf[i] = v->arg[0];
      leaf[n++] = v->arg[1];
    }
  }
  for (int i = 0; i < n; i++) {
    equal[i] = eini_adj_op(d, EIN_OP_EQ, leaf[i], id, 0);
    int one = eini_adj_one(d, equal[i], ein_dtype_compute((ein_dtype)d->e.node[id].dtype));
    count = i == 0 ? one : eini_adj_op(d, EIN_OP_ADD, count, one, 0);
  }
  g = eini_adj_op(d, EIN_OP_DIV, g, count, 0);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++)
    EINI_TRY(eini_adj_add(d, leaf[i], g, eini_adj_and(d, m, equal[i])));
  return EIN_OK;
}

static ein_status eini_adj_where(eini_adjoint *d, int id, int g, int m) {
  const eini_node v = d->e.node[id];
  int otherwise = eini_adj_op(d, EIN_OP_NOT, v.arg[0], 0, 0);
  if (otherwise < 0) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_adj_add(d, v.arg[1], g, eini_adj_and(d, m, v.arg[0])));
  return eini_adj_add(d, v.arg[2], g, eini_adj_and(d, m, otherwise));
}

static ein_status eini_adj_binary(eini_adjoint *d, int id, int g, int m) {
  int op = d->e.node[id].op, x = d->e.node[id].arg[0], y = d->e.node[id].arg[1], t;
  int r = id == d->nprimal - 1 && d->stored >= 0 ? d->stored : id;
  switch (op) {
    case EIN_OP_ADD: case EIN_OP_SUB:
      EINI_TRY(eini_adj_add(d, x, g, m));
      return eini_adj_add(d, y, op == EIN_OP_ADD ? g : eini_adj_op(d, EIN_OP_NEG, g, 0, 0), m);
    case EIN_OP_MUL:
      if (d->needs[x] && !eini_is_mask(d, x))
        EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, eini_adj_conj(d, y, id)), m));
      if (!d->needs[y] || eini_is_mask(d, y)) return EIN_OK;
      return eini_adj_add(d, y, eini_adj_mul(d, g, eini_adj_conj(d, x, id)), m);
    case EIN_OP_DIV:
      g = eini_adj_op(d, EIN_OP_DIV, g, eini_adj_conj(d, y, id), 0);
      EINI_TRY(eini_adj_add(d, x, g, m));
      t = eini_adj_mul(d, g, eini_adj_conj(d, r, id));
      return eini_adj_add(d, y, eini_adj_op(d, EIN_OP_NEG, t, 0, 0), m);
    case EIN_OP_POW: return eini_adj_pow(d, id, r, g, m);
    case EIN_OP_ATAN2:  // of x over y
      t = eini_adj_op(d, EIN_OP_ADD, eini_adj_op(d, EIN_OP_SQUARE, x, 0, 0),
                      eini_adj_op(d, EIN_OP_SQUARE, y, 0, 0), 0);
      g = eini_adj_op(d, EIN_OP_DIV, g, t, 0);
      if (g < 0) return EIN_ERR_NO_MEMORY;
      EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, y), m));
      t = eini_adj_mul(d, g, x);
      return eini_adj_add(d, y, eini_adj_op(d, EIN_OP_NEG, t, 0, 0), m);
    case EIN_OP_MAX: case EIN_OP_MIN: return eini_adj_extreme(d, id, g, m);
    case EIN_OP_MOD:  // x - y*floor(x/y)
      EINI_TRY(eini_adj_add(d, x, g, m));
      t = eini_adj_mul(d, g, eini_adj_op(d, EIN_OP_FLOORDIV, x, y, 0));
      return eini_adj_add(d, y, eini_adj_op(d, EIN_OP_NEG, t, 0, 0), m);
    case EIN_OP_COMPLEX:
      EINI_TRY(eini_adj_add(d, x, eini_adj_op(d, EIN_OP_REAL, g, 0, 0), m));
      return eini_adj_add(d, y, eini_adj_op(d, EIN_OP_IMAG, g, 0, 0), m);
    default: return EIN_OK;  // div is constant
  }
}

// Carries the cotangents set so far down to the operands; a node that stops them is d->stop.
static ein_status eini_adj_run(eini_adjoint *d) {
  for (int id = d->nprimal - 1; id >= 0; id--) {
    int op = d->e.node[id].op, g = d->val[id], m = d->mask[id];
    if (g < 0 || !d->needs[id]) continue;
    if (eini_node_kind(d, id) < EINI_KREAL || op == EIN_OP_CALL) {
      d->stop = id;
      return EIN_ERR_UNSUPPORTED;
    }
    if (op == EIN_OP_OPERAND) continue;
    EINI_TRY(op == EIN_OP_WHERE ? eini_adj_where(d, id, g, m) :
             eini_ops[op].args == 1 ? eini_adj_unary(d, id, g, m)
                                    : eini_adj_binary(d, id, g, m));
  }
  return EIN_OK;
}

// Which nodes depend on operands with reads[k]? A choice does not depend on its condition.
static void eini_adj_needs(const eini_expr *e, const unsigned char *reads, unsigned char *needs) {
  for (int64_t id = 0; id < e->n; id++) {
    const eini_node *v = &e->node[id];
    needs[id] = v->op == EIN_OP_OPERAND ? reads[v->arg[0]] : 0;
    for (int i = v->op == EIN_OP_WHERE; i < eini_node_args(v); i++)
      needs[id] |= needs[eini_node_arg(e, v, i)];
  }
}

// Begins with a typed expression; reads[k]: does operand k depend on what is differentiated by?
static ein_status eini_adj_begin(eini_adjoint *d, eini_arena *arena, const eini_expr *e,
                                 const unsigned char *reads, int noperand) {
  memset(d, 0, sizeof *d);
  d->arena = arena;
  d->stored = d->stop = -1;
  d->nprimal = (int)e->n;
  d->e.n = d->e.cap = e->n;
  d->e.nlist = d->e.caplist = e->nlist;
  d->e.node = EINI_NEW(arena, eini_node, e->n);
  d->e.list = EINI_NEW(arena, int, e->nlist);
  d->needs = EINI_NEW(arena, unsigned char, e->n);
  d->norm = EINI_NEW(arena, unsigned char, e->n);
  d->val = EINI_NEW(arena, int, e->n);
  d->mask = EINI_NEW(arena, int, e->n);
  d->same = EINI_NEW(arena, int, e->n);
  int *first = EINI_NEW(arena, int, noperand);
  if (d->e.node == NULL || d->e.list == NULL || d->needs == NULL || d->norm == NULL ||
      d->val == NULL || d->mask == NULL || d->same == NULL || first == NULL)
    return EIN_ERR_NO_MEMORY;
  memcpy(d->e.node, e->node, (size_t)e->n * sizeof *e->node);
  if (e->nlist > 0) memcpy(d->e.list, e->list, (size_t)e->nlist * sizeof *e->list);
  for (int id = 0; id < d->nprimal; id++) {
    const eini_node *v = &d->e.node[id];
    d->val[id] = d->mask[id] = -1;
    d->same[id] = id;
    if (v->op != EIN_OP_OPERAND) continue;
    int k = v->arg[0];
    if (first[k] == 0) first[k] = id + 1;
    d->same[id] = first[k] - 1;
  }
  eini_adj_needs(e, reads, d->needs);
  return EIN_OK;
}
