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
// again by the next: the last values of a part, and of X, go through memory of their own.

// n times: a granule of rows at src + r[i], of as many reals each, turned to dst + o[j].
typedef void (*eini_lanes_turn)(int64_t n, const void *src, const int64_t *r, int64_t ss,
                                void *dst, const int64_t *o, int64_t ds);

enum {
  EINI_LANES_BLOCK,         // word of ein_choice.state: lanes of a block
  EINI_LANES_PIECE = 256,   // reals of a piece at most
  EINI_LANES_SMALL = 4096,  // reals of A at most
  EINI_LANES_MOST = 8       // of a granule
};

// The reals of a piece in the order of memory: their offsets, and their rows in a block.
typedef struct eini_lanes_piece {
  int64_t n, *off, *row;
} eini_lanes_piece;

// How pieces are turned: a granule of reals at once, the last values by way of `some`.
typedef struct eini_lanes_by {
  eini_lanes_turn turn;
  int64_t size, pitch;         // bytes of a real; reals of one of the last values
  int granule;
  char *some;
} eini_lanes_by;

// An operand, or the output, whose pieces are turned, `step` reals apart.
typedef struct eini_lanes_move {
  eini_lanes_piece piece;
  int64_t step;
  char *block;                 // its lanes
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
  eini_lanes_move in, to;      // X, the output
  int64_t *pk, *qk, *prow, *orow, *od;
} eini_lanes_job;

// turn is NULL where the instruction set has none.
static void eini_lanes_by_of(int isa, ein_dtype type, eini_lanes_by *by) {
  const int wide = type == EIN_F64;
  by->size = (int64_t)ein_dtype_size(type), by->turn = NULL;
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
  j->in.step = j->x->row[0][j->axis], j->to.step = j->out[0][j->axis];
  j->in.piece.n = j->nd * j->nk, j->to.piece.n = j->nd * j->nm;
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

// The tables of a piece, and its lanes.
static void eini_lanes_carve_move(eini_lanes_move *m, int64_t bytes, char *base, size_t *used) {
  m->piece.off = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->piece.row = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->block = (char *)eini_carve(base, used, m->piece.n + 1, bytes);  // and what is of no piece
}

// For pieces of `most` reals at most.
static void eini_lanes_carve_by(eini_lanes_by *by, int64_t most, char *base, size_t *used) {
  by->pitch = eini_up(most, EINI_LANES_MOST) + EINI_LANES_MOST;
  by->some = (char *)eini_carve(base, used, EINI_LANES_MOST * by->pitch, by->size);
}

static size_t eini_lanes_carve(eini_lanes_job *j, char *base) {
  const int64_t bytes = j->lanes * j->by.size;
  size_t used = 0;
  j->pk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->qk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->prow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->orow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->od = (int64_t *)(void *)eini_carve(base, &used, j->nd, 8);
  eini_lanes_carve_by(&j->by, eini_max64(j->in.piece.n, j->to.piece.n), base, &used);
  eini_lanes_carve_move(&j->in, bytes, base, &used);
  if (j->to.step != 1) eini_lanes_carve_move(&j->to, bytes, base, &used);
  return used;
}

// n values from the one at p on, as lanes of a block; of so many (safe) a granule of reals may be
// read, wherever their runs end. Lanes behind them are as the last one.
static void eini_lanes_in(const eini_lanes_by *by, const eini_lanes_move *m, const char *p,
                          int64_t n, int64_t safe, int64_t lanes) {
  const eini_lanes_piece *x = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step;
  const int64_t whole = eini_max64(eini_min64(n, safe), 0) / g;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST];
  for (int64_t i = 0; i < g; i++) r[i] = i * step, some[i] = i * by->pitch;
  for (int64_t i = 0, run; i < x->n && whole > 0; i += run) {
    run = eini_lanes_run(x, i);
    for (int64_t t = 0; t < run; t += g) {
      const int64_t from = run < g ? 0 : eini_min64(t, run - g);
      for (int64_t h = 0; h < g; h++)
        o[h] = (from + h < run ? x->row[i + from + h] : x->n) * lanes;
      by->turn(whole, p + (x->off[i] + from) * z, r, g * step, m->block, o, g);
    }
  }
  for (int64_t e = whole * g; e < lanes; e += g) {
    for (int64_t h = 0; h < g; h++) {
      const char *from = p + eini_min64(e + h, n - 1) * step * z;
      char *to = by->some + h * by->pitch * z;
      for (int64_t i = 0, run; i < x->n; i += run, to += run * z) {
        run = eini_lanes_run(x, i);
        memcpy(to, from + x->off[i] * z, (size_t)(run * z));
      }
    }
    for (int64_t t = 0; t < x->n; t += g) {
      for (int64_t h = 0; h < g; h++) o[h] = (t + h < x->n ? x->row[t + h] : x->n) * lanes;
      by->turn(1, by->some + t * z, some, 0, m->block + e * z, o, 0);
    }
  }
}

