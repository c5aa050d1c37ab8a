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
} eini_tile;

// Tiles of whole lines past the caches; as eini_join_tile_.., from and to any places.
#define EINI_TILE_LINES(bits, AT)                                                           \
  AT static void eini_line_tile_##bits(const char *src, int64_t ss, char *dst, int64_t ds) {\
    const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL};                         \
    eini_tile_##bits(&t);                                                                   \
  }                                                                                         \
  AT static void eini_join_tile_##bits(const char *src, const int64_t *column,              \
                                       char *const *row, int64_t at, char *carry) {         \
    const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry};                       \
    eini_tile_##bits(&t);                                                                   \
  }                                                                                         \
  AT static void eini_pick_tile_##bits(const char *src, const int64_t *column, char *dst) { \
    const eini_tile t = {src, column, 0, dst, 64, 0, NULL, 0, NULL};                        \
    eini_tile_##bits(&t);                                                                   \
  }

#if EINI_CPU_X86
#define EINI_LD5(r) eini_tile_load_z(t, r)
#define EINI_ST5(r, v) eini_tile_store_z(t, r, v)

EINI_T512 EINI_INLINE __m512i eini_tile_load_z(const eini_tile *t, int r) {
  return _mm512_loadu_si512(
      (const void *)(t->src + (t->column != NULL ? t->column[r] : r * t->ss)));
}

// The line of a row that starts anywhere, by words: it begins with the end of the tile before,
// which waits in `carry`, and what is left of this tile waits there.
EINI_T512 EINI_INLINE __m512i eini_line_join(const char *row, __m512i before, __m512i v) {
  const __m512i words =
      _mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  const int in = (int)((uintptr_t)row >> 2 & 15);
  return _mm512_permutex2var_epi32(before, _mm512_sub_epi32(words, _mm512_set1_epi32(in)), v);
}

