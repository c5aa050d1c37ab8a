// ================================================================================================
// >>values  elements as expressions of inputs
// Expressions over coordinates that are in scope, numbered: equal ones have one number. Coordinates
// take values lo + step*t; in accesses stand affine forms of them. Folds that may be cut and put
// together in any order (sums, products, extremes, any, all) are parts over ranges, in one form.
// ================================================================================================

#define EINI_VALUE_VARS 40       // coordinates in scope
#define EINI_VALUE_WORK 400000   // values and pieces that are looked at
#define EINI_VALUE_FAR ((int64_t)1 << 52)  // no coordinate is there
#define EINI_VALUE_PARTS 512     // of a fold

enum { EINI_V_INPUT, EINI_V_INDEX, EINI_V_CONST, EINI_V_OP, EINI_V_MANY, EINI_V_FOLD };

typedef struct eini_vrange {  // lo + step * t for 0 <= t < n; step > 0
  int64_t lo, step, n;
} eini_vrange;

typedef struct eini_vrow {  // (off + the sum of c[v] * v) / den; den > 0
  int64_t c[EINI_VALUE_VARS], off, den;
} eini_vrow;

typedef struct eini_vkey {    // words of a value, or of values
  int64_t *w, n, cap;
} eini_vkey;

typedef struct eini_proof {
  eini_arena arena;
  eini_keys keys;          // of values
  eini_keys names;
  uint64_t *shape;         // of each value: a hash without its coordinates
  int64_t capshape;
  int64_t work;
  const char *why;         // it cannot be decided; or NULL
  struct eini_vleaf *leaf;  // see equal
} eini_proof;

static ein_status eini_proof_stuck(eini_proof *p, const char *why) {
  p->why = why;
  return EIN_ERR_UNSUPPORTED;
}

static ein_status eini_vkey_add(eini_proof *p, eini_vkey *k, int64_t word) {
  int64_t *w = (int64_t *)eini_grow(&p->arena, k->w, k->n, &k->cap, sizeof *w);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  k->w = w;
  w[k->n++] = word;
  return EIN_OK;
}

static ein_status eini_vkey_words(eini_proof *p, eini_vkey *k, const int64_t *w, int64_t n) {
  for (int64_t i = 0; i < n; i++) EINI_TRY(eini_vkey_add(p, k, w[i]));
  return EIN_OK;
}