// The pieces of n values of the output, of which those from `safe` on may not write behind theirs.
static void eini_lanes_out(const eini_lanes_by *by, const eini_lanes_move *m, char *p, int64_t n,
                           int64_t safe, int64_t lanes) {
  const eini_lanes_piece *y = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step, all = y->n;
  const int64_t whole = eini_max64(eini_min64(n, safe), 0) / g;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST];
  for (int64_t i = 0; i < g; i++) o[i] = i * step, some[i] = i * by->pitch;
  for (int64_t t = 0; t < all; t += g) {
    const int64_t from = all < g ? 0 : eini_min64(t, all - g);
    for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(from + h, all - 1)] * lanes;
    by->turn(whole, m->block, r, g, p + from * z, o, g * step);
  }
  for (int64_t e = whole * g; e < n; e += g) {
    for (int64_t t = 0; t < all; t += g) {
      for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(t + h, all - 1)] * lanes;
      by->turn(1, m->block + e * z, r, 0, by->some + t * z, some, 0);
    }
    for (int64_t h = 0; h < g && e + h < n; h++)
      memcpy(p + (e + h) * step * z, by->some + h * by->pitch * z, (size_t)(all * z));
  }
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
    for (int64_t m = 0, most; m < j->nm; m += most, t->prow += most, t->orow += most)
      j->kern->tile[l - 1][eini_dir_tile_rows(j->kern, j->nm - m, &most)](t);
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
                     j->pk, j->qk, NULL, NULL, a, NULL, NULL, 0, 0};
  if (j->to.step == 1) {
    for (int64_t d = 0; d < j->nd; d++)
      eini_lanes_row(j, &t, j->in.block + d * lanes * z, y + j->od[d] * z, n);
    return;
  }
  for (int64_t i = 0; i < j->nm; i++) j->orow[i] = i * row;
  eini_lanes_row(j, &t, j->in.block, j->to.block, row);
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
  eini_lanes_enumerate(&in, &j->in.piece);
  eini_gett_table(k->n > 0 ? k->n - 1 : 0, k->extent, j->a->k[0], 1, 1, j->pk);
  eini_gett_table(m->n, m->extent, j->a->row[0], 1, 1, j->prow);
  if (j->to.step != 1) {
    const eini_lanes_axes to = eini_lanes_piece_axes(j, 1);
    eini_lanes_enumerate(&to, &j->to.piece);
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
  j.lanes = choice->state[EINI_LANES_BLOCK];
  eini_lanes_carve(&j, (char *)scratch);
  eini_lanes_tables(&j);
  const int64_t *range = j.side ? part->n : part->m, z = j.kern->size, vl = j.kern->lanes;
  const int64_t from = j.axis == 0 ? range[0] / j.nd : 0;
  const int64_t to = j.axis == 0 ? range[1] / j.nd : j.size;
  const int64_t in = eini_lanes_behind(&j.by, &j.in);
  const int64_t out = j.to.step == 1 ? 0 : eini_lanes_behind(&j.by, &j.to);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_gett_odometer(&c->batch, b, at);
    const char *x = j.x->base[0] + eini_gett_dot(c->batch.n, at, j.x->batch[0]) * z;
    const char *a = j.a->base[0] + eini_gett_dot(c->batch.n, at, j.a->batch[0]) * z;
    char *y = c->out + eini_gett_dot(c->batch.n, at, c->out_batch) * z;
    for (int64_t e = from, n; e < to; e += n) {
      n = eini_min64(j.lanes, to - e);
      const int64_t lanes = eini_up(n, vl);
      eini_lanes_in(&j.by, &j.in, x + e * j.in.step * z, n, j.size - in - e, lanes);
      char *first = y + e * j.to.step * z;
      eini_lanes_multiply(&j, a, first, n, lanes);
      if (j.to.step != 1) eini_lanes_out(&j.by, &j.to, first, n, to - out - e, lanes);
    }
  }
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
  if (j->in.step == 1 || !eini_lanes_short(&j->in, &in, EINI_LANES_PIECE)) return 0;
  if (j->to.step == 1) return j->to.piece.n >= 1 && j->to.piece.n <= EINI_LANES_PIECE;
  return j->to.piece.n >= 2 && eini_lanes_one_run(&j->by, &j->to, &to, EINI_LANES_PIECE);
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

