// ================================================================================================
// >>copy-blocks  the blocks of a copy
// Takes a copy as a move; runs it block by block, direct, through a buffer or past the caches.
// ================================================================================================

// `columns` of loops 0 .. 3, rows of `bytes` at src: asked for while so many lines are streamed.
static void eini_ahead_start(eini_ahead *a, const eini_move *w, const char *src,
                             const int64_t *columns, int64_t bytes, int64_t lines) {
  int odd = ((uintptr_t)src & 63) != 0;
  a->at = (uintptr_t)src;
  for (int i = 0; i < 4; i++) {
    a->n[i + 1] = columns[i];
    a->step[i + 1] = columns[i] > 1 ? w->src_step[i] : 0;
    odd |= a->step[i + 1] % 64 != 0;
  }
  a->n[0] = (bytes + (odd ? 126 : 63)) / 64;
  a->step[0] = 0;
  a->left = 1;
  for (int i = 0; i < 5; i++) a->left *= a->n[i], a->i[i] = 0;
  a->share = (a->left + lines - 1) / lines;
  a->first = 0;
}

// Bytes to the block at pos, by steps of the source or the destination.
static int64_t eini_move_offset(const eini_move *w, const int64_t *step) {
  int64_t r = 0;
  for (int k = 0; k < w->n; k++) r += w->pos[k] * step[k];
  return r;
}

// Where the block after that at pos is.
static void eini_move_then(eini_move *w) {
  int i = 0;
  memcpy(w->then, w->pos, sizeof w->then);
  for (; i < w->n; i++) {
    int k = w->order[i];
    w->then[k] += w->blk[k];
    if (w->then[k] < w->extent[k]) break;
    w->then[k] = 0;
  }
  w->last = i == w->n;
}

// Lines that `rows` rows may share which follow each other from any place.
static int64_t eini_rows_lines(int64_t rows, int64_t bytes) { return (rows * bytes + 126) / 64; }

// The passes of a block of tiles, among its columns: what is near is asked for first.
static void eini_move_ahead_tiles(const eini_move *w, eini_ahead *a) {
  const int64_t passes = eini_move_part(w, w->row2);
  int k = 4;                   // (there are three columns at most)
  if (passes == 1) return;
  const int64_t step = w->src_step[w->row2];
  a->left *= passes;
  if (step == eini_move_part(w, w->row) * w->size) {
    a->n[0] *= passes;
    return;
  }
  for (; k > 1 && (a->n[k - 1] == 1 || eini_abs64(a->step[k - 1]) > step); k--) {
    a->n[k] = a->n[k - 1];
    a->step[k] = a->step[k - 1];
  }
  a->n[k] = passes;
  a->step[k] = step;
}

// The lines of the block at w->pos: of tiles, or of whole rows by columns of them.
static void eini_move_ahead(const eini_move *w, eini_ahead *lines) {
  const int64_t rows = eini_move_part(w, w->row), row = eini_move_part(w, 0) * w->size;
  const int tiles = w->kind == EINI_COPY_TILES;
  int64_t n[4] = {1, 1, 1, 1};
  for (int i = tiles ? 0 : 1; i < w->ncol; i++) n[i] = eini_move_part(w, i);
  eini_ahead_start(lines, w, w->src + eini_move_offset(w, w->src_step), n,
                   tiles ? rows * w->size : row, 1);
  lines->share = 1;
  if (tiles) {
    eini_move_ahead_tiles(w, lines);
    return;
  }
  const int follow = w->row >= 0 && w->src_step[w->row] == row;
  lines->first = follow || row >= EINI_COPY_NEAR;
  if (w->ncol > 1) lines->n[0] = eini_rows_lines(follow ? rows : 1, row);
  if (w->row >= 0 && (w->ncol == 1 || !follow)) {
    lines->n[1] = rows;
    lines->step[1] = w->src_step[w->row];
  }
  lines->left = 1;
  for (int i = 0; i < 5; i++) lines->left *= lines->n[i];
}

