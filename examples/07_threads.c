// Threads: the library starts none. It is given an executor, a function that runs n tasks on the
// threads of your program, and never calls it from inside a task. The result has the same bits
// for every number of threads.
//   cc examples/07_threads.c -lm -pthread && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { N = 200, WIDTH = 4 };

typedef struct job {
  int first, n;
  void (*task)(void *arg, int i);
  void *arg;
} job;

static void *work(void *p) {
  const job *j = (const job *)p;
  for (int i = j->first; i < j->n; i += WIDTH) j->task(j->arg, i);
  return NULL;
}

// The simplest executor: thread k runs tasks k, k + WIDTH, ..; a real one keeps its threads.
static void parallel_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  pthread_t thread[WIDTH];
  job jobs[WIDTH];
  int started[WIDTH] = {0};
  ++*(int *)user;
  for (int k = 0; k < WIDTH; k++) {
    jobs[k] = (job){k, n, task, arg};
    if (k > 0) started[k] = pthread_create(&thread[k], NULL, work, &jobs[k]) == 0;
  }
  for (int k = 0; k < WIDTH; k++) {
    if (!started[k]) work(&jobs[k]);  // the calling thread, and those that did not start
  }
  for (int k = 1; k < WIDTH; k++) {
    if (started[k]) pthread_join(thread[k], NULL);
  }
}

static double a[N][N], b[N][N], one[N][N], many[N][N];

static int product(const ein_ctx_desc *cd, void *result) {
  int64_t shape[] = {N, N};
  ein_ztensor in[] = {ein_tensor(EIN_F64, 2, shape, a), ein_tensor(EIN_F64, 2, shape, b)};
  ein_ztensor out = ein_tensor(EIN_F64, 2, shape, result);
  ein_ctx *ctx;
  if (ein_ctx_create(cd, &ctx) != EIN_OK) return 0;
  ein_status st = ein_einsum(ctx, "ij,jk->ik", 2, in, &out);
  ein_ctx_destroy(ctx);
  return st == EIN_OK;
}

int main(void) {
  int calls = 0;
  ein_ctx_desc cd = {.executor = {WIDTH, parallel_for, &calls}};
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++) {
      a[i][j] = 1.0 / (1 + i + j);
      b[i][j] = 1.0 / (1 + i * j % 7);
    }
  }
  if (!product(NULL, one) || !product(&cd, many)) return 1;
  printf("the executor was %s\n", calls > 0 ? "used" : "not used");
  printf("same bits: %s\n", memcmp(one, many, sizeof one) == 0 ? "yes" : "no");
  printf("c[1][2] = %.9f\n", many[1][2]);
  return 0;
}
