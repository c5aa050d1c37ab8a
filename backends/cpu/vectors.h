// ================================================================================================
// >>vectors  vectors of the instruction sets
// One small set of operations per instruction set (Z: AVX-512, Y: AVX2, N: NEON, C: plain C, S: one
// number) and dtype (D, S: f64 and f32; L, I: i64 and i32) under a common prefix, for kernels.
// ================================================================================================

// TAG: the end of the names of its functions. BYTES: of T, of which there are W to a vector V.
// AT: what functions with such vectors are declared with; END: after the last of them. PAST and
// STREAM go past the caches, where there are such stores; m: the lanes, ~0 for all. MIN and MAX
// give their second argument when one is NaN (NEON: NaN). KEEP: c where it is NaN, else r. TOP and
// LOW: the extrema of expressions, x where it is NaN. FNMA: c - a * b. RELU: 0 where it is less.
// TYPE: T as other sections name it in their functions. B: the same bits as integers. EXPS: EXP of
// eight variables. U: T in memory, written as whatever type; integers unsigned, so that they wrap.
// LOADM and STOREM touch no lanes but the first n, of the mask MASK(n) of type M; the others are 0.
// REAL: 1 of floating types. REGS: registers. HALF: where vectors have 64 bytes, the set of those
// of 32, if there is one. FAR: the tag of the set that reads what comes from memory, in the first
// lanes of this one (Zen 4 reads memory 7 % faster by halves of its lines). O: V as it is compared.

#if defined(__GNUC__) || defined(__clang__)
#define EINI_ALIAS __attribute__((may_alias))
#else
#define EINI_ALIAS
#endif
typedef float eini_any_f32 EINI_ALIAS;
typedef double eini_any_f64 EINI_ALIAS;
typedef uint32_t eini_any_i32 EINI_ALIAS;
typedef uint64_t eini_any_i64 EINI_ALIAS;
#undef EINI_ALIAS

#if EINI_CPU_X86
// min and max with a mask of all lanes: gcc 12 warns of its own headers about the plain ones.
#define EINI_ZD_TAG zd
#define EINI_ZD_TYPE f64
#define EINI_ZD_BYTES 8
#define EINI_ZD_T double
#define EINI_ZD_U eini_any_f64
#define EINI_ZD_V __m512d
#define EINI_ZD_W 8
#define EINI_ZD_REAL 1
#define EINI_ZD_REGS 32
#define EINI_ZD_FAR yd
#define EINI_ZD_HALF EINI_YD
#define EINI_ZD_LOAD(p) _mm512_loadu_pd(p)
#define EINI_ZD_STORE(p, x) _mm512_storeu_pd(p, x)
#define EINI_ZD_M __mmask8
#define EINI_ZD_MASK(n) (__mmask8)((1u << (n)) - 1u)
#define EINI_ZD_LOADM(p, m) _mm512_maskz_loadu_pd(m, p)
#define EINI_ZD_STOREM(p, m, x) _mm512_mask_storeu_pd(p, m, x)
#define EINI_ZD_STREAM(p, x, m) \
  ((m) == ~0u ? _mm512_stream_pd(p, x) : _mm512_mask_storeu_pd(p, (__mmask8)(m), x))
#define EINI_ZD_SET(x) _mm512_set1_pd(x)
#define EINI_ZD_ADD(a, b) _mm512_add_pd(a, b)
#define EINI_ZD_SUB(a, b) _mm512_sub_pd(a, b)
#define EINI_ZD_MUL(a, b) _mm512_mul_pd(a, b)
#define EINI_ZD_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define EINI_ZD_MIN(a, b) _mm512_mask_min_pd(a, 0xff, a, b)
#define EINI_ZD_MAX(a, b) _mm512_mask_max_pd(a, 0xff, a, b)
#define EINI_ZD_ABS(a) _mm512_abs_pd(a)
#define EINI_ZD_KEEP(c, r) \
  _mm512_mask_mov_pd(r, _mm512_cmp_pd_mask(c, c, _CMP_UNORD_Q), c)
#define EINI_ZD_AT EINI_T512
#define EINI_ZD_END _mm256_zeroupper()
#define EINI_ZD_PAST(p, x) _mm512_stream_pd(p, x)
#define EINI_ZD_DIV(a, b) _mm512_div_pd(a, b)
#define EINI_ZD_SQRT(a) _mm512_sqrt_pd(a)
#define EINI_ZD_FNMA(a, b, c) _mm512_fnmadd_pd(a, b, c)
#define EINI_ZD_NEG(a) _mm512_xor_pd(a, _mm512_set1_pd(-0.0))
#define EINI_ZD_RELU(a) \
  _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_NLT_UQ), a)
