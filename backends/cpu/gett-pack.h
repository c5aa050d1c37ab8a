// ================================================================================================
// >>gett-pack  packing for section gett, and its kernels by type
// A block of one side goes into panels [k][lane].
// ================================================================================================

// Positions of a box are numbered row-major and filled up to whole granules of G lanes with copies
// of what comes before; operands are contiguous along the lanes, along k, across positions that
// are some granules apart, of one axis or of several, or an uneven step, or nowhere.
enum { EINI_GETT_ROWS, EINI_GETT_ALONG, EINI_GETT_ACROSS, EINI_GETT_UNEVEN, EINI_GETT_NOWHERE };

struct eini_gett_pack_arg {
  int kind;
  int64_t n, np, nk;           // positions, the same filled up, extent of k
  int64_t lanes;               // of one panel
  int64_t step, count;         // the contiguous index: its step in k (UNEVEN: in positions), its
                               //   extent; ACROSS: elements of a run
  const int64_t *row, *col;    // [np], [nk] offsets in the operand
  const int64_t *place;        // [np / G] where a granule goes
  const unsigned char *flat;   // [np / G] whether its lanes are contiguous
  const int64_t *across;       // ACROSS: [count] positions beside one where a run of memory begins
  const int64_t *first;        // [nfirst] such positions, of granules
  int64_t nfirst;
  const void *src;
  void *dst;
};

// Elements are moved whole, and those of c64 are aligned as their parts are.
#if defined(__GNUC__) || defined(__clang__)
typedef int64_t eini_gett_8 __attribute__((aligned(4), may_alias));
typedef double eini_gett_8d __attribute__((aligned(4), may_alias));
#else
typedef int64_t eini_gett_8;
#endif
typedef struct eini_gett_16 { double re, im; } eini_gett_16;

#define EINI_PC_TAG pc
#define EINI_PC_AT
#define EINI_PC_BYTES 16
#define EINI_PC_T eini_gett_16
#define EINI_KERNELS EINI_KERNELS_PACK
#define EINI_PACK_N 1
#define EINI_PACK_PLAIN
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#define EINI_PACK_T eini_gett_8
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PC
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_PLAIN

#if EINI_CPU_X86
// Loads and stores of so many elements of 4 and of 8 bytes; TURN: rows, transposed.
EINI_T512 EINI_INLINE __m512d eini_load_zd(const eini_gett_8d *s) { return _mm512_loadu_pd(s); }
EINI_T512 EINI_INLINE __m256 eini_load_zs(const float *s) { return _mm256_loadu_ps(s); }
EINI_T256 EINI_INLINE __m128 eini_load_ys(const float *s) { return _mm_loadu_ps(s); }
EINI_T256 EINI_INLINE __m256d eini_load_yd(const eini_gett_8d *s) {
  return _mm256_loadu_pd((const double *)(const void *)s);
}
EINI_T512 EINI_INLINE void eini_save_zd(eini_gett_8d *d, __m512d x) { _mm512_storeu_pd(d, x); }
EINI_T512 EINI_INLINE void eini_save_zs(void *d, __m256 x) { _mm256_storeu_ps((float *)d, x); }
EINI_T256 EINI_INLINE void eini_save_ys(void *d, __m128 x) { _mm_storeu_ps((float *)d, x); }
EINI_T256 EINI_INLINE void eini_save_yd(eini_gett_8d *d, __m256d x) {
  _mm256_storeu_pd((double *)(void *)d, x);
}

