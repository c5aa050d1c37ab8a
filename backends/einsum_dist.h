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
// Manual: TENSOR RELATIONS, EXECUTION, SCHEDULES, FABRICS, BYTES, MEMORY, DETERMINISM, FAILURES
//
//                 >>dist-api >>space >>block-plans >>relation >>join >>dist-plan >>dist-run
//                 >>dist-flow >>dist-copy >>steps >>steps-run >>dist-public
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
// the same bits under serial and copying, and for any number of threads. Statements without
// commands are one task at the first point. Of a graph that is deterministic the bits are those of
// ein_plan_graph. Refused: cuts of folds with states of several scalars (mean, var, argmax, argmin,
// monoids of yours) and of the folds of deterministic graphs, results that are replicated or
// written by sums of indices. Of several processes each goes through the steps of all points, in
// one order, and computes those of its places. A run allocates what it needs: at places that copy,
// of every tensor, while it is needed, the hull of what a place holds, and of the statement at hand
// its boxes: ein_dist_peak, beside messages and workspaces. event_fn is not called.
//
//
// FABRICS
//
// serial      places one after another in one memory; a task may use all threads of the ctx
// threads     every task on one thread of the ctx's executor, as soon as the blocks it reads are
//             there; there is no barrier between statements. Blocks are views of one tensor:
//             nothing is copied. p may be more or less than the number of threads
// copying     one after another, each place in memory of its own: what a place needs is sent
//             and received, so that what is counted is seen to move
// A fabric of your own (another process per place) fills the slots of ein_fabric; every process
// then creates and executes the same plan, and gets the blocks of the outputs that live at its
// places. Inputs are the same everywhere, or, with desc.blocks, no tensor is whole anywhere: a
// process binds the blocks of its places (ein_dist_block), of inputs as they are pinned.
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
// ein_dist_info.workspace_bytes is all a run on a shared memory needs, if run->workspace has it
// nothing is allocated. Temporaries and partial results share memory when their statements do not
// overlap in the order written; a task that reuses memory waits for those that used it before,
// unless no_reuse is set. A fabric that copies allocates the memory of its places for every run.
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
// A task that fails stops the run with its status; on a fabric that copies, its place does no more
// but goes on sending, so that nobody waits in vain, and all agree on the status at the end.

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

// An operation under way; 0: done. A provider's other tickets are its own.
typedef int64_t ein_ticket;

// p places: a place is memory and cores. A fabric of several processes drives only the places
// [first, first + count) from each; every process makes the same calls in the same order. Slots
// that move data are only there where places do not share memory. Transfers do not block; data
// must stay as it is until its ticket is done. Messages between two places with one tag arrive in
// the order they were sent in.
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
} ein_fabric;

// Fills *fabric. serial: places one after another in one memory. threads: the same on the threads
// of the ctx's executor. copying: one after another, each place in memory of its own, so that
// every transfer is a copy; the ctx (may be NULL) gives its allocator. places: 1 .. EIN_PLACES_MAX.
EIN_API ein_status ein_fabric_serial(int places, ein_fabric *fabric);
EIN_API ein_status ein_fabric_threads(int places, ein_fabric *fabric);
EIN_API ein_status ein_fabric_copying(ein_ctx *ctx, int places, ein_fabric *fabric);
EIN_API void ein_fabric_destroy(ein_fabric *fabric);  // NULL is a no-op
// What a copying fabric has moved since it was made; 0 for others. Pointers may be NULL.
EIN_API void ein_fabric_moved(const ein_fabric *fabric, int64_t *messages, int64_t *bytes);

// ---- execution of a decomposed graph ------------------------------------------------------------

// A task that has run: of statement stmt at a place; level -1: the statement's block, else a merge
// of partial results, at that level of their tree. begin and end: the ctx's clock, else 0.
typedef struct ein_dist_event {
  int stmt, place, level, worker;
  double begin, end;
} ein_dist_event;

typedef struct ein_dist_desc {
  const ein_fabric *fabric;  // default: serial with one place; borrowed until the plan is destroyed
  const ein_decomposition *decomposition;  // of the graph, for no more places than the fabric has;
  const ein_parts *parts;    //   or one per statement as written; NULL both: nothing is cut
  const ein_schedule *schedule;  //   or a schedule, for as many places as the fabric has, that
                             //   outlives the plan; see SCHEDULES
  const ein_parts *pins;     // with parts: one per tensor of the graph; inputs with ntask > 0 are
                             //   held in this partition of their axes, others lie everywhere
  ein_inputs inputs;         // with parts: do places hold what they read of inputs that are not
                             //   pinned? A decomposition has its own
  int nlayout;               // strides of inputs and outputs by name, as for ein_plan_graph
  const ein_binding *layout;
  int blocks;                // 1: a run binds the blocks of its places; see ein_dist_block
  const char *path;          // of a task: see ein_options.path; default auto
  int no_reuse;              // 1: every tensor keeps memory of its own
  // Called after every task, by the thread that ran it, on several threads at once under `threads`.
  // A status other than EIN_OK stops the run with it.
  ein_status (*event_fn)(void *user, const ein_dist_event *event);
  void *event_user;
} ein_dist_desc;

// What a run did. Bytes are those of elements a task read from blocks homed at other places, and of
// partial results folded there, whether copied or not; nothing is kept between statements.
typedef struct ein_place_stats {
  int64_t tasks, received_bytes, sent_bytes;
} ein_place_stats;

typedef struct ein_dist_stats {
  int64_t tasks;             // blocks computed and merges
  int64_t messages;          // transfers between two places
  int64_t bytes;
  int64_t nstmt;             // room in stmt_bytes
  int64_t *stmt_bytes;       // the caller's, may be NULL: bytes of each statement
  int64_t nplace;            // room in place
  ein_place_stats *place;    // the caller's, may be NULL: of each place that the process drives
} ein_dist_stats;

typedef struct ein_dist_info {
  int places, nstmt;
  int64_t tasks, messages, bytes;  // what a run will do
  size_t workspace_bytes;    // of a run
  size_t plan_bytes;         // of the plan, without those of its tasks
  int64_t peak_bytes;        // the largest of all places, see ein_dist_peak
  int64_t place_bytes;       // most memory that a place allocates, on a fabric that copies; else 0
  int nplan;                 // different task plans
} ein_dist_info;

typedef struct ein_dist ein_dist;  // immutable, shared freely between threads

// Plans a finished graph, which must outlive the plan. *d is NULL on failure: EIN_ERR_ARGUMENT
// where parts contradict the graph or each other; the message names statement and index. With a
// fabric of several processes, creating and executing are collective: all get one status.
EIN_API ein_status ein_dist_create(ein_ctx *ctx, const ein_graph *graph, const ein_dist_desc *desc,
                                   ein_dist **d);
EIN_API void ein_dist_destroy(ein_dist *d);  // NULL is a no-op
EIN_API ein_status ein_dist_info_get(const ein_dist *d, ein_dist_info *info);
// Most bytes that live at one place at once, by the order of statements: inputs (blocks of pinned
// ones; of others, unless they lie outside, the parts that its tasks read), blocks until their last
// reader (outputs to the end), and of one statement at a time what its task fetches from other
// places, its partial result and its block; what ein_simulate predicts. Bytes of a statement, as
// ein_dist_stats has them.
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
// share memory, not with schedules or layouts, and for outputs of which a single statement writes
// each element by indices of its own. EIN_ERR_ARGUMENT: no such tensor or place;
// EIN_ERR_UNSUPPORTED: its blocks are not boxes.
EIN_API ein_status ein_dist_block(const ein_dist *d, int tensor, int place, int64_t *origin,
                                  int64_t *extent, int64_t *elements);
// Runs the plan. As for ein_plan_execute, in and out are in the order of the graph's inputs and
// outputs. Outputs must not overlap inputs. stats may be NULL. run->seconds is not used. Reentrant
// where the fabric is shared.
EIN_API ein_status ein_dist_execute(const ein_dist *d, const ein_run *run, ein_dist_stats *stats);

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