// What is read after the present pass over a block: the same block's next pass or the next block.
typedef struct eini_after {
  const char *src;             // NULL: nothing
  int64_t n[4], bytes;         // columns of loops 0 .. 3, bytes of a row
} eini_after;

static void eini_block_after(const eini_move *w, const char *src, const int64_t *n, int64_t rows,
                             int64_t pass, int64_t passes, eini_after *after) {
  after->src = src;
  after->bytes = rows * w->size;
  for (int i = 0; i < 4; i++) after->n[i] = n[i];
  if (pass + 1 < passes) {
    after->src += w->src_step[w->row2];
    return;
  }
  if (w->row2 >= 0) after->src -= pass * w->src_step[w->row2];
  for (int k = 0; k < w->n; k++) {
    int64_t part = eini_min64(w->blk[k], w->extent[k] - w->then[k]);
    after->src += (w->then[k] - w->pos[k]) * w->src_step[k];
    if (k < w->ncol) after->n[k] = part;
    if (k == w->row) after->bytes = part * w->size;
  }
  if (w->last || w->kind != EINI_COPY_TILES) after->src = NULL;
}

// p->nd columns of loop 0: tiles side by side, so that places of the source are read along.
static void eini_block_fill(const eini_move *w, const eini_plane *p) {
  const int64_t some = w->kind == EINI_COPY_TILES ? 64 / w->size : p->nd;
  eini_plane part = *p;
  for (int64_t d = 0; d < p->nd; d += some) {
    part.nd = eini_min64(some, p->nd - d);
    eini_plane_run(w, &part);
    part.src += some * p->sd;
    part.dst += some * w->size;
  }
}

// Blocks of tiles that are lines are asked for in the order in which they are read.
typedef struct eini_before {
  eini_move w;                 // at the block that is asked for now
  eini_ahead lines;            // of it
  int64_t lead, most;          // lines asked for and not yet read
  int64_t share;               // lines to ask for with each tile
} eini_before;

static void eini_before_some(eini_before *b, int64_t lines) {
  lines = eini_min64(lines, b->most - b->lead);
  while (lines > 0 && (b->lines.left > 0 || !b->w.last)) {
    if (b->lines.left == 0) {
      memcpy(b->w.pos, b->w.then, sizeof b->w.pos);
      eini_move_then(&b->w);
      eini_move_ahead(&b->w, &b->lines);
    }
    int64_t n = eini_min64(lines, b->lines.left);
    eini_ahead_some(&b->lines, n);
    b->lead += n;
    lines -= n;
  }
}

// The same where these lines follow each other: the caller asks for them, from here; or 0.
static uintptr_t eini_before_run(eini_before *b, int64_t lines) {
  eini_ahead *a = &b->lines;
  const uintptr_t at = a->at + 64 * (uintptr_t)a->i[0];
  if (lines > a->n[0] - a->i[0] || lines > a->left || lines > b->most - b->lead) return 0;
  a->i[0] += lines;
  a->left -= lines;
  b->lead += lines;
  eini_ahead_next(a);
  return at;
}

static void eini_before_start(eini_before *b, const eini_move *w, int64_t most) {
  b->w = *w;
  b->lead = 0;
  b->most = most;
  eini_move_then(&b->w);
  eini_move_ahead(&b->w, &b->lines);
  eini_before_some(b, b->most);
}

// Tiles of whole lines, a line of the source's rows after the other; columns that fill no line by
// the way of the caches. Everything is in registers: what waits for a store waits for those past
// the caches before it.
static void eini_block_lines(const eini_move *w, const eini_plane *p, eini_before *before) {
  const int64_t b = w->tile.b, sd = p->sd, ds = p->ds, full = p->nd / b, ns = p->ns;
  const int64_t share = before->share, size = w->size;
  const eini_tile_fn fn = w->tile.line;
  for (int64_t s = 0; s < ns; s += b) {
    if (s > ns - b) s = ns - b;
    const char *src = p->src + s * size;
    char *dst = p->dst + s * ds;
    uintptr_t at = eini_before_run(before, full * share);
    for (int64_t l = 0; l < full; l++, src += b * sd, dst += 64) {
      fn(src, sd, dst, ds);
      if (at == 0) eini_before_some(before, share);
      for (int64_t i = 0; i < share && at != 0; i++, at += 64) EINI_FETCH2(at);
    }
  }
  if (p->nd == full * b) return;
  eini_plane rest = *p;
  rest.nd -= full * b;
  rest.src += full * b * sd;
  rest.dst += full * 64;
  eini_plane_tiles(w->isa, w->size, &rest);
}

