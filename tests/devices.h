// Devices under the stub of CUDA (cuda_stub.c), contexts on them, what a run of places gave and
// moved, and programs of whole numbers. Include after the implementations of einsum.h, of
// einsum_cuda.h and of einsum_dist.h, oracle.h, check.h, util.h and random_graph.h.
#include <dlfcn.h>

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void), (*stub_asked)(void), (*stub_peer)(void);
static long (*stub_ran)(int device);
static int (*stub_under_way)(void);

// 0: there is no stub.
static int stub_open(void) {
  void *h = dlopen(stub, RTLD_NOW);
  if (h == NULL) {
    printf("no stub: %s\n", dlerror());
    return 0;
  }
  *(void **)&stub_fail = dlsym(h, "stub_fail");
  *(void **)&stub_calls = dlsym(h, "stub_calls");
  *(void **)&stub_live = dlsym(h, "stub_live");
  *(void **)&stub_asked = dlsym(h, "stub_asked");
  *(void **)&stub_peer = dlsym(h, "stub_peer");
  *(void **)&stub_ran = dlsym(h, "stub_ran");
  *(void **)&stub_under_way = dlsym(h, "stub_under_way");
  return 1;
}

// Compiled kernels, which are the same on all devices.
static struct { char name[96]; void *at; size_t bytes; } kept[4096];
static int nkept;

static int shelf_load(void *user, const char *name, void *to, size_t room, size_t *bytes) {
  (void)user;
  for (int i = 0; i < nkept; i++) {
    if (strcmp(kept[i].name, name) != 0) continue;
    *bytes = kept[i].bytes;
    if (to != NULL) memcpy(to, kept[i].at, room < *bytes ? room : *bytes);
    return 1;
  }
  return 0;
}

static void shelf_save(void *user, const char *name, const void *from, size_t bytes) {
  (void)user;
  if (nkept == 4096) return;
  snprintf(kept[nkept].name, sizeof kept->name, "%s", name);
  kept[nkept].at = malloc(bytes);
  memcpy(kept[nkept].at, from, bytes);
  kept[nkept++].bytes = bytes;
}

static void shelf_free(void) {
  for (int i = 0; i < nkept; i++) free(kept[i].at);
}

// n devices that are asked for all they can do.
static ein_cuda *open_devices(int n, const ein_allocator *al) {
  static const ein_cuda_shelf shelf = {shelf_load, shelf_save, NULL};
  ein_cuda_desc d;
  ein_cuda *cuda = NULL;
  char text[8];
  snprintf(text, sizeof text, "%d", n);
  setenv("STUB_DEVICES", text, 1);
  memset(&d, 0, sizeof d);
  d.only = 1;
  d.devices = n;
  d.shelf = &shelf;
  d.driver = d.nvrtc = d.cublas = stub;
  return ein_cuda_create(&d, al, &cuda) == EIN_OK && ein_cuda_ready(cuda) ? cuda : NULL;
}

static ein_ctx *ctx_on(ein_cuda *cuda, const ein_allocator *al, int width) {
  ein_ctx_desc d;
  ein_ctx *on = NULL;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  if (al != NULL) d.allocator = *al;
  d.executor.width = width;
  d.executor.parallel_for = width > 1 ? test_for : NULL;
  if (cuda != NULL && ein_cuda_use(cuda, &d) != EIN_OK) return NULL;
  return ein_ctx_create(&d, &on) == EIN_OK ? on : NULL;
}

// ---- runs ----

typedef struct outcome {
  void *out[MAX_TENSORS];
  int nout;
  ein_dist_stats stats;
  ein_dist_info info;
  ein_cuda_counts counts;    // of the run
} outcome;

static void outcome_free(outcome *o) {
  for (int i = 0; i < o->nout; i++) free(o->out[i]);
  o->nout = 0;
}

// Twice, so that memory is used again; inputs are in v.
static ein_status run_places(ein_ctx *on, ein_cuda *cuda, const ein_graph *g,
                             const ein_dist_desc *desc, const values *v, outcome *o) {
  ein_dist *d = NULL;
  ein_run run;
  const void *in[MAX_TENSORS];
  int nin = 0;
  memset(o, 0, sizeof *o);
  memset(&run, 0, sizeof run);
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = v->data[t];
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      o->out[o->nout++] = orc_alloc(orc_count(&g->tensor[t]), 16);
  }
  run.in = in;
  run.out = o->out;
  ein_status st = ein_dist_create(on, g, desc, &d);
  if (st == EIN_OK) (void)ein_dist_info_get(d, &o->info);
  for (int i = 0; i < 2 && st == EIN_OK; i++) {
    const ein_cuda_counts before = ein_cuda_counts_get(cuda);
    st = ein_dist_execute(d, &run, &o->stats);
    CHECK(st != EIN_OK || stub_under_way() == 0);
    o->counts = ein_cuda_counts_get(cuda);
    o->counts.to_device -= before.to_device, o->counts.from_device -= before.from_device;
    o->counts.peer -= before.peer, o->counts.launches -= before.launches;
    o->counts.gemms -= before.gemms;
  }
  ein_dist_destroy(d);
  CHECK(stub_under_way() == 0);  // in memory that was released
  return st;
}

