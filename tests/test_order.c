// Deterministic mode: one bit pattern for any number of threads and places, on every fabric, with
// the portable kernels and those of the cpu backend, whatever rates were measured.
//
//   test_order [count] [seed] [case]     random graphs; default 150 1 and all cases
#define EINI_LEAF_WORK 24  // folds are cut into leaves early
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

#define MOST_THREADS 8
#define MOST_STMTS 64

// A ctx of each provider (0: portable, 1: cpu) and number of threads.
static ein_cpu *cpus[MOST_THREADS + 1];
static ein_ctx *ctxs[2][MOST_THREADS + 1];

static void contexts_open(void) {
  for (int w = 1; w <= MOST_THREADS; w++) {
    ein_cpu_desc c;
    memset(&c, 0, sizeof c);
    c.threads = w;
    CHECK(ein_cpu_create(&c, NULL, &cpus[w]) == EIN_OK);
    for (int own = 0; own < 2; own++) {
      ein_ctx_desc d;
      memset(&d, 0, sizeof d);
      CHECK(ein_cpu_use(cpus[w], &d) == EIN_OK);
      if (own == 0) d.nkernels = 0;
      CHECK(ein_ctx_create(&d, &ctxs[own][w]) == EIN_OK);
      monoids_add(ctxs[own][w]);
    }
  }
}

static void contexts_close(void) {
  for (int w = 1; w <= MOST_THREADS; w++) {
    for (int own = 0; own < 2; own++) ein_ctx_destroy(ctxs[own][w]);
    ein_cpu_destroy(cpus[w]);
  }
}

// Other rates than those of the table: every number times a half to two, and those that only
// calibration gives, of which the portable kernels have their own.
static void rates_shake(void) {
  for (int w = 1; w <= MOST_THREADS; w++) {
    for (int own = 0; own < 2; own++) {
      ein_rates r = ein_cpu_kernels(cpus[w])->rates;
      r.hz = 3e9, r.call = 1e-7, r.start = 1e-6, r.stream_bytes = 1e6, r.threads = w;
      for (int i = 0; i < EIN_GEMMS; i++) r.gemm_f64[i] = r.gemm_f32[i] = 1e10 * (i + 1);
      for (int i = 0; i < EINI_RATE_FIELDS; i++) {
        double *x = eini_rate_at(&r, &eini_rate_fields[i]);
        for (int k = 0; k < eini_rate_fields[i].n; k++) x[k] *= (double)draw(50, 200) / 100;
      }
      if (r.fused < 1) r.fused = 0;
      CHECK(ein_ctx_rates(ctxs[own][w], &r) == EIN_OK);
    }
  }
}

// What a run gave: the outputs one after another.
typedef struct result {
  ein_status status;
  size_t bytes;
  char *data;
} result;

static long slices;  // runs in several slices

static size_t tensor_bytes(const eini_tensor *t) {
  return (size_t)orc_count(t) * ein_dtype_size(t->dtype);
}

static ein_run bind(const ein_graph *g, void *const *data, result *r, const void **in, void **out) {
  ein_run run;
  int nin = 0, nout = 0;
  size_t at = 0;
  memset(&run, 0, sizeof run);
  memset(r, 0, sizeof *r);
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) r->bytes += (tensor_bytes(&g->tensor[t]) + 63) & ~63u;
  r->data = (char *)calloc(1, r->bytes + 64);
  for (int t = 0, k = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = data[k++];
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    out[nout++] = r->data + at;
    at += (tensor_bytes(&g->tensor[t]) + 63) & ~63u;
  }
  run.in = in;
  run.out = out;
  return run;
}

// On one place. data: of the inputs in their order.
static result run_plan(ein_ctx *ctx, const ein_graph *g, const ein_options *o, void *const *data) {
  result r;
  const void *in[MAX_TENSORS];
  void *out[MAX_TENSORS];
  ein_run run = bind(g, data, &r, in, out);
  ein_plan *plan;
  r.status = ein_plan_graph(ctx, g, 0, NULL, o, &plan);
  if (r.status == EIN_OK) r.status = ein_plan_execute(plan, &run);
  ein_plan_destroy(plan);
  return r;
}

