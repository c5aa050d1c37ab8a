// Functions over blocks: random programs with an FFT, a sort, a solver and functions of several
// outputs, against the oracle; over 1 to 16 places on every fabric, where bits are those of the
// whole, and values of rand; what is refused; failing functions and allocations.
//
//   test_operator [count] [seed]
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

// ---- functions ----------------------------------------------------------------------------------

// X[k] = sum of x[j] exp(-2 pi i j k / n), in halves while n is even.
static void transform(int64_t n, int64_t step, const double *x, double *to) {
  if (n % 2 != 0) {
    for (int64_t k = 0; k < n; k++) {
      double re = 0, im = 0;
      for (int64_t j = 0; j < n; j++) {
        const double a = -2 * 3.14159265358979323846 * (double)(j * k % n) / (double)n;
        re += x[2 * j * step] * cos(a) - x[2 * j * step + 1] * sin(a);
        im += x[2 * j * step] * sin(a) + x[2 * j * step + 1] * cos(a);
      }
      to[2 * k] = re, to[2 * k + 1] = im;
    }
    return;
  }
  const int64_t half = n / 2;
  transform(half, 2 * step, x, to);
  transform(half, 2 * step, x + 2 * step, to + n);
  for (int64_t k = 0; k < half; k++) {
    const double a = -2 * 3.14159265358979323846 * (double)k / (double)n;
    double *lo = to + 2 * k, *hi = to + n + 2 * k;
    const double re = hi[0] * cos(a) - hi[1] * sin(a), im = hi[0] * sin(a) + hi[1] * cos(a);
    hi[0] = lo[0] - re, hi[1] = lo[1] - im;
    lo[0] += re, lo[1] += im;
  }
}

static ein_status fft(const int64_t *size, const void *const *in, void *const *out, void *user) {
  (void)user;
  if (size[0] > 0) transform(size[0], 1, (const double *)in[0], (double *)out[0]);
  return EIN_OK;
}

static double fft_flops(const int64_t *size, void *user) {
  (void)user;
  return 5 * (double)size[0] * log2((double)size[0] + 1);
}

static ein_status sorted(const int64_t *size, const void *const *in, void *const *out, void *user) {
  float *y = (float *)out[0];
  (void)user;
  memcpy(y, in[0], (size_t)size[0] * sizeof *y);
  for (int64_t i = 1; i < size[0]; i++)
    for (int64_t k = i; k > 0 && y[k] < y[k - 1]; k--) {
      const float t = y[k];
      y[k] = y[k - 1];
      y[k - 1] = t;
    }
  return EIN_OK;
}

// Without pivots; a zero on the diagonal is an error where user says so.
static ein_status solve(const int64_t *size, const void *const *in, void *const *out, void *user) {
  const int64_t n = size[0];
  double a[64], *x = (double *)out[0];
  memcpy(a, in[0], (size_t)(n * n) * sizeof *a);
  memcpy(x, in[1], (size_t)n * sizeof *x);
  for (int64_t k = 0; k < n; k++) {
    if (user != NULL && a[k * n + k] == 0) return EIN_ERR_ARGUMENT;
    if (a[k * n + k] == 0) a[k * n + k] = 1;
    for (int64_t i = k + 1; i < n; i++) {
      const double by = a[i * n + k] / a[k * n + k];
      for (int64_t j = k; j < n; j++) a[i * n + j] -= by * a[k * n + j];
      x[i] -= by * x[k];
    }
  }
  for (int64_t k = n - 1; k >= 0; k--) {
    for (int64_t j = k + 1; j < n; j++) x[k] -= a[k * n + j] * x[j];
    x[k] /= a[k * n + k];
  }
  return EIN_OK;
}

// Sums and differences of neighbours, and the largest of all.
static ein_status haar(const int64_t *size, const void *const *in, void *const *out, void *user) {
  const int64_t *x = (const int64_t *)in[0];
  int64_t *low = (int64_t *)out[0], *high = (int64_t *)out[1], *most = (int64_t *)out[2];
  (void)user;
  *most = INT64_MIN;
  for (int64_t i = 0; i < size[1]; i++) {
    low[i] = x[2 * i] + x[2 * i + 1];
    high[i] = x[2 * i] - x[2 * i + 1];
  }
  for (int64_t i = 0; i < size[0]; i++) *most = x[i] > *most ? x[i] : *most;
  return EIN_OK;
}

static int haar_sizes(int64_t *size, void *user) {
  (void)user;
  size[1] = size[0] / 2;
  return size[0] > 0 && size[0] % 2 == 0;
}

static char strict[] = "strict";

static const ein_operator operators[] = {
    {"fft", "(n)->(n)", EIN_C128, fft, NULL, fft_flops, NULL},
    {"sorted", "(n) -> (n)", EIN_F32, sorted, NULL, NULL, NULL},
    {"solve", "(n,n),(n)->(n)", EIN_F64, solve, NULL, NULL, NULL},
    {"solve_all", "(n,n),(n)->(n)", EIN_F64, solve, NULL, NULL, strict},
    {"haar", "(n)->low(m),high(m),most()", EIN_I64, haar, haar_sizes, NULL, NULL}};

