// What one process of many pays: creating and running a plan of two LLaMA-shaped layers over p
// processes of which this one drives the place in the middle. Blocks are small, and a message takes
// no time, so that what is measured is the library.
//
//     cc -O2 -o places bench/places.c -lm -lpthread && ./places [P ..]
//
// And what overlap gains: 8 places with memory of their own in this process, on two threads, whose
// messages take time but no core, with it and without, in turn.
//
//     ./places overlap [BYTES_PER_SECOND]
//
// The same of statements in steps: a product under Cannon's schedule, and SUMMA's for overlap.
//
//     ./places steps [P ..] && ./places overlap-steps [BYTES_PER_SECOND]

#define _POSIX_C_SOURCE 200809L
#define EINSUM_IMPLEMENTATION
#define EINSUM_DIST
#include <math.h>

#include "../einsum.h"
#include "../examples/models/llama.h"
#include "clock.h"

static ein_status no_send(void *user, int from, int to, int64_t tag, const void *data,
                          size_t bytes, ein_ticket *ticket) {
  (void)user, (void)from, (void)to, (void)tag, (void)data, (void)bytes;
  *ticket = 0;
  return EIN_OK;
}

static ein_status no_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                          ein_ticket *ticket) {
  (void)user, (void)from, (void)to, (void)tag;
  memset(data, 0, bytes);
  *ticket = 0;
  return EIN_OK;
}

static ein_status no_wait(void *user, ein_ticket ticket) {
  (void)user, (void)ticket;
  return EIN_OK;
}

static ein_status no_agree(void *user, ein_status *st) {
  (void)user, (void)st;
  return EIN_OK;
}

static const char cannon[] =
    "place A, B, C xy->xy\ndistribute([i,j],[io,jo],[ii,ji],[gx,gy])\ndivide(k,ko,ki,gx)\n"
    "reorder(ko,ii,ji,ki)\nrotate(ko,[io,jo],kos)\ncommunicate(C,jo)\ncommunicate([A,B],kos)\n";
static const char summa[] =
    "place A, B, C xy->xy\ndistribute([i,j],[io,jo],[ii,ji],[gx,gy])\nsplit(k,ko,ki,64)\n"
    "reorder(ko,ii,ji,ki)\ncommunicate(C,jo)\ncommunicate([A,B],ko)\n";

// A schedule on x times y places; g: of one product.
static ein_schedule *product_schedule(ein_ctx *ctx, const ein_graph *g, const char *commands,
                                      int x, int y) {
  char text[512];
  ein_schedule_desc d;
  ein_schedule *s = NULL;
  memset(&d, 0, sizeof d);
  snprintf(text, sizeof text, "machine gx=%d, gy=%d\n%s", x, y, commands);
  d.text = text;
  d.places = x * y;
  if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK) fputs(ein_ctx_message(ctx), stderr), exit(1);
  return s;
}

// steps: g is a product, which goes in steps on the squares of p.
static void one(ein_ctx *ctx, ein_graph *g, int p, int rounds, int steps) {
  enum { MOST = 256 };
  const void *in[MOST];
  void *out[MOST];
  double made[64], ran[64], begin;
  ein_decompose_desc dd;
  ein_decomposition *how = NULL;
  ein_dist_desc desc;
  ein_dist_info info = {0};
  ein_dist_stats stats;
  ein_fabric f;
  ein_run run;
  memset(&dd, 0, sizeof dd), memset(&desc, 0, sizeof desc), memset(&f, 0, sizeof f);
  memset(&run, 0, sizeof run), memset(&stats, 0, sizeof stats);
  dd.p = p;
  dd.cost = EIN_COST_BYTES;
  int side = 1;
  while ((side + 1) * (side + 1) <= p) side++;
  if (steps) p = side * side;
  ein_schedule *s = steps ? product_schedule(ctx, g, cannon, side, side) : NULL;
  if (!steps && ein_decompose(ctx, g, &dd, &how) != EIN_OK) exit(1);
  f.name = "nothing";
  f.places = p, f.first = p / 2, f.count = 1;
  f.send_fn = no_send, f.recv_fn = no_recv, f.wait_fn = no_wait, f.agree_fn = no_agree;
  desc.fabric = &f;
  desc.decomposition = how;
  desc.schedule = s;
  const int nin = steps ? 2 : 1 + 2 + 9 * 2, nout = 1;
  for (int i = 0; i < nin; i++) in[i] = calloc(1, 1 << 22);
  for (int i = 0; i < nout; i++) out[i] = calloc(1, 1 << 22);
  run.in = in, run.out = out;
  for (int r = 0; r < rounds; r++) {
    ein_dist *d;
    begin = now();
    if (ein_dist_create(ctx, g, &desc, &d) != EIN_OK) exit(1);
    made[r] = now() - begin;
    for (int warm = 0; warm < 3; warm++) {
      begin = now();
      if (ein_dist_execute(d, &run, &stats) != EIN_OK) exit(1);
      ran[r] = now() - begin;
    }
    ein_dist_info_get(d, &info);
    ein_dist_destroy(d);
  }
  printf("%6d %12.3f %12.3f %10lld %10lld\n", p, 1e-3 * median(made, rounds),
         1e-3 * median(ran, rounds), (long long)info.tasks, (long long)stats.messages);
  for (int i = 0; i < nin; i++) free((void *)(uintptr_t)in[i]);
  for (int i = 0; i < nout; i++) free(out[i]);
  ein_decomposition_destroy(how);
  ein_schedule_destroy(s);
}

