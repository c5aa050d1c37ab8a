// Groups that go along an index (einsum_cuda.h, "along"): attention and its like under the stub of
// CUDA (cuda_stub.c), whose shared memory is not a number where nothing was stored. Random programs
// of all dtypes of floats are held against the oracle, with what is no number among them; how much
// kernels read of the device's memory is counted; the real NVRTC, where it is there, compiles them.
//
//   test_device_along STUB [programs [seed]]
#define _POSIX_C_SOURCE 200112L
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "check.h"
#include "nvrtc.h"
#include "oracle.h"
#include "util.h"

enum { MOST = 24 };

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void), (*stub_reads)(void), (*stub_writes)(void);

static ein_cuda *device(int tf32) {
  ein_cuda_desc d;
  ein_cuda *cuda = NULL;
  memset(&d, 0, sizeof d);
  d.only = 1;
  d.tf32 = tf32;
  d.driver = d.nvrtc = d.cublas = stub;
  CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK && ein_cuda_ready(cuda));
  return cuda;
}

static ein_ctx *ctx_of(ein_cuda *cuda) {
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  memset(&desc, 0, sizeof desc);
  desc.bare = 1;
  CHECK(ein_cuda_use(cuda, &desc) == EIN_OK);
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  return ctx;
}

static ein_status graph_of(ein_ctx *ctx, const char *text, ein_graph **graph) {
  ein_program_desc d;
  memset(&d, 0, sizeof d);
  d.text = text;
  return ein_graph_parse(ctx, &d, graph);
}

static ein_status plan_of(ein_ctx *ctx, const ein_graph *graph, const char *variant,
                          ein_plan **plan) {
  ein_options o;
  memset(&o, 0, sizeof o);
  o.variant = variant;
  *plan = NULL;
  return ein_plan_graph(ctx, graph, 0, NULL, &o, plan);
}

static int tasks_of(const ein_plan *plan) {
  ein_plan_info info;
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
  return info.ntask;
}

// ---- against the oracle ----

// What is put among inputs: of rows of the bias or of what is folded, and anywhere.
typedef enum odd { NOTHING, ROWS, SOME_LOW, ANY, ODDS } odd;

static void fill(const eini_tensor *t, void *at, int64_t n, uint64_t seed, odd what) {
  const int64_t row = t->rank > 0 ? eini_max64(t->shape[t->rank - 1], 1) : 1;
  orc_random_fill(t->dtype, n, at, seed);
  for (int64_t k = 0; k < n && what != NOTHING; k++) {
    const uint64_t h = orc_hash(seed, (uint64_t)k), r = orc_hash(seed + 1, (uint64_t)(k / row));
    orc_val v = orc_load(t->dtype, at, k);
    if (what == ROWS && (r % 3 == 0 || h % 7 == 0)) v.re = -HUGE_VAL;
    if (what == SOME_LOW && h % 3 == 0) v.re = -HUGE_VAL;
    if (what == ANY && h % 40 == 0) v.re = h % 80 == 0 ? HUGE_VAL : nan("");
    orc_put(t->dtype, at, k, v);
  }
}

// Runs a plan of the graph on the device; 0: something differs, by more than bounds and `loose`.
static int right(const ein_graph *g, const ein_plan *plan, uint64_t seed, odd what,
                 const char *odd_one, double loose) {
  void **data = (void **)orc_alloc(g->ntensor, sizeof *data);
  double **err = (double **)orc_alloc(g->ntensor, sizeof *err);
  const void *in[MOST];
  void *out[MOST], *want[MOST];
  double *bound[MOST];
  int64_t count[MOST];
  ein_dtype type[MOST];
  int nin = 0, nout = 0, same = 1;
  ein_run run;
  memset(&run, 0, sizeof run);
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    const int64_t n = orc_count(x);
    data[t] = orc_alloc(n, 16);
    err[t] = (double *)orc_alloc(n, sizeof(double));
    if (x->role == EIN_ROLE_INPUT) {
      const int is = what != NOTHING && (odd_one == NULL || strcmp(x->name, odd_one) == 0);
      fill(x, data[t], n, seed + (uint64_t)t, is ? what : NOTHING);
      in[nin++] = data[t];
    } else if (x->role == EIN_ROLE_OUTPUT) {
      out[nout] = orc_alloc(n, 16);
      want[nout] = data[t], bound[nout] = err[t], count[nout] = n, type[nout++] = x->dtype;
    }
  }
  run.in = in;
  run.out = (void *const *)out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  orc_one_pass = 1;
  orc_eval_err(g, data, err, NULL);
  for (int o = 0; o < nout; o++) {
    for (int64_t k = 0; k < count[o]; k++)  // sums change as extremes move
      bound[o][k] = 8 * bound[o][k] + loose;
    same &= orc_compare_err(type[o], count[o], out[o], want[o], bound[o]);
    free(out[o]);
  }
  for (int64_t t = 0; t < g->ntensor; t++) {
    free(data[t]);
    free(err[t]);
  }
  free(data);
  free(err);
  return same;
}

