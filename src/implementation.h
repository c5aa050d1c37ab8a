#endif  // EINSUM_CORE_ONLY

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_H

// ================================================================================================
// >>implementation  everything below is compiled once
// Takes the declarations above; gives their definitions.
// ================================================================================================
#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE)
#define EINSUM_IMPLEMENTATION_DONE

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>  // snprintf into buffers of our own; nothing is ever printed
#include <string.h>

#ifndef EINSUM_MALLOC
#include <stdlib.h>
#define EINSUM_MALLOC(size) malloc(size)
#define EINSUM_FREE(ptr) free(ptr)
#endif

#ifndef EINSUM_ASSERT
#define EINSUM_ASSERT(cond) ((void)0)
#endif

#if defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER)
#define EINI_RESTRICT __restrict
#else
#define EINI_RESTRICT
#endif

#if defined(__GNUC__) || defined(__clang__)
#define EINI_UNUSED __attribute__((unused))
#define EINI_ALWAYS static inline __attribute__((always_inline))
#ifdef __OPTIMIZE__
#define EINI_INLINE EINI_ALWAYS
#else  // else all that a body is copied into would be compiled as it stands, for minutes
#define EINI_INLINE static inline
#endif
#define EINI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define EINI_CTZ(x) __builtin_ctzll(x)
#define EINI_AHEAD(p) __builtin_prefetch((const void *)(p), 0, 0)
#else  // __GNUC__, __clang__
#define EINI_UNUSED
#define EINI_ALWAYS static inline
#define EINI_INLINE static inline
#define EINI_PRINTF(f, a)
#define EINI_CTZ(x) eini_ctz(x)
#define EINI_AHEAD(p) ((void)(p))
#endif
