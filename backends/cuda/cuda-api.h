#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_CUDA_H
#define EINSUM_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>cuda-api  public types and functions
// A provider of kernels for one NVIDIA GPU, and its memory.
// ================================================================================================

typedef struct ein_cuda ein_cuda;

#define EIN_CUDA_SPACE 1  // ein_ztensor.space of views of the device's memory

// Where compiled kernels outlive an ein_cuda, by names of letters, digits, '.', '_' and '-'. Who
// saves need not keep; what is loaded and not what was saved, or of another source, is compiled
// again. Called from one thread at a time.
typedef struct ein_cuda_shelf {
  // Copies at most room bytes to `to`, *bytes: how many there are. 0: nothing has that name.
  int (*load_fn)(void *user, const char *name, void *to, size_t room, size_t *bytes);
  void (*save_fn)(void *user, const char *name, const void *from, size_t bytes);
  void *user;
} ein_cuda_shelf;

// Of a library NULL means its usual names, in the order of dlopen's search. With EINSUM_CUDA_LINK
// the names are not looked at.
typedef struct ein_cuda_desc {
  int device;             // its number; default 0
  int only;               // 1: says of all it can do that it takes no time, and so does it; 2: and
                          //   what it cannot do is EIN_ERR_UNSUPPORTED when it is planned
  int tf32;               // 1: products of f32 may round their operands to TF32 (11 bits); default
                          //   0: IEEE arithmetic
  void *stream;           // a CUstream of the device's primary context in which all work is put;
                          //   default: one of its own
  const char *driver;     // the driver, libcuda.so.1
  const char *nvrtc;      // libnvrtc.so.13, .12, ..
  const char *cublas;     // libcublas.so.13, .12, ..; where there is none, generated kernels run
  const ein_cuda_shelf *shelf;  // default: none; copied
  int around;             // 1: device is a process's number among those of the machine; devices are
                          //   dealt to these in turn
  int devices;            // so many at most, from `device` on, in turn run what the places of a
                          //   fabric do; default 1. Calls for no place are the first one's
  const char *cublaslt;   // default: cublas, if that is given, else libcublasLt.so.13, .12, ..
} ein_cuda_desc;

// desc and allocator may be NULL. Succeeds where there is no library and no device: then
// ein_cuda_ready is 0 and ein_cuda_info says why. *cuda is NULL on failure: EIN_ERR_ARGUMENT,
// EIN_ERR_NO_MEMORY.
EIN_API ein_status ein_cuda_create(const ein_cuda_desc *desc, const ein_allocator *allocator,
                                   ein_cuda **cuda);
EIN_API void ein_cuda_destroy(ein_cuda *cuda);  // NULL is a no-op; waits for what is queued
EIN_API int ein_cuda_ready(const ein_cuda *cuda);  // 1: there is a device
// Adds the provider behind those in desc->use. EIN_ERR_UNSUPPORTED without a device,
// EIN_ERR_TOO_LARGE without room there. It must outlive every ctx and plan that uses it, which
// several threads may do at a time.
EIN_API ein_status ein_cuda_use(ein_cuda *cuda, ein_ctx_desc *desc);
EIN_API const ein_kernels *ein_cuda_kernels(const ein_cuda *cuda);

// Memory of the device, of bytes, and copies of it, for those who do not call CUDA themselves; data
// of views with space EIN_CUDA_SPACE. ein_cuda_read returns when it is there; the other two may
// still be under way, in the order of calls. EIN_ERR_UNSUPPORTED: there is no device.
EIN_API ein_status ein_cuda_alloc(ein_cuda *cuda, size_t bytes, void **at);
EIN_API void ein_cuda_free(ein_cuda *cuda, void *at);
EIN_API ein_status ein_cuda_write(ein_cuda *cuda, void *at, const void *from, size_t bytes);
EIN_API ein_status ein_cuda_read(ein_cuda *cuda, const void *at, void *to, size_t bytes);

// Facts for people, one a line: the device, versions of the libraries, or why there is none; the
// last error, if there was one, with what the compiler said. Returns the length of the whole text
// without its NUL, as snprintf does.
EIN_API size_t ein_cuda_info(const ein_cuda *cuda, char *buf, size_t size);

typedef struct ein_cuda_counts {
  int64_t launches, gemms;         // kernels that were started, and calls of cuBLAS
  int64_t compiled, loaded;        // by NVRTC, and from the shelf
  int64_t to_device, from_device;  // bytes from and to the host,
  int64_t peer;                    //   and from one device to another
  double seconds;                  // of kernels and products, by the device's events
} ein_cuda_counts;
EIN_API ein_cuda_counts ein_cuda_counts_get(const ein_cuda *cuda);  // since ein_cuda_create

// The source of generated kernel i = 0, 1, .., in the order in which planning met their forms, as
// long as cuda lives; NULL past the last. For compilers, tests and people.
EIN_API const char *ein_cuda_source(const ein_cuda *cuda, int i);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_CUDA_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_CUDA_IMPLEMENTATION_DONE)
#define EINSUM_CUDA_IMPLEMENTATION_DONE
