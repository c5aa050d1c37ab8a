// ================================================================================================
// >>image  what boxes of a statement touch
// Takes the accesses of statements; gives how many elements a box of points touches, as a sum of
// products of its sides, and how many the whole statement does.
// ================================================================================================

#define EINI_IMAGE_TERMS 256     // of the image of one access, at most

// ---- integer matrices, in rows; what does not fit 63 bits is given up (-1) ----

// Divides a row by the common divisor of its entries.
static void eini_row_reduce(int64_t *row, int n) {
  int64_t d = 0;
  for (int i = 0; i < n; i++) d = eini_gcd64(d, row[i]);
  for (int i = 0; i < n && d > 1; i++) row[i] /= d;
}

// Reduces a matrix to row echelon form, pivots positive and alone in their columns; drops rows of
// zeros. Returns its rank.
static int eini_echelon(int64_t *a, int rows, int n) {
  int rank = 0;
  for (int c = 0; c < n && rank < rows; c++) {
    int p = rank;
    while (p < rows && a[(int64_t)p * n + c] == 0) p++;
    if (p == rows) continue;
    int64_t *row = a + (int64_t)rank * n, *from = a + (int64_t)p * n;
    for (int i = 0; i < n && p > rank; i++) {
      const int64_t x = row[i];
      row[i] = from[i];
      from[i] = x;
    }
    eini_row_reduce(row, n);
    for (int i = n - 1; i >= c; i--) row[i] = row[c] < 0 ? -row[i] : row[i];
    for (int r = 0; r < rows; r++) {
      int64_t *to = a + (int64_t)r * n, f = to[c];
      if (r == rank || f == 0) continue;
      for (int i = 0; i < n; i++) {
        int64_t x, y;
        if (eini_mul_overflow(to[i], row[c], &x) || eini_mul_overflow(row[i], f, &y) ||
            y == INT64_MIN || eini_add_overflow(x, -y, &to[i])) return -1;
      }
      eini_row_reduce(to, n);
    }
    rank++;
  }
  return rank;
}

// The coefficients of a map, [rows][cols].
static int64_t *eini_map_matrix(eini_arena *a, const eini_map *m) {
  int64_t *to = EINI_NEW(a, int64_t, (int64_t)m->rows * m->cols);
  for (int r = 0; r < m->rows && to != NULL; r++)
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      to[(int64_t)r * m->cols + m->term[e].index] = m->term[e].coef;
  return to;
}

// ---- images ----

// An access, over the indices of the statement or group that it is of.
typedef struct eini_image {
  const eini_map *map;
  const int *at;           // the index that index i of map is
  int tensor;
  int plain;               // it touches as many elements as there are values of its indices, in any
  int apart;               //   set of points, as A[i,i] does; apart: so it is for these extents, as
                           //   in X[4*h+r] with r < 4
  unsigned char *in;       // [n] does the index stand in it?
  double whole;            // elements touched in all, or less
} eini_image;

// What a row touches where its indices go all the way, or less. *apart: 1 when that is as many as
// there are points of them.
static double eini_row_image(const eini_image *x, int r, const int64_t *extent, int *apart) {
  const eini_mapterm *t = x->map->term + x->map->first[r];
  const int n = eini_map_terms(x->map, r);
  double values = 1, points = 1, span = 1;
  int64_t d = 0, last = 0;
  int dense = 1;
  for (int i = 0; i < n; i++) d = eini_gcd64(d, t[i].coef);
  for (int done = 0; done < n;) {  // by size of coefficient
    int64_t next = INT64_MAX;
    for (int i = 0; i < n; i++) {
      const int64_t c = eini_abs64(t[i].coef / d);
      if (c > last && c < next) next = c;
    }
    for (int i = 0; i < n; i++) {
      const double e = (double)extent[x->at[t[i].index]], c = (double)next;
      if (eini_abs64(t[i].coef / d) != next) continue;
      done++;
      points *= e;
      if (c >= span) values *= e;
      else values += dense ? c * (e - 1) : e - 1;
      dense &= c <= span || e <= 1;
      span += c * (e - 1);
    }
    if (last == next) break;
    last = next;
  }
  *apart = points <= values;
  return fmin(values, points);
}

// Is a row another one, or that times -1?
static int eini_row_again(const eini_map *m, int r) {
  for (int q = 0; q < r; q++) {
    const int n = eini_map_terms(m, r);
    int same = eini_map_terms(m, q) == n, turned = same;
    for (int i = 0; i < n && (same || turned); i++) {
      const eini_mapterm *x = &m->term[m->first[q] + i], *y = &m->term[m->first[r] + i];
      same &= x->index == y->index && x->coef == y->coef;
      turned &= x->index == y->index && x->coef == -y->coef;
    }
    if (same || turned) return 1;
  }
  return 0;
}

