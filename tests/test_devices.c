// Places of one process on several devices: under the stub of CUDA (cuda_stub.c) blocks stay on the
// device of their place from statement to statement, and what moves between two of them goes from
// one to the other where they open their memory to each other, else by the host. Random graphs, cut
// at random, are held against the oracle, and the ways of moving give the same bits; calls that
// fail are statuses and leave nothing behind.
//
//   test_devices STUB [graphs [seed]]
#define _POSIX_C_SOURCE 200112L

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"
#include "devices.h"

// A graph whose inputs are in v, cut, over p places that copy.
static ein_status run_cut(ein_ctx *ctx, ein_cuda *cuda, const ein_graph *g, const cuts *c, int p,
                          int threads, const values *v, outcome *o) {
  ein_fabric f;
  ein_dist_desc desc;
  memset(o, 0, sizeof *o);
  memset(&desc, 0, sizeof desc);
  EINI_TRY(ein_fabric_copying(ctx, p, &f));
  f.threads = threads;
  desc.fabric = &f;
  desc.parts = c->parts;
  desc.pins = c->pins;
  const ein_status st = run_places(ctx, cuda, g, &desc, v, o);
  ein_fabric_destroy(&f);
  return st;
}

// ---- random graphs ----

static void test_random(int count, uint64_t seed) {
  int done = 0, stayed = 0;
  int64_t peer = 0;
  for (int n = 0; n < count; n++) {
    static cuts c;
    const long live = stub_live();
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_ctx *own = monoid_ctx();
    ein_graph *g = random_graph(own, (int)draw(1, 5));
    const int p = (int)draw(2, 6), devices = (int)draw(2, 4), threads = chance(30);
    values v;
    outcome o[3];
    if (g == NULL || g->nstmt > MAX_STMTS) {
      ein_graph_destroy(g);
      ein_ctx_destroy(own);
      continue;
    }
    random_cuts(g, p, &c);
    values_make(g, seed + (uint64_t)n, &v);
    int right = 1;
    for (int how = 0; how < 3 && right; how++) {  // directly, by the host, on one device
      if (how == 1) setenv("STUB_NO_PEERS", "1", 1);
      ein_cuda *cuda = open_devices(how == 2 ? 1 : devices, NULL);
      ein_ctx *ctx = ctx_on(cuda, NULL, threads ? 3 : 1);
      const long before = stub_peer();
      const ein_status st = run_cut(ctx, cuda, g, &c, p, threads, &v, &o[how]);
      right = st == EIN_OK && outcome_right(g, &v, &o[how]);
      if (st != EIN_OK) printf("  %s: %s\n", ein_status_name(st), ein_ctx_message(ctx));
      CHECK(right && (how == 0 || outcome_same(g, &o[0], &o[how])));
      CHECK(o[how].counts.peer <= o[how].stats.bytes);
      CHECK(stub_peer() - before == 2 * o[how].counts.peer && (how == 0 || stub_peer() == before));
      unsetenv("STUB_NO_PEERS");
      ein_ctx_destroy(ctx);
      ein_cuda_destroy(cuda);
      CHECK(stub_live() == live);
      if (how == 0) peer += o[how].counts.peer, stayed += o[how].info.away_bytes > 0;
    }
    if (failures > 0) {
      static char text[16384];
      ein_graph_print(g, text, sizeof text);
      printf("case %d of seed %llu, %d places, %d devices, threads %d\n%s", n,
             (unsigned long long)seed, p, devices, threads, text);
    }
    for (int how = 0; how < 3; how++)
      if (right || how == 0) outcome_free(&o[how]);
    done++;
    values_free(g, &v);
    ein_graph_destroy(g);
    ein_ctx_destroy(own);
    if (failures > 0) return;
  }
  printf("  %d graphs, %d with blocks on devices, %lld bytes between these\n", done, stayed,
         (long long)peer);
  CHECK(done > count / 4 && stayed > done / 3 && peer > 5 * done);
}

// ---- what crosses, exactly ----

