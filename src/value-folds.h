// ================================================================================================
// >>value-folds  folds of values over ranges, in one form
// Takes parts of a fold; gives a value: bound coordinates are numbered, shifted and scaled by where
// they stand first, tiles become one range, and parts that adjoin become one.
// ================================================================================================

#define EINI_VALUE_BOUND 12      // coordinates of a part
#define EINI_VALUE_ROWS 8192

typedef struct eini_vpart {      // what is folded, over coordinates from `base` of the scope on
  int n;
  eini_vrange r[EINI_VALUE_BOUND];
  int64_t body;
} eini_vpart;

typedef struct eini_vparts {
  eini_vpart *v;
  int64_t n, cap;
} eini_vparts;

typedef struct eini_vfold {
  int64_t dtype, fold, how;
} eini_vfold;

// Coordinates below `old` become to[], those from there on go on from `now`.
typedef struct eini_vsub {
  int old, now, deep;      // deep: coordinates that are bound on the way
  int single;              // 1: coordinates with one value become it
  const eini_vrow *to;
} eini_vsub;

static ein_status eini_vparts_add(eini_proof *p, eini_vparts *x, const eini_vpart *part) {
  eini_vpart *v = (eini_vpart *)eini_grow(&p->arena, x->v, x->n, &x->cap, sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  x->v = v;
  v[x->n++] = *part;
  return x->n > EINI_VALUE_PARTS ? eini_proof_stuck(p, "a fold has too many parts") : EIN_OK;
}

// The parts of a value that is such a fold; it must be.
static ein_status eini_vparts_read(eini_proof *p, const eini_vkey *k, eini_vparts *to) {
  int64_t at = 5;
  for (int64_t n = k->w[4]; n > 0; n--) {
    eini_vpart x;
    x.n = (int)k->w[at++];
    for (int i = 0; i < x.n; i++, at += 3)
      x.r[i].lo = k->w[at], x.r[i].step = k->w[at + 1], x.r[i].n = k->w[at + 2];
    x.body = k->w[at++];
    EINI_TRY(eini_vparts_add(p, to, &x));
  }
  return EIN_OK;
}

static ein_status eini_value_many(eini_proof *p, eini_vfold f, int base, const eini_vparts *of,
                                  int64_t *value);
static ein_status eini_part_single(eini_proof *p, eini_vpart *x, int base);

// ---- substitution ----

static ein_status eini_value_sub(eini_proof *p, int64_t value, const eini_vsub *s, int64_t *made);

static ein_status eini_sub_row(eini_vwalk *x, const eini_vrow *a) {
  const eini_vsub *s = (const eini_vsub *)x->user;
  eini_vrow r, v;
  eini_vrow_of(&r, -1);
  r.off = a->off;
  for (int i = 0; i < EINI_VALUE_VARS; i++) {
    if (a->c[i] == 0) continue;
    if (i >= s->old && i - s->old + s->now >= EINI_VALUE_VARS)
      return eini_proof_stuck(x->p, "it has too many indices");
    if (i >= s->old) eini_vrow_of(&v, i - s->old + s->now);
    EINI_TRY(eini_vrow_add(x->p, &r, i < s->old ? &s->to[i] : &v, a->c[i]));
  }
  EINI_TRY(eini_vrow_over(x->p, &r, a->den));
  return eini_vrow_say(x->p, &r, &x->to);
}

static ein_status eini_sub_value(eini_vwalk *x, int64_t value) {
  eini_vsub s = *(const eini_vsub *)x->user;
  int64_t made;
  s.deep += x->bound;
  EINI_TRY(eini_value_sub(x->p, value, &s, &made));
  return eini_vkey_add(x->p, &x->to, made);
}

static ein_status eini_value_sub(eini_proof *p, int64_t value, const eini_vsub *s, int64_t *made) {
  eini_vkey k;
  eini_vwalk x;
  eini_vsub inner = *s;
  EINI_TRY(eini_value_words(p, value, &k));
  if (k.w[0] == EINI_V_MANY) {
    eini_vparts parts;
    const eini_vfold f = {k.w[1], k.w[2], k.w[3]};
    memset(&parts, 0, sizeof parts);
    EINI_TRY(eini_vparts_read(p, &k, &parts));
    for (int64_t i = 0; i < parts.n; i++) {
      inner.deep = s->deep + parts.v[i].n;
      EINI_TRY(eini_value_sub(p, parts.v[i].body, &inner, &parts.v[i].body));
      if (s->single) EINI_TRY(eini_part_single(p, &parts.v[i], s->now + s->deep));
    }
    return eini_value_many(p, f, s->now + s->deep, &parts, made);
  }
  memset(&x, 0, sizeof x);
  x.p = p;
  x.row_fn = eini_sub_row;
  x.value_fn = eini_sub_value;
  x.user = &inner;
  EINI_TRY(eini_value_walk(&x, &k));
  return eini_value_of(p, &x.to, made);
}

// ---- one part ----

typedef struct eini_vrows {
  eini_vrow *v;
  int64_t n, cap;
} eini_vrows;

static ein_status eini_rows_row(eini_vwalk *x, const eini_vrow *a) {
  eini_vrows *to = (eini_vrows *)x->user;
  eini_vrow *v = (eini_vrow *)eini_grow(&x->p->arena, to->v, to->n, &to->cap, sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  to->v = v;
  v[to->n++] = *a;
  return to->n > EINI_VALUE_ROWS ? eini_proof_stuck(x->p, "it takes too long") : EIN_OK;
}

// All rows of a value and of those in it, in order.
static ein_status eini_rows_value(eini_vwalk *x, int64_t value) {
  eini_vkey k;
  EINI_TRY(eini_value_words(x->p, value, &k));
  x->to.n = 0;
  return eini_value_walk(x, &k);
}

static ein_status eini_rows_of(eini_proof *p, int64_t value, eini_vrows *to) {
  eini_vwalk x;
  memset(&x, 0, sizeof x);
  x.p = p;
  x.row_fn = eini_rows_row;
  x.value_fn = eini_rows_value;
  x.user = to;
  to->n = 0;
  return eini_rows_value(&x, value);
}

// Does coordinate u go on where w has gone through its range, wherever they stand?
static int eini_part_tiles(const eini_vrows *rows, const eini_vpart *x, int base, int u, int w) {
  const eini_vrange *a = &x->r[u], *b = &x->r[w];
  int64_t mine, its, seen = 0;
  if (a->n < 2 || b->n < 2) return 0;
  for (int64_t i = 0; i < rows->n; i++) {
    const int64_t cu = rows->v[i].c[base + u], cw = rows->v[i].c[base + w];
    if (eini_mul_overflow(cu, a->step, &mine) || eini_mul_overflow(cw, b->step, &its) ||
        eini_mul_overflow(its, b->n, &its) || mine != its) return 0;
    seen |= cu;
  }
  return seen != 0;
}

// New coordinates for those of a part: to[] of each, in terms of the new ones.
static ein_status eini_part_take(eini_proof *p, eini_vpart *x, int base, const eini_vrow *to,
                                 int n) {
  eini_vrow all[EINI_VALUE_VARS];
  eini_vsub s;
  for (int v = 0; v < base; v++) eini_vrow_of(&all[v], v);
  for (int v = 0; v < x->n; v++) all[base + v] = to[v];
  s.old = base + x->n;
  s.now = base + n;
  s.deep = s.single = 0;
  s.to = all;
  x->n = n;
  return eini_value_sub(p, x->body, &s, &x->body);
}

// Coordinates with one value become that.
static ein_status eini_part_single(eini_proof *p, eini_vpart *x, int base) {
  eini_vrow to[EINI_VALUE_BOUND];
  int n = 0;
  for (int v = 0; v < x->n; v++) {
    const int one = x->r[v].n == 1;
    eini_vrow_of(&to[v], one ? -1 : base + n);
    if (one) to[v].off = x->r[v].lo;
    else x->r[n++] = x->r[v];
  }
  return n == x->n ? EIN_OK : eini_part_take(p, x, base, to, n);
}

// Tiles of tiles become one range.
static ein_status eini_part_fuse(eini_proof *p, eini_vpart *x, int base, eini_vrows *rows) {
  for (int u = 0; u < x->n; u++) {
    for (int w = 0; w < x->n; w++) {
      eini_vrow to[EINI_VALUE_BOUND];
      if (u == w || !eini_part_tiles(rows, x, base, u, w)) continue;
      if (eini_mul_overflow(x->r[w].n, x->r[u].n, &x->r[w].n))
        return eini_proof_stuck(p, "its coordinates are too large");
      for (int v = 0; v < x->n; v++) eini_vrow_of(&to[v], v == u ? -1 : base + v - (v > u));
      to[u].off = x->r[u].lo;
      for (int v = u; v + 1 < x->n; v++) x->r[v] = x->r[v + 1];
      EINI_TRY(eini_part_take(p, x, base, to, x->n - 1));
      EINI_TRY(eini_rows_of(p, x->body, rows));
      u = -1;
      break;
    }
  }
  return EIN_OK;
}

// The coordinate that comes next in order: it stands first, and with larger steps; -1: none does.
static int eini_part_next(const eini_vrows *rows, const eini_vpart *x, int base, const int *taken,
                          int64_t *row) {
  for (*row = 0; *row < rows->n; ++*row) {
    int best = -1;
    for (int v = 0; v < x->n; v++) {
      const int64_t c = rows->v[*row].c[base + v];
      if (c == 0 || taken[v]) continue;
      const double mine = fabs((double)c * (double)x->r[v].step);
      const double its = best < 0 ? -1 : fabs((double)rows->v[*row].c[base + best] *
                                              (double)x->r[best].step);
      if (mine > its) best = v;
    }
    if (best >= 0) return best;
  }
  return -1;
}

// Coordinate v becomes what it adds to a row, with the row's constant unless that is taken: the
// new one's range, and the old one in terms of it, number `now`.
static ein_status eini_part_shift(eini_proof *p, const eini_vrow *row, int64_t off, int v, int now,
                                  eini_vrange *r, eini_vrow *to, int *took) {
  const int64_t c = row->c[v];
  int64_t lo = 0, step = 0;
  int bad = eini_mul_overflow(c, r->lo, &lo) || eini_add_overflow(lo, off, &lo) ||
            eini_mul_overflow(c, r->step, &step);
  eini_vrow_of(to, now);
  *took = !bad && lo % row->den == 0 && (r->n == 1 || step % row->den == 0);
  if (!*took) return EIN_OK;
  to->c[now] = row->den;
  to->off = -off;
  EINI_TRY(eini_vrow_over(p, to, c));
  r->lo = lo / row->den;
  r->step = r->n == 1 ? 1 : step / row->den;
  if (r->step < 0) r->lo = eini_vrange_last(r), r->step = -r->step;
  return EIN_OK;
}

static int eini_fold_idempotent(int64_t fold) {
  return fold != EIN_FOLD_SUM && fold != EIN_FOLD_PROD;
}

static ein_status eini_value_part(eini_proof *p, int64_t fold, int base, eini_vpart *x) {
  eini_vrow to[EINI_VALUE_BOUND];
  eini_vrange range[EINI_VALUE_BOUND];
  int taken[EINI_VALUE_BOUND] = {0}, n = 0;
  int64_t used = -1, row, idle = 1;
  eini_vrows rows;
  memset(&rows, 0, sizeof rows);
  if (x->n == 0) return EIN_OK;
  if (base + x->n > EINI_VALUE_VARS) return eini_proof_stuck(p, "it has too many indices");
  EINI_TRY(eini_rows_of(p, x->body, &rows));
  EINI_TRY(eini_part_fuse(p, x, base, &rows));
  for (int v; (v = eini_part_next(&rows, x, base, taken, &row)) >= 0; n++) {
    const int64_t off = row == used ? 0 : rows.v[row].off;
    int took;
    taken[v] = 1;
    range[n] = x->r[v];
    EINI_TRY(eini_part_shift(p, &rows.v[row], off, base + v, base + n, &range[n], &to[v], &took));
    if (took) used = row;
  }
  for (int v = 0; v < x->n; v++) {  // those that it does not depend on: how often it is folded
    if (taken[v]) continue;
    if (eini_mul_overflow(idle, x->r[v].n, &idle))
      return eini_proof_stuck(p, "its coordinates are too large");
    eini_vrow_of(&to[v], -1);
  }
  const int more = idle > 1 && !eini_fold_idempotent(fold);
  EINI_TRY(eini_part_take(p, x, base, to, n + more));
  for (int v = 0; v < n; v++) x->r[v] = range[v];
  if (more) x->r[n].lo = 0, x->r[n].step = 1, x->r[n].n = idle;
  return EIN_OK;
}

// ---- parts together ----

static int eini_part_order(const eini_proof *p, const eini_vpart *a, const eini_vpart *b) {
  if (p->shape[a->body] != p->shape[b->body]) return p->shape[a->body] < p->shape[b->body] ? -1 : 1;
  if (a->body != b->body) return a->body < b->body ? -1 : 1;
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  for (int i = 0; i < a->n; i++) {
    const int64_t x[3] = {a->r[i].lo, a->r[i].step, a->r[i].n};
    const int64_t y[3] = {b->r[i].lo, b->r[i].step, b->r[i].n};
    for (int k = 0; k < 3; k++)
      if (x[k] != y[k]) return x[k] < y[k] ? -1 : 1;
  }
  return 0;
}

// Are they the same but for range x?
static int eini_part_beside(const eini_vpart *a, const eini_vpart *b, int x) {
  if (a->body != b->body || a->n != b->n) return 0;
  for (int i = 0; i < a->n; i++)
    if (i != x && !eini_vrange_same(&a->r[i], &b->r[i])) return 0;
  return 1;
}

// Do the ranges x of some parts, which have nothing in common, make one? Then that of the first is
// it, and the others are gone.
static int eini_parts_unite(eini_vparts *q, const int64_t *of, int64_t n, int x) {
  int64_t lo = INT64_MAX, last = INT64_MIN, total = 0;
  for (int64_t i = 0; i < n; i++) {
    const eini_vrange *r = &q->v[of[i]].r[x];
    lo = eini_min64(lo, r->lo);
    last = eini_max64(last, eini_vrange_last(r));
    total += r->n;
  }
  if (n < 2 || total < 2 || (last - lo) % (total - 1) != 0) return 0;
  const int64_t step = eini_max64(1, (last - lo) / (total - 1));
  for (int64_t i = 0; i < n; i++) {
    const eini_vrange *r = &q->v[of[i]].r[x];
    if ((r->lo - lo) % step != 0 || (r->n > 1 && r->step % step != 0)) return 0;
    for (int64_t j = 0; j < i; j++)
      if (eini_vrange_meet(r, &q->v[of[j]].r[x]).n > 0) return 0;
  }
  q->v[of[0]].r[x].lo = lo, q->v[of[0]].r[x].step = step, q->v[of[0]].r[x].n = total;
  for (int64_t i = n - 1; i > 0; i--) {
    q->n--;
    for (int64_t j = of[i]; j < q->n; j++) q->v[j] = q->v[j + 1];
  }
  return 1;
}

// All that are beside part i along x, or else two of them, become one.
static int eini_parts_merge(eini_vparts *q, int64_t i, int x) {
  int64_t of[EINI_VALUE_PARTS + 1] = {i}, n = 0, two[2];  // (gcc warns where none is set)
  for (int64_t j = i; j < q->n; j++)
    if (eini_part_beside(&q->v[i], &q->v[j], x)) of[n++] = j;
  if (eini_parts_unite(q, of, n, x)) return 1;
  for (int64_t a = 0; a < n && n > 2; a++)
    for (int64_t b = a + 1; b < n; b++) {
      two[0] = of[a], two[1] = of[b];
      if (eini_parts_unite(q, two, 2, x)) return 1;
    }
  return 0;
}

// Is part j what part i would be with one more value of a coordinate? Then i has it.
static ein_status eini_parts_absorb(eini_proof *p, int64_t fold, int base, eini_vparts *q,
                                    int64_t i, int64_t j, int *done) {
  eini_vpart *a = &q->v[i];
  const eini_vpart *b = &q->v[j];
  if (b->n != a->n - 1 || p->shape[a->body] != p->shape[b->body]) return EIN_OK;
  for (int x = 0; x < a->n && !*done; x++) {
    for (int end = 0; end < 2 && !*done; end++) {
      eini_vrow to[EINI_VALUE_BOUND];
      eini_vpart one = *a;
      for (int v = 0; v < a->n; v++) eini_vrow_of(&to[v], v == x ? -1 : base + v - (v > x));
      to[x].off = end ? eini_vrange_last(&a->r[x]) + a->r[x].step : a->r[x].lo - a->r[x].step;
      for (int v = x; v + 1 < a->n; v++) one.r[v] = one.r[v + 1];
      EINI_TRY(eini_part_take(p, &one, base, to, a->n - 1));
      EINI_TRY(eini_value_part(p, fold, base, &one));
      a = &q->v[i];
      b = &q->v[j];
      if (eini_part_order(p, &one, b) != 0) continue;
      a->r[x].lo -= end ? 0 : a->r[x].step;
      a->r[x].n++;
      q->n--;
      for (int64_t k = j; k < q->n; k++) q->v[k] = q->v[k + 1];
      *done = 1;
    }
  }
  return EIN_OK;
}

static ein_status eini_parts_reduce(eini_proof *p, int64_t fold, int base, eini_vparts *q) {
  for (int again = 1; again;) {
    again = 0;
    for (int64_t i = 0; i < q->n && !again; i++)
      for (int x = 0; x < q->v[i].n && !again; x++) again = eini_parts_merge(q, i, x);
    for (int64_t i = 0; i < q->n && !again; i++)
      for (int64_t j = 0; j < q->n && !again; j++)
        EINI_TRY(eini_parts_absorb(p, fold, base, q, i, j, &again));
    if (++p->work > EINI_VALUE_WORK) return eini_proof_stuck(p, "it takes too long");
  }
  for (int64_t i = 1; i < q->n; i++)
    for (int64_t j = i; j > 0 && eini_part_order(p, &q->v[j], &q->v[j - 1]) < 0; j--) {
      const eini_vpart t = q->v[j];
      q->v[j] = q->v[j - 1];
      q->v[j - 1] = t;
    }
  return EIN_OK;
}

// A part whose value is a fold of the same kind becomes the parts of that.
static ein_status eini_parts_flat(eini_proof *p, eini_vfold f, int base, const eini_vpart *x,
                                  eini_vparts *to) {
  eini_vkey k;
  eini_vparts inner;
  eini_vpart part = *x;
  for (int i = 0; i < x->n; i++)
    if (x->r[i].n == 0) return EIN_OK;
  memset(&inner, 0, sizeof inner);
  EINI_TRY(eini_value_words(p, x->body, &k));
  if (k.w[0] != EINI_V_MANY || k.w[1] != f.dtype || k.w[2] != f.fold || k.w[3] != f.how) {
    EINI_TRY(eini_value_part(p, f.fold, base, &part));
    return eini_vparts_add(p, to, &part);
  }
  EINI_TRY(eini_vparts_read(p, &k, &inner));
  for (int64_t i = 0; i < inner.n; i++) {
    if (x->n + inner.v[i].n > EINI_VALUE_BOUND)
      return eini_proof_stuck(p, "it has too many indices");
    part = *x;
    part.body = inner.v[i].body;
    for (int v = 0; v < inner.v[i].n; v++) part.r[part.n++] = inner.v[i].r[v];
    EINI_TRY(eini_value_part(p, f.fold, base, &part));
    EINI_TRY(eini_vparts_add(p, to, &part));
  }
  return EIN_OK;
}

// A product with one sum among its factors becomes a sum of products: *done where it does.
static ein_status eini_parts_distribute(eini_proof *p, eini_vfold f, int base, const eini_vparts *q,
                                        int64_t *value, int *done) {
  eini_vparts sum;
  eini_vkey k;
  eini_vfold over = f;
  eini_vrow all[EINI_VALUE_VARS];
  int64_t at = -1;
  *done = 0;
  memset(&sum, 0, sizeof sum);
  over.fold = EIN_FOLD_SUM;
  if (f.fold != EIN_FOLD_PROD || q->n < 2) return EIN_OK;
  for (int64_t i = 0; i < q->n; i++) {
    if (q->v[i].n > 0) return EIN_OK;
    EINI_TRY(eini_value_words(p, q->v[i].body, &k));
    if (k.w[0] != EINI_V_MANY || k.w[2] != EIN_FOLD_SUM) continue;
    if (at >= 0 || k.w[1] != f.dtype || k.w[3] != f.how) return EIN_OK;
    at = i;
  }
  if (at < 0) return EIN_OK;
  EINI_TRY(eini_value_words(p, q->v[at].body, &k));
  EINI_TRY(eini_vparts_read(p, &k, &sum));
  for (int v = 0; v < base; v++) eini_vrow_of(&all[v], v);
  for (int64_t j = 0; j < sum.n; j++) {
    eini_vparts factor = {NULL, 0, 0};
    const eini_vsub s = {base, base + sum.v[j].n, 0, 0, all};
    for (int64_t i = 0; i < q->n; i++) {
      eini_vpart x = q->v[i];
      if (i == at) x.body = sum.v[j].body;
      else EINI_TRY(eini_value_sub(p, x.body, &s, &x.body));
      EINI_TRY(eini_vparts_add(p, &factor, &x));
    }
    EINI_TRY(eini_value_many(p, f, base + sum.v[j].n, &factor, &sum.v[j].body));
  }
  *done = 1;
  return eini_value_many(p, over, base, &sum, value);
}

// The value of a fold of parts, whose coordinates are those from `base` of the scope on.
static ein_status eini_value_many(eini_proof *p, eini_vfold f, int base, const eini_vparts *of,
                                  int64_t *value) {
  eini_vparts q;
  eini_vkey k;
  int done;
  memset(&q, 0, sizeof q);
  memset(&k, 0, sizeof k);
  for (int64_t i = 0; i < of->n; i++) EINI_TRY(eini_parts_flat(p, f, base, &of->v[i], &q));
  EINI_TRY(eini_parts_reduce(p, f.fold, base, &q));
  EINI_TRY(eini_parts_distribute(p, f, base, &q, value, &done));
  if (done) return EIN_OK;
  if (q.n == 1 && q.v[0].n == 0) {
    const int64_t body = q.v[0].body, from = body > 0 ? p->keys.end[body - 1] : 0;
    *value = body;
    if (p->keys.word[from + 1] == f.dtype) return EIN_OK;
  }
  const int64_t head[5] = {EINI_V_MANY, f.dtype, f.fold, f.how, q.n};
  EINI_TRY(eini_vkey_words(p, &k, head, 5));
  for (int64_t i = 0; i < q.n; i++) {
    const eini_vpart *x = &q.v[i];
    EINI_TRY(eini_vkey_add(p, &k, x->n));
    for (int v = 0; v < x->n; v++) {
      const int64_t r[3] = {x->r[v].lo, x->r[v].step, x->r[v].n};
      EINI_TRY(eini_vkey_words(p, &k, r, 3));
    }
    EINI_TRY(eini_vkey_add(p, &k, x->body));
  }
  return eini_value_of(p, &k, value);
}
