// einsum.h - v0.1.0 - Einstein summation and tensor programs for C and C++ - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the header plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//
// It needs the C library and libm (-lm), C99 or C++11. There is nothing else to build.
//
//     float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {1, 1}}, c[2][2];
//     int64_t sa[] = {2, 3}, sb[] = {3, 2}, sc[] = {2, 2};
//     ein_ztensor in[] = {ein_tensor(EIN_F32, 2, sa, a), ein_tensor(EIN_F32, 2, sb, b)};
//     ein_ztensor out = ein_tensor(EIN_F32, 2, sc, c);
//     ein_status st = ein_einsum(NULL, "ij,jk->ik", 2, in, &out);    // {{4, 5}, {10, 11}}
//
// C++ is the same. Zero all other structs (ein_run r = ein_run(); in C++) and assign their fields.
//
//
// CONTENTS (search for >>name)
//
// Manual: LEVELS, WORDS, DTYPES, NUMPY STRINGS, GRAPHS, FUNCTIONS AND FOLDS, FUNCTIONS AND MONOIDS
// OF YOUR OWN, DETERMINISM, THREADS, MEMORY, ERRORS, WHAT IT DOES NOT DO
//
//   >>config          compile-time switches
//   >>types           public types
//   >>api             public functions: three levels
//   >>implementation  everything below is compiled once
//   >>util            checked arithmetic, arena, growable arrays, hashing
//   >>error           mistakes and their messages
//   >>dtype           sizes, names, promotion, conversion
//   >>zspace          images of affine maps
//   >>ztensor         views: shape and strides over the caller's memory
//   >>monoid          folds as states
//   >>expr            scalar expressions
//   >>graph           tensors and statements
//   >>context         what a caller sets up once
//   >>notation        NumPy strings and integer labels
//   >>syntax          words, tokens, and maps: expressions over operands
//   >>print           a graph as text
//   >>path            contraction order of n operands
//   >>pathtree        improvement of contraction trees; strategies and budgets
//   >>rewrite         from n-ary statements to sequences of small ones
//   >>math            elementary functions on padded buffers
//   >>contract-kernels register tiles, packing, dot, axpy and small products, per element type
//   >>contract        out[b,m,n] = store( sum over k of P[b,m,k] * Q[b,k,n] )
//   >>eval            expressions in vector chunks
//   >>code            expressions as straight-line programs over chunk registers
//   >>fold            monoids over chunks
//   >>mapreduce       the portable map-reduce kernel
//   >>lower           statements become tasks
//   >>products        statements that are contractions
//   >>leaves          long folds with few results
//   >>order           folds whose additions have one order
//   >>group           statements that run inside one loop nest
//   >>accuracy        how far results may be from the truth
//   >>overflow        integers that do not fit
//   >>plan            from a graph to tasks and a workspace layout
//   >>execute         running a plan
//   >>explain         plans as text and JSON
//   >>request         einsum descriptors
//   >>public          plans of graphs, the plan cache, one-call interface
//
//
// LEVELS
//
// 1. One call. ein_einsum(ctx, expr, nin, in, &out) computes into memory of yours; ein_einsum_out
//    tells dtype and shape of the result beforehand. ein_einsum_ex has every choice: integer
//    labels, alpha and beta, conjugation, another fold than the sum, another map than the product,
//    what happens to elements an output like "i->ii" does not define. ctx may be NULL. With one,
//    plans of repeated calls are kept (the 64 last used), so that they cost little, and mistakes
//    are explained (ein_ctx_message).
// 2. Plans. ein_plan_create decides once for given shapes, strides and dtypes; ein_plan_execute
//    computes as often as you like, for other data pointers, from many threads at the same time.
// 3. Graphs of several statements. einsum_program.h makes them, by calls (ein_graph_create and its
//    like) or from the text of a program (ein_graph_parse). ein_plan_graph makes a plan.
//    ein_plan_explain and ein_plan_json show what was decided, with the type that each statement
//    adds in, a bound of its error (relative to the sum of absolute values, for any order, barring
//    overflow and underflow), and what runs in portable kernels for want of others. Providers of
//    kernels (ein_kernels) do the leaf work: those of the headers in backends/, or one of your own.
//
// Include einsum.h for strings and plans; einsum_program.h, which includes it, for programs.
//
// Structs are all-zero by default: zero them and set what you need. Lengths, extents and strides
// are counted in elements, int64_t; what counts bytes says so.
//
//
// WORDS
//
// index       a letter or name that runs over 0, 1, .., extent-1; free (in the result) or reduced
// label       an index in an expression string, or its integer
// extent      the number of values of an index, or of coordinates along an axis; 0 is ordinary
// operand     a tensor as it occurs in a statement, with its indices
// fold        what combines the values of reduced indices: sum, max, argmax, ..
// monoid      a fold as a state with lift, merge, identity and finish
// statement   one fold over one scalar expression of operands, and where its values go
// graph       statements in order; each reads inputs and what those before define
// view        shape and strides over memory that somebody else owns (ein_ztensor)
//
//
// DTYPES
//
// bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128. Complex numbers are pairs of reals. A bool is
// one byte, 0 or 1. f16 and bf16 compute in f32, u8, i8 and i16 in i32; a value is rounded where it
// is stored, intermediates of a split statement stay in the computation type. Integers wrap; with
// options.overflow_check an element whose exact value does not fit is EIN_ERR_OVERFLOW, and the
// error of ein_run names it: each statement is first gone through with 128 bits, in one pass by one
// thread, and runs on portable kernels. Sums and products may pass what fits on the way, up to
// 2^126. What real numbers are converted to is not looked at.
// NumPy strings give numpy.result_type of the operands; sums and products of bool are or and and.
// Maps and programs promote so too, except that number literals adopt what they meet: 2*x keeps x's
// dtype; an integer literal does with integers, 0.5 with integers gives f64. "/" of integers gives
// f64. The result is converted to the dtype of your output where NumPy's same_kind allows it. bf16,
// which NumPy lacks, stays bf16 with bool and 8-bit integers and becomes f32 with f16.
//
//
// NUMPY STRINGS
//
//     "ij,jk->ik"    "ii->i"    "...ij,...jk->...ik"    "ij,ij"    ",i->i"    "->"
//
// What numpy.einsum(.., optimize=False) accepts gives its result; what it rejects is an error,
// except: labels may be letters beyond ASCII (code points from U+00A1), operands and axes have no
// limit, and ein_einsum_ex gives repeated output labels a meaning (ein_rest: zero, keep or
// accumulate the rest). Without "->" the output is the axes of "...", then the labels that occur
// exactly once, by code point (A before a). The same label must have the same extent, or extent 1,
// which broadcasts; within one operand extents must be equal. Spaces may stand anywhere but inside
// "->" and "...". The order of contraction is searched for: values of sums may differ in rounding,
// and for inf and NaN, from one unsplit pass; path "none" asks for that pass. Other folds are split
// only where that changes nothing: any and all of bool, in programs extrema and logsumexp over sums
// (-inf + inf aside) and extrema over each other. A path is auto, naive (left to right), optimal,
// dp, greedy, random or a list of steps in opt_einsum's linear format, "(3) (0,1) (0,1,2)" or
// "[[3], [0, 1], [0, 1, 2]]": a step takes positions of the operands still there, counted from 0,
// and appends its result. One alone is reduced by itself; three or more are one pass. What is asked
// for is taken; auto weighs pairs against one pass and those from left to right.
//
//
// GRAPHS
//
// A graph has tensors, params and statements, each added by one call; ids count from 0. A statement
// is an index space (free indices, then reduced ones), operands with maps from index values to
// coordinates (ein_zmap: coef * i + offset), an expression over their elements, a fold of the
// reduced indices, and a map that says which element of the output the free indices define.
// Several statements may define one tensor (pieces: concatenation, padding); they must fit exactly.
// See examples/08_graph.c.
//
//
// FUNCTIONS AND FOLDS
//
// exp log sqrt sin cos tan tanh also of complex numbers      rsqrt(x)    1/sqrt(x)
// expm1(x)    exp(x)-1          log1p(x)    log(1+x)         both exact near 0, also complex
// sign(x)     -1, 0, 1; NaN stays; complex: x/abs(x)         atan2(y,x)  the angle of (x, y)
// erf                           real                         sigmoid(x)  1/(1+exp(-x))
// relu(x)     x < 0 ? 0 : x     NaN stays NaN                silu(x)     x*sigmoid(x)
// gelu(x)     x/2*(1+erf(x/sqrt(2)))                         abs(x)      real, also of complex x
// floor ceil round              halves go to even            pow(x,y)    x^y
// div(x,y)    numpy.floor_divide: of integers by 0 it is 0, div(inf,2) is NaN
// mod(x,y)    numpy.mod, x - y*div(x,y) but for what divides by 0: 0 of integers, else NaN
// max(x,y,..) min(x,y,..)       element-wise; NaN wins       where(c,x,y)  c ? x : y
// conj real imag complex(x,y)   abs for the modulus          cast_T(x)   rounded to dtype T
// x^n with a literal whole n from 0 to 64 is multiplications and keeps integers; else it is a
// float. The real elementary functions exp, log, sin, cos, tanh and erf are within 2 units in the
// last place of f32 and f64.
//
// fold        of nothing        what
// sum prod    0, 1
// max min     -inf, inf (integers: the least, the largest)    NaN wins
// any all     false, true       of values that are not 0
// logsumexp   -inf              log(sum(exp(x))) without overflow
// argmax      error             position of the first largest (least) value or NaN, i64; of several
// argmin      error               indices row-major in the order written
// mean        error
// var         error             of the population: mean((x - mean(x))^2)
// norm        0                 sqrt(sum(abs(x)^2))
// Complex numbers have sum, prod, mean and norm. A sum of bool counts, in programs (i64). A fold
// of nothing that is an error is reported before anything is executed.
//
// With ein_einsum_ex: .monoid names the fold, .map is an expression over x0, x1, .. (the operands):
//     "ik,jk->ij" with monoid "max" and map "abs(x0-x1)" is the distance in the maximum norm.
// A monoid that is named folds single values too ("i->i" with any gives bool), and norm is one.
//
//
// FUNCTIONS AND MONOIDS OF YOUR OWN
//
// ein_ctx_function and ein_ctx_monoid register them by name in a ctx; then they stand in programs,
// maps and .monoid like those above. They get chunks of values, must be pure, and are called from
// several threads where the executor has several. A monoid's merge must be associative and
// commutative; joins tells what distributes over it (EIN_JOIN_MUL: a product may be split as in a
// sum of products); 0 is always right. Plans keep the pointers. See examples/05_monoid.c.
//
//
// DETERMINISM
//
// One plan on one machine gives the same bits every time: partial results merge in a fixed order,
// whatever thread was faster. Other plans of the same statements may round otherwise, those for
// another number of threads too: kernels are chosen by predicted time.
//
// options.deterministic extends this over numbers of threads and places, fabrics, and what was
// calibrated or imported. Paths and kernels are then chosen by shapes and dtypes alone. A long fold
// with few results becomes the fold of at most 64 leaves, whose length the shape decides; leaves
// and other free indices are shared out, reduced indices are never cut but where every order gives
// the same bits: integers, any, all, argmax, argmin. Each element is folded in one order with the
// same fused products, wherever blocks end. So are folds of your own, if their functions work
// element by element. Not promised: equal bits on other instruction sets, compilers or providers,
// for other strides or order of operands. It costs the kernels that are fast on odd shapes; large
// products keep their speed, sums of rows or columns in the caches half to a third of it. var,
// means of complex values, folds of your own and folds of the long index's own value have no
// leaves: each result is the work of one thread. The portable kernels and einsum_cpu.h can do it;
// with other providers only, EIN_ERR_UNSUPPORTED, and EIN_ERR_ARGUMENT for paths by the clock and
// parts that cut a reduced index. For places, ein_graph_deterministic gives the graph to decompose
// and run.
//
// The searches of paths count steps unless you give seconds and a clock; with seconds, paths may
// differ, and deterministic plans refuse them.
//
//
// THREADS
//
// The library starts no thread; a backend may have a pool of them. The executor in the ctx's
// description runs tasks for it: parallel_for(n, task, arg, user) calls task(arg, i) for all i < n,
// in any order, on any threads, and returns when all are done; it is never called from inside a
// task. Without one, all runs on the caller. A ctx serves one thread at a time. Graphs are
// read-only once parsed. Plans are immutable: any number of threads may execute one, each with its
// own ein_run, outputs and workspace. There are no globals.
//
//
// MEMORY
//
// All memory comes from the allocator in the ctx's description, or from EINSUM_MALLOC and
// EINSUM_FREE (default malloc and free). The library frees only what it allocated; views, shapes
// and texts are borrowed for the call, results are written into memory of yours. ein_plan_execute
// allocates nothing when the workspace is given: ein_plan_workspace bytes, aligned to 64. Data need
// the alignment of their element, complex ones that of a part, no more. Failing allocations give
// EIN_ERR_NO_MEMORY, and nothing is lost. ein_einsum copes with outputs that overlap inputs; a plan
// does with options.may_overlap, and in place where each element is read only where it is written;
// else EIN_ERR_OVERLAP, before anything is written. Buffers may be given with their size (buffer,
// buffer_bytes): then a view that leaves them is an error.
//
//
// ERRORS
//
// Every call that can fail returns an ein_status; on failure *out is NULL. ein_status_text says it
// in words, ein_ctx_message with place, caret and hint:
//
//     1:9: output index 'l' is in no operand
//       ij,jk->il
//               ^
//
// ein_ctx_error gives the parts of it. Columns count code points. Texts of any origin are safe to
// parse. A failed execution leaves its outputs undefined; its message goes to ein_run's error.
//
//
// WHAT IT DOES NOT DO
//
// No sparse tensors, no gather or scatter (a coordinate is never data), no devices, no message
// passing. It does not own tensors, read files, print, exit, start threads, or look at the
// environment. It does not link to a BLAS. Without a backend kernels are portable C: compile the
// implementation with optimisation (-O3 and your machine's instruction set). Plain calls with ctx
// NULL plan anew each time.

#ifndef EINSUM_H
#define EINSUM_H

// ================================================================================================
// >>config  compile-time switches
// Takes macros the user may define before including; gives EIN_API and version numbers.
// ================================================================================================
//   EINSUM_IMPLEMENTATION   define in exactly one source file (or in every one with EINSUM_STATIC)
//   EINSUM_STATIC           every function is static: private to the file that includes it
//   EINSUM_MALLOC(size) and EINSUM_FREE(ptr)   default allocator; define both or none
//   EINSUM_ASSERT(cond)     checks of internal invariants; default: nothing
//   EIN_API                 what stands before every public function, e.g. a visibility; the same
//                           wherever the header is included. Default: extern, or static

#include <stddef.h>
#include <stdint.h>

#define EINSUM_VERSION_MAJOR 0
#define EINSUM_VERSION_MINOR 1
#define EINSUM_VERSION_PATCH 0
#define EINSUM_VERSION "0.1.0"

#if defined(EIN_API)
#elif defined(EINSUM_STATIC) && defined(__GNUC__)
#define EIN_API __attribute__((unused)) static
#elif defined(EINSUM_STATIC)
#define EIN_API static
#else
#define EIN_API extern
#endif

#if defined(EINSUM_MALLOC) != defined(EINSUM_FREE)
#error "einsum.h: define both EINSUM_MALLOC and EINSUM_FREE, or none"
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>types  public types
// Units are elements unless a name or comment says bytes. All-zero descriptors mean the defaults.
// ================================================================================================

// X(id, text): the text stands in messages; ein_status_name gives the identifier.
#define EIN_STATUS_LIST(X)                                              \
  X(EIN_OK, "ok")                                                       \
  X(EIN_ERR_ARGUMENT, "a call's argument is wrong")                     \
  X(EIN_ERR_SYNTAX, "the text is not in the language")                  \
  X(EIN_ERR_NAME, "an unknown, reserved or repeated name")              \
  X(EIN_ERR_SHAPE, "ranks or extents do not fit")                       \
  X(EIN_ERR_DTYPE, "a dtype does not fit")                              \
  X(EIN_ERR_BOUNDS, "an access or view leaves its tensor or buffer")    \
  X(EIN_ERR_TOO_LARGE, "a size does not fit 64 bits or a set limit")    \
  X(EIN_ERR_OVERLAP, "the output overlaps an input")                    \
  X(EIN_ERR_EMPTY, "a fold of nothing that has no identity")            \
  X(EIN_ERR_OVERFLOW, "an integer does not fit its dtype")              \
  X(EIN_ERR_UNSUPPORTED, "not supported here")                          \
  X(EIN_ERR_NO_MEMORY, "out of memory")                                 \
  X(EIN_ERR_INTERNAL, "an internal invariant failed")

#define EINI_STATUS_ENUM(id, text) id,
typedef enum ein_status { EIN_STATUS_LIST(EINI_STATUS_ENUM) EIN_STATUS_COUNT } ein_status;
#undef EINI_STATUS_ENUM

// Ordered as the normal form needs it. 0 means "not given".
typedef enum ein_dtype {
  EIN_NONE = 0, EIN_BOOL, EIN_U8, EIN_I8, EIN_I16, EIN_I32, EIN_I64,
  EIN_F16, EIN_BF16, EIN_F32, EIN_F64, EIN_C64, EIN_C128, EIN_DTYPE_COUNT
} ein_dtype;

// A view of caller-owned memory: element (i0, i1, ..) lives at data + sum(i*stride) elements.
// The library never frees it. Strides may be 0 or negative; there is no rank limit.
typedef struct ein_ztensor {
  ein_dtype dtype;
  int space;               // memory space; 0: host, others give EIN_ERR_UNSUPPORTED
  int rank;
  const int64_t *shape;    // borrowed, rank extents
  const int64_t *strides;  // borrowed, rank strides in elements; NULL: row-major without gaps
  void *data;              // element (0, .., 0), not the lowest address; may be NULL when planning
  const void *buffer;      // allocation the view must stay inside, with its size; optional:
  size_t buffer_bytes;     //   0 means unknown, and then bounds cannot be proved
} ein_ztensor;

// A view of row-major memory without gaps. shape is borrowed. data of inputs is never written, so
// it may be const; NULL when planning.
static inline ein_ztensor ein_tensor(ein_dtype dtype, int rank, const int64_t *shape,
                                     const void *data) {
  ein_ztensor t = {dtype, 0, rank, shape, NULL, (void *)(uintptr_t)data, NULL, 0};
  return t;
}

// Points, ranges and affine maps of integer index spaces (Tapestry). Memory is the caller's.
typedef struct ein_zpoint {
  int rank;
  int64_t *coord;
} ein_zpoint;

typedef struct ein_zrange {
  int rank;
  int64_t *start, *end;    // start inclusive, end exclusive; a range of rank 0 has size 1
} ein_zrange;

// y = coef * x + offset; rows: coordinates of a tensor, cols: indices of the index space.
// With a block shape, point x selects the range [y, y + block).
typedef struct ein_zmap {
  int rows, cols;
  int64_t *coef;           // rows * cols, row-major
  int64_t *offset;         // rows
  const int64_t *block;    // rows, or NULL for a single point
} ein_zmap;

typedef struct ein_ctx ein_ctx;      // one thread at a time
typedef struct ein_graph ein_graph;  // built by one thread, then read-only
typedef struct ein_plan ein_plan;    // immutable, shared freely between threads

// alloc_fn returns size bytes aligned to align (a power of two up to 64), or NULL.
typedef struct ein_allocator {
  void *(*alloc_fn)(size_t size, size_t align, void *user);
  void (*free_fn)(void *ptr, size_t size, void *user);
  void *user;
} ein_allocator;

typedef enum ein_level { EIN_LOG_ERROR, EIN_LOG_WARNING, EIN_LOG_INFO } ein_level;

typedef struct ein_logger {
  void (*log_fn)(ein_level level, const char *message, void *user);
  void *user;
} ein_logger;

// parallel_for runs task(arg, i) for i in [0, n), in any order, on up to width threads, and returns
// when all are done. It is never called from inside a task (no nesting). Kernels are chosen for the
// width, and may round otherwise for another one (manual: DETERMINISM).
typedef struct ein_executor {
  int width;
  void (*parallel_for)(int n, void (*task)(void *arg, int i), void *arg, void *user);
  void *user;
} ein_executor;

// ---- kernels: what a provider of leaf work sees (level 3) --------------------------------------
// Operands are a base pointer and one stride per index: views, diagonals, broadcasts and windows
// look alike. Strides and offsets are in elements. While planning, all addresses are NULL.

// A group of indices as one index, row-major; no axes means extent 1.
typedef struct ein_axes {
  int n;
  const int64_t *extent;
} ein_axes;

typedef enum ein_form {
  EIN_FORM_PLAIN,           // one operand, stored in the compute dtype
  EIN_FORM_PRODUCT,         // the product of nop > 1 operands stored in the compute dtype
  EIN_FORM_CONVERT,         // one operand, converted to the compute dtype
  EIN_FORM_FUNCTION         // anything else
} ein_form;

// P or Q of a contraction. row is m for P and n for Q.
typedef struct ein_side {
  ein_form form;
  int conj;                     // plain and complex: the operand is conjugated
  int nop;
  const ein_dtype *dtype;       // [nop] as stored
  const int64_t *const *row;    // [nop] strides over the axes of m or n
  const int64_t *const *k;      // [nop]
  const int64_t *const *batch;  // [nop]
  const char *const *base;      // [nop] address of the element at index 0 of everything
  // Values of any form at n <= EIN_POINTS points: point i reads operand o at base[o] + off[o][i].
  // off and out are aligned to 64 bytes; out is in the compute dtype, padded to EIN_POINTS.
  void (*fill_fn)(void *user, int64_t n, const char *const *base, const int64_t *const *off,
                  void *out);
  void *user;
} ein_side;

#define EIN_POINTS 1024     // points of one call of fill_fn and emit_fn at most

// What is folded over k of what is made of P and Q. x: P's value, y: Q's.
typedef enum ein_pair {
  EIN_PAIR_SUM_MUL, EIN_PAIR_MIN_ADD, EIN_PAIR_MAX_ADD, EIN_PAIR_ANY_AND,
  EIN_PAIR_SUM_SQDIFF,      // sum of (x-y)^2
  EIN_PAIR_SUM_ABSDIFF, EIN_PAIR_MAX_ABSDIFF
} ein_pair;

// out[b,m,n] = store(fold over k of pair(P[b,m,k], Q[b,k,n])); products of extents fit 63 bits.
typedef struct ein_contract {
  ein_pair pair;
  ein_dtype type;               // compute dtype: i32 i64 f32 f64 c64 c128; any-and: bool
  int ordered;                  // 1: the extents of k and the dtype alone decide in which order an
                                //   element's values are folded; k is as the statement has it
  ein_axes batch, m, n, k;      // merged where strides allow, small steps of the output last
  // 1: the store is alpha * fold, plus beta * (extra 0) if there is one, all in the compute dtype.
  // Kernels may do that themselves; emit_fn does it too, and then needs no aligned folds.
  int scaled;
  const void *alpha, *beta;     // when run: NULL: not multiplied; beta NULL: extra 0 is not read
  ein_side p, q;
  int unsplit;                  // 1: an element's factors are multiplied before anything is added
  ein_dtype out_dtype;
  const int64_t *out_batch, *out_m, *out_n;  // strides of the output
  char *out;
  int plain_out;                // 1: the output has the compute dtype and is overwritten
  // Otherwise: what the store reads besides the folds (C, bias, ..), and the store itself: n folds
  // go to out + off[i], extra e is read at extra_base[e] + xoff[e][i]; each element is stored once.
  // step: NULL, or steps of the output and of each extra, and only the first offsets are there.
  int nextra;
  const ein_dtype *extra_dtype;
  const int64_t *const *extra_batch, *const *extra_m, *const *extra_n;
  const char *const *extra_base;
  void (*emit_fn)(void *user, int64_t n, const void *folds, char *out, const int64_t *off,
                  const char *const *base, const int64_t *const *xoff, const int64_t *step);
  void *emit_user;
} ein_contract;

// A copy of elements of `size` bytes: 1, 2, 4, 8 or 16. Loops are merged; small steps of dst last.
typedef struct ein_copy {
  int n;
  const int64_t *extent, *src_stride, *dst_stride;
  int size;
  const char *src;
  char *dst;
} ein_copy;

// A provider's answer to "can you run this, and how fast?".
typedef struct ein_choice {
  double seconds;               // predicted for all of it on the threads asked for
  size_t scratch;               // bytes per thread, aligned to 64
  int64_t grid[3], unit[3];     // contract: into how many parts batch, m and n are cut between
                                //   threads, width at most in all, and at multiples of what
  char variant[24];             // how, for people
  int64_t state[40];            // the provider's own
} ein_choice;

// Ranges [from, to) of the linear indices of batch, m and n.
typedef struct ein_part {
  int64_t batch[2], m[2], n[2];
} ein_part;

// d[i] = op(a[i], b[i], c[i]) for i < n, n a multiple of 16, buffers padded to it.
typedef void (*ein_chunk_fn)(int64_t n, const void *a, const void *b, const void *c, void *d);

// What one core does, for choices between whole ways of computing; 0: not known.
typedef struct ein_rates {
  double flops_f64, flops_f32;  // per second
  double read_bw, copy_bw;      // bytes per second from memory; copy: read plus written
  double fast_bytes;            // of the cache a core has to itself
  double fused;                 // extent from which an index is gone along in blocks; 0: never
} ein_rates;

struct eini_nest;  // section mapreduce
// A provider of kernels. The plan functions are pure questions: 0 means no. All that is decided is
// in the choice: run functions, which are called from several threads at once, look at nothing that
// may change after planning. What they return but EIN_OK becomes the status of the execution, whose
// outputs are then undefined. Slots may be NULL. The struct outlives ctx and plans.
typedef struct ein_kernels {
  const char *name;
  void *user;
  int (*contract_plan)(void *user, const ein_contract *c, int width, ein_choice *choice);
  ein_status (*contract_run)(void *user, const ein_contract *c, const ein_choice *choice,
                             const ein_part *part, void *scratch);
  int (*copy_plan)(void *user, const ein_copy *c, int width, ein_choice *choice);
  ein_status (*copy_run)(void *user, const ein_copy *c, const ein_choice *choice, void *scratch);
  // Faster versions of chunk operations (numbers of section expr) and conversions; NULL: none.
  ein_chunk_fn (*chunk_fn)(void *user, int op, ein_dtype type);
  // Folds n values into *acc (numbers of section monoid: sum prod max min any all); NULL: none.
  void (*(*across_fn)(void *user, int fold, ein_dtype type))(int64_t n, const void *x, void *acc);
  // Makes the n values of a walk's row at out (NULL: 0), with `stream` past the caches, and perhaps
  // rows behind it, over which it moves the walk; 0: did nothing.
  int (*row_fn)(void *user, struct eini_nest *walk, int64_t n, void *out, int stream);
  // Copies bytes past the caches; chosen for outputs of more than stream_bytes. 0 bytes end what
  // was copied and made so: then all of it is visible to who sees a release store that follows.
  void (*stream_fn)(void *user, size_t bytes, const void *src, void *dst);
  size_t stream_bytes;
  ein_rates rates;
  // 1: honours ein_contract.ordered, and neither how chunks are cut nor where they lie changes a
  // value. Others are not asked in deterministic mode.
  int ordered;
} ein_kernels;

typedef struct ein_ctx_desc {
  ein_allocator allocator;              // default: EINSUM_MALLOC
  ein_logger logger;                    // default: silent
  ein_executor executor;                // default: the calling thread
  int nuse;                             // providers beside the portable one that backends put here
  const ein_kernels *use[8];            //   (ein_cpu_use, ..), preferred on a tie in this order
  int nkernels;                         // and after them any others; the array is copied
  const ein_kernels *const *kernels;
  double (*now_fn)(void *user);         // seconds; default: none, budgets count steps
  void *now_user;
  int cache_plans;                      // plans kept by ein_einsum; default 64; -1: none
} ein_ctx_desc;

// One mistake in a text or a call. Strings live in the ctx until its next planning call.
typedef struct ein_error {
  ein_status status;
  int line, column, width;  // 1-based, in code points of the whole line; line 0: no position
  int caret, mark;          // on a screen: columns of source before the mistake, and of the mistake
  const char *message;      // one line
  const char *source;       // the line of text, of a long one what is around the mistake, or ""
  const char *hint;         // one line, or ""
} ein_error;

// A user function over chunks: out[i] = f(in[0][i], .., in[nargs-1][i]), all of one dtype, one of
// i32 i64 f32 f64 c64 c128 (c64/c128 as pairs of reals), for i in [0, n). Must be pure and
// reentrant.
typedef struct ein_function {
  const char *name;
  int nargs;                // 1 .. 8
  ein_dtype dtype;          // arguments are converted to it; default f64
  void (*fn)(int64_t n, const void *const *in, void *out, void *user);
  void *user;
} ein_function;

// Joins a monoid distributes over (DESIGN: legal splits); an OR of these.
enum { EIN_JOIN_MUL = 1, EIN_JOIN_ADD = 2, EIN_JOIN_MAX = 4, EIN_JOIN_MIN = 8 };

// A user monoid: a commutative, associative fold over states of 1 to 4 scalars, in chunks.
typedef struct ein_monoid {
  const char *name;
  int nstate;               // 1 .. 4; state s of element i is ((T *)state[s])[i]
  ein_dtype dtype;          // of values, states and result: f32, f64, i32 or i64; default f64
  double identity[4];       // merging with it changes nothing
  int no_identity;          // 1: a fold of nothing is an error
  void (*lift_fn)(int64_t n, const void *x, void *const *state, void *user);  // NULL: state[0] = x
  void (*merge_fn)(int64_t n, void *const *acc, const void *const *more, void *user);
  void (*finish_fn)(int64_t n, const void *const *state, void *out, void *user);  // NULL: state[0]
  unsigned joins;           // EIN_JOIN_*: joins that distribute over it; 0: never split
  void *user;
} ein_monoid;

// Which elements of the output the statement does not define (repeated output labels: "i->ii").
typedef enum ein_rest {
  EIN_REST_ERROR = 0,
  EIN_REST_ZERO,
  EIN_REST_KEEP,
  EIN_REST_ACCUMULATE
} ein_rest;

#define EIN_ELLIPSIS (-1)   // in integer label lists

typedef struct ein_scalar {
  int set;                  // 0: not given
  double re, im;
} ein_scalar;

typedef enum ein_goal { EIN_GOAL_FLOPS = 0, EIN_GOAL_SIZE, EIN_GOAL_BYTES } ein_goal;

typedef struct ein_options {
  const char *path;         // auto (default), naive, none, optimal, dp, greedy, random, or a list
                            // of steps like "(0,2) (0,1)": see NUMPY STRINGS
  ein_goal goal;            // what the path minimises
  double path_seconds;      // budget, needs now_fn; 0: a fixed number of steps
  int64_t path_steps;       // budget in steps; 0: default
  uint64_t seed;            // of randomised searches
  int may_overlap;          // 1: outputs may overlap inputs; room for a copy is planned
  int deterministic;        // 1: the same bits for every number of threads and places, and whatever
                            //   was measured (manual: DETERMINISM); default 0
  int overflow_check;       // 1: an integer that does not fit is EIN_ERR_OVERFLOW, not wrapped
} ein_options;              //   (manual: DTYPES); default 0

// D = alpha * fold(map(operands)) + beta * C. All-zero fields are the defaults.
typedef struct ein_einsum_desc {
  const char *expr;         // "ij,jk->ik", or NULL when labels are given
  const int *const *labels; // labels[k][a]: label of axis a of operand k; labels[nin]: the output,
  const int *nlabels;       //   nlabels[k] of them; any ints >= 0, or EIN_ELLIPSIS; the output's
                            //   list may be NULL: implicit output
  int nin;
  const ein_ztensor *in;
  const ein_ztensor *out;
  const ein_ztensor *c;     // like out; default: out itself (only with beta)
  ein_scalar alpha, beta;   // default 1 and 0; with beta 0, C is never read
  const unsigned char *conj;// nin flags: operand k is conjugated
  const char *monoid;       // a fold of FUNCTIONS AND FOLDS or a registered one; default sum
  const char *map;          // expression over operands x0, x1, ..; default their product
  ein_rest rest;            // with repeated output labels
  ein_options options;
} ein_einsum_desc;

typedef struct ein_binding {
  const char *name;
  const ein_ztensor *view;  // shape and dtype; strides count when planning, data when executing
} ein_binding;

typedef enum ein_role { EIN_ROLE_TEMP = 0, EIN_ROLE_INPUT, EIN_ROLE_OUTPUT } ein_role;

typedef struct ein_tensor_info {
  const char *name;
  ein_role role;
  ein_dtype dtype;
  int rank;
  const int64_t *shape;
} ein_tensor_info;

typedef struct ein_param_info {
  const char *name;
  ein_dtype dtype;          // EIN_NONE: it takes the dtype it meets, as a literal does
  int has_default;
  ein_scalar value;         // its default
} ein_param_info;

// What one execution binds. All memory is the caller's; nothing is kept after the call.
typedef struct ein_run {
  const void *const *in;    // data pointers in the order of the plan's inputs
  void *const *out;         // and of its outputs
  const ein_scalar *param;  // in the order of the plan's params; NULL or not set: defaults
  void *workspace;          // ein_plan_workspace bytes, aligned to 64; NULL: allocated for the call
  size_t workspace_bytes;
  char *error;              // receives a message; may be NULL
  size_t error_bytes;
  double *seconds;          // receives the time of each task (ein_plan_info.ntask of them), by the
} ein_run;                  //   ctx's now_fn; may be NULL

typedef struct ein_plan_info {
  int nin, nout, nparam, ntask;
  size_t workspace_bytes;   // of one execution
  size_t plan_bytes;        // of the plan itself
  double flops;             // of the path, counted as opt_einsum's opt_cost
  double naive_flops;       // of one unsplit pass
  double largest;           // elements of the largest intermediate
  const char *method;       // how the path was found
  int proved;               // 1: the path is optimal; 2: among paths without outer products
  double seconds;           // predicted of one execution; 0: no provider says how fast it is
} ein_plan_info;

// ================================================================================================
// >>api  public functions: three levels
// Every fallible call returns an ein_status. With a ctx, the message is in ein_ctx_error.
// ================================================================================================

// ---- the context -------------------------------------------------------------------------------
// Creates a ctx; desc may be NULL. *ctx is NULL on failure. One ctx serves one thread at a time.
EIN_API ein_status ein_ctx_create(const ein_ctx_desc *desc, ein_ctx **ctx);
EIN_API void ein_ctx_destroy(ein_ctx *ctx);  // NULL is a no-op; frees cached plans

// Registers a function or monoid under its name (copied; fn and user are kept). The name must be a
// NAME of the language and new. Not while another thread uses the ctx.
EIN_API ein_status ein_ctx_function(ein_ctx *ctx, const ein_function *function);
EIN_API ein_status ein_ctx_monoid(ein_ctx *ctx, const ein_monoid *monoid);

// The mistakes of the last failed call: their number, each, and all of them as text with carets.
EIN_API int ein_ctx_errors(const ein_ctx *ctx);
EIN_API const ein_error *ein_ctx_error(const ein_ctx *ctx, int i);
EIN_API const char *ein_ctx_message(const ein_ctx *ctx);  // "" when there was none

EIN_API const char *ein_status_name(ein_status status);   // "EIN_ERR_SHAPE"
EIN_API const char *ein_status_text(ein_status status);
EIN_API const char *ein_version(void);

// ---- dtypes ------------------------------------------------------------------------------------
EIN_API size_t ein_dtype_size(ein_dtype dtype);           // bytes; 0 for no dtype
EIN_API const char *ein_dtype_name(ein_dtype dtype);      // "f32"
EIN_API ein_dtype ein_dtype_find(const char *name);       // EIN_NONE when unknown
EIN_API ein_dtype ein_dtype_promote(ein_dtype a, ein_dtype b);      // NumPy's result_type
EIN_API ein_dtype ein_dtype_compute(ein_dtype dtype);     // what kernels compute in
EIN_API int ein_dtype_same_kind(ein_dtype from, ein_dtype to);      // NumPy's same_kind cast

// ---- level 1: one call -------------------------------------------------------------------------
// out = einsum(expr, in[0..nin)). Semantics of numpy.einsum(..., optimize=False); out has the shape
// and dtype ein_einsum_out says (another same_kind dtype takes part in the promotion of sums and
// products, as numpy.einsum's out= does). out may overlap inputs. ctx may be NULL: no cache, no
// messages, portable kernels.
EIN_API ein_status ein_einsum(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                              const ein_ztensor *out);
// The same with every choice open.
EIN_API ein_status ein_einsum_ex(ein_ctx *ctx, const ein_einsum_desc *desc);
// dtype and rank of the result, and its shape in shape[0 .. min(rank, max_rank)). shape becomes
// out->shape. EIN_ERR_ARGUMENT when max_rank is too small (out->rank says what is needed).
EIN_API ein_status ein_einsum_out(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                                  ein_ztensor *out, int64_t *shape, int max_rank);
EIN_API ein_status ein_einsum_out_ex(ein_ctx *ctx, const ein_einsum_desc *desc, ein_ztensor *out,
                                     int64_t *shape, int max_rank);

// ---- level 2: plan once, execute often ---------------------------------------------------------
// Plans for shapes, strides and dtypes; data pointers are ignored. Inputs are in[0..nin), then c.
// Params are alpha and beta where given. *plan is NULL on failure; the plan outlives its ctx, but
// not the ctx's allocator, executor, and registered functions.
EIN_API ein_status ein_plan_create(ein_ctx *ctx, const ein_einsum_desc *desc, ein_plan **plan);
// Plans a graph. layout gives strides of inputs and outputs by name; default row-major.
EIN_API ein_status ein_plan_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                  const ein_binding *layout, const ein_options *options,
                                  ein_plan **plan);
EIN_API void ein_plan_destroy(ein_plan *plan);            // NULL is a no-op
// Reentrant; never allocates when run->workspace is given.
EIN_API ein_status ein_plan_execute(const ein_plan *plan, const ein_run *run);
EIN_API size_t ein_plan_workspace(const ein_plan *plan);  // bytes
EIN_API ein_status ein_plan_info_get(const ein_plan *plan, ein_plan_info *info);
// Input, output or param i of the plan; false (0) when there is none.
EIN_API int ein_plan_input(const ein_plan *plan, int i, ein_tensor_info *info);
EIN_API int ein_plan_output(const ein_plan *plan, int i, ein_tensor_info *info);
EIN_API int ein_plan_param(const ein_plan *plan, int i, ein_param_info *info);
// Text of the plan (for people) or one JSON object, into buf. Returns the length of the whole text
// without its NUL, as snprintf does.
EIN_API size_t ein_plan_explain(const ein_plan *plan, char *buf, size_t size);
EIN_API size_t ein_plan_json(const ein_plan *plan, char *buf, size_t size);
// The text with what a run took beside what was predicted: seconds as ein_run gave them.
EIN_API size_t ein_plan_explain_run(const ein_plan *plan, const double *seconds, char *buf,
                                    size_t size);

// ---- level 3: graphs, made with einsum_program.h ------------------------------------------------
EIN_API void ein_graph_destroy(ein_graph *graph);         // NULL is a no-op
// The graph that deterministic mode runs: products split in a contraction order, long folds with
// few results as folds of leaves. What is planned from it, for any number of threads and places,
// gives the same bits; no index is cut that would change them. Inputs, outputs and params are those
// of `graph`, which it does not need any more. Of options path, goal, path_steps and seed count;
// may be NULL. EIN_ERR_UNSUPPORTED: the ctx has kernels, and none that folds in order.
EIN_API ein_status ein_graph_deterministic(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_options *options, ein_graph **ordered);
EIN_API int ein_graph_tensors(const ein_graph *graph);
EIN_API int ein_graph_tensor(const ein_graph *graph, int i, ein_tensor_info *info);
EIN_API int ein_graph_params(const ein_graph *graph);
EIN_API int ein_graph_param(const ein_graph *graph, int i, ein_param_info *info);

// ---- views: no copies --------------------------------------------------------------------------
// Each writes *view, with shape and strides in dims (2 * rank of the result, caller's memory, which
// must outlive the view). view may be t itself when dims is fresh memory. Errors:
// EIN_ERR_ARGUMENT for axes and steps, EIN_ERR_BOUNDS for ranges, EIN_ERR_SHAPE for extents.
EIN_API ein_status ein_view_permute(const ein_ztensor *t, const int *axes, ein_ztensor *view,
                                    int64_t *dims);
EIN_API ein_status ein_view_reverse(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims);
// Elements start, start+step, .. before stop (after stop for a negative step; stop -1 then means
// through element 0).
EIN_API ein_status ein_view_slice(const ein_ztensor *t, int axis, int64_t start, int64_t stop,
                                  int64_t step, ein_ztensor *view, int64_t *dims);
EIN_API ein_status ein_view_select(const ein_ztensor *t, int axis, int64_t index,
                                   ein_ztensor *view, int64_t *dims);
EIN_API ein_status ein_view_squeeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims);
EIN_API ein_status ein_view_unsqueeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                      int64_t *dims);
// NumPy's broadcast_to: new axes in front, extent-1 axes repeated by stride 0.
EIN_API ein_status ein_view_broadcast(const ein_ztensor *t, int rank, const int64_t *shape,
                                      ein_ztensor *view, int64_t *dims);
// The diagonal of two axes of equal extent: axis b goes, axis a becomes the diagonal.
EIN_API ein_status ein_view_diagonal(const ein_ztensor *t, int a, int b, ein_ztensor *view,
                                     int64_t *dims);
// Proves that every element of the view lies in its buffer (when buffer_bytes is given), and that
// ranks, extents and strides are sane.
EIN_API ein_status ein_view_check(const ein_ztensor *t);
EIN_API void *ein_view_at(const ein_ztensor *t, const int64_t *coord);  // NULL when outside
EIN_API int64_t ein_view_count(const ein_ztensor *t);     // elements; -1 when it overflows

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_H

// ================================================================================================
// >>implementation  everything below is compiled once
// Takes the declarations above; gives their definitions.
// ================================================================================================
#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE)
#define EINSUM_IMPLEMENTATION_DONE

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>  // snprintf into buffers of our own; nothing is ever printed
#include <string.h>

#ifndef EINSUM_MALLOC
#include <stdlib.h>
#define EINSUM_MALLOC(size) malloc(size)
#define EINSUM_FREE(ptr) free(ptr)
#endif

#ifndef EINSUM_ASSERT
#define EINSUM_ASSERT(cond) ((void)0)
#endif

#if defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER)
#define EINI_RESTRICT __restrict
#else
#define EINI_RESTRICT
#endif

#if defined(__GNUC__) || defined(__clang__)
#define EINI_UNUSED __attribute__((unused))
#define EINI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define EINI_CTZ(x) __builtin_ctzll(x)
#define EINI_AHEAD(p) __builtin_prefetch((const void *)(p), 0, 0)
#else
#define EINI_UNUSED
#define EINI_PRINTF(f, a)
#define EINI_CTZ(x) eini_ctz(x)
#define EINI_AHEAD(p) ((void)(p))
#endif

// ================================================================================================
// >>util  checked arithmetic, arena, growable arrays, hashing
// Invariant: no size is ever computed without an overflow check; all planner memory is in arenas.
// ================================================================================================

// Return the status of a failed call to the caller. The only macro that changes control flow.
#define EINI_TRY(expr)                          \
  do {                                          \
    ein_status eini_try_status = (expr);        \
    if (eini_try_status != EIN_OK) return eini_try_status; \
  } while (0)

// *r = a*b (a+b); 1 when that does not fit, and then *r stays as it is.
#if defined(__GNUC__) || defined(__clang__)
static int eini_mul_overflow(int64_t a, int64_t b, int64_t *r) {
  int64_t t;
  if (__builtin_mul_overflow(a, b, &t)) return 1;
  *r = t;
  return 0;
}
static int eini_add_overflow(int64_t a, int64_t b, int64_t *r) {
  int64_t t;
  if (__builtin_add_overflow(a, b, &t)) return 1;
  *r = t;
  return 0;
}
#else  // neither gcc nor clang
static int eini_ctz(uint64_t x) {
  int n = 0;
  while (((x >> n) & 1u) == 0) n++;
  return n;
}
static int eini_mul_overflow(int64_t a, int64_t b, int64_t *r) {
  if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
            : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a)) {
    return 1;
  }
  *r = a * b;
  return 0;
}
static int eini_add_overflow(int64_t a, int64_t b, int64_t *r) {
  if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 1;
  *r = a + b;
  return 0;
}
#endif  // gcc or clang

static int64_t eini_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }
static int64_t eini_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t eini_max64(int64_t a, int64_t b) { return a > b ? a : b; }
// The absolute value; of INT64_MIN the largest there is.
static int64_t eini_abs64(int64_t x) { return x >= 0 ? x : x == INT64_MIN ? INT64_MAX : -x; }

// r = a*b + c, or 1 when it does not fit.
EINI_UNUSED static int eini_muladd_overflow(int64_t a, int64_t b, int64_t c, int64_t *r) {
  int64_t t;
  return eini_mul_overflow(a, b, &t) || eini_add_overflow(t, c, r);
}

// Arena: one owner, freed at once. Blocks grow so that a plan is a handful of allocations;
// memory comes zeroed, so that a struct's all-zero state is its default state.
typedef struct eini_block {
  struct eini_block *next;
  size_t size, used;  // bytes, this header included
} eini_block;

typedef struct eini_arena {
  ein_allocator al;
  eini_block *head;
  size_t next_size, total;
  int64_t cells;  // coefficients of maps in it
} eini_arena;

#define EINI_ALIGN 64u
#define EINI_NEW(arena, T, n) ((T *)eini_new((arena), (int64_t)(n), sizeof(T)))

static void *eini_default_alloc(size_t size, size_t align, void *user) {
  // Over-allocate and keep the original pointer just below the aligned one.
  (void)user;
  if (size > SIZE_MAX - align - sizeof(void *)) return NULL;
  char *raw = (char *)EINSUM_MALLOC(size + align + sizeof(void *));
  if (raw == NULL) return NULL;
  uintptr_t p = ((uintptr_t)raw + sizeof(void *) + align - 1) / align * align;
  memcpy((void *)(p - sizeof(void *)), &raw, sizeof raw);
  return (void *)p;
}

static void eini_default_free(void *ptr, size_t size, void *user) {
  (void)size;
  (void)user;
  if (ptr == NULL) return;
  void *raw;
  memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  EINSUM_FREE(raw);
}

static void eini_arena_init(eini_arena *a, const ein_allocator *al) {
  memset(a, 0, sizeof *a);
  if (al != NULL && al->alloc_fn != NULL) {
    a->al = *al;
  } else {
    a->al.alloc_fn = eini_default_alloc;
    a->al.free_fn = eini_default_free;
  }
  a->next_size = 8192;
}

static void eini_arena_free(eini_arena *a) {
  eini_block *b = a->head;
  while (b != NULL) {
    eini_block *next = b->next;
    a->al.free_fn(b, b->size, a->al.user);
    b = next;
  }
  a->head = NULL;
  a->total = 0;
}

// Where an arena stands. What was allocated since is freed by eini_arena_rollback.
typedef struct eini_arena_at {
  eini_block *head;
  size_t used, next_size;
  int64_t cells;
} eini_arena_at;

static eini_arena_at eini_arena_mark(const eini_arena *a) {
  eini_arena_at m;
  m.head = a->head;
  m.used = a->head == NULL ? 0 : a->head->used;
  m.next_size = a->next_size;
  m.cells = a->cells;
  return m;
}

static void eini_arena_rollback(eini_arena *a, const eini_arena_at *m) {
  while (a->head != m->head) {
    eini_block *b = a->head;
    a->head = b->next;
    a->total -= b->size;
    a->al.free_fn(b, b->size, a->al.user);
  }
  if (a->head != NULL) a->head->used = m->used;
  a->next_size = m->next_size;
  a->cells = m->cells;
}

// count*size zeroed bytes, aligned to 16 (to 64 from 1 KiB on); NULL when out of memory or when
// the size overflows. count 0 gives a valid pointer.
static void *eini_new(eini_arena *a, int64_t count, size_t size) {
  if (count < 0 || (size != 0 && (uint64_t)count > (SIZE_MAX / 4) / size)) return NULL;
  size_t bytes = (size_t)count * size;
  size_t align = bytes >= 1024 ? EINI_ALIGN : 16;
  size_t at = 0;
  if (a->head != NULL) at = (a->head->used + align - 1) & ~(align - 1);
  if (a->head == NULL || at > a->head->size || bytes > a->head->size - at) {
    size_t head = EINI_ALIGN;  // the block header, padded so that its data is aligned
    size_t need = bytes + head;
    size_t want = need > a->next_size ? need : a->next_size;
    eini_block *b = (eini_block *)a->al.alloc_fn(want, EINI_ALIGN, a->al.user);
    if (b == NULL) return NULL;
    b->next = a->head;
    b->size = want;
    b->used = at = head;
    a->head = b;
    a->total += want;
    if (a->next_size < ((size_t)1 << 20)) a->next_size *= 2;
  }
  void *p = (char *)a->head + at;
  a->head->used = at + bytes;
  memset(p, 0, bytes);
  return p;
}

// Make room for one more element in an arena array of *cap elements, len of them used.
// Returns the (possibly moved) array, NULL when out of memory (the old array stays valid).
EINI_UNUSED static void *eini_grow(eini_arena *a, void *old, int64_t len, int64_t *cap,
                                   size_t size) {
  if (len < *cap) return old;
  int64_t want = *cap < 8 ? 8 : *cap * 2;
  void *p = eini_new(a, want, size);
  if (p == NULL) return NULL;
  if (len > 0) memcpy(p, old, (size_t)len * size);
  *cap = want;
  return p;
}

EINI_UNUSED static char *eini_strndup(eini_arena *a, const char *s, int64_t n) {
  char *p = EINI_NEW(a, char, n + 1);
  if (p != NULL && n > 0) memcpy(p, s, (size_t)n);
  return p;
}

// FNV-1a over 8-byte words; only for hash tables, never stored.
EINI_UNUSED static uint64_t eini_hash(const void *data, size_t n, uint64_t h) {
  const unsigned char *p = (const unsigned char *)data;
  h ^= 0xcbf29ce484222325u;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    h = (h ^ w) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  for (; n > 0; n--, p++) h = (h ^ *p) * 0x100000001b3u;
  return h ^ (h >> 32);
}

// ================================================================================================
// >>error  mistakes and their messages
// Takes positions in a text; gives ein_error records with line, column, caret and hint.
// ================================================================================================

#define EINI_ERRORS_MAX 64
#define EINI_ERROR_TEXT 16384

static const char *const eini_status_text[] = {
#define EINI_STATUS_TEXT(id, text) text,
    EIN_STATUS_LIST(EINI_STATUS_TEXT)
#undef EINI_STATUS_TEXT
};

static const char *const eini_status_id[] = {
#define EINI_STATUS_ID(id, text) #id,
    EIN_STATUS_LIST(EINI_STATUS_ID)
#undef EINI_STATUS_ID
};

// Collects mistakes. With error NULL (no ctx) only the first status is kept. text is the source
// the positions refer to; max limits the number of records of one pass.
typedef struct eini_diag {
  ein_error *error;  // EINI_ERRORS_MAX records, or NULL
  char *buf;         // EINI_ERROR_TEXT bytes: strings of the records, then the whole message
  size_t used;
  int count, max;
  ein_status status; // the first mistake's
  char where[96];    // stands before every message, or ""
  const char *text;
  int64_t length;
} eini_diag;

static void eini_diag_reset(eini_diag *d, const char *text, int64_t length) {
  d->used = 0;
  d->count = 0;
  d->max = 1;
  d->status = EIN_OK;
  d->where[0] = 0;
  d->text = text;
  d->length = length;
}

// From here on positions are those of another text.
static void eini_diag_text(eini_diag *d, const char *text, int64_t length) {
  if (d == NULL) return;
  d->text = text;
  d->length = length;
}

// Copies into the message buffer, cut at its end between code points; never fails.
static const char *eini_diag_str(eini_diag *d, const char *s, size_t n) {
  size_t room = EINI_ERROR_TEXT / 2 - d->used;
  if (room <= 1) return "";
  if (n > room - 1) {
    n = room - 1;
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80) n--;
  }
  char *p = d->buf + d->used;
  // A tab would move the caret under the line, a newline would break it.
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)s[i] < 32 ? ' ' : s[i];
  p[n] = 0;
  d->used += n + 1;
  return p;
}

static int64_t eini_count_points(const char *s, int64_t n) {
  int64_t points = 0;
  for (int64_t i = 0; i < n; i++) points += ((unsigned char)s[i] & 0xC0) != 0x80;
  return points;
}

// The code point at s, n bytes at most, and its length; -1, of one byte, where it is not UTF-8.
static int64_t eini_utf8(const char *s, int64_t n, int64_t *used) {
  unsigned char c = (unsigned char)s[0];
  *used = 1;
  if (c < 0x80) return c;
  int len = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
  if (len == 0 || len > n) return -1;
  int64_t v = c & (0xFF >> (len + 1));
  for (int i = 1; i < len; i++) {
    if (((unsigned char)s[i] & 0xC0) != 0x80) return -1;
    v = v << 6 | ((unsigned char)s[i] & 0x3F);
  }
  if ((len == 3 && v < 0x800) || (len == 4 && v < 0x10000) || v > 0x10FFFF ||
      (v >= 0xD800 && v <= 0xDFFF)) {
    return -1;
  }
  *used = len;
  return v;
}

// Code points that Unicode never gives a meaning; XML does not take them.
static int eini_noncharacter(int64_t c) {
  return (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

// A letter, as names and labels know them.
static int eini_is_label(int64_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= 0xA1 && !eini_noncharacter(c));
}

// Columns that a code point takes on a screen: marks 0, East Asian wide ones and emoji 2.
static int eini_screen_width(int64_t c) {
  static const int ranges[][3] = {
      {0x300, 0x36F, 0}, {0x483, 0x489, 0}, {0x591, 0x5BD, 0}, {0x610, 0x61A, 0},
      {0x64B, 0x65F, 0}, {0x6D6, 0x6DC, 0}, {0x1100, 0x115F, 2}, {0x1AB0, 0x1AFF, 0},
      {0x1DC0, 0x1DFF, 0}, {0x200B, 0x200F, 0}, {0x20D0, 0x20FF, 0}, {0x2E80, 0x303E, 2},
      {0x3041, 0x33FF, 2}, {0x3400, 0x4DBF, 2}, {0x4E00, 0x9FFF, 2}, {0xA000, 0xA4CF, 2},
      {0xA960, 0xA97F, 2}, {0xAC00, 0xD7A3, 2}, {0xF900, 0xFAFF, 2}, {0xFE00, 0xFE0F, 0},
      {0xFE20, 0xFE2F, 0}, {0xFE30, 0xFE6F, 2}, {0xFEFF, 0xFEFF, 0}, {0xFF00, 0xFF60, 2},
      {0xFFE0, 0xFFE6, 2}, {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2}, {0x1F900, 0x1FAFF, 2},
      {0x20000, 0x3FFFD, 2}, {0xE0100, 0xE01EF, 0}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (c >= ranges[i][0] && c <= ranges[i][1]) return ranges[i][2];
  return 1;
}

static int64_t eini_screen_columns(const char *s, int64_t n) {
  int64_t columns = 0, used;
  for (int64_t i = 0; i < n; i += used)
    columns += eini_screen_width(eini_utf8(s + i, n - i, &used));
  return columns;
}

// Line, column and the excerpt of the source around byte pos.
static void eini_diag_place(eini_diag *d, ein_error *e, int64_t pos, int64_t width) {
  const char *s = d->text;
  int64_t start = d->length >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, line = 1;
  if (pos > d->length) pos = d->length;
  if (pos < start) pos = start;
  for (int64_t i = 0; i < pos; i++) {
    if (s[i] == '\n') {
      line++;
      start = i + 1;
    }
  }
  int64_t end = pos;
  while (end < d->length && s[end] != '\n' && s[end] != '\r') end++;
  if (width > end - pos) width = end - pos;
  e->line = line > INT_MAX ? INT_MAX : (int)line;
  e->column = (int)eini_min64(eini_count_points(s + start, pos - start) + 1, INT_MAX);
  // A very long line is shown around the mistake only, so that the caret stays in sight.
  int64_t from = eini_max64(start, pos - 160);
  while (from < pos && from > start && ((unsigned char)s[from] & 0xC0) == 0x80) from++;
  if (end - from > 240) {
    end = from + 240;
    while (end > pos && ((unsigned char)s[end] & 0xC0) == 0x80) end--;
  }
  if (width > end - pos) width = end - pos;
  e->width = (int)eini_max64(width < 1 ? 1 : eini_count_points(s + pos, width), 1);
  e->caret = (int)eini_screen_columns(s + from, pos - from);
  e->mark = (int)eini_max64(width < 1 ? 1 : eini_screen_columns(s + pos, width), 1);
  e->source = eini_diag_str(d, s + from, (size_t)(end - from));
}

// Records a mistake at bytes [pos, pos+width) of the text (pos -1: none) and returns status.
static ein_status eini_vfail(eini_diag *d, ein_status status, int64_t pos, int64_t width,
                             const char *hint, const char *format, va_list args) {
  if (d == NULL) return status;
  if (d->status == EIN_OK) d->status = status;
  if (d->error == NULL || d->count >= d->max || d->count >= EINI_ERRORS_MAX) return status;
  char line[512];
  int from = snprintf(line, sizeof line, "%s", d->where);
  int n = vsnprintf(line + from, sizeof line - (size_t)from, format, args);
  n = n < 0 ? from : n + from;
  if ((size_t)n >= sizeof line) n = (int)sizeof line - 1;
  for (int i = 0; i < n; i++) {
    if ((unsigned char)line[i] < 32) line[i] = '?';  // names from hostile texts stay one line
  }
  ein_error *e = &d->error[d->count++];
  memset(e, 0, sizeof *e);
  e->status = status;
  e->message = eini_diag_str(d, line, (size_t)n);
  e->source = e->hint = "";
  if (pos >= 0 && d->text != NULL) eini_diag_place(d, e, pos, width);
  if (hint != NULL) e->hint = eini_diag_str(d, hint, strlen(hint));
  return status;
}

EINI_PRINTF(6, 7)
static ein_status eini_fail(eini_diag *d, ein_status status, int64_t pos, int64_t width,
                            const char *hint, const char *format, ...) {
  va_list args;
  va_start(args, format);
  eini_vfail(d, status, pos, width, hint, format, args);
  va_end(args);
  return status;
}

// All records as text, in the second half of the buffer.
static const char *eini_diag_message(const eini_diag *d) {
  char *out = d->buf + EINI_ERROR_TEXT / 2;
  size_t room = EINI_ERROR_TEXT / 2, at = 0;
  out[0] = 0;
  for (int i = 0; i < d->count && at < room; i++) {
    const ein_error *e = &d->error[i];
    int n = e->line > 0 ? snprintf(out + at, room - at, "%s%d:%d: %s", i ? "\n" : "", e->line,
                                   e->column, e->message)
                        : snprintf(out + at, room - at, "%s%s", i ? "\n" : "", e->message);
    at += n > 0 ? (size_t)n : 0;
    if (e->line > 0 && e->source[0] && at < room) {
      n = snprintf(out + at, room - at, "\n  %s\n  %*s", e->source, e->caret, "");
      at += n > 0 ? (size_t)n : 0;
      for (int k = 0; k < e->mark && at + 1 < room; k++) out[at++] = '^';
      if (at < room) out[at] = 0;
    }
    if (e->hint[0] && at < room) {
      n = snprintf(out + at, room - at, "\n  hint: %s", e->hint);
      at += n > 0 ? (size_t)n : 0;
    }
  }
  return out;
}

EIN_API const char *ein_status_name(ein_status s) {
  return (int)s >= 0 && s < EIN_STATUS_COUNT ? eini_status_id[s] : "unknown status";
}

EIN_API const char *ein_status_text(ein_status s) {
  return (int)s >= 0 && s < EIN_STATUS_COUNT ? eini_status_text[s] : "unknown status";
}

EIN_API const char *ein_version(void) { return EINSUM_VERSION; }

// ================================================================================================
// >>dtype  sizes, names, promotion, conversion
// Takes storage dtypes; gives the dtype kernels compute in. f16/bf16 compute in f32, i8/i16/u8 in
// i32; bool is one byte, 0 or 1.
// ================================================================================================

typedef enum eini_kind { EINI_KBOOL, EINI_KUINT, EINI_KINT, EINI_KREAL, EINI_KCOMPLEX } eini_kind;

typedef struct eini_dtype_row {
  const char *name;
  unsigned char size, kind, compute;
} eini_dtype_row;

static const eini_dtype_row eini_dtypes[EIN_DTYPE_COUNT] = {
    {"none", 0, EINI_KBOOL, EIN_NONE},  {"bool", 1, EINI_KBOOL, EIN_BOOL},
    {"u8", 1, EINI_KUINT, EIN_I32},     {"i8", 1, EINI_KINT, EIN_I32},
    {"i16", 2, EINI_KINT, EIN_I32},     {"i32", 4, EINI_KINT, EIN_I32},
    {"i64", 8, EINI_KINT, EIN_I64},     {"f16", 2, EINI_KREAL, EIN_F32},
    {"bf16", 2, EINI_KREAL, EIN_F32},   {"f32", 4, EINI_KREAL, EIN_F32},
    {"f64", 8, EINI_KREAL, EIN_F64},    {"c64", 8, EINI_KCOMPLEX, EIN_C64},
    {"c128", 16, EINI_KCOMPLEX, EIN_C128}};

static int eini_dtype_ok(ein_dtype t) { return (int)t > EIN_NONE && t < EIN_DTYPE_COUNT; }
static int eini_kind_of(ein_dtype t) { return eini_dtypes[t].kind; }

EIN_API size_t ein_dtype_size(ein_dtype t) { return eini_dtype_ok(t) ? eini_dtypes[t].size : 0; }
EIN_API const char *ein_dtype_name(ein_dtype t) {
  return eini_dtypes[eini_dtype_ok(t) ? (int)t : 0].name;
}
EIN_API ein_dtype ein_dtype_compute(ein_dtype t) {
  return (ein_dtype)eini_dtypes[eini_dtype_ok(t) ? (int)t : 0].compute;
}

EIN_API ein_dtype ein_dtype_find(const char *name) {
  if (name == NULL) return EIN_NONE;
  for (int t = 1; t < EIN_DTYPE_COUNT; t++)
    if (strcmp(eini_dtypes[t].name, name) == 0) return (ein_dtype)t;
  return EIN_NONE;
}

// The smallest real float that holds every value of an integer dtype, as NumPy decides it.
static ein_dtype eini_float_for(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: case EIN_U8: case EIN_I8: return EIN_F16;
    case EIN_I16: return EIN_F32;
    case EIN_I32: case EIN_I64: return EIN_F64;
    default: return t;
  }
}

EIN_API ein_dtype ein_dtype_promote(ein_dtype a, ein_dtype b) {
  if (!eini_dtype_ok(a)) return b;
  if (!eini_dtype_ok(b) || a == b) return a;
  if (a > b) {
    ein_dtype t = a;
    a = b;
    b = t;
  }
  if (a == EIN_BOOL) return b;
  int kb = eini_kind_of(b);
  if (kb == EINI_KINT) return a == EIN_U8 && b == EIN_I8 ? EIN_I16 : b;
  if (kb == EINI_KREAL) {
    ein_dtype a0 = a;
    if (eini_kind_of(a) < EINI_KREAL) a = eini_float_for(a);
    // bf16 is not NumPy's: with 8-bit integers it stays, with f16 neither holds the other.
    if (b == EIN_BF16) return a0 == EIN_F16 || a == EIN_F32 ? EIN_F32 : a == EIN_F64 ? EIN_F64 : b;
    return a > b ? a : b;
  }
  if (eini_kind_of(a) == EINI_KCOMPLEX) return b;
  return eini_float_for(a) == EIN_F64 ? EIN_C128 : b;
}

// NumPy's 'same_kind': a safe cast, or one within the kind (bool < integer < real < complex).
EIN_API int ein_dtype_same_kind(ein_dtype from, ein_dtype to) {
  if (!eini_dtype_ok(from) || !eini_dtype_ok(to)) return 0;
  if (from == to) return 1;
  int kf = eini_kind_of(from), kt = eini_kind_of(to);
  if (kt == EINI_KUINT && kf == EINI_KINT) return 0;
  return kf <= kt;
}

static float eini_f32_from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static uint32_t eini_f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static float eini_f16_load(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, m = h & 0x7fffu;
  // Shifting the exponent into place and scaling by 2^112 also normalises subnormals.
  float scaled = eini_f32_from_bits(m << 13) * 5.192296858534828e33f;
  uint32_t bits = m >= 0x7c00u ? (m << 13) | 0x7f800000u : eini_f32_bits(scaled);
  return eini_f32_from_bits(bits | sign);
}

// Round to nearest, ties to even.
static uint16_t eini_f16_store(float f) {
  uint32_t u = eini_f32_bits(f), sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  uint32_t r;
  if (u > 0x7f800000u) {
    r = 0x7e00u | ((u >> 13) & 0x3ffu);
  } else if (u >= 0x477ff000u) {  // 65520 and above round to infinity
    r = 0x7c00u;
  } else if (u < 0x38800000u) {   // below 2^-14: adding 0.5 aligns the subnormal's last bit
    r = eini_f32_bits(eini_f32_from_bits(u) + 0.5f) - 0x3f000000u;
  } else {
    r = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13;
  }
  return (uint16_t)(r | sign);
}

// f64 to f16 and bf16 rounds once: the f32 step keeps a sticky bit (round to odd).
static float eini_round_odd(double d) {
  float f = (float)d;
  if ((double)f == d || d != d || f - f != 0.0f) return f;
  uint32_t u = eini_f32_bits(f);
  if (fabs((double)f) > fabs(d)) u--;
  return eini_f32_from_bits(u | 1u);
}

static float eini_bf16_load(uint16_t h) { return eini_f32_from_bits((uint32_t)h << 16); }

static uint16_t eini_bf16_store(float f) {
  uint32_t u = eini_f32_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// Float to integer without undefined behaviour: NaN gives 0, out of range saturates.
static int64_t eini_f64_to_i64(double x) {
  if (!(x > -9223372036854775808.0)) return x != x ? 0 : INT64_MIN;
  return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}

// Can a dtype hold a value: an integer exactly, a real one without becoming infinite?
static int eini_dtype_holds(ein_dtype t, double x) {
  int kind = eini_kind_of(t), bits = 8 * (int)ein_dtype_size(t);
  if (kind == EINI_KBOOL) return x == 0 || x == 1;
  if (kind <= EINI_KINT) {
    double most = ldexp(1, kind == EINI_KUINT ? bits : bits - 1);
    return x < most && x >= (kind == EINI_KUINT ? 0 : -most) && floor(x) == x;
  }
  double most = t == EIN_F16 ? 65520.0 : t == EIN_BF16 ? ldexp(511, 119) :
                t == EIN_F32 || t == EIN_C64 ? ldexp(33554431, 103) : INFINITY;
  return !(fabs(x) >= most) || x - x != 0;
}

// ================================================================================================
// >>zspace  images of affine maps
// Takes maps and boxes of an index space; gives what they select. Invariant: nothing wraps.
// ================================================================================================

// Whether out lacks the arrays for a result of this rank (its own rank is ignored).
static int eini_zrange_no_room(const ein_zrange *out, int rank) {
  return out == NULL || (rank > 0 && (out->start == NULL || out->end == NULL));
}

static int eini_zrange_empty(int rank, const int64_t *start, const int64_t *end) {
  for (int i = 0; i < rank; i++)
    if (end[i] <= start[i]) return 1;
  return 0;
}

// Maps: y and x never share memory, since every row reads all of x.
static int eini_zmap_bad(const ein_zmap *m) {
  return m == NULL || m->rows < 0 || m->cols < 0 || (m->rows > 0 && m->offset == NULL) ||
         (m->rows > 0 && m->cols > 0 && m->coef == NULL);
}

// Exact minimum and maximum of offset + sum(coef[i] * x[i]) for start[i] <= x[i] < end[i]; start
// NULL: from 0, end NULL: the one point start. Each term takes its corner by the sign of coef: the
// two extreme corners of x would be wrong for i-j. Fails also when only a partial sum wraps.
static ein_status eini_zmap_row(const int64_t *coef, int cols, int64_t offset,
                                const int64_t *start, const int64_t *end, int64_t *lo,
                                int64_t *hi) {
  *lo = *hi = offset;
  for (int i = 0; i < cols; i++) {
    int64_t first = start != NULL ? start[i] : 0, last = end != NULL ? end[i] - 1 : first, a, b;
    if (eini_mul_overflow(coef[i], first, &a) || eini_mul_overflow(coef[i], last, &b) ||
        eini_add_overflow(*lo, eini_min64(a, b), lo) ||
        eini_add_overflow(*hi, eini_max64(a, b), hi)) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  return EIN_OK;
}

// The same for 0 <= x[i] < extent[i], where all extents are >= 1.
static ein_status eini_zmap_row_range(const int64_t *coef, int cols, int64_t offset,
                                      const int64_t *extent, int64_t *lo, int64_t *hi) {
  return eini_zmap_row(coef, cols, offset, NULL, extent, lo, hi);
}

// What the points select together. No points, or an empty block, give empty rows.
EINI_UNUSED static ein_status eini_zmap_image(const ein_zmap *m, int rank, const int64_t *start,
                                              const int64_t *end, ein_zrange *y) {
  if (eini_zmap_bad(m) || eini_zrange_no_room(y, m->rows)) return EIN_ERR_ARGUMENT;
  if (rank != m->cols) return EIN_ERR_SHAPE;
  int empty = end != NULL && eini_zrange_empty(rank, start, end);
  for (int r = 0; r < m->rows; r++) {
    int64_t lo = m->offset[r], hi = lo, block = m->block != NULL ? m->block[r] : 1;
    if (block < 0) return EIN_ERR_SHAPE;
    const int64_t *coef = m->cols > 0 ? m->coef + (ptrdiff_t)r * m->cols : NULL;
    if (!empty) EINI_TRY(eini_zmap_row(coef, m->cols, lo, start, end, &lo, &hi));
    if (empty || block == 0) hi = lo;
    else if (eini_add_overflow(hi, block, &hi)) return EIN_ERR_TOO_LARGE;
    y->start[r] = lo;
    y->end[r] = hi;
  }
  y->rank = m->rows;
  return EIN_OK;
}

// ================================================================================================
// >>ztensor  views: shape and strides over the caller's memory
// Takes valid views; gives views of the same elements, never copies. Invariant: a view without
// elements touches nothing, so its strides are never looked at and its data pointer never moves.
// ================================================================================================

// Product of the extents; 0 when any is 0, even if the others alone would not fit.
static ein_status eini_view_elements(int rank, const int64_t *shape, int64_t *count) {
  int64_t n = 1;
  int wraps = 0;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) return EIN_ERR_SHAPE;
    if (shape[i] == 0) n = 0;
    if (n > 0 && eini_mul_overflow(n, shape[i], &n)) wraps = 1;
  }
  *count = n;
  return n > 0 && wraps ? EIN_ERR_TOO_LARGE : EIN_OK;
}

EIN_API int64_t ein_view_count(const ein_ztensor *t) {
  int64_t count;
  if (t == NULL || t->rank < 0 || (t->rank > 0 && t->shape == NULL)) return -1;
  return eini_view_elements(t->rank, t->shape, &count) == EIN_OK ? count : -1;
}

// Stride of an axis in elements. Row-major strides that do not fit occur only in views without
// elements and are given as 0.
static int64_t eini_stride(const ein_ztensor *t, int axis) {
  if (t->strides != NULL) return t->strides[axis];
  int64_t stride = 1;
  for (int i = t->rank - 1; i > axis; i--)
    if (eini_mul_overflow(stride, t->shape[i], &stride)) return 0;
  return stride;
}

// Lowest and highest element offset from data; 0 and -1 without elements. Offsets and the span
// fit in bytes, too.
static ein_status eini_view_extent(const ein_ztensor *t, int64_t *lo, int64_t *hi) {
  int64_t count, first, last, size = (int64_t)ein_dtype_size(t->dtype);
  EINI_TRY(eini_view_elements(t->rank, t->shape, &count));
  *lo = 0;
  *hi = count - 1;
  if (count == 0) return EIN_OK;
  if (t->strides) EINI_TRY(eini_zmap_row_range(t->strides, t->rank, 0, t->shape, lo, hi));
  if (eini_mul_overflow(*lo, size, &first) || eini_muladd_overflow(*hi, size, size, &last) ||
      (uint64_t)last - (uint64_t)first > (uint64_t)PTRDIFF_MAX) {
    return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

// Whether elements lo .. hi of the view lie in its buffer. Addresses are compared as integers,
// since data may point anywhere.
static int eini_view_inside(const ein_ztensor *t, int64_t lo, int64_t hi) {
  uint64_t data = (uint64_t)(uintptr_t)t->data, base = (uint64_t)(uintptr_t)t->buffer;
  uint64_t size = (uint64_t)ein_dtype_size(t->dtype);
  uint64_t below = (uint64_t)0 - (uint64_t)lo * size;       // bytes before data
  uint64_t above = ((uint64_t)hi + 1) * size;               // bytes from data on
  if (data < base || data - base > (uint64_t)t->buffer_bytes) return 0;
  return below <= data - base && above <= (uint64_t)t->buffer_bytes - (data - base);
}

// Without data (planning) the buffer is not looked at.
static ein_status eini_view_validate(const ein_ztensor *t) {
  int64_t lo, hi;
  if (t == NULL || t->rank < 0 || (t->rank > 0 && t->shape == NULL)) return EIN_ERR_ARGUMENT;
  if (t->buffer == NULL && t->buffer_bytes > 0) return EIN_ERR_ARGUMENT;
  if (ein_dtype_size(t->dtype) == 0) return EIN_ERR_DTYPE;
  if (t->space != 0) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_view_extent(t, &lo, &hi));
  if (lo <= hi && t->data != NULL && t->buffer_bytes > 0 && !eini_view_inside(t, lo, hi))
    return EIN_ERR_BOUNDS;
  return EIN_OK;
}

// Arguments of a view function about an axis, whose result has rank t->rank + more.
static ein_status eini_view_begin(const ein_ztensor *t, int axis, int more,
                                  const ein_ztensor *view, const int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  if (more > 0 && t->rank == INT_MAX) return EIN_ERR_TOO_LARGE;
  if (axis < 0 || axis >= t->rank + (more > 0)) return EIN_ERR_ARGUMENT;
  return view == NULL || (dims == NULL && t->rank + more > 0) ? EIN_ERR_ARGUMENT : EIN_OK;
}

// Shape and strides of t into dims, without axis drop (-1: all). Returns where the strides are.
static int64_t *eini_view_dims(const ein_ztensor *t, int drop, int64_t *dims) {
  int rank = t->rank - (drop >= 0);
  int64_t *strides = rank > 0 ? dims + rank : dims;
  for (int k = 0; k < rank; k++) {
    int i = drop >= 0 && k >= drop ? k + 1 : k;
    dims[k] = t->shape[i];
    strides[k] = eini_stride(t, i);
  }
  return strides;
}

// view may be t: t is read as a whole first. A valid view holds index * stride where it has
// elements; where it has none, nothing moves.
static void eini_view_end(const ein_ztensor *t, int rank, int64_t index, int64_t stride,
                          ein_ztensor *view, int64_t *dims) {
  int64_t by = index > 0 && ein_view_count(t) > 0 ? index * stride : 0;
  ptrdiff_t bytes = (ptrdiff_t)(by * (int64_t)ein_dtype_size(t->dtype));
  *view = *t;
  view->rank = rank;
  view->shape = dims;
  view->strides = rank > 0 ? dims + rank : NULL;
  if (view->data != NULL) view->data = (char *)view->data + bytes;
}

EIN_API ein_status ein_view_permute(const ein_ztensor *t, const int *axes, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  int rank = t->rank;
  if (view == NULL || (rank > 0 && (axes == NULL || dims == NULL))) return EIN_ERR_ARGUMENT;
  for (int i = 0; i < rank; i++) {
    if (axes[i] < 0 || axes[i] >= rank) return EIN_ERR_ARGUMENT;
    for (int j = 0; j < i; j++)
      if (axes[j] == axes[i]) return EIN_ERR_ARGUMENT;
    dims[i] = t->shape[axes[i]];
    dims[(ptrdiff_t)rank + i] = eini_stride(t, axes[i]);
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_slice(const ein_ztensor *t, int axis, int64_t start, int64_t stop,
                                  int64_t step, ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 0, view, dims));
  if (step == 0) return EIN_ERR_ARGUMENT;
  int64_t n = t->shape[axis], count = 0;
  if (stop < (step < 0 ? -1 : 0) || stop > n) return EIN_ERR_BOUNDS;
  if (n > 0 && (step > 0 ? start < stop : start > stop)) {
    if (start < 0 || start >= n) return EIN_ERR_BOUNDS;
    uint64_t by = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    uint64_t span = (uint64_t)(step > 0 ? stop - start : start - stop);
    count = (int64_t)((span - 1) / by) + 1;
  }
  int64_t stride = eini_stride(t, axis), *strides = eini_view_dims(t, -1, dims);
  // A stride that is stepped lies inside the view's extent; others mean nothing and stay.
  if (count > 1 && eini_mul_overflow(stride, step, &strides[axis])) strides[axis] = 0;
  dims[axis] = count;
  eini_view_end(t, t->rank, count > 0 ? start : 0, stride, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_reverse(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 0, view, dims));
  return ein_view_slice(t, axis, t->shape[axis] - 1, -1, -1, view, dims);
}

EIN_API ein_status ein_view_select(const ein_ztensor *t, int axis, int64_t index,
                                   ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, -1, view, dims));
  if (index < 0 || index >= t->shape[axis]) return EIN_ERR_BOUNDS;
  int64_t stride = eini_stride(t, axis);
  eini_view_dims(t, axis, dims);
  eini_view_end(t, t->rank - 1, index, stride, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_squeeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, -1, view, dims));
  if (t->shape[axis] != 1) return EIN_ERR_SHAPE;
  return ein_view_select(t, axis, 0, view, dims);
}

EIN_API ein_status ein_view_unsqueeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                      int64_t *dims) {
  EINI_TRY(eini_view_begin(t, axis, 1, view, dims));
  int rank = t->rank + 1;
  for (int k = 0; k < rank; k++) {
    dims[k] = k == axis ? 1 : t->shape[k - (k > axis)];
    dims[(ptrdiff_t)rank + k] = k == axis ? 0 : eini_stride(t, k - (k > axis));
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_broadcast(const ein_ztensor *t, int rank, const int64_t *shape,
                                      ein_ztensor *view, int64_t *dims) {
  EINI_TRY(eini_view_validate(t));
  int64_t count;
  if (rank < 0 || view == NULL || (rank > 0 && (shape == NULL || dims == NULL)))
    return EIN_ERR_ARGUMENT;
  if (rank < t->rank) return EIN_ERR_SHAPE;
  EINI_TRY(eini_view_elements(rank, shape, &count));
  for (int i = 0; i < rank; i++) {
    int k = i - (rank - t->rank), repeat = k < 0 || t->shape[k] == 1;
    if (!repeat && t->shape[k] != shape[i]) return EIN_ERR_SHAPE;
    dims[i] = shape[i];
    dims[(ptrdiff_t)rank + i] = repeat ? 0 : eini_stride(t, k);
  }
  eini_view_end(t, rank, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_diagonal(const ein_ztensor *t, int a, int b, ein_ztensor *view,
                                     int64_t *dims) {
  EINI_TRY(eini_view_begin(t, a, -1, view, dims));
  if (b < 0 || b >= t->rank || a == b) return EIN_ERR_ARGUMENT;
  if (t->shape[a] != t->shape[b]) return EIN_ERR_SHAPE;
  int64_t sum;
  // With two elements or more the sum lies inside the view's extent; else it means nothing.
  if (eini_add_overflow(eini_stride(t, a), eini_stride(t, b), &sum)) sum = 0;
  eini_view_dims(t, b, dims)[a - (b < a)] = sum;
  eini_view_end(t, t->rank - 1, 0, 0, view, dims);
  return EIN_OK;
}

EIN_API ein_status ein_view_check(const ein_ztensor *t) {
  EINI_TRY(eini_view_validate(t));
  // Nothing can be proved about elements at an unknown place.
  int unknown = t->data == NULL && t->buffer_bytes > 0 && ein_view_count(t) > 0;
  return unknown ? EIN_ERR_BOUNDS : EIN_OK;
}

EIN_API void *ein_view_at(const ein_ztensor *t, const int64_t *coord) {
  if (eini_view_validate(t) != EIN_OK || t->data == NULL) return NULL;
  if (coord == NULL && t->rank > 0) return NULL;
  int64_t at = 0;
  for (int i = 0; i < t->rank; i++) {
    if (coord[i] < 0 || coord[i] >= t->shape[i]) return NULL;
    if (eini_muladd_overflow(coord[i], eini_stride(t, i), at, &at)) return NULL;
  }
  return (char *)t->data + (ptrdiff_t)(at * (int64_t)ein_dtype_size(t->dtype));
}

// ================================================================================================
// >>monoid  folds as states
// A fold is lift, merge, identity and finish over a state of 1 to 4 scalars (DESIGN: one idea).
// ================================================================================================

typedef enum eini_fold {
  EINI_FOLD_NONE = 0,  // element-wise: no reduced index
  EINI_SUM, EINI_PROD, EINI_MAX, EINI_MIN, EINI_ANY, EINI_ALL,
  EINI_LOGSUMEXP,      // state: max, sum of exp(x - max)
  EINI_ARGMAX, EINI_ARGMIN,  // state: value, position
  EINI_MEAN,           // state: sum (the count is the size of the reduced space)
  EINI_VAR,            // state: count, mean, sum of squared deviations
  EINI_FOLD_USER       // and above: user monoid number fold - EINI_FOLD_USER
} eini_fold;

typedef struct eini_fold_row {
  const char *name;
  unsigned char nstate, has_identity;
  unsigned char joins;  // joins that distribute over the fold, EIN_JOIN_*
} eini_fold_row;

// any over and, all over or are written with the joins that mean them for bool: MUL and MAX.
static const eini_fold_row eini_folds[EINI_FOLD_USER] = {
    {"none", 0, 1, 0},
    {"sum", 1, 1, EIN_JOIN_MUL},
    {"prod", 1, 1, 0},
    {"max", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MIN},
    {"min", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MAX},
    {"any", 1, 1, EIN_JOIN_MUL},
    {"all", 1, 1, EIN_JOIN_MAX},
    {"logsumexp", 2, 1, EIN_JOIN_ADD},
    {"argmax", 2, 0, 0},
    {"argmin", 2, 0, 0},
    {"mean", 1, 0, 0},
    {"var", 3, 0, 0}};

static int eini_fold_find(const char *name, int64_t n) {
  for (int i = EINI_SUM; i < EINI_FOLD_USER; i++) {
    if ((int64_t)strlen(eini_folds[i].name) == n &&
        memcmp(eini_folds[i].name, name, (size_t)n) == 0) {
      return i;
    }
  }
  return EINI_FOLD_NONE;
}

// The logical dtype of a fold's result over values of dtype t.
static ein_dtype eini_fold_dtype(int fold, ein_dtype t) {
  switch (fold) {
    case EINI_ANY: case EINI_ALL: return EIN_BOOL;
    case EINI_ARGMAX: case EINI_ARGMIN: return EIN_I64;
    case EINI_LOGSUMEXP: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EINI_MEAN: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EINI_VAR:
      if (eini_kind_of(t) < EINI_KREAL) return EIN_F64;
      return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
    default: return t;
  }
}

// ================================================================================================
// >>expr  scalar expressions
// An expression is an array of nodes, children before parents, so every pass is one loop and depth
// costs no stack. Typing gives every node a logical dtype (NumPy's) and makes conversions explicit.
// ================================================================================================

// X(id, name, args, class). Classes: how operands and result are typed.
//   A arithmetic: promoted        F float: integers become floats    D division: integers -> f64
//   C comparison -> bool          O ordering -> bool, no complex     B boolean
//   M min/max: no complex         P power                            I integer-keeping rounding
//   R complex parts               X own rule
#define EINI_OP_LIST(X)                                                                     \
  X(CONST, "", 0, 'X') X(OPERAND, "", 0, 'X') X(INDEX, "", 0, 'X') X(PARAM, "", 0, 'X')     \
  X(CAST, "", 1, 'X') X(ROUNDTO, "", 1, 'X') X(CALL, "", 0, 'X') X(WHERE, "where", 3, 'X')  \
  X(NEG, "", 1, 'A') X(ADD, "", 2, 'A') X(SUB, "", 2, 'A') X(MUL, "", 2, 'A')               \
  X(DIV, "", 2, 'D') X(POW, "pow", 2, 'P') X(FLOORDIV, "div", 2, 'M') X(MOD, "mod", 2, 'M') \
  X(MAX, "max", 2, 'M') X(MIN, "min", 2, 'M')                                               \
  X(LT, "", 2, 'O') X(LE, "", 2, 'O') X(GT, "", 2, 'O') X(GE, "", 2, 'O')                   \
  X(EQ, "", 2, 'C') X(NE, "", 2, 'C') X(AND, "", 2, 'B') X(OR, "", 2, 'B')                  \
  X(NOT, "", 1, 'B') X(EXP, "exp", 1, 'F') X(LOG, "log", 1, 'F') X(SQRT, "sqrt", 1, 'F')    \
  X(RSQRT, "rsqrt", 1, 'F') X(EXPM1, "expm1", 1, 'F') X(LOG1P, "log1p", 1, 'F')           \
  X(SIN, "sin", 1, 'F') X(COS, "cos", 1, 'F') X(TAN, "tan", 1, 'F')                       \
  X(TANH, "tanh", 1, 'F') X(ATAN2, "atan2", 2, 'F') X(ERF, "erf", 1, 'F')                 \
  X(SIGMOID, "sigmoid", 1, 'F')                                                           \
  X(RELU, "relu", 1, 'M') X(SILU, "silu", 1, 'F') X(GELU, "gelu", 1, 'F')                   \
  X(FLOOR, "floor", 1, 'I') X(CEIL, "ceil", 1, 'I') X(ROUND, "round", 1, 'I')               \
  X(ABS, "abs", 1, 'R') X(CONJ, "conj", 1, 'A') X(REAL, "real", 1, 'R')                     \
  X(IMAG, "imag", 1, 'R') X(COMPLEX, "complex", 2, 'X') X(SQUARE, "", 1, 'A')     \
  X(SIGN, "sign", 1, 'A')

typedef enum eini_op {
#define EINI_OP_ENUM(id, name, args, cls) EINI_OP_##id,
  EINI_OP_LIST(EINI_OP_ENUM)
#undef EINI_OP_ENUM
  EINI_OP_COUNT
} eini_op;

typedef struct eini_op_row {
  const char *name;
  unsigned char args;
  char cls;
} eini_op_row;

static const eini_op_row eini_ops[EINI_OP_COUNT] = {
#define EINI_OP_ROW(id, name, args, cls) {name, args, cls},
    EINI_OP_LIST(EINI_OP_ROW)
#undef EINI_OP_ROW
};

#define EINI_ARGS_MAX 8

typedef struct eini_node {
  unsigned char op;
  unsigned char dtype;  // logical; EIN_NONE before typing
  unsigned char weak;   // a literal, a param without a dtype, or an expression of these: adopts the
                        // dtype it meets; ival of an operation: the first node of its tree
  unsigned char exact;  // CONST: ival is exact (an integer)
  int arg[3];           // children; OPERAND, INDEX, PARAM: arg[0] is the number;
                        // CAST: arg[1] is 1 for a conversion that typing inserted;
                        // CALL: arg[0] function, arg[1] first of arg[2] entries in expr.list
  int64_t pos;          // byte in the source, or -1
  int64_t ival;
  double re, im;
} eini_node;

typedef struct eini_expr {
  eini_node *node;
  int64_t n, cap;
  int *list;            // children of CALL nodes
  int64_t nlist, caplist;
} eini_expr;

// Appends a node; -1 when out of memory.
static int eini_expr_add(eini_arena *a, eini_expr *e, int op, int64_t pos, int x, int y, int z) {
  if (e->n >= INT_MAX - 8) return -1;
  eini_node *p = (eini_node *)eini_grow(a, e->node, e->n, &e->cap, sizeof *p);
  if (p == NULL) return -1;
  e->node = p;
  eini_node *v = &e->node[e->n];
  memset(v, 0, sizeof *v);
  v->op = (unsigned char)op;
  v->arg[0] = x;
  v->arg[1] = y;
  v->arg[2] = z;
  v->pos = pos;
  return (int)e->n++;
}

static int eini_expr_pair(eini_arena *a, eini_expr *e, int op, int x, int y) {
  return x < 0 || y < 0 ? -1 : eini_expr_add(a, e, op, -1, x, y, 0);
}

static int eini_expr_int(eini_arena *a, eini_expr *e, int64_t pos, int64_t value) {
  int id = eini_expr_add(a, e, EINI_OP_CONST, pos, 0, 0, 0);
  if (id >= 0) {
    eini_node *v = &e->node[id];
    v->weak = v->exact = 1;
    v->ival = value;
    v->re = (double)value;
  }
  return id;
}

static int eini_expr_real(eini_arena *a, eini_expr *e, int64_t pos, double value) {
  int id = eini_expr_add(a, e, EINI_OP_CONST, pos, 0, 0, 0);
  if (id >= 0) {
    e->node[id].weak = 1;
    e->node[id].re = value;
  }
  return id;
}

EINI_UNUSED static int eini_expr_bool(eini_arena *a, eini_expr *e, int64_t pos, int value) {
  int id = eini_expr_int(a, e, pos, value != 0);
  if (id >= 0) {
    e->node[id].weak = 0;
    e->node[id].dtype = EIN_BOOL;
  }
  return id;
}

// A call of registered function f.
static int eini_expr_call(eini_arena *a, eini_expr *e, int64_t pos, int f, int n, const int *args) {
  int64_t first = e->nlist;
  for (int i = 0; i < n; i++) {
    int *p = (int *)eini_grow(a, e->list, e->nlist, &e->caplist, sizeof *p);
    if (p == NULL) return -1;
    e->list = p;
    e->list[e->nlist++] = args[i];
  }
  return eini_expr_add(a, e, EINI_OP_CALL, pos, f, (int)first, n);
}

static int eini_node_args(const eini_node *v) {
  return v->op == EINI_OP_CALL ? v->arg[2] : eini_ops[v->op].args;
}

static int eini_node_arg(const eini_expr *e, const eini_node *v, int i) {
  return v->op == EINI_OP_CALL ? e->list[v->arg[1] + i] : v->arg[i];
}

// ---- typing ----

typedef struct eini_param {
  const char *name;
  ein_dtype dtype;       // EIN_NONE: it adopts what it meets
  ein_scalar value;
} eini_param;

// What typing needs to know: dtypes of operands, params, the registered functions.
typedef struct eini_typing {
  const ein_dtype *operand;
  const eini_param *param;
  const ein_function *function;
  int numpy_bool;  // NumPy strings: products and sums of bool are and / or
  eini_diag *diag;
} eini_typing;

static int64_t eini_ipow(int64_t x, int64_t n) {
  uint64_t r = 1, b = (uint64_t)x;  // wraps like the multiplications it stands for
  for (; n > 0; n >>= 1, b *= b)
    if (n & 1) r *= b;
  return (int64_t)r;
}

// Folds an operation on exact integers; 0 when the result is not an exact integer.
static int eini_fold_exact(int op, int64_t x, int64_t y, int64_t *r) {
  switch (op) {
    case EINI_OP_NEG: return !eini_mul_overflow(x, -1, r);
    case EINI_OP_ADD: return !eini_add_overflow(x, y, r);
    case EINI_OP_SUB: return y != INT64_MIN && !eini_add_overflow(x, -y, r);
    case EINI_OP_MUL: return !eini_mul_overflow(x, y, r);
    case EINI_OP_MAX: *r = x > y ? x : y; return 1;
    case EINI_OP_MIN: *r = x < y ? x : y; return 1;
    case EINI_OP_POW:
      if (y < 0 || y > 62 || (double)INT64_MAX < pow(fabs((double)x), (double)y)) return 0;
      *r = eini_ipow(x, y);
      return 1;
    default: return 0;
  }
}

static double eini_fold_real(int op, double x, double y) {
  switch (op) {
    case EINI_OP_EXP: return exp(x);
    case EINI_OP_LOG: return log(x);
    case EINI_OP_SQRT: return sqrt(x);
    case EINI_OP_RSQRT: return 1 / sqrt(x);
    case EINI_OP_EXPM1: return expm1(x);
    case EINI_OP_LOG1P: return log1p(x);
    case EINI_OP_SIN: return sin(x);
    case EINI_OP_COS: return cos(x);
    case EINI_OP_TAN: return tan(x);
    case EINI_OP_TANH: return tanh(x);
    case EINI_OP_ATAN2: return atan2(x, y);
    case EINI_OP_NEG: return -x;
    case EINI_OP_ADD: return x + y;
    case EINI_OP_SUB: return x - y;
    case EINI_OP_MUL: return x * y;
    case EINI_OP_DIV: return x / y;
    default: return pow(x, y);
  }
}

// Literals stay literals under arithmetic and functions: -1, 2/3, sqrt(size(d)); params without a
// dtype are like them. An f32 tensor over them stays f32. The others are typed as f64 or i64.
static int eini_stays_weak(int op) {
  return op == EINI_OP_NEG || op == EINI_OP_ADD || op == EINI_OP_SUB || op == EINI_OP_MUL ||
         op == EINI_OP_DIV || op == EINI_OP_POW || (op >= EINI_OP_EXP && op <= EINI_OP_ATAN2);
}

static int eini_fold_literal(eini_expr *e, eini_node *v) {
  if (!eini_stays_weak(v->op)) return 0;
  const eini_node *x = &e->node[v->arg[0]];
  const eini_node *y = eini_ops[v->op].args == 1 ? x : &e->node[v->arg[1]];
  if (x->op != EINI_OP_CONST || y->op != EINI_OP_CONST || !x->weak || !y->weak) return 0;
  int64_t r = 0;
  int exact = x->exact && y->exact && eini_fold_exact(v->op, x->ival, y->ival, &r);
  double re = exact ? (double)r : eini_fold_real(v->op, x->re, y->re);
  v->op = EINI_OP_CONST;
  v->weak = 1;
  v->exact = (unsigned char)exact;
  v->ival = r;
  v->re = re;
  return 1;
}

// The dtype two operands meet in; literals adopt the other's.
static ein_dtype eini_meet(const eini_node *x, const eini_node *y) {
  if (x->weak && y->weak) {
    return x->op == EINI_OP_CONST && x->exact && y->op == EINI_OP_CONST && y->exact ? EIN_I64
                                                                                    : EIN_F64;
  }
  if (!x->weak && !y->weak) return ein_dtype_promote((ein_dtype)x->dtype, (ein_dtype)y->dtype);
  const eini_node *w = x->weak ? x : y;
  ein_dtype t = (ein_dtype)(x->weak ? y->dtype : x->dtype);
  if (w->exact) return t == EIN_BOOL ? EIN_I64 : t;
  return eini_kind_of(t) >= EINI_KREAL ? t : EIN_F64;
}

static ein_dtype eini_node_dtype(const eini_node *x) {
  return x->weak ? (x->exact ? EIN_I64 : EIN_F64) : (ein_dtype)x->dtype;
}

static ein_dtype eini_real_part(ein_dtype t) {
  return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
}

// Appends an operation on nodes that adopt what they meet, which does so too; -1: no memory.
static int eini_weak_pair(eini_arena *a, eini_expr *out, int op, int64_t pos, int x, int y) {
  int id = eini_expr_add(a, out, op, pos, x, y, 0), first = id;
  for (int k = 0; k < eini_ops[op].args && id >= 0; k++) {
    const eini_node *c = &out->node[k == 0 ? x : y];
    int64_t from = c->weak && c->op > EINI_OP_PARAM ? c->ival : k == 0 ? x : y;
    if (from < first) first = (int)from;
  }
  if (id < 0) return -1;
  out->node[id].weak = 1;
  out->node[id].ival = first;
  return id;
}

// An operation on such nodes, with all below it, takes dtype t. Trees are long: no recursion.
static void eini_weak_take(eini_expr *out, int id, ein_dtype t) {
  int64_t first = out->node[id].ival;
  out->node[id].weak = 2;  // to be typed
  for (int64_t i = id; i >= first; i--) {
    eini_node *v = &out->node[i];
    if (v->weak != 2) continue;
    v->weak = 0;
    v->dtype = (unsigned char)t;
    if (v->op == EINI_OP_CONST && !v->exact) v->ival = eini_f64_to_i64(v->re);
    if (v->op <= EINI_OP_PARAM) continue;
    v->ival = 0;
    for (int k = 0; k < eini_ops[v->op].args; k++)
      if (out->node[v->arg[k]].weak) out->node[v->arg[k]].weak = 2;
  }
}

// A child converted to logical dtype t: itself, a typed literal, or a CAST node on top of it.
static int eini_convert(eini_arena *a, eini_expr *out, int id, ein_dtype t) {
  eini_node *x = &out->node[id];
  if (x->weak && x->op != EINI_OP_CONST && eini_kind_of(t) < EINI_KREAL) {  // converted when known
    int real = eini_convert(a, out, id, EIN_F64);
    return real < 0 ? -1 : eini_convert(a, out, real, t);
  }
  if (x->weak && x->op > EINI_OP_PARAM) {
    eini_weak_take(out, id, t);
    return id;
  }
  if (x->weak) {
    // The literal may be shared by two parents: each gets its own typed copy.
    eini_node copy = *x;
    int c = eini_expr_add(a, out, EINI_OP_CONST, copy.pos, 0, 0, 0);
    if (c < 0) return -1;
    eini_node *v = &out->node[c];
    *v = copy;
    v->weak = 0;
    v->dtype = (unsigned char)t;
    if (!v->exact) v->ival = eini_f64_to_i64(v->re);
    return c;
  }
  ein_dtype from = ein_dtype_compute((ein_dtype)x->dtype), to = ein_dtype_compute(t);
  if (from == to) return id;
  int c = eini_expr_add(a, out, EINI_OP_CAST, x->pos, id, 1, 0);
  if (c >= 0) out->node[c].dtype = (unsigned char)t;
  return c;
}

// Operand dtype (what arguments are converted to) and result dtype of an operation.
static ein_status eini_op_types(const eini_typing *ty, const eini_node *v, const eini_node *x,
                                const eini_node *y, ein_dtype *arg, ein_dtype *res) {
  ein_dtype m = y != NULL ? eini_meet(x, y) : eini_node_dtype(x);
  int complex_in = eini_kind_of(m) == EINI_KCOMPLEX;
  *arg = *res = m;
  switch (eini_ops[v->op].cls) {
    case 'A':
      if (m == EIN_BOOL && (v->op == EINI_OP_SUB || v->op == EINI_OP_NEG))
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, "use != or not",
                         "bool has no subtraction");
      if (m == EIN_BOOL && v->op == EINI_OP_SIGN)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "bool has no sign");
      break;
    case 'F':
      *arg = *res = eini_float_for(m);
      if (complex_in && (v->op < EINI_OP_EXP || v->op > EINI_OP_TANH)) {
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "%s has no complex version",
                         eini_ops[v->op].name);
      }
      break;
    case 'D': if (eini_kind_of(m) < EINI_KREAL) *arg = *res = EIN_F64; break;
    case 'O':
    case 'M':
      if (complex_in)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, "compare real(z), imag(z) or abs(z)",
                         "complex numbers have no order");
      if (eini_ops[v->op].cls == 'O') *res = EIN_BOOL;
      if (m == EIN_BOOL && (v->op == EINI_OP_FLOORDIV || v->op == EINI_OP_MOD))
        *arg = *res = EIN_I8;
      break;
    case 'C': *res = EIN_BOOL; break;
    case 'B': *arg = *res = EIN_BOOL; break;
    case 'I':
      if (complex_in)
        return eini_fail(ty->diag, EIN_ERR_DTYPE, v->pos, 1, NULL, "%s has no complex version",
                         eini_ops[v->op].name);
      break;
    case 'R':
      *res = eini_real_part(m);
      break;
    default: break;
  }
  return EIN_OK;
}

// x^n with a literal integer n is a short chain of multiplications; the rest is pow in floats.
static ein_status eini_type_pow(eini_arena *a, const eini_typing *ty, eini_expr *out,
                                const eini_node *v, int x, int y, int *id) {
  eini_node xn = out->node[x], yn = out->node[y];
  ein_dtype t = eini_node_dtype(&xn);
  if (xn.weak && yn.weak) {
    int sq = yn.exact && yn.ival == 2;
    *id = sq ? eini_weak_pair(a, out, EINI_OP_SQUARE, v->pos, x, 0)
             : eini_weak_pair(a, out, EINI_OP_POW, v->pos, x, y);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  if (yn.weak && yn.exact && yn.ival >= 0 && yn.ival <= 64) {
    if (t == EIN_BOOL) t = EIN_I8;
    int base = eini_convert(a, out, x, t), r = -1;
    if (base < 0) return EIN_ERR_NO_MEMORY;
    if (yn.ival == 0) {
      r = eini_expr_int(a, out, v->pos, 1);
      *id = r < 0 ? -1 : eini_convert(a, out, r, t);
      return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
    }
    for (int64_t n = yn.ival;; n >>= 1) {
      if (n & 1) {
        r = r < 0 ? base : eini_expr_add(a, out, EINI_OP_MUL, v->pos, r, base, 0);
        if (r < 0) return EIN_ERR_NO_MEMORY;
        out->node[r].dtype = (unsigned char)t;
      }
      if (n == 1) break;
      base = eini_expr_add(a, out, EINI_OP_SQUARE, v->pos, base, 0, 0);
      if (base < 0) return EIN_ERR_NO_MEMORY;
      out->node[base].dtype = (unsigned char)t;
    }
    *id = r;
    return EIN_OK;
  }
  t = eini_meet(&xn, &yn);
  if (eini_kind_of(t) < EINI_KREAL) t = EIN_F64;
  (void)ty;
  int p = eini_convert(a, out, x, t), q = p < 0 ? -1 : eini_convert(a, out, y, t);
  *id = q < 0 ? -1 : eini_expr_add(a, out, EINI_OP_POW, v->pos, p, q, 0);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  out->node[*id].dtype = (unsigned char)t;
  return EIN_OK;
}

// Operations with rules of their own: where, complex, cast, calls.
static ein_status eini_type_special(eini_arena *a, const eini_typing *ty, eini_expr *out,
                                    eini_node v, const int *child, int *id) {
  int c[EINI_ARGS_MAX] = {0};
  int n = eini_node_args(&v);
  ein_dtype t = EIN_NONE;
  if (v.op == EINI_OP_WHERE) {
    t = eini_meet(&out->node[child[1]], &out->node[child[2]]);
  } else if (v.op == EINI_OP_COMPLEX) {
    ein_dtype m = eini_meet(&out->node[child[0]], &out->node[child[1]]);
    if (eini_kind_of(m) == EINI_KCOMPLEX)
      return eini_fail(ty->diag, EIN_ERR_DTYPE, v.pos, 7, NULL, "complex() takes two real numbers");
    t = eini_float_for(m) < EIN_F64 ? EIN_F32 : EIN_F64;
  } else if (v.op == EINI_OP_CALL) {
    t = ty->function[v.arg[0]].dtype;
  } else if (v.op == EINI_OP_CAST && v.arg[1] == 1) {  // typed before: a conversion, no rounding
    *id = eini_convert(a, out, child[0], (ein_dtype)v.dtype);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  } else {  // CAST with the target in dtype
    ein_dtype from = eini_node_dtype(&out->node[child[0]]);
    t = (ein_dtype)v.dtype;
    if (eini_kind_of(from) == EINI_KCOMPLEX && eini_kind_of(t) < EINI_KCOMPLEX && t != EIN_BOOL)
      return eini_fail(ty->diag, EIN_ERR_DTYPE, v.pos, 1, "take real(z), imag(z) or abs(z)",
                       "a complex number has no %s value", ein_dtype_name(t));
    c[0] = eini_convert(a, out, child[0], t);
    *id = c[0] < 0 ? -1 : eini_expr_add(a, out, EINI_OP_ROUNDTO, v.pos, c[0], 0, 0);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    out->node[*id].dtype = (unsigned char)t;
    return EIN_OK;
  }
  for (int i = 0; i < n; i++) {
    c[i] = eini_convert(a, out, child[i], v.op == EINI_OP_WHERE && i == 0 ? EIN_BOOL : t);
    if (c[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  if (v.op == EINI_OP_CALL) {
    *id = eini_expr_call(a, out, v.pos, v.arg[0], n, c);
  } else {
    *id = eini_expr_add(a, out, v.op, v.pos, c[0], c[1], c[2]);
  }
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  if (v.op == EINI_OP_COMPLEX) t = t == EIN_F32 ? EIN_C64 : EIN_C128;
  out->node[*id].dtype = (unsigned char)t;
  return EIN_OK;
}

static ein_status eini_type_node(eini_arena *a, const eini_typing *ty, eini_expr *out, eini_node v,
                                 const int *child, int *id) {
  if (v.op <= EINI_OP_PARAM) {
    *id = eini_expr_add(a, out, v.op, v.pos, v.arg[0], v.arg[1], v.arg[2]);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    eini_node *o = &out->node[*id];
    *o = v;
    if (v.op == EINI_OP_OPERAND) o->dtype = (unsigned char)ty->operand[v.arg[0]];
    if (v.op == EINI_OP_PARAM && ty->param[v.arg[0]].dtype != EIN_NONE)
      o->dtype = (unsigned char)ty->param[v.arg[0]].dtype;
    else if (v.op == EINI_OP_PARAM)  // what it took when the expression was typed before stays
      o->weak = v.dtype == EIN_NONE;
    if (v.op == EINI_OP_INDEX) o->dtype = EIN_I64;
    return EIN_OK;
  }
  if (eini_ops[v.op].cls == 'X') return eini_type_special(a, ty, out, v, child, id);
  int n = eini_ops[v.op].args;
  eini_node literal = v;
  literal.arg[0] = child[0];
  literal.arg[1] = n > 1 ? child[1] : 0;
  if (eini_fold_literal(out, &literal)) {
    *id = eini_expr_add(a, out, EINI_OP_CONST, v.pos, 0, 0, 0);
    if (*id < 0) return EIN_ERR_NO_MEMORY;
    out->node[*id] = literal;
    return EIN_OK;
  }
  if (v.op == EINI_OP_IMAG && eini_kind_of(eini_node_dtype(&out->node[child[0]])) < EINI_KCOMPLEX) {
    ein_dtype t = eini_node_dtype(&out->node[child[0]]);  // 0, also for inf and NaN
    int zero = eini_expr_int(a, out, v.pos, 0);
    *id = zero < 0 ? -1 : eini_convert(a, out, zero, t);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  if (v.op == EINI_OP_POW) return eini_type_pow(a, ty, out, &v, child[0], child[1], id);
  if (eini_stays_weak(v.op) && out->node[child[0]].weak && (n == 1 || out->node[child[1]].weak)) {
    *id = eini_weak_pair(a, out, v.op, v.pos, child[0], n > 1 ? child[1] : 0);
    return *id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  ein_dtype arg, res;
  EINI_TRY(eini_op_types(ty, &v, &out->node[child[0]], n > 1 ? &out->node[child[1]] : NULL, &arg,
                         &res));
  int c[2] = {0, 0};
  for (int i = 0; i < n; i++) {
    c[i] = eini_convert(a, out, child[i], arg);
    if (c[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  int op = v.op;
  if (arg == EIN_BOOL && op == EINI_OP_MUL) op = EINI_OP_AND;
  if (arg == EIN_BOOL && op == EINI_OP_ADD) op = EINI_OP_OR;
  *id = eini_expr_add(a, out, op, v.pos, c[0], c[1], 0);
  if (*id < 0) return EIN_ERR_NO_MEMORY;
  out->node[*id].dtype = (unsigned char)res;
  return EIN_OK;
}

// Types an expression. out is a new expression whose last node is the root; its dtype is the
// logical dtype of the result. A literal result is typed i64 or f64.
static ein_status eini_expr_type(eini_arena *a, const eini_typing *ty, const eini_expr *e,
                                 eini_expr *out) {
  memset(out, 0, sizeof *out);
  int *map = EINI_NEW(a, int, e->n);
  if (map == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    int child[EINI_ARGS_MAX] = {0};
    int n = eini_node_args(v);
    for (int k = 0; k < n; k++) child[k] = map[eini_node_arg(e, v, k)];
    EINI_TRY(eini_type_node(a, ty, out, *v, child, &map[i]));
  }
  int root = map[e->n - 1];
  root = eini_convert(a, out, root, eini_node_dtype(&out->node[root]));
  if (root < 0) return EIN_ERR_NO_MEMORY;
  if (root != out->n - 1) {  // the root must be last: the typed literal of an earlier node
    eini_node copy = out->node[root];
    int id = eini_expr_add(a, out, copy.op, copy.pos, 0, 0, 0);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    out->node[id] = copy;
  }
  return EIN_OK;
}

// ================================================================================================
// >>graph  tensors and statements
// The one representation: out[out_map(i)] = fold over reduced i of expr(operand[k][proj_k(i)], ..).
// Invariant after eini_stmt_finish: every access is proved inside its tensor, every node typed.
// ================================================================================================

typedef struct eini_index {
  const char *name;
  int64_t extent;
} eini_index;

typedef struct eini_tensor {
  const char *name;
  ein_role role;
  ein_dtype dtype;       // storage dtype
  int dtype_open;        // 1: the dtype is still the promotion of the pieces seen so far
  int rank;
  int64_t *shape;        // NULL until sealed
  const int64_t *given;  // shape the builder was told, or NULL
  int partial;           // its only statement leaves elements out; they are zero
  int shift;             // softmax's max: what is made of it does not depend on its value
  int64_t pos;           // byte in the source, or -1
  int nstmt;             // defining statements so far
  int64_t line;
} eini_tensor;

typedef struct eini_stmt {
  int out;               // tensor
  ein_zmap out_map;      // rank(out) x nindex; columns of reduced indices are 0
  int nindex, nfree;     // free indices first, then the reduced ones in the order written
  eini_index *index;
  int noperand;
  int *operand;          // tensors
  ein_zmap *proj;        // rank(operand) x nindex
  eini_expr expr;        // last node is the root; typed by eini_stmt_finish
  int fold;              // eini_fold, or EINI_FOLD_USER + number
  int numpy;             // NumPy string: bool sums by or
  ein_dtype type;        // logical dtype of the result, before it is stored
  ein_rest rest;         // what happens to elements of out that out_map does not reach
  int order;             // how kernels must fold, EINI_ORDER_*; 0: as they like
  int64_t pos;           // byte in the source, or -1
  int64_t line;          // line in the source, or 0
} eini_stmt;

// Ways of folding that blocks of a statement share: chunks along reduced indices, or along free
// ones, one reduced value after the other; in tiles of a contraction where there are kernels.
enum { EINI_ORDER_ACROSS = 1, EINI_ORDER_DOWN = 2, EINI_ORDER_TILES = 4 };

struct ein_graph {
  eini_arena arena;
  eini_tensor *tensor;
  int64_t ntensor, captensor;
  eini_stmt *stmt;
  int64_t nstmt, capstmt;
  eini_param *param;
  int64_t nparam, capparam;
  ein_function *function;
  int nfunction;
  ein_monoid *monoid;
  int nmonoid;
  int ordered;             // 1: made by section order: statements run as they are, in their order
  int open;                // while it is being built: the first mistake, and where messages go
  ein_status status;
  eini_diag *diag;
};

static void eini_graph_free(ein_graph *g) {
  if (g == NULL) return;
  eini_arena arena = g->arena;  // the graph lives in its own arena
  eini_arena_free(&arena);
}

// The name as a C string in the arena; NULL when out of memory.
static ein_status eini_graph_add_tensor(ein_graph *g, const char *name, int64_t len, ein_role role,
                                        ein_dtype dtype, int rank, const int64_t *shape, int *id) {
  eini_tensor *p =
      (eini_tensor *)eini_grow(&g->arena, g->tensor, g->ntensor, &g->captensor, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->tensor = p;
  eini_tensor *t = &g->tensor[g->ntensor];
  memset(t, 0, sizeof *t);
  t->name = eini_strndup(&g->arena, name, len);
  t->role = role;
  t->dtype = dtype;
  t->dtype_open = dtype == EIN_NONE;
  t->rank = rank;
  t->pos = -1;
  if (t->name == NULL) return EIN_ERR_NO_MEMORY;
  if (shape != NULL) {
    t->shape = EINI_NEW(&g->arena, int64_t, rank);
    if (t->shape == NULL) return EIN_ERR_NO_MEMORY;
    if (rank > 0) memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
  }
  *id = (int)g->ntensor++;
  return EIN_OK;
}

static ein_status eini_graph_add_param(ein_graph *g, const char *name, int64_t len,
                                       ein_dtype dtype, ein_scalar value, int *id) {
  eini_param *p = (eini_param *)eini_grow(&g->arena, g->param, g->nparam, &g->capparam, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->param = p;
  p = &g->param[g->nparam];
  memset(p, 0, sizeof *p);
  p->name = eini_strndup(&g->arena, name, len);
  p->dtype = dtype;
  p->value = value;
  if (p->name == NULL) return EIN_ERR_NO_MEMORY;
  *id = (int)g->nparam++;
  return EIN_OK;
}

// Copies registrations, so that a graph does not depend on its ctx.
static ein_status eini_graph_register(ein_graph *g, int nfunction, const ein_function *function,
                                      int nmonoid, const ein_monoid *monoid) {
  g->nfunction = nfunction;
  g->nmonoid = nmonoid;
  g->function = EINI_NEW(&g->arena, ein_function, nfunction);
  g->monoid = EINI_NEW(&g->arena, ein_monoid, nmonoid);
  if (g->function == NULL || g->monoid == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nfunction; i++) g->function[i] = function[i];
  for (int i = 0; i < nmonoid; i++) {
    g->monoid[i] = monoid[i];
    g->monoid[i].name = eini_strndup(&g->arena, monoid[i].name, (int64_t)strlen(monoid[i].name));
    if (g->monoid[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Maps are dense: thousands of operands over as many indices would take gigabytes.
#define EINI_CELLS_MOST ((int64_t)1 << 26)  // of the maps in an arena

static ein_status eini_zmap_new(eini_arena *a, int rows, int cols, ein_zmap *m) {
  int64_t n;
  if (eini_mul_overflow(rows, cols, &n) || (a->cells += n) > EINI_CELLS_MOST)
    return EIN_ERR_TOO_LARGE;
  m->rows = rows;
  m->cols = cols;
  m->block = NULL;
  m->coef = EINI_NEW(a, int64_t, n);
  m->offset = EINI_NEW(a, int64_t, rows);
  return m->coef == NULL || m->offset == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Copies a map into one of its size; no offset: zeros.
static void eini_zmap_fill(ein_zmap *to, const ein_zmap *from) {
  size_t rows = (size_t)to->rows, cells = rows * (size_t)to->cols;
  if (cells > 0) memcpy(to->coef, from->coef, cells * sizeof *to->coef);
  if (rows > 0 && from->offset != NULL) memcpy(to->offset, from->offset, rows * sizeof *to->offset);
}

EINI_UNUSED static int eini_zmap_equal(const ein_zmap *a, const ein_zmap *b) {
  size_t rows = (size_t)a->rows, cells = rows * (size_t)a->cols;
  return a->rows == b->rows && a->cols == b->cols &&
         (rows == 0 || memcmp(a->offset, b->offset, rows * sizeof *a->offset) == 0) &&
         (cells == 0 || memcmp(a->coef, b->coef, cells * sizeof *a->coef) == 0);
}

// Appends a statement with room for its indices and operands; the caller fills index[], nfree,
// operand[] and the maps (zero at first), expr and fold. *s is valid until the next call.
static ein_status eini_graph_add_stmt(ein_graph *g, int out, int nindex, int noperand,
                                      const int *operand, eini_stmt **s) {
  eini_stmt *p = (eini_stmt *)eini_grow(&g->arena, g->stmt, g->nstmt, &g->capstmt, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  g->stmt = p;
  p = &g->stmt[g->nstmt];
  memset(p, 0, sizeof *p);
  p->out = out;
  p->nindex = p->nfree = nindex;
  p->noperand = noperand;
  p->index = EINI_NEW(&g->arena, eini_index, nindex);
  p->operand = EINI_NEW(&g->arena, int, noperand);
  p->proj = EINI_NEW(&g->arena, ein_zmap, noperand);
  p->pos = -1;
  if (p->index == NULL || p->operand == NULL || p->proj == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(&g->arena, g->tensor[out].rank, nindex, &p->out_map));
  for (int k = 0; k < noperand; k++) {
    p->operand[k] = operand[k];
    EINI_TRY(eini_zmap_new(&g->arena, g->tensor[operand[k]].rank, nindex, &p->proj[k]));
  }
  g->nstmt++;
  g->tensor[out].nstmt++;
  *s = p;
  return EIN_OK;
}

// Is the statement's index space empty? Then nothing is accessed.
static int eini_stmt_empty(const eini_stmt *s, int from, int to) {
  for (int i = from; i < to; i++)
    if (s->index[i].extent == 0) return 1;
  return 0;
}

// Proves that a map stays inside a tensor (GRAMMAR rule 6). *row is the coordinate that leaves it.
static ein_status eini_map_bounds(const ein_zmap *m, const eini_index *index, const int64_t *shape,
                                  eini_arena *scratch, int *row, int64_t *bad) {
  int64_t *extent = EINI_NEW(scratch, int64_t, m->cols);
  if (extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < m->cols; c++) {
    extent[c] = index[c].extent;
    if (extent[c] == 0) return EIN_OK;
  }
  for (int r = 0; r < m->rows; r++) {
    int64_t lo, hi;
    *row = r;
    EINI_TRY(eini_zmap_row_range(m->coef + (int64_t)r * m->cols, m->cols, m->offset[r], extent,
                                 &lo, &hi));
    if (lo < 0 || hi >= shape[r]) {
      *bad = lo < 0 ? lo : hi;
      return EIN_ERR_BOUNDS;
    }
  }
  return EIN_OK;
}

// Types the statement, proves its accesses, decides the dtype of its tensor. Call it once the
// operands' tensors are sealed and s is filled. Errors are reported at node or statement positions.
static ein_status eini_stmt_finish(ein_graph *g, eini_stmt *s, eini_diag *diag) {
  eini_typing ty;
  memset(&ty, 0, sizeof ty);
  ein_dtype *od = EINI_NEW(&g->arena, ein_dtype, s->noperand);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) od[k] = g->tensor[s->operand[k]].dtype;
  ty.operand = od;
  ty.param = g->param;
  ty.function = g->function;
  ty.diag = diag;
  eini_expr typed;
  EINI_TRY(eini_expr_type(&g->arena, &ty, &s->expr, &typed));
  ein_dtype t = (ein_dtype)typed.node[typed.n - 1].dtype;
  if (s->fold != EINI_FOLD_NONE) {
    int fold = s->fold;
    int order = fold == EINI_MAX || fold == EINI_MIN || fold == EINI_ARGMAX || fold == EINI_ARGMIN;
    if (eini_kind_of(t) == EINI_KCOMPLEX && (order || fold == EINI_LOGSUMEXP || fold == EINI_VAR))
      return eini_fail(diag, EIN_ERR_DTYPE, s->pos, 1, "reduce real(z), imag(z) or abs(z)",
                       "%s of complex numbers is not defined", eini_folds[fold].name);
    if (t == EIN_BOOL && (fold == EINI_SUM || fold == EINI_PROD) && !s->numpy) t = EIN_I64;
    const ein_monoid *m = fold >= EINI_FOLD_USER ? &g->monoid[fold - EINI_FOLD_USER] : NULL;
    if (eini_stmt_empty(s, s->nfree, s->nindex) && !eini_stmt_empty(s, 0, s->nfree) &&
        (m != NULL ? m->no_identity : !eini_folds[fold].has_identity)) {
      return eini_fail(diag, EIN_ERR_EMPTY, s->pos, 1, NULL, "%s of nothing",
                       m != NULL ? m->name : eini_folds[fold].name);
    }
    t = m != NULL ? m->dtype : eini_fold_dtype(fold, t);
  }
  s->expr = typed;
  s->type = t;
  eini_tensor *out = &g->tensor[s->out];
  if (out->dtype_open) out->dtype = ein_dtype_promote(out->dtype, t);
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &g->tensor[s->operand[k]];
    int row = 0;
    int64_t bad = 0;
    ein_status st = eini_map_bounds(&s->proj[k], s->index, x->shape, &g->arena, &row, &bad);
    if (st == EIN_OK) continue;
    if (st == EIN_ERR_NO_MEMORY) return st;
    return eini_fail(diag, st, s->pos, 1,
                     s->pos < 0 ? NULL : "an edge rule like X[i-1 | 0] says what is read outside",
                     "coordinate %d of '%s' reaches %lld, its extent is %lld", row, x->name,
                     (long long)bad, (long long)x->shape[row]);
  }
  return EIN_OK;
}

// Once all pieces of a tensor are known: a temporary keeps its computation type (GRAMMAR rule 8).
static void eini_tensor_fix_dtype(eini_tensor *t) {
  if (!t->dtype_open) return;
  if (t->role == EIN_ROLE_TEMP) t->dtype = ein_dtype_compute(t->dtype);
  t->dtype_open = 0;
}

EIN_API void ein_graph_destroy(ein_graph *g) { eini_graph_free(g); }

EIN_API int ein_graph_tensors(const ein_graph *g) { return g == NULL ? 0 : (int)g->ntensor; }

EIN_API int ein_graph_tensor(const ein_graph *g, int i, ein_tensor_info *info) {
  if (g == NULL || info == NULL || i < 0 || i >= g->ntensor) return 0;
  const eini_tensor *t = &g->tensor[i];
  info->name = t->name;
  info->role = t->role;
  info->dtype = t->dtype;
  info->rank = t->rank;
  info->shape = t->shape;
  return 1;
}

EIN_API int ein_graph_params(const ein_graph *g) { return g == NULL ? 0 : (int)g->nparam; }

static void eini_param_info(const eini_param *p, ein_param_info *info) {
  info->name = p->name;
  info->dtype = p->dtype;
  info->has_default = p->value.set;
  info->value = p->value;
}

EIN_API int ein_graph_param(const ein_graph *g, int i, ein_param_info *info) {
  if (g == NULL || info == NULL || i < 0 || i >= g->nparam) return 0;
  eini_param_info(&g->param[i], info);
  return 1;
}

// ================================================================================================
// >>context  what a caller sets up once
// Owns the error records, registered functions and monoids, and the plan cache. Used by one thread
// at a time.
// ================================================================================================

struct eini_cache;

struct ein_ctx {
  eini_arena arena;        // the ctx itself, registrations, error buffers
  ein_allocator al;
  ein_logger logger;
  ein_executor executor;
  int nkernels;
  const ein_kernels **kernels;
  double (*now_fn)(void *user);
  void *now_user;
  eini_diag diag;
  ein_function *function;
  int64_t nfunction, capfunction;
  ein_monoid *monoid;
  int64_t nmonoid, capmonoid;
  struct eini_cache *cache;
  ein_ztensor no_view;     // stands for an absent view in cache keys
};

static void eini_cache_destroy(ein_ctx *ctx);
static ein_status eini_cache_create(ein_ctx *ctx, int plans);

EIN_API ein_status ein_ctx_create(const ein_ctx_desc *desc, ein_ctx **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (desc != NULL && (desc->allocator.alloc_fn == NULL) != (desc->allocator.free_fn == NULL))
    return EIN_ERR_ARGUMENT;
  eini_arena arena;
  int use = 0, room = 0;
  eini_arena_init(&arena, desc == NULL ? NULL : &desc->allocator);
  ein_ctx *c = EINI_NEW(&arena, ein_ctx, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->al = arena.al;
  if (desc != NULL) {
    c->logger = desc->logger;
    c->executor = desc->executor;
    c->now_fn = desc->now_fn;
    c->now_user = desc->now_user;
    room = (int)(sizeof desc->use / sizeof *desc->use);
    use = desc->nuse < 0 ? 0 : desc->nuse > room ? room : desc->nuse;
    c->nkernels = desc->nkernels < 0 || desc->kernels == NULL ? 0 : desc->nkernels;
    c->nkernels += use;
  }
  c->kernels = EINI_NEW(&arena, const ein_kernels *, c->nkernels);
  if (c->kernels == NULL) c->nkernels = 0;
  for (int i = 0; i < c->nkernels; i++)
    c->kernels[i] = i < use ? desc->use[i] : desc->kernels[i - use];
  if (c->executor.parallel_for == NULL || c->executor.width < 1) c->executor.width = 1;
  c->diag.error = EINI_NEW(&arena, ein_error, EINI_ERRORS_MAX);
  c->diag.buf = EINI_NEW(&arena, char, EINI_ERROR_TEXT);
  c->arena = arena;
  ein_status st = c->diag.error == NULL || c->diag.buf == NULL || c->kernels == NULL
                      ? EIN_ERR_NO_MEMORY : EIN_OK;
  int plans = desc == NULL || desc->cache_plans == 0 ? 64 : desc->cache_plans;
  if (st == EIN_OK && plans > 0) st = eini_cache_create(c, plans);
  if (st != EIN_OK) {
    ein_ctx_destroy(c);
    return st;
  }
  eini_diag_reset(&c->diag, NULL, 0);
  *out = c;
  return EIN_OK;
}

EIN_API void ein_ctx_destroy(ein_ctx *ctx) {
  if (ctx == NULL) return;
  eini_cache_destroy(ctx);
  eini_arena arena = ctx->arena;
  eini_arena_free(&arena);
}

EIN_API int ein_ctx_errors(const ein_ctx *ctx) { return ctx == NULL ? 0 : ctx->diag.count; }

EIN_API const ein_error *ein_ctx_error(const ein_ctx *ctx, int i) {
  return ctx == NULL || i < 0 || i >= ctx->diag.count ? NULL : &ctx->diag.error[i];
}

EIN_API const char *ein_ctx_message(const ein_ctx *ctx) {
  return ctx == NULL ? "" : eini_diag_message(&ctx->diag);
}

static int eini_is_name(const char *s) {
  if (s == NULL || !s[0] || (s[0] >= '0' && s[0] <= '9')) return 0;
  for (int64_t n = (int64_t)strlen(s), used; n > 0; n -= used, s += used) {
    int64_t c = eini_utf8(s, n, &used);
    if (!((c >= '0' && c <= '9') || c == '_' || eini_is_label(c))) return 0;
  }
  return 1;
}

typedef enum eini_word_kind {  // what a name means to the language
  EINI_W_FREE, EINI_W_OP, EINI_W_FOLD, EINI_W_NORM, EINI_W_MONOID, EINI_W_FUNCTION, EINI_W_MACRO,
  EINI_W_CAST, EINI_W_DTYPE, EINI_W_WORD
} eini_word_kind;

static int eini_word_is(const char *s, int64_t n, const char *word) {
  return (int64_t)strlen(word) == n && memcmp(s, word, (size_t)n) == 0;
}

// The i-th word with a meaning, its class and number; NULL after the last, "" for a gap. g holds
// the registered functions and monoids.
static const char *eini_known_word(const ein_graph *g, int i, int *cls, int *id) {
  static const char *const words[] = {
      "softmax", "logsoftmax", "layernorm", "rmsnorm", "norm", "input", "param", "output", "def",
      "grad", "wrt", "as", "seed", "and", "or", "not", "inf", "nan", "pi", "true", "false", "size",
      "wrap", "clamp", "reflect", "for"};
  static const int classes[] = {EINI_W_FOLD, EINI_W_OP, EINI_W_MACRO, EINI_W_NORM, EINI_W_DTYPE,
                                EINI_W_FUNCTION, EINI_W_MONOID, EINI_W_WORD};
  const int count[] = {EINI_FOLD_USER, EINI_OP_COUNT, 4, 1, EIN_DTYPE_COUNT, g->nfunction,
                       g->nmonoid, 21};
  int k = 0;
  for (; k < 8 && i >= count[k]; k++) i -= count[k];
  *cls = k < 8 ? classes[k] : EINI_W_FREE;
  *id = i;
  return k == 0 ? (i == EINI_FOLD_NONE ? "" : eini_folds[i].name) : k == 1 ? eini_ops[i].name :
         k <= 3 ? words[k == 2 ? i : 4] : k == 4 ? (i == 0 ? "" : eini_dtypes[i].name) :
         k == 5 ? g->function[i].name : k == 6 ? g->monoid[i].name : k == 7 ? words[i + 5] : NULL;
}

// What the language itself, or a registration, means by a name; *id says which one.
static int eini_word_class(const ein_graph *g, const char *s, int64_t n, int *id) {
  int cls, cast = n > 5 && memcmp(s, "cast_", 5) == 0 ? 5 : 0;
  const char *word;
  for (int i = 0; (word = eini_known_word(g, i, &cls, id)) != NULL; i++) {
    if (n > 0 && eini_word_is(s, n, word)) return cls;
    if (cast && cls == EINI_W_DTYPE && eini_word_is(s + 5, n - 5, word)) return EINI_W_CAST;
  }
  return EINI_W_FREE;
}

static ein_status eini_check_new_name(ein_ctx *ctx, const char *name) {
  eini_diag_reset(&ctx->diag, NULL, 0);
  if (!eini_is_name(name))
    return eini_fail(&ctx->diag, EIN_ERR_NAME, -1, 0, NULL, "'%s' is not a name",
                     name == NULL ? "" : name);
  ein_graph g;
  int id;
  memset(&g, 0, sizeof g);
  g.function = ctx->function;
  g.nfunction = (int)ctx->nfunction;
  g.monoid = ctx->monoid;
  g.nmonoid = (int)ctx->nmonoid;
  if (eini_word_class(&g, name, (int64_t)strlen(name), &id) == EINI_W_FREE) return EIN_OK;
  return eini_fail(&ctx->diag, EIN_ERR_NAME, -1, 0, NULL, "the name '%s' is taken", name);
}

// Room for one more registration, and its name; NULL when out of memory.
static void *eini_registry(ein_ctx *ctx, void *list, int64_t n, int64_t *cap, size_t size,
                           const char **name) {
  list = eini_grow(&ctx->arena, list, n, cap, size);
  *name = eini_strndup(&ctx->arena, *name, (int64_t)strlen(*name));
  if (list != NULL && *name != NULL) return list;
  eini_fail(&ctx->diag, EIN_ERR_NO_MEMORY, -1, 0, NULL, "%s", ein_status_text(EIN_ERR_NO_MEMORY));
  return NULL;
}

EIN_API ein_status ein_ctx_function(ein_ctx *ctx, const ein_function *f) {
  if (ctx == NULL || f == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_check_new_name(ctx, f->name));
  ein_dtype t = f->dtype == EIN_NONE ? EIN_F64 : f->dtype;
  if (f->fn == NULL || f->nargs < 1 || f->nargs > EINI_ARGS_MAX || !eini_dtype_ok(t) ||
      t == EIN_BOOL || ein_dtype_compute(t) != t) {
    return eini_fail(&ctx->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "function '%s': fn, 1 to 8 arguments, and one of i32 i64 f32 f64 c64 c128",
                     f->name);
  }
  const char *name = f->name;
  ein_function *p = (ein_function *)eini_registry(ctx, ctx->function, ctx->nfunction,
                                      &ctx->capfunction, sizeof *p, &name);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  ctx->function = p;
  p[ctx->nfunction] = *f;
  p[ctx->nfunction].dtype = t;
  p[ctx->nfunction++].name = name;
  return EIN_OK;
}

EIN_API ein_status ein_ctx_monoid(ein_ctx *ctx, const ein_monoid *m) {
  if (ctx == NULL || m == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_check_new_name(ctx, m->name));
  ein_dtype t = m->dtype == EIN_NONE ? EIN_F64 : m->dtype;
  if (m->merge_fn == NULL || m->nstate < 1 || m->nstate > 4 ||
      (m->nstate > 1 && (m->lift_fn == NULL || m->finish_fn == NULL)) ||
      (t != EIN_F32 && t != EIN_F64 && t != EIN_I32 && t != EIN_I64)) {
    return eini_fail(&ctx->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "monoid '%s': merge_fn, 1 to 4 states (several need lift_fn and finish_fn), "
                     "and one of i32 i64 f32 f64", m->name);
  }
  const char *name = m->name;
  ein_monoid *p = (ein_monoid *)eini_registry(ctx, ctx->monoid, ctx->nmonoid,
                                      &ctx->capmonoid, sizeof *p, &name);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  ctx->monoid = p;
  p[ctx->nmonoid] = *m;
  p[ctx->nmonoid].dtype = t;
  p[ctx->nmonoid++].name = name;
  return EIN_OK;
}

// What the first provider that says so does per second; NULL: not known.
static const ein_rates *eini_rates_of(const ein_ctx *ctx) {
  for (int i = 0; ctx != NULL && i < ctx->nkernels; i++) {
    if (ctx->kernels[i]->rates.copy_bw > 0) return &ctx->kernels[i]->rates;
  }
  return NULL;
}

static eini_diag *eini_diag_of(ein_ctx *ctx) { return ctx == NULL ? NULL : &ctx->diag; }

// A new graph with copies of the ctx's registrations; NULL when out of memory.
static ein_graph *eini_graph_new(const ein_ctx *ctx) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_graph *g = EINI_NEW(&arena, ein_graph, 1);
  if (g == NULL) return NULL;
  g->arena = arena;
  if (ctx == NULL || eini_graph_register(g, (int)ctx->nfunction, ctx->function, (int)ctx->nmonoid,
                                         ctx->monoid) == EIN_OK)
    return g;
  eini_graph_free(g);
  return NULL;
}

// The fold or registered monoid of that name.
static ein_status eini_fold_named(const ein_graph *g, eini_diag *diag, const char *name,
                                  int *fold) {
  *fold = eini_fold_find(name, (int64_t)strlen(name));
  for (int i = 0; *fold == EINI_FOLD_NONE && i < g->nmonoid; i++)
    if (strcmp(g->monoid[i].name, name) == 0) *fold = EINI_FOLD_USER + i;
  if (*fold != EINI_FOLD_NONE) return EIN_OK;
  return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL, "no monoid is called '%s'", name);
}

// ================================================================================================
// >>notation  NumPy strings and integer labels
// Takes "ij,jk->ik" and views; gives values: operands with their label sets, and the output's.
// Everything numpy.einsum(..., optimize=False) accepts, with the same result.
// ================================================================================================

// A factor of a product before it becomes (part of) a statement: an expression over operands whose
// maps act on the value's own labels only, so that a thousand operands stay a sparse problem.
typedef struct eini_value {
  int nlabel;
  int *label;           // distinct label ids, ascending
  int nop;
  int *op;              // tensors
  ein_zmap *map;        // rank(op) x nlabel
  eini_expr expr;       // root last; OPERAND numbers 0 .. nop-1; INDEX numbers are label ids
} eini_value;

// One term of the notation as written: labels (code points or integers), EIN_ELLIPSIS.
typedef struct eini_term {
  int n;
  int *label;
  int64_t *pos;         // byte of each label in the text, or -1
} eini_term;

typedef struct eini_label {
  int key;                // as written; -2-d: ellipsis axis d counted from the right
  int owner, owner_axis;  // operand and axis that gave the extent
  int last, last_axis;    // operand + 1 and axis that used the label last, and its extent
  int64_t extent, last_n;
} eini_label;

typedef struct eini_notation {
  eini_arena *arena;
  eini_diag *diag;
  int nin;
  eini_term *term;      // nin operands, then the output
  int has_out;
  int is_text;
  int nlabel;           // dense ids
  eini_label *label;
  int *slot;            // hash table of ids + 1
  int nslot;
  int nellipsis;        // broadcast axes
} eini_notation;

// A label as text, for messages and plans.
static const char *eini_label_text(int key, char *buf, size_t size, int is_text) {
  if (key < 0) {
    snprintf(buf, size, ".%d", -2 - key);
  } else if (!is_text) {
    snprintf(buf, size, "#%d", key);
  } else {
    static const int head[] = {0, 0xC0, 0xE0, 0xF0};
    int more = key < 0x80 ? 0 : key < 0x800 ? 1 : key < 0x10000 ? 2 : 3;
    char u[5] = {0};
    u[0] = (char)(head[more] | key >> 6 * more);
    for (int i = 1; i <= more; i++) u[i] = (char)(0x80 | (key >> 6 * (more - i) & 0x3F));
    snprintf(buf, size, "%s", u);
  }
  return buf;
}

// Splits the text into terms. Labels of all terms share two arrays, carved as terms end.
static ein_status eini_notation_scan(eini_notation *no, const char *s, int64_t n) {
  int64_t commas = 0;
  for (int64_t i = 0; i < n; i++) commas += s[i] == ',';
  if (n > ((int64_t)1 << 28))
    return eini_fail(no->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the expression is too long");
  no->term = EINI_NEW(no->arena, eini_term, commas + 2);
  int *label = EINI_NEW(no->arena, int, n + 1);
  int64_t *pos = EINI_NEW(no->arena, int64_t, n + 1);
  if (no->term == NULL || label == NULL || pos == NULL) return EIN_ERR_NO_MEMORY;
  int t = 0, ellipsis = 0;
  no->term[0].label = label;
  no->term[0].pos = pos;
  for (int64_t i = 0; i < n;) {
    if (s[i] == ' ') {  // no other white space, as in NumPy
      i++;
    } else if (s[i] == ',' || (s[i] == '-' && i + 1 < n && s[i + 1] == '>')) {
      if (no->has_out)
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, NULL, "the output is one term, the last");
      label += no->term[t].n;
      pos += no->term[t].n;
      t++;
      no->term[t].label = label;
      no->term[t].pos = pos;
      no->has_out = s[i] == '-';
      i += s[i] == '-' ? 2 : 1;
      ellipsis = 0;
    } else {
      int64_t used = 1, c = eini_utf8(s + i, n - i, &used);
      if (c == '.') {
        if (n - i < 3 || s[i + 1] != '.' || s[i + 2] != '.')
          return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, "three dots without spaces: ...",
                           "a lone '.' is not an ellipsis");
        if (ellipsis++)
          return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 3, NULL, "a second ellipsis in one term");
        c = EIN_ELLIPSIS;
        used = 3;
      } else if (c < 0) {
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, NULL, "invalid UTF-8");
      } else if (!eini_is_label(c)) {
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, used,
                         "labels are letters; terms are separated by ',', the output by '->'",
                         c < 32 || c == 127 ? "a control character is not a label"
                                            : "'%.*s' is not a label", (int)used, s + i);
      }
      eini_term *m = &no->term[t];
      m->label[m->n] = (int)c;
      m->pos[m->n++] = i;
      i += used;
    }
  }
  no->nin = no->has_out ? t : t + 1;
  return EIN_OK;
}

// The dense id of a label, made when new; -1 when out of room (cannot happen: nslot > labels).
static int eini_label_id(eini_notation *no, int key) {
  uint32_t h = (uint32_t)key * 0x9E3779B9u;
  for (uint32_t i = h ^ h >> 15;; i++) {
    int *slot = &no->slot[i & (uint32_t)(no->nslot - 1)];
    if (*slot == 0) {
      no->label[no->nlabel].key = key;
      no->label[no->nlabel].extent = -1;
      *slot = ++no->nlabel;
      return no->nlabel - 1;
    }
    if (no->label[*slot - 1].key == key) return *slot - 1;
  }
}

// An axis meets its label: equal extents, or 1 against n between operands.
static ein_status eini_label_meet(eini_notation *no, int id, int k, int axis, int64_t n,
                                  int64_t pos) {
  eini_label *l = &no->label[id];
  char name[24];
  if (l->last == k + 1 && l->last_n != n) {
    eini_label_text(l->key, name, sizeof name, no->is_text);
    return eini_fail(no->diag, EIN_ERR_SHAPE, pos, 1, NULL,
                     "index '%s' repeats in operand %d: axis %d has extent %lld, axis %d has %lld",
                     name, k, l->last_axis, (long long)l->last_n, axis, (long long)n);
  }
  l->last = k + 1;
  l->last_axis = axis;
  l->last_n = n;
  if (l->extent < 0 || (l->extent == 1 && n != 1)) {
    l->extent = n;
    l->owner = k;
    l->owner_axis = axis;
    return EIN_OK;
  }
  if (n == l->extent || n == 1) return EIN_OK;
  eini_label_text(l->key, name, sizeof name, no->is_text);
  return eini_fail(no->diag, EIN_ERR_SHAPE, pos, 1, NULL,
                   "index '%s': operand %d axis %d has extent %lld, operand %d axis %d has %lld",
                   name, l->owner, l->owner_axis, (long long)l->extent, k, axis, (long long)n);
}

// The ids of a term's axes, ellipsis spelled out; ids has room for rank entries.
static ein_status eini_term_axes(eini_notation *no, int k, int rank, int *ids) {
  const eini_term *m = &no->term[k];
  int dots = 0, at = 0;
  for (int i = 0; i < m->n; i++) dots += m->label[i] == EIN_ELLIPSIS;
  int missing = rank - (m->n - dots);
  int64_t where = m->n > 0 ? m->pos[0] : (no->is_text ? 0 : -1);
  if (missing < 0 || (missing > 0 && !dots))
    return eini_fail(no->diag, EIN_ERR_SHAPE, where, m->n > 0 ? m->n : 1,
                     missing > 0 ? "an ellipsis '...' stands for the other axes" : NULL,
                     "operand %d has %d %s, its term names %d", k, rank,
                     rank == 1 ? "axis" : "axes", m->n - dots);
  for (int i = 0; i < m->n; i++) {
    if (m->label[i] != EIN_ELLIPSIS) {
      ids[at++] = eini_label_id(no, m->label[i]);
      continue;
    }
    for (int d = missing - 1; d >= 0; d--) ids[at++] = eini_label_id(no, -2 - d);
    if (missing > no->nellipsis) no->nellipsis = missing;
  }
  return EIN_OK;
}

static ein_status eini_notation_tables(eini_notation *no, const ein_ztensor *in) {
  int64_t total = 8;
  for (int k = 0; k < no->nin; k++) total += no->term[k].n + in[k].rank;
  total += no->has_out ? no->term[no->nin].n : 0;
  int64_t slots = 16;
  while (slots < 2 * total) slots *= 2;
  if (slots > ((int64_t)1 << 30)) return EIN_ERR_TOO_LARGE;
  no->nslot = (int)slots;
  no->slot = EINI_NEW(no->arena, int, slots);
  no->label = EINI_NEW(no->arena, eini_label, total);
  if (no->slot == NULL || no->label == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

// Shell sort: lists are short, and nearly always sorted.
static void eini_sort_ints(int *v, int64_t n) {
  int64_t gap = 1;
  while (gap < n / 3) gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3) {
    for (int64_t i = gap; i < n; i++) {
      int x = v[i];
      int64_t j = i;
      for (; j >= gap && v[j - gap] > x; j -= gap) v[j] = v[j - gap];
      v[j] = x;
    }
  }
}

// Sorts, and drops what repeats; gives the number left.
static int eini_sort_unique(int *v, int n) {
  int kept = 0;
  eini_sort_ints(v, n);
  for (int i = 0; i < n; i++)
    if (kept == 0 || v[kept - 1] != v[i]) v[kept++] = v[i];
  return kept;
}

static int eini_find_sorted(const int *v, int n, int x) {
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if (v[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && v[lo] == x ? lo : -1;
}

// A tensor read through a list of axis labels. Axes of extent 1 under a longer label broadcast.
static ein_status eini_value_axes(eini_notation *no, int tensor, int rank, const int64_t *shape,
                                  const int *ids, eini_value *v) {
  memset(v, 0, sizeof *v);
  v->label = EINI_NEW(no->arena, int, rank);
  v->op = EINI_NEW(no->arena, int, 1);
  v->map = EINI_NEW(no->arena, ein_zmap, 1);
  if (v->label == NULL || v->op == NULL || v->map == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int a = 0; a < rank; a++)
    if (shape == NULL || shape[a] == no->label[ids[a]].extent) v->label[n++] = ids[a];
  v->nlabel = eini_sort_unique(v->label, n);
  v->nop = 1;
  v->op[0] = tensor;
  EINI_TRY(eini_zmap_new(no->arena, rank, v->nlabel, v->map));
  for (int a = 0; a < rank; a++) {
    if (shape != NULL && shape[a] != no->label[ids[a]].extent) continue;
    v->map->coef[(int64_t)a * v->nlabel + eini_find_sorted(v->label, v->nlabel, ids[a])] = 1;
  }
  return EIN_OK;
}

// The output's axes: as written, or the ellipsis axes and then the labels that occur once.
static ein_status eini_output_axes(eini_notation *no, const int *count, int allow_repeats,
                                   int **axes, int *rank) {
  int *ids = EINI_NEW(no->arena, int,
                      no->nellipsis + (no->has_out ? no->term[no->nin].n : no->nlabel) + 1);
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  *axes = ids;
  if (!no->has_out) {
    for (int d = no->nellipsis - 1; d >= 0; d--) ids[n++] = eini_label_id(no, -2 - d);
    int *once = EINI_NEW(no->arena, int, no->nlabel);
    if (once == NULL) return EIN_ERR_NO_MEMORY;
    int m = 0;
    for (int i = 0; i < no->nlabel; i++)
      if (no->label[i].key >= 0 && count[i] == 1) once[m++] = no->label[i].key;
    eini_sort_ints(once, m);
    for (int i = 0; i < m; i++) ids[n++] = eini_label_id(no, once[i]);
    *rank = n;
    return EIN_OK;
  }
  const eini_term *o = &no->term[no->nin];
  int known = no->nlabel, dots = 0;
  char *seen = EINI_NEW(no->arena, char, known);
  if (seen == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < o->n; i++) {
    if (o->label[i] == EIN_ELLIPSIS) {
      dots = 1;
      for (int d = no->nellipsis - 1; d >= 0; d--) ids[n++] = eini_label_id(no, -2 - d);
      continue;
    }
    int id = eini_label_id(no, o->label[i]);
    char name[24];
    eini_label_text(o->label[i], name, sizeof name, no->is_text);
    if (id >= known) {
      no->nlabel = known;  // forget it: the tables have no room for strangers
      return eini_fail(no->diag, EIN_ERR_NAME, o->pos[i], 1, NULL,
                       "output index '%s' is in no operand", name);
    }
    if (seen[id]++ && !allow_repeats)
      return eini_fail(no->diag, EIN_ERR_NAME, o->pos[i], 1,
                       "the C descriptor's 'rest' says what happens off the diagonal",
                       "output index '%s' is repeated", name);
    ids[n++] = id;
  }
  if (!dots && no->nellipsis > 0)
    return eini_fail(no->diag, EIN_ERR_SHAPE, o->n > 0 ? o->pos[0] : -1, o->n,
                     "write the ellipsis in the output too",
                     "the output has no ellipsis for %d broadcast axes", no->nellipsis);
  *rank = n;
  return EIN_OK;
}

static ein_status eini_fail_count(const eini_notation *no, const ein_einsum_desc *d) {
  return eini_fail(no->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                   "the expression names %d operands, %d are given", no->nin, d->nin);
}

// Reads the notation of a descriptor. value[0..nin) are the operands (tensor numbers 0..nin-1),
// axes/rank describe the output.
static ein_status eini_notation_read(eini_notation *no, const ein_einsum_desc *d,
                                     eini_value **value, int **axes, int *rank) {
  if (d->expr != NULL) {
    no->is_text = 1;
    EINI_TRY(eini_notation_scan(no, d->expr, (int64_t)strlen(d->expr)));
  } else {
    no->nin = d->nin;
    no->term = EINI_NEW(no->arena, eini_term, d->nin + 1);
    if (no->term == NULL) return EIN_ERR_NO_MEMORY;
    no->has_out = d->labels[d->nin] != NULL;
    for (int k = 0; k < d->nin + no->has_out; k++) {
      eini_term *m = &no->term[k];
      m->n = d->nlabels[k] < 0 || d->labels[k] == NULL ? 0 : d->nlabels[k];
      m->label = EINI_NEW(no->arena, int, m->n);
      m->pos = EINI_NEW(no->arena, int64_t, m->n);
      if (m->label == NULL || m->pos == NULL) return EIN_ERR_NO_MEMORY;
      int dots = 0;
      for (int i = 0; i < m->n; i++) {
        m->label[i] = d->labels[k][i];
        m->pos[i] = -1;
        dots += m->label[i] == EIN_ELLIPSIS;
        if (m->label[i] < EIN_ELLIPSIS || dots > 1)
          return eini_fail(no->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                           "labels of operand %d: integers >= 0, at most one ellipsis", k);
      }
    }
  }
  if (no->nin != d->nin) return eini_fail_count(no, d);
  EINI_TRY(eini_notation_tables(no, d->in));
  *value = EINI_NEW(no->arena, eini_value, no->nin);
  int **ids = EINI_NEW(no->arena, int *, no->nin);
  if (*value == NULL || ids == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < no->nin; k++) {
    const ein_ztensor *x = &d->in[k];
    ids[k] = EINI_NEW(no->arena, int, x->rank);
    if (ids[k] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_term_axes(no, k, x->rank, ids[k]));
    int first = -1;  // axis of the ellipsis' first label, to place the caret
    for (int a = 0; a < x->rank; a++) {
      if (no->label[ids[k][a]].key < 0 && first < 0) first = a;
      int at = first < 0 ? a : no->label[ids[k][a]].key < 0 ? first : a - (x->rank - no->term[k].n);
      EINI_TRY(eini_label_meet(no, ids[k][a], k, a, x->shape[a],
                               at >= 0 && at < no->term[k].n ? no->term[k].pos[at] : -1));
    }
  }
  int *count = EINI_NEW(no->arena, int, no->nlabel);
  if (count == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < no->nin; k++) {
    for (int a = 0; a < d->in[k].rank; a++) count[ids[k][a]]++;
    EINI_TRY(eini_value_axes(no, k, d->in[k].rank, d->in[k].shape, ids[k], &(*value)[k]));
  }
  return eini_output_axes(no, count, d->rest != EIN_REST_ERROR, axes, rank);
}

// ================================================================================================
// >>syntax  words, tokens, and maps: expressions over operands
// Takes a text; gives tokens, and for the map of an einsum nodes of eini_expr. After a mistake the
// token is EINI_T_BAD, which no rule accepts.
// ================================================================================================

#define EINI_NODES_MAX ((int64_t)1 << 21)  // of a text

enum {  // tokens; a single character stands for itself
  EINI_T_END = 0, EINI_T_EOL = 256, EINI_T_NAME, EINI_T_NUM, EINI_T_LE, EINI_T_GE, EINI_T_EQ,
  EINI_T_NE, EINI_T_BAD
};

typedef struct eini_parser {
  eini_arena *arena;
  eini_diag *diag;
  const ein_graph *g;     // its registered functions and monoids
  struct eini_names *names;  // of a program, whose text this is; NULL for maps
  const char *s;
  int64_t n, at;
  int tok, exact;         // the current token
  int64_t pos, len, end;  // end: of the token before
  int64_t ival, open;     // open: position of the outermost open bracket
  double re;
  int brackets, unclosed, depth, max_depth;
  ein_status st, status;  // of the current statement; of the text
} eini_parser;

#define EINI_AT(v) (v)->pos, (v)->len

EINI_PRINTF(6, 7)
static ein_status eini_perr(eini_parser *p, ein_status st, int64_t pos, int64_t len,
                            const char *hint, const char *format, ...) {
  p->tok = EINI_T_BAD;
  if (p->st != EIN_OK) return p->st;  // one mistake per statement; the rest is noise
  p->st = st;
  if (p->status == EIN_OK || st == EIN_ERR_NO_MEMORY) p->status = st;
  va_list args;
  va_start(args, format);
  eini_vfail(p->diag, st, pos, len, hint, format, args);
  va_end(args);
  return st;
}

static ein_status eini_pmem(eini_parser *p) {
  return eini_perr(p, EIN_ERR_NO_MEMORY, -1, 0, NULL, "out of memory");
}

// Length of a name in messages: long ones are cut between code points.
static int eini_cut(const char *s, int64_t n) {
  int k = n <= 60 ? (int)n : 60;
  while (k < n && k > 0 && ((unsigned char)s[k] & 0xC0) == 0x80) k--;
  return k;
}

// ---- tokens ----

static unsigned char eini_byte(const eini_parser *p, int64_t i) {
  return i < p->n ? (unsigned char)p->s[i] : 0;
}

static int eini_is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

// m * 10^e without the C library, whose result depends on the locale. Exact when both factors are.
static double eini_scale10(uint64_t m, int64_t e) {
  long double x = (long double)m, f = 1, b = 10;
  double exact = 1;
  if (e >= -22 && e <= 22 && m >> 53 == 0) {
    for (int64_t i = e < 0 ? -e : e; i > 0; i--) exact *= 10;
    return e < 0 ? (double)m / exact : (double)m * exact;
  }
  for (; e > 256 && x > 0 && x <= LDBL_MAX; e -= 256) x *= 1e256L;
  for (; e < -256 && x > 0; e += 256) x /= 1e256L;
  if (x <= 0 || x > LDBL_MAX) return (double)x;
  for (int64_t i = e < 0 ? -e : e; i > 0; i >>= 1, b = i > 0 ? b * b : b) f *= i & 1 ? b : 1;
  return (double)(e < 0 ? x / f : x * f);
}

static void eini_lex_number(eini_parser *p) {
  uint64_t m = 0;
  int64_t e = 0, x = 0, k;
  int digits = 0, real = 0, dropped = 0;  // digits beyond 19 only move the point
  for (;; p->at++) {
    unsigned char c = eini_byte(p, p->at);
    if (c == '.' && !real && eini_is_digit(eini_byte(p, p->at + 1))) {
      real = 1;
    } else if (!eini_is_digit(c)) {
      break;
    } else if (digits < 19) {
      m = m * 10 + (uint64_t)(c - '0');
      digits += m > 0;
      e -= real;
    } else {
      dropped = 1;
      e += !real;
    }
  }
  if (eini_byte(p, p->at) == 'e' || eini_byte(p, p->at) == 'E') {
    int minus = eini_byte(p, k = p->at + 1) == '-';
    if (minus || eini_byte(p, k) == '+') k++;
    for (; eini_is_digit(eini_byte(p, k)); p->at = ++k, real = 2)
      if (x < 100000000) x = x * 10 + (p->s[k] - '0');
    e += minus ? -x : x;
  }
  p->exact = !real && !dropped && m <= (uint64_t)INT64_MAX;
  p->ival = p->exact ? (int64_t)m : 0;
  p->re = p->exact ? (double)m : eini_scale10(m, e);
}

// Reads a code point beyond ASCII, of a name or, unless name, of a comment; 0 after a mistake.
static int eini_lex_point(eini_parser *p, int name) {
  int64_t used, u = eini_utf8(p->s + p->at, p->n - p->at, &used);
  int blank = u == 0x1680 || (u >= 0x2000 && u <= 0x200A) || u == 0x2028 || u == 0x2029 ||
              u == 0x202F || u == 0x205F || u == 0x3000 || u == 0xFEFF;
  if (u < 0 || eini_noncharacter(u) || (name && (u < 0xA1 || blank)))
    eini_perr(p, EIN_ERR_SYNTAX, p->at, used, NULL,
              u < 0 ? "the text is not UTF-8 here" : "this character is not in the language");
  p->at += used;
  return p->tok != EINI_T_BAD;
}

static void eini_lex_name(eini_parser *p) {
  for (p->tok = EINI_T_NAME; p->at < p->n;) {
    unsigned char c = eini_byte(p, p->at);
    if (c >= 0x80) {
      if (!eini_lex_point(p, 1)) return;
    } else if (eini_is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z')) {
      p->at++;
    } else {
      return;
    }
  }
}

// Skips blanks, comments, joined lines, and inside brackets the ends of lines; 0 after a mistake.
static int eini_lex_skip(eini_parser *p) {
  p->tok = EINI_T_END;
  for (int comment = 0; p->at < p->n; p->at++) {
    unsigned char c = eini_byte(p, p->at), d = eini_byte(p, p->at + 1);
    if (c == '\n') comment = 0;
    if (comment && c >= 0x80) {
      if (!eini_lex_point(p, 0)) return 0;
      p->at--;
    } else if (comment ? c >= 32 && c != 127 : c == '#') {
      comment = 1;
    } else if (c == '\\' && d == '\n') {
      p->at++;
    } else if (c == '\\' && d == '\r' && eini_byte(p, p->at + 2) == '\n') {
      p->at += 2;
    } else if (c != ' ' && c != '\t' && c != '\r' && !(c == '\n' && p->brackets > 0)) {
      return 1;
    }
  }
  return 1;
}

static void eini_token(eini_parser *p) {
  p->end = p->pos + p->len;
  int clean = eini_lex_skip(p);
  p->pos = p->at;
  p->len = 0;
  if (!clean || p->at >= p->n) return;
  unsigned char c = eini_byte(p, p->at), d = eini_byte(p, p->at + 1);
  if (c == '_' || c >= 0x80 || ((c | 32) >= 'a' && (c | 32) <= 'z')) {
    eini_lex_name(p);
  } else if (eini_is_digit(c) || (c == '.' && eini_is_digit(d))) {
    p->tok = EINI_T_NUM;
    eini_lex_number(p);
  } else if ((c == '<' || c == '>' || c == '=' || c == '!') && d == '=') {
    p->tok = c == '<' ? EINI_T_LE : c == '>' ? EINI_T_GE : c == '=' ? EINI_T_EQ : EINI_T_NE;
    p->at += 2;
  } else if (c != 0 && strchr("\n;()[],|:=+-*/^<>", c) != NULL) {
    p->tok = c == '\n' || c == ';' ? (int)EINI_T_EOL : (int)c;
    p->at++;
    if ((c == '(' || c == '[') && p->brackets++ == 0) p->open = p->pos;
    if ((c == ')' || c == ']') && p->brackets > 0) p->brackets--;
  } else {
    const char *hint = c == '\\' ? "'\\' joins two lines as the last byte of the first" :
                       c == '&' ? "write and" : c == '!' ? "write not" :
                       c == '%' ? "write mod(x, y)" :
                       c == '?' ? "a choice is where(c, x, y)" : NULL;
    eini_perr(p, EIN_ERR_SYNTAX, p->at++, 1, hint,
              c < 32 || c == 127 ? "a control character (0x%02x) in the text"
                                 : "'%c' is not in the language", c);
  }
  p->len = p->at - p->pos;
}

// Reads the next token; after a mistake there is none.
static void eini_lex(eini_parser *p) {
  if (p->st == EIN_OK) eini_token(p);
}

// The current token is not what is wanted.
static void eini_unexpected(eini_parser *p, const char *want, const char *hint) {
  int eol = p->tok == EINI_T_END || p->tok == EINI_T_EOL;
  int later = !eol && p->end < p->pos && memchr(p->s + p->end, '\n', (size_t)(p->pos - p->end));
  if (p->tok == EINI_T_BAD) return;  // reported by the lexer
  if (p->brackets > 0 && (eol || later || p->tok == '=')) {
    p->unclosed = 1;
    eini_perr(p, EIN_ERR_SYNTAX, p->open, 1, NULL, "this '%c' is never closed", p->s[p->open]);
  } else if (eol) {
    eini_perr(p, EIN_ERR_SYNTAX, p->pos, 1, hint, "%s expected before the end of the line", want);
  } else {
    eini_perr(p, EIN_ERR_SYNTAX, p->pos, p->len, hint, "%s expected, not '%.*s'", want,
              eini_cut(p->s + p->pos, p->len), p->s + p->pos);
  }
}

static int eini_accept(eini_parser *p, int tok) {
  return p->tok == tok ? (eini_lex(p), 1) : 0;
}

static void eini_expect(eini_parser *p, int tok, const char *want) {
  if (!eini_accept(p, tok)) eini_unexpected(p, want, NULL);
}

static int eini_word(const eini_parser *p, const char *word) {
  return p->tok == EINI_T_NAME && eini_word_is(p->s + p->pos, p->len, word);
}

// Is the current token one of n words? Its number, or -1.
static int eini_one_of(const eini_parser *p, const char *const *words, int n) {
  while (--n >= 0 && !eini_word(p, words[n])) continue;
  return n;
}

static void eini_parser_init(eini_parser *p, eini_arena *arena, eini_diag *diag, const ein_graph *g,
                             const char *text, int64_t len, int max_depth) {
  memset(p, 0, sizeof *p);
  p->arena = arena;
  p->diag = diag;
  p->g = g;
  p->s = text;
  p->n = len;
  p->max_depth = max_depth;
  p->at = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  eini_lex(p);
}

// One level deeper into an expression; 0 when that is too deep.
static int eini_deeper(eini_parser *p) {
  if (++p->depth > p->max_depth)
    eini_perr(p, EIN_ERR_TOO_LARGE, p->pos, 1, NULL, "nested deeper than %d", p->max_depth);
  return p->st == EIN_OK;
}

// ---- operators, literals and calls ----

// Levels: 0 or, 1 and, 2 not and comparisons, 3 sums, 4 terms, 5 unary, 6 powers.
typedef struct eini_infix_row {
  const char *text;
  int tok, level, op, inverse;
} eini_infix_row;

static const eini_infix_row eini_infixes[] = {
    {" or ", 'o', 0, EINI_OP_OR, 0}, {" and ", 'a', 1, EINI_OP_AND, 0},
    {"<", '<', 2, EINI_OP_LT, 0},    {"<=", EINI_T_LE, 2, EINI_OP_LE, 0},
    {">", '>', 2, EINI_OP_GT, 0},    {">=", EINI_T_GE, 2, EINI_OP_GE, 0},
    {"+", '+', 3, EINI_OP_ADD, 0},   {"-", '-', 3, EINI_OP_SUB, 1},
    {"*", '*', 4, EINI_OP_MUL, 0},   {"/", '/', 4, EINI_OP_DIV, 1},
    {"^", '^', 6, EINI_OP_POW, 0},   {"==", EINI_T_EQ, 2, EINI_OP_EQ, 0},
    {"!=", EINI_T_NE, 2, EINI_OP_NE, 0}};

#define EINI_INFIXES 13

// Reads the operator of a level, below 5; NULL when there is none. nth: of a list on that level.
static const eini_infix_row *eini_accept_infix(eini_parser *p, int level, int nth) {
  int tok = eini_word(p, "or") ? 'o' : eini_word(p, "and") ? 'a' : p->tok, i = 0;
  while (i < EINI_INFIXES && (eini_infixes[i].tok != tok || eini_infixes[i].level != level)) i++;
  if (i == EINI_INFIXES) return NULL;
  if (level == 2 && nth > 0)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(p), "write a < b and b < c", "chained comparison");
  eini_lex(p);
  return &eini_infixes[i];
}

typedef struct eini_literal {
  int64_t pos, len, ival;
  double re;
  int truth, exact;        // true or false; an integer
} eini_literal;

// Reads a number or constant; 0 when there is none.
static int eini_accept_literal(eini_parser *p, eini_literal *v) {
  static const char *const words[] = {"inf", "nan", "pi", "false", "true"};
  const double values[] = {(double)INFINITY, (double)NAN, 3.14159265358979323846, 0, 1};
  int word = eini_one_of(p, words, 5);
  if (p->tok != EINI_T_NUM && word < 0) return 0;
  v->pos = p->pos;
  v->len = p->len;
  v->truth = word >= 3;
  v->exact = word < 0 && p->exact;
  v->ival = word < 0 ? p->ival : word == 4;
  v->re = word < 0 ? p->re : values[word];
  eini_lex(p);
  if (word < 0 && p->tok == EINI_T_NAME && p->pos == p->end)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(p),
              eini_word(p, "j") || eini_word(p, "J")
                  ? "1j is written complex(0,1), a product with *: 2*j"
                  : "write the product with *: 2*h",
              "a name directly after a number");
  return 1;
}

// A word of the language stands where a value should.
static void eini_no_value(eini_parser *p, int cls) {
  eini_unexpected(p, "an expression", p->tok == '*' ? "powers are written ^" :
                  p->tok == '/' ? "the quotient rounded down is div(x, y)" :
                  p->tok == EINI_T_EOL ? "lines are joined inside ( ) and by '\\' at their end" :
                  cls == EINI_W_DTYPE ? "conversions are written cast_f32(x)" : NULL);
}

// An expression being emitted as nodes. Functions give the number of a node, -1 after a mistake.
typedef struct eini_emit {
  eini_parser *p;
  eini_arena *arena;
  eini_expr e;
  int nin, nindex;         // operands and indices a map may name
  const eini_index *index;
} eini_emit;

static int eini_emit_op(eini_emit *em, int op, int64_t pos, int x, int y) {
  if (x < 0 || y < 0) return -1;
  int id = eini_expr_add(em->arena, &em->e, op, pos, x, y, 0);
  if (id < 0) eini_pmem(em->p);
  return id;
}

static int eini_emit_literal(eini_emit *em, const eini_literal *v) {
  int id = v->truth ? eini_expr_bool(em->arena, &em->e, v->pos, (int)v->ival) :
           v->exact ? eini_expr_int(em->arena, &em->e, v->pos, v->ival)
                    : eini_expr_real(em->arena, &em->e, v->pos, v->re);
  if (id < 0) eini_pmem(em->p);
  return id;
}

// A word of the text that is called with n arguments.
typedef struct eini_called {
  const char *s;
  int64_t pos, len, full;  // full: the length of the whole call
  int cls, word, n;
} eini_called;

static void eini_wrong_count(eini_parser *p, const eini_called *f, int want, const char *hint) {
  eini_perr(p, EIN_ERR_SYNTAX, f->pos, f->full, hint, "%.*s takes %d argument%s, not %d",
            eini_cut(f->s, f->len), f->s, want, want == 1 ? "" : "s", f->n);
}

// near: a name like it, or NULL. Names that other languages have are known.
static void eini_no_function(eini_parser *p, const eini_called *f, const char *near) {
  static const char *const foreign[] = {
      "if", "a choice is where(c, x, y)", "ln", "log(x) is the natural logarithm",
      "arctan2", "write atan2(y, x)", "avg", "write mean[j](x)", "fabs", "write abs(x)"};
  const char *hint = near;
  for (int i = 0; i < 10; i += 2)
    if (eini_word_is(f->s, f->len, foreign[i])) hint = foreign[i + 1];
  eini_perr(p, EIN_ERR_NAME, f->pos, f->len, hint, "'%.*s' is not a function",
            eini_cut(f->s, f->len), f->s);
}

// The number of arguments of a function or conversion; -1 when the word is none.
static int eini_call_arity(const ein_graph *g, int cls, int word) {
  return cls == EINI_W_OP ? eini_ops[word].args : cls == EINI_W_CAST ? 1 :
         cls == EINI_W_FUNCTION ? g->function[word].nargs : -1;
}

// A call with the right number of arguments.
static int eini_emit_call(eini_emit *em, const eini_called *f, const int *arg) {
  int id = f->cls == EINI_W_FUNCTION
               ? eini_expr_call(em->arena, &em->e, f->pos, f->word, f->n, arg)
               : eini_expr_add(em->arena, &em->e, f->cls == EINI_W_CAST ? EINI_OP_CAST : f->word,
                               f->pos, arg[0], arg[1], arg[2]);
  if (id < 0) eini_pmem(em->p);
  else if (f->cls == EINI_W_CAST) em->e.node[id].dtype = (unsigned char)f->word;
  return id;
}

// ---- maps ----

static int eini_map_expr(eini_emit *em, int level);  // expressions nest

// An operand; in a statement also a param or the value of an index.
static int eini_map_name(eini_emit *em, const eini_called *f) {
  const ein_graph *g = em->p->g;
  int k = -1, ok = f->s[0] == 'x' && f->len >= 2 && f->len < 11 && (f->s[1] != '0' || f->len == 2);
  for (int64_t i = 1; i < f->len && ok; i++) {
    ok = eini_is_digit((unsigned char)f->s[i]);
    k = (k < 0 ? 0 : k * 10) + (f->s[i] - '0');
  }
  if (ok && k < em->nin) return eini_emit_op(em, EINI_OP_OPERAND, f->pos, k, 0);
  for (k = 0; k < em->nindex; k++) {
    if (eini_word_is(f->s, f->len, em->index[k].name))
      return eini_emit_op(em, EINI_OP_INDEX, f->pos, k, 0);
  }
  for (k = 0; k < g->nparam; k++) {
    if (eini_word_is(f->s, f->len, g->param[k].name))
      return eini_emit_op(em, EINI_OP_PARAM, f->pos, k, 0);
  }
  eini_perr(em->p, EIN_ERR_NAME, f->pos, f->len, NULL,
            "'%.*s' is not an operand: there are x0 to x%d", eini_cut(f->s, f->len), f->s,
            em->nin - 1);
  return -1;
}

static void eini_not_scalar(eini_parser *p, const eini_called *f) {
  eini_perr(p, EIN_ERR_SYNTAX, f->pos, f->full, "operands are written x0, x1, ..",
            "a map is an expression over scalars");
}

// A call; the name is read.
static int eini_map_call(eini_emit *em, eini_called *f) {
  eini_parser *p = em->p;
  int list = f->cls == EINI_W_FOLD && (f->word == EINI_MAX || f->word == EINI_MIN);
  int op = f->word == EINI_MAX ? EINI_OP_MAX : EINI_OP_MIN, arg[EINI_ARGS_MAX] = {0};
  int want = eini_call_arity(p->g, f->cls, f->word);
  if (!eini_accept(p, '('))
    eini_perr(p, EIN_ERR_NAME, f->pos, f->len, NULL,
              "'%.*s' is a word of the language: '(' must follow", eini_cut(f->s, f->len), f->s);
  if (p->tok == ')') eini_unexpected(p, "an expression", NULL);
  do {
    int64_t pos = p->pos;
    int x = eini_map_expr(em, 0);
    if (list && f->n > 0) arg[0] = eini_emit_op(em, op, pos, arg[0], x);
    else if (f->n < EINI_ARGS_MAX) arg[f->n] = x;
    f->n++;
  } while (eini_accept(p, ','));
  eini_expect(p, ')', "')' or an operator");
  f->full = p->end - f->pos;
  if (p->st != EIN_OK || (list && f->n > 1)) return arg[0];
  if (want == f->n) return eini_emit_call(em, f, arg);
  if (want >= 0) eini_wrong_count(p, f, want, NULL);
  else if (f->cls == EINI_W_FREE) eini_no_function(p, f, NULL);
  else eini_not_scalar(p, f);
  return -1;
}

static int eini_map_primary(eini_emit *em) {
  eini_parser *p = em->p;
  eini_called f = {p->s + p->pos, p->pos, p->len, p->len, EINI_W_WORD, 0, 0};
  eini_literal c;
  if (eini_accept_literal(p, &c)) return eini_emit_literal(em, &c);
  if (eini_accept(p, '(')) {
    int x = eini_map_expr(em, 0);
    eini_expect(p, ')', "')' or an operator");
    return x;
  }
  if (p->tok == EINI_T_NAME) f.cls = eini_word_class(p->g, f.s, f.len, &f.word);
  if (f.cls == EINI_W_WORD || f.cls == EINI_W_DTYPE) eini_no_value(p, f.cls);
  eini_lex(p);
  if (p->tok == '[') eini_not_scalar(p, &f);
  if (p->st != EIN_OK) return -1;
  return f.cls != EINI_W_FREE || p->tok == '(' ? eini_map_call(em, &f) : eini_map_name(em, &f);
}

// Signs, powers, and not, which stands on level 2.
static int eini_map_unary(eini_emit *em, int level) {
  eini_parser *p = em->p;
  int64_t pos = p->pos;
  int x, minus = p->tok == '-';
  if (em->e.n > EINI_NODES_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, pos, 1, NULL, "the map has too many parts");
  if (!eini_deeper(p)) return -1;
  if (level == 2) {
    eini_lex(p);
    x = eini_emit_op(em, EINI_OP_NOT, pos, eini_map_expr(em, 2), 0);
  } else if (eini_accept(p, '+') || eini_accept(p, '-')) {
    x = eini_map_unary(em, 5);
    if (minus) x = eini_emit_op(em, EINI_OP_NEG, pos, x, 0);
  } else {
    x = eini_map_primary(em);
    if (eini_accept(p, '^')) {
      pos = p->pos;
      x = eini_emit_op(em, EINI_OP_POW, pos, x, eini_map_unary(em, 5));
    }
  }
  p->depth--;
  return x;
}

static int eini_map_expr(eini_emit *em, int level) {
  eini_parser *p = em->p;
  if (level == 5 || (level == 2 && eini_word(p, "not"))) return eini_map_unary(em, level);
  int x = eini_map_expr(em, level + 1), n = 0;
  for (const eini_infix_row *op; (op = eini_accept_infix(p, level, n)) != NULL; n++) {
    int64_t pos = p->pos;
    x = eini_emit_op(em, op->op, pos, x, eini_map_expr(em, level + 1));
  }
  return x;
}

// Parses one expression in which x0 .. x{nin-1} are operands, params have their names, and indices
// those in index. The diag's text must be text.
static ein_status eini_parse_map(ein_graph *g, eini_diag *d, const char *text, int nin, int nindex,
                                 const eini_index *index, eini_expr *e) {
  eini_parser p;
  eini_emit em;
  eini_parser_init(&p, &g->arena, d, g, text, (int64_t)strlen(text), 256);
  memset(&em, 0, sizeof em);
  em.p = &p;
  em.arena = &g->arena;
  em.nin = nin;
  em.nindex = nindex;
  em.index = index;
  eini_map_expr(&em, 0);
  if (p.tok != EINI_T_END) eini_unexpected(&p, "an operator or the end", NULL);
  *e = em.e;
  return p.st;
}

// ================================================================================================
// >>print  a graph as text
// Takes a graph; gives statements in the notation of programs, temporaries under names of their
// own. Writes as snprintf does: what does not fit is cut, the whole length is counted.
// ================================================================================================

typedef struct eini_text {
  char *buf;
  size_t size, at;
  int nodes;               // of an expression so far: shared nodes could repeat without end
  int cut;                 // an expression was too long or too deep
  int numbered;            // operands are written $0, $1, .. instead of what is read of them
} eini_text;

static eini_text eini_text_of(char *buf, size_t size) {
  eini_text t = {buf, buf == NULL ? 0 : size, 0, 0, 0, 0};
  if (t.size > 0) buf[0] = 0;
  return t;
}

EINI_PRINTF(2, 3)
static void eini_say(eini_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = t->at < t->size ? t->size - t->at : 0;
  int n = vsnprintf(room > 0 ? t->buf + t->at : NULL, room, format, args);
  va_end(args);
  if (n > 0) t->at += (size_t)n;
}

static const char *eini_fold_name(const ein_graph *g, int fold) {
  return fold >= EINI_FOLD_USER ? g->monoid[fold - EINI_FOLD_USER].name : eini_folds[fold].name;
}

// One coordinate, like 2*i+j-1.
static void eini_say_row(eini_text *t, const eini_stmt *s, const ein_zmap *m, int r) {
  int terms = 0;
  for (int i = 0; i < m->cols; i++) {
    int64_t c = m->coef[(int64_t)r * m->cols + i];
    if (c == 0) continue;
    eini_say(t, "%s", c == -1 ? "-" : terms > 0 && c > 0 ? "+" : "");
    if (c != 1 && c != -1) eini_say(t, "%lld*", (long long)c);
    eini_say(t, "%s", s->index[i].name);
    terms++;
  }
  if (m->offset[r] != 0 || terms == 0)
    eini_say(t, "%s%lld", terms > 0 && m->offset[r] > 0 ? "+" : "", (long long)m->offset[r]);
}

static void eini_say_access(eini_text *t, const ein_graph *g, const eini_stmt *s, int k) {
  const ein_zmap *m = k < 0 ? &s->out_map : &s->proj[k];
  eini_say(t, "%s", g->tensor[k < 0 ? s->out : s->operand[k]].name);
  for (int r = 0; r < m->rows; r++) {
    int var = -1, terms = m->offset[r] != 0;
    eini_say(t, r > 0 ? "," : "[");
    eini_say_row(t, s, m, r);
    for (int c = 0; k < 0 && c < m->cols; c++) {  // free indices show their extents
      if (m->coef[(int64_t)r * m->cols + c] == 0) continue;
      terms += m->coef[(int64_t)r * m->cols + c] == 1 ? 1 : 2;
      var = c;
    }
    if (var >= 0 && terms == 1) eini_say(t, "=%lld", (long long)s->index[var].extent);
  }
  if (m->rows > 0) eini_say(t, "]");
}

static void eini_say_const(eini_text *t, const eini_node *v) {
  if (v->dtype == EIN_BOOL) eini_say(t, "%s", v->ival ? "true" : "false");
  else if (v->exact) eini_say(t, "%lld", (long long)v->ival);
  else if (v->re != v->re) eini_say(t, "nan");
  else eini_say(t, v->re - v->re != 0 ? (v->re < 0 ? "-inf" : "inf") : "%.17g", v->re);
}

// Prints a node for a place that binds at the given level. Depth and length are bounded.
static void eini_say_node(eini_text *t, const ein_graph *g, const eini_stmt *s, int id, int place,
                          int depth) {
  const eini_node *v = &s->expr.node[id];
  const char *infix = NULL;
  int op = v->op, cast = op == EINI_OP_CAST || op == EINI_OP_ROUNDTO;
  int level = op == EINI_OP_NEG || (op == EINI_OP_CONST && v->re < 0) ? 5 :
              op == EINI_OP_NOT ? 2 : op == EINI_OP_SQUARE ? 6 : 7;
  for (int i = 0; i < EINI_INFIXES; i++) {
    if (eini_infixes[i].op != op) continue;
    infix = eini_infixes[i].text;
    level = eini_infixes[i].level;
  }
  if (op == EINI_OP_CAST && v->arg[1] == 1) level = 7;  // typing makes this conversion again
  if (level < place) eini_say(t, "(");
  if (depth > 200 || t->nodes++ > (1 << 16)) {
    eini_say(t, "..");
    t->cut = 1;
  } else if (infix != NULL) {
    eini_say_node(t, g, s, v->arg[0], level + (level == 6 || level == 2), depth + 1);
    eini_say(t, "%s", infix);
    eini_say_node(t, g, s, v->arg[1], level + (level != 6), depth + 1);
  } else if (op == EINI_OP_CONST) {
    eini_say_const(t, v);
  } else if (op == EINI_OP_OPERAND) {
    if (t->numbered) eini_say(t, "$%d", v->arg[0]);
    else eini_say_access(t, g, s, v->arg[0]);
  } else if (op == EINI_OP_INDEX || op == EINI_OP_PARAM) {
    eini_say(t, "%s", op == EINI_OP_INDEX ? s->index[v->arg[0]].name : g->param[v->arg[0]].name);
  } else if (op == EINI_OP_NEG || op == EINI_OP_NOT || op == EINI_OP_SQUARE ||
             (op == EINI_OP_CAST && v->arg[1] == 1)) {
    eini_say(t, op == EINI_OP_NEG ? "-" : op == EINI_OP_NOT ? "not " : "");
    eini_say_node(t, g, s, v->arg[0], cast ? place : level + (level == 6), depth + 1);
    if (op == EINI_OP_SQUARE) eini_say(t, "^2");
  } else {
    eini_say(t, "%s%s(", cast ? "cast_" : op == EINI_OP_CALL ? g->function[v->arg[0]].name
             : eini_ops[op].name, cast ? ein_dtype_name((ein_dtype)v->dtype) : "");
    for (int i = 0; i < eini_node_args(v); i++) {
      if (i > 0) eini_say(t, ", ");
      eini_say_node(t, g, s, eini_node_arg(&s->expr, v, i), 0, depth + 1);
    }
    eini_say(t, ")");
  }
  if (level < place) eini_say(t, ")");
}

static void eini_say_stmt(eini_text *t, const ein_graph *g, const eini_stmt *s) {
  eini_say_access(t, g, s, -1);
  eini_say(t, " : %s = ", ein_dtype_name(g->tensor[s->out].dtype));
  if (s->fold != EINI_FOLD_NONE) eini_say(t, "%s[", eini_fold_name(g, s->fold));
  for (int i = s->nfree; s->fold != EINI_FOLD_NONE && i < s->nindex; i++)
    eini_say(t, "%s%s=%lld", i > s->nfree ? "," : "", s->index[i].name,
             (long long)s->index[i].extent);
  if (s->fold != EINI_FOLD_NONE) eini_say(t, "](");
  t->nodes = 0;
  eini_say_node(t, g, s, (int)s->expr.n - 1, 0, 0);
  if (s->fold != EINI_FOLD_NONE) eini_say(t, ")");
}

// ================================================================================================
// >>path  contraction order of n operands
// Takes an index network; gives a pairwise order and its cost. Never worse than left to right.
// ================================================================================================
// An order is a binary tree in static-single-assignment form: operands are nodes 0..n-1, step i
// makes node n+i from two smaller nodes. Within the search extents are doubles and 0 is replaced
// by a tiny number, so that quotients of products stay defined; the costs reported are true.

typedef enum eini_path_algo {
  EINI_PATH_AUTO = 0,
  EINI_PATH_NAIVE,  // left to right
  EINI_PATH_OPTIMAL,
  EINI_PATH_DP,
  EINI_PATH_GREEDY,
  EINI_PATH_RANDOM
} eini_path_algo;

typedef enum eini_path_goal {
  EINI_GOAL_FLOPS = 0,
  EINI_GOAL_SIZE,  // largest intermediate, elements
  EINI_GOAL_BYTES  // sum over steps of elements read and written
} eini_path_goal;

typedef struct eini_net {  // the problem; label sets are sorted and without duplicates
  int nterm, nlabel;       // terms 0..nterm-1 are operands, term nterm is the output
  const int64_t *extent;   // [nlabel]
  const int *start;        // [nterm+2] term t has labels[start[t]] .. labels[start[t+1]-1]
  const int *labels;
} eini_net;

typedef struct eini_path_opts {
  eini_path_algo algo;
  eini_path_goal goal;
  double seconds;  // budget in seconds (needs the clock); 0: a default budget in work steps
  double (*now_fn)(void *user);
  void *now_user;
  int64_t steps;  // budget in work steps, about a nanosecond each (0: default)
  uint64_t seed;
} eini_path_opts;

// Linear format, as opt_einsum's: step i takes the positions pos[first[i]] .. pos[first[i+1] - 1],
// rising, of the current list; all of them are removed and the result is appended.
typedef struct eini_path {
  int nstep;
  int *first;      // [nstep + 1]
  int *pos;
  double flops;    // as opt_einsum counts: product of extents, times the factors but one (at least
                   // one), and one more if a label is summed
  double largest;  // largest intermediate, elements (output included)
  double moved;    // sum over steps of elements of the inputs and the result
  const char *method;  // what produced it
  double seconds[3];   // predicted, see eini_path_way; 0: nothing was compared
  int proved;          // 1: optimal for the goal; 2: optimal among connected subsets; 0: neither
} eini_path;

// Ways between which predictions choose.
enum { EINI_AS_FOUND, EINI_LEFT_TO_RIGHT, EINI_ONE_PASS };
static const char *const eini_path_way[] = {"as found", "left to right", "one pass"};

// Room for nstep steps of npos positions in all.
static ein_status eini_path_room(eini_arena *a, int nstep, int npos, eini_path *path) {
  path->first = EINI_NEW(a, int, (int64_t)nstep + 1);
  path->pos = EINI_NEW(a, int, npos);
  return path->first == NULL || path->pos == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

#define EINI_PATH_EXACT 14   // operands for the all-subsets search
#define EINI_PATH_LINKED 63  // operands for the connected-subsets search: one word per subset
#define EINI_PATH_FAN 24     // neighbours looked at through one label
#define EINI_TREE_REST ((uint64_t)1 << 63)
#define EINI_TREE_SLOTS ((int64_t)1 << 18)
#define EINI_TREE_WINDOW 8    // terms of a window
#define EINI_TREE_MAX 400000  // operands times words of labels: the largest bitset form
typedef int eini_path_pair[2];
typedef struct eini_path_sums { double flops, largest, moved; } eini_path_sums;  // see eini_path

// Account for a step. NaN is inf * 0: some extent is 0, and so is the product.
static void eini_path_add(eini_path_sums *s, double flops, double size, double read) {
  if (flops >= 0) s->flops += flops;
  if (size + read >= 0) s->moved += size + read;
  if (size > s->largest) s->largest = size;
}

static double eini_path_value(eini_path_goal goal, const eini_path_sums *s) {
  return goal == EINI_GOAL_SIZE ? s->largest : goal == EINI_GOAL_BYTES ? s->moved : s->flops;
}

static int eini_path_better(eini_path_goal goal, const eini_path_sums *a, const eini_path_sums *b) {
  double x = eini_path_value(goal, a), y = eini_path_value(goal, b);
  if (x < y || x > y) return x < y;
  return goal == EINI_GOAL_FLOPS ? a->largest < b->largest : a->flops < b->flops;
}

typedef struct eini_path_term {
  double size, open;  // elements; the same without labels that no other term has
  double flops;       // of the step that made it
  int head;           // its labels: a list of cells, rising; cell i has label net->labels[i]
  int into;           // itself, or a later node that it became part of
} eini_path_term;

typedef struct eini_path_run {  // an order being carried out
  const eini_net *net;
  double *ext;
  int nnode;
  eini_path_term *term;
  int *next;   // cell after a cell, or -1. A step splices the lists of its operands
  int *count;  // [nlabel] terms left that have the label, and the output
  eini_path_sums sums;
} eini_path_run;

static ein_status eini_path_run_init(eini_path_run *r, eini_arena *arena, const eini_net *net,
                                     int nnode) {
  r->net = net;
  r->ext = EINI_NEW(arena, double, net->nlabel);
  r->term = EINI_NEW(arena, eini_path_term, nnode);
  r->count = EINI_NEW(arena, int, (int64_t)net->nlabel + net->start[net->nterm]);
  if (r->ext == NULL || r->term == NULL || r->count == NULL) return EIN_ERR_NO_MEMORY;
  r->next = r->count + net->nlabel;
  for (int l = 0; l < net->nlabel; l++) r->ext[l] = (double)net->extent[l];
  return EIN_OK;
}

static void eini_path_reset(eini_path_run *r) {
  const eini_net *net = r->net;
  int n = r->nnode = net->nterm;
  memset(&r->sums, 0, sizeof r->sums);
  memset(r->count, 0, (size_t)net->nlabel * sizeof(int));
  for (int i = 0; i < net->start[n + 1]; i++) r->count[net->labels[i]]++;
  for (int t = 0; t < n; t++) {
    eini_path_term *d = &r->term[t];
    int end = net->start[t + 1];
    d->head = net->start[t] < end ? net->start[t] : -1;
    d->into = t;
    d->size = d->open = 1;
    for (int i = net->start[t]; i < end; i++) {
      double e = r->ext[net->labels[i]];
      d->size *= e;
      if (r->count[net->labels[i]] > 1) d->open *= e;
      r->next[i] = i + 1 < end ? i + 1 : -1;
    }
  }
}

// Contract nodes a and b (b = -1: a alone) into a new node. Returns the number of labels.
static int eini_path_step(eini_path_run *r, int a, int b) {
  const int *labels = r->net->labels;
  eini_path_term *x = &r->term[a], *y = b < 0 ? NULL : &r->term[b], *z = &r->term[r->nnode];
  int i = x->head, j = y == NULL ? -1 : y->head, *tail = &z->head, summed = 0, n = 0;
  double all = 1, size = 1;
  for (; i >= 0 || j >= 0; n++) {
    int li = i < 0 ? INT_MAX : labels[i], lj = j < 0 ? INT_MAX : labels[j];
    int cell = li <= lj ? i : j, l = li <= lj ? li : lj;
    if (li <= lj) i = r->next[i];
    if (lj <= li) j = r->next[j];
    r->count[l] -= li == lj;
    all *= r->ext[l];
    summed |= r->count[l] == 1;  // nobody else has it
    if (r->count[l] == 1) continue;
    size *= r->ext[l];
    *tail = cell;
    tail = &r->next[cell];
  }
  *tail = -1;
  z->size = z->open = size;
  z->flops = all * (summed ? 2 : 1);
  eini_path_add(&r->sums, z->flops, size, x->size + (y == NULL ? 0 : y->size));
  z->into = x->into = r->nnode++;
  if (y != NULL) y->into = z->into;
  return n;
}

// Fenwick tree (Fenwick, A new data structure for cumulative frequency tables, 1994) over node
// numbers: sum[0..n], which nodes are in the current list, and at which position.
static void eini_path_mark(int *sum, int n, int x, int by) {
  for (int i = x + 1; i <= n; i += i & -i) sum[i] += by;
}

// Operands 0..n-1 of room nodes.
static int *eini_path_marks(eini_arena *arena, int n, int room) {
  int *sum = EINI_NEW(arena, int, room + 1);
  for (int t = 0; t < n && sum != NULL; t++) eini_path_mark(sum, room, t, 1);
  return sum;
}

static int eini_path_position(const int *sum, int x) {
  int s = 0;
  for (int i = x; i > 0; i -= i & -i) s += sum[i];
  return s;
}

static int eini_path_node(const int *sum, int n, int position) {
  int x = 0, bit = 1;
  while (bit <= n / 2) bit *= 2;
  for (; bit > 0; bit /= 2) {
    if (x + bit > n || sum[x + bit] > position) continue;
    x += bit;
    position -= sum[x];
  }
  return x;
}

// Contracts m nodes into one, which is accounted for as one step.
static void eini_path_all(eini_path_run *r, const int *node, int m, int *stamp, int step) {
  const eini_path_sums before = r->sums;
  double all = 1, read = 0;
  int x = node[0], closed = 0;  // labels that the result lacks
  for (int k = 0; k < m; k++) {
    read += r->term[node[k]].size;
    for (int i = r->term[node[k]].head; i >= 0; i = r->next[i]) {
      int l = r->net->labels[i];
      if (stamp[l] == step) continue;
      stamp[l] = step;
      all *= r->ext[l];
      closed++;
    }
  }
  for (int k = 1; k < m || k == 1; k++) {
    eini_path_step(r, x, k < m ? node[k] : -1);
    x = r->nnode - 1;
  }
  for (int i = r->term[x].head; i >= 0; i = r->next[i]) closed--;
  r->sums = before;
  r->term[x].flops = all * ((m > 2 ? m - 1 : 1) + (closed > 0));
  eini_path_add(&r->sums, r->term[x].flops, r->term[x].size, read);
}

// Costs of a path's steps. EIN_ERR_ARGUMENT: they are not a path of the network; *bad is the entry
// of path->pos that does not fit, or -1 when what is left at the end is not one operand.
static ein_status eini_path_cost_in(eini_arena *scratch, const eini_net *net, eini_path *path,
                                    int *bad) {
  eini_path_run r;
  int count = net->nterm, npos = path->first[path->nstep], room = count + npos;
  EINI_TRY(eini_path_run_init(&r, scratch, net, room));
  int *sum = eini_path_marks(scratch, count, room), *node = EINI_NEW(scratch, int, npos);
  int *stamp = EINI_NEW(scratch, int, net->nlabel), *taken = EINI_NEW(scratch, int, room);
  if (sum == NULL || node == NULL || stamp == NULL || taken == NULL) return EIN_ERR_NO_MEMORY;
  eini_path_reset(&r);
  for (int i = 0; i < path->nstep; i++) {
    int *p = path->pos + path->first[i], m = path->first[i + 1] - path->first[i];
    for (int k = 0; k < m; k++) {
      *bad = (int)(p - path->pos) + k;
      if (p[k] < 0 || p[k] >= count || taken[p[k]] == i + 1) return EIN_ERR_ARGUMENT;
      taken[p[k]] = i + 1;
    }
    eini_sort_ints(p, m);
    for (int k = 0; k < m; k++) node[k] = eini_path_node(sum, room, p[k]);
    for (int k = 0; k < m; k++) eini_path_mark(sum, room, node[k], -1);
    eini_path_all(&r, node, m, stamp, i + 1);
    eini_path_mark(sum, room, r.nnode - 1, 1);
    count -= m - 1;
  }
  path->flops = r.sums.flops;
  path->largest = r.sums.largest;
  path->moved = r.sums.moved;
  *bad = -1;
  return count == 1 ? EIN_OK : EIN_ERR_ARGUMENT;
}

// Fills in the costs of the steps of `path`; see eini_path_cost_in.
static ein_status eini_path_cost(eini_arena *arena, const eini_net *net, eini_path *path,
                                 int *bad) {
  eini_arena scratch;
  path->flops = path->largest = path->moved = 0;
  *bad = -1;
  if (net->nterm == 0) return path->nstep == 0 ? EIN_OK : EIN_ERR_ARGUMENT;
  if (path->nstep < 1 || path->first[path->nstep] > INT_MAX / 2 - net->nterm)
    return EIN_ERR_ARGUMENT;
  for (int i = 0; i < path->nstep; i++)
    if (path->first[i + 1] <= path->first[i]) return EIN_ERR_ARGUMENT;
  eini_arena_init(&scratch, &arena->al);
  ein_status status = eini_path_cost_in(&scratch, net, path, bad);
  eini_arena_free(&scratch);
  return status;
}

typedef struct eini_path_offer {  // a pair that may be contracted
  int64_t key;                     // ordered as the double it is made from
  int a, b;
} eini_path_offer;

typedef struct eini_path_near {  // what a node shares with the node in hand
  double all, closed;            // extents of the shared labels, and of those no other node has
  int with, label;               // the node in hand; the label seen last
  int found;                     // [i]: neighbour i of the node in hand
} eini_path_near;

typedef struct eini_path_search {
  eini_arena *arena;  // scratch, freed when the search ends
  const eini_net *net;
  const eini_path_opts *opts;
  eini_path_goal goal;
  uint64_t rng;
  int64_t left, tick;  // work steps left; to the next look at the clock
  double end;          // time at which to stop, if > 0
  eini_path_run run;
  eini_path_pair *kid, *trial;  // the best tree so far; another
  int *tmp;                     // [2n]
  eini_path_sums best;
  const char *method;  // NULL: no tree yet
  int proved;
  // Of greedy runs: operands that have a label, as nodes they are part of; a heap of pairs.
  int *lstart, *member, *len;
  eini_path_near *near;
  eini_path_offer *heap;
  int64_t nheap, heap_cap;
  double temperature, weight;
} eini_path_search;

// Account for work done; 1 when the budget is used up.
static int eini_path_spend(eini_path_search *s, int64_t units) {
  s->left -= units;
  s->tick -= units;
  if (s->end > 0 && s->tick < 0) {
    s->tick = 20000;
    if (s->opts->now_fn(s->opts->now_user) >= s->end) s->left = -1;
  }
  return s->left < 0;
}

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t eini_path_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int eini_path_below(uint64_t *state, int n) {
  return (int)(((eini_path_random(state) >> 32) * (uint64_t)n) >> 32);
}

static double eini_path_unit(uint64_t *state) {  // in (0, 1)
  return ((double)(eini_path_random(state) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

static int eini_path_bit(uint64_t x) { return EINI_CTZ(x); }  // the lowest

static void eini_path_make(eini_path_search *s, int a, int b) {
  int *kid = s->trial[s->run.nnode - s->net->nterm];
  kid[0] = a;
  kid[1] = b;
  eini_path_spend(s, 40 + 5 * eini_path_step(&s->run, a, b));
}

static int eini_path_hope(const eini_path_search *s) {
  return s->method == NULL || eini_path_better(s->goal, &s->run.sums, &s->best);
}

// The tree `trial`, just carried out, becomes the best one if it is better.
static void eini_path_keep(eini_path_search *s, const char *method) {
  if (!eini_path_hope(s)) return;
  memcpy(s->kid, s->trial, (size_t)(s->net->nterm - 1) * sizeof s->kid[0]);
  s->best = s->run.sums;
  s->method = method;
}

static void eini_path_try(eini_path_search *s, const char *method) {
  eini_path_reset(&s->run);
  for (int i = 0; i < s->net->nterm - 1; i++) {
    eini_path_make(s, s->trial[i][0], s->trial[i][1]);
    if (!eini_path_hope(s)) return;  // costs only grow
  }
  eini_path_keep(s, method);
}

static ein_status eini_path_push(eini_path_search *s, double cost, int a, int b) {
  int64_t key;
  memcpy(&key, &cost, sizeof key);
  if (key < 0) key ^= INT64_MAX;  // sign and magnitude to two's complement
  void *p = eini_grow(s->arena, s->heap, s->nheap, &s->heap_cap, sizeof *s->heap);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  eini_path_offer *h = s->heap = (eini_path_offer *)p;
  int64_t i = s->nheap++;
  for (; i > 0 && key < h[(i - 1) / 2].key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i].key = key;
  h[i].a = a;
  h[i].b = b;
  return EIN_OK;
}

// Remove the smallest key. The hole goes down to a leaf, then the last pair goes up from there.
static eini_path_offer eini_path_pop(eini_path_search *s) {
  eini_path_offer *h = s->heap, top = h[0], c = h[--s->nheap];
  int64_t i = 0, k = 1;
  h[s->nheap].key = INT64_MAX;  // so that the choice of a child needs no branch
  for (; k < s->nheap; i = k, k = 2 * k + 1) {
    k += h[k + 1].key < h[k].key;
    h[i] = h[k];
  }
  for (; i > 0 && c.key < h[(i - 1) / 2].key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = c;
  return top;
}

// The cost of Smith and Gray (opt_einsum, JOSS 2018); with a temperature, the perturbed form of
// Gray and Kourtis (Hyper-optimized tensor network contraction, Quantum 5, 410, 2021).
static double eini_path_key(eini_path_search *s, int a, int b) {
  const eini_path_term *x = &s->run.term[a], *y = &s->run.term[b];
  const eini_path_near *near = &s->near[b];
  if (near->all >= x->open && near->all >= y->open) return -HUGE_VAL;  // the same labels
  double size = x->open / near->all * (y->open / near->closed);
  if (!(size < 1e300)) size = 1e300;
  if (s->temperature <= 0) return size - s->weight * (x->size + y->size);
  double d = size / s->weight - s->weight * (x->size + y->size);
  return (d < 0 ? -log1p(-d) : log1p(d)) + s->temperature * log(-log(eini_path_unit(&s->rng)));
}

// Push the pairs of node a with its neighbours before it.
static ein_status eini_path_pairs(eini_path_search *s, int a) {
  eini_path_run *r = &s->run;
  int nfound = 0;
  for (int i = r->term[a].head; i >= 0; i = r->next[i]) {
    int l = r->net->labels[i], *member = s->member + s->lstart[l];
    for (int m = s->len[l] - 1, seen = 0; m >= 0 && seen <= EINI_PATH_FAN; m--) {
      int b = member[m];
      while (r->term[b].into != b) b = r->term[b].into = r->term[r->term[b].into].into;
      eini_path_near *near = &s->near[b];
      if (near->with == a && near->label == l) {  // two operands have become one node
        member[m] = member[--s->len[l]];
        continue;
      }
      member[m] = b;
      seen++;
      if (near->with != a) {
        near->with = a;
        near->all = near->closed = 1;
        if (b != a) s->near[nfound++].found = b;
      }
      near->label = l;
      near->all *= r->ext[l];
      if (r->count[l] == 2) near->closed *= r->ext[l];
    }
  }
  eini_path_spend(s, 50 * nfound + 20);
  for (int i = 0; i < nfound; i++) {
    int b = s->near[i].found;
    if (b < a) EINI_TRY(eini_path_push(s, eini_path_key(s, a, b), a, b));
  }
  return EIN_OK;
}

// A greedy run fills `trial`. Where results have no more labels than operands (chains), the
// smallest result is the better guide; elsewhere it loses to the reduction in memory by far.
static ein_status eini_path_greedy(eini_path_search *s, int random) {
  const eini_net *net = s->net;
  eini_path_run *r = &s->run;
  int n = net->nterm, nlabel = net->nlabel;
  if (s->heap == NULL) {
    s->lstart = EINI_NEW(s->arena, int, 2 * (int64_t)nlabel + 1 + net->start[n]);
    s->near = EINI_NEW(s->arena, eini_path_near, 2 * n);
    s->heap_cap = 2 * (int64_t)n + 8;
    s->heap = EINI_NEW(s->arena, eini_path_offer, s->heap_cap);
    if (s->lstart == NULL || s->near == NULL || s->heap == NULL) return EIN_ERR_NO_MEMORY;
    s->len = s->lstart + nlabel + 1;
    s->member = s->len + nlabel;
    for (int i = 0; i < net->start[n]; i++) s->lstart[net->labels[i] + 1]++;
    for (int l = 0; l < nlabel; l++) s->lstart[l + 1] += s->lstart[l];
  }
  s->temperature = random ? eini_path_unit(&s->rng) : 0;
  s->weight = net->start[n] <= 2 * n + 2 ? 0.1 : 1;
  if (random) s->weight = exp(2 * eini_path_unit(&s->rng) - 1);
  eini_path_reset(r);
  s->nheap = 0;
  memset(s->len, 0, (size_t)nlabel * sizeof(int));
  for (int t = 0; t < n; t++) {
    for (int i = net->start[t]; i < net->start[t + 1]; i++) {
      int l = net->labels[i];
      s->member[s->lstart[l] + s->len[l]++] = t;
    }
  }
  for (int x = 0; x < 2 * n; x++) s->near[x].with = -1;
  for (int t = 0; t < n; t++) EINI_TRY(eini_path_pairs(s, t));
  while (s->nheap > 0) {
    eini_path_offer c = eini_path_pop(s);
    if (r->term[c.a].into != c.a || r->term[c.b].into != c.b) continue;
    eini_path_make(s, c.a, c.b);
    EINI_TRY(eini_path_pairs(s, r->nnode - 1));
  }
  for (int x = 0; x < r->nnode; x++) {  // outer products of what is left, smallest first
    if (r->term[x].into == x) EINI_TRY(eini_path_push(s, r->term[x].size, x, x));
  }
  while (s->nheap > 1) {
    int x = eini_path_pop(s).a;
    eini_path_make(s, x, eini_path_pop(s).a);
    EINI_TRY(eini_path_push(s, r->term[r->nnode - 1].size, r->nnode - 1, 0));
  }
  eini_path_keep(s, random ? "random greedy" : "greedy");
  return EIN_OK;
}

// ================================================================================================
// >>pathtree  improvement of contraction trees; strategies and budgets
// Invariant: the best tree is only ever replaced by a better one; left to right is a candidate.
// ================================================================================================

// A small problem. For a set S of its terms let U(S) be the product of the extents of all labels
// of S, and C(S) that of the labels that occur nowhere else (1 for a single term: its own labels
// are summed by the step that uses it). The step that joins A and B into S costs
// U(S) / (C(A) C(B)), twice that if S encloses more labels than A and B: constant time for a pair.
typedef struct eini_tree_small {
  int n;                     // at most 63
  const int *start, *label;  // term t has label[start[t]] .. label[start[t+1]-1]
  uint64_t *in;              // terms that have a label; EINI_TREE_REST: it also occurs outside
  const double *ext;
} eini_tree_small;

typedef struct eini_tree_set {
  uint64_t set, near;        // terms; for connected subsets: terms that share a label with these
  double cost, second;       // best tree found; HUGE_VAL: none below the cap
  double size, all, inside;  // elements, U(S), 1 / C(S)
  int ninside;               // labels in C(S)
  int a, b;                  // where the best tree divides, in the table; single: -1 and the term
} eini_tree_set;

static void eini_tree_empty(eini_tree_set *d) {
  memset(d, 0, sizeof *d);
  d->size = d->all = d->inside = 1;
  d->cost = HUGE_VAL;
}

// Add a term to a set.
static void eini_tree_extend(const eini_tree_small *p, eini_tree_set *d, int t) {
  uint64_t rest = d->set;
  d->set |= (uint64_t)1 << t;
  for (int i = p->start[t]; i < p->start[t + 1]; i++) {
    uint64_t in = p->in[p->label[i]];
    double e = p->ext[p->label[i]];
    int met = (in & rest) != 0;
    if (!met) d->all *= e;
    if ((in & ~d->set) == 0) {
      if (met) d->size /= e;
      d->inside /= e;
      d->ninside++;
    } else if (!met) {
      d->size *= e;
    }
  }
}

static void eini_tree_single(eini_tree_set *d, int t) {
  d->size = d->all;
  d->inside = 1;
  d->cost = d->ninside = 0;
  d->a = -1;
  d->b = t;
}

// Products that overflow leave no way to compare.
static int eini_tree_sane(const eini_tree_set *d) { return d->all < 1e300 && d->inside > 1e-300; }

static double eini_tree_flops(const eini_tree_set *d, const eini_tree_set *x,
                              const eini_tree_set *y) {
  return d->all * x->inside * y->inside * (d->ninside > x->ninside + y->ninside ? 2 : 1);
}

// Is the set d better made from those at a and b in the table?
static void eini_tree_join(eini_path_goal goal, const eini_tree_set *sub, eini_tree_set *d, int a,
                           int b) {
  const eini_tree_set *x = &sub[a], *y = &sub[b];
  double c = x->cost + y->cost;
  if (goal == EINI_GOAL_BYTES) c += x->size + y->size + d->size;
  if (goal == EINI_GOAL_SIZE) c = fmax(d->size, fmax(x->cost, y->cost));
  if (c > d->cost) return;
  double flops = eini_tree_flops(d, x, y);
  double f = goal == EINI_GOAL_FLOPS ? 0 : flops + x->second + y->second;
  if (goal == EINI_GOAL_FLOPS) c += flops;
  if (c > d->cost || (c >= d->cost && f >= d->second)) return;
  d->cost = c;
  d->second = f;
  d->a = a;
  d->b = b;
}

// A set is of no use if making it and then reading it costs more than the cap.
static int eini_tree_over(eini_path_goal goal, double cost, double size, double cap) {
  return cost + (goal == EINI_GOAL_SIZE ? 0 : size) > cap;
}

// The tree of sub[root]; a node is numbered when it is met. made: the steps' places in the table.
static void eini_tree_read(const eini_tree_set *sub, int root, int n, int *made,
                           eini_path_pair *kid) {
  int next = n - 2;
  made[next--] = root;
  for (int i = n - 2; i >= 0; i--) {
    for (int k = 0; k < 2; k++) {
      int part = k == 0 ? sub[made[i]].a : sub[made[i]].b;
      kid[i][k] = sub[part].a < 0 ? sub[part].b : n + next;
      if (sub[part].a >= 0) made[next--] = part;
    }
  }
}

// All subsets, outer products included: the best tree of at most EINI_PATH_EXACT terms if it
// costs at most `cap`; sub: [1 << n]. 1: found, in the table; 0: there is none; -1: gave up.
static int eini_tree_exact(eini_path_search *s, const eini_tree_small *p, eini_tree_set *sub,
                           double cap) {
  int full = (1 << p->n) - 1;
  cap *= 1 + 1e-12;  // for rounding in a different order
  int64_t cells = 0;  // labels of the terms that sets are extended by
  for (int t = 0; t < p->n; t++) cells += (int64_t)(p->start[t + 1] - p->start[t]) << (p->n - 1 - t);
  eini_path_spend(s, (int64_t)full * 4 + cells * 2);
  eini_tree_empty(&sub[0]);
  for (int set = 1; set <= full; set++) {
    sub[set] = sub[set & (set - 1)];
    eini_tree_extend(p, &sub[set], eini_path_bit((uint64_t)set));
  }
  if (!eini_tree_sane(&sub[full])) return -1;
  for (int t = 0; t < p->n; t++) eini_tree_single(&sub[1 << t], t);
  for (int set = 3; set <= full; set++) {
    int rest = set & (set - 1), count = 0;
    eini_tree_set *d = &sub[set];
    if (rest == 0 || (set != full && eini_tree_over(s->goal, d->size, d->size, cap))) continue;
    for (int b = rest; b != 0; b = (b - 1) & rest, count++) {
      eini_tree_join(s->goal, sub, d, set ^ b, b);
    }
    if (eini_path_spend(s, 2 * count)) return -1;
    if (set != full && eini_tree_over(s->goal, d->cost, d->size, cap)) d->cost = HUGE_VAL;
  }
  return sub[full].cost <= cap;
}

// Connected subsets, by size: a set is made from two disjoint sets that share a label, or that
// are both whole components, and kept if it stays below the cap. With the cap of a good tree that
// proves it optimal or finds a better one (compare the iterated cap of Pfeifer, Haegeman,
// Verstraete, Phys. Rev. E 90, 033315, 2014).
typedef struct eini_tree_linked {
  const eini_tree_small *p;
  eini_tree_set *sub;
  int64_t n, cap;
  int *slot;  // hash table of the size being made: index + 1
  double limit;
} eini_tree_linked;

// The index of a set, made if needed; -1 when out of memory.
static int64_t eini_tree_find(eini_path_search *s, eini_tree_linked *c, uint64_t set) {
  int64_t at = (int64_t)(eini_hash(&set, sizeof set, 0) & (uint64_t)(EINI_TREE_SLOTS - 1));
  for (; c->slot[at] != 0; at = (at + 1) & (EINI_TREE_SLOTS - 1))
    if (c->sub[c->slot[at] - 1].set == set) return c->slot[at] - 1;
  if (c->n == c->cap) eini_path_spend(s, 30 * c->cap);
  void *sub = eini_grow(s->arena, c->sub, c->n, &c->cap, sizeof *c->sub);
  if (sub == NULL) return -1;
  c->sub = (eini_tree_set *)sub;
  eini_tree_set *d = &c->sub[c->n++];
  c->slot[at] = (int)c->n;
  eini_tree_empty(d);
  for (uint64_t m = set; m != 0; m &= m - 1) {
    int t = eini_path_bit(m);
    eini_tree_extend(c->p, d, t);
    eini_path_spend(s, 4 + 2 * (c->p->start[t + 1] - c->p->start[t]));
  }
  return c->n - 1;
}

// The same of connected subsets; all terms are then the last of the table.
static ein_status eini_tree_connected(eini_path_search *s, eini_tree_linked *c, int *found) {
  int64_t begin[EINI_PATH_LINKED + 2] = {0, 0};
  int n = c->p->n;
  c->slot = EINI_NEW(s->arena, int, EINI_TREE_SLOTS);
  if (c->slot == NULL) return EIN_ERR_NO_MEMORY;
  if (eini_tree_find(s, c, ((uint64_t)1 << n) - 1) < 0) return EIN_ERR_NO_MEMORY;
  if (!eini_tree_sane(c->sub)) return EIN_OK;
  c->n = 0;
  memset(c->slot, 0, (size_t)EINI_TREE_SLOTS * sizeof(int));
  for (int t = 0; t < n; t++) {
    uint64_t near = 0, set = (uint64_t)1 << t;
    if (eini_tree_find(s, c, set) < 0) return EIN_ERR_NO_MEMORY;
    for (int i = c->p->start[t]; i < c->p->start[t + 1]; i++) near |= c->p->in[c->p->label[i]];
    c->sub[t].near = near & ~set & ~EINI_TREE_REST;
    eini_tree_single(&c->sub[t], t);
  }
  for (int size = 2; size <= n; size++) {
    int64_t kept = begin[size] = c->n;
    memset(c->slot, 0, (size_t)EINI_TREE_SLOTS * sizeof(int));
    eini_path_spend(s, EINI_TREE_SLOTS / 16);
    for (int m = 1; m <= size / 2; m++) {
      for (int64_t i = begin[m]; i < begin[m + 1]; i++) {
        uint64_t set = c->sub[i].set, near = c->sub[i].near;
        int64_t j = m == size - m ? i + 1 : begin[size - m], end = begin[size - m + 1];
        if (eini_path_spend(s, end - j + 20) || c->n > EINI_TREE_SLOTS / 2) return EIN_OK;
        for (; j < end; j++) {
          uint64_t other = c->sub[j].set, around = near | c->sub[j].near;
          if ((set & other) != 0 || ((near & other) == 0 && around != 0)) continue;
          int64_t k = eini_tree_find(s, c, set | other);
          if (k < 0) return EIN_ERR_NO_MEMORY;
          eini_tree_set *d = &c->sub[k];
          d->near = around & ~d->set;
          if (size < n && eini_tree_over(s->goal, d->size, d->size, c->limit)) continue;
          eini_tree_join(s->goal, c->sub, d, (int)i, (int)j);
        }
      }
    }
    for (int64_t i = kept; i < c->n; i++) {
      eini_tree_set d = c->sub[i];
      if (!eini_tree_over(s->goal, d.cost, size < n ? d.size : 0, c->limit)) c->sub[kept++] = d;
    }
    c->n = kept;
  }
  *found = c->n > begin[n];
  return EIN_OK;
}

static ein_status eini_tree_prove(eini_path_search *s, int exact) {
  const eini_net *net = s->net;
  int n = net->nterm, found = -1, made[EINI_PATH_LINKED];
  double cap = eini_path_value(s->goal, &s->best);
  uint64_t *in = EINI_NEW(s->arena, uint64_t, net->nlabel);
  eini_tree_small p = {n, net->start, net->labels, in, s->run.ext};
  eini_tree_linked c = {&p, NULL, 0, 0, NULL, cap * (1 + 1e-12)};
  if (p.in == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t <= n; t++) {
    uint64_t bit = t < n ? (uint64_t)1 << t : EINI_TREE_REST;
    for (int i = net->start[t]; i < net->start[t + 1]; i++) p.in[net->labels[i]] |= bit;
  }
  if (exact) {
    c.n = (int64_t)1 << n;
    c.sub = EINI_NEW(s->arena, eini_tree_set, c.n);
    if (c.sub == NULL) return EIN_ERR_NO_MEMORY;
    found = eini_tree_exact(s, &p, c.sub, cap);
  } else {
    EINI_TRY(eini_tree_connected(s, &c, &found));
  }
  if (found > 0) {
    eini_tree_read(c.sub, (int)c.n - 1, n, made, s->trial);
    eini_path_try(s, exact ? "optimal" : "connected subsets");
  }
  if (found >= 0) s->proved = exact ? 1 : 2;
  return EIN_OK;
}

// Number the nodes of a tree from the root down, so that children come before parents and the
// steps of a subtree are contiguous (what is made is used soon). The last of `in` is the root.
static void eini_tree_sort(int n, eini_path_pair *in, eini_path_pair *out, int *tmp) {
  int *stack = tmp, *slot = tmp + n, top = 1, next = 2 * n - 2;
  stack[0] = next;
  slot[0] = -1;
  while (top > 0) {
    int x = stack[--top], at = slot[top], name = next--;
    if (at >= 0) out[at / 2][at % 2] = name;
    for (int k = 0; k < 2; k++) {
      int c = out[name - n][k] = in[x - n][k];
      if (c < n) continue;
      stack[top] = c;
      slot[top++] = 2 * (name - n) + k;
    }
  }
}

typedef struct eini_tree_work {  // a tree open for changes; its nodes are in no particular order
  eini_path_search *s;
  int n, words, shuffle;  // shuffle: windows at random, not along the dearest nodes
  eini_path_pair *kid;   // the root is the last
  eini_path_term *node;  // size and flops of nodes
  uint64_t *legs;        // their open labels
  eini_tree_small small;  // the window in hand
  int start[EINI_TREE_WINDOW + 1], *label;
  eini_tree_set sub[1 << EINI_TREE_WINDOW];
} eini_tree_work;

static uint64_t *eini_tree_legs(const eini_tree_work *w, int x) {
  return w->legs + (size_t)x * (size_t)w->words;
}

static void eini_tree_load(eini_tree_work *w, eini_path_pair *kid) {
  eini_path_run *r = &w->s->run;
  int cells = 0;
  eini_path_reset(r);
  memcpy(w->kid, kid, (size_t)(w->n - 1) * sizeof kid[0]);
  memset(w->legs, 0, (size_t)w->words * (size_t)w->n * 2 * sizeof *w->legs);
  for (int x = 0; x < 2 * w->n - 1; x++) {
    if (x >= w->n) cells += eini_path_step(r, kid[x - w->n][0], kid[x - w->n][1]);
    w->node[x] = r->term[x];
    for (int i = r->term[x].head; i >= 0; i = r->next[i]) {
      int l = r->net->labels[i];
      eini_tree_legs(w, x)[l >> 6] |= (uint64_t)1 << (l & 63);
    }
  }
  eini_path_spend(w->s, (20 + w->words) * (int64_t)w->n + 5 * (int64_t)cells);
}

// The window below v: open the dearest node until there are k; inner: the nodes opened, v first.
static int eini_tree_open(const eini_tree_work *w, int v, int k, int *leaf, int *inner) {
  int n = 1;
  leaf[0] = v;
  while (n < k) {
    int at = -1, from = w->shuffle ? eini_path_below(&w->s->rng, n) : 0;
    for (int i = from; i < from + n; i++) {
      int x = leaf[i % n];
      if (x < w->n || (at >= 0 && w->node[x].flops <= w->node[leaf[at]].flops)) continue;
      at = i % n;
      if (w->shuffle) break;
    }
    if (at < 0) break;
    int x = inner[n - 1] = leaf[at];
    leaf[at] = w->kid[x - w->n][0];
    leaf[n++] = w->kid[x - w->n][1];
  }
  return n;
}

// The window as a small problem.
static void eini_tree_problem(eini_tree_work *w, int v, const int *leaf, int k) {
  eini_tree_small *p = &w->small;
  int at = 0;
  p->n = k;
  for (int t = 0; t < k; t++) {
    w->start[t] = at;
    for (int i = 0; i < w->words; i++) {
      uint64_t up = eini_tree_legs(w, v)[i];
      for (uint64_t m = eini_tree_legs(w, leaf[t])[i]; m != 0; m &= m - 1) {
        int l = w->label[at++] = 64 * i + eini_path_bit(m);
        p->in[l] = (up >> (l & 63)) << 63;
      }
    }
  }
  w->start[k] = at;
  for (int t = 0; t < k; t++) {
    for (int i = w->start[t]; i < w->start[t + 1]; i++) p->in[w->label[i]] |= (uint64_t)1 << t;
  }
}

// Find the best tree of the window of nodes below v. 1: improved.
static int eini_tree_window(eini_tree_work *w, int v) {
  int leaf[EINI_TREE_WINDOW], inner[EINI_TREE_WINDOW], made[EINI_TREE_WINDOW];
  eini_path_pair kid[EINI_TREE_WINDOW];
  eini_path_sums sums = {0, 0, 0};
  int k = eini_tree_open(w, v, EINI_TREE_WINDOW, leaf, inner);
  eini_path_spend(w->s, (int64_t)k * (k + 20 + 4 * w->words));
  if (k < 3) return 0;
  eini_tree_problem(w, v, leaf, k);
  for (int i = 0; i < k - 1; i++) {
    const int *c = w->kid[inner[i] - w->n];
    const eini_path_term *d = &w->node[inner[i]];
    eini_path_add(&sums, d->flops, d->size, w->node[c[0]].size + w->node[c[1]].size);
  }
  double cap = eini_path_value(w->s->goal, &sums) * (1 - 1e-9);
  if (eini_tree_exact(w->s, &w->small, w->sub, cap) <= 0) return 0;
  eini_tree_read(w->sub, (1 << k) - 1, k, made, kid);
  for (int i = 0; i < k - 1; i++) {
    const eini_tree_set *d = &w->sub[made[i]];
    int x = inner[k - 2 - i];  // inner[0] = v stays the root
    uint64_t *legs = eini_tree_legs(w, x);
    for (int j = 0; j < 2; j++) {
      w->kid[x - w->n][j] = kid[i][j] < k ? leaf[kid[i][j]] : inner[2 * k - 2 - kid[i][j]];
    }
    w->node[x].size = d->size;
    w->node[x].flops = eini_tree_flops(d, &w->sub[d->a], &w->sub[d->b]);
    memset(legs, 0, (size_t)w->words * sizeof *legs);
    for (uint64_t m = d->set; m != 0; m &= m - 1) {
      int t = eini_path_bit(m);
      for (int j = w->start[t]; j < w->start[t + 1]; j++) {
        int l = w->label[j], open = (w->small.in[l] & ~d->set) != 0;
        legs[l >> 6] |= (uint64_t)open << (l & 63);
      }
    }
  }
  return 1;
}

// Reconfigure windows until none improves; in turn of the best tree, of the best tree with other
// windows, and of a random greedy tree; for so many work steps. The first turn is always done.
static ein_status eini_path_improve(eini_path_search *s, int64_t steps) {
  int n = s->net->nterm, nlabel = s->net->nlabel;
  int64_t stop = s->left - steps;
  eini_tree_work *w = EINI_NEW(s->arena, eini_tree_work, 1);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  w->s = s;
  w->n = n;
  w->words = (nlabel + 63) / 64;
  w->kid = EINI_NEW(s->arena, eini_path_pair, n);
  w->node = EINI_NEW(s->arena, eini_path_term, 2 * n);
  w->legs = EINI_NEW(s->arena, uint64_t, (int64_t)w->words * 2 * n + nlabel);
  w->label = EINI_NEW(s->arena, int, (int64_t)nlabel * EINI_TREE_WINDOW);
  if (w->kid == NULL || w->node == NULL || w->legs == NULL || w->label == NULL)
    return EIN_ERR_NO_MEMORY;
  w->small.in = w->legs + (size_t)w->words * (size_t)n * 2;
  w->small.start = w->start;
  w->small.label = w->label;
  w->small.ext = s->run.ext;
  for (int round = 0; round == 0 || (s->left >= 0 && s->left > stop); round++) {
    int restart = round % 3 == 2, x = 2 * n - 2;
    w->shuffle = round % 3 == 1;
    if (restart) EINI_TRY(eini_path_greedy(s, 1));
    eini_tree_load(w, restart ? s->trial : s->kid);
    for (int quiet = 0; quiet < n - 1 && !eini_path_spend(s, 50); quiet++) {
      if (eini_tree_window(w, x)) quiet = 0;
      x = x > n ? x - 1 : 2 * n - 2;
    }
    eini_tree_sort(n, w->kid, s->trial, s->tmp);
    eini_path_try(s, "reconfigured greedy");
  }
  return EIN_OK;
}

static ein_status eini_path_choose(eini_path_search *s, eini_path_algo algo) {
  int n = s->net->nterm;
  int exact = algo == EINI_PATH_AUTO || algo == EINI_PATH_OPTIMAL;
  int dp = algo == EINI_PATH_DP || algo == EINI_PATH_OPTIMAL || (exact && n <= 32);
  int tiny = exact && n <= 7;
  if (algo != EINI_PATH_NAIVE && !tiny) EINI_TRY(eini_path_greedy(s, 0));
  for (int back = algo == EINI_PATH_AUTO; back >= 0; back--) {  // on a tie inner axes go first
    for (int i = 0; i < n - 1; i++) {
      s->trial[i][0] = i == 0 ? 0 : n + i - 1;
      s->trial[i][1] = back ? n - 1 - i : i + 1;
    }
    eini_path_try(s, back ? "right to left" : "left to right");
  }
  if (tiny) return eini_tree_prove(s, 1);
  if (algo == EINI_PATH_GREEDY || algo == EINI_PATH_NAIVE) return EIN_OK;
  int large = (int64_t)n * ((s->net->nlabel + 63) / 64) > EINI_TREE_MAX;
  for (int i = n <= 64 ? 8 : 2; (large || i > 0) && s->left >= 0; i--) {
    EINI_TRY(eini_path_greedy(s, 1));
  }
  if (large) return EIN_OK;
  if (exact && n <= EINI_PATH_EXACT) {
    if (n > 10) EINI_TRY(eini_path_improve(s, 0));
    return eini_tree_prove(s, 1);
  }
  EINI_TRY(eini_path_improve(s, dp ? eini_min64(50000 * (int64_t)n, s->left / 2) : s->left));
  if (dp && n <= EINI_PATH_LINKED) EINI_TRY(eini_tree_prove(s, 0));
  return s->proved || !dp ? EIN_OK : eini_path_improve(s, s->left);
}

static ein_status eini_path_find_in(eini_arena *scratch, const eini_net *net,
                                    const eini_path_opts *o, eini_path *path) {
  eini_path_search s;
  int n = net->nterm, zeros = 0;
  memset(&s, 0, sizeof s);
  s.arena = scratch;
  s.net = net;
  s.opts = o;
  s.goal = o->goal;
  s.rng = o->seed;
  // Below 0.1 ms for an operand; more for those who ask for more, but always below ten seconds.
  double steps = o->algo == EINI_PATH_AUTO ? 6e4 * (n < 4000 ? n : 4000)
                                           : 1e6 * (n < 2000 ? n : 2000);
  if (o->algo == EINI_PATH_OPTIMAL || o->algo == EINI_PATH_DP) steps = steps / 2 + 2e9;
  if (o->seconds > 0) steps = o->now_fn != NULL ? 1e18 : o->seconds * 1e9;
  if (o->steps > 0) steps = (double)o->steps;
  s.left = steps < 1e18 ? (int64_t)steps : (int64_t)1000000000 * 1000000000;
  if (o->seconds > 0 && o->now_fn != NULL) s.end = o->now_fn(o->now_user) + o->seconds;
  EINI_TRY(eini_path_run_init(&s.run, scratch, net, 2 * n - 1));
  s.kid = EINI_NEW(scratch, eini_path_pair, n);
  s.trial = EINI_NEW(scratch, eini_path_pair, n);
  s.tmp = EINI_NEW(scratch, int, 2 * n);
  if (s.kid == NULL || s.trial == NULL || s.tmp == NULL) return EIN_ERR_NO_MEMORY;
  for (int l = 0; l < net->nlabel; l++) zeros += net->extent[l] <= 0;
  for (int l = 0; l < net->nlabel && zeros > 0; l++)
    if (net->extent[l] <= 0) s.run.ext[l] = ldexp(1.0, -(zeros > 8 ? 480 / zeros : 60));
  EINI_TRY(eini_path_choose(&s, o->algo));
  eini_tree_sort(n, s.kid, s.trial, s.tmp);
  int *sum = eini_path_marks(scratch, n, 2 * n);
  if (sum == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n - 1; i++) {  // to the linear format
    const int *k = o->algo == EINI_PATH_NAIVE ? s.kid[i] : s.trial[i];
    int a = k[0] < k[1] ? k[0] : k[1], b = k[0] + k[1] - a;
    path->pos[2 * i] = eini_path_position(sum, a);
    path->pos[2 * i + 1] = eini_path_position(sum, b);
    eini_path_mark(sum, 2 * n, a, -1);
    eini_path_mark(sum, 2 * n, b, -1);
    eini_path_mark(sum, 2 * n, n + i, 1);
  }
  path->flops = s.best.flops;
  path->largest = s.best.largest;
  path->moved = s.best.moved;
  path->method = s.method;
  path->proved = s.proved;
  int bad;
  return zeros > 0 ? eini_path_cost_in(scratch, net, path, &bad) : EIN_OK;
}

// Find a contraction order of `net`. The path is in `arena`; nothing else stays there.
static ein_status eini_path_find(eini_arena *arena, const eini_net *net,
                                 const eini_path_opts *opts, eini_path *path) {
  int n = net->nterm, bad;
  memset(path, 0, sizeof *path);
  path->method = "trivial";
  path->proved = 1;
  if (n == 0) return EIN_OK;
  if (n > INT_MAX / 8 || net->start[n] > INT_MAX / 8) return EIN_ERR_TOO_LARGE;
  path->nstep = n == 1 ? 1 : n - 1;
  EINI_TRY(eini_path_room(arena, path->nstep, 2 * path->nstep, path));
  for (int i = 0; i <= path->nstep; i++) path->first[i] = n == 1 ? i : 2 * i;
  if (n <= 2) {
    path->pos[1] = 1;
    return eini_path_cost(arena, net, path, &bad);
  }
  eini_arena scratch;
  eini_arena_init(&scratch, &arena->al);
  scratch.next_size += (size_t)(n < 2000 ? n : 2000) * 320;  // one block for most searches
  ein_status status = eini_path_find_in(&scratch, net, opts, path);
  eini_arena_free(&scratch);
  return status;
}
// ================================================================================================
// >>rewrite  from n-ary statements to sequences of small ones
// Takes a product of values and its fold; gives statements in a contraction order. Only legal
// splits (DESIGN: the way of the data); everything else stays one n-ary pass.
// ================================================================================================

typedef struct eini_split {
  ein_graph *g;
  eini_diag *diag;
  const eini_index *label;  // name and extent of each label id
  int nlabel;
  int *local;               // label id -> column of the statement being built, or -1
  int fold, join;           // join: EINI_OP_MUL, EINI_OP_ADD, ..
  int numpy;
  int64_t pos;
  int serial;               // numbers the temporaries
  int fastest;              // 1: a path gives way to one pass where that is predicted to be faster
  const ein_rates *rates;   // of the kernels that will run; NULL: not known
} eini_split;

// Appends a copy of a value's expression to *e, its operands numbered from op0 and its index
// values mapped to columns. Returns the root's node, -1 when out of memory.
static int eini_value_append(eini_split *sp, eini_expr *e, const eini_value *v, int op0) {
  int64_t base = e->n;
  for (int64_t i = 0; i < v->expr.n; i++) {
    eini_node n = v->expr.node[i];
    int id;
    if (n.op == EINI_OP_CALL) {
      int args[EINI_ARGS_MAX] = {0};
      for (int k = 0; k < n.arg[2]; k++) args[k] = v->expr.list[n.arg[1] + k] + (int)base;
      id = eini_expr_call(&sp->g->arena, e, n.pos, n.arg[0], n.arg[2], args);
      if (id < 0) return -1;
      e->node[id].dtype = n.dtype;
      continue;
    }
    id = eini_expr_add(&sp->g->arena, e, n.op, n.pos, 0, 0, 0);
    if (id < 0) return -1;
    if (n.op == EINI_OP_OPERAND) n.arg[0] += op0;
    if (n.op == EINI_OP_INDEX) n.arg[0] = sp->local[n.arg[0]];
    for (int k = 0; k < eini_ops[n.op].args; k++) n.arg[k] += (int)base;
    e->node[id] = n;
  }
  return (int)e->n - 1;
}

// The labels of a statement: the output's in the order of its axes, then the reduced ones.
static ein_status eini_stmt_labels(eini_split *sp, const eini_value *out, int nval,
                                   const eini_value *const *val, int **list, int *n, int *nfree) {
  int64_t room = out->nlabel;
  for (int i = 0; i < nval; i++) room += val[i]->nlabel;
  int *ids = EINI_NEW(&sp->g->arena, int, room);
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  int at = 0;
  for (int r = 0; r < out->map->rows; r++) {
    for (int c = 0; c < out->nlabel; c++) {
      int id = out->label[c];
      if (out->map->coef[(int64_t)r * out->nlabel + c] == 0 || sp->local[id] >= 0) continue;
      sp->local[id] = at;
      ids[at++] = id;
    }
  }
  for (int c = 0; c < out->nlabel; c++) {  // extent-1 labels may have no coefficient
    if (sp->local[out->label[c]] >= 0) continue;
    sp->local[out->label[c]] = at;
    ids[at++] = out->label[c];
  }
  *nfree = at;
  for (int i = 0; i < nval; i++) {
    for (int c = 0; c < val[i]->nlabel; c++) {
      int id = val[i]->label[c];
      if (sp->local[id] >= 0) continue;
      sp->local[id] = at;
      ids[at++] = id;
    }
  }
  *list = ids;
  *n = at;
  return EIN_OK;
}

static void eini_map_columns(const eini_split *sp, const eini_value *v, const ein_zmap *from,
                             ein_zmap *to) {
  for (int r = 0; r < from->rows; r++) {
    to->offset[r] = from->offset[r];
    for (int c = 0; c < v->nlabel; c++) {
      to->coef[(int64_t)r * to->cols + sp->local[v->label[c]]] =
          from->coef[(int64_t)r * v->nlabel + c];
    }
  }
}

// Adds the statement out = fold over the labels out lacks of join(values).
static ein_status eini_emit_stmt(eini_split *sp, const eini_value *out, int nval,
                            const eini_value *const *val, ein_rest rest) {
  ein_graph *g = sp->g;
  int *ids, n, nfree;
  EINI_TRY(eini_stmt_labels(sp, out, nval, val, &ids, &n, &nfree));
  int nop = 0;
  for (int i = 0; i < nval; i++) nop += val[i]->nop;
  int *ops = EINI_NEW(&g->arena, int, nop);
  if (ops == NULL) return EIN_ERR_NO_MEMORY;
  nop = 0;
  for (int i = 0; i < nval; i++) {
    for (int k = 0; k < val[i]->nop; k++) ops[nop++] = val[i]->op[k];
  }
  eini_stmt *s;
  EINI_TRY(eini_graph_add_stmt(g, out->op[0], n, nop, ops, &s));
  s->nfree = nfree;
  s->fold = n > nfree ? sp->fold : EINI_FOLD_NONE;
  s->numpy = sp->numpy;
  s->rest = rest;
  s->pos = sp->pos;
  for (int i = 0; i < n; i++) s->index[i] = sp->label[ids[i]];
  eini_map_columns(sp, out, out->map, &s->out_map);
  int op0 = 0, root = -1;
  for (int i = 0; i < nval; i++) {
    for (int k = 0; k < val[i]->nop; k++)
      eini_map_columns(sp, val[i], &val[i]->map[k], &s->proj[op0 + k]);
    int r = eini_value_append(sp, &s->expr, val[i], op0);
    op0 += val[i]->nop;
    if (r >= 0 && root >= 0) r = eini_expr_add(&g->arena, &s->expr, sp->join, sp->pos, root, r, 0);
    if (r < 0) return EIN_ERR_NO_MEMORY;
    root = r;
  }
  for (int i = 0; i < n; i++) sp->local[ids[i]] = -1;
  EINI_TRY(eini_stmt_finish(g, s, sp->diag));
  eini_tensor_fix_dtype(&g->tensor[out->op[0]]);
  return EIN_OK;
}

// A temporary over the given labels, one axis each, and the value that reads (or writes) it.
static ein_status eini_temp_value(eini_split *sp, int nlabel, const int *label, eini_value *v) {
  eini_arena *a = &sp->g->arena;
  memset(v, 0, sizeof *v);
  v->nlabel = nlabel;
  v->nop = 1;
  v->label = EINI_NEW(a, int, nlabel);
  v->op = EINI_NEW(a, int, 1);
  v->map = EINI_NEW(a, ein_zmap, 1);
  int64_t *shape = EINI_NEW(a, int64_t, nlabel);
  if (v->label == NULL || v->op == NULL || v->map == NULL || shape == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nlabel; i++) v->label[i] = label[i], shape[i] = sp->label[label[i]].extent;
  eini_sort_ints(v->label, nlabel);
  EINI_TRY(eini_zmap_new(a, nlabel, nlabel, v->map));
  for (int i = 0; i < nlabel; i++) {
    v->map->coef[(int64_t)i * nlabel + eini_find_sorted(v->label, nlabel, label[i])] = 1;
  }
  char name[32];
  int len = snprintf(name, sizeof name, "T.%d", ++sp->serial);
  EINI_TRY(eini_graph_add_tensor(sp->g, name, len, EIN_ROLE_TEMP, EIN_NONE, nlabel, shape, v->op));
  return eini_expr_add(a, &v->expr, EINI_OP_OPERAND, sp->pos, 0, 0, 0) < 0 ? EIN_ERR_NO_MEMORY
                                                                          : EIN_OK;
}

static void eini_count_labels(int *uses, const eini_value *v, int by) {
  for (int c = 0; c < v->nlabel; c++) uses[v->label[c]] += by;
}

// A value that is more than a tensor's elements at its labels: a diagonal, a conversion, a product.
static int eini_value_plain(const eini_value *v) {
  return v->nop == 1 && v->expr.n == 1 && v->map->rows == v->nlabel;
}

// Reduces a value over the labels that nothing else needs, in a statement of its own.
static ein_status eini_prereduce(eini_split *sp, int *uses, eini_value *v, int *kept) {
  int n = 0, gone = 0;
  for (int c = 0; c < v->nlabel; c++) {
    if (uses[v->label[c]] > 1) kept[n++] = v->label[c];
    else gone |= sp->label[v->label[c]].extent != 1;
  }
  if (!gone) return EIN_OK;
  eini_value t;
  EINI_TRY(eini_temp_value(sp, n, kept, &t));
  const eini_value *one = v;
  EINI_TRY(eini_emit_stmt(sp, &t, 1, &one, EIN_REST_ERROR));
  eini_count_labels(uses, v, -1);
  eini_count_labels(uses, &t, 1);
  *v = t;
  return EIN_OK;
}

// The network of a product, for the path search.
static ein_status eini_net_build(eini_arena *a, const eini_split *sp, int nval,
                                 const eini_value *val, const eini_value *out, eini_net *net) {
  memset(net, 0, sizeof *net);
  int64_t total = out->nlabel;
  for (int k = 0; k < nval; k++) total += val[k].nlabel;
  int *start = EINI_NEW(a, int, nval + 2), *labels = EINI_NEW(a, int, total + 1);
  int64_t *extent = EINI_NEW(a, int64_t, sp->nlabel + 1);
  if (start == NULL || labels == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  if (total > INT_MAX - 2) return EIN_ERR_TOO_LARGE;
  int at = 0;
  for (int k = 0; k <= nval; k++) {
    const eini_value *v = k < nval ? &val[k] : out;
    start[k] = at;
    for (int c = 0; c < v->nlabel; c++) labels[at++] = v->label[c];
  }
  start[nval + 1] = at;
  for (int i = 0; i < sp->nlabel; i++) extent[i] = sp->label[i].extent;
  net->nterm = nval;
  net->nlabel = sp->nlabel;
  net->extent = extent;
  net->start = start;
  net->labels = labels;
  return EIN_OK;
}

// ---- one pass or pairs ----

#define EINI_PASS_MOST 10  // factors for which all assignments to P and Q are tried
// Measured with bench/networks.c on Zen 5: a task beyond its arithmetic; a block of a batch, and
// each operand of a product that is made while packing, for a run along an index; an element that
// is added up alone.
#define EINI_TASK_SECONDS 5e-8
#define EINI_RUN_SECONDS 5e-9
#define EINI_ADD_SECONDS 3e-10
#define EINI_WEIGH_SECONDS 5e-5  // up to where the kernels are asked about pairs from left to right
#define EINI_DOUBT_SECONDS 1e-7  // what a task may take more than predicted, by the way it is run

// A product as the time model sees it: labels as bits.
typedef struct eini_pass {
  const eini_split *sp;
  int n;
  uint64_t mask[2 * EINI_PASS_MOST], out;
  int stored[2 * EINI_PASS_MOST];  // 1: in memory; 0: a temporary that stays in a cache
  double size, flops;              // bytes per element; flops per second
} eini_pass;

static double eini_mask_size(const eini_split *sp, uint64_t mask) {
  double n = 1;
  for (; mask != 0; mask &= mask - 1) n *= (double)sp->label[EINI_CTZ(mask)].extent;
  return n;
}

static double eini_mask_longest(const eini_split *sp, uint64_t mask) {
  double n = 1;
  for (; mask != 0; mask &= mask - 1) n = fmax(n, (double)sp->label[EINI_CTZ(mask)].extent);
  return n;
}

static int eini_bits(uint32_t x) {
  int n = 0;
  for (; x != 0; x &= x - 1) n++;
  return n;
}

// Work of one pass over two factors along an index that a third lacks, pair after pair in the best
// order, for kernels that go along it in blocks.
static double eini_pass_fused(const eini_pass *w, uint32_t p, uint32_t q, uint64_t out,
                              double work) {
  if (eini_bits(p) != 2 || eini_bits(q) != 1 || w->sp->rates->fused <= 0) return work;
  uint64_t f[3] = {w->mask[EINI_CTZ(p)], w->mask[EINI_CTZ(p & (p - 1))], w->mask[EINI_CTZ(q)]};
  double most = 0;
  for (uint64_t m = f[0] & f[1] & out & ~f[2]; m != 0; m &= m - 1)
    most = fmax(most, (double)w->sp->label[EINI_CTZ(m)].extent);
  for (int i = 0; i < 3 && most >= w->sp->rates->fused; i++) {
    uint64_t last = f[i], pair = f[(i + 1) % 3] | f[(i + 2) % 3];
    work = fmin(work, 2 * (eini_mask_size(w->sp, pair) +
                           eini_mask_size(w->sp, (pair & (out | last)) | last)));
  }
  return work;
}

// Seconds of one contraction with the factors `p` on one side and `q` on the other. A panel of
// fewer than 8 rows or columns keeps the arithmetic from its peak; products of factors are made
// while packing, at an eighth of the peak where runs are long.
static double eini_pass_seconds(const eini_pass *w, uint32_t p, uint32_t q, uint64_t out,
                                int out_stored) {
  uint64_t mp = 0, mq = 0;
  double bytes = out_stored ? eini_mask_size(w->sp, out) : 0;
  for (int k = 0; k < w->n; k++) {
    if (p >> k & 1) mp |= w->mask[k];
    if (q >> k & 1) mq |= w->mask[k];
    if ((p | q) >> k & 1 && w->stored[k]) bytes += eini_mask_size(w->sp, w->mask[k]);
  }
  double m = eini_mask_size(w->sp, mp & ~mq & out), n = eini_mask_size(w->sp, mq & ~mp & out);
  double fit = (m < 8 ? m / 8 : 1) * (n < 8 ? n / 8 : 1);
  double work = 2 * eini_mask_size(w->sp, mp | mq) / (fit > 0.25 ? fit : 0.25);
  if (p != 0) work += 8 * (eini_bits(p) - 1) * eini_mask_size(w->sp, mp);
  if (q != 0) work += 8 * (eini_bits(q) - 1) * eini_mask_size(w->sp, mq);
  work = eini_pass_fused(w, p, q, out, eini_pass_fused(w, q, p, out, work));
  double runs = 0, batch = eini_mask_size(w->sp, mp & mq & out);
  for (int side = 0; side < 2; side++) {
    const uint64_t mask = side ? mq : mp;
    const int factors = eini_bits(side ? q : p);
    if (factors > 1)
      runs += factors * eini_mask_size(w->sp, mask) / fmin(eini_mask_longest(w->sp, mask), 256);
  }
  if (eini_mask_size(w->sp, mp | mq) > batch) runs += batch;
  double compute = work / w->flops + EINI_RUN_SECONDS * runs;
  double memory = bytes * w->size / w->sp->rates->copy_bw;
  return (compute > memory ? compute + 0.2 * memory : memory + 0.2 * compute) + EINI_TASK_SECONDS;
}

// The labels of factor x that something else has too: the output, or one of the n factors listed.
// What is left out is summed in a task of its own, whose seconds are added.
static uint64_t eini_pass_reduce(const eini_pass *w, const int *list, int n, int x,
                                 double *seconds) {
  uint64_t others = w->out, mask = w->mask[x];
  for (int k = 0; k < n; k++) others |= list[k] == x ? 0 : w->mask[list[k]];
  if (eini_mask_size(w->sp, mask & ~others) == 1) return mask;
  *seconds += EINI_TASK_SECONDS + EINI_ADD_SECONDS * eini_mask_size(w->sp, mask);
  if (w->stored[x])
    *seconds += eini_mask_size(w->sp, mask) * w->size / w->sp->rates->copy_bw;
  return mask & others;
}

// Seconds along a path of pairs; temporaries that fit a core's cache cost no traffic. *spills: some
// do not.
static double eini_path_seconds(eini_pass w, const eini_path *path, int *spills) {
  int list[EINI_PASS_MOST], left = w.n;
  double seconds = 0;
  for (int k = 0; k < left; k++) list[k] = k;
  for (int i = 0; i < path->nstep; i++) {
    if (path->first[i + 1] - path->first[i] < 2) continue;
    int a = path->pos[path->first[i]], b = path->pos[path->first[i] + 1];
    int x = list[a], y = list[b], last = left == 2;
    uint64_t kept = w.out;
    for (int side = 0; side < 2; side++) {
      const int z = side ? y : x;
      const uint64_t mask = eini_pass_reduce(&w, list, left, z, &seconds);
      if (mask != w.mask[z]) w.stored[z] = 0;
      w.mask[z] = mask;
    }
    for (int k = 0; k < left; k++) kept |= k == a || k == b ? 0 : w.mask[list[k]];
    kept &= w.mask[x] | w.mask[y];
    w.stored[w.n] = last || eini_mask_size(w.sp, kept) * w.size > w.sp->rates->fast_bytes;
    *spills |= !last && w.stored[w.n];
    w.mask[w.n++] = kept;
    seconds += eini_pass_seconds(&w, 1u << x, 1u << y, kept, w.stored[w.n - 1]);
    for (int k = a, to = a; k < left; k++) {
      if (k != a && k != b) list[to++] = list[k];
    }
    list[left - 2] = w.n - 1;
    left--;
  }
  return seconds;
}

// A product as the time model needs it; 0: it has none.
static int eini_pass_init(const eini_split *sp, int n, const eini_value *val,
                          const eini_value *out, eini_pass *w) {
  memset(w, 0, sizeof *w);
  if (sp->rates == NULL || sp->rates->copy_bw <= 0 || n < 3 || n > EINI_PASS_MOST ||
      sp->nlabel > 64 || sp->fold != EINI_SUM || sp->join != EINI_OP_MUL) {
    return 0;
  }
  ein_dtype t = ein_dtype_compute(sp->g->tensor[val[0].op[0]].dtype);
  w->sp = sp;
  w->n = n;
  w->size = (double)ein_dtype_size(t);
  w->flops = t == EIN_F32 || t == EIN_C64 ? sp->rates->flops_f32 : sp->rates->flops_f64;
  if (w->flops <= 0 || t == EIN_BOOL) return 0;
  for (int c = 0; c < out->nlabel; c++) w->out |= (uint64_t)1 << out->label[c];
  for (int k = 0; k < n; k++) {
    if (val[k].nop != 1 || val[k].expr.n != 1) return 0;
    w->stored[k] = 1;
    for (int c = 0; c < val[k].nlabel; c++) w->mask[k] |= (uint64_t)1 << val[k].label[c];
  }
  return 1;
}

// Which way is predicted to be fastest? *p gets the factors of P in one pass, *plain the pairs from
// left to right; predictions go to path->seconds. Where tasks are short, steps as found must win by
// more than the doubt about so many of them, else they are left only for what is surely faster. One
// pass must save traffic: what stays in a cache costs less than products of factors do.
static ein_status eini_pass_choose(const eini_split *sp, int n, const eini_value *val,
                                   const eini_value *out, eini_path *path, uint32_t *p,
                                   eini_path *plain, int *way) {
  eini_pass w;
  double *sec = path->seconds;
  int spills = 0;
  *way = EINI_AS_FOUND;
  if (!eini_pass_init(sp, n, val, out, &w)) return EIN_OK;
  *plain = *path;
  plain->method = "left to right";
  EINI_TRY(eini_path_room(&sp->g->arena, n - 1, 2 * n, plain));
  for (int i = 0; i < n - 1; i++) {
    plain->first[i + 1] = 2 * (i + 1);
    plain->pos[2 * i + 1] = i == 0 ? 1 : n - 1 - i;
  }
  sec[EINI_LEFT_TO_RIGHT] = eini_path_seconds(w, plain, &spills);
  spills = 0;
  sec[EINI_AS_FOUND] = eini_path_seconds(w, path, &spills);
  for (uint32_t s = 1; s < (1u << n) - 1; s += 2) {  // P has the first factor
    double x = eini_pass_seconds(&w, s, ((1u << n) - 1) & ~s, w.out, 1);
    if (s == 1 || x < sec[EINI_ONE_PASS]) sec[EINI_ONE_PASS] = x, *p = s;
  }
  const double doubt = (n - 1) * EINI_DOUBT_SECONDS, found = sec[EINI_AS_FOUND];
  if (sec[EINI_LEFT_TO_RIGHT] < (found < 5 * doubt ? found + doubt : 0.95 * found))
    *way = EINI_LEFT_TO_RIGHT;
  if (spills && sec[EINI_ONE_PASS] < sec[*way]) *way = EINI_ONE_PASS;
  return EIN_OK;
}

// The product of the values that are in the set (bits; NULL: of all), as one value.
static ein_status eini_value_join(eini_split *sp, int n, const eini_value *val,
                                  const uint32_t *set, eini_value *all) {
  eini_arena *a = &sp->g->arena;
  memset(all, 0, sizeof *all);
  all->label = EINI_NEW(a, int, sp->nlabel);
  all->op = EINI_NEW(a, int, n);
  all->map = EINI_NEW(a, ein_zmap, n);
  if (all->label == NULL || all->op == NULL || all->map == NULL) return EIN_ERR_NO_MEMORY;
  for (int id = 0; id < sp->nlabel; id++) {
    int used = 0;
    for (int k = 0; k < n; k++) {
      used |= (set == NULL || *set >> k & 1) &&
              eini_find_sorted(val[k].label, val[k].nlabel, id) >= 0;
    }
    if (used) all->label[all->nlabel++] = id;
  }
  int root = -1;
  for (int k = 0; k < n; k++) {
    const eini_value *v = &val[k];
    if (set != NULL && !(*set >> k & 1)) continue;
    int at = all->nop++;
    all->op[at] = v->op[0];
    EINI_TRY(eini_zmap_new(a, v->map[0].rows, all->nlabel, &all->map[at]));
    for (int r = 0; r < v->map[0].rows; r++) {
      all->map[at].offset[r] = v->map[0].offset[r];
      for (int c = 0; c < v->nlabel; c++) {
        int to = eini_find_sorted(all->label, all->nlabel, v->label[c]);
        all->map[at].coef[(int64_t)r * all->nlabel + to] =
            v->map[0].coef[(int64_t)r * v->nlabel + c];
      }
    }
    int x = eini_value_append(sp, &all->expr, v, at);
    if (x >= 0 && root >= 0) x = eini_expr_add(a, &all->expr, sp->join, sp->pos, root, x, 0);
    if (x < 0) return EIN_ERR_NO_MEMORY;
    root = x;
  }
  return EIN_OK;
}

static ein_status eini_emit_pass(eini_split *sp, int n, const eini_value *val,
                                 const eini_value *out, uint32_t p, ein_rest rest) {
  eini_value side[2];
  const eini_value *both[2];
  const uint32_t q = ((1u << n) - 1) & ~p;
  EINI_TRY(eini_value_join(sp, n, val, &p, &side[0]));
  EINI_TRY(eini_value_join(sp, n, val, &q, &side[1]));
  both[0] = &side[0];
  both[1] = &side[1];
  return eini_emit_stmt(sp, out, 2, both, rest);
}

// A product being carried out along a path.
typedef struct eini_along {
  eini_value *val;
  int *list, nval;          // the values still there, in the order positions count them
  int *uses, *kept, *seen;  // per label: values and outputs that have it; room; the last step
  const eini_value **part;  // of a step
} eini_along;

// Step i takes m values, whose positions are p, into *target (NULL: a temporary) and appends the
// result. One value alone is reduced to the labels that others need; where there is nothing to
// reduce, it only moves to the end.
static ein_status eini_split_step(eini_split *sp, eini_along *w, int i, const int *p, int m,
                                  const eini_value *target, ein_rest rest) {
  eini_value t;
  int n = 0;
  for (int k = 0; k < m; k++) {
    eini_value *v = &w->val[w->list[p[k]]];
    if (m > 1) EINI_TRY(eini_prereduce(sp, w->uses, v, w->kept));
    w->part[k] = v;
  }
  for (int k = 0; k < m; k++) eini_count_labels(w->uses, w->part[k], -1);
  for (int k = 0; k < m; k++) {
    for (int c = 0; c < w->part[k]->nlabel; c++) {
      int id = w->part[k]->label[c];
      if (w->uses[id] > 0 && w->seen[id] != i + 1) w->kept[n++] = id;
      w->seen[id] = i + 1;
    }
  }
  int same = target == NULL && m == 1 && n == w->part[0]->nlabel && eini_value_plain(w->part[0]);
  if (same) t = *w->part[0];
  else if (target == NULL) EINI_TRY(eini_temp_value(sp, n, w->kept, &t));
  if (!same)
    EINI_TRY(eini_emit_stmt(sp, target == NULL ? &t : target, m, w->part, rest));
  if (target != NULL) return EIN_OK;
  int room = w->list[p[0]], left = p[0];
  for (int k = p[0], q = 0; k < w->nval; k++) {
    if (q < m && p[q] == k) q++;
    else w->list[left++] = w->list[k];
  }
  w->val[room] = t;
  w->list[left++] = room;
  w->nval = left;
  eini_count_labels(w->uses, &t, 1);
  return EIN_OK;
}

// Emits a product of values along a path. val is consumed.
static ein_status eini_split_along(eini_split *sp, int nval, eini_value *val,
                                   const eini_value *out, const eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  eini_along w;
  w.val = val;
  w.nval = nval;
  w.list = EINI_NEW(a, int, nval);
  w.uses = EINI_NEW(a, int, sp->nlabel);
  w.kept = EINI_NEW(a, int, sp->nlabel);
  w.seen = EINI_NEW(a, int, sp->nlabel);
  w.part = EINI_NEW(a, const eini_value *, nval);
  if (w.list == NULL || w.uses == NULL || w.kept == NULL || w.seen == NULL || w.part == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < nval; k++) {
    eini_count_labels(w.uses, &val[k], 1);
    w.list[k] = k;
  }
  eini_count_labels(w.uses, out, 1);
  for (int i = 0; i < path->nstep; i++) {
    const int *p = path->pos + path->first[i], m = path->first[i + 1] - path->first[i];
    int last = i == path->nstep - 1;
    EINI_TRY(eini_split_step(sp, &w, i, p, m, last ? out : NULL, last ? rest : EIN_REST_ERROR));
  }
  return EIN_OK;
}

// Emits a product along a path; where that may be, in the way that is predicted to be fastest. Then
// the path becomes that: for one pass, one step of all values.
static ein_status eini_split_best(eini_split *sp, const eini_net *net, eini_value *val,
                                  const eini_value *out, eini_path *path, ein_rest rest) {
  uint32_t side = 0;
  int n = net->nterm, bad, way = EINI_AS_FOUND;
  eini_path plain;
  if (sp->fastest) EINI_TRY(eini_pass_choose(sp, n, val, out, path, &side, &plain, &way));
  if (way == EINI_AS_FOUND) return eini_split_along(sp, n, val, out, path, rest);
  path->method = eini_path_way[way];
  path->proved = 0;
  if (way == EINI_LEFT_TO_RIGHT) {
    memcpy(path->first, plain.first, (size_t)n * sizeof *path->first);
    memcpy(path->pos, plain.pos, 2 * ((size_t)n - 1) * sizeof *path->pos);
  } else {
    path->nstep = 1;
    path->first[1] = n;
    for (int k = 0; k < n; k++) path->pos[k] = k;
  }
  EINI_TRY(eini_path_cost(&sp->g->arena, net, path, &bad));
  return way == EINI_ONE_PASS ? eini_emit_pass(sp, n, val, out, side, rest)
                              : eini_split_along(sp, n, val, out, path, rest);
}

// ---- program statements: find the product, check the law ----

// Does join distribute over fold, and is it a commutative, associative product?
static int eini_legal_join(const ein_graph *g, int fold, int op) {
  unsigned joins =
      fold >= EINI_FOLD_USER ? g->monoid[fold - EINI_FOLD_USER].joins : eini_folds[fold].joins;
  switch (op) {
    case EINI_OP_MUL: return (joins & EIN_JOIN_MUL) && fold != EINI_ANY;
    case EINI_OP_AND: return fold == EINI_ANY;
    case EINI_OP_OR: return fold == EINI_ALL;
    case EINI_OP_ADD: return (joins & EIN_JOIN_ADD) != 0;
    case EINI_OP_MAX: return (joins & EIN_JOIN_MAX) && fold != EINI_ALL;
    case EINI_OP_MIN: return (joins & EIN_JOIN_MIN) != 0;
    default: return 0;
  }
}

static void eini_mark_needed(const eini_expr *e, int root, char *need) {
  need[root] = 1;
  for (int i = root; i >= 0; i--) {
    const eini_node *n = &e->node[i];
    for (int k = 0; need[i] && k < eini_node_args(n); k++) need[eini_node_arg(e, n, k)] = 1;
  }
}

// Is the node a quotient of sums as well as a sum of quotients? Its divisor must be the same for
// all reduced indices, and what is divided of the same type. need: room for all nodes.
static int eini_hoistable(const eini_stmt *s, int id, char *need) {
  const eini_node *v = &s->expr.node[id];
  if (v->op != EINI_OP_DIV || s->fold != EINI_SUM) return 0;
  const int top = v->arg[0], under = v->arg[1];
  if (ein_dtype_compute((ein_dtype)s->expr.node[top].dtype) !=
      ein_dtype_compute((ein_dtype)v->dtype)) {
    return 0;
  }
  memset(need, 0, (size_t)s->expr.n);
  eini_mark_needed(&s->expr, under, need);
  for (int i = 0; i <= under; i++) {
    const eini_node *x = &s->expr.node[i];
    if (!need[i]) continue;
    if (x->op == EINI_OP_INDEX && x->arg[0] >= s->nfree) return 0;
    if (x->op != EINI_OP_OPERAND) continue;
    const ein_zmap *m = &s->proj[x->arg[0]];
    for (int64_t c = 0; c < (int64_t)m->rows * m->cols; c++)
      if (m->coef[c] != 0 && c % m->cols >= s->nfree) return 0;
  }
  return 1;
}

// Roots of the factors of a typed product, then of the m divisors that may follow the fold; casts
// stop it, so types never change.
static ein_status eini_factors(eini_arena *a, const eini_stmt *s, int join, int **roots, int *n,
                               int *m) {
  const eini_expr *e = &s->expr;
  int *stack = EINI_NEW(a, int, e->n + 1), *list = EINI_NEW(a, int, 2 * e->n + 2);
  int *under = EINI_NEW(a, int, e->n + 1);
  char *need = EINI_NEW(a, char, e->n);
  if (stack == NULL || list == NULL || under == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  int top = 0;
  *n = *m = 0;
  stack[top++] = (int)e->n - 1;
  while (top > 0) {
    int id = stack[--top];
    const eini_node *v = &e->node[id];
    if (v->op == join && top + 2 <= e->n && *n + top < e->n) {
      stack[top++] = v->arg[1];
      stack[top++] = v->arg[0];
    } else if (join == EINI_OP_MUL && *m < e->n && eini_hoistable(s, id, need)) {
      stack[top++] = v->arg[0];
      under[(*m)++] = v->arg[1];
    } else {
      list[(*n)++] = id;
    }
  }
  for (int k = 0; k < *m; k++) list[*n + k] = under[k];
  *roots = list;
  return EIN_OK;
}

// The sub-expression under a root as a value of its own. label ids are the statement's columns.
static ein_status eini_factor_value(ein_graph *g, const eini_stmt *s, int root, eini_value *v) {
  eini_arena *a = &g->arena;
  memset(v, 0, sizeof *v);
  int *map = EINI_NEW(a, int, root + 1), *opmap = EINI_NEW(a, int, s->noperand + 1);
  char *need = EINI_NEW(a, char, root + 1), *seen = EINI_NEW(a, char, s->nindex + 1);
  v->op = EINI_NEW(a, int, s->noperand + 1);
  v->map = EINI_NEW(a, ein_zmap, s->noperand + 1);
  v->label = EINI_NEW(a, int, s->nindex + 1);
  if (map == NULL || opmap == NULL || need == NULL || seen == NULL || v->op == NULL ||
      v->map == NULL || v->label == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  eini_mark_needed(&s->expr, root, need);
  for (int i = 0; i <= root; i++) {
    if (!need[i]) continue;
    eini_node n = s->expr.node[i];
    if (n.op == EINI_OP_OPERAND) {
      int k = n.arg[0];
      if (opmap[k] == 0) {
        v->op[v->nop] = s->operand[k];
        v->map[v->nop] = s->proj[k];
        opmap[k] = ++v->nop;
        for (int64_t c = 0; c < (int64_t)s->proj[k].rows * s->nindex; c++)
          if (s->proj[k].coef[c] != 0) seen[c % s->nindex] = 1;
      }
      n.arg[0] = opmap[k] - 1;
    } else if (n.op == EINI_OP_INDEX) {
      seen[n.arg[0]] = 1;
    }
    int args[EINI_ARGS_MAX] = {0};
    for (int k = 0; k < eini_node_args(&n); k++) args[k] = map[eini_node_arg(&s->expr, &n, k)];
    if (n.op == EINI_OP_CALL) {
      map[i] = eini_expr_call(a, &v->expr, n.pos, n.arg[0], n.arg[2], args);
      if (map[i] >= 0) v->expr.node[map[i]].dtype = n.dtype;
    } else {
      map[i] = eini_expr_add(a, &v->expr, n.op, n.pos, 0, 0, 0);
      for (int k = 0; k < eini_ops[n.op].args; k++) n.arg[k] = args[k];
      if (map[i] >= 0) v->expr.node[map[i]] = n;
    }
    if (map[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  for (int c = 0; c < s->nindex; c++)
    if (seen[c]) v->label[v->nlabel++] = c;
  for (int k = 0; k < v->nop; k++) {  // keep the columns of its own labels only
    ein_zmap full = v->map[k];
    EINI_TRY(eini_zmap_new(a, full.rows, v->nlabel, &v->map[k]));
    for (int r = 0; r < full.rows; r++) {
      v->map[k].offset[r] = full.offset[r];
      for (int c = 0; c < v->nlabel; c++) {
        v->map[k].coef[(int64_t)r * v->nlabel + c] =
            full.coef[(int64_t)r * full.cols + v->label[c]];
      }
    }
  }
  return EIN_OK;
}

// Factors without an index (literals, params, rank-0 tensors) ride along with the smallest factor.
static ein_status eini_merge_scalars(eini_split *sp, eini_value *val, int *n) {
  int best = -1, kept = 0;
  double low = 0;
  for (int k = 0; k < *n; k++) {
    double size = 1;
    for (int c = 0; c < val[k].nlabel; c++) size *= (double)sp->label[val[k].label[c]].extent;
    if (val[k].nlabel > 0 && (best < 0 || size < low)) best = k, low = size;
  }
  if (best < 0) return EIN_OK;
  eini_arena *a = &sp->g->arena;
  eini_value *v = &val[best];
  for (int k = 0; k < *n; k++) {
    if (val[k].nlabel > 0) continue;
    eini_value *x = &val[k];
    int *op = EINI_NEW(a, int, v->nop + x->nop);
    ein_zmap *map = EINI_NEW(a, ein_zmap, v->nop + x->nop);
    if (op == NULL || map == NULL) return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < v->nop; i++) op[i] = v->op[i], map[i] = v->map[i];
    for (int i = 0; i < x->nop; i++) {
      op[v->nop + i] = x->op[i];
      EINI_TRY(eini_zmap_new(a, x->map[i].rows, v->nlabel, &map[v->nop + i]));
      for (int r = 0; r < x->map[i].rows; r++) map[v->nop + i].offset[r] = x->map[i].offset[r];
    }
    int left = (int)v->expr.n - 1;
    int right = eini_value_append(sp, &v->expr, x, v->nop);
    if (right < 0 || eini_expr_add(a, &v->expr, sp->join, sp->pos, left, right, 0) < 0)
      return EIN_ERR_NO_MEMORY;
    v->nop += x->nop;
    v->op = op;
    v->map = map;
  }
  for (int k = 0; k < *n; k++)
    if (val[k].nlabel > 0) val[kept++] = val[k];
  *n = kept;
  return EIN_OK;
}

// Emits the product of n values into target, in an order of its own when there are two or more.
static ein_status eini_split_product(eini_split *sp, int n, eini_value *val,
                                     const eini_value *target, const eini_path_opts *opts,
                                     eini_path *path, ein_rest rest) {
  const eini_value *one = val;
  eini_net net;
  if (n == 1) return eini_emit_stmt(sp, target, 1, &one, rest);
  EINI_TRY(eini_net_build(&sp->g->arena, sp, n, val, target, &net));
  EINI_TRY(eini_path_find(&sp->g->arena, &net, opts, path));
  return eini_split_best(sp, &net, val, target, path, rest);
}

// The product into a temporary over the free labels that it has, then that over the m divisors.
static ein_status eini_split_quotient(eini_split *sp, int n, eini_value *val, int m,
                                      const eini_value *under, const int *uses,
                                      const eini_value *out, const eini_path_opts *opts,
                                      eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  int *kept = EINI_NEW(a, int, out->nlabel), nkept = 0;
  const eini_value **all = EINI_NEW(a, const eini_value *, m + 1);
  eini_value t;
  if (kept == NULL || all == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < out->nlabel; c++)
    if (uses[out->label[c]] > 0) kept[nkept++] = out->label[c];
  EINI_TRY(eini_temp_value(sp, nkept, kept, &t));
  EINI_TRY(eini_split_product(sp, n, val, &t, opts, path, EIN_REST_ERROR));
  all[0] = &t;
  for (int k = 0; k < m; k++) all[k + 1] = &under[k];
  sp->join = EINI_OP_DIV;
  return eini_emit_stmt(sp, out, m + 1, all, rest);
}

// Splits one folded statement of a program when that is legal and there are three factors or more,
// an index that only one factor has, or a divisor that the whole sum has. *done tells whether it
// was replaced by emitted statements.
static ein_status eini_split_stmt(eini_split *sp, const eini_stmt *s, const eini_path_opts *opts,
                                  eini_path *path, int *done) {
  ein_graph *g = sp->g;
  eini_arena *a = &g->arena;
  *done = 0;
  int join = s->expr.node[s->expr.n - 1].op, n, m;
  if (join == EINI_OP_DIV) join = EINI_OP_MUL;
  if (s->fold == EINI_FOLD_NONE || !eini_legal_join(g, s->fold, join)) return EIN_OK;
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  int *roots;
  EINI_TRY(eini_factors(a, s, join, &roots, &n, &m));
  eini_value *val = EINI_NEW(a, eini_value, n + m);
  int *uses = EINI_NEW(a, int, s->nindex);
  if (val == NULL || uses == NULL) return EIN_ERR_NO_MEMORY;
  const eini_value *under = val + n;
  for (int k = 0; k < n + m; k++) {
    EINI_TRY(eini_factor_value(g, s, roots[k], &val[k]));
    for (int c = 0; k < n && c < val[k].nlabel; c++) uses[val[k].label[c]]++;
  }
  int alone = 0;
  for (int c = s->nfree; c < s->nindex; c++) {
    if (uses[c] == 0) return EIN_OK;  // needs the monoid's power: one pass does it by itself
    alone += uses[c] == 1 && s->index[c].extent > 1;
  }
  sp->label = s->index;
  sp->nlabel = s->nindex;
  sp->local = EINI_NEW(a, int, s->nindex);
  if (sp->local == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) sp->local[c] = -1;
  sp->fold = s->fold;
  sp->join = join;
  sp->numpy = s->numpy;
  sp->pos = s->pos;
  int written = n;
  EINI_TRY(eini_merge_scalars(sp, val, &n));
  if (m == 0 && (n < 2 || (n < 3 && n == written && !alone))) return EIN_OK;
  eini_value out;
  memset(&out, 0, sizeof out);
  out.nlabel = s->nfree;
  out.label = EINI_NEW(a, int, s->nfree);
  out.op = EINI_NEW(a, int, 1);
  out.map = EINI_NEW(a, ein_zmap, 1);
  if (out.label == NULL || out.op == NULL || out.map == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(a, s->out_map.rows, s->nfree, out.map));
  out.op[0] = s->out;
  for (int c = 0; c < s->nfree; c++) out.label[c] = c;
  for (int r = 0; r < s->out_map.rows; r++) {
    out.map->offset[r] = s->out_map.offset[r];
    for (int c = 0; c < s->nfree; c++) {
      out.map->coef[(int64_t)r * s->nfree + c] = s->out_map.coef[(int64_t)r * s->nindex + c];
    }
  }
  *done = 1;
  if (m == 0) return eini_split_product(sp, n, val, &out, opts, path, s->rest);
  return eini_split_quotient(sp, n, val, m, under, uses, &out, opts, path, s->rest);
}

// ================================================================================================
// >>math  elementary functions on padded buffers
// Plain C kernels that compilers turn into vector code: every kernel walks its buffer in groups of
// EINI_VLANES lanes, and the lane code is branch free. At most 2 ulp; special values as C99.
// ================================================================================================
// Method.  Arguments are reduced as by Cody & Waite ("Software Manual for the Elementary
// Functions", 1980): a multiple of a constant is subtracted in two parts, the first short enough
// for its product to be exact.  Integers are rounded and extracted by adding 1.5 * 2^(p-1), whose
// ulp is 1.  The polynomials are weighted minimax or least-squares fits on Chebyshev nodes,
// computed with 50 digits, the coefficients rounded to the working format one at a time, lowest
// order first, with the others fitted again after each rounding.
//
// The kernels need strict IEEE evaluation in the type of the operands; where the compiler does
// not promise that (x87, fast-math modes), libm does the work instead.  Contraction into fused
// multiply-adds is fine.  The floating-point exception flags are left in no particular state.
#define EINI_VLANES 16

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(_M_FP_FAST) || \
    !defined(FLT_EVAL_METHOD)
#define EINI_VMATH_LIBM 1
#elif FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#define EINI_VMATH_LIBM 1
#else
#define EINI_VMATH_LIBM 0
#endif

/* Close to a zero some libm's double functions are several ulp off.  The long double ones have
 * bits to spare where long double is wider, and are no worse elsewhere. */
static double eini_libm_sin(double x) {
  double y = sin(x);
  return fabs(y) < 1e-6 ? (double)sinl((long double)x) : y;
}

static double eini_libm_cos(double x) {
  double y = cos(x);
  return fabs(y) < 1e-6 ? (double)cosl((long double)x) : y;
}

#if EINI_VMATH_LIBM

#define EINI_VFUN(name, fn)                                                                   \
  static void eini_v##name##_f32(int64_t n, const float *EINI_RESTRICT x,                     \
                                 float *EINI_RESTRICT y) {                                    \
    int64_t i;                                                                                \
    for (i = 0; i < n; i++) y[i] = (float)name((double)x[i]);                                 \
  }                                                                                           \
  static void eini_v##name##_f64(int64_t n, const double *EINI_RESTRICT x,                    \
                                 double *EINI_RESTRICT y) {                                   \
    int64_t i;                                                                                \
    for (i = 0; i < n; i++) y[i] = fn(x[i]);                                                  \
  }

EINI_VFUN(exp, exp)
EINI_VFUN(log, log)
EINI_VFUN(sin, eini_libm_sin)
EINI_VFUN(cos, eini_libm_cos)
EINI_VFUN(tanh, tanh)
EINI_VFUN(erf, erf)

#undef EINI_VFUN

#else  // EINI_VMATH_LIBM

/* Adding one of these rounds to an integer, which then sits in the low bits of the sum. */
#define EINI_ROUND64 6755399441055744.0
#define EINI_ROUND64_BITS 0x4338000000000000u
#define EINI_ROUND32 12582912.0f
#define EINI_ROUND32_BITS 0x4b400000u

#define EINI_SIGN64 0x8000000000000000u
#define EINI_SIGN32 0x80000000u

/* ln 2 = HI + LO; HI times any exponent of the format is exact. */
#define EINI_LN2HI64 0.69314718055989033
#define EINI_LN2LO64 5.4979230187083712e-14
#define EINI_LN2HI32 0.693145752f
#define EINI_LN2LO32 1.42860677e-06f

static inline uint64_t eini_bits64(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline double eini_from64(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static inline uint32_t eini_bits32(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static inline float eini_from32(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* a where the mask is all ones, b where it is zero */
static inline double eini_pick64(uint64_t mask, double a, double b) {
  return eini_from64((eini_bits64(a) & mask) | (eini_bits64(b) & ~mask));
}

static inline float eini_pick32(uint32_t mask, float a, float b) {
  return eini_from32((eini_bits32(a) & mask) | (eini_bits32(b) & ~mask));
}

/* Two Horner steps, the inner of which need not wait for p. */
static inline double eini_two64(double p, double x, double x2, double hi, double lo) {
  return p * x2 + (hi * x + lo);
}

static inline float eini_two32(float p, float x, float x2, float hi, float lo) {
  return p * x2 + (hi * x + lo);
}

/* ---- exp ---- */

/* exp(x) = 2^k * result, with k stored modulo 2^64 so that NaN lanes stay defined. */
static inline double eini_exp_core64(double x, uint64_t *k) {
  double t = x * 1.4426950408889634 + EINI_ROUND64;
  double kd = t - EINI_ROUND64;
  double r = (x - kd * EINI_LN2HI64) - kd * EINI_LN2LO64;
  double r2 = r * r;
  double p = 2.5027323383195078e-08 * r + 2.7631567772592245e-07;
  p = eini_two64(p, r, r2, 2.7557500050335439e-06, 2.4801489110158403e-05);
  p = eini_two64(p, r, r2, 0.00019841269603845463, 0.0013888888947879597);
  p = eini_two64(p, r, r2, 0.0083333333334489577, 0.041666666666511636);
  p = eini_two64(p, r, r2, 0.16666666666666485, 0.50000000000000133);
  *k = eini_bits64(t) - EINI_ROUND64_BITS;
  return 1.0 + (r + r2 * p);
}

static inline float eini_exp_core32(float x, uint32_t *k) {
  float t = x * 1.44269504f + EINI_ROUND32;
  float kd = t - EINI_ROUND32;
  float r = (x - kd * EINI_LN2HI32) - kd * EINI_LN2LO32;
  float r2 = r * r;
  float p = 0.00137470546f;
  p = eini_two32(p, r, r2, 0.00836911518f, 0.0416696332f);
  p = eini_two32(p, r, r2, 0.166665167f, 0.499999881f);
  *k = eini_bits32(t) - EINI_ROUND32_BITS;
  return 1.0f + (r + r2 * p);
}

/* The full range needs 2^k in two factors: k reaches beyond both ends of the exponent range. */
static inline double eini_exp64(double x, double clip) {
  uint64_t k, h;
  double p;
  x = x > clip ? clip : x;
  x = x < -clip ? -clip : x;
  p = eini_exp_core64(x, &k);
  k += 2046u;
  h = k >> 1;
  return p * eini_from64(h << 52) * eini_from64((k - h) << 52);
}

static inline float eini_exp32(float x, float clip) {
  uint32_t k, h;
  float p;
  x = x > clip ? clip : x;
  x = x < -clip ? -clip : x;
  p = eini_exp_core32(x, &k);
  k += 254u;
  h = k >> 1;
  return p * eini_from32(h << 23) * eini_from32((k - h) << 23);
}

/* ---- log ---- */

/* x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); s = f / (2 + f) turns log(1 + f) into
 * the odd series 2 atanh(s) = f - f*f/2 + s * (f*f/2 + R(s*s)). */
static inline double eini_log64(double x, double inf) {
  uint64_t ux = eini_bits64(x);
  /* 2^6 in the exponent field for subnormals (and for the negative, which end as NaN) */
  uint64_t up = ((ux - 0x0010000000000000u) >> 63) << 58;
  uint64_t negative = 0u - ((ux & (ux - 1u)) >> 63);
  uint64_t u = eini_bits64(x * eini_from64(0x3ff0000000000000u + up)) - up +
               (0x43f0000000000000u - 0x3fe6a09e00000000u);
  double k = eini_from64((u >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1087.0);
  double f = eini_from64((u & 0x000fffffffffffffu) + 0x3fe6a09e00000000u) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  double z2 = z * z;
  double h = 0.5 * f * f;
  double special = x < inf ? 0.0 : x;
  double p = 0.1479822813313324;
  p = eini_two64(p, z, z2, 0.15313835159855219, 0.18183572247145291);
  p = eini_two64(p, z, z2, 0.22222198430723042, 0.28571428743674254);
  p = eini_two64(p, z, z2, 0.3999999999940938, 0.66666666666667351);
  p = p * z;
  special = x <= 0.0 ? -inf : special;
  p = k * EINI_LN2HI64 - ((h - (s * (h + p) + k * EINI_LN2LO64)) - f) + special;
  return eini_from64(eini_bits64(p) | negative);
}

static inline float eini_log32(float x, float inf) {
  uint32_t ux = eini_bits32(x);
  uint32_t up = ((ux - 0x00800000u) >> 31) << 28;
  uint32_t negative = 0u - ((ux & (ux - 1u)) >> 31);
  uint32_t u = eini_bits32(x * eini_from32(0x3f800000u + up)) - up + (0x4f800000u - 0x3f3504f3u);
  float k = (float)(int32_t)(u >> 23) - 159.0f;
  float f = eini_from32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float f2 = f * f;
  float h = 0.5f * f2;
  float special = x < inf ? 0.0f : x;
  float p = 0.0668478906f;
  p = eini_two32(p, f, f2, -0.116562396f, 0.119057335f);
  p = eini_two32(p, f, f2, -0.124096259f, 0.142175153f);
  p = eini_two32(p, f, f2, -0.166677296f, 0.20002228f);
  p = eini_two32(p, f, f2, -0.250000149f, 0.333333105f);
  p = p * f * f2;
  special = x <= 0.0f ? -inf : special;
  p = k * EINI_LN2HI32 - ((h - (p + k * EINI_LN2LO32)) - f) + special;
  return eini_from32(eini_bits32(p) | negative);
}

/* ---- sin and cos ---- */

/* pi/2 in two parts; q * PIO2HI64 is exact for |q| < 2^20, q * PIO2HI32 for |q| < 2^24. */
#define EINI_PIO2HI64 1.5707963267341256
#define EINI_PIO2LO64 6.0771005065061922e-11
#define EINI_PIO2HI32 1.5707963258028030
#define EINI_PIO2LO32 9.9209357968054043e-10
#define EINI_TRIG_MAX64 0x4138000000000000u /* the bits of 1.5 * 2^20 */
#define EINI_TRIG_MAX32 0x4bc00000u /* the bits of 1.5 * 2^24 */
#define EINI_1_PI 0.31830988618379067
#define EINI_2_PI 0.63661977236758134

/* sin(|x| + turn * pi/2).  |x| = k * pi/2 + r + lo, and k picks among +-sin(r) and +-cos(r).
 * The sign bit of *bad is set if |x| is too large, or so near to a multiple of pi/2 that the two
 * parts of pi/2 do not suffice. */
static inline double eini_sincos64(double x, uint64_t turn, uint64_t *bad) {
  double ax = eini_from64(eini_bits64(x) & ~EINI_SIGN64);
  double t = ax * EINI_2_PI + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double a = ax - k * EINI_PIO2HI64;
  double b = k * EINI_PIO2LO64;
  double r = a - b;
  double lo = (a - r) - b;
  double z = r * r;
  double z2 = z * z;
  double h = 0.5 * z;
  double w = 1.0 - h;
  double s = 1.5895850267243964e-10 * z + -2.5050740849276506e-08;
  double c = -1.1357910262993922e-11 * z + 2.0875687851671615e-09;
  double ar = eini_from64(eini_bits64(r) & ~EINI_SIGN64);
  uint64_t q = eini_bits64(t) + turn;
  *bad = eini_bits64(ar - k * 3.7252902984619141e-09) | (EINI_TRIG_MAX64 - eini_bits64(ax));
  s = eini_two64(s, z, z2, 2.7557313574001048e-06, -0.00019841269829439168);
  s = eini_two64(s, z, z2, 0.0083333333333219031, -0.1666666666666663);
  s = r + (r * z * s + lo);
  c = eini_two64(c, z, z2, -2.7557314075326331e-07, 2.4801587288453398e-05);
  c = eini_two64(c, z, z2, -0.0013888888888872334, 0.041666666666666588);
  c = w + (((1.0 - w) - h) + (z2 * c - r * lo));
  c = eini_pick64(0u - (q & 1u), c, s);
  return eini_from64(eini_bits64(c) ^ ((q << 62) & EINI_SIGN64));
}

static inline double eini_sin64(double x, uint64_t *bad) {
  double s = eini_sincos64(x, 0, bad);
  return eini_from64(eini_bits64(s) ^ (eini_bits64(x) & EINI_SIGN64));
}

static inline double eini_cos64(double x, uint64_t *bad) { return eini_sincos64(x, 1, bad); }

/* f32 lanes go through f64, which leaves two roundings and no hard cases below the limit.  There
 * is precision to spare for a single polynomial on [-pi/2, pi/2], where k is a multiple of pi;
 * q = 2k for sin, and for cos(x) = sin(x + pi/2) it is odd. */
static inline double eini_sin_core32(double ax, double q) {
  double r = (ax - q * EINI_PIO2HI32) - q * EINI_PIO2LO32;
  double z = r * r;
  double z2 = z * z;
  double p = -2.3887811763556932e-08;
  p = eini_two64(p, z, z2, 2.7525324822095269e-06, -0.000198408671063206);
  p = eini_two64(p, z, z2, 0.0083333311006432379, -0.16666666625975399);
  return r + r * z * p;
}

static inline float eini_sin32(float x) {
  uint64_t u = eini_bits64((double)x);
  double ax = eini_from64(u & ~EINI_SIGN64);
  double t = ax * EINI_1_PI + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double s = eini_sin_core32(ax, k + k);
  return (float)eini_from64(eini_bits64(s) ^ ((eini_bits64(t) << 63) ^ (u & EINI_SIGN64)));
}

static inline float eini_cos32(float x) {
  double ax = eini_from64(eini_bits64((double)x) & ~EINI_SIGN64);
  double t = (ax * EINI_1_PI + 0.5) + EINI_ROUND64;
  double k = t - EINI_ROUND64;
  double s = eini_sin_core32(ax, k + k - 1.0);
  return (float)eini_from64(eini_bits64(s) ^ (eini_bits64(t) << 63));
}

/* ---- tanh ---- */

/* x + x^3 P(x^2)/Q(x^2) near zero, else 1 - 2/(exp(2x) + 1); one division serves both. */
static inline double eini_tanh64(double x, double clip) {
  uint64_t u = eini_bits64(x), k;
  uint64_t a = u & ~EINI_SIGN64;
  uint64_t low = 0u - ((a - 0x3fe4000000000000u) >> 63); /* |x| < 0.625 */
  double ax = eini_from64(a);
  double z = ax * ax;
  double p = (-0.96439937649511431 * z + -99.28823395289669) * z + -1614.6982482967387;
  double q = ((z + 112.81223174112841) * z + 2235.5025998146953) * z + 4844.094744890218;
  double c = ax > clip ? clip : ax;
  double e = eini_exp_core64(c + c, &k) * eini_from64((k + 1023u) << 52);
  double num = eini_pick64(low, ax * z * p, -2.0);
  double den = eini_pick64(low, q, e + 1.0);
  double base = eini_pick64(low, ax, 1.0);
  return eini_from64(eini_bits64(base + num / den) | (u & EINI_SIGN64));
}

static inline float eini_tanh32(float x, float clip) {
  uint32_t u = eini_bits32(x), k;
  uint32_t a = u & ~EINI_SIGN32;
  uint32_t low = 0u - ((a - 0x3f200000u) >> 31); /* |x| < 0.625 */
  float ax = eini_from32(a);
  float z = ax * ax;
  float p = -0.00380947278f * z + -0.823834896f;
  float q = z + 2.4715066f;
  float c = ax > clip ? clip : ax;
  float e = eini_exp_core32(c + c, &k) * eini_from32((k + 127u) << 23);
  float num = eini_pick32(low, ax * z * p, -2.0f);
  float den = eini_pick32(low, q, e + 1.0f);
  float base = eini_pick32(low, ax, 1.0f);
  return eini_from32(eini_bits32(base + num / den) | (u & EINI_SIGN32));
}

/* ---- erf ---- */

/* x + x P(x^2) below 1, else 1 - exp(G(x)) with G a fit to log(erfc(x)): erfc is small there, so
 * its relative error matters less and less. */
static inline double eini_erf64(double x, double clip) {
  uint64_t u = eini_bits64(x), k;
  uint64_t a = u & ~EINI_SIGN64;
  uint64_t low = 0u - ((a - 0x3ff0000000000000u) >> 63); /* |x| < 1 */
  double ax = eini_from64(a);
  double c = ax > clip ? clip : ax;
  double z = c * c;
  double z2 = z * z;
  double g = 1.7174868866107602e-11;
  double y_low, y_high;
  double p = -7.7648058950077834e-10 * z + 1.370256913134439e-08;
  p = eini_two64(p, z, z2, -1.6204216644959769e-07, 1.6446833684025832e-06);
  p = eini_two64(p, z, z2, -1.4924685750072198e-05, 0.00012055292035174393);
  p = eini_two64(p, z, z2, -0.0008548325870703971, 0.0052239776046899659);
  p = eini_two64(p, z, z2, -0.026866170642899308, 0.11283791670942442);
  p = eini_two64(p, z, z2, -0.37612638903183454, 0.12837916709551256);
  g = eini_two64(g, c, z, -6.3299243477240135e-10, 1.0594651824859312e-08);
  g = eini_two64(g, c, z, -1.0512124760395883e-07, 6.6642278382360554e-07);
  g = eini_two64(g, c, z, -2.5663423512355742e-06, 3.2102332141058531e-06);
  g = eini_two64(g, c, z, 2.9152268463978148e-05, -0.00023322439866016372);
  g = eini_two64(g, c, z, 0.00092441801312092827, -0.0021048042062738093);
  g = eini_two64(g, c, z, 0.000590301270613488, 0.018860526847427173);
  g = eini_two64(g, c, z, -0.10263489651464047, -0.6366686501144585);
  g = eini_two64(g, c, z, -1.1283684564542626, -1.0918158117588841e-06);
  y_low = c + c * p;
  y_high = 1.0 - eini_exp_core64(g, &k) * eini_from64((k + 1023u) << 52);
  return eini_from64(eini_bits64(eini_pick64(low, y_low, y_high)) | (u & EINI_SIGN64));
}

static inline float eini_erf32(float x, float clip) {
  uint32_t u = eini_bits32(x), k;
  uint32_t a = u & ~EINI_SIGN32;
  uint32_t low = 0u - ((a - 0x3f800000u) >> 31); /* |x| < 1 */
  float ax = eini_from32(a);
  float c = ax > clip ? clip : ax;
  float z = c * c;
  float z2 = z * z;
  float p = 7.80689807e-05f;
  float g = 0.000187279715f;
  float y_low, y_high;
  p = eini_two32(p, z, z2, -0.000799785252f, 0.0051871622f);
  p = eini_two32(p, z, z2, -0.0268533472f, 0.112835787f);
  p = eini_two32(p, z, z2, -0.37612626f, 0.128379166f);
  g = eini_two32(g, c, z, -0.00295622251f, 0.0218713116f);
  g = eini_two32(g, c, z, -0.103174232f, -0.638069272f);
  g = eini_two32(g, c, z, -1.12713349f, -0.000330891373f);
  y_low = c + c * p;
  y_high = 1.0f - eini_exp_core32(g, &k) * eini_from32((k + 127u) << 23);
  return eini_from32(eini_bits32(eini_pick32(low, y_low, y_high)) | (u & EINI_SIGN32));
}

/* ---- the kernels ---- */

/* The clip values are volatile to keep them from the optimiser, which otherwise evaluates the
 * clipped case at compile time and so gives every lane a branch. */
#define EINI_VFUN(name, type, suffix, lane, clip_value)                                       \
  static void eini_v##name##_##suffix(int64_t n, const type *EINI_RESTRICT x,                 \
                                      type *EINI_RESTRICT y) {                                \
    static const volatile type clip_source = clip_value;                                      \
    const type clip = clip_source;                                                            \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      for (j = 0; j < EINI_VLANES; j++) y[i + j] = lane(x[i + j], clip);                      \
    }                                                                                         \
  }

EINI_VFUN(exp, float, f32, eini_exp32, 104.0f)
EINI_VFUN(log, float, f32, eini_log32, (float)HUGE_VAL)
EINI_VFUN(tanh, float, f32, eini_tanh32, 10.0f)
EINI_VFUN(erf, float, f32, eini_erf32, 3.95f)
EINI_VFUN(exp, double, f64, eini_exp64, 746.0)
EINI_VFUN(log, double, f64, eini_log64, HUGE_VAL)
EINI_VFUN(tanh, double, f64, eini_tanh64, 20.0)
EINI_VFUN(erf, double, f64, eini_erf64, 5.95)

#undef EINI_VFUN

/* Lanes beyond the reach of the reduction are rare; libm does them over again. */
#define EINI_VTRIG(name)                                                                      \
  static void eini_redo_##name##_f64(const double *x, double *y, const uint64_t *bad) {       \
    int j;                                                                                    \
    for (j = 0; j < EINI_VLANES; j++) {                                                       \
      if ((bad[j] & EINI_SIGN64) != 0) y[j] = eini_libm_##name(x[j]);                         \
    }                                                                                         \
  }                                                                                           \
  static void eini_v##name##_f64(int64_t n, const double *EINI_RESTRICT x,                    \
                                 double *EINI_RESTRICT y) {                                   \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      uint64_t any = 0, bad[EINI_VLANES];                                                     \
      for (j = 0; j < EINI_VLANES; j++) {                                                     \
        y[i + j] = eini_##name##64(x[i + j], &bad[j]);                                        \
        any |= bad[j];                                                                        \
      }                                                                                       \
      if ((any & EINI_SIGN64) != 0) eini_redo_##name##_f64(x + i, y + i, bad);                \
    }                                                                                         \
  }                                                                                           \
  static void eini_redo_##name##_f32(const float *x, float *y) {                              \
    int j;                                                                                    \
    for (j = 0; j < EINI_VLANES; j++) {                                                       \
      if ((eini_bits32(x[j]) & ~EINI_SIGN32) > EINI_TRIG_MAX32) {                             \
        y[j] = (float)name((double)x[j]);                                                     \
      }                                                                                       \
    }                                                                                         \
  }                                                                                           \
  static void eini_v##name##_f32(int64_t n, const float *EINI_RESTRICT x,                     \
                                 float *EINI_RESTRICT y) {                                    \
    int64_t i;                                                                                \
    int j;                                                                                    \
    for (i = 0; i < n; i += EINI_VLANES) {                                                    \
      uint32_t any = 0;                                                                       \
      for (j = 0; j < EINI_VLANES; j++) {                                                     \
        any |= EINI_TRIG_MAX32 - (eini_bits32(x[i + j]) & ~EINI_SIGN32);                      \
      }                                                                                       \
      for (j = 0; j < EINI_VLANES; j++) y[i + j] = eini_##name##32(x[i + j]);                 \
      if ((any & EINI_SIGN32) != 0) eini_redo_##name##_f32(x + i, y + i);                     \
    }                                                                                         \
  }

EINI_VTRIG(sin)
EINI_VTRIG(cos)

#undef EINI_VTRIG

#endif  // EINI_VMATH_LIBM
// ================================================================================================
// >>contract-kernels  register tiles, packing, dot, axpy and small products, per element type
// Takes packed panels or strided elements of one compute dtype; gives the table of kernels.
// ================================================================================================

// Vectors, shorter ones for small products, and elements, at any address; other compilers than gcc
// and clang get vectors of one element.
#if defined(__AVX512F__)
#define EINI_VECTOR 64
#elif defined(__AVX__)
#define EINI_VECTOR 32
#else
#define EINI_VECTOR 16
#endif
#define EINI_SHORT (EINI_VECTOR > 32 ? 32 : EINI_VECTOR)
#if defined(__GNUC__) || defined(__clang__)
#define EINI_VECTORS(name, T)                                                                     \
  typedef T eini_v_##name __attribute__((vector_size(EINI_VECTOR), aligned(1), may_alias));       \
  typedef T eini_w_##name __attribute__((vector_size(EINI_SHORT), aligned(1), may_alias));        \
  typedef T eini_u_##name __attribute__((aligned(1), may_alias));
#else
#define EINI_VECTORS(name, T) typedef T eini_v_##name, eini_w_##name, eini_u_##name;
#endif
EINI_VECTORS(f32, float)
EINI_VECTORS(f64, double)
EINI_VECTORS(i32, uint32_t)  // integers are instantiated unsigned, so that they wrap
EINI_VECTORS(i64, uint64_t)

// A tile has EINI_R rows of two vectors: 12 sums fit 16 registers. A tile of complex numbers has
// one vector of real and one of imaginary parts in each row.
#define EINI_R 6
#define EINI_4(X, V) X(V, 0) X(V, 1) X(V, 2) X(V, 3)
#define EINI_6(X, V) EINI_4(X, V) X(V, 4) X(V, 5)
#define EINI_ZERO(V, i) V x##i = {0}, y##i = {0};
#define EINI_LOAD(V, i) x##i = t[2 * i], y##i = t[2 * i + 1];
#define EINI_STORE(V, i) t[2 * i] = x##i, t[2 * i + 1] = y##i;
#define EINI_FMA(V, i) x##i += a[i] * b0, y##i += a[i] * b1;
#define EINI_FMA2(V, i)                                                                           \
  x##i += a[i] * b0, x##i -= a[EINI_R + i] * b1;                                                  \
  y##i += a[i] * b1, y##i += a[EINI_R + i] * b0;
#define EINI_SMALL_FMA(V, i) x##i += p##i[k * pk] * b0, y##i += p##i[k * pk] * b1;
#define EINI_SMALL_ROW(U, i) const U *p##i = p + row[i] * s->pm;
#define EINI_SMALL_STORE(W, i) *(W *)(o + row[i] * om) = x##i, *(W *)(o + row[i] * om + c) = y##i;

#define EINI_KC 192        // block of k: a panel of Q is half of a first-level cache
#define EINI_NC 512        // columns of a packed block of Q, of 4-byte elements at least
#define EINI_MC 504        // rows of sums kept between blocks of k; a multiple of EINI_R
#define EINI_ACROSS 48     // k up to which tiles go along the rows of the output

// A contract of at most one axis per group, for the small path. Strides are in elements.
typedef struct eini_small {
  int64_t m, n, k, pm, pk, qk, qn, om, on;
  int psign, qsign;  // -1: conjugated
} eini_small;

static int eini_consecutive(const int64_t *t, int64_t n) {  // are the offsets consecutive?
  int64_t i = 1;
  while (i < n && t[i] == t[0] + i) i++;
  return i >= n;
}

// tile[i,j] (+)= sum over p of a[p,i] * b[p,j]; complex: tile[i,re/im,j], a[p,re/im,i], b alike
#define EINI_TILE(fn, T, V, FMA, planes)                                                          \
  EINI_UNUSED static void fn(int64_t kc, const void *ap, const void *bp, void *tile, int load) {  \
    const T *a = (const T *)ap;                                                                   \
    const V *b = (const V *)bp;                                                                   \
    V *t = (V *)tile;                                                                             \
    EINI_6(EINI_ZERO, V)                                                                          \
    if (load) { EINI_6(EINI_LOAD, V) }                                                            \
    for (; kc > 0; kc--, a += EINI_R * (planes), b += 2) {                                        \
      const V b0 = b[0], b1 = b[1];                                                               \
      EINI_6(FMA, V)                                                                              \
    }                                                                                             \
    EINI_6(EINI_STORE, V)                                                                         \
  }

// pack:   dst[p,i] = src[row[i] + k[p]]; two planes: dst[p,re/im,i], imaginary parts times sign
// unpack: out[on[i]] = tile[i], or tile[re/im,i]; on NULL: out[i]
// dot:    sum += the sum of a[i] * x[i]
// axpy:   y[i] += sum over p of a[i + k[p]] * x[p], in this order; n a multiple of the vector
// turn:   re, im: coefficients that give both parts of z * x, or of conj(z) * x, as sums over z
// small:  out[m,n] = sum over k of p[m,k] * q[k,n]; tiles where columns are next to each other, the
//         last ones overlap those before
// scale:  out[on[i]] = alpha * x[i] + beta * y[yn[i]]; on, yn NULL: i; beta NULL: y is not read
#define EINI_KERNELS(name, T, U, V, W)                                                            \
  EINI_TILE(eini_kernel1_##name, T, V, EINI_FMA, 1)                                               \
  EINI_TILE(eini_kernel2_##name, T, V, EINI_FMA2, 2)                                              \
  static void eini_pack_##name(const char *src, const int64_t *row, int64_t width,                \
                               const int64_t *k, int64_t kc, int planes, int sign, void *dst) {   \
    const U *s = (const U *)src;                                                                  \
    T *d = (T *)dst;                                                                              \
    if (planes == 1 && width > 1 && eini_consecutive(row, width)) {                               \
      const size_t bytes = (size_t)width * sizeof(T);                                             \
      for (int64_t p = 0; p < kc; p++, d += width) memcpy(d, s + row[0] + k[p], bytes);           \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t i = 0; i < width; i++) {                                                         \
      T *o = d + i;                                                                               \
      for (int64_t p = 0; p < kc; p++, o += planes * width) {                                     \
        const U *z = s + planes * (row[i] + k[p]);                                                \
        o[0] = z[0];                                                                              \
        if (planes == 2) o[width] = (T)sign * z[1];                                               \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void eini_unpack_##name(const void *tile, int64_t n, int64_t plane, int planes,          \
                                 char *dst, const int64_t *on) {                                  \
    const T *t = (const T *)tile;                                                                 \
    const int plain = planes == 1 && on == NULL;                                                  \
    if (plain) memcpy(dst, t, (size_t)n * sizeof(T));                                             \
    for (int64_t i = plain ? n : 0; i < n; i++) {                                                 \
      U *o = (U *)dst + planes * (on == NULL ? i : on[i]);                                        \
      o[0] = t[i];                                                                                \
      if (planes == 2) o[1] = t[plane + i];                                                       \
    }                                                                                             \
  }                                                                                               \
  static void eini_scale_##name(int64_t n, int planes, const void *alpha, const void *beta,       \
                                const void *xp, const char *yp, const int64_t *yn, char *out,     \
                                const int64_t *on) {                                              \
    enum { L = (int)(sizeof(V) / sizeof(T)) };                                                    \
    const U *x = (const U *)xp, *y = (const U *)yp, *a = (const U *)alpha, *b = (const U *)beta;  \
    U *o = (U *)out;                                                                              \
    int64_t i = 0;                                                                                \
    if (planes == 1) {                                                                            \
      const T ar = a == NULL ? (T)1 : a[0], br = b == NULL ? (T)0 : b[0];                         \
      const int even = n >= L && (on == NULL || eini_consecutive(on, n)) &&                       \
                       (b == NULL || yn == NULL || eini_consecutive(yn, n));                      \
      const U *c = b != NULL && even ? y + (yn == NULL ? 0 : yn[0]) : x;                          \
      for (U *d = even && on != NULL ? o + on[0] : o; even && i + L <= n; i += L) {               \
        const V z = *(const V *)(x + i) * ar;                                                     \
        if (b == NULL) *(V *)(d + i) = z;                                                         \
        else *(V *)(d + i) = z + *(const V *)(c + i) * br;                                        \
      }                                                                                           \
      for (; i < n; i++) {                                                                        \
        U *d = o + (on == NULL ? i : on[i]);                                                      \
        *d = b == NULL ? ar * x[i] : ar * x[i] + br * y[yn == NULL ? i : yn[i]];                  \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    for (; i < n; i++) {                                                                          \
      T re = x[2 * i], im = x[2 * i + 1];                                                         \
      U *d = o + 2 * (on == NULL ? i : on[i]);                                                    \
      if (a != NULL) re = a[0] * x[2 * i] - a[1] * im, im = a[0] * im + a[1] * x[2 * i];          \
      if (b != NULL) {                                                                            \
        const U *c = y + 2 * (yn == NULL ? i : yn[i]);                                            \
        re += b[0] * c[0] - b[1] * c[1], im += b[0] * c[1] + b[1] * c[0];                         \
      }                                                                                           \
      d[0] = re, d[1] = im;                                                                       \
    }                                                                                             \
  }                                                                                               \
  static void eini_dot_##name(int64_t n, const char *ap, const void *xp, void *sum) {             \
    enum { L = (int)(sizeof(V) / sizeof(T)) };                                                    \
    const U *a = (const U *)ap;                                                                   \
    const T *x = (const T *)xp;                                                                   \
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                                     \
    T lane[L], r = 0;                                                                             \
    for (; n >= 4 * L; n -= 4 * L, a += 4 * L, x += 4 * L) {                                      \
      s0 += *(const V *)a * *(const V *)x, s1 += *(const V *)(a + L) * *(const V *)(x + L);       \
      s2 += *(const V *)(a + 2 * L) * *(const V *)(x + 2 * L);                                    \
      s3 += *(const V *)(a + 3 * L) * *(const V *)(x + 3 * L);                                    \
    }                                                                                             \
    for (int64_t i = 0; i < n; i++) r += a[i] * x[i];                                             \
    s0 += s1, s2 += s3, s0 += s2;                                                                 \
    memcpy(lane, &s0, sizeof lane);                                                               \
    for (int l = 0; l < L; l++) r += lane[l];                                                     \
    *(T *)sum += r;                                                                               \
  }                                                                                               \
  static void eini_axpy_##name(int64_t n, const char *ap, const int64_t *k, int64_t kc,           \
                               const void *xp, void *y) {                                         \
    const U *a = (const U *)ap;                                                                   \
    const T *x = (const T *)xp;                                                                   \
    V *s = (V *)y;                                                                                \
    n /= (int64_t)(sizeof(V) / sizeof(T));                                                        \
    for (; kc >= 4; kc -= 4, k += 4, x += 4) {                                                    \
      const V *a0 = (const V *)(a + k[0]), *a1 = (const V *)(a + k[1]);                           \
      const V *a2 = (const V *)(a + k[2]), *a3 = (const V *)(a + k[3]);                           \
      const T x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];                                         \
      for (int64_t i = 0; i < n; i++) {                                                           \
        s[i] = (((s[i] + a0[i] * x0) + a1[i] * x1) + a2[i] * x2) + a3[i] * x3;                    \
      }                                                                                           \
    }                                                                                             \
    for (; kc > 0; kc--, k++, x++) {                                                              \
      for (int64_t i = 0; i < n; i++) s[i] += ((const V *)(a + k[0]))[i] * x[0];                  \
    }                                                                                             \
  }                                                                                               \
  static void eini_turn_##name(int64_t n, const void *xp, int conj, void *rp, void *ip) {         \
    const T *x = (const T *)xp, sign = conj ? (T)1 : (T)-1;                                       \
    T *re = (T *)rp, *im = (T *)ip;                                                               \
    for (n *= 2; n > 0; n -= 2, re += 2, im += 2, x += 2) {                                       \
      re[0] = x[0], re[1] = sign * x[1], im[0] = x[1], im[1] = -sign * x[0];                      \
    }                                                                                             \
  }                                                                                               \
  static void eini_dots_##name(const eini_small *s, int planes, const U *p, const U *q, U *out) { \
    const T ps = (T)s->psign, qs = (T)s->qsign;                                                   \
    const int64_t pk = planes * s->pk, qk = planes * s->qk;                                       \
    for (int64_t i = 0; i < s->m; i++) {                                                          \
      for (int64_t j = 0; j < s->n; j++) {                                                        \
        const U *a = p + planes * i * s->pm, *b = q + planes * j * s->qn;                         \
        U *o = out + planes * (i * s->om + j * s->on);                                            \
        T re = 0, im = 0;                                                                         \
        for (int64_t k = 0; k < s->k; k++, a += pk, b += qk) {                                    \
          re += a[0] * b[0];                                                                      \
          if (planes == 1) continue;                                                              \
          re -= ps * a[1] * (qs * b[1]);                                                          \
          im += a[0] * (qs * b[1]), im += ps * a[1] * b[0];                                       \
        }                                                                                         \
        o[0] = re;                                                                                \
        if (planes == 2) o[1] = im;                                                               \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void eini_small_##name(const eini_small *s, int planes, const char *pp, const char *qp,  \
                                char *op) {                                                       \
    enum { L = (int)(sizeof(W) / sizeof(T)) };                                                    \
    const U *p = (const U *)pp, *q = (const U *)qp;                                               \
    const int64_t m = s->m, n = s->n, pk = s->pk, om = s->om;                                     \
    if (planes == 2 || n < L || s->qn != 1 || s->on != 1) {                                       \
      eini_dots_##name(s, planes, p, q, (U *)op);                                                 \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t i = 0; i < m; i += 4) {                                                          \
      const int64_t row[4] = {i, eini_min64(i + 1, m - 1), eini_min64(i + 2, m - 1),              \
                              eini_min64(i + 3, m - 1)};                                          \
      EINI_4(EINI_SMALL_ROW, U)                                                                   \
      for (int64_t j = 0; j < n; j += 2 * L) {                                                    \
        const int64_t c = eini_min64(L, n - L), j0 = eini_min64(j, n - L - c);                    \
        const U *b = q + j0;                                                                      \
        U *o = (U *)op + j0;                                                                      \
        EINI_4(EINI_ZERO, W)                                                                      \
        for (int64_t k = 0; k < s->k; k++, b += s->qk) {                                          \
          const W b0 = *(const W *)b, b1 = *(const W *)(b + c);                                   \
          EINI_4(EINI_SMALL_FMA, W)                                                               \
        }                                                                                         \
        EINI_4(EINI_SMALL_STORE, W)                                                               \
      }                                                                                           \
    }                                                                                             \
  }

EINI_KERNELS(f32, float, eini_u_f32, eini_v_f32, eini_w_f32)
EINI_KERNELS(f64, double, eini_u_f64, eini_v_f64, eini_w_f64)
EINI_KERNELS(i32, uint32_t, eini_u_i32, eini_v_i32, eini_w_i32)
EINI_KERNELS(i64, uint64_t, eini_u_i64, eini_v_i64, eini_w_i64)
#undef EINI_KERNELS
#undef EINI_TILE

// Kernels of one compute dtype. size: bytes of a real; an element has `planes` of them.
typedef struct eini_ckern {
  int size, planes, lanes, nr;  // reals per vector, columns of a tile
  void (*kernel)(int64_t kc, const void *a, const void *b, void *tile, int load);
  void (*pack)(const char *src, const int64_t *row, int64_t width, const int64_t *k, int64_t kc,
               int planes, int sign, void *dst);
  void (*unpack)(const void *tile, int64_t n, int64_t plane, int planes, char *out,
                 const int64_t *on);
  void (*scale)(int64_t n, int planes, const void *alpha, const void *beta, const void *x,
                const char *y, const int64_t *yn, char *out, const int64_t *on);
  void (*dot)(int64_t n, const char *a, const void *x, void *sum);
  void (*axpy)(int64_t n, const char *a, const int64_t *k, int64_t kc, const void *x, void *y);
  void (*turn)(int64_t n, const void *x, int conj, void *re, void *im);
  void (*small)(const eini_small *s, int planes, const char *p, const char *q, char *out);
} eini_ckern;

#define EINI_CKERN(name, T, planes)                                                               \
  {(int)sizeof(T), planes, (int)(sizeof(eini_v_##name) / sizeof(T)),                              \
   (int)(2 / (planes) * sizeof(eini_v_##name) / sizeof(T)), eini_kernel##planes##_##name,         \
   eini_pack_##name, eini_unpack_##name, eini_scale_##name, eini_dot_##name, eini_axpy_##name,    \
   eini_turn_##name, eini_small_##name}
static const eini_ckern eini_ckerns[6] = {
    EINI_CKERN(i32, uint32_t, 1), EINI_CKERN(i64, uint64_t, 1), EINI_CKERN(f32, float, 1),
    EINI_CKERN(f64, double, 1), EINI_CKERN(f32, float, 2), EINI_CKERN(f64, double, 2)};

static const eini_ckern *eini_ckern_of(ein_dtype t) {
  return &eini_ckerns[t <= EIN_I64 ? t - EIN_I32 : 2 + (t - EIN_F32)];
}

// ================================================================================================
// >>contract  out[b,m,n] = store( sum over k of P[b,m,k] * Q[b,k,n] )
// Takes two operands (strided, or values of an expression) and a store; works in one dtype.
// Invariant: an element's additions over k have one order, whatever m, n, batch and position.
// ================================================================================================

// EINI_SMALL: no packing, for tiny problems. EINI_STREAM: matrix times vector, the matrix is read
// once, in place. EINI_BLOCK: packed blocks. A small contract may be cut along batch, the others
// along batch, m and n, with the same bits.
typedef enum eini_contract_path { EINI_BLOCK, EINI_STREAM, EINI_SMALL } eini_contract_path;

// What the portable kernel decided; kept in ein_choice.state.
typedef struct eini_cplan {
  int path, swap;                // an eini_contract_path; 1: computed as its transpose
  int rows;                      // 1: a streamed matrix is read along k
  eini_small small;              // used by EINI_SMALL
} eini_cplan;

static int64_t eini_axes_size(const ein_axes *x) {
  int64_t r = 1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] == 0) return 0;
  for (int i = 0; i < x->n; i++) r *= x->extent[i];
  return r;
}

// The only stride of a group of at most one axis.
static int64_t eini_axes_only(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? 0 : stride[0];
}

// The state of one run. Pairs: the rows of the output and the side they belong to, the columns and
// theirs (P and Q, unless swapped).
typedef struct eini_cjob {
  const ein_contract *c;
  const eini_cplan *w;
  const eini_ckern *kern;
  const ein_side *side[2];
  const ein_axes *axes[2];
  const int64_t *os[2];               // strides of the output
  const int64_t *const *xs[2];        // strides of the extras
  int64_t ext[2], kn;                 // extents
  int64_t from[2], upto[2];           // of the part being run
  int64_t blk[2], kc, unit;           // blocks; unit: bytes of an element
  int keep;                           // 1: sums stay in `tile` between blocks of k
  char *out;                          // base pointers at the current batch
  const char **at[2], **xat;
  char *pack[2], *tile, *val;
  int64_t points;                     // of one call of fill_fn and emit_fn at most
  // Offsets, table after table: operands along rows and along k; output and extras; points.
  int64_t *row[2], *k[2], *to[2], *off;
  const int64_t **offp;
} eini_cjob;

// Where things lie in scratch; with base NULL, only how much there is.
static void *eini_carve(char *base, size_t *used, int64_t count, int64_t size) {
  char *r = base == NULL ? NULL : base + *used;
  *used += ((size_t)(count * size) + 63) / 64 * 64;
  return r;
}

static int64_t eini_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

static void eini_cjob_init(eini_cjob *j, const ein_contract *c, const eini_cplan *w) {
  j->c = c;
  j->w = w;
  j->kern = eini_ckern_of(c->type);
  j->unit = j->kern->size * j->kern->planes;
  j->kn = eini_axes_size(&c->k);
  for (int s = 0; s < 2; s++) {
    int q = s != w->swap;
    j->side[s] = q ? &c->q : &c->p;
    j->axes[s] = q ? &c->n : &c->m;
    j->os[s] = q ? c->out_n : c->out_m;
    j->xs[s] = q ? c->extra_n : c->extra_m;
    j->ext[s] = j->upto[s] = eini_axes_size(j->axes[s]);
    j->from[s] = 0;
  }
}

// Block sizes, clipped to the extents, and scratch.
static size_t eini_cjob_carve(eini_cjob *j, char *base) {
  const ein_contract *c = j->c;
  const eini_ckern *t = j->kern;
  size_t used = 0;
  int64_t mn = eini_up(j->ext[0], EINI_R), nn = j->ext[1], nop = c->nextra + 1;
  int64_t tile, stored, made;
  if (j->w->path == EINI_STREAM) {  // packed: the vector and coefficients; rows or columns fetched
    j->kc = eini_min64(j->kn, EIN_POINTS);
    j->blk[0] = 1;
    j->blk[1] = eini_up(eini_min64(nn, EIN_POINTS), t->lanes);
    j->pack[0] = (char *)eini_carve(base, &used, 3 * j->kc, j->unit);
    j->pack[1] = (char *)eini_carve(base, &used, eini_max64(j->kc, j->blk[1]), j->unit);
    tile = stored = j->blk[1];
    made = eini_max64(j->kc, j->blk[1]);
  } else {
    j->keep = j->kn > EINI_KC;
    j->kc = eini_min64(j->kn, EINI_KC);
    j->blk[0] = eini_min64(mn, EINI_MC * 4 / j->unit);
    j->blk[1] = eini_min64(eini_up(nn, t->nr), eini_up(EINI_NC, t->nr));
    j->pack[0] = (char *)eini_carve(base, &used, j->blk[0] * j->kc, j->unit);
    j->pack[1] = (char *)eini_carve(base, &used, j->blk[1] * j->kc, j->unit);
    stored = EINI_R * t->nr;
    tile = j->keep ? eini_min64(mn, EINI_MC) * j->blk[1] : stored;
    made = eini_max64(EINI_R, t->nr) * j->kc;
  }
  int plain = j->side[0]->form == EIN_FORM_PLAIN && j->side[1]->form == EIN_FORM_PLAIN;
  if (c->scaled) stored = t->planes == 2 ? stored / (j->w->path == EINI_STREAM ? 1 : EINI_R) : 0;
  j->points = eini_max64(c->plain_out ? 0 : stored, plain ? 0 : made);
  j->points = eini_up(eini_min64(j->points, EIN_POINTS), 8);
  j->tile = (char *)eini_carve(base, &used, tile, j->unit);
  for (int s = 0; s < 2; s++) {
    int64_t n = j->side[s]->nop;
    nop = eini_max64(nop, n);
    j->row[s] = (int64_t *)eini_carve(base, &used, n * j->blk[s], 8);
    j->k[s] = (int64_t *)eini_carve(base, &used, n * j->kc, 8);
    j->to[s] = (int64_t *)eini_carve(base, &used, (c->nextra + 1) * j->blk[s], 8);
    j->at[s] = (const char **)eini_carve(base, &used, n, (int64_t)sizeof(char *));
  }
  j->xat = (const char **)eini_carve(base, &used, c->nextra, (int64_t)sizeof(char *));
  j->val = (char *)eini_carve(base, &used, j->points, j->unit);
  j->off = (int64_t *)eini_carve(base, &used, c->scaled && plain ? 0 : (nop + 1) * j->points, 8);
  j->offp = (const int64_t **)eini_carve(base, &used, nop, (int64_t)sizeof(int64_t *));
  return used;
}

// table[i] = offset of linear index start + i, for i < count; the last is repeated up to pad.
static void eini_table(const ein_axes *x, const int64_t *stride, int64_t start, int64_t count,
                       int64_t pad, int64_t *table) {
  for (int64_t at = 0, run; at < count; at += run) {
    int64_t rest = start + at, off = 0, step = 0;
    run = count - at;
    for (int d = x->n - 1; d >= 0; d--) {
      int64_t e = x->extent[d], i = rest % e;
      if (d == x->n - 1) step = stride[d], run = eini_min64(run, e - i);
      off += i * stride[d];
      rest /= e;
    }
    for (int64_t i = 0; i < run; i++) table[at + i] = off + i * step;
  }
  for (int64_t i = count; i < pad && count > 0; i++) table[i] = table[count - 1];
}

// The tables of a block of rows (s = 0) or columns.
static void eini_row_tables(eini_cjob *j, int s, int64_t start, int64_t count, int64_t pad) {
  const ein_axes *x = j->axes[s];
  for (int o = 0; o < j->side[s]->nop; o++) {
    eini_table(x, j->side[s]->row[o], start, count, pad, j->row[s] + o * j->blk[s]);
  }
  eini_table(x, j->os[s], start, count, pad, j->to[s]);
  for (int e = 0; e < j->c->nextra; e++) {
    eini_table(x, j->xs[s][e], start, count, pad, j->to[s] + (e + 1) * j->blk[s]);
  }
}

static void eini_k_tables(eini_cjob *j, int64_t start, int64_t count) {
  for (int s = 0; s < 2; s++) {
    for (int o = 0; o < j->side[s]->nop; o++) {
      eini_table(&j->c->k, j->side[s]->k[o], start, count, count, j->k[s] + o * j->kc);
    }
  }
}

// dst[p, i] = value of an expression at rows row.., i < width, and k.., p < kn, planes apart
static void eini_pack_values(eini_cjob *j, int s, const int64_t *row, int64_t width,
                             const int64_t *k, int64_t kn, char *dst) {
  const ein_side *x = j->side[s];
  int planes = j->kern->planes;
  for (int o = 0; o < x->nop; o++, row += j->blk[s], k += j->kc) {
    int64_t *off = j->off + o * j->points;
    for (int64_t p = 0; p < kn; p++) {
      for (int64_t i = 0; i < width; i++) off[p * width + i] = row[i] + k[p];
    }
    j->offp[o] = off;
  }
  x->fill_fn(x->user, kn * width, j->at[s], j->offp, planes == 1 ? dst : j->val);
  if (planes == 1) return;
  for (int64_t i = 0; i < width; i++) j->off[i] = i;
  for (int64_t p = 0; p < kn; p++) j->off[width + p] = p * width;
  j->kern->pack(j->val, j->off, width, j->off + width, kn, 2, 1, dst);
}

// Panels of `width` rows from row r0 on, dst[panel, p, i]. When rows are closer together than k's,
// a few k are taken across all panels, so that memory is read in long runs.
static void eini_pack(eini_cjob *j, int s, int64_t r0, int64_t rows, int64_t width, int64_t k0,
                      int64_t kc, int sign, char *dst) {
  const eini_ckern *t = j->kern;
  const int64_t *row = j->row[s] + r0, *k = j->k[s] + k0;
  int plain = j->side[s]->form == EIN_FORM_PLAIN;
  int64_t step = plain ? kc : EIN_POINTS / width;
  if (plain && kc > 1 && rows > width) {
    int64_t dr = row[1] - row[0], dk = k[1] - k[0];
    if ((dr < 0 ? -dr : dr) < (dk < 0 ? -dk : dk)) step = 8;
  }
  for (int64_t p = 0; p < kc; p += step) {
    int64_t kn = eini_min64(step, kc - p);
    for (int64_t r = 0; r < rows; r += width) {
      char *d = dst + (r * kc + p * width) * j->unit;
      if (plain) {
        t->pack(j->at[s][0], row + r, width, k + p, kn, t->planes, sign, d);
      } else {
        eini_pack_values(j, s, row + r, width, k + p, kn, d);
      }
    }
  }
}

// Store finished sums tile[rows, plane, cols], planes `plane` apart, at row m and column n of the
// block: plainly, scaled, or through emit_fn in chunks of whole rows.
static void eini_store(eini_cjob *j, const char *tile, int64_t plane, int64_t rows, int64_t cols,
                       int64_t m, int64_t n) {
  const ein_contract *c = j->c;
  const eini_ckern *t = j->kern;
  const int64_t *tm = j->to[0] + m, *tn = j->to[1] + n;
  int64_t line = plane * j->unit, most = EIN_POINTS / cols;
  if (c->plain_out) {
    int unit = eini_consecutive(tn, cols);
    for (int64_t i = 0; i < rows; i++) {
      char *o = j->out + (tm[i] + (unit ? tn[0] : 0)) * j->unit;
      t->unpack(tile + i * line, cols, plane, t->planes, o, unit ? NULL : tn);
    }
    return;
  }
  if (c->scaled) {
    for (int64_t i = 0; i < rows; i++, tile += line) {
      const char *y = c->beta == NULL ? NULL : j->xat[0] + (tm + j->blk[0])[i] * j->unit;
      if (t->planes == 2) t->unpack(tile, cols, plane, 2, j->val, NULL);
      t->scale(cols, t->planes, c->alpha, c->beta, t->planes == 2 ? j->val : tile, y,
               tn + j->blk[1], j->out + tm[i] * j->unit, tn);
    }
    return;
  }
  for (int64_t i0 = 0; i0 < rows; i0 += most) {
    int64_t chunk = eini_min64(most, rows - i0);
    for (int64_t i = 0; i < chunk; i++) {
      t->unpack(tile + (i0 + i) * line, cols, plane, t->planes, j->val + i * cols * j->unit, NULL);
    }
    for (int e = 0; e <= c->nextra; e++) {
      int64_t *off = j->off + e * j->points;
      const int64_t *em = tm + i0 + e * j->blk[0], *en = tn + e * j->blk[1];
      for (int64_t i = 0; i < chunk; i++) {
        for (int64_t l = 0; l < cols; l++) off[i * cols + l] = em[i] + en[l];
      }
      j->offp[e] = off;
    }
    c->emit_fn(c->emit_user, chunk * cols, j->val, j->out, j->offp[0], j->xat, j->offp + 1, NULL);
  }
}

// sums[m,n] (+)= P[m,k] * Q[k,n]: the tiles of a packed block of each, from row m0 of the sums on
static void eini_tiles(eini_cjob *j, int64_t mb, int64_t nb, int64_t kb, int64_t m0, int first,
                       int last) {
  const eini_ckern *t = j->kern;
  int64_t mt = (mb + EINI_R - 1) / EINI_R, nt = (nb + t->nr - 1) / t->nr;
  int across = kb <= EINI_ACROSS;  // with few k the output is most of the traffic
  for (int64_t i = 0; i < mt * nt; i++) {
    int64_t m = (across ? i / nt : i % mt) * EINI_R, n = (across ? i % nt : i / mt) * t->nr;
    char *tile = j->tile;
    if (j->keep) tile += ((m0 + m) * j->blk[1] + n * EINI_R) * j->unit;
    t->kernel(kb, j->pack[0] + m * kb * j->unit, j->pack[1] + n * kb * j->unit, tile, !first);
    if (!last) continue;
    eini_store(j, tile, t->nr, eini_min64(EINI_R, mb - m), eini_min64(t->nr, nb - n), m, n);
  }
}

// for blocks of sums: for blocks of k: pack Q[k,n]; for blocks of m: pack P[m,k]; tiles
static void eini_run_block(eini_cjob *j) {
  int psign = j->side[0]->conj ? -1 : 1, qsign = j->side[1]->conj ? -1 : 1;
  for (int64_t m0 = j->from[0]; m0 < j->upto[0]; m0 += EINI_MC) {
    int64_t mend = eini_min64(j->upto[0], m0 + EINI_MC);
    for (int64_t n = j->from[1]; n < j->upto[1]; n += j->blk[1]) {
      int64_t nb = eini_min64(j->blk[1], j->upto[1] - n), np = eini_up(nb, j->kern->nr), k = 0;
      eini_row_tables(j, 1, n, nb, np);
      do {  // once when there is no k
        int64_t kb = eini_min64(j->kc, j->kn - k);
        eini_k_tables(j, k, kb);
        eini_pack(j, 1, 0, np, j->kern->nr, 0, kb, qsign, j->pack[1]);
        for (int64_t m = m0; m < mend; m += j->blk[0]) {
          int64_t mb = eini_min64(j->blk[0], mend - m), mp = eini_up(mb, EINI_R);
          eini_row_tables(j, 0, m, mb, mp);
          eini_pack(j, 0, 0, mp, EINI_R, 0, kb, psign, j->pack[0]);
          eini_tiles(j, mb, nb, kb, m - m0, k == 0, k + kb == j->kn);
        }
      } while ((k += j->kc) < j->kn);
    }
  }
}

// y[n] += x[k] * Q[k,n] for a block, along k or along n (w: n padded); Q in place if possible.
// coef[re/im, k, re/im]: the vector as coefficients of the real and imaginary parts of Q
static void eini_stream_block(eini_cjob *j, int64_t nb, int64_t w, int64_t kb, const char *coef) {
  const eini_ckern *t = j->kern;
  const int64_t *row = j->row[1], *k = j->k[1], z = t->size, u = j->unit;
  int rows = j->w->rows, plain = j->side[1]->form == EIN_FORM_PLAIN;
  int direct = rows ? plain && eini_consecutive(k, kb)
                    : plain && t->planes == 1 && w == nb && eini_consecutive(row, nb);
  if (direct && !rows) {
    t->axpy(w, j->at[1][0] + row[0] * u, k, kb, coef, j->tile);
    return;
  }
  for (int64_t i = 0; i < (rows ? nb : kb); i++) {
    const char *q = direct ? j->at[1][0] + (row[i] + k[0]) * u : j->pack[1];
    const int64_t planes[2] = {0, w};
    if (!direct && rows) eini_pack(j, 1, i, 1, 1, 0, kb, 1, j->pack[1]);
    if (!direct && !rows) eini_pack(j, 1, 0, w, w, i, 1, 1, j->pack[1]);
    for (int part = 0; part < t->planes; part++) {
      const char *x = coef + part * j->kc * u;
      char *y = j->tile + part * w * z;
      if (rows) {
        t->dot(kb * t->planes, q, x, y + i * z);
      } else {
        t->axpy(w, q, planes, t->planes, x + i * u, y);
      }
    }
  }
}

// for blocks of n and k: y[n] += x[k] * Q[k,n]; m has extent 1
static void eini_run_stream(eini_cjob *j) {
  const eini_ckern *t = j->kern;
  const ein_side *p = j->side[0], *q = j->side[1];
  int64_t nb, kb;
  eini_row_tables(j, 0, 0, 1, 1);
  for (int64_t n = j->from[1]; n < j->upto[1]; n += nb) {
    nb = eini_min64(j->blk[1], j->upto[1] - n);
    if (!j->w->rows && nb > t->lanes) nb -= nb % t->lanes;  // the rest is fetched and padded
    int64_t w = eini_up(nb, t->lanes);
    eini_row_tables(j, 1, n, nb, w);
    memset(j->tile, 0, (size_t)(w * j->unit));
    for (int64_t k = 0; k < j->kn; k += kb) {
      char *x = j->pack[0], *coef = x;
      kb = eini_min64(j->kc, j->kn - k);
      eini_k_tables(j, k, kb);
      eini_pack(j, 0, 0, 1, 1, 0, kb, p->conj ? -1 : 1, x);
      if (t->planes == 2) {
        coef = x + j->kc * j->unit;
        t->turn(kb, x, q->conj, coef, coef + j->kc * j->unit);
      }
      eini_stream_block(j, nb, w, kb, coef);
    }
    eini_store(j, j->tile, w, 1, nb, 0, 0);
  }
}

// Fill w->small. 0: not the best path; 2: with tiles, up to where packing starts to pay.
static int eini_small_init(const eini_cjob *j, const ein_contract *c, eini_cplan *w) {
  const ein_side *p = j->side[0], *q = j->side[1];
  if (c->m.n > 1 || c->n.n > 1 || c->k.n > 1) return 0;
  int64_t m = j->ext[0], n = j->ext[1], k = j->kn, most = 512;
  const eini_small s = {m, n, k, eini_axes_only(j->axes[0], p->row[0]),
                        eini_axes_only(&c->k, p->k[0]), eini_axes_only(&c->k, q->k[0]),
                        eini_axes_only(j->axes[1], q->row[0]), eini_axes_only(j->axes[0], j->os[0]),
                        eini_axes_only(j->axes[1], j->os[1]), p->conj ? -1 : 1, q->conj ? -1 : 1};
  w->small = s;
  int tiles = j->kern->planes == 1 && s.qn == 1 && s.on == 1 && m > 1 && n * j->unit >= EINI_SHORT;
  if (tiles) most = 16384;
  return p->form == EIN_FORM_PLAIN && q->form == EIN_FORM_PLAIN && (c->plain_out || c->scaled) &&
         m <= most && n <= most && k <= most && m * n * k <= most ? 1 + tiles : 0;
}

// The smallest step along a group, by the order of its axes.
static int64_t eini_last_step(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? INT64_MAX : eini_abs64(stride[x->n - 1]);
}

// Work of the tiles with rows of side s, in multiply-adds, with a charge for strided stores.
static double eini_block_cost(const eini_cjob *j, int s) {
  const ein_axes *x = j->axes[1 - s];
  int64_t m = j->ext[s], n = j->ext[1 - s];
  double tiles = (double)eini_up(m, EINI_R) * (double)eini_up(n, j->kern->nr);
  int unit = x->n == 0 || j->os[1 - s][x->n - 1] == 1;
  return tiles * (double)(j->kn + 4) + (unit ? 0.0 : 16.0 * (double)m * (double)n);
}

// Into how many parts of batch, m and n `width` threads take the work: batch first, then the side
// with more units.
static void eini_contract_grid(ein_choice *h, int width, int64_t batch, int64_t m, int64_t n) {
  const int64_t count[3] = {batch / h->unit[0], m / h->unit[1], n / h->unit[2]};
  int64_t left = width;
  for (int i = 0; i < 3; i++) h->grid[i] = 1;
  for (int turn = 0; turn < 3 && left > 1; turn++) {
    int g = turn == 0 ? 0 : (turn == 1) == (count[1] >= count[2]) ? 1 : 2;
    h->grid[g] = eini_max64(1, eini_min64(left, turn == 0 ? count[g] : count[g] / 2));
    left /= h->grid[g];
  }
}

// Part i of a grid; 0 when it is empty.
static int eini_grid_part(const ein_choice *h, const ein_part *whole, int i, ein_part *part) {
  int64_t *const range[3] = {part->batch, part->m, part->n};
  const int64_t total[3] = {whole->batch[1], whole->m[1], whole->n[1]};
  int64_t rest = i;
  for (int g = 2; g >= 0; g--) {
    int64_t at = rest % h->grid[g], units = (total[g] + h->unit[g] - 1) / h->unit[g];
    rest /= h->grid[g];
    range[g][0] = eini_min64(units * at / h->grid[g] * h->unit[g], total[g]);
    range[g][1] = eini_min64(units * (at + 1) / h->grid[g] * h->unit[g], total[g]);
    if (range[g][0] == range[g][1]) return 0;
  }
  return 1;
}

// What a small contract that scales its results needs: offsets of the columns, and the sums of as
// many rows as tiles have.
typedef struct eini_small_room {
  int64_t *on, *yn;
  char *sums;
} eini_small_room;

static size_t eini_small_carve(const ein_contract *c, const eini_cplan *w, char *base,
                               eini_small_room *r) {
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t n = w->small.n;
  size_t used = 0;
  eini_small_room room;
  if (!c->scaled) return 0;
  if (r == NULL) r = &room;
  r->on = (int64_t *)eini_carve(base, &used, n, 8);
  r->yn = (int64_t *)eini_carve(base, &used, n * c->nextra, 8);
  r->sums = (char *)eini_carve(base, &used, eini_min64(4, w->small.m) * n, t->size * t->planes);
  return used;
}

// Bytes of scratch, aligned to 64, that a part needs: some MB at most, less for small problems.
static size_t eini_contract_scratch(const ein_contract *c, const eini_cplan *w) {
  eini_cjob j;
  if (w->path == EINI_SMALL) return eini_small_carve(c, w, NULL, NULL);
  eini_cjob_init(&j, c, w);
  return eini_cjob_carve(&j, NULL);
}

// The portable kernel's answer: path and swap from the whole problem.
static int eini_contract_plan(const ein_contract *c, int width, ein_choice *h) {
  static const char *const names[] = {"block", "stream", "small"};
  eini_cjob j;
  int small[2];
  eini_cplan w;
  if (c->pair != EIN_PAIR_SUM_MUL || c->p.nop == 0 || c->q.nop == 0) return 0;
  memset(&w, 0, sizeof w);
  memset(h, 0, sizeof *h);
  w.rows = 1;
  for (int swap = 1; swap >= 0; swap--) {
    w.swap = swap;
    eini_cjob_init(&j, c, &w);
    small[swap] = !c->ordered && eini_small_init(&j, c, &w);
  }
  double tiles = 0;
  if (small[0] || small[1]) {
    w.path = EINI_SMALL;
    w.swap = small[1] > small[0];
  } else if (c->ordered) {
    w.path = EINI_BLOCK;
    w.swap = 0;  // complex products add in the order of the sides
  } else if (j.ext[0] == 1 || j.ext[1] == 1) {
    w.path = EINI_STREAM;
    w.swap = j.ext[0] != 1;
    const ein_side *q = j.side[!w.swap];
    const ein_axes *n = j.axes[!w.swap];
    w.rows = eini_last_step(n, q->row[0]) >= eini_last_step(&c->k, q->k[0]);
  } else {
    double other = eini_block_cost(&j, 1);
    tiles = eini_block_cost(&j, 0);
    w.swap = other < tiles;
    if (w.swap) tiles = other;
  }
  eini_cjob_init(&j, c, &w);
  eini_small_init(&j, c, &w);
  h->scratch = eini_contract_scratch(c, &w);
  // Multiply-adds at about 2 GHz, half a vector each; what is read once at 8 bytes a cycle.
  double batch = (double)eini_axes_size(&c->batch), all = (double)j.ext[0] * (double)j.ext[1] *
                 (double)j.kn;
  double adds = w.path == EINI_BLOCK ? tiles / (double)j.kern->lanes : all;
  if (w.path == EINI_STREAM) adds *= 3;
  if (w.path == EINI_BLOCK)  // packing, and stores through emit_fn
    adds += 0.6 * (double)j.kn * (double)(j.ext[0] + j.ext[1]) +
            (c->plain_out ? 0.0 : (double)j.ext[0] * (double)j.ext[1]);
  // Beyond that, measured on Zen 5: what a block of the batch takes, and a row or column streamed.
  const double lines = (double)(w.rows ? j.ext[1] : j.kn);
  const double begin = w.path == EINI_SMALL ? 1e-8 : w.path == EINI_BLOCK ? 1e-7
                                                                          : 6e-8 + 8e-9 * lines;
  h->seconds = batch * (adds * (double)j.kern->planes * 0.5e-9 + begin) + 2e-8;
  h->unit[0] = h->unit[1] = h->unit[2] = 1;
  int cut = batch * all >= 32768;
  eini_contract_grid(h, cut ? width : 1, eini_axes_size(&c->batch),
                     w.path == EINI_SMALL ? 1 : eini_axes_size(&c->m),
                     w.path == EINI_SMALL ? 1 : eini_axes_size(&c->n));
  snprintf(h->variant, sizeof h->variant, "%s", names[w.path]);
  memcpy(h->state, &w, sizeof w);
  return 1;
}

// Bytes from the address of batch 0 to that of batch b, for stream o.
static int64_t eini_batch_shift(const ein_axes *x, int64_t b, const int64_t *const *stride, int o,
                                int size) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) {
    off += (d == 0 ? b : b % x->extent[d]) * stride[o][d];
    if (d > 0) b /= x->extent[d];
  }
  return off * size;
}

static int64_t eini_dtype_bytes(ein_dtype t) { return (int64_t)eini_dtypes[t].size; }

// The rows of a small contract whose results are scaled, as many at once as tiles have.
static void eini_small_scaled(const ein_contract *c, const eini_cplan *w, const char *p,
                              const char *q, const char *y, char *out, char *scratch) {
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t *const om = w->swap ? c->out_n : c->out_m;
  const int64_t n = w->small.n, size = t->size * t->planes;
  const ein_axes *rows = w->swap ? &c->n : &c->m, *cols = w->swap ? &c->m : &c->n;
  eini_small_room r;
  eini_small s = w->small;
  int64_t ym = 0;
  eini_small_carve(c, w, scratch, &r);
  s.om = n, s.on = 1;
  eini_table(cols, w->swap ? c->out_m : c->out_n, 0, n, n, r.on);
  if (c->nextra > 0) {
    ym = eini_axes_only(rows, w->swap ? c->extra_n[0] : c->extra_m[0]);
    eini_table(cols, w->swap ? c->extra_m[0] : c->extra_n[0], 0, n, n, r.yn);
  }
  for (int64_t i = 0; i < w->small.m; i += s.m) {
    s.m = eini_min64(4, w->small.m - i);
    t->small(&s, t->planes, p + i * s.pm * size, q, r.sums);
    for (int64_t h = 0; h < s.m; h++)
      t->scale(n, t->planes, c->alpha, c->beta, r.sums + h * n * size,
               c->beta == NULL ? NULL : y + (i + h) * ym * size, r.yn,
               out + (i + h) * eini_axes_only(rows, om) * size, r.on);
  }
}

static void eini_contract_small(const ein_contract *c, const eini_cplan *w, const ein_part *part,
                                char *scratch) {
  const ein_side *p = w->swap ? &c->q : &c->p, *q = w->swap ? &c->p : &c->q;
  const eini_ckern *t = eini_ckern_of(c->type);
  int size = t->size * t->planes;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    const char *x = p->base[0] + eini_batch_shift(&c->batch, b, p->batch, 0, size);
    const char *y = q->base[0] + eini_batch_shift(&c->batch, b, q->batch, 0, size);
    char *out = c->out + eini_batch_shift(&c->batch, b, &c->out_batch, 0, size);
    if (!c->scaled) {
      t->small(&w->small, t->planes, x, y, out);
      continue;
    }
    const char *old = c->nextra == 0 ? NULL : c->extra_base[0] +
                      eini_batch_shift(&c->batch, b, c->extra_batch, 0, size);
    eini_small_scaled(c, w, x, y, old, out, scratch);
  }
}

// Runs a part of a planned contraction. for batch: the path's loops over m, n, k
static void eini_contract_run(const ein_contract *c, const ein_choice *h, const ein_part *part,
                              void *scratch) {
  const ein_axes *x = &c->batch;
  eini_cplan w;
  memcpy(&w, h->state, sizeof w);
  if (w.path == EINI_SMALL) {
    eini_contract_small(c, &w, part, (char *)scratch);
    return;
  }
  eini_cjob j;
  eini_cjob_init(&j, c, &w);
  if (j.ext[0] == 0 || j.ext[1] == 0) return;
  for (int i = 0; i < 2; i++) {
    j.from[w.swap ? 1 - i : i] = i ? part->n[0] : part->m[0];
    j.upto[w.swap ? 1 - i : i] = i ? part->n[1] : part->m[1];
  }
  eini_cjob_carve(&j, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    for (int s = 0; s < 2; s++) {
      const ein_side *y = j.side[s];
      for (int o = 0; o < y->nop; o++) {
        j.at[s][o] =
            y->base[o] + eini_batch_shift(x, b, y->batch, o, (int)eini_dtype_bytes(y->dtype[o]));
      }
    }
    for (int e = 0; e < c->nextra; e++) {
      int size = (int)eini_dtype_bytes(c->extra_dtype[e]);
      j.xat[e] = c->extra_base[e] + eini_batch_shift(x, b, c->extra_batch, e, size);
    }
    int size = (int)eini_dtype_bytes(c->out_dtype);
    j.out = c->out + eini_batch_shift(x, b, &c->out_batch, 0, size);
    (w.path == EINI_STREAM ? eini_run_stream : eini_run_block)(&j);
  }
}

// ================================================================================================
// >>eval  expressions in vector chunks
// Takes typed expressions; gives straight-line code over chunks of up to EINI_CHUNK values, one
// indirect call per operation and chunk. Chunk buffers are padded to EINI_LANES, so that every
// loop has a constant inner trip count that compilers turn into vector code.
// ================================================================================================

#define EINI_CHUNK 256
#define EINI_LANES 16

// d = op(a, b, c) for n values, n a multiple of EINI_LANES; d is distinct from a, b, c. (restrict
// stands on the parameters: gcc's cheap vectoriser at -O2 does not believe it on locals.)
typedef void (*eini_chunk_fn)(int64_t n, const void *a, const void *b, const void *c, void *d);

#define EINI_CHUNK_OP(name, TA, TD, expr)                                                   \
  static void eini_c_##name(int64_t n, const void *EINI_RESTRICT pa,                        \
                            const void *EINI_RESTRICT pb, const void *EINI_RESTRICT pc,     \
                            void *EINI_RESTRICT pd) {                                       \
    const TA *a = (const TA *)pa, *b = (const TA *)pb;                                      \
    TD *d = (TD *)pd;                                                                       \
    (void)pc;                                                                               \
    (void)b;                                                                                \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const TA x = a[i + j];                                                              \
        d[i + j] = (TD)(expr);                                                              \
      }                                                                                     \
    }                                                                                       \
  }
#define EINI_Y b[i + j]

// Arithmetic; W is the type integers wrap in, T itself for floats.
#define EINI_CHUNK_ARITH(s, T, W)                                                           \
  EINI_CHUNK_OP(add_##s, T, T, (W)x + (W)EINI_Y)                                            \
  EINI_CHUNK_OP(sub_##s, T, T, (W)x - (W)EINI_Y)                                            \
  EINI_CHUNK_OP(mul_##s, T, T, (W)x *(W)EINI_Y)                                             \
  EINI_CHUNK_OP(square_##s, T, T, (W)x *(W)x)
// What every ordered type has.
#define EINI_CHUNK_ORDERED(s, T)                                                            \
  EINI_CHUNK_OP(max_##s, T, T, ((x > EINI_Y) | (x != x)) ? x : EINI_Y)                      \
  EINI_CHUNK_OP(min_##s, T, T, ((x < EINI_Y) | (x != x)) ? x : EINI_Y)                      \
  EINI_CHUNK_OP(lt_##s, T, uint8_t, x < EINI_Y)                                             \
  EINI_CHUNK_OP(le_##s, T, uint8_t, x <= EINI_Y)                                            \
  EINI_CHUNK_OP(gt_##s, T, uint8_t, x > EINI_Y)                                             \
  EINI_CHUNK_OP(ge_##s, T, uint8_t, x >= EINI_Y)                                            \
  EINI_CHUNK_OP(eq_##s, T, uint8_t, x == EINI_Y)                                            \
  EINI_CHUNK_OP(ne_##s, T, uint8_t, x != EINI_Y)

static double eini_remainder(double x, double y) {
  double r = fmod(x, y);
  if (r != 0.0) return (r < 0.0) != (y < 0.0) ? r + y : r;
  return y == y && x == x && y != 0.0 ? copysign(0.0, y) : r;
}

// As NumPy: the quotient that belongs to the remainder above, snapped to an integer.
static double eini_quotient(double x, double y) {
  if (y == 0.0) return x / y;
  double r = fmod(x, y), q = (x - r) / y;
  if (r != 0.0 && (r < 0.0) != (y < 0.0)) q -= 1.0;
  if (q == 0.0) return copysign(0.0, x / y);
  double f = floor(q);
  return q - f > 0.5 ? f + 1.0 : f;
}

static int64_t eini_idiv(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0u - (uint64_t)x);
  int64_t q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

static int64_t eini_imod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

EINI_CHUNK_ARITH(f32, float, float)
EINI_CHUNK_ARITH(f64, double, double)
EINI_CHUNK_ARITH(i32, int32_t, uint32_t)
EINI_CHUNK_ARITH(i64, int64_t, uint64_t)
EINI_CHUNK_ORDERED(f32, float)
EINI_CHUNK_ORDERED(f64, double)
EINI_CHUNK_ORDERED(i32, int32_t)
EINI_CHUNK_ORDERED(i64, int64_t)
EINI_CHUNK_ORDERED(bool, uint8_t)
EINI_CHUNK_OP(neg_f32, float, float, -x)
EINI_CHUNK_OP(neg_f64, double, double, -x)
EINI_CHUNK_OP(neg_i32, int32_t, int32_t, 0u - (uint32_t)x)
EINI_CHUNK_OP(neg_i64, int64_t, int64_t, (uint64_t)0 - (uint64_t)x)
EINI_CHUNK_OP(relu_f32, float, float, x < 0.0f ? 0.0f : x)
EINI_CHUNK_OP(relu_f64, double, double, x < 0.0 ? 0.0 : x)
EINI_CHUNK_OP(relu_i32, int32_t, int32_t, x < 0 ? 0 : x)
EINI_CHUNK_OP(relu_i64, int64_t, int64_t, x < 0 ? 0 : x)
EINI_CHUNK_OP(and_bool, uint8_t, uint8_t, x &EINI_Y)
EINI_CHUNK_OP(or_bool, uint8_t, uint8_t, x | EINI_Y)
EINI_CHUNK_OP(not_bool, uint8_t, uint8_t, x ^ 1)
EINI_CHUNK_OP(apart_f32, float, float, x - b[0])  // from one value
EINI_CHUNK_OP(apart_f64, double, double, x - b[0])
EINI_CHUNK_OP(div_i32, int32_t, int32_t, eini_idiv(x, EINI_Y))
EINI_CHUNK_OP(div_i64, int64_t, int64_t, eini_idiv(x, EINI_Y))
EINI_CHUNK_OP(mod_i32, int32_t, int32_t, eini_imod(x, EINI_Y))
EINI_CHUNK_OP(mod_i64, int64_t, int64_t, eini_imod(x, EINI_Y))
EINI_CHUNK_OP(abs_i32, int32_t, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
EINI_CHUNK_OP(abs_i64, int64_t, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
EINI_CHUNK_OP(sign_i32, int32_t, int32_t, (x > 0) - (x < 0))
EINI_CHUNK_OP(sign_i64, int64_t, int64_t, (x > 0) - (x < 0))

#define EINI_CHUNK_V(name, s, T)                                                            \
  static void eini_c_##name##_##s(int64_t n, const void *a, const void *b, const void *c,   \
                                  void *d) {                                                \
    (void)b; (void)c;                                                                       \
    eini_v##name##_##s(n, (const T *)a, (T *)d);                                            \
  }

// Operations of real floats; the elementary functions are in >>math. FN(f) names libm's version.
#define EINI_CHUNK_REAL(s, T, FN)                                                           \
  EINI_CHUNK_OP(quot_##s, T, T, x / EINI_Y)                                                 \
  EINI_CHUNK_OP(fdiv_##s, T, T, eini_quotient((double)x, (double)EINI_Y))                   \
  EINI_CHUNK_OP(fmod_##s, T, T, eini_remainder((double)x, (double)EINI_Y))                   \
  EINI_CHUNK_OP(pow_##s, T, T, FN(pow)(x, EINI_Y))                                          \
  EINI_CHUNK_OP(expm1_##s, T, T, FN(expm1)(x))                                              \
  EINI_CHUNK_OP(log1p_##s, T, T, FN(log1p)(x))                                              \
  EINI_CHUNK_OP(tan_##s, T, T, FN(tan)(x))                                                  \
  EINI_CHUNK_OP(atan2_##s, T, T, FN(atan2)(x, EINI_Y))                                      \
  EINI_CHUNK_OP(sign_##s, T, T, x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x)           \
  EINI_CHUNK_OP(sqrt_##s, T, T, FN(sqrt)(x))                                                \
  EINI_CHUNK_OP(rsqrt_##s, T, T, (T)1 / FN(sqrt)(x))                                        \
  EINI_CHUNK_OP(floor_##s, T, T, FN(floor)(x))                                              \
  EINI_CHUNK_OP(ceil_##s, T, T, FN(ceil)(x))                                                \
  EINI_CHUNK_OP(round_##s, T, T, FN(rint)(x))                                               \
  EINI_CHUNK_OP(abs_##s, T, T, FN(fabs)(x))                                                 \
  EINI_CHUNK_OP(half1p_##s, T, T, (T)0.5 * EINI_Y * ((T)1 + x))                             \
  EINI_CHUNK_OP(scale_##s, T, T, x *(T)0.70710678118654752440)                              \
  EINI_CHUNK_OP(rec1p_##s, T, T, (T)1 / ((T)1 + x))                                         \
  EINI_CHUNK_OP(over1p_##s, T, T, EINI_Y / ((T)1 + x))                                      \
  EINI_CHUNK_V(exp, s, T)                                                                   \
  EINI_CHUNK_V(log, s, T)                                                                   \
  EINI_CHUNK_V(sin, s, T)                                                                   \
  EINI_CHUNK_V(cos, s, T)                                                                   \
  EINI_CHUNK_V(tanh, s, T)                                                                  \
  EINI_CHUNK_V(erf, s, T)                                                                   \
  /* sigmoid = 1/(1+exp(-x)), silu = x*sigmoid(x), gelu = x/2*(1+erf(x/sqrt 2)) */          \
  static void eini_c_sigmoid_##s(int64_t n, const void *a, const void *b, const void *c,    \
                                 void *d) {                                                 \
    T t[EINI_CHUNK];                                                                        \
    eini_c_neg_##s(n, a, b, c, d);                                                          \
    eini_vexp_##s(n, (const T *)d, t);                                                      \
    eini_c_rec1p_##s(n, t, b, c, d);                                                        \
  }                                                                                         \
  static void eini_c_silu_##s(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    T t[EINI_CHUNK];                                                                        \
    eini_c_neg_##s(n, a, b, c, d);                                                          \
    eini_vexp_##s(n, (const T *)d, t);                                                      \
    eini_c_over1p_##s(n, t, a, c, d);                                                       \
  }                                                                                         \
  static void eini_c_gelu_##s(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    T t[EINI_CHUNK];                                                                        \
    eini_c_scale_##s(n, a, b, c, d);                                                        \
    eini_verf_##s(n, (const T *)d, t);                                                      \
    eini_c_half1p_##s(n, t, a, c, d);                                                       \
  }
#define EINI_FN_F32(g) g##f
#define EINI_FN_F64(g) g
EINI_CHUNK_REAL(f32, float, EINI_FN_F32)
EINI_CHUNK_REAL(f64, double, EINI_FN_F64)
#undef EINI_CHUNK_V
#undef EINI_FN_F32
#undef EINI_FN_F64

// Selection by a bool: where(a, b, c).
#define EINI_CHUNK_WHERE(s, T)                                                              \
  static void eini_c_where_##s(int64_t n, const void *EINI_RESTRICT pa,                     \
                               const void *EINI_RESTRICT pb, const void *EINI_RESTRICT pc,  \
                               void *EINI_RESTRICT pd) {                                    \
    const uint8_t *a = (const uint8_t *)pa;                                                 \
    const T *b = (const T *)pb, *c = (const T *)pc;                                         \
    T *d = (T *)pd;                                                                         \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      for (int j = 0; j < EINI_LANES; j++) {  /* both are read: no branch */                \
        const T x = b[i + j], y = c[i + j];                                                 \
        d[i + j] = a[i + j] ? x : y;                                                        \
      }                                                                                     \
    }                                                                                       \
  }

typedef struct eini_c64 { float re, im; } eini_c64;
typedef struct eini_c128 { double re, im; } eini_c128;

EINI_CHUNK_WHERE(bool, uint8_t)
EINI_CHUNK_WHERE(i32, int32_t)
EINI_CHUNK_WHERE(i64, int64_t)
EINI_CHUNK_WHERE(f32, float)
EINI_CHUNK_WHERE(f64, double)
EINI_CHUNK_WHERE(c64, eini_c64)
EINI_CHUNK_WHERE(c128, eini_c128)
#undef EINI_CHUNK_WHERE

// Complex elementary functions in double, from real ones; no _Complex in C++.
static eini_c128 eini_cmk(double re, double im) {
  eini_c128 z;
  z.re = re;
  z.im = im;
  return z;
}
static eini_c128 eini_cmul(eini_c128 x, eini_c128 y) {
  return eini_cmk(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
// Smith's division avoids overflow of |y|^2.
static eini_c128 eini_cdiv(eini_c128 x, eini_c128 y) {
  if (fabs(y.re) >= fabs(y.im)) {
    if (y.re == 0.0 && y.im == 0.0) return eini_cmk(x.re / y.re, x.im / y.re);
    double r = y.im / y.re, d = y.re + y.im * r;
    return eini_cmk((x.re + x.im * r) / d, (x.im - x.re * r) / d);
  }
  double r = y.re / y.im, d = y.re * r + y.im;
  return eini_cmk((x.re * r + x.im) / d, (x.im * r - x.re) / d);
}
static eini_c128 eini_cexp(eini_c128 x) {
  double e = exp(x.re);
  if (x.im == 0.0) return eini_cmk(e, x.im);
  if (e == 0.0) return eini_cmk(0.0, 0.0);
  return eini_cmk(e * cos(x.im), e * sin(x.im));
}
static eini_c128 eini_clog(eini_c128 x) {
  return eini_cmk(log(hypot(x.re, x.im)), atan2(x.im, x.re));
}
static eini_c128 eini_csqrt(eini_c128 x) {
  if (x.re == 0.0 && x.im == 0.0) return eini_cmk(0.0, x.im);
  double t = sqrt(0.5 * (hypot(x.re, x.im) + fabs(x.re)));
  return x.re >= 0.0 ? eini_cmk(t, x.im / (2.0 * t))
                     : eini_cmk(fabs(x.im) / (2.0 * t), copysign(t, x.im));
}
static eini_c128 eini_crsqrt(eini_c128 x) { return eini_cdiv(eini_cmk(1.0, 0.0), eini_csqrt(x)); }
static eini_c128 eini_csin(eini_c128 x) {
  return eini_cmk(sin(x.re) * cosh(x.im), cos(x.re) * sinh(x.im));
}
static eini_c128 eini_ccos(eini_c128 x) {
  return eini_cmk(cos(x.re) * cosh(x.im), -sin(x.re) * sinh(x.im));
}
// exp(x)-1 and log(1+x), also near 0: cos(y)-1 is -2 sin(y/2)^2, |1+x|^2-1 has no 1 to lose.
static eini_c128 eini_cexpm1(eini_c128 x) {
  const double e = expm1(x.re), s = sin(0.5 * x.im);
  if (x.im == 0.0) return eini_cmk(e, x.im);
  return eini_cmk(e * cos(x.im) - 2.0 * s * s, exp(x.re) * sin(x.im));
}
static eini_c128 eini_clog1p(eini_c128 x) {
  const double m = hypot(1.0 + x.re, x.im);
  const double re = m > 0.5 && m < 2.0 ? 0.5 * log1p(x.re * (2.0 + x.re) + x.im * x.im) : log(m);
  return eini_cmk(re, atan2(x.im, 1.0 + x.re));
}
static eini_c128 eini_csign(eini_c128 x) {
  const double m = hypot(x.re, x.im);
  return m == 0.0 ? eini_cmk(0.0, 0.0) : eini_cmk(x.re / m, x.im / m);
}
static eini_c128 eini_ctanh(eini_c128 x) {
  if (fabs(x.re) > 20.0)
    return eini_cmk(copysign(1.0, x.re), 4.0 * sin(x.im) * cos(x.im) * exp(-2.0 * fabs(x.re)));
  double t = tan(x.im), s = sinh(x.re), b = 1.0 + t * t, c = sqrt(1.0 + s * s), d = 1.0 + b * s * s;
  return eini_cmk(b * c * s / d, t / d);
}
static eini_c128 eini_ctan(eini_c128 x) {  // tanh(ix)/i
  const eini_c128 t = eini_ctanh(eini_cmk(-x.im, x.re));
  return eini_cmk(t.im, -t.re);
}
static eini_c128 eini_cpow(eini_c128 x, eini_c128 y) {
  if (y.re == 0.0 && y.im == 0.0) return eini_cmk(1.0, 0.0);
  if (x.re == 0.0 && x.im == 0.0) return eini_cmk(y.re > 0.0 ? 0.0 : x.re / 0.0 * 0.0, 0.0);
  return eini_cexp(eini_cmul(y, eini_clog(x)));
}

// Complex chunks: x and y are widened to double, so c64 loses nothing on the way.
#define EINI_CHUNK_C(name, T, R, expr)                                                      \
  static void eini_c_##name(int64_t n, const void *pa, const void *pb, const void *pc, void *pd) { \
    const T *a = (const T *)pa, *b = pb != NULL ? (const T *)pb : a;                        \
    T *d = (T *)pd;                                                                         \
    (void)pc;                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const eini_c128 x = eini_cmk(a[i].re, a[i].im), y = eini_cmk(b[i].re, b[i].im);       \
      const eini_c128 z = (expr);                                                           \
      (void)y;                                                                              \
      d[i].re = (R)z.re;                                                                    \
      d[i].im = (R)z.im;                                                                    \
    }                                                                                       \
  }
#define EINI_CHUNK_CR(name, T, R, expr)                                                     \
  static void eini_c_##name(int64_t n, const void *pa, const void *pb, const void *pc, void *pd) { \
    const T *a = (const T *)pa, *b = pb != NULL ? (const T *)pb : a;                        \
    R *d = (R *)pd;                                                                         \
    (void)pc;                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T x = a[i], y = b[i];                                                           \
      (void)y;                                                                              \
      d[i] = (R)(expr);                                                                     \
    }                                                                                       \
  }
#define EINI_CHUNK_COMPLEX(s, T, R)                                                         \
  EINI_CHUNK_C(add_##s, T, R, eini_cmk(x.re + y.re, x.im + y.im))                           \
  EINI_CHUNK_C(sub_##s, T, R, eini_cmk(x.re - y.re, x.im - y.im))                           \
  EINI_CHUNK_C(mul_##s, T, R, eini_cmul(x, y))                                              \
  EINI_CHUNK_C(square_##s, T, R, eini_cmul(x, x))                                           \
  EINI_CHUNK_C(quot_##s, T, R, eini_cdiv(x, y))                                             \
  EINI_CHUNK_C(neg_##s, T, R, eini_cmk(-x.re, -x.im))                                       \
  EINI_CHUNK_C(conj_##s, T, R, eini_cmk(x.re, -x.im))                                       \
  EINI_CHUNK_C(exp_##s, T, R, eini_cexp(x))                                                 \
  EINI_CHUNK_C(log_##s, T, R, eini_clog(x))                                                 \
  EINI_CHUNK_C(sqrt_##s, T, R, eini_csqrt(x))                                               \
  EINI_CHUNK_C(rsqrt_##s, T, R, eini_crsqrt(x))                                             \
  EINI_CHUNK_C(expm1_##s, T, R, eini_cexpm1(x))                                             \
  EINI_CHUNK_C(log1p_##s, T, R, eini_clog1p(x))                                             \
  EINI_CHUNK_C(sign_##s, T, R, eini_csign(x))                                               \
  EINI_CHUNK_C(sin_##s, T, R, eini_csin(x))                                                 \
  EINI_CHUNK_C(tan_##s, T, R, eini_ctan(x))                                                 \
  EINI_CHUNK_C(cos_##s, T, R, eini_ccos(x))                                                 \
  EINI_CHUNK_C(tanh_##s, T, R, eini_ctanh(x))                                               \
  EINI_CHUNK_C(pow_##s, T, R, eini_cpow(x, y))                                              \
  EINI_CHUNK_CR(abs_##s, T, R, hypot((double)x.re, (double)x.im))                           \
  EINI_CHUNK_CR(real_##s, T, R, x.re)                                                       \
  EINI_CHUNK_CR(imag_##s, T, R, x.im)                                                       \
  EINI_CHUNK_CR(eq_##s, T, uint8_t, (x.re == y.re) & (x.im == y.im))                        \
  EINI_CHUNK_CR(ne_##s, T, uint8_t, (x.re != y.re) | (x.im != y.im))                        \
  static void eini_c_complex_##s(int64_t n, const void *a, const void *b, const void *c,    \
                                 void *d) {                                                 \
    (void)c;                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)d)[i].re = ((const R *)a)[i];                                                   \
      ((T *)d)[i].im = ((const R *)b)[i];                                                   \
    }                                                                                       \
  }
EINI_CHUNK_COMPLEX(c64, eini_c64, float)
EINI_CHUNK_COMPLEX(c128, eini_c128, double)
#undef EINI_CHUNK_COMPLEX
#undef EINI_CHUNK_C
#undef EINI_CHUNK_CR

// ---- conversions between computation types ----

EINI_CHUNK_OP(bool_to_i32, uint8_t, int32_t, x)
EINI_CHUNK_OP(bool_to_i64, uint8_t, int64_t, x)
EINI_CHUNK_OP(bool_to_f32, uint8_t, float, x)
EINI_CHUNK_OP(bool_to_f64, uint8_t, double, x)
EINI_CHUNK_OP(i32_to_i64, int32_t, int64_t, x)
EINI_CHUNK_OP(i32_to_f32, int32_t, float, x)
EINI_CHUNK_OP(i32_to_f64, int32_t, double, x)
EINI_CHUNK_OP(i64_to_i32, int64_t, int32_t, x)
EINI_CHUNK_OP(i64_to_f32, int64_t, float, x)
EINI_CHUNK_OP(i64_to_f64, int64_t, double, x)
EINI_CHUNK_OP(i32_to_bool, int32_t, uint8_t, x != 0)
EINI_CHUNK_OP(i64_to_bool, int64_t, uint8_t, x != 0)
EINI_CHUNK_OP(f32_to_bool, float, uint8_t, x != 0)
EINI_CHUNK_OP(f64_to_bool, double, uint8_t, x != 0)
EINI_CHUNK_OP(c64_to_bool, eini_c64, uint8_t, (x.re != 0) | (x.im != 0))
EINI_CHUNK_OP(c128_to_bool, eini_c128, uint8_t, (x.re != 0) | (x.im != 0))
EINI_CHUNK_OP(f32_to_f64, float, double, x)
EINI_CHUNK_OP(f64_to_f32, double, float, x)
EINI_CHUNK_OP(f32_to_i32, float, int32_t, eini_f64_to_i64((double)x))
EINI_CHUNK_OP(f64_to_i32, double, int32_t, eini_f64_to_i64(x))
EINI_CHUNK_OP(f32_to_i64, float, int64_t, eini_f64_to_i64((double)x))
EINI_CHUNK_OP(f64_to_i64, double, int64_t, eini_f64_to_i64(x))
#define EINI_CAST_COMPLEX(s, T, R)                                                          \
  static void eini_c_##s##_from(int64_t n, const void *a, const void *b, const void *c, void *d) { \
    (void)b; (void)c; /* from reals of its own precision */                                 \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)d)[i].re = ((const R *)a)[i];                                                   \
      ((T *)d)[i].im = 0;                                                                   \
    }                                                                                       \
  }
EINI_CAST_COMPLEX(c64, eini_c64, float)
EINI_CAST_COMPLEX(c128, eini_c128, double)
#undef EINI_CAST_COMPLEX
static void eini_c_c64_to_c128(int64_t n, const void *a, const void *b, const void *c, void *d) {
  eini_c_f32_to_f64(2 * n, a, b, c, d);
}
static void eini_c_c128_to_c64(int64_t n, const void *a, const void *b, const void *c, void *d) {
  eini_c_f64_to_f32(2 * n, a, b, c, d);
}

// Rounding to a storage dtype, still held in its computation type.
EINI_CHUNK_OP(round_i8, int32_t, int32_t, (int8_t)(uint8_t)(uint32_t)x)
EINI_CHUNK_OP(round_u8, int32_t, int32_t, (uint8_t)(uint32_t)x)
EINI_CHUNK_OP(round_i16, int32_t, int32_t, (int16_t)(uint16_t)(uint32_t)x)
EINI_CHUNK_OP(round_f16, float, float, eini_f16_load(eini_f16_store(x)))
EINI_CHUNK_OP(round_bf16, float, float, eini_bf16_load(eini_bf16_store(x)))

#undef EINI_CHUNK_REAL
#undef EINI_CHUNK_ORDERED
#undef EINI_CHUNK_ARITH
#undef EINI_CHUNK_OP
#undef EINI_Y

// ================================================================================================
// >>code  expressions as straight-line programs over chunk registers
// Takes a typed expression and its operands' dtypes; gives instructions with registers reused as
// values die. Loads read memory in place where layout and dtype allow it.
// ================================================================================================

// Operation tables by computation type. NULL: the operation does not exist for the type.
#define EINI_ORD(n) {eini_c_##n##_bool, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, \
                     eini_c_##n##_f64, NULL, NULL}
#define EINI_ALL7(n) {eini_c_##n##_bool, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, \
                      eini_c_##n##_f64, eini_c_##n##_c64, eini_c_##n##_c128}
#define EINI_ARI(n) {NULL, eini_c_##n##_i32, eini_c_##n##_i64, eini_c_##n##_f32, eini_c_##n##_f64, \
                     eini_c_##n##_c64, eini_c_##n##_c128}
#define EINI_FLT(n) {NULL, NULL, NULL, eini_c_##n##_f32, eini_c_##n##_f64, eini_c_##n##_c64, \
                     eini_c_##n##_c128}
#define EINI_RE2(n) {NULL, NULL, NULL, eini_c_##n##_f32, eini_c_##n##_f64, NULL, NULL}
#define EINI_CPX(n) {NULL, NULL, NULL, NULL, NULL, eini_c_##n##_c64, eini_c_##n##_c128}

typedef struct eini_chunk_row {
  unsigned char op;
  eini_chunk_fn fn[7];  // bool i32 i64 f32 f64 c64 c128
} eini_chunk_row;

static const eini_chunk_row eini_chunk_table[] = {
    {EINI_OP_ADD, EINI_ARI(add)}, {EINI_OP_SUB, EINI_ARI(sub)}, {EINI_OP_MUL, EINI_ARI(mul)},
    {EINI_OP_NEG, EINI_ARI(neg)}, {EINI_OP_SQUARE, EINI_ARI(square)},
    {EINI_OP_DIV, EINI_FLT(quot)}, {EINI_OP_POW, EINI_FLT(pow)},
    {EINI_OP_FLOORDIV, {NULL, eini_c_div_i32, eini_c_div_i64, eini_c_fdiv_f32, eini_c_fdiv_f64,
                        NULL, NULL}},
    {EINI_OP_MOD, {NULL, eini_c_mod_i32, eini_c_mod_i64, eini_c_fmod_f32, eini_c_fmod_f64, NULL,
                   NULL}},
    {EINI_OP_MAX, EINI_ORD(max)}, {EINI_OP_MIN, EINI_ORD(min)}, {EINI_OP_LT, EINI_ORD(lt)},
    {EINI_OP_LE, EINI_ORD(le)}, {EINI_OP_GT, EINI_ORD(gt)}, {EINI_OP_GE, EINI_ORD(ge)},
    {EINI_OP_RELU, {NULL, eini_c_relu_i32, eini_c_relu_i64, eini_c_relu_f32, eini_c_relu_f64, NULL,
                    NULL}}, {EINI_OP_EQ, EINI_ALL7(eq)}, {EINI_OP_NE, EINI_ALL7(ne)},
    {EINI_OP_WHERE, EINI_ALL7(where)},
    {EINI_OP_AND, {eini_c_and_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EINI_OP_OR, {eini_c_or_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EINI_OP_NOT, {eini_c_not_bool, NULL, NULL, NULL, NULL, NULL, NULL}},
    {EINI_OP_EXP, EINI_FLT(exp)}, {EINI_OP_LOG, EINI_FLT(log)}, {EINI_OP_SQRT, EINI_FLT(sqrt)},
    {EINI_OP_RSQRT, EINI_FLT(rsqrt)}, {EINI_OP_EXPM1, EINI_FLT(expm1)},
    {EINI_OP_LOG1P, EINI_FLT(log1p)}, {EINI_OP_SIN, EINI_FLT(sin)}, {EINI_OP_COS, EINI_FLT(cos)},
    {EINI_OP_TAN, EINI_FLT(tan)}, {EINI_OP_TANH, EINI_FLT(tanh)},
    {EINI_OP_ATAN2, EINI_RE2(atan2)}, {EINI_OP_ERF, EINI_RE2(erf)},
    {EINI_OP_SIGN, EINI_ARI(sign)},
    {EINI_OP_SIGMOID, EINI_RE2(sigmoid)}, {EINI_OP_SILU, EINI_RE2(silu)},
    {EINI_OP_GELU, EINI_RE2(gelu)}, {EINI_OP_FLOOR, EINI_RE2(floor)},
    {EINI_OP_CEIL, EINI_RE2(ceil)}, {EINI_OP_ROUND, EINI_RE2(round)},
    {EINI_OP_ABS, {NULL, eini_c_abs_i32, eini_c_abs_i64, eini_c_abs_f32, eini_c_abs_f64,
                   eini_c_abs_c64, eini_c_abs_c128}},
    {EINI_OP_CONJ, EINI_CPX(conj)}, {EINI_OP_REAL, EINI_CPX(real)}, {EINI_OP_IMAG, EINI_CPX(imag)},
    {EINI_OP_COMPLEX, {NULL, NULL, NULL, eini_c_complex_c64, eini_c_complex_c128, NULL, NULL}}};
#undef EINI_ORD
#undef EINI_ALL7
#undef EINI_ARI
#undef EINI_FLT
#undef EINI_RE2
#undef EINI_CPX

static int eini_type_column(ein_dtype compute) {
  switch (compute) {
    case EIN_BOOL: return 0;
    case EIN_I32: return 1;
    case EIN_I64: return 2;
    case EIN_F32: return 3;
    case EIN_F64: return 4;
    case EIN_C64: return 5;
    default: return 6;
  }
}

static eini_chunk_fn eini_chunk_find(const ein_kernels *fast, int op, ein_dtype compute) {
  eini_chunk_fn fn =
      fast == NULL || fast->chunk_fn == NULL ? NULL : fast->chunk_fn(fast->user, op, compute);
  if (fn != NULL) return fn;
  for (size_t i = 0; i < sizeof eini_chunk_table / sizeof *eini_chunk_table; i++)
    if (eini_chunk_table[i].op == op) return eini_chunk_table[i].fn[eini_type_column(compute)];
  return NULL;
}

// From (row) to (column) in the order of eini_type_column. Complex from integers goes through the
// real type first (eini_code_cast); complex to real takes the real part.
static const eini_chunk_fn eini_cast_table[7][7] = {
    {NULL, eini_c_bool_to_i32, eini_c_bool_to_i64, eini_c_bool_to_f32, eini_c_bool_to_f64, NULL,
     NULL},
    {eini_c_i32_to_bool, NULL, eini_c_i32_to_i64, eini_c_i32_to_f32, eini_c_i32_to_f64, NULL, NULL},
    {eini_c_i64_to_bool, eini_c_i64_to_i32, NULL, eini_c_i64_to_f32, eini_c_i64_to_f64, NULL, NULL},
    {eini_c_f32_to_bool, eini_c_f32_to_i32, eini_c_f32_to_i64, NULL, eini_c_f32_to_f64,
     eini_c_c64_from, NULL},
    {eini_c_f64_to_bool, eini_c_f64_to_i32, eini_c_f64_to_i64, eini_c_f64_to_f32, NULL, NULL,
     eini_c_c128_from},
    {eini_c_c64_to_bool, NULL, NULL, eini_c_real_c64, NULL, NULL, eini_c_c64_to_c128},
    {eini_c_c128_to_bool, NULL, NULL, NULL, eini_c_real_c128, eini_c_c128_to_c64, NULL}};

static eini_chunk_fn eini_round_find(ein_dtype t) {
  switch (t) {
    case EIN_I8: return eini_c_round_i8;
    case EIN_U8: return eini_c_round_u8;
    case EIN_I16: return eini_c_round_i16;
    case EIN_F16: return eini_c_round_f16;
    case EIN_BF16: return eini_c_round_bf16;
    default: return NULL;
  }
}

typedef enum eini_ins_kind { EINI_INS_OP, EINI_INS_LOAD, EINI_INS_CALL } eini_ins_kind;

typedef struct eini_ins {
  unsigned char kind, dtype;  // LOAD: storage dtype of the operand
  unsigned char compute, op;  // op: of section expr; 0: a conversion
  int dst, a, b, c;           // registers; LOAD: a is the operand, -1-i index i as a value
                              // CALL: a is the function, b the first of c entries in code.args
  eini_chunk_fn fn;
} eini_ins;

// A register filled once per run: a constant or a param.
typedef struct eini_fill {
  int reg, param;             // param -1: constant
  unsigned char compute;
  int64_t ival;
  double re, im;
} eini_fill;

typedef struct eini_code {
  int nreg;                   // each eini_reg_bytes
  int chunk;                  // values of one run at most, whole lanes
  int nins, nfill;
  eini_ins *ins;
  eini_fill *fill;
  int *args;
  int root;                   // register of the result
  unsigned char type;         // its computation dtype
  int plain;                  // operand number when the code is one load without a change; else -1
  int conj;                   // with plain: the conjugate of it
  const ein_function *function;
  const ein_kernels *fast;    // whose row_fn is asked first, or NULL
} eini_code;

// 64 bytes more: how many equal values there are, and no two registers at the same sets of a cache.
#define EINI_REG_BYTES ((size_t)EINI_CHUNK * 16 + 64)

// The same for a code whose chunks are shorter.
static size_t eini_reg_bytes(const eini_code *code) { return (size_t)code->chunk * 16 + 64; }

static int64_t eini_whole_lanes(int64_t n) {
  return (n + EINI_LANES - 1) / EINI_LANES * EINI_LANES;
}

// Whole lanes for the chunks of n > 0 values.
static int eini_chunk_of(int64_t n) { return (int)eini_whole_lanes(eini_min64(n, EINI_CHUNK)); }

typedef struct eini_compile {
  eini_arena *a;
  eini_code *code;
  const ein_dtype *operand;   // storage dtypes
  const ein_kernels *fast;    // whose chunk functions are taken first, or NULL
  int *reg, *last;            // of nodes; last: position of the last use
  int *pool;
  int npool;
  int64_t cap;
} eini_compile;

static int eini_reg_new(eini_compile *cc) {
  return cc->npool > 0 ? cc->pool[--cc->npool] : cc->code->nreg++;
}

static ein_status eini_ins_add(eini_compile *cc, eini_ins **ins) {
  eini_ins *p = (eini_ins *)eini_grow(cc->a, cc->code->ins, cc->code->nins, &cc->cap, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  cc->code->ins = p;
  *ins = &p[cc->code->nins++];
  memset(*ins, 0, sizeof **ins);
  return EIN_OK;
}

// A conversion, in two steps where there is no direct one. *reg is replaced.
static ein_status eini_code_cast(eini_compile *cc, ein_dtype from, ein_dtype to, int src, int dst) {
  eini_chunk_fn fn = eini_cast_table[eini_type_column(from)][eini_type_column(to)];
  eini_ins *ins;
  if (fn == NULL) {
    ein_dtype mid = to == EIN_C64 ? EIN_F32 : to == EIN_C128 ? EIN_F64 : eini_real_part(from);
    int t = eini_reg_new(cc);
    EINI_TRY(eini_code_cast(cc, from, mid, src, t));
    EINI_TRY(eini_code_cast(cc, mid, to, t, dst));
    cc->pool[cc->npool++] = t;
    return EIN_OK;
  }
  EINI_TRY(eini_ins_add(cc, &ins));
  ins->fn = fn;
  ins->a = ins->b = ins->c = src;
  ins->dst = dst;
  return EIN_OK;
}

static ein_status eini_compile_fill(eini_compile *cc, const eini_node *v, int i) {
  eini_fill *f = &cc->code->fill[cc->code->nfill++];
  f->reg = cc->reg[i] = eini_reg_new(cc);
  f->param = v->op == EINI_OP_PARAM ? v->arg[0] : -1;
  f->compute = (unsigned char)ein_dtype_compute((ein_dtype)v->dtype);
  f->ival = v->ival;
  f->re = v->re;
  f->im = v->im;
  cc->last[i] = INT_MAX;  // never reused: it is filled once, before the loops
  return EIN_OK;
}

static int eini_is_noop(const eini_node *v, ein_dtype from) {
  ein_dtype t = (ein_dtype)v->dtype;
  int complex_in = eini_kind_of(from) == EINI_KCOMPLEX;
  switch (v->op) {
    case EINI_OP_ROUNDTO: return eini_round_find(t) == NULL;
    case EINI_OP_CAST: return from == ein_dtype_compute(t);
    case EINI_OP_CONJ: case EINI_OP_REAL: return !complex_in;
    case EINI_OP_FLOOR:
    case EINI_OP_CEIL:
    case EINI_OP_ROUND: return eini_kind_of(from) < EINI_KREAL;
    case EINI_OP_ABS: case EINI_OP_RELU: return from == EIN_BOOL;
    default: return 0;
  }
}

// One operation node: its function, arguments and destination.
static ein_status eini_compile_op(eini_compile *cc, const eini_expr *e, int i) {
  const eini_node *v = &e->node[i];
  ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  int n = eini_node_args(v);
  int arg0 = eini_node_arg(e, v, 0);
  ein_dtype from = ein_dtype_compute((ein_dtype)e->node[arg0].dtype);
  eini_ins *ins;
  cc->reg[i] = eini_reg_new(cc);
  if (v->op == EINI_OP_CAST) return eini_code_cast(cc, from, t, cc->reg[arg0], cc->reg[i]);
  EINI_TRY(eini_ins_add(cc, &ins));
  ins->dst = cc->reg[i];
  ins->op = v->op;
  if (v->op == EINI_OP_CALL) {
    ins->kind = EINI_INS_CALL;
    ins->a = v->arg[0];
    ins->b = v->arg[1];
    ins->c = n;
    for (int k = 0; k < n; k++) cc->code->args[v->arg[1] + k] = cc->reg[eini_node_arg(e, v, k)];
    return EIN_OK;
  }
  ins->a = cc->reg[arg0];
  ins->b = n > 1 ? cc->reg[v->arg[1]] : ins->a;
  ins->c = n > 2 ? cc->reg[v->arg[2]] : ins->a;
  if (v->op == EINI_OP_ROUNDTO) ins->fn = eini_round_find((ein_dtype)v->dtype);
  else ins->fn = eini_chunk_find(cc->fast, v->op, v->op == EINI_OP_WHERE ? t : from);
  EINSUM_ASSERT(ins->fn != NULL);
  return ins->fn == NULL ? EIN_ERR_INTERNAL : EIN_OK;
}

static void eini_compile_release(eini_compile *cc, const eini_expr *e, int i) {
  const eini_node *v = &e->node[i];
  for (int k = 0; k < eini_node_args(v); k++) {
    int c = eini_node_arg(e, v, k);
    if (cc->last[c] == i) cc->last[c] = -1, cc->pool[cc->npool++] = cc->reg[c];
  }
}

static ein_status eini_compile_load(eini_compile *cc, const eini_node *v, int i) {
  eini_ins *ins;
  EINI_TRY(eini_ins_add(cc, &ins));
  ins->kind = EINI_INS_LOAD;
  ins->a = v->op == EINI_OP_INDEX ? -1 - v->arg[0] : v->arg[0];
  ins->dtype = (unsigned char)(v->op == EINI_OP_INDEX ? EIN_I64 : cc->operand[v->arg[0]]);
  ins->compute = (unsigned char)ein_dtype_compute((ein_dtype)ins->dtype);
  ins->dst = cc->reg[i] = cc->code->nreg++;  // never reused: what does not move stays in it
  cc->last[i] = INT_MAX;
  return EIN_OK;
}

// A copy of the expression without no-ops: uses go to what they stand for. *root is where it ends.
static ein_status eini_compile_flatten(eini_arena *a, const eini_expr *e, eini_expr *flat,
                                       int *root) {
  int *same = EINI_NEW(a, int, e->n);  // the node a no-op stands for
  *flat = *e;
  flat->node = EINI_NEW(a, eini_node, e->n);
  flat->list = EINI_NEW(a, int, e->nlist);
  if (same == NULL || flat->node == NULL || flat->list == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < (int)e->n; i++) {
    eini_node *v = &flat->node[i];
    *v = e->node[i];
    for (int k = 0; k < eini_node_args(v); k++) {
      int c = same[eini_node_arg(e, &e->node[i], k)];
      if (v->op == EINI_OP_CALL) flat->list[v->arg[1] + k] = c;
      else v->arg[k] = c;
    }
    same[i] = i;
    if (v->op <= EINI_OP_PARAM || v->op == EINI_OP_CALL) continue;
    int c = eini_node_arg(e, &e->node[i], 0);
    if (eini_is_noop(v, ein_dtype_compute((ein_dtype)e->node[c].dtype))) same[i] = same[c];
  }
  *root = same[e->n - 1];
  return EIN_OK;
}

// Where values are used last, from the root down; -1: dead.
static void eini_compile_lifetimes(eini_compile *cc, const eini_expr *e, int root) {
  for (int i = 0; i < (int)e->n; i++) cc->last[i] = -1;
  cc->last[root] = INT_MAX;
  for (int i = root; i >= 0; i--) {
    for (int k = 0; cc->last[i] >= 0 && k < eini_node_args(&e->node[i]); k++) {
      int c = eini_node_arg(e, &e->node[i], k);
      if (cc->last[c] < 0) cc->last[c] = i;
    }
  }
}

// Compiles a typed expression. operand: storage dtypes.
static ein_status eini_code_compile(eini_arena *a, const eini_expr *e, const ein_dtype *operand,
                                    const ein_function *function, const ein_kernels *fast,
                                    eini_code *code) {
  eini_compile cc;
  memset(&cc, 0, sizeof cc);
  memset(code, 0, sizeof *code);
  code->chunk = EINI_CHUNK;
  cc.a = a;
  cc.code = code;
  cc.operand = operand;
  cc.fast = fast;
  cc.reg = EINI_NEW(a, int, e->n);
  cc.last = EINI_NEW(a, int, e->n);
  cc.pool = EINI_NEW(a, int, 3 * e->n + 8);
  code->fill = EINI_NEW(a, eini_fill, e->n);
  code->args = EINI_NEW(a, int, e->nlist);
  code->function = function;
  code->fast = fast != NULL && fast->row_fn != NULL ? fast : NULL;
  if (cc.reg == NULL || cc.last == NULL || cc.pool == NULL || code->fill == NULL ||
      code->args == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  int root;
  eini_expr flat;
  EINI_TRY(eini_compile_flatten(a, e, &flat, &root));
  eini_compile_lifetimes(&cc, &flat, root);
  for (int i = 0; i <= root; i++) {
    const eini_node *v = &flat.node[i];
    if (cc.last[i] < 0) continue;
    if (v->op == EINI_OP_CONST || v->op == EINI_OP_PARAM) EINI_TRY(eini_compile_fill(&cc, v, i));
  }
  for (int i = 0; i <= root; i++) {
    const eini_node *v = &flat.node[i];
    if (cc.last[i] < 0 || v->op == EINI_OP_CONST || v->op == EINI_OP_PARAM) continue;
    if (v->op == EINI_OP_OPERAND || v->op == EINI_OP_INDEX) {
      EINI_TRY(eini_compile_load(&cc, v, i));
    } else {
      EINI_TRY(eini_compile_op(&cc, &flat, i));
      eini_compile_release(&cc, &flat, i);
    }
  }
  code->root = cc.reg[root];
  code->type = (unsigned char)ein_dtype_compute((ein_dtype)flat.node[root].dtype);
  int conj = flat.node[root].op == EINI_OP_CONJ;
  int leaf = conj ? flat.node[root].arg[0] : root;
  code->plain =
      flat.node[leaf].op == EINI_OP_OPERAND && operand[flat.node[leaf].arg[0]] == code->type
          ? flat.node[leaf].arg[0]
          : -1;
  code->conj = conj;
  return EIN_OK;
}

// ---- running ----

// What one run of a code works on: addresses and registers.
typedef struct eini_eval {
  const eini_code *code;
  const char *const *base;      // operands: address of the element at index 0
  const int64_t *at;            // element offsets of this chunk; of indices: their values
  const int64_t *index_at;
  const int64_t *step;          // strides along the chunk, or NULL with tables
  const int64_t *index_step;
  const int64_t *const *table;  // offsets within the chunk per operand
  const int64_t *const *index_table;
  void **reg;                   // current address of each register
  char *mem;                    // nreg * eini_reg_bytes
} eini_eval;

// Gathers n elements of size S into d: d[j] = src[j*step] or src[table[j]], unaligned-safe.
#define EINI_GATHER(bits)                                                                   \
  static void eini_gather_##bits(int64_t n, const char *src, int64_t step, const int64_t *table, \
                                 void *pd) {                                                \
    uint##bits##_t *EINI_RESTRICT d = (uint##bits##_t *)pd;                                 \
    if (table != NULL) {                                                                    \
      for (int64_t j = 0; j < n; j++) memcpy(&d[j], src + table[j] * (bits / 8), bits / 8);  \
    } else if (step == 1) {                                                                 \
      memcpy(d, src, (size_t)n * (bits / 8));                                               \
    } else {                                                                                \
      for (int64_t j = 0; j < n; j++, src += step * (bits / 8)) memcpy(&d[j], src, bits / 8); \
    }                                                                                       \
  }
EINI_GATHER(8)
EINI_GATHER(16)
EINI_GATHER(32)
EINI_GATHER(64)
#undef EINI_GATHER

static void eini_gather_128(int64_t n, const char *src, int64_t step, const int64_t *table,
                            void *d) {
  char *p = (char *)d;
  for (int64_t j = 0; j < n; j++) memcpy(p + j * 16, src + (table ? table[j] : j * step) * 16, 16);
}

static void eini_gather(size_t size, int64_t n, const char *src, int64_t step, const int64_t *table,
                        void *d) {
  switch (size) {
    case 1: eini_gather_8(n, src, step, table, d); break;
    case 2: eini_gather_16(n, src, step, table, d); break;
    case 4: eini_gather_32(n, src, step, table, d); break;
    case 8: eini_gather_64(n, src, step, table, d); break;
    default: eini_gather_128(n, src, step, table, d); break;
  }
}

// Storage values (gathered, contiguous) to the computation type.
static void eini_widen(ein_dtype t, int64_t n, const void *src, void *dst) {
  int32_t *i = (int32_t *)dst;
  float *f = (float *)dst;
  switch (t) {
    case EIN_BOOL:
      for (int64_t j = 0; j < n; j++) ((uint8_t *)dst)[j] = ((const uint8_t *)src)[j] != 0;
      break;
    case EIN_U8: for (int64_t j = 0; j < n; j++) i[j] = ((const uint8_t *)src)[j]; break;
    case EIN_I8: for (int64_t j = 0; j < n; j++) i[j] = ((const int8_t *)src)[j]; break;
    case EIN_I16: for (int64_t j = 0; j < n; j++) i[j] = ((const int16_t *)src)[j]; break;
    case EIN_F16:
      for (int64_t j = 0; j < n; j++) f[j] = eini_f16_load(((const uint16_t *)src)[j]);
      break;
    default:
      for (int64_t j = 0; j < n; j++) f[j] = eini_bf16_load(((const uint16_t *)src)[j]);
      break;
  }
}

static int eini_same_storage(ein_dtype t) { return ein_dtype_compute(t) == t && t != EIN_BOOL; }

static void eini_run_load(const eini_eval *ev, const eini_ins *ins, int64_t n) {
  const size_t reg_bytes = eini_reg_bytes(ev->code);
  char *mem = ev->mem + (size_t)ins->dst * reg_bytes;
  ev->reg[ins->dst] = mem;
  if (ins->a < 0) {  // the value of an index
    int i = -1 - ins->a;
    int64_t *d = (int64_t *)(void *)mem, at = ev->index_at[i];
    memset(d + n, 0, (size_t)(eini_whole_lanes(n) - n) * sizeof *d);
    const int64_t *table = ev->index_table == NULL ? NULL : ev->index_table[i];
    for (int64_t j = 0; j < n; j++) d[j] = at + (table != NULL ? table[j] : j * ev->index_step[i]);
    return;
  }
  size_t size = eini_dtypes[ins->dtype].size;
  const char *src = ev->base[ins->a] + ev->at[ins->a] * (int64_t)size;
  const int64_t *table = ev->table == NULL ? NULL : ev->table[ins->a];
  int64_t step = table == NULL ? ev->step[ins->a] : 0;
  int same = eini_same_storage((ein_dtype)ins->dtype);
  if (same && table == NULL && step == 1 && n % EINI_LANES == 0 &&
      (uintptr_t)src % (size > 8 ? 8 : size) == 0) {
    union { const char *c; void *v; } u;  // read in place; registers of loads are never written
    u.c = src;
    ev->reg[ins->dst] = u.v;
    return;
  }
  int64_t *equal = (int64_t *)(void *)(mem + reg_bytes - 64);
  if (same && table == NULL && step == 0) {
    if (*equal >= n && memcmp(mem, src, size) == 0) return;
    *equal = eini_whole_lanes(n);
    eini_gather(size, *equal, src, 0, NULL, mem);
    return;
  }
  *equal = 0;
  size_t wide = eini_dtypes[ins->compute].size;  // cleared: lanes nobody reads
  memset(mem + (size_t)n * wide, 0, (size_t)(eini_whole_lanes(n) - n) * wide);
  if (same) {
    eini_gather(size, n, src, step, table, mem);
    return;
  }
  uint64_t raw[EINI_CHUNK / 4];  // two bytes an element at most
  eini_gather(size, n, src, step, table, raw);
  eini_widen((ein_dtype)ins->dtype, n, raw, mem);
}

// Evaluates n <= code->chunk values and returns where they are. direct: where the root's last
// operation may write (unaliased, padded room is not needed: n is then a multiple of the lanes).
static void *eini_code_run(const eini_eval *ev, int64_t n, void *direct) {
  const eini_code *code = ev->code;
  const size_t reg_bytes = eini_reg_bytes(code);
  int64_t padded = eini_whole_lanes(n);
  EINSUM_ASSERT(n <= code->chunk);
  for (int i = 0; i < code->nins; i++) {
    const eini_ins *ins = &code->ins[i];
    if (ins->kind == EINI_INS_LOAD) {
      eini_run_load(ev, ins, n);
      continue;
    }
    void *dst = ev->mem + (size_t)ins->dst * reg_bytes;
    if (direct != NULL && i == code->nins - 1) dst = direct;
    if (ins->kind == EINI_INS_OP) {
      ins->fn(padded, ev->reg[ins->a], ev->reg[ins->b], ev->reg[ins->c], dst);
    } else {
      const void *in[EINI_ARGS_MAX];
      for (int k = 0; k < ins->c; k++) in[k] = ev->reg[code->args[ins->b + k]];
      const ein_function *f = &code->function[ins->a];
      f->fn(n, in, dst, f->user);
    }
    ev->reg[ins->dst] = dst;
  }
  return ev->reg[code->root];
}

static void eini_fill_value(ein_dtype t, double re, double im, int64_t ival, int64_t n, void *d) {
  switch (t) {
    case EIN_BOOL: for (int64_t j = 0; j < n; j++) ((uint8_t *)d)[j] = re != 0 || im != 0; break;
    case EIN_I32:
      for (int64_t j = 0; j < n; j++) ((int32_t *)d)[j] = (int32_t)(uint32_t)(uint64_t)ival;
      break;
    case EIN_I64: for (int64_t j = 0; j < n; j++) ((int64_t *)d)[j] = ival; break;
    case EIN_F32: for (int64_t j = 0; j < n; j++) ((float *)d)[j] = (float)re; break;
    case EIN_F64: for (int64_t j = 0; j < n; j++) ((double *)d)[j] = re; break;
    case EIN_C64:
      for (int64_t j = 0; j < n; j++) {
        ((eini_c64 *)d)[j].re = (float)re;
        ((eini_c64 *)d)[j].im = (float)im;
      }
      break;
    default:
      for (int64_t j = 0; j < n; j++) ((eini_c128 *)d)[j] = eini_cmk(re, im);
      break;
  }
}

// The same with a constant's or a param's value.
static void eini_fill_run(const eini_fill *f, ein_dtype t, const ein_scalar *param, int64_t n,
                          void *d) {
  double re = f->re, im = f->im;
  int64_t ival = f->ival;
  if (f->param >= 0) {
    re = param[f->param].re;
    im = param[f->param].im;
    ival = eini_f64_to_i64(re);
  }
  eini_fill_value(t, re, im, ival, n, d);
}

// Fills the registers of constants and params, once per run, n values each.
static void eini_code_begin(const eini_eval *ev, const ein_scalar *param, int64_t n) {
  const eini_code *code = ev->code;
  const size_t reg_bytes = eini_reg_bytes(code);
  n = eini_whole_lanes(n);
  for (int i = 0; i < code->nreg; i++) {
    ev->reg[i] = ev->mem + (size_t)i * reg_bytes;
    memset((char *)ev->reg[i] + reg_bytes - 64, 0, 8);
  }
  for (int i = 0; i < code->nfill; i++) {
    const eini_fill *f = &code->fill[i];
    eini_fill_run(f, (ein_dtype)f->compute, param, n, ev->reg[f->reg]);
  }
}

// ---- storing ----

// A chunk of the computation type `from` (bool i32 i64 f32 f64 c64 c128) goes to storage dtype
// `to`: converted into tmp (16 bytes for each of whole lanes; may be the source's own place for
// equal types).
static const void *eini_narrow(ein_dtype from, ein_dtype to, int64_t n, const void *src, void *tmp,
                               void *tmp2) {
  ein_dtype mid = ein_dtype_compute(to);
  int64_t padded = eini_whole_lanes(n);
  if (from == EIN_F64 && mid == EIN_F32 && to != mid) {  // f16 and bf16 round once
    for (int64_t j = 0; j < n; j++) ((float *)tmp)[j] = eini_round_odd(((const double *)src)[j]);
    src = tmp;
  } else if (from != mid) {
    int f = eini_type_column(from), t = eini_type_column(mid);
    if (eini_cast_table[f][t] != NULL) {
      eini_cast_table[f][t](padded, src, src, src, tmp);
    } else {  // integers to complex and the like: through the real type of the target
      ein_dtype real =
          eini_kind_of(mid) == EINI_KCOMPLEX ? eini_real_part(mid) : eini_real_part(from);
      int r = eini_type_column(real);
      if (from != real) eini_cast_table[f][r](padded, src, src, src, tmp2);
      eini_cast_table[r][t](padded, from != real ? tmp2 : src, src, src, tmp);
    }
    src = tmp;
  }
  if (mid == to) return src;
  const int32_t *i = (const int32_t *)src;
  const float *fl = (const float *)src;
  switch (to) {
    case EIN_U8: for (int64_t j = 0; j < n; j++) ((uint8_t *)tmp2)[j] = (uint8_t)i[j]; break;
    case EIN_I8:
      for (int64_t j = 0; j < n; j++) ((int8_t *)tmp2)[j] = (int8_t)(uint8_t)(uint32_t)i[j];
      break;
    case EIN_I16:
      for (int64_t j = 0; j < n; j++) ((int16_t *)tmp2)[j] = (int16_t)(uint16_t)(uint32_t)i[j];
      break;
    case EIN_F16:
      for (int64_t j = 0; j < n; j++) ((uint16_t *)tmp2)[j] = eini_f16_store(fl[j]);
      break;
    default: for (int64_t j = 0; j < n; j++) ((uint16_t *)tmp2)[j] = eini_bf16_store(fl[j]); break;
  }
  return tmp2;
}

static void eini_scatter(size_t size, int64_t n, const void *src, char *dst, int64_t step,
                         const int64_t *table) {
  const char *s = (const char *)src;
  if (table == NULL && step == 1) {
    memcpy(dst, s, (size_t)n * size);
    return;
  }
  switch (size) {
    case 4:
      for (int64_t j = 0; j < n; j++) memcpy(dst + (table ? table[j] : j * step) * 4, s + j * 4, 4);
      break;
    case 8:
      for (int64_t j = 0; j < n; j++) memcpy(dst + (table ? table[j] : j * step) * 8, s + j * 8, 8);
      break;
    default:
      for (int64_t j = 0; j < n; j++) {
        memcpy(dst + (table ? table[j] : j * step) * (int64_t)size, s + j * (int64_t)size, size);
      }
  }
}

// ================================================================================================
// >>fold  monoids over chunks
// Every fold is merge (and for states of several scalars lift and finish) over arrays of states;
// sums and extrema also have a horizontal form that folds a chunk into one state.
// ================================================================================================

typedef void (*eini_merge_fn)(int64_t n, void *const *acc, const void *const *more, void *user);
typedef void (*eini_lift_fn)(int64_t n, const void *x, const int64_t *pos, void *const *state);
typedef void (*eini_horizontal_fn)(int64_t n, const void *x, void *acc);
typedef void (*eini_vertical_fn)(int64_t n, int64_t rows, int64_t step, const void *x, void *acc);

// acc[i] = op(acc[i], more[i]) for states of one scalar; x is acc's value, y the other.
#define EINI_MERGE(name, T, expr)                                                           \
  static void eini_v_##name(int64_t n, T *EINI_RESTRICT a, const T *EINI_RESTRICT b) {      \
    int64_t i = 0;                                                                          \
    for (; i + EINI_LANES <= n; i += EINI_LANES) {                                          \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = a[i + j], y = b[i + j];                                                 \
        a[i + j] = (T)(expr);                                                               \
      }                                                                                     \
    }                                                                                       \
    for (; i < n; i++) {                                                                    \
      const T x = a[i], y = b[i];                                                           \
      a[i] = (T)(expr);                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_##name(int64_t n, void *const *acc, const void *const *more, void *user) { \
    (void)user;                                                                             \
    eini_v_##name(n, (T *)acc[0], (const T *)more[0]);                                      \
  }                                                                                         \
  /* four rows, one after another; the four after them are `ahead` away */                  \
  static void eini_v4_##name(int64_t n, T *EINI_RESTRICT a, const T *EINI_RESTRICT b,       \
                             const T *EINI_RESTRICT c, const T *EINI_RESTRICT d,            \
                             const T *EINI_RESTRICT e, uintptr_t ahead) {                   \
    T v[EINI_LANES];                                                                        \
    for (; n >= EINI_LANES; n -= EINI_LANES) {                                              \
      EINI_AHEAD((uintptr_t)b + ahead);                                                     \
      EINI_AHEAD((uintptr_t)c + ahead);                                                     \
      EINI_AHEAD((uintptr_t)d + ahead);                                                     \
      EINI_AHEAD((uintptr_t)e + ahead);                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = a[j], y = b[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = c[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = d[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = e[j];                                                         \
        a[j] = (T)(expr);                                                                   \
      }                                                                                     \
      a += EINI_LANES, b += EINI_LANES, c += EINI_LANES, d += EINI_LANES, e += EINI_LANES;  \
    }                                                                                       \
    eini_v_##name(n, a, b);                                                                 \
    eini_v_##name(n, a, c);                                                                 \
    eini_v_##name(n, a, d);                                                                 \
    eini_v_##name(n, a, e);                                                                 \
  }                                                                                         \
  /* acc = op(.. op(acc, row 0) .., last row) for n columns; rows lie step apart */         \
  static void eini_d_##name(int64_t n, int64_t rows, int64_t step, const void *px, void *acc) {\
    const T *x = (const T *)px;                                                             \
    const uintptr_t ahead = 4 * (uintptr_t)step * sizeof(T);                                \
    for (; rows >= 4; rows -= 4, x += rows > 0 ? 4 * step : 0)                              \
      eini_v4_##name(n, (T *)acc, x, x + step, x + 2 * step, x + 3 * step, ahead);          \
    for (int64_t k = 0; k < rows; k++) eini_v_##name(n, (T *)acc, x + k * step);            \
  }                                                                                         \
  /* acc[0] = op(acc[0], fold of v): EINI_LANES partial folds, then a tree over them */     \
  static void eini_h_##name(int64_t n, const void *EINI_RESTRICT pv, void *EINI_RESTRICT pacc) { \
    const T *v = (const T *)pv;                                                             \
    T lane[EINI_LANES];                                                                     \
    int64_t i = EINI_LANES;                                                                 \
    int64_t width = EINI_LANES;                                                             \
    if (n >= EINI_LANES) {                                                                  \
      for (int j = 0; j < EINI_LANES; j++) lane[j] = v[j];                                  \
      for (; i + EINI_LANES <= n; i += EINI_LANES) {                                        \
        for (int j = 0; j < EINI_LANES; j++) {                                              \
          const T x = lane[j], y = v[i + j];                                                \
          lane[j] = (T)(expr);                                                              \
        }                                                                                   \
      }                                                                                     \
    } else {                                                                                \
      width = n;                                                                            \
      for (int64_t j = 0; j < n; j++) lane[j] = v[j];                                       \
      i = n;                                                                                \
    }                                                                                       \
    for (int64_t j = 0; i < n; i++, j++) {                                                  \
      const T x = lane[j], y = v[i];                                                        \
      lane[j] = (T)(expr);                                                                  \
    }                                                                                       \
    while (width > 1) {                                                                     \
      int64_t half = width / 2;                                                             \
      for (int64_t j = 0; j < half; j++) {                                                  \
        const T x = lane[j], y = lane[width - half + j];                                    \
        lane[j] = (T)(expr);                                                                \
      }                                                                                     \
      width -= half;                                                                        \
    }                                                                                       \
    if (n > 0) {                                                                            \
      const T x = *(T *)pacc, y = lane[0];                                                  \
      *(T *)pacc = (T)(expr);                                                               \
    }                                                                                       \
  }
#define EINI_MERGE_ARITH(s, T, W)                                                           \
  EINI_MERGE(sum_##s, T, (W)x + (W)y)                                                       \
  EINI_MERGE(prod_##s, T, (W)x *(W)y)
EINI_MERGE_ARITH(i32, int32_t, uint32_t)
EINI_MERGE_ARITH(i64, int64_t, uint64_t)
EINI_MERGE_ARITH(f32, float, float)
EINI_MERGE_ARITH(f64, double, double)
#undef EINI_MERGE_ARITH
#define EINI_MERGE_ORDERED(s, T)                                                            \
  EINI_MERGE(max_##s, T, ((x > y) | (x != x)) ? x : y)                                      \
  EINI_MERGE(min_##s, T, ((x < y) | (x != x)) ? x : y)                                      \
  /* argmax, argmin: state (value, position); position -1 is the fold of nothing; a NaN */  \
  /* beats numbers, ties go to the lowest position */                                       \
  static void eini_m_arg_##s(int64_t n, void *const *acc, const void *const *more, int sign) { \
    T *a = (T *)acc[0];                                                                     \
    int64_t *p = (int64_t *)acc[1];                                                         \
    const T *b = (const T *)more[0];                                                        \
    const int64_t *q = (const int64_t *)more[1];                                            \
    for (int64_t i = 0; i < n; i++) {                                                       \
      int an = a[i] != a[i], bn = b[i] != b[i];                                             \
      int better = sign > 0 ? b[i] > a[i] : b[i] < a[i];                                    \
      int equal = (an & bn) | (b[i] == a[i]);                                               \
      better = (better | bn) & !an;                                                         \
      if (q[i] >= 0 && (p[i] < 0 || (equal ? q[i] < p[i] : better))) {                      \
        a[i] = b[i];                                                                        \
        p[i] = q[i];                                                                        \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_argmax_##s(int64_t n, void *const *acc, const void *const *more,       \
                                void *user) {                                               \
    (void)user;                                                                             \
    eini_m_arg_##s(n, acc, more, 1);                                                        \
  }                                                                                         \
  static void eini_m_argmin_##s(int64_t n, void *const *acc, const void *const *more,       \
                                void *user) {                                               \
    (void)user;                                                                             \
    eini_m_arg_##s(n, acc, more, -1);                                                       \
  }
EINI_MERGE_ORDERED(i32, int32_t)
EINI_MERGE_ORDERED(i64, int64_t)
EINI_MERGE_ORDERED(f32, float)
EINI_MERGE_ORDERED(f64, double)
EINI_MERGE_ORDERED(bool, uint8_t)
#undef EINI_MERGE_ORDERED
EINI_MERGE(any_bool, uint8_t, x | y)
EINI_MERGE(all_bool, uint8_t, x &y)
#undef EINI_MERGE

// Complex sums are sums of twice as many reals; products need both parts.
#define EINI_MERGE_COMPLEX(s, T, R, r)                                                      \
  static void eini_m_sum_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    eini_m_sum_##r(2 * n, acc, more, user);                                                 \
  }                                                                                         \
  static void eini_m_prod_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    T *a = (T *)acc[0];                                                                     \
    const T *b = (const T *)more[0];                                                        \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T x = a[i], y = b[i];                                                           \
      a[i].re = x.re * y.re - x.im * y.im;                                                  \
      a[i].im = x.re * y.im + x.im * y.re;                                                  \
    }                                                                                       \
  }
EINI_MERGE_COMPLEX(c64, eini_c64, float, f32)
EINI_MERGE_COMPLEX(c128, eini_c128, double, f64)
#undef EINI_MERGE_COMPLEX

// logsumexp: state (max m, sum s of exp(x - m')), where m' is m if finite and 0 otherwise, so that
// infinities come out as libm's log and exp make them. var: Chan et al.'s pairwise update of
// (count, mean, sum of squared deviations).
#define EINI_MERGE_STATES(s, T)                                                             \
  static void eini_m_logsumexp_##s(int64_t n, void *const *acc, const void *const *more,    \
                                   void *user) {                                            \
    T *m = (T *)acc[0], *t = (T *)acc[1];                                                   \
    const T *m2 = (const T *)more[0], *t2 = (const T *)more[1];                             \
    T x[EINI_LANES], y[EINI_LANES], ex[EINI_LANES], ey[EINI_LANES];                         \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      int64_t k = eini_min64(EINI_LANES, n - i);                                            \
      for (int64_t j = 0; j < EINI_LANES; j++) {                                            \
        T a = j < k ? m[i + j] : 0, b = j < k ? m2[i + j] : 0;                              \
        T top = a > b || a != a ? a : b, shift = top - top == 0 ? top : 0;                  \
        x[j] = a - shift;                                                                   \
        y[j] = b - shift;                                                                   \
        if (j < k) m[i + j] = top;                                                          \
      }                                                                                     \
      eini_vexp_##s(EINI_LANES, x, ex);                                                     \
      eini_vexp_##s(EINI_LANES, y, ey);                                                     \
      for (int64_t j = 0; j < k; j++) t[i + j] = t[i + j] * ex[j] + t2[i + j] * ey[j];      \
    }                                                                                       \
  }                                                                                         \
  static void eini_l_logsumexp_##s(int64_t n, const void *x, const int64_t *pos,            \
                                   void *const *st) {                                       \
    T *t = (T *)st[1];                                                                      \
    (void)pos;                                                                              \
    memcpy(st[0], x, (size_t)n * sizeof(T));                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T v = ((const T *)x)[i];                                                              \
      t[i] = v - v == 0 ? 1 : v > 0 ? v : v < 0 ? 0 : v; /* exp(v - m') */                  \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_var_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    T *c = (T *)acc[0], *m = (T *)acc[1], *q = (T *)acc[2];                                 \
    const T *c2 = (const T *)more[0], *m2 = (const T *)more[1], *q2 = (const T *)more[2];   \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T count = c[i] + c2[i], w = count > 0 ? c2[i] / count : 0, d = m2[i] - m[i];          \
      m[i] = c[i] > 0 ? m[i] + d * w : m2[i];                                               \
      q[i] += q2[i] + (c[i] > 0 ? d * d * c[i] * w : 0);                                    \
      c[i] = count;                                                                         \
    }                                                                                       \
  }                                                                                         \
  static void eini_l_var_##s(int64_t n, const void *x, const int64_t *pos, void *const *st) { \
    (void)pos;                                                                              \
    memcpy(st[1], x, (size_t)n * sizeof(T));                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)st[0])[i] = 1;                                                                  \
      ((T *)st[2])[i] = ((const T *)x)[i] - ((const T *)x)[i]; /* 0, NaN for inf */         \
    }                                                                                       \
  }
EINI_MERGE_STATES(f32, float)
EINI_MERGE_STATES(f64, double)
#undef EINI_MERGE_STATES

// A fold made ready for its value type.
typedef struct eini_folder {
  int fold, nstate;
  ein_dtype type;              // of values, and of states but argmax's position
  ein_dtype logical;           // whose least and greatest values bound extrema of nothing
  ein_dtype result;            // computation type after finish
  eini_merge_fn merge;
  eini_lift_fn lift;           // NULL: state[0] is the value
  eini_horizontal_fn across;   // folds n values into the state at once, or NULL
  eini_vertical_fn down;       // folds rows of n values into n states as merge does, or NULL
  void (*whole)(const struct eini_folder *f, int64_t n, const void *x, void *room,
                void *const *state);  // the state of n values; NULL: lift, then merge halves
  eini_horizontal_fn sum_fn, max_fn;  // what it is made of
  eini_chunk_fn exp_fn;
  const ein_monoid *user;
  double count;                // size of the reduced space (mean, var)
} eini_folder;

#define EINI_BY_TYPE(n) {eini_##n##_bool, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, \
                         eini_##n##_f64, NULL, NULL}
#define EINI_BY_ARITH(n) {NULL, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, eini_##n##_f64, \
                          eini_##n##_c64, eini_##n##_c128}
static const eini_merge_fn eini_merge_table[EINI_FOLD_USER][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
    EINI_BY_ARITH(m_sum), EINI_BY_ARITH(m_prod), EINI_BY_TYPE(m_max), EINI_BY_TYPE(m_min),
    {eini_m_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_m_all_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {NULL, NULL, NULL, eini_m_logsumexp_f32, eini_m_logsumexp_f64, NULL, NULL},
    EINI_BY_TYPE(m_argmax), EINI_BY_TYPE(m_argmin), EINI_BY_ARITH(m_sum),
    {NULL, NULL, NULL, eini_m_var_f32, eini_m_var_f64, NULL, NULL}};
static const eini_horizontal_fn eini_across_table[EINI_ALL + 1][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
    {NULL, eini_h_sum_i32, eini_h_sum_i64, eini_h_sum_f32, eini_h_sum_f64, NULL, NULL},
    {NULL, eini_h_prod_i32, eini_h_prod_i64, eini_h_prod_f32, eini_h_prod_f64, NULL, NULL},
    EINI_BY_TYPE(h_max), EINI_BY_TYPE(h_min),
    {eini_h_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_h_all_bool, NULL, NULL, NULL, NULL, NULL, NULL}};
#define EINI_BY_REAL(n) {NULL, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, eini_##n##_f64, \
                         NULL, NULL}
static const eini_vertical_fn eini_down_table[EINI_ALL + 1][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL}, EINI_BY_REAL(d_sum), EINI_BY_REAL(d_prod),
    EINI_BY_TYPE(d_max), EINI_BY_TYPE(d_min),
    {eini_d_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_d_all_bool, NULL, NULL, NULL, NULL, NULL, NULL}};
#undef EINI_BY_REAL
#undef EINI_BY_TYPE
#undef EINI_BY_ARITH

// The dtype values are converted to before they are folded.
static ein_dtype eini_fold_value_dtype(const ein_graph *g, int fold, ein_dtype t, int numpy) {
  if (fold >= EINI_FOLD_USER) return g->monoid[fold - EINI_FOLD_USER].dtype;
  switch (fold) {
    case EINI_ANY: case EINI_ALL: return EIN_BOOL;
    case EINI_LOGSUMEXP: case EINI_MEAN: case EINI_VAR:
      return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : ein_dtype_compute(t);
    case EINI_SUM: case EINI_PROD:
      if (t == EIN_BOOL) return numpy ? EIN_BOOL : EIN_I64;
      return ein_dtype_compute(t);
    default: return ein_dtype_compute(t);
  }
}

// The state of n > 0 values at once; x, d and states are padded to whole lanes.
#define EINI_WHOLE_STATES(s, T)                                                             \
  static void eini_w_var_##s(const struct eini_folder *f, int64_t n,                        \
                             const void *EINI_RESTRICT px, void *EINI_RESTRICT pd,          \
                             void *const *st) {                                             \
    const T *x = (const T *)px;                                                             \
    T *d = (T *)pd, sum = 0, q = 0;                                                         \
    eini_c_apart_##s(n, x, x, NULL, d); /* so that large values sum without overflow */     \
    f->sum_fn(n, d, &sum);                                                                  \
    const T mean = sum / (T)n;                                                              \
    eini_c_apart_##s(n, d, &mean, NULL, st[1]);                                             \
    eini_c_square_##s(n, st[1], NULL, NULL, d);                                             \
    f->sum_fn(n, d, &q);                                                                    \
    *(T *)st[0] = (T)n;                                                                     \
    *(T *)st[1] = x[0] + mean;                                                              \
    *(T *)st[2] = q;                                                                        \
  }                                                                                         \
  static void eini_w_logsumexp_##s(const struct eini_folder *f, int64_t n,                  \
                                   const void *EINI_RESTRICT px, void *EINI_RESTRICT pd,    \
                                   void *const *st) {                                       \
    const T *x = (const T *)px;                                                             \
    T *d = (T *)pd, top = x[0], sum = 0;                                                    \
    f->max_fn(n, x, &top);                                                                  \
    const T shift = top - top == 0 ? top : 0;                                               \
    eini_c_apart_##s(n, x, &shift, NULL, d);                                                \
    f->exp_fn(eini_whole_lanes(n), d, d, d, st[1]);                                         \
    f->sum_fn(n, st[1], &sum);                                                              \
    *(T *)st[0] = top;                                                                      \
    *(T *)st[1] = sum;                                                                      \
  }
EINI_WHOLE_STATES(f32, float)
EINI_WHOLE_STATES(f64, double)
#undef EINI_WHOLE_STATES

static eini_horizontal_fn eini_across_find(const ein_kernels *fast, int fold, ein_dtype type) {
  eini_horizontal_fn fn = eini_across_table[fold][eini_type_column(type)], own = NULL;
  if (fn != NULL && fast != NULL && fast->across_fn != NULL)
    own = fast->across_fn(fast->user, fold, type);
  return own != NULL ? own : fn;
}

static ein_status eini_folder_init(eini_folder *f, const ein_graph *g, int fold, ein_dtype type,
                                   double count, const ein_kernels *fast) {
  memset(f, 0, sizeof *f);
  f->fold = fold;
  f->type = f->result = f->logical = type;
  f->count = count;
  f->nstate = 1;
  if (fold == EINI_FOLD_NONE) return EIN_OK;
  if (fold >= EINI_FOLD_USER) {
    f->user = &g->monoid[fold - EINI_FOLD_USER];
    f->nstate = f->user->nstate;
    f->merge = f->user->merge_fn;
    return EIN_OK;
  }
  if (type == EIN_BOOL && fold == EINI_SUM) f->fold = fold = EINI_ANY;
  if (type == EIN_BOOL && fold == EINI_PROD) f->fold = fold = EINI_ALL;
  int column = eini_type_column(type);
  f->nstate = eini_folds[fold].nstate;
  f->merge = eini_merge_table[fold][column];
  if (fold <= EINI_ALL) f->across = eini_across_find(fast, fold, type);
  if (fold <= EINI_ALL) f->down = eini_down_table[fold][column];
  if (fold == EINI_MEAN) f->across = eini_across_find(fast, EINI_SUM, type);
  if (fold == EINI_MEAN) f->down = eini_down_table[EINI_SUM][column];
  if (fold == EINI_LOGSUMEXP || fold == EINI_VAR) {
    f->sum_fn = eini_across_find(fast, EINI_SUM, type);
    f->max_fn = eini_across_find(fast, EINI_MAX, type);
    f->exp_fn = eini_chunk_find(fast, EINI_OP_EXP, type);
    const int var = fold == EINI_VAR;
    if (type == EIN_F32) f->lift = var ? eini_l_var_f32 : eini_l_logsumexp_f32;
    else f->lift = var ? eini_l_var_f64 : eini_l_logsumexp_f64;
    if (type == EIN_F32) f->whole = var ? eini_w_var_f32 : eini_w_logsumexp_f32;
    else f->whole = var ? eini_w_var_f64 : eini_w_logsumexp_f64;
  }
  if (fold == EINI_ARGMAX || fold == EINI_ARGMIN) f->result = EIN_I64;
  EINSUM_ASSERT(f->merge != NULL);
  return f->merge == NULL ? EIN_ERR_DTYPE : EIN_OK;
}

static ein_dtype eini_state_dtype(const eini_folder *f, int s) {
  return s == 1 && (f->fold == EINI_ARGMAX || f->fold == EINI_ARGMIN) ? EIN_I64 : f->type;
}

// The least (sign -1) or greatest value of an integer dtype.
static int64_t eini_int_limit(ein_dtype t, int sign) {
  int bits = 8 * (int)ein_dtype_size(t);
  if (t == EIN_U8) return sign < 0 ? 0 : 255;
  if (bits >= 64 || bits == 0) return sign < 0 ? INT64_MIN : INT64_MAX;
  return sign < 0 ? -((int64_t)1 << (bits - 1)) : ((int64_t)1 << (bits - 1)) - 1;
}

static void eini_fold_identity(const eini_folder *f, int64_t n, void *const *state) {
  for (int s = 0; s < f->nstate; s++) {
    double re = 0;
    int64_t i = 0;
    ein_dtype t = eini_state_dtype(f, s);
    if (f->user != NULL) {
      re = f->user->identity[s];
      i = eini_f64_to_i64(re);
    } else if (f->fold == EINI_PROD || f->fold == EINI_ALL) {
      re = 1;
      i = 1;
    } else if (s == 1 && t == EIN_I64) {
      i = -1;
    } else if (f->fold == EINI_MAX || (f->fold == EINI_LOGSUMEXP && s == 0)) {
      re = t == EIN_BOOL ? 0 : -HUGE_VAL;
      i = eini_int_limit(f->logical, -1);
    } else if (f->fold == EINI_MIN) {
      re = HUGE_VAL;
      i = eini_int_limit(f->logical, 1);
    }
    eini_fill_value(t, re, 0, i, n, state[s]);
  }
}

static void eini_fold_lift(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                           void *const *state) {
  if (f->user != NULL && f->user->lift_fn != NULL) {
    f->user->lift_fn(n, x, state, f->user->user);
  } else if (f->lift != NULL) {
    f->lift(n, x, pos, state);
  } else {
    memcpy(state[0], x, (size_t)n * ein_dtype_size(f->type));
    if (f->nstate == 2) memcpy(state[1], pos, (size_t)n * sizeof *pos);
  }
}

// acc[i] = merge(acc[i], lift(x[i])), i < n.
static void eini_fold_down(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                           void *const *acc, void *const *tmp) {
  const void *more[4] = {x, pos, NULL, NULL};
  void *user = f->user == NULL ? NULL : f->user->user;
  if (f->lift != NULL || (f->user != NULL && f->user->lift_fn != NULL)) {
    eini_fold_lift(f, n, x, pos, tmp);
    for (int s = 0; s < 4; s++) more[s] = tmp[s];
  }
  f->merge(n, acc, more, user);
}

// acc[0] = merge(acc[0], lift(x[0]), .., lift(x[n-1])), n > 0, by halves where there is no better.
static void eini_fold_across(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                             void *const *acc, void *const *tmp) {
  if (f->across != NULL) {
    f->across(n, x, acc[0]);
    return;
  }
  void *user = f->user == NULL ? NULL : f->user->user;
  if (f->whole != NULL) f->whole(f, n, x, tmp[0], tmp);
  else eini_fold_lift(f, n, x, pos, tmp);
  if (f->whole != NULL) n = 1;
  while (n > 0) {
    int64_t half = n > 1 ? n / 2 : 1;
    const void *upper[4] = {NULL, NULL, NULL, NULL};
    for (int s = 0; s < f->nstate; s++) {
      size_t size = ein_dtype_size(eini_state_dtype(f, s));
      upper[s] = (const char *)tmp[s] + (size_t)(n - half) * size;
    }
    if (n == 1) {
      f->merge(1, acc, upper, user);
      return;
    }
    f->merge(half, tmp, upper, user);
    n -= half;
  }
}

// Values of n finished states; returns where they are (state memory or out).
static void *eini_fold_finish(const eini_folder *f, int64_t n, void *const *state, void *out) {
  if (f->user != NULL) {
    if (f->user->finish_fn == NULL) return state[0];
    const void *in[4] = {state[0], state[1], state[2], state[3]};
    f->user->finish_fn(n, in, out, f->user->user);
    return out;
  }
  switch (f->fold) {
    case EINI_ARGMAX: case EINI_ARGMIN: return state[1];
    case EINI_LOGSUMEXP:
      for (int64_t i = 0; i < n; i++) {
        if (f->type == EIN_F32) {
          float m = ((float *)state[0])[i], s = logf(((float *)state[1])[i]);
          ((float *)out)[i] = m - m == 0 ? m + s : m != m ? m : s;
        } else {
          double m = ((double *)state[0])[i], s = log(((double *)state[1])[i]);
          ((double *)out)[i] = m - m == 0 ? m + s : m != m ? m : s;
        }
      }
      return out;
    case EINI_MEAN:
    case EINI_VAR: {
      const void *v = state[f->fold == EINI_VAR ? 2 : 0];
      int64_t k = eini_kind_of(f->type) == EINI_KCOMPLEX ? 2 * n : n;
      if (f->type == EIN_F32 || f->type == EIN_C64) {
        for (int64_t i = 0; i < k; i++)
          ((float *)out)[i] = (float)(((const float *)v)[i] / f->count);
      } else {
        for (int64_t i = 0; i < k; i++) ((double *)out)[i] = ((const double *)v)[i] / f->count;
      }
      return out;
    }
    default: return state[0];
  }
}

// ================================================================================================
// >>mapreduce  the portable map-reduce kernel
// D[f] = epilogue(fold over r of E(f, r)) over per-index strides (DESIGN: the kernels). Elements
// are evaluated in chunks along one index, or along several short ones through offset tables.
// Invariant: the fold of an output element does not depend on how free indices are cut.
// ================================================================================================

// Where an operand lives: a slot (see eini_plan) and the byte offset of index 0 of everything.
typedef struct eini_ref {
  int slot;                    // -1: an index's value
  ein_dtype dtype;
  int64_t offset;
  int origin;                  // slot that holds the value at index 0 of everything, or 0
  int64_t step[2];             // in a group: bytes (values) per value of its loops
} eini_ref;

// A provider's answer, for explain.
typedef struct eini_candidate {
  const char *name;
  char variant[24];
  double seconds;
} eini_candidate;

typedef enum eini_task_kind {
  EINI_TASK_MAP, EINI_TASK_COPY, EINI_TASK_CONTRACT, EINI_TASK_GROUP
} eini_task_kind;

// A statement made ready for a kernel. Streams are everything that moves with the indices: the
// operands of E, index values in E, the position (arg folds), the epilogue's operands and index
// values, the output; stride[s * nindex + i], in elements.
typedef struct eini_task {
  eini_task_kind kind;
  int nindex, nstream;
  int64_t *extent;
  unsigned char *reduced;
  int order;                   // of the statement's folds, EINI_ORDER_*
  int64_t *stride;
  int nop, niota, pos, extra, nextra, epi_iota, nepi_iota, out;  // stream numbers and counts
  eini_ref *ref;               // of streams that are tensors
  eini_code code, epi;
  int has_epi;
  eini_folder folder;
  int no_reduction;            // the reduced space is empty: only identities are stored
  int nouter, *outer;          // free loops around the chunk, outermost first
  int ninner, *inner;          // reduced loops around the chunk (inside the accumulators)
  int nchunk, *chunk;          // indices the chunk runs over, innermost last
  int chunk_reduced;
  int64_t chunk_len;           // elements over all chunk indices
  int64_t **table;             // offsets within the chunk per stream; NULL: one index, by stride
  int64_t *identity_table;     // 0, 1, 2, ..: the accumulator's table
  int cut;                     // free index threads cut, or -1
  double work;                 // elements visited
  size_t scratch;              // bytes per thread
  struct eini_contract_task *contract;
  struct eini_group *group;
  const ein_kernels *kernels;  // who runs it; NULL: the portable kernels
  ein_choice choice;
  int parts;                   // a contraction's: tasks for threads
  const ein_kernels *stream;   // whose stream_fn stores the output, or NULL
  int ahead;                   // then 1 + the only operand as large, to be asked for ahead; 0: none
  int live;                    // a copy's: loops of extent > 1, which come first
  eini_candidate *candidate;   // all answers
  int ncandidate;
  const eini_stmt *stmt;       // what it came from (and the fused consumer), for explain
  const eini_stmt *fused;
  double flops;
} eini_task;

// Everything one thread's run of a task mutates.
typedef struct eini_nest {
  const eini_task *t;
  char *const *slot;
  int64_t *at, *extent, *index;     // stream offsets; extents of this part; loop counters
  const char **base;                // per stream
  int64_t *step, *epi_step;         // along the chunk
  const int64_t **epi_table;
  const char **epi_base;
  int64_t *epi_at;
  eini_eval ev, epi;
  void *acc[4], *tmp[4];
  void *out, *conv, *conv2;
  int no_direct;                    // the output aliases an operand: never write it early
} eini_nest;

// The next bytes of a block being laid out; NULL while the block is only being measured.
static char *eini_nest_carve(char *mem, size_t *used, size_t bytes) {
  char *r = mem == NULL ? NULL : mem + *used;
  *used += (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  return r;
}

// Lays out a walk in memory; with mem NULL only counts. Returns the bytes needed.
static size_t eini_nest_layout(const eini_task *t, eini_nest *w, char *mem) {
  const size_t bytes = eini_reg_bytes(&t->code);
  size_t used = 0, ns = (size_t)t->nstream, ni = (size_t)t->nindex, nx = (size_t)t->nextra + 1;
  w->at = (int64_t *)(void *)eini_nest_carve(mem, &used, ns * 8);
  w->step = (int64_t *)(void *)eini_nest_carve(mem, &used, ns * 8);
  w->extent = (int64_t *)(void *)eini_nest_carve(mem, &used, ni * 8);
  w->index = (int64_t *)(void *)eini_nest_carve(mem, &used, ni * 8);
  w->base = (const char **)(void *)eini_nest_carve(mem, &used, ns * sizeof(char *));
  w->ev.reg = (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->code.nreg * sizeof(void *));
  w->ev.mem = eini_nest_carve(mem, &used, (size_t)t->code.nreg * bytes);
  if (t->has_epi) {
    w->epi_step = (int64_t *)(void *)eini_nest_carve(mem, &used, nx * 8);
    w->epi_at = (int64_t *)(void *)eini_nest_carve(mem, &used, nx * 8);
    w->epi_base = (const char **)(void *)eini_nest_carve(mem, &used, nx * sizeof(char *));
    w->epi_table = (const int64_t **)(void *)eini_nest_carve(mem, &used, nx * sizeof(int64_t *));
    w->epi.reg = (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->epi.nreg * sizeof(void *));
    w->epi.mem = eini_nest_carve(mem, &used, (size_t)t->epi.nreg * eini_reg_bytes(&t->epi));
  }
  if (t->folder.fold != EINI_FOLD_NONE) {
    for (int s = 0; s < t->folder.nstate; s++) {
      w->acc[s] = eini_nest_carve(mem, &used, bytes);
      w->tmp[s] = eini_nest_carve(mem, &used, bytes);
    }
    w->out = eini_nest_carve(mem, &used, bytes);
  }
  w->conv = eini_nest_carve(mem, &used, bytes);
  w->conv2 = eini_nest_carve(mem, &used, bytes);
  return used;
}

// Advances the loops listed in dim (innermost last) by one; 0 when they have wrapped around.
static int eini_nest_next(eini_nest *w, int n, const int *dim) {
  const eini_task *t = w->t;
  for (int d = n - 1; d >= 0; d--) {
    int i = dim[d];
    const int64_t *st = t->stride + i;
    if (++w->index[i] < w->extent[i]) {
      for (int s = 0; s < t->nstream; s++) w->at[s] += st[(int64_t)s * t->nindex];
      return 1;
    }
    int64_t back = w->extent[i] - 1;
    w->index[i] = 0;
    for (int s = 0; s < t->nstream; s++) w->at[s] -= back * st[(int64_t)s * t->nindex];
  }
  return 0;
}

static void eini_nest_shift(eini_nest *w, int64_t by) {
  for (int s = 0; s < w->t->nstream; s++) w->at[s] += by * w->step[s];
}

// Stores n results of computation type `type` at the current place.
static void eini_nest_store(eini_nest *w, int64_t n, ein_dtype type, const void *v) {
  const eini_task *t = w->t;
  ein_dtype to = t->ref[t->out].dtype;
  size_t size = eini_dtypes[to].size;
  char *dst = w->slot[t->ref[t->out].slot] + t->ref[t->out].offset + w->at[t->out] * (int64_t)size;
  if ((const char *)v == dst) return;  // written in place by the last operation
  if (type != to) v = eini_narrow(type, to, n, v, w->conv, w->conv2);
  const int64_t *table = t->table != NULL && !t->chunk_reduced ? t->table[t->out] : NULL;
  if (t->stream != NULL) {
    t->stream->stream_fn(t->stream->user, (size_t)n * size, v, dst);
    return;
  }
  eini_scatter(size, n, v, dst, t->chunk_reduced ? 1 : w->step[t->out], table);
}

// Where the expression may write its result directly, or NULL.
static void *eini_nest_direct(const eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  ein_dtype to = t->ref[t->out].dtype;
  if (t->table != NULL || w->step[t->out] != 1 || n % EINI_LANES != 0 || to != t->code.type ||
      t->code.nins == 0 ||
      t->code.ins[t->code.nins - 1].kind == EINI_INS_LOAD ||
      t->code.ins[t->code.nins - 1].dst != t->code.root) {
    return NULL;
  }
  size_t size = eini_dtypes[to].size;
  char *dst = w->slot[t->ref[t->out].slot] + t->ref[t->out].offset + w->at[t->out] * (int64_t)size;
  return (uintptr_t)dst % (size > 8 ? 8 : size) == 0 ? dst : NULL;
}

static void eini_nest_epilogue(eini_nest *w, int64_t n, void *v) {
  const eini_task *t = w->t;
  if (!t->has_epi) {
    eini_nest_store(w, n, t->folder.result, v);
    return;
  }
  w->epi_base[0] = (const char *)v;
  for (int k = 1; k <= t->nextra; k++) w->epi_at[k] = w->at[t->extra + k - 1];
  w->epi.index_at = w->at + t->epi_iota;
  void *r = eini_code_run(&w->epi, n, NULL);
  eini_nest_store(w, n, (ein_dtype)t->epi.type, r);
}

static const int64_t *eini_nest_pos(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  if (t->pos < 0) return NULL;
  int64_t *p = (int64_t *)w->conv;
  const int64_t *table = t->table != NULL ? t->table[t->pos] : NULL;
  for (int64_t j = 0; j < n; j++)
    p[j] = w->at[t->pos] + (table != NULL ? table[j] : j * w->step[t->pos]);
  return p;
}

// Where the values of the current chunk are already as they are folded; NULL: nowhere.
static const char *eini_nest_run(const eini_nest *w) {
  const eini_task *t = w->t;
  if (t->table != NULL || t->nchunk != 1 || t->nop != 1 || t->code.plain != 0 || t->code.conj ||
      w->step[0] != 1 || t->ref[0].dtype != t->folder.type || t->ref[0].dtype == EIN_BOOL)
    return NULL;
  const char *p = w->base[0] + w->at[0] * (int64_t)eini_dtypes[t->folder.type].size;
  return (uintptr_t)p % eini_dtypes[t->folder.type].size == 0 ? p : NULL;
}

// Folds n columns at the current place down the reduced loops; 0: they are no rows of memory.
static int eini_nest_down(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  const int last = t->ninner > 0 ? t->inner[t->ninner - 1] : -1;
  if (t->folder.down == NULL || eini_nest_run(w) == NULL) return 0;
  do {
    t->folder.down(n, last < 0 ? 1 : w->extent[last], last < 0 ? 0 : t->stride[last],
                   eini_nest_run(w), w->acc[0]);
  } while (eini_nest_next(w, t->ninner - 1, t->inner));
  return 1;
}

// One chunk of n elements starting at the current place is mapped and stored, or folded.
static void eini_nest_chunk(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  for (int64_t i = 0, o = t->ahead - 1; o >= 0 && w->step[o] == 1 && i < n; i += 8) {
    int64_t to = (w->at[o] + 2 * EINI_CHUNK + i) * (int64_t)eini_dtypes[t->ref[o].dtype].size;
    EINI_AHEAD((uintptr_t)w->base[o] + (uintptr_t)to);
  }
  if (t->folder.fold == EINI_FOLD_NONE) {
    void *to = w->no_direct || t->stream != NULL ? NULL : eini_nest_direct(w, n);
    void *v = eini_code_run(&w->ev, n, to);
    eini_nest_store(w, n, (ein_dtype)t->code.type, v);
    return;
  }
  if (t->chunk_reduced) {
    void *v = eini_code_run(&w->ev, n, NULL);
    eini_fold_across(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    return;
  }
  eini_fold_identity(&t->folder, n, w->acc);
  if (!t->no_reduction && !eini_nest_down(w, n)) {
    do {
      void *v = eini_code_run(&w->ev, n, NULL);
      eini_fold_down(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    } while (eini_nest_next(w, t->ninner, t->inner));
  }
  eini_nest_epilogue(w, n, eini_fold_finish(&t->folder, n, w->acc, w->out));
}

// All chunks of the current place, then back to it.
static void eini_nest_chunks(eini_nest *w) {
  const eini_task *t = w->t;
  const char *run = t->chunk_reduced && t->folder.across != NULL ? eini_nest_run(w) : NULL;
  if (run != NULL) {  // in a fixed order as chunks are folded, which other places may have
    const int64_t n = w->extent[t->chunk[0]], most = t->order ? EINI_CHUNK : n;
    const int64_t size = (int64_t)eini_dtypes[t->folder.type].size;
    for (int64_t i = 0; i < n; i += most)
      t->folder.across(eini_min64(most, n - i), run + i * size, w->acc[0]);
    return;
  }
  if (t->table != NULL || t->nchunk == 0) {
    eini_nest_chunk(w, t->chunk_len);
    return;
  }
  int64_t total = w->extent[t->chunk[0]];
  const ein_kernels *k = t->folder.fold == EINI_FOLD_NONE ? t->code.fast : NULL;
  if (k != NULL && k->row_fn(k->user, w, total, eini_nest_direct(w, 0), t->stream != NULL)) return;
  for (int64_t done = 0; done < total; done += EINI_CHUNK) {
    eini_nest_chunk(w, eini_min64(EINI_CHUNK, total - done));
    eini_nest_shift(w, EINI_CHUNK);
  }
  eini_nest_shift(w, -(total + EINI_CHUNK - 1) / EINI_CHUNK * EINI_CHUNK);
}

static void eini_nest_begin(eini_nest *w, const eini_task *t, char *const *slot,
                            const ein_scalar *param, char *scratch) {
  memset(w, 0, sizeof *w);
  eini_nest_layout(t, w, scratch);
  w->t = t;
  w->slot = slot;
  for (int s = 0; s < t->nstream; s++) {
    const int origin = t->ref[s].origin;
    w->at[s] = origin > 0 ? (int64_t)((uintptr_t)slot[origin] - (uintptr_t)slot[0]) : 0;
    w->step[s] = t->nchunk > 0 ? t->stride[(int64_t)s * t->nindex + t->chunk[t->nchunk - 1]] : 0;
    w->base[s] = t->ref[s].slot < 0 ? NULL : slot[t->ref[s].slot] + t->ref[s].offset;
  }
  for (int i = 0; i < t->nindex; i++) {
    w->extent[i] = t->extent[i];
    w->index[i] = 0;
  }
  w->ev.code = &t->code;
  w->ev.base = w->base;
  w->ev.at = w->at;
  w->ev.index_at = w->at + t->nop;
  w->ev.step = w->step;
  w->ev.index_step = w->step + t->nop;
  if (t->table != NULL) {
    w->ev.table = (const int64_t *const *)t->table;
    w->ev.index_table = (const int64_t *const *)(t->table + t->nop);
  }
  int64_t fill = t->table != NULL || t->nchunk == 0 ? t->chunk_len
                                                    : eini_min64(t->chunk_len, EINI_CHUNK);
  eini_code_begin(&w->ev, param, fill);
  if (!t->has_epi) return;
  w->epi.code = &t->epi;
  w->epi.base = w->epi_base;
  w->epi.at = w->epi_at;
  w->epi.step = w->epi_step;
  w->epi.index_step = w->step + t->epi_iota;
  w->epi_at[0] = 0;
  w->epi_step[0] = 1;
  int tables = t->table != NULL && !t->chunk_reduced;
  if (tables) {
    w->epi.table = w->epi_table;
    w->epi.index_table = (const int64_t *const *)(t->table + t->epi_iota);
    w->epi_table[0] = t->identity_table;
  }
  for (int k = 1; k <= t->nextra; k++) {
    w->epi_base[k] = w->base[t->extra + k - 1];
    w->epi_step[k] = w->step[t->extra + k - 1];
    if (tables) w->epi_table[k] = t->table[t->extra + k - 1];
  }
  eini_code_begin(&w->epi, param, t->chunk_reduced ? 1 : fill);
}

// Runs the part [lo, hi) of the index threads cut (all of it with cut < 0).
static void eini_mapreduce_run(const eini_task *t, char *const *slot, const ein_scalar *param,
                               char *scratch, int64_t lo, int64_t hi, int no_direct) {
  eini_nest w;
  eini_nest_begin(&w, t, slot, param, scratch);
  w.no_direct = no_direct;
  if (t->cut >= 0) {
    w.extent[t->cut] = hi - lo;
    for (int s = 0; s < t->nstream; s++) w.at[s] += lo * t->stride[(int64_t)s * t->nindex + t->cut];
  }
  do {
    if (t->folder.fold == EINI_FOLD_NONE || !t->chunk_reduced) {
      eini_nest_chunks(&w);
      continue;
    }
    eini_fold_identity(&t->folder, 1, w.acc);
    if (!t->no_reduction) {
      do {
        eini_nest_chunks(&w);
      } while (eini_nest_next(&w, t->ninner, t->inner));
    }
    eini_nest_epilogue(&w, 1, eini_fold_finish(&t->folder, 1, w.acc, w.out));
  } while (eini_nest_next(&w, t->nouter, t->outer));
}

// ---- copies ----

// A B x B block: src is read along its unit-stride index a, dst written along b. Both fit L1, so
// every cache line is used whole whatever the strides are.
#define EINI_TILE 16
#define EINI_COPY_TILE(bits)                                                                \
  static void eini_tile_##bits(const char *src, int64_t sa, int64_t sb, char *dst, int64_t da, \
                               int64_t db, int64_t na, int64_t nb) {                        \
    uint##bits##_t tile[EINI_TILE][EINI_TILE];                                              \
    const int64_t e = bits / 8;                                                             \
    if (na == EINI_TILE && nb == EINI_TILE && sa == 1 && db == 1) {                         \
      for (int b = 0; b < EINI_TILE; b++) memcpy(tile[b], src + b * sb * e, sizeof tile[b]); \
      for (int a = 0; a < EINI_TILE; a++) {                                                 \
        uint##bits##_t row[EINI_TILE];                                                      \
        for (int b = 0; b < EINI_TILE; b++) row[b] = tile[b][a];                            \
        memcpy(dst + a * da * e, row, EINI_TILE * (bits / 8));                              \
      }                                                                                     \
      return;                                                                               \
    }                                                                                       \
    for (int64_t a = 0; a < na; a++) {                                                      \
      for (int64_t b = 0; b < nb; b++) {                                                    \
        memcpy(dst + (a * da + b * db) * e, src + (a * sa + b * sb) * e, bits / 8);         \
      }                                                                                     \
    }                                                                                       \
  }
EINI_COPY_TILE(8)
EINI_COPY_TILE(16)
EINI_COPY_TILE(32)
EINI_COPY_TILE(64)
#undef EINI_COPY_TILE

static void eini_tile_128(const char *src, int64_t sa, int64_t sb, char *dst, int64_t da,
                          int64_t db, int64_t na, int64_t nb) {
  for (int64_t a = 0; a < na; a++) {
    for (int64_t b = 0; b < nb; b++)
      memcpy(dst + (a * da + b * db) * 16, src + (a * sa + b * sb) * 16, 16);
  }
}

static void eini_copy_tile(size_t size, const char *s, int64_t sa, int64_t sb, char *d, int64_t da,
                           int64_t db, int64_t na, int64_t nb) {
  switch (size) {
    case 1: eini_tile_8(s, sa, sb, d, da, db, na, nb); break;
    case 2: eini_tile_16(s, sa, sb, d, da, db, na, nb); break;
    case 4: eini_tile_32(s, sa, sb, d, da, db, na, nb); break;
    case 8: eini_tile_64(s, sa, sb, d, da, db, na, nb); break;
    default: eini_tile_128(s, sa, sb, d, da, db, na, nb); break;
  }
}

// One plane of a copy: indices a (short stride in src) and b (short stride in dst).
static void eini_copy_plane(size_t size, const char *src, int64_t sa, int64_t sb, char *dst,
                            int64_t da, int64_t db, int64_t na, int64_t nb) {
  int64_t e = (int64_t)size;
  if (sa == 1 && da == 1) {
    for (int64_t b = 0; b < nb; b++) memcpy(dst + b * db * e, src + b * sb * e, (size_t)na * size);
    return;
  }
  for (int64_t b = 0; b < nb; b += EINI_TILE) {
    for (int64_t a = 0; a < na; a += EINI_TILE) {
      eini_copy_tile(size, src + (a * sa + b * sb) * e, sa, sb, dst + (a * da + b * db) * e, da, db,
                     eini_min64(EINI_TILE, na - a), eini_min64(EINI_TILE, nb - b));
    }
  }
}

// A pure copy: stream 0 to stream out. chunk[0], chunk[1] are the plane's b and a.
static void eini_copy_run(const eini_task *t, char *const *slot, char *scratch, int64_t lo,
                          int64_t hi) {
  eini_nest w;
  eini_nest_begin(&w, t, slot, NULL, scratch);
  if (t->cut >= 0) {
    w.extent[t->cut] = hi - lo;
    for (int s = 0; s < t->nstream; s++) w.at[s] += lo * t->stride[(int64_t)s * t->nindex + t->cut];
  }
  size_t size = ein_dtype_size(t->ref[0].dtype);
  int b = t->nchunk > 1 ? t->chunk[0] : -1, a = t->nchunk > 0 ? t->chunk[t->nchunk - 1] : -1;
  const int64_t *in = t->stride, *out = t->stride + (int64_t)t->out * t->nindex;
  do {
    const char *src = w.base[0] + w.at[0] * (int64_t)size;
    char *dst = slot[t->ref[t->out].slot] + t->ref[t->out].offset + w.at[t->out] * (int64_t)size;
    eini_copy_plane(size, src, a < 0 ? 1 : in[a], b < 0 ? 0 : in[b], dst, a < 0 ? 1 : out[a],
                    b < 0 ? 0 : out[b], a < 0 ? 1 : w.extent[a], b < 0 ? 1 : w.extent[b]);
  } while (eini_nest_next(&w, t->nouter, t->outer));
}

// ================================================================================================
// >>lower  statements become tasks
// Takes a statement (and an element-wise consumer fused into it); gives the task: streams of
// strides, loops merged and ordered, the chunk chosen, code compiled.
// ================================================================================================

// A tensor as tasks see it: its slot and its strides in elements.
typedef struct eini_home {
  int slot;
  const int64_t *stride;
} eini_home;

// The groups of a contraction's loops (section products).
enum { EINI_GROUP_BATCH, EINI_GROUP_M, EINI_GROUP_N, EINI_GROUP_K };

typedef struct eini_lowering {
  eini_arena *a;
  ein_graph *g;
  const eini_home *home;    // per tensor
  int width;                // threads
  int nkernels;
  const ein_kernels *const *kernels;
  const ein_kernels *fast;  // provider of chunk functions, or NULL
  const ein_rates *rates;   // or NULL
  int nloop, loop[2];       // in a group: indices of the statement that the group loops over,
  int64_t block[2];         //   and how many values of them a task sees
  const char *local;        // per tensor: lives in the group only
  int unsplit;
} eini_lowering;

// Stride of every column of a map, and the offset of index 0, in elements. column[c]: the index of
// statement st that it is (NULL: c), or -1. The access is made for all values of the first n
// indices: without values there is none, and an index that is never stepped may have any
// coefficient; both give 0. All others lie within the tensor, so that they fit in bytes.
static ein_status eini_access_strides(const eini_stmt *st, int n, const ein_zmap *m,
                                      const int *column, const int64_t *tensor_stride,
                                      int64_t *stride, int64_t *offset) {
  *offset = 0;
  if (eini_stmt_empty(st, 0, n)) return EIN_OK;
  for (int r = 0; r < m->rows; r++) {
    int64_t s = tensor_stride[r];
    if (s == 0) continue;
    if (eini_muladd_overflow(m->offset[r], s, *offset, offset)) return EIN_ERR_TOO_LARGE;
    for (int c = 0; c < m->cols; c++) {
      int64_t k = m->coef[(int64_t)r * m->cols + c];
      int i = column == NULL ? c : column[c];
      if (k == 0 || i < 0 || st->index[i].extent < 2) continue;
      if (eini_muladd_overflow(k, s, stride[c], &stride[c])) return EIN_ERR_TOO_LARGE;
    }
  }
  return EIN_OK;
}

// Fills one tensor stream of a task of statement s. column[c]: its index that column c of the map
// is, or -1.
static ein_status eini_stream_tensor(const eini_lowering *lo, const eini_stmt *s, eini_task *t,
                                     int stream, int tensor, const ein_zmap *m,
                                     const int *column) {
  const eini_home *h = &lo->home[tensor];
  eini_ref *r = &t->ref[stream];
  int64_t *stride = EINI_NEW(lo->a, int64_t, m->cols);
  int64_t offset;
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  int n = stream < t->nop ? s->nindex : s->nfree;  // what the epilogue reads, it reads once
  EINI_TRY(eini_access_strides(s, n, m, column, h->stride, stride, &offset));
  for (int c = 0; c < m->cols; c++)
    if (column[c] >= 0) t->stride[(int64_t)stream * t->nindex + column[c]] = stride[c];
  r->slot = h->slot;
  r->dtype = lo->g->tensor[tensor].dtype;
  for (int j = 0; j < lo->nloop; j++) {
    for (int c = 0; c < m->cols && !lo->local[tensor]; c++) {
      if (column[c] == lo->loop[j]) r->step[j] += stride[c] * (int64_t)ein_dtype_size(r->dtype);
    }
  }
  return eini_mul_overflow(offset, (int64_t)ein_dtype_size(r->dtype), &r->offset)
             ? EIN_ERR_TOO_LARGE : EIN_OK;
}

// ---- merging and ordering of loops ----

static void eini_task_swap(eini_task *t, int i, int j) {
  int64_t e = t->extent[i];
  t->extent[i] = t->extent[j];
  t->extent[j] = e;
  unsigned char r = t->reduced[i];
  t->reduced[i] = t->reduced[j];
  t->reduced[j] = r;
  for (int s = 0; s < t->nstream; s++) {
    int64_t *v = t->stride + (int64_t)s * t->nindex;
    int64_t x = v[i];
    v[i] = v[j];
    v[j] = x;
  }
}

// Drops loop i. The stride rows keep their pitch (nindex is the pitch), so extents of dropped
// loops become 1 and move behind the live ones, whose order stays.
static void eini_task_drop(eini_task *t, int i, int *live) {
  for (--*live; i < *live; i++) eini_task_swap(t, i, i + 1);
}

// Must loop i stay as the statement has it, because it gives the order of a fold? Contractions have
// their reduced loops in the group EINI_GROUP_K.
static int eini_task_kept(const eini_task *t, int i) {
  return t->order && t->reduced[i] == (t->kind == EINI_TASK_CONTRACT ? EINI_GROUP_K : 1);
}

// Can loops o (outer) and i (inner) be one loop of extent e(o)*e(i)?
static int eini_task_fusable(const eini_task *t, int o, int i) {
  if (t->reduced[o] != t->reduced[i] || eini_task_kept(t, i)) return 0;
  for (int s = 0; s < t->nstream; s++) {
    const int64_t *v = t->stride + (int64_t)s * t->nindex;
    int64_t want;
    if (eini_mul_overflow(v[i], t->extent[i], &want) || v[o] != want) return 0;
  }
  return 1;
}

// Sort key of a loop: how far it moves the output, and then the operands.
static int eini_task_before(const eini_task *t, int i, int j) {
  if (t->reduced[i] != t->reduced[j]) return t->reduced[i] < t->reduced[j];
  if (eini_task_kept(t, i)) return 0;
  for (int k = 0; k <= t->nop; k++) {
    int s = k == 0 ? t->out : k - 1;
    int64_t a = eini_abs64(t->stride[(int64_t)s * t->nindex + i]);
    int64_t b = eini_abs64(t->stride[(int64_t)s * t->nindex + j]);
    if (a != b) return a > b;
  }
  return 0;
}

// Removes loops of extent 1, sorts the others, merges what is one loop in memory. Returns the
// number of live loops (they come first).
static int eini_task_merge(eini_task *t) {
  int live = t->nindex;
  for (int i = live - 1; i >= 0; i--)
    if (t->extent[i] == 1) eini_task_drop(t, i, &live);
  for (int i = 1; i < live; i++) {
    for (int j = i; j > 0 && eini_task_before(t, j, j - 1); j--) eini_task_swap(t, j, j - 1);
  }
  for (int i = live - 1; i > 0; i--) {
    int64_t e;
    if (!eini_task_fusable(t, i - 1, i) || eini_mul_overflow(t->extent[i - 1], t->extent[i], &e))
      continue;
    t->extent[i] = e;
    for (int k = i - 1; k + 1 < live; k++) eini_task_swap(t, k, k + 1);
    live--;
  }
  return live;
}

// Relative cost of running chunks along loop i: cache lines touched per element, and the overhead
// of short chunks.
static double eini_chunk_cost(const eini_task *t, int i) {
  double cost = 24.0 / (double)eini_min64(t->extent[i], EINI_CHUNK);
  for (int s = 0; s < t->nstream; s++) {
    if (t->ref[s].slot < 0) continue;
    double step = (double)eini_abs64(t->stride[(int64_t)s * t->nindex + i]);
    double bytes = step * (double)ein_dtype_size(t->ref[s].dtype);
    if (s == t->out && t->reduced[i]) continue;
    cost += bytes > 64.0 ? 2.0 : bytes / 32.0 + (step > 1 ? 0.25 : 0.0);
  }
  // A chunk along a reduced index ends in one output element each time round.
  if (t->reduced[i]) cost += 32.0 / (double)t->extent[i];
  return cost;
}

// Offsets of all elements of a chunk over several loops, per stream.
static ein_status eini_chunk_tables(eini_arena *a, eini_task *t) {
  t->table = EINI_NEW(a, int64_t *, t->nstream);
  t->identity_table = EINI_NEW(a, int64_t, EINI_CHUNK);
  if (t->table == NULL || t->identity_table == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t j = 0; j < EINI_CHUNK; j++) t->identity_table[j] = j;
  for (int s = 0; s < t->nstream; s++) {
    t->table[s] = EINI_NEW(a, int64_t, t->chunk_len);
    if (t->table[s] == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t j = 0; j < t->chunk_len; j++) {
      int64_t rest = j, off = 0;
      for (int k = t->nchunk - 1; k >= 0; k--) {
        int i = t->chunk[k];
        off += rest % t->extent[i] * t->stride[(int64_t)s * t->nindex + i];
        rest /= t->extent[i];
      }
      t->table[s][j] = off;
    }
  }
  return EIN_OK;
}

// The loop that chunks run along where the statement says of which kind: of free ones the cheapest;
// of reduced ones the last, or the longest if that is short. Extents of reduced loops are the same
// in all blocks of a statement.
static int eini_ordered_chunk(const eini_task *t, int live) {
  int best = -1;
  for (int i = 0; i < live; i++) {
    if (t->reduced[i] != ((t->order & EINI_ORDER_ACROSS) != 0)) continue;
    if (best < 0 || (t->reduced[i] ? t->extent[i] >= 32 || t->extent[i] > t->extent[best]
                                   : eini_chunk_cost(t, i) < eini_chunk_cost(t, best)))
      best = i;
  }
  return best;
}

// Chooses the chunk's indices and the loops around it.
static ein_status eini_task_chunk(eini_arena *a, eini_task *t, int live) {
  char *taken = EINI_NEW(a, char, live + 1);
  t->chunk = EINI_NEW(a, int, live + 1);
  t->outer = EINI_NEW(a, int, live + 1);
  t->inner = EINI_NEW(a, int, live + 1);
  if (taken == NULL || t->chunk == NULL || t->outer == NULL || t->inner == NULL)
    return EIN_ERR_NO_MEMORY;
  int best = -1;
  double low = 0;
  if (t->order) best = eini_ordered_chunk(t, live);
  for (int i = 0; i < live && !t->order; i++) {
    double c = eini_chunk_cost(t, i);
    if (best < 0 || c < low) best = i, low = c;
  }
  t->chunk_len = 1;
  if (best >= 0) {
    t->chunk[t->nchunk++] = best;
    taken[best] = 1;
    t->chunk_len = t->extent[best];
    t->chunk_reduced = t->reduced[best];
    // Short: take more loops of the same kind into the chunk, next in memory order first.
    for (int i = live - 1; i >= 0 && t->chunk_len < EINI_CHUNK / 2; i--) {
      if (taken[i] || t->reduced[i] != t->reduced[best] || t->extent[i] > EINI_CHUNK / t->chunk_len)
        continue;
      for (int k = t->nchunk; k > 0; k--) t->chunk[k] = t->chunk[k - 1];
      t->chunk[0] = i;
      t->nchunk++;
      taken[i] = 1;
      t->chunk_len *= t->extent[i];
    }
  }
  for (int i = 0; i < live; i++) {
    if (taken[i]) continue;
    if (t->reduced[i]) t->inner[t->ninner++] = i;
    else t->outer[t->nouter++] = i;
  }
  return t->nchunk > 1 ? eini_chunk_tables(a, t) : EIN_OK;
}

// A copy runs plane by plane: a is the loop src is dense in, b the one dst is dense in.
static ein_status eini_task_plane(eini_arena *a, eini_task *t, int live) {
  t->chunk = EINI_NEW(a, int, 2);
  t->outer = EINI_NEW(a, int, live + 1);
  if (t->chunk == NULL || t->outer == NULL) return EIN_ERR_NO_MEMORY;
  const int64_t *in = t->stride, *out = t->stride + (int64_t)t->out * t->nindex;
  int x = -1, y = -1;
  for (int i = 0; i < live; i++) {
    if (in[i] != 0 && (x < 0 || eini_abs64(in[i]) < eini_abs64(in[x]))) x = i;
    if (y < 0 || eini_abs64(out[i]) < eini_abs64(out[y])) y = i;
  }
  if (x < 0) x = y;
  if (x == y) {  // dense in both: b is the next loop of the output
    y = -1;
    for (int i = 0; i < live; i++)
      if (i != x && (y < 0 || eini_abs64(out[i]) < eini_abs64(out[y]))) y = i;
  }
  if (y >= 0) t->chunk[t->nchunk++] = y;
  if (x >= 0) t->chunk[t->nchunk++] = x;
  for (int i = 0; i < live; i++)
    if (i != x && i != y) t->outer[t->nouter++] = i;
  return EIN_OK;
}

static void eini_candidate_add(eini_task *t, const char *name, const ein_choice *h) {
  eini_candidate *x = &t->candidate[t->ncandidate++];
  x->name = name;
  memcpy(x->variant, h->variant, sizeof x->variant);
  x->seconds = h->seconds;
}

// A copy as providers see it, over the live loops.
static ein_copy eini_copy_of(const eini_task *t, int live) {
  ein_copy c;
  memset(&c, 0, sizeof c);
  c.n = live;
  c.extent = t->extent;
  c.src_stride = t->stride;
  c.dst_stride = t->stride + (int64_t)t->out * t->nindex;
  c.size = (int)ein_dtype_size(t->ref[t->out].dtype);
  return c;
}

// Asks the providers; without an answer the portable copy runs.
static ein_status eini_copy_choose(const eini_lowering *lo, eini_task *t, int live) {
  const ein_copy c = eini_copy_of(t, live);
  t->live = live;
  t->candidate = EINI_NEW(lo->a, eini_candidate, lo->nkernels);
  if (t->candidate == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < lo->nkernels; i++) {
    const ein_kernels *p = lo->kernels[i];
    ein_choice h;
    memset(&h, 0, sizeof h);
    if (p->copy_plan == NULL || !p->copy_plan(p->user, &c, lo->width, &h)) continue;
    eini_candidate_add(t, p->name, &h);
    if (t->kernels != NULL && h.seconds >= t->choice.seconds) continue;
    t->kernels = p;
    t->choice = h;
  }
  return EIN_OK;
}

static int eini_exceeds(int64_t x, int64_t times, int64_t of) {  // x > times * of
  return (x - 1) / times >= of;
}

// The free loop threads cut: the outermost long one, never a table's.
static void eini_task_cut(eini_task *t) {
  t->cut = -1;
  int64_t best = 1;
  for (int k = 0; k < t->nouter; k++) {
    int64_t e = t->extent[t->outer[k]];
    if (eini_exceeds(e, 4, best)) best = e, t->cut = t->outer[k];
  }
  if (t->kind == EINI_TASK_COPY) {
    for (int k = 0; k < t->nchunk; k++) {
      int64_t e = t->extent[t->chunk[k]];
      if (eini_exceeds(e, 4, best)) best = e, t->cut = t->chunk[k];
    }
  } else if (t->nchunk == 1 && !t->chunk_reduced &&
             eini_exceeds(t->extent[t->chunk[0]], 16, best)) {
    t->cut = t->chunk[0];
  }
}

// ---- from statement to task ----

// The index values an expression uses become streams that count; *e is renumbered to them.
static ein_status eini_expr_iotas(eini_arena *a, eini_expr *e, int **index, int *n) {
  eini_node *copy = EINI_NEW(a, eini_node, e->n);
  *index = EINI_NEW(a, int, e->n);
  if (copy == NULL || *index == NULL) return EIN_ERR_NO_MEMORY;
  *n = 0;
  for (int64_t i = 0; i < e->n; i++) {
    copy[i] = e->node[i];
    if (copy[i].op != EINI_OP_INDEX) continue;
    int k = 0;
    while (k < *n && (*index)[k] != copy[i].arg[0]) k++;
    if (k == *n) (*index)[(*n)++] = copy[i].arg[0];
    copy[i].arg[0] = k;
  }
  e->node = copy;
  return EIN_OK;
}

// Wraps the root of a typed expression in a conversion to a computation type.
static ein_status eini_expr_to(eini_arena *a, eini_expr *e, ein_dtype t) {
  ein_dtype from = ein_dtype_compute((ein_dtype)e->node[e->n - 1].dtype);
  if (from == t) return EIN_OK;
  int id = eini_expr_add(a, e, EINI_OP_CAST, e->node[e->n - 1].pos, (int)e->n - 1, 1, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  e->node[id].dtype = (unsigned char)t;
  return EIN_OK;
}

// The fused consumer's expression: operand `via` becomes operand 0, the others follow.
static ein_status eini_epilogue_expr(const eini_lowering *lo, const eini_stmt *f, int via,
                                     eini_expr *e, int *extra, int *nextra) {
  *e = f->expr;
  e->node = EINI_NEW(lo->a, eini_node, f->expr.n);
  if (e->node == NULL) return EIN_ERR_NO_MEMORY;
  *nextra = 0;
  for (int k = 0; k < f->noperand; k++)
    if (k != via) extra[(*nextra)++] = k;
  for (int64_t i = 0; i < f->expr.n; i++) {
    e->node[i] = f->expr.node[i];
    if (e->node[i].op != EINI_OP_OPERAND) continue;
    int k = e->node[i].arg[0];
    e->node[i].arg[0] = k == via ? 0 : k < via ? k + 1 : k;
  }
  e->cap = f->expr.n;
  return EIN_OK;
}

// Column c of the consumer's index space as an index of the producer's, through the temporary.
static ein_status eini_fused_columns(const eini_lowering *lo, const eini_stmt *s,
                                     const eini_stmt *f, int via, int **column) {
  *column = EINI_NEW(lo->a, int, f->nindex + 1);
  if (*column == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < f->nindex; c++) (*column)[c] = -1;
  for (int r = 0; r < f->proj[via].rows; r++) {
    int c = 0, k = 0;
    while (c < f->nindex && f->proj[via].coef[(int64_t)r * f->nindex + c] == 0) c++;
    while (k < s->nindex && s->out_map.coef[(int64_t)r * s->nindex + k] == 0) k++;
    if (c < f->nindex && k < s->nindex) (*column)[c] = k;
  }
  return EIN_OK;
}

static void eini_stream_iotas(const eini_lowering *lo, eini_task *t, int first, int n,
                              const int *index, const int *column) {
  for (int k = 0; k < n; k++) {
    int c = column == NULL ? index[k] : column[index[k]];
    t->ref[first + k].slot = -1;
    t->ref[first + k].dtype = EIN_I64;
    if (c >= 0) t->stride[(int64_t)(first + k) * t->nindex + c] = 1;
    for (int j = 0; j < lo->nloop; j++) t->ref[first + k].step[j] = c == lo->loop[j];
  }
}

static ein_status eini_task_arrays(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  int64_t cells;
  t->nindex = s->nindex;
  if (eini_mul_overflow(t->nstream, t->nindex, &cells)) return EIN_ERR_TOO_LARGE;
  t->extent = EINI_NEW(lo->a, int64_t, t->nindex);
  t->reduced = EINI_NEW(lo->a, unsigned char, t->nindex);
  t->stride = EINI_NEW(lo->a, int64_t, cells);
  t->ref = EINI_NEW(lo->a, eini_ref, t->nstream);
  if (t->extent == NULL || t->reduced == NULL || t->stride == NULL || t->ref == NULL)
    return EIN_ERR_NO_MEMORY;
  t->work = 1;
  t->order = s->order;
  for (int i = 0; i < t->nindex; i++) {
    t->extent[i] = s->index[i].extent;
    for (int j = 0; j < lo->nloop; j++) {
      if (i == lo->loop[j]) t->extent[i] = lo->block[j];
    }
    t->reduced[i] = i >= s->nfree;
    t->work *= (double)t->extent[i];
  }
  return EIN_OK;
}

// What follows a fold: the fused consumer f, or only the store of s itself.
typedef struct eini_epilogue {
  eini_expr e;
  int *extra;    // its operands other than the fold's result
  int *iota;     // indices it uses as values
  int *column;   // its columns as indices of the fold
} eini_epilogue;

// Counts the epilogue's streams; ends with the number of the output's, behind `first` others.
static ein_status eini_epilogue_begin(const eini_lowering *lo, const eini_stmt *s,
                                      const eini_stmt *f, int via, int first, eini_task *t,
                                      eini_epilogue *ep) {
  memset(ep, 0, sizeof *ep);
  t->has_epi = f != NULL;
  if (f != NULL) {
    ep->extra = EINI_NEW(lo->a, int, f->noperand + 1);
    if (ep->extra == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_epilogue_expr(lo, f, via, &ep->e, ep->extra, &t->nextra));
    EINI_TRY(eini_expr_iotas(lo->a, &ep->e, &ep->iota, &t->nepi_iota));
    EINI_TRY(eini_fused_columns(lo, s, f, via, &ep->column));
  } else {
    ep->column = EINI_NEW(lo->a, int, s->nindex + 1);
    if (ep->column == NULL) return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < s->nindex; i++) ep->column[i] = i;
  }
  t->extra = first;
  t->epi_iota = first + t->nextra;
  t->out = t->epi_iota + t->nepi_iota;
  t->nstream = t->out + 1;
  return eini_task_arrays(lo, s, t);
}

// Fills the epilogue's streams and the output's. acc: the type of the fold's result.
static ein_status eini_epilogue_end(const eini_lowering *lo, const eini_stmt *s,
                                    const eini_stmt *f, const eini_epilogue *ep, ein_dtype acc,
                                    eini_task *t) {
  const eini_stmt *last = f != NULL ? f : s;
  ein_dtype *od = EINI_NEW(lo->a, ein_dtype, t->nextra + 1);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  od[0] = acc;
  for (int k = 0; k < t->nextra; k++) {
    int op = ep->extra[k];
    EINI_TRY(eini_stream_tensor(lo, s, t, t->extra + k, f->operand[op], &f->proj[op],
                                ep->column));
    od[k + 1] = t->ref[t->extra + k].dtype;
  }
  if (f != NULL) {
    eini_stream_iotas(lo, t, t->epi_iota, t->nepi_iota, ep->iota, ep->column);
    EINI_TRY(eini_code_compile(lo->a, &ep->e, od, lo->g->function, lo->fast, &t->epi));
  }
  return eini_stream_tensor(lo, s, t, t->out, last->out, &last->out_map, ep->column);
}

// The fold of a statement, and its expression converted to the fold's value type.
static ein_status eini_task_fold(const eini_lowering *lo, const eini_stmt *s, eini_expr *e,
                                 eini_task *t) {
  ein_dtype value = (ein_dtype)e->node[e->n - 1].dtype;
  ein_dtype ft = eini_fold_value_dtype(lo->g, s->fold, value, s->numpy);
  double count = 1;
  for (int i = s->nfree; i < s->nindex; i++) count *= (double)s->index[i].extent;
  if (s->fold != EINI_FOLD_NONE) EINI_TRY(eini_expr_to(lo->a, e, ft));
  EINI_TRY(eini_folder_init(&t->folder, lo->g, s->fold, ft, count, lo->fast));
  if (count == 0 && ein_dtype_compute(value) == ft) t->folder.logical = value;
  t->no_reduction = count == 0;
  return EIN_OK;
}

// Streams and codes of a statement s with an optional consumer f fused through operand via.
static ein_status eini_task_streams(const eini_lowering *lo, const eini_stmt *s,
                                    const eini_stmt *f, int via, eini_task *t) {
  eini_expr e = s->expr;
  eini_epilogue ep;
  int *iota;
  EINI_TRY(eini_expr_iotas(lo->a, &e, &iota, &t->niota));
  e.cap = e.n;
  EINI_TRY(eini_task_fold(lo, s, &e, t));
  int arg = s->fold == EINI_ARGMAX || s->fold == EINI_ARGMIN;
  t->nop = s->noperand;
  t->pos = arg ? t->nop + t->niota : -1;
  EINI_TRY(eini_epilogue_begin(lo, s, f, via, t->nop + t->niota + arg, t, &ep));
  int *self = EINI_NEW(lo->a, int, s->nindex + 1);
  ein_dtype *od = EINI_NEW(lo->a, ein_dtype, s->noperand + 1);
  if (self == NULL || od == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) self[i] = i;
  for (int k = 0; k < s->noperand; k++) {
    EINI_TRY(eini_stream_tensor(lo, s, t, k, s->operand[k], &s->proj[k], self));
    od[k] = t->ref[k].dtype;
  }
  eini_stream_iotas(lo, t, t->nop, t->niota, iota, NULL);
  int64_t stride = 1;
  for (int i = s->nindex - 1; arg && i >= s->nfree; i--) {
    t->ref[t->pos].slot = -1;
    t->ref[t->pos].dtype = EIN_I64;
    t->stride[(int64_t)t->pos * t->nindex + i] = stride;
    if (eini_mul_overflow(stride, eini_max64(s->index[i].extent, 1), &stride))
      return EIN_ERR_TOO_LARGE;
  }
  EINI_TRY(eini_code_compile(lo->a, &e, od, lo->g->function, lo->fast, &t->code));
  return eini_epilogue_end(lo, s, f, &ep, t->folder.result, t);
}

// A copy keeps the bits: one operand, no operation, equal storage dtypes. (bool is normalised.)
static int eini_task_is_copy(const eini_task *t, const eini_stmt *s) {
  return t->folder.fold == EINI_FOLD_NONE && t->nop == 1 && s->expr.n == 1 &&
         s->expr.node[0].op == EINI_OP_OPERAND && t->ref[0].dtype == t->ref[t->out].dtype &&
         t->ref[0].dtype != EIN_BOOL;
}

// Outputs that exceed the caches are stored past them where chunks are runs of the output.
static void eini_task_stream(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  double bytes = (double)ein_dtype_size(t->ref[t->out].dtype);
  for (int i = 0; i < s->nfree; i++) bytes *= (double)s->index[i].extent;
  if (lo->nloop > 0 && lo->local[t->fused != NULL ? t->fused->out : s->out]) return;
  if (lo->fast == NULL || lo->fast->stream_fn == NULL || t->kind != EINI_TASK_MAP ||
      bytes <= (double)lo->fast->stream_bytes || t->table != NULL || t->nchunk != 1 ||
      t->chunk_reduced || t->stride[(int64_t)t->out * t->nindex + t->chunk[0]] != 1) {
    return;
  }
  t->stream = lo->fast;
  for (int o = 0, large = 0, all; o < t->nop; o++) {
    for (int i = all = 0; i < t->nindex; i++)
      all += t->extent[i] == 1 || t->stride[(int64_t)o * t->nindex + i] != 0;
    if (all == t->nindex) t->ahead = large++ > 0 ? 0 : o + 1;
  }
}

// Makes the map-reduce task. *empty: there is nothing to do at all.
static ein_status eini_task_lower(const eini_lowering *lo, const eini_stmt *s, const eini_stmt *f,
                             int via, eini_task *t, int *empty) {
  memset(t, 0, sizeof *t);
  t->cut = -1;
  *empty = eini_stmt_empty(s, 0, s->nfree);
  t->stmt = s;
  t->fused = f;
  if (*empty) return EIN_OK;
  EINI_TRY(eini_task_streams(lo, s, f, via, t));
  if (lo->g->ordered) t->code.fast = NULL;  // rows that some blocks have and others have not
  if (eini_task_is_copy(t, s)) t->kind = EINI_TASK_COPY;
  int live = eini_task_merge(t);
  if (t->no_reduction) {  // no loop may run over nothing: only the free ones stay
    for (int i = live - 1; i >= 0; i--)
      if (t->reduced[i]) eini_task_drop(t, i, &live);
  }
  EINI_TRY(t->kind == EINI_TASK_COPY ? eini_task_plane(lo->a, t, live)
                                     : eini_task_chunk(lo->a, t, live));
  if (t->kind == EINI_TASK_COPY) EINI_TRY(eini_copy_choose(lo, t, live));
  if (t->folder.fold != EINI_FOLD_NONE && t->nchunk == 0) t->chunk_reduced = 0;
  eini_task_cut(t);
  eini_task_stream(lo, s, t);
  t->code.chunk = eini_chunk_of(eini_max64(t->chunk_len, 1));
  t->epi.chunk = t->chunk_reduced ? eini_chunk_of(1) : t->code.chunk;
  eini_nest w;
  memset(&w, 0, sizeof w);
  t->scratch = eini_nest_layout(t, &w, NULL);
  if (t->kind == EINI_TASK_COPY && t->kernels != NULL) {
    t->scratch = 0;
    eini_nest_carve(NULL, &t->scratch, (size_t)t->live * 8);
    t->scratch += t->choice.scratch;
  }
  return EIN_OK;
}

// ================================================================================================
// >>products  statements that are contractions
// Takes a folded product of two factors; gives a task for the contract kernel: indices grouped into
// batch, m, n and k, each side's expression compiled for packing, the epilogue for the store.
// ================================================================================================

// A factor of a store: a constant or a param.
typedef struct eini_factor {
  int given;                    // 0: none
  int skip;                     // 1: where it is 0, what it multiplies is not read
  eini_fill from;
} eini_factor;

typedef struct eini_contract_task {
  ein_contract c;               // all but addresses
  ein_part whole;
  eini_code code[2];            // P and Q, when they are not plain
  const int64_t **stride[2][3]; // per side: pointers to row, k, batch strides of its operands
  const int64_t **extra[3];     // batch, m, n
  ein_dtype *dtype[2], *extra_dtype;
  int first[2];                 // stream of each side's first operand
  eini_factor factor[2];        // alpha and beta of a scaled store
} eini_contract_task;

// What the kernel's callbacks need while a task runs.
typedef struct eini_fill_ctx {
  eini_eval ev;
  int64_t *at, *step;
  const int64_t **table;
} eini_fill_ctx;

typedef struct eini_emit_ctx {
  const eini_task *t;
  eini_eval ev;
  int64_t *at, *step;
  const int64_t **table;
  const char **base;
  void *conv, *conv2;
} eini_emit_ctx;

// n offsets from the given one on: *at + i * *step where they are that (*use is NULL then), else
// *use. gap: what is known to be between two.
static void eini_table_step(const int64_t *table, const int64_t *gap, int64_t from, int64_t n,
                            int64_t *at, int64_t *step, const int64_t **use) {
  *use = NULL;
  *step = gap != NULL ? *gap : n > 1 ? table[from + 1] - table[from] : 1;
  *at = gap != NULL ? table[0] + from * *gap : table[from];
  for (int64_t j = 2; gap == NULL && j < n && *use == NULL; j++)
    if (table[from + j] - table[from + j - 1] != *step) *use = table + from;
  if (*use != NULL) *at = 0;
}

static void eini_contract_fill(void *user, int64_t n, const char *const *base,
                               const int64_t *const *off, void *out) {
  eini_fill_ctx *f = (eini_fill_ctx *)user;
  const eini_code *code = f->ev.code;
  size_t size = ein_dtype_size((ein_dtype)code->type);
  int nop = 0;
  for (int i = 0; i < code->nins; i++)
    if (code->ins[i].kind == EINI_INS_LOAD && code->ins[i].a >= nop) nop = code->ins[i].a + 1;
  f->ev.base = base;
  f->ev.at = f->at;
  f->ev.step = f->step;
  f->ev.table = f->table;
  for (int64_t done = 0; done < n; done += code->chunk) {
    int64_t m = eini_min64(code->chunk, n - done);
    for (int k = 0; k < nop; k++)
      eini_table_step(off[k], NULL, done, m, &f->at[k], &f->step[k], &f->table[k]);
    const void *v = eini_code_run(&f->ev, m, NULL);
    memcpy((char *)out + (size_t)done * size, v, (size_t)m * size);
  }
}

static void eini_contract_emit(void *user, int64_t n, const void *acc, char *out,
                               const int64_t *off, const char *const *base,
                               const int64_t *const *xoff, const int64_t *gap) {
  eini_emit_ctx *e = (eini_emit_ctx *)user;
  const eini_task *t = e->t;
  ein_dtype type = t->contract->c.type, to = t->ref[t->out].dtype;
  size_t size = ein_dtype_size(type);
  for (int64_t done = 0; done < n; done += t->epi.chunk) {
    int64_t m = eini_min64(t->epi.chunk, n - done);
    const void *v = (const char *)acc + (size_t)done * size;
    ein_dtype vt = type;
    if (t->has_epi) {
      e->base[0] = (const char *)v;
      e->table[0] = NULL;
      e->at[0] = 0;
      e->step[0] = 1;
      for (int k = 1; k <= t->nextra; k++) {
        e->base[k] = base[k - 1];
        eini_table_step(xoff[k - 1], gap == NULL ? NULL : &gap[k], done, m, &e->at[k],
                        &e->step[k], &e->table[k]);
      }
      e->ev.base = e->base;
      e->ev.at = e->at;
      e->ev.step = e->step;
      e->ev.table = e->table;
      v = eini_code_run(&e->ev, m, NULL);
      vt = (ein_dtype)t->epi.type;
    }
    if (vt != to) {
      if (v != e->conv) {  // conversions read padded chunks: move the sums to padded memory first
        memcpy(e->conv2, v, (size_t)m * ein_dtype_size(vt));
        v = e->conv2;
      }
      void *third = (char *)e->conv2 + eini_reg_bytes(&t->epi);
      v = eini_narrow(vt, to, m, v, e->conv, third);
    }
    const int64_t *table;
    int64_t at, step;
    eini_table_step(off, gap, done, m, &at, &step, &table);
    eini_scatter(ein_dtype_size(to), m, v, out + at * (int64_t)ein_dtype_size(to), step, table);
  }
}

// The same for a store that is scaled.
static void eini_contract_emit_scaled(void *user, int64_t n, const void *folds, char *out,
                                      const int64_t *off, const char *const *base,
                                      const int64_t *const *xoff, const int64_t *gap) {
  const ein_contract *c = (const ein_contract *)user;
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t size = t->size * t->planes;
  const char *y = c->beta == NULL ? NULL : base[0], *x = (const char *)folds;
  int64_t on[EINI_LANES], yn[EINI_LANES];
  if (gap == NULL) {
    t->scale(n, t->planes, c->alpha, c->beta, x, y, y == NULL ? NULL : xoff[0], out, off);
    return;
  }
  out += off[0] * size;
  if (y != NULL) y += xoff[0][0] * size;
  const int even = gap[0] == 1 && (y == NULL || gap[1] == 1);
  for (int64_t i = 0, m; i < n; i += m, x += m * size) {
    m = even ? n : eini_min64(n - i, EINI_LANES);
    for (int64_t j = 0; !even && j < m; j++) {
      on[j] = (i + j) * gap[0];
      yn[j] = y == NULL ? 0 : (i + j) * gap[1];
    }
    t->scale(m, t->planes, c->alpha, c->beta, x, y, even ? NULL : yn, out, even ? NULL : on);
  }
}

typedef struct eini_contract_room {
  char *kernel;
  const char **base[2], **extra;
  eini_fill_ctx fill[2];
  eini_emit_ctx emit;
  char *factor;                 // of a scaled store: alpha and beta, 16 bytes each
} eini_contract_room;

static size_t eini_contract_layout(const eini_task *t, eini_contract_room *r, char *mem) {
  const eini_contract_task *ct = t->contract;
  size_t used = 0;
  for (int side = 0; side < 2; side++) {
    const ein_side *s = side ? &ct->c.q : &ct->c.p;
    size_t n = (size_t)s->nop;
    r->base[side] = (const char **)(void *)eini_nest_carve(mem, &used, n * sizeof(char *));
    if (s->form == EIN_FORM_PLAIN) continue;
    const eini_code *code = &ct->code[side];
    r->fill[side].at = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->fill[side].step = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->fill[side].table = (const int64_t **)(void *)eini_nest_carve(mem, &used, n * sizeof(void *));
    r->fill[side].ev.reg =
        (void **)(void *)eini_nest_carve(mem, &used, (size_t)code->nreg * sizeof(void *));
    r->fill[side].ev.mem = eini_nest_carve(mem, &used, (size_t)code->nreg * eini_reg_bytes(code));
  }
  if (!ct->c.plain_out)
    r->extra = (const char **)(void *)eini_nest_carve(
        mem, &used, ((size_t)t->nextra + 1) * sizeof(char *));
  if (ct->c.scaled) r->factor = eini_nest_carve(mem, &used, 32);
  if (!ct->c.plain_out && !ct->c.scaled) {
    size_t n = (size_t)t->nextra + 1;
    r->emit.at = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->emit.step = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->emit.table = (const int64_t **)(void *)eini_nest_carve(mem, &used, n * sizeof(void *));
    r->emit.base = (const char **)(void *)eini_nest_carve(mem, &used, n * sizeof(char *));
    r->emit.ev.reg =
        (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->epi.nreg * sizeof(void *));
    const size_t bytes = eini_reg_bytes(&t->epi);
    r->emit.ev.mem = eini_nest_carve(mem, &used, (size_t)t->epi.nreg * bytes);
    r->emit.conv = eini_nest_carve(mem, &used, bytes);
    r->emit.conv2 = eini_nest_carve(mem, &used, 2 * bytes);
  }
  r->kernel = eini_nest_carve(mem, &used, t->choice.scratch);
  return used;
}

// Registers for as many values as there are points: a kernel may ask for padded ones as well, which
// then take another chunk.
static void eini_contract_chunks(eini_task *t) {
  eini_contract_task *ct = t->contract;
  int64_t m = ct->whole.m[1], n = ct->whole.n[1], k = eini_axes_size(&ct->c.k);
  t->epi.chunk = eini_chunk_of(eini_max64(m * n, 1));
  ct->code[0].chunk = eini_chunk_of(eini_max64(m * k, 1));
  ct->code[1].chunk = eini_chunk_of(eini_max64(k * n, 1));
}

static const char *eini_ref_address(const eini_ref *r, char *const *slot) {
  return slot[r->slot] + r->offset;
}

// A provider's copy of the range [lo, hi) of the cut loop; scratch starts with the extents.
static ein_status eini_copy_provided(const eini_task *t, char *const *slot, char *scratch,
                                     int64_t lo, int64_t hi) {
  ein_copy c = eini_copy_of(t, t->live);
  int64_t *extent = (int64_t *)(void *)scratch, size = c.size;
  size_t used = 0;
  eini_nest_carve(NULL, &used, (size_t)t->live * 8);
  union { const char *c; char *v; } out;
  out.c = eini_ref_address(&t->ref[t->out], slot);
  c.src = eini_ref_address(&t->ref[0], slot);
  c.dst = out.v;
  if (t->cut >= 0) {
    for (int i = 0; i < t->live; i++) extent[i] = i == t->cut ? hi - lo : t->extent[i];
    c.extent = extent;
    c.src += lo * c.src_stride[t->cut] * size;
    c.dst += lo * c.dst_stride[t->cut] * size;
  }
  return t->kernels->copy_run(t->kernels->user, &c, &t->choice, scratch + used);
}

// The value of a factor at d; NULL where there is none to apply.
static const void *eini_factor_run(const eini_factor *f, ein_dtype type, const ein_scalar *param,
                                   void *d) {
  static const char zero[16] = {0};
  if (!f->given) return NULL;
  eini_fill_run(&f->from, type, param, 1, d);
  if (f->skip && eini_kind_of(type) < EINI_KREAL && memcmp(d, zero, ein_dtype_size(type)) == 0)
    return NULL;
  const float *s = (const float *)d;
  const double *w = (const double *)d;
  int none = type == EIN_F32 ? s[0] == 0 : type == EIN_F64 ? w[0] == 0
             : type == EIN_C64 ? s[0] == 0 && s[1] == 0
             : type == EIN_C128 && w[0] == 0 && w[1] == 0;
  return f->skip && none ? NULL : d;
}

// Runs part i of the grid the kernel chose.
static ein_status eini_contract_task_run(const eini_task *t, char *const *slot,
                                         const ein_scalar *param, char *scratch, int i) {
  const eini_contract_task *ct = t->contract;
  ein_contract c;  // copied by halves: compilers make a slow string instruction of one copy
  const size_t half = offsetof(ein_contract, p);
  memcpy(&c, &ct->c, half);
  memcpy((char *)&c + half, (const char *)&ct->c + half, sizeof c - half);
  eini_contract_room r;  // the layout sets what this task uses
  eini_contract_layout(t, &r, scratch);
  for (int side = 0; side < 2; side++) {
    ein_side *s = side ? &c.q : &c.p;
    for (int k = 0; k < s->nop; k++) {
      r.base[side][k] = eini_ref_address(&t->ref[ct->first[side] + k], slot);
    }
    s->base = r.base[side];
    if (s->form == EIN_FORM_PLAIN) continue;
    eini_fill_ctx *f = &r.fill[side];
    f->ev.index_at = f->ev.index_step = NULL;
    f->ev.index_table = NULL;
    f->ev.code = &ct->code[side];
    eini_code_begin(&f->ev, param, f->ev.code->chunk);
    s->fill_fn = eini_contract_fill;
    s->user = f;
  }
  union { const char *c; char *v; } out;
  out.c = eini_ref_address(&t->ref[t->out], slot);
  c.out = out.v;
  if (!c.plain_out) {
    for (int k = 0; k < t->nextra; k++) {
      r.extra[k] = eini_ref_address(&t->ref[t->extra + k], slot);
    }
    c.extra_base = r.extra;
  }
  if (c.scaled) {
    c.alpha = eini_factor_run(&ct->factor[0], c.type, param, r.factor);
    c.beta = eini_factor_run(&ct->factor[1], c.type, param, r.factor + 16);
    c.emit_fn = eini_contract_emit_scaled;
    c.emit_user = &c;
  } else if (!c.plain_out) {
    r.emit.t = t;
    r.emit.ev.index_at = r.emit.ev.index_step = NULL;
    r.emit.ev.index_table = NULL;
    r.emit.ev.code = &t->epi;
    if (t->has_epi) eini_code_begin(&r.emit.ev, param, t->epi.chunk);
    c.emit_fn = eini_contract_emit;
    c.emit_user = &r.emit;
  }
  ein_part part = ct->whole;
  if (i >= 0 && !eini_grid_part(&t->choice, &ct->whole, i, &part)) return EIN_OK;
  if (t->kernels != NULL)
    return t->kernels->contract_run(t->kernels->user, &c, &t->choice, &part, r.kernel);
  eini_contract_run(&c, &t->choice, &part, r.kernel);
  return EIN_OK;
}

// ---- lowering ----

static int eini_value_uses(const eini_value *v, int column) {
  int at = eini_find_sorted(v->label, v->nlabel, column);
  if (at < 0) return 0;
  for (int k = 0; k < v->nop; k++) {
    for (int r = 0; r < v->map[k].rows; r++)
      if (v->map[k].coef[(int64_t)r * v->nlabel + at] != 0) return 1;
  }
  return 0;
}

// The pair of a fold and what is folded; *x and *y become the roots of the two factors. -1: none.
static int eini_pair_match(const eini_stmt *s, int *x, int *y) {
  static const struct { int fold, outer, inner; ein_pair pair; } table[] = {
      {EINI_SUM, 0, EINI_OP_MUL, EIN_PAIR_SUM_MUL},
      {EINI_FOLD_NONE, 0, EINI_OP_MUL, EIN_PAIR_SUM_MUL},
      {EINI_MIN, 0, EINI_OP_ADD, EIN_PAIR_MIN_ADD},
      {EINI_MAX, 0, EINI_OP_ADD, EIN_PAIR_MAX_ADD},
      {EINI_ANY, 0, EINI_OP_AND, EIN_PAIR_ANY_AND},
      {EINI_SUM, EINI_OP_SQUARE, EINI_OP_SUB, EIN_PAIR_SUM_SQDIFF},
      {EINI_SUM, EINI_OP_ABS, EINI_OP_SUB, EIN_PAIR_SUM_ABSDIFF},
      {EINI_MAX, EINI_OP_ABS, EINI_OP_SUB, EIN_PAIR_MAX_ABSDIFF}};
  const eini_node *root = &s->expr.node[s->expr.n - 1];
  const ein_dtype t = ein_dtype_compute((ein_dtype)root->dtype);
  const int pairs = eini_kind_of(t) == EINI_KCOMPLEX;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const eini_node *v = root;
    int fold = table[i].fold, op = table[i].inner;
    if (t == EIN_BOOL && i < 2) {  // NumPy's sums and products of bools are or and and
      if (!s->numpy) continue;
      if (s->fold == EINI_SUM && root->op == EINI_OP_MUL) return -1;
      continue;
    }
    if (s->fold != fold || (table[i].outer != 0 && v->op != table[i].outer)) continue;
    if (table[i].outer != 0) v = &s->expr.node[v->arg[0]];
    if (v->op != op || (pairs && i > 1)) continue;
    if (ein_dtype_compute((ein_dtype)v->dtype) != t) continue;
    *x = v->arg[0];
    *y = v->arg[1];
    return (int)table[i].pair;
  }
  return -1;
}

#ifndef EINI_SUM_WORK       // tests make it small
#define EINI_SUM_WORK 4096  // least elements of a sum that goes to matrix-vector kernels
#endif

// A sum or an extremum over one operand as it is: a matrix times ones, or plus zeros that change no
// zero, which kernels read as fast as memory allows.
static int eini_plain_sum(const eini_stmt *s) {
  ein_dtype t = ein_dtype_compute((ein_dtype)s->expr.node[s->expr.n - 1].dtype);
  int folds = s->fold == EINI_SUM || s->fold == EINI_MAX || s->fold == EINI_MIN;
  return folds && s->expr.n == 1 && s->noperand == 1 && t != EIN_BOOL &&
         s->expr.node[0].op == EINI_OP_OPERAND && !eini_stmt_empty(s, 0, s->nindex);
}

static ein_status eini_sum_match(eini_lowering *lo, const eini_stmt *s, eini_value *v,
                                 ein_pair *pair, int *yes) {
  const ein_dtype t = (ein_dtype)s->expr.node[0].dtype;
  double work = 1;
  for (int i = 0; i < s->nindex; i++) work *= (double)s->index[i].extent;
  if ((work < EINI_SUM_WORK && !s->order) || work > 9e18) return EIN_OK;
  EINI_TRY(eini_factor_value(lo->g, s, 0, &v[0]));
  memset(&v[1], 0, sizeof v[1]);
  int sum = s->fold == EINI_SUM, one = eini_expr_int(lo->a, &v[1].expr, -1, sum);
  if (one < 0) return EIN_ERR_NO_MEMORY;
  v[1].expr.node[one].dtype = (unsigned char)ein_dtype_compute(t);
  v[1].expr.node[one].re = sum ? 1 : -0.0;
  *pair = sum ? EIN_PAIR_SUM_MUL : s->fold == EINI_MAX ? EIN_PAIR_MAX_ADD : EIN_PAIR_MIN_ADD;
  *yes = 1;
  return EIN_OK;
}

// Is the statement a contraction that the kernels should be asked about? Fills the two factors.
static ein_status eini_contract_match(eini_lowering *lo, const eini_stmt *s, eini_value *v,
                                      ein_pair *pair, int *yes) {
  int x = 0, y = 0, found = eini_pair_match(s, &x, &y);
  const eini_expr *e = &s->expr;
  *yes = 0;
  // Products alone keep -0, which a sum from 0 does not: no kernel that some blocks may not get.
  if (lo->g->ordered && (s->order ? !(s->order & EINI_ORDER_TILES) : s->fold == EINI_FOLD_NONE))
    return EIN_OK;
  if (lo->nkernels > 0 && eini_plain_sum(s)) return eini_sum_match(lo, s, v, pair, yes);
  if (found < 0 || eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  for (int64_t i = 0; i < e->n; i++) {
    if (e->node[i].op == EINI_OP_INDEX) return EIN_OK;
  }
  EINI_TRY(eini_factor_value(lo->g, s, x, &v[0]));
  EINI_TRY(eini_factor_value(lo->g, s, y, &v[1]));
  if (v[0].nop == 0 || v[1].nop == 0) return EIN_OK;
  double m = 1, n = 1, k = 1, work = 1;
  for (int i = 0; i < s->nindex; i++) {
    int p = eini_value_uses(&v[0], i), q = eini_value_uses(&v[1], i);
    double ext = (double)s->index[i].extent;
    work *= ext;
    if (work > 9e18) return EIN_OK;
    if (i >= s->nfree) k *= ext;
    else if (p && !q) m *= ext;
    else if (q && !p) n *= ext;
  }
  *pair = (ein_pair)found;
  if (s->order) *yes = 1;
  else if (lo->nkernels > 0) *yes = k > 1 || (m > 1 && n > 1);
  else *yes = s->fold == EINI_SUM && found == EIN_PAIR_SUM_MUL && k > 1 &&
              (m * n > 1 || work <= 4096);
  if (s->fold == EINI_SUM && work <= 256 && v[0].nop == 1 && v[1].nop == 1) *yes = 1;
  return EIN_OK;
}

// A node without the conversions that change nothing in a store of `type`: those between integers
// no narrower wrap as it does.
static const eini_node *eini_scaled_node(const eini_expr *e, int id, ein_dtype type) {
  const eini_node *v = &e->node[id];
  for (;; v = &e->node[v->arg[0]]) {
    const ein_dtype t = (ein_dtype)v->dtype;
    const int ints = eini_kind_of(type) == EINI_KINT && eini_kind_of(t) == EINI_KINT &&
                     ein_dtype_compute(t) == t && t >= type;
    if (t != type && !ints) return NULL;
    if (v->op != EINI_OP_CAST && (v->op != EINI_OP_ROUNDTO || eini_round_find(t) != NULL)) return v;
  }
}

// Is it operand `op`, or a constant or param times it?
static int eini_scaled_term(const eini_expr *e, int id, int op, ein_dtype type, eini_factor *f) {
  const eini_node *v = eini_scaled_node(e, id, type), *x[2] = {v, NULL};
  if (v != NULL && v->op == EINI_OP_MUL) {
    x[0] = eini_scaled_node(e, v->arg[0], type), x[1] = eini_scaled_node(e, v->arg[1], type);
    if (x[0] == NULL || x[1] == NULL) return 0;
    if (x[0]->op != EINI_OP_OPERAND) v = x[0], x[0] = x[1], x[1] = v;
    if (x[1]->op != EINI_OP_CONST && x[1]->op != EINI_OP_PARAM) return 0;
  }
  if (x[0] == NULL || x[0]->op != EINI_OP_OPERAND || x[0]->arg[0] != op) return 0;
  memset(f, 0, sizeof *f);
  f->from.param = -1;
  if (x[1] == NULL) return 1;
  f->given = 1;
  if (x[1]->op == EINI_OP_PARAM) f->from.param = x[1]->arg[0];
  f->from.re = x[1]->re, f->from.im = x[1]->im, f->from.ival = x[1]->ival;
  return 1;
}

// Is it where(b == 0, 0, b * operand 1), b a param?
static int eini_scaled_where(const eini_expr *e, int id, ein_dtype type, eini_factor *f) {
  const eini_node *v = eini_scaled_node(e, id, type), *x = v, *y;
  if (v == NULL || v->op != EINI_OP_WHERE || !eini_scaled_term(e, v->arg[2], 1, type, f)) return 0;
  const eini_node *q = &e->node[v->arg[0]], *none = eini_scaled_node(e, v->arg[1], type);
  if (q->op != EINI_OP_EQ || none == NULL || none->op != EINI_OP_CONST || none->re != 0) return 0;
  x = &e->node[q->arg[0]], y = &e->node[q->arg[1]];
  f->skip = f->given && x->op == EINI_OP_PARAM && x->arg[0] == f->from.param &&
            y->op == EINI_OP_CONST && y->re == 0 && y->im == 0;
  return f->skip;
}

// Is what follows the folds alpha * fold + beta * (extra 0), all in the compute dtype?
static int eini_scaled_match(const eini_expr *e, const eini_task *t, ein_dtype type,
                             eini_factor *f) {
  const ein_dtype to = t->ref[t->out].dtype;
  if (t->nextra > 1 || t->nepi_iota > 0 || type == EIN_BOOL || to != type) return 0;
  if (t->nextra == 0) return eini_scaled_term(e, (int)e->n - 1, 0, type, &f[0]);
  if (t->ref[t->extra].dtype != type) return 0;
  const eini_node *v = eini_scaled_node(e, (int)e->n - 1, type);
  if (v == NULL || v->op != EINI_OP_ADD) return 0;
  const int first = eini_scaled_term(e, v->arg[0], 0, type, &f[0]);
  if (!first && !eini_scaled_term(e, v->arg[1], 0, type, &f[0])) return 0;
  const int other = v->arg[first];
  if (eini_scaled_where(e, other, type, &f[1])) return 1;
  if (!eini_scaled_term(e, other, 1, type, &f[1])) return 0;
  if (f[1].given) return 1;
  f[1].given = 1, f[1].from.re = 1, f[1].from.ival = 1;  // which loses complex infinities
  return eini_kind_of(type) != EINI_KCOMPLEX;
}

// Streams of a contraction, loops grouped, merged and ordered. t->reduced holds the group.
static ein_status eini_contract_streams(const eini_lowering *lo, const eini_stmt *s,
                                        const eini_stmt *f, int via, const eini_value *v,
                                        eini_task *t) {
  eini_epilogue ep;
  t->nop = v[0].nop + v[1].nop;
  t->pos = -1;
  EINI_TRY(eini_epilogue_begin(lo, s, f, via, t->nop, t, &ep));
  for (int i = 0; i < s->nindex; i++) {
    int p = eini_value_uses(&v[0], i), q = eini_value_uses(&v[1], i);
    t->reduced[i] = i >= s->nfree ? EINI_GROUP_K : p && !q ? EINI_GROUP_M
                    : q && !p ? EINI_GROUP_N : EINI_GROUP_BATCH;
  }
  for (int side = 0, stream = 0; side < 2; side++) {
    t->contract->first[side] = stream;
    for (int k = 0; k < v[side].nop; k++, stream++) {
      EINI_TRY(eini_stream_tensor(lo, s, t, stream, v[side].op[k], &v[side].map[k],
                                  v[side].label));
    }
  }
  EINI_TRY(eini_epilogue_end(lo, s, f, &ep, t->contract->c.type, t));
  eini_contract_task *ct = t->contract;
  ct->c.scaled = f != NULL && !ct->c.ordered &&
                 eini_scaled_match(&ep.e, t, ct->c.type, ct->factor);
  return EIN_OK;
}

// Pointers to a group's strides of n streams from `first` on.
static ein_status eini_group_strides(eini_arena *a, const eini_task *t, int first, int n, int start,
                                     const int64_t ***list) {
  *list = EINI_NEW(a, const int64_t *, n + 1);
  if (*list == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) (*list)[k] = t->stride + (int64_t)(first + k) * t->nindex + start;
  return EIN_OK;
}

// Is the expression the product of all its operands, each once, as they are stored?
static int eini_is_product(const eini_value *v, const ein_dtype *dtype, ein_dtype type) {
  int seen = 0;
  for (int k = 0; k < v->nop; k++) {
    if (dtype[k] != type) return 0;
  }
  for (int64_t i = 0; i < v->expr.n; i++) {
    const eini_node *x = &v->expr.node[i];
    if (x->op != EINI_OP_MUL && x->op != EINI_OP_OPERAND) return 0;
    if (x->dtype != (unsigned char)type) return 0;
    seen += x->op == EINI_OP_OPERAND;
  }
  return v->nop > 1 && seen == v->nop;
}

static ein_status eini_contract_sides(const eini_lowering *lo, eini_task *t, eini_value *v,
                                      const int *start) {
  eini_contract_task *ct = t->contract;
  for (int side = 0; side < 2; side++) {
    ein_side *s = side ? &ct->c.q : &ct->c.p;
    int first = ct->first[side], n = v[side].nop;
    int row = start[side ? EINI_GROUP_N : EINI_GROUP_M];
    EINI_TRY(eini_group_strides(lo->a, t, first, n, row, &ct->stride[side][0]));
    EINI_TRY(eini_group_strides(lo->a, t, first, n, start[EINI_GROUP_K], &ct->stride[side][1]));
    EINI_TRY(eini_group_strides(lo->a, t, first, n, start[EINI_GROUP_BATCH], &ct->stride[side][2]));
    ein_dtype *od = ct->dtype[side] = EINI_NEW(lo->a, ein_dtype, n + 1);
    if (od == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < n; k++) od[k] = t->ref[first + k].dtype;
    int product = eini_is_product(&v[side], od, ct->c.type);
    EINI_TRY(eini_expr_to(lo->a, &v[side].expr, ct->c.type));
    EINI_TRY(eini_code_compile(lo->a, &v[side].expr, od, lo->g->function, lo->fast,
                               &ct->code[side]));
    s->nop = n;
    s->dtype = od;
    s->base = EINI_NEW(lo->a, const char *, n + 1);  // of NULLs, while planning
    if (s->base == NULL) return EIN_ERR_NO_MEMORY;
    s->row = ct->stride[side][0];
    s->k = ct->stride[side][1];
    s->batch = ct->stride[side][2];
    s->form = n == 1 && ct->code[side].plain == 0 && ct->code[side].type == ct->c.type
                  ? EIN_FORM_PLAIN : product ? EIN_FORM_PRODUCT
              : n == 1 && v[side].expr.n == 2 && v[side].expr.node[1].op == EINI_OP_CAST &&
                      v[side].expr.node[0].op == EINI_OP_OPERAND
                  ? EIN_FORM_CONVERT : EIN_FORM_FUNCTION;
    s->conj = s->form == EIN_FORM_PLAIN && ct->code[side].conj;
  }
  return EIN_OK;
}

// Asks every provider; the fastest prediction wins, the first named one on a tie.
static ein_status eini_contract_choose(const eini_lowering *lo, eini_task *t) {
  const ein_contract *c = &t->contract->c;
  ein_choice h;
  int best = -1;
  t->candidate = EINI_NEW(lo->a, eini_candidate, lo->nkernels + 1);
  if (t->candidate == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i <= lo->nkernels; i++) {
    const ein_kernels *p = i < lo->nkernels ? lo->kernels[i] : NULL;
    memset(&h, 0, sizeof h);
    if (c->ordered && (best >= 0 || (p != NULL && !p->ordered))) continue;  // the first that can
    if (p == NULL ? !eini_contract_plan(c, lo->width, &h)
                  : p->contract_plan == NULL || !p->contract_plan(p->user, c, lo->width, &h)) {
      continue;
    }
    eini_candidate_add(t, p == NULL ? "portable" : p->name, &h);
    if (best >= 0 && h.seconds >= t->choice.seconds) continue;
    best = i;
    t->choice = h;
    t->kernels = p;
  }
  const int64_t *grid = t->choice.grid;
  t->parts = grid[0] * grid[1] * grid[2] <= lo->width ? (int)(grid[0] * grid[1] * grid[2]) : 1;
  return EIN_OK;
}

// Q gets the factor with the index along which the output is densest, so that the order in which
// the factors are written does not matter.
static ein_status eini_contract_orient(const eini_lowering *lo, const eini_stmt *s,
                                       const eini_stmt *f, int via, eini_value *v) {
  const eini_stmt *last = f != NULL ? f : s;
  int64_t *stride = EINI_NEW(lo->a, int64_t, last->nindex), offset, least = INT64_MAX;
  int *column = NULL, swap = 0;
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_access_strides(last, last->nfree, &last->out_map, NULL,
                               lo->home[last->out].stride, stride, &offset));
  if (f != NULL) EINI_TRY(eini_fused_columns(lo, s, f, via, &column));
  for (int c = 0; c < last->nindex; c++) {
    int i = column != NULL ? column[c] : c, p = i < 0 ? 0 : eini_value_uses(&v[0], i);
    if (i < 0 || i >= s->nfree || s->index[i].extent < 2) continue;
    if (p == eini_value_uses(&v[1], i)) continue;
    if (eini_abs64(stride[c]) < least) least = eini_abs64(stride[c]), swap = p;
  }
  const eini_value x = v[0];
  if (swap) v[0] = v[1], v[1] = x;
  return EIN_OK;
}

static ein_status eini_contract_extra(const eini_lowering *lo, eini_task *t) {
  eini_contract_task *ct = t->contract;
  ct->extra_dtype = EINI_NEW(lo->a, ein_dtype, t->nextra + 1);
  ct->c.extra_base = EINI_NEW(lo->a, const char *, t->nextra + 1);
  if (ct->extra_dtype == NULL || ct->c.extra_base == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < t->nextra; k++) ct->extra_dtype[k] = t->ref[t->extra + k].dtype;
  ct->c.extra_dtype = ct->extra_dtype;
  return EIN_OK;
}

static ein_status eini_contract_lower(eini_lowering *lo, const eini_stmt *s, const eini_stmt *f,
                                      int via, eini_task *t, int *yes) {
  eini_value v[2];
  ein_pair pair = EIN_PAIR_SUM_MUL;
  EINI_TRY(eini_contract_match(lo, s, v, &pair, yes));
  if (!*yes) return EIN_OK;
  if (!s->order) EINI_TRY(eini_contract_orient(lo, s, f, via, v));
  memset(t, 0, sizeof *t);
  t->cut = -1;
  t->kind = EINI_TASK_CONTRACT;
  t->stmt = s;
  t->fused = f;
  eini_contract_task *ct = t->contract = EINI_NEW(lo->a, eini_contract_task, 1);
  if (ct == NULL) return EIN_ERR_NO_MEMORY;
  ct->c.pair = pair;
  ct->c.unsplit = lo->unsplit;
  ct->c.ordered = s->order != 0;
  ct->c.type = ein_dtype_compute((ein_dtype)s->expr.node[s->expr.n - 1].dtype);
  EINI_TRY(eini_contract_streams(lo, s, f, via, v, t));
  int live = eini_task_merge(t), start[5], at = 0;
  for (int gr = 0; gr < 5; gr++) {
    while (at < live && t->reduced[at] < gr) at++;
    start[gr] = at;
  }
  ein_axes *axes[4] = {&ct->c.batch, &ct->c.m, &ct->c.n, &ct->c.k};
  start[4] = live;
  for (int gr = 0; gr < 4; gr++) {
    axes[gr]->n = start[gr + 1] - start[gr];
    axes[gr]->extent = t->extent + start[gr];
  }
  EINI_TRY(eini_contract_sides(lo, t, v, start));
  const int64_t *out = t->stride + (int64_t)t->out * t->nindex;
  ct->c.out_batch = out + start[EINI_GROUP_BATCH];
  ct->c.out_m = out + start[EINI_GROUP_M];
  ct->c.out_n = out + start[EINI_GROUP_N];
  ct->c.out_dtype = t->ref[t->out].dtype;
  ct->c.plain_out = !t->has_epi && t->ref[t->out].dtype == ct->c.type;
  ct->c.nextra = t->nextra;
  for (int k = 0; k < 3; k++) {
    EINI_TRY(eini_group_strides(lo->a, t, t->extra, t->nextra, start[k], &ct->extra[k]));
  }
  ct->c.extra_batch = ct->extra[0];
  ct->c.extra_m = ct->extra[1];
  ct->c.extra_n = ct->extra[2];
  EINI_TRY(eini_contract_extra(lo, t));
  ct->whole.batch[1] = eini_axes_size(&ct->c.batch);
  ct->whole.m[1] = eini_axes_size(&ct->c.m);
  ct->whole.n[1] = eini_axes_size(&ct->c.n);
  EINI_TRY(eini_contract_choose(lo, t));
  *yes = t->ncandidate > 0;
  if (!*yes) return EIN_OK;
  eini_contract_chunks(t);
  eini_contract_room r;
  memset(&r, 0, sizeof r);
  t->scratch = eini_contract_layout(t, &r, NULL);
  return EIN_OK;
}

// ================================================================================================
// >>leaves  long folds with few results
// Takes a fold that threads could not share; gives the fold of its leaves, statements as any other.
// ================================================================================================

#ifndef EINI_LEAF_WORK       // tests make it small
#define EINI_LEAF_WORK 32768  // least elements of a leaf
#endif
#define EINI_LEAVES 64
#define EINI_LEAF_RESULTS 256 // folds with more results have enough for threads to cut

// How a fold is cut: column c in `leaves` leaves of `size` and a rest. The shape alone decides, so
// that results do not depend on the number of threads.
typedef struct eini_leaves {
  int column;
  int64_t leaves, size, rest;
} eini_leaves;

static int eini_leaves_of(const ein_graph *g, const eini_stmt *s, eini_leaves *f) {
  double results = 1, work = 1;
  int fold = s->fold, best = -1;
  double longest = 0;
  if (fold != EINI_SUM && fold != EINI_MAX && fold != EINI_MIN && fold != EINI_PROD &&
      fold != EINI_ANY && fold != EINI_ALL && !(g->ordered && fold == EINI_LOGSUMEXP)) {
    return 0;
  }
  for (int i = 0; i < s->nindex; i++) {
    work *= (double)s->index[i].extent;
    if (i < s->nfree) results *= (double)s->index[i].extent;
  }
  if (results < 1 || results > EINI_LEAF_RESULTS || work < 2 * EINI_LEAF_WORK * results ||
      s->noperand == 0 || s->rest != EIN_REST_ERROR) {
    return 0;
  }
  // The reduced index that moves the first operands most: leaves are then runs of memory.
  for (int c = s->nfree; c < s->nindex; c++) {
    double reach = 0;
    if (s->index[c].extent < 16) continue;
    for (int k = 0; k < s->noperand; k++) {
      double size = 1;
      const eini_tensor *t = &g->tensor[s->operand[k]];
      for (int r = s->proj[k].rows - 1; r >= 0; r--) {
        double x = size * fabs((double)s->proj[k].coef[(int64_t)r * s->nindex + c]);
        if (x > reach) reach = x;
        size *= (double)t->shape[r];
      }
    }
    if (reach > longest) longest = reach, best = c;
  }
  if (best < 0) return 0;
  for (int64_t i = 0; i < s->expr.n; i++) {
    if (s->expr.node[i].op == EINI_OP_INDEX && s->expr.node[i].arg[0] == best) return 0;
  }
  double want = work / results / EINI_LEAF_WORK;
  int64_t e = s->index[best].extent, n = want > EINI_LEAVES ? EINI_LEAVES : (int64_t)want;
  f->column = best;
  f->size = eini_ceil_div(e, n);
  f->leaves = e / f->size;
  f->rest = e % f->size;
  return f->leaves > 1;
}

// T[leaf, free] over one leaf (or, with `rest`, over what is left); appended to the graph.
static ein_status eini_leaf_stmt(ein_graph *g, const eini_stmt *from, const eini_leaves *f,
                                 int rest, int out) {
  eini_stmt *s;
  int n = from->nindex, cols = n + 1;  // the leaf comes first
  EINI_TRY(eini_graph_add_stmt(g, out, cols, from->noperand, from->operand, &s));
  s->nfree = from->nfree + 1;
  s->fold = from->fold;
  s->numpy = from->numpy;
  s->pos = from->pos;
  s->line = from->line;
  s->index[0].name = "leaf";
  s->index[0].extent = rest ? 1 : f->leaves;
  for (int i = 0; i < n; i++) s->index[i + 1] = from->index[i];
  s->index[f->column + 1].extent = rest ? f->rest : f->size;
  s->out_map.coef[0] = 1;
  s->out_map.offset[0] = rest ? f->leaves : 0;
  for (int i = 0; i < from->nfree; i++) s->out_map.coef[(int64_t)(i + 1) * cols + i + 1] = 1;
  for (int k = 0; k < from->noperand; k++) {
    const ein_zmap *m = &from->proj[k];
    for (int r = 0; r < m->rows; r++) {
      int64_t step = m->coef[(int64_t)r * n + f->column] * f->size;
      for (int c = 0; c < n; c++) {
        s->proj[k].coef[(int64_t)r * cols + c + 1] = m->coef[(int64_t)r * n + c];
      }
      s->proj[k].coef[(int64_t)r * cols] = rest ? 0 : step;
      s->proj[k].offset[r] = m->offset[r] + (rest ? step * f->leaves : 0);
    }
  }
  s->expr = from->expr;
  s->expr.node = EINI_NEW(&g->arena, eini_node, s->expr.n);
  if (s->expr.node == NULL) return EIN_ERR_NO_MEMORY;
  s->expr.cap = s->expr.n;
  for (int64_t i = 0; i < s->expr.n; i++) {
    s->expr.node[i] = from->expr.node[i];
    if (s->expr.node[i].op == EINI_OP_INDEX) s->expr.node[i].arg[0]++;
  }
  s->type = from->type;
  if (g->tensor[out].dtype_open) g->tensor[out].dtype = ein_dtype_compute(from->type);
  return EIN_OK;
}

// Statement i becomes the fold of its leaves, which are appended to the graph.
static ein_status eini_leaf_split(ein_graph *g, int64_t i, const eini_leaves *f) {
  eini_arena *a = &g->arena;
  eini_stmt s = g->stmt[i];  // the table may move
  int64_t *shape = EINI_NEW(a, int64_t, s.nfree + 1);
  int out;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  shape[0] = f->leaves + (f->rest > 0);
  for (int k = 0; k < s.nfree; k++) shape[k + 1] = s.index[k].extent;
  EINI_TRY(
      eini_graph_add_tensor(g, "T.leaf", 6, EIN_ROLE_TEMP, EIN_NONE, s.nfree + 1, shape, &out));
  EINI_TRY(eini_leaf_stmt(g, &s, f, 0, out));
  if (f->rest > 0) EINI_TRY(eini_leaf_stmt(g, &s, f, 1, out));
  g->tensor[out].dtype_open = 0;
  eini_stmt *t = &g->stmt[i];
  int n = s.nfree + 1;
  t->nindex = n;
  t->index = EINI_NEW(a, eini_index, n);
  t->operand = EINI_NEW(a, int, 1);
  t->proj = EINI_NEW(a, ein_zmap, 1);
  if (t->index == NULL || t->operand == NULL || t->proj == NULL) return EIN_ERR_NO_MEMORY;
  t->noperand = 1;
  t->operand[0] = out;
  for (int k = 0; k < s.nfree; k++) t->index[k] = s.index[k];
  t->index[s.nfree].name = "leaf";
  t->index[s.nfree].extent = shape[0];
  EINI_TRY(eini_zmap_new(a, s.out_map.rows, n, &t->out_map));
  EINI_TRY(eini_zmap_new(a, n, n, t->proj));
  for (int r = 0; r < s.out_map.rows; r++) {
    t->out_map.offset[r] = s.out_map.offset[r];
    for (int k = 0; k < s.nfree; k++) {
      t->out_map.coef[(int64_t)r * n + k] = s.out_map.coef[(int64_t)r * s.nindex + k];
    }
  }
  t->proj[0].coef[s.nfree] = 1;
  for (int k = 0; k < s.nfree; k++) t->proj[0].coef[(int64_t)(k + 1) * n + k] = 1;
  memset(&t->expr, 0, sizeof t->expr);
  int x = eini_expr_add(a, &t->expr, EINI_OP_OPERAND, s.pos, 0, 0, 0);
  if (x < 0) return EIN_ERR_NO_MEMORY;
  t->expr.node[x].dtype = (unsigned char)g->tensor[out].dtype;
  return EIN_OK;
}

// Cuts every fold that is long and has few results, so that threads share it.
static ein_status eini_leaf_graph(ein_graph *g) {
  int64_t n = g->nstmt, at = 0;
  eini_stmt *list = EINI_NEW(&g->arena, eini_stmt, 3 * n + 1);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    eini_leaves f;
    if (eini_leaves_of(g, &g->stmt[i], &f)) EINI_TRY(eini_leaf_split(g, i, &f));
    for (int64_t k = n; k < g->nstmt; k++) list[at++] = g->stmt[k];
    list[at++] = g->stmt[i];
    g->nstmt = n;
  }
  g->stmt = list;
  g->nstmt = at;
  g->capstmt = 3 * n + 1;
  return EIN_OK;
}

// ================================================================================================
// >>order  folds whose additions have one order
// Takes the statements of a graph; gives statements whose values do not depend on how their free
// indices are cut, and that need no other cuts: long folds with few results become folds of leaves,
// every other fold is told its order. A graph so made says `ordered`.
// ================================================================================================

// Does the fold give the same bits in every order? Integers wrap, logic and positions are exact.
static int eini_order_exact(const ein_graph *g, const eini_stmt *s) {
  switch (s->fold) {
    case EINI_FOLD_NONE: case EINI_ANY: case EINI_ALL: case EINI_ARGMAX: case EINI_ARGMIN: return 1;
    default: break;
  }
  const ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  return s->fold < EINI_FOLD_USER &&
         eini_kind_of(eini_fold_value_dtype(g, s->fold, value, s->numpy)) < EINI_KREAL;
}

// May the index be cut for places, or walked in slices? Only reduced ones may not.
EINI_UNUSED static int eini_order_cuts(const ein_graph *g, const eini_stmt *s, int index) {
  return !g->ordered || index < s->nfree || eini_order_exact(g, s);
}

// Statement i, a mean, becomes the sum into a temporary, and its division is appended.
static ein_status eini_order_mean(ein_graph *g, int64_t i) {
  eini_arena *a = &g->arena;
  const eini_stmt s = g->stmt[i];
  const ein_dtype type = ein_dtype_compute(s.type);
  int64_t *shape = EINI_NEW(a, int64_t, s.nfree + 1);
  double count = 1;
  int sum;
  eini_stmt *t;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s.nfree; k++) shape[k] = s.index[k].extent;
  for (int k = s.nfree; k < s.nindex; k++) count *= (double)s.index[k].extent;
  EINI_TRY(eini_graph_add_tensor(g, "T.sum", 5, EIN_ROLE_TEMP, type, s.nfree, shape, &sum));
  EINI_TRY(eini_graph_add_stmt(g, s.out, s.nfree, 1, &sum, &t));
  g->tensor[s.out].nstmt--;  // statement i no longer defines it
  g->tensor[sum].nstmt++;
  t->pos = s.pos;
  t->line = s.line;
  t->numpy = s.numpy;
  for (int k = 0; k < s.nfree; k++) {
    t->index[k] = s.index[k];
    t->proj[0].coef[(int64_t)k * s.nfree + k] = 1;
  }
  for (int r = 0; r < s.out_map.rows; r++) {
    t->out_map.offset[r] = s.out_map.offset[r];
    for (int k = 0; k < s.nfree; k++)
      t->out_map.coef[(int64_t)r * s.nfree + k] = s.out_map.coef[(int64_t)r * s.nindex + k];
  }
  // In f64, as the fold's own division.
  int x = eini_expr_add(a, &t->expr, EINI_OP_OPERAND, s.pos, 0, 0, 0);
  int y = x < 0 ? -1 : eini_expr_add(a, &t->expr, EINI_OP_CAST, s.pos, x, 0, 0);
  int z = y < 0 ? -1 : eini_expr_real(a, &t->expr, s.pos, count);
  int root = eini_expr_pair(a, &t->expr, EINI_OP_DIV, y, z);
  root = root < 0 ? -1 : eini_expr_add(a, &t->expr, EINI_OP_CAST, s.pos, root, 0, 0);
  if (root < 0) return EIN_ERR_NO_MEMORY;
  t->expr.node[y].dtype = EIN_F64;
  t->expr.node[root].dtype = (unsigned char)type;
  EINI_TRY(eini_stmt_finish(g, t, NULL));
  t->type = s.type;
  eini_stmt *u = &g->stmt[i];
  u->out = sum;
  u->fold = EINI_SUM;
  u->type = type;
  EINI_TRY(eini_expr_to(a, &u->expr, type));
  EINI_TRY(eini_zmap_new(a, s.nfree, s.nindex, &u->out_map));
  for (int k = 0; k < s.nfree; k++) u->out_map.coef[(int64_t)k * s.nindex + k] = 1;
  return EIN_OK;
}

// Means whose sums have leaves become sums and divisions.
static ein_status eini_order_means(ein_graph *g) {
  int64_t n = g->nstmt, at = 0;
  eini_stmt *list = EINI_NEW(&g->arena, eini_stmt, 2 * n + 1);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) {
    eini_stmt sum = g->stmt[i];
    eini_leaves f;
    sum.fold = EINI_SUM;
    if (g->stmt[i].fold == EINI_MEAN && eini_kind_of(sum.type) == EINI_KREAL &&
        eini_leaves_of(g, &sum, &f))
      EINI_TRY(eini_order_mean(g, i));
    list[at++] = g->stmt[i];
    for (int64_t k = n; k < g->nstmt; k++) list[at++] = g->stmt[k];
    g->nstmt = n;
  }
  g->stmt = list;
  g->nstmt = at;
  g->capstmt = 2 * n + 1;
  return EIN_OK;
}

// Is the fold best taken along reduced indices? The shape says so: with few results, or where one
// of them moves the last axis of the largest operand. *run: the values it moves over, in steps of
// one.
static int eini_order_across(const ein_graph *g, const eini_stmt *s, int64_t *run) {
  double results = 1, most = 0;
  int across = 0, reduced = 0;
  *run = 1;
  for (int i = 0; i < s->nindex; i++) {
    if (i < s->nfree) results *= (double)s->index[i].extent;
    else if (s->index[i].extent > 1) reduced = 1;
    if (i >= s->nfree && s->index[i].extent == 0) return 0;
  }
  for (int k = 0; k < s->noperand; k++) {
    const ein_zmap *m = &s->proj[k];
    double size = 1;
    for (int r = 0; r < m->rows; r++) size *= (double)g->tensor[s->operand[k]].shape[r];
    if (m->rows == 0 || size <= most) continue;
    const int64_t *last = m->coef + (int64_t)(m->rows - 1) * m->cols;
    int best = -1;  // of the indices that move the last axis the one in the least steps
    for (int c = 0; c < m->cols; c++) {
      if (last[c] == 0 || s->index[c].extent < 2) continue;
      if (best < 0 || eini_abs64(last[c]) < eini_abs64(last[best])) best = c;
    }
    most = size;
    across = best >= s->nfree && s->index[best].extent >= 16;
    *run = best < 0 || eini_abs64(last[best]) > 1 ? 1 : s->index[best].extent;
  }
  return !reduced || results < 16 ? reduced : across;
}

#define EINI_ORDER_AXES 12  // a contraction of more indices or factors goes without tiles
#define EINI_ORDER_FACTORS 6

// Is the fold a contraction, or a plain sum that is one with ones, for tiles? Long runs of values
// that are summed as they are stored are faster without, and few sums along reduced indices.
static ein_status eini_order_tiles(ein_graph *g, const eini_stmt *s, int *yes) {
  int x, y, pair = eini_pair_match(s, &x, &y), sum = s->fold == EINI_SUM && eini_plain_sum(s);
  double side[2] = {1, 1}, work = 1, results = 1;
  eini_value v[2];
  *yes = 0;
  if ((pair < 0 && !sum) || s->nindex > EINI_ORDER_AXES || eini_stmt_empty(s, 0, s->nindex))
    return EIN_OK;
  for (int i = 0; i < s->nindex; i++) {
    work *= (double)s->index[i].extent;
    if (i < s->nfree) results *= (double)s->index[i].extent;
  }
  if (sum) {
    int64_t run;
    const int across = eini_order_across(g, s, &run);
    const ein_dtype type = g->tensor[s->operand[0]].dtype;
    const int stored = eini_kind_of(type) == EINI_KREAL && type == ein_dtype_compute(type);
    *yes = work < 9e18 && results >= (across ? 512 : 16) &&
           (!stored || run < (across ? EINI_CHUNK : 2 * EINI_LANES));
    return EIN_OK;
  }
  for (int64_t i = 0; i < s->expr.n; i++)
    if (s->expr.node[i].op == EINI_OP_INDEX) return EIN_OK;
  EINI_TRY(eini_factor_value(g, s, x, &v[0]));
  EINI_TRY(eini_factor_value(g, s, y, &v[1]));
  for (int i = 0; i < s->nfree; i++) {
    int p = eini_value_uses(&v[0], i), q = eini_value_uses(&v[1], i);
    if (p != q) side[q] *= (double)s->index[i].extent;
  }
  *yes = side[0] * side[1] >= 16 && work < 9e18 && v[0].nop > 0 && v[1].nop > 0 &&
         v[0].nop <= EINI_ORDER_FACTORS && v[1].nop <= EINI_ORDER_FACTORS;
  return EIN_OK;
}

static ein_status eini_order_graph(ein_graph *g) {
  g->ordered = 1;
  EINI_TRY(eini_order_means(g));
  EINI_TRY(eini_leaf_graph(g));
  for (int64_t i = 0; i < g->nstmt; i++) {
    eini_stmt *s = &g->stmt[i];
    int tiles = 0;
    int64_t run;
    s->order = 0;
    if (eini_order_exact(g, s)) continue;
    EINI_TRY(eini_order_tiles(g, s, &tiles));
    s->order = (eini_order_across(g, s, &run) ? EINI_ORDER_ACROSS : EINI_ORDER_DOWN) |
               (tiles ? EINI_ORDER_TILES : 0);
  }
  return EIN_OK;
}

// ================================================================================================
// >>group  statements that run inside one loop nest
// Takes units (statements with what is fused into them) in order; finds runs of them that share one
// or two free indices, so that temporaries between them need only a block of it and stay in a
// cache. Invariant: a unit reads of the group's tensors only the block at hand.
// ================================================================================================

typedef struct eini_unit {
  const eini_stmt *s, *f;       // f: the consumer fused into s, or NULL
  int via, out;
  int *column;                  // f's columns as indices of s
  int loop[2];                  // index of s that each loop of the group is
} eini_unit;

// Where a slot of a group's tasks points: a slot of the plan or a place among its temporaries.
typedef struct eini_window {
  int slot;                     // -1: local, at offset; -2: a value, not an address
  int64_t offset;
  int64_t step[2];
} eini_window;

typedef struct eini_group {
  int nloop;
  int64_t extent[2], block[2];
  int ntask;
  eini_task *task[2];           // whole blocks, and the shorter last one
  eini_window *window[2];       // window 0 is the zero of values
  int nwindow[2];
  size_t local_bytes, scratch;
  double saved;                 // bytes of temporaries that are never stored
} eini_group;

// The index that alone, and as it is, makes a coordinate; -1: another form.
static int eini_plain_row(const ein_zmap *m, int r) {
  int found = -1;
  if (m->offset[r] != 0) return -1;
  for (int c = 0; c < m->cols; c++) {
    int64_t k = m->coef[(int64_t)r * m->cols + c];
    if (k != 0 && (k != 1 || found >= 0)) return -1;
    if (k != 0) found = c;
  }
  return found;
}

static int eini_map_uses(const ein_zmap *m, int column) {
  int n = 0;
  for (int r = 0; r < m->rows; r++) n += m->coef[(int64_t)r * m->cols + column] != 0;
  return n;
}

// Operand k of a unit: s's, then f's but the fused one. *map is its access, *column as in the unit.
static int eini_unit_operand(const eini_unit *u, int k, const ein_zmap **map, const int **column) {
  int f = k - u->s->noperand;
  *column = f < 0 ? NULL : u->column;
  if (f < 0) {
    *map = &u->s->proj[k];
    return u->s->operand[k];
  }
  if (u->f == NULL || f >= u->f->noperand) return -1;
  *map = &u->f->proj[f];
  return u->f->operand[f];
}

static int eini_unit_reads(const eini_unit *u, int id) {
  const ein_zmap *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(u, k, &m, &column)) >= 0; k++)
    if (t == id) return 1;
  return 0;
}

// Most units of a group. Where more could share a loop, one temporary in so many is stored; and the
// search for groups takes time in proportion to the units.
enum { EINI_GROUP_UNITS = 64 };

// The search for groups.
typedef struct eini_trail {
  const ein_graph *g;
  const eini_unit *unit;
  int nunit;
  const ein_rates *rates;
  int *made, *first, *last;     // per tensor: the unit that makes it, those that read it
  int *axis;                    // per tensor, of one loop: axis + 1 that it runs over; -1: made in
                                //   the group, without a plain axis; 0 between searches
  char *local;                  // per tensor: made and read in the group only; 0 between searches
  int64_t *place;               // per tensor: of local ones, among the group's temporaries
  int from, *loop;              // per unit, counted from `from`: index of s
} eini_trail;

// Marks the output of unit u over index i; 0 when it cannot be in a group.
static int eini_trail_out(eini_trail *w, int u, int i) {
  const eini_unit *x = &w->unit[u];
  const eini_stmt *last = x->f != NULL ? x->f : x->s;
  const eini_tensor *t = &w->g->tensor[x->out];
  int found = -1, uses = 0;
  if (i >= x->s->nfree || last->rest != EIN_REST_ERROR || t->nstmt != 1) return 0;
  for (int r = 0; r < last->out_map.rows; r++) {
    for (int c = 0; c < last->out_map.cols; c++) {
      int to = x->f != NULL ? x->column[c] : c;
      if (to != i || last->out_map.coef[(int64_t)r * last->out_map.cols + c] == 0) continue;
      uses++;
      if (eini_plain_row(&last->out_map, r) == c) found = r;
    }
  }
  int whole = found >= 0 && uses == 1 && t->shape[found] == x->s->index[i].extent;
  w->loop[u - w->from] = i;
  w->axis[x->out] = whole ? found + 1 : -1;
  return whole || (t->role != EIN_ROLE_TEMP && uses > 0);
}

// Does unit u continue the group? It must read a tensor of the group, all of them at one index.
static int eini_trail_next(eini_trail *w, int u) {
  const ein_zmap *m;
  const int *column;
  int found = -1;
  for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++) {
    if (w->axis[t] == 0) continue;
    if (w->axis[t] < 0) return 0;
    int c = eini_plain_row(m, w->axis[t] - 1);
    if (c < 0 || eini_map_uses(m, c) != 1) return 0;
    if (column != NULL) c = column[c];
    if (c < 0 || (found >= 0 && c != found)) return 0;
    found = c;
    if (w->unit[u].s->index[c].extent != w->g->tensor[t].shape[w->axis[t] - 1]) return 0;
  }
  return found >= 0 && eini_trail_out(w, u, found);
}

static double eini_tensor_bytes(const eini_tensor *t) {
  double n = (double)ein_dtype_size(t->dtype);
  for (int a = 0; a < t->rank; a++) n *= (double)t->shape[a];
  return n;
}

// What a candidate group of units [from, to] would save.
typedef struct eini_bundle {
  int from, to, nloop;
  int loop[2][EINI_GROUP_UNITS];  // per unit, counted from `from`
  int64_t extent[2], block[2];
  double gain;                  // bytes of traffic
} eini_bundle;

static ein_status eini_trail_make(eini_trail *w, eini_arena *a, const ein_graph *g,
                                  const eini_unit *unit, int nunit, const ein_rates *rates) {
  const ein_zmap *m;
  const int *column;
  memset(w, 0, sizeof *w);
  w->g = g, w->unit = unit, w->nunit = nunit, w->rates = rates;
  w->made = EINI_NEW(a, int, g->ntensor);
  w->first = EINI_NEW(a, int, g->ntensor);
  w->last = EINI_NEW(a, int, g->ntensor);
  w->axis = EINI_NEW(a, int, g->ntensor);
  w->local = EINI_NEW(a, char, g->ntensor);
  w->place = EINI_NEW(a, int64_t, g->ntensor);
  if (w->made == NULL || w->first == NULL || w->last == NULL || w->axis == NULL ||
      w->local == NULL || w->place == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) w->made[t] = w->last[t] = -1, w->first[t] = nunit;
  for (int u = 0; u < nunit; u++) {
    w->made[unit[u].out] = u;
    for (int k = 0, t; (t = eini_unit_operand(&unit[u], k, &m, &column)) >= 0; k++) {
      if (w->first[t] == nunit) w->first[t] = u;
      w->last[t] = u;
    }
  }
  return EIN_OK;
}

// Is tensor t made in [from, to] and read there only?
static int eini_bundle_keeps(const eini_trail *w, int t, int from, int to) {
  return w->g->tensor[t].role == EIN_ROLE_TEMP && w->made[t] >= from && w->made[t] <= to &&
         w->first[t] >= from && w->last[t] <= to;
}

// Marks such tensors; returns their bytes.
static double eini_bundle_mark(const eini_trail *w, int from, int to) {
  double bytes = 0;
  for (int u = from; u <= to; u++) {
    int t = w->unit[u].out;
    w->local[t] = (char)eini_bundle_keeps(w, t, from, to);
    if (w->local[t]) bytes += eini_tensor_bytes(&w->g->tensor[t]);
  }
  return bytes;
}

static void eini_bundle_unmark(const eini_trail *w, int from, int to) {
  for (int u = from; u <= to; u++) w->local[w->unit[u].out] = 0;
}

// Does unit `to`, the last one of a group, read a tensor that is not stored for it?
static int eini_bundle_ends(const eini_trail *w, int from, int to) {
  const ein_zmap *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(&w->unit[to], k, &m, &column)) >= 0; k++)
    if (eini_bundle_keeps(w, t, from, to)) return 1;
  return 0;
}

// Does a block leave only runs of less than a KiB along the innermost axis of an operand?
static int eini_short_runs(const ein_graph *g, int tensor, const ein_zmap *m, const int *column,
                           int loop, int64_t block) {
  int c = m->rows == 0 ? -1 : eini_plain_row(m, m->rows - 1);
  if (c < 0 || (column != NULL ? column[c] : c) != loop) return 0;
  return block * (int64_t)ein_dtype_size(g->tensor[tensor].dtype) < 1024;
}

// What the blocks of a bundle read again, in bytes.
static double eini_bundle_again(const eini_trail *w, const eini_bundle *b) {
  const ein_zmap *m;
  const int *column;
  double again = 0;
  for (int u = b->from; u <= b->to; u++) {
    for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++) {
      double times = w->local[t] ? 0 : 1;
      for (int j = 0; j < b->nloop; j++) {
        int moves = 0, loop = b->loop[j][u - b->from];
        for (int c = 0; c < m->cols; c++)
          moves |= (column != NULL ? column[c] : c) == loop && eini_map_uses(m, c) > 0;
        if (!moves) times *= ceil((double)b->extent[j] / (double)b->block[j]);
        else if (!w->local[t] && eini_short_runs(w->g, t, m, column, loop, b->block[j]))
          times += 8;
      }
      if (times > 1) again += (times - 1) * eini_tensor_bytes(&w->g->tensor[t]);
    }
  }
  return again;
}

// Chooses blocks and weighs: what is not stored, against what every block reads again.
static void eini_bundle_weigh(const eini_trail *w, eini_bundle *b) {
  double rows = 1;
  b->gain = 0;
  while (b->to > b->from && !eini_bundle_ends(w, b->from, b->to)) b->to--;
  if (b->to == b->from) return;
  double bytes = eini_bundle_mark(w, b->from, b->to);
  for (int j = 0; j < b->nloop; j++) rows *= (double)b->extent[j];
  double fit = floor(0.5 * w->rates->fast_bytes / (bytes / rows));
  if (bytes > w->rates->fast_bytes && fit >= 1) {
    int last = b->nloop - 1;
    int64_t e = b->extent[last], most = fit < (double)e ? (int64_t)fit : e;
    if (most >= 16) most -= most % 8;
    b->block[0] = 1;
    b->block[last] = most;
    double blocks = rows / (double)e * (double)eini_ceil_div(e, most);
    double overhead = 1e-6 * (b->to - b->from + 1) * blocks * w->rates->copy_bw;
    b->gain = 2 * bytes - 0.25 * eini_bundle_again(w, b) - overhead;
  }
  eini_bundle_unmark(w, b->from, b->to);
}

// Extends a group that starts at unit `from` with a loop over each axis of its output; the best.
static void eini_bundle_find(eini_trail *w, const eini_bundle *outer, int from,
                             eini_bundle *best) {
  const eini_stmt *s = w->unit[from].s;
  for (int i = 0; i < s->nfree; i++) {
    eini_bundle b;
    memset(&b, 0, sizeof b);
    if (outer != NULL) b = *outer;
    int j = b.nloop++;
    int most = outer != NULL ? outer->to : w->nunit - 1;
    if (most > from + EINI_GROUP_UNITS - 1) most = from + EINI_GROUP_UNITS - 1;
    if (s->index[i].extent < 2 || (j > 0 && b.loop[0][0] == i)) continue;
    w->from = b.from = b.to = from;
    w->loop = b.loop[j];
    b.extent[j] = s->index[i].extent;
    int fits = eini_trail_out(w, from, i);
    while (fits && b.to < most && eini_trail_next(w, b.to + 1) &&
           (j == 0 || b.loop[0][b.to + 1 - from] != b.loop[1][b.to + 1 - from])) {
      b.to++;
    }
    for (int u = from; u <= most && u <= b.to + 1; u++) w->axis[w->unit[u].out] = 0;
    if (!fits) continue;
    eini_bundle_weigh(w, &b);
    if (b.gain > best->gain) *best = b;
    if (j == 0 && b.to > b.from && b.gain <= 0) eini_bundle_find(w, &b, from, best);
  }
}

// ================================================================================================
// >>accuracy  how far results may be from the truth
// Takes statements; gives bounds that hold for any order of a fold, barring overflow and underflow.
// Relative to what the value would be if all operands and terms were positive.
// ================================================================================================

#define EINI_BOUND_NODES 64

// error: of a value, relative to that; less than 0: nothing is known. plain: that is its own size.
typedef struct eini_bound {
  double error;
  int plain;
} eini_bound;

// What rounding to a dtype changes at most; 0: it is exact, or wraps.
static double eini_half_ulp(ein_dtype t) {
  switch (t) {
    case EIN_F16: return ldexp(1, -11);
    case EIN_BF16: return ldexp(1, -8);
    case EIN_F32: case EIN_C64: return ldexp(1, -24);
    case EIN_F64: case EIN_C128: return ldexp(1, -53);
    default: return 0;
  }
}

// One rounding after another.
static double eini_bound_then(double a, double b) { return a < 0 || b < 0 ? -1 : a + b + a * b; }

// n roundings by u each.
static double eini_bound_times(double u, double n) { return expm1(n * log1p(u)); }

// Of a product; a complex one is four products and two sums.
static double eini_half_ulp_product(ein_dtype t) {
  const double u = eini_half_ulp(t);
  return eini_kind_of(t) == EINI_KCOMPLEX ? eini_bound_times(u, 4) : u;
}

static double eini_bound_cast(double error, ein_dtype from, ein_dtype to) {
  const int integer = eini_kind_of(from) < EINI_KREAL;
  const double u = eini_half_ulp(to);
  if (eini_kind_of(to) < EINI_KREAL) return integer ? error : -1;
  if (eini_kind_of(to) < eini_kind_of(from) && !integer) return -1;
  if (integer && (double)ein_dtype_size(from) * 8 <= 1 - log2(u)) return error;
  return !integer && eini_half_ulp(from) >= u ? error : eini_bound_then(error, u);
}

static double eini_bound_worse(double a, double b) { return a < 0 || b < 0 ? -1 : a > b ? a : b; }

// Of a node whose children have bounds b.
static eini_bound eini_bound_node(const eini_expr *e, const eini_node *v, const eini_bound *b) {
  const ein_dtype t = ein_dtype_compute((ein_dtype)v->dtype);
  const int n = eini_node_args(v);
  eini_bound r = {-1, 0}, x[3] = {{0, 1}, {0, 1}, {0, 1}};
  double worst = 0;
  for (int k = 0; k < n; k++) {
    const eini_bound child = b[eini_node_arg(e, v, k)];
    if (k < 3) x[k] = child;
    worst = eini_bound_worse(worst, child.error);
  }
  if (worst < 0) return r;
  const int integer = eini_kind_of(t) < EINI_KREAL, complex = eini_kind_of(t) == EINI_KCOMPLEX;
  const int small = v->exact && v->ival > -2048 && v->ival < 2048;  // no dtype rounds it
  switch (v->op) {
    case EINI_OP_CONST: r.error = small ? 0 : eini_half_ulp(t), r.plain = 1; break;
    case EINI_OP_PARAM: r.error = eini_half_ulp(t), r.plain = 1; break;
    case EINI_OP_INDEX: r.error = 0, r.plain = 1; break;
    case EINI_OP_NEG: case EINI_OP_CONJ: r = x[0]; break;
    case EINI_OP_CAST: r = x[0];
      r.error = eini_bound_cast(r.error, (ein_dtype)e->node[v->arg[0]].dtype, t); break;
    case EINI_OP_ROUNDTO: r = x[0];
      r.error = eini_bound_then(r.error, eini_half_ulp((ein_dtype)v->dtype)); break;
    case EINI_OP_MUL: r.plain = x[0].plain && x[1].plain;
      r.error = eini_bound_then(eini_bound_then(x[0].error, x[1].error), eini_half_ulp_product(t));
      break;
    case EINI_OP_SQUARE: r.plain = x[0].plain;
      r.error = eini_bound_then(eini_bound_then(worst, worst), eini_half_ulp_product(t)); break;
    case EINI_OP_ADD: case EINI_OP_SUB: r.error = eini_bound_then(worst, eini_half_ulp(t)); break;
    case EINI_OP_DIV: r.plain = x[0].plain;
      if (x[1].plain && x[1].error < 1 && !complex)
        r.error = eini_bound_then(eini_bound_then(x[0].error, x[1].error / (1 - x[1].error)),
                                  eini_half_ulp(t));
      break;
    case EINI_OP_MAX: case EINI_OP_MIN: case EINI_OP_RELU: r.error = worst; break;
    case EINI_OP_REAL: case EINI_OP_IMAG: r.error = worst; break;
    case EINI_OP_ABS: if (eini_kind_of((ein_dtype)e->node[v->arg[0]].dtype) < EINI_KCOMPLEX)
        r = x[0];
      break;
    case EINI_OP_WHERE: r.plain = x[1].plain && x[2].plain;
      if (x[0].error <= 0) r.error = eini_bound_worse(x[1].error, x[2].error);
      break;
    default: if (integer && worst <= 0) r.error = 0;  // comparisons, and what integers do
  }
  return r;
}

// What the fold of a statement adds and keeps its partial results in; EIN_NONE: there is no fold.
static ein_dtype eini_stmt_accumulates(const ein_graph *g, const eini_stmt *s) {
  const ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  if (s->fold == EINI_FOLD_NONE) return EIN_NONE;
  return eini_fold_value_dtype(g, s->fold, value, s->numpy);
}

// The error of a statement as it is stored. of: that of each tensor of the graph, less than 0 where
// nothing is known; such operands are taken as they are, and *known becomes 0. slices: into how
// many its folds are cut. Less than 0: nothing is known.
static double eini_stmt_bound(const ein_graph *g, const eini_stmt *s, const double *of,
                              double slices, int *known) {
  eini_bound b[EINI_BOUND_NODES];
  double n = slices;
  *known = 1;
  if (s->expr.n > EINI_BOUND_NODES) return -1;
  for (int64_t i = 0; i < s->expr.n; i++) {
    const eini_node *v = &s->expr.node[i];
    if (v->op != EINI_OP_OPERAND) {
      b[i] = eini_bound_node(&s->expr, v, b);
      continue;
    }
    const double e = of[s->operand[v->arg[0]]];
    *known &= e >= 0;
    b[i].error = e > 0 ? e : 0, b[i].plain = e <= 0;
  }
  const ein_dtype root = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  const ein_dtype t = s->fold == EINI_FOLD_NONE ? ein_dtype_compute(root)
                                                : eini_stmt_accumulates(g, s);
  double e = b[s->expr.n - 1].error;
  if (s->fold != EINI_FOLD_NONE) e = eini_bound_cast(e, root, t);
  for (int c = s->nfree; c < s->nindex; c++) n *= (double)s->index[c].extent;
  if (n < 1) n = 1;
  switch (s->fold) {
    case EINI_SUM: e = eini_bound_then(e, eini_bound_times(eini_half_ulp(t), n - 1)); break;
    case EINI_MEAN: e = eini_bound_then(e, eini_bound_times(eini_half_ulp(t), n)); break;
    case EINI_PROD: e = eini_bound_then(e < 0 ? e : eini_bound_times(e, n),
                                        eini_bound_times(eini_half_ulp_product(t), n - 1));
      break;
    case EINI_FOLD_NONE: case EINI_MAX: case EINI_MIN: break;
    case EINI_ANY: case EINI_ALL: case EINI_ARGMAX: case EINI_ARGMIN: return e <= 0 ? e : -1;
    default: e = -1;
  }
  return eini_bound_cast(e, t, g->tensor[s->out].dtype);
}

// A tensor that several statements fill has the worst of their bounds.
static void eini_bound_set(double *of, unsigned char *defined, int tensor, double e) {
  of[tensor] = defined[tensor] ? eini_bound_worse(of[tensor], e) : e;
  defined[tensor] = 1;
}

// ================================================================================================
// >>overflow  integers that do not fit
// Takes a statement and where its tensors lie; goes through its index space point by point with
// integers of 128 bits, and finds an element whose exact value does not fit. What operations of
// real numbers make is taken as they make it, by the same functions as in section code.
// ================================================================================================

// An integer modulo 2^128 and a bound of its magnitude: up to EINI_WIDE_MOST it is exact.
typedef struct eini_wide {
  uint64_t lo, hi;
  double most;
} eini_wide;

#define EINI_WIDE_MOST 8.507059173023462e37  // 2^126

// The value of a node at one point: integers as wide, others at the start of raw, as a chunk.
typedef struct eini_exact {
  eini_wide wide;
  ein_dtype bad;            // what an operation on the way to it did not fit; EIN_NONE: nothing
  double raw[2 * EINI_LANES];
} eini_exact;

// What a statement's check needs to know.
typedef struct eini_watch {
  const ein_graph *g;
  const eini_stmt *s;
  int *slot;                // per operand
  int64_t *offset;          // in elements
  int64_t **stride;         // of every index
  size_t scratch;
} eini_watch;

// One run of a check; x: where in the index space, v: values of nodes.
typedef struct eini_watcher {
  const eini_watch *w;
  char *const *slot;
  const ein_scalar *param;
  int64_t *x;
  eini_exact *v;
} eini_watcher;

static eini_wide eini_wide_of(int64_t v) {
  eini_wide w;
  w.lo = (uint64_t)v;
  w.hi = v < 0 ? ~(uint64_t)0 : 0;
  w.most = fabs((double)v);
  return w;
}

static eini_wide eini_wide_add(eini_wide a, eini_wide b) {
  a.lo += b.lo;
  a.hi += b.hi + (a.lo < b.lo);
  a.most += b.most;
  return a;
}

static eini_wide eini_wide_neg(eini_wide a) {
  a.lo = (uint64_t)0 - a.lo;
  a.hi = ~a.hi + (a.lo == 0);
  return a;
}

static eini_wide eini_wide_mul(eini_wide a, eini_wide b) {
  const uint64_t low = 0xffffffffu, a0 = a.lo & low, a1 = a.lo >> 32, b0 = b.lo & low;
  const uint64_t b1 = b.lo >> 32, p = a0 * b0, q = a1 * b0 + (p >> 32), r = a0 * b1 + (q & low);
  eini_wide w;
  w.lo = r << 32 | (p & low);
  w.hi = a1 * b1 + (q >> 32) + (r >> 32) + a.lo * b.hi + a.hi * b.lo;
  w.most = a.most > 0 && b.most > 0 ? a.most * b.most : 0;
  return w;
}

static int64_t eini_wide_low(const eini_wide *w) {
  int64_t v;
  memcpy(&v, &w->lo, 8);
  return v;
}

// Does an integer dtype hold it? Others, which integers are converted to, hold what 64 bits do.
static int eini_wide_fits(const eini_wide *w, ein_dtype t) {
  const int64_t v = eini_wide_low(w);
  const int bits = 8 * (int)ein_dtype_size(t), kind = eini_kind_of(t);
  if (!(w->most <= EINI_WIDE_MOST) || w->hi != (v < 0 ? ~(uint64_t)0 : 0)) return 0;
  if (kind > EINI_KINT || kind == EINI_KBOOL || bits == 64) return 1;
  const int64_t top = (int64_t)1 << (kind == EINI_KUINT ? bits : bits - 1);
  return v < top && v >= (kind == EINI_KUINT ? 0 : -top);
}

static int eini_is_whole(ein_dtype compute) { return compute == EIN_I32 || compute == EIN_I64; }

static ein_dtype eini_node_type(const eini_expr *e, int i) {
  return ein_dtype_compute((ein_dtype)e->node[i].dtype);
}

static int64_t eini_raw_whole(ein_dtype t, const void *raw) {
  int32_t i;
  int64_t l;
  memcpy(&i, raw, 4);
  memcpy(&l, raw, 8);
  return t == EIN_I32 ? i : l;
}

// An operation that is no ring's needs the value itself: the number, and what does not fit.
static int64_t eini_exact_number(const eini_watcher *k, int i, ein_dtype *bad) {
  const eini_exact *v = &k->v[i];
  const ein_dtype t = eini_node_type(&k->w->s->expr, i);
  if (*bad == EIN_NONE) *bad = v->bad;
  if (*bad == EIN_NONE && !eini_wide_fits(&v->wide, t)) *bad = t;
  return eini_wide_low(&v->wide);
}

// The same as a chunk, of the node's computation type.
static const void *eini_exact_raw(const eini_watcher *k, int i, ein_dtype *bad) {
  eini_exact *v = &k->v[i];
  const ein_dtype t = eini_node_type(&k->w->s->expr, i);
  if (eini_is_whole(t)) eini_fill_value(t, 0, 0, eini_exact_number(k, i, bad), EINI_LANES, v->raw);
  else if (*bad == EIN_NONE) *bad = v->bad;
  return v->raw;
}

static void eini_exact_leaf(const eini_watcher *k, const eini_node *n, eini_exact *v) {
  const eini_stmt *s = k->w->s;
  const ein_dtype t = ein_dtype_compute((ein_dtype)n->dtype);
  const int o = n->arg[0];
  if (n->op == EINI_OP_INDEX) {
    eini_fill_value(t, (double)k->x[o], 0, k->x[o], EINI_LANES, v->raw);
  } else if (n->op == EINI_OP_PARAM) {
    const ein_scalar *p = &k->param[o];
    eini_fill_value(t, p->re, p->im, eini_f64_to_i64(p->re), EINI_LANES, v->raw);
  } else if (n->op == EINI_OP_CONST) {
    eini_fill_value(t, n->re, n->im, n->ival, EINI_LANES, v->raw);
  } else {
    const ein_dtype stored = k->w->g->tensor[s->operand[o]].dtype;
    int64_t at = k->w->offset[o];
    for (int i = 0; i < s->nindex; i++) at += k->w->stride[o][i] * k->x[i];
    const char *src = k->slot[k->w->slot[o]] + at * (int64_t)ein_dtype_size(stored);
    if (eini_same_storage(stored)) memcpy(v->raw, src, ein_dtype_size(stored));
    else eini_widen(stored, 1, src, v->raw);
  }
  if (eini_is_whole(t)) v->wide = eini_wide_of(eini_raw_whole(t, v->raw));
}

// Integers of integers, all but sums and products.
static eini_wide eini_exact_whole(int op, int64_t x, int64_t y) {
  switch (op) {
    case EINI_OP_FLOORDIV:
      return y == -1 ? eini_wide_neg(eini_wide_of(x)) : eini_wide_of(eini_idiv(x, y));
    case EINI_OP_MOD: return eini_wide_of(eini_imod(x, y));
    case EINI_OP_MAX: return eini_wide_of(x > y ? x : y);
    case EINI_OP_MIN: return eini_wide_of(x < y ? x : y);
    case EINI_OP_RELU: return eini_wide_of(x > 0 ? x : 0);
    case EINI_OP_ABS: return x < 0 ? eini_wide_neg(eini_wide_of(x)) : eini_wide_of(x);
    case EINI_OP_SIGN: return eini_wide_of((x > 0) - (x < 0));
    default: return eini_wide_of(x);  // floor, conj, .. change nothing
  }
}

// Conversions, in two steps where there is no direct one.
static void eini_exact_convert(ein_dtype from, ein_dtype to, const void *src, void *dst) {
  const eini_chunk_fn fn = eini_cast_table[eini_type_column(from)][eini_type_column(to)];
  double mid[2 * EINI_LANES];
  if (from == to) {
    memcpy(dst, src, sizeof mid);
  } else if (fn != NULL) {
    fn(EINI_LANES, src, src, src, dst);
  } else {
    const ein_dtype by = to == EIN_C64 ? EIN_F32 : to == EIN_C128 ? EIN_F64 : eini_real_part(from);
    eini_exact_convert(from, by, src, mid);
    eini_exact_convert(by, to, mid, dst);
  }
}

static int eini_exact_ring(int op) {
  return op == EINI_OP_ADD || op == EINI_OP_SUB || op == EINI_OP_MUL || op == EINI_OP_NEG ||
         op == EINI_OP_SQUARE;
}

// A sum or product of integers: exact modulo 2^128, whatever was too large on the way.
static void eini_exact_arith(const eini_watcher *k, const eini_node *n, eini_exact *v) {
  const eini_exact *a = &k->v[n->arg[0]], *b = eini_ops[n->op].args > 1 ? &k->v[n->arg[1]] : a;
  v->bad = a->bad != EIN_NONE ? a->bad : b->bad;
  switch (n->op) {
    case EINI_OP_ADD: v->wide = eini_wide_add(a->wide, b->wide); break;
    case EINI_OP_SUB: v->wide = eini_wide_add(a->wide, eini_wide_neg(b->wide)); break;
    case EINI_OP_NEG: v->wide = eini_wide_neg(a->wide); break;
    default: v->wide = eini_wide_mul(a->wide, b->wide); break;
  }
}

static ein_status eini_exact_call(const eini_watcher *k, const eini_expr *e, const eini_node *n,
                                  eini_exact *v) {
  const ein_function *f = &k->w->g->function[n->arg[0]];
  const void *in[EINI_ARGS_MAX];
  for (int i = 0; i < n->arg[2]; i++) in[i] = eini_exact_raw(k, eini_node_arg(e, n, i), &v->bad);
  f->fn(1, in, v->raw, f->user);
  return EIN_OK;
}

// Everything that gives no integer, and integers made of reals: by the functions of chunks.
static ein_status eini_exact_chunk(const eini_watcher *k, const eini_expr *e, const eini_node *n,
                                   eini_exact *v) {
  const ein_dtype from = eini_node_type(e, n->arg[0]), t = ein_dtype_compute((ein_dtype)n->dtype);
  const int args = eini_ops[n->op].args;
  const void *in[3] = {NULL, NULL, NULL};
  if (n->op == EINI_OP_CALL) return eini_exact_call(k, e, n, v);
  for (int i = 0; i < 3; i++)
    in[i] = i < args ? eini_exact_raw(k, n->arg[i], &v->bad) : in[0];
  if (n->op == EINI_OP_CAST || eini_is_noop(n, from)) {
    eini_exact_convert(from, t, in[0], v->raw);
    return EIN_OK;
  }
  const eini_chunk_fn fn =
      n->op == EINI_OP_ROUNDTO ? eini_round_find((ein_dtype)n->dtype)
                               : eini_chunk_find(NULL, n->op, n->op == EINI_OP_WHERE ? t : from);
  if (fn == NULL) return EIN_ERR_INTERNAL;
  fn(EINI_LANES, in[0], in[1], in[2], v->raw);
  return EIN_OK;
}

static ein_status eini_exact_node(const eini_watcher *k, int i) {
  const eini_expr *e = &k->w->s->expr;
  const eini_node *n = &e->node[i];
  const ein_dtype t = ein_dtype_compute((ein_dtype)n->dtype);
  const int args = eini_node_args(n);
  eini_exact *v = &k->v[i];
  v->bad = EIN_NONE;
  if (args == 0 && n->op != EINI_OP_CALL) {
    eini_exact_leaf(k, n, v);
    return EIN_OK;
  }
  const ein_dtype from = args > 0 ? eini_node_type(e, eini_node_arg(e, n, 0)) : t;
  if (eini_is_whole(t) && n->op == EINI_OP_WHERE) {  // only what is chosen counts
    const eini_exact *c = &k->v[n->arg[0]];
    const eini_exact *chosen = &k->v[n->arg[*(const uint8_t *)(const void *)c->raw ? 1 : 2]];
    v->wide = chosen->wide;
    v->bad = c->bad != EIN_NONE ? c->bad : chosen->bad;
    return EIN_OK;
  }
  if (!eini_is_whole(t) || !eini_is_whole(from) || n->op == EINI_OP_CALL) {
    EINI_TRY(eini_exact_chunk(k, e, n, v));
    if (eini_is_whole(t)) v->wide = eini_wide_of(eini_raw_whole(t, v->raw));
    return EIN_OK;
  }
  if (eini_exact_ring(n->op)) {
    eini_exact_arith(k, n, v);
    return EIN_OK;
  }
  if (n->op == EINI_OP_CAST || n->op == EINI_OP_ROUNDTO) {
    const ein_dtype to = n->op == EINI_OP_CAST ? t : (ein_dtype)n->dtype;
    v->wide = k->v[n->arg[0]].wide;
    v->bad = k->v[n->arg[0]].bad;
    if (v->bad == EIN_NONE && (n->op == EINI_OP_ROUNDTO || t != from) &&
        !eini_wide_fits(&v->wide, to))
      v->bad = to;
    return EIN_OK;
  }
  const int64_t x = eini_exact_number(k, n->arg[0], &v->bad);
  v->wide = eini_exact_whole(n->op, x, args > 1 ? eini_exact_number(k, n->arg[1], &v->bad) : 0);
  return EIN_OK;
}

// The next values of indices from .. to; 0: there are no more.
static int eini_watch_next(const eini_stmt *s, int64_t *x, int from, int to) {
  for (int i = to - 1; i >= from; i--) {
    if (++x[i] < s->index[i].extent) return 1;
    x[i] = 0;
  }
  return 0;
}

// Takes the value at a point into that of its element.
static void eini_watch_fold(const eini_stmt *s, eini_exact *sum, const eini_exact *v) {
  if (sum->bad == EIN_NONE) sum->bad = v->bad;
  if (s->fold == EINI_SUM) sum->wide = eini_wide_add(sum->wide, v->wide);
  else if (s->fold == EINI_PROD) sum->wide = eini_wide_mul(sum->wide, v->wide);
  else sum->wide = v->wide;
}

static ein_status eini_watch_fail(const eini_watcher *k, const eini_exact *v, ein_dtype t,
                                  char *error, size_t size) {
  const eini_stmt *s = k->w->s;
  const eini_tensor *out = &k->w->g->tensor[s->out];
  eini_text m = eini_text_of(error, error == NULL ? 0 : size);
  if (v->bad != EIN_NONE) eini_say(&m, "an integer on the way to '%s", out->name);
  else eini_say(&m, "the exact value of '%s", out->name);
  for (int r = 0; r < s->out_map.rows; r++) {
    int64_t at = s->out_map.offset[r];
    for (int c = 0; c < s->nfree; c++)
      at += s->out_map.coef[(int64_t)r * s->out_map.cols + c] * k->x[c];
    eini_say(&m, "%s%lld", r == 0 ? "[" : ",", (long long)at);
  }
  eini_say(&m, s->out_map.rows > 0 ? "]'" : "'");
  if (v->bad == EIN_NONE && eini_wide_fits(&v->wide, EIN_I64))
    eini_say(&m, ", %lld,", (long long)eini_wide_low(&v->wide));
  else if (v->bad == EIN_NONE && v->wide.most <= EINI_WIDE_MOST)
    eini_say(&m, ", about %.10g,", ldexp((double)v->wide.hi, 64) + (double)v->wide.lo -
                                       (v->wide.hi >> 63 ? ldexp(1, 128) : 0));
  eini_say(&m, " does not fit %s", ein_dtype_name(v->bad != EIN_NONE ? v->bad : t));
  return EIN_ERR_OVERFLOW;
}

// Checks every element of a statement; the message names the first that does not fit.
static ein_status eini_watch_run(const eini_watch *w, char *const *slot, const ein_scalar *param,
                                 char *scratch, char *error, size_t size) {
  const eini_stmt *s = w->s;
  const int root = (int)s->expr.n - 1, linear = s->fold == EINI_SUM || s->fold == EINI_PROD;
  const ein_dtype t = eini_node_type(&s->expr, root), stored = w->g->tensor[s->out].dtype;
  const int whole = eini_is_whole(t), picks = whole && !linear && s->fold != EINI_FOLD_NONE;
  size_t used = 0;
  eini_watcher k;
  k.w = w;
  k.slot = slot;
  k.param = param;
  k.x = (int64_t *)(void *)eini_nest_carve(scratch, &used, (size_t)s->nindex * 8);
  k.v = (eini_exact *)(void *)(scratch + used);
  memset(k.x, 0, (size_t)s->nindex * 8);
  memset(k.v, 0, (size_t)(root + 1) * sizeof *k.v);
  if (eini_stmt_empty(s, 0, s->nindex)) return EIN_OK;
  do {
    eini_exact sum;
    sum.wide = eini_wide_of(s->fold == EINI_PROD);
    sum.bad = EIN_NONE;
    do {
      for (int i = 0; i <= root; i++) EINI_TRY(eini_exact_node(&k, i));
      eini_exact *v = &k.v[root];
      if (picks) (void)eini_exact_number(&k, root, &v->bad);
      eini_watch_fold(s, &sum, v);
    } while (eini_watch_next(s, k.x, s->nfree, s->nindex));
    if (sum.bad != EIN_NONE) return eini_watch_fail(&k, &sum, t, error, size);
    if (!whole || picks) continue;
    if (!eini_wide_fits(&sum.wide, t)) return eini_watch_fail(&k, &sum, t, error, size);
    if (!eini_wide_fits(&sum.wide, stored)) return eini_watch_fail(&k, &sum, stored, error, size);
  } while (eini_watch_next(s, k.x, 0, s->nfree));
  return EIN_OK;
}

// Can an integer of the statement be one that does not fit?
static int eini_watch_needed(const ein_graph *g, const eini_stmt *s) {
  const eini_expr *e = &s->expr;
  const int root = (int)e->n - 1, whole = eini_is_whole(eini_node_type(e, root));
  int needed = whole && (s->fold == EINI_SUM || s->fold == EINI_PROD);
  needed |= whole && e->node[root].dtype != (unsigned char)g->tensor[s->out].dtype;
  for (int i = 0; i <= root && !needed; i++) {
    const int op = e->node[i].op;
    needed = eini_is_whole(eini_node_type(e, i)) && eini_node_args(&e->node[i]) > 0 &&
             op != EINI_OP_WHERE && op != EINI_OP_MAX && op != EINI_OP_MIN && op != EINI_OP_CALL;
  }
  return needed;
}

// The check of a statement, or NULL where nothing can overflow.
static ein_status eini_watch_make(const eini_lowering *lo, const eini_stmt *s, eini_watch **out) {
  *out = NULL;
  if (!eini_watch_needed(lo->g, s)) return EIN_OK;
  eini_watch *w = EINI_NEW(lo->a, eini_watch, 1);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  w->g = lo->g;
  w->s = s;
  w->slot = EINI_NEW(lo->a, int, s->noperand);
  w->offset = EINI_NEW(lo->a, int64_t, s->noperand);
  w->stride = EINI_NEW(lo->a, int64_t *, s->noperand);
  if (w->slot == NULL || w->offset == NULL || w->stride == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    const eini_home *h = &lo->home[s->operand[k]];
    w->slot[k] = h->slot;
    w->stride[k] = EINI_NEW(lo->a, int64_t, s->nindex);
    if (w->stride[k] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_access_strides(s, s->nindex, &s->proj[k], NULL, h->stride, w->stride[k],
                                 &w->offset[k]));
  }
  (void)eini_nest_carve(NULL, &w->scratch, (size_t)s->nindex * 8);
  w->scratch += (size_t)s->expr.n * sizeof(eini_exact);
  *out = w;
  return EIN_OK;
}

// ================================================================================================
// >>plan  from a graph to tasks and a workspace layout
// Takes a graph and the layouts of its inputs and outputs; gives an immutable plan without data
// pointers. Slots: inputs, outputs, then temporaries at fixed places of the workspace.
// ================================================================================================

// An input or output: what a caller binds, and the memory it spans (bytes from its data pointer).
typedef struct eini_port {
  ein_tensor_info info;
  const int64_t *stride;
  int64_t lo, hi;               // first and one-past-last byte; equal when nothing is accessed
  int64_t step;                 // gcd of the strides in bytes, for the overlap test
} eini_port;

// A choice between ways of computing `out`: predicted seconds of each, and which was taken. A group
// has the number of its units in `units`, and two ways: as a group, and one unit after another.
typedef struct eini_verdict {
  const char *out;
  int units, taken;
  double seconds[3];
} eini_verdict;

struct ein_plan {
  eini_arena arena;             // owns everything, the plan itself included
  ein_allocator al;
  ein_executor executor;
  double (*now_fn)(void *user);
  void *now_user;
  int nkernels;
  const ein_kernels *const *kernels;  // the plan's own list
  const ein_rates *rates;       // or NULL
  ein_graph *graph;             // lives in an arena of its own; statements name the tasks
  int nin, nout, nslot;
  eini_port *in, *out;
  int alias;                    // input that is output 0 itself (beta without C), or -1
  int keeps;                    // 1: output 0 keeps old elements: a copy must start from them
  int64_t *slot_offset;         // of temporaries, bytes from the start of the temporaries
  int ntask;
  eini_task *task;
  eini_task *copy_back;         // per output: from the copy to the output, and the other way
  eini_task *copy_in;
  size_t head_bytes;            // slots, params and the status of every part
  size_t temp_bytes;            // temporaries
  size_t scratch_bytes;         // per thread
  size_t copy_bytes;            // copies of outputs that overlap inputs
  size_t workspace;
  int may_overlap;
  int unsplit;                  // 1: the path is "none": kernels must not split products either
  int checked;                  // 1: integers are checked, see section overflow
  eini_watch **watch;           // of every task, or NULL
  double *bound;                // of each tensor of the graph: see eini_bound_tensors
  double slices;                // a run is one of so many slices of its folds; 0: of one
  double slice_unit;            // and what storing what is merged of them rounds by
  int inner;                    // 1: part of a larger plan, whose tensors its inputs are
  ein_plan_info info;
  eini_path *path;              // one per split statement; path of the expression first
  int npath;
  eini_verdict *verdict;
  int64_t nverdict, capverdict;
};

static ein_status eini_plan_verdict(ein_plan *p, const char *out, int units, const double *seconds,
                                    int taken) {
  eini_verdict *v = (eini_verdict *)eini_grow(&p->arena, p->verdict, p->nverdict, &p->capverdict,
                                              sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  p->verdict = v;
  v += p->nverdict++;
  v->out = out;
  v->units = units;
  v->taken = taken;
  for (int i = 0; i < 3; i++) v->seconds[i] = seconds[i];
  return EIN_OK;
}

static const char *eini_verdict_way(const eini_verdict *v, int i) {
  return v->units == 0 ? eini_path_way[i] : i == 0 ? "group" : "one after another";
}

static int64_t eini_gcd64(int64_t a, int64_t b) {
  for (int64_t t; b != 0; b = t) {
    t = a % b;
    a = b;
  }
  return eini_abs64(a);
}

// Strides without gaps, the axes in the order `like` has them in memory; NULL: row-major. All 0
// where there are no elements: the extents beside a 0 may be anything.
static ein_status eini_dense_strides(eini_arena *a, int rank, const int64_t *shape,
                                     const int64_t *like, const int64_t **out, int64_t *count) {
  int64_t *s = EINI_NEW(a, int64_t, rank), n = 1;
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  *out = s;
  EINI_TRY(eini_view_elements(rank, shape, count));
  if (*count == 0) return EIN_OK;
  for (int k = rank - 1; k >= 0; k--) {  // the least stride not yet taken; later axes on a tie
    int least = like == NULL ? k : -1;
    for (int i = rank - 1; i >= 0 && like != NULL; i--)
      if (s[i] == 0 && (least < 0 || like[i] < like[least])) least = i;
    s[least] = n;
    if (eini_mul_overflow(n, shape[least], &n)) return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

static ein_status eini_port_init(eini_arena *a, const eini_tensor *t, const ein_ztensor *view,
                                 eini_port *p) {
  p->info.name = t->name;
  p->info.role = t->role;
  p->info.dtype = t->dtype;
  p->info.rank = t->rank;
  p->info.shape = t->shape;
  int64_t count;
  if (view == NULL || view->strides == NULL) {
    EINI_TRY(eini_dense_strides(a, t->rank, t->shape, NULL, &p->stride, &count));
  } else {
    int64_t *s = EINI_NEW(a, int64_t, t->rank);
    if (s == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_view_elements(t->rank, t->shape, &count));
    // What is never stepped may be any number: the plan has 0 there. Others fit in bytes.
    for (int i = 0; i < t->rank; i++)
      if (count > 0 && t->shape[i] > 1) s[i] = view->strides[i];
    p->stride = s;
  }
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = t->dtype;
  v.rank = t->rank;
  v.shape = t->shape;
  v.strides = p->stride;
  int64_t lo, hi, size = (int64_t)ein_dtype_size(t->dtype);
  EINI_TRY(eini_view_extent(&v, &lo, &hi));
  p->lo = lo * size;
  p->hi = lo > hi ? p->lo : (hi + 1) * size;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] > 1) p->step = eini_gcd64(p->step, p->stride[i] * size);
  return EIN_OK;
}

// ---- fusion of element-wise consumers ----

// Can statement j be the epilogue of the fold i, reading it as operand *via? Each index of j is one
// axis of the temporary, the temporary keeps the computation type, and nobody else reads it.
static int eini_fusable(const ein_graph *g, const int *readers, const eini_stmt *i,
                        const eini_stmt *j, int *via) {
  const eini_tensor *t = &g->tensor[i->out];
  if (t->role != EIN_ROLE_TEMP || t->nstmt != 1 || readers[i->out] != 1) return 0;
  if (j->fold != EINI_FOLD_NONE || i->fold == EINI_FOLD_NONE || t->rank != j->nindex ||
      j->nindex != i->nfree || i->rest != EIN_REST_ERROR || j->rest == EIN_REST_ZERO ||
      t->dtype != ein_dtype_compute(t->dtype) || eini_stmt_empty(j, 0, j->nindex) ||
      t->dtype != ein_dtype_compute(i->type) ||
      (g->ordered && j->noperand > EINI_ORDER_FACTORS))
    return 0;
  int x, y, kernel = eini_pair_match(i, &x, &y) >= 0 || eini_plain_sum(i);
  for (int64_t k = 0; kernel && k < j->expr.n; k++)  // they store without index values
    if (j->expr.node[k].op == EINI_OP_INDEX) return 0;
  *via = -1;
  for (int k = 0; k < j->noperand; k++)
    if (j->operand[k] == i->out) *via = k;
  if (*via < 0) return 0;
  const ein_zmap *m = &j->proj[*via];
  for (int r = 0; r < m->rows; r++) {
    int ones = 0;
    for (int c = 0; c < m->cols; c++) {
      int64_t k = m->coef[(int64_t)r * m->cols + c];
      ones += k == 1;
      if (k != 0 && k != 1) return 0;
      if (k == 1 && j->index[c].extent != t->shape[r]) return 0;
      for (int r2 = 0; k == 1 && r2 < r; r2++)
        if (m->coef[(int64_t)r2 * m->cols + c] != 0) return 0;
    }
    if (ones != 1 || m->offset[r] != 0) return 0;
    const int64_t *row = i->out_map.coef + (int64_t)r * i->nindex;  // no axis may be reversed
    for (int c = ones = 0; c < i->nindex; c++) ones += row[c] != 0 ? 1 + (row[c] != 1) : 0;
    if (ones != 1) return 0;
  }
  return 1;
}

// For each statement the producer fused into it (or -1), and whether it is such a producer.
static ein_status eini_plan_fusion(ein_plan *p, int **fused, char **gone, int **via) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  int *readers = EINI_NEW(a, int, g->ntensor), *producer = EINI_NEW(a, int, g->ntensor);
  *fused = EINI_NEW(a, int, g->nstmt);
  *gone = EINI_NEW(a, char, g->nstmt);
  *via = EINI_NEW(a, int, g->nstmt);
  if (readers == NULL || producer == NULL || *fused == NULL || *gone == NULL || *via == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    (*fused)[i] = -1;
    producer[s->out] = (int)i + 1;
    for (int k = 0; k < s->noperand; k++) readers[s->operand[k]]++;
  }
  for (int64_t j = 0; j < g->nstmt && !p->checked; j++) {  // checks read every result
    const eini_stmt *s = &g->stmt[j];
    for (int k = 0; k < s->noperand && (*fused)[j] < 0; k++) {
      int i = producer[s->operand[k]] - 1;
      if (i < 0 || i >= j || (*gone)[i] || !eini_fusable(g, readers, &g->stmt[i], s, &(*via)[j]))
        continue;
      (*fused)[j] = i;
      (*gone)[i] = 1;
    }
  }
  return EIN_OK;
}

// ---- temporaries ----

// Places temporaries so that those alive at the same time do not overlap: in the order in which
// they come alive, each at the lowest free place. first/last: tasks between which one is alive.
static ein_status eini_plan_place(ein_plan *p, const int *first, const int *last,
                                  const int64_t *bytes) {
  int n = (int)p->graph->ntensor, m = p->ntask, live = 0;
  int *start = EINI_NEW(&p->arena, int, m + 2), *queue = EINI_NEW(&p->arena, int, n);
  int *alive = EINI_NEW(&p->arena, int, n);  // by offset
  if (start == NULL || queue == NULL || alive == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < n; t++) start[first[t] < 0 ? 0 : first[t] + 1]++;  // counting sort by first
  for (int k = 1; k <= m; k++) start[k] += start[k - 1];
  for (int t = n - 1; t >= 0; t--) queue[--start[first[t] < 0 ? 0 : first[t] + 1]] = t;
  int64_t top = 0;
  for (int q = 0; q < n; q++) {
    int t = queue[q], kept = 0, where = 0;
    int64_t at = 0, end;
    if (bytes[t] == 0 || first[t] < 0) continue;
    for (int k = 0; k < live; k++)
      if (last[alive[k]] >= first[t]) alive[kept++] = alive[k];
    live = kept;
    for (; where < live; where++) {
      int o = alive[where];
      if (eini_add_overflow(at, bytes[t], &end)) return EIN_ERR_TOO_LARGE;
      if (end <= p->slot_offset[o]) break;
      at = p->slot_offset[o] + bytes[o];
    }
    if (eini_add_overflow(at, bytes[t], &end)) return EIN_ERR_TOO_LARGE;
    p->slot_offset[t] = at;
    top = eini_max64(top, end);
    memmove(alive + where + 1, alive + where, (size_t)(live - where) * sizeof *alive);
    alive[where] = t;
    live++;
  }
  if ((uint64_t)top > SIZE_MAX / 2) return EIN_ERR_TOO_LARGE;
  p->temp_bytes = (size_t)top;
  return EIN_OK;
}

// Task i inside a task: of a group, else the task itself; NULL after the last.
static const eini_task *eini_task_inner(const eini_task *t, int i) {
  if (t->kind == EINI_TASK_GROUP) return i < t->group->ntask ? &t->group->task[0][i] : NULL;
  return i == 0 ? t : NULL;
}

static ein_status eini_plan_temps(ein_plan *p, eini_home *home) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  int *first = EINI_NEW(a, int, g->ntensor), *last = EINI_NEW(a, int, g->ntensor);
  int64_t *bytes = EINI_NEW(a, int64_t, g->ntensor);
  if (first == NULL || last == NULL || bytes == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) first[t] = -1;
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *task;
    for (int i = 0; (task = eini_task_inner(&p->task[k], i / 2)) != NULL; i++) {
      const eini_stmt *s = i % 2 ? task->fused : task->stmt;
      if (s == NULL) continue;
      for (int o = -1; o < s->noperand; o++) {
        int t = o < 0 ? s->out : s->operand[o];
        if (task->fused != NULL && t == task->stmt->out) continue;  // never stored
        if (first[t] < 0) first[t] = k;
        last[t] = k;
      }
    }
  }
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (home[t].slot < p->nin + p->nout || first[t] < 0) continue;
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
      if (eini_mul_overflow(n, x->shape[i], &n)) return EIN_ERR_TOO_LARGE;
    if (eini_mul_overflow(n, (int64_t)ein_dtype_size(x->dtype), &n) ||
        eini_add_overflow(n, EINI_ALIGN, &n))
      return EIN_ERR_TOO_LARGE;
    bytes[t] = n / EINI_ALIGN * EINI_ALIGN;
  }
  return eini_plan_place(p, first, last, bytes);
}

// ---- tasks ----

// A statement that visits every element of a tensor, and reads the operand, if any, where it is.
static ein_status eini_plan_identity(ein_graph *g, int tensor, int nop, eini_stmt **out) {
  int rank = g->tensor[tensor].rank;
  EINI_TRY(eini_graph_add_stmt(g, tensor, rank, nop, &tensor, out));
  eini_stmt *s = *out;
  for (int r = 0; r < rank; r++) {
    s->index[r].name = "";
    s->index[r].extent = g->tensor[tensor].shape[r];
    s->out_map.coef[(int64_t)r * rank + r] = 1;
    if (nop > 0) s->proj[0].coef[(int64_t)r * rank + r] = 1;
  }
  int id = nop > 0 ? eini_expr_add(&g->arena, &s->expr, EINI_OP_OPERAND, -1, 0, 0, 0)
                   : eini_expr_int(&g->arena, &s->expr, -1, 0);
  return id < 0 ? EIN_ERR_NO_MEMORY : eini_stmt_finish(g, s, NULL);
}

// Fills the whole output with zero before its scattered elements are written.
static ein_status eini_plan_zero(ein_plan *p, eini_lowering *lo, int tensor, eini_task *t,
                                 int *empty) {
  eini_stmt *s;
  EINI_TRY(eini_plan_identity(p->graph, tensor, 0, &s));
  return eini_task_lower(lo, s, NULL, -1, t, empty);
}

static ein_status eini_plan_task(eini_lowering *lo, const eini_stmt *s, const eini_stmt *f, int via,
                                 eini_task *t, int *empty) {
  const eini_arena_at plan = eini_arena_mark(lo->a), graph = eini_arena_mark(&lo->g->arena);
  int yes = 0;
  *empty = 0;
  EINI_TRY(eini_contract_lower(lo, s, f, via, t, &yes));
  if (yes) return EIN_OK;
  eini_arena_rollback(lo->a, &plan);
  eini_arena_rollback(&lo->g->arena, &graph);
  return eini_task_lower(lo, s, f, via, t, empty);
}

// A copy between two places of one layout: from slot `from` to slot `to`.
static ein_status eini_plan_copier(ein_plan *p, eini_lowering *lo, const eini_stmt *like, int from,
                                   int to, eini_task *t) {
  eini_stmt *s;
  EINI_TRY(eini_plan_identity(p->graph, like->out, 1, &s));
  int empty;
  EINI_TRY(eini_task_lower(lo, s, NULL, -1, t, &empty));
  if (empty) return EIN_OK;
  t->ref[0].slot = from;
  t->ref[t->out].slot = to;
  t->stmt = NULL;
  return EIN_OK;
}

// ---- groups ----

#define EINI_LAYOUT_RANK 8
#define EINI_LAYOUT_UNITS 64
#ifndef EINI_LAYOUT_BYTES      // tests make it small
#define EINI_LAYOUT_BYTES 32768
#endif

static ein_status eini_window_add(eini_arena *a, eini_group *gr, int variant, int64_t *cap,
                                  int slot, int64_t offset, const int64_t *step, int *id) {
  eini_window *w = (eini_window *)eini_grow(a, gr->window[variant], gr->nwindow[variant], cap,
                                            sizeof *w);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  gr->window[variant] = w;
  w += gr->nwindow[variant];
  w->slot = slot;
  w->offset = offset;
  w->step[0] = step[0];
  w->step[1] = step[1];
  *id = gr->nwindow[variant]++;
  return EIN_OK;
}

// The tasks of a group for blocks of one shape; what they refer to becomes windows.
static ein_status eini_group_variant(ein_plan *p, const eini_lowering *lo, const eini_unit *unit,
                                     const eini_bundle *b, const int64_t *place, eini_group *gr,
                                     int variant) {
  static const int64_t still[2] = {0, 0};
  eini_arena *a = &p->arena;
  eini_lowering sub = *lo;
  int64_t cap = 0;
  int id, count = 0, temps = p->nin + p->nout;
  gr->task[variant] = EINI_NEW(a, eini_task, b->to - b->from + 1);
  if (gr->task[variant] == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_window_add(a, gr, variant, &cap, -2, 0, still, &id));
  for (int u = b->from; u <= b->to; u++) {
    eini_task *t = &gr->task[variant][count];
    int empty = 0;
    for (int j = 0; j < b->nloop; j++) sub.loop[j] = b->loop[j][u - b->from];
    EINI_TRY(eini_plan_task(&sub, unit[u].s, unit[u].f, unit[u].via, t, &empty));
    if (empty) continue;
    for (int k = 0; k < t->nstream; k++) {
      eini_ref *r = &t->ref[k];
      int local = r->slot >= temps && sub.local[r->slot - temps];
      if (r->slot >= 0) {
        EINI_TRY(eini_window_add(a, gr, variant, &cap, local ? -1 : r->slot,
                                 local ? place[r->slot - temps] : 0, r->step, &r->slot));
      } else if (r->step[0] != 0 || r->step[1] != 0) {
        EINI_TRY(eini_window_add(a, gr, variant, &cap, -2, 0, r->step, &r->origin));
      }
    }
    if (t->scratch > gr->scratch) gr->scratch = t->scratch;
    count++;
  }
  gr->ntask = count;
  return EIN_OK;
}

// ---- layouts of temporaries ----

// Seconds of a unit's task: as predicted, else for reading and writing its tensors once; local
// ones, in a cache, count a fourth. Elements that lie apart along the chunk bring a line each.
static double eini_task_seconds(const eini_lowering *lo, const eini_unit *u, const eini_task *t,
                                const char *local) {
  const ein_zmap *m;
  const int *column;
  double bytes = 0;
  if (t->ncandidate > 0) return t->choice.seconds;
  for (int k = -1, x; (x = k < 0 ? u->out : eini_unit_operand(u, k, &m, &column)) >= 0; k++)
    bytes += eini_tensor_bytes(&lo->g->tensor[x]) * (local != NULL && local[x] ? 0.25 : 1);
  for (int s = 0; s < t->nstream && t->nchunk > 0; s++) {
    int c = t->chunk[t->nchunk - 1];
    int64_t step = eini_abs64(t->stride[(int64_t)s * t->nindex + c]);
    if (t->ref[s].slot < 0 || step < 2 || (s == t->out && t->reduced[c])) continue;
    bytes += t->work * (double)eini_min64(64, step * (int64_t)ein_dtype_size(t->ref[s].dtype));
  }
  return bytes / lo->rates->copy_bw;
}

static ein_status eini_unit_seconds(const eini_lowering *lo, const eini_unit *u, double *seconds) {
  const eini_arena_at graph = eini_arena_mark(&lo->g->arena);  // lo->a is the caller's scratch
  eini_lowering sub = *lo;
  eini_task t;
  int empty;
  EINI_TRY(eini_plan_task(&sub, u->s, u->f, u->via, &t, &empty));
  if (!empty) *seconds += eini_task_seconds(lo, u, &t, NULL);
  eini_arena_rollback(&lo->g->arena, &graph);
  return EIN_OK;
}

// Is the group predicted to be faster than its units one after another?
static ein_status eini_group_wins(const eini_lowering *lo, const eini_unit *unit,
                                  const eini_bundle *b, const eini_group *gr, const char *local,
                                  double blocks, int parts, double *seconds, int *yes) {
  eini_lowering sub = *lo;
  eini_arena scratch;
  double apart = 0, grouped = 0;
  ein_status st = EIN_OK;
  eini_arena_init(&scratch, &lo->a->al);
  sub.a = &scratch;
  for (int u = b->from; u <= b->to && st == EIN_OK; u++) {
    const eini_task *t = &gr->task[0][u - b->from];
    st = eini_unit_seconds(&sub, &unit[u], &apart);
    grouped += eini_task_seconds(lo, &unit[u], t, local) * (t->ncandidate > 0 ? blocks : 1);
  }
  eini_arena_free(&scratch);
  seconds[0] = grouped / parts;
  seconds[1] = apart;
  *yes = gr->ntask == b->to - b->from + 1 && seconds[0] < seconds[1];
  return st;
}

// Axes of what a unit makes lie as in its operand of most axes; others' where its folded ones do.
static ein_status eini_unit_order(const eini_lowering *lo, const eini_unit *u, int64_t *like) {
  const eini_stmt *s = u->s, *last = u->f != NULL ? u->f : s;
  int64_t *step = EINI_NEW(lo->a, int64_t, s->nindex), at, fold = 0;
  int x = 0;
  if (step == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 1; k < s->noperand; k++)
    if (s->proj[k].rows > s->proj[x].rows) x = k;
  if (s->noperand > 0)
    EINI_TRY(eini_access_strides(s, s->nindex, &s->proj[x], NULL, lo->home[s->operand[x]].stride,
                                 step, &at));
  for (int i = s->nfree; i < s->nindex; i++) fold = eini_max64(fold, eini_abs64(step[i]));
  for (int r = 0; r < last->out_map.rows; r++) {
    int c = eini_plain_row(&last->out_map, r);
    if (c >= 0 && u->f != NULL) c = u->column[c];
    like[r] = c >= 0 && step[c] != 0 ? eini_abs64(step[c]) : fold;
  }
  return EIN_OK;
}

// Which axis of a temporary lies innermost is free: of those that are innermost where it is made or
// read, the one that makes these statements fastest.
static ein_status eini_unit_layout(const eini_lowering *lo, const eini_unit *unit, int nunit, int u,
                                   eini_home *home) {
  int id = unit[u].out;
  const eini_tensor *t = &lo->g->tensor[id];
  const int64_t *best = NULL;
  int64_t like[EINI_LAYOUT_RANK], count;
  double least = 0;
  eini_lowering sub = *lo;
  eini_arena scratch;
  eini_arena_init(&scratch, &lo->a->al);
  sub.a = &scratch;
  ein_status st = eini_unit_order(&sub, &unit[u], like);
  for (int a = t->rank - 1; a >= 0 && st == EIN_OK; a--) {
    double seconds = 0;
    like[a] = -1 - like[a];  // the least
    st = eini_dense_strides(lo->a, t->rank, t->shape, like, &home[id].stride, &count);
    like[a] = -1 - like[a];
    if (st == EIN_OK) st = eini_unit_seconds(&sub, &unit[u], &seconds);
    for (int v = u + 1; v < nunit && st == EIN_OK; v++)
      if (eini_unit_reads(&unit[v], id)) st = eini_unit_seconds(&sub, &unit[v], &seconds);
    if (best == NULL || seconds < 0.95 * least) best = home[id].stride, least = seconds;
  }
  home[id].stride = best;
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_plan_layouts(const eini_lowering *lo, const eini_unit *unit, int nunit,
                                    eini_home *home) {
  for (int u = 0; u + 1 < nunit && nunit <= EINI_LAYOUT_UNITS; u++) {
    const eini_tensor *t = &lo->g->tensor[unit[u].out];
    if (t->role == EIN_ROLE_TEMP && t->nstmt == 1 && t->rank >= 2 && t->rank <= EINI_LAYOUT_RANK &&
        eini_tensor_bytes(t) >= EINI_LAYOUT_BYTES)
      EINI_TRY(eini_unit_layout(lo, unit, nunit, u, home));
  }
  return EIN_OK;
}

// Layouts and places of a group's own temporaries for the blocks of lo.
static ein_status eini_group_locals(const eini_lowering *lo, const eini_unit *unit,
                                    const eini_bundle *b, eini_home *own, int64_t *place,
                                    int64_t *bytes) {
  for (int u = b->from; u <= b->to; u++) {
    const eini_stmt *out = unit[u].f != NULL ? unit[u].f : unit[u].s;
    const eini_tensor *t = &lo->g->tensor[unit[u].out];
    int64_t *shape = EINI_NEW(lo->a, int64_t, t->rank), count;
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    if (!lo->local[unit[u].out]) continue;
    for (int r = 0; r < t->rank; r++) {
      int c = eini_plain_row(&out->out_map, r);
      shape[r] = t->shape[r];
      if (c >= 0 && unit[u].f != NULL) c = unit[u].column[c];
      for (int j = 0; j < b->nloop; j++)
        if (c == b->loop[j][u - b->from]) shape[r] = lo->block[j];
    }
    EINI_TRY(eini_dense_strides(lo->a, t->rank, shape, own[unit[u].out].stride,
                             &own[unit[u].out].stride, &count));
    place[unit[u].out] = *bytes;
    *bytes += (count * (int64_t)ein_dtype_size(t->dtype) + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  }
  return EIN_OK;
}

// Makes the tasks of a group for whole blocks (variant 0) or the shorter last one. While they are
// made, local temporaries have homes of a block's shape.
static ein_status eini_group_blocks(ein_plan *p, eini_lowering *sub, const eini_trail *w,
                                    const eini_bundle *b, eini_home *home, eini_group *gr,
                                    int variant) {
  const int64_t *kept[EINI_GROUP_UNITS];
  int64_t bytes = 0;
  for (int u = b->from; u <= b->to; u++) kept[u - b->from] = home[w->unit[u].out].stride;
  ein_status st = eini_group_locals(sub, w->unit, b, home, w->place, &bytes);
  if ((size_t)bytes > gr->local_bytes) gr->local_bytes = (size_t)bytes;
  if (st == EIN_OK) st = eini_group_variant(p, sub, w->unit, b, w->place, gr, variant);
  for (int u = b->from; u <= b->to; u++) home[w->unit[u].out].stride = kept[u - b->from];
  return st;
}

// Makes the task of a group; home gives the layout of temporaries, local ones get block shapes.
static ein_status eini_group_lower(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                   const eini_bundle *b, eini_home *home, eini_task *t,
                                   double *seconds, int *yes) {
  eini_group *gr = EINI_NEW(&p->arena, eini_group, 1);
  eini_lowering sub = *lo;
  if (gr == NULL) return EIN_ERR_NO_MEMORY;
  memset(t, 0, sizeof *t);
  t->kind = EINI_TASK_GROUP;
  t->group = gr;
  t->cut = -1;
  gr->saved = eini_bundle_mark(w, b->from, b->to);
  gr->nloop = sub.nloop = b->nloop;
  sub.width = 1;
  sub.local = w->local;
  sub.home = home;
  int last = b->nloop - 1;
  for (int variant = 0; variant < 2; variant++) {
    int64_t tail = b->extent[last] % b->block[last];
    if (variant == 1 && tail == 0) break;
    for (int j = 0; j < b->nloop; j++) {
      gr->extent[j] = b->extent[j];
      gr->block[j] = variant == 0 ? b->block[j] : gr->block[j];
      sub.block[j] = variant == 1 && j == last ? tail : b->block[j];
    }
    EINI_TRY(eini_group_blocks(p, &sub, w, b, home, gr, variant));
  }
  double blocks = (double)eini_ceil_div(b->extent[last], b->block[last]);
  if (b->nloop > 1) blocks *= (double)b->extent[0];
  t->parts = blocks < lo->width ? (int)blocks : lo->width;
  EINI_TRY(eini_group_wins(lo, w->unit, b, gr, w->local, blocks, t->parts, seconds, yes));
  for (int u = b->from; u <= b->to && *yes; u++) {
    int out = w->unit[u].out;
    if (w->local[out]) home[out].slot = -1;  // needs no place of its own
  }
  eini_bundle_unmark(w, b->from, b->to);
  size_t windows = (size_t)(gr->nwindow[0] > gr->nwindow[1] ? gr->nwindow[0] : gr->nwindow[1]);
  eini_nest_carve(NULL, &t->scratch, windows * sizeof(char *));
  t->scratch += gr->local_bytes + gr->scratch;
  return EIN_OK;
}

// Statements with what is fused into them, in order. Tasks point at statements, so these are
// copies at their final address.
static ein_status eini_plan_units(ein_plan *p, const eini_lowering *lo, eini_unit **list, int *n) {
  ein_graph *g = p->graph;
  int *fused, *via;
  char *gone;
  EINI_TRY(eini_plan_fusion(p, &fused, &gone, &via));
  eini_stmt *own = EINI_NEW(&p->arena, eini_stmt, g->nstmt);
  *list = EINI_NEW(&p->arena, eini_unit, g->nstmt);
  *n = 0;
  if (own == NULL || *list == NULL) return EIN_ERR_NO_MEMORY;
  if (g->nstmt > 0) memcpy(own, g->stmt, (size_t)g->nstmt * sizeof *own);
  for (int64_t i = 0; i < g->nstmt; i++) {
    if (gone[i]) continue;
    eini_unit *u = &(*list)[(*n)++];
    u->s = fused[i] >= 0 ? &own[fused[i]] : &own[i];
    u->f = fused[i] >= 0 ? &own[i] : NULL;
    u->via = via[i];
    u->out = own[i].out;
    if (u->f != NULL) EINI_TRY(eini_fused_columns(lo, u->s, u->f, u->via, &u->column));
  }
  return EIN_OK;
}

// Seconds that one task adds to the plan's; small folds are not as fast as their bytes are.
static double eini_task_share(const eini_lowering *lo, const eini_unit *u, const eini_task *t) {
  const double seconds = eini_task_seconds(lo, u, t, NULL);
  return EINI_TASK_SECONDS +
         (t->ncandidate > 0 ? seconds : fmax(seconds, EINI_ADD_SECONDS * t->work));
}

// The tasks of n units; w: the search for groups among them, where machine rates are known.
static ein_status eini_plan_each(ein_plan *p, eini_lowering *lo, eini_trail *w,
                                 const eini_unit *unit, int n, eini_home *home) {
  for (int u = 0; u < n; u++) {
    const eini_stmt *last = unit[u].f != NULL ? unit[u].f : unit[u].s;
    const eini_tensor *t = &p->graph->tensor[unit[u].out];
    eini_bundle b;
    int empty = 0, grouped = 0;
    b.gain = 0;
    if (w != NULL && t->role == EIN_ROLE_TEMP && n - u > 1) eini_bundle_find(w, NULL, u, &b);
    if (b.gain > 0) {
      const eini_arena_at plan = eini_arena_mark(&p->arena), graph = eini_arena_mark(&lo->g->arena);
      double seconds[3] = {0, 0, 0};
      EINI_TRY(eini_group_lower(p, lo, w, &b, home, &p->task[p->ntask], seconds, &grouped));
      if (!grouped) eini_arena_rollback(&p->arena, &plan);
      if (!grouped) eini_arena_rollback(&lo->g->arena, &graph);
      EINI_TRY(eini_plan_verdict(p, lo->g->tensor[unit[b.to].out].name, b.to - u + 1, seconds,
                                 !grouped));
      if (grouped) p->info.seconds += seconds[0];
    }
    if (grouped) {
      p->ntask++, u = b.to;
      continue;
    }
    if (last->rest == EIN_REST_ZERO) {
      EINI_TRY(eini_plan_zero(p, lo, last->out, &p->task[p->ntask], &empty));
      p->ntask += !empty;
      empty = 0;
    }
    EINI_TRY(eini_plan_task(lo, unit[u].s, unit[u].f, unit[u].via, &p->task[p->ntask], &empty));
    if (p->checked && !empty) EINI_TRY(eini_watch_make(lo, unit[u].s, &p->watch[p->ntask]));
    if (!empty && lo->rates != NULL)
      p->info.seconds += eini_task_share(lo, &unit[u], &p->task[p->ntask]);
    p->ntask += !empty;
  }
  return EIN_OK;
}

static ein_status eini_plan_tasks(ein_plan *p, eini_lowering *lo, eini_home *home) {
  eini_unit *unit;
  eini_arena scratch;
  eini_trail search;
  int n;
  EINI_TRY(eini_plan_units(p, lo, &unit, &n));
  p->task = EINI_NEW(&p->arena, eini_task, 2 * (int64_t)n + 1);
  if (p->checked) p->watch = EINI_NEW(&p->arena, eini_watch *, 2 * (int64_t)n + 1);
  if (p->task == NULL || (p->checked && p->watch == NULL)) return EIN_ERR_NO_MEMORY;
  if (p->rates == NULL) return eini_plan_each(p, lo, NULL, unit, n, home);
  EINI_TRY(eini_plan_layouts(lo, unit, n, home));
  eini_arena_init(&scratch, &p->arena.al);
  ein_status st = eini_trail_make(&search, &scratch, p->graph, unit, n, p->rates);
  if (st == EIN_OK) st = eini_plan_each(p, lo, &search, unit, n, home);
  eini_arena_free(&scratch);
  return st;
}

// Homes of tensors: inputs and outputs in their slots, every temporary in one of its own.
static ein_status eini_plan_homes(ein_plan *p, int nlayout, const ein_binding *layout,
                                  const ein_ztensor *const *view, eini_home **home) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  *home = EINI_NEW(a, eini_home, g->ntensor);
  p->slot_offset = EINI_NEW(a, int64_t, g->ntensor);
  p->in = EINI_NEW(a, eini_port, g->ntensor);
  p->out = EINI_NEW(a, eini_port, g->ntensor);
  if (*home == NULL || p->slot_offset == NULL || p->in == NULL || p->out == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    p->nin += g->tensor[t].role == EIN_ROLE_INPUT;
    p->nout += g->tensor[t].role == EIN_ROLE_OUTPUT;
  }
  int in = 0, out = 0;
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    eini_home *h = &(*home)[t];
    const ein_ztensor *v = view == NULL ? NULL : view[t];
    for (int k = 0; view == NULL && k < nlayout; k++)
      if (strcmp(layout[k].name, x->name) == 0) v = layout[k].view;
    if (x->role == EIN_ROLE_TEMP) {
      int64_t count;
      h->slot = p->nin + p->nout + (int)t;
      EINI_TRY(eini_dense_strides(a, x->rank, x->shape, NULL, &h->stride, &count));
      continue;
    }
    int input = x->role == EIN_ROLE_INPUT;
    eini_port *port = input ? &p->in[in] : &p->out[out];
    h->slot = input ? in++ : p->nin + out++;
    EINI_TRY(eini_port_init(a, x, v, port));
    h->stride = port->stride;
  }
  p->nslot = p->nin + 2 * p->nout + (int)g->ntensor;  // the last nout: copies of outputs
  return EIN_OK;
}

// Copies of outputs that overlap inputs mirror the output's layout, gaps included.
static ein_status eini_plan_copies(ein_plan *p, eini_lowering *lo) {
  if (!p->may_overlap) return EIN_OK;
  p->copy_back = EINI_NEW(&p->arena, eini_task, p->nout);
  p->copy_in = EINI_NEW(&p->arena, eini_task, p->nout);
  if (p->copy_back == NULL || p->copy_in == NULL) return EIN_ERR_NO_MEMORY;
  int out = 0, mirror = p->nslot - p->nout;
  for (int64_t t = 0; t < p->graph->ntensor; t++) {
    if (p->graph->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    eini_stmt like;
    memset(&like, 0, sizeof like);
    like.out = (int)t;
    EINI_TRY(eini_plan_copier(p, lo, &like, mirror + out, p->nin + out, &p->copy_back[out]));
    EINI_TRY(eini_plan_copier(p, lo, &like, p->nin + out, mirror + out, &p->copy_in[out]));
    if (p->copy_back[out].scratch > p->scratch_bytes) p->scratch_bytes = p->copy_back[out].scratch;
    int64_t span = p->out[out].hi - p->out[out].lo;
    p->copy_bytes += ((size_t)span + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
    out++;
  }
  return EIN_OK;
}

// As eini_stmt_bound, of the whole of which a run of the plan may be a slice.
static double eini_plan_bound(const ein_plan *p, const eini_stmt *s, int *known) {
  const double e = eini_stmt_bound(p->graph, s, p->bound, p->slices > 1 ? p->slices : 1, known);
  return eini_bound_then(e, p->slice_unit);
}

// The bounds of all tensors, from the inputs on; less than 0 behind what has none.
static ein_status eini_plan_bounds(ein_plan *p) {
  unsigned char *defined = EINI_NEW(&p->arena, unsigned char, p->graph->ntensor + 1);
  const eini_task *task;
  p->bound = EINI_NEW(&p->arena, double, p->graph->ntensor + 1);
  if (defined == NULL || p->bound == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < p->ntask; k++) {
    for (int i = 0; (task = eini_task_inner(&p->task[k], i)) != NULL; i++) {
      int known;
      double e = eini_plan_bound(p, task->stmt, &known);
      eini_bound_set(p->bound, defined, task->stmt->out, known ? e : -1);
      if (task->fused == NULL) continue;
      e = eini_plan_bound(p, task->fused, &known);
      eini_bound_set(p->bound, defined, task->fused->out, known ? e : -1);
    }
  }
  return EIN_OK;
}

// Fills a plan whose graph is complete. view: layouts per tensor, or NULL and bindings by name.
static ein_status eini_plan_build(ein_plan *p, int nlayout, const ein_binding *layout,
                                  const ein_ztensor *const *view) {
  eini_lowering lo;
  eini_home *home;
  memset(&lo, 0, sizeof lo);
  if (p->rates != NULL && !p->graph->ordered) EINI_TRY(eini_leaf_graph(p->graph));
  EINI_TRY(eini_plan_homes(p, nlayout, layout, view, &home));
  if (p->alias >= 0) home[p->alias].slot = p->nin;  // reads output 0
  lo.a = &p->arena;
  lo.g = p->graph;
  lo.home = home;
  lo.width = p->executor.width;
  lo.nkernels = p->nkernels;
  lo.kernels = p->kernels;
  lo.rates = p->rates;
  lo.unsplit = p->unsplit;
  for (int i = p->nkernels - 1; i >= 0; i--)
    if ((p->kernels[i]->chunk_fn != NULL || p->kernels[i]->stream_fn != NULL) &&
        (p->kernels[i]->ordered || !p->graph->ordered))
      lo.fast = p->kernels[i];
  EINI_TRY(eini_plan_tasks(p, &lo, home));
  EINI_TRY(eini_plan_temps(p, home));
  for (int k = 0; k < p->ntask; k++) {
    if (p->task[k].scratch > p->scratch_bytes) p->scratch_bytes = p->task[k].scratch;
    if (p->checked && p->watch[k] != NULL && p->watch[k]->scratch > p->scratch_bytes)
      p->scratch_bytes = p->watch[k]->scratch;
  }
  EINI_TRY(eini_plan_copies(p, &lo));
  EINI_TRY(eini_plan_bounds(p));
  size_t head = (size_t)p->nslot * sizeof(char *) + (size_t)p->graph->nparam * sizeof(ein_scalar);
  const size_t width = (size_t)p->executor.width;
  if (width > 1) head += width * sizeof(ein_status);
  p->head_bytes = (head + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  if (p->scratch_bytes > (SIZE_MAX / 4) / width || p->temp_bytes > SIZE_MAX / 4 ||
      p->copy_bytes > SIZE_MAX / 4)
    return EIN_ERR_TOO_LARGE;
  p->workspace = p->head_bytes + p->temp_bytes + p->scratch_bytes * width + EINI_ALIGN;
  for (int64_t t = 0; p->npath == 0 && t < p->graph->ntensor; t++) {
    double n = p->graph->tensor[t].role != EIN_ROLE_INPUT && p->graph->tensor[t].nstmt > 0;
    for (int a = 0; a < p->graph->tensor[t].rank; a++) n *= (double)p->graph->tensor[t].shape[a];
    if (n > p->info.largest) p->info.largest = n;
  }
  p->info.nin = p->nin - (p->alias >= 0);
  p->info.nout = p->nout;
  p->info.nparam = (int)p->graph->nparam;
  p->info.ntask = p->ntask;
  p->info.workspace_bytes = p->workspace + p->copy_bytes;
  p->info.plan_bytes = p->arena.total + p->graph->arena.total;
  return EIN_OK;
}

// ================================================================================================
// >>execute  running a plan
// Takes a plan and the bindings of one call. Writes only into them; everything mutable is in the
// workspace: slots, params, temporaries, scratch of each thread, copies of overlapping outputs.
// ================================================================================================

#define EINI_STACK_WORKSPACE 2048  // plans that need no more run without touching an allocator

typedef struct eini_exec {
  const ein_plan *p;
  const ein_run *run;
  char **slot;
  ein_scalar *param;
  ein_status *status;          // of every part of a task
  char *scratch;
  int no_direct;
} eini_exec;

typedef struct eini_share {
  const eini_exec *x;
  const eini_task *t;
  int parts;
} eini_share;

static ein_status eini_run_error(const ein_run *run, ein_status st, const char *what, int i,
                                 const char *name) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s %d ('%s')", what, i, name);
  return st;
}

static ein_status eini_run_small(const ein_run *run, size_t need) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "the workspace has %llu bytes, %llu are needed",
             (unsigned long long)run->workspace_bytes, (unsigned long long)need);
  return EIN_ERR_ARGUMENT;
}

// Does dtype t hold the value of a param?
static int eini_param_holds(ein_dtype t, const ein_scalar *v) {
  if (t == EIN_NONE || !v->set) return 1;
  return eini_dtype_holds(t, v->re) &&
         (eini_kind_of(t) == EINI_KCOMPLEX ? eini_dtype_holds(t, v->im) : v->im == 0);
}

// Tables where there are inputs and outputs; nothing is said of the run yet.
static ein_status eini_run_begin(const ein_run *run, int nin, int nout) {
  if (run == NULL) return EIN_ERR_ARGUMENT;
  const int no_in = nin > 0 && run->in == NULL, no_out = nout > 0 && run->out == NULL;
  if (run->error != NULL && run->error_bytes > 0) run->error[0] = 0;
  if (!no_in && !no_out) return EIN_OK;
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s is NULL, not the addresses of %d %s",
             no_in ? "in" : "out", no_in ? nin : nout, no_in ? "inputs" : "outputs");
  return EIN_ERR_ARGUMENT;
}

// Every param has a value, and its dtype, or those it took where it stands, hold it.
static ein_status eini_params_check(const ein_graph *g, const ein_run *run) {
  for (int64_t k = 0; k < g->nparam; k++) {
    const eini_param *p = &g->param[k];
    const ein_scalar *v = run->param != NULL && run->param[k].set ? &run->param[k] : &p->value;
    ein_dtype t = p->dtype;
    if (!v->set)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no value for param", (int)k, p->name);
    for (int64_t i = 0; v->im != 0 && t == EIN_NONE && i < g->nstmt; i++) {
      const eini_expr *e = &g->stmt[i].expr;
      for (int64_t x = 0; x < e->n; x++)
        if (e->node[x].op == EINI_OP_PARAM && e->node[x].arg[0] == k &&
            eini_kind_of((ein_dtype)e->node[x].dtype) < EINI_KCOMPLEX)
          t = (ein_dtype)e->node[x].dtype;
    }
    if (eini_param_holds(t, v)) continue;
    if (run->error != NULL && run->error_bytes > 0)
      snprintf(run->error, run->error_bytes, "param '%s' is %s, which does not hold %.17g%s",
               p->name, ein_dtype_name(t), v->re, v->im != 0 ? " and an imaginary part" : "");
    return EIN_ERR_DTYPE;
  }
  return EIN_OK;
}

// Declared ahead: a group's task runs tasks.
static ein_status eini_group_run(const eini_exec *x, const eini_task *t, char *scratch, int part);

static ein_status eini_task_run(const eini_exec *x, const eini_task *t, char *scratch, int64_t lo,
                                int64_t hi) {
  switch (t->kind) {
    case EINI_TASK_GROUP: return eini_group_run(x, t, scratch, -1);
    case EINI_TASK_COPY:
      if (t->kernels != NULL) return eini_copy_provided(t, x->slot, scratch, lo, hi);
      eini_copy_run(t, x->slot, scratch, lo, hi);
      return EIN_OK;
    case EINI_TASK_CONTRACT: return eini_contract_task_run(t, x->slot, x->param, scratch, -1);
    default:
      eini_mapreduce_run(t, x->slot, x->param, scratch, lo, hi, x->no_direct);
      if (t->stream != NULL) t->stream->stream_fn(t->stream->user, 0, NULL, NULL);
      return EIN_OK;
  }
}

static ein_status eini_group_run(const eini_exec *x, const eini_task *t, char *scratch, int part) {
  const eini_group *g = t->group;
  const int last = g->nloop - 1;
  eini_exec y = *x;
  size_t used = 0;
  int64_t per = (g->extent[last] + g->block[last] - 1) / g->block[last];
  int64_t blocks = g->nloop > 1 ? per * g->extent[0] : per;
  int64_t from = part < 0 ? 0 : blocks * part / t->parts;
  int64_t to = part < 0 ? blocks : blocks * (part + 1) / t->parts;
  int windows = g->nwindow[0] > g->nwindow[1] ? g->nwindow[0] : g->nwindow[1];
  y.slot = (char **)(void *)eini_nest_carve(scratch, &used, (size_t)windows * sizeof(char *));
  char *local = scratch + used, *rest = local + g->local_bytes;
  for (int64_t b = from; b < to; b++) {
    const int64_t at[2] = {last > 0 ? b / per : b * g->block[0],
                           last > 0 ? b % per * g->block[1] : 0};
    const int v = at[last] + g->block[last] > g->extent[last];
    for (int k = 0; k < g->nwindow[v]; k++) {
      const eini_window *w = &g->window[v][k];
      int64_t shift = w->offset + at[0] * w->step[0] + at[1] * w->step[1];
      const char *base = w->slot >= 0 ? x->slot[w->slot] : local;  // values count from local
      y.slot[k] = (char *)((uintptr_t)base + (uintptr_t)shift);
    }
    for (int k = 0; k < g->ntask; k++) {
      const eini_task *s = &g->task[v][k];
      EINI_TRY(eini_task_run(&y, s, rest, 0, s->cut >= 0 ? s->extent[s->cut] : 0));
    }
  }
  return EIN_OK;
}

static ein_status eini_share_part(const eini_share *part, int i) {
  const eini_task *t = part->t;
  char *scratch = part->x->scratch + (size_t)i * part->x->p->scratch_bytes;
  if (t->kind == EINI_TASK_GROUP) return eini_group_run(part->x, t, scratch, i);
  if (t->kind == EINI_TASK_CONTRACT)
    return eini_contract_task_run(t, part->x->slot, part->x->param, scratch, i);
  int64_t n = t->extent[t->cut], size = (n + part->parts - 1) / part->parts;
  if (t->kind == EINI_TASK_MAP && t->nchunk == 1 && t->cut == t->chunk[0]) {
    size = (size + EINI_CHUNK - 1) / EINI_CHUNK * EINI_CHUNK;  // whole chunks
  }
  int64_t lo = eini_min64((int64_t)i * size, n), hi = eini_min64(lo + size, n);
  return lo < hi ? eini_task_run(part->x, t, scratch, lo, hi) : EIN_OK;
}

static void eini_share_run(void *arg, int i) {
  const eini_share *part = (const eini_share *)arg;
  part->x->status[i] = eini_share_part(part, i);
}

static ein_status eini_exec_task(const eini_exec *x, const eini_task *t) {
  const ein_executor *e = &x->p->executor;
  int parts = t->kind == EINI_TASK_CONTRACT || t->kind == EINI_TASK_GROUP ? t->parts
              : t->cut >= 0 && t->work >= 32768 ? e->width : 1;
  if (e->width > 1 && parts > 1) {
    eini_share part;
    part.x = x;
    part.t = t;
    part.parts = parts;
    e->parallel_for(parts, eini_share_run, &part, e->user);
    for (int i = 0; i < parts; i++) EINI_TRY(x->status[i]);
    return EIN_OK;
  }
  return eini_task_run(x, t, x->scratch, 0, t->cut >= 0 ? t->extent[t->cut] : 0);
}

// ---- overlap ----

// Do two ports share an element? Address intervals, then lattices: if the elements of both lie on
// grids of one pitch, they miss each other when their phases differ by at least an element.
static int eini_ports_overlap(const eini_port *a, const char *pa, const eini_port *b,
                              const char *pb) {
  if (a->lo == a->hi || b->lo == b->hi) return 0;
  uintptr_t a0 = (uintptr_t)pa + (uintptr_t)a->lo, a1 = (uintptr_t)pa + (uintptr_t)a->hi;
  uintptr_t b0 = (uintptr_t)pb + (uintptr_t)b->lo, b1 = (uintptr_t)pb + (uintptr_t)b->hi;
  if (a1 <= b0 || b1 <= a0) return 0;
  int64_t g = eini_gcd64(a->step, b->step);
  if (g == 0) return 1;
  int64_t sa = (int64_t)ein_dtype_size(a->info.dtype), sb = (int64_t)ein_dtype_size(b->info.dtype);
  int64_t phase = (int64_t)(((uintptr_t)pb - (uintptr_t)pa) % (uintptr_t)g);
  if ((uintptr_t)pb < (uintptr_t)pa) {
    phase = (int64_t)(((uintptr_t)pa - (uintptr_t)pb) % (uintptr_t)g);
    phase = phase == 0 ? 0 : g - phase;
  }
  return !(phase >= sa && phase + sb <= g);
}

// In place is safe when the only task is element-wise and reads the input where it writes.
static int eini_in_place(const ein_plan *p, int in, const void *pi, const void *po) {
  if (p->ntask != 1 || p->nout != 1 || pi != po || p->task[0].kind != EINI_TASK_MAP) return 0;
  const eini_task *t = &p->task[0];
  if (t->folder.fold != EINI_FOLD_NONE) return 0;
  for (int s = 0; s < t->out; s++) {
    if (t->ref[s].slot != in) continue;
    if (t->ref[s].offset != t->ref[t->out].offset ||
        ein_dtype_size(t->ref[s].dtype) != ein_dtype_size(t->ref[t->out].dtype)) {
      return 0;
    }
    for (int i = 0; i < t->nindex; i++) {
      if (t->extent[i] > 1 && t->stride[(int64_t)s * t->nindex + i] !=
                                  t->stride[(int64_t)t->out * t->nindex + i]) {
        return 0;
      }
    }
  }
  return 1;
}

// Finds overlaps: *copy gets a bit for every output that must go through a copy (31 at most, then
// all), *no_direct is set for in-place work.
static ein_status eini_exec_overlap(const ein_plan *p, const ein_run *run, uint32_t *copy,
                                    int *no_direct) {
  *copy = 0;
  for (int o = 0; o < p->nout; o++) {
    const char *po = (const char *)run->out[o];
    for (int i = 0; i < p->info.nin; i++) {
      if (!eini_ports_overlap(&p->out[o], po, &p->in[i], (const char *)run->in[i])) continue;
      if (eini_in_place(p, i, run->in[i], po)) {
        *no_direct = 1;
        continue;
      }
      if (!p->may_overlap) {
        return eini_run_error(run, EIN_ERR_OVERLAP, "the output overlaps input", i,
                              p->in[i].info.name);
      }
      *copy |= o < 31 ? (uint32_t)1 << o : ~(uint32_t)0;
    }
    for (int q = 0; q < o; q++) {
      if (eini_ports_overlap(&p->out[o], po, &p->out[q], (const char *)run->out[q])) {
        return eini_run_error(run, EIN_ERR_OVERLAP, "the output overlaps output", q,
                              p->out[q].info.name);
      }
    }
  }
  return EIN_OK;
}

// ---- one call ----

static ein_status eini_exec_bind(eini_exec *x, char *mem) {
  const ein_plan *p = x->p;
  const ein_run *run = x->run;
  x->slot = (char **)(void *)mem;
  x->param = (ein_scalar *)(void *)(mem + (size_t)p->nslot * sizeof(char *));
  x->status = (ein_status *)(void *)(x->param + p->info.nparam);
  char *temps = mem + p->head_bytes;
  x->scratch = temps + p->temp_bytes;
  for (int i = 0; i < p->info.nin; i++) {
    union { const void *c; char *v; } u;  // inputs share the slot table; they are only read
    u.c = run->in[i];
    x->slot[i] = u.v != NULL ? u.v : mem;  // empty: no element is read, but addresses are formed
    if (u.v == NULL && p->in[i].lo != p->in[i].hi)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no data for input", i, p->in[i].info.name);
  }
  for (int o = 0; o < p->nout; o++) {
    x->slot[p->nin + o] = run->out[o] != NULL ? (char *)run->out[o] : mem;
    if (run->out[o] == NULL && p->out[o].lo != p->out[o].hi)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no data for output", o, p->out[o].info.name);
  }
  if (p->temp_bytes > 0) {
    for (int64_t t = 0; t < p->graph->ntensor; t++) {
      x->slot[p->nin + p->nout + t] = temps + p->slot_offset[t];
    }
  }
  for (int k = 0; k < p->info.nparam; k++) {
    int given = run->param != NULL && run->param[k].set;
    x->param[k] = given ? run->param[k] : p->graph->param[k].value;
  }
  return eini_params_check(p->graph, run);
}

// Outputs that overlap inputs are computed in mirrors at `copies` and moved at the end.
static ein_status eini_exec_mirrors(eini_exec *x, uint32_t copy, char *copies) {
  const ein_plan *p = x->p;
  int mirror = p->nslot - p->nout;
  for (int o = 0; o < p->nout; o++) {
    x->slot[mirror + o] = copies - p->out[o].lo;
    int64_t span = p->out[o].hi - p->out[o].lo;
    copies += ((size_t)span + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
    if (!(copy >> (o < 31 ? o : 31) & 1) || p->out[o].lo == p->out[o].hi) continue;
    if (p->keeps) EINI_TRY(eini_exec_task(x, &p->copy_in[o]));
  }
  return EIN_OK;
}

static ein_status eini_exec_run(eini_exec *x, uint32_t copy, char *mem, char *copies) {
  const ein_plan *p = x->p;
  EINI_TRY(eini_exec_bind(x, mem));
  int mirror = p->nslot - p->nout;
  if (copy != 0) {
    EINI_TRY(eini_exec_mirrors(x, copy, copies));
    for (int o = 0; o < p->nout; o++)
      if (copy >> (o < 31 ? o : 31) & 1) x->slot[p->nin + o] = x->slot[mirror + o];
  }
  double *seconds = p->now_fn == NULL ? NULL : x->run->seconds;
  for (int k = 0; k < p->ntask; k++) {
    double from = seconds == NULL ? 0 : p->now_fn(p->now_user);
    if (p->checked && p->watch[k] != NULL)
      EINI_TRY(eini_watch_run(p->watch[k], x->slot, x->param, x->scratch, x->run->error,
                              x->run->error_bytes));
    const ein_status st = eini_exec_task(x, &p->task[k]);
    if (st != EIN_OK) {
      const ein_kernels *by = p->task[k].kernels;
      return eini_run_error(x->run, st, "a kernel failed in task", k,
                            by != NULL ? by->name : "portable");
    }
    if (seconds != NULL) seconds[k] = p->now_fn(p->now_user) - from;
  }
  if (copy != 0) {
    for (int o = 0; o < p->nout; o++) {
      x->slot[p->nin + o] = (char *)x->run->out[o];
      if ((copy >> (o < 31 ? o : 31) & 1) && p->out[o].lo != p->out[o].hi)
        EINI_TRY(eini_exec_task(x, &p->copy_back[o]));
    }
  }
  return EIN_OK;
}

// grow: a workspace without room for copies of overlapping outputs is replaced by an own one.
static ein_status eini_execute(const ein_plan *p, const ein_run *run, int grow) {
  if (p == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_run_begin(run, p->info.nin, p->nout));
  eini_exec x;
  uint32_t copy;
  x.p = p;
  x.run = run;
  x.no_direct = 0;
  EINI_TRY(eini_exec_overlap(p, run, &copy, &x.no_direct));
  size_t need = p->workspace + (copy != 0 ? p->copy_bytes : 0);
  char *mem = (char *)run->workspace, *own = NULL;
  if (grow && run->workspace_bytes < need) mem = NULL;
  if (mem != NULL && run->workspace_bytes < need) return eini_run_small(run, need);
  char stack[EINI_STACK_WORKSPACE + EINI_ALIGN];
  if (mem == NULL && need <= EINI_STACK_WORKSPACE) mem = stack;
  if (mem == NULL) {
    mem = own = (char *)p->al.alloc_fn(need, EINI_ALIGN, p->al.user);
    if (mem == NULL) return EIN_ERR_NO_MEMORY;
  }
  uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  char *base = mem + skew;  // the workspace has EINI_ALIGN spare bytes
  ein_status st = eini_exec_run(&x, copy, base, base + p->workspace - EINI_ALIGN);
  if (own != NULL) p->al.free_fn(own, need, p->al.user);
  return st;
}

EIN_API ein_status ein_plan_execute(const ein_plan *p, const ein_run *run) {
  return eini_execute(p, run, 0);
}

EIN_API size_t ein_plan_workspace(const ein_plan *p) {
  return p == NULL ? 0 : p->info.workspace_bytes;
}

EIN_API ein_status ein_plan_info_get(const ein_plan *p, ein_plan_info *info) {
  if (p == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = p->info;
  return EIN_OK;
}

EIN_API int ein_plan_input(const ein_plan *p, int i, ein_tensor_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->info.nin) return 0;
  *info = p->in[i].info;
  return 1;
}

EIN_API int ein_plan_output(const ein_plan *p, int i, ein_tensor_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->nout) return 0;
  *info = p->out[i].info;
  return 1;
}

EIN_API int ein_plan_param(const ein_plan *p, int i, ein_param_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->info.nparam) return 0;
  eini_param_info(&p->graph->param[i], info);
  return 1;
}

EIN_API void ein_plan_destroy(ein_plan *p) {
  if (p == NULL) return;
  eini_arena arena = p->arena;
  eini_graph_free(p->graph);
  eini_arena_free(&arena);
}

// ================================================================================================
// >>explain  plans as text and JSON
// Takes a plan; writes into a caller's buffer as snprintf does: the whole length is returned, what
// does not fit is cut.
// ================================================================================================

// A string in JSON quotes; control bytes and quotes escaped, UTF-8 kept.
static void eini_say_string(eini_text *t, const char *s) {
  eini_say(t, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') eini_say(t, "\\%c", c);
    else if (c < 32) eini_say(t, "\\u%04x", c);
    else eini_say(t, "%c", c);
  }
  eini_say(t, "\"");
}

// A number in JSON: integers exactly, NaN and infinity as null.
static void eini_say_number(eini_text *t, double x) {
  if (x - x != 0) eini_say(t, "null");
  else if (fabs(x) < 9e15 && x == floor(x)) eini_say(t, "%.0f", x);
  else eini_say(t, "%.17g", x);
}

// Operations of a statement, counted as opt_einsum does: one per factor and one for the sum.
static double eini_stmt_flops(const eini_stmt *s) {
  double n = 1;
  for (int i = 0; i < s->nindex; i++) n *= (double)s->index[i].extent;
  int factors = s->noperand > 1 ? s->noperand - 1 : 1;
  return n * (factors + (s->nindex > s->nfree && s->noperand > 1));
}

// The labels of an access, as far as its axes are plain indices, without commas.
static void eini_say_labels(eini_text *t, const eini_stmt *s, const ein_zmap *m) {
  int64_t n = (int64_t)m->rows * m->cols, terms = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t c = m->coef[i];
    if (i % m->cols == 0) terms = 0;
    if (c != 0 && c != 1) eini_say(t, c == -1 ? "-" : terms > 0 && c > 0 ? "+" : "");
    if (c != 0 && c != 1 && c != -1) eini_say(t, "%lld*", (long long)c);
    if (c != 0) eini_say(t, "%s", s->index[i % m->cols].name);
    terms += c != 0;
  }
}

// "ij,jk->ik"
static void eini_say_einsum(eini_text *t, const eini_stmt *s) {
  for (int k = 0; k < s->noperand; k++) {
    if (k > 0) eini_say(t, ",");
    eini_say_labels(t, s, &s->proj[k]);
  }
  eini_say(t, "->");
  eini_say_labels(t, s, &s->out_map);
}

// Provider and variant; the portable kernels go by what they do.
static void eini_say_kernel(eini_text *t, const eini_task *task) {
  const char *what = task->kind == EINI_TASK_CONTRACT ? "contract"
                     : task->kind == EINI_TASK_COPY ? "copy"
                     : task->folder.fold == EINI_FOLD_NONE ? "map" : "map-reduce";
  if (task->kernels == NULL) eini_say(t, "%s", what);
  else eini_say(t, "%s", task->kernels->name);
  if (task->choice.variant[0]) eini_say(t, "-%s", task->choice.variant);
}

// Bytes moved at least: every tensor of the task once.
static double eini_task_bytes(const ein_graph *g, const eini_task *t) {
  double bytes = 0;
  for (int which = 0; which < 2; which++) {
    const eini_stmt *s = which ? t->fused : t->stmt;
    if (s == NULL) continue;
    for (int k = -1; k < s->noperand; k++) {
      if (which == 0 && k < 0 && t->fused != NULL) continue;
      if (which == 1 && k >= 0 && s->operand[k] == t->stmt->out) continue;
      const eini_tensor *x = &g->tensor[k < 0 ? s->out : s->operand[k]];
      double n = (double)ein_dtype_size(x->dtype);
      for (int a = 0; a < x->rank; a++) n *= (double)x->shape[a];
      bytes += n;
    }
  }
  return bytes;
}

// What is known of a task's result; *from: of what its error is counted from.
static double eini_task_bound(const ein_plan *p, const eini_task *task, const char **from) {
  int known;
  const double e = eini_plan_bound(p, task->fused != NULL ? task->fused : task->stmt, &known);
  *from = e < 0 ? NULL : known && !p->inner ? "inputs" : "operands";
  return e;
}

// ---- fallbacks: statements that no provider of kernels takes, where there is any ----

// Is one of the operations not the portable one?
static int eini_code_fast(const eini_code *code, int *nop) {
  int found = 0;
  for (int i = 0; i < code->nins; i++) {
    const eini_ins *ins = &code->ins[i];
    int portable = ins->kind != EINI_INS_OP || ins->op == 0;
    if (ins->kind == EINI_INS_LOAD || ins->op == 0) continue;
    ++*nop;
    for (size_t r = 0; r < sizeof eini_chunk_table / sizeof *eini_chunk_table; r++)
      for (int c = 0; c < 7 && eini_chunk_table[r].op == ins->op; c++)
        portable |= eini_chunk_table[r].fn[c] == ins->fn;
    found |= !portable;
  }
  return found;
}

// Is a map or its fold done by operations that a provider has, or has none of them any?
static int eini_map_fast(const ein_plan *p, const eini_task *task) {
  const eini_folder *f = &task->folder;
  int nop = f->fold != EINI_FOLD_NONE, any = 0, found = eini_code_fast(&task->code, &nop);
  if (task->has_epi) found |= eini_code_fast(&task->epi, &nop);
  if (f->fold != EINI_FOLD_NONE && f->fold <= EINI_ALL)
    found |= f->across != eini_across_find(NULL, f->fold, f->type);
  if (f->max_fn != NULL) found |= f->max_fn != eini_across_find(NULL, EINI_MAX, f->type);
  for (int k = 0; k < p->nkernels; k++) {
    const ein_kernels *fast = p->kernels[k];
    any |= fast->chunk_fn != NULL && (fast->ordered || !p->graph->ordered) &&
           fast->chunk_fn(fast->user, EINI_OP_EXP, EIN_F32) != NULL;
  }
  return found || nop == 0 || !any;
}

// Why a task runs in portable kernels although there are others; NULL: it does not. room: for it.
static const char *eini_fallback(const ein_plan *p, const eini_task *task, eini_text *room) {
  int asked = 0;
  if (p->nkernels == 0 || task->kernels != NULL || task->stmt == NULL) return NULL;
  for (int i = 0; i < task->ncandidate; i++)
    asked |= strcmp(task->candidate[i].name, "portable") != 0;
  if (asked) return NULL;  // one could, and would take longer
  if (task->kind == EINI_TASK_CONTRACT) {
    eini_say(room, "no provider contracts %s by %s", ein_dtype_name(task->contract->c.type),
             eini_fold_name(p->graph, task->stmt->fold));
  } else if (task->kind == EINI_TASK_COPY) {
    eini_say(room, "no provider copies elements of %d bytes that way",
             (int)ein_dtype_size(task->ref[task->out].dtype));
  } else {
    if (eini_map_fast(p, task)) return NULL;
    eini_say(room, "no provider has an operation of it in %s",
             ein_dtype_name((ein_dtype)task->code.type));
  }
  return room->buf;
}

// What it adds in, how far from the truth it may be, and why it is slow.
static void eini_say_accuracy(eini_text *t, const ein_plan *p, const eini_task *task) {
  char why[128];
  eini_text room = eini_text_of(why, sizeof why);
  const ein_dtype sums = eini_stmt_accumulates(p->graph, task->stmt);
  const char *from, *fallback = eini_fallback(p, task, &room);
  const double e = eini_task_bound(p, task, &from);
  eini_say(t, "\n        ");
  if (sums != EIN_NONE) eini_say(t, "accumulates in %s; ", ein_dtype_name(sums));
  if (e < 0) eini_say(t, "no error bound is known");
  else if (e > 0) eini_say(t, "error at most %.3g of the sum of absolute values, ", e);
  else if (sums == EIN_NONE || eini_kind_of(sums) >= EINI_KREAL) eini_say(t, "exact, ");
  else eini_say(t, "exact, but integers wrap, ");
  if (from != NULL)
    eini_say(t, strcmp(from, "inputs") == 0 ? "from the inputs on" : "operands taken as stored");
  if (fallback != NULL) eini_say(t, "\n        fallback: portable kernels, %s", fallback);
}

static void eini_say_task(eini_text *t, const ein_plan *p, const eini_task *task, int k) {
  char kernel[64];
  eini_text name = eini_text_of(kernel, sizeof kernel);
  eini_say_kernel(&name, task);
  eini_say(t, "%4d  %-16s ", k, kernel);
  eini_say_stmt(t, p->graph, task->stmt);
  if (task->fused != NULL) eini_say(t, ", then ");
  if (task->fused != NULL) eini_say_stmt(t, p->graph, task->fused);
  eini_say(t, "  %.3g flops, %.3g bytes", eini_stmt_flops(task->stmt),
           eini_task_bytes(p->graph, task));
  eini_say_accuracy(t, p, task);
  for (int i = 0; i < task->ncandidate && p->nkernels > 0; i++) {
    const eini_candidate *x = &task->candidate[i];
    eini_say(t, "%s%s-%s %.3g s", i == 0 ? "\n        predicted: " : ", ", x->name, x->variant,
             x->seconds);
  }
  eini_say(t, "\n");
}

static int eini_fallbacks(const ein_plan *p) {
  const eini_task *task;
  int n = 0;
  for (int k = 0; k < p->ntask; k++) {
    for (int i = 0; (task = eini_task_inner(&p->task[k], i)) != NULL; i++) {
      char why[128];
      eini_text room = eini_text_of(why, sizeof why);
      n += eini_fallback(p, task, &room) != NULL;
    }
  }
  return n;
}

static void eini_say_group(eini_text *t, const eini_task *task, int k) {
  const eini_group *g = task->group;
  eini_say(t, "%4d  group of %d, blocks of", k, g->ntask);
  for (int j = 0; j < g->nloop; j++) {
    eini_say(t, "%s%lld of %lld", j > 0 ? " x " : " ", (long long)g->block[j],
             (long long)g->extent[j]);
  }
  eini_say(t, "; %.3g bytes of temporaries are never stored\n", g->saved);
}

EIN_API size_t ein_plan_explain_run(const ein_plan *p, const double *seconds, char *buf,
                                    size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p == NULL) return 0;
  eini_say(&t,
           "plan: %d input%s, %d output%s, %d task%s, workspace %lld bytes (temporaries %lld)\n",
           p->info.nin, p->info.nin == 1 ? "" : "s", p->nout, p->nout == 1 ? "" : "s", p->ntask,
           p->ntask == 1 ? "" : "s", (long long)p->info.workspace_bytes, (long long)p->temp_bytes);
  if (p->graph->ordered)
    eini_say(&t, "deterministic: the same bits for any number of threads and places\n");
  eini_say(&t, "path: %s%s, %.4g flops, largest intermediate %.4g elements\n",
           p->info.method == NULL ? "none" : p->info.method,
           p->info.proved == 1 ? " (optimal)" : p->info.proved == 2
               ? " (optimal among paths without outer products)" : "",
           p->info.flops, p->info.largest);
  for (int64_t k = 0; k < p->nverdict; k++) {
    const eini_verdict *v = &p->verdict[k];
    eini_say(&t, "choice: %s", v->out);
    if (v->units > 0) eini_say(&t, " and the %d before it", v->units - 1);
    for (int i = 0; i < (v->units == 0 ? 3 : 2); i++)
      eini_say(&t, "%s %s %.3g s%s", i == 0 ? ":" : ",", eini_verdict_way(v, i), v->seconds[i],
               i == v->taken ? " (taken)" : "");
    eini_say(&t, "\n");
  }
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *task;
    if (p->task[k].kind == EINI_TASK_GROUP) eini_say_group(&t, &p->task[k], k);
    for (int i = 0; (task = eini_task_inner(&p->task[k], i)) != NULL; i++) {
      eini_say_task(&t, p, task, k);
    }
    if (seconds != NULL) eini_say(&t, "        measured: %.3g s\n", seconds[k]);
  }
  if (p->nkernels > 0)
    eini_say(&t, "fallbacks: %d statement%s in portable kernels\n", eini_fallbacks(p),
             eini_fallbacks(p) == 1 ? "" : "s");
  return t.at;
}

EIN_API size_t ein_plan_explain(const ein_plan *p, char *buf, size_t size) {
  return ein_plan_explain_run(p, NULL, buf, size);
}

static void eini_json_names(eini_text *t, const char *key, const eini_stmt *s, int from, int to) {
  eini_say(t, ", \"%s\": [", key);
  for (int i = from; i < to; i++) {
    const char *name = s->index[i].name;
    if (i > from) eini_say(t, ", ");
    eini_say_string(t, name == NULL || !name[0] ? "?" : name);
  }
  eini_say(t, "]");
}

static void eini_json_accuracy(eini_text *t, const ein_plan *p, const eini_task *task) {
  char why[128];
  eini_text room = eini_text_of(why, sizeof why);
  const eini_stmt *s = task->stmt;
  const ein_dtype sums = eini_stmt_accumulates(p->graph, s);
  const char *from, *fallback = eini_fallback(p, task, &room);
  const double e = eini_task_bound(p, task, &from);
  eini_json_names(t, "free", s, 0, s->nfree);
  eini_json_names(t, "reduced", s, s->nfree, s->nindex);
  eini_say(t, ", \"dtype\": \"%s\", \"accumulates\": ",
           ein_dtype_name((task->fused != NULL ? task->fused : s)->type));
  if (sums != EIN_NONE) eini_say(t, "\"%s\"", ein_dtype_name(sums));
  else eini_say(t, "null");
  eini_say(t, ", \"error_bound\": ");
  if (e < 0) eini_say(t, "null");
  else eini_say(t, "%.17g", e);
  if (from != NULL) eini_say(t, ", \"error_from\": \"%s\", \"fallback\": ", from);
  else eini_say(t, ", \"error_from\": null, \"fallback\": ");
  if (fallback != NULL) eini_say_string(t, fallback);
  else eini_say(t, "null");
}

static void eini_json_task(eini_text *t, const ein_plan *p, const eini_task *task, int group) {
  const eini_stmt *s = task->stmt, *f = task->fused;
  eini_say(t, "{\"out\": ");
  eini_say_string(t, p->graph->tensor[(f ? f : s)->out].name);
  eini_say(t, ", \"from\": [");
  if (s->line > 0) eini_say(t, "%lld", (long long)s->line);
  if (f != NULL && f->line > 0 && f->line != s->line)
    eini_say(t, "%s%lld", s->line > 0 ? ", " : "", (long long)f->line);
  eini_say(t, group < 0 ? "], \"group\": null, \"path\": [[" : "], \"group\": %d, \"path\": [[",
           group);
  for (int k = 0; k < s->noperand; k++) eini_say(t, "%s%d", k > 0 ? ", " : "", k);
  for (int part = 0; part < 2; part++) {
    eini_say(t, part ? "}, \"parts\": {" : "]], \"indices\": {");
    for (int i = 0; i < s->nindex; i++) {
      const char *name = s->index[i].name;
      if (i > 0) eini_say(t, ", ");
      eini_say_string(t, name == NULL || !name[0] ? "?" : name);
      eini_say(t, ": %lld", part ? 1LL : (long long)s->index[i].extent);
    }
  }
  eini_say(t, "}, \"join\": 0, \"agg\": 0, \"repart\": 0, \"tasks\": 1, \"bytes\": 0, "
           "\"kernels\": [\"");
  eini_say_kernel(t, task);
  eini_say(t, "\"], \"seconds\": ");
  if (task->ncandidate > 0) eini_say(t, "%.3g", task->choice.seconds);
  else eini_say(t, "null");
  eini_say(t, ", \"io_bound\": null, \"flops\": ");
  eini_say_number(t, eini_stmt_flops(s));
  eini_say(t, ", \"traffic\": ");
  eini_say_number(t, eini_task_bytes(p->graph, task));
  eini_json_accuracy(t, p, task);
  eini_say(t, ", \"fold\": ");
  if (s->fold == EINI_FOLD_NONE) eini_say(t, "null");
  else eini_say_string(t, eini_fold_name(p->graph, s->fold));
  eini_say(t, ", \"einsum\": ");
  char label[256];
  eini_text e = eini_text_of(label, sizeof label);
  eini_say_einsum(&e, s);
  if (e.at < sizeof label) eini_say_string(t, label);
  else eini_say(t, "null");
  eini_say(t, ", \"operands\": [");
  for (int k = 0; k < s->noperand; k++) {
    if (k > 0) eini_say(t, ", ");
    eini_say_string(t, p->graph->tensor[s->operand[k]].name);
  }
  eini_say(t, "]}");
}

static void eini_json_seconds(eini_text *t, double seconds) {
  eini_say(t, ", \"seconds\": ");
  eini_say_number(t, seconds > 0 ? seconds : NAN);
}

// Members that every plan has, whatever it was made for; what is not known is null.
static void eini_json_head(eini_text *t, const ein_plan *p) {
  const eini_path *path = p != NULL && p->npath > 0 && p->path[0].first != NULL ? p->path : NULL;
  const int proved = p != NULL ? p->info.proved : 0;
  eini_say(t, ", \"method\": ");
  eini_say_string(t, p == NULL || p->info.method == NULL ? "none" : p->info.method);
  eini_say(t, ", \"proved\": %s, \"proved_of\": %s",
           proved ? "true" : path == NULL ? "null" : "false",
           proved == 1 ? "\"paths\"" : proved == 2 ? "\"paths without outer products\"" : "null");
  eini_say(t, ", \"lower\": null, \"gap\": null, \"family\": null, \"inputs\": null, "
           "\"machine\": null, \"path\": ");
  for (int i = 0; path != NULL && i < path->nstep; i++) {
    eini_say(t, i == 0 ? "[" : ", ");
    for (int k = path->first[i]; k < path->first[i + 1]; k++)
      eini_say(t, "%s%d", k > path->first[i] ? ", " : "[", path->pos[k]);
    eini_say(t, "]");
  }
  eini_say(t, path == NULL ? "null" : path->nstep == 0 ? "[]" : "]");
}

// `said` of them are there already. Returns how many there are then.
static int eini_json_choices(eini_text *t, const ein_plan *p, int said) {
  for (int64_t k = 0; k < p->nverdict; k++) {
    const eini_verdict *v = &p->verdict[k];
    eini_say(t, said++ == 0 ? "{\"out\": " : ", {\"out\": ");
    eini_say_string(t, v->out);
    eini_say(t, ", \"taken\": \"%s\", \"seconds\": {", eini_verdict_way(v, v->taken));
    for (int i = 0; i < (v->units == 0 ? 3 : 2); i++) {
      eini_say(t, "%s\"%s\": ", i > 0 ? ", " : "", eini_verdict_way(v, i));
      eini_say_number(t, v->seconds[i]);
    }
    eini_say(t, "}}");
  }
  return said;
}

static int eini_json_statements(eini_text *t, const ein_plan *p, int said) {
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *task;
    for (int i = 0; (task = eini_task_inner(&p->task[k], i)) != NULL; i++) {
      if (said++ > 0) eini_say(t, ", ");
      eini_json_task(t, p, task, p->task[k].kind == EINI_TASK_GROUP ? k : -1);
    }
  }
  return said;
}

EIN_API size_t ein_plan_json(const ein_plan *p, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p == NULL) return 0;
  eini_say(&t, "{\"p\": 1, \"deterministic\": %s, \"cost_model\": \"flops\", \"total\": ",
           p->graph->ordered ? "true" : "false");
  eini_say_number(&t, p->info.flops);
  eini_say(&t, ", \"flops\": ");
  eini_say_number(&t, p->info.flops);
  eini_say(&t, ", \"naive_flops\": ");
  eini_say_number(&t, p->info.naive_flops);
  eini_say(&t, ", \"largest\": ");
  eini_say_number(&t, p->info.largest);
  eini_say(&t, ", \"peak_bytes\": %lld, \"workspace_bytes\": %lld",
           (long long)p->temp_bytes, (long long)p->info.workspace_bytes);
  eini_json_seconds(&t, p->info.seconds);
  eini_say(&t, ", \"fallbacks\": %d", eini_fallbacks(p));
  eini_json_head(&t, p);
  eini_say(&t, ", \"memory\": null, \"regions\": [], \"choices\": [");
  (void)eini_json_choices(&t, p, 0);
  eini_say(&t, "], \"statements\": [");
  (void)eini_json_statements(&t, p, 0);
  eini_say(&t, "]}");
  return t.at;
}

// ================================================================================================
// >>request  einsum descriptors
// Takes notation, views, monoid, map, alpha and beta; gives the statements of a graph, and a plan.
// ================================================================================================

static ein_status eini_fail_space(eini_diag *d, const ein_ztensor *v, const char *name) {
  return eini_fail(d, EIN_ERR_UNSUPPORTED, -1, 0, "copy it to the host",
                   "%s lies in memory space %d; only the host's, 0, is known here", name, v->space);
}

// What is wrong with a view: the field and its value.
static ein_status eini_fail_view(eini_diag *d, ein_status st, const ein_ztensor *v,
                                 const char *name) {
  int k = 0;
  if (st == EIN_ERR_UNSUPPORTED) return eini_fail_space(d, v, name);
  if (v->rank < 0)
    return eini_fail(d, st, -1, 0, NULL, "%s has rank %d", name, v->rank);
  if (v->rank > 0 && v->shape == NULL)
    return eini_fail(d, st, -1, 0, NULL, "%s has rank %d, but its shape is NULL", name, v->rank);
  if (v->buffer == NULL && v->buffer_bytes > 0)
    return eini_fail(d, st, -1, 0, NULL, "%s has buffer_bytes %llu, but its buffer is NULL",
                     name, (unsigned long long)v->buffer_bytes);
  if (st == EIN_ERR_DTYPE)
    return eini_fail(d, st, -1, 0, "set it: EIN_F32, EIN_F64, ..", "%s has no dtype, but %d", name,
                     (int)v->dtype);
  while (k < v->rank && v->shape[k] >= 0) k++;
  if (k < v->rank)
    return eini_fail(d, st, -1, 0, NULL, "%s has shape[%d] = %lld", name, k,
                     (long long)v->shape[k]);
  return eini_fail(d, st, -1, 0, NULL, "%s is not a valid view: %s", name, ein_status_text(st));
}

// Views by name: a list that is there, of names and valid views.
static ein_status eini_validate_bindings(eini_diag *d, const char *list, int n,
                                         const ein_binding *b) {
  if (n < 0 || (n > 0 && b == NULL))
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "n%s is %d%s", list, n,
                     n < 0 ? "" : ", but the list is NULL");
  for (int k = 0; k < n; k++) {
    char name[96];
    if (b[k].name == NULL || b[k].view == NULL)
      return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "%s[%d] has no %s: it is NULL", list, k,
                       b[k].name == NULL ? "name" : "view");
    snprintf(name, sizeof name, "'%.80s'", b[k].name);
    ein_status st = eini_view_validate(b[k].view);
    if (st != EIN_OK) return eini_fail_view(d, st, b[k].view, name);
  }
  return EIN_OK;
}

// No more operands are read than an expression names.
static int eini_terms_fit(const ein_einsum_desc *d) {
  int64_t terms = 1;
  for (const char *s = d->expr; s != NULL && *s != 0 && *s != '-'; s++) terms += *s == ',';
  return d->expr == NULL || d->nin <= terms;
}

static ein_status eini_validate_views(eini_diag *d, int nin, const ein_ztensor *in,
                                      const ein_ztensor *out, const ein_ztensor *c) {
  if (nin < 1)
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, "an einsum has at least one operand",
                     "nin is %d", nin);
  if (in == NULL)
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "nin is %d, but in is NULL", nin);
  for (int k = 0; k < nin + 2; k++) {
    const ein_ztensor *v = k < nin ? &in[k] : k == nin ? out : c;
    if (v == NULL) continue;
    ein_status st = eini_view_validate(v);
    if (st == EIN_OK) continue;
    char name[32];
    snprintf(name, sizeof name, k < nin ? "operand %d" : k == nin ? "the output" : "C", k);
    return eini_fail_view(d, st, v, name);
  }
  return EIN_OK;
}

// What a descriptor means once its notation is read.
typedef struct eini_request {
  const ein_einsum_desc *d;
  ein_ctx *ctx;
  eini_diag *diag;
  eini_notation no;
  eini_value *value;
  int *axes, rank;           // label ids of the output
  int64_t *shape;            // of the output
  ein_dtype dtype;           // logical dtype of the result
  ein_dtype meet;            // what operands promote to
  int fold;
  int sums;                  // the fold is numpy.einsum's: a sum, of bool any
  int norm;                  // the root of a sum of squares
  int lone;                  // a fold of single values that changes them
  eini_expr map;             // with desc->map
} eini_request;

static ein_status eini_request_fold(eini_request *r, ein_graph *g) {
  const char *name = r->d->monoid;
  r->norm = name != NULL && strcmp(name, "norm") == 0;
  r->fold = EINI_SUM;
  if (name != NULL && !r->norm) EINI_TRY(eini_fold_named(g, r->diag, name, &r->fold));
  r->sums = r->fold == EINI_SUM && !r->norm && r->d->map == NULL;
  if (r->sums && r->meet == EIN_BOOL) r->fold = EINI_ANY;
  return EIN_OK;
}

static int eini_request_reduces(const eini_request *r) {
  int reduces = 0;
  for (int i = 0; i < r->no.nlabel; i++) {
    int kept = 0;
    for (int a = 0; a < r->rank; a++) kept |= r->axes[a] == i;
    reduces |= !kept;
  }
  return reduces;
}

// A fold asked for is taken of single values too, so that a result does not depend on whether an
// index of extent 1 is there: then the first operand has one, beyond those of the expression.
static ein_status eini_request_lone(eini_request *r, ein_graph *g) {
  eini_value *v = &r->value[0];
  r->lone = r->d->monoid != NULL && !r->sums && !r->norm && !eini_request_reduces(r);
  if (!r->lone) return EIN_OK;
  int *label = EINI_NEW(&g->arena, int, v->nlabel + 1);
  ein_zmap map;
  if (label == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(&g->arena, v->map->rows, v->nlabel + 1, &map));
  for (int c = 0; c < v->nlabel; c++) {
    label[c] = v->label[c];
    for (int row = 0; row < map.rows; row++)
      map.coef[(int64_t)row * map.cols + c] = v->map->coef[(int64_t)row * v->nlabel + c];
  }
  for (int row = 0; row < map.rows; row++) map.offset[row] = v->map->offset[row];
  label[v->nlabel++] = r->no.nlabel;
  v->label = label;
  v->map[0] = map;
  return EIN_OK;
}

// What all operands (and a dtype t, or none) promote to. As in NumPy the highest comes first: u8,
// i8 and f16 meet in f16, though u8 and i8 alone meet in i16.
static ein_dtype eini_meet_all(int nin, const ein_ztensor *in, ein_dtype t) {
  ein_dtype top = t;
  for (int k = 0; k < nin; k++) top = in[k].dtype > top ? in[k].dtype : top;
  top = ein_dtype_promote(top, t);
  for (int k = 0; k < nin; k++) top = ein_dtype_promote(top, in[k].dtype);
  return top;
}

// Parses and types the map: positions of its mistakes are in its text. Sets the dtype it gives.
static ein_status eini_request_map(eini_request *r, ein_graph *g) {
  const ein_einsum_desc *d = r->d;
  for (int k = 0; d->conj != NULL && k < d->nin; k++) {
    if (!d->conj[k]) continue;
    return eini_fail(r->diag, EIN_ERR_ARGUMENT, -1, 0, "write conj(x0) in the map",
                     "conj flags do not go with a map");
  }
  eini_diag_text(r->diag, d->map, (int64_t)strlen(d->map));
  eini_typing ty;
  eini_expr typed;
  memset(&ty, 0, sizeof ty);
  ein_dtype *od = EINI_NEW(&g->arena, ein_dtype, d->nin);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nin; k++) od[k] = d->in[k].dtype;
  ty.operand = od;
  ty.function = g->function;
  ty.diag = r->diag;
  EINI_TRY(eini_parse_map(g, r->diag, d->map, d->nin, 0, NULL, &r->map));
  EINI_TRY(eini_expr_type(&g->arena, &ty, &r->map, &typed));
  r->dtype = (ein_dtype)typed.node[typed.n - 1].dtype;
  eini_diag_text(r->diag, d->expr, d->expr == NULL ? 0 : (int64_t)strlen(d->expr));
  return EIN_OK;
}

static ein_status eini_request_read(eini_request *r, ein_graph *g) {
  const ein_einsum_desc *d = r->d;
  r->no.arena = &g->arena;
  r->no.diag = r->diag;
  EINI_TRY(eini_notation_read(&r->no, d, &r->value, &r->axes, &r->rank));
  r->shape = EINI_NEW(&g->arena, int64_t, r->rank);
  if (r->shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int a = 0; a < r->rank; a++) r->shape[a] = r->no.label[r->axes[a]].extent;
  r->meet = eini_meet_all(d->nin, d->in, EIN_NONE);
  EINI_TRY(eini_request_fold(r, g));
  EINI_TRY(eini_request_lone(r, g));
  return d->map != NULL ? eini_request_map(r, g) : EIN_OK;
}

// The output's dtype takes part in the promotion of sums and products, as out= does in NumPy: small
// integers do not wrap in a wide output. A complex output alone does not make the work complex.
static void eini_request_widen(eini_request *r) {
  if (!r->sums && (r->d->map != NULL || (r->fold != EINI_PROD && !r->norm))) return;
  ein_dtype t = r->d->out->dtype;
  if (eini_kind_of(r->meet) != EINI_KCOMPLEX)
    t = t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
  r->meet = eini_meet_all(r->d->nin, r->d->in, t);
  if (r->sums && r->meet != EIN_BOOL) r->fold = EINI_SUM;
}

// Operands as expressions: converted to the common dtype (NumPy casts before it multiplies) and
// conjugated where asked.
static ein_status eini_request_leaf(eini_request *r, ein_graph *g, int k, eini_expr *e) {
  ein_dtype t = r->d->in[k].dtype;
  int id = eini_expr_add(&g->arena, e, EINI_OP_OPERAND, -1, 0, 0, 0);
  if (id >= 0 && r->d->map == NULL && ein_dtype_compute(t) != ein_dtype_compute(r->meet)) {
    id = eini_expr_add(&g->arena, e, EINI_OP_CAST, -1, id, 0, 0);
    if (id >= 0) e->node[id].dtype = (unsigned char)r->meet;
  }
  if (id >= 0 && r->d->conj != NULL && r->d->conj[k] && eini_kind_of(t) == EINI_KCOMPLEX)
    id = eini_expr_add(&g->arena, e, EINI_OP_CONJ, -1, id, 0, 0);
  return id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_split_init(eini_request *r, ein_graph *g, eini_split *sp) {
  memset(sp, 0, sizeof *sp);
  sp->g = g;
  sp->diag = r->diag;
  sp->nlabel = r->no.nlabel + r->lone;
  eini_index *label = EINI_NEW(&g->arena, eini_index, sp->nlabel);
  char *names = EINI_NEW(&g->arena, char, (int64_t)sp->nlabel * 16);
  sp->local = EINI_NEW(&g->arena, int, sp->nlabel);
  if (label == NULL || names == NULL || sp->local == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < r->no.nlabel; i++) {
    label[i].extent = r->no.label[i].extent;
    label[i].name = eini_label_text(r->no.label[i].key, names + (size_t)i * 16, 16, r->no.is_text);
  }
  for (int i = 0; i < sp->nlabel; i++) sp->local[i] = -1;
  if (r->lone) label[r->no.nlabel].extent = 1, label[r->no.nlabel].name = "_";
  sp->label = label;
  sp->fold = r->fold;
  sp->join = EINI_OP_MUL;
  sp->rates = r->d->options.deterministic ? NULL : eini_rates_of(r->ctx);
  sp->numpy = r->d->map == NULL;  // a map is of the language: its booleans are counted
  sp->pos = -1;
  return EIN_OK;
}

// One pass over all operands with a map of the user's: the values become one.
static ein_status eini_request_mapped(eini_request *r, ein_graph *g, eini_value *all) {
  const ein_einsum_desc *d = r->d;
  eini_arena *a = &g->arena;
  memset(all, 0, sizeof *all);
  int64_t total = 0;
  for (int k = 0; k < d->nin; k++) total += r->value[k].nlabel;
  all->label = EINI_NEW(a, int, total);
  all->op = EINI_NEW(a, int, d->nin);
  all->map = EINI_NEW(a, ein_zmap, d->nin);
  if (all->label == NULL || all->op == NULL || all->map == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < d->nin; k++) {
    for (int c = 0; c < r->value[k].nlabel; c++) all->label[n++] = r->value[k].label[c];
  }
  all->nlabel = eini_sort_unique(all->label, n);
  all->nop = d->nin;
  for (int k = 0; k < d->nin; k++) {
    const eini_value *v = &r->value[k];
    all->op[k] = v->op[0];
    EINI_TRY(eini_zmap_new(a, v->map->rows, all->nlabel, &all->map[k]));
    for (int row = 0; row < v->map->rows; row++) {
      for (int c = 0; c < v->nlabel; c++) {
        all->map[k].coef[(int64_t)row * all->nlabel +
                         eini_find_sorted(all->label, all->nlabel, v->label[c])] =
            v->map->coef[(int64_t)row * v->nlabel + c];
      }
    }
  }
  all->expr = r->map;
  return EIN_OK;
}

// ---- a path given as text ----
// Steps of one or more positions: "(0,1) (0,1)", "0,1 0,1", Python's "[(0, 1), (0,)]" or JSON's
// "[[0, 1], [0]]".

typedef struct eini_path_text {
  eini_diag *diag;
  const char *text;
  int64_t at;
  int64_t *where, nwhere, cap;  // bytes at which positions stand
  int *pos;
} eini_path_text;

static ein_status eini_path_wrong(eini_path_text *t, int64_t at, const char *what) {
  return eini_fail(t->diag, EIN_ERR_ARGUMENT, at, 1, "write steps as (0,1) (0,1) or [[0,1],[0,1]]",
                   "the path is not a list of steps: %s", what);
}

static int eini_path_skip(eini_path_text *t) {
  while (t->text[t->at] == ' ') t->at++;
  return (unsigned char)t->text[t->at];
}

// Reads "0,1" up to `close`; without brackets (close 0) it ends where no comma follows.
static ein_status eini_path_numbers(eini_arena *a, eini_path_text *t, int close) {
  for (;;) {
    int c = close != 0 ? eini_path_skip(t) : (unsigned char)t->text[t->at];
    if (!eini_is_digit((unsigned char)c)) return eini_path_wrong(t, t->at, "a position is missing");
    int64_t *w = (int64_t *)eini_grow(a, t->where, t->nwhere, &t->cap, sizeof *w);
    if (w == NULL) return EIN_ERR_NO_MEMORY;
    t->where = w;
    w[t->nwhere++] = t->at;
    while (eini_is_digit((unsigned char)t->text[t->at])) t->at++;
    c = close != 0 ? eini_path_skip(t) : (unsigned char)t->text[t->at];
    if (c == ',') t->at++;
    if (c == ',' && (close == 0 || eini_path_skip(t) != close)) continue;
    if (close == 0) return EIN_OK;
    if (eini_path_skip(t) != close) return eini_path_wrong(t, t->at, "a bracket is open");
    t->at++;
    return EIN_OK;
  }
}

static ein_status eini_path_steps(eini_arena *a, eini_path_text *t, eini_path *path) {
  int64_t cap = 0;
  int c = eini_path_skip(t);
  int64_t begin = t->at++;
  int whole = c == '[' && (eini_path_skip(t) == '[' || t->text[t->at] == '(');
  if (!whole) t->at = begin;
  for (;;) {
    int *f = (int *)eini_grow(a, path->first, path->nstep, &cap, sizeof *f);
    if (f == NULL) return EIN_ERR_NO_MEMORY;
    path->first = f;
    f[path->nstep] = (int)t->nwhere;
    c = eini_path_skip(t);
    if (c == 0 || (whole && c == ']')) break;
    if (path->nstep > INT_MAX / 4 || t->nwhere > INT_MAX / 4) return EIN_ERR_TOO_LARGE;
    if (c == '(' || c == '[') t->at++;
    EINI_TRY(eini_path_numbers(a, t, c == '(' ? ')' : c == '[' ? ']' : 0));
    path->nstep++;
    if (eini_path_skip(t) != ',') continue;
    t->at++;
    if (!whole && eini_path_skip(t) == 0) return eini_path_wrong(t, t->at, "a step is missing");
  }
  t->at += whole && c == ']';
  if (whole && c != ']') return eini_path_wrong(t, t->at, "a bracket is open");
  return eini_path_skip(t) == 0 ? EIN_OK : eini_path_wrong(t, t->at, "it goes on after its end");
}

// Reads the path and its costs. Messages point into its text.
static ein_status eini_path_parse(eini_arena *a, eini_diag *diag, const char *s,
                                  const eini_net *net, eini_path *path) {
  eini_path_text t;
  int bad = -1;
  memset(&t, 0, sizeof t);
  memset(path, 0, sizeof *path);
  t.diag = diag;
  t.text = s;
  eini_diag_text(diag, s, (int64_t)strlen(s));
  EINI_TRY(eini_path_steps(a, &t, path));
  path->pos = EINI_NEW(a, int, t.nwhere);
  if (path->pos == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < t.nwhere; k++) {
    const char *c = s + t.where[k];
    for (; eini_is_digit((unsigned char)*c); c++)  // what is larger than any position stays so
      if (path->pos[k] < INT_MAX / 16) path->pos[k] = 10 * path->pos[k] + (*c - '0');
  }
  path->method = "user";
  ein_status st = eini_path_cost(a, net, path, &bad);
  if (st != EIN_ERR_ARGUMENT) return st;
  if (bad < 0)
    return eini_fail(diag, st, t.at, 1, "the last step makes the result",
                     "the path ends before or after %d operands are one", net->nterm);
  return eini_fail(diag, st, t.where[bad], 1,
                   "positions count the operands still there, from 0; results go to the end",
                   "position %d is not there, or twice in its step", path->pos[bad]);
}

// How a product is computed: as predicted to be fastest, along a path that a search finds, along
// the user's, or unsplit in one pass.
typedef enum eini_way {
  EINI_WAY_FASTEST, EINI_WAY_SEARCH, EINI_WAY_USER, EINI_WAY_UNSPLIT
} eini_way;

// The search options a user chose.
static ein_status eini_path_options(ein_ctx *ctx, eini_diag *diag, const ein_options *o,
                                    eini_path_opts *opts, eini_way *way) {
  static const char *const names[] = {"auto", "naive", "optimal", "dp", "greedy", "random"};
  static const eini_path_algo algos[] = {EINI_PATH_AUTO, EINI_PATH_NAIVE, EINI_PATH_OPTIMAL,
                                         EINI_PATH_DP, EINI_PATH_GREEDY, EINI_PATH_RANDOM};
  const char *p = o->path == NULL ? "auto" : o->path;
  memset(opts, 0, sizeof *opts);
  opts->goal = o->goal == EIN_GOAL_SIZE ? EINI_GOAL_SIZE
               : o->goal == EIN_GOAL_BYTES ? EINI_GOAL_BYTES : EINI_GOAL_FLOPS;
  opts->seconds = o->path_seconds;
  opts->steps = o->path_steps;
  opts->seed = o->seed;
  if (ctx != NULL) opts->now_fn = ctx->now_fn, opts->now_user = ctx->now_user;
  *way = EINI_WAY_UNSPLIT;
  if (strcmp(p, "none") == 0) return EIN_OK;
  *way = EINI_WAY_USER;
  if (p[0] != 0 && strchr("([ 0123456789", p[0]) != NULL) return EIN_OK;
  *way = EINI_WAY_SEARCH;
  if (strcmp(p, "auto") == 0 && o->goal == EIN_GOAL_FLOPS) *way = EINI_WAY_FASTEST;
  for (int i = 0; i < 6; i++) {
    opts->algo = algos[i];
    if (strcmp(p, names[i]) == 0) return EIN_OK;
  }
  return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0,
                   "auto, naive, none, optimal, dp, greedy, random, or a list like (0,1) (0,1)",
                   "no path method is called '%s'", p);
}

static ein_status eini_plan_path_info(ein_plan *p, const eini_path *path, int out) {
  int taken = EINI_AS_FOUND;
  p->info.flops += path->flops;
  if (path->largest > p->info.largest) p->info.largest = path->largest;
  p->info.method = path->method;
  p->info.proved = path->proved;
  for (int i = 1; i < 3; i++)
    if (path->method == eini_path_way[i]) taken = i;
  if (!(path->seconds[0] > 0)) return EIN_OK;
  return eini_plan_verdict(p, p->graph->tensor[out].name, 0, path->seconds, taken);
}

// Is the fold of the product that of its parts? Then *out's statements may follow a path.
static int eini_request_splits(const eini_request *r, const ein_graph *g) {
  int fold = r->fold, join = r->meet == EIN_BOOL ? EINI_OP_AND : EINI_OP_MUL;
  if (r->d->map != NULL || r->norm || !eini_legal_join(g, fold, join)) return 0;
  return eini_fold_value_dtype(g, fold, r->meet, 1) == ein_dtype_compute(r->meet);
}

// The path of a request. *way becomes what can be done.
static ein_status eini_request_path(eini_request *r, ein_plan *p, const eini_net *net,
                                    eini_split *sp, eini_path *path, eini_way *way) {
  const ein_einsum_desc *d = r->d;
  eini_path_opts opts;
  EINI_TRY(eini_path_options(r->ctx, r->diag, &d->options, &opts, way));
  int splits = eini_request_splits(r, p->graph);
  if (*way == EINI_WAY_USER) {
    EINI_TRY(eini_path_parse(&p->arena, r->diag, d->options.path, net, path));
    if (!splits && path->nstep > 1)
      return eini_fail(r->diag, EIN_ERR_ARGUMENT, 0, (int64_t)strlen(d->options.path),
                       "leave the path out", "%s of %s is not that of its parts: it has no path",
                       r->norm ? "norm" : eini_fold_name(p->graph, r->fold),
                       d->map != NULL ? "a map" : "products");
    eini_diag_text(r->diag, d->expr, d->expr == NULL ? 0 : (int64_t)strlen(d->expr));
    if (!splits) *way = EINI_WAY_UNSPLIT;
  } else if (splits && *way != EINI_WAY_UNSPLIT) {
    EINI_TRY(eini_path_find(&p->arena, net, &opts, path));
  } else {
    *way = EINI_WAY_UNSPLIT;
  }
  sp->fastest = *way == EINI_WAY_FASTEST;
  if (*way != EINI_WAY_UNSPLIT) return EIN_OK;
  p->unsplit = 1;
  path->flops = p->info.naive_flops;
  path->method = "none";
  path->largest = 1;
  for (int a = 0; a < r->rank; a++) path->largest *= (double)r->shape[a];
  return EIN_OK;
}

// |x|^2 of a value: what a norm adds up.
static ein_status eini_value_square(ein_graph *g, eini_value *v) {
  int x = (int)v->expr.n - 1;
  x = eini_expr_add(&g->arena, &v->expr, EINI_OP_ABS, -1, x, 0, 0);
  x = x < 0 ? -1 : eini_expr_add(&g->arena, &v->expr, EINI_OP_SQUARE, -1, x, 0, 0);
  return x < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The product (or map) of all values, as one.
static ein_status eini_request_value(eini_request *r, ein_graph *g, eini_split *sp,
                                     eini_value *all) {
  if (r->d->map == NULL) EINI_TRY(eini_value_join(sp, r->d->nin, r->value, NULL, all));
  else EINI_TRY(eini_request_mapped(r, g, all));
  return r->norm ? eini_value_square(g, all) : EIN_OK;
}

// Statements of the product (or map) of all values into *out. With `all`, that value, whose labels
// are the output's, and no statement.
static ein_status eini_request_emit(eini_request *r, ein_plan *p, const eini_value *out,
                                    ein_rest rest, eini_value *all) {
  ein_graph *g = p->graph;
  const ein_einsum_desc *d = r->d;
  eini_split sp;
  eini_net net;
  eini_way way;
  EINI_TRY(eini_split_init(r, g, &sp));
  EINI_TRY(eini_net_build(&g->arena, &sp, d->nin, r->value, out, &net));
  eini_path *path = p->path = EINI_NEW(&p->arena, eini_path, 1);
  if (path == NULL) return EIN_ERR_NO_MEMORY;
  p->npath = 1;
  // As opt_einsum: a product for every operand but one, a sum if operands share a label.
  double naive = 1;
  int total = 0;
  for (int i = 0; i < sp.nlabel; i++) naive *= (double)sp.label[i].extent;
  for (int k = 0; k < d->nin; k++) total += r->value[k].nlabel;
  p->info.naive_flops = naive * ((d->nin > 1 ? d->nin - 1 : 1) + (total > r->no.nlabel));
  EINI_TRY(eini_request_path(r, p, &net, &sp, path, &way));
  if (way != EINI_WAY_UNSPLIT && all == NULL)
    EINI_TRY(eini_split_best(&sp, &net, r->value, out, path, rest));
  EINI_TRY(eini_plan_path_info(p, path, out->op[0]));
  if (all != NULL) return eini_request_value(r, g, &sp, all);
  if (way != EINI_WAY_UNSPLIT) return EIN_OK;
  eini_value one;
  const eini_value **list = EINI_NEW(&g->arena, const eini_value *, d->nin);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nin; k++) list[k] = &r->value[k];
  if (d->map == NULL && !r->norm) return eini_emit_stmt(&sp, out, d->nin, list, rest);
  EINI_TRY(eini_request_value(r, g, &sp, &one));
  list[0] = &one;
  return eini_emit_stmt(&sp, out, 1, list, rest);
}

// What follows the fold, at the places the output's map reaches: D = alpha*T + where(beta == 0, 0,
// beta*C) + what was there, T of a dtype being the fold's result, its root for a norm, or the value
// itself where nothing is folded. Each term where asked for.
static ein_status eini_request_finish(eini_request *r, ein_plan *p, const eini_value *t,
                                      ein_dtype dtype, const eini_value *target, int c, int old,
                                      ein_rest rest) {
  ein_graph *g = p->graph;
  const ein_einsum_desc *d = r->d;
  eini_arena *a = &g->arena;
  eini_value all = *target;
  eini_expr *e = &all.expr;
  const eini_value *one = &all;
  eini_split sp;
  int alpha = -1, beta = -1;
  // Of both dtypes, so that a real factor of integers in a real output stays what it is.
  ein_dtype pt = ein_dtype_promote(dtype, g->tensor[target->op[0]].dtype);
  if (eini_kind_of(pt) < EINI_KREAL) pt = pt == EIN_BOOL ? EIN_BOOL : EIN_I64;
  if (d->alpha.set) EINI_TRY(eini_graph_add_param(g, "alpha", 5, pt, d->alpha, &alpha));
  if (d->beta.set) EINI_TRY(eini_graph_add_param(g, "beta", 4, pt, d->beta, &beta));
  all.op = EINI_NEW(a, int, t->nop + 2);
  all.map = EINI_NEW(a, ein_zmap, t->nop + 2);
  if (all.op == NULL || all.map == NULL) return EIN_ERR_NO_MEMORY;
  all.nop = t->nop;
  memcpy(all.op, t->op, (size_t)t->nop * sizeof *t->op);
  memcpy(all.map, t->map, (size_t)t->nop * sizeof *t->map);
  *e = t->expr;
  int x = (int)e->n - 1;
  if (r->norm && x >= 0) x = eini_expr_add(a, e, EINI_OP_SQRT, -1, x, 0, 0);
  if (alpha >= 0) {
    int q = eini_expr_add(a, e, EINI_OP_PARAM, -1, alpha, 0, 0);
    x = eini_expr_pair(a, e, EINI_OP_MUL, q, x);
  }
  for (int k = 0; k < 2; k++) {
    if (k == 0 ? beta < 0 : old < 0) continue;
    int w = eini_expr_add(a, e, EINI_OP_OPERAND, -1, all.nop, 0, 0);
    all.op[all.nop] = k == 0 ? c : old;
    all.map[all.nop++] = target->map[0];
    if (k == 0) {
      int b = eini_expr_add(a, e, EINI_OP_PARAM, -1, beta, 0, 0), z = eini_expr_int(a, e, -1, 0);
      int q = eini_expr_pair(a, e, EINI_OP_EQ, b, z), m = eini_expr_pair(a, e, EINI_OP_MUL, b, w);
      w = z < 0 || q < 0 || m < 0 ? -1 : eini_expr_add(a, e, EINI_OP_WHERE, -1, q, z, m);
    }
    x = eini_expr_pair(a, e, EINI_OP_ADD, x, w);
  }
  if (x < 0) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_split_init(r, g, &sp));
  if (rest != EIN_REST_ZERO || p->alias < 0) return eini_emit_stmt(&sp, target, 1, &one, rest);
  eini_value made;  // before zeros go over what is read
  EINI_TRY(eini_temp_value(&sp, t->nlabel, t->label, &made));
  EINI_TRY(eini_emit_stmt(&sp, &made, 1, &one, EIN_REST_ERROR));
  one = &made;
  return eini_emit_stmt(&sp, target, 1, &one, rest);
}

// The dtype einsum gives for a fold over operands that promote to `meet`, or over a map.
static ein_status eini_request_dtype(eini_request *r, ein_graph *g) {
  if (r->d->map == NULL) r->dtype = r->meet;
  if (r->norm) {
    r->dtype = eini_real_part(eini_float_for(r->dtype));
  } else if (r->fold >= EINI_FOLD_USER) {
    r->dtype = g->monoid[r->fold - EINI_FOLD_USER].dtype;
  } else if (r->lone || eini_request_reduces(r)) {
    if (r->d->map != NULL && (r->fold == EINI_SUM || r->fold == EINI_PROD) && r->dtype == EIN_BOOL)
      r->dtype = EIN_I64;
    r->dtype = eini_fold_dtype(r->fold, r->dtype);
  }
  return EIN_OK;
}

// No two elements of an output may be one: a stride of 0, or one axis stepping onto another.
static ein_status eini_check_writable(eini_diag *diag, const ein_ztensor *v) {
  for (int a = 0; v->strides != NULL && ein_view_count(v) > 0 && a < v->rank; a++) {
    int64_t s = v->strides[a];
    if (v->shape[a] < 2) continue;
    if (s == 0)
      return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                       "the output has stride 0 at axis %d: its elements coincide", a);
    for (int b = 0; b < v->rank; b++) {
      if (a == b || v->shape[b] < 2 || v->strides[b] % s != 0) continue;
      if (eini_abs64(v->strides[b] / s) < v->shape[a])
        return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                         "the output's axes %d and %d reach the same elements", a, b);
    }
  }
  return EIN_OK;
}

static ein_status eini_check_out(eini_request *r, const ein_ztensor *v, const char *what) {
  if (v->rank != r->rank)
    return eini_fail(r->diag, EIN_ERR_SHAPE, -1, 0, NULL, "%s has %d axes, the result has %d", what,
                     v->rank, r->rank);
  for (int a = 0; a < r->rank; a++) {
    if (v->shape[a] == r->shape[a]) continue;
    return eini_fail(r->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "%s has extent %lld at axis %d, the result has %lld", what,
                     (long long)v->shape[a], a, (long long)r->shape[a]);
  }
  if (v == r->d->out) EINI_TRY(eini_check_writable(r->diag, v));
  if (v == r->d->out && !ein_dtype_same_kind(r->dtype, v->dtype))
    return eini_fail(r->diag, EIN_ERR_DTYPE, -1, 0, "same_kind casts only, as in NumPy",
                     "the result is %s, the output is %s", ein_dtype_name(r->dtype),
                     ein_dtype_name(v->dtype));
  return EIN_OK;
}

// Is each result made of one element of each operand, in one step, so that what follows is too?
static int eini_request_direct(const eini_request *r, const eini_value *target) {
  if (r->norm || r->lone || eini_request_reduces(r) || (r->d->nin > 2 && r->d->map == NULL))
    return 0;
  for (int c = 0; c < target->nlabel; c++) {
    int held = 0;
    for (int k = 0; k < r->d->nin; k++)
      held |= eini_find_sorted(r->value[k].label, r->value[k].nlabel, target->label[c]) >= 0;
    if (!held) return 0;
  }
  return 1;
}

// The statements of a request, into p->graph. view gets the layout of each tensor.
static ein_status eini_request_graph(eini_request *r, ein_plan *p, const ein_ztensor **view) {
  ein_graph *g = p->graph;
  const ein_einsum_desc *d = r->d;
  int id, out, c = -1, old = -1;
  for (int k = 0; k < d->nin; k++) {
    char name[24];
    int n = snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_graph_add_tensor(g, name, n, EIN_ROLE_INPUT, d->in[k].dtype, d->in[k].rank,
                                   d->in[k].shape, &id));
    view[id] = &d->in[k];
  }
  EINI_TRY(eini_request_read(r, g));
  EINI_TRY(eini_request_dtype(r, g));
  EINI_TRY(eini_check_out(r, d->out, "the output"));
  eini_request_widen(r);
  for (int k = 0; k < d->nin; k++) EINI_TRY(eini_request_leaf(r, g, k, &r->value[k].expr));
  eini_value target, temp;
  EINI_TRY(eini_value_axes(&r->no, 0, r->rank, NULL, r->axes, &target));
  int repeated = target.nlabel < r->rank;
  ein_rest rest = repeated ? d->rest : EIN_REST_ERROR;
  if (d->beta.set && d->c != NULL) {
    EINI_TRY(eini_check_out(r, d->c, "C"));
    EINI_TRY(eini_graph_add_tensor(g, "C", 1, EIN_ROLE_INPUT, d->c->dtype, r->rank, r->shape, &c));
    view[c] = d->c;
  }
  if ((d->beta.set && d->c == NULL) || rest == EIN_REST_ACCUMULATE) {
    EINI_TRY(eini_graph_add_tensor(g, c < 0 ? "C" : "D", 1, EIN_ROLE_INPUT, d->out->dtype, r->rank,
                                   r->shape, &p->alias));
    view[p->alias] = d->out;
    if (c < 0) c = p->alias;
    if (rest == EIN_REST_ACCUMULATE) old = p->alias, rest = EIN_REST_KEEP;
  }
  EINI_TRY(
      eini_graph_add_tensor(g, "out", 3, EIN_ROLE_OUTPUT, d->out->dtype, r->rank, r->shape, &out));
  view[out] = d->out;
  p->keeps = rest == EIN_REST_KEEP || p->alias >= 0;
  target.op[0] = out;
  if (!d->alpha.set && !d->beta.set && old < 0 && !r->norm)
    return eini_request_emit(r, p, &target, rest, NULL);
  if (eini_request_direct(r, &target)) {
    EINI_TRY(eini_request_emit(r, p, &target, rest, &temp));
    const ein_dtype dtype = ein_dtype_compute(d->map == NULL ? r->meet : r->dtype);
    return eini_request_finish(r, p, &temp, dtype, &target, c, old, rest);
  }
  eini_split sp;
  int *order = EINI_NEW(&g->arena, int, r->rank), n = 0;  // of the temporary, as in the output
  if (order == NULL) return EIN_ERR_NO_MEMORY;
  for (int a = 0; a < r->rank; a++) {
    int known = eini_find_sorted(target.label, target.nlabel, r->axes[a]) < 0;
    for (int b = 0; b < n; b++) known |= order[b] == r->axes[a];
    if (!known) order[n++] = r->axes[a];
  }
  EINI_TRY(eini_split_init(r, g, &sp));
  EINI_TRY(eini_temp_value(&sp, n, order, &temp));
  EINI_TRY(eini_request_emit(r, p, &temp, EIN_REST_ERROR, NULL));
  return eini_request_finish(r, p, &temp, g->tensor[temp.op[0]].dtype, &target, c, old, rest);
}

// The plan of a request starts empty: a graph with the ctx's registrations.
static ein_status eini_plan_new(ein_ctx *ctx, ein_plan **out) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_plan *p = EINI_NEW(&arena, ein_plan, 1);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  p->al = arena.al;
  p->executor.width = 1;
  if (ctx != NULL) p->executor = ctx->executor;
  p->now_fn = ctx == NULL ? NULL : ctx->now_fn;
  p->now_user = ctx == NULL ? NULL : ctx->now_user;
  const ein_kernels **kernels = EINI_NEW(&arena, const ein_kernels *,
                                         ctx == NULL ? 0 : ctx->nkernels);
  p->kernels = kernels;
  p->rates = eini_rates_of(ctx);
  p->nkernels = ctx == NULL || kernels == NULL ? 0 : ctx->nkernels;
  for (int i = 0; i < p->nkernels; i++) kernels[i] = ctx->kernels[i];
  p->alias = -1;
  p->info.method = "none";
  p->graph = eini_graph_new(ctx);
  p->arena = arena;
  if (p->graph == NULL || kernels == NULL) {
    eini_graph_free(p->graph);
    eini_arena_free(&arena);
    return EIN_ERR_NO_MEMORY;
  }
  *out = p;
  return EIN_OK;
}

static void eini_fail_status(ein_ctx *ctx, ein_status st) {
  if (ctx != NULL && st != EIN_OK && ctx->diag.count == 0)
    eini_fail(&ctx->diag, st, -1, 0, NULL, "%s", ein_status_text(st));
  if (ctx != NULL && st != EIN_OK && ctx->logger.log_fn != NULL)
    ctx->logger.log_fn(EIN_LOG_ERROR, eini_diag_message(&ctx->diag), ctx->logger.user);
}

static void eini_begin_call(ein_ctx *ctx, const char *text) {
  if (ctx != NULL) eini_diag_reset(&ctx->diag, text, text == NULL ? 0 : (int64_t)strlen(text));
}

static ein_status eini_validate_options(eini_diag *g, const ein_options *o) {
  if ((int)o->goal < 0 || o->goal > EIN_GOAL_BYTES)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "goal is out of range: %d", (int)o->goal);
  if (!(o->path_seconds >= 0 && o->path_seconds < HUGE_VAL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "path_seconds is no time: %g",
                     o->path_seconds);
  if (o->path_steps < 0)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "path_steps is negative: %lld",
                     (long long)o->path_steps);
  return EIN_OK;
}

// Checks of integers look at statements as they are: in one pass, by the portable kernels.
static ein_status eini_overflow_options(eini_diag *g, ein_options *o) {
  o->overflow_check = o->overflow_check != 0;
  if (!o->overflow_check) return EIN_OK;
  if (o->deterministic)
    return eini_fail(g, EIN_ERR_UNSUPPORTED, -1, 0, NULL,
                     "overflow_check does not go with deterministic");
  if (o->path != NULL && strcmp(o->path, "auto") != 0 && strcmp(o->path, "none") != 0)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, "path is auto or none",
                     "overflow_check looks at products in one pass, not in the order of a path");
  o->path = "none";
  return EIN_OK;
}

static void eini_plan_check(ein_plan *p, const ein_options *o) {
  p->checked = o->overflow_check;
  if (!p->checked) return;
  p->nkernels = 0;
  p->rates = NULL;
}

// What means the same becomes the same, before anything is decided or remembered by it.
static ein_einsum_desc eini_desc_normal(const ein_einsum_desc *desc) {
  ein_einsum_desc d = *desc;
  d.alpha.set = desc->alpha.set != 0;
  d.beta.set = desc->beta.set != 0;
  if (!d.beta.set) d.c = NULL;
  d.options.may_overlap = desc->options.may_overlap != 0;
  return d;
}

// There are more operands than an expression names: what is wrong in it, or that.
static ein_status eini_notation_misfit(ein_ctx *ctx, const ein_einsum_desc *d) {
  eini_arena scratch;
  eini_notation no;
  eini_arena_init(&scratch, ctx == NULL ? NULL : &ctx->al);
  memset(&no, 0, sizeof no);
  no.arena = &scratch;
  no.diag = eini_diag_of(ctx);
  no.is_text = 1;
  ein_status st = eini_notation_scan(&no, d->expr, (int64_t)strlen(d->expr));
  if (st == EIN_OK) st = eini_fail_count(&no, d);
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_validate_desc(ein_ctx *ctx, const ein_einsum_desc *d, int need_out) {
  eini_diag *g = eini_diag_of(ctx);
  if (d == NULL) return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "the descriptor is NULL");
  if (d->expr == NULL && (d->labels == NULL || d->nlabels == NULL))
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "expr is NULL, and labels and nlabels are not both given");
  if (need_out && d->out == NULL)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "out is NULL: the view of the result");
  if ((int)d->rest < 0 || d->rest > EIN_REST_ACCUMULATE)
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL, "rest is out of range: %d", (int)d->rest);
  EINI_TRY(eini_validate_options(g, &d->options));
  if (!eini_terms_fit(d)) EINI_TRY(eini_notation_misfit(ctx, d));
  EINI_TRY(eini_validate_views(g, d->nin, d->in, need_out ? d->out : NULL,
                               d->beta.set ? d->c : NULL));
  for (int k = 0; d->expr == NULL && k <= d->nin; k++) {
    if (d->labels[k] != NULL ? d->nlabels[k] >= 0 : k == d->nin) continue;
    return eini_fail(g, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "label list %d is missing or its length is negative", k);
  }
  return EIN_OK;
}

// Deterministic mode needs a provider that folds in order, or none at all, and no clock.
static ein_status eini_order_check(ein_ctx *ctx, const ein_options *o) {
  if (!o->deterministic) return EIN_OK;
  if (o->path_seconds > 0)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, "path_steps is a budget in steps",
                     "deterministic: a path searched for by the clock may differ each time");
  int able = ctx == NULL || ctx->nkernels == 0;
  for (int i = 0; !able && i < ctx->nkernels; i++) able = ctx->kernels[i]->ordered;
  if (able) return EIN_OK;
  return eini_fail(eini_diag_of(ctx), EIN_ERR_UNSUPPORTED, -1, 0, "the portable kernels can",
                   "deterministic: the kernels '%s' do not add in a fixed order",
                   ctx->kernels[0]->name);
}

// Says why where statements of a graph were too large to be made.
static ein_status eini_graph_full(ein_ctx *ctx, const ein_graph *g, ein_status st) {
  if (st != EIN_ERR_TOO_LARGE || g->arena.cells <= EINI_CELLS_MOST) return st;
  return eini_fail(eini_diag_of(ctx), st, -1, 0, NULL, "too many indices and operands in one plan");
}

static ein_status eini_plan_einsum(ein_ctx *ctx, const ein_einsum_desc *d, ein_plan *p) {
  eini_request r;
  memset(&r, 0, sizeof r);
  r.d = d;
  r.ctx = ctx;
  r.diag = eini_diag_of(ctx);
  // Inputs, C, output; further tensors are temporaries without a view.
  int64_t room = 8 * (int64_t)d->nin + 16;
  const ein_ztensor **view = EINI_NEW(&p->arena, const ein_ztensor *, room);
  if (view == NULL) return EIN_ERR_NO_MEMORY;
  p->may_overlap = d->options.may_overlap;
  EINI_TRY(eini_order_check(ctx, &d->options));
  EINI_TRY(eini_graph_full(ctx, p->graph, eini_request_graph(&r, p, view)));
  if (p->graph->ntensor > room / 2) return EIN_ERR_INTERNAL;
  if (d->options.deterministic) EINI_TRY(eini_order_graph(p->graph));
  return eini_plan_build(p, 0, NULL, view);
}

// Short pairs as found give way to those from left to right if the kernels predict less for these:
// that tells more than the time model of paths, which knows no strides.
static ein_status eini_plan_weigh(ein_ctx *ctx, const ein_einsum_desc *d, ein_plan **plan) {
  ein_plan *p = *plan, *q = NULL;
  const double *model = p->path == NULL ? NULL : p->path->seconds;
  if (model == NULL || !(model[EINI_AS_FOUND] > 0) || model[EINI_AS_FOUND] > EINI_WEIGH_SECONDS ||
      model[EINI_LEFT_TO_RIGHT] > 3 * model[EINI_AS_FOUND] ||
      strcmp(p->path->method, eini_path_way[EINI_LEFT_TO_RIGHT]) == 0 ||
      strcmp(p->path->method, eini_path_way[EINI_ONE_PASS]) == 0)
    return EIN_OK;
  ein_einsum_desc naive = *d;
  naive.options.path = "naive";
  ein_status st = eini_plan_new(ctx, &q);
  if (st == EIN_OK) st = eini_plan_einsum(ctx, &naive, q);
  const double seconds[3] = {p->info.seconds, q == NULL ? 0 : q->info.seconds,
                             model[EINI_ONE_PASS]};
  const int better = st == EIN_OK && seconds[1] < seconds[0];
  int out = 0;  // the same tensor in both
  while (p->graph->tensor[out].name != p->verdict[0].out) out++;
  for (int i = 0; i < 2 && !better; i++) p->verdict[0].seconds[i] = seconds[i];
  if (better)
    st = eini_plan_verdict(q, q->graph->tensor[out].name, 0, seconds, EINI_LEFT_TO_RIGHT);
  ein_plan_destroy(better ? p : q);
  if (better) *plan = q;
  return st;
}

static ein_status eini_plan_make(ein_ctx *ctx, const ein_einsum_desc *desc, int may_overlap,
                                 ein_plan **p) {
  eini_begin_call(ctx, desc == NULL ? NULL : desc->expr);
  EINI_TRY(eini_validate_desc(ctx, desc, 1));
  EINI_TRY(eini_plan_new(ctx, p));
  ein_einsum_desc d = eini_desc_normal(desc);
  d.options.may_overlap |= may_overlap;
  EINI_TRY(eini_overflow_options(eini_diag_of(ctx), &d.options));
  eini_plan_check(*p, &d.options);
  EINI_TRY(eini_plan_einsum(ctx, &d, *p));
  return eini_plan_weigh(ctx, &d, p);
}

// Gives the plan to the caller when all went well.
static ein_status eini_plan_give(ein_ctx *ctx, ein_status st, ein_plan *p, ein_plan **plan) {
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *plan = p;
  else ein_plan_destroy(p);
  return st;
}

EIN_API ein_status ein_plan_create(ein_ctx *ctx, const ein_einsum_desc *desc, ein_plan **plan) {
  ein_plan *p = NULL;
  if (plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  ein_status st = eini_plan_make(ctx, desc, 0, &p);
  return eini_plan_give(ctx, st, p, plan);
}

// ================================================================================================
// >>public  plans of graphs, the plan cache, one-call interface
// Public functions check their arguments and call the sections above.
// ================================================================================================

// Copies a statement into another graph (same tensor numbers).
static ein_status eini_stmt_copy(ein_graph *g, const eini_stmt *from) {
  eini_arena *a = &g->arena;
  eini_stmt *s;
  EINI_TRY(eini_graph_add_stmt(g, from->out, from->nindex, from->noperand, from->operand, &s));
  eini_stmt own = *s;
  *s = *from;
  s->index = own.index;
  s->operand = own.operand;
  s->proj = own.proj;
  s->out_map = own.out_map;
  eini_zmap_fill(&s->out_map, &from->out_map);
  for (int i = 0; i < from->nindex; i++) {
    const char *name = from->index[i].name == NULL ? "" : from->index[i].name;
    s->index[i].name = eini_strndup(a, name, (int64_t)strlen(name));
    s->index[i].extent = from->index[i].extent;
    if (s->index[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int k = 0; k < from->noperand; k++) eini_zmap_fill(&s->proj[k], &from->proj[k]);
  s->expr.node = EINI_NEW(a, eini_node, from->expr.n);
  s->expr.list = EINI_NEW(a, int, from->expr.nlist);
  if (s->expr.node == NULL || s->expr.list == NULL) return EIN_ERR_NO_MEMORY;
  s->expr.cap = from->expr.n;
  s->expr.caplist = from->expr.nlist;
  memcpy(s->expr.node, from->expr.node, (size_t)from->expr.n * sizeof *from->expr.node);
  if (from->expr.nlist > 0)
    memcpy(s->expr.list, from->expr.list, (size_t)from->expr.nlist * sizeof *from->expr.list);
  return EIN_OK;
}

// Tensors, params and registrations of a graph, without its statements.
static ein_status eini_graph_copy_head(ein_graph *g, const ein_graph *from) {
  EINI_TRY(eini_graph_register(g, from->nfunction, from->function, from->nmonoid, from->monoid));
  for (int64_t t = 0; t < from->ntensor; t++) {
    const eini_tensor *x = &from->tensor[t];
    int id;
    EINI_TRY(eini_graph_add_tensor(g, x->name, (int64_t)strlen(x->name), x->role, x->dtype, x->rank,
                                   x->shape, &id));
    g->tensor[id].partial = x->partial;
    g->tensor[id].shift = x->shift;
    g->tensor[id].line = x->line;
  }
  for (int64_t k = 0; k < from->nparam; k++) {
    const eini_param *x = &from->param[k];
    int id;
    EINI_TRY(eini_graph_add_param(g, x->name, (int64_t)strlen(x->name), x->dtype, x->value, &id));
  }
  return EIN_OK;
}

// The statements of a graph, n-ary folds split, into p->graph.
static ein_status eini_plan_statements(ein_ctx *ctx, ein_plan *p, const ein_graph *graph,
                                       const ein_options *o) {
  eini_diag *diag = eini_diag_of(ctx);
  eini_path_opts opts;
  eini_way way;
  EINI_TRY(eini_path_options(ctx, diag, o, &opts, &way));
  if (way == EINI_WAY_USER)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "a path given step by step is for one expression, not for a program");
  p->graph->ordered = graph->ordered;
  eini_split sp;
  p->unsplit = way == EINI_WAY_UNSPLIT;
  memset(&sp, 0, sizeof sp);
  sp.g = p->graph;
  sp.diag = diag;
  sp.rates = o->deterministic ? NULL : eini_rates_of(ctx);
  sp.fastest = way == EINI_WAY_FASTEST;
  for (int64_t i = 0; i < graph->nstmt; i++) {
    const eini_stmt *s = &graph->stmt[i];
    EINI_TRY(eini_stmt_copy(p->graph, s));
    double size = 1;
    for (int k = 0; k < s->nindex; k++) size *= (double)s->index[k].extent;
    p->info.naive_flops += size;
    if (p->unsplit || graph->ordered) continue;
    p->graph->nstmt--;  // taken back if it is split, put back if not
    eini_stmt copy = p->graph->stmt[p->graph->nstmt];
    eini_path path;
    int done;
    memset(&path, 0, sizeof path);
    EINI_TRY(eini_split_stmt(&sp, &copy, &opts, &path, &done));
    if (done) {
      p->graph->tensor[s->out].nstmt--;
      EINI_TRY(eini_plan_path_info(p, &path, s->out));
      continue;
    }
    p->info.flops += size;
    p->graph->stmt[p->graph->nstmt++] = copy;
  }
  return o->deterministic && !graph->ordered ? eini_order_graph(p->graph) : EIN_OK;
}

// A graph that can be planned, with valid layouts for its inputs and outputs.
static ein_status eini_validate_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                      const ein_binding *layout) {
  eini_diag *diag = eini_diag_of(ctx);
  if (graph == NULL)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is NULL");
  if (graph->open)
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  EINI_TRY(eini_validate_bindings(diag, "layout", nlayout, layout));
  for (int k = 0; k < nlayout; k++) {
    const ein_ztensor *v = layout[k].view;
    const eini_tensor *x = NULL;
    for (int64_t t = 0; x == NULL && t < graph->ntensor; t++)
      if (graph->tensor[t].role != EIN_ROLE_TEMP &&
          strcmp(graph->tensor[t].name, layout[k].name) == 0)
        x = &graph->tensor[t];
    if (x == NULL)
      return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL,
                       "'%.80s' is no input or output of the program", layout[k].name);
    int r = 0;
    while (r < v->rank && r < x->rank && v->shape[r] == x->shape[r]) r++;
    if (v->dtype != x->dtype)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL, "the layout of '%.80s' is %s, '%.80s' %s",
                       x->name, ein_dtype_name(v->dtype), x->name, ein_dtype_name(x->dtype));
    if (v->rank != x->rank)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL,
                       "the layout of '%.80s' has %d axes, not %d", x->name, v->rank, x->rank);
    if (r < x->rank)
      return eini_fail(diag, EIN_ERR_SHAPE, -1, 0, NULL,
                       "the layout of '%.80s' has shape[%d] = %lld, not %lld", x->name, r,
                       (long long)v->shape[r], (long long)x->shape[r]);
  }
  for (int64_t t = 0; t < graph->ntensor; t++) {
    for (int k = 0; graph->tensor[t].role == EIN_ROLE_OUTPUT && k < nlayout; k++) {
      if (strcmp(layout[k].name, graph->tensor[t].name) != 0) continue;
      EINI_TRY(eini_check_writable(diag, layout[k].view));
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_plan_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                  const ein_binding *layout, const ein_options *options,
                                  ein_plan **plan) {
  ein_options o;
  if (plan == NULL) return EIN_ERR_ARGUMENT;
  *plan = NULL;
  eini_begin_call(ctx, NULL);
  EINI_TRY(eini_validate_graph(ctx, graph, nlayout, layout));
  memset(&o, 0, sizeof o);
  if (options != NULL) o = *options;
  o.deterministic |= graph->ordered;
  EINI_TRY(eini_validate_options(eini_diag_of(ctx), &o));
  EINI_TRY(eini_order_check(ctx, &o));
  EINI_TRY(eini_overflow_options(eini_diag_of(ctx), &o));
  ein_plan *p = NULL;
  ein_status st = eini_plan_new(ctx, &p);
  if (st == EIN_OK) p->may_overlap = o.may_overlap;
  if (st == EIN_OK) eini_plan_check(p, &o);
  if (st == EIN_OK) st = eini_graph_copy_head(p->graph, graph);
  if (st == EIN_OK) st = eini_graph_full(ctx, p->graph, eini_plan_statements(ctx, p, graph, &o));
  if (st == EIN_OK) st = eini_plan_build(p, nlayout, layout, NULL);
  return eini_plan_give(ctx, st, p, plan);
}

EIN_API ein_status ein_graph_deterministic(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_options *options, ein_graph **ordered) {
  ein_options o;
  ein_plan *p = NULL;
  if (ordered == NULL) return EIN_ERR_ARGUMENT;
  *ordered = NULL;
  eini_begin_call(ctx, NULL);
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  if (graph->open)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "the graph is not finished");
  memset(&o, 0, sizeof o);
  if (options != NULL) o = *options;
  o.deterministic = 1;
  ein_status st = eini_validate_options(eini_diag_of(ctx), &o);
  if (st == EIN_OK) st = eini_order_check(ctx, &o);
  if (st == EIN_OK) st = eini_plan_new(ctx, &p);
  if (st == EIN_OK) st = eini_graph_copy_head(p->graph, graph);
  if (st == EIN_OK) st = eini_graph_full(ctx, p->graph, eini_plan_statements(ctx, p, graph, &o));
  if (st == EIN_OK) {
    *ordered = p->graph;
    p->graph = NULL;
  }
  eini_fail_status(ctx, st);
  ein_plan_destroy(p);
  return st;
}

// ---- the cache behind ein_einsum ----

// Least recently used plans by key: the text (or labels), dtypes, shapes, strides and options. A
// key is a flat array of words, so that a lookup is one hash and one comparison.
typedef struct eini_entry {
  uint64_t hash;
  int64_t *key;
  int64_t nkey, capkey;
  ein_plan *plan;
  uint64_t used;
} eini_entry;

struct eini_cache {
  int n, cap;
  eini_entry *entry;
  uint64_t clock;
  int64_t *key;       // of the call at hand
  int64_t nkey, capkey;
  void *workspace;    // shared by the calls of one ctx
  size_t workspace_bytes;
};

static ein_status eini_cache_create(ein_ctx *ctx, int plans) {
  if (plans > 65536) plans = 65536;
  struct eini_cache *c = EINI_NEW(&ctx->arena, struct eini_cache, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->entry = EINI_NEW(&ctx->arena, eini_entry, plans);
  if (c->entry == NULL) return EIN_ERR_NO_MEMORY;
  c->cap = plans;
  ctx->cache = c;
  return EIN_OK;
}

static void eini_cache_destroy(ein_ctx *ctx) {
  struct eini_cache *c = ctx->cache;
  if (c == NULL) return;
  for (int i = 0; i < c->n; i++) {
    ein_plan_destroy(c->entry[i].plan);
    ctx->al.free_fn(c->entry[i].key, (size_t)c->entry[i].capkey * 8, ctx->al.user);
  }
  if (c->key != NULL) ctx->al.free_fn(c->key, (size_t)c->capkey * 8, ctx->al.user);
  if (c->workspace != NULL) ctx->al.free_fn(c->workspace, c->workspace_bytes, ctx->al.user);
  ctx->cache = NULL;
}

static ein_status eini_key_room(ein_ctx *ctx, int64_t more) {
  struct eini_cache *c = ctx->cache;
  if (c->nkey + more <= c->capkey) return EIN_OK;
  int64_t cap = eini_max64(2 * c->capkey, c->nkey + more + 64);
  if (cap > (int64_t)1 << 40) return EIN_ERR_TOO_LARGE;
  int64_t *p = (int64_t *)ctx->al.alloc_fn((size_t)cap * 8, EINI_ALIGN, ctx->al.user);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  if (c->nkey > 0) memcpy(p, c->key, (size_t)c->nkey * 8);
  if (c->key != NULL) ctx->al.free_fn(c->key, (size_t)c->capkey * 8, ctx->al.user);
  c->key = p;
  c->capkey = cap;
  return EIN_OK;
}

static ein_status eini_key_text(ein_ctx *ctx, const char *s) {
  struct eini_cache *c = ctx->cache;
  size_t n = s == NULL ? 0 : strlen(s);
  EINI_TRY(eini_key_room(ctx, (int64_t)n / 8 + 2));
  c->key[c->nkey++] = s == NULL ? -1 : (int64_t)n;
  if (n == 0) return EIN_OK;
  c->key[c->nkey + (int64_t)(n - 1) / 8] = 0;
  memcpy(c->key + c->nkey, s, n);
  c->nkey += (int64_t)(n + 7) / 8;
  return EIN_OK;
}

// Strides of axes of extent 1 (or of empty views) do not matter and are left out.
static ein_status eini_key_view(ein_ctx *ctx, const ein_ztensor *v) {
  struct eini_cache *c = ctx->cache;
  if (v == NULL) v = &ctx->no_view;
  if (v->rank < 0 || (v->rank > 0 && v->shape == NULL)) return EIN_ERR_ARGUMENT;
  if (v->buffer_bytes > 0) EINI_TRY(eini_view_validate(v));  // the key does not tell the buffer
  EINI_TRY(eini_key_room(ctx, 2 * (int64_t)v->rank + 1));
  int64_t *k = c->key + c->nkey;
  *k++ = ((int64_t)v->rank << 8 | (int64_t)v->dtype) << 1 | (v->strides == NULL);
  for (int a = 0; a < v->rank; a++) *k++ = v->shape[a];
  for (int a = 0; v->strides != NULL && a < v->rank; a++)
    *k++ = v->shape[a] > 1 ? v->strides[a] : 0;
  c->nkey = k - c->key;
  return EIN_OK;
}

// d is normal and sane. What a plan depends on is in the key; what that does not hold was checked.
static ein_status eini_key_build(ein_ctx *ctx, const ein_einsum_desc *d) {
  struct eini_cache *c = ctx->cache;
  const ein_options *o = &d->options;
  c->nkey = 0;
  EINI_TRY(eini_key_text(ctx, d->expr));
  for (int k = 0; d->expr == NULL && k <= d->nin; k++) {
    int n = d->labels[k] == NULL ? -1 : d->nlabels[k];
    EINI_TRY(eini_key_room(ctx, (int64_t)eini_max64(n, 0) + 2));
    if (k == 0) c->key[c->nkey++] = d->nin;
    c->key[c->nkey++] = n;
    for (int i = 0; i < n; i++) c->key[c->nkey++] = d->labels[k][i];
  }
  for (int k = 0; k < d->nin; k++) EINI_TRY(eini_key_view(ctx, &d->in[k]));
  EINI_TRY(eini_key_view(ctx, d->out));
  int plain = !d->alpha.set && !d->beta.set && d->conj == NULL && d->monoid == NULL &&
              d->map == NULL && o->path == NULL && o->seed == 0 && o->path_steps == 0 &&
              !(o->path_seconds > 0) && !o->deterministic && !o->overflow_check;
  EINI_TRY(eini_key_room(ctx, 4));
  c->key[c->nkey++] = plain | (int)d->rest << 1 | (int)o->goal << 4;
  if (plain) return EIN_OK;
  EINI_TRY(eini_key_view(ctx, d->c));
  EINI_TRY(eini_key_text(ctx, d->monoid));
  EINI_TRY(eini_key_text(ctx, d->map));
  EINI_TRY(eini_key_text(ctx, o->path));
  EINI_TRY(eini_key_room(ctx, (int64_t)d->nin + 9));
  c->key[c->nkey++] = d->alpha.set | d->beta.set << 1 | (d->conj != NULL) << 2;
  c->key[c->nkey++] = (int64_t)o->seed;
  c->key[c->nkey++] = o->path_steps;
  c->key[c->nkey++] = (o->deterministic != 0) | (o->overflow_check != 0) << 1;
  memcpy(c->key + c->nkey++, &o->path_seconds, 8);
  for (int k = 0; d->conj != NULL && k < d->nin; k++) c->key[c->nkey++] = d->conj[k] != 0;
  return EIN_OK;
}

static eini_entry *eini_cache_find(struct eini_cache *c, uint64_t hash) {
  for (int i = 0; i < c->n; i++) {
    eini_entry *e = &c->entry[i];
    if (e->hash == hash && e->nkey == c->nkey && memcmp(e->key, c->key, (size_t)c->nkey * 8) == 0) {
      e->used = ++c->clock;
      return e;
    }
  }
  return NULL;
}

// Keeps a plan under the key at hand; the key's memory moves into the entry.
static ein_status eini_cache_keep(ein_ctx *ctx, uint64_t hash, ein_plan *plan) {
  struct eini_cache *c = ctx->cache;
  eini_entry *e = &c->entry[0];
  int64_t *key =
      (int64_t *)ctx->al.alloc_fn((size_t)eini_max64(c->nkey, 1) * 8, EINI_ALIGN, ctx->al.user);
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(key, c->key, (size_t)c->nkey * 8);
  if (c->n < c->cap) {
    e = &c->entry[c->n++];
  } else {
    for (int i = 1; i < c->n; i++)
      if (c->entry[i].used < e->used) e = &c->entry[i];
    ein_plan_destroy(e->plan);
    ctx->al.free_fn(e->key, (size_t)e->capkey * 8, ctx->al.user);
  }
  e->hash = hash;
  e->key = key;
  e->nkey = c->nkey;
  e->capkey = eini_max64(c->nkey, 1);
  e->plan = plan;
  e->used = ++c->clock;
  return EIN_OK;
}

static ein_status eini_call_workspace(ein_ctx *ctx, const ein_plan *p, ein_run *run) {
  struct eini_cache *c = ctx->cache;
  if (p->workspace <= EINI_STACK_WORKSPACE) return EIN_OK;
  if (c->workspace_bytes < p->workspace) {
    size_t bytes = p->workspace + p->workspace / 4;
    if (c->workspace != NULL) ctx->al.free_fn(c->workspace, c->workspace_bytes, ctx->al.user);
    c->workspace_bytes = 0;
    c->workspace = ctx->al.alloc_fn(bytes, EINI_ALIGN, ctx->al.user);
    if (c->workspace == NULL) return EIN_ERR_NO_MEMORY;
    c->workspace_bytes = bytes;
  }
  run->workspace = c->workspace;
  run->workspace_bytes = c->workspace_bytes;
  return EIN_OK;
}

static ein_status eini_call_run(ein_ctx *ctx, const ein_einsum_desc *d, const ein_plan *p) {
  const void *few[16];
  const void **in = few;
  void *out[1];
  ein_scalar param[2];
  char message[256];
  ein_run run;
  memset(&run, 0, sizeof run);
  int n = p->info.nin;
  if (n > 16) {
    in = (const void **)p->al.alloc_fn((size_t)n * sizeof *in, EINI_ALIGN, p->al.user);
    if (in == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int k = 0; k < n; k++) in[k] = k < d->nin ? d->in[k].data : d->c->data;
  out[0] = d->out->data;
  int np = 0;
  if (d->alpha.set) param[np++] = d->alpha;
  if (d->beta.set) param[np++] = d->beta;
  run.in = in;
  run.out = out;
  run.param = param;
  run.error = message;
  run.error_bytes = sizeof message;
  message[0] = 0;
  ein_status st = EIN_OK;
  if (ctx != NULL && ctx->cache != NULL) st = eini_call_workspace(ctx, p, &run);
  if (st == EIN_OK) st = eini_execute(p, &run, 1);
  if (st != EIN_OK && ctx != NULL && message[0])
    eini_fail(&ctx->diag, st, -1, 0, NULL, "%s", message);
  if (n > 16) p->al.free_fn((void *)in, (size_t)n * sizeof *in, p->al.user);
  return st;
}

// May the key of the call be built? Whatever the key does not hold is checked here; what is wrong
// beyond that is in the key, and a wrong call never has a plan.
static int eini_key_sane(const ein_einsum_desc *d) {
  if (d == NULL || d->nin < 1 || d->in == NULL || d->out == NULL || (int)d->rest < 0 ||
      d->rest > EIN_REST_ACCUMULATE || eini_validate_options(NULL, &d->options) != EIN_OK ||
      (d->expr == NULL && (d->labels == NULL || d->nlabels == NULL)) || !eini_terms_fit(d)) {
    return 0;
  }
  for (int k = 0; k < d->nin + 2; k++) {
    const ein_ztensor *v = k < d->nin ? &d->in[k] : k == d->nin ? d->out : d->c;
    if (v == NULL || (k > d->nin && !d->beta.set)) continue;
    if (v->rank < 0 || (v->rank > 0 && v->shape == NULL) || v->space != 0) return 0;
    if ((int)v->dtype < 0 || v->dtype >= EIN_DTYPE_COUNT) return 0;
    if ((v->buffer_bytes > 0 || v->buffer != NULL) && eini_view_validate(v) != EIN_OK) return 0;
  }
  for (int k = 0; d->expr == NULL && k <= d->nin; k++)
    if (d->labels[k] != NULL ? d->nlabels[k] < 0 : k < d->nin) return 0;
  return 1;
}

// The plan of a call that was made before. What the key holds was valid then and is not checked
// again. *plan NULL: not there, or the call is wrong, which the full validation will say.
static ein_status eini_call_known(ein_ctx *ctx, const ein_einsum_desc *d, uint64_t *hash,
                                  const ein_plan **plan) {
  *plan = NULL;
  if (!eini_key_sane(d)) return EIN_OK;
  const ein_einsum_desc normal = eini_desc_normal(d);
  EINI_TRY(eini_key_build(ctx, &normal));
  *hash = eini_hash(ctx->cache->key, (size_t)ctx->cache->nkey * 8, 0);
  const eini_entry *e = eini_cache_find(ctx->cache, *hash);
  if (e != NULL) *plan = e->plan;
  return EIN_OK;
}

EIN_API ein_status ein_einsum_ex(ein_ctx *ctx, const ein_einsum_desc *desc) {
  uint64_t hash = 0;
  ein_plan *p = NULL;
  int kept = 0;
  const ein_plan *known = NULL;
  if (ctx != NULL) eini_diag_reset(&ctx->diag, NULL, 0);
  ein_status st = EIN_OK;
  if (ctx != NULL && ctx->cache != NULL) st = eini_call_known(ctx, desc, &hash, &known);
  if (st == EIN_OK && known != NULL) st = eini_call_run(ctx, desc, known);
  if (st != EIN_OK || known != NULL) {
    eini_fail_status(ctx, st);
    return st;
  }
  st = eini_plan_make(ctx, desc, 1, &p);
  if (st == EIN_OK && ctx != NULL && ctx->cache != NULL) {
    st = eini_cache_keep(ctx, hash, p);  // under the key built above: what is wrong has no plan
    kept = st == EIN_OK;
  }
  if (st == EIN_OK) st = eini_call_run(ctx, desc, p);
  if (!kept) ein_plan_destroy(p);
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_einsum(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                              const ein_ztensor *out) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  d.out = out;
  return ein_einsum_ex(ctx, &d);
}

static ein_status eini_out_shape(eini_request *r, ein_graph *g, ein_ztensor *out, int64_t *shape,
                                 int max_rank) {
  EINI_TRY(eini_graph_full(r->ctx, g, eini_request_read(r, g)));
  EINI_TRY(eini_request_dtype(r, g));
  memset(out, 0, sizeof *out);
  out->dtype = r->dtype;
  out->rank = r->rank;
  out->shape = shape;
  for (int a = 0; a < r->rank && a < max_rank; a++) shape[a] = r->shape[a];
  if (r->rank <= max_rank) return EIN_OK;
  return eini_fail(r->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the result has %d axes, room is for %d",
                   r->rank, max_rank);
}

EIN_API ein_status ein_einsum_out_ex(ein_ctx *ctx, const ein_einsum_desc *desc, ein_ztensor *out,
                                     int64_t *shape, int max_rank) {
  eini_begin_call(ctx, desc == NULL ? NULL : desc->expr);
  if (out == NULL || max_rank < 0 || (max_rank > 0 && shape == NULL)) return EIN_ERR_ARGUMENT;
  ein_status st = eini_validate_desc(ctx, desc, 0);
  if (st == EIN_OK) {
    ein_graph *g = eini_graph_new(ctx);
    eini_request r;
    memset(&r, 0, sizeof r);
    r.d = desc;
    r.ctx = ctx;
    r.diag = eini_diag_of(ctx);
    st = g == NULL ? EIN_ERR_NO_MEMORY : eini_out_shape(&r, g, out, shape, max_rank);
    eini_graph_free(g);
  }
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_einsum_out(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                                  ein_ztensor *out, int64_t *shape, int max_rank) {
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  return ein_einsum_out_ex(ctx, &d, out, shape, max_rank);
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
