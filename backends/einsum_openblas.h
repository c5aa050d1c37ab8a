// einsum_openblas.h - v0.1.0 - OpenBLAS as leaf kernels for einsum.h - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_openblas.h"
//
// Link with -lopenblas -lm. Then let a ctx use it:
//
//     ein_openblas *blas;
//     if (ein_openblas_create(NULL, NULL, &blas) == EIN_OK) ein_openblas_use(blas, &desc);
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT IT GIVES, WHICH KERNEL RUNS, THREADS
//
//   >>openblas-api     public types and functions
//   >>openblas-match   which contractions are GEMM, GEMV or DOT
//   >>openblas-pack    copies of operands and results, values of functions
//   >>openblas-run     blocks and calls
//   >>openblas-public  the provider and what a caller sees
//
// WHAT IT GIVES
//
// A provider of kernels: sums of products in f32, f64, c64 and c128 whose operands are matrices in
// memory, or become some by a copy that the prediction is charged for: permuted, or of the values
// of a function (a*A+b, products of several operands, other dtypes). Copies are made block by
// block, never of a whole large operand; stores that do more than overwrite follow a dense result.
// Batches are loops of calls. Everything else is declined, and other providers or the portable
// kernels do it. A plan takes it where it predicts fewer seconds; ein_plan_explain shows what was
// predicted and chosen.
//
//
// WHICH KERNEL RUNS
//
// OpenBLAS picks a kernel for the processor when it starts, and may pick a slow one for processors
// it does not know: 0.3.21 takes its kernel for Prescott (SSE3) on Emerald Rapids, a fifth of the
// speed. So nothing is assumed: ein_openblas_create times one product of 192x192 matrices, and
// ein_openblas_info says which kernel it was and how fast. The environment variable
// OPENBLAS_CORETYPE, read by OpenBLAS itself, makes it take another one (SkylakeX, Haswell, ..).
// Give flops_f64 in the descriptor where plans must not depend on a measurement.
//
//
// THREADS
//
// How many threads OpenBLAS uses is a setting of the whole process, which is left as it is. With
// one (openblas_set_num_threads(1) before ein_openblas_create, or OPENBLAS_NUM_THREADS=1) the ctx's
// executor runs parts of a contraction, or of a batch, in several calls at once: the better way,
// and what the command does. With more, each contraction is one call, and OpenBLAS cuts it as it
// likes. Either way how a product is cut may change its last bits, so with this provider results
// depend on the number of threads. The rate is measured with the threads there are at
// ein_openblas_create, and whether to cut is decided when a plan is made; set another number
// afterwards, and plans are right still, but their predictions are not. OpenBLAS keeps buffers of
// its own, of some 32 MiB a thread, that no budget counts.

#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_OPENBLAS_H
#define EINSUM_OPENBLAS_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>openblas-api  public types and functions
// A provider of kernels; it must outlive every ctx and plan that uses it.
// ================================================================================================

typedef struct ein_openblas ein_openblas;

typedef struct ein_openblas_desc {
  double (*now_fn)(void *user);  // seconds; default: clock(), the sum over OpenBLAS's threads
  void *now_user;
  double flops_f64;              // per second of one call; 0: measured
  double copy_bw;                // bytes per second of a permuted copy; default 4e9
} ein_openblas_desc;

// desc and allocator may be NULL. *blas is NULL on failure (EIN_ERR_NO_MEMORY). Changes no setting
// of OpenBLAS.
EIN_API ein_status ein_openblas_create(const ein_openblas_desc *desc,
                                       const ein_allocator *allocator, ein_openblas **blas);
EIN_API void ein_openblas_destroy(ein_openblas *blas);  // NULL is a no-op
// Adds the provider behind those in desc->use; EIN_ERR_TOO_LARGE without room there.
EIN_API ein_status ein_openblas_use(ein_openblas *blas, ein_ctx_desc *desc);
EIN_API const ein_kernels *ein_openblas_kernels(const ein_openblas *blas);
// One line for people: OpenBLAS's version and options, the kernel it took, the rate measured.
// Returns the length of the whole text without its NUL, as snprintf does.
EIN_API size_t ein_openblas_info(const ein_openblas *blas, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_OPENBLAS_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_OPENBLAS_IMPLEMENTATION_DONE)
#define EINSUM_OPENBLAS_IMPLEMENTATION_DONE

