// ================================================================================================
// >>lanes  small matrices on pieces of an index that steps over them
// An index of many values that one operand and the output have outside of short pieces of their
// memory, as in edq,qi->eid. Its values are lanes: pieces are turned on the way in and out.
// ================================================================================================

// A block of values e of that index:
//   turned:    in[k][d][e] = X[e ..]       its pieces, from memory
//   products:  out[m][d][e] = sum over k of A[m, k] * in[k][d][e]       tiles of section direct
//   turned:    Y[e ..] = out[m][d][e]      pieces of the output, each one run of memory; where e
//                                          steps by single reals there, tiles store at once
// d: the other indices of X that the output has. A is small, and stays in the first-level cache.
// What a vector reads behind the end of a piece is another's, and what it writes there is written
// again by the next: the last values of a part, and of X, go through memory of their own. Pieces
// shorter than a vector that follow each other are turned as one where each lane has its own run of
// values: lane i of granule v then holds value i * G + v of a block of G granules.

// n times: a granule of rows at src + r[i], of as many reals each, turned to dst + o[j]. What is
// `behind` reals further is asked for.
typedef void (*eini_lanes_turn)(int64_t n, const void *src, const int64_t *r, int64_t ss,
                                void *dst, const int64_t *o, int64_t ds, int64_t behind);

enum {
  EINI_LANES_BLOCK,         // words of ein_choice.state: lanes of a block
  EINI_LANES_PAST,          // the output goes past the caches
  EINI_LANES_COPIED,        // bits: the operands that are copied
  EINI_LANES_ROWS = 32,     // rows at least of what is copied
  EINI_LANES_PIECE = 256,   // reals of a piece at most
  EINI_LANES_SMALL = 4096,  // reals of A at most
  EINI_LANES_MOST = 8,      // of a granule
  EINI_LANES_JOINED = 32    // reals of a piece at most that is turned with others
};

// The reals of a piece in the order of memory: their offsets, and their rows in a block.
typedef struct eini_lanes_piece {
  int64_t n, *off, *row;
} eini_lanes_piece;

// How pieces are turned: a granule of reals at once, the last values by way of `some`.
typedef struct eini_lanes_by {
  eini_lanes_turn turn;
  int64_t size, pitch;         // bytes of a real; reals of one of the last values
  int isa, granule, apart;     // apart: each lane has its own run of values
  char *some;
} eini_lanes_by;

// An operand, or the output, whose pieces are turned, `step` reals apart.
typedef struct eini_lanes_move {
  eini_lanes_piece piece;
  int64_t step, behind;        // behind: of the next block, which is asked for; 0: it is not
  int copied;                  // of step 1, to a block: vectors of all rows, one after the other
  char *block;                 // its lanes
  int64_t *joined;             // where reals of pieces turned as one are, in a block of so many
  int64_t granules, lanes;     //   granules and lanes; NULL: one by one
  char *stage;                 // pieces on their way past the caches, or NULL
  eini_tail *carry;
} eini_lanes_move;

typedef struct eini_lanes_job {
  const ein_contract *c;
  const eini_dir_kern *kern;
  eini_lanes_by by;
  int side, axis;              // X is Q, or P; the axis of its rows
  const ein_axes *row[2];      // axes of X's rows, of A's
  const int64_t *out[2];       // their strides in the output
  const ein_side *x, *a;
  int64_t size, lanes;         // values of the index; see EINI_LANES_BLOCK
  int64_t nd, nk, nm;
  int past;                    // see EINI_LANES_PAST
  eini_lanes_move move[2];     // X, the output
  int64_t *pk, *qk, *prow, *orow, *od;
} eini_lanes_job;

// turn is NULL where the instruction set has none.
static void eini_lanes_by_of(int isa, ein_dtype type, eini_lanes_by *by) {
  const int wide = type == EIN_F64;
  by->size = (int64_t)ein_dtype_size(type), by->turn = NULL, by->isa = isa;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) {
    by->granule = 8;
    by->turn = wide ? eini_pack_turned_zd : eini_pack_turned_zs;
  }
  if (isa == EINI_ISA_AVX2) {
    by->granule = 4;
    by->turn = wide ? eini_pack_turned_yd : eini_pack_turned_ys;
  }
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) {
    by->granule = wide ? 2 : 4;
    by->turn = wide ? eini_pack_turned_nd : eini_pack_turned_ns;
  }
