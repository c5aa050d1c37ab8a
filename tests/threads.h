// An executor for tests.
#include <pthread.h>

typedef struct test_job {
  void (*task)(void *arg, int i);
  void *arg;
  int i;
} test_job;

static void *test_thread(void *user) {
  test_job *j = (test_job *)user;
  j->task(j->arg, j->i);
  return NULL;
}

// Every task on a thread of its own.
static void test_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  pthread_t thread[8];
  test_job job[8];
  int started = 0;
  (void)user;
  for (int i = 0; i < n; i++) {
    if (i == n - 1 || i >= 8) {
      task(arg, i);
      continue;
    }
    job[i].task = task;
    job[i].arg = arg;
    job[i].i = i;
    if (pthread_create(&thread[started], NULL, test_thread, &job[i]) == 0) started++;
    else task(arg, i);
  }
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
