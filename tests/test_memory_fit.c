// Plans within budgets, of programs and einsums. Results against the brute-force oracle, live
// bytes against the budget by a counting allocator, the least budget against its promise, and every
// allocation failing once. Seeds are fixed: a failure names program, seed and budget.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#ifdef TEST_CPU
#include "../backends/einsum_cpu.h"
#endif
#include "oracle.h"
#include "util.h"

#include <stdlib.h>

static int checks, failures;
static const char *what = "";  // program at hand
static unsigned long long which, budget;

#define CHECK(cond)                                                                       \
  do {                                                                                    \
    checks++;                                                                             \
    if (!(cond)) {                                                                        \
      failures++;                                                                         \
      printf("%s:%d: failed: %s (case %llu, budget %llu)\n%s\n", __FILE__, __LINE__, #cond, \
             which, budget, what);                                                        \
    }                                                                                     \
  } while (0)

#include "monoids.h"

// ---- an allocator that counts bytes, and fails at a call ----------------------------------------

static size_t live, top;
static long calls, fail_at = -1;

static void *byte_alloc(size_t size, size_t align, void *user) {
  (void)user;
  if (calls++ == fail_at) return NULL;
  void *p = eini_default_alloc(size, align, NULL);
  if (p == NULL) return NULL;
  live += size;
  if (live > top) top = live;
  return p;
}

static void byte_free(void *p, size_t size, void *user) {
  (void)user;
  if (p != NULL) live -= size;
  eini_default_free(p, size, NULL);
}

#define MANY 4000  // slices of plans that are made, but not run

#ifdef TEST_CPU
static ein_cpu *cpu;
#endif

static ein_ctx *new_ctx(void) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
#ifdef TEST_CPU
  ein_cpu_desc cd;
  memset(&cd, 0, sizeof cd);
  cd.threads = 3;
  if (ein_cpu_create(&cd, NULL, &cpu) != EIN_OK || ein_cpu_use(cpu, &d) != EIN_OK) exit(1);
#endif
  d.allocator.alloc_fn = byte_alloc;
  d.allocator.free_fn = byte_free;
  if (ein_ctx_create(&d, &ctx) != EIN_OK) exit(1);
  return ctx;
}

// ---- a graph with data and what the oracle says -------------------------------------------------

typedef struct scene {
  const ein_graph *g;
  int n, nin, nout;
  void **data, **out;    // per tensor, dense; out: what a run writes, per output
  double **err;
  const void **in;
  ein_scalar param[4];
} scene;

static void scene_open(scene *s, const ein_graph *g, uint64_t seed) {
  memset(s, 0, sizeof *s);
  s->g = g;
  s->n = (int)g->ntensor;
  s->data = (void **)orc_alloc(s->n, sizeof *s->data);
  s->out = (void **)orc_alloc(s->n, sizeof *s->out);
  s->in = (const void **)orc_alloc(s->n, sizeof *s->in);
  s->err = (double **)orc_alloc(s->n, sizeof *s->err);
  for (int t = 0; t < s->n; t++) {
    const eini_tensor *x = &g->tensor[t];
    s->data[t] = orc_alloc(orc_count(x), orc_size(x->dtype));
    s->err[t] = (double *)orc_alloc(orc_count(x), sizeof **s->err);
    if (x->role == EIN_ROLE_INPUT) {
      orc_random_fill(x->dtype, orc_count(x), s->data[t], seed + (uint64_t)t);
      s->in[s->nin++] = s->data[t];
    }
    if (x->role == EIN_ROLE_OUTPUT) s->out[s->nout++] = orc_alloc(orc_count(x), orc_size(x->dtype));
  }
  orc_eval_err(g, s->data, s->err, s->param);
}

static void scene_close(scene *s) {
  for (int t = 0; t < s->n; t++) {
    free(s->data[t]);
    free(s->err[t]);
  }
  for (int o = 0; o < s->nout; o++) free(s->out[o]);
  free(s->data);
  free(s->out);
  free(s->err);
  free((void *)s->in);
}

// Runs a plan on dense buffers and compares.
static void scene_check(scene *s, const ein_plan *plan) {
  char message[128] = "";
  ein_run run;
  int o = 0;
  memset(&run, 0, sizeof run);
  run.in = s->in;
  run.out = s->out;
  run.param = s->param;
  run.error = message;
  run.error_bytes = sizeof message;
  for (int t = 0; t < s->n; t++) {
    const eini_tensor *x = &s->g->tensor[t];
    if (x->role == EIN_ROLE_OUTPUT)
      memset(s->out[o++], 0xa5, (size_t)orc_count(x) * orc_size(x->dtype));
  }
  ein_status st = ein_plan_execute(plan, &run);
  CHECK(st == EIN_OK);
  if (st != EIN_OK) printf("%s: %s\n", ein_status_name(st), message);
  o = 0;
  for (int t = 0; t < s->n && st == EIN_OK; t++) {
    const eini_tensor *x = &s->g->tensor[t];
    if (x->role != EIN_ROLE_OUTPUT) continue;
    CHECK(orc_compare_err(x->dtype, orc_count(x), s->out[o++], s->data[t], s->err[t]));
  }
}

// ---- budgets ------------------------------------------------------------------------------------

static int sliced, refused;

#define FREE SIZE_MAX  // a budget that counts and never refuses

// Creates, runs and destroys under a budget; the status. *peak: most bytes alive.
static ein_status under(ein_ctx *ctx, scene *s, size_t memory, size_t *peak, size_t *least) {
  ein_options d;
  ein_plan *plan;
  ein_plan_info info;
  size_t before = live;
  memset(&d, 0, sizeof d);
  memset(&info, 0, sizeof info);
  d.memory = memory;
  d.least = least;
  budget = memory;
  top = live;
  ein_status st = ein_plan_graph(ctx, s->g, 0, NULL, &d, &plan);
  if (st == EIN_OK) {
    CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
    CHECK(live - before == info.plan_bytes);
    if (info.nslice <= MANY) scene_check(s, plan);
    CHECK(top - before <= info.peak_bytes);
    *peak = info.peak_bytes;
    sliced += info.nslice > 1;
  }
  CHECK((st == EIN_OK) == (plan != NULL));
  ein_plan_destroy(plan);
  CHECK(live == before);
  if (st == EIN_OK) CHECK(top - before <= memory);
  return st;
}

// Shrinking budgets, to an infeasible one; the least one works, and one byte less does not.
static void shrink(ein_ctx *ctx, scene *s, int percent) {
  size_t peak = 0, free_peak = 0, least = 0;
  CHECK(under(ctx, s, FREE, &free_peak, NULL) == EIN_OK);
  CHECK(under(ctx, s, free_peak, &peak, NULL) == EIN_OK);
  for (size_t memory = free_peak; memory > 1000;) {
    memory = memory * (size_t)percent / 100;
    ein_status st = under(ctx, s, memory, &peak, &least);
    CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
    if (st == EIN_OK) continue;
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)least);
    CHECK(least > memory && least <= free_peak && strstr(ein_ctx_message(ctx), number) != NULL);
    size_t again = 0;
    CHECK(under(ctx, s, least, &peak, &again) == EIN_OK);
    CHECK(under(ctx, s, least - 1, &peak, &again) == EIN_ERR_TOO_LARGE && again == least);
    refused++;
    break;
  }
}

