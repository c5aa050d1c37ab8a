#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_DIST_H
#define EINSUM_DIST_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>dist-api  public types and functions
// Every fallible call returns an ein_status. With a ctx, the messages are in ein_ctx_error.
// ================================================================================================

// ---- tensor relations ---------------------------------------------------------------------------

// Immutable once made; read by any number of threads.
typedef struct ein_relation ein_relation;

typedef struct ein_relation_info {
  ein_dtype dtype;          // of the blocks
  int rank;                 // axes of the tensor
  const int64_t *bound;     // its extents
  int nkey;                 // rank, and the cut reduced indices not yet aggregated
  const int64_t *pieces;    // nkey: the partition; piece k of d of an extent E is
                            //   [floor(k*E/d), floor((k+1)*E/d))
  int nstate;               // scalars of a partial result's state; 1 for values
  int64_t nblock;           // product of pieces
} ein_relation_info;

// What a join runs on the blocks of one key instead of the statement: in[k] is the block operand k
// reads, out the block to write; origin[i] is the first value of the statement's index i, and
// extent[i] how many there are. A status other than EIN_OK ends the join with it.
typedef ein_status (*ein_block_fn)(void *user, const int64_t *origin, const int64_t *extent,
                                   const ein_ztensor *in, const ein_ztensor *out);

// The relation of a tensor cut into pieces[r] pieces along axis r (1 .. max(1, extent)). Its blocks
// are views: the memory stays the caller's and must outlive the relation. *r is NULL on failure:
// EIN_ERR_SHAPE for pieces, what ein_view_check says of the view.
EIN_API ein_status ein_relation_view(ein_ctx *ctx, const ein_ztensor *view, const int64_t *pieces,
                                     ein_relation **r);
EIN_API void ein_relation_destroy(ein_relation *r);  // NULL is a no-op
EIN_API void ein_relation_get(const ein_relation *r, ein_relation_info *info);
// The block of a key (nkey piece numbers): a view borrowed from the relation, and where it begins
// in the tensor (rank coordinates; origin may be NULL). EIN_ERR_BOUNDS when there is no such key.
EIN_API ein_status ein_relation_block(const ein_relation *r, const int64_t *key,
                                      ein_ztensor *block, int64_t *origin);
// The same of scalar number `state` of a block of states (0: that of ein_relation_block): argmax,
// argmin: value and position; var: count, mean, sum of squared deviations; mean: sum; a monoid of
// your own: its state.
EIN_API ein_status ein_relation_state(const ein_relation *r, const int64_t *key, int state,
                                      ein_ztensor *block);
// Writes the whole tensor. out: shape and dtype of the relation. EIN_ERR_ARGUMENT before what was
// cut over reduced indices is aggregated.
EIN_API ein_status ein_relation_read(const ein_relation *r, const ein_ztensor *out);

// Joins relations on the keys of statement stmt of a graph, whose index i is cut into cut[i] pieces
// (nindex of them): rel[k] holds operand k's tensor. The statement's free indices must be the axes
// of its output in order. fn NULL: the statement itself runs on the blocks; param: its params.
// Where reduced indices are cut, blocks are partial results: values, or states (info.nstate, and
// mean's sums). What fn writes are values.
EIN_API ein_status ein_relation_join(ein_ctx *ctx, const ein_graph *graph, int stmt,
                                     const int64_t *cut, const ein_relation *const *rel,
                                     const ein_scalar *param, ein_block_fn fn, void *user,
                                     ein_relation **out);
// Folds the blocks that differ only in keys of reduced indices, element by element, with a monoid:
// "sum", .., or one registered in the ctx. The result has the dtype the join's statement gives.
// States are merged and finished by the monoid that made them: EIN_ERR_ARGUMENT for another.
EIN_API ein_status ein_relation_aggregate(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                          ein_relation **out);
// The same tensor in another partition; blocks are copies.
EIN_API ein_status ein_relation_repartition(ein_ctx *ctx, const ein_relation *r,
                                            const int64_t *pieces, ein_relation **out);

// ---- fabrics: places and how they exchange data -------------------------------------------------

// Tickets of operations under way (ein_ticket) are a provider's own but for 0, which is done.

