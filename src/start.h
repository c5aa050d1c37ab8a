#endif  // EINSUM_CORE_ONLY
#endif  // EINSUM_IMPLEMENTATION

// ================================================================================================
// >>start  contexts, and the backends that macros bring in
// Takes what was brought in and a description; gives a ctx that uses it.
// ================================================================================================

#ifdef EINSUM_CPU
#include "backends/einsum_cpu.h"
#define EINI_START_CPU {eini_cpu_start, eini_cpu_end}
#else
#define EINI_START_CPU {NULL, NULL}
#endif
#ifdef EINSUM_OPENBLAS
#include "backends/einsum_openblas.h"
#define EINI_START_OPENBLAS {eini_blas_start, eini_blas_end}
#else
#define EINI_START_OPENBLAS {NULL, NULL}
#endif
#ifdef EINSUM_CUDA
#include "backends/einsum_cuda.h"
#define EINI_START_CUDA {eini_cuda_start, eini_cuda_end}
#else
#define EINI_START_CUDA {NULL, NULL}
#endif
#ifdef EINSUM_DIST
#include "backends/einsum_dist.h"
#endif
#ifdef EINSUM_MPI
#include "backends/einsum_mpi.h"
#endif

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_START_DONE)
#define EINSUM_START_DONE

// start: makes the backend and puts it into the description; *own is then to be ended.
typedef struct eini_backend {
  ein_status (*start)(const ein_allocator *al, ein_ctx_desc *desc, void **own);
  void (*end)(void *own);
} eini_backend;

static const eini_backend eini_backends[EINI_BACKENDS] = {EINI_START_CPU, EINI_START_OPENBLAS,
                                                            EINI_START_CUDA};

static void eini_backends_end(void *const *own) {
  for (int i = EINI_BACKENDS - 1; i >= 0; i--)
    if (own[i] != NULL) eini_backends[i].end(own[i]);
}

// A backend that this machine cannot run is left out.
static ein_status eini_backends_start(const ein_allocator *al, ein_ctx_desc *desc, void **own) {
  for (int i = 0; i < EINI_BACKENDS; i++) {
    if (eini_backends[i].start == NULL) continue;
    ein_status st = eini_backends[i].start(al, desc, &own[i]);
    if (st != EIN_OK && st != EIN_ERR_UNSUPPORTED) return st;
  }
  return EIN_OK;
}

EIN_API ein_status ein_ctx_create(const ein_ctx_desc *desc, ein_ctx **out) {
  void *own[EINI_BACKENDS] = {NULL, NULL, NULL};
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  memset(&d, 0, sizeof d);
  if (desc != NULL) d = *desc;
  if ((d.allocator.alloc_fn == NULL) != (d.allocator.free_fn == NULL)) return EIN_ERR_ARGUMENT;
  int bare = d.bare || d.nuse > 0 || d.nkernels > 0 || d.executor.parallel_for != NULL;
  ein_status st = bare ? EIN_OK : eini_backends_start(&d.allocator, &d, own);
  if (st == EIN_OK) st = eini_ctx_new(&d, &ctx);
  int plans = d.cache_plans == 0 ? 64 : d.cache_plans;
  if (st == EIN_OK && plans > 0) st = eini_cache_create(ctx, plans);
  if (st == EIN_OK) st = eini_store_machine(ctx, d.machine);
  if (st == EIN_OK && d.store != NULL) st = ein_ctx_store(ctx, d.store, d.store_bytes);
  if (st != EIN_OK) {
    if (ctx != NULL) eini_store_free(ctx->store);
    eini_ctx_free(ctx);
    eini_backends_end(own);
    return st;
  }
  memcpy(ctx->backend, own, sizeof own);
  *out = ctx;
  return EIN_OK;
}

EIN_API void ein_ctx_destroy(ein_ctx *ctx) {
  void *own[EINI_BACKENDS];
  if (ctx == NULL) return;
  memcpy(own, ctx->backend, sizeof own);
  eini_cache_destroy(ctx);
  eini_store_free(ctx->store);
  eini_ctx_free(ctx);
  eini_backends_end(own);
}

#endif  // EINSUM_IMPLEMENTATION
