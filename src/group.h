// ================================================================================================
// >>group  statements that run inside one loop nest
// Takes units (statements with what is fused into them) in order; finds runs of them that move less
// in blocks (section fusion-tile), so that temporaries between them stay in a cache. Invariant: a
// unit reads of the group's tensors only the block at hand.
// ================================================================================================

#define EINI_LAYOUT_RANK 8

typedef struct eini_unit {
  const eini_stmt *s, *f;       // f: the consumer fused into s, or NULL
  int64_t number[2];            // of both in the graph
  int via, out;
  int *column;                  // f's columns as indices of s
} eini_unit;

// Where a slot of a group's tasks points: a slot of the plan or a place among its temporaries.
typedef struct eini_group_slot {
  int slot;                     // -1: local, at offset; -2: a value, not an address
  int64_t offset;
  int64_t step[EINI_GROUP_LOOPS];
} eini_group_slot;

// Blocks along the innermost loop in which a task runs. First: once while that loop runs, and again
// where a thread begins.
// Mixed, open: of these blocks, those that a mask keeps in part, or wholly.
enum {
  EINI_AT_FIRST = 1, EINI_AT_OTHERS = 2, EINI_AT_LAST = 4,
  EINI_AT_MIXED = 8, EINI_AT_OPEN = 16, EINI_AT_ANY = 24
};

struct eini_mask;
typedef struct eini_mask eini_mask;

// Blocks of one shape: bit l of its number: the last ones along loop l, which are others.
typedef struct eini_group_variant {
  int ntask, nslot;
  eini_task *task;
  char *when;                   // per task: EINI_AT_*
  eini_group_slot *slot;        // slot 0 is the zero of values
  eini_mask *mask;              // of blocks that need not be computed, or NULL
  ein_group *told;              // what a provider of groups is told, and says; or NULL
  ein_choice choice;
} eini_group_variant;

typedef struct eini_group {
  int nloop;
  int streams;                  // 1: folds go on along the innermost loop, which no thread begins
                                //   within
  int in_place;                 // 1: maps write over what they read
  size_t known;                 // its blocks, where a mask leaves some out; or 0
  int64_t extent[EINI_GROUP_LOOPS], block[EINI_GROUP_LOOPS];
  int64_t edge[EINI_GROUP_LOOPS];  // where the last block begins if it is another one, else extent
  eini_group_variant variant[1 << EINI_GROUP_LOOPS];
  size_t local_bytes, scratch;
  int slots;                    // of any variant, at most
  int along;                    // 1 + the loop that a block goes along by itself, or 0
  size_t room;                  // then: bytes of a block's own memory, as its provider says
  double saved;                 // bytes of temporaries that are never stored
  double moves;                 // bytes that blocks move, by the model that chose them
  int units, nstmt;             // units; statements of the graph, and their numbers
  int64_t *stmt;
  // Without loops: rows of one form, a task each. Its slot k is slot row[i * row_slots + k] of
  // row i.
  int64_t nrow;
  eini_task *form;
  const eini_unit *unit;        // of each row
  const int *row;
  int row_slots;
} eini_group;

// Operand k of a unit: s's, then f's but the fused one. *map is its access, *column as in the unit.
static int eini_unit_operand(const eini_unit *u, int k, const eini_map **map, const int **column) {
  int f = k - u->s->noperand;
  *column = f < 0 ? NULL : u->column;
  if (f < 0) {
    *map = &u->s->proj[k];
    return u->s->operand[k];
  }
  if (u->f == NULL || f >= u->f->noperand) return -1;
  *map = &u->f->proj[f];
  return u->f->operand[f];
}

static int eini_unit_reads(const eini_unit *u, int id) {
  const eini_map *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(u, k, &m, &column)) >= 0; k++)
    if (t == id) return 1;
  return 0;
}

// ---- runs of units ----

// What a unit runs over in a block that begins at b of a loop: from mul * b + lo on, mul * (block -
// 1) + 1 + more values.
typedef struct eini_group_range {
  int index;                    // of s; -1: none
  int64_t mul, lo, more;
} eini_group_range;

