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

typedef enum ein_inputs {   // where those lie that are not pinned
  EIN_INPUTS_HELD = 0,      // in the memory of the places that read them, the parts they read:
                            //   reading them moves nothing
  EIN_INPUTS_OUTSIDE,       // outside: they take no memory of a place
  EIN_INPUTS_DEALT          // dealt out: each element at one place that reads it, of those that the
                            //   first statement to do so has, as if pinned there; EIN_COST_BYTES
                            //   counts what each statement reads beyond each element once
} ein_inputs;

#define EIN_PLACES_MAX (1 << 20)

// A place and its link, alone or in nodes. 0: the default; else from 1e-30 to 1e30.
typedef struct ein_machine {
  double flops;             // scalar operations per second of a place; default 1e11
  double memory_bw;         // bytes per second of its memory; default 1e11
  double latency;           // seconds of one message; default 2e-6
  double bandwidth;         // bytes per second into a place, and out of it; default 1e10
  double overhead;          // seconds per task; default 2e-6
  double memory;            // bytes alive at a place at once, as peak_bytes; default: no limit
  int64_t node;             // places of a node, by their numbers; default 0: there are no nodes
  double node_latency;      // of messages between nodes, which go through the links of places and
  double node_bandwidth;    //   of both nodes; one way; default: those of a place
} ein_machine;

// The machine whose places are threads of the ctx, as under the fabric `threads`: operations (of
// the widest type that the graph computes in) and memory as a provider of kernels says they are,
// or has measured them. There are no nodes. *m keeps its memory. EIN_ERR_UNSUPPORTED: none knows.
EIN_API ein_status ein_machine_threads(const ein_ctx *ctx, const ein_graph *graph, ein_machine *m);

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
  int no_scatter;           // 1: bytes and seconds scatter no results, see PLACES
  int fewer;                // 1: the family of divisors under every model: for bytes, no cuts
  int max_vectors;          // of one statement, the cheapest are kept; default 4096 (bytes and
                            //   seconds: 2048 for 64 places; for more 32, or more where gap > 0);
                            //   fewer where tables would have more than 2^26 entries
  double max_table;         // entries of a table of the search, 2^26 at most; default 2^22
  int beam;                 // states of the search where tables are split; default 256; 2^24 at
                            //   most of all statements
  double max_work;          // places looked at, about 1e7 a second: fewer ways and candidates
                            //   are tried, and what takes more is an error; default 6e7
  // Names of indices, separated by commas, that baselines cut. Where data, model, sequence or
  // attention is asked for without them: "b,batch,n"; "s,seq,sequence"; "h,head,heads";
  // "f,hidden,ff". No other method looks at names.
  const char *batch, *sequence, *heads, *hidden;
} ein_decompose_desc;

typedef struct ein_decomposition ein_decomposition;  // immutable

typedef struct ein_decomp_info {
  int64_t p;
  ein_cost cost;
  const char *method;       // under EIN_COST_SECONDS: the fastest; /paper, /bytes: by that model
  const char *family;       // what was searched: paper, divisors or method, see METHODS
  double total;             // under the cost model: scalars, bytes or seconds, added up
  double lower;             // no decomposition of the family costs less under the model
  int proved;               // 1: total is the least over the family (of one, for `method`)
  double gap;               // (total - lower) / total; 0 when proved
  double seconds;           // simulated, under EIN_COST_SECONDS; 0: not, or max_work is too small
  ein_inputs inputs;
  int nstmt;                // statements; of the graph as written where no results are scattered
  int nform;                // different forms among them: isomorphic ones share their tables
  int64_t nvector;          // vectors (with orders) of all forms
} ein_decomp_info;

// Decomposes the statements of a finished graph, as written. *d is NULL on failure; it is the
// caller's (ein_decomposition_destroy) and outlives graph and ctx, but not the ctx's allocator.
// EIN_ERR_ARGUMENT: p out of range, an unknown method; EIN_ERR_SYNTAX, EIN_ERR_NAME,
// EIN_ERR_SHAPE: a constraint that is ill-formed, names nothing, or cannot be met;
// EIN_ERR_TOO_LARGE: nothing that was searched fits the machine's memory; the message names the
// statement whose least need is more, and says whether that is proved; or max_work is too little.
// EinDecomp (Bourgeois et al.), section 8: exact where tables fit max_table, by elimination of
// variables (non-serial dynamic programming); else beam search, with a lower bound.
EIN_API ein_status ein_decompose(ein_ctx *ctx, const ein_graph *graph,
                                 const ein_decompose_desc *desc, ein_decomposition **d);
