// ================================================================================================
// >>chunks  operations of expressions and folds, per instruction set
// The loops of einsum.h's sections math, eval and fold, compiled again: functions with nothing in
// them but a call take the callee's body in (flatten) under their own target.
// ================================================================================================

#define EINI_OP_ARGS                                                                        \
  int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                      \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d
#define EINI_REA(op, name, s, t)                                                            \
  {EIN_OP_##op, {NULL, NULL, NULL, eini_c_##name##_##s, eini_c_##name##_##t, NULL, NULL}}

#if EINI_CPU_X86

// Elementary functions gain a third by fused products, and lose nothing: test_cpu has their errors.
#if defined(__GNUC__) && !defined(__clang__)
#define EINI_FLAT __attribute__((flatten, optimize("fp-contract=fast")))
#else
#define EINI_FLAT __attribute__((flatten))
#endif

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

#define EINI_KERNELS EINI_KERNELS_CHUNKS
#define EINI_CHUNK_REAL 0
#define EINI_VEC EINI_YI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZL
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#define EINI_CHUNK_REAL 1
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#undef EINI_KERNELS

#define EINI_NUM(op, name)                                                                  \
  {EIN_OP_##op, {NULL, eini_c_##name##_yi, eini_c_##name##_yl, eini_c_##name##_ys,          \
                 eini_c_##name##_yd, NULL, NULL}}
// Cheap operations are bound by the first-level cache: AVX2 does as well.
#define EINI_CHUNK_ROWS(s, d)                                                               \
  EINI_NUM(ADD, add), EINI_NUM(SUB, sub), EINI_NUM(MUL, mul), EINI_NUM(SQUARE, square),     \
  EINI_NUM(NEG, neg), EINI_NUM(MAX, max), EINI_NUM(MIN, min), EINI_NUM(LT, lt),             \
  EINI_NUM(LE, le), EINI_NUM(GT, gt), EINI_NUM(GE, ge), EINI_NUM(EQ, eq), EINI_NUM(NE, ne), \
  EINI_NUM(WHERE, where), EINI_NUM(RELU, relu), EINI_NUM(ABS, abs),                         \
  EINI_REA(DIV, quot, s, d), EINI_REA(EXP, exp, s, d), EINI_REA(LOG, log, s, d),            \
  EINI_REA(SIN, sin, s, d), EINI_REA(COS, cos, s, d), EINI_REA(TANH, tanh, s, d),           \
  EINI_REA(ERF, erf, s, d), EINI_REA(SIGMOID, sigmoid, s, d), EINI_REA(SILU, silu, s, d),   \
  EINI_REA(GELU, gelu, ys, yd), EINI_REA(SQRT, sqrt, s, d), EINI_REA(RSQRT, rsqrt, s, d),   \
  EINI_REA(FLOOR, floor, ys, yd), EINI_REA(CEIL, ceil, ys, yd), EINI_REA(ROUND, round, ys, yd)
static const eini_chunk_row eini_chunk_table_256[] = {EINI_CHUNK_ROWS(ys, yd)};
static const eini_chunk_row eini_chunk_table_512[] = {EINI_CHUNK_ROWS(zs, zd)};
#undef EINI_CHUNK_ROWS
#undef EINI_NUM
#undef EINI_FLAT

// eini_bf16_store in vectors, for which compilers need twice as many operations: tiles of bf16 are
// soon done.
EINI_T512 static void eini_c_store_bf16_zs(EINI_OP_ARGS) {
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1);
  (void)b, (void)c;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 f = _mm512_loadu_ps((const float *)a + i);
    const __m512i u = _mm512_castps_si512(f), high = _mm512_srli_epi32(u, 16);
    const __m512i r = _mm512_srli_epi32(
        _mm512_add_epi32(_mm512_add_epi32(u, half), _mm512_and_si512(high, one)), 16);
    const __m512i x = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), high,
                                           _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)d + i), _mm512_cvtepi32_epi16(x));
  }
}

// Loads and stores of storage dtypes.
static ein_chunk_fn eini_cpu_storage_fn(int wide, int load, ein_dtype type) {
  switch (type) {
    case EIN_F16:
      return wide ? (load ? eini_c_load_f16_zs : eini_c_store_f16_zs)
                  : load ? eini_c_load_f16_ys : eini_c_store_f16_ys;
    case EIN_BF16:
      return wide ? (load ? eini_c_load_bf16_zs : eini_c_store_bf16_zs)
                  : load ? eini_c_load_bf16_ys : eini_c_store_bf16_ys;
    case EIN_I8: return load ? eini_c_load_i8_yi : eini_c_store_8_yi;
    case EIN_U8: return load ? eini_c_load_u8_yi : eini_c_store_8_yi;
    case EIN_I16: return load ? eini_c_load_i16_yi : eini_c_store_16_yi;
    default: return NULL;
  }
}

// By fold (EIN_FOLD_SUM first) and column of the type.
#define EINI_ACROSS_ROW(name, v)                                                            \
  {NULL, eini_h_##name##_##v##i, eini_h_##name##_##v##l, eini_h_##name##_##v##s,            \
   eini_h_##name##_##v##d, NULL, NULL}
static const eini_horizontal_fn eini_across_table_256[4][7] = {
    EINI_ACROSS_ROW(sum, y), EINI_ACROSS_ROW(prod, y), EINI_ACROSS_ROW(max, y),
    EINI_ACROSS_ROW(min, y)};
static const eini_horizontal_fn eini_across_table_512[4][7] = {
    EINI_ACROSS_ROW(sum, z), EINI_ACROSS_ROW(prod, z), EINI_ACROSS_ROW(max, z),
    EINI_ACROSS_ROW(min, z)};
#undef EINI_ACROSS_ROW

#elif EINI_CPU_NEON

// The others are what the compiler makes of section eval anyway.
#define EINI_KERNELS EINI_KERNELS_CHUNKS
#define EINI_CHUNK_REAL 1
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#undef EINI_KERNELS
static const eini_chunk_row eini_chunk_table_128[] = {
    EINI_REA(EXP, exp, ns, nd), EINI_REA(SIGMOID, sigmoid, ns, nd), EINI_REA(SILU, silu, ns, nd),
    EINI_REA(SQRT, sqrt, ns, nd), EINI_REA(RSQRT, rsqrt, ns, nd), EINI_REA(FLOOR, floor, ns, nd),
    EINI_REA(CEIL, ceil, ns, nd), EINI_REA(ROUND, round, ns, nd)};

#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_REA
#undef EINI_OP_ARGS

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
