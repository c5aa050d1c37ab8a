// ================================================================================================
// >>tiny  products of one tile
// The same tiles where nothing needs a table: plain real operands, at most one axis a group, lanes
// next to each other. Everything is in the choice, so that a run costs nanoseconds.
// ================================================================================================

enum {
  EINI_DIR_SWAP, EINI_DIR_TK, EINI_DIR_PM, EINI_DIR_PK, EINI_DIR_QK, EINI_DIR_OM, EINI_DIR_BP,
  EINI_DIR_BQ, EINI_DIR_BO, EINI_DIR_TISA, EINI_DIR_BY_ROWS, EINI_DIR_NEXT, EINI_DIR_FARAWAY,
  EINI_DIR_ONE,   // all is one tile: its vectors, else 0
  EINI_DIR_HIGH,  // the number of its rows among those of tiles
  EINI_DIR_TILE,  // its rows
  EINI_DIR_LAST,  // the lanes of its last vector
  EINI_DIR_BLOCK, // rows that all lanes are computed of before the next rows
  EINI_DIR_PROW,  // offsets of rows of tiles
  EINI_DIR_OROW = EINI_DIR_PROW + 8
};
enum { EINI_DIR_AT_ONCE = 1, EINI_DIR_IN_TURN };  // how the next matrices are asked for
#define EINI_DIR_EVEN_ROWS 256
#define EINI_DIR_ROW_LEAST 3  // elements of a row: shorter ones leave most of a vector empty
// Lines of memory that no prefetcher sees coming take so many times as long as those of long runs;
// so many where they are asked for.
#define EINI_DIR_UNSEEN 2.5
#define EINI_DIR_ASKED 2.0

static int64_t eini_dir_only(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? 0 : stride[0];
}

// 1: lanes of side b are in place.
static int eini_dir_tiny_fits(const ein_contract *c, int b) {
  const ein_axes *x = b ? &c->n : &c->m;
  const int64_t *row = b ? c->q.row[0] : c->p.row[0], *out = b ? c->out_n : c->out_m;
  if (x->n > 0 && c->nextra > 0 && (b ? c->extra_n : c->extra_m)[0][0] != 1) return 0;
  return x->n == 0 || (row[0] == 1 && out[0] == 1);
}

// Steps of what a scaled store reads along the batch and along m or n.
static void eini_dir_tiny_extra(const ein_contract *c, int along_n, int64_t *batch, int64_t *row) {
  *batch = *row = 0;
  if (c->nextra == 0) return;
  *batch = eini_dir_only(&c->batch, c->extra_batch[0]);
  *row = along_n ? eini_dir_only(&c->n, c->extra_n[0]) : eini_dir_only(&c->m, c->extra_m[0]);
}

// A tile whose sums are scaled: n lanes of its rows, which leave through scratch.
static void eini_dir_tiny_scaled(const ein_contract *c, eini_dir_tile_fn tile, eini_dir_tile t,
                                 int64_t n, int64_t om, const char *y, int64_t ym, char *scratch) {
  const eini_ckern *k = eini_ckern_of(c->type);
  const int64_t z = k->size, rows = t.rows;
  int64_t orow[8];
  char *out = t.out;
  for (int64_t i = 0; i < rows; i++) orow[i] = i * n;
  t.orow = orow, t.out = scratch;
  tile(&t);
  for (int64_t i = 0; i < rows; i++)
    k->scale(n, 1, c->alpha, c->beta, scratch + i * n * z, y == NULL ? NULL : y + i * ym * z, NULL,
             out + i * om * z, NULL);
}

// 1: a plain real matrix with unit steps along k times a vector with unit steps.
static int eini_dir_tiny_rows(const ein_contract *c) {
  const int swap = c->m.n == 0;
  return (swap || c->n.n == 0) && c->k.n == 1 && c->p.k[0][0] == 1 && c->q.k[0][0] == 1;
}

