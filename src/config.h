#ifndef EINSUM_H
#define EINSUM_H

// ================================================================================================
// >>config  compile-time switches
// Takes macros the user may define before including; gives EIN_API and version numbers.
// ================================================================================================
//   EINSUM_IMPLEMENTATION   define in exactly one source file (or in every one with EINSUM_STATIC)
//   EINSUM_STATIC           every function is static: private to the file that includes it
//   EINSUM_MALLOC(size) and EINSUM_FREE(ptr)   default allocator; define both or none
//   EINSUM_ASSERT(cond)     checks of internal invariants; default: nothing
//   EINSUM_CPU, EINSUM_OPENBLAS, EINSUM_CUDA, EINSUM_DIST, EINSUM_MPI   bring in that backend, from
//                           backends/ beside this file; a ctx uses it by default
//   EINSUM_CORE_ONLY        leaves out programs, gradients and places
//   EIN_API                 what stands before every public function, e.g. a visibility; the same
//                           wherever the header is included. Default: extern, or static

#include <stddef.h>
#include <stdint.h>

#define EINSUM_VERSION_MAJOR 0
#define EINSUM_VERSION_MINOR 1
#define EINSUM_VERSION_PATCH 0
#define EINSUM_VERSION "0.1.0"

#if defined(EIN_API)
#elif defined(EINSUM_STATIC) && defined(__GNUC__)
#define EIN_API __attribute__((unused)) static
#elif defined(EINSUM_STATIC)
#define EIN_API static
#else
#define EIN_API extern
#endif

#if (defined(EINSUM_DIST) || defined(EINSUM_MPI)) && defined(EINSUM_CORE_ONLY)
#error "einsum.h: EINSUM_DIST and EINSUM_MPI need what EINSUM_CORE_ONLY leaves out"
#endif

#if defined(EINSUM_MALLOC) != defined(EINSUM_FREE)
#error "einsum.h: define both EINSUM_MALLOC and EINSUM_FREE, or none"
#endif

#ifdef __cplusplus
extern "C" {
#endif
