// einsum_decomp.h - v0.1.0 - decomposition of tensor programs over places - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the header plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum_program.h"
//     #include "einsum_decomp.h"
//
// It includes einsum.h, which must lie beside it. It decides how each statement of a graph is cut
// into pieces for p places (processors, devices, nodes), by a cost model; it moves no data.
//
//     ein_decompose_desc d = {.p = 8};
//     ein_decomposition *how;
//     ein_status st = ein_decompose(ctx, graph, &d, &how);
//     ein_parts parts;
//     if (st == EIN_OK) st = ein_decomposition_parts(how, 0, &parts);   // of statement 0
//
//
// CONTENTS (search for >>name)
//
// Manual: WORDS, PLACES, COST MODELS, METHODS, CONSTRAINTS
//
//   >>decomp-api      public types and functions
//   >>implementation  everything below is compiled once
//   >>cuts            which indices may be cut, and the vectors for p places
//   >>placement       pieces, tasks and boxes: what lies where and what is read
//   >>paper-cost      the cost model of the EinDecomp paper
//   >>moved-cost      the cost models bytes and seconds
//   >>elimination     least sum of tables over variables, by elimination and beam search
//   >>constraints     vectors, pins and kept indices as texts
//   >>baselines       data, model, sequence, attention and sqrt
//   >>decompose       from statements to forms
//   >>ways            the vectors of a form, and their orders
//   >>tables          what edges cost, ways that are never needed, and the linearisation
//   >>place-memory    the least cost that fits the memory of a place
//   >>results         decompositions from labels
//   >>simulate        tasks, messages, bytes and a time line, without data
//   >>decomp-public   choices made by simulation
//
//
// WORDS
//
// place       where a task runs and blocks live; numbered from 0 to p-1
// cut         number of pieces of an index; piece k of d of an extent E is [k*E/d, (k+1)*E/d),
//             rounded down: ragged pieces differ by one element
// vector      the cuts of all indices of a statement (the paper's partition vector)
// task        one piece of every index; a statement has as many as the product of its cuts
// block       what a task computes of the output: the image of its free pieces
//
//
// PLACES
//
// The place of a task is a rule, not a table: the cut indices in an order, read as the digits of a
// mixed-radix number, the first the most significant. A block's home is the place of the task whose
// reduced pieces are all 0; the partial results of the others are folded there.
// Reduced indices are cut under every fold: the partial results of mean, var, argmax, argmin and
// monoids of your own are states, of one to four scalars, which are merged, and finished at the
// home. Of the indices of one output coordinate (Y[4*i+j]) only that with the largest coefficient
// is cut.
// Inputs lie everywhere at first, unless pinned: reading them moves nothing. Of those that are not
// pinned every place has, all the time, what its tasks read. Nothing is cached between statements.
//
//
// COST MODELS
//
// paper       scalars moved, an upper bound (EinDecomp, section 7): join + agg + repartition.
//             Statements of fewer than p tasks count their own number of tasks.
// paper-code  the same with the repartition rule of the paper's public implementation,
//             (np + nc) * n / nint; equal partitions cost nothing.
// bytes       bytes moved, exactly: what tasks read that does not lie at their own place (join),
//             and partial results on their way home (agg): values in the computation type of the
//             fold, or states (value and position of an argmax, three scalars of a var).
// seconds     per statement the slowest place: operations or memory traffic, transfers, folds.
//             The answer of the search is simulated, and so are: none, sqrt, linear, the answers of
//             paper and bytes, one class of indices (those that meet along axes) cut everywhere,
//             and the other baselines where desc names their indices. The fastest is taken.
//
//
// METHODS
//
// eindecomp   the least cost over a family of vectors (for bytes and seconds: and over the orders
//             that matter). Exact where tables stay small: trees, chains of layers, graphs of small
//             width. Where they do not, or ways were dropped, info says how far from the least it
//             may be. What is proved is the sum of the model's costs, never the simulated time.
// linear      the paper's linearisation: the longest path, then the next longest, each by itself.
//
// Families: `paper`, that of the EinDecomp paper: p tasks of every statement, or the most possible;
// `divisors`: those, and the vectors of any divisor of p tasks; `method`: the one vector that a
// method below gives. paper is the default, divisors that of seconds.
//
// none        every statement is one task.
// sqrt        the two longest indices of the output get about sqrt(p) pieces each.
// data        the batch index; model (megatron): heads, else hidden width; sequence; attention:
//             heads only. Statements without such an index are not cut. An index is of a kind when
//             it has one of its names, or meets one that has at an axis of a tensor.
// given       what parts says; statements not named are not cut.
//
//
// CONSTRAINTS
//
// Names in parts, pin and keep are those of tensors and indices; what they ask for holds under
// every method. A pinned output is left in the partition of the pin, and its blocks lie at the
// places that the cut axes, read in order, give; a pinned input lies so from the start. The memory
// of the machine bounds what lives at a place while a statement runs: blocks that are read later or
// are outputs, inputs (of a pinned one its block, of others what any task of the place reads), what
// its task fetches, its partial result and its block. With desc.inputs = EIN_INPUTS_OUTSIDE those
// that are not pinned lie outside of the places' memory. Where the least cost does not fit,
// statements are searched in their order, by a beam: its answer is proved when nothing fell out of
// the beam.

#include "einsum.h"

#ifndef EINSUM_DECOMP_H
#define EINSUM_DECOMP_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>decomp-api  public types and functions
// Every fallible call returns an ein_status. With a ctx, the messages are in ein_ctx_error.
// ================================================================================================

typedef enum ein_cost {
  EIN_COST_PAPER = 0,       // scalars moved, the paper's formulas
  EIN_COST_PAPER_CODE,      // the same, repartition as in the paper's implementation
  EIN_COST_BYTES,           // bytes moved, exactly
  EIN_COST_SECONDS,         // predicted seconds
  EIN_COST_COUNT
} ein_cost;

// Where inputs lie that are not pinned. They cost no bytes either way.
typedef enum ein_inputs {
  EIN_INPUTS_HELD = 0,      // in the memory of the places that read them, the parts they read
  EIN_INPUTS_OUTSIDE        // outside: they take no memory of a place
} ein_inputs;

#define EIN_PLACES_MAX (1 << 20)

// One place and its link. 0: the default; else from 1e-30 to 1e30.
typedef struct ein_machine {
  double flops;             // scalar operations per second of a place; default 1e11
  double memory_bw;         // bytes per second of its memory; default 1e11
  double latency;           // seconds of one message; default 2e-6
  double bandwidth;         // bytes per second into a place; default 1e10
  double overhead;          // seconds per task; default 2e-6
  double memory;            // bytes that may live at a place at once, see ein_sim_info.peak_bytes;
                            //   default: no limit
} ein_machine;

// The machine whose places are threads of the ctx, as under the fabric `threads`: operations (of
// the widest type that the graph computes in) and memory as a provider of kernels says they are,
// which has measured them when it was calibrated. Blocks of other places are read like one's own,
// so that moving them costs no more. *m keeps its memory. EIN_ERR_UNSUPPORTED: no provider knows.
EIN_API ein_status ein_machine_threads(const ein_ctx *ctx, const ein_graph *graph,
                                       ein_machine *m);

// How one statement's index space is cut; borrowed from the decomposition.
typedef struct ein_parts {
  int nindex;               // indices of the statement, free ones first (its own order)
  const int64_t *cut;       // pieces of each index, >= 1 and <= max(1, extent)
  int norder;               // cut indices (pieces > 1)
  const int *order;         // them, most significant digit first: the rule of placement
  int64_t ntask;            // product of cut, <= p
  double join, agg, repart, seconds;  // cost terms under the chosen model; seconds: 0 if unknown
} ein_parts;

// All zero but p: the best decomposition by the paper's cost.
typedef struct ein_decompose_desc {
  int64_t p;                // places, 1 .. EIN_PLACES_MAX
  const char *method;       // eindecomp (default), linear, none, sqrt, data, model (megatron),
                            //   sequence, attention, given
  ein_cost cost;
  const ein_machine *machine;
  int nparts;               // vectors of statements: "T[s=2,t=4]", indices not named stay whole;
  const char *const *parts; //   T: the tensor defined. given: statements not named are not cut
  int npin;                 // tensors held in a partition: "X[s=8]"; an axis is named by an index
  const char *const *pin;   //   that stands alone there in some statement, or by its number.
                            //   "W*[f=8]": inputs and outputs of such names with these axes
  ein_inputs inputs;        // inputs that are not pinned; default: places hold what they read
  int nkeep;                // indices not to be cut: "j" in every statement, "T.j" in those of T
  const char *const *keep;
  int strict;               // 1: the paper's family for seconds too
  int fewer;                // 1: the family of divisors under every model. Few tasks move few
                            //   bytes: the least cost in bytes is then to cut nothing
  int max_vectors;          // of one statement, the cheapest are kept; default 4096 (bytes and
                            //   seconds: 2048 for 64 places, fewer for more, 16 at least); fewer
                            //   where edges' tables would have more than 2^26 entries in all
  double max_table;         // entries of a table of the search, 2^26 at most; default 2^22
  int beam;                 // states of the search where tables are split; default 256; 2^24 at
                            //   most of all statements
  // Names of indices, separated by commas, that baselines cut. Where data, model, sequence or
  // attention is asked for without them: "b,batch,n"; "s,seq,sequence"; "h,head,heads";
  // "f,hidden,ff". No other method looks at names.
  const char *batch, *sequence, *heads, *hidden;
} ein_decompose_desc;

typedef struct ein_decomposition ein_decomposition;  // immutable

typedef struct ein_decomp_info {
  int64_t p;
  ein_cost cost;
  const char *method;       // under EIN_COST_SECONDS: the one that was fastest in the simulation;
                            //   eindecomp/paper, eindecomp/bytes: searched under that model
  const char *family;       // what was searched: paper, divisors or method, see METHODS
  double total;             // under the cost model: scalars, bytes or seconds, added up
  double lower;             // no decomposition of the family costs less under the model
  int proved;               // 1: total is the least over the family (of one, for `method`)
  double gap;               // (total - lower) / total; 0 when proved
  double seconds;           // simulated, under EIN_COST_SECONDS; else 0
  ein_inputs inputs;
  int nstmt;                // statements of the graph as written
  int nform;                // different forms among them: isomorphic ones share their tables
  int64_t nvector;          // vectors (with orders) of all forms
} ein_decomp_info;

// Decomposes the statements of a finished graph, as written. *d is NULL on failure; it is the
// caller's (ein_decomposition_destroy) and outlives graph and ctx, but not the ctx's allocator.
// EIN_ERR_ARGUMENT: p out of range, an unknown method; EIN_ERR_SYNTAX, EIN_ERR_NAME,
// EIN_ERR_SHAPE: a constraint that is ill-formed, names nothing, or cannot be met;
// EIN_ERR_TOO_LARGE: nothing that was searched fits the machine's memory; the message names the
// statement where the least need is more, and says whether that is proved.
// EinDecomp (Bourgeois et al.), section 8; exact on all graphs whose tables fit max_table, by
// elimination of variables (non-serial dynamic programming); else beam search, with a lower bound.
EIN_API ein_status ein_decompose(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **d);
EIN_API void ein_decomposition_destroy(ein_decomposition *d);  // NULL is a no-op
EIN_API void ein_decomposition_info(const ein_decomposition *d, ein_decomp_info *info);
// Statement stmt of the graph, from 0. EIN_ERR_ARGUMENT when there is none.
EIN_API ein_status ein_decomposition_parts(const ein_decomposition *d, int stmt, ein_parts *parts);
// What statement stmt is; borrowed from the decomposition.
typedef struct ein_decomp_stmt {
  const char *out;          // the tensor it defines
  int64_t line;             // in the source, or 0
  int nindex, nfree;        // free indices first, then the reduced ones
  const char *const *index; // their names
  const int64_t *extent;
  int noperand;
  const char *const *operand;  // names of the tensors it reads
  const ein_zmap *proj;     // where: of each operand a row per axis, a column per index
  ein_zmap out_map;         // where it writes
  ein_rest rest;            // EIN_REST_ZERO: elements of out that out_map does not reach are 0
  const char *map;          // expression over operands $0, $1, .., indices and params, in the
                            //   notation of programs; NULL: too long, or too deep
  const char *fold;         // over the reduced indices, by name; NULL: none
  ein_dtype dtype;          // of the result, before it is stored
  ein_dtype accumulates;    // what its fold adds in; EIN_NONE: there is no fold
  double error_bound;       // of the stored result, relative to the sum of absolute values, for any
                            //   order of the fold; -1: none is known
  int from_inputs;          // 1: from the inputs on; 0: its operands taken as they are stored
} ein_decomp_stmt;
EIN_API ein_status ein_decomposition_stmt(const ein_decomposition *d, int stmt,
                                          ein_decomp_stmt *s);
// The partition of tensor number `tensor` of the graph when it is a pinned input: one index per
// axis, in order. EIN_ERR_ARGUMENT when it is none.
EIN_API ein_status ein_decomposition_pin(const ein_decomposition *d, int tensor, ein_parts *parts);

// ---- simulation: no data is touched ----
typedef struct ein_sim_stmt {  // one statement
  double tasks, messages;
  double join, agg;         // bytes fetched by tasks, and by homes for partial results
  double start, end, busy;  // seconds: first task, last result; sum over its tasks
} ein_sim_stmt;

typedef struct ein_sim_info {
  double tasks, messages, join, agg;
  double flops;             // scalar operations of expressions and folds
  ein_machine machine;      // what was assumed, defaults filled in
  double seconds;           // until the last block is complete
  double busy;              // seconds that places compute, summed
  double input_bytes;       // most of inputs at one place: pinned blocks and, unless they lie
                            //   outside, of the other inputs what its tasks read
  double peak_bytes;        // most that lives at one place: inputs, blocks until their last reader
                            //   (those of outputs always), and of one statement at a time what
} ein_sim_info;             //   its task fetched, its partial result and its block

// A message: it leaves from `sent` on and is there at `arrived`, each end at the full bandwidth.
typedef struct ein_sim_move {
  int stmt;                 // whose task reads it, or whose partial result it is
  int64_t from, to;         // places
  double bytes, sent, arrived;
} ein_sim_move;

typedef struct ein_sim_desc {
  const ein_machine *machine;
  ein_sim_stmt *stmt;       // receives one per statement; may be NULL
  double *peak;             // receives the peak bytes of each of the p places; may be NULL
  void (*task_fn)(void *user, int stmt, int64_t place, double start, double end);  // the time line
  // A task of stmt fetches bytes that statement `from` computed; from -1: of a pinned input.
  void (*fetch_fn)(void *user, int from, int stmt, int operand, int64_t place, double bytes);
  void (*move_fn)(void *user, const ein_sim_move *move);  // every message
  void *user;
} ein_sim_desc;

// Enumerates the tasks of a decomposition: bytes and messages exactly as any fabric moves them, and
// a predicted time line. A message takes latency + bytes / bandwidth; out of a place, and into a
// place, one goes after the other, in the order of statements. Partial results meet in a tree.
// Where the tasks of a statement read very many blocks of another (2^26 in all statements), its
// places are taken to send equal shares of what is fetched, tasks wait for the last of them, and
// there is no move_fn. desc may be NULL; graph is that which was decomposed.
EIN_API ein_status ein_simulate(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                const ein_sim_desc *desc, ein_sim_info *info);
EIN_API const char *ein_cost_name(ein_cost cost);         // "paper"; NULL: none
// The model of that name: EIN_COST_COUNT when unknown.
EIN_API ein_cost ein_cost_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_DECOMP_H

// ================================================================================================
// >>implementation  everything below is compiled once
// Takes the declarations above, and einsum.h's sections down to >>print; gives their definitions.
// ================================================================================================
#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_DECOMP_IMPLEMENTATION_DONE)
#define EINSUM_DECOMP_IMPLEMENTATION_DONE

// ================================================================================================
// >>cuts  which indices may be cut, and the vectors for p places
// A form is a statement up to names: statements of one form share vectors and tables.
// ================================================================================================

// The ways to cut and place a statement; n of them, nindex entries each.
typedef struct eini_ways {
  int64_t n, cap;
  int64_t *cut;
  int *order, *norder;     // order: cut indices, most significant digit first
} eini_ways;

typedef struct eini_dform {
  const eini_stmt *s;
  int64_t *limit;          // most pieces of each index; 1: it stays whole
  int64_t *need;           // pieces that are asked for; 0: open
  int pinned;              // placed as a pinned tensor: reduced digits first, then axis order
  const ein_parts *fixed;  // the only way; or NULL
  int *prefer;             // its indices, those first that most statements can be cut by alike
  const int64_t *hint;     // a vector that is not dropped; or NULL
  eini_ways ways;
  double *join, *agg, *seconds;  // of each way: what does not depend on other statements
  double *unary;           // their sum under the model
  double least;            // of unary, over dropped ways too; 0 where not all were seen
  unsigned char *active;   // operands that are fetched, [noperand]: the output is read
  unsigned char *again;    // operands that one before reads by the same projection: they are
                           //   fetched and counted once
} eini_dform;

struct ein_decomposition {
  eini_arena arena;
  ein_decomp_info info;
  ein_parts *parts;        // of statements, then of pinned inputs
  ein_decomp_stmt *stmt;
  int npinned, *pinned;    // tensors
};

typedef struct eini_decomposer {
  eini_arena arena;        // scratch of the call
  eini_diag *diag;
  const ein_graph *g;
  const ein_decompose_desc *desc;
  ein_machine machine;
  int64_t p;
  int ndivisor;
  int64_t divisor[256];    // of p
  int nnode;               // statements, then pinned inputs
  int nform;
  int64_t nvector;         // ways of all forms
  int npinned;             // the last nodes: pinned inputs, as statements that copy them
  eini_dform *node;        // what is asked of each statement; ways and tables are its form's
  int *tensor_node;        // of each pinned input; -1: not pinned
  int *form_of;            // node whose form a node has
  int cut_short;           // ways were dropped for lack of room
  double over;             // the least bytes of vectors that do not fit the memory by themselves
  int over_at;             // and their statement
  int64_t effort;          // steps left to enumerate vectors
  const ein_decomposition *hint;  // its vectors are not dropped; or NULL
} eini_decomposer;

// Which indices the executor can cut: of an output coordinate with several indices only that with
// the largest coefficient; in deterministic mode none whose pieces would be added otherwise.
static void eini_cut_limits(const ein_graph *g, const eini_stmt *s, int64_t *limit) {
  for (int c = 0; c < s->nindex; c++)
    limit[c] = eini_order_cuts(g, s, c) ? eini_max64(1, s->index[c].extent) : 1;
  for (int r = 0; r < s->out_map.rows; r++) {
    const int64_t *coef = s->out_map.coef + (int64_t)r * s->nindex;
    int64_t most = 0;
    for (int c = 0; c < s->nfree; c++)
      if (s->index[c].extent > 1) most = eini_max64(most, eini_abs64(coef[c]));
    for (int c = 0; c < s->nfree; c++)
      if (coef[c] != 0 && coef[c] != most && coef[c] != -most) limit[c] = 1;
  }
}

static int eini_divisors(int64_t n, int64_t *divisor) {
  int count = 0;
  for (int64_t d = 1; d * d <= n; d++) count += (n % d == 0) + (n % d == 0 && d * d != n);
  for (int64_t d = 1, low = 0, high = count; d * d <= n; d++) {
    if (n % d != 0) continue;
    divisor[low++] = d;
    divisor[--high] = n / d;
  }
  return count;
}

static int64_t eini_tasks(const int64_t *cut, int n) {
  int64_t tasks = 1;
  for (int c = 0; c < n; c++) tasks *= cut[c];
  return tasks;
}

// The only index of a coordinate, -1 when there is none or several; its coefficient.
static int eini_row_index(const ein_zmap *m, int r, int64_t *coef) {
  int found = -1;
  *coef = 0;
  for (int c = 0; c < m->cols; c++) {
    int64_t v = m->coef[(int64_t)r * m->cols + c];
    if (v == 0) continue;
    if (found >= 0) return -1;
    found = c;
    *coef = v;
  }
  return found;
}

// ================================================================================================
// >>placement  pieces, tasks and boxes: what lies where and what is read
// Takes a statement, its cuts and their order; gives index ranges of the task at a place, the box
// it reads of an operand, and how many elements of the box a block defines.
// ================================================================================================

// Piece k of d of an extent: [k*E/d, (k+1)*E/d), rounded down; k <= d <= EIN_PLACES_MAX.
static int64_t eini_piece_start(int64_t extent, int64_t d, int64_t k) {
  return k * (extent / d) + k * (extent % d) / d;
}

// Index ranges of the task at a place. 0: there is none; home: nor if its reduced digits are not 0.
static int eini_task_ranges(const eini_stmt *s, const int64_t *cut, const int *order, int norder,
                            int64_t place, int home, int64_t *lo, int64_t *hi) {
  for (int c = 0; c < s->nindex; c++) {
    lo[c] = 0;
    hi[c] = s->index[c].extent;
  }
  for (int i = norder - 1; i >= 0; i--) {
    int c = order[i];
    int64_t k = place % cut[c];
    place /= cut[c];
    if (home && c >= s->nfree && k != 0) return 0;
    lo[c] = eini_piece_start(s->index[c].extent, cut[c], k);
    hi[c] = eini_piece_start(s->index[c].extent, cut[c], k + 1);
  }
  return place == 0;
}

// The hull of what a map reaches from index ranges, coordinate by coordinate: [from, to).
static void eini_task_box(const eini_stmt *s, const ein_zmap *m, const int64_t *lo,
                          const int64_t *hi, int64_t *from, int64_t *to) {
  int empty = 0;
  for (int c = 0; c < s->nindex; c++) empty |= hi[c] <= lo[c];
  for (int r = 0; r < m->rows; r++) {
    const int64_t *coef = m->coef + (int64_t)r * s->nindex;
    from[r] = to[r] = m->offset[r];
    for (int c = 0; c < s->nindex && !empty; c++) {
      from[r] += coef[c] * (coef[c] >= 0 ? lo[c] : hi[c] - 1);
      to[r] += coef[c] * (coef[c] >= 0 ? hi[c] - 1 : lo[c]);
    }
    to[r] += !empty;
  }
}

static double eini_stmt_points(const eini_stmt *s, const int64_t *lo, const int64_t *hi) {
  double n = 1;
  for (int c = 0; c < s->nindex; c++) n *= hi[c] > lo[c] ? (double)(hi[c] - lo[c]) : 0;
  return n;
}

static int64_t eini_floor_div(int64_t a, int64_t b) {  // b > 0
  return a / b - (a % b != 0 && a < 0);
}

// Narrows [*lo, *hi) to the i with from <= coef*i + offset < to.
static void eini_narrow_range(int64_t coef, int64_t offset, int64_t from, int64_t to, int64_t *lo,
                        int64_t *hi) {
  int64_t a = from - offset, b = to - 1 - offset;
  if (coef < 0) {
    int64_t swap = -a;
    coef = -coef;
    a = -b;
    b = swap;
  }
  *lo = eini_max64(*lo, -eini_floor_div(-a, coef));
  *hi = eini_min64(*hi, eini_floor_div(b, coef) + 1);
}

// Counts the tuples of a coordinate's indices with from <= sum of coef * index < to: those after
// index c (-1: all) in the order of their coefficients, the largest first. In a coordinate that is
// one-to-one few values of an index are partly inside with the indices after it.
static double eini_count_row(const eini_stmt *s, const int64_t *coef, int c, const int64_t *lo,
                             const int64_t *hi, int64_t from, int64_t to) {
  int64_t before = c < 0 ? INT64_MAX : eini_abs64(coef[c]), least = 0, most = 0;
  int next = -1;
  double all = 1, count = 0;
  for (int k = 0; k < s->nfree; k++) {
    int64_t v = eini_abs64(coef[k]);
    if (v == 0 || v > before || (v == before && k <= c)) continue;
    if (next < 0 || v > eini_abs64(coef[next])) next = k;
    least += coef[k] * (coef[k] >= 0 ? lo[k] : hi[k] - 1);
    most += coef[k] * (coef[k] >= 0 ? hi[k] - 1 : lo[k]);
    all *= (double)(hi[k] - lo[k]);
  }
  if (most < from || least >= to) return 0;
  if (least >= from && most < to) return all;
  int64_t v = coef[next], some[2], full[2];
  least -= v * (v >= 0 ? lo[next] : hi[next] - 1);
  most -= v * (v >= 0 ? hi[next] - 1 : lo[next]);
  some[0] = full[0] = lo[next];
  some[1] = full[1] = hi[next];
  eini_narrow_range(v, 0, from - most, to - least, &some[0], &some[1]);
  eini_narrow_range(v, 0, from - least, to - most, &full[0], &full[1]);
  if (full[1] > full[0]) count = all / (double)(hi[next] - lo[next]) * (double)(full[1] - full[0]);
  else full[0] = full[1] = some[1];
  for (int64_t i = some[0]; i < some[1]; i++) {
    if (i == full[0]) i = full[1];
    if (i < some[1]) count += eini_count_row(s, coef, next, lo, hi, from - i * v, to - i * v);
  }
  return count;
}

// Counts index tuples from index c on whose image lies in the box, as far as the coordinates in
// `open` say, which share indices; at: the coordinates so far.
static double eini_count_from(const eini_stmt *s, int c, const int64_t *lo, const int64_t *hi,
                              const int64_t *from, const int64_t *to, const int64_t *open,
                              int64_t *at) {
  const ein_zmap *m = &s->out_map;
  int inside = 1;
  double all = 1;
  for (int k = c; k < s->nfree; k++) all *= (double)(hi[k] - lo[k]);
  for (int r = 0; r < m->rows; r++) {
    int64_t least = at[r], most = at[r];
    if (!open[r]) continue;
    for (int k = c; k < s->nfree; k++) {
      int64_t v = m->coef[(int64_t)r * s->nindex + k];
      least += v * (v >= 0 ? lo[k] : hi[k] - 1);
      most += v * (v >= 0 ? hi[k] - 1 : lo[k]);
    }
    if (most < from[r] || least >= to[r]) return 0;
    inside &= least >= from[r] && most < to[r];
  }
  if (inside) return all;
  double count = 0;
  for (int64_t i = lo[c]; i < hi[c]; i++) {
    for (int r = 0; r < m->rows; r++) at[r] += i * m->coef[(int64_t)r * s->nindex + c];
    count += eini_count_from(s, c + 1, lo, hi, from, to, open, at);
    for (int r = 0; r < m->rows; r++) at[r] -= i * m->coef[(int64_t)r * s->nindex + c];
  }
  return count;
}

// Do coordinate r's indices occur in no other one of those in `open`?
static int eini_row_alone(const eini_stmt *s, int r, const int64_t *open) {
  const int64_t *coef = s->out_map.coef;
  for (int q = 0; q < s->out_map.rows; q++) {
    if (q == r || !open[q]) continue;
    for (int c = 0; c < s->nfree; c++)
      if (coef[(int64_t)r * s->nindex + c] != 0 && coef[(int64_t)q * s->nindex + c] != 0) return 0;
  }
  return 1;
}

// The same where coordinates have several indices, the others have narrowed the ranges [lo, hi);
// it changes them. open: of coordinates, 1 where there are several. at: scratch.
static double eini_count_several(const eini_stmt *s, int64_t *lo, int64_t *hi, const int64_t *from,
                                 const int64_t *to, int64_t *open, int64_t *at) {
  const ein_zmap *m = &s->out_map;
  double count = 1;
  int left = 0;
  for (int r = 0; r < m->rows; r++) {
    const int64_t *coef = m->coef + (int64_t)r * s->nindex;
    at[r] = m->offset[r];
    if (!open[r] || !eini_row_alone(s, r, open)) {
      left |= open[r] != 0;
      continue;
    }
    count *= eini_count_row(s, coef, -1, lo, hi, from[r] - at[r], to[r] - at[r]);
    open[r] = 0;
    for (int c = 0; c < s->nfree; c++)
      if (coef[c] != 0) hi[c] = lo[c] + 1;  // counted
  }
  for (int c = 0; c < s->nfree; c++) {
    int used = 0;
    for (int r = 0; r < m->rows; r++) used |= open[r] && m->coef[(int64_t)r * s->nindex + c] != 0;
    if (used) continue;
    count *= (double)(hi[c] - lo[c]);
    hi[c] = lo[c] + 1;
  }
  return left ? count * eini_count_from(s, 0, lo, hi, from, to, open, at) : count;
}

// Elements that the free indices in [lo, hi) define inside a box. a, b: scratch, nindex + rank.
static double eini_block_in_box(const eini_stmt *s, const int64_t *lo, const int64_t *hi,
                                const int64_t *from, const int64_t *to, int64_t *a, int64_t *b) {
  const ein_zmap *m = &s->out_map;
  int64_t *open = b + s->nindex;
  double count = 1;
  int several = 0;
  for (int c = 0; c < s->nfree; c++) {
    a[c] = lo[c];
    b[c] = hi[c];
  }
  for (int r = 0; r < m->rows; r++) {
    const int64_t *coef = m->coef + (int64_t)r * s->nindex;
    int only = -1, terms = 0;
    for (int c = 0; c < s->nfree; c++) {
      if (coef[c] == 0) continue;
      only = c;
      terms++;
    }
    if (terms == 0 && (m->offset[r] < from[r] || m->offset[r] >= to[r])) return 0;
    if (terms == 1) eini_narrow_range(coef[only], m->offset[r], from[r], to[r], &a[only], &b[only]);
    open[r] = terms > 1;
    several |= terms > 1;
  }
  for (int c = 0; c < s->nfree; c++) {
    if (b[c] <= a[c]) return 0;
    count *= (double)(b[c] - a[c]);
  }
  return several ? eini_count_several(s, a, b, from, to, open, a + s->nindex) : count;
}