// What a plan is made for. A result stored by free indices has one axis for each of them, dense;
// otherwise it is the hull of the block in the tensor. States are stored by free indices.
typedef struct eini_dist_job {
  const ein_graph *g;
  const eini_stmt *s;
  eini_stmt_block block;         // with ranges from 0 on
  const int64_t *cut;            // nindex: only cut indices have an origin
  const int64_t *const *stride;  // per operand: strides of its view; NULL entry: dense
  const int64_t *out_stride;     // of the hull; NULL: dense
  int by_index;                  // 1: the result is stored by free indices
  const eini_folder *folder;     // the results are its states, which the block is folded into
  ein_dtype dtype;               // of the result
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

// Plans a graph whose tensors have the given strides (NULL: dense).
static ein_status eini_dist_plan_graph(eini_block_plans *l, ein_graph *g,
                                       const int64_t *const *stride, ein_plan **plan) {
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
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < j->s->noperand; k++)
    if (eini_operand_first(j->s, k) == k) stride[n++] = j->stride[k];
  stride[n] = j->by_index ? NULL : j->out_stride;
  return eini_dist_plan_graph(l, *g, stride, plan);
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
  const eini_merge_side part = {type, s->nfree, j->block.hi, NULL, NULL, NULL};
  eini_merge_side out = {j->dtype, s->nfree, j->block.hi, NULL, NULL, NULL};
  eini_block_merge x = {s->fold, 0, type, s->nfree, j->block.hi, part, part, part};
  eini_arena scratch;
  int64_t *low, *shape;
  eini_arena_init(&scratch, &l->a->al);
  ein_status st = eini_block_hull_new(&scratch, s, &j->block, -1, &low, &shape);
  if (!j->by_index && st == EIN_OK) {
    const eini_merge_side affine = {j->dtype, s->out_map.rows, shape, j->out_stride, &s->out_map,
                                    low};
    out = affine;
  }
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
  int64_t *common = st == EIN_OK ? EINI_NEW(&x->arena, int64_t, rank) : NULL;
  if (st == EIN_OK && common == NULL) st = EIN_ERR_NO_MEMORY;
  for (int64_t b = 0; st == EIN_OK && b < x->info.nblock; b++)
    eini_rel_gather(r, x->origin + b * rank, (char *)x->block[b].data, x->block[b].shape,
                    x->block[b].strides, common);
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

static ein_status eini_rel_task(eini_rel_join *j, int64_t q) {
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
  for (int64_t q = 0; q < j->space.ntask; q++) {
    eini_arena_init(&j->boxes, &j->arena.al);
    ein_status st = eini_rel_task(j, q);
    eini_arena_free(&j->boxes);
    if (st != EIN_OK) return st;
  }
  return EIN_OK;
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
    if (st == EIN_OK) st = eini_dist_plan_graph(l, g, dense, &plan);
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

static ein_status eini_rel_aggregate_states(ein_ctx *ctx, const ein_relation *r,
                                            const char *monoid, ein_relation *x) {
  int64_t n = 1, largest = 0, bytes;
  if (strcmp(monoid, r->monoid) != 0)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the blocks are states of '%.60s', not of "
                            "'%.60s'", r->monoid, monoid);
  EINI_TRY(eini_rel_shape(x, r->result, r->bound, r->pieces));
  EINI_TRY(eini_rel_alloc(x));
  for (int k = r->info.rank; k < r->info.nkey; k++) n *= r->pieces[k];
  for (int64_t b = 0; b < r->info.nblock; b++)
    largest = eini_max64(largest, ein_view_count(&r->block[b]));
  if (eini_mul_overflow(n, largest + EINI_ALIGN, &bytes)) return EIN_ERR_TOO_LARGE;
  eini_arena scratch;
  eini_arena_init(&scratch, &x->arena.al);
  char *stack = (char *)eini_new(&scratch, bytes, eini_rel_wide(r));
  ein_status st = stack == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int64_t b = 0; st == EIN_OK && b < x->info.nblock; b++)
    eini_rel_merge_states(r, b * n, n, stack, &x->block[b]);
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_rel_aggregate_all(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                         ein_relation *x) {
  int64_t n = 1, largest = 0, bytes;
  if (r->monoid != NULL) return eini_rel_aggregate_states(ctx, r, monoid, x);
  EINI_TRY(eini_rel_shape(x, r->result, r->bound, r->pieces));
  EINI_TRY(eini_rel_alloc(x));
  for (int k = r->info.rank; k < r->info.nkey; k++) n *= r->pieces[k];
  for (int64_t b = 0; b < r->info.nblock; b++)
    largest = eini_max64(largest, ein_view_count(&r->block[b]));
  if (eini_mul_overflow(n, largest, &bytes)) return EIN_ERR_TOO_LARGE;
  eini_arena scratch;
  eini_block_plans l;
  memset(&l, 0, sizeof l);
  eini_arena_init(&scratch, &x->arena.al);
  char *stack = (char *)eini_new(&scratch, bytes, ein_dtype_size(r->info.dtype));
  ein_status st = stack == NULL ? EIN_ERR_NO_MEMORY : eini_dist_ctx(ctx, 0, &l.ctx);
  l.a = &scratch;
  for (int64_t b = 0; st == EIN_OK && b < x->info.nblock; b++)
    st = eini_rel_fold(ctx, &l, r, b * n, n, monoid, stack, &x->block[b]);
  eini_block_plans_end(&l);
  eini_ctx_free(l.ctx);
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
// q of a statement runs at place q, and what it reads, and who reads its block, is computed.
// ================================================================================================

typedef struct eini_dist_tensor {
  int port;                 // number among inputs or outputs; -1: a temporary
  const int64_t *stride;
  int64_t lo, hi;           // bytes it spans from its data pointer; equal when there are none
  int item;                 // of the memory plan, or -1
  int ndefine, *define;     // statements
  int nread, *read;
} eini_dist_tensor;

typedef struct eini_dist_stmt {
  const eini_stmt *s;
  eini_space space;
  int64_t *plan;            // of each task; merges: into this partial result, and the last one
  int64_t *merge, *last;
  const eini_folder *folder;  // partial results are its states, merged without plans; NULL: values
  int64_t wide;             // bytes of one element of a partial result
  int direct;               // 1: partial result 0 is made in the block of the output
  int item;                 // memory of the partial results, one of partial_bytes per task; or -1
  size_t partial_bytes;
  int64_t first;            // of its tasks among all tasks
  int64_t jobs;             // blocks, merges, and the zeroing of its tensor
  int32_t before;           // statements whose memory it takes
  int form;                 // the first statement whose plans its blocks may run
  int64_t bytes, messages;  // what its tasks read from other places
  int64_t *fetched;         // of each task
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
  int64_t ntask;            // of all statements
  eini_dist_stmt *stmt;     // and, behind them, pinned inputs as statements that copy them: these
  int npin;                 //   have no tasks, only a space
  eini_dist_tensor *tensor;
  eini_block_plans plans;
  eini_dist_item *item;
  int nitem;
  int64_t temp_bytes;
  uint64_t *after;          // nstmt rows of bits: statements that must be done before this one
  int words;                //   writes, since it reuses their memory
  int32_t *wait;            // per task: blocks and statements it waits for
  int64_t *peak;            // per place
  int width, rank;          // workers; most indices, axes or operands of a statement
  size_t workspace;
  struct eini_dist_copies *copies;  // of a fabric that does not share memory
  struct eini_steps_rooms *rooms;   // of a schedule: per statement
  ein_dist_info info;
};

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

// What operand k of the task at `place` reads from blocks homed elsewhere.
static void eini_dist_fetch(const ein_dist *d, const eini_dist_stmt *e, int64_t place, int k,
                            eini_dist_room *m, eini_dist_read *r) {
  const eini_dist_tensor *t = &d->tensor[e->s->operand[k]];
  int64_t size = (int64_t)ein_dtype_size(d->g->tensor[e->s->operand[k]].dtype);
  eini_dist_near w;
  if (t->ndefine == 0 || eini_operand_first(e->s, k) < k) return;
  if (!eini_dist_box(e, place, k, m)) return;
  for (int u = 0; u < t->ndefine; u++) {
    const eini_space *x = &d->stmt[t->define[u]].space;
    int more = eini_dist_near_first(x, m->from, m->to, m, &w);
    for (; more; more = eini_dist_near_next(&w)) {
      int64_t home = eini_dist_near_place(x, &w);
      int64_t n = home == place ? 0 : eini_dist_overlap(x, home, m->from, m->to, m);
      eini_dist_reads(r, home, n * size);
    }
  }
}

// Elements of the block the task at `place` computes, by its free indices.
static int64_t eini_dist_elements(const eini_space *x, int64_t place, eini_dist_room *m) {
  eini_space_ranges(x, place, m->lo, m->hi);
  return (int64_t)eini_box_volume(x->s->nfree, m->lo, m->hi);
}

// What a task reads, its merges aside.
static void eini_dist_task_bytes(const ein_dist *d, const eini_dist_stmt *e, int64_t place,
                                 eini_dist_room *m, eini_dist_read *r) {
  for (int k = 0; k < e->s->noperand; k++) eini_dist_fetch(d, e, place, k, m, r);
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

static ein_status eini_dist_task_plans(ein_dist *d, int k, int64_t q, int64_t *key,
                                       const int64_t **stride, eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = e->s;
  const eini_space *x = &e->space;
  const eini_tensor *out = &d->g->tensor[s->out];
  eini_dist_job job;
  int64_t nkey = s->nindex + 2, part = eini_space_partial(x, q);
  int shared = d->fabric.shared, own = part == 0 && (x->nagg == 1 || e->direct);
  memset(&job, 0, sizeof job);
  eini_space_ranges(x, q, m->lo, m->hi);
  for (int i = 0; i < s->nindex; i++) key[i + 2] = m->hi[i] - m->lo[i];
  for (int o = 0; o < s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[s->operand[o]];
    stride[o] = shared || t->ndefine == 0 ? t->stride : NULL;
  }
  job.g = d->g;
  job.s = s;
  job.block = eini_block_of(NULL, key + 2, NULL);
  job.cut = x->cut;
  job.stride = stride;
  job.out_stride = d->tensor[s->out].stride;
  job.by_index = !shared || !own;
  job.dtype = own ? out->dtype : ein_dtype_compute(s->type);
  job.folder = e->folder;
  key[0] = e->form;
  key[1] = own;
  EINI_TRY(eini_dist_plan(&d->plans, &job, key, nkey, &e->plan[q]));
  if (x->nagg == 1 || e->folder != NULL) return EIN_OK;
  job.by_index = !shared;
  job.dtype = out->dtype;
  int how = own ? EINI_MERGE_FROM_OUT | EINI_MERGE_TO_OUT : 0;
  key[1] = 2 + how;
  EINI_TRY(eini_dist_merge_plan(&d->plans, &job, how, key, s->nfree + 2, &e->merge[q]));
  if (part > 0) return EIN_OK;
  how |= EINI_MERGE_TO_OUT;
  key[1] = 2 + how;
  return eini_dist_merge_plan(&d->plans, &job, how, key, s->nfree + 2, &e->last[q]);
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
  int64_t n = e->space.ntask;
  e->item = -1;
  e->first = d->ntask;
  d->ntask += n;
  e->jobs = n + (n - n / e->space.nagg) + (s->rest == EIN_REST_ZERO);
  e->plan = EINI_NEW(a, int64_t, n);
  e->merge = EINI_NEW(a, int64_t, n);
  e->last = EINI_NEW(a, int64_t, n);
  e->fetched = EINI_NEW(a, int64_t, n);
  int64_t *key = EINI_NEW(a, int64_t, (int64_t)s->nindex + 2);
  const int64_t **stride = EINI_NEW(a, const int64_t *, s->noperand);
  if (e->plan == NULL || e->merge == NULL || e->last == NULL || e->fetched == NULL || key == NULL ||
      stride == NULL)
    return EIN_ERR_NO_MEMORY;
  int64_t size = e->wide, most = 0;
  for (int64_t q = 0; q < n; q++) {
    int64_t block = eini_dist_elements(&e->space, q, m);
    most = eini_max64(most, block);
    eini_dist_read r = {0, 0, NULL};
    eini_dist_task_bytes(d, e, q, m, &r);
    e->fetched[q] = r.bytes;
    e->messages += r.messages;
    e->bytes += r.bytes;
    if (eini_space_partial(&e->space, q) > 0 && block > 0) {
      e->bytes += block * size;
      e->messages++;
    }
    if (q >= d->fabric.first && q < (int64_t)d->fabric.first + d->fabric.count)
      EINI_TRY(eini_dist_task_plans(d, k, q, key, stride, m));
  }
  if (eini_muladd_overflow(most, size, EINI_ALIGN, &most)) return EIN_ERR_TOO_LARGE;
  if (e->space.nagg > 1) e->partial_bytes = (size_t)most / EINI_ALIGN * EINI_ALIGN;
  d->info.tasks += 2 * n - n / e->space.nagg;
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

// Statements that define or read what lies in an item become predecessors of statement k.
static void eini_dist_precede(ein_dist *d, int k, const eini_dist_item *item) {
  const eini_dist_tensor *t = item->tensor < 0 ? NULL : &d->tensor[item->tensor];
  uint64_t *row = d->after + (int64_t)k * d->words;
  if (t == NULL) row[item->first / 64] |= (uint64_t)1 << item->first % 64;
  for (int i = 0; t != NULL && i < t->ndefine; i++)
    row[t->define[i] / 64] |= (uint64_t)1 << t->define[i] % 64;
  for (int i = 0; t != NULL && i < t->nread; i++)
    row[t->read[i] / 64] |= (uint64_t)1 << t->read[i] % 64;
}

// Who must be done before memory is used again.
static ein_status eini_dist_reuse(ein_dist *d) {
  d->words = (d->nstmt + 63) / 64;
  d->after = EINI_NEW(&d->arena, uint64_t, (int64_t)d->nstmt * d->words);
  if (d->after == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    for (int own = 0; own < 2; own++) {
      int i = own ? d->stmt[k].item : d->tensor[d->stmt[k].s->out].item;
      for (int j = 0; i >= 0 && j < d->nitem; j++) {
        const eini_dist_item *a = &d->item[j], *b = &d->item[i];
        if (a->last < b->first && a->at < b->at + b->bytes && b->at < a->at + a->bytes)
          eini_dist_precede(d, k, a);
      }
    }
    for (int u = 0; u < k; u++)
      d->stmt[k].before += (int32_t)(d->after[(int64_t)k * d->words + u / 64] >> u % 64 & 1);
  }
  return EIN_OK;
}

// Blocks and statements every task waits for.
static ein_status eini_dist_waits(ein_dist *d, eini_dist_room *m) {
  eini_dist_near w;
  d->wait = EINI_NEW(&d->arena, int32_t, d->ntask);
  if (d->wait == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_dist_stmt *e = &d->stmt[k];
    // Where there are zeros to write, they wait for other statements, and the tasks for them.
    int32_t before = e->s->rest == EIN_REST_ZERO ? 1 : e->before;
    for (int64_t q = 0; q < e->space.ntask; q++) {
      int32_t *n = &d->wait[e->first + q];
      *n = before;
      for (int o = 0; o < e->s->noperand; o++) {
        const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
        if (t->ndefine == 0 || eini_operand_first(e->s, o) < o) continue;
        if (!eini_dist_box(e, q, o, m)) continue;
        if (t->define[0] < d->nstmt && d->stmt[t->define[0]].s->rest == EIN_REST_ZERO) ++*n;
        for (int u = 0; u < t->ndefine && t->define[u] < d->nstmt; u++) {
          const eini_space *x = &d->stmt[t->define[u]].space;
          int more = eini_dist_near_first(x, m->from, m->to, m, &w);
          for (; more; more = eini_dist_near_next(&w))
            *n += eini_dist_overlap(x, eini_dist_near_place(x, &w), m->from, m->to, m) > 0;
        }
      }
    }
  }
  return EIN_OK;
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

// Bytes of inputs at each place, into d->peak.
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
    for (int64_t q = 0; q < d->fabric.places; q++) {
      const eini_space *pin = x->ndefine > 0 ? &d->stmt[x->define[0]].space : NULL;
      if (pin == NULL) eini_dist_input(d, t, q, &boxes, m, &d->peak[q]);
      else if (q < pin->ntask)
        d->peak[q] += eini_dist_elements(pin, q, m) *
                      (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
    }
  }
  return EIN_OK;
}

// Most bytes alive at each place: inputs, blocks, and of one statement at a time what its task
// fetches and its partial result.
static ein_status eini_dist_peaks(ein_dist *d, eini_dist_room *m) {
  int places = d->fabric.places, n = d->nstmt + 1;
  int64_t *change = EINI_NEW(&d->arena, int64_t, n);
  d->peak = EINI_NEW(&d->arena, int64_t, places);
  if (change == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_held(d, m));
  for (int64_t q = 0; q < places; q++) {
    memset(change, 0, (size_t)n * sizeof *change);
    for (int k = 0; k < d->nstmt; k++) {
      const eini_dist_stmt *e = &d->stmt[k];
      const eini_dist_tensor *t = &d->tensor[e->s->out];
      if (q >= e->space.ntask) continue;
      int64_t block = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
      int64_t bytes = block * e->wide;
      change[k] += e->fetched[q];
      change[k + 1] -= e->fetched[q];
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
    int64_t alive = d->peak[q];  // inputs
    for (int k = 0; k < d->nstmt; k++) d->peak[q] = eini_max64(d->peak[q], alive += change[k]);
  }
  return EIN_OK;
}

// ================================================================================================
// >>dist-run  tasks of places that share memory
// Takes an ein_dist and the bindings of one call. Blocks are views of whole tensors; everything
// mutable is in the workspace: temporaries, partial results, the state of tasks, scratch.
// ================================================================================================

// What one thread needs to run tasks.
typedef struct eini_dist_worker {
  eini_dist_room room;
  ein_scalar *param;        // of the graph, then origins
  const void **in;
  int64_t *places;          // as many as there are places
  int64_t *sent;            // the same: bytes that were read of theirs; NULL: not counted
  char *scratch;
} eini_dist_worker;

// The state of a task: one job at a time.
typedef struct eini_dist_task {
  int32_t wait;             // what has to be done before its block is computed
  int32_t level;            // the job at hand: EINI_DIST_ZERO, EINI_DIST_BLOCK, or a merge
  uint32_t arrived;         // bit l: one of the two partial results of a merge at level l is there
  int32_t ready;
} eini_dist_task;

enum { EINI_DIST_ZERO = -2, EINI_DIST_BLOCK = -1 };

struct eini_dist_flow;

typedef struct eini_dist_exec {
  const ein_dist *d;
  const ein_run *run;
  char *temp;               // temporaries and partial results
  char **base;              // per tensor: element (0, .., 0)
  eini_dist_worker *worker;
  eini_dist_task *task;
  int64_t *left;            // per statement: jobs not yet done
  int32_t *ready;           // per statement: tasks that are ready
  int32_t *zero;            // per statement: those before, whose memory it takes
  ein_dist_stats *stats;    // NULL: not counted
  struct eini_dist_flow *flow;
} eini_dist_exec;

// The next `bytes` of a memory; with mem NULL only *used moves.
static char *eini_dist_carve(char *mem, size_t *used, int64_t count, size_t size) {
  char *p = mem == NULL ? NULL : mem + *used;
  *used += ((size_t)count * size + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  return p;
}

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_dist_layout(const ein_dist *d, eini_dist_exec *x, char *mem) {
  size_t n = 0;
  int flow = d->fabric.threads;
  x->base = (char **)(void *)eini_dist_carve(mem, &n, d->g->ntensor, sizeof(char *));
  x->worker = (eini_dist_worker *)(void *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  x->task = (eini_dist_task *)(void *)eini_dist_carve(mem, &n, flow ? d->ntask : 0,
                                                      sizeof *x->task);
  x->left = (int64_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->left);
  x->ready = (int32_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->ready);
  x->zero = (int32_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->zero);
  for (int i = 0; i < d->width; i++) {
    int64_t *room = (int64_t *)(void *)eini_dist_carve(mem, &n, EINI_ROOM * (int64_t)d->rank,
                                                        sizeof(int64_t));
    char *param = eini_dist_carve(mem, &n, d->g->nparam + d->rank, sizeof(ein_scalar));
    char *in = eini_dist_carve(mem, &n, d->rank, sizeof(void *));
    char *places = eini_dist_carve(mem, &n, flow ? d->fabric.places : 0, sizeof(int64_t));
    char *out = eini_dist_carve(mem, &n, d->fabric.shared ? d->fabric.places : 0,
                                 sizeof(int64_t));
    char *scratch = eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
    if (mem == NULL) continue;
    eini_dist_worker *w = &x->worker[i];
    eini_dist_room_carve(room, d->rank, &w->room);
    w->param = (ein_scalar *)(void *)param;
    w->in = (const void **)(void *)in;
    w->places = (int64_t *)(void *)places;
    w->sent = x->stats != NULL && d->fabric.shared ? (int64_t *)(void *)out : NULL;
    for (int q = 0; w->sent != NULL && q < d->fabric.places; q++) w->sent[q] = 0;
    w->scratch = scratch;
  }
  x->temp = eini_dist_carve(mem, &n, d->temp_bytes, 1);
  return n;
}

// The element at coordinates `at` of a tensor; `at` is the origin of a box that may be empty.
static char *eini_dist_at(const eini_dist_exec *x, int tensor, const int64_t *at) {
  const eini_tensor *t = &x->d->g->tensor[tensor];
  int64_t n = 0;
  for (int r = 0; r < t->rank; r++) n += at[r] * x->d->tensor[tensor].stride[r];
  if (x->d->tensor[tensor].lo == x->d->tensor[tensor].hi) return x->base[tensor];
  return x->base[tensor] + n * (int64_t)ein_dtype_size(t->dtype);
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

// The hull of the block the task at `place` computes, in m->from and m->to.
static void eini_dist_block_hull(const eini_dist_stmt *e, int64_t place, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, -1, m->from, m->to);
}

// The address of that block.
static char *eini_dist_block_at(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t place,
                                eini_dist_room *m) {
  eini_dist_block_hull(e, place, m);
  return eini_dist_at(x, e->s->out, m->from);
}

static ein_status eini_dist_execute_plan(const eini_dist_exec *x, eini_dist_worker *w, int64_t id,
                                         void *const *out) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = out;
  run.param = w->param;
  run.workspace = w->scratch;
  run.workspace_bytes = x->d->plans.workspace;
  return ein_plan_execute(x->d->plans.plan[id], &run);
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
  return eini_dist_execute_plan(x, w, e->plan[q], data);
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
  return eini_dist_execute_plan(x, w, last ? e->last[q] : e->merge[q], &out);
}

// Zero for all elements of a tensor, before its only statement writes those it defines.
static void eini_dist_zero(const eini_dist_exec *x, int tensor, eini_dist_room *m) {
  static const char zero[16] = {0};
  const eini_tensor *t = &x->d->g->tensor[tensor];
  for (int r = 0; r < t->rank; r++) m->from[r] = 0;
  eini_dist_copy(t->rank, t->shape, x->base[tensor], x->d->tensor[tensor].stride, zero, m->from,
                 ein_dtype_size(t->dtype));
}

// One job: a block, a merge, or zeros. Counts what it reads from other places.
static ein_status eini_dist_job_run(eini_dist_exec *x, int worker, int k, int64_t q, int level,
                                    eini_dist_read *r) {
  const ein_dist *d = x->d;
  eini_dist_worker *w = &x->worker[worker];
  ein_dist_event v;
  ein_status st = EIN_OK;
  r->bytes = r->messages = 0;
  r->sent = w->sent;
  memset(&v, 0, sizeof v);
  v.begin = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  if (level == EINI_DIST_ZERO) {
    eini_dist_zero(x, d->stmt[k].s->out, &w->room);
    return EIN_OK;
  }
  if (level >= 0) {
    st = eini_dist_merge(x, w, k, q, level, r);
  } else {
    st = eini_dist_compute(x, w, k, q);
    if (x->stats != NULL) eini_dist_task_bytes(d, &d->stmt[k], q, &w->room, r);
  }
  if (st != EIN_OK || d->desc.event_fn == NULL) return st;
  v.stmt = k;
  v.place = (int)q;
  v.level = level;
  v.worker = worker;
  v.end = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  return d->desc.event_fn(d->desc.event_user, &v);
}

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
}

static void eini_dist_sent(ein_dist_stats *s, int64_t place, int64_t bytes) {
  if (s != NULL && s->place != NULL && place < s->nplace) s->place[place].sent_bytes += bytes;
}

// Statements in order, places one after another, merges level by level.
static ein_status eini_dist_serial(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  eini_dist_read r;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_space *s = &d->stmt[k].space;
    if (d->stmt[k].s->rest == EIN_REST_ZERO)
      EINI_TRY(eini_dist_job_run(x, 0, k, 0, EINI_DIST_ZERO, &r));
    for (int64_t q = 0; q < s->ntask; q++) {
      EINI_TRY(eini_dist_job_run(x, 0, k, q, EINI_DIST_BLOCK, &r));
      eini_dist_count(x->stats, k, q, 1, &r);
    }
    for (int level = 0; (int64_t)1 << level < s->nagg; level++) {
      for (int64_t q = 0; q < s->ntask; q++) {
        int64_t part = eini_space_partial(s, q), step = (int64_t)1 << level;
        if (part % (2 * step) != 0 || part + step >= s->nagg) continue;
        EINI_TRY(eini_dist_job_run(x, 0, k, q, level, &r));
        eini_dist_count(x->stats, k, q, 1, &r);
      }
    }
  }
  return EIN_OK;
}

// ================================================================================================
// >>dist-flow  the threads fabric: tasks run as their inputs are ready
// Takes a laid-out run; any number of threads take ready tasks from one locked set, those of early
// statements first, a thread's own places before others. No thread waits while a task is ready.
// ================================================================================================

#if defined(__unix__) || defined(__APPLE__)
#define EINI_DIST_THREADS 1
#include <pthread.h>
#else
#define EINI_DIST_THREADS 0
#endif

#if EINI_DIST_THREADS

struct eini_dist_flow {
  pthread_mutex_t lock;
  pthread_cond_t work;
  int sleepers, width;
  int lowest;               // no statement before has a ready task
  int64_t left;             // jobs of all statements not yet done
  ein_status status;        // the first failure: nobody takes another task
};

// With the lock: the task's next job may run.
static void eini_flow_ready(eini_dist_exec *x, int k, int64_t q, int level) {
  eini_dist_task *t = &x->task[x->d->stmt[k].first + q];
  t->level = level;
  t->ready = 1;
  x->ready[k]++;
  if (k < x->flow->lowest) x->flow->lowest = k;
}

static void eini_flow_release(eini_dist_exec *x, int k, int64_t q) {
  if (--x->task[x->d->stmt[k].first + q].wait == 0) eini_flow_ready(x, k, q, EINI_DIST_BLOCK);
}

// With the lock: takes a ready task, if there is one.
static int eini_flow_take(eini_dist_exec *x, int worker, int *stmt, int64_t *place, int *level) {
  struct eini_dist_flow *f = x->flow;
  int k = f->lowest;
  while (k < x->d->nstmt && x->ready[k] == 0) k++;
  f->lowest = k;
  if (k == x->d->nstmt) return 0;
  const eini_dist_stmt *e = &x->d->stmt[k];
  int64_t found = -1;
  for (int64_t q = 0; q < e->space.ntask; q++) {
    if (!x->task[e->first + q].ready) continue;
    if (found < 0) found = q;
    if (q % f->width != worker) continue;
    found = q;
    break;
  }
  x->ready[k]--;
  x->task[e->first + found].ready = 0;
  *stmt = k;
  *place = found;
  *level = x->task[e->first + found].level;
  return 1;
}

// Tasks of statement r that read block q of statement k through operand o, into w->places.
static int64_t eini_flow_readers(const eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                 int r, int o) {
  const eini_dist_stmt *e = &x->d->stmt[r];
  const eini_space *block = &x->d->stmt[k].space;
  eini_dist_room *m = &w->room;
  eini_dist_near near;
  int64_t n = 0;
  if (e->s->operand[o] != x->d->stmt[k].s->out || eini_operand_first(e->s, o) < o) return 0;
  eini_dist_block_hull(&x->d->stmt[k], q, m);
  int more = eini_dist_near_begin(&e->space, &e->s->proj[o], e->s->nindex, m->from, m->to, m,
                                  &near);
  for (; more; more = eini_dist_near_next(&near)) {
    int64_t place = eini_dist_near_place(&e->space, &near);
    if (!eini_dist_box(e, place, o, m)) continue;
    if (eini_dist_overlap(block, q, m->from, m->to, m) > 0) w->places[n++] = place;
  }
  return n;
}

// A block is there: whoever reads it waits for one thing less.
static void eini_flow_block_done(eini_dist_exec *x, int worker, int k, int64_t q) {
  const eini_dist_tensor *t = &x->d->tensor[x->d->stmt[k].s->out];
  eini_dist_worker *w = &x->worker[worker];
  for (int u = 0; u < t->nread; u++) {
    int r = t->read[u];
    for (int o = 0; o < x->d->stmt[r].s->noperand; o++) {
      int64_t n = eini_flow_readers(x, w, k, q, r, o);
      if (n == 0) continue;
      pthread_mutex_lock(&x->flow->lock);
      for (int64_t i = 0; i < n; i++) eini_flow_release(x, r, w->places[i]);
      pthread_mutex_unlock(&x->flow->lock);
    }
  }
}

// A partial result is there, merged up to level: the second of two to arrive starts their merge. 1:
// the block is complete.
static int eini_flow_arrive(eini_dist_exec *x, int k, int64_t q, int level) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  int64_t part = eini_space_partial(&e->space, q), step = (int64_t)1 << level;
  for (; step < e->space.nagg; level++, step *= 2) {
    int64_t left = part & ~(2 * step - 1);
    if (left + step >= e->space.nagg) continue;  // alone at this level
    q = eini_space_partner(&e->space, q, left);
    eini_dist_task *t = &x->task[e->first + q];
    if (t->arrived >> level & 1) eini_flow_ready(x, k, q, level);
    t->arrived |= (uint32_t)1 << level;
    return 0;
  }
  return 1;
}

// With the lock: a job of statement k is done; at its last one, those that reuse its memory go on.
static void eini_flow_stmt_done(eini_dist_exec *x, int k) {
  const ein_dist *d = x->d;
  x->flow->left--;
  if (--x->left[k] > 0) return;
  for (int u = k + 1; u < d->nstmt; u++) {
    if (!(d->after[(int64_t)u * d->words + k / 64] >> k % 64 & 1)) continue;
    int zeros = d->stmt[u].s->rest == EIN_REST_ZERO;
    if (zeros && --x->zero[u] == 0) eini_flow_ready(x, u, 0, EINI_DIST_ZERO);
    for (int64_t q = 0; !zeros && q < d->stmt[u].space.ntask; q++) eini_flow_release(x, u, q);
  }
}

// With the lock: the zeros of statement k's tensor are there. Its tasks and those of its readers,
// which may read nothing but zeros, go on.
static void eini_flow_zeros_done(eini_dist_exec *x, int worker, int k) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  const eini_dist_tensor *t = &x->d->tensor[e->s->out];
  for (int64_t q = 0; q < e->space.ntask; q++) eini_flow_release(x, k, q);
  for (int u = 0; u < t->nread; u++) {
    const eini_dist_stmt *r = &x->d->stmt[t->read[u]];
    for (int o = 0; o < r->s->noperand; o++) {
      if (r->s->operand[o] != e->s->out || eini_operand_first(r->s, o) < o) continue;
      for (int64_t q = 0; q < r->space.ntask; q++)
        if (eini_dist_box(r, q, o, &x->worker[worker].room))
          eini_flow_release(x, t->read[u], q);
    }
  }
}

// Everything that follows from a job that is done.
static void eini_flow_finish(eini_dist_exec *x, int worker, int k, int64_t q, int level) {
  struct eini_dist_flow *f = x->flow;
  const eini_space *s = &x->d->stmt[k].space;
  int whole = level != EINI_DIST_ZERO && s->nagg == 1;
  if (!whole && level != EINI_DIST_ZERO) {
    pthread_mutex_lock(&f->lock);
    whole = eini_flow_arrive(x, k, q, level + 1);
    pthread_mutex_unlock(&f->lock);
  }
  if (whole) eini_flow_block_done(x, worker, k, eini_space_partner(s, q, 0));
  pthread_mutex_lock(&f->lock);
  if (level == EINI_DIST_ZERO) eini_flow_zeros_done(x, worker, k);
  eini_flow_stmt_done(x, k);
}

static void eini_flow_worker(void *arg, int worker) {
  eini_dist_exec *x = (eini_dist_exec *)arg;
  struct eini_dist_flow *f = x->flow;
  int k, level;
  eini_dist_read r;
  int64_t q;
  pthread_mutex_lock(&f->lock);
  while (f->left > 0 && f->status == EIN_OK) {
    if (!eini_flow_take(x, worker, &k, &q, &level)) {
      f->sleepers++;
      pthread_cond_wait(&f->work, &f->lock);
      f->sleepers--;
      continue;
    }
    pthread_mutex_unlock(&f->lock);
    ein_status st = eini_dist_job_run(x, worker, k, q, level, &r);
    if (st == EIN_OK) {
      eini_flow_finish(x, worker, k, q, level);  // returns with the lock
      if (level != EINI_DIST_ZERO) eini_dist_count(x->stats, k, q, 1, &r);
    } else {
      pthread_mutex_lock(&f->lock);
      if (f->status == EIN_OK) f->status = st;
    }
    if (f->sleepers > 0) pthread_cond_broadcast(&f->work);
  }
  pthread_mutex_unlock(&f->lock);
}

// The run's first state: who waits for what, and who waits for nothing.
static void eini_flow_begin(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  struct eini_dist_flow *f = x->flow;
  f->lowest = d->nstmt;
  memset(x->ready, 0, (size_t)d->nstmt * sizeof *x->ready);
  memset(x->task, 0, (size_t)d->ntask * sizeof *x->task);
  for (int k = 0; k < d->nstmt; k++) {
    const eini_dist_stmt *e = &d->stmt[k];
    x->left[k] = e->jobs;
    f->left += e->jobs;
    x->zero[k] = e->before;
    if (e->s->rest == EIN_REST_ZERO && x->zero[k] == 0) eini_flow_ready(x, k, 0, EINI_DIST_ZERO);
    for (int64_t q = 0; q < e->space.ntask; q++) {
      x->task[e->first + q].wait = d->wait[e->first + q];
      if (d->wait[e->first + q] == 0) eini_flow_ready(x, k, q, EINI_DIST_BLOCK);
    }
  }
}

static ein_status eini_dist_flow_run(eini_dist_exec *x) {
  struct eini_dist_flow f;
  memset(&f, 0, sizeof f);
  x->flow = &f;
  f.width = x->d->width;
  if (pthread_mutex_init(&f.lock, NULL) != 0) return eini_dist_serial(x);
  if (pthread_cond_init(&f.work, NULL) != 0) {
    pthread_mutex_destroy(&f.lock);
    return eini_dist_serial(x);
  }
  eini_flow_begin(x);
  const ein_executor *e = &x->d->executor;
  if (e->parallel_for != NULL && f.width > 1)
    e->parallel_for(f.width, eini_flow_worker, x, e->user);
  else
    eini_flow_worker(x, 0);
  pthread_cond_destroy(&f.work);
  pthread_mutex_destroy(&f.lock);
  return f.status;
}

#else  // EINI_DIST_THREADS

static ein_status eini_dist_flow_run(eini_dist_exec *x) { return eini_dist_serial(x); }

#endif  // EINI_DIST_THREADS

// ================================================================================================
// >>dist-copy  places with memory of their own
// Takes an ein_dist whose fabric moves data. Statement by statement, every driven place sends what
// others read of its blocks, receives what its task reads, computes, and folds partial results.
// Blocks are stored by the free indices of their statement, dense; a task's operands are boxes.
// ================================================================================================

// Where things lie in the memory of a place, in bytes; each has an entry per statement and place.
typedef struct eini_dist_copies {
  int64_t *block, *partial, *operand, *inbox, *outbox, *merged;
  int64_t *bytes;           // per place: of its memory
  int64_t most;             // transfers of one statement
} eini_dist_copies;

// One side of a move of a block's elements in a box.
typedef enum eini_dist_kind {
  EINI_AT_BLOCK,            // the block, by free indices
  EINI_AT_MESSAGE,          // these elements alone, in order
  EINI_AT_BOX               // by coordinates, from the corner of the box
} eini_dist_kind;

typedef struct eini_dist_end {
  eini_dist_kind kind;
  char *data;
  const int64_t *stride;    // of a box
} eini_dist_end;

// Is every coordinate one index, and every index one coordinate?
static int eini_dist_is_box(const eini_space *x) {
  const eini_map *map = &x->s->out_map;
  for (int r = 0; r < map->rows; r++)
    if (eini_map_terms(map, r) > 1) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (eini_map_uses(map, i) > 1) return 0;
  return 1;
}

// Strides of one side by free indices, and the address of the point a.
static char *eini_dist_end_at(const eini_space *x, const eini_dist_end *e, size_t size,
                              const int64_t *from, const int64_t *lo, const int64_t *hi,
                              const int64_t *a, const int64_t *b, int64_t *stride) {
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
  return e->data + at * (int64_t)size;
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

// Moves the elements of the block at `place` that lie in a box.
static void eini_dist_move(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, size_t size, const eini_dist_end *dst,
                           const eini_dist_end *src, eini_dist_room *m) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  if (eini_zrange_empty(x->s->nfree, m->blo, m->bhi)) return;
  if (!eini_dist_is_box(x)) {
    eini_dist_move_points(x, from, to, size, dst, src, m);
    return;
  }
  for (int i = 0; i < x->s->nfree; i++) {
    m->bfrom[i] = m->blo[i];
    m->bto[i] = m->bhi[i];
  }
  if (!eini_box_narrow(&x->s->out_map, x->s->nfree, from, to, m->bfrom, m->bto)) return;
  char *pd = eini_dist_end_at(x, dst, size, from, m->blo, m->bhi, m->bfrom, m->bto, m->dst);
  char *ps = eini_dist_end_at(x, src, size, from, m->blo, m->bhi, m->bfrom, m->bto, m->src);
  for (int i = 0; i < x->s->nfree; i++) m->bto[i] -= m->bfrom[i];
  eini_dist_copy(x->s->nfree, m->bto, pd, m->dst, ps, m->src, size);
}

// ---- the transfers of a statement, in an order all places know ----

// One transfer: the elements of block `home` of statement `define` that lie in the box operand
// `operand` of the task at `place` reads (m->from, m->to). home == place: no transfer.
typedef struct eini_dist_transfer {
  int64_t place, home;
  int operand, define;
  int64_t elements, bytes;
} eini_dist_transfer;

typedef ein_status (*eini_dist_transfer_fn)(void *user, const eini_dist_transfer *t,
                                            eini_dist_room *m);

// Calls fn for all transfers of the task at `place`.
static ein_status eini_dist_task_transfers(const ein_dist *d, int k, int64_t place,
                                           eini_dist_room *m, eini_dist_transfer_fn fn,
                                           void *user) {
  const eini_dist_stmt *e = &d->stmt[k];
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

static int64_t eini_dist_pad(int64_t bytes) {
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

static int eini_dist_driven(const ein_dist *d, int64_t q) {
  return q >= d->fabric.first && q - d->fabric.first < d->fabric.count;
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

// ---- memory of the places ----

typedef struct eini_dist_sizes {
  const ein_dist *d;
  int64_t *in, *out;        // bytes of messages, per place
} eini_dist_sizes;

static ein_status eini_dist_size_transfer(void *user, const eini_dist_transfer *t,
                                          eini_dist_room *m) {
  eini_dist_sizes *z = (eini_dist_sizes *)user;
  (void)m;
  if (t->home == t->place) return EIN_OK;
  z->in[t->place] += eini_dist_pad(t->bytes);
  z->out[t->home] += eini_dist_pad(t->bytes);
  return EIN_OK;
}

// Sizes of what lives at place q because of statement k: block, partial result, operands, inbox,
// outbox, and the partial result that is merged next.
static void eini_dist_sizes_at(const ein_dist *d, int k, int64_t q, const eini_dist_sizes *z,
                               eini_dist_room *m, int64_t size[6]) {
  const eini_dist_stmt *e = &d->stmt[k];
  memset(size, 0, 6 * sizeof *size);
  size[3] = z->in[(int64_t)k * d->fabric.places + q];
  size[4] = z->out[(int64_t)k * d->fabric.places + q];
  if (q >= e->space.ntask) return;
  int64_t n = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
  int64_t wide = n * e->wide;
  if (part == 0)
    size[0] = eini_dist_pad(n * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype));
  if (part > 0 || (e->space.nagg > 1 && !e->direct)) size[1] = eini_dist_pad(wide);
  for (int o = 0; o < e->s->noperand; o++) size[2] += eini_dist_box_bytes(d, e, q, o, m);
  if (part % 2 == 0 && part + 1 < e->space.nagg) size[5] = eini_dist_pad(wide);
}

// Lays out the memory of place q. Blocks live until their last reader, the rest for a statement.
static ein_status eini_dist_place_memory(ein_dist *d, int64_t q, const eini_dist_sizes *z,
                                         eini_item *item, int *alive, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  int64_t *at[6], size[6];
  int n = 0;
  at[0] = c->block, at[1] = c->partial, at[2] = c->operand, at[3] = c->inbox, at[4] = c->outbox;
  at[5] = c->merged;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
    eini_dist_sizes_at(d, k, q, z, m, size);
    for (int i = 0; i < 6; i++) {
      item[n].at = &at[i][(int64_t)k * d->fabric.places + q];
      item[n].from = item[n].to = k;
      if (i == 0 && t->nread > 0) item[n].to = (int)eini_max64(k, t->read[t->nread - 1]);
      if (d->desc.no_reuse) item[n].to = d->nstmt;
      item[n++].bytes = size[i];
    }
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, &c->bytes[q]));
  d->info.place_bytes = eini_max64(d->info.place_bytes, c->bytes[q]);
  return EIN_OK;
}

static ein_status eini_dist_copies_init(ein_dist *d, eini_dist_room *m) {
  eini_arena *a = &d->arena;
  int64_t n = (int64_t)d->nstmt * d->fabric.places;
  eini_dist_copies *c = d->copies = EINI_NEW(a, eini_dist_copies, 1);
  eini_item *item = EINI_NEW(a, eini_item, 6 * (int64_t)d->nstmt);
  int *alive = EINI_NEW(a, int, 6 * (int64_t)d->nstmt);
  eini_dist_sizes all, one;
  all.d = one.d = d;
  all.in = EINI_NEW(a, int64_t, n);
  all.out = EINI_NEW(a, int64_t, n);
  if (c == NULL || item == NULL || alive == NULL || all.in == NULL || all.out == NULL)
    return EIN_ERR_NO_MEMORY;
  int64_t *mem = EINI_NEW(a, int64_t, 6 * n);
  c->bytes = EINI_NEW(a, int64_t, d->fabric.places);
  if (mem == NULL || c->bytes == NULL) return EIN_ERR_NO_MEMORY;
  c->block = mem, c->partial = mem + n, c->operand = mem + 2 * n, c->inbox = mem + 3 * n;
  c->outbox = mem + 4 * n, c->merged = mem + 5 * n;
  for (int k = 0; k < d->nstmt; k++) {
    one.in = all.in + (int64_t)k * d->fabric.places;
    one.out = all.out + (int64_t)k * d->fabric.places;
    for (int64_t q = 0; q < d->stmt[k].space.ntask; q++)
      EINI_TRY(eini_dist_task_transfers(d, k, q, m, eini_dist_size_transfer, &one));
    c->most = eini_max64(c->most, 2 * d->stmt[k].messages);
  }
  for (int64_t q = 0; q < d->fabric.places; q++)
    EINI_TRY(eini_dist_place_memory(d, q, &all, item, alive, m));
  return EIN_OK;
}

// ---- runs ----

// The status of a process becomes that of all.
static ein_status eini_dist_agree(const ein_fabric *f, ein_status st) {
  ein_status all = st;
  if (f->agree_fn == NULL) return st;  // one process drives all places
  ein_status failed = f->agree_fn(f->user, &all);
  return failed != EIN_OK ? failed : all;
}

typedef struct eini_dist_mail {
  eini_dist_exec *x;
  int stmt;
  char **mem;               // per driven place
  ein_status *failed;       // per driven place
  int64_t *in, *out;        // per place: bytes of its boxes already used
  ein_ticket *ticket;
  int64_t nticket;
  eini_dist_worker *w;
} eini_dist_mail;

static char *eini_mail_at(const eini_dist_mail *b, const int64_t *at, int k, int64_t q) {
  const ein_dist *d = b->x->d;
  return b->mem[q - d->fabric.first] + at[(int64_t)k * d->fabric.places + q];
}

static eini_dist_end eini_mail_end(eini_dist_kind kind, char *data, const int64_t *stride) {
  eini_dist_end e;
  e.kind = kind;
  e.data = data;
  e.stride = stride;
  return e;
}

// Where the elements of a transfer are at home: in the block, or in the caller's pinned input.
static eini_dist_end eini_mail_home(const eini_dist_mail *b, const eini_dist_transfer *t,
                                    const eini_dist_room *m) {
  const ein_dist *d = b->x->d;
  int tensor = d->stmt[t->define].s->out;
  if (t->define >= d->nstmt && d->desc.blocks)  // its indices are the axes
    return eini_mail_end(EINI_AT_BLOCK, eini_dist_bound(d, b->x->run, tensor,
                                                        (int)t->home - d->fabric.first), NULL);
  if (t->define >= d->nstmt)
    return eini_mail_end(EINI_AT_BOX, eini_dist_at(b->x, tensor, m->from),
                         d->tensor[tensor].stride);
  return eini_mail_end(EINI_AT_BLOCK, eini_mail_at(b, d->copies->block, t->define, t->home), NULL);
}

// Posts one side or both of a transfer of `bytes`, which is counted where it is received.
static ein_status eini_mail_post(eini_dist_mail *b, int64_t from, int64_t to, const char *src,
                                 char *dst, int64_t bytes) {
  const ein_fabric *f = &b->x->d->fabric;
  if (eini_dist_driven(b->x->d, to)) {
    EINI_TRY(f->recv_fn(f->user, (int)to, (int)from, b->stmt, dst, (size_t)bytes,
                        &b->ticket[b->nticket]));
    b->nticket++;
    const eini_dist_read r = {bytes, 1, NULL};
    eini_dist_count(b->x->stats, b->stmt, to, 0, &r);
  }
  if (eini_dist_driven(b->x->d, from)) {
    EINI_TRY(f->send_fn(f->user, (int)from, (int)to, b->stmt, src, (size_t)bytes,
                        &b->ticket[b->nticket]));
    b->nticket++;
    eini_dist_sent(b->x->stats, from, bytes);
  }
  return EIN_OK;
}

static ein_status eini_mail_wait(eini_dist_mail *b) {
  const ein_fabric *f = &b->x->d->fabric;
  for (int64_t i = 0; i < b->nticket; i++) EINI_TRY(f->wait_fn(f->user, b->ticket[i]));
  b->nticket = 0;
  return EIN_OK;
}

// Sends and receives one transfer.
static ein_status eini_mail_transfer(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_mail *b = (eini_dist_mail *)user;
  const ein_dist *d = b->x->d;
  const eini_dist_copies *c = d->copies;
  char *src = NULL, *dst = NULL;
  if (t->home == t->place) return EIN_OK;
  if (eini_dist_driven(d, t->place)) {
    dst = eini_mail_at(b, c->inbox, b->stmt, t->place) + b->in[t->place];
    b->in[t->place] += eini_dist_pad(t->bytes);
  }
  if (eini_dist_driven(d, t->home)) {
    src = eini_mail_at(b, c->outbox, b->stmt, t->home) + b->out[t->home];
    b->out[t->home] += eini_dist_pad(t->bytes);
    eini_dist_end to = eini_mail_end(EINI_AT_MESSAGE, src, NULL), at = eini_mail_home(b, t, m);
    eini_dist_move(&d->stmt[t->define].space, t->home, m->from, m->to,
                   (size_t)(t->bytes / t->elements), &to, &at, m);
  }
  return eini_mail_post(b, t->home, t->place, src, dst, t->bytes);
}

// Puts what a transfer brought, or what is at home, into the operand's box.
static ein_status eini_mail_unpack(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_mail *b = (eini_dist_mail *)user;
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  int here = t->home == t->place, rank = d->g->tensor[e->s->operand[t->operand]].rank;
  eini_dist_end to, at = eini_mail_end(EINI_AT_MESSAGE, NULL, NULL);
  if (here) {
    at = eini_mail_home(b, t, m);
  } else {
    at.data = eini_mail_at(b, d->copies->inbox, b->stmt, t->place) + b->in[t->place];
    b->in[t->place] += eini_dist_pad(t->bytes);
  }
  for (int r = 0; r < rank; r++) m->len[r] = m->to[r] - m->from[r];
  eini_dist_dense(rank, m->len, m->box);
  union { const void *c; char *v; } u;
  u.c = b->w->in[t->operand];
  to = eini_mail_end(EINI_AT_BOX, u.v, m->box);
  eini_dist_move(&d->stmt[t->define].space, t->home, m->from, m->to,
                 (size_t)(t->bytes / t->elements), &to, &at, m);
  return EIN_OK;
}

// Addresses of the operands of task q, by operand; boxes with holes are zero first.
static void eini_mail_operands(eini_dist_mail *b, int64_t q) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  eini_dist_room *m = &b->w->room;
  char *next = eini_mail_at(b, d->copies->operand, b->stmt, q);
  for (int o = 0; o < e->s->noperand; o++) {
    int t = e->s->operand[o];
    int64_t bytes = eini_dist_box_bytes(d, e, q, o, m);
    b->w->in[o] = next;
    if (d->tensor[t].ndefine == 0) {
      if (d->desc.blocks)
        b->x->base[t] = eini_dist_bound(d, b->x->run, t, (int)q - d->fabric.first);
      eini_dist_box(e, q, o, m);
      b->w->in[o] = eini_dist_at(b->x, t, m->from);
    } else if (bytes > 0 && d->stmt[d->tensor[t].define[0]].s->rest == EIN_REST_ZERO) {
      memset(next, 0, (size_t)bytes);
    }
    next += bytes;
  }
}

// Unpacks and computes at place q.
static ein_status eini_mail_compute(eini_dist_mail *b, int64_t q) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  eini_dist_room *m = &b->w->room;
  int n = 0, own = eini_space_partial(&e->space, q) == 0 && (e->space.nagg == 1 || e->direct);
  b->in[q] = 0;
  eini_mail_operands(b, q);
  EINI_TRY(eini_dist_task_transfers(d, b->stmt, q, m, eini_mail_unpack, b));
  for (int o = 0; o < e->s->noperand; o++)
    if (eini_operand_first(e->s, o) == o) b->w->in[n++] = b->w->in[o];
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(d, e, b->w);
  return eini_dist_execute_block(
      b->x, b->w, e, q, eini_mail_at(b, own ? d->copies->block : d->copies->partial, b->stmt, q));
}