// ---- targets: slicing as such, whatever plans take ----------------------------------------------

// A budget that is filled by hand, and what fills it, from a copy of the ctx.
static eini_budget *bare_budget(ein_ctx *ctx, const eini_want *d, eini_fit_search *w,
                                ein_ctx *inner) {
  eini_budget *b = (eini_budget *)ctx->al.alloc_fn(sizeof *b, 64, ctx->al.user);
  memset(b, 0, sizeof *b);
  memset(w, 0, sizeof *w);
  b->cap.al = ctx->al;
  b->cap.limit = SIZE_MAX;
  b->cap.live = sizeof *b;
  *inner = *ctx;
  inner->al = eini_cap_allocator(&b->cap);
  w->f = &b->f;
  w->j.ctx = inner;
  w->j.desc = d;
  w->j.cap = &b->cap;
  w->j.speed.flops = w->j.speed.bandwidth = 1e9;
  w->j.packing = EINI_FIT_PACKING;
  return b;
}

// Makes and runs what is chosen for targets between everything in one region and the least.
static void all_targets(ein_ctx *ctx, scene *s, int order) {
  int64_t most, least;
  int n, same;
  eini_want d;
  memset(&d, 0, sizeof d);
  d.graph = s->g;
  for (int k = 0;; k++) {
    eini_fit_search w;
    ein_ctx inner;
    eini_budget *have = bare_budget(ctx, &d, &w, &inner);
    CHECK(eini_fit_open(&w, 0, order, &have->f.base, &same) == EIN_OK);
    eini_fit_base b = have->f.base;
    w.j.whole = order;
    CHECK(eini_fit_targets(&w.j, &b, &most, &least, &n) == EIN_OK);
    uint64_t last[2] = {0, 0};
    int made = 0;
    budget = (unsigned long long)eini_fit_target_at(most, least, n, k);
    CHECK(eini_fit_make(&w, &b, (int64_t)budget, 0, last, &have->f, &made) == EIN_OK);
    CHECK(made);
    ein_plan *plan = eini_budget_give(have);
    if (made) {
      sliced += plan->info.nslice > 1;
      scene_check(s, plan);
    }
    ein_plan_destroy(plan);
    if (k >= n - 1) break;
  }
}

// Any legal regions, with loops over any sliceable indices in blocks of any size.
static void any_regions(ein_ctx *ctx, scene *s, int order) {
  static eini_fit_choice list[64];
  eini_fit_search w;
  eini_want d;
  ein_ctx inner;
  int same, n = 0;
  memset(&d, 0, sizeof d);
  d.graph = s->g;
  eini_budget *have = bare_budget(ctx, &d, &w, &inner);
  CHECK(eini_fit_open(&w, 0, order, &have->f.base, &same) == EIN_OK);
  eini_fit_base b = have->f.base;
  eini_arena_init(&have->f.arena, &inner.al);
  for (int from = 0; from < (int)b.g->nstmt;) {
    eini_fit_class cls[EINI_FIT_CLASSES];
    eini_fit_nest nest;
    eini_fit_choice *c = &list[n++];
    int count = 0;
    memset(&nest, 0, sizeof nest);
    memset(c, 0, sizeof *c);
    nest.b = &b;
    nest.from = c->from = from;
    do nest.to = c->to = (int)draw(from + 1, b.g->nstmt);
    while (!eini_fit_legal(&nest));
    CHECK(eini_fit_classes(&nest, &have->f.arena, cls, &count) == EIN_OK);
    for (int k = 0; k < count && c->nloop < EINI_FIT_LOOPS; k++) {
      nest.cls[nest.nloop++] = &cls[k];
      if (chance(40) || !eini_fit_agree(&nest)) {
        nest.nloop--;
        continue;
      }
      c->stmt[c->nloop] = cls[k].stmt;
      c->index[c->nloop] = cls[k].index;
      c->extent[c->nloop] = cls[k].extent;
      c->block[c->nloop++] = draw(1, cls[k].extent);
    }
    from = c->to;
  }
  CHECK(eini_fit_layout_make(&w.j, &b, list, n, &have->f) == EIN_OK);
  ein_plan *plan = eini_budget_give(have);
  sliced += plan->info.nslice > n;
  scene_check(s, plan);
  ein_plan_destroy(plan);
}

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g;
  memset(&d, 0, sizeof d);
  d.text = what = text;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(st == EIN_OK);
  return g;
}

// ---- programs -----------------------------------------------------------------------------------
// %d are extents, drawn at random.

static const char *const programs[] = {
    "input Q[s=%d,d=%d], K[t=%d,d], V[t,e=%d] : f32\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "Y[s,e] = sum[t](softmax[t](T[s,t]) * V[t,e])\n",
    "input X[b=%d,i=%d], W[i,j=%d], U[j,k=%d] : f64\n"  // folded over b: three sums at once
    "H[b,j] = relu(sum[i](X[b,i]*W[i,j]))\nZ[b,k] = sum[j](H[b,j]*U[j,k])\n"
    "D[j,k] = sum[b](H[b,j]*Z[b,k])\nL = sum[b,k](Z[b,k]^2)\nM[k] = max[b](Z[b,k])\n"
    "output D, L, M, Z",
    "input X[n=%d], K[m=%d] : f64\nT[h,r] = X[h+r]*K[r] + h - 2*r\nY[h] = sum[r](T[h,r])\n"
    "Z[r] = logsumexp[h](T[h,r])\noutput Y, Z",
    "input A[i=%d,j=%d], B[j,k=%d], C[k,l=%d] : f32\nY[i,l] = sum[j,k](A[i,j]*B[j,k]*C[k,l])\n",
    "input A[i=%d,j=%d] : i8\nY[j] = sum[i](A[i,j])\nP[i] : i8 = prod[j](A[i,j])\n"
    "N[j] = any[i](A[i,j] > 2)\nO = all[i,j](A[i,j] < 4)\noutput Y, P, N, O",
    "input A[i=%d,j=%d] : f16\nB[i,j] = exp(A[i,j]/2)\nS[i] : f16 = sum[j](B[i,j])\n"
    "Y[j] = min[i](B[i,j] / S[i])\nG[i] = argmax[j](B[i,j])\noutput Y, G, S",
    "input A[i=%d,j=%d], x[j] : c64\nT[i,j] = A[i,j] * conj(x[j])\nY[i] = sum[j](T[i,j])\n"
    "Z[j] = sum[i](T[i,j] * T[i,j])\noutput Y, Z",
    "input A[i=%d,j=%d] : f64\nparam a = 2 : f64\nB[i,j] = a*A[i,j]\n"  // outer product of itself
    "G[i,k] = sum[j](B[i,j]*B[k,j])\nY[i,k] = G[i,k] - G[k,i] + where(i==k, 1, 0)\n",
    "input b[n=%d], x[m=%d,k=%d] : f64\nS[i] = sum[k](x[i,k])\nC[i] = b[i]^2\n"
    "C[i+size(n)] = S[i]\nY[i] = 2*C[i]\nR[i=size(C,0)] = C[size(C,0)-1-i]\noutput Y, R",
    "input X[c=%d,h=%d,w=%d] : f32\n"
    "P[c=size(X,0),i=size(h),j=size(w)] = X[c,i-1,j|0] + X[c,i,j+1|wrap]\n"
    "Q[c,i,j] = exp(-P[c,i,j])\nY[c] = mean[i,j](Q[c,i,j])\nZ[i,j] = sum[c](Q[c,i,j] * i)\n"
    "output Y, Z",
    "input A[i=%d,j=%d], B[i,j] : f64\nM[j] = mean[i](A[i,j])\nD[i,j] = A[i,j]-M[j]\n"
    "V[j] = sum[i](D[i,j]^2)\nE[i,j] = D[i,j]*rsqrt(V[j]+1)+B[i,j]\nF[i] = max[j](E[i,j])\n"
    "G[i,j] = E[i,j]-F[i]\nL[i] = logsumexp[j](G[i,j])\nY = sum[i](L[i]+F[i])\n",
    "input A[i=%d,j=%d], B[i,j], C[i,j] : f64\nD[i,j] = A[i,j]*2\nE[i,j] = B[i,j]*3\n"  // order
    "F[i,j] = C[i,j]*4\nS[i] = sum[j](D[i,j])\nT[i] = sum[j](E[i,j]*D[j-j+i,j])\n"
    "U[i] = sum[j](F[i,j])\nY[i] = S[i]+T[i]*U[i]\n",
    "input A[i=%d,j=%d], B[j,k=%d], C[k,l=%d] : f64\n"  // parts of parts
    "P[i,k] = sum[j](A[i,j]*B[j,k])\nQ[i,l] = sum[k](P[i,k]*C[k,l])\nR[l] = sum[i](Q[i,l])\n"
    "Y[l] = 3*R[l]\nM[i,k] = max[j](A[i,j]+B[j,k])\nN[k] = max[i](M[i,k]+i)\noutput Y, N",
    "input X[n=%d,k=%d] : f64\nA[2*i+1,k] = X[i,k]\nA[2*i,k] = -X[i,k]\n"  // pieces
    "Y[i,k] = A[2*i+1,k]*A[2*i,k]\nZ[k] = sum[i](A[i,k])\noutput Y, Z"};

