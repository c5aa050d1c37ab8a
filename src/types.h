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
  int space;               // where it lies; 0: host, else a provider's memory (ein_memory)
  int rank;
  const int64_t *shape;    // borrowed, rank extents
  const int64_t *strides;  // borrowed, rank strides in elements; NULL: row-major without gaps
  void *data;              // element (0, .., 0), not the lowest address; may be NULL when planning
  const void *buffer;      // allocation the view must stay inside, with its size; optional:
  size_t buffer_bytes;     //   0 means unknown, and then bounds cannot be proved
} ein_ztensor;

// A view of row-major memory without gaps, data NULL when planning; that of inputs may be const.
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
// With a block shape, point x selects [y, y + block): axes of an ein_operator are where it is > 0.
typedef struct ein_zmap {
  int rows, cols;
  int64_t *coef;           // rows * cols, row-major
  int64_t *offset;         // rows
  const int64_t *block;    // rows, or NULL for a single point
} ein_zmap;

typedef struct ein_ctx ein_ctx;      // one thread at a time
typedef struct ein_graph ein_graph;  // built by one thread, then read-only
typedef struct ein_plan ein_plan;    // immutable, shared freely between threads
typedef struct ein_batch ein_batch;  // one thread at a time

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
// when all are done. It is never called from inside a task. Kernels are chosen for the width.
typedef struct ein_executor {
  int width;
  void (*parallel_for)(int n, void (*task)(void *arg, int i), void *arg, void *user);
  void *user;
} ein_executor;

// A user function over chunks: out[i] = f(in[0][i], .., in[nargs-1][i]), all of one dtype, one of
// i32 i64 f32 f64 c64 c128 (c64/c128 as pairs of reals), for i in [0, n). Pure, reentrant.
typedef struct ein_function {
  const char *name;
  int nargs;                // 1 .. 8
  ein_dtype dtype;          // arguments are converted to it; default f64
  void (*fn)(int64_t n, const void *const *in, void *out, void *user);
  void *user;
} ein_function;

// A function over blocks, as an FFT or a solver, called at every point of all other indices.
typedef struct ein_operator {
  const char *name;
  const char *signature;    // like NumPy's "(n,n),(n)->(n)": axes; 8 inputs, outputs and sizes
  ein_dtype dtype;          // of all blocks, as ein_function's
  // Makes the blocks out[] of in[], row-major without gaps; size[]: of names as they first occur.
  // Pure, reentrant. Another status than EIN_OK ends the execution with it.
  ein_status (*fn)(const int64_t *size, const void *const *in, void *const *out, void *user);
  int (*size_fn)(int64_t *size, void *user);  // gives sizes no input has; 0: impossible
  double (*flops_fn)(const int64_t *size, void *user);  // of one block; NULL: one per element
  void *user;
} ein_operator;

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

typedef struct ein_scalar {
  int set;                  // 0: not given
  double re, im;
} ein_scalar;

// ---- the expression program: what providers of kernels read of scalar expressions --------------

