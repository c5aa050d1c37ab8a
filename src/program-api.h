#ifndef EINSUM_CORE_ONLY
// ================================================================================================
// >>program-api  public types and functions
// Every fallible call returns an ein_status. With a ctx, the messages are in ein_ctx_error.
// ================================================================================================

// One statement of a graph: out[out_map(i)] = fold over the reduced indices of
// map(operand 0[proj[0](i)], operand 1[proj[1](i)], ..). Everything is borrowed for the call.
typedef struct ein_stmt_desc {
  int out;                  // the tensor defined, by its id
  ein_zmap out_map;         // rank of out x nindex; reduced columns are 0; coef NULL: the free
                            //   indices in order. A map's offset may be NULL (zeros)
  int nindex, nfree;        // free indices first, then the reduced ones
  const int64_t *extent;    // nindex of them
  const char *const *index; // their names; default i0, i1, ..
  int noperand;
  const int *operand;       // ids of inputs, or of tensors whose statements are all there
  const ein_zmap *proj;     // rank of the operand x nindex each
  const char *map;          // expression over x0, x1, .., names of indices (their values) and of
                            //   params; default the product of the operands
  const char *fold;         // by name; default sum, when there are reduced indices; or an operator
  ein_rest rest;            // EIN_REST_ZERO: elements of out that out_map does not reach are 0
} ein_stmt_desc;

typedef struct ein_program_desc {
  const char *text;
  size_t length;            // bytes; 0: up to the terminating NUL
  int nbind;                // views of inputs, by name: they give sizes and dtypes
  const ein_binding *bind;
  int nsize;                // sizes by name: of declared sizes, or of indices left open
  const ein_size *size;
  ein_dtype dtype;          // of inputs without one; default f64
  int open;                 // 1: sizes of inputs that nothing says stay open
  int max_errors;           // default 20
  int max_nesting;          // default 256
  size_t max_source;        // bytes; default 16 MiB
} ein_program_desc;

// ---- graphs from C calls ----
// Creates an empty graph that tensors, params and statements are added to. ctx may be NULL; else it
// must live until the graph is finished, and knows the functions and monoids maps may name. The
// first mistake sticks: later calls return its status, so checking ein_graph_finish is enough; the
// message (ein_ctx_message) names the statement. The graph is the caller's, also after a mistake.
EIN_API ein_status ein_graph_create(ein_ctx *ctx, ein_graph **graph);
// Adds a tensor; *id is its number, from 0, and -1 on failure. Inputs need a dtype and a shape; of
// others the statements give what is not said (EIN_NONE, NULL), and must agree with what is.
EIN_API ein_status ein_graph_add_tensor(ein_graph *graph, const char *name, ein_role role,
                                        ein_dtype dtype, int rank, const int64_t *shape, int *id);
// Adds a scalar given when executing; dtype EIN_NONE: it takes the dtype it meets, as a literal
// does; value its default (NULL: none), which the dtype must hold.
EIN_API ein_status ein_graph_add_param(ein_graph *graph, const char *name, ein_dtype dtype,
                                       const ein_scalar *value, int *id);
// Adds a statement, one of perhaps several pieces of its tensor; all of them come before a
// statement that reads it. EIN_ERR_BOUNDS when an operand's map leaves its tensor.
EIN_API ein_status ein_graph_add_statement(ein_graph *graph, const ein_stmt_desc *desc);
// Appends lines in the language of programs, as "Y[j] = concat[j](A[j], B[j])": they read tensors
// and params of the graph, and define tensors that were added without statements, or new ones,
// which are temporaries unless an output line names them. Tensors with statements are complete.
EIN_API ein_status ein_graph_add_text(ein_graph *graph, const char *text);
// Appends statements that define the gradients of loss, a real scalar, by nwrt tensors: in
// grad[k], a tensor added before and not yet defined, that by wrt[k], an input or a defined tensor
// of floats, whose shape and dtype it has unless others were given. seed: a tensor of the shape of
// loss, which may then be any; the gradient is that of sum(seed*loss), of the real part of
// sum(conj(seed)*loss) for complex ones; -1: none. See GRADIENTS for kinks and complex numbers.
// EIN_ERR_UNSUPPORTED, with the statement, where a function of yours or an integer is between.
EIN_API ein_status ein_graph_add_gradient(ein_graph *graph, int loss, int nwrt, const int *wrt,
                                          int seed, const int *grad);
// Proves that pieces are disjoint and fill their tensors (EIN_ERR_SHAPE), drops what no output
// needs; then the graph is read-only and can be planned.
EIN_API ein_status ein_graph_finish(ein_graph *graph);

