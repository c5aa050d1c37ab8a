// What plans say they take against what they take, by the tables of the cpu backend and by measured
// rates: of sums of products in the files of bench/cases, the median of runs, plans of both kinds
// in turns.
//
//   predictions [-j THREADS] [-m MFLOP] [-v] [FILE ..]   defaults: 1, 4000, tccg.txt and perf.txt
//
//   cc -std=c99 -O2 -o predictions bench/predictions.c -lm -pthread
//
// On one thread time is the processor's, which others that run beside disturb less. Cases of more
// than MFLOP are left out. Prints for each kind the median of predicted/measured, the
// interval that holds 90 % of them, and how many are within a factor of 1.25 and of 2; with -v also
// a line for each case. choices: plans that differ, and how much longer the table's takes in all.
#define _POSIX_C_SOURCE 200809L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLE, MEASURED, WAYS, MOST = 1024, RUNS = 64, OPERANDS = 8 };

static double ratio[WAYS][MOST], taken[WAYS];
static int count, differ, verbose;

static clockid_t measured_by = CLOCK_PROCESS_CPUTIME_ID;

static double now(void *user) {
  struct timespec t;
  (void)user;
  clock_gettime(measured_by, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *what, const char *why) {
  fprintf(stderr, "predictions: %s: %s\n", what, why);
  exit(3);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void *zeros(size_t bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 1) != 0) stop("memory", "there is too little");
  memset(p, 0, bytes);
  return p;
}

// A case: terms of labels (the output last) with their shapes.
typedef struct einsum_case {
  char name[64], expr[128];
  int n;                       // operands
  int64_t shape[OPERANDS + 1][16];
  ein_ztensor view[OPERANDS + 1];
  double flops;
} einsum_case;

// "name | group | expression | a=3,b=4 | key=value | .."; 0: no sum of products.
static int read_case(char *line, ein_dtype type, einsum_case *c) {
  int64_t extent[128] = {0};
  char *field[4], *at = line;
  if (line[0] == '#' || strstr(line, "prog=") != NULL || strstr(line, "map=") != NULL ||
      strstr(line, "fold=") != NULL)
    return 0;
  memset(c, 0, sizeof *c);
  for (int i = 0; i < 4; i++) {
    char *end = strstr(at, " | ");
    field[i] = at;
    if (end == NULL && i < 3) return 0;
    if (end == NULL) break;
    *end = 0, at = end + 3;
  }
  const char *flops = strstr(at, "flops="), *types = strstr(at, "dtype=");
  const char *name = ein_dtype_name(type);
  if (types != NULL && strncmp(types + 6, name, 3) != 0) return 0;
  c->flops = flops == NULL ? 0 : strtod(flops + 6, NULL);
  snprintf(c->name, sizeof c->name, "%.60s", field[0]);
  snprintf(c->expr, sizeof c->expr, "%.120s", field[2]);
  for (char *s = field[3]; *s;) {
    const int label = *s & 127;
    char *end;
    if (s[1] != '=') return 0;
    extent[label] = strtoll(s + 2, &end, 10);
    s = end + (*end == ',');
    if (*end != ',') break;
  }
  int rank = 0, k = 0;
  for (const char *s = c->expr;; s++) {
    if (*s >= 'a' && *s <= 'z' && rank < 16) {
      c->shape[k][rank++] = extent[*s & 127];
      continue;
    }
    c->view[k] = ein_tensor(type, rank, c->shape[k], NULL);
    if (*s == 0) break;
    if (k == OPERANDS) return 0;
    rank = 0, k++;
    if (*s == '-') s++;
  }
  c->n = k;
  return k > 0;
}

static int64_t bytes_of(const ein_ztensor *v) {
  int64_t n = (int64_t)ein_dtype_size(v->dtype);
  for (int a = 0; a < v->rank; a++) n *= v->shape[a];
  return n;
}

// Of a plan's JSON the statements without numbers.
static void what_runs(char *text) {
  const char *s = strstr(text, "\"statements\"");
  char *to = text;
  for (; s != NULL && *s; s++) {
    const int exponent = s[0] == 'e' && s[-1] >= '0' && s[-1] <= '9';
    if (!exponent && strchr("0123456789.+-", *s) == NULL) *to++ = *s;
  }
  *to = 0;
}

// Seconds of runs of both plans in turns; how many of each.
static int time_plans(ein_plan *const *plan, const ein_run *run, double x[WAYS][RUNS]) {
  const double until = now(NULL) + 0.4;
  int n = 0;
  for (; n < RUNS && (n < 5 || now(NULL) < until); n++) {
    for (int turn = 0; turn < WAYS; turn++) {
      const int w = (turn + n) % WAYS;
      int64_t calls = 1;
      double took = 0;
      for (;; calls *= 4) {  // long enough to be timed
        const double from = now(NULL);
        for (int64_t i = 0; i < calls; i++) (void)ein_plan_execute(plan[w], &run[w]);
        took = now(NULL) - from;
        if (took > 2e-5) break;
      }
      x[w][n] = took / (double)calls;
    }
  }
  return n;
}