// Rows from those at d on, which go to the output `step` apart; `other`: where an operand of an
// output that is scaled is.
static void eini_dir_tiny_rows_some(const eini_dir_kern *kern, const ein_contract *c, int far,
                                    eini_dir_even *d, char *out, int64_t other,
                                    const int64_t *step) {
  const int64_t z = kern->size, at = 0, *const xoff = &other;
  double y[EINI_DIR_EVEN_ROWS];
  d->y = step[0] == 1 && !c->scaled ? (void *)out : (void *)y;
  (far ? kern->even_far : kern->even_near)(d);
  if (c->scaled) {
    c->emit_fn(c->emit_user, d->rows, y, out, &at, c->extra_base, &xoff, step);
    return;
  }
  for (int64_t i = 0; i < d->rows && d->y != (void *)out; i++)
    memcpy(out + i * step[0] * z, (const char *)y + i * z, (size_t)z);
}

static void eini_dir_tiny_rows_run(const eini_dir_kern *kern, const ein_contract *c,
                                   const int64_t *s, const ein_part *part) {
  const int swap = (int)s[EINI_DIR_SWAP];
  const int64_t *row = swap ? part->n : part->m, z = kern->size, most = EINI_DIR_EVEN_ROWS;
  const char *p = swap ? c->q.base[0] : c->p.base[0], *q = swap ? c->p.base[0] : c->q.base[0];
  int64_t xb, xm;
  eini_dir_tiny_extra(c, swap, &xb, &xm);
  // Rows of a problem share x; where it has one, those of the batch are taken, with their own.
  const int one = row[1] - row[0] == 1, far = one || s[EINI_DIR_FARAWAY];
  const int64_t *inner = one ? part->batch : row, *outer = one ? row : part->batch;
  const int64_t pa = s[one ? EINI_DIR_BP : EINI_DIR_PM], pb = s[one ? EINI_DIR_PM : EINI_DIR_BP];
  const int64_t qa = one ? s[EINI_DIR_BQ] : 0, qb = one ? 0 : s[EINI_DIR_BQ];
  const int64_t oa = s[one ? EINI_DIR_BO : EINI_DIR_OM], ob = s[one ? EINI_DIR_OM : EINI_DIR_BO];
  const int64_t step[2] = {oa, one ? xb : xm}, other = one ? xm : xb;
  eini_dir_even d = {0, pa, s[EINI_DIR_TK], qa, NULL, NULL, NULL};
  for (int64_t b = outer[0]; b < outer[1]; b++)
    for (int64_t r = inner[0]; r < inner[1]; r += most) {
      d.rows = eini_min64(most, inner[1] - r);
      d.a = p + (b * pb + r * pa) * z, d.x = q + (b * qb + r * qa) * z;
      eini_dir_tiny_rows_some(kern, c, far, &d, c->out + (b * ob + r * oa) * z,
                              b * other + r * step[1], step);
    }
}