#define EINI_ZD_TOP(x, y) eini_max_512pd(x, y)
#define EINI_ZD_LOW(x, y) eini_min_512pd(x, y)
#define EINI_ZD_EXP(x) eini_exp_zd(x)
#define EINI_ZD_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_zd, a, b, c, d, e, f, g, h)

#define EINI_ZS_TAG zs
#define EINI_ZS_TYPE f32
#define EINI_ZS_BYTES 4
#define EINI_ZS_T float
#define EINI_ZS_U eini_any_f32
#define EINI_ZS_V __m512
#define EINI_ZS_W 16
#define EINI_ZS_REAL 1
#define EINI_ZS_REGS 32
#define EINI_ZS_FAR ys
#define EINI_ZS_HALF EINI_YS
#define EINI_ZS_LOAD(p) _mm512_loadu_ps(p)
#define EINI_ZS_STORE(p, x) _mm512_storeu_ps(p, x)
#define EINI_ZS_M __mmask16
#define EINI_ZS_MASK(n) (__mmask16)((1u << (n)) - 1u)
#define EINI_ZS_LOADM(p, m) _mm512_maskz_loadu_ps(m, p)
#define EINI_ZS_STOREM(p, m, x) _mm512_mask_storeu_ps(p, m, x)
#define EINI_ZS_STREAM(p, x, m) \
  ((m) == ~0u ? _mm512_stream_ps(p, x) : _mm512_mask_storeu_ps(p, (__mmask16)(m), x))
#define EINI_ZS_SET(x) _mm512_set1_ps(x)
#define EINI_ZS_ADD(a, b) _mm512_add_ps(a, b)
#define EINI_ZS_SUB(a, b) _mm512_sub_ps(a, b)
#define EINI_ZS_MUL(a, b) _mm512_mul_ps(a, b)
#define EINI_ZS_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define EINI_ZS_MIN(a, b) _mm512_mask_min_ps(a, 0xffff, a, b)
#define EINI_ZS_MAX(a, b) _mm512_mask_max_ps(a, 0xffff, a, b)
#define EINI_ZS_ABS(a) _mm512_abs_ps(a)
#define EINI_ZS_KEEP(c, r) \
  _mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(c, c, _CMP_UNORD_Q), c)
#define EINI_ZS_AT EINI_T512
#define EINI_ZS_END _mm256_zeroupper()
#define EINI_ZS_PAST(p, x) _mm512_stream_ps(p, x)
#define EINI_ZS_DIV(a, b) _mm512_div_ps(a, b)
#define EINI_ZS_SQRT(a) _mm512_sqrt_ps(a)
#define EINI_ZS_FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define EINI_ZS_NEG(a) _mm512_xor_ps(a, _mm512_set1_ps(-0.0f))
#define EINI_ZS_RELU(a) \
  _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NLT_UQ), a)
#define EINI_ZS_TOP(x, y) eini_max_512ps(x, y)
#define EINI_ZS_LOW(x, y) eini_min_512ps(x, y)
#define EINI_ZS_EXP(x) eini_exp_zs(x)
#define EINI_ZS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_zs, a, b, c, d, e, f, g, h)

