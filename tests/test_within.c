// Schedules that fit the memory of a place: products against the best of six algorithms, from 4 to
// 64 places, with the memory that each algorithm takes and without a limit; random programs on
// places that copy, against the oracle, with what their steps allocate.
//
//   test_within [programs [seed [step]]]    step 1: every number of places, 90 s; default 3
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "schedules.h"
#include "rooms.h"

// What a schedule moves, and the most it takes at a place.
typedef struct figures {
  double bytes, peak;
} figures;

static figures figures_of(const ein_graph *g, const ein_schedule *s, int64_t places) {
  figures f = {0, 0};
  double *place = (double *)calloc((size_t)places, sizeof *place);
  CHECK(ein_schedule_peaks(ctx, s, EIN_INPUTS_HELD, NULL, place) == EIN_OK);
  for (int64_t q = 0; q < places; q++) f.peak = fmax(f.peak, place[q]);
  for (int k = 0; k < ein_graph_statements(g); k++) {
    ein_schedule_info info;
    CHECK(ein_schedule_cost(ctx, s, k, NULL, NULL, &info) == EIN_OK);
    f.bytes += (double)info.bytes;
  }
  free(place);
  return f;
}

// ---- products against six algorithms ----

enum { ALGORITHMS = 6, COSMA = 5 };

static const char *const algorithm[ALGORITHMS] = {"cannon", "pumma",     "summa",
                                                  "johnson", "solomonik", "cosma"};

static figures algorithm_of(const ein_graph *g, int which, int p) {
  ein_schedule *s = schedule_of(g, read_file(algorithm[which]), p);
  figures f = figures_of(g, s, p);
  ein_schedule_destroy(s);
  return f;
}

// COSMA's grid is fitted to the shape: the one of all that moves the least within a memory.
static figures cosma_of(const ein_graph *g, int p, double memory) {
  figures best = {INFINITY, INFINITY};
  const char *rest = strchr(strstr(read_file("cosma"), "machine"), '\n');
  for (int z = 1; z <= p; z++) {
    for (int x = 1; x * z <= p; x++) {
      const int y = p / z / x;
      char text[2048];
      if (x * y * z < p) continue;
      snprintf(text, sizeof text, "machine gz=%d, gx=%d, gy=%d%s", z, x, y, rest);
      ein_schedule *s = schedule_of(g, text, p);
      const figures f = figures_of(g, s, p);
      ein_schedule_destroy(s);
      if (f.peak <= memory && f.bytes < best.bytes) best = f;
    }
  }
  return best;
}

// The answer: a decomposition into p tasks where one fits, or a schedule that moves less.
static figures answer_of(const ein_graph *g, int p, double memory, int npin,
                         const char *const *pin) {
  figures f = {INFINITY, INFINITY};
  ein_decompose_desc d;
  ein_machine m;
  ein_decomposition *how = NULL;
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  d.p = p;
  d.cost = EIN_COST_BYTES;
  d.machine = &m;
  d.pin = pin;
  d.npin = npin;
  m.memory = memory;
  const ein_status st = ein_decompose(ctx, g, &d, &how);
  CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
  if (st == EIN_OK) {
    ein_sim_info sim;
    CHECK(ein_simulate(ctx, g, how, NULL, &sim) == EIN_OK);
    f.bytes = sim.join + sim.agg;
    f.peak = sim.peak_bytes;
    ein_decomposition_destroy(how);
    if (f.bytes <= 0) return f;
  }
  ein_schedule *s = NULL;
  if (ein_schedule_fit(ctx, g, &d, &s) != EIN_OK) return f;
  const figures t = figures_of(g, s, p);
  ein_schedule_destroy(s);
  return t.bytes < f.bytes ? t : f;
}

static int worse, asked;

static void test_product(int p, int m, int n, int k) {
  char text[160];
  figures of[ALGORITHMS];
  snprintf(text, sizeof text, "input A[m=%d,k=%d], B[k,n=%d] : f64\nC[i,j] = A[i,k] * B[k,j]\n",
           m, k, n);
  ein_graph *g = parse(text);
  for (int a = 0; a < ALGORITHMS; a++) of[a] = algorithm_of(g, a, p);
  for (int a = 0; a <= ALGORITHMS; a++) {
    const double memory = a < ALGORITHMS ? of[a].peak : 0;
    double best = INFINITY;
    for (int b = 0; b < ALGORITHMS; b++)
      if (memory <= 0 || of[b].peak <= memory) best = fmin(best, of[b].bytes);
    best = fmin(best, cosma_of(g, p, memory > 0 ? memory : INFINITY).bytes);
    const figures f = answer_of(g, p, memory, 0, NULL);
    asked++;
    const int good = f.bytes <= best && (memory <= 0 || f.peak <= memory);
    if (!good) {
      worse++;
      printf("p=%d %dx%dx%d memory %.0f (%s): %.0f bytes, %.0f at a place; an algorithm %.0f\n", p,
             m, n, k, memory, a < ALGORITHMS ? algorithm[a] : "none", f.bytes, f.peak, best);
    }
    CHECK(good);
  }
  ein_graph_destroy(g);
}