static ein_status eini_mail_merge(eini_dist_mail *b, int64_t q, int level) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_dist_copies *c = d->copies;
  int first = eini_space_partial(&e->space, q) == 0;
  int last = first && (int64_t)2 << level >= e->space.nagg;
  b->w->in[0] = eini_mail_at(b, first && e->direct ? c->block : c->partial, b->stmt, q);
  if (e->folder != NULL) {
    eini_dist_room *m = &b->w->room;
    eini_space_ranges(&e->space, q, m->lo, m->hi);
    for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
    eini_dist_dense(e->s->nfree, m->len, m->dst);
    eini_dist_states_join(b->x, b->w, e, q, eini_mail_at(b, c->partial, b->stmt, q),
                          eini_mail_at(b, c->merged, b->stmt, q),
                          last ? eini_mail_at(b, c->block, b->stmt, q) : NULL, m->dst);
    return EIN_OK;
  }
  b->w->in[1] = eini_mail_at(b, c->merged, b->stmt, q);
  void *out = eini_mail_at(b, first && (e->direct || last) ? c->block : c->partial, b->stmt, q);
  return eini_dist_execute_plan(b->x, b->w, last ? e->last[q] : e->merge[q], &out);
}

// A job at place q; a place that failed does no more, but goes on sending, so that nobody waits in
// vain.
static void eini_mail_job(eini_dist_mail *b, int64_t q, int level) {
  static const eini_dist_read nothing = {0, 0, NULL};
  const ein_dist *d = b->x->d;
  ein_status *st = &b->failed[q - d->fabric.first];
  ein_dist_event v;
  if (*st != EIN_OK) return;
  memset(&v, 0, sizeof v);
  v.begin = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  *st = level < 0 ? eini_mail_compute(b, q) : eini_mail_merge(b, q, level);
  eini_dist_count(b->x->stats, b->stmt, q, 1, &nothing);
  v.end = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  v.stmt = b->stmt;
  v.place = (int)q;
  v.level = level;
  if (*st == EIN_OK && d->desc.event_fn != NULL)
    *st = d->desc.event_fn(d->desc.event_user, &v);
}

