// einsum_dist.h - v0.1.0 - tensor relations and execution on many places - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/dist/: edit those.
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_dist.h"
//
//
// CONTENTS (search for >>name)
//
// Manual: TENSOR RELATIONS, EXECUTION, SCHEDULES, FABRICS, DISTRIBUTED TENSORS, BYTES,
//         MEMORY, DETERMINISM, FAILURES
//
//                 >>dist-api >>space >>block-plans >>dist-jobs >>relation >>join >>dist-plan
//                 >>dist-moves >>dist-groups >>dist-waits >>dist-run >>dist-own >>dist-tasks
//                 >>dist-fabric >>dist-clock >>steps >>steps-moves >>steps-plan >>steps-jobs
//                 >>steps-run >>steps-groups >>dist-public >>nodes >>layout >>dtensor
//                 >>dtensor-run
//
//
// TENSOR RELATIONS
//
// A tensor relation is a map from keys to blocks of a tensor: the pieces of its axes number the
// blocks (EinDecomp, section 5). ein_relation_view makes one of a tensor without copying. A join
// runs a statement, or a function of yours, on every combination of pieces of the statement's
// indices; where an access needs more than one block (a halo, another partition), the box is put
// together first. Reduced indices that are cut stay in the keys of the result, whose blocks are
// partial then, until ein_relation_aggregate folds them: states of mean, var, argmax, argmin and
// monoids of your own, else values. ein_relation_repartition cuts differently.
//
//     X[8,8] cut [2,4], Y[8,8] cut [4,2]   join by sum[j](X[i,j]*Y[j,k]), i,k,j cut 2,2,4:
//     keys (i,k,j), 16 blocks of 4x4       aggregate: keys (i,k), 4 blocks of 4x4
//
//
// EXECUTION
//
// A graph whose statements are cut (by ein_decompose, or by vectors of your own) runs on p places:
//
//     ein_fabric_threads(8, &fabric)             eight places on the threads of the ctx
//     desc.fabric, desc.decomposition            that fabric, and what ein_decompose gave for p = 8
//     ein_dist_create(ctx, graph, &desc, &d)     once
//     ein_dist_execute(d, &run, &stats)          as often as you like
//
// One executor serves all fabrics: a block, a merge, a send and a receive are jobs, and each runs
// when what it waits for is done: blocks that it reads, transfers, memory that is used again. There
// is no barrier between statements. A process derives the jobs of its own places and of no others.
//
// Statements are executed as written: a task computes one block of one statement, by a plan of
// einsum.h that all blocks of its shape share. Tasks are rules, not lists: task q of a statement
// runs at place q, the pieces of its indices are the digits of q, and what it reads follows from
// the projections. Boxes with a halo, strided and descending accesses, pieces and outputs with
// holes are ordinary. Partial results of mean, var, argmax, argmin and monoids of your own are the
// states of the fold: they are merged as states and finished where the block lives. Positions are
// those in the whole reduced space, ties go to the lowest.
//
//
// SCHEDULES
//
// With desc.schedule (ein_schedule_create) statements run as it says: in every step each point of
// the machine fetches what it needs from where that is placed, computes a block, and, where a
// partial result is complete, sends it home, where it is merged in the order of steps and points:
// the same bits under serial and copying, and for any number of threads.
// Statements without commands are one task at the first point. Of a graph that is deterministic the
// bits are those of ein_plan_graph. Partial results of mean, var, argmax, argmin and monoids of
// yours are states. A result placed with * goes to all copies. What several statements write, or
// sums of indices, lies where its statements put it. Refused: cuts of the folds of deterministic
// graphs, and results that are placed and written by sums of indices.
// The executor is that of decompositions: a point in a step is a job, and so is every message, with
// no barrier between steps. Messages of a step are under way while the one before is computed: they
// have memory of their own, for two steps at once (with no_overlap: for one), beside what
// ein_schedule_peaks and ein_dist_peak say; ein_dist_info.place_bytes has both. Points of a place
// compute one after another where tasks are not on threads, else each as it is ready. Under
// `threads` the iterations of a parallel loop, in 16 pieces at most, are jobs of their own. A
// process derives what its own places do and send, when the plan is made; to find who needs
// what they hold it looks at loops as long as that is read in them. Where a place has more alive
// than the schedule's machine has memory, creating it is EIN_ERR_TOO_LARGE. With parts that are
// computed first (precompute) the plan may be given the graph without them, or the schedule's,
// ein_schedule_graph: bindings are the same, statements are counted as in the latter.
//
//
// FABRICS
//
// serial      places one after another in one memory; a task may use all threads of the ctx
// threads     every task on one thread of the ctx's executor. Blocks are views of one tensor:
//             nothing is copied. p may be more or less than the number of threads
// copying     one after another, each place in memory of its own: what a place needs is sent
//             and received, so that what is counted is seen to move. With fabric.threads set to 1
//             tasks run on the threads of the executor while others' blocks are copied
// sim         a clock and no data: the jobs are those of copying, and so are the figures; a run
//             binds nothing and has memory for jobs alone, whatever the extents. On a machine
//             (ein_machine) a place computes one task at a time, the earliest statement's first,
//             and a link, of a place or of a node, carries one message after another, first come
//             first served. A message sets out when both places have posted it, takes latency +
//             bytes / bandwidth, and moves while places compute. stats.seconds says how long a run
//             takes, place[q].busy how long a place computes, events when everything happens.
//             Of messages that may set out at once those to the next place go first. ein_simulate
//             predicts the same from classes of equal tasks, for up to 2^20 places, as if a place
//             did its tasks statement by statement
// Places with memory of their own begin to send and receive what a statement reads while they
// compute the one before (not with no_overlap), straight from and into a block or an operand where
// the elements lie there one after another; a block that a task reads whole at home is not copied.
// A fabric of your own (another process per place) fills the slots of ein_fabric; every process
// then creates and executes the same plan, and gets the blocks of the outputs that live at its
// places. Inputs are the same everywhere, or, with desc.blocks, no tensor is whole anywhere: a
// process binds the blocks of its places (ein_dist_block), of inputs as they are pinned.
//
//
// DISTRIBUTED TENSORS
//
// An ein_dtensor has its parts where a distribution (DISTAL's notation, see MACHINES in einsum.h)
// puts them, and nobody has it whole:
//
//     ein_grid_create(ctx, "x=2, y=2", 4, &grid)
//     ein_distribution_create(ctx, "ij->i:64j:64", ..)      cyclic blocks of 64; "ij->i*": rows of
//                                                           half the extent, each at two places
//     ein_dtensor_create(ctx, &fabric, how, EIN_F64, shape, 0, NULL, &t)
//
// Local parts are dense, or buffers of the caller's that are adopted as they are. They are filled
// by global coordinates, from a mapped file, or from a whole tensor at one place, and copied into
// any other distribution: what a place has it keeps, the rest comes in one message from each place
// that gives some, so that exactly the elements that are missing move.
// ein_dtensor_plan_create plans a graph for inputs and outputs as they lie, ein_dtensor_plan_run
// runs it on their parts.
//
//
// BYTES
//
// Inputs lie at every place, unless they are pinned to a partition of their axes. A task reads from
// elsewhere the elements of its operands' boxes that lie in blocks homed at other places; operands
// that read the same are counted once, and nothing is kept between statements. A partial result
// that is folded elsewhere counts as a whole: values in the computation type of the fold, or all
// scalars of its states. Elements that no statement defines (zeros) never move. These are the bytes
// of the model `bytes` of einsum.h, and those a fabric that copies moves.
//
//
// MEMORY
//
// ein_dist_info.workspace_bytes is all a run needs, memory of the process's places included: if
// run->workspace has it nothing is allocated. Without one, a plan for places with memory of their
// own keeps what its first run allocated; in a shared memory, where runs may be under way at once,
// each allocates. Temporaries and partial results share memory when their statements do not overlap
// in the order written; a task that reuses memory waits for those that used it before, unless
// no_reuse is set. Under a schedule handing inputs and outputs over takes lists of their boxes.
//
// Where the ctx has a provider with memory of its own (a GPU), places that do not share memory have
// theirs there, of statements all of whose tasks run there: ein_dist_info.away_bytes at most at a
// place, which the plan takes at its first run and keeps. A fabric that can (ein_fabric.memory_fn)
// carries messages from there and there: between places of a process the provider copies them.
// Under a schedule that is what places hold of tensors that a run does not bind at them, what they
// fetch, and results. States stay at home, where the host merges them; so do statements whose
// schedule names other kernels, and what reads sums of indices as they were written. Of a
// deterministic graph nothing is there, as no provider runs it that has memory of its own.
//
//
// DETERMINISM
//
// One plan gives the same bits in every run, whatever thread runs which task: partial results are
// merged along a binary tree over their numbers, whatever order they arrive in. Fabrics may choose
// other kernels for a task (it has one thread or several), and then round otherwise.
//
// A graph made by ein_graph_deterministic gives the bits of ein_plan_graph for every number of
// places, decomposition and fabric: ein_decompose cuts no index that would change them, and parts
// that do are an error (EIN_ERR_ARGUMENT).
//
//
// FAILURES
//
// A task that fails ends the run with its status: its process computes no more but goes on sending
// and receiving, so that nobody waits in vain and nothing is under way when memory goes, and all
// agree on the status at the end. Under a schedule the figures of such a run stay 0.

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

// ================================================================================================
// >>space  blocks that meet a box, and copies of boxes
// Takes a statement's space (section placement); gives the tasks whose blocks, or what they read,
// may meet a box, and how many elements do.
// ================================================================================================

// ---- which blocks meet a box ----

// Buffers of one thread, nindex or rank long.
typedef struct eini_dist_room {
  int64_t *lo, *hi, *from, *to;        // of the task at hand
  int64_t *blo, *bhi, *bfrom, *bto;    // of a block
  int64_t *len, *box, *dst, *src;      // extents and strides of what is copied
  int64_t *s0, *s1;                    // scratch, twice as long
} eini_dist_room;

#define EINI_ROOM 16

// p: EINI_ROOM * n integers.
static void eini_dist_room_carve(int64_t *p, int64_t n, eini_dist_room *m) {
  int64_t **part[14];
  part[0] = &m->lo, part[1] = &m->hi, part[2] = &m->from, part[3] = &m->to;
  part[4] = &m->blo, part[5] = &m->bhi, part[6] = &m->bfrom, part[7] = &m->bto;
  part[8] = &m->len, part[9] = &m->box, part[10] = &m->dst, part[11] = &m->src;
  part[12] = &m->s0, part[13] = &m->s1;
  for (int k = 0; k < 14; k++) *part[k] = p + (k < 13 ? k : 14) * n;
}

static int eini_dist_room_init(eini_arena *a, int64_t n, eini_dist_room *m) {
  int64_t *p = EINI_NEW(a, int64_t, EINI_ROOM * n);
  if (p == NULL) return 0;
  eini_dist_room_carve(p, n, m);
  return 1;
}

// How many elements of the block at `place` lie in a box.
static int64_t eini_dist_overlap(const eini_space *x, int64_t place, const int64_t *from,
                                 const int64_t *to, eini_dist_room *m) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  return (int64_t)eini_block_in_box(x->s, m->blo, m->bhi, from, to, m->s0, m->s1);
}

// The tasks of a space that may touch a box, one after another.
typedef struct eini_dist_near {
  int n, index[EINI_CUTS_MAX];   // cut indices; those left out have piece 0
  int64_t lo[EINI_CUTS_MAX], hi[EINI_CUTS_MAX], at[EINI_CUTS_MAX];  // their pieces
} eini_dist_near;

// The pieces from which row r of a map may reach [from, to), into w. What a task reads is a hull:
// between the points that it needs there are others.
static int eini_dist_row_pieces(const eini_space *x, const eini_map *m, int n, int r, int64_t from,
                                int64_t to, eini_dist_room *room, eini_dist_near *w) {
  int64_t *lo = room->s0, *hi = room->s1, gap = 0;
  for (int i = 0; i < n; i++) {
    lo[i] = 0;
    hi[i] = x->s->index[i].extent;
    if (hi[i] == 0) return 0;
  }
  for (int e = m->first[r]; e < m->first[r + 1]; e++)
    if (hi[m->term[e].index] > 1) gap = eini_max64(gap, eini_abs64(m->term[e].coef) - 1);
  if (!eini_row_meets(m, n, r, from - gap, to + gap, lo, hi)) return 0;
  for (int k = 0; k < w->n; k++) {
    int i = w->index[k];
    int64_t extent = x->s->index[i].extent;
    if (hi[i] <= lo[i]) return 0;
    w->lo[k] = eini_max64(w->lo[k], eini_piece_of(extent, x->cut[i], lo[i]));
    w->hi[k] = eini_min64(w->hi[k], eini_piece_of(extent, x->cut[i], hi[i] - 1) + 1);
    if (w->lo[k] >= w->hi[k]) return 0;
  }
  return 1;
}

// Begins with the first task whose image under the map m may meet a box; 0 when there is none. Cut
// indices from n on keep piece 0.
static int eini_dist_near_begin(const eini_space *x, const eini_map *m, int n,
                                const int64_t *from, const int64_t *to, eini_dist_room *room,
                                eini_dist_near *w) {
  w->n = 0;
  if (eini_zrange_empty(m->rows, from, to)) return 0;
  for (int k = x->norder - 1; k >= 0; k--) {
    if (x->order[k] >= n) continue;
    w->index[w->n] = x->order[k];
    w->lo[w->n] = 0;
    w->hi[w->n++] = x->cut[x->order[k]];
  }
  for (int r = 0; r < m->rows; r++)
    if (!eini_dist_row_pieces(x, m, n, r, from[r], to[r], room, w)) return 0;
  for (int k = 0; k < w->n; k++) w->at[k] = w->lo[k];
  return 1;
}

// The same of blocks: homes are the tasks whose reduced indices have piece 0.
static int eini_dist_near_first(const eini_space *x, const int64_t *from, const int64_t *to,
                                eini_dist_room *room, eini_dist_near *w) {
  return eini_dist_near_begin(x, &x->s->out_map, x->s->nfree, from, to, room, w);
}

static int eini_dist_near_next(eini_dist_near *w) {
  for (int k = w->n - 1; k >= 0; k--) {
    if (++w->at[k] < w->hi[k]) return 1;
    w->at[k] = w->lo[k];
  }
  return 0;
}

// The place of the task at hand.
static int64_t eini_dist_near_place(const eini_space *x, const eini_dist_near *w) {
  int64_t place = 0;
  for (int k = 0; k < w->n; k++) place += w->at[k] * x->weight[w->index[k]];
  return place;
}

// ---- copies of boxes ----

// dst[i] = src[i] for i < shape, strides in elements of `size` bytes.
static void eini_dist_copy(int rank, const int64_t *shape, char *dst, const int64_t *dst_stride,
                           const char *src, const int64_t *src_stride, size_t size) {
  if (rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  int64_t n = shape[0], a = dst_stride[0] * (int64_t)size, b = src_stride[0] * (int64_t)size;
  if (rank == 1 && dst_stride[0] == 1 && src_stride[0] == 1) {
    if (n > 0) memcpy(dst, src, (size_t)n * size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    eini_dist_copy(rank - 1, shape + 1, dst + i * a, dst_stride + 1, src + i * b, src_stride + 1,
                   size);
}

static void eini_dist_dense(int rank, const int64_t *shape, int64_t *stride) {
  int64_t n = 1;
  for (int r = rank - 1; r >= 0; r--) {
    stride[r] = n;
    n *= eini_max64(shape[r], 1);
  }
}

// ================================================================================================
// >>block-plans  plans of a statement's blocks
// Takes a statement and the shape of a block; gives a plan of one statement over views into blocks.
// One plan serves all blocks of a shape: index values get the block's origin as params.
// ================================================================================================

// What a plan is made for. A result stored by free indices has one axis for each of them; otherwise
// it is the hull of the block in the tensor. States are stored by free indices, dense.
typedef struct eini_dist_job {
  const ein_graph *g;
  const eini_stmt *s;
  eini_stmt_block block;         // with ranges from 0 on
  const int64_t *cut;            // nindex: only cut indices have an origin
  const int64_t *const *stride;  // per operand: strides of its view; NULL entry: dense
  const int64_t *out_stride;     // of the result; NULL: dense
  int own;                       // 1: the result is the output's block
  int by_index;                  // the result is stored by free indices; 1: dense
  const eini_folder *folder;     // the results are its states, which the block is folded into
  ein_dtype dtype;               // of the result
  const int *space;              // per operand: of its view; NULL: all are the host's
  int own_space, part_space, merged_space;  // of the output's block, of partial results, and of
                                 //   those that arrive
} eini_dist_job;

// ---- graphs of one statement ----

// Is the first value of index i a param of blocks?
static int eini_dist_uses(const eini_stmt *s, const int64_t *cut, int i) {
  return cut[i] > 1 && eini_block_origin(s, i);
}

static ein_status eini_dist_add_tensor(ein_graph *g, const char *name, ein_role role,
                                       ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  static const int64_t none[1] = {0};
  return eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank,
                               rank > 0 ? shape : none, id);
}

// An empty graph with the params and registrations of another.
static ein_status eini_dist_graph(ein_ctx *ctx, const ein_graph *from, ein_graph **g) {
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  (*g)->ordered = from->ordered;
  return eini_graph_copy_names(*g, from);
}

// The result's tensor and map; of states, one tensor for each scalar.
static ein_status eini_dist_result(const eini_dist_job *j, ein_graph *g, eini_stmt *like,
                                   eini_block_view *v, int64_t **low) {
  const eini_stmt *s = j->s;
  const int rank = j->by_index ? s->nfree : j->g->tensor[s->out].rank;
  const int64_t *shape = j->block.hi;
  int64_t *hull;
  like->rest = EIN_REST_ERROR;  // what nobody defines is zero before any block is written
  if (j->by_index) {
    EINI_TRY(eini_map_new(&g->arena, rank, s->nindex, &like->out_map));
    EINI_TRY(eini_map_units(&g->arena, &like->out_map, 0, 0, rank));
  } else {
    EINI_TRY(eini_block_hull_new(&g->arena, s, &j->block, -1, low, &hull));
    shape = hull;
  }
  if (j->folder == NULL)
    return eini_dist_add_tensor(g, "y", EIN_ROLE_OUTPUT, j->dtype, rank, shape, &v->out);
  for (; v->nstate < j->folder->nstate; v->nstate++) {
    const char name[2] = {(char)('0' + v->nstate), 0};
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_OUTPUT,
                                  eini_state_dtype(j->folder, v->nstate), rank, shape,
                                  &v->state[v->nstate]));
  }
  v->out = v->state[0];
  return EIN_OK;
}

// The operands' boxes as inputs x0, x1, ..; two that read the same are one.
static ein_status eini_dist_inputs(const eini_dist_job *j, ein_graph *g, int *operand,
                                   int64_t **low) {
  const eini_stmt *s = j->s;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &j->g->tensor[s->operand[k]];
    int first = eini_operand_first(s, k);
    char name[24];
    int64_t *shape;
    operand[k] = operand[first];
    low[k] = low[first];
    if (first < k) continue;
    EINI_TRY(eini_block_hull_new(&g->arena, s, &j->block, k, &low[k], &shape));
    snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_dist_add_tensor(g, name, EIN_ROLE_INPUT, t->dtype, t->rank, shape, &operand[k]));
  }
  return EIN_OK;
}

// The statement for a block of shape len.
static ein_status eini_dist_block_stmt(const eini_dist_job *j, ein_graph *g) {
  static const ein_scalar none = {0, 0, 0};
  eini_stmt like = *j->s;
  eini_block_view v;
  int *param = EINI_NEW(&g->arena, int, j->s->nindex);
  int *operand = EINI_NEW(&g->arena, int, j->s->noperand);
  int64_t **low = EINI_NEW(&g->arena, int64_t *, j->s->noperand + 1);
  if (param == NULL || operand == NULL || low == NULL) return EIN_ERR_NO_MEMORY;
  memset(&v, 0, sizeof v);
  for (int i = 0; i < j->s->nindex; i++) {
    param[i] = -1;
    if (eini_dist_uses(j->s, j->cut, i))
      EINI_TRY(eini_graph_add_param(g, "", 0, EIN_I64, none, &param[i]));
  }
  EINI_TRY(eini_dist_inputs(j, g, operand, low));
  EINI_TRY(eini_dist_result(j, g, &like, &v, &low[j->s->noperand]));
  v.s = &like;
  v.block = &j->block;
  v.origin = param;
  v.operand = operand;
  v.low = (const int64_t *const *)low;
  return eini_block_stmt(g, &v);
}

// Plans a graph whose tensors have the given strides (NULL: dense) and are in the given spaces
// (NULL: all the host's).
static ein_status eini_dist_plan_graph(eini_block_plans *l, ein_graph *g,
                                       const int64_t *const *stride, const int *space,
                                       ein_plan **plan) {
  ein_options o;
  memset(&o, 0, sizeof o);
  o.path = l->path;
  ein_binding *bind = EINI_NEW(&g->arena, ein_binding, g->ntensor);
  ein_ztensor *view = EINI_NEW(&g->arena, ein_ztensor, g->ntensor);
  if (bind == NULL || view == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    view[t].dtype = g->tensor[t].dtype;
    view[t].rank = g->tensor[t].rank;
    view[t].shape = g->tensor[t].shape;
    view[t].strides = stride[t];
    view[t].space = space == NULL ? 0 : space[t];
    bind[t].name = g->tensor[t].name;
    bind[t].view = &view[t];
  }
  return ein_plan_graph(l->ctx, g, (int)g->ntensor, bind, &o, plan);
}

static ein_status eini_dist_block_build(eini_block_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  EINI_TRY(eini_dist_graph(l->ctx, j->g, g));
  EINI_TRY(eini_dist_block_stmt(j, *g));
  const int64_t **stride = EINI_NEW(&(*g)->arena, const int64_t *, (*g)->ntensor);
  int *space = EINI_NEW(&(*g)->arena, int, (*g)->ntensor);
  if (stride == NULL || space == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < j->s->noperand; k++) {
    if (eini_operand_first(j->s, k) < k) continue;
    space[n] = j->space == NULL ? 0 : j->space[k];
    stride[n++] = j->stride[k];
  }
  stride[n] = j->by_index == 1 ? NULL : j->out_stride;
  for (int64_t k = n; k < (*g)->ntensor; k++) space[k] = j->own ? j->own_space : j->part_space;
  return eini_dist_plan_graph(l, *g, stride, space, plan);
}

// ---- merging of partial results ----

// Which of the two sides of a merge live in the block of the output, in its dtype; the others are
// partial results by free indices, in the computation type.
enum { EINI_MERGE_FROM_OUT = 1, EINI_MERGE_TO_OUT = 2 };

// The plan of a merge of a job's partial results. With EINI_MERGE_FROM_OUT the result goes there,
// too. Numbers and keys as below.
static ein_status eini_dist_merge_plan(eini_block_plans *l, const eini_dist_job *j, int how,
                                       const int64_t *key, int64_t nkey, int64_t *id) {
  const eini_stmt *s = j->s;
  const ein_dtype type = ein_dtype_compute(s->type);
  const eini_merge_side part = {type, s->nfree, j->block.hi, NULL, NULL, NULL, j->part_space};
  eini_merge_side out = {j->dtype, s->nfree, j->block.hi, NULL, NULL, NULL, j->own_space};
  eini_block_merge x = {s->fold, 0, type, s->nfree, j->block.hi, part, part, part};
  eini_arena scratch;
  int64_t *low, *shape;
  eini_arena_init(&scratch, &l->a->al);
  ein_status st = eini_block_hull_new(&scratch, s, &j->block, -1, &low, &shape);
  if (!j->by_index && st == EIN_OK) {
    const eini_merge_side affine = {j->dtype, s->out_map.rows, shape, j->out_stride, &s->out_map,
                                    low, 0};
    out = affine;
  }
  x.right.space = j->merged_space;
  if (how & EINI_MERGE_FROM_OUT) x.left = out;
  if (how & EINI_MERGE_TO_OUT) x.result = out;
  if (st == EIN_OK) st = eini_block_merge_plan(l, &x, key, nkey, id);
  eini_arena_free(&scratch);
  return st;
}

// The plan of a job, made when there is none yet; *id is its number in the list. key: what tells
// the job from others.
static ein_status eini_dist_plan(eini_block_plans *l, const eini_dist_job *j, const int64_t *key,
                                 int64_t nkey, int64_t *id) {
  *id = eini_block_plan_find(l, key, nkey);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  if (*id < l->n) return EIN_OK;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_status st = eini_dist_block_build(l, j, &g, &plan);
  eini_graph_free(g);
  return st == EIN_OK ? eini_block_plan_keep(l, plan) : st;
}

// Does all of a plan run where a provider's memory is? NULL: it could not be made.
static int eini_dist_plan_away(const ein_plan *p) {
  int away = p != NULL && p->away != NULL;
  for (int t = 0; away && t < p->ntask; t++) away = eini_task_away(&p->task[t]);
  return away;
}

// A plan of blocks could not be made in the provider's memory: its key has a number.
static ein_status eini_dist_plan_none(eini_block_plans *l) {
  while (l->n < l->keys.n) EINI_TRY(eini_block_plan_keep(l, NULL));
  return EIN_OK;
}

// A ctx for the plans of tasks: allocator, kernels and clock of the caller's, and its executor
// unless every task is to run on one thread.
static ein_status eini_dist_ctx(const ein_ctx *ctx, int one_thread, ein_ctx **sub) {
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  if (ctx != NULL) {
    d.allocator = ctx->al;
    d.nkernels = ctx->nkernels;
    d.kernels = (const ein_kernels *const *)ctx->kernels;
    if (!one_thread) d.executor = ctx->executor;
  }
  return eini_ctx_new(&d, sub);
}

// ================================================================================================
// >>dist-jobs  jobs and the executor of all fabrics
// Takes jobs and what each waits for; runs what is ready, on any number of threads: transfers
// before computations, those of early statements first. No thread waits while a job is ready.
// ================================================================================================

#if defined(__unix__) || defined(__APPLE__)
#define EINI_DIST_THREADS 1
#include <pthread.h>
#include <sched.h>
static void eini_flow_yield(void) { (void)sched_yield(); }
#else
#define EINI_DIST_THREADS 0
static void eini_flow_yield(void) {}
#endif

typedef enum eini_job_kind {
  EINI_JOB_NONE,            // a number that is not used
  EINI_JOB_GATE,            // done as soon as what it waits for is
  EINI_JOB_RECEIVE,         // arg: a move
  EINI_JOB_SEND,
  EINI_JOB_ZERO,            // of a tensor, before the statement at hand writes it
  EINI_JOB_BLOCK,
  EINI_JOB_MERGE,           // arg: a level of the tree of partial results
  EINI_JOB_SHARE,           // under a schedule: of a block, which JOIN ends; arg: a task
  EINI_JOB_JOIN,
  EINI_JOB_ARRIVE,          // of what comes home; arg: a move
  EINI_JOB_SUM,             // of what is merged at home, before and behind; arg: a memory
  EINI_JOB_FINISH
} eini_job_kind;

typedef struct eini_job {
  int32_t kind, stmt;
  int32_t place;            // among those of the process
  int32_t arg;
} eini_job;

// Immutable once made.
typedef struct eini_jobs {
  int64_t n, todo;          // todo: without those of no kind
  int64_t ntransfer;
  eini_job *job;
  int32_t *wait;            // how many jobs each waits for
  int64_t *first;           // [n + 1]: those that wait for job j are next[first[j]] ..
  int32_t *next;
  int64_t *at;              // while they are filled in
} eini_jobs;

// ---- making ----

// Numbers one more job; it is filled in the second time round.
static int32_t eini_jobs_add(eini_jobs *j, eini_job_kind kind, int64_t stmt, int64_t place,
                             int64_t arg) {
  if (j->job != NULL) {
    eini_job *x = &j->job[j->n];
    x->kind = (int32_t)kind;
    x->stmt = (int32_t)stmt;
    x->place = (int32_t)place;
    x->arg = (int32_t)arg;
    j->todo += kind != EINI_JOB_NONE;
    j->ntransfer += kind == EINI_JOB_RECEIVE || kind == EINI_JOB_SEND;
  }
  return (int32_t)(j->n++ & INT32_MAX);  // more are refused before they are used
}

// Room for the jobs that were counted, which are numbered again.
static ein_status eini_jobs_room(eini_arena *a, eini_jobs *j) {
  if (j->n >= INT32_MAX) return EIN_ERR_TOO_LARGE;
  j->job = EINI_NEW(a, eini_job, j->n);
  j->wait = EINI_NEW(a, int32_t, j->n);
  j->first = EINI_NEW(a, int64_t, j->n + 1);
  if (j->job == NULL || j->wait == NULL || j->first == NULL) return EIN_ERR_NO_MEMORY;
  j->n = 0;
  return EIN_OK;
}

// Job `to` waits for `from`. The first time round these are counted.
static void eini_jobs_edge(eini_jobs *j, int64_t from, int64_t to) {
  if (j->next == NULL) {
    j->first[from + 1]++;
    j->wait[to]++;
  } else {
    j->next[j->at[from]++] = (int32_t)to;
  }
}

// Room for the edges that were counted; at: [n].
static ein_status eini_jobs_edges(eini_arena *a, eini_jobs *j, int64_t *at) {
  for (int64_t i = 0; i < j->n; i++) {
    j->first[i + 1] += j->first[i];
    at[i] = j->first[i];
  }
  j->at = at;
  j->next = EINI_NEW(a, int32_t, j->first[j->n] + 1);
  return j->next == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Those that wait for a job come in the order of their numbers. at: [n + 1].
static ein_status eini_jobs_ordered(eini_arena *a, eini_jobs *j, int64_t *at) {
  int32_t *from = EINI_NEW(a, int32_t, j->first[j->n] + 1), *list = from;
  if (from == NULL) return EIN_ERR_NO_MEMORY;
  at[0] = 0;
  for (int64_t i = 0; i < j->n; i++) at[i + 1] = at[i] + j->wait[i];
  for (int64_t i = j->n; i-- > 0;)
    for (int64_t k = j->first[i]; k < j->first[i + 1]; k++) from[--at[j->next[k] + 1]] = (int32_t)i;
  for (int64_t i = 0; i < j->n; i++) at[i] = j->first[i];
  for (int64_t i = 0; i < j->n; i++)
    for (int32_t k = 0; k < j->wait[i]; k++) j->next[at[*list++]++] = (int32_t)i;
  return EIN_OK;
}

// ---- the order of messages ----

// Messages that may be posted at once, in turns.
typedef struct eini_turns {
  int64_t n;
  eini_ranked *heap;
} eini_turns;

// Message number `what`; group: those of a lower one come first.
static void eini_turns_add(eini_turns *x, const ein_fabric *f, int64_t group, int64_t from,
                           int64_t to, int64_t what) {
  eini_ranked *e = &x->heap[x->n];
  e->key = (double)(group * f->places + eini_links_turn(f->places, from, to));
  e->seq = e->what = what;
  eini_heap_rise(x->heap, x->n++);
}

// ---- both ----

// Makes jobs: number(user) adds them, wait(user) the edges; each is called twice, first to count.
static ein_status eini_jobs_make(eini_arena *a, eini_jobs *j, void (*number)(void *user),
                                 ein_status (*wait)(void *user), void *user) {
  eini_arena scratch;
  number(user);
  EINI_TRY(eini_jobs_room(a, j));
  number(user);
  EINI_TRY(wait(user));
  eini_arena_init(&scratch, &a->al);
  int64_t *at = EINI_NEW(&scratch, int64_t, j->n + 1);
  ein_status st = at == NULL ? EIN_ERR_NO_MEMORY : eini_jobs_edges(a, j, at);
  if (st == EIN_OK) st = wait(user);
  if (st == EIN_OK) st = eini_jobs_ordered(&scratch, j, at);
  eini_arena_free(&scratch);
  return st;
}

// ---- running ----

// What a run of jobs needs: a list of ready ones for each statement and worker, and one of
// transfers. Lists are linked through `link`; -1 ends them.
typedef struct eini_flow {
  const eini_jobs *jobs;
  const ein_fabric *fabric;
  int nstmt, width;
  // Runs a job; failed: no more is computed, but transfers go on, so that nobody waits in vain.
  ein_status (*run_fn)(void *user, int worker, const eini_job *job, int failed,
                       ein_ticket *ticket);
  void (*done_fn)(void *user, int worker, const eini_job *job);  // it has run; one at a time
  // On a clock: it is over.
  ein_status (*over_fn)(void *user, const eini_job *job, double begin, double end);
  void *user;
  int32_t *wait, *link;     // per job
  int32_t *head, *tail;     // per statement and worker
  int32_t *ready;           // per statement
  int32_t *ticket_of;       // jobs of transfers under way, and their tickets; on a clock: of ticket
                            //   k the job is at k - 1
  ein_ticket *ticket;
  char *over;               // tickets that are done
  int64_t nticket, left;
  int32_t wire, wire_last;  // transfers that can be posted
  int lowest;               // no statement before has a ready job
  int busy, polling, sleepers;
  ein_status status;        // the first failure
#if EINI_DIST_THREADS
  pthread_mutex_t lock, wires;  // wires: whoever calls the fabric
  pthread_cond_t work;
#endif
} eini_flow;

#if EINI_DIST_THREADS
static void eini_flow_lock(eini_flow *f) {
  if (f->width > 1) pthread_mutex_lock(&f->lock);
}

static void eini_flow_unlock(eini_flow *f) {
  if (f->width > 1) pthread_mutex_unlock(&f->lock);
}

static void eini_flow_wires(eini_flow *f, int mine) {
  if (f->width > 1 && mine) pthread_mutex_lock(&f->wires);
  else if (f->width > 1) pthread_mutex_unlock(&f->wires);
}

static void eini_flow_sleep(eini_flow *f) {
  f->sleepers++;
  pthread_cond_wait(&f->work, &f->lock);
  f->sleepers--;
}

static void eini_flow_wake(eini_flow *f) {
  if (f->sleepers > 0) pthread_cond_broadcast(&f->work);
}

// Between two looks at transfers, of which none is done while others compute.
static void eini_flow_rest(eini_flow *f, int64_t found) {
  if (found > 0 || f->width == 1) return;
  eini_flow_unlock(f);
  eini_flow_yield();
  eini_flow_lock(f);
}

static int eini_flow_open(eini_flow *f) {
  if (f->width == 1) return 1;
  if (pthread_mutex_init(&f->lock, NULL) != 0) return 0;
  if (pthread_mutex_init(&f->wires, NULL) == 0) {
    if (pthread_cond_init(&f->work, NULL) == 0) return 1;
    pthread_mutex_destroy(&f->wires);
  }
  pthread_mutex_destroy(&f->lock);
  return 0;
}

static void eini_flow_close(eini_flow *f) {
  if (f->width == 1) return;
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->wires);
  pthread_mutex_destroy(&f->lock);
}
#else  // EINI_DIST_THREADS
static void eini_flow_lock(eini_flow *f) { (void)f; }
static void eini_flow_unlock(eini_flow *f) { (void)f; }
static void eini_flow_wires(eini_flow *f, int mine) { (void)f, (void)mine; }
static void eini_flow_sleep(eini_flow *f) { (void)f; }
static void eini_flow_wake(eini_flow *f) { (void)f; }
static void eini_flow_rest(eini_flow *f, int64_t found) { (void)f, (void)found; }
static int eini_flow_open(const eini_flow *f) { return f->width == 1; }
static void eini_flow_close(eini_flow *f) { (void)f; }
#endif  // EINI_DIST_THREADS

static void eini_flow_append(eini_flow *f, int32_t *head, int32_t *tail, int32_t j) {
  f->link[j] = -1;
  if (*head < 0) *head = j;
  else f->link[*tail] = j;
  *tail = j;
}

static int32_t eini_flow_first(eini_flow *f, int32_t *head) {
  const int32_t j = *head;
  *head = f->link[j];
  return j;
}

// With the lock: the job may run. A place's jobs are its worker's.
static void eini_flow_ready(eini_flow *f, int32_t j) {
  const eini_job *x = &f->jobs->job[j];
  if (x->kind == EINI_JOB_RECEIVE || x->kind == EINI_JOB_SEND) {
    eini_flow_append(f, &f->wire, &f->wire_last, j);
    return;
  }
  const int64_t list = (int64_t)x->stmt * f->width + x->place % f->width;
  eini_flow_append(f, &f->head[list], &f->tail[list], j);
  f->ready[x->stmt]++;
  if (x->stmt < f->lowest) f->lowest = x->stmt;
}

// With the lock: a job is done, and gates that waited for it alone.
static void eini_flow_done(eini_flow *f, int32_t j) {
  int32_t gates = -1;
  for (f->link[j] = -1;;) {
    f->left--;
    for (int64_t i = f->jobs->first[j]; i < f->jobs->first[j + 1]; i++) {
      const int32_t to = f->jobs->next[i];
      if (--f->wait[to] > 0) continue;
      if (f->jobs->job[to].kind != EINI_JOB_GATE) {
        eini_flow_ready(f, to);
      } else {
        f->link[to] = gates;
        gates = to;
      }
    }
    if (gates < 0) return;
    j = eini_flow_first(f, &gates);
  }
}

// With the lock: takes a ready job; -1: there is none.
static int32_t eini_flow_take(eini_flow *f, int worker) {
  if (f->wire >= 0) return eini_flow_first(f, &f->wire);
  while (f->lowest < f->nstmt && f->ready[f->lowest] == 0) f->lowest++;
  if (f->lowest == f->nstmt) return -1;
  int32_t *list = &f->head[(int64_t)f->lowest * f->width];
  int from = worker;
  for (int i = 0; list[from] < 0 && i < f->width; i++) from = i;
  f->ready[f->lowest]--;
  return eini_flow_first(f, &list[from]);
}

// On a clock: time goes on until something is over.
static int64_t eini_flow_tick(eini_flow *f) {
  ein_ticket ticket = 0;
  double begin = 0, end = 0;
  ein_status st = f->fabric->next_fn(f->fabric->user, &ticket, &begin, &end);
  if (st != EIN_OK || ticket == 0) {  // what waits will wait for ever
    if (f->status == EIN_OK) f->status = st;
    f->nticket = 0;
    return 0;
  }
  const int32_t j = f->ticket_of[ticket - 1];
  f->nticket--;
  st = f->over_fn(f->user, &f->jobs->job[j], begin, end);
  if (f->status == EIN_OK) f->status = st;
  eini_flow_done(f, j);
  return 1;
}

// With the lock: ends transfers that are done. idle: nobody computes, so that without any the
// earliest is waited for; those of others wait for nothing later, so nobody waits in vain.
static int64_t eini_flow_poll(eini_flow *f, int idle) {
  const ein_fabric *fabric = f->fabric;
  const int64_t n = f->nticket;
  int64_t found = 0, first = 0, kept = 0;
  ein_status st = EIN_OK;
  if (fabric->next_fn != NULL) return eini_flow_tick(f);
  f->polling = 1;
  eini_flow_unlock(f);
  eini_flow_wires(f, 1);
  for (int64_t i = 0; i < n; i++) {
    int done = 0;
    if (fabric->test_fn != NULL && fabric->test_fn(fabric->user, f->ticket[i], &done) != EIN_OK)
      done = 1;  // waiting tells why
    f->over[i] = (char)(done != 0);
    found += done != 0;
    if (f->ticket_of[i] < f->ticket_of[first]) first = i;
  }
  if (found == 0 && idle) f->over[first] = 1;
  for (int64_t i = 0; i < n; i++) {
    const ein_status one =
        f->over[i] ? fabric->wait_fn(fabric->user, f->ticket[i]) : EIN_OK;
    if (st == EIN_OK) st = one;
  }
  eini_flow_wires(f, 0);
  eini_flow_lock(f);
  f->polling = 0;
  if (f->status == EIN_OK) f->status = st;
  for (int64_t i = 0; i < f->nticket; i++) {
    if (i < n && f->over[i]) {
      eini_flow_done(f, f->ticket_of[i]);
      continue;
    }
    f->ticket[kept] = f->ticket[i];
    f->ticket_of[kept++] = f->ticket_of[i];
  }
  f->nticket = kept;
  if (found > 0 || idle) eini_flow_wake(f);
  return found;
}

// With the lock, which it gives up: runs job j.
static void eini_flow_run(eini_flow *f, int worker, int32_t j) {
  const eini_job *x = &f->jobs->job[j];
  const int failed = f->status != EIN_OK;
  ein_ticket ticket = 0;
  f->busy++;
  eini_flow_unlock(f);
  const ein_status st = f->run_fn(f->user, worker, x, failed, &ticket);
  eini_flow_lock(f);
  f->busy--;
  if (st != EIN_OK && f->status == EIN_OK) f->status = st;
  if (st == EIN_OK && !failed) f->done_fn(f->user, worker, x);
  if (ticket != 0 && f->fabric->next_fn != NULL) {
    f->nticket++;
    f->ticket_of[ticket - 1] = j;
  } else if (ticket != 0) {  // also of a job that failed
    f->ticket[f->nticket] = ticket;
    f->ticket_of[f->nticket++] = j;
  } else {
    eini_flow_done(f, j);
  }
  eini_flow_wake(f);
}

static void eini_flow_worker(void *arg, int worker) {
  eini_flow *f = (eini_flow *)arg;
  const int several = f->fabric->count < f->fabric->places;
  eini_flow_lock(f);
  while (f->left > 0) {
    if (several && f->wire < 0 && f->nticket > 0 && !f->polling && f->fabric->test_fn != NULL)
      (void)eini_flow_poll(f, 0);  // what others sent meanwhile
    const int32_t j = eini_flow_take(f, worker);
    if (j >= 0) eini_flow_run(f, worker, j);
    else if (f->nticket > 0 && !f->polling && (f->busy == 0 || f->fabric->test_fn != NULL))
      eini_flow_rest(f, eini_flow_poll(f, f->busy == 0));
    else if (f->width > 1) eini_flow_sleep(f);
    else break;  // a ring: jobs that wait for each other
  }
  eini_flow_wake(f);
  eini_flow_unlock(f);
}

// Runs all jobs; lists and arrays are there. e: has the threads.
static ein_status eini_flow_all(eini_flow *f, const ein_executor *e) {
  const eini_jobs *jobs = f->jobs;
  const int64_t lists = (int64_t)f->nstmt * f->width;
  if (!eini_flow_open(f)) f->width = 1;
  f->left = jobs->todo;
  f->lowest = f->nstmt;
  f->wire = -1;
  for (int64_t i = 0; i < lists; i++) f->head[i] = -1;
  memset(f->ready, 0, (size_t)f->nstmt * sizeof *f->ready);
  if (jobs->n > 0) memcpy(f->wait, jobs->wait, (size_t)jobs->n * sizeof *f->wait);
  for (int64_t j = 0; j < jobs->n; j++) {
    if (jobs->wait[j] > 0 || jobs->job[j].kind == EINI_JOB_NONE) continue;
    if (jobs->job[j].kind == EINI_JOB_GATE) eini_flow_done(f, (int32_t)j);
    else eini_flow_ready(f, (int32_t)j);
  }
  if (f->width > 1) e->parallel_for(f->width, eini_flow_worker, f, e->user);
  else eini_flow_worker(f, 0);
  eini_flow_close(f);
  return f->status != EIN_OK ? f->status : f->left > 0 ? EIN_ERR_INTERNAL : EIN_OK;
}

// ---- tasks that wait for nothing ----

typedef struct eini_flow_each {
  int64_t n;
  eini_jobs jobs;
  ein_status (*fn)(void *user, int64_t i);
  void *user;
} eini_flow_each;

static void eini_flow_each_number(void *user) {
  eini_flow_each *x = (eini_flow_each *)user;
  for (int64_t i = 0; i < x->n; i++) (void)eini_jobs_add(&x->jobs, EINI_JOB_BLOCK, 0, 0, i);
}

static ein_status eini_flow_each_wait(void *user) { return (void)user, EIN_OK; }

static ein_status eini_flow_each_run(void *user, int worker, const eini_job *job, int failed,
                                     ein_ticket *ticket) {
  const eini_flow_each *x = (const eini_flow_each *)user;
  (void)worker, (void)ticket;
  return failed ? EIN_OK : x->fn(x->user, job->arg);
}

static void eini_flow_each_done(void *user, int worker, const eini_job *job) {
  (void)user, (void)worker, (void)job;
}

// Runs tasks 0 .. n - 1 at one place; none after one that fails.
static ein_status eini_flow_tasks(const ein_allocator *al, int64_t n,
                                  ein_status (*fn)(void *user, int64_t i), void *user) {
  eini_flow_each x;
  eini_flow f;
  ein_fabric one;
  eini_arena a;
  memset(&x, 0, sizeof x), memset(&f, 0, sizeof f), memset(&one, 0, sizeof one);
  x.n = n, x.fn = fn, x.user = user;
  one.places = one.count = 1;
  eini_arena_init(&a, al);
  ein_status st = eini_jobs_make(&a, &x.jobs, eini_flow_each_number, eini_flow_each_wait, &x);
  f.jobs = &x.jobs;
  f.fabric = &one;
  f.nstmt = f.width = 1;
  f.run_fn = eini_flow_each_run;
  f.done_fn = eini_flow_each_done;
  f.user = &x;
  f.wait = EINI_NEW(&a, int32_t, n);
  f.link = EINI_NEW(&a, int32_t, n);
  f.head = EINI_NEW(&a, int32_t, 1);
  f.tail = EINI_NEW(&a, int32_t, 1);
  f.ready = EINI_NEW(&a, int32_t, 1);
  if (f.wait == NULL || f.link == NULL || f.head == NULL || f.tail == NULL || f.ready == NULL)
    st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_flow_all(&f, NULL);
  eini_arena_free(&a);
  return st;
}

// ================================================================================================
// >>relation  tensor relations: join, aggregate, repartition
// Takes views and relations; gives relations, whose blocks are views or memory of their own.
// ================================================================================================

struct ein_relation {
  eini_arena arena;          // owns everything, the relation itself included
  ein_relation_info info;
  ein_dtype result;          // of the tensor once all is aggregated
  int64_t *bound, *pieces;
  const char *monoid;        // blocks are its states, in planes; NULL: they are values
  eini_folder folder;        // of it
  ein_monoid own;            // and what it is, when it is one of the caller's
  ein_ztensor *block;        // nblock of them, row-major by key
  int64_t *origin;           // nblock * rank
};

static ein_relation *eini_rel_new(ein_ctx *ctx, int rank, int nkey) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_relation *r = EINI_NEW(&arena, ein_relation, 1);
  if (r == NULL) return NULL;
  r->bound = EINI_NEW(&arena, int64_t, rank);
  r->pieces = EINI_NEW(&arena, int64_t, nkey);
  r->arena = arena;
  if (r->bound != NULL && r->pieces != NULL) {
    r->info.rank = rank;
    r->info.nkey = nkey;
    r->info.nstate = 1;
    r->info.bound = r->bound;
    r->info.pieces = r->pieces;
    return r;
  }
  ein_relation_destroy(r);
  return NULL;
}

// A message about a call of this section.
EINI_PRINTF(3, 4)
static ein_status eini_dist_refuse(ein_ctx *ctx, ein_status st, const char *format, ...) {
  va_list args;
  if (ctx == NULL) return st;
  eini_diag_reset(&ctx->diag, NULL, 0);
  va_start(args, format);
  eini_vfail(&ctx->diag, st, -1, 0, NULL, format, args);
  va_end(args);
  return st;
}

// Sets bounds, pieces and origins of the blocks, whose number must be sane.
static ein_status eini_rel_shape(ein_relation *r, ein_dtype dtype, const int64_t *bound,
                                 const int64_t *pieces) {
  int rank = r->info.rank;
  r->info.dtype = r->result = dtype;
  r->info.nblock = 1;
  for (int k = 0; k < rank; k++) r->bound[k] = bound[k];
  for (int k = 0; k < r->info.nkey; k++) {
    int64_t most = k < rank ? eini_max64(bound[k], 1) : INT32_MAX;
    if (pieces[k] < 1 || pieces[k] > most) return EIN_ERR_SHAPE;
    r->pieces[k] = pieces[k];
    if (eini_mul_overflow(r->info.nblock, pieces[k], &r->info.nblock) ||
        r->info.nblock > INT32_MAX) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  int64_t n = r->info.nblock;
  r->block = EINI_NEW(&r->arena, ein_ztensor, n);
  r->origin = EINI_NEW(&r->arena, int64_t, n * rank);
  if (r->block == NULL || r->origin == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t b = 0; b < n; b++) {
    int64_t *shape = EINI_NEW(&r->arena, int64_t, 2 * (int64_t)rank), left = b;
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = r->info.nkey - 1; k >= 0; k--) {
      int64_t digit = left % pieces[k];
      left /= pieces[k];
      if (k >= rank) continue;
      int64_t from = eini_piece_start(bound[k], pieces[k], digit);
      r->origin[b * rank + k] = from;
      shape[k] = eini_piece_start(bound[k], pieces[k], digit + 1) - from;
    }
    r->block[b].dtype = dtype;
    r->block[b].rank = rank;
    r->block[b].shape = shape;
    r->block[b].strides = shape + rank;
  }
  return EIN_OK;
}

static int64_t *eini_rel_strides(const ein_relation *r, int64_t b) {
  union { const int64_t *c; int64_t *v; } u;  // the relation's own memory
  u.c = r->block[b].shape;
  return u.v + r->info.rank;
}

// Bytes of one element of a block.
static size_t eini_rel_wide(const ein_relation *r) {
  return r->monoid != NULL ? eini_states_bytes(&r->folder) : ein_dtype_size(r->info.dtype);
}

// Memory for every block, dense, uninitialised values zero.
static ein_status eini_rel_alloc(ein_relation *r) {
  for (int64_t b = 0; b < r->info.nblock; b++) {
    int64_t n;
    EINI_TRY(eini_view_elements(r->info.rank, r->block[b].shape, &n));
    eini_dist_dense(r->info.rank, r->block[b].shape, eini_rel_strides(r, b));
    char *memory = (char *)eini_new(&r->arena, n, eini_rel_wide(r));
    if (memory == NULL) return EIN_ERR_NO_MEMORY;
    r->block[b].data = memory;
    if (r->monoid == NULL) continue;
    void *plane[4];
    eini_states_at(&r->folder, n, memory, plane);
    r->block[b].data = plane[0];
  }
  return EIN_OK;
}

// Hands a relation out, or what went wrong.
static ein_status eini_rel_give(ein_ctx *ctx, ein_status st, ein_relation *r, ein_relation **out) {
  if (st == EIN_OK) {
    *out = r;
    return EIN_OK;
  }
  ein_relation_destroy(r);
  if (ctx != NULL && ctx->diag.count == 0)
    eini_dist_refuse(ctx, st, "a tensor relation: %s", ein_status_text(st));
  return st;
}

EIN_API void ein_relation_destroy(ein_relation *r) {
  if (r == NULL) return;
  eini_arena arena = r->arena;
  eini_arena_free(&arena);
}

EIN_API void ein_relation_get(const ein_relation *r, ein_relation_info *info) {
  if (r != NULL && info != NULL) *info = r->info;
}

EIN_API ein_status ein_relation_view(ein_ctx *ctx, const ein_ztensor *view, const int64_t *pieces,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (view == NULL || (view->rank > 0 && pieces == NULL)) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_status st = ein_view_check(view);
  ein_relation *r = NULL;
  if (st == EIN_OK) r = eini_rel_new(ctx, view->rank, view->rank);
  if (st == EIN_OK && r == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_rel_shape(r, view->dtype, view->shape, pieces);
  for (int64_t b = 0; st == EIN_OK && b < r->info.nblock; b++) {
    int64_t *stride = eini_rel_strides(r, b), at = 0;
    for (int k = 0; k < view->rank; k++) {
      stride[k] = eini_stride(view, k);
      if (r->block[b].shape[k] > 0) at += stride[k] * r->origin[b * view->rank + k];
    }
    r->block[b].data = view->data;
    if (view->data != NULL && ein_view_count(&r->block[b]) > 0)
      r->block[b].data = (char *)view->data + at * (int64_t)ein_dtype_size(view->dtype);
  }
  return eini_rel_give(ctx, st, r, out);
}

// The number of a key's block, or -1.
static int64_t eini_rel_at(const ein_relation *r, const int64_t *key) {
  int64_t b = 0;
  for (int k = 0; k < r->info.nkey; k++) {
    if (key[k] < 0 || key[k] >= r->pieces[k]) return -1;
    b = b * r->pieces[k] + key[k];
  }
  return b;
}

EIN_API ein_status ein_relation_block(const ein_relation *r, const int64_t *key,
                                      ein_ztensor *block, int64_t *origin) {
  if (r == NULL || block == NULL || (r->info.nkey > 0 && key == NULL)) return EIN_ERR_ARGUMENT;
  int64_t b = eini_rel_at(r, key);
  if (b < 0) return EIN_ERR_BOUNDS;
  *block = r->block[b];
  for (int k = 0; origin != NULL && k < r->info.rank; k++)
    origin[k] = r->origin[b * r->info.rank + k];
  return EIN_OK;
}

// Where the states of block b begin.
static char *eini_rel_states(const ein_relation *r, int64_t b) {
  char *at = (char *)r->block[b].data;
  if (!eini_fold_counts(r->folder.fold)) return at;
  return at - ein_view_count(&r->block[b]) * (int64_t)ein_dtype_size(EIN_I64);
}

EIN_API ein_status ein_relation_state(const ein_relation *r, const int64_t *key, int state,
                                      ein_ztensor *block) {
  void *plane[4];
  EINI_TRY(ein_relation_block(r, key, block, NULL));
  if (state < 0 || state >= r->info.nstate) return EIN_ERR_ARGUMENT;
  if (r->monoid == NULL) return EIN_OK;
  eini_states_at(&r->folder, ein_view_count(block), eini_rel_states(r, eini_rel_at(r, key)),
                 plane);
  block->dtype = eini_state_dtype(&r->folder, state);
  block->data = plane[state];
  return EIN_OK;
}

// Copies what the box [from, from + shape) shares with block b of r into dst, which holds the box.
static void eini_rel_part(const ein_relation *r, int64_t b, const int64_t *from, char *dst,
                          const int64_t *shape, const int64_t *stride, int64_t *common) {
  const ein_ztensor *x = &r->block[b];
  const int64_t *origin = r->origin + b * r->info.rank;
  int64_t at = 0, to = 0, size = (int64_t)ein_dtype_size(x->dtype);
  for (int k = 0; k < x->rank; k++) {
    int64_t lo = eini_max64(from[k], origin[k]);
    int64_t hi = eini_min64(from[k] + shape[k], origin[k] + x->shape[k]);
    if (hi <= lo) return;
    common[k] = hi - lo;
    at += (lo - origin[k]) * x->strides[k];
    to += (lo - from[k]) * stride[k];
  }
  eini_dist_copy(x->rank, common, dst + to * size, stride, (const char *)x->data + at * size,
                 x->strides, (size_t)size);
}

// Puts a box together from all blocks of a relation without further keys.
static void eini_rel_gather(const ein_relation *r, const int64_t *from, char *dst,
                            const int64_t *shape, const int64_t *stride, int64_t *common) {
  for (int64_t b = 0; b < r->info.nblock; b++)
    eini_rel_part(r, b, from, dst, shape, stride, common);
}

EIN_API ein_status ein_relation_read(const ein_relation *r, const ein_ztensor *out) {
  if (r == NULL || out == NULL || r->info.nkey != r->info.rank) return EIN_ERR_ARGUMENT;
  EINI_TRY(ein_view_check(out));
  if (out->rank != r->info.rank) return EIN_ERR_SHAPE;
  if (out->dtype != r->info.dtype) return EIN_ERR_DTYPE;
  for (int k = 0; k < out->rank; k++)
    if (out->shape[k] != r->bound[k]) return EIN_ERR_SHAPE;
  if (ein_view_count(out) == 0) return EIN_OK;
  eini_arena a = r->arena;
  eini_arena_init(&a, &r->arena.al);
  int64_t *dims = EINI_NEW(&a, int64_t, 3 * (int64_t)out->rank);
  if (dims == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stride = dims + out->rank, *common = stride + out->rank;
  for (int k = 0; k < out->rank; k++) stride[k] = eini_stride(out, k);
  eini_rel_gather(r, dims, (char *)out->data, out->shape, stride, common);
  eini_arena_free(&a);
  return EIN_OK;
}

typedef struct eini_rel_move {
  const ein_relation *from;
  ein_relation *to;
  int64_t *common;          // scratch
} eini_rel_move;

static ein_status eini_rel_move_block(void *user, int64_t b) {
  const eini_rel_move *m = (const eini_rel_move *)user;
  const ein_ztensor *x = &m->to->block[b];
  eini_rel_gather(m->from, m->to->origin + b * x->rank, (char *)x->data, x->shape, x->strides,
                  m->common);
  return EIN_OK;
}

EIN_API ein_status ein_relation_repartition(ein_ctx *ctx, const ein_relation *r,
                                            const int64_t *pieces, ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || r->info.nkey != r->info.rank || (r->info.rank > 0 && pieces == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  int rank = r->info.rank;
  ein_relation *x = eini_rel_new(ctx, rank, rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY
                            : eini_rel_shape(x, r->info.dtype, r->bound, pieces);
  if (st == EIN_OK) st = eini_rel_alloc(x);
  eini_rel_move m = {r, x, st == EIN_OK ? EINI_NEW(&x->arena, int64_t, rank) : NULL};
  if (st == EIN_OK && m.common == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK)
    st = eini_flow_tasks(&x->arena.al, x->info.nblock, eini_rel_move_block, &m);
  return eini_rel_give(ctx, st, x, out);
}

// ================================================================================================
// >>join  tensor relations: join and aggregate
// Takes relations and a statement; gives the relation of its blocks, and folds partial ones.
// ================================================================================================

// The state of one join.
typedef struct eini_rel_join {
  const ein_graph *g;
  const eini_stmt *s;
  const ein_relation *const *rel;
  ein_block_fn fn;
  void *user;
  ein_relation *out;
  eini_space space;
  eini_arena arena, boxes;      // what lives for the join, and for one block
  eini_block_plans plans;
  int64_t *lo, *len, *hi;       // nindex
  ein_ztensor *in;              // noperand
  const int64_t **stride;       // noperand
  const void **data;            // noperand
  ein_scalar *param;
  int64_t *key;                 // of a plan
} eini_rel_join;

// The statement's index space under cut, row-major over all cut indices.
static ein_status eini_rel_space(eini_rel_join *j, const int64_t *cut) {
  const eini_stmt *s = j->s;
  int *order = EINI_NEW(&j->arena, int, s->nindex), norder = 0;
  int64_t n = 1;
  if (order == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    if (cut[i] < 1 || cut[i] > eini_max64(s->index[i].extent, 1)) return EIN_ERR_SHAPE;
    if (eini_mul_overflow(n, cut[i], &n) || n > INT32_MAX) return EIN_ERR_TOO_LARGE;
    if (cut[i] > 1) order[norder++] = i;
  }
  return eini_space_init(&j->arena, s, cut, order, norder, &j->space);
}

static ein_status eini_rel_validate(ein_ctx *ctx, const eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int plain = t->rank == s->nfree && s->rest == EIN_REST_ERROR;
  for (int r = 0; plain && r < t->rank; r++) plain = eini_plain_row(&s->out_map, r) == r;
  if (!plain)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED,
                            "a join into '%s': the free indices are not its axes in order",
                            t->name);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &j->g->tensor[s->operand[k]];
    const ein_relation *r = j->rel[k];
    if (r == NULL || r->info.nkey != r->info.rank || r->info.rank != x->rank ||
        r->info.dtype != x->dtype)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "operand %d: not a relation of '%s'", k, x->name);
    for (int a = 0; a < x->rank; a++)
      if (r->bound[a] != x->shape[a])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE,
                                "operand %d: bound %d of '%s' is %lld, not %lld", k, a, x->name,
                                (long long)x->shape[a], (long long)r->bound[a]);
  }
  return EIN_OK;
}

// The result's blocks are states of the statement's monoid, which outlive graph and ctx.
static ein_status eini_rel_carry(eini_rel_join *j) {
  ein_relation *r = j->out;
  const eini_stmt *s = j->s;
  const char *name = eini_fold_name(j->g, s->fold);
  EINI_TRY(eini_states_folder(j->g, s, &r->folder));
  r->monoid = eini_strndup(&r->arena, name, (int64_t)strlen(name));
  if (r->monoid == NULL) return EIN_ERR_NO_MEMORY;
  if (r->folder.user != NULL) {
    r->own = *r->folder.user;
    r->folder.user = &r->own;
  }
  r->info.nstate = r->folder.nstate;
  return EIN_OK;
}

// The relation of the results: keys of the free indices, then of the cut reduced ones.
static ein_status eini_rel_result(ein_ctx *ctx, eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int nkey = s->nfree;
  int64_t *pieces = EINI_NEW(&j->arena, int64_t, s->nindex);
  if (pieces == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++)
    if (i < s->nfree || j->space.cut[i] > 1) pieces[i < s->nfree ? i : nkey++] = j->space.cut[i];
  j->out = eini_rel_new(ctx, s->nfree, nkey);
  if (j->out == NULL) return EIN_ERR_NO_MEMORY;
  ein_dtype partial = ein_dtype_compute(s->type);
  if (j->space.nagg > 1 && j->fn == NULL && eini_fold_carries(s->fold)) {
    EINI_TRY(eini_rel_carry(j));
    partial = j->out->folder.type;
  }
  EINI_TRY(eini_rel_shape(j->out, j->space.nagg > 1 ? partial : t->dtype, t->shape, pieces));
  j->out->result = t->dtype;
  return eini_rel_alloc(j->out);
}

// The box operand k reads: a view of one block, or put together.
static ein_status eini_rel_operand(eini_rel_join *j, int k) {
  const ein_relation *r = j->rel[k];
  int rank = r->info.rank;
  int64_t *from = EINI_NEW(&j->boxes, int64_t, 5 * (int64_t)rank), n;
  if (from == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *to = from + rank, *shape = to + rank, *stride = shape + rank;
  const eini_stmt_block block = eini_block_of(j->lo, j->hi, NULL);
  eini_block_hull(j->s, &block, k, from, to);
  for (int a = 0; a < rank; a++) shape[a] = to[a] - from[a];
  ein_ztensor *v = &j->in[k];
  memset(v, 0, sizeof *v);
  v->dtype = r->info.dtype;
  v->rank = rank;
  v->shape = shape;
  for (int64_t b = 0; b < r->info.nblock; b++) {
    const int64_t *origin = r->origin + b * rank;
    int64_t at = 0;
    int a = 0;
    for (; a < rank; a++) {
      if (from[a] < origin[a] || to[a] > origin[a] + r->block[b].shape[a]) break;
      at += (from[a] - origin[a]) * r->block[b].strides[a];
    }
    if (a < rank) continue;
    v->strides = r->block[b].strides;
    v->data = r->block[b].data;
    if (v->data != NULL && ein_view_count(v) > 0)
      v->data = (char *)v->data + at * (int64_t)ein_dtype_size(v->dtype);
    return EIN_OK;
  }
  EINI_TRY(eini_view_elements(rank, shape, &n));
  eini_dist_dense(rank, shape, stride);
  v->strides = stride;
  v->data = eini_new(&j->boxes, n, ein_dtype_size(v->dtype));
  if (v->data == NULL) return EIN_ERR_NO_MEMORY;
  if (n > 0) eini_rel_gather(r, from, (char *)v->data, shape, stride, stride + rank);
  return EIN_OK;
}

// Runs the statement's plan for block b, which is at hand.
static ein_status eini_rel_run(eini_rel_join *j, int64_t b) {
  const ein_ztensor *out = &j->out->block[b];
  const eini_stmt *s = j->s;
  eini_dist_job job;
  int64_t n = 0, id;
  int nin = 0, norigin = 0;
  memset(&job, 0, sizeof job);
  for (int i = 0; i < s->nindex; i++) j->key[n++] = j->len[i];
  for (int k = 0; k < s->noperand; k++) {
    j->stride[k] = j->in[k].strides;
    if (eini_operand_first(s, k) < k) continue;
    for (int a = 0; a < j->in[k].rank; a++) j->key[n++] = j->in[k].strides[a];
    j->data[nin++] = j->in[k].data;
  }
  job.g = j->g;
  job.s = s;
  job.block = eini_block_of(NULL, j->len, NULL);
  job.cut = j->space.cut;
  job.stride = j->stride;
  job.by_index = 1;
  job.dtype = out->dtype;
  job.folder = j->out->monoid != NULL ? &j->out->folder : NULL;
  EINI_TRY(eini_dist_plan(&j->plans, &job, j->key, n, &id));
  for (int i = 0; i < s->nindex; i++) {
    if (!eini_dist_uses(s, j->space.cut, i)) continue;
    ein_scalar *p = &j->param[j->g->nparam + norigin++];
    p->set = 1;
    p->re = (double)j->lo[i];
  }
  ein_run run;
  void *data[4] = {out->data, NULL, NULL, NULL};
  if (job.folder != NULL) {
    eini_states_at(job.folder, ein_view_count(out), eini_rel_states(j->out, b), data);
    eini_fold_identity(job.folder, ein_view_count(out), data);
  }
  memset(&run, 0, sizeof run);
  run.in = j->data;
  run.out = data;
  run.param = j->param;
  return ein_plan_execute(j->plans.plan[id], &run);
}

static ein_status eini_rel_block(eini_rel_join *j, int64_t q) {
  const eini_stmt *s = j->s;
  int64_t b = 0;
  eini_space_ranges(&j->space, q, j->lo, j->hi);
  for (int i = 0; i < s->nindex; i++) {
    j->len[i] = j->hi[i] - j->lo[i];
    b = b * j->space.cut[i] + eini_space_piece(&j->space, q, i);
  }
  for (int k = 0; k < s->noperand; k++) {
    int first = eini_operand_first(s, k);
    if (first == k || j->rel[first] != j->rel[k]) EINI_TRY(eini_rel_operand(j, k));
    else j->in[k] = j->in[first];
  }
  const ein_ztensor *out = &j->out->block[b];
  return j->fn != NULL ? j->fn(j->user, j->lo, j->len, j->in, out) : eini_rel_run(j, b);
}

static ein_status eini_rel_task(void *user, int64_t q) {
  eini_rel_join *j = (eini_rel_join *)user;
  eini_arena_init(&j->boxes, &j->arena.al);
  const ein_status st = eini_rel_block(j, q);
  eini_arena_free(&j->boxes);
  return st;
}

static ein_status eini_rel_join_all(ein_ctx *ctx, eini_rel_join *j, const int64_t *cut,
                                    const ein_scalar *param) {
  const eini_stmt *s = j->s;
  eini_arena *a = &j->arena;
  int64_t nkey = s->nindex;
  EINI_TRY(eini_rel_space(j, cut));
  EINI_TRY(eini_rel_validate(ctx, j));
  for (int k = 0; k < s->noperand; k++) nkey += j->g->tensor[s->operand[k]].rank;
  j->lo = EINI_NEW(a, int64_t, s->nindex);
  j->hi = EINI_NEW(a, int64_t, s->nindex);
  j->len = EINI_NEW(a, int64_t, s->nindex);
  j->in = EINI_NEW(a, ein_ztensor, s->noperand);
  j->stride = EINI_NEW(a, const int64_t *, s->noperand);
  j->data = EINI_NEW(a, const void *, s->noperand);
  j->key = EINI_NEW(a, int64_t, nkey);
  j->param = EINI_NEW(a, ein_scalar, j->g->nparam + s->nindex);
  if (j->lo == NULL || j->hi == NULL || j->len == NULL || j->in == NULL || j->stride == NULL ||
      j->data == NULL || j->key == NULL || j->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; param != NULL && k < j->g->nparam; k++) j->param[k] = param[k];
  EINI_TRY(eini_dist_ctx(ctx, 0, &j->plans.ctx));
  j->plans.a = a;
  EINI_TRY(eini_rel_result(ctx, j));
  return eini_flow_tasks(&a->al, j->space.ntask, eini_rel_task, j);
}

EIN_API ein_status ein_relation_join(ein_ctx *ctx, const ein_graph *graph, int stmt,
                                     const int64_t *cut, const ein_relation *const *rel,
                                     const ein_scalar *param, ein_block_fn fn, void *user,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (graph == NULL || graph->open || graph->symbols != NULL || stmt < 0 || stmt >= graph->nstmt)
    return EIN_ERR_ARGUMENT;
  eini_rel_join j;
  memset(&j, 0, sizeof j);
  j.g = graph;
  j.s = &graph->stmt[stmt];
  j.rel = rel;
  j.fn = fn;
  j.user = user;
  if ((j.s->nindex > 0 && cut == NULL) || (j.s->noperand > 0 && rel == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  eini_arena_init(&j.arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_rel_join_all(ctx, &j, cut, param);
  eini_block_plans_end(&j.plans);
  eini_ctx_free(j.plans.ctx);
  eini_arena_free(&j.arena);
  return eini_rel_give(ctx, st, j.out, out);
}

// ---- aggregation ----

// A graph y[i..] = fold[k](x[k, i..]) for blocks of one shape.
static ein_status eini_rel_fold_graph(ein_ctx *ctx, const ein_relation *r, const int64_t *shape,
                                      int64_t n, const char *monoid, ein_graph **g) {
  int rank = r->info.rank, x, y;
  eini_stmt *s;
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stack = EINI_NEW(&(*g)->arena, int64_t, rank + 1);
  if (stack == NULL) return EIN_ERR_NO_MEMORY;
  stack[0] = n;
  for (int k = 0; k < rank; k++) stack[k + 1] = shape[k];
  EINI_TRY(eini_dist_add_tensor(*g, "x", EIN_ROLE_INPUT, r->info.dtype, rank + 1, stack, &x));
  EINI_TRY(eini_dist_add_tensor(*g, "y", EIN_ROLE_OUTPUT, r->result, rank, stack + 1, &y));
  EINI_TRY(eini_graph_add_stmt(*g, y, rank + 1, 1, &x, &s));
  s->nfree = rank;
  for (int k = 0; k <= rank; k++) {
    s->index[k].name = "";
    s->index[k].extent = stack[k < rank ? k + 1 : 0];
  }
  EINI_TRY(eini_map_set(&(*g)->arena, &s->proj[0], 0, rank, 1));
  EINI_TRY(eini_map_units(&(*g)->arena, &s->proj[0], 1, 0, rank));
  EINI_TRY(eini_map_units(&(*g)->arena, &s->out_map, 0, 0, rank));
  EINI_TRY(eini_fold_named(*g, eini_diag_of(ctx), monoid, &s->fold));
  if (eini_expr_add(&(*g)->arena, &s->expr, EIN_OP_OPERAND, -1, 0, 0, 0) < 0)
    return EIN_ERR_NO_MEMORY;
  s->numpy = 1;  // partial sums of bool are combined by or
  return eini_stmt_finish(*g, s, eini_diag_of(ctx));
}

// Folds the n blocks of one group, which follow each other from block `first`.
static ein_status eini_rel_fold(ein_ctx *ctx, eini_block_plans *l, const ein_relation *r,
                                int64_t first, int64_t n, const char *monoid, char *stack,
                                const ein_ztensor *out) {
  static const int64_t *const dense[2] = {NULL, NULL};
  const ein_ztensor *b = &r->block[first];
  size_t bytes = (size_t)ein_view_count(b) * ein_dtype_size(b->dtype);
  int64_t id = eini_block_plan_find(l, b->shape, b->rank);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  if (id == l->n) {
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    ein_status st = eini_rel_fold_graph(ctx, r, b->shape, n, monoid, &g);
    if (st == EIN_OK) st = eini_dist_plan_graph(l, g, dense, NULL, &plan);
    eini_graph_free(g);
    if (st == EIN_OK) st = eini_block_plan_keep(l, plan);
    if (st != EIN_OK) return st;
  }
  for (int64_t k = 0; k < n && bytes > 0; k++)
    memcpy(stack + (size_t)k * bytes, r->block[first + k].data, bytes);
  ein_run run;
  const void *in = stack;
  void *data = out->data;
  memset(&run, 0, sizeof run);
  run.in = &in;
  run.out = &data;
  return ein_plan_execute(l->plan[id], &run);
}

// Merges the states of n blocks that follow each other from block `first`, along the tree of
// executions, and finishes them.
static void eini_rel_merge_states(const ein_relation *r, int64_t first, int64_t n, char *stack,
                                  const ein_ztensor *out) {
  int64_t count = ein_view_count(out), used = count * (int64_t)eini_rel_wide(r);
  int64_t bytes = (used + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  if (count == 0) return;
  for (int64_t k = 0; k < n; k++)
    memcpy(stack + k * bytes, eini_rel_states(r, first + k), (size_t)used);
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t k = 0; k + step < n; k += 2 * step)
      eini_states_merge(&r->folder, count, stack + k * bytes, stack + (k + step) * bytes);
  void *state[4];
  eini_states_at(&r->folder, count, stack, state);
  eini_states_finish(&r->folder, out->rank, out->shape, state, NULL, out->dtype,
                     (char *)out->data, out->strides);
}

typedef struct eini_rel_folding {
  ein_ctx *ctx;
  eini_block_plans plans;
  const ein_relation *r;
  ein_relation *x;
  int64_t n;                // blocks of a group
  const char *monoid;
  char *stack;              // room for them
} eini_rel_folding;

static ein_status eini_rel_fold_block(void *user, int64_t b) {
  eini_rel_folding *f = (eini_rel_folding *)user;
  const ein_ztensor *out = &f->x->block[b];
  if (f->r->monoid == NULL)
    return eini_rel_fold(f->ctx, &f->plans, f->r, b * f->n, f->n, f->monoid, f->stack, out);
  eini_rel_merge_states(f->r, b * f->n, f->n, f->stack, out);
  return EIN_OK;
}

static ein_status eini_rel_aggregate_all(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                         ein_relation *x) {
  int64_t largest = 0, bytes;
  eini_arena scratch;
  eini_rel_folding f;
  memset(&f, 0, sizeof f);
  if (r->monoid != NULL && strcmp(monoid, r->monoid) != 0)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the blocks are states of '%.60s', not of "
                            "'%.60s'", r->monoid, monoid);
  EINI_TRY(eini_rel_shape(x, r->result, r->bound, r->pieces));
  EINI_TRY(eini_rel_alloc(x));
  f.ctx = ctx, f.r = r, f.x = x, f.monoid = monoid, f.n = 1;
  for (int k = r->info.rank; k < r->info.nkey; k++) f.n *= r->pieces[k];
  for (int64_t b = 0; b < r->info.nblock; b++)
    largest = eini_max64(largest, ein_view_count(&r->block[b]));
  if (r->monoid != NULL) largest += EINI_ALIGN;  // states of a block begin aligned
  if (eini_mul_overflow(f.n, largest, &bytes)) return EIN_ERR_TOO_LARGE;
  eini_arena_init(&scratch, &x->arena.al);
  f.stack = (char *)eini_new(&scratch, bytes, eini_rel_wide(r));
  ein_status st = f.stack == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK && r->monoid == NULL) st = eini_dist_ctx(ctx, 0, &f.plans.ctx);
  f.plans.a = &scratch;
  if (st == EIN_OK) st = eini_flow_tasks(&x->arena.al, x->info.nblock, eini_rel_fold_block, &f);
  eini_block_plans_end(&f.plans);
  eini_ctx_free(f.plans.ctx);
  eini_arena_free(&scratch);
  return st;
}

EIN_API ein_status ein_relation_aggregate(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                          ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || monoid == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_relation *x = eini_rel_new(ctx, r->info.rank, r->info.rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY : eini_rel_aggregate_all(ctx, r, monoid, x);
  return eini_rel_give(ctx, st, x, out);
}

// ================================================================================================
// >>dist-plan  from a cut graph to plans of tasks, memory and dependencies
// Takes a graph and how its statements are cut; gives an immutable ein_dist. Tasks are rules: task
// q of a statement runs at place q, and what it reads, and who reads its block, is computed. Only
// what places of this process do is derived: nothing here grows with the places of others.
// ================================================================================================

typedef struct eini_dist_tensor {
  int port;                 // number among inputs or outputs; -1: a temporary
  const int64_t *stride;
  int64_t lo, hi;           // bytes it spans from its data pointer; equal when there are none
  int item;                 // of the memory plan, or -1
  int ndefine, *define;     // statements
  int nread, *read;
} eini_dist_tensor;

// Arrays of tasks have an entry for each that this process runs, from place d->fabric.first on.
typedef struct eini_dist_stmt {
  const eini_stmt *s;
  eini_space space;
  int64_t nown;             // tasks of this process
  int64_t *plan;            // of each; merges: into this partial result, and the last one
  int64_t *merge, *last;
  const eini_folder *folder;  // partial results are its states, merged without plans; NULL: values
  int64_t wide;             // bytes of one element of a partial result
  int direct;               // 1: partial result 0 is made in the block of the output
  int away;                 // 1: its tasks run in the provider's memory, where their operands are,
  int own_away, part_away;  //   its blocks, and its partial results
  int reduced;              // 1: the fabric folds partial results, merges but the last do nothing
  int item;                 // memory of the partial results, one of partial_bytes per task; or -1
  size_t partial_bytes;
  int form;                 // the first statement whose plans its blocks may run
  int64_t bytes, messages;  // what its tasks of this process read from other places
  int64_t *fetched;         // of each
  unsigned char *again;     // of operands: does one before read the same? See eini_cost_of
  int levels;               // of the tree of merges
  int32_t block, merges, memory, done, zero, fetches;  // jobs, see dist-jobs; -1: there are none
} eini_dist_stmt;

// Memory alive from statement first to last.
typedef struct eini_dist_item {
  int first, last;
  int tensor;               // or -1: partial results of statement first
  int64_t at, bytes;
} eini_dist_item;

struct ein_dist {
  eini_arena arena;         // owns everything, itself included
  ein_allocator al;
  ein_executor executor;
  double (*now_fn)(void *user);
  void *now_user;
  const ein_graph *g;
  ein_fabric fabric;
  ein_dist_desc desc;
  int nstmt, nin, nout;
  eini_dist_stmt *stmt;     // and, behind them, pinned inputs as statements that copy them: these
  int npin;                 //   have no tasks, only a space
  eini_dist_tensor *tensor;
  eini_block_plans plans;
  eini_dist_item *item;
  int nitem;
  int64_t temp_bytes;
  eini_jobs jobs;
  int64_t tags, defines;    // of messages: a statement has so many, and so many an operand
  int64_t *peak;            // per place of this process
  int width, rank;          // workers; most indices, axes or operands of a statement
  size_t workspace;
  struct eini_dist_copies *copies;  // of a fabric that does not share memory
  const ein_kernels *away;  // in whose memory they may be; NULL: nobody's but the host's
  int carried;              // 1: the fabric carries messages from there, and there
  void **held;              // per place of this process: that memory, from the first run on
  int64_t *held_bytes;
  char **kept;              // and its memory, between runs, of which there is one at a time
  struct eini_steps_stmt *steps;    // of a schedule: per statement
  struct eini_step_home *home;      // per tensor and memory
  int64_t *start;           // of memories, from the first on
  size_t spare;             // bytes of scratch
  ein_dist_info info;
};

// Does this process drive a place?
static int eini_fabric_drives(const ein_fabric *f, int64_t q) {
  return q >= f->first && q - f->first < f->count;
}

static int eini_dist_driven(const ein_dist *d, int64_t q) {
  return eini_fabric_drives(&d->fabric, q);
}

// Does the fabric have a clock? Then there are no data, and no plans of tasks.
static int eini_dist_clocked(const ein_dist *d) { return d->fabric.machine != NULL; }

static double eini_dist_now(const ein_dist *d) {
  return d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
}

// The status of a process becomes that of all.
static ein_status eini_dist_agree(const ein_fabric *f, ein_status st) {
  ein_status all = st;
  if (f->agree_fn == NULL) return st;  // one process drives all places
  const ein_status failed = f->agree_fn(f->user, &all);
  return failed != EIN_OK ? failed : all;
}

// The statement and index of a mistake in parts. k: the statement's number, -1 of a pinned input.
static ein_status eini_dist_bad(ein_ctx *ctx, const ein_graph *g, const eini_stmt *s, int k, int i,
                                const char *what) {
  const char *name = i >= 0 && i < s->nindex ? s->index[i].name : NULL;
  char where[32] = "the pinned input";
  if (k >= 0) snprintf(where, sizeof where, "statement %d,", k);
  return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "%s '%.60s'%s%.60s%s: %s", where,
                          g->tensor[s->out].name, name != NULL ? ", index '" : "",
                          name != NULL ? name : "", name != NULL ? "'" : "", what);
}

static ein_status eini_dist_check_parts(ein_ctx *ctx, const ein_graph *g, const eini_stmt *s,
                                        int k, int64_t places, const ein_parts *p) {
  int64_t n = 1;
  if (p->nindex != s->nindex || (p->nindex > 0 && p->cut == NULL) || p->norder < 0 ||
      (p->norder > 0 && p->order == NULL))
    return eini_dist_bad(ctx, g, s, k, -1, "its parts are of another statement");
  for (int i = 0; i < s->nindex; i++) {
    if (p->cut[i] < 1 || p->cut[i] > eini_max64(1, s->index[i].extent))
      return eini_dist_bad(ctx, g, s, k, i, "cut into fewer than 1 or more pieces than its extent");
    if (p->cut[i] > 1 && eini_index_whole(s, i))
      return eini_dist_bad(ctx, g, s, k, i, "an axis of a block is not cut");
    if (p->cut[i] > 1 && !eini_order_cuts(g, s, i))
      return eini_dist_bad(ctx, g, s, k, i, "deterministic: its fold may not be cut");
    int seen = 0;
    for (int j = 0; j < p->norder; j++) seen += p->order[j] == i;
    if (seen != (p->cut[i] > 1))
      return eini_dist_bad(ctx, g, s, k, i, seen ? "stands in the order twice, or is not cut"
                                              : "cut, but not in the order");
    if (eini_mul_overflow(n, p->cut[i], &n) || n > places)
      return eini_dist_bad(ctx, g, s, k, i, "more tasks than places");
  }
  for (int j = 0; j < p->norder; j++)
    if (p->order[j] < 0 || p->order[j] >= s->nindex)
      return eini_dist_bad(ctx, g, s, k, -1, "its order names an index it does not have");
  if (n != p->ntask) return eini_dist_bad(ctx, g, s, k, -1, "ntask is not the product of its cuts");
  return EIN_OK;
}

// The statement's space; p NULL: nothing is cut.
static ein_status eini_dist_space_init(eini_arena *a, const eini_stmt *s, const ein_parts *p,
                                       eini_space *x) {
  int64_t *cut = EINI_NEW(a, int64_t, s->nindex);
  int norder = p == NULL ? 0 : p->norder, *order = EINI_NEW(a, int, norder);
  if (cut == NULL || order == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) cut[i] = p == NULL ? 1 : p->cut[i];
  for (int j = 0; j < norder; j++) order[j] = p->order[j];
  return eini_space_init(a, s, cut, order, norder, x);
}

// ---- tensors ----

static ein_status eini_dist_tensor_init(ein_dist *d, int t, const ein_ztensor *view) {
  eini_dist_tensor *x = &d->tensor[t];
  const eini_tensor *from = &d->g->tensor[t];
  eini_port port;
  memset(&port, 0, sizeof port);
  EINI_TRY(eini_port_init(&d->arena, from, view, &port));
  x->stride = port.stride;
  x->lo = port.lo;
  x->hi = port.hi;
  x->item = -1;
  x->port = from->role == EIN_ROLE_INPUT ? d->nin++
            : from->role == EIN_ROLE_OUTPUT ? d->nout++ : -1;
  x->define = EINI_NEW(&d->arena, int, from->nstmt);
  int n = 0;
  for (int k = 0; k < d->nstmt; k++)
    for (int o = 0; o < d->g->stmt[k].noperand; o++) n += d->g->stmt[k].operand[o] == t;
  x->read = EINI_NEW(&d->arena, int, n);
  if (x->define == NULL || x->read == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    int reads = 0;
    for (int o = 0; o < s->noperand; o++) reads |= s->operand[o] == t;
    if (reads) x->read[x->nread++] = k;
    if (s->out == t) x->define[x->ndefine++] = k;
  }
  return EIN_OK;
}

static ein_status eini_dist_tensors(ein_dist *d) {
  const ein_dist_desc *e = &d->desc;
  d->tensor = EINI_NEW(&d->arena, eini_dist_tensor, d->g->ntensor);
  if (d->tensor == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) {
    const eini_tensor *x = &d->g->tensor[t];
    const ein_ztensor *view = NULL;
    for (int k = 0; k < e->nlayout && x->role != EIN_ROLE_TEMP; k++)
      if (strcmp(e->layout[k].name, x->name) == 0) view = e->layout[k].view;
    EINI_TRY(eini_dist_tensor_init(d, t, view));
  }
  return EIN_OK;
}

// An input held in a partition: it is homed as if a statement along its axes had defined it.
static ein_status eini_dist_pin(ein_ctx *ctx, ein_dist *d, int t, const ein_parts *p) {
  eini_arena *a = &d->arena;
  eini_dist_stmt *e = &d->stmt[d->nstmt + d->npin];
  eini_stmt *s;
  EINI_TRY(eini_stmt_of_tensor(a, d->g, t, &s));
  EINI_TRY(eini_dist_check_parts(ctx, d->g, s, -1, d->fabric.places, p));
  EINI_TRY(eini_dist_space_init(a, s, p, &e->space));
  e->s = s;
  d->tensor[t].define = EINI_NEW(a, int, 1);
  if (d->tensor[t].define == NULL) return EIN_ERR_NO_MEMORY;
  d->tensor[t].define[0] = d->nstmt + d->npin++;
  d->tensor[t].ndefine = 1;
  return EIN_OK;
}

static ein_status eini_dist_pins(ein_ctx *ctx, ein_dist *d) {
  for (int t = 0; t < d->g->ntensor; t++) {
    ein_parts p;
    memset(&p, 0, sizeof p);
    if (d->g->tensor[t].role != EIN_ROLE_INPUT) continue;
    if (d->desc.decomposition != NULL) {
      if (ein_decomposition_pin(d->desc.decomposition, t, &p) != EIN_OK) continue;
    } else {
      if (d->desc.pins == NULL || d->desc.pins[t].ntask == 0) continue;
      p = d->desc.pins[t];
    }
    EINI_TRY(eini_dist_pin(ctx, d, t, &p));
  }
  return EIN_OK;
}

// ---- what a task reads ----

// The box operand k of the task at `place` reads, in m->from and m->to; 0: it reads nothing, not
// even a scalar, since its index space is empty.
static int eini_dist_box(const eini_dist_stmt *e, int64_t place, int k, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, k, m->from, m->to);
  return !eini_zrange_empty(e->s->nindex, m->lo, m->hi);
}

// What a task reads from other places.
typedef struct eini_dist_read {
  int64_t bytes, messages;
  int64_t *sent;            // bytes by place, to be added to, or NULL
} eini_dist_read;

static void eini_dist_reads(eini_dist_read *r, int64_t from, int64_t bytes) {
  r->bytes += bytes;
  r->messages += bytes > 0;
  if (r->sent != NULL) r->sent[from] += bytes;
}

// The elements of block `home` of statement `define` that lie in the box operand `operand` of the
// task at `place` reads (m->from, m->to).
typedef struct eini_dist_transfer {
  int64_t place, home;
  int operand, define;
  int64_t elements, bytes;
} eini_dist_transfer;

typedef ein_status (*eini_dist_transfer_fn)(void *user, const eini_dist_transfer *t,
                                            eini_dist_room *m);

// Calls fn for all blocks that the task at `place` reads of, its own among them.
static ein_status eini_dist_task_transfers(const ein_dist *d, const eini_dist_stmt *e,
                                           int64_t place, eini_dist_room *m,
                                           eini_dist_transfer_fn fn, void *user) {
  eini_dist_transfer t;
  eini_dist_near w;
  t.place = place;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *x = &d->tensor[e->s->operand[o]];
    if (x->ndefine == 0 || eini_operand_first(e->s, o) < o ||
        !eini_dist_box(e, place, o, m)) continue;
    t.operand = o;
    for (int u = 0; u < x->ndefine; u++) {
      const eini_space *from = &d->stmt[x->define[u]].space;
      t.define = x->define[u];
      int more = eini_dist_near_first(from, m->from, m->to, m, &w);
      for (; more; more = eini_dist_near_next(&w)) {
        t.home = eini_dist_near_place(from, &w);
        t.elements = eini_dist_overlap(from, t.home, m->from, m->to, m);
        t.bytes = t.elements * (int64_t)ein_dtype_size(d->g->tensor[e->s->operand[o]].dtype);
        if (t.elements > 0) EINI_TRY(fn(user, &t, m));
      }
    }
  }
  return EIN_OK;
}

static ein_status eini_dist_read_of(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  (void)m;
  if (t->home != t->place) eini_dist_reads((eini_dist_read *)user, t->home, t->bytes);
  return EIN_OK;
}

// The hull of the block the task at `place` computes, in m->from and m->to.
static void eini_dist_block_hull(const eini_dist_stmt *e, int64_t place, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, -1, m->from, m->to);
}

// Elements of the block the task at `place` computes, by its free indices.
static int64_t eini_dist_elements(const eini_space *x, int64_t place, eini_dist_room *m) {
  eini_space_ranges(x, place, m->lo, m->hi);
  return (int64_t)eini_box_volume(x->s->nfree, m->lo, m->hi);
}

// Does the task at `place` merge at a level of the tree: two partial results, those whose numbers
// are multiples of 2^level, into one?
static int eini_dist_merges(const eini_space *x, int64_t place, int level) {
  const int64_t step = (int64_t)1 << level, part = eini_space_partial(x, place);
  return part % (2 * step) == 0 && part + step < x->nagg;
}

// What a task reads from other places, its merges aside.
static void eini_dist_task_bytes(const ein_dist *d, const eini_dist_stmt *e, int64_t place,
                                 eini_dist_room *m, eini_dist_read *r) {
  (void)eini_dist_task_transfers(d, e, place, m, eini_dist_read_of, r);
}

// ---- where the memory of places is ----

#ifndef EINI_DIST_GROUP
#define EINI_DIST_GROUP 4   // places at least, the home among them
#endif

// Is every coordinate one index, and every index one coordinate?
static int eini_dist_is_box(const eini_space *x) {
  const eini_map *map = &x->s->out_map;
  for (int r = 0; r < map->rows; r++)
    if (eini_map_terms(map, r) > 1) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (eini_map_uses(map, i) > 1) return 0;
  return 1;
}

// Does it matter in which tree partial results of a statement are merged, if not in which order?
static int eini_dist_any_tree(const eini_dist_stmt *e) {
  const ein_dtype type = ein_dtype_compute(e->s->type);
  const int fold = e->s->fold, kind = (int)eini_kind_of(type);
  if (e->folder != NULL || e->wide != (int64_t)ein_dtype_size(type)) return 0;
  if (fold == EIN_FOLD_SUM || fold == EIN_FOLD_PROD) return kind < EINI_KREAL;
  if (fold == EIN_FOLD_ANY || fold == EIN_FOLD_ALL) return kind == EINI_KBOOL;
  return (fold == EIN_FOLD_MAX || fold == EIN_FOLD_MIN) && kind <= EINI_KREAL;
}

// May the fabric fold its partial results? They are the host's then.
static int eini_dist_may_reduce(const ein_dist *d, const eini_dist_stmt *e) {
  return d->fabric.reduce_fn != NULL && e->space.nagg >= EINI_DIST_GROUP && eini_dist_any_tree(e);
}

// The provider in whose memory places that do not share any may have theirs. Plans of deterministic
// graphs have none.
static void eini_dist_provider(ein_dist *d) {
  const ein_fabric *f = &d->fabric;
  const ein_ctx *c = d->plans.ctx;
  if (f->shared || eini_dist_clocked(d) || d->g->ordered) return;
  for (int i = 0; i < c->nkernels && d->away == NULL; i++)
    if (c->kernels[i]->memory != NULL) d->away = c->kernels[i];
  if (d->away != NULL && d->away->memory->hold_fn == NULL) d->away = NULL;
  if (d->away == NULL || f->memory_fn == NULL) return;
  d->carried = f->memory_fn(f->user, d->away) == EIN_OK;
  (void)f->memory_fn(f->user, NULL);
}

// Tries statement e in the provider's memory, or not. What is moved there is boxes; states are
// merged by the host.
static void eini_dist_settle(const ein_dist *d, eini_dist_stmt *e, int away) {
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine; u++) away &= eini_dist_is_box(&d->stmt[t->define[u]].space);
  }
  e->away = away && d->away != NULL;
  e->own_away = e->away && e->folder == NULL && eini_dist_is_box(&e->space);
  e->part_away = e->away && e->folder == NULL && !eini_dist_may_reduce(d, e);
}

// Does all of task i of this process run where the provider's memory is, and can it be merged?
static int eini_dist_runs_away(const ein_dist *d, const eini_dist_stmt *e, int64_t i) {
  const int away = eini_dist_plan_away(d->plans.plan[e->plan[i]]);
  if (e->space.nagg == 1 || e->folder != NULL) return away;
  return away && d->plans.plan[e->merge[i]] != NULL &&
         (eini_space_partial(&e->space, d->fabric.first + i) > 0 ||
          d->plans.plan[e->last[i]] != NULL);
}

// ---- plans of tasks ----

typedef struct eini_dist_shapes {
  eini_forms forms;
  eini_keys strides;
} eini_dist_shapes;

// What a plan knows of a tensor, in order to be shared: where it is, and its strides.
static ein_status eini_dist_looks(ein_dist *d, eini_dist_shapes *f, int t, int64_t *word) {
  const eini_dist_tensor *x = &d->tensor[t];
  const int64_t id = eini_key_number(&f->forms.seen, &f->strides, x->stride, d->g->tensor[t].rank);
  word[0] = id;
  word[1] = !d->fabric.shared && x->ndefine == 0;
  return id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Statement k in the words of the first whose plans its blocks may run, and its parts, NULL if it
// is not cut; room: for these. Extents and offsets do not count: a block has its own.
static ein_status eini_dist_spell(ein_dist *d, int k, eini_dist_shapes *f, ein_parts *room,
                                  const ein_parts **p) {
  eini_arena *a = &d->arena;
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = &d->g->stmt[k];
  const int n = s->noperand;
  int64_t *read = EINI_NEW(a, int64_t, 3 * (int64_t)n + 3), *cut = EINI_NEW(a, int64_t, s->nindex);
  const eini_besides b = {EINI_SAME_VALUES | EINI_SAME_AXES | EINI_SAME_ALONE | EINI_SAME_TENSORS,
                          1, 3, cut, read};
  eini_match m;
  eini_stmt *t;
  const int *at;
  int64_t pieces = 1;
  if (read == NULL || cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    if (*p == NULL) continue;
    cut[i] = eini_dist_uses(s, (*p)->cut, i);
    if (i >= s->nfree) pieces *= (*p)->cut[i];
  }
  for (int o = 0; o <= n; o++) {
    EINI_TRY(eini_dist_looks(d, f, o < n ? s->operand[o] : s->out, read + 3 * o));
    read[3 * o + 2] = o == n && pieces > 1;
  }
  EINI_TRY(eini_forms_find(&f->forms, d->g, s, &b, k, &m));
  e->form = (int)m.first;
  e->s = s;
  if (m.same) return EIN_OK;
  EINI_TRY(eini_stmt_respell(a, s, d->stmt[m.first].s, &m, &t, &at));
  e->s = t;
  if (*p == NULL) return EIN_OK;
  const ein_parts from = **p;
  *p = room;
  return eini_parts_respell(a, from, at, 0, room);
}

// What a plan of a task is made for, beside the form of its statement.
enum { EINI_KEY_FORM, EINI_KEY_WHAT, EINI_KEY_WHERE, EINI_KEYS };

// Where operands and results are.
static void eini_dist_spaces(const ein_dist *d, const eini_dist_stmt *e, eini_dist_job *job,
                             int *space, int64_t *key) {
  const int away = e->away ? d->away->memory->space : 0;
  for (int o = 0; o < e->s->noperand; o++)
    space[o] = d->tensor[e->s->operand[o]].ndefine > 0 ? away : 0;
  job->space = space;
  job->own_space = e->own_away ? away : 0;
  job->part_space = e->part_away ? away : 0;
  job->merged_space = d->carried ? job->part_space : 0;
  key[EINI_KEY_WHERE] = e->away | 2 * e->own_away | 4 * e->part_away;
}

static ein_status eini_dist_task_plans(ein_dist *d, int k, int64_t q, int64_t *key,
                                       const int64_t **stride, int *space, eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = e->s;
  const eini_space *x = &e->space;
  const eini_tensor *out = &d->g->tensor[s->out];
  eini_dist_job job;
  int64_t nkey = s->nindex + EINI_KEYS, part = eini_space_partial(x, q);
  int shared = d->fabric.shared, own = part == 0 && (x->nagg == 1 || e->direct);
  if (eini_dist_clocked(d)) return EIN_OK;
  memset(&job, 0, sizeof job);
  eini_space_ranges(x, q, m->lo, m->hi);
  for (int i = 0; i < s->nindex; i++) key[i + EINI_KEYS] = m->hi[i] - m->lo[i];
  for (int o = 0; o < s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[s->operand[o]];
    stride[o] = shared || t->ndefine == 0 ? t->stride : NULL;
  }
  job.g = d->g;
  job.s = s;
  job.block = eini_block_of(NULL, key + EINI_KEYS, NULL);
  job.cut = x->cut;
  job.stride = stride;
  job.out_stride = d->tensor[s->out].stride;
  job.by_index = !shared || !own;
  job.dtype = own ? out->dtype : ein_dtype_compute(s->type);
  job.folder = e->folder;
  job.own = own;
  eini_dist_spaces(d, e, &job, space, key);
  key[EINI_KEY_FORM] = e->form;
  key[EINI_KEY_WHAT] = own;
  const int64_t i = q - d->fabric.first;
  EINI_TRY(eini_dist_plan(&d->plans, &job, key, nkey, &e->plan[i]));
  if (x->nagg == 1 || e->folder != NULL) return EIN_OK;
  job.by_index = !shared;
  job.dtype = out->dtype;
  int how = own ? EINI_MERGE_FROM_OUT | EINI_MERGE_TO_OUT : 0;
  key[EINI_KEY_WHAT] = 2 + how;
  nkey = s->nfree + EINI_KEYS;
  EINI_TRY(eini_dist_merge_plan(&d->plans, &job, how, key, nkey, &e->merge[i]));
  if (part > 0) return EIN_OK;
  how |= EINI_MERGE_TO_OUT;
  key[EINI_KEY_WHAT] = 2 + how;
  return eini_dist_merge_plan(&d->plans, &job, how, key, nkey, &e->last[i]);
}

// The plans of all its tasks; in the provider's memory where all of them run there, else the
// host's.
static ein_status eini_dist_stmt_plans(ein_dist *d, int k, int64_t *key, eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = e->s;
  const int64_t **stride = EINI_NEW(&d->arena, const int64_t *, s->noperand);
  int *space = EINI_NEW(&d->arena, int, s->noperand);
  if (stride == NULL || space == NULL) return EIN_ERR_NO_MEMORY;
  for (int away = 1;; away = 0) {
    int there = 1;
    eini_dist_settle(d, e, away);
    for (int64_t i = 0; i < e->nown && there; i++) {
      const ein_status st =
          eini_dist_task_plans(d, k, d->fabric.first + i, key, stride, space, m);
      if (!e->away || st != EIN_ERR_UNSUPPORTED) EINI_TRY(st);
      if (st != EIN_OK) EINI_TRY(eini_dist_plan_none(&d->plans));
      there = !e->away || (st == EIN_OK && eini_dist_runs_away(d, e, i));
    }
    if (there) return EIN_OK;
  }
}

// What a statement's partial results are.
static ein_status eini_dist_partials_init(ein_dist *d, eini_dist_stmt *e) {
  const eini_stmt *s = e->s;
  e->wide = eini_partial_bytes(d->g, s);
  e->direct = d->g->tensor[s->out].dtype == ein_dtype_compute(s->type);
  if (e->space.nagg == 1 || !eini_fold_carries(s->fold)) return EIN_OK;
  eini_folder *f = EINI_NEW(&d->arena, eini_folder, 1);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_states_folder(d->g, s, f));
  e->folder = f;
  e->direct = 0;
  return EIN_OK;
}

static ein_status eini_dist_stmt_init(ein_dist *d, int k, const ein_parts *p, eini_dist_shapes *f,
                                      eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  eini_arena *a = &d->arena;
  ein_parts respelled;
  EINI_TRY(eini_dist_spell(d, k, f, &respelled, &p));
  const eini_stmt *s = e->s;
  EINI_TRY(eini_dist_space_init(a, s, p, &e->space));
  EINI_TRY(eini_dist_partials_init(d, e));
  const int64_t first = d->fabric.first;
  const int64_t n = e->nown = eini_max64(0, eini_min64(e->space.ntask - first, d->fabric.count));
  e->item = -1;
  while ((int64_t)1 << e->levels < e->space.nagg) e->levels++;
  e->plan = EINI_NEW(a, int64_t, n);
  e->merge = EINI_NEW(a, int64_t, n);
  e->last = EINI_NEW(a, int64_t, n);
  e->fetched = EINI_NEW(a, int64_t, n);
  e->again = EINI_NEW(a, unsigned char, s->noperand);
  int64_t *key = EINI_NEW(a, int64_t, (int64_t)s->nindex + EINI_KEYS);
  if (e->plan == NULL || e->merge == NULL || e->last == NULL || e->fetched == NULL || key == NULL ||
      e->again == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int o = 0; o < s->noperand; o++) e->again[o] = eini_operand_first(s, o) < o;
  int64_t most = 0;
  for (int64_t q = first; q < first + n; q++) {
    const int64_t block = eini_dist_elements(&e->space, q, m);
    most = eini_max64(most, block);
    eini_dist_read r = {0, 0, NULL};
    eini_dist_task_bytes(d, e, q, m, &r);
    e->fetched[q - first] = r.bytes;
    for (int l = 0; l < e->levels; l++)
      if (eini_dist_merges(&e->space, q, l)) eini_dist_reads(&r, -1, block * e->wide);
    e->messages += r.messages;
    e->bytes += r.bytes;
    for (int l = 0; l < e->levels; l++) d->info.tasks += eini_dist_merges(&e->space, q, l);
  }
  EINI_TRY(eini_dist_stmt_plans(d, k, key, m));
  if (eini_muladd_overflow(most, e->wide, EINI_ALIGN, &most)) return EIN_ERR_TOO_LARGE;
  if (e->space.nagg > 1) e->partial_bytes = (size_t)most / EINI_ALIGN * EINI_ALIGN;
  d->info.tasks += n;
  d->info.bytes += e->bytes;
  d->info.messages += e->messages;
  return EIN_OK;
}

// ---- memory ----

// Temporaries and partial results in one memory.
static ein_status eini_dist_memory(ein_dist *d) {
  d->item = EINI_NEW(&d->arena, eini_dist_item, d->g->ntensor + d->nstmt);
  if (d->item == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    eini_dist_stmt *e = &d->stmt[k];
    eini_dist_tensor *t = &d->tensor[e->s->out];
    eini_dist_item *x = &d->item[d->nitem];
    if (t->port < 0 && t->item < 0) {
      t->item = d->nitem++;
      x->first = k;
      x->last = t->nread > 0 ? t->read[t->nread - 1] : t->define[t->ndefine - 1];
      x->tensor = e->s->out;
      x->bytes = (t->hi - t->lo + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
      x++;
    }
    if (e->space.nagg > 1) {
      e->item = d->nitem++;
      x->first = x->last = k;
      x->tensor = -1;
      if (eini_mul_overflow(e->space.ntask, (int64_t)e->partial_bytes, &x->bytes))
        return EIN_ERR_TOO_LARGE;
    }
  }
  eini_item *item = EINI_NEW(&d->arena, eini_item, d->nitem);
  int *alive = EINI_NEW(&d->arena, int, d->nitem);
  if (item == NULL || alive == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < d->nitem; i++) {
    item[i].from = d->item[i].first;
    item[i].to = d->desc.no_reuse ? d->nstmt : d->item[i].last;
    item[i].bytes = d->item[i].bytes;
    item[i].at = &d->item[i].at;
  }
  return eini_items_place(item, d->nitem, 0, alive, &d->temp_bytes);
}

// Adds to *bytes what a place reads of input t, which is not pinned.
static void eini_dist_input(const ein_dist *d, int t, int64_t place, eini_boxes *u,
                            eini_dist_room *m, int64_t *bytes) {
  const eini_dist_tensor *x = &d->tensor[t];
  u->n = 0;
  for (int i = 0; i < x->nread; i++) {
    const eini_dist_stmt *e = &d->stmt[x->read[i]];
    for (int k = 0; k < e->s->noperand && place < e->space.ntask; k++)
      if (e->s->operand[k] == t && eini_operand_first(e->s, k) == k &&
          eini_dist_box(e, place, k, m))
        eini_boxes_add(u, m->from, m->to);
  }
  *bytes += (int64_t)eini_boxes_volume(u) * (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
}

// Bytes of inputs at each place of this process, into d->peak.
static ein_status eini_dist_held(ein_dist *d, eini_dist_room *m) {
  ein_decomp_info info;
  ein_decomposition_info(d->desc.decomposition, &info);
  if (d->desc.decomposition == NULL) info.inputs = d->desc.inputs;
  for (int t = 0; t < d->g->ntensor; t++) {
    const eini_dist_tensor *x = &d->tensor[t];
    eini_boxes boxes;
    if (d->g->tensor[t].role != EIN_ROLE_INPUT) continue;
    if (x->ndefine == 0 && info.inputs == EIN_INPUTS_OUTSIDE) continue;
    EINI_TRY(eini_boxes_init(&d->arena, d->g->tensor[t].rank, &boxes));
    for (int i = 0; i < d->fabric.count; i++) {
      const eini_space *pin = x->ndefine > 0 ? &d->stmt[x->define[0]].space : NULL;
      const int64_t q = d->fabric.first + i;
      if (pin == NULL) eini_dist_input(d, t, q, &boxes, m, &d->peak[i]);
      else if (q < pin->ntask)
        d->peak[i] += eini_dist_elements(pin, q, m) *
                      (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
    }
  }
  return EIN_OK;
}

// Most bytes alive at each such place: inputs, blocks, and of one statement at a time what its task
// fetches and its partial result.
static ein_status eini_dist_peaks(ein_dist *d, eini_dist_room *m) {
  const int n = d->nstmt + 1;
  int64_t *change = EINI_NEW(&d->arena, int64_t, n);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (change == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_held(d, m));
  for (int i = 0; i < d->fabric.count; i++) {
    const int64_t q = d->fabric.first + i;
    memset(change, 0, (size_t)n * sizeof *change);
    for (int k = 0; k < d->nstmt; k++) {
      const eini_dist_stmt *e = &d->stmt[k];
      const eini_dist_tensor *t = &d->tensor[e->s->out];
      if (q >= e->space.ntask) continue;
      int64_t block = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
      int64_t bytes = block * e->wide;
      change[k] += e->fetched[i];
      change[k + 1] -= e->fetched[i];
      int last = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT ? d->nstmt - 1
                 : t->nread > 0 ? t->read[t->nread - 1] : k;
      if (part > 0 || (e->space.nagg > 1 && !e->direct)) {
        change[k] += bytes;
        change[k + 1] -= bytes;
      }
      if (part > 0) continue;
      bytes = block * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype);
      change[k] += bytes;
      change[last + 1] -= bytes;
    }
    int64_t alive = d->peak[i];  // inputs
    for (int k = 0; k < d->nstmt; k++) d->peak[i] = eini_max64(d->peak[i], alive += change[k]);
  }
  return EIN_OK;
}

// ================================================================================================
// >>dist-moves  what places with memory of their own send, receive and keep
// Takes an ein_dist whose fabric moves data; gives, for the places of this process, the moves of
// every statement and where in a place's memory things lie. Blocks are stored by the free indices
// of their statement, dense; a task's operands are boxes.
// ================================================================================================

// ---- blocks and boxes ----

// One side of a move of a block's elements in a box.
typedef enum eini_dist_kind {
  EINI_AT_BLOCK,            // the block, by free indices
  EINI_AT_MESSAGE,          // these elements alone, in order
  EINI_AT_BOX               // by coordinates, from the corner of the box
} eini_dist_kind;

typedef struct eini_dist_end {
  eini_dist_kind kind;
  char *data;
  const int64_t *stride;    // of a box, or of the tensor that it is in
  int away;                 // 1: in the provider's memory
} eini_dist_end;

// Strides of one side by free indices; gives the place of the point a, in elements.
static int64_t eini_dist_end_at(const eini_space *x, const eini_dist_end *e, const int64_t *from,
                                const int64_t *lo, const int64_t *hi, const int64_t *a,
                                const int64_t *b, int64_t *stride) {
  int64_t at = 0, n = 1;
  for (int i = x->s->nfree - 1; i >= 0 && e->kind != EINI_AT_BOX; i--) {
    stride[i] = n;
    n *= e->kind == EINI_AT_BLOCK ? hi[i] - lo[i] : b[i] - a[i];
    if (e->kind == EINI_AT_BLOCK) at += (a[i] - lo[i]) * stride[i];
  }
  if (e->kind == EINI_AT_BOX) {
    const eini_map *m = &x->s->out_map;
    for (int i = 0; i < x->s->nfree; i++) stride[i] = 0;
    for (int r = 0; r < m->rows; r++) {
      at += (m->offset[r] - from[r]) * e->stride[r];
      for (int k = m->first[r]; k < m->first[r + 1]; k++) {
        int64_t s = m->term[k].coef * e->stride[r];
        stride[m->term[k].index] += s;
        at += s * a[m->term[k].index];
      }
    }
  }
  return at;
}

// Coordinate r of a point of the index space.
static int64_t eini_dist_coordinate(const eini_map *m, int r, const int64_t *at) {
  int64_t y = m->offset[r];
  for (int e = m->first[r]; e < m->first[r + 1]; e++) y += m->term[e].coef * at[m->term[e].index];
  return y;
}

// Point by point, where coordinates are sums of indices.
static void eini_dist_move_points(const eini_space *x, const int64_t *from, const int64_t *to,
                                  size_t size, const eini_dist_end *dst, const eini_dist_end *src,
                                  eini_dist_room *m) {
  int64_t *at = m->bfrom, count = 0;
  for (int i = 0; i < x->s->nfree; i++) at[i] = m->blo[i];
  for (int i = 0; i >= 0;) {
    int64_t block = 0, dbox = 0, sbox = 0;
    int inside = 1;
    for (int r = 0; r < x->s->out_map.rows && inside; r++) {
      int64_t y = eini_dist_coordinate(&x->s->out_map, r, at);
      inside = y >= from[r] && y < to[r];
      if (dst->kind == EINI_AT_BOX) dbox += (y - from[r]) * dst->stride[r];
      if (src->kind == EINI_AT_BOX) sbox += (y - from[r]) * src->stride[r];
    }
    for (int c = 0; c < x->s->nfree; c++)
      block = block * (m->bhi[c] - m->blo[c]) + at[c] - m->blo[c];
    if (inside) {
      int64_t d = dst->kind == EINI_AT_BLOCK ? block : dst->kind == EINI_AT_BOX ? dbox : count;
      int64_t s = src->kind == EINI_AT_BLOCK ? block : src->kind == EINI_AT_BOX ? sbox : count;
      memcpy(dst->data + d * (int64_t)size, src->data + s * (int64_t)size, size);
      count++;
    }
    for (i = x->s->nfree - 1; i >= 0 && ++at[i] == m->bhi[i]; i--) at[i] = m->blo[i];
  }
}

// The elements of the block at `place` that lie in a box, as strides of both sides by free indices
// and extents in m->bto; 0: there are none, or they are not a box of free indices.
static int eini_dist_sides(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, const eini_dist_end *dst, const eini_dist_end *src,
                           eini_dist_room *m, int64_t *at) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  if (eini_zrange_empty(x->s->nfree, m->blo, m->bhi) || !eini_dist_is_box(x)) return 0;
  for (int i = 0; i < x->s->nfree; i++) {
    m->bfrom[i] = m->blo[i];
    m->bto[i] = m->bhi[i];
  }
  if (!eini_box_narrow(&x->s->out_map, x->s->nfree, from, to, m->bfrom, m->bto)) return 0;
  at[0] = eini_dist_end_at(x, dst, from, m->blo, m->bhi, m->bfrom, m->bto, m->dst);
  at[1] = eini_dist_end_at(x, src, from, m->blo, m->bhi, m->bfrom, m->bto, m->src);
  for (int i = 0; i < x->s->nfree; i++) m->bto[i] -= m->bfrom[i];
  return 1;
}

// Moves the elements of the block at `place` that lie in a box.
static void eini_dist_move(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, size_t size, const eini_dist_end *dst,
                           const eini_dist_end *src, eini_dist_room *m) {
  int64_t at[2];
  if (eini_dist_sides(x, place, from, to, dst, src, m, at))
    eini_dist_copy(x->s->nfree, m->bto, dst->data + at[0] * (int64_t)size, m->dst,
                   src->data + at[1] * (int64_t)size, m->src, size);
  else if (!eini_zrange_empty(x->s->nfree, m->blo, m->bhi) && !eini_dist_is_box(x))
    eini_dist_move_points(x, from, to, size, dst, src, m);
}

// Do both sides lie alike, so that nothing has to be copied? *at: where the first element is in
// dst and in src.
static int eini_dist_alike(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, const eini_dist_end *dst, const eini_dist_end *src,
                           eini_dist_room *m, int64_t *at) {
  if (!eini_dist_sides(x, place, from, to, dst, src, m, at)) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (m->bto[i] > 1 && m->dst[i] != m->src[i]) return 0;
  return 1;
}

// ---- the moves of a statement ----

// The tasks of statement r that read block q of statement k through operand o, one after another:
// their transfers.
static ein_status eini_dist_block_transfers(const ein_dist *d, int r, int o, int k, int64_t q,
                                            eini_dist_room *m, eini_dist_transfer_fn fn,
                                            void *user) {
  const eini_dist_stmt *e = &d->stmt[r];
  const eini_space *block = &d->stmt[k].space;
  eini_dist_transfer t = {0, q, o, k, 0, 0};
  eini_dist_near w;
  if (q >= block->ntask || eini_space_partial(block, q) != 0) return EIN_OK;
  eini_dist_block_hull(&d->stmt[k], q, m);
  int more = eini_dist_near_begin(&e->space, &e->s->proj[o], e->s->nindex, m->from, m->to, m, &w);
  for (; more; more = eini_dist_near_next(&w)) {
    t.place = eini_dist_near_place(&e->space, &w);
    if (!eini_dist_box(e, t.place, o, m)) continue;
    t.elements = eini_dist_overlap(block, q, m->from, m->to, m);
    t.bytes = t.elements * (int64_t)ein_dtype_size(d->g->tensor[e->s->operand[o]].dtype);
    if (t.elements > 0) EINI_TRY(fn(user, &t, m));
  }
  return EIN_OK;
}

enum { EINI_FOLLOWS = -2 };

// A transfer as one of its places sees it. Messages are dense, elements in the order of the free
// indices of the statement that defines them.
typedef struct eini_dist_moved {
  int32_t kind;             // EINI_JOB_RECEIVE, EINI_JOB_SEND, or EINI_JOB_NONE: home == place
  int32_t place, peer;      // place: among those of the process; peer: the other one
  int32_t operand;          // of the reading statement; -1: a partial result
  int32_t define;           // the statement that defines the elements
  int32_t level;            // of a partial result: where in the tree it is merged; else -1
  int32_t direct;           // 1: as it lies in the block, or in the box, nothing is copied
  int32_t away;             // 1: the message is in the provider's memory
  int32_t job;
  int32_t group;            // of places that get one message; EINI_FOLLOWS: another move posts it
  int32_t turn, turns;      // in the group, in a run
  int64_t elements, bytes;
  int64_t at;               // in the inbox or outbox; direct: in the box or the block; bytes
} eini_dist_moved;

// The memory of places. Each has an entry per statement and place of this process. Messages are
// packed in one of two boxes, at home and in the provider's memory.
enum { EINI_AT_OPERAND, EINI_AT_INBOX, EINI_AT_OUTBOX, EINI_AT_OUTSIDE, EINI_AT_MERGED,
       EINI_AT_OWN, EINI_AT_PART, EINI_AT_KINDS };

typedef struct eini_dist_copies {
  int64_t *at[EINI_AT_KINDS], *size[EINI_AT_KINDS];  // in bytes
  int64_t *first;           // of its moves; one more at the end
  eini_dist_moved *move;
  int64_t nmove, cap;
  int64_t **box;            // where its operands lie in EINI_AT_OPERAND; -1 - a move: in the block
                            //   that the move would copy
  int64_t *bytes, *start;   // per place of this process: of its memory, and where that begins;
                            //   what is in the provider's memory has addresses behind these
  int64_t total;
} eini_dist_copies;

static int64_t eini_dist_pad(int64_t bytes) {
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// The entry of statement k and a place of this process.
static int64_t eini_dist_entry(const ein_dist *d, int64_t k, int64_t q) {
  return k * d->fabric.count + q - d->fabric.first;
}

// Bytes of the box operand o of the task at `place` reads; 0 for what lies everywhere.
static int64_t eini_dist_box_bytes(const ein_dist *d, const eini_dist_stmt *e, int64_t place, int o,
                                   eini_dist_room *m) {
  int t = e->s->operand[o];
  if (d->tensor[t].ndefine == 0 || eini_operand_first(e->s, o) < o) return 0;
  eini_dist_box(e, place, o, m);  // a scalar has a place even if it is not read
  return eini_dist_pad((int64_t)eini_box_volume(d->g->tensor[t].rank, m->from, m->to) *
                       (int64_t)ein_dtype_size(d->g->tensor[t].dtype));
}

static eini_dist_end eini_dist_end_of(eini_dist_kind kind, char *data, const int64_t *stride,
                                      int away) {
  eini_dist_end e;
  e.kind = kind;
  e.data = data;
  e.stride = stride;
  e.away = away;
  return e;
}

// The box in m->from and m->to, as it lies in a task's memory; strides go to m->box.
static eini_dist_end eini_dist_end_box(int rank, char *data, int away, eini_dist_room *m) {
  for (int r = 0; r < rank; r++) m->len[r] = m->to[r] - m->from[r];
  eini_dist_dense(rank, m->len, m->box);
  return eini_dist_end_of(EINI_AT_BOX, data, m->box, away);
}

// Is what places have of statement k in the provider's memory?
static int eini_dist_is_away(const ein_dist *d, int k, int kind) {
  const eini_dist_stmt *e = &d->stmt[k];
  switch (kind) {
    case EINI_AT_OPERAND: return e->away;
    case EINI_AT_INBOX: return e->away && d->carried;
    case EINI_AT_OUTSIDE: return 1;
    case EINI_AT_MERGED: return e->part_away && d->carried;
    case EINI_AT_OWN: return e->own_away;  // of a pinned input: no
    case EINI_AT_PART: return e->part_away;
    default: return 0;
  }
}

// Does the caller hold the blocks of a statement, as it stands for a pinned input that is whole?
static int eini_dist_whole(const ein_dist *d, int define) {
  return define >= d->nstmt && !d->desc.blocks;
}

// How the elements of a transfer lie at home, without data: in the block, or in the caller's
// pinned input, from the corner of the box.
static eini_dist_end eini_dist_end_home(const ein_dist *d, int define) {
  const int whole = eini_dist_whole(d, define);
  return eini_dist_end_of(whole ? EINI_AT_BOX : EINI_AT_BLOCK, NULL,
                          d->tensor[d->stmt[define].s->out].stride,
                          eini_dist_is_away(d, define, EINI_AT_OWN));
}

typedef struct eini_dist_noting {
  ein_dist *d;
  int stmt, send;
  int64_t place;            // whose moves are noted
  int64_t in, out[2];       // bytes of its boxes so far: out: at home and away
} eini_dist_noting;

static eini_dist_moved *eini_dist_note_new(eini_dist_noting *z, int kind, int64_t peer,
                                           int64_t bytes) {
  eini_dist_copies *c = z->d->copies;
  eini_dist_moved *all = (eini_dist_moved *)eini_grow(&z->d->arena, c->move, c->nmove, &c->cap,
                                                      sizeof *all);
  if (all == NULL) return NULL;
  c->move = all;
  eini_dist_moved *v = &all[c->nmove++];
  memset(v, 0, sizeof *v);
  v->kind = kind;
  v->place = (int32_t)(z->place - z->d->fabric.first);
  v->peer = (int32_t)peer;
  v->operand = v->define = v->level = v->job = v->group = -1;
  v->bytes = bytes;
  return v;
}

// Room to pack a message in.
static int64_t eini_dist_outbox(eini_dist_noting *z, int away, int64_t bytes) {
  const int64_t at = z->out[away];
  z->out[away] += eini_dist_pad(bytes);
  return at;
}

// Notes a transfer: one that a task receives, or has at home, or that a place sends.
static ein_status eini_dist_note(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_noting *z = (eini_dist_noting *)user;
  const ein_dist *d = z->d;
  const int here = t->home == t->place, rank = d->g->tensor[d->stmt[t->define].s->out].rank;
  const eini_space *x = &d->stmt[t->define].space;
  const int zeros = d->tensor[d->stmt[t->define].s->out].define[0] < d->nstmt &&
                    d->stmt[t->define].s->rest == EIN_REST_ZERO;
  const eini_dist_end message = eini_dist_end_of(EINI_AT_MESSAGE, NULL, NULL, 0);
  const eini_dist_end home = eini_dist_end_home(d, t->define);
  const int away = eini_dist_is_away(d, z->stmt, EINI_AT_OPERAND);
  const int64_t size = t->bytes / t->elements;
  int64_t at[2];
  if (z->send && here) return EIN_OK;
  eini_dist_moved *v = eini_dist_note_new(
      z, here ? EINI_JOB_NONE : z->send ? EINI_JOB_SEND : EINI_JOB_RECEIVE,
      z->send ? t->place : t->home, t->bytes);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  v->operand = t->operand;
  v->define = t->define;
  v->elements = t->elements;
  const eini_dist_end box = eini_dist_end_box(rank, NULL, away, m);
  v->away = (z->send ? home.away : away) && d->carried;
  if (z->send) {
    v->direct = v->away == home.away &&
                eini_dist_alike(x, t->home, m->from, m->to, &message, &home, m, at);
    v->at = v->direct ? at[1] * size : eini_dist_outbox(z, v->away, t->bytes);
  } else if (here) {  // all of the box, as the block has it
    v->direct = !zeros && t->elements == (int64_t)eini_box_volume(rank, m->from, m->to) &&
                home.away == away &&
                eini_dist_alike(x, t->home, m->from, m->to, &box, &home, m, at) && at[0] == 0;
    v->at = v->direct ? at[1] * size : 0;
  } else {
    v->direct = !zeros && v->away == away &&
                eini_dist_alike(x, t->home, m->from, m->to, &box, &message, m, at);
    v->at = v->direct ? at[0] * size : z->in;
    if (!v->direct) z->in += eini_dist_pad(t->bytes);
  }
  return EIN_OK;
}

// Notes the partial results that task q of a statement receives and sends.
static ein_status eini_dist_note_partials(eini_dist_noting *z, eini_dist_room *m) {
  const eini_dist_stmt *e = &z->d->stmt[z->stmt];
  const int64_t part = eini_space_partial(&e->space, z->place);
  const int64_t n = eini_dist_elements(&e->space, z->place, m);
  for (int l = 0; l < e->levels && n > 0; l++) {
    const int64_t step = (int64_t)1 << l, low = part & -part;
    const int merges = eini_dist_merges(&e->space, z->place, l);
    if (!merges && low != step) continue;
    const int64_t other = merges ? part + step : part - step;
    eini_dist_moved *v = eini_dist_note_new(z, merges ? EINI_JOB_RECEIVE : EINI_JOB_SEND,
                                            eini_space_partner(&e->space, z->place, other),
                                            n * e->wide);
    if (v == NULL) return EIN_ERR_NO_MEMORY;
    v->level = l;
    v->define = z->stmt;
    v->away = e->part_away && z->d->carried;
    v->direct = merges || v->away == e->part_away;
    if (!v->direct) v->at = eini_dist_outbox(z, 0, n * e->wide);
    v->elements = n;
  }
  return EIN_OK;
}

// Where the operands of a task lie.
static ein_status eini_dist_boxes(ein_dist *d, int k, int64_t q, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  int64_t *box = c->box[entry] = EINI_NEW(&d->arena, int64_t, e->s->noperand);
  if (box == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[entry]; i < c->nmove; i++) {
    const eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_NONE && v->direct) box[v->operand] = -1 - i;
  }
  for (int o = 0; o < e->s->noperand; o++) {
    if (box[o] < 0) continue;
    box[o] = c->size[EINI_AT_OPERAND][entry];
    c->size[EINI_AT_OPERAND][entry] += eini_dist_box_bytes(d, e, q, o, m);
  }
  return EIN_OK;
}

// The moves of statement k at place q, and what they take there.
static ein_status eini_dist_note_place(ein_dist *d, int k, int64_t q, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  const int works = q < e->space.ntask;
  eini_dist_noting z = {d, k, 0, q, 0, {0, 0}};
  c->first[entry] = c->nmove;
  if (works) EINI_TRY(eini_dist_task_transfers(d, e, q, m, eini_dist_note, &z));
  if (works) EINI_TRY(eini_dist_boxes(d, k, q, m));
  z.send = 1;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine && eini_operand_first(e->s, o) == o; u++)
      EINI_TRY(eini_dist_block_transfers(d, k, o, t->define[u], q, m, eini_dist_note, &z));
  }
  if (works) EINI_TRY(eini_dist_note_partials(&z, m));
  c->first[entry + 1] = c->nmove;
  c->size[EINI_AT_INBOX][entry] = z.in;
  c->size[EINI_AT_OUTBOX][entry] = z.out[0];
  c->size[EINI_AT_OUTSIDE][entry] = z.out[1];
  if (!works) return EIN_OK;
  const int64_t n = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
  const int64_t wide = eini_dist_pad(n * e->wide);
  if (part == 0)
    c->size[EINI_AT_OWN][entry] =
        eini_dist_pad(n * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype));
  if (part > 0 || (e->space.nagg > 1 && !e->direct)) c->size[EINI_AT_PART][entry] = wide;
  if (eini_dist_merges(&e->space, q, 0)) c->size[EINI_AT_MERGED][entry] = wide;
  return EIN_OK;
}

// ---- memory of the places ----

// What of statement k lies at a place while statements [from, to] run. What moves is there from
// the statement before on, so that it can move while that one computes.
static eini_item eini_dist_lives(const ein_dist *d, int k, int kind, int64_t entry) {
  const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
  const eini_dist_copies *c = d->copies;
  eini_item x;
  x.from = x.to = k;
  if (kind < EINI_AT_OWN && k > 0 && !d->desc.no_overlap) x.from = k - 1;
  if (kind == EINI_AT_OWN && t->nread > 0) x.to = (int)eini_max64(k, t->read[t->nread - 1]);
  if (d->desc.no_reuse) x.to = d->nstmt;
  x.at = &c->at[kind][entry];
  x.bytes = c->size[kind][entry];
  return x;
}

// What a place has at home or, behind that, in the provider's memory.
static ein_status eini_dist_place_items(ein_dist *d, int i, int away, eini_item *item, int *alive,
                                        int64_t *bytes) {
  eini_dist_copies *c = d->copies;
  int n = 0;
  for (int k = 0; k < d->nstmt; k++) {
    for (int kind = 0; kind < EINI_AT_KINDS; kind++) {
      if (eini_dist_is_away(d, k, kind) != away) continue;
      item[n] = eini_dist_lives(d, k, kind, (int64_t)k * d->fabric.count + i);
      n += item[n].bytes > 0;
    }
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, bytes));
  *bytes = eini_dist_pad(*bytes);
  for (int t = 0; t < n && away; t++)
    if (eini_add_overflow(*item[t].at, c->bytes[i], item[t].at)) return EIN_ERR_TOO_LARGE;
  return EIN_OK;
}

// Lays out the memory of the places.
static ein_status eini_dist_place_memory(ein_dist *d) {
  eini_dist_copies *c = d->copies;
  eini_item *item = EINI_NEW(&d->arena, eini_item, EINI_AT_KINDS * (int64_t)d->nstmt);
  int *alive = EINI_NEW(&d->arena, int, EINI_AT_KINDS * (int64_t)d->nstmt);
  if (item == NULL || alive == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < d->fabric.count; i++) {
    int64_t both;
    EINI_TRY(eini_dist_place_items(d, i, 0, item, alive, &c->bytes[i]));
    EINI_TRY(eini_dist_place_items(d, i, 1, item, alive, &d->held_bytes[i]));
    c->start[i] = c->total;
    if (eini_add_overflow(c->total, c->bytes[i], &c->total) ||
        eini_add_overflow(c->bytes[i], d->held_bytes[i], &both)) return EIN_ERR_TOO_LARGE;
    if ((uint64_t)both > SIZE_MAX / 4) return EIN_ERR_TOO_LARGE;
    d->info.place_bytes = eini_max64(d->info.place_bytes, both);
    d->info.away_bytes = eini_max64(d->info.away_bytes, d->held_bytes[i]);
  }
  return (uint64_t)c->total > SIZE_MAX / 4 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

static ein_status eini_dist_copies_init(ein_dist *d, eini_dist_room *m) {
  eini_arena *a = &d->arena;
  const int64_t n = (int64_t)d->nstmt * d->fabric.count;
  eini_dist_copies *c = d->copies = EINI_NEW(a, eini_dist_copies, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  for (int kind = 0; kind < EINI_AT_KINDS; kind++) {
    c->at[kind] = EINI_NEW(a, int64_t, n);
    c->size[kind] = EINI_NEW(a, int64_t, n);
    if (c->at[kind] == NULL || c->size[kind] == NULL) return EIN_ERR_NO_MEMORY;
  }
  c->first = EINI_NEW(a, int64_t, n + 1);
  c->box = EINI_NEW(a, int64_t *, n);
  c->bytes = EINI_NEW(a, int64_t, d->fabric.count);
  c->start = EINI_NEW(a, int64_t, d->fabric.count);
  if (c->first == NULL || c->box == NULL || c->bytes == NULL || c->start == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++)
    for (int i = 0; i < d->fabric.count; i++)
      EINI_TRY(eini_dist_note_place(d, k, (int64_t)d->fabric.first + i, m));
  return eini_dist_place_memory(d);
}

// ================================================================================================
// >>dist-groups  blocks that many places read whole, and folds over many
// Takes the moves of a plan whose processes drive a place each; gives groups of places and, to the
// moves of a block that all of one read whole, or of partial results, a turn in that group.
// ================================================================================================

typedef struct eini_dist_groups {
  eini_arena arena;
  int n, *first, *turns, *number;
  int64_t capfirst, capturns;
  int *place;               // those of group g: place[first[g]] .. place[first[g + 1] - 1]
  int64_t cap;
  int *reader;              // of the block at hand
  int64_t nreader;
  int64_t whole;            // elements of that block
} eini_dist_groups;

static ein_status eini_dist_group_reader(void *user, const eini_dist_transfer *t,
                                         eini_dist_room *m) {
  eini_dist_groups *x = (eini_dist_groups *)user;
  (void)m;
  if (t->elements == x->whole && t->place != t->home) x->reader[x->nreader++] = (int)t->place;
  return EIN_OK;
}

static void eini_dist_group_sort(int64_t n, int *v) {
  for (int64_t i = 1; i < n; i++)
    for (int64_t j = i; j > 0 && v[j] < v[j - 1]; j--) {
      const int t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
}

// The group of the n places in x->reader; -1: no memory.
static int eini_dist_group_of(eini_dist_groups *x, int64_t n) {
  const size_t bytes = (size_t)n * sizeof *x->place;
  for (int g = 0; g < x->n; g++)
    if (x->first[g + 1] - x->first[g] == n &&
        memcmp(x->place + x->first[g], x->reader, bytes) == 0) return g;
  const int at = x->n == 0 ? 0 : x->first[x->n];
  if (x->cap < at + n) {
    int *more = EINI_NEW(&x->arena, int, 2 * (at + n));
    if (more == NULL) return -1;
    if (at > 0) memcpy(more, x->place, (size_t)at * sizeof *more);
    x->place = more;
    x->cap = 2 * (at + n);
  }
  int *first = (int *)eini_grow(&x->arena, x->first, x->n == 0 ? 0 : x->n + 1, &x->capfirst,
                                sizeof *first);
  int *turns = (int *)eini_grow(&x->arena, x->turns, x->n, &x->capturns, sizeof *turns);
  if (first == NULL || turns == NULL) return -1;
  x->first = first;
  x->turns = turns;
  memcpy(x->place + at, x->reader, bytes);
  x->first[x->n] = at;
  x->first[x->n + 1] = at + (int)n;
  x->turns[x->n] = 0;
  return x->n++;
}

// The block of statement `define` at home, read by statement k through operand o: does this place
// take part in a group that moves it? Then the moves of it get a turn.
static ein_status eini_dist_group_block(ein_dist *d, int k, int o, int define, int64_t home,
                                        eini_dist_groups *x, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const int64_t q = d->fabric.first;
  int64_t n = 0;
  int here = home == q;
  x->nreader = 0;
  x->whole = eini_dist_elements(&d->stmt[define].space, home, m);
  EINI_TRY(eini_dist_block_transfers(d, k, o, define, home, m, eini_dist_group_reader, x));
  x->reader[x->nreader++] = (int)home;
  for (int64_t i = 0; i < x->nreader; i++) here |= x->reader[i] == q;
  if (x->nreader < EINI_DIST_GROUP || !here) return EIN_OK;
  eini_dist_group_sort(x->nreader, x->reader);
  const int g = eini_dist_group_of(x, x->nreader);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
    eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_NONE || v->operand != o || v->define != define) continue;
    if (v->elements != x->whole || (v->kind == EINI_JOB_SEND ? q : v->peer) != home) continue;
    v->group = n++ == 0 ? g : -2 - g;  // one message to all
    v->turn = x->turns[g];
  }
  x->turns[g]++;
  return EIN_OK;
}

// All of statement k that this place has to do with, by operand, block and home.
static ein_status eini_dist_group_stmt(ein_dist *d, int k, eini_dist_groups *x,
                                       eini_dist_room *m) {
  const eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine; u++) {
      for (int64_t last = -1, home;; last = home) {
        home = INT64_MAX;
        for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
          const eini_dist_moved *v = &c->move[i];
          const int64_t at = v->kind == EINI_JOB_SEND ? q : v->peer;
          if (v->kind != EINI_JOB_NONE && v->operand == o && v->define == t->define[u] &&
              at > last && at < home) home = at;
        }
        if (home == INT64_MAX) break;
        EINI_TRY(eini_dist_group_block(d, k, o, t->define[u], home, x, m));
      }
    }
  }
  return EIN_OK;
}

// The partial results of this place's block of statement k, where the fabric may fold them: the
// message up of the last level is the one that is posted.
static ein_status eini_dist_group_partials(ein_dist *d, int k, eini_dist_groups *x) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first, n = e->space.nagg;
  eini_dist_moved *last = NULL;
  if (q >= e->space.ntask || !eini_dist_may_reduce(d, e)) return EIN_OK;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++)
    if (c->move[i].level >= 0) last = &c->move[i];  // levels ascend
  if (last == NULL) return EIN_OK;  // of no elements
  for (x->nreader = 0; x->nreader < n; x->nreader++)
    x->reader[x->nreader] = (int)eini_space_partner(&e->space, q, x->nreader);
  const int g = eini_dist_group_of(x, n);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
    eini_dist_moved *v = &c->move[i];
    if (v->level < 0) continue;
    v->group = v == last ? g : -2 - g;
    v->turn = x->turns[g];
  }
  x->turns[g]++;
  return EIN_OK;
}

// Collective. Numbers of the groups, where st is EIN_OK; *st: whether this process has them.
static ein_status eini_dist_groups_number(const ein_dist *d, eini_dist_groups *x, ein_status *st) {
  const ein_fabric *f = &d->fabric;
  x->number = EINI_NEW(&x->arena, int, (int64_t)x->n + 1);
  if (x->number == NULL) *st = EIN_ERR_NO_MEMORY;
  return f->groups_fn(f->user, *st == EIN_OK ? x->n : -1, x->first, x->place, x->turns, x->number);
}

// What a move says of a group, by its number. Returns whether it said something.
static int eini_dist_group_said(const eini_dist_groups *x, int32_t *group, int32_t *turns) {
  const int lead = *group >= 0, g = lead ? *group : -2 - *group;
  if (g < 0) return 0;
  *turns = x->turns[g];
  *group = x->number[g] < 0 ? -1 : lead ? x->number[g] : EINI_FOLLOWS;
  return 1;
}

// Collective: all processes have made their plans.
static ein_status eini_dist_groups_make(ein_dist *d) {
  const ein_fabric *f = &d->fabric;
  eini_dist_copies *c = d->copies;
  eini_dist_groups x;
  eini_dist_room room;
  if (f->groups_fn == NULL || c == NULL) return EIN_OK;
  memset(&x, 0, sizeof x);
  eini_arena_init(&x.arena, &d->al);
  x.reader = EINI_NEW(&x.arena, int, (int64_t)f->places + 1);
  ein_status st = x.reader != NULL && eini_dist_room_init(&x.arena, d->rank, &room)
                      ? EIN_OK : EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) {
    st = eini_dist_group_stmt(d, k, &x, &room);
    if (st == EIN_OK) st = eini_dist_group_partials(d, k, &x);
  }
  const ein_status all = eini_dist_groups_number(d, &x, &st);
  for (int64_t i = 0; i < c->nmove && st == EIN_OK && all == EIN_OK; i++) {
    eini_dist_moved *v = &c->move[i];
    if (eini_dist_group_said(&x, &v->group, &v->turns) && v->level >= 0)
      d->stmt[v->define].reduced = v->group != -1;
  }
  eini_arena_free(&x.arena);
  return all;
}

// ================================================================================================
// >>dist-waits  the jobs of a plan and what each waits for
// Takes statements, moves and memory of the places of this process; gives jobs. Where places share
// memory, that is one place for what follows.
// ================================================================================================

// Places of this process with memory of their own.
static int64_t eini_dist_memories(const ein_dist *d) {
  return d->fabric.shared ? 1 : d->fabric.count;
}

// The job after which the partial result of task q of a statement is merged no further where it is;
// of partial result 0: after which the block is complete.
static int64_t eini_dist_final(const ein_dist *d, const eini_dist_stmt *e, int64_t q) {
  const int64_t i = q - d->fabric.first;
  int l = 0;
  while (l < e->levels && eini_dist_merges(&e->space, q, l)) l++;
  return l == 0 ? e->block + i : e->merges + i * e->levels + l - 1;
}

// The moves of all statements in the order of their jobs, into turn: of a statement first those of
// operands, then those of partial results level by level, so that a job waits for none of a later
// number.
static ein_status eini_dist_turns(eini_arena *a, const ein_dist *d, int64_t *turn) {
  const eini_dist_copies *c = d->copies;
  eini_turns x = {0, EINI_NEW(a, eini_ranked, c->nmove)};
  if (x.heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    for (int64_t p = 0; p < d->fabric.count; p++) {
      const int64_t entry = (int64_t)k * d->fabric.count + p, own = d->fabric.first + p;
      for (int64_t i = c->first[entry]; i < c->first[entry + 1]; i++) {
        const eini_dist_moved *v = &c->move[i];
        const int send = v->kind == EINI_JOB_SEND;
        eini_turns_add(&x, &d->fabric, v->level + 1, send ? own : v->peer, send ? v->peer : own, i);
      }
    }
    while (x.n > 0) *turn++ = eini_heap_pop(x.heap, &x.n).what;
  }
  return EIN_OK;
}

// Numbers the moves of statement k.
static void eini_dist_number_moves(ein_dist *d, int k, const int64_t *turn) {
  eini_dist_copies *c = d->copies;
  const int64_t n = d->fabric.count, from = c->first[k * n], to = c->first[k * n + n];
  for (int64_t i = from; i < to; i++) {
    eini_dist_moved *v = &c->move[turn[i]];
    if (v->kind != EINI_JOB_NONE)
      v->job = eini_jobs_add(&d->jobs, (eini_job_kind)v->kind, k, v->place, turn[i]);
  }
}

static int32_t eini_dist_number_gates(ein_dist *d, int k, int64_t n) {
  const int32_t first = (int32_t)(d->jobs.n & INT32_MAX);
  for (int64_t i = 0; i < n; i++) (void)eini_jobs_add(&d->jobs, EINI_JOB_GATE, k, i, 0);
  return first;
}

// Numbers all jobs.
static void eini_dist_number(ein_dist *d, const int64_t *turn) {
  eini_jobs *j = &d->jobs;
  for (int k = 0; k < d->nstmt; k++) {
    eini_dist_stmt *e = &d->stmt[k];
    const int output = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT;
    e->zero = e->fetches = -1;
    e->memory = eini_dist_number_gates(d, k, eini_dist_memories(d));
    if (!d->fabric.shared) eini_dist_number_moves(d, k, turn);
    if (!d->fabric.shared && d->desc.no_overlap) e->fetches = eini_dist_number_gates(d, k, 1);
    if (e->s->rest == EIN_REST_ZERO && (d->fabric.shared || output))
      e->zero = eini_jobs_add(j, EINI_JOB_ZERO, k, 0, 0);
    e->block = (int32_t)(j->n & INT32_MAX);
    for (int64_t i = 0; i < e->nown; i++) (void)eini_jobs_add(j, EINI_JOB_BLOCK, k, i, 0);
    e->merges = (int32_t)(j->n & INT32_MAX);
    for (int64_t i = 0; i < e->nown; i++)
      for (int l = 0; l < e->levels; l++)
        (void)eini_jobs_add(j, eini_dist_merges(&e->space, d->fabric.first + i, l) ? EINI_JOB_MERGE
                                                                          : EINI_JOB_NONE, k, i, l);
    e->done = eini_dist_number_gates(d, k, eini_dist_memories(d));
  }
}

// ---- memory that is used again ----

// Who was the last to take each range of a memory.
typedef struct eini_reuse {
  int n;
  int64_t *lo, *hi;
  int *item;
} eini_reuse;

static int eini_reuse_init(eini_arena *a, int64_t nitem, eini_reuse *r) {
  r->n = 0;
  r->lo = EINI_NEW(a, int64_t, 2 * nitem + 2);
  r->hi = EINI_NEW(a, int64_t, 2 * nitem + 2);
  r->item = EINI_NEW(a, int, 2 * nitem + 2);
  return r->lo != NULL && r->hi != NULL && r->item != NULL;
}

static void eini_reuse_put(eini_reuse *r, int at, int64_t lo, int64_t hi, int item) {
  const size_t n = (size_t)(r->n++ - at);
  memmove(r->lo + at + 1, r->lo + at, n * sizeof *r->lo);
  memmove(r->hi + at + 1, r->hi + at, n * sizeof *r->hi);
  memmove(r->item + at + 1, r->item + at, n * sizeof *r->item);
  r->lo[at] = lo;
  r->hi[at] = hi;
  r->item[at] = item;
}

static void eini_reuse_drop(eini_reuse *r, int at) {
  const size_t n = (size_t)(--r->n - at);
  memmove(r->lo + at, r->lo + at + 1, n * sizeof *r->lo);
  memmove(r->hi + at, r->hi + at + 1, n * sizeof *r->hi);
  memmove(r->item + at, r->item + at + 1, n * sizeof *r->item);
}

// An item takes a range. Gives one after another those that had a part of it, then -1.
static int eini_reuse_take(eini_reuse *r, int64_t lo, int64_t hi, int item) {
  int i = 0;
  while (i < r->n && r->hi[i] <= lo) i++;
  if (i == r->n || r->lo[i] >= hi) {
    eini_reuse_put(r, i, lo, hi, item);
    return -1;
  }
  const int old = r->item[i];
  const int64_t from = r->lo[i], to = r->hi[i];
  eini_reuse_drop(r, i);
  if (to > hi) eini_reuse_put(r, i, hi, to, old);
  if (from < lo) eini_reuse_put(r, i, from, lo, old);
  return old;
}

// Job `to` waits until nobody needs any more what statement k wrote at memory i: its tensor, or
// what it alone uses.
static void eini_dist_wait_users(ein_dist *d, int k, int tensor, int64_t i, int64_t to) {
  const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
  eini_jobs_edge(&d->jobs, d->stmt[k].done + i, to);
  for (int u = 0; tensor && u < t->nread; u++)
    eini_jobs_edge(&d->jobs, d->stmt[t->read[u]].done + i, to);
  for (int u = 0; tensor && d->fabric.shared && u < t->ndefine; u++)
    if (t->define[u] != k) eini_jobs_edge(&d->jobs, d->stmt[t->define[u]].done + i, to);
}

// Where places share memory.
static ein_status eini_dist_reuse_shared(ein_dist *d, eini_arena *a) {
  eini_reuse r;
  if (!eini_reuse_init(a, d->nitem, &r)) return EIN_ERR_NO_MEMORY;
  for (int i = 0, old; i < d->nitem; i++) {
    const eini_dist_item *b = &d->item[i];
    const eini_dist_tensor *t = b->tensor < 0 ? NULL : &d->tensor[b->tensor];
    while (b->bytes > 0 && (old = eini_reuse_take(&r, b->at, b->at + b->bytes, i)) >= 0) {
      const eini_dist_item *x = &d->item[old];
      for (int u = 0; u < (t == NULL ? 1 : t->ndefine); u++)
        eini_dist_wait_users(d, x->first, x->tensor >= 0, 0,
                             d->stmt[t == NULL ? b->first : t->define[u]].memory);
    }
  }
  return EIN_OK;
}

// Memory i of places with memory of their own.
static ein_status eini_dist_reuse_own(ein_dist *d, int64_t i, eini_arena *a) {
  const eini_dist_copies *c = d->copies;
  eini_reuse r;
  if (!eini_reuse_init(a, EINI_AT_KINDS * (int64_t)d->nstmt, &r)) return EIN_ERR_NO_MEMORY;
  for (int n = 0, old; n < EINI_AT_KINDS * d->nstmt; n++) {
    const int k = n / EINI_AT_KINDS, kind = n % EINI_AT_KINDS;
    const eini_dist_stmt *e = &d->stmt[k];
    const int64_t entry = (int64_t)k * d->fabric.count + i;
    const int64_t at = c->at[kind][entry], bytes = c->size[kind][entry];
    while (bytes > 0 && (old = eini_reuse_take(&r, at, at + bytes, n)) >= 0)
      eini_dist_wait_users(d, old / EINI_AT_KINDS, old % EINI_AT_KINDS == EINI_AT_OWN, i,
                           kind < EINI_AT_OWN ? e->memory + i : e->block + i);
  }
  return EIN_OK;
}

// ---- what is read, sent and merged ----

typedef struct eini_dist_waiting {
  ein_dist *d;
  int64_t job;
} eini_dist_waiting;

// What a task reads of pinned inputs is there.
static ein_status eini_dist_wait_block(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  const eini_dist_waiting *w = (const eini_dist_waiting *)user;
  (void)m;
  if (t->define < w->d->nstmt)
    eini_jobs_edge(&w->d->jobs, eini_dist_final(w->d, &w->d->stmt[t->define], t->home), w->job);
  return EIN_OK;
}

// Task q waits for the blocks that it reads, and for zeros where it reads a tensor with holes.
static void eini_dist_wait_reads(ein_dist *d, const eini_dist_stmt *e, int64_t q,
                                 eini_dist_room *m) {
  eini_dist_waiting w = {d, e->block + q - d->fabric.first};
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    if (t->ndefine == 0 || t->define[0] >= d->nstmt || d->stmt[t->define[0]].zero < 0) continue;
    if (eini_operand_first(e->s, o) == o && eini_dist_box(e, q, o, m))
      eini_jobs_edge(&d->jobs, d->stmt[t->define[0]].zero, w.job);
  }
  (void)eini_dist_task_transfers(d, e, q, m, eini_dist_wait_block, &w);
}

// A move of statement k at place i of this process.
static void eini_dist_wait_move(ein_dist *d, int k, int64_t i, const eini_dist_moved *v) {
  eini_jobs *j = &d->jobs;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first + i, block = e->block + i;
  const int64_t merge = e->merges + i * e->levels + v->level;
  if (v->kind != EINI_JOB_NONE) eini_jobs_edge(j, v->job, e->done + i);
  if (v->kind != EINI_JOB_NONE && v->kind != EINI_JOB_SEND)
    eini_jobs_edge(j, e->memory + i, v->job);
  if (v->level >= 0 && v->kind == EINI_JOB_SEND) {
    eini_jobs_edge(j, eini_dist_final(d, e, q), v->job);
  } else if (v->level >= 0) {  // into the memory of the merge before
    if (v->level > 0) eini_jobs_edge(j, merge - 1, v->job);
    eini_jobs_edge(j, v->job, merge);
  } else if (v->kind == EINI_JOB_RECEIVE) {
    eini_jobs_edge(j, v->job, e->fetches >= 0 ? e->fetches : block);
  } else {
    const int64_t to = v->kind == EINI_JOB_SEND ? v->job : block;
    if (v->kind == EINI_JOB_SEND && !v->direct) eini_jobs_edge(j, e->memory + i, to);
    if (v->define < d->nstmt) eini_jobs_edge(j, eini_dist_final(d, &d->stmt[v->define], q), to);
  }
}

// Merges of task q wait for what they merge.
static void eini_dist_wait_merges(ein_dist *d, const eini_dist_stmt *e, int64_t q) {
  const int64_t i = q - d->fabric.first, part = eini_space_partial(&e->space, q);
  for (int l = 0; l < e->levels; l++) {
    if (!eini_dist_merges(&e->space, q, l)) continue;
    const int64_t merge = e->merges + i * e->levels + l;
    eini_jobs_edge(&d->jobs, l == 0 ? e->block + i : merge - 1, merge);
    eini_jobs_edge(&d->jobs, merge, e->done + (d->fabric.shared ? 0 : i));
    if (!d->fabric.shared) continue;  // they wait for a message
    const int64_t other = eini_space_partner(&e->space, q, part + ((int64_t)1 << l));
    eini_jobs_edge(&d->jobs, eini_dist_final(d, e, other), merge);
  }
}

static void eini_dist_wait_stmt(ein_dist *d, int k, eini_dist_room *m) {
  const eini_dist_stmt *e = &d->stmt[k];
  eini_jobs *j = &d->jobs;
  const int shared = d->fabric.shared;
  if (e->zero >= 0) eini_jobs_edge(j, e->zero, e->done);
  if (e->zero >= 0 && shared) eini_jobs_edge(j, e->memory, e->zero);
  for (int64_t i = 0; i < e->nown; i++) {
    const int64_t q = d->fabric.first + i;
    eini_jobs_edge(j, e->memory + (shared ? 0 : i), e->block + i);
    eini_jobs_edge(j, e->block + i, e->done + (shared ? 0 : i));
    if (e->zero >= 0) eini_jobs_edge(j, e->zero, e->block + i);
    if (e->fetches >= 0) eini_jobs_edge(j, e->fetches, e->block + i);
    if (shared) eini_dist_wait_reads(d, e, q, m);
    eini_dist_wait_merges(d, e, q);
  }
  for (int64_t i = 0; i < d->fabric.count && !shared; i++) {
    const int64_t entry = (int64_t)k * d->fabric.count + i;
    for (int64_t v = d->copies->first[entry]; v < d->copies->first[entry + 1]; v++)
      eini_dist_wait_move(d, k, i, &d->copies->move[v]);
    for (int64_t u = 0; u < d->fabric.count && e->fetches >= 0 && k > 0; u++)
      eini_jobs_edge(j, d->stmt[k - 1].done + u, e->memory + i);
  }
}

// All edges, which are counted the first time round.
static ein_status eini_dist_wait_all(ein_dist *d, eini_dist_room *m) {
  eini_arena scratch;
  ein_status st = EIN_OK;
  for (int k = 0; k < d->nstmt; k++) eini_dist_wait_stmt(d, k, m);
  eini_arena_init(&scratch, &d->al);
  const eini_arena_at clean = eini_arena_mark(&scratch);
  if (d->fabric.shared) st = eini_dist_reuse_shared(d, &scratch);
  for (int64_t i = 0; i < d->fabric.count && !d->fabric.shared && st == EIN_OK; i++) {
    st = eini_dist_reuse_own(d, i, &scratch);
    eini_arena_rollback(&scratch, &clean);
  }
  eini_arena_free(&scratch);
  return st;
}

typedef struct eini_dist_making {
  ein_dist *d;
  eini_dist_room *m;
  int64_t *turn;            // of places with memory of their own: moves as eini_dist_turns has them
} eini_dist_making;

static void eini_dist_number_all(void *user) {
  const eini_dist_making *x = (const eini_dist_making *)user;
  eini_dist_number(x->d, x->turn);
}

static ein_status eini_dist_wait(void *user) {
  const eini_dist_making *x = (const eini_dist_making *)user;
  return eini_dist_wait_all(x->d, x->m);
}

// Makes the jobs of a plan.
static ein_status eini_dist_jobs(ein_dist *d, eini_dist_room *m) {
  eini_dist_making x = {d, m, NULL};
  eini_arena a;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = d->stmt[k].s;
    for (int o = 0; o < s->noperand; o++)
      d->defines = eini_max64(d->defines, d->tensor[s->operand[o]].ndefine);
    d->tags = eini_max64(d->tags, s->noperand);
  }
  d->tags = d->tags * d->defines + 1;
  eini_arena_init(&a, &d->al);
  ein_status st = EIN_OK;
  if (!d->fabric.shared) {
    x.turn = EINI_NEW(&a, int64_t, d->copies->nmove);
    st = x.turn == NULL ? EIN_ERR_NO_MEMORY : eini_dist_turns(&a, d, x.turn);
  }
  if (st == EIN_OK)
    st = eini_jobs_make(&d->arena, &d->jobs, eini_dist_number_all, eini_dist_wait, &x);
  eini_arena_free(&a);
  return st;
}

// ================================================================================================
// >>dist-run  a run, and what tasks do in a memory that is shared
// Takes an ein_dist and the bindings of one call. Blocks are views of whole tensors. Everything
// mutable is in the workspace: temporaries, partial results, memory of places, jobs, scratch.
// ================================================================================================

// What one thread needs to run jobs.
typedef struct eini_dist_worker {
  eini_dist_room room;
  ein_scalar *param;        // of the graph, then origins
  const void **in;
  int64_t *sent;            // per place: bytes that were read of theirs; NULL: not counted
  eini_dist_read read;      // by the job at hand
  char *scratch;
  char error[192];          // of a task that failed
} eini_dist_worker;

typedef struct eini_dist_exec {
  const ein_dist *d;
  const ein_run *run;
  char *temp;               // temporaries and partial results
  char *mem;                // of places that have their own
  char **base;              // per tensor: element (0, .., 0)
  eini_dist_worker *worker;
  ein_dist_stats *stats;    // NULL: not counted
  eini_flow flow;
} eini_dist_exec;

// The next `bytes` of a memory; with mem NULL only *used moves.
static void *eini_dist_carve(char *mem, size_t *used, int64_t count, size_t size) {
  char *p = mem == NULL ? NULL : mem + *used;
  *used += ((size_t)count * size + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  return p;
}

static void eini_dist_layout_flow(const ein_dist *d, eini_flow *f, char *mem, size_t *n) {
  const eini_jobs *j = &d->jobs;
  const int64_t lists = (int64_t)d->nstmt * d->width;
  f->jobs = j;
  f->fabric = &d->fabric;
  f->nstmt = d->nstmt;
  f->width = d->width;
  f->wait = (int32_t *)eini_dist_carve(mem, n, j->n, sizeof(int32_t));
  f->link = (int32_t *)eini_dist_carve(mem, n, j->n, sizeof(int32_t));
  f->head = (int32_t *)eini_dist_carve(mem, n, lists, sizeof(int32_t));
  f->tail = (int32_t *)eini_dist_carve(mem, n, lists, sizeof(int32_t));
  f->ready = (int32_t *)eini_dist_carve(mem, n, d->nstmt, sizeof(int32_t));
  const int64_t posted = eini_dist_clocked(d) ? 0 : j->ntransfer;
  f->ticket = (ein_ticket *)eini_dist_carve(mem, n, posted, sizeof(ein_ticket));
  f->ticket_of = (int32_t *)eini_dist_carve(mem, n, posted > 0 ? posted : j->todo,
                                            sizeof(int32_t));
  f->over = (char *)eini_dist_carve(mem, n, posted, 1);
}

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_dist_layout(const ein_dist *d, eini_dist_exec *x, char *mem) {
  size_t n = 0;
  x->base = (char **)eini_dist_carve(mem, &n, d->g->ntensor, sizeof(char *));
  x->worker = (eini_dist_worker *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  eini_dist_layout_flow(d, &x->flow, mem, &n);
  for (int i = 0; i < d->width; i++) {
    int64_t *room = (int64_t *)eini_dist_carve(mem, &n, EINI_ROOM * (int64_t)d->rank,
                                               sizeof(int64_t));
    void *param = eini_dist_carve(mem, &n, d->g->nparam + d->rank, sizeof(ein_scalar));
    void *in = eini_dist_carve(mem, &n, d->rank, sizeof(void *));
    void *out = eini_dist_carve(mem, &n, d->fabric.shared ? d->fabric.places : 0,
                                sizeof(int64_t));
    void *scratch = eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
    if (mem == NULL) continue;
    eini_dist_worker *w = &x->worker[i];
    memset(w, 0, sizeof *w);
    eini_dist_room_carve(room, d->rank, &w->room);
    w->param = (ein_scalar *)param;
    w->in = (const void **)in;
    w->sent = x->stats != NULL && d->fabric.shared ? (int64_t *)out : NULL;
    for (int q = 0; w->sent != NULL && q < d->fabric.places; q++) w->sent[q] = 0;
    w->scratch = (char *)scratch;
  }
  if (eini_dist_clocked(d)) return n;
  x->temp = (char *)eini_dist_carve(mem, &n, d->temp_bytes, 1);
  x->mem = (char *)eini_dist_carve(mem, &n, d->copies == NULL ? 0 : d->copies->total, 1);
  return n;
}

// The element at coordinates `at` of a tensor, of which `base` is the first; `at` is the origin of
// a box that may be empty.
static char *eini_dist_at_of(const ein_dist *d, char *base, int tensor, const int64_t *at) {
  const eini_tensor *t = &d->g->tensor[tensor];
  int64_t n = 0;
  for (int r = 0; r < t->rank; r++) n += at[r] * d->tensor[tensor].stride[r];
  if (d->tensor[tensor].lo == d->tensor[tensor].hi) return base;
  return base + n * (int64_t)ein_dtype_size(t->dtype);
}

static char *eini_dist_at(const eini_dist_exec *x, int tensor, const int64_t *at) {
  return eini_dist_at_of(x->d, x->base[tensor], tensor, at);
}

// ---- blocks of tensors at places ----

// Does a place hold a part of a tensor? What nothing pins or defines lies everywhere.
static int eini_dist_owns(const ein_dist *d, int t, int64_t place) {
  const eini_dist_tensor *x = &d->tensor[t];
  if (x->ndefine == 0) return 1;
  const eini_space *s = &d->stmt[x->define[0]].space;
  return place < s->ntask && eini_space_partial(s, place) == 0;
}

// What it holds of axis r.
static void eini_dist_own(const ein_dist *d, int t, int64_t place, int r, int64_t *lo,
                          int64_t *hi) {
  const eini_dist_tensor *x = &d->tensor[t];
  const eini_space *s = x->ndefine == 0 ? NULL : &d->stmt[x->define[0]].space;
  const int i = s == NULL ? -1 : eini_plain_row(&s->s->out_map, r);
  *lo = 0;
  *hi = d->g->tensor[t].shape[r];
  if (i < 0) return;
  const int64_t k = eini_space_piece(s, place, i);
  *lo = eini_piece_start(s->s->index[i].extent, s->cut[i], k);
  *hi = eini_piece_start(s->s->index[i].extent, s->cut[i], k + 1);
}

// Why a tensor is not one box at each place; NULL: it is.
static const char *eini_dist_not_boxes(const ein_dist *d, int t) {
  const eini_dist_tensor *x = &d->tensor[t];
  const eini_tensor *e = &d->g->tensor[t];
  int64_t coef;
  if (x->ndefine > 1) return "several statements write it";
  const eini_stmt *s = x->ndefine == 0 ? NULL : d->stmt[x->define[0]].s;
  for (int r = 0; r < e->rank && s != NULL; r++) {
    const int one = e->shape[r] == 1 && eini_row_index(&s->out_map, r, &coef) < 0;
    if (s->rest != EIN_REST_ERROR || (eini_plain_row(&s->out_map, r) < 0 && !one))
      return "what places hold of it are not boxes";
  }
  return NULL;
}

// The elements of the block at a place.
static int64_t eini_dist_own_elements(const ein_dist *d, int t, int64_t place) {
  int64_t n = eini_dist_owns(d, t, place);
  for (int r = 0; r < d->g->tensor[t].rank && n > 0; r++) {
    int64_t lo, hi;
    eini_dist_own(d, t, place, r, &lo, &hi);
    n *= hi - lo;
  }
  return n;
}

// What a run binds for an input or output: the whole tensor, or its block at the i-th place of the
// process.
static char *eini_dist_bound(const ein_dist *d, const ein_run *run, int t, int i) {
  const int64_t at = (int64_t)d->tensor[t].port * (d->desc.blocks ? d->fabric.count : 1) + i;
  union { const void *c; char *v; } u;  // inputs are only read
  if (d->g->tensor[t].role == EIN_ROLE_INPUT) u.c = run->in[at];
  else u.v = (char *)run->out[at];
  return u.v;
}

// Memory of the partial result of the task at `place`.
static char *eini_dist_partial_at(const eini_dist_exec *x, const eini_dist_stmt *e,
                                  int64_t place) {
  return x->temp + x->d->item[e->item].at + place * (int64_t)e->partial_bytes;
}

// The address of that block.
static char *eini_dist_block_at(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t place,
                                eini_dist_room *m) {
  eini_dist_block_hull(e, place, m);
  return eini_dist_at(x, e->s->out, m->from);
}

// What the first of so many workers has to say of a task that failed.
static ein_status eini_dist_failed(const ein_run *run, ein_status st, int n, const char *error,
                                   size_t pitch) {
  for (int i = 0; st != EIN_OK && run != NULL && run->error != NULL && i < n; i++, error += pitch) {
    if (error[0] == 0 || run->error_bytes == 0) continue;
    snprintf(run->error, run->error_bytes, "%s", error);
    break;
  }
  return st;
}

// What is asked of a provider from here on is for place q; -1: for none.
static void eini_dist_here(const ein_kernels *k, int64_t q) {
  if (k->memory->place_fn != NULL) k->memory->place_fn(k->user, (int)q);
}

// Runs plan number id at place q. What it does in the memory of a provider may go on, unless
// somebody is told of tasks.
static ein_status eini_dist_run_at(const ein_dist *d, int64_t q, int64_t id, const ein_run *run) {
  const ein_plan *p = d->plans.plan[id];
  ein_ticket ticket;
  if (p->away == NULL) return ein_plan_execute(p, run);
  eini_dist_here(p->away, q);
  const ein_status st = d->away != NULL && d->desc.event_fn == NULL
                            ? ein_plan_enqueue(p, run, &ticket) : ein_plan_execute(p, run);
  eini_dist_here(p->away, -1);
  return st;
}

static ein_status eini_dist_execute_plan(const eini_dist_exec *x, eini_dist_worker *w, int64_t q,
                                         int64_t id, void *const *out) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = out;
  run.param = w->param;
  run.workspace = w->scratch;
  run.workspace_bytes = x->d->plans.workspace;
  run.error = w->error;
  run.error_bytes = sizeof w->error;
  return eini_dist_run_at(x->d, q, id, &run);
}

// Computes the block of task q: results, or states, which begin as those of nothing.
static ein_status eini_dist_execute_block(const eini_dist_exec *x, eini_dist_worker *w,
                                          const eini_dist_stmt *e, int64_t q, char *out) {
  void *data[4] = {out, NULL, NULL, NULL};
  if (e->folder != NULL) {
    int64_t n = eini_dist_elements(&e->space, q, &w->room);
    eini_states_at(e->folder, n, out, data);
    eini_fold_identity(e->folder, n, data);
  }
  return eini_dist_execute_plan(x, w, q, e->plan[q - x->d->fabric.first], data);
}

// Origins of the block at m->lo as params, behind those of the graph.
static void eini_dist_origins(const ein_dist *d, const eini_dist_stmt *e, eini_dist_worker *w) {
  ein_scalar *p = w->param + d->g->nparam;
  for (int i = 0; i < e->s->nindex; i++) {
    if (!eini_dist_uses(e->s, e->space.cut, i)) continue;
    p->set = 1;
    p->re = (double)w->room.lo[i];
    p->im = 0;
    p++;
  }
}

static ein_status eini_dist_compute(const eini_dist_exec *x, eini_dist_worker *w, int k,
                                    int64_t q) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  eini_dist_room *m = &w->room;
  int n = 0, own = e->space.nagg == 1 || (e->direct && eini_space_partial(&e->space, q) == 0);
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(x->d, e, w);
  for (int o = 0; o < e->s->noperand; o++) {
    if (eini_operand_first(e->s, o) < o) continue;
    eini_block_hull(e->s, &b, o, m->from, m->to);
    w->in[n++] = eini_dist_at(x, e->s->operand[o], m->from);
  }
  char *out = own ? eini_dist_block_at(x, e, q, m) : eini_dist_partial_at(x, e, q);
  return eini_dist_execute_block(x, w, e, q, out);
}

// Merges states of the block of task q into those at left, and finishes the last ones: into dst,
// with strides by free index.
static void eini_dist_states_join(const eini_dist_exec *x, eini_dist_worker *w,
                                  const eini_dist_stmt *e, int64_t q, char *left, char *right,
                                  char *dst, const int64_t *stride) {
  eini_dist_room *m = &w->room;
  int64_t n = eini_dist_elements(&e->space, q, m);
  void *state[4];
  eini_states_merge(e->folder, n, left, right);
  if (dst == NULL) return;
  for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
  eini_states_at(e->folder, n, left, state);
  eini_states_finish(e->folder, e->s->nfree, m->len, state, NULL,
                     x->d->g->tensor[e->s->out].dtype, dst, stride);
}

// The address of the first element of the block of task q, and strides by free index.
static char *eini_dist_block_first(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t q,
                                   eini_dist_room *m, int64_t *stride) {
  const eini_map *map = &e->s->out_map;
  const int64_t *step = x->d->tensor[e->s->out].stride;
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  for (int i = 0; i < e->s->nfree; i++) stride[i] = 0;
  for (int r = 0; r < map->rows; r++) {
    m->from[r] = map->offset[r];
    for (int k = map->first[r]; k < map->first[r + 1]; k++) {
      const int i = map->term[k].index;
      int64_t c = map->term[k].coef;
      m->from[r] += c * m->lo[i];
      stride[i] += c * step[r];
    }
  }
  return eini_dist_at(x, e->s->out, m->from);
}

// Merges partial result k + 2^level of the block of task q, whose number is k, into k.
static ein_status eini_dist_merge(const eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                  int level, eini_dist_read *r) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  eini_dist_room *m = &w->room;
  int64_t part = eini_space_partial(&e->space, q), step = (int64_t)1 << level;
  int64_t from = eini_space_partner(&e->space, q, part + step);
  int last = part == 0 && 2 * step >= e->space.nagg;
  eini_dist_reads(r, from, eini_dist_elements(&e->space, q, m) * e->wide);
  if (e->folder != NULL) {
    char *dst = last ? eini_dist_block_first(x, e, q, m, m->dst) : NULL;
    eini_dist_states_join(x, w, e, q, eini_dist_partial_at(x, e, q),
                          eini_dist_partial_at(x, e, from), dst, m->dst);
    return EIN_OK;
  }
  char *block = part == 0 ? eini_dist_block_at(x, e, q, m) : NULL;
  w->in[0] = part == 0 && e->direct ? block : eini_dist_partial_at(x, e, q);
  w->in[1] = eini_dist_partial_at(x, e, from);
  void *out = part == 0 && (e->direct || last) ? block : eini_dist_partial_at(x, e, q);
  return eini_dist_execute_plan(x, w, q, (last ? e->last : e->merge)[q - x->d->fabric.first],
                                &out);
}

// Zero for all elements of a tensor, before its only statement writes those it defines.
static void eini_dist_zero(const eini_dist_exec *x, int tensor, eini_dist_room *m) {
  static const char zero[16] = {0};
  const eini_tensor *t = &x->d->g->tensor[tensor];
  for (int r = 0; r < t->rank; r++) m->from[r] = 0;
  eini_dist_copy(t->rank, t->shape, x->base[tensor], x->d->tensor[tensor].stride, zero, m->from,
                 ein_dtype_size(t->dtype));
}

// ================================================================================================
// >>dist-own  what tasks and messages do at places with memory of their own
// Takes moves, and where the memory of a place is: the host's, or a provider's, whose kernels copy
// what is not dense there.
// ================================================================================================

// ---- memory of places ----

static char *eini_own_at(const eini_dist_exec *x, int kind, int64_t entry) {
  const ein_dist *d = x->d;
  const eini_dist_copies *c = d->copies;
  const int64_t i = entry % d->fabric.count, at = c->at[kind][entry];
  if (d->held_bytes[i] > 0 && at >= c->bytes[i]) return (char *)d->held[i] + (at - c->bytes[i]);
  return x->mem + c->start[i] + at;
}

// The provider's memory of all places of this process, which the plan keeps.
static ein_status eini_own_hold(const ein_dist *d) {
  const ein_kernels *k = d->away;
  for (int i = 0; k != NULL && i < d->fabric.count; i++) {
    if (d->held[i] != NULL || d->held_bytes[i] == 0) continue;
    eini_dist_here(k, d->fabric.first + i);
    const ein_status st =
        k->memory->hold_fn(k->user, (size_t)d->held_bytes[i], &d->held[i]);
    eini_dist_here(k, -1);
    if (st != EIN_OK) d->held[i] = NULL;
    EINI_TRY(st);
  }
  return EIN_OK;
}

static void eini_own_release(const ein_dist *d) {
  for (int i = 0; d->away != NULL && d->held != NULL && i < d->fabric.count; i++) {
    if (d->held[i] == NULL) continue;
    eini_dist_here(d->away, d->fabric.first + i);
    d->away->memory->release_fn(d->away->user, d->held[i]);
    eini_dist_here(d->away, -1);
  }
}

// Nothing is under way any more at any place.
static ein_status eini_own_end(const ein_dist *d, ein_status st) {
  for (int i = 0; d->away != NULL && i < d->fabric.count; i++) {
    ein_ticket ticket = 0;
    if (d->held_bytes[i] == 0) continue;
    eini_dist_here(d->away, d->fabric.first + i);
    ein_status own = d->away->memory->mark_fn(d->away->user, &ticket);
    if (own == EIN_OK && ticket != 0) own = d->away->memory->wait_fn(d->away->user, ticket);
    eini_dist_here(d->away, -1);
    if (st == EIN_OK) st = own;
  }
  if (d->carried) (void)d->fabric.memory_fn(d->fabric.user, NULL);
  return st;
}

// Says where what is posted next is. With the wires.
static ein_status eini_own_says(const ein_dist *d, int away) {
  const ein_fabric *f = &d->fabric;
  return d->carried ? f->memory_fn(f->user, away ? d->away : NULL) : EIN_OK;
}

// ---- copies there ----

enum { EINI_OWN_LOOPS = 12 };

typedef struct eini_own_loops {
  int n;
  int64_t extent[EINI_OWN_LOOPS], dst[EINI_OWN_LOOPS], src[EINI_OWN_LOOPS];
} eini_own_loops;

// The loops of a copy, those that continue others on both sides merged. 0: there are too many.
static int eini_own_loops_of(int rank, const int64_t *shape, const int64_t *dst,
                             const int64_t *src, eini_own_loops *l) {
  l->n = 0;
  for (int r = 0; r < rank; r++) {
    const int i = l->n - 1;
    if (shape[r] == 1) continue;
    if (i >= 0 && l->dst[i] == shape[r] * dst[r] && l->src[i] == shape[r] * src[r]) {
      l->extent[i] *= shape[r];
      l->dst[i] = dst[r];
      l->src[i] = src[r];
      continue;
    }
    if (l->n == EINI_OWN_LOOPS) return 0;
    l->extent[l->n] = shape[r];
    l->dst[l->n] = dst[r];
    l->src[l->n++] = src[r];
  }
  if (l->n == 0) l->n = 1, l->extent[0] = l->dst[0] = l->src[0] = 1;
  return 1;
}

// dst[i] = src[i] for i < shape at place q: by the provider where one of them is in its memory.
static ein_status eini_own_carry(const ein_dist *d, int64_t q, int rank, const int64_t *shape,
                                 const eini_dist_end *dst, const eini_dist_end *src,
                                 const int64_t *dst_stride, const int64_t *src_stride,
                                 size_t size) {
  const ein_kernels *k = d->away;
  eini_own_loops l;
  ein_copy c;
  ein_choice choice;
  unsigned char away[2];
  for (int r = 0; r < rank; r++)
    if (shape[r] == 0) return EIN_OK;
  if (!dst->away && !src->away) {
    eini_dist_copy(rank, shape, dst->data, dst_stride, src->data, src_stride, size);
    return EIN_OK;
  }
  if (!eini_own_loops_of(rank, shape, dst_stride, src_stride, &l)) {
    eini_dist_end to = *dst, from = *src;
    for (int64_t i = 0; i < shape[0]; i++) {
      EINI_TRY(eini_own_carry(d, q, rank - 1, shape + 1, &to, &from, dst_stride + 1,
                              src_stride + 1, size));
      to.data += dst_stride[0] * (int64_t)size;
      from.data += src_stride[0] * (int64_t)size;
    }
    return EIN_OK;
  }
  memset(&c, 0, sizeof c);
  c.n = l.n;
  c.extent = l.extent;
  c.src_stride = l.src;
  c.dst_stride = l.dst;
  c.size = (int)size;
  c.src = src->data;
  c.dst = dst->data;
  c.away = away;
  away[0] = (unsigned char)src->away;
  away[1] = (unsigned char)dst->away;
  ein_status st = EIN_ERR_NO_MEMORY;  // all that a copy may lack
  eini_dist_here(k, q);
  if (l.n == 1 && l.dst[0] == 1 && l.src[0] == 1 && src->away != dst->away)
    st = k->memory->copy_fn(k->user, (size_t)l.extent[0] * size, src->data, dst->data, dst->away);
  else if (k->copy_plan(k->user, &c, 1, -1, &choice))
    st = k->copy_run(k->user, &c, &choice, NULL);
  eini_dist_here(k, -1);
  return st;
}

// Bytes that are dense on both sides, or for all of them the same 16 (stride 0).
static ein_status eini_own_bytes(const ein_dist *d, int64_t q, char *dst, int dst_away,
                                 const char *src, int src_away, int64_t stride, int64_t bytes) {
  const int64_t one = 1;
  union { const char *c; char *v; } u;  // it is only read
  const size_t size = stride == 0 ? 16 : 1;
  const int64_t n = bytes / (int64_t)size;
  const eini_dist_end to = eini_dist_end_of(EINI_AT_MESSAGE, dst, NULL, dst_away);
  u.c = src;
  const eini_dist_end from = eini_dist_end_of(EINI_AT_MESSAGE, u.v, NULL, src_away);
  return eini_own_carry(d, q, 1, &n, &to, &from, &one, &stride, size);
}

// Moves the elements of the block at `place` that lie in a box, at place q.
static ein_status eini_own_move(const eini_dist_exec *x, int64_t q, int define, int64_t place,
                                const int64_t *from, const int64_t *to, size_t size,
                                const eini_dist_end *dst, const eini_dist_end *src,
                                eini_dist_room *m) {
  const eini_space *s = &x->d->stmt[define].space;
  eini_dist_end a = *dst, b = *src;
  int64_t at[2];
  if (!dst->away && !src->away) {
    eini_dist_move(s, place, from, to, size, dst, src, m);
    return EIN_OK;
  }
  if (!eini_dist_sides(s, place, from, to, dst, src, m, at)) return EIN_OK;
  a.data += at[0] * (int64_t)size;
  b.data += at[1] * (int64_t)size;
  return eini_own_carry(x->d, q, s->s->nfree, m->bto, &a, &b, m->dst, m->src, size);
}

// ---- messages ----

// Where the elements of a move are at home, at place q; m->from: the corner of the box they lie in.
static eini_dist_end eini_own_home(const eini_dist_exec *x, const eini_dist_moved *v, int64_t q,
                                   const eini_dist_room *m) {
  const ein_dist *d = x->d;
  const int tensor = d->stmt[v->define].s->out;
  eini_dist_end e = eini_dist_end_home(d, v->define);
  if (eini_dist_whole(d, v->define)) e.data = eini_dist_at(x, tensor, m->from);
  else if (v->define < d->nstmt)
    e.data = eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, v->define, q));
  else e.data = eini_dist_bound(d, x->run, tensor, (int)q - d->fabric.first);
  return e;
}

static char *eini_own_box(const eini_dist_exec *x, int64_t entry, int o) {
  return eini_own_at(x, EINI_AT_OPERAND, entry) + x->d->copies->box[entry][o];
}

static int64_t eini_own_tag(const ein_dist *d, const eini_job *j, const eini_dist_moved *v) {
  int64_t slot = d->tags - 1;
  if (v->level >= 0) return j->stmt * d->tags + slot;
  const eini_dist_tensor *t = &d->tensor[d->stmt[j->stmt].s->operand[v->operand]];
  for (slot = 0; t->define[slot] != v->define;) slot++;
  return j->stmt * d->tags + v->operand * d->defines + slot;
}

// Posts what a place gives to a fold by the fabric. At the first of its places, which merges the
// result with its own once more, that is 0 in a sum, 1 in a product; in others twice does no harm.
static ein_status eini_own_reduce(eini_dist_exec *x, int k, const eini_dist_moved *v, char *data,
                                  ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, d->fabric.first);
  const ein_dtype type = ein_dtype_compute(e->s->type);
  const int product = e->s->fold == EIN_FOLD_PROD, own = e->direct ? EINI_AT_OWN : EINI_AT_PART;
  ein_status made = EIN_OK;
  if (v->kind == EINI_JOB_RECEIVE && (product || e->s->fold == EIN_FOLD_SUM))
    eini_fill_value(type, product, 0, product, v->bytes / (int64_t)ein_dtype_size(type), data);
  else if (v->kind == EINI_JOB_RECEIVE)
    made = eini_own_bytes(d, d->fabric.first, data, 0, eini_own_at(x, own, entry),
                          eini_dist_is_away(d, k, own), 1, v->bytes);
  eini_flow_wires(&x->flow, 1);
  ein_status st = eini_own_says(d, 0);
  if (st == EIN_OK)
    st = d->fabric.reduce_fn(d->fabric.user, v->group, v->turns, v->turn, e->s->fold, type, data,
                             (size_t)v->bytes, ticket);
  eini_flow_wires(&x->flow, 0);
  return st != EIN_OK ? st : made;
}

// A message of place q.
typedef struct eini_own_wire {
  int send, away;           // away: it is in the provider's memory
  int peer, group, turns, turn;  // as of eini_dist_moved
  int64_t q, tag, bytes;
} eini_own_wire;

// Posts what is at `data`, or goes there.
static ein_status eini_own_wired(const ein_dist *d, eini_flow *flow, const eini_own_wire *v,
                                 char *data, ein_ticket *ticket) {
  const ein_fabric *f = &d->fabric;
  const int q = (int)v->q;
  eini_flow_wires(flow, 1);
  ein_status st = eini_own_says(d, v->away);
  if (st != EIN_OK) st = EIN_ERR_INTERNAL;  // others wait in vain: it said yes before
  else if (v->group >= 0)
    st = f->spread_fn(f->user, v->group, v->turns, v->turn, v->send ? q : v->peer, data,
                      (size_t)v->bytes, ticket);
  else if (v->send) st = f->send_fn(f->user, q, v->peer, v->tag, data, (size_t)v->bytes, ticket);
  else st = f->recv_fn(f->user, q, v->peer, v->tag, data, (size_t)v->bytes, ticket);
  eini_flow_wires(flow, 0);
  return st;
}

static ein_status eini_own_post(eini_dist_exec *x, const eini_job *j, char *data,
                                ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const eini_own_wire w = {v->kind == EINI_JOB_SEND, v->away, v->peer, v->group, v->turns, v->turn,
                           (int64_t)d->fabric.first + j->place, eini_own_tag(d, j, v), v->bytes};
  return eini_own_wired(d, &x->flow, &w, data, ticket);
}

static ein_status eini_own_receive(eini_dist_exec *x, const eini_job *j, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  if (eini_dist_clocked(d))
    return f->recv_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  char *to = v->level >= 0 ? eini_own_at(x, EINI_AT_MERGED, entry)
             : v->direct ? eini_own_box(x, entry, v->operand) + v->at
                         : eini_own_at(x, EINI_AT_INBOX, entry) + v->at;
  if (v->level >= 0 && v->group >= 0) return eini_own_reduce(x, j->stmt, v, to, ticket);
  return eini_own_post(x, j, to, ticket);
}

static ein_status eini_own_send(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                int failed, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  eini_dist_room *m = &w->room;
  ein_status packed = EIN_OK;
  char *from;
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  if (eini_dist_clocked(d))
    return f->send_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->level >= 0) {
    from = eini_own_at(x, EINI_AT_PART, entry);
    if (!v->direct) {
      char *to = eini_own_at(x, EINI_AT_OUTBOX, entry) + v->at;
      if (!failed) packed = eini_own_bytes(d, q, to, 0, from, 1, 1, v->bytes);
      from = to;
    }
  } else {
    eini_dist_box(&d->stmt[j->stmt], v->peer, v->operand, m);
    const eini_dist_end home = eini_own_home(x, v, q, m);
    const int box = v->away ? EINI_AT_OUTSIDE : EINI_AT_OUTBOX;
    const eini_dist_end to = eini_dist_end_of(
        EINI_AT_MESSAGE, eini_own_at(x, box, entry) + (v->direct ? 0 : v->at), NULL, v->away);
    from = v->direct ? home.data + v->at : to.data;
    if (!v->direct && !failed)
      packed = eini_own_move(x, q, v->define, q, m->from, m->to, (size_t)(v->bytes / v->elements),
                             &to, &home, m);
  }
  const ein_status st = v->level >= 0 && v->group >= 0
                            ? eini_own_reduce(x, j->stmt, v, from, ticket)
                            : eini_own_post(x, j, from, ticket);
  return st != EIN_OK ? st : packed;
}

// ---- tasks ----

// Addresses of the operands of task q, by operand; boxes with holes are zero first.
static ein_status eini_own_operands(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  static const char zero[16] = {0};
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q), *box = d->copies->box[entry];
  eini_dist_room *m = &w->room;
  for (int o = 0; o < e->s->noperand; o++) {
    const int t = e->s->operand[o];
    if (eini_operand_first(e->s, o) < o) continue;
    if (d->tensor[t].ndefine == 0) {
      char *base = x->base[t];
      if (d->desc.blocks) base = eini_dist_bound(d, x->run, t, (int)q - d->fabric.first);
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_dist_at_of(d, base, t, m->from);
    } else if (box[o] < 0) {
      const eini_dist_moved *v = &d->copies->move[-1 - box[o]];
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_own_home(x, v, q, m).data + v->at;
    } else {
      w->in[o] = eini_own_box(x, entry, o);
      if (d->stmt[d->tensor[t].define[0]].s->rest == EIN_REST_ZERO)
        EINI_TRY(eini_own_bytes(d, q, eini_own_box(x, entry, o), e->away, zero, 0, 0,
                                eini_dist_box_bytes(d, e, q, o, m)));
    }
  }
  return EIN_OK;
}

// Puts together the boxes of task q's operands, and computes.
static ein_status eini_own_compute(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  const int own = eini_space_partial(&e->space, q) == 0 && (e->space.nagg == 1 || e->direct);
  eini_dist_room *m = &w->room;
  int n = 0;
  EINI_TRY(eini_own_operands(x, w, k, q));
  for (int64_t i = c->first[entry]; i < c->first[entry + 1]; i++) {
    const eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_SEND || v->level >= 0 || v->direct) continue;
    eini_dist_box(e, q, v->operand, m);
    const eini_dist_end from =
        v->kind == EINI_JOB_NONE
            ? eini_own_home(x, v, q, m)
            : eini_dist_end_of(EINI_AT_MESSAGE, eini_own_at(x, EINI_AT_INBOX, entry) + v->at, NULL,
                               v->away);
    const eini_dist_end to = eini_dist_end_box(d->g->tensor[e->s->operand[v->operand]].rank,
                                               eini_own_box(x, entry, v->operand), e->away, m);
    EINI_TRY(eini_own_move(x, q, v->define, v->kind == EINI_JOB_NONE ? q : v->peer, m->from, m->to,
                           (size_t)(v->bytes / v->elements), &to, &from, m));
  }
  for (int o = 0; o < e->s->noperand; o++)
    if (eini_operand_first(e->s, o) == o) w->in[n++] = w->in[o];
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(d, e, w);
  return eini_dist_execute_block(x, w, e, q,
                                 eini_own_at(x, own ? EINI_AT_OWN : EINI_AT_PART, entry));
}

static ein_status eini_own_merge(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                 int level) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  const int64_t entry = eini_dist_entry(x->d, k, q);
  const int first = eini_space_partial(&e->space, q) == 0;
  const int last = first && level == e->levels - 1;
  if (e->reduced && !last) return EIN_OK;
  char *own = eini_own_at(x, EINI_AT_OWN, entry), *part = eini_own_at(x, EINI_AT_PART, entry);
  char *merged = eini_own_at(x, EINI_AT_MERGED, entry);
  if (e->folder != NULL) {
    eini_dist_room *m = &w->room;
    eini_space_ranges(&e->space, q, m->lo, m->hi);
    for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
    eini_dist_dense(e->s->nfree, m->len, m->dst);
    eini_dist_states_join(x, w, e, q, part, merged, last ? own : NULL, m->dst);
    return EIN_OK;
  }
  void *out = first && (e->direct || last) ? own : part;
  w->in[0] = first && e->direct ? own : part;
  w->in[1] = merged;
  return eini_dist_execute_plan(x, w, q, (last ? e->last : e->merge)[q - x->d->fabric.first],
                                &out);
}

// The complete block of an output goes to the caller's view, or to what it binds for the place.
static ein_status eini_own_output(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const eini_tensor *t = &d->g->tensor[e->s->out];
  const int64_t *stride = d->tensor[e->s->out].stride;
  eini_dist_room *m = &w->room;
  char *base = x->base[e->s->out];
  for (int r = 0; r < t->rank; r++) {
    m->from[r] = 0;
    m->to[r] = t->shape[r];
    if (d->desc.blocks) eini_dist_own(d, e->s->out, q, r, &m->from[r], &m->to[r]);
    m->len[r] = m->to[r] - m->from[r];
  }
  if (d->desc.blocks) {
    eini_dist_dense(t->rank, m->len, m->box);
    stride = m->box;
    base = eini_dist_bound(d, x->run, e->s->out, (int)q - d->fabric.first);
  }
  const eini_dist_end to = eini_dist_end_of(EINI_AT_BOX, base, stride, 0);
  const eini_dist_end at = eini_dist_end_of(
      EINI_AT_BLOCK, eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, k, q)), NULL, e->own_away);
  return eini_own_move(x, q, k, q, m->from, m->to, ein_dtype_size(t->dtype), &to, &at, m);
}

// ================================================================================================
// >>dist-tasks  what jobs do
// Takes jobs as they are ready; calls the sections above, counts, and tells of each.
// ================================================================================================

enum { EINI_EVENT_MESSAGE = -4 };  // see ein_dist_event

// What a place did and received for statement k; what it sent is told where it is known.
static void eini_dist_count(ein_dist_stats *s, int k, int64_t place, int64_t tasks,
                            const eini_dist_read *r) {
  if (s == NULL) return;
  s->tasks += tasks;
  s->bytes += r->bytes;
  s->messages += r->messages;
  if (s->stmt_bytes != NULL && k < s->nstmt) s->stmt_bytes[k] += r->bytes;
  if (s->place == NULL || place >= s->nplace) return;
  s->place[place].tasks += tasks;
  s->place[place].received_bytes += r->bytes;
  s->place[place].messages += r->messages;
}

// A job is over on a clock.
static void eini_dist_timed(ein_dist_stats *s, int64_t place, const eini_job *j, double begin,
                            double end) {
  if (s == NULL) return;
  if (end > s->seconds) s->seconds = end;
  if (j->kind == EINI_JOB_RECEIVE || j->kind == EINI_JOB_SEND) return;
  if (s->place != NULL && place < s->nplace) s->place[place].busy += end - begin;
}

static void eini_dist_sent(ein_dist_stats *s, int64_t place, int64_t bytes) {
  if (s != NULL && s->place != NULL && place < s->nplace) s->place[place].sent_bytes += bytes;
}

// A block or a merge; w->read: what it reads from other places in a memory that is shared.
static ein_status eini_dist_task_run(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                     int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const int merge = j->kind == EINI_JOB_MERGE, k = j->stmt;
  if (d->fabric.shared && merge) return eini_dist_merge(x, w, k, q, j->arg, &w->read);
  if (d->fabric.shared) {
    EINI_TRY(eini_dist_compute(x, w, k, q));
    if (x->stats != NULL) eini_dist_task_bytes(d, e, q, &w->room, &w->read);
    return EIN_OK;
  }
  EINI_TRY(merge ? eini_own_merge(x, w, k, q, j->arg) : eini_own_compute(x, w, k, q));
  const int whole = eini_space_partial(&e->space, q) == 0 &&
                    (merge ? j->arg == e->levels - 1 : e->space.nagg == 1);
  const int output = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT;
  return whole && output ? eini_own_output(x, w, k, q) : EIN_OK;
}

// Seconds of a block, or a merge, on the fabric's machine.
static double eini_dist_takes(const ein_dist *d, const eini_job *j, int64_t q, eini_dist_room *m) {
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  if (j->kind == EINI_JOB_ZERO) return 0;
  if (j->kind == EINI_JOB_MERGE)
    return eini_merge_seconds(d->fabric.machine, (double)eini_dist_elements(&e->space, q, m));
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  return eini_machine_cost(d->fabric.machine, d->g, e->s, e->again, &b).seconds;
}

// On a clock: a job is over.
static ein_status eini_dist_job_over(void *user, const eini_job *j, double begin, double end) {
  const eini_dist_exec *x = (const eini_dist_exec *)user;
  const ein_dist *d = x->d;
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.begin = begin;
  v.end = end;
  eini_dist_timed(x->stats, v.place, j, begin, end);
  if (j->kind == EINI_JOB_SEND || j->kind == EINI_JOB_ZERO || d->desc.event_fn == NULL)
    return EIN_OK;
  if (j->kind == EINI_JOB_RECEIVE) {
    const eini_dist_moved *u = &d->copies->move[j->arg];
    v.level = EINI_EVENT_MESSAGE;
    v.from = u->peer;
    v.operand = u->operand;
    v.bytes = u->bytes;
  }
  return d->desc.event_fn(d->desc.event_user, &v);
}

static ein_status eini_dist_job_run(void *user, int worker, const eini_job *j, int failed,
                                    ein_ticket *ticket) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  eini_dist_worker *w = &x->worker[worker];
  const ein_dist *d = x->d;
  ein_dist_event v;
  if (j->kind == EINI_JOB_RECEIVE) return eini_own_receive(x, j, ticket);
  if (j->kind == EINI_JOB_SEND) return eini_own_send(x, w, j, failed, ticket);
  if (failed) return EIN_OK;
  if (eini_dist_clocked(d))
    return d->fabric.compute_fn(d->fabric.user, d->fabric.first + j->place, j->stmt,
                                eini_dist_takes(d, j, d->fabric.first + j->place, &w->room),
                                ticket);
  if (j->kind == EINI_JOB_ZERO) return eini_dist_zero(x, d->stmt[j->stmt].s->out, &w->room), EIN_OK;
  memset(&v, 0, sizeof v);
  memset(&w->read, 0, sizeof w->read);
  w->read.sent = w->sent;
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.worker = worker;
  v.begin = eini_dist_now(d);
  EINI_TRY(eini_dist_task_run(x, w, j, v.place));
  v.end = eini_dist_now(d);
  return d->desc.event_fn == NULL ? EIN_OK : d->desc.event_fn(d->desc.event_user, &v);
}

static void eini_dist_job_done(void *user, int worker, const eini_job *j) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  const int64_t q = x->d->fabric.first + j->place;
  eini_dist_read r = {0, 1, NULL};
  if (j->kind == EINI_JOB_BLOCK || j->kind == EINI_JOB_MERGE)
    eini_dist_count(x->stats, j->stmt, q, 1, &x->worker[worker].read);
  if (j->kind != EINI_JOB_RECEIVE && j->kind != EINI_JOB_SEND) return;
  r.bytes = x->d->copies->move[j->arg].bytes;
  if (j->kind == EINI_JOB_SEND) eini_dist_sent(x->stats, q, r.bytes);
  else eini_dist_count(x->stats, j->stmt, q, 0, &r);
}

// ================================================================================================
// >>dist-fabric  a fabric of one process whose places have memory of their own
// Every transfer is a copy, made when the second of a send and a receive is posted: by the host, or
// by a provider from or to its memory.
// ================================================================================================

// A send or receive without a partner, or whose ticket nobody has waited for yet.
typedef struct eini_post {
  int from, to, send, done;
  int64_t tag;
  const void *src;
  void *dst;
  size_t bytes;
  int64_t next;             // in its list: the post's number + 1; 0: none
  const ein_kernels *away;  // in whose memory src, dst is; NULL: the host's
} eini_post;

typedef struct eini_posts {
  ein_allocator al;
  eini_post *post;          // a ticket is a number here + 1
  int64_t cap, free;        // free: those that are not in use are linked, low ones first
  int64_t *head, *tail;     // [cap] posts without a partner, in the order they were made, by hash
  int64_t messages, bytes;  // moved
  const ein_kernels *away;  // of what is posted next
} eini_posts;

// The list of a post. Where there are twice as many, each has those of one before.
static int64_t eini_posts_list(const eini_posts *c, const eini_post *p) {
  int64_t word[3];
  word[0] = p->from, word[1] = p->to, word[2] = p->tag;
  return (int64_t)(eini_hash(word, sizeof word, 0) & (uint64_t)(c->cap - 1));
}

// A post is kept until its partner comes.
static void eini_posts_keep(eini_posts *c, ein_ticket ticket) {
  const int64_t list = eini_posts_list(c, &c->post[ticket - 1]);
  if (c->head[list] == 0) c->head[list] = ticket;
  else c->post[c->tail[list] - 1].next = ticket;
  c->tail[list] = ticket;
  c->post[ticket - 1].next = 0;
}

// Post `at` leaves its list, in which it comes behind `before`, 0: it is the first.
static void eini_posts_drop(eini_posts *c, int64_t list, int64_t before, int64_t at) {
  if (before == 0) c->head[list] = c->post[at - 1].next;
  else c->post[before - 1].next = c->post[at - 1].next;
  if (c->tail[list] == at) c->tail[list] = before;
}

static size_t eini_posts_bytes(int64_t cap) {
  return (size_t)cap * (sizeof(eini_post) + 2 * sizeof(int64_t));
}

static void eini_posts_end(eini_posts *c) {
  if (c->post != NULL) c->al.free_fn(c->post, eini_posts_bytes(c->cap), c->al.user);
}

static ein_status eini_posts_grow(eini_posts *c) {
  const int64_t cap = c->cap < 16 ? 16 : 2 * c->cap;
  eini_posts more = *c;
  more.post = (eini_post *)c->al.alloc_fn(eini_posts_bytes(cap), 16, c->al.user);
  if (more.post == NULL) return EIN_ERR_NO_MEMORY;
  more.cap = cap;
  more.head = (int64_t *)(void *)(more.post + cap);
  more.tail = more.head + cap;
  memset(more.head, 0, 2 * (size_t)cap * sizeof *more.head);
  if (c->cap > 0) memcpy(more.post, c->post, (size_t)c->cap * sizeof *c->post);
  for (int64_t i = 0; i < c->cap; i++)
    for (int64_t at = c->head[i]; at != 0; at = c->post[at - 1].next) eini_posts_keep(&more, at);
  for (int64_t i = cap; i > c->cap; i--) {
    more.post[i - 1].next = more.free;
    more.free = i;
  }
  eini_posts_end(c);
  *c = more;
  return EIN_OK;
}

// A ticket for a post, which is in no list.
static ein_status eini_posts_new(eini_posts *c, const eini_post *p, ein_ticket *ticket) {
  *ticket = 0;
  if (c->free == 0) EINI_TRY(eini_posts_grow(c));
  *ticket = c->free;
  c->free = c->post[*ticket - 1].next;
  c->post[*ticket - 1] = *p;
  return EIN_OK;
}

static void eini_posts_free(eini_posts *c, ein_ticket ticket) {
  c->post[ticket - 1].next = c->free;
  c->free = ticket;
}

// The first post that matches leaves its list; 0: there is none.
static int64_t eini_posts_partner(eini_posts *c, const eini_post *p) {
  const int64_t list = c->cap == 0 ? 0 : eini_posts_list(c, p);
  int64_t before = 0, at = c->cap == 0 ? 0 : c->head[list];
  for (; at != 0; before = at, at = c->post[at - 1].next) {
    const eini_post *o = &c->post[at - 1];
    if (o->send == p->send || o->from != p->from || o->to != p->to || o->tag != p->tag) continue;
    eini_posts_drop(c, list, before, at);
    c->messages++;
    c->bytes += (int64_t)p->bytes;
    break;
  }
  return at;
}

// Between the memories of two places.
static ein_status eini_copying_move(const eini_post *send, const eini_post *recv) {
  const ein_kernels *k = send->away != NULL ? send->away : recv->away;
  if (send->bytes == 0) return EIN_OK;
  if (k == NULL) {
    memcpy(recv->dst, send->src, send->bytes);
    return EIN_OK;
  }
  const ein_memory *m = k->memory;
  if (send->away == recv->away)
    return m->peer_fn(k->user, send->bytes, send->src, send->from, recv->dst, recv->to);
  if (m->place_fn != NULL) m->place_fn(k->user, recv->away != NULL ? recv->to : send->from);
  const ein_status st =
      m->copy_fn(k->user, send->bytes, send->src, recv->dst, recv->away != NULL);
  if (m->place_fn != NULL) m->place_fn(k->user, -1);
  return st;
}

// Completes with the first post that matches, or keeps the new one. A copy that fails is done, too:
// who has posted waits for nothing.
static ein_status eini_copying_post(eini_posts *c, const eini_post *p, ein_ticket *ticket) {
  const int64_t partner = eini_posts_partner(c, p);
  *ticket = 0;
  if (partner == 0) {
    EINI_TRY(eini_posts_new(c, p, ticket));
    eini_posts_keep(c, *ticket);
    return EIN_OK;
  }
  eini_post *o = &c->post[partner - 1];
  if (o->bytes != p->bytes) return EIN_ERR_INTERNAL;
  o->done = 1;
  return eini_copying_move(p->send ? p : o, p->send ? o : p);
}

static ein_status eini_copying_memory(void *user, const ein_kernels *k) {
  ((eini_posts *)user)->away = k;
  return k == NULL || k->memory->peer_fn != NULL ? EIN_OK : EIN_ERR_UNSUPPORTED;
}

static ein_status eini_copying_send(void *user, int from, int to, int64_t tag, const void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_posts *c = (eini_posts *)user;
  const eini_post p = {from, to, 1, 0, tag, data, NULL, bytes, 0, c->away};
  return eini_copying_post(c, &p, ticket);
}

static ein_status eini_copying_recv(void *user, int to, int from, int64_t tag, void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_posts *c = (eini_posts *)user;
  const eini_post p = {from, to, 0, 0, tag, NULL, data, bytes, 0, c->away};
  return eini_copying_post(c, &p, ticket);
}

static ein_status eini_copying_test(void *user, ein_ticket ticket, int *done) {
  *done = ticket == 0 || ((const eini_posts *)user)->post[ticket - 1].done;
  return EIN_OK;
}

// What has no partner by now will have none, nobody else can post: it is taken back.
static ein_status eini_copying_wait(void *user, ein_ticket ticket) {
  eini_posts *c = (eini_posts *)user;
  if (ticket == 0) return EIN_OK;
  const eini_post *o = &c->post[ticket - 1];
  const int done = o->done;
  const int64_t list = eini_posts_list(c, o);
  int64_t before = 0, at = c->head[list];
  for (; !done && at != ticket; before = at) at = c->post[at - 1].next;
  if (!done) eini_posts_drop(c, list, before, at);
  eini_posts_free(c, ticket);
  return done ? EIN_OK : EIN_ERR_INTERNAL;
}

static void eini_copying_destroy(void *user) {
  eini_posts *c = (eini_posts *)user;
  const ein_allocator al = c->al;
  eini_posts_end(c);
  al.free_fn(c, sizeof *c, al.user);
}

// ================================================================================================
// >>dist-clock  a fabric with a clock instead of data
// Takes what is posted and computed, and a machine; gives tickets in the order in which operations
// are over. A message sets out when both of its places have posted it.
// ================================================================================================

typedef enum eini_timer_kind {
  EINI_TIMER_WAITS,         // for its partner, or its place
  EINI_TIMER_MOVES,         // a message that comes to its next link
  EINI_TIMER_COMPUTES,
  EINI_TIMER_OVER
} eini_timer_kind;

// What is known of a post besides. A computation has no partner: its place is `to`, its tag is its
// order, and `next` is the one behind it at its place.
typedef struct eini_timed {
  int kind;
  int64_t partner;          // ticket of the send
  double begin, end;        // of a computation that waits: 0 and its seconds
  eini_transit way;
} eini_timed;

typedef struct eini_timer {
  eini_posts posts;
  eini_arena arena;         // has what follows by place
  int places;
  ein_machine machine;
  eini_links links;
  int64_t *first;           // [place] computations that wait, by order; 0: there are none
  char *busy, *listed;      // [place] it computes; it is in
  int64_t *idle, nidle;     // those where something waits and nothing is computed
  eini_timed *op;           // by ticket, as posts
  int64_t cap;
  eini_ranked *event;       // what is over next, on top; what: a ticket
  int64_t nevent, turn;
  double now;
} eini_timer;

// Room for what is known of every post, and behind that for an event of each.
static ein_status eini_timer_room(eini_timer *c) {
  const ein_allocator *al = &c->posts.al;
  const size_t each = sizeof *c->op + sizeof *c->event, n = (size_t)c->posts.cap;
  if (c->posts.cap <= c->cap) return EIN_OK;
  eini_timed *op = (eini_timed *)al->alloc_fn(n * each, 16, al->user);
  if (op == NULL) return EIN_ERR_NO_MEMORY;
  eini_ranked *event = (eini_ranked *)(void *)(op + n);
  if (c->cap > 0) memcpy(op, c->op, (size_t)c->cap * sizeof *op);
  if (c->nevent > 0) memcpy(event, c->event, (size_t)c->nevent * sizeof *event);
  if (c->cap > 0) al->free_fn(c->op, (size_t)c->cap * each, al->user);
  c->op = op;
  c->event = event;
  c->cap = (int64_t)n;
  return EIN_OK;
}

static ein_status eini_timer_new(eini_timer *c, const eini_post *p, int kind, ein_ticket *ticket) {
  EINI_TRY(eini_posts_new(&c->posts, p, ticket));
  const ein_status st = eini_timer_room(c);
  if (st != EIN_OK) {
    eini_posts_free(&c->posts, *ticket);
    *ticket = 0;
    return st;
  }
  memset(&c->op[*ticket - 1], 0, sizeof *c->op);
  c->op[*ticket - 1].kind = kind;
  return EIN_OK;
}

// Something happens with an operation: of what happens at once, in the order in which it came up;
// messages that set out come last, those of lower tags first, in turns, whoever posted first.
static void eini_timer_event(eini_timer *c, ein_ticket ticket, int kind, double when) {
  eini_ranked *e = &c->event[c->nevent];
  const eini_transit *x = &c->op[ticket - 1].way;
  const int64_t tag = eini_min64(c->posts.post[ticket - 1].tag, ((int64_t)1 << 36) / c->places);
  const int64_t turn = kind == EINI_TIMER_MOVES && x->hops == 0
                           ? 1 + tag * c->places + eini_links_turn(c->places, x->from, x->to) : 0;
  e->key = when;
  e->seq = (turn << 26) + c->turn++;
  e->what = ticket;
  c->op[ticket - 1].kind = kind;
  eini_heap_rise(c->event, c->nevent++);
}

static ein_status eini_timer_post(eini_timer *c, const eini_post *p, ein_ticket *ticket) {
  EINI_TRY(eini_timer_new(c, p, EINI_TIMER_WAITS, ticket));
  const int64_t partner = eini_posts_partner(&c->posts, p);
  if (partner == 0) return eini_posts_keep(&c->posts, *ticket), EIN_OK;
  if (c->posts.post[partner - 1].bytes != p->bytes) return EIN_ERR_INTERNAL;
  const int64_t receive = p->send ? partner : *ticket;
  eini_timed *x = &c->op[receive - 1];
  x->partner = p->send ? *ticket : partner;
  x->way.from = p->from;
  x->way.to = p->to;
  x->way.bytes = (double)p->bytes;
  x->way.begin = x->way.end = c->now;
  eini_timer_event(c, receive, EINI_TIMER_MOVES, c->now);
  return EIN_OK;
}

static ein_status eini_timer_send(void *user, int from, int to, int64_t tag, const void *data,
                                  size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 1, 0, tag, data, NULL, bytes, 0, NULL};
  return eini_timer_post((eini_timer *)user, &p, ticket);
}

static ein_status eini_timer_recv(void *user, int to, int from, int64_t tag, void *data,
                                  size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 0, 0, tag, NULL, data, bytes, 0, NULL};
  return eini_timer_post((eini_timer *)user, &p, ticket);
}

// Nobody computes at a place where something waits: it is looked at before time goes on.
static void eini_timer_idle(eini_timer *c, int place) {
  if (c->busy[place] || c->listed[place] || c->first[place] == 0) return;
  c->listed[place] = 1;
  c->idle[c->nidle++] = place;
}

static ein_status eini_timer_compute(void *user, int place, int order, double seconds,
                                     ein_ticket *ticket) {
  eini_timer *c = (eini_timer *)user;
  const eini_post p = {place, place, 0, 0, order, NULL, NULL, 0, 0, NULL};
  EINI_TRY(eini_timer_new(c, &p, EINI_TIMER_WAITS, ticket));
  c->op[*ticket - 1].end = seconds;
  int64_t *at = &c->first[place];
  while (*at != 0 && c->posts.post[*at - 1].tag <= order) at = &c->posts.post[*at - 1].next;
  c->posts.post[*ticket - 1].next = *at;
  *at = *ticket;
  eini_timer_idle(c, place);
  return EIN_OK;
}

// Places that are idle begin with the first that waits.
static void eini_timer_begin(eini_timer *c) {
  for (int64_t i = 0; i < c->nidle; i++) {
    const int64_t q = c->idle[i], ticket = c->first[q];
    eini_timed *x = &c->op[ticket - 1];
    c->first[q] = c->posts.post[ticket - 1].next;
    c->listed[q] = 0;
    c->busy[q] = 1;
    x->begin = c->now;
    x->end += c->now;
    eini_timer_event(c, ticket, EINI_TIMER_COMPUTES, x->end);
  }
  c->nidle = 0;
}

// A message comes to a link. Its sender is done when the first one has carried it.
static void eini_timer_hop(eini_timer *c, ein_ticket ticket) {
  eini_timed *x = &c->op[ticket - 1];
  const int there = eini_links_hop(&c->links, &x->way);
  if (x->way.hops == 1) {
    eini_timed *from = &c->op[x->partner - 1];
    from->begin = x->way.sent;
    from->end = c->links.out[x->way.from];
    eini_timer_event(c, x->partner, EINI_TIMER_OVER, from->end);
  }
  x->begin = x->way.sent;
  x->end = x->way.end;
  eini_timer_event(c, ticket, there ? EINI_TIMER_OVER : EINI_TIMER_MOVES,
                   there ? x->end : x->way.begin);
}

// What is over at one time is told before places begin with what they have got by then.
static ein_status eini_timer_next(void *user, ein_ticket *ticket, double *begin, double *end) {
  eini_timer *c = (eini_timer *)user;
  *ticket = 0;
  *begin = *end = c->now;
  for (;;) {
    if (c->nidle > 0 && (c->nevent == 0 || c->event[0].key > c->now)) eini_timer_begin(c);
    if (c->nevent == 0) return EIN_OK;
    const eini_ranked e = eini_heap_pop(c->event, &c->nevent);
    c->now = e.key;
    const eini_timed *x = &c->op[e.what - 1];
    if (x->kind == EINI_TIMER_MOVES) {
      eini_timer_hop(c, e.what);
      continue;
    }
    const int place = c->posts.post[e.what - 1].to;
    if (x->kind == EINI_TIMER_COMPUTES) {
      c->busy[place] = 0;
      eini_timer_idle(c, place);
    }
    *ticket = e.what;
    *begin = x->begin;
    *end = x->end;
    eini_posts_free(&c->posts, e.what);
    return EIN_OK;
  }
}

// A run begins, at 0 seconds; what is left of one that failed is forgotten.
static ein_status eini_timer_start(void *user, int64_t tickets, int64_t bytes) {
  eini_timer *c = (eini_timer *)user;
  eini_posts *posts = &c->posts;
  const int places = c->places;
  (void)tickets, (void)bytes;
  for (int64_t i = 0; i < posts->cap; i++) posts->head[i] = 0;
  posts->free = 0;
  for (int64_t i = posts->cap; i > 0; i--) {
    posts->post[i - 1].next = posts->free;
    posts->free = i;
  }
  c->nidle = c->nevent = c->turn = 0;
  c->now = 0;
  for (int q = 0; q < places; q++) {
    c->first[q] = c->busy[q] = c->listed[q] = 0;
    c->links.in[q] = c->links.out[q] = 0;
  }
  for (int64_t n = 0; n < c->links.nnodes; n++) c->links.node[0][n] = c->links.node[1][n] = 0;
  return EIN_OK;
}

static ein_status eini_timer_wait(void *user, ein_ticket ticket) {
  (void)user;
  return ticket == 0 ? EIN_OK : EIN_ERR_UNSUPPORTED;  // time goes on with next_fn
}

static void eini_timer_destroy(void *user) {
  eini_timer *c = (eini_timer *)user;
  eini_arena arena = c->arena;  // which it lies in
  const ein_allocator *al = &arena.al;
  eini_posts_end(&c->posts);
  if (c->cap > 0)
    al->free_fn(c->op, (size_t)c->cap * (sizeof *c->op + sizeof *c->event), al->user);
  eini_arena_free(&arena);
}

static ein_status eini_timer_make(eini_arena *a, int places, const ein_machine *machine,
                                  eini_timer **out) {
  eini_timer *c = *out = EINI_NEW(a, eini_timer, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->posts.al = a->al;
  c->places = places;
  c->machine = eini_machine_of(machine);
  c->first = EINI_NEW(a, int64_t, places);
  c->busy = EINI_NEW(a, char, places);
  c->listed = EINI_NEW(a, char, places);
  c->idle = EINI_NEW(a, int64_t, places);
  if (c->first == NULL || c->busy == NULL || c->listed == NULL || c->idle == NULL)
    return EIN_ERR_NO_MEMORY;
  return eini_links_init(a, &c->machine, places, &c->links);
}

// ================================================================================================
// >>steps  statements under a schedule: boxes and plans of a point in a step
// Takes a schedule and what a worker is at: a point of the machine, a step, a message; gives boxes,
// plans and copies. Nothing is carried from step to step: a box follows from point and step.
// ================================================================================================

// A box in some memory: of a tensor, or of results by the free indices of their statement, dense:
// values, or states as eini_states_at has them. data NULL: plans are made only.
typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  int away;                 // 1: in the provider's memory
} eini_step_box;

// What a memory holds of a tensor: the hull.
typedef struct eini_step_home {
  eini_step_box box;
  int own;                  // it is the caller's: of the whole tensor, or the block of the place
  int64_t at, bytes;        // else where it lies; bytes: of a block of the caller's, too
} eini_step_home;

#define EINI_SHARES_MAX 16  // of a block, whatever the number of threads: it has the same bits

// A point of a place of this process in a step.
typedef struct eini_step_task {
  int64_t point, step;
  int64_t first, nmove;     // moves of what it fetches, and has at home; others are between them
  int32_t job, nshare;      // nshare: of a parallel loop; 0: the block is computed at once
  int16_t fresh, ends;      // fresh: nothing is in the partial result yet; ends: it goes home
} eini_step_task;

// A message of a point in a step as one of its places sees it, or what a place has itself.
typedef struct eini_step_move {
  int32_t kind;             // EINI_JOB_RECEIVE, EINI_JOB_SEND, EINI_JOB_NONE: at home
  int32_t place, peer;      // place: among those of the process
  int32_t access, owner;    // an operand, or behind them the result; which of its owners
  int32_t tag, job;         // tag: how many went between the places before
  int32_t round;            // how many steps with messages the place had before
  int32_t group, turn, turns;  // as of eini_dist_moved
  int64_t point, step;
  int64_t pieces;           // of the owner, along the axes; -1: all, the memory is shared
  int64_t bytes, at;        // in the place's memory of messages
} eini_step_move;

// Arrays by memory have one entry where it is shared, else one for each place of the process; those
// by side have these for what is at home and, behind them, for what is in the provider's memory.
typedef struct eini_steps_stmt {
  eini_tour w;              // its nest and owners; what changes is a worker's
  int whole, parallel;      // whole: what goes home is complete; parallel: a loop, or -1
  eini_folder states;
  const eini_folder *folder;  // states, where results are: folds cut that carry some; else NULL
  size_t wide;              // bytes of what is computed for a result
  int away, part_away;      // as of eini_dist_stmt: of operands that are fetched, and of results
  int64_t *cut;
  int64_t first, npoint;    // points of the places of this process
  size_t *box;              // per point: bytes of operands, of the partial result, and of a block
  int64_t *box_at;          // and where they lie, from the boxes of their side on
  eini_step_box *sum;       // by memory: partial results that come home, first of these boxes
  int64_t *boxes_at, *boxes_bytes, *inbox_at, *inbox_bytes;  // by side
  int64_t *in, *out;        // by side: bytes of the messages of a step, at most
  int64_t *nround;          // by memory: steps with messages
  int64_t *total;           // per place: tasks, messages, bytes received, sent
  int64_t plan;             // 1 + the number of its first plan; 0: none
  int64_t ntask, captask, nmove, capmove;
  eini_step_task *task;     // by step and point
  eini_step_move *move;     // by step: of operands, then of results
  int32_t room, zero, boxes, inbox, sums, finish, stored, done;  // jobs, by memory; -1: none
  int32_t *over;            // by memory: the first of its rounds
} eini_steps_stmt;

// A point in a step, as a worker has it.
typedef struct eini_step_point {
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step that is merged into it
  int64_t *lo, *hi;         // ranges of the step, or of a share of it
  const void **in;
  ein_scalar *param;
  int64_t plan, merge;      // -1: nothing is computed, or merged
  char *to;                 // where the plan writes: the block, merged into the partial result, or
  int apart;                //   not apart, that itself
} eini_step_point;

// A worker.
typedef struct eini_staged {
  const ein_dist *d;
  eini_block_plans *plans;  // of d, when they are made; NULL in a run
  const ein_run *run;       // NULL: plans are made only
  char *mem;                // of all memories of this process
  char *work, *spare;       // of plans; of states that are merged
  size_t spare_bytes;       // found when plans are made
  int number;               // the statement at hand
  int64_t place;            // where the job at hand runs
  eini_steps_stmt *e;
  const eini_stmt *stmt;
  eini_tour w;
  eini_owners o;            // the owner of the move at hand
  eini_axis_owners *axis;
  int64_t *meet, *pick;
  int64_t *key, *len, *boxes;
  const int64_t **stride;
  int *space;
  eini_step_point point;
  char error[192];          // of a task that failed
} eini_staged;

// Levels of events beside blocks, -1.
enum { EINI_STEPS_SENDS = -3, EINI_STEPS_FETCHES = -2 };

static int64_t eini_steps_memories(const ein_dist *d) {
  return d->fabric.shared ? 1 : d->fabric.count;
}

// The memory of a place of this process.
static int64_t eini_steps_memory(const ein_dist *d, int64_t place) {
  return d->fabric.shared ? 0 : place - d->fabric.first;
}

// Where what a memory has is counted, at home or in the provider's memory.
static int64_t eini_steps_side(const ein_dist *d, int64_t memory, int away) {
  return away ? eini_steps_memories(d) + memory : memory;
}

// Is box k of a point, an operand or behind them a result, in the provider's memory?
static int eini_steps_is_away(const eini_steps_stmt *e, int k) {
  return k < e->w.n->s->noperand ? e->away : e->part_away;
}

// Are messages of access k?
static int eini_steps_wired(const ein_dist *d, const eini_steps_stmt *e, int k) {
  return d->carried && eini_steps_is_away(e, k);
}

// Does every place read where the tensor is?
static int eini_steps_one(const ein_dist *d) { return d->fabric.shared || d->fabric.places == 1; }

// ---- a worker ----

// Scratch of a worker in mem (NULL: only the size). Returns the bytes.
static size_t eini_steps_scratch(const ein_dist *d, eini_staged *x, char *mem) {
  const int64_t r = (int64_t)d->rank + 1, boxes = r + 2;
  size_t n = 0;
  int64_t *p = (int64_t *)eini_dist_carve(mem, &n, EINI_LOOPS_MAX + 2 * EINI_NAMES_MAX + 16 * r +
                                          8 + 4 * r + r * r + 3 * boxes * r, sizeof *p);
  x->axis = (eini_axis_owners *)eini_dist_carve(mem, &n, EINI_NAMES_MAX, sizeof *x->axis);
  x->stride = (const int64_t **)eini_dist_carve(mem, &n, r, sizeof *x->stride);
  x->space = (int *)eini_dist_carve(mem, &n, r, sizeof *x->space);
  x->point.box = (eini_step_box *)eini_dist_carve(mem, &n, r, sizeof *x->point.box);
  x->point.in = (const void **)eini_dist_carve(mem, &n, r, sizeof *x->point.in);
  x->point.param = (ein_scalar *)eini_dist_carve(mem, &n, d->g->nparam + r, sizeof(ein_scalar));
  x->work = (char *)eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
  x->spare = (char *)eini_dist_carve(mem, &n, (int64_t)d->spare, 1);
  if (mem == NULL) return n;
  x->w.value = p, p += EINI_LOOPS_MAX;
  x->w.here = p, p += EINI_NAMES_MAX;
  x->meet = p, p += EINI_NAMES_MAX;
  int64_t **part[10];
  part[0] = &x->w.lo, part[1] = &x->w.hi, part[2] = &x->w.from, part[3] = &x->w.to;
  part[4] = &x->pick, part[5] = &x->o.lo, part[6] = &x->o.hi, part[7] = &x->len;
  part[8] = &x->point.lo, part[9] = &x->point.hi;
  for (int i = 0; i < 10; i++) *part[i] = p, p += r;
  x->o.room[0] = p, p += 2 * r;  // no sums of indices are counted in a run
  x->o.room[1] = p, p += 2 * r;
  x->key = p, p += 8 + 4 * r + r * r;
  x->boxes = p;
  for (int64_t i = 0; i < r; i++) x->pick[i] = 0;
  memset(x->point.param, 0, (size_t)(d->g->nparam + r) * sizeof *x->point.param);
  for (int64_t k = 0; k < d->g->nparam; k++) {
    const int given = x->run != NULL && x->run->param != NULL && x->run->param[k].set;
    x->point.param[k] = given ? x->run->param[k] : d->g->param[k].value;
  }
  for (int64_t k = 0; k < r; k++) x->point.param[d->g->nparam + k].set = 1;
  return n;
}

// Statement k is at hand.
static void eini_steps_on(eini_staged *x, int k) {
  const eini_tour own = x->w;
  x->number = k;
  x->e = &x->d->steps[k];
  x->stmt = x->e->w.n->s;
  x->w = x->e->w;
  x->w.value = own.value, x->w.here = own.here, x->w.lo = own.lo, x->w.hi = own.hi;
  x->w.from = own.from, x->w.to = own.to;
}

// Point i is.
static void eini_steps_goto(eini_staged *x, int64_t i) {
  x->w.move.point = i;
  x->w.move.place = eini_grid_place(x->w.n->grid, i);
  eini_grid_coords(x->w.n->grid, i, x->w.here);
}

// The owner of a move is, of the boxes that this is about.
static eini_owners *eini_steps_owner(eini_staged *x, const eini_step_move *v) {
  const eini_owners *from = &x->w.owners[v->access][v->owner];
  const eini_owners own = x->o;
  int64_t left = v->pieces;
  x->o = *from;
  x->o.axis = x->axis, x->o.pick = x->pick, x->o.lo = own.lo, x->o.hi = own.hi;
  x->o.room[0] = own.room[0], x->o.room[1] = own.room[1];
  for (int r = x->o.rank - 1; r >= 0; left /= from->axis[r--].n) {
    x->meet[r] = left % from->axis[r].n;
    x->axis[r].run = from->axis[r].run;
    x->axis[r].meet = &x->meet[r];
  }
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  (void)eini_tour_meets(&x->w, &x->o, v->access == x->stmt->noperand);
  return &x->o;
}

static ein_dtype eini_steps_type(const eini_staged *x) {
  return eini_loops_type(x->d->g, x->stmt);
}

static size_t eini_steps_bytes(int rank, const int64_t *shape, size_t size) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++)
    if (shape[r] <= 0) return size;
  for (int r = 0; r < rank; r++) n *= shape[r];
  return (size_t)n * size;
}

// Address `at` of a memory, at home or in the provider's.
static char *eini_steps_mem(const eini_staged *x, int64_t memory, int away, int64_t at) {
  if (x->run == NULL) return NULL;
  return (away ? (char *)x->d->held[memory] : x->mem + x->d->start[memory]) + at;
}

// Tensor t in a memory.
static eini_step_box eini_steps_home(const eini_staged *x, int t, int64_t memory) {
  const eini_step_home *h = &x->d->home[(int64_t)t * eini_steps_memories(x->d) + memory];
  eini_step_box b = h->box;
  b.data = h->own && x->run != NULL
               ? eini_dist_bound(x->d, x->run, t, x->d->desc.blocks ? (int)memory : 0)
               : eini_steps_mem(x, memory, h->box.away, h->at);
  return b;
}

static eini_step_box eini_steps_sum(const eini_staged *x, int64_t memory) {
  eini_step_box b = x->e->sum[memory];
  b.away = x->e->part_away;
  b.data = eini_steps_mem(x, memory, b.away,
                          x->e->boxes_at[eini_steps_side(x->d, memory, b.away)]);
  return b;
}

// Element `at` of a box; NULL: it has no memory, as plans are made only.
static char *eini_steps_at(const eini_step_box *b, int rank, const int64_t *at, size_t size) {
  int64_t n = 0;
  if (b->data == NULL) return NULL;
  for (int r = 0; r < rank; r++) n += (at[r] - b->lo[r]) * b->stride[r];
  return b->data + n * (int64_t)size;
}

// What begins with that element, with the strides of the box.
static eini_dist_end eini_steps_end(const eini_step_box *b, int rank, const int64_t *at,
                                    size_t size) {
  return eini_dist_end_of(EINI_AT_BLOCK, eini_steps_at(b, rank, at, size), b->stride, b->away);
}

// Where statement s writes the values `lo` of its free indices in a box of its tensor (NULL: it has
// no memory), with strides by free index.
static eini_dist_end eini_steps_written(const eini_stmt *s, const eini_step_box *b,
                                        const int64_t *lo, size_t size, int64_t *stride) {
  const eini_map *m = &s->out_map;
  int64_t n = 0;
  for (int i = 0; i < s->nfree; i++) stride[i] = 0;
  for (int r = 0; r < m->rows; r++) {
    n += (m->offset[r] - b->lo[r]) * b->stride[r];
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      n += m->term[e].coef * lo[m->term[e].index] * b->stride[r];
      stride[m->term[e].index] += m->term[e].coef * b->stride[r];
    }
  }
  return eini_dist_end_of(EINI_AT_BLOCK, b->data == NULL ? NULL : b->data + n * (int64_t)size,
                          stride, b->away);
}

static int64_t eini_steps_volume(int rank, const int64_t *lo, const int64_t *hi) {
  return (int64_t)eini_box_volume(rank, lo, hi);
}

// Adds numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(eini_staged *x, int64_t id, const void *const *in,
                                     void *const *out, const ein_scalar *param) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.param = param;
  run.workspace_bytes = x->d->plans.workspace;
  run.workspace = x->work;
  run.error = x->error;
  run.error_bytes = sizeof x->error;
  return eini_dist_run_at(x->d, x->place, id, &run);
}

// The space of views of what is in the provider's memory, or not.
static int eini_steps_space(const ein_dist *d, int away) {
  return away ? d->away->memory->space : 0;
}

// A plan was made, or not. EIN_ERR_UNSUPPORTED: the statement stays at home, as one there cannot be
// made, or, of a block, would not run there.
static ein_status eini_steps_planned(eini_staged *x, ein_status st, int block, int64_t id) {
  if (!x->e->away) return st;
  if (st == EIN_ERR_UNSUPPORTED) EINI_TRY(eini_dist_plan_none(x->plans));
  if (st != EIN_OK) return st;
  const ein_plan *p = x->plans->plan[id];
  return p != NULL && (!block || eini_dist_plan_away(p)) ? EIN_OK : EIN_ERR_UNSUPPORTED;
}

// The plan that merges a box of `right` into one of `left`; fold EIN_FOLD_NONE: left becomes right,
// whose type may be another.
static ein_status eini_steps_merge_plan(eini_staged *x, int fold, int rank, const int64_t *shape,
                                        ein_dtype to, const eini_dist_end *left, ein_dtype from,
                                        const eini_dist_end *right, int64_t *id) {
  int64_t n = eini_steps_key(x, 5, shape, rank);
  x->key[0] = -1 - fold;
  x->key[1] = to;
  x->key[2] = from;
  x->key[3] = rank;
  x->key[4] = left->away | 2 * right->away;
  n = eini_steps_key(x, n, left->stride, rank);
  n = eini_steps_key(x, n, right->stride, rank);
  if (eini_dist_clocked(x->d)) return *id = 0, EIN_OK;
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  const eini_merge_side l = {to, rank, shape, left->stride, NULL, NULL,
                             eini_steps_space(x->d, left->away)};
  const eini_merge_side r = {from, rank, shape, right->stride, NULL, NULL,
                             eini_steps_space(x->d, right->away)};
  eini_block_merge m = {fold, 0, from, rank, shape, l, r, l};
  if (fold == EIN_FOLD_NONE) m.left = r;
  const ein_status st = eini_block_merge_plan(x->plans, &m, x->key, n, id);
  return eini_steps_planned(x, st, 0, *id);
}

static ein_status eini_steps_merge_run(eini_staged *x, int fold, int64_t id, char *left,
                                       const char *right) {
  const void *in[2];
  void *out[1];
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  out[0] = left;
  return eini_steps_execute(x, id, in, out, NULL);
}

static ein_status eini_steps_merge(eini_staged *x, int fold, int rank, const int64_t *shape,
                                   ein_dtype to, const eini_dist_end *left, ein_dtype from,
                                   const eini_dist_end *right) {
  int64_t id;
  EINI_TRY(eini_steps_merge_plan(x, fold, rank, shape, to, left, from, right, &id));
  return x->run == NULL ? EIN_OK : eini_steps_merge_run(x, fold, id, left->data, right->data);
}

// Plans a block by the kernels that its statement's nest names, or any. The first is kept: its
// kernels are shown for the statement.
static ein_status eini_steps_leaf(eini_staged *x, const eini_dist_job *job, int64_t n,
                                  int64_t *id) {
  const char *leaf = x->w.n->leaf;
  ein_ctx *ctx = x->plans->ctx;
  const int nkernels = ctx->nkernels;
  const ein_kernels **kernels = ctx->kernels;
  int k = 0;
  while (leaf != NULL && k < nkernels && strcmp(kernels[k]->name, leaf) != 0) k++;
  if (leaf != NULL) ctx->nkernels = k < nkernels, ctx->kernels = kernels + k;
  const ein_status st = eini_dist_plan(x->plans, job, x->key, n, id);
  ctx->nkernels = nkernels, ctx->kernels = kernels;
  if (st == EIN_OK && x->e->plan == 0) x->e->plan = *id + 1;
  return eini_steps_planned(x, st, job->space != NULL, *id);
}

// Merges n states of extents `shape` at `right` into those from lo on of a box.
static void eini_steps_states(const eini_folder *f, int rank, const int64_t *shape,
                              const eini_step_box *left, const int64_t *lo, int64_t n,
                              char *right) {
  const int64_t row = rank > 0 ? shape[rank - 1] : 1;
  void *a[4], *b[4], *acc[4], *from[4];
  eini_states_at(f, eini_steps_volume(rank, left->lo, left->hi), left->data, a);
  eini_states_at(f, n, right, b);
  for (int64_t at = 0; at < n; at += row) {
    int64_t rest = at / row, to = 0;
    for (int r = rank - 1; r >= 0; r--) {
      to += (lo[r] - left->lo[r]) * left->stride[r];
      if (r < rank - 1) to += rest % shape[r] * left->stride[r], rest /= shape[r];
    }
    for (int64_t k = 0; k < row; k += EINI_CHUNK) {
      const void *more[4];
      eini_states_from(f, a, to + k, acc);
      eini_states_from(f, b, at + k, from);
      for (int s = 0; s < 4; s++) more[s] = from[s];
      f->merge(eini_min64(EINI_CHUNK, row - k), acc, more, f->user == NULL ? NULL : f->user->user);
    }
  }
}

// Copies n states of extents `shape` from lo on of a box, one after another.
static void eini_steps_pack(const eini_folder *f, int rank, const int64_t *shape,
                            const eini_step_box *box, const int64_t *lo, int64_t n, char *to) {
  void *a[4], *b[4], *from[4];
  int64_t dense[EINI_NAMES_MAX], at = 0;
  eini_states_at(f, eini_steps_volume(rank, box->lo, box->hi), box->data, a);
  eini_states_at(f, n, to, b);
  for (int r = 0; r < rank; r++) at += (lo[r] - box->lo[r]) * box->stride[r];
  eini_states_from(f, a, at, from);
  eini_dist_dense(rank, shape, dense);
  for (int s = 0; s < f->nstate; s++)
    eini_dist_copy(rank, shape, (char *)b[s], dense, (const char *)from[s], box->stride,
                   ein_dtype_size(eini_state_dtype(f, s)));
}

// Stores complete results from lo on of a box, converted or finished.
static ein_status eini_steps_store(eini_staged *x, const int64_t *shape, const eini_dist_end *to,
                                   const eini_step_box *box, const int64_t *lo) {
  const ein_dtype type = eini_steps_type(x), stored = x->d->g->tensor[x->stmt->out].dtype;
  const int rank = x->stmt->nfree;
  void *a[4], *from[4];
  int64_t at = 0;
  const eini_dist_end own = eini_steps_end(box, rank, lo, x->e->wide);
  if (x->e->folder == NULL)
    return eini_steps_merge(x, EIN_FOLD_NONE, rank, shape, stored, to, type, &own);
  if (x->run == NULL) return EIN_OK;
  eini_states_at(x->e->folder, eini_steps_volume(rank, box->lo, box->hi), box->data, a);
  for (int r = 0; r < rank; r++) at += (lo[r] - box->lo[r]) * box->stride[r];
  eini_states_from(x->e->folder, a, at, from);
  eini_states_finish(x->e->folder, rank, shape, from, box->stride, stored, to->data, to->stride);
  return EIN_OK;
}

// The plan of a block of so many values of each index, of operands and the result that lie as these
// boxes; nothing: it reads nothing, and the host makes it.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  const eini_step_box *out, int nothing, int64_t *id) {
  const eini_stmt *s = x->stmt;
  eini_dist_job job;
  x->key[0] = x->number;
  x->key[1] = nothing ? 0 : x->e->away | 2 * x->e->part_away;
  int64_t n = eini_steps_key(x, 2, len, s->nindex);
  n = eini_steps_key(x, n, out->stride, s->nfree);
  for (int o = 0; o < s->noperand; o++) {
    x->space[o] = eini_steps_space(x->d, box[o].away);
    x->stride[o] = box[o].stride;
    n = eini_steps_key(x, n, x->stride[o], x->d->g->tensor[s->operand[o]].rank);
  }
  if (eini_dist_clocked(x->d)) return *id = 0, EIN_OK;
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  memset(&job, 0, sizeof job);
  job.g = x->d->g;
  job.s = s;
  job.block = eini_block_of(NULL, len, NULL);
  job.cut = x->e->cut;
  job.stride = x->stride;
  job.out_stride = out->stride;
  job.space = nothing ? NULL : x->space;
  job.part_space = nothing ? 0 : eini_steps_space(x->d, out->away);
  job.by_index = 2;
  job.folder = x->e->folder;
  job.dtype = eini_steps_type(x);
  return eini_steps_leaf(x, &job, n, id);
}

// ---- parts of boxes ----

// Copies what of an owned box writes between `from` and `to`, at the place at hand. Strides by free
// index, NULL: one element behind another. *count: of the elements.
static ein_status eini_steps_copy(const eini_staged *x, const eini_owners *o, const eini_owned *p,
                                  const int64_t *from, const int64_t *to, const eini_dist_end *dst,
                                  const eini_dist_end *src, size_t size, int64_t *count) {
  const int n = o->s->nfree;
  const eini_map *m = &o->s->out_map;
  int64_t at[EINI_NAMES_MAX], dense[EINI_NAMES_MAX];
  const int64_t volume = *count = eini_steps_volume(n, p->lo, p->hi);
  eini_dist_dense(n, p->shape, dense);
  if (!o->several && volume > 0)
    return eini_own_carry(x->d, x->place, n, p->shape, dst, src,
                          dst->stride == NULL ? dense : dst->stride,
                          src->stride == NULL ? dense : src->stride, size);
  if (volume == 0) return EIN_OK;
  *count = 0;
  for (int i = 0; i < n; i++) at[i] = p->lo[i];
  for (int i = n; i >= 0;) {  // rows of the last index
    int64_t lo = p->lo[n - 1], hi = p->hi[n - 1], a = 0, b = 0;
    const int64_t one = 1;
    for (int r = 0; r < m->rows; r++) {
      int64_t c = 0, base = m->offset[r];
      for (int e = m->first[r]; e < m->first[r + 1]; e++)
        if (m->term[e].index == n - 1) c = m->term[e].coef;
        else base += m->term[e].coef * at[m->term[e].index];
      if (c != 0) eini_narrow_range(c, base, from[r], to[r], &lo, &hi);
      else if (base < from[r] || base >= to[r]) hi = lo;
    }
    at[n - 1] = lo;
    for (i = 0; i < n; i++) {
      a += dst->stride == NULL ? 0 : (at[i] - p->lo[i]) * dst->stride[i];
      b += src->stride == NULL ? 0 : (at[i] - p->lo[i]) * src->stride[i];
    }
    if (dst->stride == NULL) a = *count;
    if (src->stride == NULL) b = *count;
    const int64_t length = eini_max64(hi - lo, 0);
    eini_dist_end left = *dst, right = *src;
    left.data += a * (int64_t)size;
    right.data += b * (int64_t)size;
    EINI_TRY(eini_own_carry(x->d, x->place, 1, &length, &left, &right,
                            dst->stride == NULL ? &one : &dst->stride[n - 1],
                            src->stride == NULL ? &one : &src->stride[n - 1], size));
    *count += length;
    for (i = n - 2; i >= 0 && ++at[i] == p->hi[i]; i--) at[i] = p->lo[i];
  }
  return EIN_OK;
}

// ---- a point in a step ----

// A dense box; at: in its memory.
static size_t eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, const int64_t *lo,
                               const int64_t *hi, size_t size, char *at) {
  int64_t *shape = x->len;
  for (int r = 0; r < rank; r++) {
    b->lo[r] = lo[r];
    b->hi[r] = hi[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  b->data = at;
  return eini_steps_bytes(rank, shape, size);
}

// Box k of the point at hand in its memory; while plans are made: the bytes it takes are noted.
static void eini_steps_box(eini_staged *x, eini_step_box *b, int k, int rank, const int64_t *lo,
                           const int64_t *hi, size_t size) {
  eini_steps_stmt *e = x->e;
  const int64_t i = (x->w.move.point - e->first) * (x->stmt->noperand + 2) + k;
  const int64_t memory = eini_steps_memory(x->d, x->w.move.place);
  b->away = eini_steps_is_away(e, k);
  const int64_t from = e->boxes_at[eini_steps_side(x->d, memory, b->away)];
  char *at = eini_steps_mem(x, memory, b->away, from + e->box_at[i]);
  const size_t bytes = eini_steps_dense(x, b, rank, lo, hi, size, at);
  if (x->run == NULL && bytes > e->box[i]) e->box[i] = bytes;
}

// Are elements of tensor t that its statement does not write zeros?
static int eini_steps_zeros(const ein_dist *d, int t) {
  return d->tensor[t].ndefine == 1 && d->g->stmt[d->tensor[t].define[0]].rest == EIN_REST_ZERO;
}

// The boxes of the point at hand: of operands, in a memory that is shared, or of an input that lies
// everywhere, those of the tensor; else of what was fetched last; and the ranges of the step.
static void eini_steps_boxes(eini_staged *x, int64_t step) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const int64_t r = (int64_t)x->d->rank + 1;
  const int n = s->noperand;
  for (int k = 0; k <= n + 1; k++) {
    eini_step_box *b = k <= n ? &pt->box[k] : &pt->block;
    b->lo = x->boxes + 3 * r * k, b->hi = b->lo + r, b->stride = b->hi + r;
  }
  for (int k = 0; k < n; k++) {
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    if (x->w.again[k] >= 0) {
      pt->box[k] = pt->box[x->w.again[k]];
    } else if (eini_steps_one(x->d) || x->w.nowners[k] == 0) {
      pt->box[k] = eini_steps_home(x, s->operand[k], eini_steps_memory(x->d, x->w.move.place));
    } else {
      (void)eini_tour_box(&x->w, step, k);
      eini_steps_box(x, &pt->box[k], k, t->rank, x->w.from, x->w.to, ein_dtype_size(t->dtype));
    }
  }
  (void)eini_tour_box(&x->w, step, n);
  eini_steps_box(x, &pt->box[n], n, s->nfree, x->w.lo, x->w.hi, x->e->wide);
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
}

// The states of nothing in a box.
static void eini_steps_identity(const eini_staged *x, const eini_step_box *b) {
  void *state[4];
  const int64_t n = eini_steps_volume(x->stmt->nfree, b->lo, b->hi);
  eini_states_at(x->e->folder, n, b->data, state);
  eini_fold_identity(x->e->folder, n, state);
}

// The fold of nothing for all results of a box, by a plan that reads nothing. In the provider's
// memory all become one that is made at home.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_box *to) {
  static const double none[2] = {0, 0};
  const eini_step_point *pt = &x->point;
  const int n = x->stmt->nfree;
  int64_t *len = x->w.lo, shape[EINI_NAMES_MAX], same[EINI_NAMES_MAX] = {0}, id;
  double one[2];
  void *out[1];
  out[0] = to->away ? (void *)one : to->data;
  if (x->e->folder != NULL && x->run != NULL) eini_steps_identity(x, to);
  if (x->e->folder != NULL) return EIN_OK;
  for (int o = 0; o < x->stmt->noperand; o++) pt->in[o] = none;
  for (int i = 0; i < n; i++) shape[i] = to->hi[i] - to->lo[i];
  for (int i = 0; i < x->stmt->nindex; i++) len[i] = i >= n ? 0 : to->away ? 1 : shape[i];
  EINI_TRY(eini_steps_plan(x, len, pt->box, to, 1, &id));
  if (x->run == NULL) return EIN_OK;
  EINI_TRY(eini_steps_execute(x, id, pt->in, out, pt->param));
  const eini_dist_end from = eini_dist_end_of(EINI_AT_BLOCK, (char *)one, same, 0);
  const eini_dist_end all = eini_dist_end_of(EINI_AT_BLOCK, to->data, to->stride, 1);
  return !to->away ? EIN_OK : eini_own_carry(x->d, x->place, n, shape, &all, &from, to->stride,
                                             same, x->e->wide);
}

// Addresses and origins of the block at pt->lo.
static void eini_steps_bind(eini_staged *x) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  ein_scalar *p = pt->param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_dist_uses(s, x->e->cut, i)) (p++)->re = (double)pt->lo[i];
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    pt->in[n++] = eini_steps_at(&pt->box[k], t->rank, x->w.from, ein_dtype_size(t->dtype));
  }
}

// The plans of the block of a step, whose boxes are at hand: it goes to the partial result where
// there is nothing of it yet or each of its elements is computed once; else it is merged into that.
// begin: the partial result of nothing is made where it has to be.
static ein_status eini_steps_block(eini_staged *x, const eini_step_task *t, int begin) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const int rank = s->nfree, n = s->noperand;
  const ein_dtype type = eini_steps_type(x);
  const eini_step_box *acc = &pt->box[n];
  const size_t bytes = (size_t)rank * sizeof(int64_t);
  const int all = memcmp(acc->lo, pt->lo, bytes) == 0 && memcmp(acc->hi, pt->hi, bytes) == 0;
  const int once = x->e->folder == NULL && !eini_loops_folds(x->w.n, x->w.n->nstep - 1);
  int64_t *len = x->w.lo;
  pt->plan = pt->merge = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  pt->apart = !((t->fresh && all) || once);
  if (pt->apart && t->fresh && begin) EINI_TRY(eini_steps_nothing(x, acc));
  eini_steps_bind(x);
  const eini_dist_end own = eini_steps_end(acc, rank, pt->lo, x->e->wide);
  pt->to = own.data;
  if (pt->apart) {
    eini_steps_box(x, &pt->block, n + 1, rank, pt->lo, pt->hi, x->e->wide);
    for (int r = 0; r < rank; r++) x->w.value[r] = pt->block.hi[r] - pt->block.lo[r];
    const eini_dist_end block = eini_steps_end(&pt->block, rank, pt->lo, x->e->wide);
    if (x->e->folder == NULL)
      EINI_TRY(eini_steps_merge_plan(x, s->fold, rank, x->w.value, type, &own, type, &block,
                                     &pt->merge));
    pt->to = block.data;
  }
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, pt->apart ? &pt->block : acc, 0, &pt->plan);
}

// Share k of n of the ranges of a step, by the parallel loop, into pt->lo and pt->hi; 0: they are
// not one range.
static int eini_steps_share(eini_staged *x, int64_t step, int64_t k, int64_t n) {
  const int v = x->e->parallel;
  const eini_loop *loop = &x->w.n->loop[v];
  eini_step_point *pt = &x->point;
  eini_tour_values(&x->w, step, x->w.n->nstep);
  x->w.value[v] = eini_piece_start(loop->extent, n, k);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  const int64_t from = pt->lo[loop->index];
  x->w.value[v] = eini_piece_start(loop->extent, n, k + 1) - 1;
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  pt->lo[loop->index] = from;
  return !eini_zrange_empty(x->stmt->nindex, pt->lo, pt->hi);
}

// The plan of the share at hand, as pt->plan, and where it writes.
static ein_status eini_steps_share_plan(eini_staged *x) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const eini_step_box *to = pt->apart ? &pt->block : &pt->box[s->noperand];
  int64_t *len = x->w.lo;
  eini_steps_bind(x);
  pt->to = eini_steps_at(to, s->nfree, pt->lo, x->e->wide);
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, to, 0, &pt->plan);
}

// ================================================================================================
// >>steps-moves  what messages of steps hold, and where it goes
// Takes a worker and a move; fills a message from what a place holds, or from the partial result of
// a point, and the other way round. Without data it makes the plans.
// ================================================================================================

// Calls for parts of the move at hand that lie in boxes of the free indices: in a memory that is
// shared all of a result is one.
typedef struct eini_step_parts {
  eini_owners *o;           // NULL: one part
  int first;
  eini_owned p;
} eini_step_parts;

static void eini_steps_parts(eini_staged *x, const eini_step_move *v, eini_step_parts *p) {
  p->first = 1;
  p->o = v->pieces < 0 ? NULL : eini_steps_owner(x, v);
  if (p->o != NULL) return;
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  for (int i = 0; i < x->stmt->nfree; i++) {
    p->p.lo[i] = x->w.lo[i], p->p.hi[i] = x->w.hi[i];
    p->p.shape[i] = p->p.hi[i] - p->p.lo[i];
  }
}

static int eini_steps_next(eini_staged *x, eini_step_parts *p) {
  const int first = p->first;
  p->first = 0;
  return p->o == NULL ? first : eini_owners_next(p->o, x->w.lo, x->w.hi, &p->p, first);
}

// The message of a move: elements one behind another.
static eini_dist_end eini_steps_message(const eini_staged *x, const eini_step_move *v) {
  const int away = eini_steps_wired(x->d, x->e, v->access);
  if (v->kind == EINI_JOB_NONE) return eini_dist_end_of(EINI_AT_MESSAGE, NULL, NULL, 0);
  const int64_t at = x->e->inbox_at[eini_steps_side(x->d, v->place, away)] + v->at;
  return eini_dist_end_of(EINI_AT_MESSAGE, eini_steps_mem(x, v->place, away, at), NULL, away);
}

// What a place holds of an operand's box goes into a message, or into the box: from there, or, of
// what it receives, out of a message.
static ein_status eini_steps_fetch(eini_staged *x, const eini_step_move *v, eini_step_box *to) {
  const int t = x->stmt->operand[v->access], received = v->kind == EINI_JOB_RECEIVE;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box home = eini_steps_home(x, t, v->place);
  int64_t stride[EINI_NAMES_MAX], other[EINI_NAMES_MAX], n;
  eini_dist_end message = eini_steps_message(x, v);
  eini_step_parts p;
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const eini_dist_end dst =
        to == NULL ? message : eini_steps_written(p.o->s, to, p.p.lo, size, stride);
    const eini_dist_end src =
        received ? message : eini_steps_written(p.o->s, &home, p.p.lo, size, other);
    EINI_TRY(eini_steps_copy(x, p.o, &p.p, x->w.from, x->w.to, &dst, &src, size, &n));
    if (message.data != NULL) message.data += n * (int64_t)size;
  }
  return EIN_OK;
}

// The partial result of the point at hand.
static eini_step_box *eini_steps_result(eini_staged *x, int64_t step) {
  const int n = x->stmt->noperand;
  eini_step_box *b = &x->point.box[n];
  const int64_t r = (int64_t)x->d->rank + 1;
  b->lo = x->boxes, b->hi = b->lo + r, b->stride = b->hi + r;
  (void)eini_tour_box(&x->w, step, n);
  eini_steps_box(x, b, n, x->stmt->nfree, x->w.lo, x->w.hi, x->e->wide);
  return b;
}

// A part of the partial result into a message: what is complete as the tensor is, the rest as it
// was computed.
static ein_status eini_steps_leaves(eini_staged *x, const eini_step_box *acc, const eini_owned *p,
                                    const eini_dist_end *message) {
  const eini_steps_stmt *e = x->e;
  const int rank = x->stmt->nfree;
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  if (e->whole) return eini_steps_store(x, p->shape, message, acc, p->lo);
  if (x->run == NULL) return EIN_OK;
  const eini_dist_end own = eini_steps_end(acc, rank, p->lo, e->wide);
  if (e->folder == NULL)
    return eini_own_carry(x->d, x->place, rank, p->shape, message, &own, message->stride,
                          own.stride, e->wide);
  eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, message->data);
  return EIN_OK;
}

// What a part becomes at home: it is stored, or merged into what is there. message: it was
// received; acc: it is of the point at hand.
static ein_status eini_steps_arrives(eini_staged *x, int64_t memory, const eini_step_box *acc,
                                     const eini_owned *p, const eini_dist_end *message) {
  const eini_stmt *s = x->stmt;
  const eini_steps_stmt *e = x->e;
  const int rank = s->nfree;
  const size_t size = ein_dtype_size(x->d->g->tensor[s->out].dtype);
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t stride[EINI_NAMES_MAX];
  if (e->whole) {
    const eini_step_box home = eini_steps_home(x, s->out, memory);
    const eini_dist_end to = eini_steps_written(s, &home, p->lo, size, stride);
    if (acc != NULL) return eini_steps_store(x, p->shape, &to, acc, p->lo);
    return x->run == NULL ? EIN_OK
                          : eini_own_carry(x->d, x->place, rank, p->shape, &to, message, stride,
                                           message->stride, size);
  }
  const eini_step_box sum = eini_steps_sum(x, memory);
  if (e->folder == NULL) {
    const ein_dtype type = eini_steps_type(x);
    const eini_dist_end to = eini_steps_end(&sum, rank, p->lo, e->wide);
    const eini_dist_end from =
        acc == NULL ? *message : eini_steps_end(acc, rank, p->lo, e->wide);
    return eini_steps_merge(x, s->fold, rank, p->shape, type, &to, type, &from);
  }
  if ((size_t)n * e->wide > x->spare_bytes) x->spare_bytes = (size_t)n * e->wide;
  if (x->run == NULL) return EIN_OK;
  if (acc == NULL) memcpy(x->spare, message->data, (size_t)n * e->wide);  // aligned
  else eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, x->spare);
  eini_steps_states(e->folder, rank, p->shape, &sum, p->lo, n, x->spare);
  return EIN_OK;
}

// A part of a result leaves its point, or arrives at home.
static ein_status eini_steps_homeward(eini_staged *x, const eini_step_move *v) {
  const size_t size = x->e->whole ? ein_dtype_size(x->d->g->tensor[x->stmt->out].dtype)
                                  : x->e->wide;
  const eini_step_box *acc = NULL;
  int64_t dense[EINI_NAMES_MAX];
  eini_step_parts p;
  if (v->kind != EINI_JOB_RECEIVE) {
    eini_steps_goto(x, v->point);
    acc = eini_steps_result(x, v->step);
  }
  eini_dist_end message = eini_steps_message(x, v);
  message.stride = dense;
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const int64_t n = eini_steps_volume(x->stmt->nfree, p.p.lo, p.p.hi);
    if (n == 0) continue;
    eini_dist_dense(x->stmt->nfree, p.p.shape, dense);
    if (v->kind == EINI_JOB_SEND) EINI_TRY(eini_steps_leaves(x, acc, &p.p, &message));
    else EINI_TRY(eini_steps_arrives(x, eini_steps_one(x->d) ? 0 : v->place, acc, &p.p, &message));
    if (message.data != NULL) message.data += n * (int64_t)size;
  }
  return EIN_OK;
}

// ================================================================================================
// >>steps-plan  what places do under a schedule
// Takes a schedule; gives, for the places of this process, plans of blocks, messages, memory and
// jobs. Who sends to these places, and who receives, is found by going through loops as long as
// what is read, or written, may lie at these places.
// ================================================================================================

// ---- tasks and messages ----

typedef struct eini_steps_noting {
  eini_staged x;
  eini_owners *o;           // whose part is at hand
  int owner, mine;          // which of its tensor's; is the point a place's of this process?
  int32_t *tag[2];          // by memory and other place: messages out of it, and into it
  int64_t *last;            // by memory: the last step with messages
  char *fresh;              // by point: nothing is in its partial result yet
  int64_t **near;           // by tensor: the hull of what the places of this process hold
  eini_arena *a;            // of what follows
  eini_ranked *other;       // what points of other processes do, a heap by eini_steps_when
  int64_t nother, capother;
} eini_steps_noting;

static ein_status eini_steps_note(eini_steps_noting *z, int kind, int64_t place, int64_t peer,
                                  int64_t bytes) {
  eini_staged *x = &z->x;
  const ein_dist *d = x->d;
  eini_steps_stmt *e = x->e;
  eini_step_move *all = (eini_step_move *)eini_grow(x->plans->a, e->move, e->nmove, &e->capmove,
                                                    sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  e->move = all;
  eini_step_move *v = &all[e->nmove++];
  const int64_t i = eini_steps_memory(d, place);
  memset(v, 0, sizeof *v);
  v->kind = kind;
  v->place = (int32_t)(place - d->fabric.first);
  v->peer = (int32_t)peer;
  v->access = e->w.move.operand < 0 ? x->stmt->noperand : e->w.move.operand;
  v->owner = z->owner;
  v->job = v->group = -1;
  v->point = e->w.move.point;
  v->step = e->w.move.step;
  v->bytes = bytes;
  if (z->o == NULL) v->pieces = -1;
  for (int r = 0; z->o != NULL && r < z->o->rank; r++)
    v->pieces = v->pieces * z->o->axis[r].n + z->o->axis[r].meet[z->o->pick[r]];
  if (kind == EINI_JOB_NONE) return EIN_OK;
  v->tag = z->tag[kind != EINI_JOB_SEND][i * d->fabric.places + peer]++;
  if (z->last[i] != v->step) e->nround[i]++;
  z->last[i] = v->step;
  v->round = (int32_t)(e->nround[i] - 1);
  return EIN_OK;
}

// What a place holds itself of a box of its point's.
static ein_status eini_steps_part(eini_tour *w, eini_owners *o, int64_t owner) {
  eini_steps_noting *z = (eini_steps_noting *)w->user;
  z->o = o;
  if (owner != w->move.place || !z->mine || eini_steps_one(z->x.d)) return EIN_OK;
  return eini_steps_note(z, EINI_JOB_NONE, owner, owner, 0);
}

static ein_status eini_steps_moved(void *user, const ein_schedule_move *m) {
  eini_steps_noting *z = (eini_steps_noting *)user;
  const ein_dist *d = z->x.d;
  const int sends = eini_dist_driven(d, m->from), receives = eini_dist_driven(d, m->to);
  int64_t *to = z->x.e->total + 4 * (m->to - d->fabric.first);
  int64_t *from = z->x.e->total + 4 * (m->from - d->fabric.first);
  if (receives) to[1]++, to[2] += m->bytes;
  if (sends) from[3] += m->bytes;
  if (d->fabric.shared) return EIN_OK;
  if (receives) EINI_TRY(eini_steps_note(z, EINI_JOB_RECEIVE, m->to, m->from, m->bytes));
  return sends ? eini_steps_note(z, EINI_JOB_SEND, m->from, m->to, m->bytes) : EIN_OK;
}

// May the box at hand have a part at a place of this process?
static int eini_steps_near(const eini_steps_noting *z, int t) {
  const eini_tour *w = &z->x.e->w;
  const int rank = z->x.d->g->tensor[t].rank;
  for (int r = 0; r < rank; r++)
    if (w->from[r] >= z->near[t][2 * r + 1] || w->to[r] <= z->near[t][2 * r]) return 0;
  return 1;
}

// The hulls of eini_steps_near.
static ein_status eini_steps_hulls(eini_arena *a, eini_steps_noting *z) {
  const ein_dist *d = z->x.d;
  const int64_t memories = eini_steps_memories(d);
  if ((z->near = EINI_NEW(a, int64_t *, d->g->ntensor)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) {
    const int rank = d->g->tensor[t].rank;
    int64_t *at = z->near[t] = EINI_NEW(a, int64_t, 2 * rank);
    if (at == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t i = 0; i < memories; i++) {
      const eini_step_box *b = &d->home[t * memories + i].box;
      for (int r = 0; r < rank && !eini_zrange_empty(rank, b->lo, b->hi); r++) {
        const int first = at[2 * r] == at[2 * r + 1];
        at[2 * r] = first ? b->lo[r] : eini_min64(at[2 * r], b->lo[r]);
        at[2 * r + 1] = eini_max64(at[2 * r + 1], b->hi[r]);
      }
    }
  }
  return EIN_OK;
}

// What access k of the point at hand moves before a step (operands) or behind it (the result), as
// far as places of this process have to do with it.
static ein_status eini_steps_access(eini_steps_noting *z, int64_t step, int k) {
  eini_tour *w = &z->x.e->w;
  const eini_stmt *s = w->n->s;
  const int result = k == s->noperand;
  if (w->nowners[k] == 0 || (!result && w->again[k] >= 0)) return EIN_OK;
  if (!eini_tour_due(w, step, k, result) || !eini_tour_box(w, step, k)) return EIN_OK;
  if (!z->mine && !eini_steps_near(z, result ? s->out : s->operand[k])) return EIN_OK;
  const int64_t bytes = result ? eini_tour_wide(w)
                               : (int64_t)ein_dtype_size(w->w->g->tensor[s->operand[k]].dtype);
  w->move.operand = result ? -1 : k;
  w->move.step = step;
  for (int i = 0; i < w->nowners[k]; i++) {
    z->owner = i;
    EINI_TRY(eini_tour_owners(w, &w->owners[k][i], bytes, result));
  }
  z->o = NULL;
  return result && z->mine && eini_steps_one(z->x.d)
             ? eini_steps_note(z, EINI_JOB_NONE, w->move.place, w->move.place, 0) : EIN_OK;
}

// The shares of the block at hand, and their plans; 0: it is computed at once.
static ein_status eini_steps_shares(eini_staged *x, int64_t step, int32_t *nshare) {
  const int v = x->point.plan < 0 ? -1 : x->e->parallel;
  *nshare = 0;
  if (v < 0) return EIN_OK;
  const int i = x->w.n->loop[v].index;
  const int64_t n = eini_min64(x->w.n->loop[v].extent, EINI_SHARES_MAX), end = x->point.hi[i];
  int64_t at = x->point.lo[i];
  for (int64_t k = 0; k < n; k++) {
    const int some = eini_steps_share(x, step, k, n);
    if (x->point.lo[i] != at && x->point.hi[i] > x->point.lo[i]) return EIN_OK;
    at = eini_max64(at, x->point.hi[i]);
    if (some) EINI_TRY(eini_steps_share_plan(x));
  }
  if (at == end) *nshare = (int32_t)n;
  return EIN_OK;
}

// A point of a place of this process in a step; first: its moves.
static ein_status eini_steps_task(eini_steps_noting *z, int64_t step, int64_t first) {
  eini_staged *x = &z->x;
  eini_steps_stmt *e = x->e;
  eini_step_task *all = (eini_step_task *)eini_grow(x->plans->a, e->task, e->ntask, &e->captask,
                                                    sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  e->task = all;
  eini_step_task *t = &all[e->ntask++];
  memset(t, 0, sizeof *t);
  t->point = e->w.move.point;
  t->step = step;
  t->first = first;
  t->nmove = e->nmove - first;
  t->ends = (int16_t)eini_tour_due(&e->w, step, x->stmt->noperand, 1);
  e->total[4 * (e->w.move.place - x->d->fabric.first)]++;
  return EIN_OK;
}

// ---- points of other processes ----

// When point `point` fetches before a step, or, after, sends home behind it: what all are ordered
// by. Sums of products of them are below EINI_TOUR_MAX.
static int64_t eini_steps_when(const eini_tour *w, int64_t step, int after, int64_t point) {
  return (2 * step + after) * w->n->grid->npoint + point;
}

// Is a loop that has a value rotated by one that will have one, from position i of the order on?
static int eini_steps_turned(const eini_loops *n, int i) {
  for (int u = 0; u < i; u++) {
    const eini_loop *r = &n->loop[n->order[u]];
    for (int k = 0; k < r->nturn; k++) {
      const int at = eini_loops_at(n, r->turn[k]);
      if (at >= i && at < n->nstep) return 1;
    }
  }
  return 0;
}

// Notes when points of other processes fetch, or send home, what may lie here: access k, with the
// values of the first i loops at hand, and the step that these are of so far.
static ein_status eini_steps_others(eini_steps_noting *z, int k, int i, int64_t step) {
  eini_tour *w = &z->x.e->w;
  const eini_loops *n = w->n;
  const eini_stmt *s = n->s;
  const int result = k == s->noperand;
  if (!eini_steps_turned(n, i) &&
      (!eini_tour_hull(w, k) || !eini_steps_near(z, result ? s->out : s->operand[k])))
    return EIN_OK;
  if (i == n->nstep) {
    const int64_t point = eini_grid_point(n->grid, w->here);
    if (eini_dist_driven(z->x.d, eini_grid_place(n->grid, point))) return EIN_OK;
    eini_ranked *all = (eini_ranked *)eini_grow(z->a, z->other, z->nother, &z->capother,
                                                sizeof *all);
    if (all == NULL) return EIN_ERR_NO_MEMORY;
    z->other = all;
    all[z->nother].what = eini_steps_when(w, step, result, point);
    all[z->nother].key = (double)all[z->nother].what;
    all[z->nother].seq = k;
    eini_heap_rise(all, z->nother++);
    return EIN_OK;
  }
  const int v = n->order[i];
  const eini_loop *x = &n->loop[v];
  const int64_t extent = eini_max64(x->extent, 1);
  if (x->dim < 0 && i > eini_loops_depth(n, k))  // whole: at the first, or the last, of its values
    return eini_steps_others(z, k, i + 1, step * extent + (result ? extent - 1 : 0));
  for (int64_t value = 0; value < extent; value++) {
    w->value[v] = value;
    if (x->dim >= 0) w->here[x->dim] = value;
    EINI_TRY(eini_steps_others(z, k, i + 1, x->dim >= 0 ? step : step * extent + value));
  }
  w->value[v] = -1;
  if (x->dim >= 0) w->here[x->dim] = 0;
  return EIN_OK;
}

static void eini_steps_point(eini_steps_noting *z, int64_t point) {
  eini_tour *w = &z->x.e->w;
  w->move.point = point;
  eini_grid_coords(w->n->grid, point, w->here);
  w->move.place = eini_grid_place(w->n->grid, point);
  z->mine = eini_dist_driven(z->x.d, w->move.place);
}

// What they do before `when`.
static ein_status eini_steps_until(eini_steps_noting *z, int64_t when) {
  const int64_t npoint = z->x.e->w.n->grid->npoint;
  while (z->nother > 0 && z->other[0].what < when) {
    const eini_ranked e = eini_heap_pop(z->other, &z->nother);
    eini_steps_point(z, e.what % npoint);
    EINI_TRY(eini_steps_access(z, e.what / npoint / 2, (int)e.seq));
  }
  return EIN_OK;
}

// All steps of a statement.
static ein_status eini_steps_walk(eini_steps_noting *z) {
  eini_staged *x = &z->x;
  eini_tour *w = &x->e->w;
  const eini_loops *nest = w->n;
  const int n = x->stmt->noperand;
  for (int v = 0; v < nest->nloop; v++) w->value[v] = -1;
  for (int m = 0; m < nest->grid->ndim; m++) w->here[m] = 0;
  for (int k = 0; k <= n && x->d->fabric.count < x->d->fabric.places; k++)
    if (w->nowners[k] > 0) EINI_TRY(eini_steps_others(z, k, 0, 0));
  for (int64_t step = 0; step < nest->steps; step++) {
    for (int64_t q = 0; q < 2 * x->e->npoint; q++) {
      const int64_t first = x->e->nmove, point = x->e->first + q % x->e->npoint;
      const int after = q >= x->e->npoint;
      EINI_TRY(eini_steps_until(z, eini_steps_when(w, step, after, point)));
      eini_steps_point(z, point);
      if (!eini_tour_works(w)) continue;
      for (int k = after ? n : 0; k < n + after; k++) EINI_TRY(eini_steps_access(z, step, k));
      if (!after) EINI_TRY(eini_steps_task(z, step, first));
    }
  }
  return eini_steps_until(z, INT64_MAX);
}

// ---- statements and tensors ----

static ein_status eini_steps_box_new(eini_arena *a, eini_step_box *b, int rank) {
  memset(b, 0, sizeof *b);
  b->lo = EINI_NEW(a, int64_t, rank);
  b->hi = EINI_NEW(a, int64_t, rank);
  b->stride = EINI_NEW(a, int64_t, rank);
  return b->lo == NULL || b->hi == NULL || b->stride == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The hull of what n owners hold at a place becomes box b, dense; axes: see eini_hull. *bytes: of
// elements of `size`.
static ein_status eini_steps_hull(const ein_dist *d, const eini_owners *o, int n, int axes,
                                  int64_t place, size_t size, eini_step_box *b, int64_t *bytes) {
  int64_t shape[EINI_NAMES_MAX];
  eini_arena a;
  eini_hull h;
  eini_arena_init(&a, &d->al);
  ein_status st = eini_hull_init(&a, o, n, axes, &h);
  if (st == EIN_OK) st = eini_owners_hull(&a, d->g, o, n, place, &h);
  for (int r = 0; r < h.rank && st == EIN_OK; r++) {
    b->lo[r] = h.lo[r], b->hi[r] = h.hi[r];
    shape[r] = h.hi[r] - h.lo[r];
  }
  if (st == EIN_OK) {
    eini_dist_dense(h.rank, shape, b->stride);
    *bytes = (int64_t)eini_steps_bytes(h.rank, shape, size);
  }
  eini_arena_free(&a);
  return st;
}

// What a place has of tensor t, as one box of its axes, lo and hi: so many elements. *why: it is
// none; or NULL.
static ein_status eini_steps_owned(const ein_dist *d, int t, int64_t place, int64_t *lo,
                                   int64_t *hi, int64_t *elements, const char **why) {
  const eini_tensor *e = &d->g->tensor[t];
  int64_t coef;
  eini_owners *o;
  eini_arena a;
  eini_hull h;
  int n, any = 1;
  *why = NULL;
  for (int r = 0; r < e->rank; r++) lo[r] = 0, hi[r] = e->shape[r];
  eini_arena_init(&a, &d->al);
  ein_status st = eini_schedule_owners(&a, d->desc.schedule, t, &o, &n);
  if (st == EIN_OK && n == 0 && e->nstmt > 0) *why = "nothing says where it lies";
  if (st == EIN_OK && e->nstmt > 1) *why = "several statements write it";
  for (int k = 0; st == EIN_OK && k < d->nstmt && *why == NULL; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    for (int r = 0; r < e->rank && s->out == t; r++)
      if (s->rest != EIN_REST_ERROR || (eini_plain_row(&s->out_map, r) < 0 &&
                                        (e->shape[r] > 1 ||
                                         eini_row_index(&s->out_map, r, &coef) >= 0)))
        *why = "what places hold of it are not boxes";
  }
  if (st == EIN_OK && *why == NULL && n > 0) {
    st = eini_hull_init(&a, o, n, 1, &h);
    if (st == EIN_OK) st = eini_owners_hull(&a, d->g, o, n, place, &h);
    for (int r = 0; r < e->rank && st == EIN_OK; r++) lo[r] = h.lo[r], hi[r] = h.hi[r];
    const double gap = st == EIN_OK && h.any ? eini_box_volume(e->rank, lo, hi) - h.volume : 0;
    if (gap > 0 || gap < 0) *why = "a place holds several boxes of it";
    any = st == EIN_OK && h.any;
  }
  for (int r = 0; r < e->rank && !any; r++) lo[r] = hi[r] = 0;
  *elements = any ? eini_steps_volume(e->rank, lo, hi) : 0;
  eini_arena_free(&a);
  return st;
}

// What each memory holds of tensor t.
static ein_status eini_steps_tensor(ein_dist *d, int t) {
  const eini_tensor *e = &d->g->tensor[t];
  const int64_t memories = eini_steps_memories(d);
  const int input = e->role == EIN_ROLE_INPUT, one = eini_steps_one(d);
  int64_t shape[EINI_NAMES_MAX];
  eini_owners *o;
  eini_arena a;
  int n;
  eini_arena_init(&a, &d->al);
  ein_status st = eini_schedule_owners(&a, d->desc.schedule, t, &o, &n);
  for (int64_t i = 0; i < memories && st == EIN_OK; i++) {
    eini_step_home *h = &d->home[(int64_t)t * memories + i];
    const int block = d->desc.blocks && d->tensor[t].port >= 0 && n > 0;
    h->own = block || (input ? one || n == 0 : one && d->tensor[t].port >= 0);
    st = eini_steps_box_new(&d->arena, &h->box, e->rank);
    for (int r = 0; r < e->rank && st == EIN_OK; r++) h->box.hi[r] = e->shape[r];
    for (int r = 0; r < e->rank && st == EIN_OK && h->own; r++)
      h->box.stride[r] = d->tensor[t].stride[r];
    h->bytes = d->tensor[t].hi - d->tensor[t].lo;
    if ((h->own && !block) || st != EIN_OK) continue;
    if (block) {
      const char *why;
      st = eini_steps_owned(d, t, d->fabric.first + i, h->box.lo, h->box.hi, &h->bytes, &why);
      h->bytes *= (int64_t)ein_dtype_size(e->dtype);
      for (int r = 0; r < e->rank; r++) shape[r] = h->box.hi[r] - h->box.lo[r];
      eini_dist_dense(e->rank, shape, h->box.stride);
      continue;
    }
    eini_dist_dense(e->rank, e->shape, h->box.stride);
    h->bytes = (int64_t)eini_steps_bytes(e->rank, e->shape, ein_dtype_size(e->dtype));
    if (!one)
      st = eini_steps_hull(d, o, n, 1, d->fabric.first + i, ein_dtype_size(e->dtype), &h->box,
                           &h->bytes);
    h->bytes = eini_dist_pad(h->bytes);
  }
  eini_arena_free(&a);
  return st;
}

// The loop of a step whose iterations threads share, -1: none.
static int eini_steps_parallel(const ein_dist *d, const eini_steps_stmt *e) {
  const eini_loops *n = e->w.n;
  for (int k = n->nstep; k < n->norder && d->fabric.threads && e->folder == NULL; k++) {
    const eini_loop *v = &n->loop[n->order[k]];
    if (v->parallel && v->made != EINI_MADE_FUSED && v->extent > 1) return n->order[k];
  }
  return -1;
}

static ein_status eini_steps_rooms(ein_dist *d, eini_steps_stmt *e) {
  const int64_t memories = eini_steps_memories(d), n = e->w.n->s->noperand + 2;
  int64_t **each[7], from, to;
  eini_arena *a = &d->arena;
  each[0] = &e->nround, each[1] = &e->boxes_at, each[2] = &e->boxes_bytes, each[3] = &e->inbox_at;
  each[4] = &e->inbox_bytes, each[5] = &e->in, each[6] = &e->out;
  for (int i = 0; i < 7; i++)
    if ((*each[i] = EINI_NEW(a, int64_t, 2 * memories)) == NULL) return EIN_ERR_NO_MEMORY;
  eini_grid_points(e->w.n->grid, d->fabric.first, &e->first, &to);
  eini_grid_points(e->w.n->grid, d->fabric.first + d->fabric.count - 1, &from, &to);
  e->npoint = to - e->first;
  e->box = EINI_NEW(a, size_t, e->npoint * n);
  e->box_at = EINI_NEW(a, int64_t, e->npoint * n);
  e->total = EINI_NEW(a, int64_t, 4 * (int64_t)d->fabric.count);
  e->sum = EINI_NEW(a, eini_step_box, memories);
  e->over = EINI_NEW(a, int32_t, memories);
  e->cut = EINI_NEW(a, int64_t, e->w.n->s->nindex);
  return e->box == NULL || e->box_at == NULL || e->total == NULL || e->sum == NULL ||
         e->over == NULL || e->cut == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_steps_stmt_init(ein_dist *d, int k) {
  const ein_schedule *sc = d->desc.schedule;
  const eini_stmt *s = &d->g->stmt[k];
  eini_steps_stmt *e = &d->steps[k];
  e->w.w = sc;
  e->w.n = &sc->nest[k];
  e->w.move.stmt = k;
  EINI_TRY(eini_tour_init(&d->arena, &e->w));
  if (eini_tour_work(&e->w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  e->whole = eini_loops_whole(e->w.n);
  if (eini_loops_states(e->w.n)) {
    EINI_TRY(eini_states_folder(d->g, s, &e->states));
    e->folder = &e->states;
  }
  e->wide = e->folder != NULL ? eini_states_bytes(e->folder)
                              : ein_dtype_size(eini_loops_type(d->g, s));
  e->parallel = eini_steps_parallel(d, e);
  EINI_TRY(eini_steps_rooms(d, e));
  for (int i = 0; i < s->nindex; i++)
    e->cut[i] = eini_loops_cuts(e->w.n, i, e->w.n->nstep - 1) ? 2 : 1;
  if (e->parallel >= 0) e->cut[e->w.n->loop[e->parallel].index] = 2;
  return EIN_OK;
}

// Partial results of nothing, in the memory of sums.
static ein_status eini_steps_sum_begin(eini_staged *x, int64_t memory) {
  const eini_step_box sum = eini_steps_sum(x, memory);
  for (int o = 0; o < x->stmt->noperand; o++)
    x->point.box[o] = eini_steps_home(x, x->stmt->operand[o], 0);
  return eini_steps_nothing(x, &sum);
}

// Stores sums.
static ein_status eini_steps_sum_end(eini_staged *x, int64_t memory) {
  const eini_stmt *s = x->stmt;
  const eini_step_box b = eini_steps_sum(x, memory), home = eini_steps_home(x, s->out, memory);
  int64_t shape[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  if (eini_zrange_empty(s->nfree, b.lo, b.hi)) return EIN_OK;
  if (x->run != NULL && home.data == NULL) return EIN_OK;  // a scalar's block is elsewhere
  for (int i = 0; i < s->nfree; i++) shape[i] = b.hi[i] - b.lo[i];
  const eini_dist_end to = eini_steps_written(
      s, &home, b.lo, ein_dtype_size(x->d->g->tensor[s->out].dtype), stride);
  return eini_steps_store(x, shape, &to, &b, b.lo);
}

// What is merged at home, by memory. *bytes: that takes.
static ein_status eini_steps_sums(eini_staged *x, int64_t *bytes) {
  const ein_dist *d = x->d;
  eini_steps_stmt *e = x->e;
  for (int64_t i = 0; i < eini_steps_memories(d) && !e->whole; i++) {
    int64_t shape[EINI_NAMES_MAX];
    eini_step_box *b = &e->sum[i];
    EINI_TRY(eini_steps_box_new(x->plans->a, b, x->stmt->nfree));
    for (int r = 0; r < x->stmt->nfree; r++) shape[r] = b->hi[r] = x->stmt->index[r].extent;
    eini_dist_dense(x->stmt->nfree, shape, b->stride);
    bytes[i] = (int64_t)eini_steps_bytes(x->stmt->nfree, shape, e->wide);
    if (!eini_steps_one(d))
      EINI_TRY(eini_steps_hull(d, x->w.owners[x->stmt->noperand], 1, 0, d->fabric.first + i,
                               e->wide, b, &bytes[i]));
  }
  return EIN_OK;
}

// What places hold of tensor t, but what is the caller's, is in the provider's memory, or not.
static void eini_steps_settle_homes(ein_dist *d, int t, int away) {
  const int64_t memories = eini_steps_memories(d);
  for (int64_t i = 0; i < memories; i++) {
    eini_step_home *h = &d->home[t * memories + i];
    h->box.away = away && !h->own;
  }
}

// Does the schedule let the provider run a statement?
static int eini_steps_lets(const ein_dist *d, const eini_steps_stmt *e) {
  const char *leaf = e->w.n->leaf;
  return d->away != NULL && (leaf == NULL || strcmp(leaf, d->away->name) == 0);
}

// Tries the statement at hand in the provider's memory, or not. The host merges states, and moves
// what is no box. Where its tensor is, the first statement that writes that says; the only place
// reads it there, by the kernels of the schedule.
static void eini_steps_settle(ein_dist *d, eini_staged *x, int away) {
  eini_steps_stmt *e = x->e;
  const eini_stmt *s = x->stmt;
  const eini_dist_tensor *t = &d->tensor[s->out];
  away &= eini_steps_lets(d, e);
  for (int o = 0; o < s->noperand; o++)
    for (int i = 0; i < x->w.nowners[o]; i++) away &= !x->w.owners[o][i].several;
  e->away = away;
  e->part_away = away && e->folder == NULL;
  away = e->part_away;
  for (int u = 0; u < t->ndefine; u++) {
    const eini_steps_stmt *by = &d->steps[t->define[u]];
    away &= by->folder == NULL && !by->w.owners[by->w.n->s->noperand]->several;
  }
  for (int u = 0; u < t->nread && eini_steps_one(d); u++)
    away &= eini_steps_lets(d, &d->steps[t->read[u]]);
  if (t->define[0] == x->number) eini_steps_settle_homes(d, s->out, away);
}

// Inputs are where a statement reads them.
static void eini_steps_settle_inputs(ein_dist *d) {
  for (int t = 0; t < d->g->ntensor; t++) {
    int away = 0;
    for (int u = 0; u < d->tensor[t].nread; u++) away |= d->steps[d->tensor[t].read[u]].away;
    if (d->g->tensor[t].role == EIN_ROLE_INPUT) eini_steps_settle_homes(d, t, away);
  }
}

// Plans the blocks of the statement at hand, and what leaves and comes home. EIN_ERR_UNSUPPORTED:
// not all of it goes as it was settled.
static ein_status eini_steps_plans(eini_steps_noting *z) {
  eini_staged *x = &z->x;
  eini_steps_stmt *e = x->e;
  const int n = x->stmt->noperand;
  e->plan = 0;
  memset(z->fresh, 0, (size_t)e->npoint);
  for (int64_t i = 0; i < e->ntask; i++) {
    eini_step_task *t = &e->task[i];
    char *fresh = &z->fresh[t->point - e->first];
    if (eini_tour_due(&x->w, t->step, n, 0)) *fresh = 1;
    t->fresh = *fresh;
    eini_steps_goto(x, t->point);
    eini_steps_boxes(x, t->step);
    EINI_TRY(eini_steps_block(x, t, 1));
    if (x->point.plan >= 0) *fresh = 0;
    EINI_TRY(eini_steps_shares(x, t->step, &t->nshare));
  }
  for (int64_t i = 0; i < eini_steps_memories(x->d) && !e->whole; i++) {
    EINI_TRY(eini_steps_sum_begin(x, i));
    EINI_TRY(eini_steps_sum_end(x, i));
  }
  for (int64_t i = 0; i < e->nmove; i++)
    if (e->move[i].access == n) EINI_TRY(eini_steps_homeward(x, &e->move[i]));
  return EIN_OK;
}

// Where the boxes of a statement lie; sums: bytes of those that are merged at home.
static void eini_steps_place_boxes(ein_dist *d, eini_steps_stmt *e, const int64_t *sums) {
  const int64_t n = e->w.n->s->noperand + 2;
  for (int64_t i = 0; i < eini_steps_memories(d); i++)
    e->boxes_bytes[eini_steps_side(d, i, e->part_away)] = eini_dist_pad(sums[i]);
  for (int64_t i = 0; i < e->npoint * n; i++) {
    const int64_t place = eini_grid_place(e->w.n->grid, e->first + i / n);
    int64_t *bytes = &e->boxes_bytes[eini_steps_side(d, eini_steps_memory(d, place),
                                                     eini_steps_is_away(e, (int)(i % n)))];
    e->box_at[i] = *bytes;
    *bytes += eini_dist_pad((int64_t)e->box[i]);
  }
}

// Where its messages do, those of a step behind each other; now: of sides, in and out.
static void eini_steps_place_messages(ein_dist *d, eini_steps_stmt *e, int64_t *last,
                                      int64_t *now[2]) {
  const int64_t memories = eini_steps_memories(d), rounds = d->desc.no_overlap ? 1 : 2;
  for (int64_t i = 0; i < memories; i++) last[i] = -1;
  for (int64_t i = 0; i < e->nmove; i++) {
    eini_step_move *v = &e->move[i];
    const int out = v->kind == EINI_JOB_SEND;
    if (v->kind == EINI_JOB_NONE) continue;
    const int64_t side = eini_steps_side(d, v->place, eini_steps_wired(d, e, v->access));
    for (int k = 0; k < 2 && last[v->place] != v->round; k++)
      now[k][v->place] = now[k][memories + v->place] = 0;
    last[v->place] = v->round;
    v->at = now[out][side];
    now[out][side] += eini_dist_pad(v->bytes);
    int64_t *most = out ? &e->out[side] : &e->in[side];
    *most = eini_max64(*most, now[out][side]);
  }
  for (int64_t i = 0; i < e->nmove; i++) {
    eini_step_move *v = &e->move[i];
    if (v->kind == EINI_JOB_NONE) continue;
    const int64_t side = eini_steps_side(d, v->place, eini_steps_wired(d, e, v->access));
    v->at += v->round % rounds * (e->in[side] + e->out[side]);
    if (v->kind == EINI_JOB_SEND) v->at += e->in[side];
  }
  for (int64_t i = 0; i < 2 * memories; i++)
    e->inbox_bytes[i] = eini_min64(rounds, e->nround[i % memories]) * (e->in[i] + e->out[i]);
}

static ein_status eini_steps_derive(ein_dist *d, int k, eini_steps_noting *z) {
  eini_steps_stmt *e = &d->steps[k];
  const int64_t memories = eini_steps_memories(d);
  int64_t *now[2], *sums;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  z->last = EINI_NEW(&a, int64_t, memories);
  now[0] = EINI_NEW(&a, int64_t, 2 * memories);
  now[1] = EINI_NEW(&a, int64_t, 2 * memories);
  sums = EINI_NEW(&a, int64_t, memories);
  z->fresh = EINI_NEW(&a, char, e->npoint);
  ein_status st = z->last == NULL || now[0] == NULL || now[1] == NULL || sums == NULL ||
                  z->fresh == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int64_t i = 0; i < memories && st == EIN_OK; i++) z->last[i] = -1;
  z->a = &a;
  z->other = NULL;
  z->nother = z->capother = 0;
  e->w.part_fn = eini_steps_part;
  e->w.fn = eini_steps_moved;
  e->w.user = z;
  eini_steps_on(&z->x, k);
  if (st == EIN_OK) st = eini_steps_walk(z);
  if (st == EIN_OK) st = eini_steps_sums(&z->x, sums);
  for (int away = 1, again = st == EIN_OK; again; away = 0) {
    eini_steps_settle(d, &z->x, away);
    st = eini_steps_plans(z);
    again = st == EIN_ERR_UNSUPPORTED && e->away;
  }
  if (st == EIN_OK) eini_steps_place_boxes(d, e, sums);
  if (st == EIN_OK) eini_steps_place_messages(d, e, z->last, now);
  eini_arena_free(&a);
  return st;
}

// ================================================================================================
// >>steps-jobs  memory and jobs of places under a schedule
// Takes tasks and messages of steps; gives where things lie in the memory of each place, jobs, and
// what each waits for. Messages of a step have the memory of those two steps before, so that they
// are under way while the step before is computed.
// ================================================================================================

// ---- memory ----

enum { EINI_STEPS_TENSOR, EINI_STEPS_INBOX, EINI_STEPS_BOXES };

typedef struct eini_steps_item {
  int kind, of;             // a tensor, or a statement
} eini_steps_item;

// The items of a memory, at home or in the provider's, in the order in which they come to be.
// Returns how many.
static int eini_steps_items(ein_dist *d, int64_t memory, int away, eini_item *item,
                            eini_steps_item *is) {
  const int64_t memories = eini_steps_memories(d), side = eini_steps_side(d, memory, away);
  int n = 0;
  for (int k = 0; k < d->nstmt; k++) {
    for (int j = k; j <= k + 1 && j < d->nstmt; j++) {  // messages, while those before compute
      const int early = j > 0 && !d->desc.no_overlap ? j - 1 : j;
      if (early != k) continue;
      item[n].from = k, item[n].to = j;
      item[n].bytes = d->steps[j].inbox_bytes[side];
      item[n].at = &d->steps[j].inbox_at[side];
      is[n].kind = EINI_STEPS_INBOX, is[n].of = j;
      n += item[n].bytes > 0;
    }
    for (int t = 0; t < d->g->ntensor; t++) {
      eini_step_home *h = &d->home[t * memories + memory];
      eini_rooms_life(d->g, t, &item[n].from, &item[n].to);
      if (item[n].from != k || h->own || h->box.away != away) continue;
      item[n].to--;
      item[n].bytes = h->bytes;
      item[n].at = &h->at;
      is[n].kind = EINI_STEPS_TENSOR, is[n].of = t;
      n += h->bytes > 0;
    }
    item[n].from = item[n].to = k;
    item[n].bytes = d->steps[k].boxes_bytes[side];
    item[n].at = &d->steps[k].boxes_at[side];
    is[n].kind = EINI_STEPS_BOXES, is[n].of = k;
    n += item[n].bytes > 0;
  }
  for (int i = 0; i < n && d->desc.no_reuse; i++) item[i].to = d->nstmt;
  return n;
}

// Job `to` waits until nobody needs an item any more.
static void eini_steps_wait_users(ein_dist *d, const eini_steps_item *old, int64_t i, int64_t to) {
  const eini_dist_tensor *t = old->kind == EINI_STEPS_TENSOR ? &d->tensor[old->of] : NULL;
  if (t == NULL) eini_jobs_edge(&d->jobs, d->steps[old->of].done + i, to);
  for (int u = 0; t != NULL && u < t->ndefine; u++)
    eini_jobs_edge(&d->jobs, d->steps[t->define[u]].done + i, to);
  for (int u = 0; t != NULL && u < t->nread; u++)
    eini_jobs_edge(&d->jobs, d->steps[t->read[u]].done + i, to);
}

// Memory i has so many bytes at home, or in the provider's memory.
static ein_status eini_steps_memory_has(ein_dist *d, int64_t i, int away, int64_t bytes) {
  bytes = eini_dist_pad(bytes);
  if (away) {
    d->held_bytes[i] = bytes;
    d->info.away_bytes = eini_max64(d->info.away_bytes, bytes);
    if (eini_add_overflow(bytes, d->temp_bytes - d->start[i], &bytes)) return EIN_ERR_TOO_LARGE;
    if ((uint64_t)bytes > SIZE_MAX / 4) return EIN_ERR_TOO_LARGE;
  } else {
    d->start[i] = d->temp_bytes;
    if (eini_add_overflow(d->temp_bytes, bytes, &d->temp_bytes)) return EIN_ERR_TOO_LARGE;
  }
  if (!d->fabric.shared) d->info.place_bytes = eini_max64(d->info.place_bytes, bytes);
  return EIN_OK;
}

typedef struct eini_steps_laying {
  eini_item *item;
  eini_steps_item *is;
  int *alive;
  eini_reuse r;
} eini_steps_laying;

// Jobs that bring an item of memory i to be wait for who had its ranges before.
static void eini_steps_memory_waits(ein_dist *d, int64_t i, eini_steps_laying *z, int n) {
  z->r.n = 0;
  for (int k = 0, old; k < n; k++) {
    const eini_item *x = &z->item[k];
    const int of = z->is[k].of, kind = z->is[k].kind;
    const int64_t to = kind == EINI_STEPS_INBOX ? d->steps[of].inbox + i
                       : kind == EINI_STEPS_BOXES ? d->steps[of].boxes + i
                       : d->tensor[of].ndefine > 0 && d->tensor[of].define[0] < d->nstmt
                           ? d->steps[d->tensor[of].define[0]].room + i : -1;
    while ((old = eini_reuse_take(&z->r, *x->at, *x->at + x->bytes, k)) >= 0)
      if (to >= 0) eini_steps_wait_users(d, &z->is[old], i, to);
  }
}

// Lays out each memory (place), or waits for what had its ranges before.
static ein_status eini_steps_memory_all(ein_dist *d, int place) {
  const int64_t most = (int64_t)d->g->ntensor + 2 * (int64_t)d->nstmt + 1;
  eini_steps_laying z;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  z.item = EINI_NEW(&a, eini_item, most);
  z.is = EINI_NEW(&a, eini_steps_item, most);
  z.alive = EINI_NEW(&a, int, most);
  ein_status st = z.item == NULL || z.is == NULL || z.alive == NULL ||
                  !eini_reuse_init(&a, most, &z.r) ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int64_t i = 0; i < eini_steps_memories(d); i++) {
    for (int away = 0; away <= (d->away != NULL) && st == EIN_OK; away++) {
      const int n = eini_steps_items(d, i, away, z.item, z.is);
      int64_t bytes = 0;
      if (!place) eini_steps_memory_waits(d, i, &z, n);
      else st = eini_items_place(z.item, n, 0, z.alive, &bytes);
      if (place && st == EIN_OK) st = eini_steps_memory_has(d, i, away, bytes);
    }
  }
  if (st == EIN_OK && (uint64_t)d->temp_bytes > SIZE_MAX / 4) st = EIN_ERR_TOO_LARGE;
  eini_arena_free(&a);
  return st;
}

// ---- jobs ----

typedef struct eini_steps_jobs {
  ein_dist *d;
  int k;                    // the statement at hand
  eini_steps_stmt *e;
  int64_t *last, *end;      // by point: its task before, and after which the next one may begin
  int64_t *chain;           // by memory: after which a partial result is merged
  int64_t **turn;           // by statement: its moves in the order of their jobs
} eini_steps_jobs;

// The moves of a statement as their jobs come: in a step first what is fetched.
static ein_status eini_steps_turns(eini_arena *a, const ein_dist *d, int k, int64_t **turn) {
  const eini_steps_stmt *e = &d->steps[k];
  eini_turns x = {0, EINI_NEW(a, eini_ranked, e->nmove)};
  *turn = EINI_NEW(a, int64_t, e->nmove);
  if (*turn == NULL || x.heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < e->nmove; i++) {
    const eini_step_move *v = &e->move[i];
    const int64_t own = d->fabric.first + v->place, send = v->kind == EINI_JOB_SEND;
    eini_turns_add(&x, &d->fabric, 2 * v->step + (v->access == e->w.n->s->noperand),
                   send ? own : v->peer, send ? v->peer : own, i);
  }
  for (int64_t i = 0; i < e->nmove; i++) (*turn)[i] = eini_heap_pop(x.heap, &x.n).what;
  return EIN_OK;
}

// The moves and tasks of a statement, step by step: what is fetched, tasks, what goes home. turn:
// NULL, or the order of moves.
static void eini_steps_each(eini_steps_jobs *z, const int64_t *turn,
                            void (*move)(eini_steps_jobs *z, eini_step_move *v, int64_t i),
                            void (*task)(eini_steps_jobs *z, eini_step_task *t, int64_t i)) {
  eini_steps_stmt *e = z->e;
  const int n = e->w.n->s->noperand;
  int64_t v = 0, q = 0;
  while (v < e->nmove || q < e->ntask) {
    const int64_t step = q == e->ntask || (v < e->nmove && e->move[v].step < e->task[q].step)
                             ? e->move[v].step : e->task[q].step;
    for (; v < e->nmove && e->move[v].step == step && e->move[v].access < n; v++)
      move(z, &e->move[turn == NULL ? v : turn[v]], turn == NULL ? v : turn[v]);
    for (; q < e->ntask && e->task[q].step == step; q++) task(z, &e->task[q], q);
    for (; v < e->nmove && e->move[v].step == step && e->move[v].access == n; v++)
      move(z, &e->move[turn == NULL ? v : turn[v]], turn == NULL ? v : turn[v]);
  }
}

static void eini_steps_number_move(eini_steps_jobs *z, eini_step_move *v, int64_t i) {
  eini_jobs *j = &z->d->jobs;
  const int home = v->access == z->e->w.n->s->noperand;
  v->job = (int32_t)(j->n & INT32_MAX);
  if (v->kind != EINI_JOB_NONE)
    (void)eini_jobs_add(j, (eini_job_kind)v->kind, z->k, v->place, i);
  if (home && v->kind != EINI_JOB_SEND)
    (void)eini_jobs_add(j, EINI_JOB_ARRIVE, z->k, v->place, i);
}

// The jobs of a task: a block, or what is before its shares, these, and what is behind.
static void eini_steps_number_task(eini_steps_jobs *z, eini_step_task *t, int64_t i) {
  eini_jobs *j = &z->d->jobs;
  const int64_t place = eini_grid_place(z->e->w.n->grid, t->point) - z->d->fabric.first;
  t->job = eini_jobs_add(j, EINI_JOB_BLOCK, z->k, place, i);
  for (int k = 0; k < t->nshare; k++) (void)eini_jobs_add(j, EINI_JOB_SHARE, z->k, place + k, i);
  if (t->nshare > 0) (void)eini_jobs_add(j, EINI_JOB_JOIN, z->k, place, i);
  if (t->ends) (void)eini_jobs_add(j, EINI_JOB_GATE, z->k, place, 0);  // its result is away
}

static int64_t eini_steps_last(const eini_step_task *t) {
  return t->job + (t->nshare > 0 ? t->nshare + 1 : 0);
}

static int32_t eini_steps_gates(eini_steps_jobs *z, eini_job_kind kind) {
  const int64_t n = eini_steps_memories(z->d);
  const int32_t first = (int32_t)(z->d->jobs.n & INT32_MAX);
  for (int64_t i = 0; i < n; i++) (void)eini_jobs_add(&z->d->jobs, kind, z->k, i, i);
  return first;
}

static void eini_steps_number(void *user) {
  eini_steps_jobs *z = (eini_steps_jobs *)user;
  ein_dist *d = z->d;
  for (z->k = 0; z->k < d->nstmt; z->k++) {
    eini_steps_stmt *e = z->e = &d->steps[z->k];
    const int t = e->w.n->s->out, first = d->tensor[t].define[0] == z->k;
    e->room = first ? eini_steps_gates(z, EINI_JOB_GATE) : -1;
    e->zero = first && eini_steps_zeros(d, t) ? eini_steps_gates(z, EINI_JOB_ZERO) : -1;
    e->boxes = eini_steps_gates(z, EINI_JOB_GATE);
    e->inbox = eini_steps_gates(z, EINI_JOB_GATE);
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      e->over[i] = (int32_t)(d->jobs.n & INT32_MAX);
      for (int64_t r = 0; r < e->nround[i]; r++)
        (void)eini_jobs_add(&d->jobs, EINI_JOB_GATE, z->k, i, 0);
    }
    e->sums = e->whole ? -1 : eini_steps_gates(z, EINI_JOB_SUM);
    eini_steps_each(z, z->turn[z->k], eini_steps_number_move, eini_steps_number_task);
    e->finish = e->whole ? -1 : eini_steps_gates(z, EINI_JOB_FINISH);
    e->stored = eini_steps_gates(z, EINI_JOB_GATE);
    e->done = eini_steps_gates(z, EINI_JOB_GATE);
  }
}

// Job `to` waits for what memory i holds of a tensor.
static void eini_steps_wait_tensor(const eini_steps_jobs *z, int t, int64_t i, int64_t to) {
  const eini_dist_tensor *x = &z->d->tensor[t];
  for (int u = 0; u < x->ndefine && x->define[u] < z->d->nstmt; u++)
    eini_jobs_edge(&z->d->jobs, z->d->steps[x->define[u]].stored + i, to);
}

// Until the result of the statement at hand may be written there.
static void eini_steps_wait_room(const eini_steps_jobs *z, int64_t i, int64_t to) {
  const eini_steps_stmt *e = &z->d->steps[z->d->tensor[z->e->w.n->s->out].define[0]];
  eini_jobs_edge(&z->d->jobs, (e->zero >= 0 ? e->zero : e->room) + i, to);
}

// What comes home is there, or merged behind what came before.
static void eini_steps_wait_home(eini_steps_jobs *z, int64_t i, int64_t job) {
  const eini_steps_stmt *e = z->e;
  eini_jobs *j = &z->d->jobs;
  eini_jobs_edge(j, job, e->done + i);
  if (e->whole) {
    eini_steps_wait_room(z, i, job);
    eini_jobs_edge(j, job, e->stored + i);
  } else {
    eini_jobs_edge(j, z->chain[i], job);
    z->chain[i] = job;
  }
}

static void eini_steps_wait_move(eini_steps_jobs *z, eini_step_move *v, int64_t number) {
  const ein_dist *d = z->d;
  eini_steps_stmt *e = z->e;
  eini_jobs *j = &z->d->jobs;
  const int64_t i = eini_steps_memory(d, d->fabric.first + v->place), point = v->point - e->first;
  const int home = v->access == e->w.n->s->noperand, rounds = d->desc.no_overlap ? 1 : 2;
  (void)number;
  if (v->kind != EINI_JOB_NONE) {
    const int64_t over = e->over[i] + v->round;
    eini_jobs_edge(j, v->round < rounds ? e->inbox + i : over - rounds, v->job);
    eini_jobs_edge(j, v->job, over);
    eini_jobs_edge(j, v->job, e->done + i);
    if (home && v->kind == EINI_JOB_RECEIVE) eini_jobs_edge(j, v->job + 1, over);
  }
  if (!home && v->kind == EINI_JOB_SEND)
    eini_steps_wait_tensor(z, e->w.n->s->operand[v->access], i, v->job);
  if (!home) return;
  if (v->kind != EINI_JOB_RECEIVE) {
    eini_jobs_edge(j, z->last[point], v->job);
    eini_jobs_edge(j, v->job, z->end[point]);
  } else {
    eini_jobs_edge(j, v->job, v->job + 1);
  }
  if (v->kind != EINI_JOB_SEND) eini_steps_wait_home(z, i, v->job + (v->kind == EINI_JOB_RECEIVE));
}

static void eini_steps_wait_task(eini_steps_jobs *z, eini_step_task *t, int64_t number) {
  const ein_dist *d = z->d;
  eini_steps_stmt *e = z->e;
  const eini_stmt *s = e->w.n->s;
  eini_jobs *j = &z->d->jobs;
  const int64_t i = eini_steps_memory(d, eini_grid_place(e->w.n->grid, t->point));
  const int64_t point = t->point - e->first, last = eini_steps_last(t);
  int32_t round = -1;
  (void)number;
  eini_jobs_edge(j, z->end[point] >= 0 ? z->end[point] : e->boxes + i, t->job);
  for (int64_t m = t->first; m < t->first + t->nmove; m++) {
    const eini_step_move *v = &e->move[m];
    if (v->kind == EINI_JOB_SEND) continue;
    if (v->kind == EINI_JOB_NONE) {
      eini_steps_wait_tensor(z, s->operand[v->access], i, t->job);
      continue;
    }
    eini_jobs_edge(j, v->job, t->job);
    round = v->round;
  }
  if (round >= 0) eini_jobs_edge(j, t->job, e->over[i] + round);
  for (int k = 0; k < s->noperand && eini_steps_one(d); k++)
    eini_steps_wait_tensor(z, s->operand[k], i, t->job);
  for (int k = 1; k <= t->nshare; k++) {
    eini_jobs_edge(j, t->job, t->job + k);
    eini_jobs_edge(j, t->job + k, last);
  }
  eini_jobs_edge(j, last, e->done + i);
  z->last[point] = z->end[point] = last;
  if (!t->ends) return;
  z->end[point] = last + 1;
  eini_jobs_edge(j, last, last + 1);
}

static ein_status eini_steps_wait(void *user) {
  eini_steps_jobs *z = (eini_steps_jobs *)user;
  ein_dist *d = z->d;
  eini_jobs *j = &d->jobs;
  for (z->k = 0; z->k < d->nstmt; z->k++) {
    eini_steps_stmt *e = z->e = &d->steps[z->k];
    for (int64_t i = 0; i < e->npoint; i++) z->end[i] = -1;
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      z->chain[i] = e->sums + i;
      if (e->zero >= 0) eini_jobs_edge(j, e->room + i, e->zero + i);
      if (e->zero >= 0) eini_jobs_edge(j, e->zero + i, e->done + i);
      if (!e->whole) eini_jobs_edge(j, e->boxes + i, e->sums + i);
    }
    eini_steps_each(z, NULL, eini_steps_wait_move, eini_steps_wait_task);
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      if (!e->whole) eini_jobs_edge(j, z->chain[i], e->finish + i);
      if (!e->whole) eini_jobs_edge(j, e->finish + i, e->done + i);
      if (!e->whole) eini_jobs_edge(j, e->finish + i, e->stored + i);
      eini_steps_wait_room(z, i, e->whole ? e->stored + i : e->finish + i);
    }
  }
  return eini_steps_memory_all(d, 0);
}

static ein_status eini_steps_jobs_make(ein_dist *d) {
  eini_steps_jobs z;
  eini_arena a;
  int64_t most = 1;
  memset(&z, 0, sizeof z);
  z.d = d;
  for (int k = 0; k < d->nstmt; k++) most = eini_max64(most, d->steps[k].npoint);
  eini_arena_init(&a, &d->al);
  z.last = EINI_NEW(&a, int64_t, most);
  z.end = EINI_NEW(&a, int64_t, most);
  z.chain = EINI_NEW(&a, int64_t, eini_steps_memories(d));
  z.turn = EINI_NEW(&a, int64_t *, d->nstmt);
  ein_status st = z.last == NULL || z.end == NULL || z.chain == NULL || z.turn == NULL
                      ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_turns(&a, d, k, &z.turn[k]);
  if (st == EIN_OK)
    st = eini_jobs_make(&d->arena, &d->jobs, eini_steps_number, eini_steps_wait, &z);
  eini_arena_free(&a);
  return st;
}

// ================================================================================================
// >>steps-run  graphs under a schedule
// Takes a plan of steps and the bindings of one call; gives places what they hold, runs the jobs,
// and returns what places hold of outputs.
// ================================================================================================

typedef struct eini_steps_exec {
  const ein_dist *d;
  const ein_run *run;
  eini_staged *worker;
  ein_dist_stats *stats;    // NULL: not counted
  eini_flow flow;
} eini_steps_exec;

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_steps_layout(const ein_dist *d, eini_steps_exec *x, char *mem) {
  size_t n = 0;
  x->worker = (eini_staged *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  eini_dist_layout_flow(d, &x->flow, mem, &n);
  for (int i = 0; i < d->width; i++) {
    eini_staged none;
    eini_staged *w = mem == NULL ? &none : &x->worker[i];
    memset(w, 0, sizeof *w);
    w->d = d;
    w->run = x->run;
    n += eini_steps_scratch(d, w, mem == NULL ? NULL : mem + n);
  }
  char *all = (char *)eini_dist_carve(mem, &n, eini_dist_clocked(d) ? 0 : d->temp_bytes, 1);
  for (int i = 0; i < d->width && mem != NULL; i++) x->worker[i].mem = all;
  return n;
}

// ---- jobs ----

// Tells who asks for events. level: see ein_dist_event.
static ein_status eini_steps_event(const eini_staged *x, int level, int worker, const eini_job *j,
                                   int64_t step, double begin) {
  const ein_dist *d = x->d;
  ein_dist_event v;
  if (d->desc.event_fn == NULL) return EIN_OK;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = (int)x->place;
  v.level = level;
  v.worker = worker;
  v.step = step;
  v.begin = begin;
  v.end = eini_dist_now(d);
  return d->desc.event_fn(d->desc.event_user, &v);
}

// Merges the block of a step into the partial result.
static ein_status eini_steps_join(eini_staged *x) {
  const eini_step_point *pt = &x->point;
  const eini_step_box *acc = &pt->box[x->stmt->noperand];
  const int rank = x->stmt->nfree;
  int64_t shape[EINI_NAMES_MAX];
  if (!pt->apart) return EIN_OK;
  if (x->e->folder == NULL)
    return eini_steps_merge_run(x, x->stmt->fold, pt->merge,
                                eini_steps_at(acc, rank, pt->lo, x->e->wide), pt->block.data);
  for (int r = 0; r < rank; r++) shape[r] = pt->hi[r] - pt->lo[r];
  eini_steps_states(x->e->folder, rank, shape, acc, pt->lo,
                    eini_steps_volume(rank, pt->lo, pt->hi), pt->block.data);
  return EIN_OK;
}

// Computes the block of a step, or its share, which are at hand.
static ein_status eini_steps_compute(eini_staged *x) {
  const eini_step_point *pt = &x->point;
  const eini_step_box *to = pt->apart ? &pt->block : &pt->box[x->stmt->noperand];
  void *out[4] = {NULL, NULL, NULL, NULL};
  out[0] = pt->to;
  if (x->e->folder != NULL) {
    eini_steps_identity(x, to);
    eini_states_at(x->e->folder, eini_steps_volume(x->stmt->nfree, to->lo, to->hi), to->data, out);
  }
  return eini_steps_execute(x, pt->plan, pt->in, out, pt->param);
}

// Zeros for all elements of a box at the place at hand.
static ein_status eini_steps_clear(const eini_staged *x, const eini_step_box *b, int rank,
                                   size_t size) {
  char zero[16] = {0};
  int64_t shape[EINI_NAMES_MAX], none[EINI_NAMES_MAX] = {0};
  const eini_dist_end from = eini_dist_end_of(EINI_AT_BOX, zero, none, 0);
  const eini_dist_end to = eini_dist_end_of(EINI_AT_BOX, b->data, b->stride, b->away);
  for (int r = 0; r < rank; r++) shape[r] = b->hi[r] - b->lo[r];
  if (b->data == NULL || eini_zrange_empty(rank, b->lo, b->hi)) return EIN_OK;
  return eini_own_carry(x->d, x->place, rank, shape, &to, &from, b->stride, none, size);
}

// What the point at hand fetched goes into its boxes.
static ein_status eini_steps_fetched(eini_staged *x, const eini_step_task *t, const eini_job *j,
                                     int worker) {
  const eini_stmt *s = x->stmt;
  const double begin = eini_dist_now(x->d);
  int received = 0;
  for (int k = 0; k < s->noperand && !eini_steps_one(x->d); k++) {
    const eini_tensor *e = &x->d->g->tensor[s->operand[k]];
    const eini_step_box *b = &x->point.box[k];
    if (x->w.nowners[k] > 0 && x->w.again[k] < 0 && eini_tour_due(&x->w, t->step, k, 0) &&
        eini_steps_zeros(x->d, s->operand[k]))
      EINI_TRY(eini_steps_clear(x, b, e->rank, ein_dtype_size(e->dtype)));
  }
  for (int64_t i = t->first; i < t->first + t->nmove; i++) {
    const eini_step_move *v = &x->e->move[i];
    if (v->kind == EINI_JOB_SEND) continue;
    received |= v->kind == EINI_JOB_RECEIVE;
    EINI_TRY(eini_steps_fetch(x, v, &x->point.box[v->access]));
  }
  return received ? eini_steps_event(x, EINI_STEPS_FETCHES, worker, j, t->step, begin) : EIN_OK;
}

// A block, a share of one, or what is behind shares.
static ein_status eini_steps_task_run(eini_staged *x, const eini_job *j, int worker) {
  const eini_step_task *t = &x->e->task[j->arg];
  const int64_t share = (j - x->d->jobs.job) - t->job - 1;
  eini_steps_goto(x, t->point);
  x->place = x->w.move.place;  // of a share, too
  eini_steps_boxes(x, t->step);
  if (j->kind == EINI_JOB_BLOCK) EINI_TRY(eini_steps_fetched(x, t, j, worker));
  const double begin = eini_dist_now(x->d);
  EINI_TRY(eini_steps_block(x, t, j->kind == EINI_JOB_BLOCK));
  if (x->point.plan < 0 || (j->kind == EINI_JOB_BLOCK && t->nshare > 0)) return EIN_OK;
  if (j->kind == EINI_JOB_JOIN) return eini_steps_join(x);
  if (j->kind == EINI_JOB_SHARE) {
    if (!eini_steps_share(x, t->step, share, t->nshare)) return EIN_OK;
    EINI_TRY(eini_steps_share_plan(x));
  }
  EINI_TRY(eini_steps_compute(x));
  if (j->kind == EINI_JOB_BLOCK) EINI_TRY(eini_steps_join(x));
  return eini_steps_event(x, -1, worker, j, t->step, begin);
}

// Posts a message. What it should hold may be missing: it is posted nevertheless.
static ein_status eini_steps_post(eini_steps_exec *x, int worker, const eini_job *j, int failed,
                                  ein_ticket *ticket) {
  eini_staged *w = &x->worker[worker];
  const ein_fabric *f = &x->d->fabric;
  const eini_step_move *v = &w->e->move[j->arg];
  const int home = v->access == w->stmt->noperand, send = v->kind == EINI_JOB_SEND;
  const int own = f->first + v->place;
  const double begin = eini_dist_now(x->d);
  ein_status st = EIN_OK;
  if (eini_dist_clocked(x->d))
    return send ? f->send_fn(f->user, own, v->peer, v->tag, NULL, (size_t)v->bytes, ticket)
                : f->recv_fn(f->user, own, v->peer, v->tag, NULL, (size_t)v->bytes, ticket);
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  if (send && !failed && home) st = eini_steps_homeward(w, v);
  else if (send && !failed) st = eini_steps_fetch(w, v, NULL);
  const eini_dist_end message = eini_steps_message(w, v);
  const eini_own_wire wire = {send, message.away, v->peer, v->group, v->turns, v->turn, own, v->tag,
                              v->bytes};
  const ein_status posted = eini_own_wired(x->d, &x->flow, &wire, message.data, ticket);
  if (posted != EIN_OK || st != EIN_OK || failed) return posted != EIN_OK ? posted : st;
  return send && home ? eini_steps_event(w, EINI_STEPS_SENDS, worker, j, v->step, begin)
                      : EIN_OK;
}

// Seconds of a job on the fabric's machine: a block, or what is merged where it arrives.
static double eini_steps_takes(eini_staged *x, const eini_job *j) {
  const ein_machine *m = x->d->fabric.machine;
  const eini_step_point *pt = &x->point;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  if (j->kind == EINI_JOB_ARRIVE && !x->e->whole)
    return eini_merge_seconds(m, (double)(x->e->move[j->arg].bytes / (int64_t)x->e->wide));
  if (j->kind != EINI_JOB_BLOCK) return 0;
  eini_steps_goto(x, x->e->task[j->arg].point);
  eini_tour_values(&x->w, x->e->task[j->arg].step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  return eini_zrange_empty(x->stmt->nindex, pt->lo, pt->hi)
             ? 0 : eini_machine_cost(m, x->d->g, x->stmt, NULL, &b).seconds;
}

// On a clock: a job is over.
static ein_status eini_steps_job_over(void *user, const eini_job *j, double begin, double end) {
  const eini_steps_exec *x = (const eini_steps_exec *)user;
  const ein_dist *d = x->d;
  const eini_steps_stmt *e = &d->steps[j->stmt];
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = -1;
  v.begin = begin;
  v.end = end;
  eini_dist_timed(x->stats, v.place, j, begin, end);
  if (d->desc.event_fn == NULL || (j->kind != EINI_JOB_RECEIVE && j->kind != EINI_JOB_BLOCK &&
                                   (j->kind != EINI_JOB_ARRIVE || e->whole)))
    return EIN_OK;
  if (j->kind == EINI_JOB_ARRIVE) {
    v.step = e->move[j->arg].step;
    v.level = 0;
    v.operand = -1;
  } else if (j->kind == EINI_JOB_RECEIVE) {
    const eini_step_move *u = &e->move[j->arg];
    v.level = EINI_EVENT_MESSAGE;
    v.step = u->step;
    v.from = u->peer;
    v.operand = u->access == e->w.n->s->noperand ? -1 : u->access;
    v.bytes = u->bytes;
  } else {
    v.step = e->task[j->arg].step;
  }
  return d->desc.event_fn(d->desc.event_user, &v);
}

static ein_status eini_steps_job_run(void *user, int worker, const eini_job *j, int failed,
                                     ein_ticket *ticket) {
  eini_steps_exec *x = (eini_steps_exec *)user;
  eini_staged *w = &x->worker[worker];
  eini_steps_on(w, j->stmt);
  w->place = x->d->fabric.first + j->place;
  if (j->kind == EINI_JOB_RECEIVE || j->kind == EINI_JOB_SEND)
    return eini_steps_post(x, worker, j, failed, ticket);
  if (failed) return EIN_OK;
  if (eini_dist_clocked(x->d))
    return x->d->fabric.compute_fn(x->d->fabric.user, x->d->fabric.first + j->place, j->stmt,
                                   eini_steps_takes(w, j), ticket);
  if (j->kind == EINI_JOB_ARRIVE) return eini_steps_homeward(w, &w->e->move[j->arg]);
  if (j->kind == EINI_JOB_SUM) return eini_steps_sum_begin(w, j->arg);
  if (j->kind == EINI_JOB_FINISH) return eini_steps_sum_end(w, j->arg);
  if (j->kind != EINI_JOB_ZERO) return eini_steps_task_run(w, j, worker);
  const eini_tensor *t = &x->d->g->tensor[w->stmt->out];
  const eini_step_box b = eini_steps_home(w, w->stmt->out, j->arg);
  return eini_steps_clear(w, &b, t->rank, ein_dtype_size(t->dtype));
}

static void eini_steps_job_done(void *user, int worker, const eini_job *j) {
  (void)user, (void)worker, (void)j;
}

// ---- between the caller and places ----

// A tensor between a place and the memory of the caller.
typedef struct eini_steps_handing {
  const eini_staged *x;
  const eini_stmt *s;       // whose free indices the boxes are of
  int back;                 // from the place to the caller
  size_t size;
  eini_step_box place, caller;
} eini_steps_handing;

static ein_status eini_steps_give(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_handing *c = (const eini_steps_handing *)user;
  const int n = c->s->nfree;
  int64_t shape[EINI_NAMES_MAX], a[EINI_NAMES_MAX], b[EINI_NAMES_MAX];
  if (eini_zrange_empty(n, lo, hi)) return EIN_OK;
  for (int i = 0; i < n; i++) shape[i] = hi[i] - lo[i];
  const eini_dist_end p = eini_steps_written(c->s, &c->place, lo, c->size, a);
  const eini_dist_end w = eini_steps_written(c->s, &c->caller, lo, c->size, b);
  return eini_own_carry(c->x->d, c->x->place, n, shape, c->back ? &w : &p, c->back ? &p : &w,
                        c->back ? b : a, c->back ? a : b, c->size);
}

// What places hold of an input, from the caller, or, of an output, to it.
static ein_status eini_steps_hand(eini_staged *x, int t, eini_arena *a) {
  const ein_dist *d = x->d;
  const eini_tensor *e = &d->g->tensor[t];
  eini_steps_handing c;
  int64_t zero[EINI_NAMES_MAX] = {0}, shape[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  eini_owners *o;
  int n;
  memset(&c, 0, sizeof c);
  c.x = x;
  c.back = e->role == EIN_ROLE_OUTPUT;
  c.size = ein_dtype_size(e->dtype);
  for (int r = 0; r < e->rank; r++) shape[r] = e->shape[r], stride[r] = d->tensor[t].stride[r];
  c.caller.lo = zero, c.caller.hi = shape, c.caller.stride = stride;
  c.caller.data = eini_dist_bound(d, x->run, t, 0);
  EINI_TRY(eini_schedule_owners(a, d->desc.schedule, t, &o, &n));
  if (c.back && eini_steps_zeros(d, t)) EINI_TRY(eini_steps_clear(x, &c.caller, e->rank, c.size));
  for (int64_t q = 0; q < eini_steps_memories(d); q++) {
    c.place = eini_steps_home(x, t, q);
    x->place = d->fabric.first + q;
    for (int i = 0; i < n && !d->home[(int64_t)t * eini_steps_memories(d) + q].own; i++) {
      c.s = o[i].s;
      EINI_TRY(eini_owners_boxes(a, d->g, &o[i], d->fabric.first + q, eini_steps_give, &c));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_hand_all(eini_staged *x, ein_role role) {
  const ein_graph *g = x->d->g;
  ein_status st = EIN_OK;
  for (int t = 0; t < g->ntensor && st == EIN_OK; t++) {
    eini_arena a;
    if (g->tensor[t].role != role || x->d->desc.blocks) continue;
    eini_arena_init(&a, &x->d->al);
    st = eini_steps_hand(x, t, &a);
    eini_arena_free(&a);
  }
  return st;
}

// What the places of this process did.
static void eini_steps_count(const ein_dist *d, ein_dist_stats *stats) {
  for (int k = 0; k < d->nstmt; k++) {
    for (int64_t i = 0; i < d->fabric.count; i++) {
      const int64_t *n = &d->steps[k].total[4 * i];
      const eini_dist_read r = {n[2], n[1], NULL};
      eini_dist_count(stats, k, d->fabric.first + i, n[0], &r);
      eini_dist_sent(stats, d->fabric.first + i, n[3]);
    }
  }
}

// Runs in `mem`, in which places have what they hold of inputs.
static ein_status eini_steps_run(eini_steps_exec *x, ein_dist_stats *stats) {
  x->flow.run_fn = eini_steps_job_run;
  x->flow.done_fn = eini_steps_job_done;
  x->flow.over_fn = eini_steps_job_over;
  x->flow.user = x;
  x->stats = stats;
  ein_status st = eini_flow_all(&x->flow, &x->d->executor);
  if (st == EIN_OK && !eini_dist_clocked(x->d))
    st = eini_steps_hand_all(&x->worker[0], EIN_ROLE_OUTPUT);
  st = eini_own_end(x->d, st);
  if (st == EIN_OK) eini_steps_count(x->d, stats);
  return eini_dist_failed(x->run, st, x->d->width, x->worker[0].error, sizeof *x->worker);
}

static ein_status eini_steps_begin(const ein_dist *d, const ein_run *run, char *mem,
                                   eini_steps_exec *x) {
  const uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  memset(x, 0, sizeof *x);
  x->d = d;
  x->run = run;
  (void)eini_steps_layout(d, x, mem + skew);
  return eini_dist_clocked(d) ? EIN_OK : eini_steps_hand_all(&x->worker[0], EIN_ROLE_INPUT);
}

// ---- plans ----

// Why a statement cannot be run so; NULL: it can.
static const char *eini_steps_reason(const ein_schedule *sc, int k) {
  const eini_stmt *s = &sc->g->stmt[k];
  const eini_loops *n = &sc->nest[k];
  int used[EINI_NAMES_MAX] = {0};
  int64_t coef;
  eini_owners o;
  memset(&o, 0, sizeof o);
  eini_schedule_home(sc, k, &o);
  if (n->loop == NULL) return "it has too many indices";
  if (o.d == NULL) return "nothing says where its result lies: place it";
  if (sc->g->ordered && !eini_order_exact(sc->g, s) && eini_loops_folds(n, n->nstep - 1))
    return "it is deterministic, and its fold would be cut";
  if (s->out_map.rows > EINI_NAMES_MAX || s->nfree > EINI_NAMES_MAX)
    return "its result has too many axes";
  for (int r = 0; r < s->out_map.rows && o.rows; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    if (eini_map_terms(&s->out_map, r) > 1 || (i >= 0 && used[i]++))
      return "its result is placed, and not written by an index for each axis";
  }
  return NULL;
}

// The peaks of the places of this process, which the machine of the schedule must have; other
// processes look after theirs.
static ein_status eini_steps_peaks(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  const eini_places own = {d->fabric.first, (int64_t)d->fabric.first + d->fabric.count};
  double *place = EINI_NEW(&d->arena, double, d->fabric.places);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (place == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_schedule_rooms(&d->arena, s, own, d->desc.inputs, NULL, place));
  for (int q = 0; q < d->fabric.count; q++)
    d->peak[q] = (int64_t)place[d->fabric.first + q];
  for (int64_t q = own.from; q < own.to; q++)
    if (s->machine.memory > 0 && place[q] > s->machine.memory)
      return eini_dist_refuse(ctx, EIN_ERR_TOO_LARGE, "under the schedule a place has %.0f bytes "
                              "alive, more than the %.0f it may have", place[q],
                              s->machine.memory);
  return EIN_OK;
}

// Plans of all blocks, and what moves.
static ein_status eini_steps_noted(ein_dist *d) {
  const int64_t memories = eini_steps_memories(d);
  eini_steps_noting z;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  memset(&z, 0, sizeof z);
  z.x.d = d;
  z.x.plans = &d->plans;
  const size_t bytes = eini_steps_scratch(d, &z.x, NULL);
  char *scratch = EINI_NEW(&a, char, bytes);
  for (int i = 0; i < 2; i++) z.tag[i] = EINI_NEW(&a, int32_t, memories * d->fabric.places);
  ein_status st = scratch == NULL || z.tag[0] == NULL || z.tag[1] == NULL ? EIN_ERR_NO_MEMORY
                                                                           : EIN_OK;
  if (st == EIN_OK) (void)eini_steps_scratch(d, &z.x, scratch);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_stmt_init(d, k);
  for (int t = 0; t < d->g->ntensor && st == EIN_OK; t++) st = eini_steps_tensor(d, t);
  if (st == EIN_OK) st = eini_steps_hulls(&a, &z);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_derive(d, k, &z);
  if (st == EIN_OK) eini_steps_settle_inputs(d);
  d->spare = z.x.spare_bytes;
  eini_arena_free(&a);
  return st;
}

// Is the schedule of this graph, and for these places?
static ein_status eini_steps_fits(ein_ctx *ctx, const ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  if (s->g != d->g) return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is of another "
                                                                  "graph");
  if (s->grid == NULL || s->grid->places != d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is not for the fabric's places");
  for (int k = 0; k < d->nstmt; k++) {
    const char *why = eini_steps_reason(s, k);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  return EIN_OK;
}

static ein_status eini_steps_prepare(ein_ctx *ctx, ein_dist *d) {
  const int64_t memories = eini_steps_memories(d);
  ein_dist_stats made;
  memset(&made, 0, sizeof made);
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->steps = EINI_NEW(&d->arena, eini_steps_stmt, d->nstmt);
  d->home = EINI_NEW(&d->arena, eini_step_home, d->g->ntensor * memories);
  d->start = EINI_NEW(&d->arena, int64_t, memories);
  if (!d->fabric.shared) d->kept = EINI_NEW(&d->arena, char *, 1);
  if (made.stmt_bytes == NULL || d->steps == NULL || d->home == NULL || d->start == NULL ||
      (!d->fabric.shared && d->kept == NULL))
    return EIN_ERR_NO_MEMORY;
  ein_status st = eini_steps_noted(d);
  if (st == EIN_OK) st = eini_steps_memory_all(d, 1);
  if (st == EIN_OK) st = eini_steps_jobs_make(d);
  if (st == EIN_ERR_TOO_LARGE)
    return eini_dist_refuse(ctx, st, "there are too many points and steps to run");
  EINI_TRY(st);
  EINI_TRY(eini_steps_peaks(ctx, d));
  eini_steps_count(d, &made);
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
}

// ================================================================================================
// >>steps-groups  boxes that many places fetch in a step
// Takes the moves of a process that drives one place under a schedule; gives those of a box, from
// one holder, a turn in the group of all places that fetch it.
// ================================================================================================

typedef struct eini_steps_grouping {
  eini_dist_groups groups;
  eini_staged x;
  int64_t *order;           // of a statement's moves
  int64_t *from, *to;       // the box at hand
} eini_steps_grouping;

// What all places of a group order its messages by.
static int eini_steps_group_before(const eini_step_move *a, const eini_step_move *b) {
  if (a->step != b->step) return a->step < b->step;
  if (a->access != b->access) return a->access < b->access;
  return a->owner != b->owner ? a->owner < b->owner : a->pieces < b->pieces;
}

// The moves that a group may make, in that order; they nearly are. Returns how many.
static int64_t eini_steps_group_order(const ein_dist *d, const eini_steps_stmt *e,
                                      int64_t *order) {
  int64_t n = 0;
  if (e->w.n->grid->npoint > d->fabric.places) return 0;
  for (int64_t i = 0; i < e->nmove; i++) {
    const eini_step_move *v = &e->move[i];
    int several = v->kind == EINI_JOB_NONE || v->access == e->w.n->s->noperand || v->pieces < 0;
    const ein_distribution *held = several ? NULL : e->w.owners[v->access][v->owner].d;
    for (int m = 0; held != NULL && m < held->grid->ndim; m++)  // who of them sends, depends
      several |= held->held[m].kind == EINI_HELD_EVERY && held->grid->dim[m].extent > 1;
    if (several) continue;
    int64_t at = n++;
    for (; at > 0 && eini_steps_group_before(v, &e->move[order[at - 1]]); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return n;
}

// The places that fetch what v moves, and its holder, into z->groups.reader.
static void eini_steps_group_readers(eini_steps_grouping *z, const eini_step_move *v, int holder) {
  eini_staged *x = &z->x;
  eini_dist_groups *g = &z->groups;
  const int rank = x->d->g->tensor[x->stmt->operand[v->access]].rank;
  g->nreader = 0;
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  for (int r = 0; r < rank; r++) z->from[r] = x->w.from[r], z->to[r] = x->w.to[r];
  for (int64_t point = 0; point < x->w.n->grid->npoint; point++) {
    eini_steps_goto(x, point);
    if (x->w.move.place == holder || !eini_tour_works(&x->w) ||
        !eini_tour_box(&x->w, v->step, v->access)) continue;
    int same = 1;
    for (int r = 0; r < rank && same; r++)
      same = z->from[r] == x->w.from[r] && z->to[r] == x->w.to[r];
    if (same) g->reader[g->nreader++] = (int)x->w.move.place;
  }
  g->reader[g->nreader++] = holder;
  eini_dist_group_sort(g->nreader, g->reader);
}

// Does move v go to a place of group number g?
static int eini_steps_group_has(const eini_dist_groups *x, int g, const eini_step_move *v) {
  for (int i = x->first[g]; i < x->first[g + 1]; i++)
    if (x->place[i] == v->peer) return 1;
  return 0;
}

static ein_status eini_steps_group_stmt(ein_dist *d, int k, eini_steps_grouping *z) {
  eini_steps_stmt *e = &d->steps[k];
  eini_dist_groups *x = &z->groups;
  const int q = d->fabric.first;
  if ((z->order = EINI_NEW(&x->arena, int64_t, e->nmove)) == NULL) return EIN_ERR_NO_MEMORY;
  const int64_t n = eini_steps_group_order(d, e, z->order);
  eini_steps_on(&z->x, k);
  for (int64_t i = 0; i < n; i++) {
    eini_step_move *v = &e->move[z->order[i]];
    const int sends = v->kind == EINI_JOB_SEND;
    for (int64_t j = i - 1; j >= 0 && sends && v->group == -1; j--) {  // the same once more?
      const eini_step_move *u = &e->move[z->order[j]];
      if (eini_steps_group_before(u, v)) break;
      if (u->group >= 0 && eini_steps_group_has(x, u->group, v)) v->group = -2 - u->group;
    }
    if (v->group != -1) continue;
    eini_steps_group_readers(z, v, sends ? q : v->peer);
    if (x->nreader < EINI_DIST_GROUP) continue;
    const int g = eini_dist_group_of(x, x->nreader);
    if (g < 0) return EIN_ERR_NO_MEMORY;
    v->group = g;
    v->turn = x->turns[g]++;
  }
  return EIN_OK;
}

// Collective: all processes have made their plans.
static ein_status eini_steps_groups_make(ein_dist *d) {
  eini_steps_grouping z;
  eini_dist_groups *x = &z.groups;
  if (d->fabric.groups_fn == NULL) return EIN_OK;
  memset(&z, 0, sizeof z);
  eini_arena_init(&x->arena, &d->al);
  z.x.d = d;
  char *scratch = EINI_NEW(&x->arena, char, eini_steps_scratch(d, &z.x, NULL));
  x->reader = EINI_NEW(&x->arena, int, (int64_t)d->fabric.places + 1);
  z.from = EINI_NEW(&x->arena, int64_t, d->rank);
  z.to = EINI_NEW(&x->arena, int64_t, d->rank);
  ein_status st = scratch == NULL || x->reader == NULL || z.from == NULL || z.to == NULL
                      ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) (void)eini_steps_scratch(d, &z.x, scratch);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_group_stmt(d, k, &z);
  const ein_status all = eini_dist_groups_number(d, x, &st);
  for (int k = 0; k < d->nstmt && st == EIN_OK && all == EIN_OK; k++)
    for (int64_t i = 0; i < d->steps[k].nmove; i++)
      (void)eini_dist_group_said(x, &d->steps[k].move[i].group, &d->steps[k].move[i].turns);
  eini_arena_free(&x->arena);
  return all;
}

// ================================================================================================
// >>dist-public  fabrics, plans and runs
// Takes what callers give, checks it, and calls the sections above.
// ================================================================================================

static ein_status eini_fabric_init(int places, const char *name, ein_fabric *f) {
  if (f == NULL) return EIN_ERR_ARGUMENT;
  memset(f, 0, sizeof *f);
  if (places < 1 || places > EIN_PLACES_MAX) return EIN_ERR_ARGUMENT;
  f->name = name;
  f->places = f->count = places;
  f->shared = 1;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_serial(int places, ein_fabric *fabric) {
  return eini_fabric_init(places, "serial", fabric);
}

EIN_API ein_status ein_fabric_threads(int places, ein_fabric *fabric) {
  EINI_TRY(eini_fabric_init(places, "threads", fabric));
  fabric->threads = 1;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_copying(ein_ctx *ctx, int places, ein_fabric *fabric) {
  eini_arena arena;  // for the allocator alone
  EINI_TRY(eini_fabric_init(places, "copying", fabric));
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  eini_posts *c = (eini_posts *)arena.al.alloc_fn(sizeof *c, 16, arena.al.user);
  if (c == NULL) {
    memset(fabric, 0, sizeof *fabric);
    return EIN_ERR_NO_MEMORY;
  }
  memset(c, 0, sizeof *c);
  c->al = arena.al;
  fabric->shared = 0;
  fabric->user = c;
  fabric->send_fn = eini_copying_send;
  fabric->recv_fn = eini_copying_recv;
  fabric->test_fn = eini_copying_test;
  fabric->wait_fn = eini_copying_wait;
  fabric->memory_fn = eini_copying_memory;
  fabric->destroy_fn = eini_copying_destroy;
  return EIN_OK;
}

EIN_API ein_status ein_fabric_sim(ein_ctx *ctx, int places, const ein_machine *machine,
                                  ein_fabric *fabric) {
  eini_arena arena;
  eini_timer *c;
  EINI_TRY(eini_fabric_init(places, "sim", fabric));
  if (ctx != NULL) eini_begin_call(ctx, NULL);
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_validate_machine(eini_diag_of(ctx), machine);
  if (st == EIN_OK) st = eini_timer_make(&arena, places, machine, &c);
  if (st != EIN_OK) {
    eini_arena_free(&arena);
    memset(fabric, 0, sizeof *fabric);
    return st;
  }
  c->arena = arena;
  fabric->shared = 0;
  fabric->user = c;
  fabric->machine = &c->machine;
  fabric->send_fn = eini_timer_send;
  fabric->recv_fn = eini_timer_recv;
  fabric->wait_fn = eini_timer_wait;
  fabric->room_fn = eini_timer_start;
  fabric->compute_fn = eini_timer_compute;
  fabric->next_fn = eini_timer_next;
  fabric->destroy_fn = eini_timer_destroy;
  return EIN_OK;
}

EIN_API void ein_fabric_moved(const ein_fabric *fabric, int64_t *messages, int64_t *bytes) {
  const eini_posts *own = NULL;
  if (fabric != NULL && fabric->send_fn == eini_copying_send)
    own = (const eini_posts *)fabric->user;
  if (fabric != NULL && fabric->send_fn == eini_timer_send)
    own = &((const eini_timer *)fabric->user)->posts;
  if (messages != NULL) *messages = own != NULL ? own->messages : 0;
  if (bytes != NULL) *bytes = own != NULL ? own->bytes : 0;
}

EIN_API void ein_fabric_destroy(ein_fabric *fabric) {
  if (fabric != NULL && fabric->destroy_fn != NULL) fabric->destroy_fn(fabric->user);
  if (fabric != NULL) memset(fabric, 0, sizeof *fabric);
}

static ein_status eini_dist_check(ein_ctx *ctx, const ein_graph *g, const ein_dist_desc *e) {
  EINI_TRY(eini_validate_graph(ctx, g, e->nlayout, e->layout, NULL));
  const ein_fabric *f = e->fabric;
  if (f != NULL && (f->places < 1 || f->places > EIN_PLACES_MAX || f->first < 0 || f->count < 1 ||
                    f->first + f->count > f->places))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric has no sane places");
  if (f != NULL && !f->shared && (f->send_fn == NULL || f->recv_fn == NULL || f->wait_fn == NULL))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric cannot move data");
  if (f != NULL && f->machine != NULL &&
      (f->shared || f->count < f->places || f->compute_fn == NULL || f->next_fn == NULL))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric's clock is not one of all places");
  if (f != NULL && f->count < f->places && f->agree_fn == NULL)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric's processes cannot agree");
  if (e->decomposition != NULL) {
    ein_decomp_info info;
    ein_decomposition_info(e->decomposition, &info);
    if (info.nstmt != g->nstmt)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the decomposition is of another graph");
  }
  return EIN_OK;
}

// Why places do not hold one box of a tensor each: those of this process, under a schedule.
static ein_status eini_dist_boxless(const ein_dist *d, int t, const char **why) {
  int64_t lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], n;
  *why = d->desc.schedule == NULL ? eini_dist_not_boxes(d, t) : NULL;
  if (d->desc.schedule != NULL && d->g->tensor[t].rank > EINI_NAMES_MAX)
    *why = "it has too many axes";
  for (int q = 0; q < d->fabric.count && d->desc.schedule != NULL && *why == NULL; q++)
    EINI_TRY(eini_steps_owned(d, t, d->fabric.first + q, lo, hi, &n, why));
  return EIN_OK;
}

// Can a run bind the blocks of its places?
static ein_status eini_dist_check_blocks(ein_ctx *ctx, const ein_dist *d) {
  const char *why = d->fabric.shared ? "places that share memory hold no blocks of their own"
                    : d->desc.nlayout > 0 ? "blocks are dense, a layout is of whole tensors" : NULL;
  if (!d->desc.blocks) return EIN_OK;
  if (why != NULL) return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "blocks: %s", why);
  for (int t = 0; t < d->g->ntensor; t++) {
    const ein_role role = d->g->tensor[t].role;  // of inputs cuts are always boxes
    if (role == EIN_ROLE_TEMP || (role == EIN_ROLE_INPUT && d->desc.schedule == NULL)) continue;
    EINI_TRY(eini_dist_boxless(d, t, &why));
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "the blocks of '%.60s' cannot be bound: %s",
                              d->g->tensor[t].name, why);
  }
  return EIN_OK;
}

// The parts of statement k; NULL: it is not cut.
static ein_status eini_dist_parts_of(ein_ctx *ctx, const ein_dist *d, int k, ein_parts *room,
                                     const ein_parts **parts) {
  *parts = d->desc.parts == NULL ? NULL : &d->desc.parts[k];
  if (d->desc.decomposition != NULL) {
    EINI_TRY(ein_decomposition_parts(d->desc.decomposition, k, room));
    *parts = room;
  }
  return *parts == NULL ? EIN_OK
                        : eini_dist_check_parts(ctx, d->g, &d->g->stmt[k], k, d->fabric.places,
                                                *parts);
}

static ein_status eini_dist_stmts(ein_ctx *ctx, ein_dist *d, eini_dist_shapes *shapes,
                                  eini_dist_room *room) {
  for (int k = 0; k < d->nstmt; k++) {
    ein_parts own;
    const ein_parts *parts;
    EINI_TRY(eini_dist_parts_of(ctx, d, k, &own, &parts));
    ein_status st = eini_dist_stmt_init(d, k, parts, shapes, room);
    if (st != EIN_OK && d->plans.ctx->diag.count > 0 && ctx != NULL)
      return eini_dist_refuse(ctx, st, "statement %d, '%.60s': %s", k,
                              d->g->tensor[d->g->stmt[k].out].name,
                              ein_ctx_message(d->plans.ctx));
    EINI_TRY(st);
  }
  return EIN_OK;
}

static ein_status eini_dist_build(ein_ctx *ctx, ein_dist *d) {
  eini_dist_room room;
  eini_dist_shapes shapes;
  int rank = 1;
  for (int64_t t = 0; t < d->g->ntensor; t++)
    if (d->g->tensor[t].rank > rank) rank = d->g->tensor[t].rank;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    if (s->nindex > rank) rank = s->nindex;
    if (s->noperand > rank) rank = s->noperand;
  }
  d->rank = rank < 2 ? 2 : rank;
  if (!eini_dist_room_init(&d->arena, d->rank, &room)) return EIN_ERR_NO_MEMORY;
  d->stmt = EINI_NEW(&d->arena, eini_dist_stmt, d->nstmt + d->g->ntensor);
  if (d->stmt == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_tensors(d));
  EINI_TRY(eini_dist_pins(ctx, d));
  EINI_TRY(eini_dist_ctx(ctx, d->fabric.threads, &d->plans.ctx));
  eini_dist_provider(d);
  d->held = EINI_NEW(&d->arena, void *, d->fabric.count);
  d->held_bytes = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (d->held == NULL || d->held_bytes == NULL) return EIN_ERR_NO_MEMORY;
  d->plans.a = &d->arena;
  d->plans.path = d->desc.path;
  if (d->desc.schedule != NULL) {
    EINI_TRY(eini_steps_fits(ctx, d));
    EINI_TRY(eini_dist_check_blocks(ctx, d));
    return eini_steps_prepare(ctx, d);
  }
  memset(&shapes, 0, sizeof shapes);
  eini_forms_init(&shapes.forms, &d->arena, 0);
  const ein_status st = eini_dist_stmts(ctx, d, &shapes, &room);
  eini_forms_free(&shapes.forms);
  EINI_TRY(st);
  EINI_TRY(eini_dist_check_blocks(ctx, d));
  if (!d->fabric.shared && (d->kept = EINI_NEW(&d->arena, char *, 1)) == NULL)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(d->fabric.shared ? eini_dist_memory(d) : eini_dist_copies_init(d, &room));
  EINI_TRY(eini_dist_peaks(d, &room));
  return eini_dist_jobs(d, &room);
}

// ---- what all processes must be given alike ----

static size_t eini_print_graph(const void *x, char *buf, size_t size) {
  return ein_graph_print((const ein_graph *)x, buf, size);
}

static size_t eini_print_schedule(const void *x, char *buf, size_t size) {
  return ein_schedule_print((const ein_schedule *)x, buf, size);
}

// A number for a text.
static ein_status eini_print_hash(const ein_allocator *al, const void *x,
                                  size_t (*fn)(const void *x, char *buf, size_t size),
                                  uint64_t *hash) {
  const size_t n = fn(x, NULL, 0) + 1;
  char *text = (char *)al->alloc_fn(n, 1, al->user);
  if (text == NULL) return EIN_ERR_NO_MEMORY;
  (void)fn(x, text, n);
  *hash = eini_hash(text, n, 1);
  al->free_fn(text, n, al->user);
  return EIN_OK;
}

static uint64_t eini_parts_hash(const ein_parts *p, uint64_t hash) {
  hash = eini_hash(&p->ntask, sizeof p->ntask, hash);
  if (p->nindex > 0) hash = eini_hash(p->cut, (size_t)p->nindex * sizeof *p->cut, hash);
  if (p->norder > 0) hash = eini_hash(p->order, (size_t)p->norder * sizeof *p->order, hash);
  return hash;
}

enum { EINI_SAME_GRAPH, EINI_SAME_CUTS, EINI_SAME_SCHEDULE, EINI_SAME_DESC, EINI_SAME_WORDS };

// What a plan is made of, as numbers.
static ein_status eini_dist_words(const ein_allocator *al, const ein_graph *g,
                                  const ein_dist_desc *e, uint64_t *word) {
  const int64_t said[4] = {e->blocks != 0, e->no_overlap != 0, (int64_t)e->inputs,
                           e->fabric->places};
  uint64_t cuts = (uint64_t)(e->decomposition != NULL);
  ein_parts parts;
  EINI_TRY(eini_print_hash(al, g, eini_print_graph, &word[EINI_SAME_GRAPH]));
  for (int k = 0; k < (int)g->nstmt && e->decomposition != NULL; k++)
    if (ein_decomposition_parts(e->decomposition, k, &parts) == EIN_OK)
      cuts = eini_parts_hash(&parts, cuts);
  for (int t = 0; t < (int)g->ntensor && e->decomposition != NULL; t++)
    if (ein_decomposition_pin(e->decomposition, t, &parts) == EIN_OK)
      cuts = eini_parts_hash(&parts, cuts + (uint64_t)t);
  for (int k = 0; k < (int)g->nstmt && e->parts != NULL; k++)
    cuts = eini_parts_hash(&e->parts[k], cuts);
  for (int t = 0; t < (int)g->ntensor && e->parts != NULL && e->pins != NULL; t++)
    if (e->pins[t].ntask > 0) cuts = eini_parts_hash(&e->pins[t], cuts + (uint64_t)t);
  word[EINI_SAME_CUTS] = cuts;
  if (e->schedule != NULL)
    EINI_TRY(eini_print_hash(al, e->schedule, eini_print_schedule, &word[EINI_SAME_SCHEDULE]));
  word[EINI_SAME_DESC] = eini_hash(said, sizeof said, 1);
  return EIN_OK;
}

// Do all processes say the same? st: whether this one can say. what: for the message, per word.
static ein_status eini_dist_same(ein_ctx *ctx, const ein_fabric *f, ein_status st, int64_t n,
                                 uint64_t *word, const char *const *what) {
  int64_t first = n;
  if (f->same_fn == NULL || f->count == f->places) return st;
  if (st != EIN_OK) memset(word, 0, (size_t)n * sizeof *word);
  const ein_status failed = f->same_fn(f->user, n, word, &first);
  if (failed != EIN_OK) return failed;
  if (first == n && st == EIN_OK) return st;
  const ein_status all = eini_dist_agree(f, st);  // nobody goes on
  if (all != EIN_OK)
    return st != EIN_OK ? all : eini_dist_refuse(ctx, all, "another process: %s",
                                                 ein_status_text(all));
  return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "processes have different %s", what[first]);
}

// Checks what a plan is made of, on all processes.
static ein_status eini_dist_check_all(ein_ctx *ctx, const ein_graph *g, const ein_dist_desc *e) {
  static const char *const what[EINI_SAME_WORDS] = {
      "graphs, or sizes of them", "decompositions or parts", "schedules",
      "descriptions: blocks, no_overlap, inputs or places"};
  uint64_t word[EINI_SAME_WORDS] = {0, 0, 0, 0};
  eini_arena arena;  // for the allocator alone
  ein_status st = eini_dist_check(ctx, g, e);
  if (e->fabric == NULL || e->fabric->same_fn == NULL) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  if (st == EIN_OK) st = eini_dist_words(&arena.al, g, e, word);
  return eini_dist_same(ctx, e->fabric, st, EINI_SAME_WORDS, word, what);
}

EIN_API ein_status ein_dist_create(ein_ctx *ctx, const ein_graph *graph, const ein_dist_desc *desc,
                                   ein_dist **out) {
  ein_dist_desc none;
  eini_arena arena;
  memset(&none, 0, sizeof none);
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (desc == NULL) desc = &none;
  if (ein_decomposition_graph(desc->decomposition) != NULL && graph != NULL)
    graph = ein_decomposition_graph(desc->decomposition);
  eini_begin_call(ctx, NULL);
  ein_status st = eini_dist_check_all(ctx, graph, desc);
  if (st != EIN_OK) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_dist *d = EINI_NEW(&arena, ein_dist, 1);
  if (d == NULL)
    return desc->fabric == NULL ? EIN_ERR_NO_MEMORY
                                : eini_dist_agree(desc->fabric, EIN_ERR_NO_MEMORY);
  d->arena = arena;
  d->al = arena.al;
  d->g = desc->schedule != NULL && desc->schedule->of == graph ? desc->schedule->g : graph;
  d->desc = *desc;
  d->nstmt = (int)d->g->nstmt;
  eini_fabric_init(1, "serial", &d->fabric);
  if (desc->fabric != NULL) d->fabric = *desc->fabric;
  d->executor.width = 1;
  if (ctx != NULL) {
    d->executor = ctx->executor;
    d->now_fn = ctx->now_fn;
    d->now_user = ctx->now_user;
  }
  d->width = d->fabric.threads && d->executor.parallel_for != NULL ? d->executor.width : 1;
  if (d->width < 1 || !EINI_DIST_THREADS || eini_dist_clocked(d)) d->width = 1;
  st = eini_dist_build(ctx, d);
  eini_ctx_free(d->plans.ctx);
  d->plans.ctx = NULL;
  st = eini_dist_agree(&d->fabric, st);
  if (st == EIN_OK) st = d->steps != NULL ? eini_steps_groups_make(d) : eini_dist_groups_make(d);
  if (st != EIN_OK) {
    ein_dist_destroy(d);
    if (ctx != NULL && ctx->diag.count == 0)
      eini_dist_refuse(ctx, st, "%s", ein_status_text(st));
    return st;
  }
  eini_dist_exec x;
  eini_steps_exec y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  d->workspace = EINI_ALIGN + (d->steps != NULL ? eini_steps_layout(d, &y, NULL)
                                                : eini_dist_layout(d, &x, NULL));
  d->info.places = d->fabric.places;
  d->info.nstmt = d->nstmt;
  d->info.workspace_bytes = d->workspace;
  d->info.plan_bytes = d->arena.total;
  d->info.nplan = (int)d->plans.n;
  for (int i = 0; i < d->fabric.count; i++)
    d->info.peak_bytes = eini_max64(d->info.peak_bytes, d->peak[i]);
  *out = d;
  return EIN_OK;
}

EIN_API void ein_dist_destroy(ein_dist *d) {
  if (d == NULL) return;
  eini_arena arena = d->arena;
  eini_own_release(d);
  if (d->kept != NULL && *d->kept != NULL) d->al.free_fn(*d->kept, d->workspace, d->al.user);
  eini_block_plans_end(&d->plans);
  eini_arena_free(&arena);
}

EIN_API ein_status ein_dist_info_get(const ein_dist *d, ein_dist_info *info) {
  if (d == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = d->info;
  return EIN_OK;
}

EIN_API int64_t ein_dist_peak(const ein_dist *d, int place) {
  return d == NULL || !eini_dist_driven(d, place) ? 0 : d->peak[place - d->fabric.first];
}

EIN_API int64_t ein_dist_bytes(const ein_dist *d, int stmt) {
  return d == NULL || stmt < 0 || stmt >= d->nstmt ? 0 : d->stmt[stmt].bytes;
}

// The same under a schedule.
static ein_status eini_dist_step_block(const ein_dist *d, int t, int place, int64_t *origin,
                                       int64_t *extent, int64_t *elements) {
  int64_t lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], n;
  const int rank = d->g->tensor[t].rank;
  const char *why;
  if (rank > EINI_NAMES_MAX) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_steps_owned(d, t, place, lo, hi, &n, &why));
  if (why != NULL) return EIN_ERR_UNSUPPORTED;
  for (int r = 0; r < rank; r++) {
    if (origin != NULL) origin[r] = lo[r];
    if (extent != NULL) extent[r] = hi[r] - lo[r];
  }
  if (elements != NULL) *elements = n;
  return EIN_OK;
}

EIN_API ein_status ein_dist_block(const ein_dist *d, int tensor, int place, int64_t *origin,
                                  int64_t *extent, int64_t *elements) {
  if (d == NULL || tensor < 0 || tensor >= d->g->ntensor || place < 0 ||
      place >= d->fabric.places) return EIN_ERR_ARGUMENT;
  if (d->desc.schedule != NULL)
    return eini_dist_step_block(d, tensor, place, origin, extent, elements);
  if (eini_dist_not_boxes(d, tensor) != NULL) return EIN_ERR_UNSUPPORTED;
  const int there = eini_dist_owns(d, tensor, place);
  for (int r = 0; r < d->g->tensor[tensor].rank; r++) {
    int64_t lo = 0, hi = 0;
    if (there) eini_dist_own(d, tensor, place, r, &lo, &hi);
    if (origin != NULL) origin[r] = lo;
    if (extent != NULL) extent[r] = hi - lo;
  }
  if (elements != NULL) *elements = eini_dist_own_elements(d, tensor, place);
  return EIN_OK;
}

EIN_API size_t ein_dist_kernels(const ein_dist *d, int stmt, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  const eini_task *task;
  eini_task room;
  if (d == NULL || stmt < 0 || stmt >= d->nstmt) return 0;
  if (d->steps == NULL && d->stmt[stmt].nown < 1) return 0;
  const int64_t k = d->steps != NULL ? d->steps[stmt].plan - 1 : d->stmt[stmt].plan[0];
  const ein_plan *p = k < 0 || k >= d->plans.n ? NULL : d->plans.plan[k];
  for (int i = 0, n = 0; p != NULL && i < p->ntask; i++) {
    for (int j = 0; (task = eini_task_inner(&p->task[i], j, &room)) != NULL; j++) {
      if (n++ > 0) eini_say(&t, "\n");
      eini_say_kernel(&t, task);
    }
  }
  return t.at;
}

// ---- runs ----

static ein_status eini_dist_error(const ein_run *run, ein_status st, const char *what,
                                  const char *name) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s '%s'", what, name);
  return st;
}

// How many addresses a run binds for an input or output.
static int eini_dist_nbound(const ein_dist *d) { return d->desc.blocks ? d->fabric.count : 1; }

// The bytes of what a run binds as the i-th of a tensor: *a is their first; 0: there are none.
static int eini_dist_span(const ein_dist *d, const ein_run *run, int t, int i, uintptr_t *a,
                          uintptr_t *b) {
  const eini_dist_tensor *x = &d->tensor[t];
  int64_t lo = x->lo, hi = x->hi;
  if (x->port < 0) return 0;
  if (d->desc.blocks) {
    lo = 0;
    hi = d->steps != NULL ? d->home[(int64_t)t * d->fabric.count + i].bytes
                          : eini_dist_own_elements(d, t, d->fabric.first + i) *
                                (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
  }
  const uintptr_t p = (uintptr_t)eini_dist_bound(d, run, t, i);
  *a = p + (uintptr_t)lo;
  *b = p + (uintptr_t)hi;
  return lo != hi;
}

// Do the outputs overlap each other or inputs? By their address intervals.
static ein_status eini_dist_overlaps(const ein_dist *d, const ein_run *run) {
  const int64_t n = eini_dist_nbound(d);
  uintptr_t a, b, from, to;
  for (int64_t k = 0; k < d->g->ntensor * n; k++) {
    const int t = (int)(k / n);
    if (d->g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    if (!eini_dist_span(d, run, t, (int)(k % n), &a, &b)) continue;
    for (int64_t j = 0; j < d->g->ntensor * n; j++)
      if (j != k && eini_dist_span(d, run, (int)(j / n), (int)(j % n), &from, &to) && a < to &&
          from < b)
        return eini_dist_error(run, EIN_ERR_OVERLAP, "an output overlaps",
                               d->g->tensor[j / n].name);
  }
  return EIN_OK;
}

static ein_status eini_dist_check_run(const ein_dist *d, const ein_run *run) {
  uintptr_t a, b;
  if (d == NULL) return EIN_ERR_ARGUMENT;
  if (eini_dist_clocked(d)) return EIN_OK;  // nothing is bound
  const int n = eini_dist_nbound(d);
  EINI_TRY(eini_run_begin(run, d->nin * n, d->nout * n));
  for (int t = 0; t < d->g->ntensor; t++)
    for (int i = 0; i < n; i++)
      if (eini_dist_span(d, run, t, i, &a, &b) && eini_dist_bound(d, run, t, i) == NULL)
        return eini_dist_error(run, EIN_ERR_ARGUMENT, "no data for", d->g->tensor[t].name);
  EINI_TRY(eini_params_check(d->g, run));
  return eini_dist_overlaps(d, run);
}

// Base addresses of tensors and the values of params.
static void eini_dist_bind(eini_dist_exec *x, char *mem) {
  const ein_dist *d = x->d;
  for (int64_t t = 0; t < d->g->ntensor; t++) {
    const eini_dist_tensor *e = &d->tensor[t];
    x->base[t] = mem;  // empty tensors: addresses are formed
    if (e->port >= 0 && e->lo != e->hi) x->base[t] = eini_dist_bound(d, x->run, (int)t, 0);
    else if (e->item >= 0) x->base[t] = x->temp + d->item[e->item].at;
  }
  for (int i = 0; i < d->width; i++) {
    for (int64_t k = 0; k < d->g->nparam; k++) {
      int given = x->run->param != NULL && x->run->param[k].set;
      x->worker[i].param[k] = given ? x->run->param[k] : d->g->param[k].value;
    }
  }
}

static void eini_dist_stats_clear(ein_dist_stats *stats) {
  stats->tasks = stats->messages = stats->bytes = 0;
  stats->seconds = 0;
  for (int64_t k = 0; stats->stmt_bytes != NULL && k < stats->nstmt; k++) stats->stmt_bytes[k] = 0;
  for (int64_t q = 0; stats->place != NULL && q < stats->nplace; q++)
    memset(&stats->place[q], 0, sizeof *stats->place);
}

// Runs in `mem`.
static ein_status eini_dist_run(const ein_dist *d, const ein_run *run, ein_dist_stats *stats,
                                char *mem) {
  const uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  eini_dist_exec x;
  memset(&x, 0, sizeof x);
  x.d = d;
  x.run = run;
  x.stats = stats;
  eini_dist_layout(d, &x, mem + skew);
  if (!eini_dist_clocked(d)) eini_dist_bind(&x, mem + skew);
  x.flow.run_fn = eini_dist_job_run;
  x.flow.done_fn = eini_dist_job_done;
  x.flow.over_fn = eini_dist_job_over;
  x.flow.user = &x;
  const ein_status st = eini_own_end(d, eini_flow_all(&x.flow, &d->executor));
  for (int i = 0; i < d->width && x.worker[i].sent != NULL; i++)
    for (int q = 0; q < d->fabric.places; q++) eini_dist_sent(stats, q, x.worker[i].sent[q]);
  return eini_dist_failed(run, st, d->width, x.worker[0].error, sizeof *x.worker);
}

// The memory of a run: the caller's, or the plan's own, which it keeps where only one run at a time
// may be under way; *own: to be freed.
static ein_status eini_dist_room_of(const ein_dist *d, const ein_run *run, char **mem,
                                    char **own) {
  *mem = run == NULL ? NULL : (char *)run->workspace;
  if (*mem != NULL && run->workspace_bytes < d->workspace) return eini_run_small(run, d->workspace);
  if (*mem == NULL && d->kept != NULL) *mem = *d->kept;
  if (*mem != NULL) return EIN_OK;
  *mem = (char *)d->al.alloc_fn(d->workspace, EINI_ALIGN, d->al.user);
  if (d->kept != NULL) *d->kept = *mem;
  else *own = *mem;
  return *mem == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

EIN_API ein_status ein_dist_execute(const ein_dist *d, const ein_run *run, ein_dist_stats *stats) {
  ein_status st = eini_dist_check_run(d, run);
  char *mem = NULL, *own = NULL;
  eini_steps_exec x;
  if (d == NULL) return st;
  const ein_fabric *f = &d->fabric;
  const int64_t moved = d->copies != NULL ? d->copies->total : d->temp_bytes;
  if (stats != NULL) eini_dist_stats_clear(stats);
  if (st == EIN_OK) st = eini_dist_room_of(d, run, &mem, &own);
  if (st == EIN_OK) st = eini_own_hold(d);
  if (st == EIN_OK && d->steps != NULL) st = eini_steps_begin(d, run, mem, &x);
  if (st == EIN_OK && f->room_fn != NULL) st = f->room_fn(f->user, d->jobs.ntransfer, moved);
  st = eini_dist_agree(f, st);  // before anybody waits for a message
  if (st == EIN_OK)
    st = eini_dist_agree(f, d->steps != NULL ? eini_steps_run(&x, stats)
                                             : eini_dist_run(d, run, stats, mem));
  if (own != NULL) d->al.free_fn(own, d->workspace, d->al.user);
  return st;
}

// ================================================================================================
// >>nodes  which process drives which places, where nodes have several
// Takes what places send each other under a plan; gives runs of places to processes so that few
// bytes go between nodes: grids turned over, one node filled after the other, then exchanges.
// ================================================================================================

enum { EINI_NODES_MOST = 2048 };

typedef struct eini_nodes {
  int n, nnode;             // runs of places and processes; nodes
  int64_t places;
  const int *node;          // per process, from 0 in the order in which they come
  int *room;                // per node: how many processes it has
  double *w;                // [n][n]: bytes between two runs, either way
  double *near;             // [n][nnode]: bytes between a run and all those of a node
  int *at, *best;           // per run: a node
} eini_nodes;

static void eini_nodes_add(eini_nodes *x, int64_t from, int64_t to, double bytes) {
  const int a = (int)(((from + 1) * x->n - 1) / x->places);
  const int b = (int)(((to + 1) * x->n - 1) / x->places);
  if (a == b) return;
  x->w[(int64_t)a * x->n + b] += bytes;
  x->w[(int64_t)b * x->n + a] += bytes;
}

static void eini_nodes_sim(void *user, const ein_sim_move *m) {
  eini_nodes_add((eini_nodes *)user, m->from, m->to, m->bytes);
}

static ein_status eini_nodes_step(void *user, const ein_schedule_move *m) {
  eini_nodes_add((eini_nodes *)user, m->from, m->to, (double)m->bytes);
  return EIN_OK;
}

static double eini_nodes_between(const eini_nodes *x, const int *at) {
  double bytes = 0;
  for (int a = 0; a < x->n; a++)
    for (int b = 0; b < a; b++)
      if (at[a] != at[b]) bytes += x->w[(int64_t)a * x->n + b];
  return bytes;
}

// Exchanges two runs while that helps.
static void eini_nodes_exchange(eini_nodes *x) {
  const int n = x->n, k = x->nnode;
  for (int a = 0; a < n; a++) {
    for (int b = 0; b < k; b++) x->near[a * k + b] = 0;
    for (int b = 0; b < n; b++) x->near[a * k + x->at[b]] += x->w[(int64_t)a * n + b];
  }
  for (int better = 1; better;) {
    better = 0;
    for (int a = 0; a < n; a++) {
      for (int b = 0; b < a; b++) {
        const int u = x->at[a], v = x->at[b];
        const double gain = x->near[a * k + v] - x->near[a * k + u] + x->near[b * k + u] -
                            x->near[b * k + v] - 2 * x->w[(int64_t)a * n + b];
        if (u == v || gain < 0.5) continue;  // bytes are whole
        for (int c = 0; c < n; c++) {
          const double change = x->w[(int64_t)c * n + b] - x->w[(int64_t)c * n + a];
          x->near[c * k + u] += change;
          x->near[c * k + v] -= change;
        }
        x->at[a] = v;
        x->at[b] = u;
        better = 1;
      }
    }
  }
}

// Fills nodes with runs, in the order of a grid of t columns that is turned over.
static void eini_nodes_turned(eini_nodes *x, int t) {
  int node = 0, used = 0;
  for (int i = 0; i < x->n; i++, used++) {
    while (used == x->room[node]) used = 0, node++;
    x->at[i % (x->n / t) * t + i / (x->n / t)] = node;
  }
}

// Fills nodes one after another, each with what has most to do with those that it has; run `seed`
// first, at node `seed` of them, in turn.
static void eini_nodes_grown(eini_nodes *x, int seed) {
  const int n = x->n;
  double *to = x->near;  // here of the node at hand
  for (int a = 0; a < n; a++) x->at[a] = -1;
  for (int k = 0, next = seed; k < x->nnode; k++, next = -1) {
    const int node = (seed + k) % x->nnode;
    for (int a = 0; a < n; a++) to[a] = 0;
    for (int used = 0; used < x->room[node]; used++, next = -1) {
      for (int a = 0; a < n && (used > 0 || k > 0); a++)
        if (x->at[a] < 0 && (next < 0 || to[a] > to[next])) next = a;
      x->at[next] = node;
      for (int a = 0; a < n; a++) to[a] += x->w[(int64_t)a * n + next];
    }
  }
}

// The best of several beginnings, in x->best; the first is that nothing changes.
static void eini_nodes_search(eini_nodes *x, double *between) {
  const int grown = x->n <= 64 ? x->n : 64 * 64 / x->n + 1;
  double least = eini_nodes_between(x, x->node);
  between[0] = least;
  for (int a = 0; a < x->n; a++) x->best[a] = x->node[a];
  for (int t = 0; t < x->n + grown; t++) {
    if (t > 0 && t < x->n && x->n % t != 0) continue;
    for (int a = 0; a < x->n && t == 0; a++) x->at[a] = x->node[a];
    if (t >= x->n) eini_nodes_grown(x, t - x->n);
    else if (t > 0) eini_nodes_turned(x, t);
    eini_nodes_exchange(x);
    const double bytes = eini_nodes_between(x, x->at);
    if (bytes > least - 0.5) continue;
    least = bytes;
    memcpy(x->best, x->at, (size_t)x->n * sizeof *x->at);
  }
  between[1] = least;
}

// Processes of the nodes that were found: those stay that can.
static void eini_nodes_processes(eini_nodes *x, int *process) {
  int *taken = x->at;
  memset(taken, 0, (size_t)x->n * sizeof *taken);
  for (int a = 0; a < x->n; a++) {
    process[a] = x->best[a] == x->node[a] ? a : -1;
    if (process[a] >= 0) taken[a] = 1;
  }
  for (int a = 0; a < x->n; a++) {
    for (int s = 0; s < x->n && process[a] < 0; s++) {
      if (taken[s] || x->node[s] != x->best[a]) continue;
      process[a] = s;
      taken[s] = 1;
    }
  }
}

// What places send each other.
static ein_status eini_nodes_count(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *d,
                                   const ein_schedule *s, eini_nodes *x) {
  ein_sim_desc desc;
  ein_sim_info info;
  memset(&desc, 0, sizeof desc);
  desc.move_fn = eini_nodes_sim;
  desc.user = x;
  if (d != NULL) return ein_simulate(ctx, g, d, &desc, &info);
  for (int k = 0; k < (int)g->nstmt; k++) {
    ein_schedule_info one;
    EINI_TRY(ein_schedule_cost(ctx, s, k, eini_nodes_step, x, &one));
  }
  return EIN_OK;
}

// Numbers nodes in the order in which they come; given: by any names.
static ein_status eini_nodes_init(eini_arena *a, int n, const int *given, eini_nodes *x) {
  int *node = EINI_NEW(a, int, n);
  x->n = n;
  x->room = EINI_NEW(a, int, n);
  x->at = EINI_NEW(a, int, n);
  x->best = EINI_NEW(a, int, n);
  x->w = EINI_NEW(a, double, (int64_t)n * n);
  if (node == NULL || x->room == NULL || x->at == NULL || x->best == NULL || x->w == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < n; s++) {
    int k = 0;
    while (k < s && given[k] != given[s]) k++;
    node[s] = k < s ? node[k] : x->nnode++;
    x->room[node[s]]++;
  }
  x->node = node;
  x->near = EINI_NEW(a, double, (int64_t)n * x->nnode);
  return x->near == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

EIN_API ein_status ein_nodes_map(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                 const ein_schedule *s, int places, int n, const int *node,
                                 int *process, double *between) {
  eini_arena arena;
  eini_nodes x;
  double bytes[2];
  memset(&x, 0, sizeof x);
  if (graph == NULL || (d == NULL) == (s == NULL) || n < 1 || places < n || node == NULL ||
      process == NULL) return EIN_ERR_ARGUMENT;
  for (int a = 0; a < n; a++) process[a] = a;
  if (n > EINI_NODES_MOST) return EIN_ERR_TOO_LARGE;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  x.places = places;
  ein_status st = eini_nodes_init(&arena, n, node, &x);
  if (st == EIN_OK && x.nnode > 1) st = eini_nodes_count(ctx, graph, d, s, &x);
  if (st == EIN_OK) {
    eini_nodes_search(&x, bytes);
    eini_nodes_processes(&x, process);
    if (between != NULL) between[0] = bytes[0], between[1] = bytes[1];
  }
  eini_arena_free(&arena);
  return st;
}

// ================================================================================================
// >>layout  what places hold of a tensor, and what two such layouts have in common
// Takes distributions and plans; gives blocks: of every axis a piece, which is ranges of it. Blocks
// are apart and cover the tensor; each lies at one place or more.
// ================================================================================================

typedef struct eini_layout {
  int rank, places;
  const int64_t *shape;
  int64_t *npiece;          // per axis
  eini_runs **piece;        // per axis: its pieces, which are apart and cover it
  int64_t nblock;           // numbered by their pieces, row-major
  int64_t *nholder, **holder;  // per block: places that have it, ascending
  int64_t *nheld, **held;   // per place: blocks, ascending
} eini_layout;

// The piece of axis r that a block has.
static const eini_runs *eini_layout_piece(const eini_layout *l, int64_t block, int r) {
  for (int i = l->rank - 1; i > r; i--) block /= l->npiece[i];
  return &l->piece[r][block % l->npiece[r]];
}

static int64_t eini_layout_elements(const eini_layout *l, int64_t block) {
  int64_t n = 1;
  for (int r = 0; r < l->rank; r++) n *= eini_layout_piece(l, block, r)->length;
  return n;
}

// Begins a layout; npiece is filled next, then pieces.
static ein_status eini_layout_begin(eini_arena *a, int rank, const int64_t *shape, int places,
                                    eini_layout *l) {
  int64_t count;
  memset(l, 0, sizeof *l);
  EINI_TRY(eini_view_elements(rank, shape, &count));
  int64_t *own = EINI_NEW(a, int64_t, rank);
  l->npiece = EINI_NEW(a, int64_t, rank);
  l->piece = EINI_NEW(a, eini_runs *, rank);
  if (own == NULL || l->npiece == NULL || l->piece == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < rank; r++) own[r] = shape[r];
  l->rank = rank;
  l->places = places;
  l->shape = own;
  l->nblock = 1;
  return EIN_OK;
}

// Room for npiece[r] pieces of every axis, and for lists of blocks and places.
static ein_status eini_layout_room(eini_arena *a, eini_layout *l) {
  for (int r = 0; r < l->rank; r++) {
    if (eini_mul_overflow(l->nblock, l->npiece[r], &l->nblock)) return EIN_ERR_TOO_LARGE;
    l->piece[r] = EINI_NEW(a, eini_runs, l->npiece[r]);
    if (l->piece[r] == NULL) return EIN_ERR_NO_MEMORY;
  }
  l->nholder = EINI_NEW(a, int64_t, l->nblock);
  l->holder = EINI_NEW(a, int64_t *, l->nblock);
  l->nheld = EINI_NEW(a, int64_t, l->places);
  l->held = EINI_NEW(a, int64_t *, l->places);
  return l->nholder == NULL || l->holder == NULL || l->nheld == NULL || l->held == NULL
             ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Blocks are said to lie at places, one after another: first counted, then kept. Those of one block
// come in ascending order, the same may come again.
static void eini_layout_count(eini_layout *l, int64_t block, int64_t place) {
  l->nholder[block]++;
  l->nheld[place]++;
}

static ein_status eini_layout_counted(eini_arena *a, eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    if ((l->holder[k] = EINI_NEW(a, int64_t, l->nholder[k])) == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t q = 0; q < l->places; q++)
    if ((l->held[q] = EINI_NEW(a, int64_t, l->nheld[q])) == NULL) return EIN_ERR_NO_MEMORY;
  memset(l->nholder, 0, (size_t)l->nblock * sizeof *l->nholder);
  memset(l->nheld, 0, (size_t)l->places * sizeof *l->nheld);
  return EIN_OK;
}

static void eini_layout_keep(eini_layout *l, int64_t block, int64_t place) {
  const int64_t n = l->nholder[block];
  if (n > 0 && l->holder[block][n - 1] == place) return;
  l->holder[block][l->nholder[block]++] = place;
}

// Blocks of places, from places of blocks.
static void eini_layout_end(eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    for (int64_t i = 0; i < l->nholder[k]; i++)
      l->held[l->holder[k][i]][l->nheld[l->holder[k][i]]++] = k;
}

// ---- of a distribution ----

// The block that a point has; -1: none.
static int64_t eini_layout_point(const eini_owners *o, const int64_t *coord) {
  const ein_grid *g = o->d->grid;
  int64_t block = 0;
  for (int m = 0; m < g->ndim; m++)
    if (o->d->held[m].kind == EINI_HELD_AT && o->d->held[m].at != coord[m]) return -1;
  for (int r = 0; r < o->d->rank; r++)
    for (int k = 0; k < o->axis[r].ndim; k++) {
      const int m = o->axis[r].dim[k];
      block = block * g->dim[m].extent + coord[m];
    }
  return block;
}

static ein_status eini_layout_of(eini_arena *a, const ein_distribution *d, const int64_t *shape,
                                 eini_layout *l) {
  const ein_grid *g = d->grid;
  eini_owners o;
  eini_stmt *axes;
  memset(&o, 0, sizeof o);
  EINI_TRY(eini_layout_begin(a, d->rank, shape, (int)g->places, l));
  EINI_TRY(eini_stmt_of_axes(a, d->rank, shape, &axes));
  o.d = d;
  o.s = axes;
  EINI_TRY(eini_owners_init(a, shape, &o));
  for (int r = 0; r < l->rank; r++) l->npiece[r] = o.axis[r].n;
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < l->rank; r++) l->piece[r] = o.axis[r].run;
  for (int kept = 0; kept < 2; kept++) {
    if (kept) EINI_TRY(eini_layout_counted(a, l));
    for (int64_t point = 0; point < g->npoint; point++) {
      eini_grid_coords(g, point, o.coord);
      const int64_t block = eini_layout_point(&o, o.coord), place = eini_grid_place(g, point);
      if (block < 0) continue;
      if (kept) eini_layout_keep(l, block, place);
      else eini_layout_count(l, block, place);
    }
  }
  eini_layout_end(l);
  return EIN_OK;
}

// ---- of a plan, and of a whole tensor ----

// Axis r in one piece, or in n equal ones.
static ein_status eini_layout_equal(eini_arena *a, eini_layout *l, int r) {
  for (int64_t k = 0; k < l->npiece[r]; k++) {
    eini_runs *p = &l->piece[r][k];
    EINI_TRY(eini_runs_add(a, p, eini_piece_start(l->shape[r], l->npiece[r], k),
                           eini_piece_start(l->shape[r], l->npiece[r], k + 1)));
  }
  return EIN_OK;
}

// Whole at places [from, to).
static ein_status eini_layout_whole(eini_arena *a, int rank, const int64_t *shape, int places,
                                    int from, int to, eini_layout *l) {
  EINI_TRY(eini_layout_begin(a, rank, shape, places, l));
  for (int r = 0; r < rank; r++) l->npiece[r] = 1;
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < rank; r++) EINI_TRY(eini_layout_equal(a, l, r));
  for (int q = from; q < to; q++) eini_layout_count(l, 0, q);
  EINI_TRY(eini_layout_counted(a, l));
  for (int q = from; q < to; q++) eini_layout_keep(l, 0, q);
  eini_layout_end(l);
  return EIN_OK;
}

// What ein_dist_block says of a tensor whose blocks are boxes.
static ein_status eini_layout_of_plan(eini_arena *a, const ein_dist *d, int t, eini_layout *l) {
  const eini_tensor *e = &d->g->tensor[t];
  const int places = d->fabric.places;
  const ein_schedule *s = d->desc.schedule;
  if (s != NULL && s->place[t] != NULL) return eini_layout_of(a, s->place[t], e->shape, l);
  if (s != NULL || d->tensor[t].ndefine == 0)
    return eini_layout_whole(a, e->rank, e->shape, places, 0, places, l);
  const eini_space *x = &d->stmt[d->tensor[t].define[0]].space;
  EINI_TRY(eini_layout_begin(a, e->rank, e->shape, places, l));
  for (int r = 0; r < e->rank; r++) {
    const int i = eini_plain_row(&x->s->out_map, r);
    l->npiece[r] = i < 0 ? 1 : x->cut[i];
  }
  EINI_TRY(eini_layout_room(a, l));
  for (int r = 0; r < e->rank; r++) EINI_TRY(eini_layout_equal(a, l, r));
  for (int kept = 0; kept < 2; kept++) {
    if (kept) EINI_TRY(eini_layout_counted(a, l));
    for (int64_t block = 0; block < l->nblock; block++) {
      int64_t place = 0, left = block;  // its home: pieces of reduced indices are 0
      for (int r = e->rank - 1; r >= 0; r--) {
        const int i = eini_plain_row(&x->s->out_map, r);
        if (i >= 0 && x->cut[i] > 1) place += left % l->npiece[r] * x->weight[i];
        left /= l->npiece[r];
      }
      if (kept) eini_layout_keep(l, block, place);
      else eini_layout_count(l, block, place);
    }
  }
  eini_layout_end(l);
  return EIN_OK;
}

// ---- two layouts ----

// Block number i of those at a place that have elements, from *at on; -1: no more.
static int64_t eini_layout_next(const eini_layout *l, int64_t place, int64_t *at) {
  while (*at < l->nheld[place]) {
    const int64_t block = l->held[place][(*at)++];
    if (eini_layout_elements(l, block) > 0) return block;
  }
  return -1;
}

// Has every place the same of both?
static int eini_layout_same(const eini_layout *a, const eini_layout *b) {
  for (int64_t q = 0; q < a->places; q++) {
    int64_t i = 0, j = 0, x, y;
    do {
      x = eini_layout_next(a, q, &i);
      y = eini_layout_next(b, q, &j);
      if ((x < 0) != (y < 0)) return 0;
      for (int r = 0; r < a->rank && x >= 0; r++) {
        const eini_runs *u = eini_layout_piece(a, x, r), *v = eini_layout_piece(b, y, r);
        if (u->n != v->n || memcmp(u->v, v->v, 2 * (size_t)u->n * sizeof *u->v) != 0) return 0;
      }
    } while (x >= 0);
  }
  return 1;
}

static ein_status eini_runs_common(eini_arena *a, const eini_runs *x, const eini_runs *y,
                                 eini_runs *r) {
  memset(r, 0, sizeof *r);
  for (int64_t i = 0, j = 0; i < x->n && j < y->n;) {
    const int64_t xe = x->v[2 * i + 1], ye = y->v[2 * j + 1];
    EINI_TRY(eini_runs_add(a, r, eini_max64(x->v[2 * i], y->v[2 * j]), eini_min64(xe, ye)));
    if (xe <= ye) i++;
    if (ye <= xe) j++;
  }
  return EIN_OK;
}

// Do they meet? Without memory.
static int eini_runs_overlap(const eini_runs *x, const eini_runs *y) {
  for (int64_t i = 0, j = 0; i < x->n && j < y->n;) {
    if (eini_max64(x->v[2 * i], y->v[2 * j]) < eini_min64(x->v[2 * i + 1], y->v[2 * j + 1]))
      return 1;
    if (x->v[2 * i + 1] <= y->v[2 * j + 1]) i++;
    else j++;
  }
  return 0;
}

// What block `source` of one layout gives to block `target` of another: of every axis the ranges
// that both have, which are not empty. home: the place it comes from.
typedef struct eini_layout_move {
  int64_t source, target, home, place, elements;
  eini_runs *run;           // rank
} eini_layout_move;

typedef ein_status (*eini_layout_fn)(void *user, const eini_layout_move *m);

// The place that gives a block to `place`: that itself where it has it, else all in turn.
static int64_t eini_layout_home(const eini_layout *l, int64_t block, int64_t place) {
  const int64_t *at = l->holder[block], n = l->nholder[block];
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (at[mid] < place) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && at[lo] == place ? place : at[place % n];
}

// Walks the blocks of `from` that meet a block of `to` at a place, in ascending order.
typedef struct eini_layout_walk {
  const eini_layout *from, *to;
  int first, count;         // places whose moves are wanted, on one side or the other
  int64_t **meets, *nmeet, *at;  // per axis: pieces of `from` that meet that of the block; which
  eini_layout_move move;
} eini_layout_walk;

static ein_status eini_layout_walk_init(eini_arena *a, const eini_layout *from,
                                        const eini_layout *to, int first, int count,
                                        eini_layout_walk *w) {
  memset(w, 0, sizeof *w);
  w->from = from;
  w->to = to;
  w->first = first;
  w->count = count;
  w->meets = EINI_NEW(a, int64_t *, from->rank);
  w->nmeet = EINI_NEW(a, int64_t, from->rank);
  w->at = EINI_NEW(a, int64_t, from->rank);
  w->move.run = EINI_NEW(a, eini_runs, from->rank);
  if (w->meets == NULL || w->nmeet == NULL || w->at == NULL || w->move.run == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < from->rank; r++)
    if ((w->meets[r] = EINI_NEW(a, int64_t, from->npiece[r])) == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

// One move, of pieces w->at, unless it concerns other places.
static ein_status eini_layout_walk_one(eini_arena *a, eini_layout_walk *w, eini_layout_fn fn,
                                       void *user) {
  eini_layout_move *m = &w->move;
  m->source = 0;
  for (int r = 0; r < w->from->rank; r++)
    m->source = m->source * w->from->npiece[r] + w->meets[r][w->at[r]];
  m->home = eini_layout_home(w->from, m->source, m->place);
  if ((m->home < w->first || m->home >= w->first + w->count) &&
      (m->place < w->first || m->place >= w->first + w->count)) return EIN_OK;
  const eini_arena_at mark = eini_arena_mark(a);
  ein_status st = EIN_OK;
  m->elements = 1;
  for (int r = 0; r < w->from->rank && st == EIN_OK; r++) {
    st = eini_runs_common(a, eini_layout_piece(w->from, m->source, r),
                        eini_layout_piece(w->to, m->target, r), &m->run[r]);
    m->elements *= m->run[r].length;
  }
  if (st == EIN_OK) st = fn(user, m);
  eini_arena_rollback(a, &mark);
  return st;
}

// Calls fn for all moves; a: scratch.
static ein_status eini_layout_walk_all(eini_arena *a, eini_layout_walk *w, eini_layout_fn fn,
                                       void *user) {
  const int rank = w->from->rank;
  for (int64_t q = 0; q < w->to->places; q++) {
    w->move.place = q;
    for (int64_t i = 0, block; (block = eini_layout_next(w->to, q, &i)) >= 0;) {
      w->move.target = block;
      for (int r = 0; r < rank; r++) {
        const eini_runs *piece = eini_layout_piece(w->to, block, r);
        w->nmeet[r] = w->at[r] = 0;
        for (int64_t k = 0; k < w->from->npiece[r]; k++)
          if (eini_runs_overlap(&w->from->piece[r][k], piece)) w->meets[r][w->nmeet[r]++] = k;
      }
      for (int r = rank; r >= 0;) {
        EINI_TRY(eini_layout_walk_one(a, w, fn, user));
        for (r = rank - 1; r >= 0 && ++w->at[r] == w->nmeet[r]; r--) w->at[r] = 0;
      }
    }
  }
  return EIN_OK;
}

// ================================================================================================
// >>dtensor  distributed tensors
// Takes layouts and a fabric; gives parts at places, and moves between tensors. All memory that a
// move needs is had, and messages are packed, before processes agree to go on.
// ================================================================================================

struct ein_dtensor {
  eini_arena arena;         // owns everything, itself included, but not what is adopted
  ein_fabric fabric;
  eini_layout l;
  ein_dtype dtype;
  int nparts, *first;       // parts of driven place number i: first[i] .. first[i + 1] - 1
  ein_dtensor_part *part;
};

static ein_dtensor *eini_dtensor_new(ein_ctx *ctx, const ein_fabric *f) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_dtensor *t = EINI_NEW(&arena, ein_dtensor, 1);
  if (t == NULL) return NULL;
  t->arena = arena;
  t->fabric = *f;
  return t;
}

// A part's view and ranges; its strides are row-major, its data comes later.
static ein_status eini_dtensor_part_init(ein_dtensor *t, int64_t block, int place,
                                         ein_dtensor_part *p) {
  const int rank = t->l.rank;
  int64_t *shape = EINI_NEW(&t->arena, int64_t, 3 * (int64_t)rank);
  const int64_t **range = EINI_NEW(&t->arena, const int64_t *, rank);
  int64_t count;
  if (shape == NULL || range == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stride = shape + rank, *n = stride + rank;
  for (int r = 0; r < rank; r++) {
    const eini_runs *run = eini_layout_piece(&t->l, block, r);
    shape[r] = run->length;
    range[r] = run->v;
    n[r] = run->n;
  }
  EINI_TRY(eini_view_elements(rank, shape, &count));
  eini_dist_dense(rank, shape, stride);
  p->place = place;
  p->view = ein_tensor(t->dtype, rank, shape, NULL);
  p->view.strides = stride;
  p->nrange = n;
  p->range = range;
  return EIN_OK;
}

static ein_status eini_dtensor_parts_init(ein_dtensor *t) {
  const ein_fabric *f = &t->fabric;
  t->first = EINI_NEW(&t->arena, int, (int64_t)f->count + 1);
  if (t->first == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->count; i++)
    t->first[i + 1] = t->first[i] + (int)t->l.nheld[f->first + i];
  t->nparts = t->first[f->count];
  t->part = EINI_NEW(&t->arena, ein_dtensor_part, t->nparts);
  if (t->part == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->count; i++)
    for (int k = t->first[i]; k < t->first[i + 1]; k++)
      EINI_TRY(eini_dtensor_part_init(t, t->l.held[f->first + i][k - t->first[i]], f->first + i,
                                      &t->part[k]));
  return EIN_OK;
}

// Takes the caller's views as parts, or memory of its own.
static ein_status eini_dtensor_memory(ein_ctx *ctx, ein_dtensor *t, int nadopt,
                                      const ein_ztensor *adopt) {
  if (adopt != NULL && nadopt != t->nparts)
    return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "%d buffers are given, but this process has %d "
                            "parts of the tensor", nadopt, t->nparts);
  for (int k = 0; k < t->nparts; k++) {
    ein_ztensor *v = &t->part[k].view;
    const int64_t n = ein_view_count(v);
    if (adopt == NULL) {
      v->data = eini_new(&t->arena, n, ein_dtype_size(t->dtype));
      if (v->data == NULL) return EIN_ERR_NO_MEMORY;
      continue;
    }
    const ein_ztensor *from = &adopt[k];
    EINI_TRY(eini_view_validate(from));
    if (from->dtype != t->dtype || from->rank != v->rank)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "buffer %d has another dtype or rank than the "
                              "tensor", k);
    for (int r = 0; r < v->rank; r++) {
      if (from->shape[r] != v->shape[r])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d of buffer %d has %lld elements, but "
                                "place %d holds %lld", r, k, (long long)from->shape[r],
                                t->part[k].place, (long long)v->shape[r]);
    }
    if (n > 0 && from->data == NULL)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "buffer %d has no data", k);
    int64_t *stride = EINI_NEW(&t->arena, int64_t, v->rank);
    if (stride == NULL) return EIN_ERR_NO_MEMORY;
    for (int r = 0; r < v->rank; r++) stride[r] = n > 0 ? eini_stride(from, r) : 0;
    v->strides = stride;
    v->data = from->data;
  }
  return EIN_OK;
}

static ein_status eini_dtensor_check(ein_ctx *ctx, const ein_fabric *f, const ein_distribution *how,
                                     ein_dtype dtype, const int64_t *shape) {
  if (how == NULL || (shape == NULL && how->rank > 0))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, how == NULL ? "the distribution is NULL"
                                                               : "the shape is NULL");
  if (ein_dtype_size(dtype) == 0)
    return eini_dist_refuse(ctx, EIN_ERR_DTYPE, "there is no such dtype");
  if (f->machine != NULL)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "a fabric with a clock holds no data");
  if (how->grid->places != f->places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the distribution is over %d places, the fabric "
                            "has %d", (int)how->grid->places, f->places);
  for (int r = 0; r < how->rank; r++)
    if (shape[r] < 0)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d has extent %lld", r,
                              (long long)shape[r]);
  return EIN_OK;
}

// Agrees, gives the tensor or a message.
static ein_status eini_dtensor_made(ein_ctx *ctx, const ein_fabric *f, ein_status st,
                                    ein_dtensor *t, ein_dtensor **out) {
  const ein_status all = eini_dist_agree(f, st);
  if (all != EIN_OK) ein_dtensor_destroy(t);
  else *out = t;
  if (all != EIN_OK && (st == EIN_OK || ctx == NULL || ctx->diag.count == 0))
    eini_dist_refuse(ctx, all, st == EIN_OK ? "another process: %s" : "a distributed tensor: %s",
                     ein_status_text(all));
  return all;
}

static size_t eini_print_distribution(const void *x, char *buf, size_t size) {
  return ein_distribution_print((const ein_distribution *)x, buf, size);
}

static size_t eini_print_grid(const void *x, char *buf, size_t size) {
  return ein_grid_print((const ein_grid *)x, buf, size);
}

// Have all processes been given the same tensor? st: whether this one has been given one.
static ein_status eini_dtensor_same(ein_ctx *ctx, const ein_fabric *f, ein_status st,
                                    const ein_distribution *how, ein_dtype dtype,
                                    const int64_t *shape) {
  static const char *const what[3] = {"shapes or dtypes", "distributions", "machines"};
  uint64_t word[3] = {0, 0, 0};
  eini_arena arena;  // for the allocator alone
  if (f->same_fn == NULL) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  if (st == EIN_OK) {
    word[0] = eini_hash(shape, (size_t)how->rank * sizeof *shape, 1 + (uint64_t)dtype);
    st = eini_print_hash(&arena.al, how, eini_print_distribution, &word[1]);
  }
  if (st == EIN_OK) st = eini_print_hash(&arena.al, how->grid, eini_print_grid, &word[2]);
  return eini_dist_same(ctx, f, st, 3, word, what);
}

EIN_API ein_status ein_dtensor_create(ein_ctx *ctx, const ein_fabric *fabric,
                                      const ein_distribution *how, ein_dtype dtype,
                                      const int64_t *shape, int nadopt, const ein_ztensor *adopt,
                                      ein_dtensor **out) {
  if (fabric == NULL || out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_dtensor *t = NULL;
  ein_status st = eini_dtensor_check(ctx, fabric, how, dtype, shape);
  st = eini_dtensor_same(ctx, fabric, st, how, dtype, shape);
  if (st != EIN_OK && fabric->same_fn != NULL) return st;  // on all
  if (st == EIN_OK) t = eini_dtensor_new(ctx, fabric);
  if (st == EIN_OK && t == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) t->dtype = dtype;
  if (st == EIN_OK) st = eini_layout_of(&t->arena, how, shape, &t->l);
  if (st == EIN_OK) st = eini_dtensor_parts_init(t);
  if (st == EIN_OK) st = eini_dtensor_memory(ctx, t, nadopt, adopt);
  return eini_dtensor_made(ctx, fabric, st, t, out);
}

EIN_API ein_status ein_dtensor_of_plan(ein_ctx *ctx, const ein_dist *d, int tensor,
                                       ein_dtensor **out) {
  if (d == NULL || out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_dtensor *t = NULL;
  ein_status st = tensor < 0 || tensor >= d->g->ntensor ? EIN_ERR_ARGUMENT
                  : eini_dist_clocked(d) ? EIN_ERR_UNSUPPORTED : EIN_OK;  // it holds no data
  for (int q = 0; q < d->fabric.count && st == EIN_OK; q++)
    st = ein_dist_block(d, tensor, d->fabric.first + q, NULL, NULL, NULL);
  if (st != EIN_OK)
    eini_dist_refuse(ctx, st, "tensor %d of the plan: %s", tensor, ein_status_text(st));
  if (st == EIN_OK) t = eini_dtensor_new(ctx, &d->fabric);
  if (st == EIN_OK && t == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) t->dtype = d->g->tensor[tensor].dtype;
  if (st == EIN_OK) st = eini_layout_of_plan(&t->arena, d, tensor, &t->l);
  if (st == EIN_OK) st = eini_dtensor_parts_init(t);
  if (st == EIN_OK) st = eini_dtensor_memory(ctx, t, 0, NULL);
  return eini_dtensor_made(ctx, &d->fabric, st, t, out);
}

EIN_API void ein_dtensor_destroy(ein_dtensor *t) {
  if (t == NULL) return;
  eini_arena arena = t->arena;
  eini_arena_free(&arena);
}

EIN_API int ein_dtensor_parts(const ein_dtensor *t) { return t == NULL ? 0 : t->nparts; }

EIN_API int ein_dtensor_part_get(const ein_dtensor *t, int k, ein_dtensor_part *part) {
  if (t == NULL || part == NULL || k < 0 || k >= t->nparts) return 0;
  *part = t->part[k];
  return 1;
}

// ---- elements ----

// at: room for coordinates, ranges and positions of every axis.
static ein_status eini_dtensor_part_each(const ein_dtensor_part *p, int64_t *room,
                                         ein_element_fn fn, void *user) {
  const int rank = p->view.rank;
  int64_t *coord = room, *run = room + rank;
  char *at = (char *)p->view.data;
  const int64_t size = (int64_t)ein_dtype_size(p->view.dtype);
  if (ein_view_count(&p->view) == 0) return EIN_OK;
  for (int r = 0; r < rank; r++) {
    run[r] = 0;
    coord[r] = p->range[r][0];
  }
  for (int r = 0; r >= 0;) {
    EINI_TRY(fn(user, coord, at));
    for (r = rank - 1; r >= 0; r--) {
      at += p->view.strides[r] * size;
      if (++coord[r] < p->range[r][2 * run[r] + 1]) break;
      if (++run[r] == p->nrange[r]) run[r] = 0;
      coord[r] = p->range[r][2 * run[r]];
      if (run[r] > 0) break;
      at -= p->view.strides[r] * size * p->view.shape[r];
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_each(const ein_dtensor *t, ein_element_fn fn, void *user) {
  eini_arena arena;
  if (t == NULL || fn == NULL) return EIN_ERR_ARGUMENT;
  eini_arena_init(&arena, &t->arena.al);
  int64_t *room = EINI_NEW(&arena, int64_t, 2 * (int64_t)t->l.rank + 1);
  ein_status st = room == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < t->nparts && st == EIN_OK; k++)
    st = eini_dtensor_part_each(&t->part[k], room, fn, user);
  eini_arena_free(&arena);
  return st;
}

EIN_API void ein_random_element(ein_dtype dtype, uint64_t seed, int64_t number, void *element) {
  const uint64_t hash = eini_hash_step(eini_hash_step(seed) ^ (uint64_t)number);
  const double x = (double)(hash >> 40) / 8388608.0 - 1.0;  // 24 bits
  const float f[2] = {(float)x, (float)(hash & 0xffffff) / 8388608.0f - 1.0f};
  const double d[2] = {x, (double)f[1]};
  const int64_t small = (int64_t)(hash % 9) - 4;
  const float few = (float)((int)(hash >> 8 & 127) - 64) / 64;  // exact in f16 and bf16
  uint16_t half = 0;
  int32_t i32 = (int32_t)small;
  int16_t i16 = (int16_t)small;
  switch (dtype) {
    case EIN_BOOL: *(unsigned char *)element = (unsigned char)(hash & 1); break;
    case EIN_U8: *(uint8_t *)element = (uint8_t)(small + 4); break;
    case EIN_I8: *(int8_t *)element = (int8_t)small; break;
    case EIN_I16: memcpy(element, &i16, sizeof i16); break;
    case EIN_I32: memcpy(element, &i32, sizeof i32); break;
    case EIN_I64: memcpy(element, &small, sizeof small); break;
    case EIN_F32: memcpy(element, f, sizeof *f); break;
    case EIN_F64: memcpy(element, d, sizeof *d); break;
    case EIN_C64: memcpy(element, f, sizeof f); break;
    case EIN_C128: memcpy(element, d, sizeof d); break;
    case EIN_F16: half = eini_f16_store(few); memcpy(element, &half, sizeof half); break;
    case EIN_BF16: half = eini_bf16_store(few); memcpy(element, &half, sizeof half); break;
    default: break;
  }
}

typedef struct eini_dtensor_filling {
  const ein_dtensor *t;
  uint64_t seed;
} eini_dtensor_filling;

// The number of an element in the whole tensor; it may wrap, which is no matter here.
static ein_status eini_dtensor_fill(void *user, const int64_t *coord, void *element) {
  const eini_dtensor_filling *f = (const eini_dtensor_filling *)user;
  uint64_t n = 0;
  for (int r = 0; r < f->t->l.rank; r++)
    n = n * (uint64_t)f->t->l.shape[r] + (uint64_t)coord[r];
  ein_random_element(f->t->dtype, f->seed, (int64_t)n, element);
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_random(ein_dtensor *t, uint64_t seed) {
  eini_dtensor_filling f;
  f.t = t;
  f.seed = seed;
  return ein_dtensor_each(t, eini_dtensor_fill, &f);
}

// ---- moves ----

// One side: blocks of a layout where a process has them. NULL parts: one whole view.
typedef struct eini_swap_side {
  const eini_layout *l;
  const ein_dtensor *t;
  const ein_ztensor *whole;
} eini_swap_side;

typedef struct eini_swap {
  eini_arena arena;
  ein_fabric f;
  eini_swap_side from, to;
  ein_dtype dtype;
  int only;                 // what is done: what EINI_SWAP_.. says
  eini_layout_walk w;
  int64_t *in, *out;        // [driven place][place]: bytes that are received and sent; then where
  char *inbox, *outbox;     //   the next go
  int64_t received, sent, messages;
  ein_ticket *ticket;
  int64_t nticket;
} eini_swap;

enum { EINI_SWAP_COUNT, EINI_SWAP_PACK, EINI_SWAP_UNPACK };

// Does data go from place to place without a message?
static int eini_swap_direct(const eini_swap *x, const eini_layout_move *m) {
  return m->home == m->place || x->f.shared;
}

// The element of a block's part, and its strides; at: where each range of a move begins in it.
static char *eini_swap_part(const eini_swap_side *s, const eini_layout_move *m, int64_t block,
                            int64_t place, int64_t *const *at, int64_t *stride) {
  const eini_layout *l = s->l;
  const ein_ztensor *v = s->whole;
  if (v == NULL) {
    const int i = (int)place - s->t->fabric.first;
    int k = s->t->first[i];
    while (l->held[place][k - s->t->first[i]] != block) k++;
    v = &s->t->part[k].view;
  }
  for (int r = 0; r < l->rank; r++) {
    const eini_runs *run = eini_layout_piece(l, block, r);
    stride[r] = eini_stride(v, r);
    for (int64_t i = 0, k = 0, before = 0; i < m->run[r].n; i++) {
      for (; run->v[2 * k + 1] <= m->run[r].v[2 * i]; k++)
        before += run->v[2 * k + 1] - run->v[2 * k];
      at[r][i] = before + m->run[r].v[2 * i] - run->v[2 * k];
    }
  }
  return (char *)v->data;
}

// The same of a message, which has the elements of a move one after another.
static char *eini_swap_message(const eini_layout_move *m, int rank, char *data, int64_t *const *at,
                               int64_t *stride) {
  int64_t n = 1;
  for (int r = rank - 1; r >= 0; r--) {
    int64_t before = 0;
    stride[r] = n;
    n *= m->run[r].length;
    for (int64_t i = 0; i < m->run[r].n; i++) {
      at[r][i] = before;
      before += m->run[r].v[2 * i + 1] - m->run[r].v[2 * i];
    }
  }
  return data;
}

// Box by box: all combinations of a range of each axis.
static void eini_swap_boxes(const eini_layout_move *m, int rank, size_t size, char *dst,
                            int64_t *const *dat, const int64_t *dstride, const char *src,
                            int64_t *const *sat, const int64_t *sstride, int64_t *room) {
  int64_t *i = room, *len = room + rank;
  for (int r = 0; r < rank; r++) i[r] = 0;
  for (int r = 0; r >= 0;) {
    int64_t d = 0, s = 0;
    for (r = 0; r < rank; r++) {
      len[r] = m->run[r].v[2 * i[r] + 1] - m->run[r].v[2 * i[r]];
      d += dat[r][i[r]] * dstride[r];
      s += sat[r][i[r]] * sstride[r];
    }
    eini_dist_copy(rank, len, dst + d * (int64_t)size, dstride, src + s * (int64_t)size, sstride,
                   size);
    for (r = rank - 1; r >= 0 && ++i[r] == m->run[r].n; r--) i[r] = 0;
  }
}

// Copies what moves: part to message, message to part, or part to part.
static ein_status eini_swap_copy(eini_swap *x, const eini_layout_move *m, char *message) {
  const int rank = x->from.l->rank;
  int64_t *room = EINI_NEW(&x->arena, int64_t, 4 * (int64_t)rank + 1);
  int64_t **at = EINI_NEW(&x->arena, int64_t *, 2 * (int64_t)rank);
  if (room == NULL || at == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < 2 * rank; r++)
    if ((at[r] = EINI_NEW(&x->arena, int64_t, m->run[r % rank].n)) == NULL)
      return EIN_ERR_NO_MEMORY;
  int64_t *dstride = room + 2 * rank, *sstride = dstride + rank;
  int64_t **dat = at, **sat = at + rank;
  char *dst = message, *src = message;
  if (message == NULL || x->only == EINI_SWAP_UNPACK)
    dst = eini_swap_part(&x->to, m, m->target, m->place, dat, dstride);
  else eini_swap_message(m, rank, message, dat, dstride);
  if (message == NULL || x->only == EINI_SWAP_PACK)
    src = eini_swap_part(&x->from, m, m->source, m->home, sat, sstride);
  else eini_swap_message(m, rank, message, sat, sstride);
  eini_swap_boxes(m, rank, ein_dtype_size(x->dtype), dst, dat, dstride, src, sat, sstride, room);
  return EIN_OK;
}

// A move is counted, packed or unpacked.
static ein_status eini_swap_move(void *user, const eini_layout_move *m) {
  eini_swap *x = (eini_swap *)user;
  const int64_t bytes = m->elements * (int64_t)ein_dtype_size(x->dtype);
  const int out = eini_fabric_drives(&x->f, m->home), in = eini_fabric_drives(&x->f, m->place);
  int64_t *to = out ? &x->out[(m->home - x->f.first) * x->f.places + m->place] : NULL;
  int64_t *from = in ? &x->in[(m->place - x->f.first) * x->f.places + m->home] : NULL;
  if (eini_swap_direct(x, m))
    return in && x->only == EINI_SWAP_UNPACK ? eini_swap_copy(x, m, NULL) : EIN_OK;
  if (x->only == EINI_SWAP_COUNT) {
    if (out) *to += bytes;
    if (in) *from += bytes;
    return EIN_OK;
  }
  char *message = x->only == EINI_SWAP_PACK ? (out ? x->outbox + *to : NULL)
                                            : in ? x->inbox + *from : NULL;
  if (message == NULL) return EIN_OK;
  *(x->only == EINI_SWAP_PACK ? to : from) += bytes;
  return eini_swap_copy(x, m, message);
}

static ein_status eini_swap_pass(eini_swap *x, int only) {
  x->only = only;
  return eini_layout_walk_all(&x->arena, &x->w, eini_swap_move, x);
}

// Bytes become where each message begins; *total: all.
static void eini_swap_begins(int64_t *at, int64_t n, int64_t *total, int64_t *messages) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t bytes = at[i];
    at[i] = *total;
    *total += bytes;
    *messages += bytes > 0;
  }
}

// The end of message i is the beginning of the next one.
static int64_t eini_swap_bytes(const int64_t *at, int64_t i, int64_t n, int64_t total) {
  return (i + 1 < n ? at[i + 1] : total) - at[i];
}

// Everything that can fail on one process alone: memory, packing.
static ein_status eini_swap_prepare(eini_swap *x) {
  const int64_t n = (int64_t)x->f.count * x->f.places;
  EINI_TRY(eini_layout_walk_init(&x->arena, x->from.l, x->to.l, x->f.first, x->f.count, &x->w));
  x->in = EINI_NEW(&x->arena, int64_t, 2 * n);
  if (x->in == NULL) return EIN_ERR_NO_MEMORY;
  x->out = x->in + n;
  EINI_TRY(eini_swap_pass(x, EINI_SWAP_COUNT));
  eini_swap_begins(x->in, n, &x->received, &x->messages);
  eini_swap_begins(x->out, n, &x->sent, &x->messages);
  x->ticket = EINI_NEW(&x->arena, ein_ticket, x->messages);
  x->inbox = (char *)eini_new(&x->arena, x->received, 1);
  x->outbox = (char *)eini_new(&x->arena, x->sent, 1);
  int64_t *keep = EINI_NEW(&x->arena, int64_t, n);
  if (x->ticket == NULL || x->inbox == NULL || x->outbox == NULL || keep == NULL)
    return EIN_ERR_NO_MEMORY;
  memcpy(keep, x->out, (size_t)n * sizeof *keep);
  EINI_TRY(eini_swap_pass(x, EINI_SWAP_PACK));
  memcpy(x->out, keep, (size_t)n * sizeof *keep);
  return x->f.room_fn == NULL ? EIN_OK
                              : x->f.room_fn(x->f.user, x->messages, x->received + x->sent);
}

// One message for each pair of places; receives first.
static ein_status eini_swap_post(eini_swap *x) {
  const int64_t n = (int64_t)x->f.count * x->f.places;
  for (int64_t i = 0; i < 2 * n; i++) {
    const int64_t k = i % n, q = k % x->f.places, here = x->f.first + k / x->f.places;
    const int64_t bytes = i < n ? eini_swap_bytes(x->in, k, n, x->received)
                                : eini_swap_bytes(x->out, k, n, x->sent);
    if (bytes == 0) continue;
    ein_ticket *t = &x->ticket[x->nticket];
    EINI_TRY(i < n ? x->f.recv_fn(x->f.user, (int)here, (int)q, 0, x->inbox + x->in[k],
                                  (size_t)bytes, t)
                   : x->f.send_fn(x->f.user, (int)here, (int)q, 0, x->outbox + x->out[k],
                                  (size_t)bytes, t));
    x->nticket++;
  }
  return EIN_OK;
}

// Collective; st: what this process knows already.
static ein_status eini_swap_run(eini_swap *x, ein_status st) {
  if (st == EIN_OK) st = eini_swap_prepare(x);
  st = eini_dist_agree(&x->f, st);
  if (st != EIN_OK) return st;
  st = eini_swap_post(x);
  for (int64_t i = 0; i < x->nticket; i++) {
    const ein_status failed = x->f.wait_fn(x->f.user, x->ticket[i]);
    if (st == EIN_OK) st = failed;
  }
  if (st == EIN_OK) st = eini_swap_pass(x, EINI_SWAP_UNPACK);
  return eini_dist_agree(&x->f, st);
}

static void eini_swap_init(const ein_dtensor *t, eini_swap *x) {
  memset(x, 0, sizeof *x);
  eini_arena_init(&x->arena, &t->arena.al);
  x->f = t->fabric;
  x->dtype = t->dtype;
  x->from.t = x->to.t = t;
  x->from.l = x->to.l = &t->l;
}

// Are they the same tensor in two distributions?
static ein_status eini_dtensor_alike(const ein_dtensor *a, const ein_dtensor *b) {
  if (a == NULL || b == NULL) return EIN_ERR_ARGUMENT;
  if (a->dtype != b->dtype) return EIN_ERR_DTYPE;
  if (a->fabric.user != b->fabric.user || a->fabric.places != b->fabric.places ||
      a->fabric.first != b->fabric.first || a->fabric.count != b->fabric.count)
    return EIN_ERR_ARGUMENT;
  if (a->l.rank != b->l.rank) return EIN_ERR_SHAPE;
  for (int r = 0; r < a->l.rank; r++)
    if (a->l.shape[r] != b->l.shape[r]) return EIN_ERR_SHAPE;
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_copy(const ein_dtensor *from, ein_dtensor *to, int64_t *bytes) {
  eini_swap x;
  if (from == NULL || to == NULL) return EIN_ERR_ARGUMENT;
  eini_swap_init(from, &x);
  x.to.l = &to->l;
  x.to.t = to;
  const ein_status st = eini_swap_run(&x, eini_dtensor_alike(from, to));
  if (bytes != NULL) *bytes = st == EIN_OK ? x.received : 0;
  eini_arena_free(&x.arena);
  return st;
}

// Adds up what moves.
static ein_status eini_dtensor_count(void *user, const eini_layout_move *m) {
  if (m->home != m->place) *(int64_t *)user += m->elements;
  return EIN_OK;
}

EIN_API int64_t ein_dtensor_bytes(const ein_dtensor *from, const ein_dtensor *to) {
  eini_arena arena;
  eini_layout_walk w;
  int64_t n = 0;
  if (eini_dtensor_alike(from, to) != EIN_OK) return -1;
  eini_arena_init(&arena, &from->arena.al);
  ein_status st = eini_layout_walk_init(&arena, &from->l, &to->l, 0, from->fabric.places, &w);
  if (st == EIN_OK) st = eini_layout_walk_all(&arena, &w, eini_dtensor_count, &n);
  eini_arena_free(&arena);
  return st == EIN_OK ? n * (int64_t)ein_dtype_size(from->dtype) : -1;
}

// Is a view what this process may give for the whole tensor?
static ein_status eini_dtensor_whole(const ein_dtensor *t, const ein_ztensor *whole) {
  if (whole == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_view_validate(whole));
  if (whole->dtype != t->dtype) return EIN_ERR_DTYPE;
  if (whole->rank != t->l.rank) return EIN_ERR_SHAPE;
  for (int r = 0; r < t->l.rank; r++)
    if (whole->shape[r] != t->l.shape[r]) return EIN_ERR_SHAPE;
  return whole->data == NULL && ein_view_count(whole) > 0 ? EIN_ERR_ARGUMENT : EIN_OK;
}

// Between a tensor and a whole one at a place.
static ein_status eini_dtensor_root(const ein_dtensor *t, int root, const ein_ztensor *whole,
                                    int scatter) {
  eini_swap x;
  eini_layout l;
  if (t == NULL) return EIN_ERR_ARGUMENT;
  eini_swap_init(t, &x);
  const int sane = root >= 0 && root < t->fabric.places;
  ein_status st = sane ? eini_layout_whole(&x.arena, t->l.rank, t->l.shape, t->fabric.places, root,
                                           root + 1, &l) : EIN_ERR_ARGUMENT;
  if (st == EIN_OK && eini_fabric_drives(&x.f, root)) st = eini_dtensor_whole(t, whole);
  eini_swap_side *side = scatter ? &x.from : &x.to;
  side->l = &l;
  side->whole = whole;
  st = eini_swap_run(&x, st);
  eini_arena_free(&x.arena);
  return st;
}

EIN_API ein_status ein_dtensor_scatter(ein_dtensor *t, int root, const ein_ztensor *whole) {
  return eini_dtensor_root(t, root, whole, 1);
}

EIN_API ein_status ein_dtensor_gather(const ein_dtensor *t, int root, const ein_ztensor *whole) {
  return eini_dtensor_root(t, root, whole, 0);
}

// One part of a tensor against the whole one of this process.
static ein_status eini_dtensor_local(const ein_dtensor *t, const ein_ztensor *whole, int load) {
  eini_swap x;
  eini_layout l;
  eini_layout_move m;
  if (t == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_dtensor_whole(t, whole));
  eini_swap_init(t, &x);
  x.only = EINI_SWAP_UNPACK;
  ein_status st = eini_layout_whole(&x.arena, t->l.rank, t->l.shape, t->fabric.places, 0, 1, &l);
  m.run = EINI_NEW(&x.arena, eini_runs, t->l.rank);
  if (st == EIN_OK && m.run == NULL) st = EIN_ERR_NO_MEMORY;
  eini_swap_side *side = load ? &x.from : &x.to;
  side->l = &l;
  side->whole = whole;
  for (int i = 0; i < t->fabric.count; i++) {
    const int64_t q = t->fabric.first + i;
    for (int64_t k = 0, block; st == EIN_OK && (block = eini_layout_next(&t->l, q, &k)) >= 0;) {
      if (!load && t->l.holder[block][0] != q) continue;
      const eini_arena_at mark = eini_arena_mark(&x.arena);
      for (int r = 0; r < t->l.rank; r++) m.run[r] = *eini_layout_piece(&t->l, block, r);
      m.source = load ? 0 : block;
      m.target = load ? block : 0;
      m.home = m.place = q;
      st = eini_swap_copy(&x, &m, NULL);
      eini_arena_rollback(&x.arena, &mark);
    }
  }
  eini_arena_free(&x.arena);
  return st;
}

EIN_API ein_status ein_dtensor_load(ein_dtensor *t, const ein_ztensor *whole) {
  return eini_dtensor_local(t, whole, 1);
}

EIN_API ein_status ein_dtensor_store(const ein_dtensor *t, const ein_ztensor *whole) {
  return eini_dtensor_local(t, whole, 0);
}

// ================================================================================================
// >>dtensor-run  graphs of distributed tensors
// Takes the layouts of inputs and outputs as constraints of a decomposition; gives a plan that runs
// on their parts where they lie as it wants them, else on copies in its own layout.
// ================================================================================================

struct ein_dtensor_plan {
  eini_arena arena;
  ein_fabric fabric;
  const ein_graph *g;
  ein_decomposition *how;
  ein_dist *d;
  int n, *tensor;           // inputs, then outputs
  int nin;
  eini_layout *l;           // of each, as the plan wants it
  ein_dtensor **stage;      // a copy of each in that layout; NULL: it lies so
  int64_t moved;            // bytes that these copies move in all
};

// Texts of pins, for ein_decompose.
typedef struct eini_dtensor_pins {
  const char **text;
  int n, noutput;           // those of outputs come last
} eini_dtensor_pins;

// Is a layout that of a pin: equal pieces, block k at place k alone?
static int eini_layout_pins(const eini_layout *l) {
  for (int64_t k = 0; k < l->nblock; k++)
    if (l->nholder[k] != 1 || l->holder[k][0] != k) return 0;
  for (int r = 0; r < l->rank; r++) {
    if (l->npiece[r] > eini_max64(1, l->shape[r])) return 0;
    for (int64_t k = 0; k < l->npiece[r]; k++) {
      const eini_runs *p = &l->piece[r][k];
      const int64_t lo = eini_piece_start(l->shape[r], l->npiece[r], k);
      const int64_t hi = eini_piece_start(l->shape[r], l->npiece[r], k + 1);
      if (lo < hi && (p->n != 1 || p->v[0] != lo || p->v[1] != hi)) return 0;
    }
  }
  return 1;
}

static int eini_layout_everywhere(const eini_layout *l) {
  return l->nblock == 1 && l->nholder[0] == l->places;
}

// The pieces of an input in the plan: its own numbers of pieces where there can be as many, else
// of its longest axis; none where it is whole everywhere.
static ein_status eini_dtensor_pin(eini_arena *a, const eini_layout *l, const char *name,
                                   eini_dtensor_pins *pins) {
  const size_t size = strlen(name) + 32 * (size_t)l->rank + 8;
  char *text = (char *)eini_new(a, (int64_t)size, 1);
  int64_t all = 1;
  int sane = 1, longest = 0, n = 0;
  if (l->rank == 0 || eini_layout_everywhere(l)) return EIN_OK;
  if (text == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < l->rank; r++) {
    sane &= l->npiece[r] <= eini_max64(1, l->shape[r]);
    all *= l->npiece[r];  // of all: at most the points of a grid
    if (l->shape[r] > l->shape[longest]) longest = r;
  }
  eini_text t = eini_text_of(text, size);
  eini_say(&t, "%s[", name);
  for (int r = 0; r < l->rank; r++) {
    int64_t cut = r == longest ? eini_min64(l->places, eini_max64(1, l->shape[r])) : 1;
    if (sane && all <= l->places) cut = l->npiece[r];
    if (cut > 1 || (r + 1 == l->rank && n == 0))
      eini_say(&t, "%s%d=%lld", n++ > 0 ? "," : "", r, (long long)cut);
  }
  eini_say(&t, "]");
  pins->text[pins->n++] = text;
  return EIN_OK;
}

static int eini_dtensor_read(const ein_graph *g, int t) {
  for (int64_t k = 0; k < g->nstmt; k++)
    for (int o = 0; o < g->stmt[k].noperand; o++)
      if (g->stmt[k].operand[o] == t) return 1;
  return 0;
}

// Inputs are pinned, and outputs that have a block at every place: others would idle.
static ein_status eini_dtensor_pins_of(eini_arena *a, const ein_dtensor_plan *p,
                                       const ein_decompose_desc *desc,
                                       const ein_dtensor *const *io, eini_dtensor_pins *pins) {
  memset(pins, 0, sizeof *pins);
  pins->text = EINI_NEW(a, const char *, (int64_t)desc->npin + p->n);
  if (pins->text == NULL) return EIN_ERR_NO_MEMORY;
  for (; pins->n < desc->npin; pins->n++) pins->text[pins->n] = desc->pin[pins->n];
  for (int k = 0; k < p->n; k++) {
    const eini_layout *l = &io[k]->l;
    const int before = pins->n;
    if (k < p->nin && !eini_dtensor_read(p->g, p->tensor[k])) continue;
    if (k >= p->nin && (l->nblock < l->places || !eini_layout_pins(l))) continue;
    EINI_TRY(eini_dtensor_pin(a, l, p->g->tensor[p->tensor[k]].name, pins));
    if (k >= p->nin) pins->noutput += pins->n - before;
  }
  return EIN_OK;
}

static int eini_dtensor_dense(const ein_dtensor *t) {
  for (int k = 0; k < t->nparts; k++) {
    const ein_ztensor *v = &t->part[k].view;
    int64_t n = 1;
    for (int r = v->rank - 1; r >= 0 && ein_view_count(v) > 0; r--) {
      if (v->shape[r] > 1 && v->strides[r] != n) return 0;
      n *= v->shape[r];
    }
  }
  return 1;
}

// What staging costs, in the unit of the model.
static ein_status eini_dtensor_staging(eini_arena *a, const ein_dtensor_plan *p, const ein_dist *d,
                                       const ein_dtensor *const *io, double unit, double *cost) {
  eini_layout_walk w;
  for (int k = 0; k < p->n; k++) {
    const int in = k < p->nin;
    const int64_t size = (int64_t)ein_dtype_size(io[k]->dtype);
    eini_layout l;
    int64_t n = 0;
    EINI_TRY(eini_layout_of_plan(a, d, p->tensor[k], &l));
    EINI_TRY(eini_layout_walk_init(a, in ? &io[k]->l : &l, in ? &l : &io[k]->l, 0, l.places, &w));
    EINI_TRY(eini_layout_walk_all(a, &w, eini_dtensor_count, &n));
    *cost += unit * (double)(n * size);
  }
  return EIN_OK;
}

// One plan with those pins; *cost: of the model, staging with it. Collective.
static ein_status eini_dtensor_try(ein_ctx *ctx, const ein_dtensor_plan *p,
                                   const ein_dtensor *const *io, const ein_decompose_desc *desc,
                                   ein_decomposition **how, ein_dist **d, double *cost) {
  const ein_fabric *f = &p->fabric;
  ein_decomp_info info;
  ein_dist_desc dd;
  eini_arena scratch;
  *d = NULL;
  EINI_TRY(eini_dist_agree(f, ein_decompose(ctx, p->g, desc, how)));
  memset(&dd, 0, sizeof dd);
  dd.fabric = f;
  dd.decomposition = *how;
  dd.blocks = 1;
  EINI_TRY(ein_dist_create(ctx, p->g, &dd, d));
  ein_decomposition_info(*how, &info);
  const double unit = info.cost == EIN_COST_BYTES ? 1 : info.cost == EIN_COST_SECONDS
                      ? 1 / eini_machine_of(desc->machine).bandwidth : 0.125;
  *cost = info.total;
  eini_arena_init(&scratch, &p->arena.al);
  const ein_status st = eini_dtensor_staging(&scratch, p, *d, io, unit, cost);
  eini_arena_free(&scratch);
  return eini_dist_agree(f, st);
}

// With outputs as constraints, and without: the one that costs less.
static ein_status eini_dtensor_search(ein_ctx *ctx, ein_dtensor_plan *p,
                                      const ein_dtensor *const *io, ein_decompose_desc *desc,
                                      const eini_dtensor_pins *pins) {
  ein_decomposition *how = NULL;
  ein_dist *d = NULL;
  double cost = 0, other = 0;
  desc->pin = pins->text;
  desc->npin = pins->n - pins->noutput;
  ein_status st = eini_dtensor_try(ctx, p, io, desc, &p->how, &p->d, &cost);
  if (st != EIN_OK || pins->noutput == 0) return st;
  desc->npin = pins->n;
  st = eini_dtensor_try(ctx, p, io, desc, &how, &d, &other);
  if (st == EIN_OK && other <= cost) {
    ein_dist *worse = p->d;
    ein_decomposition *from = p->how;
    p->d = d, p->how = how;
    d = worse, how = from;
  }
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  if (st == EIN_ERR_NO_MEMORY) return st;
  eini_begin_call(ctx, NULL);  // outputs that cannot be pinned are no mistake
  return EIN_OK;
}

// Do tensors fit the graph?
static ein_status eini_dtensor_fit(ein_ctx *ctx, const ein_dtensor_plan *p,
                                   const ein_dtensor *const *io) {
  for (int k = 0; k < p->n; k++) {
    const eini_tensor *e = &p->g->tensor[p->tensor[k]];
    if (io[k] == NULL)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "'%.60s': the tensor is NULL", e->name);
    const eini_layout *l = &io[k]->l;
    if (io[k]->dtype != e->dtype)
      return eini_dist_refuse(ctx, EIN_ERR_DTYPE, "'%.60s' is %s, the tensor %s", e->name,
                              ein_dtype_name(e->dtype), ein_dtype_name(io[k]->dtype));
    if (l->rank != e->rank)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "'%.60s' has %d axes, the tensor %d", e->name,
                              e->rank, l->rank);
    for (int r = 0; r < l->rank; r++)
      if (l->shape[r] != e->shape[r])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d of '%.60s' has %lld elements, of the "
                                "tensor %lld", r, e->name, (long long)e->shape[r],
                                (long long)l->shape[r]);
    if (io[k]->fabric.user != p->fabric.user || io[k]->fabric.places != p->fabric.places)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "'%.60s' is on another fabric", e->name);
  }
  return EIN_OK;
}

// Copies in the plan's layout of what lies otherwise; a process whose buffers have strides makes
// all copy.
static ein_status eini_dtensor_stages(ein_ctx *ctx, ein_dtensor_plan *p,
                                      const ein_dtensor *const *io) {
  for (int k = 0; k < p->n; k++) {
    EINI_TRY(eini_dist_agree(&p->fabric, eini_layout_of_plan(&p->arena, p->d, p->tensor[k],
                                                             &p->l[k])));
    const int lies = eini_layout_same(&io[k]->l, &p->l[k]) && eini_dtensor_dense(io[k]);
    if (eini_dist_agree(&p->fabric, lies ? EIN_OK : EIN_ERR_OVERLAP) == EIN_OK) continue;
    EINI_TRY(ein_dtensor_of_plan(ctx, p->d, p->tensor[k], &p->stage[k]));
    const int64_t n = k < p->nin ? ein_dtensor_bytes(io[k], p->stage[k])
                                 : ein_dtensor_bytes(p->stage[k], io[k]);
    p->moved += eini_max64(n, 0);
  }
  return EIN_OK;
}

// What one process alone can do: lists of tensors, and what they say to the decomposition.
static ein_status eini_dtensor_begin(ein_ctx *ctx, ein_dtensor_plan *p, const ein_dtensor **io,
                                     const ein_dtensor *const *in, ein_dtensor *const *out,
                                     const ein_decompose_desc *desc, eini_dtensor_pins *pins) {
  for (int output = 0; output < 2; output++) {
    int n = 0;
    for (int t = 0; t < p->g->ntensor; t++) {
      if (p->g->tensor[t].role != (output ? EIN_ROLE_OUTPUT : EIN_ROLE_INPUT)) continue;
      if (output ? out == NULL : in == NULL) return EIN_ERR_ARGUMENT;
      io[p->n] = output ? out[n] : in[n];
      p->tensor[p->n++] = t;
      n++;
    }
    if (!output) p->nin = p->n;
  }
  if (p->n == 0) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_dtensor_fit(ctx, p, io));
  return eini_dtensor_pins_of(&p->arena, p, desc, io, pins);
}

EIN_API void ein_dtensor_plan_destroy(ein_dtensor_plan *p) {
  if (p == NULL) return;
  for (int k = 0; k < p->n; k++) ein_dtensor_destroy(p->stage[k]);
  ein_dist_destroy(p->d);
  ein_decomposition_destroy(p->how);
  eini_arena arena = p->arena;
  eini_arena_free(&arena);
}

EIN_API ein_status ein_dtensor_plan_create(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_fabric *fabric, const ein_decompose_desc *how,
                                           const ein_dtensor *const *in, ein_dtensor *const *out,
                                           ein_dtensor_plan **plan) {
  eini_arena arena;
  ein_decompose_desc desc;
  eini_dtensor_pins pins;
  if (fabric == NULL || plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  eini_begin_call(ctx, NULL);
  memset(&desc, 0, sizeof desc);
  desc.cost = EIN_COST_BYTES;
  if (how != NULL) desc = *how;
  desc.p = fabric->places;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  const int64_t n = st == EIN_OK ? graph->ntensor : 0;
  ein_dtensor_plan *p = EINI_NEW(&arena, ein_dtensor_plan, 1);
  int *tensor = EINI_NEW(&arena, int, n);
  eini_layout *l = EINI_NEW(&arena, eini_layout, n);
  ein_dtensor **stage = EINI_NEW(&arena, ein_dtensor *, n);
  const ein_dtensor **io = EINI_NEW(&arena, const ein_dtensor *, n);
  const int room = p != NULL && tensor != NULL && l != NULL && stage != NULL && io != NULL;
  if (st == EIN_OK && !room) st = EIN_ERR_NO_MEMORY;
  if (room) {
    p->g = graph, p->tensor = tensor, p->l = l, p->stage = stage;
    p->arena = arena;
    p->fabric = *fabric;
  }
  if (st == EIN_OK) st = eini_dtensor_begin(ctx, p, io, in, out, &desc, &pins);
  ein_status all = eini_dist_agree(fabric, st);
  if (all == EIN_OK) all = eini_dtensor_search(ctx, p, io, &desc, &pins);
  if (all == EIN_OK) all = eini_dtensor_stages(ctx, p, io);
  if (all == EIN_OK) {
    *plan = p;
    return EIN_OK;
  }
  if (room) ein_dtensor_plan_destroy(p);
  else eini_arena_free(&arena);
  if (ctx != NULL && ctx->diag.count == 0)
    eini_dist_refuse(ctx, all, st == EIN_OK ? "another process, or the plan: %s" : "%s",
                     ein_status_text(all));
  return all;
}

EIN_API ein_status ein_dtensor_plan_get(const ein_dtensor_plan *p, ein_dtensor_plan_info *info) {
  if (p == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  info->decomposition = p->how;
  info->dist = p->d;
  info->moved = p->moved;
  return EIN_OK;
}

// The block of a tensor at driven place number i; NULL: it has no elements.
static void *eini_dtensor_block(const ein_dtensor *t, int i) {
  for (int k = t->first[i]; k < t->first[i + 1]; k++)
    if (ein_view_count(&t->part[k].view) > 0) return t->part[k].view.data;
  return NULL;
}

// Addresses of blocks for a run; what is not staged has to lie as the plan wants it.
static ein_status eini_dtensor_bind(const ein_dtensor_plan *p, const ein_dtensor *const *io,
                                    const void **in, void **out) {
  const int count = p->fabric.count;
  EINI_TRY(eini_dtensor_fit(NULL, p, io));
  for (int k = 0; k < p->n; k++) {
    const ein_dtensor *t = p->stage[k] != NULL ? p->stage[k] : io[k];
    if (p->stage[k] == NULL && (!eini_layout_same(&t->l, &p->l[k]) || !eini_dtensor_dense(t)))
      return EIN_ERR_ARGUMENT;
    for (int i = 0; i < count; i++) {
      void *block = eini_dtensor_block(t, i);
      if (k < p->nin) in[k * count + i] = block;
      else out[(k - p->nin) * count + i] = block;
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_plan_run(const ein_dtensor_plan *p, const ein_dtensor *const *in,
                                        ein_dtensor *const *out, const ein_scalar *param,
                                        ein_dist_stats *stats) {
  eini_arena arena;
  ein_run run;
  if (p == NULL) return EIN_ERR_ARGUMENT;
  const ein_fabric *f = &p->fabric;
  eini_arena_init(&arena, &p->arena.al);
  memset(&run, 0, sizeof run);
  const ein_dtensor **io = EINI_NEW(&arena, const ein_dtensor *, p->n);
  const void **from = EINI_NEW(&arena, const void *, (int64_t)p->nin * f->count);
  void **to = EINI_NEW(&arena, void *, (int64_t)(p->n - p->nin) * f->count);
  ein_status st = io == NULL || from == NULL || to == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < p->n && st == EIN_OK; k++) {
    if (k < p->nin ? in == NULL : out == NULL) st = EIN_ERR_ARGUMENT;
    else io[k] = k < p->nin ? in[k] : out[k - p->nin];
  }
  if (st == EIN_OK) st = eini_dtensor_bind(p, io, from, to);
  st = eini_dist_agree(f, st);
  for (int k = 0; k < p->nin && st == EIN_OK; k++)
    if (p->stage[k] != NULL) st = ein_dtensor_copy(io[k], p->stage[k], NULL);
  run.in = from;
  run.out = to;
  run.param = param;
  if (st == EIN_OK) st = ein_dist_execute(p->d, &run, stats);
  for (int k = p->nin; k < p->n && st == EIN_OK; k++)
    if (p->stage[k] != NULL) st = ein_dtensor_copy(p->stage[k], out[k - p->nin], NULL);
  eini_arena_free(&arena);
  return st;
}

#endif  // EINSUM_IMPLEMENTATION