// Products in a chain over p places, a device each: whole numbers, so that all orders of sums give
// the same bits.
static const char *const texts[] = {
    "input A[i=40,j=60], B[j,k=50], C[k,l=36] : f64\nT[i,k] = A[i,j]*B[j,k]\n"
    "Y[i,l] = T[i,k]*C[k,l]\nS[l] = sum[i](Y[i,l])\noutput S\n",
    "input A[i=41,j=33] : f64\nB[i=39,j=33] = A[i,j] + A[i+1,j] + A[i+2,j]\n"
    "C[i=39,j=31] = B[i,j] + B[i,j+1] + B[i,j+2]\nD[i=37,j=31] = C[i,j]*2 - C[i+1,j] - C[i+2,j]\n"
    "output D\n",
    "input A[i=90,j=30] : i32\nS[j] = sum[i](A[i,j]*1000)\nM[j] = max[i](A[i,j]*2)\n"
    "T[j] = S[j] - M[j]\nV = sum[j](T[j])\noutput V\n",
    "input A[i=30,j=900] : f64\nM[i] = mean[j](A[i,j])\nP[i] = argmax[j](A[i,j])\n"
    "Y[i,j] = A[i,j] - M[i]\noutput Y, P\n"};

// Cuts at random, without pinned inputs.
static void problem_cuts(const problem *x, int p, uint64_t seed, cuts *c) {
  rng_state = seed;
  random_cuts(x->g, p, c);
  memset(c->pins, 0, sizeof c->pins);
}

static void test_exact(void) {
  int64_t all = 0;
  for (int k = 0; k < 4; k++) {
    for (int p = 2; p <= 4; p++) {
      static cuts c;
      problem x;
      outcome direct, by_host;
      problem_begin(&x, texts[k]);
      problem_cuts(&x, p, (uint64_t)(10 * k + p), &c);
      for (int threads = 0; threads < 2; threads++) {
        const long asked = stub_asked(), peer = stub_peer();
        ein_cuda *cuda = open_devices(p, NULL);
        ein_ctx *ctx = ctx_on(cuda, NULL, threads ? 3 : 1);
        CHECK(run_cut(ctx, cuda, x.g, &c, p, threads, &x.v, &direct) == EIN_OK);
        CHECK(outcome_right(x.g, &x.v, &direct));
        CHECK(direct.info.away_bytes > 0);
        all += direct.counts.peer;
        CHECK(stub_peer() - peer == 2 * direct.counts.peer);
        if (k < 3) {  // all of what moves is on devices, and nothing but outputs comes home
          CHECK(direct.counts.peer == direct.stats.bytes);
          CHECK(direct.counts.from_device == bytes_of(x.g, EIN_ROLE_OUTPUT));
        }
        const long once = stub_asked() - asked;
        CHECK((once > 0 || direct.counts.peer == 0) && once <= p * (p - 1));
        ein_ctx_destroy(ctx);
        setenv("STUB_NO_PEERS", "1", 1);
        ein_cuda_destroy(cuda);
        cuda = open_devices(p, NULL);
        ctx = ctx_on(cuda, NULL, threads ? 3 : 1);
        CHECK(run_cut(ctx, cuda, x.g, &c, p, threads, &x.v, &by_host) == EIN_OK);
        CHECK(outcome_same(x.g, &direct, &by_host) && by_host.counts.peer == 0);
        CHECK(by_host.counts.from_device == direct.counts.from_device + direct.counts.peer);
        CHECK(by_host.counts.to_device == direct.counts.to_device + direct.counts.peer);
        ein_ctx_destroy(ctx);
        ein_cuda_destroy(cuda);
        unsetenv("STUB_NO_PEERS");
        outcome_free(&direct);
        outcome_free(&by_host);
      }
      problem_end(&x);
    }
  }
  CHECK(stub_live() == 0 && all > 20000);
}