#define PROGRAMS ((int)(sizeof programs / sizeof *programs))

static ein_graph *draw_program(ein_ctx *ctx, int k, int64_t lo, int64_t hi) {
  static char text[2048];
  int e[4];
  for (int i = 0; i < 4; i++) e[i] = (int)draw(lo, hi);
  if (k == 2 && e[1] > e[0]) e[1] = e[0];  // the window fits
  snprintf(text, sizeof text, programs[k], e[0], e[1], e[2], e[3]);
  return parse(ctx, text);
}

static void test_programs(ein_ctx *ctx) {
  for (which = 0; which < 6 * PROGRAMS; which++) {
    int k = (int)(which % PROGRAMS), round = (int)(which / PROGRAMS);
    scene s;
    ein_graph *g = draw_program(ctx, k, round == 0 ? 1 : 2, round < 2 ? 4 : 13);
    if (g == NULL) continue;
    scene_open(&s, g, 100 + which);
    for (int order = 0; order < 2; order++) all_targets(ctx, &s, order);
    for (int again = 0; again < 10; again++) any_regions(ctx, &s, again % 2);
    scene_close(&s);
    ein_graph_destroy(g);
  }
}

// ---- states -------------------------------------------------------------------------------------
// Folds whose partial results are states of several scalars, or finished after all are merged, are
// sliced along what they reduce. Of a tensor that is made, and of one that the slices read.

static const char *const state_folds[] = {"mean", "var", "argmax", "argmin", "logsumexp", "span",
                                          "spread", "parity"};
static const char *const state_forms[] = {
    "T[i,j] = A[i,j]*2\nY = %s[i,j](T[i,j])\n",
    "T[i,j] = A[i,j]\nY[j] = %s[i](T[i,j])\n",
    "T[j,i] = A[i,j]\nY[i] = %s[j](T[j,i])\n",
    "T[i,j] = A[i,j]\nY[j=%d,k=3] = %s[i=%d](T[i,j]*(k+i))\n",
    "Y[j=%d,i=%d] = %s[l=2,i2=%d](A[i2,j]+l*A[i,j])\nZ[i] = sum[j](A[i,j])\noutput Y, Z\n",
    "T[i,j] = A[i,j]\nY[j=%d] : f16 = %s[i=%d](T[%d-i,j])\nU[j] = Y[j]*2\noutput Y, U\n"};
static const char *const state_dtypes[] = {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16",
                                           "f32", "f64", "c64", "c128"};
#define STATE_FOLDS ((int)(sizeof state_folds / sizeof *state_folds))
#define STATE_FORMS ((int)(sizeof state_forms / sizeof *state_forms))
#define STATE_DTYPES ((int)(sizeof state_dtypes / sizeof *state_dtypes))

// The program of a form; NULL where the fold has no such values.
static ein_graph *state_program(ein_ctx *ctx, int form, const char *fold, const char *dtype, int i,
                                int j) {
  static char body[512], all[1024];
  ein_program_desc d;
  ein_graph *g = NULL;
  const char *f = state_forms[form];
  switch (form) {
    case 3: snprintf(body, sizeof body, f, j, fold, i); break;
    case 4: snprintf(body, sizeof body, f, j, i, fold, i); break;
    case 5: snprintf(body, sizeof body, f, j, fold, i, i - 1); break;
    default: snprintf(body, sizeof body, f, fold); break;
  }
  snprintf(all, sizeof all, "input A[i=%d,j=%d] : %s\n%s", i, j, dtype, body);
  memset(&d, 0, sizeof d);
  d.text = what = all;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  CHECK(st == EIN_OK || st == EIN_ERR_DTYPE || st == EIN_ERR_EMPTY);
  return g;
}

static void test_states(ein_ctx *ctx) {
  static const int extent[][2] = {{5, 7}, {1, 1}, {19, 1}, {1, 6}, {300, 3}, {3, 40}};
  int before = sliced, ran = 0;
  monoids_add(ctx);
  for (which = 0; which < (unsigned long long)STATE_FOLDS * STATE_FORMS * STATE_DTYPES * 7;
       which += FEW_STEP) {
    rng_state = which;
    int n = (int)which, size = n % 7;
    int i = size < 6 ? extent[size][0] : 0, j = size < 6 ? extent[size][1] : 4;
    const char *fold = state_folds[n / 7 % STATE_FOLDS];
    ein_graph *g = state_program(ctx, n / 7 / STATE_FOLDS % STATE_FORMS, fold,
                                 state_dtypes[n / 7 / STATE_FOLDS / STATE_FORMS], i, j);
    scene s;
    if (g == NULL) continue;
    scene_open(&s, g, 300 + which);
    any_regions(ctx, &s, 0);
    for (int t = 0; t < s.n && n % 2; t++) {
      const eini_tensor *x = &g->tensor[t];
      if (x->role == EIN_ROLE_INPUT) orc_special_fill(x->dtype, orc_count(x), s.data[t], which);
    }
    orc_eval_err(g, s.data, s.err, s.param);
    for (int again = 0; again < 3; again++) any_regions(ctx, &s, again % 2);
    if (n / FEW_STEP % 5 == 0) all_targets(ctx, &s, 0);
    scene_close(&s);
    ein_graph_destroy(g);
    ran++;
  }
  CHECK(sliced - before > ran);
}

