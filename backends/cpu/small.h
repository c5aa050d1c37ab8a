// ================================================================================================
// >>small  small, skinny and outer products
// Tiles of the output: lanes are consecutive elements of one side's group (or of the batch, then
// both sides are vectors), rows belong to the other side, whose scalars are read in place. What is
// not plain or has no unit steps is fetched, a block of rows or the whole of a small operand.
// ================================================================================================

#define EINI_DIR_TILE_BYTES 16384  // of a block of the output
#define EINI_DIR_PACK_BYTES 262144 // of a fetched operand
#define EINI_DIR_L2_BYTES 131072   // of a block of an operand that is read once
#define EINI_DIR_K1 1024           // outer steps of k

typedef struct eini_dir_nest {
  eini_dir_job j;
  int a, b, ga, gb;            // first streams of scalars and vectors; groups of rows and lanes
  int soa;                     // lanes are the batch
  int packed, fetched;         // vectors, scalars
  int nt;                      // past the caches
  int far;                     // vectors come from memory
  int64_t run, orun;           // contiguous lanes of vectors and of the output
  int64_t m, n;                // rows and lanes of the whole
  int64_t mb, nb, pitch;       // blocks; lanes of a fetched row
  eini_dir_tile t;
  int64_t *pk1, *qk1, *prow, *orow;
  int64_t made[2];             // rows of the last two that stay from block to block
  char *pack, *rows, *tile;
} eini_dir_nest;

static int eini_dir_unit_last(const eini_dir_index *x, int stream) {
  return x->n == 0 || x->stride[stream][x->n - 1] == 1;
}

// May the batch be the lanes?
static int eini_dir_soa(const eini_dir_job *j) {
  const eini_dir_index *x = &j->x[EINI_DIR_B];
  const ein_contract *c = j->c;
  return x->n > 0 && j->planes == 1 && c->p.form == EIN_FORM_PLAIN &&
         c->q.form == EIN_FORM_PLAIN && eini_dir_unit_last(x, 0) &&
         eini_dir_unit_last(x, EINI_DIR_OPS) && x->extent[x->n - 1] >= j->kern->lanes / 2;
}

// Seconds of tiles: a sum takes four cycles a step, however few there are.
static double eini_dir_chain(const eini_rated *cpu, double rows, double vectors, double k,
                             double s) {
  const double tiles = ceil(rows / 8) * ceil(vectors / 3);
  const double least = tiles * k * 4 / cpu->hz;
  return s > least ? s : least;
}

// Seconds of reading so many bytes again, out of a set of data that is gone through between: none
// where `keep` bytes of a cache hold it. *moved, unless NULL: bytes that are read.
static double eini_dir_missed(const eini_rated *cpu, double keep, double set, double bytes,
                              double *moved) {
  if (set <= keep) return 0;
  if (moved != NULL) *moved += bytes;
  return bytes / eini_cpu_bw(cpu, set);
}

// Seconds of reading again what the first-level cache does not keep: columns of three vectors for
// every eight rows, and the rows for every such column. Short runs are read at half the rate.
static double eini_dir_again(const eini_rated *cpu, double m, double n, double k, double row,
                             double line) {
  const double columns = fmax(ceil(n * row / (3 * line)), 1), tiles = fmax(ceil(m / 8), 1);
  const double strip = k * (columns > 1 ? 3 * line : n * row), keep = 0.7 * (double)cpu->is.l1;
  const double slow = !eini_cpu_near(&cpu->is, strip) && columns > 1 ? 2.5 : 1;
  return eini_dir_missed(cpu, keep, strip, slow * (tiles - 1) * n * k * row, NULL) +
         eini_dir_missed(cpu, keep, m * k * row, (columns - 1) * m * k * row, NULL);
}

// Seconds beyond those of long runs of reading side b, which lies along memory beyond the second
// cache, in pieces of so many values: they are seen late, if at all, and end within lines, which
// the first cache does not keep until the next piece.
#define EINI_PIECE_SLOW 1.8
static double eini_dir_pieces(const eini_rated *cpu, const eini_dir_job *j, int b, int64_t piece) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const double all = (double)x->size * (double)j->x[EINI_DIR_K].size * j->unit;
  const double some = (double)piece * j->unit, lines = some + EINI_LINE_BYTES - j->unit;
  if (x->size <= piece || !eini_dir_unit_last(x, b)) return 0;
  if (eini_cpu_near(&cpu->is, all)) return 0;
  if ((double)j->x[EINI_DIR_K].size * lines <= 0.7 * (double)cpu->is.l1) return 0;
  return all * (EINI_PIECE_SLOW * lines / some - 1) / eini_cpu_bw(cpu, all);
}