// ---- links that take time ----

enum { UNDER_WAY = 1 << 16 };

typedef struct delayed {
  ein_fabric inner;
  double rate;               // bytes a second
  double busy;               // when the link is free, microseconds
  double until[UNDER_WAY];   // of tickets
  ein_ticket ticket[UNDER_WAY];
  int64_t next;
} delayed;

static ein_ticket later(delayed *l, ein_ticket inner, size_t bytes) {
  const double t = now();
  l->busy = (l->busy > t ? l->busy : t) + 1e6 * (double)bytes / l->rate;
  const int64_t i = l->next++ % UNDER_WAY;
  l->until[i] = l->busy;
  l->ticket[i] = inner;
  return i + 1;
}

static ein_status late_send(void *user, int from, int to, int64_t tag, const void *data,
                            size_t bytes, ein_ticket *ticket) {
  delayed *l = (delayed *)user;
  ein_status st = l->inner.send_fn(l->inner.user, from, to, tag, data, bytes, ticket);
  if (st == EIN_OK) *ticket = later(l, *ticket, 0);
  return st;
}

static ein_status late_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                            ein_ticket *ticket) {
  delayed *l = (delayed *)user;
  ein_status st = l->inner.recv_fn(l->inner.user, to, from, tag, data, bytes, ticket);
  if (st == EIN_OK) *ticket = later(l, *ticket, bytes);
  return st;
}

static ein_status late_test(void *user, ein_ticket ticket, int *done) {
  delayed *l = (delayed *)user;
  ein_status st = l->inner.test_fn(l->inner.user, l->ticket[ticket - 1], done);
  if (now() < l->until[ticket - 1]) *done = 0;
  return st;
}

static ein_status late_wait(void *user, ein_ticket ticket) {
  delayed *l = (delayed *)user;
  const double left = l->until[ticket - 1] - now();
  const struct timespec rest = {0, (long)(1e3 * left)};
  if (left > 0 && left < 1e6) nanosleep(&rest, NULL);
  return l->inner.wait_fn(l->inner.user, l->ticket[ticket - 1]);
}

// Two threads, as an executor.
typedef struct part {
  void (*task)(void *arg, int i);
  void *arg;
} part;

static void *second(void *user) {
  const part *x = (const part *)user;
  x->task(x->arg, 1);
  return NULL;
}

static void two(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  part x = {task, arg};
  pthread_t t;
  (void)user;
  const int more = n > 1 && pthread_create(&t, NULL, second, &x) == 0;
  task(arg, 0);
  if (more) pthread_join(t, NULL);
  for (int i = more ? 2 : 1; i < n; i++) task(arg, i);
}

static const char product[] = "input A[m=768,k=768], B[k,n=768] : f32\n"
                              "C[i,j] = A[i,k] * B[k,j]\n";

// Runs the two plans in turn.
static int overlap_runs(ein_dist *const *d, const ein_dist_info *info, const ein_run *run) {
  enum { ROUNDS = 15 };
  double took[2][ROUNDS];
  for (int r = -1; r < ROUNDS; r++) {
    for (int k = 0; k < 2; k++) {
      const double begin = now();
      if (ein_dist_execute(d[k], run, NULL) != EIN_OK) return 1;
      if (r >= 0) took[k][r] = now() - begin;
    }
  }
  printf("%lld bytes in %lld messages\n", (long long)info[0].bytes, (long long)info[0].messages);
  for (int k = 0; k < 2; k++)
    printf("%-10s %10.2f ms %12lld bytes of memory at a place\n", k ? "no overlap" : "overlap",
           1e-3 * median(took[k], ROUNDS), (long long)info[k].place_bytes);
  return 0;
}

