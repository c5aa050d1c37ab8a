// ================================================================================================
// >>elements  small products of very many elements
// Products of two factors along a long index e with a small operand q without it, such as
// out[x,e,i] = sum over r, j of f[x,r,e] * g[e,j] * q[r,i,j]. Lanes are consecutive e: blocks of
// the factors are turned so that e comes last. Then either the factors are multiplied first, with
// ================================================================================================

// sums over what q has no part in, or one factor is multiplied with q first, whichever is less
// work; what is between stays in the caches.

#define EINI_ELEM_BYTES 24576    // of the blocks, where they are narrow
#define EINI_ELEM_MOST 262144    // of the blocks, where they are wide
#define EINI_ELEM_TABLE 4096     // entries of a table
#define EINI_ELEM_FUSED 64       // e from which planners count on this

// Streams of the axes but e: factors in memory are 0 and 1, blocks of them 2 and 3.
enum {
  EINI_ELEM_BLOCK = 2, EINI_ELEM_SMALL = 4, EINI_ELEM_PACKED, EINI_ELEM_BETWEEN, EINI_ELEM_SUMS,
  EINI_ELEM_OUT
};

// Some axes as one index, with its offsets in some streams.
typedef struct eini_elem_list {
  unsigned axes;
  int ns, stream[3];
  int64_t n, *off[3];
} eini_elem_list;

// Between memory and a block: axis t has unit steps in memory, the others are a list.
typedef struct eini_elem_move {
  int t;                       // -1: none
  int64_t nt, step, pitch;     // steps of e in memory and of t in the block
  eini_elem_list rest;
} eini_elem_move;

// What the next block reads and writes is asked for while the present one is worked on, for the
// first-level cache unless it would take more than half of it.
typedef struct eini_elem_ahead {
  int64_t lines[3], share;     // of a row of every move; of one call
  int64_t e0, row, line;
  int o, second;
} eini_elem_ahead;

typedef struct eini_dir_elem {
  eini_dir_job j;
  int s0, group;               // stream of the first factor; the group of its rows
  int first, u;                // factors first; the factor that varies along rows of products
  int nt;                      // past the caches
  int64_t l1;                  // bytes of the first-level cache
  eini_dir_index all;
  unsigned rows, k, small, in[2];  // sets of axes
  int64_t e, step[3];          // steps of both factors and of the output
  int64_t wide;                // e of a block
  eini_elem_list sum_loop, sum_row, sum_k, mul_loop, mul_row, mul_k;
  eini_elem_move move[3];
  eini_elem_ahead ahead;
  int64_t columns[EINI_ELEM_OUT];
  char *block[EINI_ELEM_OUT], *stage;
} eini_dir_elem;

static int64_t eini_elem_size(const eini_dir_elem *v, unsigned axes) {
  int64_t n = 1;
  for (int d = 0; d < v->all.n; d++) n *= axes >> d & 1 ? v->all.extent[d] : 1;
  return n;
}

// The axes of both sides but e, those of extent 1 left out. 0: too many.
static int eini_elem_axes(eini_dir_elem *v) {
  eini_dir_index *all = &v->all;
  const int order[3] = {v->group, EINI_DIR_M + EINI_DIR_N - v->group, EINI_DIR_K};
  const int from[4] = {v->s0, v->s0 + 1, EINI_DIR_OPS - v->s0, EINI_DIR_OUT};
  const int to[4] = {0, 1, EINI_ELEM_SMALL, EINI_ELEM_OUT};
  memset(all, 0, sizeof *all);
  for (int g = 0; g < 3; g++) {
    const eini_dir_index *x = &v->j.x[order[g]];
    for (int d = g == 0; d < x->n; d++) {
      if (x->extent[d] == 1) continue;
      if (all->n == EINI_DIR_RANK) return 0;
      const int at = all->n++;
      const unsigned bit = 1U << at;
      all->extent[at] = x->extent[d];
      for (int s = 0; s < 4; s++) all->stride[to[s]][at] = x->stride[from[s]][d];
      if (g == 0) v->rows |= bit;
      if (g == 2) v->k |= bit;
      if (all->stride[EINI_ELEM_SMALL][at] != 0) v->small |= bit;
      if (all->stride[0][at] != 0) v->in[0] |= bit;
      if (all->stride[1][at] != 0) v->in[1] |= bit;
    }
  }
  return 1;
}

