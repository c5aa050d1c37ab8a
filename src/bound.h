// ================================================================================================
// >>bound  how little a statement can move
// Takes what boxes of a statement or group touch; gives intensity, tile, and a number of elements
// that every execution with a fast memory moves. SOAP as in Deinsum, section IV.
// ================================================================================================

#define EINI_IO_INDICES 128       // of a statement, and a quarter of its accesses, at most
#define EINI_IO_POINTS 40      // where points(x) is looked at, at most
#define EINI_IO_ERROR 1e-11    // by which quotients are made smaller before they are rounded
#define EINI_IO_WINDOW 24      // lengths of segments, or numbers of them, tried around the best

// The most points that a segment of an execution can have which touches x elements, near one x:
// log points <= log_points + slope * (log x - log_x), for points is concave in logarithms.
typedef struct eini_reach {
  double log_x, log_points, slope, mu;
} eini_reach;

typedef struct eini_io {
  eini_convex c;
  const int *var;                 // [n] the variable that an index is part of; -1: none
  int n;
  double least, most;             // elements that a point touches, and all points
  double log_all;                 // log of all points that variables speak of
  int nreach;
  eini_reach reach[EINI_IO_POINTS];  // by log_x
  double fast;                    // elements of the fast memory
  double rho, x0;                 // points per element moved, at most; elements of a segment
  double *tile;                   // [n]
} eini_io;

// ---- the programme ----

// Indices that stand in the same terms are one variable, which is their product.
static int eini_io_alike(const eini_terms *t, const eini_touch *x, int i, int k) {
  for (int m = 0; m < t->nterm; m++)
    if (t->e[(int64_t)m * t->n + i] != t->e[(int64_t)m * t->n + k]) return 0;
  for (int m = 0; m < t->nlimit; m++) {
    const unsigned char *in = x->image[t->limit[2 * m + 1]].in;
    if (in[i] != in[k]) return 0;
  }
  return 1;
}

static int eini_io_used(const eini_terms *t, const eini_touch *x, int i) {
  for (int m = 0; m < t->nterm; m++)
    if (t->e[(int64_t)m * t->n + i] != 0) return 1;
  for (int m = 0; m < t->nlimit; m++)
    if (x->image[t->limit[2 * m + 1]].in[i]) return 1;
  return 0;
}

static ein_status eini_io_make(eini_arena *a, const eini_touch *t, int capped, double fast,
                                  eini_io *b) {
  eini_terms terms;
  int nvar = 0, *var = EINI_NEW(a, int, t->n), *first = EINI_NEW(a, int, t->n);
  memset(b, 0, sizeof *b);
  b->n = t->n;
  b->var = var;
  b->fast = fast;
  b->tile = EINI_NEW(a, double, t->n);
  if (var == NULL || first == NULL || b->tile == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_terms_of(a, t, capped, &terms));
  for (int i = 0; i < t->n; i++) {
    var[i] = -1;
    if ((capped && t->extent[i] <= 1) || !eini_io_used(&terms, t, i)) continue;
    for (var[i] = 0; var[i] < nvar && !eini_io_alike(&terms, t, i, first[var[i]]);) var[i]++;
    if (var[i] == nvar) first[nvar++] = i;
  }
  int more = nvar;
  for (int m = 0; m < terms.nterm; m++) more += terms.limited[m];
  EINI_TRY(eini_convex_new(a, more, terms.nterm, terms.nlimit, &b->c));
  eini_convex *c = &b->c;
  for (int v = 0; v < more; v++) c->w[v] = v < nvar, c->cap[v] = capped && v < nvar ? 0 : INFINITY;
  for (int i = 0; i < t->n && capped; i++)
    if (var[i] >= 0) c->cap[var[i]] += log((double)t->extent[i]);
  for (int m = 0, y = nvar; m < terms.nterm; m++) {
    double all = log(fabs(terms.coef[m]));
    c->coef[m] = terms.coef[m];
    for (int v = 0; v < nvar; v++) {
      c->e[(int64_t)m * more + v] = terms.e[(int64_t)m * t->n + first[v]];
      if (capped) all += c->e[(int64_t)m * more + v] * c->cap[v];
    }
    for (int k = 0; k < terms.nlimit && terms.limited[m]; k++) {
      double some = 0, *row = c->row + (int64_t)k * more;
      if (terms.limit[2 * k] != m) continue;
      for (int v = 0; v < nvar; v++) row[v] = t->image[terms.limit[2 * k + 1]].in[first[v]];
      for (int v = 0; v < nvar && capped; v++) some += row[v] * c->cap[v];
      row[y] = -1;
      all = fmax(all, some);
    }
    if (terms.limited[m]) c->e[(int64_t)m * more + y++] = 1;
    b->least += c->coef[m];
    b->most += (c->coef[m] < 0 ? -1 : 1) * exp(all);
  }
  if (!capped) b->most = INFINITY;
  b->log_all = 0;
  for (int v = 0; v < nvar; v++) b->log_all += c->cap[v];
  return EIN_OK;
}

