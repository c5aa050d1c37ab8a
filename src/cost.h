// ================================================================================================
// >>cost  what a block of a statement takes
// Takes a statement, a block of its index space and a machine's speed; gives operations, bytes,
// traffic and seconds. Pure, without lowering. Groups, slices, places and what plans say of
// themselves count with it, paths with its roofline; a provider's prediction goes before it.
// ================================================================================================

// ---- constants ----
// What trade-offs assume beside the rates of a machine (ein_rates, ein_machine), and where it is
// from. Seconds are of one core.

// Tasks: measured with bench/networks.c on Zen 5.
#define EINI_TASK_SECONDS 5e-8   // a task beyond its arithmetic and traffic
#define EINI_RUN_SECONDS 5e-9    // a block of a batch; and each operand of a product that is made
                                 //   while packing, for a run along an index
#define EINI_ADD_SECONDS 3e-10   // an element that is added up alone
#define EINI_DOUBT_SECONDS 1e-7  // what a task may take more than predicted, by the way it is run

// Contractions: assumed, of kernels that pack panels and work on registers.
#define EINI_EXPOSED 0.2         // of the shorter of arithmetic and traffic: not hidden behind the
                                 //   longer
#define EINI_PANEL 8.0           // rows or columns of a panel: fewer keep from the peak ..
#define EINI_PANEL_LEAST 0.25    // .. down to this part of it
#define EINI_JOIN_FLOPS 8.0      // of an element of a product of two factors made while packing
#define EINI_RUN_LENGTH 256.0    // elements of a run at most: a panel's depth
#define EINI_RUN_SHORT 16.0      // shorter ones of all operands do not fill vectors

// Choices between predictions: how far they are trusted.
#define EINI_SURELY 0.95         // another way is faster if it takes at most this part ..
#define EINI_DOUBTS 5.0          // .. or, below so many doubts, by the doubt itself
#define EINI_WEIGH_TIMES 3.0     // kernels are asked about ways of at most so many times as long
#define EINI_SLICE_GAIN 1.05     // times the seconds without loops: what makes two loops worth it

// The portable kernels at about 2 GHz; blocks of a batch and lines were measured on Zen 5.
#define EINI_MULADD_SECONDS 5e-10  // a multiply-add of half a vector
#define EINI_PACK_MULADDS 0.6    // an element packed, in multiply-adds
#define EINI_STREAM_MULADDS 3.0  // one that is read once: 8 bytes a cycle
#define EINI_TILE_MULADDS 4.0    // a tile begun, per element
#define EINI_STORE_MULADDS 16.0  // an element of the result stored apart from the one before
#define EINI_SMALL_SECONDS 1e-8  // a block of the batch, by path ..
#define EINI_TILES_SECONDS 1e-7
#define EINI_STREAM_SECONDS 6e-8
#define EINI_LINE_SECONDS 8e-9   // .. and a row or column streamed
#define EINI_CALL_SECONDS 2e-8   // a call
#define EINI_CYCLE_SECONDS 5e-10 // a cycle, where no provider knows it better

// Chunks of maps (eini_chunk_cost), in lines of a cache touched for an element: assumed.
#define EINI_CHUNK_START 12.0    // a chunk begun
#define EINI_CHUNK_APART 0.125   // an element not beside the one before
#define EINI_MAP_DOUBT 2.0       // times what the portable map is thought to take, against kernels
#define EINI_CHUNK_END 16.0      // a chunk along a reduced index, which ends in one element

// Caches, groups and slices: assumed, orders of magnitude.
#define EINI_START_SECONDS 1e-4  // ein_rates.start where it was not measured: threads that sleep,
                                 // 85 to 150 us, bench/batch.c on two cores