// The strides, and the tile if there is only one.
static void eini_dir_tiny_state(const eini_dir_kern *kern, const ein_contract *c, int swap,
                                int64_t *s) {
  const ein_side *a = swap ? &c->q : &c->p, *b = swap ? &c->p : &c->q;
  const int64_t lanes = eini_axes_size(swap ? &c->m : &c->n), vl = kern->lanes;
  const int64_t rows = eini_axes_size(swap ? &c->n : &c->m);
  s[EINI_DIR_SWAP] = swap;
  s[EINI_DIR_TK] = eini_axes_size(&c->k);
  s[EINI_DIR_PM] = eini_dir_only(swap ? &c->n : &c->m, a->row[0]);
  s[EINI_DIR_PK] = eini_dir_only(&c->k, a->k[0]);
  s[EINI_DIR_QK] = eini_dir_only(&c->k, b->k[0]);
  s[EINI_DIR_OM] = swap ? eini_dir_only(&c->n, c->out_n) : eini_dir_only(&c->m, c->out_m);
  s[EINI_DIR_BP] = eini_dir_only(&c->batch, a->batch[0]);
  s[EINI_DIR_BQ] = eini_dir_only(&c->batch, b->batch[0]);
  s[EINI_DIR_BO] = eini_dir_only(&c->batch, c->out_batch);
  for (int i = 0; i < 8; i++) {
    s[EINI_DIR_PROW + i] = i * s[EINI_DIR_PM];
    s[EINI_DIR_OROW + i] = i * s[EINI_DIR_OM];
  }
  if (eini_axes_size(&c->batch) != 1 || rows < 1 || lanes < 1 || lanes > 3 * vl) return;
  s[EINI_DIR_HIGH] = eini_dir_tile_rows(kern, rows, (lanes + vl - 1) / vl, &s[EINI_DIR_TILE]);
  if (s[EINI_DIR_TILE] != rows) return;
  s[EINI_DIR_ONE] = (lanes + vl - 1) / vl;
  s[EINI_DIR_LAST] = lanes - (s[EINI_DIR_ONE] - 1) * vl;
}

// 1: rows are read by runs that end before prefetchers have seen them, those of a tile by turns.
static int eini_dir_tiny_unseen(const eini_dir_kern *kern, int64_t rows, const int64_t *s) {
  const int64_t run = s[EINI_DIR_TK] * kern->size;
  const int one = s[EINI_DIR_PM] == s[EINI_DIR_TK] && kern->rows * run <= EINI_PAGE_BYTES / 2;
  return !s[EINI_DIR_BY_ROWS] && s[EINI_DIR_BLOCK] < rows && run <= EINI_PAGE_BYTES && !one;
}

// Blocks of rows, and what is asked for ahead.
static void eini_dir_tiny_ahead(const eini_rated *cpu, const ein_contract *c,
                                const eini_dir_kern *kern, int64_t rows, int64_t lanes,
                                int64_t *s) {
  const int64_t batch = eini_axes_size(&c->batch), k = s[EINI_DIR_TK], z = kern->size;
  const int64_t m = eini_axes_size(&c->m), n = eini_axes_size(&c->n);
  const double all = (double)batch * (double)(m * k + k * n + m * n) * (double)z;
  const int tall = rows * k * z > cpu->is.l2;
  s[EINI_DIR_BLOCK] = eini_max64(rows, 1);
  s[EINI_DIR_NEXT] = 0;
  if (tall) {
    const int64_t fit = cpu->is.l2 / 4 / eini_max64(k * z, 1);
    s[EINI_DIR_BLOCK] = eini_max64(fit / kern->rows, 1) * kern->rows;
    if (eini_dir_tiny_unseen(kern, rows, s) && eini_cpu_far(&cpu->is, all))
      s[EINI_DIR_NEXT] = EINI_DIR_IN_TURN;
  } else if (lanes > 3 * kern->lanes && rows * lanes * z > cpu->is.l2 &&
             k * lanes * z <= cpu->is.l2 / 2) {
    const int64_t fit = cpu->is.l2 / 4 / (lanes * z);
    s[EINI_DIR_BLOCK] = eini_max64(fit / kern->rows, 1) * kern->rows;
  } else if (batch > 1 && all > (double)cpu->is.l2) {
    s[EINI_DIR_NEXT] = eini_max64(m * k, k * n) * z <= 4096 ? EINI_DIR_AT_ONCE
                       : eini_cpu_far(&cpu->is, all) ? EINI_DIR_IN_TURN : 0;
  }
}

