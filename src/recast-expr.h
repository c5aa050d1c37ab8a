// ================================================================================================
// >>recast-expr  expressions made simpler
// Takes a typed expression; gives one in which constants are folded, identities used, or common
// factors taken out. Equal nodes are one node.
// ================================================================================================

typedef struct eini_simple {
  eini_recast *x;
  const eini_stmt *s;
  eini_expr e;              // what is made
  int level;                // EINI_SIMPLE_*
  int64_t changes;
} eini_simple;

enum { EINI_SIMPLE_NONE, EINI_SIMPLE_CONSTANTS, EINI_SIMPLE_EXACT, EINI_SIMPLE_LOOSE };

// Are two operands of a statement one value?
static int eini_simple_operands(const eini_stmt *s, int a, int b) {
  return a == b || (s->operand[a] == s->operand[b] && eini_map_equal(&s->proj[a], &s->proj[b]));
}

static int eini_simple_same(const eini_simple *z, const eini_node *a, const eini_node *b) {
  if (a->op != b->op || a->dtype != b->dtype || a->op == EIN_OP_CALL) return 0;
  if (a->op == EIN_OP_CONST)
    return a->exact == b->exact && a->ival == b->ival &&
           memcmp(&a->re, &b->re, sizeof a->re) == 0 && memcmp(&a->im, &b->im, sizeof a->im) == 0;
  if (a->op == EIN_OP_OPERAND) return eini_simple_operands(z->s, a->arg[0], b->arg[0]);
  if (a->op <= EIN_OP_PARAM) return a->arg[0] == b->arg[0];
  return memcmp(a->arg, b->arg, sizeof a->arg) == 0;
}

// The number of a node; -1: out of memory.
static int eini_simple_node(eini_simple *z, const eini_node *v) {
  for (int i = 0; i < z->e.n; i++)
    if (eini_simple_same(z, &z->e.node[i], v)) return i;
  const int id = eini_expr_add(z->x->scratch, &z->e, v->op, -1, 0, 0, 0);
  if (id >= 0) z->e.node[id] = *v;
  return id;
}

static int eini_simple_op(eini_simple *z, int op, int dtype, int a, int b) {
  eini_node v;
  memset(&v, 0, sizeof v);
  v.op = (unsigned char)op;
  v.dtype = (unsigned char)dtype;
  v.arg[0] = a;
  v.arg[1] = b;
  return a < 0 || b < 0 ? -1 : eini_simple_node(z, &v);
}

static int eini_simple_const(eini_simple *z, int dtype, double re, int exact, int64_t ival) {
  eini_node v;
  memset(&v, 0, sizeof v);
  v.op = EIN_OP_CONST;
  v.dtype = (unsigned char)dtype;
  v.exact = (unsigned char)exact;
  v.ival = exact ? ival : eini_f64_to_i64(re);
  v.re = exact ? (double)ival : re;
  return eini_simple_node(z, &v);
}

static int eini_simple_is(const eini_simple *z, int id, double value) {
  const eini_node *v = &z->e.node[id];
  return v->op == EIN_OP_CONST && v->im == 0 &&
         (v->exact ? (double)v->ival == value : v->re == value);
}

static int eini_simple_real(int dtype) { return dtype == EIN_F32 || dtype == EIN_F64; }

static int eini_simple_integer(int dtype) { return dtype == EIN_I32 || dtype == EIN_I64; }

// ---- constants ----

// The values that an integer of indices and literals can have; 0: not known.
static int eini_simple_range(const eini_simple *z, int id, int64_t *lo, int64_t *hi, int depth) {
  const eini_node *v = &z->e.node[id];
  int64_t a[2], b[2];
  if (v->dtype != EIN_I64 || depth > 64) return 0;
  if (v->op == EIN_OP_CONST && v->exact) return *lo = *hi = v->ival, 1;
  if (v->op == EIN_OP_INDEX)
    return *lo = 0, *hi = z->s->index[v->arg[0]].extent - 1, *hi >= 0;
  if (v->op != EIN_OP_ADD && v->op != EIN_OP_SUB && v->op != EIN_OP_MUL) return 0;
  if (!eini_simple_range(z, v->arg[0], &a[0], &a[1], depth + 1) ||
      !eini_simple_range(z, v->arg[1], &b[0], &b[1], depth + 1)) return 0;
  for (int k = 0; k < 4; k++) {
    int64_t r;
    if (!eini_fold_exact(v->op, a[k & 1], b[k >> 1], &r)) return 0;
    *lo = k == 0 ? r : eini_min64(*lo, r);
    *hi = k == 0 ? r : eini_max64(*hi, r);
  }
  return 1;
}