static void eini_elem_set(const eini_dir_elem *v, eini_elem_list *l, unsigned axes, int ns, int s0,
                          int s1, int s2) {
  l->axes = axes, l->ns = ns, l->n = eini_elem_size(v, axes);
  l->stream[0] = s0, l->stream[1] = s1, l->stream[2] = s2;
}

// Steps of a block's axes: those of a are the fastest, then those of b, then c.
static void eini_elem_lay(eini_dir_elem *v, int stream, unsigned a, unsigned b, unsigned c,
                          int64_t step) {
  const unsigned set[3] = {a, b, c};
  int64_t n = step;
  for (int d = 0; d < v->all.n; d++) v->all.stride[stream][d] = 0;
  for (int i = 0; i < 3; i++) {
    for (int d = v->all.n - 1; d >= 0; d--) {
      if (!(set[i] >> d & 1)) continue;
      v->all.stride[stream][d] = n;
      n *= v->all.extent[d];
    }
  }
  v->columns[stream] = n / step;
}

// Both steps: sums of products with the small operand, and sums of products of vectors.
static void eini_elem_order(eini_dir_elem *v, int first, int u) {
  const unsigned every = (1U << v->all.n) - 1, out = every & ~v->k, other = v->in[1 - u];
  const unsigned k = v->k & v->small & (first ? every : v->in[u] & ~other);
  const unsigned loop = first ? v->rows : v->in[u] & ~k;
  const unsigned row = first ? out & ~v->rows : (every & v->small & ~loop & ~k) | (out & ~v->rows);
  const unsigned between = first ? loop | k : loop | row, vary = first ? between : out;
  const int from = first ? EINI_ELEM_BETWEEN : EINI_ELEM_BLOCK + u;
  const int to = first ? EINI_ELEM_SUMS : EINI_ELEM_BETWEEN;
  const int p = first ? EINI_ELEM_BLOCK + u : EINI_ELEM_BETWEEN, q = EINI_ELEM_BLOCK + 1 - u;
  const int made = first ? EINI_ELEM_BETWEEN : EINI_ELEM_SUMS;
  v->first = first, v->u = u;
  eini_elem_set(v, &v->sum_loop, loop, 3, EINI_ELEM_PACKED, from, to);
  eini_elem_set(v, &v->sum_row, row, 2, EINI_ELEM_PACKED, to, 0);
  eini_elem_set(v, &v->sum_k, k, 0, 0, 0, 0);
  eini_elem_set(v, &v->mul_loop, vary & other, 3, p, q, made);
  eini_elem_set(v, &v->mul_row, vary & ~other, 2, p, made, 0);
  eini_elem_set(v, &v->mul_k, v->k & ~k, 2, p, q, 0);
  eini_elem_lay(v, EINI_ELEM_BLOCK, v->in[0] & k, v->in[0] & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_BLOCK + 1, v->in[1] & k, v->in[1] & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_PACKED, v->small & k, v->small & ~k, 0, 1);
  eini_elem_lay(v, EINI_ELEM_BETWEEN, between & k, between & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_SUMS, out, 0, 0, v->wide);
}

// Cycles of a vector's multiply-add.
static double eini_elem_fma(const eini_rated *cpu, const eini_dir_elem *v) {
  return 2 * v->j.kern->lanes * cpu->hz / eini_dir_peak(cpu, v->j.c->type);
}

