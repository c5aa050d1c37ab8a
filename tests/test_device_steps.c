// Schedules of places on several devices: under the stub of CUDA (cuda_stub.c) what places hold of
// tensors, boxes that they fetch, partial results and messages stay on their devices, and what
// moves goes from one to the other where they open their memory to each other, else by the host.
// Products of matrices as in examples/schedules, and chains of statements, move exactly what is
// counted, and have the bits of the host; random statements under random schedules are held against
// the oracle; calls that fail are statuses and leave nothing behind.
//
//   test_device_steps STUB [cases [seed]]
#define _POSIX_C_SOURCE 200112L

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"
#include "schedules.h"
#include "rooms.h"
#include "devices.h"

// How places are joined: without memory of their own, by a fabric that knows devices, by one that
// does not.
enum { SERIAL, THREADS, COPYING, COPYING_THREADS, BY_HOST, JOINS };

static ein_status join_of(int kind, int p, ein_fabric *f) {
  EINI_TRY(kind == SERIAL ? ein_fabric_serial(p, f) : kind == THREADS ? ein_fabric_threads(p, f)
                                                    : ein_fabric_copying(ctx, p, f));
  if (kind == COPYING_THREADS) f->threads = 1;
  if (kind == BY_HOST) f->memory_fn = NULL;
  return EIN_OK;
}

// A graph under a schedule over p places.
static ein_status run_steps(ein_ctx *on, ein_cuda *cuda, const ein_graph *g, const ein_schedule *s,
                            int kind, int p, const values *v, outcome *o) {
  ein_fabric f;
  ein_dist_desc desc;
  memset(o, 0, sizeof *o);
  memset(&desc, 0, sizeof desc);
  EINI_TRY(join_of(kind, p, &f));
  desc.fabric = &f;
  desc.schedule = s;
  const ein_status st = run_places(on, cuda, g, &desc, v, o);
  ein_fabric_destroy(&f);
  return st;
}

// ---- what crosses, exactly ----

// Whole numbers, so that all orders of sums give the same bits. nothing: so many partial results
// begin with the fold of nothing, a number of 8 bytes that goes to the device; -1: some statements
// stay at home, or the host merges states.
typedef struct example {
  const char *program, *file, *text;
  int p, nothing;
} example;

