// ================================================================================================
// >>tiling  loops in tiles for a fast memory
// Takes loops and the streams that move with them; gives tiles, and an order of the loops over
// tiles, for which little moves between a fast memory and all other. Invariant: what a tile and the
// next one touch fits together.
// ================================================================================================

#define EINI_TILING_LOOPS 8      // more loops: fewer orders are tried, and no pairs of sides
#define EINI_TILING_MOST 64      // more: sides of 1
#define EINI_TILING_STEPS 200    // of a search at most

// Streams: those that are read, and as the last one the result.
typedef struct eini_tiling {
  int n, ns;
  const int64_t *extent;
  const unsigned char *reduced;  // [n] 1: the result is folded over it
  const int64_t *by;             // [ns * n] elements, of stream s along loop i
  int *sorted;                   // [ns * n] loops by size of step
  double room;                   // elements that fit
  double line;                   // elements that move together
  int inside;                    // 1: loops over tiles of reduced ones lie inside of all others
  int64_t *tile;                 // [n]
  int *order;                    // [n] loops over tiles, innermost last
  int vector;                    // loop that points of a tile follow
} eini_tiling;

static double eini_tiling_trips(const eini_tiling *x, const int64_t *tile, int i) {
  return (double)eini_ceil_div(x->extent[i], tile[i]);
}

// Elements of the lines of `run` elements that are `pitch` apart.
static double eini_tiling_lines(const eini_tiling *x, double run, double pitch) {
  if (run <= 1) return x->line;
  return pitch < x->line ? (run - 1) * pitch + x->line : run * x->line;
}

// Elements that a tile touches of a stream: steps that overlap (windows) or join make one run.
static double eini_tiling_touched(const eini_tiling *x, const int64_t *tile, int s) {
  const int64_t *by = x->by + (int64_t)s * x->n;
  double all = 1, run = 1, pitch = 0;
  for (int k = 0; k < x->n; k++) {
    const int i = x->sorted[(int64_t)s * x->n + k];
    const double step = fabs((double)by[i]), side = (double)tile[i];
    if (step <= 0 || side <= 1) continue;
    const double times = pitch > 0 ? step / pitch : 0;
    if (pitch > 0 && times <= run && floor(times) >= times) {
      run += (side - 1) * times;
      continue;
    }
    if (pitch > 0) all *= eini_tiling_lines(x, run, pitch) / (all > 1 ? x->line : 1);
    pitch = step;
    run = side;
  }
  return all * eini_tiling_lines(x, run, pitch) / (all > 1 ? x->line : 1);
}

// Elements moved: a stream comes again for each tile, but not where only loops inside go on that
// do not move it. INFINITY: a tile and the next one do not fit.
static double eini_tiling_cost(const eini_tiling *x, const int *order, const int64_t *tile) {
  double need = 0, cost = 0;
  int last = x->n - 1;
  while (last >= 0 && eini_tiling_trips(x, tile, order[last]) <= 1) last--;
  for (int s = 0; s < x->ns; s++) {
    const int64_t *by = x->by + (int64_t)s * x->n;
    const double one = eini_tiling_touched(x, tile, s);
    double visits = 1, distinct = 1;
    int moved = 0;
    for (int k = last; k >= 0; k--) {
      const double trips = eini_tiling_trips(x, tile, order[k]);
      if (by[order[k]] != 0) distinct *= trips;
      if (trips <= 1 || (!moved && by[order[k]] == 0)) continue;
      moved = 1;
      visits *= trips;
    }
    need += one * (last >= 0 && by[order[last]] != 0 ? 2 : 1);
    cost += one * (s == x->ns - 1 ? 2 * visits - distinct : visits);
  }
  return need <= x->room ? cost : INFINITY;
}

// The side that a step of the search makes of one of loop i; 0: none.
static int64_t eini_tiling_side(const eini_tiling *x, int64_t side, int i, int step) {
  const int64_t e = x->extent[i];
  int64_t to = side;
  switch (step) {
    case 0: to = 2 * side; break;
    case 1: to = side + side / 4; break;
    case 2: to = side + 1; break;
    case 3: to = eini_ceil_div(side, 2); break;
    case 4: to = side - side / 5; break;
    case 5: to = side - 1; break;
    case 6: to = e; break;
    default: to = 1;
  }
  to = eini_min64(to, e);
  return to < 1 || to == side ? 0 : to;
}

// Sides for an order, from those in tile: the best step at a time, of one side or of two.
static double eini_tiling_climb(const eini_tiling *x, const int *order, int64_t *tile) {
  const int pairs = x->n <= EINI_TILING_LOOPS;
  double best = eini_tiling_cost(x, order, tile);
  for (int step = 0; step < EINI_TILING_STEPS; step++) {
    double least = best;
    int at[2] = {-1, -1};
    int64_t side[2] = {0, 0};
    for (int m = 0; m < x->n * 8; m++) {
      const int i = m / 8;
      const int64_t was = tile[i], to = eini_tiling_side(x, was, i, m % 8);
      if (to == 0) continue;
      tile[i] = to;
      for (int k = -1; k < (pairs ? 3 * x->n : 0); k++) {
        const int j = k < 0 ? -1 : k / 3;
        const int64_t old = j < 0 ? 0 : tile[j];
        const int64_t less = j < 0 || j == i ? 0 : eini_tiling_side(x, old, j, 3 + k % 3);
        if (k >= 0 && less == 0) continue;
        if (j >= 0) tile[j] = less;
        const double cost = eini_tiling_cost(x, order, tile);
        if (cost < least * (1 - 1e-9))
          least = cost, at[0] = i, side[0] = to, at[1] = j, side[1] = less;
        if (j >= 0) tile[j] = old;
      }
      tile[i] = was;
    }
    if (at[0] < 0) break;
    best = least;
    tile[at[0]] = side[0];
    if (at[1] >= 0) tile[at[1]] = side[1];
  }
  return best;
}