#include <cblas.h>
#include <time.h>

// ================================================================================================
// >>openblas-match  which contractions are GEMM, GEMV or DOT
// Takes the strides of a contraction; gives for each of P, Q and the output whether it is a matrix
// in memory, or has to be copied into one.
// ================================================================================================

struct ein_openblas {
  ein_allocator al;
  ein_kernels kernels;
  double flops_f64, copy_bw;
};

// A matrix [rows, cols] of BLAS: one stride is 1, the other is at least its length.
typedef struct eini_blas_matrix {
  int64_t ld;
  int turned;                // 1: cols are far apart, rows are neighbours
  int copied;                // 1: a dense copy, made before (P, Q) or spread afterwards (output)
} eini_blas_matrix;

typedef struct eini_blas_choice {
  eini_blas_matrix p, q, out;  // [m,k], [k,n], [m,n]
  int64_t m, n, k;
  int64_t bm, bn, bk;          // of a call; all of it but where operands are copied
} eini_blas_choice;

// Of a block that is copied: elements at least, and terms of a sum at most; and multiply-adds that
// threads share. Tests make them small.
#ifndef EINI_BLAS_BLOCK
#define EINI_BLAS_CUT 65536.0
#define EINI_BLAS_BLOCK 262144  // half of a second-level cache or so
#define EINI_BLAS_DEPTH 512     // OpenBLAS packs no more at once either
#endif

// The one stride of a group, 0 when it has extent 1; -1: more than one, or not positive.
static int64_t eini_blas_stride(const ein_axes *x, const int64_t *stride) {
  if (x->n == 0) return 0;
  return x->n == 1 && stride[0] > 0 ? stride[0] : -1;
}

static eini_blas_matrix eini_blas_match(const ein_axes *rows, const int64_t *row,
                                        const ein_axes *cols, const int64_t *col) {
  int64_t r = eini_blas_stride(rows, row), c = eini_blas_stride(cols, col);
  int64_t nr = eini_axes_size(rows), nc = eini_axes_size(cols);
  eini_blas_matrix x = {0, 0, 0};
  x.copied = r < 0 || c < 0 || !eini_matrix_lines(r, c, nr, nc, &x.ld, &x.turned);
  if (x.copied) x.turned = 0, x.ld = eini_max64(nc, 1);
  return x;
}

// A side, as it lies there or as a copy that runs as the first operand does.
static eini_blas_matrix eini_blas_side(const ein_side *s, const ein_axes *rows, const int64_t *row,
                                       const ein_axes *cols, const int64_t *col) {
  eini_blas_matrix x = {1, 0, 1};
  if (s->form == EIN_FORM_PLAIN && !s->conj) return eini_blas_match(rows, row, cols, col);
  x.turned = s->form != EIN_FORM_PLAIN && eini_last_step(rows, row) < eini_last_step(cols, col);
  return x;
}

// Blocks: sums are cut, and the larger one of two copied sides, so that values are made once.
static void eini_blas_blocks(eini_blas_choice *w) {
  const double most = EINI_BLAS_BLOCK;
  w->bm = w->m, w->bn = w->n, w->bk = w->k;
  if (!w->p.copied && !w->q.copied) return;
  const double pq = (w->p.copied ? (double)w->m : 0) + (w->q.copied ? (double)w->n : 0);
  if (pq * (double)w->k <= most) return;
  w->bk = eini_min64(w->k, EINI_BLAS_DEPTH);
  const int64_t rows = eini_max64(1, EINI_BLAS_BLOCK / w->bk);
  if (w->p.copied && (!w->q.copied || w->m >= w->n)) w->bm = eini_min64(w->m, rows);
  else w->bn = eini_min64(w->n, rows);
}

