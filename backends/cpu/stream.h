// ================================================================================================
// >>stream  rows of bytes past the caches
// A line written whole with non-temporal stores is never read from memory. Rows of any alignment:
// their first and last bytes, which share a line with others, go the ordinary way.
// ================================================================================================

// Lines of the source that are read after those being written now. Streaming a line does not wait
// for memory, reading one does: each line streamed asks for its share of lines to come.
typedef struct eini_ahead {
  uintptr_t at;
  int64_t left, share;         // lines to ask for: in all, and for each line streamed
  int64_t n[5], step[5], i[5]; // loops, innermost first: lines that follow each other, then runs
  int first;                   // into the first cache, or the second
} eini_ahead;

// On to the next run where one ends.
static void eini_ahead_next(eini_ahead *a) {
  for (int k = 0; k < 4 && a->i[k] == a->n[k]; k++) {
    a->i[k] = 0;
    a->i[k + 1]++;
    a->at += (uintptr_t)(a->step[k + 1] - (k > 0 ? a->n[k] * a->step[k] : 0));
  }
}

static void eini_ahead_some(eini_ahead *a, int64_t streamed) {
  int64_t some = eini_min64(a->share * streamed, a->left);
  a->left -= some;
  for (int64_t n; some > 0; some -= n) {
    uintptr_t p = a->at + 64 * (uintptr_t)a->i[0];
    n = eini_min64(some, a->n[0] - a->i[0]);
    a->i[0] += n;
    for (int64_t l = 0; l < n && a->first; l++) EINI_FETCH(p + 64 * (uintptr_t)l);
    for (int64_t l = 0; l < n && !a->first; l++) EINI_FETCH2(p + 64 * (uintptr_t)l);
    eini_ahead_next(a);
  }
}

// Rows of a buffer and where they go. Line k of a row starts at the k-th line of its destination.
typedef struct eini_lines {
  const char *buffer;
  char *dst;
  int64_t pitch, step, rows;   // pitch: from row to row in the buffer; step: in the destination
  int64_t from, to;            // lines
  eini_ahead *ahead;           // or NULL
} eini_lines;

static int64_t eini_to_line(const char *p) { return (int64_t)((0 - (uintptr_t)p) & 63); }

#if EINI_CPU_X86

// One line, by vectors of 16, 32 or 64 bytes.
static inline void eini_stream_line(char *d, const char *s) {
  for (int i = 0; i < 64; i += 16)
    _mm_stream_si128((__m128i *)(void *)(d + i),
                     _mm_loadu_si128((const __m128i *)(const void *)(s + i)));
}
EINI_T256 static inline void eini_stream_line_y(char *d, const char *s) {
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256((__m256i *)(void *)(d + i),
                        _mm256_loadu_si256((const __m256i *)(const void *)(s + i)));
}
EINI_T512 static inline void eini_stream_line_z(char *d, const char *s) {
  _mm512_stream_si512((__m512i *)(void *)d, _mm512_loadu_si512((const void *)s));
}

EINI_INLINE void eini_stream_by(int vector, const eini_lines *p) {
  for (int64_t r = 0; r < p->rows; r++) {
    char *d = p->dst + r * p->step;
    const char *s = p->buffer + r * p->pitch;
    int64_t head = eini_to_line(d);
    s += head + 64 * p->from;
    d += head + 64 * p->from;
    for (int64_t k = p->from, n; k < p->to; k += n) {
      n = p->ahead == NULL ? p->to - k : eini_min64(8, p->to - k);
      for (int64_t l = 0; l < n; l++, s += 64, d += 64) {
        if (vector == 64) eini_stream_line_z(d, s);
        else if (vector == 32) eini_stream_line_y(d, s);
        else eini_stream_line(d, s);
      }
      if (p->ahead != NULL) eini_ahead_some(p->ahead, n);
    }
  }
}
static void eini_stream_lines_x(const eini_lines *p) { eini_stream_by(16, p); }
EINI_T256 static void eini_stream_lines_y(const eini_lines *p) { eini_stream_by(32, p); }
EINI_T512 static void eini_stream_lines_z(const eini_lines *p) { eini_stream_by(64, p); }

static void eini_stream_lines(int isa, const eini_lines *p) {
  if (isa == EINI_ISA_AVX512) eini_stream_lines_z(p);
  else if (isa == EINI_ISA_AVX2) eini_stream_lines_y(p);
  else eini_stream_lines_x(p);
}

// Ends every part of a run that may have streamed: no release store and no lock orders streamed
// stores, and who runs parts, or learns that a run is over, knows nothing of them.
static void eini_stream_end(void) { _mm_sfence(); }
#define EINI_STREAM_LINE 64    // what a row is completed to; 0: there are no such stores

#else  // EINI_CPU_X86

static inline void eini_stream_line(char *d, const char *s) { memcpy(d, s, 64); }

static void eini_stream_lines(int isa, const eini_lines *p) {
  (void)isa;
  for (int64_t r = 0; r < p->rows; r++) {
    char *d = p->dst + r * p->step;
    int64_t at = eini_to_line(d) + 64 * p->from;
    memcpy(d + at, p->buffer + r * p->pitch + at, (size_t)(64 * (p->to - p->from)));
  }
}

static void eini_stream_end(void) {}
#define EINI_STREAM_LINE 0

#endif  // EINI_CPU_X86

static void eini_stream_ahead(int isa, int64_t bytes, const char *src, char *dst,
                              eini_ahead *ahead) {
  int64_t head = eini_to_line(dst);
  eini_lines p;
  if (bytes < head + 64) {
    memcpy(dst, src, (size_t)bytes);
    return;
  }
  memcpy(dst, src, (size_t)head);
  p.buffer = src;
  p.dst = dst;
  p.pitch = p.step = 0;
  p.rows = 1;
  p.from = 0;
  p.to = (bytes - head) / 64;
  p.ahead = ahead;
  eini_stream_lines(isa, &p);
  int64_t done = head + 64 * p.to;
  memcpy(dst + done, src + done, (size_t)(bytes - done));
}