static const int32_t eini_mask_256[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#define EINI_MASK_256(words) \
  _mm256_loadu_si256((const __m256i *)(const void *)(eini_mask_256 + 8 - (words)))

#define EINI_YD_TAG yd
#define EINI_YD_TYPE f64
#define EINI_YD_BYTES 8
#define EINI_YD_T double
#define EINI_YD_U eini_any_f64
#define EINI_YD_V __m256d
#define EINI_YD_W 4
#define EINI_YD_REAL 1
#define EINI_YD_REGS 16
#define EINI_YD_FAR yd
#define EINI_YD_LOAD(p) _mm256_loadu_pd(p)
#define EINI_YD_STORE(p, x) _mm256_storeu_pd(p, x)
#define EINI_YD_M __m256i
#define EINI_YD_MASK(n) EINI_MASK_256(2 * (n))
#define EINI_YD_LOADM(p, m) _mm256_maskload_pd(p, m)
#define EINI_YD_STOREM(p, m, x) _mm256_maskstore_pd(p, m, x)
#define EINI_YD_STREAM(p, x, m) _mm256_stream_pd(p, x)
#define EINI_YD_SET(x) _mm256_set1_pd(x)
#define EINI_YD_ADD(a, b) _mm256_add_pd(a, b)
#define EINI_YD_SUB(a, b) _mm256_sub_pd(a, b)
#define EINI_YD_MUL(a, b) _mm256_mul_pd(a, b)
#define EINI_YD_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define EINI_YD_MIN(a, b) _mm256_min_pd(a, b)
#define EINI_YD_MAX(a, b) _mm256_max_pd(a, b)
#define EINI_YD_ABS(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define EINI_YD_KEEP(c, r) _mm256_blendv_pd(r, c, _mm256_cmp_pd(c, c, _CMP_UNORD_Q))
#define EINI_YD_AT EINI_T256
#define EINI_YD_END _mm256_zeroupper()
#define EINI_YD_PAST(p, x) _mm256_stream_pd(p, x)
#define EINI_YD_DIV(a, b) _mm256_div_pd(a, b)
#define EINI_YD_SQRT(a) _mm256_sqrt_pd(a)
#define EINI_YD_FNMA(a, b, c) _mm256_fnmadd_pd(a, b, c)
#define EINI_YD_NEG(a) _mm256_xor_pd(a, _mm256_set1_pd(-0.0))
#define EINI_YD_RELU(a) _mm256_and_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NLT_UQ), a)
#define EINI_YD_TOP(x, y) eini_max_256pd(x, y)
#define EINI_YD_LOW(x, y) eini_min_256pd(x, y)
#define EINI_YD_FLOOR(x) _mm256_round_pd(x, _MM_FROUND_FLOOR)
#define EINI_YD_CEIL(x) _mm256_round_pd(x, _MM_FROUND_CEIL)
#define EINI_YD_RINT(x) _mm256_round_pd(x, _MM_FROUND_RINT)
#define EINI_YD_EXP(x) eini_exp_yd(x)
#define EINI_YD_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS_YD(a, b, c, d, e, f, g, h)
#define EINI_YD_B __m256i
#define EINI_YD_BITS(x) _mm256_castpd_si256(x)
#define EINI_YD_FROM(i) _mm256_castsi256_pd(i)
#define EINI_YD_BSET(i) _mm256_set1_epi64x(i)
#define EINI_YD_BSUB(i, j) _mm256_sub_epi64(i, j)
#define EINI_YD_SHR(i, n) _mm256_srli_epi64(i, n)
#define EINI_YD_SHL(i, n) _mm256_slli_epi64(i, n)

#define EINI_YS_TAG ys
#define EINI_YS_TYPE f32
#define EINI_YS_BYTES 4
#define EINI_YS_T float
#define EINI_YS_U eini_any_f32
#define EINI_YS_V __m256
#define EINI_YS_W 8
#define EINI_YS_REAL 1
#define EINI_YS_REGS 16
#define EINI_YS_FAR ys
#define EINI_YS_LOAD(p) _mm256_loadu_ps(p)
#define EINI_YS_STORE(p, x) _mm256_storeu_ps(p, x)
#define EINI_YS_M __m256i
#define EINI_YS_MASK(n) EINI_MASK_256(n)
#define EINI_YS_LOADM(p, m) _mm256_maskload_ps(p, m)
#define EINI_YS_STOREM(p, m, x) _mm256_maskstore_ps(p, m, x)
#define EINI_YS_STREAM(p, x, m) _mm256_stream_ps(p, x)
#define EINI_YS_SET(x) _mm256_set1_ps(x)
#define EINI_YS_ADD(a, b) _mm256_add_ps(a, b)
#define EINI_YS_SUB(a, b) _mm256_sub_ps(a, b)
#define EINI_YS_MUL(a, b) _mm256_mul_ps(a, b)
#define EINI_YS_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define EINI_YS_MIN(a, b) _mm256_min_ps(a, b)
#define EINI_YS_MAX(a, b) _mm256_max_ps(a, b)
#define EINI_YS_ABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define EINI_YS_KEEP(c, r) _mm256_blendv_ps(r, c, _mm256_cmp_ps(c, c, _CMP_UNORD_Q))
#define EINI_YS_AT EINI_T256
#define EINI_YS_END _mm256_zeroupper()
#define EINI_YS_PAST(p, x) _mm256_stream_ps(p, x)
#define EINI_YS_DIV(a, b) _mm256_div_ps(a, b)
#define EINI_YS_SQRT(a) _mm256_sqrt_ps(a)
#define EINI_YS_FNMA(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define EINI_YS_NEG(a) _mm256_xor_ps(a, _mm256_set1_ps(-0.0f))
#define EINI_YS_RELU(a) _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NLT_UQ), a)
#define EINI_YS_TOP(x, y) eini_max_256ps(x, y)
#define EINI_YS_LOW(x, y) eini_min_256ps(x, y)
#define EINI_YS_FLOOR(x) _mm256_round_ps(x, _MM_FROUND_FLOOR)
#define EINI_YS_CEIL(x) _mm256_round_ps(x, _MM_FROUND_CEIL)
#define EINI_YS_RINT(x) _mm256_round_ps(x, _MM_FROUND_RINT)
#define EINI_YS_EXP(x) eini_exp_ys(x)
#define EINI_YS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_ys, a, b, c, d, e, f, g, h)
#define EINI_YS_B __m256i
#define EINI_YS_BITS(x) _mm256_castps_si256(x)
#define EINI_YS_FROM(i) _mm256_castsi256_ps(i)
#define EINI_YS_BSET(i) _mm256_set1_epi32(i)
#define EINI_YS_BSUB(i, j) _mm256_sub_epi32(i, j)
#define EINI_YS_SHR(i, n) _mm256_srli_epi32(i, n)
#define EINI_YS_SHL(i, n) _mm256_slli_epi32(i, n)

#define EINI_ZL_TAG zl
#define EINI_ZL_TYPE i64
#define EINI_ZL_BYTES 8
#define EINI_ZL_T int64_t
#define EINI_ZL_V __m512i
#define EINI_ZL_W 8
#define EINI_ZL_HALF EINI_ZL
#define EINI_ZL_LOAD(p) _mm512_loadu_si512(p)
#define EINI_ZL_STORE(p, x) _mm512_storeu_si512(p, x)
#define EINI_ZL_STREAM(p, x, m)                                   \
  ((m) == ~0u ? _mm512_stream_si512((__m512i *)(void *)(p), x)         \
              : _mm512_mask_storeu_epi64((void *)(p), (__mmask8)(m), x))
#define EINI_ZL_SET(x) _mm512_set1_epi64(x)
#define EINI_ZL_ADD(a, b) _mm512_add_epi64(a, b)
#define EINI_ZL_FMA(a, b, c) _mm512_add_epi64(c, _mm512_mullo_epi64(a, b))
#define EINI_ZL_AT EINI_T512
#define EINI_ZL_MUL(a, b) _mm512_mullo_epi64(a, b)
#define EINI_ZL_TOP(x, y) _mm512_max_epi64(x, y)
#define EINI_ZL_LOW(x, y) _mm512_min_epi64(x, y)

#define EINI_ZI_TAG zi
#define EINI_ZI_TYPE i32
#define EINI_ZI_BYTES 4
#define EINI_ZI_T int32_t
#define EINI_ZI_V __m512i
#define EINI_ZI_W 16
#define EINI_ZI_HALF EINI_YI
#define EINI_ZI_LOAD(p) _mm512_loadu_si512(p)
#define EINI_ZI_STORE(p, x) _mm512_storeu_si512(p, x)
#define EINI_ZI_STREAM(p, x, m)                                   \
  ((m) == ~0u ? _mm512_stream_si512((__m512i *)(void *)(p), x)         \
              : _mm512_mask_storeu_epi32((void *)(p), (__mmask16)(m), x))
#define EINI_ZI_SET(x) _mm512_set1_epi32(x)
#define EINI_ZI_ADD(a, b) _mm512_add_epi32(a, b)
#define EINI_ZI_FMA(a, b, c) _mm512_add_epi32(c, _mm512_mullo_epi32(a, b))
#define EINI_ZI_AT EINI_T512
#define EINI_ZI_MUL(a, b) _mm512_mullo_epi32(a, b)
#define EINI_ZI_TOP(x, y) _mm512_max_epi32(x, y)
#define EINI_ZI_LOW(x, y) _mm512_min_epi32(x, y)

#define EINI_YI_TAG yi
#define EINI_YI_TYPE i32
#define EINI_YI_BYTES 4
#define EINI_YI_T int32_t
#define EINI_YI_V __m256i
#define EINI_YI_W 8
#define EINI_YI_AT EINI_T256
#define EINI_YI_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_YI_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define EINI_YI_STREAM(p, x, m) _mm256_stream_si256((__m256i *)(void *)(p), x)
#define EINI_YI_SET(x) _mm256_set1_epi32(x)
#define EINI_YI_ADD(a, b) _mm256_add_epi32(a, b)
#define EINI_YI_MUL(a, b) _mm256_mullo_epi32(a, b)
#define EINI_YI_FMA(a, b, c) _mm256_add_epi32(c, _mm256_mullo_epi32(a, b))
#define EINI_YI_TOP(x, y) _mm256_max_epi32(x, y)
#define EINI_YI_LOW(x, y) _mm256_min_epi32(x, y)

#define EINI_YL_TAG yl
#define EINI_YL_TYPE i64
#define EINI_YL_BYTES 8
#define EINI_YL_T int64_t
#define EINI_YL_V __m256i
#define EINI_YL_W 4
#define EINI_YL_AT EINI_T256
#define EINI_YL_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_YL_ADD(a, b) _mm256_add_epi64(a, b)
#define EINI_YL_MUL(a, b) eini_mul_256q(a, b)
#define EINI_YL_TOP(x, y) eini_max_256q(x, y)
#define EINI_YL_LOW(x, y) eini_min_256q(x, y)

// The same, and i64, as vectors of unsigned numbers: of __m256i gcc 12 would keep fewer sums in
// registers, for each operation has to change the type.
#define EINI_QI_TAG qi
#define EINI_QI_BYTES 4
#define EINI_QI_T int32_t
#define EINI_QI_U eini_any_i32
#define EINI_QI_V __v8su
#define EINI_QI_W 8
#define EINI_QI_REAL 0
#define EINI_QI_REGS 16
#define EINI_QI_FAR qi
#define EINI_QI_AT EINI_T256
#define EINI_QI_LOAD(p) (__v8su)_mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_QI_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), (__m256i)(x))
#define EINI_QI_M __m256i
#define EINI_QI_MASK(n) EINI_MASK_256(n)
#define EINI_QI_LOADM(p, m) (__v8su)_mm256_maskload_epi32((const int *)(const void *)(p), m)
#define EINI_QI_STOREM(p, m, x) \
  _mm256_maskstore_epi32((int *)(void *)(p), m, (__m256i)(x))
#define EINI_QI_SET(x) (__v8su)_mm256_set1_epi32((int32_t)(x))
#define EINI_QI_ADD(a, b) ((a) + (b))
#define EINI_QI_MUL(a, b) ((a) * (b))
#define EINI_QI_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_QI_TOP(x, y) (__v8su)_mm256_max_epi32((__m256i)(x), (__m256i)(y))
#define EINI_QI_LOW(x, y) (__v8su)_mm256_min_epi32((__m256i)(x), (__m256i)(y))

#define EINI_QL_TAG ql
#define EINI_QL_BYTES 8
#define EINI_QL_T int64_t
#define EINI_QL_U eini_any_i64
#define EINI_QL_V __v4du
#define EINI_QL_W 4
#define EINI_QL_REAL 0
#define EINI_QL_REGS 16
#define EINI_QL_FAR ql
#define EINI_QL_AT EINI_T256
#define EINI_QL_LOAD(p) (__v4du)_mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_QL_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), (__m256i)(x))
#define EINI_QL_M __m256i
#define EINI_QL_MASK(n) EINI_MASK_256(2 * (n))
#define EINI_QL_LOADM(p, m) (__v4du)_mm256_maskload_epi64((const long long *)(const void *)(p), m)
#define EINI_QL_STOREM(p, m, x) \
  _mm256_maskstore_epi64((long long *)(void *)(p), m, (__m256i)(x))
#define EINI_QL_SET(x) (__v4du)_mm256_set1_epi64x((int64_t)(x))
#define EINI_QL_ADD(a, b) ((a) + (b))
#define EINI_QL_MUL(a, b) ((a) * (b))
#define EINI_QL_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_QL_TOP(x, y) (__v4du)eini_max_256q((__m256i)(x), (__m256i)(y))
#define EINI_QL_LOW(x, y) (__v4du)eini_min_256q((__m256i)(x), (__m256i)(y))

// x where it is NaN; maxps gives its second operand for NaN and for zeros of two signs, as we want.
EINI_T256 static inline __m256 eini_max_256ps(__m256 x, __m256 y) {
  return EINI_YS_KEEP(x, EINI_YS_MAX(x, y));
}
EINI_T256 static inline __m256 eini_min_256ps(__m256 x, __m256 y) {
  return EINI_YS_KEEP(x, EINI_YS_MIN(x, y));
}
EINI_T256 static inline __m256d eini_max_256pd(__m256d x, __m256d y) {
  return EINI_YD_KEEP(x, EINI_YD_MAX(x, y));
}
EINI_T256 static inline __m256d eini_min_256pd(__m256d x, __m256d y) {
  return EINI_YD_KEEP(x, EINI_YD_MIN(x, y));
}
EINI_T512 static inline __m512 eini_max_512ps(__m512 x, __m512 y) {
  return EINI_ZS_KEEP(x, EINI_ZS_MAX(x, y));
}
EINI_T512 static inline __m512 eini_min_512ps(__m512 x, __m512 y) {
  return EINI_ZS_KEEP(x, EINI_ZS_MIN(x, y));
}
EINI_T512 static inline __m512d eini_max_512pd(__m512d x, __m512d y) {
  return EINI_ZD_KEEP(x, EINI_ZD_MAX(x, y));
}
EINI_T512 static inline __m512d eini_min_512pd(__m512d x, __m512d y) {
  return EINI_ZD_KEEP(x, EINI_ZD_MIN(x, y));
}
#endif  // EINI_CPU_X86

#if EINI_CPU_NEON
#define EINI_ND_TAG nd
#define EINI_ND_BYTES 8
#define EINI_ND_T double
#define EINI_ND_U eini_any_f64
#define EINI_ND_V float64x2_t
#define EINI_ND_W 2
#define EINI_ND_REAL 1
#define EINI_ND_REGS 32
#define EINI_ND_FAR nd
#define EINI_ND_LOAD(p) vld1q_f64(p)
#define EINI_ND_STORE(p, x) vst1q_f64(p, x)
#define EINI_ND_M int
#define EINI_ND_MASK(n) ((int)(n))
#define EINI_ND_LOADM(p, m) eini_loadm_nd(p, m)
#define EINI_ND_STOREM(p, m, x) eini_storem_nd(p, m, x)
#define EINI_ND_STREAM(p, x, m) vst1q_f64(p, x)
#define EINI_ND_SET(x) vdupq_n_f64(x)
#define EINI_ND_ADD(a, b) vaddq_f64(a, b)
#define EINI_ND_SUB(a, b) vsubq_f64(a, b)
#define EINI_ND_MUL(a, b) vmulq_f64(a, b)
#define EINI_ND_FMA(a, b, c) vfmaq_f64(c, a, b)
#define EINI_ND_MIN(a, b) vminq_f64(a, b)
#define EINI_ND_MAX(a, b) vmaxq_f64(a, b)
#define EINI_ND_ABS(a) vabsq_f64(a)
#define EINI_ND_KEEP(c, r) (r)  // vmin and vmax keep NaN themselves
#define EINI_ND_AT EINI_UNUSED
#define EINI_ND_END (void)0
#define EINI_ND_PAST(p, x) vst1q_f64(p, x)
#define EINI_ND_DIV(a, b) vdivq_f64(a, b)
#define EINI_ND_SQRT(a) vsqrtq_f64(a)
#define EINI_ND_FNMA(a, b, c) vfmsq_f64(c, a, b)
#define EINI_ND_NEG(a) vnegq_f64(a)
#define EINI_ND_RELU(a) \
  vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(a), vcltzq_f64(a)))
