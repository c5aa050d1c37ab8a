// ================================================================================================
// >>expr  scalar expressions
// An expression is an array of nodes, children before parents, so every pass is one loop and depth
// costs no stack. Typing gives every node a logical dtype (NumPy's) and makes conversions explicit.
// ================================================================================================

typedef struct eini_op_row {
  const char *name;
  unsigned char args;
  char cls;
} eini_op_row;

static const eini_op_row eini_ops[EIN_OP_COUNT] = {
#define EINI_OP_ROW(id, name, args, cls) {name, args, cls},
    EIN_OP_LIST(EINI_OP_ROW)
#undef EINI_OP_ROW
};

#define EINI_ARGS_MAX 8

typedef struct eini_node {
  unsigned char op;
  unsigned char dtype;  // logical; EIN_NONE before typing
  unsigned char weak;   // a literal, a param without a dtype, or an expression of these: adopts the
                        // dtype it meets; ival of an operation: the first node of its tree
  unsigned char exact;  // CONST: ival is exact (an integer); arg[0]: made of a size left open
  int arg[3];           // children; OPERAND, INDEX, PARAM: arg[0] is the number;
                        // CAST: arg[1] is 1 for a conversion that typing inserted;
                        // CALL: arg[0] function, arg[1] first of arg[2] entries in expr.list
  int64_t pos;          // byte in the source, or -1
  int64_t ival;
  double re, im;
} eini_node;

typedef struct eini_expr {
  eini_node *node;
  int64_t n, cap;
  int *list;            // children of CALL nodes
  int64_t nlist, caplist;
} eini_expr;

// Appends a node; -1 when out of memory.
static int eini_expr_add(eini_arena *a, eini_expr *e, int op, int64_t pos, int x, int y, int z) {
  if (e->n >= INT_MAX - 8) return -1;
  eini_node *p = (eini_node *)eini_grow(a, e->node, e->n, &e->cap, sizeof *p);
  if (p == NULL) return -1;
  e->node = p;
  eini_node *v = &e->node[e->n];
  memset(v, 0, sizeof *v);
  v->op = (unsigned char)op;
  v->arg[0] = x;
  v->arg[1] = y;
  v->arg[2] = z;
  v->pos = pos;
  return (int)e->n++;
}

// What computes for a literal: one of f16 or bf16 is rounded where it is stored, not by f32 before.
static double eini_literal_value(const eini_node *v) {
  if (v->op != EIN_OP_CONST || (v->dtype != EIN_F16 && v->dtype != EIN_BF16)) return v->re;
  return (double)eini_round_odd(v->exact ? eini_i64_odd(v->ival) : v->re);
}

static int eini_expr_pair(eini_arena *a, eini_expr *e, int op, int x, int y) {
  return x < 0 || y < 0 ? -1 : eini_expr_add(a, e, op, -1, x, y, 0);
}

static int eini_expr_int(eini_arena *a, eini_expr *e, int64_t pos, int64_t value) {
  int id = eini_expr_add(a, e, EIN_OP_CONST, pos, 0, 0, 0);
  if (id >= 0) {
    eini_node *v = &e->node[id];
    v->weak = v->exact = 1;
    v->ival = value;
    v->re = (double)value;
  }
  return id;
}

static int eini_expr_real(eini_arena *a, eini_expr *e, int64_t pos, double value) {
  int id = eini_expr_add(a, e, EIN_OP_CONST, pos, 0, 0, 0);
  if (id >= 0) {
    e->node[id].weak = 1;
    e->node[id].re = value;
  }
  return id;
}

EINI_UNUSED static int eini_expr_bool(eini_arena *a, eini_expr *e, int64_t pos, int value) {
  int id = eini_expr_int(a, e, pos, value != 0);
  if (id >= 0) {
    e->node[id].weak = 0;
    e->node[id].dtype = EIN_BOOL;
  }
  return id;
}

