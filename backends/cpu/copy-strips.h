// ================================================================================================
// >>copy-strips  copies between runs of several axes
// Takes a copy as a move; tiles go from a run of the source to a run of the destination, each along
// as many loops as follow each other there: short axes make long runs. Through the caches.
// ================================================================================================

#define EINI_STRIPS_MOST 512   // elements of a run in a block
#define EINI_STRIPS_NEAR 512   // bytes of the destination's, where there are as many
#define EINI_STRIPS_FEW 16384  // bytes that take no longer without lists, if first loops are long

enum { EINI_STRIP_SRC, EINI_STRIP_DST };

typedef struct eini_strips {
  eini_move w;
  eini_line_kind tile;
  int count[2], loop[2][EINI_COPY_LOOPS];  // of the runs, innermost first
  int64_t n[2];                // elements of them in a block
} eini_strips;

// The loop that goes on where a run ends, and is of none; or -1.
static int eini_strips_next(const eini_strips *r, int side) {
  const eini_move *w = &r->w;
  const int64_t *step = side == EINI_STRIP_SRC ? w->src_step : w->dst_step;
  const int last = r->loop[side][r->count[side] - 1];
  if (w->blk[last] < w->extent[last]) return -1;
  for (int i = 0; i < w->n; i++) {
    int taken = 0;
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < r->count[s]; k++) taken |= r->loop[s][k] == i;
    if (!taken && step[i] == r->n[side] * w->size) return i;
  }
  return -1;
}

// Adds loop i to a run, as much of it as there may be; 0: not twice.
static int eini_strips_add(eini_strips *r, int side, int i) {
  eini_move *w = &r->w;
  const int64_t bytes = side == EINI_STRIP_SRC ? EINI_STRIPS_MOST * w->size : EINI_STRIPS_NEAR;
  const int64_t some = eini_min64(w->extent[i], eini_min64(bytes / w->size, EINI_STRIPS_MOST) /
                                                    r->n[side]);
  if (some < 2) return 0;
  w->blk[i] = some;
  r->loop[side][r->count[side]++] = i;
  r->n[side] *= some;
  return 1;
}

// Runs of a copy in tiles, see eini_move_kind; 0: one is shorter than a tile.
static int eini_strips_take(const eini_move *w, eini_strips *r) {
  const eini_line_kind tile = eini_tile_lines(w->isa, w->size);
  int open[2] = {1, 1};
  if (tile.b == 0 || w->kind != EINI_COPY_TILES) return 0;
  double bytes = w->size;
  for (int i = 0; i < w->n; i++) bytes *= (double)w->extent[i];
  if (bytes <= EINI_STRIPS_FEW && w->extent[0] >= tile.b && w->extent[w->row] >= tile.b) return 0;
  r->w = *w;
  r->tile = tile;
  for (int i = 0; i < w->n; i++) r->w.blk[i] = 1;
  for (int s = 0; s < 2; s++) {
    r->count[s] = 0, r->n[s] = 1;
    eini_strips_add(r, s, s == EINI_STRIP_SRC ? w->row : 0);
  }
  while (open[0] || open[1]) {  // the shorter one is longer by a loop
    const int s = open[0] && (!open[1] || r->n[0] <= r->n[1]) ? 0 : 1, i = eini_strips_next(r, s);
    open[s] = i >= 0 && eini_strips_add(r, s, i);
  }
  return r->n[0] >= tile.b && r->n[1] >= tile.b;
}

// Offsets of the block's positions along a run, by steps of the other side. Returns how many.
static int64_t eini_strips_list(const eini_strips *r, int side, int64_t *list) {
  const eini_move *w = &r->w;
  const int64_t *step = side == EINI_STRIP_SRC ? w->dst_step : w->src_step;
  int64_t n = 1;
  list[0] = 0;
  for (int k = 0; k < r->count[side]; k++) {
    const int i = r->loop[side][k];
    const int64_t part = eini_move_part(w, i), have = n;
    for (int64_t j = 1; j < part; j++)
      for (int64_t e = 0; e < have; e++) list[n++] = list[e] + j * step[i];
  }
  return n;
}

