// ================================================================================================
// >>contract  out[b,m,n] = store( sum over k of P[b,m,k] * Q[b,k,n] )
// Takes two operands (strided, or values of an expression) and a store; works in one dtype.
// Invariant: an element's additions over k have one order, whatever m, n, batch and position.
// ================================================================================================

// EINI_SMALL: no packing, for tiny problems. EINI_STREAM: matrix times vector, the matrix is read
// once, in place. EINI_BLOCK: packed blocks. A small contract may be cut along batch, the others
// along batch, m and n, with the same bits.
typedef enum eini_contract_path { EINI_BLOCK, EINI_STREAM, EINI_SMALL } eini_contract_path;

// What the portable kernel decided; kept in ein_choice.state.
typedef struct eini_cplan {
  int path, swap;                // an eini_contract_path; 1: computed as its transpose
  int rows;                      // 1: a streamed matrix is read along k
  eini_small small;              // used by EINI_SMALL
} eini_cplan;

static int64_t eini_axes_size(const ein_axes *x) {
  int64_t r = 1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] == 0) return 0;
  for (int i = 0; i < x->n; i++) r *= x->extent[i];
  return r;
}

// The only stride of a group of at most one axis.
static int64_t eini_axes_only(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? 0 : stride[0];
}

// The state of one run. Pairs: the rows of the output and the side they belong to, the columns and
// theirs (P and Q, unless swapped).
typedef struct eini_cjob {
  const ein_contract *c;
  const eini_cplan *w;
  const eini_ckern *kern;
  const ein_side *side[2];
  const ein_axes *axes[2];
  const int64_t *os[2];               // strides of the output
  const int64_t *const *xs[2];        // strides of the extras
  int64_t ext[2], kn;                 // extents
  int64_t from[2], upto[2];           // of the part being run
  int64_t blk[2], kc, unit;           // blocks; unit: bytes of an element
  int keep;                           // 1: sums stay in `tile` between blocks of k
  char *out;                          // base pointers at the current batch
  const char **at[2], **xat;
  char *pack[2], *tile, *val;
  int64_t points;                     // of one call of fill_fn and emit_fn at most
  // Offsets, table after table: operands along rows and along k; output and extras; points.
  int64_t *row[2], *k[2], *to[2], *off;
  const int64_t **offp;
} eini_cjob;

// Where things lie in scratch; with base NULL, only how much there is.
static void *eini_carve(char *base, size_t *used, int64_t count, int64_t size) {
  char *r = base == NULL ? NULL : base + *used;
  *used += ((size_t)(count * size) + 63) / 64 * 64;
  return r;
}

static int64_t eini_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

static void eini_cjob_init(eini_cjob *j, const ein_contract *c, const eini_cplan *w) {
  j->c = c;
  j->w = w;
  j->kern = eini_ckern_of(c->type);
  j->unit = j->kern->size * j->kern->planes;
  j->kn = eini_axes_size(&c->k);
  for (int s = 0; s < 2; s++) {
    int q = s != w->swap;
    j->side[s] = q ? &c->q : &c->p;
    j->axes[s] = q ? &c->n : &c->m;
    j->os[s] = q ? c->out_n : c->out_m;
    j->xs[s] = q ? c->extra_n : c->extra_m;
    j->ext[s] = j->upto[s] = eini_axes_size(j->axes[s]);
    j->from[s] = 0;
  }
}

