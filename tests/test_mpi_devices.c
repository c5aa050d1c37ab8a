// Ranks of MPI that drive devices: mpirun -n N test_mpi_devices STUB. Under the stub of CUDA
// (cuda_stub.c), whose memory a library of MPI may touch only where STUB_AWARE says so: messages
// are of the host's memory, or of the device's where MPI is said to take that, as its profiling
// interface shows; both give the same bits, and what the oracle says. A rank whose device fails
// takes all others with it.
#define _POSIX_C_SOURCE 200112L
#include <dlfcn.h>

#define EINI_MPI_PIECE ((size_t)256)  // so that messages go in pieces
#define EINI_DIST_GROUP 3             // and groups are many
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

static const char *stub;
static void (*stub_fail)(long n, int code);
static long (*stub_calls)(void), (*stub_live)(void);
static int (*stub_device)(const void *at);
static int rank, ranks;

// ---- what MPI is given ----

static int64_t of_host, of_device, spread, folded;  // bytes, and messages of groups
static int answer;             // of the library, when it is asked

int MPIX_Query_cuda_support(void) { return answer; }

static void seen(const void *data, int64_t bytes) {
  if (stub_device != NULL && stub_device(data) >= 0) of_device += bytes;
  else of_host += bytes;
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  seen(data, n);
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
  seen(data, n);
  return PMPI_Irecv(data, n, type, from, tag, comm, request);
}

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
  seen(data, n);
  spread++;
  return PMPI_Ibcast(data, n, type, root, comm, request);
}

// What outputs are gathered by is bytes. Operators of ours run on the host.
int MPI_Ireduce(const void *data, void *to, int n, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request) {
  if (type != MPI_BYTE) CHECK(stub_device(data == MPI_IN_PLACE ? to : data) < 0);
  folded += type != MPI_BYTE;
  return PMPI_Ireduce(data, to, n, type, op, root, comm, request);
}

// ---- devices ----

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

// Two devices are dealt to the ranks.
static ein_cuda *open_device(void) {
  static const ein_cuda_shelf shelf = {shelf_load, shelf_save, NULL};
  ein_cuda_desc d;
  ein_cuda *cuda = NULL;
  memset(&d, 0, sizeof d);
  d.only = 1;
  d.device = rank;
  d.around = 1;
  d.shelf = &shelf;
  d.driver = d.nvrtc = d.cublas = stub;
  CHECK(ein_cuda_create(&d, NULL, &cuda) == EIN_OK && ein_cuda_ready(cuda));
  return cuda;
}

static ein_ctx *ctx_on(ein_cuda *cuda) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  CHECK(ein_cuda_use(cuda, &d) == EIN_OK && ein_ctx_create(&d, &ctx) == EIN_OK);
  return ctx;
}

// ---- runs ----

enum { BY_HOST, DIRECT, ASKED, WAYS };  // MPI takes no memory of devices, does, or says so itself

typedef struct outcome {
  void *out[MAX_TENSORS];
  int nout;
  int64_t away;              // bytes that places have on devices
  int64_t moved;             // bytes
} outcome;

static void outcome_free(outcome *o) {
  for (int i = 0; i < o->nout; i++) free(o->out[i]);
  o->nout = 0;
}