// ---- unions of boxes ----

#define EINI_BOXES_MAX 256     // disjoint boxes of a union; beyond, its hull stands for it

// A union of boxes as disjoint ones. Each is 2 * rank integers: its first coordinates, its ends.
typedef struct eini_boxes {
  int rank;
  int64_t n;
  int64_t *at;
} eini_boxes;

static ein_status eini_boxes_init(eini_arena *a, int rank, eini_boxes *u) {
  u->rank = rank;
  u->n = 0;
  u->at = EINI_NEW(a, int64_t, (2 * EINI_BOXES_MAX + 2 * (int64_t)rank + 2) * 2 * rank);
  return u->at == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static double eini_box_volume(int rank, const int64_t *from, const int64_t *to) {
  double n = 1;
  for (int r = 0; r < rank; r++) n *= to[r] > from[r] ? (double)(to[r] - from[r]) : 0;
  return n;
}

static double eini_boxes_volume(const eini_boxes *u) {
  double n = 0;
  for (int64_t i = 0; i < u->n; i++)
    n += eini_box_volume(u->rank, u->at + i * 2 * u->rank, u->at + (i * 2 + 1) * u->rank);
  return n;
}

// The first of n boxes becomes the hull of all.
static void eini_boxes_hull(eini_boxes *u, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const int64_t *box = u->at + i * 2 * u->rank;
    for (int r = 0; r < u->rank; r++) {
      u->at[r] = eini_min64(u->at[r], box[r]);
      u->at[u->rank + r] = eini_max64(u->at[u->rank + r], box[u->rank + r]);
    }
  }
  u->n = 1;
}

// Takes the inside of box `cut` out of box number j of `end`; its pieces outside go behind the
// others. Returns the new number of boxes; when it is the old one, box j has nothing of it left.
static int64_t eini_boxes_cut(eini_boxes *u, int64_t j, const int64_t *cut, int64_t end) {
  int rank = u->rank;
  int64_t *box = u->at + j * 2 * rank;
  size_t bytes = 2 * (size_t)rank * sizeof *box;
  for (int r = 0; r < rank; r++)
    if (box[r] >= cut[rank + r] || box[rank + r] <= cut[r]) return end;
  for (int r = 0; r < rank; r++) {
    for (int side = 0; side < 2; side++) {  // below cut, above cut
      int64_t edge = cut[side * rank + r];
      if (side ? box[rank + r] <= edge : box[r] >= edge) continue;
      int64_t *piece = u->at + end++ * 2 * rank;
      memcpy(piece, box, bytes);
      piece[side ? r : rank + r] = edge;
      box[side ? rank + r : r] = edge;
    }
  }
  if (--end != j) memcpy(box, u->at + end * 2 * rank, bytes);
  return end;
}

// Adds a box that is not empty.
static void eini_boxes_add(eini_boxes *u, const int64_t *from, const int64_t *to) {
  int64_t end = u->n + 1, step = 2 * u->rank;
  size_t bytes = (size_t)u->rank * sizeof *from;
  if (u->rank == 0) u->n = 1;
  if (u->rank == 0) return;
  memcpy(u->at + u->n * step, from, bytes);
  memcpy(u->at + u->n * step + u->rank, to, bytes);
  for (int64_t i = 0; i < u->n; i++) {
    for (int64_t j = u->n; j < end && end <= 2 * EINI_BOXES_MAX;) {
      int64_t left = eini_boxes_cut(u, j, u->at + i * step, end);
      if (left == end) j++;
      else end = left;
    }
  }
  if (end <= EINI_BOXES_MAX) u->n = end;
  else eini_boxes_hull(u, end);
}

// ================================================================================================
// >>paper-cost  the cost model of the EinDecomp paper
// Scalars moved: join, aggregation and repartition (section 7). Blocks that do not divide an extent
// count with their mean size.
// ================================================================================================

// Mean extent along coordinate r of what a task reads or writes. writes: elements; else the hull,
// where a stride's last step counts as a whole one, so that equal pieces of X and X[2*i] fit.
static double eini_block_side(const eini_stmt *s, const ein_zmap *m, int r, const int64_t *cut,
                              int writes) {
  const int64_t *coef = m->coef + (int64_t)r * s->nindex;
  double count = 1, hull = 0, last = 0;
  int terms = 0;
  for (int c = 0; c < s->nindex; c++) {
    if (coef[c] == 0) continue;
    double piece = (double)s->index[c].extent / (double)cut[c];
    double step = (double)eini_abs64(coef[c]);
    if (piece == 0) return 0;
    count *= piece;
    hull += terms++ == 0 ? step * piece : step * (piece - 1) + (step > last ? step - last : 0);
    if (step > last) last = step;
  }
  return writes ? count : terms > 0 ? hull : 1;
}

static double eini_block_count(const eini_stmt *s, const ein_zmap *m, const int64_t *cut,
                               int writes) {
  double count = 1;
  for (int r = 0; r < m->rows; r++) count *= eini_block_side(s, m, r, cut, writes);
  return count;
}

// Scalars of one element of a partial result: of its state, or one where that merges finished
// values (the state of logsumexp has two).
static int eini_partial_scalars(const ein_graph *g, const eini_stmt *s) {
  if (s->fold < EINI_ARGMAX) return 1;
  return s->fold < EINI_FOLD_USER ? eini_folds[s->fold].nstate
                                  : g->monoid[s->fold - EINI_FOLD_USER].nstate;
}

// join = N * sum of the operands' blocks; agg = N / nagg * (nagg - 1) * the output's block, whose
// partial results may have several scalars per element.
static void eini_paper_vertex(const ein_graph *g, const eini_dform *f, const int64_t *cut,
                              double *join, double *agg) {
  const eini_stmt *s = f->s;
  double tasks = (double)eini_tasks(cut, s->nindex), read = 0;
  double nagg = (double)eini_tasks(cut + s->nfree, s->nindex - s->nfree);
  for (int k = 0; k < s->noperand; k++)
    if (!f->again[k]) read += eini_block_count(s, &s->proj[k], cut, 0);
  *join = tasks * read;
  *agg = tasks / nagg * (nagg - 1) * eini_block_count(s, &s->out_map, cut, 1) *
         eini_partial_scalars(g, s);
}

// Sides of the blocks of producer x (k < 0) or of what a task of reader x reads of operand k,
// rank of them, and then their number.
static void eini_paper_sides(const eini_stmt *x, int k, const int64_t *cut, double *side) {
  const ein_zmap *m = k < 0 ? &x->out_map : &x->proj[k];
  for (int r = 0; r < m->rows; r++) side[r] = eini_block_side(x, m, r, cut, k < 0);
  side[m->rows] = 1;
  for (int c = 0; c < x->nindex; c++) {
    int used = 0;
    for (int r = 0; r < m->rows; r++) used |= m->coef[(int64_t)r * x->nindex + c] != 0;
    if (used) side[m->rows] *= (double)cut[c];
  }
}

// From blocks with sides `have` of a tensor of sides `whole` to those that readers need: np and nc
// scalars each, nint of them in common.
static double eini_paper_repart(int rank, const double *whole, const double *have,
                                const double *need, int code) {
  double np = 1, nc = 1, nint = 1, count = need[rank];
  for (int r = 0; r < rank; r++) {
    double side = need[r] < whole[r] ? need[r] : whole[r];  // it may read several pieces
    np *= have[r];
    nc *= side;
    nint *= have[r] < side ? have[r] : side;
  }
  if (nint == 0 || (np == nint && nc == nint)) return 0;
  if (code) return (np + nc) * (count * nc) / nint;
  return (nc / nint - 1) * count * (nc + np) + (np != nint ? np * count : 0);
}

// ================================================================================================
// >>moved-cost  the cost models bytes and seconds
// What tasks fetch of what does not lie at their own place, exactly; and a prediction of the time:
// the slowest place of every statement, with its transfers.
// ================================================================================================

static double eini_element_bytes(const eini_decomposer *dc, int tensor) {
  return (double)ein_dtype_size(dc->g->tensor[tensor].dtype);
}

// Bytes of one element of a partial result.
static int64_t eini_partial_bytes(const ein_graph *g, const eini_stmt *s) {
  if (s->fold < EINI_ARGMAX) return (int64_t)ein_dtype_size(ein_dtype_compute(s->type));
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  int64_t size = (int64_t)ein_dtype_size(eini_fold_value_dtype(g, s->fold, value, s->numpy));
  if (s->fold == EINI_ARGMAX || s->fold == EINI_ARGMIN)
    return size + (int64_t)ein_dtype_size(EIN_I64);
  return size * eini_partial_scalars(g, s);
}

// Elements of the longest task's index space.
static double eini_task_points(const eini_stmt *s, const int64_t *cut) {
  double points = 1;
  for (int c = 0; c < s->nindex; c++)
    points *= (double)(s->index[c].extent / cut[c] + (s->index[c].extent % cut[c] != 0));
  return points;
}

// Scalar operations of one point: those of the expression, and of the fold.
static double eini_point_flops(const eini_stmt *s) {
  double n = s->nfree < s->nindex;
  for (int k = 0; k < s->expr.n; k++) {
    int op = s->expr.node[k].op;
    n += op != EINI_OP_CONST && op != EINI_OP_OPERAND && op != EINI_OP_INDEX &&
         op != EINI_OP_PARAM && op != EINI_OP_CAST && op != EINI_OP_ROUNDTO;
  }
  return n > 1 ? n : 1;
}

static double eini_log2_up(double n) {
  double steps = 0;
  for (double x = 1; x < n; x *= 2) steps++;
  return steps;
}

// Elements of the largest task's box of operand k; k < 0: of its result.
static double eini_operand_box(const eini_stmt *s, int k, const int64_t *cut) {
  const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
  double box = 1;
  for (int r = 0; r < m->rows; r++) {
    double hull = 1, count = 1;
    for (int c = 0; c < s->nindex; c++) {
      int64_t coef = m->coef[(int64_t)r * s->nindex + c], x = s->index[c].extent;
      if (coef == 0) continue;
      int64_t most = x / cut[c] + (x % cut[c] != 0);
      count *= (double)most;
      hull += (double)eini_abs64(coef) * ((double)most - 1);
    }
    box *= count == 0 || k < 0 ? count : hull;
  }
  return box;
}

// Bytes that the largest task's operand boxes and its result take.
static double eini_task_memory(const eini_decomposer *dc, const eini_dform *f,
                               const int64_t *cut) {
  const eini_stmt *s = f->s;
  double bytes = 0;
  for (int k = -1; k < s->noperand; k++)
    if (k < 0 || !f->again[k])
      bytes += eini_operand_box(s, k, cut) *
               eini_element_bytes(dc, k < 0 ? s->out : s->operand[k]);
  return bytes;
}

// Bytes and seconds of folding partial results at their homes, those of the largest block.
static void eini_fold_cost(const eini_decomposer *dc, const eini_stmt *s, const int64_t *cut,
                           double *bytes, double *seconds) {
  double whole = 1, nagg = (double)eini_tasks(cut + s->nfree, s->nindex - s->nfree);
  double size = (double)eini_partial_bytes(dc->g, s);
  double block = eini_operand_box(s, -1, cut);
  for (int c = 0; c < s->nfree; c++) whole *= (double)s->index[c].extent;
  *bytes = (nagg - 1) * whole * size;
  *seconds = eini_log2_up(nagg) * (dc->machine.latency + block * size / dc->machine.bandwidth +
                                   block / dc->machine.flops);
}

// Seconds of a task by itself: its operations, or the bytes that it reads and writes.
static double eini_work_seconds(const ein_machine *m, const eini_stmt *s, double points,
                                double bytes) {
  double work = points * eini_point_flops(s) / m->flops, traffic = bytes / m->memory_bw;
  return m->overhead + (work > traffic ? work : traffic);
}

// Seconds of the longest task by itself.
static double eini_parts_seconds(const eini_decomposer *dc, const eini_dform *f,
                                 const int64_t *cut) {
  return eini_work_seconds(&dc->machine, f->s, eini_task_points(f->s, cut),
                           eini_task_memory(dc, f, cut));
}

// ---- what moves on an edge ----------------------------------------------------------------------

#define EINI_PLACE_CHUNK 256

// What tells the ways of a statement apart on one edge: the digits that its blocks (k < 0) or the
// boxes of its operand k depend on, in order, the others as gaps; not moved: in no order, without
// gaps. Returns the number of entries.
static int eini_way_digits(const eini_dform *f, int64_t way, int k, int moved, int64_t *digit) {
  const eini_stmt *s = f->s;
  const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
  const int64_t *cut = f->ways.cut + way * s->nindex;
  int n = 0;
  for (int i = 0; i < (moved ? f->ways.norder[way] : s->nindex); i++) {
    int c = moved ? f->ways.order[way * s->nindex + i] : i, used = 0;
    for (int r = 0; r < m->rows; r++) used |= m->coef[(int64_t)r * s->nindex + c] != 0;
    if (used) {
      digit[n++] = c;
      digit[n++] = cut[c];
    } else if (moved && n > 0 && digit[n - 2] < 0) {
      digit[n - 1] *= cut[c];
    } else if (moved && (k >= 0 || n > 0)) {  // reduced digits in front of a home's are 0
      digit[n++] = -1;
      digit[n++] = cut[c];
    }
  }
  return n;
}

// Ways of a form that are alike on an edge.
typedef struct eini_wayset {
  int n;                   // classes
  int *of;                 // class of each way
  int64_t *first;          // a way of each class
} eini_wayset;

static ein_status eini_wayset_make(eini_decomposer *dc, const eini_dform *f, int k,
                                   eini_wayset *q) {
  int64_t n = f->ways.n, room = 2 * (int64_t)f->s->nindex + 1, mask = 16;
  while (mask < 2 * n) mask *= 2;
  int *slot = EINI_NEW(&dc->arena, int, mask--), *length = EINI_NEW(&dc->arena, int, n);
  int64_t *digit = EINI_NEW(&dc->arena, int64_t, (n + 1) * room);
  q->n = 0;
  q->of = EINI_NEW(&dc->arena, int, n);
  q->first = EINI_NEW(&dc->arena, int64_t, n);
  if (slot == NULL || length == NULL || digit == NULL || q->of == NULL || q->first == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t w = 0; w < n; w++) {
    int64_t *mine = digit + q->n * room;
    int len = eini_way_digits(f, w, k, dc->desc->cost >= EIN_COST_BYTES, mine);
    uint64_t at = eini_hash(mine, (size_t)len * sizeof *mine, 0) & (uint64_t)mask;
    for (; slot[at] != 0; at = (at + 1) & (uint64_t)mask) {
      int c = slot[at] - 1;
      if (length[c] == len && memcmp(digit + c * room, mine, (size_t)len * sizeof *mine) == 0)
        break;
    }
    if (slot[at] == 0) {
      length[q->n] = len;
      q->first[q->n++] = w;
      slot[at] = q->n;
    }
    q->of[w] = slot[at] - 1;
  }
  return EIN_OK;
}

// One side of a table. Ways of equal digits for one of the producer's free indices have the same
// ranges of it at all places: they share a lane. The last index is [0, 1) where there is a block.
typedef struct eini_edgeside {
  eini_wayset set;
  int *lane;               // [class][index]
  int *at;                 // [index + 1] its first lane: lanes of an index are neighbours
  int *from;               // [lane] a class that has it
  double *lo, *hi;         // [lane][place] of a chunk
} eini_edgeside;

#define EINI_PLACE_WORDS (EINI_PLACE_CHUNK / 64)

// The places of a chunk, as bits, where something has this value.
typedef struct eini_level {
  double value;
  uint64_t at[EINI_PLACE_WORDS];
} eini_level;

typedef struct eini_levels {  // n of them from `first` on; everywhere else it is 0
  int64_t first;
  int n;
} eini_levels;

typedef struct eini_edgework {
  const eini_dform *x, *y;
  int k, several;          // several: a coordinate of the producer has not just one index
  int seconds;             // the most of a task is asked for, not the sum
  int nd;                  // free indices of the producer, + 1
  int chunk, nword;        // places at a time, and words of their bits
  eini_edgeside a, b;
  eini_level *level;
  int64_t nlevel, caplevel;
  eini_levels *meet;       // [index][producer's lane][reader's lane] overlap of their ranges
  int64_t *meet_at;        // [index] where its part of meet begins
  eini_levels *need;       // [reader's class] elements that tasks read
  double *one;             // [place] of one pair
  int64_t *lo, *hi, *from, *to, *klo, *khi, *s0, *s1, *stride;  // of one task
  double *cost;            // [class][class] elements fetched in all, or most by one task
} eini_edgework;

static int eini_way_ranges(const eini_dform *f, int64_t way, int64_t place, int home, int64_t *lo,
                           int64_t *hi) {
  const eini_ways *w = &f->ways;
  int n = f->s->nindex;
  return eini_task_ranges(f->s, w->cut + way * n, w->order + way * n, w->norder[way], place, home,
                          lo, hi);
}

// Piece of index c at a place is place / stride[c] % cut[c]; returns the number of tasks.
static int64_t eini_way_strides(const eini_dform *f, int64_t way, int64_t *stride) {
  const int64_t *cut = f->ways.cut + way * f->s->nindex;
  int64_t tasks = 1;
  for (int c = 0; c < f->s->nindex; c++) stride[c] = 1;
  for (int i = f->ways.norder[way] - 1; i >= 0; i--) {
    int c = f->ways.order[way * f->s->nindex + i];
    stride[c] = tasks;
    tasks *= cut[c];
  }
  return tasks;
}

// Does the producer's index c lie, for tasks of this side, where their index i says?
static int eini_lane_uses(const eini_edgework *w, int reader, int c, int i) {
  const eini_stmt *x = w->x->s, *y = w->y->s;
  if (c == w->nd - 1) return !reader && i >= x->nfree;
  for (int r = 0; r < x->out_map.rows && reader; r++) {
    if (x->out_map.coef[(int64_t)r * x->nindex + c] == 0) continue;
    if (y->proj[w->k].coef[(int64_t)r * y->nindex + i] != 0) return 1;
  }
  return !reader && i == c;
}

// What tells the lanes of index c apart. Returns the number of entries.
static int eini_lane_key(eini_edgework *w, int reader, int c, int64_t way, int64_t *key) {
  const eini_dform *f = reader ? w->y : w->x;
  const int64_t *cut = f->ways.cut + way * f->s->nindex;
  int n = 0;
  int64_t tasks = eini_way_strides(f, way, w->stride);
  if (c == w->nd - 1) key[n++] = tasks;
  for (int i = 0; i < f->s->nindex; i++) {
    if (cut[i] == 1 || !eini_lane_uses(w, reader, c, i)) continue;
    key[n++] = i;
    key[n++] = cut[i];
    key[n++] = w->stride[i];
  }
  return n;
}

