// ================================================================================================
// >>element-rows  small products of elements in rows
// The same contractions where e is not the fastest axis in memory: nothing is turned. Each e is a
// row; lanes are the axes that only q gives to the output, which must be contiguous there, and for
// the factors' product an axis of one factor. What is between is a block of rows of e, or stays in
// ================================================================================================

// registers: out[e,i] = sum over f of x[f,e] * sum over j of g[f,e,j] * q[f,i,j].

#define EINI_ROWS_BYTES 32768   // of the blocks
enum { EINI_ROWS_LEAST = 16, EINI_ROWS_MOST = 256 };  // e of a block

typedef struct eini_dir_rows {
  eini_dir_elem v;
  int scaled;                  // both steps are one: sums times scalars of the other factor
  int64_t len, lanes;          // reals of a vector of factors, and of a row of sums
  int64_t from, to, out;       // reals from e to e of what sums read and write, of the output
  int64_t k0, pk, qk;          // the innermost axis of sums, and steps along it
  eini_elem_list k1;           // the other axes of sums
  int64_t *frow, *trow;        // a block's rows of what sums read and write
} eini_dir_rows;

// The axis of `axes` with unit steps in a stream, else the last of them; -1: none.
static int eini_rows_unit(const eini_dir_elem *v, unsigned axes, int stream) {
  int at = -1;
  for (int d = 0; d < v->all.n; d++) {
    if (!(axes >> d & 1)) continue;
    at = d;
    if (v->all.stride[stream][d] == 1) break;
  }
  return at;
}

// Both steps. first: the factors are multiplied first, vectors along axis w of factor u alone; else
// factor u and the small operand. 0: not this way
static int eini_rows_order(eini_dir_rows *r, int first, int u) {
  eini_dir_elem *v = &r->v;
  const unsigned every = (1U << v->all.n) - 1, in = v->in[u], other = v->in[1 - u];
  const unsigned n = every & ~v->k & ~v->rows;  // of the other group: the lanes of the output
  const unsigned k = v->k & v->small & (first ? every : in & ~other);
  const unsigned loop = first ? v->rows : in & ~k, lanes = first ? n : v->small & ~loop & ~k;
  const int made = v->nt ? EINI_ELEM_SUMS : EINI_ELEM_OUT;
  const int from = first ? EINI_ELEM_BETWEEN : u, to = first ? made : EINI_ELEM_BETWEEN;
  const int w = first ? eini_rows_unit(v, k & in & ~other, u) : -1;
  const int k0 = first ? w : eini_rows_unit(v, k, u);
  if ((first && (w < 0 || v->all.stride[u][w] != 1)) || (!first && k == 0)) return 0;
  if (n & ~v->small) return 0;
  const unsigned inner = k0 < 0 ? 0 : 1U << k0;
  v->first = first, v->u = u;
  if (first) eini_elem_lay(v, EINI_ELEM_BETWEEN, inner, k & ~inner, loop, 1);
  else eini_elem_lay(v, EINI_ELEM_BETWEEN, n, lanes & ~n, loop, 1);
  eini_elem_lay(v, EINI_ELEM_PACKED, n, lanes & ~n, v->small & ~lanes, 1);
  eini_elem_lay(v, EINI_ELEM_SUMS, n, 0, 0, 1);
  r->lanes = eini_elem_size(v, lanes);
  for (int d = 0; d < v->all.n; d++) {
    const int64_t step = v->all.stride[EINI_ELEM_SUMS][d];
    if ((n >> d & 1) && v->all.stride[EINI_ELEM_OUT][d] != step) return 0;
  }
  const int64_t line = eini_elem_size(v, n);
  v->columns[EINI_ELEM_SUMS] = line * eini_elem_size(v, v->rows);
  for (int64_t d = v->all.n - 1, size = line * v->wide; d >= 0; d--) {
    if (v->rows >> d & 1) v->all.stride[EINI_ELEM_SUMS][d] = size, size *= v->all.extent[d];
  }
  // Whole vectors are stored there: what is too much is overwritten later, or falls in the pad.
  const int64_t column = v->columns[EINI_ELEM_BETWEEN] += v->j.kern->lanes;
  r->out = v->nt ? line : v->step[2];
  r->len = first ? v->all.extent[w] : line;
  r->from = first ? column : v->step[u], r->to = first ? r->out : column;
  r->k0 = k0 < 0 ? 1 : v->all.extent[k0];
  r->pk = k0 < 0 ? 0 : v->all.stride[from][k0];
  r->qk = k0 < 0 ? 0 : v->all.stride[EINI_ELEM_PACKED][k0];
  const unsigned made_axes = first ? loop | (k & ~inner) : v->rows;  // of products of factors
  const unsigned vary = first ? in : loop | lanes;                  // axes of their vectors
  eini_elem_set(v, &v->sum_loop, loop, 3, EINI_ELEM_PACKED, from, to);
  eini_elem_set(v, &r->k1, k & ~inner, 2, from, EINI_ELEM_PACKED, 0);
  eini_elem_set(v, &v->mul_loop, made_axes & vary, 3, 1 - u, first ? u : EINI_ELEM_BETWEEN,
                first ? EINI_ELEM_BETWEEN : made);
  eini_elem_set(v, &v->mul_row, made_axes & ~vary, 2, 1 - u, v->mul_loop.stream[2], 0);
  eini_elem_set(v, &v->mul_k, v->k & ~k, 2, 1 - u, v->mul_loop.stream[1], 0);
  eini_elem_set(v, &v->move[2].rest, v->rows, 2, EINI_ELEM_OUT, EINI_ELEM_SUMS, 0);
  // Each sum with the small operand has one use: it stays in registers.
  r->scaled = !first && lanes == n && (loop & v->k) == (v->k & ~k) && v->mul_row.n == 1 &&
              eini_elem_size(v, loop) <= EINI_ELEM_TABLE;
  if (r->scaled) {
    v->columns[EINI_ELEM_BETWEEN] = 0;
    r->to = r->out;
    eini_elem_set(v, &v->sum_loop, v->rows, 3, 1 - u, u, made);
    eini_elem_set(v, &v->mul_k, v->k & ~k, 3, 1 - u, u, EINI_ELEM_PACKED);
  }
  return 1;
}

