// The library as one translation unit, for a shared library that scripts load.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

// A ctx on a pool of that many threads with the kernels of einsum_cpu.h; it lives to the end.
extern ein_ctx *test_cpu_ctx(int threads, const char *isa);
ein_ctx *test_cpu_ctx(int threads, const char *isa) {
  ein_cpu_desc machine;
  ein_ctx_desc desc;
  ein_cpu *cpu;
  ein_ctx *ctx = NULL;
  memset(&machine, 0, sizeof machine);
  memset(&desc, 0, sizeof desc);
  machine.threads = threads;
  machine.isa = isa;
  if (ein_cpu_create(&machine, NULL, &cpu) != EIN_OK) return NULL;
  if (ein_cpu_use(cpu, &desc) != EIN_OK) return NULL;
  return ein_ctx_create(&desc, &ctx) == EIN_OK ? ctx : NULL;
}