// Fills the rows of a buffer, or with `before` of the destination, with what the plane p's source
// holds, n[] columns of loops 0 .. 3.
static void eini_block_rows(const eini_move *w, eini_plane *p, const int64_t *n,
                            eini_before *before) {
  const int64_t *step = w->src_step;
  int64_t at[4] = {0, 0, 0, 0};
  for (int i = 1; i < 4;) {
    if (before != NULL) eini_block_lines(w, p, before);
    else eini_block_fill(w, p);
    p->dst += p->nd * w->size;
    for (i = 1; i < 4; i++) {  // on to the next column of loops 1 .. 3
      if (++at[i] < n[i]) {
        p->src += step[i];
        break;
      }
      if (n[i] > 1) p->src -= (n[i] - 1) * step[i];
      at[i] = 0;
    }
  }
}

// Rows that end with a piece of `bytes`: what of them is left to write, their first line if it is
// the first piece too.
static void eini_block_ends(int isa, const eini_lines *out, int first, int last, int64_t bytes) {
  for (int64_t r = 0; r < out->rows; r++) {
    char *d = out->dst + r * out->step;
    const char *s = out->buffer + r * out->pitch;
    int64_t head = eini_to_line(d);
    if (first) memcpy(d + 64, s + 64, (size_t)eini_min64(head, bytes));
    if (!last) continue;
    head += 64 * out->to;
    eini_stream_row(isa, (size_t)(64 + bytes - head), s + head, d + head);
  }
}

// Long rows of tiles are put together by pieces of them all. A row's lines are streamed as soon as
// they are complete; what is left, a line at most, goes before the next piece.
static void eini_block_pieces(const eini_move *w, const eini_plane *all, char *dst, int64_t step,
                              char *buffer, const eini_after *after) {
  const int64_t some = EINI_COPY_PIECE / w->size;
  eini_plane p = *all;
  eini_ahead ahead;
  eini_lines out;
  out.buffer = buffer;
  out.pitch = p.ds = EINI_COPY_PITCH;
  out.step = step;
  out.rows = p.ns;
  p.dst = buffer + 64;
  for (int64_t d = 0; d < all->nd; d += some) {
    int64_t columns[4] = {0, 1, 1, 1}, left = all->nd - d - some;
    int first = d == 0, last = left <= 0;
    p.src = all->src + d * p.sd;
    p.nd = eini_min64(some, all->nd - d);
    const int64_t bytes = p.nd * w->size;
    eini_block_fill(w, &p);
    out.dst = dst + d * w->size - 64;
    out.from = first;
    out.to = bytes / 64;
    out.ahead = last && after->src == NULL ? NULL : &ahead;
    columns[0] = eini_min64(some, last ? after->n[0] : left);
    if (out.ahead != NULL) {
      int64_t lines = eini_max64(1, out.rows * (out.to - out.from));
      eini_ahead_start(&ahead, w, last ? after->src : p.src + some * p.sd, columns,
                       last ? after->bytes : p.ns * w->size, lines);
    }
    eini_stream_lines(w->isa, &out);
    if (first || last) eini_block_ends(w->isa, &out, first, last, bytes);
    for (int64_t r = 0; r < out.rows && !last; r++) {
      memcpy(buffer + r * out.pitch, buffer + r * out.pitch + EINI_COPY_PIECE, 64);
    }
  }
}