EINI_T512 EINI_INLINE void eini_tile_store_z(const eini_tile *t, int r, __m512i v) {
  char *d = t->row != NULL ? t->row[r] : t->dst + r * t->ds;
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

// Four rows: within 128-bit lanes, column j of lane L of v##j is element 4 L + j of the rows.
#define EINI_QUAD(T, P, ld, q)                                                              \
  T q##r0 = ld(4 * q##_n), q##r1 = ld(4 * q##_n + 1);                                       \
  T q##r2 = ld(4 * q##_n + 2), q##r3 = ld(4 * q##_n + 3);                                   \
  T q##t0 = P##_unpacklo_epi32(q##r0, q##r1), q##t1 = P##_unpackhi_epi32(q##r0, q##r1);     \
  T q##t2 = P##_unpacklo_epi32(q##r2, q##r3), q##t3 = P##_unpackhi_epi32(q##r2, q##r3);     \
  T q##v0 = P##_unpacklo_epi64(q##t0, q##t2), q##v1 = P##_unpackhi_epi64(q##t0, q##t2);     \
  T q##v2 = P##_unpacklo_epi64(q##t1, q##t3), q##v3 = P##_unpackhi_epi64(q##t1, q##t3);

// The transpose of four vectors of four 128-bit lanes, stored as columns c, c + by, ..
#define EINI_LANES4(c, by, w0, w1, w2, w3)                                                  \
  do {                                                                                      \
    __m512i u0 = _mm512_shuffle_i64x2(w0, w1, 0x44), u1 = _mm512_shuffle_i64x2(w0, w1, 0xee);\
    __m512i u2 = _mm512_shuffle_i64x2(w2, w3, 0x44), u3 = _mm512_shuffle_i64x2(w2, w3, 0xee);\
    EINI_ST5(c, _mm512_shuffle_i64x2(u0, u2, 0x88));                                        \
    EINI_ST5((c) + (by), _mm512_shuffle_i64x2(u0, u2, 0xdd));                               \
    EINI_ST5((c) + 2 * (by), _mm512_shuffle_i64x2(u1, u3, 0x88));                           \
    EINI_ST5((c) + 3 * (by), _mm512_shuffle_i64x2(u1, u3, 0xdd));                           \
  } while (0)

EINI_T512 EINI_INLINE void eini_tile_32z(const eini_tile *t) {
  enum { a_n = 0, b_n = 1, c_n = 2, d_n = 3 };
  EINI_QUAD(__m512i, _mm512, EINI_LD5, a)
  EINI_QUAD(__m512i, _mm512, EINI_LD5, b)
  EINI_QUAD(__m512i, _mm512, EINI_LD5, c)
  EINI_QUAD(__m512i, _mm512, EINI_LD5, d)
  EINI_LANES4(0, 4, av0, bv0, cv0, dv0);
  EINI_LANES4(1, 4, av1, bv1, cv1, dv1);
  EINI_LANES4(2, 4, av2, bv2, cv2, dv2);
  EINI_LANES4(3, 4, av3, bv3, cv3, dv3);
}

EINI_T512 EINI_INLINE void eini_tile_64z(const eini_tile *t) {
  __m512i r0 = EINI_LD5(0), r1 = EINI_LD5(1), r2 = EINI_LD5(2), r3 = EINI_LD5(3);
  __m512i r4 = EINI_LD5(4), r5 = EINI_LD5(5), r6 = EINI_LD5(6), r7 = EINI_LD5(7);
  __m512i a = _mm512_unpacklo_epi64(r0, r1), b = _mm512_unpacklo_epi64(r2, r3);
  __m512i c = _mm512_unpacklo_epi64(r4, r5), d = _mm512_unpacklo_epi64(r6, r7);
  EINI_LANES4(0, 2, a, b, c, d);
  a = _mm512_unpackhi_epi64(r0, r1), b = _mm512_unpackhi_epi64(r2, r3);
  c = _mm512_unpackhi_epi64(r4, r5), d = _mm512_unpackhi_epi64(r6, r7);
  EINI_LANES4(1, 2, a, b, c, d);
}

EINI_T512 EINI_INLINE void eini_tile_128z(const eini_tile *t) {
  __m512i r0 = EINI_LD5(0), r1 = EINI_LD5(1), r2 = EINI_LD5(2), r3 = EINI_LD5(3);
  EINI_LANES4(0, 1, r0, r1, r2, r3);
}
// To the caches.
#define EINI_TILE_REG(bits)                                                                 \
  EINI_T512 static void eini_reg_tile_##bits(const char *src, int64_t ss, char *dst,        \
                                             int64_t ds) {                                  \
    const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL};                         \
    eini_tile_##bits(&t);                                                                   \
  }
EINI_TILE_REG(32z)
EINI_TILE_REG(64z)
EINI_TILE_REG(128z)
#undef EINI_TILE_REG
EINI_TILE_LINES(32z, EINI_T512)
EINI_TILE_LINES(64z, EINI_T512)
EINI_TILE_LINES(128z, EINI_T512)
#undef EINI_LANES4
#undef EINI_LD5
#undef EINI_ST5
#endif  // EINI_CPU_X86

// Vectors shorter than a line: X##LANES lanes of 128 bits, and X##TIMES(M) says M(0) .. for the
// vectors of a line. ROWS: in each lane 16 bytes of another row, `by` rows apart.
#define EINI_TILE_AT(t, r) \
  ((t)->src + ((t)->column != NULL ? (t)->column[r] : (int64_t)(r) * (t)->ss) + s)
#if EINI_CPU_X86
#define EINI_YT_AT EINI_T256
#define EINI_YT_V __m256i
#define EINI_YT_LANES 2
#define EINI_YT_TIMES(M) M(EINI_YT_, 0) M(EINI_YT_, 1)
#define EINI_YT_LD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define EINI_YT_ROWS(t, r, by)                                                              \
  _mm256_inserti128_si256(_mm256_castsi128_si256(EINI_YT_LD(EINI_TILE_AT(t, r))),           \
                          EINI_YT_LD(EINI_TILE_AT(t, (r) + (by))), 1)