// ---- random programs ----

typedef struct program {
  char text[4096];
  const char *odd_one;          // the input that may hold what is no number, or NULL
} program;

static void put(program *p, const char *format, ...) {
  const size_t n = strlen(p->text);
  va_list args;
  va_start(args, format);
  vsnprintf(p->text + n, sizeof p->text - n, format, args);
  va_end(args);
}

// Scores T[.., s, t], with heads or groups of them: products, a bias, a mask, or as they come.
static void put_scores(program *p, const char *type, const char *b, const char *kb,
                       const int64_t *n) {
  const int kind = (int)draw(0, 5);
  char lead[64] = "", klead[64] = "";
  if (b[0] == 'h') snprintf(lead, sizeof lead, "h=%d,", (int)n[0]);
  if (b[0] == 'g') snprintf(lead, sizeof lead, "g=%d,r=%d,", (int)n[0], (int)n[5]);
  if (kb[0] != 0) snprintf(klead, sizeof klead, "%c=%d,", kb[0], (int)n[0]);
  p->odd_one = NULL;
  if (kind == 0) {
    put(p, "input T[%ss=%d,t=%d] : %s\n", lead, (int)n[1], (int)n[2], type);
    p->odd_one = "T";
    return;
  }
  put(p, "input Q[%ss=%d,d=%d], K[%st=%d,d] : %s\n", lead, (int)n[1], (int)n[3], klead, (int)n[2],
      type);
  if (kind == 1) {
    put(p, "input B[s,t] : %s\n", type);
    p->odd_one = "B";
    put(p, "T[%ss,t] = sum[d](Q[%ss,d]*K[%st,d]) + B[s,t]\n", b, b, kb);
  } else if (kind == 2) {
    put(p, "A[%ss,t] = sum[d](Q[%ss,d]*K[%st,d]) / 4\n", b, b, kb);
    put(p, "T[%ss,t] = where(t <= s + %d, A[%ss,t], -inf)\n", b, (int)draw(-1, 2), b);
  } else if (kind == 3) {
    put(p, "T[%ss,t] = sum[d](Q[%ss,d]*K[%st,d]) - 0.125*(t - s)\n", b, b, kb);
  } else if (kind == 4) {
    put(p, "T[%ss,t] = sum[d](K[%st,d]*Q[%ss,d]) * 0.5\n", b, kb, b);
  } else {
    put(p, "input W[%ss,c=%d], Z[t,c] : %s\n", b, (int)draw(2, 9), type);
    put(p, "A[%ss,t] = sum[d](Q[%ss,d]*K[%st,d])\n", b, b, kb);
    put(p, "T[%ss,t] = sum[c](W[%ss,c]*Z[t,c]) + A[%ss,t]\n", b, b, b);
  }
}