static ein_status eini_edge_lanes(eini_decomposer *dc, eini_edgework *w, int reader) {
  eini_edgeside *t = reader ? &w->b : &w->a;
  int64_t room = 3 * (int64_t)(reader ? w->y : w->x)->s->nindex + 1, most = t->set.n, mask = 16;
  while (mask < 2 * most) mask *= 2;
  int *slot = EINI_NEW(&dc->arena, int, mask), *length = EINI_NEW(&dc->arena, int, most), n = 0;
  int64_t *key = EINI_NEW(&dc->arena, int64_t, (most + 1) * room);
  t->lane = EINI_NEW(&dc->arena, int, most * w->nd);
  t->at = EINI_NEW(&dc->arena, int, w->nd + 1);
  t->from = EINI_NEW(&dc->arena, int, most * w->nd);
  if (slot == NULL || length == NULL || key == NULL || t->lane == NULL || t->at == NULL ||
      t->from == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < w->nd; c++) {
    t->at[c] = n;
    memset(slot, 0, (size_t)mask * sizeof *slot);
    for (int i = 0; i < t->set.n; i++) {
      int64_t *mine = key + (n - t->at[c]) * room;
      int len = eini_lane_key(w, reader, c, t->set.first[i], mine);
      size_t bytes = (size_t)len * sizeof *mine;
      uint64_t at = eini_hash(mine, bytes, 0) & (uint64_t)(mask - 1);
      for (; slot[at] != 0; at = (at + 1) & (uint64_t)(mask - 1)) {
        int l = slot[at] - 1;
        if (length[l] == len && memcmp(key + l * room, mine, bytes) == 0) break;
      }
      if (slot[at] == 0) {
        length[n - t->at[c]] = len;
        t->from[n++] = i;
        slot[at] = n - t->at[c];
      }
      t->lane[i * w->nd + c] = t->at[c] + slot[at] - 1;
    }
  }
  t->at[w->nd] = n;
  t->lo = EINI_NEW(&dc->arena, double, (int64_t)n * w->chunk);
  t->hi = EINI_NEW(&dc->arena, double, (int64_t)n * w->chunk);
  return t->lo == NULL || t->hi == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_edgework_make(eini_decomposer *dc, eini_edgework *w) {
  const eini_stmt *s = w->x->s;
  const ein_zmap *m = &s->out_map;
  w->nd = s->nfree + 1;
  for (int r = 0; r < m->rows; r++) {
    int terms = 0;
    for (int c = 0; c < s->nfree; c++) terms += m->coef[(int64_t)r * m->cols + c] != 0;
    w->several |= terms != 1;
  }
  EINI_TRY(eini_wayset_make(dc, w->x, -1, &w->a.set));
  EINI_TRY(eini_wayset_make(dc, w->y, w->k, &w->b.set));
  int64_t room = eini_max64(s->nindex, w->y->s->nindex) + m->rows + 1, meet = 0;
  w->seconds = dc->desc->cost == EIN_COST_SECONDS;
  w->chunk = (int)eini_min64(dc->p, EINI_PLACE_CHUNK);
  w->nword = (w->chunk + 63) / 64;
  w->lo = EINI_NEW(&dc->arena, int64_t, 9 * room);
  w->one = EINI_NEW(&dc->arena, double, w->chunk);
  w->cost = EINI_NEW(&dc->arena, double, (int64_t)w->a.set.n * w->b.set.n);
  w->meet_at = EINI_NEW(&dc->arena, int64_t, w->nd);
  w->need = EINI_NEW(&dc->arena, eini_levels, w->b.set.n);
  if (w->lo == NULL || w->one == NULL || w->cost == NULL || w->meet_at == NULL || w->need == NULL)
    return EIN_ERR_NO_MEMORY;
  w->hi = w->lo + room;
  w->from = w->hi + room;
  w->to = w->from + room;
  w->klo = w->to + room;
  w->khi = w->klo + room;
  w->s0 = w->khi + room;
  w->s1 = w->s0 + room;
  w->stride = w->s1 + room;
  if (dc->desc->cost < EIN_COST_BYTES || w->several) return EIN_OK;
  EINI_TRY(eini_edge_lanes(dc, w, 0));
  EINI_TRY(eini_edge_lanes(dc, w, 1));
  for (int c = 0; c < w->nd; c++) {
    w->meet_at[c] = meet;
    meet += (int64_t)(w->a.at[c + 1] - w->a.at[c]) * (w->b.at[c + 1] - w->b.at[c]);
  }
  w->meet = EINI_NEW(&dc->arena, eini_levels, meet);
  return w->meet == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Narrows the ranges of the indices that meet in output coordinate r: each by what it is at least
// and at most with all of the others.
static void eini_narrow_row(const eini_stmt *s, int r, int64_t from, int64_t to, int64_t *lo,
                            int64_t *hi) {
  const int64_t *coef = s->out_map.coef + (int64_t)r * s->nindex;
  int64_t least = 0, most = 0;
  for (int c = 0; c < s->nfree; c++) {
    if (hi[c] <= lo[c]) return;
    least += coef[c] * (coef[c] >= 0 ? lo[c] : hi[c] - 1);
    most += coef[c] * (coef[c] >= 0 ? hi[c] - 1 : lo[c]);
  }
  for (int c = 0; c < s->nfree; c++) {
    int64_t low = coef[c] * (coef[c] >= 0 ? lo[c] : hi[c] - 1);
    int64_t high = coef[c] * (coef[c] >= 0 ? hi[c] - 1 : lo[c]);
    if (coef[c] != 0)
      eini_narrow_range(coef[c], s->out_map.offset[r], from - (most - high), to - (least - low),
                        &lo[c], &hi[c]);
    if (hi[c] <= lo[c]) return;
  }
}

// The index range of the producer's piece that the box [from, to) meets.
static int eini_box_ranges(const eini_stmt *s, const int64_t *from, const int64_t *to,
                           int64_t *lo, int64_t *hi) {
  const ein_zmap *m = &s->out_map;
  int meets = 1;
  for (int c = 0; c < s->nfree; c++) {
    lo[c] = 0;
    hi[c] = s->index[c].extent;
  }
  for (int r = 0; r < m->rows; r++) {
    int64_t coef;
    int c = eini_row_index(m, r, &coef);
    if (c >= 0) eini_narrow_range(coef, m->offset[r], from[r], to[r], &lo[c], &hi[c]);
    else if (coef == 0) meets &= m->offset[r] >= from[r] && m->offset[r] < to[r];
    else eini_narrow_row(s, r, from[r], to[r], lo, hi);
  }
  for (int c = 0; c < s->nfree; c++) meets &= hi[c] > lo[c];
  return meets;
}

// The range of index c at a place, for a way of one side.
static void eini_lane_range(eini_edgework *w, int reader, int c, int64_t way, int64_t place,
                            double *lo, double *hi) {
  const eini_dform *f = reader ? w->y : w->x;
  const eini_stmt *s = f->s;
  const int64_t *cut = f->ways.cut + way * s->nindex;
  int there = place < eini_way_strides(f, way, w->stride);
  for (int i = 0; i < s->nindex; i++) {
    int64_t k = place / w->stride[i] % cut[i], extent = s->index[i].extent;
    there &= reader || i < s->nfree || k == 0;
    w->klo[i] = eini_piece_start(extent, cut[i], k);
    w->khi[i] = eini_piece_start(extent, cut[i], k + 1);
  }
  if (c == w->nd - 1) {
    *lo = 0;
    *hi = there;
    return;
  }
  if (reader) {
    eini_task_box(s, &s->proj[w->k], w->klo, w->khi, w->from, w->to);
    eini_box_ranges(w->x->s, w->from, w->to, w->lo, w->hi);
  }
  *lo = (double)(reader ? w->lo : w->klo)[c];
  *hi = (double)(reader ? w->hi : w->khi)[c];
}

// Ranges of all lanes of one side at a chunk of places. They repeat with the most significant of
// the digits that count, and stay while the least significant one does.
static void eini_lanes_fill(eini_edgework *w, int reader, int64_t at) {
  const eini_edgeside *t = reader ? &w->b : &w->a;
  const eini_dform *f = reader ? w->y : w->x;
  for (int c = 0, l = 0; c < w->nd; c++) {
    for (; l < t->at[c + 1]; l++) {
      int64_t way = t->set.first[t->from[l]], step = INT64_MAX, period = 1;
      const int64_t *cut = f->ways.cut + way * f->s->nindex;
      double *lo = t->lo + (int64_t)l * w->chunk, *hi = t->hi + (int64_t)l * w->chunk;
      eini_way_strides(f, way, w->stride);
      for (int i = 0; i < f->s->nindex; i++) {
        if (cut[i] == 1 || !eini_lane_uses(w, reader, c, i)) continue;
        step = eini_min64(step, w->stride[i]);
        period = eini_max64(period, w->stride[i] * cut[i]);
      }
      if (c == w->nd - 1) step = 1, period = INT64_MAX;
      for (int64_t q = 0; q < w->chunk; q++) {
        int64_t same = q >= period ? q - period : q > 0 && (at + q) % step != 0 ? q - 1 : -1;
        if (same < 0) eini_lane_range(w, reader, c, way, at + q, &lo[q], &hi[q]);
        else lo[q] = lo[same], hi[q] = hi[same];
      }
    }
  }
}

// Values over a chunk of places as levels.
static ein_status eini_levels_make(eini_decomposer *dc, eini_edgework *w, const double *value,
                                   eini_levels *out) {
  out->first = w->nlevel;
  out->n = 0;
  for (int q = 0; q < w->chunk; q++) {
    int k = 0;
    if (value[q] <= 0) continue;
    for (; k < out->n; k++)
      if (w->level[out->first + k].value == value[q]) break;
    if (k == out->n) {
      eini_level *l = (eini_level *)eini_grow(&dc->arena, w->level, w->nlevel, &w->caplevel,
                                              sizeof *l);
      if (l == NULL) return EIN_ERR_NO_MEMORY;
      w->level = l;
      l += w->nlevel++;
      memset(l, 0, sizeof *l);
      l->value = value[q];
      out->n++;
    }
    w->level[out->first + k].at[q / 64] |= (uint64_t)1 << (q % 64);
  }
  return EIN_OK;
}

// What tasks of a class need at a chunk of places.
static void eini_edge_need(eini_edgework *w, int b, int64_t at) {
  for (int q = 0; q < w->chunk; q++) w->one[q] = 1;
  for (int c = 0; c < w->nd && !w->several; c++) {
    int64_t l = (int64_t)w->b.lane[b * w->nd + c] * w->chunk;
    for (int q = 0; q < w->chunk; q++)
      w->one[q] *= w->b.hi[l + q] > w->b.lo[l + q] ? w->b.hi[l + q] - w->b.lo[l + q] : 0;
  }
  for (int q = 0; q < w->chunk && w->several; q++) {
    const eini_stmt *s = w->x->s, *t = w->y->s;
    w->one[q] = 0;
    if (!eini_way_ranges(w->y, w->b.set.first[b], at + q, 0, w->klo, w->khi)) continue;
    eini_task_box(t, &t->proj[w->k], w->klo, w->khi, w->from, w->to);
    if (!eini_box_ranges(s, w->from, w->to, w->lo, w->hi)) continue;
    w->one[q] = eini_block_in_box(s, w->lo, w->hi, w->from, w->to, w->s0, w->s1);
  }
}

// Levels of what lanes have in common, and of what tasks need.
static ein_status eini_edge_levels(eini_decomposer *dc, eini_edgework *w, int64_t at) {
  w->nlevel = 0;
  for (int c = 0; c < w->nd && !w->several; c++) {
    eini_levels *meet = w->meet + w->meet_at[c];
    for (int a = w->a.at[c]; a < w->a.at[c + 1]; a++) {
      for (int b = w->b.at[c]; b < w->b.at[c + 1]; b++) {
        const double *alo = w->a.lo + (int64_t)a * w->chunk, *ahi = w->a.hi + (int64_t)a * w->chunk;
        const double *blo = w->b.lo + (int64_t)b * w->chunk, *bhi = w->b.hi + (int64_t)b * w->chunk;
        for (int q = 0; q < w->chunk; q++)
          w->one[q] = (ahi[q] < bhi[q] ? ahi[q] : bhi[q]) - (alo[q] > blo[q] ? alo[q] : blo[q]);
        EINI_TRY(eini_levels_make(dc, w, w->one, meet++));
      }
    }
  }
  for (int b = 0; b < w->b.set.n; b++) {
    eini_edge_need(w, b, at);
    EINI_TRY(eini_levels_make(dc, w, w->one, &w->need[b]));
  }
  return EIN_OK;
}

static int eini_count_bits(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  return (int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

// Of a pair of classes: where tasks find something at their own places, and what they fetch.
typedef struct eini_edgepair {
  const eini_levels **meet, *need;  // meet: of each index
  uint64_t found[EINI_PLACE_WORDS];
  double sum, most;        // elements found; most that a task fetches which finds some
} eini_edgepair;

// `value` elements lie in both ranges of the indices before c at the places `at`, which it changes.
static void eini_edge_meet(const eini_edgework *w, eini_edgepair *p, int c, double value,
                           uint64_t *at) {
  int nword = w->nword;
  for (; c < w->nd && p->meet[c]->n == 1; c++) {  // most have one level: no list of places splits
    const eini_level *l = &w->level[p->meet[c]->first];
    uint64_t any = 0;
    for (int i = 0; i < nword; i++) any |= at[i] &= l->at[i];
    if (any == 0) return;
    value *= l->value;
  }
  if (c == w->nd && !w->seconds) {
    for (int i = 0; i < nword; i++) p->sum += value * eini_count_bits(at[i]);
    return;
  }
  const eini_levels *set = c == w->nd ? p->need : p->meet[c];
  for (int k = 0; k < set->n; k++) {
    const eini_level *l = &w->level[set->first + k];
    uint64_t both[EINI_PLACE_WORDS], any = 0;
    for (int i = 0; i < nword; i++) any |= both[i] = at[i] & l->at[i];
    if (any == 0) continue;
    if (c < w->nd) {
      eini_edge_meet(w, p, c + 1, value * l->value, both);
      continue;
    }
    for (int i = 0; i < nword; i++) p->found[i] |= both[i];
    if (l->value - value > p->most) p->most = l->value - value;
  }
}

// Adds to the cost of a pair of classes what a chunk of places fetches.
static void eini_edge_pair(const eini_edgework *w, int a, int b, eini_edgepair *p, double *cost) {
  uint64_t all[EINI_PLACE_WORDS];
  for (int c = 0; c < w->nd; c++) {
    int la = w->a.lane[a * w->nd + c] - w->a.at[c], lb = w->b.lane[b * w->nd + c] - w->b.at[c];
    p->meet[c] = w->meet + w->meet_at[c] + (int64_t)la * (w->b.at[c + 1] - w->b.at[c]) + lb;
  }
  p->need = &w->need[b];
  p->sum = p->most = 0;
  for (int i = 0; i < w->nword; i++) all[i] = ~(uint64_t)0, p->found[i] = 0;
  eini_edge_meet(w, p, 0, 1, all);
  for (int k = 0; k < p->need->n; k++) {
    const eini_level *l = &w->level[p->need->first + k];
    uint64_t rest = 0;
    for (int i = 0; i < w->nword; i++) {
      rest |= l->at[i] & ~p->found[i];
      if (!w->seconds) p->sum -= l->value * eini_count_bits(l->at[i]);
    }
    if (rest != 0 && l->value > p->most) p->most = l->value;
  }
  if (!w->seconds) *cost -= p->sum;
  else if (p->most > *cost) *cost = p->most;
}

// The same where a coordinate of the producer has several indices, or none.
static void eini_edge_several(eini_edgework *w, int a, int b, int64_t at, double *cost) {
  const eini_stmt *s = w->x->s, *t = w->y->s;
  for (int k = 0; k < w->need[b].n; k++) {
    const eini_level *l = &w->level[w->need[b].first + k];
    for (int q = 0; q < w->chunk; q++) {
      double found = 0;
      if ((l->at[q / 64] >> (q % 64) & 1) == 0) continue;
      eini_way_ranges(w->y, w->b.set.first[b], at + q, 0, w->klo, w->khi);
      eini_task_box(t, &t->proj[w->k], w->klo, w->khi, w->from, w->to);
      if (eini_way_ranges(w->x, w->a.set.first[a], at + q, 1, w->klo, w->khi))
        found = eini_block_in_box(s, w->klo, w->khi, w->from, w->to, w->s0, w->s1);
      if (!w->seconds) *cost += l->value - found;
      else if (l->value - found > *cost) *cost = l->value - found;
    }
  }
}

// Elements that move, for all pairs of classes.
static ein_status eini_edge_count(eini_decomposer *dc, eini_edgework *w) {
  eini_edgepair pair;
  pair.meet = EINI_NEW(&dc->arena, const eini_levels *, w->nd);
  if (pair.meet == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t at = 0; at < dc->p; at += w->chunk) {
    for (int side = 0; side < 2 && !w->several; side++) eini_lanes_fill(w, side, at);
    EINI_TRY(eini_edge_levels(dc, w, at));
    for (int a = 0; a < w->a.set.n; a++) {
      for (int b = 0; b < w->b.set.n; b++) {
        double *cost = &w->cost[(int64_t)a * w->b.set.n + b];
        if (w->several) eini_edge_several(w, a, b, at, cost);
        else eini_edge_pair(w, a, b, &pair, cost);
      }
    }
  }
  return EIN_OK;
}

// ================================================================================================
// >>elimination  least sum of tables over variables, by elimination and beam search
// Bucket elimination (non-serial dynamic programming) on shared tables: equal eliminations are done
// once. A bucket too large is split (mini-buckets): its messages then bound from below, and guide.
// ================================================================================================

typedef struct eini_sumtable {  // values over nvar variables with size[i] labels each, row-major
  int nvar;
  int *size;
  const double *v;
} eini_sumtable;

typedef struct eini_sumfactor {
  int table, gone;
  int *var;
} eini_sumfactor;

typedef struct eini_summemo {  // key: what was eliminated; the table it gave
  int *key;
  int n, table;
  uint64_t hash;
} eini_summemo;

typedef struct eini_sumbucket {  // factors of an eliminated variable, messages it sent
  int var, nin, nout;
  int *in, *out;
} eini_sumbucket;

typedef struct eini_sums {
  eini_arena *a;
  int nvar, *size;
  eini_sumtable *table;
  int64_t ntable, captable;
  eini_sumfactor *factor;
  int64_t nfactor, capfactor;
  int **of;                 // factors of each variable
  int64_t *nof, *capof;
  eini_summemo *memo;
  int64_t nmemo, capmemo;
  int *slot;                // hash table over memo; -1: free
  int64_t nslot;
  double max_table;
  int split;                // buckets that were split
  eini_sumbucket *bucket;
  int nbucket;
  int *sep, *more;          // scratch of an elimination
  int norig;                // factors before elimination
} eini_sums;

static ein_status eini_sums_init(eini_sums *net, eini_arena *a, int nvar, double max_table) {
  memset(net, 0, sizeof *net);
  net->a = a;
  net->nvar = nvar;
  net->max_table = max_table;
  net->size = EINI_NEW(a, int, nvar);
  net->of = EINI_NEW(a, int *, nvar);
  net->nof = EINI_NEW(a, int64_t, nvar);
  net->capof = EINI_NEW(a, int64_t, nvar);
  net->bucket = EINI_NEW(a, eini_sumbucket, nvar);
  net->sep = EINI_NEW(a, int, nvar);
  net->more = EINI_NEW(a, int, nvar);
  if (net->size == NULL || net->of == NULL || net->nof == NULL || net->capof == NULL ||
      net->bucket == NULL || net->sep == NULL || net->more == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

static ein_status eini_sums_table(eini_sums *net, int nvar, const int *size, const double *v,
                                 int *id) {
  eini_sumtable *t = (eini_sumtable *)eini_grow(net->a, net->table, net->ntable, &net->captable,
                                          sizeof *t);
  if (t == NULL) return EIN_ERR_NO_MEMORY;
  net->table = t;
  t = &net->table[net->ntable];
  t->nvar = nvar;
  t->v = v;
  t->size = EINI_NEW(net->a, int, nvar);
  if (t->size == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nvar; i++) t->size[i] = size[i];
  *id = (int)net->ntable++;
  return EIN_OK;
}

static ein_status eini_sums_factor(eini_sums *net, int table, const int *var, int *id) {
  int n = net->table[table].nvar;
  eini_sumfactor *f = (eini_sumfactor *)eini_grow(net->a, net->factor, net->nfactor,
                                                  &net->capfactor, sizeof *f);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  net->factor = f;
  f = &net->factor[net->nfactor];
  f->table = table;
  f->gone = 0;
  f->var = EINI_NEW(net->a, int, n);
  if (f->var == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    int x = var[i];
    int *of = (int *)eini_grow(net->a, net->of[x], net->nof[x], &net->capof[x], sizeof *of);
    if (of == NULL) return EIN_ERR_NO_MEMORY;
    f->var[i] = x;
    net->of[x] = of;
    of[net->nof[x]++] = (int)net->nfactor;
  }
  *id = (int)net->nfactor++;
  return EIN_OK;
}

// The value of a factor for labels of all its variables.
static double eini_factor_at(const eini_sums *net, int factor, const int *label) {
  const eini_sumfactor *f = &net->factor[factor];
  const eini_sumtable *t = &net->table[f->table];
  int64_t at = 0;
  for (int i = 0; i < t->nvar; i++) at = at * t->size[i] + label[f->var[i]];
  return t->v[at];
}

static double eini_sums_value(const eini_sums *net, const int *label) {
  double sum = 0;
  for (int i = 0; i < net->norig; i++) sum += eini_factor_at(net, i, label);
  return sum;
}

// ---- eliminating a variable ---------------------------------------------------------------------

// What a message is made of: factors over x and the variables sep (ascending), strides in each.
typedef struct eini_sumjoin {
  int nsep, *sep, nfac;
  int kx, *ksep;
  const double **v;
  int64_t *xstride, *stride;  // stride: nfac x nsep
} eini_sumjoin;

static int eini_find_int(const int *list, int n, int x) {
  int i = 0;
  while (i < n && list[i] != x) i++;
  return i < n ? i : -1;
}

// Adds a factor's variables other than x, and those that have just one label, to the sorted list
// sep; *n grows.
static void eini_sep_add(const eini_sums *net, const eini_sumfactor *f, int x, int *sep, int *n) {
  for (int i = 0; i < net->table[f->table].nvar; i++) {
    int v = f->var[i], at = *n;
    if (v == x || net->size[v] == 1 || eini_find_int(sep, *n, v) >= 0) continue;
    for (; at > 0 && sep[at - 1] > v; at--) sep[at] = sep[at - 1];
    sep[at] = v;
    ++*n;
  }
}

static ein_status eini_sumjoin_make(eini_sums *net, int x, int nfac, const int *fac, const int *sep,
                                 int nsep, eini_sumjoin *j) {
  memset(j, 0, sizeof *j);
  j->nsep = nsep;
  j->nfac = nfac;
  j->kx = net->size[x];
  j->ksep = EINI_NEW(net->a, int, nsep);
  j->v = EINI_NEW(net->a, const double *, nfac + 1);  // and a matrix of eini_sumjoin_last
  j->xstride = EINI_NEW(net->a, int64_t, nfac + 1);
  j->stride = EINI_NEW(net->a, int64_t, ((int64_t)nfac + 1) * nsep);
  if (j->ksep == NULL || j->v == NULL || j->xstride == NULL || j->stride == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nsep; i++) j->ksep[i] = net->size[sep[i]];
  for (int k = 0; k < nfac; k++) {
    const eini_sumfactor *f = &net->factor[fac[k]];
    const eini_sumtable *t = &net->table[f->table];
    int64_t step = 1;
    j->v[k] = t->v;
    for (int i = t->nvar - 1; i >= 0; step *= t->size[i--]) {
      int at = f->var[i] == x ? -1 : eini_find_int(sep, nsep, f->var[i]);
      if (f->var[i] == x) j->xstride[k] += step;
      else if (at >= 0) j->stride[(int64_t)k * nsep + at] += step;
    }
  }
  return EIN_OK;
}

// Sums factors over {x, last} and over {x} into one matrix of kx rows, so that the inner loop of
// the minimum runs over one contiguous row; those leave the join. Others with last are copied so.
static ein_status eini_sumjoin_last(eini_sums *net, eini_sumjoin *j) {
  int last = j->nsep - 1, kept = 0;
  int64_t kl = j->ksep[last], cells = kl * j->kx;
  double *m = EINI_NEW(net->a, double, cells);
  if (m == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < j->nfac; k++) {
    const int64_t *stride = j->stride + (int64_t)k * j->nsep;
    int only = 1;
    for (int i = 0; i < last; i++) only &= stride[i] == 0;
    if (!only) {
      j->v[kept] = j->v[k];
      j->xstride[kept] = j->xstride[k];
      memmove(j->stride + (int64_t)kept * j->nsep, stride, (size_t)j->nsep * sizeof *stride);
      kept++;
      continue;
    }
    for (int64_t x = 0; x < j->kx; x++)
      for (int64_t l = 0; l < kl; l++)
        m[x * kl + l] += j->v[k][x * j->xstride[k] + l * stride[last]];
  }
  // The matrix takes the place of at least x's own table.
  j->v[kept] = m;
  j->xstride[kept] = kl;
  memset(j->stride + (int64_t)kept * j->nsep, 0, (size_t)j->nsep * sizeof *j->stride);
  j->stride[(int64_t)kept * j->nsep + last] = 1;
  j->nfac = kept + 1;
  return EIN_OK;
}

// row[l] = min(row[l], base + sum of factors that depend on the last separator).
static void eini_min_row(const eini_sumjoin *j, const int64_t *at, double base, double *row) {
  int last = j->nsep - 1, kl = j->ksep[last], k = 0;
  for (; k < j->nfac - 1; k++)
    if (j->stride[(int64_t)k * j->nsep + last] != 0) break;
  const double *EINI_RESTRICT m = j->v[j->nfac - 1] + at[j->nfac - 1];
  if (k == j->nfac - 1) {
    double *EINI_RESTRICT out = row;
    for (int l = 0; l < kl; l++) {
      double x = base + m[l];
      out[l] = x < out[l] ? x : out[l];
    }
    return;
  }
  for (int l = 0; l < kl; l++) {
    double x = base + m[l];
    for (int i = k; i < j->nfac - 1; i++) {
      int64_t s = j->stride[(int64_t)i * j->nsep + last];
      if (s != 0) x += j->v[i][at[i] + l * s];
    }
    row[l] = x < row[l] ? x : row[l];
  }
}

// out[sep] = min over x of the sum of the factors.
static ein_status eini_sumjoin_min(eini_sums *net, eini_sumjoin *j, double *out) {
  int last = j->nsep - 1;
  int64_t *at = EINI_NEW(net->a, int64_t, j->nfac + 1), outer = 1;
  int *i = EINI_NEW(net->a, int, j->nsep + 1);
  if (at == NULL || i == NULL) return EIN_ERR_NO_MEMORY;
  if (j->nsep == 0) {
    *out = INFINITY;
    for (int64_t x = 0; x < j->kx; x++) {
      double sum = 0;
      for (int k = 0; k < j->nfac; k++) sum += j->v[k][x * j->xstride[k]];
      if (sum < *out) *out = sum;
    }
    return EIN_OK;
  }
  EINI_TRY(eini_sumjoin_last(net, j));
  for (int k = 0; k < last; k++) outer *= j->ksep[k];
  for (int64_t o = 0; o < outer; o++, out += j->ksep[last]) {
    for (int l = 0; l < j->ksep[last]; l++) out[l] = INFINITY;
    for (int64_t x = 0; x < j->kx; x++) {
      double base = 0;
      for (int k = 0; k < j->nfac; k++) {
        const int64_t *stride = j->stride + (int64_t)k * j->nsep;
        at[k] = x * j->xstride[k];
        for (int q = 0; q < last; q++) at[k] += i[q] * stride[q];
        if (stride[last] == 0) base += j->v[k][at[k]];
      }
      eini_min_row(j, at, base, out);
    }
    for (int q = last - 1; q >= 0 && ++i[q] == j->ksep[q]; q--) i[q] = 0;
  }
  return EIN_OK;
}

// The message that eliminating x from the given factors leaves, as a factor over sep. What was
// computed for equal tables in equal places before is used again.
static ein_status eini_message(eini_sums *net, int x, int nfac, const int *fac, const int *sep,
                               int nsep, int *id) {
  int n = 0, cells = 3 + nsep, table;
  for (int k = 0; k < nfac; k++) cells += 1 + net->table[net->factor[fac[k]].table].nvar;
  int *key = EINI_NEW(net->a, int, cells);
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  key[n++] = net->size[x];
  key[n++] = nsep;
  for (int i = 0; i < nsep; i++) key[n++] = net->size[sep[i]];
  for (int k = 0; k < nfac; k++) {
    const eini_sumfactor *f = &net->factor[fac[k]];
    key[n++] = f->table;
    for (int i = 0; i < net->table[f->table].nvar; i++)
      key[n++] = f->var[i] == x ? -1 : eini_find_int(sep, nsep, f->var[i]);
  }
  uint64_t hash = eini_hash(key, (size_t)n * sizeof *key, 0);
  int64_t mask = net->nslot - 1, at = (int64_t)(hash & (uint64_t)mask);
  for (; net->slot[at] >= 0; at = (at + 1) & mask) {
    const eini_summemo *m = &net->memo[net->slot[at]];
    if (m->hash == hash && m->n == n && memcmp(m->key, key, (size_t)n * sizeof *key) == 0)
      return eini_sums_factor(net, m->table, sep, id);
  }
  eini_sumjoin j;
  int64_t count = 1;
  EINI_TRY(eini_sumjoin_make(net, x, nfac, fac, sep, nsep, &j));
  for (int i = 0; i < nsep; i++) count *= j.ksep[i];
  double *v = EINI_NEW(net->a, double, count);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_sumjoin_min(net, &j, v));
  EINI_TRY(eini_sums_table(net, nsep, j.ksep, v, &table));
  if (2 * net->nmemo >= net->nslot) return eini_sums_factor(net, table, sep, id);
  eini_summemo *m = (eini_summemo *)eini_grow(net->a, net->memo, net->nmemo, &net->capmemo,
                                              sizeof *m);
  if (m == NULL) return EIN_ERR_NO_MEMORY;
  net->memo = m;
  m = &net->memo[net->nmemo];
  m->key = key;
  m->n = n;
  m->table = table;
  m->hash = hash;
  net->slot[at] = (int)net->nmemo++;
  return eini_sums_factor(net, table, sep, id);
}

// Eliminates x: its factors in few groups, as tables of max_table entries allow; each sends one
// message.
static ein_status eini_eliminate(eini_sums *net, int x) {
  eini_sumbucket *b = &net->bucket[net->nbucket++];
  int64_t n = net->nof[x];
  b->var = x;
  b->in = EINI_NEW(net->a, int, n);
  b->out = EINI_NEW(net->a, int, n);
  int *rest = EINI_NEW(net->a, int, n), *group = EINI_NEW(net->a, int, n), nrest = 0;
  int *sep = net->sep, *more = net->more;
  if (b->in == NULL || b->out == NULL || rest == NULL || group == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < n; k++) {
    int id = net->of[x][k];
    if (net->factor[id].gone) continue;
    net->factor[id].gone = 1;
    b->in[b->nin++] = rest[nrest++] = id;
  }
  for (int groups = 0; nrest > 0; groups++) {
    int ngroup = 0, nsep = 0, left = 0;
    for (int k = 0; k < nrest; k++) {
      const eini_sumfactor *f = &net->factor[rest[k]];
      int nmore = nsep;
      double cells = 1;
      memcpy(more, sep, (size_t)nsep * sizeof *sep);
      eini_sep_add(net, f, x, more, &nmore);
      for (int i = 0; i < nmore; i++) cells *= net->size[more[i]];
      int fits = ngroup == 0 || nmore == nsep ||
                 (cells <= net->max_table && cells * net->size[x] <= 512 * net->max_table);
      if (!fits) {
        rest[left++] = rest[k];
        continue;
      }
      group[ngroup++] = rest[k];
      memcpy(sep, more, (size_t)nmore * sizeof *sep);
      nsep = nmore;
    }
    nrest = left;
    net->split += groups > 0;
    EINI_TRY(eini_message(net, x, ngroup, group, sep, nsep, &b->out[b->nout++]));
  }
  return EIN_OK;
}

#define EINI_SUMS_HOPELESS 1e18  // steps: no matter how many more

// Steps that eliminating x takes: entries of the table it makes, times labels of x.
static double eini_sums_work(const eini_sums *net, int x) {
  double cells = net->size[x];
  int n = 0;
  for (int64_t k = 0; k < net->nof[x] && cells < EINI_SUMS_HOPELESS; k++) {
    const eini_sumfactor *f = &net->factor[net->of[x][k]];
    int before = n;
    if (!f->gone) eini_sep_add(net, f, x, net->sep, &n);
    if (n == before) continue;
    cells = net->size[x];
    for (int i = 0; i < n; i++) cells *= net->size[net->sep[i]];
  }
  return cells;
}

// A variable and what it took to eliminate when it came into the heap, the least on top.
typedef struct eini_sumturn {
  double work;
  int var;
} eini_sumturn;

typedef struct eini_sumturns {
  eini_sumturn *heap;
  int64_t n, cap;
} eini_sumturns;

static int eini_turn_less(eini_sumturn a, eini_sumturn b) {
  return a.work < b.work || (a.work <= b.work && a.var < b.var);
}

static ein_status eini_turns_push(eini_sums *net, eini_sumturns *t, int x, double work) {
  eini_sumturn *h = (eini_sumturn *)eini_grow(net->a, t->heap, t->n, &t->cap, sizeof *h), mine;
  if (h == NULL) return EIN_ERR_NO_MEMORY;
  t->heap = h;
  mine.work = work;
  mine.var = x;
  int64_t i = t->n++;
  for (; i > 0 && eini_turn_less(mine, h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = mine;
  return EIN_OK;
}

static eini_sumturn eini_turns_pop(eini_sumturns *t) {
  eini_sumturn top = t->heap[0], last = t->heap[--t->n];
  int64_t i = 0;
  for (int64_t c; (c = 2 * i + 1) < t->n; i = c) {
    if (c + 1 < t->n && eini_turn_less(t->heap[c + 1], t->heap[c])) c++;
    if (!eini_turn_less(t->heap[c], last)) break;
    t->heap[i] = t->heap[c];
  }
  if (t->n > 0) t->heap[i] = last;
  return top;
}

// The variables around x, once each; mark: which have been seen, by step.
static int eini_sums_around(const eini_sums *net, int x, int step, int *mark, int *around) {
  int n = 0;
  for (int64_t k = 0; k < net->nof[x]; k++) {
    const eini_sumfactor *f = &net->factor[net->of[x][k]];
    for (int i = 0; i < net->table[f->table].nvar && !f->gone; i++) {
      if (f->var[i] == x || mark[f->var[i]] == step) continue;
      mark[f->var[i]] = step;
      around[n++] = f->var[i];
    }
  }
  return n;
}

// Eliminates all variables, always one that takes the fewest steps.
static ein_status eini_sums_eliminate(eini_sums *net) {
  eini_sumturns turns;
  double *work = EINI_NEW(net->a, double, net->nvar);
  int *mark = EINI_NEW(net->a, int, net->nvar), *around = EINI_NEW(net->a, int, net->nvar);
  memset(&turns, 0, sizeof turns);
  for (net->nslot = 64; net->nslot < 4 * (int64_t)net->nfactor + 4 * net->nvar;) net->nslot *= 2;
  net->slot = EINI_NEW(net->a, int, net->nslot);
  if (work == NULL || mark == NULL || around == NULL || net->slot == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < net->nslot; i++) net->slot[i] = -1;
  net->norig = (int)net->nfactor;
  for (int x = 0; x < net->nvar; x++) {
    work[x] = eini_sums_work(net, x);
    EINI_TRY(eini_turns_push(net, &turns, x, work[x]));
  }
  for (int step = 1; step <= net->nvar;) {
    eini_sumturn best = eini_turns_pop(&turns);
    if (best.work < work[best.var] || best.work > work[best.var]) continue;  // it has changed since
    int n = eini_sums_around(net, best.var, step++, mark, around);
    EINI_TRY(eini_eliminate(net, best.var));
    work[best.var] = -1;
    for (int i = 0; i < n; i++) {
      double now = eini_sums_work(net, around[i]);
      if (!(now < work[around[i]] || now > work[around[i]])) continue;
      work[around[i]] = now;
      EINI_TRY(eini_turns_push(net, &turns, around[i], now));
    }
  }
  return EIN_OK;
}

// ---- labels from messages -----------------------------------------------------------------------

typedef struct eini_sumstate {  // one label more
  double bound;              // of all that it can lead to
  int from, label;           // the state it extends
} eini_sumstate;

// Keeps the `room` least states in a heap with the largest on top; returns the bound of what fell
// out, INFINITY when nothing did.
static double eini_beam_push(eini_sumstate *heap, int *n, int room, eini_sumstate s) {
  double out = INFINITY;
  int i;
  if (*n == room) {
    if (s.bound >= heap[0].bound) return s.bound;
    out = heap[0].bound;
    i = 0;
    for (int c; (c = 2 * i + 1) < room; i = c) {
      if (c + 1 < room && heap[c + 1].bound > heap[c].bound) c++;
      if (heap[c].bound <= s.bound) break;
      heap[i] = heap[c];
    }
  } else {
    for (i = (*n)++; i > 0 && heap[(i - 1) / 2].bound < s.bound; i = (i - 1) / 2)
      heap[i] = heap[(i - 1) / 2];
  }
  heap[i] = s;
  return out;
}

// Assigns labels in reverse order of elimination, keeping the `beam` states of least bound. Bounds
// never exceed what a state can lead to: *lower holds for every assignment. Exact with beam 1 when
// no bucket was split.
static ein_status eini_sums_decode(eini_sums *net, int beam, int *label, double *lower) {
  int64_t cells = (int64_t)beam * net->nvar;
  int *have = EINI_NEW(net->a, int, cells), *next = EINI_NEW(net->a, int, cells), n = 1;
  double *bound = EINI_NEW(net->a, double, beam), dropped = INFINITY;
  eini_sumstate *heap = EINI_NEW(net->a, eini_sumstate, beam);
  if (have == NULL || next == NULL || bound == NULL || heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < net->nfactor; k++)  // messages of no variables: the bound to begin with
    if (net->table[net->factor[k].table].nvar == 0)
      bound[0] += net->table[net->factor[k].table].v[0];
  for (int b = net->nbucket - 1; b >= 0; b--) {
    const eini_sumbucket *q = &net->bucket[b];
    int count = 0;
    for (int s = 0; s < n; s++) {
      int *mine = have + (int64_t)s * net->nvar;
      double base = bound[s];
      for (int k = 0; k < q->nout; k++) base -= eini_factor_at(net, q->out[k], mine);
      for (int x = 0; x < net->size[q->var]; x++) {
        eini_sumstate e;
        mine[q->var] = x;
        e.bound = base;
        e.from = s;
        e.label = x;
        for (int k = 0; k < q->nin; k++) e.bound += eini_factor_at(net, q->in[k], mine);
        double out = eini_beam_push(heap, &count, beam, e);
        if (out < dropped) dropped = out;
      }
    }
    for (int s = 0; s < count; s++) {
      int *to = next + (int64_t)s * net->nvar;
      memcpy(to, have + (int64_t)heap[s].from * net->nvar, (size_t)net->nvar * sizeof *to);
      to[q->var] = heap[s].label;
      bound[s] = heap[s].bound;
    }
    n = count;
    int *swap = have;
    have = next;
    next = swap;
  }
  double best = INFINITY;
  for (int s = 0; s < n; s++) {
    double value = eini_sums_value(net, have + (int64_t)s * net->nvar);
    if (value >= best) continue;
    best = value;
    memcpy(label, have + (int64_t)s * net->nvar, (size_t)net->nvar * sizeof *label);
  }
  *lower = dropped < best ? dropped : best;
  return EIN_OK;
}

// Changes one label at a time as long as the sum falls.
static void eini_sums_improve(const eini_sums *net, int *label) {
  for (int round = 0, better = 1; better && round < 100; round++) {
    better = 0;
    for (int x = 0; x < net->nvar; x++) {
      double best = INFINITY;
      int was = label[x], to = was;
      for (int k = -1; k < net->size[x]; k++) {  // what there is comes first: ties stay
        double sum = 0;
        label[x] = k < 0 ? was : k;
        for (int64_t f = 0; f < net->nof[x] && net->of[x][f] < net->norig; f++)
          sum += eini_factor_at(net, net->of[x][f], label);
        if (sum >= best || (k >= 0 && sum >= best - 1e-12 * (best < 0 ? -best : best))) continue;
        best = sum;
        to = label[x];
      }
      label[x] = to;
      better |= to != was;
    }
  }
}

// The least sum, its labels, and a bound from below that is equal to it when proved.
static ein_status eini_sums_solve(eini_sums *net, int beam, int *label, double *total,
                                 double *lower) {
  EINI_TRY(eini_sums_eliminate(net));
  EINI_TRY(eini_sums_decode(net, net->split ? beam : 1, label, lower));
  if (net->split) eini_sums_improve(net, label);
  *total = eini_sums_value(net, label);
  if (*lower > *total || !net->split) *lower = *total;
  return EIN_OK;
}

// ================================================================================================
// >>constraints  vectors, pins and kept indices as texts
// "T[s=2,t=4]", "X[s=8]", "j", "T.j": each names a tensor or an index, or is a mistake.
// ================================================================================================

#define EINI_SPEC_MAX 64

typedef struct eini_specword {
  const char *s;
  int n;
} eini_specword;

typedef struct eini_spec {  // NAME[name=value,..]
  eini_specword name, item[EINI_SPEC_MAX];
  int64_t value[EINI_SPEC_MAX];
  int n;
} eini_spec;

static int eini_specword_eq(eini_specword w, const char *s) {
  return w.n == (int)strlen(s) && memcmp(w.s, s, (size_t)w.n) == 0;
}

// A name up to one of `ends`.
static const char *eini_specword_read(const char *s, const char *ends, eini_specword *w) {
  while (*s == ' ') s++;
  w->s = s;
  while (*s != 0 && strchr(ends, *s) == NULL) s++;
  w->n = (int)eini_min64(s - w->s, 256);
  while (*s == ' ') s++;
  return s;
}

static ein_status eini_spec_read(eini_decomposer *dc, const char *what, const char *text,
                                 eini_spec *spec) {
  spec->n = 0;
  const char *s = text == NULL ? "" : eini_specword_read(text, "[]=, ", &spec->name);
  int ok = text != NULL && spec->name.n > 0 && *s == '[';
  if (ok && *s == '[' && s[1] == ']') s += 2;
  else while (ok && (*s == '[' || *s == ',') && spec->n < EINI_SPEC_MAX) {
    int64_t value = 0;
    s = eini_specword_read(s + 1, "[]=, ", &spec->item[spec->n]);
    ok = spec->item[spec->n].n > 0 && *s == '=';
    if (!ok) break;
    const char *from = ++s;
    for (; *s >= '0' && *s <= '9' && value <= EIN_PLACES_MAX; s++) value = 10 * value + (*s - '0');
    ok = s > from && (*s == ',' || *s == ']');
    spec->value[spec->n++] = value;
    if (*s == ']') {
      s++;
      break;
    }
  }
  if (ok && *s == 0 && s[-1] == ']') return EIN_OK;
  return eini_fail(dc->diag, EIN_ERR_SYNTAX, -1, 0, "for example T[s=2,t=4]",
                   "%s '%.80s' is not NAME[index=pieces,..]", what, text == NULL ? "" : text);
}

static int eini_find_index(const eini_stmt *s, eini_specword w) {
  for (int c = 0; c < s->nindex; c++)
    if (eini_specword_eq(w, s->index[c].name)) return c;
  return -1;
}

static const char *eini_node_name(const eini_decomposer *dc, int i) {
  return dc->g->tensor[dc->node[i].s->out].name;
}

// Asks for `pieces` of an index of node i; a mistake when it cannot have them.
static ein_status eini_need(eini_decomposer *dc, int i, int c, int64_t pieces) {
  eini_dform *f = &dc->node[i];
  const eini_index *x = &f->s->index[c];
  const char *name = eini_node_name(dc, i);
  if (pieces < 1 || pieces > eini_max64(1, x->extent))
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' of extent %lld cannot have %lld pieces", name,
                     x->name, (long long)x->extent, (long long)pieces);
  if (pieces > f->limit[c])
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' must not be cut: %s", name, x->name,
                     c >= f->s->nfree ? "it is kept" : "it shares a coordinate, or it is kept");
  if (f->need[c] != 0 && f->need[c] != pieces)
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' is asked to have %lld and %lld pieces", name,
                     x->name, (long long)f->need[c], (long long)pieces);
  f->need[c] = pieces;
  return EIN_OK;
}

static ein_status eini_need_product(eini_decomposer *dc, int i) {
  const eini_dform *f = &dc->node[i];
  int64_t tasks = 1;
  for (int c = 0; c < f->s->nindex; c++) {
    if (f->need[c] == 0 || tasks * f->need[c] <= dc->p) {
      tasks *= eini_max64(1, f->need[c]);
      continue;
    }
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': with index '%s' its pieces make more tasks than the %lld "
                     "places", eini_node_name(dc, i), f->s->index[c].name, (long long)dc->p);
  }
  return EIN_OK;
}

// A vector for the statements of a tensor that have all its indices; those not named stay whole.
static ein_status eini_constrain_parts(eini_decomposer *dc, const char *text) {
  eini_spec spec;
  int named = 0, found = 0, lacking = 0;
  EINI_TRY(eini_spec_read(dc, "parts", text, &spec));
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = dc->node[i].s;
    int k = 0;
    if (!eini_specword_eq(spec.name, eini_node_name(dc, i))) continue;
    named = 1;
    while (k < spec.n && eini_find_index(s, spec.item[k]) >= 0) k++;
    if (k < spec.n) lacking = k;
    if (k < spec.n) continue;
    found = 1;
    for (k = 0; k < spec.n; k++)
      EINI_TRY(eini_need(dc, i, eini_find_index(s, spec.item[k]), spec.value[k]));
    for (int c = 0; c < s->nindex; c++) {
      for (k = 0; k < spec.n && !eini_specword_eq(spec.item[k], s->index[c].name);) k++;
      if (k == spec.n) EINI_TRY(eini_need(dc, i, c, 1));
    }
    EINI_TRY(eini_need_product(dc, i));
  }
  if (found) return EIN_OK;
  if (!named)
    return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "parts '%.80s': no statement defines "
                     "'%.*s'", text, spec.name.n, spec.name.s);
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "parts '%.80s': statement '%.*s' has no "
                   "index '%.*s'", text, spec.name.n, spec.name.s, spec.item[lacking].n,
                   spec.item[lacking].s);
}