#define EINI_ND_TOP(x, y) vbslq_f64(vornq_u64(vcgtq_f64(x, y), vceqq_f64(x, x)), x, y)
#define EINI_ND_LOW(x, y) vbslq_f64(vornq_u64(vcltq_f64(x, y), vceqq_f64(x, x)), x, y)
#define EINI_ND_FLOOR(x) vrndmq_f64(x)
#define EINI_ND_CEIL(x) vrndpq_f64(x)
#define EINI_ND_RINT(x) vrndiq_f64(x)
#define EINI_ND_EXP(x) eini_exp_nd(x)
#define EINI_ND_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_nd, a, b, c, d, e, f, g, h)
#define EINI_ND_B uint64x2_t
#define EINI_ND_BITS(x) vreinterpretq_u64_f64(x)
#define EINI_ND_FROM(i) vreinterpretq_f64_u64(i)
#define EINI_ND_BSET(i) vdupq_n_u64(i)
#define EINI_ND_BSUB(i, j) vsubq_u64(i, j)
#define EINI_ND_SHR(i, n) vshrq_n_u64(i, n)
#define EINI_ND_SHL(i, n) vshlq_n_u64(i, n)

#define EINI_NS_TAG ns
#define EINI_NS_BYTES 4
#define EINI_NS_T float
#define EINI_NS_U eini_any_f32
#define EINI_NS_V float32x4_t
#define EINI_NS_W 4
#define EINI_NS_REAL 1
#define EINI_NS_REGS 32
#define EINI_NS_FAR ns
#define EINI_NS_LOAD(p) vld1q_f32(p)
#define EINI_NS_STORE(p, x) vst1q_f32(p, x)
#define EINI_NS_M int
#define EINI_NS_MASK(n) ((int)(n))
#define EINI_NS_LOADM(p, m) eini_loadm_ns(p, m)
#define EINI_NS_STOREM(p, m, x) eini_storem_ns(p, m, x)
#define EINI_NS_STREAM(p, x, m) vst1q_f32(p, x)
#define EINI_NS_SET(x) vdupq_n_f32(x)
#define EINI_NS_ADD(a, b) vaddq_f32(a, b)
#define EINI_NS_SUB(a, b) vsubq_f32(a, b)
#define EINI_NS_MUL(a, b) vmulq_f32(a, b)
#define EINI_NS_FMA(a, b, c) vfmaq_f32(c, a, b)
#define EINI_NS_MIN(a, b) vminq_f32(a, b)
#define EINI_NS_MAX(a, b) vmaxq_f32(a, b)
#define EINI_NS_ABS(a) vabsq_f32(a)
#define EINI_NS_KEEP(c, r) (r)
#define EINI_NS_AT EINI_UNUSED
#define EINI_NS_END (void)0
#define EINI_NS_PAST(p, x) vst1q_f32(p, x)
#define EINI_NS_DIV(a, b) vdivq_f32(a, b)
#define EINI_NS_SQRT(a) vsqrtq_f32(a)
#define EINI_NS_FNMA(a, b, c) vfmsq_f32(c, a, b)
#define EINI_NS_NEG(a) vnegq_f32(a)
#define EINI_NS_RELU(a) \
  vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), vcltzq_f32(a)))