static void eini_stream_row(int isa, size_t bytes, const char *src, char *dst) {
  eini_stream_ahead(isa, (int64_t)bytes, src, dst, NULL);
}

// A line to be streamed: bytes [from, to) so far, which follow each other; line NULL: none.
typedef struct eini_tail {
  char *line;
  int64_t from, to;
  char bytes[64];
} eini_tail;

// Writes past the caches: whole lines only. What does not fill a line waits in a carry; pieces that
// follow each other in the output complete each other's lines, also from call to call.

#if EINI_CPU_X86
EINI_T256 static void eini_tail_lines_y(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 32)
    _mm256_stream_pd((double *)(void *)(to + i),
                     _mm256_loadu_pd((const double *)(const void *)(from + i)));
}

// The last 64 - n of 64 bytes.
#define EINI_TAIL_FROM(n) ((__mmask64)(~0ull << (n)))

// `count` pieces of `bytes`, at least a line, `stride` apart, that belong at c->line + c->to. Loads
// may go on past a piece, for scratch memory does.
EINI_T512 static void eini_tail_put_z(eini_tail *c, const char *src, int64_t bytes,
                                      int64_t count, int64_t stride) {
  char *line = c->line;
  int64_t at = 0, left = bytes * count;  // at: in the current piece
  if (c->to > 0) {
    const __m512i x = _mm512_mask_loadu_epi8(_mm512_loadu_si512(c->bytes), EINI_TAIL_FROM(c->to),
                                             (const void *)((uintptr_t)src - (uintptr_t)c->to));
    if (c->from == 0) _mm512_stream_si512((__m512i *)(void *)line, x);
    else _mm512_mask_storeu_epi8(line, EINI_TAIL_FROM(c->from), x);
    at = 64 - c->to, left -= at, line += 64;
  }
  for (; left > 0; left -= 64, line += 64, at += 64) {
    __m512i x = _mm512_loadu_si512(src + at);
    if (at + 64 > bytes && left > bytes - at) {
      const int64_t had = bytes - at;
      src += stride, at = -had;
      x = _mm512_mask_loadu_epi8(x, EINI_TAIL_FROM(had),
                                 (const void *)((uintptr_t)src - (uintptr_t)had));
    }
    if (left < 64) {
      _mm512_storeu_si512(c->bytes, x);
      break;
    }
    _mm512_stream_si512((__m512i *)(void *)line, x);
  }
  c->line = line, c->from = 0, c->to = left;
}
#undef EINI_TAIL_FROM

// The same where every piece is a number of half lines and belongs at one: two stores that follow
// each other fill a line.
EINI_T256 static void eini_tail_put_halves(char *to, const char *src, int64_t bytes, int64_t count,
                                           int64_t stride) {
  for (; count > 0; count--, src += stride)
    for (int64_t i = 0; i < bytes; i += 32, to += 32)
      _mm256_stream_pd((double *)(void *)to,
                       _mm256_loadu_pd((const double *)(const void *)(src + i)));
}
#endif  // EINI_CPU_X86

static void eini_tail_lines(int isa, char *to, const char *from, int64_t bytes) {
#if EINI_CPU_X86
  if (isa != EINI_ISA_PLAIN) {
    eini_tail_lines_y(to, from, bytes);
    return;
  }
#else
  (void)isa;
#endif
  memcpy(to, from, (size_t)bytes);
}

// Writes what waits.
static void eini_tail_send(eini_tail *c) {
  if (c->from < c->to) memcpy(c->line + c->from, c->bytes + c->from, (size_t)(c->to - c->from));
  c->from = c->to = 0, c->line = NULL;
}

static void eini_tail_put_any(int isa, eini_tail *c, const char *src,
                              int64_t bytes) {
  for (int64_t i = 0; i < bytes;) {
    int64_t n = eini_min64(64 - c->to, bytes - i);
    if (c->to == 0 && n == 64) {
      n = (bytes - i) / 64 * 64;
      eini_tail_lines(isa, c->line, src + i, n);
      c->line += n;
    } else {
      memcpy(c->bytes + c->to, src + i, (size_t)n);
      c->to += n;
    }
    i += n;
    if (c->to < 64) continue;
    if (c->from == 0) eini_tail_lines(isa, c->line, c->bytes, 64);
    else memcpy(c->line + c->from, c->bytes + c->from, (size_t)(64 - c->from));
    c->line += 64, c->from = c->to = 0;
  }
}

// The same at dst, where it may go on from what the carry had.
static void eini_tail_put(int isa, eini_tail *c, char *dst, const char *src, int64_t bytes,
                           int64_t count, int64_t stride) {
#if EINI_CPU_X86
  if (isa != EINI_ISA_PLAIN && ((uintptr_t)dst & 63) == 0 && bytes % 32 == 0 &&
      bytes * count % 64 == 0) {
    eini_tail_put_halves(dst, src, bytes, count, stride);
    return;
  }
#endif
  if (c->line == NULL || dst != c->line + c->to) {
    eini_tail_send(c);
    c->from = c->to = (int64_t)((uintptr_t)dst & 63);
    c->line = dst - c->from;
  }
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512 && bytes >= 64) {
    eini_tail_put_z(c, src, bytes, count, stride);
    return;
  }
#endif
  for (; count > 0; count--, src += stride) eini_tail_put_any(isa, c, src, bytes);
}
