// All spellings of one contraction on the same memory: operands and axes in every order, labels
// under other letters. Prints what the slowest takes of the fastest, plans included and alone.
//
//   spellings [EXPR a=48,b=40,..]     default: a table; one thread, f32, einsum_cpu.h
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "../tests/spellings.h"

#define LEAST 0.004  // seconds of one sample
#define SAMPLES 5
#define MOST 48      // spellings that are timed, spread over all

// Of this thread, which does all work: what else runs on the machine counts less.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(ein_ctx *ctx, ein_status st) {
  if (st == EIN_OK) return;
  fprintf(stderr, "%s: %s\n", ein_status_text(st), ein_ctx_message(ctx));
  exit(1);
}

// Seconds of one execution: the least of several samples.
static double seconds_of(ein_ctx *ctx, const spelled *s, float *const *data) {
  ein_einsum_desc d;
  ein_run run;
  ein_plan *plan;
  const void *in[SPELLED_MAX];
  void *out[1];
  double best = 1e30;
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.expr = s->expr;
  d.nin = s->nin;
  d.in = s->view;
  d.out = &s->view[s->nin];
  check(ctx, ein_plan_create(ctx, &d, &plan));
  for (int t = 0; t < s->nin; t++) in[t] = data[s->from[t]];
  out[0] = data[s->nin];
  run.in = in;
  run.out = out;
  run.workspace_bytes = ein_plan_workspace(plan);
  run.workspace = malloc(run.workspace_bytes);
  if (run.workspace == NULL) exit(1);
  check(ctx, ein_plan_execute(plan, &run));
  for (int i = 0; i < SAMPLES; i++) {
    double start = now(), took = 0;
    int64_t n = 0;
    for (; took < LEAST; took = now() - start, n++) check(ctx, ein_plan_execute(plan, &run));
    if (took / (double)n < best) best = took / (double)n;
  }
  free(run.workspace);
  ein_plan_destroy(plan);
  return best;
}

static void contraction(ein_ctx *ctx, const char *expr, const char *sizes) {
  int64_t extent[26] = {0}, count = 0, step;
  float *data[SPELLED_MAX] = {NULL};
  char fast[64] = "", slow[64] = "";
  double least = 1e30, most = 0;
  spelled s;
  for (const char *at = sizes; at[0] >= 'a' && at[0] <= 'z'; at += *at == ',') {
    extent[at[0] - 'a'] = strtoll(at + 2, NULL, 10);
    at += strcspn(at, ",");
  }
  while (spell(expr, extent, EIN_F32, count, &s)) count++;
  (void)spell(expr, extent, EIN_F32, 0, &s);
  for (int t = 0; t <= s.nin; t++) {
    int64_t n = ein_view_count(&s.view[t]);
    data[t] = (float *)malloc((size_t)n * sizeof(float) + 1);
    if (n <= 0 || data[t] == NULL) exit(1);
    for (int64_t i = 0; i < n; i++) data[t][i] = (float)(i % 7 - 3);
  }
  step = (count + MOST - 1) / MOST;
  while (step > 1 && (step % 2 == 0 || step % 3 == 0)) step++;  // orders count by twos and threes
  for (int64_t k = 0; k < count; k += step) {
    (void)spell(expr, extent, EIN_F32, k, &s);
    double seconds = seconds_of(ctx, &s, data);
    if (seconds < least) least = seconds, memcpy(fast, s.expr, sizeof fast);
    if (seconds > most) most = seconds, memcpy(slow, s.expr, sizeof slow);
  }
  printf("%-16s %-28s %6lld %10.2f us %10.2f us %6.2f  %s, %s\n", expr, sizes, (long long)count,
         1e6 * least, 1e6 * most, most / least, fast, slow);
  for (int t = 0; t <= s.nin; t++) free(data[t]);
}

int main(int argc, char **argv) {
  static const char *const table[][2] = {
      {"ab,bc->ac", "a=20,b=30,c=25"},       {"ab,bc->ac", "a=256,b=256,c=256"},
      {"abc,cd->abd", "a=40,b=50,c=60,d=7"}, {"abcd,dbea->ec", "a=16,b=18,c=20,d=22,e=24"},
      {"abc,abd->acd", "a=64,b=30,c=40,d=20"}, {"ab,b->a", "a=1000,b=1000"},
      {"abc->cab", "a=90,b=100,c=110"},      {"abc->b", "a=90,b=100,c=110"},
      {"abc,bd,cd->ad", "a=60,b=70,c=80,d=16"}, {"ab,bc,cd->ad", "a=5,b=4,c=7,d=3"},
      {"ab,bc,cd->ad", "a=100,b=120,c=90,d=80"}};
  ein_cpu_desc machine;
  ein_ctx_desc desc;
  ein_cpu *cpu;
  ein_ctx *ctx;
  memset(&machine, 0, sizeof machine);
  memset(&desc, 0, sizeof desc);
  machine.threads = 1;
  if (ein_cpu_create(&machine, NULL, &cpu) != EIN_OK || ein_cpu_use(cpu, &desc) != EIN_OK) return 1;
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) return 1;
  printf("%-16s %-28s %6s %13s %13s %6s  fastest, slowest\n", "contraction", "extents", "ways",
         "best", "worst", "ratio");
  if (argc == 3) contraction(ctx, argv[1], argv[2]);
  for (size_t i = 0; argc != 3 && i < sizeof table / sizeof *table; i++)
    contraction(ctx, table[i][0], table[i][1]);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  return 0;
}