// Seconds of reading scalars of side b one from a line at a time: neither rows nor k go on within
// the line, and what is read until they come back to it is more than the first-level cache.
static double eini_dir_scattered(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *r = &j->x[b ? EINI_DIR_N : EINI_DIR_M], *k = &j->x[EINI_DIR_K];
  const double all = (double)r->size * (double)k->size;
  double lines = all, inner = 1;
  for (int d = k->n - 1; d >= 0; inner *= (double)k->extent[d--]) {
    if (k->stride[b][d] == 1 && k->extent[d] > 1) lines = 8 * inner;
  }
  for (int d = r->n - 1; d >= 0; inner *= (double)r->extent[d--]) {
    if (r->stride[b][d] == 1 && inner < lines && r->extent[d] > 1) lines = inner;
    if (r->stride[b][d] == 1 && d == r->n - 1) return 0;
  }
  if (64 * lines <= 0.7 * (double)cpu->is.l1) return 0;
  int64_t step = eini_least_step(k->n, k->extent, k->stride[b], INT64_MAX);
  step = eini_least_step(r->n, r->extent, r->stride[b], step);
  if (eini_pages_apart(step, j->unit)) return all * EINI_PAGE_SECONDS;
  return 2 * 64 * all / eini_cpu_bw(cpu, 64 * lines);
}

// Seconds of one row of k of a product of operands.
static double eini_dir_product_cost(const eini_dir_job *j, int s0) {
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  double run = 1, lanes = (double)j->kern->lanes;
  for (int d = 0; d < k->n; d++) {
    for (int o = s0; o < s0 + (s0 ? j->c->q.nop : j->c->p.nop); o++) {
      if (k->stride[o][d] == 1 && (double)k->extent[d] > run) run = (double)k->extent[d];
    }
  }
  return (double)k->size / run * (2.7e-9 + 3e-9 * ceil(run / lanes));
}

static double eini_dir_out_run(const eini_dir_index *x) {
  double run = 1;
  for (int d = x->n - 1; d >= 0 && (double)x->stride[EINI_DIR_OUT][d] == run; d--)
    run *= (double)x->extent[d];
  return run;
}

// Seconds of turning to another place of an output beyond the second cache in short pieces of a
// row; rows of a tile fill a line together where they follow each other.
static double eini_dir_turns(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const eini_dir_index *r = &j->x[b ? EINI_DIR_M : EINI_DIR_N];
  const double all = (double)x->size * (double)r->size, run = eini_dir_out_run(x);
  double next = run > 1 ? 1 : eini_dir_out_run(r);
  if (next > 8) next = 8;
  if (run * j->unit >= EINI_TURN_PIECE || run == (double)x->size) return 0;
  if ((double)j->x[EINI_DIR_B].size * all * j->unit <= (double)cpu->is.l2 / 2) return 0;
  return all / (run * next) * EINI_TURN_CYCLES / cpu->hz;
}

// Seconds of arithmetic and of what is not in place, were lanes to be the group of side b.
static double eini_dir_nest_cost(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const ein_side *side = b ? &j->c->q : &j->c->p, *other = b ? &j->c->p : &j->c->q;
  const double m = (double)j->x[b ? EINI_DIR_M : EINI_DIR_N].size, n = (double)x->size;
  const double k = (double)j->x[EINI_DIR_K].size, batch = (double)j->x[EINI_DIR_B].size;
  const int64_t lanes = j->kern->lanes / j->planes;
  const int64_t vectors = (x->size + lanes - 1) / lanes;
  double s = 2 * m * k * (double)(vectors * lanes) * j->planes * j->planes;
  s = s / eini_dir_peak(cpu, j->c->type) + m * (double)(2 + vectors) * 1e-9;
  s = eini_dir_chain(cpu, m, (double)vectors, k, s);
  s += eini_dir_again(cpu, m, n, k, (double)j->unit, (double)(lanes * j->unit));
  s += eini_dir_pieces(cpu, j, EINI_DIR_OPS - b, 8) + eini_dir_pieces(cpu, j, b, 3 * lanes);
  const int64_t run = eini_dir_run(x, b, 1);  // short ones are packed
  if (side->form != EIN_FORM_PLAIN || (run < x->size && run < 2 * j->kern->lanes))
    s += side->form == EIN_FORM_PLAIN && eini_dir_turns_in(j, b, &j->x[EINI_DIR_K], x)
             ? ceil(n / 8) * ceil(k / 8) * 2e-8 : n * k * 1e-9;
  if (n * k * j->unit > EINI_DIR_PACK_BYTES && !eini_dir_unit_last(x, b)) s += 1e3;
  if (other->form == EIN_FORM_PRODUCT) s += m * eini_dir_product_cost(j, EINI_DIR_OPS - b);
  else if (other->form != EIN_FORM_PLAIN) s += m * k * 1e-9;
  else s += eini_dir_scattered(cpu, j, EINI_DIR_OPS - b);
  if (!eini_dir_unit_last(x, EINI_DIR_OUT)) s += m * n * 2e-9;
  s += eini_dir_turns(cpu, j, b);
  // Results leave run by run, each a call where something follows, or one by one.
  const int64_t leaves = eini_dir_run(x, EINI_DIR_OUT, 1);
  const double runs = m * ceil(n / (double)leaves);
  if (j->c->scaled) s += m * n * 0.3e-9 + runs * 1e-8;
  else if (!j->c->plain_out) s += m * n * 2e-9 + runs * 6e-8;
  else if (runs > m && leaves > 1) s += runs * 1e-8;
  return batch * s;
}

