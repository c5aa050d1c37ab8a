// einsum_program.h - v0.1.0 - programs of several statements for einsum.h - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the header plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum_program.h"
//
// It includes einsum.h, which must lie beside it, so nothing else is needed. einsum.h alone is
// enough for einsum strings and plans; this header makes graphs of several statements, from text
// (ein_graph_parse) or by calls (ein_graph_create).
//
//     ein_program_desc d = {.text = "input x[n]\ny[i] = x[i]^2 - 1\n", .nbind = 1, .bind = &x};
//     ein_graph *graph;
//     ein_plan *plan;
//     ein_status st = ein_graph_parse(ctx, &d, &graph);
//     if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, &plan);
//
// Then ein_plan_execute runs it as often as you like; examples/04_program.c is a whole program.
//
//
// CONTENTS (search for >>name)
//
// Manual: INCLUDING IT, PROGRAMS, MACROS, GRADIENTS, ERRORS
//
//   >>program-api     public types and functions
//   >>implementation  everything below is compiled once
//   >>zspace-ops      points, ranges and affine maps of integer index spaces
//   >>pieces          tensors defined by several statements, and edge rules
//   >>builder         graphs from C calls
//   >>names           names of a program
//   >>trees           syntax trees, and trees as expression nodes
//   >>program         from trees to a graph
//   >>scope           names, macros, coordinates
//   >>solve           extents and bounds
//   >>edges           edge rules
//   >>adjoint         derivatives of scalar expressions
//   >>preimage        index spaces seen from one operand
//   >>drafts          writing the statements of gradients
//   >>unfold          cotangents of what a statement folds
//   >>gradient        reverse-mode differentiation
//   >>build           from resolved trees to statements
//   >>parse           programs
//   >>program-print   a graph as text
//
//
// INCLUDING IT
//
// The implementation stands in the translation unit that holds einsum.h's: it uses eini_ functions
// of its sections util, error, dtype, zspace, monoid, expr, graph, context, syntax and
// print, and nothing below them. einsum.h may be included before, plainly or with its
// implementation. EINSUM_STATIC, EINSUM_MALLOC and EINSUM_ASSERT mean what they mean there.
//
//
// PROGRAMS
//
//     # softmax attention, one head
//     input Q[s,d], K[t,d], V[t,e] : f32
//     T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))
//     P[s,t] = softmax[t](T[s,t])
//     Y[s,e] = sum[t](P[s,t] * V[t,e])
//     output Y : f32
//
// Lines end statements, ";" does too; inside brackets a line goes on; "\" at its end joins the
// next. "#" starts a comment. Names are letters, digits and _, and code points from U+00A1; case
// matters.
//
//     input X[n,4], W[n=10]: f32    what the caller binds; n becomes a size, equal wherever it is
//     param a = 0.5, b : f64        scalars given when executing; without a dtype they take the
//                                   one they meet, as literals do
//     output Y, Z : f32             what is computed; without it, all that no other statement reads
//     def f(x, y) = x*exp(-y)       a scalar macro
//     Y[i,j] = ..                   defines Y; indices on the left are free
//     Y[i=5,j=n] : f32 = ..         with extents (of integers and sizes), with a dtype
//     Y[i+3] = .. for i=n           with the extents of indices of which no coordinate says them
//     Y[2*i+1] = ..                 defines some elements; several statements must fit exactly:
//                                   concatenation, interleaving and padding are written so
//     grad L wrt A, B as dA, dB     gradients of the scalar L; see GRADIENTS
//
// Expressions, from the lowest precedence: or; and; not; < <= > >= == != (no chains); + -; * /;
// unary - +; ^ (to the right; -x^2 is -(x^2)). Constants: inf nan pi true false. A name alone is an
// index (its value, i64), a param or a tensor of rank 0.
//     X[2*h+r, w]                   an access; coordinates are affine: integers, indices, size(..)
//     X[i-1 | 0]  X[i+1 | wrap]     outside reads as a constant, or by wrap, clamp, reflect
//                                   a constant promotes as in where(inside, X, 0), and must fit
//     X[i-1 | 0, j+1 | clamp]       a rule by coordinate, applied from the first axis to the last;
//                                   one after the last coordinate only is that of all
//     size(n)  size(i)  size(X,0)   a declared size, an index's extent, an axis's extent (i64)
//     sum[i,j](e)  max[k=4](e)      folds over named indices; sum(e) over those of e not in scope
//     softmax[j](e)                 macros over named indices
//
// Implicit sums: in each top-level term (between + and -), indices that are in no scope are summed
// around the whole term. Each must stand in a plain factor of the term:
//     Y[i] = A[i,j]*x[j] + b[i]     sums A*x only: b is added once
//     Y[i] = A[i,j]*(x[j] + b[i])   is an error: say which sum is meant
//     Y[i] = exp(A[i,j])            is an error: sum[j](exp(..)) or exp(sum[j](..))
// An extent comes from the left, the fold or "for"; else from every place where the index stands
// alone as a coordinate, and these must agree; else it is the largest that keeps compound
// coordinates inside: X[2*h+r] with 10 elements and r < 3 gives h the extent 4. There is no
// broadcasting of extent 1. Every access is proved to stay inside its tensor, or has an edge rule,
// before anything runs. Where two readings are plausible the text is an error with a hint.
//
//
// Dtypes promote as einsum.h's manual says: 2*x keeps x's dtype, "/" of integers gives f64.
//
//
// MACROS
//
// Functions and folds are those of einsum.h's manual, and those registered in the ctx; and:
//
// softmax[j](x)                 exp(x-m) / sum[j](exp(x-m)), m = max[j](x)
// logsoftmax[j](x)              x - m - log(sum[j](exp(x-m)))
// layernorm[j](x,g,b,eps=1e-5)  (x - mean[j](x)) / sqrt(var[j](x) + eps) * g + b
// rmsnorm[j](x,g,eps=1e-6)      x * rsqrt(mean[j](x^2) + eps) * g
// eps is a fourth (third) argument without a name.
//
// GRADIENTS
//
//     input X[b,f], y[b], w[f]
//     L = sum[b]((sum[f](X[b,f]*w[f]) - y[b])^2)
//     grad L wrt w as dw
//     v[f] = w[f] - 0.01*dw[f]
//
// grad makes tensors: dw has the shape and dtype of w, and is read like any other. L is a real
// scalar, or any tensor of floats with a seed of its shape: "grad Y wrt w as dw seed S" gives the
// gradient of sum(S*Y), for complex ones of the real part of sum(conj(S)*Y). What is wanted may be
// an input or a defined tensor; it need not have anything to do with L (then its gradient is 0).
// By a complex number z the gradient is dL/dRe z + i dL/dIm z.
//
// At kinks: those that tie for a max or min share its gradient equally (where it is NaN, nothing is
// equal to it, and all have 0); abs, relu, norm and the
// modulus have 0 at 0; floor, ceil, round and div have 0. A prod of zeros gets the products of the
// others. Conditions in where(..), and comparisons as factors, are constants: where(c, x, y) sends
// nothing to the branch it does not take, also where that is infinite. argmax, any, all, integers,
// and functions and monoids of yours have no gradient: an error, unless they stand in conditions.
// The max that softmax and logsoftmax subtract cancels, so it is left out.
//
// A gradient is statements as you could have written them, so gradients of gradients are too. A
// sum of products has sums of products as gradients. That of X[2*h+r] is written in as many pieces
// as the stride, over cotangents padded with zeros, which other factors multiply: infinite ones
// give NaN there. Accesses with several strides that share indices may take a sum with a condition
// over all of the index space. From C: ein_graph_add_gradient.
//
//
// ERRORS
//
//     2:24: 'd' is a size, not an index in scope
//       Y[s,e] = Q[s,e] / sqrt(d)
//                              ^
//       hint: write size(d)
//
// A program reports up to 20 mistakes at once (max_errors); ein_ctx_error gives them one by one.
// Texts of any origin are safe to parse: nesting, length and expansion are limited.

#include "einsum.h"

#ifndef EINSUM_PROGRAM_H
#define EINSUM_PROGRAM_H

#ifdef __cplusplus
extern "C" {
#endif

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
  const char *fold;         // by name; default sum, when there are reduced indices
  ein_rest rest;            // EIN_REST_ZERO: elements of out that out_map does not reach are 0
} ein_stmt_desc;

typedef struct ein_size {
  const char *name;
  int64_t value;
} ein_size;

typedef struct ein_program_desc {
  const char *text;
  size_t length;            // bytes; 0: up to the terminating NUL
  int nbind;                // views of inputs, by name: they give sizes and dtypes
  const ein_binding *bind;
  int nsize;                // sizes by name: of declared sizes, or of indices left open
  const ein_size *size;
  ein_dtype dtype;          // of inputs without one; default f64
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
// Appends statements that define the gradients of loss, a real scalar, by nwrt tensors: in
// grad[k], a tensor added before and not yet defined, that by wrt[k], an input or a defined tensor
// of floats, whose shape and dtype it has unless others were given. seed: a tensor of the shape of
// loss, which may then be any; the gradient is that of sum(seed*loss), of the real part of
// sum(conj(seed)*loss) for complex ones; -1: none. See GRADIENTS for what it is at kinks and by
// complex numbers.
// EIN_ERR_UNSUPPORTED, with the statement, where a function of yours, an integer or a comparison
// stands between.
EIN_API ein_status ein_graph_add_gradient(ein_graph *graph, int loss, int nwrt, const int *wrt,
                                          int seed, const int *grad);
// Proves that pieces are disjoint and fill their tensors (EIN_ERR_SHAPE), drops what no output
// needs; then the graph is read-only and can be planned.
EIN_API ein_status ein_graph_finish(ein_graph *graph);

// ---- graphs from text ----
// Parses, checks and lowers a program. Reports up to max_errors mistakes. The graph is the caller's
// (ein_graph_destroy), *graph is NULL on failure; texts and views are borrowed for the call.
EIN_API ein_status ein_graph_parse(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph);
// Names and dtypes of the declared inputs of a program, without sizes: for tools that must open
// files first. Calls fn for each; its dtype is EIN_NONE when the program does not say.
EIN_API ein_status ein_program_inputs(ein_ctx *ctx, const ein_program_desc *desc,
                                      void (*fn)(const char *name, ein_dtype dtype, int rank,
                                                 void *user), void *user);
// A graph, however it was made, in the notation of programs, into buf. Returns the length of the
// whole text without its NUL, as snprintf does.
EIN_API size_t ein_graph_print(const ein_graph *graph, char *buf, size_t size);

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

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_PROGRAM_H

// ================================================================================================
// >>implementation  everything below is compiled once
// Takes the declarations above, and einsum.h's sections down to >>print; gives their definitions.
// ================================================================================================
#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_PROGRAM_IMPLEMENTATION_DONE)
#define EINSUM_PROGRAM_IMPLEMENTATION_DONE

// ================================================================================================
// >>zspace-ops  points, ranges and affine maps of integer index spaces
// Takes and fills the caller's arrays (a result's rank is set here). Invariant: nothing wraps.
// ================================================================================================

// Arrays of rank 0 may be NULL.
static int eini_zrange_bad(const ein_zrange *r) {
  return r == NULL || r->rank < 0 || (r->rank > 0 && (r->start == NULL || r->end == NULL));
}

static int eini_zpoint_bad(const ein_zpoint *p) {
  return p == NULL || p->rank < 0 || (p->rank > 0 && p->coord == NULL);
}

static ein_status eini_zrange_extent(const ein_zrange *r, int axis, int64_t *extent) {
  int64_t start = r->start[axis], end = r->end[axis];
  if (start < 0 && end > INT64_MAX + start) return EIN_ERR_TOO_LARGE;
  *extent = end > start ? end - start : 0;
  return EIN_OK;
}

EIN_API ein_status ein_zrange_size(const ein_zrange *r, int64_t *size) {
  if (eini_zrange_bad(r) || size == NULL) return EIN_ERR_ARGUMENT;
  int64_t n = eini_zrange_empty(r->rank, r->start, r->end) ? 0 : 1;
  for (int i = 0; i < r->rank && n > 0; i++) {  // an empty range is never too large
    int64_t extent;
    EINI_TRY(eini_zrange_extent(r, i, &extent));
    if (eini_mul_overflow(n, extent, &n)) return EIN_ERR_TOO_LARGE;
  }
  *size = n;
  return EIN_OK;
}

EIN_API int ein_zrange_contains(const ein_zrange *r, const ein_zpoint *p) {
  if (eini_zrange_bad(r) || eini_zpoint_bad(p) || r->rank != p->rank) return 0;
  for (int i = 0; i < r->rank; i++)
    if (p->coord[i] < r->start[i] || p->coord[i] >= r->end[i]) return 0;
  return 1;
}

// As a set of points: an empty range lies in every range of its rank.
EIN_API int ein_zrange_contains_range(const ein_zrange *r, const ein_zrange *inner) {
  if (eini_zrange_bad(r) || eini_zrange_bad(inner) || r->rank != inner->rank) return 0;
  if (eini_zrange_empty(r->rank, inner->start, inner->end)) return 1;
  for (int i = 0; i < r->rank; i++)
    if (inner->start[i] < r->start[i] || inner->end[i] > r->end[i]) return 0;
  return 1;
}

EIN_API ein_status ein_zrange_intersect(const ein_zrange *a, const ein_zrange *b,
                                        ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_bad(b)) return EIN_ERR_ARGUMENT;
  if (eini_zrange_no_room(out, a->rank)) return EIN_ERR_ARGUMENT;
  if (a->rank != b->rank) return EIN_ERR_SHAPE;
  out->rank = a->rank;
  for (int i = 0; i < out->rank; i++) {  // both ends are read before out, which may be a or b
    int64_t start = eini_max64(a->start[i], b->start[i]);
    int64_t end = eini_min64(a->end[i], b->end[i]);
    out->start[i] = start;
    out->end[i] = eini_max64(start, end);
  }
  return EIN_OK;
}

EIN_API ein_status ein_zrange_translate(const ein_zrange *a, const int64_t *by, ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_no_room(out, a->rank)) return EIN_ERR_ARGUMENT;
  if (by == NULL && a->rank > 0) return EIN_ERR_ARGUMENT;
  for (int i = 0; i < a->rank; i++) {
    if (eini_add_overflow(a->start[i], by[i], &out->start[i]) ||
        eini_add_overflow(a->end[i], by[i], &out->end[i])) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  out->rank = a->rank;
  return EIN_OK;
}

EIN_API ein_status ein_zrange_split(const ein_zrange *a, int axis, int64_t n, int64_t i,
                                    ein_zrange *out) {
  if (eini_zrange_bad(a) || axis < 0 || axis >= a->rank || n < 1 || i < 0 || i >= n)
    return EIN_ERR_ARGUMENT;
  int64_t size, first = a->start[axis];
  EINI_TRY(eini_zrange_extent(a, axis, &size));
  EINI_TRY(ein_zrange_intersect(a, a, out));  // a copy; out may be a
  int64_t piece = size / n + (size % n != 0);
  int64_t at = piece > 0 && i <= size / piece ? i * piece : size;  // i * piece alone may wrap
  out->start[axis] = first + at;
  out->end[axis] = first + at + eini_min64(piece, size - at);
  return EIN_OK;
}

EIN_API ein_status ein_zrange_product(const ein_zrange *a, const ein_zrange *b, ein_zrange *out) {
  if (eini_zrange_bad(a) || eini_zrange_bad(b)) return EIN_ERR_ARGUMENT;
  if (a->rank > INT_MAX - b->rank) return EIN_ERR_TOO_LARGE;
  int rank = a->rank, more = b->rank;
  if (eini_zrange_no_room(out, rank + more)) return EIN_ERR_ARGUMENT;
  for (int i = more - 1; i >= 0; i--) {  // b first and backwards: out may share memory with a or b
    out->start[rank + i] = b->start[i];
    out->end[rank + i] = b->end[i];
  }
  for (int i = 0; i < rank; i++) {
    out->start[i] = a->start[i];
    out->end[i] = a->end[i];
  }
  out->rank = rank + more;
  return EIN_OK;
}

EIN_API ein_status ein_zmap_point(const ein_zmap *m, const ein_zpoint *x, ein_zpoint *y) {
  if (eini_zmap_bad(m) || eini_zpoint_bad(x)) return EIN_ERR_ARGUMENT;
  if (y == NULL || (m->rows > 0 && y->coord == NULL)) return EIN_ERR_ARGUMENT;
  if (x->rank != m->cols) return EIN_ERR_SHAPE;
  for (int r = 0; r < m->rows; r++) {
    const int64_t *coef = m->cols > 0 ? m->coef + (ptrdiff_t)r * m->cols : NULL;
    int64_t *at = &y->coord[r], same;
    EINI_TRY(eini_zmap_row(coef, m->cols, m->offset[r], x->coord, NULL, at, &same));
  }
  y->rank = m->rows;
  return EIN_OK;
}

EIN_API ein_status ein_zmap_block(const ein_zmap *m, const ein_zpoint *x, ein_zrange *y) {
  if (eini_zpoint_bad(x)) return EIN_ERR_ARGUMENT;
  return eini_zmap_image(m, x->rank, x->coord, NULL, y);
}

EIN_API ein_status ein_zmap_range(const ein_zmap *m, const ein_zrange *x, ein_zrange *y) {
  if (eini_zrange_bad(x)) return EIN_ERR_ARGUMENT;
  return eini_zmap_image(m, x->rank, x->start, x->end, y);
}

// ================================================================================================
// >>pieces  tensors defined by several statements, and edge rules
// Proves that the images of a tensor's statements are disjoint and fill its box (GRAMMAR rule 7);
// turns accesses that leave their tensor into padded tensors made of such pieces.
// ================================================================================================

#define EINI_BITMAP_MAX ((int64_t)1 << 22)   // elements that are checked one by one
#define EINI_COVER_EFFORT ((int64_t)1 << 27)

// A mistake in a cover; at: the coordinate concerned; a, b: statements (b -1: not known).
typedef struct eini_cover {
  ein_status status;
  const char *what;       // how the sentence about the coordinate ends
  int64_t *at;            // rank coordinates, or NULL
  int64_t a, b;
  int holes;              // elements may be left out
} eini_cover;

typedef struct eini_ap {  // start, start+step, ..
  int64_t start, step, count;
} eini_ap;

static ein_status eini_cover_fail(eini_cover *c, ein_status st, const char *what, int64_t *at,
                                  int64_t a, int64_t b) {
  c->status = st;
  c->what = what;
  c->at = at;
  c->a = a;
  c->b = b;
  return st;
}

static int eini_ap_has(const eini_ap *a, int64_t x) {
  int64_t d = x - a->start;
  return d >= 0 && d % a->step == 0 && d / a->step < a->count;
}

// The image of one coordinate as a progression; 0 when it is none. Extents of 1 do not count.
static int eini_row_ap(const eini_stmt *s, int r, eini_ap *ap) {
  const int64_t *coef = s->out_map.coef + (int64_t)r * s->nindex;
  ap->start = s->out_map.offset[r];
  ap->step = ap->count = 1;
  for (int64_t below = 0, next;;) {  // indices by absolute coefficient
    int best = -1, equal = 0;
    int64_t least = INT64_MAX;
    for (int c = 0; c < s->nfree; c++) {
      int64_t v = eini_abs64(coef[c]);
      if (v <= below || v > least || s->index[c].extent == 1) continue;
      equal = v == least;
      least = v;
      best = c;
    }
    if (best < 0) return 1;
    if (below == 0) ap->step = least;
    else if (eini_mul_overflow(ap->step, ap->count, &next) || next != least) return 0;
    if (equal) return 0;  // i+j is not one-to-one
    if (coef[best] < 0) ap->start += coef[best] * (s->index[best].extent - 1);
    ap->count *= s->index[best].extent;
    below = least;
  }
}

// Fills ap (rank of them) and adds the points of one piece; 0 when its image is no box of
// progressions.
static int eini_piece_aps(const eini_stmt *s, int rank, eini_ap *ap, int64_t *total) {
  int64_t points = 1;
  for (int c = 0; c < s->nfree; c++) {
    int rows = 0;
    for (int r = 0; r < rank; r++) rows += s->out_map.coef[(int64_t)r * s->nindex + c] != 0;
    if (rows != 1 && s->index[c].extent > 1) return 0;
  }
  for (int r = 0; r < rank; r++)
    if (!eini_row_ap(s, r, &ap[r]) || eini_mul_overflow(points, ap[r].count, &points)) return 0;
  return !eini_add_overflow(*total, points, total);
}

// The first common element of two progressions. Of the one with larger steps, at most as many
// elements as the other's step have different remainders.
static int eini_ap_meet(const eini_ap *a, const eini_ap *b, int64_t *effort, int64_t *x) {
  if (a->step < b->step) return eini_ap_meet(b, a, effort, x);
  int64_t from = a->start < b->start ? (b->start - a->start - 1) / a->step + 1 : 0;
  for (int64_t k = from; k < a->count && k - from < b->step && --*effort > 0; k++) {
    *x = a->start + k * a->step;
    if (eini_ap_has(b, *x)) return 1;
  }
  return 0;
}

// Walks over the points that disjoint boxes of progressions hold, to the first one left out; 0 when
// it is not found with bounded effort.
static int eini_cover_hole(const eini_tensor *t, const eini_ap *ap, int64_t m, int64_t *at) {
  int last = t->rank - 1;
  memset(at, 0, (size_t)t->rank * sizeof *at);
  for (int64_t effort = EINI_COVER_EFFORT; effort > 0 && last >= 0;) {
    int64_t next = -1;
    for (int64_t k = 0; k < m && next < 0; k++) {
      const eini_ap *a = &ap[k * t->rank];
      int r = 0;
      while (r <= last && eini_ap_has(&a[r], at[r])) r++;
      if (r > last) next = a[last].step == 1 ? a[last].start + a[last].count : at[last] + 1;
      effort -= r + 1;
    }
    if (next < 0) return 1;
    at[last] = next;
    for (int r = last; r > 0 && at[r] >= t->shape[r]; r--) {
      at[r] = 0;
      at[r - 1]++;
    }
  }
  return 0;
}

// Marks every point of the pieces; finds a point marked twice or never.
static ein_status eini_cover_bitmap(const ein_graph *g, const eini_tensor *t, const int64_t *piece,
                                    int64_t n, int64_t box, eini_arena *scratch, eini_cover *out,
                                    int64_t *at) {
  int *seen = EINI_NEW(scratch, int, box);  // the number of the piece, + 1
  if (seen == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < n; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    int64_t *i = EINI_NEW(scratch, int64_t, s->nfree);
    if (i == NULL) return EIN_ERR_NO_MEMORY;
    for (int c = eini_stmt_empty(s, 0, s->nfree) ? -1 : 0; c >= 0;) {
      int64_t x = 0;
      for (int r = 0; r < t->rank; r++) {
        at[r] = s->out_map.offset[r];
        for (c = 0; c < s->nfree; c++) at[r] += s->out_map.coef[(int64_t)r * s->nindex + c] * i[c];
        x = x * t->shape[r] + at[r];
      }
      if (seen[x] != 0) {
        return eini_cover_fail(out, EIN_ERR_SHAPE, "is defined twice", at, piece[k],
                               seen[x] == k + 1 ? -1 : piece[seen[x] - 1]);
      }
      seen[x] = (int)k + 1;
      for (c = s->nfree - 1; c >= 0 && ++i[c] == s->index[c].extent; c--) i[c] = 0;
    }
  }
  for (int64_t x = 0; x < box && !out->holes; x++) {
    if (seen[x] != 0) continue;
    for (int r = t->rank - 1; r >= 0; r--) {
      at[r] = x % t->shape[r];
      x /= t->shape[r];
    }
    return eini_cover_fail(out, EIN_ERR_SHAPE, "is undefined", at, piece[0], -1);
  }
  return EIN_OK;
}

// The box of a tensor: up to the largest coordinate of its pieces. Empty pieces count only when
// all are empty; then the extents of indices that stand alone say what the shape is.
static ein_status eini_cover_box(const ein_graph *g, eini_tensor *t, const int64_t *piece,
                                 int64_t n, eini_arena *scratch, eini_cover *out, int64_t *at,
                                 int64_t *box) {
  int any = 0, over = 0;
  for (int64_t k = 0; k < n; k++)
    any |= !eini_stmt_empty(&g->stmt[piece[k]], 0, g->stmt[piece[k]].nfree);
  for (int64_t k = 0; k < n; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    if (any && eini_stmt_empty(s, 0, s->nfree)) continue;
    int64_t *extent = EINI_NEW(scratch, int64_t, s->nindex);
    if (extent == NULL) return EIN_ERR_NO_MEMORY;
    for (int c = 0; c < s->nindex; c++) extent[c] = c < s->nfree ? s->index[c].extent : 1;
    for (int r = 0; r < t->rank; r++) {
      const int64_t *coef = s->out_map.coef + (int64_t)r * s->nindex;
      int64_t lo = 0, hi = -1, offset = s->out_map.offset[r];
      if (any) EINI_TRY(eini_zmap_row_range(coef, s->nindex, offset, extent, &lo, &hi));
      for (int c = 0; !any && c < s->nfree; c++)
        if (coef[c] == 1 && offset == 0) hi = extent[c] - 1;
      if (lo < 0) {
        at[r] = lo;
        return eini_cover_fail(out, EIN_ERR_BOUNDS, "is written: coordinates start at 0", at,
                               piece[k], -1);
      }
      if (hi == INT64_MAX) return eini_cover_fail(out, EIN_ERR_TOO_LARGE, "", NULL, piece[k], -1);
      t->shape[r] = eini_max64(t->shape[r], hi + 1);
    }
  }
  *box = 1;
  for (int r = 0; r < t->rank; r++) {
    if (t->shape[r] == 0) *box = over = 0;
    if (*box > 0) over |= eini_mul_overflow(*box, t->shape[r], box);
  }
  return over ? eini_cover_fail(out, EIN_ERR_TOO_LARGE, "", NULL, piece[0], -1) : EIN_OK;
}

// Sets the tensor's shape and proves that its pieces define every element once.
static ein_status eini_cover_prove(ein_graph *g, int tensor, const int64_t *piece, int64_t n,
                                   eini_arena *scratch, eini_cover *out) {
  eini_tensor *t = &g->tensor[tensor];
  int64_t box = 0, total = 0, m = 0, effort = EINI_COVER_EFFORT;
  int rank = t->rank, exact = 1;
  t->shape = EINI_NEW(&g->arena, int64_t, rank);
  int64_t *who = EINI_NEW(scratch, int64_t, n), *at = EINI_NEW(scratch, int64_t, rank);
  eini_ap *ap = EINI_NEW(scratch, eini_ap, n * rank);
  if (t->shape == NULL || who == NULL || at == NULL || ap == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cover_box(g, t, piece, n, scratch, out, at, &box));
  for (int64_t k = 0; k < n && exact; k++) {
    const eini_stmt *s = &g->stmt[piece[k]];
    const eini_ap *mine = ap + m * rank;
    if (eini_stmt_empty(s, 0, s->nfree)) continue;
    exact = eini_piece_aps(s, rank, ap + m * rank, &total);
    for (int64_t j = 0; j < m && exact; j++) {
      int r = 0;
      while (r < rank && eini_ap_meet(&ap[j * rank + r], &mine[r], &effort, &at[r])) r++;
      if (r == rank)
        return eini_cover_fail(out, EIN_ERR_SHAPE, "is defined twice", at, piece[k], who[j]);
      exact = --effort > 0;
    }
    who[m++] = piece[k];
  }
  if (exact && (total == box || out->holes)) return EIN_OK;
  if (box <= EINI_BITMAP_MAX)
    return eini_cover_bitmap(g, t, piece, n, box, scratch, out, at);
  if (!exact) return eini_cover_fail(out, EIN_ERR_UNSUPPORTED, "", NULL, piece[0], -1);
  if (eini_cover_hole(t, ap, m, at))
    return eini_cover_fail(out, EIN_ERR_SHAPE, "is undefined", at, piece[0], -1);
  return eini_cover_fail(out, EIN_ERR_SHAPE, "has undefined elements", NULL, piece[0], -1);
}

// A mistake in a cover as a sentence; n: the bytes of the tensor's name that are shown.
static void eini_cover_text(const eini_cover *c, const char *name, int n, int rank, char *buf,
                            size_t size) {
  size_t at = (size_t)snprintf(buf, size, "'%.*s", n, name);
  for (int r = 0; c->at != NULL && r < rank && at < size - 96; r++)
    at += (size_t)snprintf(buf + at, size - at, "%s%lld%s", r ? "," : "[", (long long)c->at[r],
                           r == rank - 1 ? "]" : "");
  snprintf(buf + at, size - at, "' %s", c->status == EIN_ERR_TOO_LARGE ? "is too large" :
           c->status == EIN_ERR_UNSUPPORTED ? "has pieces too large to be checked point by point" :
           c->what);
}

// Statements whose value nobody observes are dropped (Tapestry: pruning); order stays.
static ein_status eini_graph_prune(ein_graph *g) {
  char *used = EINI_NEW(&g->arena, char, g->ntensor);
  if (used == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) used[t] = g->tensor[t].role == EIN_ROLE_OUTPUT;
  char *keep = EINI_NEW(&g->arena, char, g->nstmt);
  if (keep == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = g->nstmt - 1; i >= 0; i--) {
    const eini_stmt *s = &g->stmt[i];
    keep[i] = used[s->out];
    if (!keep[i]) continue;
    for (int k = 0; k < s->noperand; k++) used[s->operand[k]] = 1;
  }
  int64_t n = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    if (keep[i]) g->stmt[n++] = g->stmt[i];
    else g->tensor[g->stmt[i].out].nstmt--;
  }
  g->nstmt = n;
  return EIN_OK;
}

// ================================================================================================
// >>builder  graphs from C calls
// Takes tensors and statements one by one; gives a graph whose accesses and pieces are proved. The
// first mistake sticks.
// ================================================================================================

// May the graph be added to? Begins a call: its messages replace those before.
static ein_status eini_building(ein_graph *g) {
  if (g == NULL || !g->open) return EIN_ERR_ARGUMENT;
  if (g->status == EIN_OK && g->diag != NULL) eini_diag_reset(g->diag, NULL, 0);
  return g->status;
}

EINI_PRINTF(3, 4)
static ein_status eini_refuse(ein_graph *g, ein_status st, const char *format, ...) {
  va_list args;
  va_start(args, format);
  eini_vfail(g->diag, st, -1, 0, NULL, format, args);
  va_end(args);
  return st;
}

EIN_API ein_status ein_graph_create(ein_ctx *ctx, ein_graph **graph) {
  eini_diag *diag = eini_diag_of(ctx);
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  if (diag != NULL) eini_diag_reset(diag, NULL, 0);
  *graph = eini_graph_new(ctx);
  if (*graph == NULL) return EIN_ERR_NO_MEMORY;
  (*graph)->open = 1;
  (*graph)->diag = diag;
  return EIN_OK;
}

// A name of the language that is neither one of its words nor taken by a tensor or param.
static ein_status eini_check_free(ein_graph *g, const char *name) {
  int taken = 0, id;
  if (!eini_is_name(name) ||
      eini_word_class(g, name, (int64_t)strlen(name), &id) != EINI_W_FREE)
    return eini_refuse(g, EIN_ERR_NAME, "'%.60s' is not a name", name == NULL ? "" : name);
  for (int64_t i = 0; i < g->ntensor; i++) taken |= strcmp(g->tensor[i].name, name) == 0;
  for (int64_t i = 0; i < g->nparam; i++) taken |= strcmp(g->param[i].name, name) == 0;
  return taken ? eini_refuse(g, EIN_ERR_NAME, "the name '%.60s' is taken", name) : EIN_OK;
}

static ein_status eini_build_tensor(ein_graph *g, const char *name, ein_role role, ein_dtype dtype,
                                    int rank, const int64_t *shape, int *id) {
  static const int64_t none[1] = {0};
  int input = role == EIN_ROLE_INPUT;
  EINI_TRY(eini_check_free(g, name));
  if (rank == 0) shape = none;
  if ((int)role < 0 || role > EIN_ROLE_OUTPUT || rank < 0 || g->ntensor >= INT_MAX ||
      (dtype != EIN_NONE && !eini_dtype_ok(dtype)))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "tensor '%.60s': role, dtype or rank is wrong", name);
  if (input && (dtype == EIN_NONE || shape == NULL))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "the input '%.60s' needs a dtype and a shape", name);
  for (int r = 0; shape != NULL && r < rank; r++) {
    if (shape[r] < 0)
      return eini_refuse(g, EIN_ERR_SHAPE, "axis %d of '%.60s' has extent %lld", r, name,
                         (long long)shape[r]);
  }
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank, shape, id));
  eini_tensor *t = &g->tensor[*id];
  if (input) return EIN_OK;
  t->given = t->shape;
  t->shape = NULL;
  return EIN_OK;
}

EIN_API ein_status ein_graph_add_tensor(ein_graph *g, const char *name, ein_role role,
                                        ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  int none;
  if (id == NULL) id = &none;
  *id = -1;
  EINI_TRY(eini_building(g));
  return g->status = eini_build_tensor(g, name, role, dtype, rank, shape, id);
}

EIN_API ein_status ein_graph_add_param(ein_graph *g, const char *name, ein_dtype dtype,
                                       const ein_scalar *value, int *id) {
  static const ein_scalar no_value = {0, 0, 0};
  int none;
  if (id == NULL) id = &none;
  if (value == NULL) value = &no_value;
  *id = -1;
  EINI_TRY(eini_building(g));
  ein_status st = eini_check_free(g, name);
  if (st == EIN_OK && dtype != EIN_NONE && !eini_dtype_ok(dtype))
    st = eini_refuse(g, EIN_ERR_ARGUMENT, "param '%.60s': not a dtype", name);
  if (st == EIN_OK && !eini_param_holds(dtype, value))
    st = eini_refuse(g, EIN_ERR_DTYPE, "param '%.60s' is %s, which does not hold its default", name,
                     ein_dtype_name(dtype));
  if (st == EIN_OK)
    st = eini_graph_add_param(g, name, (int64_t)strlen(name), dtype, *value, id);
  return g->status = st;
}

// All pieces of a tensor are there: proves that they fill it, and gives it its shape and dtype.
static ein_status eini_seal_tensor(ein_graph *g, int id) {
  eini_tensor *t = &g->tensor[id];
  int64_t n = t->nstmt, k = n, i = g->nstmt;
  eini_arena scratch;
  eini_cover c;
  char text[320];
  if (t->shape != NULL) return EIN_OK;
  if (n == 0) return eini_refuse(g, EIN_ERR_NAME, "'%s' is not defined", t->name);
  memset(&c, 0, sizeof c);
  c.holes = t->partial;
  eini_arena_init(&scratch, &g->arena.al);
  int64_t *piece = EINI_NEW(&scratch, int64_t, n);
  while (piece != NULL && k > 0)
    if (g->stmt[--i].out == id) piece[--k] = i;
  ein_status st = piece == NULL ? EIN_ERR_NO_MEMORY
                                : eini_cover_prove(g, id, piece, n, &scratch, &c);
  if (st != EIN_OK && st != EIN_ERR_NO_MEMORY) {
    c.status = st;
    eini_cover_text(&c, t->name, eini_cut(t->name, (int64_t)strlen(t->name)), t->rank, text,
                    sizeof text);
    eini_refuse(g, st, "%s", text);
  }
  for (int r = 0; st == EIN_OK && t->given != NULL && r < t->rank; r++) {
    if (t->shape[r] == t->given[r] || (c.holes && t->shape[r] < t->given[r])) continue;
    st = eini_refuse(g, EIN_ERR_SHAPE, "axis %d of '%s' has extent %lld, its statements give %lld",
                     r, t->name, (long long)t->given[r], (long long)t->shape[r]);
  }
  if (st == EIN_OK && c.holes) memcpy(t->shape, t->given, (size_t)t->rank * sizeof *t->shape);
  eini_tensor_fix_dtype(t);
  eini_arena_free(&scratch);
  return st;
}