// What runs in blocks of a group in place of its units, where folds go on from block to block.
typedef struct eini_group_step {
  const eini_stmt *s, *f;       // as of a unit
  int via, unit;                // unit: whose ranges it has, counted from the first
  int axes;                     // 1: its indices are the axes of what the unit folds,
  int then;                     //   or those of what is fused into the unit
  int when;
} eini_group_step;

#define EINI_STEPS_MOST 7       // of a unit
#define EINI_MASK_FACTORS 8
#define EINI_MASK_TERMS 6       // comparisons of a mask

// A group of units [from, to].
typedef struct eini_bundle {
  int from, to, nloop;
  int64_t extent[EINI_GROUP_LOOPS], block[EINI_GROUP_LOOPS], edge[EINI_GROUP_LOOPS];
  int cls[EINI_GROUP_LOOPS];
  int stream;                   // class + 1 along which folds go on, innermost; 0: none
  eini_group_step *step;        // and its steps
  int nstep;
  int mask;                     // unit + 1 that leaves out of a softmax what is not wanted; or 0
  int mask_terms;               //   it keeps nothing but where all so many terms are at most 0,
  int mask_all;                 //   and there all, or not
  int64_t *mask_by;             //   of each term: the factors of its indices, a constant
  int nfactor, factor[EINI_MASK_FACTORS][2];  // what exp's values are multiplied by: unit, operand
  int along;                    // 1 + the loop that a block goes along by itself, or 0
  eini_group_range range[EINI_FUSE_MOST][EINI_GROUP_LOOPS];  // per unit, counted from `from`
  double moves;                 // bytes
  double alone;                 // seconds of its units one by one, and ..
  double gain;                  // .. how many less they take in blocks; -INFINITY: they cannot
} eini_bundle;

// The search for groups.
typedef struct eini_trail {
  const ein_graph *g;
  const eini_unit *unit;
  int nunit;
  const ein_rates *rates;
  int *made, *first, *last;     // per tensor: the unit that makes it, those that read it
  char *local;                  // per tensor: made and read in the group only; 0 between searches
  int64_t *place;               // per tensor: of local ones, among the group's temporaries
  int64_t *shift;               //   and of elements in front of its block
  double *apart;                // per unit: its seconds by itself, as layouts are; -1: not known
  char *joins;                  // per unit: may be in a group
  int *then;                    // per unit: the last one of the group that begins there; or NULL
  double size;                  // bytes of an element, of the largest there are
  int as_found;                 // 1: sides that move least, however long the host would take
  eini_fuse_search z;
} eini_trail;

static void eini_trail_free(eini_trail *w) {
  if (w->then != NULL) eini_arena_free(&w->z.scratch);
}

// A tensor with one unit that makes all of it can be in a group.
static int eini_unit_joins(const ein_graph *g, const eini_unit *u) {
  const eini_stmt *last = u->f != NULL ? u->f : u->s;
  return last->rest == EIN_REST_ERROR && g->tensor[u->out].nstmt == 1 && u->s->carry == NULL &&
         last->carry == NULL && u->s->nfree > 0 && u->s->fold != EIN_FOLD_BLOCK &&
         !eini_stmt_empty(u->s, 0, u->s->nindex);
}

// Is tensor t made in [from, to] and read there only? One that nothing reads is stored: its map may
// be one that no reader could follow.
static int eini_bundle_keeps(const eini_trail *w, int t, int from, int to) {
  return w->g->tensor[t].role == EIN_ROLE_TEMP && w->made[t] >= from && w->made[t] <= to &&
         w->first[t] >= from && w->last[t] >= from && w->last[t] <= to;
}

// Marks such tensors; returns their bytes.
static double eini_bundle_mark(const eini_trail *w, int from, int to) {
  double bytes = 0;
  for (int u = from; u <= to; u++) {
    int t = w->unit[u].out;
    w->local[t] = (char)eini_bundle_keeps(w, t, from, to);
    if (w->local[t]) bytes += eini_tensor_bytes(&w->g->tensor[t]);
  }
  return bytes;
}

