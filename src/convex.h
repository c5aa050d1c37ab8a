// ================================================================================================
// >>convex  the convex programmes of I/O bounds
// Takes positive sums of exponentials and a price; gives the box, in logarithms, that is worth
// most, with a certificate: the gap between it and its dual.
// ================================================================================================

// For a price mu, the least of
//   (sum over k of coef[k] * exp(e[k] . z)) - mu * (w . z),  0 <= z <= cap,  row . z <= rhs.
// The sum is the size x of what a block touches, w . z the logarithm of its points, and mu is
// dx / d(w . z): it is the most that x elements allow. Terms of negative coef (images of boxes by
// compound coordinates) make it a local optimum.
typedef struct eini_convex {
  int n, m, k;             // variables, terms, rows
  double *e, *coef;        // [m][n], [m]
  double *w, *cap;         // [n]; a cap may be INFINITY, but is not 0
  double *row, *rhs;       // [k][n], [k]
  int inside;              // z and the duals are those of another mu
  double *z, *up, *down;   // [n] the result; the duals of z >= 0 and z <= cap, divided by mu
  double *dual;            // [k] of the rows
  double x, log_points;    // the sum, and w . z
  double gap;              // relative error of exp(w . z), for what x allows
  double *t, *grad, *step, *hess;  // [m] terms divided by mu, [n], [n], [n][n]
  double *room, *slack;    // [n], [k] between z and the caps, between row . z and rhs
  double *was, *old, mu;   // [n] z before a step, and before all; the price of z, 0: none
} eini_convex;

#define EINI_CONVEX_GAP 1e-13    // where it stops
#define EINI_CONVEX_STEPS 100
#define EINI_CONVEX_EXPONENT 4.0 // by which a term's exponent changes in a step, at most
#define EINI_CONVEX_NEAR 16      // Newton steps along bounds ..
#define EINI_CONVEX_SNAP 1e-6    // .. at which variables are that lie so close

static ein_status eini_convex_new(eini_arena *a, int n, int m, int k, eini_convex *c) {
  memset(c, 0, sizeof *c);
  c->n = n;
  c->m = m;
  c->k = k;
  const int64_t rows = (int64_t)m + k + n;
  double *p = EINI_NEW(a, double, rows * n + 2 * (int64_t)m + 10 * (int64_t)n + 3 * (int64_t)k);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  double **part[] = {&c->e, &c->row, &c->hess, &c->coef, &c->t, &c->w, &c->cap, &c->z,
                     &c->up, &c->down, &c->grad, &c->step, &c->room, &c->rhs, &c->dual,
                     &c->slack, &c->was, &c->old};
  const int64_t size[] = {(int64_t)m * n, (int64_t)k * n, (int64_t)n * n, m, m, n, n, n,
                          n, n, n, n, n, k, k, k, n, n};
  for (size_t i = 0; i < sizeof size / sizeof *size; i++) *part[i] = p, p += size[i];
  return EIN_OK;
}

