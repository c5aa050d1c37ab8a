// einsum_memory.h - v0.1.0 - einsums and programs within a memory budget - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the header plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum_memory.h"
//
// It includes einsum.h, which must lie beside it. Programs are made with einsum_program.h.
//
//     ein_fit_desc d = {.memory = 100 << 20, .graph = graph};
//     ein_fit *fit;
//     ein_status st = ein_fit_create(ctx, &d, &fit);     // like ein_plan_graph
//     if (st == EIN_OK) st = ein_fit_execute(fit, &run);
//
// Then ein_fit_execute runs it as often as you like, until ein_fit_destroy.
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT THE BUDGET HOLDS, HOW IT IS KEPT, WHAT IT DOES NOT DO
//
//   >>memory-api      public types and functions
//   >>implementation  everything below is compiled once
//   >>memory-cap      an allocator that counts and refuses
//   >>memory-base     the statements to be planned, and their order
//   >>memory-class    indices of several statements that one loop runs over
//   >>memory-measure  predicted bytes and seconds of statements inside loops
//   >>memory-choose   regions and loops for a target
//   >>memory-slice    plans of slices
//   >>memory-search   candidates, budgets, the least budget
//   >>memory-run      running the slices
//   >>memory-print    text and JSON
//   >>memory-public   the calls
//
//
// WHAT THE BUDGET HOLDS
//
// Everything that is allocated from the ctx's allocator between ein_fit_create and ein_fit_destroy,
// the searches of ein_fit_create and the workspace of one execution included: operand copies,
// intermediates, packing buffers of the kernels, plans. Of several executions at the same time each
// needs a workspace of its own. Not in it: your inputs and outputs, the graph and the ctx, stacks
// of threads. Libraries that keep buffers of their own, such as a BLAS, are not seen either: leave
// their provider out of the ctx, or say in reserved what they take of the budget.
//
//
// HOW IT IS KEPT
//
// First the plan that ein_plan_graph (ein_plan_create) would make is tried. If it does not fit:
// - single statements, too, run in slices, for which kernels need smaller buffers; where that does
//   not do, the portable kernels alone, on one thread, then each provider alone;
// - contraction paths for small intermediates, paths whose search takes little memory, and the
//   statement in one pass are tried too;
// - statements are put into an order with fewer intermediates alive;
// - consecutive statements (a region) run in loops over slices of indices. An index is sliced
//   through all statements whose intermediates have it as an axis; where a statement folds it, the
//   results of slices are merged (sum prod max min any all logsumexp), at the end of the region
//   where what follows is linear in them. Inputs and outputs are views
//   of yours, shifted from slice to slice, halos of windows (X[2*h+r]) included. Only tensors that
//   cross from one region to another are stored as a whole.
// - a statement that lacks the sliced index is computed again for every slice where that pays;
//   ein_fit_info says how much.
// Of what fits, that with the least predicted time is taken. Sums that are sliced may round
// otherwise than whole ones; options.deterministic gives the bits of the plan without a budget, and
// then no index is sliced whose fold would be added otherwise.
//
// If nothing fits (or only what would take weeks), the status is EIN_ERR_TOO_LARGE, and the message
// (and least) name the least budget that this search can keep, over all these providers and slices,
// and how much of it planning takes. Only that answer may take more memory than the budget, for
// plans; all of it is freed. What a plan would be refused for is refused in the same way.
//
//
// WHAT IT DOES NOT DO
//
// Outputs may not overlap inputs (EIN_ERR_OVERLAP), apart from C being the output itself; einsums
// with such a C, and statements that leave elements of their output out ("i->ii"), are not sliced.
// With path_seconds, searches depend on the clock, and so may the least budget.

#include "einsum.h"

#ifndef EINSUM_MEMORY_H
#define EINSUM_MEMORY_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>memory-api  public types and functions
// Every fallible call returns an ein_status. With a ctx, the messages are in ein_ctx_error.
// ================================================================================================

typedef struct ein_fit ein_fit;  // immutable, shared freely between threads

typedef struct ein_fit_desc {
  size_t memory;                  // budget in bytes; 0: no limit
  size_t reserved;                // bytes of it that others take, see above
  const ein_graph *graph;         // a finished graph, or
  const ein_einsum_desc *einsum;  //   one einsum, as for ein_plan_create
  int nlayout;                    // with a graph: strides of its inputs and outputs by name
  const ein_binding *layout;
  const ein_options *options;     // with a graph; NULL: defaults. may_overlap is ignored
  size_t *least;                  // receives the least budget when the status is
                                  //   EIN_ERR_TOO_LARGE; may be NULL
} ein_fit_desc;

typedef struct ein_fit_info {
  int nin, nout, nparam;
  size_t memory;                  // as asked for, less what is reserved
  size_t peak_bytes;              // most that is alive between create and destroy, one execution
  size_t plan_bytes;              // alive while nothing is executed
  size_t workspace_bytes;         // of one execution
  int nregion;
  int nloop;                      // sliced indices, of all regions
  int64_t nslice;                 // slices computed by one execution
  double flops;                   // operations predicted, those of repeated statements included
  double repeated_flops;          // of statements that are computed again for every slice
  double seconds;                 // predicted, by a rough model; for comparisons
} ein_fit_info;

typedef struct ein_fit_loop_info {
  int region;                     // from 0
  const char *index;              // name of the sliced index in the region's first statement
  int64_t extent, block;          // the last slice may be shorter
} ein_fit_loop_info;