static const example examples[] = {
    {"input A[m=20,k=16], B[k,n=12] : f64\nC[i,j] = A[i,k] * B[k,j]\n", "cannon", NULL, 4, 0},
    {"input A[m=21,k=17], B[k,n=13] : f64\nC[i,j] = A[i,k] * B[k,j]\n", "summa", NULL, 4, 0},
    {"input A[m=18,k=15], B[k,n=12] : i32\nC[i,j] = A[i,k] * B[k,j]\n", "pumma", NULL, 6, 0},
    {"input A[m=9,k=11], B[k,n=10] : f64\nC[i,j] = A[i,k] * B[k,j]\n", "johnson", NULL, 8, 4},
    {"input A[m=16,k=24], B[k,n=16] : f64\nC[i,j] = A[i,k] * B[k,j]\n", "solomonik", NULL, 8, 4},
    {"input A[m=16,k=24], B[k,n=16] : f64\nC[i,j] = A[i,k] * B[k,j]\n", "cosma", NULL, 8, 4},
    {"input B[m=8,n=7,o=9], c[o] : f64\nA[i,j] = B[i,j,k] * c[k]\n", "ttv", NULL, 4, 0},
    {"input B[m=8,n=5,o=6], C[m,n,o] : f64\na = sum[i,j,k](B[i,j,k] * C[i,j,k])\n", "inner", NULL,
     4, 4},
    {"input B[m=8,n=5,o=6], C[n,r=3], D[o,r] : f64\nA[i,l] = B[i,j,k] * C[j,l] * D[k,l]\n",
     "mttkrp", NULL, 8, 2},
    // what is between statements moves, too; a halo; the result lies everywhere
    {"input A[i=24,j=10] : f64\nT[i,j] = A[i,j] * 2 + j\nU[i=22,j] = T[i,j] - T[i+2,j]\n"
     "M[j] = max[i](U[i,j])\nY[i=22,j] = U[i,j] * M[j]\noutput Y\n", NULL,
     "machine x=3\nplace A, T, U, Y ij->i\nplace M j->*\non T\ndistribute([i],[a],[b],[x])\n"
     "on U\ndistribute([i],[a],[b],[x])\non M\ndistribute([i],[a],[b],[x])\n"
     "on Y\ndistribute([i],[a],[b],[x])\n", 3, 3},
    // blocks of steps that are merged into a part of the result, and sums at home
    {"input A[i=12,k=20], B[k,j=10] : f64\nC[i,j] = A[i,k] * B[k,j]\nD[j,i] = C[i,j] + 1\n", NULL,
     "machine x=2, y=2\nplace A, B, C xy->xy\nplace D xy->yx\non C\n"
     "distribute([i,k],[io,ko],[ii,ki],[x,y])\ndivide(ki,kio,kii,3)\ndivide(j,jo,jj,2)\n"
     "reorder(kio,jo,ii,jj,kii)\ncommunicate([A,B],kio)\non D\n"
     "distribute([i,j],[io,jo],[ii,ji],[x,y])\n", 4, 8},
    // states are the host's
    {"input A[i=12,j=30] : f64\nM[i] = mean[j](A[i,j])\nP[i] = argmax[j](A[i,j])\n"
     "Y[i,j] = A[i,j] - M[i]\noutput Y, P\n", NULL,
     "machine x=3\nplace A, Y ij->j\nplace M, P i->i\non M\ndistribute([j],[a],[b],[x])\n"
     "on P\ndistribute([j],[a],[b],[x])\non Y\ndistribute([j],[a],[b],[x])\n", 3, -1},
    // a tensor that the host finishes is there, whoever writes it first
    {"input A[i=12], B[i,k=6] : f64\nT[2*i] = A[i]\nT[2*i+1] = mean[k](B[i,k])\n"
     "Y[i=12] = T[i] + T[i+12]\noutput Y\n", NULL,
     "machine x=3\nplace A, T, Y i->i\nplace B ik->i\non T 1\ndistribute([i],[a],[b],[x])\n"
     "on T 2\ndistribute([k],[a],[b],[x])\non Y\ndistribute([i],[a],[b],[x])\n", 3, -1},
    // elements that nobody writes, and several statements of a tensor
    {"input A[i=12], B[i] : f64\nT[2*i] = A[i]\nT[2*i+1] = B[i] * 3\n"
     "Y[i=12] = T[i] + T[i+12]\noutput Y\n", NULL,
     "machine x=3\nplace A, B, T, Y i->i\non T 1\ndistribute([i],[a],[b],[x])\non T 2\n"
     "distribute([i],[a],[b],[x])\non Y\ndistribute([i],[a],[b],[x])\n", 3, 0}};

static ein_schedule *schedule_on(const example *e, const ein_graph *g) {
  return schedule_of(g, e->file != NULL ? read_file(e->file) : e->text, e->p);
}

// Bytes of inputs, or outputs, that places hold in memory of their own.
static int64_t held_bytes(const ein_graph *g, const ein_schedule *s, int p, ein_role role) {
  int64_t n = 0;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  memset(&desc, 0, sizeof desc);
  CHECK(ein_fabric_copying(ctx, p, &f) == EIN_OK);
  desc.fabric = &f;
  desc.schedule = s;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  for (int t = 0; t < g->ntensor; t++) {
    for (int q = 0; q < p && g->tensor[t].role == role; q++) {
      int64_t has = 0;
      CHECK(ein_dist_block(d, t, q, NULL, NULL, &has) == EIN_OK);
      n += has * (int64_t)ein_dtype_size(g->tensor[t].dtype);
    }
  }
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  return n;
}