// Block sizes, clipped to the extents, and scratch.
static size_t eini_cjob_carve(eini_cjob *j, char *base) {
  const ein_contract *c = j->c;
  const eini_ckern *t = j->kern;
  size_t used = 0;
  int64_t mn = eini_up(j->ext[0], EINI_R), nn = j->ext[1], nop = c->nextra + 1;
  int64_t tile, stored, made;
  if (j->w->path == EINI_STREAM) {  // packed: the vector and coefficients; rows or columns fetched
    j->kc = eini_min64(j->kn, EIN_POINTS);
    j->blk[0] = 1;
    j->blk[1] = eini_up(eini_min64(nn, EIN_POINTS), t->lanes);
    j->pack[0] = (char *)eini_carve(base, &used, 3 * j->kc, j->unit);
    j->pack[1] = (char *)eini_carve(base, &used, eini_max64(j->kc, j->blk[1]), j->unit);
    tile = stored = j->blk[1];
    made = eini_max64(j->kc, j->blk[1]);
  } else {
    j->keep = j->kn > EINI_KC;
    j->kc = eini_min64(j->kn, EINI_KC);
    j->blk[0] = eini_min64(mn, EINI_MC * 4 / j->unit);
    j->blk[1] = eini_min64(eini_up(nn, t->nr), eini_up(EINI_NC, t->nr));
    j->pack[0] = (char *)eini_carve(base, &used, j->blk[0] * j->kc, j->unit);
    j->pack[1] = (char *)eini_carve(base, &used, j->blk[1] * j->kc, j->unit);
    stored = EINI_R * t->nr;
    tile = j->keep ? eini_min64(mn, EINI_MC) * j->blk[1] : stored;
    made = eini_max64(EINI_R, t->nr) * j->kc;
  }
  int plain = j->side[0]->form == EIN_FORM_PLAIN && j->side[1]->form == EIN_FORM_PLAIN;
  if (c->scaled) stored = t->planes == 2 ? stored / (j->w->path == EINI_STREAM ? 1 : EINI_R) : 0;
  j->points = eini_max64(c->plain_out ? 0 : stored, plain ? 0 : made);
  j->points = eini_up(eini_min64(j->points, EIN_POINTS), 8);
  j->tile = (char *)eini_carve(base, &used, tile, j->unit);
  for (int s = 0; s < 2; s++) {
    int64_t n = j->side[s]->nop;
    nop = eini_max64(nop, n);
    j->row[s] = (int64_t *)eini_carve(base, &used, n * j->blk[s], 8);
    j->k[s] = (int64_t *)eini_carve(base, &used, n * j->kc, 8);
    j->to[s] = (int64_t *)eini_carve(base, &used, (c->nextra + 1) * j->blk[s], 8);
    j->at[s] = (const char **)eini_carve(base, &used, n, (int64_t)sizeof(char *));
  }
  j->xat = (const char **)eini_carve(base, &used, c->nextra, (int64_t)sizeof(char *));
  j->val = (char *)eini_carve(base, &used, j->points, j->unit);
  j->off = (int64_t *)eini_carve(base, &used, c->scaled && plain ? 0 : (nop + 1) * j->points, 8);
  j->offp = (const int64_t **)eini_carve(base, &used, nop, (int64_t)sizeof(int64_t *));
  return used;
}

// table[i] = offset of linear index start + i, for i < count; the last is repeated up to pad.
static void eini_table(const ein_axes *x, const int64_t *stride, int64_t start, int64_t count,
                       int64_t pad, int64_t *table) {
  for (int64_t at = 0, run; at < count; at += run) {
    int64_t rest = start + at, off = 0, step = 0;
    run = count - at;
    for (int d = x->n - 1; d >= 0; d--) {
      int64_t e = x->extent[d], i = rest % e;
      if (d == x->n - 1) step = stride[d], run = eini_min64(run, e - i);
      off += i * stride[d];
      rest /= e;
    }
    for (int64_t i = 0; i < run; i++) table[at + i] = off + i * step;
  }
  for (int64_t i = count; i < pad && count > 0; i++) table[i] = table[count - 1];
}

// The tables of a block of rows (s = 0) or columns.
static void eini_row_tables(eini_cjob *j, int s, int64_t start, int64_t count, int64_t pad) {
  const ein_axes *x = j->axes[s];
  for (int o = 0; o < j->side[s]->nop; o++) {
    eini_table(x, j->side[s]->row[o], start, count, pad, j->row[s] + o * j->blk[s]);
  }
  eini_table(x, j->os[s], start, count, pad, j->to[s]);
  for (int e = 0; e < j->c->nextra; e++) {
    eini_table(x, j->xs[s][e], start, count, pad, j->to[s] + (e + 1) * j->blk[s]);
  }
}

static void eini_k_tables(eini_cjob *j, int64_t start, int64_t count) {
  for (int s = 0; s < 2; s++) {
    for (int o = 0; o < j->side[s]->nop; o++) {
      eini_table(&j->c->k, j->side[s]->k[o], start, count, count, j->k[s] + o * j->kc);
    }
  }
}