#endif
  (void)isa, (void)wide;
}

// The axis with most values; -1: none.
static int eini_lanes_longest(const ein_axes *x) {
  int r = -1;
  for (int i = 0; i < x->n; i++)
    if (r < 0 || x->extent[i] > x->extent[r]) r = i;
  return r;
}

// The longest axis of the side with more rows, and what is beside it. 0: the way is not for this.
static int eini_lanes_take(eini_lanes_job *j, const ein_contract *c, int isa) {
  const int side = eini_axes_size(&c->n) > eini_axes_size(&c->m);
  const ein_axes *const rows[2] = {&c->m, &c->n};
  const int64_t *const out[2] = {c->out_m, c->out_n};
  const ein_side *const sides[2] = {&c->p, &c->q};
  memset(j, 0, sizeof *j);
  j->c = c, j->side = side;
  j->kern = eini_dir_kern_of(isa, c->type);
  eini_lanes_by_of(isa, c->type, &j->by);
  for (int i = 0; i < 2; i++) {
    j->row[i] = rows[i == 0 ? side : 1 - side], j->out[i] = out[i == 0 ? side : 1 - side];
  }
  j->x = sides[side], j->a = sides[1 - side];
  j->nk = eini_axes_size(&c->k), j->nm = eini_axes_size(j->row[1]), j->nd = 1;
  j->axis = eini_lanes_longest(j->row[0]);
  if (j->axis < 0 || j->kern == NULL || j->by.turn == NULL) return 0;
  for (int i = 0; i < j->row[0]->n; i++) j->nd *= i == j->axis ? 1 : j->row[0]->extent[i];
  j->size = j->row[0]->extent[j->axis];
  j->move[0].step = j->x->row[0][j->axis], j->move[1].step = j->out[0][j->axis];
  j->move[0].piece.n = j->nd * j->nk, j->move[1].piece.n = j->nd * j->nm;
  return 1;
}

// Axes of a piece, the greatest stride first, and their steps in the rows of a block.
typedef struct eini_lanes_axes {
  int n;
  int64_t extent[3 * EINI_DIR_RANK], stride[3 * EINI_DIR_RANK], row[3 * EINI_DIR_RANK];
} eini_lanes_axes;

// Adds all axes but one; `row`: the step of the last.
static void eini_lanes_add(eini_lanes_axes *a, const ein_axes *x, const int64_t *stride, int but,
                           int64_t row) {
  for (int i = x->n - 1; i >= 0; i--) {
    if (i == but) continue;
    int at = a->n++;
    for (; at > 0 && a->stride[at - 1] <= stride[i]; at--) {
      a->extent[at] = a->extent[at - 1], a->stride[at] = a->stride[at - 1];
      a->row[at] = a->row[at - 1];
    }
    a->extent[at] = x->extent[i], a->stride[at] = stride[i], a->row[at] = row;
    row *= x->extent[i];
  }
}

// Of X's piece, or of the output's.
static eini_lanes_axes eini_lanes_piece_axes(const eini_lanes_job *j, int out) {
  eini_lanes_axes a;
  a.n = 0;
  eini_lanes_add(&a, j->row[0], out ? j->out[0] : j->x->row[0], j->axis, 1);
  eini_lanes_add(&a, out ? j->row[1] : &j->c->k, out ? j->out[1] : j->x->k[0], -1, j->nd);
  return a;
}

static void eini_lanes_enumerate(const eini_lanes_axes *a, const eini_lanes_piece *p) {
  eini_gett_table(a->n, a->extent, a->stride, 1, 1, p->off);
  eini_gett_table(a->n, a->extent, a->row, 1, 1, p->row);
}

// Reals of a piece that follow each other, from the i-th on.
static int64_t eini_lanes_run(const eini_lanes_piece *p, int64_t i) {
  int64_t n = 1;
  while (i + n < p->n && p->off[i + n] == p->off[i] + n) n++;
  return n;
}

// Pieces that are one run, end where the next begins, and fill no granules.
static int eini_lanes_joins(const eini_lanes_by *by, const eini_lanes_move *m,
                            const eini_lanes_axes *a) {
  int64_t run = 1;
  for (int i = a->n - 1; i >= 0; i--) {
    if (a->extent[i] > 1 && a->stride[i] != run) return 0;
    run *= a->extent[i];
  }
  return run == m->step && run % by->granule != 0 && run <= EINI_LANES_JOINED;
}