// Checks what a run moved. out, in: bytes of outputs and inputs that places hold.
static void moved_right(const example *e, const outcome *r, const outcome *host, int kind,
                        int64_t in, int64_t out) {
  CHECK((r->info.away_bytes > 0) == (kind >= COPYING));
  CHECK(r->stats.bytes == host->stats.bytes && r->stats.messages == host->stats.messages);
  CHECK(kind == COPYING || kind == COPYING_THREADS || r->counts.peer == 0);
  if (kind < COPYING) return;
  CHECK(r->info.peak_bytes == host->info.peak_bytes);
  CHECK(r->info.place_bytes >= r->info.away_bytes);
  if (e->nothing < 0) return;
  // all that moves is on devices; inputs go there once, and outputs come home
  const int64_t by_host = r->stats.bytes - r->counts.peer;
  CHECK(by_host == (kind == BY_HOST ? r->stats.bytes : 0));
  CHECK(r->counts.from_device == out + by_host);
  CHECK(r->counts.to_device == in + by_host + 8 * e->nothing);
}

static void test_exact(void) {
  int64_t all = 0;
  for (size_t k = 0; k < sizeof examples / sizeof *examples; k++) {
    const example *e = &examples[k];
    problem x;
    outcome host, o;
    problem_begin(&x, e->program);
    ein_schedule *s = schedule_on(e, x.g);
    CHECK(run_steps(ctx, NULL, x.g, s, COPYING, e->p, &x.v, &host) == EIN_OK);
    CHECK(outcome_right(x.g, &x.v, &host) && host.info.away_bytes == 0);
    const int64_t in = held_bytes(x.g, s, e->p, EIN_ROLE_INPUT);
    const int64_t out = held_bytes(x.g, s, e->p, EIN_ROLE_OUTPUT);
    for (int kind = 0; kind < JOINS; kind++) {
      const long peer = stub_peer(), live = stub_live();
      ein_cuda *cuda = open_devices(e->p, NULL);
      ein_ctx *on = ctx_on(cuda, NULL, kind == THREADS || kind == COPYING_THREADS ? 3 : 1);
      CHECK(run_steps(on, cuda, x.g, s, kind, e->p, &x.v, &o) == EIN_OK);
      CHECK(outcome_right(x.g, &x.v, &o) && outcome_same(x.g, &host, &o));
      CHECK(stub_peer() - peer == 2 * o.counts.peer);
      moved_right(e, &o, &host, kind, in, out);
      all += o.counts.peer;
      ein_ctx_destroy(on);
      ein_cuda_destroy(cuda);
      CHECK(stub_live() == live);
      outcome_free(&o);
    }
    if (failures > 0) printf("example %d\n%s", (int)k, e->program);
    ein_schedule_destroy(s);
    outcome_free(&host);
    problem_end(&x);
  }
  CHECK(all > 10000);
}