static int outcome_right(const ein_graph *g, const values *v, const outcome *o) {
  int n = 0, right = 1;
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      right &= orc_compare_err(g->tensor[t].dtype, orc_count(&g->tensor[t]), o->out[n++],
                               v->data[t], v->err[t]);
  return right;
}

static int outcome_same(const ein_graph *g, const outcome *a, const outcome *b) {
  int n = 0, same = 1;
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    same &= memcmp(a->out[n], b->out[n], (size_t)orc_count(&g->tensor[t]) *
                                             ein_dtype_size(g->tensor[t].dtype)) == 0;
    n++;
  }
  return same;
}

// ---- programs ----

typedef struct problem {
  ein_graph *g;
  values v;
} problem;

static void problem_begin(problem *x, const char *text) {
  ein_program_desc d;
  ein_scalar none[1] = {{0, 0, 0}};
  memset(x, 0, sizeof *x);
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(NULL, &d, &x->g) == EIN_OK);
  for (int t = 0; t < x->g->ntensor; t++) {
    const eini_tensor *e = &x->g->tensor[t];
    const int64_t n = orc_count(e);
    x->v.data[t] = orc_alloc(n, 16);
    x->v.err[t] = (double *)orc_alloc(n, sizeof(double));
    for (int64_t i = 0; i < n && e->role == EIN_ROLE_INPUT; i++) {
      if (e->dtype == EIN_I32) ((int32_t *)x->v.data[t])[i] = (int32_t)(i * 7 % 11 - 5);
      else ((double *)x->v.data[t])[i] = (double)(i * 7 % 11 - 5);
    }
  }
  orc_eval_err(x->g, x->v.data, x->v.err, none);
}

static void problem_end(problem *x) {
  values_free(x->g, &x->v);
  ein_graph_destroy(x->g);
}

static int64_t bytes_of(const ein_graph *g, ein_role role) {
  int64_t n = 0;
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == role)
      n += orc_count(&g->tensor[t]) * (int64_t)ein_dtype_size(g->tensor[t].dtype);
  return n;
}

// An element of a block in the whole tensor.
static int64_t in_whole(const eini_tensor *e, const int64_t *origin, const int64_t *extent,
                        int64_t k) {
  int64_t at = 0, step = 1;
  for (int r = e->rank - 1; r >= 0; r--) {
    at += (origin[r] + k % extent[r]) * step;
    k /= extent[r];
    step *= e->shape[r];
  }
  return at;
}

// Runs a plan of places that bind blocks, of f64; are the blocks of outputs right?
static int run_blocks(const ein_dist *d, const ein_graph *g, int places, const values *v) {
  enum { PLACES = 8 };
  void *block[MAX_TENSORS][PLACES], *out[MAX_TENSORS * PLACES];
  const void *in[MAX_TENSORS * PLACES];
  int nin = 0, nout = 0, wrong = 0;
  ein_run run;
  memset(&run, 0, sizeof run);
  for (int back = 0; back < 2; back++) {
    for (int t = 0; t < g->ntensor; t++) {
      const eini_tensor *e = &g->tensor[t];
      int64_t origin[4], extent[4], n;
      for (int q = 0; q < places && e->role != EIN_ROLE_TEMP; q++) {
        CHECK(ein_dist_block(d, t, q, origin, extent, &n) == EIN_OK);
        if (!back) block[t][q] = n > 0 ? orc_alloc(n, sizeof(double)) : NULL;
        double *here = (double *)block[t][q], *whole = (double *)v->data[t];
        for (int64_t k = 0; k < n; k++) {
          const int64_t at = in_whole(e, origin, extent, k);
          if (e->role == EIN_ROLE_INPUT && !back) here[k] = whole[at];
          else if (back) wrong += fabs(here[k] - whole[at]) > 0;
        }
        if (back) free(here);
        else if (e->role == EIN_ROLE_INPUT) in[nin++] = here;
        else out[nout++] = here;
      }
    }
    run.in = in;
    run.out = out;
    if (!back) CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  }
  return wrong == 0;
}