static void test_products(int step) {
  static const int size[][3] = {{64, 64, 64}, {256, 32, 32}, {32, 32, 256}, {128, 256, 16}};
  for (int p = 4; p <= 64; p += step)
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
      test_product(p, size[i][0], size[i][1], size[i][2]);
}

// ---- programs, run ----

enum { TENSORS = 16 };

static const char *const programs[] = {
    "input A[i=%d,k=%d], B[k,j=%d] : f64\nC[i,j] = A[i,k] * B[k,j]\n",
    "input A[i=%d,k=%d], B[k,j=%d] : f32\nC[i,j] = A[i,k] * B[k,j]\n",
    "input A[i=%d,k=%d], B[k,j=%d], D[j,l=%d] : f32\nT[i,j] = A[i,k] * B[k,j]\n"
    "C[i,l] = T[i,j] * D[j,l]\noutput C\n",
    "input Q[s=%d,d=%d], K[t=%d,d], V[t,e=%d] : f64\nT[s,t] = sum[d](Q[s,d]*K[t,d])\n"
    "M[s] = max[t](T[s,t])\nE[s,t] = exp(T[s,t]-M[s])\nS[s] = sum[t](E[s,t])\n"
    "Y[s,e] = sum[t](E[s,t]/S[s]*V[t,e])\noutput Y\n",
    "input X[i=%d,j=%d,k=%d], A[j,a=%d], B[k,a] : f64\nD[i,a] = X[i,j,k]*A[j,a]*B[k,a]\n",
    "input X[i=%d,f=%d], W[f,h=%d], U[h,f] : f32\nH[i,h] = relu(sum[f](X[i,f]*W[f,h]))\n"
    "Y[i,f] = sum[h](H[i,h]*U[h,f])\nZ[i,f] = X[i,f] + Y[i,f]\noutput Z\n",
    "input A[i=%d,k=%d], B[k,j=%d] : i32\nC[i,j] = max[k](A[i,k] + B[k,j])\n",
    "input A[i=%d,k=%d], B[k,j=%d] : f64\nT[i,j] = A[i,k] * B[k,j]\nG[i,l] = T[i,j] * T[l,j]\n"
    "output G\n",
    "input X[n=%d,m=%d], F[r=%d] : f64\nY[n,h] = sum[r](X[n,h+r] * F[r])\n"
    "Z[h] = sum[n](Y[n,h])\noutput Z\n",
    "input A[i=%d,k=%d], B[k,j=%d] : f64\nC[i,j] = argmax[k](A[i,k] * B[k,j])\n",
    "input A[i=%d,k=%d], B[k,j=%d] : f64\nC[i,j] = var[k](A[i,k] * B[k,j])\n"
    "M[j] = mean[i](C[i,j])\noutput M\n",
    "input X[i=%d,k=%d,l=%d], b[k] : f32\nC[i] = argmin[k,l](X[i,k,l] + b[k])\n"
    "L[i] = logsumexp[k,l](X[i,k,l] - b[k])\noutput C, L\n"};

enum { PROGRAMS = sizeof programs / sizeof *programs };

static struct { size_t live, most; } counted;

static void *measured_alloc(size_t size, size_t align, void *user) {
  void *p = eini_default_alloc(size, align, user);
  if (p == NULL) return NULL;
  counted.live += size;
  if (counted.live > counted.most) counted.most = counted.live;
  return p;
}

static void measured_free(void *p, size_t size, void *user) {
  if (p != NULL) counted.live -= size;
  eini_default_free(p, size, user);
}

static int ran, streamed, stated;  // stated: with partial results that are states