// An order with loop b inside of all, and a around it; -1: any.
static void eini_tiling_order(const eini_tiling *x, int a, int b, int *order) {
  int n = 0;
  for (int reduced = 0; reduced < 2; reduced++)
    for (int i = 0; i < x->n; i++)
      if (x->reduced[i] == reduced && i != a && i != b) order[n++] = i;
  if (a >= 0) order[n++] = a;
  if (b >= 0) order[n++] = b;
}

// Is it an order in which results are done before the next ones begin?
static int eini_tiling_inside(const eini_tiling *x, const int *order) {
  int reduced = 0;
  for (int k = 0; k < x->n; k++) {
    if (x->reduced[order[k]]) reduced = 1;
    else if (reduced) return 0;
  }
  return 1;
}

// The points of a tile follow a loop along which many streams stay or go on to the next element.
static int eini_tiling_vector(const eini_tiling *x) {
  double most = -1;
  int best = 0;
  for (int i = 0; i < x->n; i++) {
    double score = x->tile[i] > 1;
    for (int s = 0; s < x->ns; s++) score += eini_abs64(x->by[(int64_t)s * x->n + i]) <= 1;
    score *= fmin((double)x->tile[i], 64);
    if (score > most) most = score, best = i;
  }
  return best;
}

// Where a search begins: sides of 1; or equal ones (or a power of extents) as long as they fit, but
// 1 of the innermost loop.
static void eini_tiling_start(const eini_tiling *x, const int *order, int way, int64_t *tile) {
  double low = 0, high = way == 0 ? 0 : 1, longest = 1;
  for (int i = 0; i < x->n; i++) longest = fmax(longest, (double)x->extent[i]);
  for (int step = 0; step < 30; step++) {
    const double part = (low + high) / 2, side = pow(longest, part);
    for (int i = 0; i < x->n; i++) {
      const double e = (double)x->extent[i], to = way == 1 ? fmin(side, e) : pow(e, part);
      tile[i] = way == 0 || i == order[x->n - 1] ? 1 : (int64_t)fmax(to, 1);
    }
    if (way == 0) return;
    if (eini_tiling_cost(x, order, tile) < INFINITY) low = part;
    else high = part;
  }
  if (!(eini_tiling_cost(x, order, tile) < INFINITY)) eini_tiling_start(x, order, 0, tile);
}

// Fills in tile, order and vector; what is there to read is set. Loops have at least one value.
static ein_status eini_tiling_make(eini_arena *a, eini_tiling *x) {
  const int n = x->n, wide = n > EINI_TILING_LOOPS;
  double best = INFINITY;
  int *order = EINI_NEW(a, int, n);
  int64_t *tile = EINI_NEW(a, int64_t, n);
  x->sorted = EINI_NEW(a, int, (int64_t)n * x->ns);
  x->order = EINI_NEW(a, int, n);
  x->tile = EINI_NEW(a, int64_t, n);
  if (order == NULL || tile == NULL || x->sorted == NULL || x->order == NULL || x->tile == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < x->ns; s++) {
    int *list = x->sorted + (int64_t)s * n;
    const int64_t *by = x->by + (int64_t)s * n;
    for (int i = 0; i < n; i++) {
      int k = i;
      for (; k > 0 && eini_abs64(by[list[k - 1]]) > eini_abs64(by[i]); k--) list[k] = list[k - 1];
      list[k] = i;
    }
  }
  for (int i = 0; i < n; i++) x->tile[i] = 1;
  eini_tiling_order(x, -1, -1, x->order);
  for (int b = 0, tried = 0; b < n && n <= EINI_TILING_MOST && tried < 64; b++) {
    for (int c = wide ? n - 1 : 0; c < n; c++) {
      if (x->extent[b] < 2 || (c != b && !wide && x->extent[c] < 2)) continue;
      eini_tiling_order(x, c == b || wide ? -1 : c, b, order);
      if (x->inside && !eini_tiling_inside(x, order)) continue;
      tried += wide ? 8 : 1;
      for (int way = 0; way < 3; way++) {
        eini_tiling_start(x, order, way, tile);
        const double cost = eini_tiling_climb(x, order, tile);
        if (!(cost < best * (1 - 1e-9))) continue;
        best = cost;
        memcpy(x->order, order, sizeof *order * (size_t)n);
        memcpy(x->tile, tile, sizeof *tile * (size_t)n);
      }
    }
  }
  x->vector = n > 0 ? eini_tiling_vector(x) : -1;
  return EIN_OK;
}
