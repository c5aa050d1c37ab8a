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
