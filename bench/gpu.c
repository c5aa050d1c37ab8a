// Statements on a GPU through einsum_cuda.h, of the case files of bench/cases, all operands in its
// memory: seconds of the device by its events, of a call that is waited for, of the first call with
// the compiler, and of a call that is not waited for. The roofline is what the same run measured: a
// large product of matrices of each dtype and a large copy. Without a device it says why.
//
//   gpu [-s SECONDS] [-t TOTAL] [-m MOST] FILE ..
//     -s for each case, default 0.3; -t after which no case begins, default 200; -m the longest
//     extent, for trying it out (rates mean nothing then). Cases with fields, programs and Python
//     alone are left out.
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#define EINSUM_STATIC
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPERANDS = 8, RANK = 16, RUNS = 50 };

typedef struct bench_case {
  char name[64], group[32], expr[128], map[128], fold[32];
  ein_dtype type;              // EIN_NONE: f64 and f32
  int64_t extent[128];         // by letter
  double flops;
} bench_case;

typedef struct bench_sum {     // of a group and dtype: logarithms of fractions of the roofline
  char name[48];
  double log;
  int n;
} bench_sum;

static ein_cuda *cuda;
static ein_ctx *ctx;
static double budget = 0.3, total = 200, started;
static double peak_flops[EIN_DTYPE_COUNT], peak_bytes;
static int64_t most = INT64_MAX;
static bench_sum sums[64];
static int nsum, left_out;

// 0: no case that can be run here.
static int read_case(char *line, bench_case *c) {
  char *field[16];
  int n = 0, all = 0, only = 0;
  memset(c, 0, sizeof *c);
  line[strcspn(line, "\n")] = 0;
  if (line[0] == '#' || line[0] == 0) return 0;
  for (char *at = line; at != NULL && n < 16; n++) {
    field[n] = at;
    at = strstr(at, " | ");
    if (at != NULL) *at = 0, at += 3;
  }
  if (n < 4) return 0;
  snprintf(c->name, sizeof c->name, "%s", field[0]);
  snprintf(c->group, sizeof c->group, "%s", field[1]);
  snprintf(c->expr, sizeof c->expr, "%s", field[2]);
  for (char *at = field[3]; at != NULL; at = strchr(at, ','), at = at == NULL ? NULL : at + 1) {
    while (*at == ' ') at++;
    const long long e = atoll(at + 2);
    c->extent[(unsigned char)*at & 127] = e < most ? e : most;
  }
  for (int i = 4; i < n; i++) {
    if (strncmp(field[i], "flops=", 6) == 0) c->flops = atof(field[i] + 6);
    else if (strncmp(field[i], "map=", 4) == 0) snprintf(c->map, sizeof c->map, "%s", field[i] + 4);
    else if (strncmp(field[i], "fold=", 5) == 0)
      snprintf(c->fold, sizeof c->fold, "%s", field[i] + 5);
    else if (strncmp(field[i], "dtype=", 6) == 0) c->type = ein_dtype_find(field[i] + 6);
    else if (strncmp(field[i], "py=", 3) == 0) only = 1;
    else all |= strncmp(field[i], "written=", 8) != 0;
  }
  return !all && (!only || c->map[0] != 0);
}

typedef struct operands {
  ein_ztensor view[OPERANDS];
  int64_t shape[OPERANDS][RANK];
  int n;                       // the last one is the result
  double bytes;
} operands;

static void operands_free(operands *x) {
  for (int k = 0; k < x->n; k++) ein_cuda_free(cuda, x->view[k].data);
}

