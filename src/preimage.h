// ================================================================================================
// >>preimage  index spaces seen from one operand
// Takes a map from indices to an operand's coordinates; gives spaces in which the coordinates are
// free indices and the old indices affine forms: one piece per residue of each stride, no scatter.
// ================================================================================================

#define EINI_PIECES_MAX 4096               // residues of all strides together

enum { EINI_X_REST, EINI_X_FREE, EINI_X_GONE };  // states of a new index; REST: it will be summed

// Old indices, output coordinates and conditions as affine forms (rows) over the new indices.
typedef struct eini_preimage {
  int nold, nout, ncond, n, cap;  // n new indices; rows: nold, then nout, then ncond
  int64_t *coef, *offset;         // rows x cap
  int64_t *extent;                // of new indices
  int64_t *size;                  // the same, but equal in all pieces: choices depend on it
  int *state, *old;               // old: the index that it is unchanged, or -1
  const char **name;
  int64_t *bound;                 // of a condition: 0 <= row < bound, or row = 0 for -1
  int *who;                       // of a condition: the old index it keeps inside, or -1
  unsigned char *direct;          // per coordinate: the old indices define it one-to-one
  int64_t digit, pieces;          // the residues still to be chosen; how many pieces there are
  int none, empty;                // nothing lands here: zeros; no element is here
  int over;                       // a number does not fit 64 bits
} eini_preimage;

static int64_t *eini_pre_row(const eini_preimage *p, int row) {
  return p->coef + (int64_t)row * p->cap;
}

static ein_status eini_pre_new(eini_preimage *p, eini_arena *a, int nold, int nout) {
  int64_t rows = (int64_t)nold + 2 * (int64_t)nout, cells;
  memset(p, 0, sizeof *p);
  p->nold = nold;
  p->nout = nout;
  p->cap = nold + nout;
  if (eini_mul_overflow(rows, p->cap, &cells) || cells > ((int64_t)1 << 24))
    return EIN_ERR_TOO_LARGE;
  p->coef = EINI_NEW(a, int64_t, cells);
  p->offset = EINI_NEW(a, int64_t, rows);
  p->extent = EINI_NEW(a, int64_t, p->cap);
  p->size = EINI_NEW(a, int64_t, p->cap);
  p->state = EINI_NEW(a, int, p->cap);
  p->old = EINI_NEW(a, int, p->cap);
  p->name = EINI_NEW(a, const char *, p->cap);
  p->bound = EINI_NEW(a, int64_t, nout);
  p->who = EINI_NEW(a, int, nout);
  p->direct = EINI_NEW(a, unsigned char, nout);
  return p->coef == NULL || p->offset == NULL || p->extent == NULL || p->size == NULL ||
                 p->state == NULL || p->old == NULL || p->name == NULL || p->bound == NULL ||
                 p->who == NULL || p->direct == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static int eini_pre_index(eini_preimage *p, int64_t extent, int state, int old, const char *name) {
  p->extent[p->n] = p->size[p->n] = extent;
  p->state[p->n] = state;
  p->old[p->n] = old;
  p->name[p->n] = name;
  return p->n++;
}

// The old indices as they are; those of extent 1 are 0.
static void eini_pre_begin(eini_preimage *p, const eini_stmt *s, int64_t piece) {
  int rows = p->nold + 2 * p->nout;
  p->n = p->ncond = p->none = p->empty = 0;
  p->digit = piece;
  p->pieces = 1;
  memset(p->coef, 0, (size_t)rows * (size_t)p->cap * sizeof *p->coef);
  memset(p->offset, 0, (size_t)rows * sizeof *p->offset);
  memset(p->direct, 0, (size_t)p->nout);
  for (int i = 0; i < s->nindex; i++) {
    if (s->index[i].extent == 1) continue;
    int x = eini_pre_index(p, s->index[i].extent, EINI_X_REST, i, s->index[i].name);
    eini_pre_row(p, i)[x] = 1;
  }
}

// Coordinate r of a map from old indices as a form over new indices; its offset.
static int64_t eini_pre_form(eini_preimage *p, const eini_map *m, int r, int64_t *to) {
  int64_t offset = m->offset[r];
  memset(to, 0, (size_t)p->cap * sizeof *to);
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    int64_t k = m->term[e].coef, *row = eini_pre_row(p, m->term[e].index);
    p->over |= eini_muladd_overflow(k, p->offset[m->term[e].index], offset, &offset);
    for (int x = 0; x < p->n; x++)
      p->over |= row[x] != 0 && eini_muladd_overflow(k, row[x], to[x], &to[x]);
  }
  return offset;
}