// Vectors that are loaded for one of lanes and a position of n, of operands whose rows have pages
// of their own, more than the first cache of pages holds.
static double eini_dir_soa_pages(const eini_dir_job *j) {
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  double loads = 0;
  if ((j->x[EINI_DIR_M].size + 1) * k->size < 64) return 0;
  for (int q = 0; q < 2; q++) {
    const eini_dir_index *r = &j->x[q ? EINI_DIR_N : EINI_DIR_M];
    const int stream = q ? EINI_DIR_OPS : 0;
    int64_t step = eini_least_step(k->n, k->extent, k->stride[stream], INT64_MAX);
    step = eini_least_step(r->n, r->extent, r->stride[stream], step);
    const double rows = (double)j->x[EINI_DIR_M].size;
    if (eini_pages_apart(step, j->unit)) loads += (double)k->size * (q ? ceil(rows / 8) : rows);
  }
  return loads;
}

// The same for lanes of the batch: both sides are loaded for every product.
static double eini_dir_soa_cost(const eini_rated *cpu, const eini_dir_job *j, int64_t nb) {
  const double m = (double)j->x[EINI_DIR_M].size, n = (double)j->x[EINI_DIR_N].size;
  const double k = (double)j->x[EINI_DIR_K].size, batch = (double)j->x[EINI_DIR_B].size;
  const double lanes = (double)j->kern->lanes, tiles = ceil(m / 8);
  double cycles = tiles * (20 + 3 * (double)j->x[EINI_DIR_K].n) + k * (1.2 * m + tiles);
  double s = n * (batch / lanes * cycles / cpu->hz + (batch / (double)nb + 1) * 6e-8);
  s += n * batch / lanes * eini_dir_soa_pages(j) * EINI_PAGE_SECONDS / 5;
  if (!eini_dir_unit_last(&j->x[EINI_DIR_B], EINI_DIR_OUT)) s += batch * m * n * 1e-9;
  if (!j->c->plain_out) s += batch * m * n * (j->c->scaled ? 0.3e-9 : 2e-9);
  return s;
}

enum { EINI_NEST_B, EINI_NEST_NT };  // words of ein_choice.state

// Elements that a row of lanes, or rows that follow each other, store together.
static double eini_dir_nest_piece(const eini_dir_index *lanes, const eini_dir_index *rows) {
  const double run = eini_dir_out_run(lanes);
  const int last = rows->n - 1;
  const int goes_on = last >= 0 && run == (double)lanes->size &&
                      (double)rows->stride[EINI_DIR_OUT][last] == run;
  return goes_on ? run * (double)rows->extent[last] : run;
}

