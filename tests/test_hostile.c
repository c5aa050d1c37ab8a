// Texts of less than 100 kB that ask for much: read, planned, fitted into memory, decomposed over
// places. Each takes less than ten seconds of the processor and a GB of memory, or is refused for
// its size.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fewer.h"

#define TEXT_MAX 100000
#define MEMORY_MAX ((int64_t)1 << 30)
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SECONDS_MAX 120.0
#endif
#endif
#ifndef SECONDS_MAX
#define SECONDS_MAX 30.0
#endif

static int checks = 0, failures = 0;

// Texts and nets are so many times shorter, and decompositions give up earlier: what is wrong in
// memory shows in them too. For every commit and with sanitizers.
static int shorter = 1;

typedef struct counter {
  int64_t live, most;
} counter;

static void *count_alloc(size_t size, size_t align, void *user) {
  counter *c = (counter *)user;
  if ((int64_t)size > MEMORY_MAX - c->live) {
    c->most = MEMORY_MAX + 1;
    return NULL;
  }
  char *raw = (char *)malloc(size + align + sizeof raw);
  if (raw == NULL) return NULL;
  uintptr_t p = ((uintptr_t)raw + sizeof raw + align - 1) / align * align;
  memcpy((void *)(p - sizeof raw), &raw, sizeof raw);
  c->live += (int64_t)size;
  if (c->live > c->most) c->most = c->live;
  return (void *)p;
}

static void count_free(void *ptr, size_t size, void *user) {
  char *raw;
  if (ptr == NULL) return;
  memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  ((counter *)user)->live -= (int64_t)size;
  free(raw);
}

// head, then line with its number (%d, up to four times) as often as it fits, then tail.
typedef struct hostile {
  const char *name, *head, *line, *tail;
  int n;                   // times at most
  int64_t p;               // places; 0: only planned for one
} hostile;