// A map of the caller against a tensor and the indices; from: no index from that one on occurs.
static ein_status eini_check_zmap(ein_graph *g, const ein_zmap *m, int tensor, int nindex,
                                  int from) {
  const eini_tensor *t = &g->tensor[tensor];
  if (m->rows != t->rank || m->cols != nindex)
    return eini_refuse(g, EIN_ERR_SHAPE,
                       "a map of %d rows and %d columns for '%s' of %d axes and %d indices",
                       m->rows, m->cols, t->name, t->rank, nindex);
  if (m->block != NULL)
    return eini_refuse(g, EIN_ERR_UNSUPPORTED, "the map of '%s' has a block", t->name);
  if (m->coef == NULL && m->rows > 0 && m->cols > 0)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "the map of '%s' has no coefficients", t->name);
  for (int r = 0; r < m->rows; r++) {
    for (int i = from; i < nindex; i++) {
      if (m->coef[(int64_t)r * nindex + i] != 0)
        return eini_refuse(g, EIN_ERR_SHAPE, "axis %d of '%s' depends on the reduced index %d", r,
                           t->name, i);
    }
  }
  return EIN_OK;
}

static ein_status eini_check_statement(ein_graph *g, const ein_stmt_desc *d) {
  if (d == NULL || d->nindex < 0 || d->nfree < 0 || d->nfree > d->nindex || d->noperand < 0 ||
      (d->nindex > 0 && d->extent == NULL) ||
      (d->noperand > 0 && (d->operand == NULL || d->proj == NULL)) || d->out < 0 ||
      d->out >= g->ntensor || (d->map == NULL && d->noperand == 0))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "counts, pointers or the tensor defined are wrong");
  const eini_tensor *t = &g->tensor[d->out];
  if (g->diag != NULL)
    snprintf(g->diag->where, sizeof g->diag->where, "statement %lld, '%.40s': ",
             (long long)g->nstmt, t->name);
  if (t->shape != NULL)
    return eini_refuse(g, EIN_ERR_NAME, t->role == EIN_ROLE_INPUT ? "it is an input"
                                                                  : "it is read already");
  for (int i = 0; i < d->nindex; i++) {
    if (d->extent[i] < 0)
      return eini_refuse(g, EIN_ERR_SHAPE, "index %d has extent %lld", i, (long long)d->extent[i]);
    if (d->index != NULL && !eini_is_name(d->index[i]))
      return eini_refuse(g, EIN_ERR_NAME, "index %d has no proper name", i);
  }
  if (d->rest != EIN_REST_ERROR && d->rest != EIN_REST_ZERO)
    return eini_refuse(g, EIN_ERR_UNSUPPORTED, "the rest can only be zero");
  if ((d->rest == EIN_REST_ZERO && t->given == NULL) || (t->nstmt > 0 && (d->rest || t->partial)))
    return eini_refuse(g, EIN_ERR_ARGUMENT, "a rest needs a given shape and a single statement");
  if (d->out_map.coef != NULL)
    EINI_TRY(eini_check_zmap(g, &d->out_map, d->out, d->nindex, d->nfree));
  else if (d->nfree != t->rank)
    return eini_refuse(g, EIN_ERR_SHAPE, "%d free indices for %d axes", d->nfree, t->rank);
  for (int k = 0; k < d->noperand; k++) {
    if (d->operand[k] < 0 || d->operand[k] >= g->ntensor || d->operand[k] == d->out)
      return eini_refuse(g, EIN_ERR_ARGUMENT, "operand %d is no tensor to read", k);
    EINI_TRY(eini_seal_tensor(g, d->operand[k]));
    EINI_TRY(eini_check_zmap(g, &d->proj[k], d->operand[k], d->nindex, d->nindex));
  }
  return EIN_OK;
}

static ein_status eini_build_statement(ein_graph *g, const ein_stmt_desc *d) {
  eini_stmt *s;
  EINI_TRY(eini_check_statement(g, d));
  EINI_TRY(eini_graph_add_stmt(g, d->out, d->nindex, d->noperand, d->operand, &s));
  s->nfree = d->nfree;
  s->rest = d->rest;
  g->tensor[d->out].partial = d->rest == EIN_REST_ZERO;
  for (int i = 0; i < d->nindex; i++) {
    char name[16];
    snprintf(name, sizeof name, "i%d", i);
    const char *given = d->index != NULL ? d->index[i] : name;
    s->index[i].extent = d->extent[i];
    s->index[i].name = eini_strndup(&g->arena, given, (int64_t)strlen(given));
    if (s->index[i].name == NULL) return EIN_ERR_NO_MEMORY;
    if (d->out_map.coef == NULL && i < d->nfree) s->out_map.coef[(int64_t)i * d->nindex + i] = 1;
  }
  if (d->out_map.coef != NULL) eini_zmap_fill(&s->out_map, &d->out_map);
  for (int k = 0; k < d->noperand; k++) eini_zmap_fill(&s->proj[k], &d->proj[k]);
  if (d->fold != NULL && d->nfree == d->nindex)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "a fold, but no reduced index");
  if (d->nfree < d->nindex) s->fold = EINI_SUM;
  if (d->fold != NULL) EINI_TRY(eini_fold_named(g, g->diag, d->fold, &s->fold));
  if (d->map == NULL) {
    for (int k = 0, x = 0; k < d->noperand; k++) {
      int y = eini_expr_add(&g->arena, &s->expr, EINI_OP_OPERAND, -1, k, 0, 0);
      x = k == 0 ? y : eini_expr_pair(&g->arena, &s->expr, EINI_OP_MUL, x, y);
      if (x < 0) return EIN_ERR_NO_MEMORY;
    }
  } else {
    if (g->diag != NULL) {
      g->diag->text = d->map;
      g->diag->length = (int64_t)strlen(d->map);
    }
    EINI_TRY(eini_parse_map(g, g->diag, d->map, d->noperand, d->nindex, s->index, &s->expr));
  }
  return eini_stmt_finish(g, s, g->diag);
}

EIN_API ein_status ein_graph_add_statement(ein_graph *g, const ein_stmt_desc *desc) {
  EINI_TRY(eini_building(g));
  int64_t before = g->nstmt;
  ein_status st = g->status = eini_build_statement(g, desc);
  if (st != EIN_OK) g->nstmt = before;
  if (g->diag != NULL) g->diag->text = NULL;
  if (g->diag != NULL) g->diag->where[0] = 0;
  return st;
}

EIN_API ein_status ein_graph_finish(ein_graph *g) {
  EINI_TRY(eini_building(g));
  ein_status st = EIN_OK;
  int outputs = 0;
  for (int64_t t = 0; st == EIN_OK && t < g->ntensor; t++) {
    outputs += g->tensor[t].role == EIN_ROLE_OUTPUT;
    st = eini_seal_tensor(g, (int)t);
  }
  if (st == EIN_OK && outputs == 0)
    st = eini_refuse(g, EIN_ERR_ARGUMENT, "the graph has no output");
  g->status = st == EIN_OK ? eini_graph_prune(g) : st;
  g->open = g->status != EIN_OK;
  return g->status;
}

// ================================================================================================
// >>names  names of a program
// Takes names in the text; gives each one number, whose record says what it means in the program.
// ================================================================================================

typedef enum eini_syn_kind {
  EINI_S_NUM, EINI_S_BOOL, EINI_S_NAME, EINI_S_PAREN, EINI_S_ACCESS, EINI_S_SIZE, EINI_S_REDUCE,
  EINI_S_MACRO, EINI_S_CALL, EINI_S_SUM, EINI_S_TERM, EINI_S_AND, EINI_S_OR, EINI_S_NOT,
  EINI_S_NEG, EINI_S_POW, EINI_S_CMP,
  EINI_S_INDEX, EINI_S_PARAM, EINI_S_BODY  // after names are resolved; BODY: of a def
} eini_syn_kind;

typedef enum eini_edge_kind {
  EINI_EDGE_NONE, EINI_EDGE_CONST, EINI_EDGE_WRAP, EINI_EDGE_CLAMP, EINI_EDGE_REFLECT
} eini_edge_kind;

// A coordinate: offset + sum of coef * variable.
typedef struct eini_row {
  int n, *var;
  int64_t *coef, offset, pos, len;
} eini_row;

// What a coordinate reads outside its tensor.
typedef struct eini_edge {
  int kind;               // eini_edge_kind
  struct eini_syn *fill;  // the constant, or NULL
} eini_edge;

typedef struct eini_syn {
  unsigned char kind, exact;  // exact: an integer
  int op;                 // CMP: operation; CALL: what; REDUCE: fold
  int sym, id;            // name; after resolving: variable, tensor, param, function
  int n;                  // children
  struct eini_syn **kid;
  unsigned char *inv;     // SUM: child is subtracted; TERM: child divides
  int nbind, *bind;       // REDUCE, MACRO: names; after resolving: variables
  struct eini_syn **bext; // their extents, or NULL
  int64_t *bpos;
  eini_row *row;          // ACCESS after resolving
  eini_edge *edge;        // ACCESS: per coordinate; NULL: none has a rule
  int64_t pos, len;       // bytes in the text
  int64_t ival, size;     // size: nodes of this tree
  double re;              // NUM
} eini_syn;

typedef struct eini_kids {  // a growing list of children
  eini_syn **kid;
  unsigned char *inv;
  int64_t n, cap;
} eini_kids;

// An interned name, and what it means in the program.
typedef struct eini_sym {
  const char *s;
  int64_t n;
  int next, cls, word;    // hash chain, number + 1; eini_word_kind and its number
  int kind, id;           // program-wide meaning: eini_sym_kind and its number
  int var;                // innermost index of that name in scope + 1
  int64_t pos;            // of its declaration; bad: it failed, stay silent about it
  int bad;
  int ndef, lastdef, read, isout;  // defining statements, the last one; read or output somewhere
  ein_dtype dtype;        // given on the left or by output
  int nindex;             // occurs as an index
  int open;               // tensor it defines, + 1, until its last piece is done
} eini_sym;

typedef enum eini_sym_kind {
  EINI_N_NONE, EINI_N_SIZE, EINI_N_PARAM, EINI_N_TENSOR, EINI_N_DEF, EINI_N_BAD
} eini_sym_kind;

// The names of a program, and what its text costs.
struct eini_names {
  eini_sym *sym;
  int64_t n, cap;
  int *slot, nslot;
  int64_t nodes;          // of trees
  eini_syn scrap;         // takes what rules write after a mistake
};

#define EINI_NAME_OF(p, i) \
  eini_cut((p)->names->sym[i].s, (p)->names->sym[i].n), (p)->names->sym[i].s

// The number of a name; -1 when out of memory.
static int eini_intern(eini_parser *p, const char *s, int64_t n) {
  struct eini_names *t = p->names;
  if (t->n >= t->nslot) {
    int want = t->nslot < 64 ? 64 : t->nslot * 4, *slot = EINI_NEW(p->arena, int, want);
    if (slot == NULL) return eini_pmem(p), -1;
    for (int64_t i = 0; i < t->n; i++) {
      eini_sym *v = &t->sym[i];
      int *head = &slot[eini_hash(v->s, (size_t)v->n, 0) & (uint64_t)(want - 1)];
      v->next = *head;
      *head = (int)i + 1;
    }
    t->slot = slot;
    t->nslot = want;
  }
  int *head = &t->slot[eini_hash(s, (size_t)n, 0) & (uint64_t)(t->nslot - 1)];
  for (int i = *head; i != 0; i = t->sym[i - 1].next) {
    if (t->sym[i - 1].n == n && memcmp(t->sym[i - 1].s, s, (size_t)n) == 0) return i - 1;
  }
  eini_sym *q = (eini_sym *)eini_grow(p->arena, t->sym, t->n, &t->cap, sizeof *q);
  if (q == NULL) return eini_pmem(p), -1;
  t->sym = q;
  q += t->n;
  memset(q, 0, sizeof *q);
  q->s = s;
  q->n = n;
  q->next = *head;
  q->cls = eini_word_class(p->g, s, n, &q->word);
  q->pos = -1;
  return (*head = (int)++t->n) - 1;
}

// The name at the current token; -1 when there is none.
static int eini_here(eini_parser *p) {
  return p->tok == EINI_T_NAME ? eini_intern(p, p->s + p->pos, p->len) : -1;
}

// ================================================================================================
// >>trees  syntax trees, and trees as expression nodes
// Takes tokens; gives trees in an arena. Chains of + - * / and or are flat lists, so the depth of
// a tree is bounded by the nesting limit. After a mistake new trees are scrap.
// ================================================================================================

#define EINI_EXPAND_MAX ((int64_t)1 << 20)  // nodes after macros

// ---- suggestions ----

typedef struct eini_near {
  const char *s, *best;   // what was written; the nearest so far
  int64_t n, nbest;
  int distance;           // only nearer names are taken
  char hint[96];
} eini_near;

static void eini_near_init(eini_near *w, const char *s, int64_t n) {
  memset(w, 0, sizeof *w);
  w->s = s;
  w->n = n;
  w->distance = n < 2 ? 0 : n < 4 ? 2 : 3;
}

// Takes a name that differs in one place only, in fewer bytes than the best so far.
static void eini_near_try(eini_near *w, const char *s, int64_t n) {
  int64_t most = eini_max64(w->n, n), least = eini_min64(w->n, n), a = 0, b = 0;
  while (a < least && s[a] == w->s[a]) a++;
  while (b < least - a && s[n - 1 - b] == w->s[w->n - 1 - b]) b++;
  if (most - a - b == 0 || most - a - b >= w->distance) return;
  w->distance = (int)(most - a - b);
  w->best = s;
  w->nbest = n;
}

static const char *eini_near_hint(eini_near *w) {
  if (w->best == NULL) return NULL;
  snprintf(w->hint, sizeof w->hint, "did you mean '%.*s'?", eini_cut(w->best, w->nbest), w->best);
  return w->hint;
}

static void eini_near_words(eini_near *w, const ein_graph *g) {
  const char *word;
  for (int i = 0, cls, id; (word = eini_known_word(g, i, &cls, &id)) != NULL; i++) {
    if (cls != EINI_W_DTYPE && cls != EINI_W_WORD) eini_near_try(w, word, (int64_t)strlen(word));
  }
}

static eini_called eini_called_of(eini_parser *p, const eini_syn *v) {
  const eini_sym *s = &p->names->sym[v->sym];
  eini_called f = {s->s, v->pos, s->n, v->len, s->cls, s->word, v->n};
  return f;
}

static void eini_unknown_function(eini_parser *p, const eini_syn *v) {
  eini_called f = eini_called_of(p, v);
  eini_near w;
  eini_near_init(&w, f.s, f.len);
  eini_near_words(&w, p->g);
  for (int64_t i = 0; i < p->names->n; i++) {
    const eini_sym *s = &p->names->sym[i];
    if (s->kind == EINI_N_DEF) eini_near_try(&w, s->s, s->n);
  }
  eini_no_function(p, &f, eini_near_hint(&w));
}

// ---- trees ----

static eini_syn *eini_syn_new(eini_parser *p, int kind, int64_t pos) {
  if (p->st == EIN_OK && p->names->nodes++ >= EINI_NODES_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, pos, 1, NULL, "the program has too many parts");
  eini_syn *v = p->st == EIN_OK ? EINI_NEW(p->arena, eini_syn, 1) : NULL;
  if (v == NULL) return eini_pmem(p), v;
  v->kind = (unsigned char)kind;
  v->pos = pos;
  v->size = 1;
  v->sym = v->id = -1;
  return v;
}

// A new tree for a rule of the grammar: never NULL.
static eini_syn *eini_part(eini_parser *p, int kind, int64_t pos) {
  eini_syn *v = eini_syn_new(p, kind, pos);
  return v != NULL ? v : &p->names->scrap;
}

static ein_status eini_kids_add(eini_parser *p, eini_kids *k, eini_syn *v, int inv) {
  if (v == NULL || p->st != EIN_OK) return p->st;
  int64_t cap = k->cap;
  eini_syn **kid = (eini_syn **)eini_grow(p->arena, (void *)k->kid, k->n, &cap, sizeof *kid);
  unsigned char *flag = (unsigned char *)eini_grow(p->arena, k->inv, k->n, &k->cap, 1);
  if (kid == NULL || flag == NULL) return eini_pmem(p);
  k->kid = kid;
  k->inv = flag;
  kid[k->n] = v;
  flag[k->n++] = (unsigned char)inv;
  return EIN_OK;
}

// Gives a tree its children.
static eini_syn *eini_syn_with(eini_syn *v, const eini_kids *k) {
  v->n = (int)k->n;
  v->kid = k->kid;
  v->inv = k->inv;
  for (int64_t i = 0; i < k->n; i++) v->size += k->kid[i]->size;
  return v;
}

// The same; the tree ends at the last token read.
static eini_syn *eini_close(eini_parser *p, eini_syn *v, const eini_kids *k) {
  v->len = p->end - v->pos;
  return eini_syn_with(v, k);
}

// A tree of one child or two; NULL after a mistake.
static eini_syn *eini_syn_of(eini_parser *p, int kind, int64_t pos, eini_syn *x, eini_syn *y) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_kids_add(p, &k, x, 0);
  eini_kids_add(p, &k, y, 0);
  eini_syn *v = eini_syn_new(p, kind, pos);
  return v == NULL ? v : eini_close(p, v, &k);
}

// ---- expressions ----

static eini_syn *eini_parse_expr(eini_parser *p, int level);  // expressions nest

// The number or constant at the current token, or NULL.
static eini_syn *eini_parse_num(eini_parser *p) {
  eini_literal c;
  if (!eini_accept_literal(p, &c)) return NULL;
  eini_syn *v = eini_part(p, c.truth ? EINI_S_BOOL : EINI_S_NUM, c.pos);
  v->len = c.len;
  v->exact = (unsigned char)c.exact;
  v->ival = c.ival;
  v->re = c.re;
  return v;
}

// name, name, ..] or name=extent: what a reduction or macro binds.
static void eini_parse_binds(eini_parser *p, eini_syn *v, int extents) {
  int64_t n = 0, cap[3] = {0, 0, 0};
  do {
    v->bind = (int *)eini_grow(p->arena, v->bind, n, &cap[0], sizeof *v->bind);
    v->bpos = (int64_t *)eini_grow(p->arena, v->bpos, n, &cap[1], sizeof *v->bpos);
    v->bext = (eini_syn **)eini_grow(p->arena, (void *)v->bext, n, &cap[2], sizeof *v->bext);
    if (v->bind == NULL || v->bpos == NULL || v->bext == NULL) {
      eini_pmem(p);
      return;
    }
    v->bind[n] = eini_here(p);
    v->bpos[n] = p->pos;
    eini_expect(p, EINI_T_NAME, "the name of an index");
    v->bext[n++] = extents && eini_accept(p, '=') ? eini_parse_expr(p, 3) : NULL;
  } while (eini_accept(p, ','));
  v->nbind = (int)n;
  eini_expect(p, ']', "',' or ']'");
}

// Expressions with commas between them.
static void eini_parse_list(eini_parser *p, eini_kids *k, int level) {
  do eini_kids_add(p, k, eini_parse_expr(p, level), 0);
  while (eini_accept(p, ','));
}

// A constant, wrap, clamp or reflect; '|' is read.
static eini_edge eini_parse_edge(eini_parser *p) {
  static const char *const words[] = {"wrap", "clamp", "reflect"};
  int word = eini_one_of(p, words, 3), minus = eini_accept(p, '-');
  eini_syn *c = word >= 0 ? NULL : eini_parse_num(p);
  eini_edge edge = {EINI_EDGE_CONST + word + 1, c};
  if (word >= 0) eini_lex(p);
  else if (c == NULL) eini_unexpected(p, "a number, wrap, clamp or reflect", NULL);
  else if (minus && c->kind == EINI_S_BOOL)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(c), NULL, "true and false have no sign");
  if (c != NULL && minus) c->ival = -c->ival;
  if (c != NULL && minus) c->re = -c->re;
  return edge;
}

// NAME[coordinate | edge, ..]: NAME and '[' are read. A rule after the last coordinate only is that
// of all.
static eini_syn *eini_parse_access(eini_parser *p, eini_syn *v) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_edge *rule = NULL;
  int64_t rules = 0, cap = 0, *at = NULL, cap2 = 0;
  for (int more = p->tok != ']'; more && p->st == EIN_OK; more = k.n > 0 && eini_accept(p, ',')) {
    eini_kids_add(p, &k, eini_parse_expr(p, 3), 0);
    if (!eini_accept(p, '|')) continue;
    rule = (eini_edge *)eini_grow(p->arena, rule, rules, &cap, sizeof *rule);
    at = (int64_t *)eini_grow(p->arena, at, rules, &cap2, sizeof *at);
    if (rule == NULL || at == NULL) return eini_pmem(p), v;
    at[rules] = k.n - 1;
    rule[rules++] = eini_parse_edge(p);
  }
  eini_expect(p, ']', "',' or ']'");
  if (rules > 0 && (v->edge = EINI_NEW(p->arena, eini_edge, k.n)) == NULL) eini_pmem(p);
  for (int64_t i = 0; i < k.n && v->edge != NULL && rules == 1 && at[0] == k.n - 1; i++)
    v->edge[i] = rule[0];
  for (int64_t i = 0; i < rules && v->edge != NULL; i++) v->edge[at[i]] = rule[i];
  static const char *const behind[] = {"for", "and", "or"};
  if (p->tok == '[' || p->tok == '(' || (p->tok == EINI_T_NAME && eini_one_of(p, behind, 3) < 0))
    eini_unexpected(p, "an operator", "write products with *");
  return eini_close(p, v, &k);
}

// size(NAME) or size(NAME, axis)
static eini_syn *eini_parse_size(eini_parser *p, eini_syn *v) {
  eini_expect(p, '(', "'('");
  v->kind = EINI_S_SIZE;
  v->sym = eini_here(p);
  eini_expect(p, EINI_T_NAME, "the name of a size, an index or a tensor");
  int axis = eini_accept(p, ',');
  v->ival = axis ? p->ival : -1;
  if (axis && !p->exact) eini_unexpected(p, "the number of an axis", NULL);
  if (axis) eini_expect(p, EINI_T_NUM, "the number of an axis");
  eini_expect(p, ')', "')'");
  v->len = p->end - v->pos;
  return v;
}

// Calls, reductions and macros; the name is read.
static eini_syn *eini_parse_apply(eini_parser *p, eini_syn *v) {
  int cls = p->names->sym[v->sym].cls, macro = cls == EINI_W_MACRO, listed = p->tok == '[';
  int fold = cls == EINI_W_FOLD || cls == EINI_W_NORM || cls == EINI_W_MONOID;
  eini_kids k = {NULL, NULL, 0, 0};
  v->kind = fold ? EINI_S_REDUCE : macro ? EINI_S_MACRO : EINI_S_CALL;
  v->op = p->names->sym[v->sym].word;
  if ((fold || macro) && eini_accept(p, '['))
    eini_parse_binds(p, v, fold);
  else if (macro)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), "like softmax[j](A[i,j])",
              "%.*s needs its indices in brackets", EINI_NAME_OF(p, v->sym));
  if (!eini_accept(p, '('))
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL,
              "'%.*s' is a word of the language: '(' must follow", EINI_NAME_OF(p, v->sym));
  if (p->tok == ')') eini_unexpected(p, "an expression", NULL);
  eini_parse_list(p, &k, 0);
  eini_expect(p, ')', "')' or an operator");
  if (fold && k.n > 1) {  // max and min of several expressions are functions
    v->kind = EINI_S_CALL;
    if (listed || (v->op != EINI_MAX && v->op != EINI_MIN) || cls != EINI_W_FOLD)
      eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), NULL, "the reduction %.*s takes one expression",
                EINI_NAME_OF(p, v->sym));
  }
  return eini_close(p, v, &k);
}

static eini_syn *eini_parse_primary(eini_parser *p) {
  eini_syn *v = eini_parse_num(p);
  if (v != NULL) return v;
  int64_t pos = p->pos;
  if (eini_accept(p, '(')) {
    v = eini_parse_expr(p, 0);
    eini_expect(p, ')', "')' or an operator");
    return eini_syn_of(p, EINI_S_PAREN, pos, v, NULL);
  }
  int size = eini_word(p, "size"), sym = eini_here(p);
  int cls = sym >= 0 ? p->names->sym[sym].cls : EINI_W_WORD;
  if ((cls == EINI_W_WORD || cls == EINI_W_DTYPE) && !size) eini_no_value(p, cls);
  if (p->st != EIN_OK) return NULL;
  v = eini_part(p, EINI_S_NAME, pos);
  v->sym = sym;
  v->len = p->len;
  eini_lex(p);
  if (size) return eini_parse_size(p, v);
  if (cls != EINI_W_FREE || p->tok == '(') return eini_parse_apply(p, v);
  if (!eini_accept(p, '[')) return v;
  v->kind = EINI_S_ACCESS;
  return eini_parse_access(p, v);
}

// Signs, powers, and not, which stands on level 2.
static eini_syn *eini_parse_unary(eini_parser *p, int level) {
  int64_t pos = p->pos;
  int minus = p->tok == '-';
  eini_syn *v = NULL;
  if (!eini_deeper(p)) return NULL;
  if (level == 2) {
    eini_lex(p);
    v = eini_syn_of(p, EINI_S_NOT, pos, eini_parse_expr(p, 2), NULL);
  } else if (eini_accept(p, '+') || eini_accept(p, '-')) {
    v = eini_parse_unary(p, 5);
    if (minus) v = eini_syn_of(p, EINI_S_NEG, pos, v, NULL);
  } else {
    v = eini_parse_primary(p);
    if (eini_accept(p, '^')) v = eini_syn_of(p, EINI_S_POW, pos, v, eini_parse_unary(p, 5));
  }
  p->depth--;
  return v;
}

// The trees of the operators of a level.
static const unsigned char eini_level_kind[] = {EINI_S_OR,  EINI_S_AND,  EINI_S_CMP, EINI_S_SUM,
                                                EINI_S_TERM, EINI_S_NEG, EINI_S_POW};

static eini_syn *eini_parse_expr(eini_parser *p, int level) {
  if (level == 5 || (level == 2 && eini_word(p, "not"))) return eini_parse_unary(p, level);
  eini_syn *x = eini_parse_expr(p, level + 1), *v = NULL;
  eini_kids k = {NULL, NULL, 0, 0};
  int n = 0;
  for (const eini_infix_row *op; x && (op = eini_accept_infix(p, level, n)) != NULL; n++) {
    if (v == NULL) {
      v = eini_part(p, eini_level_kind[level], x->pos);
      v->op = op->op;
      eini_kids_add(p, &k, x, 0);
    }
    eini_kids_add(p, &k, eini_parse_expr(p, level + 1), op->inverse);
  }
  return v == NULL ? x : eini_close(p, v, &k);
}

// ---- trees to expression nodes ----

static int eini_emit_leaf(eini_emit *em, const eini_syn *v);  // what the surroundings decide
static int eini_emit_tree(eini_emit *em, const eini_syn *v);  // trees nest

// A flat list as a chain from the left.
static int eini_emit_list(eini_emit *em, const eini_syn *v, int op, int inverse) {
  int x = eini_emit_tree(em, v->kid[0]);
  for (int i = 1; i < v->n && x >= 0; i++) {
    int y = eini_emit_tree(em, v->kid[i]);
    x = eini_emit_op(em, v->inv[i] ? inverse : op, v->kid[i]->pos, x, y);
  }
  return x;
}

static int eini_tree_call(eini_emit *em, const eini_syn *v) {
  eini_called f = eini_called_of(em->p, v);
  int op = f.word == EINI_MAX ? EINI_OP_MAX : EINI_OP_MIN, arg[EINI_ARGS_MAX] = {0};
  int want = eini_call_arity(em->p->g, f.cls, f.word);
  if (f.cls == EINI_W_FOLD) return eini_emit_list(em, v, op, op);  // max and min of several
  if (want < 0) eini_unknown_function(em->p, v);
  else if (v->n != want) eini_wrong_count(em->p, &f, want, NULL);
  if (v->n != want) return -1;
  for (int i = 0; i < v->n; i++) {
    if ((arg[i] = eini_emit_tree(em, v->kid[i])) < 0) return -1;
  }
  return eini_emit_call(em, &f, arg);
}

static int eini_emit_tree(eini_emit *em, const eini_syn *v) {
  eini_literal c = {v->pos, v->len, v->ival, v->re, v->kind == EINI_S_BOOL, v->exact};
  switch (v->kind) {
    case EINI_S_NUM: case EINI_S_BOOL: return eini_emit_literal(em, &c);
    case EINI_S_PAREN: return eini_emit_tree(em, v->kid[0]);
    case EINI_S_NEG: case EINI_S_NOT:
      return eini_emit_op(em, v->kind == EINI_S_NEG ? EINI_OP_NEG : EINI_OP_NOT, v->pos,
                          eini_emit_tree(em, v->kid[0]), 0);
    case EINI_S_CMP: return eini_emit_list(em, v, v->op, v->op);
    case EINI_S_CALL: return eini_tree_call(em, v);
    case EINI_S_SUM: return eini_emit_list(em, v, EINI_OP_ADD, EINI_OP_SUB);
    case EINI_S_TERM: return eini_emit_list(em, v, EINI_OP_MUL, EINI_OP_DIV);
    case EINI_S_AND: return eini_emit_list(em, v, EINI_OP_AND, EINI_OP_AND);
    case EINI_S_OR: return eini_emit_list(em, v, EINI_OP_OR, EINI_OP_OR);
    case EINI_S_POW: return eini_emit_list(em, v, EINI_OP_POW, EINI_OP_POW);
    default: return eini_emit_leaf(em, v);
  }
}

// ================================================================================================
// >>program  from trees to a graph
// Takes a program's text, views and sizes; gives statements whose every access is proved. Steps per
// statement: resolve names and macros, solve extents, check bounds, emit (GRAMMAR rules 1 to 11).
// ================================================================================================

enum {  // statements
  EINI_L_INPUT, EINI_L_PARAM, EINI_L_OUTPUT, EINI_L_DEF, EINI_L_DEFINE, EINI_L_GRAD
};

// A statement as written. INPUT: kids ACCESS, whose kids are dims (NUM, or NAME with a literal as
// kid); PARAM: NAME with a default as kid; DEF: sym, its parameters in bind, kid 0 the body;
// DEFINE: sym, kid 0 the right side, coordinates in the kids of left, extents in left->bext;
// GRAD: NAMEs, the loss, the seed or NULL, nparam after wrt and as many after as.
typedef struct eini_line {
  int kind, sym, n;
  int64_t pos, len;
  ein_dtype dtype;
  eini_syn **kid;
  eini_syn *left;
  eini_kids given;        // DEFINE: names and extents after "for", in turn
  int nparam, *param;     // DEF; GRAD: the number of gradients
  int64_t prev;           // DEFINE: the line of the piece before, + 1
  int64_t stmt;           // DEFINE: its statement in the graph, -1 before; DEF: its number
} eini_line;

typedef struct eini_var {  // an index of one statement
  int sym, mark, prev;     // prev: the one it hides, + 1
  int kind;                // eini_var_kind
  int col;                 // its number in the statement being emitted
  int stamp, bound;        // of walks
  int64_t extent;          // -1: not known
  int64_t pos, len;
  const eini_syn *by;      // access and axis that gave the extent
  int axis;
  int64_t first;           // of walks: where an access with it stands
} eini_var;

typedef enum eini_var_kind {
  EINI_V_FREE, EINI_V_NAMED, EINI_V_UNNAMED, EINI_V_IMPLICIT, EINI_V_SCAN
} eini_var_kind;

typedef struct eini_dim {  // a declared size
  int sym, by, axis;       // by: the input whose view or literal fixed it, or -1
  int64_t value;           // -1: open
} eini_dim;

// A call of a def being expanded: arguments are trees in the caller's surroundings.
typedef struct eini_env {
  const struct eini_env *up;
  const eini_line *def;
  eini_syn **arg;
  int mark;
} eini_env;

typedef struct eini_padded {  // what edge rules made of a tensor
  struct eini_padded *next;
  int from, to;
  ein_dtype dtype;
  const eini_edge *edge;      // per axis, as are the elements added before and behind
  int64_t *low, *high;
} eini_padded;

typedef struct eini_prog {
  eini_parser p;            // texts, mistakes
  struct eini_names names;
  ein_graph *g;
  const ein_program_desc *desc;
  eini_line *line;
  int64_t nline, capline, cur;
  eini_dim *dim;
  int64_t ndim, capdim;
  eini_line **def;          // by id
  int64_t ndef, capdef;
  ein_dtype dtype;          // of inputs without one
  ein_dtype *declared;      // per input tensor: what reads are converted to, or EIN_NONE
  int64_t ndeclared, capdeclared;
  int outputs;              // there is an output statement
  // the current statement
  eini_var *var;
  int64_t nvar, capvar;
  int stamp, mark;
  int64_t expanded, fresh;
  eini_kids access;         // resolved
  eini_padded *padded;
  int64_t cells;            // of all maps
} eini_prog;

// ---- statements ----

// A new name of the program, not one of the language's, as a tree.
static eini_syn *eini_parse_new(eini_parser *p, int kind, const char *what) {
  eini_syn *v = eini_part(p, kind, p->pos);
  v->sym = eini_here(p);
  if (v->sym >= 0 && p->names->sym[v->sym].cls != EINI_W_FREE)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(p), NULL, "'%.*s' is a word of the language",
              EINI_NAME_OF(p, v->sym));
  eini_expect(p, EINI_T_NAME, what);
  v->len = p->end - v->pos;
  return v;
}

// NAME[dim, ..] of an input.
static eini_syn *eini_parse_input(eini_parser *p) {
  eini_syn *v = eini_parse_new(p, EINI_S_ACCESS, "the name of an input"), *d;
  int64_t len = v->len;
  eini_kids k = {NULL, NULL, 0, 0};
  eini_expect(p, '[', "'[' and the extents");
  for (int more = p->tok != ']'; more; more = eini_accept(p, ',')) {
    if (p->tok == EINI_T_NUM) {
      d = eini_parse_num(p);
    } else {
      d = eini_parse_new(p, EINI_S_NAME, "a size or an extent");
      d->op = eini_accept(p, '=');
      d->exact = d->op ? (unsigned char)p->exact : 1;
      d->ival = d->op ? p->ival : -1;
      if (d->op) eini_expect(p, EINI_T_NUM, "an extent");
    }
    d->len = p->end - d->pos;
    if (!d->exact) eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(d), NULL, "an extent is an int64");
    eini_kids_add(p, &k, d, 0);
  }
  eini_expect(p, ']', "',' or ']'");
  eini_close(p, v, &k)->len = len;
  return v;
}

// NAME or NAME = number of a param or an output.
static eini_syn *eini_parse_param(eini_parser *p, int param) {
  eini_syn *v = eini_parse_new(p, EINI_S_NAME, param ? "the name of a param"
                                                     : "the name of a tensor");
  v->op = param && eini_accept(p, '=');
  v->re = v->op && eini_accept(p, '-') ? -p->re : p->re;
  if (v->op) eini_expect(p, EINI_T_NUM, "a number");
  return v;
}

// def NAME(a, b); the right side follows.
static void eini_parse_def(eini_parser *p, eini_line *l) {
  eini_lex(p);
  eini_syn *v = eini_parse_new(p, EINI_S_NAME, "the name of a macro");
  l->pos = v->pos;
  l->len = v->len;
  l->sym = v->sym;
  l->param = EINI_NEW(p->arena, int, 64);
  if (l->param == NULL) eini_pmem(p);
  eini_expect(p, '(', "'('");
  do {
    int sym = eini_parse_new(p, EINI_S_NAME, "the name of a parameter")->sym;
    if (l->nparam >= 64)
      eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(v), NULL, "more than 64 parameters");
    for (int i = 0; p->st == EIN_OK && i < l->nparam; i++) {
      if (l->param[i] == sym)
        eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "the parameter '%.*s' occurs twice",
                  EINI_NAME_OF(p, sym));
    }
    if (p->st == EIN_OK) l->param[l->nparam++] = sym;
  } while (eini_accept(p, ','));
  eini_expect(p, ')', "',' or ')'");
}