// Cycles of both steps for a vector of e.
static double eini_elem_cycles(const eini_dir_elem *v, double fma) {
  const double loop = (double)v->sum_loop.n, row = (double)v->sum_row.n, k = (double)v->sum_k.n;
  const double ml = (double)v->mul_loop.n, mr = (double)v->mul_row.n, mk = (double)v->mul_k.n;
  return loop * (1.1 * fma * row * k + 7 * ceil(row / 8)) +
         ml * (2.2 * fma * mr * mk + 5 * ceil(mr / 8)) * (1 + 2 / mk);
}

// The order with the least work.
static int eini_elem_least(eini_dir_elem *v, double fma) {
  double least = 0;
  int best = 0;
  for (int way = 0; way < 4; way++) {
    eini_elem_order(v, way < 2, way & 1);
    const double cycles = eini_elem_cycles(v, fma);
    if (way >= 2 && v->sum_k.n == 1) continue;
    if (way > 0 && cycles >= least) continue;
    least = cycles, best = way;
  }
  return best;
}

// e: the longest index of rows that both factors have. It goes first, for parts to be cut there.
static int eini_elem_longest(eini_dir_elem *v) {
  eini_dir_index *x = &v->j.x[v->group];
  int e = -1;
  for (int d = 0; d < x->n; d++) {
    if (x->stride[v->s0][d] == 0 || x->stride[v->s0 + 1][d] == 0) continue;
    if (e < 0 || x->extent[d] > x->extent[e]) e = d;
  }
  if (e < 0) return 0;
  for (int s = -1; s < EINI_DIR_STREAMS; s++) {
    int64_t *of = s < 0 ? x->extent : x->stride[s], t = of[e];
    for (int d = e; d > 0; d--) of[d] = of[d - 1];
    of[0] = t;
  }
  return 1;
}

// Words of ein_choice.state: the order (factors first for less than 2, and their factor u), and
// whether the output goes past the caches.
enum { EINI_ELEM_WAY, EINI_ELEM_NT };

// Sides, axes and the long index. 0: not of this kind
static int eini_elem_sides(eini_dir_elem *v, const eini_cpu *cpu, const ein_contract *c) {
  eini_dir_job *j = &v->j;
  memset(v, 0, sizeof *v);
  if (!c->plain_out || c->unsplit || eini_dir_planes(c->type) == 2) return 0;
  v->s0 = c->p.form == EIN_FORM_PRODUCT ? 0 : EINI_DIR_OPS;
  const ein_side *p = v->s0 ? &c->q : &c->p, *q = v->s0 ? &c->p : &c->q;
  if (p->form != EIN_FORM_PRODUCT || p->nop != 2 || q->form != EIN_FORM_PLAIN) return 0;
  eini_dir_init(j, cpu, c);
  v->l1 = cpu->l1;
  v->group = v->s0 ? EINI_DIR_N : EINI_DIR_M;
  for (int g = 0; g < 4; g++) {
    if (j->x[g].size == 0) return 0;
  }
  if (!eini_elem_longest(v) || !eini_elem_axes(v)) return 0;
  v->e = j->x[v->group].extent[0];
  for (int s = 0; s < 3; s++) {
    v->step[s] = j->x[v->group].stride[s < 2 ? v->s0 + s : EINI_DIR_OUT][0];
  }
  return 1;
}

// The part of the long index.
static void eini_elem_cut(eini_dir_elem *v, const ein_part *part) {
  if (part == NULL) return;
  eini_dir_cut(&v->j, v->group, (v->s0 ? part->n : part->m)[0], (v->s0 ? part->n : part->m)[1]);
  v->e = v->j.x[v->group].extent[0];
}