static void run_case(ein_ctx *const *ctx, einsum_case *c) {
  double x[WAYS][RUNS], predicted[WAYS];
  ein_plan *plan[WAYS];
  ein_run run[WAYS];
  const void *in[OPERANDS];
  void *out[1];
  ein_einsum_desc d;
  memset(&d, 0, sizeof d);
  d.expr = c->expr, d.nin = c->n, d.in = c->view, d.out = &c->view[c->n];
  for (int k = 0; k < c->n; k++) {
    void *p = zeros((size_t)bytes_of(&c->view[k]));
    memset(p, 1, (size_t)bytes_of(&c->view[k]));  // small normal numbers
    in[k] = p;
  }
  out[0] = zeros((size_t)bytes_of(d.out));
  char *text[WAYS];
  for (int w = 0; w < WAYS; w++) {
    ein_plan_info info;
    if (ein_plan_create(ctx[w], &d, &plan[w]) != EIN_OK) stop(c->name, ein_ctx_message(ctx[w]));
    if (ein_plan_info_get(plan[w], &info) != EIN_OK) stop(c->name, "no info");
    predicted[w] = info.seconds;
    memset(&run[w], 0, sizeof run[w]);
    run[w].in = in, run[w].out = out;
    run[w].workspace_bytes = ein_plan_workspace(plan[w]);
    run[w].workspace = zeros(run[w].workspace_bytes);
    text[w] = (char *)zeros(1 << 14);
    (void)ein_plan_json(plan[w], text[w], 1 << 14);
    what_runs(text[w]);
    if (ein_plan_execute(plan[w], &run[w]) != EIN_OK) stop(c->name, "failed");
  }
  const int n = time_plans(plan, run, x);
  for (int w = 0; w < WAYS; w++) {
    qsort(x[w], (size_t)n, sizeof x[w][0], by_size);
    taken[w] += x[w][n / 2];
    ratio[w][count] = predicted[w] / x[w][n / 2];
  }
  const int other = strcmp(text[TABLE], text[MEASURED]) != 0;
  differ += other;
  if (verbose)
    printf("%-26s %10.4g %10.4g %6.2f %10.4g %10.4g %6.2f %s\n", c->name, 1e6 * predicted[TABLE],
           1e6 * x[TABLE][n / 2], ratio[TABLE][count], 1e6 * predicted[MEASURED],
           1e6 * x[MEASURED][n / 2], ratio[MEASURED][count], other ? "*" : "");
  count++;
  for (int w = 0; w < WAYS; w++) {
    ein_plan_destroy(plan[w]);
    free(run[w].workspace);
    free(text[w]);
  }
  for (int k = 0; k < c->n; k++) free((void *)(uintptr_t)in[k]);
  free(out[0]);
}

static void run_file(ein_ctx *const *ctx, const char *path, double most) {
  static char line[4096], copy[4096];
  FILE *f = fopen(path, "r");
  if (f == NULL) stop(path, "cannot be read");
  while (fgets(line, (int)sizeof line, f) != NULL) {
    for (int t = 0; t < 2; t++) {
      einsum_case c;
      memcpy(copy, line, sizeof copy);
      if (!read_case(copy, t ? EIN_F32 : EIN_F64, &c) || c.flops > most || count == MOST) continue;
      if (strlen(c.name) < sizeof c.name - 5) strcat(c.name, t ? " f32" : " f64");
      run_case(ctx, &c);
    }
  }
  fclose(f);
}

static void summary(const char *name, double *x) {
  int near[2] = {0, 0};
  qsort(x, (size_t)count, sizeof *x, by_size);
  for (int i = 0; i < count; i++)
    near[0] += x[i] > 0.8 && x[i] < 1.25, near[1] += x[i] > 0.5 && x[i] < 2;
  printf("%-9s median %.2f, 90 %% in %.2f to %.2f, within 1.25: %d, within 2: %d of %d\n", name,
         x[count / 2], x[count / 20], x[count - 1 - count / 20], near[0], near[1], count);
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"bench/cases/tccg.txt", "bench/cases/perf.txt"};
  ein_cpu_desc of;
  ein_cpu *cpu = NULL;
  ein_ctx *ctx[WAYS];
  ein_rates r;
  double most = 4000;
  memset(&of, 0, sizeof of);
  of.threads = 1;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "-v") == 0) verbose = 1;
    else if (i + 1 < argc && strcmp(argv[i], "-j") == 0) of.threads = atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "-m") == 0) most = strtod(argv[++i], NULL);
    else return 2;
  }
  if (of.threads != 1) measured_by = CLOCK_MONOTONIC;
  if (ein_cpu_create(&of, NULL, &cpu) != EIN_OK) return 3;
  for (int w = 0; w < WAYS; w++) {
    ein_ctx_desc d;
    memset(&d, 0, sizeof d);
    d.now_fn = now;
    if (ein_cpu_use(cpu, &d) != EIN_OK || ein_ctx_create(&d, &ctx[w]) != EIN_OK) return 3;
  }
  if (ein_calibrate(ctx[MEASURED], 1, &r) != EIN_OK || ein_ctx_rates(ctx[MEASURED], &r) != EIN_OK)
    stop("rates", ein_ctx_message(ctx[MEASURED]));
  printf("%s, %d threads; predicted/measured\n", r.machine, r.threads);
  if (verbose)
    printf("%-26s %28s %28s\n%-26s %10s %10s %6s %10s %10s %6s\n", "", "by table, us", "by rates",
           "", "predicted", "measured", "ratio", "predicted", "measured", "ratio");
  for (int k = i; k < argc; k++) run_file(ctx, argv[k], most * 1e6);
  for (int k = 0; i == argc && k < 2; k++) run_file(ctx, usual[k], most * 1e6);
  if (count == 0) stop("cases", "there are none");
  summary("table", ratio[TABLE]);
  summary("measured", ratio[MEASURED]);
  printf("choices   %d plans differ; all take %.4g s by table, %.4g s by measured rates\n", differ,
         taken[TABLE], taken[MEASURED]);
  for (int w = 0; w < WAYS; w++) ein_ctx_destroy(ctx[w]);
  ein_cpu_destroy(cpu);
  return 0;
}
