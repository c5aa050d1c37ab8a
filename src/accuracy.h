// ================================================================================================
// >>accuracy  how far results may be from the truth
// Takes statements; gives bounds that hold for any order of a fold, barring overflow and underflow.
// Relative to what the value would be if all operands and terms were positive.
// ================================================================================================

#define EINI_BOUND_NODES 64

// error: of a value, relative to that; less than 0: nothing is known. plain: that is its own size.
typedef struct eini_bound {
  double error;
  int plain;
} eini_bound;

// What rounding to a dtype changes at most; 0: it is exact, or wraps.
static double eini_half_ulp(ein_dtype t) {
  switch (t) {
    case EIN_F16: return ldexp(1, -11);
    case EIN_BF16: return ldexp(1, -8);
    case EIN_F32: case EIN_C64: return ldexp(1, -24);
    case EIN_F64: case EIN_C128: return ldexp(1, -53);
    default: return 0;
  }
}

// One rounding after another.
static double eini_bound_then(double a, double b) { return a < 0 || b < 0 ? -1 : a + b + a * b; }

// n roundings by u each.
static double eini_bound_times(double u, double n) { return expm1(n * log1p(u)); }

// Of a product; a complex one is four products and two sums.
static double eini_half_ulp_product(ein_dtype t) {
  const double u = eini_half_ulp(t);
  return eini_kind_of(t) == EINI_KCOMPLEX ? eini_bound_times(u, 4) : u;
}

static double eini_bound_cast(double error, ein_dtype from, ein_dtype to) {
  const int integer = eini_kind_of(from) < EINI_KREAL;
  const double u = eini_half_ulp(to);
  if (eini_kind_of(to) < EINI_KREAL) return integer ? error : -1;
  if (eini_kind_of(to) < eini_kind_of(from) && !integer) return -1;
  if (integer && (double)ein_dtype_size(from) * 8 <= 1 - log2(u)) return error;
  return !integer && eini_half_ulp(from) >= u ? error : eini_bound_then(error, u);
}

static double eini_bound_worse(double a, double b) { return a < 0 || b < 0 ? -1 : a > b ? a : b; }

// Of a node whose children have bounds b.
static eini_bound eini_bound_node(const eini_expr *e, const eini_node *v, const eini_bound *b) {
  const ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  const int n = eini_node_args(v);
  eini_bound r = {-1, 0}, x[3] = {{0, 1}, {0, 1}, {0, 1}};
  double worst = 0;
  for (int k = 0; k < n; k++) {
    const eini_bound child = b[eini_node_arg(e, v, k)];
    if (k < 3) x[k] = child;
    worst = eini_bound_worse(worst, child.error);
  }
  if (worst < 0) return r;
  const int integer = eini_kind_of(t) < EINI_KREAL, complex = eini_kind_of(t) == EINI_KCOMPLEX;
  const int small = v->exact && v->ival > -2048 && v->ival < 2048;  // no dtype rounds it
  switch (v->op) {
    case EIN_OP_CONST: r.error = small ? 0 : eini_half_ulp(t), r.plain = 1; break;
    case EIN_OP_PARAM: r.error = eini_half_ulp(t), r.plain = 1; break;
    case EIN_OP_INDEX: case EIN_OP_HASH: case EIN_OP_RAND: r.error = 0, r.plain = 1; break;
    case EIN_OP_NEG: case EIN_OP_CONJ: r = x[0]; break;
    case EIN_OP_CAST: r = x[0];
      r.error = eini_bound_cast(r.error, (ein_dtype)e->node[v->arg[0]].dtype, t); break;
    case EIN_OP_ROUNDTO: r = x[0];
      r.error = eini_bound_then(r.error, eini_half_ulp((ein_dtype)v->dtype)); break;
    case EIN_OP_MUL: r.plain = x[0].plain && x[1].plain;
      r.error = eini_bound_then(eini_bound_then(x[0].error, x[1].error), eini_half_ulp_product(t));
      break;
    case EIN_OP_SQUARE: r.plain = x[0].plain;
      r.error = eini_bound_then(eini_bound_then(worst, worst), eini_half_ulp_product(t)); break;
    case EIN_OP_ADD: case EIN_OP_SUB: r.error = eini_bound_then(worst, eini_half_ulp(t)); break;
    case EIN_OP_DIV: r.plain = x[0].plain;
      if (x[1].plain && x[1].error < 1 && !complex)
        r.error = eini_bound_then(eini_bound_then(x[0].error, x[1].error / (1 - x[1].error)),
                                  eini_half_ulp(t));
      break;
    case EIN_OP_MAX: case EIN_OP_MIN: case EIN_OP_RELU: r.error = worst; break;
    case EIN_OP_REAL: case EIN_OP_IMAG: r.error = worst; break;
    case EIN_OP_ABS: if (eini_kind_of((ein_dtype)e->node[v->arg[0]].dtype) < EINI_KCOMPLEX)
        r = x[0];
      break;
    case EIN_OP_WHERE: r.plain = x[1].plain && x[2].plain;
      if (x[0].error <= 0) r.error = eini_bound_worse(x[1].error, x[2].error);
      break;
    default: if (integer && worst <= 0) r.error = 0;  // comparisons, and what integers do
  }
  return r;
}