// Operations of expressions. X(id, name, args, class). Classes: how operands and result are typed.
//   A arithmetic: promoted        F float: integers become floats    D division: integers -> f64
//   C comparison -> bool          O ordering -> bool, no complex     B boolean
//   M min/max: no complex         P power                            I integer-keeping rounding
//   R complex parts               H of i64: a hash, a f64 in [0,1)          X own rule
#define EIN_OP_LIST(X)                                                                             \
  X(CONST, "", 0, 'X') X(OPERAND, "", 0, 'X') X(INDEX, "", 0, 'X') X(PARAM, "", 0, 'X')            \
  X(CAST, "", 1, 'X') X(ROUNDTO, "", 1, 'X') X(CALL, "", 0, 'X') X(WHERE, "where", 3, 'X')         \
  X(NEG, "", 1, 'A') X(ADD, "", 2, 'A') X(SUB, "", 2, 'A') X(MUL, "", 2, 'A') X(DIV, "", 2, 'D')   \
  X(POW, "pow", 2, 'P') X(FLOORDIV, "div", 2, 'M') X(MOD, "mod", 2, 'M') X(MAX, "max", 2, 'M')     \
  X(MIN, "min", 2, 'M') X(LT, "", 2, 'O') X(LE, "", 2, 'O') X(GT, "", 2, 'O') X(GE, "", 2, 'O')    \
  X(EQ, "", 2, 'C') X(NE, "", 2, 'C') X(AND, "", 2, 'B') X(OR, "", 2, 'B') X(NOT, "", 1, 'B')      \
  X(EXP, "exp", 1, 'F') X(LOG, "log", 1, 'F') X(SQRT, "sqrt", 1, 'F') X(RSQRT, "rsqrt", 1, 'F')    \
  X(EXPM1, "expm1", 1, 'F') X(LOG1P, "log1p", 1, 'F') X(SIN, "sin", 1, 'F') X(COS, "cos", 1, 'F')  \
  X(TAN, "tan", 1, 'F') X(TANH, "tanh", 1, 'F') X(ATAN2, "atan2", 2, 'F') X(ERF, "erf", 1, 'F')    \
  X(SIGMOID, "sigmoid", 1, 'F') X(RELU, "relu", 1, 'M') X(SILU, "silu", 1, 'F')                    \
  X(GELU, "gelu", 1, 'F') X(FLOOR, "floor", 1, 'I') X(CEIL, "ceil", 1, 'I')                        \
  X(ROUND, "round", 1, 'I') X(ABS, "abs", 1, 'R') X(CONJ, "conj", 1, 'A') X(REAL, "real", 1, 'R')  \
  X(IMAG, "imag", 1, 'R') X(COMPLEX, "complex", 2, 'X') X(SQUARE, "", 1, 'A')                      \
  X(SIGN, "sign", 1, 'A') X(HASH, "", 2, 'H') X(RAND, "rand", 1, 'H')

#define EINI_OP_ENUM(id, name, args, cls) EIN_OP_##id,
typedef enum ein_op { EIN_OP_LIST(EINI_OP_ENUM) EIN_OP_COUNT } ein_op;
#undef EINI_OP_ENUM

// d[i] = op(a[i], b[i], c[i]) for i < n, n a multiple of 16, buffers padded to it and apart.
typedef void (*ein_chunk_fn)(int64_t n, const void *a, const void *b, const void *c, void *d);

// A step makes one register from others. Registers hold values of a computation type: bool (a byte,
// 0 or 1), i32, i64 (both wrap), f32, f64, c64, c128.
typedef struct ein_step {
  unsigned char op;         // EIN_OP_*, but neither CONST nor PARAM
  unsigned char type;       // computation type of the result
  unsigned char from;       // that of the arguments (of WHERE: of b and c, a is bool);
                            //   OPERAND: dtype as stored
  unsigned char round;      // ROUNDTO: dtype of which the result is a value, the nearest one
  int dst;                  // none of the arguments
  int a, b, c;              // registers of the arguments; those an operation does not have are a
                            //   OPERAND: a is the operand that is read, INDEX: the index value;
                            //   CALL: function a, of the c registers in code.list from b on
  ein_chunk_fn fn;          // does it to chunks; NULL: OPERAND, INDEX, CALL
} ein_step;

// A register that has one value for all elements, before the first step.
typedef struct ein_fill {
  int reg, param;           // param >= 0: that param's value, whose real part integers take
  unsigned char type;       // bool: re or im is not 0; i32, i64: ival; others: re, complex im too
  int64_t ival;
  double re, im;
} ein_fill;

// A scalar expression as a straight line of steps, for one element or many alike. There is nothing
// in it that makes no difference: no unused steps, no conversions from a type to itself. It lives
// as long as the plan. Loads say what is read, not where: see ein_map, ein_side and ein_contract.
typedef struct ein_code {
  int nreg, nstep, nfill;
  const ein_step *step;
  const ein_fill *fill;
  const int *list;              // arguments of calls
  const ein_function *function; // functions by number
  int result;                   // register of it
  unsigned char type;           // its computation type
  int plain;                    // the operand whose stored value is the result, or -1
  int conj;                     // with plain: the conjugate of it
  int chunk;                    // values for which the portable kernels have room in a register
} ein_code;

