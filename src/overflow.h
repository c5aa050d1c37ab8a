// ================================================================================================
// >>overflow  integers that do not fit
// Takes a statement and where its tensors lie; goes through its index space point by point with
// integers of 128 bits, and finds an element whose exact value does not fit. What operations of
// real numbers make is taken as they make it, by the same functions as in section code.
// ================================================================================================

// An integer modulo 2^128 and a bound of its magnitude: up to EINI_WIDE_MOST it is exact.
typedef struct eini_wide {
  uint64_t lo, hi;
  double most;
} eini_wide;

#define EINI_WIDE_MOST 8.507059173023462e37  // 2^126

// The value of a node at one point: integers as wide, others at the start of raw, as a chunk.
typedef struct eini_exact {
  eini_wide wide;
  ein_dtype bad;            // what an operation on the way to it did not fit; EIN_NONE: nothing
  double raw[2 * EINI_LANES];
} eini_exact;

// What a statement's check needs to know.
typedef struct eini_watch {
  const ein_graph *g;
  const eini_stmt *s;
  int *slot;                // per operand
  int64_t *offset;          // in elements
  int64_t **stride;         // of every index
  size_t scratch;
} eini_watch;

// One run of a check; x: where in the index space, v: values of nodes.
typedef struct eini_watcher {
  const eini_watch *w;
  char *const *slot;
  const ein_scalar *param;
  int64_t *x;
  eini_exact *v;
} eini_watcher;

static eini_wide eini_wide_of(int64_t v) {
  eini_wide w;
  w.lo = (uint64_t)v;
  w.hi = v < 0 ? ~(uint64_t)0 : 0;
  w.most = fabs((double)v);
  return w;
}

static eini_wide eini_wide_add(eini_wide a, eini_wide b) {
  a.lo += b.lo;
  a.hi += b.hi + (a.lo < b.lo);
  a.most += b.most;
  return a;
}

static eini_wide eini_wide_neg(eini_wide a) {
  a.lo = (uint64_t)0 - a.lo;
  a.hi = ~a.hi + (a.lo == 0);
  return a;
}

static eini_wide eini_wide_mul(eini_wide a, eini_wide b) {
  const uint64_t low = 0xffffffffu, a0 = a.lo & low, a1 = a.lo >> 32, b0 = b.lo & low;
  const uint64_t b1 = b.lo >> 32, p = a0 * b0, q = a1 * b0 + (p >> 32), r = a0 * b1 + (q & low);
  eini_wide w;
  w.lo = r << 32 | (p & low);
  w.hi = a1 * b1 + (q >> 32) + (r >> 32) + a.lo * b.hi + a.hi * b.lo;
  w.most = a.most > 0 && b.most > 0 ? a.most * b.most : 0;
  return w;
}

static int64_t eini_wide_low(const eini_wide *w) {
  int64_t v;
  memcpy(&v, &w->lo, 8);
  return v;
}

// Does an integer dtype hold it? Others, which integers are converted to, hold what 64 bits do.
static int eini_wide_fits(const eini_wide *w, ein_dtype t) {
  const int64_t v = eini_wide_low(w);
  const int bits = 8 * (int)ein_dtype_size(t), kind = eini_kind_of(t);
  if (!(w->most <= EINI_WIDE_MOST) || w->hi != (v < 0 ? ~(uint64_t)0 : 0)) return 0;
  if (kind > EINI_KINT || kind == EINI_KBOOL || bits == 64) return 1;
  const int64_t top = (int64_t)1 << (kind == EINI_KUINT ? bits : bits - 1);
  return v < top && v >= (kind == EINI_KUINT ? 0 : -top);
}

static int eini_is_whole(ein_dtype compute) { return compute == EIN_I32 || compute == EIN_I64; }

static ein_dtype eini_node_type(const eini_expr *e, int i) {
  return ein_dtype_compute((ein_dtype)e->node[i].dtype);
}

static int64_t eini_raw_whole(ein_dtype t, const void *raw) {
  int32_t i;
  int64_t l;
  memcpy(&i, raw, 4);
  memcpy(&l, raw, 8);
  return t == EIN_I32 ? i : l;
}

