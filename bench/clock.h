// The clock of programs here that print microseconds, and the median of what it gave. Programs that
// include it ask for POSIX before.
#include <stdlib.h>
#include <time.h>

static double now(void) {
#if defined(CLOCK_MONOTONIC)
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
#else
  return 1e6 * (double)clock() / CLOCKS_PER_SEC;
#endif
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Sorts t.
static double median(double *t, int n) {
  qsort(t, (size_t)n, sizeof *t, by_value);
  return t[n / 2];
}
