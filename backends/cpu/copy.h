// ================================================================================================
// >>copy  permuted copies
// Planes of two loops, one moving by single elements in the source and one in the destination, are
// transposed in registers. Destinations beyond the caches are streamed.
// ================================================================================================

// Streamed are tiles that are lines, and long rows, straight to their places; tiles that are not,
// as lines joined from two of them; rows that follow each other there with what is left of a line
// waiting for the next of them; all else by way of a buffer.

#define EINI_COPY_LOOPS 16     // more are walked from outside
#define EINI_COPY_RUN 512      // bytes read at a place of the source, where there are as many
#define EINI_COPY_MANY 128     // but no more elements of them: each begins a row of the destination
#define EINI_COPY_ROW 4096     // bytes of rows that are put together piece by piece
#define EINI_COPY_PIECE 512
#define EINI_COPY_FEW 32       // rows of the source that are read along when they are far apart
#define EINI_COPY_PAGES 8192   // bytes of each
#define EINI_COPY_BLOCK 32768  // bytes of the buffer that are used
#define EINI_COPY_CHAIN 1024   // rows of such blocks that start anywhere
#define EINI_COPY_ENDS 8       // lines of them at least: the first and the last one take longer
#define EINI_COPY_BUFFER (EINI_COPY_CHAIN * (64 + 64 + 8))  // a row: two lines and its place
#define EINI_COPY_LONG 320     // rows of so many bytes are not put together from shorter ones
#define EINI_COPY_TURN 512     // bytes asked for, then as many streamed: memory turns less often
#define EINI_COPY_LEAD 48      // lines of such rows asked for before they are read
#define EINI_COPY_CARRY 512    // rows whose unfinished lines are kept
#define EINI_COPY_SMALL 256    // elements of blocks that are turned one by one, by a table
#define EINI_COPY_NEAR 16384   // bytes of the source in a row from which the first cache is better

typedef enum eini_copy_kind {
  EINI_COPY_ROWS,              // the source moves with the destination
  EINI_COPY_FILL,              // the source stays
  EINI_COPY_TILES,             // another loop moves the source by single elements
  EINI_COPY_ANY
} eini_copy_kind;

// Loops, innermost of the destination first; steps in bytes. A block of blk[] of every loop is one
// plane (loops 0 and row), times the few other loops that widen it.
typedef struct eini_move {
  int n, size, isa;
  eini_copy_kind kind;
  int64_t extent[EINI_COPY_LOOPS], src_step[EINI_COPY_LOOPS], dst_step[EINI_COPY_LOOPS];
  int64_t blk[EINI_COPY_LOOPS], pos[EINI_COPY_LOOPS];
  int64_t then[EINI_COPY_LOOPS];  // where the block after that at pos is
  int last;                    // there is none
  int order[EINI_COPY_LOOPS];  // of the blocks, innermost first
  int row, row2;               // loops along the rows of the block, or -1
  int ncol;                    // loops 0 .. ncol-1 are its columns
  eini_line_kind tile;         // whole lines of the destination, from registers; or B = 0
  const char *src;
  char *dst;
} eini_move;

static void eini_move_swap(eini_move *w, int i, int j) {
  int64_t e = w->extent[i], s = w->src_step[i], d = w->dst_step[i];
  w->extent[i] = w->extent[j], w->src_step[i] = w->src_step[j], w->dst_step[i] = w->dst_step[j];
  w->extent[j] = e, w->src_step[j] = s, w->dst_step[j] = d;
}

static void eini_move_drop(eini_move *w, int i) {
  for (w->n--; i < w->n; i++) eini_move_swap(w, i, i + 1);
}

// The first element is so many bytes further. (While it is planned there are no addresses yet.)
static void eini_move_by(eini_move *w, int64_t src, int64_t dst) {
  w->src = (const char *)((uintptr_t)w->src + (uintptr_t)src);
  w->dst = (char *)((uintptr_t)w->dst + (uintptr_t)dst);
}

// Takes the loops over: no extents of 1, destination steps positive and ascending, merged. 0 when
// there is nothing to copy.
static int eini_move_take(eini_move *w, const ein_copy *c) {
  w->n = 0;
  w->size = c->size;
  w->src = c->src;
  w->dst = c->dst;
  for (int i = 0; i < c->n; i++) {
    int64_t e = c->extent[i], s = c->src_stride[i] * c->size, d = c->dst_stride[i] * c->size;
    if (e <= 0) return 0;
    if (e == 1) continue;
    if (d < 0) {
      eini_move_by(w, (e - 1) * s, (e - 1) * d);
      s = -s;
      d = -d;
    }
    int j = w->n++;
    w->extent[j] = e, w->src_step[j] = s, w->dst_step[j] = d;
    for (; j > 0 && w->dst_step[j] < w->dst_step[j - 1]; j--) eini_move_swap(w, j, j - 1);
  }
  for (int i = w->n - 2; i >= 0; i--) {
    int64_t e = w->extent[i];
    if (w->dst_step[i + 1] == w->dst_step[i] * e && w->src_step[i + 1] == w->src_step[i] * e) {
      w->extent[i] *= w->extent[i + 1];
      eini_move_drop(w, i + 1);
    }
  }
  return 1;
}