// A call of registered function f.
static int eini_expr_call(eini_arena *a, eini_expr *e, int64_t pos, int f, int n, const int *args) {
  int64_t first = e->nlist;
  for (int i = 0; i < n; i++) {
    int *p = (int *)eini_grow(a, e->list, e->nlist, &e->caplist, sizeof *p);
    if (p == NULL) return -1;
    e->list = p;
    e->list[e->nlist++] = args[i];
  }
  return eini_expr_add(a, e, EIN_OP_CALL, pos, f, (int)first, n);
}

static int eini_node_args(const eini_node *v) {
  return v->op == EIN_OP_CALL ? v->arg[2] : eini_ops[v->op].args;
}

static int eini_node_arg(const eini_expr *e, const eini_node *v, int i) {
  return v->op == EIN_OP_CALL ? e->list[v->arg[1] + i] : v->arg[i];
}

// The nodes that `need` marks become those below root, too.
static void eini_mark_needed(const eini_expr *e, int root, char *need) {
  need[root] = 1;
  for (int i = root; i >= 0; i--) {
    const eini_node *n = &e->node[i];
    for (int k = 0; need[i] && k < eini_node_args(n); k++) need[eini_node_arg(e, n, k)] = 1;
  }
}

// Is operand k one factor of the product that e is? x^3 is x * square(x): nodes may be shared.
static int eini_expr_factor(const eini_expr *e, int k) {
  int at = -1;
  for (int i = 0; i < e->n; i++) {
    if (e->node[i].op != EIN_OP_OPERAND || e->node[i].arg[0] != k) continue;
    if (at >= 0) return 0;
    at = i;
  }
  while (at >= 0 && at < e->n - 1) {
    int up = -1;
    for (int i = at + 1; i < e->n; i++)
      for (int q = 0; q < eini_node_args(&e->node[i]); q++) {
        if (eini_node_arg(e, &e->node[i], q) != at) continue;
        if (up >= 0 || e->node[i].op != EIN_OP_MUL) return 0;
        up = i;
      }
    at = up;
  }
  return at >= 0;
}

// Copies a node whose children have new numbers; its own, or -1.
static int eini_node_copy(eini_arena *a, const eini_expr *e, int id, const int *map,
                          eini_expr *to) {
  eini_node v = e->node[id];
  int arg[EINI_ARGS_MAX] = {0}, n = eini_node_args(&v), made;
  for (int i = 0; i < n; i++) arg[i] = map[eini_node_arg(e, &v, i)];
  if (v.op == EIN_OP_CALL) {
    made = eini_expr_call(a, to, v.pos, v.arg[0], n, arg);
    if (made >= 0) to->node[made].dtype = v.dtype;
    return made;
  }
  for (int i = 0; i < n; i++) v.arg[i] = arg[i];
  made = eini_expr_add(a, to, v.op, v.pos, 0, 0, 0);
  if (made >= 0) to->node[made] = v;
  return made;
}

// Appends another expression; *root becomes its root.
static ein_status eini_expr_append(eini_arena *a, const eini_expr *e, eini_expr *to, int *root) {
  int *at = EINI_NEW(a, int, e->n);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < e->n; i++)
    if ((*root = at[i] = eini_node_copy(a, e, i, at, to)) < 0) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