// Where results are scattered, the graph that d is of, its own, with the same inputs and outputs
// and more statements, which runs instead wherever d goes; NULL: as given.
EIN_API const ein_graph *ein_decomposition_graph(const ein_decomposition *d);
EIN_API void ein_decomposition_destroy(ein_decomposition *d);  // NULL is a no-op
EIN_API void ein_decomposition_info(const ein_decomposition *d, ein_decomp_info *info);
// A statement cut into blocks over places that have a share of every tensor at first, and of the
// result at last: elements that the busiest moves, at least for any cut (ein_grid_best), touches.
typedef struct ein_grid_cost { double words, least, holds; } ein_grid_cost;
EIN_API ein_status ein_grid_words(const ein_graph *graph, int stmt, int places, const int64_t *cut,
                                  ein_grid_cost *cost);
// The cut, by index as in ein_parts, into as many blocks as can be with the fewest words that
// touches no more than `memory` (0: any). EIN_ERR_NO_MEMORY: none; EIN_ERR_TOO_LARGE: too many.
EIN_API ein_status ein_grid_best(const ein_graph *graph, int stmt, int places, double memory,
                                 int64_t *cut, ein_grid_cost *cost);
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

// A message: it leaves from `sent` on and is there at `arrived`, at the full bandwidth.
typedef struct ein_sim_move {
  int stmt;                 // whose task reads it, or whose partial result it is
  int64_t from, to;         // places
  double bytes, sent, arrived;
} ein_sim_move;

typedef struct ein_sim_desc {
  const ein_machine *machine;
  ein_sim_stmt *stmt;       // receives one per statement of d; may be NULL
  double *peak;             // receives the peak bytes of each of the p places; may be NULL
  void (*task_fn)(void *user, int stmt, int64_t place, double start, double end);  // the time line
  // A task of stmt fetches bytes that statement `from` computed; from -1: of a pinned input.
  void (*fetch_fn)(void *user, int from, int stmt, int operand, int64_t place, double bytes);
  void (*move_fn)(void *user, const ein_sim_move *move);  // every message
  void *user;
  double max_work;          // as in ein_decompose_desc; default 1e8
} ein_sim_desc;

// Enumerates the tasks of a decomposition: bytes and messages exactly as any fabric moves them, and
// a predicted time line. A message takes latency + bytes / bandwidth; out of and into a place, and
// a node, one goes after the other: statement by statement, every place to the next one first, and
// between nodes, within one, first come first served. Partial results meet in a tree. Where tasks
// read very many blocks (2^26 in all statements; with nodes 2^20 of one), places are taken to send
// equal shares of what is fetched, tasks wait for the last, and there is no move_fn. desc may be
// NULL; graph is that which was decomposed. EIN_ERR_TOO_LARGE: it takes more than max_work.
EIN_API ein_status ein_simulate(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                const ein_sim_desc *desc, ein_sim_info *info);
EIN_API const char *ein_cost_name(ein_cost cost);         // "paper"; NULL: none
EIN_API ein_cost ein_cost_find(const char *name);         // of that name; EIN_COST_COUNT: none

// ---- machines, distributions and schedules ----
// Yadav et al. 2022, DISTAL, sections 3.2 and 3.3. Texts: see MACHINES and SCHEDULES. All three are
// immutable; destroying NULL is a no-op. What is printed goes into buf as snprintf does.
typedef struct ein_grid ein_grid;
typedef struct ein_distribution ein_distribution;
typedef struct ein_schedule ein_schedule;

typedef struct ein_grid_dim {
  const char *name, *level_name;  // "": the only level, without a name
  int level;                // from 0, the outermost
  int64_t extent;
} ein_grid_dim;

// "gx=2, gy=p/gx". Points are numbered row-major; point i lies at place i, and where there are more
// of them than places, consecutive ones share a place. EIN_ERR_ARGUMENT: an extent is no whole
// number from 1 on, or places not from 1 to EIN_PLACES_MAX; EIN_ERR_TOO_LARGE: more points.
EIN_API ein_status ein_grid_create(ein_ctx *ctx, const char *text, int64_t places,
                                   ein_grid **grid);
EIN_API void ein_grid_destroy(ein_grid *grid);
EIN_API int ein_grid_dimension(const ein_grid *grid, int k, ein_grid_dim *dim);  // 0: none
EIN_API int64_t ein_grid_size(const ein_grid *grid);                   // points
EIN_API int64_t ein_grid_place(const ein_grid *grid, int64_t point);   // -1: no such point
EIN_API size_t ein_grid_print(const ein_grid *grid, char *buf, size_t size);

// "xy->x0*", one for each level. grid must outlive the distribution.
EIN_API ein_status ein_distribution_create(ein_ctx *ctx, const char *text, int rank,
                                           const ein_grid *grid, ein_distribution **out);