#define EINI_CACHED 0.25         // what traffic with a cache counts, of that with memory
#define EINI_CACHE_PART 0.5      // of a cache: what stays there, be it a group's block or a tensor
#define EINI_LINE_BYTES 64       // what an element far from the one before it brings
#define EINI_FAR_SECONDS 1e-7    // a run of elements begun elsewhere: nothing reads ahead
#define EINI_BLOCK_SECONDS 1e-6  // a statement of a group, for each block
#define EINI_SLICE_SECONDS 2e-6  // a statement of a region, for each slice; and a region
#define EINI_PART_TIMES 3.0      // partial results of slices are stored, read again and merged
#define EINI_CORE_FLOPS 4e9      // rates of a core where no provider says them: portable kernels
#define EINI_CORE_BANDWIDTH 8e9

// Searches within budgets, see memory-search.
#define EINI_FIT_OPTIMISM 8      // predictions are at most so many times what is counted
#define EINI_FIT_FLOOR 4096      // bytes below which targets make no difference: plans take more
#define EINI_FIT_PATIENCE 1e6    // predicted seconds of what counts as impossible
#define EINI_FIT_PACKING ((int64_t)4 << 20)  // bytes a thread's kernel packs into, at most or so

// Cuts that the shape alone decides. Tests make the first two small.
#ifndef EINI_LEAF_WORK
#define EINI_LEAF_WORK 32768     // elements of a leaf of a long fold at least: 10 us of additions
#endif
#ifndef EINI_SUM_WORK
#define EINI_SUM_WORK 4096       // elements of a sum that goes to matrix-vector kernels, at least
#endif
#define EINI_LEAVES 64           // of a fold at most: threads of a machine
#define EINI_LEAF_RESULTS 256    // folds with more results have enough for threads to cut

// A place where nothing is said (ein_machine): a node on a fast network, assumed.
#define EINI_PLACE_FLOPS 1e11
#define EINI_PLACE_MEMORY_BW 1e11
#define EINI_PLACE_LATENCY 2e-6
#define EINI_PLACE_BANDWIDTH 1e10
#define EINI_PLACE_OVERHEAD 2e-6
// A place that is a thread: its messages are wake-ups, and nothing is copied.
#define EINI_THREAD_LATENCY 1e-6
#define EINI_THREAD_BANDWIDTH 1e13

// ---- blocks ----

#define EINI_WALK_LOOPS 4

// Loops that walk over an index space, slice by slice.
typedef struct eini_walk {
  int nloop;
  int loop[EINI_WALK_LOOPS];      // index that a loop walks along; -1: the statement has none
  double times[EINI_WALK_LOOPS];  // its slices
} eini_walk;

// Part of an index space: ranges [lo, hi) of all indices (lo NULL: they begin at 0), or the largest
// of so many pieces of each, or (hi and cut are NULL) all of it, in the slices of a walk or one of
// them.
typedef struct eini_stmt_block {
  const int64_t *lo, *hi;
  const int64_t *cut;
  const eini_walk *walk;          // or NULL
  const int64_t *len;             // of one slice along each loop; NULL: all slices
} eini_stmt_block;

static inline eini_stmt_block eini_block_of(const int64_t *lo, const int64_t *hi,
                                            const int64_t *cut) {
  const eini_stmt_block b = {lo, hi, cut, NULL, NULL};
  return b;
}

// What a walk comes to: len NULL: all slices, else one of them, of so many values along each loop.
static inline eini_stmt_block eini_walk_block(const eini_walk *w, const int64_t *len) {
  const eini_stmt_block b = {NULL, NULL, NULL, w, len};
  return b;
}

// The values [*lo, *hi) that index i has in a block; NULL: all. Ranges need no statement.
static inline void eini_block_range(const eini_stmt *s, const eini_stmt_block *b, int i,
                                    int64_t *lo, int64_t *hi) {
  const int ranges = b != NULL && b->hi != NULL;
  *lo = ranges && b->lo != NULL ? b->lo[i] : 0;
  *hi = ranges ? b->hi[i] : s->index[i].extent;
  if (b == NULL || ranges) return;
  if (b->cut != NULL) *hi = eini_ceil_div(*hi, b->cut[i]);
  for (int l = 0; b->len != NULL && l < b->walk->nloop; l++)
    if (b->walk->loop[l] == i) *hi = b->len[l];
}

