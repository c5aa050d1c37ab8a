// What tests count. CHECK goes on after a failure, which it prints.

#include <stdio.h>

static int checks, failures;

#define CHECK(cond)                                             \
  do {                                                          \
    checks++;                                                   \
    if (!(cond)) {                                              \
      failures++;                                               \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
    }                                                           \
  } while (0)