// On places, cut by a decomposition or by parts. kind: serial, threads, copying.
static result run_places(ein_ctx *ctx, const ein_graph *g, int p, int kind,
                         const ein_decomposition *how, const ein_parts *parts, void *const *data) {
  result r;
  const void *in[MAX_TENSORS];
  void *out[MAX_TENSORS];
  ein_run run = bind(g, data, &r, in, out);
  ein_dist_desc d;
  ein_dist *dist;
  ein_fabric f;
  memset(&d, 0, sizeof d);
  if (kind == 0) r.status = ein_fabric_serial(p, &f);
  else if (kind == 1) r.status = ein_fabric_threads(p, &f);
  else r.status = ein_fabric_copying(ctx, p, &f);
  d.fabric = &f;
  d.decomposition = how;
  d.parts = parts;
  if (r.status == EIN_OK) r.status = ein_dist_create(ctx, g, &d, &dist);
  if (r.status == EIN_OK) {
    r.status = ein_dist_execute(dist, &run, NULL);
    ein_dist_destroy(dist);
  }
  ein_fabric_destroy(&f);
  return r;
}

// Within a budget of bytes; *least: what it takes if that is too small.
static result run_within(ein_ctx *ctx, const ein_graph *g, size_t memory, void *const *data,
                      size_t *least) {
  result r;
  const void *in[MAX_TENSORS];
  void *out[MAX_TENSORS];
  ein_run run = bind(g, data, &r, in, out);
  ein_options o;
  ein_plan *plan;
  memset(&o, 0, sizeof o);
  o.deterministic = 1;
  o.memory = memory;
  o.least = least;
  r.status = ein_plan_graph(ctx, g, 0, NULL, &o, &plan);
  if (r.status == EIN_OK) r.status = ein_plan_execute(plan, &run);
  if (r.status == EIN_OK) {
    ein_plan_info info;
    ein_plan_info_get(plan, &info);
    slices += info.nslice > 1;
  }
  ein_plan_destroy(plan);
  return r;
}

static int same(const result *a, const result *b) {
  return a->status == EIN_OK && b->status == EIN_OK && a->bytes == b->bytes &&
         memcmp(a->data, b->data, a->bytes) == 0;
}

static void differs(const ein_graph *g, const result *a, const result *b, const char *what) {
  static char text[1 << 15];
  failures++;
  ein_graph_print(g, text, sizeof text);
  printf("FAIL %s (status %d, %d)\n%s", what, (int)a->status, (int)b->status, text);
}

// Compares with the first result, and frees.
static void expect(const ein_graph *g, const result *first, result r, const char *what) {
  checks++;
  if (!same(first, &r)) differs(g, first, &r, what);
  free(r.data);
}

static ein_graph *ordered_of(ein_ctx *ctx, const ein_graph *g) {
  ein_graph *o = NULL;
  CHECK(ein_graph_deterministic(ctx, g, NULL, &o) == EIN_OK);
  return o;
}

// The cuts a decomposition finds for p places.
static ein_decomposition *decomposed(const ein_graph *o, int p, ein_cost cost) {
  ein_decompose_desc d;
  ein_decomposition *how = NULL;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = cost;
  CHECK(ein_decompose(NULL, o, &d, &how) == EIN_OK);
  return how;
}

// ---- programs -----------------------------------------------------------------------------------