// Plans an einsum or a graph within a budget. *fit is NULL on failure; it outlives ctx and graph,
// but not the ctx's allocator, executor, providers and registered functions. EIN_ERR_TOO_LARGE when
// the budget is too small. ctx may be NULL.
EIN_API ein_status ein_fit_create(ein_ctx *ctx, const ein_fit_desc *desc, ein_fit **fit);
EIN_API void ein_fit_destroy(ein_fit *fit);               // NULL is a no-op
// Reentrant. run is that of ein_plan_execute, its seconds are not used; inputs, outputs and params
// in the order below. Allocates nothing when the workspace is given.
EIN_API ein_status ein_fit_execute(const ein_fit *fit, const ein_run *run);
EIN_API size_t ein_fit_workspace(const ein_fit *fit);     // bytes, aligned to 64
EIN_API ein_status ein_fit_info_get(const ein_fit *fit, ein_fit_info *info);
// Input, output, param or sliced index i; false (0) when there is none. Strings are the fit's.
EIN_API int ein_fit_input(const ein_fit *fit, int i, ein_tensor_info *info);
EIN_API int ein_fit_output(const ein_fit *fit, int i, ein_tensor_info *info);
EIN_API int ein_fit_param(const ein_fit *fit, int i, ein_param_info *info);
EIN_API int ein_fit_loop(const ein_fit *fit, int i, ein_fit_loop_info *info);
// Text for people, or one JSON object, into buf. Returns the length of the whole text without its
// NUL, as snprintf does.
EIN_API size_t ein_fit_explain(const ein_fit *fit, char *buf, size_t size);
EIN_API size_t ein_fit_json(const ein_fit *fit, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_MEMORY_H

// ================================================================================================
// >>implementation  everything below is compiled once
// Takes the declarations above, and einsum.h's down to >>public; gives their definitions.
// ================================================================================================
#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_MEMORY_IMPLEMENTATION_DONE)
#define EINSUM_MEMORY_IMPLEMENTATION_DONE

// ================================================================================================
// >>memory-cap  an allocator that counts and refuses
// Invariant: live <= limit. Only ein_fit_create and ein_fit_destroy use it, so it needs no lock.
// ================================================================================================

typedef struct eini_cap {
  ein_allocator al;         // the ctx's
  size_t limit, live;
  size_t peak, top;         // most alive since peak was set back, and ever
  int refused, failed;      // the limit was hit; al had no memory
} eini_cap;

static void *eini_cap_alloc(size_t size, size_t align, void *user) {
  eini_cap *c = (eini_cap *)user;
  if (c->live > c->limit || size > c->limit - c->live) {
    c->refused = 1;
    return NULL;
  }
  void *p = c->al.alloc_fn(size, align, c->al.user);
  if (p == NULL) {
    c->failed = 1;
    return NULL;
  }
  c->live += size;
  if (c->live > c->peak) c->peak = c->live;
  if (c->live > c->top) c->top = c->live;
  return p;
}

static void eini_cap_free(void *p, size_t size, void *user) {
  eini_cap *c = (eini_cap *)user;
  if (p == NULL) return;
  c->live -= size;
  c->al.free_fn(p, size, c->al.user);
}

static ein_allocator eini_cap_allocator(eini_cap *c) {
  ein_allocator al;
  al.alloc_fn = eini_cap_alloc;
  al.free_fn = eini_cap_free;
  al.user = c;
  return al;
}

// Was the status due to the budget, so that something smaller may do? What a candidate makes may
// also not fit 64 bits: descriptors, views and layouts were found valid before the search.
static int eini_cap_hit(eini_cap *c, ein_status st) {
  int yes = !c->failed && ((st == EIN_ERR_NO_MEMORY && c->refused) || st == EIN_ERR_TOO_LARGE);
  c->refused = 0;
  return yes;
}

// ================================================================================================
// >>memory-base  the statements to be planned, and their order
// Takes what the caller gave; gives a graph whose statements are split by contraction order, with
// the layout of every tensor. The graph lives in a plan that is never built.
// ================================================================================================

#define EINI_FIT_LOOPS 4        // nested loops of a region
#define EINI_FIT_CLASSES 8      // sliceable indices of a region that are looked at

// What ein_fit_create works on.
typedef struct eini_fit_job {
  ein_ctx *ctx;
  const ein_fit_desc *desc;
  eini_cap *cap;
  double flops, bandwidth;      // per second, of all threads
  int64_t packing;              // most bytes that buffers of kernels take, of all threads
} eini_fit_job;

typedef struct eini_fit_base {
  ein_plan *plan;               // owns the graph
  ein_graph *g;
  int *first, *last, *read;     // per tensor: the first and the last statement that define it, and
                                //   the last that reads it; -1: none
  const int64_t **stride;       // per tensor, in elements
  eini_port *port;              // per tensor: of inputs and outputs
  int64_t *bytes;               // per tensor, padded
  double *made, *gone;          // per statement: bytes of tensors that are read, first defined
                                //   before it, and last read before it
  int split;                    // statements were split by contraction order
} eini_fit_base;

// Predicted bytes add up to this at most: more than any memory, and sums of two do not overflow.
#define EINI_FIT_MOST (INT64_MAX / 4)

static int64_t eini_fit_sum(int64_t a, int64_t b) {  // of numbers >= 0
  return eini_min64(eini_min64(a, EINI_FIT_MOST) + eini_min64(b, EINI_FIT_MOST), EINI_FIT_MOST);
}

// Bytes of n elements, padded; -1: too large.
static int64_t eini_fit_padded(int64_t n, ein_dtype dtype) {
  if (eini_mul_overflow(n, (int64_t)ein_dtype_size(dtype), &n)) return -1;
  return n > INT64_MAX / 2 ? -1 : (n + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// Who defines and who reads each tensor, in the present order of statements.
static void eini_fit_spans(eini_fit_base *b) {
  const ein_graph *g = b->g;
  for (int64_t t = 0; t < g->ntensor; t++) b->first[t] = b->last[t] = b->read[t] = -1;
  for (int u = 0; u < (int)g->nstmt; u++) {
    const eini_stmt *s = &g->stmt[u];
    if (b->first[s->out] < 0) b->first[s->out] = u;
    b->last[s->out] = u;
    for (int k = 0; k < s->noperand; k++) b->read[s->operand[k]] = u;
  }
  for (int64_t u = 0; u <= g->nstmt; u++) b->made[u] = b->gone[u] = 0;
  for (int64_t t = 0; t < g->ntensor; t++) {
    if (b->first[t] < 0 || b->read[t] < 0) continue;
    b->made[b->first[t] + 1] += (double)b->bytes[t];
    b->gone[b->read[t] + 1] += (double)b->bytes[t];
  }
  for (int64_t u = 1; u <= g->nstmt; u++) {
    b->made[u] += b->made[u - 1];
    b->gone[u] += b->gone[u - 1];
  }
}

static ein_status eini_fit_layouts(const eini_fit_job *j, eini_fit_base *b,
                                   const ein_ztensor *const *view) {
  eini_arena *a = &b->plan->arena;
  ein_graph *g = b->g;
  int64_t n = g->ntensor;
  b->first = EINI_NEW(a, int, n);
  b->last = EINI_NEW(a, int, n);
  b->read = EINI_NEW(a, int, n);
  b->stride = EINI_NEW(a, const int64_t *, n);
  b->port = EINI_NEW(a, eini_port, n);
  b->bytes = EINI_NEW(a, int64_t, n);
  b->made = EINI_NEW(a, double, g->nstmt + 1);
  b->gone = EINI_NEW(a, double, g->nstmt + 1);
  if (b->first == NULL || b->last == NULL || b->read == NULL || b->stride == NULL ||
      b->port == NULL || b->bytes == NULL || b->made == NULL || b->gone == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  for (int64_t t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    const ein_ztensor *v = view == NULL ? NULL : view[t];
    int64_t count;
    for (int k = 0; view == NULL && k < j->desc->nlayout; k++)
      if (strcmp(j->desc->layout[k].name, x->name) == 0) v = j->desc->layout[k].view;
    if (x->role == EIN_ROLE_TEMP) {
      EINI_TRY(eini_dense_strides(a, x->rank, x->shape, NULL, &b->stride[t], &count));
      b->bytes[t] = eini_fit_padded(count, x->dtype);
      if (b->bytes[t] < 0) return EIN_ERR_TOO_LARGE;
    } else {
      EINI_TRY(eini_port_init(a, x, v, &b->port[t]));
      b->stride[t] = b->port[t].stride;
    }
  }
  return EIN_OK;
}

static ein_status eini_fit_base_fill(const eini_fit_job *j, const ein_options *o,
                                     eini_fit_base *b) {
  ein_plan *p = b->plan;
  const ein_ztensor **view = NULL;
  if (j->desc->graph != NULL) {
    EINI_TRY(eini_graph_copy_head(p->graph, j->desc->graph));
    EINI_TRY(eini_graph_full(j->ctx, p->graph,
                             eini_plan_statements(j->ctx, p, j->desc->graph, o)));
  } else {
    ein_einsum_desc d = *j->desc->einsum;
    d.options = *o;
    int64_t room = 8 * (int64_t)d.nin + 16;  // inputs, C, output and temporaries
    eini_request r;
    memset(&r, 0, sizeof r);
    r.d = &d;
    r.ctx = j->ctx;
    r.diag = eini_diag_of(j->ctx);
    view = EINI_NEW(&p->arena, const ein_ztensor *, room);
    if (view == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_graph_full(j->ctx, p->graph, eini_request_graph(&r, p, view)));
    if (p->graph->ntensor > room / 2) return EIN_ERR_INTERNAL;
    if (o->deterministic) EINI_TRY(eini_order_graph(p->graph));
  }
  b->g = p->graph;
  b->split = p->npath > 0;
  EINI_TRY(eini_fit_layouts(j, b, view));
  eini_fit_spans(b);
  return EIN_OK;
}

static void eini_fit_base_close(eini_fit_base *b) {
  ein_plan_destroy(b->plan);
  memset(b, 0, sizeof *b);
}

static ein_status eini_fit_base_open(const eini_fit_job *j, const ein_options *o,
                                     eini_fit_base *b) {
  memset(b, 0, sizeof *b);
  eini_begin_call(j->ctx, j->desc->graph != NULL ? NULL : j->desc->einsum->expr);
  ein_status st = eini_plan_new(j->ctx, &b->plan);
  if (st == EIN_OK) st = eini_fit_base_fill(j, o, b);
  if (st != EIN_OK) eini_fit_base_close(b);
  return st;
}

// ---- the order of statements ----

// The state of a list schedule: what is still to be done for each tensor.
typedef struct eini_fit_list {
  int *defs, *reads;            // statements left that define it, operands left that read it
  int *mine;                    // operands of the statement at hand that read it; else 0
  char *done, *live;
} eini_fit_list;

// May statement u come next? *after: the change of live bytes that it makes.
static int eini_fit_ready(const eini_fit_base *b, const eini_fit_list *w, int u, int64_t *after) {
  const eini_stmt *s = &b->g->stmt[u];
  *after = w->live[s->out] ? 0 : b->bytes[s->out];
  for (int k = 0; k < s->noperand; k++)
    if (w->defs[s->operand[k]] > 0) return 0;
  for (int k = 0; k < s->noperand; k++)
    if (++w->mine[s->operand[k]] == w->reads[s->operand[k]]) *after -= b->bytes[s->operand[k]];
  for (int k = 0; k < s->noperand; k++) w->mine[s->operand[k]] = 0;
  return 1;
}

// Orders the statements so that few temporaries are alive: of those that are ready, the one that
// leaves the least (the earliest on a tie). Takes square time, and orders no longer lists. *moved:
// something changed.
#define EINI_FIT_ORDER 4096

static ein_status eini_fit_reorder(eini_fit_base *b, eini_arena *scratch, int *moved) {
  ein_graph *g = b->g;
  int n = (int)g->nstmt;
  eini_fit_list w;
  eini_stmt *order = EINI_NEW(scratch, eini_stmt, n);
  w.defs = EINI_NEW(scratch, int, g->ntensor);
  w.reads = EINI_NEW(scratch, int, g->ntensor);
  w.mine = EINI_NEW(scratch, int, g->ntensor);
  w.done = EINI_NEW(scratch, char, n);
  w.live = EINI_NEW(scratch, char, g->ntensor);
  if (order == NULL || w.defs == NULL || w.reads == NULL || w.mine == NULL || w.done == NULL ||
      w.live == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  *moved = 0;
  if (n < 2 || n > EINI_FIT_ORDER) return EIN_OK;
  for (int u = 0; u < n; u++) {
    w.defs[g->stmt[u].out]++;
    for (int k = 0; k < g->stmt[u].noperand; k++) w.reads[g->stmt[u].operand[k]]++;
  }
  for (int at = 0; at < n; at++) {
    int best = -1;
    int64_t least = 0, after;
    for (int u = 0; u < n; u++) {
      if (w.done[u] || !eini_fit_ready(b, &w, u, &after)) continue;
      if (best < 0 || after < least) {
        best = u;
        least = after;
      }
    }
    if (best < 0) return EIN_ERR_INTERNAL;
    const eini_stmt *s = &g->stmt[best];
    w.done[best] = w.live[s->out] = 1;
    w.defs[s->out]--;
    for (int k = 0; k < s->noperand; k++) w.reads[s->operand[k]]--;
    *moved |= best != at;
    order[at] = *s;
  }
  if (*moved) memcpy(g->stmt, order, (size_t)n * sizeof *order);
  eini_fit_spans(b);
  return EIN_OK;
}

// ================================================================================================
// >>memory-class  indices of several statements that one loop runs over
// Takes statements [from, to) and an index of one of them; gives the indices and axes that have to
// run with it. Invariant: within a slice, statements read of the tensors made here only the slice.
// ================================================================================================

typedef struct eini_fit_class {
  int64_t extent;
  int stmt, index;              // where it was found
  int *col;                     // per statement of the region: its index in the class; -1: none
  int *axis;                    // per tensor made in the region (eini_fit_row): axis + 1
  char *part;                   // likewise: slices of the class hold a part of its values, to be
                                //   folded; it is read in the region
  char *linear;                 // per statement: it reads such a tensor, and its results are parts
  int fold;                     // of these parts
} eini_fit_class;

// Statements [from, to) of a base, inside loops over classes.
typedef struct eini_fit_nest {
  const eini_fit_base *b;
  int from, to, nloop;
  const eini_fit_class *cls[EINI_FIT_LOOPS];
  int64_t block[EINI_FIT_LOOPS];
} eini_fit_nest;

static int eini_fit_made(const eini_fit_nest *n, int t) {  // all of it, in the region
  return n->b->first[t] >= n->from && n->b->last[t] < n->to;
}

// The place among the region's statements of the first that defines the tensor; -1: none does.
static int eini_fit_row(const eini_fit_nest *n, int t) {
  int u = n->b->first[t];
  return u >= n->from && u < n->to ? u - n->from : -1;
}

// Is the tensor alive only inside the region?
static int eini_fit_inner(const eini_fit_nest *n, int t) {
  return n->b->g->tensor[t].role == EIN_ROLE_TEMP && eini_fit_made(n, t) &&
         n->b->read[t] < n->to && n->b->read[t] >= 0;
}

// Is it read by a statement of the region? (It is made there, so nobody reads it earlier.)
static int eini_fit_read(const eini_fit_nest *n, int t) {
  if (n->b->read[t] < n->to) return n->b->read[t] >= n->from;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = 0; k < s->noperand; k++)
      if (s->operand[k] == t) return 1;
  }
  return 0;
}

// Can results of slices be merged?
static int eini_fit_foldable(int fold) {
  return fold == EINI_SUM || fold == EINI_PROD || fold == EINI_MAX || fold == EINI_MIN ||
         fold == EINI_ANY || fold == EINI_ALL || fold == EINI_LOGSUMEXP;
}

// Declared ahead: an index marks axes, an axis marks indices.
static int eini_fit_mark_axis(const eini_fit_nest *n, eini_fit_class *c, int t, int axis);

// The row of a map that is the index alone; -2: it stands in other places, -1: in none.
static int eini_fit_plain(const eini_stmt *s, const ein_zmap *m, const int64_t *shape, int index) {
  int found = -1;
  for (int r = 0; r < m->rows; r++) {
    if (m->coef[(int64_t)r * m->cols + index] == 0) continue;
    if (found >= 0 || eini_plain_row(m, r) != index || shape[r] != s->index[index].extent)
      return -2;
    found = r;
  }
  return found;
}

// Is statement s a product (in the sense of the fold) with tensor t as one factor, so that parts of
// t give parts of the result?
static int eini_fit_linear(const ein_graph *g, const eini_stmt *s, int t, int fold) {
  const eini_expr *e = &s->expr;
  int64_t at = -1;
  int slots = 0;
  if ((s->fold != EINI_FOLD_NONE && s->fold != fold) || s->rest != EIN_REST_ERROR ||
      g->tensor[s->out].nstmt != 1) {
    return 0;
  }
  for (int k = 0; k < s->noperand; k++) slots += s->operand[k] == t;
  for (int64_t i = 0; i < e->n; i++) {
    if (e->node[i].op != EINI_OP_OPERAND || s->operand[e->node[i].arg[0]] != t) continue;
    if (at >= 0 || slots != 1) return 0;
    at = i;
  }
  while (at >= 0 && at != e->n - 1) {  // up to the root, through products only
    int64_t parent = -1;
    for (int64_t i = at + 1; i < e->n; i++) {
      for (int k = 0; k < eini_node_args(&e->node[i]); k++) {
        if (eini_node_arg(e, &e->node[i], k) != at) continue;
        if (parent >= 0 || !eini_legal_join(g, fold, e->node[i].op)) return 0;
        parent = i;
      }
    }
    at = parent;
  }
  return at >= 0;
}

// Tensor t, read in the region, holds parts: whoever reads it must be linear in it.
static int eini_fit_mark_part(const eini_fit_nest *n, eini_fit_class *c, int t) {
  const ein_graph *g = n->b->g;
  if (!eini_fit_inner(n, t) || g->tensor[t].nstmt != 1) return 0;
  char *part = &c->part[eini_fit_row(n, t)];
  if (*part) return 1;
  *part = 1;
  for (int v = n->from; v < n->to; v++) {
    const eini_stmt *s = &g->stmt[v];
    int reads = 0;
    for (int k = 0; k < s->noperand; k++) reads |= s->operand[k] == t;
    if (!reads) continue;
    if (c->linear[v - n->from] || !eini_fit_linear(g, s, t, c->fold)) return 0;
    c->linear[v - n->from] = 1;
    if (eini_fit_read(n, s->out) && !eini_fit_mark_part(n, c, s->out)) return 0;
  }
  return 1;
}

// Puts an index of statement u into the class; 0 when it cannot be sliced.
static int eini_fit_mark_index(const eini_fit_nest *n, eini_fit_class *c, int u, int index) {
  const ein_graph *g = n->b->g;
  const eini_stmt *s = &g->stmt[u];
  const eini_tensor *out = &g->tensor[s->out];
  int *mine = &c->col[u - n->from];
  if (*mine >= 0) return *mine == index;
  *mine = index;
  if (s->rest != EIN_REST_ERROR || s->index[index].extent != c->extent) return 0;
  if (!eini_order_cuts(g, s, index)) return 0;
  if (index >= s->nfree) {
    if (!eini_fit_foldable(s->fold) || out->nstmt != 1) return 0;
    if (eini_fit_read(n, s->out)) {
      if (c->fold != EINI_FOLD_NONE && c->fold != s->fold) return 0;
      c->fold = s->fold;
      if (!eini_fit_mark_part(n, c, s->out)) return 0;
    }
  } else if (eini_fit_read(n, s->out) || out->nstmt > 1) {
    int r = eini_fit_plain(s, &s->out_map, out->shape, index);
    if (r < 0 || !eini_fit_made(n, s->out) || !eini_fit_mark_axis(n, c, s->out, r)) return 0;
  }
  for (int k = 0; k < s->noperand; k++) {
    int t = s->operand[k];
    if (!eini_fit_made(n, t)) continue;
    int r = eini_fit_plain(s, &s->proj[k], g->tensor[t].shape, index);
    if (r == -2 || (r >= 0 && !eini_fit_mark_axis(n, c, t, r))) return 0;
  }
  return 1;
}

static int eini_fit_mark_axis(const eini_fit_nest *n, eini_fit_class *c, int t, int axis) {
  const ein_graph *g = n->b->g;
  int *mine = &c->axis[eini_fit_row(n, t)];
  if (*mine != 0) return *mine == axis + 1;
  *mine = axis + 1;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &g->stmt[u];
    for (int k = -1; k < s->noperand; k++) {
      if ((k < 0 ? s->out : s->operand[k]) != t) continue;
      const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
      int index = eini_plain_row(m, axis);
      if (index < 0 || eini_fit_plain(s, m, g->tensor[t].shape, index) != axis ||
          (k < 0 && index >= s->nfree) || !eini_fit_mark_index(n, c, u, index)) {
        return 0;
      }
    }
  }
  return 1;
}

// The class of an index of statement u; 0 when it cannot be sliced.
static int eini_fit_class_of(const eini_fit_nest *n, int u, int index, eini_fit_class *c) {
  c->stmt = u;
  c->index = index;
  c->extent = n->b->g->stmt[u].index[index].extent;
  for (int k = 0; k < n->to - n->from; k++) c->col[k] = -1;
  memset(c->axis, 0, (size_t)(n->to - n->from) * sizeof *c->axis);
  memset(c->part, 0, (size_t)(n->to - n->from));
  memset(c->linear, 0, (size_t)(n->to - n->from));
  c->fold = EINI_FOLD_NONE;
  int good = eini_fit_mark_index(n, c, u, index);
  for (int k = 0; k < n->to - n->from; k++) good = good && !(c->linear[k] && c->col[k] >= 0);
  return good;
}

// How results of statement u are merged over the slices of the nest; EINI_FOLD_NONE: they are
// whole. *folded gets the loops, as bits. -1: loops would need different folds.
static int eini_fit_merge_fold(const eini_fit_nest *n, int u, unsigned *folded) {
  const eini_stmt *s = &n->b->g->stmt[u];
  int fold = EINI_FOLD_NONE;
  *folded = 0;
  for (int l = 0; l < n->nloop; l++) {
    const eini_fit_class *c = n->cls[l];
    int mine = c->linear[u - n->from] ? c->fold : EINI_FOLD_NONE;
    if (c->col[u - n->from] >= s->nfree) mine = s->fold;
    if (mine == EINI_FOLD_NONE) continue;
    if (fold != EINI_FOLD_NONE && fold != mine) return -1;
    fold = mine;
    *folded |= 1u << l;
  }
  return fold;
}

// Can the loops of a nest stand together?
static int eini_fit_agree(const eini_fit_nest *n) {
  unsigned folded;
  for (int u = n->from; u < n->to; u++)
    if (eini_fit_merge_fold(n, u, &folded) < 0) return 0;
  return 1;
}

static ein_status eini_fit_class_new(const eini_fit_nest *n, eini_arena *a, eini_fit_class *c) {
  c->col = EINI_NEW(a, int, n->to - n->from);
  c->axis = EINI_NEW(a, int, n->to - n->from);
  c->part = EINI_NEW(a, char, n->to - n->from);
  c->linear = EINI_NEW(a, char, n->to - n->from);
  return c->col == NULL || c->axis == NULL || c->part == NULL || c->linear == NULL
             ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The classes of a region, at most EINI_FIT_CLASSES: those of large extents.
static ein_status eini_fit_classes(const eini_fit_nest *n, eini_arena *a, eini_fit_class *list,
                                   int *count) {
  eini_fit_class c;
  *count = 0;
  EINI_TRY(eini_fit_class_new(n, a, &c));
  for (int u = n->from; u < n->to && n->b->plan->alias < 0; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int i = 0; i < s->nindex; i++) {
      int known = s->index[i].extent < 2, least = 0;
      for (int k = 0; k < *count; k++) known |= list[k].col[u - n->from] == i;
      if (known || !eini_fit_class_of(n, u, i, &c)) continue;
      if (*count < EINI_FIT_CLASSES) {
        list[(*count)++] = c;
        EINI_TRY(eini_fit_class_new(n, a, &c));
        continue;
      }
      for (int k = 1; k < *count; k++)
        if (list[k].extent < list[least].extent) least = k;
      if (list[least].extent >= c.extent) continue;
      eini_fit_class swap = list[least];
      list[least] = c;
      c = swap;
    }
  }
  return EIN_OK;
}

// Statements read in the region what was made wholly before it or wholly in it.
static int eini_fit_legal(const eini_fit_nest *n) {
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = 0; k < s->noperand; k++) {
      int t = s->operand[k];
      if (n->b->last[t] >= n->from && !eini_fit_made(n, t)) return 0;
    }
  }
  return 1;
}