// ---- points of the function ----

static double eini_io_gain(const eini_io *b, const eini_reach *p) {
  const double x = exp(p->log_x) - b->fast;
  return x > 0 ? log(x) - p->log_points : -INFINITY;
}

// Adds a point; equal ones once, the last one may be overwritten when there are too many.
static void eini_io_add(eini_io *b, double log_x, double log_points, double mu) {
  int to = b->nreach < EINI_IO_POINTS ? b->nreach++ : EINI_IO_POINTS - 1;
  for (; to > 0 && b->reach[to - 1].log_x > log_x; to--) b->reach[to] = b->reach[to - 1];
  b->reach[to].log_x = log_x;
  b->reach[to].log_points = log_points;
  b->reach[to].mu = mu;
  b->reach[to].slope = mu < INFINITY ? exp(log_x) / mu : 0;
}

static void eini_io_at(eini_io *b, double mu) {
  eini_convex_at(&b->c, mu);
  if (b->c.x > 0 && b->c.gap < 0.5 * EINI_IO_ERROR)
    eini_io_add(b, log(b->c.x), b->c.log_points, mu);
}

static int eini_io_free(const eini_convex *c, int i) {
  return c->w[i] > 0 && c->z[i] > c->up[i] && c->room[i] > c->down[i];
}

// Elements that a box touches of what does not move with its variable i: the sum of
// (1 - e / w) * term. Where i is inside its bounds, this is x - mu, without cancellation.
static double eini_io_still(const eini_convex *c, int i, double mu) {
  double sum = 0;
  for (int k = 0; k < c->m; k++)
    sum += (1 - c->e[(int64_t)k * c->n + i] / c->w[i]) * c->t[k] * mu;
  return sum;
}

// x - mu at the solution for mu.
static double eini_io_rest(const eini_convex *c, double mu) {
  int most = -1;
  for (int i = 0; i < c->n && c->k == 0; i++)
    if (eini_io_free(c, i) && (most < 0 || c->z[i] > c->z[most])) most = i;
  return most < 0 ? c->x - mu : eini_io_still(c, most, mu);
}

// The price at which x - mu is the fast memory, from a price near: there points per element moved
// are least. x - mu is about a power of mu: a secant in logarithms, kept between prices on both
// sides. 0, INFINITY: it would be below, above all.
static double eini_io_root(eini_io *b, double mu) {
  const double s = b->fast;
  double low = 0, high = INFINITY, last = 0, before = 0, power = 1;
  for (int i = 0; i < 80; i++) {
    eini_io_at(b, mu);
    const double still = eini_io_rest(&b->c, mu), f = still - s;
    if (fabs(f) <= 1e-11 * s) return mu;
    if (f < 0) low = mu;
    else high = mu;
    if (f > 0 && b->c.x <= b->least * (1 + 1e-12)) return 0;
    if (high <= low * (1 + 4e-15)) return mu;
    if (i > 0 && still > 0 && before > 0) power = log(still / before) / log(mu / last);
    if (high == INFINITY && mu >= 4096 * s && last <= mu / 64 &&
        (still <= 1.2 * before || b->c.x - mu <= 1e-12 * mu)) return INFINITY;  // it grows no more
    double next = mu * pow(s / fmax(still, 1e-3), 1 / (power > 0.02 ? power : 0.02));
    if (high == INFINITY && i > 0 && !(next < 4096 * mu)) next = 4096 * mu;
    if (high == INFINITY && (still <= 0 || (i == 1 && power < 0.05))) next = 4096 * fmax(mu, s);
    if (low == 0) next = fmin(next, i > 3 ? mu / 4 : mu);
    else if (high < INFINITY && (!(next > low && next < high) || i > 30)) next = sqrt(low * high);
    if (!(next < 1e280)) return INFINITY;
    last = mu;
    before = still;
    mu = next;
  }
  return mu;
}

