// ================================================================================================
// >>tile-lines  transposes of whole lines
// Tiles of 64 / size rows of a line each, from and to any places, also past the caches and as lines
// joined from two tiles.
// ================================================================================================

typedef void (*eini_tile_fn)(const char *src, int64_t ss, char *dst, int64_t ds);

// Where a tile of whole lines is read, where it goes, and how: to the caches or past them.
typedef struct eini_tile {
  const char *src;
  const int64_t *column;       // columns of any places: their offsets; or NULL: ss apart
  int64_t ss;
  char *dst;
  int64_t ds;
  int stream;
  char *const *row;            // rows of any places; or NULL: those at dst, ds apart
  int64_t at;                  // of the line from that with the row's first byte
  char *carry;
  const int64_t *place;        // rows of any places, to the caches: offsets from dst; or NULL
} eini_tile;

// Tiles that store whole lines past the caches, B = 64 / size. join: from columns and to rows of
// any places, see eini_tile. put: the same to the caches, rows at offsets from dst.
typedef struct eini_line_kind {
  int b;
  eini_tile_fn line;
  void (*join)(const char *src, const int64_t *column, char *const *row, int64_t at, char *carry);
  void (*put)(const char *src, const int64_t *column, char *dst, const int64_t *place);
} eini_line_kind;

EINI_INLINE char *eini_tile_to(const eini_tile *t, int r) {
  return t->row != NULL ? t->row[r] : t->dst + (t->place != NULL ? t->place[r] : r * t->ds);
}

EINI_INLINE const char *eini_tile_from(const eini_tile *t, int s, int r) {
  return t->src + (t->column != NULL ? t->column[r] : r * t->ss) + s;
}

// Sets of vectors for lines: LANES lanes of 128 bits each. LO and HI: elements of the first and of
// the second half of lanes of a and b, of each in turn.
#if EINI_CPU_X86
#define EINI_ZT_TAG zt
#define EINI_ZT_AT EINI_T512
#define EINI_ZT_V __m512i
#define EINI_ZT_LANES 4
#define EINI_ZT_LO32(a, b) _mm512_unpacklo_epi32(a, b)
#define EINI_ZT_HI32(a, b) _mm512_unpackhi_epi32(a, b)
#define EINI_ZT_LO64(a, b) _mm512_unpacklo_epi64(a, b)
#define EINI_ZT_HI64(a, b) _mm512_unpackhi_epi64(a, b)

EINI_T512 EINI_INLINE __m512i eini_tile_load_zt(const eini_tile *t, int r) {
  return _mm512_loadu_si512((const void *)eini_tile_from(t, 0, r));
}

// The line of a row that starts anywhere, by words: it begins with the end of the tile before,
// which waits in `carry`, and what is left of this tile waits there.
EINI_T512 EINI_INLINE __m512i eini_line_join(const char *row, __m512i before, __m512i v) {
  const __m512i words =
      _mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  const int in = (int)((uintptr_t)row >> 2 & 15);
  return _mm512_permutex2var_epi32(before, _mm512_sub_epi32(words, _mm512_set1_epi32(in)), v);
}

EINI_T512 EINI_INLINE void eini_tile_store_zt(const eini_tile *t, int r, __m512i v) {
  char *d = eini_tile_to(t, r);
  if (t->row != NULL) {
    const __m512i line =
        eini_line_join(d, _mm512_loadu_si512((const void *)(t->carry + 64 * r)), v);
    d += t->at - (int64_t)((uintptr_t)d & 63);
    _mm512_stream_si512((__m512i *)(void *)d, line);
    _mm512_storeu_si512((void *)(t->carry + 64 * r), v);
  } else if (t->stream) {
    _mm512_stream_si512((__m512i *)(void *)d, v);
  } else {
    _mm512_storeu_si512((void *)d, v);
  }
}