static void eini_bundle_unmark(const eini_trail *w, int from, int to) {
  for (int u = from; u <= to; u++) w->local[w->unit[u].out] = 0;
}

// Does unit u read a tensor that units from `from` on make?
static int eini_unit_follows(const eini_trail *w, int from, int u) {
  const eini_map *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++)
    if (w->made[t] >= from && w->made[t] < u) return 1;
  return 0;
}

// ---- from classes to loops ----

// The statements of units [from, to], ascending. 0: too many.
static int eini_bundle_list(const eini_trail *w, int from, int to, int64_t *list) {
  int n = 0;
  for (int u = from; u <= to; u++) {
    for (int k = 0; k < 2; k++) {
      const int64_t x = w->unit[u].number[k];
      int i = n;
      if (x < 0) continue;
      if (n == EINI_FUSE_MOST) return 0;
      for (; i > 0 && list[i - 1] > x; i--) list[i] = list[i - 1];
      list[i] = x;
      n++;
    }
  }
  return n;
}

// What statement number x of a group runs over along class c; 0: the class is more than blocks of
// an index can say. folds: of a folded index, too.
static int eini_bundle_range(const eini_fuse *f, const int64_t *list, int64_t x, int c, int folds,
                             eini_group_range *to) {
  int m = 0;
  while (list[m] != x) m++;
  to->index = -1;
  for (int i = 0; i < f->member[m].s->nindex; i++) {
    const eini_fuse_index *y = &f->index[f->member[m].first + i];
    if (y->cls != c) continue;
    if (to->index >= 0 || (i >= f->member[m].s->nfree && !folds) || y->lo < 0 || y->mul < 1)
      return 0;
    to->index = i;
    to->mul = (int64_t)y->mul;
    to->lo = (int64_t)y->lo;
    to->more = (int64_t)(y->hi - y->lo);
  }
  return 1;
}

// The ranges of units along class c, as loop l.
static int eini_bundle_loop(const eini_trail *w, const eini_fuse *f, const int64_t *list, int c,
                            eini_bundle *b, int l) {
  const int folds = b->along == l + 1 || b->stream == c + 1;
  b->extent[l] = 0;
  b->block[l] = (int64_t)f->side[c];
  for (int u = b->from; u <= b->to; u++) {
    const eini_unit *x = &w->unit[u];
    eini_group_range *r = &b->range[u - b->from][l], q;
    if (!eini_bundle_range(f, list, x->number[0], c, folds, r)) return 0;
    if (x->f != NULL && r->index >= x->s->nfree) {  // is what is fused into it behind the fold?
      if (!eini_bundle_range(f, list, x->number[1], c, 0, &q) || q.index >= 0) return 0;
    } else if (x->f != NULL) {  // or the same?
      if (!eini_bundle_range(f, list, x->number[1], c, 0, &q)) return 0;
      if (q.index >= 0 ? x->column[q.index] != r->index || r->index < 0 || q.mul != r->mul ||
                             q.lo != r->lo || q.more != r->more
                       : r->index >= 0) return 0;
    }
    if (r->index >= 0 && r->mul == 1 && r->lo == 0 && r->more == 0)
      b->extent[l] = eini_max64(b->extent[l], x->s->index[r->index].extent);
  }
  return (b->along == l + 1 || b->extent[l] > b->block[l]) && b->block[l] > 0;
}

// Where blocks are others: the last one along a loop is shorter, or not all of it is there for some
// unit. 0: so it would be of others, too.
static int eini_bundle_edge(const eini_trail *w, eini_bundle *b, int l) {
  const int64_t block = b->block[l], last = (eini_ceil_div(b->extent[l], block) - 1) * block;
  int differs = b->extent[l] - last < block;
  for (int u = b->from; u <= b->to; u++) {
    const eini_group_range *r = &b->range[u - b->from][l];
    if (r->index < 0) continue;
    const int64_t n = w->unit[u].s->index[r->index].extent;
    const int64_t to = r->lo + r->mul * (block - 1) + 1 + r->more;  // of the first block
    if (r->mul * (last - block) + to > n) return 0;
    differs |= r->mul * last + to > n;
  }
  b->edge[l] = differs ? last : b->extent[l];
  return 1;
}

