// einsum_mpi.h - v0.1.0 - MPI ranks as places for einsum.h - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #define EINSUM_MPI               // brings in einsum_dist.h, too
//     #include "einsum.h"
//
// Compile with mpicc, or with what it says (OpenMPI and MPICH: mpicc -show). Then
//
//     ein_fabric_mpi(ctx, MPI_COMM_WORLD, 0, &fabric)      a place at every rank
//     desc.fabric = &fabric, desc.decomposition, ..        as on one process, on every rank
//     ein_dist_create(ctx, graph, &desc, &d)               collective, as is
//     ein_dist_execute(d, &run, &stats)                    this
//     ein_mpi_gather(&fabric, &out, 0)                     an output whole at rank 0
//
// and `mpirun -n 8 einsum run PROG.ein .. --fabric mpi` does it from a shell.
//
//
// CONTENTS (search for >>name)
//
// Manual: PLACES AND RANKS, MESSAGES, DEVICES, FAILURES
//
//   >>mpi-api     public functions
//   >>mpi-post    requests and tickets
//   >>mpi-public  the fabric and what a caller sees
//
// PLACES AND RANKS
//
// Every rank makes the same calls in the same order with the same graph, and the same decomposition
// or schedule. Rank r of n drives the places [floor(r*p/n), floor((r+1)*p/n)) of p, so that p may
// be more than n, not less; or those of another rank, where ein_mpi_map has found that this way
// fewer bytes of a plan go between nodes. Inputs are given whole at every rank, and only what its
// places read of them is read. Of an output a rank has the blocks that live at its places; what
// else is in the caller's array stays. With desc.blocks nothing is whole anywhere: a rank binds the
// blocks of its places.
// Only the thread that calls ein_dist_execute calls MPI (MPI_THREAD_FUNNELED is enough). Whoever
// waits gives its core to others: ranks may be more than cores, whatever the library does. Fabrics
// have communicators of their own: several may be in use at once, on parts of the ranks, too.
//
//
// MESSAGES
//
// What moves is what the plan says, without a copy of its own: MPI_Isend from where the message was
// packed, MPI_Irecv to where it is unpacked. Where there is a place at every rank, a block (under a
// schedule: what a place has of a step's box) that three others or more read whole goes to them by
// MPI_Ibcast on a communicator of their ranks, made with the plan and kept with the fabric; all of
// them post these in one order, and what is early is held until its turn. Counts are those of a
// message to each. All of a statement's (of two steps') are posted before any is waited for: their
// memory is part of the workspace, which bounds them. Messages of more than 2^30 bytes go in pieces
// of that size. A tag is that of the message times the pairs of places of two ranks, within
// MPI_TAG_UB. Partial results are merged in the order of the plan's tree, since MPI promises none,
// but where every tree gives the same bits (max, min, any, all, sums and products of integers) and
// three or more merge: MPI_Ireduce does it then, on a communicator kept in the same way, and counts
// as messages of the plan's tree. Results that are scattered go as blocks to their places, which
// moves what a reduce-scatter does at least. Bits are those of the copying fabric.
//
//
// DEVICES
//
// Ranks with a GPU (EINSUM_CUDA) keep what their places have of statements that run there in its
// memory. Where MPI takes memory of devices messages are sent from there and received there, packed
// by kernels where they do not lie in one piece; the library is asked (MPIX_Query_cuda_support), or
// ein_mpi_aware says so, and it is never assumed. Else they go through pinned memory of the host.
// Folds by MPI_Ireduce are always the host's. An MPI library may want a current context already
// when it is initialised, or its own variables set: its manual says so.
//
//
// FAILURES
//
// Ranks agree on a status when a plan was made and when it has run, so a rank without memory gives
// all of them the same error, and none hangs. Before, they compare numbers for what they were given
// (graph, sizes, decomposition, schedule, description; of a distributed tensor shape, dtype and
// distribution): another one at one rank is EIN_ERR_ARGUMENT at all, and messages say which. Errors
// of MPI are EIN_ERR_INTERNAL where MPI returns them: the fabric's communicator is set to. A rank
// that dies is the launcher's to report.

#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_MPI_H
#define EINSUM_MPI_H

#include <mpi.h>

#include "einsum_dist.h"

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>mpi-api  public functions
// All but ein_mpi_moved and ein_mpi_aware are collective over the fabric's ranks.
// ================================================================================================

// p places over the ranks of comm, which is duplicated; p is 0 (one at every rank) or at least the
// number of ranks. MPI has to be initialised, and to be so still when the fabric is destroyed.
// ctx (may be NULL) gives the allocator. EIN_ERR_ARGUMENT for another p, everywhere.
EIN_API ein_status ein_fabric_mpi(ein_ctx *ctx, MPI_Comm comm, int p, ein_fabric *fabric);
// Ranks drive the places that are best for a decomposition or a schedule of a graph (the other is
// NULL), with few bytes between nodes, as ein_nodes_map says; each: how many consecutive ranks are
// a node, 0: those that share memory. Before plans and tensors are made on the fabric. between (may
// be NULL): as there. On failure, everywhere, ranks drive the places that they did.
EIN_API ein_status ein_mpi_map(ein_ctx *ctx, ein_fabric *fabric, const ein_graph *graph,
                               const ein_decomposition *d, const ein_schedule *s, int each,
                               double *between);
