// Times programs on random f32 inputs, as one plan or decomposed over places.
//
//   programs_bench [PLACES]
//   programs_bench predict [PLACES]
//   programs_bench PROG.ein NAME=SIZE,.. THREADS plan|places|METHOD SECONDS
//   programs_bench gradients N
//
// The first form makes a table of programs of examples/models: the ordinary plan, one place, and
// the threads fabric with the least bytes and the least predicted seconds. The second one compares
// what is predicted for the threads fabric, with the rates that calibration measures and with those
// of a machine nobody described, with what it takes: medians of many runs, and the mean processor
// time of a run over the threads, which others on the machine disturb less. The third one times a
// program in one way. METHOD: of a decomposition; places: the least predicted seconds. It prints
// the median and the best time of a run in milliseconds, and of decompositions the method, bytes
// and tasks. The fourth form plans programs of N statements, then of 2N, with their gradients:
// seconds of the processor for parsing them without gradients, for gradients, for the plan. Rates
// are those by table, or of the file that EINSUM_RATES names.
#define _POSIX_C_SOURCE 200112L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_dist.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 32, RUNS = 100000 };

static double now(void *user) {
  struct timespec t;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *what) {
  fprintf(stderr, "programs_bench: %s\n", what);
  exit(1);
}

static char *read_file(const char *path) {
  static char text[1 << 16];
  FILE *f = fopen(path, "rb");
  if (f == NULL) stop(path);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

// The names go into `names`, which has room for all of s.
static int read_sizes(const char *s, char *names, ein_size *size) {
  int n = 0;
  for (; n < MOST && *s != 0; n++) {
    size_t length = strcspn(s, "=");
    char *end;
    if (s[length] == 0) stop("NAME=SIZE,..");
    size[n].name = names;
    memcpy(names, s, length);
    names[length] = 0;
    names += length + 1;
    size[n].value = strtoll(s + length + 1, &end, 10);
    s = end + (*end == ',');
  }
  return n;
}

// Values around 0, small enough for exponentials.
static void *tensor_memory(const ein_tensor_info *t, uint64_t seed) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  size_t bytes = ((size_t)n * ein_dtype_size(t->dtype) + 63) / 64 * 64;
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 64) != 0) stop("out of memory");
  memset(p, 0, bytes > 0 ? bytes : 64);
  for (int64_t i = 0; seed != 0 && i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    double x = ((double)(seed >> 40) / 16777216 - 0.5) / 8;
    if (t->dtype == EIN_F32) ((float *)p)[i] = (float)x;
    else if (t->dtype == EIN_F64) ((double *)p)[i] = x;
  }
  return p;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct job {
  int threads;
  ein_cpu *cpu;
  ein_ctx *ctx;
  ein_graph *graph;
  const void *in[MOST];
  void *out[MOST];
  int nin, nout;
  ein_run run;
  ein_plan *plan;           // in one piece, or
  ein_decomposition *how;   // over places
  ein_fabric fabric;
  ein_dist *dist;
  ein_dist_stats stats;
} job;

static void use_rates(job *j, const char *path) {
  ein_rates rates;
  if (ein_rates_parse(j->ctx, read_file(path), &rates) != EIN_OK ||
      ein_ctx_rates(j->ctx, &rates) != EIN_OK)
    stop(ein_ctx_message(j->ctx));
}

// threads 0: as many as there are. path: of a program, or its text.
static void open_graph(job *j, const char *path, const char *sizes, int threads) {
  char names[256];
  ein_cpu_desc machine;
  ein_ctx_desc cd;
  ein_program_desc pd;
  ein_size size[MOST];
  ein_tensor_info t;
  if (strlen(sizes) >= sizeof names) stop("too many sizes");
  memset(j, 0, sizeof *j);
  memset(&machine, 0, sizeof machine);
  memset(&cd, 0, sizeof cd);
  memset(&pd, 0, sizeof pd);
  machine.threads = threads;
  if (ein_cpu_create(&machine, NULL, &j->cpu) != EIN_OK) stop("no cpu");
  ein_cpu_use(j->cpu, &cd);
  j->threads = cd.executor.width;
  cd.now_fn = now;
  if (ein_ctx_create(&cd, &j->ctx) != EIN_OK) stop("no ctx");
  const char *rates = getenv("EINSUM_RATES");
  if (rates != NULL && rates[0] != 0) use_rates(j, rates);
  pd.text = strchr(path, '\n') != NULL ? path : read_file(path);
  pd.size = size;
  pd.nsize = read_sizes(sizes, names, size);
  pd.dtype = EIN_F32;
  if (ein_graph_parse(j->ctx, &pd, &j->graph) != EIN_OK) stop(ein_ctx_message(j->ctx));
  for (int i = 0; i < ein_graph_tensors(j->graph); i++) {
    if (!ein_graph_tensor(j->graph, i, &t) || j->nin == MOST || j->nout == MOST) continue;
    if (t.role == EIN_ROLE_INPUT) {
      j->in[j->nin] = tensor_memory(&t, 17 + (uint64_t)j->nin);
      j->nin++;
    }
    if (t.role == EIN_ROLE_OUTPUT) j->out[j->nout++] = tensor_memory(&t, 0);
  }
  j->run.in = j->in;
  j->run.out = j->out;
}