// How often unit u runs: not again along the innermost loop, where that does not move it.
static double eini_bundle_runs(const eini_bundle *b, int u) {
  double n = 1;
  for (int l = 0; l < b->nloop; l++)
    if (l < b->nloop - 1 || b->range[u - b->from][l].index >= 0)
      n *= (double)eini_ceil_div(b->extent[l], b->block[l]);
  return n;
}

// The loops of a bundle as indices of unit u, and of what is fused into it.
static void eini_bundle_walk(const eini_trail *w, const eini_bundle *b, int u, eini_walk *walk) {
  const eini_unit *x = &w->unit[u];
  memset(walk, 0, 2 * sizeof *walk);
  walk[0].nloop = walk[1].nloop = b->nloop;
  for (int l = 0; l < b->nloop; l++) {
    const int i = b->range[u - b->from][l].index;
    int c = x->f == NULL ? -1 : x->f->nindex - 1;
    while (c >= 0 && x->column[c] != i) c--;
    walk[0].loop[l] = i;
    walk[1].loop[l] = i < 0 ? -1 : c;
  }
}

// Sets what a task of unit u sees of its loops in blocks of a variant. Returns those, in bits,
// along which it sees nothing.
static int eini_bundle_at(const eini_trail *w, const eini_bundle *b, int u, int variant,
                          eini_lowering *lo) {
  eini_walk walk[2];
  int none = 0;
  eini_bundle_walk(w, b, u, walk);
  lo->walk = walk[0];
  for (int l = 0; l < b->nloop; l++) {
    const eini_group_range *r = &b->range[u - b->from][l];
    const int last = variant >> l & 1;
    const int64_t block = last ? b->extent[l] - b->edge[l] : b->block[l];
    lo->mul[l] = lo->from[l] = lo->len[l] = 0;
    if (r->index < 0) continue;
    lo->mul[l] = r->mul;
    lo->from[l] = r->lo;
    lo->len[l] = r->mul * (block - 1) + 1 + r->more;
    if (last)
      lo->len[l] = eini_min64(lo->len[l], w->unit[u].s->index[r->index].extent -
                                              (r->mul * b->edge[l] + r->lo));
    if (lo->len[l] <= 0) lo->len[l] = 0, none |= 1 << l;
  }
  return none;
}

// Runs of elements of tensor t that blocks of unit u begin to read: those of whole rows follow each
// other.
static double eini_bundle_starts(const eini_trail *w, const eini_bundle *b, int u, int t,
                                 const eini_map *m, const int *column) {
  const int last = m->rows - 1, row = last < 0 ? -1 : eini_plain_row(m, last);
  const int i = row < 0 || column == NULL ? row : column[row];
  const int64_t inner = last < 0 ? 1 : w->g->tensor[t].shape[last];
  const double size = (double)ein_dtype_size(w->g->tensor[t].dtype);
  for (int l = 0; l < b->nloop; l++)
    if (i >= 0 && b->range[u - b->from][l].index == i)
      return eini_tensor_bytes(&w->g->tensor[t]) / size / (double)inner *
             (double)eini_ceil_div(b->extent[l], b->block[l]);
  return 0;
}

// Seconds of unit u by the roofline, if it moves so many elements (by weight) and comes `runs`
// times: what arithmetic hides is not gained.
static double eini_unit_takes(const eini_trail *w, int u, double elements, double runs) {
  const eini_unit *x = &w->unit[u];
  const ein_rates *r = w->rates;
  const eini_cost c = eini_cost_of(w->g, x->s, x->f, NULL, NULL, NULL, NULL);
  const double points = eini_points(x->s, NULL, 0, x->s->nindex);
  const eini_speed v =
      eini_core_speed(r, eini_core_flops(r, w->g->tensor[x->s->out].dtype, points / runs));
  return eini_seconds(&v, c.flops, elements * w->size);
}