// Makes an output whole at rank `root`, or at all (-1). out: the same dense row-major array at
// every rank, filled by ein_dist_execute, which was zero bytes before; where it is not made whole
// it stays. Elements that live at several places must be alike there.
EIN_API ein_status ein_mpi_gather(const ein_fabric *fabric, const ein_ztensor *out, int root);
// Does MPI take memory of devices, of a provider's own (EINSUM_CUDA)? aware 0, 1: so it is; -1: as
// it was. Returns it; at first what the library says where it can be asked (OpenMPI, MPICH 4), else
// 0. Before plans are made on the fabric. Not collective: ranks need not have the same.
EIN_API int ein_mpi_aware(ein_fabric *fabric, int aware);
// The status of a rank becomes that of all, the largest of them.
EIN_API ein_status ein_mpi_agree(const ein_fabric *fabric, ein_status status);
// What this rank has sent and received since the fabric was made, in messages and bytes, what went
// between its own places included. Pointers may be NULL.
EIN_API void ein_mpi_moved(const ein_fabric *fabric, int64_t *messages, int64_t *sent,
                           int64_t *received);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_MPI_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_MPI_IMPLEMENTATION_DONE)
#define EINSUM_MPI_IMPLEMENTATION_DONE

// Whether the library takes memory of devices is asked at run time, where it can be.
#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif
#if defined(MPIX_CUDA_AWARE_SUPPORT) || \
    (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000 && !defined(I_MPI_VERSION))
#define EINI_MPI_ASK (MPIX_Query_cuda_support() == 1)
#else
#define EINI_MPI_ASK 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>mpi-post  requests and tickets
// Takes messages between places; gives tickets, which are numbers of requests. A message in pieces
// has a request for each, linked.
// ================================================================================================

#ifndef EINI_MPI_PIECE
#define EINI_MPI_PIECE ((size_t)1 << 30)  // bytes of a message at most; counts of MPI are int
#endif

enum { EINI_MPI_GROUPS = 256 };  // of a rank; libraries have few communicators

typedef struct eini_mpi_request {
  MPI_Request request;
  int64_t next;             // of the same message, or of the free ones; 0: none
  int held;                 // 1: not its turn yet
  int lent;                 // 1: its data is in a provider's memory
} eini_mpi_request;

// What was posted to a group before its turn.
typedef struct eini_mpi_held {
  char *data;               // NULL: nothing yet
  size_t bytes, size;       // in all; of an element
  int root;                 // a place
  int folds;                // 1: into data of the root, by op, else from there
  MPI_Op op;
  MPI_Datatype type;
  int64_t ticket;
} eini_mpi_held;

// Places that get messages from one of them at once: all of them post these in one order.
typedef struct eini_mpi_group {
  MPI_Comm comm;            // their ranks, in the order of places
  int n, *place;
  int turn;                 // of a run, that is posted next
  int turns;                // room in held
  eini_mpi_held *held;
} eini_mpi_group;

typedef struct eini_mpi {
  ein_allocator al;
  MPI_Comm comm;
  int rank, ranks, places;
  int *driver;              // per run of places: its rank; NULL: run r is of rank r
  int run;                  // of this rank
  int64_t pairs, tags;      // of places of two ranks; numbers of messages that tags tell apart
  eini_mpi_request *all;    // [cap + 1], the first is unused
  int64_t cap, free;
  int64_t messages, sent, received;
  eini_mpi_group *group;    // room for EINI_MPI_GROUPS, or NULL
  int ngroup;
  MPI_Op extreme[2];        // max and min of real numbers
  int aware;                // 1: MPI takes memory of devices
  const ein_kernels *away;  // in whose memory is what is posted next; NULL: the host's
  const ein_kernels *lent;  // in whose memory is what so many requests are of
  int64_t nlent;
} eini_mpi;

static int eini_mpi_first(const eini_mpi *m, int run) {
  return (int)((int64_t)run * m->places / m->ranks);
}

// The run of places that has one.
static int eini_mpi_run(const eini_mpi *m, int place) {
  return (int)((((int64_t)place + 1) * m->ranks - 1) / m->places);
}

// The rank that drives a place.
static int eini_mpi_rank(const eini_mpi *m, int place) {
  const int run = eini_mpi_run(m, place);
  return m->driver == NULL ? run : m->driver[run];
}

static int eini_mpi_tag(const eini_mpi *m, int from, int to, int64_t tag) {
  const int most = (m->places + m->ranks - 1) / m->ranks;  // places of a rank
  const int64_t a = from - eini_mpi_first(m, eini_mpi_run(m, from));
  const int64_t b = to - eini_mpi_first(m, eini_mpi_run(m, to));
  return (int)(tag % m->tags * m->pairs + a * most + b);
}