// What places hold on devices is announced, and blocks that a run binds, the host's, are right.
static void test_memory(const example *e, int blocks) {
  problem x;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d = NULL;
  ein_dist_info info;
  problem_begin(&x, e->program);
  ein_schedule *s = schedule_on(e, x.g);
  ein_cuda *cuda = open_devices(e->p, NULL);
  ein_ctx *on = ctx_on(cuda, NULL, 1);
  memset(&desc, 0, sizeof desc);
  CHECK(join_of(COPYING, e->p, &f) == EIN_OK);
  desc.fabric = &f;
  desc.schedule = s;
  desc.blocks = blocks;
  CHECK(ein_dist_create(on, x.g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_info_get(d, &info) == EIN_OK && info.away_bytes > 0);
  if (!blocks) check_rooms(s, d, 0);
  else CHECK(run_blocks(d, x.g, e->p, &x.v) && ein_cuda_counts_get(cuda).peer > 0);
  const int64_t bytes = info.bytes, peak = info.peak_bytes;
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  desc.blocks = 0;
  CHECK(ein_fabric_sim(on, e->p, NULL, &f) == EIN_OK);  // a clock has no devices
  CHECK(ein_dist_create(on, x.g, &desc, &d) == EIN_OK && ein_dist_info_get(d, &info) == EIN_OK);
  CHECK(info.away_bytes == 0 && info.bytes == bytes && info.peak_bytes == peak);
  CHECK(ein_dist_execute(d, NULL, NULL) == EIN_OK);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  ein_ctx_destroy(on);
  ein_cuda_destroy(cuda);
  problem_end(&x);
}

// What goes by pinned memory where devices do not open their memory to each other, and what stays
// on one that has several places, is the same.
static void test_ways(void) {
  for (int k = 0; k < 3; k++) {
    const example *e = &examples[k == 0 ? 0 : k == 1 ? 4 : 9];
    problem x;
    outcome o[3];
    problem_begin(&x, e->program);
    ein_schedule *s = schedule_on(e, x.g);
    for (int how = 0; how < 3; how++) {  // directly, by the host, on one device
      if (how == 1) setenv("STUB_NO_PEERS", "1", 1);
      ein_cuda *cuda = open_devices(how == 2 ? 1 : e->p, NULL);
      ein_ctx *on = ctx_on(cuda, NULL, 1);
      CHECK(run_steps(on, cuda, x.g, s, COPYING, e->p, &x.v, &o[how]) == EIN_OK);
      CHECK(outcome_same(x.g, &o[0], &o[how]));
      const int64_t by_host = how == 1 ? o[0].counts.peer : 0;
      CHECK(o[how].counts.peer == (how == 0 ? o[0].stats.bytes : 0));
      CHECK(o[how].counts.to_device == o[0].counts.to_device + by_host);
      CHECK(o[how].counts.from_device == o[0].counts.from_device + by_host);
      ein_ctx_destroy(on);
      ein_cuda_destroy(cuda);
      unsetenv("STUB_NO_PEERS");
    }
    for (int how = 0; how < 3; how++) outcome_free(&o[how]);
    ein_schedule_destroy(s);
    problem_end(&x);
  }
}

// ---- what stays at home ----

// Kernels for T and Y, and where places have these: home: both at home, T or neither.
typedef struct named {
  const char *t, *y;
  int home;
} named;

// A statement whose schedule names other kernels stays at home, and what only such ones read.
static void test_named(void) {
  static const named cases[] = {
      {"", "", 0},
      {"substitute([ii,j], cuda)\n", "substitute([ii,k,j], cuda)\n", 0},
      {"substitute([ii,j], portable)\n", "", 1},
      {"substitute([ii,j], portable)\n", "substitute([ii,k,j], portable)\n", 2}};
  problem x;
  problem_begin(&x, "input A[i=12,j=9], C[j,k=9] : f64\nT[i,j] = A[i,j]*2 + 1\n"
                    "Y[i,k] = T[i,j]*C[j,k]\n");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char text[512];
    outcome o;
    ein_cuda *cuda = open_devices(3, NULL);
    ein_ctx *on = ctx_on(cuda, NULL, 1), *const own = ctx;
    snprintf(text, sizeof text, "machine x=3\nplace A, C, T, Y ij->i\non T\n"
             "distribute([i],[io],[ii],[x])\n%son Y\ndistribute([i],[io],[ii],[x])\n%s",
             cases[k].t, cases[k].y);
    ctx = on;  // whose kernels it names
    ein_schedule *s = schedule_of(x.g, text, 3);
    ctx = own;
    CHECK(run_steps(on, cuda, x.g, s, COPYING, 3, &x.v, &o) == EIN_OK);
    CHECK(outcome_right(x.g, &x.v, &o));
    CHECK(o.counts.peer == (cases[k].home < 2 ? o.stats.bytes : 0));
    CHECK((o.info.away_bytes > 0) == (cases[k].home < 2));
    if (cases[k].home == 0) CHECK(o.counts.from_device == bytes_of(x.g, EIN_ROLE_OUTPUT));
    if (cases[k].home == 0) CHECK(o.counts.to_device == bytes_of(x.g, EIN_ROLE_INPUT));
    outcome_free(&o);
    ein_schedule_destroy(s);
    ein_ctx_destroy(on);
    ein_cuda_destroy(cuda);
  }
  problem_end(&x);
}