EINI_T512 EINI_INLINE void eini_turn_zd(__m512d a0, __m512d a1, __m512d a2, __m512d a3,
                                        __m512d a4, __m512d a5, __m512d a6, __m512d a7,
                                        eini_gett_8d *d, const int64_t *o) {
  const __m512d b0 = _mm512_unpacklo_pd(a0, a1), b1 = _mm512_unpackhi_pd(a0, a1),
                b2 = _mm512_unpacklo_pd(a2, a3), b3 = _mm512_unpackhi_pd(a2, a3),
                b4 = _mm512_unpacklo_pd(a4, a5), b5 = _mm512_unpackhi_pd(a4, a5),
                b6 = _mm512_unpacklo_pd(a6, a7), b7 = _mm512_unpackhi_pd(a6, a7);
  // b: pairs of rows at columns 0 2 4 6 (even) and 1 3 5 7 (odd); then fours of rows, then all.
  const __m512d c0 = _mm512_shuffle_f64x2(b0, b2, 0x88), c1 = _mm512_shuffle_f64x2(b1, b3, 0x88),
                c2 = _mm512_shuffle_f64x2(b0, b2, 0xdd), c3 = _mm512_shuffle_f64x2(b1, b3, 0xdd),
                c4 = _mm512_shuffle_f64x2(b4, b6, 0x88), c5 = _mm512_shuffle_f64x2(b5, b7, 0x88),
                c6 = _mm512_shuffle_f64x2(b4, b6, 0xdd), c7 = _mm512_shuffle_f64x2(b5, b7, 0xdd);
  _mm512_storeu_pd(d + o[0], _mm512_shuffle_f64x2(c0, c4, 0x88));
  _mm512_storeu_pd(d + o[1], _mm512_shuffle_f64x2(c1, c5, 0x88));
  _mm512_storeu_pd(d + o[2], _mm512_shuffle_f64x2(c2, c6, 0x88));
  _mm512_storeu_pd(d + o[3], _mm512_shuffle_f64x2(c3, c7, 0x88));
  _mm512_storeu_pd(d + o[4], _mm512_shuffle_f64x2(c0, c4, 0xdd));
  _mm512_storeu_pd(d + o[5], _mm512_shuffle_f64x2(c1, c5, 0xdd));
  _mm512_storeu_pd(d + o[6], _mm512_shuffle_f64x2(c2, c6, 0xdd));
  _mm512_storeu_pd(d + o[7], _mm512_shuffle_f64x2(c3, c7, 0xdd));
}

EINI_T512 EINI_INLINE void eini_turn_zs(__m256 a0, __m256 a1, __m256 a2, __m256 a3, __m256 a4,
                                        __m256 a5, __m256 a6, __m256 a7, void *to,
                                        const int64_t *o) {
  float *d = (float *)to;
  const __m256 b0 = _mm256_unpacklo_ps(a0, a1), b1 = _mm256_unpackhi_ps(a0, a1),
               b2 = _mm256_unpacklo_ps(a2, a3), b3 = _mm256_unpackhi_ps(a2, a3),
               b4 = _mm256_unpacklo_ps(a4, a5), b5 = _mm256_unpackhi_ps(a4, a5),
               b6 = _mm256_unpacklo_ps(a6, a7), b7 = _mm256_unpackhi_ps(a6, a7);
  const __m256 c0 = _mm256_shuffle_ps(b0, b2, 0x44), c1 = _mm256_shuffle_ps(b0, b2, 0xee),
               c2 = _mm256_shuffle_ps(b1, b3, 0x44), c3 = _mm256_shuffle_ps(b1, b3, 0xee),
               c4 = _mm256_shuffle_ps(b4, b6, 0x44), c5 = _mm256_shuffle_ps(b4, b6, 0xee),
               c6 = _mm256_shuffle_ps(b5, b7, 0x44), c7 = _mm256_shuffle_ps(b5, b7, 0xee);
  _mm256_storeu_ps(d + o[0], _mm256_permute2f128_ps(c0, c4, 0x20));
  _mm256_storeu_ps(d + o[1], _mm256_permute2f128_ps(c1, c5, 0x20));
  _mm256_storeu_ps(d + o[2], _mm256_permute2f128_ps(c2, c6, 0x20));
  _mm256_storeu_ps(d + o[3], _mm256_permute2f128_ps(c3, c7, 0x20));
  _mm256_storeu_ps(d + o[4], _mm256_permute2f128_ps(c0, c4, 0x31));
  _mm256_storeu_ps(d + o[5], _mm256_permute2f128_ps(c1, c5, 0x31));
  _mm256_storeu_ps(d + o[6], _mm256_permute2f128_ps(c2, c6, 0x31));
  _mm256_storeu_ps(d + o[7], _mm256_permute2f128_ps(c3, c7, 0x31));
}

