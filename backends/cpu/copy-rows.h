// ================================================================================================
// >>copy-rows  rows of copies past the caches
// Rows that complete each other's lines, and rows of tiles that start anywhere.
// ================================================================================================

// Without masks, lines are taken by 16 bytes. MOVE: byte i is byte i - n of v, where there is one.
// MIX: n bytes of a, then those of b.
#if EINI_CPU_X86
#define EINI_Q_AT EINI_T256
#define EINI_Q_V __m128i
#define EINI_Q_LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define EINI_Q_STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define EINI_Q_PAST(p, v) _mm_stream_si128((__m128i *)(void *)(p), v)
#define EINI_Q_BYTES _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define EINI_Q_SET(n) _mm_set1_epi8((char)(n))
#define EINI_Q_MOVE(v, n) _mm_shuffle_epi8(v, _mm_sub_epi8(EINI_Q_BYTES, EINI_Q_SET(n)))
#define EINI_Q_MIX(n, a, b) \
  _mm_blendv_epi8(b, a, _mm_cmpgt_epi8(EINI_Q_SET(n), EINI_Q_BYTES))
#define EINI_Q_JOINED eini_line_joined_y
#elif EINI_CPU_NEON
static const int8_t eini_q_bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define EINI_Q_AT EINI_UNUSED
#define EINI_Q_V uint8x16_t
#define EINI_Q_LOAD(p) vld1q_u8((const uint8_t *)(p))
#define EINI_Q_STORE(p, v) vst1q_u8((uint8_t *)(p), v)
#define EINI_Q_PAST(p, v) vst1q_u8((uint8_t *)(p), v)
#define EINI_Q_SET(n) vdupq_n_s8((int8_t)(n))
#define EINI_Q_MOVE(v, n) \
  vqtbl1q_u8(v, vreinterpretq_u8_s8(vsubq_s8(vld1q_s8(eini_q_bytes), EINI_Q_SET(n))))
#define EINI_Q_MIX(n, a, b) vbslq_u8(vcgtq_s8(EINI_Q_SET(n), vld1q_s8(eini_q_bytes)), a, b)
#define EINI_Q_JOINED eini_line_joined_n
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#if EINI_CPU_X86 || EINI_CPU_NEON
// p->ns rows, at least a line each. What of a row does not fill its last line waits in the row's
// line of `carry` for the row that follows it in the destination.
EINI_Q_AT static void eini_rows_carry_q(const eini_plane *p, char *carry, int first, int last) {
  for (int64_t r = 0; r < p->ns; r++, carry += 64) {
    const char *s = p->src + r * p->ss, *end = s + p->nd;
    char *d = p->dst + r * p->ds;
    const int64_t at = (int64_t)((uintptr_t)d & 63), n = at + p->nd, rest = n & 63;
    const int64_t old = at & ~(int64_t)15;
    if (first && at > 0) {
      memcpy(d, s, (size_t)(64 - at));
    } else {
      for (int64_t i = 0; i < old; i += 16) EINI_Q_PAST(d - at + i, EINI_Q_LOAD(carry + i));
      const EINI_Q_V v = EINI_Q_MOVE(EINI_Q_LOAD(s), at - old);
      EINI_Q_PAST(d - at + old, EINI_Q_MIX(at - old, EINI_Q_LOAD(carry + old), v));
      for (int64_t i = old + 16; i < 64; i += 16) EINI_Q_PAST(d - at + i, EINI_Q_LOAD(s + i - at));
    }
    s += 64 - at;
    d += 64 - at;
    for (int64_t k = 64; k + 64 <= n; k += 64, s += 64, d += 64) {
      EINI_Q_PAST(d, EINI_Q_LOAD(s));
      EINI_Q_PAST(d + 16, EINI_Q_LOAD(s + 16));
      EINI_Q_PAST(d + 32, EINI_Q_LOAD(s + 32));
      EINI_Q_PAST(d + 48, EINI_Q_LOAD(s + 48));
    }
    for (int64_t i = 0; i < rest; i += 16) {
      const EINI_Q_V v = EINI_Q_LOAD(i + 16 <= rest ? s + i : end - 16);
      EINI_Q_STORE(carry + i, EINI_Q_MOVE(v, i + 16 <= rest ? 0 : rest - i - 16));
    }
    if (last && rest > 0) memcpy(d, s, (size_t)rest);
  }
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#if EINI_CPU_X86

// The same by masks.
EINI_T512 static void eini_rows_carry_by_masks(const eini_plane *p, char *carry, int first,
                                               int last) {
  for (int64_t r = 0; r < p->ns; r++, carry += 64) {
    const char *dst = p->dst + r * p->ds;
    const int64_t at = (int64_t)((uintptr_t)dst & 63), n = at + p->nd, whole = n & ~(int64_t)63;
    const uintptr_t s = (uintptr_t)(p->src + r * p->ss) - (uintptr_t)at;
    char *d = p->dst + r * p->ds - at;
    const __mmask64 own = ~(__mmask64)0 << at, rest = ((__mmask64)1 << (n - whole)) - 1;
    __m512i v = _mm512_mask_loadu_epi8(_mm512_loadu_si512(carry), own, (const void *)s);
    if (first && at > 0) _mm512_mask_storeu_epi8(d, own, v);
    else _mm512_stream_si512((__m512i *)(void *)d, v);
    for (int64_t k = 64; k < whole; k += 64) {
      v = _mm512_loadu_si512((const void *)(s + (uintptr_t)k));
      _mm512_stream_si512((__m512i *)(void *)(d + k), v);
    }
    if (rest == 0) continue;
    v = _mm512_maskz_loadu_epi8(rest, (const void *)(s + (uintptr_t)whole));
    _mm512_storeu_si512(carry, v);
    if (last) _mm512_mask_storeu_epi8(d + whole, rest, v);
  }
}

#endif  // EINI_CPU_X86

typedef void (*eini_carry_fn)(const eini_plane *p, char *carry, int first, int last);
static const eini_carry_fn eini_rows_carry[EINI_ISA_COUNT] = {
    NULL,
#if EINI_CPU_NEON
    eini_rows_carry_q, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_rows_carry_q, eini_rows_carry_by_masks};
#else
    NULL, NULL, NULL};
