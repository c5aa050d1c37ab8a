// ================================================================================================
// >>gett  contractions as products of packed blocks
// One contraction as a matrix product over blocks that are boxes in index space. The side that
// holds the unit stride of the output lies along vectors ("V"), the other is broadcast ("U").
// ================================================================================================

//   for each box of U, of K, of V:   pack both into panels [k][lane], tables say from where;
//     for each panel of V, of U:     a tile of the output in registers, over all k of the box;
//                                    stored in place, or through a buffer and then to its layout
//
// A box holds some of the index along which an operand is contiguous and some of the index along
// which the output is, so reads and writes use whole lines whatever the order of the indices.
// Complex problems run on the real tiles: V holds (re, im) as two lanes, U as two columns; what
// comes out are the sums of v*re(u) and v*im(u), put together when they leave the buffer.
//
// Part of a problem: the linear index of m (n) is cut at multiples of unit; the i-th stretch of
// unit elements stands for the i-th box, in the order of eini_gett_box.

// How a tile leaves the registers: stored, added to what is there, past the caches.
enum { EINI_GETT_STORE, EINI_GETT_ADD, EINI_GETT_STREAM };
// Steps in which lines of the output come from memory; what marks a tile that asks for them.
enum { EINI_GETT_LATE = 128, EINI_GETT_LATE_TILE = 256 };
// In the place of a pair: sums begin as v + u.
enum { EINI_GETT_FIRST = -1 };
enum { EINI_GETT_COLUMNS = 32 };   // of U in a tile at most

// A register tile: nv vectors of V times nu columns of U over k. V steps by sv from k to k + 1, U
// by uk; columns of U lie us apart. Row j, vector i goes to dst + uoff[j] + voff[i] (elements).
// Each k asks for one line that a later block needs: soon_base + *soon, then soon += soon_step. The
// lines that are added to are asked for when `late` steps are left; 0: not. Such tiles are whole,
// of packed panels of U (uk = nu, us = 1), which leaves registers for it.
typedef struct eini_gett_tile_arg {
  int nv, nu, how;
  int soon_step;
  uintptr_t soon_base;
  const int64_t *soon;         // bytes
  int64_t k, late, sv, uk, us;
  const void *v, *u;
  void *dst;
  const int64_t *uoff, *voff;
  const unsigned *lanes;       // of each vector those that are streamed; ~0: the whole vector
} eini_gett_tile_arg;

typedef void (*eini_gett_tile_fn)(const eini_gett_tile_arg *a);

// d[i] = the fold of d[i] and s[i], which may be read on to the end of a vector; or d[i] *= *s.
typedef void (*eini_gett_fold_fn)(int64_t n, void *d, const void *s);
// d[i] *= s[i] for products of operands; n is a multiple of every vector.
typedef void (*eini_gett_times_fn)(int64_t n, void *d, const void *s);

// ---- the kernels of one problem
typedef struct eini_gett_kit eini_gett_kit;
typedef struct eini_gett_pack_arg eini_gett_pack_arg;
typedef void (*eini_gett_pack_fn)(const eini_gett_pack_arg *a);

// What remains to be done with a panel of so many rows, some of them more than were packed. 1: it
// has values that only the exact tile takes.
typedef int (*eini_gett_done_fn)(const eini_gett_kit *kit, int is_u, int64_t lanes, int64_t rows,
                                 void *panel);

struct eini_gett_kit {
  eini_gett_tile_fn tile;
  eini_gett_fold_fn fold, by;  // by: scales; NULL: it cannot
  eini_gett_pack_fn pack_v, pack_u;
  eini_gett_times_fn times;    // products of operands; NULL: none
  int parts;                   // reals of an element: 2 for complex
  int size;                    // bytes of an element
  int w, nv, nu;               // elements of a vector; vectors and columns of the largest tile
  int gv, gu;                  // granules of V and U
  int cols;                    // columns of a tile, in elements: a multiple of it
  int isa, type;               // type: dtype of sums
  int form, group;             // see section gett-narrow; values of k in an element of a panel
  int head, round;             // rows that a panel begins with; the others are a multiple of round
  int flip_u, flip_v;          // i8: panels hold values plus or less 128
  eini_gett_tile_fn exact;     // what takes all values; NULL: the tile does
  eini_gett_done_fn done;      // NULL: nothing
};

// ---- sets of vectors in plain C; booleans are bytes
#define EINI_PD_TAG pd
#define EINI_PD_AT
#define EINI_PD_BYTES 8
#define EINI_PD_T double
#define EINI_PD_A double
#define EINI_PD_W 4
#define EINI_PS_TAG ps
#define EINI_PS_AT
#define EINI_PS_BYTES 4
#define EINI_PS_T float
#define EINI_PS_A float
#define EINI_PS_W 4
#define EINI_PL_TAG pl
#define EINI_PL_AT
#define EINI_PL_BYTES 8
#define EINI_PL_T int64_t
#define EINI_PL_A uint64_t
#define EINI_PL_W 4
#define EINI_PI_TAG pi
#define EINI_PI_AT
#define EINI_PI_BYTES 4
#define EINI_PI_T int32_t
#define EINI_PI_A uint32_t
#define EINI_PI_W 4
#define EINI_PB_TAG pb
#define EINI_PB_AT
#define EINI_PB_BYTES 1
#define EINI_PB_T unsigned char
#define EINI_PB_W 4
#define EINI_KERNELS EINI_KERNELS_FOUR
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS

// ---- tiles
// What there is of a set: sums of products, of narrow types or of those with heads (rows that
// panels begin with, of which sums are v + u); those with their folds; all pairs; the same with any
// number of columns, and scaled.
#define EINI_TILE_DOTS 1
#define EINI_TILE_HEADS 2
#define EINI_TILE_SUMS 3
#define EINI_TILE_INTS 4
#define EINI_TILE_FLOATS 5
#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_FLOATS
#if EINI_CPU_X86
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#endif
#define EINI_TILE_PLAIN
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_INTS
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_SUMS
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_PLAIN
#if EINI_CPU_X86
#define EINI_VEC EINI_YI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZI
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NI
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_TILE_KIND
#undef EINI_KERNELS