static double eini_dot(const double *a, const double *b, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

// Terms at z, divided by mu, and their sum.
static void eini_convex_terms(eini_convex *c, double mu) {
  c->x = 0;
  for (int k = 0; k < c->m; k++) {
    c->t[k] = c->coef[k] * exp(eini_dot(c->e + (int64_t)k * c->n, c->z, c->n)) / mu;
    c->x += c->t[k] * mu;
  }
}

// Where nothing is known: each variable in turn takes its best value, if there are no rows.
static void eini_convex_start(eini_convex *c, double mu) {
  const int n = c->n;
  for (int i = 0; i < n; i++) c->z[i] = 0;
  eini_convex_terms(c, mu);
  for (int round = 0; round < 4 && c->k == 0; round++) {
    for (int i = 0; i < n; i++) {
      double sum = 0, most = 0;
      for (int k = 0; k < c->m; k++) {
        const double e = c->e[(int64_t)k * n + i];
        sum += e * c->t[k];
        most = e > most ? e : most;
      }
      if (sum <= 0 || most <= 0) continue;
      double to = c->z[i] + log(c->w[i] / sum) / most;
      to = to < 0 ? 0 : to > c->cap[i] ? c->cap[i] : to;
      const double by = exp(to - c->z[i]);
      for (int k = 0; k < c->m; k++) {
        const double e = c->e[(int64_t)k * n + i];
        if (e != 0) c->t[k] *= e == 1 ? by : pow(by, e);
      }
      c->z[i] = to;
    }
  }
}

// Puts z inside its bounds and makes duals that fit. Rows either only hold back, or bound a
// variable from below (coefficient -1), which is raised.
static void eini_convex_enter(eini_convex *c, double mu) {
  const int n = c->n;
  for (int i = 0; i < n; i++) {
    const double least = c->cap[i] / 4 < 0.03 ? c->cap[i] / 4 : 0.03;
    c->z[i] = fmin(fmax(c->z[i], least), c->cap[i] - least);
  }
  for (int r = 0; r < c->k; r++) {
    const double *row = c->row + (int64_t)r * n, used = eini_dot(row, c->z, n);
    const double over = used + 0.03 - c->rhs[r];
    int raised = 0;
    for (int i = 0; i < n && over > 0; i++)
      if (row[i] < 0) c->z[i] += over, raised = 1;
    for (int i = 0; i < n && over > 0 && !raised; i++)
      if (row[i] > 0) c->z[i] *= 0.9 * c->rhs[r] / used;
  }
  eini_convex_terms(c, mu);
  for (int r = 0; r < c->k; r++) {
    c->slack[r] = c->rhs[r] - eini_dot(c->row + (int64_t)r * n, c->z, n);
    c->dual[r] = 0.03 / (0.1 + c->slack[r]);
  }
  for (int i = 0; i < n; i++) {
    double g = -c->w[i];
    for (int k = 0; k < c->m; k++) g += c->t[k] * c->e[(int64_t)k * n + i];
    c->room[i] = c->cap[i] - c->z[i];
    c->up[i] = fmax(g, 0) + 0.01 / (1 + c->z[i]);
    c->down[i] = c->cap[i] < INFINITY ? fmax(-g, 0) + 0.01 / (1 + c->room[i]) : 0;
  }
}

// Solves hess * step = step by Cholesky; 0: it is not positive. Directions without curvature stay,
// and make it 2.
static int eini_convex_solve(double *h, double *b, int n) {
  int flat = 0;
  for (int j = 0; j < n; j++) {
    double d = h[(int64_t)j * n + j];
    const double floor = 1e-15 * d;
    for (int p = 0; p < j; p++) d -= h[(int64_t)j * n + p] * h[(int64_t)j * n + p];
    if (d < -1e3 * floor || !(d - d == 0)) return 0;
    flat |= d <= floor;
    d = d <= floor ? 1e150 : sqrt(d);
    h[(int64_t)j * n + j] = d;
    for (int i = j + 1; i < n; i++) {
      double s = h[(int64_t)i * n + j];
      for (int p = 0; p < j; p++) s -= h[(int64_t)i * n + p] * h[(int64_t)j * n + p];
      h[(int64_t)i * n + j] = s / d;
    }
  }
  for (int i = 0; i < n; i++) {
    for (int p = 0; p < i; p++) b[i] -= h[(int64_t)i * n + p] * b[p];
    b[i] /= h[(int64_t)i * n + i];
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int p = i + 1; p < n; p++) b[i] -= h[(int64_t)p * n + i] * b[p];
    b[i] /= h[(int64_t)i * n + i];
  }
  return 1 + flat;
}

// The Newton step towards products of slacks and duals that are tau. convex: negative terms have
// no curvature. 0: it has no minimum.
static int eini_convex_newton(eini_convex *c, double tau, int convex) {
  const int n = c->n;
  for (int64_t i = 0; i < (int64_t)n * n; i++) c->hess[i] = 0;
  for (int i = 0; i < n; i++) {
    c->step[i] = -c->grad[i] + tau / c->z[i] - tau / c->room[i];
    c->hess[(int64_t)i * n + i] = c->up[i] / c->z[i] + c->down[i] / c->room[i];
  }
  for (int k = 0; k < c->m + c->k; k++) {
    const int r = k - c->m;
    const double *v = r < 0 ? c->e + (int64_t)k * n : c->row + (int64_t)r * n;
    const double weight = r < 0 ? c->t[k] : c->dual[r] / c->slack[r];
    for (int i = 0; i < n && r >= 0; i++) c->step[i] -= tau / c->slack[r] * v[i];
    if (convex && weight < 0) continue;
    for (int i = 0; i < n; i++) {
      const double by = v[i] * weight;
      for (int j = 0; by != 0 && j <= i; j++) c->hess[(int64_t)i * n + j] += by * v[j];
    }
  }
  return eini_convex_solve(c->hess, c->step, n);
}

// The gradient at z, without duals.
static void eini_convex_slopes(eini_convex *c, double mu) {
  eini_convex_terms(c, mu);
  for (int i = 0; i < c->n; i++) c->grad[i] = -c->w[i];
  for (int k = 0; k < c->m; k++)
    for (int i = 0; i < c->n; i++) c->grad[i] += c->t[k] * c->e[(int64_t)k * c->n + i];
}

// The Newton step of the variables that are not held by their bounds (up, down: the duals there);
// convex: see above.
static int eini_convex_within(eini_convex *c, int convex) {
  const int n = c->n;
  for (int64_t i = 0; i < (int64_t)n * n; i++) c->hess[i] = 0;
  for (int k = 0; k < c->m; k++) {
    const double *v = c->e + (int64_t)k * n;
    for (int i = 0; i < n && !(convex && c->t[k] < 0); i++) {
      const double by = v[i] * c->t[k];
      for (int j = 0; by != 0 && j <= i; j++) c->hess[(int64_t)i * n + j] += by * v[j];
    }
  }
  for (int i = 0; i < n; i++) {
    c->step[i] = -c->grad[i];
    if (c->up[i] + c->down[i] <= 0) continue;
    for (int j = 0; j < n; j++) c->hess[(int64_t)eini_max64(i, j) * n + eini_min64(i, j)] = 0;
    c->hess[(int64_t)i * n + i] = 1;
    c->step[i] = 0;
  }
  return eini_convex_solve(c->hess, c->step, n);
}

// Which variables their bounds hold, with their duals; those that lie at one but for rounding are
// put there. Returns the largest component of the gradient of the others; or INFINITY: z moved.
static double eini_convex_hold(eini_convex *c) {
  double rest = 0;
  int moved = 0;
  for (int i = 0; i < c->n; i++) {
    const double g = c->grad[i], z = c->z[i];
    if (g > 0 && z < EINI_CONVEX_SNAP) c->z[i] = 0;
    if (g < 0 && c->cap[i] - z < EINI_CONVEX_SNAP) c->z[i] = c->cap[i];
    moved |= c->z[i] != z;
    c->room[i] = c->cap[i] - c->z[i];
    c->up[i] = c->z[i] <= 0 && g > 0 ? g : 0;
    c->down[i] = c->room[i] <= 0 && g < 0 ? -g : 0;
    if (c->up[i] + c->down[i] <= 0) rest = fmax(rest, fabs(g));
  }
  return moved ? INFINITY : rest;
}

// From z, which is near: Newton steps within the bounds, and along those that hold variables back,
// half as long where they lead up. There are no rows. 0: that leads nowhere, or not to one point.
static int eini_convex_near(eini_convex *c, double mu) {
  double last = INFINITY, value = INFINITY;
  for (int round = 0, one = 0; round < EINI_CONVEX_NEAR; round++) {
    double most = 0;
    eini_convex_slopes(c, mu);
    const double to = c->x / mu - eini_dot(c->w, c->z, c->n);
    if (to > value + 1e-12 * fabs(value)) {
      for (int i = 0; i < c->n; i++) c->z[i] = 0.5 * (c->z[i] + c->was[i]);
      continue;
    }
    value = to;
    c->gap = eini_convex_hold(c);
    if (round > 0 && (c->gap < EINI_CONVEX_GAP || (c->gap < 1e-11 && c->gap > 0.5 * last)))
      return one;
    last = c->gap;
    one = eini_convex_within(c, 0);
    if (one == 0 && eini_convex_within(c, 1) == 0) return 0;
    one = one == 1;
    for (int k = 0; k < c->m; k++)
      most = fmax(most, fabs(eini_dot(c->e + (int64_t)k * c->n, c->step, c->n)));
    const double share = most > EINI_CONVEX_EXPONENT ? EINI_CONVEX_EXPONENT / most : 1;
    for (int i = 0; i < c->n; i++) {
      c->was[i] = c->z[i];
      c->z[i] = fmin(fmax(c->z[i] + share * c->step[i], 0), c->cap[i]);
    }
  }
  return 0;
}

// The share of a step d that keeps v positive, if that is less than `share`.
static double eini_convex_share(double v, double d, double share) {
  return 0.995 * v < share * -d ? 0.995 * v / -d : share;
}