// May each lane have its own run of values? Where all is turned, and pieces are turned as one.
static int eini_lanes_apart(const eini_lanes_by *by, int64_t lanes, int n,
                            const eini_lanes_move *m, const eini_lanes_axes *axes) {
  int some = 0;
  for (int i = 0; i < n; i++) {
    if (m[i].step == 1) return 0;
    if (!eini_lanes_joins(by, &m[i], &axes[i])) continue;
    if (lanes / by->granule * m[i].piece.n < by->granule) return 0;
    some = 1;
  }
  return some;
}

// The tables of a piece, and so many lanes.
static void eini_lanes_carve_move(const eini_lanes_by *by, eini_lanes_move *m, int64_t lanes,
                                  int joins, char *base, size_t *used) {
  const int64_t each = by->apart && joins ? lanes / by->granule : 0;
  m->piece.off = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->piece.row = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->joined = (int64_t *)(void *)eini_carve(base, used, each * m->piece.n, 8);
  if (each == 0) m->joined = NULL;
  m->granules = -1;
  m->block = (char *)eini_carve(base, used, m->piece.n + 1, lanes * by->size);  // and of no piece
}

// Room for the output's pieces of so many lanes, which go past the caches.
static void eini_lanes_carve_past(const eini_lanes_by *by, eini_lanes_move *m, int64_t lanes,
                                  char *base, size_t *used) {
  const int64_t reals = lanes * m->piece.n + EINI_LANES_MOST;
  m->carry = (eini_tail *)(void *)eini_carve(base, used, 1, (int64_t)sizeof *m->carry);
  m->stage = (char *)eini_carve(base, used, reals * by->size + 64, 1);  // loads go on behind it
}

// For pieces of `most` reals at most.
static void eini_lanes_carve_by(eini_lanes_by *by, int64_t most, char *base, size_t *used) {
  by->pitch = eini_up(most, EINI_LANES_MOST) + EINI_LANES_MOST;
  by->some = (char *)eini_carve(base, used, EINI_LANES_MOST * by->pitch, by->size);
}

static size_t eini_lanes_carve(eini_lanes_job *j, char *base) {
  const eini_lanes_axes axes[2] = {eini_lanes_piece_axes(j, 0), eini_lanes_piece_axes(j, 1)};
  size_t used = 0;
  j->by.apart = eini_lanes_apart(&j->by, j->lanes, 2, j->move, axes);
  j->pk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->qk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->prow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->orow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->od = (int64_t *)(void *)eini_carve(base, &used, j->nd, 8);
  eini_lanes_carve_by(&j->by, eini_max64(j->move[0].piece.n, j->move[1].piece.n), base, &used);
  for (int i = 0; i < 2; i++)
    if (j->move[i].step != 1)
      eini_lanes_carve_move(&j->by, &j->move[i], j->lanes,
                            eini_lanes_joins(&j->by, &j->move[i], &axes[i]), base, &used);
  if (j->past) eini_lanes_carve_past(&j->by, &j->move[1], j->lanes, base, &used);
  return used;
}

// A block's values: n of them, whole granules of which are turned at once, in rows of so many
// lanes.
typedef struct eini_lanes_range {
  int64_t n, whole, lanes;
} eini_lanes_range;

// The next block of `left` values, of which `safe` may be turned by whole granules. Pieces turned
// as one fill a granule: fewer are turned one by one.
static eini_lanes_range eini_lanes_next(const eini_lanes_by *by, int nmove,
                                        const eini_lanes_move *m, int64_t lanes, int64_t left,
                                        int64_t safe, int64_t vector) {
  eini_lanes_range b;
  b.n = eini_min64(lanes, left), b.whole = eini_max64(eini_min64(b.n, safe), 0) / by->granule;
  for (int i = 0; i < nmove && by->apart && b.whole > 1; i++)
    if (m[i].joined != NULL && b.whole * m[i].piece.n < by->granule)
      b.n = by->granule, b.whole = 1;
  b.lanes = eini_up(b.n, vector);
  return b;
}