// Room for `cap` requests, of which as many may be in use as are now.
static ein_status eini_mpi_grow(eini_mpi *m, int64_t cap) {
  const size_t size = sizeof *m->all;
  if (cap <= m->cap) return EIN_OK;
  eini_mpi_request *all =
      (eini_mpi_request *)m->al.alloc_fn((size_t)(cap + 1) * size, EINI_ALIGN, m->al.user);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  if (m->all != NULL) {
    memcpy(all, m->all, (size_t)(m->cap + 1) * size);
    m->al.free_fn(m->all, (size_t)(m->cap + 1) * size, m->al.user);
  }
  for (int64_t i = cap; i > m->cap; i--) {
    all[i].next = m->free;
    m->free = i;
  }
  m->all = all;
  m->cap = cap;
  return EIN_OK;
}

static ein_status eini_mpi_room(void *user, int64_t tickets, int64_t bytes) {
  return eini_mpi_grow((eini_mpi *)user, tickets + bytes / (int64_t)EINI_MPI_PIECE);
}

// ---- memory of devices ----

static ein_status eini_mpi_memory(void *user, const ein_kernels *k) {
  eini_mpi *m = (eini_mpi *)user;
  if (k != NULL && (!m->aware || k->memory->lend_fn == NULL)) return EIN_ERR_UNSUPPORTED;
  m->away = k;
  return EIN_OK;
}

// Before MPI is called, which may read and write what it was given; then eini_mpi_lent.
static const ein_kernels *eini_mpi_lend(const eini_mpi *m) {
  const ein_kernels *k = m->away != NULL ? m->away : m->nlent > 0 ? m->lent : NULL;
  return k != NULL && k->memory->lend_fn(k->user, 1) == EIN_OK ? k : NULL;
}

static void eini_mpi_lent(const ein_kernels *k) {
  if (k != NULL) (void)k->memory->lend_fn(k->user, 0);
}

// MPI knows nothing of streams: what a place was asked for in its memory is over.
static ein_status eini_mpi_made(const eini_mpi *m, int place) {
  const ein_kernels *k = m->away;
  ein_ticket ticket = 0;
  if (k == NULL) return EIN_OK;
  if (k->memory->place_fn != NULL) k->memory->place_fn(k->user, place);
  ein_status st = k->memory->mark_fn(k->user, &ticket);
  if (st == EIN_OK && ticket != 0) st = k->memory->wait_fn(k->user, ticket);
  if (k->memory->place_fn != NULL) k->memory->place_fn(k->user, -1);
  return st;
}

static void eini_mpi_lends(eini_mpi *m, int64_t number) {
  m->all[number].lent = m->away != NULL;
  if (m->away == NULL) return;
  m->lent = m->away;
  m->nlent++;
}

// ---- requests ----

// A request's number, never 0.
static ein_status eini_mpi_new(eini_mpi *m, int64_t *number) {
  if (m->free == 0) EINI_TRY(eini_mpi_grow(m, m->cap < 64 ? 64 : 2 * m->cap));
  *number = m->free;
  m->free = m->all[m->free].next;
  return EIN_OK;
}

static void eini_mpi_old(eini_mpi *m, int64_t number) {
  m->all[number].next = m->free;
  m->free = number;
}

// Posts a message, in pieces from the first byte on; on failure what was posted still has to end.
static ein_status eini_mpi_pieces(eini_mpi *m, int rank, int tag, const void *data, void *room,
                                  size_t bytes, ein_ticket *ticket) {
  size_t at = 0;
  int64_t last = 0;
  *ticket = 0;
  do {
    const size_t n = bytes - at < EINI_MPI_PIECE ? bytes - at : EINI_MPI_PIECE;
    int64_t k;
    EINI_TRY(eini_mpi_new(m, &k));
    const int failed =
        room != NULL ? MPI_Irecv((char *)room + at, (int)n, MPI_BYTE, rank, tag, m->comm,
                                 &m->all[k].request)
                     : MPI_Isend((const char *)data + at, (int)n, MPI_BYTE, rank, tag, m->comm,
                                 &m->all[k].request);
    if (failed != MPI_SUCCESS) {
      eini_mpi_old(m, k);
      return EIN_ERR_INTERNAL;
    }
    m->all[k].next = 0;
    m->all[k].held = 0;
    eini_mpi_lends(m, k);
    if (last == 0) *ticket = k;
    else m->all[last].next = k;
    last = k;
    at += n;
  } while (at < bytes);
  m->messages++;
  return EIN_OK;
}

// The same of what is, or goes, to the memory of a place. It is posted, whatever became of that:
// another rank waits for it.
static ein_status eini_mpi_post(eini_mpi *m, int place, int rank, int tag, const void *data,
                                void *room, size_t bytes, ein_ticket *ticket) {
  const ein_status made = eini_mpi_made(m, place);
  const ein_kernels *k = eini_mpi_lend(m);
  const ein_status st = eini_mpi_pieces(m, rank, tag, data, room, bytes, ticket);
  eini_mpi_lent(k);
  return st != EIN_OK ? st : made;
}

static ein_status eini_mpi_send(void *user, int from, int to, int64_t tag, const void *data,
                                size_t bytes, ein_ticket *ticket) {
  eini_mpi *m = (eini_mpi *)user;
  m->sent += (int64_t)bytes;
  return eini_mpi_post(m, from, eini_mpi_rank(m, to), eini_mpi_tag(m, from, to, tag), data, NULL,
                       bytes, ticket);
}