// The left side of a definition: NAME[left, ..] : dtype
static void eini_parse_left(eini_parser *p, eini_line *l) {
  eini_kids k = {NULL, NULL, 0, 0}, e = {NULL, NULL, 0, 0};
  l->left = eini_parse_new(p, EINI_S_ACCESS, "a statement");
  l->sym = l->left->sym;
  int more = eini_accept(p, '['), list = more;
  for (more = more && p->tok != ']'; more; more = eini_accept(p, ',')) {
    eini_syn *x = eini_parse_expr(p, 3), *extent = x;
    if (x != NULL && x->kind == EINI_S_NAME && eini_accept(p, '=')) extent = eini_parse_expr(p, 3);
    eini_kids_add(p, &k, x, 0);
    eini_kids_add(p, &e, extent, extent == x);  // inv: no extent
  }
  if (list) eini_expect(p, ']', "',' or ']'");
  eini_close(p, l->left, &k);
  l->left->bext = e.kid;
  l->left->inv = e.inv;
  l->len = p->end - l->pos;
}

// [: dtype] at the end of a declaration or before '='.
static void eini_parse_dtype(eini_parser *p, eini_line *l) {
  if (!eini_accept(p, ':')) return;
  int sym = eini_here(p);
  if (sym >= 0 && p->names->sym[sym].cls == EINI_W_DTYPE)
    l->dtype = (ein_dtype)p->names->sym[sym].word;
  else
    eini_unexpected(p, "a dtype", "f32 f64 c64 c128 f16 bf16 i8 i16 i32 i64 u8 bool");
  eini_lex(p);
}

static void eini_parse_word(eini_parser *p, const char *word) {
  if (eini_word(p, word)) eini_lex(p);
  else eini_unexpected(p, word, NULL);
}

// NAME wrt NAME, .. as NAME, .. seed NAME
static void eini_parse_grad(eini_parser *p, eini_line *l, eini_kids *k) {
  int64_t n[2];
  eini_syn *seed = eini_part(p, EINI_S_NAME, p->pos);
  eini_lex(p);
  eini_kids_add(p, k, eini_parse_new(p, EINI_S_NAME, "the name of a scalar"), 0);
  eini_kids_add(p, k, seed, 0);
  for (int as = 0; as < 2; as++) {
    eini_parse_word(p, as ? "as" : "wrt");
    do eini_kids_add(p, k, eini_parse_new(p, EINI_S_NAME, "the name of a tensor"), 0);
    while (eini_accept(p, ','));
    n[as] = k->n;
  }
  l->len = p->end - l->pos;
  l->nparam = (int)(n[0] - 2);
  if (p->st == EIN_OK && n[1] - n[0] != l->nparam)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(l), NULL, "%d names after wrt, but %d after as",
              l->nparam, (int)(n[1] - n[0]));
  if (p->st == EIN_OK && eini_word(p, "seed")) {
    eini_lex(p);
    k->kid[1] = eini_parse_new(p, EINI_S_NAME, "the name of a tensor");
  }
}

static void eini_parse_line(eini_parser *p, eini_line *l) {
  static const char *const words[] = {"input", "param", "output", "def"};
  eini_kids k = {NULL, NULL, 0, 0};
  int word = eini_one_of(p, words, 4);
  memset(l, 0, sizeof *l);
  l->pos = p->pos;
  l->sym = -1;
  l->stmt = -1;
  l->kind = eini_word(p, "grad") ? EINI_L_GRAD : word < 0 ? EINI_L_DEFINE : word;
  if (l->kind == EINI_L_DEF) {
    eini_parse_def(p, l);
  } else if (l->kind == EINI_L_GRAD) {
    eini_parse_grad(p, l, &k);
  } else if (l->kind == EINI_L_DEFINE) {
    eini_parse_left(p, l);
  } else {
    eini_lex(p);
    do eini_kids_add(p, &k, word == 0 ? eini_parse_input(p) : eini_parse_param(p, word == 1), 0);
    while (eini_accept(p, ','));
  }
  if (l->kind != EINI_L_DEF && l->kind != EINI_L_GRAD) eini_parse_dtype(p, l);
  if (l->kind == EINI_L_DEF || l->kind == EINI_L_DEFINE) {
    if (p->tok == EINI_T_NAME) {
      eini_near w;
      eini_near_init(&w, p->names->sym[l->sym].s, p->names->sym[l->sym].n);
      for (int i = 0; i < 4; i++) eini_near_try(&w, words[i], (int64_t)strlen(words[i]));
      eini_unexpected(p, "'='", eini_near_hint(&w));
    }
    eini_expect(p, '=', "'='");
    eini_kids_add(p, &k, eini_parse_expr(p, 0), 0);
  }
  for (int more = l->kind == EINI_L_DEFINE && eini_word(p, "for"); more; more = p->tok == ',') {
    eini_lex(p);
    eini_kids_add(p, &l->given, eini_parse_new(p, EINI_S_NAME, "the name of an index"), 0);
    eini_expect(p, '=', "'='");
    eini_kids_add(p, &l->given, eini_parse_expr(p, 3), 0);
  }
  l->kid = k.kid;
  l->n = (int)k.n;
  if (p->tok != EINI_T_EOL && p->tok != EINI_T_END)
    eini_unexpected(p, "an operator or the end of the line", NULL);
}

// After a mistake: names on the failed lines are marked, so that their users stay silent; reading
// goes on behind the line, or at the line where an unclosed bracket was noticed.
static void eini_parse_recover(eini_parser *p, int64_t from) {
  int64_t to = p->pos;
  const char *eol = (const char *)memchr(p->s + from, '\n', (size_t)(to - from));
  if (eol != NULL && p->unclosed) to = eol - p->s;
  else while (to < p->n && p->s[to] != '\n' && p->s[to] != ';') to++;
  p->brackets = p->depth = p->unclosed = 0;
  for (p->at = from; p->at < to;) {
    eini_token(p);
    int sym = p->pos < to ? eini_here(p) : -1;
    if (sym >= 0) p->names->sym[sym].bad = 1;
  }
  p->at = to;
  p->brackets = 0;
  p->st = EIN_OK;
  eini_lex(p);
}

static int eini_diag_full(const eini_parser *p) {
  return p->status == EIN_ERR_NO_MEMORY ||
         (p->diag != NULL && p->diag->error != NULL && p->diag->count >= p->diag->max);
}

static void eini_parse_program(eini_prog *q) {
  eini_parser *p = &q->p;
  while (!eini_diag_full(p)) {
    while (eini_accept(p, EINI_T_EOL)) continue;
    if (p->tok == EINI_T_END) return;
    int64_t from = p->pos;
    eini_line *l = (eini_line *)eini_grow(p->arena, q->line, q->nline, &q->capline, sizeof *l);
    if (l == NULL) eini_pmem(p);
    else eini_parse_line(p, &(q->line = l)[q->nline]);
    if (p->st == EIN_OK) q->nline++;
    else eini_parse_recover(p, from);
  }
}

// ================================================================================================
// >>scope  names, macros, coordinates
// Takes a statement's tree; gives a tree whose accesses are affine rows over numbered indices, with
// all extents known (GRAMMAR rules 1 to 6).
// ================================================================================================

static int64_t eini_floordiv(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static eini_sym *eini_sym_of(eini_prog *q, int sym) { return &q->names.sym[sym]; }

static int eini_find_var(const eini_prog *q, int sym, int mark) {
  for (int i = q->names.sym[sym].var; i != 0; i = q->var[i - 1].prev)
    if (q->var[i - 1].mark == mark) return i - 1;
  return -1;
}

// A mistake about a name: "'name' what".
static ein_status eini_perr_name(eini_parser *p, ein_status st, int64_t pos, int sym,
                                 const char *hint, const char *what) {
  return eini_perr(p, st, pos, p->names->sym[sym].n, hint, "'%.*s' %s", EINI_NAME_OF(p, sym), what);
}

static int eini_push_var(eini_prog *q, int sym, int mark, int kind, int64_t pos) {
  eini_parser *p = &q->p;
  if (p->names->sym[sym].cls != EINI_W_FREE)
    return eini_perr_name(p, EIN_ERR_NAME, pos, sym, NULL, "is a word of the language"), -1;
  eini_var *v = (eini_var *)eini_grow(p->arena, q->var, q->nvar, &q->capvar, sizeof *v);
  eini_var made = {sym, mark, p->names->sym[sym].var, kind, 0, 0, 0, -1, pos,
                   p->names->sym[sym].n, NULL, -1, -1};
  if (v == NULL) return eini_pmem(p), -1;
  q->var = v;
  v[q->nvar] = made;
  p->names->sym[sym].var = (int)q->nvar + 1;
  return (int)q->nvar++;
}

static void eini_pop_var(eini_prog *q, int v) { q->names.sym[q->var[v].sym].var = q->var[v].prev; }

// The argument that a name stands for inside a macro, or NULL.
static eini_syn *eini_env_arg(const eini_env *env, int sym) {
  for (int i = 0; env != NULL && i < env->def->nparam; i++)
    if (env->def->param[i] == sym) return env->arg[i];
  return NULL;
}

static int eini_mark(const eini_env *env) { return env == NULL ? 0 : env->mark; }

// Counts the steps of macro expansion and bounds the depth of trees; 0 when out of bounds.
static int eini_step(eini_prog *q, const eini_syn *v, const eini_env *env) {
  if (q->p.st != EIN_OK) return 0;
  if ((env != NULL && q->expanded++ >= EINI_EXPAND_MAX) || q->p.depth > 12 * q->p.max_depth + 64) {
    eini_perr(&q->p, EIN_ERR_TOO_LARGE, EINI_AT(v), NULL, "macros expand to too much");
    return 0;
  }
  return 1;
}

static ein_status eini_too_wide(eini_parser *p, int64_t pos, int64_t len) {
  return eini_perr(p, EIN_ERR_TOO_LARGE, pos, len, NULL, "this does not fit 64 bits");
}

// The surroundings of a macro's body; 0 when v is no call of a macro (reported unless quiet).
static int eini_enter_def(eini_prog *q, const eini_syn *v, const eini_env *env, eini_env *in,
                          int quiet) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_DEF && (env == NULL || s->id < env->def->stmt)) {
    in->up = env;
    in->def = q->def[s->id];
    in->arg = v->kid;
    in->mark = ++q->mark;
    if (v->n == in->def->nparam) return 1;
    eini_called f = eini_called_of(p, v);
    if (!quiet) eini_wrong_count(p, &f, in->def->nparam, NULL);
  } else if (!quiet && s->kind == EINI_N_DEF) {
    eini_perr_name(p, EIN_ERR_NAME, v->pos, v->sym, NULL,
                   "is used in its own or an earlier definition");
  } else if (!quiet && (s->kind == EINI_N_BAD || s->bad)) {
    p->st = EIN_ERR_NAME;
  } else if (!quiet) {
    eini_unknown_function(p, v);
  }
  return 0;
}

// ---- which indices does an expression bring in? ----

// Makes a variable of an index of an access that no scope binds. Variables before from that were
// not written as free or named indices do not count: one index cannot be reduced twice.
static void eini_scan_name(eini_prog *q, int sym, const eini_env *env, int kind, int64_t from,
                           int64_t pos) {
  const eini_sym *s = eini_sym_of(q, sym);
  int v = eini_find_var(q, sym, eini_mark(env));
  int again = v >= 0 && v < from &&
              (q->var[v].kind == EINI_V_UNNAMED || q->var[v].kind == EINI_V_IMPLICIT);
  if (s->kind == EINI_N_TENSOR || s->kind == EINI_N_PARAM || s->cls != EINI_W_FREE) return;
  if (v < 0 || again) eini_push_var(q, sym, eini_mark(env), kind, pos);
}

static void eini_scan(eini_prog *q, const eini_syn *v, const eini_env *env, int kind, int64_t from,
                      int coord) {
  if (!eini_step(q, v, env)) return;
  q->p.depth++;
  if (v->kind == EINI_S_NAME) {
    const eini_syn *arg = eini_env_arg(env, v->sym);
    if (arg != NULL) eini_scan(q, arg, env->up, kind, from, coord);
    else if (coord) eini_scan_name(q, v->sym, env, kind, from, v->pos);
  } else if (v->kind == EINI_S_MACRO) {
    for (int i = 0; i < v->nbind; i++) eini_scan_name(q, v->bind[i], env, kind, from, v->bpos[i]);
  } else if (v->kind == EINI_S_CALL && eini_sym_of(q, v->sym)->cls == EINI_W_FREE) {
    eini_env in;
    if (eini_enter_def(q, v, env, &in, 1)) eini_scan(q, in.def->kid[0], &in, kind, from, 0);
  } else if (v->kind == EINI_S_REDUCE) {
    int64_t first = q->nvar;
    for (int i = 0; i < v->nbind; i++)
      if (eini_push_var(q, v->bind[i], eini_mark(env), EINI_V_SCAN, v->bpos[i]) < 0) break;
    int64_t hidden = q->nvar;
    if (v->nbind > 0) eini_scan(q, v->kid[0], env, kind, from, 0);
    for (int64_t i = hidden - 1; i >= first; i--) {  // unlink below the variables found meanwhile
      int *link = &q->names.sym[q->var[i].sym].var;
      while (*link != (int)i + 1) link = &q->var[*link - 1].prev;
      *link = q->var[i].prev;
    }
  } else {
    for (int i = 0; i < v->n; i++)
      eini_scan(q, v->kid[i], env, kind, from, coord || v->kind == EINI_S_ACCESS);
  }
  q->p.depth--;
}

// ---- integer constants and affine coordinates ----

// What size(..) names: an index (its variable), or a number known now. -1 after a mistake.
static int eini_size_of(eini_prog *q, const eini_syn *v, const eini_env *env, int *var,
                        int64_t *value) {
  eini_parser *p = &q->p;
  int sym = v->sym;
  const eini_syn *arg = eini_env_arg(env, sym);
  while (arg != NULL && arg->kind == EINI_S_NAME) {
    sym = arg->sym;
    env = env->up;
    arg = eini_env_arg(env, sym);
  }
  const eini_sym *s = eini_sym_of(q, sym);
  *var = v->ival < 0 ? eini_find_var(q, sym, eini_mark(env)) : -1;
  *value = -1;
  if (s->kind == EINI_N_SIZE && v->ival < 0) *value = q->dim[s->id].value;
  if (s->kind == EINI_N_TENSOR && *var < 0) {
    const eini_tensor *t = &q->g->tensor[s->id];
    int axis = v->ival < 0 && t->rank == 1 ? 0 : (int)eini_min64(v->ival, INT_MAX);
    if (axis < 0 || axis >= t->rank) {
      return eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), "size(X, 0) is the extent of the first axis",
                       "'%s' has %d axes", t->name, t->rank), -1;
    }
    *value = t->shape[axis];
  }
  if (*var >= 0 || *value >= 0) return 0;
  if (s->kind == EINI_N_BAD || (s->bad && s->kind == EINI_N_NONE)) p->st = EIN_ERR_NAME;
  return eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "'%.*s' is not a size, an index in scope or "
                   "a tensor", EINI_NAME_OF(p, sym)), -1;
}

typedef struct eini_rowbuf {
  eini_row row;
  int64_t cap, cap2;
} eini_rowbuf;

static ein_status eini_row_term(eini_prog *q, eini_rowbuf *b, int var, int64_t coef) {
  int *v = (int *)eini_grow(q->p.arena, b->row.var, b->row.n, &b->cap, sizeof *v);
  int64_t *c = (int64_t *)eini_grow(q->p.arena, b->row.coef, b->row.n, &b->cap2, sizeof *c);
  if (v == NULL || c == NULL) return eini_pmem(&q->p);
  b->row.var = v;
  b->row.coef = c;
  v[b->row.n] = var;
  c[b->row.n++] = coef;
  return EIN_OK;
}

static void eini_not_affine(eini_prog *q, const eini_syn *v, int sizes) {
  int access = v->kind == EINI_S_ACCESS;
  eini_perr(&q->p, sizes ? EIN_ERR_SHAPE : access ? EIN_ERR_UNSUPPORTED : EIN_ERR_SYNTAX,
            EINI_AT(v), !sizes ? "coordinates are sums of indices times integers, like 2*i+j-1" :
            v->kind == EINI_S_TERM ? "div(a,b) divides extents" : NULL, "%s",
            sizes ? "an extent is an expression of integers and sizes" :
            access ? "data-dependent coordinates are outside the language" :
            "this coordinate is not affine");
}

static int eini_const(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                      int64_t *out);
static void eini_affine(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                        int64_t scale, eini_rowbuf *b);

// Adds the value of a name that is no macro's parameter to a row; gives what is constant in it.
static int64_t eini_affine_name(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                                int64_t scale, eini_rowbuf *b) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  int var = eini_find_var(q, v->sym, eini_mark(env));
  char hint[128];
  if (sizes && s->kind == EINI_N_SIZE) return q->dim[s->id].value;
  if (sizes) {
    eini_not_affine(q, v, sizes);
  } else if (var >= 0) {
    eini_row_term(q, b, var, scale);
  } else if (s->kind == EINI_N_TENSOR || s->kind == EINI_N_PARAM) {
    eini_perr_name(p, EIN_ERR_UNSUPPORTED, v->pos, v->sym, NULL,
                   "is no index: data-dependent coordinates are outside the language");
  } else {
    snprintf(hint, sizeof hint, "name the reduction: sum[%.*s](..)", EINI_NAME_OF(p, v->sym));
    eini_perr_name(p, EIN_ERR_NAME, v->pos, v->sym, hint, "is an index that is not bound here");
  }
  return 0;
}

// Adds scale * a product to a row: at most one factor is not constant.
static void eini_affine_term(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                             int64_t scale, eini_rowbuf *b) {
  eini_rowbuf x, y;
  int over = 0;
  memset(&x, 0, sizeof x);
  for (int i = 0; i < v->n && q->p.st == EIN_OK; i++) {
    memset(&y, 0, sizeof y);
    eini_affine(q, v->kid[i], env, sizes, 1, &y);
    if (v->inv[i] || (x.row.n > 0 && y.row.n > 0)) eini_not_affine(q, v, sizes);
    else if (y.row.n > 0) x = y;
    else over |= eini_mul_overflow(scale, y.row.offset, &scale);
  }
  if (q->p.st != EIN_OK) return;
  if (x.row.n == 0) x.row.offset = 1;
  over |= eini_muladd_overflow(scale, x.row.offset, b->row.offset, &b->row.offset);
  for (int i = 0; i < x.row.n; i++) {
    over |= eini_mul_overflow(x.row.coef[i], scale, &x.row.coef[i]);
    eini_row_term(q, b, x.row.var[i], x.row.coef[i]);
  }
  if (over) eini_too_wide(&q->p, EINI_AT(v));
}

// Adds scale * v to a row. sizes: it is an extent, where declared sizes stand for their values.
static void eini_affine(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                        int64_t scale, eini_rowbuf *b) {
  eini_parser *p = &q->p;
  const eini_syn *arg = v->kind == EINI_S_NAME ? eini_env_arg(env, v->sym) : NULL;
  int64_t c = 0, d = 0, back;
  int var;
  if (!eini_step(q, v, env)) return;
  p->depth++;
  switch (v->kind) {
    case EINI_S_NUM:
      c = v->ival;
      if (v->exact) break;
      eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), NULL, "an integer of 64 bits is needed here");
      break;
    case EINI_S_NAME:
      if (arg != NULL) eini_affine(q, arg, env->up, sizes, scale, b);
      else c = eini_affine_name(q, v, env, sizes, scale, b);
      break;
    case EINI_S_SIZE:
      if (eini_size_of(q, v, env, &var, &c) < 0) break;
      if (var >= 0 && q->var[var].extent >= 0) c = q->var[var].extent;
      if (c >= 0) break;
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "the extent of '%.*s' is not known here",
                EINI_NAME_OF(p, v->sym));
      break;
    case EINI_S_PAREN: case EINI_S_SUM: case EINI_S_NEG:
      for (int i = 0; i < v->n && p->st == EIN_OK; i++) {
        if (eini_mul_overflow(scale, v->kind == EINI_S_NEG || v->inv[i] ? -1 : 1, &back))
          eini_too_wide(p, EINI_AT(v));
        else eini_affine(q, v->kid[i], env, sizes, back, b);
      }
      break;
    case EINI_S_TERM: eini_affine_term(q, v, env, sizes, scale, b); break;
    default:  // div and mod of constants
      if (v->kind != EINI_S_CALL || v->n != 2 ||
          (v->op != EINI_OP_FLOORDIV && v->op != EINI_OP_MOD) ||
          p->names->sym[v->sym].cls != EINI_W_OP) {
        eini_not_affine(q, v, sizes);
      } else if (eini_const(q, v->kid[0], env, sizes, &c) > 0 &&
                 eini_const(q, v->kid[1], env, sizes, &d) > 0 && d > 0) {
        back = eini_floordiv(c, d);
        c = v->op == EINI_OP_MOD ? c - back * d : back;
      } else {
        eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "division by %lld", (long long)d);
      }
  }
  p->depth--;
  if (p->st == EIN_OK && eini_muladd_overflow(scale, c, b->row.offset, &b->row.offset))
    eini_too_wide(p, EINI_AT(v));
}

// One coordinate: every variable once, no zero coefficients, nothing near the limits of 64 bits.
static eini_row eini_affine_row(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_rowbuf b;
  memset(&b, 0, sizeof b);
  eini_affine(q, v, env, 0, 1, &b);
  eini_row *r = &b.row;
  r->pos = v->pos;
  r->len = v->len;
  int n = 0, stamp = ++q->stamp, over = r->offset == INT64_MIN;
  for (int i = 0; i < r->n; i++) {
    eini_var *x = &q->var[r->var[i]];
    if (x->stamp == stamp) {
      over |= eini_add_overflow(r->coef[x->bound], r->coef[i], &r->coef[x->bound]);
      continue;
    }
    x->stamp = stamp;
    x->bound = n;
    r->var[n] = r->var[i];
    r->coef[n++] = r->coef[i];
  }
  r->n = 0;
  for (int i = 0; i < n; i++) {
    q->var[r->var[i]].bound = 0;
    over |= r->coef[i] == INT64_MIN;
    if (r->coef[i] == 0) continue;
    r->var[r->n] = r->var[i];
    r->coef[r->n++] = r->coef[i];
  }
  if (over) eini_too_wide(&q->p, r->pos, r->len);
  return *r;
}

// The value of an extent: 1, or -1 after a mistake.
static int eini_const(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                      int64_t *out) {
  eini_rowbuf b;
  memset(&b, 0, sizeof b);
  eini_affine(q, v, env, sizes, 1, &b);
  if (b.row.n > 0) eini_not_affine(q, v, sizes);
  *out = b.row.offset;
  return q->p.st == EIN_OK ? 1 : -1;
}

// ---- which indices does a resolved tree use? ----

typedef struct eini_vars {
  int *v;
  int64_t n, cap;
} eini_vars;

// Stamps the variables that a node itself names, and adds the new ones that are not bound.
static ein_status eini_own_vars(eini_prog *q, const eini_syn *v, eini_vars *u, int stamp) {
  int rank = v->kind == EINI_S_ACCESS && v->row != NULL ? q->g->tensor[v->id].rank : 0;
  int macro = v->kind == EINI_S_MACRO, index = v->kind == EINI_S_INDEX;
  for (int r = 0; r < (macro || index ? 1 : rank); r++) {
    const int *var = macro ? v->bind : index ? &v->id : v->row[r].var;
    for (int i = 0; i < (macro ? v->nbind : index ? 1 : v->row[r].n); i++) {
      eini_var *x = &q->var[var[i]];
      if (x->stamp == stamp || x->bound > 0) continue;
      x->stamp = stamp;
      if (u == NULL) continue;
      int *list = (int *)eini_grow(q->p.arena, u->v, u->n, &u->cap, sizeof *list);
      if (list == NULL) return eini_pmem(&q->p);
      u->v = list;
      list[u->n++] = var[i];
    }
  }
  return EIN_OK;
}

static void eini_used(eini_prog *q, const eini_syn *v, eini_vars *u, int stamp) {
  eini_own_vars(q, v, u, stamp);
  for (int i = 0; v->kind == EINI_S_REDUCE && i < v->nbind; i++) q->var[v->bind[i]].bound++;
  for (int i = 0; i < v->n; i++) eini_used(q, v->kid[i], u, stamp);
  for (int i = 0; v->kind == EINI_S_REDUCE && i < v->nbind; i++) q->var[v->bind[i]].bound--;
}

// ---- names in expressions ----

// Reports a name that is no tensor to read, or, scalar, no value.
static eini_syn *eini_bad_name(eini_prog *q, const eini_syn *v, int scalar) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  const char *what = scalar ? "is no index in scope, param or scalar" : "is no tensor";
  const char *hint = NULL;
  char text[160];
  eini_near w;
  eini_near_init(&w, s->s, s->n);
  if (s->kind == EINI_N_BAD || (s->kind == EINI_N_NONE && s->ndef == 0 && s->bad))
    return p->st = EIN_ERR_NAME, (eini_syn *)NULL;  // reported where it failed
  if (s->kind == EINI_N_TENSOR) {
    snprintf(text, sizeof text, "has %d axes: write its coordinates in brackets",
             q->g->tensor[s->id].rank);
    what = text;
  } else if (s->kind == EINI_N_SIZE && scalar) {
    snprintf(text, sizeof text, "write size(%.*s)", EINI_NAME_OF(p, v->sym));
    hint = text;
    what = "is a size, not an index in scope";
  } else if (s->kind != EINI_N_NONE) {
    what = s->kind == EINI_N_PARAM ? "is a param: it has no axes" :
           s->kind == EINI_N_DEF ? "is a macro, not a tensor" : "is a size, not a tensor";
  } else if (s->ndef > 0) {
    what = "is used before its definition";
    hint = s->ndef > 1 ? "it may be read after its last piece" : NULL;
  } else {
    for (int64_t i = 0; i < eini_min64(p->names->n, 4096); i++) {
      const eini_sym *x = &p->names->sym[i];
      if (x->kind != EINI_N_NONE || x->var != 0) eini_near_try(&w, x->s, x->n);
    }
    hint = eini_near_hint(&w);
  }
  eini_perr_name(p, s->kind == EINI_N_TENSOR ? EIN_ERR_SHAPE : EIN_ERR_NAME, v->pos, v->sym, hint,
                 what);
  return NULL;
}

// A copy that means id, without children.
static eini_syn *eini_resolved(eini_prog *q, const eini_syn *v, int kind, int id) {
  eini_syn *r = eini_syn_new(&q->p, kind, v->pos);
  if (r == NULL) return NULL;
  *r = *v;
  r->kind = (unsigned char)kind;
  r->id = id;
  r->n = r->nbind = 0;
  return r;
}

// Gives a tree its children, or the only one.
static eini_syn *eini_adopt(eini_prog *q, eini_syn *r, const eini_kids *k, eini_syn *only) {
  eini_kids one = {NULL, NULL, 0, 0};
  if (k == NULL) eini_kids_add(&q->p, &one, only, 0);
  if (k == NULL) k = &one;
  if (r == NULL || q->p.st != EIN_OK) return NULL;
  r->kid = k->kid;
  r->inv = k->inv;
  r->n = (int)k->n;
  return r;
}

// A bare name: an index, a param or a tensor of rank 0.
static eini_syn *eini_resolve_name(eini_prog *q, const eini_syn *v, const eini_env *env) {
  int var = eini_find_var(q, v->sym, eini_mark(env));
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (var >= 0) return eini_resolved(q, v, EINI_S_INDEX, var);
  if (s->kind == EINI_N_PARAM) return eini_resolved(q, v, EINI_S_PARAM, s->id);
  if (s->kind != EINI_N_TENSOR || q->g->tensor[s->id].rank > 0) return eini_bad_name(q, v, 1);
  eini_syn *r = eini_resolved(q, v, EINI_S_ACCESS, s->id);
  eini_kids_add(&q->p, &q->access, r, 0);
  return r;
}

static eini_syn *eini_resolve_access(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (eini_env_arg(env, v->sym) != NULL)
    return eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "a macro's parameter is a scalar"),
           (eini_syn *)NULL;
  if (s->kind != EINI_N_TENSOR) return eini_bad_name(q, v, 0);
  int id = s->id, rank = q->g->tensor[id].rank;
  if (v->n != rank) {
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "'%.*s' has %d ax%cs, not %d",
              EINI_NAME_OF(p, v->sym), rank, rank == 1 ? 'i' : 'e', v->n);
    return NULL;
  }
  eini_syn *r = eini_resolved(q, v, EINI_S_ACCESS, id);
  eini_row *row = EINI_NEW(p->arena, eini_row, rank);
  if (r == NULL || row == NULL) return eini_pmem(p), (eini_syn *)NULL;
  r->row = row;
  for (int i = 0; i < rank && p->st == EIN_OK; i++) row[i] = eini_affine_row(q, v->kid[i], env);
  eini_kids_add(p, &q->access, r, 0);
  return r;
}

static eini_syn *eini_resolve(eini_prog *q, const eini_syn *v, const eini_env *env);  // trees nest

static eini_syn *eini_resolve_kids(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_kids k = {NULL, NULL, 0, 0};
  for (int i = 0; i < v->n && q->p.st == EIN_OK; i++)
    eini_kids_add(&q->p, &k, eini_resolve(q, v->kid[i], env), v->inv[i]);
  return eini_adopt(q, eini_resolved(q, v, v->kind, v->id), &k, NULL);
}

// Variables of a reduction's list, extents evaluated in the scope around it.
static void eini_bind_named(eini_prog *q, const eini_syn *v, const eini_env *env, eini_syn *r) {
  eini_parser *p = &q->p;
  int64_t *extent = EINI_NEW(p->arena, int64_t, v->nbind), first = q->nvar;
  if (extent == NULL) eini_pmem(p);
  for (int i = 0; i < v->nbind && p->st == EIN_OK; i++) {
    extent[i] = -1;
    if (v->bext[i] != NULL && eini_const(q, v->bext[i], env, 1, &extent[i]) > 0 && extent[i] < 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v->bext[i]), NULL, "an extent is at least 0");
  }
  for (int i = 0; i < v->nbind && p->st == EIN_OK; i++) {
    if (eini_find_var(q, v->bind[i], eini_mark(env)) >= first || eini_env_arg(env, v->bind[i]))
      eini_perr_name(p, EIN_ERR_NAME, v->bpos[i], v->bind[i], NULL, "is an index bound already");
    int var = eini_push_var(q, v->bind[i], eini_mark(env), EINI_V_NAMED, v->bpos[i]);
    if (var < 0 || p->st != EIN_OK) return;
    q->var[var].extent = extent[i];
    if (extent[i] >= 0) q->var[var].axis = -2;
    r->bind[r->nbind++] = var;
  }
}

// Resolves v as what is folded by r over r's named indices, or over all that it brings in.
static eini_syn *eini_resolve_fold(eini_prog *q, const eini_syn *v, const eini_env *env,
                                   const eini_syn *binds, eini_syn *r, int kind) {
  eini_parser *p = &q->p;
  int64_t first = q->nvar;
  if (r == NULL) return NULL;
  if (kind != EINI_V_NAMED) eini_scan(q, v, env, kind, first, 0);
  r->bind = EINI_NEW(p->arena, int, q->nvar - first + binds->nbind);
  if (r->bind == NULL) return eini_pmem(p), (eini_syn *)NULL;
  if (kind == EINI_V_NAMED) eini_bind_named(q, binds, env, r);
  for (int64_t i = first; i < q->nvar && kind != EINI_V_NAMED; i++)
    if (q->var[i].kind == kind) r->bind[r->nbind++] = (int)i;
  if (kind == EINI_V_UNNAMED && r->nbind == 0) {
    eini_perr(p, EIN_ERR_NAME, EINI_AT(r), "name the reduction: sum[j](..)",
              "%.*s has nothing to reduce: every index is in scope", EINI_NAME_OF(p, r->sym));
  }
  eini_syn *x = p->st == EIN_OK ? eini_resolve(q, v, env) : NULL;
  for (int i = r->nbind - 1; i >= 0; i--) eini_pop_var(q, r->bind[i]);
  return x;
}

static eini_syn *eini_resolve_reduce(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_syn *r = eini_resolved(q, v, EINI_S_REDUCE, -1);
  int cls = eini_sym_of(q, v->sym)->cls;
  if (r == NULL) return NULL;
  r->op = cls == EINI_W_NORM ? EINI_SUM : cls == EINI_W_MONOID ? EINI_FOLD_USER + v->op : v->op;
  r->exact = cls == EINI_W_NORM;  // a square root stands around it
  return eini_adopt(q, r, NULL, eini_resolve_fold(q, v->kid[0], env, v, r, v->nbind > 0 ?
                                                  EINI_V_NAMED : EINI_V_UNNAMED));
}

static eini_syn *eini_resolve_macro(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_parser *p = &q->p;
  int low = v->op == 2 ? 3 : v->op == 3 ? 2 : 1, high = v->op < 2 ? 1 : low + 1;
  if (v->n < low || v->n > high) {
    eini_called f = eini_called_of(p, v);
    eini_wrong_count(p, &f, low, v->op == 2 ? "layernorm[j](x, g, b, eps)" :
                     v->op == 3 ? "rmsnorm[j](x, g, eps)" : NULL);
  }
  eini_syn *r = p->st == EIN_OK ? eini_resolve_kids(q, v, env) : NULL;
  if (r == NULL) return NULL;
  r->bind = EINI_NEW(p->arena, int, v->nbind);
  if (r->bind == NULL) return eini_pmem(p), (eini_syn *)NULL;
  for (int stamp = ++q->stamp; r->nbind < v->nbind; r->nbind++) {
    int i = r->nbind, var = eini_find_var(q, v->bind[i], eini_mark(env));
    if (var < 0 || q->var[var].stamp == stamp) {
      eini_perr_name(p, EIN_ERR_NAME, v->bpos[i], v->bind[i], NULL,
                     "is no index in scope, or occurs twice");
      return NULL;
    }
    q->var[var].stamp = stamp;
    r->bind[i] = var;
  }
  return r;
}

static eini_syn *eini_resolve(eini_prog *q, const eini_syn *v, const eini_env *env) {
  if (!eini_step(q, v, env)) return NULL;
  eini_syn *r = NULL, *arg;
  eini_env in;
  int var;
  q->p.depth++;
  switch (v->kind) {
    case EINI_S_NAME:
      arg = eini_env_arg(env, v->sym);
      r = arg != NULL ? eini_resolve(q, arg, env->up) : eini_resolve_name(q, v, env);
      break;
    case EINI_S_ACCESS: r = eini_resolve_access(q, v, env); break;
    case EINI_S_SIZE:
      r = eini_resolved(q, v, EINI_S_SIZE, -1);
      if (r != NULL && eini_size_of(q, v, env, &var, &r->ival) == 0) r->id = var;
      break;
    case EINI_S_REDUCE: r = eini_resolve_reduce(q, v, env); break;
    case EINI_S_MACRO: r = eini_resolve_macro(q, v, env); break;
    default:
      if (v->kind != EINI_S_CALL || eini_sym_of(q, v->sym)->cls != EINI_W_FREE) {
        r = eini_resolve_kids(q, v, env);
      } else if (eini_enter_def(q, v, env, &in, 0)) {
        r = eini_adopt(q, eini_resolved(q, v, EINI_S_BODY, -1), NULL,
                       eini_resolve(q, in.def->kid[0], &in));
      }
  }
  q->p.depth--;
  return q->p.st == EIN_OK ? r : NULL;
}

