// ================================================================================================
// >>line-kernels  transposes of whole lines, of one set
// By 4, 8 and 16 bytes. Lines are one vector, or several with fewer lanes of 128 bits.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_LINES
// Four rows of words: lane L of q[j] has element 4 L + j of each.
EINI_VAT EINI_INLINE void EINI_FN(tile_quad)(EINI_V a, EINI_V b, EINI_V c, EINI_V d, EINI_V *q) {
  const EINI_V e = EINI_X(LO32)(a, b), f = EINI_X(HI32)(a, b);
  const EINI_V g = EINI_X(LO32)(c, d), h = EINI_X(HI32)(c, d);
  q[0] = EINI_X(LO64)(e, g), q[1] = EINI_X(HI64)(e, g);
  q[2] = EINI_X(LO64)(f, h), q[3] = EINI_X(HI64)(f, h);
}

#if EINI_X(LANES) == 4
EINI_VAT EINI_INLINE void EINI_FN(tile_fours)(const eini_tile *t, int r, EINI_V *q) {
  const EINI_V a = EINI_FN(tile_load)(t, r), b = EINI_FN(tile_load)(t, r + 1);
  const EINI_V c = EINI_FN(tile_load)(t, r + 2), d = EINI_FN(tile_load)(t, r + 3);
  EINI_FN(tile_quad)(a, b, c, d, q);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_32)(const eini_tile *t) {
  EINI_V a[4], b[4], c[4], d[4];
  EINI_FN(tile_fours)(t, 0, a);
  EINI_FN(tile_fours)(t, 4, b);
  EINI_FN(tile_fours)(t, 8, c);
  EINI_FN(tile_fours)(t, 12, d);
  EINI_FN(tile_lanes)(t, 0, 4, a[0], b[0], c[0], d[0]);
  EINI_FN(tile_lanes)(t, 1, 4, a[1], b[1], c[1], d[1]);
  EINI_FN(tile_lanes)(t, 2, 4, a[2], b[2], c[2], d[2]);
  EINI_FN(tile_lanes)(t, 3, 4, a[3], b[3], c[3], d[3]);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_64)(const eini_tile *t) {
  const EINI_V a = EINI_FN(tile_load)(t, 0), b = EINI_FN(tile_load)(t, 1);
  const EINI_V c = EINI_FN(tile_load)(t, 2), d = EINI_FN(tile_load)(t, 3);
  const EINI_V e = EINI_FN(tile_load)(t, 4), f = EINI_FN(tile_load)(t, 5);
  const EINI_V g = EINI_FN(tile_load)(t, 6), h = EINI_FN(tile_load)(t, 7);
  EINI_FN(tile_lanes)(t, 0, 2, EINI_X(LO64)(a, b), EINI_X(LO64)(c, d), EINI_X(LO64)(e, f),
                      EINI_X(LO64)(g, h));
  EINI_FN(tile_lanes)(t, 1, 2, EINI_X(HI64)(a, b), EINI_X(HI64)(c, d), EINI_X(HI64)(e, f),
                      EINI_X(HI64)(g, h));
}

EINI_VAT EINI_INLINE void EINI_FN(tile_128)(const eini_tile *t) {
  const EINI_V a = EINI_FN(tile_load)(t, 0), b = EINI_FN(tile_load)(t, 1);
  const EINI_V c = EINI_FN(tile_load)(t, 2), d = EINI_FN(tile_load)(t, 3);
  EINI_FN(tile_lanes)(t, 0, 1, a, b, c, d);
}

// To the caches.
EINI_VAT static void EINI_FN(reg_tile_32)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(reg_tile_64)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(reg_tile_128)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 0, NULL, 0, NULL, NULL};
  EINI_FN(tile_128)(&t);
}

