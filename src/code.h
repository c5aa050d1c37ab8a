// ================================================================================================
// >>code  expressions as straight-line programs over chunk registers
// Takes a typed expression and its operands' dtypes; gives instructions with registers reused as
// values die. Loads read memory in place where layout and dtype allow it.
// ================================================================================================

// Operation tables by computation type. NULL: the operation does not exist for the type.
#define EINI_ORD(n) {eini_c_##n##_bool, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, \
                     eini_c_##n##_f64, NULL, NULL}
#define EINI_ALL7(n) {eini_c_##n##_bool, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, \
                      eini_c_##n##_f64, eini_c_##n##_c64, eini_c_##n##_c128}
#define EINI_ARI(n) {NULL, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, eini_c_##n##_f64, \
                     eini_c_##n##_c64, eini_c_##n##_c128}
#define EINI_FLT(n) {NULL, NULL, NULL, eini_c_##n##_f32, eini_c_##n##_f64, eini_c_##n##_c64, \
                     eini_c_##n##_c128}
#define EINI_RE2(n) {NULL, NULL, NULL, eini_c_##n##_f32, eini_c_##n##_f64, NULL, NULL}
#define EINI_CPX(n) {NULL, NULL, NULL, NULL, NULL, eini_c_##n##_c64, eini_c_##n##_c128}

typedef struct eini_chunk_row {
  unsigned char op;
  eini_chunk_fn fn[7];  // bool i32 i64 f32 f64 c64 c128
} eini_chunk_row;