// Merges at one level of the tree: right halves travel to left ones.
static ein_status eini_mail_level(eini_dist_mail *b, int level) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_space *x = &e->space;
  const int64_t step = (int64_t)1 << level;
  for (int turn = 0; turn < 2; turn++) {
    for (int64_t q = 0; q < x->ntask; q++) {
      int64_t part = eini_space_partial(x, q);
      if (part % (2 * step) != 0 || part + step >= x->nagg) continue;
      if (turn > 0) {
        if (eini_dist_driven(d, q)) eini_mail_job(b, q, level);
        continue;
      }
      int64_t from = eini_space_partner(x, q, part + step);
      int64_t bytes = eini_dist_elements(x, q, &b->w->room) *
                      e->wide;
      char *dst = eini_dist_driven(d, q) ? eini_mail_at(b, d->copies->merged, b->stmt, q) : NULL;
      const char *src = eini_dist_driven(d, from)
                            ? eini_mail_at(b, d->copies->partial, b->stmt, from) : NULL;
      if (bytes > 0) EINI_TRY(eini_mail_post(b, from, q, src, dst, bytes));
    }
    EINI_TRY(eini_mail_wait(b));
  }
  return EIN_OK;
}

// The blocks of an output at driven places go to the caller's view, or to what it binds for each.
static void eini_mail_output(eini_dist_mail *b) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_tensor *t = &d->g->tensor[e->s->out];
  eini_dist_room *m = &b->w->room;
  if (t->role != EIN_ROLE_OUTPUT) return;
  if (e->s->rest == EIN_REST_ZERO) eini_dist_zero(b->x, e->s->out, m);
  for (int64_t q = 0; q < e->space.ntask; q++) {
    if (!eini_dist_driven(d, q) || eini_space_partial(&e->space, q) != 0) continue;
    for (int r = 0; r < t->rank; r++) {
      m->from[r] = 0;
      m->to[r] = t->shape[r];
      if (d->desc.blocks) eini_dist_own(d, e->s->out, q, r, &m->from[r], &m->to[r]);
      m->len[r] = m->to[r] - m->from[r];
    }
    eini_dist_dense(t->rank, m->len, m->box);
    eini_dist_end to = eini_mail_end(EINI_AT_BOX, b->x->base[e->s->out],
                                     d->tensor[e->s->out].stride);
    if (d->desc.blocks)
      to = eini_mail_end(EINI_AT_BOX, eini_dist_bound(d, b->x->run, e->s->out,
                                                      (int)q - d->fabric.first), m->box);
    eini_dist_end at = eini_mail_end(EINI_AT_BLOCK,
                                     eini_mail_at(b, d->copies->block, b->stmt, q), NULL);
    eini_dist_move(&e->space, q, m->from, m->to, ein_dtype_size(t->dtype), &to, &at, m);
  }
}