// dst[p, i] = value of an expression at rows row.., i < width, and k.., p < kn, planes apart
static void eini_pack_values(eini_cjob *j, int s, const int64_t *row, int64_t width,
                             const int64_t *k, int64_t kn, char *dst) {
  const ein_side *x = j->side[s];
  int planes = j->kern->planes;
  for (int o = 0; o < x->nop; o++, row += j->blk[s], k += j->kc) {
    int64_t *off = j->off + o * j->points;
    for (int64_t p = 0; p < kn; p++) {
      for (int64_t i = 0; i < width; i++) off[p * width + i] = row[i] + k[p];
    }
    j->offp[o] = off;
  }
  x->fill_fn(x->user, kn * width, j->at[s], j->offp, NULL, planes == 1 ? dst : j->val);
  if (planes == 1) return;
  for (int64_t i = 0; i < width; i++) j->off[i] = i;
  for (int64_t p = 0; p < kn; p++) j->off[width + p] = p * width;
  j->kern->pack(j->val, j->off, width, j->off + width, kn, 2, 1, dst);
}

// Panels of `width` rows from row r0 on, dst[panel, p, i]. When rows are closer together than k's,
// a few k are taken across all panels, so that memory is read in long runs.
static void eini_pack(eini_cjob *j, int s, int64_t r0, int64_t rows, int64_t width, int64_t k0,
                      int64_t kc, int sign, char *dst) {
  const eini_ckern *t = j->kern;
  const int64_t *row = j->row[s] + r0, *k = j->k[s] + k0;
  int plain = j->side[s]->form == EIN_FORM_PLAIN;
  int64_t step = plain ? kc : EIN_POINTS / width;
  if (plain && kc > 1 && rows > width) {
    int64_t dr = row[1] - row[0], dk = k[1] - k[0];
    if ((dr < 0 ? -dr : dr) < (dk < 0 ? -dk : dk)) step = 8;
  }
  for (int64_t p = 0; p < kc; p += step) {
    int64_t kn = eini_min64(step, kc - p);
    for (int64_t r = 0; r < rows; r += width) {
      char *d = dst + (r * kc + p * width) * j->unit;
      if (plain) {
        t->pack(j->at[s][0], row + r, width, k + p, kn, t->planes, sign, d);
      } else {
        eini_pack_values(j, s, row + r, width, k + p, kn, d);
      }
    }
  }
}

// Store finished sums tile[rows, plane, cols], planes `plane` apart, at row m and column n of the
// block: plainly, scaled, or through emit_fn in chunks of whole rows.
static void eini_store(eini_cjob *j, const char *tile, int64_t plane, int64_t rows, int64_t cols,
                       int64_t m, int64_t n) {
  const ein_contract *c = j->c;
  const eini_ckern *t = j->kern;
  const int64_t *tm = j->to[0] + m, *tn = j->to[1] + n;
  int64_t line = plane * j->unit, most = EIN_POINTS / cols;
  if (c->plain_out) {
    int unit = eini_consecutive(tn, cols);
    for (int64_t i = 0; i < rows; i++) {
      char *o = j->out + (tm[i] + (unit ? tn[0] : 0)) * j->unit;
      t->unpack(tile + i * line, cols, plane, t->planes, o, unit ? NULL : tn);
    }
    return;
  }
  if (c->scaled) {
    for (int64_t i = 0; i < rows; i++, tile += line) {
      const char *y = c->beta == NULL ? NULL : j->xat[0] + (tm + j->blk[0])[i] * j->unit;
      if (t->planes == 2) t->unpack(tile, cols, plane, 2, j->val, NULL);
      t->scale(cols, t->planes, c->alpha, c->beta, t->planes == 2 ? j->val : tile, y,
               tn + j->blk[1], j->out + tm[i] * j->unit, tn);
    }
    return;
  }
  for (int64_t i0 = 0; i0 < rows; i0 += most) {
    int64_t chunk = eini_min64(most, rows - i0);
    for (int64_t i = 0; i < chunk; i++) {
      t->unpack(tile + (i0 + i) * line, cols, plane, t->planes, j->val + i * cols * j->unit, NULL);
    }
    for (int e = 0; e <= c->nextra; e++) {
      int64_t *off = j->off + e * j->points;
      const int64_t *em = tm + i0 + e * j->blk[0], *en = tn + e * j->blk[1];
      for (int64_t i = 0; i < chunk; i++) {
        for (int64_t l = 0; l < cols; l++) off[i * cols + l] = em[i] + en[l];
      }
      j->offp[e] = off;
    }
    c->emit_fn(c->emit_user, chunk * cols, j->val, j->out, j->offp[0], j->xat, j->offp + 1, NULL);
  }
}

