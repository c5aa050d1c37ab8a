// ================================================================================================
// >>lanes-batch  products whose batch steps over pieces
// An index of many values that both operands and the output have, as in ijk,ijk->ij: its values are
// lanes. What steps over pieces along it is turned, what lies along it is taken where it is; an
// operand that does so in pages of their own is copied, many lanes of a page at once.
// ================================================================================================

enum { EINI_LANES_P, EINI_LANES_Q, EINI_LANES_Y };

// Rows of a block, row-major, the last the fastest: m or n (of the output both), k, then d, the
// other indices of the batch.
typedef struct eini_lanes_three {
  const ein_contract *c;
  const eini_dir_kern *kern;
  eini_lanes_by by;
  int axis, past;              // of the batch; see EINI_LANES_PAST
  int64_t size, lanes;         // values of it; of a block
  int64_t nd, nk, nm, nn;
  eini_lanes_move move[3];     // step 1: in place, without a block, unless copied
  int64_t inner;               // the last axis of k; the others have tables
  int64_t *pk, *qk, *prow, *qrow, *ym, *yn, *d[3];
  char *base[3];               // of the lanes at hand
} eini_lanes_three;

static int eini_lanes_three_take(eini_lanes_three *j, const ein_contract *c, int isa) {
  memset(j, 0, sizeof *j);
  j->c = c, j->kern = eini_dir_kern_of(isa, c->type);
  j->axis = eini_lanes_longest(&c->batch);
  eini_lanes_by_of(isa, c->type, &j->by);
  if (j->axis < 0 || j->kern == NULL || j->by.turn == NULL) return 0;
  j->size = c->batch.extent[j->axis];
  j->nd = eini_axes_size(&c->batch) / eini_max64(j->size, 1);
  j->nk = eini_axes_size(&c->k), j->nm = eini_axes_size(&c->m), j->nn = eini_axes_size(&c->n);
  j->inner = c->k.n > 0 ? c->k.extent[c->k.n - 1] : 1;
  j->move[EINI_LANES_P].step = c->p.batch[0][j->axis];
  j->move[EINI_LANES_Q].step = c->q.batch[0][j->axis];
  j->move[EINI_LANES_Y].step = c->out_batch[j->axis];
  j->move[EINI_LANES_P].piece.n = j->nm * j->nk * j->nd;
  j->move[EINI_LANES_Q].piece.n = j->nn * j->nk * j->nd;
  j->move[EINI_LANES_Y].piece.n = j->nm * j->nn * j->nd;
  return 1;
}

static eini_lanes_axes eini_lanes_three_axes(const eini_lanes_three *j, int i) {
  const ein_contract *c = j->c;
  const int q = i == EINI_LANES_Q, y = i == EINI_LANES_Y;
  const ein_side *s = q ? &c->q : &c->p;
  eini_lanes_axes a;
  a.n = 0;
  eini_lanes_add(&a, &c->batch, y ? c->out_batch : s->batch[0], j->axis, 1);
  eini_lanes_add(&a, y ? &c->n : &c->k, y ? c->out_n : s->k[0], -1, j->nd);
  eini_lanes_add(&a, q ? &c->n : &c->m, y ? c->out_m : s->row[0], -1, j->nd * (y ? j->nn : j->nk));
  return a;
}

// Whether operand i is taken, or the output left, where it is.
static int eini_lanes_in_place(const eini_lanes_three *j, int i) {
  return j->move[i].step == 1 && !j->move[i].copied;
}

static size_t eini_lanes_three_carve(eini_lanes_three *j, char *base) {
  eini_lanes_axes axes[3];
  int64_t most = 0;
  size_t used = 0;
  for (int i = 0; i < 3; i++) axes[i] = eini_lanes_three_axes(j, i);
  j->by.apart = eini_lanes_apart(&j->by, j->lanes, 3, j->move, axes);
  j->pk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->qk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->prow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->ym = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->qrow = (int64_t *)(void *)eini_carve(base, &used, j->nn, 8);
  j->yn = (int64_t *)(void *)eini_carve(base, &used, j->nn, 8);
  for (int i = 0; i < 3; i++) {
    j->d[i] = (int64_t *)(void *)eini_carve(base, &used, j->nd, 8);
    if (eini_lanes_in_place(j, i)) continue;
    most = eini_max64(most, j->move[i].piece.n);
    eini_lanes_carve_move(&j->by, &j->move[i], j->lanes,
                          eini_lanes_joins(&j->by, &j->move[i], &axes[i]), base, &used);
  }
  if (j->past) eini_lanes_carve_past(&j->by, &j->move[EINI_LANES_Y], j->lanes, base, &used);
  eini_lanes_carve_by(&j->by, most, base, &used);
  return used;
}