#else  // EINI_X(LANES)
// Vector h of lines, from the s-th 16 bytes of as many rows as it has elements of 16, 8, 4 bytes.
EINI_VAT EINI_INLINE void EINI_FN(tile_ones)(const eini_tile *t, int s, int h, EINI_V *q) {
  q[0] = EINI_FN(tile_rows)(t, s, EINI_X(LANES) * h, 1);
}
EINI_VAT EINI_INLINE void EINI_FN(tile_twos)(const eini_tile *t, int s, int h, EINI_V *q) {
  const int r = 2 * EINI_X(LANES) * h;
  const EINI_V a = EINI_FN(tile_rows)(t, s, r, 2), b = EINI_FN(tile_rows)(t, s, r + 1, 2);
  q[0] = EINI_X(LO64)(a, b), q[1] = EINI_X(HI64)(a, b);
}
EINI_VAT EINI_INLINE void EINI_FN(tile_fours)(const eini_tile *t, int s, int h, EINI_V *q) {
  const int r = 4 * EINI_X(LANES) * h;
  const EINI_V a = EINI_FN(tile_rows)(t, s, r, 4), b = EINI_FN(tile_rows)(t, s, r + 1, 4);
  const EINI_V c = EINI_FN(tile_rows)(t, s, r + 2, 4), d = EINI_FN(tile_rows)(t, s, r + 3, 4);
  EINI_FN(tile_quad)(a, b, c, d, q);
}

EINI_VAT EINI_INLINE void EINI_FN(tile_32)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_fours)(t, s, 0, q[0]);
    EINI_FN(tile_fours)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_fours)(t, s, 2, q[2]);
    EINI_FN(tile_fours)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 4, q, 0);
    EINI_FN(tile_store)(t, s / 4 + 1, q, 1);
    EINI_FN(tile_store)(t, s / 4 + 2, q, 2);
    EINI_FN(tile_store)(t, s / 4 + 3, q, 3);
  }
}

EINI_VAT EINI_INLINE void EINI_FN(tile_64)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_twos)(t, s, 0, q[0]);
    EINI_FN(tile_twos)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_twos)(t, s, 2, q[2]);
    EINI_FN(tile_twos)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 8, q, 0);
    EINI_FN(tile_store)(t, s / 8 + 1, q, 1);
  }
}

EINI_VAT EINI_INLINE void EINI_FN(tile_128)(const eini_tile *t) {
  for (int s = 0; s < 64; s += 16) {
    EINI_V q[4][4];
    EINI_FN(tile_ones)(t, s, 0, q[0]);
    EINI_FN(tile_ones)(t, s, 1, q[1]);
#if EINI_X(LANES) == 1
    EINI_FN(tile_ones)(t, s, 2, q[2]);
    EINI_FN(tile_ones)(t, s, 3, q[3]);
#endif
    EINI_FN(tile_store)(t, s / 16, q, 0);
  }
}
#endif  // EINI_X(LANES)

// Tiles of whole lines past the caches.
EINI_VAT static void EINI_FN(line_tile_32)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(line_tile_64)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(line_tile_128)(const char *src, int64_t ss, char *dst, int64_t ds) {
  const eini_tile t = {src, NULL, ss, dst, ds, 1, NULL, 0, NULL, NULL};
  EINI_FN(tile_128)(&t);
}

// From and to any places.
EINI_VAT static void EINI_FN(join_tile_32)(const char *src, const int64_t *column,
                                           char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(join_tile_64)(const char *src, const int64_t *column,
                                           char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(join_tile_128)(const char *src, const int64_t *column,
                                            char *const *row, int64_t at, char *carry) {
  const eini_tile t = {src, column, 0, NULL, 0, 1, row, at, carry, NULL};
  EINI_FN(tile_128)(&t);
}
EINI_VAT static void EINI_FN(put_tile_32)(const char *src, const int64_t *column, char *dst,
                                          const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_32)(&t);
}
EINI_VAT static void EINI_FN(put_tile_64)(const char *src, const int64_t *column, char *dst,
                                          const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_64)(&t);
}
EINI_VAT static void EINI_FN(put_tile_128)(const char *src, const int64_t *column, char *dst,
                                           const int64_t *place) {
  const eini_tile t = {src, column, 0, dst, 0, 0, NULL, 0, NULL, place};
  EINI_FN(tile_128)(&t);
}

// For elements of 4, 8 and 16 bytes.
static const eini_line_kind EINI_FN(line_kinds)[3] = {
    {16, EINI_FN(line_tile_32), EINI_FN(join_tile_32), EINI_FN(put_tile_32)},
    {8, EINI_FN(line_tile_64), EINI_FN(join_tile_64), EINI_FN(put_tile_64)},
    {4, EINI_FN(line_tile_128), EINI_FN(join_tile_128), EINI_FN(put_tile_128)}};
#endif  // EINI_KERNELS_LINES