// sums[m,n] (+)= P[m,k] * Q[k,n]: the tiles of a packed block of each, from row m0 of the sums on
static void eini_tiles(eini_cjob *j, int64_t mb, int64_t nb, int64_t kb, int64_t m0, int first,
                       int last) {
  const eini_ckern *t = j->kern;
  int64_t mt = (mb + EINI_R - 1) / EINI_R, nt = (nb + t->nr - 1) / t->nr;
  int across = kb <= EINI_ACROSS;  // with few k the output is most of the traffic
  for (int64_t i = 0; i < mt * nt; i++) {
    int64_t m = (across ? i / nt : i % mt) * EINI_R, n = (across ? i % nt : i / mt) * t->nr;
    char *tile = j->tile;
    if (j->keep) tile += ((m0 + m) * j->blk[1] + n * EINI_R) * j->unit;
    t->kernel(kb, j->pack[0] + m * kb * j->unit, j->pack[1] + n * kb * j->unit, tile, !first);
    if (!last) continue;
    eini_store(j, tile, t->nr, eini_min64(EINI_R, mb - m), eini_min64(t->nr, nb - n), m, n);
  }
}

// for blocks of sums: for blocks of k: pack Q[k,n]; for blocks of m: pack P[m,k]; tiles
static void eini_run_block(eini_cjob *j) {
  int psign = j->side[0]->conj ? -1 : 1, qsign = j->side[1]->conj ? -1 : 1;
  for (int64_t m0 = j->from[0]; m0 < j->upto[0]; m0 += EINI_MC) {
    int64_t mend = eini_min64(j->upto[0], m0 + EINI_MC);
    for (int64_t n = j->from[1]; n < j->upto[1]; n += j->blk[1]) {
      int64_t nb = eini_min64(j->blk[1], j->upto[1] - n), np = eini_up(nb, j->kern->nr), k = 0;
      eini_row_tables(j, 1, n, nb, np);
      do {  // once when there is no k
        int64_t kb = eini_min64(j->kc, j->kn - k);
        eini_k_tables(j, k, kb);
        eini_pack(j, 1, 0, np, j->kern->nr, 0, kb, qsign, j->pack[1]);
        for (int64_t m = m0; m < mend; m += j->blk[0]) {
          int64_t mb = eini_min64(j->blk[0], mend - m), mp = eini_up(mb, EINI_R);
          eini_row_tables(j, 0, m, mb, mp);
          eini_pack(j, 0, 0, mp, EINI_R, 0, kb, psign, j->pack[0]);
          eini_tiles(j, mb, nb, kb, m - m0, k == 0, k + kb == j->kn);
        }
      } while ((k += j->kc) < j->kn);
    }
  }
}

// y[n] += x[k] * Q[k,n] for a block, along k or along n (w: n padded); Q in place if possible.
// coef[re/im, k, re/im]: the vector as coefficients of the real and imaginary parts of Q
static void eini_stream_block(eini_cjob *j, int64_t nb, int64_t w, int64_t kb, const char *coef) {
  const eini_ckern *t = j->kern;
  const int64_t *row = j->row[1], *k = j->k[1], z = t->size, u = j->unit;
  int rows = j->w->rows, plain = j->side[1]->form == EIN_FORM_PLAIN;
  int direct = rows ? plain && eini_consecutive(k, kb)
                    : plain && t->planes == 1 && w == nb && eini_consecutive(row, nb);
  if (direct && !rows) {
    t->axpy(w, j->at[1][0] + row[0] * u, k, kb, coef, j->tile);
    return;
  }
  for (int64_t i = 0; i < (rows ? nb : kb); i++) {
    const char *q = direct ? j->at[1][0] + (row[i] + k[0]) * u : j->pack[1];
    const int64_t planes[2] = {0, w};
    if (!direct && rows) eini_pack(j, 1, i, 1, 1, 0, kb, 1, j->pack[1]);
    if (!direct && !rows) eini_pack(j, 1, 0, w, w, i, 1, 1, j->pack[1]);
    for (int part = 0; part < t->planes; part++) {
      const char *x = coef + part * j->kc * u;
      char *y = j->tile + part * w * z;
      if (rows) {
        t->dot(kb * t->planes, q, x, y + i * z);
      } else {
        t->axpy(w, q, planes, t->planes, x + i * u, y);
      }
    }
  }
}