static ein_ctx *ctx_with(int width, counter *c) {
  ein_ctx *ctx = test_ctx(width, c);
  for (size_t i = 0; ctx != NULL && i < sizeof operators / sizeof *operators; i++)
    if (ein_ctx_operator(ctx, &operators[i]) != EIN_OK) {
      ein_ctx_destroy(ctx);
      return NULL;
    }
  return ctx;
}

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  ein_graph_parse(ctx, &d, &g);
  return g;
}

// ---- programs -----------------------------------------------------------------------------------

#define PROGRAMS 13

static const char *random_program(int which) {
  static char text[1024];
  const int a = (int)draw(1, 6), b = (int)draw(1, 7), n = (int)draw(1, 12), m = (int)draw(1, 4);
  switch (which) {
    case 0: snprintf(text, sizeof text, "input X[%d,%d] : c128\nY[b,k] = fft[t](X[b,t])", b, n);
      break;
    case 1:
      snprintf(text, sizeof text, "input X[%d,%d,%d] : c64\nY[a,k,b] : c64 = fft[t](X[b,t,a])", b,
               n, a);
      break;
    case 2:  // windows that overlap: places share halos
      snprintf(text, sizeof text, "input X[%d] : f64\nY[h,k] : c128 = fft[t=%d](X[%d*h+t])",
               n + 4 * b, n, m);
      break;
    case 3:
      snprintf(text, sizeof text, "input X[%d,%d] : f32\nY[b,t] = sorted[t](X[b,%d-t])", b, n,
               n - 1);
      break;
    case 4:
      snprintf(text, sizeof text, "input X[%d,n=%d] : f16\nD[b,t] = X[b+1,t] - X[b,t] for b=%d\n"
               "S[b,t] : f16 = sorted[t](D[b,t])\nY[t,b] = S[b,t] + S[b,0]", b + 1, n, b);
      break;
    case 5:
      snprintf(text, sizeof text, "input A[%d,n=%d,n], v[%d,n,%d]\n"
               "Y[c,b,j] = solve[i,j](A[b,i,j], v[b,i,c])", b, m, b, a);
      break;
    case 6:
      snprintf(text, sizeof text, "input A[n=%d,n], v[n,%d]\nY[i,c] = solve[i,j](A[j,i], v[i,c])",
               m, a);
      break;
    case 7:
      snprintf(text, sizeof text, "input X[%d,%d] : i32\nL[b,i], H[i,b], M[b] = haar[t](X[b,t])\n"
               "Y[b,i] = L[b,i] - H[i,b]*M[b]\noutput Y, M", b, 2 * m);
      break;
    case 8:  // twice in a row, along both axes
      snprintf(text, sizeof text, "input X[%d,%d] : c128\nZ[i,q] = fft[j](X[i,j])\n"
               "Y[p,q] = fft[i](Z[i,q])", b, n);
      break;
    case 9:  // with pieces, and a fold behind
      snprintf(text, sizeof text, "input X[%d,n=%d], Z[%d,n] : f32\nP[b,t] = concat[b](X[b,t], "
               "Z[b,t])\nS[b,t] = sorted[t](P[b,t])\nY[t] = max[b](S[b,t])", a, n, b);
      break;
    case 10:
      snprintf(text, sizeof text, "input X[%d,%d,%d,%d] : f32\nY[k,a,j,b] = sorted[t](X[a,b,t,j])",
               a, b, n, m);
      break;
    case 11:  // arguments that are stored first; an index of the result that is one of them
      snprintf(text, sizeof text, "input A[%d,n=%d,n], w[n] : f32\n"
               "Y[j,b] = solve[i,j](A[b,i,j] + 2*w[j], w[i]*b)", b, m);
      break;
    default:
      snprintf(text, sizeof text, "input X[%d,%d] : u8\nY[b,k] = fft[t=%d](X[b-1 | clamp,t-1 | 0])"
               " for b=%d", b, n, n + 2, b + 2);
  }
  return text;
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct ports {
  const void *in[8];
  void *out[8];
  int nin, nout, at[8];
} ports;

static void ports_make(const ein_graph *g, const values *v, ports *p) {
  memset(p, 0, sizeof *p);
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) p->in[p->nin++] = v->data[t];
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    p->at[p->nout] = t;
    p->out[p->nout++] = orc_alloc(orc_count(&g->tensor[t]) + 1, 16);
  }
}

// Are the outputs those of the oracle, bit by bit?
static int ports_right(const ein_graph *g, const values *v, const ports *p) {
  int same = 1;
  for (int o = 0; o < p->nout; o++) {
    const eini_tensor *t = &g->tensor[p->at[o]];
    same &= memcmp(p->out[o], v->data[p->at[o]],
                   (size_t)orc_count(t) * ein_dtype_size(t->dtype)) == 0;
  }
  return same;
}