static inline double eini_length(const eini_stmt *s, const eini_stmt_block *b, int i) {
  int64_t lo, hi;
  eini_block_range(s, b, i, &lo, &hi);
  return hi > lo ? (double)(hi - lo) : 0;
}

// Points of a block along indices from .. to - 1.
static inline double eini_points(const eini_stmt *s, const eini_stmt_block *b, int from, int to) {
  double n = 1;
  for (int i = from; i < to; i++) n *= eini_length(s, b, i);
  return n;
}

// The values [*from, *to) that coordinate r of an access has in a block with points. Every access
// was proved to stay inside a tensor, so nothing wraps.
static inline void eini_block_row(const eini_stmt *s, const eini_stmt_block *b, const eini_map *m,
                                  int r, int64_t *from, int64_t *to) {
  *from = *to = m->offset[r];
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    const int64_t k = m->term[e].coef;
    int64_t lo, hi;
    eini_block_range(s, b, m->term[e].index, &lo, &hi);
    *from += k * (k > 0 ? lo : hi - 1);
    *to += k * (k > 0 ? hi - 1 : lo);
  }
  ++*to;
}

// The hull of what a block reads of operand k, or writes (-1): the smallest box [from, to) that
// holds it. Empty where one of the indices that the access is made for has no values.
static void eini_block_hull(const eini_stmt *s, const eini_stmt_block *b, int k, int64_t *from,
                            int64_t *to) {
  const eini_map *m = eini_access(s, k);
  int64_t lo, hi;
  int empty = 0;
  for (int i = 0; i < (k < 0 ? s->nfree : s->nindex) && !empty; i++) {
    eini_block_range(s, b, i, &lo, &hi);
    empty = hi <= lo;
  }
  for (int r = 0; r < m->rows; r++) {
    if (empty) from[r] = to[r] = m->offset[r];
    else eini_block_row(s, b, m, r, &from[r], &to[r]);
  }
}

// Its elements, of a block with points.
static double eini_block_box(const eini_stmt *s, const eini_stmt_block *b, int k) {
  double box = 1;
  for (int r = 0; r < s->proj[k].rows; r++) {
    int64_t from, to;
    eini_block_row(s, b, &s->proj[k], r, &from, &to);
    box *= (double)(to - from);
  }
  return box;
}

static double eini_tensor_bytes(const eini_tensor *t) {
  double n = (double)ein_dtype_size(t->dtype);
  for (int a = 0; a < t->rank; a++) n *= (double)t->shape[a];
  return n;
}

// How often a walk comes to what an access touches: in all slices of loops that do not move it.
// NULL: how often it comes to the statement.
static double eini_walk_times(const eini_walk *w, const eini_map *m) {
  double times = 1;
  for (int l = 0; w != NULL && l < w->nloop; l++)
    if (w->loop[l] < 0 || (m != NULL && eini_map_uses(m, w->loop[l]) == 0)) times *= w->times[l];
  return times;
}

// ---- costs ----

// Operations of a product of factors along all indices, as opt_einsum counts: the factors but one
// (at least one), and the addition if an index is summed.
static int eini_product_flops(int factors, int summed) {
  return (factors > 2 ? factors - 1 : 1) + (summed != 0);
}

// Operations of one point of a statement: those of its expression, and the fold; at least one. Of
// products of two and more factors it is what eini_product_flops says.
static double eini_point_flops(const eini_stmt *s) {
  double n = s->nfree < s->nindex;
  if (s->fold == EIN_FOLD_BLOCK) return s->block_flops;
  for (int64_t k = 0; k < s->expr.n; k++) {
    const int op = s->expr.node[k].op;
    n += op > EIN_OP_PARAM && op != EIN_OP_CAST && op != EIN_OP_ROUNDTO;
  }
  return n > 1 ? n : 1;
}