static void plan_whole(job *j) {
  if (ein_plan_graph(j->ctx, j->graph, 0, NULL, NULL, &j->plan) != EIN_OK)
    stop(ein_ctx_message(j->ctx));
  j->run.workspace_bytes = ein_plan_workspace(j->plan);
}

// On the threads fabric; one place: one after another.
static void plan_places(job *j, int places, const char *method, ein_cost cost,
                        const ein_machine *machine) {
  ein_decompose_desc d;
  ein_dist_desc dd;
  ein_dist_info info;
  memset(&d, 0, sizeof d);
  memset(&dd, 0, sizeof dd);
  memset(&info, 0, sizeof info);
  d.p = places;
  d.cost = cost;
  d.method = method;
  d.machine = machine;
  if (ein_decompose(j->ctx, j->graph, &d, &j->how) != EIN_OK) stop(ein_ctx_message(j->ctx));
  if ((places > 1 ? ein_fabric_threads(places, &j->fabric)
                  : ein_fabric_serial(places, &j->fabric)) != EIN_OK)
    stop("no fabric");
  dd.fabric = &j->fabric;
  dd.decomposition = j->how;
  if (ein_dist_create(j->ctx, j->graph, &dd, &j->dist) != EIN_OK) stop(ein_ctx_message(j->ctx));
  ein_dist_info_get(j->dist, &info);
  j->run.workspace_bytes = info.workspace_bytes;
}

static void close_job(job *j) {
  for (int i = 0; i < j->nin; i++) free((void *)(uintptr_t)j->in[i]);
  for (int i = 0; i < j->nout; i++) free(j->out[i]);
  free(j->run.workspace);
  ein_plan_destroy(j->plan);
  ein_dist_destroy(j->dist);
  ein_decomposition_destroy(j->how);
  if (j->how != NULL) ein_fabric_destroy(&j->fabric);
  ein_graph_destroy(j->graph);
  ein_ctx_destroy(j->ctx);
  ein_cpu_destroy(j->cpu);
}

// Runs what was planned for so many seconds, four times at least. Returns how often.
static int time_job(job *j, double budget, double *median, double *best) {
  static double spent[RUNS];
  int runs = 0;
  if (posix_memalign(&j->run.workspace, 64, j->run.workspace_bytes + 64) != 0)
    stop("out of memory");
  memset(j->run.workspace, 0, j->run.workspace_bytes);
  for (double begin = now(NULL); runs < RUNS && (runs < 4 || now(NULL) - begin < budget); runs++) {
    double start = now(NULL);
    ein_status st = j->plan != NULL ? ein_plan_execute(j->plan, &j->run)
                                    : ein_dist_execute(j->dist, &j->run, &j->stats);
    if (st != EIN_OK) stop(ein_status_name(st));
    spent[runs] = now(NULL) - start;
  }
  qsort(spent + 1, (size_t)runs - 1, sizeof *spent, by_size);  // the first one warms up
  *median = 1e3 * spent[1 + (runs - 1) / 2];
  *best = 1e3 * spent[1];
  return runs;
}

static const struct { const char *name, *file, *sizes; } models[] = {
  {"chain, square", "chain", "i=1000,j=1000,k=1000,l=1000,m=1000"},
  {"chain, skewed", "chain", "i=1000,j=100,k=1000,l=100,m=10000"},
  {"softmax", "softmax", "s=4096,t=4096"},
  {"multi-head attention", "mha", "s=512,a=512,h=8,d=64"},
  {"training step", "training", "b=256,a=1024,f=1024,c=512"}};

static void table(int places) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    double median[4], best, bytes[4] = {0};
    char path[64];
    job j;
    snprintf(path, sizeof path, "examples/models/%s.ein", models[i].file);
    for (int way = 0; way < 4; way++) {
      open_graph(&j, path, models[i].sizes, 0);
      if (places == 0) places = j.threads;
      if (i == 0 && way == 0) {
        printf("%d threads, %d places; median ms; MB read from other places\n", j.threads, places);
        printf("%-22s %8s %8s %8s %8s   %8s %8s\n", "", "plan", "1 place", "bytes", "seconds",
               "bytes", "seconds");
      }
      if (way == 0) plan_whole(&j);
      else plan_places(&j, way == 1 ? 1 : places, NULL,
                       way == 3 ? EIN_COST_SECONDS : EIN_COST_BYTES, NULL);
      time_job(&j, 0.5, &median[way], &best);
      bytes[way] = (double)j.stats.bytes;
      close_job(&j);
    }
    printf("%-22s %8.2f %8.2f %8.2f %8.2f   %8.2f %8.2f\n", models[i].name, median[0], median[1],
           median[2], median[3], bytes[2] / 1e6, bytes[3] / 1e6);
  }
}

