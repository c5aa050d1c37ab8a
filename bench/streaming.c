// From which size of an output on it is faster to store past the caches: transposes with that
// always and never, against what the backend takes with and without calibration; milliseconds, the
// best of many rounds in which the ways take turns.
//
//   streaming [EXTENT ..]      of square transposes; default 500 to 6000
//
//   cc -std=c99 -O2 -o streaming bench/streaming.c -lm -pthread
//
// The first line has both sizes, in bytes of an output for one last-level cache; the last column
// how much longer the worse of the backend's two ways takes than the better of the others.
#define _POSIX_C_SOURCE 200809L
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double clock_now(void *user) {
  (void)user;
  return now();
}

// A backend of one thread, with another size from which it stores past the caches if past > 0.
static ein_ctx *open_ctx(ein_cpu **cpu, int calibrate, double past, ein_rates *rates) {
  ein_cpu_desc of;
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  memset(&of, 0, sizeof of);
  memset(&desc, 0, sizeof desc);
  of.threads = 1;
  desc.now_fn = clock_now;
  if (ein_cpu_create(&of, NULL, cpu) != EIN_OK) exit(3);
  if (ein_cpu_use(*cpu, &desc) != EIN_OK || ein_ctx_create(&desc, &ctx) != EIN_OK) exit(3);
  *rates = ein_ctx_rates_get(ctx);
  if (calibrate && ein_calibrate(ctx, 0, rates) != EIN_OK) exit(3);
  if (past > 0) rates->stream_bytes = past;
  if ((calibrate || past > 0) && ein_ctx_rates(ctx, rates) != EIN_OK) exit(3);
  return ctx;
}

static double once(ein_ctx *ctx, const ein_ztensor *in, const ein_ztensor *out) {
  const double start = now();
  if (ein_einsum(ctx, "ij->ji", 1, in, out) != EIN_OK) exit(3);
  return now() - start;
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"500", "700", "1000", "1400", "2000", "2800", "4000", "6000"};
  enum { ALWAYS, NEVER, TABLE, MEASURED, WAYS };
  const int n = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
  ein_cpu *cpu[WAYS];
  ein_ctx *ctx[WAYS];
  ein_rates rates[WAYS];
  for (int w = 0; w < WAYS; w++)
    ctx[w] = open_ctx(&cpu[w], w == MEASURED, w == ALWAYS ? 1 : w == NEVER ? 1e15 : 0, &rates[w]);
  printf("past the caches from %.0f bytes by the table, %.0f measured\n",
         (double)ein_cpu_kernels(cpu[TABLE])->stream_bytes, rates[MEASURED].stream_bytes);
  printf("%8s %9s %9s %9s %9s %9s %7s\n", "extent", "MB", "always", "never", "table", "measured",
         "worse");
  for (int k = 0; k < n; k++) {
    const int64_t e = atoi(argc > 1 ? argv[k + 1] : usual[k]);
    const int64_t shape[2] = {e, e};
    double best[WAYS] = {1e9, 1e9, 1e9, 1e9};
    ein_ztensor in, out;
    if (e < 1 || e > 30000) return 2;
    memset(&in, 0, sizeof in);
    in.dtype = EIN_F64, in.rank = 2, in.shape = shape;
    out = in;
    char *raw[2];
    for (int i = 0; i < 2; i++) {
      raw[i] = (char *)malloc((size_t)(e * e) * 8 + 64);
      if (raw[i] == NULL) return 3;
      memset(raw[i], 0, (size_t)(e * e) * 8 + 64);
    }
    in.data = raw[0] + (64 - (uintptr_t)raw[0] % 64) % 64;
    out.data = raw[1] + (64 - (uintptr_t)raw[1] % 64) % 64;
    const double until = now() + 2;
    for (int round = 0; round < 7 || now() < until; round++) {
      for (int w = 0; w < WAYS; w++) {
        const double s = once(ctx[(w + round) % WAYS], &in, &out);
        if (s < best[(w + round) % WAYS]) best[(w + round) % WAYS] = s;
      }
    }
    const double least = best[ALWAYS] < best[NEVER] ? best[ALWAYS] : best[NEVER];
    const double taken = best[TABLE] > best[MEASURED] ? best[TABLE] : best[MEASURED];
    printf("%8lld %9.1f", (long long)e, (double)(e * e) * 8e-6);
    for (int w = 0; w < WAYS; w++) printf(" %9.3f", 1e3 * best[w]);
    printf(" %6.2fx\n", taken / least);
    fflush(stdout);
    for (int i = 0; i < 2; i++) free(raw[i]);
  }
  for (int w = 0; w < WAYS; w++) {
    ein_ctx_destroy(ctx[w]);
    ein_cpu_destroy(cpu[w]);
  }
  return 0;
}