// for blocks of n and k: y[n] += x[k] * Q[k,n]; m has extent 1
static void eini_run_stream(eini_cjob *j) {
  const eini_ckern *t = j->kern;
  const ein_side *p = j->side[0], *q = j->side[1];
  int64_t nb, kb;
  eini_row_tables(j, 0, 0, 1, 1);
  for (int64_t n = j->from[1]; n < j->upto[1]; n += nb) {
    nb = eini_min64(j->blk[1], j->upto[1] - n);
    if (!j->w->rows && nb > t->lanes) nb -= nb % t->lanes;  // the rest is fetched and padded
    int64_t w = eini_up(nb, t->lanes);
    eini_row_tables(j, 1, n, nb, w);
    memset(j->tile, 0, (size_t)(w * j->unit));
    for (int64_t k = 0; k < j->kn; k += kb) {
      char *x = j->pack[0], *coef = x;
      kb = eini_min64(j->kc, j->kn - k);
      eini_k_tables(j, k, kb);
      eini_pack(j, 0, 0, 1, 1, 0, kb, p->conj ? -1 : 1, x);
      if (t->planes == 2) {
        coef = x + j->kc * j->unit;
        t->turn(kb, x, q->conj, coef, coef + j->kc * j->unit);
      }
      eini_stream_block(j, nb, w, kb, coef);
    }
    eini_store(j, j->tile, w, 1, nb, 0, 0);
  }
}

// Fill w->small. 0: not the best path; 2: with tiles, up to where packing starts to pay.
static int eini_small_init(const eini_cjob *j, const ein_contract *c, eini_cplan *w) {
  const ein_side *p = j->side[0], *q = j->side[1];
  if (c->m.n > 1 || c->n.n > 1 || c->k.n > 1) return 0;
  int64_t m = j->ext[0], n = j->ext[1], k = j->kn, most = 512;
  const eini_small s = {m, n, k, eini_axes_only(j->axes[0], p->row[0]),
                        eini_axes_only(&c->k, p->k[0]), eini_axes_only(&c->k, q->k[0]),
                        eini_axes_only(j->axes[1], q->row[0]), eini_axes_only(j->axes[0], j->os[0]),
                        eini_axes_only(j->axes[1], j->os[1]), p->conj ? -1 : 1, q->conj ? -1 : 1};
  w->small = s;
  int tiles = j->kern->planes == 1 && s.qn == 1 && s.on == 1 && m > 1 && n * j->unit >= EINI_SHORT;
  if (tiles) most = 16384;
  return p->form == EIN_FORM_PLAIN && q->form == EIN_FORM_PLAIN && (c->plain_out || c->scaled) &&
         m <= most && n <= most && k <= most && m * n * k <= most ? 1 + tiles : 0;
}

// The smallest step along a group, by the order of its axes.
static int64_t eini_last_step(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? INT64_MAX : eini_abs64(stride[x->n - 1]);
}

// A matrix as BLAS has it, of elements r apart along nr rows and c along nc columns, 0 where there
// is one: either is 1, the other the leading dimension. turned: columns are far apart. 0: none.
EINI_UNUSED static int eini_matrix_lines(int64_t r, int64_t c, int64_t nr, int64_t nc, int64_t *ld,
                                         int *turned) {
  *turned = !(c <= 1 && (r >= nc || r == 0));
  if (*turned && !(r <= 1 && (c >= nr || c == 0))) return 0;
  *ld = *turned ? (c == 0 ? nr : c) : r == 0 ? nc : r;
  *ld = eini_max64(*ld, 1);
  return *ld <= INT32_MAX;
}

// Work of the tiles with rows of side s, in multiply-adds, with a charge for strided stores.
static double eini_block_cost(const eini_cjob *j, int s) {
  const ein_axes *x = j->axes[1 - s];
  int64_t m = j->ext[s], n = j->ext[1 - s];
  double tiles = (double)eini_up(m, EINI_R) * (double)eini_up(n, j->kern->nr);
  int unit = x->n == 0 || j->os[1 - s][x->n - 1] == 1;
  return tiles * ((double)j->kn + EINI_TILE_MULADDS) +
         (unit ? 0.0 : EINI_STORE_MULADDS * (double)m * (double)n);
}