// What all bytes take to come and go.
static double eini_dir_tiny_move(const eini_rated *cpu, const ein_contract *c, int64_t rows,
                                 int64_t lanes, const eini_dir_kern *kern, const int64_t *s) {
  const int64_t z = kern->size;
  const double batch = (double)eini_axes_size(&c->batch), k = (double)s[EINI_DIR_TK];
  double a = batch * (double)rows * k * (double)z, b = batch * (double)lanes * k * (double)z;
  const double out = batch * (double)rows * (double)lanes * (double)z;
  const int far = eini_cpu_far(&cpu->is, a + b);
  if (eini_dir_tiny_unseen(kern, rows, s)) a *= s[EINI_DIR_NEXT] ? EINI_DIR_ASKED : EINI_DIR_UNSEEN;
  if (far && batch == 1 && s[EINI_DIR_QK] * z >= EINI_PAGE_BYTES) b *= EINI_DIR_UNSEEN;
  return far ? (a + b + 2 * out) / cpu->read_bw : eini_cpu_move(cpu, a + b, out, 0);
}

// Bytes of n rows of `width` elements: whole lines where they are apart.
static double eini_dir_tiny_lines(double n, int64_t width, int64_t step, int64_t z) {
  return n * (double)(step > width ? eini_up(width * z, 64) : width * z);
}

// What it takes to read again what has left the second cache: a strip of lanes for each tile of
// rows, the rows of a block for each strip, all strips for each block. *bytes: of that.
static double eini_dir_tiny_again(const eini_rated *cpu, const ein_contract *c, int64_t rows,
                                  int64_t lanes, const eini_dir_kern *kern, const int64_t *s,
                                  double *bytes) {
  const int64_t z = kern->size, strip = eini_min64(lanes, 3 * kern->lanes);
  const int64_t high = eini_min64(rows, kern->rows), block = eini_min64(rows, s[EINI_DIR_BLOCK]);
  const double batch = (double)eini_axes_size(&c->batch), k = (double)s[EINI_DIR_TK];
  if (rows < 1 || lanes < 1) return 0;
  const double strips = ceil((double)lanes / (double)strip);
  const double tiles = ceil((double)rows / (double)high);
  const double blocks = ceil((double)rows / (double)block);
  const double q = eini_dir_tiny_lines(k, strip, s[EINI_DIR_QK], z);
  const double p = s[EINI_DIR_PK] == 1 ? k * (double)(high * z)
                                       : eini_dir_tiny_lines(k, high, s[EINI_DIR_PK], z);
  const double all_p = p * tiles / blocks, all_q = q * strips, keep = 0.5 * (double)cpu->is.l2;
  return eini_dir_missed(cpu, keep, q, batch * (tiles - blocks) * all_q, bytes) +
         eini_dir_missed(cpu, keep, all_p, batch * (strips - 1) * p * tiles, bytes) +
         eini_dir_missed(cpu, keep, all_p + all_q, batch * (blocks - 1) * all_q, bytes);
}

// Seconds of reading scalars each of which lies in a line, or page, of its own, where the first
// cache does not keep them for the next problem.
static double eini_dir_tiny_apart(const eini_rated *cpu, const eini_dir_kern *kern, int64_t batch,
                                  int64_t rows, const int64_t *s) {
  const int64_t k = s[EINI_DIR_TK];
  const int64_t pm = eini_abs64(s[EINI_DIR_PM]), pk = eini_abs64(s[EINI_DIR_PK]);
  const int64_t near = (rows > 1 && (pm < pk || k < 2) ? pm : pk) * kern->size;
  if (near < 64 || rows * k * 64 < cpu->is.l1 * 7 / 10) return 0;
  const double each = eini_pages_apart(near, 1) ? EINI_PAGE_SECONDS : 1e-9;
  return (double)batch * (double)(rows * k) * each;
}