static const hostile texts[] = {
    {"wrap over two axes", "input x[3,3]\n", "", "T[w=127] = x[w,w-1|wrap]\n", 0, 3},
    {"wrap over two axes, far", "input x[3,3]\n", "", "T[w=1000000] = x[w,w-1|wrap]\n", 0, 3},
    {"wrap many times", "input x[3]\n", "", "Y[i=10000] = x[i|wrap]\n", 0, 1 << 20},
    {"reflect many times", "input x[3]\n", "", "Y[i=10000] = x[i-5000|reflect]\n", 0, 1 << 20},
    {"wrap without end", "input x[3]\n", "", "Y[i=1000000000000] = x[i|wrap]\n", 0, 4},
    {"wrapped statements", "input x[3]\n", "A%d[i=9] = x[i-%d|wrap]\n", "", 4000, 3},
    {"wrapped alike", "input x[3]\n", "A%d[i=9] = x[i-5|wrap]\n", "", 4000, 3},
    {"wrapped accesses", "input x[3]\nY[i=3] = 0", " + x[i-%d|wrap]", "\n", 4000, 4},
    {"wrapped accesses of statements", "input x[3]\n",
     "A%d[i=3] = x[i-%d|wrap] + x[i-3|wrap]\n", "", 4000, 4},
    {"pads of pads", "input x[3]\nA0[i] = x[i]\n", "A%d[i=3] = A%d[i-1|wrap]\n", "", 2000, 3},
    {"a chain", "input x[3]\nA0[i] = x[i]\n", "A%d[i] = A%d[i]+1\n", "", 10000, 4},
    {"softmax of softmax", "input x[2,2]\nA0[i,j] = x[i,j]\n",
     "A%d[i,j] = softmax[j](A%d[i,j])\n", "", 4000, 4},
    {"statements", "input x[3]\n", "A%d[i] = x[i]\n", "", 10000, 4},
    {"scalars", "", "A%d = 1\n", "", 20000, 4},
    {"scalars on many places", "", "A%d = 1\n", "", 20000, 1 << 16},
    {"statements unlike each other", "input x[1]\n", "A%d[i=%d] = x[0]\n", "", 10000, 4},
    {"pieces", "input x[1]\nA[i] = x[i]\n", "A[i+%d] = x[i]\n",
     "B[i=3] = A[i|wrap]\n", 10000, 4},
    {"terms", "input x[3]\nY[i] = 0", " + x[i]", "\n", 20000, 4},
    {"factors", "input x[6000]\nY[i=2] = 1", "*x[i+%d]", "\n", 5000, 4},
    {"indices", "input x[2]\nY = x[0]", "*x[q%d]", "\n", 500, 4},
    {"many indices", "input x[2]\nY = x[0]", "*x[q%d]", "\n", 10000, 4},
    {"two thousand indices", "input x[2]\nY = x[0]", "*x[q%d]", "\n", 2000, 4},
    {"indices on the left", "input x[2]\nY[q=1", ",q%d=1", "] = x[0]\n", 3000, 4},
    {"many indices on the left", "input x[2]\nY[q=1", ",q%d=1", "] = x[0]\n", 20000, 4},
    {"sums", "input x[2]\nY = 0", " + sum[a](x[a]*%d)", "\n", 4000, 4},
    {"params", "param p0 = 1\n", "param p%d = 2\nY%d = p%d*p0\n", "", 3000, 4},
    {"a long weak expression", "param p = 1\ninput x[2] : f32\nY[i] = x[i]*(p", "+p", ")\n",
     40000, 4},
    {"macros", "input x[2]\ndef g0(a) = a+1\n", "def g%d(a) = g%d(a)+g%d(a)\n",
     "Y[i] = g40(x[i])\n", 40, 4},
    {"macros in a row", "input x[2]\ndef g0(a) = a+1\n",
     "def g%d(a) = a+1\nY%d[i] = g%d(x[i])\n", "", 3000, 4},
    {"mistakes", "", "Y%d[i] = \n", "", 9000, 4},
    {"products on all places", "input X0[i=4096,j=4096], W[j,k=4096] : f32\n",
     "X%d[i,k] = X%d[i,j]*W[j,k]\n", "", 12, 1 << 20},
    {"many products on many places", "input X0[i=4096,j=4096], W[j,k=4096] : f32\n",
     "X%d[i,k] = X%d[i,j]*W[j,k]\n", "", 3000, 1 << 16},
    {"sums unlike each other on all places", "input A[i=9000,j=9000] : f32\n",
     "Y%d[i=8000] = sum[j](A[i+%d,j])\nZ%d[i] = Y%d[i+1]\n", "", 900, 1 << 20},
    {"a hundred layers", "input X0[i=512,j=1024], W[j,k=1024] : f32\n",
     "X%d[i,k] = relu(sum[j](X%d[i,j]*W[j,k]))\n", "", 2000, 1024},
    {"indices of three on odd places", "input x[3]\n",
     "A%d[a,b=3,c=3,d=3,e=3,f=3,g=3,h=3,k=3,l=3,m=3,n=3,o=3,p=3,q=3,r=3,s=3,t=3,u=3,v=3] = x[a]\n",
     "", 900, 390625}};

static char text[TEXT_MAX + 1];

static void make_text(const hostile *h) {
  size_t at = (size_t)snprintf(text, sizeof text, "%s", h->head), tail = strlen(h->tail);
  for (int i = 1; i <= h->n; i++) {
    char line[200];
    // A chain's second number is that of the line before, as is a macro's; others take them all.
    int before = strstr(h->line, "A%d[i] = A") || strstr(h->line, "= softmax") ||
                 strstr(h->line, "= A%d[i-1") || strstr(h->line, "= g%d(a)+") ||
                 strstr(h->line, "X%d[i,j]") ? i - 1 : i;
    size_t n = (size_t)snprintf(line, sizeof line, h->line, i, before, before, before);
    if (at + n + tail >= (size_t)(TEXT_MAX / shorter)) break;
    memcpy(text + at, line, n);
    at += n;
  }
  memcpy(text + at, h->tail, tail + 1);
}

// ---- programs ----

