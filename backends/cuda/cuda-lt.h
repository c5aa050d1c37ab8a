// ================================================================================================
// >>cuda-lt  products with a store, of cuBLASLt
// Takes a nest; says whether its store is relu(alpha * fold + beta * C + bias), or less, and calls.
// ================================================================================================

// A store as cuBLASLt has it: streams of C and the bias, or -1. What scales may be params.
typedef struct eini_cuda_lt {
  eini_cuda_gemm g;
  int c, bias, relu;
  int scaled;                    // alpha and beta are the contraction's own
  int64_t c_ld, c_step, bias_step;
  const ein_fill *alpha, *beta;  // NULL: 1
} eini_cuda_lt;

// Is a side one operand, converted at most?
static int eini_cuda_as_stored(const ein_side *s) {
  return s->nop == 1 && s->code->nstep == 1 && s->code->step[0].op == EIN_OP_OPERAND;
}

// The step that makes what a later one (NULL: the last) finds in a register, or NULL.
static const ein_step *eini_cuda_step_of(const ein_code *k, int reg, const ein_step *later) {
  const ein_step *s = later == NULL ? k->step + k->nstep : later;
  while (s > k->step)
    if ((--s)->dst == reg) return s;
  return NULL;
}
static const ein_fill *eini_cuda_fill_of(const ein_code *k, int reg) {
  for (int i = 0; i < k->nfill; i++)
    if (k->fill[i].reg == reg) return &k->fill[i];
  return NULL;
}
static int eini_cuda_is_zero(const ein_fill *f) { return f != NULL && f->param < 0 && f->re == 0; }

// A term of the sum: the fold or an extra, scaled at most. 0: something else, or one too many.
static int eini_cuda_lt_term(const eini_cuda_nest *x, const ein_code *k, const ein_step *s,
                             int *fold, eini_cuda_lt *t) {
  const ein_fill *by = NULL;
  if (s != NULL && s->op == EIN_OP_MUL) {
    by = eini_cuda_fill_of(k, s->a);
    const int other = by != NULL ? s->b : s->a;
    if (by == NULL) by = eini_cuda_fill_of(k, s->b);
    s = by == NULL ? NULL : eini_cuda_step_of(k, other, s);
  }
  if (s == NULL || s->op != EIN_OP_OPERAND || s->type != (unsigned char)x->type ||
      (by != NULL && by->type != s->type))
    return 0;
  if (s->a == 0) {
    t->alpha = by;
    return (*fold)++ == 0;
  }
  const int stream = x->extra + s->a - 1;
  if (x->dtype[stream] != x->dtype[x->out]) return 0;
  if (by == NULL && t->bias < 0) {  // if it is one: else it is C
    const int columns = t->g.turned[2] ? 2 : 1;
    const eini_cuda_groups l = eini_cuda_groups_of(x, t->g.peel);
    t->bias_step = eini_cuda_line(x, stream, l.from[0], l.to[0]);
    if (eini_cuda_line(x, stream, l.from[columns], l.to[columns]) == 0 &&
        eini_cuda_line(x, stream, l.from[3 - columns], l.to[3 - columns]) == 1 &&
        t->bias_step >= 0) {
      t->bias = stream;
      return 1;
    }
  }
  if (t->c >= 0) return 0;
  t->c = stream;
  t->beta = by;
  return 1;
}

// The sum's terms one after another; 0: it is no such sum.
static int eini_cuda_lt_sum(const eini_cuda_nest *x, const ein_code *k, const ein_step *s,
                            eini_cuda_lt *t) {
  int fold = 0;
  for (int left = 3; left > 0 && s != NULL && s->op == EIN_OP_ADD; left--) {
    const ein_step *a = eini_cuda_step_of(k, s->a, s), *b = eini_cuda_step_of(k, s->b, s);
    const int first = a != NULL && a->op == EIN_OP_ADD;  // it goes on there
    if (!eini_cuda_lt_term(x, k, first ? b : a, &fold, t)) return 0;
    s = first ? a : b;
  }
  return eini_cuda_lt_term(x, k, s, &fold, t) && fold == 1;
}

