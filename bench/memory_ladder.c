// Programs under shrinking memory budgets (ein_options.memory): time against memory.
//
//   cc -std=c99 -O3 -march=native bench/memory_ladder.c -lm -pthread -o memory_ladder
//   ./memory_ladder [S [THREADS [attention | decoder]]]
//        attention over S tokens (default 16384), and a decoder layer over S/8; 0: all cores
//
// The budgets are parts of the free peak: what the program takes as statements one after another,
// each intermediate stored. Bytes are counted by the allocator, from create to destroy, the run
// included. "statements" plans like that; "groups" lets the planner put statements into one loop
// nest first. Results are compared with the free run's.
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void *user) {
  (void)user;
#if defined(CLOCK_MONOTONIC)
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
  return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static size_t live, top;

static void *count_alloc(size_t size, size_t align, void *user) {
  (void)user;
  void *p = eini_default_alloc(size, align, NULL);
  if (p == NULL) return NULL;
  live += size;
  if (live > top) top = live;
  return p;
}

static void count_free(void *p, size_t size, void *user) {
  (void)user;
  if (p != NULL) live -= size;
  eini_default_free(p, size, NULL);
}

static const char attention[] =
    "input Q[s=%d,d=64], K[t=%d,d], V[t,e=64] : f32\n"
    "T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "C[s]   = max[t](T[s,t])\n"
    "E[s,t] = exp(T[s,t] - C[s])\n"
    "S[s]   = sum[t](E[s,t])\n"
    "Y[s,e] = sum[t](E[s,t] / S[s] * V[t,e])\n"
    "output Y\n";

// A decoder layer of width 512 with 8 heads: norms, causal attention, gated feed-forward.
static const char decoder[] =
    "input X[s=%d,a=512], G[a], WQ[a,h=8,d=64], WK[a,h,d], WV[a,h,d], WO[h,d,a], G2[a],"
    " W1[a,f=1536], W3[a,f], W2[f,a] : f32\n"
    "N[s,a] = rmsnorm[a](X[s,a], G[a])\n"
    "Q[h,s,d] = sum[a](N[s,a]*WQ[a,h,d])\n"
    "K[h,s,d] = sum[a](N[s,a]*WK[a,h,d])\n"
    "V[h,s,d] = sum[a](N[s,a]*WV[a,h,d])\n"
    "T[h,s,t] = sum[d](Q[h,s,d]*K[h,t,d]) * 0.125\n"
    "M[h,s,t] = where(t<=s, T[h,s,t], -inf)\n"
    "P[h,s,t] = softmax[t](M[h,s,t])\n"
    "O[h,s,d] = sum[t](P[h,s,t]*V[h,t,d])\n"
    "R[s,a] = X[s,a] + sum[h,d](O[h,s,d]*WO[h,d,a])\n"
    "L[s,a] = rmsnorm[a](R[s,a], G2[a])\n"
    "F[s,f] = silu(sum[a](L[s,a]*W1[a,f]))\n"
    "U[s,f] = sum[a](L[s,a]*W3[a,f])\n"
    "Y[s,a] = R[s,a] + sum[f](F[s,f]*U[s,f]*W2[f,a])\n"
    "output Y\n";

typedef struct bound {
  const void *in[16];
  float *out, *want;
  int64_t nout;
} bound;

static float *random_floats(int64_t n, uint64_t seed, double scale) {
  float *p = (float *)malloc((size_t)n * sizeof *p);
  if (p == NULL) exit(2);
  for (int64_t k = 0; k < n; k++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    p[k] = (float)(((double)(seed >> 40) / (1 << 24) - 0.5) * scale);
  }
  return p;
}

static int64_t count_of(const ein_tensor_info *t) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  return n;
}

static void bind_data(const ein_graph *g, bound *b) {
  ein_tensor_info t;
  int in = 0;
  memset(b, 0, sizeof *b);
  for (int i = 0; ein_graph_tensor(g, i, &t); i++) {
    double scale = t.rank == 3 || t.name[0] == 'W' ? 0.15 : 2;
    if (t.role == EIN_ROLE_INPUT)
      b->in[in++] = random_floats(count_of(&t), 7 + (uint64_t)i, scale);
    if (t.role != EIN_ROLE_OUTPUT) continue;
    b->nout = count_of(&t);
    b->out = random_floats(b->nout, 1, 1);
    b->want = random_floats(b->nout, 1, 1);
  }
}

