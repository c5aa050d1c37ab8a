// ================================================================================================
// >>ways  the vectors of a form, and their orders
// Takes a statement; gives its vectors of the family, the best by what each may come to, with the
// orders of their digits that matter.
// ================================================================================================

// Costs of a vector that do not depend on other statements: under the model, and its terms.
static double eini_vertex_cost(const eini_decomposer *dc, const eini_dform *f, const int64_t *cut,
                               double *join, double *agg, double *seconds) {
  *join = *agg = *seconds = 0;
  if (dc->desc->cost <= EIN_COST_PAPER_CODE) {
    eini_paper_vertex(dc->g, f, cut, join, agg);
    return *join + *agg;
  }
  eini_fold_cost(dc, f->s, cut, agg, seconds);
  *join = eini_dealt_bytes(dc, f->s, cut);
  const eini_stmt_block longest = eini_block_of(NULL, NULL, cut);
  if (dc->desc->cost == EIN_COST_BYTES) *seconds = 0;
  else *seconds += eini_place_cost(dc, f, &longest).seconds;
  return dc->desc->cost == EIN_COST_BYTES ? *join + *agg : *seconds;
}

static ein_status eini_form_costs(eini_decomposer *dc, eini_dform *f) {
  int n = f->s->nindex;
  f->join = EINI_NEW(&dc->arena, double, f->ways.n);
  f->agg = EINI_NEW(&dc->arena, double, f->ways.n);
  f->seconds = EINI_NEW(&dc->arena, double, f->ways.n);
  f->unary = EINI_NEW(&dc->arena, double, f->ways.n);
  if (f->join == NULL || f->agg == NULL || f->seconds == NULL || f->unary == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t w = 0; w < f->ways.n; w++) {
    const int64_t *cut = f->ways.cut + w * n;
    f->unary[w] = eini_vertex_cost(dc, f, cut, &f->join[w], &f->agg[w], &f->seconds[w]);
    if (f->ways.sent[w] < 0) continue;
    EINI_TRY(eini_scatter_cost(dc, f, cut, f->ways.sent[w], f->ways.home + w * n, &f->agg[w],
                               &f->seconds[w]));
    f->unary[w] = dc->desc->cost == EIN_COST_BYTES ? f->join[w] + f->agg[w] : f->seconds[w];
  }
  return EIN_OK;
}

// What a vector may come to: its own cost, and what is read more often than it lies somewhere.
static double eini_vector_rank(const eini_decomposer *dc, const eini_dform *f, const int64_t *cut,
                               double own) {
  const eini_stmt *s = f->s;
  double rank = own;
  double tasks = (double)eini_tasks(cut, s->nindex);
  for (int k = 0; k < s->noperand && dc->desc->cost >= EIN_COST_BYTES; k++) {
    if (!f->active[k] || f->again[k]) continue;
    double block = eini_mean_count(s, &s->proj[k], cut, 0), whole = 1;
    for (int r = 0; r < s->proj[k].rows; r++)
      whole *= (double)dc->g->tensor[s->operand[k]].shape[r];
    double bytes = (tasks * block - whole) * eini_element_bytes(dc, s->operand[k]);
    if (bytes <= 0) continue;
    rank += dc->desc->cost == EIN_COST_BYTES ? bytes : bytes / tasks / dc->machine.bandwidth;
  }
  return rank;
}

// Bytes that the largest task reads of inputs that places hold.
static double eini_input_bytes(const eini_decomposer *dc, const eini_stmt *s, const int64_t *cut) {
  const eini_stmt_block longest = eini_block_of(NULL, NULL, cut);
  double sum = 0;
  for (int k = 0; k < s->noperand && dc->desc->inputs != EIN_INPUTS_OUTSIDE; k++) {
    int t = s->operand[k], first = dc->g->tensor[t].role == EIN_ROLE_INPUT;
    double most = 0;
    if (dc->tensor_node[t] >= 0 || eini_points(s, &longest, 0, s->nindex) <= 0) continue;
    for (int j = 0; j < k; j++) first &= s->operand[j] != t;
    for (int j = k; j < s->noperand && first; j++) {  // parts of one input may be the same
      if (s->operand[j] != t) continue;
      double box = eini_block_box(s, &longest, j);
      most = box > most ? box : most;
    }
    sum += most * eini_element_bytes(dc, t);
  }
  return sum;
}