static void ports_free(ports *p) {
  for (int o = 0; o < p->nout; o++) free(p->out[o]);
}

static ein_status run_plan(ein_ctx *ctx, const ein_graph *g, const values *v, int deterministic,
                           int *right) {
  ein_options o;
  ein_plan *plan = NULL;
  ein_run run;
  ports p;
  memset(&o, 0, sizeof o);
  memset(&run, 0, sizeof run);
  o.deterministic = deterministic;
  *right = 0;
  ein_status st = ein_plan_graph(ctx, g, 0, NULL, &o, &plan);
  if (st != EIN_OK) return st;
  ports_make(g, v, &p);
  run.in = p.in;
  run.out = p.out;
  st = ein_plan_execute(plan, &run);
  *right = st == EIN_OK && ports_right(g, v, &p);
  ports_free(&p);
  ein_plan_destroy(plan);
  return st;
}

// On places: serial, threads, copying, copying with threads; -1 is the clock, which counts.
static ein_status run_places(ein_ctx *ctx, const ein_graph *g, const values *v,
                             const ein_decomposition *how, int places, int kind, int *right,
                             int64_t *bytes) {
  ein_fabric f;
  ein_dist_desc d;
  ein_dist *dist = NULL;
  ein_dist_stats stats;
  ein_run run;
  ports p;
  memset(&f, 0, sizeof f);
  memset(&d, 0, sizeof d);
  memset(&stats, 0, sizeof stats);
  memset(&run, 0, sizeof run);
  *right = 0;
  ein_status st = kind == 0 ? ein_fabric_serial(places, &f) : kind == 1
                            ? ein_fabric_threads(places, &f) : kind < 0
                            ? ein_fabric_sim(ctx, places, NULL, &f)
                            : ein_fabric_copying(ctx, places, &f);
  if (st != EIN_OK) return st;
  if (kind == 3) f.threads = 1;
  d.fabric = &f;
  d.decomposition = how;
  ports_make(g, v, &p);
  run.in = p.in;
  run.out = p.out;
  st = ein_dist_create(ctx, g, &d, &dist);
  if (st == EIN_OK) st = ein_dist_execute(dist, &run, &stats);
  *right = st == EIN_OK && (kind < 0 || ports_right(g, v, &p));
  *bytes = stats.bytes;
  ports_free(&p);
  ein_dist_destroy(dist);
  ein_fabric_destroy(&f);
  return st;
}

static void test_places(ein_ctx *ctx, const ein_graph *g, const values *v, int p, int inputs) {
  ein_decompose_desc d;
  ein_decomposition *how = NULL;
  int64_t moved[5];
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = EIN_COST_BYTES;
  d.inputs = (ein_inputs)inputs;
  CHECK(ein_decompose(ctx, g, &d, &how) == EIN_OK);
  if (how == NULL) return;
  for (int kind = -1; kind < 4; kind++) {
    int right = 0;
    CHECK(run_places(ctx, g, v, how, p, kind, &right, &moved[kind + 1]) == EIN_OK);
    CHECK(right);
    CHECK(moved[kind + 1] == moved[0]);
  }
  ein_decomposition_destroy(how);
}

// As text that is read again, and in its normal form, itself a program: the same values.
static void test_texts(ein_ctx *ctx, const ein_graph *g, const values *v) {
  static char text[1 << 16];
  ein_graph *again = NULL;
  ein_canon *c = NULL;
  int right = 0;
  CHECK(ein_rewrite_apply(ctx, g, NULL, 0, 0, &again) == EIN_OK);
  if (again == NULL) printf("%s\n", ein_ctx_message(ctx));
  if (again != NULL) CHECK(run_plan(ctx, again, v, 0, &right) == EIN_OK && right);
  ein_graph_destroy(again);
  CHECK(ein_canon_create(ctx, g, 0, &c) == EIN_OK);
  if (c == NULL) return;
  ein_graph_print(ein_canon_graph(c), text, sizeof text);
  again = g->nstmt > 1 ? NULL : parse(ctx, text);
  CHECK(again != NULL || g->nstmt > 1);
  if (again == NULL && g->nstmt == 1) printf("%s%s\n", text, ein_ctx_message(ctx));
  if (again != NULL && g->ntensor == 2)
    CHECK(run_plan(ctx, again, v, 0, &right) == EIN_OK && right);
  ein_graph_destroy(again);
  ein_canon_destroy(c);
}