// ---- implicit sums (rule 4) ----

// Stamps the variables of accesses that are factors of a term.
static void eini_mark_factors(eini_prog *q, const eini_syn *v, int stamp) {
  int deeper = v->kind == EINI_S_PAREN || v->kind == EINI_S_NEG || v->kind == EINI_S_TERM;
  for (int i = 0; i < v->n && deeper; i++)
    if (!v->inv[i]) eini_mark_factors(q, v->kid[i], stamp);
  if (v->kind != EINI_S_INDEX) eini_own_vars(q, v, NULL, stamp);
}

// No parenthesised sum of a term has addends with and addends without an implicit index.
static void eini_check_addends(eini_prog *q, const eini_syn *v, const eini_syn *term) {
  eini_parser *p = &q->p;
  const eini_syn *sum = v->kind == EINI_S_PAREN && v->kid[0]->kind == EINI_S_SUM ? v->kid[0] : NULL;
  eini_vars u = {NULL, 0, 0};
  char hint[256];
  for (int i = 0; sum != NULL && i < sum->n; i++) eini_used(q, sum->kid[i], &u, ++q->stamp);
  for (int64_t i = 0; i < u.n; i++) q->var[u.v[i]].col++;
  for (int64_t i = 0; i < u.n; i++) {
    const eini_var *x = &q->var[u.v[i]];
    int len = eini_cut(p->s + term->pos, term->len);
    if (x->kind != EINI_V_IMPLICIT || x->col == 0 || x->col == sum->n) continue;
    snprintf(hint, sizeof hint, "write sum[%.*s](%.*s%s), or multiply out so that each addend is a "
             "term", EINI_NAME_OF(p, x->sym), len, p->s + term->pos, len < term->len ? ".." : "");
    eini_perr(p, EIN_ERR_NAME, EINI_AT(sum), hint, "'%.*s' is summed implicitly but is missing "
              "from an addend of this sum", EINI_NAME_OF(p, x->sym));
  }
  for (int64_t i = 0; i < u.n; i++) q->var[u.v[i]].col = 0;
  for (int i = 0; i < v->n && p->st == EIN_OK; i++) eini_check_addends(q, v->kid[i], term);
}

// The implicit index that two accesses of a tree have, or -1.
static int eini_index_twice(eini_prog *q, const eini_syn *v, int stamp) {
  int found = -1, rank = v->kind == EINI_S_ACCESS ? q->g->tensor[v->id].rank : 0;
  for (int r = 0; r < rank; r++) {
    for (int i = 0; i < v->row[r].n; i++) {
      eini_var *x = &q->var[v->row[r].var[i]];
      if (x->stamp == stamp && x->first != v->pos && x->kind == EINI_V_IMPLICIT)
        found = v->row[r].var[i];
      if (x->stamp != stamp) x->first = v->pos;
      x->stamp = stamp;
    }
  }
  for (int i = 0; i < v->n && found < 0; i++) found = eini_index_twice(q, v->kid[i], stamp);
  return found;
}

// No function of a term has an implicit index in two accesses of one argument: f(A[i,j]*B[j,k])
// reads as f of a contraction.
static void eini_check_arguments(eini_prog *q, const eini_syn *v, const eini_syn *term) {
  eini_parser *p = &q->p;
  char hint[256];
  int twice = -1, len = eini_cut(p->s + term->pos, term->len);
  for (int i = 0; i < v->n && v->kind == EINI_S_CALL && twice < 0; i++)
    twice = eini_index_twice(q, v->kid[i], ++q->stamp);
  // An argument within which nothing is wrong holds no function that is.
  for (int i = 0; i < v->n && p->st == EIN_OK && (v->kind != EINI_S_CALL || twice >= 0); i++)
    eini_check_arguments(q, v->kid[i], term);
  if (twice < 0 || p->st != EIN_OK) return;
  const eini_var *x = &q->var[twice];
  snprintf(hint, sizeof hint, "write %.*s(sum[%.*s](..)), or sum[%.*s](%.*s%s)",
           EINI_NAME_OF(p, v->sym), EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, x->sym), len,
           p->s + term->pos, len < term->len ? ".." : "");
  eini_perr(p, EIN_ERR_NAME, EINI_AT(v), hint, "'%.*s' is summed implicitly, but this %.*s() has "
            "it in two accesses of one argument", EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, v->sym));
}

// A term of the right side: itself, or a sum over the indices that only it brings in.
static eini_syn *eini_resolve_term(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  eini_syn *r = eini_resolved(q, v, EINI_S_REDUCE, -1);
  eini_syn *x = eini_resolve_fold(q, v, NULL, r, r, EINI_V_IMPLICIT);
  if (x == NULL || r->nbind == 0) return x;
  r->op = EINI_SUM;
  r->exact = 0;
  int stamp = ++q->stamp, len = eini_cut(p->s + x->pos, x->len);
  char hint[256];
  eini_mark_factors(q, x, stamp);
  for (int i = 0; i < r->nbind; i++) {
    const eini_var *y = &q->var[r->bind[i]];
    if (y->stamp == stamp) continue;
    snprintf(hint, sizeof hint, "write sum[%.*s](%.*s%s), or put the sum inside: f(sum[%.*s](..))",
             EINI_NAME_OF(p, y->sym), len, p->s + x->pos, len < x->len ? ".." : "",
             EINI_NAME_OF(p, y->sym));
    eini_perr_name(p, EIN_ERR_NAME, y->pos, y->sym, hint, "is not bound: it occurs in no factor "
                   "that is a plain access, so no sum is implied");
  }
  eini_check_addends(q, x, x);
  if (p->st == EIN_OK) eini_check_arguments(q, x, x);
  return eini_adopt(q, r, NULL, x);
}

// Rule 3: an index reduced by an unnamed reduction occurs nowhere else in the statement.
static void eini_check_unnamed(eini_prog *q) {
  eini_parser *p = &q->p;
  for (int64_t i = 0; i < q->nvar; i++)
    if (q->var[i].kind != EINI_V_SCAN && q->var[i].mark == 0) p->names->sym[q->var[i].sym].nindex++;
  for (int64_t i = 0; i < q->nvar; i++) {
    const eini_var *x = &q->var[i];
    if (x->kind != EINI_V_UNNAMED || x->mark != 0 || p->names->sym[x->sym].nindex < 2) continue;
    eini_perr_name(p, EIN_ERR_NAME, x->pos, x->sym, "name the reductions: sum[j](..)",
                   "is reduced here without being named, and used outside the parentheses");
  }
  for (int64_t i = 0; i < q->nvar; i++) p->names->sym[q->var[i].sym].nindex = 0;
}

// ================================================================================================
// >>solve  extents and bounds
// Takes resolved accesses; gives every index its extent (GRAMMAR rule 5) and proves that accesses
// without an edge rule stay inside their tensors (rule 6).
// ================================================================================================

static int eini_edge_kind_of(const eini_syn *v, int axis) {
  return v->edge == NULL ? EINI_EDGE_NONE : v->edge[axis].kind;
}

// Calls fn for every coordinate, or those without an edge rule; 1 when one of the calls gave 1.
static int eini_each_row(eini_prog *q, int ruled,
                         int (*fn)(eini_prog *q, const eini_syn *v, int axis)) {
  int any = 0;
  for (int64_t k = 0; k < q->access.n; k++) {
    const eini_syn *v = q->access.kid[k];
    int rank = v->row != NULL ? q->g->tensor[v->id].rank : 0;
    for (int r = 0; r < rank && q->p.st == EIN_OK; r++)
      if (ruled || eini_edge_kind_of(v, r) == EINI_EDGE_NONE) any |= fn(q, v, r);
  }
  return any;
}

// (b) Indices that stand alone as a coordinate: all places agree.
static int eini_solve_alone(eini_prog *q, const eini_syn *v, int axis) {
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  if (w->n != 1 || w->coef[0] != 1 || w->offset != 0) return 0;
  eini_var *x = &q->var[w->var[0]];
  if (x->axis == -2 || x->extent == t->shape[axis]) return 0;
  if (x->extent >= 0) {
    eini_perr(&q->p, EIN_ERR_SHAPE, EINI_AT(w),
              "extents do not broadcast in programs: write b[0,j]",
              "'%.*s' has extent %lld in axis %d of '%s', but %lld in axis %d of '%s'",
              EINI_NAME_OF(&q->p, x->sym), (long long)t->shape[axis], axis, t->name,
              (long long)x->extent, x->axis, q->g->tensor[x->by->id].name);
    return 0;
  }
  x->extent = t->shape[axis];
  x->by = v;
  x->axis = axis;
  return 1;
}

// (c) The largest extent of the only open index that keeps a coordinate inside. Until the round is
// over, the least extent e found is noted as -2 - e, which still counts as open.
static int eini_solve_open(eini_prog *q, const eini_syn *v, int axis) {
  eini_parser *p = &q->p;
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  eini_var *open = NULL;
  int64_t lo = w->offset, hi = w->offset, coef = 0, d, room;
  int over = 0;
  for (int i = 0; i < w->n; i++) {
    eini_var *x = &q->var[w->var[i]];
    if (x->extent < 0 && open != NULL) return 0;
    if (x->extent < 0) {
      open = x;
      coef = w->coef[i];
    } else if (eini_mul_overflow(w->coef[i], eini_max64(x->extent - 1, 0), &d)) {
      over = 1;
    } else {
      over |= eini_add_overflow(d < 0 ? lo : hi, d, d < 0 ? &lo : &hi);
    }
  }
  if (open == NULL && !over) return 0;
  room = lo;  // how far the index may move the coordinate
  over |= coef > 0 && (hi == INT64_MIN || eini_add_overflow(t->shape[axis] - 1, -hi, &room));
  if (over || room > INT64_MAX / 2) return eini_too_wide(p, EINI_AT(w)), 0;
  int64_t e = eini_floordiv(room, eini_abs64(coef)) + 1;
  if (e < 1) {
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(w), NULL,
              "no extent of '%.*s' keeps this inside axis %d of '%s', whose extent is %lld",
              EINI_NAME_OF(p, open->sym), axis, t->name, (long long)t->shape[axis]);
  }
  if (e < 1 || (open->extent < -1 && -2 - open->extent <= e)) return 0;
  open->extent = -2 - e;
  open->by = v;
  open->axis = axis;
  return 1;
}

// Sizes the caller gave for indices left open; 1 when one was used.
static int eini_solve_given(eini_prog *q) {
  int found = 0;
  for (int64_t i = 0; i < q->nvar; i++) {
    eini_var *x = &q->var[i];
    const eini_sym *s = &q->names.sym[x->sym];
    for (int k = 0; x->extent < 0 && x->kind != EINI_V_SCAN && k < q->desc->nsize; k++) {
      if (!eini_word_is(s->s, s->n, q->desc->size[k].name)) continue;
      x->extent = q->desc->size[k].value;
      x->axis = -2;
      found = 1;
    }
  }
  return found;
}

static void eini_solve(eini_prog *q) {
  eini_parser *p = &q->p;
  int rounds = 0;
  char hint[320];
  eini_each_row(q, 1, eini_solve_alone);
  do {
    while (p->st == EIN_OK && eini_each_row(q, 0, eini_solve_open)) {
      for (int64_t i = 0; i < q->nvar; i++)
        if (q->var[i].extent < -1) q->var[i].extent = -2 - q->var[i].extent;
      if (++rounds > 1000)
        eini_perr(p, EIN_ERR_TOO_LARGE, -1, 0, NULL, "extents depend on each other too deeply");
    }
  } while (p->st == EIN_OK && eini_solve_given(q));
  for (int64_t i = 0; i < q->nvar && p->st == EIN_OK; i++) {
    const eini_var *x = &q->var[i];
    if (x->kind == EINI_V_SCAN || x->extent >= 0) continue;
    snprintf(hint, sizeof hint, "write [%.*s=..] or 'for %.*s=..', or use it alone as a coordinate",
             EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, x->sym));
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(x), hint, "nothing gives '%.*s' an extent",
              EINI_NAME_OF(p, x->sym));
  }
}

// The range of a coordinate.
static ein_status eini_row_range(eini_prog *q, const eini_row *w, int64_t *lo, int64_t *hi) {
  int64_t *extent = EINI_NEW(q->p.arena, int64_t, w->n);
  if (extent == NULL) return eini_pmem(&q->p);
  for (int i = 0; i < w->n; i++) extent[i] = q->var[w->var[i]].extent;
  if (eini_zmap_row_range(w->coef, w->n, w->offset, extent, lo, hi) == EIN_OK) return EIN_OK;
  return eini_too_wide(&q->p, EINI_AT(w));
}

static int eini_check_row(eini_prog *q, const eini_syn *v, int axis) {
  eini_parser *p = &q->p;
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  int64_t lo, hi;
  char why[160] = "";
  if (eini_row_range(q, w, &lo, &hi) != EIN_OK || (lo >= 0 && hi < t->shape[axis])) return 0;
  for (int i = 0; i < w->n && why[0] == 0; i++) {
    const eini_var *x = &q->var[w->var[i]];
    if (x->by == NULL || x->by == v || x->axis < 0) continue;
    snprintf(why, sizeof why, " ('%.*s' has extent %lld from axis %d of '%s')",
             EINI_NAME_OF(p, x->sym), (long long)x->extent, x->axis, q->g->tensor[x->by->id].name);
  }
  eini_perr(p, EIN_ERR_BOUNDS, EINI_AT(w), "an edge rule says what is read outside: X[i-1 | 0];"
            " 'for i=..' gives fewer values",
            "this reaches %lld in axis %d of '%s', whose extent is %lld%s",
            (long long)(lo < 0 ? lo : hi), axis, t->name, (long long)t->shape[axis], why);
  return 0;
}

static void eini_check_bounds(eini_prog *q) {
  for (int64_t i = 0; i < q->nvar; i++) {
    if (q->var[i].extent == 0) return;  // an empty index space: the statement's own proof decides
  }
  eini_each_row(q, 0, eini_check_row);
}

// ================================================================================================
// >>edges  edge rules
// Turns accesses that leave their tensor into accesses of padded tensors, which are made of pieces
// (GRAMMAR rule 6).
// ================================================================================================

#define EINI_CELLS_MAX ((int64_t)1 << 24)  // coefficients of all maps of a program

typedef struct eini_padding {  // what an edge rule makes of a tensor
  eini_edge edge;
  ein_dtype read, dtype;   // the tensor is read as, if not EIN_NONE; and what the rule gives
  int64_t pos;
} eini_padding;

typedef struct eini_pad {  // one axis of one tensor being padded
  ein_graph *g;
  eini_diag *diag;
  const eini_padding *by;
  int from, to, axis;
} eini_pad;

// A node that means the edge constant, -1 when out of memory.
static int eini_fill_node(ein_graph *g, eini_expr *e, const eini_syn *c) {
  if (c->kind == EINI_S_BOOL) return eini_expr_bool(&g->arena, e, c->pos, (int)c->ival);
  return c->exact ? eini_expr_int(&g->arena, e, c->pos, c->ival)
                  : eini_expr_real(&g->arena, e, c->pos, c->re);
}

static int eini_pad_cast(const eini_pad *w, eini_stmt *s, int id, ein_dtype t) {
  if (id < 0 || t == EIN_NONE) return id;
  id = eini_expr_add(&w->g->arena, &s->expr, EINI_OP_CAST, w->by->pos, id, 0, 0);
  if (id >= 0) s->expr.node[id].dtype = (unsigned char)t;
  return id;
}

// to[.., start + apart*m + j, ..] = from[.., at + step*j, ..] for j < count, m < times; step 0 of a
// constant: that. All periods of a rule are one statement.
static ein_status eini_pad_piece(const eini_pad *w, int64_t start, int64_t count, int64_t at,
                                 int64_t step, int64_t times, int64_t apart) {
  ein_graph *g = w->g;
  int rank = g->tensor[w->to].rank, many = times > 1, n = rank + many, id;
  int fills = w->by->edge.fill != NULL && step == 0, axis = w->axis;
  eini_stmt *s;
  EINI_TRY(eini_graph_add_stmt(g, w->to, n, !fills, &w->from, &s));
  s->pos = w->by->pos;
  for (int i = 0; i < n; i++) {  // m stands before j
    char name[16];
    int period = many && i == axis, r = i - (many && i > axis);
    int len = snprintf(name, sizeof name, period ? "m" : "i%d", r);
    if ((s->index[i].name = eini_strndup(&g->arena, name, len)) == NULL) return EIN_ERR_NO_MEMORY;
    s->index[i].extent = period ? times : r == axis ? count : g->tensor[w->to].shape[r];
    s->out_map.coef[(int64_t)r * n + i] = period ? apart : 1;
    if (!fills && !period) s->proj[0].coef[(int64_t)r * n + i] = r == axis ? step : 1;
  }
  s->out_map.offset[axis] = start;
  if (fills) {
    id = eini_pad_cast(w, s, eini_fill_node(g, &s->expr, w->by->edge.fill), w->by->dtype);
  } else {
    s->proj[0].offset[axis] = at;
    id = eini_expr_add(&g->arena, &s->expr, EINI_OP_OPERAND, w->by->pos, 0, 0, 0);
    id = eini_pad_cast(w, s, id, w->by->read);
  }
  return id < 0 ? EIN_ERR_NO_MEMORY : eini_stmt_finish(g, s, w->diag);
}

// The elements [x, end) outside an axis of extent n, low of which come before 0: whole periods, and
// what is left of one before and behind them. Reflecting, every other period runs backwards.
static ein_status eini_pad_side(const eini_pad *w, int64_t n, int64_t low, int64_t x, int64_t end) {
  int edge = w->by->edge.kind, reflect = edge == EINI_EDGE_REFLECT;
  if (x == end) return EIN_OK;
  if (edge == EINI_EDGE_CONST || edge == EINI_EDGE_CLAMP || n == 1)
    return eini_pad_piece(w, x + low, end - x, x < 0 ? 0 : n - 1, 0, 1, 0);
  int64_t period = n - reflect;
  while (x < end) {
    int64_t m = eini_floordiv(x, period), at = x - m * period;
    int64_t take = eini_min64(period - at, end - x), whole = at == 0 ? (end - x) / period : 0;
    int back = reflect && m % 2 != 0;
    for (int odd = 0; odd < 1 + reflect && odd < whole; odd++) {  // of whole periods, one in 1 or 2
      back = reflect && (m + odd) % 2 != 0;
      EINI_TRY(eini_pad_piece(w, x + low + odd * period, period, back ? n - 1 : 0, back ? -1 : 1,
                              reflect ? (whole - odd + 1) / 2 : whole, (1 + reflect) * period));
    }
    if (whole == 0)
      EINI_TRY(eini_pad_piece(w, x + low, take, back ? n - 1 - at : at, back ? -1 : 1, 1, 0));
    x += whole > 0 ? whole * period : take;
  }
  return EIN_OK;
}

// A new tensor: *tensor with low and high elements added along one axis.
static ein_status eini_pad_axis(ein_graph *g, eini_diag *diag, int *tensor, int axis,
                                const eini_padding *by, int64_t low, int64_t high,
                                const char *name) {
  const eini_tensor *t = &g->tensor[*tensor];
  eini_pad w = {g, diag, by, *tensor, 0, axis};
  int64_t n = t->shape[axis], end;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, t->rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  if (n == 0 && by->edge.kind != EINI_EDGE_CONST) {
    return eini_fail(diag, EIN_ERR_BOUNDS, by->pos, 1, "use a constant: X[i-1 | 0]",
                     "axis %d of '%s' is empty: there is nothing to repeat", axis, t->name);
  }
  memcpy(shape, t->shape, (size_t)t->rank * sizeof *shape);
  if (eini_add_overflow(n, high, &end) || eini_add_overflow(end, low, &shape[axis])) {
    return eini_fail(diag, EIN_ERR_TOO_LARGE, by->pos, 1, NULL, "the padded '%s' is too large",
                     t->name);
  }
  EINI_TRY(eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, by->dtype, t->rank,
                                 shape, &w.to));
  EINI_TRY(eini_pad_side(&w, n, low, -low, 0));
  if (n > 0) EINI_TRY(eini_pad_piece(&w, low, n, 0, 1, 1, 0));
  EINI_TRY(eini_pad_side(&w, n, low, n, end));
  *tensor = w.to;
  return EIN_OK;
}

// ================================================================================================
// >>adjoint  derivatives of scalar expressions
// Takes a typed expression and the cotangent of its value; appends to the same nodes the cotangents
// of its operands: reverse mode, every function's rule in one table of cases.
// ================================================================================================

#define EINI_LEAVES_MAX 64  // of max(a,b,c,..), which share a tie equally

// A cotangent is a value and the condition under which it counts (-1: always); elsewhere it is 0.
// Conditions are carried to the operands, so that no value that is masked is ever computed with.
typedef struct eini_adjoint {
  eini_arena *arena;
  eini_expr e;            // the nodes of the expression, then those of derivatives
  int nprimal;
  unsigned char *needs;   // per node of the expression: depends on what is differentiated by
  int *val, *mask;        // per node of the expression: its cotangent, -1 for none
  int *same;              // per node: the first one that reads the same operand
  int stored;             // node that reads the stored value of the whole expression, or -1
  unsigned char *norm;    // per node: the square root of a sum of squares
  int stop;               // a node that no gradient flows through, or -1
} eini_adjoint;

// An operation on nodes; -1 when out of memory, also when an argument is.
static int eini_adj_op(eini_adjoint *d, int op, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0) return -1;
  return eini_expr_add(d->arena, &d->e, op, -1, x, y, z);
}

static int eini_adj_int(eini_adjoint *d, int64_t x) {
  return eini_expr_int(d->arena, &d->e, -1, x);
}

static int eini_adj_real(eini_adjoint *d, double x) {
  return eini_expr_real(d->arena, &d->e, -1, x);
}

static int eini_is_literal(const eini_adjoint *d, int x, int64_t value) {
  const eini_node *v = &d->e.node[x];
  return v->op == EINI_OP_CONST && v->weak && v->exact && v->ival == value;
}

static int eini_adj_mul(eini_adjoint *d, int x, int y) {
  if (x >= 0 && eini_is_literal(d, x, 1)) return y;
  if (y >= 0 && eini_is_literal(d, y, 1)) return x;
  return eini_adj_op(d, EINI_OP_MUL, x, y, 0);
}

static int eini_adj_cast(eini_adjoint *d, int x, ein_dtype t) {
  int id = eini_adj_op(d, EINI_OP_CAST, x, 0, 0);
  if (id >= 0) d->e.node[id].dtype = (unsigned char)t;
  return id;
}

static int eini_node_kind(const eini_adjoint *d, int x) {
  return eini_kind_of((ein_dtype)d->e.node[x].dtype);
}

// The conjugate of x, which is of the kind of node like.
static int eini_adj_conj(eini_adjoint *d, int x, int like) {
  const eini_node *v = x < 0 ? NULL : &d->e.node[x];
  if (v == NULL || eini_node_kind(d, like) < EINI_KCOMPLEX) return x;
  if (v->op == EINI_OP_CONJ) return v->arg[0];
  return v->op == EINI_OP_CONST && v->im == 0 ? x : eini_adj_op(d, EINI_OP_CONJ, x, 0, 0);
}

static int eini_adj_and(eini_adjoint *d, int x, int y) {
  return x < 0 ? y : eini_adj_op(d, EINI_OP_AND, x, y, 0);
}

// A cotangent as one value.
static int eini_adj_plain(eini_adjoint *d, int val, int mask) {
  return mask < 0 ? val : eini_adj_op(d, EINI_OP_WHERE, mask, val, eini_adj_int(d, 0));
}

// Adds to the cotangent of a node; EIN_ERR_NO_MEMORY when val is none.
static ein_status eini_adj_add(eini_adjoint *d, int x, int val, int mask) {
  x = d->same[x];
  if (val < 0) return EIN_ERR_NO_MEMORY;
  if (!d->needs[x]) return EIN_OK;
  if (d->val[x] >= 0 && d->mask[x] != mask) {
    d->val[x] = eini_adj_plain(d, d->val[x], d->mask[x]);
    val = eini_adj_plain(d, val, mask);
    mask = -1;
  }
  d->mask[x] = mask;
  d->val[x] = d->val[x] < 0 ? val : eini_adj_op(d, EINI_OP_ADD, d->val[x], val, 0);
  return d->val[x] < 0 || val < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// 1 where condition x holds, else 0, as a constant of dtype t.
static int eini_adj_one(eini_adjoint *d, int x, ein_dtype t) {
  int one = eini_adj_op(d, EINI_OP_WHERE, x, eini_adj_int(d, 1), eini_adj_int(d, 0));
  return eini_adj_cast(d, one, t);
}

// Is a factor the value of a condition? Then it is a mask, and a constant.
static int eini_is_mask(const eini_adjoint *d, int x) {
  const eini_node *v = &d->e.node[x];
  return (v->op == EINI_OP_CAST || v->op == EINI_OP_ROUNDTO) &&
         eini_node_kind(d, v->arg[0]) == EINI_KBOOL;
}

// d gelu(x) / dx = Phi(x) + x*phi(x), of the normal distribution.
static int eini_adj_gelu(eini_adjoint *d, int x) {
  int erf1 = eini_adj_op(d, EINI_OP_ERF,
                         eini_adj_mul(d, x, eini_adj_real(d, 0.70710678118654752440)), 0, 0);
  int phi = eini_adj_mul(d, eini_adj_op(d, EINI_OP_SQUARE, x, 0, 0), eini_adj_real(d, -0.5));
  phi = eini_adj_mul(d, eini_adj_op(d, EINI_OP_EXP, phi, 0, 0),
                     eini_adj_real(d, 0.39894228040143267794));
  erf1 = eini_adj_op(d, EINI_OP_ADD, erf1, eini_adj_int(d, 1), 0);
  return eini_adj_op(d, EINI_OP_ADD, eini_adj_mul(d, erf1, eini_adj_real(d, 0.5)),
                     eini_adj_mul(d, x, phi), 0);
}

// The derivative of a function of x whose value is r, at least where it is differentiable.
static int eini_adj_slope(eini_adjoint *d, int op, int x, int r) {
  int one = eini_adj_int(d, 1), t = -1;
  switch (op) {
    case EINI_OP_SQUARE: return eini_adj_mul(d, eini_adj_int(d, 2), x);
    case EINI_OP_EXP: return r;
    case EINI_OP_RSQRT:
      t = eini_adj_mul(d, r, eini_adj_op(d, EINI_OP_SQUARE, r, 0, 0));
      return eini_adj_mul(d, eini_adj_real(d, -0.5), t);
    case EINI_OP_EXPM1: return eini_adj_op(d, EINI_OP_ADD, r, one, 0);
    case EINI_OP_LOG1P:
      return eini_adj_op(d, EINI_OP_DIV, one, eini_adj_op(d, EINI_OP_ADD, x, one, 0), 0);
    case EINI_OP_TAN:
      return eini_adj_op(d, EINI_OP_ADD, eini_adj_op(d, EINI_OP_SQUARE, r, 0, 0), one, 0);
    case EINI_OP_SIN: return eini_adj_op(d, EINI_OP_COS, x, 0, 0);
    case EINI_OP_COS:
      return eini_adj_op(d, EINI_OP_NEG, eini_adj_op(d, EINI_OP_SIN, x, 0, 0), 0, 0);
    case EINI_OP_TANH:
      return eini_adj_op(d, EINI_OP_SUB, one, eini_adj_op(d, EINI_OP_SQUARE, r, 0, 0), 0);
    case EINI_OP_ERF:
      t = eini_adj_op(d, EINI_OP_NEG, eini_adj_op(d, EINI_OP_SQUARE, x, 0, 0), 0, 0);
      return eini_adj_mul(d, eini_adj_real(d, 1.12837916709551257390),
                          eini_adj_op(d, EINI_OP_EXP, t, 0, 0));
    case EINI_OP_SIGMOID: return eini_adj_mul(d, r, eini_adj_op(d, EINI_OP_SUB, one, r, 0));
    case EINI_OP_SILU:
      t = eini_adj_op(d, EINI_OP_SIGMOID, x, 0, 0);
      r = eini_adj_mul(d, r, eini_adj_op(d, EINI_OP_SUB, one, t, 0));
      return eini_adj_op(d, EINI_OP_ADD, t, r, 0);
    case EINI_OP_GELU: return eini_adj_gelu(d, x);
    default: return -1;
  }
}

// Conversions: the cotangent takes the other way, to the real part where that loses one.
static int eini_adj_convert(eini_adjoint *d, int id, int x, int g) {
  ein_dtype to = (ein_dtype)d->e.node[x].dtype, from = (ein_dtype)d->e.node[id].dtype;
  if (eini_kind_of(to) < EINI_KREAL) return g;  // x stops it
  if (eini_kind_of(from) == EINI_KCOMPLEX && eini_kind_of(to) == EINI_KREAL) {
    g = eini_adj_op(d, EINI_OP_REAL, g, 0, 0);
    from = eini_real_part(from);
  }
  to = ein_dtype_compute(to);
  return ein_dtype_compute(from) == to ? g : eini_adj_cast(d, g, to);
}

static ein_status eini_adj_unary(eini_adjoint *d, int id, int g, int m) {
  int op = d->e.node[id].op, x = d->e.node[id].arg[0], zero = eini_adj_int(d, 0);
  int r = id == d->nprimal - 1 && d->stored >= 0 ? d->stored : id, t = -1;
  if (zero < 0) return EIN_ERR_NO_MEMORY;
  switch (op) {
    case EINI_OP_NEG: return eini_adj_add(d, x, eini_adj_op(d, EINI_OP_NEG, g, 0, 0), m);
    case EINI_OP_CONJ: return eini_adj_add(d, x, eini_adj_conj(d, g, id), m);
    case EINI_OP_REAL: return eini_adj_add(d, x, g, m);
    case EINI_OP_IMAG:
      return eini_adj_add(d, x, eini_adj_op(d, EINI_OP_COMPLEX, zero, g, 0), m);
    case EINI_OP_CAST: case EINI_OP_ROUNDTO:
      return eini_adj_add(d, x, eini_adj_convert(d, id, x, g), m);
    case EINI_OP_FLOOR: case EINI_OP_CEIL: case EINI_OP_ROUND: return EIN_OK;  // constant
    case EINI_OP_SIGN:  // of a complex x what is across x moves it
      if (eini_node_kind(d, x) < EINI_KCOMPLEX) return EIN_OK;
      t = eini_adj_op(d, EINI_OP_REAL, eini_adj_mul(d, g, eini_adj_conj(d, r, id)), 0, 0);
      t = eini_adj_op(d, EINI_OP_SUB, g, eini_adj_mul(d, r, t), 0);
      t = eini_adj_op(d, EINI_OP_DIV, t, eini_adj_op(d, EINI_OP_ABS, x, 0, 0), 0);
      return eini_adj_add(d, x, t, eini_adj_and(d, m, eini_adj_op(d, EINI_OP_NE, x, zero, 0)));
    case EINI_OP_RELU:
      return eini_adj_add(d, x, g, eini_adj_and(d, m, eini_adj_op(d, EINI_OP_GT, x, zero, 0)));
    case EINI_OP_ABS:
      if (eini_node_kind(d, x) == EINI_KCOMPLEX) {
        t = eini_adj_mul(d, x, eini_adj_op(d, EINI_OP_DIV, g, r, 0));
      } else {
        t = eini_adj_op(d, EINI_OP_NEG, g, 0, 0);
        t = eini_adj_op(d, EINI_OP_WHERE, eini_adj_op(d, EINI_OP_LT, x, zero, 0), t, g);
      }
      return eini_adj_add(d, x, t, eini_adj_and(d, m, eini_adj_op(d, EINI_OP_NE, x, zero, 0)));
    case EINI_OP_LOG:
      return eini_adj_add(d, x, eini_adj_op(d, EINI_OP_DIV, g, eini_adj_conj(d, x, id), 0), m);
    case EINI_OP_SQRT:
      t = eini_adj_conj(d, eini_adj_mul(d, eini_adj_int(d, 2), r), id);
      if (d->norm[id]) m = eini_adj_and(d, m, eini_adj_op(d, EINI_OP_NE, r, zero, 0));
      return eini_adj_add(d, x, eini_adj_op(d, EINI_OP_DIV, g, t, 0), m);
    default:
      t = eini_adj_conj(d, eini_adj_slope(d, op, x, r), id);
      return eini_adj_add(d, x, eini_adj_mul(d, g, t), m);
  }
}

// x^y; a literal y gives y*x^(y-1), else 0 where y = 0, and r*log(x), 0 where x = 0.
static ein_status eini_adj_pow(eini_adjoint *d, int id, int r, int g, int m) {
  int x = d->e.node[id].arg[0], y = d->e.node[id].arg[1], zero = eini_adj_int(d, 0), t;
  const eini_node c = d->e.node[y];
  int literal = c.op == EINI_OP_CONST, mx = m;
  if (literal && c.re == 0 && c.im == 0) return EIN_OK;
  if (literal) {
    t = eini_adj_op(d, EINI_OP_CONST, 0, 0, 0);
    if (t < 0) return EIN_ERR_NO_MEMORY;
    d->e.node[t] = c;
    d->e.node[t].re = c.re - 1;
    d->e.node[t].ival = c.ival - (c.ival > INT64_MIN);
  } else {
    t = eini_adj_op(d, EINI_OP_SUB, y, eini_adj_int(d, 1), 0);
    mx = eini_adj_and(d, m, eini_adj_op(d, EINI_OP_NE, y, zero, 0));
  }
  t = eini_adj_mul(d, y, eini_adj_op(d, EINI_OP_POW, x, t, 0));
  if (d->needs[x]) EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, eini_adj_conj(d, t, id)), mx));
  if (!d->needs[y]) return EIN_OK;
  t = eini_adj_mul(d, r, eini_adj_op(d, EINI_OP_LOG, x, 0, 0));
  m = eini_adj_and(d, m, eini_adj_op(d, EINI_OP_NE, x, zero, 0));
  return eini_adj_add(d, y, eini_adj_mul(d, g, eini_adj_conj(d, t, id)), m);
}

// max or min of two or more: those that equal the result share its cotangent.
static ein_status eini_adj_extreme(eini_adjoint *d, int id, int g, int m) {
  int leaf[EINI_LEAVES_MAX], equal[EINI_LEAVES_MAX], n = 1, op = d->e.node[id].op, count = -1;
  leaf[0] = id;
  for (int i = 0; i < n;) {
    const eini_node *v = &d->e.node[leaf[i]];
    if (v->op != op || n == EINI_LEAVES_MAX) {
      i++;
    } else {
      leaf[i] = v->arg[0];
      leaf[n++] = v->arg[1];
    }
  }
  for (int i = 0; i < n; i++) {
    equal[i] = eini_adj_op(d, EINI_OP_EQ, leaf[i], id, 0);
    int one = eini_adj_one(d, equal[i], ein_dtype_compute((ein_dtype)d->e.node[id].dtype));
    count = i == 0 ? one : eini_adj_op(d, EINI_OP_ADD, count, one, 0);
  }
  g = eini_adj_op(d, EINI_OP_DIV, g, count, 0);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++)
    EINI_TRY(eini_adj_add(d, leaf[i], g, eini_adj_and(d, m, equal[i])));
  return EIN_OK;
}

static ein_status eini_adj_where(eini_adjoint *d, int id, int g, int m) {
  const eini_node v = d->e.node[id];
  int otherwise = eini_adj_op(d, EINI_OP_NOT, v.arg[0], 0, 0);
  if (otherwise < 0) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_adj_add(d, v.arg[1], g, eini_adj_and(d, m, v.arg[0])));
  return eini_adj_add(d, v.arg[2], g, eini_adj_and(d, m, otherwise));
}