// One step: bytes and seconds of the best of `runs`; the status of planning.
static ein_status step(ein_ctx *ctx, const ein_graph *g, bound *b, size_t memory, int runs,
                       ein_plan_info *info, size_t *least, double *seconds, double *planning,
                       char *loops, size_t room) {
  ein_options d;
  ein_plan *plan;
  ein_run run;
  ein_loop_info loop;
  void *out[1];
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.memory = memory > 0 ? memory : SIZE_MAX;  // counted, and never refused
  d.least = least;
  top = live;
  double start = now(NULL);
  ein_status st = ein_plan_graph(ctx, g, 0, NULL, &d, &plan);
  *planning = now(NULL) - start;
  if (st != EIN_OK) return st;
  ein_plan_info_get(plan, info);
  out[0] = b->out;
  run.in = b->in;
  run.out = out;
  *seconds = 1e30;
  for (int k = 0; k < runs && st == EIN_OK; k++) {
    start = now(NULL);
    st = ein_plan_execute(plan, &run);
    double t = now(NULL) - start;
    if (t < *seconds) *seconds = t;
  }
  loops[0] = 0;
  for (int i = 0; ein_plan_loop(plan, i, &loop); i++) {
    size_t at = strlen(loops);
    snprintf(loops + at, room - at, "%s%d: %s by %lld", i > 0 ? ", " : "", loop.region + 1,
             loop.index, (long long)loop.block);
  }
  ein_plan_destroy(plan);
  return st;
}

// *free_peak is set by the first step of the first ladder.
static int ladder(ein_ctx *ctx, const ein_graph *g, bound *b, const char *how, size_t *free_peak,
                  int runs) {
  static const int percent[] = {0, 100, 50, 25, 10, 5, 2, 1};
  for (size_t k = 0; k < sizeof percent / sizeof *percent; k++) {
    ein_plan_info info;
    memset(&info, 0, sizeof info);
    size_t before = live, least = 0;
    size_t memory = (size_t)((double)*free_peak / 100 * percent[k]);
    double seconds, planning, error = 0;
    char loops[256];
    ein_status st = step(ctx, g, b, memory, runs, &info, &least, &seconds, &planning, loops,
                         sizeof loops);
    if (st == EIN_ERR_TOO_LARGE) {
      printf("%-10s %4d%% %14.2f MB  does not fit: the least is %.2f MB\n", how, percent[k],
             (double)memory * 1e-6, (double)least * 1e-6);
      continue;
    }
    if (st != EIN_OK) {
      printf("%s: %s\n", ein_status_name(st), ein_ctx_message(ctx));
      return 1;
    }
    if (*free_peak == 0) *free_peak = info.peak_bytes;
    for (int64_t i = 0; i < b->nout; i++) {
      double e = (double)b->out[i] - (double)b->want[i];
      if (percent[k] > 0 && (e < 0 ? -e : e) > error) error = e < 0 ? -e : e;
    }
    if (percent[k] == 0) memcpy(b->want, b->out, (size_t)b->nout * sizeof *b->out);
    printf("%-10s %4d%% %14.2f MB  peak %10.2f MB%s  %8.3f s  plan %6.1f ms  %6lld slices "
           "(%s)  error %.1e\n",
           how, percent[k], (double)memory * 1e-6, (double)(top - before) * 1e-6,
           memory > 0 && top - before > memory ? " OVER" : "", seconds, planning * 1e3,
           (long long)info.nslice, loops, error);
    if (memory > 0 && top - before > memory) return 1;
  }
  return 0;
}

static int climb(const char *name, const char *text, int s, int threads, int runs) {
  char program[2048];
  ein_cpu_desc cd;
  ein_cpu *cpu;
  ein_kernels plain;
  const ein_kernels *list[1];
  size_t free_peak = 0;
  bound b;
  memset(&b, 0, sizeof b);
  memset(&cd, 0, sizeof cd);
  cd.threads = threads;
  snprintf(program, sizeof program, text, s, s);
  printf("%s, s = %d\n", name, s);
  for (int groups = 0; groups < 2; groups++) {
    ein_ctx_desc d;
    ein_program_desc pd;
    ein_ctx *ctx;
    ein_graph *g;
    memset(&d, 0, sizeof d);
    memset(&pd, 0, sizeof pd);
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    if (ein_cpu_create(&cd, NULL, &cpu) != EIN_OK || ein_cpu_use(cpu, &d) != EIN_OK) return 1;
    plain = *d.use[0];
    memset(&plain.rates, 0, sizeof plain.rates);  // without rates nothing is grouped
    list[0] = &plain;
    if (!groups) d.use[0] = list[0];
    if (ein_ctx_create(&d, &ctx) != EIN_OK) return 1;
    pd.text = program;
    if (ein_graph_parse(ctx, &pd, &g) != EIN_OK) {
      printf("%s\n", ein_ctx_message(ctx));
      return 1;
    }
    if (!groups) bind_data(g, &b);
    if (ladder(ctx, g, &b, groups ? "groups" : "statements", &free_peak, runs)) return 1;
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  for (int i = 0; i < 16; i++) {
    union { const void *c; void *v; } u;
    u.c = b.in[i];
    free(u.v);
  }
  free(b.out);
  free(b.want);
  return 0;
}

int main(int argc, char **argv) {
  int s = argc > 1 ? atoi(argv[1]) : 16384, threads = argc > 2 ? atoi(argv[2]) : 0;
  const char *which = argc > 3 ? argv[3] : "";
  if (s < 8 || threads < 0) return 2;
  if (which[0] != 'd' && climb("attention, d = e = 64, f32", attention, s, threads, 3)) return 1;
  if (which[0] == 'a') return 0;
  return climb("decoder layer, width 512, 8 heads, f32", decoder, s / 8, threads, 3);
}