// What rates decide of a product: its side of lanes, and whether it goes past the caches, which
// pieces shorter than lines do not.
static void eini_dir_nest_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_job j;
  eini_dir_init(&j, &cpu->is, c);
  s[EINI_NEST_B] = EINI_DIR_OPS;
  if (!eini_dir_soa(&j) &&
      eini_dir_nest_cost(cpu, &j, 0) < eini_dir_nest_cost(cpu, &j, EINI_DIR_OPS))
    s[EINI_NEST_B] = 0;
  const double rows = (double)j.x[EINI_DIR_M].size + (double)j.x[EINI_DIR_N].size;
  const double in = (double)j.x[EINI_DIR_B].size * (double)j.x[EINI_DIR_K].size * rows * j.unit;
  const int b = s[EINI_NEST_B] != 0, lane = b ? EINI_DIR_N : EINI_DIR_M;
  const double piece = eini_dir_nest_piece(&j.x[eini_dir_soa(&j) ? EINI_DIR_B : lane],
                                           &j.x[b ? EINI_DIR_M : EINI_DIR_N]);
  s[EINI_NEST_NT] = c->plain_out && piece * j.unit >= EINI_TURN_PIECE &&
                    eini_cpu_past_with(cpu, eini_dir_out_bytes(&j), in);
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_dir_nest_init(eini_dir_nest *v, const eini_cpu *cpu, const ein_contract *c,
                              const int64_t *decided, const ein_part *part) {
  eini_dir_job *j = &v->j;
  eini_dir_init(j, cpu, c);
  v->soa = eini_dir_soa(j);
  v->b = (int)decided[EINI_NEST_B];
  v->a = EINI_DIR_OPS - v->b;
  v->ga = v->b ? EINI_DIR_M : EINI_DIR_N;
  v->gb = v->soa ? EINI_DIR_B : v->b ? EINI_DIR_N : EINI_DIR_M;
  const eini_dir_index *x = &j->x[v->gb], *k = &j->x[EINI_DIR_K];
  const int64_t m = v->m = j->x[v->ga].size, n = v->n = x->size;
  eini_dir_sort(&j->x[EINI_DIR_K], eini_dir_largest(j, m > n && !v->soa ? v->a : v->b));
  if ((v->a ? &c->q : &c->p)->form == EIN_FORM_PRODUCT) {
    eini_dir_units_last(&j->x[EINI_DIR_K], v->a);
  }
  v->made[0] = v->made[1] = 0;
  v->t.k0 = k->n == 0 ? 1 : k->extent[k->n - 1];
  v->t.k1 = k->size == 0 ? 0 : k->size / v->t.k0;
  v->run = eini_dir_run(x, v->b, 1);
  v->orun = eini_dir_run(x, EINI_DIR_OUT, 1);
  if (v->soa) {
    v->run = eini_min64(v->run, eini_dir_run(x, v->a, 1));
    v->run = eini_min64(v->run, x->extent[x->n - 1]);
  }
  v->packed = (v->b ? &c->q : &c->p)->form != EIN_FORM_PLAIN;
  if (v->run < n && v->run < 2 * j->kern->lanes && !v->soa) v->packed = 1;
  v->fetched = (v->a ? &c->q : &c->p)->form != EIN_FORM_PLAIN;
  v->far = !v->packed && eini_cpu_far_side(cpu, v->b ? &c->q : &c->p,
                                           (double)j->x[EINI_DIR_B].size * (double)n *
                                               (double)k->size * j->unit);
  v->nt = decided[EINI_NEST_NT] != 0;
  if (part != NULL) {
    eini_dir_cut(j, EINI_DIR_M, part->m[0], part->m[1]);
    eini_dir_cut(j, EINI_DIR_N, part->n[0], part->n[1]);
    if (v->soa) eini_dir_cut(j, EINI_DIR_B, part->batch[0], part->batch[1]);
    if (x->size < n) {  // runs are shorter where the first axis is cut
      v->run = eini_min64(v->run, x->size);
      v->orun = eini_min64(v->orun, x->size);
    }
  }
  return v->t.k1 <= EINI_DIR_K1;
}

static int64_t eini_dir_clamp(int64_t x, int64_t step, int64_t least, int64_t most) {
  x = x / step * step;
  return x < least ? least : x > most ? most : x;
}