// What a part of a contraction works in.
typedef struct eini_blas_room {
  char *p, *q, *out;             // dense copies
  int64_t *off;                  // EIN_POINTS offsets of each stream
  const int64_t **offs;
  const char **base;
  char *folds;                   // EIN_POINTS of them, aligned
} eini_blas_room;

// Where it lies; at NULL: how many bytes it takes.
static size_t eini_blas_carve(const ein_contract *c, const eini_blas_choice *w, char *at,
                            eini_blas_room *r) {
  const int64_t size = (int64_t)ein_dtype_size(c->type);
  const int64_t streams = 1 + eini_max64(c->nextra, eini_max64(c->p.nop, c->q.nop));
  size_t used = 0;
  r->folds = (char *)eini_carve(at, &used, EIN_POINTS, size);
  r->off = (int64_t *)eini_carve(at, &used, streams * EIN_POINTS, 8);
  r->offs = (const int64_t **)eini_carve(at, &used, streams, (int64_t)sizeof(void *));
  r->base = (const char **)eini_carve(at, &used, streams, (int64_t)sizeof(void *));
  r->p = (char *)eini_carve(at, &used, w->p.copied ? w->bm * w->bk : 0, size);
  r->q = (char *)eini_carve(at, &used, w->q.copied ? w->bk * w->bn : 0, size);
  r->out = (char *)eini_carve(at, &used, w->out.copied ? w->m * w->n : 0, size);
  return used;
}

// The way for a contraction that is one of BLAS; 0: it is not.
static int eini_blas_way(const ein_contract *c, eini_blas_choice *w) {
  const int real = c->type == EIN_F32 || c->type == EIN_F64;
  memset(w, 0, sizeof *w);
  if (c->pair != EIN_PAIR_SUM_MUL || c->p.nop == 0 || c->q.nop == 0 ||
      (!real && c->type != EIN_C64 && c->type != EIN_C128))
    return 0;
  w->m = eini_axes_size(&c->m);
  w->n = eini_axes_size(&c->n);
  w->k = eini_axes_size(&c->k);
  if (w->m > INT32_MAX || w->n > INT32_MAX || w->k > INT32_MAX || w->m * w->n * w->k == 0) return 0;
  w->p = eini_blas_side(&c->p, &c->m, c->p.row[0], &c->k, c->p.k[0]);
  w->q = eini_blas_side(&c->q, &c->k, c->q.k[0], &c->n, c->q.row[0]);
  w->out = eini_blas_match(&c->m, c->out_m, &c->n, c->out_n);
  if (!c->plain_out) w->out.copied = 1, w->out.turned = 0, w->out.ld = w->n;
  eini_blas_blocks(w);
  const double copies = (w->p.copied ? (double)w->bm * (double)w->bk : 0) +
                        (w->q.copied ? (double)w->bk * (double)w->bn : 0) +
                        (w->out.copied ? (double)w->m * (double)w->n : 0);
  return copies * (double)ein_dtype_size(c->type) <= 4e9;
}

// Seconds of one thread for its part of a contraction: peak for products with all sides long, less
// for thin ones; matrices once from memory; copies, and the values they are of. The machine's rates
// say what moves and what a cycle is; products are OpenBLAS's own, for those that rates know are of
// whatever kernels the ctx has, and permuted copies are in no rates.
static double eini_blas_seconds(const ein_openblas *b, const ein_contract *c,
                                const eini_blas_choice *w, const int64_t *grid) {
  const double planes = c->type == EIN_C64 || c->type == EIN_C128 ? 2 : 1;
  const double single = c->type == EIN_F32 || c->type == EIN_C64 ? 2 : 1;
  const double size = (double)ein_dtype_size(c->type);
  const double m = (double)w->m / (double)grid[1], n = (double)w->n / (double)grid[2];
  const double k = (double)w->k, thin = fmin(m, fmin(n, k));
  const double batch = (double)eini_axes_size(&c->batch) / (double)grid[0];
  const double copied = (w->p.copied ? m * k : 0) + (w->q.copied ? k * n : 0) +
                        (w->out.copied ? m * n : 0);
  const double cycles = m * k * eini_side_cycles(&c->p) + k * n * eini_side_cycles(&c->q) +
                        m * n * eini_store_cycles(c);
  const double calls = ceil(k / (double)w->bk) * ceil(m / (double)w->bm) * ceil(n / (double)w->bn);
  const ein_rates *r = c->rates;
  const double read_bw = r != NULL && r->read_bw[EIN_MEMORY] > 0 ? r->read_bw[EIN_MEMORY]
                                                                 : 8 * b->copy_bw;
  const double cycle = r != NULL && r->hz > 0 ? 1 / r->hz : EINI_CYCLE_SECONDS;
  return batch * (2 * planes * planes * m * n * k * (thin + 12) / thin / (b->flops_f64 * single) +
                  (m * k + k * n + m * n) * size / read_bw +
                  2 * copied * size / b->copy_bw + cycles * cycle + 3e-7 * calls);
}