static ein_status eini_adj_binary(eini_adjoint *d, int id, int g, int m) {
  int op = d->e.node[id].op, x = d->e.node[id].arg[0], y = d->e.node[id].arg[1], t;
  int r = id == d->nprimal - 1 && d->stored >= 0 ? d->stored : id;
  switch (op) {
    case EINI_OP_ADD: case EINI_OP_SUB:
      EINI_TRY(eini_adj_add(d, x, g, m));
      return eini_adj_add(d, y, op == EINI_OP_ADD ? g : eini_adj_op(d, EINI_OP_NEG, g, 0, 0), m);
    case EINI_OP_MUL:
      if (d->needs[x] && !eini_is_mask(d, x))
        EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, eini_adj_conj(d, y, id)), m));
      if (!d->needs[y] || eini_is_mask(d, y)) return EIN_OK;
      return eini_adj_add(d, y, eini_adj_mul(d, g, eini_adj_conj(d, x, id)), m);
    case EINI_OP_DIV:
      g = eini_adj_op(d, EINI_OP_DIV, g, eini_adj_conj(d, y, id), 0);
      EINI_TRY(eini_adj_add(d, x, g, m));
      t = eini_adj_mul(d, g, eini_adj_conj(d, r, id));
      return eini_adj_add(d, y, eini_adj_op(d, EINI_OP_NEG, t, 0, 0), m);
    case EINI_OP_POW: return eini_adj_pow(d, id, r, g, m);
    case EINI_OP_ATAN2:  // of x over y
      t = eini_adj_op(d, EINI_OP_ADD, eini_adj_op(d, EINI_OP_SQUARE, x, 0, 0),
                      eini_adj_op(d, EINI_OP_SQUARE, y, 0, 0), 0);
      g = eini_adj_op(d, EINI_OP_DIV, g, t, 0);
      if (g < 0) return EIN_ERR_NO_MEMORY;
      EINI_TRY(eini_adj_add(d, x, eini_adj_mul(d, g, y), m));
      t = eini_adj_mul(d, g, x);
      return eini_adj_add(d, y, eini_adj_op(d, EINI_OP_NEG, t, 0, 0), m);
    case EINI_OP_MAX: case EINI_OP_MIN: return eini_adj_extreme(d, id, g, m);
    case EINI_OP_MOD:  // x - y*floor(x/y)
      EINI_TRY(eini_adj_add(d, x, g, m));
      t = eini_adj_mul(d, g, eini_adj_op(d, EINI_OP_FLOORDIV, x, y, 0));
      return eini_adj_add(d, y, eini_adj_op(d, EINI_OP_NEG, t, 0, 0), m);
    case EINI_OP_COMPLEX:
      EINI_TRY(eini_adj_add(d, x, eini_adj_op(d, EINI_OP_REAL, g, 0, 0), m));
      return eini_adj_add(d, y, eini_adj_op(d, EINI_OP_IMAG, g, 0, 0), m);
    default: return EIN_OK;  // div is constant
  }
}

// Carries the cotangents set so far down to the operands; a node that stops them is d->stop.
static ein_status eini_adj_run(eini_adjoint *d) {
  for (int id = d->nprimal - 1; id >= 0; id--) {
    int op = d->e.node[id].op, g = d->val[id], m = d->mask[id];
    if (g < 0 || !d->needs[id]) continue;
    if (eini_node_kind(d, id) < EINI_KREAL || op == EINI_OP_CALL) {
      d->stop = id;
      return EIN_ERR_UNSUPPORTED;
    }
    if (op == EINI_OP_OPERAND) continue;
    EINI_TRY(op == EINI_OP_WHERE ? eini_adj_where(d, id, g, m) :
             eini_ops[op].args == 1 ? eini_adj_unary(d, id, g, m)
                                    : eini_adj_binary(d, id, g, m));
  }
  return EIN_OK;
}

// Which nodes depend on operands with reads[k]? A choice does not depend on its condition.
static void eini_adj_needs(const eini_expr *e, const unsigned char *reads, unsigned char *needs) {
  for (int64_t id = 0; id < e->n; id++) {
    const eini_node *v = &e->node[id];
    needs[id] = v->op == EINI_OP_OPERAND ? reads[v->arg[0]] : 0;
    for (int i = v->op == EINI_OP_WHERE; i < eini_node_args(v); i++)
      needs[id] |= needs[eini_node_arg(e, v, i)];
  }
}

// Begins with a typed expression; reads[k]: does operand k depend on what is differentiated by?
static ein_status eini_adj_begin(eini_adjoint *d, eini_arena *arena, const eini_expr *e,
                                 const unsigned char *reads, int noperand) {
  memset(d, 0, sizeof *d);
  d->arena = arena;
  d->stored = d->stop = -1;
  d->nprimal = (int)e->n;
  d->e.n = d->e.cap = e->n;
  d->e.nlist = d->e.caplist = e->nlist;
  d->e.node = EINI_NEW(arena, eini_node, e->n);
  d->e.list = EINI_NEW(arena, int, e->nlist);
  d->needs = EINI_NEW(arena, unsigned char, e->n);
  d->norm = EINI_NEW(arena, unsigned char, e->n);
  d->val = EINI_NEW(arena, int, e->n);
  d->mask = EINI_NEW(arena, int, e->n);
  d->same = EINI_NEW(arena, int, e->n);
  int *first = EINI_NEW(arena, int, noperand);
  if (d->e.node == NULL || d->e.list == NULL || d->needs == NULL || d->norm == NULL ||
      d->val == NULL || d->mask == NULL || d->same == NULL || first == NULL)
    return EIN_ERR_NO_MEMORY;
  memcpy(d->e.node, e->node, (size_t)e->n * sizeof *e->node);
  if (e->nlist > 0) memcpy(d->e.list, e->list, (size_t)e->nlist * sizeof *e->list);
  for (int id = 0; id < d->nprimal; id++) {
    const eini_node *v = &d->e.node[id];
    d->val[id] = d->mask[id] = -1;
    d->same[id] = id;
    if (v->op != EINI_OP_OPERAND) continue;
    int k = v->arg[0];
    if (first[k] == 0) first[k] = id + 1;
    d->same[id] = first[k] - 1;
  }
  eini_adj_needs(e, reads, d->needs);
  return EIN_OK;
}

// ================================================================================================
// >>preimage  index spaces seen from one operand
// Takes a map from indices to an operand's coordinates; gives spaces in which the coordinates are
// free indices and the old indices affine forms: one piece per residue of each stride, no scatter.
// ================================================================================================

#define EINI_PIECES_MAX 4096               // residues of all strides together

enum { EINI_X_REST, EINI_X_FREE, EINI_X_GONE };  // states of a new index; REST: it will be summed

// Old indices, output coordinates and conditions as affine forms (rows) over the new indices.
typedef struct eini_preimage {
  int nold, nout, ncond, n, cap;  // n new indices; rows: nold, then nout, then ncond
  int64_t *coef, *offset;         // rows x cap
  int64_t *extent;                // of new indices
  int64_t *size;                  // the same, but equal in all pieces: choices depend on it
  int *state, *old;               // old: the index that it is unchanged, or -1
  const char **name;
  int64_t *bound;                 // of a condition: 0 <= row < bound, or row = 0 for -1
  int *who;                       // of a condition: the old index it keeps inside, or -1
  unsigned char *direct;          // per coordinate: the old indices define it one-to-one
  int64_t digit, pieces;          // the residues still to be chosen; how many pieces there are
  int none, empty;                // nothing lands here: zeros; no element is here
  int over;                       // a number does not fit 64 bits
} eini_preimage;

static int64_t *eini_pre_row(const eini_preimage *p, int row) {
  return p->coef + (int64_t)row * p->cap;
}

