// ================================================================================================
// >>stream  how a statement goes in steps
// Takes a statement, its cut and what its task may take; gives loops over time and where in them
// tensors are fetched, so that the least is moved: what a loop does not go along is fetched again
// in each of its steps, or kept whole (SUMMA; Solomonik and Demmel 2011; Kwasniewski et al. 2019).
// ================================================================================================

enum { EINI_STREAM_LOOPS = 3 };

#define EINI_STREAM_STEPS ((int64_t)1 << 16)  // of a statement
#define EINI_STREAM_NONE 1e300

// Loops over time, the outermost first. depth: of operands, and behind them of the result: how many
// of the loops its fetch, or what is kept of it, stands in.
typedef struct eini_streamed {
  int nloop, index[EINI_STREAM_LOOPS], *depth;
  int64_t parts[EINI_STREAM_LOOPS], steps;
  double bytes, room;       // that are moved; of the largest task
} eini_streamed;

// A statement at hand. What an operand moves once: -1 where it is not fetched.
typedef struct eini_stream_task {
  const ein_graph *g;
  const eini_stmt *s;
  const int64_t *cut;
  const double *moved;      // [operand, result] bytes of all places
  double limit;             // bytes that the task may take
  int alone;                // there is one place: it has all operands, nothing is copied
  int64_t *hi, *from, *to;  // scratch; hi: [loops + 1][nindex]
  const int64_t *zero;
  double *mem, *bytes;      // [access][depth]
  int nacc, *acc;           // what is fetched: the first operand of each tensor, and the result
  int *pick;                // [access]
  // What is tried, the depths with which that moves the least, and the best of all; with `bytes` of
  // EINI_STREAM_NONE: none fit.
  eini_streamed now, got, best;
} eini_stream_task;

// Bytes of access k (noperand: the result) in ranges of so many values.
static double eini_stream_box(const eini_stream_task *t, int k, const int64_t *hi, double size) {
  const eini_stmt *s = t->s;
  const eini_stmt_block b = eini_block_of(t->zero, hi, NULL);
  const eini_map *m = k < s->noperand ? &s->proj[k] : &s->out_map;
  for (int c = 0; c < s->nindex; c++)
    if (hi[c] <= 0) return 0;
  eini_block_hull(s, &b, k < s->noperand ? k : -1, t->from, t->to);
  return size * eini_box_volume(m->rows, t->from, t->to);
}

static int eini_stream_uses(const eini_stmt *s, int k, int index) {
  return eini_map_uses(k < s->noperand ? &s->proj[k] : &s->out_map, index) > 0;
}

// What the result takes beside its block, and moves, where it is kept in `depth` loops.
static void eini_stream_result(eini_stream_task *t, int depth, double *mem, double *bytes) {
  const eini_stmt *s = t->s;
  const eini_streamed *p = &t->now;
  const int last = p->nloop;
  int folds = 0, all = 0;
  double again = 1;
  for (int c = s->nfree; c < s->nindex; c++) folds |= t->cut[c] > 1;
  all = folds;
  for (int l = 0; l < last; l++) {
    if (p->index[l] < s->nfree) continue;
    all = 1;
    if (l < depth) folds = 1, again *= (double)p->parts[l];
  }
  const int empty = eini_stmt_empty(s, s->nfree, s->nindex);
  const double size = eini_fold_carries(s->fold) && (all || empty)
                          ? (double)eini_partial_bytes(t->g, s)
                          : (double)ein_dtype_size(eini_loops_type(t->g, s));
  *mem = eini_stream_box(t, s->noperand, t->hi + depth * s->nindex, size);
  if (folds || empty) *mem += eini_stream_box(t, s->noperand, t->hi, size);
  if (all && depth < last) *mem += eini_stream_box(t, s->noperand, t->hi + last * s->nindex, size);
  *bytes = again * t->moved[s->noperand];
}