static double eini_dir_tiny_seconds(const eini_rated *cpu, const ein_contract *c,
                                    const eini_dir_kern *kern, int64_t rows, int64_t lanes,
                                    const int64_t *s, double *traffic) {
  const int64_t batch = eini_axes_size(&c->batch), k = s[EINI_DIR_TK], vl = kern->lanes;
  const double vectors = (double)((lanes + vl - 1) / vl), most = (double)(batch > 0 ? batch : 1);
  const double flops = 2.0 * (double)batch * (double)rows * vectors * (double)(vl * k);
  const double in = (double)batch * (double)(rows * k + k * lanes) * kern->size;
  *traffic = in + (double)batch * (double)(rows * lanes) * kern->size;
  const double move = eini_dir_tiny_move(cpu, c, rows, lanes, kern, s) +
                      eini_dir_tiny_again(cpu, c, rows, lanes, kern, s, traffic);
  double seconds = flops / eini_dir_peak(cpu, c->type) * (rows < 8 ? 1.5 : 1.1);
  const int alone = rows > 1 || !s[EINI_DIR_BY_ROWS];  // else the batch's rows are taken at once
  const int64_t strips = k * lanes * kern->size, apart = s[EINI_DIR_QK] * kern->size;
  if (strips > cpu->is.l3 / 8 || (strips > cpu->is.l2 / 2 && apart % EINI_PAGE_BYTES == 0))
    seconds *= 1.5;
  else if (strips >= cpu->is.l2 / 2) seconds *= 1.15;
  seconds += (double)batch * vectors * (double)(rows + 7) / 8 * 2e-9;
  seconds = (double)batch * eini_dir_chain(cpu, (double)rows, vectors, (double)k, seconds / most);
  if (s[EINI_DIR_BY_ROWS])
    seconds = in / cpu->l2_bw / 2 +
              (double)batch * (alone ? 1e-8 + (double)rows * 1.5e-9 : 2.5e-9);
  // Half of what a problem takes by itself goes on beside memory's traffic.
  const double each = batch > 1 && alone ? (double)batch * EINI_BARE_SECONDS : 0;
  seconds += each;
  // Strips of a large output wait for their lines, which are not asked for.
  const int large = lanes > 3 * vl && rows * lanes * kern->size > cpu->is.l2;
  seconds = eini_cpu_beside(seconds, move, large ? 1 : EINI_CPU_BESIDE) + each;
  if (!s[EINI_DIR_BY_ROWS]) seconds += eini_dir_tiny_apart(cpu, kern, batch, rows, s);
  if (!s[EINI_DIR_BY_ROWS] && eini_cpu_far(&cpu->is, in) && k * rows > 0 && batch > 1 &&
      s[EINI_DIR_BQ] != lanes) {
    // runs too short to be read ahead
    seconds += (double)batch * (double)k * vectors * (s[EINI_DIR_SWAP] || rows < 8 ? 4e-9 : 1e-9);
  }
  return seconds;
}