static ein_status eini_constrain_keep(eini_decomposer *dc, const char *text) {
  eini_specword tensor, index;
  int found = 0;
  const char *s = eini_specword_read(text == NULL ? "" : text, "[]=,. ", &index);
  memset(&tensor, 0, sizeof tensor);
  if (*s == '.') {
    tensor = index;
    s = eini_specword_read(s + 1, "[]=,. ", &index);
  }
  if (index.n == 0 || *s != 0)
    return eini_fail(dc->diag, EIN_ERR_SYNTAX, -1, 0, "for example j, or T.j",
                     "keep '%.80s' is not an index", text == NULL ? "" : text);
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    int c = eini_find_index(dc->node[i].s, index);
    if (c < 0 || (tensor.n > 0 && !eini_specword_eq(tensor, eini_node_name(dc, i)))) continue;
    found = 1;
    dc->node[i].limit[c] = 1;
  }
  return found ? EIN_OK : eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL,
                                    "keep '%.80s': no statement has this index", text);
}

// The axis of a tensor that a word names, by number or by an index that stands alone there; -1:
// none, -2: several.
static int eini_pin_axis(const eini_decomposer *dc, int tensor, eini_specword w) {
  const eini_tensor *t = &dc->g->tensor[tensor];
  int axis = -1;
  for (int r = 0; r < t->rank; r++) {
    char number[16];
    snprintf(number, sizeof number, "%d", r);
    int names = eini_specword_eq(w, number);
    for (int64_t i = 0; i < dc->g->nstmt && !names; i++) {
      const eini_stmt *s = &dc->g->stmt[i];
      for (int k = -1; k < s->noperand; k++) {
        const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
        int64_t coef;
        if ((k < 0 ? s->out : s->operand[k]) != tensor) continue;
        int c = eini_row_index(m, r, &coef);
        names |= c >= 0 && coef == 1 && eini_specword_eq(w, s->index[c].name);
      }
    }
    if (names) axis = axis == -1 ? r : -2;
  }
  return axis;
}

// Is it a pattern of names? A "*" stands for any text.
static int eini_pin_pattern(eini_specword w) {
  return w.n > 0 && memchr(w.s, '*', (size_t)w.n) != NULL;
}

static int eini_pin_fits(eini_specword w, const char *name) {
  int at = 0, star = -1;
  const char *again = name;
  while (*name != 0) {
    if (at < w.n && w.s[at] == '*') star = at++, again = name;
    else if (at < w.n && w.s[at] == *name) at++, name++;
    else if (star >= 0) at = star + 1, name = ++again;
    else return 0;
  }
  while (at < w.n && w.s[at] == '*') at++;
  return at == w.n;
}

// Does a pin mean this tensor? A pattern means inputs and outputs that have all its axes.
static int eini_pin_means(const eini_decomposer *dc, const eini_spec *spec, int tensor) {
  const eini_tensor *t = &dc->g->tensor[tensor];
  if (!eini_pin_pattern(spec->name)) return eini_specword_eq(spec->name, t->name);
  if (t->role != EIN_ROLE_INPUT && t->role != EIN_ROLE_OUTPUT) return 0;
  if (!eini_pin_fits(spec->name, t->name)) return 0;
  for (int k = 0; k < spec->n; k++)
    if (eini_pin_axis(dc, tensor, spec->item[k]) < 0) return 0;
  return 1;
}

// The only statement that defines a tensor, with plain indices; -1: none.
static int eini_pin_stmt(const eini_decomposer *dc, int tensor) {
  int found = -1;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = dc->node[i].s;
    int64_t coef;
    if (s->out != tensor) continue;
    if (found >= 0) return -1;
    found = i;
    for (int r = 0; r < s->out_map.rows; r++)
      if (eini_row_index(&s->out_map, r, &coef) < 0 || coef != 1) return -1;
  }
  return found;
}

static ein_status eini_constrain_pinned(eini_decomposer *dc, const char *text,
                                        const eini_spec *spec, int tensor) {
  const char *name = dc->g->tensor[tensor].name;
  int i = dc->tensor_node[tensor], input = i >= 0;
  int64_t coef;
  if (i < 0) i = eini_pin_stmt(dc, tensor);
  if (i < 0)
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL, "pin '%.80s': '%.60s' is not read, or "
                     "its pieces cannot be pinned", text, name);
  const eini_stmt *s = dc->node[i].s;
  for (int k = 0; k < spec->n; k++) {
    const eini_specword w = spec->item[k];
    int axis = eini_pin_axis(dc, tensor, w);
    if (axis < 0)
      return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, "number the axis, from 0", axis == -1 ?
                       "pin '%.80s': no statement has index '%.*s' alone at an axis of '%.60s'" :
                       "pin '%.80s': '%.*s' stands at several axes of '%.60s'", text, w.n, w.s,
                       name);
    int c = eini_row_index(&s->out_map, axis, &coef);
    if (input) {  // its axes have no names but this one, for messages
      s->index[c].name = eini_strndup(&dc->arena, w.s, w.n);
      if (s->index[c].name == NULL) return EIN_ERR_NO_MEMORY;
    }
    EINI_TRY(eini_need(dc, i, c, spec->value[k]));
  }
  for (int c = 0; c < s->nfree; c++)
    if (dc->node[i].need[c] == 0) dc->node[i].need[c] = 1;
  dc->node[i].pinned = 1;
  return eini_need_product(dc, i);
}

static ein_status eini_constrain_pin(eini_decomposer *dc, const char *text) {
  eini_spec spec;
  int found = 0;
  EINI_TRY(eini_spec_read(dc, "pin", text, &spec));
  for (int t = 0; t < dc->g->ntensor; t++) {
    if (!eini_pin_means(dc, &spec, t)) continue;
    if (eini_pin_pattern(spec.name) && dc->tensor_node[t] < 0 && eini_pin_stmt(dc, t) < 0) continue;
    EINI_TRY(eini_constrain_pinned(dc, text, &spec, t));
    found = 1;
  }
  if (found) return EIN_OK;
  if (eini_pin_pattern(spec.name))
    return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "pin '%.80s': no input or output of such "
                     "a name has these axes", text);
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "pin '%.80s': there is no tensor '%.*s'",
                   text, spec.name.n, spec.name.s);
}

static ein_status eini_constrain(eini_decomposer *dc) {
  const ein_decompose_desc *d = dc->desc;
  for (int k = 0; k < d->nkeep; k++) EINI_TRY(eini_constrain_keep(dc, d->keep[k]));
  for (int k = 0; k < d->npin; k++) EINI_TRY(eini_constrain_pin(dc, d->pin[k]));
  for (int k = 0; k < d->nparts; k++) EINI_TRY(eini_constrain_parts(dc, d->parts[k]));
  return EIN_OK;
}

// ================================================================================================
// >>baselines  data, model, sequence, attention and sqrt
// What people do by hand: one kind of index is cut everywhere. Indices are of a kind when they name
// it, or meet one that does at an axis of a tensor.
// ================================================================================================

enum { EINI_KIND_BATCH, EINI_KIND_SEQUENCE, EINI_KIND_HEADS, EINI_KIND_HIDDEN, EINI_KINDS };

typedef struct eini_classuse {  // statements where a class of indices is, and where it stays free
  int64_t all, free;
} eini_classuse;

typedef struct eini_kinds {
  int *stmt_at, *tensor_at;  // first item of each statement's indices and tensor's axes
  int *parent;               // union-find over them
  unsigned char *kind;       // bits, of roots
  eini_classuse *use;        // of roots
} eini_kinds;

static int eini_root(int *parent, int x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

static int eini_list_has(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *s = list; n > 0 && (s = strstr(s, name)) != NULL; s += n)
    if ((s == list || s[-1] == ',') && (s[n] == 0 || s[n] == ',')) return 1;
  return 0;
}

static const char *eini_kind_names(const ein_decompose_desc *d, int kind) {
  const char *given = kind == EINI_KIND_BATCH ? d->batch : kind == EINI_KIND_SEQUENCE ? d->sequence
                      : kind == EINI_KIND_HEADS ? d->heads : d->hidden;
  static const char *const names[] = {"b,batch,n", "s,seq,sequence", "h,head,heads",
                                      "f,hidden,ff"};
  return given != NULL ? given : names[kind];
}

// Follows indices through the axes where they stand alone.
static ein_status eini_kinds_find(eini_decomposer *dc, eini_kinds *q) {
  const ein_graph *g = dc->g;
  int n = 0;
  q->stmt_at = EINI_NEW(&dc->arena, int, g->nstmt);
  q->tensor_at = EINI_NEW(&dc->arena, int, g->ntensor);
  if (q->stmt_at == NULL || q->tensor_at == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; n += g->tensor[t++].rank) q->tensor_at[t] = n;
  for (int64_t i = 0; i < g->nstmt; n += g->stmt[i++].nindex) q->stmt_at[i] = n;
  q->parent = EINI_NEW(&dc->arena, int, n);
  q->kind = EINI_NEW(&dc->arena, unsigned char, n);
  if (q->parent == NULL || q->kind == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) q->parent[k] = k;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    for (int k = -1; k < s->noperand; k++) {
      const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
      for (int r = 0; r < m->rows; r++) {
        int64_t coef;
        int c = eini_row_index(m, r, &coef);
        if (c < 0) continue;
        int a = eini_root(q->parent, q->stmt_at[i] + c);
        int b = eini_root(q->parent, q->tensor_at[k < 0 ? s->out : s->operand[k]] + r);
        q->parent[a > b ? a : b] = a > b ? b : a;
      }
    }
  }
  for (int64_t i = 0; i < g->nstmt; i++) {
    for (int c = 0; c < g->stmt[i].nindex; c++) {
      int root = eini_root(q->parent, q->stmt_at[i] + c);
      for (int k = 0; k < EINI_KINDS; k++)
        if (eini_list_has(eini_kind_names(dc->desc, k), g->stmt[i].index[c].name))
          q->kind[root] = (unsigned char)(q->kind[root] | 1u << k);
    }
  }
  return EIN_OK;
}

// Orders the indices of every statement: first those that, followed along axes, are reduced least
// and met most. What is cut in this order is cut alike by many statements.
static ein_status eini_prefer(eini_decomposer *dc, eini_kinds *q) {
  int n = 0, nstmt = dc->nnode - dc->npinned;
  for (int64_t t = 0; t < dc->g->ntensor; t++)
    n = (int)eini_max64(n, q->tensor_at[t] + dc->g->tensor[t].rank);
  for (int i = 0; i < nstmt; i++)
    n = (int)eini_max64(n, q->stmt_at[i] + dc->node[i].s->nindex);
  eini_classuse *use = EINI_NEW(&dc->arena, eini_classuse, n);
  if (use == NULL) return EIN_ERR_NO_MEMORY;
  q->use = use;
  for (int i = 0; i < nstmt; i++) {
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      eini_classuse *u = &use[eini_root(q->parent, q->stmt_at[i] + c)];
      u->all++;
      u->free += c < dc->node[i].s->nfree;
    }
  }
  for (int i = 0; i < nstmt; i++) {
    int *by = dc->node[i].prefer;
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      int mine = eini_root(q->parent, q->stmt_at[i] + c), k = c;
      for (; k > 0; k--) {
        int other = eini_root(q->parent, q->stmt_at[i] + by[k - 1]);
        int64_t more = use[other].free * use[mine].all - use[mine].free * use[other].all;
        if (more == 0) more = use[other].all - use[mine].all;
        if (more > 0 || (more == 0 && other <= mine)) break;
        by[k] = by[k - 1];
      }
      by[k] = c;
    }
  }
  return EIN_OK;
}

enum { EINI_BASE_NONE, EINI_BASE_SQRT, EINI_BASE_DATA, EINI_BASE_MODEL, EINI_BASE_SEQUENCE,
       EINI_BASE_ATTENTION, EINI_BASES, EINI_METHOD_GIVEN = EINI_BASES, EINI_METHOD_BEST,
       EINI_METHOD_LINEAR, EINI_METHOD_FIXED,    // fixed: what the hint says
       EINI_METHOD_CLASS };  // and on: one class of indices cut everywhere, the first, second, ..

#define EINI_CLASSES 6  // classes that are tried

static const char *const eini_method_names[] = {"none", "sqrt", "data", "model", "sequence",
                                                "attention", "given", "eindecomp", "linear",
                                                "", "class"};

static int eini_method_find(const char *name) {
  if (name == NULL) return EINI_METHOD_BEST;
  for (int i = 0; i <= EINI_METHOD_LINEAR; i++)
    if (strcmp(name, eini_method_names[i]) == 0) return i;
  return strcmp(name, "megatron") == 0 ? EINI_BASE_MODEL : -1;
}

// The first index of a kind that can be cut; the free ones come first.
static int eini_kind_index(const eini_decomposer *dc, eini_kinds *q, int i, int kind) {
  const eini_dform *f = &dc->node[i];
  for (int c = 0; c < f->s->nindex; c++) {
    int root = eini_root(q->parent, q->stmt_at[i] + c);
    if ((q->kind[root] >> kind & 1) != 0 && f->limit[c] > 1) return c;
  }
  return -1;
}

// Slices a matrix sqrt(p) x sqrt(p): the two longest indices of the output (of the index space
// when it has none) get the factors of p nearest to its root, the longer one more.
static void eini_sqrt_cut(const eini_decomposer *dc, int i, int64_t *cut) {
  const eini_dform *f = &dc->node[i];
  int64_t best = 0;
  int a = -1, b = -1, to = f->s->nfree, any = 0;
  for (int c = 0; c < f->s->nfree; c++) any |= f->limit[c] > 1;
  if (!any) to = f->s->nindex;
  for (int c = 0; c < to; c++)
    if (f->limit[c] > 1 && (a < 0 || f->limit[c] > f->limit[a])) a = c;
  for (int c = 0; c < to; c++)
    if (c != a && f->limit[c] > 1 && (b < 0 || f->limit[c] > f->limit[b])) b = c;
  if (a >= 0 && b < 0) cut[a] = eini_min64(dc->p, f->limit[a]);
  for (int k = 0; k < dc->ndivisor && b >= 0; k++) {
    int64_t less = dc->divisor[k];
    if (less * less > dc->p) break;
    int64_t x = eini_min64(dc->p / less, f->limit[a]), y = eini_min64(less, f->limit[b]);
    if (x * y < best) continue;
    best = x * y;
    cut[a] = x;
    cut[b] = y;
  }
}

// The vector of a baseline for statement i; 1 when it cuts something.
static int eini_baseline(const eini_decomposer *dc, eini_kinds *q, int base, int i, int64_t *cut) {
  static const int kinds[EINI_BASES][2] = {{-1, -1}, {-1, -1}, {EINI_KIND_BATCH, -1},
      {EINI_KIND_HEADS, EINI_KIND_HIDDEN}, {EINI_KIND_SEQUENCE, -1}, {EINI_KIND_HEADS, -1}};
  const eini_dform *f = &dc->node[i];
  int at = -1;
  for (int c = 0; c < f->s->nindex; c++) cut[c] = 1;
  if (base == EINI_BASE_SQRT) eini_sqrt_cut(dc, i, cut);
  for (int k = 0; k < 2 && at < 0; k++)
    if (kinds[base][k] >= 0) at = eini_kind_index(dc, q, i, kinds[base][k]);
  if (at >= 0) cut[at] = eini_min64(dc->p, f->limit[at]);
  return eini_tasks(cut, f->s->nindex) > 1;
}

// Marks the n-th of the classes that are free in most statements as the batch.
static ein_status eini_class_mark(const eini_decomposer *dc, eini_kinds *q, int n) {
  int top[EINI_CLASSES + 1], ntop = 0;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      int root = eini_root(q->parent, q->stmt_at[i] + c), k = ntop;
      q->kind[root] = 0;
      if (dc->node[i].limit[c] == 1 || eini_find_int(top, ntop, root) >= 0) continue;
      for (; k > 0; k--) {
        const eini_classuse *a = &q->use[top[k - 1]], *b = &q->use[root];
        if (a->free > b->free || (a->free == b->free && a->all <= b->all)) break;
        top[k] = top[k - 1];
      }
      top[k] = root;
      if (ntop < EINI_CLASSES) ntop++;
    }
  }
  if (n >= ntop) return EIN_ERR_NAME;
  q->kind[top[n]] = 1u << EINI_KIND_BATCH;
  return EIN_OK;
}

// A baseline as the only choice of every statement; what is asked for otherwise stays.
static ein_status eini_baseline_need(eini_decomposer *dc, eini_kinds *q, int base) {
  int cuts = 0;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    eini_dform *f = &dc->node[i];
    int64_t *cut = EINI_NEW(&dc->arena, int64_t, f->s->nindex), asked = 1;
    if (cut == NULL) return EIN_ERR_NO_MEMORY;
    cuts |= eini_baseline(dc, q, base, i, cut);
    for (int c = 0; c < f->s->nindex; c++) asked *= f->need[c] != 0 ? f->need[c] : cut[c];
    for (int c = 0; c < f->s->nindex; c++)
      if (f->need[c] == 0) f->need[c] = asked > dc->p ? 1 : cut[c];
  }
  if (cuts || base <= EINI_BASE_SQRT || dc->p == 1) return EIN_OK;
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, "name the indices it cuts",
                   "method '%s': no statement has an index of its kind", dc->desc->method);
}

// ================================================================================================
// >>decompose  from statements to forms
// A variable of the net is a statement (or pinned input), its labels are its ways; edges between
// producers and readers are tables that equal pairs of forms share.
// ================================================================================================

typedef struct eini_dedge {  // node y reads what node x defines, as operand k
  int x, y, k, table;
  int64_t alike;           // the first edge between the same forms, which has the same table
} eini_dedge;

typedef struct eini_edges {
  eini_dedge *e;
  int64_t n, cap;
  int64_t *shared;         // edges with a table of their own
  int64_t nshared;
} eini_edges;