// A chain of products in which every place reads rows and columns of others; steps: one product.
static int overlap(double rate, int steps) {
  static delayed l;
  static const char text[] = "input A[i=768,j=768], B[j,k=768], C[k,l=768], D[l,m=768] : f32\n"
                             "T[i,k] = sum[j](A[i,j]*B[j,k])\nU[i,l] = sum[k](T[i,k]*C[k,l])\n"
                             "V[i,m] = sum[l](U[i,l]*D[l,m])\noutput V\n";
  static const char *const pin[] = {"A[i=2,j=4]", "B[j=4,k=2]", "C[k=4,l=2]", "D[l=4,m=2]"};
  ein_ctx_desc cd;
  ein_ctx *ctx;
  ein_graph *g;
  ein_program_desc pd;
  ein_decompose_desc dd;
  ein_decomposition *how = NULL;
  ein_schedule *s = NULL;
  ein_dist *d[2];
  ein_dist_info info[2];
  ein_run run;
  const void *in[4];
  void *out[1] = {calloc(768 * 768, sizeof(float))};
  memset(&cd, 0, sizeof cd), memset(&pd, 0, sizeof pd), memset(&dd, 0, sizeof dd);
  memset(&run, 0, sizeof run), l.rate = rate;
  cd.executor.width = 2, cd.executor.parallel_for = two;
  pd.text = steps ? product : text;
  dd.p = 8, dd.cost = EIN_COST_BYTES, dd.npin = 4, dd.pin = pin;
  if (ein_ctx_create(&cd, &ctx) != EIN_OK || ein_graph_parse(ctx, &pd, &g) != EIN_OK ||
      (!steps && ein_decompose(ctx, g, &dd, &how) != EIN_OK) ||
      ein_fabric_copying(ctx, 8, &l.inner) != EIN_OK)
    return fputs(ein_ctx_message(ctx), stderr), 1;
  if (steps) s = product_schedule(ctx, g, summa, 4, 2);
  ein_fabric f = l.inner;
  f.user = &l, f.threads = 1, f.destroy_fn = NULL;
  f.send_fn = late_send, f.recv_fn = late_recv, f.test_fn = late_test, f.wait_fn = late_wait;
  for (int i = 0; i < 4; i++) in[i] = calloc(768 * 768, sizeof(float));
  run.in = in, run.out = out;
  for (int k = 0; k < 2; k++) {
    ein_dist_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.fabric = &f, desc.decomposition = how, desc.schedule = s, desc.no_overlap = k;
    if (ein_dist_create(ctx, g, &desc, &d[k]) != EIN_OK) return 1;
    ein_dist_info_get(d[k], &info[k]);
  }
  const int failed = overlap_runs(d, info, &run);
  for (int k = 0; k < 2; k++) ein_dist_destroy(d[k]);
  for (int i = 0; i < 4; i++) free((void *)(uintptr_t)in[i]);
  free(out[0]);
  ein_decomposition_destroy(how);
  ein_schedule_destroy(s);
  ein_fabric_destroy(&l.inner);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  return failed;
}

int main(int argc, char **argv) {
  static const int places[] = {4, 16, 64, 256, 1024, 4096};
  static char text[1 << 16];
  const llama m = {2, 1, 128, 256, 32, 512};
  ein_program_desc d;
  ein_ctx *ctx;
  ein_graph *g;
  const int steps = argc > 1 && strcmp(argv[1], "steps") == 0;
  if (argc > 1 && strncmp(argv[1], "overlap", 7) == 0)
    return overlap(argc > 2 ? atof(argv[2]) : 1e9, argv[1][7] != 0);
  if (ein_ctx_create(NULL, &ctx) != EIN_OK || llama_program(&m, text, sizeof text) >= sizeof text)
    return 1;
  if (steps)
    snprintf(text, sizeof text, "input A[m=512,k=512], B[k,n=512] : f32\n"
             "C[i,j] = A[i,k] * B[k,j]\n");
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) return fputs(ein_ctx_message(ctx), stderr), 1;
  printf("places    create, ms       run, ms      tasks   receives\n");
  for (int i = 1 + steps; i < argc; i++) one(ctx, g, atoi(argv[i]), 5, steps);
  for (int i = 0; argc == 1 + steps && i < 6 - steps; i++) one(ctx, g, places[i], 5, steps);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  return 0;
}