// p places: a place is memory and cores. A fabric of several processes drives only the places
// [first, first + count) from each; every process makes the same calls in the same order. Slots
// that move data are only there where places do not share memory. Transfers do not block; data
// must stay as it is until its ticket is done, and every ticket but 0 is waited for in the end.
// Messages between two places with one tag arrive in the order they were sent in; a plan gives each
// of a statement's a tag of its own. One thread at a time calls a fabric. Without test_fn the
// earliest ticket is waited for when there is nothing to compute.
typedef struct ein_fabric {
  const char *name;
  int places, first, count;
  int shared;               // 1: one memory; blocks are views of one tensor, nothing is copied
  int threads;              // 1: tasks run as their inputs are ready, on the ctx's executor
  void *user;
  ein_status (*send_fn)(void *user, int from, int to, int64_t tag, const void *data, size_t bytes,
                        ein_ticket *ticket);
  ein_status (*recv_fn)(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                        ein_ticket *ticket);
  ein_status (*test_fn)(void *user, ein_ticket ticket, int *done);
  ein_status (*wait_fn)(void *user, ein_ticket ticket);
  // The worst status of all processes becomes everybody's; NULL: one process drives all places.
  ein_status (*agree_fn)(void *user, ein_status *status);
  // Room for so many tickets at once, of so many bytes: what follows does not fail for want of
  // memory, which other processes would wait for in vain. NULL: there is always room.
  ein_status (*room_fn)(void *user, int64_t tickets, int64_t bytes);
  void (*destroy_fn)(void *user);
  // The first of n numbers that are not the same on all processes, n where all are. NULL: nobody
  // looks whether processes make different calls.
  ein_status (*same_fn)(void *user, int64_t n, const uint64_t *word, int64_t *first);
  // One message from a place to several; NULL both: one for each. groups_fn: a plan's groups that
  // places of this process are in, in an order that all share: group g has the places
  // place[first[g]] .. place[first[g + 1] - 1], and turns[g] messages in a run. n -1: a process has
  // no memory, then all get that status. Gives numbers, or -1 for all of them, on all processes.
  // spread_fn: every place of a group posts message `turn` of `turns` from place root, in any
  // order; data: what root sends, or where it goes.
  ein_status (*groups_fn)(void *user, int n, const int *first, const int *place, const int *turns,
                          int *number);
  ein_status (*spread_fn)(void *user, int number, int turns, int turn, int root, void *data,
                          size_t bytes, ein_ticket *ticket);
  // Folds partial results of all places of a group, in its order, into `data` of the first, which
  // gives one, too; with groups_fn, or NULL. For max, min, any and all, sums and products of
  // integers, in whatever tree; counted as messages of the plan's: see BYTES.
  ein_status (*reduce_fn)(void *user, int number, int turns, int turn, int fold, ein_dtype dtype,
                          void *data, size_t bytes, ein_ticket *ticket);
  // What is posted next is in this provider's memory, of the place whose send or receive it is; k
  // NULL: in the host's, as it is at first. Another status than EIN_OK, or NULL: not from there.
  ein_status (*memory_fn)(void *user, const ein_kernels *k);
  // A clock: the same jobs run, but nothing is computed and no data is there; what a task takes
  // follows from the machine (NULL: there is no clock). One process drives all places. Tickets are
  // numbers from 1 on, as low as can be; room_fn sets the clock to 0. compute_fn: a task of so many
  // seconds is ready at a place, which does one at a time, of those that are ready the one of the
  // least order. next_fn: waits until an operation is over and gives its ticket, which is free
  // then, and when it began and ended; ticket 0: none is under way.
  const ein_machine *machine;
  ein_status (*compute_fn)(void *user, int place, int order, double seconds, ein_ticket *ticket);
  ein_status (*next_fn)(void *user, ein_ticket *ticket, double *begin, double *end);
} ein_fabric;

// Fills *fabric. serial: places one after another in one memory. threads: the same on the threads
// of the ctx's executor. copying: one after another, each place in memory of its own, so that
// every transfer is a copy; the ctx (may be NULL) gives its allocator; with `threads` set to 1, its
// tasks run on the threads, too, while others' data moves. sim: a clock, see FABRICS; machine NULL:
// all defaults. places: 1 .. EIN_PLACES_MAX. EIN_ERR_ARGUMENT: no such machine.
EIN_API ein_status ein_fabric_serial(int places, ein_fabric *fabric);
EIN_API ein_status ein_fabric_threads(int places, ein_fabric *fabric);
EIN_API ein_status ein_fabric_copying(ein_ctx *ctx, int places, ein_fabric *fabric);
EIN_API ein_status ein_fabric_sim(ein_ctx *ctx, int places, const ein_machine *machine,
                                  ein_fabric *fabric);
EIN_API void ein_fabric_destroy(ein_fabric *fabric);  // NULL is a no-op
// What a fabric copying or sim has moved since it was made; 0 for others. Pointers may be NULL.
EIN_API void ein_fabric_moved(const ein_fabric *fabric, int64_t *messages, int64_t *bytes);

