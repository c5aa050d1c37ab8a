// SPDX-License-Identifier: MIT
//
// Programs over MPI ranks: mpirun -n N test_mpi. Against the copying fabric on one process: the
// same bits, on more places than ranks, too; what MPI is given to send and receive, counted through
// its profiling interface, is what the plan said; ranks that fail take all others with them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINI_MPI_PIECE ((size_t)256)  // so that messages go in pieces
#define EINI_DIST_GROUP 3             // and groups are many
#define EINSUM_IMPLEMENTATION
#define EINSUM_MPI
#include "../einsum.h"
#include "check.h"

static MPI_Comm group;        // of the ranks that work together
static int rank, ranks;
static int64_t sent, received;

static int narrow;            // how few tags there are; 0: as many as MPI has

int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *there) {
  if (narrow == 0 || key != MPI_TAG_UB) return PMPI_Comm_get_attr(comm, key, value, there);
  *(int **)value = &narrow;
  *there = 1;
  return MPI_SUCCESS;
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  CHECK(type == MPI_BYTE && n <= 256 && tag >= 0 && (narrow == 0 || tag <= narrow));
  sent += n;
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
  received += n;
  return PMPI_Irecv(data, n, type, from, tag, comm, request);
}

static int64_t spread, stepped;  // of schedules

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
  int own, size;
  PMPI_Comm_rank(comm, &own);
  PMPI_Comm_size(comm, &size);
  CHECK(type == MPI_BYTE && n <= 256 && size > 2);
  if (own == root) sent += (int64_t)n * (size - 1);
  else received += n;
  spread++;
  return PMPI_Ibcast(data, n, type, root, comm, request);
}

static int64_t folded, multiplied;

// A fold over a group counts as the plan's tree; what outputs are gathered by is none of it.
int MPI_Ireduce(const void *data, void *to, int n, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request) {
  int own, size, wide;
  PMPI_Comm_rank(comm, &own);
  PMPI_Comm_size(comm, &size);
  PMPI_Type_size(type, &wide);
  if (type == MPI_BYTE) return PMPI_Ireduce(data, to, n, type, op, root, comm, request);
  CHECK(n * wide <= 256 && size > 2 && root == 0);
  multiplied += op == MPI_PROD;
  if (own > 0) sent += (int64_t)n * wide;
  for (int step = 1; own % (2 * step) == 0 && own + step < size; step *= 2)
    received += (int64_t)n * wide;
  folded++;
  return PMPI_Ireduce(data, to, n, type, op, root, comm, request);
}

static const char *const texts[] = {
    "input A[i=37,j=23], B[j,k=29] : f64\nC[i,k] = A[i,j]*B[j,k]\n",
    "input A[i=24,j=31], B[j,k=18], C[k,l=27] : f64\nT[i,k] = A[i,j]*B[j,k]\n"
    "Y[i,l] = T[i,k]*C[k,l]\n",
    "input Q[s=20,d=8], K[t=24,d], V[t,e=6] : f32\nT[s,t] = sum[d](Q[s,d]*K[t,d])/sqrt(size(d))\n"
    "P[s,t] = softmax[t](T[s,t])\nY[s,e] = sum[t](P[s,t]*V[t,e])\n",
    "input A[i=41,j=33] : f64\nB[i=39,j=33] = A[i,j] + A[i+1,j] + A[i+2,j]\n"
    "C[i=39,j=31] = B[i,j] + B[i,j+1] + B[i,j+2]\nD[i=37,j=31] = C[i,j]*2 - C[i+1,j] - C[i+2,j]\n"
    "output D\n",
    "input X[i=16,j=18,k=14], A[j,r=5], B[k,r] : f64\nY[i,r] = X[i,j,k]*A[j,r]*B[k,r]\n",
    "input A[i=30,j=50] : f32\nM[i] = mean[j](A[i,j])\nV[i] = var[j](A[i,j])\n"
    "P[i] = argmax[j](A[i,j])\nS = sum[i](M[i]*V[i])\noutput M, V, P, S\n",
    "input A[i=19,j=22] : i32\nB[j,i] = A[i,j]*3\nC[i=9,j=22] = B[j,2*i]\nD = sum[i,j](C[i,j])\n"
    "output C, D\n",
    "input A[i=17,j=13], B[j,k=11] : c128\nC[i,k] = A[i,j]*conj(B[j,k])\nE[k] = sum[i](C[i,k])\n"
    "output C, E\n",
    "input A[i=1,j=97] : f64\nM[i] = max[j](A[i,j]*0)\n"
    "N[i] = min[j](sqrt((j-30)*(j-30) - 1) + A[i,j])\n"
    "L[i] = min[j](abs(A[i,j]))\nB[i] = any[j](A[i,j] > 15)\nC[i] = all[j](A[i,j] < 15.5)\n"
    "output M, N, L, B, C\n",
    "input A[i=90,j=3] : i32\nS[j] = sum[i](A[i,j]*10000000)\nM[j] = max[i](A[i,j])\n"
    "T = sum[i,j](A[i,j])\noutput S, M, T\n",
    "input A[i=90,j=3] : i32\nP[j] = prod[i](A[i,j]*2 + 1)\nQ = prod[i,j](A[i,j]*2 + 1)\n"
    "L[j] : i64 = prod[i](A[i,j]*2 + 1)\noutput P, Q, L\n",
    "input X[i=15,j=12] : c128\nZ[i,q] = turned[j](X[i,j])\nY[p,q] = turned[i](Z[i,q])\n"
    "E[q] = sum[p](abs(Y[p,q]))\noutput Y, E\n",
    "input A[i=150,j=80] : f32\nM[j] = max[i](A[i,j])\nE[i,j] = A[i,j] - M[j]\n"
    "S = max[i,j](E[i,j])\noutput S, M\n",
    "input A[i=1,j=7] : f64\nB[i] = sum[j](A[i,j])\nC = sum[i](B[i])\n",
    "input A[i=0,j=7] : f64\nB[j] = sum[i](A[i,j])\n"};