// Of three numbers of a bound: its slack, how that changes, and its dual, how the dual changes.
static double eini_convex_dual(double slack, double d, double dual, double tau) {
  return slack < INFINITY ? (tau - dual * d) / slack - dual : 0;
}

// Goes along the step as far as everything stays positive.
static void eini_convex_move(eini_convex *c, double tau) {
  const int n = c->n;
  double share = 1, most = 0;
  for (int k = 0; k < c->m; k++)
    most = fmax(most, fabs(eini_dot(c->e + (int64_t)k * n, c->step, n)));
  if (most > EINI_CONVEX_EXPONENT) share = EINI_CONVEX_EXPONENT / most;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < n; i++) {
      const double d = c->step[i], up = eini_convex_dual(c->z[i], d, c->up[i], tau);
      const double down = eini_convex_dual(c->room[i], -d, c->down[i], tau);
      if (pass == 0) {
        share = eini_convex_share(c->z[i], d, eini_convex_share(c->room[i], -d, share));
        share = eini_convex_share(c->up[i], up, eini_convex_share(c->down[i], down, share));
        continue;
      }
      c->z[i] += share * d;
      c->room[i] -= share * d;
      c->up[i] += share * up;
      c->down[i] += share * down;
    }
    for (int r = 0; r < c->k; r++) {
      const double d = -eini_dot(c->row + (int64_t)r * n, c->step, n);
      const double by = eini_convex_dual(c->slack[r], d, c->dual[r], tau);
      if (pass == 0) {
        share = eini_convex_share(c->slack[r], d, eini_convex_share(c->dual[r], by, share));
        continue;
      }
      c->slack[r] += share * d;
      c->dual[r] += share * by;
    }
  }
}

// Terms and gradient at z. Returns the sum of products of slacks and duals; *rest: the largest
// component of the gradient with the duals; *bounds: how many bounds there are.
static double eini_convex_state(eini_convex *c, double mu, double *rest, int *bounds) {
  const int n = c->n;
  double gap = 0;
  eini_convex_terms(c, mu);
  *bounds = n + c->k;
  *rest = 0;
  for (int r = 0; r < c->k; r++) gap += c->slack[r] * c->dual[r];
  for (int i = 0; i < n; i++) {
    double g = -c->w[i], part = c->down[i] - c->up[i];
    for (int k = 0; k < c->m; k++) g += c->t[k] * c->e[(int64_t)k * n + i];
    for (int r = 0; r < c->k; r++) part += c->dual[r] * c->row[(int64_t)r * n + i];
    c->grad[i] = g;
    *rest = fmax(*rest, fabs(g + part));
    gap += c->up[i] * c->z[i];
    if (c->room[i] < INFINITY) gap += c->down[i] * c->room[i], ++*bounds;
  }
  return gap;
}

// Primal-dual path following (Nocedal and Wright, chapter 19, without the line search: steps keep
// terms within a factor). Warm starts go on from the last price.
static void eini_convex_at(eini_convex *c, double mu) {
  double rest, last = INFINITY;
  int bounds, cold = !c->inside, near = c->k == 0 && c->n > 0;
  if (mu == c->mu) return;
  if (cold) eini_convex_start(c, mu);
  c->inside = 1;
  c->mu = mu;
  for (int k = 0; k < c->m && cold; k++) near &= c->coef[k] > 0;  // else there may be several
  memcpy(c->old, c->z, (size_t)c->n * sizeof *c->z);
  near = near && eini_convex_near(c, mu);
  if (!near) {
    memcpy(c->z, c->old, (size_t)c->n * sizeof *c->z);
    eini_convex_enter(c, mu);
  }
  for (int i = 0; !near; i++) {
    const double gap = eini_convex_state(c, mu, &rest, &bounds);
    c->gap = gap + rest;
    if (i == EINI_CONVEX_STEPS || c->n == 0) break;
    if (c->gap < EINI_CONVEX_GAP || (c->gap < 1e-11 && c->gap > 0.5 * last)) break;
    last = c->gap;
    const double part = gap / bounds;
    const double tau = part * fmin(0.2, fmax(10 * part, rest > part ? 0.1 : 0));
    if (!eini_convex_newton(c, tau, 0) && !eini_convex_newton(c, tau, 1)) break;
    eini_convex_move(c, tau);
  }
  c->log_points = eini_dot(c->w, c->z, c->n);
}