static ein_status eini_pre_new(eini_preimage *p, eini_arena *a, int nold, int nout) {
  int64_t rows = (int64_t)nold + 2 * (int64_t)nout, cells;
  memset(p, 0, sizeof *p);
  p->nold = nold;
  p->nout = nout;
  p->cap = nold + nout;
  if (eini_mul_overflow(rows, p->cap, &cells) || cells > ((int64_t)1 << 24))
    return EIN_ERR_TOO_LARGE;
  p->coef = EINI_NEW(a, int64_t, cells);
  p->offset = EINI_NEW(a, int64_t, rows);
  p->extent = EINI_NEW(a, int64_t, p->cap);
  p->size = EINI_NEW(a, int64_t, p->cap);
  p->state = EINI_NEW(a, int, p->cap);
  p->old = EINI_NEW(a, int, p->cap);
  p->name = EINI_NEW(a, const char *, p->cap);
  p->bound = EINI_NEW(a, int64_t, nout);
  p->who = EINI_NEW(a, int, nout);
  p->direct = EINI_NEW(a, unsigned char, nout);
  return p->coef == NULL || p->offset == NULL || p->extent == NULL || p->size == NULL ||
                 p->state == NULL || p->old == NULL || p->name == NULL || p->bound == NULL ||
                 p->who == NULL || p->direct == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static int eini_pre_index(eini_preimage *p, int64_t extent, int state, int old, const char *name) {
  p->extent[p->n] = p->size[p->n] = extent;
  p->state[p->n] = state;
  p->old[p->n] = old;
  p->name[p->n] = name;
  return p->n++;
}

// The old indices as they are; those of extent 1 are 0.
static void eini_pre_begin(eini_preimage *p, const eini_stmt *s, int64_t piece) {
  int rows = p->nold + 2 * p->nout;
  p->n = p->ncond = p->none = p->empty = 0;
  p->digit = piece;
  p->pieces = 1;
  memset(p->coef, 0, (size_t)rows * (size_t)p->cap * sizeof *p->coef);
  memset(p->offset, 0, (size_t)rows * sizeof *p->offset);
  memset(p->direct, 0, (size_t)p->nout);
  for (int i = 0; i < s->nindex; i++) {
    if (s->index[i].extent == 1) continue;
    int x = eini_pre_index(p, s->index[i].extent, EINI_X_REST, i, s->index[i].name);
    eini_pre_row(p, i)[x] = 1;
  }
}

// An affine form over old indices as one over new indices; its offset.
static int64_t eini_pre_form(eini_preimage *p, const int64_t *coef, int64_t offset, int64_t *to) {
  memset(to, 0, (size_t)p->cap * sizeof *to);
  for (int i = 0; i < p->nold; i++) {
    if (coef[i] == 0) continue;
    const int64_t *row = eini_pre_row(p, i);
    p->over |= eini_muladd_overflow(coef[i], p->offset[i], offset, &offset);
    for (int x = 0; x < p->n; x++)
      p->over |= row[x] != 0 && eini_muladd_overflow(coef[i], row[x], to[x], &to[x]);
  }
  return offset;
}

// Puts the form (by, offset), in which x does not occur, in the place of new index x, in all rows.
static void eini_pre_replace(eini_preimage *p, int x, const int64_t *by, int64_t offset) {
  for (int r = 0; r < p->nold + p->nout + p->ncond; r++) {
    int64_t *row = eini_pre_row(p, r), k = row[x];
    if (k == 0) continue;
    row[x] = 0;
    p->over |= eini_muladd_overflow(k, offset, p->offset[r], &p->offset[r]);
    for (int i = 0; i < p->n; i++)
      p->over |= by[i] != 0 && eini_muladd_overflow(k, by[i], row[i], &row[i]);
  }
}

// The new index with the least factor above `above` (in absolute value) in a form, or -1.
static int eini_pre_next(const eini_preimage *p, const int64_t *c, int64_t above, int *equal) {
  int best = -1;
  *equal = 0;
  for (int x = 0; x < p->n; x++) {
    if (eini_abs64(c[x]) <= above || (best >= 0 && eini_abs64(c[x]) > eini_abs64(c[best])))
      continue;
    *equal = best >= 0 && eini_abs64(c[x]) == eini_abs64(c[best]);
    best = x;
  }
  return best;
}

// Does a form have another value at every point, and consist of unchanged indices?
static int eini_pre_direct(const eini_preimage *p, const int64_t *c) {
  int64_t span = 0, below = 0;
  for (int x, equal; (x = eini_pre_next(p, c, below, &equal)) >= 0;) {
    below = eini_abs64(c[x]);
    if (equal || p->state[x] != EINI_X_REST || p->old[x] < 0 || below <= span ||
        eini_muladd_overflow(below, eini_max64(p->size[x] - 1, 0), span, &span))
      return 0;
  }
  return 1;
}

// How often the other indices of a form must be split when it is solved for x: their number, and in
// *other the one, in *times into how many parts.
static int eini_pre_splits(const eini_preimage *p, const int64_t *c, int x, int *other,
                           int64_t *times) {
  int64_t s = eini_abs64(c[x]);
  int splits = 0;
  *other = -1;
  *times = 1;
  for (int i = 0; i < p->n; i++) {
    if (i == x || c[i] % s == 0) continue;
    int64_t a = s, b = eini_abs64(c[i] % s);
    while (b != 0) {
      int64_t t = a % b;
      a = b;
      b = t;
    }
    splits += p->state[i] == EINI_X_REST ? 1 : 2;
    *other = i;
    *times = s / a;
  }
  return splits;
}

// The index a form is best solved for: what is left to sum is least. -1: none.
static int eini_pre_pivot(const eini_preimage *p, const int64_t *c) {
  int best = -1, other;
  int64_t times, score, most = 0, pieces;
  for (int x = 0; x < p->n; x++) {
    if (c[x] == 0 || c[x] == INT64_MIN || p->state[x] != EINI_X_REST ||
        eini_mul_overflow(p->pieces, eini_abs64(c[x]), &pieces) || pieces > EINI_PIECES_MAX ||
        eini_pre_splits(p, c, x, &other, &times) > 1)
      continue;
    if (eini_mul_overflow(p->size[x], times, &score)) score = INT64_MAX;
    if (score <= most) continue;
    most = score;
    best = x;
  }
  return best;
}

// Solves coordinate r = c*x + b for x: coordinates of one residue modulo its factor.
static void eini_pre_solve(eini_preimage *p, int r, int64_t *c, int64_t b, int64_t extent, int x,
                           const char *name) {
  int64_t s = eini_abs64(c[x]), sign = c[x] < 0 ? -1 : 1, rho = p->digit % s, times, v = 0;
  int other, row = p->nold + r, cond = p->nold + p->nout + p->ncond;
  eini_pre_splits(p, c, x, &other, &times);
  p->digit /= s;
  p->pieces *= s;
  while (v < times && ((other < 0 ? 0 : c[other] % s * v) + b % s - rho) % s != 0) v++;
  p->none |= v == times;
  p->empty |= rho >= extent;
  if (v == times) v = 0;
  if (other >= 0) {  // it becomes times*other + v
    for (int q = 0; q < p->nold + p->nout + p->ncond; q++) {
      int64_t *f = eini_pre_row(p, q) + other;
      p->over |= eini_muladd_overflow(*f, v, p->offset[q], &p->offset[q]);
      p->over |= eini_mul_overflow(*f, times, f);
    }
    p->over |= eini_muladd_overflow(c[other], v, b, &b);
    p->over |= eini_mul_overflow(c[other], times, &c[other]);
    p->none |= v >= p->extent[other];
    p->extent[other] = p->extent[other] <= v ? 0 : (p->extent[other] - v - 1) / times + 1;
    p->size[other] = (p->size[other] - 1) / times + 1;
    p->old[other] = -1;
  }
  eini_pre_row(p, cond)[x] = 1;
  p->bound[p->ncond] = p->extent[x];
  p->who[p->ncond++] = p->old[x];
  p->state[x] = EINI_X_GONE;
  int q = eini_pre_index(p, rho >= extent ? 0 : (extent - rho - 1) / s + 1, EINI_X_FREE, -1, name);
  p->size[q] = (extent - 1) / s + 1;
  for (int i = 0; i < p->n; i++) c[i] = i == x || i == q ? 0 : -sign * (c[i] / s);
  c[q] = sign;
  eini_pre_replace(p, x, c, -sign * ((b - rho) / s));
  eini_pre_row(p, row)[q] = s;
  p->offset[row] = rho;
}

// Brings coordinate r, a form over the old indices, into the space.
static void eini_pre_take(eini_preimage *p, int r, const int64_t *coef, int64_t offset,
                          int64_t extent, int64_t *c, const char *name) {
  int row = p->nold + r, x;
  int64_t b = eini_pre_form(p, coef, offset, c);
  if (p->over) return;
  if (eini_pre_direct(p, c)) {
    for (int i = 0; i < p->n; i++) {
      if (c[i] != 0) p->state[i] = EINI_X_FREE;
      eini_pre_row(p, row)[i] = c[i];
    }
    p->offset[row] = b;
    p->direct[r] = 1;
  } else if ((x = eini_pre_pivot(p, c)) >= 0) {
    eini_pre_solve(p, r, c, b, extent, x, name);
  } else {  // a new index, and the condition that the form equals it
    int cond = p->nold + p->nout + p->ncond;
    x = eini_pre_index(p, extent, EINI_X_FREE, -1, name);
    eini_pre_row(p, row)[x] = 1;
    memcpy(eini_pre_row(p, cond), c, (size_t)p->cap * sizeof *c);
    eini_pre_row(p, cond)[x] = -1;
    p->offset[cond] = b;
    p->who[p->ncond] = -1;
    p->bound[p->ncond++] = -1;
  }
}

// The space of one piece for an operand's map; names: of new indices, one per coordinate. Single
// indices come first: they cost nothing.
static ein_status eini_pre_build(eini_preimage *p, const eini_stmt *s, const ein_zmap *m,
                                 const int64_t *shape, const char *const *names, int64_t piece,
                                 int64_t *c) {
  eini_pre_begin(p, s, piece);
  for (int round = 0; round < 2; round++) {
    for (int r = 0; r < m->rows; r++) {
      const int64_t *coef = m->coef + (int64_t)r * m->cols;
      int terms = 0;
      for (int i = 0; i < m->cols; i++) terms += coef[i] != 0 && s->index[i].extent > 1;
      if ((terms > 1) == round)
        eini_pre_take(p, r, coef, m->offset[r], shape[r], c, names[r]);
    }
  }
  for (int x = 0; x < p->n; x++) p->empty |= p->state[x] == EINI_X_FREE && p->extent[x] == 0;
  return p->over ? EIN_ERR_TOO_LARGE : EIN_OK;
}

// ================================================================================================
// >>drafts  writing the statements of gradients
// Takes expressions over operands in scratch memory; appends statements, sums of products with what
// they do not depend on taken out.
// ================================================================================================

#define EINI_GRAD_STATEMENTS ((int64_t)1 << 16)  // of a graph with gradients

typedef struct eini_grad_part {  // one of the tensors whose sum is a cotangent
  struct eini_grad_part *next;
  int tensor, shared;     // shared: it was made for something else
  const ein_zmap *map;    // from the cotangent's axes; NULL: it has the same
} eini_grad_part;

typedef struct eini_grad {
  ein_graph *g;
  eini_diag *diag;
  int64_t pos, len;         // in the text, or -1
  eini_syn *const *at;      // names in the text: the loss, the seed, those of wrt; or NULL
  eini_arena *scratch;
  int64_t nstmt;            // of the graph before
  int loss;
  unsigned char *reach;     // per tensor: depends on what is differentiated by
  unsigned char *done;      // per tensor: cot is known
  int *cot, *want;          // per tensor: its cotangent and its gradient's tensor; -1: none
  eini_grad_part **share;
  int64_t cells, nodes;
  ein_status status;        // why a function gave no node; EIN_OK: out of memory
} eini_grad;

#define EINI_COT_ONE (-2)   // the cotangent of the loss when there is no seed

static ein_status eini_grad_full(const eini_grad *w) {
  return eini_fail(w->diag, EIN_ERR_TOO_LARGE, w->pos, w->len, NULL, "the gradient is too large");
}

// A new tensor, named after another one.
static ein_status eini_grad_tensor(eini_grad *w, int like, ein_dtype t, int rank,
                                   const int64_t *shape, int *id) {
  const char *s = w->g->tensor[like].name;
  static const int64_t none[1] = {0};
  char name[96];
  int len = (int)strcspn(s, ".");
  snprintf(name, sizeof name, "%.*s.d%lld", eini_cut(s, len), s, (long long)w->g->ntensor);
  return eini_graph_add_tensor(w->g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, t, rank,
                               rank == 0 ? none : shape, id);
}

static ein_status eini_grad_failed(const eini_grad *w) {
  return w->status != EIN_OK ? w->status : EIN_ERR_NO_MEMORY;
}

// ---- writing statements ----

// The columns col[j] of a map; NULL: the first ones.
static void eini_zmap_pick(ein_zmap *to, const ein_zmap *from, const int *col) {
  for (int r = 0; r < from->rows; r++) {
    to->offset[r] = from->offset[r];
    for (int j = 0; j < to->cols; j++)
      to->coef[(int64_t)r * to->cols + j] =
          from->coef[(int64_t)r * from->cols + (col == NULL ? j : col[j])];
  }
}

// A statement in scratch memory, with room for one more operand; the caller fills indices,
// operands, maps and expression.
static ein_status eini_draft(eini_grad *w, eini_stmt *f, int out, int n, int nfree, int nop) {
  memset(f, 0, sizeof *f);
  f->out = out;
  f->nindex = n;
  f->nfree = nfree;
  f->noperand = nop;
  f->fold = nfree < n ? EINI_SUM : EINI_FOLD_NONE;
  f->index = EINI_NEW(w->scratch, eini_index, n);
  f->operand = EINI_NEW(w->scratch, int, nop + 1);
  f->proj = EINI_NEW(w->scratch, ein_zmap, nop + 1);
  if (f->index == NULL || f->operand == NULL || f->proj == NULL) return EIN_ERR_NO_MEMORY;
  return eini_zmap_new(w->scratch, w->g->tensor[out].rank, n, &f->out_map);
}

static ein_status eini_draft_operand(eini_grad *w, eini_stmt *f, int k, int tensor) {
  f->operand[k] = tensor;
  return eini_zmap_new(w->scratch, w->g->tensor[tensor].rank, f->nindex, &f->proj[k]);
}

// Marks the nodes below root in keep, and the operands they read by 0 in number (-1: not read).
static void eini_draft_mark(eini_grad *w, const eini_stmt *f, int root, int *keep, int *number) {
  const eini_expr *e = &f->expr;
  for (int k = 0; k < f->noperand; k++) number[k] = -1;
  keep[root] = 1;
  for (int id = root; id >= 0; id--) {
    const eini_node *v = &e->node[id];
    if (!keep[id]) continue;
    for (int i = 0; i < eini_node_args(v); i++) keep[eini_node_arg(e, v, i)] = 1;
    if (v->op == EINI_OP_OPERAND) number[v->arg[0]] = 0;
    w->nodes++;
  }
}

// Copies a node whose children have new numbers; its own, or -1.
static int eini_node_copy(eini_arena *a, const eini_expr *e, int id, const int *map,
                          eini_expr *to) {
  eini_node v = e->node[id];
  int arg[EINI_ARGS_MAX] = {0}, n = eini_node_args(&v), made;
  for (int i = 0; i < n; i++) arg[i] = map[eini_node_arg(e, &v, i)];
  if (v.op == EINI_OP_CALL) {
    made = eini_expr_call(a, to, v.pos, v.arg[0], n, arg);
    if (made >= 0) to->node[made].dtype = v.dtype;
    return made;
  }
  for (int i = 0; i < n; i++) v.arg[i] = arg[i];
  made = eini_expr_add(a, to, v.op, v.pos, 0, 0, 0);
  if (made >= 0) to->node[made] = v;
  return made;
}

// Appends a draft: only nodes below root, and only operands they read.
static ein_status eini_draft_append(eini_grad *w, const eini_stmt *f, int root) {
  ein_graph *g = w->g;
  int64_t cells = f->out_map.rows;
  int nop = 0, *map, *number, *op;
  eini_stmt *s;
  if (root < 0) return EIN_ERR_NO_MEMORY;
  map = EINI_NEW(w->scratch, int, root + 1);
  number = EINI_NEW(w->scratch, int, f->noperand);
  op = EINI_NEW(w->scratch, int, f->noperand);
  if (map == NULL || number == NULL || op == NULL) return EIN_ERR_NO_MEMORY;
  eini_draft_mark(w, f, root, map, number);
  for (int k = 0; k < f->noperand; k++) {
    if (number[k] < 0) continue;
    cells += g->tensor[f->operand[k]].rank;
    op[nop] = f->operand[k];
    number[k] = nop++;
  }
  if (eini_mul_overflow(cells, f->nindex + 1, &cells) || (w->cells += cells) > EINI_CELLS_MAX ||
      w->nodes > EINI_NODES_MAX || g->nstmt >= EINI_GRAD_STATEMENTS)
    return eini_grad_full(w);
  EINI_TRY(eini_graph_add_stmt(g, f->out, f->nindex, nop, op, &s));
  s->nfree = f->nfree;
  s->fold = f->fold;
  s->pos = w->pos;
  for (int i = 0; i < f->nindex; i++) s->index[i] = f->index[i];
  eini_zmap_fill(&s->out_map, &f->out_map);
  for (int k = 0; k < f->noperand; k++)
    if (number[k] >= 0) eini_zmap_fill(&s->proj[number[k]], &f->proj[k]);
  for (int id = 0; id <= root; id++) {
    if (!map[id]) continue;
    map[id] = eini_node_copy(&g->arena, &f->expr, id, map, &s->expr);
    if (map[id] < 0) return EIN_ERR_NO_MEMORY;
    eini_node *v = &s->expr.node[map[id]];
    if (v->op == EINI_OP_OPERAND) v->arg[0] = number[v->arg[0]];
  }
  EINI_TRY(eini_stmt_finish(g, s, w->diag));
  eini_tensor_fix_dtype(&g->tensor[f->out]);
  return EIN_OK;
}

// An operation on nodes of a draft, as in eini_adj_op.
static int eini_draft_op(eini_grad *w, eini_stmt *f, int op, int x, int y, int z) {
  return x < 0 || y < 0 || z < 0 ? -1 : eini_expr_add(w->scratch, &f->expr, op, -1, x, y, z);
}

// A constant on the box of shape `extent` at out_map of a draft made for it.
static ein_status eini_draft_fill(eini_grad *w, eini_stmt *f, double value) {
  int id = eini_expr_real(w->scratch, &f->expr, -1, value);
  id = eini_draft_op(w, f, EINI_OP_CAST, id, 0, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  f->expr.node[id].dtype = (unsigned char)w->g->tensor[f->out].dtype;
  return eini_draft_append(w, f, id);
}

// A name for index i that no program has.
static ein_status eini_draft_index(eini_grad *w, eini_stmt *f, int i, int64_t extent) {
  char name[24];
  int len = snprintf(name, sizeof name, "d.%d", i);
  f->index[i].extent = extent;
  f->index[i].name = eini_strndup(&w->g->arena, name, len);
  return f->index[i].name == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// All elements of a tensor get one value, or, from > 0, the sum of other tensors of its shape.
static ein_status eini_grad_whole(eini_grad *w, int out, double value, const eini_grad_part *from) {
  const eini_tensor *t = &w->g->tensor[out];
  int n = 0, rank = t->rank, sum = -1;
  eini_stmt f;
  for (const eini_grad_part *x = from; x != NULL; x = x->next) n++;
  EINI_TRY(eini_draft(w, &f, out, rank, rank, n));
  for (int r = 0; r < rank; r++) {
    EINI_TRY(eini_draft_index(w, &f, r, w->g->tensor[out].shape[r]));
    f.out_map.coef[(int64_t)r * rank + r] = 1;
  }
  if (from == NULL) return eini_draft_fill(w, &f, value);
  for (int k = 0; k < n; k++, from = from->next) {
    EINI_TRY(eini_draft_operand(w, &f, k, from->tensor));
    eini_zmap_fill(&f.proj[k], from->map == NULL ? &f.out_map : from->map);
    int x = eini_expr_add(w->scratch, &f.expr, EINI_OP_OPERAND, -1, k, 0, 0);
    sum = k == 0 ? x : eini_draft_op(w, &f, EINI_OP_ADD, sum, x, 0);
  }
  return eini_draft_append(w, &f, sum);
}

// ---- factors that a sum does not depend on ----

// The factors of a draft's sum. what: IN depends on what is summed; DIV divides; IF is a condition,
// elsewhere the product is 0; OUT any other factor.
enum { EINI_F_IN, EINI_F_OUT, EINI_F_DIV, EINI_F_IF };

typedef struct eini_grad_factor {
  int node, what;
} eini_grad_factor;

typedef struct eini_grad_factors {
  int64_t n, cap;
  eini_grad_factor *list;
  int minus, inside, gain;  // negative; factors that are IN; more than operands stands outside
} eini_grad_factors;

static ein_status eini_factor_add(eini_grad *w, eini_grad_factors *u, int node, int what) {
  eini_grad_factor *p =
      (eini_grad_factor *)eini_grow(w->scratch, u->list, u->n, &u->cap, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  u->list = p;
  p[u->n].node = node;
  p[u->n++].what = what;
  return EIN_OK;
}

// Which nodes depend on index i (-1: on a reduced index)?
static void eini_draft_depends(const eini_stmt *f, int root, int i, unsigned char *dep) {
  int from = i < 0 ? f->nfree : i, to = i < 0 ? f->nindex : i + 1;
  for (int id = 0; id <= root; id++) {
    const eini_node *v = &f->expr.node[id];
    dep[id] = v->op == EINI_OP_INDEX && v->arg[0] >= from && v->arg[0] < to;
    for (int k = 0; k < eini_node_args(v); k++) dep[id] |= dep[eini_node_arg(&f->expr, v, k)];
    if (v->op != EINI_OP_OPERAND) continue;
    const ein_zmap *m = &f->proj[v->arg[0]];
    for (int r = 0; r < m->rows; r++)
      for (int c = from; c < to; c++) dep[id] |= m->coef[(int64_t)r * m->cols + c] != 0;
  }
}

static ein_status eini_draft_factors(eini_grad *w, const eini_stmt *f, int root,
                                     const unsigned char *dep, eini_grad_factors *u) {
  EINI_TRY(eini_factor_add(w, u, root, EINI_F_IN));
  for (int64_t i = 0; i < u->n;) {
    const eini_node *v = &f->expr.node[u->list[i].node];
    int open = u->list[i].what == EINI_F_IN, z = v->arg[2];
    if (open && v->op == EINI_OP_MUL) {
      u->list[i].node = v->arg[0];
      EINI_TRY(eini_factor_add(w, u, v->arg[1], EINI_F_IN));
    } else if (open && v->op == EINI_OP_NEG) {
      u->list[i].node = v->arg[0];
      u->minus = !u->minus;
    } else if (open && v->op == EINI_OP_DIV && !dep[v->arg[1]]) {
      u->list[i].node = v->arg[0];
      EINI_TRY(eini_factor_add(w, u, v->arg[1], EINI_F_DIV));
    } else if (open && v->op == EINI_OP_WHERE && !dep[v->arg[0]] &&
               f->expr.node[z].op == EINI_OP_CONST && f->expr.node[z].re == 0) {
      u->list[i].node = v->arg[1];
      EINI_TRY(eini_factor_add(w, u, v->arg[0], EINI_F_IF));
    } else {
      if (open && !dep[u->list[i].node]) u->list[i].what = EINI_F_OUT;
      u->inside += u->list[i].what == EINI_F_IN;
      u->gain |= u->list[i].what > EINI_F_OUT ||
                 (u->list[i].what == EINI_F_OUT && v->op != EINI_OP_OPERAND);
      i++;
    }
  }
  u->gain |= u->minus;
  return EIN_OK;
}

// What stands outside the sum, over the draft's free indices; operand number `sum` is the sum.
static int eini_draft_outside(eini_grad *w, eini_stmt *f, const eini_grad_factors *u, int sum) {
  int x = eini_expr_add(w->scratch, &f->expr, EINI_OP_OPERAND, -1, sum, 0, 0), mask = -1;
  if (u->minus) x = eini_draft_op(w, f, EINI_OP_NEG, x, 0, 0);
  for (int64_t i = 0; i < u->n; i++) {
    int what = u->list[i].what, y = u->list[i].node;
    if (what == EINI_F_OUT) x = eini_draft_op(w, f, EINI_OP_MUL, x, y, 0);
    if (what == EINI_F_DIV) x = eini_draft_op(w, f, EINI_OP_DIV, x, y, 0);
    if (what == EINI_F_IF) mask = mask < 0 ? y : eini_draft_op(w, f, EINI_OP_AND, mask, y, 0);
  }
  if (mask < 0) return x;
  return eini_draft_op(w, f, EINI_OP_WHERE, mask, x, eini_expr_int(w->scratch, &f->expr, -1, 0));
}

// A draft over other indices: index j becomes index col[j] of f, the first nfree of n are free.
static ein_status eini_draft_pick(eini_grad *w, const eini_stmt *f, eini_stmt *to, int out, int n,
                                  int nfree, const int *col) {
  EINI_TRY(eini_draft(w, to, out, n, nfree, f->noperand));
  for (int j = 0; j < n; j++) to->index[j] = f->index[col == NULL ? j : col[j]];
  for (int k = 0; k < f->noperand; k++) {
    EINI_TRY(eini_draft_operand(w, to, k, f->operand[k]));
    eini_zmap_pick(&to->proj[k], &f->proj[k], col);
  }
  to->expr = f->expr;
  return EIN_OK;
}

// Appends the sum of node `product` of a draft as a new tensor, over those of the draft's free
// indices that it depends on; reads it in draft `out` by one more operand, its last one.
static ein_status eini_draft_inside(eini_grad *w, eini_stmt *f, int product, eini_stmt *out) {
  int n = 0, kept, tensor, *col = EINI_NEW(w->scratch, int, f->nindex);
  int *at = EINI_NEW(w->scratch, int, f->nindex);
  unsigned char *dep = product < 0 ? NULL : EINI_NEW(w->scratch, unsigned char, product + 1);
  int64_t *shape = EINI_NEW(w->scratch, int64_t, f->nfree);
  eini_node *node = EINI_NEW(w->scratch, eini_node, product + 1);
  eini_stmt in;
  if (col == NULL || at == NULL || dep == NULL || shape == NULL || node == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->nindex; i++) {
    if (i < f->nfree) eini_draft_depends(f, product, i, dep);
    if (i < f->nfree && !dep[product]) continue;
    if (i < f->nfree) shape[n] = f->index[i].extent;
    at[i] = n;
    col[n++] = i;
  }
  kept = n - (f->nindex - f->nfree);
  EINI_TRY(eini_grad_tensor(w, f->out, EIN_NONE, kept, shape, &tensor));
  EINI_TRY(eini_draft_pick(w, f, &in, tensor, n, kept, col));
  for (int j = 0; j < kept; j++) in.out_map.coef[(int64_t)j * n + j] = 1;
  memcpy(node, f->expr.node, (size_t)(product + 1) * sizeof *node);
  in.expr.node = node;
  for (int id = 0; id <= product; id++)
    if (node[id].op == EINI_OP_INDEX) node[id].arg[0] = at[node[id].arg[0]];
  EINI_TRY(eini_draft_append(w, &in, product));
  EINI_TRY(eini_draft_operand(w, out, out->noperand, tensor));
  for (int j = 0; j < kept; j++)
    out->proj[out->noperand].coef[(int64_t)j * out->nindex + col[j]] = 1;
  out->noperand++;
  return EIN_OK;
}

// Appends a draft. Where its sum is one of products, functions, divisors and conditions that do not
// depend on what is summed stand outside, so that a product of operands remains.
static ein_status eini_draft_split(eini_grad *w, eini_stmt *f, int root) {
  eini_grad_factors u;
  eini_stmt out;
  int x = -1, sum = f->noperand;
  int64_t count = 1;
  unsigned char *dep = root < 0 ? NULL : EINI_NEW(w->scratch, unsigned char, root + 1);
  memset(&u, 0, sizeof u);
  if (dep == NULL) return EIN_ERR_NO_MEMORY;
  if (f->fold != EINI_SUM) return eini_draft_append(w, f, root);
  eini_draft_depends(f, root, -1, dep);
  EINI_TRY(eini_draft_factors(w, f, root, dep, &u));
  if (u.inside > 0 && !u.gain) return eini_draft_append(w, f, root);
  for (int64_t i = 0; i < u.n; i++) {
    int y = u.list[i].node;
    if (u.list[i].what == EINI_F_IN) x = x < 0 ? y : eini_draft_op(w, f, EINI_OP_MUL, x, y, 0);
  }
  EINI_TRY(eini_draft_pick(w, f, &out, f->out, f->nfree, f->nfree, NULL));
  eini_zmap_pick(&out.out_map, &f->out_map, NULL);
  if (u.inside > 0) {
    EINI_TRY(eini_draft_inside(w, f, x, &out));
    return eini_draft_append(w, &out, eini_draft_outside(w, &out, &u, sum));
  }
  for (int i = f->nfree; i < f->nindex; i++)
    if (eini_mul_overflow(count, f->index[i].extent, &count)) return eini_grad_full(w);
  x = eini_expr_int(w->scratch, &out.expr, -1, count);
  return eini_draft_append(w, &out, eini_draft_op(w, &out, EINI_OP_MUL, root, x, 0));
}

// ================================================================================================
// >>unfold  cotangents of what a statement folds
// Takes a statement and the cotangent of its tensor; gives that of the value that is folded, with
// tensors of what the fold needs for it.
// ================================================================================================

// A statement whose cotangent is being carried to its operands. More operands are added to it:
// the cotangent, stored results, and tensors made for its fold.
typedef struct eini_back {
  eini_grad *w;
  eini_stmt s;              // as it is in the graph
  eini_adjoint d;
  int64_t n, cap, cap2;     // operands
  int *operand;
  ein_zmap *proj;           // over the statement's indices
  // For eini_back_part: `room` of each, for nodes or operands.
  int *mark;                // of a node: 1: met, 2: copied; 0 between calls
  int *map;                 // of a node: its copy
  int *from;                // of a copy: its node
  int *used;                // of an operand: its number where it is used
  int *stack;               // nodes to be looked at
  int64_t room, capstack;
} eini_back;

// A node that reads one more operand; map NULL: its axes are the first indices.
static int eini_back_read(eini_back *b, int tensor, const ein_zmap *map) {
  eini_arena *a = b->w->scratch;
  int rank = b->w->g->tensor[tensor].rank;
  int *op = (int *)eini_grow(a, b->operand, b->n, &b->cap, sizeof *op);
  ein_zmap *proj = (ein_zmap *)eini_grow(a, b->proj, b->n, &b->cap2, sizeof *proj);
  if (op == NULL || proj == NULL || eini_zmap_new(a, rank, b->s.nindex, &proj[b->n]) != EIN_OK)
    return -1;
  b->operand = op;
  b->proj = proj;
  op[b->n] = tensor;
  if (map != NULL) eini_zmap_fill(&proj[b->n], map);
  for (int r = 0; map == NULL && r < rank; r++)
    proj[b->n].coef[(int64_t)r * b->s.nindex + r] = 1;
  return eini_expr_add(a, &b->d.e, EINI_OP_OPERAND, -1, (int)b->n++, 0, 0);
}

// A draft over the statement's first n indices, with all operands.
static ein_status eini_back_draft(eini_back *b, eini_stmt *f, int out, int n, int nfree) {
  eini_grad *w = b->w;
  EINI_TRY(eini_draft(w, f, out, n, nfree, (int)b->n));
  for (int i = 0; i < n; i++) f->index[i] = b->s.index[i];
  for (int k = 0; k < b->n; k++) {
    EINI_TRY(eini_draft_operand(w, f, k, b->operand[k]));
    eini_zmap_pick(&f->proj[k], &b->proj[k], NULL);
  }
  f->expr = b->d.e;
  return EIN_OK;
}

static ein_status eini_back_storing(eini_back *b, int root, int nfree, int n, int fold, int *id) {
  eini_grad *w = b->w;
  eini_stmt f;
  int64_t *shape = EINI_NEW(w->scratch, int64_t, nfree);
  if (shape == NULL || root < 0) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nfree; i++) shape[i] = b->s.index[i].extent;
  EINI_TRY(eini_grad_tensor(w, b->s.out, EIN_NONE, nfree, shape, id));
  EINI_TRY(eini_back_draft(b, &f, *id, n, nfree));
  for (int i = 0; i < nfree; i++) f.out_map.coef[(int64_t)i * n + i] = 1;
  f.fold = fold;
  return eini_draft_append(w, &f, root);
}

// A node that reads a new tensor over the first nfree indices: a fold of node root over those from
// nfree to n.
static int eini_back_store(eini_back *b, int root, int nfree, int n, int fold) {
  int tensor;
  if (b->w->status == EIN_OK)
    b->w->status = eini_back_storing(b, root, nfree, n, fold, &tensor);
  return b->w->status != EIN_OK ? -1 : eini_back_read(b, tensor, NULL);
}

// May the stored result stand for the value that was computed? Not when storing rounded it.
static int eini_back_kept(const eini_back *b, ein_dtype t) {
  ein_dtype stored = b->w->g->tensor[b->s.out].dtype;
  return stored == t && ein_dtype_compute(t) == t;
}

// max and min: what equals the result shares its cotangent. The values compared are stored, so that
// they are computed once.
static int eini_back_extreme(eini_back *b, int root, int g, int *mask) {
  const eini_stmt *s = &b->s;
  eini_adjoint *d = &b->d;
  const eini_node *v = &d->e.node[root];
  int plain = v->op == EINI_OP_OPERAND, nfree = s->nfree, n = s->nindex;
  int same = plain && b->w->g->tensor[b->operand[v->arg[0]]].dtype ==
                          b->w->g->tensor[s->out].dtype;
  ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  int x = plain ? root : eini_back_store(b, root, n, n, EINI_FOLD_NONE);
  int most = same ? eini_back_read(b, s->out, &s->out_map)
                  : eini_back_store(b, x, nfree, n, s->fold);
  *mask = eini_adj_op(d, EINI_OP_EQ, x, most, 0);
  int count = eini_back_store(b, eini_adj_one(d, *mask, t), nfree, n, EINI_SUM);
  return eini_back_store(b, eini_adj_op(d, EINI_OP_DIV, g, count, 0), nfree, nfree,
                         EINI_FOLD_NONE);
}

// out[.., ostep*i + oat] = x[.., xstep*i + xat] * y[.., ystep*i + yat] for i < count; y may be -1.
static ein_status eini_back_pair(eini_back *b, int out, int64_t ostep, int64_t oat, int64_t count,
                                 int x, int64_t xstep, int64_t xat, int y, int64_t ystep,
                                 int64_t yat) {
  eini_grad *w = b->w;
  int n = b->s.nfree + 1, root = -1;
  int64_t last = (int64_t)(n - 1) * n + n - 1;
  eini_stmt f;
  if (count == 0) return EIN_OK;
  EINI_TRY(eini_draft(w, &f, out, n, n, y < 0 ? 1 : 2));
  for (int i = 0; i < n - 1; i++) f.index[i] = b->s.index[i];
  EINI_TRY(eini_draft_index(w, &f, n - 1, count));
  for (int i = 0; i < n; i++) f.out_map.coef[(int64_t)i * n + i] = 1;
  for (int k = 0; k < f.noperand; k++) {
    EINI_TRY(eini_draft_operand(w, &f, k, k == 0 ? x : y));
    eini_zmap_fill(&f.proj[k], &f.out_map);
    f.proj[k].coef[last] = k == 0 ? xstep : ystep;
    f.proj[k].offset[n - 1] = k == 0 ? xat : yat;
    int v = eini_expr_add(w->scratch, &f.expr, EINI_OP_OPERAND, -1, k, 0, 0);
    root = k == 0 ? v : eini_draft_op(w, &f, EINI_OP_MUL, root, v, 0);
  }
  f.out_map.coef[last] = ostep;
  f.out_map.offset[n - 1] = oat;
  return eini_draft_append(w, &f, root);
}

// The values of node root, reduced indices as one last axis of n elements.
static ein_status eini_back_values(eini_back *b, int root, int64_t n, int64_t *shape, int *id) {
  const eini_stmt *s = &b->s;
  int nfree = s->nfree;
  int64_t step = 1, last = (int64_t)nfree * s->nindex;
  ein_dtype t = ein_dtype_compute((ein_dtype)b->d.e.node[root].dtype);
  eini_stmt f;
  for (int i = 0; i < nfree; i++) shape[i] = s->index[i].extent;
  shape[nfree] = n;
  EINI_TRY(eini_grad_tensor(b->w, s->out, t, nfree + 1, shape, id));
  EINI_TRY(eini_back_draft(b, &f, *id, s->nindex, s->nindex));
  for (int i = 0; i < nfree; i++) f.out_map.coef[(int64_t)i * s->nindex + i] = 1;
  for (int i = s->nindex - 1; i >= nfree; i--) {
    f.out_map.coef[last + i] = step;
    step *= s->index[i].extent;
  }
  return eini_draft_append(b->w, &f, root);
}

// A tensor of the products of all values but each, by a tree of products of pairs (up) and of
// products of all that is not below (down): no division, so zeros need no care.
static ein_status eini_back_others(eini_back *b, int64_t n, int64_t *shape, int *id) {
  int level[64], nfree = b->s.nfree, k = 0, other = -1, made;
  int64_t size[64];
  ein_dtype t = b->w->g->tensor[*id].dtype;
  level[0] = *id;
  for (size[0] = n; size[k] > 2; k++) {
    int64_t half = size[k] / 2;
    shape[nfree] = size[k + 1] = size[k] - half;
    EINI_TRY(eini_grad_tensor(b->w, b->s.out, t, nfree + 1, shape, &level[k + 1]));
    EINI_TRY(eini_back_pair(b, level[k + 1], 1, 0, half, level[k], 2, 0, level[k], 2,
                            1));
    EINI_TRY(eini_back_pair(b, level[k + 1], 1, half, size[k] % 2, level[k], 1, size[k] - 1, -1,
                            0, 0));
  }
  for (; k >= 0; k--, other = made) {
    int64_t half = size[k] / 2;
    shape[nfree] = size[k];
    EINI_TRY(eini_grad_tensor(b->w, b->s.out, t, nfree + 1, shape, &made));
    for (int side = 0; side < 2; side++)
      EINI_TRY(eini_back_pair(b, made, 2, side, half, level[k], 2, 1 - side, other, 1, 0));
    if (size[k] % 2 != 0)
      EINI_TRY(eini_back_pair(b, made, 1, size[k] - 1, 1, other, 1, half, -1, 0, 0));
  }
  *id = other;
  return EIN_OK;
}

static int eini_back_product(eini_back *b, int root, int g) {
  const eini_stmt *s = &b->s;
  int64_t n = 1, *shape = EINI_NEW(b->w->scratch, int64_t, s->nfree + 1);
  int tensor, x;
  ein_zmap m;
  for (int i = s->nfree; i < s->nindex; i++)
    if (eini_mul_overflow(n, s->index[i].extent, &n))
      return b->w->status = eini_grad_full(b->w), -1;
  if (n == 1) return g;
  if (shape == NULL) return -1;
  b->w->status = eini_back_values(b, root, n, shape, &tensor);
  if (b->w->status == EIN_OK) b->w->status = eini_back_others(b, n, shape, &tensor);
  if (b->w->status != EIN_OK || eini_zmap_new(b->w->scratch, s->nfree + 1, s->nindex, &m) != EIN_OK)
    return -1;
  for (int i = 0; i < s->nfree; i++) m.coef[(int64_t)i * s->nindex + i] = 1;
  n = 1;
  for (int i = s->nindex - 1; i >= s->nfree; i--) {
    m.coef[(int64_t)s->nfree * s->nindex + i] = n;
    n *= s->index[i].extent;
  }
  x = eini_back_read(b, tensor, &m);
  return x < 0 ? -1 : eini_adj_mul(&b->d, g, eini_adj_conj(&b->d, x, root));
}

// The number of values folded, as a literal.
static int eini_back_count(eini_back *b) {
  int64_t n = 1;
  double x = 1;
  int over = 0;
  for (int i = b->s.nfree; i < b->s.nindex; i++) {
    over |= eini_mul_overflow(n, b->s.index[i].extent, &n);
    x *= (double)b->s.index[i].extent;
  }
  return over ? eini_adj_real(&b->d, x) : eini_adj_int(&b->d, n);
}

// g as a value per point of the free indices, stored unless it is a literal.
static int eini_back_scaled(eini_back *b, int g) {
  if (g < 0 || b->w->g->tensor[b->s.out].rank == 0) return g;
  return eini_back_store(b, g, b->s.nfree, b->s.nfree, EINI_FOLD_NONE);
}

// The cotangent of the value that is folded, from that of the statement's tensor.
static int eini_back_seed(eini_back *b, int root, int cot, int *mask) {
  const eini_stmt *s = &b->s;
  eini_adjoint *d = &b->d;
  int nfree = s->nfree, n = s->nindex, x;
  int g = cot == EINI_COT_ONE ? eini_adj_int(d, 1) : eini_back_read(b, cot, &s->out_map);
  *mask = -1;
  if (cot != EINI_COT_ONE && eini_kind_of(b->w->g->tensor[s->out].dtype) == EINI_KCOMPLEX &&
      eini_kind_of(s->type) < EINI_KCOMPLEX)
    g = eini_adj_op(d, EINI_OP_REAL, g, 0, 0);
  switch (s->fold) {
    case EINI_PROD: return eini_back_product(b, root, g);
    case EINI_MAX: case EINI_MIN: return eini_back_extreme(b, root, g, mask);
    case EINI_MEAN:
      return eini_back_scaled(b, eini_adj_op(d, EINI_OP_DIV, g, eini_back_count(b), 0));
    case EINI_VAR:
      g = eini_adj_mul(d, eini_adj_int(d, 2), g);
      g = eini_back_scaled(b, eini_adj_op(d, EINI_OP_DIV, g, eini_back_count(b), 0));
      x = eini_back_store(b, root, nfree, n, EINI_MEAN);
      return eini_adj_mul(d, g, eini_adj_op(d, EINI_OP_SUB, root, x, 0));
    case EINI_LOGSUMEXP:
      x = eini_back_kept(b, s->type) ? eini_back_read(b, s->out, &s->out_map)
                                     : eini_back_store(b, root, nfree, n, EINI_LOGSUMEXP);
      *mask = eini_adj_op(d, EINI_OP_NE, root, eini_adj_real(d, -(double)INFINITY), 0);
      x = eini_adj_op(d, EINI_OP_SUB, root, x, 0);
      return eini_adj_mul(d, g, eini_adj_op(d, EINI_OP_EXP, x, 0, 0));
    default: return g;
  }
}

// ================================================================================================
// >>gradient  reverse-mode differentiation
// Takes a scalar (or a tensor and a seed) and tensors of a graph; appends statements that define
// the gradients. They are like any other statements: no other part of the library knows them.
// ================================================================================================

// ---- from a statement to its operands ----

// What a piece reads outside of its operands is 0 there: padded copies.
typedef struct eini_pads {
  unsigned char *keep;     // nodes that are needed
  int *tensor;             // per operand, -1 for one that is not read
  int64_t **low, **high;   // per operand and axis
} eini_pads;

static ein_status eini_pads_new(eini_back *b, int root, eini_pads *q) {
  eini_arena *a = b->w->scratch;
  unsigned char *keep = q->keep = EINI_NEW(a, unsigned char, root + 1);
  q->tensor = EINI_NEW(a, int, b->n);
  q->low = EINI_NEW(a, int64_t *, b->n);
  q->high = EINI_NEW(a, int64_t *, b->n);
  if (keep == NULL || q->tensor == NULL || q->low == NULL || q->high == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < b->n; k++) q->tensor[k] = -1;
  keep[root] = 1;
  for (int id = root; id >= 0; id--) {
    const eini_node *v = &b->d.e.node[id];
    for (int i = 0; keep[id] && i < eini_node_args(v); i++)
      keep[eini_node_arg(&b->d.e, v, i)] = 1;
    if (keep[id] && v->op == EINI_OP_OPERAND) q->tensor[v->arg[0]] = b->operand[v->arg[0]];
  }
  for (int k = 0; k < b->n; k++) {
    q->low[k] = EINI_NEW(a, int64_t, b->proj[k].rows);
    q->high[k] = EINI_NEW(a, int64_t, b->proj[k].rows);
    if (q->low[k] == NULL || q->high[k] == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// How far one piece reads outside; c: room for a form.
static ein_status eini_pads_widen(eini_back *b, eini_pads *q, eini_preimage *p, int64_t *c) {
  for (int k = 0; k < b->n; k++) {
    const eini_tensor *t = &b->w->g->tensor[b->operand[k]];
    const ein_zmap *m = &b->proj[k];
    for (int r = 0; q->tensor[k] >= 0 && r < m->rows; r++) {
      int64_t lo, hi;
      int64_t at = eini_pre_form(p, m->coef + (int64_t)r * m->cols, m->offset[r], c);
      if (p->over || eini_zmap_row_range(c, p->n, at, p->extent, &lo, &hi) != EIN_OK ||
          lo < -(INT64_MAX / 4) || hi > INT64_MAX / 4)
        return eini_grad_full(b->w);
      q->low[k][r] = eini_max64(q->low[k][r], -lo);
      q->high[k][r] = eini_max64(q->high[k][r], hi - t->shape[r] + 1);
    }
  }
  return EIN_OK;
}

static ein_status eini_pads_make(eini_back *b, eini_pads *q) {
  eini_grad *w = b->w;
  eini_syn zero;
  memset(&zero, 0, sizeof zero);
  zero.kind = EINI_S_NUM;
  zero.exact = 1;
  zero.pos = w->pos;
  for (int k = 0; k < b->n; k++) {
    eini_padding by = {{EINI_EDGE_CONST, &zero}, EIN_NONE, EIN_NONE, w->pos};
    if (q->tensor[k] >= 0) by.dtype = w->g->tensor[q->tensor[k]].dtype;
    for (int r = 0; q->tensor[k] >= 0 && r < b->proj[k].rows; r++) {
      char name[32];
      if (q->low[k][r] == 0 && q->high[k][r] == 0) continue;
      snprintf(name, sizeof name, "pad.d%lld", (long long)w->g->ntensor);
      EINI_TRY(eini_pad_axis(w->g, w->diag, &q->tensor[k], r, &by, q->low[k][r], q->high[k][r],
                             name));
    }
  }
  return EIN_OK;
}

// Is node root a product of operands, one of which is 0 wherever a condition fails, once it is
// padded with zeros? Then conditions need not be asked.
static int eini_back_vanishes(const eini_back *b, const eini_pads *q, const eini_preimage *p,
                              int root) {
  for (int id = 0; id <= root; id++) {
    int op = b->d.e.node[id].op;
    if (q->keep[id] && op != EINI_OP_MUL && op != EINI_OP_NEG && op != EINI_OP_CONJ &&
        op != EINI_OP_CAST && op != EINI_OP_OPERAND && op != EINI_OP_CONST && op != EINI_OP_PARAM &&
        op != EINI_OP_INDEX)
      return 0;
  }
  for (int i = 0; i < p->ncond; i++) {
    int found = 0, who = p->who[i];
    for (int k = 0; k < b->n && who >= 0; k++) {
      const ein_zmap *m = &b->proj[k];
      for (int r = 0; q->tensor[k] >= 0 && r < m->rows; r++) {
        const int64_t *c = m->coef + (int64_t)r * m->cols;
        int plain = c[who] == 1 && m->offset[r] == 0 &&
                    b->w->g->tensor[b->operand[k]].shape[r] == b->s.index[who].extent;
        for (int j = 0; j < m->cols; j++) plain &= j == who || c[j] == 0;
        found |= plain;
      }
    }
    if (!found) return 0;
  }
  return 1;
}

// A form over new indices as nodes of a draft; at: their numbers there.
static int eini_pre_node(eini_grad *w, eini_stmt *f, const eini_preimage *p, const int *at,
                         const int64_t *c, int64_t offset) {
  int sum = -1;
  for (int x = 0; x < p->n; x++) {
    if (c[x] == 0) continue;
    int y = eini_expr_add(w->scratch, &f->expr, EINI_OP_INDEX, -1, at[x], 0, 0);
    if (c[x] != 1)
      y = eini_draft_op(w, f, EINI_OP_MUL, eini_expr_int(w->scratch, &f->expr, -1, c[x]), y, 0);
    sum = sum < 0 ? y : eini_draft_op(w, f, EINI_OP_ADD, sum, y, 0);
  }
  if (sum >= 0 && offset == 0) return sum;
  int y = eini_expr_int(w->scratch, &f->expr, -1, offset);
  return sum < 0 ? y : eini_draft_op(w, f, EINI_OP_ADD, sum, y, 0);
}

// The expression of a piece: old indices in it become forms of new ones. A literal index would not
// be an i64, so one that is constant is converted.
static int eini_back_nodes(eini_back *b, const eini_preimage *p, const eini_pads *q, const int *at,
                           int root, eini_stmt *f) {
  eini_grad *w = b->w;
  int *map = EINI_NEW(w->scratch, int, root + 1);
  if (map == NULL) return -1;
  for (int id = 0; id <= root; id++) {
    const eini_node *v = &b->d.e.node[id];
    if (!q->keep[id]) continue;
    if (v->op == EINI_OP_INDEX) {
      int i = v->arg[0], x;
      map[id] = x = eini_pre_node(w, f, p, at, p->coef + (int64_t)i * p->cap, p->offset[i]);
      if (x < 0) return -1;
      if (f->expr.node[x].op != EINI_OP_CONST) continue;
      map[id] = eini_draft_op(w, f, EINI_OP_CAST, x, 0, 0);
      if (map[id] >= 0) f->expr.node[map[id]].dtype = EIN_I64;
    } else {
      map[id] = eini_node_copy(w->scratch, &b->d.e, id, map, &f->expr);
    }
    if (map[id] < 0) return -1;
  }
  return map[root];
}

// Node x where all conditions of a piece hold that could fail, else 0.
static int eini_back_where(eini_back *b, const eini_preimage *p, const int *at, int x,
                           eini_stmt *f) {
  eini_grad *w = b->w;
  int mask = -1;
  for (int i = 0; i < p->ncond && x >= 0; i++) {
    int row = p->nold + p->nout + i, equal = p->bound[i] < 0, y;
    const int64_t *c = p->coef + (int64_t)row * p->cap;
    int64_t lo, hi;
    if (eini_zmap_row_range(c, p->n, p->offset[row], p->extent, &lo, &hi) != EIN_OK)
      return w->status = eini_grad_full(w), -1;
    for (int side = 0; side < (equal ? 1 : 2); side++) {
      if (equal ? lo == 0 && hi == 0 : side == 0 ? lo >= 0 : hi < p->bound[i]) continue;
      y = eini_expr_int(w->scratch, &f->expr, -1, equal || side == 0 ? 0 : p->bound[i]);
      y = eini_draft_op(w, f, equal ? EINI_OP_EQ : side == 0 ? EINI_OP_GE : EINI_OP_LT,
                        eini_pre_node(w, f, p, at, c, p->offset[row]), y, 0);
      mask = mask < 0 ? y : eini_draft_op(w, f, EINI_OP_AND, mask, y, 0);
      if (mask < 0) return -1;
    }
  }
  if (mask < 0) return x;
  return eini_draft_op(w, f, EINI_OP_WHERE, mask, x, eini_expr_int(w->scratch, &f->expr, -1, 0));
}

// Numbers the new indices: free ones in the order of the coordinates, then those to be summed.
static int eini_pre_number(const eini_preimage *p, int *at, int *nfree) {
  int n = 0;
  for (int x = 0; x < p->n; x++) at[x] = -1;
  for (int r = 0; r < p->nout; r++) {
    const int64_t *c = p->coef + (int64_t)(p->nold + r) * p->cap;
    for (int x = 0; x < p->n; x++)
      if (c[x] != 0 && at[x] < 0) at[x] = n++;
  }
  *nfree = n;
  for (int x = 0; x < p->n; x++)
    if (p->state[x] == EINI_X_REST) at[x] = n++;
  return n;
}

// Writes one piece of what node root sends to an operand; ask: conditions must be asked.
static ein_status eini_back_piece(eini_back *b, eini_preimage *p, const eini_pads *q, int root,
                                  int out, int ask, int64_t *c) {
  eini_grad *w = b->w;
  eini_stmt f;
  int nfree, *at = EINI_NEW(w->scratch, int, p->cap);
  if (at == NULL) return EIN_ERR_NO_MEMORY;
  int n = eini_pre_number(p, at, &nfree);
  if (p->none) n = nfree;
  EINI_TRY(eini_draft(w, &f, out, n, nfree, (int)b->n));
  for (int x = 0; x < p->n; x++) {
    if (at[x] < 0 || at[x] >= n) continue;
    f.index[at[x]].extent = p->extent[x];
    f.index[at[x]].name = p->name[x];
  }
  for (int r = 0; r < p->nout; r++) {
    const int64_t *row = p->coef + (int64_t)(p->nold + r) * p->cap;
    f.out_map.offset[r] = p->offset[p->nold + r];
    for (int x = 0; x < p->n; x++)
      if (row[x] != 0) f.out_map.coef[(int64_t)r * n + at[x]] = row[x];
  }
  if (p->none) return eini_draft_fill(w, &f, 0);
  for (int k = 0; k < b->n; k++) {
    const ein_zmap *m = &b->proj[k];
    f.operand[k] = b->operand[k];
    if (q->tensor[k] < 0) continue;
    EINI_TRY(eini_draft_operand(w, &f, k, q->tensor[k]));
    for (int r = 0; r < m->rows; r++) {
      int64_t off = eini_pre_form(p, m->coef + (int64_t)r * m->cols, m->offset[r], c);
      f.proj[k].offset[r] = off + q->low[k][r];
      for (int x = 0; x < p->n; x++)
        if (c[x] != 0) f.proj[k].coef[(int64_t)r * n + at[x]] = c[x];
    }
  }
  int x = eini_back_nodes(b, p, q, at, root, &f);
  if (ask) x = eini_back_where(b, p, at, x, &f);
  return x < 0 ? eini_grad_failed(w) : eini_draft_split(w, &f, x);
}

// ---- zeros where a one-to-one coordinate leaves elements out ----

// One coordinate: base + sum of step[l]*i_l, the least step first; span: the largest sum below l.
typedef struct eini_comb {
  int n, *index;
  int64_t base, *step, *span;
} eini_comb;

static ein_status eini_comb_of(eini_grad *w, const eini_preimage *p, int r, eini_comb *u) {
  const int64_t *c = p->coef + (int64_t)(p->nold + r) * p->cap;
  int64_t above = 0, span = 0;
  int equal;
  u->n = 0;
  u->base = p->offset[p->nold + r];
  u->index = EINI_NEW(w->scratch, int, p->n);
  u->step = EINI_NEW(w->scratch, int64_t, p->n);
  u->span = EINI_NEW(w->scratch, int64_t, p->n + 1);
  if (u->index == NULL || u->step == NULL || u->span == NULL) return EIN_ERR_NO_MEMORY;
  for (int x; (x = eini_pre_next(p, c, above, &equal)) >= 0; u->n++) {
    u->index[u->n] = x;
    u->step[u->n] = above = eini_abs64(c[x]);
    if (c[x] < 0) u->base += c[x] * (p->extent[x] - 1);
    span += above * (p->extent[x] - 1);
    u->span[u->n + 1] = span;
  }
  return EIN_OK;
}

// A piece of zeros: in coordinate r `count` elements from `start` on, repeated over step `level`
// but its last and over those above it; combs before r, everything after it.
static ein_status eini_back_gap(eini_grad *w, const eini_preimage *p, const eini_comb *comb,
                                int out, int r, int level, int64_t start, int64_t count) {
  const eini_tensor *t = &w->g->tensor[out];
  int n = 0, most = p->n + t->rank, rank = t->rank;
  int64_t *extent = EINI_NEW(w->scratch, int64_t, most + 1);
  int64_t *step = EINI_NEW(w->scratch, int64_t, most + 1);
  int *row = EINI_NEW(w->scratch, int, most + 1);
  eini_stmt f;
  if (extent == NULL || step == NULL || row == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < rank; k++) {
    const eini_comb *u = &comb[k];
    int whole = k == r || k > r || !p->direct[k];
    if (whole) {
      extent[n] = k == r ? count : w->g->tensor[out].shape[k];
      step[n] = 1;
      row[n++] = k;
    }
    for (int l = k == r ? level : whole ? u->n : 0; l < u->n; l++) {
      extent[n] = p->extent[u->index[l]] - (k == r && l == level);
      step[n] = u->step[l];
      row[n++] = k;
    }
  }
  for (int i = 0; i < n; i++)
    if (extent[i] <= 0) return EIN_OK;
  EINI_TRY(eini_draft(w, &f, out, n, n, 0));
  for (int i = 0; i < n; i++) {
    EINI_TRY(eini_draft_index(w, &f, i, extent[i]));
    f.out_map.coef[(int64_t)row[i] * n + i] = step[i];
  }
  for (int k = 0; k < rank; k++)
    f.out_map.offset[k] = k == r ? start : k < r && p->direct[k] ? comb[k].base : 0;
  return eini_draft_fill(w, &f, 0);
}

static ein_status eini_back_zeros(eini_grad *w, const eini_preimage *p, int out) {
  eini_comb *comb = EINI_NEW(w->scratch, eini_comb, p->nout);
  if (comb == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < p->nout; r++)
    if (p->direct[r]) EINI_TRY(eini_comb_of(w, p, r, &comb[r]));
  for (int r = 0; r < p->nout; r++) {
    eini_comb *u = &comb[r];
    if (!p->direct[r]) continue;
    int64_t end = u->base + u->span[u->n] + 1;
    EINI_TRY(eini_back_gap(w, p, comb, out, r, u->n, 0, u->base));
    for (int l = 0; l < u->n; l++)
      EINI_TRY(eini_back_gap(w, p, comb, out, r, l, u->base + u->span[l] + 1,
                             u->step[l] - u->span[l] - 1));
    EINI_TRY(eini_back_gap(w, p, comb, out, r, u->n, end, w->g->tensor[out].shape[r] - end));
  }
  return EIN_OK;
}

// Names for new indices, one per coordinate.
static ein_status eini_pre_names(eini_grad *w, int n, const char ***names) {
  *names = EINI_NEW(w->scratch, const char *, n);
  for (int r = 0; *names != NULL && r < n; r++) {
    char name[24];
    int len = snprintf(name, sizeof name, "c%d.%lld", r, (long long)w->g->ntensor);
    if (((*names)[r] = eini_strndup(&w->g->arena, name, len)) == NULL) return EIN_ERR_NO_MEMORY;
  }
  return *names == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Is what node root sends to operand k a tensor that is there, seen from the operand's axes, each
// of them an index? Then it need not be made.
static int eini_back_shares(const eini_back *b, int k, int root, eini_grad_part *share) {
  const eini_grad *w = b->w;
  const eini_node *v = &b->d.e.node[root];
  const eini_tensor *to = &w->g->tensor[b->s.operand[k]], *from;
  const ein_zmap *m = &b->proj[k], *by;
  if (v->op != EINI_OP_OPERAND || m->rows != m->cols) return 0;
  for (int r = 0; r < m->rows; r++) {
    if (m->offset[r] != 0 || to->shape[r] != b->s.index[r].extent) return 0;
    for (int c = 0; c < m->cols; c++)
      if (m->coef[(int64_t)r * m->cols + c] != (r == c)) return 0;
  }
  by = &b->proj[v->arg[0]];
  from = &w->g->tensor[b->operand[v->arg[0]]];
  int same = eini_zmap_equal(by, m) &&
             from->dtype == ein_dtype_compute(to->dtype);
  for (int r = 0; same && r < m->rows; r++) same = from->shape[r] == to->shape[r];
  share->tensor = b->operand[v->arg[0]];
  share->map = same ? NULL : by;
  return share->shared = 1;
}

static ein_status eini_back_push(eini_back *b, int64_t *n, int id) {
  int *more = (int *)eini_grow(b->w->scratch, b->stack, *n, &b->capstack, sizeof *more);
  if (more == NULL) return EIN_ERR_NO_MEMORY;
  b->stack = more;
  more[(*n)++] = id;
  return EIN_OK;
}

// Copies the nodes below root, each after those it reads.
static ein_status eini_back_gather(eini_back *b, int root, eini_expr *to) {
  const eini_expr *e = &b->d.e;
  int64_t n = 0;
  EINI_TRY(eini_back_push(b, &n, root));
  while (n > 0) {
    int id = b->stack[n - 1];
    if (b->mark[id] != 0) n--;  // met a second time, after what it reads; or on another way
    if (b->mark[id] == 1) {
      b->map[id] = eini_node_copy(b->w->scratch, e, id, b->map, to);
      if (b->map[id] < 0) return EIN_ERR_NO_MEMORY;
      b->from[b->map[id]] = id;
      b->mark[id] = 2;
    }
    if (b->mark[id] != 0) continue;
    b->mark[id] = 1;
    for (int i = eini_node_args(&e->node[id]) - 1; i >= 0; i--)
      EINI_TRY(eini_back_push(b, &n, eini_node_arg(e, &e->node[id], i)));
  }
  for (int64_t i = 0; i < to->n; i++) b->mark[b->from[i]] = 0;
  return EIN_OK;
}

// The operands that a part reads, once each and in their order.
static ein_status eini_back_pick(const eini_back *b, eini_back *part) {
  part->operand = EINI_NEW(b->w->scratch, int, part->d.e.n);
  part->proj = EINI_NEW(b->w->scratch, ein_zmap, part->d.e.n);
  if (part->operand == NULL || part->proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < part->d.e.n; i++) {
    const eini_node *v = &part->d.e.node[i];
    int64_t to = part->n;
    if (v->op != EINI_OP_OPERAND) continue;
    while (to > 0 && part->operand[to - 1] > v->arg[0]) to--;
    if (to > 0 && part->operand[to - 1] == v->arg[0]) continue;
    memmove(part->operand + to + 1, part->operand + to,
            (size_t)(part->n++ - to) * sizeof *part->operand);
    part->operand[to] = v->arg[0];
  }
  for (int64_t k = 0; k < part->n; k++) {
    int old = part->operand[k];
    b->used[old] = (int)k;
    part->operand[k] = b->operand[old];
    part->proj[k] = b->proj[old];
  }
  for (int64_t i = 0; i < part->d.e.n; i++) {
    eini_node *v = &part->d.e.node[i];
    if (v->op == EINI_OP_OPERAND) v->arg[0] = b->used[v->arg[0]];
  }
  return EIN_OK;
}

// What node root needs of a statement's cotangents, and no more: what is sent to one of many
// operands must not cost more because of the others. *at: the root in it.
static ein_status eini_back_part(eini_back *b, int root, eini_back *part, int *at) {
  int64_t need = eini_max64(b->d.e.n, b->n);
  if (b->room < need) {
    b->mark = EINI_NEW(b->w->scratch, int, 8 * need);
    if (b->mark == NULL) return EIN_ERR_NO_MEMORY;
    b->room = 2 * need;
    b->map = b->mark + b->room;
    b->from = b->map + b->room;
    b->used = b->from + b->room;
  }
  memset(part, 0, sizeof *part);
  part->w = b->w;
  part->s = b->s;
  EINI_TRY(eini_back_gather(b, root, &part->d.e));
  *at = b->map[root];
  return eini_back_pick(b, part);
}

// A new tensor that is what node root, over all indices of the statement, sends to operand k:
// element c is the sum of root over all index values at which operand k is read at c.
static ein_status eini_back_send(eini_back *b, int k, int root) {
  eini_grad *w = b->w;
  int to = b->s.operand[k], rank = w->g->tensor[to].rank, out, ask;
  const int64_t *shape = w->g->tensor[to].shape;
  const char **names;
  eini_preimage p;
  eini_pads q;
  eini_back part;
  eini_grad_part *share = EINI_NEW(w->scratch, eini_grad_part, 1);
  if (share == NULL) return EIN_ERR_NO_MEMORY;
  share->next = w->share[to];
  w->share[to] = share;
  if (eini_back_shares(b, k, root, share)) return EIN_OK;
  EINI_TRY(eini_pre_new(&p, w->scratch, b->s.nindex, rank));
  int64_t *c = EINI_NEW(w->scratch, int64_t, p.cap);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_pre_names(w, rank, &names));
  EINI_TRY(eini_back_part(b, root, &part, &root));
  EINI_TRY(eini_pads_new(&part, root, &q));
  for (int64_t i = 0; i == 0 || i < p.pieces; i++) {
    if (eini_pre_build(&p, &b->s, &b->proj[k], shape, names, i, c) != EIN_OK)
      return eini_grad_full(w);
    if (!p.none && !p.empty) EINI_TRY(eini_pads_widen(&part, &q, &p, c));
  }
  ask = !eini_back_vanishes(&part, &q, &p, root);
  EINI_TRY(eini_pads_make(&part, &q));
  EINI_TRY(eini_grad_tensor(w, to, ein_dtype_compute(w->g->tensor[to].dtype), rank, shape, &out));
  for (int64_t i = 0; i == 0 || i < p.pieces; i++) {
    if (eini_pre_build(&p, &b->s, &b->proj[k], shape, names, i, c) != EIN_OK)
      return eini_grad_full(w);
    if (!p.empty) EINI_TRY(eini_back_piece(&part, &p, &q, root, out, ask, c));
  }
  share->tensor = out;
  return eini_back_zeros(w, &p, out);
}

// ---- the graph backwards ----

// Says what stopped a cotangent.
static ein_status eini_back_stop(eini_back *b) {
  eini_grad *w = b->w;
  const ein_graph *g = w->g;
  const eini_node *v = b->d.stop < 0 ? NULL : &b->d.e.node[b->d.stop];
  const eini_stmt *s = &b->s;
  char what[96] = "a value that is no float";
  if (v != NULL && v->op == EINI_OP_OPERAND) {  // the statement that made it
    int tensor = b->operand[v->arg[0]];
    for (int64_t i = 0; i < w->nstmt; i++)
      if (g->stmt[i].out == tensor) s = &g->stmt[i];
  }
  if (v != NULL && v->op == EINI_OP_CALL)
    snprintf(what, sizeof what, "the function %.60s", g->function[v->arg[0]].name);
  else if (s->fold >= EINI_ANY && (s->fold <= EINI_ALL || s->fold > EINI_LOGSUMEXP) &&
           s->fold != EINI_MEAN && s->fold != EINI_VAR)
    snprintf(what, sizeof what, "%s%.60s", s->fold >= EINI_FOLD_USER ? "the monoid " : "",
             eini_fold_name(g, s->fold));
  return eini_fail(w->diag, EIN_ERR_UNSUPPORTED, w->pos, w->len,
                   "conditions, as in where(c, x, y), need none",
                   "the gradient of '%.40s' needs that of %s, in the statement of '%.40s'",
                   g->tensor[w->loss].name, what, g->tensor[s->out].name);
}

// Marks sqrt(sum(x^2)), which stands in two statements: the sum's tensor is read by the root.
static void eini_back_norms(eini_back *b) {
  const eini_grad *w = b->w;
  for (int id = 0; id < b->d.nprimal; id++) {
    const eini_node *v = &b->d.e.node[id];
    if (v->op != EINI_OP_SQRT) continue;
    v = &b->d.e.node[v->arg[0]];
    for (int64_t i = 0; v->op == EINI_OP_OPERAND && i < w->nstmt; i++) {
      const eini_stmt *s = &w->g->stmt[i];
      if (s->out != b->operand[v->arg[0]]) continue;
      b->d.norm[id] = s->fold == EINI_SUM && s->expr.node[s->expr.n - 1].op == EINI_OP_SQUARE;
    }
  }
}

static ein_status eini_back_begin(eini_grad *w, eini_back *b, int64_t stmt) {
  memset(b, 0, sizeof *b);
  b->w = w;
  b->s = w->g->stmt[stmt];
  const eini_stmt *s = &b->s;
  unsigned char *reads = EINI_NEW(w->scratch, unsigned char, s->noperand);
  b->operand = EINI_NEW(w->scratch, int, s->noperand);
  b->proj = EINI_NEW(w->scratch, ein_zmap, s->noperand);
  if (reads == NULL || b->operand == NULL || b->proj == NULL) return EIN_ERR_NO_MEMORY;
  b->n = b->cap = b->cap2 = s->noperand;
  for (int k = 0; k < s->noperand; k++) {
    b->operand[k] = s->operand[k];
    b->proj[k] = s->proj[k];
    reads[k] = w->reach[s->operand[k]];
  }
  return eini_adj_begin(&b->d, w->scratch, &s->expr, reads, s->noperand);
}

// The cotangent of the operand read by node id; one that others have too is stored once.
static int eini_back_common(eini_back *b, int id) {
  eini_adjoint *d = &b->d;
  int val = d->val[id], mask = d->mask[id], n = b->s.nindex, more = 0;
  int x = eini_adj_plain(d, val, mask);
  for (int i = id + 1; i < d->nprimal; i++)
    more += d->e.node[i].op == EINI_OP_OPERAND && d->val[i] == val && d->mask[i] == mask;
  if (x < 0 || more == 0 || n > b->s.nfree || d->e.node[x].op == EINI_OP_OPERAND ||
      d->e.node[x].op == EINI_OP_CONST)
    return x;
  x = eini_back_store(b, x, n, n, EINI_FOLD_NONE);
  for (int i = id; i < d->nprimal; i++) {
    if (d->e.node[i].op != EINI_OP_OPERAND || d->val[i] != val || d->mask[i] != mask) continue;
    d->val[i] = x;
    d->mask[i] = -1;
  }
  return x;
}

// Sends the cotangent of a statement's tensor to its operands.
static ein_status eini_back_stmt(eini_grad *w, int64_t stmt) {
  eini_back b;
  EINI_TRY(eini_back_begin(w, &b, stmt));
  const eini_stmt *s = &b.s;
  eini_adjoint *d = &b.d;
  int root = d->nprimal - 1, cot = w->cot[s->out];
  if (!d->needs[root] || eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  if (eini_node_kind(d, root) < EINI_KREAL || s->fold >= EINI_FOLD_USER) {
    d->stop = s->fold >= EINI_FOLD_USER ? -1 : root;
    return eini_back_stop(&b);
  }
  d->val[root] = eini_back_seed(&b, root, cot, &d->mask[root]);
  if (s->fold == EINI_FOLD_NONE && eini_back_kept(&b, (ein_dtype)d->e.node[root].dtype)) {
    int op = d->e.node[root].op;
    if (op == EINI_OP_EXP || op == EINI_OP_EXPM1 || op == EINI_OP_TAN || op == EINI_OP_TANH ||
        op == EINI_OP_SIGMOID || op == EINI_OP_SQRT || op == EINI_OP_RSQRT || op == EINI_OP_SILU ||
        op == EINI_OP_POW ||
        (op == EINI_OP_DIV && d->needs[d->e.node[root].arg[1]]))
      d->stored = eini_back_read(&b, s->out, &s->out_map);
  }
  eini_back_norms(&b);
  if (d->val[root] < 0) return eini_grad_failed(w);
  ein_status st = eini_adj_run(d);
  if (d->stop >= 0) return eini_back_stop(&b);
  EINI_TRY(st);
  for (int id = 0; id < d->nprimal; id++) {
    if (d->e.node[id].op != EINI_OP_OPERAND || d->val[id] < 0) continue;
    int x = eini_back_common(&b, id);
    if (x < 0) return eini_grad_failed(w);
    EINI_TRY(eini_back_send(&b, d->e.node[id].arg[0], x));
  }
  return EIN_OK;
}

// The cotangent of a tensor from what was sent to it; a wanted one goes to the tensor for it.
static ein_status eini_grad_settle(eini_grad *w, int t) {
  ein_graph *g = w->g;
  const eini_grad_part *u = w->share[t];
  int want = w->want[t], out = want;
  if (w->done[t]) return EIN_OK;
  w->done[t] = 1;
  if (w->cot[t] != -1) {  // the loss
    eini_grad_part seed = {NULL, w->cot[t], 1, NULL};
    return want < 0 ? EIN_OK : eini_grad_whole(w, want, 1, seed.tensor < 0 ? NULL : &seed);
  }
  if (u == NULL) return want < 0 ? EIN_OK : eini_grad_whole(w, want, 0, NULL);
  if (u->next == NULL && want >= 0 && !u->shared) {  // what would be copied is written there
    for (int64_t i = w->nstmt; i < g->nstmt; i++)
      if (g->stmt[i].out == u->tensor) g->stmt[i].out = want;
    g->tensor[want].nstmt = g->tensor[u->tensor].nstmt;
    g->tensor[u->tensor].nstmt = 0;
  } else if (u->next == NULL && want < 0 && u->map == NULL) {
    out = u->tensor;
  } else {
    if (want < 0)
      EINI_TRY(eini_grad_tensor(w, t, ein_dtype_compute(g->tensor[t].dtype), g->tensor[t].rank,
                                g->tensor[t].shape, &out));
    EINI_TRY(eini_grad_whole(w, out, 0, u));
  }
  w->cot[t] = out;
  return EIN_OK;
}

// Which tensors depend on those with reach, in the order of the statements?
static ein_status eini_grad_reach(eini_grad *w) {
  int64_t most = 0, operands = 0;
  for (int64_t i = 0; i < w->nstmt; i++) {
    most = eini_max64(most, w->g->stmt[i].expr.n);
    operands = eini_max64(operands, w->g->stmt[i].noperand);
  }
  unsigned char *needs = EINI_NEW(w->scratch, unsigned char, most);
  unsigned char *reads = EINI_NEW(w->scratch, unsigned char, operands);
  if (needs == NULL || reads == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < w->nstmt; i++) {
    const eini_stmt *s = &w->g->stmt[i];
    for (int k = 0; k < s->noperand; k++) reads[k] = w->reach[s->operand[k]];
    eini_adj_needs(&s->expr, reads, needs);
    if (!w->g->tensor[s->out].shift) w->reach[s->out] |= needs[s->expr.n - 1];
  }
  return EIN_OK;
}

// Gradients of loss, times seed unless -1, by nwrt tensors; grad: tensors without statements, with
// their shapes and dtypes.
static ein_status eini_gradient(eini_grad *w, int seed, int nwrt, const int *wrt,
                                const int *grad) {
  ein_graph *g = w->g;
  int64_t n = g->ntensor;
  w->nstmt = g->nstmt;
  w->reach = EINI_NEW(w->scratch, unsigned char, n);
  w->done = EINI_NEW(w->scratch, unsigned char, n);
  w->cot = EINI_NEW(w->scratch, int, n);
  w->want = EINI_NEW(w->scratch, int, n);
  w->share = EINI_NEW(w->scratch, eini_grad_part *, n);
  if (w->reach == NULL || w->done == NULL || w->cot == NULL || w->want == NULL || w->share == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < n; t++) w->cot[t] = w->want[t] = -1;
  for (int k = 0; k < nwrt; k++) {
    w->reach[wrt[k]] = 1;
    w->want[wrt[k]] = grad[k];
  }
  EINI_TRY(eini_grad_reach(w));
  w->cot[w->loss] = seed < 0 ? EINI_COT_ONE : seed;
  for (int64_t i = w->nstmt - 1; i >= 0; i--) {
    int t = g->stmt[i].out;
    if (w->reach[t]) EINI_TRY(eini_grad_settle(w, t));
    if (w->reach[t] && w->cot[t] != -1) EINI_TRY(eini_back_stmt(w, i));
  }
  for (int k = 0; k < nwrt; k++) EINI_TRY(eini_grad_settle(w, wrt[k]));
  return EIN_OK;
}

// ---- what is asked for ----

// A mistake about item i: 0 the loss, 1 the seed, 2 + k the k-th of wrt.
EINI_PRINTF(5, 6)
static ein_status eini_grad_refuse(const eini_grad *w, int i, ein_status st, const char *hint,
                                   const char *format, ...) {
  const eini_syn *v = w->at == NULL ? NULL : w->at[i];
  va_list args;
  va_start(args, format);
  eini_vfail(w->diag, st, v == NULL ? -1 : v->pos, v == NULL ? 0 : v->len, hint, format, args);
  va_end(args);
  return st;
}

static ein_status eini_grad_check_float(const eini_grad *w, int i, int tensor) {
  const eini_tensor *t = &w->g->tensor[tensor];
  if (eini_kind_of(t->dtype) >= EINI_KREAL) return EIN_OK;
  return eini_grad_refuse(w, i, EIN_ERR_DTYPE, NULL, "'%.60s' is of %s: only floats have gradients",
                          t->name, ein_dtype_name(t->dtype));
}

static ein_status eini_grad_check(const eini_grad *w, int seed, int nwrt, const int *wrt) {
  const eini_tensor *l = &w->g->tensor[w->loss], *s = seed < 0 ? NULL : &w->g->tensor[seed];
  EINI_TRY(eini_grad_check_float(w, 0, w->loss));
  if (s == NULL && l->rank > 0)
    return eini_grad_refuse(w, 0, EIN_ERR_SHAPE, "a seed says how much each element counts",
                            "'%.60s' has %d axes: without a seed it must be a scalar", l->name,
                            l->rank);
  if (s == NULL && eini_kind_of(l->dtype) == EINI_KCOMPLEX)
    return eini_grad_refuse(w, 0, EIN_ERR_DTYPE, "take real(..), or give a seed",
                            "'%.60s' is complex", l->name);
  if (s != NULL) {
    EINI_TRY(eini_grad_check_float(w, 1, seed));
    int same = s->rank == l->rank;
    for (int r = 0; same && r < s->rank; r++) same = s->shape[r] == l->shape[r];
    if (!same)
      return eini_grad_refuse(w, 1, EIN_ERR_SHAPE, NULL, "'%.60s' does not have the shape of "
                              "'%.60s'", s->name, l->name);
    if (eini_kind_of(s->dtype) > eini_kind_of(l->dtype))
      return eini_grad_refuse(w, 1, EIN_ERR_DTYPE, NULL, "'%.60s' is complex, '%.60s' is real",
                              s->name, l->name);
  }
  for (int k = 0; k < nwrt; k++) {
    EINI_TRY(eini_grad_check_float(w, 2 + k, wrt[k]));
    for (int j = 0; j < k; j++)
      if (wrt[j] == wrt[k])
        return eini_grad_refuse(w, 2 + k, EIN_ERR_NAME, NULL, "'%.60s' occurs twice",
                                w->g->tensor[wrt[k]].name);
  }
  return EIN_OK;
}

// A tensor for the gradient by tensor wrt: its shape, and its dtype if none was given.
static ein_status eini_grad_result(const eini_grad *w, int i, int wrt, int grad) {
  const eini_tensor *x = &w->g->tensor[wrt];
  eini_tensor *t = &w->g->tensor[grad];
  int same = t->rank == x->rank;
  for (int r = 0; same && t->given != NULL && r < t->rank; r++) same = t->given[r] == x->shape[r];
  if (!same)
    return eini_grad_refuse(w, i, EIN_ERR_SHAPE, NULL, "'%.60s' does not have the shape of '%.60s'",
                            t->name, x->name);
  if (t->dtype == EIN_NONE) t->dtype = x->dtype;
  if (eini_kind_of(t->dtype) < eini_kind_of(x->dtype))
    return eini_grad_refuse(w, i, EIN_ERR_DTYPE, NULL, "'%.60s' is of %s, '%.60s' of %s", t->name,
                            ein_dtype_name(t->dtype), x->name, ein_dtype_name(x->dtype));
  t->dtype_open = 0;
  t->shape = EINI_NEW(&w->g->arena, int64_t, t->rank);
  if (t->shape == NULL) return EIN_ERR_NO_MEMORY;
  if (t->rank > 0) memcpy(t->shape, x->shape, (size_t)t->rank * sizeof *t->shape);
  return EIN_OK;
}

// Checks what is asked for, then appends the statements.
static ein_status eini_grad_all(eini_grad *w, int seed, int nwrt, const int *wrt,
                                const int *grad) {
  EINI_TRY(eini_grad_check(w, seed, nwrt, wrt));
  for (int k = 0; k < nwrt; k++) EINI_TRY(eini_grad_result(w, 2 + k, wrt[k], grad[k]));
  return eini_gradient(w, seed, nwrt, wrt, grad);
}

static ein_status eini_grad_ids(ein_graph *g, int loss, int nwrt, const int *wrt, int seed,
                                const int *grad) {
  if (nwrt < 1 || wrt == NULL || grad == NULL || loss < 0 || loss >= g->ntensor ||
      seed >= g->ntensor)
    return eini_refuse(g, EIN_ERR_ARGUMENT, "gradient: counts, pointers, the loss or the seed");
  EINI_TRY(eini_seal_tensor(g, loss));
  if (seed >= 0) EINI_TRY(eini_seal_tensor(g, seed));
  for (int k = 0; k < nwrt; k++) {
    if (wrt[k] < 0 || wrt[k] >= g->ntensor || grad[k] < 0 || grad[k] >= g->ntensor)
      return eini_refuse(g, EIN_ERR_ARGUMENT, "gradient: number %d is no tensor", k);
    EINI_TRY(eini_seal_tensor(g, wrt[k]));
  }
  for (int k = 0; k < nwrt; k++) {
    const eini_tensor *t = &g->tensor[grad[k]];
    int again = 0;
    for (int j = 0; j < k; j++) again |= grad[j] == grad[k];
    if (again || t->shape != NULL || t->nstmt > 0)
      return eini_refuse(g, EIN_ERR_NAME, "gradient: '%.60s' is defined already", t->name);
  }
  return EIN_OK;
}

EIN_API ein_status ein_graph_add_gradient(ein_graph *g, int loss, int nwrt, const int *wrt,
                                          int seed, const int *grad) {
  EINI_TRY(eini_building(g));
  eini_grad w;
  eini_arena scratch;
  ein_status st = eini_grad_ids(g, loss, nwrt, wrt, seed, grad);
  if (st != EIN_OK) return g->status = st;
  memset(&w, 0, sizeof w);
  eini_arena_init(&scratch, &g->arena.al);
  w.g = g;
  w.diag = g->diag;
  w.pos = -1;
  w.loss = loss;
  w.scratch = &scratch;
  st = eini_grad_all(&w, seed, nwrt, wrt, grad);
  eini_arena_free(&scratch);
  return g->status = st;
}

// ================================================================================================
// >>build  from resolved trees to statements
// Takes resolved trees; gives statements of the graph. What is not one fold over one expression is
// split; the parts become temporaries.
// ================================================================================================

#define EINI_SAME_MAX 64                   // equal operands and temporaries are looked for this far

// A statement being emitted: its indices, and its operands with their rows.
typedef struct eini_build {
  eini_emit em;            // first, see eini_emit_leaf
  eini_prog *q;
  int n, nfree, *var, *saved;
  int64_t nop, cap, cap2;
  int *op;
  const eini_row **row;
} eini_build;

static int eini_rows_equal(const eini_row *a, const eini_row *b, int rank) {
  for (int r = 0; r < rank; r++) {
    if (a[r].n != b[r].n || a[r].offset != b[r].offset) return 0;
    for (int i = 0; i < a[r].n; i++)
      if (a[r].var[i] != b[r].var[i] || a[r].coef[i] != b[r].coef[i]) return 0;
  }
  return 1;
}

// The number of an operand; equal accesses share one. -1 when out of memory.
static int eini_operand(eini_build *b, int tensor, const eini_row *row) {
  eini_parser *p = b->em.p;
  for (int64_t k = b->nop - 1; k >= eini_max64(0, b->nop - EINI_SAME_MAX); k--) {
    if (b->op[k] == tensor && eini_rows_equal(b->row[k], row, b->q->g->tensor[tensor].rank))
      return (int)k;
  }
  int *op = (int *)eini_grow(p->arena, b->op, b->nop, &b->cap, sizeof *op);
  void *rows = eini_grow(p->arena, (void *)b->row, b->nop, &b->cap2, sizeof *b->row);
  if (op == NULL || rows == NULL) return eini_pmem(p), -1;
  b->op = op;
  b->row = (const eini_row **)rows;
  op[b->nop] = tensor;
  b->row[b->nop] = row;
  return (int)b->nop++;
}

// Emits a tree over free and bound indices.
static ein_status eini_build_tree(eini_prog *q, eini_build *b, const int *freev, int64_t nfree,
                                  const int *bind, int nbind, const eini_syn *tree) {
  eini_parser *p = &q->p;
  memset(b, 0, sizeof *b);
  b->q = q;
  b->em.p = p;
  b->em.arena = &q->g->arena;
  b->nfree = (int)nfree;
  b->var = EINI_NEW(p->arena, int, nfree + nbind);
  b->saved = EINI_NEW(p->arena, int, nfree + nbind);
  if (b->var == NULL || b->saved == NULL) return eini_pmem(p);
  for (; b->n < nfree + nbind; b->n++) {
    b->var[b->n] = b->n < nfree ? freev[b->n] : bind[b->n - nfree];
    b->saved[b->n] = q->var[b->var[b->n]].col;
    q->var[b->var[b->n]].col = b->n;
  }
  eini_emit_tree(&b->em, tree);
  return p->st;
}

static void eini_fill_map(const eini_prog *q, ein_zmap *m, const eini_row *row) {
  for (int r = 0; r < m->rows; r++) {
    m->offset[r] = row[r].offset;
    for (int i = 0; i < row[r].n; i++)
      m->coef[(int64_t)r * m->cols + q->var[row[r].var[i]].col] = row[r].coef[i];
  }
}

// Takes over a status that the graph reported itself.
static ein_status eini_reported(eini_parser *p, ein_status st) {
  if (st == EIN_ERR_NO_MEMORY) return eini_pmem(p);
  if (st != EIN_OK && p->status == EIN_OK) p->status = st;
  return p->st = st;
}

// Appends the statement; left NULL: the free indices in order.
static ein_status eini_build_stmt(eini_build *b, int out, const eini_row *left, int fold,
                                  int64_t pos) {
  eini_prog *q = b->q;
  ein_graph *g = q->g;
  int64_t cells = g->tensor[out].rank;
  for (int64_t k = 0; k < b->nop; k++) cells += g->tensor[b->op[k]].rank;
  if (eini_mul_overflow(cells, b->n, &cells) || (q->cells += cells) > EINI_CELLS_MAX)
    return eini_perr(&q->p, EIN_ERR_TOO_LARGE, pos, 1, NULL, "too many indices and operands");
  eini_stmt *s;
  if (eini_graph_add_stmt(g, out, b->n, (int)b->nop, b->op, &s) != EIN_OK) return eini_pmem(&q->p);
  s->nfree = b->nfree;
  s->fold = fold;
  s->pos = pos;
  s->expr = b->em.e;
  for (int i = 0; i < b->n; i++) {
    const eini_var *x = &q->var[b->var[i]];
    const eini_sym *name = &q->names.sym[x->sym];
    int hides = 0;
    char other[96];  // an index that hides another: told apart in what is printed
    for (int k = 0; k < i && b->n <= 64; k++) hides |= q->var[b->var[k]].sym == x->sym;
    int len = snprintf(other, sizeof other, "%.*s.%d", eini_cut(name->s, name->n), name->s, i);
    s->index[i].extent = x->extent;
    s->index[i].name =
        eini_strndup(&g->arena, hides ? other : name->s, hides ? len : name->n);
    if (s->index[i].name == NULL) return eini_pmem(&q->p);
    if (left == NULL && i < b->nfree) s->out_map.coef[(int64_t)i * b->n + i] = 1;
  }
  if (left != NULL) eini_fill_map(q, &s->out_map, left);
  for (int64_t k = 0; k < b->nop; k++) eini_fill_map(q, &s->proj[k], b->row[k]);
  return eini_reported(&q->p, eini_stmt_finish(g, s, q->p.diag));
}

// ---- temporaries ----

// An access to tensor at variables.
static eini_syn *eini_temp_access(eini_prog *q, int tensor, const eini_vars *u, int64_t pos) {
  eini_syn *v = eini_syn_new(&q->p, EINI_S_ACCESS, pos);
  eini_row *row = EINI_NEW(q->p.arena, eini_row, u->n);
  int64_t *one = EINI_NEW(q->p.arena, int64_t, 1);
  if (row == NULL || one == NULL) eini_pmem(&q->p);
  if (v == NULL || row == NULL || one == NULL) return NULL;
  *one = 1;
  v->id = tensor;
  v->row = row;
  for (int64_t i = 0; i < u->n; i++) {
    row[i].n = 1;
    row[i].var = &u->v[i];
    row[i].coef = one;
    row[i].pos = pos;
  }
  return v;
}

// Do two statements over all elements of their tensors compute the same?
static int eini_same_stmt(const eini_stmt *a, const eini_stmt *b) {
  int same = a->fold == b->fold && a->nfree == b->nfree && a->nindex == b->nindex &&
             a->noperand == b->noperand && a->expr.n == b->expr.n && a->expr.nlist == b->expr.nlist;
  for (int i = 0; same && i < a->nindex; i++) same = a->index[i].extent == b->index[i].extent;
  for (int k = 0; same && k < a->noperand; k++)
    same = a->operand[k] == b->operand[k] && eini_zmap_equal(&a->proj[k], &b->proj[k]);
  for (int64_t i = 0; same && i < a->expr.n; i++) {
    const eini_node *x = &a->expr.node[i], *y = &b->expr.node[i];
    same = x->op == y->op && x->dtype == y->dtype && x->exact == y->exact && x->ival == y->ival &&
           memcmp(x->arg, y->arg, sizeof x->arg) == 0 && memcmp(&x->re, &y->re, sizeof x->re) == 0;
  }
  for (int64_t i = 0; same && i < a->expr.nlist; i++) same = a->expr.list[i] == b->expr.list[i];
  return same && eini_zmap_equal(&a->out_map, &b->out_map);
}

// The name of a temporary, after the tensor being defined.
static void eini_fresh_name(eini_prog *q, char *name, size_t size) {
  const eini_sym *s = &q->names.sym[q->line[q->cur].sym];
  snprintf(name, size, "%.*s.%lld", eini_cut(s->s, s->n), s->s, (long long)++q->fresh);
}

// Stores fold over bind of tree in a temporary over the indices in scope that owner uses; one that
// is stored already is taken.
static eini_syn *eini_temp(eini_prog *q, const eini_syn *owner, const eini_syn *tree, int fold,
                           const int *bind, int nbind, int64_t pos) {
  eini_parser *p = &q->p;
  ein_graph *g = q->g;
  eini_vars u = {NULL, 0, 0};
  eini_build b;
  char name[96];
  int tensor = -1, shift = owner->kind == EINI_S_REDUCE && owner->ival != 0;
  if (tree == NULL) return NULL;
  eini_used(q, owner, &u, ++q->stamp);
  for (int64_t i = 1; i < u.n && u.n <= 64; i++) {  // in the order of the scope
    int x = u.v[i];
    int64_t j = i;
    for (; j > 0 && u.v[j - 1] > x; j--) u.v[j] = u.v[j - 1];
    u.v[j] = x;
  }
  int64_t *shape = EINI_NEW(p->arena, int64_t, u.n);
  if (shape == NULL) eini_pmem(p);
  for (int64_t i = 0; shape != NULL && i < u.n; i++) shape[i] = q->var[u.v[i]].extent;
  if (p->st != EIN_OK) return NULL;
  eini_build_tree(q, &b, u.v, u.n, bind, nbind, tree);
  if (p->st == EIN_OK) {
    eini_fresh_name(q, name, sizeof name);
    eini_reported(p, eini_graph_add_tensor(g, name, (int64_t)strlen(name), EIN_ROLE_TEMP, EIN_NONE,
                                           (int)u.n, shape, &tensor));
  }
  if (p->st == EIN_OK) eini_build_stmt(&b, tensor, NULL, fold, pos);
  for (int i = b.n - 1; i >= 0; i--) q->var[b.var[i]].col = b.saved[i];
  if (p->st != EIN_OK) return NULL;
  eini_tensor_fix_dtype(&g->tensor[tensor]);
  int64_t last = g->nstmt - 1;
  for (int64_t k = last - 1; k >= eini_max64(0, last - EINI_SAME_MAX); k--) {
    eini_tensor *t = &g->tensor[g->stmt[k].out];
    if (t->pos >= 0 || t->nstmt != 1 || !eini_same_stmt(&g->stmt[k], &g->stmt[last])) continue;
    tensor = g->stmt[k].out;
    shift &= t->shift;
    g->nstmt--;
    g->ntensor--;
    q->fresh--;
    break;
  }
  g->tensor[tensor].shift = shift;
  return eini_temp_access(q, tensor, &u, pos);
}

static eini_syn *eini_number(eini_prog *q, double x, int exact, int64_t pos) {
  eini_syn *v = eini_syn_new(&q->p, EINI_S_NUM, pos);
  if (v == NULL) return NULL;
  v->re = x;
  v->ival = exact ? (int64_t)x : 0;
  v->exact = (unsigned char)exact;
  return v;
}

// Rule 10 and norm in postfix: x what is normalised, g and b the next arguments, p the last one or
// its default, 2 the number, d twice, s stored; then the operations below, folds over v's indices.
static eini_syn *eini_expand(eini_prog *q, const eini_syn *v, const char *code) {
  static const struct {
    char key;
    unsigned char kind, args, what;  // what: of SUM and TERM the inverse, of REDUCE the fold
    const char *call;
  } ops[] = {{'+', EINI_S_SUM, 2, 0, NULL}, {'-', EINI_S_SUM, 2, 1, NULL},
             {'*', EINI_S_TERM, 2, 0, NULL}, {'/', EINI_S_TERM, 2, 1, NULL},
             {'^', EINI_S_POW, 2, 0, NULL}, {'M', EINI_S_REDUCE, 1, EINI_MAX, NULL},
             {'S', EINI_S_REDUCE, 1, EINI_SUM, NULL}, {'A', EINI_S_REDUCE, 1, EINI_MEAN, NULL},
             {'V', EINI_S_REDUCE, 1, EINI_VAR, NULL}, {'e', EINI_S_CALL, 1, 0, "exp"},
             {'l', EINI_S_CALL, 1, 0, "log"}, {'q', EINI_S_CALL, 1, 0, "sqrt"},
             {'r', EINI_S_CALL, 1, 0, "rsqrt"}, {'a', EINI_S_CALL, 1, 0, "abs"}};
  eini_parser *p = &q->p;
  eini_syn *stack[8], *r, *x = v->kid[0];
  int n = 0, eps = v->op == 2 ? 3 : 2, k;
  if (v->kind == EINI_S_MACRO && (x->kind != EINI_S_ACCESS || x->edge != NULL))
    x = eini_temp(q, x, x, EINI_FOLD_NONE, NULL, 0, x->pos);
  for (; x != NULL && *code != 0; code++) {
    switch (*code) {
      case 'x': r = x; break;
      case 'g': r = v->kid[1]; break;
      case 'b': r = v->kid[2]; break;
      case 'd': r = stack[n - 1]; break;
      case '2': r = eini_number(q, 2, 1, v->pos); break;
      case 's': n--; r = eini_temp(q, stack[n], stack[n], EINI_FOLD_NONE, NULL, 0, x->pos); break;
      case 'p':
        r = v->n > eps ? v->kid[eps] : eini_number(q, eps == 3 ? 1e-5 : 1e-6, 0, v->pos);
        break;
      default:
        for (k = 0; ops[k].key != *code;) k++;
        n -= ops[k].args;
        r = eini_syn_of(p, ops[k].kind, x->pos, stack[n], ops[k].args > 1 ? stack[n + 1] : NULL);
        if (r == NULL) return NULL;
        r->op = ops[k].what;
        r->inv[ops[k].args - 1] = ops[k].args > 1 && ops[k].what;
        if (ops[k].kind == EINI_S_REDUCE) {
          r->bind = v->bind;
          r->nbind = v->nbind;
          r->ival = ops[k].what == EINI_MAX;  // cancels in what the macro computes
        }
        if (ops[k].call) r->sym = eini_intern(p, ops[k].call, (int64_t)strlen(ops[k].call));
        break;
    }
    if (r == NULL || p->st != EIN_OK) return NULL;
    stack[n++] = r;
  }
  return n > 0 ? stack[0] : NULL;
}

// ---- leaves ----

static int eini_same_fill(const eini_syn *a, const eini_syn *b) {
  if (a == NULL || b == NULL) return a == b;
  return a->kind == b->kind && a->exact == b->exact && a->ival == b->ival &&
         memcmp(&a->re, &b->re, sizeof a->re) == 0;
}

// Does x hold the tensor padded by these numbers of elements, by the same rules?
static int eini_same_padding(const eini_padded *x, const eini_edge *edge, int rank,
                             const int64_t *low, const int64_t *high) {
  for (int r = 0; r < rank; r++) {
    if (x->low[r] != low[r] || x->high[r] != high[r]) return 0;
    if (low[r] == 0 && high[r] == 0) continue;
    if (x->edge[r].kind != edge[r].kind || !eini_same_fill(x->edge[r].fill, edge[r].fill)) return 0;
  }
  return 1;
}

// The dtype of an access with an edge constant: that of where(inside, X, constant). A constant that
// this dtype does not hold is a mistake.
static ein_dtype eini_fill_dtype(eini_prog *q, const eini_syn *c, ein_dtype t) {
  eini_expr e;
  memset(&e, 0, sizeof e);
  int k = eini_fill_node(q->g, &e, c);
  int x = k < 0 ? -1 : eini_expr_add(&q->g->arena, &e, EINI_OP_OPERAND, -1, 0, 0, 0);
  if (x < 0) return eini_pmem(&q->p), EIN_NONE;
  e.node[x].dtype = (unsigned char)t;
  ein_dtype meet = eini_meet(&e.node[x], &e.node[k]);
  if (!(c->exact && meet == EIN_I64) && !eini_dtype_holds(meet, c->re))
    eini_perr(&q->p, EIN_ERR_DTYPE, EINI_AT(c), "convert first: Z[i] : f64 = X[i], then read Z",
              "no %s has this value", ein_dtype_name(meet));
  return meet;
}

// The tensor an access with an edge rule reads, and its rows there.
static int eini_padded_access(eini_prog *q, const eini_syn *v, const eini_padding *by,
                              const eini_row **rows) {
  eini_parser *p = &q->p;
  int rank = q->g->tensor[v->id].rank, tensor = v->id;
  eini_padded *d = EINI_NEW(p->arena, eini_padded, 1);
  eini_row *moved = EINI_NEW(p->arena, eini_row, rank);
  int64_t *low = EINI_NEW(p->arena, int64_t, rank), *high = EINI_NEW(p->arena, int64_t, rank);
  if (d == NULL || moved == NULL || low == NULL || high == NULL) return eini_pmem(p), -1;
  for (int r = 0; r < rank; r++) {
    int64_t lo, hi, n = q->g->tensor[v->id].shape[r];
    int empty = 0;
    moved[r] = v->row[r];
    for (int i = 0; i < v->row[r].n; i++) empty |= q->var[v->row[r].var[i]].extent == 0;
    if (empty) continue;
    if (eini_row_range(q, &v->row[r], &lo, &hi) != EIN_OK) return -1;
    if (lo < -(INT64_MAX / 4) || hi > INT64_MAX / 4)
      return eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(&v->row[r]), NULL, "the padding is too large"),
             -1;
    if (v->edge[r].kind == EINI_EDGE_NONE) continue;  // proved to stay inside
    low[r] = lo < 0 ? -lo : 0;
    high[r] = hi >= n ? hi - n + 1 : 0;
    moved[r].offset += low[r];
  }
  *rows = moved;
  for (const eini_padded *x = q->padded; x != NULL; x = x->next)
    if (x->from == v->id && x->dtype == by->dtype && eini_same_padding(x, v->edge, rank, low, high))
      return x->to;
  eini_padding w = *by;
  for (int r = 0; r < rank && p->st == EIN_OK; r++) {
    char name[96];
    if (low[r] == 0 && high[r] == 0) continue;
    eini_fresh_name(q, name, sizeof name);
    w.pos = v->row[r].pos;
    w.edge = v->edge[r];
    eini_reported(p, eini_pad_axis(q->g, p->diag, &tensor, r, &w, low[r], high[r], name));
    w.read = EIN_NONE;
  }
  eini_padded made = {q->padded, v->id, tensor, by->dtype, v->edge, low, high};
  *d = made;
  if (p->st == EIN_OK) q->padded = d;
  return p->st == EIN_OK ? tensor : -1;
}

static int eini_build_access(eini_build *b, const eini_syn *v) {
  eini_prog *q = b->q;
  const eini_row *rows = v->row;
  int tensor = v->id;
  ein_dtype read = v->id < q->ndeclared ? q->declared[v->id] : EIN_NONE, t = read;
  if (v->edge != NULL && q->g->tensor[tensor].rank > 0) {
    ein_dtype own = read != EIN_NONE ? read : q->g->tensor[tensor].dtype;
    eini_padding by = {{EINI_EDGE_NONE, NULL}, read, own, v->pos};
    for (int r = 0; r < q->g->tensor[tensor].rank; r++)
      if (v->edge[r].fill != NULL) by.dtype = eini_fill_dtype(q, v->edge[r].fill, by.dtype);
    if (q->p.st != EIN_OK) return -1;
    tensor = eini_padded_access(q, v, &by, &rows);
    t = tensor != v->id || by.dtype == q->g->tensor[v->id].dtype ? EIN_NONE : by.dtype;
  }
  int k = tensor < 0 ? -1 : eini_operand(b, tensor, rows);
  int id = eini_emit_op(&b->em, EINI_OP_OPERAND, v->pos, k, 0);
  if (t == EIN_NONE) return id;
  id = eini_emit_op(&b->em, EINI_OP_CAST, v->pos, id, 0);
  if (id >= 0) b->em.e.node[id].dtype = (unsigned char)t;
  return id;
}

static int eini_build_size(eini_build *b, const eini_syn *v) {
  int64_t n = v->id >= 0 ? b->q->var[v->id].extent : v->ival;
  if (v->ival >= 0 && v->ival != n)
    return eini_perr(b->em.p, EIN_ERR_NAME, EINI_AT(v), "rename the index",
                     "size() is ambiguous here: the declared size is %lld, the index's extent %lld",
                     (long long)v->ival, (long long)n), -1;
  int id = eini_expr_int(b->em.arena, &b->em.e, v->pos, n);
  return id < 0 ? eini_pmem(b->em.p), -1 : id;
}

static int eini_emit_leaf(eini_emit *em, const eini_syn *v) {
  static const char *const macros[] = {"xxM-esdS/", "xxM-sdeSl-", "xxA-xVp+q/g*b+",
                                       "xx2^Ap+r*g*"};
  eini_build *b = (eini_build *)(void *)em;
  eini_prog *q = b->q;
  const eini_syn *x;
  int id;
  switch (v->kind) {
    case EINI_S_INDEX: return eini_emit_op(em, EINI_OP_INDEX, v->pos, q->var[v->id].col, 0);
    case EINI_S_PARAM: return eini_emit_op(em, EINI_OP_PARAM, v->pos, v->id, 0);
    case EINI_S_SIZE: return eini_build_size(b, v);
    case EINI_S_ACCESS: return eini_build_access(b, v);
    case EINI_S_BODY: return eini_emit_tree(em, v->kid[0]);
    case EINI_S_MACRO:
      x = eini_expand(q, v, macros[v->op]);
      return x == NULL ? -1 : eini_emit_tree(em, x);
    case EINI_S_REDUCE:
      x = v->exact ? eini_expand(q, v, "xa2^") : v->kid[0];
      x = eini_temp(q, v, x, v->op, v->bind, v->nbind, v->pos);
      id = x == NULL ? -1 : eini_build_access(b, x);
      return v->exact ? eini_emit_op(em, EINI_OP_SQRT, v->pos, id, 0) : id;
    default: eini_perr(&q->p, EIN_ERR_INTERNAL, v->pos, v->len, NULL, "an unexpected tree");
  }
  return -1;
}

// ================================================================================================
// >>parse  programs
// Takes a program's description; gives its graph, pruned to what is observed (GRAMMAR rule 11).
// ================================================================================================

// Claims a name for a declaration; 0 when it is taken.
static int eini_declare(eini_prog *q, const eini_syn *v, int kind, int64_t id) {
  eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_BAD) q->p.st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE || s->open != 0)
    eini_perr(&q->p, EIN_ERR_NAME, v->pos, s->n, NULL, "the name '%.*s' is taken",
              EINI_NAME_OF(&q->p, v->sym));
  if (q->p.st != EIN_OK) return 0;
  s->kind = kind;
  s->id = (int)id;
  s->pos = v->pos;
  return 1;
}

// The declared size of that name, new or known; NULL after a mistake.
static eini_dim *eini_dim_of(eini_prog *q, const eini_syn *d) {
  eini_sym *s = eini_sym_of(q, d->sym);
  if (s->kind == EINI_N_SIZE) return &q->dim[s->id];
  if (!eini_declare(q, d, EINI_N_SIZE, q->ndim)) return NULL;
  eini_dim *x = (eini_dim *)eini_grow(q->p.arena, q->dim, q->ndim, &q->capdim, sizeof *x);
  if (x == NULL) return eini_pmem(&q->p), x;
  q->dim = x;
  x += q->ndim++;
  x->sym = d->sym;
  x->by = x->axis = -1;
  x->value = -1;
  for (int k = 0; k < q->desc->nsize; k++) {
    if (eini_word_is(s->s, s->n, q->desc->size[k].name)) x->value = q->desc->size[k].value;
  }
  return x;
}

// The extent of one axis of an input: its literal, its size, its view; all agree.
static int64_t eini_input_axis(eini_prog *q, const eini_syn *v, int axis, const ein_ztensor *view) {
  eini_parser *p = &q->p;
  const eini_syn *d = v->kid[axis];
  eini_dim literal = {0, -1, -1, -1}, *x = d->kind == EINI_S_NUM ? &literal : eini_dim_of(q, d);
  const int64_t given[2] = {d->ival, view == NULL ? -1 : view->shape[axis]};
  for (int k = 0; x != NULL && k < 2; k++) {
    if (given[k] < 0 || given[k] == x->value) continue;
    char by[128] = "as given";
    if (k == 1 && given[0] >= 0)
      snprintf(by, sizeof by, "as declared");
    else if (x->by >= 0)
      snprintf(by, sizeof by, "in axis %d of '%.*s'", x->axis, EINI_NAME_OF(p, x->by));
    if (x->value >= 0 && d->kind == EINI_S_NUM)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), NULL,
                "axis %d of '%.*s' has extent %lld, not %lld %s", axis, EINI_NAME_OF(p, v->sym),
                (long long)given[k], (long long)x->value, by);
    else if (x->value >= 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), NULL,
                "'%.*s' is %lld in axis %d of '%.*s', but %lld %s", EINI_NAME_OF(p, d->sym),
                (long long)given[k], axis, EINI_NAME_OF(p, v->sym), (long long)x->value, by);
    x->value = given[k];
    x->by = v->sym;
    x->axis = axis;
  }
  if (x != NULL && x->value < 0)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(d), "bind a view, or give the size",
              "nothing says how large '%.*s' is", EINI_NAME_OF(p, d->sym));
  return x == NULL ? -1 : x->value;
}