// Places in the block of the reals of pieces turned as one.
static void eini_lanes_join(const eini_lanes_by *by, eini_lanes_move *m,
                            const eini_lanes_range *x) {
  int64_t *to = m->joined;
  if (m->granules == x->whole && m->lanes == x->lanes) return;
  m->granules = x->whole, m->lanes = x->lanes;
  for (int64_t v = 0; v < x->whole; v++)
    for (int64_t i = 0; i < m->piece.n; i++)
      *to++ = m->piece.row[i] * x->lanes + v * by->granule;
}

// Values from the one at p on, as lanes of a block; lanes behind them are as the last one.
static void eini_lanes_in(const eini_lanes_by *by, eini_lanes_move *m, const char *p,
                          const eini_lanes_range *b) {
  const eini_lanes_piece *x = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step, lanes = b->lanes;
  const int64_t lane = by->apart ? b->whole * step : step, next = by->apart ? step : g * step;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST], i = 0;
  for (int64_t h = 0; h < g; h++) r[h] = h * lane, some[h] = h * by->pitch;
  if (m->joined != NULL && b->whole * x->n >= g) {
    eini_lanes_join(by, m, b);
    for (int64_t t = 0, all = b->whole * x->n; t < all; t += g) {
      const int64_t from = eini_min64(t, all - g);
      by->turn(1, p + from * z, r, 0, m->block, m->joined + from, 0, m->behind);
    }
    i = x->n;
  }
  for (int64_t run; i < x->n && b->whole > 0; i += run) {
    run = eini_lanes_run(x, i);
    for (int64_t t = 0; t < run; t += g) {
      const int64_t from = run < g ? 0 : eini_min64(t, run - g);
      for (int64_t h = 0; h < g; h++)
        o[h] = (from + h < run ? x->row[i + from + h] : x->n) * lanes;
      by->turn(b->whole, p + (x->off[i] + from) * z, r, next, m->block, o, g, m->behind);
    }
  }
  for (int64_t e = b->whole * g; e < lanes; e += g) {
    for (int64_t h = 0; h < g; h++) {
      const char *from = p + eini_min64(e + h, b->n - 1) * step * z;
      char *to = by->some + h * by->pitch * z;
      for (int64_t k = 0, run; k < x->n; k += run, to += run * z) {
        run = eini_lanes_run(x, k);
        memcpy(to, from + x->off[k] * z, (size_t)(run * z));
      }
    }
    for (int64_t t = 0; t < x->n; t += g) {
      for (int64_t h = 0; h < g; h++) o[h] = (t + h < x->n ? x->row[t + h] : x->n) * lanes;
      by->turn(1, by->some + t * z, some, 0, m->block + e * z, o, 0, 0);
    }
  }
}

// Values from the one at p on, which lie along the lanes, as vectors of so many; lanes behind them
// are as the last one.
static void eini_lanes_copy(const eini_lanes_by *by, const eini_lanes_move *m, const char *p,
                            int64_t n, int64_t vector) {
  const int64_t z = by->size, bytes = vector * z, next = m->piece.n * bytes;
  for (int64_t i = 0; i < m->piece.n; i++) {
    const char *s = p + m->piece.off[i] * z, *end = s + n * z;
    char *d = m->block + m->piece.row[i] * bytes;
    for (; end - s >= bytes; s += bytes, d += next)
      if (bytes == 64) memcpy(d, s, 64);
      else memcpy(d, s, (size_t)bytes);
    if (s == end) continue;
    memcpy(d, s, (size_t)(end - s));
    for (char *last = d + (end - s); last < d + bytes; last += z) memcpy(last, end - z, (size_t)z);
  }
}

// The pieces of the output's values from the one at p on.
static void eini_lanes_leave(const eini_lanes_by *by, eini_lanes_move *m, char *p,
                             const eini_lanes_range *b) {
  const eini_lanes_piece *y = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step, all = y->n, lanes = b->lanes;
  const int64_t lane = by->apart ? b->whole * step : step, next = by->apart ? step : g * step;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST], t = 0;
  for (int64_t i = 0; i < g; i++) o[i] = i * lane, some[i] = i * by->pitch;
  if (m->joined != NULL && b->whole * all >= g) {
    eini_lanes_join(by, m, b);
    for (const int64_t end = b->whole * all; t < end; t += g) {
      const int64_t from = eini_min64(t, end - g);
      by->turn(1, m->block, m->joined + from, 0, p + from * z, o, 0, 0);
    }
    t = all;
  }
  for (; t < all && b->whole > 0; t += g) {
    const int64_t from = all < g ? 0 : eini_min64(t, all - g);
    for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(from + h, all - 1)] * lanes;
    by->turn(b->whole, m->block, r, g, p + from * z, o, next, 0);
  }
  for (int64_t e = b->whole * g; e < b->n; e += g) {
    for (t = 0; t < all; t += g) {
      for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(t + h, all - 1)] * lanes;
      by->turn(1, m->block + e * z, r, 0, by->some + t * z, some, 0, 0);
    }
    for (int64_t h = 0; h < g && e + h < b->n; h++)
      memcpy(p + (e + h) * step * z, by->some + h * by->pitch * z, (size_t)(all * z));
  }
}