EINI_T256 EINI_INLINE void eini_turn_yd(__m256d a0, __m256d a1, __m256d a2, __m256d a3,
                                        eini_gett_8d *d, const int64_t *o) {
  const __m256d b0 = _mm256_unpacklo_pd(a0, a1), b1 = _mm256_unpackhi_pd(a0, a1),
                b2 = _mm256_unpacklo_pd(a2, a3), b3 = _mm256_unpackhi_pd(a2, a3);
  eini_save_yd(d + o[0], _mm256_permute2f128_pd(b0, b2, 0x20));
  eini_save_yd(d + o[1], _mm256_permute2f128_pd(b1, b3, 0x20));
  eini_save_yd(d + o[2], _mm256_permute2f128_pd(b0, b2, 0x31));
  eini_save_yd(d + o[3], _mm256_permute2f128_pd(b1, b3, 0x31));
}

EINI_T256 EINI_INLINE void eini_turn_ys(__m128 a0, __m128 a1, __m128 a2, __m128 a3, void *to,
                                        const int64_t *o) {
  float *d = (float *)to;
  _MM_TRANSPOSE4_PS(a0, a1, a2, a3);
  _mm_storeu_ps(d + o[0], a0);
  _mm_storeu_ps(d + o[1], a1);
  _mm_storeu_ps(d + o[2], a2);
  _mm_storeu_ps(d + o[3], a3);
}

#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
EINI_INLINE float64x2_t eini_load_nd(const eini_gett_8d *s) {
  return vld1q_f64((const double *)(const void *)s);
}
EINI_INLINE float32x4_t eini_load_ns(const float *s) { return vld1q_f32(s); }
EINI_INLINE void eini_save_nd(eini_gett_8d *d, float64x2_t x) {
  vst1q_f64((double *)(void *)d, x);
}
EINI_INLINE void eini_save_ns(float *d, float32x4_t x) { vst1q_f32(d, x); }

EINI_INLINE void eini_turn_nd(float64x2_t a, float64x2_t b, eini_gett_8d *d, const int64_t *o) {
  eini_save_nd(d + o[0], vzip1q_f64(a, b));
  eini_save_nd(d + o[1], vzip2q_f64(a, b));
}

EINI_INLINE void eini_turn_ns(float32x4_t a0, float32x4_t a1, float32x4_t a2, float32x4_t a3,
                              float *d, const int64_t *o) {
  const float32x4_t b0 = vzip1q_f32(a0, a2), b1 = vzip2q_f32(a0, a2),  // pairs of columns
                    b2 = vzip1q_f32(a1, a3), b3 = vzip2q_f32(a1, a3);
  vst1q_f32(d + o[0], vzip1q_f32(b0, b2));
  vst1q_f32(d + o[1], vzip2q_f32(b0, b2));
  vst1q_f32(d + o[2], vzip1q_f32(b1, b3));
  vst1q_f32(d + o[3], vzip2q_f32(b1, b3));
}

#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_PACK_N
#undef EINI_KERNELS

#define EINI_KERNELS EINI_KERNELS_COMPLEX
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS

// Rows of a panel of so many k that a tile multiplies.
static int64_t eini_gett_rows(const eini_gett_kit *kit, int64_t nk) {
  return eini_up((nk + kit->group - 1) / kit->group, kit->round);
}

// The shape of a tile in reals.
static void eini_gett_shape(eini_gett_kit *k, int w, int nv, int nu) {
  k->w = w, k->nv = nv, k->nu = nu;
}

// Sums that are only scaled are stored as others are, and scaled there.
static int eini_gett_plain(const ein_contract *c, const eini_gett_kit *k) {
  return c->plain_out || (c->scaled && c->nextra == 0 && k->by != NULL && k->parts == 1);
}

static void eini_gett_kit_float(int isa, int wide, ein_pair pair, eini_gett_kit *k) {
  void (*fill)(ein_pair, eini_gett_kit *) = wide ? eini_gett_kit_pd : eini_gett_kit_ps;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) fill = wide ? eini_gett_kit_zd : eini_gett_kit_zs;
  if (isa == EINI_ISA_AVX2) fill = wide ? eini_gett_kit_yd : eini_gett_kit_ys;
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) fill = wide ? eini_gett_kit_nd : eini_gett_kit_ns;
#endif
  (void)isa;
  fill(pair, k);
}