static void eini_do_input(eini_prog *q, const eini_line *l, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  const ein_ztensor *view = NULL;
  int tensor = 0;
  for (int i = q->desc->nbind - 1; i >= 0; i--) {
    if (eini_word_is(s->s, s->n, q->desc->bind[i].name)) view = q->desc->bind[i].view;
  }
  ein_dtype given = l->dtype != EIN_NONE ? l->dtype : view != NULL ? view->dtype : q->dtype;
  int64_t *shape = EINI_NEW(p->arena, int64_t, v->n);
  if (shape == NULL) eini_pmem(p);
  if (view != NULL && view->rank != v->n)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "'%.*s' has %d axes, the bound view %d",
              EINI_NAME_OF(p, v->sym), v->n, view->rank);
  if (view != NULL && !ein_dtype_same_kind(view->dtype, given))
    eini_perr(p, EIN_ERR_DTYPE, EINI_AT(v), NULL, "'%.*s' is declared %s, the bound view is %s",
              EINI_NAME_OF(p, v->sym), ein_dtype_name(given), ein_dtype_name(view->dtype));
  for (int i = 0; i < v->n && p->st == EIN_OK; i++) shape[i] = eini_input_axis(q, v, i, view);
  if (p->st != EIN_OK || !eini_declare(q, v, EINI_N_TENSOR, q->g->ntensor)) return;
  ein_dtype stored = view != NULL ? view->dtype : given;
  if (eini_graph_add_tensor(q->g, s->s, s->n, EIN_ROLE_INPUT, stored, v->n, shape, &tensor)) {
    eini_pmem(p);
    return;
  }
  q->g->tensor[tensor].pos = v->pos;
  while (p->st == EIN_OK && q->ndeclared < q->g->ntensor) {
    ein_dtype *t = (ein_dtype *)eini_grow(p->arena, q->declared, q->ndeclared, &q->capdeclared,
                                          sizeof *t);
    if (t == NULL) eini_pmem(p);
    else (q->declared = t)[q->ndeclared++] = EIN_NONE;
  }
  if (p->st == EIN_OK && stored != given) q->declared[tensor] = given;
}