// ---- graphs from text ----
// Parses, checks and lowers a program. Reports up to max_errors mistakes. The graph is the caller's
// (ein_graph_destroy), *graph is NULL on failure; texts and views are borrowed for the call.
EIN_API ein_status ein_graph_parse(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph);
// The name of size i of those left open (desc->open); NULL beyond the last. Such a graph can be
// printed and has a normal form; what plans or runs it answers EIN_ERR_SHAPE. Its extents are
// numbers that stand for sums of sizes, like n-k+1; EIN_ERR_UNSUPPORTED for others, as div(n,2).
EIN_API const char *ein_graph_size(const ein_graph *graph, int i);
// Names and dtypes of the declared inputs of a program, without sizes: for tools that must open
// files first. Calls fn for each; its dtype is EIN_NONE when the program does not say.
EIN_API ein_status ein_program_inputs(ein_ctx *ctx, const ein_program_desc *desc,
                                      void (*fn)(const char *name, ein_dtype dtype, int rank,
                                                 void *user), void *user);
// A graph, however it was made, in the notation of programs, into buf. Returns the length of the
// whole text without its NUL, as snprintf does.
EIN_API size_t ein_graph_print(const ein_graph *graph, char *buf, size_t size);

// ---- normal forms ----
// What the statements of a graph are, whatever they were called and in whichever order they were
// written: statements of one form that wait for equally many others are one group, and a group is
// canonised alone. Two graphs of one group have equal forms exactly when they are isomorphic as
// batched einsums: by bijections of rows, operand positions, indices, tensors and params that keep
// extents, dtypes, folds, coordinates and the expression up to the order in which + and * take two
// arguments; of a product of operands any order. (Kulkarni and Kloeckner 2025, section 5.)
typedef struct ein_canon ein_canon;

typedef struct ein_canon_stmt {  // of the form, whose statements stand group by group
  int64_t group;            // from 0, in the order of their text
  int64_t stmt, line;       // statement of the source, by its number and line
  int nindex, noperand;
  const int *index;         // index c of the form is index[c] of the source's statement,
  const char *const *name;  // which is called name[c]
  const int *operand;       // operand k of the form is operand[k] there; one that is read twice
                            //   is two of the form
} ein_canon_stmt;

// work: of the search, about the arcs that may be looked at; 0: as much as takes half a second.
// EIN_ERR_TOO_LARGE beyond. ctx gives memory and takes messages, and may be NULL. The form is the
// caller's; it does not need the graph any more.
EIN_API ein_status ein_canon_create(ein_ctx *ctx, const ein_graph *graph, int64_t work,
                                    ein_canon **canon);
EIN_API void ein_canon_destroy(ein_canon *canon);                 // NULL is a no-op
EIN_API const ein_graph *ein_canon_graph(const ein_canon *canon); // lives as long; print it
EIN_API int64_t ein_canon_groups(const ein_canon *canon);
// Statement k of the form; 0 beyond the last. Pointers live as long as the form.
EIN_API int ein_canon_statement(const ein_canon *canon, int64_t k, ein_canon_stmt *info);
// The tensor, or param, of the source that one of the form is; -1: there is none of that number.
EIN_API int64_t ein_canon_tensor(const ein_canon *canon, int id);
EIN_API int64_t ein_canon_param(const ein_canon *canon, int id);  // likewise of sizes left open:
EIN_API int64_t ein_canon_size(const ein_canon *canon, int id);

// ---- rewrites ----
// Graphs that compute the same: a rule changes one statement, or says why not. kind 0: every
// operation stays; 1: sums and products are rounded otherwise, and where infinite values are among
// them NaN may come or go; 2: as real numbers (x-x is 0).
typedef struct ein_rewrite {
  const char *rule, *what, *out;  // its name, what it does, and the tensor made there
  int kind, part;           // part: which of the places in that statement
  int64_t stmt, line;       // of the graph, and of its source; of "prune" stmt is a tensor
  double flops, bytes, held;  // added: operations, bytes read and written, those of temporaries
} ein_rewrite;

EIN_API const char *ein_rewrite_rule(int i, const char **what, int *kind);  // NULL beyond the last
// Calls fn for each place where a rule up to a kind applies; effects 0: what is added is not told.
EIN_API ein_status ein_rewrites(ein_ctx *ctx, const ein_graph *graph, int kind, int effects,
                                void (*fn)(const ein_rewrite *rewrite, void *user), void *user);