// The least budget of a fold to one result is far below what it folds.
static void test_state_budgets(ein_ctx *ctx) {
  for (which = 0; which < (unsigned long long)STATE_FOLDS * 3; which += FEW_STEP) {
    static const char *const types[] = {"f32", "f64", "i32"};
    const int side = 400;
    const size_t bytes = (size_t)side * (size_t)side * (which % 3 == 1 ? 8 : 4);
    ein_graph *g = state_program(ctx, 0, state_folds[which / 3], types[which % 3], side, side);
    scene s;
    size_t peak = 0, least = 0;
    if (g == NULL) continue;
    scene_open(&s, g, 900 + which);
    CHECK(under(ctx, &s, 2000, &peak, &least) == EIN_ERR_TOO_LARGE);
    CHECK(least > 2000 && least < bytes / 4);
    CHECK(under(ctx, &s, least, &peak, NULL) == EIN_OK);
    if (which % 3 == 0) shrink(ctx, &s, 50);
    scene_close(&s);
    ein_graph_destroy(g);
  }
}

// What is merged over slices is of one block of the loops outside: the least budget is below that
// of all results, where a row of the intermediate is not.
static void test_block_budgets(ein_ctx *ctx) {
  static const char *const text[] = {
      "input A[i=64,j=60000], B[j,k=64] : f32\nT[i,j] = exp(A[i,j])\n"
      "Y[i,k] = argmax[j](T[i,j] * B[j,k])\nZ[i,k] = argmin[j](T[i,j] + B[j,k])\noutput Y, Z\n",
      "input A[i=160,j=90000], B[j,k=160] : f16\nT[i,j] : f32 = exp(A[i,j])\n"
      "Y[i,k] : f16 = sum[j](T[i,j] * B[j,k])\nZ[i,k] : f16 = max[j](T[i,j] + B[j,k])\n"
      "output Y, Z\n"};
  static const size_t results[] = {64 * 64 * 2 * 12, 160 * 160 * 2 * 4};
  for (which = 0; which < 2; which++) {
    ein_graph *g = parse(ctx, text[which]);
    ein_options d;
    ein_plan *plan;
    size_t least = 0;
    memset(&d, 0, sizeof d);
    d.memory = 2000;
    d.least = &least;
    CHECK(ein_plan_graph(ctx, g, 0, NULL, &d, &plan) == EIN_ERR_TOO_LARGE);
    CHECK(least > 2000 && least < results[which]);
    ein_graph_destroy(g);
  }
}

// ---- random programs ----------------------------------------------------------------------------
// Tensors over indices a, b, c, d; indices of equal extent may stand for each other, so that reads
// are transposed, diagonal, or of another slice than the one at hand.

typedef struct random_tensor {
  int rank, label[3];
} random_tensor;

static char text[8192];
static size_t at;

EINI_PRINTF(1, 2)
static void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  at += (size_t)vsnprintf(text + at, sizeof text - at, format, args);
  va_end(args);
}

// An access to a tensor; marks the indices it uses.
static void random_access(int id, const random_tensor *t, const int64_t *extent, int *used) {
  say("X%d", id);
  if (t->rank > 0) say("[");
  for (int r = 0; r < t->rank; r++) {
    int l = t->label[r], other = (int)draw(0, 3);
    if (chance(20) && extent[other] == extent[l]) l = other;
    if (chance(8)) say("%lld-%c", (long long)extent[l] - 1, 'a' + l);
    else say("%c", 'a' + l);
    say(r + 1 < t->rank ? "," : "]");
    used[l] = 1;
  }
}

static const char *const random_folds[] = {"sum", "sum", "sum", "max", "min", "logsumexp", "mean",
                                           "prod", "argmax", "var"};
static const char *const random_forms[] = {"%*%", "%*%", "%+%", "%-0.5*%", "abs(%)", "exp(%/4)",
                                           "where(@<@, %, %)", "%*% + @", "%/(1+abs(%))"};

static void random_statement(int id, random_tensor *t, const int64_t *extent) {
  int used[4] = {0, 0, 0, 0}, reduced = 0;
  static char body[1024];
  size_t start = at;
  for (const char *f = random_forms[draw(0, 8)]; *f; f++) {
    int near_by = (int)draw(id > 3 ? id - 3 : 0, id - 1);
    int label = (int)draw(0, 3);
    if (*f == '%') random_access(near_by, &t[near_by], extent, used);
    else if (*f == '@') say("%c", 'a' + label);
    else say("%c", *f);
    if (*f == '@') used[label] = 1;
  }
  memcpy(body, text + start, at - start);
  body[at - start] = 0;
  at = start;
  t[id].rank = 0;
  for (int l = 0; l < 4; l++) {
    if (!used[l]) continue;
    if (t[id].rank == 3 || chance(35)) reduced |= 1 << l;
    else t[id].label[t[id].rank++] = l;
    used[l] = 2;
  }
  say("X%d", id);
  for (int r = 0; r < t[id].rank; r++) {
    int l = t[id].label[r];
    say("%s%c=%lld", r > 0 ? "," : "[", 'a' + l, (long long)extent[l]);
  }
  if (t[id].rank > 0) say("]");
  say(" = ");
  if (reduced != 0) say("%s", random_folds[draw(0, 9)]);
  for (int l = 0, n = 0; l < 4; l++) {
    if (reduced >> l & 1) say("%s%c=%lld", n++ > 0 ? "," : "[", 'a' + l, (long long)extent[l]);
  }
  say(reduced != 0 ? "](%s)\n" : "%s\n", body);
}

static ein_graph *random_program(ein_ctx *ctx, int64_t most) {
  random_tensor t[12];
  int64_t extent[4];
  int inputs = (int)draw(1, 3), n = inputs + (int)draw(2, 7);
  for (int l = 0; l < 4; l++) extent[l] = chance(30) && l > 0 ? extent[l - 1] : draw(1, most);
  at = 0;
  for (int k = 0; k < inputs; k++) {
    t[k].rank = (int)draw(1, 3);
    for (int r = 0, l = (int)draw(0, 3); r < t[k].rank; r++) t[k].label[r] = (l + r) % 4;
    say("input X%d", k);
    for (int r = 0; r < t[k].rank; r++)
      say("%s%lld", r > 0 ? "," : "[", (long long)extent[t[k].label[r]]);
    say("] : %s\n", chance(50) ? "f64" : "f32");
  }
  for (int k = inputs; k < n; k++) random_statement(k, t, extent);
  if (chance(50)) say("output X%d, X%d\n", n - 1, n - 2);
  return parse(ctx, text);
}