// Solves a * x = b, both overwritten, with pivots. 0: no.
static int eini_io_linear(double *a, double *b, int n) {
  for (int j = 0; j < n; j++) {
    int p = j;
    for (int i = j + 1; i < n; i++)
      if (fabs(a[(int64_t)i * n + j]) > fabs(a[(int64_t)p * n + j])) p = i;
    if (!(fabs(a[(int64_t)p * n + j]) > 1e-9)) return 0;
    for (int k = 0; k < n && p != j; k++) {
      const double x = a[(int64_t)j * n + k];
      a[(int64_t)j * n + k] = a[(int64_t)p * n + k];
      a[(int64_t)p * n + k] = x;
    }
    const double x = b[j];
    b[j] = b[p];
    b[p] = x;
    for (int i = j + 1; i < n; i++) {
      const double f = a[(int64_t)i * n + j] / a[(int64_t)j * n + j];
      for (int k = j; k < n; k++) a[(int64_t)i * n + k] -= f * a[(int64_t)j * n + k];
      b[i] -= f * b[j];
    }
  }
  for (int j = n - 1; j >= 0; j--) {
    for (int k = j + 1; k < n; k++) b[j] -= a[(int64_t)j * n + k] * b[k];
    b[j] /= a[(int64_t)j * n + j];
  }
  return 1;
}

// Sides at the best price to all digits: what does not move with a variable that is inside its
// bounds is the fast memory. They stay where these equations have several solutions.
static void eini_io_polish(eini_io *b) {
  eini_convex *c = &b->c;
  const int n = c->n;
  if (c->k > 0) return;
  c->mu = 0;
  for (int round = 0; round < 8; round++) {
    double most = 0;
    eini_convex_terms(c, b->fast);
    for (int i = 0; i < n; i++) {
      double *h = c->hess + (int64_t)i * n;
      const int open = eini_io_free(c, i);
      for (int k = 0; k < n; k++) h[k] = i == k && !open;
      c->step[i] = 0;
      for (int m = 0; m < c->m && open; m++) {
        const double *e = c->e + (int64_t)m * n, by = (1 - e[i] / c->w[i]) * c->t[m];
        c->step[i] -= by;
        for (int k = 0; k < n && by != 0; k++) h[k] += by * e[k];
      }
      c->step[i] += open;
    }
    if (!eini_io_linear(c->hess, c->step, n)) return;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(c->step[i]));
    if (!(most < 0.5)) return;
    for (int i = 0; i < n; i++) {
      c->z[i] = fmin(fmax(c->z[i] + c->step[i], 0), c->cap[i]);
      if (!eini_io_free(c, i)) c->z[i] = c->z[i] < c->room[i] ? 0 : c->cap[i];
    }
    if (most < 1e-14) break;
  }
  eini_convex_terms(c, 1);
  c->log_points = eini_dot(c->w, c->z, n);
}

// ---- intensity ----

static void eini_io_take(eini_io *b, double log_points, double x) {
  const double rho = exp(log_points) / (x - b->fast);
  if (!(x > b->fast) || (b->rho > 0 && !(rho < b->rho))) return;
  b->rho = rho;
  b->x0 = x;
  for (int i = 0; i < b->n; i++) b->tile[i] = b->var[i] < 0 ? 0 : b->c.z[b->var[i]];
}