// A Fourier transform, of four points or as if: blocks that may not be split.
static ein_status turned(const int64_t *size, const void *const *in, void *const *out, void *user) {
  const double *x = (const double *)in[0];
  double *y = (double *)out[0];
  (void)user;
  for (int64_t k = 0; k < size[0]; k++) {
    y[2 * k] = y[2 * k + 1] = 0;
    for (int64_t i = 0; i < size[0]; i++) {  // x times the power i * k of the imaginary unit
      static const int re[4] = {1, 0, -1, 0}, im[4] = {0, 1, 0, -1};
      y[2 * k] += re[i * k % 4] * x[2 * i] - im[i * k % 4] * x[2 * i + 1];
      y[2 * k + 1] += re[i * k % 4] * x[2 * i + 1] + im[i * k % 4] * x[2 * i];
    }
  }
  return EIN_OK;
}

typedef struct arrays {
  const void *in[8];
  void *out[8];
  ein_ztensor view[8];
  size_t bytes[8];
  int nin, nout;
} arrays;

static void arrays_make(const ein_graph *g, arrays *a) {
  memset(a, 0, sizeof *a);
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    if (e->role != EIN_ROLE_INPUT && e->role != EIN_ROLE_OUTPUT) continue;
    int64_t n = 1;
    for (int r = 0; r < e->rank; r++) n *= e->shape[r];
    const size_t bytes = (size_t)n * ein_dtype_size(e->dtype);
    char *p = (char *)calloc(bytes + 1, 1);
    CHECK(p != NULL);
    if (e->role == EIN_ROLE_OUTPUT) {
      a->view[a->nout] = ein_tensor(e->dtype, e->rank, e->shape, p);
      a->bytes[a->nout] = bytes;
      a->out[a->nout++] = p;
      continue;
    }
    const int real = e->dtype == EIN_F64 || e->dtype == EIN_C128;
    for (int64_t i = 0; i < n * (e->dtype == EIN_C128 ? 2 : 1); i++) {
      const int x = (int)((i * 2654435761 + t * 40503) % 2003) - 1001;
      if (real) ((double *)(void *)p)[i] = x / 64.0;
      else if (e->dtype == EIN_F32) ((float *)(void *)p)[i] = (float)x / 64;
      else ((int32_t *)(void *)p)[i] = x;
    }
    a->in[a->nin++] = p;
  }
}

static void arrays_free(arrays *a) {
  for (int k = 0; k < a->nin; k++) {
    union { const void *c; void *v; } u;
    u.c = a->in[k];
    free(u.v);
  }
  for (int k = 0; k < a->nout; k++) free(a->out[k]);
}

enum { MOST_PLACES = 64 };  // at most 2 * ranks + 1

enum { AS_CUTS, AS_WRITTEN, AS_SUMMA };  // how a program is run