// Is a comparison decided? 1 and 0: always so; -1: not known.
static int eini_simple_compare(const eini_simple *z, const eini_node *v) {
  int64_t a[2], b[2];
  if (!eini_simple_range(z, v->arg[0], &a[0], &a[1], 0) ||
      !eini_simple_range(z, v->arg[1], &b[0], &b[1], 0)) return -1;
  const int one = a[0] == a[1] && b[0] == b[1], apart = a[1] < b[0] || b[1] < a[0];
  switch (v->op) {
    case EIN_OP_LT: return a[1] < b[0] ? 1 : a[0] >= b[1] ? 0 : -1;
    case EIN_OP_LE: return a[1] <= b[0] ? 1 : a[0] > b[1] ? 0 : -1;
    case EIN_OP_GT: return a[0] > b[1] ? 1 : a[1] <= b[0] ? 0 : -1;
    case EIN_OP_GE: return a[0] >= b[1] ? 1 : a[1] < b[0] ? 0 : -1;
    case EIN_OP_EQ: return apart ? 0 : one ? 1 : -1;
    case EIN_OP_NE: return apart ? 1 : one ? 0 : -1;
    default: return -1;
  }
}

// Arithmetic that IEEE 754 and 64 bits define; -1: not this.
static int eini_simple_number(eini_simple *z, const eini_node *v) {
  const int n = eini_node_args(v), t = v->dtype;
  const eini_node *a = &z->e.node[v->arg[0]], *b = &z->e.node[v->arg[n > 1]];
  int64_t r;
  if (a->op != EIN_OP_CONST || b->op != EIN_OP_CONST || a->dtype != t || b->dtype != t) return -1;
  if (t == EIN_I64 && a->exact && b->exact && eini_fold_exact(v->op, a->ival, b->ival, &r))
    return eini_simple_const(z, t, 0, 1, r);
  if (!eini_simple_real(t) || (v->op != EIN_OP_ADD && v->op != EIN_OP_SUB && v->op != EIN_OP_MUL &&
                               v->op != EIN_OP_DIV && v->op != EIN_OP_NEG)) return -1;
  const int f = t == EIN_F32;
  const double x = f ? (double)(float)a->re : a->re, y = f ? (double)(float)b->re : b->re;
  const double made = eini_fold_real(v->op, x, y);
  return eini_simple_const(z, t, f ? (double)(float)made : made, 0, 0);
}

static int eini_simple_constant(eini_simple *z, const eini_node *v) {
  const eini_node *a = v->op > EIN_OP_PARAM ? &z->e.node[v->arg[0]] : v;
  const int known = a->op == EIN_OP_CONST && a->dtype == EIN_BOOL;
  const int decided = eini_ops[v->op].args == 2 && v->dtype == EIN_BOOL ? eini_simple_compare(z, v)
                                                                        : -1;
  if (v->op == EIN_OP_INDEX && z->s->index[v->arg[0]].extent == 1)
    return eini_simple_const(z, EIN_I64, 0, 1, 0);
  if (decided >= 0) return eini_simple_const(z, EIN_BOOL, 0, 1, decided);
  if (v->op == EIN_OP_WHERE && known) return v->arg[a->ival ? 1 : 2];
  if (v->op == EIN_OP_NOT && known) return eini_simple_const(z, EIN_BOOL, 0, 1, !a->ival);
  for (int k = 0; k < 2 && (v->op == EIN_OP_AND || v->op == EIN_OP_OR); k++) {
    const eini_node *c = &z->e.node[v->arg[k]];
    if (c->op != EIN_OP_CONST || c->dtype != EIN_BOOL) continue;
    return (c->ival != 0) == (v->op == EIN_OP_AND) ? v->arg[1 - k] : v->arg[k];
  }
  return v->op > EIN_OP_PARAM && eini_node_args(v) <= 2 && v->op != EIN_OP_CALL &&
                 eini_ops[v->op].cls == 'A' ? eini_simple_number(z, v) : -1;
}

// ---- identities that keep every bit ----

// 1/c where that is a power of two, so that x/c is x*(1/c); 0: it is not.
static double eini_simple_inverse(const eini_simple *z, int id) {
  const eini_node *c = &z->e.node[id];
  const double x = c->op == EIN_OP_CONST ? (c->exact ? (double)c->ival : c->re) : 0;
  int by;
  if (x - x != 0 || x == 0 || fabs(frexp(x, &by)) != 0.5 || by > 100 || by < -100) return 0;
  return 1 / x;
}