// Bytes that the result of the largest task takes at least, with the inputs it reads.
static double eini_result_bytes(const eini_decomposer *dc, const eini_stmt *s,
                                const int64_t *cut) {
  const eini_stmt_block longest = eini_block_of(NULL, NULL, cut);
  double size = eini_element_bytes(dc, s->out);
  if (eini_tasks(cut + s->nfree, s->nindex - s->nfree) > 1) {
    double wide = (double)eini_partial_bytes(dc->g, s);
    size = wide < size ? wide : size;
  }
  return eini_points(s, &longest, 0, s->nfree) * size + eini_input_bytes(dc, s, cut);
}

// A mistake: statement `node` needs more memory than a place has. found: only what was searched.
static ein_status eini_no_memory_for(const eini_decomposer *dc, int node, double least,
                                     int found) {
  const eini_stmt *s = dc->node[node].s;
  char sizes[160] = "";
  size_t n = 0;
  for (int c = 0; c < s->nindex && n + 40 < sizeof sizes; c++) {
    const char *name = s->index[c].name;
    int cut = 0;
    while (cut < 12 && name[cut] != 0) cut++;
    while (cut > 0 && ((unsigned char)name[cut] & 0xC0) == 0x80) cut--;  // not within a code point
    n += (size_t)snprintf(sizes + n, sizeof sizes - n, "%s%.*s=%lld", c > 0 ? ", " : "", cut, name,
                          (long long)s->index[c].extent);
  }
  return eini_fail(dc->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL,
                   "statement '%.60s' (%s): a place takes %.0f bytes at least%s, it has %.0f",
                   eini_node_name(dc, node), sizes, least,
                   found ? " in all that was searched" : "", dc->machine.memory);
}

// ---- the vectors of a form ----------------------------------------------------------------------

#define EINI_BLOCKS_MAX 16

#define EINI_VECTORS_EFFORT ((int64_t)1 << 22)  // steps of the enumeration for one form
#define EINI_VECTORS_TOTAL ((int64_t)1 << 27)   // for all, about

// What ranks a vector fast where every coordinate has one index, of its own in each access: blocks
// are then whole / product of the cuts of the access's indices.
typedef struct eini_blocks {
  int n;                   // accesses: operands, each once, then the output; 0: not so
  double whole[EINI_BLOCKS_MAX], bytes[EINI_BLOCKS_MAX];  // bytes: of an element, 0: not active
  uint64_t index[EINI_BLOCKS_MAX];  // bits
  double out;              // elements that the free indices make
  double partial;          // scalars or bytes of an element of a partial result
} eini_blocks;

// The vectors of least rank among those enumerated: a heap with the dearest on top.
typedef struct eini_pick {
  eini_blocks blocks;
  int node;                // the first of the form
  int64_t effort;          // steps that may be taken
  int64_t step;            // steps of a vector that is not ranked by blocks
  int64_t most, n;         // how many are kept, and there are
  int64_t room;            // of ways
  int64_t *cut;            // [slot][index]
  eini_ranked *heap;       // slots by -rank, -when they came: of equal ranks the first are kept
  int64_t seen, steps;     // vectors, and steps so far
  int64_t kept_out;        // of seen: fell out
  double least, bytes;     // own cost, and memory
} eini_pick;

static void eini_blocks_make(const eini_decomposer *dc, const eini_dform *f, eini_blocks *b) {
  const eini_stmt *s = f->s;
  int paper = dc->desc->cost <= EIN_COST_PAPER_CODE;
  b->n = 0;
  if (s->nindex > 64 || s->noperand >= EINI_BLOCKS_MAX || dc->desc->cost == EIN_COST_SECONDS)
    return;
  b->out = eini_points(s, NULL, 0, s->nfree);
  b->partial = paper ? eini_partial_scalars(dc->g, s) : (double)eini_partial_bytes(dc->g, s);
  for (int k = 0; k <= s->noperand; k++) {
    const eini_map *m = k < s->noperand ? &s->proj[k] : &s->out_map;
    int at = b->n;
    if (k < s->noperand && f->again[k]) continue;
    b->whole[at] = 1;
    b->index[at] = 0;
    b->bytes[at] = k < s->noperand && f->active[k] ? eini_element_bytes(dc, s->operand[k]) : 0;
    for (int r = 0; r < m->rows; r++) {
      int64_t coef;
      int c = eini_row_index(m, r, &coef);
      if (c < 0 && coef == 0) continue;
      if (c < 0 || (b->index[at] >> c & 1) != 0) {
        b->n = 0;
        return;
      }
      b->index[at] |= (uint64_t)1 << c;
      b->whole[at] *= (double)s->index[c].extent;
      if (k < s->noperand) b->whole[at] *= (double)eini_abs64(coef);
    }
    b->n++;
  }
}