// A decomposition as a schedule, or, of a product of matrices, one whose steps send to whole rows.
static ein_schedule *written(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *how,
                             int places, int as) {
  static char text[1 << 14];
  static const char *const summa = "machine x=max(1, floor(p/5)), y=floor(p/x)\n"
      "place A, B, C xy->xy\ndivide(j, ko, ki, y); distribute([i,k], [io,jo], [ii,ji], [x,y])\n"
      "reorder(ko, ii, ji); communicate([A,B], ko)\n";
  ein_schedule_desc d;
  ein_schedule *s = NULL;
  CHECK(ein_decomposition_schedule(g, how, text, sizeof text) < sizeof text);
  memset(&d, 0, sizeof d);
  d.text = as == AS_SUMMA ? summa : text;
  d.places = places;
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_OK);
  return s;
}

// said: how it runs in place of the decomposition, or NULL.
static ein_status execute(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *how,
                          const ein_schedule *said, const ein_fabric *f, arrays *a,
                          ein_dist_stats *stats, ein_place_stats *place, ein_dist_info *info) {
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_run run;
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  memset(stats, 0, sizeof *stats);
  stats->nplace = MOST_PLACES;
  stats->place = place;
  desc.fabric = f;
  desc.decomposition = said == NULL ? how : NULL;
  desc.schedule = said;
  run.in = a->in;
  run.out = a->out;
  ein_status st = ein_dist_create(ctx, g, &desc, &d);
  if (st == EIN_OK) ein_dist_info_get(d, info);
  if (st == EIN_OK) st = ein_dist_execute(d, &run, stats);
  ein_dist_destroy(d);
  return st;
}

// Of all ranks together.
static int64_t total(int64_t x) {
  eini_mpi m;
  m.comm = group;
  CHECK(eini_mpi_all(&m, &x, 1, MPI_INT64_T, MPI_SUM) == EIN_OK);
  return x;
}

// Have all ranks this status?
static int alike(ein_status st) {
  eini_mpi m;
  int most[2] = {(int)st, -(int)st};
  m.comm = group;
  CHECK(eini_mpi_all(&m, most, 2, MPI_INT, MPI_MAX) == EIN_OK);
  return most[0] == -most[1];
}

// Ranks drive places in the opposite order, or as is best where two of them are a node.
static void turn(ein_ctx *ctx, ein_fabric *f, const ein_graph *g, const ein_decomposition *how,
                 const ein_schedule *said) {
  double between[2];
  CHECK(ein_mpi_map(ctx, f, g, said == NULL ? how : NULL, said, 2, between) == EIN_OK);
  CHECK(between[1] <= between[0] && (ranks > 2 || between[0] == 0));
  if (f->places % 3 > 0) return;
  eini_mpi *m = (eini_mpi *)f->user;
  for (int r = 0; r < ranks; r++) m->driver[r] = ranks - 1 - r;
  m->run = ranks - 1 - rank;
  f->first = eini_mpi_first(m, m->run);
  f->count = eini_mpi_first(m, m->run + 1) - f->first;
}

static ein_inputs inputs;      // where those lie

