// ================================================================================================
// >>gett-narrow  f16, bf16 and short integers in section gett
// Packing that converts; panels of two bf16 or i16, or four i8, to a lane, and what is multiplied.
// ================================================================================================

// Forms of panels: elements of the compute type; groups of values of a narrow one, of which dot
// products make sums of f32 or i32.
enum { EINI_GETT_WHOLE, EINI_GETT_BF16, EINI_GETT_I16, EINI_GETT_I8, EINI_GETT_AMX_BF16,
       EINI_GETT_AMX_I8, EINI_GETT_FORMS };

// Whether panels are for tile registers.
static int eini_gett_tiled(const eini_gett_kit *kit) { return kit->form >= EINI_GETT_AMX_BF16; }

#define EINI_KERNELS EINI_KERNELS_PACK
#define EINI_PACK_N 1
#define EINI_PACK_PLAIN
#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_PLAIN

#if EINI_CPU_X86
// n values at s + c[i] to one of four bytes, the first in the low bits: w two of 16 bits, s of i8
// and u of u8 as two of 16 bits, q four of 8 bits, f the same less 128.
EINI_INLINE int32_t eini_two(int low, int high) {
  return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16);
}
EINI_INLINE int32_t eini_one_w(const uint16_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_s(const int8_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_u(const uint8_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_q(const uint8_t *s, const int64_t *c, int64_t n) {
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) r |= (uint32_t)(i < n ? s[c[i]] : 0) << 8 * i;
  return (int32_t)r;
}
EINI_INLINE int32_t eini_one_f(const uint8_t *s, const int64_t *c, int64_t n) {
  return (int32_t)((uint32_t)eini_one_q(s, c, n) ^ 0x80808080u);
}

// Vectors of eight (zs) or four (ys) such, and of f16 and bf16 as f32. run: values that follow each
// other along k lie so.
#define EINI_READ16(s) _mm_loadu_si128((const __m128i *)(const void *)(s))
#define EINI_READ32(s) _mm256_loadu_si256((const __m256i *)(const void *)(s))
#define EINI_READ8(s) _mm_loadl_epi64((const __m128i *)(const void *)(s))
EINI_T256 EINI_INLINE __m128i eini_read4(const void *s) {
  int x;
  memcpy(&x, s, 4);
  return _mm_cvtsi32_si128(x);
}
EINI_T512 EINI_INLINE __m256 eini_load_f16zs(const uint16_t *s) {
  return _mm256_cvtph_ps(EINI_READ16(s));
}
EINI_T512 EINI_INLINE __m256 eini_load_bf16zs(const uint16_t *s) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(EINI_READ16(s)), 16));
}
EINI_T256 EINI_INLINE __m128 eini_load_f16ys(const uint16_t *s) {
  return _mm_cvtph_ps(EINI_READ8(s));
}
EINI_T256 EINI_INLINE __m128 eini_load_bf16ys(const uint16_t *s) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(EINI_READ8(s)), 16));
}

EINI_T512 EINI_INLINE __m256 eini_zip_z(__m128i a, __m128i b) {
  return _mm256_castsi256_ps(_mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_unpacklo_epi16(a, b)), _mm_unpackhi_epi16(a, b), 1));
}
EINI_T512 EINI_INLINE __m256 eini_load_wzs(const uint16_t *s, const int64_t *c) {
  return eini_zip_z(EINI_READ16(s + c[0]), EINI_READ16(s + c[1]));
}
EINI_T512 EINI_INLINE __m256 eini_load_szs(const int8_t *s, const int64_t *c) {
  return eini_zip_z(_mm_cvtepi8_epi16(EINI_READ8(s + c[0])),
                    _mm_cvtepi8_epi16(EINI_READ8(s + c[1])));
}
EINI_T512 EINI_INLINE __m256 eini_load_uzs(const uint8_t *s, const int64_t *c) {
  return eini_zip_z(_mm_cvtepu8_epi16(EINI_READ8(s + c[0])),
                    _mm_cvtepu8_epi16(EINI_READ8(s + c[1])));
}
EINI_T512 EINI_INLINE __m256 eini_fours(const uint8_t *s, const int64_t *c, int flip) {
  const __m128i a = _mm_unpacklo_epi8(EINI_READ8(s + c[0]), EINI_READ8(s + c[1]));
  const __m128i b = _mm_unpacklo_epi8(EINI_READ8(s + c[2]), EINI_READ8(s + c[3]));
  const __m128i f = _mm_set1_epi8((char)flip);
  return eini_zip_z(_mm_xor_si128(a, f), _mm_xor_si128(b, f));
}
EINI_T512 EINI_INLINE __m256 eini_load_qzs(const uint8_t *s, const int64_t *c) {
  return eini_fours(s, c, 0);
}
EINI_T512 EINI_INLINE __m256 eini_load_fzs(const uint8_t *s, const int64_t *c) {
  return eini_fours(s, c, -128);
}
EINI_T256 EINI_INLINE __m128 eini_load_wys(const uint16_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(EINI_READ8(s + c[0]), EINI_READ8(s + c[1])));
}
EINI_T256 EINI_INLINE __m128 eini_load_sys(const int8_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_cvtepi8_epi16(eini_read4(s + c[0])),
                                             _mm_cvtepi8_epi16(eini_read4(s + c[1]))));
}
EINI_T256 EINI_INLINE __m128 eini_load_uys(const uint8_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_cvtepu8_epi16(eini_read4(s + c[0])),
                                             _mm_cvtepu8_epi16(eini_read4(s + c[1]))));
}