// Cycles of both steps for one e.
static double eini_rows_cycles(const eini_dir_rows *r, double fma) {
  const eini_dir_elem *v = &r->v;
  const double n = (double)v->j.kern->lanes, vectors = ceil((double)r->lanes / n);
  const double k = (double)(r->k0 * r->k1.n), loop = (double)v->mul_loop.n;
  const double rows = (double)v->mul_row.n, mk = (double)v->mul_k.n;
  if (r->scaled) return (double)v->sum_loop.n * vectors * (1.1 * fma * mk * (k + 1) + 3);
  return (double)v->sum_loop.n * vectors * (1.2 * fma * k + 3) +
         loop * ceil((double)r->len / n) * (mk * (1 + rows) + 2 * rows) + 2 * loop;
}

static int eini_rows_sides(eini_dir_rows *r, const eini_cpu *cpu, const ein_contract *c, int nt) {
  eini_dir_elem *v = &r->v;
  memset(r, 0, sizeof *r);
  if (!eini_elem_sides(v, cpu, c)) return 0;
  v->nt = nt && v->step[2] == v->j.x[EINI_DIR_M + EINI_DIR_N - v->group].size;
  return 1;
}

// What rates decide. 0: not of this kind
static int eini_rows_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_rows r;
  double least = 0;
  int best = -1;
  if (!eini_rows_sides(&r, &cpu->is, c, 0)) return 0;
  s[EINI_ELEM_NT] = eini_cpu_past(cpu, eini_dir_out_bytes(&r.v.j));
  eini_rows_sides(&r, &cpu->is, c, s[EINI_ELEM_NT] != 0);
  for (int way = 0; way < 4; way++) {
    if (!eini_rows_order(&r, way < 2, way & 1)) continue;
    const double cycles = eini_rows_cycles(&r, eini_elem_fma(cpu, &r.v));
    if (best >= 0 && cycles >= least) continue;
    best = way, least = cycles;
  }
  s[EINI_ELEM_WAY] = best;
  return best >= 0;
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_rows_init(eini_dir_rows *r, const eini_cpu *cpu, const ein_contract *c,
                          const int64_t *decided, const ein_part *part) {
  eini_dir_elem *v = &r->v;
  const int best = (int)decided[EINI_ELEM_WAY];
  if (!eini_rows_sides(r, cpu, c, decided[EINI_ELEM_NT] != 0)) return 0;
  if (!eini_rows_order(r, best < 2, best & 1)) return 0;
  const int64_t columns = v->columns[EINI_ELEM_BETWEEN] + (v->nt ? v->columns[EINI_ELEM_SUMS] : 0);
  if (columns > EINI_ELEM_TABLE || v->columns[EINI_ELEM_PACKED] > EINI_ELEM_TABLE) return 0;
  const int64_t bytes = r->scaled ? EINI_ROWS_BYTES / 4 : EINI_ROWS_BYTES;
  v->wide = eini_dir_clamp(bytes / (eini_max64(columns, 1) * v->j.unit), 8, EINI_ROWS_LEAST,
                           EINI_ROWS_MOST);
  eini_rows_order(r, best < 2, best & 1);
  eini_elem_cut(v, part);
  return 1;
}

