// ================================================================================================
// >>tiles  transposes in registers
// tile(src, ss, dst, ds): dst[s * ds + d] = src[d * ss + s] for s, d < B elements; steps in bytes.
// ================================================================================================

#if EINI_CPU_X86

#define EINI_LD1(r) _mm_loadu_si128((const __m128i *)(const void *)(src + (r)*ss))
#define EINI_LD2(r) _mm256_loadu_si256((const __m256i *)(const void *)(src + (r)*ss))
#define EINI_ST1(r, v) _mm_storeu_si128((__m128i *)(void *)(dst + (r)*ds), v)
#define EINI_ST2(r, v) _mm256_storeu_si256((__m256i *)(void *)(dst + (r)*ds), v)

// Perfect shuffles of 128 bits: log2(B) rounds of interleaving vector i with vector i + B/2.
#define EINI_ZIP2(T, x, y, bits, i, j, k, l)                                                \
  const T y##k = _mm_unpacklo_epi##bits(x##i, x##j);                                        \
  const T y##l = _mm_unpackhi_epi##bits(x##i, x##j);
#define EINI_ZIP8(x, y)                                                                     \
  EINI_ZIP2(__m128i, x, y, 16, 0, 4, 0, 1) EINI_ZIP2(__m128i, x, y, 16, 1, 5, 2, 3)         \
  EINI_ZIP2(__m128i, x, y, 16, 2, 6, 4, 5) EINI_ZIP2(__m128i, x, y, 16, 3, 7, 6, 7)
#define EINI_ZIP16(x, y)                                                                    \
  EINI_ZIP2(__m128i, x, y, 8, 0, 8, 0, 1) EINI_ZIP2(__m128i, x, y, 8, 1, 9, 2, 3)           \
  EINI_ZIP2(__m128i, x, y, 8, 2, 10, 4, 5) EINI_ZIP2(__m128i, x, y, 8, 3, 11, 6, 7)         \
  EINI_ZIP2(__m128i, x, y, 8, 4, 12, 8, 9) EINI_ZIP2(__m128i, x, y, 8, 5, 13, 10, 11)       \
  EINI_ZIP2(__m128i, x, y, 8, 6, 14, 12, 13) EINI_ZIP2(__m128i, x, y, 8, 7, 15, 14, 15)

EINI_T256 static void eini_reg_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  const __m128i a0 = EINI_LD1(0), a1 = EINI_LD1(1), a2 = EINI_LD1(2), a3 = EINI_LD1(3);
  const __m128i a4 = EINI_LD1(4), a5 = EINI_LD1(5), a6 = EINI_LD1(6), a7 = EINI_LD1(7);
  const __m128i a8 = EINI_LD1(8), a9 = EINI_LD1(9), a10 = EINI_LD1(10), a11 = EINI_LD1(11);
  const __m128i a12 = EINI_LD1(12), a13 = EINI_LD1(13), a14 = EINI_LD1(14), a15 = EINI_LD1(15);
  EINI_ZIP16(a, b)
  EINI_ZIP16(b, c)
  EINI_ZIP16(c, d)
  EINI_ZIP16(d, e)
  EINI_ST1(0, e0), EINI_ST1(1, e1), EINI_ST1(2, e2), EINI_ST1(3, e3);
  EINI_ST1(4, e4), EINI_ST1(5, e5), EINI_ST1(6, e6), EINI_ST1(7, e7);
  EINI_ST1(8, e8), EINI_ST1(9, e9), EINI_ST1(10, e10), EINI_ST1(11, e11);
  EINI_ST1(12, e12), EINI_ST1(13, e13), EINI_ST1(14, e14), EINI_ST1(15, e15);
}