// A copy in which the value of index i has param[i] added to it, unless that is -1.
EINI_UNUSED static ein_status eini_expr_shift(eini_arena *a, const eini_expr *e, const int *param,
                                              eini_expr *to) {
  int *at = EINI_NEW(a, int, e->n);
  memset(to, 0, sizeof *to);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    at[i] = eini_node_copy(a, e, i, at, to);
    if (at[i] >= 0 && v->op == EIN_OP_INDEX && param[v->arg[0]] >= 0) {
      int p = eini_expr_add(a, to, EIN_OP_PARAM, v->pos, param[v->arg[0]], 0, 0);
      int sum = p < 0 ? -1 : eini_expr_pair(a, to, EIN_OP_ADD, at[i], p);
      if (sum >= 0) to->node[p].dtype = to->node[sum].dtype = EIN_I64;
      at[i] = sum;
    }
    if (at[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// ---- typing ----

typedef struct eini_param {
  const char *name;
  ein_dtype dtype;       // EIN_NONE: it adopts what it meets
  ein_scalar value;
} eini_param;

// What typing needs to know: dtypes of operands, params, the registered functions.
typedef struct eini_typing {
  const ein_dtype *operand;
  const eini_param *param;
  const ein_function *function;
  eini_diag *diag;
} eini_typing;

static int64_t eini_ipow(int64_t x, int64_t n) {
  uint64_t r = 1, b = (uint64_t)x;  // wraps like the multiplications it stands for
  for (; n > 0; n >>= 1, b *= b)
    if (n & 1) r *= b;
  return (int64_t)r;
}

// Folds an operation on exact integers; 0 when the result is not an exact integer.
static int eini_fold_exact(int op, int64_t x, int64_t y, int64_t *r) {
  switch (op) {
    case EIN_OP_NEG: return !eini_mul_overflow(x, -1, r);
    case EIN_OP_ADD: return !eini_add_overflow(x, y, r);
    case EIN_OP_SUB: return y != INT64_MIN && !eini_add_overflow(x, -y, r);
    case EIN_OP_MUL: return !eini_mul_overflow(x, y, r);
    case EIN_OP_MAX: *r = x > y ? x : y; return 1;
    case EIN_OP_MIN: *r = x < y ? x : y; return 1;
    case EIN_OP_POW:
      if (y < 0 || y > 62 || (double)INT64_MAX < pow(fabs((double)x), (double)y)) return 0;
      *r = eini_ipow(x, y);
      return 1;
    default: return 0;
  }
}

static double eini_fold_real(int op, double x, double y) {
  switch (op) {
    case EIN_OP_EXP: return exp(x);
    case EIN_OP_LOG: return log(x);
    case EIN_OP_SQRT: return sqrt(x);
    case EIN_OP_RSQRT: return 1 / sqrt(x);
    case EIN_OP_EXPM1: return expm1(x);
    case EIN_OP_LOG1P: return log1p(x);
    case EIN_OP_SIN: return sin(x);
    case EIN_OP_COS: return cos(x);
    case EIN_OP_TAN: return tan(x);
    case EIN_OP_TANH: return tanh(x);
    case EIN_OP_ATAN2: return atan2(x, y);
    case EIN_OP_NEG: return -x;
    case EIN_OP_ADD: return x + y;
    case EIN_OP_SUB: return x - y;
    case EIN_OP_MUL: return x * y;
    case EIN_OP_DIV: return x / y;
    default: return pow(x, y);
  }
}

// Literals stay literals under arithmetic and functions: -1, 2/3, sqrt(size(d)); params without a
// dtype are like them. An f32 tensor over them stays f32. The others are typed as f64 or i64.
static int eini_stays_weak(int op) {
  return op == EIN_OP_NEG || op == EIN_OP_ADD || op == EIN_OP_SUB || op == EIN_OP_MUL ||
         op == EIN_OP_DIV || op == EIN_OP_POW || (op >= EIN_OP_EXP && op <= EIN_OP_ATAN2);
}

static int eini_fold_literal(eini_expr *e, eini_node *v) {
  if (!eini_stays_weak(v->op)) return 0;
  const eini_node *x = &e->node[v->arg[0]];
  const eini_node *y = eini_ops[v->op].args == 1 ? x : &e->node[v->arg[1]];
  if (x->op != EIN_OP_CONST || y->op != EIN_OP_CONST || !x->weak || !y->weak) return 0;
  int64_t r = 0;
  int exact = x->exact && y->exact && eini_fold_exact(v->op, x->ival, y->ival, &r);
  const int open = x->arg[0] || y->arg[0], both = x->arg[0] && y->arg[0];
  if (open && !(exact && (v->op == EIN_OP_ADD || v->op == EIN_OP_SUB || v->op == EIN_OP_NEG ||
                          (v->op == EIN_OP_MUL && !both)))) return 0;  // no sum of sizes
  double re = exact ? (double)r : eini_fold_real(v->op, x->re, y->re);
  v->op = EIN_OP_CONST;
  v->arg[0] = open;
  v->weak = 1;
  v->exact = (unsigned char)exact;
  v->ival = r;
  v->re = re;
  return 1;
}

// The dtype two operands meet in; literals adopt the other's.
static ein_dtype eini_meet(const eini_node *x, const eini_node *y) {
  if (x->weak && y->weak) {
    return x->op == EIN_OP_CONST && x->exact && y->op == EIN_OP_CONST && y->exact ? EIN_I64
                                                                                    : EIN_F64;
  }
  if (!x->weak && !y->weak) return ein_dtype_promote((ein_dtype)x->dtype, (ein_dtype)y->dtype);
  const eini_node *w = x->weak ? x : y;
  ein_dtype t = (ein_dtype)(x->weak ? y->dtype : x->dtype);
  if (w->exact) return t == EIN_BOOL ? EIN_I64 : t;
  return eini_kind_of(t) >= EINI_KREAL ? t : EIN_F64;
}

static ein_dtype eini_node_dtype(const eini_node *x) {
  return x->weak ? (x->exact ? EIN_I64 : EIN_F64) : (ein_dtype)x->dtype;
}

static ein_dtype eini_real_part(ein_dtype t) {
  return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
}

// Appends an operation on nodes that adopt what they meet, which does so too; -1: no memory.
static int eini_weak_pair(eini_arena *a, eini_expr *out, int op, int64_t pos, int x, int y) {
  int id = eini_expr_add(a, out, op, pos, x, y, 0), first = id;
  for (int k = 0; k < eini_ops[op].args && id >= 0; k++) {
    const eini_node *c = &out->node[k == 0 ? x : y];
    int64_t from = c->weak && c->op > EIN_OP_PARAM ? c->ival : k == 0 ? x : y;
    if (from < first) first = (int)from;
  }
  if (id < 0) return -1;
  out->node[id].weak = 1;
  out->node[id].ival = first;
  return id;
}

// An operation on such nodes, with all below it, takes dtype t. Trees are long: no recursion.
static void eini_weak_take(eini_expr *out, int id, ein_dtype t) {
  int64_t first = out->node[id].ival;
  out->node[id].weak = 2;  // to be typed
  for (int64_t i = id; i >= first; i--) {
    eini_node *v = &out->node[i];
    if (v->weak != 2) continue;
    v->weak = 0;
    v->dtype = (unsigned char)t;
    if (v->op == EIN_OP_CONST && !v->exact) v->ival = eini_f64_to_i64(v->re);
    if (v->op <= EIN_OP_PARAM) continue;
    v->ival = 0;
    for (int k = 0; k < eini_ops[v->op].args; k++)
      if (out->node[v->arg[k]].weak) out->node[v->arg[k]].weak = 2;
  }
}

// A child converted to logical dtype t: itself, a typed literal, or a CAST node on top of it.
static int eini_convert(eini_arena *a, eini_expr *out, int id, ein_dtype t) {
  eini_node *x = &out->node[id];
  if (x->weak && x->op != EIN_OP_CONST && eini_kind_of(t) < EINI_KREAL) {  // converted when known
    int real = eini_convert(a, out, id, EIN_F64);
    return real < 0 ? -1 : eini_convert(a, out, real, t);
  }
  if (x->weak && x->op > EIN_OP_PARAM) {
    eini_weak_take(out, id, t);
    return id;
  }
  if (x->weak) {
    // The literal may be shared by two parents: each gets its own typed copy.
    eini_node copy = *x;
    int c = eini_expr_add(a, out, EIN_OP_CONST, copy.pos, 0, 0, 0);
    if (c < 0) return -1;
    eini_node *v = &out->node[c];
    *v = copy;
    v->weak = 0;
    v->dtype = (unsigned char)t;
    if (!v->exact) v->ival = t == EIN_BOOL ? v->re != 0 || v->im != 0 : eini_f64_to_i64(v->re);
    return c;
  }
  ein_dtype from = ein_dtype_compute((ein_dtype)x->dtype), to = ein_dtype_compute(t);
  if (from == to) return id;
  int c = eini_expr_add(a, out, EIN_OP_CAST, x->pos, id, 1, 0);
  if (c >= 0) out->node[c].dtype = (unsigned char)t;
  return c;
}

// Operand dtype (what arguments are converted to) and result dtype of an operation.
static ein_status eini_op_types(const eini_typing *ty, const eini_node *v, const eini_node *x,
                                const eini_node *y, ein_dtype *arg, ein_dtype *res) {
  ein_dtype m = y != NULL ? eini_meet(x, y) : eini_node_dtype(x);
  int complex_in = eini_kind_of(m) == EINI_KCOMPLEX;
  *arg = *res = m;
  switch (eini_ops[v->op].cls) {
    case 'A':
      if (m == EIN_BOOL && (v->op == EIN_OP_SUB || v->op == EIN_OP_NEG))
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, "use != or not",
                         "bool has no subtraction");
      if (m == EIN_BOOL && v->op == EIN_OP_SIGN)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "bool has no sign");
      break;
    case 'F':
      *arg = *res = eini_float_for(m);
      if (complex_in && (v->op < EIN_OP_EXP || v->op > EIN_OP_TANH)) {
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "%s has no complex version",
                         eini_ops[v->op].name);
      }
      break;
    case 'D': if (eini_kind_of(m) < EINI_KREAL) *arg = *res = EIN_F64; break;
    case 'O':
    case 'M':
      if (complex_in)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, "compare real(z), imag(z) or abs(z)",
                         "complex numbers have no order");
      if (eini_ops[v->op].cls == 'O') *res = EIN_BOOL;
      if (m == EIN_BOOL && (v->op == EIN_OP_FLOORDIV || v->op == EIN_OP_MOD))
        *arg = *res = EIN_I8;
      break;
    case 'C': *res = EIN_BOOL; break;
    case 'B': *arg = *res = EIN_BOOL; break;
    case 'I':
      if (complex_in)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "%s has no complex version",
                         eini_ops[v->op].name);
      break;
    case 'R':
      *res = eini_real_part(m);
      break;
    case 'H':
      if (eini_kind_of(m) >= EINI_KREAL)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, "cast_i64(x) makes one of a float",
                         "rand takes integers: a seed and indices");
      *arg = EIN_I64;
      *res = v->op == EIN_OP_RAND ? EIN_F64 : EIN_I64;
      break;
    default: break;
  }
  return EIN_OK;
}