// An operation that is no ring's needs the value itself: the number, and what does not fit.
static int64_t eini_exact_number(const eini_watcher *k, int i, ein_dtype *bad) {
  const eini_exact *v = &k->v[i];
  const ein_dtype t = eini_node_type(&k->w->s->expr, i);
  if (*bad == EIN_NONE) *bad = v->bad;
  if (*bad == EIN_NONE && !eini_wide_fits(&v->wide, t)) *bad = t;
  return eini_wide_low(&v->wide);
}

// The same as a chunk, of the node's computation type.
static const void *eini_exact_raw(const eini_watcher *k, int i, ein_dtype *bad) {
  eini_exact *v = &k->v[i];
  const ein_dtype t = eini_node_type(&k->w->s->expr, i);
  if (eini_is_whole(t)) eini_fill_value(t, 0, 0, eini_exact_number(k, i, bad), EINI_LANES, v->raw);
  else if (*bad == EIN_NONE) *bad = v->bad;
  return v->raw;
}

static void eini_exact_leaf(const eini_watcher *k, const eini_node *n, eini_exact *v) {
  const eini_stmt *s = k->w->s;
  const ein_dtype t = ein_dtype_compute((ein_dtype)n->dtype);
  const int o = n->arg[0];
  if (n->op == EIN_OP_INDEX) {
    eini_fill_value(t, (double)k->x[o], 0, k->x[o], EINI_LANES, v->raw);
  } else if (n->op == EIN_OP_PARAM) {
    const ein_scalar *p = &k->param[o];
    eini_fill_value(t, p->re, p->im, eini_f64_to_i64(p->re), EINI_LANES, v->raw);
  } else if (n->op == EIN_OP_CONST) {
    eini_fill_value(t, n->re, n->im, n->ival, EINI_LANES, v->raw);
  } else {
    const ein_dtype stored = k->w->g->tensor[s->operand[o]].dtype;
    int64_t at = k->w->offset[o];
    for (int i = 0; i < s->nindex; i++) at += k->w->stride[o][i] * k->x[i];
    const char *src = k->slot[k->w->slot[o]] + at * (int64_t)ein_dtype_size(stored);
    const eini_chunk_fn load = eini_storage_find(NULL, EIN_OP_OPERAND, stored);
    uint16_t lanes[EINI_LANES] = {0};
    if (load != NULL) {
      memcpy(lanes, src, ein_dtype_size(stored));
      load(EINI_LANES, lanes, lanes, lanes, v->raw);
    } else {
      memcpy(v->raw, src, ein_dtype_size(stored));
      if (stored == EIN_BOOL) *(uint8_t *)v->raw = *(uint8_t *)v->raw != 0;
    }
  }
  if (eini_is_whole(t)) v->wide = eini_wide_of(eini_raw_whole(t, v->raw));
}

// Integers of integers, all but sums and products.
static eini_wide eini_exact_whole(int op, int64_t x, int64_t y) {
  switch (op) {
    case EIN_OP_FLOORDIV:
      return y == -1 ? eini_wide_neg(eini_wide_of(x)) : eini_wide_of(eini_idiv(x, y));
    case EIN_OP_MOD: return eini_wide_of(eini_imod(x, y));
    case EIN_OP_MAX: return eini_wide_of(x > y ? x : y);
    case EIN_OP_MIN: return eini_wide_of(x < y ? x : y);
    case EIN_OP_RELU: return eini_wide_of(x > 0 ? x : 0);
    case EIN_OP_ABS: return x < 0 ? eini_wide_neg(eini_wide_of(x)) : eini_wide_of(x);
    case EIN_OP_SIGN: return eini_wide_of((x > 0) - (x < 0));
    default: return eini_wide_of(x);  // floor, conj, .. change nothing
  }
}