#define EINI_YT_LO32(a, b) _mm256_unpacklo_epi32(a, b)
#define EINI_YT_HI32(a, b) _mm256_unpackhi_epi32(a, b)
#define EINI_YT_LO64(a, b) _mm256_unpacklo_epi64(a, b)
#define EINI_YT_HI64(a, b) _mm256_unpackhi_epi64(a, b)
#define EINI_YT_STORE(t, r, q, j) eini_tile_store_y(t, r, q##0##j, q##1##j)

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

EINI_T256 EINI_INLINE void eini_tile_store_y(const eini_tile *t, int r, __m256i a, __m256i b) {
  char *d = t->row != NULL ? t->row[r] : t->dst + r * t->ds;
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
#define EINI_NT_AT EINI_UNUSED
#define EINI_NT_V uint32x4_t
#define EINI_NT_LANES 1
#define EINI_NT_TIMES(M) M(EINI_NT_, 0) M(EINI_NT_, 1) M(EINI_NT_, 2) M(EINI_NT_, 3)
#define EINI_NT_ROWS(t, r, by) vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)EINI_TILE_AT(t, r)))
#define EINI_NT_LO32(a, b) vzip1q_u32(a, b)
#define EINI_NT_HI32(a, b) vzip2q_u32(a, b)
#define EINI_NT_64(zip, a, b) \
  vreinterpretq_u32_u64(zip(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)))
#define EINI_NT_LO64(a, b) EINI_NT_64(vzip1q_u64, a, b)
#define EINI_NT_HI64(a, b) EINI_NT_64(vzip2q_u64, a, b)
#define EINI_NT_STORE(t, r, q, j) eini_tile_store_n(t, r, q##0##j, q##1##j, q##2##j, q##3##j)

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