// x^n with a literal integer n is a short chain of multiplications; the rest is pow in floats.
static ein_status eini_type_pow(eini_arena *a, const eini_typing *ty, eini_expr *out,
                                const eini_node *v, int x, int y, int *id) {
  eini_node xn = out->node[x], yn = out->node[y];
  ein_dtype t = eini_node_dtype(&xn);
  if (xn.weak && yn.weak) {
    int sq = yn.exact && yn.ival == 2;
    *id = sq ? eini_weak_pair(a, out, EIN_OP_SQUARE, v->pos, x, 0)
             : eini_weak_pair(a, out, EIN_OP_POW, v->pos, x, y);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  if (yn.weak && yn.exact && yn.ival >= 0 && yn.ival <= 64) {
    if (t == EIN_BOOL) t = EIN_I8;
    int base = eini_convert(a, out, x, t), r = -1;
    if (base < 0) return EIN_ERR_NO_MEMORY;
    if (yn.ival == 0) {
      r = eini_expr_int(a, out, v->pos, 1);
      *id = r < 0 ? -1 : eini_convert(a, out, r, t);
      return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
    }
    for (int64_t n = yn.ival;; n >>= 1) {
      if (n & 1) {
        r = r < 0 ? base : eini_expr_add(a, out, EIN_OP_MUL, v->pos, r, base, 0);
        if (r < 0) return EIN_ERR_NO_MEMORY;
        out->node[r].dtype = (unsigned char)t;
      }
      if (n == 1) break;
      base = eini_expr_add(a, out, EIN_OP_SQUARE, v->pos, base, 0, 0);
      if (base < 0) return EIN_ERR_NO_MEMORY;
      out->node[base].dtype = (unsigned char)t;
    }
    *id = r;
    return EIN_OK;
  }
  t = eini_meet(&xn, &yn);
  if (eini_kind_of(t) < EINI_KREAL) t = EIN_F64;
  (void)ty;
  int p = eini_convert(a, out, x, t), q = p < 0 ? -1 : eini_convert(a, out, y, t);
  *id = q < 0 ? -1 : eini_expr_add(a, out, EIN_OP_POW, v->pos, p, q, 0);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  out->node[*id].dtype = (unsigned char)t;
  return EIN_OK;
}

// Operations with rules of their own: where, complex, cast, calls.
static ein_status eini_type_special(eini_arena *a, const eini_typing *ty, eini_expr *out,
                                    eini_node v, const int *child, int *id) {
  int c[EINI_ARGS_MAX] = {0};
  int n = eini_node_args(&v);
  ein_dtype t = EIN_NONE;
  if (v.op == EIN_OP_WHERE) {
    t = eini_meet(&out->node[child[1]], &out->node[child[2]]);
  } else if (v.op == EIN_OP_COMPLEX) {
    ein_dtype m = eini_meet(&out->node[child[0]], &out->node[child[1]]);
    if (eini_kind_of(m) == EINI_KCOMPLEX)
      return eini_fail(ty->diag, EIN_ERR_DTYPE, v.pos, 7, NULL, "complex() takes two real numbers");
    t = eini_float_for(m) < EIN_F64 ? EIN_F32 : EIN_F64;
  } else if (v.op == EIN_OP_CALL) {
    t = ty->function[v.arg[0]].dtype;
  } else if (v.op == EIN_OP_CAST && v.arg[1] == 1) {  // typed before: a conversion, no rounding
    *id = eini_convert(a, out, child[0], (ein_dtype)v.dtype);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  } else {  // CAST with the target in dtype
    ein_dtype from = eini_node_dtype(&out->node[child[0]]);
    t = (ein_dtype)v.dtype;
    if (eini_kind_of(from) == EINI_KCOMPLEX && eini_kind_of(t) < EINI_KCOMPLEX && t != EIN_BOOL)
      return eini_fail(ty->diag, EIN_ERR_DTYPE, v.pos, 1, "take real(z), imag(z) or abs(z)",
                       "a complex number has no %s value", ein_dtype_name(t));
    c[0] = eini_convert(a, out, child[0], eini_round_from(from, t));
    *id = c[0] < 0 ? -1 : eini_expr_add(a, out, EIN_OP_ROUNDTO, v.pos, c[0], 0, 0);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    out->node[*id].dtype = (unsigned char)t;
    return EIN_OK;
  }
  for (int i = 0; i < n; i++) {
    c[i] = eini_convert(a, out, child[i], v.op == EIN_OP_WHERE && i == 0 ? EIN_BOOL : t);
    if (c[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  if (v.op == EIN_OP_CALL) {
    *id = eini_expr_call(a, out, v.pos, v.arg[0], n, c);
  } else {
    *id = eini_expr_add(a, out, v.op, v.pos, c[0], c[1], c[2]);
  }
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  if (v.op == EIN_OP_COMPLEX) t = t == EIN_F32 ? EIN_C64 : EIN_C128;
  out->node[*id].dtype = (unsigned char)t;
  return EIN_OK;
}

static ein_status eini_type_node(eini_arena *a, const eini_typing *ty, eini_expr *out, eini_node v,
                                 const int *child, int *id) {
  if (v.op <= EIN_OP_PARAM) {
    *id = eini_expr_add(a, out, v.op, v.pos, v.arg[0], v.arg[1], v.arg[2]);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    eini_node *o = &out->node[*id];
    *o = v;
    if (v.op == EIN_OP_OPERAND) o->dtype = (unsigned char)ty->operand[v.arg[0]];
    if (v.op == EIN_OP_PARAM && ty->param[v.arg[0]].dtype != EIN_NONE)
      o->dtype = (unsigned char)ty->param[v.arg[0]].dtype;
    else if (v.op == EIN_OP_PARAM)  // what it took when the expression was typed before stays
      o->weak = v.dtype == EIN_NONE;
    if (v.op == EIN_OP_INDEX) o->dtype = EIN_I64;
    return EIN_OK;
  }
  if (eini_ops[v.op].cls == 'X') return eini_type_special(a, ty, out, v, child, id);
  int n = eini_ops[v.op].args;
  eini_node literal = v;
  literal.arg[0] = child[0];
  literal.arg[1] = n > 1 ? child[1] : 0;
  if (eini_fold_literal(out, &literal)) {
    *id = eini_expr_add(a, out, EIN_OP_CONST, v.pos, 0, 0, 0);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    out->node[*id] = literal;
    return EIN_OK;
  }
  if (v.op == EIN_OP_IMAG && eini_kind_of(eini_node_dtype(&out->node[child[0]])) < EINI_KCOMPLEX) {
    ein_dtype t = eini_node_dtype(&out->node[child[0]]);  // 0, also for inf and NaN
    int zero = eini_expr_int(a, out, v.pos, 0);
    *id = zero < 0 ? -1 : eini_convert(a, out, zero, t);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  if (v.op == EIN_OP_POW) return eini_type_pow(a, ty, out, &v, child[0], child[1], id);
  if (eini_stays_weak(v.op) && out->node[child[0]].weak && (n == 1 || out->node[child[1]].weak)) {
    *id = eini_weak_pair(a, out, v.op, v.pos, child[0], n > 1 ? child[1] : 0);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  ein_dtype arg, res;
  EINI_TRY(eini_op_types(ty, &v, &out->node[child[0]], n > 1 ? &out->node[child[1]] : NULL, &arg,
                         &res));
  int c[2] = {0, 0};
  for (int i = 0; i < n; i++) {
    c[i] = eini_convert(a, out, child[i], arg);
    if (c[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  int op = v.op;
  if (arg == EIN_BOOL && op == EIN_OP_MUL) op = EIN_OP_AND;
  if (arg == EIN_BOOL && op == EIN_OP_ADD) op = EIN_OP_OR;
  *id = eini_expr_add(a, out, op, v.pos, c[0], c[1], 0);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  out->node[*id].dtype = (unsigned char)res;
  return EIN_OK;
}

// Types an expression. out is a new expression whose last node is the root; its dtype is the
// logical dtype of the result. A literal result is typed i64 or f64.
static ein_status eini_expr_type(eini_arena *a, const eini_typing *ty, const eini_expr *e,
                                 eini_expr *out) {
  memset(out, 0, sizeof *out);
  int *map = EINI_NEW(a, int, e->n);
  if (map == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    int child[EINI_ARGS_MAX] = {0};
    int n = eini_node_args(v);
    for (int k = 0; k < n; k++) child[k] = map[eini_node_arg(e, v, k)];
    EINI_TRY(eini_type_node(a, ty, out, *v, child, &map[i]));
  }
  int root = map[e->n - 1];
  root = eini_convert(a, out, root, eini_node_dtype(&out->node[root]));
  if (root < 0) return EIN_ERR_NO_MEMORY;
  if (root != out->n - 1) {  // the root must be last: the typed literal of an earlier node
    eini_node copy = out->node[root];
    int id = eini_expr_add(a, out, copy.op, copy.pos, 0, 0, 0);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    out->node[id] = copy;
  }
  return EIN_OK;
}