// The graph after (rule NULL: as it is), with the lines of its text. part < 0: the first that
// applies. The caller's. EIN_ERR_UNSUPPORTED, with the reason, where none does.
EIN_API ein_status ein_rewrite_apply(ein_ctx *ctx, const ein_graph *graph, const char *rule,
                                     int64_t stmt, int part, ein_graph **made);
// EIN_OK: proved, without data, that a graph with the same inputs and outputs (one cut into shards)
// computes the same, up to the order of sums. EIN_ERR_UNSUPPORTED: not, with where or why.
EIN_API ein_status ein_rewrite_equal(ein_ctx *ctx, const ein_graph *graph, const ein_graph *other);

// ---- I/O bounds ----
// What the statements of a graph must move between a fast memory and all other, whatever the order
// in which their points are gone through, each statement alone: its operands come from outside and
// its result goes there. Everything is counted in elements. A box of points with sides D touches
// X elements of the operands, and of the result where something is reduced; chi(X) points can be
// gone through with X elements, and X0 is where intensity rho = chi(X) / (X - fast) is least.
// (Ziogas et al. 2022, Deinsum, section IV; Kwasniewski et al. 2021, SOAP. Of several accesses to a
// tensor the largest counts. Boxes are not the best sets for coordinates like h+r: there `bound`
// comes from Christ et al. 2013, and is what must move at least where their lattice is too large.)
typedef struct ein_bound ein_bound;

typedef struct ein_bound_desc {
  double fast_memory;       // elements, at least 1
  int64_t places;           // default 1
} ein_bound_desc;

typedef struct ein_intensity {
  double rho;               // points per element moved, at most; INFINITY: nothing need be moved
  double x0;                // INFINITY: the larger a segment, the better; rho is the limit
  const double *tile;       // [nindex] sides of the best box; INFINITY: the larger, the better
  double bound;             // points / rho
  double per_place;         // that, divided by places
} ein_intensity;

typedef struct ein_bound_stmt {
  const char *out;          // the tensor it defines
  int64_t line;             // in the source, or 0
  int nindex;
  const char *const *index; // their names
  const int64_t *extent;
  double volume;            // points
  double flops;             // operations
  double balance;           // operations that a core of the ctx's machine does while memory brings
                            //   an element of the result's dtype; 0: not known. Where flops / bound
                            //   is less, memory is the ceiling, else arithmetic
  double compulsory;        // elements read once, and results written once, at least
  double bound;             // elements that move at least, whatever is done: of whole segments, and
                            //   no less than compulsory
  double per_place;         // that the place with the most work receives and sends, at least: it
                            //   holds as much as fits into its fast memory at first
  ein_intensity paper, capped;  // for sides as long as they like, and no longer than extents
} ein_bound_stmt;

// ctx gives memory and takes messages, and may be NULL. EIN_ERR_ARGUMENT: fast_memory or places out
// of range. EIN_ERR_TOO_LARGE: a statement of more than 128 indices, or 512 accesses. The bounds
// are the caller's; they do not need the graph any more.
EIN_API ein_status ein_bound_create(ein_ctx *ctx, const ein_graph *graph,
                                    const ein_bound_desc *desc, ein_bound **bound);
EIN_API void ein_bound_destroy(ein_bound *bound);                 // NULL is a no-op
// Statement k; 0 beyond the last. Pointers live as long as the bounds.
EIN_API int ein_bound_statement(const ein_bound *bound, int64_t k, ein_bound_stmt *info);

// ---- groups of statements ----
// Which statements of a graph best run together, in blocks, so that what one makes for another is
// never stored: the partition into connected groups, in an order that can run, that moves the
// fewest elements between a fast memory and all other, by `io`. `bound` is what every execution of
// a group moves at least, whatever is stored or computed again: segments as of ein_bound, of the
// points of all members, where only what crosses the group's border, or stands for it, is touched.
// `io` is what one execution moves that can run: block by block, members one after another, what
// they make for each other held from first to last use, so that no block cuts what is folded there,
// and halos computed again. (Ziogas et al. 2022, Deinsum, sections IV and V, where groups are
// bounded; executions and their blocks are this library's.)
typedef struct ein_fusion ein_fusion;

typedef struct ein_fusion_desc {
  double fast_memory;       // elements, at least 1
  int64_t work;             // groups whose blocks are searched, at most; default 4096
} ein_fusion_desc;

typedef struct ein_fusion_info {
  int64_t ngroup;
  double io, alone;         // elements that all groups move; and all statements one by one
  int proved;               // 1: no partition moves less, by io. Over 16 statements go 16 at once
  int64_t looked;           // groups whose blocks were searched; those of one form are one
} ein_fusion_info;