// A vector's own cost and its rank, as eini_vertex_cost and eini_vector_rank have them.
static double eini_blocks_rank(const eini_decomposer *dc, const eini_dform *f,
                               const eini_blocks *b, const int64_t *cut, double *own) {
  int paper = dc->desc->cost <= EIN_COST_PAPER_CODE, n = f->s->nindex;
  double tasks = 1, nagg = 1, part[EINI_BLOCKS_MAX], read = 0, more = 0;
  for (int k = 0; k < b->n; k++) part[k] = 1;
  for (int c = 0; c < n; c++) {
    if (cut[c] == 1) continue;
    tasks *= (double)cut[c];
    if (c >= f->s->nfree) nagg *= (double)cut[c];
    for (int k = 0; k < b->n; k++)
      if (b->index[k] >> c & 1) part[k] *= (double)cut[c];
  }
  for (int k = 0; k < b->n - 1; k++) {
    double block = b->whole[k] / part[k];
    read += block;
    if (!paper && tasks > part[k]) more += (tasks * block - b->whole[k]) * b->bytes[k];
  }
  if (paper) {
    *own = tasks * read +
           tasks / nagg * (nagg - 1) * (b->whole[b->n - 1] / part[b->n - 1]) * b->partial;
    return *own;
  }
  *own = (nagg - 1) * b->out * b->partial + eini_dealt_bytes(dc, f->s, cut);
  return *own + more;
}

// The vector is there already: it gets a rank. 0: it is not there.
static int eini_pick_raise(eini_pick *q, int n, const int64_t *cut, double first) {
  for (int64_t i = 0; i < q->n; i++) {
    if (n > 0 && memcmp(q->cut + q->heap[i].what * n, cut, (size_t)n * sizeof *cut) != 0) continue;
    q->heap[i].key = -first;
    for (int64_t k = q->n / 2; k-- > 0;) eini_heap_sink(q->heap, q->n, k);
    return 1;
  }
  return 0;
}

// Takes note of a vector; it is kept if it is among the best. first: its rank, if below 0.
static void eini_pick_add(eini_decomposer *dc, const eini_dform *f, eini_pick *q,
                          const int64_t *cut, double first) {
  double join, agg, seconds, own, rank;
  double bytes = dc->machine.memory > 0 ? eini_result_bytes(dc, f->s, cut) : 0;
  int n = f->s->nindex;
  if (bytes < q->bytes) q->bytes = bytes;
  if (dc->machine.memory > 0 && bytes > dc->machine.memory) {
    if (dc->over <= 0 || bytes < dc->over) dc->over = bytes, dc->over_at = q->node;
    return;
  }
  if (first < 0 && eini_pick_raise(q, n, cut, first)) return;
  int64_t i = q->n, slot = i;
  q->seen++;
  if (q->blocks.n > 0) {
    rank = eini_blocks_rank(dc, f, &q->blocks, cut, &own);
    q->steps += 4;
  } else {
    own = eini_vertex_cost(dc, f, cut, &join, &agg, &seconds);
    rank = eini_vector_rank(dc, f, cut, own);
    q->steps += q->step;  // which takes longer
  }
  if (own < q->least) q->least = own;
  if (dc->desc->cost == EIN_COST_SECONDS && q->least > 0 && eini_scatter_index(dc, f, cut) >= 0)
    q->least = 0;  // scattered it may cost less
  if (first < 0) rank = first;
  if (q->n == q->most) {
    q->kept_out++;
    i = 0;
    slot = q->heap[0].what;
    if (rank >= -q->heap[0].key) return;  // it comes later
  }
  q->heap[i].key = -rank;
  q->heap[i].seq = -q->seen;
  q->heap[i].what = slot;
  if (n > 0) memcpy(q->cut + slot * n, cut, (size_t)n * sizeof *cut);
  if (q->n == q->most) eini_heap_sink(q->heap, q->n, 0);
  else eini_heap_rise(q->heap, q->n++);
}

