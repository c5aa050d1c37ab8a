// What one process of many pays: creating and running a plan of two LLaMA-shaped layers over p
// processes of which this one drives the place in the middle. Blocks are small, and a message takes
// no time, so that what is measured is the library.
//
//     cc -O2 -o places bench/places.c -lm -lpthread && ./places [P ..]

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

static void one(ein_ctx *ctx, ein_graph *g, int p, int rounds) {
  enum { MOST = 256 };
  const void *in[MOST];
  void *out[MOST];
  double made[64], ran[64], begin;
  ein_decompose_desc dd;
  ein_decomposition *how;
  ein_dist_desc desc;
  ein_dist_info info = {0};
  ein_dist_stats stats;
  ein_fabric f;
  ein_run run;
  memset(&dd, 0, sizeof dd), memset(&desc, 0, sizeof desc), memset(&f, 0, sizeof f);
  memset(&run, 0, sizeof run), memset(&stats, 0, sizeof stats);
  dd.p = p;
  dd.cost = EIN_COST_BYTES;
  if (ein_decompose(ctx, g, &dd, &how) != EIN_OK) exit(1);
  f.name = "nothing";
  f.places = p, f.first = p / 2, f.count = 1;
  f.send_fn = no_send, f.recv_fn = no_recv, f.wait_fn = no_wait, f.agree_fn = no_agree;
  desc.fabric = &f;
  desc.decomposition = how;
  const int nin = 1 + 2 + 9 * 2, nout = 1;
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
}

int main(int argc, char **argv) {
  static const int places[] = {4, 16, 64, 256, 1024, 4096};
  static char text[1 << 16];
  const llama m = {2, 1, 128, 256, 32, 512};
  ein_program_desc d;
  ein_ctx *ctx;
  ein_graph *g;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK || llama_program(&m, text, sizeof text) >= sizeof text)
    return 1;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) return fputs(ein_ctx_message(ctx), stderr), 1;
  printf("places    create, ms       run, ms      tasks   receives\n");
  for (int i = 1; i < argc; i++) one(ctx, g, atoi(argv[i]), 5);
  for (int i = 0; argc == 1 && i < 6; i++) one(ctx, g, places[i], 5);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  return 0;
}