static ein_status eini_mpi_recv(void *user, int to, int from, int64_t tag, void *data,
                                size_t bytes, ein_ticket *ticket) {
  eini_mpi *m = (eini_mpi *)user;
  m->received += (int64_t)bytes;
  return eini_mpi_post(m, to, eini_mpi_rank(m, from), eini_mpi_tag(m, from, to, tag), NULL, data,
                       bytes, ticket);
}

static ein_status eini_mpi_test(void *user, ein_ticket ticket, int *done) {
  eini_mpi *m = (eini_mpi *)user;
  const ein_kernels *lent = eini_mpi_lend(m);
  int failed = MPI_SUCCESS;
  *done = 1;
  if (ticket != 0 && m->all[ticket].held) *done = 0;
  for (int64_t k = ticket; k != 0 && *done && failed == MPI_SUCCESS; k = m->all[k].next)
    failed = MPI_Test(&m->all[k].request, done, MPI_STATUS_IGNORE);  // null requests are done
  eini_mpi_lent(lent);
  return failed == MPI_SUCCESS ? EIN_OK : EIN_ERR_INTERNAL;
}

// Waits, and lets others compute meanwhile: ranks may be more than cores, libraries may only spin.
static ein_status eini_mpi_end(MPI_Request *request) {
  for (int done = 0;; eini_flow_yield()) {
    if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return EIN_ERR_INTERNAL;
    if (done) return EIN_OK;
  }
}

// MPI_Allreduce in place, over all ranks.
static ein_status eini_mpi_all(const eini_mpi *m, void *data, int n, MPI_Datatype type, MPI_Op op) {
  MPI_Request r;
  if (MPI_Iallreduce(MPI_IN_PLACE, data, n, type, op, m->comm, &r) != MPI_SUCCESS)
    return EIN_ERR_INTERNAL;
  return eini_mpi_end(&r);
}

static ein_status eini_mpi_wait(void *user, ein_ticket ticket) {
  eini_mpi *m = (eini_mpi *)user;
  const ein_kernels *lent = eini_mpi_lend(m);
  ein_status st = EIN_OK;
  for (int64_t k = ticket, next; k != 0; k = next) {
    next = m->all[k].next;
    m->nlent -= m->all[k].lent;
    if (m->all[k].held) st = EIN_ERR_INTERNAL;  // what comes before it was not posted
    else if (eini_mpi_end(&m->all[k].request) != EIN_OK) st = EIN_ERR_INTERNAL;
    eini_mpi_old(m, k);
  }
  eini_mpi_lent(lent);
  return st;
}

// max and min of real numbers as the library has them: the first NaN, the last of equal numbers.
// They do not commute, so MPI takes them in the order of ranks.
#define EINI_MPI_EXTREME(T)                                                         \
  static void eini_mpi_extreme_##T(const T *x, T *y, int n, int least) {            \
    for (int i = 0; i < n; i++)                                                     \
      if (!(x[i] <= x[i]) || (least ? x[i] < y[i] : x[i] > y[i])) y[i] = x[i];      \
  }
EINI_MPI_EXTREME(float)
EINI_MPI_EXTREME(double)
#undef EINI_MPI_EXTREME

static void eini_mpi_extreme(void *x, void *y, int n, MPI_Datatype type, int least) {
  if (type == MPI_FLOAT) eini_mpi_extreme_float((const float *)x, (float *)y, n, least);
  else eini_mpi_extreme_double((const double *)x, (double *)y, n, least);
}

static void eini_mpi_max(void *x, void *y, int *n, MPI_Datatype *type) {
  eini_mpi_extreme(x, y, *n, *type, 0);
}

static void eini_mpi_min(void *x, void *y, int *n, MPI_Datatype *type) {
  eini_mpi_extreme(x, y, *n, *type, 1);
}

static ein_status eini_mpi_agree(void *user, ein_status *status) {
  const eini_mpi *m = (const eini_mpi *)user;
  int most = (int)*status;
  EINI_TRY(eini_mpi_all(m, &most, 1, MPI_INT, MPI_MAX));
  *status = (ein_status)most;
  return EIN_OK;
}

// Begins what a group waits for, as far as it was posted in turn.
static ein_status eini_mpi_turns(eini_mpi *m, eini_mpi_group *g, int turns) {
  for (; g->turn < turns && g->held[g->turn].data != NULL; g->turn++) {
    eini_mpi_held *h = &g->held[g->turn];
    size_t at = 0;
    int root = 0;
    while (g->place[root] != h->root) root++;
    for (int64_t k = h->ticket; k != 0; k = m->all[k].next) {
      const size_t n = h->bytes - at < EINI_MPI_PIECE ? h->bytes - at : EINI_MPI_PIECE;
      char *data = h->data + at;
      MPI_Request *request = &m->all[k].request;
      const int count = (int)(n / h->size), here = eini_mpi_rank(m, h->root) == m->rank;
      const int failed =
          !h->folds ? MPI_Ibcast(data, count, h->type, root, g->comm, request)
          : here    ? MPI_Ireduce(MPI_IN_PLACE, data, count, h->type, h->op, root, g->comm, request)
                    : MPI_Ireduce(data, NULL, count, h->type, h->op, root, g->comm, request);
      if (failed != MPI_SUCCESS) return EIN_ERR_INTERNAL;
      m->all[k].held = 0;
      at += n;
    }
    h->data = NULL;
  }
  if (g->turn == turns) g->turn = 0;  // of the next run
  return EIN_OK;
}