EINI_T256 static void eini_reg_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  const __m128i a0 = EINI_LD1(0), a1 = EINI_LD1(1), a2 = EINI_LD1(2), a3 = EINI_LD1(3);
  const __m128i a4 = EINI_LD1(4), a5 = EINI_LD1(5), a6 = EINI_LD1(6), a7 = EINI_LD1(7);
  EINI_ZIP8(a, b)
  EINI_ZIP8(b, c)
  EINI_ZIP8(c, d)
  EINI_ST1(0, d0), EINI_ST1(1, d1), EINI_ST1(2, d2), EINI_ST1(3, d3);
  EINI_ST1(4, d4), EINI_ST1(5, d5), EINI_ST1(6, d6), EINI_ST1(7, d7);
}
#undef EINI_ZIP2
#undef EINI_ZIP8
#undef EINI_ZIP16

static void eini_reg_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m128i r0 = EINI_LD1(0), r1 = EINI_LD1(1), r2 = EINI_LD1(2), r3 = EINI_LD1(3);
  __m128i t0 = _mm_unpacklo_epi32(r0, r1), t1 = _mm_unpackhi_epi32(r0, r1);
  __m128i t2 = _mm_unpacklo_epi32(r2, r3), t3 = _mm_unpackhi_epi32(r2, r3);
  EINI_ST1(0, _mm_unpacklo_epi64(t0, t2));
  EINI_ST1(1, _mm_unpackhi_epi64(t0, t2));
  EINI_ST1(2, _mm_unpacklo_epi64(t1, t3));
  EINI_ST1(3, _mm_unpackhi_epi64(t1, t3));
}

static void eini_reg_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m128i r0 = EINI_LD1(0), r1 = EINI_LD1(1);
  EINI_ST1(0, _mm_unpacklo_epi64(r0, r1));
  EINI_ST1(1, _mm_unpackhi_epi64(r0, r1));
}

static void eini_reg_tile_128(const char *src, int64_t ss, char *dst, int64_t ds) {
  for (int i = 0; i < 4; i++) {
    __m128i a = EINI_LD1(i), b;
    b = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 16));
    EINI_ST1(0, a);
    EINI_ST1(1, b);
    a = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 32));
    b = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 48));
    EINI_ST1(2, a);
    EINI_ST1(3, b);
    dst += 16;
  }
}

EINI_T256 static void eini_reg_tile_64y(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m256i r0 = EINI_LD2(0), r1 = EINI_LD2(1), r2 = EINI_LD2(2), r3 = EINI_LD2(3);
  __m256i t0 = _mm256_unpacklo_epi64(r0, r1), t1 = _mm256_unpackhi_epi64(r0, r1);
  __m256i t2 = _mm256_unpacklo_epi64(r2, r3), t3 = _mm256_unpackhi_epi64(r2, r3);
  EINI_ST2(0, _mm256_permute2x128_si256(t0, t2, 0x20));
  EINI_ST2(1, _mm256_permute2x128_si256(t1, t3, 0x20));
  EINI_ST2(2, _mm256_permute2x128_si256(t0, t2, 0x31));
  EINI_ST2(3, _mm256_permute2x128_si256(t1, t3, 0x31));
}

EINI_T256 static void eini_reg_tile_32y(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m256i a[4], b[4];
  const __m256i r0 = EINI_LD2(0), r1 = EINI_LD2(1), r2 = EINI_LD2(2), r3 = EINI_LD2(3);
  eini_tile_quad_yt(r0, r1, r2, r3, a);
  const __m256i r4 = EINI_LD2(4), r5 = EINI_LD2(5), r6 = EINI_LD2(6), r7 = EINI_LD2(7);
  eini_tile_quad_yt(r4, r5, r6, r7, b);
  EINI_ST2(0, _mm256_permute2x128_si256(a[0], b[0], 0x20));
  EINI_ST2(4, _mm256_permute2x128_si256(a[0], b[0], 0x31));
  EINI_ST2(1, _mm256_permute2x128_si256(a[1], b[1], 0x20));
  EINI_ST2(5, _mm256_permute2x128_si256(a[1], b[1], 0x31));
  EINI_ST2(2, _mm256_permute2x128_si256(a[2], b[2], 0x20));
  EINI_ST2(6, _mm256_permute2x128_si256(a[2], b[2], 0x31));
  EINI_ST2(3, _mm256_permute2x128_si256(a[3], b[3], 0x20));
  EINI_ST2(7, _mm256_permute2x128_si256(a[3], b[3], 0x31));
}