// Lanes of a row of an operand's block: of those that are copied a vector's.
static int64_t eini_lanes_pitch(const eini_lanes_three *j, int i, int64_t lanes) {
  return j->move[i].copied ? j->kern->lanes : lanes;
}

// All tables, for blocks of so many lanes.
static void eini_lanes_three_tables(eini_lanes_three *j, int64_t lanes) {
  const ein_contract *c = j->c;
  const int64_t d = lanes, k = j->nd * d, y = j->nn * k;
  const int p = eini_lanes_in_place(j, EINI_LANES_P), q = eini_lanes_in_place(j, EINI_LANES_Q);
  const int to = eini_lanes_in_place(j, EINI_LANES_Y);
  const ein_axes outer = {c->k.n > 0 ? c->k.n - 1 : 0, c->k.extent};
  const int64_t nk = j->nk / j->inner;
  const int64_t dp = eini_lanes_pitch(j, EINI_LANES_P, lanes), kp = j->nd * dp;
  const int64_t dq = eini_lanes_pitch(j, EINI_LANES_Q, lanes), kq = j->nd * dq;
  eini_lanes_offsets(&outer, -1, c->p.k[0], nk, kp * j->inner, p, j->pk);
  eini_lanes_offsets(&outer, -1, c->q.k[0], nk, kq * j->inner, q, j->qk);
  eini_lanes_offsets(&c->m, -1, c->p.row[0], j->nm, j->nk * kp, p, j->prow);
  eini_lanes_offsets(&c->n, -1, c->q.row[0], j->nn, j->nk * kq, q, j->qrow);
  eini_lanes_offsets(&c->m, -1, c->out_m, j->nm, y, to, j->ym);
  eini_lanes_offsets(&c->n, -1, c->out_n, j->nn, k, to, j->yn);
  eini_lanes_offsets(&c->batch, j->axis, c->p.batch[0], j->nd, dp, p, j->d[EINI_LANES_P]);
  eini_lanes_offsets(&c->batch, j->axis, c->q.batch[0], j->nd, dq, q, j->d[EINI_LANES_Q]);
  eini_lanes_offsets(&c->batch, j->axis, c->out_batch, j->nd, d, to, j->d[EINI_LANES_Y]);
}

// Products of a block of n values: vectors times vectors.
static void eini_lanes_three_multiply(const eini_lanes_three *j, int64_t n, int64_t lanes) {
  const ein_contract *c = j->c;
  const int64_t z = j->by.size, vl = j->kern->lanes;
  const int last = c->k.n - 1, p_here = eini_lanes_in_place(j, EINI_LANES_P);
  const int q_here = eini_lanes_in_place(j, EINI_LANES_Q);
  const int64_t prow = j->nd * eini_lanes_pitch(j, EINI_LANES_P, lanes);
  const int64_t qrow = j->nd * eini_lanes_pitch(j, EINI_LANES_Q, lanes);
  const int64_t pk = last < 0 ? 0 : p_here ? c->p.k[0][last] : prow;
  const int64_t qk = last < 0 ? 0 : q_here ? c->q.k[0][last] : qrow;
  // From a vector to the next, in vectors' lanes.
  const int64_t pv = j->move[EINI_LANES_P].copied ? j->move[EINI_LANES_P].piece.n : 1;
  const int64_t qv = j->move[EINI_LANES_Q].copied ? j->move[EINI_LANES_Q].piece.n : 1;
  eini_dir_tile t = {j->nk / j->inner, j->inner, pk, qk, j->pk, j->qk, NULL, NULL, NULL, NULL,
                     NULL, 0, 0, 0};
  for (int64_t i = 0; i < n; i += vl)
    for (int64_t d = 0; d < j->nd; d++) {
      t.p = j->base[EINI_LANES_P] + (j->d[EINI_LANES_P][d] + i * pv) * z;
      t.last = (int)eini_min64(vl, n - i);
      // Rows of P stay in the first cache for all of Q.
      for (int64_t m = 0; m < j->nm; m += t.rows) {
        const int rows = eini_dir_tile_rows(j->kern, j->nm - m, 1, &t.rows);
        t.prow = j->prow + m, t.orow = j->ym + m;
        for (int64_t b = 0; b < j->nn; b++) {
          t.q = j->base[EINI_LANES_Q] + (j->d[EINI_LANES_Q][d] + j->qrow[b] + i * qv) * z;
          t.out = j->base[EINI_LANES_Y] + (j->d[EINI_LANES_Y][d] + j->yn[b] + i) * z;
          j->kern->lane[rows](&t);
        }
      }
    }
}