// ================================================================================================
// >>memory-measure  predicted bytes and seconds of statements inside loops
// Rough, and only for choices: what is taken is planned and counted.
// ================================================================================================

typedef struct eini_fit_guess {
  int64_t bytes;
  double seconds, flops, again; // again: flops of statements that lack a loop's index
} eini_fit_guess;

static int64_t eini_fit_slices(int64_t extent, int64_t block) {
  return block < 1 ? 1 : (extent - 1) / block + 1;
}

// Bytes of a tensor made in the region, for one slice.
static int64_t eini_fit_slice_bytes(const eini_fit_nest *n, int t, ein_dtype dtype) {
  const eini_tensor *x = &n->b->g->tensor[t];
  int64_t count = 1;
  int row = eini_fit_row(n, t);
  for (int r = 0; r < x->rank; r++) {
    int64_t e = x->shape[r];
    for (int l = 0; l < n->nloop && row >= 0; l++)
      if (n->cls[l]->axis[row] == r + 1) e = n->block[l];
    if (eini_mul_overflow(count, e, &count)) return EINI_FIT_MOST;
  }
  count = eini_fit_padded(count, dtype);
  return count < 0 ? EINI_FIT_MOST : eini_min64(count, EINI_FIT_MOST);
}

// Tensors that are stored as a whole while the region runs.
static int64_t eini_fit_stored(const eini_fit_nest *n) {
  const eini_fit_base *b = n->b;
  double sum = b->made[n->to] - b->gone[n->from];
  for (int u = n->from; u < n->to; u++) {
    int t = b->g->stmt[u].out;
    if (b->first[t] == u && eini_fit_inner(n, t)) sum -= (double)b->bytes[t];
  }
  return sum >= (double)EINI_FIT_MOST ? EINI_FIT_MOST : sum > 0 ? (int64_t)sum : 0;
}

// Bytes of partial results of statement u, and of where they are merged.
static int64_t eini_fit_part_bytes(const eini_fit_nest *n, int u) {
  const eini_stmt *s = &n->b->g->stmt[u];
  const eini_tensor *x = &n->b->g->tensor[s->out];
  ein_dtype type = ein_dtype_compute(s->type);
  int64_t bytes = 0;
  unsigned folded;
  if (eini_fit_inner(n, s->out) || eini_fit_merge_fold(n, u, &folded) <= EINI_FOLD_NONE) return 0;
  for (int merged = 0; merged <= (x->dtype != type); merged++) {
    int64_t count = 1;
    for (int r = 0; r < x->rank; r++) {
      int64_t e = x->shape[r];
      for (int l = 0; l < n->nloop && !merged; l++) {
        int c = n->cls[l]->col[u - n->from];
        if (c >= 0 && c < s->nfree && eini_plain_row(&s->out_map, r) == c) e = n->block[l];
      }
      if (eini_mul_overflow(count, e, &count)) return EINI_FIT_MOST;
    }
    count = eini_fit_padded(count, type);
    bytes = eini_fit_sum(bytes, count < 0 ? INT64_MAX : count);
  }
  return bytes;
}

// Most bytes of intermediates alive within one slice, and of partial results.
static int64_t eini_fit_peak(const eini_fit_nest *n) {
  const eini_fit_base *b = n->b;
  int64_t live = 0, peak = 0, parts = 0;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &b->g->stmt[u];
    parts = eini_fit_sum(parts, eini_fit_part_bytes(n, u));
    if (b->first[s->out] == u && eini_fit_inner(n, s->out))
      live = eini_fit_sum(live, eini_fit_slice_bytes(n, s->out, b->g->tensor[s->out].dtype));
    peak = eini_max64(peak, live);
    for (int k = 0; k < s->noperand; k++) {
      int t = s->operand[k], before = 0;
      if (b->read[t] != u || !eini_fit_inner(n, t)) continue;
      for (int i = 0; i < k; i++) before |= s->operand[i] == t;
      if (!before)
        live = eini_max64(0, live - eini_fit_slice_bytes(n, t, b->g->tensor[t].dtype));
    }
  }
  return eini_fit_sum(peak, parts);
}

// Elements of an access within one slice.
static double eini_fit_access(const eini_fit_nest *n, int u, int t, const ein_zmap *m) {
  const eini_stmt *s = &n->b->g->stmt[u];
  const eini_tensor *x = &n->b->g->tensor[t];
  double all = 1, seen = 1;
  for (int r = 0; r < x->rank; r++) all *= (double)x->shape[r];
  for (int i = 0; i < s->nindex; i++) {
    int64_t e = s->index[i].extent;
    if (eini_map_uses(m, i) == 0) continue;
    for (int l = 0; l < n->nloop; l++)
      if (n->cls[l]->col[u - n->from] == i) e = n->block[l];
    seen *= (double)e;
  }
  return seen < all ? seen : all;
}

// Bytes that kernels pack into within a slice: copies of what a fold of several operands reads and
// makes, where those are smaller than the largest buffers.
static int64_t eini_fit_packing(const eini_fit_job *j, const eini_fit_nest *n) {
  double most = 0;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    if (s->fold == EINI_FOLD_NONE || s->noperand < 2) continue;
    double count = eini_fit_access(n, u, s->out, &s->out_map);
    for (int k = 0; k < s->noperand; k++)
      count += eini_fit_access(n, u, s->operand[k], &s->proj[k]);
    count *= (double)ein_dtype_size(ein_dtype_compute(s->type));
    if (count > most) most = count;
  }
  return most < (double)j->packing ? (int64_t)most : j->packing;
}

// All that slices of the nest need, beside what is stored.
static int64_t eini_fit_inside(const eini_fit_job *j, const eini_fit_nest *n) {
  return eini_fit_sum(eini_fit_peak(n), eini_fit_packing(j, n));
}