static int eini_simple_exact(eini_simple *z, const eini_node *v) {
  const int t = v->dtype, a = v->arg[0], b = v->arg[1];
  const int real = eini_simple_real(t), whole = eini_simple_integer(t);
  const eini_node *x = v->op > EIN_OP_PARAM ? &z->e.node[a] : v;
  const eini_node *y = v->op > EIN_OP_PARAM && eini_ops[v->op].args > 1 ? &z->e.node[b] : x;
  switch (v->op) {
    case EIN_OP_MUL:
      if (!real && !whole) return -1;
      for (int k = 0; k < 2; k++) {
        if (eini_simple_is(z, v->arg[k], 1)) return v->arg[1 - k];
        if (eini_simple_is(z, v->arg[k], -1))
          return eini_simple_op(z, EIN_OP_NEG, t, v->arg[1 - k], 0);
      }
      return -1;
    case EIN_OP_DIV:
      if (!real || eini_simple_inverse(z, b) == 0) return -1;
      return eini_simple_is(z, b, 1) ? a : eini_simple_op(z, EIN_OP_MUL, t, a, eini_simple_const(
                                             z, t, eini_simple_inverse(z, b), 0, 0));
    case EIN_OP_ADD:
      if (whole && eini_simple_is(z, a, 0)) return b;
      if (whole && eini_simple_is(z, b, 0)) return a;
      return y->op == EIN_OP_NEG && y->dtype == t
                 ? eini_simple_op(z, EIN_OP_SUB, t, a, y->arg[0]) : -1;
    case EIN_OP_SUB:
      if ((whole || real) && eini_simple_is(z, b, 0) && copysign(1, y->exact ? 0 : y->re) > 0)
        return a;
      return y->op == EIN_OP_NEG && y->dtype == t
                 ? eini_simple_op(z, EIN_OP_ADD, t, a, y->arg[0]) : -1;
    case EIN_OP_WHERE: return v->arg[1] == v->arg[2] ? v->arg[1] : -1;
    case EIN_OP_MAX: case EIN_OP_MIN: case EIN_OP_AND: case EIN_OP_OR: return a == b ? a : -1;
    case EIN_OP_NEG: case EIN_OP_NOT: return x->op == v->op ? x->arg[0] : -1;
    case EIN_OP_ABS:
      if (!real) return -1;
      return x->op == EIN_OP_ABS ? a
             : x->op == EIN_OP_NEG ? eini_simple_op(z, EIN_OP_ABS, t, x->arg[0], 0) : -1;
    case EIN_OP_FLOOR: case EIN_OP_CEIL: case EIN_OP_ROUND: case EIN_OP_RELU:
      return x->op == v->op ? a : -1;
    case EIN_OP_ROUNDTO: return x->op == EIN_OP_ROUNDTO && x->dtype == t ? a : -1;
    default: return -1;
  }
}

// ---- identities of numbers without rounding, infinities, NaN and signs of 0 ----

static int eini_simple_loose(eini_simple *z, const eini_node *v) {
  const int t = v->dtype, a = v->arg[0], b = v->arg[1];
  if (!eini_simple_real(t) || v->op <= EIN_OP_PARAM) return -1;
  const eini_node *x = &z->e.node[a], *y = eini_ops[v->op].args > 1 ? &z->e.node[b] : x;
  switch (v->op) {
    case EIN_OP_ADD: return eini_simple_is(z, b, 0) ? a : eini_simple_is(z, a, 0) ? b : -1;
    case EIN_OP_SUB: return a == b ? eini_simple_const(z, t, 0, 1, 0) : -1;
    case EIN_OP_MUL:
      if (eini_simple_is(z, a, 0)) return a;
      if (eini_simple_is(z, b, 0)) return b;
      return x->op == EIN_OP_EXP && y->op == EIN_OP_EXP
                 ? eini_simple_op(z, EIN_OP_EXP, t,
                                  eini_simple_op(z, EIN_OP_ADD, t, x->arg[0], y->arg[0]), 0) : -1;
    case EIN_OP_DIV:
      if (a == b) return eini_simple_const(z, t, 1, 1, 1);
      if (x->op == EIN_OP_MUL && (x->arg[0] == b || x->arg[1] == b))
        return x->arg[x->arg[0] == b];
      if (y->op != EIN_OP_CONST || eini_simple_is(z, b, 0) || y->im != 0) return -1;
      return eini_simple_op(z, EIN_OP_MUL, t, a, eini_simple_const(
                 z, t, 1 / (y->exact ? (double)y->ival : y->re), 0, 0));
    case EIN_OP_EXP: return x->op == EIN_OP_LOG ? x->arg[0] : -1;
    case EIN_OP_LOG: return x->op == EIN_OP_EXP ? x->arg[0] : -1;
    case EIN_OP_SQUARE: return x->op == EIN_OP_SQRT ? x->arg[0] : -1;
    case EIN_OP_SQRT:
      return x->op == EIN_OP_SQUARE ? eini_simple_op(z, EIN_OP_ABS, t, x->arg[0], 0) : -1;
    default: return -1;
  }
}