static void compare(ein_ctx *ctx, const ein_graph *g, int p, ein_cost cost, int as_schedule) {
  static int refused;  // means that are cut
  ein_decompose_desc dd;
  ein_decomposition *how = NULL;
  ein_fabric one, mpi;
  ein_dist_stats stats;
  ein_place_stats all[MOST_PLACES], own[MOST_PLACES];
  ein_dist_info info;
  arrays a, b;
  memset(&dd, 0, sizeof dd);
  dd.p = p;
  dd.cost = cost;
  dd.inputs = inputs;
  CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
  CHECK(ein_fabric_copying(ctx, p, &one) == EIN_OK);
  CHECK(ein_fabric_mpi(ctx, group, p, &mpi) == EIN_OK);
  CHECK(mpi.places == p && mpi.count >= 1);
  arrays_make(g, &a);
  arrays_make(g, &b);
  ein_schedule *said = as_schedule ? written(ctx, g, how, p, as_schedule) : NULL;
  if (p % 2 == 0 || p % 3 == 0) turn(ctx, &mpi, g, how, said);
  const ein_status st = execute(ctx, g, how, said, &one, &a, &stats, all, &info);
  CHECK(st == EIN_OK || (as_schedule && st == EIN_ERR_UNSUPPORTED && refused++ < 8));
  if (st != EIN_OK) CHECK(execute(ctx, g, how, said, &mpi, &b, &stats, own, &info) == st);
  if (st != EIN_OK) goto end;
  const int64_t whole = stats.bytes, messages = stats.messages, tasks = stats.tasks;
  CHECK(info.bytes == whole);
  sent = received = 0;
  const int64_t before = spread;
  CHECK(execute(ctx, g, how, said, &mpi, &b, &stats, own, &info) == EIN_OK);
  stepped += as_schedule ? spread - before : 0;
  for (int q = 0; q < p; q++) {  // what this rank drives
    const int here = q >= mpi.first && q < mpi.first + mpi.count;
    CHECK(own[q].tasks == (here ? all[q].tasks : 0));
    CHECK(own[q].received_bytes == (here ? all[q].received_bytes : 0));
    CHECK(own[q].sent_bytes == (here ? all[q].sent_bytes : 0));
  }
  int64_t out, in, posted;
  ein_mpi_moved(&mpi, &posted, &out, &in);
  CHECK(in == received && out == sent && stats.bytes == received);
  CHECK(total(received) == whole && total(sent) == whole && total(posted) == 2 * messages);
  CHECK(total(stats.tasks) == tasks);
  const int root = p % 2 ? -1 : p / 2 % ranks;
  for (int k = 0; k < b.nout; k++) {
    CHECK(ein_mpi_gather(&mpi, &b.view[k], root) == EIN_OK);
    if (root < 0 || root == rank) CHECK(memcmp(a.out[k], b.out[k], a.bytes[k]) == 0);
  }
end:
  ein_schedule_destroy(said);
  ein_decomposition_destroy(how);
  ein_fabric_destroy(&one);
  ein_fabric_destroy(&mpi);
  arrays_free(&a);
  arrays_free(&b);
}

// A rank binds the blocks of its places and nothing else: the same bits, put together at rank 0.
static void compare_blocks(ein_ctx *ctx, const ein_graph *g, int p) {
  char pin[8][64];
  const char *pins[8];
  void *block[64][64];  // of tensors
  const void *in[8 * 64];
  void *out[8 * 64];
  int64_t origin[4], extent[4], n;
  ein_decompose_desc dd;
  ein_dist_desc desc;
  ein_decomposition *how = NULL;
  ein_dist *d = NULL;
  ein_dist_stats stats;
  ein_dist_info info;
  ein_fabric one, mpi;
  ein_run run;
  arrays a, b;
  CHECK(g->ntensor <= 64 && p <= 64);
  memset(&dd, 0, sizeof dd);
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  memset(&stats, 0, sizeof stats);
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    if (e->role != EIN_ROLE_INPUT || e->shape[0] < 2 || t % 3 == 2) continue;  // some are whole
    snprintf(pin[dd.npin], sizeof pin[0], "%s[0=%d]", e->name,
             p < e->shape[0] ? p : (int)e->shape[0]);
    pins[dd.npin] = pin[dd.npin];
    dd.npin++;
  }
  dd.p = p;
  dd.cost = EIN_COST_BYTES;
  dd.pin = pins;
  CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
  CHECK(ein_fabric_copying(ctx, p, &one) == EIN_OK);
  CHECK(ein_fabric_mpi(ctx, group, p, &mpi) == EIN_OK);
  arrays_make(g, &a);
  arrays_make(g, &b);
  CHECK(execute(ctx, g, how, NULL, &one, &a, &stats, NULL, &info) == EIN_OK);
  desc.fabric = &mpi;
  desc.decomposition = how;
  desc.blocks = 1;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  for (int back = 0, nin, nout; back < 2; back++) {
    nin = nout = 0;
    for (int t = 0; t < g->ntensor; t++) {
      const eini_tensor *e = &g->tensor[t];
      const size_t size = ein_dtype_size(e->dtype);
      const int input = e->role == EIN_ROLE_INPUT;
      for (int i = 0; i < mpi.count && e->role != EIN_ROLE_TEMP; i++) {
        const int port = (input ? nin : nout) / mpi.count;
        CHECK(ein_dist_block(d, t, mpi.first + i, origin, extent, &n) == EIN_OK);
        if (!back) block[t][i] = n > 0 ? malloc((size_t)n * size) : NULL;
        char *here = (char *)block[t][i], *whole = (char *)(input ? NULL : b.out[port]);
        for (int64_t k = 0; k < n; k++) {
          int64_t left = k, at = 0, step = 1;
          for (int r = e->rank - 1; r >= 0; r--) {
            at += (origin[r] + left % extent[r]) * step;
            left /= extent[r];
            step *= e->shape[r];
          }
          if (input && !back)
            memcpy(here + (size_t)k * size, (const char *)a.in[port] + (size_t)at * size, size);
          if (!input && back) memcpy(whole + (size_t)at * size, here + (size_t)k * size, size);
        }
        if (back) free(block[t][i]);
        else if (input) in[nin] = here;
        else out[nout] = here;
        if (input) nin++;
        else nout++;
      }
    }
    run.in = in;
    run.out = out;
    memset(&stats, 0, sizeof stats);
    if (!back) CHECK(ein_dist_execute(d, &run, &stats) == EIN_OK);
    if (!back) CHECK(total(stats.bytes) == info.bytes);
  }
  for (int k = 0; k < b.nout; k++) {
    CHECK(ein_mpi_gather(&mpi, &b.view[k], 0) == EIN_OK);
    if (rank == 0) CHECK(memcmp(a.out[k], b.out[k], a.bytes[k]) == 0);
  }
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  ein_fabric_destroy(&one);
  ein_fabric_destroy(&mpi);
  arrays_free(&a);
  arrays_free(&b);
}