// Over all ranks.
static int64_t total(int64_t x) {
  int64_t all = 0;
  MPI_Allreduce(&x, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static int alike(ein_status st) {
  int mine[2], most[2];
  mine[0] = (int)st, mine[1] = -(int)st;
  MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return most[0] == -most[1];
}

// A graph, cut or under a schedule, over p places of all ranks, twice; outputs are whole everywhere
// then.
static ein_status run_on(ein_ctx *ctx, const ein_graph *g, const cuts *c, const ein_schedule *how,
                         int p, int way, const values *v, outcome *o) {
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist_info info;
  ein_dist *d = NULL;
  ein_run run;
  const void *in[MAX_TENSORS];
  int nin = 0, n = 0;
  memset(o, 0, sizeof *o);
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  memset(&info, 0, sizeof info);
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = v->data[t];
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      o->out[o->nout++] = orc_alloc(orc_count(&g->tensor[t]), 16);
  }
  answer = way == ASKED;
  EINI_TRY(ein_fabric_mpi(ctx, MPI_COMM_WORLD, p, &f));
  CHECK(ein_mpi_aware(&f, -1) == answer);
  if (way != ASKED) CHECK(ein_mpi_aware(&f, way == DIRECT) == (way == DIRECT));
  desc.fabric = &f;
  desc.schedule = how;
  desc.parts = c == NULL ? NULL : c->parts;
  desc.pins = c == NULL ? NULL : c->pins;
  run.in = in;
  run.out = o->out;
  ein_status st = ein_dist_create(ctx, g, &desc, &d);
  if (st == EIN_OK) (void)ein_dist_info_get(d, &info);
  o->away = info.away_bytes;
  o->moved = info.bytes;
  for (int i = 0; i < 2 && st == EIN_OK; i++) st = ein_dist_execute(d, &run, NULL);
  for (int t = 0; t < g->ntensor && st == EIN_OK; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    ein_ztensor whole = dense(&g->tensor[t], o->out[n++]);
    const int64_t host = of_host;
    if (orc_count(&g->tensor[t]) > 0) st = ein_mpi_gather(&f, &whole, -1);
    of_host = host;
  }
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
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

// All ways of a graph. Random cuts are those of all ranks.
static void test_ways(const ein_graph *g, const cuts *c, const ein_schedule *how, int p,
                      const values *v, int64_t *direct) {
  outcome o[WAYS];
  for (int way = 0; way < WAYS; way++) {
    if (way != BY_HOST) setenv("STUB_AWARE", "1", 1);
    ein_cuda *cuda = open_device();
    ein_ctx *ctx = ctx_on(cuda);
    const int64_t before = of_device;
    const ein_status st = run_on(ctx, g, c, how, p, way, v, &o[way]);
    if (st != EIN_OK) printf("  %s: %s\n", ein_status_name(st), ein_ctx_message(ctx));
    CHECK(st == EIN_OK && outcome_right(g, v, &o[way]));
    CHECK(way == BY_HOST || outcome_same(g, &o[0], &o[way]));
    CHECK(way != BY_HOST || of_device == before);
    *direct += of_device - before;
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    unsetenv("STUB_AWARE");
  }
  for (int way = 0; way < WAYS; way++) outcome_free(&o[way]);
}

static void test_random(int count, uint64_t seed) {
  int64_t direct = 0;
  int done = 0;
  for (int n = 0; n < count; n++) {
    static cuts c;
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_ctx *own = monoid_ctx();
    ein_graph *g = random_graph(own, (int)draw(1, 4));
    const int p = chance(50) ? ranks : ranks + (int)draw(1, 3);
    values v;
    if (g != NULL && g->nstmt <= MAX_STMTS) {
      const int before = failures;
      random_cuts(g, p, &c);
      values_make(g, seed + (uint64_t)n, &v);
      test_ways(g, &c, NULL, p, &v, &direct);
      if (failures > before)
        printf("case %d of seed %d, %d places, rank %d\n", n, (int)seed, p, rank);
      values_free(g, &v);
      done++;
    }
    ein_graph_destroy(g);
    ein_ctx_destroy(own);
  }
  direct = total(direct);
  CHECK(ranks == 1 || direct > 0);
  if (rank == 0)
    printf("  %d graphs, %lld bytes of messages of devices\n", done, (long long)direct);
}

// Blocks that many read whole, folds over many, more than a piece of a message.
static const char *const texts[] = {
    "input A[i=40,j=30], B[j,k=24], C[k,l=36] : f64\nT[i,k] = A[i,j]*B[j,k]\n"
    "Y[i,l] = T[i,k]*C[k,l]\nS[l] = max[i](Y[i,l])\noutput S, Y\n",
    "input A[i=90,j=30] : i32\nS[j] = sum[i](A[i,j]*1000)\nM[j] = max[i](A[i,j]*2)\n"
    "T[j] = S[j] - M[j]\nV = sum[j](T[j])\noutput V\n",
    "input A[i=30,j=90] : f64\nM[i] = mean[j](A[i,j])\nP[i] = argmax[j](A[i,j])\n"
    "Y[i,j] = A[i,j] - M[i]\noutput Y, P\n"};

static ein_graph *problem(const char *text, values *v) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(NULL, &d, &g) == EIN_OK);
  values_make(g, 11, v);
  return g;
}

static void test_programs(void) {
  int64_t direct = 0;
  for (int k = 0; k < 3; k++) {
    for (int seed = 0; seed < 4; seed++) {
      static cuts c;
      values v;
      ein_graph *g = problem(texts[k], &v);
      rng_state = (uint64_t)(100 * k + seed);
      random_cuts(g, ranks, &c);
      test_ways(g, &c, NULL, ranks, &v, &direct);
      values_free(g, &v);
      ein_graph_destroy(g);
    }
  }
  direct = total(direct);
  const int64_t groups = total(spread), folds = total(folded);
  CHECK(ranks == 1 || direct > 1000);
  CHECK(ranks < 3 || (groups > 0 && folds > 0));
  if (rank == 0)
    printf("  %lld bytes of messages of devices, %lld of groups, %lld folds\n", (long long)direct,
           (long long)groups, (long long)folds);
}