// The same, past the caches where it is to be.
static void eini_lanes_out(const eini_lanes_by *by, eini_lanes_move *m, char *p,
                           const eini_lanes_range *b) {
  eini_lanes_leave(by, m, m->stage != NULL ? m->stage : p, b);
  if (m->stage != NULL)
    eini_tail_put(by->isa, m->carry, p, m->stage, b->n * m->step * by->size, 1, 0);
}

static void eini_lanes_begin(eini_lanes_move *m) {
  if (m->stage != NULL) memset(m->carry, 0, sizeof *m->carry);
}

// Blocks of an operand that comes from beyond the second cache are asked for.
static void eini_lanes_expect(const eini_cpu *cpu, const eini_lanes_by *by, int64_t size,
                              int64_t lanes, eini_lanes_move *m) {
  m->behind = size * m->piece.n * by->size > cpu->l2 ? lanes * m->step : 0;
}

static void eini_lanes_end(eini_lanes_move *m) {
  if (m->stage == NULL) return;
  eini_tail_send(m->carry);
  eini_stream_end();
}

// Shall an output of so many bytes go past the caches? Where its pieces follow each other.
static int eini_lanes_past(const eini_rated *cpu, const eini_lanes_move *m, double out,
                           double in) {
  return EINI_STREAM_LINE > 0 && m->step == m->piece.n && eini_cpu_past_with(cpu, out, in);
}

// A row of lanes, of all rows of A.
static void eini_lanes_row(const eini_lanes_job *j, eini_dir_tile *t, const char *q, char *out,
                           int64_t lanes) {
  const int64_t z = j->kern->size, vl = j->kern->lanes, vectors = (lanes + vl - 1) / vl;
  for (int64_t i = 0, l; i < vectors; i += l) {
    l = eini_dir_strip(vectors - i);
    t->q = q + i * vl * z, t->out = out + i * vl * z;
    t->last = (int)eini_min64(vl, lanes - (i + l - 1) * vl);
    t->prow = j->prow, t->orow = j->orow;
    for (int64_t m = 0; m < j->nm; m += t->rows, t->prow += t->rows, t->orow += t->rows)
      j->kern->tile[l - 1][eini_dir_tile_rows(j->kern, j->nm - m, l, &t->rows)](t);
  }
}

// Products of a block of n values in so many lanes, whole vectors: into rows of lanes, or to y.
static void eini_lanes_multiply(const eini_lanes_job *j, const char *a, char *y, int64_t n,
                                int64_t lanes) {
  const int64_t z = j->kern->size, row = j->nd * lanes;
  const ein_axes *k = &j->c->k;
  const int64_t inner = k->n > 0 ? k->extent[k->n - 1] : 1;
  for (int64_t h = 0; h < j->nk / inner; h++) j->qk[h] = h * inner * row;
  eini_dir_tile t = {j->nk / inner, inner, k->n > 0 ? j->a->k[0][k->n - 1] : 0, row,
                     j->pk, j->qk, NULL, NULL, a, NULL, NULL, 0, 0, 0};
  if (j->move[1].step == 1) {
    for (int64_t d = 0; d < j->nd; d++)
      eini_lanes_row(j, &t, j->move[0].block + d * lanes * z, y + j->od[d] * z, n);
    return;
  }
  for (int64_t i = 0; i < j->nm; i++) j->orow[i] = i * row;
  eini_lanes_row(j, &t, j->move[0].block, j->move[1].block, row);
}