// Folds of reduced indices. argmax and argmin give the least position of the extremum, whatever the
// order of loops; extrema are NaN where a value is.
typedef enum ein_fold {
  EIN_FOLD_NONE = 0,            // element-wise: no reduced index
  EIN_FOLD_SUM, EIN_FOLD_PROD, EIN_FOLD_MAX, EIN_FOLD_MIN, EIN_FOLD_ANY, EIN_FOLD_ALL,
  EIN_FOLD_LOGSUMEXP, EIN_FOLD_ARGMAX, EIN_FOLD_ARGMIN, EIN_FOLD_MEAN, EIN_FOLD_VAR,
  EIN_FOLD_BLOCK,               // none: an ein_operator reads the reduced indices whole
  EIN_FOLD_USER                 // an ein_monoid
} ein_fold;

// ---- kernels: what a provider of leaf work sees (level 3) --------------------------------------
// Operands are a base pointer and one stride per index: views, diagonals, broadcasts and windows
// look alike. Strides and offsets are in elements. While planning, all addresses are NULL.

// Where a working set lies, with which bandwidths differ.
typedef enum ein_memory_level {
  EIN_L1, EIN_L2, EIN_L3, EIN_MEMORY, EIN_MEMORY_LEVELS
} ein_memory_level;

#define EIN_GEMMS 6      // products of n x n matrices that are timed, n = 16, 32, 64, .. 512
#define EIN_GEMM_LEAST 16

// What a machine does. Predictions need it: by table, as a provider has it, or as ein_calibrate
// measures it. Numbers are of one core where they do not say otherwise; 0: not known.
typedef struct ein_rates {
  double flops_f64, flops_f32;     // per second, arithmetic alone
  double flops_bf16, flops_i8;     // the same of dot products of bf16 into f32, of i8 into i32
  double read_bw[EIN_MEMORY_LEVELS];  // bytes per second, by where they lie
  double copy_bw[EIN_MEMORY_LEVELS];  // read plus written; to memory past the caches
  double cache_bytes[EIN_MEMORY];  // of L1 and L2, and of L3 a core's share
  double fast_bytes;               // of the cache a core has to itself
  double fused;                    // extent from which an index is gone along in blocks; 0: never
  double hz;                       // cycles per second of a core at work
  // Measured only.
  double all_read_bw[EIN_MEMORY_LEVELS];  // of all threads at a time, in all
  double all_copy_bw[EIN_MEMORY_LEVELS];
  double gemm_f64[EIN_GEMMS];      // flops per second of products, without what a call takes
  double gemm_f32[EIN_GEMMS];
  double call;                     // seconds of a call of a plan that has one thing to do
  double start;                    // seconds until all threads have begun and ended doing nothing
  double stream_bytes;             // of an output from which it is faster past the caches
  double pages;                    // that are read together where that is fastest, of long runs
  double away[16];                 // of who has own memory: copies, bytes to it, what it will; 1/s
  int threads;                     // that all_.. and start are of
  char machine[96];                // processor, instruction set, caches; "": not known
} ein_rates;

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
  // With gap at base[o] + off[o][0] + i * gap[o], for any n; out (compute dtype) may be there.
  void (*fill_fn)(void *user, int64_t n, const char *const *base, const int64_t *const *off,
                  const int64_t *gap, void *out);
  void *user;
  const ein_code *code;         // what fill_fn makes
  double whole;                 // bytes of the tensors that a group's loops take blocks of; else 0
  int constant;                 // 1: its one operand is the same in every run
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
  const ein_code *store;        // emit_fn's: operand 0 is the fold, extras follow; NULL: converts
  const unsigned char *away;    // as ein_map's, of P's operands, Q's, the extras and the output
  const ein_rates *rates;       // while planning: what to predict from; NULL: the provider's own
  const ein_scalar *param;      // when run: of code and store
  void *shared;                 // when run: memory of choice.shared; NULL: a part has none of it
  void *kept;                   // when run: of choice.kept, as runs before left it; NULL: none
} ein_contract;