EINI_T512 EINI_INLINE __m256 eini_run_wzs(const void *s) {
  return _mm256_castsi256_ps(EINI_READ32(s));
}
EINI_T512 EINI_INLINE __m256 eini_run_szs(const int8_t *s) {
  return _mm256_castsi256_ps(_mm256_cvtepi8_epi16(EINI_READ16(s)));
}
EINI_T512 EINI_INLINE __m256 eini_run_uzs(const uint8_t *s) {
  return _mm256_castsi256_ps(_mm256_cvtepu8_epi16(EINI_READ16(s)));
}
EINI_T512 EINI_INLINE __m256 eini_run_qzs(const uint8_t *s) { return eini_run_wzs(s); }
EINI_T512 EINI_INLINE __m256 eini_run_fzs(const uint8_t *s) {
  return _mm256_castsi256_ps(_mm256_xor_si256(EINI_READ32(s), _mm256_set1_epi8((char)-128)));
}
EINI_T256 EINI_INLINE __m128 eini_run_wys(const uint16_t *s) {
  return _mm_castsi128_ps(EINI_READ16(s));
}
EINI_T256 EINI_INLINE __m128 eini_run_sys(const int8_t *s) {
  return _mm_castsi128_ps(_mm_cvtepi8_epi16(EINI_READ8(s)));
}
EINI_T256 EINI_INLINE __m128 eini_run_uys(const uint8_t *s) {
  return _mm_castsi128_ps(_mm_cvtepu8_epi16(EINI_READ8(s)));
}

#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_N
#define EINI_PACK_N 2
#define EINI_PACK w
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK s
#define EINI_PACK_S int8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK u
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK w
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK s
#define EINI_PACK_S int8_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK u
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_N
#define EINI_PACK_N 4
#define EINI_PACK q
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK f
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#undef EINI_PACK_N
#undef EINI_KERNELS

// ---- dot products in lanes
#if EINI_CPU_X86
#define EINI_WY_TAG wy
#define EINI_WY_AT EINI_T256
#define EINI_WY_BYTES 4
#define EINI_WY_T int32_t
#define EINI_WY_V __m256i
#define EINI_WY_W 8
#define EINI_WY_LOAD(p) EINI_YI_LOAD(p)
#define EINI_WY_STORE(p, x) EINI_YI_STORE(p, x)
#define EINI_WY_STREAM(p, x, m) EINI_YI_STREAM(p, x, m)
#define EINI_WY_SET(x) _mm256_set1_epi32(x)
#define EINI_WY_ADD(a, b) _mm256_add_epi32(a, b)
#define EINI_WY_FMA(a, b, c) _mm256_add_epi32(c, _mm256_madd_epi16(a, b))

#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_DOTS
#define EINI_VEC EINI_WY
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#undef EINI_KERNELS
#endif  // EINI_CPU_X86

#if EINI_CPU_DOTS
#define EINI_BZ_TAG bz
#define EINI_BZ_AT EINI_TDOT
#define EINI_BZ_BYTES 4
#define EINI_BZ_T float
#define EINI_BZ_V __m512
#define EINI_BZ_W 16
#define EINI_BZ_LOAD EINI_ZS_LOAD
#define EINI_BZ_STORE EINI_ZS_STORE
#define EINI_BZ_STREAM EINI_ZS_STREAM
#define EINI_BZ_SET EINI_ZS_SET
#define EINI_BZ_ADD EINI_ZS_ADD
#define EINI_BZ_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))