// Notes what h says to a group, and posts what has its turn.
static ein_status eini_mpi_note(eini_mpi *m, eini_mpi_group *g, int turns, int turn,
                                eini_mpi_held *h, ein_ticket *ticket) {
  int64_t last = 0;
  *ticket = 0;
  for (size_t at = 0; at < h->bytes; at += EINI_MPI_PIECE) {
    int64_t k;
    EINI_TRY(eini_mpi_new(m, &k));
    m->all[k].request = MPI_REQUEST_NULL;
    m->all[k].next = 0;
    m->all[k].held = 1;
    eini_mpi_lends(m, k);
    if (last == 0) *ticket = k;
    else m->all[last].next = k;
    last = k;
  }
  h->ticket = *ticket;
  g->held[turn] = *h;
  return eini_mpi_turns(m, g, turns);
}

static ein_status eini_mpi_hold(eini_mpi *m, eini_mpi_group *g, int turns, int turn,
                                eini_mpi_held *h, ein_ticket *ticket) {
  const ein_status made = eini_mpi_made(m, eini_mpi_first(m, m->run));
  const ein_kernels *k = eini_mpi_lend(m);
  const ein_status st = eini_mpi_note(m, g, turns, turn, h, ticket);
  eini_mpi_lent(k);
  return st != EIN_OK ? st : made;
}

static ein_status eini_mpi_spread(void *user, int number, int turns, int turn, int root, void *data,
                                  size_t bytes, ein_ticket *ticket) {
  eini_mpi *m = (eini_mpi *)user;
  eini_mpi_group *g = &m->group[number];
  eini_mpi_held h = {(char *)data, bytes, 1, root, 0, MPI_OP_NULL, MPI_BYTE, 0};
  const int sends = eini_mpi_rank(m, root) == m->rank;
  m->messages += sends ? g->n - 1 : 1;
  if (sends) m->sent += (g->n - 1) * (int64_t)bytes;
  else m->received += (int64_t)bytes;
  return eini_mpi_hold(m, g, turns, turn, &h, ticket);
}

// The operator of a fold, of numbers of a size: integers wrap, 0 and 1 are or, and.
static void eini_mpi_op(const eini_mpi *m, int fold, ein_dtype dtype, eini_mpi_held *h) {
  const int real = dtype == EIN_F32 || dtype == EIN_F64, sum = fold == EIN_FOLD_SUM;
  const int product = fold == EIN_FOLD_PROD;
  h->size = ein_dtype_size(dtype);
  h->type = h->size == 8 ? MPI_INT64_T : MPI_INT32_T;
  if (sum || product) h->type = h->size == 8 ? MPI_UINT64_T : MPI_UINT32_T;
  if (real) h->type = h->size == 8 ? MPI_DOUBLE : MPI_FLOAT;
  if (dtype == EIN_BOOL) h->type = MPI_UINT8_T;
  h->op = sum ? MPI_SUM : product ? MPI_PROD : fold == EIN_FOLD_MAX ? MPI_MAX : MPI_MIN;
  if (real) h->op = m->extreme[fold == EIN_FOLD_MIN];
  if (dtype == EIN_BOOL)
    h->op = sum || fold == EIN_FOLD_ANY || fold == EIN_FOLD_MAX ? MPI_BOR : MPI_BAND;
}

// Counts are those of messages of the plan's tree: up from place k of g once, but for the first.
static ein_status eini_mpi_reduce(void *user, int number, int turns, int turn, int fold,
                                  ein_dtype dtype, void *data, size_t bytes, ein_ticket *ticket) {
  eini_mpi *m = (eini_mpi *)user;
  eini_mpi_group *g = &m->group[number];
  eini_mpi_held h = {(char *)data, bytes, 1, g->place[0], 1, MPI_OP_NULL, MPI_BYTE, 0};
  int own = 0;
  eini_mpi_op(m, fold, dtype, &h);
  while (eini_mpi_rank(m, g->place[own]) != m->rank) own++;
  m->messages += own > 0;
  if (own > 0) m->sent += (int64_t)bytes;
  for (int step = 1; own % (2 * step) == 0 && own + step < g->n; step *= 2) {
    m->messages++;
    m->received += (int64_t)bytes;
  }
  return eini_mpi_hold(m, g, turns, turn, &h, ticket);
}

static void eini_mpi_group_free(eini_mpi *m, eini_mpi_group *g) {
  if (g->comm != MPI_COMM_NULL) MPI_Comm_free(&g->comm);
  if (g->place != NULL) m->al.free_fn(g->place, (size_t)g->n * sizeof(int), m->al.user);
  if (g->held != NULL)
    m->al.free_fn(g->held, (size_t)g->turns * sizeof *g->held, m->al.user);
}