static void test_random(ein_ctx *ctx, unsigned long long rounds) {
  for (which = 1000; which < 1000 + rounds; which++) {
    rng_state = which;
    scene s;
    ein_graph *g = random_program(ctx, which % 3 == 0 ? 3 : 9);
    if (g == NULL) continue;
    scene_open(&s, g, which);
    if (which % 4 == 0) all_targets(ctx, &s, which % 8 == 0);
    for (int again = 0; again < 4; again++) any_regions(ctx, &s, again % 2);
    scene_close(&s);
    ein_graph_destroy(g);
  }
}

static void test_budgets(ein_ctx *ctx) {
  for (which = 0; which < 2 * PROGRAMS; which++) {
    scene s;
    int large = which < PROGRAMS;
    ein_graph *g = draw_program(ctx, (int)(which % PROGRAMS), large ? 40 : 5, large ? 90 : 30);
    if (g == NULL) continue;
    scene_open(&s, g, 200 + which);
    shrink(ctx, &s, large ? 70 : 50);
    scene_close(&s);
    ein_graph_destroy(g);
  }
}

// Are its intermediates larger than plans, and few enough for the oracle?
static int worthwhile(const ein_graph *g) {
  double points = 0, bytes = 0;
  for (int64_t u = 0; u < g->nstmt; u++) {
    double n = 1;
    for (int i = 0; i < g->stmt[u].nindex; i++) n *= (double)g->stmt[u].index[i].extent;
    points += n;
  }
  for (int64_t t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_TEMP) bytes += (double)orc_count(&g->tensor[t]) * 8;
  return points < 1e6 && bytes > 5e5;
}

static void test_random_budgets(ein_ctx *ctx, int rounds) {
  for (which = 5000; rounds > 0; which++) {
    rng_state = which;
    scene s;
    ein_graph *g = random_program(ctx, 60);
    if (g == NULL || !worthwhile(g)) {
      ein_graph_destroy(g);
      continue;
    }
    rounds--;
    scene_open(&s, g, which);
    shrink(ctx, &s, 75);
    scene_close(&s);
    ein_graph_destroy(g);
  }
}

// ---- einsums ------------------------------------------------------------------------------------

typedef struct einsum_case {
  const char *expr;
  int nin;
  int beta;               // 1: C is the output itself; 2: another
  const char *map, *monoid;
  ein_rest rest;
} einsum_case;

static const einsum_case einsums[] = {
    {"ij,jk->ik", 2, 0, NULL, NULL, EIN_REST_ERROR},
    {"ij,jk,kl->il", 3, 0, NULL, NULL, EIN_REST_ERROR},
    {"ij,jk,kl,lm->im", 4, 0, NULL, NULL, EIN_REST_ERROR},
    {"ijk,jl,kl,im->lm", 4, 0, NULL, NULL, EIN_REST_ERROR},
    {"ij,jk,kl->il", 3, 1, NULL, NULL, EIN_REST_ERROR},
    {"ij,jk,kl->il", 3, 2, NULL, NULL, EIN_REST_ERROR},
    {"ij,ij,kl->i", 3, 0, NULL, NULL, EIN_REST_ERROR},
    {"ij,kj->ik", 2, 0, "abs(x0-x1)", "max", EIN_REST_ERROR},
    {"ij,jk->ii", 2, 0, NULL, NULL, EIN_REST_ZERO},
    {"ij,jk,kl->", 3, 0, NULL, NULL, EIN_REST_ERROR}};

#define EINSUMS ((int)(sizeof einsums / sizeof *einsums))

// A view of random doubles: transposed, reversed or with gaps in memory. Owned by the caller.
static ein_ztensor random_view(int rank, const int64_t *shape, int64_t *strides, double **memory) {
  ein_ztensor v;
  int64_t n = 1, low = 0;
  memset(&v, 0, sizeof v);
  for (int r = rank - 1, up = chance(50); r >= 0; r--) {
    int axis = up ? r : rank - 1 - r;
    strides[axis] = chance(20) ? -n : n;
    if (strides[axis] < 0) low -= strides[axis] * (shape[axis] - 1);
    n *= shape[axis];
    if (chance(20)) n += 3;
  }
  *memory = (double *)orc_alloc(n + 1, sizeof **memory);
  for (int64_t k = 0; k <= n; k++) (*memory)[k] = (double)draw(-8, 8) / 4;
  v.dtype = EIN_F64;
  v.rank = rank;
  v.shape = shape;
  v.strides = strides;
  v.data = *memory + low;
  return v;
}

typedef struct einsum_scene {
  ein_einsum_desc d;
  ein_ztensor in[4], out, c;
  int64_t shape[6][4], strides[6][4];
  double *memory[6];
} einsum_scene;

static void einsum_open(einsum_scene *e, const einsum_case *k, int64_t most) {
  int64_t extent[26];
  const char *p = k->expr;
  memset(e, 0, sizeof *e);
  for (int l = 0; l < 26; l++) extent[l] = draw(most / 2, most);
  for (int i = 0; i <= k->nin; i++) {
    int rank = 0;
    for (; *p >= 'a' && *p <= 'z'; p++) e->shape[i][rank++] = extent[*p - 'a'];
    while (*p && (*p < 'a' || *p > 'z')) p++;
    ein_ztensor v = random_view(rank, e->shape[i], e->strides[i], &e->memory[i]);
    if (i < k->nin) e->in[i] = v;
    else e->out = v;
  }
  e->c = random_view(e->out.rank, e->shape[k->nin], e->strides[5], &e->memory[5]);
  e->d.expr = k->expr;
  e->d.nin = k->nin;
  e->d.in = e->in;
  e->d.out = &e->out;
  e->d.monoid = k->monoid;
  e->d.map = k->map;
  e->d.rest = k->rest;
  e->d.beta.set = k->beta > 0;
  e->d.beta.re = 0.5;
  e->d.c = k->beta == 2 ? &e->c : NULL;
}

static void einsum_close(einsum_scene *e) {
  for (int i = 0; i < 6; i++) free(e->memory[i]);
}

