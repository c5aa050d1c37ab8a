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
//   >>openblas-run     copies and calls
//   >>openblas-public  the provider and what a caller sees
//
// WHAT IT GIVES
//
// A provider of kernels: sums of products in f32, f64, c64 and c128 whose operands are matrices in
// memory, or become some by a permuted copy that the prediction is charged for. Batches are loops
// of calls. Everything else is declined, and other providers or the portable kernels do it. A plan
// takes it where it predicts fewer seconds; ein_plan_explain shows what was predicted and chosen.
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
} eini_blas_choice;

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
  x.copied = r < 0 || c < 0;
  if (!x.copied && c <= 1 && (r >= nc || r == 0)) {
    x.ld = r == 0 ? nc : r;
  } else if (!x.copied && r <= 1 && (c >= nr || c == 0)) {
    x.turned = 1;
    x.ld = c == 0 ? nr : c;
  } else {
    x.copied = 1;
  }
  if (x.copied) x.ld = nc;
  if (x.ld < 1) x.ld = 1;
  if (x.ld > INT32_MAX) x.copied = 1, x.turned = 0, x.ld = nc;
  return x;
}

static int eini_blas_plan(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  const ein_openblas *b = (const ein_openblas *)user;
  eini_blas_choice w;
  memset(&w, 0, sizeof w);
  int planes = c->type == EIN_C64 || c->type == EIN_C128 ? 2 : 1;
  if (nth > 0) return 0;  // one way each
  if (c->pair != EIN_PAIR_SUM_MUL || c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN ||
      !c->plain_out || (planes == 1 && c->type != EIN_F32 && c->type != EIN_F64)) {
    return 0;
  }
  w.m = eini_axes_size(&c->m);
  w.n = eini_axes_size(&c->n);
  w.k = eini_axes_size(&c->k);
  int64_t batch = eini_axes_size(&c->batch), size = (int64_t)ein_dtype_size(c->type);
  if (w.m > INT32_MAX || w.n > INT32_MAX || w.k > INT32_MAX || w.m * w.n * w.k == 0) return 0;
  w.p = eini_blas_match(&c->m, c->p.row[0], &c->k, c->p.k[0]);
  w.q = eini_blas_match(&c->k, c->q.k[0], &c->n, c->q.row[0]);
  w.out = eini_blas_match(&c->m, c->out_m, &c->n, c->out_n);
  if (c->p.conj) w.p.copied = 1, w.p.turned = 0, w.p.ld = w.k;  // conjugated on the way
  if (c->q.conj) w.q.copied = 1, w.q.turned = 0, w.q.ld = w.n;
  double copied = (w.p.copied ? (double)w.m * (double)w.k : 0) +
                  (w.q.copied ? (double)w.k * (double)w.n : 0) +
                  (w.out.copied ? (double)w.m * (double)w.n : 0);
  if (copied * (double)size > 4e9) return 0;
  memset(h, 0, sizeof *h);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  int cut = (double)w.m * (double)w.n * (double)w.k * (double)batch > 65536;
  if (openblas_get_num_threads() > 1) cut = 0;  // it cuts by itself
  if (cut && batch >= width) h->grid[0] = width;
  else if (cut && w.m >= w.n && w.m >= 4 * width) h->grid[1] = width;
  else if (cut && w.n >= 4 * width) h->grid[2] = width;
  // Peak for products with all sides long, less for thin ones; matrices once from memory.
  double thin = (double)eini_min64(w.m, eini_min64(w.n, w.k)), fit = thin / (thin + 12);
  double single = c->type == EIN_F32 || c->type == EIN_C64 ? 2 : 1;
  double flops = 2.0 * planes * planes * (double)w.m * (double)w.n * (double)w.k;
  double bytes = ((double)w.m * (double)w.k + (double)w.k * (double)w.n +
                  (double)w.m * (double)w.n) * (double)size;
  double parts = (double)(h->grid[0] * h->grid[1] * h->grid[2]);
  h->seconds = (double)batch * (flops / (b->flops_f64 * single * fit) + bytes / (8 * b->copy_bw) +
                                2 * copied * (double)size / b->copy_bw + 3e-7) / parts;
  h->scratch = (size_t)(copied * (double)size) + 192;
  snprintf(h->variant, sizeof h->variant, "%s%s",
           w.m == 1 && w.n == 1 ? "dot" : w.m == 1 || w.n == 1 ? "gemv" : "gemm",
           copied > 0 ? "-copy" : "");
  memcpy(h->state, &w, sizeof w);
  return 1;
}

// ================================================================================================
// >>openblas-run  copies and calls
// Takes a part of a contraction; runs it, batch by batch.
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