// Lanes of a block whose pieces have `each` bytes for one, half of the first cache; a part of group
// g is some blocks. inner: positions of the group for a value of the index; 0: it is not cut.
static int64_t eini_lanes_blocks(const eini_rated *cpu, const eini_dir_kern *kern, int64_t each,
                                 int64_t size, int64_t inner, int g, ein_choice *choice) {
  const int64_t fit = eini_min64(cpu->is.l1 / 2 / each, 64);
  const int64_t lanes = eini_max64(fit / kern->lanes, 1) * kern->lanes, some = 4 * lanes;
  for (int i = 0; i < 3; i++) choice->grid[i] = choice->unit[i] = 1;
  if (inner > 0) choice->unit[g] = some * inner, choice->grid[g] = (size + some - 1) / some;
  return lanes;
}

// A tile of rows and lanes that are turned takes so many cycles, and a tile of products as many
// beside its products.
#define EINI_LANES_TURN 3.5
#define EINI_LANES_TILE 12

// Granules of a piece.
static double eini_lanes_granules(const eini_lanes_by *by, const eini_lanes_axes *a) {
  double run = 1, runs = 1;
  for (int i = a->n - 1; i >= 0; i--) {
    if ((double)a->stride[i] == run && runs == 1) run *= (double)a->extent[i];
    else runs *= (double)a->extent[i];
  }
  return runs * ceil(run / by->granule);
}

// Seconds to find the reals of a piece where they have pages of their own, the next value's `step`
// further.
static double eini_lanes_pages(const eini_lanes_axes *a, int64_t step, int64_t size) {
  if (eini_least_step(a->n, a->extent, a->stride, step) * size < EINI_PAGE_BYTES) return 0;
  return EINI_PAGE_SECONDS * (double)eini_gett_product(a->n, a->extent);
}

static double eini_lanes_seconds(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const eini_lanes_axes axes = eini_lanes_piece_axes(j, 0);
  const double all = batch * (double)j->size, z = (double)j->kern->size;
  const double wide = (double)j->nd * (double)j->lanes / (double)j->kern->lanes;
  const double rows = (double)j->nm, k = (double)j->nk;
  const double out_turned = j->to.step == 1 ? 0 : ceil((double)j->to.piece.n / j->by.granule);
  const double turned = (eini_lanes_granules(&j->by, &axes) + out_turned) * EINI_LANES_TURN;
  const double tiles = ceil(rows / 8) * ceil(wide / 3);
  const double one = fmax(2 * rows * k * wide * (double)j->kern->lanes /
                          eini_dir_peak(cpu, j->c->type) * (rows < 8 ? 1.5 : 1.1),
                          tiles * k * 4 / cpu->hz) + tiles * EINI_LANES_TILE / cpu->hz;
  const double busy = all * (turned / cpu->hz + one / (double)j->lanes +
                             eini_lanes_pages(&axes, j->in.step, j->by.size));
  const double in = all * (double)j->in.piece.n * z, out = all * (double)j->to.piece.n * z;
  const double move = (in + 2 * out) / eini_cpu_bw(cpu, in + out);
  return eini_cpu_beside(busy, move, EINI_CPU_BESIDE);
}

// Bytes to and from the second cache: A is read again for each block where it does not fit.
static double eini_lanes_traffic(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const double z = (double)j->by.size, a = (double)(j->nm * j->nk) * z, size = (double)j->size;
  const double all = size * (double)(j->in.piece.n + j->to.piece.n) * z;
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
  j.lanes = eini_lanes_blocks(cpu, j.kern, (j.in.piece.n + j.to.piece.n + 2) * j.by.size, j.size,
                              j.axis == 0 ? j.nd : 0, 1 + j.side, choice);
  choice->grid[0] = eini_axes_size(&c->batch);
  choice->scratch = eini_lanes_carve(&j, NULL);
  choice->seconds = cpu->call + 1e-7 +
                    eini_lanes_seconds(cpu, &j, batch) / eini_dir_threads(choice, width);
  choice->traffic = eini_lanes_traffic(cpu, &j, batch);
  choice->state[EINI_LANES_BLOCK] = j.lanes;
  eini_cpu_name(choice, "lanes");
  return 1;
}

static const eini_cpu_family eini_lanes_family = {"lanes", eini_lanes_plan, eini_lanes_run_part};