// What is made of scores, and outputs.
static void put_ends(program *p, const char *type, const char *b, const char *kb,
                     const int64_t *n) {
  const int kind = (int)draw(0, 9);
  char klead[64] = "";
  if (kb[0] != 0) snprintf(klead, sizeof klead, "%c=%d,", kb[0], (int)n[0]);
  put(p, "input V[%st=%d,e=%d] : %s\n", klead, (int)n[2], (int)n[4], type);
  switch (kind) {
    case 0: case 1:
      put(p, "P[%ss,t] = softmax[t](T[%ss,t])\nY[%ss,e] = sum[t](P[%ss,t]*V[%st,e])\n", b, b, b, b,
          kb);
      break;
    case 2:
      put(p, "C[%ss] = max[t](T[%ss,t])\nE[%ss,t] = exp(T[%ss,t] - C[%ss])\n", b, b, b, b, b);
      put(p, "S[%ss] = sum[t](E[%ss,t])\nY[%ss,e] = sum[t](E[%ss,t]/S[%ss]*V[%st,e])\n", b, b, b, b,
          b, kb);
      break;
    case 3:
      put(p, "C[%ss] = min[t](T[%ss,t])\n", b, b);
      put(p, "E[%ss,t] = exp((C[%ss] - T[%ss,t])*0.5)\n", b, b, b);
      put(p, "S[%ss] = mean[t](E[%ss,t])\nN[%ss,e] = sum[t](E[%ss,t]*V[%st,e])\n", b, b, b, b, kb);
      put(p, "Y[%ss,e] = N[%ss,e] / S[%ss]\n", b, b, b);
      break;
    case 4:
      put(p, "L[%ss] = logsumexp[t](T[%ss,t])\nP[%ss,t] = exp(T[%ss,t] - L[%ss])\n", b, b, b, b, b);
      put(p, "Y[%ss,e] = sum[t](P[%ss,t]*V[%st,e])\n", b, b, kb);
      break;
    case 5:
      put(p, "C[%ss] = max[t](T[%ss,t])\nE[%ss,t] = exp(T[%ss,t] - C[%ss])\n", b, b, b, b, b);
      put(p, "S[%ss] = sum[t](E[%ss,t])\nR[%ss] = 1 / S[%ss]\n", b, b, b, b);
      put(p, "Y[%ss,e] = sum[t](E[%ss,t]*R[%ss]*V[%st,e])\n", b, b, b, kb);
      put(p, "M[%ss] = C[%ss] + log(S[%ss])\noutput M\n", b, b, b);
      break;
    case 6:
      put(p, "E[%ss,t] = relu(T[%ss,t])\nY[%ss,e] = sum[t](E[%ss,t]*V[%st,e])\n", b, b, b, b, kb);
      break;
    case 7:
      put(p, "E[%ss,t] = T[%ss,t]*T[%ss,t]\nS[%ss] = mean[t](E[%ss,t])\n", b, b, b, b, b);
      put(p, "Y[%ss,e] = max[t](T[%ss,t] + V[%st,e]) + S[%ss]\n", b, b, kb, b);
      break;
    case 8:
      put(p, "C[%ss] = max[t](T[%ss,t])\nD[%ss,t] = T[%ss,t] - C[%ss]\n", b, b, b, b, b);
      put(p, "E[%ss,t] = exp(D[%ss,t] + 0.25)\n", b, b);
      put(p, "Y[%ss,e] = sum[t](E[%ss,t]*V[%st,e])\n", b, b, kb);
      break;
    default:
      put(p, "P[%ss,t] = softmax[t](T[%ss,t])\n", b, b);
      put(p, "S[%ss] = sum[t](P[%ss,t]*T[%ss,t])\n", b, b, b);
      put(p, "Y[%ss,e] = sum[t](P[%ss,t]*V[%st,e]) - S[%ss]\n", b, b, kb, b);
      break;
  }
  put(p, "output Y\n");
}

static void write_program(program *p) {
  static const char *const types[] = {"f32", "f32", "f64", "f16", "bf16"};
  static const char *const lead[] = {"", "h,", "g,r,"}, *const keys[] = {"", "h,", "g,"};
  const char *type = types[draw(0, 4)];
  const int b = (int)draw(0, 2);
  const int64_t most[] = {3, 90, 150, 20, 40, 3};
  int64_t n[6];
  for (int i = 0; i < 6; i++)
    n[i] = i == 0 || i == 5 ? draw(1, 3) : chance(7) ? draw(0, 2) : draw(2, most[i]);
  p->text[0] = 0;
  put_scores(p, type, lead[b], keys[b], n);
  put_ends(p, type, lead[b], keys[b], n);
}

