// The pool of threads and its memory at many widths: who runs which part, what is counted, pages.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

// ---- huge pages ----

// Whether the mapping around an address asks for huge pages; -1: the system does not say.
static int asked_for_huge(const void *at) {
  char line[512];
  int inside = 0, asked = -1;
  FILE *f = fopen("/proc/self/smaps", "r");
  if (f == NULL) return -1;
  while (asked < 0 && fgets(line, sizeof line, f) != NULL) {
    unsigned long long from, to;
    if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
      inside = (uintptr_t)at >= from && (uintptr_t)at < to;
    else if (inside && strncmp(line, "VmFlags:", 8) == 0)
      asked = strstr(line, " hg") != NULL;
  }
  fclose(f);
  return asked;
}

static void test_huge_pages(void) {
  const size_t page = (size_t)2 << 20;
  static const size_t sizes[] = {1, 4096, 2097151, 2097152, 3000000, 9000000};
  for (int huge = 0; huge < 2; huge++)
    for (int own = 0; own < 2; own++) {
      counter of_cpu = {0, -1, 0}, of_ctx = {0, -1, 0};
      const ein_allocator al = {count_alloc, count_free, &of_cpu};
      ein_cpu_desc c;
      ein_ctx_desc d;
      ein_cpu *cpu;
      memset(&c, 0, sizeof c);
      memset(&d, 0, sizeof d);
      c.threads = 1;
      c.huge_pages = huge;
      if (own) {
        d.allocator.alloc_fn = count_alloc;
        d.allocator.free_fn = count_free;
        d.allocator.user = &of_ctx;
      }
      CHECK(ein_cpu_create(&c, &al, &cpu) == EIN_OK);
      CHECK(ein_cpu_use(cpu, &d) == EIN_OK);
      CHECK((d.allocator.user == &of_ctx) == own);
      CHECK((d.allocator.alloc_fn != NULL) == (huge || own));
      for (int i = 0; i < 6 && huge && !own; i++) {
        const long live = of_cpu.live;
        char *p = (char *)d.allocator.alloc_fn(sizes[i], 64, d.allocator.user);
        CHECK(p != NULL && of_cpu.live == live + 1);
        if (p == NULL) continue;
        memset(p, 7, sizes[i]);
        CHECK((uintptr_t)p % 64 == 0);
        if (sizes[i] >= page) CHECK((uintptr_t)p % page == 0);
        const int asked = asked_for_huge(p);
        if (asked < 0) printf("  pages: the system does not say\n");
        else CHECK(asked == (sizes[i] >= page));
        d.allocator.free_fn(p, sizes[i], d.allocator.user);
        CHECK(of_cpu.live == live);
        of_cpu.fail_at = of_cpu.calls;
        CHECK(d.allocator.alloc_fn(sizes[i], 64, d.allocator.user) == NULL);
        CHECK(of_cpu.live == live);
      }
      if (huge && !own) CHECK(d.allocator.alloc_fn(SIZE_MAX - 5, 64, d.allocator.user) == NULL);
      ein_cpu_destroy(cpu);
      CHECK(of_cpu.live == 0 && of_ctx.live == 0);
    }
}

int main(int argc, char **argv) {
  if (argc > 1) rng_state = strtoull(argv[1], NULL, 10);
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_huge_pages();
  if (failures == 0) printf("ok %d checks\n", checks);
  return failures > 0;
}