#define EINI_NS_TOP(x, y) vbslq_f32(vornq_u32(vcgtq_f32(x, y), vceqq_f32(x, x)), x, y)
#define EINI_NS_LOW(x, y) vbslq_f32(vornq_u32(vcltq_f32(x, y), vceqq_f32(x, x)), x, y)
#define EINI_NS_FLOOR(x) vrndmq_f32(x)
#define EINI_NS_CEIL(x) vrndpq_f32(x)
#define EINI_NS_RINT(x) vrndiq_f32(x)
#define EINI_NS_EXP(x) eini_exp_ns(x)
#define EINI_NS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_ns, a, b, c, d, e, f, g, h)
#define EINI_NS_B uint32x4_t
#define EINI_NS_BITS(x) vreinterpretq_u32_f32(x)
#define EINI_NS_FROM(i) vreinterpretq_f32_u32(i)
#define EINI_NS_BSET(i) vdupq_n_u32(i)
#define EINI_NS_BSUB(i, j) vsubq_u32(i, j)
#define EINI_NS_SHR(i, n) vshrq_n_u32(i, n)
#define EINI_NS_SHL(i, n) vshlq_n_u32(i, n)

#define EINI_NI_TAG ni
#define EINI_NI_AT EINI_UNUSED
#define EINI_NI_BYTES 4
#define EINI_NI_T int32_t
#define EINI_NI_V int32x4_t
#define EINI_NI_W 4
#define EINI_NI_LOAD(p) vld1q_s32(p)
#define EINI_NI_STORE(p, x) vst1q_s32(p, x)
#define EINI_NI_STREAM(p, x, m) vst1q_s32(p, x)
#define EINI_NI_SET(x) vdupq_n_s32(x)
#define EINI_NI_ADD(a, b) vaddq_s32(a, b)
#define EINI_NI_FMA(a, b, c) vmlaq_s32(c, a, b)