static void test_random(ein_ctx *ctx, int programs, uint64_t seed) {
  int along = 0, whole = 0, tried = 0;
  for (int k = 0; k < programs; k++) {
    ein_graph *g = NULL;
    ein_plan *plan;
    program p;
    rng_state = seed + (uint64_t)k;
    write_program(&p);
    const ein_status parsed = graph_of(ctx, p.text, &g);
    if (parsed != EIN_OK && strstr(ein_ctx_message(ctx), "mean of nothing") != NULL) continue;
    if (parsed != EIN_OK) {
      printf("seed %llu: %s\n%s\n", (unsigned long long)seed + (unsigned)k, ein_ctx_message(ctx),
             p.text);
      CHECK(parsed == EIN_OK);
      continue;
    }
    ein_status st = plan_of(ctx, g, "cuda:along", &plan);
    tried++;
    along += st == EIN_OK;
    if (st == EIN_OK) whole += tasks_of(plan) == 1;
    else st = plan_of(ctx, g, NULL, &plan);  // nothing to go along
    CHECK(st == EIN_OK);
    const odd what = p.odd_one == NULL ? NOTHING : (odd)draw(0, ODDS - 1);
    const int same = st != EIN_OK || right(g, plan, rng(), what, p.odd_one, 0);
    CHECK(same);
    if (!same)
      printf("seed %llu, odd %d:\n%s\n", (unsigned long long)seed + (unsigned)k, what, p.text);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
  }
  printf("%d of %d programs went along, %d in one kernel\n", along, tried, whole);
  CHECK(along * 4 > tried * 3 && whole * 2 > tried);
}

// ---- what moves ----

// A plan of a program with a variant; *reads and *writes: elements of a run.
static void moved(ein_ctx *ctx, const char *text, const char *variant, long *reads, long *writes) {
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  static char said[1 << 16];
  CHECK(graph_of(ctx, text, &g) == EIN_OK && plan_of(ctx, g, variant, &plan) == EIN_OK);
  CHECK(tasks_of(plan) == 1);
  (void)ein_plan_explain(plan, said, sizeof said);
  CHECK(strstr(said, variant + 5) != NULL && strstr(said, "in a block's memory") != NULL);
  if (strcmp(variant, "cuda:along") == 0) CHECK(strstr(said, " along ") != NULL);
  (void)stub_reads();
  (void)stub_writes();
  CHECK(right(g, plan, 7, NOTHING, NULL, 0));
  *reads = stub_reads();
  *writes = stub_writes();
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
}

static long up(long n, long by) { return (n + by - 1) / by; }

// Queries come once, keys and values once for each block of rows; what is stored is the result.
static void test_moves(ein_ctx *ctx, long h, long s, long t, long d, long e, long block) {
  char text[1024];
  long reads[2], writes[2];
  snprintf(text, sizeof text,
           "input Q[h=%ld,s=%ld,d=%ld], K[h,t=%ld,d], V[h,t,e=%ld] : f32\n"
           "T[h,s,t] = sum[d](Q[h,s,d]*K[h,t,d]) / sqrt(size(d))\nP[h,s,t] = softmax[t](T[h,s,t])\n"
           "Y[h,s,e] = sum[t](P[h,s,t]*V[h,t,e])\noutput Y", h, s, d, t, e);
  moved(ctx, text, "cuda:along", &reads[0], &writes[0]);
  moved(ctx, text, "cuda:group", &reads[1], &writes[1]);
  CHECK(reads[0] == h * s * d + h * up(s, block) * t * (d + e));
  CHECK(writes[0] == h * s * e && writes[1] == h * s * e);
  printf("attention of %ld x %ld, %ld keys: %ld elements read, %ld in groups of whole rows\n", h, s,
         t, reads[0], reads[1]);
  CHECK(reads[0] * 10 < reads[1]);
}

// Rows of no end need no more memory than short ones: what is held does not grow.
static void test_long(ein_ctx *ctx) {
  static const char *const text =
      "input Q[s=20,d=4], K[t=20000,d], V[t,e=8] : f32\n"
      "T[s,t] = sum[d](Q[s,d]*K[t,d])\nP[s,t] = softmax[t](T[s,t])\n"
      "Y[s,e] = sum[t](P[s,t]*V[t,e])\noutput Y";
  ein_graph *g = NULL;
  ein_plan *plan;
  CHECK(graph_of(ctx, text, &g) == EIN_OK);
  const ein_status st = plan_of(ctx, g, "cuda:group", &plan);  // of some of the statements, perhaps
  CHECK(st == EIN_ERR_ARGUMENT || tasks_of(plan) > 1);
  ein_plan_destroy(plan);
  CHECK(plan_of(ctx, g, "cuda:along", &plan) == EIN_OK && tasks_of(plan) == 1);
  CHECK(right(g, plan, 3, NOTHING, NULL, 0));
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
}