static void eini_mpi_groups_free(eini_mpi *m) {
  for (int i = 0; i < m->ngroup; i++) eini_mpi_group_free(m, &m->group[i]);
  if (m->group != NULL)
    m->al.free_fn(m->group, EINI_MPI_GROUPS * sizeof *m->group, m->al.user);
  m->group = NULL;
  m->ngroup = 0;
}

// The number of a group of so many places, with room for `turns` messages; a new one has no
// communicator yet.
static ein_status eini_mpi_group_room(eini_mpi *m, int n, const int *place, int turns,
                                      int *number) {
  const size_t bytes = (size_t)n * sizeof *place;
  int i = 0;
  while (i < m->ngroup &&
         (m->group[i].n != n || memcmp(m->group[i].place, place, bytes) != 0)) i++;
  eini_mpi_group *g = &m->group[i];
  *number = i;
  if (i == m->ngroup) {
    memset(g, 0, sizeof *g);
    g->comm = MPI_COMM_NULL;
    g->n = n;
    g->place = (int *)m->al.alloc_fn(bytes, EINI_ALIGN, m->al.user);
    if (g->place == NULL) return EIN_ERR_NO_MEMORY;
    memcpy(g->place, place, bytes);
    m->ngroup++;
  }
  if (g->turns >= turns) return EIN_OK;
  const size_t room = (size_t)turns * sizeof *g->held;
  eini_mpi_held *held = (eini_mpi_held *)m->al.alloc_fn(room, EINI_ALIGN, m->al.user);
  if (held == NULL) return EIN_ERR_NO_MEMORY;
  memset(held, 0, room);
  if (g->held != NULL)
    m->al.free_fn(g->held, (size_t)g->turns * sizeof *g->held, m->al.user);
  g->held = held;
  g->turns = turns;
  return EIN_OK;
}

// A communicator of a group's ranks; all of these make theirs in one order.
static ein_status eini_mpi_group_open(eini_mpi *m, MPI_Group all, eini_mpi_group *g, int *rank) {
  MPI_Group own;
  if (g->comm != MPI_COMM_NULL) return EIN_OK;
  for (int i = 0; i < g->n; i++) rank[i] = eini_mpi_rank(m, g->place[i]);
  if (MPI_Group_incl(all, g->n, rank, &own) != MPI_SUCCESS) return EIN_ERR_INTERNAL;
  const int failed = MPI_Comm_create_group(m->comm, own, 0, &g->comm);
  MPI_Group_free(&own);
  if (failed != MPI_SUCCESS) return EIN_ERR_INTERNAL;
  MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
  return EIN_OK;
}

// All rooms first, then communicators, where every rank may have as many as it would.
static ein_status eini_mpi_groups(void *user, int n, const int *first, const int *place,
                                  const int *turns, int *number) {
  eini_mpi *m = (eini_mpi *)user;
  int said[2] = {n < 0 ? (int)EIN_ERR_NO_MEMORY : (int)EIN_OK, (n < 0 ? 0 : n) + m->ngroup};
  EINI_TRY(eini_mpi_all(m, said, 2, MPI_INT, MPI_MAX));
  for (int g = 0; g < n; g++) number[g] = -1;
  if (said[0] != (int)EIN_OK || said[1] == 0 || said[1] > EINI_MPI_GROUPS)
    return (ein_status)said[0];
  const size_t bytes = EINI_MPI_GROUPS * sizeof *m->group;
  const int old = m->ngroup;
  if (m->group == NULL)
    m->group = (eini_mpi_group *)m->al.alloc_fn(bytes, EINI_ALIGN, m->al.user);
  int *rank = (int *)m->al.alloc_fn((size_t)m->ranks * sizeof *rank, EINI_ALIGN, m->al.user);
  ein_status st = m->group == NULL || rank == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int g = 0; g < n && st == EIN_OK; g++)
    st = eini_mpi_group_room(m, first[g + 1] - first[g], place + first[g], turns[g], &number[g]);
  const ein_status failed = eini_mpi_agree(m, &st);
  if (failed != EIN_OK) st = failed;
  MPI_Group all;
  MPI_Comm_group(m->comm, &all);
  ein_status opened = st;
  for (int g = 0; g < n && st == EIN_OK; g++)
    if (opened == EIN_OK) opened = eini_mpi_group_open(m, all, &m->group[number[g]], rank);
  MPI_Group_free(&all);
  if (st == EIN_OK && eini_mpi_agree(m, &opened) != EIN_OK) opened = EIN_ERR_INTERNAL;
  if (st == EIN_OK) st = opened;
  while (st != EIN_OK && m->ngroup > old) eini_mpi_group_free(m, &m->group[--m->ngroup]);
  if (rank != NULL) m->al.free_fn(rank, (size_t)m->ranks * sizeof *rank, m->al.user);
  return st;
}