// A copy of elements of `size` bytes: 1, 2, 4, 8 or 16. Loops are merged; small steps of dst last.
typedef struct ein_copy {
  int n;
  const int64_t *extent, *src_stride, *dst_stride;
  int size;
  const char *src;
  char *dst;
  const ein_rates *rates;       // see ein_contract
  const unsigned char *away;    // as ein_map's, of src and dst
} ein_copy;

// An element-wise statement, or one that folds reduced indices, as loops:
//   out[f] = store(fold over r of code(f, r)), for each value f of the free loops
// Streams are what moves along loops: the operands of code, its index values; of argmax and argmin
// the position of an element; the operands of store, behind operand 0, which is the fold, and its
// index values; the output. Where the result has another type than the output, the store converts
// it: integers wrap, floats are rounded once.
typedef struct ein_map {
  int n, nfree;                 // loops, the free ones first; merged where strides allow, small
  const int64_t *extent;        //   steps of the output last of the free ones
  int nstream, pitch;
  const int64_t *stride;        // stride[s * pitch + i]: of stream s along loop i; of values: steps
  const ein_dtype *dtype;       // [nstream] as stored; i64 of values
  int nop, nvalue;              // streams of each kind, in their order; the output is the last
  int nposition, nextra, nextra_value;
  const ein_code *code, *store; // store NULL: the fold itself, or what code makes
  ein_fold fold;
  const ein_monoid *monoid;     // of EIN_FOLD_USER
  double count;                 // elements of one fold, at least 1
  double out_bytes;             // of the whole output, of which this may make a block; 0: it is
                                //   read again while it is in a cache
  const unsigned char *away;    // [nstream] 1: lies in the provider's memory; NULL: none does
  const ein_rates *rates;       // see ein_contract
  // When run. The output of an element-wise statement may be an operand of the same strides.
  char *const *base;            // [nstream] address of the element at index 0 of everything
  const int64_t *at;            // [nstream] values: the one there
  const ein_scalar *param;
} ein_map;

// A provider's answer to "can you run this, and how fast?".
typedef struct ein_choice {
  double seconds;               // predicted for all of it on the threads asked for
  double traffic;               // bytes to and from a core's own cache; 0: all once, or not known
  size_t scratch, away;         // bytes: per thread, aligned to 64 (of groups: of a block, in all);
                                //   of the provider's own memory
  size_t shared, cleared;       // contract: that all parts share, and of them those that begin as 0
  size_t kept;                  // contract: for what is made of constant sides; begins as 0, lasts
  int64_t grid[3], unit[3];     // contract: parts of batch, m and n for threads, width at most in
                                //   all, at multiples of what; copy, map: grid[0] 1: never cut
  int batches;                  // 1: planned without a batch it may be run with one axis, same bits
  char variant[24];             // name of this way; stable text, which options and stores keep
  int64_t state[40];            // the provider's own
} ein_choice;

// Ranges [from, to) of the linear indices of batch, m and n.
typedef struct ein_part { int64_t batch[2], m[2], n[2]; } ein_part;