// The best price near mu, to all digits.
static void eini_io_best(eini_io *b, double mu) {
  eini_convex *c = &b->c;
  mu = eini_io_root(b, mu);
  if (mu == INFINITY) {  // what points(x) / x goes to
    eini_io_at(b, 1e4 * b->fast);
    for (int i = 0; i < b->n; i++) b->tile[i] = b->var[i] < 0 ? 0 : c->z[b->var[i]];
    eini_io_at(b, 1e20 * b->fast);
    b->rho = exp(c->log_points - log(c->x));
    b->x0 = INFINITY;
    for (int i = 0; i < b->n; i++)
      if (b->var[i] >= 0 && c->z[b->var[i]] > b->tile[i] + 9) b->tile[i] = INFINITY;
  } else if (mu > 0) {
    eini_io_polish(b);
    eini_io_take(b, c->log_points, c->x);
  } else {
    for (int i = 0; i < c->n; i++) c->z[i] = 0;
    eini_io_take(b, 0, b->least);
  }
}

// Between two points, points(x) is no less than the straight line in logarithms: the x there that
// promises most, and what it promises.
static double eini_io_promise(const eini_io *b, const eini_reach *p, double *x) {
  const double slope = (p[1].log_points - p[0].log_points) / (p[1].log_x - p[0].log_x);
  double to = slope > 1 ? log(b->fast * slope / (slope - 1)) : p[1].log_x;
  to = fmin(fmax(to, p[0].log_x), p[1].log_x);
  *x = exp(to);
  return *x > b->fast ? log(*x - b->fast) - p[0].log_points - slope * (to - p[0].log_x)
                      : -INFINITY;
}

// Extents bound sides: there may be several best prices, and the whole is a segment, too. Divides
// the function until no part of it promises more than what was found.
static void eini_io_search(eini_io *b) {
  eini_convex *c = &b->c;
  if (b->least > 0) eini_io_add(b, log(b->least), 0, 0);
  if (b->most < INFINITY && c->n > 0) eini_io_add(b, log(b->most), b->log_all, INFINITY);
  while (b->nreach < EINI_IO_POINTS - 8) {
    double best = -INFINITY, most = -INFINITY, x = 0, at = 0, promise;
    int part = -1;
    for (int i = 0; i < b->nreach; i++) best = fmax(best, eini_io_gain(b, &b->reach[i]));
    for (int i = 0; i + 1 < b->nreach; i++) {
      if (b->reach[i + 1].log_x - b->reach[i].log_x < 1e-9) continue;
      promise = eini_io_promise(b, &b->reach[i], &x);
      if (promise > most) most = promise, part = i, at = x;
    }
    if (part < 0 || most <= best + 1e-4) break;
    const eini_reach *p = &b->reach[part];
    const double slope = (p[1].log_points - p[0].log_points) / (p[1].log_x - p[0].log_x);
    const int before = b->nreach;
    eini_io_at(b, at / slope);
    if (b->nreach == before) break;
  }
}

// Other best prices, better than the one that was found by less than the search divides: parts that
// promise more, and do not end at that one.
static void eini_io_others(eini_io *b) {
  for (int turn = 0; turn < 4 && b->nreach < EINI_IO_POINTS - 8; turn++) {
    double most = -log(b->rho) + 1e-10, mu = 0, x;
    for (int i = 0; i + 1 < b->nreach; i++) {
      const eini_reach *p = &b->reach[i];
      const double wide = p[1].log_x - p[0].log_x;
      const int here = (fabs(p[0].log_x - log(b->x0)) < 1e-7 && p[0].mu > 0) ||
                       (fabs(p[1].log_x - log(b->x0)) < 1e-7 && p[1].mu < INFINITY);
      if (wide < 1e-9 || here) continue;
      const double promise = eini_io_promise(b, p, &x);
      if (promise <= most) continue;
      most = promise;
      mu = x * wide / (p[1].log_points - p[0].log_points);
    }
    if (!(mu > 0)) return;
    mu = eini_io_root(b, mu);
    if (!(mu > 0) || mu == INFINITY) return;
    eini_io_polish(b);
    eini_io_take(b, b->c.log_points, b->c.x);
  }
}