static const char *const programs[] = {
    "input X[i=2000003] : f32\nY = sum[i](X[i])\noutput Y\n",
    "input X[i=200003] : f64\nY = sum[i](X[i])\nZ = mean[i](X[i])\noutput Y, Z\n",
    "input X[i=200003] : c64\nY = sum[i](X[i])\nZ = mean[i](X[i])\noutput Y, Z\n",
    "input X[i=200003] : bf16\nY = sum[i](X[i])\noutput Y\n",
    "input X[i=200003] : f32\nY = mean[i](X[i])\nZ = var[i](X[i])\noutput Y, Z\n",
    "input X[i=200003] : f32\nY = logsumexp[i](X[i])\nZ = norm[i](X[i])\noutput Y, Z\n",
    "input X[i=200003] : f32\nY = max[i](X[i]*0)\nZ = min[i](X[i]*0)\noutput Y, Z\n",
    "input X[i=30011] : f64\nY = prod[i](1+X[i]/65536)\nZ = sum[i](exp(X[i]/8)*i)\noutput Y, Z\n",
    "input X[i=1001,j=97] : i32\nY = argmax[i,j](mod(X[i,j],5))\nZ[j] = argmin[i](X[i,j]/4)\n"
     "W = sum[i,j](X[i,j])\noutput Y, Z, W\n",
    "input X[i=1001,j=97], Y[i,j] : f32\nZ[i] = sum[j](X[i,j]*Y[i,j])\nW[j] = sum[i](X[i,j])\n"
     "V[i] = logsumexp[j](X[i,j])\nU[j] = var[i](X[i,j])\nT[i] = var[j](X[i,j])\n"
     "output Z, W, V, U, T\n",
    "input A[i=70,k=1300], B[k,j=50] : f32\nC[i,j] = sum[k](A[i,k]*B[k,j])\noutput C\n",
    "input A[k=1300,i=67], B[j=49,k] : f64\nC[j,i] = sum[k](A[k,i]*B[j,k])\noutput C\n",
    "input A[i=33,k=700], B[k,j=21] : c64\nC[i,j] = sum[k](A[i,k]*B[k,j])\noutput C\n",
    "input A[i=40,k=900], B[k,j=30] : f16\nC[i,j] = sum[k](A[i,k]*B[k,j])\noutput C\n",
    "input A[i=300,k=500], x[k] : f32\ny[i] = sum[k](A[i,k]*x[k])\nz[k] = sum[i](A[i,k]*y[i])\n"
     "output y, z\n",
    "input A[b=6,i=20,k=33,l=40], B[b,l,k,j=24] : f32\nC[b,i,j] = sum[k,l](A[b,i,k,l]*B[b,l,k,j])"
     "\noutput C\n",
    "input X[c=8,h=20,w=20], K[o=12,c,r=3,s=3] : f32\n"
     "Y[o,h=18,w=18] = sum[c,r,s](X[c,h+r,w+s]*K[o,c,r,s])\noutput Y\n",
    "input Q[s=50,d=16], K[t=60,d], V[t,e=20] : f32\nT[s,t] = sum[d](Q[s,d]*K[t,d])/sqrt(size(d))\n"
     "P[s,t] = softmax[t](T[s,t])\nY[s,e] = sum[t](P[s,t]*V[t,e])\noutput Y\n",
    "input A[a=30,b=31], B[b,c=32], C[c,d=33], D[d,e=34] : f32\n"
     "Y[a,e] = sum[b,c,d](A[a,b]*B[b,c]*C[c,d]*D[d,e])\noutput Y\n",
    "input X[i=60,k=70], C[j=50,k] : f32\nD[i,j] = sum[k]((X[i,k]-C[j,k])^2)\n"
     "M[i,j] = max[k](X[i,k]+C[j,k])\noutput D, M\n",
    "input A[i=600,k=40], B[k,j=700], C[j,l=30] : f64\n"
    "T[i,j] = sum[k](A[i,k]*B[k,j])\nE[i,j] = exp(T[i,j]/64)\nM[i] = logsumexp[j](T[i,j])\n"
    "Y[i,l] = sum[j](E[i,j]*C[j,l])\noutput M, Y\n",
    "input A[i=600,k=4], B[k,j=700] : i32\nT[i,j] = sum[k](A[i,k]*B[k,j])\n"
    "Y = argmax[i,j](mod(T[i,j],97))\nZ[j] = argmin[i](T[i,j])\noutput Y, Z\n",
    "input A[i=600,k=4], B[k,j=700] : f32\nT[i,j] = sum[k](A[i,k]*B[k,j])\n"
    "Y = argmax[i,j](T[i,j])\nZ = var[i,j](T[i,j])\nW[j] = mean[i](T[i,j])\noutput Y, Z, W\n",
    "input X[i=200003], G[j=50,i] : f32\nY = spread[i](X[i])\nZ[j] = span[i](G[j,i])\n"
    "V = var[j,i](G[j,i])\noutput Y, Z, V\n",
    "input X[i=40001,j=9] : c128\nY = mean[i,j](X[i,j])\nZ[j] = mean[i](X[i,j])\noutput Y, Z\n",
    "input X[i=70001], Y[i,j=3] : f32\nA = sum[i](X[i]*i)\nB = var[i](X[i]*i)\n"
    "C = logsumexp[i](X[i]-i)\nD[j] = sum[i](Y[i,j]*i)\nE = spread[i](X[i]*i)\n"
    "output A, B, C, D, E\n",
    "input X[i=710,j=603] : f32\nA[i] = sum[j](X[i,j])\nB[j] = sum[i](X[i,j])\n"
    "C[j] = mean[i](X[i,j])\nD[i] = prod[j](X[i,j])\nE[j] = prod[i](X[i,j])\n"
    "F[j] = max[i](X[i,j])\noutput A, B, C, D, E, F\n",
    // Functions as factors, values of indices among them.
    "input A[i=61,k=530], B[k,j=47], V[i], W[k] : f64\n"
    "C[i,j] = sum[k]((2*A[i,k] + 1)*(B[k,j]*0.5 - 3))\n"
    "D[j,i] = sum[k](exp(A[i,k]*0.125)*B[k,j]*W[k]) + V[i]\n"
    "E[i,j] = sum[k](cos(i*k*0.5)*A[i,k]*(B[k,j] + k))\n"
    "F[i=61,j=47] = sum[k=530](cos(i*k*0.5)*sin(j*k*0.25))\n"
    "G[i,j] = min[k](A[i,k]*2 + abs(B[k,j] - k))\nH[k] = sum[i]((A[i,k] + i)*(V[i] - 1))\n"
    "output C, D, E, F, G, H\n",
    "input A[b=5,i=33,k=210], B[k,j=40], V[b,i] : f32\n"
    "C[b,i,j] = sum[k]((2*A[b,i,k] + b)*tanh(B[k,j]*0.25 - i))\n"
    "D[j] = sum[b,i,k]((A[b,i,k] - 1)*(B[k,j] + 0.5)*V[b,i])\n"
    "E[b,j] = max[i,k](A[b,i,k]*V[b,i] + (B[k,j] - j))\noutput C, D, E\n",
    "input A[i=40,k=300], B[k,j=50] : i32\nC[i,j] = sum[k]((2*A[i,k] + i)*(B[k,j] - k))\n"
    "output C\n"};

