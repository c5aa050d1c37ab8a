// Times programs on random f32 inputs, as one plan or decomposed over places.
//
//   programs_bench [PLACES]
//   programs_bench PROG.ein NAME=SIZE,.. THREADS plan|places|METHOD SECONDS
//
// The first form makes a table of programs of examples/models: the ordinary plan, one place, and
// the threads fabric with the least bytes and the least predicted seconds. The second one times a
// program in one way. METHOD: of a decomposition; places: the least predicted seconds. It prints
// the median and the best time of a run in milliseconds, and of decompositions the method, bytes
// and tasks.
#define _POSIX_C_SOURCE 200112L
#define EINSUM_IMPLEMENTATION
#include "../einsum_program.h"
#include "../einsum_decomp.h"
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

// threads 0: as many as there are.
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
  pd.text = read_file(path);
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
static void plan_places(job *j, int places, const char *method, ein_cost cost) {
  ein_decompose_desc d;
  ein_dist_desc dd;
  ein_dist_info info;
  memset(&d, 0, sizeof d);
  memset(&dd, 0, sizeof dd);
  memset(&info, 0, sizeof info);
  d.p = places;
  d.cost = cost;
  d.method = method;
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

// Runs what was planned for so many seconds, four times at least, and closes it.
static void time_job(job *j, double budget, double *median, double *best) {
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
                       way == 3 ? EIN_COST_SECONDS : EIN_COST_BYTES);
      time_job(&j, 0.5, &median[way], &best);
      bytes[way] = (double)j.stats.bytes;
      close_job(&j);
    }
    printf("%-22s %8.2f %8.2f %8.2f %8.2f   %8.2f %8.2f\n", models[i].name, median[0], median[1],
           median[2], median[3], bytes[2] / 1e6, bytes[3] / 1e6);
  }
}

int main(int argc, char **argv) {
  job j;
  double median, best;
  if (argc != 6 && argc > 2) stop("PROG.ein NAME=SIZE,.. THREADS plan|places|METHOD SECONDS");
  if (argc <= 2) {
    table(argc > 1 ? atoi(argv[1]) : 0);
    return 0;
  }
  open_graph(&j, argv[1], argv[2], atoi(argv[3]));
  if (strcmp(argv[4], "plan") == 0) plan_whole(&j);
  else if (strcmp(argv[4], "places") == 0) plan_places(&j, j.threads, NULL, EIN_COST_SECONDS);
  else plan_places(&j, j.threads, argv[4], EIN_COST_PAPER);
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