static int eini_dir_tiny_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  const eini_dir_kern *kern = eini_dir_kern_of(cpu->is.isa, c->type);
  int64_t *s = choice->state;
  if (c->pair != EIN_PAIR_SUM_MUL || kern == NULL || eini_dir_planes(c->type) == 2) return 0;
  if (c->batch.n > 1 || c->m.n > 1 || c->n.n > 1 || c->k.n > 1) return 0;
  if (!c->plain_out && !c->scaled) return 0;
  if (c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN) return 0;
  const int64_t batch = eini_axes_size(&c->batch), m = eini_axes_size(&c->m);
  const int64_t n = eini_axes_size(&c->n), k = eini_axes_size(&c->k);
  const int fits[2] = {eini_dir_tiny_fits(c, 0), eini_dir_tiny_fits(c, 1)};
  const int by_rows = eini_dir_tiny_rows(c) && k >= EINI_DIR_ROW_LEAST;
  if (!fits[0] && !fits[1] && !by_rows) return 0;
  const int swap = by_rows ? c->m.n == 0 && c->n.n > 0 : !fits[1] || (fits[0] && m > n);
  const int64_t lanes = swap ? m : n, rows = swap ? n : m, vl = kern->lanes;
  eini_dir_tiny_state(kern, c, swap, s);
  s[EINI_DIR_TISA] = cpu->is.isa;
  s[EINI_DIR_BY_ROWS] = by_rows;
  if (by_rows || c->scaled) s[EINI_DIR_ONE] = 0;
  eini_dir_tiny_ahead(cpu, c, kern, rows, lanes, s);
  const double in = (double)batch * (double)(m * k + k * n) * kern->size;
  s[EINI_DIR_FARAWAY] = s[EINI_DIR_PM] == k && eini_cpu_far(&cpu->is, in) &&
                        k * kern->size <= cpu->is.l1 / 2;
  double seconds = eini_dir_tiny_seconds(cpu, c, kern, rows, lanes, s, &choice->traffic);
  choice->grid[0] = batch, choice->unit[0] = 1;
  choice->grid[1] = (m + 63) / 64, choice->unit[1] = 64;
  choice->grid[2] = (n + 63) / 64, choice->unit[2] = 64;
  choice->batches = c->batch.n == 0;
  choice->scratch = 0;
  if (c->scaled) {
    const int64_t tile = eini_min64(rows, 8) * eini_min64(lanes, 3 * vl) * kern->size;
    if (!by_rows) choice->scratch = (size_t)eini_up(tile, 64);
    seconds += (double)batch * (double)rows *
               ((double)lanes * 0.15e-9 + (double)((lanes + vl - 1) / vl) * 1e-9);
  }
  choice->seconds = seconds / eini_dir_threads(choice, width) +
                    (s[EINI_DIR_ONE] ? 0.1 * cpu->call : 0.2 * cpu->call + 1e-8);
  eini_cpu_name(choice, by_rows ? "tiny rows along k"
                        : swap  ? "tiny lanes of m" : "tiny lanes of n");
  return 1;
}

// The same for bigger ones: a share before each tile. NULL: that is at hand.
static void eini_dir_in_turn(const int64_t *s, int64_t rows, int64_t n, int64_t z, const char *p,
                             const char *q, const char *out, eini_next *next) {
  const int64_t k = s[EINI_DIR_TK], pm = s[EINI_DIR_PM] * z, pk = s[EINI_DIR_PK] * z;
  const int by_k = pk == z || rows == 1;
  eini_next_row(next, 0, (uintptr_t)p, p == NULL ? 0 : by_k ? rows : k, by_k ? pm : pk,
                (by_k ? k : rows) * z);
  eini_next_row(next, 1, (uintptr_t)q, q == NULL ? 0 : k, s[EINI_DIR_QK] * z, n * z);
  eini_next_row(next, 2, (uintptr_t)out, rows, s[EINI_DIR_OM] * z, n * z);
}

// Have what follows one operand of a batch at hand, unless it is far away.
static void eini_dir_next(const char *at, int64_t step) {
  if (step > 16384) return;
  for (int64_t i = 0; i < step; i += 64) EINI_FETCH(at + step + i);
}

// A run over problems of a batch, and blocks of their rows.
typedef struct eini_dir_tiny_job {
  const ein_contract *c;
  const int64_t *s;
  const eini_dir_kern *kern;
  int64_t n, rows, row, lane;   // of the part; where it begins
  int64_t xb, xm;               // see eini_dir_tiny_extra
  const char *p, *q;
  char *out, *scratch;
  eini_next next;
} eini_dir_tiny_job;