// Block sizes, and scratch.
static size_t eini_dir_nest_carve(eini_dir_nest *v, char *base) {
  eini_dir_job *j = &v->j;
  const int64_t k = eini_max64(j->x[EINI_DIR_K].size, 1), m = v->m, n = v->n;
  const int64_t lanes = j->kern->lanes, p = j->planes;
  size_t used = 0;
  eini_dir_carve_job(j, base, &used);
  if (v->soa) {
    const int64_t c = eini_axes_size(&j->c->n), h = c > 1 ? m : eini_min64(m, 8);
    const int64_t each = (h * k + k * c + h * c) * j->unit;
    v->nb = eini_dir_clamp(EINI_DIR_L2_BYTES / eini_max64(each, 1), lanes, 2 * lanes, 1024);
  } else if (v->packed) {
    v->nb = 24 * lanes;
  } else {
    v->nb = eini_dir_clamp(EINI_DIR_L2_BYTES / (k * j->unit), 3 * lanes, 3 * lanes, 1536);
  }
  v->nb = eini_min64(v->nb, eini_max64(n, 1));
  v->mb = eini_dir_clamp(EINI_DIR_TILE_BYTES / (v->nb * j->unit * p), 8, 8, 256);
  if (v->fetched) v->mb = eini_dir_clamp(2 * EINI_DIR_TILE_BYTES / (k * j->unit), 8, 8, v->mb);
  v->pitch = n;
  v->pk1 = (int64_t *)eini_carve(base, &used, v->t.k1 * 8, 1);
  v->qk1 = (int64_t *)eini_carve(base, &used, v->t.k1 * 8, 1);
  v->prow = (int64_t *)eini_carve(base, &used, p * v->mb * 8, 1);
  v->orow = (int64_t *)eini_carve(base, &used, p * v->mb * 8, 1);
  v->pack = (char *)eini_carve(base, &used, v->packed ? k * n * j->unit : 0, 1);
  v->rows = (char *)eini_carve(base, &used, v->fetched ? v->mb * k * j->unit : 0, 1);
  v->tile = (char *)eini_carve(base, &used, v->mb * v->nb * j->unit * p, 1);
  return used;
}

// The steps of both sides along k, in reals.
static void eini_dir_nest_k(eini_dir_nest *v) {
  const eini_dir_index *k = &v->j.x[EINI_DIR_K];
  const int64_t p = v->j.planes;
  const int last = k->n - 1;
  v->t.pk = v->fetched ? p : last < 0 ? 0 : k->stride[v->a][last] * p;
  v->t.qk = v->packed ? p * v->pitch : last < 0 ? 0 : k->stride[v->b][last] * p;
  for (int64_t i = 0; i < v->t.k1; i++) {
    v->pk1[i] = v->fetched ? i * v->t.k0 * p : eini_dir_offset(k, v->a, i * v->t.k0) * p;
    v->qk1[i] = v->packed ? i * v->t.k0 * v->t.qk : eini_dir_offset(k, v->b, i * v->t.k0) * p;
  }
  v->t.pk1 = v->pk1;
  v->t.qk1 = v->qk1;
}

// Store nb lanes from n0 on of each of mb rows from m0 on; `line` bytes from row to row.
static void eini_dir_nest_put(eini_dir_nest *v, int64_t m0, int64_t mb, int64_t n0, int64_t nb,
                              int64_t line) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->gb], *r = &j->x[v->ga];
  const int last = x->n - 1;
  const int whole = v->orun == x->size || n0 % v->orun + nb <= v->orun;
  if (v->nt && whole) {
    int64_t rows = r->n > 0 && r->stride[EINI_DIR_OUT][r->n - 1] == nb && line == nb * j->unit ?
                   r->extent[r->n - 1] : 1;
    for (int64_t i = 0, n; i < mb; i += n) {
      int64_t off = eini_dir_offset(r, EINI_DIR_OUT, m0 + i) + eini_dir_offset(x, EINI_DIR_OUT, n0);
      n = eini_min64(mb - i, rows - (m0 + i) % rows);
      eini_stream_row(j->isa, (size_t)(n * nb * j->unit), v->tile + i * line,
                      (char *)(uintptr_t)j->at[EINI_DIR_OUT] + off * j->unit);
    }
    return;
  }
  for (int64_t l = 0, run; l < nb; l += run) {
    int64_t off[EINI_DIR_OPS + 1], step[EINI_DIR_OPS + 1];
    run = nb - l;
    if (last > 0) run = eini_min64(run, x->extent[last] - (n0 + l) % x->extent[last]);
    for (int64_t i = 0; i < mb; i++) {
      for (int e = 0; e <= j->c->nextra; e++) {
        off[e] = eini_dir_offset(x, EINI_DIR_OUT + e, n0 + l);
        off[e] += eini_dir_offset(r, EINI_DIR_OUT + e, m0 + i);
        step[e] = last < 0 ? 0 : x->stride[EINI_DIR_OUT + e][last];
      }
      eini_dir_put(j, run, v->tile + i * line + l * j->unit, off, step);
    }
  }
}