static int eini_same_tensor(const eini_tensor *a, const eini_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

// Do expressions take the same operations, on operands of the same numbers?
static int eini_same_expr(const eini_expr *a, const eini_expr *b) {
  if (a->n != b->n || a->nlist != b->nlist) return 0;
  for (int64_t k = 0; k < a->n; k++) {
    const eini_node *x = &a->node[k], *y = &b->node[k];
    if (x->op != y->op || x->dtype != y->dtype) return 0;
    if (x->op != EINI_OP_PARAM && memcmp(x->arg, y->arg, sizeof x->arg) != 0) return 0;
  }
  return a->nlist == 0 || memcmp(a->list, b->list, (size_t)a->nlist * sizeof *a->list) == 0;
}

// Do two nodes differ in names and literals only?
static int eini_same_form(const eini_decomposer *dc, int i, int j) {
  const eini_dform *a = &dc->node[i], *b = &dc->node[j];
  const eini_stmt *s = a->s, *t = b->s;
  const eini_tensor *tensor = dc->g->tensor;
  size_t n = (size_t)s->nindex, operands = (size_t)s->noperand;
  if (s->nindex != t->nindex || s->nfree != t->nfree || s->noperand != t->noperand ||
      s->fold != t->fold || s->type != t->type || a->pinned != b->pinned ||
      s->numpy != t->numpy || !eini_same_expr(&s->expr, &t->expr) ||
      (a->hint == NULL) != (b->hint == NULL) ||
      (i >= dc->nnode - dc->npinned) != (j >= dc->nnode - dc->npinned)) return 0;
  if (n > 0 && (memcmp(a->limit, b->limit, n * sizeof *a->limit) != 0 ||
                memcmp(a->need, b->need, n * sizeof *a->need) != 0 ||
                memcmp(a->prefer, b->prefer, n * sizeof *a->prefer) != 0 ||
                (a->hint != NULL && memcmp(a->hint, b->hint, n * sizeof *a->hint) != 0))) return 0;
  if ((a->fixed == NULL) != (b->fixed == NULL)) return 0;
  if (a->fixed != NULL && (a->fixed->norder != b->fixed->norder ||
                           memcmp(a->fixed->order, b->fixed->order,
                                  (size_t)a->fixed->norder * sizeof(int)) != 0)) return 0;
  if (memcmp(a->active, b->active, operands + 1) != 0) return 0;
  for (int c = 0; c < s->nindex; c++)
    if (s->index[c].extent != t->index[c].extent) return 0;
  if (!eini_zmap_equal(&s->out_map, &t->out_map) ||
      !eini_same_tensor(&tensor[s->out], &tensor[t->out])) return 0;
  for (int k = 0; k < s->noperand; k++) {
    if (!eini_zmap_equal(&s->proj[k], &t->proj[k]) ||
        !eini_same_tensor(&tensor[s->operand[k]], &tensor[t->operand[k]])) return 0;
    if (a->again[k] != b->again[k]) return 0;
  }
  return 1;
}

static uint64_t eini_zmap_hash(const ein_zmap *m, uint64_t h) {
  size_t rows = (size_t)m->rows, cells = rows * (size_t)m->cols;
  if (cells > 0) h = eini_hash(m->coef, cells * sizeof *m->coef, h);
  return rows > 0 ? eini_hash(m->offset, rows * sizeof *m->offset, h) : h;
}

// Finds what each node reads more than once.
static ein_status eini_nodes_repeat(eini_decomposer *dc) {
  uint64_t mask = 4;
  for (int i = 0; i < dc->nnode; i++)
    while (mask < 2 * (uint64_t)dc->node[i].s->noperand) mask *= 2;
  int *slot = EINI_NEW(&dc->arena, int, (int64_t)mask--);  // operand + 1
  uint64_t *used = EINI_NEW(&dc->arena, uint64_t, (int64_t)mask);
  if (slot == NULL || used == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    const eini_stmt *s = f->s;
    f->again = EINI_NEW(&dc->arena, unsigned char, s->noperand);
    if (f->again == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < s->noperand; k++) {
      uint64_t at = eini_zmap_hash(&s->proj[k], (uint64_t)s->operand[k]) & mask;
      for (; slot[at] != 0 && !f->again[k]; at = (at + 1) & mask)
        f->again[k] = s->operand[slot[at] - 1] == s->operand[k] &&
                      eini_zmap_equal(&s->proj[slot[at] - 1], &s->proj[k]);
      used[k] = at;
      if (!f->again[k]) slot[at] = k + 1;
    }
    for (int k = 0; k < s->noperand; k++)
      if (!f->again[k]) slot[used[k]] = 0;
  }
  return EIN_OK;
}

// Equal for nodes of the same form.
static uint64_t eini_form_hash(const ein_graph *g, const eini_stmt *s) {
  int64_t key[5];
  key[0] = s->nindex, key[1] = s->nfree, key[2] = s->fold, key[3] = s->type, key[4] = s->expr.n;
  uint64_t h = eini_zmap_hash(&s->out_map, eini_hash(key, sizeof key, (uint64_t)s->noperand));
  for (int c = 0; c < s->nindex; c++)
    h = eini_hash(&s->index[c].extent, sizeof s->index[c].extent, h);
  for (int k = -1; k < s->noperand; k++) {
    const eini_tensor *t = &g->tensor[k < 0 ? s->out : s->operand[k]];
    if (k >= 0) h = eini_zmap_hash(&s->proj[k], h);
    if (t->rank > 0) h = eini_hash(t->shape, (size_t)t->rank * sizeof *t->shape, h);
  }
  return h;
}

// A statement that copies an input along its axes stands for a pinned input.
static ein_status eini_pin_node(eini_decomposer *dc, int tensor, eini_stmt **out) {
  const eini_tensor *t = &dc->g->tensor[tensor];
  eini_stmt *s = EINI_NEW(&dc->arena, eini_stmt, 1);
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  s->out = tensor;
  s->nindex = s->nfree = t->rank;
  s->type = t->dtype;
  s->index = EINI_NEW(&dc->arena, eini_index, t->rank);
  if (s->index == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(&dc->arena, t->rank, t->rank, &s->out_map));
  for (int r = 0; r < t->rank; r++) {
    s->index[r].name = "";
    s->index[r].extent = t->shape[r];
    s->out_map.coef[(int64_t)r * t->rank + r] = 1;
  }
  *out = s;
  return EIN_OK;
}

static ein_status eini_nodes_make(eini_decomposer *dc) {
  const ein_graph *g = dc->g;
  const ein_decompose_desc *d = dc->desc;
  int64_t most = g->nstmt;
  for (int64_t t = 0; t < g->ntensor && d->npin > 0; t++)
    most += g->tensor[t].role == EIN_ROLE_INPUT;
  dc->node = EINI_NEW(&dc->arena, eini_dform, most);
  dc->form_of = EINI_NEW(&dc->arena, int, most);
  dc->tensor_node = EINI_NEW(&dc->arena, int, g->ntensor);
  if (dc->node == NULL || dc->form_of == NULL || dc->tensor_node == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) dc->node[dc->nnode++].s = &g->stmt[i];
  for (int64_t t = 0; t < g->ntensor; t++) dc->tensor_node[t] = -1;
  for (int k = 0; k < d->npin; k++) {
    eini_spec spec;
    EINI_TRY(eini_spec_read(dc, "pin", d->pin[k], &spec));
    for (int t = 0; t < g->ntensor; t++) {
      if (g->tensor[t].role == EIN_ROLE_INPUT && dc->tensor_node[t] < 0)
        dc->tensor_node[t] = eini_pin_means(dc, &spec, t) ? 0 : -1;
    }
  }
  for (int t = 0; t < g->ntensor; t++) {
    eini_stmt *s;
    if (dc->tensor_node[t] < 0) continue;
    EINI_TRY(eini_pin_node(dc, t, &s));
    dc->tensor_node[t] = dc->nnode;
    dc->node[dc->nnode++].s = s;
    dc->npinned++;
  }
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    f->limit = EINI_NEW(&dc->arena, int64_t, f->s->nindex);
    f->need = EINI_NEW(&dc->arena, int64_t, f->s->nindex);
    f->active = EINI_NEW(&dc->arena, unsigned char, f->s->noperand + 1);
    f->prefer = EINI_NEW(&dc->arena, int, f->s->nindex);
    if (f->limit == NULL || f->need == NULL || f->active == NULL || f->prefer == NULL)
      return EIN_ERR_NO_MEMORY;
    eini_cut_limits(dc->g, f->s, f->limit);
    for (int c = 0; c < f->s->nindex; c++) f->prefer[c] = c;
  }
  return eini_nodes_repeat(dc);
}

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
  if (dc->desc->cost == EIN_COST_BYTES) *seconds = 0;
  else *seconds += eini_parts_seconds(dc, f, cut);
  return dc->desc->cost == EIN_COST_BYTES ? *agg : *seconds;
}

static ein_status eini_form_costs(eini_decomposer *dc, eini_dform *f) {
  int n = f->s->nindex;
  f->join = EINI_NEW(&dc->arena, double, f->ways.n);
  f->agg = EINI_NEW(&dc->arena, double, f->ways.n);
  f->seconds = EINI_NEW(&dc->arena, double, f->ways.n);
  f->unary = EINI_NEW(&dc->arena, double, f->ways.n);
  if (f->join == NULL || f->agg == NULL || f->seconds == NULL || f->unary == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t w = 0; w < f->ways.n; w++)
    f->unary[w] = eini_vertex_cost(dc, f, f->ways.cut + w * n, &f->join[w], &f->agg[w],
                                   &f->seconds[w]);
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
    double block = eini_block_count(s, &s->proj[k], cut, 0), whole = 1;
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
  double sum = 0;
  for (int k = 0; k < s->noperand && dc->desc->inputs != EIN_INPUTS_OUTSIDE; k++) {
    int t = s->operand[k], first = dc->g->tensor[t].role == EIN_ROLE_INPUT;
    double most = 0;
    if (dc->tensor_node[t] >= 0 || eini_task_points(s, cut) <= 0) continue;
    for (int j = 0; j < k; j++) first &= s->operand[j] != t;
    for (int j = k; j < s->noperand && first; j++) {  // parts of one input may be the same
      if (s->operand[j] != t) continue;
      double box = eini_operand_box(s, j, cut);
      most = box > most ? box : most;
    }
    sum += most * eini_element_bytes(dc, t);
  }
  return sum;
}

// Bytes that the result of the largest task takes at least, with the inputs it reads.
static double eini_result_bytes(const eini_decomposer *dc, const eini_stmt *s,
                                const int64_t *cut) {
  double size = eini_element_bytes(dc, s->out), bytes = 1;
  if (eini_tasks(cut + s->nfree, s->nindex - s->nfree) > 1) {
    double wide = (double)eini_partial_bytes(dc->g, s);
    size = wide < size ? wide : size;
  }
  for (int c = 0; c < s->nfree; c++)
    bytes *= (double)(s->index[c].extent / cut[c] + (s->index[c].extent % cut[c] != 0));
  return bytes * size + eini_input_bytes(dc, s, cut);
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
  int64_t *cut;            // [slot][index]
  double *rank;            // [slot]
  int64_t *seq;            // [slot] when it came: of equal ranks the first are kept
  int *heap;               // slots
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
  b->out = 1;
  b->partial = paper ? eini_partial_scalars(dc->g, s) : (double)eini_partial_bytes(dc->g, s);
  for (int c = 0; c < s->nfree; c++) b->out *= (double)s->index[c].extent;
  for (int k = 0; k <= s->noperand; k++) {
    const ein_zmap *m = k < s->noperand ? &s->proj[k] : &s->out_map;
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
  *own = (nagg - 1) * b->out * b->partial;
  return *own + more;
}

static int eini_pick_above(const eini_pick *q, int a, int b) {
  return q->rank[a] > q->rank[b] || (q->rank[a] >= q->rank[b] && q->seq[a] > q->seq[b]);
}

// Lets the slot at i of the heap sink.
static void eini_pick_sink(eini_pick *q, int64_t n, int64_t i) {
  int x = q->heap[i];
  for (int64_t c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && eini_pick_above(q, q->heap[c + 1], q->heap[c])) c++;
    if (!eini_pick_above(q, q->heap[c], x)) break;
    q->heap[i] = q->heap[c];
  }
  q->heap[i] = x;
}

// The vector is there already: its rank is now the least. 0: it is not there.
static int eini_pick_raise(eini_pick *q, int n, const int64_t *cut) {
  for (int64_t i = 0; i < q->n; i++) {
    if (n > 0 && memcmp(q->cut + i * n, cut, (size_t)n * sizeof *cut) != 0) continue;
    q->rank[i] = -1;
    for (int64_t k = q->n / 2; k-- > 0;) eini_pick_sink(q, q->n, k);
    return 1;
  }
  return 0;
}

// Takes note of a vector; it is kept if it is among the best. first: whatever its rank.
static void eini_pick_add(eini_decomposer *dc, const eini_dform *f, eini_pick *q,
                          const int64_t *cut, int first) {
  double join, agg, seconds, own, rank;
  double bytes = dc->machine.memory > 0 ? eini_result_bytes(dc, f->s, cut) : 0;
  int n = f->s->nindex;
  if (bytes < q->bytes) q->bytes = bytes;
  if (dc->machine.memory > 0 && bytes > dc->machine.memory) {
    if (dc->over <= 0 || bytes < dc->over) dc->over = bytes, dc->over_at = q->node;
    return;
  }
  if (first && eini_pick_raise(q, n, cut)) return;
  int64_t slot = q->n;
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
  if (first) rank = -1;
  if (q->n == q->most) {
    q->kept_out++;
    slot = q->heap[0];
    if (rank >= q->rank[slot]) return;  // it comes later
  }
  q->rank[slot] = rank;
  q->seq[slot] = q->seen;
  if (n > 0) memcpy(q->cut + slot * n, cut, (size_t)n * sizeof *cut);
  if (q->n == q->most) {
    eini_pick_sink(q, q->n, 0);
    return;
  }
  int64_t i = q->n++;
  for (; i > 0 && eini_pick_above(q, (int)slot, q->heap[(i - 1) / 2]); i = (i - 1) / 2)
    q->heap[i] = q->heap[(i - 1) / 2];
  q->heap[i] = (int)slot;
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
  for (int i = 0; i < n && 2 * (i + 1) < q->most; i++)
    if (f->limit[f->prefer[i]] > 1 &&
        eini_vector_first(f, f->prefer[i], tasks, even, nd, divisor, cut))
      eini_pick_add(dc, f, q, cut, 1);
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
  if (q->kept_out > 0 || q->steps > q->effort)
    EINI_TRY(eini_vectors_first(dc, f, tasks, even, nd, divisor, q));
  for (int k = 0; k < dc->ndivisor && eini_all_divisors(dc->desc); k++) {
    if (dc->divisor[k] >= tasks) break;
    nd = eini_divisors(dc->divisor[k], divisor);
    EINI_TRY(eini_vectors_of(dc, f, dc->divisor[k], paper, nd, divisor, q));
  }
  if (f->hint != NULL) eini_pick_add(dc, f, q, f->hint, 1);
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
    int64_t slot = q->heap[0];
    if (n > 0) memcpy(w->cut + k * n, q->cut + slot * n, (size_t)n * sizeof *w->cut);
    q->heap[0] = q->heap[k];
    eini_pick_sink(q, k, 0);
  }
  w->n = q->n;
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

// What tells way `way` from others of the same vector: its digits on every edge it may have. In
// limited memory also what lies where: those of inputs; and digits of even pieces of free indices,
// and of reduced ones, are alike among themselves.
static int64_t eini_way_signature(const eini_decomposer *dc, const eini_dform *f, int64_t way,
                                  int64_t *digit) {
  int limited = dc->machine.memory > 0, nindex = f->s->nindex;
  int moved = limited || dc->desc->cost >= EIN_COST_BYTES;
  const int64_t *cut = f->ways.cut + way * nindex;
  const int *order = f->ways.order + way * nindex;
  int64_t n = 0;
  for (int k = -1; k < f->s->noperand; k++) {
    int held = limited && k >= 0 && dc->desc->inputs != EIN_INPUTS_OUTSIDE &&
               dc->g->tensor[f->s->operand[k]].role == EIN_ROLE_INPUT;
    if (!held && !f->active[k < 0 ? f->s->noperand : k]) continue;
    n += eini_way_digits(f, way, k, moved, digit + n);
    digit[n++] = -2;
  }
  for (int i = 0, last = 0; i < f->ways.norder[way] && limited; i++) {
    int c = order[i], even = f->s->index[c].extent % cut[c] == 0;
    int kind = !even ? c + 1 : c < f->s->nfree ? -3 : -4;
    if (kind < 0 && kind == last) {
      digit[n - 1] *= cut[c];
      continue;
    }
    digit[n++] = last = kind;
    digit[n++] = cut[c];
  }
  return n;
}

#define EINI_ORDERS_MAX 120   // of one vector
#define EINI_ORDERS_TRIED 720  // it takes more than six cut indices to have more

// Scratch of the orders of one vector.
typedef struct eini_orders {
  int64_t room, *digits, *length;  // signatures, room entries each
  int *rank;               // the permutation: numbers of cut indices, the preferred first
} eini_orders;

// Adds a vector with the orders that matter, those that differ on an edge, the preferred one first.
// from, to: which of them, as numbers; what was added before counts.
static ein_status eini_way_orders(eini_decomposer *dc, eini_dform *f, const int64_t *vector,
                                  int64_t from, int64_t to, eini_orders *o) {
  eini_ways *w = &f->ways;
  int n = f->s->nindex, nfree = f->s->nfree, m = 0, tried = 0, cuts[64];
  int64_t found = 0;
  for (int i = 0; i < n; i++) {
    int c = !f->pinned ? f->prefer[i] : i < n - nfree ? nfree + i : i - (n - nfree);
    if (vector[c] > 1) cuts[m++] = c;
  }
  int only = f->pinned || f->fixed != NULL ||
             (dc->desc->cost <= EIN_COST_PAPER_CODE && dc->machine.memory <= 0);
  for (int i = 0; i < m; i++) o->rank[i] = i;
  do {
    dc->cut_short |= w->n == w->cap;
    if (w->n == w->cap) break;
    int *order = w->order + w->n * n;
    int64_t *mine = o->digits + found * o->room, again = 0;
    if (n > 0) memcpy(w->cut + w->n * n, vector, (size_t)n * sizeof *vector);
    for (int i = 0; i < m; i++) order[i] = f->fixed != NULL ? f->fixed->order[i] : cuts[o->rank[i]];
    w->norder[w->n] = m;
    o->length[found] = only ? 0 : eini_way_signature(dc, f, w->n, mine);
    while (again < found && (o->length[again] != o->length[found] ||
                             memcmp(o->digits + again * o->room, mine,
                                    (size_t)o->length[found] * sizeof *mine) != 0)) again++;
    if (again == found) {
      w->n += found >= from && found < to;
      if (++found == to || found == EINI_ORDERS_MAX) break;
    }
    if (only) return EIN_OK;
  } while (++tried < EINI_ORDERS_TRIED && eini_permute(o->rank, m));
  dc->cut_short |= to > 1 && !only && eini_permute(o->rank, m);
  return EIN_OK;
}

// Gives the vectors their rules of placement, keeping `most` ways: first the preferred order of
// half as many vectors, then what else there is. A pinned tensor's statement puts the reduced
// indices first, so that its blocks lie as the pin says.
static ein_status eini_ways_place(eini_decomposer *dc, eini_dform *f, const eini_ways *have,
                                  eini_ways *w, eini_orders *o) {
  int n = f->s->nindex;
  int64_t first = eini_min64(have->n, (w->cap + 1) / 2), i, cells;
  o->room = 2 * ((int64_t)n + 1) * (f->s->noperand + 2);
  w->n = 0;
  f->ways = *w;
  for (i = 0; i < first; i++) EINI_TRY(eini_way_orders(dc, f, have->cut + i * n, 0, 1, o));
  for (i = 0; i < have->n && f->ways.n < w->cap; i++)
    EINI_TRY(eini_way_orders(dc, f, have->cut + i * n, i < first, EINI_ORDERS_MAX, o));
  dc->cut_short |= i < have->n;
  w->n = f->ways.n;
  cells = w->n * n;
  f->ways.cap = w->n;
  f->ways.cut = EINI_NEW(&dc->arena, int64_t, cells);
  f->ways.order = EINI_NEW(&dc->arena, int, cells);
  f->ways.norder = EINI_NEW(&dc->arena, int, w->n);
  if (f->ways.cut == NULL || f->ways.order == NULL || f->ways.norder == NULL)
    return EIN_ERR_NO_MEMORY;
  if (n > 0) memcpy(f->ways.cut, w->cut, (size_t)cells * sizeof *w->cut);
  if (n > 0) memcpy(f->ways.order, w->order, (size_t)cells * sizeof *w->order);
  memcpy(f->ways.norder, w->norder, (size_t)w->n * sizeof *w->norder);
  return EIN_OK;
}

#define EINI_WAYS_MAX 65536

// How many ways of a statement the tables have room for.
static int64_t eini_ways_most(const eini_decomposer *dc) {
  if (dc->desc->max_vectors > 0) return eini_min64(dc->desc->max_vectors, EINI_WAYS_MAX);
  int64_t most = 16, words = (dc->p + 63) / 64, cap = dc->machine.memory > 0 ? 256 : 2048;
  // With a limit to the memory no way can be dropped, so there are fewer from the start.
  if (dc->desc->cost <= EIN_COST_PAPER_CODE) return dc->machine.memory > 0 ? 1024 : 4096;
  while (most < cap && 4 * most * most * words <= (int64_t)1 << 22) most *= 2;
  return most;
}

// Scratch of the ways of one form.
typedef struct eini_formwork {
  eini_pick pick;
  eini_orders orders;
  eini_ways vectors, ways;
} eini_formwork;