// Asks for the block of rows behind that at r, or the first of the next problem (last: none is).
static void eini_dir_tiny_ask(eini_dir_tiny_job *j, int64_t b, int64_t r, int last) {
  const int64_t *s = j->s, z = j->kern->size, block = s[EINI_DIR_BLOCK];
  const int same = r + block < j->rows, on = s[EINI_DIR_NEXT] == EINI_DIR_IN_TURN;
  const int64_t then = same ? r + block : 0, at = same ? b : b + 1;
  const char *p = j->p + (at * s[EINI_DIR_BP] + then * s[EINI_DIR_PM]) * z;
  const char *q = j->q + at * s[EINI_DIR_BQ] * z;
  if (!same && last) {
    j->next.i = 3;
  } else if (on) {
    const int64_t n = (j->n + j->kern->lanes - 1) / j->kern->lanes;
    eini_dir_in_turn(s, eini_min64(block, j->rows - then), j->n, z,
                     !same && s[EINI_DIR_BP] == 0 ? NULL : p,
                     same || s[EINI_DIR_BQ] == 0 ? NULL : q,
                     j->out + (at * s[EINI_DIR_BO] + then * s[EINI_DIR_OM]) * z, &j->next);
    eini_next_start(&j->next, (n + 2) / 3 * ((eini_min64(block, j->rows - r) + j->kern->rows - 1) /
                                             j->kern->rows));
  } else if (s[EINI_DIR_NEXT]) {
    eini_dir_next(j->p + b * s[EINI_DIR_BP] * z, s[EINI_DIR_BP] * z);
    eini_dir_next(j->q + b * s[EINI_DIR_BQ] * z, s[EINI_DIR_BQ] * z);
    eini_dir_next(j->out + b * s[EINI_DIR_BO] * z, s[EINI_DIR_BO] * z);
  }
}

// All lanes of the rows from r on.
static void eini_dir_tiny_block(eini_dir_tiny_job *j, eini_dir_tile t, int64_t b, int64_t r0,
                                int64_t rows) {
  const int64_t *s = j->s, z = j->kern->size, vl = j->kern->lanes, n = j->n;
  const int64_t vectors = n <= vl ? 1 : (n + vl - 1) / vl, pm = s[EINI_DIR_PM];
  const int64_t om = s[EINI_DIR_OM];
  for (int64_t i = 0, l; i < vectors; i += l) {
    const int64_t left = vectors - i;
    l = eini_dir_strip(left);
    t.last = (int)(left > l ? vl : n - (vectors - 1) * vl);
    t.p = j->p + (b * s[EINI_DIR_BP] + r0 * pm) * z;
    t.q = j->q + (b * s[EINI_DIR_BQ] + i * vl) * z;
    t.out = j->out + (b * s[EINI_DIR_BO] + r0 * om + i * vl) * z;
    for (int64_t r = r0; r < r0 + rows; r += t.rows) {
      const int which = eini_dir_tile_rows(j->kern, r0 + rows - r, l, &t.rows);
      if (s[EINI_DIR_NEXT] == EINI_DIR_IN_TURN) eini_next_some(&j->next);
      if (j->c->scaled) {
        const char *y = j->c->beta == NULL ? NULL : j->c->extra_base[0];
        if (y != NULL) y += (b * j->xb + (j->row + r) * j->xm + j->lane + i * vl) * z;
        eini_dir_tiny_scaled(j->c, j->kern->tile[l - 1][which], t, eini_min64(l * vl, n - i * vl),
                             om, y, j->xm, j->scratch);
      } else {
        j->kern->tile[l - 1][which](&t);
      }
      t.p += t.rows * pm * z;
      t.out += t.rows * om * z;
    }
  }
}

static void eini_dir_tiny_all(const ein_contract *c, const int64_t *s, const ein_part *part,
                              char *scratch) {
  const int64_t zero = 0;
  const int swap = (int)s[EINI_DIR_SWAP];
  const eini_dir_kern *kern = eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type);
  const int64_t *lane = swap ? part->m : part->n, *row = swap ? part->n : part->m, z = kern->size;
  eini_dir_tiny_job j = {c, s, kern, lane[1] - lane[0], row[1] - row[0], row[0], lane[0], 0, 0,
                         (swap ? c->q.base[0] : c->p.base[0]) + row[0] * s[EINI_DIR_PM] * z,
                         (swap ? c->p.base[0] : c->q.base[0]) + lane[0] * z,
                         c->out + (row[0] * s[EINI_DIR_OM] + lane[0]) * z, scratch,
                         {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, 3, 0}};
  const eini_dir_tile t = {s[EINI_DIR_TK] > 0, s[EINI_DIR_TK], s[EINI_DIR_PK], s[EINI_DIR_QK],
                           &zero, &zero, s + EINI_DIR_PROW, s + EINI_DIR_OROW, NULL, NULL, NULL, 0,
                           0, 0};
  if (s[EINI_DIR_BY_ROWS]) {
    eini_dir_tiny_rows_run(kern, c, s, part);
    return;
  }
  eini_dir_tiny_extra(c, swap, &j.xb, &j.xm);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    for (int64_t r = 0; r < j.rows; r += s[EINI_DIR_BLOCK]) {
      if (s[EINI_DIR_NEXT]) eini_dir_tiny_ask(&j, b, r, b + 1 == part->batch[1]);
      eini_dir_tiny_block(&j, t, b, r, eini_min64(s[EINI_DIR_BLOCK], j.rows - r));
    }
  }
}

