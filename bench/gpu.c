// Statements on a GPU through einsum_cuda.h, of the case files of bench/cases, all operands in its
// memory: seconds of the device by its events, of a call that is waited for, of the first call with
// the compiler, and of a call that is not waited for. The roofline is what the same run measured: a
// large product of matrices of each dtype and a large copy. Without a device it says why.
//
//   gpu [-s SECONDS] [-t TOTAL] [-m MOST] [-l LIBRARY] FILE ..
//     -s for each case, default 0.3; -t after which no case begins, default 200; -m the longest
//     extent, for trying it out (rates mean nothing then); -l in place of CUDA's libraries, for
//     trying it out without a GPU. FILE:functional: its cases of two operands with a1*A+b1 and
//     a2*B+b2 in their place, in f64 and f32. A FILE that ends in .ein is a program, its sizes
//     behind a colon: layer.ein:s=2048,a=4096; it is timed as chosen, with groups that go along an
//     index, and with those of whole rows. Cases with fields, programs and Python alone are
//     left out. Cases run in f64, f32, tf32 (f32 whose products round to TF32) and bf16, unless
//     they name a dtype.
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

// What operands are, and on which device: with products in TF32 or IEEE's.
typedef struct bench_kind {
  const char *name;
  ein_dtype type;
  int tf32;
  double peak;                 // operations per second of a large product
} bench_kind;

enum { KINDS = 4 };

static bench_kind kinds[KINDS] = {
    {"f64", EIN_F64, 0, 0}, {"f32", EIN_F32, 0, 0}, {"tf32", EIN_F32, 1, 0},
    {"bf16", EIN_BF16, 0, 0}};
static ein_cuda *device[2], *cuda;  // by tf32; the one at work
static ein_ctx *context[2], *ctx;
static double budget = 0.3, total = 200, started;
static double peak_bytes;
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
    const float x = (float)(i * 37 % 101) / 101 - 0.5f;
    if (v->dtype == EIN_F32) ((float *)(void *)block)[i] = x;
    else if (v->dtype == EIN_BF16) memcpy(block + 2 * i, (const char *)&x + 2, 2);  // cut off
    else ((double *)(void *)block)[i] = (double)x;
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

// Times a plan whose first run took until `first` after it was begun.
static ein_status measure_plan(const ein_plan *plan, const ein_run *run, timing *t) {
  double took[RUNS], waited[RUNS], queued[RUNS];
  ein_status st = EIN_OK;
  ein_ticket ticket;
  int n = 0;
  const double from = now();
  while (st == EIN_OK && n < RUNS && (n < 3 || 1e-6 * (now() - from) < budget)) {
    const double before = ein_cuda_counts_get(cuda).seconds, at = now();
    st = ein_plan_enqueue(plan, run, &ticket);
    queued[n] = 1e-6 * (now() - at);
    if (st == EIN_OK) st = ein_plan_wait(plan, ticket);
    waited[n] = 1e-6 * (now() - at);
    took[n++] = ein_cuda_counts_get(cuda).seconds - before;
  }
  if (st != EIN_OK) return st;
  t->device = median(took, n), t->waited = median(waited, n), t->queued = median(queued, n);
  return EIN_OK;
}

static ein_status measure(const bench_case *c, operands *x, timing *t) {
  const void *in[OPERANDS];
  void *out = x->view[x->n - 1].data;
  ein_plan *plan = NULL;
  ein_einsum_desc d;
  ein_run run;
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
  if (st == EIN_OK) st = measure_plan(plan, &run, t);
  ein_plan_destroy(plan);
  return st;
}

static void add(const bench_case *c, const bench_kind *k, double fraction) {
  char name[48];
  int i = 0;
  snprintf(name, sizeof name, "%s %s", c->group, k->name);
  while (i < nsum && strcmp(sums[i].name, name) != 0) i++;
  if (i == 64 || !(fraction > 0)) return;
  if (i == nsum) snprintf(sums[nsum++].name, sizeof name, "%s", name);
  sums[i].log += log(fraction);
  sums[i].n++;
}

static void use(const bench_kind *k) {
  cuda = device[k->tf32];
  ctx = context[k->tf32];
}

static void run_case(const bench_case *c, const bench_kind *k) {
  operands x;
  timing t;
  double longest = 1;
  use(k);
  ein_status st = operands_make(c, k->type, &x);
  if (st == EIN_OK) st = measure(c, &x, &t);
  if (st != EIN_OK) {
    printf("%-20s %-4s %s: %s\n", c->name, k->name, ein_status_text(st),
           ein_ctx_message(ctx));
  } else {
    longest = fmax(c->flops / k->peak, x.bytes / peak_bytes);
    printf("%-20s %-4s %10.4f ms %9.1f GFLOP/s %8.1f GB/s  %5.2f of the roofline  waited %10.4f ms"
           "  queued %8.2f us  first %7.1f ms\n", c->name, k->name, t.device * 1e3,
           1e-9 * c->flops / t.device, 1e-9 * x.bytes / t.device, longest / t.device,
           t.waited * 1e3, t.queued * 1e6, t.first * 1e3);
    add(c, k, longest / t.device);
  }
  operands_free(&x);
  fflush(stdout);
}