// A schedule, for all ranks, under which they fetch what all read in a step, or tiles go round, and
// what is between two statements moves, with sums that meet at home.
static ein_graph *scheduled(int round, values *v, ein_schedule **how) {
  char text[1024];
  ein_schedule_desc d;
  ein_graph *g = problem("input A[i=24,k=20], B[k,j=30] : f64\nC[i,j] = A[i,k]*B[k,j]\n"
                         "S[i] = max[j](C[i,j])\nY[i,j] = C[i,j] - S[i]\noutput S, Y\n", v);
  snprintf(text, sizeof text, "machine g=%d\nplace A, B, C xy->x\nplace S x->x\n"
           "place Y xy->y\non C\ndivide(i, io, ii, %d)\ndivide(k, ko, ki, 4)\n"
           "reorder(io, ko, ii, j, ki)\ndistribute(io)\n%scommunicate([A, B], %s)\non S\n"
           "distribute([j], [jo], [ji], [g])\non Y\ndistribute([j], [jo], [ji], [g])\n", ranks,
           ranks, round ? "rotate(ko, [io], kos)\n" : "", round ? "kos" : "ko");
  memset(&d, 0, sizeof d);
  d.text = text;
  d.places = ranks;
  CHECK(ein_schedule_create(NULL, g, &d, how) == EIN_OK);
  return g;
}

// All of it is of devices where MPI takes that.
static void test_schedules(void) {
  int64_t direct = 0;
  for (int k = 0; k < 2; k++) {
    values v;
    ein_schedule *how = NULL;
    ein_graph *g = scheduled(k, &v, &how);
    const int64_t host = of_host, before = direct;
    test_ways(g, NULL, how, ranks, &v, &direct);
    CHECK(direct - before == 2 * (of_host - host));  // of three ways one is by the host
    ein_schedule_destroy(how);
    values_free(g, &v);
    ein_graph_destroy(g);
  }
  direct = total(direct);
  CHECK(ranks == 1 || direct > 1000);
  if (rank == 0) printf("  %lld bytes of messages of schedules\n", (long long)direct);
}

// A call of one rank's driver fails, of a graph that is cut or under a schedule.
static void test_failures(int way, int steps) {
  static cuts cut;
  values v;
  int64_t hits = 0;
  ein_schedule *how = NULL;
  ein_graph *g = steps ? scheduled(0, &v, &how) : problem(texts[0], &v);
  const cuts *c = steps ? NULL : &cut;
  rng_state = 3;
  if (!steps) random_cuts(g, ranks, &cut);
  if (way == DIRECT) setenv("STUB_AWARE", "1", 1);
  for (long n = 0; n < 1200; n += 13) {
    outcome o;
    ein_cuda *cuda = open_device();
    ein_ctx *ctx = ctx_on(cuda);
    const long from = stub_calls();
    if (rank == n % ranks) stub_fail(n, n % 2 ? 1 : 2);
    const ein_status st = run_on(ctx, g, c, how, ranks, way, &v, &o);
    const int64_t hit = total(rank == n % ranks && stub_calls() - from > n);
    stub_fail(-1, 0);
    CHECK(alike(st));
    CHECK(st == EIN_OK ? outcome_right(g, &v, &o) : hit > 0);
    hits += st != EIN_OK;
    outcome_free(&o);
    CHECK(run_on(ctx, g, c, how, ranks, way, &v, &o) == EIN_OK && outcome_right(g, &v, &o));
    outcome_free(&o);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (hit == 0) break;
  }
  CHECK(hits > 5);
  unsetenv("STUB_AWARE");
  ein_schedule_destroy(how);
  values_free(g, &v);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  void *h = dlopen(stub, RTLD_NOW);
  if (h == NULL) {
    printf("no stub: %s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
  *(void **)&stub_fail = dlsym(h, "stub_fail");
  *(void **)&stub_calls = dlsym(h, "stub_calls");
  *(void **)&stub_live = dlsym(h, "stub_live");
  *(void **)&stub_device = dlsym(h, "stub_device");
  setenv("STUB_DEVICES", "2", 1);
  test_programs();
  test_schedules();
  test_random(argc > 2 ? atoi(argv[2]) : FEW(8), argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
  for (int steps = 0; steps < 2; steps++) {
    test_failures(BY_HOST, steps);
    test_failures(DIRECT, steps);
  }
  for (int i = 0; i < nkept; i++) free(kept[i].at);
  const int64_t failed = total(failures);
  if (rank == 0)
    printf("%s %d checks on each of %d ranks\n", failed > 0 ? "FAIL" : "ok", checks, ranks);
  MPI_Finalize();
  return failed > 0;
}