static int eini_cuda_lt_store(const eini_cuda_nest *x, const ein_contract *of, eini_cuda_lt *t) {
  const ein_code *k = of->store;
  t->c = t->bias = -1;
  if (of->plain_out || k == NULL) return 1;
  if (k->type != (unsigned char)x->type) return 0;
  const ein_step *s = eini_cuda_step_of(k, k->result, NULL);
  if (s != NULL && s->op == EIN_OP_ROUNDTO && s->round == x->dtype[x->out])
    s = eini_cuda_step_of(k, s->a, s);
  if (s != NULL && s->op == EIN_OP_RELU) {
    t->relu = 1;
    s = eini_cuda_step_of(k, s->a, s);
  } else if (s != NULL && s->op == EIN_OP_MAX) {
    const int second = eini_cuda_is_zero(eini_cuda_fill_of(k, s->b));
    t->relu = second || eini_cuda_is_zero(eini_cuda_fill_of(k, s->a));
    if (t->relu) s = eini_cuda_step_of(k, second ? s->a : s->b, s);
  }
  if (!eini_cuda_lt_sum(x, k, s, t)) {
    if (!of->scaled) return 0;
    t->relu = 0;
    t->scaled = 1;
    t->bias = -1;
    t->c = of->nextra > 0 ? x->extra : -1;
  }
  if (t->c < 0) return 1;
  int turned;
  const eini_cuda_groups l = eini_cuda_groups_of(x, t->g.peel);
  t->c_step = eini_cuda_line(x, t->c, l.from[0], l.to[0]);
  const int64_t near = t->g.turned[2] ? eini_cuda_line(x, t->c, l.from[1], l.to[1])
                                      : eini_cuda_line(x, t->c, l.from[2], l.to[2]);
  return near == 1 && t->c_step >= 0 &&
         eini_cuda_matrix(x, &l, t->c, 1, 2, &t->c_ld, &turned) && turned == t->g.turned[2];
}

// What cuBLASLt calls a dtype; -1: it is not used for it.
static int eini_cuda_lt_type(ein_dtype t) {
  return t == EIN_F32 ? 0 : t == EIN_F64 ? 1 : t == EIN_F16 ? 2 : t == EIN_BF16 ? 14 : -1;
}

static ein_status eini_cuda_lt_status(ein_cuda *c, int code) {
  if (code == 0) return EIN_OK;
  snprintf(c->why, sizeof c->why, "cuBLASLt fails (%d)", code);
  return code == 3 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}

// Descriptions of a product and its matrices, A and B as cuBLAS counts, C, D.
typedef struct eini_cuda_lt_call {
  void *of, *matrix[4], *wish;
} eini_cuda_lt_call;

static void eini_cuda_lt_end(ein_cuda *c, eini_cuda_lt_call *d) {
  for (int i = 0; i < 4; i++)
    if (d->matrix[i] != NULL) (void)c->api.lt_matrix_end(d->matrix[i]);
  if (d->wish != NULL) (void)c->api.lt_wish_end(d->wish);
  if (d->of != NULL) (void)c->api.lt_end(d->of);
}

static int eini_cuda_lt_matrix(ein_cuda *c, int type, int64_t rows, int64_t cols, int64_t ld,
                               int64_t batch, int64_t step, void **to) {
  const int32_t n = (int32_t)batch;
  int code = c->api.lt_matrix(to, type, (uint64_t)rows, (uint64_t)cols, ld);
  if (code == 0 && n > 1) code = c->api.lt_matrix_set(*to, 5, &n, sizeof n);
  if (code == 0 && n > 1) code = c->api.lt_matrix_set(*to, 6, &step, sizeof step);
  return code;
}

// cuBLAS's status. Numbers are those of cublasLt.h: transposes 3 and 4, epilogue 7, the bias 8, its
// step 10.
static int eini_cuda_lt_describe(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_lt *t,
                                 eini_cuda_lt_call *d) {
  const eini_cuda_gemm *g = &t->g;
  const int first = g->turned[2] ? 0 : 1;
  const int64_t rows = first == 0 ? g->m : g->n, cols = first == 0 ? g->n : g->m;
  const int in = eini_cuda_lt_type((ein_dtype)x->dtype[0]);
  const int out = eini_cuda_lt_type((ein_dtype)x->dtype[x->out]);
  const int wide = x->type == EIN_F64, ends = (t->relu ? 2 : 0) | (t->bias >= 0 ? 4 : 0);
  const int epilogue = ends == 0 ? 1 : ends;
  memset(d, 0, sizeof *d);
  int code = c->api.lt_begin(&d->of, wide ? 70 : c->tf32 && in == 0 ? 77 : 68, wide ? 1 : 0);
  for (int i = 0; i < 2 && code == 0; i++) {
    const int s = i == 0 ? first : 1 - first, op = g->turned[s] == g->turned[2] ? 0 : 1;
    const int64_t near = i == 0 ? rows : g->k, far = i == 0 ? g->k : cols;
    code = c->api.lt_set(d->of, 3 + i, &op, sizeof op);
    if (code == 0)
      code = eini_cuda_lt_matrix(c, in, op ? far : near, op ? near : far, g->ld[s], g->batch,
                                 g->step[s], &d->matrix[i]);
  }
  if (code == 0) code = c->api.lt_set(d->of, 7, &epilogue, sizeof epilogue);
  if (code == 0 && t->bias >= 0) {
    const void *at = x->base[t->bias];
    code = c->api.lt_set(d->of, 8, &at, sizeof at);
    if (code == 0 && g->batch > 1)
      code = c->api.lt_set(d->of, 10, &t->bias_step, sizeof t->bias_step);
  }
  if (code == 0)
    code = eini_cuda_lt_matrix(c, out, rows, cols, t->c >= 0 ? t->c_ld : g->ld[2], g->batch,
                               t->c >= 0 ? t->c_step : g->step[2], &d->matrix[2]);
  if (code == 0)
    code = eini_cuda_lt_matrix(c, out, rows, cols, g->ld[2], g->batch, g->step[2], &d->matrix[3]);
  return code;
}