// A block at some address, and that of the block after it.
typedef struct eini_strips_block {
  const char *src, *src_then;
  char *dst, *dst_then;
  int64_t n[2];                // of the runs
  int64_t at[2][EINI_STRIPS_MOST];  // where they are on the other side: offsets
} eini_strips_block;

// Asks for what the tile at s, d reads and writes, lines as far as they were not asked for.
EINI_INLINE void eini_strips_ahead(const eini_strips_block *x, uintptr_t src, uintptr_t dst,
                                   int64_t s, int64_t d, int64_t b, int64_t size) {
  for (int64_t k = 0; k < b; k++) {
    EINI_FETCH2(src + (uintptr_t)(s * size + x->at[EINI_STRIP_DST][d + k] + 63));
    EINI_FETCHW(dst + (uintptr_t)(d * size + x->at[EINI_STRIP_SRC][s + k] + 63));
  }
}

// Tiles along the shorter run first. Stores wait for lines that are not there: the tile beside
// each, one further along the longer run, is asked for. A block that is narrower than a tile is
// copied element by element.
static void eini_strips_tiles(const eini_strips *r, const eini_strips_block *x) {
  const int64_t b = r->tile.b, size = r->w.size, ns = x->n[0], nd = x->n[1];
  const int64_t *place = x->at[EINI_STRIP_SRC], *column = x->at[EINI_STRIP_DST];
  const int along = ns < nd;   // the inner loop: over s
  const int64_t outer = along ? nd : ns, inner = along ? ns : nd;
  if (ns < b || nd < b) {
    for (int64_t s = 0; s < ns; s++)
      for (int64_t d = 0; d < nd; d++)
        memcpy(x->dst + place[s] + d * size, x->src + column[d] + s * size, (size_t)size);
    return;
  }
  for (int64_t o = 0; o < outer; o += b) {
    if (o > outer - b) o = outer - b;
    const int last = o + b >= outer;
    const int64_t then = last ? 0 : eini_min64(o + b, outer - b);
    const uintptr_t src = (uintptr_t)(last ? x->src_then : x->src);
    const uintptr_t dst = (uintptr_t)(last ? x->dst_then : x->dst);
    for (int64_t i = 0; i < inner; i += b) {
      if (i > inner - b) i = inner - b;
      const int64_t s = along ? i : o, d = along ? o : i;
      r->tile.put(x->src + s * size, column + d, x->dst + d * size, place + s);
      eini_strips_ahead(x, src, dst, along ? i : then, along ? then : i, b, size);
    }
  }
}

// Blocks, first along what is left of the source's run.
static void eini_strips_order(eini_strips *r) {
  eini_move *w = &r->w;
  const int last = r->loop[EINI_STRIP_SRC][r->count[EINI_STRIP_SRC] - 1];
  int n = 0;
  w->order[n++] = last;
  for (int i = 0; i < w->n; i++)
    if (i != last) w->order[n++] = i;
}

static void eini_strips_go(eini_strips *r) {
  eini_strips_block x;
  eini_move *w = &r->w;
  int64_t part[2] = {0, 0};
  eini_strips_order(r);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  x.src_then = w->src, x.dst_then = w->dst;
  for (w->last = 0; !w->last;) {
    for (int s = 0; s < 2; s++) {
      const int64_t some = eini_move_part(w, r->loop[s][r->count[s] - 1]);
      if (part[s] != some) x.n[s] = eini_strips_list(r, s, x.at[s]);
      part[s] = some;
    }
    x.src = x.src_then, x.dst = x.dst_then;
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
    x.src_then = w->src + eini_move_offset(w, w->src_step);
    x.dst_then = w->dst + eini_move_offset(w, w->dst_step);
    eini_strips_tiles(r, &x);
  }
}