#undef EINI_LD1
#undef EINI_LD2
#undef EINI_ST1
#undef EINI_ST2

#elif EINI_CPU_NEON

// Elements of the first and the second half of two vectors, of each in turn.
EINI_INLINE void eini_zip(int size, uint8x16_t a, uint8x16_t b, uint8x16_t *to) {
  const uint16x8_t c = vreinterpretq_u16_u8(a), d = vreinterpretq_u16_u8(b);
  const uint32x4_t e = vreinterpretq_u32_u8(a), f = vreinterpretq_u32_u8(b);
  const uint64x2_t g = vreinterpretq_u64_u8(a), h = vreinterpretq_u64_u8(b);
  to[0] = size == 1   ? vzip1q_u8(a, b)
          : size == 2 ? vreinterpretq_u8_u16(vzip1q_u16(c, d))
          : size == 4 ? vreinterpretq_u8_u32(vzip1q_u32(e, f))
                      : vreinterpretq_u8_u64(vzip1q_u64(g, h));
  to[1] = size == 1   ? vzip2q_u8(a, b)
          : size == 2 ? vreinterpretq_u8_u16(vzip2q_u16(c, d))
          : size == 4 ? vreinterpretq_u8_u32(vzip2q_u32(e, f))
                      : vreinterpretq_u8_u64(vzip2q_u64(g, h));
}

EINI_INLINE void eini_reg_tile(int size, const char *src, int64_t ss, char *dst, int64_t ds) {
  const int b = 16 / size;
  uint8x16_t x[2][16];
  int at = 0;
  for (int i = 0; i < b; i++) memcpy(&x[0][i], src + i * ss, 16);
  for (int rounds = b; rounds > 1; rounds /= 2, at = !at)
    for (int i = 0; i < b / 2; i++) eini_zip(size, x[at][i], x[at][i + b / 2], &x[!at][2 * i]);
  for (int i = 0; i < b; i++) memcpy(dst + i * ds, &x[at][i], 16);
}
static void eini_reg_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(1, src, ss, dst, ds);
}
static void eini_reg_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(2, src, ss, dst, ds);
}
static void eini_reg_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(4, src, ss, dst, ds);
}
static void eini_reg_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(8, src, ss, dst, ds);
}

#endif  // EINI_CPU_X86, EINI_CPU_NEON

// Plain C, B = 4.
EINI_INLINE void eini_c_tile(int size, const char *src, int64_t ss, char *dst, int64_t ds) {
  for (int d = 0; d < 4; d++) {
    for (int s = 0; s < 4; s++)
      memcpy(dst + s * ds + d * size, src + d * ss + s * size, (size_t)size);
  }
}
static void eini_c_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(1, src, ss, dst, ds);
}
static void eini_c_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(2, src, ss, dst, ds);
}
static void eini_c_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(4, src, ss, dst, ds);
}
static void eini_c_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(8, src, ss, dst, ds);
}
static void eini_c_tile_128(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(16, src, ss, dst, ds);
}

// The tiles of an element size, widest first, ended by B = 0.
typedef struct eini_tile_kind {
  int b;
  eini_tile_fn fn;
} eini_tile_kind;

// By log2 of the size, per instruction set.
static const eini_tile_kind eini_tile_kinds[EINI_ISA_COUNT][5][4] = {
    {{{4, eini_c_tile_8}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_16}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_32}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_64}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
#if EINI_CPU_NEON
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_32}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{2, eini_reg_tile_64}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
#else
    {{{0, NULL}}},
#endif
#if EINI_CPU_X86
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_32y}, {4, eini_reg_tile_32}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_64y}, {2, eini_reg_tile_64}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{16, eini_reg_tile_32_zt}, {8, eini_reg_tile_32y}, {4, eini_reg_tile_32}, {0, NULL}},
     {{8, eini_reg_tile_64_zt}, {4, eini_reg_tile_64y}, {2, eini_reg_tile_64}, {0, NULL}},
     {{4, eini_reg_tile_128_zt}, {0, NULL}, {0, NULL}, {0, NULL}}}};