static void test_random(int count, uint64_t seed) {
  for (int n = 0; n < count; n++) {
    rng_state = seed + (uint64_t)n * 77;
    const int before = failures;
    const char *text = random_program(n % PROGRAMS);
    ein_ctx *ctx = ctx_with(1 + n % 3, NULL);
    ein_graph *g = parse(ctx, text);
    values v;
    int right = 0;
    if (g == NULL) printf("%s\n%s\n", text, ein_ctx_message(ctx));
    CHECK(g != NULL);
    if (g == NULL) {
      ein_ctx_destroy(ctx);
      continue;
    }
    values_make(g, seed + (uint64_t)n, &v);
    CHECK(run_plan(ctx, g, &v, 0, &right) == EIN_OK && right);
    CHECK(run_plan(ctx, g, &v, 1, &right) == EIN_OK && right);
    const int places[] = {1, 2, 3, 4, 6, 8, 16};
    test_places(ctx, g, &v, places[n / PROGRAMS % 7], n % 2 ? EIN_INPUTS_HELD : EIN_INPUTS_DEALT);
    test_texts(ctx, g, &v);
    if (failures > before) printf("case %d, seed %llu:\n%s\n", n, (unsigned long long)seed, text);
    values_free(g, &v);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// ---- halos --------------------------------------------------------------------------------------

// A strided convolution and windows of a function over blocks, cut along their outer index over 1
// to 16 places, which hold the image in as many pieces: what neighbours share moves, as counted.
static void test_halos(void) {
  static const struct {
    const char *text, *out;
  } cases[] = {
      {"input X[2,3,n=37,11], K[4,3,5,3] : f64\n"
       "Y[b,o,h,w] = sum[c,r,s](X[b,c,2*h+r,w+s] * K[o,c,r,s])", "Y[h=%d]"},
      {"input X[2,3,n=40,6], K[4,3,3,3] : f64\n"
       "Y[b,o,h,w] = sum[c,r,s](X[b,c,h+r-1,w+s-1 | 0] * K[o,c,r,s]) for h=40, w=6", "Y[h=%d]"},
      {"input X[n=150] : f64\nY[h,k] = fft[t=16](X[4*h+t])", "Y[h=%d]"},
      {"input X[n=33,9] : f32\nY[h,k,j] = sorted[t=3](X[2*h+t,j])", "Y[h=%d]"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ein_ctx *ctx = ctx_with(2, NULL);
    ein_graph *g = parse(ctx, cases[c].text);
    values v;
    CHECK(g != NULL);
    if (g == NULL) continue;
    values_make(g, 7, &v);
    for (int t = 0; t < g->ntensor; t++)  // whole numbers: sums are exact in every order
      for (int64_t i = 0; g->tensor[t].role == EIN_ROLE_INPUT && i < orc_count(&g->tensor[t]); i++)
        orc_put(g->tensor[t].dtype, v.data[t], i, orc_float((double)((i * 7919 + t) % 7 - 3), 0));
    orc_eval(g, v.data, NULL);
    int64_t before = -1;
    for (int p = 1; p <= 16; p++) {
      char parts[32], pin[32];
      const char *part = parts, *pins = pin;
      ein_decompose_desc d;
      ein_decomposition *how = NULL;
      int64_t moved[5] = {0};
      snprintf(parts, sizeof parts, cases[c].out, p);
      snprintf(pin, sizeof pin, "X[%d=%d]", c < 2 ? 2 : 0, p);
      memset(&d, 0, sizeof d);
      d.p = p;
      d.cost = EIN_COST_BYTES;
      d.method = "given";
      d.parts = &part;
      d.nparts = 1;
      d.pin = &pins;
      d.npin = strstr(cases[c].text, "| 0") == NULL;  // else a temporary is padded
      CHECK(ein_decompose(ctx, g, &d, &how) == EIN_OK);
      if (how == NULL) printf("%s\n", ein_ctx_message(ctx));
      for (int kind = -1; kind < 4 && how != NULL; kind++) {
        int right = 0;
        CHECK(run_places(ctx, g, &v, how, p, kind, &right, &moved[kind + 1]) == EIN_OK && right);
        CHECK(moved[kind + 1] == moved[0]);
      }
      if (p == 1) CHECK(moved[0] == 0);
      if (p > 1 && d.npin) CHECK(moved[0] > 0 && before >= 0);
      before = moved[0];
      ein_decomposition_destroy(how);
    }
    values_free(g, &v);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// ---- rand ---------------------------------------------------------------------------------------

// Its values depend on its arguments alone: not on threads, cuts, places or fabrics.
static void test_rand(void) {
  static const char text[] = "input X[23,10] : i32\n"
                             "R[i,j] = rand(11,i,j) + X[i,j]\n"
                             "W[i=9,j=10] : f32 = rand(3,2*i+1,-j)\n"
                             "F[i=23] = sum[j=10](floor(rand(7,i,X[i,j])*1024))\n"
                             "output R, W, F";
  static const char *const parts[][3] = {{"R[i=%d]", "W[i=%d]", "F[i=%d]"},
                                         {"R[j=%d]", "W[j=%d]", "F[j=%d]"}};
  double seen[2] = {0, 0};
  for (int p = 1; p <= 10; p++) {
    ein_ctx *ctx = ctx_with(1 + p % 4, NULL);
    ein_graph *g = parse(ctx, text);
    values v;
    int right = 0;
    CHECK(g != NULL);
    if (g == NULL) continue;
    values_make(g, 5, &v);
    const double *r = (const double *)v.data[1];
    for (int k = 0; k < 2; k++) {
      if (p > 1) CHECK(seen[k] == r[3 + k]);
      seen[k] = r[3 + k];
    }
    CHECK(seen[0] < seen[1] || seen[0] > seen[1]);
    CHECK(run_plan(ctx, g, &v, 0, &right) == EIN_OK && right);
    test_places(ctx, g, &v, p, p % 2 ? EIN_INPUTS_HELD : EIN_INPUTS_DEALT);
    for (int axis = 0; axis < 2; axis++) {
      char room[3][16];
      const char *list[3];
      ein_decompose_desc d;
      ein_decomposition *how = NULL;
      int64_t moved;
      for (int k = 0; k < 3; k++) {
        snprintf(room[k], sizeof room[k], parts[axis][k], k == 1 && axis == 0 && p > 9 ? 9 : p);
        list[k] = room[k];
      }
      memset(&d, 0, sizeof d);
      d.p = p;
      d.method = "given";
      d.parts = list;
      d.nparts = 3;
      CHECK(ein_decompose(ctx, g, &d, &how) == EIN_OK);
      if (how == NULL) printf("%s\n", ein_ctx_message(ctx));
      for (int kind = 0; kind < 4 && how != NULL; kind++)
        CHECK(run_places(ctx, g, &v, how, p, kind, &right, &moved) == EIN_OK && right);
      ein_decomposition_destroy(how);
    }
    values_free(g, &v);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// ---- from C, strides --------------------------------------------------------------------------

// Views with gaps, or against the order of memory, of inputs and outputs.
static void test_strides(int count, uint64_t seed) {
  for (int n = 0; n < count; n++) {
    rng_state = seed + 5000 + (uint64_t)n;
    const int64_t b = draw(1, 5), t = draw(1, 9), shape[2] = {b, t};
    ein_ctx *ctx = ctx_with(1 + n % 2, NULL);
    char text[96];
    snprintf(text, sizeof text, "input X[%d,%d] : f32\nY[b,t] = sorted[t](X[b,t])", (int)b, (int)t);
    ein_graph *g = parse(ctx, text);
    float x[400], y[400], want[64], row[64];
    int64_t stride[2][2];
    ein_ztensor v[2];
    for (int k = 0; k < 2; k++) {
      const int64_t inner = draw(1, 3) * (chance(50) ? -1 : 1);
      const int64_t outer = (t * 3 + draw(0, 3)) * (chance(50) ? -1 : 1);
      const int swap = chance(30);
      stride[k][0] = swap ? inner : outer;
      stride[k][1] = swap ? 3 * b + 2 : inner;
      v[k] = ein_tensor(EIN_F32, 2, shape, (k ? y : x) + 200);
      v[k].strides = stride[k];
    }
    for (int i = 0; i < 400; i++) x[i] = y[i] = (float)draw(-99, 99);
    const ein_binding bind[2] = {{"X", &v[0]}, {"Y", &v[1]}};
    const void *in = x + 200;
    void *out = y + 200;
    ein_plan *plan = NULL;
    ein_run run;
    memset(&run, 0, sizeof run);
    run.in = &in;
    run.out = &out;
    CHECK(ein_plan_graph(ctx, g, 2, bind, NULL, &plan) == EIN_OK);
    CHECK(plan != NULL && ein_plan_execute(plan, &run) == EIN_OK);
    for (int64_t i = 0; i < b; i++) {
      const void *from = row;
      void *to = want;
      for (int64_t k = 0; k < t; k++) row[k] = x[200 + i * stride[0][0] + k * stride[0][1]];
      sorted(&t, &from, &to, NULL);
      for (int64_t k = 0; k < t; k++)
        CHECK(want[k] == y[200 + i * stride[1][0] + k * stride[1][1]]);
    }
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// Two of three axes are of the block, of the result one.
static ein_status build(ein_ctx *ctx, int64_t rows, int64_t vector, const char *fold,
                        ein_graph **g) {
  const int64_t shape[2][3] = {{4, 3, 3}, {4, 3, 0}}, extent[1] = {4};
  int64_t one[3] = {1, 0, 0}, block[2][3] = {{0, 3, 3}, {0, 3, 0}};
  const ein_zmap proj[2] = {{3, 1, one, NULL, block[0]}, {2, 1, one, NULL, block[1]}};
  ein_stmt_desc d;
  int id[3] = {0, 0, 0};
  block[0][1] = rows;
  block[1][1] = vector;
  memset(&d, 0, sizeof d);
  CHECK(ein_graph_create(ctx, g) == EIN_OK);
  ein_graph_add_tensor(*g, "A", EIN_ROLE_INPUT, EIN_F64, 3, shape[0], &id[0]);
  ein_graph_add_tensor(*g, "v", EIN_ROLE_INPUT, EIN_F64, 2, shape[1], &id[1]);
  ein_graph_add_tensor(*g, "Y", EIN_ROLE_OUTPUT, EIN_NONE, 2, NULL, &id[2]);
  d.out = id[2];
  d.out_map = proj[1];
  d.nindex = d.nfree = 1;
  d.extent = extent;
  d.noperand = 2;
  d.operand = id;
  d.proj = proj;
  d.fold = fold;
  ein_graph_add_statement(*g, &d);
  return ein_graph_finish(*g);
}

static void test_built(void) {
  ein_ctx *ctx = ctx_with(1, NULL);
  ein_graph *g, *same = parse(ctx, "input A[4,3,3], v[4,3]\nY[b,j] = solve[i,j](A[b,i,j], v[b,i])");
  values v;
  int right = 0;
  CHECK(build(ctx, 3, 3, "solve", &g) == EIN_OK);
  values_make(g, 3, &v);
  CHECK(run_plan(ctx, g, &v, 0, &right) == EIN_OK && right);
  CHECK(run_plan(ctx, same, &v, 0, &right) == EIN_OK && right);
  values_free(g, &v);
  ein_graph_destroy(g);
  ein_graph_destroy(same);
  CHECK(build(ctx, 2, 3, "solve", &g) == EIN_ERR_SHAPE);  // not square
  CHECK(strstr(ein_ctx_message(ctx), "(n,n),(n)->(n): axis 1 of argument 0 is 'n'") != NULL);
  ein_graph_destroy(g);
  CHECK(build(ctx, 3, 0, "solve", &g) == EIN_ERR_SHAPE);
  ein_graph_destroy(g);
  CHECK(build(ctx, 3, -1, "solve", &g) == EIN_ERR_SHAPE);
  ein_graph_destroy(g);
  CHECK(build(ctx, 3, 3, "sorted", &g) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "'sorted' takes 1 operand") != NULL);
  ein_graph_destroy(g);
  CHECK(build(ctx, 3, 3, "max", &g) == EIN_ERR_UNSUPPORTED);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// ---- what is refused ----------------------------------------------------------------------------

static void test_refused(void) {
  static const struct {
    const char *text, *message;
    ein_status status;
  } cases[] = {
      {"input X[4,8]\nY[b] = sorted[t](X[b,t])",
       "'sorted' (n) -> (n): the result has 1 axes in its block, here 0", EIN_ERR_SHAPE},
      {"input X[4,8]\nY[b,r=2,k=8] = sorted[t](X[b,t])",
       "the result has 1 axes in its block, here 2", EIN_ERR_SHAPE},
      {"input X[4,8]\nY[b,k=7] = sorted[t](X[b,t])", "output 0 is 'n', which is 8, not 7",
       EIN_ERR_SHAPE},
      {"input X[4,8]\nY[t] = sorted[b,t](X[b,t])", "argument 0 has 1 axes in its block, here 2",
       EIN_ERR_SHAPE},
      {"input X[8,8]\nY[t] = sorted[t](X[t,t])", "no index is two axes", EIN_ERR_SHAPE},
      {"input X[4,8]\nY[b,k=8] = 2*sorted[t](X[b,t])", "the result has 1 axes in its block, here 0",
       EIN_ERR_SHAPE},
      {"input X[4,8]\nY[b,t] = sorted(X[b,t])", "needs the axes of its blocks", EIN_ERR_SYNTAX},
      {"input X[4,8]\nY[b,t] = sorted[t](X[b,t], X[b,t])", "sorted takes 1 argument, not 2",
       EIN_ERR_SYNTAX},
      {"input A[4,3,2], v[4,3]\nY[b,j] = solve[i,j](A[b,i,j], v[b,i])",
       "axis 1 of argument 0 is 'n', which is 3, not 2", EIN_ERR_SHAPE},
      {"input X[4,7]\nL[b,i], H[b,i], M[b] = haar[t](X[b,t])",
       "'haar' refuses blocks of these sizes", EIN_ERR_SHAPE},
      {"input X[4,8]\nL[b,i], H[b,i] = haar[t](X[b,t])", "has 3 outputs, not 2", EIN_ERR_SHAPE},
      {"input X[4,8]\nL[b,i], H[b], M[b] = haar[t](X[b,t])", "output 1 has 1 axes in its block",
       EIN_ERR_SHAPE},
      {"input X[4,8]\nL[b,i], H[b,i] = X[b,i]", "outputs of one function over blocks",
       EIN_ERR_SYNTAX},
      {"input X[4,8]\nsorted[b,t] = X[b,t]", "is a word of the language", EIN_ERR_NAME},
      {"input X[4,8]\nS[b,t] = sorted[t](X[b,t])\nL = sum[b,t](S[b,t])\ngrad L wrt X as G",
       "needs that of the operator sorted", EIN_ERR_UNSUPPORTED}};
  ein_ctx *ctx = ctx_with(1, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ein_graph *g = parse(ctx, cases[i].text);
    CHECK(g == NULL);
    const ein_error *e = ein_ctx_error(ctx, 0);
    CHECK(e != NULL && e->status == cases[i].status);
    CHECK(e != NULL && strstr(e->message, cases[i].message) != NULL);
    CHECK(e == NULL || e->line >= 2);
    if (e != NULL && strstr(e->message, cases[i].message) == NULL)
      printf("%s\n%s\n", cases[i].text, ein_ctx_message(ctx));
    ein_graph_destroy(g);
  }
  static const char *const signatures[] = {"", "(n)", "(n)->", "n->n", "(n)->(n", "(n))->(n)",
                                           "(n,)->(n)", "(n)->(m)", "(a,b,c,d,e,f,g,h,i)->()",
                                           "(n)->(n) x", "(1)->(n)"};
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
    const ein_operator bad = {"bad", signatures[i], EIN_F64, sorted, NULL, NULL, NULL};
    CHECK(ein_ctx_operator(ctx, &bad) == EIN_ERR_ARGUMENT);
  }
  ein_operator again = operators[0];
  CHECK(ein_ctx_operator(ctx, &again) == EIN_ERR_NAME);
  again.name = "other";
  again.dtype = EIN_F16;
  CHECK(ein_ctx_operator(ctx, &again) == EIN_ERR_ARGUMENT);
  ein_ctx_destroy(ctx);
}

// Cuts along a block: refused by parts, by methods and by schedules; and never chosen.
static void test_cuts(void) {
  static const char text[] = "input X[4,8] : f32\nY[b,k] = sorted[t](X[b,t])";
  static const char *const commands[] = {"divide(t, o, i, 2)", "divide(k, o, i, 2)",
                                         "distribute([k], [o], [i], [q])"};
  ein_ctx *ctx = ctx_with(1, NULL);
  ein_graph *g = parse(ctx, text);
  ein_decompose_desc d;
  ein_decomposition *how = NULL;
  const char *parts[1] = {"Y[k=2]"};
  memset(&d, 0, sizeof d);
  d.p = 2;
  d.method = "given";
  d.parts = parts;
  d.nparts = 1;
  CHECK(ein_decompose(ctx, g, &d, &how) == EIN_ERR_SHAPE);
  CHECK(strstr(ein_ctx_message(ctx), "block") != NULL);
  int64_t cut[3] = {1, 2, 1};
  int order[1] = {1};
  ein_parts p;
  ein_dist_desc dd;
  ein_dist *dist = NULL;
  memset(&p, 0, sizeof p);
  memset(&dd, 0, sizeof dd);
  p.nindex = 3;
  p.cut = cut;
  p.order = order;
  p.norder = 1;
  p.ntask = 2;
  ein_fabric f;
  ein_fabric_serial(2, &f);
  dd.fabric = &f;
  dd.parts = &p;
  CHECK(ein_dist_create(ctx, g, &dd, &dist) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "an axis of a block is not cut") != NULL);
  for (int i = 0; i < 3; i++) {
    char program[256];
    snprintf(program, sizeof program, "%s\nmachine q=2\non Y\n%s\n", text, commands[i]);
    ein_graph *with = parse(ctx, program);
    ein_schedule_desc sd;
    ein_schedule *s = NULL;
    memset(&sd, 0, sizeof sd);
    sd.places = 2;
    CHECK(with != NULL);
    CHECK(ein_schedule_create(ctx, with, &sd, &s) != EIN_OK);
    CHECK(strstr(ein_ctx_message(ctx), "is an axis of a block") != NULL);
    ein_schedule_destroy(s);
    ein_graph_destroy(with);
  }
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// ---- failures -----------------------------------------------------------------------------------

// A function that fails gives its status and its name, on one place and on many.
static void test_fails(void) {
  static const char text[] = "input A[6,2,2], v[6,2]\nY[b,j] = solve_all[i,j](A[b,i,j], v[b,i])";
  for (int width = 1; width < 4; width += 2) {
    ein_ctx *ctx = ctx_with(width, NULL);
    ein_graph *g = parse(ctx, text);
    double a[24] = {0}, x[12] = {0}, y[12];
    const void *in[2] = {a, x};
    void *out[1] = {y};
    char error[160] = "";
    ein_plan *plan = NULL;
    ein_run run;
    for (int b = 0; b < 6; b++) a[4 * b] = b != 4, a[4 * b + 3] = 1;
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    run.error = error;
    run.error_bytes = sizeof error;
    CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
    CHECK(ein_plan_execute(plan, &run) == EIN_ERR_ARGUMENT);
    CHECK(strstr(error, "the operator 'solve_all' failed in 'Y'") != NULL);
    a[16] = 1;
    CHECK(ein_plan_execute(plan, &run) == EIN_OK && error[0] == 0);
    ein_plan_destroy(plan);
    a[16] = 0;
    for (int kind = 0; kind < 3; kind++) {
      ein_decompose_desc d;
      ein_decomposition *how = NULL;
      ein_dist_desc dd;
      ein_dist *dist = NULL;
      ein_fabric f;
      memset(&d, 0, sizeof d);
      memset(&dd, 0, sizeof dd);
      d.p = 3;
      CHECK(ein_decompose(ctx, g, &d, &how) == EIN_OK);
      CHECK((kind == 0 ? ein_fabric_serial(3, &f) : kind == 1 ? ein_fabric_threads(3, &f)
                                                  : ein_fabric_copying(ctx, 3, &f)) == EIN_OK);
      dd.fabric = &f;
      dd.decomposition = how;
      CHECK(ein_dist_create(ctx, g, &dd, &dist) == EIN_OK);
      error[0] = 0;
      CHECK(ein_dist_execute(dist, &run, NULL) == EIN_ERR_ARGUMENT);
      CHECK(strstr(error, "the operator 'solve_all' failed in") != NULL);

      ein_dist_destroy(dist);
      ein_decomposition_destroy(how);
      ein_fabric_destroy(&f);
    }
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
  }
}

// Every allocation fails once: a status, and nothing is lost.
static void test_memory(void) {
  int done = 0;
  for (long n = 0; !done && n < 4000; n++) {
    counter count = {0, n, 0};
    ein_ctx *ctx = ctx_with(2, &count);
    ein_graph *g = ctx == NULL ? NULL : parse(ctx, "input X[4,8] : i32\n"
                                              "L[b,i], H[b,i], M[b] = haar[t](X[b,t])\n"
                                              "Y[b,i] = L[b,i]*H[b,i]\noutput Y, M");
    ein_plan *plan = NULL;
    if (g != NULL && ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK) {
      int32_t x[32] = {0};
      int64_t y[16], m[4];
      const void *in = x;
      void *out[2] = {m, y};
      ein_run run;
      memset(&run, 0, sizeof run);
      run.in = &in;
      run.out = out;
      const ein_status st = ein_plan_execute(plan, &run);
      CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
      done = st == EIN_OK && count.calls <= n;
    }
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
  CHECK(done);
}

// Within a budget the outer indices are walked in slices; plans, costs and bounds tell of it.
static void test_plans(void) {
  static const char text[] = "input X[1024,32] : c128\nZ[b,t] = 2*X[b,t]\nW[b,k] = fft[t](Z[b,t])\n"
                             "Y[b] = sum[k](abs(W[b,k]))";
  ein_ctx *ctx = ctx_with(1, NULL);
  ein_graph *g = parse(ctx, text);
  ein_plan_info info[2];
  values v;
  values_make(g, 5, &v);
  for (int small = 0; small < 2; small++) {
    static char out[1 << 16];
    static double y[1024];
    ein_options o;
    ein_plan *plan = NULL;
    ein_run run;
    const void *in = v.data[0];
    void *to = y;
    memset(&o, 0, sizeof o);
    memset(&run, 0, sizeof run);
    run.in = &in;
    run.out = &to;
    if (small) o.memory = info[0].workspace_bytes / 4;
    CHECK(ein_plan_graph(ctx, g, 0, NULL, &o, &plan) == EIN_OK);
    if (plan == NULL) printf("%s\n", ein_ctx_message(ctx));
    CHECK(plan != NULL && ein_plan_execute(plan, &run) == EIN_OK);
    for (int t = 0; t < g->ntensor; t++)
      if (g->tensor[t].role == EIN_ROLE_OUTPUT)
        CHECK(orc_compare(EIN_F64, 1024, y, v.data[t], 1e6));
    ein_plan_info_get(plan, &info[small]);
    ein_plan_explain(plan, out, sizeof out);
    CHECK(small || strstr(out, "operator") != NULL);
    ein_plan_json(plan, out, sizeof out);
    CHECK(small || strstr(out, "\"operator\"") != NULL);
    if (!small) {
      ein_count count;
      memset(&count, 0, sizeof count);
      count.fast_memory = 64;
      CHECK(ein_plan_count(plan, &run, &count) == EIN_ERR_UNSUPPORTED);
    }
    ein_plan_destroy(plan);
  }
  CHECK(info[1].workspace_bytes <= info[0].workspace_bytes / 4);
  ein_bound_desc d;
  ein_bound *b = NULL;
  ein_bound_stmt s;
  memset(&d, 0, sizeof d);
  d.fast_memory = 64;
  CHECK(ein_bound_create(ctx, g, &d, &b) == EIN_OK);
  CHECK(ein_bound_statement(b, 1, &s) && strcmp(s.out, "W") == 0);
  CHECK(s.compulsory == 2 * 1024 * 32 && s.bound == s.compulsory);
  const int64_t n = 32;
  CHECK(fabs(s.flops - 1024 * fft_flops(&n, NULL)) < 1);
  ein_bound_destroy(b);
  values_free(g, &v);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(360);
  const uint64_t seed = argc > 2 ? (uint64_t)strtoull(argv[2], NULL, 10) : 1;
  test_random(count, seed);
  test_halos();
  test_rand();
  test_strides(FEW(100), seed);
  test_built();
  test_refused();
  test_cuts();
  test_fails();
  test_memory();
  test_plans();
  printf("test_operator: %d checks, %d failures, seed %llu\n", checks, failures,
         (unsigned long long)seed);
  return failures > 0;
}