static size_t eini_rows_carve(eini_dir_rows *r, char *base) {
  eini_dir_elem *v = &r->v;
  const int64_t unit = v->j.unit;
  size_t used = 0;
  int64_t sums = v->nt ? v->columns[EINI_ELEM_SUMS] * v->wide : 0;
  v->block[EINI_ELEM_BETWEEN] =
      (char *)eini_carve(base, &used, v->columns[EINI_ELEM_BETWEEN] * v->wide, unit);
  v->block[EINI_ELEM_PACKED] =
      (char *)eini_carve(base, &used, v->columns[EINI_ELEM_PACKED] + v->j.kern->lanes, unit);
  v->block[EINI_ELEM_SUMS] = (char *)eini_carve(base, &used, sums, unit);
  r->frow = (int64_t *)eini_carve(base, &used, v->wide * 8, 1);
  r->trow = (int64_t *)eini_carve(base, &used, v->wide * 8, 1);
  eini_elem_tables(v, base, &used);
  eini_elem_fill(v, &r->k1, base, &used);
  eini_elem_moves(v, 2, base, &used);
  eini_elem_fill(v, &v->move[2].rest, base, &used);
  v->move[2].step = 0;  // its lines are not asked for
  return used;
}

// Where element e0 of a stream is: in memory, or the start of a block.
static char *eini_rows_at(const eini_dir_elem *v, int stream, int64_t e0) {
  const int memory = stream < 2 ? v->s0 + stream : EINI_DIR_OUT;
  if (stream >= EINI_ELEM_BLOCK && stream != EINI_ELEM_OUT) return v->block[stream];
  return (char *)(uintptr_t)v->j.at[memory] + e0 * v->step[stream < 2 ? stream : 2] * v->j.unit;
}