// The only place reads tensors where they are: at home what such a statement reads.
static void test_alone(void) {
  static const char *const leaf[] = {"", "substitute([ii,k,j], cuda)\n",
                                     "substitute([ii,k,j], portable)\n"};
  problem x;
  problem_begin(&x, "input A[i=12,j=9], C[j,k=9] : f64\nT[i,j] = A[i,j]*2 + 1\n"
                    "Y[i,k] = T[i,j]*C[j,k]\n");
  for (int k = 0; k < 3; k++) {
    char text[512];
    outcome o;
    ein_cuda *cuda = open_devices(1, NULL);
    ein_ctx *on = ctx_on(cuda, NULL, 1), *const own = ctx;
    snprintf(text, sizeof text, "machine x=1\nplace A, C, T, Y ij->i\non T\n"
             "distribute([i],[io],[ii],[x])\non Y\ndistribute([i],[io],[ii],[x])\n%s", leaf[k]);
    ctx = on;
    ein_schedule *s = schedule_of(x.g, text, 1);
    ctx = own;
    CHECK(run_steps(on, cuda, x.g, s, COPYING, 1, &x.v, &o) == EIN_OK);
    CHECK(outcome_right(x.g, &x.v, &o) && o.info.away_bytes > 0);
    outcome_free(&o);
    ein_schedule_destroy(s);
    ein_ctx_destroy(on);
    ein_cuda_destroy(cuda);
  }
  problem_end(&x);
}

// What was not the second place's.
static ein_status share_elsewhere(void *user, const ein_dist_event *v) {
  if (v->place != 1) *(int *)user = 1;
  return EIN_OK;
}

// Shares of a block, whatever thread has them, run on the device of its place: of two places
// the first has nothing to do.
static void test_shares(void) {
  problem x;
  outcome o;
  problem_begin(&x, "input A[i=1,j=40] : f64\nY[i,j] = A[i,j]*2 + j\n");
  ein_schedule *s = schedule_of(x.g, "machine x=2\nplace A, Y ij->i\n"
                                     "distribute([i],[a],[b],[x])\nparallelize(j)\n", 2);
  ein_cuda *cuda = open_devices(2, NULL);
  ein_ctx *on = ctx_on(cuda, NULL, 3);
  const long own = stub_ran(0), other = stub_ran(1);
  CHECK(run_steps(on, cuda, x.g, s, COPYING_THREADS, 2, &x.v, &o) == EIN_OK);
  CHECK(outcome_right(x.g, &x.v, &o) && o.info.away_bytes > 0);
  CHECK(stub_ran(0) == own && stub_ran(1) - other >= 2 * 16);
  outcome_free(&o);
  ein_fabric f;
  ein_dist_desc desc;
  int elsewhere = 0;
  memset(&desc, 0, sizeof desc);
  CHECK(join_of(COPYING_THREADS, 2, &f) == EIN_OK);
  desc.fabric = &f;
  desc.schedule = s;
  desc.event_fn = share_elsewhere;
  desc.event_user = &elsewhere;
  CHECK(run_places(on, cuda, x.g, &desc, &x.v, &o) == EIN_OK && elsewhere == 0);
  outcome_free(&o);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  ein_ctx_destroy(on);
  ein_cuda_destroy(cuda);
  problem_end(&x);
}

// No sum of a deterministic graph is a device's, which has an order of its own: what places have is
// the host's, and the bits are those of its plan.
static void test_deterministic(void) {
  static ein_kernels plain;
  problem x;
  ein_graph *g = NULL;
  ein_ctx_desc d;
  ein_ctx *on = NULL;
  outcome host;
  plain.name = "plain";  // all are the portable ones, which keep the order
  plain.ordered = 1;
  memset(&d, 0, sizeof d);
  memset(&host, 0, sizeof host);
  problem_begin(&x, "input A[m=20,k=900], B[k,n=12] : f64\nC[i,j] = A[i,k] * B[k,j]\n");
  for (int t = 0; t < 2; t++)
    for (int64_t i = 0; i < orc_count(&x.g->tensor[t]); i++)
      ((double *)x.v.data[t])[i] += (double)(i % 7) / 7;
  CHECK(ein_graph_deterministic(ctx, x.g, NULL, &g) == EIN_OK);
  ein_schedule *s = schedule_of(g, "machine x=2, y=2\nplace A, B, C xy->xy\n"
                                   "distribute([i,j],[io,jo],[ii,ji],[x,y])\n", 4);
  ein_cuda *cuda = open_devices(4, NULL);
  const ein_kernels *kernels[2] = {ein_cuda_kernels(cuda), &plain};
  d.bare = 1;
  d.nkernels = 2;
  d.kernels = kernels;
  CHECK(ein_ctx_create(&d, &on) == EIN_OK);
  const void *in[2] = {x.v.data[0], x.v.data[1]};
  ein_plan *plan = NULL;
  ein_run run;
  memset(&run, 0, sizeof run);
  host.out[host.nout++] = orc_alloc(20 * 12, 16);
  run.in = in, run.out = host.out;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  for (int kind = 0; kind < JOINS; kind++) {
    outcome o;
    CHECK(run_steps(on, cuda, g, s, kind, 4, &x.v, &o) == EIN_OK && outcome_same(g, &host, &o));
    CHECK(o.info.away_bytes == 0 && o.counts.peer == 0 && o.counts.gemms == 0);
    outcome_free(&o);
  }
  ein_plan_destroy(plan);
  outcome_free(&host);
  ein_ctx_destroy(on);
  ein_cuda_destroy(cuda);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
  problem_end(&x);
}