static ein_status eini_formwork_make(eini_decomposer *dc, int64_t most, eini_formwork *w) {
  eini_arena *a = &dc->arena;
  int64_t n = 1, room = 1;
  memset(w, 0, sizeof *w);
  for (int i = 0; i < dc->nnode; i++) {
    const eini_stmt *s = dc->node[i].s;
    n = eini_max64(n, s->nindex);
    room = eini_max64(room, 2 * ((int64_t)s->nindex + 1) * (s->noperand + 2));
  }
  most = eini_min64(most, eini_max64(4096, ((int64_t)1 << 23) / n));
  w->pick.most = most + 1;
  w->pick.cut = EINI_NEW(a, int64_t, w->pick.most * n);
  w->pick.rank = EINI_NEW(a, double, w->pick.most);
  w->pick.seq = EINI_NEW(a, int64_t, w->pick.most);
  w->pick.heap = EINI_NEW(a, int, w->pick.most);
  w->orders.digits = EINI_NEW(a, int64_t, room * (EINI_ORDERS_MAX + 1));
  w->orders.length = EINI_NEW(a, int64_t, EINI_ORDERS_MAX + 1);
  w->orders.rank = EINI_NEW(a, int, n);
  w->vectors.cut = EINI_NEW(a, int64_t, w->pick.most * n);
  w->ways.cap = most;
  w->ways.cut = EINI_NEW(a, int64_t, (most + 1) * n);
  w->ways.order = EINI_NEW(a, int, (most + 1) * n);
  w->ways.norder = EINI_NEW(a, int, most + 1);
  return w->pick.cut == NULL || w->pick.rank == NULL || w->pick.seq == NULL ||
         w->pick.heap == NULL || w->orders.digits == NULL || w->orders.length == NULL ||
         w->orders.rank == NULL || w->vectors.cut == NULL || w->ways.cut == NULL ||
         w->ways.order == NULL || w->ways.norder == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_forms_make(eini_decomposer *dc) {
  eini_formwork work;
  EINI_TRY(eini_formwork_make(dc, eini_ways_most(dc), &work));
  uint64_t mask = 16;
  while (mask < 2 * (uint64_t)dc->nnode) mask *= 2;
  int *slot = EINI_NEW(&dc->arena, int, (int64_t)mask--);  // the first node of a form, + 1
  if (slot == NULL) return EIN_ERR_NO_MEMORY;
  dc->effort = EINI_VECTORS_TOTAL;
  for (int i = 0; i < dc->nnode; i++) {
    uint64_t at = eini_form_hash(dc->g, dc->node[i].s) & mask;
    while (slot[at] != 0 && !eini_same_form(dc, slot[at] - 1, i)) at = (at + 1) & mask;
    if (slot[at] == 0) slot[at] = i + 1;
    dc->form_of[i] = slot[at] - 1;
    if (slot[at] != i + 1) continue;
    eini_dform *f = &dc->node[i];
    int pin = i >= dc->nnode - dc->npinned;
    EINI_TRY(eini_vectors_make(dc, f, i, &work.pick, &work.vectors));
    EINI_TRY(eini_ways_place(dc, f, &work.vectors, &work.ways, &work.orders));
    EINI_TRY(eini_form_costs(dc, f));
    if (pin) f->unary[0] = f->join[0] = f->seconds[0] = f->least = 0;
    dc->nform++;
    dc->nvector += f->ways.n;
  }
  return EIN_OK;
}

// ================================================================================================
// >>tables  what edges cost, ways that are never needed, and the linearisation
// Takes the ways of all forms; gives the net of tables whose least sum is searched.
// ================================================================================================

static const eini_dform *eini_form(const eini_decomposer *dc, int node) {
  return &dc->node[dc->form_of[node]];
}

// Repartition for the classes of an edge.
static ein_status eini_edge_repart(eini_decomposer *dc, eini_edgework *w) {
  const eini_stmt *x = w->x->s, *y = w->y->s;
  int rank = x->out_map.rows, na = w->a.set.n, nb = w->b.set.n, n = rank + 1;
  int64_t *one = EINI_NEW(&dc->arena, int64_t, x->nindex);
  double *have = EINI_NEW(&dc->arena, double, (int64_t)(na + 1) * n);
  double *need = EINI_NEW(&dc->arena, double, (int64_t)nb * n);
  if (one == NULL || have == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  double *whole = have + na * n;
  for (int c = 0; c < x->nindex; c++) one[c] = 1;
  eini_paper_sides(x, -1, one, whole);
  for (int a = 0; a < na; a++)
    eini_paper_sides(x, -1, w->x->ways.cut + w->a.set.first[a] * x->nindex, have + a * n);
  for (int b = 0; b < nb; b++)
    eini_paper_sides(y, w->k, w->y->ways.cut + w->b.set.first[b] * y->nindex, need + b * n);
  for (int a = 0; a < na; a++)
    for (int b = 0; b < nb; b++)
      w->cost[(int64_t)a * nb + b] = eini_paper_repart(
          rank, whole, have + a * n, need + b * n, dc->desc->cost == EIN_COST_PAPER_CODE);
  return EIN_OK;
}

// The costs of an edge for all ways of its producer and its reader.
static ein_status eini_edge_table(eini_decomposer *dc, eini_sums *net, const eini_dedge *e,
                                  int *id) {
  eini_edgework w;
  int size[2];
  memset(&w, 0, sizeof w);
  w.x = eini_form(dc, e->x);
  w.y = eini_form(dc, e->y);
  w.k = e->k;
  EINI_TRY(eini_edgework_make(dc, &w));
  size[0] = (int)w.x->ways.n;
  size[1] = (int)w.y->ways.n;
  double bytes = eini_element_bytes(dc, w.x->s->out);
  const ein_machine *m = &dc->machine;
  if (dc->desc->cost < EIN_COST_BYTES) EINI_TRY(eini_edge_repart(dc, &w));
  else EINI_TRY(eini_edge_count(dc, &w));
  for (int64_t i = 0; i < (int64_t)w.a.set.n * w.b.set.n; i++) {
    if (dc->desc->cost == EIN_COST_BYTES) w.cost[i] *= bytes;
    if (dc->desc->cost == EIN_COST_SECONDS)
      w.cost[i] = w.cost[i] > 0 ? m->latency + w.cost[i] * bytes / m->bandwidth : 0;
  }
  // Classes are numbered as their ways first come: where all differ they are the ways.
  if (w.a.set.n == size[0] && w.b.set.n == size[1])
    return eini_sums_table(net, 2, size, w.cost, id);
  double *v = EINI_NEW(&dc->arena, double, w.x->ways.n * w.y->ways.n);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t a = 0; a < size[0]; a++)
    for (int64_t b = 0; b < size[1]; b++)
      v[a * size[1] + b] = w.cost[(int64_t)w.a.set.of[a] * w.b.set.n + w.b.set.of[b]];
  return eini_sums_table(net, 2, size, v, id);
}

// Every producer of every operand, each operand once.
static ein_status eini_edges_find(eini_decomposer *dc, eini_edges *q) {
  const ein_graph *g = dc->g;
  int *head = EINI_NEW(&dc->arena, int, g->ntensor), *next = EINI_NEW(&dc->arena, int, dc->nnode);
  if (head == NULL || next == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) head[t] = -1;
  for (int i = dc->nnode - 1; i >= 0; i--) {
    next[i] = head[dc->node[i].s->out];
    head[dc->node[i].s->out] = i;
  }
  for (int y = 0; y < dc->nnode - dc->npinned; y++) {
    const eini_stmt *s = dc->node[y].s;
    for (int k = 0; k < s->noperand; k++) {
      if (dc->node[y].again[k]) continue;
      for (int x = head[s->operand[k]]; x >= 0; x = next[x]) {
        dc->node[y].active[k] = 1;
        dc->node[x].active[dc->node[x].s->noperand] = 1;
        eini_dedge *e = (eini_dedge *)eini_grow(&dc->arena, q->e, q->n, &q->cap, sizeof *e);
        if (e == NULL) return EIN_ERR_NO_MEMORY;
        q->e = e;
        e[q->n].x = x;
        e[q->n].y = y;
        e[q->n++].k = k;
      }
    }
  }
  return EIN_OK;
}

// ---- inputs that are not pinned ----

typedef struct eini_read {
  int node, k;             // operand k of statement `node`
} eini_read;

typedef struct eini_reads {
  int64_t *at;             // [tensor + 1] where its reads begin; pinned inputs and others have none
  eini_read *list;         // in the order of statements
} eini_reads;

static int eini_reads_has(const eini_decomposer *dc, int tensor) {
  if (dc->g->tensor[tensor].role != EIN_ROLE_INPUT) return 0;
  for (int i = dc->nnode - dc->npinned; i < dc->nnode; i++)
    if (dc->node[i].s->out == tensor) return 0;
  return 1;
}

// Who reads which input that is not pinned, each operand once.
static ein_status eini_reads_find(eini_decomposer *dc, eini_reads *r) {
  int64_t ntensor = dc->g->ntensor, n = 0;
  unsigned char *has = EINI_NEW(&dc->arena, unsigned char, ntensor);
  for (int i = 0; i < dc->nnode; i++) n += dc->node[i].s->noperand;
  r->at = EINI_NEW(&dc->arena, int64_t, ntensor + 2);
  r->list = EINI_NEW(&dc->arena, eini_read, n);
  if (has == NULL || r->at == NULL || r->list == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < ntensor; t++) has[t] = (unsigned char)eini_reads_has(dc, t);
  for (int pass = 0; pass < 2; pass++) {  // count, then list: at[t + 1] is where t's next one goes
    for (int i = 0; i < dc->nnode - dc->npinned; i++) {
      const eini_stmt *s = dc->node[i].s;
      for (int k = 0; k < s->noperand; k++) {
        int t = s->operand[k];
        if (!has[t] || dc->node[i].again[k]) continue;
        if (pass == 0) r->at[t + 2]++;
        if (pass == 0) continue;
        eini_read *x = &r->list[r->at[t + 1]++];
        x->node = i;
        x->k = k;
      }
    }
    for (int64_t t = 0; t < ntensor && pass == 0; t++) r->at[t + 2] += r->at[t + 1];
  }
  return EIN_OK;
}

// Finds the edges that need a table of their own.
static ein_status eini_edges_share(eini_decomposer *dc, eini_edges *q) {
  uint64_t mask = 16;
  while (mask < 2 * (uint64_t)q->n) mask *= 2;
  int64_t *slot = EINI_NEW(&dc->arena, int64_t, (int64_t)mask--);
  q->shared = EINI_NEW(&dc->arena, int64_t, q->n);
  if (slot == NULL || q->shared == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < q->n; i++) {
    eini_dedge *e = &q->e[i];
    int key[3];
    key[0] = dc->form_of[e->x], key[1] = dc->form_of[e->y], key[2] = e->k;
    uint64_t at = eini_hash(key, sizeof key, 0) & mask;
    for (; slot[at] != 0; at = (at + 1) & mask) {
      const eini_dedge *o = &q->e[slot[at] - 1];
      if (dc->form_of[o->x] == key[0] && dc->form_of[o->y] == key[1] && o->k == e->k) break;
    }
    if (slot[at] == 0) {
      slot[at] = i + 1;
      q->shared[q->nshared++] = i;
    }
    e->alike = slot[at] - 1;
  }
  return EIN_OK;
}

#define EINI_BEAM_CELLS ((int64_t)1 << 24)  // labels that a beam has in all, about
#define EINI_EDGES_CELLS 33554432.0  // of all edges' tables, about

// Leaves the last ways of all forms out as long as their tables together take too much.
static void eini_edges_fit(eini_decomposer *dc, const eini_edges *q) {
  int moved = dc->desc->cost >= EIN_COST_BYTES;
  double words = moved ? (double)((dc->p + 63) / 64) : 1, room = EINI_EDGES_CELLS;
  if (moved || dc->desc->max_vectors > 0) room *= 2;
  for (;;) {
    double cells = 0;
    int64_t longest = 0;
    for (int64_t k = 0; k < q->nshared; k++) {
      int64_t x = eini_form(dc, q->e[q->shared[k]].x)->ways.n;
      int64_t y = eini_form(dc, q->e[q->shared[k]].y)->ways.n;
      cells += (double)x * (double)y * words;
      longest = eini_max64(longest, eini_max64(x, y));
    }
    if (cells <= room || longest <= 16) return;
    int64_t most = longest / 2;
    for (int i = 0; i < dc->nnode; i++) {
      eini_ways *w = &dc->node[i].ways;
      dc->cut_short |= w->n > most;
      w->n = eini_min64(w->n, most);
    }
  }
}

#define EINI_TABLE_MAX 67108864.0

static ein_status eini_sums_make(eini_decomposer *dc, eini_edges *q, eini_sums *net) {
  double most = dc->desc->max_table > 0 ? dc->desc->max_table : 4194304;
  if (most > EINI_TABLE_MAX) most = EINI_TABLE_MAX;
  int *unary = EINI_NEW(&dc->arena, int, dc->nnode), id;
  if (unary == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_sums_init(net, &dc->arena, dc->nnode, most));
  for (int i = 0; i < dc->nnode; i++) {
    const eini_dform *f = eini_form(dc, i);
    net->size[i] = (int)f->ways.n;
    if (dc->form_of[i] == i) EINI_TRY(eini_sums_table(net, 1, &net->size[i], f->unary, &unary[i]));
    EINI_TRY(eini_sums_factor(net, unary[dc->form_of[i]], &i, &id));
  }
  for (int64_t k = 0; k < q->nshared; k++) {
    eini_dedge *e = &q->e[q->shared[k]];
    EINI_TRY(eini_edge_table(dc, net, e, &e->table));
  }
  for (int64_t i = 0; i < q->n; i++) {
    eini_dedge *e = &q->e[i];
    int var[2];
    e->table = q->e[e->alike].table;
    var[0] = e->x;
    var[1] = e->y;
    EINI_TRY(eini_sums_factor(net, e->table, var, &id));
  }
  net->norig = (int)net->nfactor;
  return EIN_OK;
}

// ---- ways that are never needed -----------------------------------------------------------------

// A way goes when another of its form costs no more whatever the neighbours' ways are: some least
// sum does without it. Ways gone from neighbours make more go.

// One edge as form `mine` meets it: costs [way of mine][way of other], of table and, in scratch,
// with both in this order.
typedef struct eini_dview {
  int id, other;           // id: 2 * table + (mine is the reader)
  int64_t step;            // between ways of mine
  const double *v;
} eini_dview;

typedef struct eini_drop {
  eini_decomposer *dc;
  const eini_edges *q;
  const eini_sums *net;
  int **left, *nleft;      // [form] its ways that are left
  int *at, *list;          // [node] its views: ids; forms of the other sides
  int *other;
  eini_dview *view;        // of a form: those of all its kinds of nodes, one after the other
  int nview, *kind, nkind;  // kind: where each begins, and the end
  int *favourite;          // [way][view] way of the other with the least cost
  double *best;            // [way] its least cost in one kind, all neighbours at their favourites
  double *scratch;
  int64_t room;            // of scratch
} eini_drop;

static ein_status eini_drop_make(eini_drop *t) {
  eini_decomposer *dc = t->dc;
  eini_arena *a = &dc->arena;
  t->left = EINI_NEW(a, int *, dc->nnode);
  t->nleft = EINI_NEW(a, int, dc->nnode);
  t->at = EINI_NEW(a, int, dc->nnode + 2);
  t->list = EINI_NEW(a, int, 2 * t->q->n);
  t->other = EINI_NEW(a, int, 2 * t->q->n);
  t->view = EINI_NEW(a, eini_dview, 2 * t->q->n);
  t->kind = EINI_NEW(a, int, dc->nnode + 1);
  if (t->left == NULL || t->nleft == NULL || t->at == NULL || t->list == NULL ||
      t->other == NULL || t->view == NULL || t->kind == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t e = 0; e < t->q->n; e++) {
    t->at[t->q->e[e].x + 2]++;
    t->at[t->q->e[e].y + 2]++;
  }
  for (int i = 0; i < dc->nnode; i++) t->at[i + 2] += t->at[i + 1];
  for (int64_t e = 0; e < t->q->n; e++) {
    for (int side = 0; side < 2; side++) {
      int k = t->at[(side ? t->q->e[e].y : t->q->e[e].x) + 1]++;
      t->list[k] = 2 * t->q->e[e].table + side;
      t->other[k] = dc->form_of[side ? t->q->e[e].x : t->q->e[e].y];
    }
  }
  for (int i = 0; i < dc->nnode; i++) {
    if (dc->form_of[i] != i) continue;
    t->nleft[i] = (int)dc->node[i].ways.n;
    t->left[i] = EINI_NEW(a, int, t->nleft[i]);
    if (t->left[i] == NULL) return EIN_ERR_NO_MEMORY;
    for (int w = 0; w < t->nleft[i]; w++) t->left[i][w] = w;
  }
  return EIN_OK;
}

// The kinds of nodes of a form: those of one kind have the same tables around them.
static void eini_drop_kinds(eini_drop *t, int form) {
  t->nview = t->nkind = t->kind[0] = 0;
  for (int i = form; i < t->dc->nnode; i++) {
    int n = t->at[i + 1] - t->at[i], k = 0;
    if (t->dc->form_of[i] != form) continue;
    for (; k < t->nkind; k++) {
      int same = t->kind[k + 1] - t->kind[k] == n;
      for (int j = 0; j < n && same; j++)
        same = t->view[t->kind[k] + j].id == t->list[t->at[i] + j];
      if (same) break;
    }
    if (k < t->nkind) continue;
    for (int j = 0; j < n; j++) {
      t->view[t->nview].id = t->list[t->at[i] + j];
      t->view[t->nview++].other = t->other[t->at[i] + j];
    }
    t->kind[++t->nkind] = t->nview;
  }
}

// Costs of the views: rows of the ways that are left, so that those of the others are neighbours.
static ein_status eini_drop_views(eini_drop *t, int form) {
  int ways = t->net->size[form], n = t->nleft[form];
  int64_t need = 0;
  for (int k = 0; k < t->nview; k++) need += (int64_t)n * t->nleft[t->view[k].other];
  if (need > t->room) {
    t->room = need;
    t->scratch = EINI_NEW(&t->dc->arena, double, need);
    if (t->scratch == NULL) return EIN_ERR_NO_MEMORY;
  }
  double *to = t->scratch;
  for (int k = 0; k < t->nview; k++) {
    eini_dview *o = &t->view[k];
    const int *mine = t->left[form], *other = t->left[o->other];
    const double *v = t->net->table[o->id / 2].v;
    int count = t->nleft[o->other], same = -1;
    for (int j = 0; j < k && same < 0; j++)
      if (t->view[j].id == o->id) same = j;
    o->step = count;
    o->v = same >= 0 ? t->view[same].v : to;
    if (same >= 0) continue;
    int64_t width = t->net->size[o->other];
    for (int c0 = 0; c0 < count && o->id % 2 == 1; c0 += 16)  // transposed by strips
      for (int w = 0; w < n; w++)
        for (int c = c0; c < count && c < c0 + 16; c++)
          to[(int64_t)w * count + c] = v[(int64_t)other[c] * ways + mine[w]];
    for (int w = 0; w < n && o->id % 2 == 0; w++)
      for (int c = 0; c < count; c++)
        to[(int64_t)w * count + c] = v[mine[w] * width + other[c]];
    to += (int64_t)n * count;
  }
  t->favourite = EINI_NEW(&t->dc->arena, int, (int64_t)n * t->nview);
  t->best = EINI_NEW(&t->dc->arena, double, n);
  if (t->favourite == NULL || t->best == NULL) return EIN_ERR_NO_MEMORY;
  for (int w = 0; w < n; w++) {
    t->best[w] = t->dc->node[form].unary[t->left[form][w]];
    for (int k = 0; k < t->nview; k++) {
      const double *row = t->view[k].v + w * t->view[k].step;
      int least = 0;
      for (int c = 1; c < t->view[k].step; c++)
        if (row[c] < row[least]) least = c;
      t->favourite[(int64_t)w * t->nview + k] = least;
      if (k < t->kind[1]) t->best[w] += row[least];
    }
  }
  return EIN_OK;
}

// Does way w (of those left) never cost less than way u, for nodes of a kind? more: w's own cost
// above u's.
static int eini_drop_above(const eini_drop *t, int kind, int w, int u, double more) {
  const int *favourite = t->favourite + (int64_t)w * t->nview;
  for (int k = t->kind[kind]; k < t->kind[kind + 1]; k++) {
    const eini_dview *o = &t->view[k];
    more += o->v[w * o->step + favourite[k]] - o->v[u * o->step + favourite[k]];
  }
  for (int k = t->kind[kind]; k < t->kind[kind + 1] && more >= 0; k++) {
    const eini_dview *o = &t->view[k];
    const double *a = o->v + w * o->step, *b = o->v + u * o->step;
    double at = a[favourite[k]] - b[favourite[k]], least = at;
    for (int c = 0; c < o->step; c++) {
      double x = a[c] - b[c];
      least = x < least ? x : least;
    }
    more += least - at;
  }
  return more >= 0;
}

#define EINI_DROP_TRIES 64  // ways that one is compared with: those that can cost least

// Drops ways of a form; returns how many.
static ein_status eini_drop_form(eini_drop *t, int form, int *dropped) {
  const double *unary = t->dc->node[form].unary;
  int n = t->nleft[form], *left = t->left[form], kept = 0, ntry = 0;
  int tries[EINI_DROP_TRIES];
  if (n == 1) return EIN_OK;
  eini_drop_kinds(t, form);
  EINI_TRY(eini_drop_views(t, form));
  for (int w = 0; w < n; w++) {  // the least, in order
    int i = ntry < EINI_DROP_TRIES ? ntry++ : ntry;
    if (i == ntry && t->best[w] >= t->best[tries[--i]]) continue;
    for (; i > 0 && t->best[w] < t->best[tries[i - 1]]; i--) tries[i] = tries[i - 1];
    tries[i] = w;
  }
  for (int w = n - 1; w >= 0; w--) {
    for (int i = 0; i < ntry && left[w] >= 0; i++) {
      int u = tries[i], above = u != w && left[u] >= 0;
      for (int k = 0; k < t->nkind && above; k++)
        above = eini_drop_above(t, k, w, u, unary[left[w]] - unary[left[u]]);
      if (above) left[w] = -1;
    }
  }
  for (int w = 0; w < n; w++)
    if (left[w] >= 0) left[kept++] = left[w];
  t->nleft[form] = kept;
  *dropped += n - kept;
  return EIN_OK;
}

// Forms and tables of the ways that are left.
static ein_status eini_drop_apply(eini_drop *t, eini_sums *net) {
  eini_decomposer *dc = t->dc;
  for (int64_t k = 0; k < t->q->nshared; k++) {
    const eini_dedge *e = &t->q->e[t->q->shared[k]];
    int x = dc->form_of[e->x], y = dc->form_of[e->y];
    eini_sumtable *table = &net->table[e->table];
    double *v = EINI_NEW(&dc->arena, double, (int64_t)t->nleft[x] * t->nleft[y]);
    if (v == NULL) return EIN_ERR_NO_MEMORY;
    for (int a = 0; a < t->nleft[x]; a++)
      for (int b = 0; b < t->nleft[y]; b++)
        v[(int64_t)a * t->nleft[y] + b] =
            table->v[(int64_t)t->left[x][a] * table->size[1] + t->left[y][b]];
    table->v = v;
    table->size[0] = t->nleft[x];
    table->size[1] = t->nleft[y];
  }
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    net->size[i] = t->nleft[dc->form_of[i]];
    if (dc->form_of[i] != i) continue;
    size_t n = (size_t)f->s->nindex;
    for (int w = 0; w < t->nleft[i]; w++) {
      int from = t->left[i][w];
      if (n > 0) {
        memmove(f->ways.cut + w * (int64_t)n, f->ways.cut + from * (int64_t)n, n * sizeof(int64_t));
        memmove(f->ways.order + w * (int64_t)n, f->ways.order + from * (int64_t)n, n * sizeof(int));
      }
      f->ways.norder[w] = f->ways.norder[from];
      f->join[w] = f->join[from];
      f->agg[w] = f->agg[from];
      f->seconds[w] = f->seconds[from];
      f->unary[w] = f->unary[from];
    }
    f->ways.n = t->nleft[i];
    net->table[net->factor[i].table].size[0] = t->nleft[i];
  }
  return EIN_OK;
}

static ein_status eini_drop_ways(eini_decomposer *dc, const eini_edges *q, eini_sums *net) {
  eini_drop t;
  int dropped = 1;
  memset(&t, 0, sizeof t);
  t.dc = dc;
  t.q = q;
  t.net = net;
  EINI_TRY(eini_drop_make(&t));
  for (int round = 0; round < 4 && dropped > 0; round++) {
    dropped = 0;
    for (int i = 0; i < dc->nnode; i++)
      if (dc->form_of[i] == i) EINI_TRY(eini_drop_form(&t, i, &dropped));
  }
  return eini_drop_apply(&t, net);
}

// ---- the paper's linearisation ------------------------------------------------------------------

// The longest paths that end at nodes without labels, through such nodes.
typedef struct eini_paths {
  int *length, *from;      // [node] nodes of its path; the edge it ends with, or -1
  int64_t *in, *out;       // [node] where its edges begin as a reader (they are in this order) and,
  int *reader;             //   in `reader`, its readers
  unsigned char *stale;    // a node before it has got a label
  int *path, **arg;        // of one path
  double **m;
} eini_paths;

static ein_status eini_paths_make(eini_decomposer *dc, const eini_edges *q, eini_paths *p) {
  int n = dc->nnode;
  p->length = EINI_NEW(&dc->arena, int, n);
  p->from = EINI_NEW(&dc->arena, int, n);
  p->in = EINI_NEW(&dc->arena, int64_t, n + 1);
  p->out = EINI_NEW(&dc->arena, int64_t, n + 2);
  p->reader = EINI_NEW(&dc->arena, int, q->n);
  p->stale = EINI_NEW(&dc->arena, unsigned char, n);
  p->path = EINI_NEW(&dc->arena, int, n);
  p->arg = EINI_NEW(&dc->arena, int *, n);
  p->m = EINI_NEW(&dc->arena, double *, n);
  if (p->length == NULL || p->from == NULL || p->in == NULL || p->out == NULL ||
      p->reader == NULL || p->stale == NULL || p->path == NULL || p->arg == NULL || p->m == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < q->n; k++) {
    p->in[q->e[k].y + 1]++;
    p->out[q->e[k].x + 2]++;
  }
  for (int i = 0; i < n; i++) {
    p->in[i + 1] += p->in[i];
    p->out[i + 2] += p->out[i + 1];
  }
  for (int64_t k = 0; k < q->n; k++) p->reader[p->out[q->e[k].x + 1]++] = q->e[k].y;
  return EIN_OK;
}

// The longest path that ends at a node without a label, from those of the nodes before it.
static void eini_paths_find(const eini_edges *q, const int *label, eini_paths *p, int node) {
  p->length[node] = 1;
  p->from[node] = -1;
  for (int64_t k = p->in[node]; k < p->in[node + 1]; k++) {
    int x = q->e[k].x;
    if (label[x] >= 0 || p->length[x] < p->length[node]) continue;
    p->length[node] = p->length[x] + 1;
    p->from[node] = (int)k;
  }
}

// Marks the readers of a node; returns how many more are marked.
static int eini_path_readers(const int *label, eini_paths *p, int node, int *first) {
  int more = 0;
  for (int64_t k = p->out[node]; k < p->out[node + 1]; k++) {
    int y = p->reader[k];
    if (label[y] >= 0 || p->stale[y]) continue;
    p->stale[y] = 1;
    *first = y < *first ? y : *first;
    more++;
  }
  return more;
}

// The nodes of a path have got labels: paths through them end, and become shorter behind them.
static void eini_paths_update(const eini_edges *q, const int *label, eini_paths *p, int npath) {
  int x = INT_MAX, left = 0;
  for (int i = 0; i < npath; i++) left += eini_path_readers(label, p, p->path[i], &x);
  for (; left > 0; x++) {  // readers come later
    int before = p->length[x];
    if (!p->stale[x]) continue;
    p->stale[x] = 0;
    left--;
    eini_paths_find(q, label, p, x);
    if (p->length[x] != before) left += eini_path_readers(label, p, x, &x);
  }
}

// Dynamic programme along the path that ends at `last`; edges between paths do not count
// (EinDecomp, section 8). Returns its length, -1 without memory.
static int eini_linear_path(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                            eini_paths *p, int last, int *label) {
  double **m = p->m;
  int **arg = p->arg, *path = p->path, n = 0;
  for (int at = last; at >= 0; at = p->from[at] < 0 ? -1 : q->e[p->from[at]].x) path[n++] = at;
  for (int i = n - 1; i >= 0; i--) {
    int y = path[i], ky = net->size[y];
    m[i] = EINI_NEW(&dc->arena, double, ky);
    arg[i] = EINI_NEW(&dc->arena, int, ky);
    if (m[i] == NULL || arg[i] == NULL) return -1;
    for (int b = 0; b < ky; b++) {
      m[i][b] = eini_form(dc, y)->unary[b];
      if (i == n - 1) continue;
      const double *v = net->table[q->e[p->from[y]].table].v;
      double best = INFINITY;
      for (int a = 0; a < net->size[path[i + 1]]; a++) {
        double x = m[i + 1][a] + v[(int64_t)a * ky + b];
        if (x >= best) continue;
        best = x;
        arg[i][b] = a;
      }
      m[i][b] += best;
    }
  }
  label[last] = 0;
  for (int b = 1; b < net->size[last]; b++)
    if (m[0][b] < m[0][label[last]]) label[last] = b;
  for (int i = 0; i + 1 < n; i++) label[path[i + 1]] = arg[i][label[path[i]]];
  return n;
}

// Takes the longest path of nodes without labels, of equal ones that which ends first, then the
// next. Lengths never grow: one walk over the nodes takes all paths of a length.
static ein_status eini_linear(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                              int *label) {
  eini_paths p;
  EINI_TRY(eini_paths_make(dc, q, &p));
  const eini_arena_at at = eini_arena_mark(&dc->arena);
  for (int i = 0; i < dc->nnode; i++) label[i] = -1;
  for (int i = dc->nnode - dc->npinned; i < dc->nnode; i++) eini_paths_find(q, label, &p, i);
  for (int i = 0; i < dc->nnode - dc->npinned; i++) eini_paths_find(q, label, &p, i);
  for (;;) {
    int most = 0;
    for (int i = 0; i < dc->nnode; i++)
      if (label[i] < 0 && p.length[i] > most) most = p.length[i];
    if (most == 0) return EIN_OK;
    for (int i = 0; i < dc->nnode; i++) {
      if (label[i] >= 0 || p.length[i] != most) continue;
      int npath = eini_linear_path(dc, q, net, &p, i, label);
      if (npath < 0) return EIN_ERR_NO_MEMORY;
      eini_paths_update(q, label, &p, npath);
      eini_arena_rollback(&dc->arena, &at);
    }
  }
}

// ================================================================================================
// >>place-memory  the least cost that fits the memory of a place
// Takes the tables of the search and its answer without a limit; gives labels that fit: statements
// in their order, extended one by one, the cheapest kept. A place holds what it reads of inputs
// from the start: their bytes so far and the most of all else so far are part of a state.
// ================================================================================================

// A statement's labels so far, extended by one; costs order them.
typedef struct eini_limchild {
  double cost;
  int from, way;
} eini_limchild;

typedef struct eini_lim {
  eini_decomposer *dc;
  const eini_edges *q;
  const eini_sums *net;
  eini_reads reads;         // of inputs that places hold
  eini_boxes *boxes;        // [tensor] scratch of those
  double *rest;             // [node] bytes of inputs that are first read behind it
  double per_cost, per_byte;  // what orders states: costs, or bytes of the largest tasks
  int *last;                // [node] its last reader; nnode: it stays
  int64_t *at;              // [node] its first edge as a reader; [nnode]: their number
  int64_t *lo, *hi, *from, *to, *nlo, *nhi, *klo, *khi, *s0, *s1;
  int64_t cap;              // states
  int64_t n;
  int *label, *next;        // [state][node]
  double *held, *more;      // [state][3][place] blocks; the most of them with tasks; inputs
  double *cost, *mine;      // [state]
  uint64_t *shared;         // [state] see eini_lim_shared
  int *slot;                // hash table over the states of a step, by the labels of what lives on
  int64_t nslot;
  int *key;
  int cut_short;            // states fell out
  double limit;             // bytes that a place may have
  double refused, least;    // the least above it that was needed; the least of this statement
  int refused_at;           // where
  int64_t visits;           // places visited so far
} eini_lim;

static int eini_lim_ranges(const eini_lim *t, int x, const int *label, int64_t place, int home,
                           int64_t *lo, int64_t *hi) {
  return eini_way_ranges(eini_form(t->dc, x), label[x], place, home, lo, hi);
}

// Bytes of node x's block at a place.
static double eini_lim_block(const eini_lim *t, int x, const int *label, int64_t place) {
  const eini_stmt *s = t->dc->node[x].s;
  double bytes = eini_element_bytes(t->dc, s->out);
  if (!eini_lim_ranges(t, x, label, place, 1, t->klo, t->khi)) return 0;
  for (int c = 0; c < s->nfree; c++) bytes *= (double)(t->khi[c] - t->klo[c]);
  return bytes;
}

// Bytes of the task's partial result when it is not made in the block; lo, hi: its ranges.
static double eini_partial_at(const ein_graph *g, const eini_stmt *s, const int64_t *cut,
                              const int64_t *lo, const int64_t *hi) {
  double bytes = (double)eini_partial_bytes(g, s);
  int home = 1, cuts = 0;
  for (int c = s->nfree; c < s->nindex; c++) {
    cuts |= cut[c] > 1;
    home &= lo[c] == 0;
  }
  int direct = s->fold < EINI_ARGMAX && g->tensor[s->out].dtype == ein_dtype_compute(s->type);
  if (!cuts || (home && direct)) return 0;
  for (int c = 0; c < s->nfree; c++) bytes *= (double)(hi[c] - lo[c]);
  return bytes;
}

// Bytes that live at a place while statement y runs, its block aside, beside what is held.
static double eini_lim_task(const eini_lim *t, int y, const int *label, int64_t place) {
  const eini_stmt *s = t->dc->node[y].s;
  const eini_dform *f = eini_form(t->dc, y);
  if (!eini_lim_ranges(t, y, label, place, 0, t->lo, t->hi)) return 0;
  double bytes = eini_partial_at(t->dc->g, s, f->ways.cut + (int64_t)label[y] * s->nindex, t->lo,
                                 t->hi);
  for (int64_t e = t->at[y]; e < t->at[y + 1]; e++) {
    const eini_dedge *d = &t->q->e[e];
    const eini_stmt *x = t->dc->node[d->x].s;
    double need, found = 0;
    eini_task_box(s, &s->proj[d->k], t->lo, t->hi, t->from, t->to);
    eini_box_ranges(x, t->from, t->to, t->nlo, t->nhi);
    need = eini_block_in_box(x, t->nlo, t->nhi, t->from, t->to, t->s0, t->s1);
    if (need > 0 && eini_lim_ranges(t, d->x, label, place, 1, t->klo, t->khi))
      found = eini_block_in_box(x, t->klo, t->khi, t->from, t->to, t->s0, t->s1);
    if (need > found) bytes += (need - found) * eini_element_bytes(t->dc, x->out);
  }
  return bytes;
}

// Adds to in[place] what statement y reads of inputs for the first time there.
static void eini_lim_inputs(const eini_lim *t, int y, const int *label, double *in) {
  const eini_decomposer *dc = t->dc;
  const eini_stmt *s = dc->node[y].s;
  for (int k = 0; k < s->noperand; k++) {
    int tensor = s->operand[k], same = 0;
    int64_t first = t->reads.at[tensor], i = first;
    double size = eini_element_bytes(dc, tensor);
    eini_boxes *u = &t->boxes[tensor];
    for (; i < t->reads.at[tensor + 1]; i++) {
      const eini_read *r = &t->reads.list[i];
      if (r->node == y && r->k == k) break;
      same |= dc->form_of[r->node] == dc->form_of[y] && r->k == k && label[r->node] == label[y];
    }
    if (i == t->reads.at[tensor + 1] || same) continue;
    for (int64_t q = 0; q < dc->p; q++) {
      double before = 0;
      u->n = 0;
      for (int64_t j = first; j <= i; j++) {
        const eini_read *r = &t->reads.list[j];
        const eini_stmt *x = dc->node[r->node].s;
        if (j == i) before = eini_boxes_volume(u);
        if (!eini_lim_ranges(t, r->node, label, q, 0, t->lo, t->hi)) continue;
        if (eini_stmt_points(x, t->lo, t->hi) <= 0) continue;
        eini_task_box(x, &x->proj[r->k], t->lo, t->hi, t->from, t->to);
        eini_boxes_add(u, t->from, t->to);
      }
      in[q] += (eini_boxes_volume(u) - before) * size;
    }
  }
}

// Most bytes at a place up to statement y, and, behind it, what places hold. None can have less
// than the mean with the inputs that are still to be read.
static double eini_lim_need(const eini_lim *t, int y, const int *label, const double *held,
                            double *after) {
  int64_t p = t->dc->p;
  double most = 0, all = t->rest[y];
  memcpy(after + 2 * p, held + 2 * p, (size_t)p * sizeof *held);
  if (t->boxes != NULL) eini_lim_inputs(t, y, label, after + 2 * p);
  for (int64_t q = 0; q < p; q++) {
    double block = eini_lim_block(t, y, label, q);
    double need = held[q] + block + eini_lim_task(t, y, label, q);
    after[q] = held[q] + (t->last[y] == y ? 0 : block);
    after[p + q] = need > held[p + q] ? need : held[p + q];
    need = after[p + q] + after[2 * p + q];
    if (need > most) most = need;
    all += need;
  }
  for (int x = 0; x < t->dc->nnode; x++) {
    if (t->last[x] != y || x == y) continue;
    for (int64_t q = 0; q < p; q++) after[q] -= eini_lim_block(t, x, label, q);
  }
  return all / (double)p > most ? all / (double)p : most;
}

// Is every coordinate of a map one index of its own?
static int eini_lim_plain(const eini_stmt *s, const ein_zmap *m) {
  int64_t coef;
  for (int r = 0; r < m->rows; r++) {
    int c = eini_row_index(m, r, &coef), rows = 0;
    if (c < 0 || (coef != 1 && coef != -1)) return 0;
    for (int q = 0; q < m->rows; q++) rows += m->coef[(int64_t)q * s->nindex + c] != 0;
    if (rows > 1) return 0;
  }
  return 1;
}

// What places hold of inputs: readers, scratch, and how much is still to come.
static ein_status eini_lim_make_inputs(eini_lim *t) {
  eini_decomposer *dc = t->dc;
  const ein_graph *g = dc->g;
  t->rest = EINI_NEW(&dc->arena, double, dc->nnode + 1);
  if (t->rest == NULL) return EIN_ERR_NO_MEMORY;
  if (dc->desc->inputs == EIN_INPUTS_OUTSIDE) return EIN_OK;
  EINI_TRY(eini_reads_find(dc, &t->reads));
  t->boxes = EINI_NEW(&dc->arena, eini_boxes, g->ntensor);
  if (t->boxes == NULL) return EIN_ERR_NO_MEMORY;
  for (int x = 0; x < g->ntensor; x++) {
    if (t->reads.at[x] == t->reads.at[x + 1]) continue;
    EINI_TRY(eini_boxes_init(&dc->arena, g->tensor[x].rank, &t->boxes[x]));
    const eini_read *r = &t->reads.list[t->reads.at[x]];
    const eini_stmt *s = dc->node[r->node].s;
    double bytes = eini_element_bytes(dc, x);  // that it reads in all
    for (int c = 0; c < s->proj[r->k].rows; c++) {
      int64_t coef;
      int i = eini_row_index(&s->proj[r->k], c, &coef);
      bytes *= i < 0 ? 0 : (double)s->index[i].extent;
    }
    if (!eini_lim_plain(s, &s->proj[r->k]) || eini_stmt_empty(s, 0, s->nindex)) continue;
    for (int y = 0; y < r->node; y++) t->rest[y] += bytes;
  }
  return EIN_OK;
}

