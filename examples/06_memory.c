// Memory: all of it comes from your allocator, and executing a plan needs none at all when you give
// it the workspace whose size the plan names. Here both are counted.
//   cc examples/06_memory.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct counter {
  long calls, live;
  size_t bytes;
} counter;

// align is a power of two up to 64: room for it and for the pointer to free.
static void *count_alloc(size_t size, size_t align, void *user) {
  counter *c = (counter *)user;
  char *raw = (char *)malloc(size + align + sizeof(void *));
  if (raw == NULL) return NULL;
  uintptr_t at = ((uintptr_t)raw + sizeof(void *) + align - 1) / align * align;
  ((void **)at)[-1] = raw;
  c->calls++;
  c->live++;
  c->bytes += size;
  return (void *)at;
}

static void count_free(void *ptr, size_t size, void *user) {
  counter *c = (counter *)user;
  if (ptr == NULL) return;
  c->live--;
  c->bytes -= size;
  free(((void **)ptr)[-1]);
}

enum { N = 16 };

int main(void) {
  static double a[N][N], b[N][N], c[N][N], y[N][N];
  static union { double align; char bytes[1 << 16]; } space;
  counter count = {0, 0, 0};
  ein_ctx_desc cd = {.allocator = {count_alloc, count_free, &count}};
  ein_ctx *ctx;
  ein_plan *plan;
  int64_t shape[] = {N, N};
  ein_ztensor t = {.dtype = EIN_F64, .rank = 2, .shape = shape}, in[] = {t, t, t};
  ein_einsum_desc desc = {.expr = "ij,jk,kl->il", .nin = 3, .in = in, .out = &t};
  for (int i = 0; i < N; i++) {
    a[i][i] = 2;
    b[i][i] = 3;
    c[i][i] = 5;
  }
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) return 1;
  if (ein_plan_create(ctx, &desc, &plan) != EIN_OK) return 1;
  ein_ctx_destroy(ctx);  // a plan outlives its ctx
  printf("blocks held by the plan: %s\n", count.live > 0 && count.bytes > 0 ? "some" : "none");

  size_t need = ein_plan_workspace(plan), skip = (64 - (uintptr_t)space.bytes % 64) % 64;
  if (need + skip > sizeof space.bytes) return 1;
  const void *inputs[] = {a, b, c};
  void *outputs[] = {y};
  ein_run run = {.in = inputs, .out = outputs, .workspace = space.bytes + skip,
                 .workspace_bytes = need};
  long before = count.calls;
  for (int i = 0; i < 100; i++) {
    if (ein_plan_execute(plan, &run) != EIN_OK) return 1;
  }
  printf("allocations in 100 executions: %ld\n", count.calls - before);
  printf("y[0][0] = %g, y[0][1] = %g\n", y[0][0], y[0][1]);
  ein_plan_destroy(plan);
  printf("blocks and bytes at the end: %ld, %zu\n", count.live, count.bytes);
  return 0;
}