// Cycles of a core for a value of a scalar expression, made in chunks: about so many for each
// operation, more for those that are called or that are a polynomial at least.
static inline double eini_value_cycles(const ein_code *code) {
  double cycles = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int op = code->step[i].op;
    const int far = op == EIN_OP_CALL || op == EIN_OP_POW || op == EIN_OP_FLOORDIV ||
                    op == EIN_OP_MOD || (op >= EIN_OP_EXP && op <= EIN_OP_GELU &&
                                         op != EIN_OP_SQRT && op != EIN_OP_RELU);
    cycles += op == EIN_OP_OPERAND ? 1 : far ? 8 : 0.3;
  }
  return cycles;
}

// The same for a side of a contraction and its store, beyond copying what is there.
static inline double eini_side_cycles(const ein_side *s) {
  if (s->form == EIN_FORM_PLAIN) return 0;
  if (s->form == EIN_FORM_PRODUCT || s->code == NULL) return 3 * (double)(s->nop - 1);
  return eini_value_cycles(s->code);
}

static inline double eini_store_cycles(const ein_contract *c) {
  return c->store == NULL || c->scaled ? 0 : eini_value_cycles(c->store);
}

typedef struct eini_cost {
  double flops;                 // scalar operations
  double bytes;                 // what is touched, each box once
  double traffic;               // what moves: again for every slice that comes to it again
  double seconds;
} eini_cost;

// What a machine does per second, and what a task takes beyond that.
typedef struct eini_speed {
  double flops, bandwidth;      // bytes per second, read plus written
  double overhead;              // seconds of a task
  double exposed;               // see EINI_EXPOSED
} eini_speed;

// One core, for tasks that do `flops` operations per second.
static inline eini_speed eini_core_speed(const ein_rates *r, double flops) {
  eini_speed v = {flops, r->copy_bw[EIN_MEMORY], r->call > 0 ? r->call : EINI_TASK_SECONDS,
                  EINI_EXPOSED};
  return v;
}

// Operations per second in a product of so many multiply-adds: as measured of one of as many
// between matrices, else arithmetic alone.
static double eini_core_flops(const ein_rates *r, ein_dtype type, double muladds) {
  const int wide = type == EIN_F64 || type == EIN_C128;
  const double *gemm = wide ? r->gemm_f64 : r->gemm_f32;
  if (!(gemm[0] > 0)) return wide ? r->flops_f64 : r->flops_f32;
  const double n = cbrt(muladds);
  if (n <= EIN_GEMM_LEAST) return gemm[0];
  const double at = log(n / EIN_GEMM_LEAST) / log(2.0);
  if (at >= EIN_GEMMS - 1) return gemm[EIN_GEMMS - 1];
  const int i = (int)at;
  return gemm[i] + (at - i) * (gemm[i + 1] - gemm[i]);
}

// Bytes per second of a core, read plus written, where so many are in use.
static double eini_core_bandwidth(const ein_rates *r, double bytes) {
  for (int l = EIN_L2; l < EIN_MEMORY; l++)
    if (bytes <= EINI_CACHE_PART * r->cache_bytes[l] && r->copy_bw[l] > 0) return r->copy_bw[l];
  return r->copy_bw[EIN_MEMORY];
}