// Values between -0.5 and 0.5, a block of them again and again.
static ein_status fill(ein_ztensor *v, size_t bytes) {
  enum { BLOCK = 1 << 20 };
  static char block[BLOCK];
  EINI_TRY(ein_cuda_alloc(cuda, bytes, &v->data));
  for (size_t i = 0; i < BLOCK / ein_dtype_size(v->dtype); i++) {
    if (v->dtype == EIN_F32) ((float *)(void *)block)[i] = (float)(i * 37 % 101) / 101 - 0.5f;
    else ((double *)(void *)block)[i] = (double)(i * 37 % 101) / 101 - 0.5;
  }
  for (size_t at = 0; at < bytes; at += BLOCK)
    EINI_TRY(ein_cuda_write(cuda, (char *)v->data + at, block,
                            bytes - at < BLOCK ? bytes - at : BLOCK));
  return EIN_OK;
}

static ein_status operands_make(const bench_case *c, ein_dtype type, operands *x) {
  memset(x, 0, sizeof *x);
  const char *at = c->expr;
  for (int last = 0; !last;) {
    ein_ztensor *v = &x->view[x->n];
    double n = (double)ein_dtype_size(type);
    v->dtype = type;
    v->space = EIN_CUDA_SPACE;
    v->shape = x->shape[x->n++];
    for (; *at != ',' && *at != '-' && *at != 0 && v->rank < RANK; at++) {
      x->shape[x->n - 1][v->rank++] = c->extent[(unsigned char)*at & 127];
      n *= (double)c->extent[(unsigned char)*at & 127];
    }
    x->bytes += n;
    EINI_TRY(fill(v, (size_t)n));
    last = *at == 0 || x->n == OPERANDS;
    at += *at == '-' ? 2 : *at == ',';
  }
  return EIN_OK;
}

typedef struct timing {
  double device, waited, queued, first;
} timing;

static ein_status measure(const bench_case *c, operands *x, timing *t) {
  double device[RUNS], waited[RUNS], queued[RUNS];
  const void *in[OPERANDS];
  void *out = x->view[x->n - 1].data;
  ein_plan *plan = NULL;
  ein_einsum_desc d;
  ein_ticket ticket;
  ein_run run;
  int n = 0;
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.expr = c->expr;
  d.map = c->map[0] == 0 ? NULL : c->map;
  d.monoid = c->fold[0] == 0 ? NULL : c->fold;
  d.nin = x->n - 1, d.in = x->view, d.out = &x->view[x->n - 1];
  for (int k = 0; k < d.nin; k++) in[k] = x->view[k].data;
  run.in = in, run.out = &out;
  const double begin = now();
  ein_status st = ein_plan_create(ctx, &d, &plan);
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  t->first = 1e-6 * (now() - begin);
  const double from = now();
  while (st == EIN_OK && n < RUNS && (n < 3 || 1e-6 * (now() - from) < budget)) {
    const double before = ein_cuda_counts_get(cuda).seconds, at = now();
    st = ein_plan_enqueue(plan, &run, &ticket);
    queued[n] = 1e-6 * (now() - at);
    if (st == EIN_OK) st = ein_plan_wait(plan, ticket);
    waited[n] = 1e-6 * (now() - at);
    device[n++] = ein_cuda_counts_get(cuda).seconds - before;
  }
  ein_plan_destroy(plan);
  if (st != EIN_OK) return st;
  t->device = median(device, n), t->waited = median(waited, n), t->queued = median(queued, n);
  return EIN_OK;
}

static void add(const bench_case *c, ein_dtype type, double fraction) {
  char name[48];
  int i = 0;
  snprintf(name, sizeof name, "%s %s", c->group, ein_dtype_name(type));
  while (i < nsum && strcmp(sums[i].name, name) != 0) i++;
  if (i == 64 || !(fraction > 0)) return;
  if (i == nsum) snprintf(sums[nsum++].name, sizeof name, "%s", name);
  sums[i].log += log(fraction);
  sums[i].n++;
}

