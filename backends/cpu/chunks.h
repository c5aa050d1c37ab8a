// ================================================================================================
// >>chunks  operations of expressions and folds, per instruction set
// The loops of einsum.h's sections math, eval and fold, compiled again: each function here has
// nothing in it but a call, and takes the callee's body in (flatten) under its own target.
// ================================================================================================

// libm's names keep compilers from vector code (errno, traps), so these say it themselves.
#define EINI_OP_SELF(name, s, bits, X, expr)                                                \
  X##AT static void eini_c_##name##_##s##_##bits(int64_t n, const void *pa, const void *b,  \
                                                 const void *c, void *pd) {                 \
    const X##T *a = (const X##T *)pa;                                                       \
    X##T *d = (X##T *)pd;                                                                   \
    (void)b;                                                                                \
    (void)c;                                                                                \
    for (int64_t i = 0; i < n; i += X##W) {                                                 \
      const X##V x = X##LOAD(a + i);                                                        \
      X##STORE(d + i, expr);                                                                \
    }                                                                                       \
  }
#define EINI_OP_ROOTS(s, bits, X)                                                           \
  EINI_OP_SELF(sqrt, s, bits, X, X##SQRT(x))                                                \
  EINI_OP_SELF(rsqrt, s, bits, X, X##DIV(X##SET(1), X##SQRT(x)))
#define EINI_OP_EXPS(s, bits, X)                                                            \
  EINI_OP_SELF(exp, s, bits, X, X##EXP(x))                                                  \
  EINI_OP_SELF(sigmoid, s, bits, X, X##DIV(X##SET(1), EINI_EXP_1(X)))                       \
  EINI_OP_SELF(silu, s, bits, X, X##DIV(x, EINI_EXP_1(X)))
// 1 + exp(-x)
#define EINI_EXP_1(X) X##ADD(X##SET(1), X##EXP(X##SUB(X##SET(0), x)))
#define EINI_OP_ROUNDING(s, bits, X)                                                        \
  EINI_OP_SELF(floor, s, bits, X, X##FLOOR(x))                                              \
  EINI_OP_SELF(ceil, s, bits, X, X##CEIL(x))                                                \
  EINI_OP_SELF(round, s, bits, X, X##RINT(x))
#define EINI_OP_SELVES(s, bits, X) \
  EINI_OP_ROOTS(s, bits, X) EINI_OP_EXPS(s, bits, X) EINI_OP_ROUNDING(s, bits, X)
#define EINI_REA(op, name, bits) EINI_REA_(op, name, bits)
#define EINI_REA_(op, name, bits)                                                           \
  {EIN_OP_##op, {NULL, NULL, NULL, eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, \
                  NULL, NULL}}

#if EINI_CPU_X86

// Elementary functions gain a third by fused products, and lose nothing: test_cpu has their errors.
#if defined(__GNUC__) && !defined(__clang__)
#define EINI_FLAT __attribute__((flatten, optimize("fp-contract=fast")))
#else
#define EINI_FLAT __attribute__((flatten))
#endif
#define EINI_FLAT512 EINI_T512 EINI_FLAT
#define EINI_FLAT256 EINI_T256 EINI_FLAT

#define EINI_OP1(name)                                                                      \
  EINI_FLAT256 static void eini_c_##name##_256(                                             \
      int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                  \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d) {                                 \
    eini_c_##name(n, a, b, c, d);                                                           \
  }
#define EINI_OP2(name)                                                                      \
  EINI_OP1(name)                                                                            \
  EINI_FLAT512 static void eini_c_##name##_512(                                             \
      int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                  \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d) {                                 \
    eini_c_##name(n, a, b, c, d);                                                           \
  }
#define EIN_OP_NUMBERS(name)                                                               \
  EINI_OP1(name##_i32) EINI_OP1(name##_i64) EINI_OP1(name##_f32) EINI_OP1(name##_f64)
#define EIN_OP_REALS(name) EINI_OP2(name##_f32) EINI_OP2(name##_f64)

EIN_OP_NUMBERS(add)
EIN_OP_NUMBERS(sub)
EIN_OP_NUMBERS(mul)
EIN_OP_NUMBERS(square)
EIN_OP_NUMBERS(neg)
EIN_OP_NUMBERS(max)
EIN_OP_NUMBERS(min)
EIN_OP_NUMBERS(lt)
EIN_OP_NUMBERS(le)
EIN_OP_NUMBERS(gt)
EIN_OP_NUMBERS(ge)
EIN_OP_NUMBERS(eq)
EIN_OP_NUMBERS(ne)
EIN_OP_NUMBERS(where)
EIN_OP_NUMBERS(relu)
EIN_OP_NUMBERS(abs)
EIN_OP_REALS(quot)
EIN_OP_REALS(log)
EIN_OP_REALS(sin)
EIN_OP_REALS(cos)
EIN_OP_REALS(tanh)
EIN_OP_REALS(erf)
EINI_OP1(gelu_f32)
EINI_OP1(gelu_f64)
// Storage dtypes: NaN keeps its bits, which instructions that convert f16 would make quiet.
EINI_OP2(load_f16) EINI_OP2(load_bf16) EINI_OP2(store_f16) EINI_OP2(store_bf16)
EINI_OP1(load_i8) EINI_OP1(load_u8) EINI_OP1(load_i16) EINI_OP1(store_8) EINI_OP1(store_16)
#undef EIN_OP_REALS
#undef EIN_OP_NUMBERS
#undef EINI_OP2
#undef EINI_OP1

EINI_OP_SELVES(f32, 256, EINI_YS_)
EINI_OP_SELVES(f64, 256, EINI_YD_)
EINI_OP_ROOTS(f32, 512, EINI_ZS_)
EINI_OP_ROOTS(f64, 512, EINI_ZD_)
EINI_OP_EXPS(f32, 512, EINI_ZS_)
EINI_OP_EXPS(f64, 512, EINI_ZD_)

#define EINI_NUM(op, name, bits) EINI_NUM_(op, name, bits)
#define EINI_NUM_(op, name, bits)                                                           \
  {EIN_OP_##op, {NULL, eini_c_##name##_i32_##bits, eini_c_##name##_i64_##bits,             \
                  eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, NULL, NULL}}
// Cheap operations are bound by the first-level cache: AVX2 does as well. (And clang makes no good
// 512-bit code of gelu.)
#define EINI_CHUNK_ROWS(cheap, bits)                                                        \
  EINI_NUM(ADD, add, cheap), EINI_NUM(SUB, sub, cheap), EINI_NUM(MUL, mul, cheap),          \
  EINI_NUM(SQUARE, square, cheap), EINI_NUM(NEG, neg, cheap), EINI_NUM(MAX, max, cheap),    \
  EINI_NUM(MIN, min, cheap), EINI_NUM(LT, lt, cheap), EINI_NUM(LE, le, cheap),              \
  EINI_NUM(GT, gt, cheap), EINI_NUM(GE, ge, cheap), EINI_NUM(EQ, eq, cheap),                \
  EINI_NUM(NE, ne, cheap), EINI_NUM(WHERE, where, cheap), EINI_NUM(RELU, relu, cheap),      \
  EINI_NUM(ABS, abs, cheap), EINI_REA(DIV, quot, bits), EINI_REA(EXP, exp, bits),           \
  EINI_REA(LOG, log, bits), EINI_REA(SIN, sin, bits), EINI_REA(COS, cos, bits),             \
  EINI_REA(TANH, tanh, bits), EINI_REA(ERF, erf, bits), EINI_REA(SIGMOID, sigmoid, bits),   \
  EINI_REA(SILU, silu, bits), EINI_REA(GELU, gelu, cheap),                                  \
  EINI_REA(SQRT, sqrt, bits), EINI_REA(RSQRT, rsqrt, bits), EINI_REA(FLOOR, floor, cheap),  \
  EINI_REA(CEIL, ceil, cheap), EINI_REA(ROUND, round, cheap)

static const eini_chunk_row eini_chunk_table_256[] = {EINI_CHUNK_ROWS(256, 256)};
static const eini_chunk_row eini_chunk_table_512[] = {EINI_CHUNK_ROWS(256, 512)};
#undef EINI_CHUNK_ROWS
#undef EINI_NUM_
#undef EINI_NUM

// Loads and stores of storage dtypes.
static ein_chunk_fn eini_cpu_storage_fn(int wide, int load, ein_dtype type) {
  switch (type) {
    case EIN_F16:
      return wide ? (load ? eini_c_load_f16_512 : eini_c_store_f16_512)
                  : load ? eini_c_load_f16_256 : eini_c_store_f16_256;
    case EIN_BF16:
      return wide ? (load ? eini_c_load_bf16_512 : eini_c_store_bf16_512)
                  : load ? eini_c_load_bf16_256 : eini_c_store_bf16_256;
    case EIN_I8: return load ? eini_c_load_i8_256 : eini_c_store_8_256;
    case EIN_U8: return load ? eini_c_load_u8_256 : eini_c_store_8_256;
    case EIN_I16: return load ? eini_c_load_i16_256 : eini_c_store_16_256;
    default: return NULL;
  }
}

// Callers fold one chunk after the other: what comes next is on its way when a short one ends.
// Along longer ones the processor asks by itself.
#define EINI_ACROSS_AHEAD 4096  // bytes
// Folds in EINI_LANES lanes as section fold does, so that the bits are the same: the body here,
// the rest with its functions.
#define EINI_ACROSS_BODY(name, bits, T, V, load, op)                                             \
  EINI_T##bits static void eini_h_##name##_##bits(int64_t n, const void *px, void *acc) {   \
    enum { step = (int)(sizeof(V) / sizeof(T)), vectors = EINI_LANES / step };              \
    const T *x = (const T *)px;                                                             \
    T lane[EINI_LANES];                                                                     \
    V v[vectors];                                                                           \
    int64_t i = EINI_LANES;                                                                 \
    const int ahead = n * (int64_t)sizeof(T) <= 2 * EINI_ACROSS_AHEAD;                      \
    if (n < EINI_LANES) {                                                                   \
      eini_h_##name(n, px, acc);                                                            \
      return;                                                                               \
    }                                                                                       \
    for (int k = 0; k < vectors; k++) v[k] = load(x + k * step);                            \
    for (; i + EINI_LANES <= n; i += EINI_LANES) {                                          \
      for (size_t line = 0; ahead && line < sizeof lane; line += 64) {                      \
        _mm_prefetch((const char *)((uintptr_t)(x + i) + EINI_ACROSS_AHEAD + line), _MM_HINT_T0); \
      }                                                                                     \
      for (int k = 0; k < vectors; k++) v[k] = op(v[k], load(x + i + k * step));            \
    }                                                                                       \
    memcpy(lane, v, sizeof lane);                                                           \
    _mm256_zeroupper(); /* gcc 12 forgets it here: SSE code after it would wait */          \
    eini_v_##name(n - i, lane, x + i);                                                      \
    for (int64_t w = EINI_LANES / 2; w > 0; w /= 2) eini_v_##name(w, lane, lane + w);       \
    eini_v_##name(1, (T *)acc, lane);                                                       \
  }
#define EINI_LOADI(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_LOADZ(p) _mm512_loadu_si512((const void *)(p))
EINI_T256 static inline __m256i eini_max_256q(__m256i x, __m256i y) {
  return _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
}
EINI_T256 static inline __m256i eini_min_256q(__m256i x, __m256i y) {
  return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
}
EINI_T256 static inline __m256i eini_mul_256q(__m256i x, __m256i y) {
  __m256i mixed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), y),
                                   _mm256_mul_epu32(x, _mm256_srli_epi64(y, 32)));
  return _mm256_add_epi64(_mm256_mul_epu32(x, y), _mm256_slli_epi64(mixed, 32));
}
EINI_ACROSS_BODY(sum_f32, 256, float, __m256, _mm256_loadu_ps, _mm256_add_ps)
EINI_ACROSS_BODY(sum_f64, 256, double, __m256d, _mm256_loadu_pd, _mm256_add_pd)
EINI_ACROSS_BODY(sum_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_add_epi32)
EINI_ACROSS_BODY(sum_i64, 256, int64_t, __m256i, EINI_LOADI, _mm256_add_epi64)
EINI_ACROSS_BODY(prod_f32, 256, float, __m256, _mm256_loadu_ps, _mm256_mul_ps)
EINI_ACROSS_BODY(prod_f64, 256, double, __m256d, _mm256_loadu_pd, _mm256_mul_pd)
EINI_ACROSS_BODY(prod_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_mullo_epi32)
EINI_ACROSS_BODY(prod_i64, 256, int64_t, __m256i, EINI_LOADI, eini_mul_256q)
EINI_ACROSS_BODY(max_f32, 256, float, __m256, _mm256_loadu_ps, eini_max_256ps)
EINI_ACROSS_BODY(max_f64, 256, double, __m256d, _mm256_loadu_pd, eini_max_256pd)
EINI_ACROSS_BODY(max_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_max_epi32)
EINI_ACROSS_BODY(max_i64, 256, int64_t, __m256i, EINI_LOADI, eini_max_256q)
EINI_ACROSS_BODY(min_f32, 256, float, __m256, _mm256_loadu_ps, eini_min_256ps)
EINI_ACROSS_BODY(min_f64, 256, double, __m256d, _mm256_loadu_pd, eini_min_256pd)
EINI_ACROSS_BODY(min_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_min_epi32)
EINI_ACROSS_BODY(min_i64, 256, int64_t, __m256i, EINI_LOADI, eini_min_256q)
EINI_ACROSS_BODY(sum_f32, 512, float, __m512, _mm512_loadu_ps, _mm512_add_ps)
EINI_ACROSS_BODY(sum_f64, 512, double, __m512d, _mm512_loadu_pd, _mm512_add_pd)
EINI_ACROSS_BODY(sum_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_add_epi32)
EINI_ACROSS_BODY(sum_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_add_epi64)
EINI_ACROSS_BODY(prod_f32, 512, float, __m512, _mm512_loadu_ps, _mm512_mul_ps)
EINI_ACROSS_BODY(prod_f64, 512, double, __m512d, _mm512_loadu_pd, _mm512_mul_pd)
EINI_ACROSS_BODY(prod_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_mullo_epi32)
EINI_ACROSS_BODY(prod_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_mullo_epi64)
EINI_ACROSS_BODY(max_f32, 512, float, __m512, _mm512_loadu_ps, eini_max_512ps)
EINI_ACROSS_BODY(max_f64, 512, double, __m512d, _mm512_loadu_pd, eini_max_512pd)
EINI_ACROSS_BODY(max_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_max_epi32)
EINI_ACROSS_BODY(max_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_max_epi64)
EINI_ACROSS_BODY(min_f32, 512, float, __m512, _mm512_loadu_ps, eini_min_512ps)
EINI_ACROSS_BODY(min_f64, 512, double, __m512d, _mm512_loadu_pd, eini_min_512pd)
EINI_ACROSS_BODY(min_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_min_epi32)
EINI_ACROSS_BODY(min_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_min_epi64)
#undef EINI_LOADI
#undef EINI_LOADZ
#undef EINI_ACROSS_BODY
#undef EINI_ACROSS_AHEAD

// By fold (EIN_FOLD_SUM first) and column of the type.
#define EINI_ACROSS_ROW(name, bits)                                                         \
  {NULL, eini_h_##name##_i32_##bits, eini_h_##name##_i64_##bits, eini_h_##name##_f32_##bits, \
   eini_h_##name##_f64_##bits, NULL, NULL}
#define EINI_ACROSS_ROWS(bits)                                                              \
  {EINI_ACROSS_ROW(sum, bits), EINI_ACROSS_ROW(prod, bits), EINI_ACROSS_ROW(max, bits),     \
   EINI_ACROSS_ROW(min, bits)}
static const eini_horizontal_fn eini_across_table_256[4][7] = EINI_ACROSS_ROWS(256);
static const eini_horizontal_fn eini_across_table_512[4][7] = EINI_ACROSS_ROWS(512);
#undef EINI_ACROSS_ROWS
#undef EINI_ACROSS_ROW

#elif EINI_CPU_NEON

// The others are what the compiler makes of section eval anyway.
EINI_OP_SELVES(f32, 128, EINI_NS_)
EINI_OP_SELVES(f64, 128, EINI_ND_)
static const eini_chunk_row eini_chunk_table_128[] = {
    EINI_REA(EXP, exp, 128), EINI_REA(SIGMOID, sigmoid, 128), EINI_REA(SILU, silu, 128),
    EINI_REA(SQRT, sqrt, 128), EINI_REA(RSQRT, rsqrt, 128), EINI_REA(FLOOR, floor, 128),
    EINI_REA(CEIL, ceil, 128), EINI_REA(ROUND, round, 128)};

#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_REA_
#undef EINI_REA
#undef EINI_OP_SELVES
#undef EINI_OP_ROUNDING
#undef EINI_EXP_1
#undef EINI_OP_EXPS
#undef EINI_OP_ROOTS
#undef EINI_OP_SELF

// Of an instruction set: rows of chunks; folds, by fold and column of the type. NULL: none.
typedef struct eini_chunk_set {
  const eini_chunk_row *row;
  size_t rows;
  const eini_horizontal_fn (*across)[7];
} eini_chunk_set;

#define EINI_CHUNK_TABLE(table) table, sizeof table / sizeof *table
static const eini_chunk_set eini_chunk_sets[EINI_ISA_COUNT] = {
    {NULL, 0, NULL},
#if EINI_CPU_NEON
    {EINI_CHUNK_TABLE(eini_chunk_table_128), NULL}, {NULL, 0, NULL}, {NULL, 0, NULL}};
#elif EINI_CPU_X86
    {NULL, 0, NULL},
    {EINI_CHUNK_TABLE(eini_chunk_table_256), eini_across_table_256},
    {EINI_CHUNK_TABLE(eini_chunk_table_512), eini_across_table_512}};
#else
    {NULL, 0, NULL}, {NULL, 0, NULL}, {NULL, 0, NULL}};
#endif
#undef EINI_CHUNK_TABLE

static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  const eini_chunk_set *set = &eini_chunk_sets[isa];
#if EINI_CPU_X86
  if (isa >= EINI_ISA_AVX2 && (op == EIN_OP_OPERAND || op == EIN_OP_CAST))
    return eini_cpu_storage_fn(isa == EINI_ISA_AVX512, op == EIN_OP_OPERAND, type);
#endif
  for (size_t i = 0; i < set->rows; i++)
    if (set->row[i].op == op) return set->row[i].fn[eini_type_column(type)];
  return NULL;
}

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  const eini_chunk_set *set = &eini_chunk_sets[isa];
  if (set->across == NULL || fold < EIN_FOLD_SUM || fold > EIN_FOLD_MIN) return NULL;
  return set->across[fold - EIN_FOLD_SUM][eini_type_column(type)];
}