// Runs it within a budget into zeros (or the old values of C) and compares with the free result.
static ein_status einsum_under(ein_ctx *ctx, einsum_scene *e, size_t memory, const double *want,
                               double *got, size_t *peak, size_t *least) {
  const void *in[6];
  void *out[1];
  ein_plan *plan;
  ein_einsum_desc d = e->d;
  ein_plan_info info;
  ein_run run;
  int64_t x[4] = {0, 0, 0, 0}, n = 0;
  double *first = (double *)e->out.data;
  size_t before = live;
  memset(&info, 0, sizeof info);
  memset(&run, 0, sizeof run);
  d.options.memory = memory;
  d.options.least = least;
  budget = memory;
  top = live;
  ein_status st = ein_plan_create(ctx, &d, &plan);
  if (st == EIN_OK) {
    ein_plan_info_get(plan, &info);
    for (int i = 0; i < e->d.nin; i++) in[i] = e->in[i].data;
    in[e->d.nin] = e->c.data;
    CHECK(info.nin == e->d.nin + (e->d.c != NULL));
    CHECK(info.nparam == e->d.beta.set);
    out[0] = first;
    run.in = in;
    run.out = out;
    run.param = &e->d.beta;
    sliced += info.nslice > 1;
    for (int pass = 0; pass < 2 && info.nslice <= MANY; pass++) {  // fill, then read
      if (pass == 1) CHECK(ein_plan_execute(plan, &run) == EIN_OK);
      n = 0;
      for (int64_t k = 0, done = 0; !done; k++) {
        int64_t off = 0;
        done = 1;
        for (int r = 0; r < e->out.rank; r++) off += x[r] * e->out.strides[r];
        if (pass == 0) first[off] = (double)(k % 7);
        else got[n++] = first[off];
        for (int r = e->out.rank - 1; r >= 0 && done; r--) {
          done = ++x[r] == e->out.shape[r];
          if (done) x[r] = 0;
        }
      }
    }
    *peak = info.peak_bytes;
    CHECK(top - before <= info.peak_bytes);
    double worst = 0;  // values are multiples of 1/2^10: sums are exact
    for (int64_t k = 0; memory != FREE && k < n; k++) worst = fmax(worst, fabs(got[k] - want[k]));
    CHECK(worst == 0);
  }
  ein_plan_destroy(plan);
  CHECK(live == before);
  if (st == EIN_OK) CHECK(top - before <= memory);
  return st;
}

static void test_einsums(ein_ctx *ctx) {
  for (which = 0; which < 3 * EINSUMS; which++) {
    const einsum_case *k = &einsums[which % EINSUMS];
    einsum_scene e;
    size_t peak = 0, free_peak = 0, least = 0, again;
    what = k->expr;
    einsum_open(&e, k, which < EINSUMS ? 12 : k->nin == 4 ? 60 : 150);
    double *want = (double *)orc_alloc(1 << 15, sizeof *want);
    double *got = (double *)orc_alloc(1 << 15, sizeof *got);
    CHECK(einsum_under(ctx, &e, FREE, want, want, &free_peak, NULL) == EIN_OK);
    for (size_t memory = free_peak; memory > 1000; memory = memory * 7 / 10) {
      ein_status st = einsum_under(ctx, &e, memory, want, got, &peak, &least);
      CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
      if (st == EIN_OK) continue;
      CHECK(einsum_under(ctx, &e, least, want, got, &peak, &again) == EIN_OK);
      CHECK(einsum_under(ctx, &e, least - 1, want, got, &peak, &again) == EIN_ERR_TOO_LARGE);
      refused++;
      break;
    }
    free(want);
    free(got);
    einsum_close(&e);
  }
}

// ---- the least budget, over providers -----------------------------------------------------------

// A provider that takes every contraction, with 2^shift bytes of scratch; it is never run.
static int greedy_contract(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  (void)c;
  (void)width;
  if (nth > 0) return 0;
  h->seconds = 0;
  h->scratch = (size_t)1 << *(int *)user;
  h->grid[0] = h->grid[1] = h->grid[2] = h->unit[0] = h->unit[1] = h->unit[2] = 1;
  return 1;
}

// The least budget of an einsum with the first of the providers, or with those of a mask.
static size_t least_of(const ein_einsum_desc *e, const ein_kernels *const *all, unsigned mask,
                       ein_status *st) {
  const ein_kernels *list[2];
  ein_ctx_desc cd;
  ein_ctx *ctx;
  ein_einsum_desc d = *e;
  ein_plan *plan;
  size_t least = 0, before = live;
  memset(&cd, 0, sizeof cd);
  cd.allocator.alloc_fn = byte_alloc;
  cd.allocator.free_fn = byte_free;
  cd.kernels = list;
  for (int i = 0; i < 2; i++)
    if (mask >> i & 1) list[cd.nkernels++] = all[i];
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) exit(1);
  d.options.memory = 1;
  d.options.least = &least;
  *st = ein_plan_create(ctx, &d, &plan);
  CHECK(*st == EIN_ERR_TOO_LARGE && plan == NULL && least > 1);
  CHECK(strstr(ein_ctx_message(ctx), "for planning") != NULL);
  for (int less = 0; less < 2 && least > 0; less++) {
    d.options.memory = least - (size_t)less;
    d.options.least = NULL;
    top = live;
    size_t start = live;
    *st = ein_plan_create(ctx, &d, &plan);
    CHECK(*st == (less ? EIN_ERR_TOO_LARGE : EIN_OK));
    if (!less) CHECK(top - start <= least);
    ein_plan_destroy(plan);
  }
  ein_ctx_destroy(ctx);
  CHECK(live == before);
  return least;
}