// ---- what has no rule ----

// Values that would need the end of the way before it: these are no group along t.
static void test_none(ein_ctx *ctx) {
  static const char *const texts[] = {
      // by the mean, by an extreme of other values, by one that is on the wrong side,
      "C[s] = mean[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nY[s,e] = sum[t](E[s,t]*V[t,e])\n",
      "C[s] = max[t](T[s,t]*2)\nE[s,t] = exp(T[s,t] - C[s])\nY[s,e] = sum[t](E[s,t]*V[t,e])\n",
      "C[s] = min[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nY[s,e] = sum[t](E[s,t]*V[t,e])\n",
      // in another function, a fold that is no sum, squared differences, values that are stored.
      "C[s] = max[t](T[s,t])\nE[s,t] = tanh(T[s,t] - C[s])\nY[s,e] = sum[t](E[s,t]*V[t,e])\n",
      "C[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nY[s,e] = max[t](E[s,t]*V[t,e])\n",
      "C[s] = mean[t](T[s,t])\nE[s,t] = T[s,t] - C[s]\nY[s,e] = sum[t](E[s,t]*E[s,t]*V[t,e])\n",
      ("C[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nY[s,e] = sum[t](E[s,t]*V[t,e])\n"
       "output E\n")};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    char text[1024];
    ein_graph *g = NULL;
    ein_plan *plan;
    snprintf(text, sizeof text, "input Q[s=40,d=8], K[t=70,d], V[t,e=12] : f64\n"
                                "T[s,t] = sum[d](Q[s,d]*K[t,d])\n%soutput Y\n", texts[k]);
    CHECK(graph_of(ctx, text, &g) == EIN_OK);
    ein_status st = plan_of(ctx, g, "cuda:along", &plan);
    // Fewer statements may still go along: then it is not one kernel.
    CHECK(st == EIN_ERR_ARGUMENT || tasks_of(plan) > 1);
    if (st != EIN_OK) st = plan_of(ctx, g, NULL, &plan);
    CHECK(st == EIN_OK && right(g, plan, k, NOTHING, NULL, 0));
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
  }
}

// Rows of which nothing is left are NaN, whatever is made of them.
static void test_rows(ein_ctx *ctx) {
  static const char *const text =
      "input A[s=20,t=70], B[t], V[t,e=9] : f32\nT[s,t] = A[s,t] + B[t]\n"
      "C[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t] - C[s])\nS[s] = sum[t](E[s,t])\n"
      "Y[s,e] = sum[t](E[s,t]*V[t,e])\noutput Y, S";
  ein_graph *g = NULL;
  ein_plan *plan;
  ein_run run;
  static float t[20 * 70], b[70], v[70 * 9], y[20 * 9], s[20];
  const void *in[] = {t, b, v};
  void *out[] = {s, y};  // as they are made
  for (int i = 0; i < 20 * 70; i++) t[i] = (float)(i % 7);
  for (int i = 0; i < 70 * 9; i++) v[i] = 1;
  for (int i = 0; i < 70; i++) {
    t[i] = -INFINITY;                                    // row 0: all of it,
    t[70 + i] = i < 69 ? -INFINITY : 3;                  // 1: all but the last, 2: but the first,
    t[140 + i] = i > 0 ? -INFINITY : 3;
    t[210 + i] = i == 40 ? INFINITY : 1;                 // 3: an infinity, 4: a NaN
    t[280 + i] = i == 2 ? NAN : 1;
  }
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  CHECK(graph_of(ctx, text, &g) == EIN_OK && plan_of(ctx, g, "cuda:along", &plan) == EIN_OK);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  for (int r = 0; r < 20; r++) {
    const int none = r == 0 || r == 3 || r == 4;
    CHECK(none ? s[r] != s[r] : s[r] >= 1);
    for (int e = 0; e < 9; e++) CHECK(none ? y[9 * r + e] != y[9 * r + e] : y[9 * r + e] >= 1);
  }
  CHECK(s[1] <= 1 && s[2] <= 1);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
}

// ---- tensor cores ----

static int has(const ein_cuda *cuda, const char *what) {
  int n = 0;
  for (int i = 0; ein_cuda_source(cuda, i) != NULL; i++)
    n += strstr(ein_cuda_source(cuda, i), what) != NULL;
  return n > 0;
}