EINI_INLINE void eini_tile_store_n(const eini_tile *t, int r, uint32x4_t a, uint32x4_t b,
                                   uint32x4_t c, uint32x4_t d) {
  char *to = t->row != NULL ? t->row[r] : t->dst + r * t->ds;
  uint8x16_t v[4] = {vreinterpretq_u8_u32(a), vreinterpretq_u8_u32(b), vreinterpretq_u8_u32(c),
                     vreinterpretq_u8_u32(d)}, w[4];
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

// Vector h of four, two or one of the lines, from 16 bytes of as many rows as it has elements.
#define EINI_TILE_4(X, h)                                                                   \
  const X##V a##h = X##ROWS(t, 4 * X##LANES * h, 4), b##h = X##ROWS(t, 4 * X##LANES * h + 1, 4), \
             c##h = X##ROWS(t, 4 * X##LANES * h + 2, 4),                                    \
             d##h = X##ROWS(t, 4 * X##LANES * h + 3, 4);                                    \
  const X##V e##h = X##LO32(a##h, b##h), f##h = X##HI32(a##h, b##h),                        \
             g##h = X##LO32(c##h, d##h), i##h = X##HI32(c##h, d##h);                        \
  const X##V q##h##0 = X##LO64(e##h, g##h), q##h##1 = X##HI64(e##h, g##h),                  \
             q##h##2 = X##LO64(f##h, i##h), q##h##3 = X##HI64(f##h, i##h);
#define EINI_TILE_8(X, h)                                                                   \
  const X##V a##h = X##ROWS(t, 2 * X##LANES * h, 2), b##h = X##ROWS(t, 2 * X##LANES * h + 1, 2); \
  const X##V q##h##0 = X##LO64(a##h, b##h), q##h##1 = X##HI64(a##h, b##h);
#define EINI_TILE_16(X, h) const X##V q##h##0 = X##ROWS(t, X##LANES * h, 1);
#define EINI_TILES_OF(n, X)                                                                 \
  X##AT EINI_INLINE void eini_tile_32##n(const eini_tile *t) {                              \
    for (int s = 0; s < 64; s += 16) {                                                      \
      X##TIMES(EINI_TILE_4)                                                                 \
      X##STORE(t, s / 4, q, 0);                                                             \
      X##STORE(t, s / 4 + 1, q, 1);                                                         \
      X##STORE(t, s / 4 + 2, q, 2);                                                         \
      X##STORE(t, s / 4 + 3, q, 3);                                                         \
    }                                                                                       \
  }                                                                                         \
  X##AT EINI_INLINE void eini_tile_64##n(const eini_tile *t) {                              \
    for (int s = 0; s < 64; s += 16) {                                                      \
      X##TIMES(EINI_TILE_8)                                                                 \
      X##STORE(t, s / 8, q, 0);                                                             \
      X##STORE(t, s / 8 + 1, q, 1);                                                         \
    }                                                                                       \
  }                                                                                         \
  X##AT EINI_INLINE void eini_tile_128##n(const eini_tile *t) {                             \
    for (int s = 0; s < 64; s += 16) {                                                      \
      X##TIMES(EINI_TILE_16)                                                                \
      X##STORE(t, s / 16, q, 0);                                                            \
    }                                                                                       \
  }                                                                                         \
  EINI_TILE_LINES(32##n, X##AT)                                                             \
  EINI_TILE_LINES(64##n, X##AT)                                                             \
  EINI_TILE_LINES(128##n, X##AT)
#if EINI_CPU_X86
EINI_TILES_OF(y, EINI_YT_)
#elif EINI_CPU_NEON
EINI_TILES_OF(n, EINI_NT_)
#endif
#undef EINI_TILES_OF
#undef EINI_TILE_16
#undef EINI_TILE_8
#undef EINI_TILE_4
#undef EINI_TILE_AT
#undef EINI_TILE_LINES

// Tiles that store whole lines past the caches, B = 64 / size. join: from columns and to rows of
// any places, see eini_tile. pick: into a line for each row.
typedef struct eini_line_kind {
  int b;
  eini_tile_fn line;
  void (*join)(const char *src, const int64_t *column, char *const *row, int64_t at, char *carry);
  void (*pick)(const char *src, const int64_t *column, char *dst);
} eini_line_kind;

// For elements of 4, 8 and 16 bytes, per instruction set.
#define EINI_TILE_KIND(b, s) {b, eini_line_tile_##s, eini_join_tile_##s, eini_pick_tile_##s}
#define EINI_TILE_NONE {{0, NULL, NULL, NULL}, {0, NULL, NULL, NULL}, {0, NULL, NULL, NULL}}
static const eini_line_kind eini_line_kinds[EINI_ISA_COUNT][3] = {
    EINI_TILE_NONE,
#if EINI_CPU_NEON
    {EINI_TILE_KIND(16, 32n), EINI_TILE_KIND(8, 64n), EINI_TILE_KIND(4, 128n)},
    EINI_TILE_NONE, EINI_TILE_NONE};
#elif EINI_CPU_X86
    EINI_TILE_NONE,
    {EINI_TILE_KIND(16, 32y), EINI_TILE_KIND(8, 64y), EINI_TILE_KIND(4, 128y)},
    {EINI_TILE_KIND(16, 32z), EINI_TILE_KIND(8, 64z), EINI_TILE_KIND(4, 128z)}};
#else
    EINI_TILE_NONE, EINI_TILE_NONE, EINI_TILE_NONE};
#endif
#undef EINI_TILE_NONE
#undef EINI_TILE_KIND

static eini_line_kind eini_tile_lines(int isa, int size) {
  const eini_line_kind none = {0, NULL, NULL, NULL};
  return size < 4 ? none : eini_line_kinds[isa][size / 8];
}