// Seconds that unit u takes in blocks beyond what it moves and computes: to begin each, and runs of
// what it reads from outside.
static double eini_bundle_beyond(const eini_trail *w, const eini_bundle *b, int u) {
  const eini_unit *x = &w->unit[u];
  const eini_map *m;
  const int *column;
  double starts = 0;
  for (int k = 0, t; (t = eini_unit_operand(x, k, &m, &column)) >= 0; k++) {
    const eini_map *other;
    const int *its;
    int no = eini_bundle_keeps(w, t, b->from, b->to);
    for (int j = 0; j < k && !no; j++) no = eini_unit_operand(x, j, &other, &its) == t;
    if (!no) starts += eini_bundle_starts(w, b, u, t, m, column);
  }
  return EINI_BLOCK_SECONDS * eini_bundle_runs(b, u) + EINI_FAR_SECONDS * starts;
}

// Elements, by weight, that unit u moves in a group with the sides at hand: from outside and there;
// what is made and read in the group goes through a cache.
static double eini_bundle_moves(const eini_trail *w, const eini_bundle *b, const eini_fuse *f,
                                const int64_t *list, int u) {
  const eini_unit *x = &w->unit[u];
  const eini_map *m;
  const int *column;
  double local = 0, io = 0;
  for (int k = 0; k < f->naccess; k++) {
    const int64_t number = list[f->access[k].member];
    if (number == x->number[0] || number == x->number[1])
      io += eini_fuse_moved_by(f, &f->access[k], 1);
  }
  for (int k = -1, t = x->out; t >= 0; t = eini_unit_operand(x, ++k, &m, &column))
    if (eini_bundle_keeps(w, t, b->from, b->to)) local += eini_tensor_bytes(&w->g->tensor[t]);
  return io + EINI_CACHED * local / w->size;
}

// Loops from the sides of classes, the last class innermost, and what they gain.
static void eini_bundle_weigh(const eini_trail *w, const eini_fuse *f, const int64_t *list,
                              eini_bundle *b) {
  b->gain = -INFINITY;
  b->nloop = b->along = 0;
  if (!(f->io < INFINITY)) return;
  for (int i = 0; i <= f->ncls; i++) {
    const int c = i < f->ncls ? i : f->last;
    if (c < 0 || (i < f->ncls && c == f->last) || !(f->times[c] > 1)) continue;
    if (b->nloop == EINI_GROUP_LOOPS || !eini_bundle_loop(w, f, list, c, b, b->nloop)) return;
    if (!eini_bundle_edge(w, b, b->nloop)) return;
    b->cls[b->nloop++] = c;
  }
  if (b->nloop == 0) return;
  b->moves = eini_fuse_moves(f, 0) * w->size;
  b->gain = b->alone;
  for (int u = b->from; u <= b->to; u++)
    b->gain -= eini_unit_takes(w, u, eini_bundle_moves(w, b, f, list, u), eini_bundle_runs(b, u)) +
               eini_bundle_beyond(w, b, u);
}

// Sides as found; in their place longer ones along one loop, at the cost of the others, as long as
// runs that are not begun again gain more.
static void eini_bundle_choose(const eini_trail *w, eini_fuse *f, const int64_t *list,
                               eini_bundle *b) {
  const double fast = w->z.fast;
  eini_bundle other;
  eini_fuse_fatten(f, fast);
  eini_bundle_weigh(w, f, list, b);
  for (int l = 0; l < b->nloop; l++) {
    const int c = b->cls[l];
    double side[EINI_FUSE_CLASSES], to = 2 * f->side[c];
    int better = 1;
    while (better && b->nloop > 1) {
      memcpy(side, f->side, sizeof side);
      f->side[c] = to = fmin(to, f->extent[c]);
      eini_fuse_narrow(f, c, fast);
      eini_fuse_fatten(f, fast);
      other = *b;
      eini_bundle_weigh(w, f, list, &other);
      better = other.gain > b->gain;
      if (better) *b = other;
      else memcpy(f->side, side, sizeof side);
      better &= to < f->extent[c];
      to *= 2;
    }
  }
}