// Sums of products with the small operand: rows are n elements from e0 on.
static void eini_rows_sums(eini_dir_rows *r, int64_t e0, int64_t n) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->sum_loop;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t unit = v->j.unit, vectors = (r->lanes + kern->lanes - 1) / kern->lanes;
  const char *from = eini_rows_at(v, loop->stream[1], e0);
  char *to = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_tile t;
  memset(&t, 0, sizeof t);
  t.k1 = r->k1.n, t.k0 = r->k0, t.pk = r->pk, t.qk = r->qk;
  t.pk1 = r->k1.off[0], t.qk1 = r->k1.off[1];
  for (int64_t b = 0; b < loop->n; b++) {
    t.q = v->block[EINI_ELEM_PACKED] + loop->off[0][b] * unit;
    t.p = from + loop->off[1][b] * unit;
    t.out = to + loop->off[2][b] * unit;
    for (int64_t i = 0, l; i < vectors; i += l) {
      const int64_t left = vectors - i;
      l = eini_dir_strip(left);
      t.last = left > l || !v->first ? kern->lanes :
               (int)(r->lanes - (vectors - 1) * kern->lanes);
      for (int64_t e = 0; e < n; e += t.rows) {
        const int which = eini_dir_tile_rows(v->j.kern, n - e, l, &t.rows);
        t.prow = r->frow + e;
        t.orow = r->trow + e;
        kern->tile[l - 1][which](&t);
        eini_elem_ahead_some(v);
      }
      t.q += l * kern->lanes * unit;
      t.out += l * kern->lanes * unit;
    }
  }
}

// Sums of products of both factors, or of one factor and what is between.
static void eini_rows_products(const eini_dir_rows *r, int64_t e0, int64_t n) {
  const eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->mul_loop;
  const int64_t unit = v->j.unit, column = v->columns[EINI_ELEM_BETWEEN];
  const char *p = eini_rows_at(v, loop->stream[0], e0), *q = eini_rows_at(v, loop->stream[1], e0);
  char *out = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_bands t;
  t.n = n, t.k = v->mul_k.n, t.len = r->len, t.pe = v->step[1 - v->u];
  t.qe = v->first ? v->step[v->u] : column;
  t.oe = v->first ? column : r->out;
  t.pk = v->mul_k.off[0], t.qk = v->mul_k.off[1];
  t.masked = v->first ? (v->mul_row.n == 1 || loop->n == 1) * n :
             t.oe == t.len ? n - (v->j.kern->lanes + t.len - 1) / t.len : 0;
  for (int64_t b = 0; b < loop->n; b++) {
    t.p = p + loop->off[0][b] * unit;
    t.q = q + loop->off[1][b] * unit;
    t.out = out + loop->off[2][b] * unit;
    for (int64_t i = 0, most; i < v->mul_row.n; i += most) {
      most = eini_min64(v->mul_row.n - i, 4);
      t.prow = v->mul_row.off[0] + i;
      t.orow = v->mul_row.off[1] + i;
      v->j.kern->bands[most - 1](&t);
    }
  }
}

// Rows that are made together when both steps are one.
static int64_t eini_rows_at_once(const eini_dir_rows *r) {
  return r->lanes <= r->v.j.kern->lanes ? 8 : 4;
}

// Both steps at once. The last rows may be made twice.
static void eini_rows_scaled(eini_dir_rows *r, int64_t e0, int64_t n) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->sum_loop, *group = &v->mul_k;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t unit = v->j.unit, vectors = (r->lanes + kern->lanes - 1) / kern->lanes;
  const int64_t most = eini_rows_at_once(r), rows = n < most ? 1 : most;
  const char *s = eini_rows_at(v, loop->stream[0], e0), *p = eini_rows_at(v, loop->stream[1], e0);
  char *to = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_scaled t = {group->n, r->k1.n, r->k0, r->pk, r->qk, r->from, v->step[1 - v->u], r->to,
                       group->off[1], group->off[0], group->off[2], r->k1.off[0], r->k1.off[1],
                       NULL, NULL, NULL, NULL, 0};
  for (int64_t b = 0; b < loop->n; b++) {
    for (int64_t e = 0; e < n; e += rows) {
      const int64_t at = eini_min64(e, n - rows);
      t.s = s + (loop->off[0][b] + at * t.se) * unit;
      t.p = p + (loop->off[1][b] + at * t.pe) * unit;
      t.q = v->block[EINI_ELEM_PACKED];
      t.out = to + (loop->off[2][b] + at * t.oe) * unit;
      eini_elem_ahead_some(v);
      for (int64_t i = 0, l; i < vectors; i += l) {
        const int64_t left = vectors - i;
        l = eini_dir_strip(left);
        t.last = left > l ? kern->lanes : (int)(r->lanes - (vectors - 1) * kern->lanes);
        kern->scaled[l - 1][rows > 1](&t);
        t.q += l * kern->lanes * unit;
        t.out += l * kern->lanes * unit;
      }
    }
  }
}