// The number of a text.
static ein_status eini_value_name(eini_proof *p, const char *s, int64_t *number) {
  int64_t word[12] = {0};
  strncpy((char *)word, s, sizeof word - 1);
  *number = eini_key_number(&p->arena, &p->names, word, 12);
  if (strlen(s) >= sizeof word) return eini_proof_stuck(p, "a name is too long");
  return *number < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// A copy of a value's words: the table moves.
static ein_status eini_value_words(eini_proof *p, int64_t value, eini_vkey *k) {
  const int64_t from = value > 0 ? p->keys.end[value - 1] : 0, n = p->keys.end[value] - from;
  k->cap = k->n = n;
  k->w = EINI_NEW(&p->arena, int64_t, n);
  if (k->w == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(k->w, p->keys.word + from, (size_t)n * sizeof *k->w);
  return ++p->work > EINI_VALUE_WORK ? eini_proof_stuck(p, "it takes too long") : EIN_OK;
}

// ---- affine forms ----

static void eini_vrow_of(eini_vrow *a, int var) {
  memset(a, 0, sizeof *a);
  a->den = 1;
  if (var >= 0) a->c[var] = 1;
}

static ein_status eini_vrow_reduce(eini_proof *p, eini_vrow *a, int bad) {
  if (bad) return eini_proof_stuck(p, "its coordinates are too large");
  int64_t g = eini_gcd64(a->den, a->off);
  for (int v = 0; v < EINI_VALUE_VARS && g != 1; v++) g = eini_gcd64(g, a->c[v]);
  if (g < 0) g = -g;
  for (int v = 0; v < EINI_VALUE_VARS && g > 1; v++) a->c[v] /= g;
  if (g > 1) a->off /= g, a->den /= g;
  return EIN_OK;
}

// to += coef * a.
static ein_status eini_vrow_add(eini_proof *p, eini_vrow *to, const eini_vrow *a,
                                  int64_t coef) {
  const int64_t g = eini_gcd64(to->den, a->den), by = to->den / g;
  int64_t mine = a->den / g, x, y;
  int bad = eini_mul_overflow(coef, by, &coef);
  for (int v = 0; v <= EINI_VALUE_VARS; v++) {
    int64_t *at = v < EINI_VALUE_VARS ? &to->c[v] : &to->off;
    bad |= eini_mul_overflow(*at, mine, &x);
    bad |= eini_mul_overflow(v < EINI_VALUE_VARS ? a->c[v] : a->off, coef, &y);
    bad |= !bad && eini_add_overflow(x, y, at);
  }
  bad |= eini_mul_overflow(to->den, mine, &to->den);
  return eini_vrow_reduce(p, to, bad);
}

// a / by.
static ein_status eini_vrow_over(eini_proof *p, eini_vrow *a, int64_t by) {
  int bad = by == INT64_MIN;
  for (int v = 0; v < EINI_VALUE_VARS && by < 0; v++) a->c[v] = -a->c[v];
  if (by < 0 && !bad) a->off = -a->off, by = -by;
  bad |= eini_mul_overflow(a->den, by, &a->den);
  return eini_vrow_reduce(p, a, bad);
}

static int eini_vrow_constant(const eini_vrow *a) {
  int v = 0;
  while (v < EINI_VALUE_VARS && a->c[v] == 0) v++;
  return v == EINI_VALUE_VARS;
}

static ein_status eini_vrow_say(eini_proof *p, const eini_vrow *a, eini_vkey *k) {
  int64_t n = 0;
  for (int v = 0; v < EINI_VALUE_VARS; v++) n += a->c[v] != 0;
  EINI_TRY(eini_vkey_add(p, k, n));
  for (int v = 0; v < EINI_VALUE_VARS; v++) {
    if (a->c[v] == 0) continue;
    EINI_TRY(eini_vkey_add(p, k, v));
    EINI_TRY(eini_vkey_add(p, k, a->c[v]));
  }
  EINI_TRY(eini_vkey_add(p, k, a->off));
  return eini_vkey_add(p, k, a->den);
}

// Reads what eini_vrow_say wrote at word *at.
static void eini_vrow_read(const eini_vkey *k, int64_t *at, eini_vrow *a) {
  eini_vrow_of(a, -1);
  for (int64_t n = k->w[(*at)++]; n > 0; n--, *at += 2) a->c[k->w[*at]] = k->w[*at + 1];
  a->off = k->w[(*at)++];
  a->den = k->w[(*at)++];
}

// ---- ranges ----

static int64_t eini_vrange_last(const eini_vrange *r) { return r->lo + r->step * (r->n - 1); }

// What two have in common; n is 0 where that is nothing.
static eini_vrange eini_vrange_meet(const eini_vrange *a, const eini_vrange *b) {
  eini_vrange m = {0, 1, 0};
  int64_t lo = eini_max64(a->lo, b->lo), t = 0;
  const int64_t last = eini_min64(eini_vrange_last(a), eini_vrange_last(b));
  if (a->n <= 0 || b->n <= 0) return m;
  const int64_t step = a->step / eini_gcd64(a->step, b->step) * b->step;
  lo = a->lo + (lo - a->lo + a->step - 1) / a->step * a->step;
  for (; t < b->step && lo <= last && (lo - b->lo) % b->step != 0; t++) lo += a->step;
  if (lo > last || lo < b->lo || (lo - b->lo) % b->step != 0) return m;
  m.lo = lo;
  m.step = step;
  m.n = (last - lo) / step + 1;
  if (m.n == 1) m.step = 1;
  return m;
}

static int eini_vrange_same(const eini_vrange *a, const eini_vrange *b) {
  return a->n == b->n && (a->n == 0 || a->lo == b->lo) && (a->n < 2 || a->step == b->step);
}

// ---- values ----

static uint64_t eini_value_shape(const eini_proof *p, const eini_vkey *k);

static ein_status eini_value_of(eini_proof *p, const eini_vkey *k, int64_t *value) {
  const int64_t known = p->keys.n;
  *value = eini_key_number(&p->arena, &p->keys, k->w, k->n);
  if (*value < 0) return EIN_ERR_NO_MEMORY;
  if (*value < known) return EIN_OK;
  uint64_t *s = (uint64_t *)eini_grow(&p->arena, p->shape, *value, &p->capshape, sizeof *s);
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  p->shape = s;
  s[*value] = eini_value_shape(p, k);
  return ++p->work > EINI_VALUE_WORK ? eini_proof_stuck(p, "it takes too long") : EIN_OK;
}

// Where the rows of a value, and where the values in it, stand in its words: calls fn for each.
typedef struct eini_vwalk {
  ein_status (*row_fn)(struct eini_vwalk *x, const eini_vrow *a);
  ein_status (*value_fn)(struct eini_vwalk *x, int64_t value);
  eini_proof *p;
  int bound;               // coordinates that are bound around the value at hand
  eini_vkey to;            // what is made of it, where that is
  void *user;
} eini_vwalk;

static ein_status eini_value_rows(eini_vwalk *x, const eini_vkey *k, int64_t *at, int64_t n) {
  eini_vrow a;
  for (; n > 0; n--) {
    eini_vrow_read(k, at, &a);
    EINI_TRY(x->row_fn(x, &a));
  }
  return EIN_OK;
}

// Words that stay go to x->to.
static ein_status eini_value_walk(eini_vwalk *x, const eini_vkey *k) {
  eini_proof *p = x->p;
  int64_t at = 2, n;
  EINI_TRY(eini_vkey_words(p, &x->to, k->w, 2));
  switch (k->w[0]) {
    case EINI_V_INPUT:
      EINI_TRY(eini_vkey_words(p, &x->to, k->w + 2, 2));
      at = 4;
      return eini_value_rows(x, k, &at, k->w[3]);
    case EINI_V_INDEX: return eini_value_rows(x, k, &at, 1);
    case EINI_V_CONST: return eini_vkey_words(p, &x->to, k->w + 2, k->n - 2);
    case EINI_V_OP:
      EINI_TRY(eini_vkey_words(p, &x->to, k->w + 2, 3));
      x->bound = 0;
      for (at = 5; at < k->n; at++) EINI_TRY(x->value_fn(x, k->w[at]));
      return EIN_OK;
    case EINI_V_FOLD:  // fold, name, rows; ranges, and what is folded
      EINI_TRY(eini_vkey_words(p, &x->to, k->w + 2, 3));
      at = 5;
      EINI_TRY(eini_value_rows(x, k, &at, k->w[4]));
      n = 1;
      break;
    default:  // fold, how, parts
      EINI_TRY(eini_vkey_words(p, &x->to, k->w + 2, 3));
      n = k->w[4];
      at = 5;
  }
  for (; n > 0; n--) {
    const int64_t words = 1 + 3 * k->w[at];
    EINI_TRY(eini_vkey_words(p, &x->to, k->w + at, words));
    x->bound = (int)k->w[at];
    EINI_TRY(x->value_fn(x, k->w[at + words]));
    at += words + 1;
  }
  return EIN_OK;
}

static uint64_t eini_value_shape(const eini_proof *p, const eini_vkey *k) {
  const int64_t head = k->w[0] == EINI_V_MANY ? 4 : k->w[0] == EINI_V_INDEX ? 2
                       : k->w[0] == EINI_V_CONST ? k->n : 4;
  uint64_t sum = eini_hash(k->w, (size_t)eini_min64(head, k->n) * sizeof *k->w, 3);
  int64_t at = 5;
  if (k->w[0] == EINI_V_OP)
    for (; at < k->n; at++) sum += eini_hash(&p->shape[k->w[at]], sizeof(uint64_t), (uint64_t)at);
  uint64_t last = 0;
  for (int64_t n = k->w[0] == EINI_V_MANY ? k->w[4] : 0; n > 0; n--) {  // cuts do not count
    const int64_t body = at + 1 + 3 * k->w[at];
    const uint64_t own = eini_hash(&p->shape[k->w[body]], sizeof own, 5);
    if (own != last) sum += last = own;
    at = body + 1;
  }
  return sum;
}