// The transpose of four vectors of four lanes, stored as columns c, c + by, ..
EINI_T512 EINI_INLINE void eini_tile_lanes_zt(const eini_tile *t, int c, int by, __m512i w0,
                                              __m512i w1, __m512i w2, __m512i w3) {
  const __m512i u0 = _mm512_shuffle_i64x2(w0, w1, 0x44), u1 = _mm512_shuffle_i64x2(w0, w1, 0xee);
  const __m512i u2 = _mm512_shuffle_i64x2(w2, w3, 0x44), u3 = _mm512_shuffle_i64x2(w2, w3, 0xee);
  eini_tile_store_zt(t, c, _mm512_shuffle_i64x2(u0, u2, 0x88));
  eini_tile_store_zt(t, c + by, _mm512_shuffle_i64x2(u0, u2, 0xdd));
  eini_tile_store_zt(t, c + 2 * by, _mm512_shuffle_i64x2(u1, u3, 0x88));
  eini_tile_store_zt(t, c + 3 * by, _mm512_shuffle_i64x2(u1, u3, 0xdd));
}

#define EINI_YT_TAG yt
#define EINI_YT_AT EINI_T256
#define EINI_YT_V __m256i
#define EINI_YT_LANES 2
#define EINI_YT_LO32(a, b) _mm256_unpacklo_epi32(a, b)
#define EINI_YT_HI32(a, b) _mm256_unpackhi_epi32(a, b)
#define EINI_YT_LO64(a, b) _mm256_unpacklo_epi64(a, b)
#define EINI_YT_HI64(a, b) _mm256_unpackhi_epi64(a, b)

// Of rows r and r + by, 16 bytes each.
EINI_T256 EINI_INLINE __m256i eini_tile_rows_yt(const eini_tile *t, int s, int r, int by) {
  const __m128i *a = (const __m128i *)(const void *)eini_tile_from(t, s, r);
  const __m128i *b = (const __m128i *)(const void *)eini_tile_from(t, s, r + by);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(a)), _mm_loadu_si128(b), 1);
}

// The line of a row as of eini_line_join, of two halves: whichever of both lines' meet in it are
// turned by what is less than a half.
EINI_T256 EINI_INLINE void eini_line_join_y(const char *row, const char *before, __m256i *a,
                                            __m256i *b) {
  const __m256i *old = (const __m256i *)(const void *)before;
  const __m256i words = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const int in = (int)((uintptr_t)row >> 2 & 15);
  const __m256i by = _mm256_set1_epi32(in & 7), from = _mm256_sub_epi32(words, by);
  const __m256i half = _mm256_set1_epi32(in >= 8 ? -1 : 0), turned = _mm256_cmpgt_epi32(by, words);
  const __m256i last = _mm256_loadu_si256(old + 1);
  __m256i x = _mm256_loadu_si256(old + (in < 8));
  __m256i y = _mm256_blendv_epi8(*a, last, half), z = _mm256_blendv_epi8(*b, *a, half);
  x = _mm256_permutevar8x32_epi32(x, from);
  y = _mm256_permutevar8x32_epi32(y, from);
  z = _mm256_permutevar8x32_epi32(z, from);
  *a = _mm256_blendv_epi8(y, x, turned);
  *b = _mm256_blendv_epi8(z, y, turned);
}

EINI_T256 static void eini_line_joined_y(const char *row, const char *before, const char *tile,
                                         char *line) {
  __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)tile);
  __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(tile + 32));
  eini_line_join_y(row, before, &a, &b);
  _mm256_storeu_si256((__m256i *)(void *)line, a);
  _mm256_storeu_si256((__m256i *)(void *)(line + 32), b);
}