// ---- random schedules ----

static void test_random(int cases, uint64_t seed) {
  int ran = 0, stayed = 0;
  int64_t peer = 0, moved = 0;
  for (int c = 0; c < cases && failures == 0; c++) {
    char program[256], text[1024];
    int64_t e[3];
    ein_program_desc desc;
    ein_schedule_desc how;
    ein_graph *g = NULL;
    ein_schedule *s = NULL;
    values v;
    outcome o;
    int which;
    rng_state = seed * 1000003 + (uint64_t)c;
    const int p = (int)draw(1, 6), devices = (int)draw(1, 4), kind = COPYING + (int)draw(0, 2);
    for (int i = 0; i < 3; i++) e[i] = chance(4) ? 0 : draw(1, 9);
    const char *stmt = draw_program(program, sizeof program, e, &which);
    memset(&desc, 0, sizeof desc);
    memset(&how, 0, sizeof how);
    desc.text = program;
    if (strchr(stmt, ';') == NULL)
      draw_nest(text, sizeof text, (int)draw(1, 3), (int)draw(1, 3));
    else draw_both(text, sizeof text, (int)draw(1, 3), (int)draw(1, 3));
    if (chance(60)) draw_place(text, sizeof text, statements[which].rank);
    how.text = text;
    how.places = p;
    const size_t end = strlen(text);
    if (chance(50)) strcat(text, chance(50) ? "parallelize(x)\n" : "parallelize(v)\n");
    ein_status st = ein_graph_parse(ctx, &desc, &g);
    if (st == EIN_OK && ein_schedule_create(ctx, g, &how, &s) != EIN_OK) {
      text[end] = 0;  // no such loop may be
      st = ein_schedule_create(ctx, g, &how, &s);
    }
    if (st != EIN_OK) {
      ein_graph_destroy(g);
      continue;
    }
    values_make(g, seed + (uint64_t)c, &v);
    if (chance(20)) setenv("STUB_NO_PEERS", "1", 1);
    ein_cuda *cuda = open_devices(devices, NULL);
    ein_ctx *on = ctx_on(cuda, NULL, kind == COPYING_THREADS ? 3 : 1);
    st = run_steps(on, cuda, g, s, kind, p, &v, &o);
    CHECK(st == EIN_ERR_UNSUPPORTED || (st == EIN_OK && outcome_right(g, &v, &o)));
    CHECK(o.counts.peer <= o.stats.bytes);
    ran += st == EIN_OK;
    stayed += o.info.away_bytes > 0;
    peer += o.counts.peer;
    moved += o.stats.bytes;
    if (failures > 0)
      printf("case %d of seed %llu: %s, %d places, %d devices, %d\n%s\n%s%s\n", c,
             (unsigned long long)seed, ein_status_name(st), p, devices, kind, program, text,
             ein_ctx_message(on));
    outcome_free(&o);
    ein_ctx_destroy(on);
    ein_cuda_destroy(cuda);
    unsetenv("STUB_NO_PEERS");
    ein_schedule_destroy(s);
    values_free(g, &v);
    ein_graph_destroy(g);
    CHECK(stub_live() == 0);
  }
  printf("  %d of %d schedules ran, %d on devices, %lld of %lld bytes between these\n", ran, cases,
         stayed, (long long)peer, (long long)moved);
  CHECK(2 * ran > cases && 2 * stayed > ran && 8 * peer > moved);
}