// Intensity and tile: the least of points(x) / (x - fast).
static void eini_io_intensity(eini_io *b, int capped) {
  eini_convex *c = &b->c;
  b->rho = 0;
  if (capped && b->most <= b->fast) {  // all of it fits
    for (int i = 0; i < c->n; i++) c->z[i] = c->cap[i];
    for (int i = 0; i < b->n; i++) b->tile[i] = b->var[i] < 0 ? 0 : c->z[b->var[i]];
    b->rho = b->x0 = INFINITY;
    return;
  }
  if (c->n == 0) {
    eini_io_take(b, 0, b->least);
    if (b->rho <= 0) b->rho = b->x0 = INFINITY;
    return;
  }
  double mu = b->fast > 0 ? b->fast : 1;
  if (capped) {
    eini_io_search(b);
    const eini_reach *best = &b->reach[0];
    for (int i = 1; i < b->nreach; i++)
      if (eini_io_gain(b, &b->reach[i]) > eini_io_gain(b, best)) best = &b->reach[i];
    if (best->mu == INFINITY) {
      for (int i = 0; i < c->n; i++) c->z[i] = c->cap[i];
      eini_io_take(b, b->log_all, b->most);
      mu = 0;
    } else if (best->mu > 0) {
      mu = best->mu;
    }
  }
  if (mu > 0) eini_io_best(b, mu);
  if (b->rho <= 0) b->rho = b->x0 = INFINITY;
  else if (capped) eini_io_others(b);
}

// ---- what must move ----

// The logarithm of the most points that x elements allow, or a little more.
static double eini_io_points(const eini_io *b, double log_x) {
  double least = INFINITY;
  for (int k = 0; k < b->nreach; k++) {
    const eini_reach *p = &b->reach[k];
    if (p->mu > 0) least = fmin(least, p->log_points + p->slope * (log_x - p->log_x));
  }
  return least;
}

// The logarithm of the most elements that allow fewer points than that, or a little less.
static double eini_io_elements(const eini_io *b, double log_points) {
  double most = -INFINITY;
  for (int k = 0; k < b->nreach; k++) {
    const eini_reach *p = &b->reach[k];
    if (p->slope > 0) most = fmax(most, p->log_x + (log_points - p->log_points) / p->slope);
    else if (p->mu > 0 && log_points > p->log_points) most = fmax(most, log(b->most));
  }
  return most;
}

// Elements that move while log_volume points are gone through, in whole segments of x elements:
// (x - fast) * (number of segments - 1), for the x, a whole number, for which that is most. Around
// the best intensity either lengths or numbers are further apart; those are tried.
static double eini_io_moved(const eini_io *b, double log_volume) {
  const double log_q = log_volume - log(b->rho) - log(b->x0 - b->fast), all = log_volume -
      EINI_IO_ERROR;
  double best = 0, slope = 1;
  if (!(b->rho < INFINITY) || !(b->x0 < INFINITY)) return 0;
  for (int k = 0; k < b->nreach; k++)
    if (exp(b->reach[k].log_x) <= b->x0 * (1 + 1e-9) && b->reach[k].slope > 0)
      slope = b->reach[k].slope;
  const int lengths = log_q + log(slope) > log(b->x0);
  for (int i = -EINI_IO_WINDOW - 1; i <= EINI_IO_WINDOW; i++) {
    const double mid = floor(lengths ? b->x0 : exp(log_q));
    double x = mid + i, q = mid + i;
    if (lengths && i >= -EINI_IO_WINDOW) {
      if (!(x > b->fast)) continue;
      q = ceil(exp(all - eini_io_points(b, log(x)))) - 1;
    } else {
      if (i < -EINI_IO_WINDOW) q = 1;
      if (!(q >= 1)) continue;
      x = ceil(exp(eini_io_elements(b, all - log(q)))) - 1;
    }
    if (x > b->fast && q >= 1) best = fmax(best, (x - b->fast) * q);
  }
  return best;
}

