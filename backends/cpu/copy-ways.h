// ================================================================================================
// >>copy-ways  the way of a copy
// Small blocks, which of the ways of sections copy-strips to copy-rows a copy goes, and what it
// takes: the provider's slots.
// ================================================================================================

// ---- small blocks ----

// Elements of the least block of first loops without gaps on both sides, `most` at most; 0: there
// is none. row: bytes of its rows there, and in the source.
static int64_t eini_move_dense(const eini_move *w, int64_t most, int *loops, int64_t *row) {
  int64_t n = 1;
  row[0] = row[1] = 0;
  for (int m = 0; m < w->n && w->dst_step[m] == n * w->size; m++) {
    int64_t at = w->size;
    int found = 0;
    n *= w->extent[m];
    if (n > most) return 0;
    for (int i = 0; i <= m; i++)  // the loop that moves the source least, of those that are left
      for (int j = 0; j <= m; j++)
        if (w->src_step[j] == at && w->extent[j] > 1) {
          if (i == 0) row[0] = w->extent[0] * w->size, row[1] = w->extent[j] * w->size;
          at *= w->extent[j], found++;
          break;
        }
    *loops = m + 1;
    if (m > 0 && found == m + 1) return m + 1 < w->n ? n : 0;
  }
  return 0;
}

// Elements of small blocks are turned one by one where rows are shorter than lines.
static int64_t eini_move_small(const eini_move *w, int *loops) {
  int64_t row[2];
  const int64_t n = eini_move_dense(w, EINI_COPY_SMALL, loops, row);
  return n > 0 && eini_min64(row[0], row[1]) < 64 ? n : 0;
}

// Blocks of short rows that are put together for whole lines take longer than memory does.
static int eini_move_stays(const eini_move *w, int64_t cache) {
  int64_t row[2];
  int loops;
  return eini_move_dense(w, cache / w->size, &loops, row) > 0 && eini_max64(row[0], row[1]) < 128;
}

EINI_INLINE void eini_turned_of(int size, int64_t blocks, int64_t n, const int *from,
                                const char *s, int64_t by, char *d, int64_t to) {
  for (; blocks > 0; blocks--, s += by, d += to)
    for (int64_t i = 0; i < n; i++)
      memcpy(d + size * i, s + size * (int64_t)from[i], (size_t)size);
}

static void eini_copy_turned(int size, int64_t blocks, int64_t n, const int *from, const char *s,
                             int64_t by, char *d, int64_t to) {
  switch (size) {
    case 1: eini_turned_of(1, blocks, n, from, s, by, d, to); break;
    case 2: eini_turned_of(2, blocks, n, from, s, by, d, to); break;
    case 4: eini_turned_of(4, blocks, n, from, s, by, d, to); break;
    case 8: eini_turned_of(8, blocks, n, from, s, by, d, to); break;
    default: eini_turned_of(16, blocks, n, from, s, by, d, to); break;
  }
}

// Blocks of n elements, over the loops behind the first ones.
static void eini_move_run_small(const eini_move *w, int loops, int64_t n) {
  int64_t at[EINI_COPY_LOOPS] = {0};
  int from[EINI_COPY_SMALL];
  for (int64_t i = 0; i < n; i++) {
    int64_t left = i, s = 0;
    for (int m = 0; m < loops; m++) s += left % w->extent[m] * w->src_step[m], left /= w->extent[m];
    from[i] = (int)(s / w->size);
  }
  const int64_t count = w->extent[loops], by = w->src_step[loops], to = w->dst_step[loops];
  for (int m = loops; m >= 0;) {
    const char *src = w->src;
    char *dst = w->dst;
    for (int i = loops + 1; i < w->n; i++)
      src += at[i] * w->src_step[i], dst += at[i] * w->dst_step[i];
    eini_copy_turned(w->size, count, n, from, src, by, dst, to);
    for (m = loops + 1; m < w->n && ++at[m] == w->extent[m]; m++) at[m] = 0;
    if (m >= w->n) m = -1;
  }
}

// ---- ways ----

// How a copy goes to its destination, see section copy.
typedef enum eini_copy_way {
  EINI_COPY_CHAINED, EINI_COPY_LINED, EINI_COPY_CARRIED, EINI_COPY_BUFFERED,  // past the caches
  EINI_COPY_STRIPS, EINI_COPY_DIRECT,
  EINI_COPY_WAYS
} eini_copy_way;

// That of a copy of no more loops than there may be; its blocks. What would be put together in the
// buffer from tiles takes less time through the caches.
static eini_copy_way eini_move_way(eini_move *w, eini_chain *chain, eini_strips *strips, int isa,
                                   int stream) {
  w->isa = isa;
  eini_move_promote(w);
  eini_move_kind(w);
  w->tile.b = 0;
  if (w->dst_step[0] != w->size || !stream) {
    if (eini_strips_take(w, strips)) return EINI_COPY_STRIPS;
    eini_move_direct(w);
    return EINI_COPY_DIRECT;
  }
  eini_move_tile(w);
  if (!eini_move_near_lines(w) && eini_move_chain(chain, w)) return EINI_COPY_CHAINED;
  if (w->tile.b > 0) {
    eini_move_tiles(w);
    return EINI_COPY_LINED;
  }
  if (eini_move_carried(w)) return EINI_COPY_CARRIED;
  if (eini_move_whole(w)) {
    eini_move_direct(w);
    return EINI_COPY_DIRECT;
  }
  if (eini_strips_take(w, strips)) return EINI_COPY_STRIPS;
  eini_move_buffered(w);
  eini_move_bound(w);
  return EINI_COPY_BUFFERED;
}