// Runs a schedule on places that copy: the oracle's results; boxes of steps as they were counted;
// what places take is what they were said to have, and messages; a run allocates no more than that
// and its workspaces.
static void run_schedule(const ein_graph *g, const ein_schedule *s, int places, double limit) {
  void *data[TENSORS], *out[TENSORS], *result[TENSORS];
  double *err[TENSORS];
  const void *in[TENSORS];
  int nin = 0, nout = 0, ntensor = (int)g->ntensor;
  for (int t = 0; t < ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    data[t] = orc_alloc(orc_count(e), orc_size(e->dtype));
    result[t] = orc_alloc(orc_count(e), orc_size(e->dtype));
    err[t] = (double *)orc_alloc(orc_count(e), sizeof(double));
    if (e->role == EIN_ROLE_INPUT) {
      orc_random_fill(e->dtype, orc_count(e), data[t], 3 + (uint64_t)t);
      in[nin++] = data[t];
    }
    if (e->role == EIN_ROLE_OUTPUT) out[nout++] = result[t];
  }
  orc_eval_err(g, data, err, NULL);
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *d;
  ein_dist_info info;
  ein_run run;
  CHECK(ein_fabric_copying(ctx, places, &f) == EIN_OK);
  memset(&how, 0, sizeof how);
  how.fabric = &f;
  how.schedule = s;
  const ein_status st = ein_dist_create(ctx, g, &how, &d);
  if (st != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  CHECK(st == EIN_OK && ein_dist_info_get(d, &info) == EIN_OK);
  for (int q = 0; q < places; q++) CHECK((double)ein_dist_peak(d, q) <= limit);
  check_rooms(s, d, 0);
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  const size_t before = counted.most = counted.live;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  const double took = (double)(counted.most - before);
  CHECK(took <= (double)info.workspace_bytes + 65536);  // and what handing inputs over takes
  for (int t = 0; t < ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    if (e->role == EIN_ROLE_OUTPUT)
      CHECK(orc_compare_err(e->dtype, orc_count(e), result[t], data[t], err[t]));
    free(data[t]);
    free(result[t]);
    free(err[t]);
  }
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ran++;
}

// A program with less and less memory, down to what is said to be the least, and less than that.
static void test_program(const char *text, int places) {
  ein_graph *g = parse(text);
  ein_decompose_desc d;
  ein_machine m;
  ein_schedule *s = NULL;
  double was = 0;
  if (g == NULL) return;
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  d.p = places;
  d.machine = &m;
  for (int k = 0; k < 5; k++) {
    m.memory = was;
    const ein_status st = ein_schedule_fit(ctx, g, &d, &s);
    if (st == EIN_ERR_TOO_LARGE) {
      const char *says = strstr(ein_ctx_message(ctx), "bytes; ");
      CHECK(says != NULL && was > 0);
      if (says == NULL) break;
      m.memory = atof(says + 7);  // and that is enough
      CHECK(m.memory > was && ein_schedule_fit(ctx, g, &d, &s) == EIN_OK);
    } else {
      CHECK(st == EIN_OK);
    }
    if (s == NULL) break;
    const figures f = figures_of(g, s, places);
    CHECK(m.memory <= 0 || f.peak <= m.memory);
    run_schedule(g, s, places, m.memory > 0 ? m.memory : INFINITY);
    for (int i = 0; i < g->nstmt; i++) {
      streamed += s->nest[i].steps > 1;
      stated += s->nest[i].steps > 1 && eini_loops_states(&s->nest[i]);
    }
    ein_schedule_destroy(s);
    s = NULL;
    if (st != EIN_OK) break;
    was = floor(f.peak * 0.75);
  }
  ein_graph_destroy(g);
}

static void test_programs(int count) {
  for (int n = 0; n < count; n++) {
    char text[512];
    int e[4];
    for (int i = 0; i < 4; i++) e[i] = (int)(n % 10 == 0 ? draw(60, 120) : draw(3, 24));
    if (n % PROGRAMS == 8) e[1] += 8, e[2] = (int)draw(1, 4);
    snprintf(text, sizeof text, programs[n % PROGRAMS], e[0], e[1], e[2], e[3]);
    test_program(text, (int)draw(1, 12));
  }
}

// Allocations that fail are a status, and nothing leaks.
static void test_out_of_memory(void) {
  counter c = {0, -1, 0};
  const ein_allocator al = {count_alloc, count_free, &c};
  ein_graph *g = parse("input A[i=4,k=4], B[k,j=4] : f64\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_ctx_desc how;
  ein_ctx *of;
  ein_decompose_desc d;
  ein_machine m;
  memset(&how, 0, sizeof how);
  memset(&d, 0, sizeof d);
  memset(&m, 0, sizeof m);
  how.allocator = al;
  d.p = 2;
  d.machine = &m;
  m.memory = 300;
  CHECK(ein_ctx_create(&how, &of) == EIN_OK);
  ein_status st = EIN_ERR_NO_MEMORY;
  for (long n = 0; st == EIN_ERR_NO_MEMORY; n += 1 + n / 64) {
    ein_schedule *s = NULL;
    c.calls = 0;
    c.fail_at = n;
    const long before = c.live;
    st = ein_schedule_fit(of, g, &d, &s);
    CHECK((st == EIN_OK || st == EIN_ERR_NO_MEMORY) && (s != NULL) == (st == EIN_OK));
    ein_schedule_destroy(s);
    CHECK(c.live <= before + 1);  // a message may stay in the ctx
  }
  CHECK(st == EIN_OK);
  ein_ctx_destroy(of);
  CHECK(c.live == 0);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(48);
  const unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  const ein_allocator al = {measured_alloc, measured_free, NULL};
  ein_ctx_desc how;
  printf("seed %u\n", seed);
  rng_state = seed;
  memset(&how, 0, sizeof how);
  how.allocator = al;
  CHECK(ein_ctx_create(&how, &ctx) == EIN_OK);
  test_out_of_memory();
  test_programs(count);
  printf("%d runs, %d statements in steps, %d with states\n", ran, streamed, stated);
  CHECK(stated > 0 || count < 45);
  test_products(argc > 3 ? atoi(argv[3]) : 3 * FEW_STEP);
  printf("%d products asked, %d worse\n", asked, worse);
  ein_ctx_destroy(ctx);
  CHECK(counted.live == 0);
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