// Into how many parts of batch, m and n `width` threads take the work: batch first, then the side
// with more units.
static void eini_contract_grid(ein_choice *h, int width, int64_t batch, int64_t m, int64_t n) {
  const int64_t count[3] = {batch / h->unit[0], m / h->unit[1], n / h->unit[2]};
  int64_t left = width;
  for (int i = 0; i < 3; i++) h->grid[i] = 1;
  for (int turn = 0; turn < 3 && left > 1; turn++) {
    int g = turn == 0 ? 0 : (turn == 1) == (count[1] >= count[2]) ? 1 : 2;
    h->grid[g] = eini_max64(1, eini_min64(left, turn == 0 ? count[g] : count[g] / 2));
    left /= h->grid[g];
  }
}

// Part i of a grid; 0 when it is empty.
static int eini_grid_part(const ein_choice *h, const ein_part *whole, int i, ein_part *part) {
  int64_t *const range[3] = {part->batch, part->m, part->n};
  const int64_t total[3] = {whole->batch[1], whole->m[1], whole->n[1]};
  int64_t rest = i;
  for (int g = 2; g >= 0; g--) {
    int64_t at = rest % h->grid[g], units = (total[g] + h->unit[g] - 1) / h->unit[g];
    rest /= h->grid[g];
    range[g][0] = eini_min64(units * at / h->grid[g] * h->unit[g], total[g]);
    range[g][1] = eini_min64(units * (at + 1) / h->grid[g] * h->unit[g], total[g]);
    if (range[g][0] == range[g][1]) return 0;
  }
  return 1;
}

// What a small contract that scales its results needs: offsets of the columns, and the sums of as
// many rows as tiles have.
typedef struct eini_small_room {
  int64_t *on, *yn;
  char *sums;
} eini_small_room;

static size_t eini_small_carve(const ein_contract *c, const eini_cplan *w, char *base,
                               eini_small_room *r) {
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t n = w->small.n;
  size_t used = 0;
  eini_small_room room;
  if (!c->scaled) return 0;
  if (r == NULL) r = &room;
  r->on = (int64_t *)eini_carve(base, &used, n, 8);
  r->yn = (int64_t *)eini_carve(base, &used, n * c->nextra, 8);
  r->sums = (char *)eini_carve(base, &used, eini_min64(4, w->small.m) * n, t->size * t->planes);
  return used;
}

// Bytes of scratch, aligned to 64, that a part needs: some MB at most, less for small problems.
static size_t eini_contract_scratch(const ein_contract *c, const eini_cplan *w) {
  eini_cjob j;
  if (w->path == EINI_SMALL) return eini_small_carve(c, w, NULL, NULL);
  eini_cjob_init(&j, c, w);
  return eini_cjob_carve(&j, NULL);
}

// The portable kernel's nth way: path and swap from the whole problem, then blocks for every one.
// Gives the multiply-adds of blocks, or -1 where there is no such way.
static double eini_contract_way(const ein_contract *c, int nth, eini_cjob *j, eini_cplan *w) {
  int small[2];
  w->rows = 1;
  for (int swap = 1; swap >= 0; swap--) {
    w->swap = swap;
    eini_cjob_init(j, c, w);
    small[swap] = !c->ordered && eini_small_init(j, c, w);
  }
  const int thin = !c->ordered && (j->ext[0] == 1 || j->ext[1] == 1);
  if (nth > (small[0] || small[1] || thin)) return -1;
  w->path = nth == 1 ? EINI_BLOCK
            : small[0] || small[1] ? EINI_SMALL : thin ? EINI_STREAM : EINI_BLOCK;
  w->swap = 0;  // of ordered ones: complex products add in the order of the sides
  if (w->path == EINI_SMALL) w->swap = small[1] > small[0];
  if (w->path == EINI_STREAM) {
    w->swap = j->ext[0] != 1;
    const ein_side *q = j->side[!w->swap];
    const ein_axes *n = j->axes[!w->swap];
    w->rows = eini_last_step(n, q->row[0]) >= eini_last_step(&c->k, q->k[0]);
  }
  if (w->path != EINI_BLOCK || c->ordered) return 0;
  const double other = eini_block_cost(j, 1), tiles = eini_block_cost(j, 0);
  w->swap = other < tiles;
  return w->swap ? other : tiles;
}