// What rates decide. 0: not of this kind
static int eini_elem_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_elem v;
  if (!eini_elem_sides(&v, &cpu->is, c)) return 0;
  v.wide = v.j.kern->lanes;
  s[EINI_ELEM_WAY] = eini_elem_least(&v, eini_elem_fma(cpu, &v));
  s[EINI_ELEM_NT] = eini_cpu_past(cpu, eini_dir_out_bytes(&v.j));
  return 1;
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_elem_init(eini_dir_elem *v, const eini_cpu *cpu, const ein_contract *c,
                          const int64_t *decided, const ein_part *part) {
  if (!eini_elem_sides(v, cpu, c)) return 0;
  const eini_dir_job *j = &v->j;
  const int64_t lanes = j->kern->lanes;
  const int way = (int)decided[EINI_ELEM_WAY];
  int64_t columns = 0;
  v->nt = decided[EINI_ELEM_NT] != 0;
  v->wide = lanes;
  eini_elem_order(v, way < 2, way & 1);
  for (int s = EINI_ELEM_BLOCK; s < EINI_ELEM_OUT; s++) {
    if (v->columns[s] > EINI_ELEM_TABLE) return 0;
    columns += s == EINI_ELEM_PACKED || s == EINI_ELEM_SMALL ? 0 : v->columns[s];
  }
  v->wide = EINI_ELEM_BYTES / (columns * j->unit * 3 * lanes) * 3 * lanes;
  v->wide = eini_min64(eini_max64(v->wide, 3 * lanes), 48 * lanes);
  if (columns * v->wide * j->unit > EINI_ELEM_MOST || v->e < lanes) return 0;
  eini_elem_order(v, v->first, v->u);
  eini_elem_cut(v, part);
  return 1;
}

static void eini_elem_fill(const eini_dir_elem *v, eini_elem_list *l, char *base, size_t *used) {
  eini_dir_index x;
  x.n = 0, x.size = l->n;
  for (int s = 0; s < l->ns; s++) {
    l->off[s] = (int64_t *)eini_carve(base, used, l->n * 8, 1);
  }
  if (base == NULL) return;
  for (int d = 0; d < v->all.n; d++) {
    if (!(l->axes >> d & 1)) continue;
    x.extent[x.n] = v->all.extent[d];
    for (int s = 0; s < l->ns; s++) x.stride[s][x.n] = v->all.stride[l->stream[s]][d];
    x.n++;
  }
  for (int s = 0; s < l->ns; s++) eini_dir_table(&x, s, 0, l->n, l->off[s]);
}

static void eini_elem_tables(eini_dir_elem *v, char *base, size_t *used) {
  eini_elem_fill(v, &v->sum_loop, base, used);
  eini_elem_fill(v, &v->sum_row, base, used);
  eini_elem_fill(v, &v->mul_loop, base, used);
  eini_elem_fill(v, &v->mul_row, base, used);
  eini_elem_fill(v, &v->mul_k, base, used);
}

// What is moved between memory and block: factors 0 and 1, and the output as 2.
static void eini_elem_moves(eini_dir_elem *v, int n, char *base, size_t *used) {
  for (int o = 0; o < n; o++) {
    eini_elem_move *m = &v->move[o];
    const int memory = o < 2 ? o : EINI_ELEM_OUT, block = EINI_ELEM_BLOCK + o;
    const int to = o < 2 ? block : EINI_ELEM_SUMS;
    const unsigned axes = o < 2 ? v->in[o] : ((1U << v->all.n) - 1) & ~v->k;
    m->t = -1, m->nt = 1, m->pitch = 0, m->step = v->step[o];
    for (int d = 0; d < v->all.n && m->step != 1; d++) {
      if ((axes >> d & 1) && v->all.stride[memory][d] == 1) m->t = d;
    }
    if (m->t >= 0) m->nt = v->all.extent[m->t], m->pitch = v->all.stride[to][m->t];
    eini_elem_set(v, &m->rest, m->t < 0 ? axes : axes & ~(1U << m->t), 2, memory, to, 0);
    eini_elem_fill(v, &m->rest, base, used);
  }
}