// Conversions, in two steps where there is no direct one.
static void eini_exact_convert(ein_dtype from, ein_dtype to, const void *src, void *dst) {
  const eini_chunk_fn fn = eini_cast_table[eini_type_column(from)][eini_type_column(to)];
  double mid[2 * EINI_LANES];
  if (from == to) {
    memcpy(dst, src, sizeof mid);
  } else if (fn != NULL) {
    fn(EINI_LANES, src, src, src, dst);
  } else {
    const ein_dtype by = to == EIN_C64 ? EIN_F32 : to == EIN_C128 ? EIN_F64 : eini_real_part(from);
    eini_exact_convert(from, by, src, mid);
    eini_exact_convert(by, to, mid, dst);
  }
}

static int eini_exact_ring(int op) {
  return op == EIN_OP_ADD || op == EIN_OP_SUB || op == EIN_OP_MUL || op == EIN_OP_NEG ||
         op == EIN_OP_SQUARE;
}

// A sum or product of integers: exact modulo 2^128, whatever was too large on the way.
static void eini_exact_arith(const eini_watcher *k, const eini_node *n, eini_exact *v) {
  const eini_exact *a = &k->v[n->arg[0]], *b = eini_ops[n->op].args > 1 ? &k->v[n->arg[1]] : a;
  v->bad = a->bad != EIN_NONE ? a->bad : b->bad;
  switch (n->op) {
    case EIN_OP_ADD: v->wide = eini_wide_add(a->wide, b->wide); break;
    case EIN_OP_SUB: v->wide = eini_wide_add(a->wide, eini_wide_neg(b->wide)); break;
    case EIN_OP_NEG: v->wide = eini_wide_neg(a->wide); break;
    default: v->wide = eini_wide_mul(a->wide, b->wide); break;
  }
}

static ein_status eini_exact_call(const eini_watcher *k, const eini_expr *e, const eini_node *n,
                                  eini_exact *v) {
  const ein_function *f = &k->w->g->function[n->arg[0]];
  const void *in[EINI_ARGS_MAX];
  for (int i = 0; i < n->arg[2]; i++) in[i] = eini_exact_raw(k, eini_node_arg(e, n, i), &v->bad);
  f->fn(1, in, v->raw, f->user);
  return EIN_OK;
}

// Everything that gives no integer, and integers made of reals: by the functions of chunks.
static ein_status eini_exact_chunk(const eini_watcher *k, const eini_expr *e, const eini_node *n,
                                   eini_exact *v) {
  const ein_dtype from = eini_node_type(e, n->arg[0]), t = ein_dtype_compute((ein_dtype)n->dtype);
  const int args = eini_ops[n->op].args;
  const void *in[3] = {NULL, NULL, NULL};
  if (n->op == EIN_OP_CALL) return eini_exact_call(k, e, n, v);
  for (int i = 0; i < 3; i++)
    in[i] = i < args ? eini_exact_raw(k, n->arg[i], &v->bad) : in[0];
  if (n->op == EIN_OP_CAST || eini_is_noop(n, from)) {
    eini_exact_convert(from, t, in[0], v->raw);
    return EIN_OK;
  }
  const eini_chunk_fn fn =
      n->op == EIN_OP_ROUNDTO ? eini_round_find(from, (ein_dtype)n->dtype)
                               : eini_chunk_find(NULL, n->op, n->op == EIN_OP_WHERE ? t : from);
  if (fn == NULL) return EIN_ERR_INTERNAL;
  fn(EINI_LANES, in[0], in[1], in[2], v->raw);
  return EIN_OK;
}