// Has cuBLASLt a kernel for it? It is asked, for operands that are aligned as elements are.
static int eini_cuda_lt_known(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_lt *t) {
  struct { uint64_t algorithm[8]; size_t workspace; int state; float waves; int rest[4]; } one;
  const uint64_t room = 0;
  const uint32_t in = x->size[0], out = x->size[x->out];
  eini_cuda_lt_call d;
  int n = 0;
  if (eini_cuda_enter(c) != EIN_OK) return 0;
  int code = eini_cuda_lt_describe(c, x, t, &d);
  if (code == 0) code = c->api.lt_wish(&d.wish);
  if (code == 0) code = c->api.lt_wish_set(d.wish, 1, &room, sizeof room);
  for (int i = 0; i < 4 && code == 0; i++)
    code = c->api.lt_wish_set(d.wish, 5 + i, i < 2 ? &in : &out, sizeof in);
  memset(&one, 0, sizeof one);
  if (code == 0)
    code = c->api.lt_find(c->lt, d.of, d.matrix[0], d.matrix[1], d.matrix[2], d.matrix[3], d.wish,
                          1, &one, &n);
  eini_cuda_lt_end(c, &d);
  (void)eini_cuda_exit(c, EIN_OK);
  return code == 0 && n > 0 && one.state == 0;
}

// Is the contraction one of cuBLASLt's that cuBLAS alone does not have?
static int eini_cuda_lt_of(ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                           eini_cuda_lt *t) {
  eini_cuda_gemm plain;
  const ein_dtype in = (ein_dtype)x->dtype[0], out = (ein_dtype)x->dtype[x->out];
  memset(t, 0, sizeof *t);
  if (c->lt == NULL || of->pair != EIN_PAIR_SUM_MUL || of->p.nop != 1 || of->q.nop != 1 ||
      !eini_cuda_as_stored(&of->p) || !eini_cuda_as_stored(&of->q) || x->dtype[1] != x->dtype[0] ||
      (x->type != EIN_F32 && x->type != EIN_F64) || eini_cuda_lt_type(in) < 0 ||
      eini_cuda_lt_type(out) < 0 || (out != in && out != x->type) ||
      (in != x->type && (in == EIN_F32 || in == EIN_F64)) || eini_cuda_gemm_of(c, x, of, &plain))
    return 0;
  return eini_cuda_gemm_peels(x, &t->g) && !t->g.apart && eini_cuda_lt_store(x, of, t);
}

// What a factor of the store is, in the compute dtype.
static const void *eini_cuda_lt_factor(const eini_cuda_nest *x, const ein_fill *f, double none,
                                       double *wide, float *single) {
  *wide = f == NULL ? none : f->param >= 0 ? x->param[f->param].re : f->re;
  *single = (float)*wide;
  return x->type == EIN_F64 ? (const void *)wide : (const void *)single;
}

// cuBLASLt picks the kernel by where operands lie, and remembers it.
static ein_status eini_cuda_lt_run(ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                                   const eini_cuda_lt *t) {
  const int first = t->g.turned[2] ? 0 : 1, other = t->c >= 0 && !t->scaled;
  double wide[2];
  float single[2];
  eini_cuda_lt_call d;
  const void *alpha = eini_cuda_lt_factor(x, t->alpha, 1, &wide[0], &single[0]);
  const void *beta = eini_cuda_lt_factor(x, t->beta, other, &wide[1], &single[1]);
  if (t->scaled && of->alpha != NULL) alpha = of->alpha;
  if (t->scaled && of->beta != NULL) beta = of->beta;
  int code = eini_cuda_lt_describe(c, x, t, &d);
  if (code == 0)
    code = c->api.lt_run(c->lt, d.of, alpha, x->base[first], d.matrix[0], x->base[1 - first],
                         d.matrix[1], beta, x->base[t->c >= 0 ? t->c : x->out], d.matrix[2],
                         x->base[x->out], d.matrix[3], NULL, NULL, 0, c->stream);
  eini_cuda_lt_end(c, &d);
  c->counts.gemms++;
  return eini_cuda_lt_status(c, code);
}