// The same with operands made on the way; 0: it is no product of two.
static int functional(bench_case *c) {
  const char *comma = strchr(c->expr, ',');
  if (c->map[0] != 0 || c->fold[0] != 0 || comma == NULL || strchr(comma + 1, ',') != NULL)
    return 0;
  snprintf(c->map, sizeof c->map, "(1.25*x0+0.5)*(0.75*x1+0.25)");
  snprintf(c->group, sizeof c->group, "functional");
  strncat(c->name, "+ab", sizeof c->name - strlen(c->name) - 1);
  return 1;
}

static void run_file(const char *what) {
  char line[1024], path[256];
  const char *colon = strchr(what, ':');
  bench_case c;
  snprintf(path, sizeof path, "%.*s", (int)(colon == NULL ? strlen(what) : (size_t)(colon - what)),
           what);
  FILE *f = fopen(path, "r");
  if (f == NULL) {
    printf("%s: not there\n", path);
    return;
  }
  while (fgets(line, sizeof line, f) != NULL) {
    if (!read_case(line, &c) || (colon != NULL && !functional(&c))) continue;
    for (int k = 0; k < (colon != NULL ? 2 : KINDS); k++) {
      if (c.type != EIN_NONE && (c.type != kinds[k].type || kinds[k].tf32)) continue;
      if (1e-6 * (now() - started) > total) left_out++;
      else run_case(&c, &kinds[k]);
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
  for (int k = 0; k <= KINDS; k++) {
    const int copies = k == KINDS;
    bench_kind *of = &kinds[copies ? 1 : k];
    use(of);
    ein_status st = operands_make(&c[copies], of->type, &x);
    if (st == EIN_OK) st = measure(&c[copies], &x, &t);
    const double n = (double)x.shape[0][0];
    if (copies) peak_bytes = x.bytes / t.device;
    else of->peak = 2 * n * n * n / t.device;
    operands_free(&x);
    if (st != EIN_OK) return 0;
  }
  printf("best here:");
  for (int k = 0; k < KINDS; k++)
    printf(" %.1f GFLOP/s in %s,", 1e-9 * kinds[k].peak, kinds[k].name);
  printf(" copies of %.1f GB/s read and written\n", 1e-9 * peak_bytes);
  return 1;
}

// ---- programs ----

enum { TENSORS = 24, SIZES = 12 };

typedef struct bench_program {
  char *text, name[64], word[SIZES][32];
  ein_size size[SIZES];
  int nsize, n, nin;
  ein_ztensor view[TENSORS];   // inputs, then outputs
  const char *label[TENSORS];
  int64_t shape[TENSORS][RANK];
} bench_program;

// PATH:s=2048,a=4096
static int read_program(const char *what, bench_program *b) {
  char path[256];
  const char *at = strchr(what, ':'), *slash = strrchr(what, '/');
  const size_t n = at == NULL ? strlen(what) : (size_t)(at - what);
  memset(b, 0, sizeof *b);
  snprintf(path, sizeof path, "%.*s", (int)n, what);
  slash = slash == NULL ? what : slash + 1;
  snprintf(b->name, sizeof b->name, "%.*s", (int)strcspn(slash, "."), slash);
  while (at != NULL && b->nsize < SIZES) {
    const char *equal = strchr(++at, '=');
    if (equal == NULL) return 0;
    const long long e = atoll(equal + 1);
    snprintf(b->word[b->nsize], sizeof b->word[0], "%.*s", (int)(equal - at), at);
    b->size[b->nsize].name = b->word[b->nsize];
    b->size[b->nsize++].value = e < most ? e : most;
    at = strchr(at, ',');
  }
  FILE *f = fopen(path, "rb");
  b->text = (char *)calloc(1, 1 << 16);
  if (f == NULL || b->text == NULL) return 0;
  const size_t got = fread(b->text, 1, (1 << 16) - 1, f);
  (void)fclose(f);
  return got > 0;
}

// All its tensors in memory of the device, of what a plan says of them.
static ein_status program_tensors(const ein_plan *plan, bench_program *b) {
  ein_tensor_info t;
  for (int out = 0; out < 2; out++) {
    for (int i = 0; b->n < TENSORS && (out ? ein_plan_output(plan, i, &t)
                                           : ein_plan_input(plan, i, &t)); i++, b->n++) {
      ein_ztensor *v = &b->view[b->n];
      size_t bytes = ein_dtype_size(t.dtype);
      *v = ein_tensor(t.dtype, t.rank, b->shape[b->n], NULL);
      v->space = EIN_CUDA_SPACE;
      for (int r = 0; r < t.rank; r++) bytes *= (size_t)(b->shape[b->n][r] = t.shape[r]);
      b->label[b->n] = t.name;
      EINI_TRY(fill(v, bytes));
    }
    if (!out) b->nin = b->n;
  }
  return EIN_OK;
}

// variant: NULL: as chosen.
static ein_status measure_program(bench_program *b, const char *variant, timing *t,
                                  double *flops) {
  ein_binding at[TENSORS];
  const void *data[TENSORS];
  void *to[TENSORS];
  ein_program_desc d;
  ein_graph *graph = NULL;
  ein_plan *shapes = NULL, *plan = NULL;
  ein_plan_info info;
  ein_options o;
  ein_run run;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  memset(&run, 0, sizeof run);
  o.variant = variant;
  d.text = b->text, d.size = b->size, d.nsize = b->nsize;
  const double begin = now();
  ein_status st = ein_graph_parse(ctx, &d, &graph);
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, 0, NULL, NULL, &shapes);
  if (st == EIN_OK) st = program_tensors(shapes, b);
  for (int i = 0; i < b->n; i++) {
    at[i].name = b->label[i], at[i].view = &b->view[i];
    if (i < b->nin) data[i] = b->view[i].data;
    else to[i - b->nin] = b->view[i].data;
  }
  if (st == EIN_OK) st = ein_plan_graph(ctx, graph, b->n, at, &o, &plan);
  run.in = data, run.out = to;
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  t->first = 1e-6 * (now() - begin);
  if (st == EIN_OK) st = measure_plan(plan, &run, t);
  if (st == EIN_OK) st = ein_plan_info_get(plan, &info);
  *flops = st == EIN_OK ? info.flops : 0;
  ein_plan_destroy(shapes);
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);
  return st;
}

