// ================================================================================================
// >>product-lower  which statements are contractions
// Takes a statement; gives the task of a contraction and the kernels that may run it, or that it is
// none.
// ================================================================================================

// A factor of a contraction: the operands it reads, and its expression over them. The values of an
// index are an operand, too.
typedef struct eini_half {
  int nop, *op;             // an operand of the statement, or -1 less an index
  char *uses;               // per index: does an operand depend on it?
  eini_expr expr;
} eini_half;

static ein_status eini_half_of(eini_arena *a, const eini_stmt *s, int root, eini_half *h) {
  const eini_expr *e = &s->expr;
  const int all = s->noperand + s->nindex;
  int *at = EINI_NEW(a, int, root + 1), *number = EINI_NEW(a, int, all);
  char *need = EINI_NEW(a, char, root + 1);
  memset(h, 0, sizeof *h);
  h->op = EINI_NEW(a, int, all);
  h->uses = EINI_NEW(a, char, s->nindex);
  if (at == NULL || number == NULL || need == NULL || h->op == NULL || h->uses == NULL)
    return EIN_ERR_NO_MEMORY;
  eini_mark_needed(e, root, need);
  for (int i = 0; i <= root; i++) {
    if (!need[i]) continue;
    if ((at[i] = eini_node_copy(a, e, i, at, &h->expr)) < 0) return EIN_ERR_NO_MEMORY;
    const int value = e->node[i].op == EIN_OP_INDEX, k = e->node[i].arg[0];
    if (e->node[i].op != EIN_OP_OPERAND && !value) continue;
    int *known = &number[value ? s->noperand + k : k];
    if (*known == 0) {
      h->op[h->nop] = value ? -1 - k : k;
      *known = ++h->nop;
      if (value) h->uses[k] = 1;
      for (int t = 0; !value && t < s->proj[k].first[s->proj[k].rows]; t++)
        h->uses[s->proj[k].term[t].index] = 1;
    }
    h->expr.node[at[i]].op = EIN_OP_OPERAND;
    h->expr.node[at[i]].arg[0] = *known - 1;
  }
  return EIN_OK;
}

// The pair of a fold and what is folded; *x and *y become the roots of the two factors. -1: none.
static int eini_pair_match(const eini_stmt *s, int *x, int *y) {
  static const struct { int fold, outer, inner; ein_pair pair; } table[] = {
      {EIN_FOLD_SUM, 0, EIN_OP_MUL, EIN_PAIR_SUM_MUL},
      {EIN_FOLD_NONE, 0, EIN_OP_MUL, EIN_PAIR_SUM_MUL},
      {EIN_FOLD_MIN, 0, EIN_OP_ADD, EIN_PAIR_MIN_ADD},
      {EIN_FOLD_MAX, 0, EIN_OP_ADD, EIN_PAIR_MAX_ADD},
      {EIN_FOLD_ANY, 0, EIN_OP_AND, EIN_PAIR_ANY_AND},
      {EIN_FOLD_SUM, EIN_OP_SQUARE, EIN_OP_SUB, EIN_PAIR_SUM_SQDIFF},
      {EIN_FOLD_SUM, EIN_OP_ABS, EIN_OP_SUB, EIN_PAIR_SUM_ABSDIFF},
      {EIN_FOLD_MAX, EIN_OP_ABS, EIN_OP_SUB, EIN_PAIR_MAX_ABSDIFF}};
  const eini_node *root = &s->expr.node[s->expr.n - 1];
  const ein_dtype t = ein_dtype_compute((ein_dtype)root->dtype);
  const int pairs = eini_kind_of(t) == EINI_KCOMPLEX;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const eini_node *v = root;
    int fold = table[i].fold, op = table[i].inner;
    if (t == EIN_BOOL && i < 2) {  // NumPy's sums and products of bools are or and and
      if (!s->numpy) continue;
      if (s->fold == EIN_FOLD_SUM && root->op == EIN_OP_MUL) return -1;
      continue;
    }
    if (s->fold != fold || (table[i].outer != 0 && v->op != table[i].outer)) continue;
    if (table[i].outer != 0) v = &s->expr.node[v->arg[0]];
    if (v->op != op || (pairs && i > 1)) continue;
    if (ein_dtype_compute((ein_dtype)v->dtype) != t) continue;
    *x = v->arg[0];
    *y = v->arg[1];
    return (int)table[i].pair;
  }
  return -1;
}