// Puts the form (by, offset), in which x does not occur, in the place of new index x, in all rows.
static void eini_pre_replace(eini_preimage *p, int x, const int64_t *by, int64_t offset) {
  for (int r = 0; r < p->nold + p->nout + p->ncond; r++) {
    int64_t *row = eini_pre_row(p, r), k = row[x];
    if (k == 0) continue;
    row[x] = 0;
    p->over |= eini_muladd_overflow(k, offset, p->offset[r], &p->offset[r]);
    for (int i = 0; i < p->n; i++)
      p->over |= by[i] != 0 && eini_muladd_overflow(k, by[i], row[i], &row[i]);
  }
}

// The new index with the least factor above `above` (in absolute value) in a form, or -1.
static int eini_pre_next(const eini_preimage *p, const int64_t *c, int64_t above, int *equal) {
  int best = -1;
  *equal = 0;
  for (int x = 0; x < p->n; x++) {
    if (eini_abs64(c[x]) <= above || (best >= 0 && eini_abs64(c[x]) > eini_abs64(c[best])))
      continue;
    *equal = best >= 0 && eini_abs64(c[x]) == eini_abs64(c[best]);
    best = x;
  }
  return best;
}

// Does a form have another value at every point, and consist of unchanged indices?
static int eini_pre_direct(const eini_preimage *p, const int64_t *c) {
  int64_t span = 0, below = 0;
  for (int x, equal; (x = eini_pre_next(p, c, below, &equal)) >= 0;) {
    below = eini_abs64(c[x]);
    if (equal || p->state[x] != EINI_X_REST || p->old[x] < 0 || below <= span ||
        eini_muladd_overflow(below, eini_max64(p->size[x] - 1, 0), span, &span))
      return 0;
  }
  return 1;
}

// How often the other indices of a form must be split when it is solved for x: their number, and in
// *other the one, in *times into how many parts.
static int eini_pre_splits(const eini_preimage *p, const int64_t *c, int x, int *other,
                           int64_t *times) {
  int64_t s = eini_abs64(c[x]);
  int splits = 0;
  *other = -1;
  *times = 1;
  for (int i = 0; i < p->n; i++) {
    if (i == x || c[i] % s == 0) continue;
    splits += p->state[i] == EINI_X_REST ? 1 : 2;
    *other = i;
    *times = s / eini_gcd64(s, c[i]);
  }
  return splits;
}

// The index a form is best solved for: what is left to sum is least. -1: none.
static int eini_pre_pivot(const eini_preimage *p, const int64_t *c) {
  int best = -1, other;
  int64_t times, score, most = 0, pieces;
  for (int x = 0; x < p->n; x++) {
    if (c[x] == 0 || c[x] == INT64_MIN || p->state[x] != EINI_X_REST ||
        eini_mul_overflow(p->pieces, eini_abs64(c[x]), &pieces) || pieces > EINI_PIECES_MAX ||
        eini_pre_splits(p, c, x, &other, &times) > 1)
      continue;
    if (eini_mul_overflow(p->size[x], times, &score)) score = INT64_MAX;
    if (score <= most) continue;
    most = score;
    best = x;
  }
  return best;
}