static const eini_chunk_row eini_chunk_table[] = {
    {EIN_OP_ADD, EINI_ARI(add)}, {EIN_OP_SUB, EINI_ARI(sub)}, {EIN_OP_MUL, EINI_ARI(mul)},
    {EIN_OP_NEG, EINI_ARI(neg)}, {EIN_OP_SQUARE, EINI_ARI(square)},
    {EIN_OP_DIV, EINI_FLT(quot)}, {EIN_OP_POW, EINI_FLT(pow)},
    {EIN_OP_FLOORDIV, {NULL, eini_c_div_i32, eini_c_div_i64, eini_c_fdiv_f32, eini_c_fdiv_f64,
                        NULL, NULL}},
    {EIN_OP_MOD, {NULL, eini_c_mod_i32, eini_c_mod_i64, eini_c_fmod_f32, eini_c_fmod_f64, NULL,
                   NULL}},
    {EIN_OP_MAX, EINI_ORD(max)}, {EIN_OP_MIN, EINI_ORD(min)}, {EIN_OP_LT, EINI_ORD(lt)},
    {EIN_OP_LE, EINI_ORD(le)}, {EIN_OP_GT, EINI_ORD(gt)}, {EIN_OP_GE, EINI_ORD(ge)},
    {EIN_OP_RELU, {NULL, eini_c_relu_i32, eini_c_relu_i64, eini_c_relu_f32, eini_c_relu_f64, NULL,
                    NULL}}, {EIN_OP_EQ, EINI_ALL7(eq)}, {EIN_OP_NE, EINI_ALL7(ne)},
    {EIN_OP_WHERE, EINI_ALL7(where)},
    {EIN_OP_AND, {eini_c_and_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EIN_OP_OR, {eini_c_or_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EIN_OP_NOT, {eini_c_not_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EIN_OP_EXP, EINI_FLT(exp)}, {EIN_OP_LOG, EINI_FLT(log)}, {EIN_OP_SQRT, EINI_FLT(sqrt)},
    {EIN_OP_RSQRT, EINI_FLT(rsqrt)}, {EIN_OP_EXPM1, EINI_FLT(expm1)},
    {EIN_OP_LOG1P, EINI_FLT(log1p)}, {EIN_OP_SIN, EINI_FLT(sin)}, {EIN_OP_COS, EINI_FLT(cos)},
    {EIN_OP_TAN, EINI_FLT(tan)}, {EIN_OP_TANH, EINI_FLT(tanh)},
    {EIN_OP_ATAN2, EINI_RE2(atan2)}, {EIN_OP_ERF, EINI_RE2(erf)},
    {EIN_OP_SIGN, EINI_ARI(sign)},
    {EIN_OP_HASH, {NULL, NULL, eini_c_hash_i64, NULL, NULL, NULL, NULL}},
    {EIN_OP_RAND, {NULL, NULL, eini_c_rand_i64, NULL, NULL, NULL, NULL}},
    {EIN_OP_SIGMOID, EINI_RE2(sigmoid)}, {EIN_OP_SILU, EINI_RE2(silu)},
    {EIN_OP_GELU, EINI_RE2(gelu)}, {EIN_OP_FLOOR, EINI_RE2(floor)},
    {EIN_OP_CEIL, EINI_RE2(ceil)}, {EIN_OP_ROUND, EINI_RE2(round)},
    {EIN_OP_ABS, {NULL, eini_c_abs_i32, eini_c_abs_i64, eini_c_abs_f32, eini_c_abs_f64,
                   eini_c_abs_c64, eini_c_abs_c128}},
    {EIN_OP_CONJ, EINI_CPX(conj)}, {EIN_OP_REAL, EINI_CPX(real)}, {EIN_OP_IMAG, EINI_CPX(imag)},
    {EIN_OP_COMPLEX, {NULL, NULL, NULL, eini_c_complex_c64, eini_c_complex_c128, NULL, NULL}}};
#undef EINI_ORD
#undef EINI_ALL7
#undef EINI_ARI
#undef EINI_FLT
#undef EINI_RE2
#undef EINI_CPX

static int eini_type_column(ein_dtype compute) {
  switch (compute) {
    case EIN_BOOL: return 0;
    case EIN_I32: return 1;
    case EIN_I64: return 2;
    case EIN_F32: return 3;
    case EIN_F64: return 4;
    case EIN_C64: return 5;
    default: return 6;
  }
}

static eini_chunk_fn eini_chunk_find(const ein_kernels *fast, int op, ein_dtype compute) {
  eini_chunk_fn fn =
      fast == NULL || fast->chunk_fn == NULL ? NULL : fast->chunk_fn(fast->user, op, compute);
  if (fn != NULL) return fn;
  for (size_t i = 0; i < sizeof eini_chunk_table / sizeof *eini_chunk_table; i++)
    if (eini_chunk_table[i].op == op) return eini_chunk_table[i].fn[eini_type_column(compute)];
  return NULL;
}

// From (row) to (column) in the order of eini_type_column. Complex from integers goes through the
// real type first (eini_code_cast); complex to real takes the real part.
static const eini_chunk_fn eini_cast_table[7][7] = {
    {NULL, eini_c_bool_to_i32, eini_c_bool_to_i64, eini_c_bool_to_f32, eini_c_bool_to_f64, NULL,
     NULL},
    {eini_c_i32_to_bool, NULL, eini_c_i32_to_i64, eini_c_i32_to_f32, eini_c_i32_to_f64, NULL, NULL},
    {eini_c_i64_to_bool, eini_c_i64_to_i32, NULL, eini_c_i64_to_f32, eini_c_i64_to_f64, NULL, NULL},
    {eini_c_f32_to_bool, eini_c_f32_to_i32, eini_c_f32_to_i64, NULL, eini_c_f32_to_f64,
     eini_c_c64_from, NULL},
    {eini_c_f64_to_bool, eini_c_f64_to_i32, eini_c_f64_to_i64, eini_c_f64_to_f32, NULL, NULL,
     eini_c_c128_from},
    {eini_c_c64_to_bool, NULL, NULL, eini_c_real_c64, NULL, NULL, eini_c_c64_to_c128},
    {eini_c_c128_to_bool, NULL, NULL, NULL, eini_c_real_c128, eini_c_c128_to_c64, NULL}};

// From a computation type to f32 that is then rounded to f16 or bf16; NULL: the plain way does.
static eini_chunk_fn eini_odd_find(ein_dtype from) {
  return from == EIN_I32 ? eini_c_odd_i32 : from == EIN_I64 ? eini_c_odd_i64 :
         from == EIN_F64 ? eini_c_odd_f64 : NULL;
}

// From a computation type to a storage dtype whose values are held in another one; NULL: nothing to
// round, or not in one step.
static eini_chunk_fn eini_round_find(ein_dtype from, ein_dtype to) {
#define EINI_HALF(t) {NULL, eini_c_round_##t##_i32, eini_c_round_##t##_i64, \
                      eini_c_round_##t##_f32, eini_c_round_##t##_f64, NULL, NULL}
  static const eini_chunk_fn half[2][7] = {EINI_HALF(f16), EINI_HALF(bf16)};
#undef EINI_HALF
  if (to == EIN_F16 || to == EIN_BF16) return half[to == EIN_BF16][eini_type_column(from)];
  if (from != EIN_I32) return NULL;
  return to == EIN_I8 ? eini_c_round_i8 : to == EIN_U8 ? eini_c_round_u8 :
         to == EIN_I16 ? eini_c_round_i16 : NULL;
}

// From a storage dtype to its computation type (op EIN_OP_OPERAND) or back (EIN_OP_CAST); NULL:
// they are one, or it is a bool.
static eini_chunk_fn eini_storage_find(const ein_kernels *fast, int op, ein_dtype t) {
  const int load = op == EIN_OP_OPERAND;
  if (ein_dtype_compute(t) == t) return NULL;
  eini_chunk_fn fn = fast == NULL || fast->chunk_fn == NULL ? NULL
                                                            : fast->chunk_fn(fast->user, op, t);
  if (fn != NULL) return fn;
  switch (t) {
    case EIN_F16: return load ? eini_c_load_f16 : eini_c_store_f16;
    case EIN_BF16: return load ? eini_c_load_bf16 : eini_c_store_bf16;
    case EIN_I8: return load ? eini_c_load_i8 : eini_c_store_8;
    case EIN_U8: return load ? eini_c_load_u8 : eini_c_store_8;
    case EIN_I16: return load ? eini_c_load_i16 : eini_c_store_16;
    default: return NULL;
  }
}

// Of a chunk of any dtype; 64 bytes more: how many equal values there are, and no two registers at
// the same sets of a cache.
static size_t eini_reg_bytes(const ein_code *code) { return (size_t)code->chunk * 16 + 64; }

static int64_t eini_whole_lanes(int64_t n) {
  return (n + EINI_LANES - 1) / EINI_LANES * EINI_LANES;
}

// Whole lanes for the chunks of n > 0 values.
static int eini_chunk_of(int64_t n) { return (int)eini_whole_lanes(eini_min64(n, EINI_CHUNK)); }

typedef struct eini_compile {
  eini_arena *a;
  ein_code *code;
  ein_step *step;             // what code points to while it is made
  ein_fill *fill;
  int *list;
  const ein_dtype *operand;   // storage dtypes
  const ein_kernels *fast;    // whose chunk functions are taken first, or NULL
  int *reg, *last;            // of nodes; last: position of the last use
  int *pool;
  int npool;
  int64_t cap;
} eini_compile;

static int eini_reg_new(eini_compile *cc) {
  return cc->npool > 0 ? cc->pool[--cc->npool] : cc->code->nreg++;
}

static ein_status eini_step_add(eini_compile *cc, int op, ein_dtype from, ein_dtype type,
                                ein_step **step) {
  const int n = cc->code->nstep++;
  ein_step *p = (ein_step *)eini_grow(cc->a, cc->step, n, &cc->cap, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  cc->code->step = cc->step = p;
  *step = &p[n];
  memset(*step, 0, sizeof **step);
  (*step)->op = (unsigned char)op;
  (*step)->from = (unsigned char)from;
  (*step)->type = (unsigned char)type;
  return EIN_OK;
}

// A conversion, in two steps where there is no direct one. *reg is replaced.
static ein_status eini_code_cast(eini_compile *cc, ein_dtype from, ein_dtype to, int src, int dst) {
  eini_chunk_fn fn = eini_cast_table[eini_type_column(from)][eini_type_column(to)];
  ein_step *step;
  if (fn == NULL) {
    ein_dtype mid = to == EIN_C64 ? EIN_F32 : to == EIN_C128 ? EIN_F64 : eini_real_part(from);
    int t = eini_reg_new(cc);
    EINI_TRY(eini_code_cast(cc, from, mid, src, t));
    EINI_TRY(eini_code_cast(cc, mid, to, t, dst));
    cc->pool[cc->npool++] = t;
    return EIN_OK;
  }
  EINI_TRY(eini_step_add(cc, EIN_OP_CAST, from, to, &step));
  step->fn = fn;
  step->a = step->b = step->c = src;
  step->dst = dst;
  return EIN_OK;
}

static ein_status eini_compile_fill(eini_compile *cc, const eini_node *v, int i) {
  ein_fill *f = &cc->fill[cc->code->nfill++];
  f->reg = cc->reg[i] = eini_reg_new(cc);
  f->param = v->op == EIN_OP_PARAM ? v->arg[0] : -1;
  f->type = (unsigned char)ein_dtype_compute((ein_dtype)v->dtype);
  f->ival = v->ival;
  f->re = eini_literal_value(v);
  f->im = v->im;
  cc->last[i] = INT_MAX;  // never reused: it is filled once, before the loops
  return EIN_OK;
}

static int eini_is_noop(const eini_node *v, ein_dtype from) {
  ein_dtype t = (ein_dtype)v->dtype;
  int complex_in = eini_kind_of(from) == EINI_KCOMPLEX;
  switch (v->op) {
    case EIN_OP_ROUNDTO: return eini_round_find(from, t) == NULL;
    case EIN_OP_CAST: return from == ein_dtype_compute(t);
    case EIN_OP_CONJ: case EIN_OP_REAL: return !complex_in;
    case EIN_OP_FLOOR:
    case EIN_OP_CEIL:
    case EIN_OP_ROUND: return eini_kind_of(from) < EINI_KREAL;
    case EIN_OP_ABS: case EIN_OP_RELU: return from == EIN_BOOL;
    default: return 0;
  }
}

// One operation node: its function, arguments and destination.
static ein_status eini_compile_op(eini_compile *cc, const eini_expr *e, int i) {
  const eini_node *v = &e->node[i];
  ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  int n = eini_node_args(v);
  int arg0 = eini_node_arg(e, v, 0);
  ein_dtype from = ein_dtype_compute((ein_dtype)e->node[arg0].dtype);
  ein_step *step;
  cc->reg[i] = eini_reg_new(cc);
  if (v->op == EIN_OP_CAST) return eini_code_cast(cc, from, t, cc->reg[arg0], cc->reg[i]);
  if (v->op == EIN_OP_WHERE) from = t;
  EINI_TRY(eini_step_add(cc, v->op, from, t, &step));
  step->dst = cc->reg[i];
  if (v->op == EIN_OP_CALL) {
    step->a = v->arg[0];
    step->b = v->arg[1];
    step->c = n;
    for (int k = 0; k < n; k++) cc->list[v->arg[1] + k] = cc->reg[eini_node_arg(e, v, k)];
    return EIN_OK;
  }
  step->a = cc->reg[arg0];
  step->b = n > 1 ? cc->reg[v->arg[1]] : step->a;
  step->c = n > 2 ? cc->reg[v->arg[2]] : step->a;
  if (v->op == EIN_OP_ROUNDTO) step->round = v->dtype;
  step->fn = v->op == EIN_OP_ROUNDTO ? eini_round_find(from, (ein_dtype)v->dtype)
                                      : eini_chunk_find(cc->fast, v->op, from);
  EINSUM_ASSERT(step->fn != NULL);
  return step->fn == NULL ? EIN_ERR_INTERNAL : EIN_OK;
}

static void eini_compile_release(eini_compile *cc, const eini_expr *e, int i) {
  const eini_node *v = &e->node[i];
  for (int k = 0; k < eini_node_args(v); k++) {
    int c = eini_node_arg(e, v, k);
    if (cc->last[c] == i) cc->last[c] = -1, cc->pool[cc->npool++] = cc->reg[c];
  }
}

static ein_status eini_compile_load(eini_compile *cc, const eini_node *v, int i) {
  const ein_dtype from = v->op == EIN_OP_INDEX ? EIN_I64 : cc->operand[v->arg[0]];
  ein_step *step;
  EINI_TRY(eini_step_add(cc, v->op, from, ein_dtype_compute(from), &step));
  step->fn = eini_storage_find(cc->fast, EIN_OP_OPERAND, from);
  step->a = v->arg[0];
  step->dst = cc->reg[i] = cc->code->nreg++;  // never reused: what does not move stays in it
  cc->last[i] = INT_MAX;
  return EIN_OK;
}

// A copy of the expression without no-ops: uses go to what they stand for. *root is where it ends.
static ein_status eini_compile_flatten(eini_arena *a, const eini_expr *e, eini_expr *flat,
                                       int *root) {
  int *same = EINI_NEW(a, int, e->n);  // the node a no-op stands for
  *flat = *e;
  flat->node = EINI_NEW(a, eini_node, e->n);
  flat->list = EINI_NEW(a, int, e->nlist);
  if (same == NULL || flat->node == NULL || flat->list == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < (int)e->n; i++) {
    eini_node *v = &flat->node[i];
    *v = e->node[i];
    for (int k = 0; k < eini_node_args(v); k++) {
      int c = same[eini_node_arg(e, &e->node[i], k)];
      if (v->op == EIN_OP_CALL) flat->list[v->arg[1] + k] = c;
      else v->arg[k] = c;
    }
    same[i] = i;
    if (v->op <= EIN_OP_PARAM || v->op == EIN_OP_CALL) continue;
    int c = eini_node_arg(e, &e->node[i], 0);
    if (eini_is_noop(v, ein_dtype_compute((ein_dtype)e->node[c].dtype))) same[i] = same[c];
  }
  *root = same[e->n - 1];
  return EIN_OK;
}

// Where values are used last, from the root down; -1: dead.
static void eini_compile_lifetimes(eini_compile *cc, const eini_expr *e, int root) {
  for (int i = 0; i < (int)e->n; i++) cc->last[i] = -1;
  cc->last[root] = INT_MAX;
  for (int i = root; i >= 0; i--) {
    for (int k = 0; cc->last[i] >= 0 && k < eini_node_args(&e->node[i]); k++) {
      int c = eini_node_arg(e, &e->node[i], k);
      if (cc->last[c] < 0) cc->last[c] = i;
    }
  }
}

// Compiles a typed expression. operand: storage dtypes.
static ein_status eini_code_compile(eini_arena *a, const eini_expr *e, const ein_dtype *operand,
                                    const ein_function *function, const ein_kernels *fast,
                                    ein_code *code) {
  eini_compile cc;
  memset(&cc, 0, sizeof cc);
  memset(code, 0, sizeof *code);
  cc.a = a;
  cc.code = code;
  cc.operand = operand;
  cc.fast = fast;
  cc.reg = EINI_NEW(a, int, e->n);
  cc.last = EINI_NEW(a, int, e->n);
  cc.pool = EINI_NEW(a, int, 3 * e->n + 8);
  code->fill = cc.fill = EINI_NEW(a, ein_fill, e->n);
  code->list = cc.list = EINI_NEW(a, int, e->nlist);
  code->function = function;
  if (cc.reg == NULL || cc.last == NULL || cc.pool == NULL || cc.fill == NULL || cc.list == NULL)
    return EIN_ERR_NO_MEMORY;
  int root;
  eini_expr flat;
  EINI_TRY(eini_compile_flatten(a, e, &flat, &root));
  eini_compile_lifetimes(&cc, &flat, root);
  for (int i = 0; i <= root; i++) {
    const eini_node *v = &flat.node[i];
    if (cc.last[i] < 0) continue;
    if (v->op == EIN_OP_CONST || v->op == EIN_OP_PARAM) EINI_TRY(eini_compile_fill(&cc, v, i));
  }
  for (int i = 0; i <= root; i++) {
    const eini_node *v = &flat.node[i];
    if (cc.last[i] < 0 || v->op == EIN_OP_CONST || v->op == EIN_OP_PARAM) continue;
    if (v->op == EIN_OP_OPERAND || v->op == EIN_OP_INDEX) {
      EINI_TRY(eini_compile_load(&cc, v, i));
    } else {
      EINI_TRY(eini_compile_op(&cc, &flat, i));
      eini_compile_release(&cc, &flat, i);
    }
  }
  code->result = cc.reg[root];
  code->type = (unsigned char)ein_dtype_compute((ein_dtype)flat.node[root].dtype);
  int conj = flat.node[root].op == EIN_OP_CONJ;
  int leaf = conj ? flat.node[root].arg[0] : root;
  code->plain =
      flat.node[leaf].op == EIN_OP_OPERAND && operand[flat.node[leaf].arg[0]] == code->type
          ? flat.node[leaf].arg[0]
          : -1;
  code->conj = conj;
  return EIN_OK;
}

// ---- running ----

// What one run of a code works on: addresses and registers.
typedef struct eini_eval {
  const ein_code *code;
  const char *const *base;      // operands: address of the element at index 0
  const int64_t *at;            // element offsets of this chunk; of indices: their values
  const int64_t *index_at;
  const int64_t *step;          // strides along the chunk, or NULL with tables
  const int64_t *index_step;
  const int64_t *const *table;  // offsets within the chunk per operand, which follow the steps
  int64_t run;                  //   for so many elements each, or 0
  const int64_t *const *index_table;
  void **reg;                   // current address of each register
  char *mem;                    // nreg * eini_reg_bytes
} eini_eval;

// Gathers n elements of size S into d: d[j] = src[j*step] or src[table[j]], unaligned-safe.
#define EINI_GATHER(bits)                                                                   \
  static void eini_gather_##bits(int64_t n, const char *src, int64_t step, const int64_t *table, \
                                 void *pd) {                                                \
    uint##bits##_t *EINI_RESTRICT d = (uint##bits##_t *)pd;                                 \
    if (table != NULL) {                                                                    \
      for (int64_t j = 0; j < n; j++) memcpy(&d[j], src + table[j] * (bits / 8), bits / 8);  \
    } else if (step == 1) {                                                                 \
      memcpy(d, src, (size_t)n * (bits / 8));                                               \
    } else {                                                                                \
      for (int64_t j = 0; j < n; j++, src += step * (bits / 8)) memcpy(&d[j], src, bits / 8); \
    }                                                                                       \
  }
EINI_GATHER(8)
EINI_GATHER(16)
EINI_GATHER(32)
EINI_GATHER(64)
#undef EINI_GATHER

static void eini_gather_128(int64_t n, const char *src, int64_t step, const int64_t *table,
                            void *d) {
  char *p = (char *)d;
  for (int64_t j = 0; j < n; j++) memcpy(p + j * 16, src + (table ? table[j] : j * step) * 16, 16);
}

static void eini_gather(size_t size, int64_t n, const char *src, int64_t step, const int64_t *table,
                        void *d) {
  switch (size) {
    case 1: eini_gather_8(n, src, step, table, d); break;
    case 2: eini_gather_16(n, src, step, table, d); break;
    case 4: eini_gather_32(n, src, step, table, d); break;
    case 8: eini_gather_64(n, src, step, table, d); break;
    default: eini_gather_128(n, src, step, table, d); break;
  }
}

// A value repeated for each row of a table, in whole lanes: the last row's reach behind n.
#define EINI_REPEAT(bits)                                                                   \
  static void eini_repeat_##bits(int64_t n, const char *src, const int64_t *table, int64_t run, \
                                 void *pd) {                                                \
    for (int64_t at = 0; at < n; at += run) {                                               \
      uint##bits##_t v, *d = (uint##bits##_t *)pd + at;                                     \
      memcpy(&v, src + table[at] * (bits / 8), bits / 8);                                   \
      for (int64_t j = 0; j < run; j += EINI_LANES)                                         \
        for (int k = 0; k < EINI_LANES; k++) d[j + k] = v;                                  \
    }                                                                                       \
  }
EINI_REPEAT(32)
EINI_REPEAT(64)
#undef EINI_REPEAT

// The same into a register, row by row.
static void eini_gather_rows(const eini_eval *ev, size_t size, int64_t n, const char *src,
                             int64_t step, const int64_t *table, char *d) {
  const int64_t run = ev->run, e = (int64_t)size;
  if (step == 0 && (size == 4 || size == 8)) {
    if (size == 4) eini_repeat_32(n, src, table, run, d);
    else eini_repeat_64(n, src, table, run, d);
  } else if (step == 1) {
    for (int64_t at = 0; at < n; at += run)
      memcpy(d + at * e, src + table[at] * e, (size_t)run * size);
  } else {
    eini_gather(size, n, src, 0, table, d);
  }
}

static int eini_same_storage(ein_dtype t) { return ein_dtype_compute(t) == t && t != EIN_BOOL; }

// The values of index i into d, whole lanes of them. had: how many are there from before, the first
// one and the step.
static void eini_run_index(const eini_eval *ev, int i, int64_t n, int64_t *d, int64_t *had) {
  const int64_t *table = ev->index_table == NULL ? NULL : ev->index_table[i];
  const int64_t at = ev->index_at[i], step = table == NULL ? ev->index_step[i] : 0;
  int64_t lane[EINI_LANES];
  if (table != NULL) {
    had[0] = 0;
    memset(d + n, 0, (size_t)(eini_whole_lanes(n) - n) * sizeof *d);
    for (int64_t j = 0; j < n; j++) d[j] = at + table[j];
    return;
  }
  if (had[0] >= n && had[1] == at && had[2] == step) return;
  had[0] = eini_whole_lanes(n), had[1] = at, had[2] = step;
  for (int k = 0; k < EINI_LANES; k++) lane[k] = k * step;
  for (int64_t j = 0; j < n; j += EINI_LANES) {
    const int64_t from = at + j * step;
    for (int k = 0; k < EINI_LANES; k++) d[j + k] = from + lane[k];
  }
}

static void eini_run_load(const eini_eval *ev, const ein_step *step, int64_t n) {
  const size_t reg_bytes = eini_reg_bytes(ev->code);
  char *mem = ev->mem + (size_t)step->dst * reg_bytes;
  ev->reg[step->dst] = mem;
  int64_t *equal = (int64_t *)(void *)(mem + reg_bytes - 64);
  if (step->op == EIN_OP_INDEX) {
    eini_run_index(ev, step->a, n, (int64_t *)(void *)mem, equal);
    return;
  }
  size_t size = eini_dtypes[step->from].size;
  const char *src = ev->base[step->a] + ev->at[step->a] * (int64_t)size;
  const int64_t *table = ev->table == NULL ? NULL : ev->table[step->a];
  int64_t by = table == NULL ? ev->step[step->a] : 0;
  int same = eini_same_storage((ein_dtype)step->from);
  if (same && table == NULL && by == 1 && n % EINI_LANES == 0 &&
      (uintptr_t)src % (size > 8 ? 8 : size) == 0) {
    union { const char *c; void *v; } u;  // read in place; registers of loads are never written
    u.c = src;
    ev->reg[step->dst] = u.v;
    return;
  }
  if (same && table == NULL && by == 0) {
    if (*equal >= n && memcmp(mem, src, size) == 0) return;
    *equal = eini_whole_lanes(n);
    eini_gather(size, *equal, src, 0, NULL, mem);
    return;
  }
  *equal = 0;
  size_t wide = eini_dtypes[step->type].size;  // cleared: lanes nobody reads
  memset(mem + (size_t)n * wide, 0, (size_t)(eini_whole_lanes(n) - n) * wide);
  if (same) {
    if (table != NULL && ev->run >= 8)
      eini_gather_rows(ev, size, n, src, ev->step[step->a], table, mem);
    else eini_gather(size, n, src, by, table, mem);
    return;
  }
  uint64_t raw[EINI_CHUNK / 4];  // two bytes an element at most
  if (step->fn == NULL) {        // bools, whatever byte is theirs
    eini_gather(size, n, src, by, table, mem);
    for (int64_t j = 0; j < n; j++) mem[j] = mem[j] != 0;
    return;
  }
  memset((char *)raw + (size_t)n * size, 0, (size_t)(eini_whole_lanes(n) - n) * size);
  eini_gather(size, n, src, by, table, raw);
  step->fn(eini_whole_lanes(n), raw, raw, raw, mem);
}

// Evaluates n <= code->chunk values and returns where they are. direct: where the root's last
// operation may write, if it reads something else (a call always does; padded room is not needed:
// n is then a multiple of the lanes).
static void *eini_code_run(const eini_eval *ev, int64_t n, void *direct) {
  const ein_code *code = ev->code;
  const size_t reg_bytes = eini_reg_bytes(code);
  int64_t padded = eini_whole_lanes(n);
  EINSUM_ASSERT(n <= code->chunk);
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *step = &code->step[i];
    if (step->op == EIN_OP_OPERAND || step->op == EIN_OP_INDEX) {
      eini_run_load(ev, step, n);
      continue;
    }
    void *dst = ev->mem + (size_t)step->dst * reg_bytes;
    if (direct != NULL && i == code->nstep - 1 &&
        (step->op == EIN_OP_CALL || (ev->reg[step->a] != direct && ev->reg[step->b] != direct &&
                                     ev->reg[step->c] != direct)))
      dst = direct;
    if (step->op != EIN_OP_CALL) {
      step->fn(padded, ev->reg[step->a], ev->reg[step->b], ev->reg[step->c], dst);
    } else {
      const void *in[EINI_ARGS_MAX];
      for (int k = 0; k < step->c; k++) in[k] = ev->reg[code->list[step->b + k]];
      const ein_function *f = &code->function[step->a];
      f->fn(n, in, dst, f->user);
    }
    ev->reg[step->dst] = dst;
  }
  return ev->reg[code->result];
}

static void eini_fill_value(ein_dtype t, double re, double im, int64_t ival, int64_t n, void *d) {
  switch (t) {
    case EIN_BOOL: for (int64_t j = 0; j < n; j++) ((uint8_t *)d)[j] = re != 0 || im != 0; break;
    case EIN_I32:
      for (int64_t j = 0; j < n; j++) ((int32_t *)d)[j] = (int32_t)(uint32_t)(uint64_t)ival;
      break;
    case EIN_I64: for (int64_t j = 0; j < n; j++) ((int64_t *)d)[j] = ival; break;
    case EIN_F32: for (int64_t j = 0; j < n; j++) ((float *)d)[j] = (float)re; break;
    case EIN_F64: for (int64_t j = 0; j < n; j++) ((double *)d)[j] = re; break;
    case EIN_C64:
      for (int64_t j = 0; j < n; j++) {
        ((eini_c64 *)d)[j].re = (float)re;
        ((eini_c64 *)d)[j].im = (float)im;
      }
      break;
    default:
      for (int64_t j = 0; j < n; j++) ((eini_c128 *)d)[j] = eini_cmk(re, im);
      break;
  }
}

// The same with a constant's or a param's value.
static void eini_fill_run(const ein_fill *f, ein_dtype t, const ein_scalar *param, int64_t n,
                          void *d) {
  double re = f->re, im = f->im;
  int64_t ival = f->ival;
  if (f->param >= 0) {
    re = param[f->param].re;
    im = param[f->param].im;
    ival = eini_f64_to_i64(re);
  }
  eini_fill_value(t, re, im, ival, n, d);
}

// Fills the registers of constants and params, once per run, n values each.
static void eini_code_begin(const eini_eval *ev, const ein_scalar *param, int64_t n) {
  const ein_code *code = ev->code;
  const size_t reg_bytes = eini_reg_bytes(code);
  n = eini_whole_lanes(n);
  for (int i = 0; i < code->nreg; i++) {
    ev->reg[i] = ev->mem + (size_t)i * reg_bytes;
    memset((char *)ev->reg[i] + reg_bytes - 64, 0, 8);
  }
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    eini_fill_run(f, (ein_dtype)f->type, param, n, ev->reg[f->reg]);
  }
}