static ein_status eini_lim_make(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                eini_lim *t) {
  eini_arena *a = &dc->arena;
  int64_t room = 1, ways = 1, **part[10];
  memset(t, 0, sizeof *t);
  t->dc = dc;
  t->q = q;
  t->net = net;
  t->limit = dc->machine.memory;
  for (int i = 0; i < dc->nnode; i++) {
    const eini_stmt *s = dc->node[i].s;
    ways = eini_max64(ways, net->size[i]);
    room = eini_max64(room, s->nindex + s->out_map.rows);
    for (int k = 0; k < s->noperand; k++) room = eini_max64(room, s->nindex + s->proj[k].rows);
  }
  t->cap = ((int64_t)1 << 20) / eini_max64(1, dc->nnode) / dc->p;
  t->cap = eini_min64(t->cap, ((int64_t)1 << 20) / ways);
  t->cap = eini_max64(dc->p <= 65536 ? 16 : 4, t->cap);
  t->last = EINI_NEW(a, int, dc->nnode);
  t->at = EINI_NEW(a, int64_t, dc->nnode + 1);
  t->lo = EINI_NEW(a, int64_t, 10 * ++room);
  t->label = EINI_NEW(a, int, t->cap * dc->nnode);
  t->next = EINI_NEW(a, int, t->cap * dc->nnode);
  t->held = EINI_NEW(a, double, 3 * t->cap * dc->p);
  t->more = EINI_NEW(a, double, 3 * t->cap * dc->p);
  t->cost = EINI_NEW(a, double, t->cap);
  t->mine = EINI_NEW(a, double, t->cap);
  for (t->nslot = 32; t->nslot < 2 * t->cap;) t->nslot *= 2;
  t->slot = EINI_NEW(a, int, t->nslot);
  t->key = EINI_NEW(a, int, dc->nnode);
  t->shared = EINI_NEW(a, uint64_t, t->cap);
  if (t->last == NULL || t->at == NULL || t->lo == NULL || t->label == NULL || t->next == NULL ||
      t->held == NULL || t->more == NULL || t->cost == NULL || t->mine == NULL ||
      t->slot == NULL || t->key == NULL || t->shared == NULL)
    return EIN_ERR_NO_MEMORY;
  part[0] = &t->lo, part[1] = &t->hi, part[2] = &t->from, part[3] = &t->to, part[4] = &t->nlo;
  part[5] = &t->nhi, part[6] = &t->klo, part[7] = &t->khi, part[8] = &t->s0, part[9] = &t->s1;
  for (int i = 1; i < 10; i++) *part[i] = t->lo + i * room;
  for (int i = 0; i < dc->nnode; i++) {
    int pinned = i >= dc->nnode - dc->npinned;
    t->last[i] = pinned || dc->g->tensor[dc->node[i].s->out].role == EIN_ROLE_OUTPUT ? dc->nnode
                                                                                     : i;
  }
  for (int64_t e = 0; e < q->n; e++) {
    t->at[q->e[e].y + 1] = e + 1;
    if (t->last[q->e[e].x] < q->e[e].y) t->last[q->e[e].x] = q->e[e].y;
  }
  for (int i = 0; i < dc->nnode; i++) t->at[i + 1] = eini_max64(t->at[i + 1], t->at[i]);
  return eini_lim_make_inputs(t);
}

// The state before the first statement: pinned inputs have one way.
static void eini_lim_begin(eini_lim *t) {
  const eini_decomposer *dc = t->dc;
  t->n = 1;
  t->cost[0] = 0;
  for (int64_t q = 0; q < 3 * dc->p; q++) t->held[q] = 0;
  for (int x = 0; x < dc->nnode; x++) t->label[x] = 0;
  for (int x = dc->nnode - dc->npinned; x < dc->nnode; x++)
    for (int64_t q = 0; q < dc->p; q++) t->held[q] += eini_lim_block(t, x, t->label, q);
  for (int64_t q = 0; q < dc->p; q++) t->held[dc->p + q] = t->held[q];
}

// Do labels fit the memory? Else *least is what the first statement that does not needs.
static int eini_lim_check(eini_lim *t, const int *label) {
  eini_lim_begin(t);
  for (int y = 0; y < t->dc->nnode - t->dc->npinned; y++) {
    if (eini_lim_need(t, y, label, t->held, t->more) > t->dc->machine.memory) return 0;
    double *swap = t->held;
    t->held = t->more;
    t->more = swap;
  }
  return 1;
}

// The inputs that are read before and behind statement y: the parts of them that places have. Equal
// numbers mean equal parts. *later: some input is read behind y.
static uint64_t eini_lim_shared(const eini_lim *t, int y, const int *label, int *later) {
  uint64_t sum = 0;
  *later = 0;
  for (int x = 0; x < t->dc->g->ntensor && t->boxes != NULL; x++) {
    int64_t n = t->reads.at[x + 1];
    uint64_t seen[64];
    int nseen = 0;
    if (t->reads.at[x] == n || t->reads.list[n - 1].node <= y) continue;
    *later = 1;
    for (int64_t i = t->reads.at[x]; i < n && t->reads.list[i].node <= y; i++) {
      const eini_read *r = &t->reads.list[i];
      int key[4], k = 0;
      key[0] = x, key[1] = t->dc->form_of[r->node], key[2] = r->k, key[3] = label[r->node];
      uint64_t h = eini_hash(key, sizeof key, 0);
      while (k < nseen && seen[k] != h) k++;
      if (k < nseen) continue;  // it reads what another does
      if (nseen < 64) seen[nseen++] = h;
      sum += h;
    }
  }
  return sum;
}

// Does state `other` hold no more than state `mine` at any place?
static int eini_lim_holds_less(const eini_lim *t, int64_t other, int64_t mine, int later) {
  const double *a = t->more + 3 * other * t->dc->p, *b = t->more + 3 * mine * t->dc->p;
  for (int64_t q = t->dc->p; q < 3 * t->dc->p && t->boxes != NULL; q++)
    if (a[q] > b[q] && (later || q >= 2 * t->dc->p)) return 0;
  return 1;
}

// Is there a state, cheaper since it came first, with the same labels for all that lives on behind
// statement y, that holds no more? What it leads to is no worse then. Else state `kept` enters the
// table, unless it has many with the same labels.
static int eini_lim_seen(eini_lim *t, int y, int64_t kept) {
  const int nnode = t->dc->nnode, *mine = t->next + kept * nnode;
  int n = 0, later;
  int64_t most = eini_max64(4, t->cap / 64), same = 0;
  for (int x = 0; x < nnode; x++)
    if ((x <= y || x >= nnode - t->dc->npinned) && t->last[x] > y) t->key[n++] = x;
  uint64_t shared = eini_lim_shared(t, y, mine, &later), hash = shared;
  for (int i = 0; i < n; i++) hash = eini_hash(&mine[t->key[i]], sizeof *mine, hash);
  int64_t at = (int64_t)(hash & (uint64_t)(t->nslot - 1));
  for (; t->slot[at] != 0; at = (at + 1) & (t->nslot - 1)) {
    int64_t one = t->slot[at] - 1;
    const int *other = t->next + one * nnode;
    int i = 0;
    while (i < n && other[t->key[i]] == mine[t->key[i]]) i++;
    if (i < n || t->shared[one] != shared) continue;
    if (eini_lim_holds_less(t, one, kept, later)) return 1;
    if (++same < most) continue;
    t->cut_short = 1;
    return 1;
  }
  t->slot[at] = (int)kept + 1;
  t->shared[kept] = shared;
  return 0;
}

static int eini_lim_less(const eini_limchild *a, const eini_limchild *b) {
  if (a->cost < b->cost || a->cost > b->cost) return a->cost < b->cost;
  return a->from != b->from ? a->from < b->from : a->way < b->way;
}

// Lets the child at i sink in a heap of n with the least on top.
static void eini_lim_sink(eini_limchild *heap, int64_t n, int64_t i) {
  eini_limchild x = heap[i];
  for (int64_t c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && eini_lim_less(&heap[c + 1], &heap[c])) c++;
    if (!eini_lim_less(&heap[c], &x)) break;
    heap[i] = heap[c];
  }
  heap[i] = x;
}

#define EINI_LIM_EFFORT ((int64_t)1 << 24)  // places visited for a statement, about

// Extends all states by statement y; the cheapest that fit are kept.
static void eini_lim_step(eini_lim *t, int y, eini_limchild *heap) {
  const eini_decomposer *dc = t->dc;
  int64_t n = 0, kept = 0, nnode = dc->nnode;
  int ways = t->net->size[y];
  for (int64_t s = 0; s < t->n; s++) {
    const eini_dform *f = eini_form(dc, y);
    for (int w = 0; w < ways; w++) {
      double cost = f->unary[w];
      for (int64_t e = t->at[y]; e < t->at[y + 1]; e++) {
        const eini_dedge *d = &t->q->e[e];
        cost += t->net->table[d->table].v[(int64_t)t->label[s * nnode + d->x] * ways + w];
      }
      cost *= t->per_cost;
      if (t->per_byte > 0)
        cost += t->per_byte * eini_result_bytes(dc, f->s, f->ways.cut + (int64_t)w * f->s->nindex);
      heap[n].cost = t->cost[s] + cost;
      heap[n].from = (int)s;
      heap[n++].way = w;
    }
  }
  for (int64_t i = n / 2; i-- > 0;) eini_lim_sink(heap, n, i);
  t->least = INFINITY;
  // A look visits all places.
  int64_t looks = 0, most = eini_min64(16 * t->cap + 4096, EINI_LIM_EFFORT / dc->p + 16);
  memset(t->slot, 0, (size_t)t->nslot * sizeof *t->slot);
  while (n > 0 && kept < t->cap && looks++ < most) {
    eini_limchild c = heap[0];
    int *label = t->next + kept * nnode;
    heap[0] = heap[--n];
    if (n > 0) eini_lim_sink(heap, n, 0);
    memcpy(label, t->label + c.from * nnode, (size_t)nnode * sizeof *label);
    label[y] = c.way;
    double need = eini_lim_need(t, y, label, t->held + 3 * c.from * dc->p,
                                t->more + 3 * kept * dc->p);
    t->visits += dc->p;
    if (need < t->least) t->least = need;
    if (need > t->limit && need < t->refused) t->refused = need, t->refused_at = y;
    if (need > t->limit || eini_lim_seen(t, y, kept)) continue;
    t->mine[kept++] = c.cost;
  }
  t->cut_short |= n > 0;
  int *label = t->label;
  double *held = t->held, *cost = t->cost;
  t->label = t->next, t->held = t->more, t->cost = t->mine;
  t->next = label, t->more = held, t->mine = cost;
  t->n = kept;
}

// All statements in their order; returns how many of them it came through.
static int eini_lim_pass(eini_lim *t, eini_limchild *heap) {
  int nstmt = t->dc->nnode - t->dc->npinned, y = 0;
  t->refused = INFINITY;
  eini_lim_begin(t);
  for (; y < nstmt; y++) {
    eini_lim_step(t, y, heap);
    if (t->n == 0) break;
  }
  return y;
}

// Nothing fits the memory: an error that names the least that does. Where all was looked at, all
// was refused somewhere, so that no less than `refused` will do: the search is done again with it.
// Else `least` is what statement `node` needs in what was looked at.
static ein_status eini_lim_fail(eini_lim *t, eini_limchild *heap, int node, double least) {
  const eini_decomposer *dc = t->dc;
  if (t->cut_short) return eini_no_memory_for(dc, node, least, 1);
  t->visits = 0;
  do {
    t->limit = least = t->refused;
    node = t->refused_at;
    if (eini_lim_pass(t, heap) == dc->nnode - dc->npinned) break;
  } while (!t->cut_short && t->visits < EINI_LIM_EFFORT);
  if (dc->over > 0 && dc->over < least) least = dc->over, node = dc->over_at;
  return eini_no_memory_for(dc, node, least, dc->cut_short);
}

// The least cost among what fits the memory, statement by statement in their order. *proved: it is
// the least of all; else states fell out. label: the least without a limit. Where the cheapest
// states lead nowhere, those that take less are kept.
static ein_status eini_lim_search(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                  int *label, int *proved) {
  eini_lim t;
  double least = 0, cost = INFINITY, total = eini_sums_value(net, label);
  int nstmt = dc->nnode - dc->npinned, node = 0, missing = -1;
  *proved = 1;
  EINI_TRY(eini_lim_make(dc, q, net, &t));
  if (eini_lim_check(&t, label)) return EIN_OK;
  int64_t ways = 1;
  for (int i = 0; i < dc->nnode; i++) ways = eini_max64(ways, net->size[i]);
  eini_limchild *heap = EINI_NEW(&dc->arena, eini_limchild, t.cap * ways);
  if (heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int pass = 0; pass < 3; pass++) {
    t.per_cost = pass == 0 ? 1 : pass == 1 && total > 0 ? dc->machine.memory / total : 0;
    t.per_byte = pass > 0;
    node = eini_lim_pass(&t, heap);
    if (node > missing) missing = node, least = t.least;
    if (node == nstmt || !t.cut_short) break;
  }
  if (node < nstmt) return eini_lim_fail(&t, heap, missing, least);
  for (int64_t s = 0; s < t.n; s++) {
    double c = eini_sums_value(net, t.label + s * dc->nnode);
    if (s > 0 && c >= cost) continue;
    cost = c;
    memcpy(label, t.label + s * dc->nnode, (size_t)dc->nnode * sizeof *label);
  }
  *proved = !t.cut_short;
  return EIN_OK;
}

// ================================================================================================
// >>results  decompositions from labels
// Takes what was searched; gives immutable decompositions and what is asked of them.
// ================================================================================================

static const char *const eini_cost_names[EIN_COST_COUNT] = {"paper", "paper-code", "bytes",
                                                            "seconds"};

EIN_API const char *ein_cost_name(ein_cost cost) {
  return (int)cost >= 0 && cost < EIN_COST_COUNT ? eini_cost_names[cost] : NULL;
}

EIN_API ein_cost ein_cost_find(const char *name) {
  int i = 0;
  while (i < EIN_COST_COUNT && (name == NULL || strcmp(name, eini_cost_names[i]) != 0)) i++;
  return (ein_cost)i;
}

static ein_status eini_decomp_fill(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                   const int *label, ein_decomposition *d) {
  d->parts = EINI_NEW(&d->arena, ein_parts, dc->nnode);
  d->pinned = EINI_NEW(&d->arena, int, dc->npinned);
  if (d->parts == NULL || d->pinned == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    const eini_dform *f = eini_form(dc, i);
    int n = f->s->nindex;
    int64_t w = label[i];
    ein_parts *p = &d->parts[i];
    int64_t *cut = EINI_NEW(&d->arena, int64_t, n);
    int *order = EINI_NEW(&d->arena, int, n);
    if (cut == NULL || order == NULL) return EIN_ERR_NO_MEMORY;
    if (n > 0) {
      memcpy(cut, f->ways.cut + w * n, (size_t)n * sizeof *cut);
      memcpy(order, f->ways.order + w * n, (size_t)n * sizeof *order);
    }
    p->nindex = n;
    p->cut = cut;
    p->norder = f->ways.norder[w];
    p->order = order;
    p->ntask = eini_tasks(cut, n);
    p->join = f->join[w];
    p->agg = f->agg[w];
    p->seconds = f->seconds[w];
  }
  for (int k = 0; k < dc->npinned; k++) d->pinned[k] = dc->node[dc->nnode - dc->npinned + k].s->out;
  d->npinned = dc->npinned;
  for (int64_t i = 0; i < q->n; i++) {
    const eini_dedge *e = &q->e[i];
    const eini_sumtable *t = &net->table[e->table];
    double cost = t->v[(int64_t)label[e->x] * t->size[1] + label[e->y]];
    ein_parts *p = &d->parts[e->y];
    if (dc->desc->cost == EIN_COST_BYTES) p->join += cost;
    else if (dc->desc->cost == EIN_COST_SECONDS) p->seconds += cost;
    else p->repart += cost;
  }
  return EIN_OK;
}

static ein_status eini_decomp_zmap(eini_arena *a, const ein_zmap *from, ein_zmap *to) {
  EINI_TRY(eini_zmap_new(a, from->rows, from->cols, to));
  eini_zmap_fill(to, from);
  return EIN_OK;
}

// What a statement computes, and where it reads and writes.
static ein_status eini_decomp_maps(eini_arena *a, const ein_graph *g, const eini_stmt *s,
                                   ein_decomp_stmt *d) {
  char *map = NULL;
  ein_zmap *proj = EINI_NEW(a, ein_zmap, s->noperand);
  if (proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) EINI_TRY(eini_decomp_zmap(a, &s->proj[k], &proj[k]));
  EINI_TRY(eini_decomp_zmap(a, &s->out_map, &d->out_map));
  for (size_t size = 0;;) {
    eini_text t = eini_text_of(map, size);
    t.numbered = 1;
    eini_say_node(&t, g, s, (int)s->expr.n - 1, 0, 0);
    if (t.cut) map = NULL;
    if (t.cut || size > 0) break;
    size = t.at + 1;
    map = EINI_NEW(a, char, (int64_t)size);
    if (map == NULL) return EIN_ERR_NO_MEMORY;
  }
  d->proj = proj;
  d->rest = s->rest;
  d->map = map;
  d->dtype = s->type;
  if (s->fold == EINI_FOLD_NONE) return EIN_OK;
  const char *fold = eini_fold_name(g, s->fold);
  d->fold = eini_strndup(a, fold, (int64_t)strlen(fold));
  return d->fold == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// How far statements may be from the truth, in their order.
static ein_status eini_decomp_bounds(const eini_decomposer *dc, ein_decomposition *d) {
  const ein_graph *g = dc->g;
  eini_arena a;
  eini_arena_init(&a, &d->arena.al);
  double *of = EINI_NEW(&a, double, g->ntensor + 1);
  unsigned char *defined = EINI_NEW(&a, unsigned char, g->ntensor + 1);
  const int ok = of != NULL && defined != NULL;
  for (int64_t i = 0; i < g->nstmt && ok; i++) {
    ein_decomp_stmt *x = &d->stmt[i];
    x->accumulates = eini_stmt_accumulates(g, &g->stmt[i]);
    x->error_bound = eini_stmt_bound(g, &g->stmt[i], of, 1, &x->from_inputs);
    eini_bound_set(of, defined, g->stmt[i].out, x->from_inputs ? x->error_bound : -1);
  }
  eini_arena_free(&a);
  return ok ? EIN_OK : EIN_ERR_NO_MEMORY;
}

static ein_status eini_decomp_names(const eini_decomposer *dc, ein_decomposition *d) {
  d->stmt = EINI_NEW(&d->arena, ein_decomp_stmt, dc->nnode);
  if (d->stmt == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = dc->node[i].s;
    const char *out = eini_node_name(dc, i);
    const char **name = EINI_NEW(&d->arena, const char *, s->nindex);
    const char **operand = EINI_NEW(&d->arena, const char *, s->noperand);
    int64_t *extent = EINI_NEW(&d->arena, int64_t, s->nindex);
    d->stmt[i].out = eini_strndup(&d->arena, out, (int64_t)strlen(out));
    if (name == NULL || operand == NULL || extent == NULL || d->stmt[i].out == NULL)
      return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < s->noperand; k++) {
      const char *read = dc->g->tensor[s->operand[k]].name;
      operand[k] = eini_strndup(&d->arena, read, (int64_t)strlen(read));
      if (operand[k] == NULL) return EIN_ERR_NO_MEMORY;
    }
    for (int c = 0; c < s->nindex; c++) {
      name[c] = eini_strndup(&d->arena, s->index[c].name, (int64_t)strlen(s->index[c].name));
      extent[c] = s->index[c].extent;
      if (name[c] == NULL) return EIN_ERR_NO_MEMORY;
    }
    d->stmt[i].line = s->line;
    d->stmt[i].nindex = s->nindex;
    d->stmt[i].nfree = s->nfree;
    d->stmt[i].index = name;
    d->stmt[i].extent = extent;
    d->stmt[i].noperand = s->noperand;
    d->stmt[i].operand = operand;
    EINI_TRY(eini_decomp_maps(&d->arena, dc->g, s, &d->stmt[i]));
  }
  return eini_decomp_bounds(dc, d);
}

static ein_status eini_decompose_method(eini_decomposer *dc, int method) {
  eini_kinds kinds;
  EINI_TRY(eini_kinds_find(dc, &kinds));
  EINI_TRY(eini_prefer(dc, &kinds));
  for (int i = 0; i < dc->nnode - dc->npinned && dc->hint != NULL; i++)
    dc->node[i].hint = dc->hint->parts[i].cut;
  if (method >= EINI_METHOD_CLASS) {
    EINI_TRY(eini_class_mark(dc, &kinds, method - EINI_METHOD_CLASS));
    return eini_baseline_need(dc, &kinds, EINI_BASE_DATA);
  }
  if (method > EINI_METHOD_GIVEN) return EIN_OK;
  return eini_baseline_need(dc, &kinds, method == EINI_METHOD_GIVEN ? EINI_BASE_NONE : method);
}

// The vectors and placements of another decomposition, as the only ways.
static ein_status eini_decompose_fixed(eini_decomposer *dc) {
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const ein_parts *p = &dc->hint->parts[i];
    for (int c = 0; c < p->nindex; c++) dc->node[i].need[c] = p->cut[c];
    dc->node[i].fixed = p;
  }
  return EIN_OK;
}

static ein_status eini_decompose_run(eini_decomposer *dc, int method, ein_decomposition *d) {
  eini_edges edges;
  eini_sums net;
  memset(&edges, 0, sizeof edges);
  EINI_TRY(eini_nodes_make(dc));
  EINI_TRY(eini_constrain(dc));
  if (method == EINI_METHOD_FIXED) EINI_TRY(eini_decompose_fixed(dc));
  else EINI_TRY(eini_decompose_method(dc, method));
  EINI_TRY(eini_edges_find(dc, &edges));
  EINI_TRY(eini_forms_make(dc));
  EINI_TRY(eini_edges_share(dc, &edges));
  eini_edges_fit(dc, &edges);
  EINI_TRY(eini_sums_make(dc, &edges, &net));
  if (method == EINI_METHOD_BEST && dc->desc->cost >= EIN_COST_BYTES && dc->machine.memory <= 0)
    EINI_TRY(eini_drop_ways(dc, &edges, &net));  // in memory those dropped may be needed
  int *label = EINI_NEW(&dc->arena, int, dc->nnode);
  if (label == NULL) return EIN_ERR_NO_MEMORY;
  ein_decomp_info *info = &d->info;
  if (method == EINI_METHOD_LINEAR) {
    EINI_TRY(eini_linear(dc, &edges, &net, label));
    info->total = eini_sums_value(&net, label);
    for (int i = 0; i < dc->nnode; i++) info->lower += eini_form(dc, i)->least;
  } else {
    int beam = dc->desc->beam > 0 ? dc->desc->beam : 256;
    beam = (int)eini_min64(beam, eini_max64(256, EINI_BEAM_CELLS / eini_max64(1, dc->nnode)));
    EINI_TRY(eini_sums_solve(&net, beam, label, &info->total, &info->lower));
    if (dc->cut_short) {  // what was dropped is bounded by the least of every statement only
      info->lower = 0;
      for (int i = 0; i < dc->nnode; i++) info->lower += eini_form(dc, i)->least;
    }
  }
  if (dc->machine.memory > 0) {
    double before = info->total;
    int proved;
    EINI_TRY(eini_lim_search(dc, &edges, &net, label, &proved));
    info->total = eini_sums_value(&net, label);
    if (info->total > before && proved && !dc->cut_short) info->lower = info->total;
  }
  info->nstmt = dc->nnode - dc->npinned;
  info->nform = dc->nform;
  info->nvector = dc->nvector;
  double gap = info->total - info->lower;
  info->proved = gap <= 1e-9 * info->total;
  info->gap = info->proved || info->total <= 0 ? 0 : gap / info->total;
  EINI_TRY(eini_decomp_names(dc, d));
  return eini_decomp_fill(dc, &edges, &net, label, d);
}

static ein_machine eini_machine_of(const ein_machine *given) {
  ein_machine m;
  memset(&m, 0, sizeof m);
  if (given != NULL) m = *given;
  if (m.flops <= 0) m.flops = 1e11;
  if (m.memory_bw <= 0) m.memory_bw = 1e11;
  if (m.latency <= 0) m.latency = 2e-6;
  if (m.bandwidth <= 0) m.bandwidth = 1e10;
  if (m.overhead <= 0) m.overhead = 2e-6;
  return m;
}

EIN_API ein_status ein_machine_threads(const ein_ctx *ctx, const ein_graph *graph,
                                       ein_machine *m) {
  const ein_rates *r = eini_rates_of(ctx);
  int wide = 0;
  if (graph == NULL || m == NULL) return EIN_ERR_ARGUMENT;
  if (r == NULL) return EIN_ERR_UNSUPPORTED;
  for (int64_t i = 0; i < graph->nstmt; i++) {
    ein_dtype type = ein_dtype_compute(graph->stmt[i].type);
    wide |= type == EIN_F64 || type == EIN_C128;
  }
  m->flops = wide ? r->flops_f64 : r->flops_f32;
  m->memory_bw = r->copy_bw;
  m->latency = 1e-6;
  m->bandwidth = 1e13;
  m->overhead = 2e-6;
  return EIN_OK;
}

// Beyond these limits sums of seconds would not stay numbers.
static ein_status eini_validate_machine(eini_diag *diag, const ein_machine *m) {
  static const char *const names[] = {"flops", "memory_bw", "latency", "bandwidth", "overhead",
                                      "memory"};
  if (m == NULL) return EIN_OK;
  double value[6];
  value[0] = m->flops, value[1] = m->memory_bw, value[2] = m->latency, value[3] = m->bandwidth;
  value[4] = m->overhead, value[5] = m->memory;
  for (int i = 0; i < 6; i++)
    if (!(value[i] >= 1e-30 && value[i] <= 1e30) && !(value[i] <= 0 && value[i] >= 0))
      return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, "0 is the default; else from 1e-30 to 1e30",
                       "a machine cannot have %s %g", names[i], value[i]);
  return EIN_OK;
}

static ein_status eini_validate_decompose(ein_ctx *ctx, const ein_graph *g,
                                          const ein_decompose_desc *d) {
  eini_diag *diag = eini_diag_of(ctx);
  if (ctx != NULL) eini_diag_reset(diag, NULL, 0);
  if (g == NULL || d == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the %s is NULL",
                     g == NULL ? "graph" : "description");
  if (g->open)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  if (d->p < 1 || d->p > EIN_PLACES_MAX)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "%lld places: from 1 to %d can be had",
                     (long long)d->p, EIN_PLACES_MAX);
  if (ein_cost_name(d->cost) == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "there is no such cost model");
  EINI_TRY(eini_validate_machine(diag, d->machine));
  if (d->inputs != EIN_INPUTS_HELD && d->inputs != EIN_INPUTS_OUTSIDE)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "inputs are held or outside");
  if (eini_method_find(d->method) < 0)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0,
                     "eindecomp, linear, none, sqrt, data, model, sequence, attention, or given",
                     "there is no method '%.80s'", d->method);
  if (d->nparts < 0 || d->npin < 0 || d->nkeep < 0 || (d->nparts > 0 && d->parts == NULL) ||
      (d->npin > 0 && d->pin == NULL) || (d->nkeep > 0 && d->keep == NULL))
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "a list of constraints is missing");
  return EIN_OK;
}

// By one method and model. *out is NULL on failure. hint may be NULL but for EINI_METHOD_FIXED.
static ein_status eini_decompose_with(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, int method,
                                      const ein_decomposition *hint, ein_decomposition **out) {
  *out = NULL;
  eini_decomposer dc;
  eini_arena arena;
  const ein_allocator *al = ctx == NULL ? NULL : &ctx->al;
  eini_arena_init(&arena, al);
  ein_decomposition *d = EINI_NEW(&arena, ein_decomposition, 1);
  if (d == NULL) return EIN_ERR_NO_MEMORY;
  d->arena = arena;
  memset(&dc, 0, sizeof dc);
  eini_arena_init(&dc.arena, al);
  dc.diag = eini_diag_of(ctx);
  dc.g = graph;
  dc.desc = desc;
  dc.hint = hint;
  dc.p = desc->p;
  dc.ndivisor = eini_divisors(dc.p, dc.divisor);
  dc.machine = eini_machine_of(desc->machine);
  int searched = method == EINI_METHOD_BEST || method == EINI_METHOD_LINEAR;
  d->info.p = desc->p;
  d->info.cost = desc->cost;
  const char *name = eini_method_names[eini_min64(method, EINI_METHOD_CLASS)];
  d->info.method = method == EINI_METHOD_FIXED ? hint->info.method : name;
  d->info.family = !searched ? "method" : eini_all_divisors(desc) ? "divisors" : "paper";
  d->info.inputs = desc->inputs;
  ein_status st = eini_decompose_run(&dc, method, d);
  eini_arena_free(&dc.arena);
  if (st != EIN_OK) {
    ein_decomposition_destroy(d);
    return st;
  }
  *out = d;
  return EIN_OK;
}

// The search by another model, over the paper's family and without a limit to memory.
static ein_status eini_decompose_hint(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, ein_cost cost,
                                      ein_decomposition **out) {
  ein_decompose_desc d = *desc;
  d.cost = cost;
  d.max_vectors = 0;
  d.strict = 1;
  d.fewer = 0;
  d.machine = NULL;
  return eini_decompose_with(ctx, graph, &d, EINI_METHOD_BEST, NULL, out);
}