static ein_status eini_exact_node(const eini_watcher *k, int i) {
  const eini_expr *e = &k->w->s->expr;
  const eini_node *n = &e->node[i];
  const ein_dtype t = ein_dtype_compute((ein_dtype)n->dtype);
  const int args = eini_node_args(n);
  eini_exact *v = &k->v[i];
  v->bad = EIN_NONE;
  if (args == 0 && n->op != EIN_OP_CALL) {
    eini_exact_leaf(k, n, v);
    return EIN_OK;
  }
  const ein_dtype from = args > 0 ? eini_node_type(e, eini_node_arg(e, n, 0)) : t;
  if (eini_is_whole(t) && n->op == EIN_OP_WHERE) {  // only what is chosen counts
    const eini_exact *c = &k->v[n->arg[0]];
    const eini_exact *chosen = &k->v[n->arg[*(const uint8_t *)(const void *)c->raw ? 1 : 2]];
    v->wide = chosen->wide;
    v->bad = c->bad != EIN_NONE ? c->bad : chosen->bad;
    return EIN_OK;
  }
  if (!eini_is_whole(t) || !eini_is_whole(from) || n->op == EIN_OP_CALL) {
    EINI_TRY(eini_exact_chunk(k, e, n, v));
    if (eini_is_whole(t)) v->wide = eini_wide_of(eini_raw_whole(t, v->raw));
    return EIN_OK;
  }
  if (eini_exact_ring(n->op)) {
    eini_exact_arith(k, n, v);
    return EIN_OK;
  }
  if (n->op == EIN_OP_CAST || n->op == EIN_OP_ROUNDTO) {
    const ein_dtype to = n->op == EIN_OP_CAST ? t : (ein_dtype)n->dtype;
    v->wide = k->v[n->arg[0]].wide;
    v->bad = k->v[n->arg[0]].bad;
    if (v->bad == EIN_NONE && (n->op == EIN_OP_ROUNDTO || t != from) &&
        !eini_wide_fits(&v->wide, to))
      v->bad = to;
    return EIN_OK;
  }
  const int64_t x = eini_exact_number(k, n->arg[0], &v->bad);
  v->wide = eini_exact_whole(n->op, x, args > 1 ? eini_exact_number(k, n->arg[1], &v->bad) : 0);
  return EIN_OK;
}

// The next values of indices from .. to; 0: there are no more.
static int eini_watch_next(const eini_stmt *s, int64_t *x, int from, int to) {
  for (int i = to - 1; i >= from; i--) {
    if (++x[i] < s->index[i].extent) return 1;
    x[i] = 0;
  }
  return 0;
}

// Takes the value at a point into that of its element.
static void eini_watch_fold(const eini_stmt *s, eini_exact *sum, const eini_exact *v) {
  if (sum->bad == EIN_NONE) sum->bad = v->bad;
  if (s->fold == EIN_FOLD_SUM) sum->wide = eini_wide_add(sum->wide, v->wide);
  else if (s->fold == EIN_FOLD_PROD) sum->wide = eini_wide_mul(sum->wide, v->wide);
  else sum->wide = v->wide;
}

static ein_status eini_watch_fail(const eini_watcher *k, const eini_exact *v, ein_dtype t,
                                  char *error, size_t size) {
  const eini_stmt *s = k->w->s;
  const eini_tensor *out = &k->w->g->tensor[s->out];
  eini_text m = eini_text_of(error, error == NULL ? 0 : size);
  if (v->bad != EIN_NONE) eini_say(&m, "an integer on the way to '%s", out->name);
  else eini_say(&m, "the exact value of '%s", out->name);
  for (int r = 0; r < s->out_map.rows; r++) {
    int64_t at = s->out_map.offset[r];
    for (int e = s->out_map.first[r]; e < s->out_map.first[r + 1]; e++)
      at += s->out_map.term[e].coef * k->x[s->out_map.term[e].index];
    eini_say(&m, "%s%lld", r == 0 ? "[" : ",", (long long)at);
  }
  eini_say(&m, s->out_map.rows > 0 ? "]'" : "'");
  if (v->bad == EIN_NONE && eini_wide_fits(&v->wide, EIN_I64))
    eini_say(&m, ", %lld,", (long long)eini_wide_low(&v->wide));
  else if (v->bad == EIN_NONE && v->wide.most <= EINI_WIDE_MOST)
    eini_say(&m, ", about %.10g,", ldexp((double)v->wide.hi, 64) + (double)v->wide.lo -
                                       (v->wide.hi >> 63 ? ldexp(1, 128) : 0));
  eini_say(&m, " does not fit %s", ein_dtype_name(v->bad != EIN_NONE ? v->bad : t));
  return EIN_ERR_OVERFLOW;
}