// Solves coordinate r = c*x + b for x: coordinates of one residue modulo its factor.
static void eini_pre_solve(eini_preimage *p, int r, int64_t *c, int64_t b, int64_t extent, int x,
                           const char *name) {
  int64_t s = eini_abs64(c[x]), sign = c[x] < 0 ? -1 : 1, rho = p->digit % s, times, v = 0;
  int other, row = p->nold + r, cond = p->nold + p->nout + p->ncond;
  eini_pre_splits(p, c, x, &other, &times);
  p->digit /= s;
  p->pieces *= s;
  while (v < times && ((other < 0 ? 0 : c[other] % s * v) + b % s - rho) % s != 0) v++;
  p->none |= v == times;
  p->empty |= rho >= extent;
  if (v == times) v = 0;
  if (other >= 0) {  // it becomes times*other + v
    for (int q = 0; q < p->nold + p->nout + p->ncond; q++) {
      int64_t *f = eini_pre_row(p, q) + other;
      p->over |= eini_muladd_overflow(*f, v, p->offset[q], &p->offset[q]);
      p->over |= eini_mul_overflow(*f, times, f);
    }
    p->over |= eini_muladd_overflow(c[other], v, b, &b);
    p->over |= eini_mul_overflow(c[other], times, &c[other]);
    p->none |= v >= p->extent[other];
    p->extent[other] = p->extent[other] <= v ? 0 : (p->extent[other] - v - 1) / times + 1;
    p->size[other] = (p->size[other] - 1) / times + 1;
    p->old[other] = -1;
  }
  eini_pre_row(p, cond)[x] = 1;
  p->bound[p->ncond] = p->extent[x];
  p->who[p->ncond++] = p->old[x];
  p->state[x] = EINI_X_GONE;
  int q = eini_pre_index(p, rho >= extent ? 0 : (extent - rho - 1) / s + 1, EINI_X_FREE, -1, name);
  p->size[q] = (extent - 1) / s + 1;
  for (int i = 0; i < p->n; i++) c[i] = i == x || i == q ? 0 : -sign * (c[i] / s);
  c[q] = sign;
  eini_pre_replace(p, x, c, -sign * ((b - rho) / s));
  eini_pre_row(p, row)[q] = s;
  p->offset[row] = rho;
}

// Brings coordinate r of a map into the space.
static void eini_pre_take(eini_preimage *p, const eini_map *m, int r, int64_t extent, int64_t *c,
                          const char *name) {
  int row = p->nold + r, x;
  int64_t b = eini_pre_form(p, m, r, c);
  if (p->over) return;
  if (eini_pre_direct(p, c)) {
    for (int i = 0; i < p->n; i++) {
      if (c[i] != 0) p->state[i] = EINI_X_FREE;
      eini_pre_row(p, row)[i] = c[i];
    }
    p->offset[row] = b;
    p->direct[r] = 1;
  } else if ((x = eini_pre_pivot(p, c)) >= 0) {
    eini_pre_solve(p, r, c, b, extent, x, name);
  } else {  // a new index, and the condition that the form equals it
    int cond = p->nold + p->nout + p->ncond;
    x = eini_pre_index(p, extent, EINI_X_FREE, -1, name);
    eini_pre_row(p, row)[x] = 1;
    memcpy(eini_pre_row(p, cond), c, (size_t)p->cap * sizeof *c);
    eini_pre_row(p, cond)[x] = -1;
    p->offset[cond] = b;
    p->who[p->ncond] = -1;
    p->bound[p->ncond++] = -1;
  }
}

// The space of one piece for an operand's map; names: of new indices, one per coordinate. Single
// indices come first: they cost nothing.
static ein_status eini_pre_build(eini_preimage *p, const eini_stmt *s, const eini_map *m,
                                 const int64_t *shape, const char *const *names, int64_t piece,
                                 int64_t *c) {
  eini_pre_begin(p, s, piece);
  for (int round = 0; round < 2; round++) {
    for (int r = 0; r < m->rows; r++) {
      int terms = 0;
      for (int e = m->first[r]; e < m->first[r + 1]; e++)
        terms += s->index[m->term[e].index].extent > 1;
      if ((terms > 1) == round) eini_pre_take(p, m, r, shape[r], c, names[r]);
    }
  }
  for (int x = 0; x < p->n; x++) p->empty |= p->state[x] == EINI_X_FREE && p->extent[x] == 0;
  return p->over ? EIN_ERR_TOO_LARGE : EIN_OK;
}