// Offsets of n positions of some axes but one: of what is in place by its strides, else of rows of
// lanes.
static void eini_lanes_offsets(const ein_axes *x, int but, const int64_t *stride, int64_t n,
                               int64_t row, int in_place, int64_t *out) {
  int64_t extent[EINI_DIR_RANK], step[EINI_DIR_RANK];
  int axes = 0;
  for (int i = 0; i < x->n; i++)
    if (i != but) extent[axes] = x->extent[i], step[axes++] = stride[i];
  if (in_place) eini_gett_table(axes, extent, step, 1, 1, out);
  for (int64_t i = 0; i < n && !in_place; i++) out[i] = i * row;
}

static void eini_lanes_tables(eini_lanes_job *j) {
  const ein_axes *k = &j->c->k, *m = j->row[1];
  const eini_lanes_axes in = eini_lanes_piece_axes(j, 0);
  eini_lanes_enumerate(&in, &j->move[0].piece);
  eini_gett_table(k->n > 0 ? k->n - 1 : 0, k->extent, j->a->k[0], 1, 1, j->pk);
  eini_gett_table(m->n, m->extent, j->a->row[0], 1, 1, j->prow);
  if (j->move[1].step != 1) {
    const eini_lanes_axes to = eini_lanes_piece_axes(j, 1);
    eini_lanes_enumerate(&to, &j->move[1].piece);
    return;
  }
  eini_gett_table(m->n, m->extent, j->out[1], 1, 1, j->orow);
  eini_lanes_offsets(j->row[0], j->axis, j->out[0], j->nd, 0, 1, j->od);
}

// Values of the index behind one of which a granule is read (written) at once, as far as its runs
// are shorter than that.
static int64_t eini_lanes_behind(const eini_lanes_by *by, const eini_lanes_move *m) {
  int64_t least = by->granule;
  for (int64_t i = 0, run; i < m->piece.n; i += run) {
    run = eini_lanes_run(&m->piece, i);
    least = eini_min64(least, run);
  }
  return (by->granule - least + m->step - 1) / m->step;
}

static ein_status eini_lanes_run_part(const eini_cpu *cpu, const ein_contract *c,
                                      const ein_choice *choice, const ein_part *part,
                                      void *scratch) {
  eini_lanes_job j;
  int64_t at[EINI_DIR_RANK];
  if (!eini_lanes_take(&j, c, cpu->isa)) return EIN_ERR_INTERNAL;
  j.lanes = choice->state[EINI_LANES_BLOCK], j.past = (int)choice->state[EINI_LANES_PAST];
  eini_lanes_carve(&j, (char *)scratch);
  eini_lanes_begin(&j.move[1]);
  eini_lanes_expect(cpu, &j.by, j.size, j.lanes, &j.move[0]);
  eini_lanes_tables(&j);
  const int64_t *range = j.side ? part->n : part->m, z = j.kern->size, vl = j.kern->lanes;
  const int64_t from = j.axis == 0 ? range[0] / j.nd : 0;
  const int64_t to = j.axis == 0 ? range[1] / j.nd : j.size;
  const int64_t in = eini_lanes_behind(&j.by, &j.move[0]);
  const int64_t out = j.move[1].step == 1 ? 0 : eini_lanes_behind(&j.by, &j.move[1]);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_gett_odometer(&c->batch, b, at);
    const char *x = j.x->base[0] + eini_gett_dot(c->batch.n, at, j.x->batch[0]) * z;
    const char *a = j.a->base[0] + eini_gett_dot(c->batch.n, at, j.a->batch[0]) * z;
    char *y = c->out + eini_gett_dot(c->batch.n, at, c->out_batch) * z;
    eini_lanes_range r;
    for (int64_t e = from; e < to; e += r.n) {
      const int64_t safe = eini_min64(j.size - in, to - out) - e;
      r = eini_lanes_next(&j.by, 2, j.move, j.lanes, to - e, safe, vl);
      eini_lanes_in(&j.by, &j.move[0], x + e * j.move[0].step * z, &r);
      char *first = y + e * j.move[1].step * z;
      eini_lanes_multiply(&j, a, first, r.n, r.lanes);
      if (j.move[1].step != 1) eini_lanes_out(&j.by, &j.move[1], first, &r);
    }
  }
  eini_lanes_end(&j.move[1]);
  return EIN_OK;
}

// 1: a piece has so many reals at most, and all its steps are forward.
static int eini_lanes_short(const eini_lanes_move *m, const eini_lanes_axes *a, int64_t most) {
  if (m->piece.n < 1 || m->piece.n > most || m->step < 1) return 0;
  for (int i = 0; i < a->n; i++)
    if (a->stride[i] < 0 || (a->stride[i] == 0 && a->extent[i] > 1)) return 0;
  return 1;
}