// Vectors of the next tiles, of `left`: three, but not so that a single one is left.
static int64_t eini_dir_strip(int64_t left) {
  return left > 3 && left % 3 == 1 ? 2 : eini_min64(left, 3);
}

// The tiles of `rows` rows of reals and `n` lanes.
static void eini_dir_nest_tiles(const eini_dir_nest *v, eini_dir_tile t, int64_t rows, int64_t n) {
  const int ahead = v->far && rows > 0 ? (rows <= 16 ? 6 : 3) : 0;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t vectors = (n + kern->lanes - 1) / kern->lanes, line = kern->lanes * kern->size;
  const char *p = t.p;
  for (int64_t i = 0, l; i < vectors; i += l) {
    const int64_t left = vectors - i;
    l = v->soa ? 1 : eini_dir_strip(left);
    t.last = left > l ? kern->lanes : (int)(n - (vectors - 1) * kern->lanes);
    for (int64_t h = 0; ahead > 0 && left > ahead && h < t.k1; h++) {
      const char *q = t.q + t.qk1[h] * kern->size + ahead * line;
      for (int64_t k = 0; k < t.k0; k++, q += t.qk * kern->size) {
        for (int64_t w = 0; w < l * line; w += 64) EINI_FETCH(q + w);
      }
    }
    t.prow = v->prow;
    t.orow = v->orow;
    for (int64_t r = 0; r < rows; r += t.rows) {
      const int which = eini_dir_tile_rows(kern, rows - r, l, &t.rows);
      (v->soa ? kern->lane : kern->tile[l - 1])[which](&t);
      t.prow += t.rows;
      t.orow += t.rows;
    }
    t.q += l * line;
    t.out += l * line;
    if (v->soa) t.p = p += line;
  }
}

// A block with a single k: rows of products, as many at once as are evenly apart.
static void eini_dir_nest_outer(eini_dir_nest *v, const eini_dir_tile *t, int64_t mb, int64_t nb) {
  const int64_t z = v->j.kern->size, *o = v->orow;
  const char *p = t->p + t->pk1[0] * z, *q = t->q + t->qk1[0] * z;
  int64_t *none = v->j.off;
  for (int64_t i = 0; i < mb; i++) none[i] = 0;
  for (int64_t r = 0, n; r < mb; r += n) {
    const int64_t step = r + 1 < mb ? o[r + 1] - o[r] : 0;
    for (n = 1; r + n < mb && o[r + n] - o[r + n - 1] == step; n++) continue;
    eini_dir_mul d = {n, nb, step, q, p, none, v->prow + r, {0, 0}, 1, 0, t->out + o[r] * z};
    if (v->soa) {
      d.a = p;
      d.b = q;
      d.aoff = v->prow + r;
      d.boff = none;
      d.sb = 1;
    }
    d.ahead[0] = v->soa ? t->ahead : mb == 1 ? 1024 : 0;
    v->j.kern->mul(&d);
  }
}

// Offsets of mb rows from m0 on, less what is returned: those of a single axis stay for all blocks.
static int64_t eini_dir_nest_rows(eini_dir_nest *v, int stream, int64_t m0, int64_t mb,
                                  int64_t *table, int64_t *made) {
  const eini_dir_index *r = &v->j.x[v->ga];
  const int stay = r->n <= 1 && v->j.planes == 1;
  if (!stay || *made < mb) eini_dir_table(r, stream, stay ? 0 : m0, mb, table);
  if (!stay) return 0;
  *made = eini_max64(*made, mb);
  return eini_dir_offset(r, stream, m0) - eini_dir_offset(r, stream, 0);
}