// The same with products and sums of f32, for subnormal values: the instruction takes them for 0.
#define EINI_EZ_TAG ez
#define EINI_EZ_AT EINI_T512
#define EINI_EZ_BYTES 4
#define EINI_EZ_T float
#define EINI_EZ_V __m512
#define EINI_EZ_W 16
#define EINI_EZ_LOAD EINI_ZS_LOAD
#define EINI_EZ_STORE EINI_ZS_STORE
#define EINI_EZ_STREAM EINI_ZS_STREAM
#define EINI_EZ_SET EINI_ZS_SET
#define EINI_EZ_ADD EINI_ZS_ADD
#define EINI_EZ_BOTTOM(x) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16))
#define EINI_EZ_UPPER(x) \
  _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-65536)))
#define EINI_EZ_FMA(a, b, c)                               \
  _mm512_fmadd_ps(EINI_EZ_BOTTOM(a), EINI_EZ_BOTTOM(b),     \
                  _mm512_fmadd_ps(EINI_EZ_UPPER(a), EINI_EZ_UPPER(b), c))

#define EINI_WZ_TAG wz
#define EINI_WZ_AT EINI_TDOT
#define EINI_WZ_BYTES 4
#define EINI_WZ_T int32_t
#define EINI_WZ_V __m512i
#define EINI_WZ_W 16
#define EINI_WZ_LOAD EINI_ZI_LOAD
#define EINI_WZ_STORE EINI_ZI_STORE
#define EINI_WZ_STREAM EINI_ZI_STREAM
#define EINI_WZ_SET EINI_ZI_SET
#define EINI_WZ_ADD EINI_ZI_ADD
#define EINI_WZ_FMA(a, b, c) _mm512_dpwssd_epi32(c, a, b)

// U is unsigned, V signed.
#define EINI_QZ_TAG qz
#define EINI_QZ_AT EINI_TDOT
#define EINI_QZ_BYTES 4
#define EINI_QZ_T int32_t
#define EINI_QZ_V __m512i
#define EINI_QZ_W 16
#define EINI_QZ_LOAD EINI_ZI_LOAD
#define EINI_QZ_STORE EINI_ZI_STORE
#define EINI_QZ_STREAM EINI_ZI_STREAM
#define EINI_QZ_SET EINI_ZI_SET
#define EINI_QZ_ADD EINI_ZI_ADD
#define EINI_QZ_FMA(a, b, c) _mm512_dpbusd_epi32(c, b, a)

#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_DOTS
#define EINI_VEC EINI_BZ
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_EZ
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_WZ
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_HEADS
#define EINI_VEC EINI_QZ
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#undef EINI_KERNELS

// Not 0: of 32 values of bf16 some are subnormal.
EINI_T512 EINI_INLINE uint32_t eini_gett_subnormal(__m512i x) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80), fraction = _mm512_set1_epi16(0x7f);
  return _mm512_testn_epi16_mask(x, exponent) & _mm512_test_epi16_mask(x, fraction);
}

// Whether a panel has subnormal values.
EINI_T512 static int eini_gett_done_bf16(const eini_gett_kit *kit, int is_u, int64_t lanes,
                                         int64_t rows, void *panel) {
  const int32_t *p = (const int32_t *)panel;
  uint32_t any = 0;
  int64_t i = 0;
  (void)kit, (void)is_u;
  for (; i + 16 <= lanes * rows; i += 16) any |= eini_gett_subnormal(_mm512_loadu_si512(p + i));
  for (; i < lanes * rows; i += 8)
    any |= eini_gett_subnormal(_mm512_castsi256_si512(EINI_READ32(p + i))) & 0xffff;
  return any != 0;
}

// U holds x + 128 where x is signed, V y - 128 where y is unsigned. With x = u - a, y = v + b the
// sum of x y is that of u v, plus b times the sum of x, less a times that of v: the rows that
// panels begin with. What a group lacks counts as 0 in x and y.
EINI_TDOT static int eini_gett_done_i8(const eini_gett_kit *kit, int is_u, int64_t lanes,
                                       int64_t rows, void *panel) {
  const __m256i ones = _mm256_set1_epi8(1);
  int32_t *head = (int32_t *)panel;
  const int32_t by = is_u ? (kit->flip_v ? 128 : 0) : kit->flip_u ? -128 : 0;
  const int64_t first = is_u && kit->flip_u ? -512 * rows : 0;
  for (int64_t i = 0; i < lanes; i += 8) {
    __m256i sum = _mm256_set1_epi32((int32_t)(uint32_t)(uint64_t)first);
    for (int64_t q = 1; q <= rows && by != 0; q++) {
      const __m256i x = EINI_READ32(head + q * lanes + i);
      sum = is_u ? _mm256_dpbusd_epi32(sum, x, ones) : _mm256_dpbusd_epi32(sum, ones, x);
    }
    _mm256_storeu_si256((__m256i *)(void *)(head + i),
                        _mm256_mullo_epi32(sum, _mm256_set1_epi32(by)));
  }
  return 0;
}
#endif  // EINI_CPU_DOTS