static ein_graph *parse(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(ctxs[0][1], &d, &g) == EIN_OK);
  if (g == NULL) printf("%s\n%s\n", text, ein_ctx_message(ctxs[0][1]));
  return g;
}

static void fill(const ein_graph *g, uint64_t seed, void **data) {
  for (int t = 0, k = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    int64_t n = orc_count(x);
    if (x->role != EIN_ROLE_INPUT) continue;
    data[k] = orc_alloc(n, 16);
    orc_random_fill(x->dtype, n, data[k], seed + (uint64_t)t);
    // Values whose sums round at every step.
    for (int64_t i = 0; i < n && x->dtype == EIN_F32; i++)
      ((float *)data[k])[i] += (float)draw(-1000, 1000) / 999.0f;
    for (int64_t i = 0; i < n && x->dtype == EIN_F64; i++)
      ((double *)data[k])[i] += (double)draw(-1000, 1000) / 999.0;
    k++;
  }
}

// Outputs within rounding of those of another plan.
static int near_by(const ein_graph *g, const result *a, const result *b) {
  size_t at = 0;
  if (a->status != EIN_OK || b->status != EIN_OK) return 0;
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    const char *p = a->data + at, *q = b->data + at;
    int64_t n = orc_count(x) * (eini_kind_of(x->dtype) == EINI_KCOMPLEX ? 2 : 1);
    if (x->role != EIN_ROLE_OUTPUT) continue;
    at += (tensor_bytes(x) + 63) & ~63u;
    for (int64_t i = 0; i < n; i++) {
      double u = 0, v = 0, eps = 1e-4;
      if (x->dtype == EIN_F32 || x->dtype == EIN_C64)
        u = ((const float *)(const void *)p)[i], v = ((const float *)(const void *)q)[i];
      else if (x->dtype == EIN_F64)
        u = ((const double *)(const void *)p)[i], v = ((const double *)(const void *)q)[i],
        eps = 1e-11;
      else if (memcmp(p, q, tensor_bytes(x)) != 0 && x->dtype != EIN_F16 && x->dtype != EIN_BF16)
        return 0;
      if (!(fabs(u - v) <= eps * (1 + fabs(u) + fabs(v)) * 30)) return 0;
    }
  }
  return 1;
}