// What operands of a tensor take and move where they are fetched in `depth` loops.
static void eini_stream_operand(eini_stream_task *t, int first, int depth, double *mem,
                                double *bytes) {
  const eini_stmt *s = t->s;
  const eini_streamed *p = &t->now;
  *mem = *bytes = 0;
  for (int k = first; k < s->noperand; k++) {
    double again = 1;
    if (s->operand[k] != s->operand[first] || eini_operand_first(s, k) < k) continue;
    for (int l = 0; l < depth; l++)
      if (!eini_stream_uses(s, k, p->index[l])) again *= (double)p->parts[l];
    if (!t->alone)
      *mem += eini_stream_box(t, k, t->hi + depth * s->nindex,
                              (double)ein_dtype_size(t->g->tensor[s->operand[k]].dtype));
    *bytes += again * t->moved[k];
  }
}

static void eini_streamed_copy(eini_streamed *to, const eini_streamed *from, int n) {
  int *depth = to->depth;
  *to = *from;
  to->depth = depth;
  if (from->depth != NULL) memcpy(depth, from->depth, (size_t)n * sizeof *depth);
}

// The depths of accesses from number a on, which fit and move the least.
static void eini_stream_depths(eini_stream_task *t, int a, double mem, double bytes) {
  const int wide = EINI_STREAM_LOOPS + 1, last = t->now.nloop, n = t->s->noperand;
  double rest = 0, least = bytes, before = EINI_STREAM_NONE;
  for (int i = a; i < t->nacc; i++) {
    double few = t->mem[i * wide];
    for (int d = 1; d <= last; d++) few = fmin(few, t->mem[i * wide + d]);
    rest += few;
    least += t->bytes[i * wide];
  }
  if (mem + rest > t->limit || least >= t->got.bytes) return;
  for (int d = 0; d <= last && a < t->nacc; d++) {  // deeper only where that takes less
    if (t->mem[a * wide + d] >= before) continue;
    before = t->mem[a * wide + d];
    t->pick[a] = d;
    eini_stream_depths(t, a + 1, mem + before, bytes + t->bytes[a * wide + d]);
  }
  if (a < t->nacc) return;
  eini_streamed_copy(&t->got, &t->now, 0);
  t->got.bytes = bytes;
  t->got.room = mem;
  for (int k = 0; k <= n; k++) t->got.depth[k] = last;
  for (int i = 0; i < t->nacc; i++)
    for (int k = t->acc[i]; k <= n; k++)
      if (k == t->acc[i] || (k < n && t->s->operand[k] == t->s->operand[t->acc[i]]))
        t->got.depth[k] = t->pick[i];
}

// Tries the loops at hand.
static void eini_stream_try(eini_stream_task *t) {
  const eini_stmt *s = t->s;
  eini_streamed *p = &t->now;
  const int wide = EINI_STREAM_LOOPS + 1, n = s->nindex;
  p->steps = 1;
  for (int l = 0; l < p->nloop; l++) {
    const int64_t was = t->hi[l * n + p->index[l]];
    p->steps *= p->parts[l];
    if (n > 0) memcpy(t->hi + (l + 1) * n, t->hi + l * n, (size_t)n * sizeof *t->hi);
    t->hi[(l + 1) * n + p->index[l]] = eini_ceil_div(was, p->parts[l]);
  }
  t->got.bytes = EINI_STREAM_NONE;
  for (int a = 0; a < t->nacc; a++) {
    for (int d = 0; d <= p->nloop; d++) {
      double *mem = &t->mem[a * wide + d], *bytes = &t->bytes[a * wide + d];
      if (t->acc[a] == s->noperand) eini_stream_result(t, d, mem, bytes);
      else eini_stream_operand(t, t->acc[a], d, mem, bytes);
    }
  }
  eini_stream_depths(t, 0, 0, 0);
}