#endif

// Do rows follow each other in the destination, but not as lines? Their blocks, in the order of the
// source: rows of other places, then the next row of each place.
static int eini_move_carried(eini_move *w) {
  const int near = eini_move_near(w), row = near > 1 ? near : -1;
  const int64_t bytes = w->extent[0] * w->size;
  int64_t all = bytes;
  int n = 1;
  if (eini_rows_carry[w->isa] == NULL || w->kind != EINI_COPY_ROWS || bytes < 64) return 0;
  for (; n < w->n && n < 4 && n != row && w->dst_step[n] == all; n++) all *= w->extent[n];
  if (n == 1 || bytes % 64 == 0 || all < EINI_COPY_ROW) return 0;
  w->ncol = n;
  w->row = row;
  for (int i = 0; i < w->n; i++) w->blk[i] = i < n ? w->extent[i] : 1;
  if (row >= 0) w->blk[row] = eini_min64(w->extent[row], EINI_COPY_CARRY);
  return 1;
}

static void eini_block_carried(const eini_move *w, const char *src, char *dst, char *buffer,
                               eini_before *before) {
  const int64_t bytes = w->extent[0] * w->size, rows = eini_move_part(w, w->row);
  const int64_t some = eini_max64(1, EINI_COPY_TURN / bytes);
  int64_t at[4] = {0, 0, 0, 0};
  eini_plane p;
  p.sd = p.dd = 1;
  p.nd = bytes;
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.ds = w->row < 0 ? 0 : w->dst_step[w->row];
  const int follow = w->row >= 0 && p.ss == bytes;
  for (int first = 1, last = 0; !last; first = 0, dst += bytes) {
    const char *column = src;
    last = 1;
    for (int i = 1; i < w->ncol; i++) last = last && at[i] + 1 == w->extent[i];
    for (int64_t r = 0, read = 0, to; r < rows; r += some, read = to) {
      p.ns = eini_min64(some, rows - r);
      p.src = column + r * p.ss;
      p.dst = dst + r * p.ds;
      to = follow ? eini_rows_lines(r + p.ns, bytes) : (r + p.ns) * eini_rows_lines(1, bytes);
      before->lead -= to - read;
      eini_before_some(before, before->most);
      eini_rows_carry[w->isa](&p, buffer + 64 * r, first, last);
    }
    for (int i = 1; i < w->ncol; i++) {  // on to the next column
      src += w->src_step[i];
      if (++at[i] < w->extent[i]) break;
      src -= w->extent[i] * w->src_step[i];
      at[i] = 0;
    }
  }
}