// Bytes an access moves in all slices together: a tensor is read again by loops it lacks.
static double eini_fit_traffic(const eini_fit_nest *n, int u, int t, const ein_zmap *m) {
  const eini_tensor *x = &n->b->g->tensor[t];
  double bytes = (double)ein_dtype_size(x->dtype);
  for (int r = 0; r < x->rank; r++) bytes *= (double)x->shape[r];
  for (int l = 0; l < n->nloop; l++) {
    int c = n->cls[l]->col[u - n->from];
    if (c < 0 || eini_map_uses(m, c) == 0)
      bytes *= (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
  }
  return bytes;
}

// stored: what eini_fit_stored gave.
static void eini_fit_measure(const eini_fit_job *j, const eini_fit_nest *n, int64_t stored,
                             eini_fit_guess *out) {
  double slices = 1;
  memset(out, 0, sizeof *out);
  out->bytes = eini_fit_sum(stored, eini_fit_inside(j, n));
  for (int l = 0; l < n->nloop; l++)
    slices *= (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    double flops = 0, again = 1, bytes = eini_fit_traffic(n, u, s->out, &s->out_map);
    for (int64_t i = 0; i < s->expr.n; i++)
      flops += s->expr.node[i].op > EINI_OP_PARAM && s->expr.node[i].op != EINI_OP_CAST;
    flops += s->fold != EINI_FOLD_NONE;
    for (int i = 0; i < s->nindex; i++) flops *= (double)s->index[i].extent;
    for (int l = 0; l < n->nloop; l++) {
      if (n->cls[l]->col[u - n->from] < 0)
        again *= (double)eini_fit_slices(n->cls[l]->extent, n->block[l]);
    }
    for (int k = 0; k < s->noperand; k++)
      bytes += eini_fit_traffic(n, u, s->operand[k], &s->proj[k]);
    bytes += 3 * slices * (double)eini_fit_part_bytes(n, u);
    out->flops += flops * again;
    out->again += flops * (again - 1);
    double compute = flops * again / j->flops, move = bytes / j->bandwidth;
    out->seconds += (compute > move ? compute : move) + 2e-6 * slices;
  }
  out->seconds += 2e-6;
}

// ================================================================================================
// >>memory-choose  regions and loops for a target
// Takes a base and a number of bytes; gives consecutive regions, each with loops, that are
// predicted to stay below it and to take the least time.
// ================================================================================================

// A region that was chosen. Classes are named by an index of a statement.
typedef struct eini_fit_choice {
  int from, to, nloop;
  int stmt[EINI_FIT_LOOPS], index[EINI_FIT_LOOPS];
  int64_t extent[EINI_FIT_LOOPS], block[EINI_FIT_LOOPS];
  eini_fit_guess guess;
} eini_fit_choice;

// What is sought: at most target bytes in the least time; or, least: the fewest bytes.
typedef struct eini_fit_target {
  int64_t bytes;
  int least;
} eini_fit_target;

static int eini_fit_better(const eini_fit_target *t, const eini_fit_guess *a,
                           const eini_fit_guess *b) {
  if (t->least && a->bytes != b->bytes) return a->bytes < b->bytes;
  return a->seconds < b->seconds;
}

// Whole blocks: as large as possible without more slices; a divisor of the extent where one is
// near, so that one plan does.
static int64_t eini_fit_even(int64_t extent, int64_t block) {
  int64_t n = eini_fit_slices(extent, block), even = (extent - 1) / n + 1;
  for (int64_t d = block; d > block - block / 4 && block - d < 4096; d--)
    if (extent % d == 0) return d;
  return even > 64 && even < block - 16 ? (even + 15) / 16 * 16 : even > 64 ? block : even;
}

// Halves blocks, each time where memory costs least time, until the nest fits; then lets them grow.
// 0: it does not fit.
static int eini_fit_descend(const eini_fit_job *j, eini_fit_nest *n, int64_t stored,
                            const eini_fit_target *t, eini_fit_guess *g) {
  int64_t upper[EINI_FIT_LOOPS];
  for (int l = 0; l < n->nloop; l++) n->block[l] = 1;
  if (!t->least && eini_fit_sum(stored, eini_fit_inside(j, n)) > t->bytes) return 0;
  if (t->least) eini_fit_measure(j, n, stored, g);
  if (t->least) return 1;
  for (int l = 0; l < n->nloop; l++) upper[l] = n->block[l] = n->cls[l]->extent;
  eini_fit_measure(j, n, stored, g);
  while (g->bytes > t->bytes) {
    int best = -1;
    double price = 0;
    eini_fit_guess next, chosen = *g;
    for (int l = 0; l < n->nloop; l++) {
      int64_t was = n->block[l];
      if (was == 1) continue;
      n->block[l] = was - was / 2;
      eini_fit_measure(j, n, stored, &next);
      n->block[l] = was;
      double gain = (double)(g->bytes - next.bytes), p = next.seconds - g->seconds;
      p = gain > 0 ? p / gain : 1e30 * (1 + p);
      if (best >= 0 && p >= price) continue;
      best = l;
      price = p;
      chosen = next;
    }
    if (best < 0) break;
    upper[best] = n->block[best] - 1;
    n->block[best] -= n->block[best] / 2;
    *g = chosen;
  }
  if (g->bytes > t->bytes) return 0;
  for (int l = 0; l < n->nloop; l++) {
    int64_t lo = n->block[l], hi = eini_max64(upper[l], lo);
    while (lo < hi) {
      n->block[l] = lo + (hi - lo + 1) / 2;
      eini_fit_measure(j, n, stored, g);
      if (g->bytes <= t->bytes) lo = n->block[l];
      else hi = n->block[l] - 1;
    }
    n->block[l] = eini_fit_even(n->cls[l]->extent, lo);
  }
  eini_fit_measure(j, n, stored, g);
  return 1;
}

static void eini_fit_note(const eini_fit_nest *n, const eini_fit_guess *g, eini_fit_choice *c) {
  memset(c, 0, sizeof *c);
  c->from = n->from;
  c->to = n->to;
  c->guess = *g;
  for (int l = 0; l < n->nloop; l++) {
    if (n->block[l] >= n->cls[l]->extent) continue;  // not cut after all
    c->stmt[c->nloop] = n->cls[l]->stmt;
    c->index[c->nloop] = n->cls[l]->index;
    c->extent[c->nloop] = n->cls[l]->extent;
    c->block[c->nloop++] = n->block[l];
  }
}

// Weighs the loops of n: the best so far is *best, if there is one (*fits).
static void eini_fit_weigh(const eini_fit_job *j, eini_fit_nest *n, int64_t stored,
                           const eini_fit_target *t, eini_fit_choice *best, int *fits) {
  eini_fit_guess g;
  if (!eini_fit_agree(n) || !eini_fit_descend(j, n, stored, t, &g)) return;
  if (!*fits || eini_fit_better(t, &g, &best->guess)) eini_fit_note(n, &g, best);
  *fits = 1;
}

// The best loops around statements [from, to): none where that fits, else one class; two or several
// unless one costs next to nothing. *fits: there are some.
static ein_status eini_fit_region(const eini_fit_job *j, const eini_fit_base *b, int from, int to,
                                  const eini_fit_target *t, eini_fit_choice *best, int *fits) {
  eini_fit_class cls[EINI_FIT_CLASSES];
  eini_fit_nest n;
  eini_fit_guess g;
  eini_arena scratch;
  int count = 0;
  memset(&n, 0, sizeof n);
  n.b = b;
  n.from = from;
  n.to = to;
  *fits = 0;
  if (!eini_fit_legal(&n)) return EIN_OK;
  int64_t stored = eini_fit_stored(&n);
  if (stored > t->bytes) return EIN_OK;
  eini_fit_measure(j, &n, stored, &g);
  if (g.bytes <= t->bytes) {
    *fits = 1;
    eini_fit_note(&n, &g, best);
    if (!t->least) return EIN_OK;
  }
  eini_arena_init(&scratch, &j->ctx->al);
  ein_status st = eini_fit_classes(&n, &scratch, cls, &count);
  for (int k = 0; k < count && st == EIN_OK; k++) {
    n.nloop = 1;
    n.cls[0] = &cls[k];
    eini_fit_weigh(j, &n, stored, t, best, fits);
  }
  int more = st == EIN_OK && (t->least || !*fits || best->guess.seconds > 1.05 * g.seconds);
  for (int k = 0; k < count * count && more; k++) {
    n.nloop = 2;
    n.cls[0] = &cls[k / count];
    n.cls[1] = &cls[k % count];
    if (k / count < k % count) eini_fit_weigh(j, &n, stored, t, best, fits);
  }
  n.nloop = count < EINI_FIT_LOOPS ? count : EINI_FIT_LOOPS;
  for (int l = 0; l < n.nloop; l++) n.cls[l] = &cls[l];
  if (more && n.nloop > 2) eini_fit_weigh(j, &n, stored, t, best, fits);
  eini_arena_free(&scratch);
  return st;
}

// Adds up regions: times add, the largest counts for bytes.
static void eini_fit_add(const eini_fit_guess *a, const eini_fit_guess *b, eini_fit_guess *sum) {
  sum->bytes = eini_max64(a->bytes, b->bytes);
  sum->seconds = a->seconds + b->seconds;
  sum->flops = a->flops + b->flops;
  sum->again = a->again + b->again;
}

// The best cut into regions, in `a`. What is stored during a region depends on the region alone, so
// the best way to reach a statement is enough. *count 0: nothing fits.
static ein_status eini_fit_choose(const eini_fit_job *j, const eini_fit_base *b, eini_arena *a,
                                  const eini_fit_target *t, eini_fit_choice **list, int *count,
                                  eini_fit_guess *total) {
  int n = (int)b->g->nstmt, most = n <= 32 ? n : n < 512 ? 1024 / n + 6 : 8;
  eini_arena scratch;
  eini_arena_init(&scratch, &j->ctx->al);
  eini_fit_choice *by = EINI_NEW(&scratch, eini_fit_choice, n + 1), c;
  eini_fit_guess *best = EINI_NEW(&scratch, eini_fit_guess, n + 1), sum;
  char *ok = EINI_NEW(&scratch, char, n + 1);
  ein_status st = by == NULL || best == NULL || ok == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  *count = 0;
  for (int to = 1; to <= n && st == EIN_OK; to++) {
    ok[0] = 1;
    for (int from = to - 1; from >= 0 && to - from <= most && st == EIN_OK; from--) {
      int fits = 0;
      if (!ok[from]) continue;
      st = eini_fit_region(j, b, from, to, t, &c, &fits);
      if (st != EIN_OK || !fits) continue;
      eini_fit_add(&best[from], &c.guess, &sum);
      if (ok[to] && !eini_fit_better(t, &sum, &best[to])) continue;
      ok[to] = 1;
      best[to] = sum;
      by[to] = c;
    }
  }
  if (st == EIN_OK && (ok[n] || n == 0)) {
    for (int k = n; k > 0; k = by[k].from) ++*count;
    *list = EINI_NEW(a, eini_fit_choice, *count);
    if (*list == NULL) st = EIN_ERR_NO_MEMORY;
    else for (int k = n, i = *count; k > 0; k = by[k].from) (*list)[--i] = by[k];
    *total = best[n];
  }
  eini_arena_free(&scratch);
  return st;
}

// ================================================================================================
// >>memory-slice  plans of slices
// Takes regions; gives, for each, views of what it reads and writes outside, and one plan per shape
// of slices (whole blocks, and the shorter last ones). Partial results are merged by small plans.
// ================================================================================================

// A tensor outside of slices as they see it: shifted by step[l] bytes for each index of loop l.
typedef struct eini_fit_port {
  int tensor, sub;              // its number in the base, and in graphs of slices
  int64_t *coef;                // [rank * nloop] coordinates per index
  int64_t step[EINI_FIT_LOOPS];
} eini_fit_port;

// Partial results of statement stmt and where they are merged.
typedef struct eini_fit_part {
  int stmt, tensor, sub;
  ein_dtype type;               // of partial results
  int fold;                     // that merges them
  unsigned folded, absent;      // loops whose slices are merged, and that the statement lacks
  int own;                      // merged in memory of the region's, then stored by `store`
  int64_t *coef;
  int64_t step[EINI_FIT_LOOPS];
  const int64_t *stride;        // of where they are merged
  int64_t bytes, own_bytes, at, own_at;
  ein_plan *store;
} eini_fit_part;

// Plans for slices of one shape, and where their views start when all loops are at 0.
typedef struct eini_fit_slice {
  int64_t size[EINI_FIT_LOOPS];
  ein_plan *plan;               // NULL: the shape does not occur
  int64_t *base;                // per input, output, part: bytes from the tensor's first element
  ein_plan **merge;             // per part
} eini_fit_slice;

typedef struct eini_fit_group {
  eini_fit_choice c;
  int nin, nout, npart;
  int alias;                    // 1: the last input is the output itself
  eini_fit_port *in, *out;
  eini_fit_part *part;
  eini_fit_slice *slice;        // 1 << nloop; bit l: loop l is in its last, shorter block
  int64_t work, at;             // bytes of the largest workspace of its plans, and their place
} eini_fit_group;

// Everything a candidate is made of, in one arena.
typedef struct eini_fit_layout {
  eini_arena arena;
  ein_plan *whole;              // one plan for all, or
  eini_fit_base base;           //   regions
  int nregion;
  eini_fit_group *region;
  int64_t *place;               // per tensor: bytes from the start of the workspace
  int widest_in, widest_out;    // of all regions
  int64_t workspace;
  eini_fit_guess guess;
} eini_fit_layout;

// What the functions below build.
typedef struct eini_fit_maker {
  const eini_fit_job *j;
  eini_fit_layout *f;
  eini_fit_group *r;
  eini_fit_nest n;
  eini_fit_slice *s;
  int *inner;                   // per tensor of the base: its number in the slice's graph
} eini_fit_maker;

static void eini_fit_layout_free(eini_fit_layout *f) {
  ein_plan_destroy(f->whole);
  for (int k = 0; k < f->nregion && f->region != NULL; k++) {
    eini_fit_group *r = &f->region[k];
    for (int v = 0; v < 1 << r->c.nloop && r->slice != NULL; v++) {
      ein_plan_destroy(r->slice[v].plan);
      for (int i = 0; i < r->npart && r->slice[v].merge != NULL; i++) {
        int shared = 0;
        for (int w = 0; w < v; w++)
          shared |= r->slice[w].merge != NULL && r->slice[w].merge[i] == r->slice[v].merge[i];
        if (!shared) ein_plan_destroy(r->slice[v].merge[i]);
      }
    }
    for (int i = 0; i < r->npart && r->part != NULL; i++) ein_plan_destroy(r->part[i].store);
  }
  eini_arena_free(&f->arena);
  f->whole = NULL;
  f->nregion = 0;
  f->region = NULL;
}

// ---- views ----

// Is access m of statement s ever made? Results of empty folds are written, too.
static int eini_fit_touches(const eini_stmt *s, const ein_zmap *m) {
  return !eini_stmt_empty(s, 0, m == &s->out_map ? s->nfree : s->nindex);
}

// How an access of statement u moves with the loops: coef[row * nloop + loop].
static void eini_fit_moves(const eini_fit_nest *n, int u, const ein_zmap *m, int64_t *coef) {
  int still = !eini_fit_touches(&n->b->g->stmt[u], m);  // its coefficients may be any numbers
  for (int r = 0; r < m->rows; r++) {
    for (int l = 0; l < n->nloop; l++) {
      int c = n->cls[l]->col[u - n->from];
      coef[r * n->nloop + l] = c < 0 || still ? 0 : m->coef[(int64_t)r * m->cols + c];
    }
  }
}

static void eini_fit_steps(const eini_fit_nest *n, const int64_t *coef, int rank,
                           const int64_t *stride, ein_dtype dtype, int64_t *step) {
  for (int l = 0; l < n->nloop; l++) {
    step[l] = 0;
    for (int r = 0; r < rank; r++)
      step[l] += coef[r * n->nloop + l] * stride[r] * (int64_t)ein_dtype_size(dtype);
  }
}

// Finds or adds the view of tensor t that moves like access m of statement u. *id is its number.
static ein_status eini_fit_port_of(eini_fit_maker *w, eini_fit_port *list, int *count, int u, int t,
                                   const ein_zmap *m, int *id) {
  const eini_tensor *x = &w->f->base.g->tensor[t];
  int64_t cells = (int64_t)x->rank * w->n.nloop;
  int64_t *coef = EINI_NEW(&w->f->arena, int64_t, cells);
  if (coef == NULL) return EIN_ERR_NO_MEMORY;
  eini_fit_moves(&w->n, u, m, coef);
  for (int k = 0; k < *count; k++) {
    *id = k;
    if (list[k].tensor == t &&
        (cells == 0 || memcmp(list[k].coef, coef, (size_t)cells * sizeof *coef) == 0)) {
      return EIN_OK;
    }
  }
  eini_fit_port *p = &list[*id = (*count)++];
  p->tensor = t;
  p->coef = coef;
  eini_fit_steps(&w->n, coef, x->rank, w->f->base.stride[t], x->dtype, p->step);
  return EIN_OK;
}

// The part that statement u makes; -1: its results are whole.
static int eini_fit_part_of(const eini_fit_group *r, int u) {
  for (int i = 0; i < r->npart; i++)
    if (r->part[i].stmt == u) return i;
  return -1;
}

static ein_status eini_fit_part_add(eini_fit_maker *w, int u, int fold, unsigned folded,
                                    unsigned absent) {
  const eini_stmt *s = &w->f->base.g->stmt[u];
  const eini_tensor *x = &w->f->base.g->tensor[s->out];
  eini_arena *a = &w->f->arena;
  eini_fit_part *p = &w->r->part[w->r->npart++];
  int64_t count = 0;
  p->stmt = u;
  p->tensor = s->out;
  p->type = ein_dtype_compute(s->type);
  p->fold = fold;
  p->folded = folded;
  p->absent = absent;
  p->own = p->type != x->dtype;
  p->stride = w->f->base.stride[s->out];
  p->coef = EINI_NEW(a, int64_t, (int64_t)x->rank * w->n.nloop);
  if (p->coef == NULL) return EIN_ERR_NO_MEMORY;
  if (p->own) {
    EINI_TRY(eini_dense_strides(a, x->rank, x->shape, NULL, &p->stride, &count));
    p->own_bytes = eini_fit_padded(count, p->type);
    if (p->own_bytes < 0) return EIN_ERR_TOO_LARGE;
  }
  eini_fit_moves(&w->n, u, &s->out_map, p->coef);
  eini_fit_steps(&w->n, p->coef, x->rank, p->stride, p->type, p->step);
  return EIN_OK;
}

// What the region reads and writes outside of its slices.
static ein_status eini_fit_ports(eini_fit_maker *w) {
  const eini_fit_nest *n = &w->n;
  eini_fit_group *r = w->r;
  int reads = 0, id, len = n->to - n->from;
  for (int u = n->from; u < n->to; u++) reads += n->b->g->stmt[u].noperand;
  r->in = EINI_NEW(&w->f->arena, eini_fit_port, reads);
  r->out = EINI_NEW(&w->f->arena, eini_fit_port, len);
  r->part = EINI_NEW(&w->f->arena, eini_fit_part, len);
  if (r->in == NULL || r->out == NULL || r->part == NULL) return EIN_ERR_NO_MEMORY;
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    unsigned folded, absent = 0;
    int fold = eini_fit_merge_fold(n, u, &folded);
    for (int l = 0; l < n->nloop; l++)
      if (n->cls[l]->col[u - n->from] < 0 && !(folded >> l & 1)) absent |= 1u << l;
    for (int k = 0; k < s->noperand; k++) {
      if (!eini_fit_made(n, s->operand[k]))
        EINI_TRY(eini_fit_port_of(w, r->in, &r->nin, u, s->operand[k], &s->proj[k], &id));
    }
    if (eini_fit_inner(n, s->out)) continue;
    if (fold != EINI_FOLD_NONE) EINI_TRY(eini_fit_part_add(w, u, fold, folded, absent));
    else
      EINI_TRY(eini_fit_port_of(w, r->out, &r->nout, u, s->out, &s->out_map, &id));
  }
  for (int k = 0; k < r->nin; k++) {  // C that is the output: the last input of its plan
    if (r->in[k].tensor != n->b->plan->alias) continue;
    eini_fit_port last = r->in[r->nin - 1];
    r->in[r->nin - 1] = r->in[k];
    r->in[k] = last;
    r->alias = 1;
    break;
  }
  if (r->nin > w->f->widest_in) w->f->widest_in = r->nin;
  if (r->npart > 0 && w->f->widest_in < 2) w->f->widest_in = 2;  // what a merge reads
  if (r->nout + r->npart > w->f->widest_out) w->f->widest_out = r->nout + r->npart;
  return EIN_OK;
}

// Extents of statement u's indices in the slice.
static ein_status eini_fit_extents(const eini_fit_maker *w, int u, eini_arena *a, int64_t **e) {
  const eini_stmt *s = &w->n.b->g->stmt[u];
  *e = EINI_NEW(a, int64_t, s->nindex);
  if (*e == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) (*e)[i] = s->index[i].extent;
  for (int l = 0; l < w->n.nloop; l++) {
    int c = w->n.cls[l]->col[u - w->n.from];
    if (c >= 0) (*e)[c] = w->s->size[l];
  }
  return EIN_OK;
}

// Widens rows [lo, hi] of a view by what access m reaches in the slice.
static ein_status eini_fit_reach(const eini_fit_maker *w, int u, const ein_zmap *m, eini_arena *a,
                                 int64_t *lo, int64_t *hi) {
  int64_t *e, x, y;
  if (!eini_fit_touches(&w->n.b->g->stmt[u], m)) return EIN_OK;
  EINI_TRY(eini_fit_extents(w, u, a, &e));
  for (int i = 0; i < m->cols; i++) e[i] = eini_max64(e[i], 1);  // folded ones do not matter
  for (int r = 0; r < m->rows; r++) {
    EINI_TRY(eini_zmap_row_range(m->coef + (int64_t)r * m->cols, m->cols, m->offset[r], e, &x, &y));
    lo[r] = eini_min64(lo[r], x);
    hi[r] = eini_max64(hi[r], y);
  }
  return EIN_OK;
}

// The box a view needs in a slice: lo[r] is its first coordinate, shape[r] its extent. Axes that
// do not move are seen whole. kind 0: reads of in[id], 1: writes to out[id], 2: part[id].
static ein_status eini_fit_box(const eini_fit_maker *w, int kind, int id, eini_arena *a,
                               int64_t **low, int64_t **shape) {
  const eini_fit_nest *n = &w->n;
  const eini_fit_group *r = w->r;
  const int64_t *coef = kind == 0 ? r->in[id].coef : kind == 1 ? r->out[id].coef : r->part[id].coef;
  int t = kind == 0 ? r->in[id].tensor : kind == 1 ? r->out[id].tensor : r->part[id].tensor;
  const eini_tensor *x = &n->b->g->tensor[t];
  int64_t *lo = EINI_NEW(a, int64_t, x->rank), *hi = EINI_NEW(a, int64_t, x->rank);
  int64_t *mine = EINI_NEW(a, int64_t, (int64_t)x->rank * n->nloop + 1);
  if (lo == NULL || hi == NULL || mine == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < x->rank; i++) {
    lo[i] = INT64_MAX;
    hi[i] = -1;
  }
  for (int u = n->from; u < n->to; u++) {
    const eini_stmt *s = &n->b->g->stmt[u];
    for (int k = kind == 0 ? 0 : -1; k < (kind == 0 ? s->noperand : 0); k++) {
      const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
      if ((k < 0 ? s->out : s->operand[k]) != t) continue;
      eini_fit_moves(n, u, m, mine);
      if (memcmp(mine, coef, (size_t)x->rank * (size_t)n->nloop * sizeof *coef) == 0)
        EINI_TRY(eini_fit_reach(w, u, m, a, lo, hi));
    }
  }
  for (int i = 0; i < x->rank; i++) {
    int moves = 0;
    for (int l = 0; l < n->nloop; l++) moves |= coef[i * n->nloop + l] != 0;
    if (!moves || hi[i] < 0) lo[i] = 0;
    hi[i] = moves ? hi[i] - lo[i] + 1 : x->shape[i];
  }
  *low = lo;
  *shape = hi;
  return EIN_OK;
}

