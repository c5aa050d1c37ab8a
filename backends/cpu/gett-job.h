// ================================================================================================
// >>gett-job  tiles and stores of section gett
// One thread's part of a contraction: tiles of a box, and how their results are stored.
// ================================================================================================

enum { EINI_GETT_CARRIES = 2048 };  // at most; a power of 2

typedef struct eini_gett_job {
  const eini_cpu *cpu;
  const ein_contract *c;
  eini_gett_kit kit;
  eini_gett_tile_fn tile;        // for the current boxes
  eini_chunk_fn narrow;          // what a store does that only converts; else NULL
  eini_gett_hand v, u;
  eini_gett_axes k;
  int swap;                      // V is m
  int direct;                    // tiles go to the output; otherwise through the buffer
  int inner_direct;              // direct where a box starts and ends at lines
  int masked;                    // direct wherever runs start and end: parts of vectors are stored
  int64_t odd;                   // elements of a line before each run of the output; -1: differ
  int comes;                     // tiles ask for the output, which leaves the cache between boxes
  int stream;                    // past the caches
  int parted;                    // streamed runs do not start at lines
  int unit;                      // the output is contiguous along runs of V
  const void *by;                // what plain sums are scaled by, or NULL
  int64_t sub, ld;               // positions of V per pass; elements of a row of the buffer
  const int64_t *out_v, *out_u;  // strides
  const int64_t *const *extra_v, *const *extra_u;
  int64_t *xv[EINI_GETT_OPS], *xu[EINI_GETT_OPS];
  char *out;                     // at the current boxes
  const char *extra[EINI_GETT_OPS];
  char *buffer, *edge, *values;
  int64_t *off;                  // tables for emit_fn
  const char *next_u;            // U at the next box of K; NULL: unknown
  const int64_t *soon;           // lines to ask for: soon_base + soon[0 .. soon_left)
  int64_t soon_left;
  uintptr_t soon_base;
  int64_t wait;                  // tiles before they are asked for
  const char *then_u;            // the next panel of U, to be asked for first; NULL: none
  eini_tail *carry;             // [carries]
  int64_t carries;               // a power of 2
  int chained;                   // what runs leave over waits for the runs behind them
} eini_gett_job;

#define EINI_GETT_EACH(T)                                                   \
  for (int64_t i = 0; i < n; i++)                                           \
    ((T *)(void *)dst)[to[i]] = ((const T *)(const void *)src)[i]

// dst[to[i]] = src[i].
static void eini_gett_scatter(int size, int64_t n, char *dst, const int64_t *to, const char *src) {
  if (size == 2) EINI_GETT_EACH(int16_t);
  else if (size == 4) EINI_GETT_EACH(int32_t);
  else if (size == 8) EINI_GETT_EACH(eini_gett_8);
  else if (size == 16) EINI_GETT_EACH(eini_gett_16);
  else EINI_GETT_EACH(char);
}
#undef EINI_GETT_EACH

// The next piece of [p, to) within one run of V; 0: no more.
static int64_t eini_gett_piece(const eini_gett_hand *v, int64_t *p, int64_t to) {
  if (*p < to && v->left[*p] < 0) *p -= v->left[*p];
  if (*p >= to || *p >= v->n) return 0;
  return eini_min64(v->left[*p], to - *p);
}

// Whether each column starts in the output where the one before it ends.
static int eini_gett_follows(const eini_gett_job *j) {
  return j->u.n > 1 && j->u.out[1] - j->u.out[0] == j->v.whole;
}

// Positions [p, p + n) of `count` columns from u on, which lie one after the other if more than 1.
static void eini_gett_store(eini_gett_job *j, int64_t p, int64_t n, int64_t u, int64_t count,
                            const char *row, int64_t ld) {
  const int size = j->kit.size;
  char *dst = j->out + j->u.out[u] * size;
  if (j->unit) dst += j->v.out[p] * size;
  if (j->stream) {
    const int64_t run = p / (j->v.whole > j->v.run ? j->v.whole : j->v.step);
    const int follow = n == j->v.whole && eini_gett_follows(j);
    const int64_t turn = follow ? run : run * j->u.n + u;
    eini_tail_put(j->cpu->isa, j->carry + (turn & (j->carries - 1)), dst, row, n * size, count, ld);
    return;
  }
  for (; count > 0; count--, row += ld, dst += n * size)
    if (j->unit) memcpy(dst, row, (size_t)(n * size));
    else eini_gett_scatter(size, n, dst, j->v.out + p, row);
}

#define EINI_GETT_STEPS 32  // least extent for which a row is stored by itself