// Messages of more than a pinned buffer, by the host and directly.
static void test_long(void) {
  static cuts c;
  problem x;
  problem_begin(&x, "input A[i=2,j=1100000] : f64\nT[i,j] = A[i,j]*2\nY[j,i] = T[i,j] + 1\n"
                    "output Y\n");
  memset(&c, 0, sizeof c);
  for (int k = 0; k < 2; k++) {  // T by rows, Y by columns of T
    c.parts[k].nindex = 2, c.parts[k].norder = 1, c.parts[k].ntask = 2;
    c.cut[k][0] = 2, c.cut[k][1] = 1;
    c.parts[k].cut = c.cut[k], c.parts[k].order = c.order[k];
  }
  for (int how = 0; how < 2; how++) {
    outcome o;
    if (how == 1) setenv("STUB_NO_PEERS", "1", 1);
    ein_cuda *cuda = open_devices(2, NULL);
    ein_ctx *ctx = ctx_on(cuda, NULL, 1);
    CHECK(run_cut(ctx, cuda, x.g, &c, 2, 0, &x.v, &o) == EIN_OK && outcome_right(x.g, &x.v, &o));
    CHECK(o.stats.bytes > (int64_t)2 * 4 << 20 && o.counts.peer == (how == 0 ? o.stats.bytes : 0));
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    outcome_free(&o);
  }
  unsetenv("STUB_NO_PEERS");
  problem_end(&x);
}