// Random einsums: the least budget is that of the leanest providers. A matrix product of 600 by 600
// needs a small part of the buffers that its kernels would like to have.
static void test_least(int cases) {
  static const char *const texts[] = {"ij,jk->ik", "ij,jk,kl->il", "bij,bjk->bik", "ij,ij->",
                                      "ij->ji", "ij,j->i", "ijk,kl->ijl"};
  int big = 24, small = 12;
  ein_kernels hungry, lean;
  const ein_kernels *all[2];
  memset(&hungry, 0, sizeof hungry);
  hungry.name = "hungry";
  hungry.user = &big;
  hungry.contract_plan = greedy_contract;
  lean = hungry;
  lean.name = "lean";
  lean.user = &small;
  all[0] = &hungry;
  all[1] = &lean;
  for (which = 0; which < (unsigned long long)cases; which++) {
    int64_t shape[4][3], extent[26];
    ein_ztensor in[3], out;
    ein_einsum_desc e;
    ein_status st;
    memset(&e, 0, sizeof e);
    memset(in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    what = e.expr = which == 0 ? "ij,jk->ik" : texts[draw(0, 6)];
    for (int l = 0; l < 26; l++) extent[l] = which == 0 ? 600 : draw(3, 300);
    for (const char *p = e.expr; *p != '>'; p++) {
      if (*p == '-') e.nin++;
      else if (*p == ',') e.nin++;
      else in[e.nin].rank++;
    }
    const char *p = e.expr;
    for (int k = 0; k <= e.nin; k++) {
      int rank = 0;
      for (; *p >= 'a' && *p <= 'z'; p++) shape[k][rank++] = extent[*p - 'a'];
      while (*p && (*p < 'a' || *p > 'z')) p++;
      ein_ztensor *v = k < e.nin ? &in[k] : &out;
      v->dtype = EIN_F64;
      v->rank = rank;
      v->shape = shape[k];
    }
    e.in = in;
    e.out = &out;
    size_t least[4];
    for (unsigned mask = 0; mask < 4; mask++) least[mask] = least_of(&e, all, mask, &st);
    CHECK(least[3] <= least[0] && least[3] <= least[1] && least[3] <= least[2]);
    CHECK(least[1] <= least[0] && least[2] <= least[0]);
    if (which == 0) CHECK(least[0] < 200000);
  }
}

// ---- layouts, mistakes, out of memory -----------------------------------------------------------

static const char *const small =
    "input X[b=500,i=30], W[i,j=30] : f64\nH[b,j] = exp(sum[i](X[b,i]*W[i,j])/100)\n"
    "S[j] = sum[b](H[b,j])\nY[b,j] = H[b,j]/S[j] + b\noutput S, Y\n";

// Strided inputs and outputs, by name, against dense ones.
static void test_layouts(ein_ctx *ctx) {
  static double x[500 * 64], w[30 * 30], y[2][500 * 90], s[2][30];
  int64_t bi[] = {500, 30}, bj[] = {500, 30}, xs[] = {-64, 2}, ys[] = {90, -3};
  ein_graph *g = parse(ctx, small);
  ein_ztensor vx, vy;
  ein_binding layout[2];
  for (int k = 0; k < 500 * 64; k++) x[k] = (double)draw(-9, 9);
  for (int k = 0; k < 900; k++) w[k] = (double)draw(-9, 9);
  memset(&vx, 0, sizeof vx);
  vx.dtype = EIN_F64;
  vx.rank = 2;
  vx.shape = bi;
  vx.strides = xs;
  vy = vx;
  vy.shape = bj;
  vy.strides = ys;
  layout[0].name = "X";
  layout[0].view = &vx;
  layout[1].name = "Y";
  layout[1].view = &vy;
  for (size_t memory = 0, k = 0; k < 6; k++, memory = k < 1 ? 250000 : memory * 8 / 10) {
    ein_options d;
    ein_plan *plan;
    ein_run run;
    const void *in[] = {x + 499 * 64, w};
    void *out[] = {s[k > 0], y[k > 0] + 87};
    memset(&d, 0, sizeof d);
    memset(&run, 0, sizeof run);
    d.memory = memory;
    budget = memory;
    ein_status st = ein_plan_graph(ctx, g, 2, layout, &d, &plan);
    CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
    run.in = in;
    run.out = out;
    if (st == EIN_OK) CHECK(ein_plan_execute(plan, &run) == EIN_OK);
    ein_plan_info info;
    memset(&info, 0, sizeof info);
    if (st == EIN_OK) ein_plan_info_get(plan, &info);
    sliced += info.nslice > 1;
    double worst = 0;
    for (int i = 0; i < 500 * 90 && st == EIN_OK && k > 0; i++)
      worst = fmax(worst, fabs(y[0][i] - y[1][i]) / (1 + fabs(y[0][i])));
    for (int i = 0; i < 30 && st == EIN_OK && k > 0; i++)
      worst = fmax(worst, fabs(s[0][i] - s[1][i]) / (1 + fabs(s[0][i])));
    CHECK(worst < 1e-12);
    if (st == EIN_OK) {  // outputs may not overlap inputs; sizes, names, explanations
      char buf[64];
      in[1] = s[k > 0];
      CHECK(ein_plan_execute(plan, &run) == EIN_ERR_OVERLAP);
      in[1] = NULL;
      CHECK(ein_plan_execute(plan, &run) == EIN_ERR_ARGUMENT);
      CHECK(ein_plan_explain(plan, buf, sizeof buf) > sizeof buf && strlen(buf) == sizeof buf - 1);
      CHECK(ein_plan_json(plan, NULL, 0) > 100);
    }
    ein_plan_destroy(plan);
  }
  ein_graph_destroy(g);
}

static void test_mistakes(ein_ctx *ctx) {
  ein_graph *g = parse(ctx, small);
  ein_plan *plan = NULL;
  ein_plan_info info;
  ein_tensor_info t;
  ein_loop_info loop;
  ein_options o;
  memset(&o, 0, sizeof o);
  o.memory = o.reserved = 1000;
  CHECK(ein_plan_graph(ctx, NULL, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(ein_plan_graph(ctx, g, -1, NULL, &o, &plan) == EIN_ERR_ARGUMENT);
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "reserved is 1000") != NULL);
  o.memory = 0;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  o.memory = 1001;
  size_t least = 0;
  o.least = &least;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_TOO_LARGE && least > 1001);
  o.memory = least;  // reserved counts
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_OK);
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK && info.memory == least - 1000);
  CHECK(info.nin == 2 && info.nout == 2 && info.nparam == 0 && info.nregion >= 1);
  CHECK(ein_plan_input(plan, 0, &t) && strcmp(t.name, "X") == 0 && !ein_plan_input(plan, 2, &t));
  CHECK(ein_plan_output(plan, 1, &t) && strcmp(t.name, "Y") == 0);
  CHECK(!ein_plan_output(plan, 2, &t));
  CHECK(ein_plan_loop(plan, 0, &loop) == (info.nloop > 0));
  CHECK(!ein_plan_loop(plan, info.nloop, &loop));
  ein_plan_destroy(plan);
  o.reserved = 0;
  o.memory = 1 << 20;
  o.path = "no such path";
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(ein_ctx_message(ctx)[0] != 0);
  o.path = NULL;
  o.goal = (ein_goal)3;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  o.goal = EIN_GOAL_FLOPS;
  o.path_steps = -1;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  o.path_steps = 0;
  o.overflow_check = 1;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_UNSUPPORTED && plan == NULL);
  o.overflow_check = 0;
  CHECK(ein_plan_graph(NULL, g, 0, NULL, &o, &plan) == EIN_OK);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
}

// One call within a budget: kept under a key of its own, counted, refused where it must be.
static void test_calls(ein_ctx *ctx) {
  static double a[24 * 24], b[24 * 24], c[24 * 24];
  const int64_t n[2] = {24, 24};
  const ein_ztensor in[3] = {ein_tensor(EIN_F64, 2, n, a), ein_tensor(EIN_F64, 2, n, a),
                             ein_tensor(EIN_F64, 2, n, b)};
  const ein_ztensor out = ein_tensor(EIN_F64, 2, n, c);
  ein_einsum_desc d;
  size_t least = 0;
  memset(&d, 0, sizeof d);
  for (int i = 0; i < 24 * 24; i++) a[i] = i % 7, b[i] = i % 5;
  d.expr = "ij,jk,kl->il";
  d.nin = 3;
  d.in = in;
  d.out = &out;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  double want = c[25];
  d.options.memory = 1;
  d.options.least = &least;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_TOO_LARGE && least > 1);
  d.options.memory = least;
  for (int k = 0; k < 2; k++) {
    memset(c, 0, sizeof c);
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK && c[25] == want);
  }
  d.options.memory = 1;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_TOO_LARGE);
}

// Allocation n fails, for n = 0, 1, ..: a status, nothing stays.
static void test_out_of_memory(ein_ctx *ctx) {
  ein_graph *g = parse(ctx, small);
  scene s;
  scene_open(&s, g, 3);
  ein_options d;
  memset(&d, 0, sizeof d);
  for (size_t memory = FREE, k = 0; k < 3; k++, memory = k == 1 ? 180000 : 1000) {
    d.memory = memory;
    budget = memory;
    for (long n = 0;; n += n < 50 ? 1 : 7 * FEW_STEP) {
      ein_plan *plan;
      size_t before = live;
      calls = 0;
      fail_at = n;
      ein_status st = ein_plan_graph(ctx, g, 0, NULL, &d, &plan);
      fail_at = -1;
      if (st == EIN_OK) scene_check(&s, plan);
      ein_plan_destroy(plan);
      CHECK(live == before);
      CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY || (k > 0 && st == EIN_ERR_TOO_LARGE));
      if (st != EIN_ERR_NO_MEMORY) break;
    }
  }
  scene_close(&s);
  ein_graph_destroy(g);
}