// The same of the output's: one run of memory, and where that is less than a granule the next one
// follows.
static int eini_lanes_one_run(const eini_lanes_by *by, const eini_lanes_move *m,
                              const eini_lanes_axes *a, int64_t most) {
  int64_t run = 1;
  if (!eini_lanes_short(m, a, most) || m->step < m->piece.n) return 0;
  for (int i = a->n - 1; i >= 0; i--) {
    if (a->extent[i] > 1 && a->stride[i] != run) return 0;
    run *= a->extent[i];
  }
  return run >= by->granule || run == m->step;
}

static int eini_lanes_fits(const eini_lanes_job *j) {
  const eini_lanes_axes in = eini_lanes_piece_axes(j, 0), to = eini_lanes_piece_axes(j, 1);
  if (j->nm * j->nk > EINI_LANES_SMALL || j->size < 4 * j->kern->lanes) return 0;
  if (j->move[0].step == 1 || !eini_lanes_short(&j->move[0], &in, EINI_LANES_PIECE)) return 0;
  const int64_t to_n = j->move[1].piece.n;
  if (j->move[1].step == 1) return to_n >= 1 && to_n <= EINI_LANES_PIECE;
  return to_n >= 2 && eini_lanes_one_run(&j->by, &j->move[1], &to, EINI_LANES_PIECE);
}

// Plain products of what the vectors of either way hold.
static int eini_lanes_able(const ein_contract *c) {
  const ein_axes *const axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  for (int g = 0; g < 4; g++)
    if (axes[g]->n > EINI_DIR_RANK) return 0;
  if (c->type != EIN_F32 && c->type != EIN_F64) return 0;
  return c->pair == EIN_PAIR_SUM_MUL && c->plain_out && c->p.form == EIN_FORM_PLAIN &&
         c->q.form == EIN_FORM_PLAIN;
}

// Lanes of a block whose pieces have `each` bytes for one, half of the first cache, and so many
// vectors at least; a part of group g is some blocks. inner: positions of the group for a value of
// the index; 0: it is not cut.
static int64_t eini_lanes_blocks(const eini_rated *cpu, const eini_dir_kern *kern, int64_t each,
                                 int64_t least, int64_t size, int64_t inner, int g,
                                 ein_choice *choice) {
  const int64_t fit = eini_min64(cpu->is.l1 / 2 / each, 64) / kern->lanes;
  const int64_t lanes = eini_max64(eini_max64(fit, least), 1) * kern->lanes, some = 4 * lanes;
  for (int i = 0; i < 3; i++) choice->grid[i] = choice->unit[i] = 1;
  if (inner > 0) choice->unit[g] = some * inner, choice->grid[g] = (size + some - 1) / some;
  return lanes;
}

// A granule of a lane that is turned takes so many cycles, of two sizes of reals, and a tile of
// products as many beside its products.
#define EINI_LANES_TURN(size) ((size) == 8 ? 5.5 : 4.5)
#define EINI_LANES_TILE 25
#define EINI_LANES_WAIT 12e-9  // seconds for a line of A from beyond the second cache
#define EINI_LANES_REST 600  // and the last values of a problem, through memory of their own

// Granules of a piece.
static double eini_lanes_granules(const eini_lanes_by *by, const eini_lanes_move *m,
                                  const eini_lanes_axes *a) {
  double run = 1, runs = 1;
  if (by->apart && eini_lanes_joins(by, m, a)) return (double)m->piece.n / by->granule;
  for (int i = a->n - 1; i >= 0; i--) {
    if ((double)a->stride[i] == run && runs == 1) run *= (double)a->extent[i];
    else runs *= (double)a->extent[i];
  }
  return runs * ceil(run / by->granule);
}

// Seconds to find the reals of a piece where they have pages of their own, the next value's `step`
// further.
static double eini_lanes_pages(const eini_lanes_axes *a, int64_t step, int64_t size) {
  if (!eini_pages_apart(eini_least_step(a->n, a->extent, a->stride, step), size)) return 0;
  return EINI_PAGE_SECONDS * (double)eini_gett_product(a->n, a->extent);
}

