// What several tests need: random numbers from a seed, and an allocator that counts and fails.
// Include after einsum.h's implementation.

#include "fewer.h"

static uint64_t rng_state = 0;

EINI_UNUSED static uint64_t rng(void) {  // splitmix64
  uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

EINI_UNUSED static int64_t draw(int64_t lo, int64_t hi) {  // both inclusive
  return lo + (int64_t)(rng() % (uint64_t)(hi - lo + 1));
}

EINI_UNUSED static int chance(int percent) { return draw(0, 99) < percent; }

// Where an emit_fn stores or reads fold i; s: 0 the output, 1 + e an extra.
EINI_UNUSED static int64_t placed(const int64_t *off, const int64_t *step, int s, int64_t i) {
  return step == NULL ? off[i] : off[0] + i * step[s];
}

// Call number fail_at, counted from 0, fails; live: blocks not yet freed.
typedef struct counter {
  long calls, fail_at, live;
} counter;

// Blocks remember their size: one that is freed with another stays alive.
EINI_UNUSED static void *count_alloc(size_t size, size_t align, void *user) {
  counter *c = (counter *)user;
  const size_t head = align > sizeof size ? align : 64;
  if (c->calls++ == c->fail_at) return NULL;
  char *p = (char *)eini_default_alloc(size + head, align, NULL);
  if (p == NULL) return NULL;
  c->live++;
  memcpy(p, &size, sizeof size);
  memcpy(p + head - sizeof head, &head, sizeof head);
  return p + head;
}

EINI_UNUSED static void count_free(void *p, size_t size, void *user) {
  size_t head, was;
  if (p == NULL) return;
  memcpy(&head, (char *)p - sizeof head, sizeof head);
  memcpy(&was, (char *)p - head, sizeof was);
  ((counter *)user)->live -= was == size;
  eini_default_free((char *)p - head, size + head, NULL);
}