// ---- any set of points ----

// No more elements than an access touches in all: in the smallest box around them, or as many as
// its indices have values.
static double eini_image_most(const eini_touch *t, const eini_image *x) {
  double points = 1, box = 1;
  for (int i = 0; i < t->n; i++) points *= x->in[i] ? (double)t->extent[i] : 1;
  for (int r = 0; r < x->map->rows; r++) {
    double range = 1;
    for (int e = x->map->first[r]; e < x->map->first[r + 1]; e++)
      range += (double)eini_abs64(x->map->term[e].coef) *
               (double)(t->extent[x->at[x->map->term[e].index]] - 1);
    box *= range;
  }
  return fmin(points, box);
}

// The linear part of an image over the indices that count, in echelon form.
static ein_status eini_image_space(eini_arena *a, const eini_image *x, int n, const int *column,
                                   eini_subspace *to) {
  const eini_map *m = x->map;
  to->basis = EINI_NEW(a, int64_t, (int64_t)m->rows * n);
  if (to->basis == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < m->rows; r++) {
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      const int c = column[x->at[m->term[e].index]];
      if (c >= 0) to->basis[(int64_t)r * n + c] += m->term[e].coef;
    }
  }
  to->dim = eini_echelon(to->basis, m->rows, n);
  return to->dim < 0 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

typedef struct eini_asks {    // of exponents s_j: sum s_j row[1 + j] >= row[0]
  int m, n;
  double *row;                // [n][1 + m]
  int64_t cap;
} eini_asks;

// Adds what is not implied by something that is there, without what follows from it.
static ein_status eini_asks_add(eini_arena *a, eini_asks *q, const double *row) {
  const int64_t wide = 1 + q->m;
  const size_t bytes = (size_t)wide * sizeof *row;
  for (int i = 0; i < q->n; i++) {
    const double *x = q->row + i * wide;
    int less = 1, more = 1;  // than that many times the other
    for (int j = 1; j <= q->m; j++) {
      less &= x[j] * row[0] <= row[j] * x[0];
      more &= x[j] * row[0] >= row[j] * x[0];
    }
    if (less) return EIN_OK;
    if (more && i < --q->n) memcpy(q->row + i * wide, q->row + q->n * wide, bytes);
    i -= more;
  }
  double *p = (double *)eini_grow(a, q->row, q->n, &q->cap, bytes);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  q->row = p;
  memcpy(p + q->n++ * wide, row, bytes);
  return EIN_OK;
}

// What subspaces of each block of coordinates ask: sum s_j rank(A_j H) >= rank H.
static ein_status eini_io_asks(eini_arena *a, const eini_subspace *map, int m, int n,
                               eini_asks *q) {
  int *block = EINI_NEW(a, int, n);
  eini_subspace *part = EINI_NEW(a, eini_subspace, m);
  eini_lattice *l = EINI_NEW(a, eini_lattice, 1);
  double *row = EINI_NEW(a, double, 1 + (int64_t)m);
  memset(q, 0, sizeof *q);
  q->m = m;
  if (block == NULL || part == NULL || l == NULL || row == NULL) return EIN_ERR_NO_MEMORY;
  eini_map_blocks(map, m, n, block);
  for (int b = 0; b < n; b++) {
    l->a = a;
    l->n = 0;
    for (int c = 0; c < n; c++) l->n += block[c] == b;
    if (l->n == 0) continue;
    for (int j = 0; j < m; j++) EINI_TRY(eini_map_part(a, n, &map[j], block, b, l->n, &part[j]));
    EINI_TRY(eini_lattice_of(l, part, m));
    for (int i = 0; i < l->nspace; i++) {
      row[0] = l->space[i].dim;
      for (int j = 0; j < m; j++) {
        const int rank = eini_subspace_rank(a, l->n, &part[j], &l->space[i]);
        if (rank < 0) return rank == -1 ? EIN_ERR_TOO_LARGE : EIN_ERR_NO_MEMORY;
        row[1 + j] = rank;
      }
      EINI_TRY(eini_asks_add(a, q, row));
    }
  }
  return EIN_OK;
}