static ein_status eini_mail_stmt(eini_dist_mail *b, int k) {
  const ein_dist *d = b->x->d;
  const eini_space *x = &d->stmt[k].space;
  b->stmt = k;
  memset(b->in, 0, (size_t)d->fabric.places * sizeof *b->in);
  memset(b->out, 0, (size_t)d->fabric.places * sizeof *b->out);
  for (int64_t q = 0; q < x->ntask; q++)
    EINI_TRY(eini_dist_task_transfers(d, k, q, &b->w->room, eini_mail_transfer, b));
  EINI_TRY(eini_mail_wait(b));
  for (int64_t q = 0; q < x->ntask; q++)
    if (eini_dist_driven(d, q)) eini_mail_job(b, q, EINI_DIST_BLOCK);
  for (int level = 0; (int64_t)1 << level < x->nagg; level++) EINI_TRY(eini_mail_level(b, level));
  eini_mail_output(b);
  return EIN_OK;
}

static ein_status eini_dist_copy_run(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  eini_arena arena;
  eini_dist_mail b;
  ein_status st = EIN_OK;
  memset(&b, 0, sizeof b);
  eini_arena_init(&arena, &d->al);
  b.x = x;
  b.w = &x->worker[0];
  b.mem = EINI_NEW(&arena, char *, d->fabric.count);
  b.failed = EINI_NEW(&arena, ein_status, d->fabric.count);
  b.in = EINI_NEW(&arena, int64_t, d->fabric.places);
  b.out = EINI_NEW(&arena, int64_t, d->fabric.places);
  b.ticket = EINI_NEW(&arena, ein_ticket, d->copies->most);
  if (b.mem == NULL || b.failed == NULL || b.in == NULL || b.out == NULL || b.ticket == NULL)
    st = EIN_ERR_NO_MEMORY;
  int64_t bytes = 0;
  for (int i = 0; i < d->fabric.count && st == EIN_OK; i++) {
    bytes += d->copies->bytes[d->fabric.first + i];
    b.mem[i] = (char *)eini_new(&arena, d->copies->bytes[d->fabric.first + i] + EINI_ALIGN, 1);
    if (b.mem[i] == NULL) st = EIN_ERR_NO_MEMORY;
    else b.mem[i] += (EINI_ALIGN - (uintptr_t)b.mem[i] % EINI_ALIGN) % EINI_ALIGN;
  }
  if (st == EIN_OK && d->fabric.room_fn != NULL)
    st = d->fabric.room_fn(d->fabric.user, d->copies->most, bytes);
  st = eini_dist_agree(&d->fabric, st);  // before anybody waits for a message
  if (st == EIN_OK) {
    for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_mail_stmt(&b, k);
    for (int i = 0; i < d->fabric.count && st == EIN_OK; i++) st = b.failed[i];
    st = eini_dist_agree(&d->fabric, st);
  }
  eini_arena_free(&arena);
  return st;
}

// ---- a fabric of one process ----

// A send or receive that has no partner yet.
typedef struct eini_post {
  ein_ticket ticket;
  int from, to, send;
  int64_t tag;
  const void *src;
  void *dst;
  size_t bytes;
} eini_post;

typedef struct eini_copying {
  ein_allocator al;
  eini_post *post;          // in the order they were made
  int64_t npost, cap;
  ein_ticket last;
  int64_t messages, bytes;  // moved
} eini_copying;

// Completes with the first post that matches, or keeps the new one.
static ein_status eini_copying_post(eini_copying *c, const eini_post *p, ein_ticket *ticket) {
  *ticket = 0;
  for (int64_t i = 0; i < c->npost; i++) {
    const eini_post *o = &c->post[i];
    if (o->send == p->send || o->from != p->from || o->to != p->to || o->tag != p->tag) continue;
    if (o->bytes != p->bytes) return EIN_ERR_INTERNAL;
    if (p->bytes > 0) memcpy(p->send ? o->dst : p->dst, p->send ? p->src : o->src, p->bytes);
    c->messages++;
    c->bytes += (int64_t)p->bytes;
    c->npost--;
    memmove(c->post + i, c->post + i + 1, (size_t)(c->npost - i) * sizeof *c->post);
    return EIN_OK;
  }
  if (c->npost == c->cap) {
    int64_t cap = c->cap < 16 ? 16 : 2 * c->cap;
    eini_post *more = (eini_post *)c->al.alloc_fn((size_t)cap * sizeof *more, 16, c->al.user);
    if (more == NULL) return EIN_ERR_NO_MEMORY;
    if (c->npost > 0) memcpy(more, c->post, (size_t)c->npost * sizeof *more);
    if (c->post != NULL) c->al.free_fn(c->post, (size_t)c->cap * sizeof *more, c->al.user);
    c->post = more;
    c->cap = cap;
  }
  c->post[c->npost] = *p;
  *ticket = c->post[c->npost++].ticket = ++c->last;
  return EIN_OK;
}

static ein_status eini_copying_send(void *user, int from, int to, int64_t tag, const void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_post p;
  memset(&p, 0, sizeof p);
  p.from = from;
  p.to = to;
  p.tag = tag;
  p.send = 1;
  p.src = data;
  p.bytes = bytes;
  return eini_copying_post((eini_copying *)user, &p, ticket);
}

static ein_status eini_copying_recv(void *user, int to, int from, int64_t tag, void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_post p;
  memset(&p, 0, sizeof p);
  p.from = from;
  p.to = to;
  p.tag = tag;
  p.dst = data;
  p.bytes = bytes;
  return eini_copying_post((eini_copying *)user, &p, ticket);
}

static ein_status eini_copying_test(void *user, ein_ticket ticket, int *done) {
  const eini_copying *c = (const eini_copying *)user;
  *done = 1;
  for (int64_t i = 0; i < c->npost; i++) *done &= c->post[i].ticket != ticket;
  return EIN_OK;
}

// What has no partner by now will have none: nobody else can post.
static ein_status eini_copying_wait(void *user, ein_ticket ticket) {
  int done;
  EINI_TRY(eini_copying_test(user, ticket, &done));
  return done ? EIN_OK : EIN_ERR_INTERNAL;
}

static void eini_copying_destroy(void *user) {
  eini_copying *c = (eini_copying *)user;
  ein_allocator al = c->al;
  if (c->post != NULL) al.free_fn(c->post, (size_t)c->cap * sizeof *c->post, al.user);
  al.free_fn(c, sizeof *c, al.user);
}

// ================================================================================================
// >>steps  statements under a schedule
// Takes a schedule; runs each statement step by step: all points fetch, compute and, where a
// partial result is complete, send it home. Plans are made beforehand, by the same walk without
// data.
// ================================================================================================

// Of several processes each walks all points in the same order, computes those of its places, and
// takes part in the messages of these one by one: the process that stands at the least message
// waits for none that comes later, so nobody waits in vain.

// A box of a tensor in some memory.
typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  size_t room;
} eini_step_box;

typedef struct eini_step_point {
  int works, fresh;         // fresh: nothing is in the partial result yet
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step that is merged into it
  int64_t *lo, *hi;         // ranges of the step
  const void **in;
  ein_scalar *param;
  int64_t plan, merge;      // of the step; -1: nothing is computed, or merged
  char *to;                 // where the plan writes, and
  char *into;               //   what that is merged into
  ein_status st;
} eini_step_point;

// The most that boxes of a statement take, found when its plans were made.
typedef struct eini_steps_rooms {
  size_t *box;              // per point: of each operand, of the partial result, and of a block
  size_t message;
  int64_t plan;             // 1 + the number of its first plan; 0: none
} eini_steps_rooms;

typedef struct eini_staged {
  const ein_dist *d;
  eini_block_plans *plans;  // of d, when they are made; NULL in a run
  const ein_schedule *s;
  const ein_run *run;       // NULL: plans are made only
  eini_arena *a, *scratch;  // scratch: of the statement at hand
  int nmemory;              // 1 where it is shared, else one for each place
  eini_step_box *home;      // of tensors in memories: the hull of what is held there
  eini_arena *lives;        // of each tensor: where its homes are, while it is needed
  eini_step_box *sum;       // in memories: partial results of the statement, in its own type
  char *work;               // of plans, for each worker
  int width;
  const eini_stmt *stmt;
  int number, whole;        // whole: what goes home is complete
  int64_t *key, *cut;
  const int64_t **stride;
  eini_step_point *point;
  eini_tour w;
  ein_schedule_info info;   // of w; a run's figures are its stats
  ein_dist_stats *stats;
  int64_t tag;
  char *message;
  size_t room;
  ein_status failed;        // of several processes: this one only moves on
} eini_staged;

static int eini_steps_alone(const eini_staged *x) {
  return x->d->fabric.count == x->d->fabric.places;
}

static int eini_steps_mine(const eini_staged *x, int64_t place) {
  return eini_dist_driven(x->d, place);
}

static ein_dtype eini_steps_type(const eini_staged *x) {
  return eini_loops_type(x->d->g, x->stmt);
}

// A mistake ends a run, but for one of several processes, which others wait for: its messages hold
// what they may.
static ein_status eini_steps_goes_on(eini_staged *x, ein_status st) {
  if (st == EIN_OK || x->run == NULL || eini_steps_alone(x)) return st;
  if (x->failed == EIN_OK) x->failed = st;
  return EIN_OK;
}

static size_t eini_steps_bytes(int rank, const int64_t *shape, size_t size) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++)
    if (shape[r] <= 0) return size;
  for (int r = 0; r < rank; r++) n *= shape[r];
  return (size_t)n * size;
}