static int eini_blas_plan(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  const ein_openblas *b = (const ein_openblas *)user;
  eini_blas_choice w;
  if (nth > 0 || !eini_blas_way(c, &w)) return 0;  // one way each
  const int64_t batch = eini_axes_size(&c->batch);
  memset(h, 0, sizeof *h);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  int cut = (double)w.m * (double)w.n * (double)w.k * (double)batch > EINI_BLAS_CUT;
  if (openblas_get_num_threads() > 1) cut = 0;  // it cuts by itself
  if (cut && batch >= width) h->grid[0] = width;
  else if (cut && w.m >= w.n && w.m >= 4 * width) h->grid[1] = width;
  else if (cut && w.n >= 4 * width) h->grid[2] = width;
  h->seconds = eini_blas_seconds(b, c, &w, h->grid);
  eini_blas_room r;
  h->scratch = eini_blas_carve(c, &w, NULL, &r);
  const int made = c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN || !c->plain_out;
  snprintf(h->variant, sizeof h->variant, "%s%s",
           w.m == 1 && w.n == 1 ? "dot" : w.m == 1 || w.n == 1 ? "gemv" : "gemm",
           made ? "-made" : w.p.copied || w.q.copied || w.out.copied ? "-copy" : "");
  memcpy(h->state, &w, sizeof w);
  return 1;
}

// ================================================================================================
// >>openblas-pack  copies of operands and results, values of functions
// Takes a block of a side, or a dense result; gives a dense block of its values, or stores it.
// ================================================================================================

// dense[i, j] = far[i0 + i, j0 + j], or the other way round; conj negates imaginary parts.
static void eini_blas_copy(const ein_axes *rows, const int64_t *row, int64_t i0, int64_t ni,
                           const ein_axes *cols, const int64_t *col, int64_t j0, int64_t nj,
                           ein_dtype type, int conj, int out, char *far, char *dense) {
  int size = (int)ein_dtype_size(type);
  for (int64_t jb = 0; jb < nj; jb += 16) {  // columns in strips, so that lines are reused
    int64_t off[16], w = eini_min64(16, nj - jb);
    for (int64_t j = 0; j < w; j++) off[j] = eini_batch_shift(cols, j0 + jb + j, &col, 0, size);
    for (int64_t i = 0; i < ni; i++) {
      char *f = far + eini_batch_shift(rows, i0 + i, &row, 0, size);
      char *d = dense + (i * nj + jb) * size;
      for (int64_t j = 0; j < w; j++, d += size) {
        memcpy(out ? f + off[j] : d, out ? d : f + off[j], (size_t)size);
        if (conj && type == EIN_C64) ((float *)(void *)d)[1] *= -1;
        if (conj && type == EIN_C128) ((double *)(void *)d)[1] *= -1;
      }
    }
  }
}

// Offsets of elements j0 .. j0 + n - 1 of row i, of stream s.
static void eini_blas_offsets(eini_blas_room *r, int s, const ein_axes *rows, const int64_t *row,
                              int64_t i, const ein_axes *cols, const int64_t *col, int64_t j0,
                              int64_t n) {
  int64_t *off = r->off + (int64_t)s * EIN_POINTS;
  const int64_t at = eini_batch_shift(rows, i, &row, 0, 1);
  eini_table(cols, col, j0, n, n, off);
  for (int64_t j = 0; j < n; j++) off[j] += at;
  r->offs[s] = off;
}

