// Random small networks of three to six operands: what auto takes against pairs from left to right
// and against one pass, in microseconds per call of a plan.
//
//   networks [count] [seed] [verbose]
//
//   cc -std=c99 -O2 -o networks bench/networks.c -lm -pthread
//
// The ways take turns, the best of many rounds counts; what loses is measured again. A last line
// has the worst ratio of auto to pairs from left to right, and how many lose more than 5 %.
#define _POSIX_C_SOURCE 200809L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

static int below(int n) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct network {
  char expr[128];
  int nin;
  int64_t shape[7][8];
  ein_ztensor view[7];
  const void *in[6];
  void *out[1];
} network;

static double *numbers(int64_t n) {
  double *v = (double *)malloc((size_t)n * sizeof *v);
  if (v == NULL) exit(3);
  for (int64_t i = 0; i < n; i++) v[i] = 0.25 * (double)(below(9) - 4);
  return v;
}

// Labels of two operands mostly, of one or of more; extents of 2 to 8. What is too large for one
// pass is drawn again.
static void draw(network *w) {
  char labels[7][9];
  double space;
  do {
    int n = w->nin = 3 + below(4), nlabel = 3 + below(5);
    int64_t extent[8];
    memset(labels, 0, sizeof labels);
    space = 1;
    for (int l = 0; l < nlabel; l++) {
      int kind = below(10), holders = kind < 7 ? 2 : kind < 9 ? 1 : 3;
      extent[l] = 2 + below(7);
      space *= (double)extent[l];
      for (int h = 0; h < holders + (below(3) == 0); h++) {
        char *at = labels[h < holders ? below(n) : n];
        if (strchr(at, 'a' + l) == NULL) at[strlen(at)] = (char)('a' + l);
      }
    }
    for (int l = 0; l < nlabel; l++) {  // the output's are somewhere
      int held = 0;
      for (int k = 0; k < n; k++) held |= strchr(labels[k], 'a' + l) != NULL;
      if (!held) labels[0][strlen(labels[0])] = (char)('a' + l);
    }
    w->expr[0] = 0;
    for (int k = 0; k <= n; k++) {
      sprintf(w->expr + strlen(w->expr), "%s%s", k == 0 ? "" : k == n ? "->" : ",", labels[k]);
      memset(&w->view[k], 0, sizeof w->view[k]);
      w->view[k].dtype = EIN_F64;
      w->view[k].rank = (int)strlen(labels[k]);
      w->view[k].shape = w->shape[k];
      for (int a = 0; a < w->view[k].rank; a++) w->shape[k][a] = extent[labels[k][a] - 'a'];
    }
  } while (space > 50000);
  for (int k = 0; k < w->nin; k++) w->in[k] = numbers(ein_view_count(&w->view[k]));
  w->out[0] = numbers(ein_view_count(&w->view[w->nin]));
}

static ein_plan *plan_of(ein_ctx *ctx, const network *w, const char *path) {
  ein_einsum_desc d;
  ein_plan *plan;
  memset(&d, 0, sizeof d);
  d.expr = w->expr;
  d.nin = w->nin;
  d.in = w->view;
  d.out = &w->view[w->nin];
  d.options.path = path;
  if (ein_plan_create(ctx, &d, &plan) == EIN_OK) return plan;
  fprintf(stderr, "networks: %s: %s\n", w->expr, ein_ctx_message(ctx));
  exit(3);
}

// Seconds of a call, over n calls.
static double timed(const ein_plan *plan, const ein_run *run, int64_t n) {
  double t = now();
  for (int64_t i = 0; i < n; i++)
    if (ein_plan_execute(plan, run) != EIN_OK) exit(3);
  return (now() - t) / (double)n;
}