// A sum or an extremum over one operand as it is: a matrix times ones, or plus zeros that change no
// zero, which kernels read as fast as memory allows.
static int eini_plain_sum(const eini_stmt *s) {
  ein_dtype t = ein_dtype_compute((ein_dtype)s->expr.node[s->expr.n - 1].dtype);
  int folds = s->fold == EIN_FOLD_SUM || s->fold == EIN_FOLD_MAX || s->fold == EIN_FOLD_MIN;
  return folds && s->expr.n == 1 && s->noperand == 1 && t != EIN_BOOL &&
         s->expr.node[0].op == EIN_OP_OPERAND && !eini_stmt_empty(s, 0, s->nindex);
}

static ein_status eini_sum_match(eini_lowering *lo, const eini_stmt *s, eini_half *v,
                                 ein_pair *pair, int *yes) {
  const ein_dtype t = (ein_dtype)s->expr.node[0].dtype;
  const double work = eini_points(s, NULL, 0, s->nindex);
  if ((work < EINI_SUM_WORK && !s->order) || work > 9e18) return EIN_OK;
  EINI_TRY(eini_half_of(&lo->g->arena, s, 0, &v[0]));
  memset(&v[1], 0, sizeof v[1]);
  v[1].uses = EINI_NEW(&lo->g->arena, char, s->nindex);
  if (v[1].uses == NULL) return EIN_ERR_NO_MEMORY;
  int sum = s->fold == EIN_FOLD_SUM, one = eini_expr_int(lo->a, &v[1].expr, -1, sum);
  if (one < 0) return EIN_ERR_NO_MEMORY;
  v[1].expr.node[one].dtype = (unsigned char)ein_dtype_compute(t);
  v[1].expr.node[one].re = sum ? 1 : -0.0;
  *pair = sum ? EIN_PAIR_SUM_MUL : s->fold == EIN_FOLD_MAX ? EIN_PAIR_MAX_ADD : EIN_PAIR_MIN_ADD;
  *yes = 1;
  return EIN_OK;
}

// Values of an index that a contraction has in a table at most.
#define EINI_VALUES_MOST 65536