static void eini_rows_batch(eini_dir_rows *r) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *rest = &v->move[2].rest;
  const int64_t unit = v->j.unit, line = v->columns[EINI_ELEM_SUMS] / rest->n;
  const int64_t strips = (r->lanes + 3 * v->j.kern->lanes - 1) / (3 * v->j.kern->lanes);
  const int64_t rows = r->scaled ? eini_rows_at_once(r) : 8, times = r->scaled ? 1 : strips;
  for (int64_t e0 = 0, n; e0 < v->e; e0 += n) {
    n = eini_min64(v->wide, v->e - e0);
    eini_elem_ahead_start(v, e0 + n, eini_min64(v->wide, v->e - e0 - n),
                          v->sum_loop.n * times * ((n + rows - 1) / rows));
    if (r->scaled) {
      eini_rows_scaled(r, e0, n);
    } else {
      if (v->first) eini_rows_products(r, e0, n);
      eini_rows_sums(r, e0, n);
      if (!v->first) eini_rows_products(r, e0, n);
    }
    for (int64_t i = 0; v->nt && i < rest->n; i++) {
      char *dst = eini_rows_at(v, EINI_ELEM_OUT, e0) + rest->off[0][i] * unit;
      eini_stream_row(v->j.isa, (size_t)(n * line * unit),
                      v->block[EINI_ELEM_SUMS] + rest->off[1][i] * unit, dst);
    }
  }
}

static ein_status eini_rows_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_rows r;
  eini_dir_elem *v = &r.v;
  const char *packed = NULL;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_rows_init(&r, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_rows_carve(&r, (char *)scratch);
  for (int64_t e = 0; e < v->wide; e++) r.frow[e] = e * r.from, r.trow[e] = e * r.to;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v->j, b);
    if (packed != v->j.at[EINI_DIR_OPS - v->s0]) eini_elem_pack(v);
    packed = v->j.at[EINI_DIR_OPS - v->s0];
    eini_rows_batch(&r);
  }
  if (v->nt) eini_stream_end();
  return EIN_OK;
}

static int eini_rows_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  eini_dir_rows r;
  eini_dir_elem *v = &r.v;
  eini_dir_job *j = &v->j;
  int64_t *s = choice->state;
  if (!eini_dir_able_elements(&cpu->is, c) || !eini_rows_decide(cpu, c, s)) return 0;
  if (!eini_rows_init(&r, &cpu->is, c, s, NULL)) return 0;
  choice->scratch = eini_rows_carve(&r, NULL);
  const double batch = (double)j->x[EINI_DIR_B].size, e = (double)v->e, unit = (double)j->unit;
  const unsigned every = (1U << v->all.n) - 1;
  const double in = batch * e * unit * (double)(eini_elem_size(v, v->in[0]) +
                                                eini_elem_size(v, v->in[1]));
  const double out = batch * e * unit * (double)eini_elem_size(v, every & ~v->k);
  const double move = eini_cpu_move(cpu, in, out, v->nt);
  const double busy = batch * (e * eini_rows_cycles(&r, eini_elem_fma(cpu, v)) +
                               2 * (double)v->columns[EINI_ELEM_PACKED]) / cpu->hz;
  eini_elem_grid(v, choice);
  choice->seconds = cpu->call + 1e-6 + (busy + 0.5 * move) / eini_dir_threads(choice, width);
  eini_cpu_name(choice, r.scaled ? "rows scaled" : v->first ? "rows factors" : "rows small");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_rows_family = {
    "rows", eini_rows_plan, eini_rows_run};