static ein_ctx *open_ctx(ein_cpu **cpu, const ein_kernels **kernels) {
  ein_cpu_desc cpu_desc;
  ein_ctx_desc desc;
  ein_ctx *ctx;
  memset(&cpu_desc, 0, sizeof cpu_desc);
  memset(&desc, 0, sizeof desc);
  cpu_desc.threads = 1;
  if (ein_cpu_create(&cpu_desc, NULL, cpu) != EIN_OK) exit(3);
  kernels[0] = ein_cpu_kernels(*cpu);
  desc.nkernels = 1;
  desc.kernels = kernels;
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) exit(3);
  return ctx;
}

// The best seconds of each way; what auto took goes to *info.
static void measure(ein_ctx *ctx, const network *w, double *best, ein_plan_info *info,
                    int verbose) {
  static const char *const paths[] = {"auto", "naive", "none"};
  static char workspace[1 << 20];
  char *room = workspace + (64 - (uintptr_t)workspace % 64) % 64;
  ein_plan *plan[3];
  ein_run run;
  int64_t n[3];
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = w->out;
  for (int k = 0; k < 3; k++) {
    plan[k] = plan_of(ctx, w, paths[k]);
    run.workspace = ein_plan_workspace(plan[k]) + 64 > sizeof workspace ? NULL : room;
    run.workspace_bytes = sizeof workspace - 64;
    best[k] = timed(plan[k], &run, 1);
    n[k] = (int64_t)(2e-4 / (best[k] + 2e-8)) + 1;
  }
  for (int round = 0; round < 60; round++) {
    for (int k = 0; k < (round < 6 ? 3 : 2); k++) {
      double t = timed(plan[k], &run, n[k]);
      if (t < best[k]) best[k] = t;
    }
  }
  (void)ein_plan_info_get(plan[0], info);  // its text outlives the plan
  for (int k = 0; k < 3; k++) {
    char text[8192];
    ein_plan_explain(plan[k], text, sizeof text);
    if (verbose) fputs(text, stdout);
    ein_plan_destroy(plan[k]);
  }
}

static void release(network *w) {
  for (int k = 0; k < w->nin; k++) {
    union { const void *c; void *v; } u;
    u.c = w->in[k];
    free(u.v);
  }
  free(w->out[0]);
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 60, lost = 0, passes = 0;
  double worst = 0, total[3] = {0, 0, 0};
  const ein_kernels *kernels[1];
  ein_cpu *cpu;
  ein_ctx *ctx = open_ctx(&cpu, kernels);
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("%9s %9s %9s  us: auto, left to right, one pass\n", "auto", "pairs", "one pass");
  for (int i = 0; i < count; i++) {
    network w;
    ein_plan_info info;
    double best[3];
    draw(&w);
    measure(ctx, &w, best, &info, argc > 3);
    for (int again = 0; again < 3 && best[0] > 1.05 * best[1]; again++) {
      double more[3];
      measure(ctx, &w, more, &info, 0);
      for (int k = 0; k < 3; k++) best[k] = more[k] < best[k] ? more[k] : best[k];
    }
    // The same plan twice differs by more than that, by where it lies in memory.
    if (strcmp(info.method, "left to right") == 0) best[0] = best[1] = fmin(best[0], best[1]);
    double ratio = best[0] / best[1];
    passes += strcmp(info.method, "one pass") == 0;
    lost += ratio > 1.05;
    worst = ratio > worst ? ratio : worst;
    for (int k = 0; k < 3; k++) total[k] += best[k];
    printf("%9.3f %9.3f %9.3f  %s%s, %s\n", 1e6 * best[0], 1e6 * best[1], 1e6 * best[2],
           ratio > 1.05 ? "LOST " : "", w.expr, info.method);
    release(&w);
  }
  printf("%d networks: one pass in %d; auto %.2f, left to right %.2f, one pass %.2f us in all; "
         "worst auto / left to right %.2f; %d lose more than 5 %%\n", count, passes, 1e6 * total[0],
         1e6 * total[1], 1e6 * total[2], worst, lost);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  return lost > 0;
}