static ein_status eini_lanes_three_run(const eini_cpu *cpu, const ein_contract *c,
                                       const ein_choice *choice, const ein_part *part,
                                       void *scratch) {
  eini_lanes_three j;
  int64_t behind[3] = {0, 0, 0}, tabled = -1;
  if (!eini_lanes_three_take(&j, c, cpu->isa)) return EIN_ERR_INTERNAL;
  j.lanes = choice->state[EINI_LANES_BLOCK], j.past = (int)choice->state[EINI_LANES_PAST];
  for (int i = 0; i < 2; i++) j.move[i].copied = (int)(choice->state[EINI_LANES_COPIED] >> i & 1);
  eini_lanes_three_carve(&j, (char *)scratch);
  eini_lanes_begin(&j.move[EINI_LANES_Y]);
  for (int i = 0; i < 2; i++) eini_lanes_expect(cpu, &j.by, j.size, j.lanes, &j.move[i]);
  for (int i = 0; i < 3; i++) {
    if (eini_lanes_in_place(&j, i)) continue;
    const eini_lanes_axes axes = eini_lanes_three_axes(&j, i);
    eini_lanes_enumerate(&axes, &j.move[i].piece);
    if (!j.move[i].copied) behind[i] = eini_lanes_behind(&j.by, &j.move[i]);
  }
  const int64_t from = j.axis == 0 ? part->batch[0] / j.nd : 0;
  const int64_t to = j.axis == 0 ? part->batch[1] / j.nd : j.size, z = j.by.size;
  const char *in[2] = {c->p.base[0], c->q.base[0]};
  const int64_t safe = eini_min64(j.size - eini_max64(behind[0], behind[1]), to - behind[2]);
  eini_lanes_range r;
  for (int64_t e = from; e < to; e += r.n) {
    r = eini_lanes_next(&j.by, 3, j.move, j.lanes, to - e, safe - e, j.kern->lanes);
    if (r.lanes != tabled) eini_lanes_three_tables(&j, tabled = r.lanes);
    for (int i = 0; i < 2; i++) {
      const char *at = in[i] + e * j.move[i].step * z;
      j.base[i] = j.move[i].block;
      if (j.move[i].copied) eini_lanes_copy(&j.by, &j.move[i], at, r.n, j.kern->lanes);
      else if (j.move[i].step == 1) j.base[i] = (char *)(uintptr_t)at;
      else eini_lanes_in(&j.by, &j.move[i], at, &r);
    }
    eini_lanes_move *y = &j.move[EINI_LANES_Y];
    char *out = c->out + e * y->step * z;
    j.base[EINI_LANES_Y] = y->step == 1 ? out : y->block;
    eini_lanes_three_multiply(&j, r.n, r.lanes);
    if (y->step != 1) eini_lanes_out(&j.by, y, out, &r);
  }
  eini_lanes_end(&j.move[EINI_LANES_Y]);
  return EIN_OK;
}

// 1: something is turned or copied, and a quarter of the second cache has a vector of each of its
// reals. Says what is copied.
static int eini_lanes_three_fits(const eini_cpu *cpu, eini_lanes_three *j) {
  const int64_t most = cpu->l2 / 4 / (j->kern->lanes * j->by.size);
  int turned = 0;
  if (j->size < 2 * j->kern->lanes || j->nk < 1 || j->nm < 1 || j->nn < 1 || j->nd < 1) return 0;
  for (int i = 0; i < 3; i++) {
    const eini_lanes_axes axes = eini_lanes_three_axes(j, i);
    j->move[i].copied = i < EINI_LANES_Y && j->move[i].step == 1 && j->move[i].piece.n <= most &&
                        j->move[i].piece.n >= EINI_LANES_ROWS &&
                        eini_lanes_pages(&axes, INT64_MAX / j->by.size, j->by.size) > 0;
    turned += j->move[i].copied;
    if (j->move[i].step == 1) continue;
    if (i < EINI_LANES_Y ? !eini_lanes_short(&j->move[i], &axes, most)
                         : !eini_lanes_one_run(&j->by, &j->move[i], &axes, most))
      return 0;
    turned++;
  }
  return turned > 0;
}

#define EINI_LANES_COPY 5       // cycles of a vector that is copied
#define EINI_LANES_LOAD 1.25    // cycles of a product of vectors, whose rows are loaded for each

// Seconds of reading again what the first cache does not keep: rows of P's tile for each of Q's,
// and those for each tile.
static double eini_lanes_three_again(const eini_rated *cpu, const eini_lanes_three *j) {
  const double line = (double)(j->nk * j->kern->lanes * j->by.size);
  const double keep = 0.7 * (double)cpu->is.l1;
  const double vectors = ceil((double)j->size / j->kern->lanes) * (double)j->nd;
  const double rows = fmin((double)j->nm, (double)j->kern->rows), q = (double)j->nn * line;
  return eini_dir_missed(cpu, keep, (rows + 1) * line, vectors * (double)j->nm * q, NULL) +
         eini_dir_missed(cpu, keep, q, vectors * ceil((double)j->nm / rows) * q, NULL);
}