// Seconds of reading and writing so many bytes of pieces. Lines that their stores reach, in short
// runs and at once, are waited for in caches too.
static double eini_lanes_moved(const eini_rated *cpu, double in, double out, int past) {
  return (in + out * (past ? 1 : 2)) / eini_cpu_bw(cpu, in + out);
}

static double eini_lanes_seconds(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const eini_lanes_axes axes[2] = {eini_lanes_piece_axes(j, 0), eini_lanes_piece_axes(j, 1)};
  const double all = batch * (double)j->size, z = (double)j->kern->size;
  const double wide = (double)j->nd * (double)j->lanes / (double)j->kern->lanes;
  const double rows = (double)j->nm, k = (double)j->nk;
  double turned = 0;
  for (int i = 0; i < 2; i++)
    if (j->move[i].step != 1) turned += eini_lanes_granules(&j->by, &j->move[i], &axes[i]);
  const double tiles = ceil(rows / 8) * ceil(wide / 3);
  const double one = fmax(2 * rows * k * wide * (double)j->kern->lanes /
                          eini_dir_peak(cpu, j->c->type) * (rows < 8 ? 1.5 : 1.1),
                          tiles * k * 4 / cpu->hz) + tiles * EINI_LANES_TILE / cpu->hz;
  const double each = turned * EINI_LANES_TURN(j->by.size) / cpu->hz + one / (double)j->lanes;
  const double made = batch * (double)eini_up(j->size, j->kern->lanes);
  const double rest = j->size % j->kern->lanes == 0 ? 0 : batch * EINI_LANES_REST / cpu->hz;
  const double busy = made * each + rest +
                      all * eini_lanes_pages(&axes[0], j->move[0].step, j->by.size);
  const double a = (double)(j->nm * j->nk) * z * batch;
  int own = 0;  // each problem has an A of its own
  for (int i = 0; i < j->c->batch.n; i++) own |= j->a->batch[0][i] != 0;
  const double wait = own && a > (double)cpu->is.l2 ? a / 64 * EINI_LANES_WAIT : 0;
  const double in = all * (double)j->move[0].piece.n * z;
  const double out = all * (double)j->move[1].piece.n * z;
  return eini_cpu_beside(busy, eini_lanes_moved(cpu, in, out, j->past), EINI_CPU_BESIDE) + wait;
}

// Bytes to and from the second cache: A is read again for each block where it does not fit.
static double eini_lanes_traffic(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const double z = (double)j->by.size, a = (double)(j->nm * j->nk) * z, size = (double)j->size;
  const double all = size * (double)(j->move[0].piece.n + j->move[1].piece.n) * z;
  double moved = batch * (all + a);
  (void)eini_dir_missed(cpu, 0.5 * (double)cpu->is.l2, a,
                        batch * (ceil(size / (double)j->lanes) - 1) * a, &moved);
  return moved;
}

static int eini_lanes_plan(const eini_rated *cpu, const ein_contract *c, int width,
                           ein_choice *choice) {
  eini_lanes_job j;
  if (!eini_lanes_able(c) || !eini_lanes_take(&j, c, cpu->is.isa) || !eini_lanes_fits(&j)) return 0;
  const double batch = (double)eini_axes_size(&c->batch);
  const int64_t in = j.move[0].piece.n, out = j.move[1].piece.n;
  const double all = batch * (double)(j.size * j.by.size);
  j.past = eini_lanes_past(cpu, &j.move[1], all * (double)out, all * (double)in);
  j.lanes = eini_lanes_blocks(cpu, j.kern, (in + out * (1 + j.past) + 2) * j.by.size, 1, j.size,
                              j.axis == 0 ? j.nd : 0, 1 + j.side, choice);
  choice->grid[0] = eini_axes_size(&c->batch);
  choice->scratch = eini_lanes_carve(&j, NULL);
  choice->seconds = cpu->call + 1e-7 +
                    eini_lanes_seconds(cpu, &j, batch) / eini_dir_threads(choice, width);
  choice->traffic = eini_lanes_traffic(cpu, &j, batch);
  choice->state[EINI_LANES_BLOCK] = j.lanes, choice->state[EINI_LANES_PAST] = j.past;
  eini_cpu_name(choice, "lanes");
  return 1;
}

static const eini_cpu_family eini_lanes_family = {"lanes", eini_lanes_plan, eini_lanes_run_part};