// Statements one after another in each block of common loops. What is between them has memory of
// the block's own, which begins with nothing. With `along` a block of the other loops goes along
// that one, which is the last, and its memory has room for a piece of what moves with it: stages
// see one piece, and those that fold along it mean all pieces, of which the last may be shorter.
typedef struct ein_stage {
  ein_map map;                  // of one block; neither base nor at
  const int *tensor;            // [nstream] of the group's; values: -1
  const int64_t *offset;        // [nstream] bytes from the tensor's address; values: the one there
  const int64_t *step;          // [nstream * nloop]: bytes (values: numbers) for a value of a loop
  int along;                    // the map's loop that is the group's loop `along`, or -1
} ein_stage;
typedef struct ein_group {
  int nloop, nstage, ntensor;
  const int64_t *from, *block, *count;  // [nloop] block b < count begins at from + b * block
  const ein_stage *stage;
  const int64_t *local;         // [ntensor] bytes from where a block's own memory begins, or -1
  const int *same;              // [ntensor] the first of them that lies where it does
  size_t bytes;                 // of it
  int along;                    // or -1: from is 0, count pieces of length values in all
  int64_t length;
  char *const *base;            // when run: [ntensor] addresses of the others
  const ein_scalar *param;
} ein_group;
typedef int64_t ein_ticket;     // of what is under way; 0: nothing is
// Memory of a provider's own; a plan uses the first. What is called may go on afterwards, in order;
// what a copy reads may change then, what it brings home (away 0) is there. From several threads.
typedef struct ein_memory {
  int space;                    // ein_ztensor.space of views of it, not 0
  double start, bandwidth;      // of a copy: seconds, bytes per second; 0: no time
  ein_status (*alloc_fn)(void *user, size_t bytes, void **at);
  void (*free_fn)(void *user, void *at);
  ein_status (*copy_fn)(void *user, size_t bytes, const void *from, void *to, int away);
  ein_status (*mark_fn)(void *user, ein_ticket *ticket);  // of all before
  ein_status (*wait_fn)(void *user, ein_ticket ticket);
  ein_status (*later_fn)(void *user, size_t bytes, void *from, void *to);  // frees from
  void (*place_fn)(void *user, int place);  // this thread's calls are for it; -1: none. May be NULL
  ein_status (*settle_fn)(void *user);  // what later_fn brings home is there; both or NULL
  // All four or NULL. Memory that is kept, and handed to others: lend_fn goes around their calls.
  ein_status (*hold_fn)(void *user, size_t bytes, void **at);
  void (*release_fn)(void *user, void *at);
  ein_status (*lend_fn)(void *user, int begin);
  ein_status (*peer_fn)(void *user, size_t bytes, const void *from, int from_place, void *to,
                        int to_place);  // between places, in the order of what both were asked for
} ein_memory;

// A provider of kernels. The plan functions are pure questions: 0 means no. nth -1 asks for the
// fastest way by prediction, 0, 1, .. up to 63 for every way there is, the fastest among them, each
// with a variant's name of its own (ein_options.variant); 0 beyond the last. All that is decided is
// in the choice: run functions, called from several threads at once, look at nothing that may
// change after planning. What they return but EIN_OK becomes the status of the execution, whose
// outputs are then undefined. Slots may be NULL. The struct outlives ctx and plans.
typedef struct ein_kernels {
  const char *name;
  void *user;
  int (*contract_plan)(void *user, const ein_contract *c, int width, int nth, ein_choice *choice);
  ein_status (*contract_run)(void *user, const ein_contract *c, const ein_choice *choice,
                             const ein_part *part, void *scratch);
  int (*copy_plan)(void *user, const ein_copy *c, int width, int nth, ein_choice *choice);
  ein_status (*copy_run)(void *user, const ein_copy *c, const ein_choice *choice, void *scratch);
  // Faster versions of operations (EIN_OP_*) for chunks, by computation type; of storage dtypes
  // that are none, EIN_OP_OPERAND: to theirs, EIN_OP_CAST: from it. NULL: none.
  ein_chunk_fn (*chunk_fn)(void *user, int op, ein_dtype type);
  // Folds n values into *acc (EIN_FOLD_SUM to EIN_FOLD_ALL); NULL: none.
  void (*(*across_fn)(void *user, int fold, ein_dtype type))(int64_t n, const void *x, void *acc);
  // Whole maps; what nobody takes is done by the portable kernels with the functions above. Threads
  // are given maps with one shorter free loop. Not asked in deterministic mode.
  int (*map_plan)(void *user, const ein_map *m, int width, int nth, ein_choice *choice);
  ein_status (*map_run)(void *user, const ein_map *m, const ein_choice *choice, void *scratch);
  // Copies bytes past the caches; chosen for outputs of more than stream_bytes. 0 bytes end what
  // was copied and made so: then all of it is visible to who sees a release store that follows.
  void (*stream_fn)(void *user, size_t bytes, const void *src, void *dst);
  size_t stream_bytes;
  ein_rates rates;              // by table
  const char *machine;          // what rates are measured of, see ein_rates; NULL: not known
  // Measures what no other can: flops_.., hz and stream_bytes, in `bytes` of memory of the
  // caller's, in about 80 ms. now_fn as in ein_ctx_desc. NULL: nothing.
  void (*measure_fn)(void *user, double (*now_fn)(void *user), void *now_user, void *memory,
                     size_t bytes, ein_rates *rates);
  const ein_memory *memory;     // NULL: the host's
  int (*group_plan)(void *user, const ein_group *g, int nth, ein_choice *choice);
  ein_status (*group_run)(void *user, const ein_group *g, const ein_choice *choice);
  size_t group_bytes;           // of a block of a group at most: these three go with memory
  int alone;                    // 1: what it cannot run is an error of planning, not another's
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
  double (*now_fn)(void *user);         // seconds; default: that of EINSUM_CPU, brought in by its
                                        //   macro, else none: budgets count steps
  void *now_user;
  int cache_plans;                      // plans kept by ein_einsum; default 64; -1: none
  int bare;                             // 1: no backend but those above. Default: without use,
                                        //   kernels and executor those of macros (EINSUM_CPU, ..)
  const char *store;                    // text of a tuning store (manual: TUNING), copied; default:
  size_t store_bytes;                   //   none, and plans cost nothing for it
  const char *machine;                  // whose records count, copied; default: what kernels say
                                        //   of theirs, and threads; if they do not, those of all
} ein_ctx_desc;