// The blocks of units [from, to]. only: nothing but their gain, which is found once of groups of
// one form.
static ein_status eini_bundle_make(eini_trail *w, int from, int to, int only, eini_bundle *b) {
  const eini_arena_at mark = eini_arena_mark(&w->z.scratch);
  int64_t list[EINI_FUSE_MOST];
  eini_fuse_known *k;
  eini_fuse f;
  double alone = 0;
  int fits;
  const int n = eini_bundle_list(w, from, to, list);
  b->alone = 0, b->gain = -INFINITY;
  b->from = from, b->to = to;
  b->nloop = b->stream = b->nstep = b->mask = 0;
  if (n == 0) return EIN_OK;
  for (int u = from; u <= to; u++) {
    int64_t own[2];
    const int both = eini_bundle_list(w, u, u, own);
    EINI_TRY(eini_fuse_ask(&w->z, own, both, INFINITY, &k));
    if (k == NULL) return EIN_OK;
    alone += k->io;
    b->alone += eini_unit_takes(w, u, k->io, 1);
  }
  EINI_TRY(eini_fuse_ask(&w->z, list, n, alone, &k));
  if (k == NULL || !(k->io < INFINITY)) return EIN_OK;
  if (only && k->gained) {
    b->gain = k->gain;
    return EIN_OK;
  }
  EINI_TRY(eini_fuse_recall(&w->z, list, n, k, &f, &fits));
  if (fits && w->as_found) eini_bundle_weigh(w, &f, list, b);
  else if (fits) eini_bundle_choose(w, &f, list, b);
  k->gain = b->gain;
  k->gained = 1;
  eini_arena_rollback(&w->z.scratch, &mark);
  return EIN_OK;
}

// Do blocks take no longer, as far as that is known?
static int eini_bundle_pays(const eini_bundle *b) {
  return EINI_SURELY * (b->alone - b->gain) < b->alone;
}

// What begins at a unit.
typedef struct eini_trail_way {
  int last;                     // unit of the group
  double gain, held;            // seconds, and bytes that are never stored, up to the last unit
  double doubt;                 // seconds that it may lose against others and still be as fast
} eini_trail_way;

// The runs of units that gain most together; of those that are as fast, the ones that store least.
static ein_status eini_trail_search(eini_trail *w, eini_arena *a) {
  eini_trail_way *best = EINI_NEW(a, eini_trail_way, (int64_t)w->nunit + 1);
  eini_bundle *b = EINI_NEW(a, eini_bundle, 1);
  if (best == NULL || b == NULL) return EIN_ERR_NO_MEMORY;
  for (int u = w->nunit - 1; u >= 0; u--) {
    eini_trail_way way[EINI_FUSE_MOST];
    int n = 1, most = 0, to = 0;
    way[0] = best[u + 1];
    way[0].last = u, way[0].doubt = 0;
    const int first = w->joins[u] && w->g->tensor[w->unit[u].out].role == EIN_ROLE_TEMP;
    for (int v = u + 1; first && v < w->nunit && v < u + EINI_FUSE_MOST && w->joins[v]; v++) {
      if (!eini_unit_follows(w, u, v)) break;
      const double held = eini_bundle_mark(w, u, v);
      eini_bundle_unmark(w, u, v);
      if (!(held > w->rates->fast_bytes)) continue;
      EINI_TRY(eini_bundle_make(w, u, v, 1, b));
      if (!eini_bundle_pays(b)) continue;
      way[n].last = v;
      way[n].gain = b->gain + best[v + 1].gain;
      way[n].held = held + best[v + 1].held;
      way[n].doubt = (1 - EINI_SURELY) * b->alone;
      if (way[n].gain > way[most].gain) most = n;
      n++;
    }
    to = most;
    for (int i = 0; i < n; i++)
      if (way[i].gain > way[most].gain - way[i].doubt && way[i].held > way[to].held) to = i;
    best[u] = way[to];
    w->then[u] = way[to].last;
  }
  return EIN_OK;
}