// extent: of the n indices. at: the one that each index of the map is.
static ein_status eini_image_read(eini_arena *a, const eini_map *m, int tensor, int n,
                                  const int64_t *extent, const int *at, eini_image *x) {
  int mixed = 0, shared = 0, used = 0;
  memset(x, 0, sizeof *x);
  x->map = m;
  x->at = at;
  x->tensor = tensor;
  x->whole = 1;
  if ((x->in = EINI_NEW(a, unsigned char, n)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < m->rows; r++) {
    mixed |= eini_map_terms(m, r) > 1;
    if (eini_row_again(m, r)) continue;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      unsigned char *in = &x->in[at[m->term[e].index]];
      shared |= *in;
      used += !*in;
      *in = 1;
    }
  }
  x->plain = !mixed;
  if (mixed) {
    const eini_arena_at mark = eini_arena_mark(a);
    int64_t *matrix = eini_map_matrix(a, m);
    if (matrix == NULL) return EIN_ERR_NO_MEMORY;
    x->plain = eini_echelon(matrix, m->rows, m->cols) == used;
    eini_arena_rollback(a, &mark);
  }
  x->apart = x->plain || !shared;
  for (int i = 0; i < n && x->plain; i++) x->whole *= x->in[i] ? (double)extent[i] : 1;
  for (int r = 0; r < m->rows && !x->plain; r++) {
    int apart;
    const double row = eini_row_image(x, r, extent, &apart);
    if (eini_row_again(m, r)) continue;
    x->whole = shared ? fmax(x->whole, row) : x->whole * row;
    x->apart &= apart;
  }
  return EIN_OK;
}

// ---- what is touched by boxes ----

// The accesses that count: of a tensor that has several the largest one does.
typedef struct eini_touch {
  int n;                   // indices
  int64_t *extent;         // [n]
  int nimage, capimage;
  eini_image *image;       // those of a tensor one after another
  double compulsory;       // elements read and written at least
} eini_touch;

static ein_status eini_touch_add(eini_arena *a, eini_touch *t, const eini_map *m, int tensor,
                                 const int *at) {
  int64_t cap = t->capimage;
  eini_image x, *list;
  EINI_TRY(eini_image_read(a, m, tensor, t->n, t->extent, at, &x));
  int to = t->nimage;
  while (to > 0 && t->image[to - 1].tensor != tensor) to--;
  if (to == 0) to = t->nimage;
  list = (eini_image *)eini_grow(a, t->image, t->nimage, &cap, sizeof *list);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  t->image = list;
  t->capimage = (int)cap;
  memmove(list + to + 1, list + to, (size_t)(t->nimage - to) * sizeof *list);
  list[to] = x;
  t->nimage++;
  return EIN_OK;
}

// Are two accesses one but for their offsets?
static int eini_image_same(const eini_image *x, const eini_image *y) {
  const eini_map *a = x->map, *b = y->map;
  if (a->rows != b->rows) return 0;
  for (int r = 0; r < a->rows; r++) {
    if (eini_map_terms(a, r) != eini_map_terms(b, r)) return 0;
    for (int i = 0; i < eini_map_terms(a, r); i++) {
      const eini_mapterm *s = &a->term[a->first[r] + i], *t = &b->term[b->first[r] + i];
      if (x->at[s->index] != y->at[t->index] || s->coef != t->coef) return 0;
    }
  }
  return 1;
}

// Does one image hold the other, in every box?
static int eini_image_within(const eini_image *x, const eini_image *of, int n, int capped) {
  const int xp = capped ? x->apart : x->plain, op = capped ? of->apart : of->plain;
  if (!xp || !op) return eini_image_same(x, of);
  for (int i = 0; i < n; i++)
    if (x->in[i] && !of->in[i]) return 0;
  return 1;
}

// Drops what another access to the same tensor holds; of those that are left, where one is not
// plain, all but the largest. Returns how many are left, in list.
static int eini_touch_reduce(const eini_touch *t, int from, int to, int capped, int *list) {
  int n = 0, plain = 1, most = 0;
  for (int i = from; i < to; i++) {
    const eini_image *x = &t->image[i];
    int again = 0;
    for (int k = from; k < to && !again; k++) {
      const eini_image *y = &t->image[k];
      again = k != i && eini_image_within(x, y, t->n, capped) &&
              (k < i || !eini_image_within(y, x, t->n, capped));
    }
    if (again) continue;
    plain &= capped ? x->apart : x->plain;
    list[n] = i;
    most = x->whole > t->image[list[most]].whole ? n : most;
    n++;
  }
  if (n > 1 && !plain) list[0] = list[most], n = 1;
  return n;
}

// ---- as terms ----