static ein_status eini_mpi_same(void *user, int64_t n, const uint64_t *word, int64_t *first) {
  const eini_mpi *m = (const eini_mpi *)user;
  uint64_t most[16];  // of each word, and of what it lacks
  const int64_t each = (int64_t)(sizeof most / sizeof *most) / 2;
  *first = n;
  for (int64_t at = 0; at < n; at += each) {
    const int64_t k = n - at < each ? n - at : each;
    for (int64_t i = 0; i < k; i++) {
      most[2 * i] = word[at + i];
      most[2 * i + 1] = ~word[at + i];
    }
    EINI_TRY(eini_mpi_all(m, most, 2 * (int)k, MPI_UINT64_T, MPI_MAX));
    for (int64_t i = k - 1; i >= 0; i--)
      if (most[2 * i] != ~most[2 * i + 1] && at + i < *first) *first = at + i;
  }
  return EIN_OK;
}

// ================================================================================================
// >>mpi-public  the fabric and what a caller sees
// Takes a communicator; gives a fabric. Collective calls agree before they go on.
// ================================================================================================

static void eini_mpi_destroy(void *user) {
  eini_mpi *m = (eini_mpi *)user;
  eini_mpi_groups_free(m);
  MPI_Op_free(&m->extreme[0]);
  MPI_Op_free(&m->extreme[1]);
  MPI_Comm_free(&m->comm);
  if (m->all != NULL)
    m->al.free_fn(m->all, (size_t)(m->cap + 1) * sizeof *m->all, m->al.user);
  if (m->driver != NULL)
    m->al.free_fn(m->driver, (size_t)m->ranks * sizeof *m->driver, m->al.user);
  m->al.free_fn(m, sizeof *m, m->al.user);
}

EIN_API ein_status ein_fabric_mpi(ein_ctx *ctx, MPI_Comm comm, int p, ein_fabric *fabric) {
  eini_arena arena;  // for the allocator alone
  MPI_Comm own;
  MPI_Request made;
  int rank, ranks, there = 0, *most = NULL;
  if (fabric == NULL) return EIN_ERR_ARGUMENT;
  memset(fabric, 0, sizeof *fabric);
  if (MPI_Comm_idup(comm, &own, &made) != MPI_SUCCESS || eini_mpi_end(&made) != EIN_OK)
    return EIN_ERR_INTERNAL;
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  MPI_Comm_rank(own, &rank);
  MPI_Comm_size(own, &ranks);
  MPI_Comm_get_attr(own, MPI_TAG_UB, &most, &there);
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  eini_mpi *m = (eini_mpi *)arena.al.alloc_fn(sizeof *m, EINI_ALIGN, arena.al.user), none;
  memset(&none, 0, sizeof none);
  none.al = arena.al;
  none.comm = own;
  none.rank = none.run = rank;
  none.ranks = ranks;
  none.places = p == 0 ? ranks : p;
  const int sane = none.places >= ranks && none.places <= EIN_PLACES_MAX;
  if (!sane) none.places = ranks;
  const int64_t each = ((int64_t)none.places + ranks - 1) / ranks;
  none.aware = EINI_MPI_ASK;
  none.pairs = each * each;
  none.tags = ((there ? (int64_t)*most : 32767) + 1) / none.pairs;
  ein_status st = m == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (!sane || none.tags < 1) st = EIN_ERR_ARGUMENT;
  const ein_status failed = eini_mpi_agree(&none, &st);
  if (failed != EIN_OK) st = failed;
  if (st != EIN_OK) {
    if (m != NULL) arena.al.free_fn(m, sizeof *m, arena.al.user);
    MPI_Comm_free(&own);
    return st;
  }
  MPI_Op_create(eini_mpi_max, 0, &none.extreme[0]);
  MPI_Op_create(eini_mpi_min, 0, &none.extreme[1]);
  *m = none;
  fabric->name = "mpi";
  fabric->places = m->places;
  fabric->first = eini_mpi_first(m, rank);
  fabric->count = eini_mpi_first(m, rank + 1) - fabric->first;
  fabric->user = m;
  fabric->send_fn = eini_mpi_send;
  fabric->recv_fn = eini_mpi_recv;
  fabric->test_fn = eini_mpi_test;
  fabric->wait_fn = eini_mpi_wait;
  fabric->agree_fn = eini_mpi_agree;
  fabric->room_fn = eini_mpi_room;
  fabric->destroy_fn = eini_mpi_destroy;
  fabric->same_fn = eini_mpi_same;
  fabric->memory_fn = eini_mpi_memory;
  if (m->places != ranks) return EIN_OK;  // else a rank would be in a group several times
  fabric->groups_fn = eini_mpi_groups;
  fabric->spread_fn = eini_mpi_spread;
  fabric->reduce_fn = eini_mpi_reduce;
  return EIN_OK;
}

static const eini_mpi *eini_mpi_of(const ein_fabric *f) {
  return f != NULL && f->send_fn == eini_mpi_send ? (const eini_mpi *)f->user : NULL;
}