#define EINI_KERNELS EINI_KERNELS_PARTIAL
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS
#endif  // EINI_CPU_NEON

#if !EINI_CPU_X86
// Vectors of compilers that have them, whatever the machine is; else single numbers. Of integers
// they do for NEON, too.
#if defined(__GNUC__) || defined(__clang__)
#define EINI_C_VECTOR __attribute__((vector_size(16)))
#define EINI_C_LANES(bytes) (16 / (bytes))
#else
#define EINI_C_VECTOR
#define EINI_C_LANES(bytes) 1
#endif
typedef double eini_vector_cd EINI_C_VECTOR;
typedef float eini_vector_cs EINI_C_VECTOR;
typedef uint64_t eini_vector_cl EINI_C_VECTOR;
typedef uint32_t eini_vector_ci EINI_C_VECTOR;
typedef int64_t eini_signed_cl EINI_C_VECTOR;
typedef int32_t eini_signed_ci EINI_C_VECTOR;
#undef EINI_C_VECTOR

#define EINI_CD_TAG cd
#define EINI_CD_BYTES 8
#define EINI_CD_T double
#define EINI_CD_U eini_any_f64
#define EINI_CD_V eini_vector_cd
#define EINI_CD_B eini_signed_cl
#define EINI_CD_O eini_vector_cd
#define EINI_CD_W EINI_C_LANES(8)
#define EINI_CD_REAL 1
#define EINI_CD_REGS 16
#define EINI_CD_FAR cd
#define EINI_CD_AT
#define EINI_CD_LOAD(p) eini_load_cd(p)
#define EINI_CD_STORE(p, x) eini_store_cd(p, x)
#define EINI_CD_M int
#define EINI_CD_MASK(n) ((int)(n))
#define EINI_CD_LOADM(p, m) eini_loadm_cd(p, m)
#define EINI_CD_STOREM(p, m, x) eini_storem_cd(p, m, x)
#define EINI_CD_SET(x) eini_set_cd(x)
#define EINI_CD_ADD(a, b) ((a) + (b))
#define EINI_CD_MUL(a, b) ((a) * (b))
#define EINI_CD_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CD_TOP(x, y) eini_top_cd(x, y)
#define EINI_CD_LOW(x, y) eini_low_cd(x, y)
#define EINI_CD_IS_NAN(x) ((x) != (x))