static void eini_do_param(eini_prog *q, const eini_line *l, const eini_syn *v) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  ein_scalar value = {v->op, v->re, 0};
  int id;
  if (!eini_param_holds(l->dtype, &value))
    eini_perr(&q->p, EIN_ERR_DTYPE, EINI_AT(v), NULL, "'%.*s' is %s, which does not hold %.17g",
              EINI_NAME_OF(&q->p, v->sym), ein_dtype_name(l->dtype), v->re);
  if (eini_declare(q, v, EINI_N_PARAM, q->g->nparam) &&
      eini_graph_add_param(q->g, s->s, s->n, l->dtype, value, &id))
    eini_pmem(&q->p);
}

// Outputs are marked before any statement is lowered; here only what they name is checked.
static void eini_do_output(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  eini_near w;
  if (s->ndef > 0) return;
  if (s->bad || s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind == EINI_N_TENSOR)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), "define an output from it: Y[i] = X[i]",
              "'%.*s' is an input", EINI_NAME_OF(p, v->sym));
  eini_near_init(&w, s->s, s->n);
  for (int64_t i = 0; i < eini_min64(p->names->n, 4096); i++) {
    if (p->names->sym[i].ndef > 0) eini_near_try(&w, p->names->sym[i].s, p->names->sym[i].n);
  }
  eini_perr(p, EIN_ERR_NAME, EINI_AT(v), eini_near_hint(&w), "the output '%.*s' is not defined",
            EINI_NAME_OF(p, v->sym));
}

static void eini_do_def(eini_prog *q, eini_line *l) {
  eini_line **d = (eini_line **)eini_grow(q->p.arena, (void *)q->def, q->ndef, &q->capdef,
                                          sizeof *d);
  eini_syn *v = eini_part(&q->p, EINI_S_NAME, l->pos);
  if (d == NULL) eini_pmem(&q->p);
  if (q->p.st != EIN_OK) return;
  q->def = d;
  v->sym = l->sym;
  l->stmt = q->ndef;
  if (eini_declare(q, v, EINI_N_DEF, q->ndef)) d[q->ndef++] = l;
}

// ---- defining statements ----

// The index x, a free one or one of sums without a name, has extent e; 1 when there is one.
static int eini_give_extent(eini_prog *q, const eini_syn *x, const eini_syn *e) {
  eini_parser *p = &q->p;
  int64_t n = 0;
  int found = 0;
  for (int64_t i = 0; i < q->nvar && p->st == EIN_OK; i++) {
    eini_var *v = &q->var[i];
    if (v->sym != x->sym || v->mark != 0 || v->kind == EINI_V_NAMED || v->kind == EINI_V_SCAN)
      continue;
    if (found++ == 0 && eini_const(q, e, NULL, 1, &n) > 0 && n < 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(e), NULL,
                "an extent is an expression of integers and sizes, at least 0");
    if (v->axis == -2 && v->extent != n)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(e), NULL, "two extents for '%.*s'",
                EINI_NAME_OF(p, x->sym));
    v->extent = n;
    v->axis = -2;
  }
  return found > 0;
}

// Free indices in the order they occur on the left, with their extents.
static void eini_left_indices(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  const eini_syn *left = l->left;
  for (int i = 0; i < left->n && p->st == EIN_OK; i++)
    eini_scan(q, left->kid[i], NULL, EINI_V_FREE, 0, 1);
  for (int i = 0; i < left->n && p->st == EIN_OK; i++) {
    const eini_syn *x = left->kid[i];
    if (!left->inv[i] && !eini_give_extent(q, x, left->bext[i]))
      eini_perr(p, EIN_ERR_NAME, EINI_AT(x), NULL, "the name '%.*s' is taken",
                EINI_NAME_OF(p, x->sym));
  }
  for (int64_t i = 0; i < l->given.n && p->st == EIN_OK; i += 2)
    eini_give_extent(q, l->given.kid[i], l->given.kid[i + 1]);
}

// Extents of the indices summed without a name; every name after "for" is an index.
static void eini_given_indices(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  for (int64_t i = 0; i < l->given.n && p->st == EIN_OK; i += 2) {
    const eini_syn *x = l->given.kid[i];
    if (!eini_give_extent(q, x, l->given.kid[i + 1]) && p->st == EIN_OK)
      eini_perr_name(p, EIN_ERR_NAME, x->pos, x->sym,
                     "named reductions have their own: sum[k=4](..)",
                     "is no index on the left, and none that is summed without a name");
  }
}

// The right side with its terms resolved.
static eini_syn *eini_right_side(eini_prog *q, eini_syn *rhs) {
  if (rhs->kind != EINI_S_SUM) return eini_resolve_term(q, rhs);
  eini_kids k = {NULL, NULL, 0, 0};
  for (int i = 0; i < rhs->n && q->p.st == EIN_OK; i++)
    eini_kids_add(&q->p, &k, eini_resolve_term(q, rhs->kid[i]), rhs->inv[i]);
  eini_syn *r = eini_resolved(q, rhs, EINI_S_SUM, -1);
  return r == NULL ? r : eini_syn_with(r, &k);
}

// The tensor a statement defines; its first piece makes it. -1 after a mistake.
static int eini_left_tensor(eini_prog *q, const eini_line *l) {
  static const char *const what[] = {"", "a size", "a param", "an input", "a macro", ""};
  eini_parser *p = &q->p;
  eini_sym *s = eini_sym_of(q, l->sym);
  int tensor = s->open - 1, role = (q->outputs ? s->isout : !s->read) ? EIN_ROLE_OUTPUT
                                                                      : EIN_ROLE_TEMP;
  if (s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE)
    eini_perr(p, EIN_ERR_NAME, l->pos, s->n, NULL, "'%.*s' is %s already", EINI_NAME_OF(p, l->sym),
              what[s->kind]);
  if (tensor >= 0 && q->g->tensor[tensor].rank != l->left->n)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(l), NULL, "'%.*s' has %d axes in an earlier piece, here %d",
              EINI_NAME_OF(p, l->sym), q->g->tensor[tensor].rank, l->left->n);
  if (p->st != EIN_OK || tensor >= 0) return p->st == EIN_OK ? tensor : -1;
  if (eini_graph_add_tensor(q->g, s->s, s->n, (ein_role)role, s->dtype, l->left->n, NULL, &tensor))
    return eini_pmem(p), -1;
  q->g->tensor[tensor].pos = l->pos;
  s->open = tensor + 1;
  return tensor;
}

static void eini_cover_report(eini_prog *q, const eini_line *l, const eini_cover *c) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, l->sym);
  char text[320], hint[96] = "";
  const eini_line *x = l, *a = NULL, *b = NULL;
  for (;; x = &q->line[x->prev - 1]) {
    if (x->stmt == c->a) a = x;
    if (x->stmt == c->b) b = x;
    if (x->prev == 0) break;
  }
  if (a != NULL && b != NULL) {
    int line[2] = {1, 1};
    for (int64_t i = 0; i < a->pos; i++) line[0] += p->s[i] == '\n';
    for (int64_t i = 0; i < b->pos; i++) line[1] += p->s[i] == '\n';
    snprintf(hint, sizeof hint, "by lines %d and %d", line[1], line[0]);
  }
  if (a == NULL) a = l;
  eini_cover_text(c, s->s, eini_cut(s->s, s->n), l->left->n, text, sizeof text);
  eini_perr(p, c->status, EINI_AT(a), hint[0] ? hint : NULL, "%s", text);
}

// After its last piece a tensor has a shape and a dtype, and may be read.
static void eini_seal(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  eini_sym *s = eini_sym_of(q, l->sym);
  int64_t n = s->ndef, *piece = EINI_NEW(p->arena, int64_t, n);
  eini_cover c;
  memset(&c, 0, sizeof c);
  if (s->kind == EINI_N_BAD || s->open == 0) return;
  s->kind = EINI_N_BAD;
  if (s->bad && p->status != EIN_OK) return;  // a piece of it may have failed to parse
  for (const eini_line *x = l; piece != NULL; x = &q->line[x->prev - 1]) {
    piece[--n] = x->stmt;  // in the order of the text
    if (x->prev == 0) break;
  }
  ein_status st = piece == NULL ? EIN_ERR_NO_MEMORY :
                  eini_cover_prove(q->g, s->open - 1, piece, s->ndef, p->arena, &c);
  if (c.status == EIN_OK) c.status = st;
  if (st == EIN_ERR_NO_MEMORY) eini_pmem(p);
  else if (st != EIN_OK) eini_cover_report(q, l, &c);
  if (p->st != EIN_OK) return;
  s->kind = EINI_N_TENSOR;
  s->id = s->open - 1;
  eini_tensor_fix_dtype(&q->g->tensor[s->id]);
}

static void eini_lower(eini_prog *q, eini_line *l) {
  eini_parser *p = &q->p;
  eini_build b;
  q->nvar = q->access.n = 0;
  eini_row *left = EINI_NEW(p->arena, eini_row, l->left->n);
  if (left == NULL) eini_pmem(p);
  int tensor = p->st == EIN_OK ? eini_left_tensor(q, l) : -1;
  if (tensor < 0) return;
  eini_left_indices(q, l);
  int nfree = (int)q->nvar, *freev = EINI_NEW(p->arena, int, nfree);
  if (freev == NULL) eini_pmem(p);
  eini_syn *r = p->st == EIN_OK ? eini_right_side(q, l->kid[0]) : NULL, *body = r;
  for (int i = 0; i < l->left->n && p->st == EIN_OK; i++)
    left[i] = eini_affine_row(q, l->left->kid[i], NULL);
  if (p->st == EIN_OK) eini_check_unnamed(q);
  if (p->st == EIN_OK) eini_given_indices(q, l);
  if (p->st == EIN_OK) eini_solve(q);
  if (p->st == EIN_OK) eini_check_bounds(q);
  if (p->st != EIN_OK || r == NULL) return;
  for (int i = 0; i < nfree; i++) freev[i] = i;
  while (body->kind == EINI_S_PAREN || body->kind == EINI_S_BODY) body = body->kid[0];
  int direct = body->kind == EINI_S_REDUCE && !body->exact;
  if (eini_build_tree(q, &b, freev, nfree, direct ? body->bind : NULL, direct ? body->nbind : 0,
                      direct ? body->kid[0] : r) == EIN_OK)
    eini_build_stmt(&b, tensor, left, direct ? body->op : EINI_FOLD_NONE, l->pos);
  if (p->st == EIN_OK) l->stmt = q->g->nstmt - 1;
}

// ---- gradients ----

// The tensor a name of a grad statement means; -1 after a mistake.
static int eini_grad_name(eini_prog *q, const eini_syn *v) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (q->p.st == EIN_OK && s->kind != EINI_N_TENSOR) eini_bad_name(q, v, 0);
  return q->p.st == EIN_OK ? s->id : -1;
}

// Is the name of a gradient new?
static void eini_grad_check_name(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_BAD) p->st = EIN_ERR_NAME;
  if (s->kind != EINI_N_NONE || s->ndef > 1)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, s->ndef > 1 ? "'%.*s' is defined more than once"
                                                             : "the name '%.*s' is taken",
              EINI_NAME_OF(p, v->sym));
}

// A tensor for a gradient by tensor wrt, of the dtype it was declared with.
static int eini_grad_left(eini_prog *q, const eini_syn *v, int wrt) {
  const eini_sym *s = eini_sym_of(q, v->sym);
  ein_dtype dtype = s->dtype != EIN_NONE || wrt >= q->ndeclared ? s->dtype : q->declared[wrt];
  int id, role = (q->outputs ? s->isout : !s->read) ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP;
  if (eini_graph_add_tensor(q->g, s->s, s->n, (ein_role)role, dtype, q->g->tensor[wrt].rank,
                            NULL, &id) != EIN_OK)
    return eini_pmem(&q->p), -1;
  q->g->tensor[id].pos = v->pos;
  return id;
}

static void eini_do_grad(eini_prog *q, const eini_line *l) {
  eini_parser *p = &q->p;
  int n = l->nparam, *wrt = EINI_NEW(p->arena, int, n), *grad = EINI_NEW(p->arena, int, n);
  eini_grad w;
  if (wrt == NULL || grad == NULL) eini_pmem(p);
  memset(&w, 0, sizeof w);
  w.g = q->g;
  w.diag = p->diag;
  w.pos = l->pos;
  w.len = l->len;
  w.at = l->kid;
  w.scratch = p->arena;
  for (int k = 0; k < n && p->st == EIN_OK; k++) eini_grad_check_name(q, l->kid[2 + n + k]);
  w.loss = p->st == EIN_OK ? eini_grad_name(q, l->kid[0]) : -1;
  int seed = p->st == EIN_OK && l->kid[1]->sym >= 0 ? eini_grad_name(q, l->kid[1]) : -1;
  for (int k = 0; k < n && p->st == EIN_OK; k++) wrt[k] = eini_grad_name(q, l->kid[2 + k]);
  for (int k = 0; k < n && p->st == EIN_OK; k++)
    grad[k] = eini_grad_left(q, l->kid[2 + n + k], wrt[k]);
  if (p->st == EIN_OK) eini_reported(p, eini_grad_all(&w, seed, n, wrt, grad));
  for (int k = 0; k < n; k++) {
    eini_sym *s = eini_sym_of(q, l->kid[2 + n + k]->sym);
    if (s->kind != EINI_N_NONE) continue;
    s->kind = p->st == EIN_OK ? EINI_N_TENSOR : EINI_N_BAD;
    if (p->st == EIN_OK) s->id = grad[k];
  }
}

// ---- before lowering: what is read, defined, observed ----

static void eini_mark_read(eini_prog *q, const eini_syn *v) {
  if (v->kind == EINI_S_ACCESS || v->kind == EINI_S_NAME) q->names.sym[v->sym].read = 1;
  for (int i = 0; i < v->n && v->kind != EINI_S_ACCESS; i++) eini_mark_read(q, v->kid[i]);
}

static void eini_survey_grad(eini_prog *q, int64_t number) {
  const eini_line *l = &q->line[number];
  for (int k = 0; k < l->n; k++) {
    eini_sym *s = l->kid[k]->sym < 0 ? NULL : eini_sym_of(q, l->kid[k]->sym);
    if (s != NULL && k < 2 + l->nparam) s->read = 1;
    if (k < 2 + l->nparam) continue;
    s->ndef++;
    s->lastdef = (int)number;
  }
}

static void eini_survey(eini_prog *q) {
  for (int64_t i = 0; i < q->nline; i++) {
    eini_line *l = &q->line[i];
    int output = l->kind == EINI_L_OUTPUT;
    q->p.st = EIN_OK;
    if (l->kind == EINI_L_DEF || l->kind == EINI_L_DEFINE) eini_mark_read(q, l->kid[0]);
    if (l->kind == EINI_L_GRAD) eini_survey_grad(q, i);
    for (int k = 0; k < l->n && (output || l->kind == EINI_L_DEFINE); k++) {
      int sym = output ? l->kid[k]->sym : l->sym;
      eini_sym *s = eini_sym_of(q, sym);
      if (l->dtype != EIN_NONE && s->dtype != EIN_NONE && s->dtype != l->dtype)
        eini_perr(&q->p, EIN_ERR_DTYPE, output ? l->kid[k]->pos : l->pos, s->n, NULL,
                  "'%.*s' is given two dtypes, %s and %s", EINI_NAME_OF(&q->p, sym),
                  ein_dtype_name(s->dtype), ein_dtype_name(l->dtype));
      if (l->dtype != EIN_NONE) s->dtype = l->dtype;
      if (output) {
        q->outputs = s->isout = 1;
      } else {
        l->prev = s->ndef++ > 0 ? s->lastdef + 1 : 0;
        s->lastdef = (int)i;
      }
    }
  }
}

static void eini_do_line(eini_prog *q, int64_t number) {
  eini_line *l = &q->line[number];
  eini_parser *p = &q->p;
  q->cur = number;
  p->st = EIN_OK;
  p->depth = 0;
  if (l->kind == EINI_L_DEF) eini_do_def(q, l);
  if (l->kind == EINI_L_DEFINE) {
    eini_lower(q, l);
    for (int64_t i = 0; i < q->nvar; i++) p->names->sym[q->var[i].sym].var = 0;
    eini_sym *s = eini_sym_of(q, l->sym);
    if (p->st != EIN_OK && s->kind == EINI_N_NONE) s->kind = EINI_N_BAD;
    if (p->st == EIN_OK && s->lastdef == number) eini_seal(q, l);
  }
  if (l->kind == EINI_L_GRAD) eini_do_grad(q, l);
  for (int k = 0; k < l->n && l->kind < EINI_L_DEF; k++) {
    const eini_syn *v = l->kid[k];
    p->st = EIN_OK;
    if (l->kind == EINI_L_INPUT) eini_do_input(q, l, v);
    if (l->kind == EINI_L_PARAM) eini_do_param(q, l, v);
    if (l->kind == EINI_L_OUTPUT) eini_do_output(q, v);
    eini_sym *s = eini_sym_of(q, v->sym);
    if (p->st != EIN_OK && s->kind == EINI_N_NONE) s->kind = EINI_N_BAD;
  }
}

// ---- the caller's side ----

// Views and sizes that name nothing are mistakes of the caller.
static void eini_check_given(eini_prog *q) {
  eini_parser *p = &q->p;
  p->st = EIN_OK;
  for (int i = 0; i < q->desc->nbind + q->desc->nsize; i++) {
    int bind = i < q->desc->nbind, found = 0;
    const char *name = bind ? q->desc->bind[i].name : q->desc->size[i - q->desc->nbind].name;
    eini_near w;
    eini_near_init(&w, name, (int64_t)strlen(name));
    for (int64_t k = 0; k < p->names->n && !found; k++) {
      const eini_sym *s = &p->names->sym[k];
      int input = s->kind == EINI_N_TENSOR && q->g->tensor[s->id].role == EIN_ROLE_INPUT;
      found = eini_word_is(s->s, s->n, name) && (input || !bind);
      if (bind ? input : s->kind == EINI_N_SIZE) eini_near_try(&w, s->s, s->n);
    }
    if (!found)
      eini_perr(p, EIN_ERR_NAME, -1, 0, eini_near_hint(&w),
                bind ? "no input is named '%.60s'" : "no size or index is named '%.60s'", name);
  }
}

// Mistakes in the order of the text; those of lowering come after those of parsing.
static void eini_diag_sort(eini_diag *d) {
  for (int i = 1; d->error != NULL && i < d->count; i++) {
    for (int j = i; j > 0 && d->error[j].line > 0; j--) {
      ein_error e = d->error[j], f = d->error[j - 1];
      if (f.line < e.line || (f.line == e.line && f.column <= e.column)) break;
      d->error[j - 1] = e;
      d->error[j] = f;
    }
  }
  if (d->error != NULL && d->count > 0) d->status = d->error[0].status;
}

static ein_status eini_check_desc(eini_diag *g, const ein_program_desc *d) {
  if (d->text == NULL) return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "text is NULL");
  if ((int)d->dtype < 0 || d->dtype >= EIN_DTYPE_COUNT)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "dtype is no dtype, but %d", (int)d->dtype);
  EINI_TRY(eini_validate_bindings(g, "bind", d->nbind, d->bind));
  if (d->nsize < 0 || (d->nsize > 0 && d->size == NULL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "nsize is %d%s", d->nsize,
                     d->nsize < 0 ? "" : ", but the list is NULL");
  for (int i = 0; i < d->nsize; i++) {
    if (d->size[i].name == NULL)
      return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "size[%d] has no name: it is NULL", i);
    if (d->size[i].value < 0)
      return eini_fail(g, EIN_ERR_SHAPE, -1, 0, NULL, "size '%.80s' is %lld", d->size[i].name,
                       (long long)d->size[i].value);
  }
  return EIN_OK;
}

// Source lines of statements from their positions.
static ein_status eini_graph_lines(eini_arena *a, ein_graph *g, const char *text, int64_t length) {
  int64_t n = 0, *end;  // where lines end
  for (int64_t i = 0; i < length; i++) n += text[i] == '\n';
  if ((end = EINI_NEW(a, int64_t, n)) == NULL) return EIN_ERR_NO_MEMORY;
  n = 0;
  for (int64_t i = 0; i < length; i++)
    if (text[i] == '\n') end[n++] = i;
  for (int64_t i = 0; i < g->nstmt; i++) {  // statements of gradients are not in the text's order
    int64_t low = 0, high = n;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (end[middle] < g->stmt[i].pos) low = middle + 1;
      else high = middle;
    }
    g->stmt[i].line = g->stmt[i].pos < 0 ? 0 : low + 1;
  }
  return EIN_OK;
}

// Parses; with fn NULL also lowers, else calls fn for every input.
static ein_status eini_prog_run(eini_arena *arena, ein_graph *g, ein_ctx *ctx,
                                const ein_program_desc *desc,
                                void (*fn)(const char *, ein_dtype, int, void *), void *user) {
  size_t n = 0, most = desc->max_source > 0 ? desc->max_source : (size_t)16 << 20;
  int depth = desc->max_nesting > 0 ? desc->max_nesting : 256;
  eini_diag *d = eini_diag_of(ctx);
  eini_prog *q = EINI_NEW(arena, eini_prog, 1);
  if (q == NULL) return EIN_ERR_NO_MEMORY;
  if (d != NULL) eini_diag_reset(d, NULL, 0);
  EINI_TRY(eini_check_desc(d, desc));
  n = desc->length > 0 ? desc->length : strlen(desc->text);
  if (n > most || n > INT_MAX)
    return eini_fail(d, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the source has more than %llu bytes",
                     (unsigned long long)most);
  if (d != NULL) eini_diag_reset(d, desc->text, (int64_t)n);
  if (d != NULL) d->max = desc->max_errors > 0 ? desc->max_errors : 20;
  eini_parser_init(&q->p, arena, d, g, desc->text, (int64_t)n, depth < 1000 ? depth : 1000);
  q->p.names = &q->names;
  q->g = g;
  q->desc = desc;
  q->dtype = desc->dtype != EIN_NONE ? desc->dtype : EIN_F64;
  eini_parse_program(q);
  for (int64_t i = 0; fn != NULL && q->p.status == EIN_OK && i < q->nline; i++) {
    const eini_line *l = &q->line[i];
    for (int k = 0; k < l->n && l->kind == EINI_L_INPUT; k++) {
      const eini_sym *s = eini_sym_of(q, l->kid[k]->sym);
      char *name = eini_strndup(arena, s->s, s->n);
      if (name == NULL) return EIN_ERR_NO_MEMORY;
      fn(name, l->dtype, l->kid[k]->n, user);
    }
  }
  if (fn != NULL || q->p.status == EIN_ERR_NO_MEMORY) return q->p.status;
  eini_survey(q);
  for (int64_t i = 0; i < q->nline && !eini_diag_full(&q->p); i++) eini_do_line(q, i);
  if (q->p.status == EIN_OK) eini_check_given(q);
  if (q->p.status == EIN_OK) q->p.status = eini_graph_lines(arena, g, q->p.s, q->p.n);
  return q->p.status == EIN_OK ? eini_graph_prune(g) : q->p.status;
}

static ein_status eini_program(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph,
                               void (*fn)(const char *, ein_dtype, int, void *), void *user) {
  if (desc == NULL) {
    eini_begin_call(ctx, NULL);
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "the description is NULL");
  }
  ein_graph *g = eini_graph_new(ctx);
  if (g == NULL) return EIN_ERR_NO_MEMORY;
  eini_arena arena;
  eini_arena_init(&arena, &g->arena.al);
  ein_status st = eini_prog_run(&arena, g, ctx, desc, fn, user);
  if (ctx != NULL) eini_diag_sort(&ctx->diag);
  if (st != EIN_OK && st != EIN_ERR_NO_MEMORY && ctx != NULL) st = ctx->diag.status;
  eini_arena_free(&arena);
  if (ctx != NULL) ctx->diag.text = NULL;
  if (st == EIN_OK && graph != NULL) *graph = g;
  else eini_graph_free(g);
  return st;
}

EIN_API ein_status ein_graph_parse(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph) {
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  *graph = NULL;
  return eini_program(ctx, desc, graph, NULL, NULL);
}

EIN_API ein_status ein_program_inputs(ein_ctx *ctx, const ein_program_desc *desc,
                                      void (*fn)(const char *name, ein_dtype dtype, int rank,
                                                 void *user), void *user) {
  return fn == NULL ? EIN_ERR_ARGUMENT : eini_program(ctx, desc, NULL, fn, user);
}

// ================================================================================================
// >>program-print  a graph as text
// Takes a graph; gives a program that makes it, temporaries under names of their own.
// ================================================================================================

EIN_API size_t ein_graph_print(const ein_graph *g, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  int outputs = 0;
  for (int64_t i = 0; g != NULL && i < g->ntensor; i++) {
    const eini_tensor *x = &g->tensor[i];
    if (x->role != EIN_ROLE_INPUT) continue;
    eini_say(&t, "input %s[", x->name);
    for (int r = 0; r < x->rank; r++) eini_say(&t, "%s%lld", r ? "," : "", (long long)x->shape[r]);
    eini_say(&t, "] : %s\n", ein_dtype_name(x->dtype));
  }
  for (int64_t i = 0; g != NULL && i < g->nparam; i++) {
    eini_say(&t, "param %s", g->param[i].name);
    if (g->param[i].value.set) eini_say(&t, " = %.17g", g->param[i].value.re);
    if (g->param[i].dtype != EIN_NONE) eini_say(&t, " : %s", ein_dtype_name(g->param[i].dtype));
    eini_say(&t, "\n");
  }
  for (int64_t i = 0; g != NULL && i < g->nstmt; i++) {
    eini_say_stmt(&t, g, &g->stmt[i]);
    eini_say(&t, "\n");
  }
  for (int64_t i = 0; g != NULL && i < g->ntensor; i++) {
    if (g->tensor[i].role == EIN_ROLE_OUTPUT && g->tensor[i].nstmt > 0)
      eini_say(&t, "%s%s", outputs++ ? ", " : "output ", g->tensor[i].name);
  }
  if (outputs > 0) eini_say(&t, "\n");
  return t.at;
}

#endif  // EINSUM_IMPLEMENTATION

// ---- license -----------------------------------------------------------------------------------
// MIT License
//
// Copyright (c) 2026 the einsum.h authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.