// One block of the output.
static void eini_dir_nest_block(eini_dir_nest *v, int64_t m0, int64_t mb, int64_t n0, int64_t nb) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->gb], *r = &j->x[v->ga];
  const int64_t p = j->planes, k = j->x[EINI_DIR_K].size, line = p * nb * j->unit;
  const int direct = j->c->plain_out && p == 1 && !v->nt &&
                     (v->orun == x->size || n0 % v->orun + nb <= v->orun);
  eini_dir_tile t = v->t;
  t.q = v->packed ? v->pack + n0 * j->unit : j->at[v->b] + eini_dir_offset(x, v->b, n0) * j->unit;
  if (v->fetched) {
    t.p = v->rows;
    for (int64_t i = 0; i < mb; i++) v->prow[i] = i * k;
  } else {
    t.ahead = m0 + 8 < r->size ? 8 * eini_dir_step(r, v->a) * j->unit : 8 * 64;
    t.p = j->at[v->a] + (v->soa ? eini_dir_offset(x, v->a, n0) * j->unit : 0);
    t.p += eini_dir_nest_rows(v, v->a, m0, mb, v->prow, &v->made[0]) * j->unit;
  }
  for (int64_t i = mb - 1; p == 2 && i >= 0; i--) {
    v->prow[2 * i + 1] = 2 * v->prow[i] + 1;
    v->prow[2 * i] = 2 * v->prow[i];
  }
  if (direct) {
    t.out = (char *)(uintptr_t)j->at[EINI_DIR_OUT] + eini_dir_offset(x, EINI_DIR_OUT, n0) * j->unit;
    t.out += eini_dir_nest_rows(v, EINI_DIR_OUT, m0, mb, v->orow, &v->made[1]) * j->unit;
  } else {
    t.out = v->tile, v->made[1] = 0;
    for (int64_t i = 0; i < p * mb; i++) v->orow[i] = i * p * nb;
  }
  if (k == 1 && p == 1) {
    eini_dir_nest_outer(v, &t, mb, nb);
  } else {
    eini_dir_nest_tiles(v, t, p * mb, p * nb);
  }
  if (direct) return;
  for (int64_t i = 0; p == 2 && i < mb; i++) {
    char *row = v->tile + i * line;
    j->kern->join(nb, row, row + line / 2, eini_dir_conj(j, v->b), eini_dir_conj(j, v->a));
  }
  eini_dir_nest_put(v, m0, mb, n0, nb, line);
}

// How many lanes a block from n on has, before l1.
static int64_t eini_dir_nest_width(const eini_dir_nest *v, int64_t n, int64_t l1) {
  int64_t w = eini_min64(v->nb, l1 - n);
  if (!v->packed) w = eini_min64(w, v->run - n % v->run);
  if (v->orun >= v->j.kern->lanes) w = eini_min64(w, v->orun - n % v->orun);
  return w;
}

// All blocks at the current addresses, lanes from l0 to l1. Rows that are fetched are fetched once.
static void eini_dir_nest_blocks(eini_dir_nest *v, int64_t l0, int64_t l1) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *r = &j->x[v->ga], *k = &j->x[EINI_DIR_K];
  int64_t wide;
  for (int64_t n0 = l0; n0 < l1; n0 += wide) {
    wide = v->fetched ? l1 - n0 : eini_dir_nest_width(v, n0, l1);
    for (int64_t m = 0, mb; m < r->size; m += mb) {
      mb = eini_min64(v->mb, r->size - m);
      if (v->fetched && k->size > 0) {
        eini_dir_fetch(j, v->a, r, m, mb, k, 0, k->size, k->size, v->rows);
      }
      for (int64_t n = n0, w; n < n0 + wide; n += w) {
        w = eini_dir_nest_width(v, n, l1);
        eini_dir_nest_block(v, m, mb, n, w);
      }
    }
  }
}

static void eini_dir_nest_soa(eini_dir_nest *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_B], *c = &j->x[EINI_DIR_N];
  int64_t nb;
  for (int s = 0; s < EINI_DIR_STREAMS; s++) j->at[s] = j->base[s];
  for (int64_t b = 0; b < x->size; b += nb) {
    nb = eini_min64(eini_min64(v->nb, x->size - b), v->run - b % v->run);
    for (int64_t n = 0; n < c->size; n++) {
      for (int s = 0; s < EINI_DIR_STREAMS; s++) {
        if (!eini_dir_used(j, s)) continue;
        j->at[s] = j->base[s] + eini_dir_offset(c, s, n) * j->esize[s];
      }
      eini_dir_nest_blocks(v, b, b + nb);
    }
  }
}

static ein_status eini_dir_nest_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  eini_dir_nest v;
  eini_dir_job *j = &v.j;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_dir_nest_init(&v, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_dir_nest_carve(&v, (char *)scratch);
  eini_dir_nest_k(&v);
  if (v.soa) {
    eini_dir_nest_soa(&v);
  } else {
    const eini_dir_index *x = &j->x[v.gb], *k = &j->x[EINI_DIR_K];
    const char *packed = NULL;
    for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
      eini_dir_at(j, b);
      const int nop = (v.b ? &c->q : &c->p)->nop;
      const char *at = nop > 0 ? j->at[v.b] : "";  // no operand: the same for every batch
      if (v.packed && k->size > 0 && (packed != at || nop > 1)) {
        eini_dir_fetch(j, v.b, k, 0, k->size, x, 0, x->size, v.pitch, v.pack);
        packed = at;
      }
      eini_dir_nest_blocks(&v, 0, x->size);
    }
  }
  if (v.nt) eini_stream_end();
  return EIN_OK;
}