static void eini_gett_emit(eini_gett_job *j, int64_t n) {
  const int64_t *offs[EINI_GETT_OPS];
  for (int e = 0; e < j->c->nextra; e++) offs[e] = j->off + (e + 1) * EIN_POINTS;
  if (n > 0)
    j->c->emit_fn(j->c->emit_user, n, j->values, j->out, j->off, j->extra, offs, NULL);
}

// The same where V's last axis is long: the output and what the store reads go in steps along it.
static void eini_gett_leave_steps(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                  const char *rows, int64_t ld) {
  const int size = j->kit.size, last = j->v.g.n - 1;
  const int64_t *offs[EINI_GETT_OPS];
  int64_t step[EINI_GETT_OPS + 1], x[EINI_GETT_OPS];
  step[0] = j->out_v[last];
  for (int e = 0; e < j->c->nextra; e++) step[e + 1] = j->extra_v[e][last], offs[e] = &x[e];
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      int64_t at = j->v.out[p] + j->u.out[u];
      len = eini_min64(eini_min64(len, EIN_POINTS), j->v.run - p % j->v.run);
      for (int e = 0; e < j->c->nextra; e++) x[e] = j->xv[e][p] + j->xu[e][u];
      memcpy(j->values, rows + (u - u0) * ld + (p - p0) * size, (size_t)(len * size));
      j->c->emit_fn(j->c->emit_user, len, j->values, j->out, &at, j->extra, offs, step);
    }
}

// Columns [u0, u0 + nu) of positions [p0, p1) leave the buffer through emit_fn.
static void eini_gett_leave_emit(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                 const char *rows, int64_t ld) {
  const int size = j->kit.size;
  int64_t n = 0;
  if (j->v.g.n > 0 && j->v.g.size[j->v.g.n - 1] >= EINI_GETT_STEPS) {
    eini_gett_leave_steps(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      if (n == EIN_POINTS) eini_gett_emit(j, n), n = 0;
      len = eini_min64(len, EIN_POINTS - n);
      memcpy(j->values + n * size, rows + (u - u0) * ld + (p - p0) * size, (size_t)(len * size));
      for (int64_t i = 0; i < len; i++) j->off[n + i] = j->v.out[p + i] + j->u.out[u];
      for (int e = 0; e < j->c->nextra; e++)
        for (int64_t i = 0; i < len; i++)
          j->off[(e + 1) * EIN_POINTS + n + i] = j->xv[e][p + i] + j->xu[e][u];
      n += len;
    }
  eini_gett_emit(j, n);
}

// The same where sums are only scaled.
static void eini_gett_leave_scaled(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                   const char *rows, int64_t ld) {
  const ein_contract *c = j->c;
  const eini_ckern *t = eini_ckern_of(c->type);
  const int size = j->kit.size;
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *y = c->beta == NULL ? NULL : j->extra[0] + j->xu[0][u] * size;
      t->scale(len, t->planes, c->alpha, c->beta, rows + (u - u0) * ld + (p - p0) * size, y,
               y == NULL ? NULL : j->xv[0] + p, j->out + j->u.out[u] * size, j->v.out + p);
    }
}

// The same where sums are only converted.
static void eini_gett_leave_converted(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                      int64_t p1, const char *rows, int64_t ld) {
  const int size = j->kit.size, to = (int)ein_dtype_size(j->c->out_dtype);
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *row = rows + (u - u0) * ld + (p - p0) * size;
      char *dst = j->out + j->u.out[u] * to;
      const int64_t whole = j->unit ? len / EINI_LANES * EINI_LANES : 0;
      if (whole > 0) {  // at once where they go
        j->narrow(whole, row, row, row, dst + j->v.out[p] * to);
        len = whole;
        continue;
      }
      len = eini_min64(len, EIN_POINTS);
      j->narrow(eini_whole_lanes(len), row, row, row, j->values);  // rows have room behind them
      if (j->unit) memcpy(dst + j->v.out[p] * to, j->values, (size_t)(len * to));
      else eini_gett_scatter(to, len, dst, j->v.out + p, j->values);
    }
}