static void test_program(int k, int own) {
  void *data[MAX_TENSORS];
  ein_options det;
  char what[96];
  memset(&det, 0, sizeof det);
  det.deterministic = 1;
  ein_graph *g = parse(programs[k]);
  if (g == NULL) return;
  ein_graph *o = ordered_of(ctxs[own][1], g);
  fill(g, 7 + (uint64_t)k, data);
  result first = run_plan(ctxs[own][1], g, &det, data), plain = run_plan(ctxs[0][1], g, NULL, data);
  checks++;
  if (!near_by(g, &first, &plain)) differs(g, &first, &plain, "deterministic is not right");
  for (int w = 1; w <= MOST_THREADS; w++) {
    if (w == 2) rates_shake();
    expect(g, &first, run_plan(ctxs[own][w], g, &det, data), "another number of threads");
    expect(o, &first, run_plan(ctxs[own][w], o, NULL, data), "the ordered graph");
  }
  size_t least = 0;
  result none = run_within(ctxs[own][1], g, 1, data, &least);
  CHECK(none.status == EIN_ERR_TOO_LARGE && least > 0);
  free(none.data);
  for (int step = 0; step < 4; step++) {
    size_t memory = least + ((least / 3) << step) * (size_t)(step > 0);
    expect(g, &first, run_within(ctxs[own][1], g, memory, data, &least), "within a budget");
  }
  for (int p = 1; p <= 9; p++) {
    int w = 1 + p % MOST_THREADS;
    ein_decomposition *how = decomposed(o, p, p % 2 ? EIN_COST_PAPER : EIN_COST_SECONDS);
    for (int kind = 0; kind < 3 && how != NULL; kind++, w = 1 + w % MOST_THREADS) {
      snprintf(what, sizeof what, "program %d, provider %d, %d places, fabric %d, %d threads", k,
               own, p, kind, w);
      expect(o, &first, run_places(ctxs[own][w], o, p, kind, how, NULL, data), what);
    }
    ein_decomposition_destroy(how);
  }
  int nin = 0;
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_INPUT) free(data[nin++]);
  free(first.data);
  free(plain.data);
  ein_graph_destroy(o);
  ein_graph_destroy(g);
}

// ---- random graphs ------------------------------------------------------------------------------

// Random cuts for p places that deterministic mode allows.
static int allowed_cuts(const ein_graph *g, int p, ein_parts *parts, int64_t *cut, int *order) {
  if (g->nstmt > MOST_STMTS) return 0;
  for (int k = 0; k < g->nstmt; k++, cut += 16, order += 16) {
    const eini_stmt *s = &g->stmt[k];
    ein_parts *e = &parts[k];
    memset(e, 0, sizeof *e);
    if (s->nindex > 16) return 0;
    e->nindex = s->nindex;
    e->cut = cut;
    e->order = order;
    e->ntask = 1;
    for (int i = 0; i < s->nindex; i++) cut[i] = 1;
    for (int tries = 6; tries > 0 && s->nindex > 0; tries--) {
      int i = (int)draw(0, s->nindex - 1);
      int64_t most = eini_min64(s->index[i].extent, p / e->ntask);
      if (cut[i] > 1 || most < 2 || !eini_order_cuts(g, s, i)) continue;
      cut[i] = draw(2, most);
      e->ntask *= cut[i];
      order[e->norder++] = i;
    }
  }
  return 1;
}