// dense[i, j] = value of a side at rows i0 + i and columns j0 + j, in batch b.
static void eini_blas_values(const ein_contract *c, const ein_side *s, eini_blas_room *r, int64_t b,
                             const ein_axes *rows, const int64_t *const *row, int64_t i0,
                             int64_t ni, const ein_axes *cols, const int64_t *const *col,
                             int64_t j0, int64_t nj, char *dense) {
  const int64_t size = (int64_t)ein_dtype_size(c->type);
  for (int o = 0; o < s->nop; o++)
    r->base[o] = s->base[o] + eini_batch_shift(&c->batch, b, s->batch, o,
                                               (int)ein_dtype_size(s->dtype[o]));
  for (int64_t i = 0; i < ni; i++) {
    for (int64_t j = 0, n; j < nj; j += n) {
      n = eini_min64(nj - j, EIN_POINTS);
      for (int o = 0; o < s->nop; o++)
        eini_blas_offsets(r, o, rows, row[o], i0 + i, cols, col[o], j0 + j, n);
      s->fill_fn(s->user, n, r->base, r->offs, NULL, dense + (i * nj + j) * size);
    }
  }
}

// The block [r0, r0 + nr) of rows and [k0, k0 + nk) of k of a side that is copied. across: rows are
// the columns of its matrix (Q). Gives its leading dimension.
static int64_t eini_blas_block(const ein_contract *c, const ein_side *s,
                               const eini_blas_matrix *x, int across, eini_blas_room *r, int64_t b,
                               int64_t r0, int64_t nr, int64_t k0, int64_t nk, char *dense) {
  const ein_axes *rows = across ? &c->n : &c->m;
  const int rows_first = x->turned == across;  // in the dense block
  const int64_t size = (int64_t)ein_dtype_size(c->type);
  union { const char *c; char *v; } from;  // the copy only reads
  if (s->form != EIN_FORM_PLAIN) {
    if (rows_first)
      eini_blas_values(c, s, r, b, rows, s->row, r0, nr, &c->k, s->k, k0, nk, dense);
    else eini_blas_values(c, s, r, b, &c->k, s->k, k0, nk, rows, s->row, r0, nr, dense);
    return rows_first ? nk : nr;
  }
  from.c = s->base[0] + eini_batch_shift(&c->batch, b, s->batch, 0, (int)size);
  if (rows_first)
    eini_blas_copy(rows, s->row[0], r0, nr, &c->k, s->k[0], k0, nk, c->type, s->conj, 0, from.v,
                   dense);
  else eini_blas_copy(&c->k, s->k[0], k0, nk, rows, s->row[0], r0, nr, c->type, s->conj, 0, from.v,
                      dense);
  return rows_first ? nk : nr;
}

// Stores a dense result, rows m0 .. and columns n0 .., as the contraction says.
static void eini_blas_store(const ein_contract *c, eini_blas_room *r, int64_t b, int64_t m0,
                            int64_t m, int64_t n0, int64_t n) {
  const int64_t size = (int64_t)ein_dtype_size(c->type);
  char *out = c->out + eini_batch_shift(&c->batch, b, &c->out_batch, 0,
                                        (int)ein_dtype_size(c->out_dtype));
  if (c->plain_out) {
    eini_blas_copy(&c->m, c->out_m, m0, m, &c->n, c->out_n, n0, n, c->type, 0, 1, out, r->out);
    return;
  }
  for (int e = 0; e < c->nextra; e++)
    r->base[e] = c->extra_base[e] + eini_batch_shift(&c->batch, b, c->extra_batch, e,
                                                     (int)ein_dtype_size(c->extra_dtype[e]));
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0, w; j < n; j += w) {
      w = eini_min64(n - j, EIN_POINTS);
      eini_blas_offsets(r, 0, &c->m, c->out_m, m0 + i, &c->n, c->out_n, n0 + j, w);
      for (int e = 0; e < c->nextra; e++)
        eini_blas_offsets(r, 1 + e, &c->m, c->extra_m[e], m0 + i, &c->n, c->extra_n[e], n0 + j, w);
      memcpy(r->folds, r->out + (i * n + j) * size, (size_t)(w * size));
      c->emit_fn(c->emit_user, w, r->folds, out, r->offs[0], r->base, r->offs + 1, NULL);
    }
  }
}