// Plans for one place (p = 0), also within a budget (p = -1), or decomposes and simulates.
static ein_status take(ein_ctx *ctx, int64_t p, ein_cost cost) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st == EIN_OK && p == 0) {
    ein_plan *plan = NULL;
    st = ein_plan_graph(ctx, g, 0, NULL, NULL, &plan);
    ein_plan_destroy(plan);
  } else if (st == EIN_OK && p < 0) {
    ein_plan *plan = NULL;
    ein_options o;
    memset(&o, 0, sizeof o);
    o.memory = (size_t)1 << 20;
    st = ein_plan_graph(ctx, g, 0, NULL, &o, &plan);
    ein_plan_destroy(plan);
  } else if (st == EIN_OK) {
    ein_decompose_desc dd;
    ein_decomposition *dec = NULL;
    ein_sim_info info;
    memset(&dd, 0, sizeof dd);
    dd.p = p;
    dd.cost = cost;
    dd.max_work = shorter > 1 ? 60000000 / shorter : 0;
    st = ein_decompose(ctx, g, &dd, &dec);
    double tasks = (double)p * (double)ein_graph_statements(g);
    if (st == EIN_OK && (shorter == 1 || tasks * shorter < 1e7))
      st = ein_simulate(ctx, g, dec, NULL, &info);
    ein_decomposition_destroy(dec);
  }
  ein_graph_destroy(g);
  return st;
}

static void check(int ok, const char *name, const char *how, const char *what, double value) {
  checks++;
  if (ok) return;
  failures++;
  printf("%s, %s: %s (%g)\n", name, how, what, value);
}

// A ctx that counts, and when its use began.
typedef struct watch {
  counter c;
  ein_ctx *ctx;
  clock_t start;
} watch;

static int watch_begin(watch *w) {
  ein_ctx_desc desc;
  memset(w, 0, sizeof *w);
  memset(&desc, 0, sizeof desc);
  desc.allocator.alloc_fn = count_alloc;
  desc.allocator.free_fn = count_free;
  desc.allocator.user = &w->c;
  w->start = clock();
  return ein_ctx_create(&desc, &w->ctx) == EIN_OK;
}

static void watch_end(watch *w, ein_status st, const char *name, const char *how) {
  double seconds = (double)(clock() - w->start) / CLOCKS_PER_SEC;
  int refused = st != EIN_OK && ein_ctx_errors(w->ctx) > 0 && ein_ctx_error(w->ctx, 0)->message[0];
  check(seconds < SECONDS_MAX, name, how, "takes too long", seconds);
  check(w->c.most <= MEMORY_MAX, name, how, "takes too much memory", (double)w->c.most);
  check(st == EIN_OK || (refused && st != EIN_ERR_NO_MEMORY && st != EIN_ERR_INTERNAL), name, how,
        ein_status_name(st), 0);
  if (getenv("VERBOSE") != NULL)
    printf("%-30s %-10s %6.2f s %8.1f MB %.70s\n", name, how, seconds, (double)w->c.most / 1e6,
           st == EIN_OK ? "" : ein_ctx_message(w->ctx));
  ein_ctx_destroy(w->ctx);
  check(w->c.live == 0, name, how, "leaks", (double)w->c.live);
}

static int attack(const hostile *h, int64_t p, ein_cost cost) {
  watch w;
  if (!watch_begin(&w)) return 0;
  watch_end(&w, take(w.ctx, p, cost), h->name,
            p > 0 ? ein_cost_name(cost) : p < 0 ? "budget" : "plan");
  return 1;
}

// ---- expressions, whose labels would be letters of up to three bytes ----

typedef struct net {
  const char *name;
  int n, kind, rank;       // operands; what links them; axes of each at most
  int64_t extent;
  const char *path;        // "budget": auto, within one
  int refused;             // 1: for its many indices and operands
} net;

enum { SCALARS, CHAIN, STAR, GRAPH, ALIKE };

static const net nets[] = {
    {"vectors summed", 20000, SCALARS, 1, 2, "auto", 0},
    {"vectors summed", 40000, SCALARS, 1, 2, "none", 0},
    {"vectors summed", 20000, SCALARS, 1, 2, "budget", 0},
    {"a chain of matrices", 12000, CHAIN, 2, 2, "auto", 0},
    {"a chain of matrices", 12000, CHAIN, 2, 2, "none", 1},
    {"a chain of matrices", 12000, CHAIN, 2, 2, "budget", 0},
    {"a star of matrices", 10000, STAR, 2, 2, "auto", 0},
    {"a star of matrices", 10000, STAR, 2, 1, "none", 1},
    {"a random graph", 6000, GRAPH, 3, 1, "naive", 1},
    {"a random graph", 6000, GRAPH, 3, 1, "none", 0},
    {"operands of one shape", 100, ALIKE, 300, 1, "dp", 0},
    {"one operand of many axes", 1, ALIKE, 14000, 1, "auto", 0}};

