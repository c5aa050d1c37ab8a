// ================================================================================================
// >>chunks  operations of expressions and folds, per instruction set
// The loops of einsum.h's sections math, eval and fold, compiled again: each function here has
// nothing in it but a call, and takes the callee's body in (flatten) under its own target.
// ================================================================================================

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
EINI_OP1(exp_f32) EINI_OP1(exp_f64)
EIN_OP_REALS(log)
EIN_OP_REALS(sin)
EIN_OP_REALS(cos)
EIN_OP_REALS(tanh)
EIN_OP_REALS(erf)
EINI_OP1(sigmoid_f32) EINI_OP1(sigmoid_f64)
EINI_OP1(silu_f32) EINI_OP1(silu_f64)
EINI_OP1(gelu_f32)
EINI_OP1(gelu_f64)
// Storage dtypes: NaN keeps its bits, which instructions that convert f16 would make quiet.
EINI_OP2(load_f16) EINI_OP2(load_bf16) EINI_OP2(store_f16) EINI_OP2(store_bf16)
EINI_OP1(load_i8) EINI_OP1(load_u8) EINI_OP1(load_i16) EINI_OP1(store_8) EINI_OP1(store_16)
#undef EIN_OP_REALS
#undef EIN_OP_NUMBERS
#undef EINI_OP2
#undef EINI_OP1

// 2^(j/16)
static const double eini_exp_parts[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};

// exp(x) = 2^m e^r, where m is x / ln 2 rounded to sixteenths: adding 1.5 * 2^48 rounds, and leaves
// the sixteenths j in the last four bits. 2^m comes as 2^(j/16) from two registers and as a power
// of two, which scalef also takes to subnormals, 0 and infinity. e^r = 1 + r + r^2 q(r), q fitted
// as those of section math; with y = r^2 + 19.99.. its degree of 4 takes three products. For x
// infinite, NaN or far out r means nothing and is made finite: m says what comes out. At most
// 1.13 ulp: 0.5 of the last sum, 0.5 of 2^(j/16), 0.1 of q; a second table with what 2^(j/16) lacks
// would halve that and take a fifth longer.
EINI_T512 static inline __m512d eini_exp_512pd(__m512d x) {
  const __m512d shift = _mm512_set1_pd(6755399441055744.0 / 16);
  const __m512d t = _mm512_fmadd_pd(x, _mm512_set1_pd(1.4426950408889634), shift);
  const __m512d m = _mm512_sub_pd(t, shift);
  const __m512d part = _mm512_permutex2var_pd(_mm512_loadu_pd(eini_exp_parts),
                                              _mm512_castpd_si512(t),
                                              _mm512_loadu_pd(eini_exp_parts + 8));
  __m512d r = _mm512_fnmadd_pd(m, _mm512_set1_pd(0.69314718055989033), x);  // ln 2 in two parts
  r = _mm512_fnmadd_pd(m, _mm512_set1_pd(5.4979230187083712e-14), r);
  r = _mm512_max_pd(_mm512_min_pd(r, _mm512_set1_pd(1)), _mm512_set1_pd(-1));  // NaN: 1
  const __m512d r2 = _mm512_mul_pd(r, r);
  const __m512d y = _mm512_add_pd(r2, _mm512_set1_pd(19.999664536645206));
  __m512d q = _mm512_fmadd_pd(r, _mm512_set1_pd(0.008333473110926876),
                              _mm512_set1_pd(-0.013885661260104924));
  q = _mm512_fmadd_pd(y, _mm512_set1_pd(0.0013888314944317652), q);
  q = _mm512_fmadd_pd(q, y, _mm512_set1_pd(0.22219460522547685));
  q = _mm512_fmadd_pd(q, r2, r);
  return _mm512_scalef_pd(_mm512_fmadd_pd(q, part, part), m);
}

// Here m is an integer, and e^r that of section math.
EINI_T512 static inline __m512 eini_exp_512ps(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0f);
  const __m512 m = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), shift), shift);
  __m512 r = _mm512_fnmadd_ps(m, _mm512_set1_ps(0.693145752f), x);
  r = _mm512_fnmadd_ps(m, _mm512_set1_ps(1.42860677e-06f), r);
  r = _mm512_max_ps(_mm512_min_ps(r, _mm512_set1_ps(1)), _mm512_set1_ps(-1));
  const __m512 r2 = _mm512_mul_ps(r, r);
  const __m512 low = _mm512_fmadd_ps(r, _mm512_set1_ps(0.166665167f), _mm512_set1_ps(0.499999881f));
  __m512 q = _mm512_fmadd_ps(r, _mm512_set1_ps(0.00836911518f), _mm512_set1_ps(0.0416696332f));
  q = _mm512_fmadd_ps(r2, _mm512_set1_ps(0.00137470546f), q);
  q = _mm512_fmadd_ps(_mm512_fmadd_ps(q, r2, low), r2, r);
  return _mm512_scalef_ps(_mm512_add_ps(q, _mm512_set1_ps(1)), m);
}

// libm's names keep compilers from vector code (errno, traps), so these say it themselves.
#define EIN_OP_SELF(name, bits, s, T, V, expr)                                             \
  EINI_T##bits static void eini_c_##name##_##s##_##bits(                                    \
      int64_t n, const void *pa, const void *b, const void *c, void *pd) {                  \
    const T *a = (const T *)pa;                                                             \
    T *d = (T *)pd;                                                                         \
    (void)b;                                                                                \
    (void)c;                                                                                \
    for (int64_t i = 0; i < n; i += (int64_t)(sizeof(V) / sizeof(T))) {                     \
      V x;                                                                                  \
      memcpy(&x, a + i, sizeof x);                                                          \
      x = expr;                                                                             \
      memcpy(d + i, &x, sizeof x);                                                          \
    }                                                                                       \
  }