// The block at w->pos goes through the buffer.
static void eini_block_buffered(const eini_move *w, const char *src, char *dst, char *buffer) {
  int64_t n[4] = {1, 1, 1, 1}, width = w->size, passes = eini_move_part(w, w->row2);
  eini_plane p;
  eini_after after;
  eini_ahead ahead;
  for (int i = 0; i < w->ncol; i++) width *= n[i] = eini_move_part(w, i);
  const int one = eini_move_one_row(w);
  const int64_t step = w->row < 0 ? 0 : w->dst_step[w->row];
  p.nd = n[0];
  p.ns = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.dd = w->size;
  p.ds = one ? width : eini_move_pitch(width);
  for (int64_t r = 0; r < passes; r++) {
    p.src = w->row2 < 0 ? src : src + r * w->src_step[w->row2];
    p.dst = buffer;
    char *to = w->row2 < 0 ? dst : dst + r * w->dst_step[w->row2];
    eini_block_after(w, p.src, n, p.ns, r, passes, &after);
    if (!one && eini_move_lines(w, width)) {
      eini_block_pieces(w, &p, to, step, buffer, &after);
      continue;
    }
    if (after.src != NULL) {
      eini_ahead_start(&ahead, w, after.src, after.n, after.bytes, (width * p.ns + 63) / 64);
    }
    eini_block_rows(w, &p, n, NULL);
    for (int64_t s = 0; s < (one ? 1 : p.ns); s++) {
      eini_stream_ahead(w->isa, one ? width * p.ns : width, buffer + s * p.ds, to + s * step,
                        after.src == NULL ? NULL : &ahead);
    }
  }
}

// Rows that go straight to their places, past the caches.
static void eini_block_stream(const eini_move *w, const eini_plane *p, eini_before *before) {
  const int64_t bytes = p->nd * w->size;
  eini_lines out;
  out.pitch = out.step = 0;
  out.rows = 1;
  out.ahead = NULL;
  for (int64_t s = 0; s < p->ns; s++) {
    const char *src = p->src + s * p->ss;
    char *dst = p->dst + s * p->ds;
    const int64_t head = eini_min64(eini_to_line(dst), bytes), lines = (bytes - head) / 64;
    const int64_t done = head + 64 * lines;
    if (head > 0) memcpy(dst, src, (size_t)head);
    out.buffer = src;
    out.dst = dst;
    for (int64_t n = out.from = 0; out.from < lines; out.from = out.to) {
      n = eini_min64(EINI_COPY_TURN / 64, lines - out.from);
      out.to = out.from + n;
      before->lead -= n;
      eini_before_some(before, before->most);
      eini_stream_lines(w->isa, &out);
    }
    before->lead -= before->lines.n[0] - lines;
    if (done < bytes) memcpy(dst + done, src + done, (size_t)(bytes - done));
  }
}

static void eini_block_direct(const eini_move *w, const char *src, char *dst,
                              eini_before *before) {
  eini_plane p;
  p.src = src;
  p.dst = dst;
  p.nd = eini_move_part(w, 0);
  p.ns = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.dd = w->dst_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.ds = w->row < 0 ? 0 : w->dst_step[w->row];
  if (before != NULL) eini_block_stream(w, &p, before);
  else eini_plane_run(w, &p);
}

static int eini_move_nearer(const eini_move *w, int i, int j) {
  return eini_abs64(w->src_step[i]) < eini_abs64(w->src_step[j]);
}

// Loops of blocks, innermost first: along rows, then columns, then what is nearest in the source:
// what is read next is near, where rows are streamed to matters less.
static void eini_move_order(eini_move *w, int near) {
  int n = 0, few, j = 1;
  if (w->row >= 0) w->order[n++] = w->row;
  if (w->row2 >= 0) w->order[n++] = w->row2;
  few = n + (w->tile.b > 0 ? 0 : w->ncol);
  for (int i = 0; i < w->n; i++) {
    if (i == w->row || i == w->row2) continue;
    int k = n++;
    w->order[k] = i;
    for (; near && k > few && eini_move_nearer(w, i, w->order[k - 1]); k--) {
      w->order[k] = w->order[k - 1];
      w->order[k - 1] = i;
    }
  }
  if (w->tile.b == 0) return;
  // Columns before what is further, but short runs of the source go on first.
  int64_t run = w->blk[w->row] * (w->row2 < 0 ? 1 : w->blk[w->row2]) * w->size;
  while (w->order[j] != 0 && run < EINI_COPY_ROW) run *= w->extent[w->order[j++]];
  for (int k = n - 1; k > j; k--) {
    if (w->order[k] != 0) continue;
    w->order[k] = w->order[k - 1];
    w->order[k - 1] = 0;
  }
}