typedef struct ein_fusion_group {
  int64_t nstmt;
  const int64_t *stmt;      // [nstmt] statements of the graph, as ein_bound_statement counts them
  const int64_t *line;      // [nstmt] of the source, or 0
  const char *const *out;   // [nstmt] what they define
  int nindex;               // indices that run together are one
  const char *const *index; // [nindex] names, as of the last statement that has one
  const int64_t *extent, *tile;  // [nindex] values, and those of a block
  int last;                 // index along which blocks follow each other; -1: any
  double volume, again;     // points of all statements, and points that are gone through again
  double held;              // elements of the fast memory that are used
  double compulsory, bound; // elements that move at least, see above
  double io, alone;         // that the blocks move; and the statements one by one
} ein_fusion_group;

// As ein_bound_create; EIN_ERR_ARGUMENT also of work. May be read from many threads.
EIN_API ein_status ein_fusion_create(ein_ctx *ctx, const ein_graph *graph,
                                     const ein_fusion_desc *desc, ein_fusion **fusion);
EIN_API void ein_fusion_destroy(ein_fusion *fusion);              // NULL is a no-op
EIN_API int ein_fusion_get(const ein_fusion *fusion, ein_fusion_info *info);
// Group k, in order; 0 beyond the last. Pointers live as long as the fusion.
EIN_API int ein_fusion_part(const ein_fusion *fusion, int64_t k, ein_fusion_group *group);

// ---- counted traffic ----
// What one execution of a plan moves between a fast memory and all other, in elements, counted from
// the addresses that kernels touch. Tasks, groups and temporaries are the plan's; kernels are of
// this mode: contractions and copies in tiles for the fast memory, all else in chunks. Registers,
// tables and chunks of expressions are arithmetic, sums that wait for what is stored are memory.
typedef struct ein_count {
  double fast_memory;       // in: elements, at least 1; temporaries count by their smallest dtype
  int64_t line;             // in: elements that move together, a power of two; default 1
  int ideal;                // in: 0: what was used longest ago goes (LRU); 1: what is needed last,
                            //   from a record of up to 2^31 accesses, of 8 bytes
  double *task;             // out: [ein_plan_info.ntask] moved while each ran; may be NULL
  double accesses, moved;   // out: of elements by kernels; and the sum of
  double read[4], written[4];  // out: inputs, outputs, temporaries, sums, in whole lines. Of the
} ein_count;                //   last two, what nobody reads again need not be written

// With one thread; sums may round otherwise than in ein_plan_execute; run->workspace is not used.
// EIN_ERR_TOO_LARGE: 2^30 lines, 2^31 accesses. EIN_ERR_UNSUPPORTED: slices, products without sum.
EIN_API ein_status ein_plan_count(const ein_plan *plan, const ein_run *run, ein_count *count);

// ---- index spaces ------------------------------------------------------------------------------
EIN_API ein_status ein_zrange_size(const ein_zrange *r, int64_t *size);  // 0 when empty
EIN_API int ein_zrange_contains(const ein_zrange *r, const ein_zpoint *p);
EIN_API int ein_zrange_contains_range(const ein_zrange *r, const ein_zrange *inner);
// out = a intersected with b; empty when disjoint. Ranks must agree. out's memory is the caller's.
EIN_API ein_status ein_zrange_intersect(const ein_zrange *a, const ein_zrange *b, ein_zrange *out);
EIN_API ein_status ein_zrange_translate(const ein_zrange *a, const int64_t *by, ein_zrange *out);
// Piece i of n of the range along an axis: ceil-sized pieces, the last ones ragged or empty.
EIN_API ein_status ein_zrange_split(const ein_zrange *a, int axis, int64_t n, int64_t i,
                                    ein_zrange *out);
// out has rank a->rank + b->rank.
EIN_API ein_status ein_zrange_product(const ein_zrange *a, const ein_zrange *b, ein_zrange *out);
EIN_API ein_status ein_zmap_point(const ein_zmap *m, const ein_zpoint *x, ein_zpoint *y);
// The block a point selects: [m(x), m(x) + block).
EIN_API ein_status ein_zmap_block(const ein_zmap *m, const ein_zpoint *x, ein_zrange *y);
// The smallest range that holds the image of a range; exact per row, also for mixed signs.
EIN_API ein_status ein_zmap_range(const ein_zmap *m, const ein_zrange *x, ein_zrange *y);