static double eini_lanes_three_seconds(const eini_rated *cpu, const eini_lanes_three *j) {
  const double size = (double)eini_up(j->size, j->kern->lanes), k = (double)j->nk;
  const double rows = (double)(j->nd * j->nn * j->nm);
  const double tiles = (double)(j->nd * j->nn) * ceil((double)j->nm / j->kern->rows);
  double turned = 0, copied = 0, bytes[2] = {0, 0}, pages = 0;
  for (int i = 0; i < 3; i++) {
    bytes[i == EINI_LANES_Y] += size * (double)j->move[i].piece.n * (double)j->by.size;
    const eini_lanes_axes axes = eini_lanes_three_axes(j, i);
    if (j->move[i].step == 1) {
      const double lanes = (double)(j->move[i].copied ? j->lanes : j->kern->lanes);
      pages += eini_lanes_pages(&axes, INT64_MAX / j->by.size, j->by.size) / lanes;
      copied += (double)(j->move[i].copied * j->move[i].piece.n);
      continue;
    }
    turned += eini_lanes_granules(&j->by, &j->move[i], &axes);
    pages += eini_lanes_pages(&axes, j->move[i].step, j->by.size);
  }
  const double one = fmax(rows * k * EINI_LANES_LOAD, tiles * k * 4) + tiles * EINI_LANES_TILE +
                     copied * EINI_LANES_COPY;
  const double busy =
      size * ((turned * EINI_LANES_TURN(j->by.size) + one / j->kern->lanes) / cpu->hz + pages) +
      eini_lanes_three_again(cpu, j);
  const double move = eini_lanes_moved(cpu, bytes[0], bytes[1], j->past);
  return eini_cpu_beside(busy, move, EINI_CPU_BESIDE);
}

// Bytes to and from the second cache: Q is read again for each tile of rows where a vector of each
// of its reals does not fit.
static double eini_lanes_three_traffic(const eini_rated *cpu, const eini_lanes_three *j) {
  const double size = (double)j->size * (double)j->by.size, rows = (double)j->kern->rows;
  const double q = (double)j->move[EINI_LANES_Q].piece.n;
  double moved = 0;
  for (int i = 0; i < 3; i++) moved += size * (double)j->move[i].piece.n;
  (void)eini_dir_missed(cpu, 0.5 * (double)cpu->is.l2,
                        (double)(j->nn * j->nk * j->kern->lanes * j->by.size),
                        (ceil((double)j->nm / rows) - 1) * size * q, &moved);
  return moved;
}

static int eini_lanes_three_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                 ein_choice *choice) {
  eini_lanes_three j;
  int64_t each = 0;
  if (!eini_lanes_able(c) || !eini_lanes_three_take(&j, c, cpu->is.isa)) return 0;
  if (!eini_lanes_three_fits(&cpu->is, &j)) return 0;
  const double all = (double)(j.size * j.by.size);
  j.past = j.move[EINI_LANES_Y].step != 1 &&
           eini_lanes_past(cpu, &j.move[EINI_LANES_Y], all * (double)j.move[EINI_LANES_Y].piece.n,
                           all * (double)(j.move[0].piece.n + j.move[1].piece.n));
  for (int i = 0; i < 3; i++)
    each += eini_lanes_in_place(&j, i) ? 0 : (j.move[i].piece.n + 1) * j.by.size;
  each += j.past * j.move[EINI_LANES_Y].piece.n * j.by.size;
  const int copied = j.move[0].copied | j.move[1].copied << 1;
  const int64_t least = copied ? eini_min64(4, cpu->is.l2 / 4 / (each * j.kern->lanes)) : 1;
  j.lanes = eini_lanes_blocks(cpu, j.kern, each, least, j.size, j.axis == 0 ? j.nd : 0, 0, choice);
  choice->scratch = eini_lanes_three_carve(&j, NULL);
  choice->seconds = cpu->call + 1e-7 +
                    eini_lanes_three_seconds(cpu, &j) / eini_dir_threads(choice, width);
  choice->traffic = eini_lanes_three_traffic(cpu, &j);
  choice->state[EINI_LANES_BLOCK] = j.lanes, choice->state[EINI_LANES_PAST] = j.past;
  choice->state[EINI_LANES_COPIED] = copied;
  eini_cpu_name(choice, "lanes of batch");
  return 1;
}
#undef EINI_LANES_TILE
#undef EINI_LANES_WAIT
#undef EINI_LANES_REST
#undef EINI_LANES_TURN
#undef EINI_LANES_LOAD
#undef EINI_LANES_COPY

static const eini_cpu_family eini_lanes_batch = {"lanes of batch", eini_lanes_three_plan,
                                                 eini_lanes_three_run};