// The programme whose variables are subspaces: exponents s_j that do what those ask are the dual
// of it.
static ein_status eini_io_spaces(eini_arena *a, const eini_touch *t, const eini_asks *q,
                                 const eini_subspace *map, const int *list, double fast,
                                 eini_io *b) {
  const int m = q->m, n = q->n;
  EINI_TRY(eini_convex_new(a, n, m, m, &b->c));
  eini_convex *c = &b->c;
  c->k = 0;
  b->fast = fast;
  b->least = m;
  b->most = 0;
  for (int i = 0; i < n; i++) {
    double seen = 0;
    c->w[i] = q->row[(int64_t)i * (1 + m)], c->cap[i] = INFINITY;
    for (int j = 0; j < m; j++) seen += q->row[(int64_t)i * (1 + m) + 1 + j];
    if (seen <= 0) return EIN_ERR_TOO_LARGE;  // by no access
  }
  for (int j = 0; j < m; j++) {
    const double most = eini_image_most(t, &t->image[list[j]]);
    b->most += most;
    c->coef[j] = 1;
    for (int i = 0; i < n; i++)
      c->e[(int64_t)j * n + i] = c->row[(int64_t)c->k * n + i] =
          q->row[(int64_t)i * (1 + m) + 1 + j];
    if (map[j].dim > 0) c->rhs[c->k++] = log(most);  // others are one element
  }
  return EIN_OK;
}

// For accesses that no boxes are best for. EIN_ERR_TOO_LARGE: that is not known.
static ein_status eini_io_any(eini_arena *a, const eini_touch *t, double fast, eini_io *b) {
  int *list = EINI_NEW(a, int, 2 * (int64_t)t->nimage), *column = EINI_NEW(a, int, t->n);
  int m = 0, n = 0;
  eini_subspace *map = EINI_NEW(a, eini_subspace, t->nimage);
  eini_asks q;
  memset(b, 0, sizeof *b);
  if (list == NULL || column == NULL || map == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < t->n; i++) {
    int used = 0;
    for (int k = 0; k < t->nimage; k++) used |= t->image[k].in[i];
    column[i] = used && t->extent[i] > 1 ? n++ : -1;
    if (column[i] >= 0) b->log_all += log((double)t->extent[i]);
  }
  for (int from = 0, to; from < t->nimage; from = to, m++) {
    for (to = from; to < t->nimage && t->image[to].tensor == t->image[from].tensor;) to++;
    int most = 0;
    const int some = eini_touch_reduce(t, from, to, 1, list + t->nimage);
    for (int k = 1; k < some; k++)
      if (t->image[list[t->nimage + k]].whole > t->image[list[t->nimage + most]].whole) most = k;
    list[m] = list[t->nimage + most];
    EINI_TRY(eini_image_space(a, &t->image[list[m]], n, column, &map[m]));
  }
  EINI_TRY(eini_io_asks(a, map, m, n, &q));
  EINI_TRY(eini_io_spaces(a, t, &q, map, list, fast, b));
  eini_io_intensity(b, 1);
  return EIN_OK;
}

// ---- bounds ----

typedef struct eini_limit {  // of a statement or a group
  double log_volume, compulsory;
  double bound, per_place;
  double touched;            // elements that the place with the most points touches at least; exact
                             //   where that is about x0
  eini_io paper, capped;     // without and with the extents as caps
} eini_limit;