// A batch of problems each of which is planned alone: what follows is asked for where all of them
// come from beyond the second cache.
static void eini_dir_tiny_batch(const eini_cpu *cpu, const ein_contract *c, const ein_part *part,
                                int64_t *s) {
  const ein_side *p = s[EINI_DIR_SWAP] ? &c->q : &c->p, *q = s[EINI_DIR_SWAP] ? &c->p : &c->q;
  s[EINI_DIR_BP] = p->batch[0][0];
  s[EINI_DIR_BQ] = q->batch[0][0];
  s[EINI_DIR_BO] = c->out_batch[0];
  const double step = (double)eini_abs64(s[EINI_DIR_BP]) + (double)eini_abs64(s[EINI_DIR_BQ]) +
                      (double)eini_abs64(s[EINI_DIR_BO]);
  const double all = step * (double)(part->batch[1] - part->batch[0]);
  if (all * (double)eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type)->size < (double)cpu->l2 ||
      s[EINI_DIR_BLOCK] < 1 || s[EINI_DIR_BY_ROWS])
    return;
  s[EINI_DIR_NEXT] = EINI_DIR_AT_ONCE;
  s[EINI_DIR_ONE] = 0;
}

// A single tile is run at once: the loops around it would take as long.
static ein_status eini_dir_tiny_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  static const int64_t zero = 0;
  const int64_t *s = choice->state;
  int64_t many[sizeof choice->state / sizeof *choice->state];
  if (choice->batches && c->batch.n > 0) {
    memcpy(many, s, sizeof many);
    eini_dir_tiny_batch(cpu, c, part, many);
    s = many;
  }
  if (s[EINI_DIR_ONE] == 0) {
    eini_dir_tiny_all(c, s, part, (char *)scratch);
    return EIN_OK;
  }
  const int swap = (int)s[EINI_DIR_SWAP];
  const ein_side *p = swap ? &c->q : &c->p, *q = swap ? &c->p : &c->q;
  const eini_dir_kern *kern = eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type);
  eini_dir_tile t = {s[EINI_DIR_TK] > 0, s[EINI_DIR_TK], s[EINI_DIR_PK], s[EINI_DIR_QK],
                     &zero, &zero, s + EINI_DIR_PROW, s + EINI_DIR_OROW, p->base[0],
                     q->base[0], c->out, (int)s[EINI_DIR_LAST], 0, s[EINI_DIR_TILE]};
  const eini_dir_tile_fn tile = kern->tile[s[EINI_DIR_ONE] - 1][s[EINI_DIR_HIGH]];
  for (int64_t b = part->batch[0];;) {
    tile(&t);
    if (++b >= part->batch[1]) return EIN_OK;
    t.p += s[EINI_DIR_BP] * kern->size;
    t.q += s[EINI_DIR_BQ] * kern->size;
    t.out += s[EINI_DIR_BO] * kern->size;
  }
}

EINI_UNUSED static const eini_cpu_family eini_dir_tiny = {
    "tiny", eini_dir_tiny_plan, eini_dir_tiny_run};