static size_t eini_elem_carve(eini_dir_elem *v, char *base) {
  size_t used = 0;
  for (int s = EINI_ELEM_BLOCK; s < EINI_ELEM_OUT; s++) {
    const int64_t wide = s == EINI_ELEM_PACKED ? 1 : v->wide;
    v->block[s] = (char *)eini_carve(base, &used, v->columns[s] * wide, v->j.unit);
  }
  eini_elem_tables(v, base, &used);
  eini_elem_moves(v, 3, base, &used);
  v->stage = (char *)eini_carve(base, &used, v->nt ? v->move[2].nt * v->wide : 0, v->j.unit);
  return used;
}

// The n elements from e0 on will be next; they are asked for in so many calls.
static void eini_elem_ahead_start(eini_dir_elem *v, int64_t e0, int64_t n, int64_t calls) {
  eini_elem_ahead *a = &v->ahead;
  int64_t lines = 0;
  for (int o = 0; o < 3; o++) {
    const eini_elem_move *m = &v->move[o];
    const int dense = m->step > 0 && m->step <= 2 * m->nt && !(o == 2 && v->nt);
    a->lines[o] = dense && n > 0 ? (n * m->step * v->j.unit + 63) / 64 : 0;
    lines += a->lines[o] * m->rest.n;
  }
  a->share = (lines + calls - 1) / calls;
  a->second = 64 * lines > v->l1 / 2;
  a->e0 = e0, a->o = 0, a->row = a->line = 0;
}

static void eini_elem_ahead_some(eini_dir_elem *v) {
  eini_elem_ahead *a = &v->ahead;
  for (int64_t left = a->share; left > 0 && a->o < 3;) {
    const eini_elem_move *m = &v->move[a->o];
    const int64_t n = a->row < m->rest.n ? eini_min64(left, a->lines[a->o] - a->line) : 0;
    if (n == 0) {
      a->row++, a->line = 0;
      if (a->row >= m->rest.n || a->lines[a->o] == 0) a->o++, a->row = 0;
      continue;
    }
    const char *p = v->j.at[a->o < 2 ? v->s0 + a->o : EINI_DIR_OUT] + 64 * a->line;
    p += (m->rest.off[0][a->row] + a->e0 * m->step) * v->j.unit;
    for (int64_t l = 0; l < n && !a->second; l++) EINI_FETCH(p + 64 * l);
    for (int64_t l = 0; l < n && a->second; l++) EINI_FETCH2(p + 64 * l);
    a->line += n, left -= n;
  }
}

// Elements e0 .. e0 + n of a factor into its block; lanes up to a whole vector are 0.
static void eini_elem_take(eini_dir_elem *v, int o, int64_t e0, int64_t n) {
  const eini_elem_move *m = &v->move[o];
  const int64_t unit = v->j.unit;
  char *const block = v->block[EINI_ELEM_BLOCK + o];
  if (n % v->j.kern->lanes != 0) {
    memset(block, 0, (size_t)(v->columns[EINI_ELEM_BLOCK + o] * v->wide * unit));
  }
  for (int64_t r = 0; r < m->rest.n; r++) {
    const char *src = v->j.at[v->s0 + o] + (m->rest.off[0][r] + e0 * m->step) * unit;
    char *dst = block + m->rest.off[1][r] * unit;
    if (m->step == 1) memcpy(dst, src, (size_t)(n * unit));
    else eini_turn(v->j.isa, (int)unit, m->nt, n, src, m->step * unit, dst, m->pitch * unit);
  }
}

static void eini_elem_put(eini_dir_elem *v, int64_t e0, int64_t n) {
  const eini_elem_move *m = &v->move[2];
  const int64_t unit = v->j.unit;
  const int stream = v->nt && (m->step == 1 || m->step == m->nt);
  for (int64_t r = 0; r < m->rest.n; r++) {
    const char *src = v->block[EINI_ELEM_SUMS] + m->rest.off[1][r] * unit;
    char *dst = (char *)(uintptr_t)v->j.at[EINI_DIR_OUT], *to;
    dst += (m->rest.off[0][r] + e0 * m->step) * unit;
    to = stream ? v->stage : dst;
    if (m->step != 1) {
      eini_turn(v->j.isa, (int)unit, n, m->nt, src, m->pitch * unit, to, m->step * unit);
      src = to;
    }
    if (stream) eini_stream_row(v->j.isa, (size_t)(n * m->nt * unit), src, dst);
    else if (m->step == 1) memcpy(dst, src, (size_t)(n * unit));
  }
}