// ---- execution of a decomposed graph ------------------------------------------------------------

// A task that has run: of statement stmt at a place; level -1: the statement's block, else a merge
// of partial results, at that level of their tree. begin and end: the ctx's clock, else 0. Under a
// schedule also what moves between places that copy: level -2: what a point fetched before a step
// is put into its boxes, -3: a message with what it sends home after it; a process tells those of
// its places. Steps of one point follow each other, those of several do not. On a fabric with a
// clock begin and end are its seconds, and messages are told when they arrive (level -4) in the
// place of -2 and -3, and what is merged at home (0).
typedef struct ein_dist_event {
  int stmt, place, level, worker;
  int64_t step;              // under a schedule, else 0
  double begin, end;
  int from, operand;         // of a message: its place; what it is of, -1: a (partial) result
  int64_t bytes;
} ein_dist_event;

typedef struct ein_dist_desc {
  const ein_fabric *fabric;  // default: serial with one place; borrowed until the plan is destroyed
  const ein_decomposition *decomposition;  // of the graph, for no more places than the fabric has;
  const ein_parts *parts;    //   or one per statement as written; NULL both: nothing is cut
  const ein_schedule *schedule;  //   or a schedule, for as many places as the fabric has, that
                             //   outlives the plan; see SCHEDULES
  const ein_parts *pins;     // with parts: one per tensor of the graph; inputs with ntask > 0 are
                             //   held in this partition of their axes, others lie everywhere
  ein_inputs inputs;         // with parts or a schedule: do places hold what they read of inputs
                             //   that are not pinned? A decomposition has its own
  int nlayout;               // strides of inputs and outputs by name, as for ein_plan_graph
  const ein_binding *layout;
  int blocks;                // 1: a run binds the blocks of its places; see ein_dist_block
  const char *path;          // of a task: see ein_options.path; default auto
  int no_reuse;              // 1: every tensor keeps memory of its own
  int no_overlap;            // 1: places that do not share memory begin to move what a statement
                             //   (a step) reads when the one before is done, and compute when all
                             //   of it is there: less memory
  // Called after every task, by the thread that ran it, on several threads at once under `threads`.
  // A status other than EIN_OK stops the run with it.
  ein_status (*event_fn)(void *user, const ein_dist_event *event);
  void *event_user;
} ein_dist_desc;

// What a run did. Bytes are those of elements a task read from blocks homed at other places, and of
// partial results folded there, whether copied or not; nothing is kept between statements.
typedef struct ein_place_stats {
  int64_t tasks, received_bytes, sent_bytes;
  int64_t messages;          // received
  double busy;               // seconds of tasks, on a clock
} ein_place_stats;

typedef struct ein_dist_stats {
  int64_t tasks;             // blocks computed and merges
  int64_t messages;          // transfers between two places
  int64_t bytes;
  double seconds;            // on a fabric with a clock, else 0
  int64_t nstmt;             // room in stmt_bytes
  int64_t *stmt_bytes;       // the caller's, may be NULL: bytes of each statement
  int64_t nplace;            // room in place
  ein_place_stats *place;    // the caller's, may be NULL: of each place that the process drives
} ein_dist_stats;

// Of several processes each has its own figures: of the places that it drives.
typedef struct ein_dist_info {
  int places, nstmt;
  int64_t tasks, messages, bytes;  // what a run will do, and receive
  size_t workspace_bytes;    // of a run
  size_t plan_bytes;         // of the plan, without those of its tasks
  int64_t peak_bytes;        // the largest of places, see ein_dist_peak
  int64_t place_bytes;       // most memory that a place takes, on a fabric that copies; else 0
  int64_t away_bytes;        // of that in a provider's memory
  int nplan;                 // different task plans
} ein_dist_info;

typedef struct ein_dist ein_dist;  // immutable, shared freely between threads

// Plans a finished graph, which must outlive the plan. *d is NULL on failure: EIN_ERR_ARGUMENT
// where parts contradict the graph or each other; the message names statement and index. With a
// fabric of several processes, creating and executing are collective: all get one status, also
// (EIN_ERR_ARGUMENT) where they have different graphs, decompositions or descriptions.
EIN_API ein_status ein_dist_create(ein_ctx *ctx, const ein_graph *graph, const ein_dist_desc *desc,
                                   ein_dist **d);