// Few elements that stay together are one bigger element.
static void eini_move_promote(eini_move *w) {
  while (w->n > 1 && w->dst_step[0] == w->size && w->src_step[0] == w->size &&
         w->extent[0] <= 16 / w->size && (w->extent[0] & (w->extent[0] - 1)) == 0) {
    int64_t size = w->size * w->extent[0];
    for (int i = 1; i < w->n; i++) {
      if (w->src_step[i] % size != 0 || w->dst_step[i] % size != 0) return;
    }
    w->size = (int)size;
    eini_move_drop(w, 0);
  }
}

// The loop but loop 0 with the least move of the source, or -1.
static int eini_move_near(const eini_move *w) {
  int best = -1;
  for (int i = 1; i < w->n; i++) {
    const int64_t s = eini_abs64(w->src_step[i]), t = best < 0 ? 0 : eini_abs64(w->src_step[best]);
    if (s != 0 && (best < 0 || s < t)) best = i;
  }
  return best;
}

static void eini_move_kind(eini_move *w) {
  w->row = w->row2 = -1;
  w->ncol = 1;
  if (w->n == 0) {  // one element
    w->extent[0] = w->n = 1;
    w->src_step[0] = w->dst_step[0] = w->size;
  }
  int64_t s = w->src_step[0];
  int unit = w->dst_step[0] == w->size;
  w->kind = unit && s == w->size ? EINI_COPY_ROWS : unit && s == 0 ? EINI_COPY_FILL : EINI_COPY_ANY;
  if (w->kind != EINI_COPY_ANY) return;
  int near = eini_move_near(w);
  if (near < 0) return;
  int64_t t = w->src_step[near];
  if (unit && (t == w->size || t == -w->size)) {
    w->kind = EINI_COPY_TILES;
    if (t < 0) {
      eini_move_by(w, (w->extent[near] - 1) * t, (w->extent[near] - 1) * w->dst_step[near]);
      w->src_step[near] = -t;
      w->dst_step[near] = -w->dst_step[near];
    }
    w->row = near;
  } else if (eini_abs64(t) < eini_abs64(s)) {
    w->row = near;
  }
}

// Do all rows of tiles start lines of the destination? Then nothing is put together for them.
static void eini_move_tile(eini_move *w) {
  uintptr_t bits = (uintptr_t)w->dst;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  w->tile = eini_tile_lines(w->isa, w->size);
  int ok = w->kind == EINI_COPY_TILES && bits % 64 == 0 && w->tile.b <= w->extent[0] &&
           w->tile.b <= w->extent[w->row];
  if (!ok || (w->row == 1 && w->extent[0] * w->extent[1] * w->size < EINI_COPY_ROW)) w->tile.b = 0;
}

// The loop outside of the columns that goes on where a run of the source of so many bytes ends;
// or -1.
static int eini_move_next_run(const eini_move *w, int64_t run) {
  for (int k = w->ncol; k < w->n; k++) {
    if (k != w->row && w->src_step[k] == run) return k;
  }
  return -1;
}

// Bytes of the run of the source which the row and whole columns make.
static int64_t eini_move_whole_run(const eini_move *w) {
  int64_t run = w->extent[w->row] * w->size;
  for (int i = 0; i < w->ncol; i++) {
    if (w->src_step[i] == run && w->blk[i] == w->extent[i]) run *= w->extent[i], i = -1;
  }
  return run;
}