#else  // EINI_CPU_X86
    {{{0, NULL}}}, {{{0, NULL}}}};
#endif

// dst[s * ds + d] = src[d * ss + s] for s < ns <= 4 and d < nd, nd >= 8, of eight bytes; steps in
// bytes. Rows too short for tiles: eight at once, of which nothing after their end is read.
#if EINI_CPU_X86
#define EINI_NARROW_ROW(k) _mm256_maskz_loadu_pd(m, (const void *)(r + (k) * ss))
#define EINI_NARROW_PAIR(k) \
  _mm512_insertf64x4(_mm512_castpd256_pd512(EINI_NARROW_ROW(k)), EINI_NARROW_ROW((k) + 2), 1)
EINI_T512 static void eini_turn_narrow(int64_t ns, int64_t nd, const char *src, int64_t ss,
                                       char *dst, int64_t ds) {
  const __mmask8 m = (__mmask8)((1u << ns) - 1u);
  for (int64_t i = 0; i < nd; i += 8) {
    const int64_t d = eini_min64(i, nd - 8);
    const char *r = src + d * ss;
    char *to = dst + 8 * d;
    const __m512d a = EINI_NARROW_PAIR(0), b = EINI_NARROW_PAIR(1);
    const __m512d e = EINI_NARROW_PAIR(4), f = EINI_NARROW_PAIR(5);
    const __m512d x = _mm512_unpacklo_pd(a, b), y = _mm512_unpacklo_pd(e, f);
    const __m512d z = _mm512_unpackhi_pd(a, b), w = _mm512_unpackhi_pd(e, f);
    _mm512_storeu_pd(to, _mm512_shuffle_f64x2(x, y, 0x88));
    if (ns > 1) _mm512_storeu_pd(to + ds, _mm512_shuffle_f64x2(z, w, 0x88));
    if (ns > 2) _mm512_storeu_pd(to + 2 * ds, _mm512_shuffle_f64x2(x, y, 0xdd));
    if (ns > 3) _mm512_storeu_pd(to + 3 * ds, _mm512_shuffle_f64x2(z, w, 0xdd));
  }
}
#else  // EINI_CPU_X86
static void eini_turn_narrow(int64_t ns, int64_t nd, const char *src, int64_t ss, char *dst,
                             int64_t ds) {
  for (int64_t s = 0; s < ns; s++) {
    for (int64_t d = 0; d < nd; d++) memcpy(dst + s * ds + 8 * d, src + d * ss + 8 * s, 8);
  }
}
#endif

// The same for any number and size of elements. Tiles overlap.
static void eini_turn(int isa, int size, int64_t ns, int64_t nd, const char *src, int64_t ss,
                      char *dst, int64_t ds) {
  const eini_tile_kind *kind = eini_tile_kinds[isa][size == 8 ? 3 : 2];
  while (kind->b > eini_min64(ns, nd)) kind++;
  const int64_t b = kind->b;
  const int narrow = isa == EINI_ISA_AVX512 && size == 8 && nd >= 8;
  for (int64_t s = 0, n; s < ns; s += n) {
    n = b > 0 ? b : 1;
    if (narrow && (b < 8 || ns - s <= 4)) {
      n = eini_min64(ns - s, 4);
      eini_turn_narrow(n, nd, src + s * size, ss, dst + s * ds, ds);
      continue;
    }
    if (b == 0) {
      for (int64_t d = 0; d < nd; d++) {
        memcpy(dst + s * ds + d * size, src + d * ss + s * size, (size_t)size);
      }
      continue;
    }
    const int64_t u = eini_min64(s, ns - b);
    for (int64_t d = 0; d < nd; d += b) {
      const int64_t w = eini_min64(d, nd - b);
      kind->fn(src + w * ss + u * size, ss, dst + u * ds + w * size, ds);
    }
  }
}
