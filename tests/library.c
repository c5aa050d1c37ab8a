// The library as objects that programs of one build share, see "shared objects" in the Makefile:
//   LIBRARY_CPU, LIBRARY_BLAS, LIBRARY_CUDA   backends/einsum_cpu.h, .. einsum_openblas.h, ..
//   neither                     einsum.h and backends/einsum_dist.h
#define EINSUM_IMPLEMENTATION
#if defined(LIBRARY_CPU) || defined(LIBRARY_BLAS) || defined(LIBRARY_CUDA)
// Of the core a backend takes private functions along; public ones are those of the other object.
#define EIN_API extern __inline __attribute__((gnu_inline))
#include "../einsum.h"
#undef EIN_API
#define EIN_API extern
#ifdef LIBRARY_CPU
#include "../backends/einsum_cpu.h"
#elif defined(LIBRARY_CUDA)
#include "../backends/einsum_cuda.h"
#else
#include "../backends/einsum_openblas.h"
#endif
#else
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#endif