// May a statement go in steps over an index?
static int eini_stream_may(const ein_graph *g, const eini_stmt *s, int c) {
  if (c < s->nfree) return s->index[c].extent > 1;
  return s->index[c].extent > 1 && eini_order_cuts(g, s, c);
}

// The next number of pieces of an outer loop that is tried; behind the last, more than there are.
static int64_t eini_stream_next(int64_t parts, int left, int64_t most) {
  const int64_t next = left > 2 ? 2 * parts : parts + eini_max64(1, parts / 4);
  most = eini_min64(most, EINI_STREAM_STEPS / 2);
  return parts >= most ? EINI_STREAM_STEPS : eini_min64(next, most);
}

static void eini_stream_keep(eini_stream_task *t) {
  if (t->got.bytes > t->best.bytes ||
      (t->got.bytes >= t->best.bytes && t->got.steps >= t->best.steps)) return;
  eini_streamed_copy(&t->best, &t->got, t->s->noperand + 1);
}

// The innermost loop, number l, has the fewest pieces with which as little is moved as with as many
// as can be: nothing is fetched again because of it.
static void eini_stream_last(eini_stream_task *t, int l) {
  eini_streamed *p = &t->now;
  int64_t low = 1, high = t->hi[l * t->s->nindex + p->index[l]], steps = 1;
  for (int i = 0; i < l; i++) steps *= p->parts[i];
  p->nloop = l + 1;
  p->parts[l] = high = eini_min64(high, EINI_STREAM_STEPS / steps);
  if (high < 2) return;
  eini_stream_try(t);
  const double bytes = t->got.bytes;
  if (bytes >= EINI_STREAM_NONE || bytes > t->best.bytes) return;
  while (high - low > 1) {
    p->parts[l] = low + (high - low) / 2;
    eini_stream_try(t);
    if (t->got.bytes <= bytes) high = p->parts[l];
    else low = p->parts[l];
  }
  p->parts[l] = high;
  eini_stream_try(t);
  eini_stream_keep(t);
}

// Loops from number l on, `left` of them; outer ones may have several numbers of pieces.
static void eini_stream_loops(eini_stream_task *t, int l, int left) {
  const eini_stmt *s = t->s;
  eini_streamed *p = &t->now;
  for (int c = 0; c < s->nindex; c++) {
    const int64_t most = t->hi[l * s->nindex + c];
    int taken = !eini_stream_may(t->g, s, c) || most < 2;
    for (int i = 0; i < l; i++) taken |= p->index[i] == c;
    if (taken) continue;
    p->index[l] = c;
    if (left == 1) eini_stream_last(t, l);
    const int inner = left > 1 && l + 1 < EINI_STREAM_LOOPS;  // compilers see that it ends, too
    for (int64_t n = 2; inner && n <= most && n < EINI_STREAM_STEPS;
         n = eini_stream_next(n, left, most)) {
      p->nloop = l + 1;
      p->parts[l] = n;
      eini_stream_try(t);  // makes the ranges inside of it
      eini_stream_loops(t, l + 1, left - 1);
    }
  }
}

// The plan of a task that fits and moves the least, in best.
static void eini_stream_plan(eini_stream_task *t) {
  double once = 0;
  for (int a = 0; a < t->nacc; a++)
    for (int k = t->acc[a]; k <= t->s->noperand; k++)
      if (k == t->acc[a] || (k < t->s->noperand && t->s->operand[k] == t->s->operand[t->acc[a]] &&
                             eini_operand_first(t->s, k) == k))
        once += t->moved[k];
  t->best.bytes = EINI_STREAM_NONE;
  t->best.steps = INT64_MAX;
  t->now.nloop = 0;
  eini_stream_try(t);
  eini_stream_keep(t);
  for (int loops = 1; loops <= EINI_STREAM_LOOPS && t->best.bytes > once * (1 + 1e-12); loops++)
    eini_stream_loops(t, 0, loops);
}