// ================================================================================================
// >>openblas-run  blocks and calls
// Takes a part of a contraction; runs it, batch by batch.
// ================================================================================================

// more: results are added to what is there.
static void eini_blas_call(const ein_contract *c, const eini_blas_choice *w, int64_t m, int64_t n,
                           int64_t nk, const void *p, const void *q, int more, void *out) {
  const double one[2] = {1, 0}, old[2] = {(double)more, 0};
  const float onef[2] = {1, 0}, oldf[2] = {(float)more, 0};
  CBLAS_TRANSPOSE tp = w->p.turned ? CblasTrans : CblasNoTrans;
  CBLAS_TRANSPOSE tq = w->q.turned ? CblasTrans : CblasNoTrans;
  int im = (int)m, in = (int)n, k = (int)nk;
  int lp = (int)w->p.ld, lq = (int)w->q.ld, lo = (int)w->out.ld;
  CBLAS_ORDER order = CblasRowMajor;
  if (w->out.turned) {  // out is column-major: read all three as their transposes
    order = CblasColMajor;
    tp = w->p.turned ? CblasNoTrans : CblasTrans;
    tq = w->q.turned ? CblasNoTrans : CblasTrans;
  }
  switch (c->type) {
    case EIN_F32:
      cblas_sgemm(order, tp, tq, im, in, k, 1, (const float *)p, lp, (const float *)q, lq, oldf[0],
                  (float *)out, lo);
      break;
    case EIN_F64:
      cblas_dgemm(order, tp, tq, im, in, k, 1, (const double *)p, lp, (const double *)q, lq, old[0],
                  (double *)out, lo);
      break;
    case EIN_C64:
      cblas_cgemm(order, tp, tq, im, in, k, onef, p, lp, q, lq, oldf, out, lo);
      break;
    default: cblas_zgemm(order, tp, tq, im, in, k, one, p, lp, q, lq, old, out, lo); break;
  }
}

// A product with one row or column, and inner products, of reals.
static int eini_blas_vector(const ein_contract *c, const eini_blas_choice *w, int64_t m, int64_t n,
                            int64_t nk, const void *p, const void *q, int more, void *out) {
  const eini_blas_matrix *a = n == 1 ? &w->p : &w->q;
  int64_t rows = n == 1 ? m : n, x, y;
  if ((c->type != EIN_F32 && c->type != EIN_F64) || (m > 1 && n > 1)) return 0;
  if (m == 1 && n == 1) {
    int k = (int)nk, px = (int)(w->p.turned ? w->p.ld : 1), qx = (int)(w->q.turned ? 1 : w->q.ld);
    if (c->type == EIN_F64)
      *(double *)out = cblas_ddot(k, (const double *)p, px, (const double *)q, qx) +
                       (more ? *(double *)out : 0);
    else
      *(float *)out = cblas_sdot(k, (const float *)p, px, (const float *)q, qx) +
                      (more ? *(float *)out : 0);
    return 1;
  }
  // The vector's stride: a copy and an untouched vector are both matrices with one side of 1.
  x = n == 1 ? (w->q.turned ? 1 : w->q.ld) : (w->p.turned ? w->p.ld : 1);
  y = n == 1 ? (w->out.turned ? 1 : w->out.ld) : (w->out.turned ? w->out.ld : 1);
  const void *mat = n == 1 ? p : q, *vec = n == 1 ? q : p;
  // Rows of the matrix are the output's: P is [m,k] as it is, Q [k,n] has to be turned.
  int turned = n == 1 ? a->turned : !a->turned;
  CBLAS_ORDER order = turned ? CblasColMajor : CblasRowMajor;
  if (c->type == EIN_F64) {
    cblas_dgemv(order, CblasNoTrans, (int)rows, (int)nk, 1, (const double *)mat, (int)a->ld,
                (const double *)vec, (int)x, more, (double *)out, (int)y);
  } else {
    cblas_sgemv(order, CblasNoTrans, (int)rows, (int)nk, 1, (const float *)mat, (int)a->ld,
                (const float *)vec, (int)x, (float)more, (float *)out, (int)y);
  }
  return 1;
}