// Bytes to and from the second cache. Blocks of lanes are read once if they fit it, else for each
// tile of rows; the rows for each such block, unless all of them fit. Blocks are carved.
static double eini_dir_nest_traffic(const eini_rated *cpu, const eini_dir_nest *v, double in,
                                    double out) {
  const eini_dir_job *j = &v->j;
  const double batch = (double)j->x[EINI_DIR_B].size, blocks = (double)v->n / (double)v->nb;
  const double line = (double)eini_max64(j->x[EINI_DIR_K].size, 1) * j->unit;
  const double rows = (double)v->m * line, all = (double)v->n * line;
  const double wide = (double)v->nb * line, keep = 0.5 * (double)cpu->is.l2;
  double moved = in + out;
  if (v->soa) return moved;  // blocks hold all of what they need
  (void)eini_dir_missed(cpu, keep, wide, batch * (ceil((double)v->m / 8) - 1) * all, &moved);
  (void)eini_dir_missed(cpu, keep, rows, batch * (ceil(blocks) - 1) * rows, &moved);
  return moved;
}

// Seconds to find the pieces of three vectors of lanes that lie along rows, where these are as far
// apart as pages and more than there are addresses at hand: each is looked up.
static double eini_dir_nest_walks(const eini_dir_nest *v) {
  const eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const double pieces = ceil((double)v->n / (3 * j->kern->lanes)) * ceil((double)v->m / 8);
  if (v->soa || v->packed || v->fetched || k->size < EINI_PAGES_MANY) return 0;
  const int64_t step = eini_least_step(k->n, k->extent, k->stride[v->b], INT64_MAX);
  if (!eini_pages_apart(step, j->unit)) return 0;
  return EINI_WALK_SECONDS * (double)j->x[EINI_DIR_B].size * (double)k->size * pieces;
}

static int eini_dir_nest_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  eini_dir_nest v;
  eini_dir_job *j = &v.j;
  if (!eini_dir_able(&cpu->is, c)) return 0;
  eini_dir_nest_decide(cpu, c, choice->state);
  if (!eini_dir_nest_init(&v, &cpu->is, c, choice->state, NULL)) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, m = (double)j->x[EINI_DIR_M].size;
  const double n = (double)j->x[EINI_DIR_N].size, k = (double)j->x[EINI_DIR_K].size;
  if (v.packed && k * (double)j->x[v.gb].size * j->unit > EINI_DIR_PACK_BYTES) return 0;
  if (v.fetched && 8 * k * j->unit > EINI_DIR_PACK_BYTES) return 0;
  choice->scratch = eini_dir_nest_carve(&v, NULL);
  double seconds = v.soa ? eini_dir_soa_cost(cpu, j, v.nb) : eini_dir_nest_cost(cpu, j, v.b);
  const double in = batch * (m * k + n * k) * j->unit, out = batch * m * n * j->unit;
  const double move = eini_cpu_move(cpu, in, out, v.nt);
  choice->traffic = eini_dir_nest_traffic(cpu, &v, in, out);
  // What comes from memory is asked for in bursts, which arithmetic waits for.
  const int plain = c->p.form == EIN_FORM_PLAIN && c->q.form == EIN_FORM_PLAIN;
  const int large = plain && !v.soa &&
                    eini_cpu_far(&cpu->is, fmax(in + out, c->p.whole + c->q.whole));
  seconds = eini_cpu_beside(seconds, move, v.far || large ? 1 : EINI_CPU_BESIDE);
  seconds += (v.soa ? 0 : batch * 3e-8) + 1e-7 + eini_dir_nest_walks(&v);
  eini_dir_init(j, &cpu->is, c);
  for (int g = 0; g < 3; g++) {
    const int64_t step = g == v.gb || g == EINI_DIR_B ? 64 : 16;
    eini_dir_grid(&j->x[g], step, &choice->grid[g], &choice->unit[g]);
  }
  if (!v.soa) choice->grid[0] = j->x[EINI_DIR_B].size, choice->unit[0] = 1;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  eini_cpu_name(choice, v.soa ? "small lanes of batch" : v.b ? "small lanes of n"
                                                             : "small lanes of m");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_small = {
    "small", eini_dir_nest_plan, eini_dir_nest_run};
