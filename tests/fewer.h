// How many of n random cases a test tries: sanitizers look at the use of memory, which shows in
// fewer as well (compiled with TEST_FEWER), and so does most of what a commit breaks (the
// environment's TEST_FEWER, which multiplies it).

#include <stdlib.h>

#ifndef TEST_FEWER
#define TEST_FEWER 1
#endif

static int fewer(void) {
  const char *s = getenv("TEST_FEWER");
  const int n = s == NULL ? 1 : atoi(s);
  return (TEST_FEWER) * (n > 0 ? n : 1);
}

#define FEW(n) ((n) / fewer() + (fewer() > 1))
#define FEW_STEP (fewer() > 6 ? 31 : fewer() > 1 ? 5 : 1)  // of every so many in a list one