// One batch: for blocks of k: for blocks of m, for blocks of n: copies, and a call.
static void eini_blas_batch(const ein_contract *c, eini_blas_choice *w, const ein_part *part,
                            eini_blas_room *r, int64_t b) {
  const int64_t size = (int64_t)ein_dtype_size(c->type), m1 = part->m[1], n1 = part->n[1];
  const eini_blas_matrix *o = &w->out;
  const int64_t m0 = o->copied ? part->m[0] : 0, n0 = o->copied ? part->n[0] : 0;
  char *out = o->copied ? r->out : c->out + eini_batch_shift(&c->batch, b, &c->out_batch, 0,
                                                             (int)size);
  int64_t mb, nb, kb;
  for (int64_t k = 0; k < w->k; k += kb) {
    kb = eini_min64(w->bk, w->k - k);
    for (int64_t m = part->m[0]; m < m1; m += mb) {
      const char *p = r->p, *q = r->q;
      mb = eini_min64(w->bm, m1 - m);
      if (w->p.copied) w->p.ld = eini_blas_block(c, &c->p, &w->p, 0, r, b, m, mb, k, kb, r->p);
      else
        p = c->p.base[0] + eini_batch_shift(&c->batch, b, c->p.batch, 0, (int)size) +
            (m * (w->p.turned ? 1 : w->p.ld) + k * (w->p.turned ? w->p.ld : 1)) * size;
      for (int64_t n = part->n[0]; n < n1; n += nb) {
        nb = eini_min64(w->bn, n1 - n);
        if (!w->q.copied)
          q = c->q.base[0] + eini_batch_shift(&c->batch, b, c->q.batch, 0, (int)size) +
              (n * (w->q.turned ? w->q.ld : 1) + k * (w->q.turned ? 1 : w->q.ld)) * size;
        else if (w->bn < w->n || m == part->m[0])
          w->q.ld = eini_blas_block(c, &c->q, &w->q, 1, r, b, n, nb, k, kb, r->q);
        char *to = out + ((m - m0) * (o->turned ? 1 : o->ld) +
                          (n - n0) * (o->turned ? o->ld : 1)) * size;
        if (!eini_blas_vector(c, w, mb, nb, kb, p, q, k > 0, to))
          eini_blas_call(c, w, mb, nb, kb, p, q, k > 0, to);
      }
    }
  }
  if (o->copied) eini_blas_store(c, r, b, part->m[0], m1 - part->m[0], n0, n1 - n0);
}

static ein_status eini_blas_run(void *user, const ein_contract *c, const ein_choice *h,
                                const ein_part *part, void *scratch) {
  eini_blas_choice w;
  eini_blas_room r;
  (void)user;
  memcpy(&w, h->state, sizeof w);
  eini_blas_carve(c, &w, (char *)scratch, &r);
  if (w.out.copied) w.out.ld = part->n[1] - part->n[0];
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++)
    eini_blas_batch(c, &w, part, &r, b);
  return EIN_OK;
}

// ================================================================================================
// >>openblas-public  the provider and what a caller sees
// Measures the rate of products once; changes no setting of OpenBLAS.
// ================================================================================================

static double eini_blas_clock(void *user) {
  (void)user;
  return (double)clock() / CLOCKS_PER_SEC;
}

