// ================================================================================================
// >>cuda-gemm  which contractions are products of cuBLAS
// Takes a nest; gives the leading dimensions, which side is transposed, and calls. Operands are
// taken as they lie on the device, never copied to be permuted.
// ================================================================================================

enum { EINI_CUDA_GROUP = 4096 };  // products of different places in a call at most

typedef struct eini_cuda_gemm {
  int64_t m, n, k, batch;
  int64_t ld[3], step[3];        // of P, Q and the output; steps from one of the batch to the next
  int turned[3], conj[2], peel;
  int apart;                     // 1: one step does not reach all of the batch
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

// Loops of batch, m, n and k: [from, to) each.
typedef struct eini_cuda_groups {
  int from[4], to[4];
} eini_cuda_groups;

// Those of a nest. peel 1 or 2: the first loop of m or n is the batch.
static eini_cuda_groups eini_cuda_groups_of(const eini_cuda_nest *x, int peel) {
  eini_cuda_groups g;
  for (int i = 0; i < 4; i++) {
    g.from[i] = x->axes[i];
    g.to[i] = i < 3 ? x->axes[i + 1] : x->n;
  }
  if (peel > 0) {
    g.from[0] = g.from[peel]++;
    g.to[0] = g.from[peel];
  }
  return g;
}

// The matrix of a stream over two groups of loops. 0: it is none.
static int eini_cuda_matrix(const eini_cuda_nest *x, const eini_cuda_groups *l, int s, int rows,
                            int cols, int64_t *ld, int *turned) {
  const int64_t nr = eini_cuda_extent(x, l->from[rows], l->to[rows]);
  const int64_t nc = eini_cuda_extent(x, l->from[cols], l->to[cols]);
  const int64_t r = eini_cuda_line(x, s, l->from[rows], l->to[rows]);
  const int64_t c = eini_cuda_line(x, s, l->from[cols], l->to[cols]);
  if ((nr > 1 && r < 1) || (nc > 1 && c < 1)) return 0;
  return eini_matrix_lines(r, c, nr, nc, ld, turned);
}

static int eini_cuda_gemm_by(const eini_cuda_nest *x, const eini_cuda_groups *l,
                             eini_cuda_gemm *g) {
  const int list[3] = {0, 1, x->out};
  g->batch = eini_cuda_extent(x, l->from[0], l->to[0]);
  g->m = eini_cuda_extent(x, l->from[1], l->to[1]);
  g->n = eini_cuda_extent(x, l->from[2], l->to[2]);
  g->k = eini_cuda_extent(x, l->from[3], l->to[3]);
  if (eini_max64(eini_max64(g->batch, g->m), eini_max64(g->n, g->k)) > INT32_MAX) return 0;
  for (int s = 0; s < 3; s++)
    if ((g->step[s] = eini_cuda_line(x, list[s], l->from[0], l->to[0])) < 0) g->apart = 1;
  if (g->apart && (g->peel > 0 || g->batch > EINI_CUDA_GROUP)) return 0;
  if (!eini_cuda_matrix(x, l, 0, 1, 3, &g->ld[0], &g->turned[0]) ||
      !eini_cuda_matrix(x, l, 1, 3, 2, &g->ld[1], &g->turned[1]) ||
      !eini_cuda_matrix(x, l, x->out, 1, 2, &g->ld[2], &g->turned[2]))
    return 0;
  // Of what is read as it lies only the transpose can be conjugated.
  for (int s = 0; s < 2; s++)
    if (g->conj[s] && g->turned[s] == g->turned[2]) return 0;
  return 1;
}

// One product for each element of a batch. Without one, the first loop of m or n may be one.
static int eini_cuda_gemm_peels(const eini_cuda_nest *x, eini_cuda_gemm *g) {
  for (g->peel = 0; g->peel < 3; g->peel++) {
    const int end = g->peel == 0 ? 0 : x->axes[g->peel + 1];
    if (g->peel > 0 && (x->axes[1] > 0 || end - x->axes[g->peel] < 2)) continue;
    const eini_cuda_groups l = eini_cuda_groups_of(x, g->peel);
    if (eini_cuda_gemm_by(x, &l, g)) return 1;
  }
  return 0;
}

// Is the contraction such products, as they are or scaled?
static int eini_cuda_gemm_of(const ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                             eini_cuda_gemm *g) {
  const ein_dtype type = x->type;
  memset(g, 0, sizeof *g);
  if (c->blas == NULL || of->pair != EIN_PAIR_SUM_MUL || of->p.form != EIN_FORM_PLAIN ||
      of->q.form != EIN_FORM_PLAIN || of->p.nop != 1 || of->q.nop != 1 ||
      (!eini_cuda_real(type) && !eini_cuda_complex(type)) ||
      (!of->plain_out && !(of->scaled && of->nextra == 0)))
    return 0;
  g->conj[0] = of->p.conj;
  g->conj[1] = of->q.conj;
  return eini_cuda_gemm_peels(x, g);
}

// How cuBLAS ended.
static ein_status eini_cuda_gemm_status(ein_cuda *c, int code) {
  c->counts.gemms++;
  if (code == 0) return EIN_OK;
  snprintf(c->why, sizeof c->why, "cuBLAS fails (%d)", code);
  return code == 3 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}

// cuBLAS counts columns first: a matrix of rows is the transpose of what it sees.
static ein_status eini_cuda_gemm_strided(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_gemm *g, const void *alpha) {
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
  return eini_cuda_gemm_status(c, code);
}

// Element b of the batch.
static eini_cuda_nest eini_cuda_gemm_one(const eini_cuda_nest *x, int64_t b) {
  eini_cuda_nest y = *x;
  for (int i = x->axes[1] - 1; i >= x->axes[0]; i--) {
    for (int s = 0; s < x->nstream; s++)
      y.base[s] = (char *)((uintptr_t)y.base[s] +
                           (uintptr_t)(b % x->extent[i] * x->used[s][i] * x->size[s]));
    b /= x->extent[i];
  }
  return y;
}

// All of the batch in one call, whose addresses go to the device before.
static ein_status eini_cuda_gemm_grouped(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_gemm *g, const void *alpha) {
  const int first = g->turned[2] ? 0 : 1, second = 1 - first, count = (int)g->batch;
  const int m = (int)(first == 0 ? g->m : g->n), n = (int)(first == 0 ? g->n : g->m);
  const int k = (int)g->k, ld[3] = {(int)g->ld[first], (int)g->ld[second], (int)g->ld[2]};
  const int op[2] = {g->turned[first] != g->turned[2], g->turned[second] != g->turned[2]};
  const size_t bytes = (size_t)count * 3 * sizeof(uint64_t);
  const float onef = 1, zerof = 0;
  const double one = 1, zero = 0;
  uint64_t at = 0;
  uint64_t *list = (uint64_t *)c->al.alloc_fn(bytes, 64, c->al.user);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int b = 0; b < count; b++) {
    const eini_cuda_nest y = eini_cuda_gemm_one(x, b);
    list[b] = (uint64_t)(uintptr_t)y.base[first];
    list[count + b] = (uint64_t)(uintptr_t)y.base[second];
    list[2 * count + b] = (uint64_t)(uintptr_t)y.base[x->out];
  }
  eini_cuda_walk w = eini_cuda_walk_bytes((char *)list, bytes);
  ein_status st = eini_cuda_take(c, bytes, &at);
  if (st == EIN_OK) st = eini_cuda_upload(c, &w, at);
  if (st == EIN_OK) st = eini_cuda_join(c);
  c->al.free_fn(list, bytes, c->al.user);
  const size_t third = (size_t)count * sizeof(uint64_t);
  int code = 0;
  if (st == EIN_OK && x->type == EIN_F32)
    code = c->api.grouped_s(c->blas, &op[0], &op[1], &m, &n, &k,
                            alpha != NULL ? (const float *)alpha : &onef,
                            (const float *const *)(uintptr_t)at, &ld[0],
                            (const float *const *)(uintptr_t)(at + third), &ld[1], &zerof,
                            (float *const *)(uintptr_t)(at + 2 * third), &ld[2], 1, &count);
  else if (st == EIN_OK)
    code = c->api.grouped_d(c->blas, &op[0], &op[1], &m, &n, &k,
                            alpha != NULL ? (const double *)alpha : &one,
                            (const double *const *)(uintptr_t)at, &ld[0],
                            (const double *const *)(uintptr_t)(at + third), &ld[1], &zero,
                            (double *const *)(uintptr_t)(at + 2 * third), &ld[2], 1, &count);
  if (st == EIN_OK) st = eini_cuda_gemm_status(c, code);
  if (at != 0) eini_cuda_drop(c, at);
  return st;
}

// Can the batch be one call? Its addresses are copied, which is not captured.
static int eini_cuda_gemm_groups(const ein_cuda *c, const eini_cuda_nest *x) {
  return c->api.grouped_s != NULL && (x->type == EIN_F32 || x->type == EIN_F64);
}

static ein_status eini_cuda_gemm_run(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_gemm *g,
                                     const void *alpha) {
  if (!g->apart) return eini_cuda_gemm_strided(c, x, g, alpha);
  if (eini_cuda_gemm_groups(c, x) && !eini_cuda_captured(c))
    return eini_cuda_gemm_grouped(c, x, g, alpha);
  eini_cuda_gemm each = *g;
  each.batch = 1;
  each.step[0] = each.step[1] = each.step[2] = 0;
  for (int64_t b = 0; b < g->batch; b++) {
    const eini_cuda_nest y = eini_cuda_gemm_one(x, b);
    EINI_TRY(eini_cuda_gemm_strided(c, &y, &each, alpha));
  }
  return EIN_OK;
}