// ---- storing ----

// A chunk of the computation type `from` (bool i32 i64 f32 f64 c64 c128) goes to storage dtype
// `to`: converted into tmp (16 bytes for each of whole lanes; may be the source's own place for
// equal types). store: as eini_storage_find gives it.
static const void *eini_narrow(ein_dtype from, ein_dtype to, int64_t n, const void *src,
                               eini_chunk_fn store, void *tmp, void *tmp2) {
  ein_dtype mid = ein_dtype_compute(to);
  int64_t padded = eini_whole_lanes(n);
  const eini_chunk_fn once = to == EIN_F16 || to == EIN_BF16 ? eini_odd_find(from) : NULL;
  if (once != NULL) {
    once(padded, src, src, src, tmp);
    src = tmp;
  } else if (from != mid) {
    int f = eini_type_column(from), t = eini_type_column(mid);
    if (eini_cast_table[f][t] != NULL) {
      eini_cast_table[f][t](padded, src, src, src, tmp);
    } else {  // integers to complex and the like: through the real type of the target
      ein_dtype real =
          eini_kind_of(mid) == EINI_KCOMPLEX ? eini_real_part(mid) : eini_real_part(from);
      int r = eini_type_column(real);
      if (from != real) eini_cast_table[f][r](padded, src, src, src, tmp2);
      eini_cast_table[r][t](padded, from != real ? tmp2 : src, src, src, tmp);
    }
    src = tmp;
  }
  if (mid == to) return src;
  store(padded, src, src, src, tmp2);
  return tmp2;
}

static void eini_scatter(size_t size, int64_t n, const void *src, char *dst, int64_t step,
                         const int64_t *table) {
  const char *s = (const char *)src;
  if (table == NULL && step == 1) {
    memcpy(dst, s, (size_t)n * size);
    return;
  }
  switch (size) {
    case 4:
      for (int64_t j = 0; j < n; j++) memcpy(dst + (table ? table[j] : j * step) * 4, s + j * 4, 4);
      break;
    case 8:
      for (int64_t j = 0; j < n; j++) memcpy(dst + (table ? table[j] : j * step) * 8, s + j * 8, 8);
      break;
    default:
      for (int64_t j = 0; j < n; j++) {
        memcpy(dst + (table ? table[j] : j * step) * (int64_t)size, s + j * (int64_t)size, size);
      }
  }
}