// At least so many bytes at *data; what was there is lost. While plans are made, how many that are.
static ein_status eini_steps_room(eini_staged *x, char **data, size_t *room, size_t bytes) {
  if (bytes <= *room) return EIN_OK;
  *room = bytes;
  if (x->run == NULL) return EIN_OK;
  *data = EINI_NEW(x->scratch, char, bytes);
  return *data == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Notes the rooms of a statement whose plans are made, or takes those that were noted.
static ein_status eini_steps_rooms_of(eini_staged *x) {
  eini_steps_rooms *r = &x->d->rooms[x->number];
  const int n = x->stmt->noperand;
  const int64_t npoint = x->w.n->grid->npoint;
  if (x->run == NULL && (r->box = EINI_NEW(x->plans->a, size_t, npoint * (n + 2))) == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < npoint; i++) {
    eini_step_point *pt = &x->point[i];
    for (int k = 0; k <= n + 1 && pt->box != NULL; k++) {
      eini_step_box *b = k <= n ? &pt->box[k] : &pt->block;
      size_t *room = &r->box[i * (n + 2) + k];
      if (x->run == NULL) *room = k < n && x->w.again[k] >= 0 ? 0 : b->room;
      else EINI_TRY(eini_steps_room(x, &b->data, &b->room, *room));
    }
  }
  if (x->run == NULL) return r->message = x->room, EIN_OK;
  return eini_steps_room(x, &x->message, &x->room, r->message);
}

static ein_status eini_steps_box_new(eini_arena *a, eini_step_box *b, int rank) {
  memset(b, 0, sizeof *b);
  b->lo = EINI_NEW(a, int64_t, rank);
  b->hi = EINI_NEW(a, int64_t, rank);
  b->stride = EINI_NEW(a, int64_t, rank);
  return b->lo == NULL || b->hi == NULL || b->stride == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Tensor t at a place.
static eini_step_box *eini_steps_home(const eini_staged *x, int t, int64_t place) {
  return &x->home[(int64_t)t * x->nmemory + (x->nmemory > 1 ? place : 0)];
}

// Element `at` of a box; NULL: it has no memory, as plans are made only.
static char *eini_steps_at(const eini_step_box *b, int rank, const int64_t *at, size_t size) {
  int64_t n = 0;
  if (b->data == NULL) return NULL;
  for (int r = 0; r < rank; r++) n += (at[r] - b->lo[r]) * b->stride[r];
  return b->data + n * (int64_t)size;
}

// Adds numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(const eini_staged *x, int worker, int64_t id,
                                     const void *const *in, char *out, const ein_scalar *param) {
  void *to[1];
  ein_run run;
  memset(&run, 0, sizeof run);
  to[0] = out;
  run.in = in;
  run.out = to;
  run.param = param;
  run.workspace_bytes = x->d->plans.workspace;
  run.workspace = x->work + (size_t)worker * (run.workspace_bytes + EINI_ALIGN);
  return ein_plan_execute(x->d->plans.plan[id], &run);
}

// The plan that merges a box of `right` into one of `left`; fold EIN_FOLD_NONE: left becomes right,
// whose type may be another.
static ein_status eini_steps_merge_plan(eini_staged *x, int fold, int rank, const int64_t *shape,
                                        ein_dtype to, const int64_t *left, ein_dtype from,
                                        const int64_t *right, int64_t *id) {
  int64_t n = eini_steps_key(x, 4, shape, rank);
  x->key[0] = -1 - fold;
  x->key[1] = to;
  x->key[2] = from;
  x->key[3] = rank;
  n = eini_steps_key(x, n, left, rank);
  n = eini_steps_key(x, n, right, rank);
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  const eini_merge_side l = {to, rank, shape, left, NULL, NULL};
  const eini_merge_side r = {from, rank, shape, right, NULL, NULL};
  eini_block_merge m = {fold, 0, from, rank, shape, l, r, l};
  if (fold == EIN_FOLD_NONE) m.left = r;
  return eini_block_merge_plan(x->plans, &m, x->key, n, id);
}

static ein_status eini_steps_merge_run(const eini_staged *x, int worker, int fold, int64_t id,
                                       char *left, const char *right) {
  const void *in[2];
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  return eini_steps_execute(x, worker, id, in, left, NULL);
}

static ein_status eini_steps_merge(eini_staged *x, int fold, int rank, const int64_t *shape,
                                   ein_dtype to, char *left, const int64_t *left_stride,
                                   ein_dtype from, const char *right,
                                   const int64_t *right_stride) {
  int64_t id;
  EINI_TRY(eini_steps_merge_plan(x, fold, rank, shape, to, left_stride, from, right_stride, &id));
  return x->run == NULL ? EIN_OK : eini_steps_merge_run(x, 0, fold, id, left, right);
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
  if (st == EIN_OK && x->d->rooms[x->number].plan == 0) x->d->rooms[x->number].plan = *id + 1;
  return st;
}

// The plan of a block of so many values of each index, with these strides of the operands and the
// result.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  const int64_t *out, int64_t *id) {
  const eini_stmt *s = x->stmt;
  eini_dist_job job;
  x->key[0] = x->number;
  int64_t n = eini_steps_key(x, 1, len, s->nindex);
  n = eini_steps_key(x, n, out, x->d->g->tensor[s->out].rank);
  for (int o = 0; o < s->noperand; o++) {
    x->stride[o] = box[o].stride;
    n = eini_steps_key(x, n, x->stride[o], x->d->g->tensor[s->operand[o]].rank);
  }
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  memset(&job, 0, sizeof job);
  job.g = x->d->g;
  job.s = s;
  job.block = eini_block_of(NULL, len, NULL);
  job.cut = x->cut;
  job.stride = x->stride;
  job.out_stride = out;
  job.dtype = eini_steps_type(x);
  return eini_steps_leaf(x, &job, n, id);
}

// ---- parts of boxes ----

typedef struct eini_steps_part {
  int64_t at[EINI_NAMES_MAX], lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], shape[EINI_NAMES_MAX];
} eini_steps_part;

// The next box of the owner's runs that meets w->from and w->to; first: the first one.
static int eini_steps_next(const eini_tour *w, const eini_owners *o, eini_steps_part *p,
                           int first) {
  const int rank = o->d->rank;
  int r = rank - 1;
  for (int k = 0; k < rank && first; k++) p->at[k] = 0;
  for (; r >= 0 && !first; r--) {
    const eini_axis_owners *x = &o->axis[r];
    if (++p->at[r] < x->run[x->meet[o->pick[r]]].n) break;
    p->at[r] = 0;
  }
  if (!first && r < 0) return 0;
  for (r = 0; r < rank; r++) {
    const eini_axis_owners *x = &o->axis[r];
    const int64_t *v = x->run[x->meet[o->pick[r]]].v + 2 * p->at[r];
    p->lo[r] = eini_max64(v[0], w->from[r]);
    p->hi[r] = eini_max64(p->lo[r], eini_min64(v[1], w->to[r]));
    p->shape[r] = p->hi[r] - p->lo[r];
  }
  return 1;
}

// Sends `bytes` at x->message, if `from` is a place of this process, and receives them behind, if
// `to` is one. What is under way is waited for, whatever fails.
static ein_status eini_steps_send(eini_staged *x, int64_t from, int64_t to, size_t bytes) {
  const ein_fabric *f = &x->d->fabric;
  ein_ticket sent = 0, there = 0;
  ein_status st = EIN_OK, own;
  const int64_t tag = x->tag++;
  if (eini_steps_mine(x, from))
    st = f->send_fn(f->user, (int)from, (int)to, tag, x->message, bytes, &sent);
  if (st == EIN_OK && eini_steps_mine(x, to))
    st = f->recv_fn(f->user, (int)to, (int)from, tag, x->message + bytes, bytes, &there);
  if (st == EIN_OK && there != 0) st = f->wait_fn(f->user, there);
  own = sent != 0 ? f->wait_fn(f->user, sent) : EIN_OK;
  return st != EIN_OK ? st : own;
}

// What an owner has of an operand's box goes to the point, through a message where it is another
// place.
static ein_status eini_steps_fetch(eini_staged *x, eini_owners *o, int64_t owner, int k) {
  const int t = x->stmt->operand[k], rank = o->d->rank;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box *b = &x->point[x->w.move.point].box[k], *from = eini_steps_home(x, t, owner);
  const int away = owner != x->w.move.place;
  const int has = eini_steps_mine(x, owner), wants = eini_steps_mine(x, x->w.move.place);
  eini_steps_part p;
  size_t n = 0;
  int64_t dense[EINI_NAMES_MAX];
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1) EINI_TRY(eini_steps_send(x, owner, x->w.move.place, n));
    const char *message = x->message + n;
    for (int more = eini_steps_next(&x->w, o, &p, 1); more;
         more = eini_steps_next(&x->w, o, &p, 0)) {
      if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
      char *have = has ? eini_steps_at(from, rank, p.lo, size) : NULL;
      char *want = wants ? eini_steps_at(b, rank, p.lo, size) : NULL;
      eini_dist_dense(rank, p.shape, dense);
      if (!away) eini_dist_copy(rank, p.shape, want, b->stride, have, from->stride, size);
      else if (pass == 0 && has)
        eini_dist_copy(rank, p.shape, x->message + n, dense, have, from->stride, size);
      else if (pass == 1 && wants)
        eini_dist_copy(rank, p.shape, want, b->stride, message, dense, size);
      if (pass == 0) n += eini_steps_bytes(rank, p.shape, size);
      else message += eini_steps_bytes(rank, p.shape, size);
    }
  }
  return EIN_OK;
}

// A part of the partial result goes home: what is complete is stored there, as the tensor is, the
// rest is merged, as it was computed.
static ein_status eini_steps_flush(eini_staged *x, eini_owners *o, int64_t owner) {
  const eini_stmt *s = x->stmt;
  const int rank = o->d->rank, away = owner != x->w.move.place && x->nmemory > 1;
  const ein_dtype type = eini_steps_type(x);
  const ein_dtype sent = x->whole ? x->d->g->tensor[s->out].dtype : type;
  const size_t size = ein_dtype_size(sent);
  const eini_step_box *b = &x->point[x->w.move.point].box[s->noperand];
  const eini_step_box *to = x->whole ? eini_steps_home(x, s->out, owner)
                                     : &x->sum[x->nmemory > 1 ? owner : 0];
  const int fold = x->whole ? EIN_FOLD_NONE : s->fold;
  const int has = eini_steps_mine(x, x->w.move.place), wants = eini_steps_mine(x, owner);
  eini_steps_part p;
  size_t n = 0;
  int64_t dense[EINI_NAMES_MAX];
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1 && x->run != NULL) EINI_TRY(eini_steps_send(x, x->w.move.place, owner, n));
    const char *message = x->message == NULL ? NULL : x->message + n;
    for (int more = eini_steps_next(&x->w, o, &p, 1); more;
         more = eini_steps_next(&x->w, o, &p, 0)) {
      if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
      const size_t bytes = eini_steps_bytes(rank, p.shape, size);
      char *have = has ? eini_steps_at(b, rank, p.lo, ein_dtype_size(type)) : NULL;
      char *want = wants ? eini_steps_at(to, rank, p.lo, size) : NULL;
      eini_dist_dense(rank, p.shape, dense);
      ein_status st = EIN_OK;
      if (!away)
        st = eini_steps_merge(x, fold, rank, p.shape, sent, want, to->stride, type, have,
                              b->stride);
      else if (pass == 0 && has)
        st = eini_steps_merge(x, EIN_FOLD_NONE, rank, p.shape, sent,
                              x->message == NULL ? NULL : x->message + n, dense, type, have,
                              b->stride);
      else if (pass == 1 && wants)
        st = eini_steps_merge(x, fold, rank, p.shape, sent, want, to->stride, sent, message,
                              dense);
      EINI_TRY(eini_steps_goes_on(x, st));
      if (pass == 0) n += bytes;
      else if (message != NULL) message += bytes;
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_part_of(eini_tour *w, eini_owners *o, int64_t owner) {
  eini_staged *x = (eini_staged *)w->user;
  if (w->move.operand < 0) return eini_steps_flush(x, o, owner);
  return x->run == NULL || x->nmemory == 1 ? EIN_OK : eini_steps_fetch(x, o, owner,
                                                                       w->move.operand);
}

// ---- a step of a point ----

// Room for messages of the box in w->from and w->to.
static ein_status eini_steps_message(eini_staged *x, int rank, size_t size) {
  int64_t *shape = x->w.value;  // scratch
  if (x->nmemory == 1 || size == 0) return EIN_OK;
  for (int r = 0; r < rank; r++) shape[r] = x->w.to[r] - x->w.from[r];
  return eini_steps_room(x, &x->message, &x->room, 2 * eini_steps_bytes(rank, shape, size));
}

// A box of its own for w->from and w->to; send: messages of it are for elements of so many bytes.
static ein_status eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, size_t size,
                                   size_t send) {
  int64_t *shape = x->w.value;  // scratch
  for (int r = 0; r < rank; r++) {
    b->lo[r] = x->w.from[r];
    b->hi[r] = x->w.to[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  EINI_TRY(eini_steps_room(x, &b->data, &b->room, eini_steps_bytes(rank, shape, size)));
  return eini_steps_message(x, rank, send);
}

// The box of an operand: in a memory that is shared, or of an input that lies everywhere, that of
// the tensor; else a copy.
static ein_status eini_steps_operand(eini_staged *x, eini_step_point *pt, int64_t step, int k) {
  const eini_stmt *s = x->stmt;
  const int t = s->operand[k];
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  eini_owners *o = &x->w.owners[k];
  const int mine = eini_steps_mine(x, x->w.move.place), again = x->w.again[k];
  if (!eini_tour_due(&x->w, step, k, 0)) return EIN_OK;
  if (again >= 0) {
    if (mine) pt->box[k] = pt->box[again];
    return EIN_OK;
  }
  const int some = eini_tour_box(&x->w, step, k);
  x->w.move.operand = k;
  x->w.move.step = step;
  if (!mine) EINI_TRY(eini_steps_message(x, x->d->g->tensor[t].rank, o->d == NULL ? 0 : size));
  else if (x->nmemory == 1 || o->d == NULL) pt->box[k] = *eini_steps_home(x, t, x->w.move.place);
  else EINI_TRY(eini_steps_dense(x, &pt->box[k], x->d->g->tensor[t].rank, size, size));
  return some && o->d != NULL ? eini_tour_owners(&x->w, o, (int64_t)size, 0) : EIN_OK;
}

// The fold of nothing for all results of some ranges; lo is lost.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_point *pt, int64_t *lo,
                                     const int64_t *hi, const eini_step_box *to) {
  int64_t id;
  for (int i = 0; i < x->stmt->nindex; i++) lo[i] = i < x->stmt->nfree ? hi[i] - lo[i] : 0;
  EINI_TRY(eini_steps_plan(x, lo, pt->box, to->stride, &id));
  return x->run == NULL ? EIN_OK : eini_steps_execute(x, 0, id, pt->in, to->data, pt->param);
}

// Addresses and origins of the block of a step.
static void eini_steps_bind(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  ein_scalar *p = pt->param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_block_origin(s, i)) (p++)->re = (double)pt->lo[i];
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    pt->in[n++] = eini_steps_at(&pt->box[k], t->rank, x->w.from, ein_dtype_size(t->dtype));
  }
}

// The plans of the block in w->from and w->to: it goes to the partial result where there is nothing
// of it yet or each of its elements is computed once; else it is merged into that.
static ein_status eini_steps_block(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank, n = s->noperand;
  const ein_dtype type = eini_steps_type(x);
  const eini_step_box *acc = &pt->box[n];
  const size_t bytes = (size_t)rank * sizeof(int64_t);
  const int all = memcmp(acc->lo, x->w.from, bytes) == 0 && memcmp(acc->hi, x->w.to, bytes) == 0;
  int64_t *len = x->w.lo;
  pt->into = eini_steps_at(acc, rank, x->w.from, ein_dtype_size(type));
  pt->merge = -1;
  if ((pt->fresh && all) || !eini_loops_folds(x->w.n, x->w.n->nstep - 1)) {
    pt->to = pt->into;
  } else {
    if (pt->fresh) {
      (void)eini_tour_box(&x->w, x->w.move.step, n);
      EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, x->w.hi, acc));
    }
    const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
    eini_block_hull(s, &b, -1, x->w.from, x->w.to);
    EINI_TRY(eini_steps_dense(x, &pt->block, rank, ein_dtype_size(type), 0));
    for (int r = 0; r < rank; r++) x->w.value[r] = pt->block.hi[r] - pt->block.lo[r];
    EINI_TRY(eini_steps_merge_plan(x, s->fold, rank, x->w.value, type, acc->stride, type,
                                   pt->block.stride, &pt->merge));
    pt->to = pt->block.data;
  }
  pt->fresh = 0;
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, pt->merge < 0 ? acc->stride : pt->block.stride,
                         &pt->plan);
}