// How many times as long as by their constants portable kernels take on a machine of such rates, as
// much as the rate that is furthest below the providers' table: so that they win nowhere because
// providers know of a slower machine and they do not. table NULL: there are no providers, products
// were measured of them.
static double eini_rates_slower(const ein_rates *table, const ein_rates *given) {
  double most = 0;
  if (given == NULL) return 1;
  if (table == NULL) return EINI_CORE_FLOPS / eini_core_flops(given, EIN_F64, HUGE_VAL);
  const double *const was[] = {&table->flops_f64, &table->flops_f32, &table->hz};
  const double *const is[] = {&given->flops_f64, &given->flops_f32, &given->hz};
  for (int i = 0; i < 3; i++)
    if (*is[i] > 0) most = fmax(most, *was[i] / *is[i]);
  for (int l = EIN_L2; l < EIN_MEMORY_LEVELS; l++) {
    if (given->read_bw[l] > 0) most = fmax(most, table->read_bw[l] / given->read_bw[l]);
    if (given->copy_bw[l] > 0) most = fmax(most, table->copy_bw[l] / given->copy_bw[l]);
  }
  return most > 0 ? most : 1;
}

// The roofline: operations and traffic at the same time.
static inline double eini_seconds(const eini_speed *v, double flops, double traffic) {
  const double compute = flops / v->flops, move = traffic / v->bandwidth;
  return v->overhead + (compute > move ? compute + v->exposed * move : move + v->exposed * compute);
}

// The first operand that reads what operand k reads, the same tensor by the same projection (or one
// but for offsets: what such operands touch is one box, nearly), of those shortly before it (or
// statements of very many took their square); k: none does.
static int eini_operand_again(const eini_stmt *s, int k,
                              int (*same)(const eini_map *a, const eini_map *b)) {
  for (int j = k < 64 ? 0 : k - 64; j < k; j++)
    if (s->operand[j] == s->operand[k] && same(&s->proj[j], &s->proj[k])) return j;
  return k;
}

static int eini_operand_first(const eini_stmt *s, int k) {
  return eini_operand_again(s, k, eini_map_equal);
}

// Adds what a block of a statement takes. unseen: a tensor that is not stored, or -1.
static void eini_cost_add(const ein_graph *g, const eini_stmt *s, const eini_stmt_block *b,
                          const unsigned char *again, const char *local, int unseen,
                          eini_cost *c) {
  const eini_walk *w = b == NULL ? NULL : b->walk;
  if (b != NULL && b->hi == NULL && b->cut == NULL && b->len == NULL) b = NULL;  // all of it
  const double points = eini_points(s, b, 0, s->nindex);
  c->flops += points * eini_point_flops(s) * eini_walk_times(w, NULL);
  for (int k = -1; k < s->noperand; k++) {
    const int t = k < 0 ? s->out : s->operand[k];
    if (t == unseen || (k >= 0 && points <= 0)) continue;
    if (k >= 0 && (again != NULL ? again[k] : eini_operand_again(s, k, eini_map_alike) < k))
      continue;
    const double bytes = (double)ein_dtype_size(g->tensor[t].dtype) *
                         (k < 0 ? eini_points(s, b, 0, s->nfree) : eini_block_box(s, b, k));
    c->bytes += bytes;
    c->traffic += bytes * eini_walk_times(w, eini_access(s, k)) *
                  (local != NULL && local[t] ? EINI_CACHED : 1);
  }
}

// What a block of s takes, with f, which is fused behind it, or NULL. b: blocks of s and of f;
// NULL: all of both. again: per operand, see above; NULL: not known. local: per tensor, what stays
// in a cache; NULL: nothing. v NULL: no seconds.
static eini_cost eini_cost_of(const ein_graph *g, const eini_stmt *s, const eini_stmt *f,
                              const eini_stmt_block *b, const unsigned char *again,
                              const char *local, const eini_speed *v) {
  eini_cost c = {0, 0, 0, 0};
  const int unseen = f != NULL ? s->out : -1;
  eini_cost_add(g, s, b, again, local, unseen, &c);
  if (f != NULL) eini_cost_add(g, f, b == NULL ? NULL : b + 1, NULL, local, unseen, &c);
  if (v != NULL) c.seconds = eini_seconds(v, c.flops, c.traffic);
  return c;
}