static int right(const ein_graph *g, const values *v, const result *r) {
  size_t at = 0;
  int ok = r->status == EIN_OK;
  for (int t = 0; t < g->ntensor && ok; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    ok = orc_compare_err(g->tensor[t].dtype, orc_count(&g->tensor[t]), r->data + at, v->data[t],
                         v->err[t]);
    at += (tensor_bytes(&g->tensor[t]) + 63) & ~63u;
  }
  return ok;
}

static void test_random(int count, uint64_t seed, int only) {
  static const int places[] = {1, 2, 3, 4, 6, 8};
  static int64_t cut[MOST_STMTS * 16];
  static int order[MOST_STMTS * 16];
  ein_parts parts[MOST_STMTS];
  int done = 0;
  ein_ctx *monoids = monoid_ctx();
  for (int n = 0; n < count; n++) {
    if (only >= 0 && n != only) continue;
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_graph *g = random_graph(monoids, (int)draw(1, 6));
    if (g == NULL) continue;
    values v;
    void *data[MAX_TENSORS];
    int nin = 0;
    values_make(g, seed + (uint64_t)n, &v);
    for (int t = 0; t < g->ntensor; t++)
      if (g->tensor[t].role == EIN_ROLE_INPUT) data[nin++] = v.data[t];
    ein_graph *o = ordered_of(NULL, g);
    for (int own = 0; own < 2; own++) {
      char what[96];
      result first = run_plan(ctxs[own][1], o, NULL, data);
      checks++;
      if (!right(g, &v, &first)) differs(g, &first, &first, "not what the oracle says");
      for (int turn = 0; turn < 6; turn++) {
        int p = places[draw(0, 5)], w = (int)draw(1, MOST_THREADS);
        if (turn == 3) rates_shake();
        expect(o, &first, run_plan(ctxs[own][w], o, NULL, data), "another number of threads");
        if (!allowed_cuts(o, p, parts, cut, order)) continue;
        snprintf(what, sizeof what, "case %d, provider %d, %d places, fabric %d, %d threads", n,
                 own, p, turn % 3, w);
        expect(o, &first, run_places(ctxs[own][w], o, p, turn % 3, NULL, parts, data), what);
      }
      free(first.data);
    }
    values_free(g, &v);
    ein_graph_destroy(o);
    ein_graph_destroy(g);
    done++;
  }
  printf("  %d graphs\n", done);
  CHECK(only >= 0 || done > count / 3);
  ein_ctx_destroy(monoids);
}

// ---- expressions, mistakes, memory --------------------------------------------------------------

// Does every number of threads give the same bits, whatever was called before?
static void test_expression(int own, const char *expr, ein_dtype dtype, int nin, int64_t extent) {
  static double data[3][160000];
  static char first[80000 * 8], other[80000 * 8];
  int64_t shape[3][4], out_shape[4];
  ein_ztensor in[3], out;
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  memset(in, 0, sizeof in);
  const char *at = expr;
  for (int k = 0; k < nin; k++, at++) {
    int n = (int)strcspn(at, ",-");
    for (int a = 0; a < n; a++) shape[k][a] = extent + at[a] - 'i';
    in[k].dtype = dtype;
    in[k].rank = n;
    in[k].shape = shape[k];
    in[k].data = data[k];
    orc_random_fill(dtype, ein_view_count(&in[k]), data[k], (uint64_t)k + 5);
    at += n;
  }
  d.expr = expr;
  d.nin = nin;
  d.in = in;
  CHECK(ein_einsum_out_ex(NULL, &d, &out, out_shape, 4) == EIN_OK);
  d.out = &out;
  for (int w = 1; w <= MOST_THREADS; w++) {
    if (w == 3) rates_shake();
    for (int det = 0; det < 2; det++) {  // plans of both kinds are kept
      d.options.deterministic = det;
      out.data = w == 1 ? first : other;
      CHECK(ein_einsum_ex(ctxs[own][w], &d) == EIN_OK);
    }
    size_t bytes = (size_t)ein_view_count(&out) * ein_dtype_size(dtype);
    CHECK(bytes <= sizeof first && (w == 1 || memcmp(first, other, bytes) == 0));
  }
}

