// Statements on a GPU through einsum_cuda.h: seconds of the device by its events, and of the whole
// call with operands copied there and the result back; arithmetic and traffic against what the
// driver says the device does at best. Without a device it says why.
//
//   gpu [SECONDS]    for each case, default 0.5
#define _POSIX_C_SOURCE 199309L
#define EINSUM_IMPLEMENTATION
#define EINSUM_STATIC
#include "../einsum.h"
#include "../backends/einsum_cuda.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct bench_case {
  const char *expr, *map, *monoid;
  ein_dtype type;
  int rank;
  int64_t extent[8];           // of its indices, in the order of the alphabet
} bench_case;

static const bench_case cases[] = {
    {"ac,cb->ab", NULL, NULL, EIN_F32, 3, {4096, 4096, 4096}},
    {"ac,cb->ab", NULL, NULL, EIN_F64, 3, {4096, 4096, 4096}},
    {"dac,dcb->dab", NULL, NULL, EIN_F32, 4, {256, 256, 256, 256}},
    {"abef,fced->abcd", NULL, NULL, EIN_F64, 6, {48, 48, 48, 48, 48, 48}},
    {"abef,fced->abcd", NULL, NULL, EIN_F32, 6, {48, 48, 48, 48, 48, 48}},
    {"ac,cb->ab", "(2*x0+1)*x1", NULL, EIN_F32, 3, {4096, 4096, 4096}},
    {"ac,cb->ab", "x0+x1", "min", EIN_F32, 3, {2048, 2048, 2048}},
    {"ac,bc->ab", NULL, NULL, EIN_F32, 3, {64, 64, 4194304}},
    {"abc,bd,cd->ad", NULL, NULL, EIN_F64, 4, {512, 512, 512, 32}},
    {"ab,ab->ab", "x0*2+x1", NULL, EIN_F32, 2, {16384, 8192}},
    {"ab->ba", NULL, NULL, EIN_F32, 2, {16384, 8192}},
    {"abc->cba", NULL, NULL, EIN_F64, 3, {512, 512, 256}},
    {"ab->a", NULL, NULL, EIN_F32, 2, {16384, 8192}},
    {"ab->b", NULL, NULL, EIN_F32, 2, {16384, 8192}},
    {"ab->a", NULL, "logsumexp", EIN_F32, 2, {16384, 8192}}};

// The operands and the result of a case; elements that are read and written, and points.
static void views_of(const bench_case *c, ein_ztensor *view, int64_t shape[4][8], int *nin,
                     double *elements, double *points) {
  int k = 0, used = 0;
  *elements = 0, *points = 1, *nin = 0;
  memset(view, 0, 4 * sizeof *view);
  for (const char *at = c->expr;; at++) {
    if (*at >= 'a' && *at <= 'h') {
      shape[k][view[k].rank++] = c->extent[*at - 'a'];
      if (!(used >> (*at - 'a') & 1)) *points *= (double)c->extent[*at - 'a'];
      used |= 1 << (*at - 'a');
      continue;
    }
    double n = 1;
    for (int a = 0; a < view[k].rank; a++) n *= (double)shape[k][a];
    view[k].dtype = c->type;
    view[k].shape = shape[k];
    *elements += n;
    const size_t size = ein_dtype_size(c->type), bytes = (size_t)n * size;
    view[k].data = malloc(bytes);
    for (size_t i = 0; view[k].data != NULL && i < (size_t)n; i++) {
      if (c->type == EIN_F32) ((float *)view[k].data)[i] = (float)(i * 37 % 101) / 101 - 0.5f;
      else ((double *)view[k].data)[i] = (double)(i * 37 % 101) / 101 - 0.5;
    }
    if (*at == 0) break;
    if (*at == '-') at++;
    *nin = ++k;
  }
}

static void run_case(ein_cuda *cuda, ein_ctx *ctx, const bench_case *c, double budget) {
  enum { MOST = 50 };
  ein_ztensor view[4];
  int64_t shape[4][8];
  ein_einsum_desc d;
  double elements, points, device[MOST], whole[MOST], first = 0, begin;
  int n = 0;
  memset(&d, 0, sizeof d);
  views_of(c, view, shape, &d.nin, &elements, &points);
  d.expr = c->expr, d.map = c->map, d.monoid = c->monoid;
  d.in = view, d.out = &view[d.nin];
  ein_status st = EIN_OK;
  begin = 1e-6 * now();
  st = ein_einsum_ex(ctx, &d);
  first = 1e-6 * now() - begin;
  begin += first;
  for (; st == EIN_OK && n < MOST && (n < 3 || 1e-6 * now() - begin < budget); n++) {
    const double from = 1e-6 * now(), before = ein_cuda_counts_get(cuda).seconds;
    st = ein_einsum_ex(ctx, &d);
    whole[n] = 1e-6 * now() - from;
    device[n] = ein_cuda_counts_get(cuda).seconds - before;
  }
  if (st != EIN_OK) {
    printf("%-18s %-12s %s: %s\n", c->expr, c->map == NULL ? "" : c->map,
           ein_dtype_name(c->type), ein_ctx_message(ctx));
  } else {
    const double t = median(device, n), all = median(whole, n);
    const double size = (double)ein_dtype_size(c->type);
    printf("%-18s %-12s %-10s %s %9.3f ms  %9.1f GFLOP/s  %8.1f GB/s  with copies %9.3f ms, "
           "first %7.1f ms\n", c->expr, c->map == NULL ? "" : c->map,
           c->monoid == NULL ? "" : c->monoid, ein_dtype_name(c->type), t * 1e3,
           2e-9 * points / t, 1e-9 * elements * size / t, all * 1e3, first * 1e3);
  }
  for (int k = 0; k <= d.nin; k++) free(view[k].data);
  fflush(stdout);
}

int main(int argc, char **argv) {
  const double budget = argc > 1 ? atof(argv[1]) : 0.5;
  ein_cuda_desc want;
  ein_ctx_desc desc;
  ein_cuda *cuda;
  ein_ctx *ctx;
  char facts[1024];
  memset(&want, 0, sizeof want);
  memset(&desc, 0, sizeof desc);
  want.only = 1;
  if (ein_cuda_create(&want, NULL, &cuda) != EIN_OK) return 1;
  (void)ein_cuda_info(cuda, facts, sizeof facts);
  puts(facts);
  if (ein_cuda_use(cuda, &desc) != EIN_OK) {
    ein_cuda_destroy(cuda);
    return 0;
  }
  if (ein_ctx_create(&desc, &ctx) != EIN_OK) return 1;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(cuda, ctx, &cases[i], budget);
  ein_ctx_destroy(ctx);
  ein_cuda_destroy(cuda);
  return 0;
}