// Sums of products with the small operand.
static void eini_elem_sums(eini_dir_elem *v, int64_t n) {
  const eini_dir_kern *kern = v->j.kern;
  const int from = v->sum_loop.stream[1], to = v->sum_loop.stream[2];
  const int64_t zero = 0, unit = v->j.unit, line = kern->lanes * unit;
  eini_dir_tile t;
  memset(&t, 0, sizeof t);
  t.k1 = 1, t.k0 = v->sum_k.n, t.pk = 1, t.qk = v->wide, t.pk1 = t.qk1 = &zero;
  t.last = kern->lanes;
  for (int64_t b = 0; b < v->sum_loop.n; b++) {
    t.p = v->block[EINI_ELEM_PACKED] + v->sum_loop.off[0][b] * unit;
    t.q = v->block[from] + v->sum_loop.off[1][b] * unit;
    t.out = v->block[to] + v->sum_loop.off[2][b] * unit;
    for (int64_t i = 0, l; i < n; i += l * kern->lanes, t.q += l * line, t.out += l * line) {
      l = eini_min64((n - i) / kern->lanes, 3);
      for (int64_t r = 0; r < v->sum_row.n; r += t.rows) {
        const int which = eini_dir_tile_rows(v->j.kern, v->sum_row.n - r, l, &t.rows);
        t.prow = v->sum_row.off[0] + r;
        t.orow = v->sum_row.off[1] + r;
        kern->tile[l - 1][which](&t);
        eini_elem_ahead_some(v);
      }
    }
  }
}

// Sums of products of vectors.
static void eini_elem_products(eini_dir_elem *v, int64_t n) {
  const int64_t unit = v->j.unit;
  const eini_elem_list *l = &v->mul_loop;
  eini_dir_pairs t;
  t.n = n, t.k = v->mul_k.n, t.pk = v->mul_k.off[0], t.qk = v->mul_k.off[1];
  for (int64_t b = 0; b < l->n; b++) {
    t.p = v->block[l->stream[0]] + l->off[0][b] * unit;
    t.q = v->block[l->stream[1]] + l->off[1][b] * unit;
    t.out = v->block[l->stream[2]] + l->off[2][b] * unit;
    for (int64_t r = 0, most; r < v->mul_row.n; r += most) {
      const int which = eini_dir_tile_rows(v->j.kern, v->mul_row.n - r, 3, &most);
      t.prow = v->mul_row.off[0] + r;
      t.orow = v->mul_row.off[1] + r;
      v->j.kern->pairs[which](&t);
      eini_elem_ahead_some(v);
    }
  }
}

static void eini_elem_batch(eini_dir_elem *v) {
  const eini_dir_job *j = &v->j;
  const int lanes = j->kern->lanes;
  const int64_t rows = v->sum_loop.n * ((v->sum_row.n + 7) / 8);
  const int64_t calls = rows * ((v->wide / lanes + 2) / 3) +
                        v->mul_loop.n * ((v->mul_row.n + 7) / 8);
  for (int64_t e0 = 0, n; e0 < v->e; e0 += n) {
    n = eini_min64(v->wide, v->e - e0);
    const int64_t whole = eini_up(n, lanes);
    eini_elem_take(v, 0, e0, n);
    eini_elem_take(v, 1, e0, n);
    eini_elem_ahead_start(v, e0 + n, eini_min64(v->wide, v->e - e0 - n), calls);
    if (v->first) eini_elem_products(v, whole);
    eini_elem_sums(v, whole);
    if (!v->first) eini_elem_products(v, whole);
    eini_elem_put(v, e0, n);
  }
}