static void eini_blas_call(const ein_contract *c, const eini_blas_choice *w, int64_t m, int64_t n,
                           const void *p, const void *q, void *out) {
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  static const float onef[2] = {1, 0}, zerof[2] = {0, 0};
  CBLAS_TRANSPOSE tp = w->p.turned ? CblasTrans : CblasNoTrans;
  CBLAS_TRANSPOSE tq = w->q.turned ? CblasTrans : CblasNoTrans;
  int im = (int)m, in = (int)n, k = (int)w->k;
  int lp = (int)w->p.ld, lq = (int)w->q.ld, lo = (int)w->out.ld;
  CBLAS_ORDER order = CblasRowMajor;
  if (w->out.turned) {  // out is column-major: read all three as their transposes
    order = CblasColMajor;
    tp = w->p.turned ? CblasNoTrans : CblasTrans;
    tq = w->q.turned ? CblasNoTrans : CblasTrans;
  }
  switch (c->type) {
    case EIN_F32:
      cblas_sgemm(order, tp, tq, im, in, k, 1, (const float *)p, lp, (const float *)q, lq, 0,
                  (float *)out, lo);
      break;
    case EIN_F64:
      cblas_dgemm(order, tp, tq, im, in, k, 1, (const double *)p, lp, (const double *)q, lq, 0,
                  (double *)out, lo);
      break;
    case EIN_C64:
      cblas_cgemm(order, tp, tq, im, in, k, onef, p, lp, q, lq, zerof, out, lo);
      break;
    default: cblas_zgemm(order, tp, tq, im, in, k, one, p, lp, q, lq, zero, out, lo); break;
  }
}

// A product with one row or column, and inner products, of reals.
static int eini_blas_vector(const ein_contract *c, const eini_blas_choice *w, int64_t m, int64_t n,
                            const void *p, const void *q, void *out) {
  const eini_blas_matrix *a = n == 1 ? &w->p : &w->q;
  int64_t rows = n == 1 ? m : n, x, y;
  if ((c->type != EIN_F32 && c->type != EIN_F64) || (m > 1 && n > 1)) return 0;
  if (m == 1 && n == 1) {
    int k = (int)w->k, px = (int)(w->p.turned ? w->p.ld : 1), qx = (int)(w->q.turned ? 1 : w->q.ld);
    if (c->type == EIN_F64)
      *(double *)out = cblas_ddot(k, (const double *)p, px, (const double *)q, qx);
    else *(float *)out = cblas_sdot(k, (const float *)p, px, (const float *)q, qx);
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
    cblas_dgemv(order, CblasNoTrans, (int)rows, (int)w->k, 1, (const double *)mat, (int)a->ld,
                (const double *)vec, (int)x, 0, (double *)out, (int)y);
  } else {
    cblas_sgemv(order, CblasNoTrans, (int)rows, (int)w->k, 1, (const float *)mat, (int)a->ld,
                (const float *)vec, (int)x, 0, (float *)out, (int)y);
  }
  return 1;
}

static ein_status eini_blas_run(void *user, const ein_contract *c, const ein_choice *h,
                                const ein_part *part, void *scratch) {
  eini_blas_choice w;
  int size = (int)ein_dtype_size(c->type);
  int64_t m0 = part->m[0], m = part->m[1] - m0, n0 = part->n[0], n = part->n[1] - n0;
  (void)user;
  memcpy(&w, h->state, sizeof w);
  char *room = (char *)scratch, *pc = room, *qc, *oc;
  qc = pc + (w.p.copied ? (m * w.k * size + 63) / 64 * 64 : 0);
  oc = qc + (w.q.copied ? (w.k * n * size + 63) / 64 * 64 : 0);
  if (w.q.copied) w.q.ld = n;
  if (w.out.copied) w.out.ld = n;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    union { const char *c; char *v; } p, q;  // the copy below only reads
    p.c = c->p.base[0] + eini_batch_shift(&c->batch, b, c->p.batch, 0, size);
    q.c = c->q.base[0] + eini_batch_shift(&c->batch, b, c->q.batch, 0, size);
    char *out = c->out + eini_batch_shift(&c->batch, b, &c->out_batch, 0, size), *to = out;
    if (w.p.copied) {
      eini_blas_copy(&c->m, c->p.row[0], m0, m, &c->k, c->p.k[0], 0, w.k, c->type, c->p.conj, 0,
                     p.v, pc);
      p.c = pc;
    } else {
      p.c += m0 * (w.p.turned ? 1 : w.p.ld) * size;
    }
    if (w.q.copied) {
      eini_blas_copy(&c->k, c->q.k[0], 0, w.k, &c->n, c->q.row[0], n0, n, c->type, c->q.conj, 0,
                     q.v, qc);
      q.c = qc;
    } else {
      q.c += n0 * (w.q.turned ? w.q.ld : 1) * size;
    }
    if (w.out.copied) to = oc;
    else to += (m0 * (w.out.turned ? 1 : w.out.ld) + n0 * (w.out.turned ? w.out.ld : 1)) * size;
    if (!eini_blas_vector(c, &w, m, n, p.c, q.c, to)) eini_blas_call(c, &w, m, n, p.c, q.c, to);
    if (w.out.copied) {
      eini_blas_copy(&c->m, c->out_m, m0, m, &c->n, c->out_n, n0, n, c->type, 0, 1, out, oc);
    }
  }
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