// Blocks that a run binds are the host's; what is between them is not.
static void test_blocks(void) {
  enum { PLACES = 3 };
  static cuts c;
  problem x;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist_info info;
  ein_dist *d = NULL;
  problem_begin(&x, "input A[i=21,j=18], B[j,k=15] : f64\nT[i,k] = A[i,j]*B[j,k]\n"
                    "Y[k,i] = T[i,k]*2 + 1\nM[k] = max[i](Y[k,i])\noutput Y, M\n");
  rng_state = 4;
  random_cuts(x.g, PLACES, &c);
  memset(&desc, 0, sizeof desc);
  ein_cuda *cuda = open_devices(PLACES, NULL);
  ein_ctx *ctx = ctx_on(cuda, NULL, 1);
  CHECK(ein_fabric_copying(ctx, PLACES, &f) == EIN_OK);
  desc.fabric = &f;
  desc.parts = c.parts;
  desc.pins = c.pins;
  desc.blocks = 1;
  CHECK(ein_dist_create(ctx, x.g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_info_get(d, &info) == EIN_OK && info.away_bytes > 0);
  CHECK(run_blocks(d, x.g, PLACES, &x.v) && ein_cuda_counts_get(cuda).peer > 0);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  problem_end(&x);
}

// Under a schedule, too, what a place computes runs on its device, whatever the fabric.
static void test_steps(void) {
  static const char text[] =
      "machine x=3\nplace A, B, T ij->i\non T\ndistribute([i], [io], [ii], [x])\n"
      "on Y\ndistribute([i], [io], [ii], [x])\n";
  static const char *const program = "input A[i=12,j=9], B[i,j], C[j,k=9] : f64\n"
                                     "T[i,j] = A[i,j]*2 + B[i,j]\nY[i,k] = T[i,j]*C[j,k]\n";
  problem x;
  problem_begin(&x, program);
  for (int how = 0; how < 3; how++) {
    ein_schedule_desc sd;
    ein_schedule *s = NULL;
    ein_dist_desc desc;
    ein_dist *d = NULL;
    ein_fabric f;
    ein_run run;
    const void *in[3];
    outcome o;
    memset(&o, 0, sizeof o);
    memset(&sd, 0, sizeof sd);
    memset(&desc, 0, sizeof desc);
    memset(&run, 0, sizeof run);
    o.out[o.nout++] = orc_alloc(12 * 9, 16);
    for (int t = 0; t < 3; t++) in[t] = x.v.data[t];
    ein_cuda *cuda = open_devices(3, NULL);
    ein_ctx *ctx = ctx_on(cuda, NULL, how == 1 ? 3 : 1);
    sd.text = text;
    sd.places = 3;
    const ein_status made = ein_schedule_create(ctx, x.g, &sd, &s);
    if (made != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
    CHECK(made == EIN_OK);
    CHECK((how == 0 ? ein_fabric_serial(3, &f) : how == 1 ? ein_fabric_threads(3, &f)
                                                          : ein_fabric_copying(ctx, 3, &f)) ==
          EIN_OK);
    desc.fabric = &f;
    desc.schedule = s;
    run.in = in;
    run.out = o.out;
    long before[3];
    for (int i = 0; i < 3; i++) before[i] = stub_ran(i);
    CHECK(ein_dist_create(ctx, x.g, &desc, &d) == EIN_OK);
    CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK && outcome_right(x.g, &x.v, &o));
    for (int i = 0; i < 3; i++) CHECK(stub_ran(i) > before[i]);
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
    ein_schedule_destroy(s);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    outcome_free(&o);
  }
  problem_end(&x);
}

// ---- calls that fail ----

// Each call of the driver fails once, from creating the plan on: a status, nothing is left behind,
// and the same plan runs afterwards.
static void test_failures(int refused) {
  static cuts c;
  problem x;
  long hits = 0;
  problem_begin(&x, texts[0]);
  problem_cuts(&x, 3, 5, &c);
  if (refused) setenv("STUB_NO_PEERS", "1", 1);
  for (long n = 0; n < 3000; n += FEW_STEP) {
    outcome o;
    ein_cuda *cuda = open_devices(3, NULL);
    ein_ctx *ctx = ctx_on(cuda, NULL, 1);
    const long from = stub_calls();
    const int code = n % 2 ? 1 : 2;
    stub_fail(n, code);
    const ein_status st = run_cut(ctx, cuda, x.g, &c, 3, 0, &x.v, &o);
    const int hit = stub_calls() - from > n;
    stub_fail(-1, 0);
    // whether devices open their memory to each other is not an error: they do not
    CHECK(st == EIN_OK || (hit && (st == EIN_ERR_INTERNAL ||
                                   (code == 2 && st == EIN_ERR_NO_MEMORY))));
    CHECK(st != EIN_OK || outcome_right(x.g, &x.v, &o));
    hits += st != EIN_OK;
    outcome_free(&o);
    CHECK(run_cut(ctx, cuda, x.g, &c, 3, 0, &x.v, &o) == EIN_OK && outcome_right(x.g, &x.v, &o));
    outcome_free(&o);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(stub_live() == 0);
    if (!hit) break;
  }
  printf("  %ld calls that fail are statuses%s\n", hits, refused ? ", by the host" : "");
  CHECK(hits > 100 / FEW_STEP);
  unsetenv("STUB_NO_PEERS");
  problem_end(&x);
}

// Each allocation of the ctx and of the devices fails once.
static void test_no_memory(void) {
  static cuts c;
  problem x;
  problem_begin(&x, texts[2]);
  problem_cuts(&x, 3, 5, &c);
  for (long n = 0;; n += FEW_STEP) {
    counter count = {0, n, 0};
    ein_allocator al;
    outcome o;
    memset(&al, 0, sizeof al);
    memset(&o, 0, sizeof o);
    al.alloc_fn = count_alloc, al.free_fn = count_free, al.user = &count;
    ein_status st = EIN_ERR_NO_MEMORY;
    ein_cuda *cuda = open_devices(3, &al);
    ein_ctx *ctx = cuda == NULL ? NULL : ctx_on(cuda, &al, 1);
    if (ctx != NULL) st = run_cut(ctx, cuda, x.g, &c, 3, 0, &x.v, &o);
    CHECK(st == EIN_ERR_NO_MEMORY || (st == EIN_OK && outcome_right(x.g, &x.v, &o)));
    if (st != EIN_ERR_NO_MEMORY && st != EIN_OK) printf("  %ld: %s\n", n, ein_status_name(st));
    outcome_free(&o);
    ein_ctx_destroy(ctx);
    ein_cuda_destroy(cuda);
    CHECK(count.live == 0 && stub_live() == 0);
    if (count.calls <= n) break;
  }
  problem_end(&x);
}

int main(int argc, char **argv) {
  stub = argc > 1 ? argv[1] : "build/libcuda_stub.so";
  const int graphs = argc > 2 ? atoi(argv[2]) : FEW(24);
  const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  if (!stub_open()) return 1;
  test_exact();
  test_random(graphs, seed);
  test_blocks();
  test_steps();
  test_failures(0);
  test_failures(1);
  test_no_memory();
  test_long();  // last: the stub protects all memory that ever was
  shelf_free();
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures > 0;
}