#define EINI_CS_TAG cs
#define EINI_CS_BYTES 4
#define EINI_CS_T float
#define EINI_CS_U eini_any_f32
#define EINI_CS_V eini_vector_cs
#define EINI_CS_B eini_signed_ci
#define EINI_CS_O eini_vector_cs
#define EINI_CS_W EINI_C_LANES(4)
#define EINI_CS_REAL 1
#define EINI_CS_REGS 16
#define EINI_CS_FAR cs
#define EINI_CS_AT
#define EINI_CS_LOAD(p) eini_load_cs(p)
#define EINI_CS_STORE(p, x) eini_store_cs(p, x)
#define EINI_CS_M int
#define EINI_CS_MASK(n) ((int)(n))
#define EINI_CS_LOADM(p, m) eini_loadm_cs(p, m)
#define EINI_CS_STOREM(p, m, x) eini_storem_cs(p, m, x)
#define EINI_CS_SET(x) eini_set_cs(x)
#define EINI_CS_ADD(a, b) ((a) + (b))
#define EINI_CS_MUL(a, b) ((a) * (b))
#define EINI_CS_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CS_TOP(x, y) eini_top_cs(x, y)
#define EINI_CS_LOW(x, y) eini_low_cs(x, y)
#define EINI_CS_IS_NAN(x) ((x) != (x))