// The same; where bytes and seconds cannot look at all vectors, the paper's are looked at.
static ein_status eini_decompose_once(ein_ctx *ctx, const ein_graph *graph,
                                      const ein_decompose_desc *desc, ein_decomposition **out) {
  int method = eini_method_find(desc->method);
  ein_decomposition *hint = NULL;
  *out = NULL;
  if (desc->cost >= EIN_COST_BYTES && (method == EINI_METHOD_BEST || method == EINI_METHOD_LINEAR))
    EINI_TRY(eini_decompose_hint(ctx, graph, desc, EIN_COST_PAPER, &hint));
  ein_status st = eini_decompose_with(ctx, graph, desc, method, hint, out);
  ein_decomposition_destroy(hint);
  return st;
}

EIN_API void ein_decomposition_destroy(ein_decomposition *d) {
  if (d == NULL) return;
  eini_arena arena = d->arena;  // it lives in its own arena
  eini_arena_free(&arena);
}

EIN_API void ein_decomposition_info(const ein_decomposition *d, ein_decomp_info *info) {
  if (info == NULL) return;
  memset(info, 0, sizeof *info);
  if (d != NULL) *info = d->info;
}

EIN_API ein_status ein_decomposition_parts(const ein_decomposition *d, int stmt,
                                           ein_parts *parts) {
  if (d == NULL || parts == NULL || stmt < 0 || stmt >= d->info.nstmt) return EIN_ERR_ARGUMENT;
  *parts = d->parts[stmt];
  return EIN_OK;
}

EIN_API ein_status ein_decomposition_stmt(const ein_decomposition *d, int stmt,
                                          ein_decomp_stmt *s) {
  if (d == NULL || s == NULL || stmt < 0 || stmt >= d->info.nstmt) return EIN_ERR_ARGUMENT;
  *s = d->stmt[stmt];
  return EIN_OK;
}

EIN_API ein_status ein_decomposition_pin(const ein_decomposition *d, int tensor,
                                         ein_parts *parts) {
  if (d == NULL || parts == NULL) return EIN_ERR_ARGUMENT;
  for (int k = 0; k < d->npinned; k++) {
    if (d->pinned[k] != tensor) continue;
    *parts = d->parts[d->info.nstmt + k];
    return EIN_OK;
  }
  return EIN_ERR_ARGUMENT;
}

// ================================================================================================
// >>simulate  tasks, messages, bytes and a time line, without data
// Takes a graph and a decomposition; enumerates every task at its place. A task starts when what it
// reads has arrived and its place is free: no barrier between statements.
// ================================================================================================

#define EINI_SIM_VISITS ((int64_t)1 << 26)  // blocks looked at, about; then homes share evenly

typedef struct eini_sim {
  eini_decomposer dc;      // nodes, edges and machine
  const ein_decomposition *d;
  const ein_sim_desc *desc;
  eini_edges edges;
  double **done;           // [node][place] when a block is complete; NULL: not, or no more, needed
  double *last;            // [node] the latest of done
  int *reader;             // [node] its last reader; -1: none
  double *clock, *in, *out;  // [place] when it has computed, received and sent all so far
  double *held, *peak;     // [place] bytes of inputs and blocks; and with those of its tasks
  double *pending;         // [place] end of the task of this statement, and of what it merged
  double *ready, *fetched;  // [place] when what its task reads is there, and what it fetches of it
  double *move;            // [place] bytes that its task fetches over one edge
  int64_t *lo, *hi, *from, *to, *nlo, *nhi, *s0, *s1, *key, *klo, *khi;  // of one task
  int64_t visits;          // blocks looked at that one edge may have
  double flops;
  int stmt;
  ein_sim_stmt now;        // of this statement
} eini_sim;

static double *eini_sim_array(eini_sim *m) {
  size_t bytes = (size_t)m->dc.p * sizeof(double);
  double *p = (double *)m->dc.arena.al.alloc_fn(bytes, EINI_ALIGN, m->dc.arena.al.user);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

static void eini_sim_drop(eini_sim *m, double **p) {
  if (*p != NULL)
    m->dc.arena.al.free_fn(*p, (size_t)m->dc.p * sizeof(double), m->dc.arena.al.user);
  *p = NULL;
}

// The place of a key; the digits of indices that are not cut are 0.
static int64_t eini_place_of(const ein_parts *p, const int64_t *key) {
  int64_t place = 0;
  for (int i = 0; i < p->norder; i++) place = place * p->cut[p->order[i]] + key[p->order[i]];
  return place;
}

// The piece of an extent cut into d that holds element i.
static int64_t eini_piece_of(int64_t extent, int64_t d, int64_t i) {
  int64_t q = extent / d, k = q > 0 ? eini_min64(d - 1, i / q) : d - 1;
  while (eini_piece_start(extent, d, k) > i) k--;
  while (eini_piece_start(extent, d, k + 1) <= i) k++;
  return k;
}

// A message leaves a place behind those before it, and comes in behind those before it. Returns
// when it is there.
static double eini_sim_send(eini_sim *m, int64_t from, int64_t to, double bytes, double since) {
  double takes = bytes / m->dc.machine.bandwidth;
  double sent = since > m->out[from] ? since : m->out[from];
  double comes = sent + m->dc.machine.latency;
  ein_sim_move x;
  if (m->in[to] > comes) comes = m->in[to];
  m->out[from] = sent + takes;
  m->in[to] = comes + takes;
  m->now.messages++;
  if (m->desc->move_fn == NULL) return m->in[to];
  x.stmt = m->stmt;
  x.from = from;
  x.to = to;
  x.bytes = bytes;
  x.sent = sent;
  x.arrived = m->in[to];
  m->desc->move_fn(m->desc->user, &x);
  return m->in[to];
}

// Bytes that the task at a place fetches over one edge; the box it reads is then in from and to,
// the index ranges of its producer in nlo and nhi, and the pieces of those in klo and khi: *blocks
// of them, and one of its own where *own is 1.
static double eini_sim_needs(eini_sim *m, const eini_dedge *e, int64_t place, int64_t *blocks,
                             int *own) {
  const eini_stmt *s = m->dc.node[e->x].s, *t = m->dc.node[e->y].s;
  const ein_parts *p = &m->d->parts[e->x], *q = &m->d->parts[e->y];
  double need, found = 0;
  *blocks = 0;
  eini_task_ranges(t, q->cut, q->order, q->norder, place, 0, m->lo, m->hi);
  eini_task_box(t, &t->proj[e->k], m->lo, m->hi, m->from, m->to);
  if (!eini_box_ranges(s, m->from, m->to, m->nlo, m->nhi)) return 0;
  need = eini_block_in_box(s, m->nlo, m->nhi, m->from, m->to, m->s0, m->s1);
  if (eini_task_ranges(s, p->cut, p->order, p->norder, place, 1, m->klo, m->khi))
    found = eini_block_in_box(s, m->klo, m->khi, m->from, m->to, m->s0, m->s1);
  if (need - found <= 0) return 0;
  *own = found > 0;
  *blocks = 1;
  for (int c = 0; c < s->nfree; c++) {
    m->klo[c] = eini_piece_of(s->index[c].extent, p->cut[c], m->nlo[c]);
    m->khi[c] = eini_piece_of(s->index[c].extent, p->cut[c], m->nhi[c] - 1) + 1;
    *blocks *= m->khi[c] - m->klo[c];
  }
  for (int c = s->nfree; c < s->nindex; c++) m->key[c] = 0;
  return (need - found) * eini_element_bytes(&m->dc, s->out);
}

// The task at a place receives the blocks of klo to khi, one after the other; those of the places
// behind it come first, so that not all begin at the same one.
static void eini_sim_receive(eini_sim *m, const eini_dedge *e, int64_t place, int64_t blocks) {
  const eini_stmt *s = m->dc.node[e->x].s;
  const ein_parts *p = &m->d->parts[e->x];
  double size = eini_element_bytes(&m->dc, s->out);
  int64_t first = (place + 1) % blocks;
  for (int c = s->nfree - 1; c >= 0; c--) {
    m->key[c] = m->klo[c] + first % (m->khi[c] - m->klo[c]);
    first /= m->khi[c] - m->klo[c];
  }
  for (int64_t i = 0; i < blocks; i++) {
    int64_t home = eini_place_of(p, m->key);
    for (int c = 0; c < s->nfree; c++) {
      int64_t x = s->index[c].extent;
      m->lo[c] = eini_max64(m->nlo[c], eini_piece_start(x, p->cut[c], m->key[c]));
      m->hi[c] = eini_min64(m->nhi[c], eini_piece_start(x, p->cut[c], m->key[c] + 1));
    }
    double n = home == place ? 0
               : eini_block_in_box(s, m->lo, m->hi, m->from, m->to, m->s0, m->s1);
    if (n > 0) {
      double there = eini_sim_send(m, home, place, n * size, m->done[e->x][home]);
      if (there > m->ready[place]) m->ready[place] = there;
    }
    for (int c = s->nfree - 1; c >= 0 && ++m->key[c] == m->khi[c]; c--) m->key[c] = m->klo[c];
  }
}

// Too many messages to follow: homes send shares of `total` as large as their blocks, and tasks
// have what they read when all is sent.
static void eini_sim_gather(eini_sim *m, const eini_dedge *e, double total) {
  const eini_stmt *s = m->dc.node[e->x].s;
  const ein_parts *p = &m->d->parts[e->x];
  double whole = 1, first = INFINITY, sent = 0, bandwidth = m->dc.machine.bandwidth;
  for (int c = 0; c < s->nfree; c++) whole *= (double)s->index[c].extent;
  for (int64_t q = 0; q < p->ntask; q++) {
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->klo, m->khi)) continue;
    double block = 1, since = m->done[e->x][q];
    for (int c = 0; c < s->nfree; c++) block *= (double)(m->khi[c] - m->klo[c]);
    if (m->out[q] > since) since = m->out[q];
    m->out[q] = since + total * (block / whole) / bandwidth;
    if (since < first) first = since;
    if (m->out[q] > sent) sent = m->out[q];
  }
  first += m->dc.machine.latency;
  sent += m->dc.machine.latency;
  for (int64_t q = 0; q < m->d->parts[e->y].ntask; q++) {
    if (m->move[q] <= 0) continue;
    m->in[q] = (m->in[q] > first ? m->in[q] : first) + m->move[q] / bandwidth;
    if (m->in[q] > m->ready[q]) m->ready[q] = m->in[q];
    if (sent > m->ready[q]) m->ready[q] = sent;
  }
}

// What all tasks of a statement fetch over one edge, and when it is there.
static void eini_sim_edge(eini_sim *m, const eini_dedge *e) {
  const eini_stmt *s = m->dc.node[e->x].s;
  int64_t ntask = m->d->parts[e->y].ntask, visits = 0, blocks;
  double total = 0, messages = 0;
  int several = 0, own;
  for (int r = 0; r < s->out_map.rows; r++) {
    int64_t coef;
    several |= eini_row_index(&s->out_map, r, &coef) < 0 && coef != 0;
  }
  for (int64_t q = 0; q < ntask; q++) {
    double bytes = m->move[q] = eini_sim_needs(m, e, q, &blocks, &own);
    if (bytes <= 0) continue;
    visits += several ? 16 * blocks : blocks;
    messages += (double)(blocks - own);
    total += bytes;
    m->fetched[q] += bytes;
    if (m->desc->fetch_fn != NULL)
      m->desc->fetch_fn(m->desc->user, e->x < m->d->info.nstmt ? e->x : -1, e->y, e->k, q, bytes);
  }
  m->now.join += total;
  for (int64_t q = 0; q < ntask && visits <= m->visits; q++) {
    if (m->move[q] <= 0) continue;
    eini_sim_needs(m, e, q, &blocks, &own);
    eini_sim_receive(m, e, q, blocks);
  }
  if (visits <= m->visits) return;
  eini_sim_gather(m, e, total);
  m->now.messages += messages;
}

// Seconds of the task at a place by itself; *result: elements of its block.
static double eini_sim_work(eini_sim *m, const eini_dform *f, double *result) {
  const eini_stmt *s = f->s;
  double points = eini_stmt_points(s, m->lo, m->hi), bytes;
  *result = 1;
  for (int k = 0; k < s->nfree; k++) *result *= (double)(m->hi[k] - m->lo[k]);
  bytes = *result * eini_element_bytes(&m->dc, s->out);
  for (int k = 0; k < s->noperand; k++) {
    if (f->again[k] || points <= 0) continue;
    eini_task_box(s, &s->proj[k], m->lo, m->hi, m->from, m->to);
    bytes += eini_element_bytes(&m->dc, s->operand[k]) *
             eini_box_volume(s->proj[k].rows, m->from, m->to);
  }
  m->flops += points * eini_point_flops(s);
  return eini_work_seconds(&m->dc.machine, s, points, bytes);
}

// Runs all tasks of statement y. edge: its first edge.
static void eini_sim_tasks(eini_sim *m, int y, int64_t edge) {
  const eini_stmt *s = m->dc.node[y].s;
  const ein_parts *p = &m->d->parts[y];
  m->now.start = INFINITY;
  for (int64_t q = 0; q < p->ntask; q++) m->ready[q] = m->fetched[q] = 0;
  for (int64_t e = edge; e < m->edges.n && m->edges.e[e].y == y; e++)
    eini_sim_edge(m, &m->edges.e[e]);
  for (int64_t q = 0; q < p->ntask; q++) {
    double ready = m->ready[q], result;
    eini_task_ranges(s, p->cut, p->order, p->norder, q, 0, m->lo, m->hi);
    double work = eini_sim_work(m, &m->dc.node[y], &result);
    double start = ready > m->clock[q] ? ready : m->clock[q];
    m->pending[q] = m->clock[q] = start + work;
    m->now.busy += work;
    m->now.tasks++;
    if (start < m->now.start) m->now.start = start;
    if (m->clock[q] > m->now.end) m->now.end = m->clock[q];
    double bytes = m->held[q] + m->fetched[q] +
                   eini_partial_at(m->dc.g, s, p->cut, m->lo, m->hi);
    int home = 1;
    for (int c = s->nfree; c < s->nindex; c++) home &= m->lo[c] == 0;
    if (home) bytes += result * eini_element_bytes(&m->dc, s->out);
    if (bytes > m->peak[q]) m->peak[q] = bytes;
    if (m->desc->task_fn != NULL)
      m->desc->task_fn(m->desc->user, y, q, start, m->clock[q]);
  }
}

// The place of partial number k of the block whose home is `place`: reduced pieces, row-major.
static int64_t eini_sim_partner(const eini_stmt *s, const ein_parts *p, int64_t place, int64_t k) {
  for (int c = s->nindex - 1; c >= s->nfree; c--) {
    int64_t stride = 1;
    if (p->cut[c] == 1) continue;
    for (int i = p->norder - 1; p->order[i] != c; i--) stride *= p->cut[p->order[i]];
    place += k % p->cut[c] * stride;
    k /= p->cut[c];
  }
  return place;
}

// Blocks are complete where their partial results meet, in a binary tree over their numbers: the
// right half of two goes to the left one.
static void eini_sim_fold(eini_sim *m, int y) {
  const eini_stmt *s = m->dc.node[y].s;
  const ein_parts *p = &m->d->parts[y];
  int64_t nagg = eini_tasks(p->cut + s->nfree, s->nindex - s->nfree);
  double size = (double)eini_partial_bytes(m->dc.g, s);
  for (int64_t q = 0; q < p->ntask; q++) {
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->lo, m->hi)) continue;
    double block = 1;
    for (int c = 0; c < s->nfree; c++) block *= (double)(m->hi[c] - m->lo[c]);
    for (int64_t step = 1; step < nagg && block > 0; step *= 2) {
      for (int64_t k = 0; k + step < nagg; k += 2 * step) {
        int64_t to = eini_sim_partner(s, p, q, k), from = eini_sim_partner(s, p, q, k + step);
        double there = eini_sim_send(m, from, to, block * size, m->pending[from]);
        if (m->clock[to] > there) there = m->clock[to];
        m->pending[to] = m->clock[to] = there + block / m->dc.machine.flops;
        m->now.agg += block * size;
      }
    }
    m->done[y][q] = m->pending[q];
    if (m->done[y][q] > m->last[y]) m->last[y] = m->done[y][q];
    m->held[q] += block * eini_element_bytes(&m->dc, s->out);
    if (m->held[q] > m->peak[q]) m->peak[q] = m->held[q];
  }
  if (m->last[y] > m->now.end) m->now.end = m->last[y];
}

// The blocks of a tensor go when its last reader is done; those of outputs and pinned inputs stay.
static void eini_sim_release(eini_sim *m, int x) {
  const eini_stmt *s = m->dc.node[x].s;
  const ein_parts *p = &m->d->parts[x];
  int stays = m->dc.g->tensor[s->out].role != EIN_ROLE_TEMP;
  for (int64_t q = 0; q < p->ntask && !stays; q++) {
    double block = eini_element_bytes(&m->dc, s->out);
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->lo, m->hi)) continue;
    for (int c = 0; c < s->nfree; c++) block *= (double)(m->hi[c] - m->lo[c]);
    m->held[q] -= block;
  }
  eini_sim_drop(m, &m->done[x]);
}

// Bytes of tensor t that the tasks of a place read, in parts: reads of the same go together.
static double eini_sim_input(eini_sim *m, int t, const eini_reads *r, int64_t place,
                             eini_boxes *u) {
  u->n = 0;
  for (int64_t i = r->at[t]; i < r->at[t + 1]; i++) {
    const eini_stmt *s = m->dc.node[r->list[i].node].s;
    const ein_parts *p = &m->d->parts[r->list[i].node];
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, place, 0, m->lo, m->hi)) continue;
    if (eini_stmt_points(s, m->lo, m->hi) <= 0) continue;
    eini_task_box(s, &s->proj[r->list[i].k], m->lo, m->hi, m->from, m->to);
    eini_boxes_add(u, m->from, m->to);
  }
  return eini_boxes_volume(u) * eini_element_bytes(&m->dc, t);
}

// What places hold of inputs that are not pinned.
static ein_status eini_sim_inputs(eini_sim *m) {
  const ein_graph *g = m->dc.g;
  eini_reads reads;
  if (m->d->info.inputs == EIN_INPUTS_OUTSIDE) return EIN_OK;
  EINI_TRY(eini_reads_find(&m->dc, &reads));
  for (int t = 0; t < g->ntensor; t++) {
    eini_boxes boxes;
    if (reads.at[t] == reads.at[t + 1]) continue;
    EINI_TRY(eini_boxes_init(&m->dc.arena, g->tensor[t].rank, &boxes));
    for (int64_t q = 0; q < m->dc.p; q++) m->held[q] += eini_sim_input(m, t, &reads, q, &boxes);
  }
  return EIN_OK;
}

static ein_status eini_sim_make(eini_sim *m, const ein_graph *g, const ein_decomposition *d) {
  eini_decomposer *dc = &m->dc;
  int64_t room = 1;
  dc->g = g;
  dc->p = d->info.p;
  dc->nnode = d->info.nstmt + d->npinned;
  dc->npinned = d->npinned;
  dc->node = EINI_NEW(&dc->arena, eini_dform, dc->nnode);
  m->done = EINI_NEW(&dc->arena, double *, dc->nnode);
  m->last = EINI_NEW(&dc->arena, double, dc->nnode);
  m->reader = EINI_NEW(&dc->arena, int, dc->nnode);
  if (dc->node == NULL || m->done == NULL || m->last == NULL || m->reader == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    eini_stmt *s;
    if (i >= d->info.nstmt) EINI_TRY(eini_pin_node(dc, d->pinned[i - d->info.nstmt], &s));
    else s = &g->stmt[i];
    dc->node[i].s = s;
    dc->node[i].active = EINI_NEW(&dc->arena, unsigned char, s->noperand + 1);
    if (dc->node[i].active == NULL) return EIN_ERR_NO_MEMORY;
    m->reader[i] = -1;
    room = eini_max64(room, s->nindex + s->out_map.rows);
    for (int k = 0; k < s->noperand; k++) room = eini_max64(room, s->nindex + s->proj[k].rows);
  }
  EINI_TRY(eini_nodes_repeat(dc));
  EINI_TRY(eini_edges_find(dc, &m->edges));
  for (int64_t e = 0; e < m->edges.n; e++) m->reader[m->edges.e[e].x] = m->edges.e[e].y;
  m->lo = EINI_NEW(&dc->arena, int64_t, 12 * ++room);
  if (m->lo == NULL) return EIN_ERR_NO_MEMORY;
  int64_t **part[10];
  part[0] = &m->hi; part[1] = &m->from; part[2] = &m->to; part[3] = &m->nlo; part[4] = &m->nhi;
  part[5] = &m->s0; part[6] = &m->s1; part[7] = &m->key; part[8] = &m->klo; part[9] = &m->khi;
  for (int i = 0; i < 10; i++) *part[i] = m->lo + (i + 1) * room;
  m->clock = eini_sim_array(m);
  m->in = eini_sim_array(m);
  m->out = eini_sim_array(m);
  m->ready = eini_sim_array(m);
  m->fetched = eini_sim_array(m);
  m->move = eini_sim_array(m);
  m->held = eini_sim_array(m);
  m->peak = eini_sim_array(m);
  m->pending = eini_sim_array(m);
  m->visits = EINI_SIM_VISITS / eini_max64(1, m->edges.n);
  return m->clock == NULL || m->in == NULL || m->out == NULL || m->held == NULL ||
         m->peak == NULL || m->pending == NULL || m->ready == NULL || m->fetched == NULL ||
         m->move == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_sim_run(eini_sim *m, ein_sim_info *info) {
  int64_t edge = 0;
  int nstmt = m->d->info.nstmt;
  EINI_TRY(eini_sim_inputs(m));
  for (int i = nstmt; i < m->dc.nnode; i++) {  // pinned inputs are there from the start
    m->done[i] = eini_sim_array(m);
    if (m->done[i] == NULL) return EIN_ERR_NO_MEMORY;
    eini_sim_fold(m, i);
    for (int64_t q = 0; q < m->dc.p; q++) m->clock[q] = 0;
  }
  for (int64_t q = 0; q < m->dc.p; q++)
    if (m->held[q] > info->input_bytes) info->input_bytes = m->held[q];
  for (int y = 0; y < nstmt; y++) {
    memset(&m->now, 0, sizeof m->now);
    m->stmt = y;
    m->done[y] = eini_sim_array(m);
    if (m->done[y] == NULL) return EIN_ERR_NO_MEMORY;
    eini_sim_tasks(m, y, edge);
    eini_sim_fold(m, y);
    while (edge < m->edges.n && m->edges.e[edge].y == y) edge++;
    for (int x = 0; x < m->dc.nnode; x++)
      if (m->reader[x] == y && m->done[x] != NULL) eini_sim_release(m, x);
    if (m->reader[y] < 0) eini_sim_release(m, y);
    info->tasks += m->now.tasks;
    info->messages += m->now.messages;
    info->join += m->now.join;
    info->agg += m->now.agg;
    if (m->now.end > info->seconds) info->seconds = m->now.end;
    info->busy += m->now.busy;
    if (m->desc->stmt != NULL) m->desc->stmt[y] = m->now;
  }
  info->flops = m->flops;
  info->machine = m->dc.machine;
  for (int64_t q = 0; q < m->dc.p; q++) {
    if (m->peak[q] > info->peak_bytes) info->peak_bytes = m->peak[q];
    if (m->desc->peak != NULL) m->desc->peak[q] = m->peak[q];
  }
  return EIN_OK;
}

EIN_API ein_status ein_simulate(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                const ein_sim_desc *desc, ein_sim_info *info) {
  eini_sim m;
  ein_sim_desc none;
  ein_decompose_desc cost;
  if (ctx != NULL) eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  if (graph == NULL || d == NULL || info == NULL || graph->open || graph->nstmt != d->info.nstmt)
    return EIN_ERR_ARGUMENT;
  memset(info, 0, sizeof *info);
  memset(&m, 0, sizeof m);
  memset(&none, 0, sizeof none);
  memset(&cost, 0, sizeof cost);
  eini_arena_init(&m.dc.arena, ctx == NULL ? NULL : &ctx->al);
  m.dc.desc = &cost;
  m.d = d;
  m.desc = desc == NULL ? &none : desc;
  EINI_TRY(eini_validate_machine(eini_diag_of(ctx), m.desc->machine));
  m.dc.machine = eini_machine_of(m.desc->machine);
  ein_status st = eini_sim_make(&m, graph, d);
  if (st == EIN_OK) st = eini_sim_run(&m, info);
  for (int i = 0; i < m.dc.nnode && m.done != NULL; i++) eini_sim_drop(&m, &m.done[i]);
  eini_sim_drop(&m, &m.clock);
  eini_sim_drop(&m, &m.in);
  eini_sim_drop(&m, &m.out);
  eini_sim_drop(&m, &m.ready);
  eini_sim_drop(&m, &m.fetched);
  eini_sim_drop(&m, &m.move);
  eini_sim_drop(&m, &m.held);
  eini_sim_drop(&m, &m.peak);
  eini_sim_drop(&m, &m.pending);
  eini_arena_free(&m.dc.arena);
  return st;
}

// ================================================================================================
// >>decomp-public  choices made by simulation
// Under `seconds` the search adds up what overlaps in truth, so its answer is simulated, and so are
// none and sqrt, what cuts one class of indices everywhere, baselines whose indices are named, the
// paper's linearisation and the answers of the other models. The fastest is taken.
// ================================================================================================

typedef struct eini_race {
  ein_ctx *ctx;
  const ein_graph *g;
  const ein_decompose_desc *desc;  // under seconds
  ein_decomposition *best;         // the fastest so far
} eini_race;

// d takes the place of the best when it is simulated to be faster; d is the race's from here on.
static ein_status eini_race_enter(eini_race *r, ein_decomposition *d) {
  ein_sim_desc sim;
  ein_sim_info info;
  memset(&sim, 0, sizeof sim);
  sim.machine = r->desc->machine;
  ein_status st = ein_simulate(r->ctx, r->g, d, &sim, &info);
  if (st == EIN_OK) d->info.seconds = info.seconds;
  if (st == EIN_OK && (r->best == NULL || info.seconds < r->best->info.seconds)) {
    ein_decomposition *swap = r->best;
    r->best = d;
    d = swap;
  }
  ein_decomposition_destroy(d);
  return st;
}

// What a method gives, or (fixed) the search by another model, its answer's vectors as they are.
static ein_status eini_race_try(eini_race *r, int method, ein_cost cost) {
  ein_decompose_desc d = *r->desc;
  ein_decomposition *x = NULL, *by = NULL;
  ein_status st;
  if (method == EINI_METHOD_LINEAR) {
    d.method = eini_method_names[method];
    st = eini_decompose_once(r->ctx, r->g, &d, &x);
  } else if (method != EINI_METHOD_FIXED) {
    st = eini_decompose_with(r->ctx, r->g, &d, method, NULL, &x);
  } else {
    d.cost = cost;
    d.strict = 1;
    d.fewer = 0;
    st = eini_decompose_once(r->ctx, r->g, &d, &by);
    if (st == EIN_OK) {
      by->info.method = cost == EIN_COST_PAPER ? "eindecomp/paper" : "eindecomp/bytes";
      st = eini_decompose_with(r->ctx, r->g, r->desc, EINI_METHOD_FIXED, by, &x);
    }
    ein_decomposition_destroy(by);
  }
  if (st == EIN_OK) return eini_race_enter(r, x);
  if (st == EIN_ERR_NO_MEMORY) return st;
  // A method that does not apply, or that a constraint rules out, is no mistake.
  if (r->ctx != NULL) eini_diag_reset(eini_diag_of(r->ctx), NULL, 0);
  return EIN_OK;
}

EIN_API ein_status ein_decompose(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **out) {
  eini_race race;
  ein_decomposition *first;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  EINI_TRY(eini_validate_decompose(ctx, graph, desc));
  if (desc->cost != EIN_COST_SECONDS) return eini_decompose_once(ctx, graph, desc, out);
  memset(&race, 0, sizeof race);
  race.ctx = ctx;
  race.g = graph;
  race.desc = desc;
  EINI_TRY(eini_decompose_once(ctx, graph, desc, &first));
  double lower = first->info.lower;
  const char *family = first->info.family;
  int best = eini_method_find(desc->method) == EINI_METHOD_BEST;
  int named = desc->batch != NULL || desc->sequence != NULL || desc->heads != NULL ||
              desc->hidden != NULL;
  ein_status st = eini_race_enter(&race, first);
  for (int base = 0; best && st == EIN_OK && base < EINI_BASES; base++)
    if (named || base <= EINI_BASE_SQRT) st = eini_race_try(&race, base, EIN_COST_SECONDS);
  for (int k = 0; best && st == EIN_OK && k < EINI_CLASSES; k++)
    st = eini_race_try(&race, EINI_METHOD_CLASS + k, EIN_COST_SECONDS);
  if (best && st == EIN_OK) st = eini_race_try(&race, EINI_METHOD_LINEAR, EIN_COST_SECONDS);
  for (int k = 0; best && st == EIN_OK && k < 2; k++)
    st = eini_race_try(&race, EINI_METHOD_FIXED, k == 0 ? EIN_COST_PAPER : EIN_COST_BYTES);
  if (st != EIN_OK) {
    ein_decomposition_destroy(race.best);
    return st;
  }
  *out = race.best;
  ein_decomp_info *info = &race.best->info;
  info->family = family;
  info->lower = lower < info->total ? lower : info->total;
  info->proved = info->total - lower <= 1e-9 * info->total;
  info->gap = info->proved || info->total <= 0 ? 0 : (info->total - lower) / info->total;
  return EIN_OK;
}

#endif  // EINSUM_IMPLEMENTATION