EIN_API void ein_dist_destroy(ein_dist *d);  // NULL is a no-op
EIN_API ein_status ein_dist_info_get(const ein_dist *d, ein_dist_info *info);
// Most bytes that live at one place at once, by the order of statements: inputs (blocks of pinned
// ones; of others, unless they lie outside, the parts that its tasks read), blocks until their last
// reader (outputs to the end), and of one statement at a time what its task fetches from other
// places, its partial result and its block; what ein_simulate predicts. Under a schedule: what
// places that copy have beside messages (see SCHEDULES), as ein_schedule_peaks says. Bytes of a
// statement, as ein_dist_stats has them.
EIN_API int64_t ein_dist_peak(const ein_dist *d, int place);
EIN_API int64_t ein_dist_bytes(const ein_dist *d, int stmt);
// The kernels that compute the first block of a statement, one a line, into buf as snprintf does.
EIN_API size_t ein_dist_kernels(const ein_dist *d, int stmt, char *buf, size_t size);
// The block of a tensor of the graph that lives at a place: the coordinates it begins at and its
// extents, as many as the tensor has axes, and the product of these. Pointers may be NULL. A place
// without one: extents of 0, 0 elements. An input that is not pinned is whole everywhere. With
// ein_dist_desc.blocks a run binds no whole tensors, only the blocks of the places [first, first +
// count) that this process drives, dense and row-major: in[k * count + i] is that of input k at
// place first + i, out the same; NULL where there are no elements. For fabrics whose places do not
// share memory, not with layouts, and for outputs of which a single statement writes each element
// by indices of its own. Under a schedule blocks are those of distributions that are not dealt in
// turn. EIN_ERR_ARGUMENT: no such tensor or place; EIN_ERR_UNSUPPORTED: its blocks are not boxes.
EIN_API ein_status ein_dist_block(const ein_dist *d, int tensor, int place, int64_t *origin,
                                  int64_t *extent, int64_t *elements);
// Runs the plan. As for ein_plan_execute, in and out are in the order of the graph's inputs and
// outputs. Outputs must not overlap inputs. stats may be NULL. run->seconds is not used. Reentrant
// where the fabric is shared; else one run of a plan at a time. On a fabric with a clock run may be
// NULL, and what it binds is not looked at.
EIN_API ein_status ein_dist_execute(const ein_dist *d, const ein_run *run, ein_dist_stats *stats);

// ---- nodes --------------------------------------------------------------------------------------

// Which of n processes is best to drive which places of a decomposition or a schedule (the other is
// NULL) for so many places, so that few bytes go between nodes. node[k]: a name of the node of
// process k. process[r] receives the one for the r-th run of places, [floor(r*places/n),
// floor((r+1)*places/n)): each process drives one. between (may be NULL) receives the bytes between
// nodes where process r drives run r, and with this map. The same for the same arguments; the
// identity where nothing is better, and on failure. EIN_ERR_TOO_LARGE: more than 2048 processes.
EIN_API ein_status ein_nodes_map(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                 const ein_schedule *s, int places, int n, const int *node,
                                 int *process, double *between);

// ---- distributed tensors ------------------------------------------------------------------------

// A tensor of which every place of a fabric holds parts, as a distribution says; see DISTRIBUTED
// TENSORS. What is said to be collective is called by all processes of the fabric, in one order,
// and gives them one status. One thread at a time uses a tensor.
typedef struct ein_dtensor ein_dtensor;

// What a point of the machine holds, at a place that this process drives: of each axis some ranges
// of coordinates. The view has their elements, one range after another, and nothing between.
typedef struct ein_dtensor_part {
  int place;
  ein_ztensor view;         // dense and row-major, unless it is adopted
  const int64_t *nrange;    // per axis
  const int64_t *const *range;  // per axis: [range[r][2*i], range[r][2*i+1]), ascending
} ein_dtensor_part;

// Collective. how: a distribution over as many places as the fabric has, whose rank is the
// tensor's; needed by this call alone, like shape and dtype, the fabric until the tensor is
// destroyed. adopt NULL: parts have memory of their own, zero at first. Else the caller's buffers:
// nadopt views with the dtype and extents of this process's parts, in their order, any strides;
// their memory is used, never copied or freed. EIN_ERR_SHAPE: other views, on some process.
EIN_API ein_status ein_dtensor_create(ein_ctx *ctx, const ein_fabric *fabric,
                                      const ein_distribution *how, ein_dtype dtype,
                                      const int64_t *shape, int nadopt, const ein_ztensor *adopt,
                                      ein_dtensor **t);
// Collective. A tensor of a plan's graph as ein_dist_block says that a run with blocks binds it.
EIN_API ein_status ein_dtensor_of_plan(ein_ctx *ctx, const ein_dist *d, int tensor,
                                       ein_dtensor **t);