EINI_T256 EINI_INLINE void eini_tile_store_yt(const eini_tile *t, int r, __m256i (*q)[4], int j) {
  const __m256i a = q[0][j], b = q[1][j];
  char *d = eini_tile_to(t, r);
  if (t->row != NULL) {
    __m256i x = a, y = b;
    eini_line_join_y(d, t->carry + 64 * r, &x, &y);
    d += t->at - (int64_t)((uintptr_t)d & 63);
    _mm256_stream_si256((__m256i *)(void *)d, x);
    _mm256_stream_si256((__m256i *)(void *)(d + 32), y);
    _mm256_storeu_si256((__m256i *)(void *)(t->carry + 64 * r), a);
    _mm256_storeu_si256((__m256i *)(void *)(t->carry + 64 * r + 32), b);
  } else if (t->stream) {
    _mm256_stream_si256((__m256i *)(void *)d, a);
    _mm256_stream_si256((__m256i *)(void *)(d + 32), b);
  } else {
    _mm256_storeu_si256((__m256i *)(void *)d, a);
    _mm256_storeu_si256((__m256i *)(void *)(d + 32), b);
  }
}
#elif EINI_CPU_NEON
#define EINI_NT_TAG nt
#define EINI_NT_AT EINI_UNUSED
#define EINI_NT_V uint32x4_t
#define EINI_NT_LANES 1
#define EINI_NT_LO32(a, b) vzip1q_u32(a, b)
#define EINI_NT_HI32(a, b) vzip2q_u32(a, b)
#define EINI_NT_64(zip, a, b) \
  vreinterpretq_u32_u64(zip(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)))
#define EINI_NT_LO64(a, b) EINI_NT_64(vzip1q_u64, a, b)
#define EINI_NT_HI64(a, b) EINI_NT_64(vzip2q_u64, a, b)

EINI_INLINE uint32x4_t eini_tile_rows_nt(const eini_tile *t, int s, int r, int by) {
  (void)by;
  return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)eini_tile_from(t, s, r)));
}

// The line of a row as of eini_line_join, from neighbours among the vectors of both.
EINI_INLINE void eini_line_join_n(const char *row, const char *before, uint8x16_t *v) {
  static const uint8_t bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int in = (int)((uintptr_t)row & 60);
  const uint8x16_t from = vaddq_u8(vld1q_u8(bytes), vdupq_n_u8((uint8_t)(16 - in % 16)));
  uint8_t both[128];
  const uint8_t *p = both + 64 - in / 16 * 16;
  for (int i = 0; i < 4; i++) {
    vst1q_u8(both + 16 * i, vld1q_u8((const uint8_t *)before + 16 * i));
    vst1q_u8(both + 64 + 16 * i, v[i]);
  }
  for (int i = 0; i < 4; i++, p += 16) {
    const uint8x16x2_t two = {{vld1q_u8(p - 16), vld1q_u8(p)}};
    v[i] = vqtbl2q_u8(two, from);
  }
}

static void eini_line_joined_n(const char *row, const char *before, const char *tile, char *line) {
  uint8x16_t v[4];
  for (int i = 0; i < 4; i++) v[i] = vld1q_u8((const uint8_t *)tile + 16 * i);
  eini_line_join_n(row, before, v);
  for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)line + 16 * i, v[i]);
}

EINI_INLINE void eini_tile_store_nt(const eini_tile *t, int r, uint32x4_t (*q)[4], int j) {
  char *to = eini_tile_to(t, r);
  uint8x16_t v[4], w[4];
  for (int i = 0; i < 4; i++) v[i] = vreinterpretq_u8_u32(q[i][j]);
  memcpy(w, v, sizeof w);
  if (t->row != NULL) {
    char *carry = t->carry + 64 * r;
    eini_line_join_n(to, carry, w);
    to += t->at - (int64_t)((uintptr_t)to & 63);
    for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)carry + 16 * i, v[i]);
  }
  for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)to + 16 * i, w[i]);
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#define EINI_KERNELS EINI_KERNELS_LINES
#if EINI_CPU_X86
#define EINI_VEC EINI_ZT
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YT
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NT
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// Of the instruction sets that have such tiles.
static const eini_line_kind *const eini_line_kinds[EINI_ISA_COUNT] = {
    NULL,
#if EINI_CPU_NEON
    eini_line_kinds_nt, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_line_kinds_yt, eini_line_kinds_zt};
#else
    NULL, NULL, NULL};
#endif

static eini_line_kind eini_tile_lines(int isa, int size) {
  const eini_line_kind none = {0, NULL, NULL, NULL};
  return size < 4 || eini_line_kinds[isa] == NULL ? none : eini_line_kinds[isa][size / 8];
}
