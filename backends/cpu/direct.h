// ================================================================================================
// >>direct  kernels of contractions without packing
// On contiguous runs, per instruction set and real type; what they work on, and their tables.
// ================================================================================================

// Complex numbers are pairs of reals: a complex product with a scalar is two real ones, with its
// real and with its imaginary part, and the parts are put together when the sums are done.
// Integers are unsigned, so that they wrap.

// A tile of the output: R rows of up to three vectors, each the sum over k of a scalar (or, in
// kernels of lanes, a vector) of p and vectors of q. k is two loops; the outer one has tables.
typedef struct eini_dir_tile {
  int64_t k1, k0, pk, qk;       // extents, and strides of the inner loop, in reals
  const int64_t *pk1, *qk1;     // offsets of the outer loop
  const int64_t *prow, *orow;   // offsets of the rows
  const char *p, *q;
  char *out;
  int last;                     // lanes of the last vector in use
  int64_t ahead;                // lanes of the batch: bytes of p to what is read soon
  int64_t rows;                 // in use: of a tile of 8 the last one is taken again up to there
} eini_dir_tile;

// Dot products of rows of a with x: runs of `len` reals, run r of row i at a + row[i] + run[r] and
// at x + r * xrun. sums[i * lanes ..] (+)= one vector of partial sums each.
typedef struct eini_dir_dots {
  int64_t runs, len, xrun;
  const int64_t *run, *row;
  int64_t ahead;                // bytes of a to what is read soon; 0: the caches have it
  const char *a, *x;
  char *sums;
} eini_dir_dots;

// Of each row r, y[r * ystep + i] (+)= sum over j of x[r * xstep + j] * a[j][i]; steps in bytes.
// first: y is not read. y is read and written in whole vectors.
typedef struct eini_dir_axpys {
  int64_t n, rows;
  int first;
  int64_t xstep, ystep;
  const char *const *a;
  const char *x;
  char *y;
} eini_dir_axpys;

// Runs of products: y[r * step + i] = a[aoff[r] + i * sa] * b[boff[r] + i * sb]; the steps sa and
// sb are 0 or 1; one of them is 1, or len is.
typedef struct eini_dir_mul {
  int64_t runs, len, step;
  const char *a, *b;
  const int64_t *aoff, *boff;
  int64_t ahead[2];             // bytes of a and b to what is read soon
  int sa, sb;
  char *y;
} eini_dir_mul;

// Dot products of evenly spaced rows with x, all contiguous: y[i] = a[i * step ..] * x. xstep: far
// rows have an x each, so far apart.
typedef struct eini_dir_even {
  int64_t rows, step, len, xstep;
  const void *a, *x;
  void *y;
} eini_dir_even;

// Rows of sums over k of products of vectors, for each of n lanes, a multiple of a vector's.
typedef struct eini_dir_pairs {
  int64_t n, k;
  const int64_t *pk, *qk, *prow, *orow;  // offsets of p and q along k, of p and out along rows
  const char *p, *q;
  char *out;
} eini_dir_pairs;

// For each of n elements, rows of sums over k of scalars of p times vectors of q, `len` reals long.
typedef struct eini_dir_bands {
  int64_t n, k, len, pe, qe, oe;          // steps from element to element
  int64_t masked;                         // elements from here on write nothing behind len
  const int64_t *pk, *qk, *prow, *orow;   // offsets of p and q along k, of p and out along rows
  const char *p, *q;
  char *out;
} eini_dir_bands;

// Sums over groups of a scalar of each row and group times a tile, which are sums over k as above.
typedef struct eini_dir_scaled {
  int64_t groups, k1, k0, pk, qk;
  int64_t pe, se, oe;                     // steps from row to row
  const int64_t *pg, *sg, *qg;            // offsets of the groups
  const int64_t *pk1, *qk1;
  const char *p, *s, *q;
  char *out;
  int last;                               // lanes of the last vector in use
} eini_dir_scaled;

typedef void (*eini_dir_tile_fn)(const eini_dir_tile *t);
typedef void (*eini_dir_scaled_fn)(const eini_dir_scaled *t);
#define EINI_DIR_NR 5           // numbers of rows of a tile: 1 2 3 4 8

typedef struct eini_dir_kern {
  int lanes, size;              // reals of a vector, bytes of a real
  int rows;                     // the most rows a tile should have
  eini_dir_tile_fn tile[3][EINI_DIR_NR], lane[EINI_DIR_NR];
  // y[i] (+)= sum over j < g of x[j] * a[j][i]; g: 1 2 4 8. first: y is not read. y is read and
  // written in whole vectors
  void (*axpy[4])(int64_t n, int first, const char *const *a, const void *x, void *y);
  // of one row that comes from memory
  void (*axpy_far)(int64_t n, int first, const char *const *a, const void *x, void *y);
  // the same of several y and x: with one column, and with 1 << columns
  int columns;
  void (*axpys[2])(const eini_dir_axpys *d);
  void (*dots1)(const eini_dir_dots *d), (*dots4)(const eini_dir_dots *d);
  // one row; far: both operands come from memory, and the first lanes of the sums are written
  void (*dot_long)(const eini_dir_dots *d), (*dot_far)(const eini_dir_dots *d);
  // y[i] += the sum of the lanes of sums[i]; complex: s1 and s2 are sums of products with x and
  // with x of swapped parts; ca, cx: conjugated
  void (*fold)(int rows, int planes, const void *s1, const void *s2, int ca, int cx, void *y);
  // Complex sums from real ones: x are the sums of vectors times real parts of scalars, y the same
  // with imaginary parts; cv, cs: vectors or scalars are conjugated. In place in x.
  void (*join)(int64_t n, void *x, const void *y, int cv, int cs);
  // far: one row after another, as they lie; near: four at a time
  void (*even_far)(const eini_dir_even *d), (*even_near)(const eini_dir_even *d);
  void (*mul)(const eini_dir_mul *d);
  // for elements; NULL: of integers there are none
  void (*pairs[EINI_DIR_NR])(const eini_dir_pairs *t);
  void (*bands[4])(const eini_dir_bands *t);  // of 1 to 4 rows
  eini_dir_scaled_fn scaled[3][2];            // of 1 row and of several: 8 of one vector, else 4
} eini_dir_kern;

#define EINI_KERNELS EINI_KERNELS_DIRECT
#if EINI_CPU_X86
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#else  // x86 without AVX2 packs: section gett has plain C of its own
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#if EINI_CPU_NEON
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS
