#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_CPU_H
#define EINSUM_CPU_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>cpu-api  public types and functions
// A thread pool and a provider of kernels for the processor the program runs on.
// ================================================================================================

typedef struct ein_cpu ein_cpu;

typedef struct ein_cpu_desc {
  int threads;            // with the caller; 0: as many as the process may use cores, by its quota
  const char *isa;        // "avx512", "avx2", "neon", "plain"; NULL or "": the best there is
  int pin;                // 1: bind the pool's threads to cores
  int huge_pages;         // 1: large blocks of a ctx's memory ask for pages of 2 MiB, see MEMORY
} ein_cpu_desc;

// desc and allocator may be NULL. *cpu is NULL on failure: EIN_ERR_ARGUMENT, EIN_ERR_UNSUPPORTED
// (an instruction set this machine lacks), EIN_ERR_NO_MEMORY.
EIN_API ein_status ein_cpu_create(const ein_cpu_desc *desc, const ein_allocator *allocator,
                                  ein_cpu **cpu);
EIN_API void ein_cpu_destroy(ein_cpu *cpu);  // NULL is a no-op; not while anything runs

// Sets desc->executor and puts the provider first in desc->use; leaves the rest alone and writes
// nothing of cpu's, so several threads may do so at a time. EIN_ERR_TOO_LARGE without room there.
EIN_API ein_status ein_cpu_use(ein_cpu *cpu, ein_ctx_desc *desc);
EIN_API const ein_kernels *ein_cpu_kernels(const ein_cpu *cpu);
EIN_API ein_executor ein_cpu_executor(ein_cpu *cpu);

// What a pool and its kernels have done since they were made.
typedef struct ein_cpu_counts {
  int64_t jobs;           // times that threads were given work and waited for: barriers
  int64_t parts;          // of them
  int64_t moved;          // parts that another thread ran than the one they belong to
  int64_t wakes;          // threads that slept and were woken
  int64_t packed;         // bytes that products wrote into packed blocks
} ein_cpu_counts;

// From any thread, at any time. The second one: of the first pool that a ctx has; 0: it has none.
EIN_API void ein_cpu_counts_get(const ein_cpu *cpu, ein_cpu_counts *counts);
EIN_API int ein_cpu_counts_of(const ein_ctx *ctx, ein_cpu_counts *counts);

// Facts for people, one a line: instruction set, caches, threads, rates by table. Returns the
// length of the whole text without its NUL, as snprintf does.
EIN_API size_t ein_cpu_info(const ein_cpu *cpu, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_CPU_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_CPU_IMPLEMENTATION_DONE)
#define EINSUM_CPU_IMPLEMENTATION_DONE