// ---- the expression ----

// a*b + a*c becomes a*(b + c), also with -; -1: there is no common factor.
static int eini_simple_factor(eini_simple *z, const eini_node *v) {
  const int t = v->dtype;
  if ((v->op != EIN_OP_ADD && v->op != EIN_OP_SUB) || t < EIN_I32) return -1;
  const eini_node x = z->e.node[v->arg[0]], y = z->e.node[v->arg[1]];
  if (x.op != EIN_OP_MUL || y.op != EIN_OP_MUL || x.dtype != t || y.dtype != t) return -1;
  for (int k = 0; k < 4; k++) {
    if (x.arg[k & 1] != y.arg[k >> 1]) continue;
    const int sum = eini_simple_op(z, v->op, t, x.arg[!(k & 1)], y.arg[!(k >> 1)]);
    return eini_simple_op(z, EIN_OP_MUL, t, x.arg[k & 1], sum);
  }
  return -1;
}

// Node i of the statement among those made; `only`: the node whose common factor is taken out.
static int eini_simple_make(eini_simple *z, int i, const int *at, int only) {
  eini_node v = z->s->expr.node[i];
  const int n = eini_node_args(&v);
  int made = -1;
  if (v.op == EIN_OP_CALL)
    return eini_node_copy(z->x->scratch, &z->s->expr, i, at, &z->e);
  for (int k = 0; k < n; k++) v.arg[k] = at[v.arg[k]];
  v.pos = -1;
  if (only >= 0 ? i == only : z->level == EINI_SIMPLE_CONSTANTS)
    made = only >= 0 ? eini_simple_factor(z, &v) : eini_simple_constant(z, &v);
  else if (z->level == EINI_SIMPLE_EXACT) made = eini_simple_exact(z, &v);
  else if (z->level == EINI_SIMPLE_LOOSE) made = eini_simple_loose(z, &v);
  if (made >= 0 && z->e.node[made].dtype == v.dtype) {
    z->changes++;
    return made;
  }
  return eini_simple_node(z, &v);
}

static ein_status eini_simple_rule(eini_recast *x, int64_t i, int level, int only,
                                   const char *why) {
  const eini_stmt *s = &x->from->stmt[i];
  eini_simple z;
  eini_stmt f;
  memset(&z, 0, sizeof z);
  z.x = x;
  z.s = s;
  z.level = level;
  if (s->expr.n > EINI_RECAST_NODES) return eini_recast_no(x, "its expression is too long");
  if (eini_stmt_empty(s, 0, s->nindex)) return eini_recast_no(x, "its index space is empty");
  int *at = EINI_NEW(x->scratch, int, s->expr.n);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->expr.n; k++)
    if ((at[k] = eini_simple_make(&z, k, at, only)) < 0) return EIN_ERR_NO_MEMORY;
  if (z.changes == 0) return eini_recast_no(x, why);
  if (x->g == NULL) return EIN_OK;
  EINI_TRY(eini_recast_draft(x, s, s->nindex, s->nfree, 0, NULL, &f));
  f.expr = z.e;
  return eini_recast_append(x, &f, at[s->expr.n - 1]);
}

static ein_status eini_rule_constants(eini_recast *x, int64_t i, int part) {
  (void)part;
  return eini_simple_rule(x, i, EINI_SIMPLE_CONSTANTS, -1, "nothing in it is a constant");
}

static ein_status eini_rule_identity(eini_recast *x, int64_t i, int part) {
  (void)part;
  return eini_simple_rule(x, i, EINI_SIMPLE_EXACT, -1, "no identity that keeps rounding applies");
}

static ein_status eini_rule_relax(eini_recast *x, int64_t i, int part) {
  (void)part;
  return eini_simple_rule(x, i, EINI_SIMPLE_LOOSE, -1, "no identity of real numbers applies");
}

static ein_status eini_rule_factor(eini_recast *x, int64_t i, int node) {
  return eini_simple_rule(x, i, EINI_SIMPLE_NONE, node, "no sum in it has a common factor");
}