static void eini_gett_leave(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                            char *rows) {
  const int size = j->kit.size;
  const int64_t ld = j->ld * size * j->kit.parts;
  if (j->kit.parts == 2)
    for (int64_t u = 0; u < nu; u++) {
      char *a = rows + u * ld, *b = a + ld / 2;
      if (size == 16)
        eini_gett_join_pd(p1 - p0, j->v.s->conj, j->u.s->conj, (double *)(void *)a,
                         (const double *)(const void *)b);
      else
        eini_gett_join_ps(p1 - p0, j->v.s->conj, j->u.s->conj, (float *)(void *)a,
                         (const float *)(const void *)b);
    }
  if (j->by != NULL)
    for (int64_t u = 0; u < nu; u++) j->kit.by(p1 - p0, rows + u * ld, j->by);
  if (j->narrow != NULL) {
    eini_gett_leave_converted(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  if (!eini_gett_plain(j->c, &j->kit)) {
    (j->c->scaled ? eini_gett_leave_scaled : eini_gett_leave_emit)(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  const int64_t whole = j->v.whole;
  int by_run = j->unit && nu > 1 && p1 - p0 >= whole;
  for (int64_t u = u0 + 1; u < u0 + nu; u++) by_run &= j->u.out[u] - j->u.out[u - 1] == whole;
  for (int64_t u = 0; u < (by_run ? 1 : nu); u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *row = rows + u * ld + (p - p0) * size;
      if (!by_run || len == whole) {
        eini_gett_store(j, p, len, u0 + u, by_run ? nu : 1, row, ld);
        continue;
      }
      for (int64_t i = 0; i < nu; i++) eini_gett_store(j, p, len, u0 + i, 1, row + i * ld, ld);
    }
}

// A tile at the rim of the output or with vectors across the ends of its runs: through a small
// buffer.
static void eini_gett_rim(eini_gett_job *j, eini_gett_tile_arg *a, int64_t p, int64_t u,
                          int64_t nu) {
  const int size = j->kit.size;
  const eini_gett_tile_arg whole = *a;
  const int64_t lanes = j->v.lanes, end = eini_min64(p + lanes, j->v.np);
  int64_t rows[EINI_GETT_COLUMNS], cols[3];
  for (int i = 0; i < EINI_GETT_COLUMNS; i++) rows[i] = i * lanes;
  for (int i = 0; i < 3; i++) cols[i] = i * j->kit.w;
  a->dst = j->edge, a->uoff = rows, a->voff = cols, a->how = EINI_GETT_STORE;
  j->tile(a);
  *a = whole;
  for (int64_t q = p, len; (len = eini_gett_piece(&j->v, &q, end)) > 0; q += len)
    for (int64_t r = 0; r < nu; r++) {
      const char *in = j->edge + (r * lanes + q - p) * size;
      char *out = (char *)a->dst + (j->u.out[u + r] + j->v.out[q]) * size;
      if (a->how == EINI_GETT_ADD) j->kit.fold(len, out, in);
      else memcpy(out, in, (size_t)(len * size));
    }
}

// Scales columns [u, u + nu) of positions [p0, p1), which tiles have just stored.
static void eini_gett_scale(eini_gett_job *j, int64_t u, int64_t nu, int64_t p0, int64_t p1) {
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len)
    for (int64_t r = u; r < u + nu; r++)
      j->kit.by(len, j->out + (j->u.out[r] + j->v.out[p]) * j->kit.size, j->by);
}

// Whether all vectors of the panel at p lie within runs, and where they go.
static int eini_gett_place(const eini_gett_job *j, int64_t p, int nv, int64_t *voff,
                           unsigned *lanes) {
  int good = 1;
  for (int i = 0; i < nv; i++) {
    const int64_t q = p + i * j->kit.w;
    voff[i] = j->v.out[q], lanes[i] = ~0u;
    good &= (j->masked || j->v.shift > 0 || j->v.left[q] >= j->kit.w) && q < j->v.n;
    if (!j->masked) continue;
    const int64_t at = q % j->v.step - j->v.lead;  // in the run
    if (at < 0) lanes[i] &= ~0u << -at;
    if (at >= j->v.run) lanes[i] = 0;
    else if (at + j->kit.w > j->v.run) lanes[i] &= ~(~0u << (j->v.run - at));
  }
  return good;
}

// Asks for the lines of the output that the tile of positions p and columns u will change.
static void eini_gett_expect(const eini_gett_job *j, int64_t p, int64_t p1, int64_t u) {
  const int64_t size = j->kit.size, w = j->kit.w, *out = j->v.out + p;
  const int64_t nu = eini_min64(j->u.lanes, j->u.n - u), nv = eini_min64(j->v.lanes, p1 - p);
  int64_t first[3], last[3];
  int n = 0;
  for (int64_t i = 0; i < nv; i += w, n++)
    first[n] = out[i] * size, last[n] = (out[eini_min64(i + w, nv) - 1] + 1) * size - 1;
  for (int64_t r = 0; r < nu; r++) {
    const uintptr_t row = (uintptr_t)j->out + (uintptr_t)(j->u.out[u + r] * size);
    for (int i = 0; i < n; i++) {
      EINI_FETCHW(row + (uintptr_t)first[i]);
      if (((row + (uintptr_t)first[i]) ^ (row + (uintptr_t)last[i])) >> 6 != 0)
        EINI_FETCHW(row + (uintptr_t)last[i]);
    }
  }
}

// The same of the tile behind that one of the box's part from p0 to p1: sums of few products would
// wait for lines that they have just asked for.
static void eini_gett_expect_next(const eini_gett_job *j, int64_t p, int64_t p0, int64_t p1,
                                  int64_t u, int64_t nu) {
  if (p == p0 && u == 0) eini_gett_expect(j, p, p1, u);
  if (p + j->v.lanes < p1) eini_gett_expect(j, p + j->v.lanes, p1, u);
  else if (u + nu < j->u.n) eini_gett_expect(j, p0, p1, u + nu);
}

// Asks for the lines of the output that the tile will store in part.
static void eini_gett_expect_masked(const eini_gett_job *j, const eini_gett_tile_arg *a) {
  for (int i = 0; i < a->nv; i++)
    for (int r = 0; r < a->nu && a->lanes[i] != ~0u; r++)
      EINI_FETCHW((uintptr_t)a->dst + (uintptr_t)((a->uoff[r] + a->voff[i]) * j->kit.size));
}

// Asks for the lines that streamed runs, of columns [u0, u0 + nu) and positions [p0, p1), share
// with others: parts of lines are ordinary stores, and each that waits for its line would hold up
// those behind it.
static void eini_gett_expect_parts(const eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                   int64_t p1) {
  const int64_t size = j->kit.size;
  if (eini_gett_follows(j)) return;  // columns complete each other's lines
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
    const int starts = j->v.left[p] == j->v.whole, ends = j->v.left[p] == len;
    const char *row = j->out + j->v.out[p] * size;
    for (int64_t u = u0; u < u0 + nu; u++) {
      const char *from = row + j->u.out[u] * size, *to = from + len * size;
      if (starts && ((uintptr_t)from & 63) != 0) EINI_FETCHW(from);
      if (ends && ((uintptr_t)to & 63) != 0) EINI_FETCHW(to - 1);
    }
  }
}

// Asks for the lines of the output that columns [u0, u0 + nu) of positions [p0, p1) will change
// when they leave the buffer.
static void eini_gett_expect_rows(const eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                  int64_t p1) {
  const int64_t size = j->kit.size;
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len)
    for (int64_t u = u0; u < u0 + nu; u++) {
      const uintptr_t row = (uintptr_t)j->out + (uintptr_t)((j->u.out[u] + j->v.out[p]) * size);
      for (int64_t b = 0; b < len * size; b += 64) EINI_FETCHW(row + (uintptr_t)b);
    }
}

// The lines one tile asks for; none: one of its own.
static void eini_gett_ask(eini_gett_job *j, eini_gett_tile_arg *a) {
  static const int64_t none = 0;
  a->soon = &none, a->soon_base = (uintptr_t)a->v, a->soon_step = 0;
  j->wait--;
  if (j->then_u != NULL) {
    a->soon = j->u.soon, a->soon_base = (uintptr_t)j->then_u, a->soon_step = 1;
    j->then_u = NULL;
    return;
  }
  if (j->soon_left < a->k || j->wait >= 0) return;
  a->soon = j->soon, a->soon_base = j->soon_base, a->soon_step = 1;
  j->soon += a->k, j->soon_left -= a->k;
}

// Columns of U from u on for the next tile; returns how many.
static int64_t eini_gett_columns(eini_gett_job *j, int64_t u, eini_gett_tile_arg *a) {
  const eini_gett_hand *h = &j->u;
  const int64_t size = j->kit.size;
  int64_t nu = eini_min64(h->lanes, h->n - u);
  if (!h->in_place) {
    a->u = h->panels + u / h->lanes * h->panel * size;
    if (h->nsoon > 0)
      j->then_u = u + nu < h->n ? (const char *)a->u + h->panel * size : h->panels;
    return nu;
  }
  nu = eini_min64(nu, h->even - u % h->even);
  a->u = h->have[0] + h->row[0][u] * size;
  if (h->nsoon > 0 && (h->row_step != 1 || u % h->block == 0)) {
    const int64_t then = u + (h->row_step == 1 ? h->block : nu);
    const char *next = then < h->n ? h->have[0] + h->row[0][then] * size : j->next_u;
    j->soon = h->soon, j->soon_base = (uintptr_t)next, j->soon_left = next != NULL ? h->nsoon : 0;
  }
  return nu;
}

// The next box of V is asked for late where the panels of U, which come from the last cache, would
// push it out again.
static void eini_gett_wait(eini_gett_job *j, int64_t rows) {
  const eini_gett_hand *v = &j->v, *u = &j->u;
  j->wait = 0, j->then_u = NULL;
  if (u->in_place || u->nsoon == 0) return;
  const int64_t tiles = (v->np + v->lanes - 1) / v->lanes * ((u->n + u->lanes - 1) / u->lanes);
  j->wait = tiles - 2 * (j->soon_left / rows);
}

// All tiles of the current boxes of V and U over the current box of K.
static void eini_gett_tiles(eini_gett_job *j, int64_t nk, int first, int last, int keep) {
  const eini_gett_kit *kit = &j->kit;
  const int64_t lanes = j->v.lanes, ulanes = j->u.lanes, parts = kit->parts, size = kit->size;
  int64_t rows[EINI_GETT_COLUMNS], voff[3];
  unsigned masks[3];
  for (int i = 0; i < EINI_GETT_COLUMNS; i++) rows[i] = i * j->ld * parts;
  eini_gett_tile_arg a;
  a.lanes = masks;
  a.k = eini_gett_rows(kit, nk), a.sv = lanes * parts, a.uk = ulanes * parts, a.us = 1;
  if (j->u.in_place) a.uk = j->u.kby, a.us = j->u.row_step;
  a.how = first ? (j->direct && j->stream ? EINI_GETT_STREAM : EINI_GETT_STORE) : EINI_GETT_ADD;
  const int64_t left = a.how == EINI_GETT_ADD && j->comes ? eini_min64(EINI_GETT_LATE, a.k / 2) : 0;
  const int soon = last && !j->direct && !j->stream && j->unit && eini_gett_plain(j->c, kit);
  eini_gett_wait(j, a.k);
  j->tile = kit->exact != NULL && (j->v.odd || j->u.odd) ? kit->exact : kit->tile;
  int64_t late[4] = {0, 0, 0, 0}, turn = 0;  // what is to leave: columns u, nu; positions p0, p1
  char *const other = keep || j->direct ? NULL : j->buffer + j->ld * parts * size * ulanes;
  char *full = NULL;
  for (int64_t p0 = 0; p0 < j->v.np; p0 += j->sub) {
    const int64_t p1 = eini_min64(p0 + j->sub, j->v.np);
    for (int64_t u = 0, nu; u < j->u.n; u += nu) {
      nu = eini_gett_columns(j, u, &a);
      char *buffer = keep ? j->buffer + (u * parts * j->ld + p0) * size : turn ? other : j->buffer;
      a.nu = (int)(eini_up(nu, kit->cols) * parts);
      if (j->parted && !j->chained && !j->direct) eini_gett_expect_parts(j, u, nu, p0, p1);
      if (soon) eini_gett_expect_rows(j, u, nu, p0, p1);
      for (int64_t p = p0; p < p1; p += lanes) {
        a.nv = (int)((eini_min64(lanes, p1 - p) + kit->w - 1) / kit->w);
        a.v = j->v.panels + p / lanes * j->v.panel * size;
        eini_gett_ask(j, &a);
        const int good = eini_gett_place(j, p, a.nv, voff, masks);
        a.voff = voff;
        a.late = good && a.nv == kit->nv && a.nu == kit->nu ? left : 0;
        if (!j->direct) {
          for (int i = 0; i < 3; i++) voff[i] = i * kit->w * parts;
          a.dst = buffer + (p - p0) * size, a.uoff = rows;
          j->tile(&a);
        } else {
          a.dst = j->out, a.uoff = j->u.out + u;
          if (a.how != EINI_GETT_STREAM) {
            if (a.late == 0) eini_gett_expect_next(j, p, p0, p1, u, nu);
          } else if (j->masked) {
            eini_gett_expect_masked(j, &a);
          }
          if (good && nu % kit->cols == 0) j->tile(&a);
          else eini_gett_rim(j, &a, p, u, nu);
        }
      }
      if (j->direct && last && j->by != NULL) eini_gett_scale(j, u, nu, p0, p1);
      if (j->direct || !last) continue;
      // One behind: loads right after the stores they overlap would wait for them.
      if (full != NULL) eini_gett_leave(j, late[0], late[1], late[2], late[3], full);
      late[0] = u, late[1] = nu, late[2] = p0, late[3] = p1, full = buffer, turn = !turn;
    }
  }
  if (full != NULL) eini_gett_leave(j, late[0], late[1], late[2], late[3], full);
}