// Predicted seconds of what was planned.
static double predicted(const job *j, const ein_machine *m) {
  ein_sim_desc d;
  ein_sim_info info;
  memset(&d, 0, sizeof d);
  d.machine = m;
  if (ein_simulate(j->ctx, j->graph, j->how, &d, &info) != EIN_OK) stop("no simulation");
  return info.seconds;
}

static const struct { const char *name, *text, *sizes; } compared[] = {
  {"chain, square", "examples/models/chain.ein", "i=1000,j=1000,k=1000,l=1000,m=1000"},
  {"chain, skewed", "examples/models/chain.ein", "i=1000,j=100,k=1000,l=100,m=10000"},
  {"softmax", "examples/models/softmax.ein", "s=4096,t=4096"},
  {"attention", "examples/models/attention.ein", "s=2048,t=2048,d=64,e=64"},
  {"multi-head attention", "examples/models/mha.ein", "s=512,a=512,h=8,d=64"},
  {"training step", "examples/models/training.ein", "b=256,a=1024,f=1024,c=512"},
  {"LLaMA layer", "examples/models/llama_layer.ein", "s=256,a=512,h=8,d=64,f=1376"},
  {"matrix product", "input A[i=1024,j=1024], B[j,k=1024] : f32\nC[i,k] = A[i,j]*B[j,k]\n"
   "output C\n", ""},
  {"matrix and vector", "input A[i=8192,j=4096], x[j] : f32\ny[i] = A[i,j]*x[j]\noutput y\n", ""},
  {"scale", "input X[i=16777216] : f32\nY[i] = X[i]*2 + 1\noutput Y\n", ""},
  {"sum of all", "input X[i=4096,j=4096] : f32\ny = sum[i,j](X[i,j])\noutput y\n", ""},
  {"sum with a transposed", "input A[i=4096,j=4096], B[j,i] : f32\nY[i,j] = A[i,j] + B[j,i]\n"
   "output Y\n", ""},
  {"distances", "input X[i=1024,d=32], Z[j=1024,d] : f32\nY[i,j] = sum[d]((X[i,d]-Z[j,d])^2)\n"
   "output Y\n", ""},
  {"smoothing", "input X[i=4098,j=4096] : f32\nY[i=4096,j] = X[i,j] + X[i+1,j]*2 + X[i+2,j]\n"
   "output Y\n", ""}};

static void predictions(int places) {
  int n = (int)(sizeof compared / sizeof *compared), near = 0, close = 0;
  for (int i = 0; i < n; i++) {
    ein_machine m;
    double median, best;
    job j;
    memset(&m, 0, sizeof m);
    open_graph(&j, compared[i].text, compared[i].sizes, 0);
    ein_rates rates;
    if (ein_calibrate(j.ctx, 0, &rates) != EIN_OK || ein_ctx_rates(j.ctx, &rates) != EIN_OK ||
        ein_machine_threads(j.ctx, j.graph, &m) != EIN_OK)
      stop("no rates");
    if (places == 0) places = j.threads;
    if (i == 0)
      printf("%d threads, %d places; ms: measured (median), processor time over threads, predicted "
             "with measured rates (over both) and with defaults\n"
             "%-22s %9s %9s %9s %6s %6s %9s %6s\n", j.threads, places, "", "measured",
             "processor", "predicted", "ratio", "ratio", "defaults", "ratio");
    plan_places(&j, places, NULL, EIN_COST_SECONDS, &m);
    double here = 1e3 * predicted(&j, &m), plain = 1e3 * predicted(&j, NULL);
    clock_t before = clock();
    int runs = time_job(&j, 1, &median, &best);
    double busy = 1e3 * (double)(clock() - before) / CLOCKS_PER_SEC / runs / j.threads;
    printf("%-22s %9.3f %9.3f %9.3f %6.2f %6.2f %9.3f %6.2f\n", compared[i].name, median, busy,
           here, here / median, here / busy, plain, plain / median);
    fflush(stdout);
    near += here >= 0.5 * median && here <= 1.25 * median;
    close += here >= 0.5 * busy && here <= 1.25 * busy;
    close_job(&j);
  }
  printf("%d of %d within 0.5 to 1.25 of what was measured, %d of the processor time\n", near, n,
         close);
}