// What a ctx knows from a tuning store.
typedef struct ein_store_info {
  int64_t records, mine;    // of all machines, and of the ctx's
  int64_t skipped, line;    // lines that are no records of this version, and the first of them
  const char *machine;      // the ctx's, as long as it lives; NULL: any
} ein_store_info;

// One mistake in a text or a call. Strings live in the ctx until its next planning call.
typedef struct ein_error {
  ein_status status;
  int line, column, width;  // 1-based, in code points of the whole line; line 0: no position
  int caret, mark;          // on a screen: columns of source before the mistake, and of the mistake
  const char *message;      // one line
  const char *source;       // the line of text, of a long one what is around the mistake, or ""
  const char *hint;         // one line, or ""
} ein_error;

// Which elements of the output the statement does not define (repeated output labels: "i->ii").
typedef enum ein_rest {
  EIN_REST_ERROR, EIN_REST_ZERO, EIN_REST_KEEP, EIN_REST_ACCUMULATE
} ein_rest;

#define EIN_ELLIPSIS (-1)   // in integer label lists

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
  int overflow_check;       // 1: integers that do not fit are an error (manual: DTYPES); default 0
  int ungrouped;            // 1: every statement is a task of its own, none are rows or blocks of a
                            //   common loop (manual: BATCHES); default 0
  size_t memory;            // budget in bytes for planning and one run (manual: BUDGETS); 0: none
  size_t reserved;          // bytes of it that others take
  size_t *least;            // receives the least budget where one is too small; may be NULL
  const char *variant;      // how all tasks run that can: "cpu:gett direct", or the variant alone;
                            //   the others as predicted to be fastest (manual: VARIANTS)
  const char *constant;     // inputs that hold the same in every execution of a plan: "x1", "W,B";
} ein_options;              //   kernels may pack them once (manual: CONSTANT INPUTS)

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

typedef struct ein_size { const char *name; int64_t value; } ein_size;

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
  double flops;             // of paths, counted as opt_einsum's opt_cost; of other statements as
                            //   they are written
  double naive_flops;       // of one unsplit pass
  double largest;           // elements of the largest intermediate
  const char *method;       // how the path was found
  int proved;               // 1: the path is optimal; 2: among paths without outer products
  double seconds;           // predicted of one execution; 0: no provider says how fast it is
  size_t memory;            // the budget, less what is reserved; 0: none. With one:
  size_t peak_bytes;        //   most that is alive from planning to the end, one run included
  int nregion, nloop;       //   regions of statements, and their sliced indices (ein_plan_loop)
  int64_t nslice;           //   slices that one run computes
  double repeated_flops;    //   of flops, those of statements computed again for every slice
  size_t kept_bytes;        // of plan_bytes: for what is packed of constant inputs
} ein_plan_info;

typedef struct ein_loop_info {
  int region;               // from 0
  const char *index;        // name of the sliced index in the region's first statement that has it
  int64_t extent, block;    // the last slice may be shorter
} ein_loop_info;