#define EINI_CL_TAG cl
#define EINI_CL_BYTES 8
#define EINI_CL_T int64_t
#define EINI_CL_U eini_any_i64
#define EINI_CL_V eini_vector_cl
#define EINI_CL_B eini_signed_cl
#define EINI_CL_O eini_signed_cl
#define EINI_CL_W EINI_C_LANES(8)
#define EINI_CL_REAL 0
#define EINI_CL_REGS (EINI_CPU_NEON ? 32 : 16)
#define EINI_CL_FAR cl
#define EINI_CL_AT
#define EINI_CL_LOAD(p) eini_load_cl(p)
#define EINI_CL_STORE(p, x) eini_store_cl(p, x)
#define EINI_CL_M int
#define EINI_CL_MASK(n) ((int)(n))
#define EINI_CL_LOADM(p, m) eini_loadm_cl(p, m)
#define EINI_CL_STOREM(p, m, x) eini_storem_cl(p, m, x)
#define EINI_CL_SET(x) eini_set_cl(x)
#define EINI_CL_ADD(a, b) ((a) + (b))
#define EINI_CL_MUL(a, b) ((a) * (b))
#define EINI_CL_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CL_TOP(x, y) eini_top_cl(x, y)
#define EINI_CL_LOW(x, y) eini_low_cl(x, y)
#define EINI_CL_IS_NAN(x) 0

#define EINI_CI_TAG ci
#define EINI_CI_BYTES 4
#define EINI_CI_T int32_t
#define EINI_CI_U eini_any_i32
#define EINI_CI_V eini_vector_ci
#define EINI_CI_B eini_signed_ci
#define EINI_CI_O eini_signed_ci
#define EINI_CI_W EINI_C_LANES(4)
#define EINI_CI_REAL 0
#define EINI_CI_REGS (EINI_CPU_NEON ? 32 : 16)
#define EINI_CI_FAR ci
#define EINI_CI_AT
#define EINI_CI_LOAD(p) eini_load_ci(p)
#define EINI_CI_STORE(p, x) eini_store_ci(p, x)
#define EINI_CI_M int
#define EINI_CI_MASK(n) ((int)(n))
#define EINI_CI_LOADM(p, m) eini_loadm_ci(p, m)
#define EINI_CI_STOREM(p, m, x) eini_storem_ci(p, m, x)
#define EINI_CI_SET(x) eini_set_ci(x)
#define EINI_CI_ADD(a, b) ((a) + (b))
#define EINI_CI_MUL(a, b) ((a) * (b))
#define EINI_CI_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CI_TOP(x, y) eini_top_ci(x, y)
#define EINI_CI_LOW(x, y) eini_low_ci(x, y)
#define EINI_CI_IS_NAN(x) 0

#define EINI_KERNELS EINI_KERNELS_GENERIC
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS
#endif  // !EINI_CPU_X86

// Plain C: numbers one by one.
#define EINI_SD_TAG sd
#define EINI_SD_T double
#define EINI_SD_V double
#define EINI_SD_AT EINI_UNUSED
#define EINI_SD_SET(x) (x)
#define EINI_SD_FMA(x, y, z) ((x) * (y) + (z))

#define EINI_SS_TAG ss
#define EINI_SS_T float
#define EINI_SS_V float
#define EINI_SS_AT EINI_UNUSED
#define EINI_SS_SET(x) (x)
#define EINI_SS_FMA(x, y, z) ((x) * (y) + (z))

#if EINI_CPU_DOTS  // FMA: sums of dot products, of two bf16 or of four bytes each
#define EINI_ZB_TAG zb
#define EINI_ZB_T float
#define EINI_ZB_V __m512
#define EINI_ZB_AT EINI_TDOT
#define EINI_ZB_SET(x) _mm512_set1_ps(x)
#define EINI_ZB_FMA(x, y, z) _mm512_dpbf16_ps(z, (__m512bh)(x), (__m512bh)(y))
#define EINI_ZU_TAG zu
#define EINI_ZU_T int32_t
#define EINI_ZU_V __m512i
#define EINI_ZU_AT EINI_TDOT
#define EINI_ZU_SET(x) _mm512_set1_epi32(x)
#define EINI_ZU_FMA(x, y, z) _mm512_dpbusd_epi32(z, x, y)
#endif  // EINI_CPU_DOTS