// A chain; n statements that read one tensor; one statement that reads it n times.
static char *long_program(int kind, int n, int gradient) {
  size_t room = 256 + 64 * (size_t)n, at;
  char *s = (char *)malloc(room);
  if (s == NULL) stop("out of memory");
  at = (size_t)snprintf(s, room, "input X[i=%d] : f64\nY0[i=4] = X[i]\nS0 = 0*sum[i](X[i])\n",
                        n + 4);
  if (kind == 2) at += (size_t)snprintf(s + at, room - at, "S = sum[i=4](0");
  for (int k = 0; k < n; k++) {
    static const char *const form[] = {"Y%d[i] = Y%d[i]*Y%d[i]\n",
                                       "S%d = S%d + sum[i](%d*X[i])\n"};
    if (kind < 2) at += (size_t)snprintf(s + at, room - at, form[kind], k + 1, k, k);
    else at += (size_t)snprintf(s + at, room - at, "+%d*X[i+%d]", k, k);
  }
  if (kind == 0) at += (size_t)snprintf(s + at, room - at, "S = sum[i](Y%d[i])", n);
  if (kind == 1) at += (size_t)snprintf(s + at, room - at, "S = 2*S%d", n);
  snprintf(s + at, room - at, "%s\n%s", kind == 2 ? ")" : "",
           gradient ? "grad S wrt X as G\noutput S, G\n" : "output S\n");
  return s;
}

static void gradients(int n) {
  static const char *const name[] = {"a chain", "readers of one tensor", "one with many reads"};
  ein_cpu *cpu;
  ein_cpu_desc machine;
  ein_ctx_desc cd;
  ein_ctx *ctx;
  memset(&machine, 0, sizeof machine);
  memset(&cd, 0, sizeof cd);
  if (ein_cpu_create(&machine, NULL, &cpu) != EIN_OK) stop("no cpu");
  ein_cpu_use(cpu, &cd);
  cd.now_fn = now;
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) stop("no ctx");
  printf("%-28s %10s %10s %10s %10s\n", "", "N", "parse, s", "gradient", "plan");
  for (int kind = 0; kind < 3; kind++) {
    for (int twice = 1; twice <= 2; twice++) {
      clock_t t[4];
      double seconds[3];
      ein_graph *g = NULL;
      ein_plan *plan = NULL;
      for (int way = 0; way < 2; way++) {
        ein_program_desc d;
        char *text = long_program(kind, twice * n, way);
        memset(&d, 0, sizeof d);
        d.text = text;
        ein_graph_destroy(g);
        t[way] = clock();
        if (ein_graph_parse(ctx, &d, &g) != EIN_OK) stop(ein_ctx_message(ctx));
        seconds[way] = (double)(clock() - t[way]) / CLOCKS_PER_SEC;
        free(text);
      }
      t[2] = clock();
      if (ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) != EIN_OK) stop(ein_ctx_message(ctx));
      seconds[2] = (double)(clock() - t[2]) / CLOCKS_PER_SEC;
      printf("%-28s %10d %10.3f %10.3f %10.3f\n", name[kind], twice * n, seconds[0],
             seconds[1] - seconds[0], seconds[2]);
      ein_plan_destroy(plan);
      ein_graph_destroy(g);
    }
  }
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
}

int main(int argc, char **argv) {
  job j;
  double median, best;
  if (argc > 1 && argc <= 3 && strcmp(argv[1], "predict") == 0) {
    predictions(argc > 2 ? atoi(argv[2]) : 0);
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "gradients") == 0) {
    gradients(atoi(argv[2]));
    return 0;
  }
  if (argc != 6 && argc > 2) stop("PROG.ein NAME=SIZE,.. THREADS plan|places|METHOD SECONDS");
  if (argc <= 2) {
    table(argc > 1 ? atoi(argv[1]) : 0);
    return 0;
  }
  open_graph(&j, argv[1], argv[2], atoi(argv[3]));
  if (strcmp(argv[4], "plan") == 0) plan_whole(&j);
  else if (strcmp(argv[4], "places") == 0) plan_places(&j, j.threads, NULL, EIN_COST_SECONDS, NULL);
  else plan_places(&j, j.threads, argv[4], EIN_COST_PAPER, NULL);
  time_job(&j, atof(argv[5]), &median, &best);
  printf("%.6g %.6g", median, best);
  if (j.how != NULL) {
    ein_decomp_info chosen;
    ein_decomposition_info(j.how, &chosen);
    printf(" %s, %lld bytes, %lld tasks", chosen.method, (long long)j.stats.bytes,
           (long long)j.stats.tasks);
  }
  puts("");
  close_job(&j);
  return 0;
}
