// ================================================================================================
// >>memory-choose  regions and loops for a target
// Takes a base and a number of bytes; gives consecutive regions, each with loops, that are
// predicted to stay below it and to take the least time.
// ================================================================================================

// A region that was chosen. Classes are named by an index of a statement.
typedef struct eini_fit_choice {
  int from, to, nloop;
  int stmt[EINI_FIT_LOOPS], index[EINI_FIT_LOOPS];
  int64_t extent[EINI_FIT_LOOPS], block[EINI_FIT_LOOPS];
  eini_fit_guess guess;
} eini_fit_choice;

// What is sought: at most target bytes in the least time; or, least: the fewest bytes.
typedef struct eini_fit_target {
  int64_t bytes;
  int least;
} eini_fit_target;

static int eini_fit_better(const eini_fit_target *t, const eini_fit_guess *a,
                           const eini_fit_guess *b) {
  if (t->least && a->bytes != b->bytes) return a->bytes < b->bytes;
  return a->seconds < b->seconds;
}

// Whole blocks: as large as possible without more slices; a divisor of the extent where one is
// near, so that one plan does.
static int64_t eini_fit_even(int64_t extent, int64_t block) {
  int64_t n = eini_fit_slices(extent, block), even = (extent - 1) / n + 1;
  for (int64_t d = block; d > block - block / 4 && block - d < 4096; d--)
    if (extent % d == 0) return d;
  return even > 64 && even < block - 16 ? (even + 15) / 16 * 16 : even > 64 ? block : even;
}

// Halves blocks, each time where memory costs least time, until the nest fits; then lets them grow.
// 0: it does not fit.
static int eini_fit_descend(const eini_fit_job *j, eini_fit_nest *n, int64_t stored,
                            const eini_fit_target *t, eini_fit_guess *g) {
  int64_t upper[EINI_FIT_LOOPS];
  for (int l = 0; l < n->nloop; l++) n->block[l] = 1;
  if (!t->least && eini_fit_sum(stored, eini_fit_inside(j, n)) > t->bytes) return 0;
  if (t->least) eini_fit_measure(j, n, stored, g);
  if (t->least) return 1;
  for (int l = 0; l < n->nloop; l++) upper[l] = n->block[l] = n->cls[l]->extent;
  eini_fit_measure(j, n, stored, g);
  while (g->bytes > t->bytes) {
    int best = -1;
    double price = 0;
    eini_fit_guess next, chosen = *g;
    for (int l = 0; l < n->nloop; l++) {
      int64_t was = n->block[l];
      if (was == 1) continue;
      n->block[l] = was - was / 2;
      eini_fit_measure(j, n, stored, &next);
      n->block[l] = was;
      double gain = (double)(g->bytes - next.bytes), p = next.seconds - g->seconds;
      p = gain > 0 ? p / gain : 1e30 * (1 + p);
      if (best >= 0 && p >= price) continue;
      best = l;
      price = p;
      chosen = next;
    }
    if (best < 0) break;
    upper[best] = n->block[best] - 1;
    n->block[best] -= n->block[best] / 2;
    *g = chosen;
  }
  if (g->bytes > t->bytes) return 0;
  for (int l = 0; l < n->nloop; l++) {
    int64_t lo = n->block[l], hi = eini_max64(upper[l], lo);
    while (lo < hi) {
      n->block[l] = lo + (hi - lo + 1) / 2;
      eini_fit_measure(j, n, stored, g);
      if (g->bytes <= t->bytes) lo = n->block[l];
      else hi = n->block[l] - 1;
    }
    n->block[l] = eini_fit_even(n->cls[l]->extent, lo);
  }
  eini_fit_measure(j, n, stored, g);
  return 1;
}

static void eini_fit_note(const eini_fit_nest *n, const eini_fit_guess *g, eini_fit_choice *c) {
  memset(c, 0, sizeof *c);
  c->from = n->from;
  c->to = n->to;
  c->guess = *g;
  for (int l = 0; l < n->nloop; l++) {
    if (n->block[l] >= n->cls[l]->extent) continue;  // not cut after all
    c->stmt[c->nloop] = n->cls[l]->stmt;
    c->index[c->nloop] = n->cls[l]->index;
    c->extent[c->nloop] = n->cls[l]->extent;
    c->block[c->nloop++] = n->block[l];
  }
}

// Results of statements that are folded over the slices of loop l, seen outside the region.
static int eini_fit_folded(const eini_fit_nest *n, int l) {
  int count = 0;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    const eini_fit_class *c = n->cls[l];
    count += !eini_fit_inner(n, s->out) &&
             (c->linear[u - n->from] || c->col[u - n->from] >= s->nfree);
  }
  return count;
}

// Loops that are folded come inside the others: what they are merged in is of one block of these.
static void eini_fit_nest_order(eini_fit_nest *n) {
  for (int k = 1; k < n->nloop; k++) {
    for (int l = k; l > 0 && eini_fit_folded(n, l - 1) > eini_fit_folded(n, l); l--) {
      const eini_fit_class *swap = n->cls[l];
      n->cls[l] = n->cls[l - 1];
      n->cls[l - 1] = swap;
    }
  }
}