// The first block of columns ends where a line of the destination does.
static int64_t eini_move_step(const eini_move *w, int i) {
  int64_t blk = w->blk[i];
  if (i > 0 || w->pos[0] > 0 || w->ncol > 1 || blk == w->extent[0]) return blk;
  int64_t over = (int64_t)((uintptr_t)w->dst & 63) / w->size;
  return over < blk ? blk - over : blk;
}

// Every block, the runs of the source innermost, then the rows of the destination.
static void eini_move_run(eini_move *w, int stream, char *buffer) {
  eini_before before;
  eini_move_order(w, w->kind == EINI_COPY_TILES || buffer == NULL);
  int64_t full = w->blk[0];
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  if (stream && buffer == NULL) {
    // (Rows that follow each other in the source are foreseen by the processor.)
    const int follow = w->row >= 0 && w->src_step[w->row] == w->extent[0] * w->size;
    eini_before_start(&before, w, follow ? 0 : EINI_COPY_LEAD);
  }
  for (w->last = 0; !w->last;) {
    const char *src = w->src + eini_move_offset(w, w->src_step);
    char *dst = w->dst + eini_move_offset(w, w->dst_step);
    w->blk[0] = full;
    w->blk[0] = eini_move_step(w, 0);
    eini_move_then(w);
    if (buffer != NULL) eini_block_buffered(w, src, dst, buffer);
    else eini_block_direct(w, src, dst, stream ? &before : NULL);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// The block of tiles that are lines at w->pos, a line of the source's rows after the other.
static void eini_block_tiles(const eini_move *w, eini_before *before) {
  const int64_t b = w->tile.b, part = eini_move_part(w, w->row);
  const int64_t passes = eini_move_part(w, w->row2);
  const int64_t ns = eini_max64(part, b), back = ns - part;  // (there is such a row before it)
  int64_t n[4] = {1, 1, 1, 1}, tiles = (ns + b - 1) / b * passes;
  const char *src = w->src + eini_move_offset(w, w->src_step) - back * w->size;
  char *dst = w->dst + eini_move_offset(w, w->dst_step) - back * w->dst_step[w->row];
  eini_ahead now;
  eini_plane p;
  for (int i = 0; i < w->ncol; i++) n[i] = eini_move_part(w, i);
  p.nd = n[0];
  p.ns = w->ncol == 1 ? ns : b;
  p.sd = w->src_step[0];
  p.ss = w->size;
  p.dd = w->size;
  p.ds = w->dst_step[w->row];
  tiles *= n[0] / b * n[1] * n[2] * n[3];
  eini_move_ahead(w, &now);
  before->lead -= now.left;
  if (tiles > 0) before->share = (now.left + tiles - 1) / tiles;
  for (int64_t r = 0; r < passes; r++) {
    for (int64_t s = 0; s < ns; s += p.ns) {
      if (s > ns - p.ns) s = ns - p.ns;
      p.src = src + s * w->size;
      p.dst = dst + s * p.ds;
      eini_block_rows(w, &p, n, before);
    }
    if (r + 1 == passes) break;
    src += w->src_step[w->row2];
    dst += w->dst_step[w->row2];
  }
}

// Every block of tiles that are lines: the next one is asked for while one is written.
static void eini_move_run_tiles(eini_move *w) {
  eini_before before;
  eini_ahead first;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  eini_move_ahead(w, &first);
  eini_before_start(&before, w, eini_max64(first.left, EINI_COPY_BLOCK / 64));
  before.share = 1;
  for (w->last = 0; !w->last;) {
    eini_block_tiles(w, &before);
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}