static void run_case(const bench_case *c, ein_dtype type) {
  operands x;
  timing t;
  double longest = 1;
  ein_status st = operands_make(c, type, &x);
  if (st == EIN_OK) st = measure(c, &x, &t);
  if (st != EIN_OK) {
    printf("%-20s %-4s %s: %s\n", c->name, ein_dtype_name(type), ein_status_text(st),
           ein_ctx_message(ctx));
  } else {
    longest = fmax(c->flops / peak_flops[type], x.bytes / peak_bytes);
    printf("%-20s %-4s %10.4f ms %9.1f GFLOP/s %8.1f GB/s  %5.2f of the roofline  waited %10.4f ms"
           "  queued %8.2f us  first %7.1f ms\n", c->name, ein_dtype_name(type), t.device * 1e3,
           1e-9 * c->flops / t.device, 1e-9 * x.bytes / t.device, longest / t.device,
           t.waited * 1e3, t.queued * 1e6, t.first * 1e3);
    add(c, type, longest / t.device);
  }
  operands_free(&x);
  fflush(stdout);
}

static void run_file(const char *path) {
  static const ein_dtype both[2] = {EIN_F64, EIN_F32};
  char line[1024];
  bench_case c;
  FILE *f = fopen(path, "r");
  if (f == NULL) {
    printf("%s: not there\n", path);
    return;
  }
  while (fgets(line, sizeof line, f) != NULL) {
    if (!read_case(line, &c)) continue;
    for (int k = 0; k < 2; k++) {
      if (c.type != EIN_NONE && c.type != both[k]) continue;
      if (1e-6 * (now() - started) > total) left_out++;
      else run_case(&c, both[k]);
    }
  }
  (void)fclose(f);
}

// What the machine does at best, by the same kernels.
static int peaks(void) {
  static char line[][128] = {"p | peak | ac,cb->ab | a=8192,b=8192,c=8192 | flops=0",
                             "p | peak | a->a | a=268435456 | flops=0"};
  bench_case c[2];
  operands x;
  timing t;
  for (int k = 0; k < 2; k++)
    if (!read_case(line[k], &c[k])) return 0;
  for (int k = 0; k < 3; k++) {
    const ein_dtype type = k == 0 ? EIN_F64 : EIN_F32;
    ein_status st = operands_make(&c[k / 2], type, &x);
    if (st == EIN_OK) st = measure(&c[k / 2], &x, &t);
    const double n = (double)x.shape[0][0];
    if (k < 2) peak_flops[type] = 2 * n * n * n / t.device;
    else peak_bytes = x.bytes / t.device;
    operands_free(&x);
    if (st != EIN_OK) return 0;
  }
  printf("best here: %.1f GFLOP/s in f64, %.1f in f32, copies of %.1f GB/s read and written\n",
         1e-9 * peak_flops[EIN_F64], 1e-9 * peak_flops[EIN_F32], 1e-9 * peak_bytes);
  return 1;
}

int main(int argc, char **argv) {
  ein_cuda_desc want;
  ein_ctx_desc desc;
  char facts[1024];
  int i = 1;
  memset(&want, 0, sizeof want);
  memset(&desc, 0, sizeof desc);
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    if (argv[i][1] == 's') budget = atof(argv[i + 1]);
    if (argv[i][1] == 't') total = atof(argv[i + 1]);
    if (argv[i][1] == 'm') most = atoll(argv[i + 1]);
  }
  want.only = 2;
  if (ein_cuda_create(&want, NULL, &cuda) != EIN_OK) return 1;
  (void)ein_cuda_info(cuda, facts, sizeof facts);
  puts(facts);
  if (ein_cuda_use(cuda, &desc) != EIN_OK) {
    ein_cuda_destroy(cuda);
    return 0;
  }
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) return 1;
  started = now();
  const int ok = i == argc || peaks();
  for (; ok && i < argc; i++) run_file(argv[i]);
  for (int k = 0; k < nsum; k++)
    printf("geometric mean of %d, %s: %.3f of the roofline\n", sums[k].n, sums[k].name,
           exp(sums[k].log / sums[k].n));
  if (left_out > 0) printf("%d left out for want of time\n", left_out);
  if (!ok) printf("no peaks: %s\n", ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  return !ok;
}