// Where a divisor of nd, ascending, is.
static int eini_divisor_at(const int64_t *divisor, int nd, int64_t x) {
  int lo = 0, hi = nd - 1;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (divisor[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

// May index c have so many pieces? even: only if they divide its extent.
static int eini_cut_fits(const eini_dform *f, int c, int64_t pieces, int even) {
  if (f->need[c] != 0 ? f->need[c] != pieces : pieces > f->limit[c]) return 0;
  return !even || f->s->index[c].extent % pieces == 0;
}

// can[i * nd + k]: indices prefer[i] and on can have divisor[k] tasks in all.
static void eini_vectors_can(const eini_dform *f, int even, int nd, const int64_t *divisor,
                             unsigned char *can) {
  int n = f->s->nindex;
  can[n * nd] = 1;
  for (int i = n - 1; i >= 0; i--) {
    const unsigned char *after = can + (i + 1) * nd;
    for (int j = 0; j < nd; j++) {
      if (!eini_cut_fits(f, f->prefer[i], divisor[j], even)) continue;
      for (int m = 0, k = j; m < nd && k < nd; m++) {
        while (k < nd && divisor[k] < divisor[m] * divisor[j]) k++;
        if (k < nd && divisor[k] == divisor[m] * divisor[j]) can[i * nd + k] |= after[m];
      }
    }
  }
}

// Every vector with `tasks` tasks, the indices that are preferred cut most first; even: pieces
// divide their extents. nd divisors of tasks.
static ein_status eini_vectors_of(eini_decomposer *dc, const eini_dform *f, int64_t tasks,
                                  int even, int nd, const int64_t *divisor, eini_pick *q) {
  eini_arena *a = &dc->arena;
  const eini_arena_at mark = eini_arena_mark(a);
  int n = f->s->nindex, i = 0;
  int *at = EINI_NEW(a, int, n + 1);
  int64_t *cut = EINI_NEW(a, int64_t, n + 1), *rest = EINI_NEW(a, int64_t, n + 1);
  unsigned char *can = EINI_NEW(a, unsigned char, ((int64_t)n + 1) * nd);
  if (at == NULL || cut == NULL || rest == NULL || can == NULL) return EIN_ERR_NO_MEMORY;
  if (n == 0 && tasks == 1) eini_pick_add(dc, f, q, cut, 0);
  eini_vectors_can(f, even, nd, divisor, can);
  rest[0] = tasks;
  at[0] = nd;
  if (n == 0 || !can[nd - 1]) i = -1;
  while (i >= 0) {  // index prefer[i] takes divisor at[i] of what the indices before leave
    int c = f->prefer[i], k = at[i] - 1;
    const unsigned char *after = can + (i + 1) * nd;
    for (; k >= 0; k--) {
      if (divisor[k] > rest[i] || rest[i] % divisor[k] != 0) continue;
      if (!eini_cut_fits(f, c, divisor[k], even)) continue;
      if (after[eini_divisor_at(divisor, nd, rest[i] / divisor[k])]) break;
    }
    if (q->steps++ > q->effort) break;
    if (k < 0) {
      i--;
      continue;
    }
    at[i] = k;
    cut[c] = divisor[k];
    if (i == n - 1) {
      eini_pick_add(dc, f, q, cut, 0);
      continue;
    }
    rest[i + 1] = rest[i] / cut[c];
    at[++i] = nd;
  }
  eini_arena_rollback(a, &mark);
  return EIN_OK;
}

// Are vectors of every divisor of p tasks looked at?
static int eini_all_divisors(const ein_decompose_desc *d) {
  return d->fewer || (d->cost == EIN_COST_SECONDS && !d->strict);
}

// A vector of `tasks` tasks that cuts index c as much as can be, then the others as preferred; 0
// when this leaves tasks over.
static int eini_vector_first(const eini_dform *f, int first, int64_t tasks, int even, int nd,
                             const int64_t *divisor, int64_t *cut) {
  int64_t rest = tasks;
  for (int i = -1; i < f->s->nindex; i++) {
    int c = i < 0 ? first : f->prefer[i], k = nd - 1;
    if (i >= 0 && c == first) continue;
    while (k > 0 && (rest % divisor[k] != 0 || divisor[k] > f->limit[c] ||
                     (even && f->s->index[c].extent % divisor[k] != 0))) k--;
    cut[c] = f->need[c] != 0 ? f->need[c] : divisor[k];
    if (rest % cut[c] != 0) return 0;
    rest /= cut[c];
  }
  return rest == 1;
}

// Where not all vectors are kept: those that cut one index first, and the hint, which neighbours
// have alike.
static ein_status eini_vectors_first(eini_decomposer *dc, eini_dform *f, int64_t tasks, int even,
                                     int nd, const int64_t *divisor, eini_pick *q) {
  int n = f->s->nindex;
  int64_t *cut = EINI_NEW(&dc->arena, int64_t, n);
  if (cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n && 2 * (i + 1) < q->room; i++)
    if (f->limit[f->prefer[i]] > 1 &&
        eini_vector_first(f, f->prefer[i], tasks, even, nd, divisor, cut))
      eini_pick_add(dc, f, q, cut, -1);
  return EIN_OK;
}

// The most tasks that vectors can have, p at most. best: of so many for the indices so far; only
// quotients of p come up as room.
static ein_status eini_tasks_most(eini_decomposer *dc, const eini_dform *f, int64_t *tasks) {
  const eini_arena_at mark = eini_arena_mark(&dc->arena);
  int64_t root = 1, p = dc->p, *best, *next;
  while ((root + 1) * (root + 1) <= p) root++;
  best = EINI_NEW(&dc->arena, int64_t, 2 * root + 2);  // [room], or [2 * root + 1 - p / room]
  next = EINI_NEW(&dc->arena, int64_t, 2 * root + 2);
  if (best == NULL || next == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < 2 * root + 2; k++) best[k] = 1;
  for (int i = 0; i < f->s->nindex; i++) {
    int64_t need = f->need[i], limit = need != 0 ? need : f->limit[i];
    for (int64_t at = 1; at <= 2 * root; at++) {
      int64_t room = at <= root ? at : p / (2 * root + 1 - at), most = 0;
      // Of the pieces that leave as much room the most are best.
      for (int64_t pieces = eini_min64(limit, room); pieces > 0 && most < room;) {
        int64_t left = room / pieces;
        int64_t of = best[left <= root ? left : 2 * root + 1 - p / left];
        most = eini_max64(most, pieces * of);
        pieces = need != 0 ? 0 : room / (left + 1);
      }
      next[at] = need > room ? 0 : most;
    }
    int64_t *swap = best;
    best = next;
    next = swap;
  }
  *tasks = best[p <= root ? p : 2 * root];
  eini_arena_rollback(&dc->arena, &mark);
  return EIN_OK;
}

// Of a pinned result: partial results in as many pieces as an index of it should have more.
static ein_status eini_vectors_pinned(eini_decomposer *dc, const eini_dform *f, eini_pick *q) {
  const int n = f->s->nindex, nfree = f->s->nfree;
  int64_t *cut = EINI_NEW(&dc->arena, int64_t, n);
  if (cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int over = 0; over < nfree; over++) {
    for (int c = nfree; c < n; c++) {
      for (int k = 0; k < dc->ndivisor && f->need[c] == 0; k++) {
        const int64_t g = dc->divisor[k];
        if (g == 1 || f->need[over] % g != 0 || g > f->limit[c]) continue;
        for (int i = 0; i < n; i++) cut[i] = i < nfree ? f->need[i] : 1;
        cut[over] /= g;
        cut[c] = g;
        if (eini_scatter_may(dc->g, f->s, c, g)) eini_pick_add(dc, f, q, cut, 0);
      }
    }
  }
  return EIN_OK;
}

// The family: as many tasks as possible, p at most, in pieces that divide the extents where they
// can; and those of divisors of p. The `most` best of them are kept.
static ein_status eini_enumerate(eini_decomposer *dc, eini_dform *f, int node, eini_pick *q) {
  int even = 0, paper = dc->desc->cost <= EIN_COST_PAPER_CODE;
  int64_t divisor[256], tasks;
  EINI_TRY(eini_tasks_most(dc, f, &tasks));
  int nd = eini_divisors(tasks, divisor);
  double none = q->bytes;
  if (paper) EINI_TRY(eini_vectors_of(dc, f, tasks, 1, nd, divisor, q));
  even = q->seen > 0 || q->bytes < none;
  if (!even) EINI_TRY(eini_vectors_of(dc, f, tasks, 0, nd, divisor, q));
  if (q->n >= q->room || q->steps > q->effort)
    EINI_TRY(eini_vectors_first(dc, f, tasks, even, nd, divisor, q));
  for (int k = 0; k < dc->ndivisor && eini_all_divisors(dc->desc); k++) {
    if (dc->divisor[k] >= tasks) break;
    nd = eini_divisors(dc->divisor[k], divisor);
    EINI_TRY(eini_vectors_of(dc, f, dc->divisor[k], paper, nd, divisor, q));
  }
  if (dc->scatter && f->pinned && node < dc->nnode - dc->npinned)
    EINI_TRY(eini_vectors_pinned(dc, f, q));
  if (f->hint != NULL) eini_pick_add(dc, f, q, f->hint, -2);
  f->least = q->steps > q->effort ? 0 : q->least;
  dc->cut_short |= q->kept_out > 0 || q->steps > q->effort;
  return q->n > 0 ? EIN_OK : eini_no_memory_for(dc, node, q->bytes, q->steps > q->effort);
}

// The vectors of a form, as many as are picked at most, those of least rank first.
static ein_status eini_vectors_make(eini_decomposer *dc, eini_dform *f, int node, eini_pick *q,
                                    eini_ways *w) {
  int n = f->s->nindex;
  q->n = q->seen = q->steps = q->kept_out = 0;
  q->node = node;
  q->least = q->bytes = INFINITY;
  q->effort = eini_min64(EINI_VECTORS_EFFORT, dc->effort / 8 + 4096);
  q->step = 0;  // it walks over all maps
  for (int k = 0; k < f->s->noperand; k++) q->step += (int64_t)f->s->proj[k].rows * n / 16;
  q->step = eini_max64(q->step + (int64_t)f->s->noperand * n / 16, 64);
  eini_blocks_make(dc, f, &q->blocks);
  EINI_TRY(eini_enumerate(dc, f, node, q));
  dc->effort -= eini_min64(q->steps, dc->effort);
  for (int64_t k = q->n; k-- > 0;) {  // the dearest goes to the end
    int64_t slot = q->heap[0].what;
    if (n > 0) memcpy(w->cut + k * n, q->cut + slot * n, (size_t)n * sizeof *w->cut);
    q->heap[0] = q->heap[k];
    eini_heap_sink(q->heap, k, 0);
  }
  w->n = q->n;
  return EIN_OK;
}

// The vectors of a form by themselves.
static ein_status eini_vectors_keep(eini_decomposer *dc, eini_dform *f, const eini_pick *q,
                                    const eini_ways *w) {
  f->every = q->kept_out == 0 && q->steps <= q->effort;
  f->nvector = w->n;
  f->vector = EINI_NEW(&dc->arena, int64_t, w->n * f->s->nindex);
  if (f->vector == NULL) return EIN_ERR_NO_MEMORY;
  if (f->s->nindex > 0)
    memcpy(f->vector, w->cut, (size_t)(w->n * f->s->nindex) * sizeof *w->cut);
  return EIN_OK;
}

// The next permutation in lexicographic order; 0 after the last.
static int eini_permute(int *a, int n) {
  int i = n - 2, j = n - 1;
  while (i >= 0 && a[i] > a[i + 1]) i--;
  if (i < 0) return 0;
  while (a[j] < a[i]) j--;
  int x = a[i];
  a[i] = a[j];
  a[j] = x;
  for (int k = i + 1, l = n - 1; k < l; k++, l--) {
    x = a[k];
    a[k] = a[l];
    a[l] = x;
  }
  return 1;
}