// Folds of values as they lie in memory, and of values that are fetched one by one, add alike.
static void test_apart(int own, const char *expr, const char *monoid, ein_dtype dtype) {
  static double dense[400 * 300], apart[800 * 300], first[400], other[400];
  const int64_t shape[2] = {400, 300}, size = (int64_t)ein_dtype_size(dtype);
  const int64_t stride[2] = {600, 2};
  ein_ztensor in, out;
  ein_einsum_desc d;
  int64_t out_shape[2];
  memset(&d, 0, sizeof d);
  memset(&in, 0, sizeof in);
  in.dtype = dtype;
  in.rank = 2;
  in.shape = shape;
  in.data = dense;
  orc_random_fill(dtype, 400 * 300, dense, 3);
  for (int64_t i = 0; i < 400 * 300; i++) {
    if (dtype == EIN_F32) ((float *)(void *)dense)[i] = 1 + (float)draw(-99, 99) / 997.0f;
    else dense[i] = 1 + (double)draw(-99, 99) / 997.0;
    memcpy((char *)apart + 2 * i * size, (char *)dense + i * size, (size_t)size);
  }
  d.expr = expr;
  d.monoid = monoid;
  d.nin = 1;
  d.in = &in;
  d.options.deterministic = 1;
  CHECK(ein_einsum_out_ex(NULL, &d, &out, out_shape, 2) == EIN_OK);
  d.out = &out;
  out.data = first;
  CHECK(ein_einsum_ex(ctxs[own][2], &d) == EIN_OK);
  in.strides = stride;
  in.data = apart;
  out.data = other;
  CHECK(ein_einsum_ex(ctxs[own][3], &d) == EIN_OK);
  CHECK(memcmp(first, other, (size_t)(ein_view_count(&out) * size)) == 0);
}

static void test_expressions(void) {
  static const struct {
    const char *expr;
    int nin;
    int64_t extent;
  } list[] = {{"ij,jk->ik", 2, 150}, {"ij,kj->ki", 2, 97}, {"ij,j->i", 2, 280}, {"ij,ij->", 2, 300},
              {"ijk->j", 1, 50}, {"ij,jk,kl->il", 3, 77}, {"ijk,ijl->kl", 2, 33},
              {"ijk,jl,kl->il", 3, 30}, {"ij->i", 1, 290}, {"ij->j", 1, 290}, {"ijk->j", 1, 33}};
  static const ein_dtype types[] = {EIN_F32, EIN_F64, EIN_C64, EIN_F16};
  for (size_t k = 0; k < sizeof list / sizeof *list; k++)
    for (int t = 0; t < 4; t++)
      for (int own = 0; own < 2; own++)
        test_expression(own, list[k].expr, types[t], list[k].nin, list[k].extent);
  static const char *const folds[] = {"sum", "prod", "max", "min", "mean", "var", "logsumexp"};
  for (int k = 0; k < 7 * 2 * 2 * 2; k++)
    test_apart(k & 1, k & 2 ? "ij->i" : "ij->j", folds[k / 8], k & 4 ? EIN_F32 : EIN_F64);
}