#define EIN_OP_ROOTS(bits, s, T, V, P, F)                                                  \
  EIN_OP_SELF(sqrt, bits, s, T, V, P##_sqrt_##F(x))                                        \
  EIN_OP_SELF(rsqrt, bits, s, T, V, P##_div_##F(P##_set1_##F(1), P##_sqrt_##F(x)))
#define EIN_OP_EXPS(s, T, V, F)                                                            \
  EIN_OP_SELF(exp, 512, s, T, V, eini_exp_512##F(x))                                       \
  EIN_OP_SELF(sigmoid, 512, s, T, V, _mm512_div_##F(_mm512_set1_##F(1), EINI_EXP_1(F)))    \
  EIN_OP_SELF(silu, 512, s, T, V, _mm512_div_##F(x, EINI_EXP_1(F)))
// 1 + exp(-x)
#define EINI_EXP_1(F)                                                                       \
  _mm512_add_##F(_mm512_set1_##F(1), eini_exp_512##F(_mm512_sub_##F(_mm512_setzero_##F(), x)))
#define EIN_OP_ROUNDING(s, T, V, F)                                                        \
  EIN_OP_SELF(floor, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_FLOOR))                  \
  EIN_OP_SELF(ceil, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_CEIL))                    \
  EIN_OP_SELF(round, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_RINT))
EIN_OP_ROOTS(256, f32, float, __m256, _mm256, ps)
EIN_OP_ROOTS(256, f64, double, __m256d, _mm256, pd)
EIN_OP_ROOTS(512, f32, float, __m512, _mm512, ps)
EIN_OP_ROOTS(512, f64, double, __m512d, _mm512, pd)
EIN_OP_EXPS(f32, float, __m512, ps)
EIN_OP_EXPS(f64, double, __m512d, pd)
EIN_OP_ROUNDING(f32, float, __m256, ps)
EIN_OP_ROUNDING(f64, double, __m256d, pd)
#undef EIN_OP_ROUNDING
#undef EINI_EXP_1
#undef EIN_OP_EXPS
#undef EIN_OP_ROOTS
#undef EIN_OP_SELF

#define EINI_NUM(op, name, bits) EINI_NUM_(op, name, bits)
#define EINI_REA(op, name, bits) EINI_REA_(op, name, bits)
#define EINI_NUM_(op, name, bits)                                                           \
  {EIN_OP_##op, {NULL, eini_c_##name##_i32_##bits, eini_c_##name##_i64_##bits,             \
                  eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, NULL, NULL}}
#define EINI_REA_(op, name, bits)                                                           \
  {EIN_OP_##op, {NULL, NULL, NULL, eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, \
                  NULL, NULL}}
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
#undef EINI_REA_
#undef EINI_REA
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

static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  const eini_chunk_row *row = isa == EINI_ISA_AVX512 ? eini_chunk_table_512 : eini_chunk_table_256;
  if (isa < EINI_ISA_AVX2) return NULL;
  if (op == EIN_OP_OPERAND || op == EIN_OP_CAST)
    return eini_cpu_storage_fn(isa == EINI_ISA_AVX512, op == EIN_OP_OPERAND, type);
  for (size_t i = 0; i < sizeof eini_chunk_table_512 / sizeof *row; i++) {
    if (row[i].op == op) return row[i].fn[eini_type_column(type)];
  }
  return NULL;
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
// x where it is NaN; maxps gives its second operand for NaN and for zeros of two signs, as we want.
#define EINI_PICK256(F, f)                                                                  \
  EINI_T256 static inline __m256##f eini_max_256##F(__m256##f x, __m256##f y) {             \
    return _mm256_blendv_##F(_mm256_max_##F(x, y), x, _mm256_cmp_##F(x, x, _CMP_UNORD_Q));  \
  }                                                                                         \
  EINI_T256 static inline __m256##f eini_min_256##F(__m256##f x, __m256##f y) {             \
    return _mm256_blendv_##F(_mm256_min_##F(x, y), x, _mm256_cmp_##F(x, x, _CMP_UNORD_Q));  \
  }
#define EINI_PICK512(F, f)                                                                  \
  EINI_T512 static inline __m512##f eini_max_512##F(__m512##f x, __m512##f y) {             \
    return _mm512_mask_mov_##F(_mm512_max_##F(x, y),                                        \
                               _mm512_cmp_##F##_mask(x, x, _CMP_UNORD_Q), x);               \
  }                                                                                         \
  EINI_T512 static inline __m512##f eini_min_512##F(__m512##f x, __m512##f y) {             \
    return _mm512_mask_mov_##F(_mm512_min_##F(x, y),                                        \
                               _mm512_cmp_##F##_mask(x, x, _CMP_UNORD_Q), x);               \
  }
EINI_PICK256(ps, )
EINI_PICK256(pd, d)
EINI_PICK512(ps, )
EINI_PICK512(pd, d)
#undef EINI_PICK256
#undef EINI_PICK512
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

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  if (isa < EINI_ISA_AVX2 || fold < EIN_FOLD_SUM || fold > EIN_FOLD_MIN) return NULL;
  int column = eini_type_column(type);
  return isa == EINI_ISA_AVX512 ? eini_across_table_512[fold - EIN_FOLD_SUM][column]
                                : eini_across_table_256[fold - EIN_FOLD_SUM][column];
}