// Attention on a device of an architecture; sizes leave fragments that are not full.
static void test_cores(const char *arch, int tf32, const char *type, const char *name) {
  char text[1024], call[64];
  setenv("STUB_ARCH", arch, 1);
  ein_cuda *cuda = device(tf32);
  ein_ctx *ctx = ctx_of(cuda);
  snprintf(call, sizeof call, "  ein_mma_%s(", name);
  for (int k = 0; k < 3; k++) {
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    rng_state = (uint64_t)k + 1;
    snprintf(text, sizeof text,
             "input Q[h=2,s=%d,d=%d], K[h,t=%d,d], V[h,t,e=%d] : %s\n"
             "T[h,s,t] = sum[d](Q[h,s,d]*K[h,t,d])\nP[h,s,t] = softmax[t](T[h,s,t])\n"
             "Y[h,s,e] = sum[t](P[h,s,t]*V[h,t,e])\noutput Y", (int)draw(4, 80),
             (int)draw(1, 40), (int)draw(9, 90), (int)draw(8, 50), type);
    CHECK(graph_of(ctx, text, &g) == EIN_OK && plan_of(ctx, g, "cuda:along", &plan) == EIN_OK);
    const int same = right(g, plan, (uint64_t)k, NOTHING, NULL, tf32 ? 4e-3 : 0);
    CHECK(same);
    if (!same) printf("sm_%s, %s:\n%s\n", arch, name, text);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
  }
  CHECK(has(cuda, call));
  compile_sources(cuda, NULL, 8);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  unsetenv("STUB_ARCH");
}

static void test_failures(void) {
  static const char *const text =
      "input T[s=20,t=70], V[t,e=9] : f32\nP[s,t] = softmax[t](T[s,t])\n"
      "Y[s,e] = sum[t](P[s,t]*V[t,e])\noutput Y";
  for (long n = 0; n < 200; n++) {
    ein_cuda *cuda = device(0);
    ein_ctx *ctx = ctx_of(cuda);
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    ein_run run;
    static float t[20 * 70], v[70 * 9], y[20 * 9];
    const void *in[] = {t, v};
    void *out[] = {y};
    CHECK(graph_of(ctx, text, &g) == EIN_OK && plan_of(ctx, g, "cuda:along", &plan) == EIN_OK);
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    const long before = stub_live(), from = stub_calls();
    stub_fail(n, n % 2 ? 2 : 1);
    const ein_status st = ein_plan_execute(plan, &run);
    const int hit = stub_calls() - from > n;
    stub_fail(-1, 0);
    CHECK(hit ? st == EIN_ERR_NO_MEMORY || st == EIN_ERR_INTERNAL : st == EIN_OK);
    CHECK(stub_live() == before + ein_cuda_counts_get(cuda).compiled);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (!hit) break;
  }
}

int main(int argc, char **argv) {
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  const int programs = argc > 2 ? atoi(argv[2]) : 40 / fewer();
  const uint64_t seed = argc > 3 ? (uint64_t)strtoull(argv[3], NULL, 10) : 1;
  void *h = dlopen(stub, RTLD_NOW);
  if (h == NULL) {
    printf("no stub: %s\n", dlerror());
    return 1;
  }
  *(void **)&stub_fail = dlsym(h, "stub_fail");
  *(void **)&stub_calls = dlsym(h, "stub_calls");
  *(void **)&stub_live = dlsym(h, "stub_live");
  *(void **)&stub_reads = dlsym(h, "stub_reads");
  *(void **)&stub_writes = dlsym(h, "stub_writes");
  ein_cuda *cuda = device(0);
  ein_ctx *ctx = ctx_of(cuda);
  test_moves(ctx, 2, 150, 130, 16, 24, 64);
  test_moves(ctx, 1, 64, 64, 64, 64, 64);
  test_long(ctx);
  test_none(ctx);
  test_rows(ctx);
  if (programs > 0) test_random(ctx, programs, seed);
  compile_sources(cuda, NULL, 24);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  CHECK(stub_live() == 0);
  test_cores("75", 0, "f16", "f16_8");
  test_cores("90", 0, "f16", "f16");
  test_cores("80", 0, "bf16", "bf16");
  test_cores("80", 0, "f64", "f64");
  test_cores("90", 1, "f32", "tf32");
  test_failures();
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