// ---- costs --------------------------------------------------------------------------------------

// Bytes that a block of statement s touches, point by point: hulls of what it reads, but not the
// same twice, and results.
static double touched(const ein_graph *g, const eini_stmt *s, const int64_t *lo,
                      const int64_t *hi) {
  double bytes = (double)ein_dtype_size(g->tensor[s->out].dtype);
  for (int i = 0; i < s->nfree; i++) bytes *= (double)(hi[i] - lo[i]);
  for (int k = 0; k < s->noperand; k++) {
    const eini_map *m = &s->proj[k];
    double box = (double)ein_dtype_size(g->tensor[s->operand[k]].dtype);
    for (int r = 0; r < m->rows; r++) {
      int64_t point[4], least = INT64_MAX, most = INT64_MIN;
      for (int i = 0; i < s->nindex; i++) point[i] = lo[i];
      for (int c = 0; c >= 0;) {
        int64_t x = m->offset[r];
        for (int i = 0; i < s->nindex; i++) x += eini_map_coef(m, r, i) * point[i];
        least = x < least ? x : least;
        most = x > most ? x : most;
        for (c = s->nindex - 1; c >= 0 && ++point[c] == hi[c]; c--) point[c] = lo[c];
      }
      box *= (double)(most - least + 1);
    }
    for (int j = 0; j < k; j++)
      if (s->operand[j] == s->operand[k] && eini_map_equal(&s->proj[j], m)) box = 0;
    bytes += box;
  }
  return bytes;
}

// What all slices of a walk along two indices touch, one after the other; it takes no less.
static double walked(const ein_graph *g, const eini_stmt *s, const int *loop,
                     const int64_t *times) {
  int64_t lo[4], hi[4];
  double bytes = 0;
  for (int i = 0; i < s->nindex; i++) lo[i] = 0, hi[i] = s->index[i].extent;
  for (int64_t n = 0; n < times[0] * times[1]; n++) {
    for (int l = 0; l < 2; l++) {
      if (loop[l] < 0) continue;
      int64_t len = s->index[loop[l]].extent / times[l];
      lo[loop[l]] = (l == 0 ? n % times[0] : n / times[0]) * len;
      hi[loop[l]] = lo[loop[l]] + len;
    }
    bytes += touched(g, s, lo, hi);
  }
  return bytes;
}

static void test_costs(ein_ctx *ctx) {
  static const struct { const char *text; double flops; int plain; } c[] = {
    {"input A[i=12,k=8], B[k,j=6] : f64\nY[i,j] = sum[k](A[i,k]*B[k,j])\n", 2, 1},
    {"input A[i=12,k=8], B[k,j=6] : f32\nY[i,j] = max[k](A[i,k]-B[k,j])\n", 2, 1},
    {"input A[i=12,j=8], x[j] : f64\nY[i] = sum[j](A[i,j]*A[i,j]*x[j])\n", 3, 1},
    {"input A[i=12,j=8] : f32\nY[i,j] = exp(A[i,j])*2+1\n", 3, 1},
    {"input A[i=12,j=8] : i16\nY[j,i] = A[i,j]\n", 1, 1},
    {"input A[i=12,j=8] : f64\nY[i] = sum[j](A[i,j])\n", 1, 1},
    {"input A[n=40], K[r=6] : f64\nY[h=12] = sum[r](A[2*h+r]*K[r])\n", 2, 0},
    {"input A[n=41], B[m=30] : f32\nY[h=12,w=8] = A[3*h-w+7]+B[20-w]\n", 1, 0},
  };
  const eini_speed speed = {16, 4, 0.5, 0.25};
  for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
    ein_graph *g = parse(ctx, what = c[k].text);
    const eini_stmt *s = &g->stmt[0];
    CHECK(g->nstmt == 1 && eini_point_flops(s) == c[k].flops);
    for (which = 0; which < 200; which++) {
      int64_t lo[4], hi[4], times[2];
      double points = 1;
      int loop[2];
      for (int i = 0; i < s->nindex; i++) {
        lo[i] = draw(0, s->index[i].extent - 1);
        hi[i] = draw(lo[i] + 1, s->index[i].extent);
        points *= (double)(hi[i] - lo[i]);
      }
      eini_stmt_block b = eini_block_of(lo, hi, NULL);
      eini_cost x = eini_cost_of(g, s, NULL, &b, NULL, NULL, &speed);
      double work = points * c[k].flops / 16, move = touched(g, s, lo, hi) / 4;
      CHECK(x.flops == work * 16 && x.bytes == move * 4 && x.traffic == x.bytes);
      CHECK(x.seconds == 0.5 + fmax(work, move) + 0.25 * fmin(work, move));
      eini_walk w;
      eini_stmt_block walk = eini_block_of(NULL, NULL, NULL);
      walk.walk = &w;
      w.nloop = 2;
      for (int l = 0; l < 2; l++) {
        w.loop[l] = loop[l] = l == 0 ? (int)draw(-1, s->nindex - 1) : (loop[0] + 1) % s->nindex;
        w.times[l] = (double)(times[l] = draw(1, 2));
      }
      eini_cost y = eini_cost_of(g, s, NULL, &walk, NULL, NULL, &speed);
      for (int i = 0; i < s->nindex; i++) lo[i] = 0, hi[i] = s->index[i].extent;
      CHECK(y.bytes == touched(g, s, lo, hi) && y.traffic >= y.bytes);
      CHECK(c[k].plain ? y.traffic == walked(g, s, loop, times)
                       : y.traffic <= walked(g, s, loop, times));
      points = eini_points(s, NULL, 0, s->nindex) * c[k].flops;
      CHECK(y.flops == points * (loop[0] < 0 ? (double)times[0] : 1));
    }
    ein_graph_destroy(g);
  }
}

int main(void) {
  ein_ctx *ctx = new_ctx();
  test_costs(ctx);
  printf("costs: %d checks, %d failures\n", checks, failures);
  test_programs(ctx);
  printf("programs: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  test_states(ctx);
  test_state_budgets(ctx);
  test_block_budgets(ctx);
  printf("states: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  test_random(ctx, (unsigned long long)FEW(600));
  printf("random: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  sliced = 0;
  test_budgets(ctx);
  printf("budgets: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  test_random_budgets(ctx, FEW(25));
  printf("random: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  test_einsums(ctx);
  test_least(FEW(40));
  printf("einsums: %d checks, %d failures, %d runs in slices\n", checks, failures, sliced);
  test_layouts(ctx);
  test_mistakes(ctx);
  test_calls(ctx);
  test_out_of_memory(ctx);
  ein_ctx_destroy(ctx);
#ifdef TEST_CPU
  ein_cpu_destroy(cpu);
#endif
  CHECK(live == 0);
  printf("%s %d checks, %d failures, %d runs in slices, %d budgets refused\n",
         failures ? "FAIL" : "ok", checks, failures, sliced, refused);
  return failures != 0;
}