// What a point does before it computes.
static ein_status eini_steps_before(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int n = s->noperand;
  const eini_tensor *out = &x->d->g->tensor[s->out];
  const size_t size = ein_dtype_size(eini_steps_type(x));
  for (int k = 0; k < n; k++) EINI_TRY(eini_steps_operand(x, pt, step, k));
  x->w.move.step = step;
  if (!eini_steps_mine(x, x->w.move.place)) {
    if (!eini_tour_due(&x->w, step, n, 0)) return EIN_OK;
    (void)eini_tour_box(&x->w, step, n);
    return eini_steps_message(x, out->rank, x->whole ? ein_dtype_size(out->dtype) : size);
  }
  if (eini_tour_due(&x->w, step, n, 0)) {
    (void)eini_tour_box(&x->w, step, n);
    EINI_TRY(eini_steps_dense(x, &pt->box[n], out->rank, size,
                              x->whole ? ein_dtype_size(out->dtype) : size));
    pt->fresh = 1;
  }
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  pt->plan = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  eini_steps_bind(x, pt);
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  eini_block_hull(s, &b, -1, x->w.from, x->w.to);
  return eini_steps_block(x, pt);
}

// Worker i computes the blocks of a step of points i, i + width, ..
static void eini_steps_worker(void *arg, int i) {
  eini_staged *x = (eini_staged *)arg;
  for (int64_t q = i; q < x->w.n->grid->npoint; q += x->width) {
    eini_step_point *pt = &x->point[q];
    if (!pt->works || pt->plan < 0) continue;
    pt->st = eini_steps_execute(x, i, pt->plan, pt->in, pt->to, pt->param);
    if (pt->st == EIN_OK && pt->merge >= 0)
      pt->st = eini_steps_merge_run(x, i, x->stmt->fold, pt->merge, pt->into, pt->to);
  }
}

// ================================================================================================
// >>steps-run  graphs under a schedule
// Takes a schedule and the bindings of one call; gives places what they hold, runs statements, and
// returns what places hold of outputs. Without bindings it makes the plans.
// ================================================================================================

static ein_status eini_steps_point_new(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const ein_graph *g = x->d->g;
  eini_arena *a = x->scratch;
  pt->works = eini_tour_works(&x->w);
  pt->plan = -1;
  if (!pt->works || (!eini_steps_mine(x, x->w.move.place) && pt != x->point)) return EIN_OK;
  pt->box = EINI_NEW(a, eini_step_box, s->noperand + 1);
  pt->lo = EINI_NEW(a, int64_t, s->nindex);
  pt->hi = EINI_NEW(a, int64_t, s->nindex);
  pt->in = EINI_NEW(a, const void *, s->noperand);
  pt->param = EINI_NEW(a, ein_scalar, g->nparam + s->nindex);
  if (pt->box == NULL || pt->lo == NULL || pt->hi == NULL || pt->in == NULL || pt->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < g->nparam; k++) {
    const int given = x->run != NULL && x->run->param != NULL && x->run->param[k].set;
    pt->param[k] = given ? x->run->param[k] : g->param[k].value;
  }
  for (int i = 0; i < s->nindex; i++) pt->param[g->nparam + i].set = 1;
  EINI_TRY(eini_steps_box_new(a, &pt->block, g->tensor[s->out].rank));
  for (int k = 0; k <= s->noperand; k++)
    EINI_TRY(eini_steps_box_new(a, &pt->box[k],
                                g->tensor[k < s->noperand ? s->operand[k] : s->out].rank));
  return EIN_OK;
}

// The point at hand is number i; 0: it has no task.
static int eini_steps_goto(eini_staged *x, int64_t i) {
  x->w.move.point = i;
  x->w.move.place = eini_grid_place(x->w.n->grid, i);
  eini_grid_coords(x->w.n->grid, i, x->w.here);
  return x->point[i].works;
}

// And after it has computed.
static ein_status eini_steps_after(eini_staged *x, int64_t step) {
  const int n = x->stmt->noperand;
  if (!eini_tour_due(&x->w, step, n, 1) || !eini_tour_box(&x->w, step, n)) return EIN_OK;
  x->w.move.operand = -1;
  x->w.move.step = step;
  return eini_tour_owners(&x->w, &x->w.owners[n], eini_tour_wide(&x->w), 1);
}