// Of integers vectors have sums of products; the other pairs are plain C's.
static void eini_gett_kit_int(int isa, int wide, ein_pair pair, eini_gett_kit *k) {
  k->size = wide ? 8 : 4;
  if (wide) eini_gett_kit_pl(pair, k);
  else eini_gett_kit_pi(pair, k);
  if (pair != EIN_PAIR_SUM_MUL) return;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512 && wide) eini_gett_kit_zl(pair, k);
  else if (isa == EINI_ISA_AVX512) eini_gett_kit_zi(pair, k);
  else if (isa == EINI_ISA_AVX2 && !wide) eini_gett_kit_yi(pair, k);
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON && !wide) eini_gett_kit_ni(pair, k);
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

// Packing functions and granules, once the shape of the tile is known.
static void eini_gett_kit_pack(int isa, ein_dtype type, eini_gett_kit *k) {
  k->pack_v = k->pack_u = k->size == 1   ? eini_pack_pb
                          : k->size == 4 ? eini_pack_pi
                          : k->size == 8 ? eini_pack_pl
                                         : eini_pack_pc;
  k->gv = k->gu = k->size < 8 ? 4 : 2;
  k->times = type == EIN_F64    ? eini_gett_times_pd
             : type == EIN_F32  ? eini_gett_times_ps
             : type == EIN_I64  ? eini_gett_times_pl
             : type == EIN_I32  ? eini_gett_times_pi
             : type == EIN_C128 ? eini_gett_times_complex_pd
             : type == EIN_C64  ? eini_gett_times_complex_ps
                                : NULL;
#if EINI_CPU_X86
  if (isa != EINI_ISA_AVX512 && isa != EINI_ISA_AVX2) return;
  const eini_gett_pack_fn y = k->size == 4   ? eini_pack_ys
                              : k->size == 8 ? eini_pack_yd
                                             : NULL;
  const eini_gett_pack_fn z = k->size == 4   ? eini_pack_zs
                              : k->size == 8 ? eini_pack_zd
                                             : NULL;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->w % 8 == 0) k->pack_v = z, k->gv = 8;
  else if (y != NULL && k->w % 4 == 0) k->pack_v = y, k->gv = 4;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->nu % 8 == 0) k->pack_u = z, k->gu = 8;
  else if (y != NULL && k->nu % 4 == 0) k->pack_u = y, k->gu = 4;
  if (type == EIN_F64) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zd : eini_gett_times_yd;
  if (type == EIN_F32) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zs : eini_gett_times_ys;
#elif EINI_CPU_NEON
  if (isa != EINI_ISA_NEON) return;
  if (k->size == 4) k->pack_v = k->pack_u = eini_pack_ns;  // (granules are as in plain C)
  if (k->size == 8) k->pack_v = k->pack_u = eini_pack_nd;
  if (type == EIN_F64) k->times = eini_gett_times_nd;
  if (type == EIN_F32) k->times = eini_gett_times_ns;
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

static int eini_gett_pick(const eini_cpu *cpu, ein_dtype type, ein_pair pair, eini_gett_kit *k) {
  memset(k, 0, sizeof *k);
  k->isa = cpu->isa, k->type = (int)type;
  k->group = k->round = 1;
  k->parts = type == EIN_C64 || type == EIN_C128 ? 2 : 1;
  if (k->parts == 2 && pair != EIN_PAIR_SUM_MUL) return 0;
  if (type == EIN_BOOL) {
    if (pair == EIN_PAIR_ANY_AND) eini_gett_kit_pb(EIN_PAIR_SUM_MUL, k);
    k->size = 1;
  } else if (type == EIN_F64 || type == EIN_C128) {
    eini_gett_kit_float(cpu->isa, 1, pair, k);
    k->size = 8 * k->parts;
  } else if (type == EIN_F32 || type == EIN_C64) {
    eini_gett_kit_float(cpu->isa, 0, pair, k);
    k->size = 4 * k->parts;
  } else if (type == EIN_I64 || type == EIN_I32) {
    eini_gett_kit_int(cpu->isa, type == EIN_I64, pair, k);
  }
  if (k->tile == NULL) return 0;
  k->w /= k->parts, k->nu /= k->parts;
  const int ints = type == EIN_I32 || type == EIN_I64;
  k->cols = pair != EIN_PAIR_SUM_MUL ? k->nu : ints ? 4 : 1;
  eini_gett_kit_pack(cpu->isa, type, k);
  return 1;
}
