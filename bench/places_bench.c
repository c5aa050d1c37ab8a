// Programs on the threads fabric against the ordinary plan on as many threads.
//
//   places_bench [places]     default: as many as threads
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_dist.h"

#include <stdio.h>
#include <time.h>

static double now(void *user) {
  struct timespec t;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct program {
  const char *name, *text;
} program;

static const program programs[] = {
    {"chain, square", "input A[s=1000,s], B[s,s], C[s,s], D[s,s], E[s,s] : f32\n"
                      "X[i,k] = A[i,j]*B[j,k]\nZ[i,k] = D[i,j]*E[j,k]\nW[i,k] = C[i,j]*Z[j,k]\n"
                      "Y[i,j] = X[i,j] + W[i,j]\noutput Y\n"},
    {"chain, skewed", "input A[s=1000,t=100], B[t,s], C[s,t], D[t,u=10000], E[u,s] : f32\n"
                      "X[i,k] = A[i,j]*B[j,k]\nZ[i,k] = D[i,j]*E[j,k]\nW[i,k] = C[i,j]*Z[j,k]\n"
                      "Y[i,j] = X[i,j] + W[i,j]\noutput Y\n"},
    {"softmax", "input X[s=4096,t=4096] : f32\nC[s] = max[t](X[s,t])\nE[s,t] = exp(X[s,t] - C[s])\n"
                "S[s] = sum[t](E[s,t])\nY[s,t] = E[s,t] / S[s]\noutput Y\n"},
    {"multi-head attention",
     "input Q[s=512,a=512], WQ[a,h=8,d=64], WK[a,h,d], WV[a,h,d], WO[a,h,d] : f32\n"
     "QH[s,h,d] = Q[s,a]*WQ[a,h,d]\nKH[s,h,d] = Q[s,a]*WK[a,h,d]\nVH[s,h,d] = Q[s,a]*WV[a,h,d]\n"
     "T[h,s,t] = sum[d](QH[s,h,d]*KH[t,h,d]) / sqrt(size(d))\n"
     "M[h,s] = max[t](T[h,s,t])\nE[h,s,t] = exp(T[h,s,t] - M[h,s])\nS[h,s] = sum[t](E[h,s,t])\n"
     "O[s,h,d] = sum[t](E[h,s,t] / S[h,s] * VH[t,h,d])\nY[s,a] = O[s,h,d]*WO[a,h,d]\noutput Y\n"},
    {"training step",
     "input X[b=256,f=1024], L[b,c=512], U[f,h=1024], V[h,c] : f32\n"
     "H[b,h] = X[b,f]*U[f,h]\nR[b,h] = relu(H[b,h])\nP[b,c] = R[b,h]*V[h,c]\n"
     "D[b,c] = 2*(P[b,c] - L[b,c])\nDV[h,c] = R[b,h]*D[b,c]\nDR[b,h] = D[b,c]*V[h,c]\n"
     "DH[b,h] = where(H[b,h] > 0, DR[b,h], 0)\nDU[f,h] = X[b,f]*DH[b,h]\n"
     "U2[f,h] = U[f,h] - 0.01*DU[f,h]\nV2[h,c] = V[h,c] - 0.01*DV[h,c]\noutput U2, V2\n"}};

#define RUNS 15

static double median(double *t, int n) {
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && t[k] < t[k - 1]; k--) {
      double x = t[k];
      t[k] = t[k - 1];
      t[k - 1] = x;
    }
  return t[n / 2];
}

static void check(ein_ctx *ctx, ein_status st, const char *what) {
  if (st == EIN_OK) return;
  printf("%s: %s %s\n", what, ein_status_name(st), ein_ctx_message(ctx));
  exit(1);
}

// Memory for an input or output, filled with small numbers.
static float *room(const ein_tensor_info *t) {
  size_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= (size_t)t->shape[r];
  float *x = (float *)malloc(n * sizeof *x + 64);
  if (x == NULL) exit(1);
  for (size_t i = 0; i < n; i++) x[i] = (float)((int)(i * 2654435761u >> 7 & 15) - 7) / 64;
  return x;
}