// Sides of a tile from variables, each of which its indices share: equally, but for their caps.
static void eini_io_sides(eini_io *b, const eini_touch *t, int capped) {
  for (int v = 0; v < b->c.n; v++) {
    double left = 0;
    int n = 0;
    for (int i = 0; i < b->n; i++)
      if (b->var[i] == v) left = b->tile[i], n++;
    for (int open = n, cut = 1; cut && open > 0;) {
      const double share = left / open;
      cut = 0;
      for (int i = 0; i < b->n; i++) {
        if (b->var[i] != v || b->tile[i] < 0) continue;
        const double cap = log((double)t->extent[i]);
        if (!capped || share <= cap) continue;
        b->tile[i] = -1 - cap;  // settled
        left -= cap;
        open--;
        cut = 1;
      }
      for (int i = 0; i < b->n && !cut; i++)
        if (b->var[i] == v && b->tile[i] >= 0) b->tile[i] = left / open;
    }
  }
  for (int i = 0; i < b->n; i++) {
    if (b->var[i] >= 0 && b->tile[i] < 0) b->tile[i] = -1 - b->tile[i];
    b->tile[i] = exp(b->tile[i]);
    if (capped && (b->var[i] < 0 || b->tile[i] > (double)t->extent[i]))
      b->tile[i] = (double)t->extent[i];
    if (!capped && b->var[i] < 0) b->tile[i] = INFINITY;
  }
}

// t: what is touched; everything else is found. any: the bound itself is wanted, and not only
// intensities.
static ein_status eini_limit_find(eini_arena *a, const eini_touch *t, double fast, double places,
                                  eini_limit *x) {
  eini_io any, *holds = &x->capped;
  int compound = 0;
  if (t->n > EINI_IO_INDICES || t->nimage > 4 * EINI_IO_INDICES) return EIN_ERR_TOO_LARGE;
  x->log_volume = 0;
  for (int i = 0; i < t->n; i++) x->log_volume += log((double)t->extent[i]);
  x->compulsory = t->compulsory;
  x->bound = x->compulsory;
  x->per_place = x->touched = 0;
  for (int k = 0; k < t->nimage; k++) compound |= !t->image[k].apart;
  for (int capped = 0; capped < 2; capped++) {
    eini_io *b = capped ? &x->capped : &x->paper;
    EINI_TRY(eini_io_make(a, t, capped, fast, b));
    int loose = 0;
    for (int i = 0; i < t->n; i++) loose |= b->var[i] < 0 && !capped;
    eini_io_intensity(b, capped);
    eini_io_sides(b, t, capped);
    if (loose) b->rho = b->x0 = INFINITY;
  }
  if (compound) {
    const ein_status st = eini_io_any(a, t, fast, holds = &any);
    if (st == EIN_ERR_NO_MEMORY) return st;
    if (st != EIN_OK) return EIN_OK;
  }
  x->bound = fmax(x->bound, eini_io_moved(holds, holds->log_all));
  x->per_place = fmax(0, eini_io_moved(holds, holds->log_all - log(places)) - fast);
  x->touched = exp(eini_io_elements(holds, holds->log_all - log(places) - EINI_IO_ERROR));
  return EIN_OK;
}

// Of a statement: its accesses, that of the result where something is reduced.
static ein_status eini_touch_statement(eini_arena *a, const eini_stmt *s, eini_touch *t) {
  int *at = EINI_NEW(a, int, s->nindex);
  memset(t, 0, sizeof *t);
  t->n = s->nindex;
  t->extent = EINI_NEW(a, int64_t, s->nindex);
  if (at == NULL || t->extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    at[i] = i;
    t->extent[i] = s->index[i].extent;
  }
  t->compulsory = eini_points(s, NULL, 0, s->nfree);
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  for (int k = s->nfree < s->nindex ? -1 : 0; k < s->noperand; k++)
    EINI_TRY(eini_touch_add(a, t, eini_access(s, k), k < 0 ? s->out : s->operand[k], at));
  for (int from = 0, to; from < t->nimage; from = to) {
    double most = 0;
    for (to = from; to < t->nimage && t->image[to].tensor == t->image[from].tensor; to++)
      most = fmax(most, t->image[to].whole);
    if (t->image[from].tensor != s->out) t->compulsory += most;
  }
  if (s->fold == EIN_FOLD_BLOCK) t->nimage = 0;  // what it does with a block is not known
  return EIN_OK;
}