EIN_API void ein_distribution_destroy(ein_distribution *d);
EIN_API const ein_grid *ein_distribution_grid(const ein_distribution *d);  // borrowed
EIN_API size_t ein_distribution_print(const ein_distribution *d, char *buf, size_t size);
// The box [lo, hi); a status other than EIN_OK ends the call that it came from, with it.
typedef ein_status (*ein_box_fn)(void *user, const int64_t *lo, const int64_t *hi);
// Calls fn for disjoint boxes: what a place holds. EIN_ERR_TOO_LARGE: 2^22 ranges along an axis.
EIN_API ein_status ein_distribution_boxes(const ein_distribution *d, const int64_t *shape,
                                          int64_t place, ein_box_fn fn, void *user);

typedef struct ein_schedule_desc {
  const char *text;         // NULL: the commands behind the statements of the graph's program
  size_t length;            // bytes; 0: up to the terminating NUL
  int64_t places;           // p; default 1
  const ein_machine *machine;  // copied; what takes more than its memory is refused by runs
  int max_errors;           // default 20
} ein_schedule_desc;

EIN_API int ein_graph_commands(const ein_graph *graph);  // 1: there are some behind its statements
// Mistakes have their place in the text and the reason. The graph must outlive the schedule.
// Statements are counted as in ein_schedule_graph: with those that are computed first.
EIN_API ein_status ein_schedule_create(ein_ctx *ctx, const ein_graph *graph,
                                       const ein_schedule_desc *desc, ein_schedule **out);
EIN_API void ein_schedule_destroy(ein_schedule *s);
EIN_API const ein_graph *ein_schedule_graph(const ein_schedule *s);  // borrowed
EIN_API size_t ein_schedule_print(const ein_schedule *s, char *buf, size_t size);  // commands
// Borrowed; NULL: none. Results that are not placed lie where they are computed, at points whose
// reduced loops are at 0 (NULL: of several statements, each its values); inputs, everywhere.
EIN_API const ein_grid *ein_schedule_grid(const ein_schedule *s, int stmt);  // -1: the first
EIN_API const ein_distribution *ein_schedule_distribution(const ein_schedule *s, int tensor);
// Where a tensor is placed, as ein_decompose_desc.pin; "": nothing is said. EIN_ERR_UNSUPPORTED: it
// is no such partition, and why. EIN_ERR_ARGUMENT: buf is too small.
EIN_API ein_status ein_schedule_pin(ein_ctx *ctx, const ein_schedule *s, int tensor, char *buf,
                                    size_t size);

typedef enum ein_loop_kind {
  EIN_LOOP_PLACE = 0, EIN_LOOP_TIME,       // over points of the machine; one after another
  EIN_LOOP_PARALLEL, EIN_LOOP_WHOLE        // whole in a step; the first one by threads
} ein_loop_kind;
typedef struct ein_loop {
  const char *name;
  ein_loop_kind kind;
  int64_t extent;           // values, at most
  int dimension;            // of the grid; -1: none
} ein_loop;
// Loop k of a statement, from the outermost on; 0 beyond the last, and where no command is of it.
EIN_API int ein_schedule_loop(const ein_schedule *s, int stmt, int k, ein_loop *loop);

// Commands that place and move the same; of its own graph (none is rfactor(..)) or the given one.
EIN_API size_t ein_decomposition_schedule(const ein_graph *graph, const ein_decomposition *d,
                                          char *buf, size_t size);

// What a point receives before a step, or, of its partial result, sends after it.
typedef struct ein_schedule_move {
  int stmt, operand;        // operand -1: the result
  int64_t step, point, place;  // whose task it is of
  int64_t from, to;         // places
  int64_t bytes;            // of partial results as states, where they are not complete
} ein_schedule_move;
typedef ein_status (*ein_move_fn)(void *user, const ein_schedule_move *move);
typedef struct ein_schedule_info {
  const char *out;          // the tensor that the statement defines
  int64_t line;             // in the source, or 0
  int64_t tasks, steps, messages, bytes;  // in all; tasks: of all points and steps
  int64_t fan;              // most messages that a place sends in one step
} ein_schedule_info;

// Counts what a statement moves; fn, which may be NULL, is called for all of it, step by step; a
// status other than EIN_OK ends the call. EIN_ERR_TOO_LARGE: too many points times steps. How long
// that takes says a run on ein_fabric_sim of einsum_dist.h.
EIN_API ein_status ein_schedule_cost(ein_ctx *ctx, const ein_schedule *s, int stmt, ein_move_fn fn,
                                     void *user, ein_schedule_info *info);
// Most bytes at a place while each statement runs, and at each place, with what tasks read of
// inputs that are not placed; either may be NULL.
EIN_API ein_status ein_schedule_peaks(ein_ctx *ctx, const ein_schedule *s, ein_inputs inputs,
                                      double *stmt, double *place);
// One whose peaks are within desc->machine->memory, see SCHEDULES; moves few bytes, whatever
// desc->cost. EIN_ERR_TOO_LARGE: none found; the message says how much memory is enough.
EIN_API ein_status ein_schedule_fit(ein_ctx *ctx, const ein_graph *graph,
                                    const ein_decompose_desc *desc, ein_schedule **out);