// Allocation number `after` fails at one rank.
typedef struct failing {
  long after, calls;
  int64_t live;
} failing;

static void *fail_alloc(size_t bytes, size_t align, void *user) {
  failing *f = (failing *)user;
  char *room = f->calls++ == f->after ? NULL : (char *)malloc(bytes + align + sizeof room);
  if (room == NULL) return NULL;
  f->live++;
  char *p = room + sizeof room;  // which lies before
  p += (align - (uintptr_t)p % align) % align;
  memcpy(p - sizeof room, &room, sizeof room);
  return p;
}

static void fail_free(void *p, size_t bytes, void *user) {
  (void)bytes;
  if (p == NULL) return;
  char *room;
  memcpy(&room, (char *)p - sizeof room, sizeof room);
  ((failing *)user)->live--;
  free(room);
}

// One rank has no memory: all get one status, and nothing stays.
static void test_no_memory(int as_schedule) {
  for (long after = 0, done = 0; !done && after < 4000; after += after < 40 ? 1 : 17) {
    failing f = {-1, 0, 0};
    ein_ctx_desc cd;
    ein_ctx *ctx = NULL;
    ein_program_desc pd;
    ein_decompose_desc dd;
    ein_graph *g = NULL;
    ein_decomposition *how = NULL;
    ein_fabric mpi;
    ein_dist_stats stats;
    ein_dist_info info;
    arrays a;
    memset(&cd, 0, sizeof cd);
    memset(&pd, 0, sizeof pd);
    memset(&dd, 0, sizeof dd);
    cd.bare = 1;
    cd.allocator.alloc_fn = fail_alloc;
    cd.allocator.free_fn = fail_free;
    cd.allocator.user = &f;
    pd.text = texts[1];
    dd.p = ranks;
    CHECK(ein_ctx_create(&cd, &ctx) == EIN_OK && ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
    ein_schedule *said = as_schedule ? written(ctx, g, how, ranks, AS_WRITTEN) : NULL;
    arrays_make(g, &a);
    if (rank == ranks - 1) f.after = f.calls + after;
    ein_status st = ein_fabric_mpi(ctx, group, 0, &mpi);
    const int made = st == EIN_OK;
    if (made) st = execute(ctx, g, how, said, &mpi, &a, &stats, NULL, &info);
    CHECK(alike(st) && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
    done = st == EIN_OK;
    if (made) ein_fabric_destroy(&mpi);
    arrays_free(&a);
    ein_schedule_destroy(said);
    ein_decomposition_destroy(how);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    CHECK(f.live == 0);
  }
}

// ---- a place that fails ----

static int fails_at, fails_step, fails_level;

static ein_status fails(void *user, const ein_dist_event *e) {
  (void)user;
  return e->place == fails_at && e->step == fails_step && e->level == fails_level ? EIN_ERR_BOUNDS
                                                                                : EIN_OK;
}

// A block or a fetch of one place fails in a step: all ranks get its status, nobody waits in vain,
// and the next run is right.
static void test_failures(ein_ctx *ctx) {
  const int places = 2 * ranks + 1;
  char text[256];
  ein_program_desc pd;
  ein_schedule_desc sd;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_schedule *s = NULL;
  ein_graph *g = NULL;
  ein_fabric f;
  ein_run run;
  arrays a;
  memset(&pd, 0, sizeof pd), memset(&sd, 0, sizeof sd), memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  snprintf(text, sizeof text, "machine g=%d\nplace A, B, C xy->x\n"
           "distribute([i],[io],[ii],[g])\ndivide(k,ko,ki,5)\nreorder(ko,ii,j,ki)\n"
           "communicate([A,B],ko)\n", places);
  pd.text = "input A[m=40,k=35], B[k,n=20]\nC[i,j] = A[i,k] * B[k,j]\n";
  sd.text = text;
  sd.places = places;
  CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
  CHECK(ein_schedule_create(ctx, g, &sd, &s) == EIN_OK);
  CHECK(ein_fabric_mpi(ctx, group, places, &f) == EIN_OK);
  arrays_make(g, &a);
  run.in = a.in, run.out = a.out;
  desc.fabric = &f;
  desc.schedule = s;
  desc.event_fn = fails;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  for (fails_at = 0; fails_at < places; fails_at += 2) {
    for (fails_level = -2; fails_level < 0; fails_level++) {
      for (fails_step = 0; fails_step < 5; fails_step += 2) {
        const ein_status st = ein_dist_execute(d, &run, NULL);
        CHECK(alike(st) && (st == EIN_ERR_BOUNDS || (st == EIN_OK && fails_level == -2)));
      }
    }
  }
  fails_at = -1;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  arrays_free(&a);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// The same without a schedule: a block, or a merge, of one place fails.
static void test_failing_tasks(ein_ctx *ctx) {
  const int places = ranks + ranks / 2;
  ein_program_desc pd;
  ein_decompose_desc dd;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_decomposition *how = NULL;
  ein_graph *g = NULL;
  ein_fabric f;
  ein_run run;
  arrays a;
  memset(&pd, 0, sizeof pd), memset(&dd, 0, sizeof dd), memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  pd.text = "input A[i=40,k=64], B[k,j=20] : f64\nC[i,j] = A[i,k]*B[k,j]\n"
            "D[j] = max[i](C[i,j])\noutput C, D\n";
  dd.p = places;
  dd.cost = EIN_COST_BYTES;
  dd.inputs = EIN_INPUTS_DEALT;
  CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK && ein_decompose(ctx, g, &dd, &how) == EIN_OK);
  CHECK(ein_fabric_mpi(ctx, group, places, &f) == EIN_OK);
  arrays_make(g, &a);
  run.in = a.in, run.out = a.out;
  desc.fabric = &f;
  desc.decomposition = how;
  desc.event_fn = fails;
  fails_step = 0;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  for (fails_at = 0; fails_at < places; fails_at++) {
    for (fails_level = -1; fails_level < 2; fails_level++) {
      const ein_status st = ein_dist_execute(d, &run, NULL);
      CHECK(alike(st) && (st == EIN_ERR_BOUNDS || (st == EIN_OK && fails_level >= 0)));
    }
  }
  fails_at = -1;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  ein_fabric_destroy(&f);
  arrays_free(&a);
  ein_graph_destroy(g);
}

// Two contexts, with a fabric and a plan each on the same ranks, run by turns; only the thread that
// initialised MPI calls it.
static void test_contexts(void) {
  ein_ctx *ctx[2];
  ein_fabric f[2], one;
  ein_graph *g[2];
  ein_decomposition *how[2];
  ein_dist *d[2];
  arrays a[2], b[2];
  for (int k = 0; k < 2; k++) {
    ein_program_desc pd;
    ein_decompose_desc dd;
    ein_dist_desc desc;
    ein_dist_stats stats;
    ein_dist_info info;
    memset(&pd, 0, sizeof pd), memset(&dd, 0, sizeof dd), memset(&desc, 0, sizeof desc);
    pd.text = texts[1 + k];
    dd.p = ranks;
    dd.cost = EIN_COST_BYTES;
    dd.inputs = EIN_INPUTS_DEALT;
    CHECK(ein_ctx_create(NULL, &ctx[k]) == EIN_OK);
    CHECK(ein_graph_parse(ctx[k], &pd, &g[k]) == EIN_OK);
    CHECK(ein_decompose(ctx[k], g[k], &dd, &how[k]) == EIN_OK);
    CHECK(ein_fabric_copying(ctx[k], ranks, &one) == EIN_OK);
    CHECK(ein_fabric_mpi(ctx[k], group, 0, &f[k]) == EIN_OK);
    arrays_make(g[k], &a[k]);
    arrays_make(g[k], &b[k]);
    CHECK(execute(ctx[k], g[k], how[k], NULL, &one, &a[k], &stats, NULL, &info) == EIN_OK);
    ein_fabric_destroy(&one);
    desc.fabric = &f[k];
    desc.decomposition = how[k];
    CHECK(ein_dist_create(ctx[k], g[k], &desc, &d[k]) == EIN_OK);
  }
  for (int i = 0; i < 6; i++) {
    ein_run run;
    arrays *x = &b[i % 2];
    memset(&run, 0, sizeof run);
    run.in = x->in, run.out = x->out;
    for (int k = 0; k < x->nout; k++) memset(x->out[k], 0, x->bytes[k]);
    CHECK(ein_dist_execute(d[i % 2], &run, NULL) == EIN_OK);
    for (int k = 0; k < x->nout; k++) {
      CHECK(ein_mpi_gather(&f[i % 2], &x->view[k], -1) == EIN_OK);
      CHECK(memcmp(x->out[k], a[i % 2].out[k], x->bytes[k]) == 0);
    }
  }
  for (int k = 0; k < 2; k++) {
    ein_dist_destroy(d[k]);
    ein_fabric_destroy(&f[k]);
    ein_decomposition_destroy(how[k]);
    arrays_free(&a[k]);
    arrays_free(&b[k]);
    ein_graph_destroy(g[k]);
    ein_ctx_destroy(ctx[k]);
  }
}

static void test_mistakes(ein_ctx *ctx) {
  ein_fabric f, serial;
  double x = 0;
  const ein_ztensor out = ein_tensor(EIN_F64, 0, NULL, &x);
  CHECK(ein_fabric_mpi(ctx, group, 0, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_fabric_mpi(ctx, group, -1, &f) == EIN_ERR_ARGUMENT);
  if (ranks > 1) CHECK(ein_fabric_mpi(ctx, group, ranks - 1, &f) == EIN_ERR_ARGUMENT);
  CHECK(ein_fabric_serial(2, &serial) == EIN_OK);
  CHECK(ein_mpi_gather(&serial, &out, 0) == EIN_ERR_ARGUMENT);
  CHECK(ein_mpi_agree(&serial, EIN_OK) == EIN_ERR_ARGUMENT);
  CHECK(ein_mpi_map(ctx, &serial, NULL, NULL, NULL, 0, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_fabric_mpi(NULL, group, 0, &f) == EIN_OK && f.places == ranks);
  CHECK(ein_mpi_gather(&f, &out, ranks) == EIN_ERR_ARGUMENT);
  CHECK(ein_mpi_map(ctx, &f, NULL, NULL, NULL, 0, NULL) == EIN_ERR_ARGUMENT && f.first == rank);
  CHECK(ein_mpi_agree(&f, rank == 0 ? EIN_ERR_SHAPE : EIN_OK) == EIN_ERR_SHAPE);
  ein_fabric_destroy(&f);
  ein_fabric_destroy(&f);
}

// One rank is given something else: all get one status, and say what differs.
static void test_different(ein_ctx *ctx) {
  static const char *const said[4] = {"different graphs", "different graphs",
                                      "different decompositions", "different descriptions"};
  static const char *const text[3] = {
      "input A[i=24,j=31], B[j,k=18] : f64\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[i=24,j=32], B[j,k=18] : f64\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[i=24,j=31], B[j,k=18] : f64\nY[i,k] = max[j](A[i,j]*B[j,k])\n"};
  ein_fabric mpi;
  if (ranks < 2) return;
  CHECK(ein_fabric_mpi(ctx, group, 0, &mpi) == EIN_OK);
  for (int way = 0; way < 6; way++) {
    const int odd = rank == (way * 7 + 1) % ranks;
    ein_program_desc pd;
    ein_decompose_desc dd;
    ein_dist_desc desc;
    ein_graph *g = NULL;
    ein_decomposition *how = NULL;
    ein_dist *d = NULL;
    memset(&pd, 0, sizeof pd);
    memset(&dd, 0, sizeof dd);
    memset(&desc, 0, sizeof desc);
    pd.text = text[odd && way == 0 ? 1 : odd && way == 1 ? 2 : 0];
    dd.p = ranks;
    dd.cost = EIN_COST_BYTES;
    if (odd && way == 2) dd.method = "none";
    CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(ein_decompose(ctx, g, &dd, &how) == EIN_OK);
    desc.fabric = &mpi;
    desc.decomposition = how;
    desc.no_overlap = odd && way == 3;
    const ein_status st = ein_dist_create(ctx, odd && way == 5 ? NULL : g, &desc, &d);
    CHECK(way == 4 ? st == EIN_OK && d != NULL : st == EIN_ERR_ARGUMENT && d == NULL);
    if (way < 4) CHECK(strstr(ein_ctx_message(ctx), said[way]) != NULL);
    ein_dist_destroy(d);
    ein_decomposition_destroy(how);
    ein_graph_destroy(g);
  }
  for (int way = 0; way < 3; way++) {
    const int odd = rank == way % ranks;
    const int64_t shape[2] = {5, odd && way == 0 ? 7 : 6};
    ein_grid *grid = NULL;
    ein_distribution *how = NULL;
    ein_dtensor *t = NULL;
    CHECK(ein_grid_create(ctx, "x=p", ranks, &grid) == EIN_OK);
    CHECK(ein_distribution_create(ctx, odd && way == 1 ? "ij->j" : "ij->i", 2, grid, &how) ==
          EIN_OK);
    const ein_status st = ein_dtensor_create(ctx, &mpi, how, EIN_F64, shape, 0, NULL, &t);
    CHECK(way == 2 ? st == EIN_OK && t != NULL : st == EIN_ERR_ARGUMENT && t == NULL);
    if (way < 2) CHECK(strstr(ein_ctx_message(ctx), way ? "distributions" : "shapes") != NULL);
    ein_dtensor_destroy(t);
    ein_distribution_destroy(how);
    ein_grid_destroy(grid);
  }
  ein_fabric_destroy(&mpi);
}

static void test_programs(ein_ctx *ctx) {
  MPI_Comm_rank(group, &rank);
  MPI_Comm_size(group, &ranks);
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    ein_program_desc pd;
    ein_graph *g = NULL, *fixed = NULL;
    memset(&pd, 0, sizeof pd);
    pd.text = texts[k];
    CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    compare(ctx, g, ranks, EIN_COST_BYTES, 0);
    compare(ctx, g, ranks, EIN_COST_PAPER, 0);
    compare(ctx, g, 2 * ranks + 1, EIN_COST_SECONDS, 0);
    compare(ctx, g, ranks, EIN_COST_BYTES, 1);
    if (k == 0) compare(ctx, g, ranks, EIN_COST_BYTES, AS_SUMMA);
    inputs = EIN_INPUTS_DEALT;
    compare(ctx, g, ranks, EIN_COST_BYTES, k % 2 == 1);
    compare(ctx, g, 2 * ranks, EIN_COST_BYTES, k % 2 == 0);
    inputs = EIN_INPUTS_HELD;
    narrow = 143;  // a few statements have tags of their own, then they begin again
    compare(ctx, g, 2 * ranks + 1, EIN_COST_BYTES, 0);
    compare(ctx, g, 2 * ranks, EIN_COST_BYTES, 1);
    narrow = 0;
    compare(ctx, g, ranks + 2, EIN_COST_PAPER, 1);
    compare_blocks(ctx, g, ranks);
    compare_blocks(ctx, g, 2 * ranks + 1);
    CHECK(ein_graph_deterministic(ctx, g, NULL, &fixed) == EIN_OK);
    compare(ctx, fixed, ranks + 3, EIN_COST_BYTES, 0);
    ein_graph_destroy(fixed);
    ein_graph_destroy(g);
  }
}

int main(int argc, char **argv) {
  ein_ctx *ctx = NULL;
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  group = MPI_COMM_WORLD;
  const ein_operator block = {"turned", "(n)->(n)", EIN_C128, turned, NULL, NULL, NULL};
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK && ein_ctx_operator(ctx, &block) == EIN_OK);
  test_programs(ctx);
  test_mistakes(ctx);
  test_failures(ctx);
  test_failing_tasks(ctx);
  test_contexts();
  test_different(ctx);
  test_no_memory(0);
  test_no_memory(1);
  // Two groups of ranks at once, each with fabrics of its own.
  const int all = rank;
  MPI_Comm_split(MPI_COMM_WORLD, all % 2, all, &group);
  test_programs(ctx);
  MPI_Comm_free(&group);
  group = MPI_COMM_WORLD;
  ein_ctx_destroy(ctx);
  const int64_t failed = total(failures), groups = total(spread), folds = total(folded);
  const int64_t steps = total(stepped), products = total(multiplied);
  MPI_Comm_size(group, &ranks);
  CHECK(ranks < 3 || (groups > 0 && folds > 0 && steps > 0 && products > 0));
  if (all == 0)
    printf("%s %d checks on each of %d ranks\n", failed || failures ? "FAIL" : "ok", checks, ranks);
  MPI_Finalize();
  return failed != 0 || failures > 0;
}