// Every block of rows that complete each other's lines.
static void eini_move_run_carried(eini_move *w, char *buffer) {
  eini_before before;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  eini_before_start(&before, w, EINI_COPY_LEAD);
  for (w->last = 0; !w->last;) {
    eini_block_carried(w, w->src + eini_move_offset(w, w->src_step),
                       w->dst + eini_move_offset(w, w->dst_step), buffer, &before);
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// ---- rows of tiles that start anywhere ----

// The columns of such a copy, in the order of the destination, by blocks of them. A block has every
// row of a run of the source.
typedef struct eini_chain {
  eini_move w;
  eini_line_kind tile;
  int64_t columns, some;       // of all rows; of a block
  int64_t rows, next;          // of the run; from a row to that which may follow it; or 0
  int64_t at[EINI_COPY_LOOPS]; // the first column that is not listed yet
  const int64_t *column;       // offsets in the source
  char **row;                  // destinations
  char *carry, *heads;         // a line for each row: of the tile before; of its first tile
  const char *ask;             // the run that is read after this one, its columns, how far it is
  const int64_t *ask_column;
  int64_t ask_columns, ask_lines, ask_i, ask_line;
} eini_chain;

static void eini_chain_ask(eini_chain *c, int64_t lines) {
  for (int64_t n; lines > 0 && c->ask_i < c->ask_columns; lines -= n) {
    uintptr_t p = (uintptr_t)c->ask + (uintptr_t)c->ask_column[c->ask_i];
    p += 64 * (uintptr_t)c->ask_line;
    n = eini_min64(lines, c->ask_lines - c->ask_line);
    for (int64_t l = 0; l < n; l++) EINI_FETCH2(p + 64 * (uintptr_t)l);
    c->ask_line += n;
    if (c->ask_line == c->ask_lines) c->ask_line = 0, c->ask_i++;
  }
}

// Lists the next n columns; for a tile of them at the end the last one again.
static void eini_chain_list(eini_chain *c, int64_t n, int64_t *list) {
  const eini_move *w = &c->w;
  int64_t offset = 0, i = 0;
  for (int k = 0; k < w->ncol; k++) offset += c->at[k] * w->src_step[k];
  for (; i < n; i++) {
    list[i] = offset;
    for (int k = 0; k < w->ncol; k++) {
      offset += w->src_step[k];
      if (++c->at[k] < w->extent[k]) break;
      offset -= w->extent[k] * w->src_step[k];
      c->at[k] = 0;
    }
  }
  for (; i % c->tile.b != 0; i++) list[i] = list[n - 1];
}

#if EINI_CPU_X86 || EINI_CPU_NEON
// The last line of row x, which has only n bytes of it: the row after it has the rest, or it stays
// as it is.
EINI_Q_AT static void eini_chain_end_q(const eini_chain *c, int64_t x, char *d, int64_t n,
                                       const char *line) {
  const int64_t y = x + c->next;
  const char *end = c->row[x] + c->columns * c->w.size;
  char head[64];
  if (c->next == 0 || y >= c->rows || c->row[y] != end) {
    memcpy(d, line, (size_t)n);
    return;
  }
  EINI_Q_JOINED(end, c->heads + 64 * y, c->heads + 64 * y, head);
  for (int64_t i = 0; i < 64; i += 16)
    EINI_Q_PAST(d + i, EINI_Q_MIX(eini_max64(0, eini_min64(n - i, 16)), EINI_Q_LOAD(line + i),
                                  EINI_Q_LOAD(head + i)));
}

// Tile t of the rows from x to `to`, as lines at `tile`.
EINI_Q_AT static void eini_chain_lines_q(const eini_chain *c, int64_t x, int64_t to, int64_t t,
                                         const char *tile) {
  const int64_t bytes = c->columns * c->w.size;
  const int last = (t + 1) * c->tile.b >= c->columns;
  char line[64], rest[64];
  for (; x < to; x++, tile += 64) {
    char *row = c->row[x], *carry = c->carry + 64 * x;
    const int64_t in = (int64_t)((uintptr_t)row & 63), end = in + bytes - 64 * t;
    char *d = row - in + 64 * t;
    EINI_Q_JOINED(row, carry, tile, line);
    if (t == 0) {
      const char *before = c->next == 0 || x < c->next ? NULL : c->row[x - c->next];
      if (c->next > 0) memcpy(c->heads + 64 * x, tile, 64);
      if (in == 0) eini_stream_line(d, tile);
      else if (before == NULL || before + bytes != row)
        memcpy(row, tile, (size_t)(64 - in));
    } else if (end >= 64) {
      eini_stream_line(d, line);
    }
    memcpy(carry, tile, 64);
    if (!last || end == 64) continue;
    if (end < 64) {
      eini_chain_end_q(c, x, d, end, line);
    } else {
      EINI_Q_JOINED(row, tile, tile, rest);
      eini_chain_end_q(c, x, d + 64, end - 64, rest);
    }
  }
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_Q_AT
#undef EINI_Q_V
#undef EINI_Q_LOAD
#undef EINI_Q_STORE
#undef EINI_Q_PAST
#undef EINI_Q_BYTES
#undef EINI_Q_SET
#undef EINI_Q_MOVE
#undef EINI_Q_MIX
#undef EINI_Q_JOINED

#if EINI_CPU_X86

// The same two by masks; e: words.
EINI_T512 static void eini_chain_end_by_masks(const eini_chain *c, int64_t x, char *d, int e,
                                              __m512i v) {
  const int64_t y = x + c->next;
  const __mmask16 own = (__mmask16)((1u << e) - 1);
  const char *end = c->row[x] + c->columns * c->w.size;
  if (c->next == 0 || y >= c->rows || c->row[y] != end) {
    _mm512_mask_storeu_epi32(d, own, v);
    return;
  }
  const __m512i head = _mm512_loadu_si512((const void *)(c->heads + 64 * y));
  v = _mm512_mask_mov_epi32(eini_line_join(end, head, head), own, v);
  _mm512_stream_si512((__m512i *)(void *)d, v);
}

EINI_T512 static void eini_chain_lines_by_masks(const eini_chain *c, int64_t x, int64_t to,
                                                int64_t t, const char *tile) {
  const int64_t words = c->columns * c->w.size / 4;
  const int last = (t + 1) * c->tile.b >= c->columns;
  for (; x < to; x++, tile += 64) {
    char *row = c->row[x], *carry = c->carry + 64 * x;
    const int in = (int)((uintptr_t)row >> 2 & 15);
    char *d = row - 4 * in + 64 * t;
    const __m512i v = _mm512_loadu_si512((const void *)tile);
    const __m512i line = eini_line_join(row, _mm512_loadu_si512((const void *)carry), v);
    const int64_t end = in + words - 16 * t;
    if (t == 0) {
      const char *before = c->next == 0 || x < c->next ? NULL : c->row[x - c->next];
      if (c->next > 0) _mm512_storeu_si512((void *)(c->heads + 64 * x), v);
      if (in == 0) _mm512_stream_si512((__m512i *)(void *)d, v);
      else if (before == NULL || before + 4 * words != row)
        _mm512_mask_storeu_epi32(d, (__mmask16)(0xffffu << in), line);
    } else if (end >= 16) {
      _mm512_stream_si512((__m512i *)(void *)d, line);
    }
    _mm512_storeu_si512((void *)carry, v);
    if (!last || end == 16) continue;
    if (end < 16) eini_chain_end_by_masks(c, x, d, (int)end, line);
    else eini_chain_end_by_masks(c, x, d + 64, (int)end - 16, eini_line_join(row, v, v));
  }
}

#endif  // EINI_CPU_X86

// Of the sets that have tiles of lines.
static void (*const eini_chain_lines[EINI_ISA_COUNT])(const eini_chain *c, int64_t x, int64_t to,
                                                      int64_t t, const char *tile) = {
    NULL,
#if EINI_CPU_NEON
    eini_chain_lines_q, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_chain_lines_q, eini_chain_lines_by_masks};
#else
    NULL, NULL, NULL};
#endif

// Columns from `first` on, n of them, of every row.
static void eini_chain_block(eini_chain *c, const char *src, int64_t first, int64_t n) {
  static const int64_t lines[16] = {0,   64,  128, 192, 256, 320, 384, 448,
                                    512, 576, 640, 704, 768, 832, 896, 960};
  const int64_t b = c->tile.b, size = c->w.size, tiles = (n + b - 1) / b;
  const int64_t share = (c->ask_columns * c->ask_lines * b + tiles * c->rows - 1) /
                        (tiles * c->rows);
  char space[17 * 64] = {0};  // (set, as its address goes to a function before it is written)
  char *tile = space + eini_to_line(space);
  const int64_t head = eini_to_line(src + c->column[0]) / size;
  for (int64_t x = 0, some = 0; x < c->rows; x += some) {
    const int64_t back = eini_max64(0, x + b - c->rows);  // (there are such rows before these)
    const char *from = src + (x - back) * size;
    some = eini_min64(x == 0 && head > 0 ? head : b, c->rows - x);
    char *carry = c->carry + 64 * x;
    for (int64_t l = 0; l < tiles; l++) {
      const int64_t t = first / b + l;
      const int64_t *column = c->column + l * b;
      if (some == b && t > 0 && (t + 1) * b < c->columns) {
        c->tile.join(from, column, c->row + x, 64 * t, carry);
      } else {
        c->tile.put(from, column, tile, lines);
        eini_chain_lines[c->w.isa](c, x, x + some, t, tile + 64 * back);
      }
      eini_chain_ask(c, share);
    }
  }
}

// The rows of the block at w->pos, and where they are read.
static const char *eini_chain_rows(eini_chain *c) {
  const eini_move *w = &c->w;
  const int64_t rows = eini_move_part(w, w->row), passes = eini_move_part(w, w->row2);
  char *dst = w->dst + eini_move_offset(w, w->dst_step);
  c->rows = rows * passes;
  for (int64_t p = 0; p < passes; p++) {
    char *to = w->row2 < 0 ? dst : dst + p * w->dst_step[w->row2];
    for (int64_t r = 0; r < rows; r++) c->row[p * rows + r] = to + r * w->dst_step[w->row];
  }
  const int64_t bytes = c->columns * w->size;
  c->next = w->dst_step[w->row] == bytes                   ? 1
            : w->row2 >= 0 && w->dst_step[w->row2] == bytes ? rows
                                                            : 0;
  return w->src + eini_move_offset(w, w->src_step);
}

// What is asked for while a block is written: `n` columns of the block of rows at `pos`.
static void eini_chain_ahead(eini_chain *c, const int64_t *pos, int64_t n, const int64_t *list) {
  const eini_move *w = &c->w;
  int64_t rows = 1;
  c->ask = w->src;
  for (int k = 0; k < w->n; k++) {
    c->ask += pos[k] * w->src_step[k];
    if (k == w->row || k == w->row2) rows *= eini_min64(w->blk[k], w->extent[k] - pos[k]);
  }
  c->ask_columns = n;
  c->ask_column = list;
  c->ask_lines = (rows * w->size + (int64_t)((uintptr_t)c->ask & 63) + 63) / 64;
  c->ask_i = c->ask_line = 0;
}

// Every block, along the columns first.
static void eini_move_run_chain(eini_chain *c, char *buffer) {
  int64_t list[2][EINI_COPY_PIECE / 4], *here = list[0], *then = list[1];
  eini_move *w = &c->w;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = c->at[i] = 0;
  c->carry = buffer;
  c->heads = buffer + 64 * EINI_COPY_CHAIN;
  c->row = (char **)(void *)(c->heads + 64 * EINI_COPY_CHAIN);
  int64_t n = eini_min64(c->some, c->columns);
  eini_chain_list(c, n, here);
  eini_chain_ahead(c, w->pos, n, here);
  eini_chain_ask(c, c->ask_columns * c->ask_lines);
  for (w->last = 0; !w->last;) {
    const char *src = eini_chain_rows(c);
    eini_move_then(w);
    for (int64_t first = 0, more; first < c->columns; first += n, n = more) {
      const int end = first + n == c->columns;
      int64_t *swap = here;
      more = eini_min64(c->some, end ? c->columns : c->columns - first - n);
      if (end && w->last) c->ask_columns = 0;
      else {
        eini_chain_list(c, more, then);
        eini_chain_ahead(c, end ? w->then : w->pos, more, then);
      }
      c->column = here;
      eini_chain_block(c, src, first, n);
      here = then;
      then = swap;
    }
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// Are tiles lines, and is what is left of lines of the source near when it is read again? Not so
// where columns start as far from a line as each other, in the same sets of the first cache.
static int eini_move_near_lines(const eini_move *w) {
  uintptr_t bits = 0;
  for (int i = 0; i < w->n; i++) bits |= i == w->row ? 0 : (uintptr_t)w->src_step[i];
  return w->tile.b > 0 && ((uintptr_t)w->src % 64 == 0 || bits % 64 != 0 ||
                           eini_abs64(w->src_step[0]) < EINI_COPY_ROW);
}

// Do rows of tiles start at words? Then their columns go on as long as they do in the destination;
// unless the run of the source goes on too, by another loop.
static int eini_move_chain(eini_chain *c, const eini_move *all) {
  eini_move *w = &c->w;
  uintptr_t bits = (uintptr_t)all->dst;
  int64_t most = EINI_COPY_CHAIN;
  *w = *all;
  c->tile = eini_tile_lines(w->isa, w->size);
  const int b = c->tile.b;
  if (b == 0 || w->kind != EINI_COPY_TILES || w->extent[w->row] < b) return 0;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  if (bits % 4 != 0) return 0;
  w->tile.b = b;               // (as for those that are lines)
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  if (most * w->size > EINI_COPY_PAGES) most = EINI_COPY_PAGES / w->size;
  w->blk[w->row] = eini_min64(w->extent[w->row], most);
  w->ncol = 1;
  const int next = eini_move_next_run(w, w->extent[w->row] * w->size);
  if (next >= 0 && 2 * w->extent[w->row] <= most) {
    w->row2 = next;
    w->blk[next] = eini_min64(w->extent[next], most / w->extent[w->row]);
  }
  c->columns = w->extent[0];
  while (w->ncol < w->n && w->ncol != w->row && w->ncol != w->row2 &&
         w->dst_step[w->ncol] == c->columns * w->size) {
    c->columns *= w->extent[w->ncol++];
  }
  for (int i = 0; i < w->ncol; i++) w->blk[i] = w->extent[i];
  if (c->columns < EINI_COPY_ENDS * b) return 0;
  const int64_t step = eini_max64(1, eini_abs64(w->src_step[0]));
  c->some = eini_min64(EINI_COPY_PIECE / w->size, EINI_COPY_BLOCK / step);
  c->some = eini_max64(EINI_COPY_FEW, c->some) / b * b;
  if (w->dst_step[w->row] == c->columns * w->size || w->row2 >= 0)
    c->some = eini_min64(c->some, c->columns / 2 / b * b);  // rows' heads are there before ends
  return 1;
}

// Do rows go to their places one by one? Long ones do, and those that are lines of both.
static int eini_move_whole(const eini_move *w) {
  int64_t bytes = w->extent[0] * w->size;
  uintptr_t bits = (uintptr_t)w->dst | (uintptr_t)bytes;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  return w->kind == EINI_COPY_ROWS &&
         (bytes >= EINI_COPY_LONG || (bytes >= EINI_COPY_RUN && bits % 64 == 0));
}