static void eini_copy_go(int isa, const ein_copy *c, int stream, char *buffer) {
  eini_move w;
  eini_chain chain;
  eini_strips strips;
  if (c->n > EINI_COPY_LOOPS) {
    ein_copy inner = *c;
    inner.n--;
    inner.extent++;
    inner.src_stride++;
    inner.dst_stride++;
    for (int64_t i = 0; i < c->extent[0]; i++) {
      eini_copy_go(isa, &inner, stream, buffer);
      inner.src += c->src_stride[0] * c->size;
      inner.dst += c->dst_stride[0] * c->size;
    }
    return;
  }
  if (!eini_move_take(&w, c)) return;
  int loops;
  w.isa = isa;
  const int64_t small = eini_move_small(&w, &loops);
  if (small > 0) {
    eini_move_run_small(&w, loops, small);
    return;
  }
  switch (eini_move_way(&w, &chain, &strips, isa, stream)) {
    case EINI_COPY_STRIPS: eini_strips_go(&strips); break;
    case EINI_COPY_CHAINED: eini_move_run_chain(&chain, buffer); break;
    case EINI_COPY_LINED: eini_move_run_tiles(&w); break;
    case EINI_COPY_CARRIED: eini_move_run_carried(&w, buffer); break;
    case EINI_COPY_BUFFERED: eini_move_run(&w, 1, buffer); break;
    default: eini_move_run(&w, stream && w.dst_step[0] == w.size, NULL); break;
  }
}

// ---- the provider's slots ----

enum { EINI_COPY_STREAM };     // words of ein_choice.state

// Cycles of an element of 8 bytes that is turned: along runs, otherwise, and where a run ends
// within a line.
#define EINI_COPY_STRIP 1.0
#define EINI_COPY_TURNED 1.4
#define EINI_COPY_NARROW 2.1

// Seconds of a copy of so many bytes, read and written, of one thread.
static double eini_copy_seconds(const eini_rated *m, const ein_copy *c, double bytes, int strips,
                                int stream) {
  const double rate = stream ? m->copy_bw : eini_cpu_copy_bw(m, bytes);
  // Does the axis of single steps stay? If not, the extents of both.
  int64_t along[2] = {1, 1};
  for (int i = 0; i < c->n; i++) {
    if (c->dst_stride[i] == 1 && c->src_stride[i] == 1 && c->extent[i] * c->size >= 64)
      return bytes / rate;
    if (c->src_stride[i] == 1) along[0] = c->extent[i];
    if (c->dst_stride[i] == 1) along[1] = c->extent[i];
  }
  const int narrow = eini_min64(along[0], along[1]) * c->size < 64;
  const double cycles = strips   ? EINI_COPY_STRIP
                        : narrow ? EINI_COPY_NARROW
                                 : EINI_COPY_TURNED;
  return fmax(bytes / ((strips ? 0.85 : 0.7) * rate),
              bytes / 2 / c->size * cycles * (c->size < 8 ? 0.6 : 1) / m->hz);
}
#undef EINI_COPY_STRIP
#undef EINI_COPY_TURNED
#undef EINI_COPY_NARROW

// Ways: through the caches, and past them.
static int eini_cpu_copy_plan(const eini_rated *m, const ein_copy *c, int width, int nth,
                              ein_choice *choice) {
  double bytes = 2.0 * c->size;
  eini_move w;
  eini_chain chain;
  eini_strips strips;
  int loops, past = EINI_STREAM_LINE > 0, near = 0, runs = 0;
  int ok = c->size > 0 && c->size <= 16 && (c->size & (c->size - 1)) == 0;
  if (!ok || nth > 1) return 0;
  for (int i = 0; i < c->n; i++) bytes *= (double)c->extent[i];
  memset(choice, 0, sizeof *choice);
  const int taken = c->n <= EINI_COPY_LOOPS && eini_move_take(&w, c);
  w.isa = m->is.isa;
  const int small = taken && eini_move_small(&w, &loops) > 0;
  if (taken && !small) {
    near = eini_move_stays(&w, m->is.l2 / 4);
    const eini_copy_way way = eini_move_way(&w, &chain, &strips, m->is.isa, 1);
    past &= way != EINI_COPY_STRIPS;
    runs = eini_strips_take(&w, &strips);
  }
  past &= !small;
  if (!past && nth > 0) return 0;
  const int best = past && !near && eini_cpu_past(m, bytes / 2), stream = nth < 0 ? best : nth;
  const int threads = (int)eini_max64(1, eini_min64(width, m->is.width));
  choice->seconds = m->call + eini_copy_seconds(m, c, bytes, runs, best) / threads;
  if (small) choice->seconds = fmax(choice->seconds, bytes / 2 / c->size / m->hz / threads);
  if (stream != best) choice->seconds *= 1.5;  // memory is read once more
  choice->scratch = stream ? EINI_COPY_BUFFER : 0;
  choice->state[EINI_COPY_STREAM] = stream;
  eini_cpu_name(choice, stream ? "copy stream" : "copy");
  return 1;
}

static ein_status eini_cpu_copy_run(const eini_cpu *m, const ein_copy *c,
                                    const ein_choice *choice, void *scratch) {
  int stream = choice->state[EINI_COPY_STREAM] != 0;
  eini_copy_go(m->isa, c, stream, (char *)scratch);
  if (stream) eini_stream_end();
  return EIN_OK;
}