static int eini_contract_plan(const ein_contract *c, int width, int nth, ein_choice *h) {
  static const char *const names[] = {"block", "stream", "small"};
  eini_cjob j;
  eini_cplan w;
  if (c->pair != EIN_PAIR_SUM_MUL || c->p.nop == 0 || c->q.nop == 0) return 0;
  memset(&w, 0, sizeof w);
  memset(h, 0, sizeof *h);
  const double tiles = eini_contract_way(c, nth, &j, &w);
  if (tiles < 0) return 0;
  eini_cjob_init(&j, c, &w);
  eini_small_init(&j, c, &w);
  h->scratch = eini_contract_scratch(c, &w);
  double batch = (double)eini_axes_size(&c->batch), all = (double)j.ext[0] * (double)j.ext[1] *
                 (double)j.kn;
  double adds = w.path == EINI_BLOCK ? tiles / (double)j.kern->lanes : all;
  if (w.path == EINI_STREAM) adds *= EINI_STREAM_MULADDS;
  if (w.path == EINI_BLOCK)  // packing, and stores through emit_fn
    adds += EINI_PACK_MULADDS * (double)j.kn * (double)(j.ext[0] + j.ext[1]) +
            (c->plain_out ? 0.0 : (double)j.ext[0] * (double)j.ext[1]);
  const double lines = (double)(w.rows ? j.ext[1] : j.kn);
  const double begin = w.path == EINI_SMALL ? EINI_SMALL_SECONDS
                       : w.path == EINI_BLOCK ? EINI_TILES_SECONDS
                                              : EINI_STREAM_SECONDS + EINI_LINE_SECONDS * lines;
  const double m = (double)eini_axes_size(&c->m), n = (double)eini_axes_size(&c->n);
  const double made = (double)j.kn * (m * eini_side_cycles(&c->p) + n * eini_side_cycles(&c->q)) +
                      m * n * eini_store_cycles(c);
  h->seconds = batch * (adds * (double)j.kern->planes * EINI_MULADD_SECONDS +
                        made * EINI_CYCLE_SECONDS + begin) + EINI_CALL_SECONDS;
  if (w.path == EINI_BLOCK) {  // see eini_run_block; where panels do not stay, tiles do
    const double rows = (double)j.ext[0], cols = (double)j.ext[1];
    const double fast = c->rates == NULL ? 0 : c->rates->fast_bytes;
    const int stay = fast >= (double)(EINI_MC + EINI_NC) * EINI_KC * 4;
    const double on = ceil(cols / (double)(stay ? EINI_NC : j.kern->nr));
    const double down = ceil(rows / (double)(stay ? EINI_MC : EINI_R));
    h->traffic = batch * ((double)j.kn * (rows * on + cols * down) + m * n) * (double)j.unit;
  }
  h->unit[0] = h->unit[1] = h->unit[2] = 1;
  h->batches = 1;
  int cut = batch * all >= 32768;
  eini_contract_grid(h, cut ? width : 1, eini_axes_size(&c->batch),
                     w.path == EINI_SMALL ? 1 : eini_axes_size(&c->m),
                     w.path == EINI_SMALL ? 1 : eini_axes_size(&c->n));
  snprintf(h->variant, sizeof h->variant, "%s", names[w.path]);
  memcpy(h->state, &w, sizeof w);
  ein_choice own;  // blocks in place of the first way: the model is not to overrule the rule
  if (nth == 1 && eini_contract_plan(c, width, 0, &own) && h->seconds < own.seconds)
    h->seconds = own.seconds;
  return 1;
}

// Bytes from the address of batch 0 to that of batch b, for stream o.
static int64_t eini_batch_shift(const ein_axes *x, int64_t b, const int64_t *const *stride, int o,
                                int size) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) {
    off += (d == 0 ? b : b % x->extent[d]) * stride[o][d];
    if (d > 0) b /= x->extent[d];
  }
  return off * size;
}