EIN_API void ein_dtensor_destroy(ein_dtensor *t);  // NULL is a no-op
EIN_API int ein_dtensor_parts(const ein_dtensor *t);  // of this process
// Part k of them, by place, then by coordinates; points that hold the same at one place are one
// part. Borrowed from the tensor. 0: there is none.
EIN_API int ein_dtensor_part_get(const ein_dtensor *t, int k, ein_dtensor_part *part);
// Calls fn for every element that this process holds, with its coordinates in the whole tensor,
// which it may change: to fill, to look. A status other than EIN_OK ends it, with that.
typedef ein_status (*ein_element_fn)(void *user, const int64_t *coord, void *element);
EIN_API ein_status ein_dtensor_each(const ein_dtensor *t, ein_element_fn fn, void *user);
// Random elements by seed and coordinates: alike for any distribution, see ein_random_element.
EIN_API ein_status ein_dtensor_random(ein_dtensor *t, uint64_t seed);
// Random element number `number` of a sequence: real ones in [-1, 1) with few bits, so that they
// are exact in every dtype, whole ones from -4 to 4.
EIN_API void ein_random_element(ein_dtype dtype, uint64_t seed, int64_t number, void *element);

// Collective. The same tensor in another distribution: the elements of `to` get their values. Only
// those move that a place does not hold in `from`, in one message for a pair of places; what
// several places hold comes from them in turn. Both tensors are of one fabric, dtype and shape and
// share no memory. bytes (may be NULL): what places of this process receive.
EIN_API ein_status ein_dtensor_copy(const ein_dtensor *from, ein_dtensor *to, int64_t *bytes);
// What that moves in all; -1: the tensors do not fit, or there is no memory.
EIN_API int64_t ein_dtensor_bytes(const ein_dtensor *from, const ein_dtensor *to);
// Collective. From a tensor that is whole at place root, and to it: a view of any strides at the
// process that drives it, NULL at others.
EIN_API ein_status ein_dtensor_scatter(ein_dtensor *t, int root, const ein_ztensor *whole);
EIN_API ein_status ein_dtensor_gather(const ein_dtensor *t, int root, const ein_ztensor *whole);
// Not collective: from a tensor that is whole here (a mapped file), and to it. Of what several
// places hold the first one stores its part, so that all processes together store all once.
EIN_API ein_status ein_dtensor_load(ein_dtensor *t, const ein_ztensor *whole);
EIN_API ein_status ein_dtensor_store(const ein_dtensor *t, const ein_ztensor *whole);

// A graph over distributed tensors: in and out in the order of its inputs and outputs, all of one
// fabric whose places do not share memory.
typedef struct ein_dtensor_plan ein_dtensor_plan;

// Collective. Decomposes the graph for the places of the fabric (how, whose p is not looked at;
// NULL: by bytes) with what lies where as constraints, and plans it. Inputs are pinned as they are
// distributed; so are outputs that have a block at every place, unless that costs more than to move
// them afterwards. Where the plan cannot have a distribution (cyclic, replicated in part, not from
// place 0 on) it has a partition like it, and runs copy. *plan is NULL on failure, which is that of
// ein_decompose or ein_dist_create with blocks, or the tensors do not fit the graph.
EIN_API ein_status ein_dtensor_plan_create(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_fabric *fabric, const ein_decompose_desc *how,
                                           const ein_dtensor *const *in, ein_dtensor *const *out,
                                           ein_dtensor_plan **plan);
EIN_API void ein_dtensor_plan_destroy(ein_dtensor_plan *plan);  // NULL is a no-op
typedef struct ein_dtensor_plan_info {  // borrowed from the plan
  const ein_decomposition *decomposition;
  const ein_dist *dist;
  int64_t moved;            // bytes that copies of inputs and outputs move in all, besides those of
} ein_dtensor_plan_info;    //   ein_dist_info
EIN_API ein_status ein_dtensor_plan_get(const ein_dtensor_plan *plan, ein_dtensor_plan_info *info);
// Collective. Runs it; param as in ein_run, stats as of ein_dist_execute, both may be NULL. Tensors
// may be others than those it was made for: EIN_ERR_ARGUMENT where they had to be distributed
// alike. One run at a time: copies are the plan's.
EIN_API ein_status ein_dtensor_plan_run(const ein_dtensor_plan *plan, const ein_dtensor *const *in,
                                        ein_dtensor *const *out, const ein_scalar *param,
                                        ein_dist_stats *stats);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_DIST_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_DIST_IMPLEMENTATION_DONE)
#define EINSUM_DIST_IMPLEMENTATION_DONE