static double time_plan(ein_ctx *ctx, const ein_graph *g, const ein_run *bound) {
  ein_plan *p;
  ein_run run = *bound;
  double t[RUNS];
  check(ctx, ein_plan_graph(ctx, g, 0, NULL, NULL, &p), "plan");
  run.workspace_bytes = ein_plan_workspace(p);
  run.workspace = malloc(run.workspace_bytes);
  for (int i = -2; i < RUNS; i++) {
    double begin = now(NULL);
    check(ctx, ein_plan_execute(p, &run), "execute");
    if (i >= 0) t[i] = now(NULL) - begin;
  }
  free(run.workspace);
  ein_plan_destroy(p);
  return median(t, RUNS);
}

static double time_places(ein_ctx *ctx, const ein_graph *g, const ein_run *bound, int p,
                          ein_cost cost, int threads, double *bytes) {
  ein_decompose_desc dd;
  ein_decomposition *how;
  ein_dist_desc desc;
  ein_dist_info info;
  ein_fabric f;
  ein_dist *d;
  ein_run run = *bound;
  double t[RUNS];
  memset(&dd, 0, sizeof dd);
  memset(&desc, 0, sizeof desc);
  memset(&info, 0, sizeof info);
  dd.p = p;
  dd.cost = cost;
  check(ctx, ein_decompose(ctx, g, &dd, &how), "decompose");
  check(ctx, threads ? ein_fabric_threads(p, &f) : ein_fabric_serial(p, &f), "fabric");
  desc.fabric = &f;
  desc.decomposition = how;
  check(ctx, ein_dist_create(ctx, g, &desc, &d), "places");
  ein_dist_info_get(d, &info);
  *bytes = (double)info.bytes;
  run.workspace_bytes = info.workspace_bytes;
  run.workspace = malloc(run.workspace_bytes);
  for (int i = -2; i < RUNS; i++) {
    double begin = now(NULL);
    check(ctx, ein_dist_execute(d, &run, NULL), "execute");
    if (i >= 0) t[i] = now(NULL) - begin;
  }
  free(run.workspace);
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  return median(t, RUNS);
}

static void measure(ein_ctx *ctx, const program *q, int places) {
  ein_program_desc d;
  ein_graph *g;
  ein_tensor_info t;
  ein_run run;
  const void *in[16];
  void *out[16], *all[32];
  int nin = 0, nout = 0, n = 0;
  double b1, b2, b0;
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.text = q->text;
  check(ctx, ein_graph_parse(ctx, &d, &g), q->name);
  for (int i = 0; i < ein_graph_tensors(g); i++) {
    ein_graph_tensor(g, i, &t);
    if (t.role == EIN_ROLE_TEMP) continue;
    all[n] = room(&t);
    if (t.role == EIN_ROLE_INPUT) in[nin++] = all[n];
    else out[nout++] = all[n];
    n++;
  }
  run.in = in;
  run.out = out;
  double plan = time_plan(ctx, g, &run), one = time_places(ctx, g, &run, 1, EIN_COST_BYTES, 0, &b0);
  double bytes = time_places(ctx, g, &run, places, EIN_COST_BYTES, 1, &b1);
  double seconds = time_places(ctx, g, &run, places, EIN_COST_SECONDS, 1, &b2);
  printf("%-22s %8.2f %8.2f %8.2f %8.2f   %8.2f %8.2f\n", q->name, 1e3 * plan, 1e3 * one,
         1e3 * bytes, 1e3 * seconds, b1 / 1e6, b2 / 1e6);
  while (n > 0) free(all[--n]);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  ein_cpu *cpu;
  ein_ctx *ctx;
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  check(NULL, ein_cpu_create(NULL, NULL, &cpu), "cpu");
  check(NULL, ein_cpu_use(cpu, &d), "cpu");
  d.now_fn = now;
  check(NULL, ein_ctx_create(&d, &ctx), "ctx");
  int places = argc > 1 ? atoi(argv[1]) : d.executor.width;
  printf("%d threads, %d places; ms, median of %d runs; MB read from other places\n",
         d.executor.width, places, RUNS);
  printf("%-22s %8s %8s %8s %8s   %8s %8s\n", "", "plan", "1 place", "bytes", "seconds", "bytes",
         "seconds");
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    measure(ctx, &programs[i], places);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  return 0;
}