// The small operand with its steps along the sums 1.
static void eini_elem_pack(eini_dir_elem *v) {
  const char *src = v->j.at[EINI_DIR_OPS - v->s0];
  char *dst = v->block[EINI_ELEM_PACKED];
  const int size = v->j.unit;
  int64_t at[EINI_DIR_RANK] = {0}, from = 0, to = 0;
  for (int d = 0; d >= 0;) {
    memcpy(dst + to * size, src + from * size, (size_t)size);
    for (d = v->all.n - 1; d >= 0; d--) {
      if (!(v->small >> d & 1)) continue;
      const int64_t s = v->all.stride[EINI_ELEM_SMALL][d], p = v->all.stride[EINI_ELEM_PACKED][d];
      from += s, to += p;
      if (++at[d] < v->all.extent[d]) break;
      from -= s * at[d], to -= p * at[d], at[d] = 0;
    }
  }
}

static ein_status eini_elem_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_elem v;
  const char *packed = NULL;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_elem_init(&v, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_elem_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v.j, b);
    if (packed != v.j.at[EINI_DIR_OPS - v.s0]) eini_elem_pack(&v);
    packed = v.j.at[EINI_DIR_OPS - v.s0];
    eini_elem_batch(&v);
  }
  if (v.nt) eini_stream_end();
  return EIN_OK;
}

// Cycles of moving a vector of e of a factor or of the output.
static double eini_elem_moved(const eini_dir_elem *v, int o) {
  const eini_elem_move *m = &v->move[o];
  const double lanes = (double)v->j.kern->lanes, rest = (double)m->rest.n, nt = (double)m->nt;
  if (m->step == 1) return rest * (2 + 15 * lanes / (double)v->wide);
  if (m->nt == 1) return rest * 2 * lanes;
  return rest * (nt < lanes ? 3 * lanes + 2 * nt : ceil(nt / lanes) * 3 * lanes) +
         rest * 10 * lanes / (double)v->wide;
}

// Parts: of the batch and of e.
static void eini_elem_grid(const eini_dir_elem *v, ein_choice *choice) {
  const int at = v->s0 ? 2 : 1;
  eini_dir_grid(&v->j.x[v->group], 16 * v->j.kern->lanes * eini_elem_size(v, v->rows),
                &choice->grid[at], &choice->unit[at]);
  choice->grid[3 - at] = choice->unit[3 - at] = 1;
  choice->grid[0] = v->j.x[EINI_DIR_B].size, choice->unit[0] = 1;
}

static int eini_elem_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  eini_dir_elem v;
  eini_dir_job *j = &v.j;
  int64_t *s = choice->state;
  if (!eini_dir_able_elements(&cpu->is, c) || !eini_elem_decide(cpu, c, s)) return 0;
  if (!eini_elem_init(&v, &cpu->is, c, s, NULL)) return 0;
  choice->scratch = eini_elem_carve(&v, NULL);
  const double batch = (double)j->x[EINI_DIR_B].size, lanes = (double)j->kern->lanes;
  const double e = (double)v.e, unit = (double)j->unit;
  double cycles = eini_elem_cycles(&v, eini_elem_fma(cpu, &v)), in = 0;
  double out = (double)v.columns[EINI_ELEM_SUMS];
  for (int o = 0; o < 3; o++) cycles += eini_elem_moved(&v, o);
  for (int o = 0; o < 2; o++) in += (double)v.columns[EINI_ELEM_BLOCK + o];
  in *= batch * e * unit, out *= batch * e * unit;
  const double move = eini_cpu_move(cpu, in, out, v.nt);
  const double busy = batch * (ceil(e / lanes) * cycles +
                               2 * (double)v.columns[EINI_ELEM_PACKED]) / cpu->hz;
  eini_elem_grid(&v, choice);
  choice->seconds = cpu->call + 1e-6 + (busy + 0.5 * move) / eini_dir_threads(choice, width);
  eini_cpu_name(choice, v.first ? "elements factors first" : "elements small first");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_elements = {
    "elements", eini_elem_plan, eini_elem_run};