// Checks every element of a statement; the message names the first that does not fit.
static ein_status eini_watch_run(const eini_watch *w, char *const *slot, const ein_scalar *param,
                                 char *scratch, char *error, size_t size) {
  const eini_stmt *s = w->s;
  const int root = (int)s->expr.n - 1, linear = s->fold == EIN_FOLD_SUM || s->fold == EIN_FOLD_PROD;
  const ein_dtype t = eini_node_type(&s->expr, root), stored = w->g->tensor[s->out].dtype;
  const int whole = eini_is_whole(t), picks = whole && !linear && s->fold != EIN_FOLD_NONE;
  size_t used = 0;
  eini_watcher k;
  k.w = w;
  k.slot = slot;
  k.param = param;
  k.x = (int64_t *)(void *)eini_nest_carve(scratch, &used, (size_t)s->nindex * 8);
  k.v = (eini_exact *)(void *)(scratch + used);
  memset(k.x, 0, (size_t)s->nindex * 8);
  memset(k.v, 0, (size_t)(root + 1) * sizeof *k.v);
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  do {
    eini_exact sum;
    sum.wide = eini_wide_of(s->fold == EIN_FOLD_PROD);
    sum.bad = EIN_NONE;
    do {
      for (int i = 0; i <= root; i++) EINI_TRY(eini_exact_node(&k, i));
      eini_exact *v = &k.v[root];
      if (picks) (void)eini_exact_number(&k, root, &v->bad);
      eini_watch_fold(s, &sum, v);
    } while (eini_watch_next(s, k.x, s->nfree, s->nindex));
    if (sum.bad != EIN_NONE) return eini_watch_fail(&k, &sum, t, error, size);
    if (!whole || picks) continue;
    if (!eini_wide_fits(&sum.wide, t)) return eini_watch_fail(&k, &sum, t, error, size);
    if (!eini_wide_fits(&sum.wide, stored)) return eini_watch_fail(&k, &sum, stored, error, size);
  } while (eini_watch_next(s, k.x, 0, s->nfree));
  return EIN_OK;
}

// Can an integer of the statement be one that does not fit?
static int eini_watch_needed(const ein_graph *g, const eini_stmt *s) {
  const eini_expr *e = &s->expr;
  const int root = (int)e->n - 1, whole = eini_is_whole(eini_node_type(e, root));
  if (s->fold == EIN_FOLD_BLOCK) return 0;
  int needed = whole && (s->fold == EIN_FOLD_SUM || s->fold == EIN_FOLD_PROD);
  needed |= whole && e->node[root].dtype != (unsigned char)g->tensor[s->out].dtype;
  for (int i = 0; i <= root && !needed; i++) {
    const int op = e->node[i].op;
    needed = eini_is_whole(eini_node_type(e, i)) && eini_node_args(&e->node[i]) > 0 &&
             op != EIN_OP_WHERE && op != EIN_OP_MAX && op != EIN_OP_MIN && op != EIN_OP_CALL;
  }
  return needed;
}

// The check of a statement, or NULL where nothing can overflow.
static ein_status eini_watch_make(const eini_lowering *lo, const eini_stmt *s, eini_watch **out) {
  *out = NULL;
  if (!eini_watch_needed(lo->g, s)) return EIN_OK;
  eini_watch *w = EINI_NEW(lo->a, eini_watch, 1);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  w->g = lo->g;
  w->s = s;
  w->slot = EINI_NEW(lo->a, int, s->noperand);
  w->offset = EINI_NEW(lo->a, int64_t, s->noperand);
  w->stride = EINI_NEW(lo->a, int64_t *, s->noperand);
  if (w->slot == NULL || w->offset == NULL || w->stride == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    const eini_seat *h = &lo->seat[s->operand[k]];
    w->slot[k] = h->slot;
    w->stride[k] = EINI_NEW(lo->a, int64_t, s->nindex);
    if (w->stride[k] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_access_strides(s, s->nindex, &s->proj[k], NULL, h->stride, w->stride[k],
                                 &w->offset[k]));
  }
  (void)eini_nest_carve(NULL, &w->scratch, (size_t)s->nindex * 8);
  w->scratch += (size_t)s->expr.n * sizeof(eini_exact);
  *out = w;
  return EIN_OK;
}