// ---- the graph of a slice ----

// Adds a tensor of a base to the slice's graph; stride: its layout, or NULL.
static ein_status eini_fit_tensor(eini_fit_maker *w, ein_graph *g, int t, ein_role role,
                                  ein_dtype dtype, const int64_t *shape, const int64_t *stride,
                                  const ein_ztensor **view, int *id) {
  const eini_tensor *x = &w->n.b->g->tensor[t];
  EINI_TRY(eini_graph_add_tensor(g, x->name, (int64_t)strlen(x->name), role, dtype, x->rank, shape,
                                 id));
  if (stride == NULL) return EIN_OK;
  ein_ztensor *v = EINI_NEW(&g->arena, ein_ztensor, 1);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  v->dtype = dtype;
  v->rank = x->rank;
  v->shape = g->tensor[*id].shape;
  v->strides = stride;
  view[*id] = v;
  return EIN_OK;
}

static int64_t eini_fit_shift(int rank, const int64_t *lo, const int64_t *stride, ein_dtype dtype) {
  int64_t sum = 0;
  for (int r = 0; r < rank; r++) sum += lo[r] * stride[r] * (int64_t)ein_dtype_size(dtype);
  return sum;
}

// Inputs, outputs, parts and inner tensors of the slice, in this order. low: where views start.
static ein_status eini_fit_tensors(eini_fit_maker *w, ein_graph *g, const ein_ztensor **view,
                                   int64_t **low) {
  const eini_fit_base *b = w->n.b;
  eini_fit_group *r = w->r;
  int n = r->nin + r->nout + r->npart;
  for (int i = 0; i < n; i++) {
    int kind = i < r->nin ? 0 : i < r->nin + r->nout ? 1 : 2;
    int id = kind == 0 ? i : kind == 1 ? i - r->nin : i - r->nin - r->nout;
    int t = kind == 0 ? r->in[id].tensor : kind == 1 ? r->out[id].tensor : r->part[id].tensor;
    const eini_tensor *x = &b->g->tensor[t];
    const int64_t *stride = kind == 2 ? r->part[id].stride : b->stride[t];
    ein_dtype dtype = kind == 2 ? r->part[id].type : x->dtype;
    int64_t *shape, count = 1;
    EINI_TRY(eini_fit_box(w, kind, id, &g->arena, &low[i], &shape));
    w->s->base[i] = eini_fit_shift(x->rank, low[i], stride, dtype);
    EINI_TRY(eini_fit_tensor(w, g, t, kind == 0 ? EIN_ROLE_INPUT : EIN_ROLE_OUTPUT, dtype, shape,
                             kind == 2 ? NULL : stride, view,
                             kind == 0 ? &r->in[id].sub : kind == 1 ? &r->out[id].sub
                                                                    : &r->part[id].sub));
    if (kind == 1) w->inner[t] = r->out[id].sub;
    for (int k = 0; k < x->rank && kind == 2; k++) count *= shape[k];
    if (kind == 2) r->part[id].bytes = eini_max64(r->part[id].bytes, eini_fit_padded(count, dtype));
  }
  for (int u = w->n.from; u < w->n.to; u++) {
    int t = b->g->stmt[u].out;
    const eini_tensor *x = &b->g->tensor[t];
    if (b->first[t] != u || !eini_fit_inner(&w->n, t)) continue;
    int64_t *shape = EINI_NEW(&g->arena, int64_t, x->rank);
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < x->rank; k++) {
      shape[k] = x->shape[k];
      for (int l = 0; l < w->n.nloop; l++)
        if (w->n.cls[l]->axis[u - w->n.from] == k + 1) shape[k] = w->s->size[l];
    }
    EINI_TRY(eini_fit_tensor(w, g, t, EIN_ROLE_TEMP, x->dtype, shape, NULL, view, &w->inner[t]));
  }
  return EIN_OK;
}