// Flops per second of 192^3 products: repeated until they take 5 ms.
static ein_status eini_blas_measure(ein_openblas *b, double (*now)(void *), void *user) {
  const int N = 192;
  const size_t bytes = 3 * (size_t)N * (size_t)N * sizeof(double);
  double *x = (double *)b->al.alloc_fn(bytes, 64, b->al.user), t = 0, spent = 0;
  int runs = 0;
  if (x == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < 3 * N * N; i++) x[i] = 1e-3 * (i % 97);
  for (int i = 0; i < 1000 && spent < 5e-3; i++) {
    if (i == 1) t = now(user);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, x, N, x + N * N, N, 0,
                x + 2 * N * N, N);
    runs += i > 0;
    if (i > 0) spent = now(user) - t;
  }
  b->flops_f64 = spent > 0 ? 2.0 * N * N * N * runs / spent : 1e10;
  b->al.free_fn(x, bytes, b->al.user);
  return EIN_OK;
}

EIN_API ein_status ein_openblas_create(const ein_openblas_desc *desc,
                                       const ein_allocator *allocator, ein_openblas **blas) {
  if (blas == NULL) return EIN_ERR_ARGUMENT;
  *blas = NULL;
  if (allocator != NULL && (allocator->alloc_fn == NULL) != (allocator->free_fn == NULL))
    return EIN_ERR_ARGUMENT;
  eini_arena arena;
  eini_arena_init(&arena, allocator);
  ein_allocator al = arena.al;
  eini_arena_free(&arena);
  ein_openblas *b = (ein_openblas *)al.alloc_fn(sizeof *b, 64, al.user);
  if (b == NULL) return EIN_ERR_NO_MEMORY;
  memset(b, 0, sizeof *b);
  b->al = al;
  b->copy_bw = desc != NULL && desc->copy_bw > 0 ? desc->copy_bw : 4e9;
  b->flops_f64 = desc != NULL ? desc->flops_f64 : 0;
  ein_status st = EIN_OK;
  int given = desc != NULL && desc->now_fn != NULL;
  if (b->flops_f64 <= 0) {
    st = eini_blas_measure(b, given ? desc->now_fn : eini_blas_clock,
                           given ? desc->now_user : NULL);
  }
  if (st != EIN_OK) {
    ein_openblas_destroy(b);
    return st;
  }
  b->kernels.name = "openblas";
  b->kernels.user = b;
  b->kernels.contract_plan = eini_blas_plan;
  b->kernels.contract_run = eini_blas_run;
  *blas = b;
  return EIN_OK;
}

EIN_API void ein_openblas_destroy(ein_openblas *b) {
  if (b != NULL) b->al.free_fn(b, sizeof *b, b->al.user);
}

EIN_API const ein_kernels *ein_openblas_kernels(const ein_openblas *b) {
  return b == NULL ? NULL : &b->kernels;
}

EIN_API ein_status ein_openblas_use(ein_openblas *b, ein_ctx_desc *desc) {
  const int room = desc == NULL ? 0 : (int)(sizeof desc->use / sizeof *desc->use);
  if (b == NULL || desc == NULL || desc->nuse < 0) return EIN_ERR_ARGUMENT;
  if (desc->nuse >= room) return EIN_ERR_TOO_LARGE;
  desc->use[desc->nuse++] = &b->kernels;
  return EIN_OK;
}

EIN_API size_t ein_openblas_info(const ein_openblas *b, char *buf, size_t size) {
  if (b == NULL) return 0;
  int n = snprintf(buf, size,
                   "openblas: kernel %s, %.1f GFLOP/s in f64, threads of its own: %d; %s",
                   openblas_get_corename(), b->flops_f64 * 1e-9, openblas_get_num_threads(),
                   openblas_get_config());
  return n < 0 ? 0 : (size_t)n;
}

// What EINSUM_OPENBLAS brings into a ctx.
EINI_UNUSED static ein_status eini_blas_start(const ein_allocator *al, ein_ctx_desc *desc,
                                              void **own) {
  ein_openblas *blas;
  EINI_TRY(ein_openblas_create(NULL, al, &blas));
  *own = blas;
  return ein_openblas_use(blas, desc);
}

EINI_UNUSED static void eini_blas_end(void *own) { ein_openblas_destroy((ein_openblas *)own); }

#endif  // EINSUM_IMPLEMENTATION