// Their blocks: many rows of the source where those are near each other, else few, by pages: the
// sets of a cache do not hold many that are a power of two apart. Short rows of the destination
// that go on are one.
static void eini_move_tiles(eini_move *w) {
  const int64_t step = eini_abs64(w->src_step[0]);
  int64_t rows = eini_min64(EINI_COPY_PIECE / w->size, EINI_COPY_BLOCK / step);
  int64_t width = w->extent[0] * w->size;
  rows = eini_max64(EINI_COPY_FEW, rows) / w->tile.b * w->tile.b;
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = eini_min64(w->extent[0], rows);
  w->blk[w->row] = eini_min64(w->extent[w->row], EINI_COPY_PAGES / w->size);
  for (int i = 1; i < w->n && i < 3 && i != w->row; i++) {
    if (w->blk[i - 1] < w->extent[i - 1] || 2 * width > EINI_COPY_PIECE ||
        w->dst_step[i] != w->dst_step[i - 1] * w->extent[i - 1]) {
      break;
    }
    w->blk[i] = eini_min64(w->extent[i], EINI_COPY_PIECE / width);
    width *= w->blk[i];
    w->ncol++;
  }
  const int64_t run = eini_move_whole_run(w);
  int next = eini_move_next_run(w, run);
  if (next < 0 || w->blk[w->row] < w->extent[w->row] || 2 * run > EINI_COPY_PAGES) return;
  w->row2 = next;
  w->blk[next] = eini_min64(w->extent[next], EINI_COPY_PAGES / run);
}

// Blocks of a copy that goes straight to its destination.
static void eini_move_direct(eini_move *w) {
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = w->extent[0];
  if (w->row < 0 && w->n > 1) {
    int near = w->kind == EINI_COPY_ROWS ? eini_move_near(w) : 1;
    w->row = near < 0 ? 1 : near;
    w->blk[w->row] = w->extent[w->row];
  } else if (w->row > 0) {
    int64_t side = 512 / w->size;
    w->blk[0] = eini_min64(w->extent[0], side);
    w->blk[w->row] = eini_min64(w->extent[w->row], side);
  }
}

// Short rows that follow each other in the destination are one: the whole block is.
static int eini_move_one_row(const eini_move *w) {
  return w->ncol == 1 && w->row == 1 && w->blk[0] == w->extent[0] &&
         w->dst_step[1] == w->extent[0] * w->size &&
         w->extent[0] * w->size <= (w->kind == EINI_COPY_TILES ? 512 : 255);
}

// Blocks of a copy through the buffer: whole runs of the source, long rows of the destination.
static void eini_move_buffered(eini_move *w) {
  int64_t rows = eini_min64(EINI_COPY_RUN / w->size, EINI_COPY_MANY);
  if (w->row > 0 && w->extent[w->row] <= 2 * rows) rows = w->extent[w->row];
  int64_t cols = eini_min64(EINI_COPY_BLOCK / rows, EINI_COPY_ROW) / w->size;
  int64_t places = w->extent[0] * w->size < 128 ? 16 : 8;  // of the destination, for short rows
  if (w->kind == EINI_COPY_ROWS) cols = EINI_COPY_BLOCK / 2 / places / w->size;
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = eini_min64(w->extent[0], cols);
  int64_t width = w->blk[0];
  while (w->ncol < w->n && w->ncol < 4 && w->ncol != w->row &&
         w->blk[w->ncol - 1] == w->extent[w->ncol - 1] && 2 * width <= cols &&
         w->dst_step[w->ncol] == w->dst_step[w->ncol - 1] * w->extent[w->ncol - 1]) {
    w->blk[w->ncol] = eini_min64(w->extent[w->ncol], cols / width);
    width *= w->blk[w->ncol++];
  }
  if (w->ncol == 1 && w->kind == EINI_COPY_TILES)
    w->blk[0] = eini_min64(w->extent[0], EINI_COPY_ROW / w->size);
  if (w->row > 0) w->blk[w->row] = eini_min64(w->extent[w->row], rows);
  if (eini_move_one_row(w)) {
    w->blk[1] = eini_min64(w->extent[1], EINI_COPY_BLOCK / (w->extent[0] * w->size));
    return;
  }
  int from = w->row < 0 ? 0 : w->row;
  int64_t run = w->kind == EINI_COPY_ROWS ? 256 * places : EINI_COPY_RUN;
  rows = run / w->size / w->extent[from];
  if (rows < 2 || w->kind == EINI_COPY_FILL) return;
  int next = eini_move_next_run(w, w->src_step[from] * w->extent[from]);
  if (next < 0) return;
  if (w->row < 0) {
    w->row = next;
    rows = eini_min64(rows, EINI_COPY_BLOCK / (width * w->size));
  } else {
    w->row2 = next;
  }
  w->blk[next] = eini_min64(w->extent[next], rows);
}

static int64_t eini_move_part(const eini_move *w, int i) {
  return i < 0 ? 1 : eini_min64(w->blk[i], w->extent[i] - w->pos[i]);
}

// Rows of tiles that are put together by pieces: a line before the piece holds what is left of the
// one before. An odd number of lines, which is well for the sets of a cache.
#define EINI_COPY_PITCH (64 + EINI_COPY_PIECE)
static int eini_move_lines(const eini_move *w, int64_t width) {
  return w->kind == EINI_COPY_TILES && w->ncol == 1 && width >= 128;
}