// What the fold of a statement adds and keeps its partial results in; EIN_NONE: there is no fold.
static ein_dtype eini_stmt_accumulates(const ein_graph *g, const eini_stmt *s) {
  const ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  if (s->fold == EIN_FOLD_NONE || s->fold == EIN_FOLD_BLOCK) return EIN_NONE;
  return eini_fold_value_dtype(g, s->fold, value, s->numpy);
}

// The error of a statement as it is stored. of: that of each tensor of the graph, less than 0 where
// nothing is known; such operands are taken as they are, and *known becomes 0. slices: into how
// many its folds are cut. Less than 0: nothing is known.
static double eini_stmt_bound(const ein_graph *g, const eini_stmt *s, const double *of,
                              double slices, int *known) {
  eini_bound b[EINI_BOUND_NODES];
  double n = slices;
  *known = 1;
  if (s->expr.n > EINI_BOUND_NODES || s->fold == EIN_FOLD_BLOCK) return -1;
  for (int64_t i = 0; i < s->expr.n; i++) {
    const eini_node *v = &s->expr.node[i];
    if (v->op != EIN_OP_OPERAND) {
      b[i] = eini_bound_node(&s->expr, v, b);
      continue;
    }
    const double e = of[s->operand[v->arg[0]]];
    *known &= e >= 0;
    b[i].error = e > 0 ? e : 0, b[i].plain = e <= 0;
  }
  const ein_dtype root = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  const ein_dtype t = s->fold == EIN_FOLD_NONE ? ein_dtype_compute(root)
                                                : eini_stmt_accumulates(g, s);
  double e = b[s->expr.n - 1].error;
  if (s->fold != EIN_FOLD_NONE) e = eini_bound_cast(e, root, t);
  for (int c = s->nfree; c < s->nindex; c++) n *= (double)s->index[c].extent;
  if (n < 1) n = 1;
  switch (s->fold) {
    case EIN_FOLD_SUM: e = eini_bound_then(e, eini_bound_times(eini_half_ulp(t), n - 1)); break;
    case EIN_FOLD_MEAN: e = eini_bound_then(e, eini_bound_times(eini_half_ulp(t), n)); break;
    case EIN_FOLD_PROD: e = eini_bound_then(e < 0 ? e : eini_bound_times(e, n),
                                        eini_bound_times(eini_half_ulp_product(t), n - 1));
      break;
    case EIN_FOLD_NONE: case EIN_FOLD_MAX: case EIN_FOLD_MIN: break;
    case EIN_FOLD_ANY: case EIN_FOLD_ALL:
    case EIN_FOLD_ARGMAX: case EIN_FOLD_ARGMIN: return e <= 0 ? e : -1;
    default: e = -1;
  }
  return eini_bound_cast(e, t, g->tensor[s->out].dtype);
}

// A tensor that several statements fill has the worst of their bounds.
static void eini_bound_set(double *of, unsigned char *defined, int tensor, double e) {
  of[tensor] = defined[tensor] ? eini_bound_worse(of[tensor], e) : e;
  defined[tensor] = 1;
}