// Names of the nodes of ranks: the lowest rank of each. each: how many consecutive ranks one has;
// 0: those that share memory.
static ein_status eini_mpi_nodes(const eini_mpi *m, int each, int *node) {
  MPI_Comm here;
  int lowest = each > 0 ? m->rank / each : m->rank;
  if (each <= 0) {
    if (MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS)
      return EIN_ERR_INTERNAL;
    const int failed = MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, here);
    MPI_Comm_free(&here);
    if (failed != MPI_SUCCESS) return EIN_ERR_INTERNAL;
  }
  MPI_Request r;
  return MPI_Iallgather(&lowest, 1, MPI_INT, node, 1, MPI_INT, m->comm, &r) == MPI_SUCCESS
             ? eini_mpi_end(&r) : EIN_ERR_INTERNAL;
}

EIN_API ein_status ein_mpi_map(ein_ctx *ctx, ein_fabric *fabric, const ein_graph *graph,
                               const ein_decomposition *d, const ein_schedule *s, int each,
                               double *between) {
  const eini_mpi *same = eini_mpi_of(fabric);
  if (same == NULL) return EIN_ERR_ARGUMENT;
  eini_mpi *m = (eini_mpi *)fabric->user;
  const size_t bytes = (size_t)m->ranks * sizeof(int);
  int *node = (int *)m->al.alloc_fn(bytes, EINI_ALIGN, m->al.user);
  int *driver = (int *)m->al.alloc_fn(bytes, EINI_ALIGN, m->al.user);
  double moved[2] = {0, 0};
  ein_status st = ein_mpi_agree(fabric, node == NULL || driver == NULL ? EIN_ERR_NO_MEMORY
                                                                       : EIN_OK);
  if (st == EIN_OK) st = ein_mpi_agree(fabric, eini_mpi_nodes(m, each, node));
  if (st == EIN_OK)
    st = ein_mpi_agree(fabric, ein_nodes_map(ctx, graph, d, s, m->places, m->ranks, node, driver,
                                             moved));
  if (st == EIN_OK) {
    int *old = m->driver;
    eini_mpi_groups_free(m);  // of places that other ranks had
    m->driver = driver;
    driver = old;
    for (m->run = 0; m->driver[m->run] != m->rank; m->run++) continue;
    fabric->first = eini_mpi_first(m, m->run);
    fabric->count = eini_mpi_first(m, m->run + 1) - fabric->first;
  }
  if (node != NULL) m->al.free_fn(node, bytes, m->al.user);
  if (driver != NULL) m->al.free_fn(driver, bytes, m->al.user);
  if (between != NULL) between[0] = moved[0], between[1] = moved[1];
  return st;
}

EIN_API ein_status ein_mpi_agree(const ein_fabric *fabric, ein_status status) {
  if (eini_mpi_of(fabric) == NULL) return EIN_ERR_ARGUMENT;
  const ein_status failed = fabric->agree_fn(fabric->user, &status);
  return failed != EIN_OK ? failed : status;
}

EIN_API int ein_mpi_aware(ein_fabric *fabric, int aware) {
  if (eini_mpi_of(fabric) == NULL) return 0;
  eini_mpi *m = (eini_mpi *)fabric->user;
  if (aware >= 0) m->aware = aware != 0;
  return m->aware;
}

EIN_API void ein_mpi_moved(const ein_fabric *fabric, int64_t *messages, int64_t *sent,
                           int64_t *received) {
  const eini_mpi *m = eini_mpi_of(fabric);
  if (messages != NULL) *messages = m != NULL ? m->messages : 0;
  if (sent != NULL) *sent = m != NULL ? m->sent : 0;
  if (received != NULL) *received = m != NULL ? m->received : 0;
}

// Every element is at one rank, or alike at several, and zero bytes at the others: bitwise or.
EIN_API ein_status ein_mpi_gather(const ein_fabric *fabric, const ein_ztensor *out, int root) {
  const eini_mpi *m = eini_mpi_of(fabric);
  if (m == NULL || out == NULL || root < -1 || root >= m->ranks) return EIN_ERR_ARGUMENT;
  int64_t n = (int64_t)ein_dtype_size(out->dtype);
  for (int i = 0; i < out->rank; i++) n *= out->shape[i];
  ein_status st = out->strides != NULL || (n > 0 && out->data == NULL) ? EIN_ERR_ARGUMENT : EIN_OK;
  EINI_TRY(ein_mpi_agree(fabric, st));
  for (int64_t at = 0; at < n && st == EIN_OK; at += (int64_t)EINI_MPI_PIECE) {
    const int64_t left = n - at;
    const int bytes = (int)(left < (int64_t)EINI_MPI_PIECE ? left : (int64_t)EINI_MPI_PIECE);
    char *data = (char *)out->data + at;
    if (root < 0) {
      st = eini_mpi_all(m, data, bytes, MPI_BYTE, MPI_BOR);
      continue;
    }
    MPI_Request r;
    const int here = root == m->rank;
    st = MPI_Ireduce(here ? MPI_IN_PLACE : data, here ? data : NULL, bytes, MPI_BYTE, MPI_BOR, root,
                     m->comm, &r) == MPI_SUCCESS ? eini_mpi_end(&r) : EIN_ERR_INTERNAL;
  }
  return st;
}

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_IMPLEMENTATION