// Is the statement a contraction that the kernels should be asked about? Fills the two factors.
static ein_status eini_contract_match(eini_lowering *lo, const eini_stmt *s, eini_half *v,
                                      ein_pair *pair, int *yes) {
  int x = 0, y = 0, found = eini_pair_match(s, &x, &y);
  const eini_expr *e = &s->expr;
  *yes = 0;
  if (s->carry != NULL) return EIN_OK;
  // Products alone keep -0, which a sum from 0 does not: no kernel that some blocks may not get.
  if (lo->g->ordered && (s->order ? !(s->order & EINI_ORDER_TILES) : s->fold == EIN_FOLD_NONE))
    return EIN_OK;
  if (lo->nkernels > 0 && eini_plain_sum(s)) return eini_sum_match(lo, s, v, pair, yes);
  if (found < 0 || eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int values = 0;  // of indices
  for (int64_t i = 0; i < e->n; i++) {
    if (e->node[i].op != EIN_OP_INDEX) continue;
    if (s->index[e->node[i].arg[0]].extent > EINI_VALUES_MOST) return EIN_OK;
    values = 1;
  }
  EINI_TRY(eini_half_of(&lo->g->arena, s, x, &v[0]));
  EINI_TRY(eini_half_of(&lo->g->arena, s, y, &v[1]));
  if (v[0].nop == 0 || v[1].nop == 0) return EIN_OK;
  double m = 1, n = 1, k = 1, work = 1;
  for (int i = 0; i < s->nindex; i++) {
    int p = v[0].uses[i], q = v[1].uses[i];
    double ext = (double)s->index[i].extent;
    work *= ext;
    if (work > 9e18) return EIN_OK;
    if (i >= s->nfree) k *= ext;
    else if (p && !q) m *= ext;
    else if (q && !p) n *= ext;
  }
  *pair = (ein_pair)found;
  if (values && !s->order && (m < 2 || n < 2)) return EIN_OK;  // made once each by a map, too
  if (s->order) *yes = 1;
  else if (lo->nkernels > 0) *yes = k > 1 || (m > 1 && n > 1);
  else *yes = s->fold == EIN_FOLD_SUM && found == EIN_PAIR_SUM_MUL && k > 1 &&
              (m * n > 1 || work <= 4096);
  if (s->fold == EIN_FOLD_SUM && work <= 256 && v[0].nop == 1 && v[1].nop == 1) *yes = 1;
  return EIN_OK;
}

// A node without the conversions that change nothing in a store of `type`: those between integers
// no narrower wrap as it does.
static const eini_node *eini_scaled_node(const eini_expr *e, int id, ein_dtype type) {
  const eini_node *v = &e->node[id];
  for (;; v = &e->node[v->arg[0]]) {
    const ein_dtype t = (ein_dtype)v->dtype;
    const int ints = eini_kind_of(type) == EINI_KINT && eini_kind_of(t) == EINI_KINT &&
                     ein_dtype_compute(t) == t && t >= type;
    if (t != type && !ints) return NULL;
    if (v->op != EIN_OP_CAST && (v->op != EIN_OP_ROUNDTO || ein_dtype_compute(t) != t)) return v;
  }
}

// Is it operand `op`, or a constant or param times it?
static int eini_scaled_term(const eini_expr *e, int id, int op, ein_dtype type, eini_factor *f) {
  const eini_node *v = eini_scaled_node(e, id, type), *x[2] = {v, NULL};
  if (v != NULL && v->op == EIN_OP_MUL) {
    x[0] = eini_scaled_node(e, v->arg[0], type), x[1] = eini_scaled_node(e, v->arg[1], type);
    if (x[0] == NULL || x[1] == NULL) return 0;
    if (x[0]->op != EIN_OP_OPERAND) v = x[0], x[0] = x[1], x[1] = v;
    if (x[1]->op != EIN_OP_CONST && x[1]->op != EIN_OP_PARAM) return 0;
  }
  if (x[0] == NULL || x[0]->op != EIN_OP_OPERAND || x[0]->arg[0] != op) return 0;
  memset(f, 0, sizeof *f);
  f->from.param = -1;
  if (x[1] == NULL) return 1;
  f->given = 1;
  if (x[1]->op == EIN_OP_PARAM) f->from.param = x[1]->arg[0];
  f->from.re = eini_literal_value(x[1]), f->from.im = x[1]->im, f->from.ival = x[1]->ival;
  return 1;
}

// Is it where(b == 0, 0, b * operand 1), b a param?
static int eini_scaled_where(const eini_expr *e, int id, ein_dtype type, eini_factor *f) {
  const eini_node *v = eini_scaled_node(e, id, type), *x = v, *y;
  if (v == NULL || v->op != EIN_OP_WHERE || !eini_scaled_term(e, v->arg[2], 1, type, f)) return 0;
  const eini_node *q = &e->node[v->arg[0]], *none = eini_scaled_node(e, v->arg[1], type);
  if (q->op != EIN_OP_EQ || none == NULL || none->op != EIN_OP_CONST || none->re != 0) return 0;
  x = &e->node[q->arg[0]], y = &e->node[q->arg[1]];
  f->skip = f->given && x->op == EIN_OP_PARAM && x->arg[0] == f->from.param &&
            y->op == EIN_OP_CONST && y->re == 0 && y->im == 0;
  return f->skip;
}

// Is what follows the folds alpha * fold + beta * (extra 0), all in the compute dtype?
static int eini_scaled_match(const eini_expr *e, const eini_task *t, ein_dtype type,
                             eini_factor *f) {
  const ein_dtype to = t->ref[t->out].dtype;
  if (t->nextra > 1 || t->nepi_iota > 0 || type == EIN_BOOL || to != type) return 0;
  if (t->nextra == 0) return eini_scaled_term(e, (int)e->n - 1, 0, type, &f[0]);
  if (t->ref[t->extra].dtype != type) return 0;
  const eini_node *v = eini_scaled_node(e, (int)e->n - 1, type);
  if (v == NULL || v->op != EIN_OP_ADD) return 0;
  const int first = eini_scaled_term(e, v->arg[0], 0, type, &f[0]);
  if (!first && !eini_scaled_term(e, v->arg[1], 0, type, &f[0])) return 0;
  const int other = v->arg[first];
  if (eini_scaled_where(e, other, type, &f[1])) return 1;
  if (!eini_scaled_term(e, other, 1, type, &f[1])) return 0;
  if (f[1].given) return 1;
  f[1].given = 1, f[1].from.re = 1, f[1].from.ival = 1;  // which loses complex infinities
  return eini_kind_of(type) != EINI_KCOMPLEX;
}

// Streams of a contraction, loops merged and ordered. t->reduced holds what they are axes of.
static ein_status eini_contract_streams(const eini_lowering *lo, const eini_stmt *s,
                                        const eini_stmt *f, int via, const eini_half *v,
                                        eini_task *t) {
  eini_epilogue ep;
  t->nop = v[0].nop + v[1].nop;
  t->pos = -1;
  EINI_TRY(eini_epilogue_begin(lo, s, f, via, t->nop, t, &ep));
  for (int i = 0; i < s->nindex; i++) {
    int p = v[0].uses[i], q = v[1].uses[i];
    t->reduced[i] = i >= s->nfree ? EINI_AXES_K : p && !q ? EINI_AXES_M
                    : q && !p ? EINI_AXES_N : EINI_AXES_BATCH;
  }
  for (int side = 0, stream = 0; side < 2; side++) {
    t->contract->first[side] = stream;
    for (int k = 0; k < v[side].nop; k++, stream++) {
      const int op = v[side].op[k], value = -1 - op;
      if (op < 0) {
        eini_stream_iotas(lo, t, stream, 1, &value, NULL);
        continue;
      }
      EINI_TRY(eini_stream_tensor(lo, s, t, stream, s->operand[op], &s->proj[op], NULL));
      if (lo->walk.nloop > 0 && !lo->local[s->operand[op]])
        (side ? &t->contract->c.q : &t->contract->c.p)->whole +=
            eini_tensor_bytes(&lo->g->tensor[s->operand[op]]);
    }
  }
  EINI_TRY(eini_epilogue_end(lo, s, f, &ep, t->contract->c.type, t));
  eini_contract_task *ct = t->contract;
  ct->c.scaled = f != NULL && !ct->c.ordered &&
                 eini_scaled_match(&ep.e, t, ct->c.type, ct->factor);
  return EIN_OK;
}

// Pointers to the strides of n streams from `first` on, for the axes that begin at `start`.
static ein_status eini_axes_strides(eini_arena *a, const eini_task *t, int first, int n, int start,
                                    const int64_t ***list) {
  *list = EINI_NEW(a, const int64_t *, n + 1);
  if (*list == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) (*list)[k] = t->stride + (int64_t)(first + k) * t->nindex + start;
  return EIN_OK;
}

// Is the expression the product of all its operands, each once, as they are stored?
static int eini_is_product(const eini_half *v, const ein_dtype *dtype, ein_dtype type) {
  int seen = 0;
  for (int k = 0; k < v->nop; k++) {
    if (dtype[k] != type) return 0;
  }
  for (int64_t i = 0; i < v->expr.n; i++) {
    const eini_node *x = &v->expr.node[i];
    if (x->op != EIN_OP_MUL && x->op != EIN_OP_OPERAND) return 0;
    if (x->dtype != (unsigned char)type) return 0;
    seen += x->op == EIN_OP_OPERAND;
  }
  return v->nop > 1 && seen == v->nop;
}

// Is the value an operand's, converted to another computation type at most?
static int eini_is_conversion(const ein_code *code) {
  for (int i = 0; i < code->nstep; i++)
    if (code->step[i].op != (i == 0 ? EIN_OP_OPERAND : EIN_OP_CAST)) return 0;
  return code->nstep > 0;
}

// Is a stream an input that is named as constant? What a group takes blocks of is not.
static int eini_stream_constant(const eini_lowering *lo, const eini_task *t, int stream) {
  const int slot = t->ref[stream].slot;
  if (lo->constant == NULL || lo->walk.nloop > 0 || slot < 0) return 0;
  for (int64_t k = 0; k < lo->g->ntensor; k++) {
    const eini_tensor *x = &lo->g->tensor[k];
    if (x->role == EIN_ROLE_INPUT && lo->seat[k].slot == slot)
      return eini_listed(lo->constant, x->name);
  }
  return 0;
}

static ein_status eini_contract_sides(const eini_lowering *lo, eini_task *t, eini_half *v,
                                      const int *start) {
  eini_contract_task *ct = t->contract;
  for (int side = 0; side < 2; side++) {
    ein_side *s = side ? &ct->c.q : &ct->c.p;
    int first = ct->first[side], n = v[side].nop;
    int row = start[side ? EINI_AXES_N : EINI_AXES_M];
    EINI_TRY(eini_axes_strides(lo->a, t, first, n, row, &ct->stride[side][0]));
    EINI_TRY(eini_axes_strides(lo->a, t, first, n, start[EINI_AXES_K], &ct->stride[side][1]));
    EINI_TRY(eini_axes_strides(lo->a, t, first, n, start[EINI_AXES_BATCH], &ct->stride[side][2]));
    ein_dtype *od = ct->dtype[side] = EINI_NEW(lo->a, ein_dtype, n + 1);
    if (od == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < n; k++) od[k] = t->ref[first + k].dtype;
    int product = eini_is_product(&v[side], od, ct->c.type);
    EINI_TRY(eini_expr_to(lo->a, &v[side].expr, ct->c.type));
    EINI_TRY(eini_code_compile(lo->a, &v[side].expr, od, lo->g->function, lo->fast,
                               &ct->code[side]));
    s->nop = n;
    s->dtype = od;
    s->base = EINI_NEW(lo->a, const char *, n + 1);  // of NULLs, while planning
    if (s->base == NULL) return EIN_ERR_NO_MEMORY;
    s->row = ct->stride[side][0];
    s->k = ct->stride[side][1];
    s->batch = ct->stride[side][2];
    s->form = n == 1 && ct->code[side].plain == 0 && ct->code[side].type == ct->c.type
                  ? EIN_FORM_PLAIN : product ? EIN_FORM_PRODUCT
              : n == 1 && eini_is_conversion(&ct->code[side])
                  ? EIN_FORM_CONVERT : EIN_FORM_FUNCTION;
    s->conj = s->form == EIN_FORM_PLAIN && ct->code[side].conj;
    s->code = &ct->code[side];
    s->constant = n == 1 && eini_stream_constant(lo, t, first);
  }
  return EIN_OK;
}

// In deterministic mode the first that can.
static ein_status eini_contract_choose(const eini_lowering *lo, eini_task *t) {
  ein_contract *c = &t->contract->c;
  const int *first = t->contract->first;
  int *stream = EINI_NEW(lo->a, int, t->nstream + 1), n = 0;
  if (stream == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < c->p.nop; k++) stream[n++] = first[0] + k;
  for (int k = 0; k < c->q.nop; k++) stream[n++] = first[1] + k;
  for (int k = 0; k < c->nextra; k++) stream[n++] = t->extra + k;
  stream[n++] = t->out;
  EINI_TRY(eini_stay_flags(lo, t, n, stream, &c->away));
  t->candidate = EINI_NEW(lo->a, eini_candidate, lo->nkernels + 1);
  if (t->candidate == NULL) return EIN_ERR_NO_MEMORY;
  c->rates = lo->given;
  for (int i = 0; i <= lo->nkernels; i++) {
    const ein_kernels *p = i < lo->nkernels ? lo->kernels[i] : NULL;
    if (!c->ordered || (t->ncandidate == 0 && (p == NULL || p->ordered))) eini_ask(lo, t, p, c);
  }
  c->rates = NULL;  // they may go before the plan does
  const int64_t *grid = t->choice.grid;
  t->parts = grid[0] * grid[1] * grid[2] <= lo->width ? (int)(grid[0] * grid[1] * grid[2]) : 1;
  return EIN_OK;
}

// Q gets the factor with the index along which the output is densest, so that the order in which
// the factors are written does not matter.
static ein_status eini_contract_orient(const eini_lowering *lo, const eini_stmt *s,
                                       const eini_stmt *f, int via, eini_half *v) {
  const eini_stmt *last = f != NULL ? f : s;
  int64_t *stride = EINI_NEW(lo->a, int64_t, last->nindex), offset, least = INT64_MAX;
  int *column = NULL, swap = 0;
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_access_strides(last, last->nfree, &last->out_map, NULL,
                               lo->seat[last->out].stride, stride, &offset));
  if (f != NULL) EINI_TRY(eini_fused_columns(lo, s, f, via, &column));
  for (int c = 0; c < last->nindex; c++) {
    int i = column != NULL ? column[c] : c, p = i < 0 ? 0 : v[0].uses[i];
    if (i < 0 || i >= s->nfree || s->index[i].extent < 2) continue;
    if (p == v[1].uses[i]) continue;
    if (eini_abs64(stride[c]) < least) least = eini_abs64(stride[c]), swap = p;
  }
  const eini_half x = v[0];
  if (swap) v[0] = v[1], v[1] = x;
  return EIN_OK;
}

