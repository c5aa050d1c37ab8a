// ================================================================================================
// >>cuda-gemm  which contractions are products of cuBLAS
// Takes a nest; gives the leading dimensions, which side is transposed, and calls. Operands are
// taken as they lie on the device, never copied to be permuted.
// ================================================================================================

typedef struct eini_cuda_gemm {
  int64_t m, n, k, batch;
  int64_t ld[3], step[3];        // of P, Q and the output; steps from one of the batch to the next
  int turned[3], conj[2];
} eini_cuda_gemm;

// The stride of loops [from, to) as one, 0 where there is but one element; -1: they are not one.
static int64_t eini_cuda_line(const eini_cuda_nest *x, int s, int from, int to) {
  int64_t stride = 0, size = 1;
  for (int i = to - 1; i >= from; i--) {
    if (x->extent[i] == 1) continue;
    if (size > 1 && x->used[s][i] != stride * size) return -1;
    if (size == 1) stride = x->used[s][i];
    size *= x->extent[i];
  }
  return stride < 0 ? -1 : stride;
}

// The matrix of a stream over two groups of loops. 0: it is none.
static int eini_cuda_matrix(const eini_cuda_nest *x, int s, int rows, int cols, int64_t *ld,
                            int *turned) {
  const int end[4] = {x->axes[1], x->axes[2], x->axes[3], x->n};
  const int64_t nr = eini_cuda_extent(x, x->axes[rows], end[rows]);
  const int64_t nc = eini_cuda_extent(x, x->axes[cols], end[cols]);
  const int64_t r = eini_cuda_line(x, s, x->axes[rows], end[rows]);
  const int64_t c = eini_cuda_line(x, s, x->axes[cols], end[cols]);
  if ((nr > 1 && r < 1) || (nc > 1 && c < 1)) return 0;
  return eini_matrix_lines(r, c, nr, nc, ld, turned);
}

// Is the contraction one product for each element of a batch?
static int eini_cuda_gemm_of(const ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                             eini_cuda_gemm *g) {
  memset(g, 0, sizeof *g);
  const ein_dtype type = x->type;
  if (c->blas == NULL || of->pair != EIN_PAIR_SUM_MUL || of->p.form != EIN_FORM_PLAIN ||
      of->q.form != EIN_FORM_PLAIN || of->p.nop != 1 || of->q.nop != 1 ||
      (!eini_cuda_real(type) && !eini_cuda_complex(type)) ||
      (!of->plain_out && !(of->scaled && of->nextra == 0)))
    return 0;
  g->batch = eini_cuda_extent(x, 0, x->axes[1]);
  g->m = eini_cuda_extent(x, x->axes[1], x->axes[2]);
  g->n = eini_cuda_extent(x, x->axes[2], x->axes[3]);
  g->k = eini_cuda_extent(x, x->axes[3], x->n);
  g->conj[0] = of->p.conj;
  g->conj[1] = of->q.conj;
  if (eini_max64(eini_max64(g->batch, g->m), eini_max64(g->n, g->k)) > INT32_MAX) return 0;
  const int list[3] = {0, 1, x->out};
  for (int s = 0; s < 3; s++)
    if ((g->step[s] = eini_cuda_line(x, list[s], 0, x->axes[1])) < 0) return 0;
  if (!eini_cuda_matrix(x, 0, 1, 3, &g->ld[0], &g->turned[0]) ||
      !eini_cuda_matrix(x, 1, 3, 2, &g->ld[1], &g->turned[1]) ||
      !eini_cuda_matrix(x, x->out, 1, 2, &g->ld[2], &g->turned[2]))
    return 0;
  // Of what is read as it lies only the transpose can be conjugated.
  for (int s = 0; s < 2; s++)
    if (g->conj[s] && g->turned[s] == g->turned[2]) return 0;
  return 1;
}

// cuBLAS counts columns first: a matrix of rows is the transpose of what it sees.
static ein_status eini_cuda_gemm_run(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_gemm *g,
                                     const void *alpha) {
  static const float onef[2] = {1, 0}, zerof[2] = {0, 0};
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  const int single = x->type == EIN_F32 || x->type == EIN_C64;
  const void *a = alpha != NULL ? alpha : single ? (const void *)onef : (const void *)one;
  const void *b = single ? (const void *)zerof : (const void *)zero;
  const int first = g->turned[2] ? 0 : 1, second = 1 - first;  // whose rows are the output's
  int op[2];
  for (int s = 0; s < 2; s++)
    op[s] = g->turned[s] == g->turned[2] ? 0 : g->conj[s] ? 2 : 1;
  int (*fn) EINI_CUDA_GEMM = x->type == EIN_F32 ? c->api.gemm_s : x->type == EIN_F64 ? c->api.gemm_d
                             : x->type == EIN_C64 ? c->api.gemm_c : c->api.gemm_z;
  const int code = fn(c->blas, op[first], op[second], (int)(first == 0 ? g->m : g->n),
                      (int)(first == 0 ? g->n : g->m), (int)g->k, a, x->base[first],
                      (int)g->ld[first], g->step[first], x->base[second], (int)g->ld[second],
                      g->step[second], b, x->base[x->out], (int)g->ld[2], g->step[2],
                      (int)g->batch);
  c->counts.gemms++;
  if (code == 0) return EIN_OK;
  snprintf(c->why, sizeof c->why, "cuBLAS fails (%d)", code);
  return code == 3 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}