static void test_mistakes(void) {
  ein_kernels odd;
  const ein_kernels *list = &odd;
  ein_ctx_desc cd;
  ein_ctx *ctx = NULL;
  ein_options o;
  ein_plan *plan;
  ein_graph *ordered;
  memset(&cd, 0, sizeof cd);
  memset(&o, 0, sizeof o);
  memset(&odd, 0, sizeof odd);
  odd.name = "odd";
  cd.nkernels = 1;
  cd.kernels = &list;
  CHECK(ein_ctx_create(&cd, &ctx) == EIN_OK);
  ein_graph *g = parse("input A[i=40,k=900], B[k,j=30] : f32\nC[i,j] = sum[k](A[i,k]*B[k,j])\n"
                       "output C\n");
  o.deterministic = 1;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_ERR_UNSUPPORTED && plan == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "'odd'") != NULL);
  CHECK(ein_graph_deterministic(ctx, g, NULL, &ordered) == EIN_ERR_UNSUPPORTED && ordered == NULL);
  o.path_seconds = 1;
  CHECK(ein_plan_graph(ctxs[1][1], g, 0, NULL, &o, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(ein_graph_deterministic(NULL, NULL, NULL, &ordered) == EIN_ERR_ARGUMENT);
  o.path_seconds = 0;
  o.goal = (ein_goal)3;
  CHECK(ein_graph_deterministic(NULL, g, &o, &ordered) == EIN_ERR_ARGUMENT && ordered == NULL);
  o.goal = EIN_GOAL_FLOPS;
  ordered = ordered_of(NULL, g);
  const int64_t cut[3] = {1, 1, 3};
  const int order[1] = {2};
  ein_parts parts;
  ein_dist_desc d;
  ein_dist *dist;
  ein_fabric f;
  memset(&parts, 0, sizeof parts);
  memset(&d, 0, sizeof d);
  parts.nindex = 3;
  parts.cut = cut;
  parts.norder = 1;
  parts.order = order;
  parts.ntask = 3;
  CHECK(ein_fabric_serial(3, &f) == EIN_OK);
  d.fabric = &f;
  d.parts = &parts;
  CHECK(ein_dist_create(ctxs[0][1], ordered, &d, &dist) == EIN_ERR_ARGUMENT && dist == NULL);
  CHECK(strstr(ein_ctx_message(ctxs[0][1]), "index 'k': deterministic") != NULL);
  CHECK(ein_dist_create(ctxs[0][1], g, &d, &dist) == EIN_OK);
  ein_dist_destroy(dist);
  ein_graph_destroy(ordered);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

static void test_failing_memory(void) {
  ein_graph *g = parse(
      "input X[i=3000], A[a=4,b=5], B[b,c=6], C[c,d=7] : f32\nM = mean[i](X[i]*X[i])\n"
      "L = logsumexp[i](X[i])\nY[a,d] = sum[b,c](A[a,b]*B[b,c]*C[c,d])\noutput M, L, Y\n");
  counter c = {0, 0, 0};
  ein_ctx_desc d;
  int done = 0;
  memset(&d, 0, sizeof d);
  d.allocator.alloc_fn = count_alloc;
  d.allocator.free_fn = count_free;
  d.allocator.user = &c;
  for (long n = 0; n < 3000 && !done; n++) {
    ein_ctx *ctx;
    ein_graph *o = NULL;
    c.calls = 0;
    c.fail_at = n;
    ein_status st = ein_ctx_create(&d, &ctx);
    if (st == EIN_OK) st = ein_graph_deterministic(ctx, g, NULL, &o);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && o == NULL));
    done = st == EIN_OK;
    ein_graph_destroy(o);
    ein_ctx_destroy(ctx);
    CHECK(c.live == 0);
  }
  CHECK(done);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 150, only = argc > 3 ? atoi(argv[3]) : -1;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)seed);
  contexts_open();
  for (int k = 0; only < 0 && k < (int)(sizeof programs / sizeof *programs); k++)
    for (int own = 0; own < 2; own++) test_program(k, own);
  if (only < 0) {
    test_expressions();
    test_mistakes();
    test_failing_memory();
  }
  test_random(count, seed, only);
  CHECK(only >= 0 || slices > 2);
  contexts_close();
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