static ein_status eini_contract_extra(const eini_lowering *lo, eini_task *t) {
  eini_contract_task *ct = t->contract;
  ct->extra_dtype = EINI_NEW(lo->a, ein_dtype, t->nextra + 1);
  ct->c.extra_base = EINI_NEW(lo->a, const char *, t->nextra + 1);
  if (ct->extra_dtype == NULL || ct->c.extra_base == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < t->nextra; k++) ct->extra_dtype[k] = t->ref[t->extra + k].dtype;
  ct->c.extra_dtype = ct->extra_dtype;
  return EIN_OK;
}

static ein_status eini_contract_lower(eini_lowering *lo, const eini_stmt *s, const eini_stmt *f,
                                      int via, eini_task *t, int *yes) {
  eini_half v[2];
  ein_pair pair = EIN_PAIR_SUM_MUL;
  EINI_TRY(eini_contract_match(lo, s, v, &pair, yes));
  if (!*yes) return EIN_OK;
  if (!s->order) EINI_TRY(eini_contract_orient(lo, s, f, via, v));
  memset(t, 0, sizeof *t);
  t->cut = -1;
  t->kind = EINI_TASK_CONTRACT;
  t->stmt = s;
  t->fused = f;
  eini_contract_task *ct = t->contract = EINI_NEW(lo->a, eini_contract_task, 1);
  if (ct == NULL) return EIN_ERR_NO_MEMORY;
  ct->c.pair = pair;
  ct->c.unsplit = lo->unsplit || (s->hint != NULL && s->hint->unsplit);
  ct->c.ordered = s->order != 0;
  ct->c.type = ein_dtype_compute((ein_dtype)s->expr.node[s->expr.n - 1].dtype);
  EINI_TRY(eini_contract_streams(lo, s, f, via, v, t));
  const int live = t->live = eini_task_merge(t);
  int start[5], at = 0;
  for (int gr = 0; gr < 5; gr++) {
    while (at < live && t->reduced[at] < gr) at++;
    start[gr] = at;
  }
  ein_axes *axes[4] = {&ct->c.batch, &ct->c.m, &ct->c.n, &ct->c.k};
  start[4] = live;
  for (int gr = 0; gr < 4; gr++) {
    axes[gr]->n = start[gr + 1] - start[gr];
    axes[gr]->extent = t->extent + start[gr];
  }
  EINI_TRY(eini_contract_sides(lo, t, v, start));
  const int64_t *out = t->stride + (int64_t)t->out * t->nindex;
  ct->c.out_batch = out + start[EINI_AXES_BATCH];
  ct->c.out_m = out + start[EINI_AXES_M];
  ct->c.out_n = out + start[EINI_AXES_N];
  ct->c.out_dtype = t->ref[t->out].dtype;
  ct->c.plain_out = !t->has_epi && t->ref[t->out].dtype == ct->c.type;
  ct->c.nextra = t->nextra;
  ct->c.store = t->has_epi ? &t->epi : NULL;
  for (int k = 0; k < 3; k++) {
    EINI_TRY(eini_axes_strides(lo->a, t, t->extra, t->nextra, start[k], &ct->extra[k]));
  }
  ct->c.extra_batch = ct->extra[0];
  ct->c.extra_m = ct->extra[1];
  ct->c.extra_n = ct->extra[2];
  EINI_TRY(eini_contract_extra(lo, t));
  ct->whole.batch[1] = eini_axes_size(&ct->c.batch);
  ct->whole.m[1] = eini_axes_size(&ct->c.m);
  ct->whole.n[1] = eini_axes_size(&ct->c.n);
  EINI_TRY(eini_contract_choose(lo, t));
  *yes = t->ncandidate > 0;
  if (!*yes) return EIN_OK;
  eini_contract_chunks(t);
  eini_contract_room r;
  memset(&r, 0, sizeof r);
  for (int k = 0; k < ct->c.p.nop + ct->c.q.nop; k++) ct->values += eini_values_of(t, k);
  t->scratch = eini_contract_layout(t, &r, NULL);
  return EIN_OK;
}