// Weighs the loops of n: the best so far is *best, if there is one (*fits).
static void eini_fit_weigh(const eini_fit_job *j, eini_fit_nest *n, int64_t stored,
                           const eini_fit_target *t, eini_fit_choice *best, int *fits) {
  eini_fit_guess g;
  eini_fit_nest_order(n);
  if (!eini_fit_agree(n) || !eini_fit_descend(j, n, stored, t, &g)) return;
  if (!*fits || eini_fit_better(t, &g, &best->guess)) eini_fit_note(n, &g, best);
  *fits = 1;
}

// The best loops around statements [from, to): none where that fits, else one class; two or several
// unless one costs next to nothing. *fits: there are some.
static ein_status eini_fit_region(const eini_fit_job *j, const eini_fit_base *b, int from, int to,
                                  const eini_fit_target *t, eini_fit_choice *best, int *fits) {
  eini_fit_class cls[EINI_FIT_CLASSES];
  eini_fit_nest n;
  eini_fit_guess g;
  eini_arena scratch;
  int count = 0;
  memset(&n, 0, sizeof n);
  n.b = b;
  n.from = from;
  n.to = to;
  n.whole = j->whole;
  *fits = 0;
  if (!eini_fit_legal(&n)) return EIN_OK;
  int64_t stored = eini_fit_stored(&n);
  if (stored > t->bytes) return EIN_OK;
  eini_fit_measure(j, &n, stored, &g);
  if (g.bytes <= t->bytes) {
    *fits = 1;
    eini_fit_note(&n, &g, best);
    if (!t->least) return EIN_OK;
  }
  eini_arena_init(&scratch, &j->ctx->al);
  ein_status st = eini_fit_classes(&n, &scratch, cls, &count);
  for (int k = 0; k < count && st == EIN_OK; k++) {
    n.nloop = 1;
    n.cls[0] = &cls[k];
    eini_fit_weigh(j, &n, stored, t, best, fits);
  }
  int more = st == EIN_OK &&
             (t->least || !*fits || best->guess.seconds > EINI_SLICE_GAIN * g.seconds);
  for (int k = 0; k < count * count && more; k++) {
    n.nloop = 2;
    n.cls[0] = &cls[k / count];
    n.cls[1] = &cls[k % count];
    if (k / count < k % count) eini_fit_weigh(j, &n, stored, t, best, fits);
  }
  n.nloop = count < EINI_FIT_LOOPS ? count : EINI_FIT_LOOPS;
  for (int l = 0; l < n.nloop; l++) n.cls[l] = &cls[l];
  if (more && n.nloop > 2) eini_fit_weigh(j, &n, stored, t, best, fits);
  eini_arena_free(&scratch);
  return st;
}

// Adds up regions: times add, the largest counts for bytes.
static void eini_fit_add(const eini_fit_guess *a, const eini_fit_guess *b, eini_fit_guess *sum) {
  sum->bytes = eini_max64(a->bytes, b->bytes);
  sum->seconds = a->seconds + b->seconds;
  sum->flops = a->flops + b->flops;
  sum->again = a->again + b->again;
}

// The best cut into regions, in `a`. What is stored during a region depends on the region alone, so
// the best way to reach a statement is enough. *count 0: nothing fits.
static ein_status eini_fit_choose(const eini_fit_job *j, const eini_fit_base *b, eini_arena *a,
                                  const eini_fit_target *t, eini_fit_choice **list, int *count,
                                  eini_fit_guess *total) {
  int n = (int)b->g->nstmt, most = n <= 32 ? n : n < 512 ? 1024 / n + 6 : 8;
  eini_arena scratch;
  eini_arena_init(&scratch, &j->ctx->al);
  eini_fit_choice *by = EINI_NEW(&scratch, eini_fit_choice, n + 1), c;
  eini_fit_guess *best = EINI_NEW(&scratch, eini_fit_guess, n + 1), sum;
  char *ok = EINI_NEW(&scratch, char, n + 1);
  ein_status st = by == NULL || best == NULL || ok == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  *count = 0;
  for (int to = 1; to <= n && st == EIN_OK; to++) {
    ok[0] = 1;
    for (int from = to - 1; from >= 0 && to - from <= most && st == EIN_OK; from--) {
      int fits = 0;
      if (!ok[from]) continue;
      st = eini_fit_region(j, b, from, to, t, &c, &fits);
      if (st != EIN_OK || !fits) continue;
      eini_fit_add(&best[from], &c.guess, &sum);
      if (ok[to] && !eini_fit_better(t, &sum, &best[to])) continue;
      ok[to] = 1;
      best[to] = sum;
      by[to] = c;
    }
  }
  if (st == EIN_OK && (ok[n] || n == 0)) {
    for (int k = n; k > 0; k = by[k].from) ++*count;
    *list = EINI_NEW(a, eini_fit_choice, *count);
    if (*list == NULL) st = EIN_ERR_NO_MEMORY;
    else for (int k = n, i = *count; k > 0; k = by[k].from) (*list)[--i] = by[k];
    *total = best[n];
  }
  eini_arena_free(&scratch);
  return st;
}