// What is known of units before groups are searched for. temps: bytes of temporaries.
static ein_status eini_trail_begin(eini_trail *w, eini_arena *a, const ein_graph *g,
                                   const eini_unit *unit, int nunit, const ein_rates *rates,
                                   const int *rows, double **weights, double *temps) {
  const eini_map *m;
  const int *column;
  memset(w, 0, sizeof *w);
  w->g = g, w->unit = unit, w->nunit = nunit, w->rates = rates;
  w->made = EINI_NEW(a, int, g->ntensor);
  w->first = EINI_NEW(a, int, g->ntensor);
  w->last = EINI_NEW(a, int, g->ntensor);
  w->local = EINI_NEW(a, char, g->ntensor);
  w->place = EINI_NEW(a, int64_t, g->ntensor);
  w->shift = EINI_NEW(a, int64_t, g->ntensor);
  w->apart = EINI_NEW(a, double, nunit);
  w->joins = EINI_NEW(a, char, nunit);
  double *weight = EINI_NEW(a, double, g->ntensor);
  if (w->made == NULL || w->first == NULL || w->last == NULL || w->local == NULL ||
      w->place == NULL || w->shift == NULL || w->apart == NULL || w->joins == NULL ||
      weight == NULL)
    return EIN_ERR_NO_MEMORY;
  w->size = 1;
  for (int64_t t = 0; t < g->ntensor; t++) {
    const double bytes = eini_tensor_bytes(&g->tensor[t]);
    w->made[t] = w->last[t] = -1, w->first[t] = nunit;
    weight[t] = fmin(1, rates->copy_bw[EIN_MEMORY] / eini_core_bandwidth(rates, bytes));
    w->size = fmax(w->size, (double)ein_dtype_size(g->tensor[t].dtype));
    if (g->tensor[t].role == EIN_ROLE_TEMP) *temps += bytes;
  }
  for (int u = 0, row = 0; u < nunit; u++) {
    if (rows != NULL && rows[u] > 0) row = rows[u];
    w->apart[u] = -1;
    w->joins[u] = (char)(row-- <= 0 && eini_unit_joins(g, &unit[u]));
    w->made[unit[u].out] = u;
    for (int k = 0, t; (t = eini_unit_operand(&unit[u], k, &m, &column)) >= 0; k++) {
      if (w->first[t] == nunit) w->first[t] = u;
      w->last[t] = u;
    }
  }
  *weights = weight;
  return EIN_OK;
}

// fast: bytes of blocks.
static ein_status eini_trail_open(eini_trail *w, eini_arena *a, double fast, const double *weight) {
  EINI_TRY(eini_fuse_search_make(&w->z, a, w->g, fast / w->size, 0));
  w->z.w.uncut = 1;
  w->z.w.weight = weight;
  w->then = EINI_NEW(a, int, w->nunit);
  if (w->then != NULL) return EIN_OK;
  eini_arena_free(&w->z.scratch);
  return EIN_ERR_NO_MEMORY;
}

static ein_status eini_trail_make(eini_trail *w, eini_arena *a, const ein_graph *g,
                                  const eini_unit *unit, int nunit, const ein_rates *rates,
                                  const int *rows) {
  double temps = 0, *weight;
  EINI_TRY(eini_trail_begin(w, a, g, unit, nunit, rates, rows, &weight, &temps));
  if (!(temps > rates->fast_bytes)) return EIN_OK;  // all may stay
  EINI_TRY(eini_trail_open(w, a, EINI_CACHE_PART * rates->fast_bytes, weight));
  const ein_status st = eini_trail_search(w, a);
  if (st != EIN_OK) eini_trail_free(w);
  return st;
}