static int64_t eini_dtype_bytes(ein_dtype t) { return (int64_t)eini_dtypes[t].size; }

// The rows of a small contract whose results are scaled, as many at once as tiles have.
static void eini_small_scaled(const ein_contract *c, const eini_cplan *w, const char *p,
                              const char *q, const char *y, char *out, char *scratch) {
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t *const om = w->swap ? c->out_n : c->out_m;
  const int64_t n = w->small.n, size = t->size * t->planes;
  const ein_axes *rows = w->swap ? &c->n : &c->m, *cols = w->swap ? &c->m : &c->n;
  eini_small_room r;
  eini_small s = w->small;
  int64_t ym = 0;
  eini_small_carve(c, w, scratch, &r);
  s.om = n, s.on = 1;
  eini_table(cols, w->swap ? c->out_m : c->out_n, 0, n, n, r.on);
  if (c->nextra > 0) {
    ym = eini_axes_only(rows, w->swap ? c->extra_n[0] : c->extra_m[0]);
    eini_table(cols, w->swap ? c->extra_m[0] : c->extra_n[0], 0, n, n, r.yn);
  }
  for (int64_t i = 0; i < w->small.m; i += s.m) {
    s.m = eini_min64(4, w->small.m - i);
    t->small(&s, t->planes, p + i * s.pm * size, q, r.sums);
    for (int64_t h = 0; h < s.m; h++)
      t->scale(n, t->planes, c->alpha, c->beta, r.sums + h * n * size,
               c->beta == NULL ? NULL : y + (i + h) * ym * size, r.yn,
               out + (i + h) * eini_axes_only(rows, om) * size, r.on);
  }
}

static void eini_contract_small(const ein_contract *c, const eini_cplan *w, const ein_part *part,
                                char *scratch) {
  const ein_side *p = w->swap ? &c->q : &c->p, *q = w->swap ? &c->p : &c->q;
  const eini_ckern *t = eini_ckern_of(c->type);
  int size = t->size * t->planes;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    const char *x = p->base[0] + eini_batch_shift(&c->batch, b, p->batch, 0, size);
    const char *y = q->base[0] + eini_batch_shift(&c->batch, b, q->batch, 0, size);
    char *out = c->out + eini_batch_shift(&c->batch, b, &c->out_batch, 0, size);
    if (!c->scaled) {
      t->small(&w->small, t->planes, x, y, out);
      continue;
    }
    const char *old = c->nextra == 0 ? NULL : c->extra_base[0] +
                      eini_batch_shift(&c->batch, b, c->extra_batch, 0, size);
    eini_small_scaled(c, w, x, y, old, out, scratch);
  }
}

// Runs a part of a planned contraction. for batch: the path's loops over m, n, k
static void eini_contract_run(const ein_contract *c, const ein_choice *h, const ein_part *part,
                              void *scratch) {
  const ein_axes *x = &c->batch;
  eini_cplan w;
  memcpy(&w, h->state, sizeof w);
  if (w.path == EINI_SMALL) {
    eini_contract_small(c, &w, part, (char *)scratch);
    return;
  }
  eini_cjob j;
  eini_cjob_init(&j, c, &w);
  if (j.ext[0] == 0 || j.ext[1] == 0) return;
  for (int i = 0; i < 2; i++) {
    j.from[w.swap ? 1 - i : i] = i ? part->n[0] : part->m[0];
    j.upto[w.swap ? 1 - i : i] = i ? part->n[1] : part->m[1];
  }
  eini_cjob_carve(&j, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    for (int s = 0; s < 2; s++) {
      const ein_side *y = j.side[s];
      for (int o = 0; o < y->nop; o++) {
        j.at[s][o] =
            y->base[o] + eini_batch_shift(x, b, y->batch, o, (int)eini_dtype_bytes(y->dtype[o]));
      }
    }
    for (int e = 0; e < c->nextra; e++) {
      int size = (int)eini_dtype_bytes(c->extra_dtype[e]);
      j.xat[e] = c->extra_base[e] + eini_batch_shift(x, b, c->extra_batch, e, size);
    }
    int size = (int)eini_dtype_bytes(c->out_dtype);
    j.out = c->out + eini_batch_shift(x, b, &c->out_batch, 0, size);
    (w.path == EINI_STREAM ? eini_run_stream : eini_run_block)(&j);
  }
}