// As chosen, and where there are any with groups that go along an index, and with whole rows.
static void run_program(const char *what) {
  static const char *const variant[] = {NULL, "cuda:along", "cuda:group"};
  bench_program b;
  timing t;
  double flops;
  const int there = read_program(what, &b);
  if (!there) printf("%s: not there, or no sizes\n", what);
  for (int i = 0; i < 6 && there; i++) {
    const int k = i < 3 ? 1 : 2, way = i % 3;  // f32 and TF32
    char name[96];
    use(&kinds[k]);
    b.n = 0;
    snprintf(name, sizeof name, "%s%s%s", b.name, way > 0 ? "/" : "",
             way > 0 ? strchr(variant[way], ':') + 1 : "");
    const ein_status st = measure_program(&b, variant[way], &t, &flops);
    if (way > 0 && st == EIN_ERR_ARGUMENT) printf("%-20s %-4s: none\n", name, kinds[k].name);
    else if (st != EIN_OK)
      printf("%-20s %-4s %s: %s\n", name, kinds[k].name, ein_status_text(st),
             ein_ctx_message(ctx));
    else
      printf("%-20s %-4s %10.4f ms %9.1f GFLOP/s  %5.2f of a product's  waited %10.4f ms  queued "
             "%8.2f us  first %7.1f ms\n", name, kinds[k].name, t.device * 1e3,
             1e-9 * flops / t.device, flops / t.device / kinds[k].peak, t.waited * 1e3,
             t.queued * 1e6, t.first * 1e3);
    for (int v = 0; v < b.n; v++) ein_cuda_free(cuda, b.view[v].data);
    fflush(stdout);
  }
  free(b.text);
}

// Both devices are one, with and without TF32.
static int begin(const char *library) {
  char facts[1024];
  for (int k = 0; k < 2; k++) {
    ein_cuda_desc want;
    ein_ctx_desc desc;
    memset(&want, 0, sizeof want);
    memset(&desc, 0, sizeof desc);
    want.only = 2;
    want.tf32 = k;
    want.driver = want.nvrtc = want.cublas = library;
    if (ein_cuda_create(&want, NULL, &device[k]) != EIN_OK) return 0;
    (void)ein_cuda_info(device[k], facts, sizeof facts);
    if (k == 0) puts(facts);
    if (ein_cuda_use(device[k], &desc) != EIN_OK) return 0;
    if (ein_ctx_create(&desc, &context[k]) != EIN_OK) return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  const char *library = NULL;
  int i = 1, ok = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    if (argv[i][1] == 's') budget = atof(argv[i + 1]);
    if (argv[i][1] == 't') total = atof(argv[i + 1]);
    if (argv[i][1] == 'm') most = atoll(argv[i + 1]);
    if (argv[i][1] == 'l') library = argv[i + 1];
  }
  if (begin(library)) {
    started = now();
    ok = i == argc || peaks();
    for (; ok && i < argc; i++) {
      if (strstr(argv[i], ".ein") != NULL) run_program(argv[i]);
      else run_file(argv[i]);
    }
    for (int k = 0; k < nsum; k++)
      printf("geometric mean of %d, %s: %.3f of the roofline\n", sums[k].n, sums[k].name,
             exp(sums[k].log / sums[k].n));
    if (left_out > 0) printf("%d left out for want of time\n", left_out);
    if (!ok) printf("no peaks: %s\n", ein_ctx_message(ctx));
  }
  for (int k = 0; k < 2; k++) {
    ein_ctx_destroy(context[k]);
    ein_cuda_destroy(device[k]);
  }
  return !ok;
}