static ein_status eini_steps_walk(eini_staged *x) {
  const int64_t n = x->w.n->grid->npoint;
  const ein_executor *e = &x->d->executor;
  for (int64_t step = 0; step < x->w.n->steps; step++) {
    memset(x->w.sent, 0, (size_t)x->d->fabric.places * sizeof *x->w.sent);
    for (int64_t i = 0; i < n; i++)
      if (eini_steps_goto(x, i)) EINI_TRY(eini_steps_before(x, &x->point[i], step));
    if (x->run != NULL && x->width > 1) e->parallel_for(x->width, eini_steps_worker, x, e->user);
    else if (x->run != NULL) eini_steps_worker(x, 0);
    for (int64_t i = 0; i < n; i++) {
      if (!eini_steps_goto(x, i)) continue;
      EINI_TRY(eini_steps_goes_on(x, x->point[i].st));
      EINI_TRY(eini_steps_after(x, step));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_moved(void *user, const ein_schedule_move *m) {
  const eini_staged *x = (const eini_staged *)user;
  const eini_dist_read r = {m->bytes, 1, NULL};
  const int all = x->run == NULL;  // a run's figures are those of its own places
  if (all || eini_steps_mine(x, m->to)) eini_dist_count(x->stats, m->stmt, m->to, 0, &r);
  if (all || eini_steps_mine(x, m->from)) eini_dist_sent(x->stats, m->from, m->bytes);
  return EIN_OK;
}

static ein_status eini_steps_begin(eini_staged *x, int k) {
  static const eini_dist_read nothing = {0, 0, NULL};
  const ein_graph *g = x->d->g;
  const eini_stmt *s = x->stmt = &g->stmt[k];
  int64_t key = 8 + 3 * (int64_t)g->tensor[s->out].rank + s->nindex;
  memset(&x->w, 0, sizeof x->w);
  memset(&x->info, 0, sizeof x->info);
  x->number = k;
  x->w.w = x->s;
  x->w.n = &x->s->nest[k];
  x->w.info = &x->info;
  x->w.move.stmt = k;
  x->w.part_fn = eini_steps_part_of;
  x->w.fn = eini_steps_moved;
  x->w.user = x;
  x->message = NULL;
  x->room = 0;
  EINI_TRY(eini_tour_init(x->scratch, &x->w));
  if (eini_tour_work(&x->w) > EINI_TOUR_MAX) return EIN_ERR_TOO_LARGE;
  x->whole = eini_loops_whole(x->w.n);
  for (int o = 0; o < s->noperand; o++) key += g->tensor[s->operand[o]].rank;
  x->key = EINI_NEW(x->scratch, int64_t, key);
  x->cut = EINI_NEW(x->scratch, int64_t, s->nindex);
  x->stride = EINI_NEW(x->scratch, const int64_t *, s->noperand);
  x->point = EINI_NEW(x->scratch, eini_step_point, x->w.n->grid->npoint);
  if (x->key == NULL || x->cut == NULL || x->stride == NULL || x->point == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) x->cut[i] = 2;  // all have an origin
  for (int64_t i = 0; i < x->w.n->grid->npoint; i++) {
    (void)eini_steps_goto(x, i);
    EINI_TRY(eini_steps_point_new(x, &x->point[i]));
    if (x->point[i].works && (x->run == NULL || eini_steps_mine(x, x->w.move.place)))
      eini_dist_count(x->stats, k, x->w.move.place, x->w.n->steps, &nothing);
  }
  return EIN_OK;
}

// ---- tensors at places ----

// A tensor between a place and the memory of the caller; hull: that of its boxes is asked for.
typedef struct eini_steps_share {
  int rank, hull, back;     // back: from the place to the caller
  size_t size;
  eini_step_box *place;
  const eini_step_box *caller;
} eini_steps_share;

static ein_status eini_steps_shared(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_share *c = (const eini_steps_share *)user;
  eini_step_box *b = c->place;
  int64_t shape[EINI_NAMES_MAX];
  for (int r = 0; r < c->rank; r++) {
    shape[r] = hi[r] - lo[r];
    if (!c->hull) continue;
    b->lo[r] = b->hi[r] == 0 ? lo[r] : eini_min64(b->lo[r], lo[r]);
    b->hi[r] = eini_max64(b->hi[r], hi[r]);
  }
  if (c->hull) return EIN_OK;
  char *p = eini_steps_at(b, c->rank, lo, c->size);
  char *w = eini_steps_at(c->caller, c->rank, lo, c->size);
  if (c->back) eini_dist_copy(c->rank, shape, w, c->caller->stride, p, b->stride, c->size);
  else eini_dist_copy(c->rank, shape, p, b->stride, w, c->caller->stride, c->size);
  return EIN_OK;
}

// The caller's memory of a tensor; NULL data: it has none.
static ein_status eini_steps_caller(const eini_staged *x, int t, eini_step_box *b) {
  const eini_dist_tensor *e = &x->d->tensor[t];
  const eini_tensor *of = &x->d->g->tensor[t];
  union { const void *c; char *v; } u;  // inputs are only read
  u.v = NULL;
  if (x->run != NULL && e->port >= 0) {
    if (of->role == EIN_ROLE_INPUT) u.c = x->run->in[e->port];
    else u.v = (char *)x->run->out[e->port];
  }
  EINI_TRY(eini_steps_box_new(&x->lives[t], b, of->rank));
  b->data = u.v;
  for (int r = 0; r < of->rank; r++) b->hi[r] = of->shape[r], b->stride[r] = e->stride[r];
  return EIN_OK;
}

// Memory of a tensor at places and what they hold of an input; back: what they hold of an output.
static ein_status eini_steps_tensor(eini_staged *x, int t, int back) {
  const eini_tensor *e = &x->d->g->tensor[t];
  const int input = e->role == EIN_ROLE_INPUT, port = x->d->tensor[t].port >= 0;
  const int own = input ? x->nmemory == 1 || x->s->place[t] == NULL : x->nmemory == 1 && port;
  eini_step_box caller;
  EINI_TRY(eini_steps_caller(x, t, &caller));
  eini_steps_share c = {e->rank, 0, back, ein_dtype_size(e->dtype), NULL, &caller};
  for (int q = 0; q < x->nmemory; q++) {
    eini_step_box *b = c.place = eini_steps_home(x, t, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    if (own) {
      *b = caller;
      continue;
    }
    c.hull = !back;
    if (!back) EINI_TRY(eini_steps_box_new(&x->lives[t], b, e->rank));
    for (int r = 0; r < e->rank && x->nmemory == 1; r++) b->hi[r] = e->shape[r];
    if (!back && x->nmemory > 1)
      EINI_TRY(eini_distribution_boxes(&x->lives[t], x->s->place[t], e->shape, q,
                                       eini_steps_shared, &c));
    int64_t shape[EINI_NAMES_MAX];
    for (int r = 0; r < e->rank; r++) shape[r] = b->hi[r] - b->lo[r];
    eini_dist_dense(e->rank, shape, b->stride);
    const size_t bytes = eini_steps_bytes(e->rank, shape, c.size);
    if (!back && x->run != NULL && (b->data = EINI_NEW(&x->lives[t], char, bytes)) == NULL)
      return EIN_ERR_NO_MEMORY;
    c.hull = 0;
    if (x->run != NULL && (back || input))
      EINI_TRY(eini_distribution_boxes(&x->lives[t], x->s->place[t], e->shape, q,
                                       eini_steps_shared, &c));
  }
  return EIN_OK;
}

// Sums at places begin as folds of nothing.
static ein_status eini_steps_sums(eini_staged *x) {
  static const double none[2] = {0, 0};
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank;
  eini_step_point *pt = &x->point[0];  // has a task in every nest
  for (int o = 0; o < s->noperand; o++) {
    memcpy(pt->box[o].stride, eini_steps_home(x, s->operand[o], x->d->fabric.first)->stride,
           (size_t)x->d->g->tensor[s->operand[o]].rank * sizeof(int64_t));
    pt->in[o] = none;  // nothing is read
  }
  for (int q = 0; q < x->nmemory; q++) {
    const eini_step_box *home = eini_steps_home(x, s->out, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    for (int r = 0; r < rank; r++) x->w.from[r] = home->lo[r], x->w.to[r] = home->hi[r];
    EINI_TRY(eini_steps_box_new(x->scratch, &x->sum[q], rank));
    EINI_TRY(eini_steps_dense(x, &x->sum[q], rank, ein_dtype_size(ein_dtype_compute(s->type)),
                              0));
    for (int i = 0; i < s->nindex; i++) x->w.lo[i] = x->w.hi[i] = 0;
    for (int r = 0; r < rank; r++) {  // free index i is the axis r that it writes
      int64_t coef;
      const int i = eini_row_index(&s->out_map, r, &coef);
      x->w.lo[i] = home->lo[r];
      x->w.hi[i] = home->hi[r];
    }
    EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, x->w.hi, &x->sum[q]));
  }
  return EIN_OK;
}

// Memory of tensors that nothing behind statement k reads.
static void eini_steps_forget(eini_staged *x, int k) {
  const ein_graph *g = x->d->g;
  for (int o = 0; o <= g->stmt[k].noperand; o++) {
    const int t = o < g->stmt[k].noperand ? g->stmt[k].operand[o] : g->stmt[k].out;
    int from, to;
    eini_rooms_life(g, t, &from, &to);
    if (to == k + 1 && g->tensor[t].role == EIN_ROLE_TEMP) eini_arena_free(&x->lives[t]);
  }
}

static ein_status eini_steps_stmt(eini_staged *x, int k) {
  ein_status st = eini_steps_tensor(x, x->d->g->stmt[k].out, 0);
  if (st == EIN_OK) st = eini_steps_begin(x, k);
  if (st == EIN_OK && x->run != NULL) st = eini_steps_rooms_of(x);
  if (st == EIN_OK && !x->whole) st = eini_steps_sums(x);
  if (x->run != NULL) st = eini_dist_agree(&x->d->fabric, st);  // before the first message
  EINI_TRY(st);
  const eini_stmt *s = x->stmt;
  const eini_tensor *out = &x->d->g->tensor[s->out];
  EINI_TRY(eini_steps_walk(x));
  if (x->run == NULL) EINI_TRY(eini_steps_rooms_of(x));
  for (int q = 0; q < x->nmemory && !x->whole && x->failed == EIN_OK; q++) {
    const eini_step_box *home = eini_steps_home(x, s->out, q);
    if (x->nmemory > 1 && !eini_steps_mine(x, q)) continue;
    for (int r = 0; r < out->rank; r++) x->w.from[r] = home->hi[r] - home->lo[r];
    EINI_TRY(eini_steps_merge(x, EIN_FOLD_NONE, out->rank, x->w.from, out->dtype, home->data,
                              home->stride, ein_dtype_compute(s->type), x->sum[q].data,
                              x->sum[q].stride));
  }
  return EIN_OK;
}

// ---- all of a graph ----

static ein_status eini_steps_memory(eini_staged *x) {
  const ein_dist *d = x->d;
  x->nmemory = d->fabric.shared ? 1 : d->fabric.places;
  x->width = d->fabric.threads && d->executor.parallel_for != NULL ? d->width : 1;
  x->home = EINI_NEW(x->a, eini_step_box, d->g->ntensor * x->nmemory);
  x->sum = EINI_NEW(x->a, eini_step_box, x->nmemory);
  x->lives = EINI_NEW(x->a, eini_arena, d->g->ntensor);
  if (x->home == NULL || x->sum == NULL || x->lives == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) eini_arena_init(&x->lives[t], &d->al);
  for (int t = 0; t < d->g->ntensor; t++)
    if (d->g->tensor[t].role == EIN_ROLE_INPUT) EINI_TRY(eini_steps_tensor(x, t, 0));
  if (x->run == NULL) return EIN_OK;
  x->work = EINI_NEW(x->a, char, (size_t)x->width * (x->d->plans.workspace + EINI_ALIGN));
  return x->work == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Plans (run NULL) or runs (plans NULL) all statements.
static ein_status eini_steps_all(const ein_dist *d, eini_block_plans *plans, const ein_run *run,
                                 ein_dist_stats *stats) {
  const ein_graph *g = d->g;
  eini_arena arena, scratch;
  eini_staged x;
  memset(&x, 0, sizeof x);
  eini_arena_init(&arena, &d->al);
  x.d = d;
  x.plans = plans;
  x.s = d->desc.schedule;
  x.run = run;
  x.stats = stats;
  x.a = &arena;
  x.scratch = &scratch;
  ein_status st = eini_steps_memory(&x);
  if (st == EIN_OK && run != NULL && d->fabric.room_fn != NULL) {
    size_t most = 0;  // two messages at once, which lie behind each other
    for (int k = 0; k < d->nstmt; k++)
      if (d->rooms[k].message > most) most = d->rooms[k].message;
    st = d->fabric.room_fn(d->fabric.user, 2, (int64_t)most);
  }
  if (run != NULL) st = eini_dist_agree(&d->fabric, st);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) {
    eini_arena_init(&scratch, &d->al);
    st = eini_steps_stmt(&x, k);
    eini_arena_free(&scratch);
    eini_steps_forget(&x, k);
  }
  if (st == EIN_OK) st = x.failed;
  for (int t = 0; t < g->ntensor && st == EIN_OK && run != NULL && x.nmemory > 1; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) st = eini_steps_tensor(&x, t, 1);
  for (int t = 0; t < g->ntensor && x.lives != NULL; t++) eini_arena_free(&x.lives[t]);
  eini_arena_free(&arena);
  return st;
}

// Why a statement cannot be run so; NULL: it can.
static const char *eini_steps_reason(const ein_schedule *sc, const eini_stmt *s,
                                     const eini_loops *n) {
  const eini_tensor *t = &sc->g->tensor[s->out];
  const ein_distribution *d = sc->place[s->out];
  int64_t coef;
  if (n->loop == NULL) return "it has too many indices";
  if (d == NULL || t->nstmt != 1) return "nothing says where its result lies: place it";
  for (int m = 0; m < d->grid->ndim; m++)
    if (d->held[m].kind == EINI_HELD_EVERY && d->grid->dim[m].extent > 1)
      return "its result is replicated";
  if (eini_fold_carries(s->fold) &&
      (eini_loops_folds(n, n->nstep - 1) || eini_stmt_empty(s, s->nfree, s->nindex)))
    return "its fold has states of several scalars, and is cut";
  if (sc->g->ordered && !eini_order_exact(sc->g, s) && eini_loops_folds(n, n->nstep - 1))
    return "it is deterministic, and its fold would be cut";
  if (t->rank > EINI_NAMES_MAX) return "its result has too many axes";
  int plain = s->rest == EIN_REST_ERROR && t->rank == s->nfree;
  for (int r = 0; r < t->rank && plain; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    plain = i >= 0 && coef == 1 && s->out_map.offset[r] == 0 && s->index[i].extent == t->shape[r];
  }
  return plain ? NULL : "it does not write each element of its result by an index of its own";
}

static ein_status eini_steps_prepare(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  ein_dist_stats made;
  memset(&made, 0, sizeof made);
  if (s->g != d->g) return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is of another "
                                                                  "graph");
  if (s->grid == NULL || s->grid->places != d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is not for the fabric's places");
  for (int k = 0; k < d->nstmt; k++) {
    const char *why = eini_steps_reason(s, &d->g->stmt[k], &s->nest[k]);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.places);
  d->rooms = EINI_NEW(&d->arena, eini_steps_rooms, d->nstmt);
  if (made.stmt_bytes == NULL || d->peak == NULL || d->rooms == NULL) return EIN_ERR_NO_MEMORY;
  const ein_status st = eini_steps_all(d, &d->plans, NULL, &made);
  if (st == EIN_ERR_TOO_LARGE)
    return eini_dist_refuse(ctx, st, "there are too many points and steps to run");
  EINI_TRY(st);
  double *peak = EINI_NEW(&d->arena, double, d->fabric.places);
  if (peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_schedule_rooms(&d->arena, s, d->desc.inputs, NULL, peak));
  for (int q = 0; q < d->fabric.places; q++) {
    d->peak[q] = (int64_t)peak[q];
    d->info.peak_bytes = eini_max64(d->info.peak_bytes, d->peak[q]);
  }
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
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
  eini_copying *c = (eini_copying *)arena.al.alloc_fn(sizeof *c, 16, arena.al.user);
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
  fabric->destroy_fn = eini_copying_destroy;
  return EIN_OK;
}

EIN_API void ein_fabric_moved(const ein_fabric *fabric, int64_t *messages, int64_t *bytes) {
  int own = fabric != NULL && fabric->send_fn == eini_copying_send;
  if (messages != NULL) *messages = own ? ((const eini_copying *)fabric->user)->messages : 0;
  if (bytes != NULL) *bytes = own ? ((const eini_copying *)fabric->user)->bytes : 0;
}

EIN_API void ein_fabric_destroy(ein_fabric *fabric) {
  if (fabric != NULL && fabric->destroy_fn != NULL) fabric->destroy_fn(fabric->user);
  if (fabric != NULL) memset(fabric, 0, sizeof *fabric);
}

static ein_status eini_dist_check(ein_ctx *ctx, const ein_graph *g, const ein_dist_desc *e) {
  EINI_TRY(eini_validate_graph(ctx, g, e->nlayout, e->layout));
  const ein_fabric *f = e->fabric;
  if (f != NULL && (f->places < 1 || f->places > EIN_PLACES_MAX || f->first < 0 || f->count < 1 ||
                    f->first + f->count > f->places))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric has no sane places");
  if (f != NULL && !f->shared && (f->send_fn == NULL || f->recv_fn == NULL || f->wait_fn == NULL))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the fabric cannot move data");
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

// Can a run bind the blocks of its places?
static ein_status eini_dist_check_blocks(ein_ctx *ctx, const ein_dist *d) {
  const char *why = d->fabric.shared ? "places that share memory hold no blocks of their own"
                    : d->desc.schedule != NULL ? "under a schedule whole tensors are bound"
                    : d->desc.nlayout > 0 ? "blocks are dense, a layout is of whole tensors" : NULL;
  if (!d->desc.blocks) return EIN_OK;
  if (why != NULL) return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "blocks: %s", why);
  for (int t = 0; t < d->g->ntensor; t++) {
    if (d->g->tensor[t].role != EIN_ROLE_OUTPUT) continue;  // of inputs blocks are always boxes
    why = eini_dist_not_boxes(d, t);
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
  d->plans.a = &d->arena;
  d->plans.path = d->desc.path;
  if (d->desc.schedule != NULL && d->desc.blocks) return eini_dist_check_blocks(ctx, d);
  if (d->desc.schedule != NULL) return eini_steps_prepare(ctx, d);
  memset(&shapes, 0, sizeof shapes);
  eini_forms_init(&shapes.forms, &d->arena, 0);
  const ein_status st = eini_dist_stmts(ctx, d, &shapes, &room);
  eini_forms_free(&shapes.forms);
  EINI_TRY(st);
  EINI_TRY(eini_dist_check_blocks(ctx, d));
  if (d->fabric.shared) EINI_TRY(eini_dist_memory(d));
  EINI_TRY(eini_dist_reuse(d));
  if (d->fabric.threads) EINI_TRY(eini_dist_waits(d, &room));
  EINI_TRY(eini_dist_peaks(d, &room));
  return d->fabric.shared ? EIN_OK : eini_dist_copies_init(d, &room);
}

EIN_API ein_status ein_dist_create(ein_ctx *ctx, const ein_graph *graph, const ein_dist_desc *desc,
                                   ein_dist **out) {
  ein_dist_desc none;
  eini_arena arena;
  memset(&none, 0, sizeof none);
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (desc == NULL) desc = &none;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_dist_check(ctx, graph, desc);
  if (st != EIN_OK) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_dist *d = EINI_NEW(&arena, ein_dist, 1);
  if (d == NULL)
    return desc->fabric == NULL ? EIN_ERR_NO_MEMORY
                                : eini_dist_agree(desc->fabric, EIN_ERR_NO_MEMORY);
  d->arena = arena;
  d->al = arena.al;
  d->g = graph;
  d->desc = *desc;
  d->nstmt = (int)graph->nstmt;
  eini_fabric_init(1, "serial", &d->fabric);
  if (desc->fabric != NULL) d->fabric = *desc->fabric;
  d->executor.width = 1;
  if (ctx != NULL) {
    d->executor = ctx->executor;
    d->now_fn = ctx->now_fn;
    d->now_user = ctx->now_user;
  }
  d->width = d->fabric.threads ? d->executor.width : 1;
  st = eini_dist_build(ctx, d);
  eini_ctx_free(d->plans.ctx);
  d->plans.ctx = NULL;
  st = eini_dist_agree(&d->fabric, st);
  if (st != EIN_OK) {
    ein_dist_destroy(d);
    if (ctx != NULL && ctx->diag.count == 0)
      eini_dist_refuse(ctx, st, "%s", ein_status_text(st));
    return st;
  }
  eini_dist_exec x;
  memset(&x, 0, sizeof x);
  d->workspace = eini_dist_layout(d, &x, NULL) + EINI_ALIGN;
  d->info.places = d->fabric.places;
  d->info.nstmt = d->nstmt;
  d->info.workspace_bytes = d->workspace;
  d->info.plan_bytes = d->arena.total;
  d->info.nplan = (int)d->plans.n;
  for (int q = 0; q < d->fabric.places; q++)
    d->info.peak_bytes = eini_max64(d->info.peak_bytes, d->peak[q]);
  *out = d;
  return EIN_OK;
}

EIN_API void ein_dist_destroy(ein_dist *d) {
  if (d == NULL) return;
  eini_arena arena = d->arena;
  eini_block_plans_end(&d->plans);
  eini_arena_free(&arena);
}

EIN_API ein_status ein_dist_info_get(const ein_dist *d, ein_dist_info *info) {
  if (d == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = d->info;
  return EIN_OK;
}

EIN_API int64_t ein_dist_peak(const ein_dist *d, int place) {
  return d == NULL || place < 0 || place >= d->fabric.places ? 0 : d->peak[place];
}

EIN_API int64_t ein_dist_bytes(const ein_dist *d, int stmt) {
  return d == NULL || stmt < 0 || stmt >= d->nstmt ? 0 : d->stmt[stmt].bytes;
}

EIN_API ein_status ein_dist_block(const ein_dist *d, int tensor, int place, int64_t *origin,
                                  int64_t *extent, int64_t *elements) {
  if (d == NULL || tensor < 0 || tensor >= d->g->ntensor || place < 0 ||
      place >= d->fabric.places) return EIN_ERR_ARGUMENT;
  if (d->desc.schedule != NULL || eini_dist_not_boxes(d, tensor) != NULL)
    return EIN_ERR_UNSUPPORTED;
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
  if (d->rooms == NULL && d->stmt[stmt].space.ntask < 1) return 0;
  const int64_t k = d->rooms != NULL ? d->rooms[stmt].plan - 1 : d->stmt[stmt].plan[0];
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
    hi = eini_dist_own_elements(d, t, d->fabric.first + i) *
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
  for (int64_t k = 0; stats->stmt_bytes != NULL && k < stats->nstmt; k++) stats->stmt_bytes[k] = 0;
  for (int64_t q = 0; stats->place != NULL && q < stats->nplace; q++)
    memset(&stats->place[q], 0, sizeof *stats->place);
}

EIN_API ein_status ein_dist_execute(const ein_dist *d, const ein_run *run, ein_dist_stats *stats) {
  ein_status st = eini_dist_check_run(d, run);
  if (st == EIN_OK && d->desc.schedule != NULL) {
    if (stats != NULL) eini_dist_stats_clear(stats);
    return eini_dist_agree(&d->fabric, eini_steps_all(d, NULL, run, stats));
  }
  char *mem = st == EIN_OK ? (char *)run->workspace : NULL, *own = NULL;
  if (mem != NULL && run->workspace_bytes < d->workspace) st = eini_run_small(run, d->workspace);
  if (st == EIN_OK && mem == NULL) {
    mem = own = (char *)d->al.alloc_fn(d->workspace, EINI_ALIGN, d->al.user);
    if (mem == NULL) st = EIN_ERR_NO_MEMORY;
  }
  if (st != EIN_OK) return eini_dist_agree(&d->fabric, st);  // instead of the first of a run
  eini_dist_exec x;
  memset(&x, 0, sizeof x);
  x.d = d;
  x.run = run;
  x.stats = stats;
  if (stats != NULL) eini_dist_stats_clear(stats);
  uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  eini_dist_layout(d, &x, mem + skew);
  eini_dist_bind(&x, mem + skew);
  st = !d->fabric.shared ? eini_dist_copy_run(&x)
       : d->fabric.threads ? eini_dist_flow_run(&x) : eini_dist_serial(&x);
  for (int i = 0; i < d->width && x.worker[i].sent != NULL; i++)
    for (int q = 0; q < d->fabric.places; q++) eini_dist_sent(stats, q, x.worker[i].sent[q]);
  if (own != NULL) d->al.free_fn(own, d->workspace, d->al.user);
  return st;
}

#endif  // EINSUM_IMPLEMENTATION