// A statement's expression: sliced indices count from the slice's origin, a param.
static ein_status eini_fit_expr(const eini_fit_maker *w, int u, eini_arena *a, eini_expr *out) {
  const eini_expr *e = &w->n.b->g->stmt[u].expr;
  int *map = EINI_NEW(a, int, e->n);
  if (map == NULL) return EIN_ERR_NO_MEMORY;
  memset(out, 0, sizeof *out);
  for (int64_t i = 0; i < e->n; i++) {
    eini_node v = e->node[i];
    int args[EINI_ARGS_MAX] = {0};
    for (int k = 0; k < eini_node_args(&v); k++) args[k] = map[eini_node_arg(e, &v, k)];
    if (v.op == EINI_OP_CALL) {
      map[i] = eini_expr_call(a, out, v.pos, v.arg[0], v.arg[2], args);
      if (map[i] >= 0) out->node[map[i]].dtype = v.dtype;
    } else {
      map[i] = eini_expr_add(a, out, v.op, v.pos, 0, 0, 0);
      for (int k = 0; k < eini_ops[v.op].args; k++) v.arg[k] = args[k];
      if (map[i] >= 0) out->node[map[i]] = v;
    }
    for (int l = 0; l < w->n.nloop && v.op == EINI_OP_INDEX && map[i] >= 0; l++) {
      if (w->n.cls[l]->col[u - w->n.from] != v.arg[0]) continue;
      int origin = eini_expr_add(a, out, EINI_OP_PARAM, v.pos, (int)w->n.b->g->nparam + l, 0, 0);
      if (origin >= 0) out->node[origin].dtype = EIN_I64;
      map[i] = eini_expr_pair(a, out, EINI_OP_ADD, map[i], origin);
      if (map[i] >= 0) out->node[map[i]].dtype = EIN_I64;
    }
    if (map[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Which view an access to a tensor outside goes through.
static int eini_fit_port_find(const eini_fit_maker *w, int u, int t, const ein_zmap *m,
                              int64_t *mine) {
  eini_fit_moves(&w->n, u, m, mine);
  size_t bytes = (size_t)m->rows * (size_t)w->n.nloop * sizeof *mine;
  for (int k = 0; k < w->r->nin; k++)
    if (w->r->in[k].tensor == t && memcmp(w->r->in[k].coef, mine, bytes) == 0) return k;
  return -1;
}

static ein_status eini_fit_stmt(eini_fit_maker *w, ein_graph *g, int u, int64_t *const *low) {
  const eini_stmt *from = &w->n.b->g->stmt[u];
  eini_arena *a = &g->arena;
  int part = eini_fit_part_of(w->r, u), row;
  int *operand = EINI_NEW(a, int, from->noperand);
  const int64_t **lo = EINI_NEW(a, const int64_t *, from->noperand);
  int64_t *e, bad;
  eini_stmt *s;
  if (operand == NULL || lo == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_fit_extents(w, u, a, &e));
  for (int k = 0; k < from->noperand; k++) {
    int t = from->operand[k];
    int64_t *mine = EINI_NEW(a, int64_t, (int64_t)from->proj[k].rows * w->n.nloop + 1);
    if (mine == NULL) return EIN_ERR_NO_MEMORY;
    int port = eini_fit_made(&w->n, t) ? -1 : eini_fit_port_find(w, u, t, &from->proj[k], mine);
    operand[k] = port >= 0 ? w->r->in[port].sub : w->inner[t];
    if (port >= 0) lo[k] = low[port];
    if (operand[k] < 0) return EIN_ERR_INTERNAL;
  }
  int to = part >= 0 ? w->r->part[part].sub : w->inner[from->out];
  EINI_TRY(eini_graph_add_stmt(g, to, from->nindex, from->noperand, operand, &s));
  s->nfree = from->nfree;
  s->fold = from->fold;
  s->numpy = from->numpy;
  s->type = from->type;
  s->rest = from->rest;
  s->order = from->order;
  s->line = from->line;
  for (int i = 0; i < from->nindex; i++) {
    s->index[i].name = from->index[i].name;
    s->index[i].extent = e[i];
  }
  eini_zmap_fill(&s->out_map, &from->out_map);
  for (int i = 0; i < w->r->nin + w->r->nout + w->r->npart; i++) {
    int sub = i < w->r->nin ? -1 : i < w->r->nin + w->r->nout ? w->r->out[i - w->r->nin].sub
                                          : w->r->part[i - w->r->nin - w->r->nout].sub;
    for (int r = 0; r < s->out_map.rows && sub == to; r++) s->out_map.offset[r] -= low[i][r];
  }
  for (int k = 0; k < from->noperand; k++) {
    eini_zmap_fill(&s->proj[k], &from->proj[k]);
    for (int r = 0; r < s->proj[k].rows && lo[k] != NULL; r++) s->proj[k].offset[r] -= lo[k][r];
    EINI_TRY(eini_map_bounds(&s->proj[k], s->index, g->tensor[operand[k]].shape, a, &row, &bad));
  }
  EINI_TRY(eini_map_bounds(&s->out_map, s->index, g->tensor[to].shape, a, &row, &bad));
  return eini_fit_expr(w, u, a, &s->expr);
}

// ---- plans ----

static ein_status eini_fit_slice_fill(eini_fit_maker *w, ein_plan *p) {
  const ein_graph *from = w->n.b->g;
  ein_graph *g = p->graph;
  static const ein_scalar none = {0, 0, 0};
  int ports = w->r->nin + w->r->nout + w->r->npart, id;
  int64_t most = ports + (int64_t)(w->n.to - w->n.from);
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, most);
  int64_t **low = EINI_NEW(&p->arena, int64_t *, ports);
  if (view == NULL || low == NULL) return EIN_ERR_NO_MEMORY;
  g->ordered = from->ordered;
  EINI_TRY(eini_graph_register(g, from->nfunction, from->function, from->nmonoid, from->monoid));
  for (int64_t k = 0; k < from->nparam; k++) {
    const eini_param *x = &from->param[k];
    EINI_TRY(eini_graph_add_param(g, x->name, (int64_t)strlen(x->name), x->dtype, x->value, &id));
  }
  for (int l = 0; l < w->n.nloop; l++)
    EINI_TRY(eini_graph_add_param(g, "origin", 6, EIN_I64, none, &id));
  EINI_TRY(eini_fit_tensors(w, g, view, low));
  for (int u = w->n.from; u < w->n.to; u++) EINI_TRY(eini_fit_stmt(w, g, u, low));
  if (w->r->alias) p->alias = w->r->in[w->r->nin - 1].sub;
  p->inner = w->n.to - w->n.from < from->nstmt;
  p->slices = w->r->npart > 0 ? 1 : 0;
  for (int l = 0; l < w->n.nloop && w->r->npart > 0; l++)
    p->slices *= (double)eini_fit_slices(w->r->c.extent[l], w->r->c.block[l]);
  for (int k = 0; k < w->r->npart; k++) {
    const double unit = eini_half_ulp(from->tensor[w->r->part[k].tensor].dtype);
    if (unit > p->slice_unit) p->slice_unit = unit;
  }
  return eini_plan_build(p, 0, NULL, view);
}

static ein_status eini_fit_slice_plan(eini_fit_maker *w) {
  ein_plan *p = NULL;
  w->s->base = EINI_NEW(&w->f->arena, int64_t, w->r->nin + w->r->nout + w->r->npart);
  if (w->s->base == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_plan_new(w->j->ctx, &p));
  w->s->plan = p;
  EINI_TRY(eini_fit_slice_fill(w, p));
  w->r->work = eini_max64(w->r->work, (int64_t)p->info.workspace_bytes);
  return EIN_OK;
}

// Adds a statement that visits every element of a tensor, its operands too; the caller gives the
// expression.
static ein_status eini_fit_each(ein_graph *g, int out, int nop, const int *op, eini_stmt **s) {
  int rank = g->tensor[out].rank;
  EINI_TRY(eini_graph_add_stmt(g, out, rank, nop, op, s));
  for (int r = 0; r < rank; r++) {
    (*s)->index[r].name = "";
    (*s)->index[r].extent = g->tensor[out].shape[r];
    (*s)->out_map.coef[(int64_t)r * rank + r] = 1;
    for (int k = 0; k < nop; k++) (*s)->proj[k].coef[(int64_t)r * rank + r] = 1;
  }
  return EIN_OK;
}

// first ? x : fold(old, x), untyped. Operands: old, x; param 0: first.
static int eini_fit_merge_expr(eini_arena *a, eini_expr *e, int fold) {
  int old = eini_expr_add(a, e, EINI_OP_OPERAND, -1, 0, 0, 0);
  int x = eini_expr_add(a, e, EINI_OP_OPERAND, -1, 1, 0, 0);
  int first = eini_expr_add(a, e, EINI_OP_PARAM, -1, 0, 0, 0), both;
  if (old < 0 || x < 0 || first < 0) return -1;
  if (fold == EINI_LOGSUMEXP) {  // equal infinities have no difference
    int hi = eini_expr_pair(a, e, EINI_OP_MAX, old, x);
    int lo = eini_expr_pair(a, e, EINI_OP_MIN, old, x);
    int gap = eini_expr_pair(a, e, EINI_OP_SUB, lo, hi);
    int same = eini_expr_pair(a, e, EINI_OP_EQ, old, x);
    int zero = eini_expr_int(a, e, -1, 0);
    if (gap < 0 || same < 0 || zero < 0) return -1;
    int d = eini_expr_add(a, e, EINI_OP_WHERE, -1, same, zero, gap);
    int rise = d < 0 ? -1 : eini_expr_add(a, e, EINI_OP_EXP, -1, d, 0, 0);
    rise = eini_expr_pair(a, e, EINI_OP_ADD, rise, eini_expr_int(a, e, -1, 1));
    rise = rise < 0 ? -1 : eini_expr_add(a, e, EINI_OP_LOG, -1, rise, 0, 0);
    both = eini_expr_pair(a, e, EINI_OP_ADD, hi, rise);
  } else {
    int op = fold == EINI_SUM ? EINI_OP_ADD : fold == EINI_PROD ? EINI_OP_MUL
             : fold == EINI_MAX ? EINI_OP_MAX : fold == EINI_MIN ? EINI_OP_MIN
             : fold == EINI_ANY ? EINI_OP_OR : EINI_OP_AND;
    both = eini_expr_pair(a, e, op, old, x);
  }
  return both < 0 ? -1 : eini_expr_add(a, e, EINI_OP_WHERE, -1, first, x, both);
}

// A plan of one element-wise statement from `nop` tensors of `type` to one of `to`, all of a shape.
// The first operand and the output have layout `stride`, the others none.
static ein_status eini_fit_each_plan(eini_fit_maker *w, int rank, const int64_t *shape, int fold,
                                     ein_dtype type, ein_dtype to, const int64_t *stride,
                                     ein_plan **plan) {
  static const ein_scalar none = {0, 0, 0};
  const ein_ztensor *view[4] = {NULL, NULL, NULL, NULL};
  ein_ztensor v;
  int op[2] = {0, 0}, out, id, nop = fold == EINI_FOLD_NONE ? 1 : 2;
  eini_stmt *s;
  EINI_TRY(eini_plan_new(w->j->ctx, plan));
  ein_graph *g = (*plan)->graph;
  memset(&v, 0, sizeof v);
  v.rank = rank;
  v.shape = shape;
  v.strides = stride;
  if (nop == 2) EINI_TRY(eini_graph_add_param(g, "first", 5, EIN_BOOL, none, &id));
  for (int k = 0; k < nop; k++)
    EINI_TRY(eini_graph_add_tensor(g, "x", 1, EIN_ROLE_INPUT, type, rank, shape, &op[k]));
  EINI_TRY(eini_graph_add_tensor(g, "y", 1, EIN_ROLE_OUTPUT, to, rank, shape, &out));
  EINI_TRY(eini_fit_each(g, out, nop, op, &s));
  id = nop == 2 ? eini_fit_merge_expr(&g->arena, &s->expr, fold)
                : eini_expr_add(&g->arena, &s->expr, EINI_OP_OPERAND, -1, 0, 0, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_stmt_finish(g, s, NULL));
  if (nop == 2) view[op[0]] = &v;
  view[out] = &v;
  EINI_TRY(eini_plan_build(*plan, 0, NULL, view));
  w->r->work = eini_max64(w->r->work, (int64_t)(*plan)->info.workspace_bytes);
  return EIN_OK;
}

// Plans that merge the parts of slice variant v; those of one shape are shared.
static ein_status eini_fit_merges(eini_fit_maker *w, int v) {
  eini_fit_group *r = w->r;
  eini_fit_slice *s = &r->slice[v];
  s->merge = EINI_NEW(&w->f->arena, ein_plan *, r->npart);
  if (s->merge == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < r->npart; i++) {
    eini_fit_part *p = &r->part[i];
    const eini_tensor *x = &s->plan->graph->tensor[p->sub];
    for (int o = 0; o < v && s->merge[i] == NULL; o++) {
      if (r->slice[o].plan == NULL) continue;
      const eini_tensor *y = &r->slice[o].plan->graph->tensor[p->sub];
      size_t bytes = (size_t)x->rank * sizeof *x->shape;
      if (bytes == 0 || memcmp(x->shape, y->shape, bytes) == 0) s->merge[i] = r->slice[o].merge[i];
    }
    int fold = p->fold;
    if (p->type == EIN_BOOL && fold == EINI_SUM) fold = EINI_ANY;  // of NumPy strings
    if (p->type == EIN_BOOL && fold == EINI_PROD) fold = EINI_ALL;
    if (s->merge[i] == NULL) {
      EINI_TRY(eini_fit_each_plan(w, x->rank, x->shape, fold, p->type, p->type, p->stride,
                                  &s->merge[i]));
    }
    if (p->own && p->store == NULL) {
      const eini_tensor *y = &w->n.b->g->tensor[p->tensor];
      EINI_TRY(eini_fit_each_plan(w, y->rank, y->shape, EINI_FOLD_NONE, p->type, y->dtype,
                                  w->n.b->stride[p->tensor], &p->store));
    }
  }
  return EIN_OK;
}

static ein_status eini_fit_group_make(eini_fit_maker *w, const eini_fit_choice *c) {
  eini_arena *a = &w->f->arena;
  eini_fit_group *r = w->r;
  eini_fit_class *cls = EINI_NEW(a, eini_fit_class, c->nloop);
  if (cls == NULL) return EIN_ERR_NO_MEMORY;
  r->c = *c;
  r->slice = EINI_NEW(a, eini_fit_slice, 1 << c->nloop);
  if (r->slice == NULL) return EIN_ERR_NO_MEMORY;
  memset(&w->n, 0, sizeof w->n);
  w->n.b = &w->f->base;
  w->n.from = c->from;
  w->n.to = c->to;
  w->n.nloop = c->nloop;
  for (int l = 0; l < c->nloop; l++) {
    EINI_TRY(eini_fit_class_new(&w->n, a, &cls[l]));
    if (!eini_fit_class_of(&w->n, c->stmt[l], c->index[l], &cls[l])) return EIN_ERR_INTERNAL;
    w->n.cls[l] = &cls[l];
    w->n.block[l] = c->block[l];
  }
  EINI_TRY(eini_fit_ports(w));
  for (int v = 0; v < 1 << c->nloop; v++) {
    int there = 1;
    w->s = &r->slice[v];
    for (int l = 0; l < c->nloop; l++) {
      int64_t rest = c->extent[l] % c->block[l];
      w->s->size[l] = v >> l & 1 ? rest : c->block[l];
      there = there && w->s->size[l] > 0;
    }
    if (!there) continue;
    EINI_TRY(eini_fit_slice_plan(w));
    EINI_TRY(eini_fit_merges(w, v));
  }
  return EIN_OK;
}

// ---- the workspace ----

// Something that needs a place while regions [from, to] run.
typedef struct eini_fit_item {
  int from, to;
  int64_t bytes, *at;
} eini_fit_item;

// Places items, which come in the order of `from`, each at the lowest address that is free while it
// is alive. alive: [n], those placed that are, by address. *top: bytes in all.
static ein_status eini_fit_place(eini_fit_item *item, int n, int64_t head, int *alive,
                                 int64_t *top) {
  int live = 0;
  *top = head;
  for (int i = 0; i < n; i++) {
    int kept = 0, where = 0;
    int64_t at = head, end;
    for (int k = 0; k < live; k++)
      if (item[alive[k]].to >= item[i].from) alive[kept++] = alive[k];
    live = kept;
    for (; where < live; where++) {
      const eini_fit_item *o = &item[alive[where]];
      if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
      if (end <= *o->at) break;
      at = eini_max64(at, *o->at + o->bytes);
    }
    if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
    *item[i].at = at;
    *top = eini_max64(*top, end);
    memmove(alive + where + 1, alive + where, (size_t)(live - where) * sizeof *alive);
    alive[where] = i;
    live++;
  }
  return EIN_OK;
}

static eini_fit_item eini_fit_item_of(int from, int to, int64_t bytes, int64_t *at) {
  eini_fit_item x;
  x.from = from;
  x.to = to;
  x.bytes = (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  x.at = at;
  return x;
}

// Bytes of the tables a run needs: addresses of tensors, inputs and outputs of a slice, params.
static int64_t eini_fit_head(const eini_fit_layout *f) {
  int64_t pointers = f->base.g->ntensor + f->widest_in + f->widest_out;
  int64_t bytes = pointers * (int64_t)sizeof(char *) +
                  (f->base.g->nparam + EINI_FIT_LOOPS) * (int64_t)sizeof(ein_scalar);
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

static ein_status eini_fit_workspace_plan(eini_fit_layout *f) {
  const eini_fit_base *b = &f->base;
  eini_arena scratch;
  int64_t room = b->g->ntensor + f->nregion + 2 * b->g->nstmt;
  int n = 0;
  eini_arena_init(&scratch, &f->arena.al);
  eini_fit_item *item = EINI_NEW(&scratch, eini_fit_item, room);
  int *region = EINI_NEW(&scratch, int, b->g->nstmt), *alive = EINI_NEW(&scratch, int, room);
  ein_status st = item == NULL || region == NULL || alive == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++)
    for (int u = f->region[k].c.from; u < f->region[k].c.to; u++) region[u] = k;
  for (int k = 0; k < f->nregion && st == EIN_OK; k++) {
    eini_fit_group *r = &f->region[k];
    for (int u = r->c.from; u < r->c.to; u++) {  // stored, and made first in this region
      int t = b->g->stmt[u].out;
      if (b->g->tensor[t].role != EIN_ROLE_TEMP || b->first[t] != u) continue;
      int last = region[b->read[t] > b->last[t] ? b->read[t] : b->last[t]];
      if (last > k || b->read[t] < 0)
        item[n++] = eini_fit_item_of(k, last, b->bytes[t], &f->place[t]);
    }
    for (int i = 0; i < r->npart; i++) {
      eini_fit_part *p = &r->part[i];
      item[n++] = eini_fit_item_of(k, k, p->bytes, &p->at);
      if (p->own) item[n++] = eini_fit_item_of(k, k, p->own_bytes, &p->own_at);
    }
    item[n++] = eini_fit_item_of(k, k, r->work, &r->at);
  }
  if (st == EIN_OK) st = eini_fit_place(item, n, eini_fit_head(f), alive, &f->workspace);
  f->workspace += EINI_ALIGN;
  eini_arena_free(&scratch);
  return st;
}

// Makes all plans of a cut into regions. The layout owns them, also on failure.
static ein_status eini_fit_layout_make(const eini_fit_job *j, const eini_fit_base *b,
                                       const eini_fit_choice *list, int n, eini_fit_layout *f) {
  eini_fit_maker w;
  memset(&w, 0, sizeof w);
  w.j = j;
  w.f = f;
  f->base = *b;
  f->region = EINI_NEW(&f->arena, eini_fit_group, n);
  f->place = EINI_NEW(&f->arena, int64_t, b->g->ntensor);
  w.inner = EINI_NEW(&f->arena, int, b->g->ntensor);
  if (f->region == NULL || f->place == NULL || w.inner == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < b->g->ntensor; t++) w.inner[t] = -1;
  f->nregion = n;
  for (int k = 0; k < n; k++) {
    w.r = &f->region[k];
    EINI_TRY(eini_fit_group_make(&w, &list[k]));
  }
  return eini_fit_workspace_plan(f);
}

// ================================================================================================
// >>memory-search  candidates, budgets, the least budget
// The candidates do not depend on the budget: for each set of providers, contraction path, order of
// statements and target of predicted bytes there is one. A candidate is planned and counted before
// it is taken.
// ================================================================================================

#define EINI_FIT_GOALS 4        // paths that are tried
#define EINI_FIT_OPTIMISM 8     // predictions are at most so many times what is counted
#define EINI_FIT_FLOOR 4096     // bytes below which targets make no difference: plans take more
#define EINI_FIT_PATIENCE 1e6   // predicted seconds of what counts as impossible
#define EINI_FIT_PACKING ((int64_t)4 << 20)  // bytes a thread's kernel packs into, at most or so

struct ein_fit {
  eini_cap cap;
  eini_fit_layout f;
  ein_fit_info info;
};

// One candidate. set: 0 all providers, 1 none and one thread, 2 + i provider i alone. target -1:
// the plan that ein_plan_graph makes; else counted from the largest.
typedef struct eini_fit_name {
  int set, goal, order, target;
} eini_fit_name;

typedef struct eini_fit_search {
  eini_fit_job j;
  ein_fit *fit;
  ein_options option[EINI_FIT_GOALS];
  int nset, ngoal, split;       // split: statements of the last base were
  int nkernels;                 // of the ctx, with all providers; and the others
  const ein_kernels **kernels;
  ein_executor executor;
  int found;
  eini_fit_name now, best;
  double seconds;               // of the best
  int64_t least, planning;      // bytes that the leanest candidate needs, and without a workspace
} eini_fit_search;

// Plans from now on with a set of providers.
static void eini_fit_use(eini_fit_search *s, int set) {
  ein_ctx *ctx = s->j.ctx;
  s->now.set = set;
  ctx->executor = s->executor;
  ctx->kernels = s->kernels + (set < 2 ? 0 : set - 2);
  ctx->nkernels = set == 0 ? s->nkernels : set > 1;
  if (set == 1) memset(&ctx->executor, 0, sizeof ctx->executor);
  if (set == 1) ctx->executor.width = 1;
  const ein_rates *rates = eini_rates_of(ctx);
  double width = ctx->executor.width;
  s->j.flops = rates != NULL && rates->flops_f32 > 0 ? rates->flops_f32 * width : 4e9 * width;
  s->j.bandwidth = rates != NULL ? rates->copy_bw : 8e9;
  s->j.packing = ctx->executor.width * EINI_FIT_PACKING;
}

// What is needed when a layout was made, the most while it was made included.
static int64_t eini_fit_need(const eini_fit_search *s, const eini_fit_layout *f, size_t before) {
  const eini_cap *c = s->j.cap;
  int64_t need = (int64_t)(c->peak > before ? c->peak : before);
  return eini_max64(need, (int64_t)c->live + f->workspace);
}

// Weighs what the candidate at hand needs. What is sought below the least (lean) needs less from
// now on.
static void eini_fit_leaner(eini_fit_search *s, int64_t need, const eini_fit_layout *f, int lean) {
  if (s->least != 0 && need >= s->least) return;
  s->least = need;
  s->planning = (int64_t)s->j.cap->live;
  if (need > s->planning + f->workspace) s->planning = need;
  if (lean) s->j.cap->limit = (size_t)need - 1;
}

static ein_status eini_fit_whole(eini_fit_search *s, int goal, eini_fit_layout *f) {
  const ein_fit_desc *d = s->j.desc;
  ein_status st;
  eini_arena_init(&f->arena, &s->j.ctx->al);
  if (d->graph != NULL) {
    st = ein_plan_graph(s->j.ctx, d->graph, d->nlayout, d->layout, &s->option[goal], &f->whole);
  } else {
    ein_einsum_desc e = *d->einsum;
    e.options = s->option[goal];
    st = ein_plan_create(s->j.ctx, &e, &f->whole);
  }
  if (st == EIN_OK) f->workspace = (int64_t)f->whole->info.workspace_bytes;
  return st;
}

// *same: the order asked for is the one the statements have.
static ein_status eini_fit_open(const eini_fit_search *s, int goal, int order, eini_fit_base *b,
                                int *same) {
  eini_arena scratch;
  int moved = 0;
  *same = 0;
  EINI_TRY(eini_fit_base_open(&s->j, &s->option[goal], b));
  if (order == 0) return EIN_OK;
  eini_arena_init(&scratch, &s->j.ctx->al);
  ein_status st = eini_fit_reorder(b, &scratch, &moved);
  eini_arena_free(&scratch);
  *same = !moved;
  if (st != EIN_OK) eini_fit_base_close(b);
  return st;
}

// The targets of a base, from what everything in one region needs down to the least, by a seventh
// each. *n: how many.
static ein_status eini_fit_targets(const eini_fit_job *j, const eini_fit_base *b, int64_t *most,
                                   int64_t *least, int *n) {
  eini_fit_choice *list = NULL;
  eini_fit_target t = {EINI_FIT_MOST, 0};
  eini_fit_guess g;
  eini_arena a;
  int count;
  memset(&g, 0, sizeof g);
  eini_arena_init(&a, &j->ctx->al);
  ein_status st = eini_fit_choose(j, b, &a, &t, &list, &count, &g);
  *most = *least = g.bytes;
  t.least = 1;
  if (st == EIN_OK) st = eini_fit_choose(j, b, &a, &t, &list, &count, &g);
  eini_arena_free(&a);
  if (st != EIN_OK) return st;
  *least = g.bytes < *most ? g.bytes : *most;
  *n = 1;
  double end = (double)eini_max64(*least, EINI_FIT_FLOOR);
  for (double x = (double)*most; x > end; x *= 0.85) ++*n;
  return EIN_OK;
}

static int64_t eini_fit_target_at(int64_t most, int64_t least, int n, int k) {
  double x = (double)most;
  if (k == n - 1) return least;
  for (int i = 0; i < k; i++) x *= 0.85;
  return eini_max64((int64_t)x, least);
}

// Makes the layout of a target. bound: give up when it takes as long (0: none). *made: it was.
// last: the regions of the layout before, as a hash; the same ones are not made again.
static ein_status eini_fit_make(eini_fit_search *s, const eini_fit_base *b, int64_t target,
                                double bound, uint64_t *last, eini_fit_layout *f, int *made) {
  eini_fit_choice *list = NULL;
  eini_fit_target t = {target, 0};
  int count = 0;
  *made = 0;
  eini_arena_init(&f->arena, &s->j.ctx->al);
  EINI_TRY(eini_fit_choose(&s->j, b, &f->arena, &t, &list, &count, &f->guess));
  if (count == 0 && b->g->nstmt > 0) return EIN_OK;
  if (bound > 0 && f->guess.seconds >= bound) return EIN_OK;
  uint64_t same = *last;
  *last = eini_hash(list, (size_t)count * sizeof *list, 1);
  if (*last == same) return EIN_OK;
  EINI_TRY(eini_fit_layout_make(&s->j, b, list, count, f));
  *made = 1;
  return EIN_OK;
}

// Tries the targets of one base under the cap's limit. lean: all of them, for `least`; else down to
// the first that fits.
static ein_status eini_fit_try(eini_fit_search *s, int lean) {
  eini_cap *c = s->j.cap;
  eini_fit_base b;
  int64_t most = 0, least = 0;
  uint64_t last = 0;
  int n = 0, same = 0;
  c->peak = c->live;
  EINI_TRY(eini_fit_open(s, s->now.goal, s->now.order, &b, &same));
  s->split = b.split;
  ein_status st = same ? EIN_OK : eini_fit_targets(&s->j, &b, &most, &least, &n);
  size_t before = c->peak;
  for (int k = 0; k < n && st == EIN_OK; k++) {
    int64_t target = eini_fit_target_at(most, least, n, k), need = 0;
    int64_t firm = (target - s->j.packing) / EINI_FIT_OPTIMISM;
    eini_fit_layout f;
    int made = 0;
    if (firm > 0 && (uint64_t)firm > c->limit) continue;
    memset(&f, 0, sizeof f);
    c->peak = c->live;
    st = eini_fit_make(s, &b, target, lean || !s->found ? 0 : s->seconds, &last, &f, &made);
    if (made) need = eini_fit_need(s, &f, before);
    int good = made && firm <= need && f.guess.seconds <= EINI_FIT_PATIENCE;
    if (good) eini_fit_leaner(s, need, &f, lean);
    eini_fit_layout_free(&f);
    if (eini_cap_hit(c, st)) st = EIN_OK;
    if (!good || lean || (uint64_t)need > c->limit) continue;
    s->found = 1;
    s->seconds = f.guess.seconds;
    s->best = s->now;
    s->best.target = k;
    break;
  }
  eini_fit_base_close(&b);
  return st;
}

// Tries the plan that the library makes without this header.
static ein_status eini_fit_try_whole(eini_fit_search *s, int lean) {
  eini_cap *c = s->j.cap;
  eini_fit_layout f;
  memset(&f, 0, sizeof f);
  c->peak = c->live;
  ein_status st = eini_fit_whole(s, 0, &f);
  if (st == EIN_OK) {
    int64_t need = eini_fit_need(s, &f, 0);
    s->found = !lean && (uint64_t)need <= c->limit;
    eini_fit_leaner(s, need, &f, lean);
    s->best = s->now;
    s->best.goal = s->best.order = 0;
    s->best.target = -1;
  }
  eini_fit_layout_free(&f);
  return eini_cap_hit(c, st) ? EIN_OK : st;
}

// All candidates under the cap's limit; the best that fits of the first set of providers that has
// one, or with lean what the leanest of all needs.
static ein_status eini_fit_look(eini_fit_search *s, int lean) {
  s->found = 0;
  s->least = 0;
  for (int set = 0; set < s->nset && !s->found; set++) {
    eini_fit_use(s, set);
    s->split = 1;
    EINI_TRY(eini_fit_try_whole(s, lean));
    if (s->found) return EIN_OK;
    for (int goal = 0; goal < s->ngoal && (goal == 0 || s->split); goal++) {
      for (int order = 0; order < 2; order++) {
        s->now.goal = goal;
        s->now.order = order;
        ein_status st = eini_fit_try(s, lean);
        if (st != EIN_OK && !eini_cap_hit(s->j.cap, st)) return st;
      }
    }
  }
  return EIN_OK;
}

// Makes the candidate that was found, for good.
static ein_status eini_fit_take(eini_fit_search *s) {
  eini_fit_layout *f = &s->fit->f;
  int64_t most, least;
  uint64_t last = 0;
  int n, same, made = 0;
  eini_fit_use(s, s->best.set);
  if (s->best.target < 0) return eini_fit_whole(s, s->best.goal, f);
  EINI_TRY(eini_fit_open(s, s->best.goal, s->best.order, &f->base, &same));
  eini_fit_base b = f->base;
  EINI_TRY(eini_fit_targets(&s->j, &b, &most, &least, &n));
  EINI_TRY(eini_fit_make(s, &b, eini_fit_target_at(most, least, n, s->best.target), 0, &last, f,
                         &made));
  return made ? EIN_OK : EIN_ERR_INTERNAL;
}

// Nothing fits: says what would.
static ein_status eini_fit_fail(eini_fit_search *s) {
  const ein_fit_desc *d = s->j.desc;
  eini_cap *c = s->j.cap;
  c->limit = SIZE_MAX;
  EINI_TRY(eini_fit_look(s, 1));
  if (s->least == 0) {  // not for want of memory
    eini_fit_layout f;
    memset(&f, 0, sizeof f);
    eini_fit_use(s, 0);
    ein_status st = eini_fit_whole(s, 0, &f);
    eini_fit_layout_free(&f);
    return st == EIN_OK ? EIN_ERR_INTERNAL : st;
  }
  eini_begin_call(s->j.ctx, NULL);
  if (d->least != NULL) *d->least = (size_t)s->least + d->reserved;
  return eini_fail(eini_diag_of(s->j.ctx), EIN_ERR_TOO_LARGE, -1, 0, NULL,
                   "a memory budget of %llu bytes is too small: with %llu for planning, the least "
                   "that works is %llu", (unsigned long long)d->memory,
                   (unsigned long long)s->planning,
                   (unsigned long long)s->least + (unsigned long long)d->reserved);
}

// Searches in s->fit, whose cap is set up.
static ein_status eini_fit_search_run(eini_fit_search *s) {
  const ein_fit_desc *d = s->j.desc;
  s->nkernels = s->j.ctx->nkernels;
  s->kernels = s->j.ctx->kernels;
  s->executor = s->j.ctx->executor;
  s->nset = s->nkernels > 1 ? 2 + s->nkernels : s->nkernels > 0 || s->executor.width > 1 ? 2 : 1;
  if (d->graph == NULL) s->option[0] = d->einsum->options;
  else if (d->options != NULL) s->option[0] = *d->options;
  s->option[0].may_overlap = 0;
  s->option[1] = s->option[2] = s->option[3] = s->option[0];
  s->option[1].goal = s->option[2].goal = EIN_GOAL_SIZE;
  s->option[2].path = "greedy";  // a search that takes little memory itself
  s->option[3].path = "none";
  const char *path = s->option[0].path;
  s->ngoal = path == NULL || strcmp(path, "auto") == 0 ? EINI_FIT_GOALS : 1;
  // Other providers, and other paths, add in another order.
  if (s->option[0].deterministic || (d->graph != NULL && d->graph->ordered)) s->nset = s->ngoal = 1;
  EINI_TRY(eini_order_check(s->j.ctx, &s->option[0]));
  EINI_TRY(eini_fit_look(s, 0));
  if (!s->found) return eini_fit_fail(s);
  s->j.cap->peak = s->j.cap->live;
  return eini_fit_take(s);
}

// ================================================================================================
// >>memory-run  running the slices
// Takes a fit and the bindings of one call. Everything mutable is in the workspace: tables, tensors
// between regions, partial results, workspaces of plans.
// ================================================================================================

typedef struct eini_fit_state {
  const eini_fit_layout *f;
  const ein_run *run;
  char *mem, **home;            // home: address of element 0 per tensor of the base
  const void **in;
  void **out;
  ein_scalar *param;
  int64_t at[EINI_FIT_LOOPS];   // first index of the slice
} eini_fit_state;

// Addresses of tensors; nothing is bound that the plans of slices do not check.
static ein_status eini_fit_bind(eini_fit_state *x) {
  const eini_fit_layout *f = x->f;
  const eini_fit_base *b = &f->base;
  int in = 0, out = 0;
  for (int64_t t = 0; t < b->g->ntensor; t++) {
    union { const void *c; char *v; } u;  // inputs share the table; they are only read
    ein_role role = b->g->tensor[t].role;
    if ((int)t == b->plan->alias) continue;
    if (role == EIN_ROLE_TEMP) u.v = x->mem + f->place[t];
    else if (role == EIN_ROLE_INPUT) u.c = x->run->in[in];
    else u.c = x->run->out[out];
    x->home[t] = u.v;
    if (u.v == NULL && b->port[t].lo != b->port[t].hi) {
      return eini_run_error(x->run, EIN_ERR_ARGUMENT,
                            role == EIN_ROLE_INPUT ? "no data for input" : "no data for output",
                            role == EIN_ROLE_INPUT ? in : out, b->g->tensor[t].name);
    }
    in += role == EIN_ROLE_INPUT;
    out += role == EIN_ROLE_OUTPUT;
  }
  for (int64_t t = 0; t < b->g->ntensor; t++) {  // outputs share no element with anything
    if (b->g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    for (int64_t i = 0; i < b->g->ntensor; i++) {
      if (i == t || (int)i == b->plan->alias || b->g->tensor[i].role == EIN_ROLE_TEMP) continue;
      if (eini_ports_overlap(&b->port[t], x->home[t], &b->port[i], x->home[i])) {
        return eini_run_error(x->run, EIN_ERR_OVERLAP, "an output overlaps tensor", (int)i,
                              b->g->tensor[i].name);
      }
    }
  }
  return EIN_OK;
}

static char *eini_fit_at(const eini_fit_state *x, char *home, int64_t base, const int64_t *step,
                         int nloop) {
  if (home == NULL) return NULL;
  for (int l = 0; l < nloop; l++) base += x->at[l] * step[l];
  return home + base;
}

// Runs one of the plans with what stands in x->in, x->out and x->param.
static ein_status eini_fit_call(const eini_fit_state *x, const eini_fit_group *r,
                                const ein_plan *plan) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = x->in;
  run.out = x->out;
  run.param = x->param;
  run.workspace = x->mem + r->at;
  run.workspace_bytes = (size_t)r->work;
  run.error = x->run->error;
  run.error_bytes = x->run->error_bytes;
  return ein_plan_execute(plan, &run);
}

// Merges partial results of the slice at hand.
static ein_status eini_fit_merge(const eini_fit_state *x, const eini_fit_group *r,
                                 const eini_fit_slice *s) {
  for (int i = 0; i < r->npart; i++) {
    const eini_fit_part *p = &r->part[i];
    int again = 0, first = 1;
    for (int l = 0; l < r->c.nloop; l++) {
      if (x->at[l] == 0) continue;
      again = again || (p->absent >> l & 1);
      first = first && !(p->folded >> l & 1);
    }
    if (again) continue;  // these results were merged before
    char *home = p->own ? x->mem + p->own_at : x->home[p->tensor];
    x->in[0] = x->out[0] = eini_fit_at(x, home, s->base[r->nin + r->nout + i], p->step, r->c.nloop);
    x->in[1] = x->mem + p->at;
    memset(x->param, 0, sizeof *x->param);
    x->param[0].set = 1;
    x->param[0].re = first;
    EINI_TRY(eini_fit_call(x, r, s->merge[i]));
  }
  return EIN_OK;
}

static ein_status eini_fit_slice_run(const eini_fit_state *x, const eini_fit_group *r,
                                     const eini_fit_slice *s) {
  const ein_graph *g = x->f->base.g;
  int nloop = r->c.nloop;
  for (int i = 0; i < r->nin - r->alias; i++) {
    x->in[i] = eini_fit_at(x, x->home[r->in[i].tensor], s->base[i], r->in[i].step, nloop);
  }
  for (int i = 0; i < r->nout; i++) {
    x->out[i] = eini_fit_at(x, x->home[r->out[i].tensor], s->base[r->nin + i], r->out[i].step,
                            nloop);
  }
  for (int i = 0; i < r->npart; i++) x->out[r->nout + i] = x->mem + r->part[i].at;
  for (int64_t k = 0; k < g->nparam + nloop; k++) {
    memset(&x->param[k], 0, sizeof *x->param);
    if (k >= g->nparam) {
      x->param[k].set = 1;
      x->param[k].re = (double)x->at[k - g->nparam];
    } else if (x->run->param != NULL) {
      x->param[k] = x->run->param[k];
    }
  }
  EINI_TRY(eini_fit_call(x, r, s->plan));
  return eini_fit_merge(x, r, s);
}

static ein_status eini_fit_region_run(eini_fit_state *x, const eini_fit_group *r) {
  for (int l = 0; l < EINI_FIT_LOOPS; l++) x->at[l] = 0;
  for (int done = 0; !done;) {
    int v = 0;
    for (int l = 0; l < r->c.nloop; l++)
      v |= (x->at[l] > r->c.extent[l] - r->c.block[l]) << l;
    EINI_TRY(eini_fit_slice_run(x, r, &r->slice[v]));
    done = 1;
    for (int l = r->c.nloop - 1; l >= 0 && done; l--) {
      done = x->at[l] >= r->c.extent[l] - r->c.block[l];
      x->at[l] = done ? 0 : x->at[l] + r->c.block[l];
    }
  }
  for (int i = 0; i < r->npart; i++) {
    const eini_fit_part *p = &r->part[i];
    if (!p->own) continue;
    x->in[0] = x->mem + p->own_at;
    x->out[0] = x->home[p->tensor];
    EINI_TRY(eini_fit_call(x, r, p->store));
  }
  return EIN_OK;
}

static ein_status eini_fit_run(const eini_fit_layout *f, const ein_run *run, char *mem) {
  eini_fit_state x;
  memset(&x, 0, sizeof x);
  x.f = f;
  x.run = run;
  x.mem = mem;
  size_t at = 0;
  x.param = (ein_scalar *)(void *)mem;
  at += (size_t)(f->base.g->nparam + EINI_FIT_LOOPS) * sizeof(ein_scalar);
  x.home = (char **)(void *)(mem + at);
  at += (size_t)f->base.g->ntensor * sizeof(char *);
  x.in = (const void **)(void *)(mem + at);
  at += (size_t)f->widest_in * sizeof(char *);
  x.out = (void **)(void *)(mem + at);
  EINI_TRY(eini_fit_bind(&x));
  for (int k = 0; k < f->nregion; k++) EINI_TRY(eini_fit_region_run(&x, &f->region[k]));
  return EIN_OK;
}

// ================================================================================================
// >>memory-print  text and JSON
// Takes a fit; writes into a caller's buffer as snprintf does.
// ================================================================================================

// A text of the library's own, appended to t.
static void eini_fit_append(eini_text *t, const ein_plan *p,
                            size_t (*fn)(const ein_plan *, char *, size_t)) {
  size_t room = t->at < t->size ? t->size - t->at : 0;
  t->at += fn(p, room > 0 ? t->buf + t->at : NULL, room);
}

static int64_t eini_fit_slice_count(const eini_fit_choice *c) {
  int64_t n = 1;
  for (int l = 0; l < c->nloop; l++) n *= eini_fit_slices(c->extent[l], c->block[l]);
  return n;
}

static const char *eini_fit_loop_name(const eini_fit_layout *f, const eini_fit_choice *c, int l) {
  return f->base.g->stmt[c->stmt[l]].index[c->index[l]].name;
}

EIN_API size_t ein_fit_explain(const ein_fit *fit, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (fit == NULL) return 0;
  const eini_fit_layout *f = &fit->f;
  eini_say(&t, "memory: at most %llu bytes, plan %llu, workspace %llu\n",
           (unsigned long long)fit->info.peak_bytes, (unsigned long long)fit->info.plan_bytes,
           (unsigned long long)fit->info.workspace_bytes);
  if (f->whole != NULL) {
    eini_fit_append(&t, f->whole, ein_plan_explain);
    return t.at;
  }
  for (int k = 0; k < f->nregion; k++) {
    const eini_fit_choice *c = &f->region[k].c;
    eini_say(&t, "region %d:", k + 1);
    for (int u = c->from; u < c->to; u++) {
      eini_say(&t, "%s%s", u > c->from ? ", " : " ",
               f->base.g->tensor[f->base.g->stmt[u].out].name);
    }
    if (c->nloop > 0) eini_say(&t, " in %lld slices:", (long long)eini_fit_slice_count(c));
    for (int l = 0; l < c->nloop; l++) {
      eini_say(&t, "%s%s = %lld by %lld", l > 0 ? ", " : " ", eini_fit_loop_name(f, c, l),
               (long long)c->extent[l], (long long)c->block[l]);
    }
    if (c->guess.again > 0)
      eini_say(&t, "; %.3g of %.3g flops repeated", c->guess.again, c->guess.flops);
    eini_say(&t, "\n");
    eini_fit_append(&t, f->region[k].slice[0].plan, ein_plan_explain);
  }
  return t.at;
}

static int eini_fit_ordered(const eini_fit_layout *f) {
  const ein_plan *p = f->whole != NULL ? f->whole : f->nregion > 0 ? f->region[0].slice[0].plan
                                                                   : NULL;
  return p != NULL && p->graph->ordered;
}

// The plan of a region: one for all, or that of whole slices.
static const ein_plan *eini_fit_plan(const eini_fit_layout *f, int k) {
  return f->whole != NULL ? f->whole : f->region[k].slice[0].plan;
}

// The loops of region k, and which statements are its.
static void eini_fit_json_region(eini_text *t, const eini_fit_layout *f, int k, int from, int to) {
  const eini_fit_choice *c = f->whole != NULL ? NULL : &f->region[k].c;
  eini_say(t, "%s{\"slices\": %lld, \"loops\": [", k > 0 ? ", " : "",
           c == NULL ? 1 : (long long)eini_fit_slice_count(c));
  for (int l = 0; c != NULL && l < c->nloop; l++) {
    eini_say(t, "%s{\"index\": ", l > 0 ? ", " : "");
    eini_say_string(t, eini_fit_loop_name(f, c, l));
    eini_say(t, ", \"extent\": %lld, \"block\": %lld}", (long long)c->extent[l],
             (long long)c->block[l]);
  }
  eini_say(t, "], \"statements\": [");
  for (int i = from; i < to; i++) eini_say(t, "%s%d", i > from ? ", " : "", i);
  eini_say(t, "]}");
}

// The members of ein_plan_json; statements are those of one slice of each region.
EIN_API size_t ein_fit_json(const ein_fit *fit, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (fit == NULL) return 0;
  const eini_fit_layout *f = &fit->f;
  const int nregion = f->whole != NULL ? 1 : f->nregion;
  int said = 0, fallbacks = 0;
  for (int k = 0; k < nregion; k++) fallbacks += eini_fallbacks(eini_fit_plan(f, k));
  eini_say(&t, "{\"p\": 1, \"deterministic\": %s, \"cost_model\": \"flops\", \"total\": %.17g, "
           "\"flops\": %.17g, \"naive_flops\": ", eini_fit_ordered(f) ? "true" : "false",
           fit->info.flops, fit->info.flops);
  if (f->whole != NULL) eini_say_number(&t, f->whole->info.naive_flops);
  eini_say(&t, f->whole != NULL ? ", \"largest\": " : "null, \"largest\": null");
  if (f->whole != NULL) eini_say_number(&t, f->whole->info.largest);
  eini_say(&t, ", \"peak_bytes\": %llu, \"workspace_bytes\": %llu",
           (unsigned long long)fit->info.peak_bytes, (unsigned long long)fit->info.workspace_bytes);
  eini_json_seconds(&t, fit->info.seconds);
  eini_say(&t, ", \"fallbacks\": %d", fallbacks);
  eini_json_head(&t, nregion > 0 ? eini_fit_plan(f, 0) : NULL);
  eini_say(&t, ", \"memory\": %llu, \"plan_bytes\": %llu, \"slices\": %lld, "
           "\"repeated_flops\": %.17g, \"regions\": [", (unsigned long long)fit->info.memory,
           (unsigned long long)fit->info.plan_bytes, (long long)fit->info.nslice,
           fit->info.repeated_flops);
  for (int k = 0, from = 0; k < nregion; k++) {
    eini_text none = eini_text_of(NULL, 0);
    const int n = eini_json_statements(&none, eini_fit_plan(f, k), 0);
    eini_fit_json_region(&t, f, k, from, from + n);
    from += n;
  }
  eini_say(&t, "], \"choices\": [");
  for (int k = 0; k < nregion; k++) said = eini_json_choices(&t, eini_fit_plan(f, k), said);
  eini_say(&t, "], \"statements\": [");
  said = 0;
  for (int k = 0; k < nregion; k++) said = eini_json_statements(&t, eini_fit_plan(f, k), said);
  eini_say(&t, "]}");
  return t.at;
}

// ================================================================================================
// >>memory-public  the calls
// Check their arguments and call the sections above.
// ================================================================================================

static void eini_fit_facts(ein_fit *fit) {
  const eini_fit_layout *f = &fit->f;
  ein_fit_info *i = &fit->info;
  i->workspace_bytes = (size_t)f->workspace;
  i->plan_bytes = fit->cap.live;
  i->peak_bytes = fit->cap.live + (size_t)f->workspace;
  if (fit->cap.top > i->peak_bytes) i->peak_bytes = fit->cap.top;
  i->nregion = f->nregion;
  if (f->whole != NULL) {
    i->nin = f->whole->info.nin;
    i->nout = f->whole->nout;
    i->nparam = f->whole->info.nparam;
    i->flops = f->whole->info.flops;
    i->nregion = 1;
    i->nslice = 1;
    return;
  }
  for (int64_t t = 0; t < f->base.g->ntensor; t++) {
    ein_role role = f->base.g->tensor[t].role;
    i->nin += role == EIN_ROLE_INPUT && (int)t != f->base.plan->alias;
    i->nout += role == EIN_ROLE_OUTPUT;
  }
  i->nparam = (int)f->base.g->nparam;
  for (int k = 0; k < f->nregion; k++) {
    const eini_fit_choice *c = &f->region[k].c;
    i->nloop += c->nloop;
    i->nslice += eini_fit_slice_count(c);
    i->flops += c->guess.flops;
    i->repeated_flops += c->guess.again;
    i->seconds += c->guess.seconds;
  }
}

// What a plan of the same would be refused for, whatever the budget.
static ein_status eini_fit_validate(ein_ctx *ctx, const ein_fit_desc *d) {
  eini_diag *g = eini_diag_of(ctx);
  if (d == NULL) return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "the description is NULL");
  if ((d->graph == NULL) == (d->einsum == NULL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "one of graph and einsum is given, not %s",
                     d->graph == NULL ? "none" : "both");
  if (d->memory > 0 && d->reserved >= d->memory)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "%llu bytes are reserved of a budget of %llu", (unsigned long long)d->reserved,
                     (unsigned long long)d->memory);
  const ein_options *o = d->graph != NULL ? d->options : &d->einsum->options;
  if (o != NULL && o->overflow_check)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, "plan it without a budget",
                     "overflow_check does not go with a memory budget");
  if (d->graph != NULL) {
    if (d->options != NULL) EINI_TRY(eini_validate_options(g, d->options));
    return eini_validate_graph(ctx, d->graph, d->nlayout, d->layout);
  }
  return eini_validate_desc(ctx, d->einsum, 1);
}

// Searches with the ctx's memory taken from the cap.
static ein_status eini_fit_capped(ein_ctx *ctx, const ein_fit_desc *desc, ein_fit *fit) {
  eini_fit_search s;
  ein_allocator al = ctx->al;
  ein_logger logger = ctx->logger;
  memset(&s, 0, sizeof s);
  s.fit = fit;
  s.j.ctx = ctx;
  s.j.desc = desc;
  s.j.cap = &fit->cap;
  ctx->al = eini_cap_allocator(&fit->cap);
  ctx->logger.log_fn = NULL;  // what does not fit is no error
  ein_status st = eini_fit_search_run(&s);
  ctx->al = al;
  ctx->logger = logger;
  ctx->kernels = s.kernels;
  ctx->nkernels = s.nkernels;
  ctx->executor = s.executor;
  if (st == EIN_OK) eini_begin_call(ctx, NULL);
  if (st == EIN_OK) eini_fit_facts(fit);
  return st;
}

EIN_API ein_status ein_fit_create(ein_ctx *ctx, const ein_fit_desc *desc, ein_fit **out) {
  ein_ctx_desc cd;
  ein_ctx *own = NULL;
  eini_arena a;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_fit_validate(ctx, desc);
  if (st != EIN_OK) {
    eini_fail_status(ctx, st);
    return st;
  }
  eini_arena_init(&a, ctx == NULL ? NULL : &ctx->al);  // resolves the default allocator
  ein_fit *fit = (ein_fit *)a.al.alloc_fn(sizeof *fit, EINI_ALIGN, a.al.user);
  st = fit == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (fit != NULL) {
    memset(fit, 0, sizeof *fit);
    fit->cap.al = a.al;
    fit->cap.live = fit->cap.top = sizeof *fit;
    fit->cap.limit = SIZE_MAX;
    eini_arena_init(&fit->f.arena, &a.al);
  }
  if (st == EIN_OK && ctx == NULL) {
    memset(&cd, 0, sizeof cd);
    cd.allocator = eini_cap_allocator(&fit->cap);
    cd.cache_plans = -1;
    st = ein_ctx_create(&cd, &own);
  }
  if (st == EIN_OK) {
    if (desc->memory > 0) fit->cap.limit = desc->memory - desc->reserved;
    fit->info.memory = fit->cap.limit;
    st = eini_fit_capped(ctx == NULL ? own : ctx, desc, fit);
  }
  ein_ctx_destroy(own);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *out = fit;
  else ein_fit_destroy(fit);
  return st;
}

EIN_API void ein_fit_destroy(ein_fit *fit) {
  if (fit == NULL) return;
  ein_allocator al = fit->cap.al;
  eini_fit_layout_free(&fit->f);
  eini_fit_base_close(&fit->f.base);
  al.free_fn(fit, sizeof *fit, al.user);
}

EIN_API ein_status ein_fit_execute(const ein_fit *fit, const ein_run *run) {
  if (fit == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_run_begin(run, fit->info.nin, fit->info.nout));
  const ein_allocator *al = &fit->cap.al;
  size_t need = fit->info.workspace_bytes;
  ein_run own = *run;
  own.seconds = NULL;
  if (run->workspace != NULL && run->workspace_bytes < need) return eini_run_small(run, need);
  if (fit->f.whole == NULL) EINI_TRY(eini_params_check(fit->f.base.g, run));
  if (run->workspace == NULL) own.workspace = al->alloc_fn(need, EINI_ALIGN, al->user);
  if (own.workspace == NULL) return EIN_ERR_NO_MEMORY;
  own.workspace_bytes = need;
  char *mem = (char *)own.workspace;
  mem += (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  ein_status st = fit->f.whole != NULL ? ein_plan_execute(fit->f.whole, &own)
                                       : eini_fit_run(&fit->f, &own, mem);
  if (run->workspace == NULL) al->free_fn(own.workspace, need, al->user);
  return st;
}

EIN_API size_t ein_fit_workspace(const ein_fit *fit) {
  return fit == NULL ? 0 : fit->info.workspace_bytes;
}

EIN_API ein_status ein_fit_info_get(const ein_fit *fit, ein_fit_info *info) {
  if (fit == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = fit->info;
  return EIN_OK;
}

// Input (or output) i in the order of the graph's tensors.
static int eini_fit_port_info(const ein_fit *fit, ein_role role, int i, ein_tensor_info *info) {
  if (fit == NULL || info == NULL || i < 0) return 0;
  const eini_fit_layout *f = &fit->f;
  if (f->whole != NULL) {
    return role == EIN_ROLE_INPUT ? ein_plan_input(f->whole, i, info)
                                  : ein_plan_output(f->whole, i, info);
  }
  for (int64_t t = 0; t < f->base.g->ntensor; t++) {
    if (f->base.g->tensor[t].role != role || (int)t == f->base.plan->alias || i-- > 0) continue;
    *info = f->base.port[t].info;
    return 1;
  }
  return 0;
}

EIN_API int ein_fit_input(const ein_fit *fit, int i, ein_tensor_info *info) {
  return eini_fit_port_info(fit, EIN_ROLE_INPUT, i, info);
}

EIN_API int ein_fit_output(const ein_fit *fit, int i, ein_tensor_info *info) {
  return eini_fit_port_info(fit, EIN_ROLE_OUTPUT, i, info);
}

EIN_API int ein_fit_param(const ein_fit *fit, int i, ein_param_info *info) {
  if (fit == NULL) return 0;
  if (fit->f.whole != NULL) return ein_plan_param(fit->f.whole, i, info);
  return ein_graph_param(fit->f.base.g, i, info);
}

EIN_API int ein_fit_loop(const ein_fit *fit, int i, ein_fit_loop_info *info) {
  if (fit == NULL || info == NULL || i < 0) return 0;
  for (int k = 0; k < fit->f.nregion; k++) {
    const eini_fit_choice *c = &fit->f.region[k].c;
    for (int l = 0; l < c->nloop; l++) {
      if (i-- > 0) continue;
      info->region = k;
      info->index = eini_fit_loop_name(&fit->f, c, l);
      info->extent = c->extent[l];
      info->block = c->block[l];
      return 1;
    }
  }
  return 0;
}

#endif  // EINSUM_IMPLEMENTATION