// Bytes from row to row of the buffer, where rows are put together in it.
static int64_t eini_move_pitch(int64_t width) { return (width + 63) / 64 * 64 + 64; }

// No more rows than the buffer has room for.
static void eini_move_bound(eini_move *w) {
  int64_t width = w->size;
  if (w->row < 0 || eini_move_one_row(w)) return;
  for (int i = 0; i < w->ncol; i++) width *= w->blk[i];
  int64_t pitch = eini_move_lines(w, width) ? EINI_COPY_PITCH : eini_move_pitch(width);
  w->blk[w->row] = eini_min64(w->blk[w->row], EINI_COPY_BUFFER / pitch);
}

// ---- planes: dst[s * ds + d * dd] = src[s * ss + d * sd] for d < nd, s < ns; steps in bytes ----

typedef struct eini_plane {
  const char *src;
  char *dst;
  int64_t sd, ss, dd, ds, nd, ns;
} eini_plane;

EINI_INLINE void eini_plane_of(int size, const eini_plane *p) {
  for (int64_t s = 0; s < p->ns; s++) {
    const char *from = p->src + s * p->ss;
    char *to = p->dst + s * p->ds;
    for (int64_t d = 0; d < p->nd; d++, from += p->sd, to += p->dd) memcpy(to, from, (size_t)size);
  }
}

static void eini_plane_any(int size, const eini_plane *p) {
  switch (size) {
    case 1: eini_plane_of(1, p); break;
    case 2: eini_plane_of(2, p); break;
    case 4: eini_plane_of(4, p); break;
    case 8: eini_plane_of(8, p); break;
    default: eini_plane_of(16, p); break;
  }
}

// n copies of an element: doubling what is there up to a page.
static void eini_plane_fill(int size, const char *src, char *dst, int64_t n) {
  int64_t bytes = n * size, done = size;
  memcpy(dst, src, (size_t)size);
  while (done < bytes) {
    int64_t more = eini_min64(eini_min64(done, 4096), bytes - done);
    memcpy(dst + done, dst, (size_t)more);
    done += more;
  }
}

static int eini_log2(int size) {
  int n = 0;
  while (size >> n > 1) n++;
  return n;
}

// Tiles of the widest kind that fits; the last ones overlap their neighbours.
static void eini_plane_tiles(int isa, int size, const eini_plane *p) {
  const eini_tile_kind *k = eini_tile_kinds[isa][eini_log2(size)];
  while (k->b > p->nd || k->b > p->ns) k++;
  if (k->b == 0) {
    eini_plane_any(size, p);
    return;
  }
  for (int64_t s = 0; s < p->ns; s += k->b) {
    if (s > p->ns - k->b) s = p->ns - k->b;
    const char *from = p->src + s * size;
    char *to = p->dst + s * p->ds;
    for (int64_t d = 0; d < p->nd; d += k->b) {
      if (d > p->nd - k->b) d = p->nd - k->b;
      k->fn(from + d * p->sd, p->sd, to + d * size, p->ds);
    }
  }
}

// memcpy for few bytes: the last 16 (8) of them overlap those before.
static void eini_copy_few(char *d, const char *s, int64_t n) {
  if (n >= 16) {
    for (int64_t i = 0; i + 16 <= n; i += 16) memcpy(d + i, s + i, 16);
    memcpy(d + n - 16, s + n - 16, 16);
  } else if (n >= 8) {
    memcpy(d, s, 8);
    memcpy(d + n - 8, s + n - 8, 8);
  } else {
    for (int64_t i = 0; i < n; i++) d[i] = s[i];
  }
}

// Short rows are too short for what the processor fetches ahead by itself: the next block's. Into
// the second cache: the buffer and the present block fill the first.
static void eini_copy_ahead(uintptr_t p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) EINI_FETCH2(p + (uintptr_t)i);
}

static void eini_plane_run(const eini_move *w, const eini_plane *p) {
  if (w->kind == EINI_COPY_TILES) {
    eini_plane_tiles(w->isa, w->size, p);
  } else if (w->kind == EINI_COPY_ANY) {
    eini_plane_any(w->size, p);
  } else {
    for (int64_t s = 0; s < p->ns; s++) {
      const char *from = p->src + s * p->ss;
      char *to = p->dst + s * p->ds;
      int64_t bytes = p->nd * w->size;
      if (w->kind == EINI_COPY_FILL) {
        eini_plane_fill(w->size, from, to, p->nd);
        continue;
      }
      eini_copy_ahead((uintptr_t)from + (uintptr_t)(p->ns * p->ss), bytes);
      if (bytes > 64) memcpy(to, from, (size_t)bytes);
      else eini_copy_few(to, from, bytes);
    }
  }
}