// Labels of operand k; gives how many.
static int net_labels(const net *e, int k, int *label) {
  switch (e->kind) {
    case SCALARS: label[0] = 0; return 1;
    case CHAIN: label[0] = k; label[1] = k + 1; return 2;
    case STAR: label[0] = 0; label[1] = k + 1; return 2;
    case GRAPH:  // every label twice: neighbours in a ring, and operands far apart
      label[0] = k;
      label[1] = (k + 1) % e->n;
      label[2] = e->n + (int)((int64_t)k * 2477 % e->n) / 2;
      return 3;
    default: for (int i = 0; i < e->rank; i++) label[i] = i; return e->rank;
  }
}

static ein_status net_plan(ein_ctx *ctx, const ein_einsum_desc *d, int budget) {
  ein_plan *plan = NULL;
  ein_einsum_desc e = *d;
  if (budget) e.options.memory = (size_t)1 << 28;
  ein_status st = ein_plan_create(ctx, &e, &plan);
  ein_plan_destroy(plan);
  return st;
}

static int attack_net(net of) {
  const net *e = &of;
  if (!of.refused && of.n > 100) of.n = 1 + (of.n - 1) / shorter;
  size_t n = (size_t)e->n;
  int *label = (int *)malloc(n * (size_t)e->rank * sizeof *label);
  int *count = (int *)malloc((n + 1) * sizeof *count);
  const int **labels = (const int **)malloc((n + 1) * sizeof *labels);
  int64_t *shape = (int64_t *)malloc((size_t)e->rank * sizeof *shape);
  ein_ztensor *in = (ein_ztensor *)calloc(n, sizeof *in), out;
  ein_einsum_desc d;
  watch w;
  int ok = label != NULL && count != NULL && labels != NULL && shape != NULL && in != NULL;
  for (int i = 0; ok && i < e->rank; i++) shape[i] = e->extent;
  for (int k = 0; ok && k < e->n; k++) {
    labels[k] = label + (size_t)k * (size_t)e->rank;
    in[k].rank = count[k] = net_labels(e, k, label + (size_t)k * (size_t)e->rank);
    in[k].dtype = EIN_F64;
    in[k].shape = shape;
  }
  memset(&out, 0, sizeof out);
  memset(&d, 0, sizeof d);
  out.dtype = EIN_F64;
  if (ok && watch_begin(&w)) {
    int budget = strcmp(e->path, "budget") == 0;
    labels[n] = label;
    count[n] = 0;
    d.labels = labels;
    d.nlabels = count;
    d.nin = e->n;
    d.in = in;
    d.out = &out;
    d.options.path = budget ? NULL : e->path;
    ein_status st = net_plan(w.ctx, &d, budget);
    check(st == (e->refused ? EIN_ERR_TOO_LARGE : EIN_OK), e->name, e->path, ein_status_name(st),
          0);
    check(!e->refused || strstr(ein_ctx_message(w.ctx), "too many indices and operands") != NULL,
          e->name, e->path, "is not said to be too large", 0);
    watch_end(&w, st, e->name, e->path);
  } else {
    ok = 0;
  }
  free(label);
  free(count);
  free((void *)labels);
  free(shape);
  free(in);
  return ok;
}

// hostile [WORD]: only the texts with this word in their names.
int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  shorter = fewer();
  const int first = shorter > 1 ? EIN_COST_SECONDS : EIN_COST_PAPER;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    const hostile *h = &texts[k];
    if (argc > 1 && strstr(h->name, argv[1]) == NULL) continue;
    make_text(h);
    int ok = attack(h, 0, EIN_COST_PAPER) && attack(h, -1, EIN_COST_PAPER);
    for (int cost = first; cost < EIN_COST_COUNT && ok && h->p > 0; cost++)
      if (cost != EIN_COST_PAPER_CODE) ok = attack(h, h->p, (ein_cost)cost);
    if (!ok) return 1;
  }
  for (size_t k = 0; k < sizeof nets / sizeof *nets; k++)
    if ((argc < 2 || strstr(nets[k].name, argv[1]) != NULL) && !attack_net(nets[k])) return 1;
  if (failures == 0) printf("ok %d checks\n", checks);
  return failures != 0;
}