// What a box touches: the sum over terms of coef * product of sides^e. A term of a tensor that is
// touched by several images, none of which holds the other, is the largest of them.
typedef struct eini_terms {
  int n, nterm, nlimit;
  int64_t cap, limitcap;
  double *coef;            // [nterm]
  unsigned char *e;        // [nterm][n]
  int *limited;            // [nterm] 1: the sides say nothing, but its limits do
  int *limit;              // [nlimit][2] a term, and an image that it is at least
} eini_terms;

// Appends a term like another one (-1: all sides to the power 0). Returns its number, or -1.
static int eini_terms_add(eini_arena *a, eini_terms *t, int like, double coef) {
  const int64_t n = t->n, old = t->cap;
  if (t->nterm == old) {
    int64_t cap = old;
    double *more = (double *)eini_grow(a, t->coef, t->nterm, &cap, sizeof *more);
    unsigned char *e = EINI_NEW(a, unsigned char, cap * n);
    int *limited = EINI_NEW(a, int, cap);
    if (more == NULL || e == NULL || limited == NULL) return -1;
    if (old > 0) memcpy(e, t->e, (size_t)(old * n));
    if (old > 0) memcpy(limited, t->limited, (size_t)old * sizeof *limited);
    t->coef = more;
    t->e = e;
    t->limited = limited;
    t->cap = cap;
  }
  if (like >= 0 && n > 0) memcpy(t->e + t->nterm * n, t->e + like * n, (size_t)n);
  t->coef[t->nterm] = coef;
  return t->nterm++;
}

// The image of a box as a product over coordinates: a coordinate has 1 + the sum of
// |coef| * (side - 1) values, divided by what all coefs have in common.
static ein_status eini_terms_compound(eini_arena *a, eini_terms *t, const eini_image *x) {
  const eini_map *m = x->map;
  const int first = t->nterm;
  int from = first;
  if (eini_terms_add(a, t, -1, 1) < 0) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < m->rows; r++) {
    const eini_mapterm *p = m->term + m->first[r];
    const int nindex = eini_map_terms(m, r), to = t->nterm;
    double rest = 1;
    int64_t d = 0;
    if (nindex == 0 || eini_row_again(m, r)) continue;
    for (int i = 0; i < nindex; i++) d = eini_gcd64(d, p[i].coef);
    for (int i = 0; i < nindex; i++) rest -= (double)eini_abs64(p[i].coef / d);
    const int small = (to - from) * (nindex + 1) <= EINI_IMAGE_TERMS;
    for (int k = from; k < to; k++) {
      for (int i = 0; i < (small ? nindex : 1); i++) {  // too long: one index of it, which is less
        const double c = small ? (double)eini_abs64(p[i].coef / d) : 1;
        const int made = eini_terms_add(a, t, k, t->coef[k] * c);
        if (made < 0) return EIN_ERR_NO_MEMORY;
        unsigned char *e = &t->e[(int64_t)made * t->n + x->at[p[i].index]];
        *e = (unsigned char)(*e + (*e < 255));
      }
      if (small && rest < 0 && eini_terms_add(a, t, k, t->coef[k] * rest) < 0)
        return EIN_ERR_NO_MEMORY;
    }
    from = to;
  }
  const int made = t->nterm - from;  // the last product; those before are parts of it
  memmove(t->coef + first, t->coef + from, (size_t)made * sizeof *t->coef);
  if (t->n > 0)
    memmove(t->e + (int64_t)first * t->n, t->e + (int64_t)from * t->n, (size_t)made * (size_t)t->n);
  t->nterm = first + made;
  return EIN_OK;
}

// The terms of all images. capped: sides go no further than extents.
static ein_status eini_terms_of(eini_arena *a, const eini_touch *t, int capped, eini_terms *out) {
  int *list = EINI_NEW(a, int, t->nimage);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  memset(out, 0, sizeof *out);
  out->n = t->n;
  for (int from = 0, to; from < t->nimage; from = to) {
    for (to = from; to < t->nimage && t->image[to].tensor == t->image[from].tensor;) to++;
    const int n = eini_touch_reduce(t, from, to, capped, list);
    const eini_image *x = &t->image[list[0]];
    if (n == 1 && !(capped ? x->apart : x->plain)) {
      EINI_TRY(eini_terms_compound(a, out, x));
      continue;
    }
    const int term = eini_terms_add(a, out, -1, 1);
    if (term < 0) return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < t->n && n == 1; i++) out->e[(int64_t)term * t->n + i] = x->in[i];
    out->limited[term] = n > 1;
    for (int k = 0; k < n && n > 1; k++) {
      int *limit = (int *)eini_grow(a, out->limit, out->nlimit, &out->limitcap, 2 * sizeof(int));
      if (limit == NULL) return EIN_ERR_NO_MEMORY;
      out->limit = limit;
      limit[2 * out->nlimit] = term;
      limit[2 * out->nlimit++ + 1] = list[k];
    }
  }
  return EIN_OK;
}