// ---- calls that fail ----

// Each call of the driver fails once, from creating the plan on: a status, nothing is left behind,
// and the same runs afterwards.
static void test_failures(int refused, const example *e) {
  problem x;
  long hits = 0;
  problem_begin(&x, e->program);
  ein_schedule *s = schedule_on(e, x.g);
  if (refused) setenv("STUB_NO_PEERS", "1", 1);
  for (long n = 0; n < 6000; n += 3 * FEW_STEP) {
    outcome o;
    ein_cuda *cuda = open_devices(e->p, NULL);
    ein_ctx *on = ctx_on(cuda, NULL, 1);
    const long from = stub_calls();
    const int code = n % 2 ? 1 : 2;
    stub_fail(n, code);
    const ein_status st = run_steps(on, cuda, x.g, s, COPYING, e->p, &x.v, &o);
    const int hit = stub_calls() - from > n;
    stub_fail(-1, 0);
    CHECK(st == EIN_OK || (hit && (st == EIN_ERR_INTERNAL ||
                                   (code == 2 && st == EIN_ERR_NO_MEMORY))));
    CHECK(st != EIN_OK || outcome_right(x.g, &x.v, &o));
    hits += st != EIN_OK;
    outcome_free(&o);
    CHECK(run_steps(on, cuda, x.g, s, COPYING, e->p, &x.v, &o) == EIN_OK);
    CHECK(outcome_right(x.g, &x.v, &o));
    outcome_free(&o);
    ein_ctx_destroy(on);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (!hit) break;
  }
  printf("  %ld calls that fail are statuses%s\n", hits, refused ? ", by the host" : "");
  CHECK(hits > 100 / FEW_STEP);
  unsetenv("STUB_NO_PEERS");
  ein_schedule_destroy(s);
  problem_end(&x);
}

// Each allocation of the ctx and of the devices fails once.
static void test_no_memory(const example *e) {
  problem x;
  problem_begin(&x, e->program);
  ein_schedule *s = schedule_on(e, x.g);
  for (long n = 0;; n += 2 * FEW_STEP + 1) {
    counter count = {0, n, 0};
    ein_allocator al;
    outcome o;
    memset(&al, 0, sizeof al);
    memset(&o, 0, sizeof o);
    al.alloc_fn = count_alloc, al.free_fn = count_free, al.user = &count;
    ein_status st = EIN_ERR_NO_MEMORY;
    ein_cuda *cuda = open_devices(e->p, &al);
    ein_ctx *on = cuda == NULL ? NULL : ctx_on(cuda, &al, 1);
    if (on != NULL) st = run_steps(on, cuda, x.g, s, COPYING, e->p, &x.v, &o);
    CHECK(st == EIN_ERR_NO_MEMORY || (st == EIN_OK && outcome_right(x.g, &x.v, &o)));
    if (st != EIN_ERR_NO_MEMORY && st != EIN_OK) printf("  %ld: %s\n", n, ein_status_name(st));
    outcome_free(&o);
    ein_ctx_destroy(on);
    ein_cuda_destroy(cuda);
    CHECK(count.live == 0 && stub_live() == 0);
    if (count.calls <= n) break;
  }
  ein_schedule_destroy(s);
  problem_end(&x);
}

int main(int argc, char **argv) {
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  const int cases = argc > 2 ? atoi(argv[2]) : FEW(60);
  const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  if (!stub_open()) return 1;
  ctx = monoid_ctx();
  test_exact();
  for (int k = 0; k < 11; k++) test_memory(&examples[k], 0);
  test_memory(&examples[0], 1);
  test_memory(&examples[10], 1);
  test_ways();
  test_named();
  test_alone();
  test_shares();
  test_deterministic();
  test_random(cases, seed);
  test_failures(0, &examples[10]);
  test_failures(1, &examples[0]);
  test_no_memory(&examples[11]);
  ein_ctx_destroy(ctx);
  shelf_free();
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
