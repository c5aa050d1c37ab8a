// einsum_cuda.h - v0.1.0 - kernels for einsum.h on NVIDIA GPUs - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cuda/: edit those.
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_cuda.h"
//
// Link with -ldl -lm. Then let a ctx use it:
//
//     ein_cuda *cuda;
//     ein_ctx_desc desc;
//     memset(&desc, 0, sizeof desc);         // and what else you set
//     if (ein_cuda_create(NULL, NULL, &cuda) == EIN_OK) ein_cuda_use(cuda, &desc);
//     ein_ctx_create(&desc, &ctx);           // or without, where there is no device
//     ..
//     ein_ctx_destroy(ctx);                  // and every plan
//     ein_cuda_destroy(cuda);                // last
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT IT GIVES, LIBRARIES, KERNELS, MEMORY, DEVICES, THREADS, WHAT IT
// DOES NOT DO
//
//                 >>cuda-api >>cuda-driver >>cuda-nest >>cuda-helpers >>cuda-text >>cuda-values
//                 >>cuda-maps >>cuda-tiles >>cuda-kernels >>cuda-memory >>cuda-peers >>cuda-gemm
//                 >>cuda-lt >>cuda-ways >>cuda-groups >>cuda-opens >>cuda-pieces >>cuda-along
//                 >>cuda-measure >>cuda-public
//
// WHAT IT GIVES
//
// A provider of kernels for GPUs: contractions, element-wise statements, folds and copies, of
// all dtypes, with strides of any sign, index values, params and stores of several operands. A plan
// takes it where it predicts fewer seconds, copies between host and device counted;
// ein_plan_explain shows what was predicted and chosen. ein_cuda_desc.only makes it say that all it
// can do takes no time, so that it does it, and with 2 an error of what it cannot do. What it
// declines others do: functions and monoids of
// the caller, complex sin, cos, tan, tanh, pow, expm1, log1p and rsqrt, folds of nothing, more than
// 16 loops or 24 operands, and everything in deterministic mode. Results are those of the portable
// kernels up to the order of rounding, and the last bits of functions like exp, which are CUDA's.
//
// The kernels have run on the CPU under a stub of CUDA, against the library's oracle, and compile
// with NVRTC 13 for sm_75, sm_80, sm_90 and sm_100. They have not run on a GPU yet, so nothing here
// is measured; bench/gpu.sh is what measures it.
//
//
// LIBRARIES
//
// By default ein_cuda_create opens the driver (libcuda.so.1), NVRTC, cuBLAS and cuBLASLt with
// dlopen, and this header declares what it uses: it compiles without CUDA's headers and links with
// -ldl alone, so that one program runs with and without a GPU. EINSUM_CUDA_LINK, defined before the
// include, takes CUDA's headers (their folder with -isystem) and links -lcublasLt -lcublas -lnvrtc
// -lcuda. CUDA 11.2 or later is needed; without cuBLAS generated kernels do all. On Windows nothing
// is found without EINSUM_CUDA_LINK. Where there is no library or no device, ein_cuda_create
// succeeds, ein_cuda_info says why, and EINSUM_CUDA leaves the provider out.
//
//
// KERNELS
//
// gemm        cuBLAS, strided batched, in IEEE arithmetic (no TF32): sums of products of two
//             operands as they are stored whose fused indices are rows and columns of matrices
//             with one dense side, once scaled at most, with one index or none as the batch
// grouped     the same where one step does not reach all of the batch, of up to 4096: real ones in
//             one call where cuBLAS has it (12.4), a call each otherwise
// lt          cuBLASLt: such products of f64, f32, f16 or bf16 (sums in f32), and relu(alpha*sum +
//             beta*C + bias) or less of it: a bias along the output's dense index, C as the output
//             lies. The library is asked whether it has that. Its GELU is not said to be gelu's and
//             so not used; what its ReLU makes of NaN is its own
// tiles       contractions of any pair and functional operands, 16 x 16 threads with up to 4 x 4
//             sums each, two tiles in shared memory in turn, by cp.async from sm_80
//             on what is read as it is stored; stores of any expression
// cores       the same on tensor cores: f64, f16 and bf16 with sums in f32, and, where
//             ein_cuda_desc.tf32 asks for it, f32 with operands rounded to TF32
// parts, cores parts   these, k cut where there are few tiles; a second kernel folds the parts
// down        a fold a thread, neighbours along the output
// across      a fold a block of threads, neighbours along the fold
// elements    an element a thread
// group       statements of a group one after another in each block of their common loops, in one
//             kernel, what is between them in shared memory: attention, softmax, norms, stencils
// along       a group whose blocks go along an index piece by piece, see below: attention
// turn        copies and element-wise statements that are dense along different indices in the
//             output and in one or two operands: tiles of 32 x 32 through shared memory
//
// All but gemm are written when a plan is made and compiled by NVRTC when they first run, which
// takes about a tenth of a second each. A source knows neither extents nor strides, but whether
// these are 0 or 1, nor params, so that statements of one form share a kernel; those of an
// ein_cuda stay as long as it does, and longer where ein_cuda_desc.shelf keeps what was compiled
// (einsum --kernel-cache DIR). ein_cuda_source shows them. Predictions come from ein_rates.away,
// which ein_calibrate measures on the device by its events (einsum calibrate --kernels cuda), else
// from what the driver says and constants in >>cuda-ways.
//
// An index along which a group makes tensors and which it folds later (keys of attention) need not
// be there whole: a block of rows goes along it. Of such tensors shared memory holds a piece; what
// products read from outside comes there once for a block and piece, and they have up to 64 results
// a thread in registers, on tensor cores as above. Where a value takes the result of a fold that is
// not at its end, there is a rule or no such group. exp of c * (T - M), c > 0, and M max or
// logsumexp of T, or of c * (M - T) with min: M so far is taken, and what was summed of such values
// is multiplied by exp of how far M has moved since. Factors and divisors that are folds or made of
// them (the sum of a softmax) multiply or divide sums at the end. Sums and differences of alike,
// casts, negation and known factors stay in form; only sums and means take what is not known yet.
// Rows whose M is infinite or NaN are NaN, as without: exp(M - M) is. Where an infinity in V meets
// a weight that underflows, the result may be the infinity and not NaN. A fold that others wait for
// must be a temporary. `--explain` says rows, pieces and bytes of shared memory of such a group.
//
//
// MEMORY
//
// Tensors of a plan stay on the device from statement to statement: an input is copied there once,
// before the first statement that runs there, temporaries are made there, and an output comes home
// once, after the last. A statement that another provider runs gets what it reads brought home, and
// the device gets its result when it reads it. Where statements run is chosen one after another, by
// what they take and what they have to copy. Device memory is allocated in the order of the stream,
// from the device's default pool, which keeps what it has. None is left taken when a plan has run.
//
// A budget (options.memory) counts it together with the host's: a program that is larger than the
// device runs there in slices, each of which is copied there and home. Where there is room for two
// slices, which planning looks for first, and no partial results are merged between them, one goes
// there and one comes home while a kernel runs: copies have a stream for each direction.
//
// Views of memory of the device (space EIN_CUDA_SPACE: from ein_cuda_alloc, or from cudaMalloc and
// its like, of the same device) are used as they are, with any strides, beside views of the host's,
// in ein_einsum, ein_plan_create and as layouts of ein_plan_graph. For a statement that the host
// runs they are copied. ein_plan_execute returns when all is done; ein_plan_enqueue, where all that
// a plan reads and writes is there, when it is in the stream. Two views there that overlap are
// EIN_ERR_OVERLAP, but in place.
//
// A stream of the caller's (ein_cuda_desc.stream) may be captured into a CUDA graph while
// ein_plan_enqueue is called for plans that read and write memory of the device alone, and that ran
// once before, so that their kernels are compiled; the ticket is 0, and the graph replays them.
// EIN_ERR_UNSUPPORTED: something would have to be copied from or to the host.
//
// Copies go through two pinned buffers of 4 MiB in turn, so that the host fills one while the other
// is copied. Views of the host's with gaps are copied for each statement that reads them, packed if
// that is less; an output with gaps always is, and what lies between its elements is not written.
//
//
// DEVICES
//
// ein_cuda_desc.devices: what place q of a fabric computes, by a decomposition or a schedule, runs
// on device q of so many, in turn, each with streams, memory and kernels of its own. Memory from
// ein_cuda_alloc is the first one's, and so is what is called for no place. A process of several on
// a machine takes a device by its number there (ein_cuda_desc.around), as ranks of MPI do; `einsum
// --fabric` does both.
//
// On a fabric whose places copy, a place keeps on its device what it has of the statements that run
// there (under a schedule, too), in memory that the plan keeps: blocks, operands, partial results
// and messages, which are packed there. What moves between two places goes from device to device by
// cuMemcpyPeerAsync where both can open each other's memory, which is asked once for each pair of
// them, else by pinned memory of the host; ein_cuda_counts.peer says how much. Kernels and copies
// between devices are ordered by their streams: the host waits for what goes by it, and at the end
// of a run.
//
//
// THREADS
//
// All calls take a lock; threads that run plans share one stream, in which what each asks for is in
// its order. The device's primary context is current during calls only. With ein_cuda_desc.stream
// all work goes into a stream of the caller's.
//
//
// WHAT IT DOES NOT DO
//
// What places of the fabrics serial and threads exchange is views of the host's memory. The host
// computes deterministic graphs. Groups that hold whole rows do sums of products as any other fold,
// without tiles; of those that go along an index each block goes all the way, however few there
// are, and copies no piece while it computes one. A budget does not go with views of the device's
// memory. Parts with gaps of a slice's output are waited for.

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

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(EINSUM_CUDA_LINK)
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>
#elif !defined(_WIN32)
#include <dlfcn.h>
#endif

// ================================================================================================
// >>cuda-driver  the driver, NVRTC, cuBLAS and cuBLASLt
// Finds the functions that are used, by name; opens a device. CUDA's statuses become the library's.
// ================================================================================================

// X(library, field, symbol, arguments): of the driver, NVRTC, cuBLAS, cuBLASLt, newer cuBLAS.
// Handles are void *, device addresses and sizes have 64 bits, enumerations are ints: the ABI of
// CUDA 11.2 and later.
#define EINI_CUDA_LIST(X)                                                                         \
  X(0, init, cuInit, (unsigned))                                                                  \
  X(0, version, cuDriverGetVersion, (int *))                                                      \
  X(0, error_text, cuGetErrorString, (int, const char **))                                        \
  X(0, device_count, cuDeviceGetCount, (int *))                                                   \
  X(0, device_get, cuDeviceGet, (int *, int))                                                     \
  X(0, device_name, cuDeviceGetName, (char *, int, int))                                          \
  X(0, device_bytes, cuDeviceTotalMem_v2, (size_t *, int))                                        \
  X(0, device_attribute, cuDeviceGetAttribute, (int *, int, int))                                 \
  X(0, retain, cuDevicePrimaryCtxRetain, (void **, int))                                          \
  X(0, release, cuDevicePrimaryCtxRelease_v2, (int))                                              \
  X(0, push, cuCtxPushCurrent_v2, (void *))                                                       \
  X(0, pop, cuCtxPopCurrent_v2, (void **))                                                        \
  X(0, stream_create, cuStreamCreate, (void **, unsigned))                                        \
  X(0, stream_destroy, cuStreamDestroy_v2, (void *))                                              \
  X(0, stream_wait, cuStreamSynchronize, (void *))                                                \
  X(0, capturing, cuStreamIsCapturing, (void *, int *))                                           \
  X(0, event_create, cuEventCreate, (void **, unsigned))                                          \
  X(0, event_destroy, cuEventDestroy_v2, (void *))                                                \
  X(0, event_record, cuEventRecord, (void *, void *))                                             \
  X(0, stream_after, cuStreamWaitEvent, (void *, void *, unsigned))                               \
  X(0, event_wait, cuEventSynchronize, (void *))                                                  \
  X(0, event_time, cuEventElapsedTime, (float *, void *, void *))                                 \
  X(0, pool_get, cuDeviceGetDefaultMemPool, (void **, int))                                       \
  X(0, pool_set, cuMemPoolSetAttribute, (void *, int, void *))                                    \
  X(0, alloc, cuMemAllocAsync, (uint64_t *, size_t, void *))                                      \
  X(0, free_fn, cuMemFreeAsync, (uint64_t, void *))                                               \
  X(0, hold, cuMemAlloc_v2, (uint64_t *, size_t))                                                 \
  X(0, release_held, cuMemFree_v2, (uint64_t))                                                    \
  X(0, pin, cuMemHostAlloc, (void **, size_t, unsigned))                                          \
  X(0, unpin, cuMemFreeHost, (void *))                                                            \
  X(0, to_device, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                 \
  X(0, from_device, cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                     \
  X(0, beside, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))                        \
  X(0, to_peer, cuMemcpyPeerAsync, (uint64_t, void *, uint64_t, void *, size_t, void *))          \
  X(0, peer_asked, cuDeviceCanAccessPeer, (int *, int, int))                                      \
  X(0, peer_open, cuCtxEnablePeerAccess, (void *, unsigned))                                      \
  X(0, module_load, cuModuleLoadData, (void **, const void *))                                    \
  X(0, module_unload, cuModuleUnload, (void *))                                                   \
  X(0, module_function, cuModuleGetFunction, (void **, void *, const char *))                     \
  X(0, function_set, cuFuncSetAttribute, (void *, int, int))                                      \
  X(0, launch, cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,         \
                                unsigned, unsigned, void *, void **, void **))                    \
  X(1, nvrtc_version, nvrtcVersion, (int *, int *))                                               \
  X(1, program_create, nvrtcCreateProgram, (void **, const char *, const char *, int,             \
                                            const char *const *, const char *const *))            \
  X(1, program_destroy, nvrtcDestroyProgram, (void **))                                           \
  X(1, program_compile, nvrtcCompileProgram, (void *, int, const char *const *))                  \
  X(1, log_size, nvrtcGetProgramLogSize, (void *, size_t *))                                      \
  X(1, log_get, nvrtcGetProgramLog, (void *, char *))                                             \
  X(1, cubin_size, nvrtcGetCUBINSize, (void *, size_t *))                                         \
  X(1, cubin_get, nvrtcGetCUBIN, (void *, char *))                                                \
  X(2, blas_create, cublasCreate_v2, (void **))                                                   \
  X(2, blas_destroy, cublasDestroy_v2, (void *))                                                  \
  X(2, blas_stream, cublasSetStream_v2, (void *, void *))                                         \
  X(2, blas_math, cublasSetMathMode, (void *, int))                                               \
  X(2, blas_version, cublasGetVersion_v2, (void *, int *))                                        \
  X(2, gemm_s, cublasSgemmStridedBatched, EINI_CUDA_GEMM)                                         \
  X(2, gemm_d, cublasDgemmStridedBatched, EINI_CUDA_GEMM)                                         \
  X(2, gemm_c, cublasCgemmStridedBatched, EINI_CUDA_GEMM)                                         \
  X(2, gemm_z, cublasZgemmStridedBatched, EINI_CUDA_GEMM)                                         \
  X(4, grouped_s, cublasSgemmGroupedBatched, EINI_CUDA_GROUPED(float))                            \
  X(4, grouped_d, cublasDgemmGroupedBatched, EINI_CUDA_GROUPED(double))                           \
  X(3, lt_create, cublasLtCreate, (void **))                                                      \
  X(3, lt_destroy, cublasLtDestroy, (void *))                                                     \
  X(3, lt_begin, cublasLtMatmulDescCreate, (void **, int, int))                                   \
  X(3, lt_end, cublasLtMatmulDescDestroy, (void *))                                               \
  X(3, lt_set, cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))               \
  X(3, lt_matrix, cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))        \
  X(3, lt_matrix_end, cublasLtMatrixLayoutDestroy, (void *))                                      \
  X(3, lt_matrix_set, cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t))      \
  X(3, lt_wish, cublasLtMatmulPreferenceCreate, (void **))                                        \
  X(3, lt_wish_end, cublasLtMatmulPreferenceDestroy, (void *))                                    \
  X(3, lt_wish_set, cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))    \
  X(3, lt_find, cublasLtMatmulAlgoGetHeuristic, (void *, void *, void *, void *, void *, void *,  \
                                                 void *, int, void *, int *))                     \
  X(3, lt_run, cublasLtMatmul, (void *, void *, const void *, const void *, void *, const void *, \
                                void *, const void *, const void *, void *, void *, void *,       \
                                const void *, void *, size_t, void *))
#define EINI_CUDA_GROUPED(T)                                                                      \
  (void *, const int *, const int *, const int *, const int *, const int *, const T *,            \
   const T *const *, const int *, const T *const *, const int *, const T *, T *const *,           \
   const int *, int, const int *)
#define EINI_CUDA_GEMM                                                                            \
  (void *, int, int, int, int, int, const void *, const void *, int, long long, const void *,     \
   int, long long, const void *, void *, int, long long, int)

// The numbers of CUDA that are used.
enum {
  EINI_CUDA_OK = 0, EINI_CUDA_NO_MEMORY = 2, EINI_CUDA_REFUSED = 6,  // by the compiler
  EINI_CUDA_CLOCK = 13, EINI_CUDA_PROCESSORS = 16, EINI_CUDA_MEMORY_CLOCK = 36,  // attributes
  EINI_CUDA_BUS = 37, EINI_CUDA_MAJOR = 75, EINI_CUDA_MINOR = 76,
  EINI_CUDA_SHARED = 97,        // bytes that a block may ask for
  EINI_CUDA_ROOM = 8,           // attribute of a kernel: shared memory it may be given
  EINI_CUDA_KEEP = 4,           // attribute of a pool: bytes it does not give back
  EINI_CUDA_APART = 1,          // a stream that waits for no other; an event without times: 2
  EINI_CUDA_UNTIMED = 2,
  EINI_CUDA_TF32 = 3,           // how cuBLAS multiplies f32
  EINI_CUDA_OPENED = 704        // the peer's memory is open already
};

typedef void (*eini_cuda_any)(void);

typedef struct eini_cuda_api {
#define EINI_CUDA_FIELD(library, field, symbol, arguments) int (*field) arguments;
  EINI_CUDA_LIST(EINI_CUDA_FIELD)
#undef EINI_CUDA_FIELD
} eini_cuda_api;

typedef struct eini_cuda_device {
  char name[96];
  int major, minor, processors;
  double bytes;                 // of memory
  size_t shared;                // of a block
  double flops_f64, flops_f32, bandwidth;  // per second, from what the driver says
  double flops_cores[6];        // of tensor cores, by eini_cuda_cores
} eini_cuda_device;

#define EINI_CUDA_SHARED_LEAST ((size_t)48 << 10)  // all devices have it
#define EINI_CUDA_PINNED ((size_t)1 << 22)  // bytes of each pinned buffer

enum { EINI_CUDA_TIMED = 32, EINI_CUDA_MARKS = 16 };

typedef struct eini_cuda_lane {  // of copies in one direction, beside the kernels
  void *stream, *event[2];      // events of the pinned buffers
  char *pinned[2];
} eini_cuda_lane;

// A copy home that may come later, from memory that is freed then.
typedef struct eini_cuda_later {
  uint64_t from;
  char *to;
  size_t bytes;
  int64_t started;              // kernels that were started before
  void *event;                  // when it may be read
} eini_cuda_later;

enum { EINI_CUDA_LATERS = 8, EINI_CUDA_FRESH = 32 };

typedef struct eini_cuda_kernel {  // generated source and, once it has run, what it became
  struct eini_cuda_kernel *next;
  ein_cuda *owner;              // on whose device it is
  uint64_t hash;
  size_t bytes;
  char *source;
  void *module, *function;
  size_t room;                  // shared memory that it may be given
  int bad;                      // it did not compile: never again
} eini_cuda_kernel;

enum { EINI_CUDA_DEVICES = 16 };

struct ein_cuda {
  ein_allocator al;
  int npeer;                    // devices of places beside this one, which place q of n + 1 has in
  ein_cuda *peer[EINI_CUDA_DEVICES];  // turn: 0 this, then these
  // Of devices a < b, by their numbers among these: do they copy to each other? 0: not asked yet;
  // 1: yes; 2: no.
  unsigned char direct[EINI_CUDA_DEVICES + 1][EINI_CUDA_DEVICES + 1];
  eini_cuda_api api;
  void *library[4];             // driver, NVRTC, cuBLAS, cuBLASLt
  int ready, number;            // of the device
  void *primary, *stream, *blas, *lt;
  eini_cuda_lane up, home;      // copies to the device, and from it
  void *order, *met;            // events between streams, and between devices
  int ahead;                    // the lane up has what the next kernel waits for
  uint64_t fresh[EINI_CUDA_FRESH];  // addresses that no kernel knows yet; 0: none
  int nfresh, nlater;
  eini_cuda_later later[EINI_CUDA_LATERS];
  void *timed[2 * EINI_CUDA_TIMED];  // around the kernels of statements, in pairs,
  int ntimed;                   //   of which so many are not counted yet
  void *mark[EINI_CUDA_MARKS];  // events of the last tickets; how many there were, and which one
  ein_ticket marks, waited;     //   is known to be done
  ein_memory memory;
  int own_stream, only, tf32, nvrtc[2], driver;
  eini_cuda_device device;
  ein_kernels kernels;
  eini_cuda_kernel *first, **last;
  ein_cuda_counts counts;
  ein_cuda_shelf shelf;
  ein_cuda *chief;              // whose shelf that is, too: itself, or the first device of places
  char machine[96];             // that rates and what was tuned are of
  char why[512];                // there is no device, or the last error
#if !defined(_WIN32)            // else the pool of einsum_cpu.h has no threads, either
  pthread_mutex_t lock;         // over all that runs, and the list of kernels
  pthread_mutex_t shelves;      // of the first device of places: one of them calls the shelf
  pthread_key_t place;          // of the thread, plus 1; with peers
#endif
};

#if defined(_WIN32)
static int eini_cuda_lock_new(ein_cuda *c) { return c != NULL; }
static void eini_cuda_lock_end(ein_cuda *c) { (void)c; }
static void eini_cuda_shelf_lock(ein_cuda *c, int mine) { (void)c, (void)mine; }
static void eini_cuda_lock(ein_cuda *c) { (void)c; }
static void eini_cuda_unlock(ein_cuda *c) { (void)c; }
static int eini_cuda_place_new(ein_cuda *c) { return c == NULL; }
static void eini_cuda_place_end(ein_cuda *c) { (void)c; }
static void eini_cuda_place_set(ein_cuda *c, int place) { (void)c, (void)place; }
static int eini_cuda_place_get(ein_cuda *c) { return (void)c, -1; }
#else  // not _WIN32
static int eini_cuda_lock_new(ein_cuda *c) {
  if (pthread_mutex_init(&c->lock, NULL) != 0) return 0;
  if (pthread_mutex_init(&c->shelves, NULL) == 0) return 1;
  (void)pthread_mutex_destroy(&c->lock);
  return 0;
}
static void eini_cuda_lock_end(ein_cuda *c) {
  (void)pthread_mutex_destroy(&c->shelves);
  (void)pthread_mutex_destroy(&c->lock);
}
static void eini_cuda_shelf_lock(ein_cuda *c, int mine) {
  if (mine) (void)pthread_mutex_lock(&c->chief->shelves);
  else (void)pthread_mutex_unlock(&c->chief->shelves);
}
static void eini_cuda_lock(ein_cuda *c) { (void)pthread_mutex_lock(&c->lock); }
static void eini_cuda_unlock(ein_cuda *c) { (void)pthread_mutex_unlock(&c->lock); }
static int eini_cuda_place_new(ein_cuda *c) { return pthread_key_create(&c->place, NULL) == 0; }
static void eini_cuda_place_end(ein_cuda *c) { (void)pthread_key_delete(c->place); }
static void eini_cuda_place_set(ein_cuda *c, int place) {
  (void)pthread_setspecific(c->place, (void *)(uintptr_t)(place + 1));
}
static int eini_cuda_place_get(ein_cuda *c) {
  return (int)(uintptr_t)pthread_getspecific(c->place) - 1;
}
#endif  // not _WIN32

static void eini_slot_cuda_place(void *user, int place) {
  if (((ein_cuda *)user)->npeer > 0) eini_cuda_place_set((ein_cuda *)user, place);
}
// The number of a place's device among those of places; -1: of no place.
static int eini_cuda_of_place(const ein_cuda *c, int place) {
  return place < 0 ? 0 : place % (c->npeer + 1);
}
static ein_cuda *eini_cuda_at(ein_cuda *c, int number) {
  return number > 0 ? c->peer[number - 1] : c;
}
// The device of this thread's place.
static ein_cuda *eini_cuda_here(void *user) {
  ein_cuda *c = (ein_cuda *)user;
  return c->npeer == 0 ? c : eini_cuda_at(c, eini_cuda_of_place(c, eini_cuda_place_get(c)));
}

// A status of the driver. what: what was asked of it.
static ein_status eini_cuda_status(ein_cuda *c, int code, const char *what) {
  const char *text = NULL;
  if (code == EINI_CUDA_OK) return EIN_OK;
  if (c->api.error_text != NULL) (void)c->api.error_text(code, &text);
  snprintf(c->why, sizeof c->why, "%s: %s (%d)", what, text == NULL ? "error" : text, code);
  return code == EINI_CUDA_NO_MEMORY ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}

// Is the stream being captured into a graph? Then nothing is waited for and nothing timed.
static int eini_cuda_captured(const ein_cuda *c) {
  int capturing = 0;
  return c->api.capturing(c->stream, &capturing) == EINI_CUDA_OK && capturing == 1;
}

// ---- finding functions ----

// The function of a name in an open library, or NULL.
#if defined(EINSUM_CUDA_LINK)
#define EINI_CUDA_OPEN(name) ((name) != NULL ? (void *)(uintptr_t)1 : NULL)
#define EINI_CUDA_CLOSE(handle) (void)(handle)
static eini_cuda_any eini_cuda_find(void *library, const char *name) {
#define EINI_CUDA_KNOWN(library, field, symbol, arguments) {#symbol, (eini_cuda_any)symbol},
  static const struct { const char *name; eini_cuda_any fn; } known[] = {
      EINI_CUDA_LIST(EINI_CUDA_KNOWN)};
#undef EINI_CUDA_KNOWN
  (void)library;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].fn;
  return NULL;
}
#elif defined(_WIN32)  // not linked
#define EINI_CUDA_OPEN(name) ((void)(name), (void *)NULL)
#define EINI_CUDA_CLOSE(handle) (void)(handle)
static eini_cuda_any eini_cuda_find(void *library, const char *name) {
  (void)library, (void)name;
  return NULL;
}
#else  // not linked, not _WIN32
#define EINI_CUDA_OPEN(name) dlopen(name, RTLD_NOW | RTLD_LOCAL)
#define EINI_CUDA_CLOSE(handle) (void)dlclose(handle)
static eini_cuda_any eini_cuda_find(void *library, const char *name) {
  union { void *p; eini_cuda_any fn; } u;  // POSIX has them alike
  u.p = dlsym(library, name);
  return u.fn;
}
#endif

static void *eini_cuda_open(const char *given, int library) {
  static const char *const names[4][6] = {
      {"libcuda.so.1", "libcuda.so", NULL, NULL, NULL, NULL},
      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", NULL, NULL},
      {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", NULL, NULL},
      {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so", NULL,
       NULL}};
  void *handle = NULL;
  if (given != NULL) return EINI_CUDA_OPEN(given);
  for (int i = 0; handle == NULL && names[library][i] != NULL; i++)
    handle = EINI_CUDA_OPEN(names[library][i]);
  return handle;
}

// Fills the functions of a list from the library `from`; the first name that is missing, or NULL.
static const char *eini_cuda_fill(ein_cuda *c, int library, int from) {
  static const struct { int library; const char *name; size_t at; } list[] = {
#define EINI_CUDA_ENTRY(library, field, symbol, arguments) \
  {library, #symbol, offsetof(eini_cuda_api, field)},
      EINI_CUDA_LIST(EINI_CUDA_ENTRY)
#undef EINI_CUDA_ENTRY
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (list[i].library != library) continue;
    const eini_cuda_any fn = eini_cuda_find(c->library[from], list[i].name);
    if (fn == NULL) return list[i].name;
    memcpy((char *)&c->api + list[i].at, &fn, sizeof fn);
  }
  return NULL;
}

// Opens a library; 0: it is not there, or not whole, and why says so.
static int eini_cuda_load(ein_cuda *c, const char *given, int library) {
  static const char *const what[4] = {"the driver (libcuda.so.1)", "NVRTC (libnvrtc.so)",
                                      "cuBLAS (libcublas.so)",
                                      "cuBLASLt (libcublasLt.so)"};
  c->library[library] = eini_cuda_open(given, library);
  void *open = c->library[library];
  const char *missing = open == NULL ? NULL : eini_cuda_fill(c, library, library);
  if (c->library[library] == NULL)
    snprintf(c->why, sizeof c->why, "%s%s%.200s is not there", what[library],
             given == NULL ? "" : " at ", given == NULL ? "" : given);
  else if (missing != NULL)
    snprintf(c->why, sizeof c->why, "%s has no %s: it is too old", what[library], missing);
  return c->library[library] != NULL && missing == NULL;
}

// ---- the device ----

static int eini_cuda_number(const ein_cuda *c, int attribute) {
  int value = 0;
  return c->api.device_attribute(&value, attribute, c->number) == EINI_CUDA_OK ? value : 0;
}

// What a device does at best. Multiplications of each multiprocessor and cycle by architecture,
// from NVIDIA's programming guide and white papers: f32, f64, of tensor cores f64, TF32 and f16.
static void eini_cuda_rates(ein_cuda *c) {
  static const struct { int arch; double f32, f64, core[3]; } units[] = {
      {70, 64, 32, {0, 0, 0}}, {75, 64, 2, {0, 0, 512}}, {80, 64, 32, {64, 512, 1024}},
      {86, 128, 2, {2, 128, 256}}, {89, 128, 2, {2, 256, 512}}, {90, 128, 64, {128, 1024, 2048}},
      {100, 128, 64, {64, 2048, 4096}}, {120, 128, 2, {2, 256, 512}}};
  eini_cuda_device *d = &c->device;
  const int arch = 10 * d->major + d->minor;
  size_t best = 0;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (units[i].arch <= arch) best = i;
  const double hz = 1e3 * eini_cuda_number(c, EINI_CUDA_CLOCK);
  const double clock = 1e3 * eini_cuda_number(c, EINI_CUDA_MEMORY_CLOCK);
  d->processors = eini_cuda_number(c, EINI_CUDA_PROCESSORS);
  d->shared = (size_t)eini_cuda_number(c, EINI_CUDA_SHARED);
  if (d->shared < EINI_CUDA_SHARED_LEAST) d->shared = EINI_CUDA_SHARED_LEAST;
  if (d->processors < 1) d->processors = 1;
  d->flops_f32 = 2 * units[best].f32 * d->processors * (hz > 0 ? hz : 1e9);
  d->flops_f64 = 2 * units[best].f64 * d->processors * (hz > 0 ? hz : 1e9);
  for (int i = 0; i < 5; i++)  // f16 and bf16 alike
    d->flops_cores[1 + i] = 2 * units[best].core[i < 2 ? i : 2] * d->processors *
                            (hz > 0 ? hz : 1e9);
  d->bandwidth = clock > 0 ? 2 * clock * eini_cuda_number(c, EINI_CUDA_BUS) / 8 : 1e12;
}

static int eini_cuda_lane_begin(ein_cuda *c, eini_cuda_lane *l) {
  int code = c->api.stream_create(&l->stream, EINI_CUDA_APART);
  for (int i = 0; i < 2 && code == EINI_CUDA_OK; i++) {
    void *p = NULL;
    code = c->api.pin(&p, EINI_CUDA_PINNED, 0);
    l->pinned[i] = (char *)p;
    if (code == EINI_CUDA_OK) code = c->api.event_create(&l->event[i], EINI_CUDA_UNTIMED);
  }
  return code;
}

static void eini_cuda_lane_end(ein_cuda *c, eini_cuda_lane *l) {
  if (l->stream != NULL) (void)c->api.stream_wait(l->stream);
  for (int i = 0; i < 2; i++) {
    if (l->event[i] != NULL) (void)c->api.event_destroy(l->event[i]);
    if (l->pinned[i] != NULL) (void)c->api.unpin(l->pinned[i]);
  }
  if (l->stream != NULL) (void)c->api.stream_destroy(l->stream);
}

static ein_status eini_cuda_begin_device(ein_cuda *c) {
  uint64_t keep = UINT64_MAX;
  void *pool = NULL;
  size_t bytes = 0;
  EINI_TRY(eini_cuda_status(c, c->api.device_get(&c->number, c->number), "the device"));
  (void)c->api.device_name(c->device.name, (int)sizeof c->device.name, c->number);
  (void)c->api.device_bytes(&bytes, c->number);
  c->device.bytes = (double)bytes;
  c->device.major = eini_cuda_number(c, EINI_CUDA_MAJOR);
  c->device.minor = eini_cuda_number(c, EINI_CUDA_MINOR);
  eini_cuda_rates(c);
  EINI_TRY(eini_cuda_status(c, c->api.retain(&c->primary, c->number), "its primary context"));
  EINI_TRY(eini_cuda_status(c, c->api.push(c->primary), "its primary context"));
  int code = c->api.pool_get(&pool, c->number);
  if (code == EINI_CUDA_OK) code = c->api.pool_set(pool, EINI_CUDA_KEEP, &keep);
  if (code == EINI_CUDA_OK && c->own_stream)
    code = c->api.stream_create(&c->stream, EINI_CUDA_APART);
  if (code == EINI_CUDA_OK) code = eini_cuda_lane_begin(c, &c->up);
  if (code == EINI_CUDA_OK) code = eini_cuda_lane_begin(c, &c->home);
  if (code == EINI_CUDA_OK) code = c->api.event_create(&c->order, EINI_CUDA_UNTIMED);
  if (code == EINI_CUDA_OK) code = c->api.event_create(&c->met, EINI_CUDA_UNTIMED);
  for (int i = 0; i < EINI_CUDA_LATERS && code == EINI_CUDA_OK; i++)
    code = c->api.event_create(&c->later[i].event, EINI_CUDA_UNTIMED);
  for (int i = 0; i < 2 * EINI_CUDA_TIMED && code == EINI_CUDA_OK; i++)
    code = c->api.event_create(&c->timed[i], 0);
  for (int i = 0; i < EINI_CUDA_MARKS && code == EINI_CUDA_OK; i++)
    code = c->api.event_create(&c->mark[i], EINI_CUDA_UNTIMED);
  if (c->library[2] != NULL && code == EINI_CUDA_OK &&
      (c->api.blas_create(&c->blas) != 0 || c->api.blas_stream(c->blas, c->stream) != 0 ||
       (c->tf32 && c->api.blas_math(c->blas, EINI_CUDA_TF32) != 0)))
    c->blas = NULL;
  if (c->library[3] != NULL && code == EINI_CUDA_OK && c->api.lt_create(&c->lt) != 0) c->lt = NULL;
  void *popped;
  (void)c->api.pop(&popped);
  return eini_cuda_status(c, code, "a stream, memory");
}

// Looks for a device. Without one, why says what is missing.
static ein_status eini_cuda_look(ein_cuda *c, const ein_cuda_desc *d) {
  int n = 0;
  if (d->device < 0) return EIN_ERR_ARGUMENT;
  if (!eini_cuda_load(c, d->driver, 0) || !eini_cuda_load(c, d->nvrtc, 1)) return EIN_OK;
  if (eini_cuda_status(c, c->api.init(0), "the driver") != EIN_OK) return EIN_OK;
  (void)c->api.version(&c->driver);
  (void)c->api.nvrtc_version(&c->nvrtc[0], &c->nvrtc[1]);
  if (eini_cuda_status(c, c->api.device_count(&n), "the driver") != EIN_OK) return EIN_OK;
  c->number = d->around && n > 0 ? d->device % n : d->device;
  if (c->number >= n) {
    snprintf(c->why, sizeof c->why, "there is no device %d: there are %d", d->device, n);
    return EIN_OK;
  }
  for (int i = 2; i < 4; i++) {
    const char *given = i == 3 && d->cublaslt != NULL ? d->cublaslt : d->cublas;
    if (eini_cuda_load(c, given, i) || c->library[i] == NULL) continue;
    EINI_CUDA_CLOSE(c->library[i]);
    c->library[i] = NULL;
  }
  if (c->library[2] != NULL && eini_cuda_fill(c, 4, 2) != NULL) c->api.grouped_s = NULL;
  c->why[0] = 0;  // without cuBLAS generated kernels run
  c->only = d->only;
  c->tf32 = d->tf32;
  if (d->shelf != NULL) c->shelf = *d->shelf;
  c->stream = d->stream;
  c->own_stream = d->stream == NULL;
  c->ready = eini_cuda_begin_device(c) == EIN_OK;
  return EIN_OK;
}

static void eini_cuda_end_device(ein_cuda *c) {
  void *popped;
  if (c->primary != NULL && c->api.push(c->primary) == EINI_CUDA_OK) {
    if (c->stream != NULL || !c->own_stream) (void)c->api.stream_wait(c->stream);
    for (eini_cuda_kernel *k = c->first; k != NULL; k = k->next)
      if (k->module != NULL) (void)c->api.module_unload(k->module);
    if (c->blas != NULL) (void)c->api.blas_destroy(c->blas);
    if (c->lt != NULL) (void)c->api.lt_destroy(c->lt);
    eini_cuda_lane_end(c, &c->up);
    eini_cuda_lane_end(c, &c->home);
    if (c->order != NULL) (void)c->api.event_destroy(c->order);
    if (c->met != NULL) (void)c->api.event_destroy(c->met);
    for (int i = 0; i < EINI_CUDA_LATERS; i++)
      if (c->later[i].event != NULL) (void)c->api.event_destroy(c->later[i].event);
    for (int i = 0; i < 2 * EINI_CUDA_TIMED; i++)
      if (c->timed[i] != NULL) (void)c->api.event_destroy(c->timed[i]);
    for (int i = 0; i < EINI_CUDA_MARKS; i++)
      if (c->mark[i] != NULL) (void)c->api.event_destroy(c->mark[i]);
    if (c->own_stream && c->stream != NULL) (void)c->api.stream_destroy(c->stream);
    (void)c->api.pop(&popped);
  }
  if (c->primary != NULL) (void)c->api.release(c->number);
  for (int i = 3; i >= 0; i--)
    if (c->library[i] != NULL) EINI_CUDA_CLOSE(c->library[i]);
}

// ================================================================================================
// >>cuda-nest  what is to be computed, as loops over operands
// Takes a map, a copy or a contraction; gives loops, operands with strides, and in which order of
// memory host operands are staged. Nothing is generated, nothing is chosen.
// ================================================================================================

enum {
  EINI_CUDA_LOOPS = 16, EINI_CUDA_STREAMS = 24,  // of a nest at most; others run elsewhere
  EINI_CUDA_WORDS = 480                          // of 8 bytes, of the arguments of a kernel
};

// How a stride stands in the source: as nothing, as 1, or as an argument.
enum { EINI_CUDA_ZERO, EINI_CUDA_ONE, EINI_CUDA_ANY };

// EINI_CUDA_PARTS: operand 0 is what parts of a contraction left, one loop of which is folded.
typedef enum eini_cuda_kind {
  EINI_CUDA_MAP, EINI_CUDA_COPY, EINI_CUDA_CONTRACT, EINI_CUDA_PARTS
} eini_cuda_kind;

// Operands are streams 0 .. nop - 1 of the values, then those of the store, then the output; index
// values are streams between them, as in ein_map. Of a contraction P's come before Q's, and its
// loops are batch, m, n and k.
typedef struct eini_cuda_nest {
  eini_cuda_kind kind;
  int n, nfree, nstream, nop, out;  // nop: of the values
  int axes[4];                   // contract: first loops of batch, m, n and k
  int64_t extent[EINI_CUDA_LOOPS];
  unsigned char dtype[EINI_CUDA_STREAMS], size[EINI_CUDA_STREAMS];
  unsigned char value[EINI_CUDA_STREAMS];  // 1: of an index, 2: position
  unsigned char away[EINI_CUDA_STREAMS];   // lies on the device; others are staged
  unsigned char packed[EINI_CUDA_STREAMS]; // staged without gaps
  int64_t stride[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];  // as they lie at home
  int64_t used[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];    // as kernels see them
  unsigned char form[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];
  char *base[EINI_CUDA_STREAMS];
  int64_t at[EINI_CUDA_STREAMS];           // of values
  const ein_code *code[2];       // of the value; of a contraction P's and Q's
  const ein_code *store;         // or NULL
  int extra, extra_value;        // streams of the store's operand 1 and of its first index value
  int second;                    // stream of Q's first operand
  ein_dtype type, result;        // of values, and of what is stored or given to the store
  ein_fold fold;
  ein_pair pair;                 // contract
  double count;
  const ein_scalar *param;
  const ein_rates *rates;        // to predict from, or NULL
} eini_cuda_nest;

static const ein_dtype eini_cuda_opaque[17] = {  // by size, of what is only copied
    EIN_NONE, EIN_U8, EIN_I16, EIN_NONE, EIN_I32, EIN_NONE, EIN_NONE, EIN_NONE, EIN_I64,
    EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_C128};

// Elements from least to most address of a stream, at home or as kernels see it; the least one's
// offset in *low; 0: too many.
static int64_t eini_cuda_hull(const eini_cuda_nest *x, int used, int s, int64_t *low) {
  const int64_t *stride = used ? x->used[s] : x->stride[s];
  int64_t lo = 0, hi = 0, far;
  for (int i = 0; i < x->n; i++) {
    if (eini_mul_overflow(stride[i], x->extent[i] - 1, &far)) return 0;
    if (eini_add_overflow(far < 0 ? lo : hi, far, far < 0 ? &lo : &hi)) return 0;
  }
  *low = lo;
  return eini_add_overflow(hi, 1 - lo, &far) ? 0 : far;
}

// Elements of a stream, each once if no two loops move it alike.
static int64_t eini_cuda_points(const eini_cuda_nest *x, int s) {
  int64_t n = 1;
  for (int i = 0; i < x->n; i++)
    if (x->stride[s][i] != 0 && eini_mul_overflow(n, x->extent[i], &n)) return 0;
  return n;
}

static void eini_cuda_forms(eini_cuda_nest *x, int s) {
  int last = -1;
  for (int i = 0; i < x->n; i++)
    if (x->stride[s][i] != 0) last = i;
  for (int i = 0; i < x->n; i++) {
    const int64_t by = x->stride[s][i];
    x->form[s][i] = by == 0 ? EINI_CUDA_ZERO : EINI_CUDA_ANY;
    if (x->packed[s] ? i == last : by == 1) x->form[s][i] = EINI_CUDA_ONE;
  }
}

// The strides that kernels see, for the extents at hand.
static void eini_cuda_strides(eini_cuda_nest *x) {
  for (int s = 0; s < x->nstream; s++) {
    int64_t step = 1;
    for (int i = x->n - 1; i >= 0; i--) {
      x->used[s][i] = x->stride[s][i];
      if (!x->packed[s] || x->stride[s][i] == 0) continue;
      x->used[s][i] = step;
      step *= x->extent[i];
    }
    eini_cuda_forms(x, s);
  }
}

// How host operands are staged: as they lie with the gaps between them, or element by element where
// that is less. Outputs with gaps always are: what lies there is not theirs. 0: sizes do not fit.
static int eini_cuda_stage(eini_cuda_nest *x) {
  for (int s = 0; s < x->nstream; s++) {
    int64_t low, hull, points;
    if (x->value[s]) continue;
    if (x->away[s] && eini_cuda_hull(x, 0, s, &low) == 0) return 0;
    if (x->away[s]) continue;
    hull = eini_cuda_hull(x, 0, s, &low);
    points = eini_cuda_points(x, s);
    if (hull == 0 || points == 0 || points > INT64_MAX / 16 || hull > INT64_MAX / 16) return 0;
    x->packed[s] = points < hull;
  }
  return 1;
}

// Ends a nest: its streams are known.
static int eini_cuda_whole(eini_cuda_nest *x) {
  int64_t all = 1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] < 1 || eini_mul_overflow(all, x->extent[i], &all)) return 0;
  for (int s = 0; s < x->nstream; s++)
    x->size[s] = (unsigned char)ein_dtype_size((ein_dtype)x->dtype[s]);
  x->out = x->nstream - 1;
  eini_cuda_strides(x);
  return 1;
}

static int eini_cuda_of_map(const ein_map *m, eini_cuda_nest *x) {
  const int values = m->nop, position = m->nop + m->nvalue;
  memset(x, 0, sizeof *x);
  if (m->n > EINI_CUDA_LOOPS || m->nstream > EINI_CUDA_STREAMS) return 0;
  x->kind = EINI_CUDA_MAP;
  x->n = m->n;
  x->nfree = m->nfree;
  x->nstream = m->nstream;
  x->nop = m->nop;
  for (int i = 0; i < m->n; i++) x->extent[i] = m->extent[i];
  x->extra = position + m->nposition;
  x->extra_value = x->extra + m->nextra;
  if (m->nstream != x->extra_value + m->nextra_value + 1) return 0;  // states of a fold
  for (int s = 0; s < m->nstream; s++) {
    const int after = s >= x->extra_value && s < m->nstream - 1;
    x->dtype[s] = (unsigned char)m->dtype[s];
    x->value[s] = (unsigned char)(s >= position && s < x->extra ? 2
                                  : (s >= values && s < position) || after);
    x->away[s] = (unsigned char)(m->away != NULL && m->away[s]);
    if (m->base != NULL && !x->value[s]) x->base[s] = m->base[s];
    if (m->at != NULL && x->value[s]) x->at[s] = m->at[s];
    for (int i = 0; i < m->n; i++) x->stride[s][i] = m->stride[(int64_t)s * m->pitch + i];
  }
  x->code[0] = m->code;
  x->store = m->store;
  x->type = (ein_dtype)m->code->type;
  x->fold = m->fold;
  const int arg = m->fold == EIN_FOLD_ARGMAX || m->fold == EIN_FOLD_ARGMIN;
  x->result = arg ? EIN_I64 : x->type;
  x->count = m->count;
  x->param = m->param;
  x->rates = m->rates;
  return eini_cuda_whole(x);
}

static int eini_cuda_of_copy(const ein_copy *c, eini_cuda_nest *x) {
  union { const char *c; char *v; } src;  // it is only read
  memset(x, 0, sizeof *x);
  src.c = c->src;
  if (c->n > EINI_CUDA_LOOPS || c->size > 16 || eini_cuda_opaque[c->size] == EIN_NONE) return 0;
  x->kind = EINI_CUDA_COPY;
  x->n = x->nfree = c->n;
  x->nstream = 2;
  x->nop = 1;
  for (int i = 0; i < c->n; i++) {
    x->extent[i] = c->extent[i];
    x->stride[0][i] = c->src_stride[i];
    x->stride[1][i] = c->dst_stride[i];
  }
  x->dtype[0] = x->dtype[1] = (unsigned char)eini_cuda_opaque[c->size];
  for (int s = 0; s < 2 && c->away != NULL; s++) x->away[s] = c->away[s];
  x->base[0] = src.v;
  x->base[1] = c->dst;
  x->extra = x->extra_value = 1;
  x->count = 1;
  x->rates = c->rates;
  return eini_cuda_whole(x);
}

// A group of axes becomes the next loops.
static int eini_cuda_group(eini_cuda_nest *x, const ein_axes *a) {
  const int first = x->n;
  for (int i = 0; i < a->n; i++, x->n++)
    if (x->n < EINI_CUDA_LOOPS) x->extent[x->n] = a->extent[i];
  return first;
}

static void eini_cuda_axes(eini_cuda_nest *x, int s, const ein_axes *a, int first,
                           const int64_t *stride) {
  for (int i = 0; i < a->n; i++) x->stride[s][first + i] = stride[i];
}

static void eini_cuda_side(eini_cuda_nest *x, const ein_contract *c, const ein_side *side,
                           int first, int group, const ein_axes *rows) {
  for (int o = 0; o < side->nop; o++) {
    union { const char *c; char *v; } u;  // it is only read
    const int s = first + o;
    u.c = side->base == NULL ? NULL : side->base[o];
    x->base[s] = u.v;
    x->dtype[s] = (unsigned char)side->dtype[o];
    eini_cuda_axes(x, s, &c->batch, x->axes[0], side->batch[o]);
    eini_cuda_axes(x, s, rows, x->axes[group], side->row[o]);
    eini_cuda_axes(x, s, &c->k, x->axes[3], side->k[o]);
  }
}

static int eini_cuda_of_contract(const ein_contract *c, eini_cuda_nest *x) {
  static const ein_fold folds[] = {EIN_FOLD_SUM, EIN_FOLD_MIN, EIN_FOLD_MAX, EIN_FOLD_ANY,
                                   EIN_FOLD_SUM, EIN_FOLD_SUM, EIN_FOLD_MAX};
  memset(x, 0, sizeof *x);
  x->kind = EINI_CUDA_CONTRACT;
  x->axes[0] = eini_cuda_group(x, &c->batch);
  x->axes[1] = eini_cuda_group(x, &c->m);
  x->axes[2] = eini_cuda_group(x, &c->n);
  x->nfree = x->axes[3] = eini_cuda_group(x, &c->k);
  x->second = c->p.nop;
  x->nop = x->extra = x->extra_value = c->p.nop + c->q.nop;
  x->extra_value += c->nextra;
  x->nstream = x->extra_value + 1;
  if (x->n > EINI_CUDA_LOOPS || x->nstream > EINI_CUDA_STREAMS) return 0;
  eini_cuda_side(x, c, &c->p, 0, 1, &c->m);
  eini_cuda_side(x, c, &c->q, x->second, 2, &c->n);
  for (int e = 0; e <= c->nextra; e++) {
    union { const char *c; char *v; } u;  // extras are only read
    const int s = x->extra + e, last = e == c->nextra;
    u.c = last || c->extra_base == NULL ? NULL : c->extra_base[e];
    x->base[s] = last ? c->out : u.v;
    x->dtype[s] = (unsigned char)(last ? c->out_dtype : c->extra_dtype[e]);
    eini_cuda_axes(x, s, &c->batch, x->axes[0], last ? c->out_batch : c->extra_batch[e]);
    eini_cuda_axes(x, s, &c->m, x->axes[1], last ? c->out_m : c->extra_m[e]);
    eini_cuda_axes(x, s, &c->n, x->axes[2], last ? c->out_n : c->extra_n[e]);
  }
  for (int s = 0; s < x->nstream && c->away != NULL; s++) x->away[s] = c->away[s];
  x->code[0] = c->p.code;
  x->code[1] = c->q.code;
  x->store = c->store;
  x->type = x->result = c->type;
  x->pair = c->pair;
  x->fold = folds[c->pair];
  x->count = 1;
  x->param = c->param;
  x->rates = c->rates;
  return eini_cuda_whole(x);
}

// Loops [from, to) together.
static int64_t eini_cuda_extent(const eini_cuda_nest *x, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) n *= x->extent[i];
  return n;
}

// Do 32 bits hold every offset and every number of an element, and what loops add to it?
static int eini_cuda_narrow(const eini_cuda_nest *x) {
  const int64_t most = (int64_t)1 << 30;
  int64_t low;
  for (int s = 0; s < x->nstream; s++) {
    const int64_t hull = eini_cuda_hull(x, 1, s, &low);
    if (!x->value[s] && (hull == 0 || hull > most)) return 0;
  }
  return eini_cuda_extent(x, 0, x->nfree) <= most && eini_cuda_extent(x, x->nfree, x->n) <= most;
}

// ================================================================================================
// >>cuda-helpers  the text in front of every kernel
// C and CUDA at once: with EIN_HOST what runs blocks and threads is brought along, as the tests do.
// The functions are those of the portable kernels, with the same special values.
// ================================================================================================

static const char *const eini_cuda_helpers[] = {
    "#ifndef EIN_HOST\n"
    "#define EIN_KERNEL extern \"C\" __global__ void __launch_bounds__(256)\n"
    "#define EIN_DEVICE static __device__ __forceinline__\n"
    "#define EIN_SHARED __shared__\n"
    "#define EIN_SYNC __syncthreads()\n"
    "#define EIN_TID ((int)threadIdx.x)\n"
    "#define EIN_BID blockIdx.x\n"
    "#define EIN_BLOCKS gridDim.x\n"
    "#define EIN_ROOM extern __shared__ __align__(16) char ein_room[]\n"
    "#define EIN_ARGS(type) const type &\n"
    "#define EIN_READ(at) (at)\n#define EIN_WRITE(at) (at)\n"
    "#endif\n"
    "typedef unsigned char ein_bool;\n"
    "typedef struct { float re, im; } ein_c64;\n"
    "typedef struct { double re, im; } ein_c128;\n",
    "EIN_DEVICE float ein_f32(unsigned u) {\n"
    "  union { unsigned u; float f; } x; x.u = u; return x.f;\n}\n"
    "EIN_DEVICE unsigned ein_bits(float f) {\n"
    "  union { unsigned u; float f; } x; x.f = f; return x.u;\n}\n"
    "EIN_DEVICE double ein_f64(unsigned long long u) {\n"
    "  union { unsigned long long u; double f; } x; x.u = u; return x.f;\n}\n"
    "EIN_DEVICE ein_c128 ein_z(double re, double im) {\n"
    "  ein_c128 z; z.re = re; z.im = im; return z;\n}\n"
    "EIN_DEVICE ein_c64 ein_c(float re, float im) {\n"
    "  ein_c64 z; z.re = re; z.im = im; return z;\n}\n"
    "EIN_DEVICE ein_c128 ein_wide(ein_c64 x) { return ein_z(x.re, x.im); }\n"
    "EIN_DEVICE ein_c64 ein_less(ein_c128 x) { return ein_c((float)x.re, (float)x.im); }\n",
    "EIN_DEVICE float ein_f16_load(unsigned short h) {\n"
    "  unsigned sign = (unsigned)(h & 0x8000u) << 16, m = h & 0x7fffu;\n"
    "  float scaled = ein_f32(m << 13) * 5.192296858534828e33f;\n"
    "  return ein_f32((m >= 0x7c00u ? (m << 13) | 0x7f800000u : ein_bits(scaled)) | sign);\n}\n"
    "EIN_DEVICE unsigned short ein_f16_store(float f) {\n"
    "  unsigned u = ein_bits(f), sign = (u >> 16) & 0x8000u, r;\n"
    "  u &= 0x7fffffffu;\n"
    "  if (u > 0x7f800000u) r = 0x7e00u | ((u >> 13) & 0x3ffu);\n"
    "  else if (u >= 0x477ff000u) r = 0x7c00u;\n"
    "  else if (u < 0x38800000u) r = ein_bits(ein_f32(u) + 0.5f) - 0x3f000000u;\n"
    "  else r = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13;\n"
    "  return (unsigned short)(r | sign);\n}\n"
    "EIN_DEVICE float ein_bf16_load(unsigned short h) { return ein_f32((unsigned)h << 16); }\n"
    "EIN_DEVICE unsigned short ein_bf16_store(float f) {\n"
    "  unsigned u = ein_bits(f);\n"
    "  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((u >> 16) | 0x40u);\n"
    "  return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);\n}\n",
    "EIN_DEVICE float ein_odd(double d) {\n"
    "  float f = (float)d;\n"
    "  unsigned inexact = (unsigned)((double)f != d) & (unsigned)(f - f == 0.0f);\n"
    "  unsigned above = (unsigned)(fabs((double)f) > fabs(d));\n"
    "  return ein_f32((ein_bits(f) - (inexact & above)) | inexact);\n}\n"
    "EIN_DEVICE double ein_i64_odd(long long x) {\n"
    "  long long most = 1ll << 53, low = x & 2047;\n"
    "  return (double)(x <= most && x >= -most ? x : x - low + (low != 0 ? 1024 : 0));\n}\n"
    "EIN_DEVICE long long ein_int(double x) {\n"
    "  if (!(x > -9223372036854775808.0))\n"
    "    return x != x ? 0 : (long long)0x8000000000000000ull;\n"
    "  return x >= 9223372036854775808.0 ? 0x7fffffffffffffffll : (long long)x;\n}\n",
    "EIN_DEVICE long long ein_idiv(long long x, long long y) {\n"
    "  if (y == 0) return 0;\n"
    "  if (y == -1) return (long long)(0ull - (unsigned long long)x);\n"
    "  long long q = x / y;\n"
    "  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;\n}\n"
    "EIN_DEVICE long long ein_imod(long long x, long long y) {\n"
    "  if (y == 0 || y == -1) return 0;\n"
    "  long long r = x % y;\n"
    "  return r != 0 && (r < 0) != (y < 0) ? r + y : r;\n}\n"
    "EIN_DEVICE double ein_fmod(double x, double y) {\n"
    "  double r = fmod(x, y);\n"
    "  if (r != 0.0) return (r < 0.0) != (y < 0.0) ? r + y : r;\n"
    "  return y == y && x == x && y != 0.0 ? copysign(0.0, y) : r;\n}\n"
    "EIN_DEVICE double ein_fdiv(double x, double y) {\n"
    "  if (y == 0.0) return x / y;\n"
    "  double r = fmod(x, y), q = (x - r) / y;\n"
    "  if (r != 0.0 && (r < 0.0) != (y < 0.0)) q -= 1.0;\n"
    "  if (q == 0.0) return copysign(0.0, x / y);\n"
    "  double f = floor(q);\n"
    "  return q - f > 0.5 ? f + 1.0 : f;\n}\n",
    "EIN_DEVICE ein_c128 ein_cmul(ein_c128 x, ein_c128 y) {\n"
    "  return ein_z(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);\n}\n"
    "EIN_DEVICE ein_c128 ein_cdiv(ein_c128 x, ein_c128 y) {\n"
    "  if (fabs(y.re) >= fabs(y.im)) {\n"
    "    if (y.re == 0.0 && y.im == 0.0) return ein_z(x.re / y.re, x.im / y.re);\n"
    "    double r = y.im / y.re, d = y.re + y.im * r;\n"
    "    return ein_z((x.re + x.im * r) / d, (x.im - x.re * r) / d);\n  }\n"
    "  double r = y.re / y.im, d = y.re * r + y.im;\n"
    "  return ein_z((x.re * r + x.im) / d, (x.im * r - x.re) / d);\n}\n"
    "EIN_DEVICE ein_c128 ein_cexp(ein_c128 x) {\n"
    "  double e = exp(x.re);\n"
    "  if (x.im == 0.0) return ein_z(e, x.im);\n"
    "  if (e == 0.0) return ein_z(0.0, 0.0);\n"
    "  return ein_z(e * cos(x.im), e * sin(x.im));\n}\n"
    "EIN_DEVICE ein_c128 ein_clog(ein_c128 x) {\n"
    "  return ein_z(log(hypot(x.re, x.im)), atan2(x.im, x.re));\n}\n"
    "EIN_DEVICE ein_c128 ein_csqrt(ein_c128 x) {\n"
    "  if (x.re == 0.0 && x.im == 0.0) return ein_z(0.0, x.im);\n"
    "  double t = sqrt(0.5 * (hypot(x.re, x.im) + fabs(x.re)));\n"
    "  return x.re >= 0.0 ? ein_z(t, x.im / (2.0 * t))\n"
    "                     : ein_z(fabs(x.im) / (2.0 * t), copysign(t, x.im));\n}\n"
    "EIN_DEVICE ein_c128 ein_csign(ein_c128 x) {\n"
    "  double m = hypot(x.re, x.im);\n"
    "  return m == 0.0 ? ein_z(0.0, 0.0) : ein_z(x.re / m, x.im / m);\n}\n"};

// The types of values: of computation, and as they are stored.
static const char *eini_cuda_type(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: return "ein_bool";
    case EIN_I32: return "int";
    case EIN_I64: return "long long";
    case EIN_F32: return "float";
    case EIN_F64: return "double";
    case EIN_C64: return "ein_c64";
    default: return "ein_c128";
  }
}
static const char *eini_cuda_stored(ein_dtype t) {
  switch (t) {
    case EIN_U8: return "unsigned char";
    case EIN_I8: return "signed char";
    case EIN_I16: return "short";
    case EIN_F16: case EIN_BF16: return "unsigned short";
    default: return eini_cuda_type(t);
  }
}

static int eini_cuda_complex(ein_dtype t) { return t == EIN_C64 || t == EIN_C128; }
static int eini_cuda_real(ein_dtype t) { return t == EIN_F32 || t == EIN_F64; }

// What x, stored as t, is in its computation type.
static void eini_cuda_say_wide(eini_text *t, ein_dtype from, const char *x) {
  if (from == EIN_BOOL) eini_say(t, "(ein_bool)(%s != 0)", x);
  else if (from == EIN_F16) eini_say(t, "ein_f16_load(%s)", x);
  else if (from == EIN_BF16) eini_say(t, "ein_bf16_load(%s)", x);
  else if (from == EIN_U8 || from == EIN_I8 || from == EIN_I16) eini_say(t, "(int)%s", x);
  else eini_say(t, "%s", x);
}

// Between computation types; x is a name.
static void eini_cuda_say_cast(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  const char *part = eini_cuda_complex(from) ? ".re" : "";
  const int real = eini_cuda_complex(from) || eini_cuda_real(from);
  if (from == to) {
    eini_say(t, "%s", x);
  } else if (to == EIN_BOOL) {
    if (part[0]) eini_say(t, "(ein_bool)((%s.re != 0) | (%s.im != 0))", x, x);
    else eini_say(t, "(ein_bool)(%s != 0)", x);
  } else if (to == EIN_I32 || to == EIN_I64) {
    eini_say(t, real ? "(%s)ein_int((double)%s%s)" : "(%s)%s%s", eini_cuda_type(to), x, part);
  } else if (to == EIN_C64) {
    if (from == EIN_C128) eini_say(t, "ein_less(%s)", x);
    else eini_say(t, "ein_c((float)%s, 0)", x);
  } else if (to == EIN_C128) {
    if (from == EIN_C64) eini_say(t, "ein_wide(%s)", x);
    else eini_say(t, "ein_z((double)%s, 0)", x);
  } else {
    eini_say(t, "(%s)%s%s", eini_cuda_type(to), x, part);
  }
}

// x of computation type `from` as it is stored: rounded once, integers wrap. half: what is rounded
// to f16 or bf16 stays f32.
static void eini_cuda_say_half(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  eini_say(t, to == EIN_F16 ? "ein_f16_store(" : "ein_bf16_store(");
  if (from == EIN_I64) eini_say(t, "ein_odd(ein_i64_odd(%s))", x);
  else if (from == EIN_I32 || from == EIN_F64) eini_say(t, "ein_odd((double)%s)", x);
  else eini_cuda_say_cast(t, from, EIN_F32, x);
  eini_say(t, ")");
}
static void eini_cuda_say_narrow(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  if (to == EIN_F16 || to == EIN_BF16) {
    eini_cuda_say_half(t, from, to, x);
  } else if (to == EIN_U8 || to == EIN_I8 || to == EIN_I16) {
    eini_say(t, "(%s)(", eini_cuda_stored(to));
    eini_cuda_say_cast(t, from, EIN_I32, x);
    eini_say(t, ")");
  } else {
    eini_cuda_say_cast(t, from, to, x);
  }
}

// ================================================================================================
// >>cuda-text  expressions as source
// Takes an expression program; gives statements that compute it, one value a line, in the types of
// the program. What it cannot say makes the whole kernel none.
// ================================================================================================

#define EINI_CUDA_SOURCE ((size_t)1 << 17)  // bytes of a generated source at most
#define EINI_CUDA_REGS 192                  // registers and steps of an expression at most

// What a source is made with. q: how many numbers of doubles params have taken.
typedef struct eini_cuda_writer {
  eini_text t;
  const eini_cuda_nest *x;
  int q, bad;
  int staged;                 // 1: addresses and values are names, b<stream> and at<stream>
  const unsigned char *own;   // then, per stream: 1: in shared memory; 2: read as 1
  int along;                  // 1 + the loop of which there are n values, or 0
  int param[EINI_CUDA_REGS];  // which one pair of numbers is of
} eini_cuda_writer;

static void eini_cuda_say_bits(eini_text *t, ein_dtype type, double re, double im) {
  uint64_t a, b;
  const double x = type == EIN_F32 || type == EIN_C64 ? (double)(float)re : re;
  const double y = type == EIN_C64 ? (double)(float)im : im;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  if (type == EIN_F32) eini_say(t, "(float)ein_f64(0x%llxull)", (unsigned long long)a);
  else if (type == EIN_F64) eini_say(t, "ein_f64(0x%llxull)", (unsigned long long)a);
  else eini_say(t, type == EIN_C64 ? "ein_c((float)ein_f64(0x%llxull), (float)ein_f64(0x%llxull))"
                                   : "ein_z(ein_f64(0x%llxull), ein_f64(0x%llxull))",
                (unsigned long long)a, (unsigned long long)b);
}

// The value of a constant, or of a param: numbers 2k and 2k+1 of q.
static void eini_cuda_say_fill(eini_cuda_writer *w, const ein_fill *f) {
  const ein_dtype type = (ein_dtype)f->type;
  eini_text *t = &w->t;
  int k = 0;
  if (f->param < 0) {
    if (type == EIN_BOOL) eini_say(t, "%d", f->re != 0 || f->im != 0);
    else if (type == EIN_I32) eini_say(t, "(int)0x%xu", (unsigned)(uint64_t)f->ival);
    else if (type == EIN_I64) eini_say(t, "(long long)0x%llxull", (unsigned long long)f->ival);
    else eini_cuda_say_bits(t, type, f->re, f->im);
    return;
  }
  while (k < w->q && w->param[k] != f->param) k++;
  if (k == EINI_CUDA_REGS) {
    w->bad = 1;
    return;
  }
  if (k == w->q) w->param[w->q++] = f->param;
  const int re = 2 * k, im = 2 * k + 1;
  switch (type) {
    case EIN_BOOL: eini_say(t, "(ein_bool)(p.q[%d] != 0 || p.q[%d] != 0)", re, im); break;
    case EIN_I32: eini_say(t, "(int)ein_int(p.q[%d])", re); break;
    case EIN_I64: eini_say(t, "ein_int(p.q[%d])", re); break;
    case EIN_F32: eini_say(t, "(float)p.q[%d]", re); break;
    case EIN_F64: eini_say(t, "p.q[%d]", re); break;
    case EIN_C64: eini_say(t, "ein_c((float)p.q[%d], (float)p.q[%d])", re, im); break;
    default: eini_say(t, "ein_z(p.q[%d], p.q[%d])", re, im); break;
  }
}

// How operations read over names: %1$s would not be C99, so a, b, c are letters behind '$', and T,
// U and W the type, the unsigned one and 'f' of single precision. NULL: not said.
static const char *eini_cuda_arith(int op, int integer) {
  switch (op) {
    case EIN_OP_NEG: return integer ? "($T)(0 - ($U)$a)" : "-$a";
    case EIN_OP_ADD: return integer ? "($T)(($U)$a + ($U)$b)" : "$a + $b";
    case EIN_OP_SUB: return integer ? "($T)(($U)$a - ($U)$b)" : "$a - $b";
    case EIN_OP_MUL: return integer ? "($T)(($U)$a * ($U)$b)" : "$a * $b";
    case EIN_OP_SQUARE: return integer ? "($T)(($U)$a * ($U)$a)" : "$a * $a";
    case EIN_OP_ABS: return integer ? "$a < 0 ? ($T)(0 - ($U)$a) : $a" : "fabs$W($a)";
    case EIN_OP_SIGN: return integer ? "($a > 0) - ($a < 0)"
                                     : "$a > 0 ? ($T)1 : $a < 0 ? ($T)-1 : $a == 0 ? ($T)0 : $a";
    case EIN_OP_FLOORDIV: return integer ? "($T)ein_idiv($a, $b)" : "($T)ein_fdiv($a, $b)";
    case EIN_OP_MOD: return integer ? "($T)ein_imod($a, $b)" : "($T)ein_fmod($a, $b)";
    case EIN_OP_RELU: return "$a < 0 ? ($T)0 : $a";
    default: return NULL;
  }
}

static const char *eini_cuda_order(int op) {  // of all types that have one, bool too
  switch (op) {
    case EIN_OP_MAX: return "($a > $b) | ($a != $a) ? $a : $b";
    case EIN_OP_MIN: return "($a < $b) | ($a != $a) ? $a : $b";
    case EIN_OP_LT: return "(ein_bool)($a < $b)";
    case EIN_OP_LE: return "(ein_bool)($a <= $b)";
    case EIN_OP_GT: return "(ein_bool)($a > $b)";
    case EIN_OP_GE: return "(ein_bool)($a >= $b)";
    case EIN_OP_EQ: return "(ein_bool)($a == $b)";
    case EIN_OP_NE: return "(ein_bool)($a != $b)";
    case EIN_OP_AND: return "(ein_bool)($a & $b)";
    case EIN_OP_OR: return "(ein_bool)($a | $b)";
    case EIN_OP_NOT: return "(ein_bool)($a ^ 1)";
    default: return NULL;
  }
}

static const char *eini_cuda_function(int op) {  // of f32 and f64
  switch (op) {
    case EIN_OP_DIV: return "$a / $b";
    case EIN_OP_POW: return "pow$W($a, $b)";
    case EIN_OP_EXP: return "exp$W($a)";
    case EIN_OP_LOG: return "log$W($a)";
    case EIN_OP_SQRT: return "sqrt$W($a)";
    case EIN_OP_RSQRT: return "($T)1 / sqrt$W($a)";
    case EIN_OP_EXPM1: return "expm1$W($a)";
    case EIN_OP_LOG1P: return "log1p$W($a)";
    case EIN_OP_SIN: return "sin$W($a)";
    case EIN_OP_COS: return "cos$W($a)";
    case EIN_OP_TAN: return "tan$W($a)";
    case EIN_OP_TANH: return "tanh$W($a)";
    case EIN_OP_ATAN2: return "atan2$W($a, $b)";
    case EIN_OP_ERF: return "erf$W($a)";
    case EIN_OP_SIGMOID: return "($T)1 / (($T)1 + exp$W(-$a))";
    case EIN_OP_SILU: return "$a / (($T)1 + exp$W(-$a))";
    case EIN_OP_GELU: return "($T)0.5 * $a * (($T)1 + erf$W($a * ($T)0.70710678118654752440))";
    case EIN_OP_FLOOR: return "floor$W($a)";
    case EIN_OP_CEIL: return "ceil$W($a)";
    case EIN_OP_ROUND: return "rint$W($a)";
    case EIN_OP_COMPLEX: return "ein_$Z($a, $b)";
    default: return NULL;
  }
}

// Of c64 and c128, in double: $A and $B are $a and $b widened, $L( .. ) brings the result back.
static const char *eini_cuda_complex_op(int op) {
  switch (op) {
    case EIN_OP_NEG: return "$L(ein_z(-$A.re, -$A.im))";
    case EIN_OP_ADD: return "$L(ein_z($A.re + $B.re, $A.im + $B.im))";
    case EIN_OP_SUB: return "$L(ein_z($A.re - $B.re, $A.im - $B.im))";
    case EIN_OP_MUL: return "$L(ein_cmul($A, $B))";
    case EIN_OP_SQUARE: return "$L(ein_cmul($A, $A))";
    case EIN_OP_DIV: return "$L(ein_cdiv($A, $B))";
    case EIN_OP_CONJ: return "$L(ein_z($A.re, -$A.im))";
    case EIN_OP_EXP: return "$L(ein_cexp($A))";
    case EIN_OP_LOG: return "$L(ein_clog($A))";
    case EIN_OP_SQRT: return "$L(ein_csqrt($A))";
    case EIN_OP_SIGN: return "$L(ein_csign($A))";
    case EIN_OP_ABS: return "hypot($A.re, $A.im)";
    case EIN_OP_REAL: return "$a.re";
    case EIN_OP_IMAG: return "$a.im";
    case EIN_OP_EQ: return "(ein_bool)(($a.re == $b.re) & ($a.im == $b.im))";
    case EIN_OP_NE: return "(ein_bool)(($a.re != $b.re) | ($a.im != $b.im))";
    default: return NULL;
  }
}

// A pattern over names of arguments, of type `from`.
static void eini_cuda_say_pattern(eini_text *t, const char *pattern, ein_dtype from,
                                  char name[3][16]) {
  const int wide = from == EIN_F64 || from == EIN_C128, z = from == EIN_C64;
  for (const char *at = pattern; *at != 0; at++) {
    if (*at != '$') {
      eini_say(t, "%c", *at);
      continue;
    }
    switch (*++at) {
      case 'a': case 'b': case 'c': eini_say(t, "%s", name[*at - 'a']); break;
      case 'A': case 'B': eini_say(t, z ? "ein_wide(%s)" : "%s", name[*at - 'A']); break;
      case 'T': eini_say(t, "%s", eini_cuda_type(from)); break;
      case 'U': eini_say(t, from == EIN_I32 ? "unsigned" : "unsigned long long"); break;
      case 'L': eini_say(t, z ? "ein_less" : ""); break;
      case 'Z': eini_say(t, wide ? "z" : "c"); break;
      default: eini_say(t, wide ? "" : "f"); break;
    }
  }
}

static void eini_cuda_say_round(eini_text *t, const ein_step *s, const char *x) {
  const ein_dtype to = (ein_dtype)s->round;
  const int half = to == EIN_F16 || to == EIN_BF16;
  eini_say(t, to == EIN_F16 ? "ein_f16_load(" : half ? "ein_bf16_load(" : "(int)(");
  eini_cuda_say_narrow(t, (ein_dtype)s->from, to, x);
  eini_say(t, ")");
}

// What a step is; 0: it is not said.
static int eini_cuda_say_step(eini_text *t, const ein_step *s, char name[3][16]) {
  const ein_dtype from = (ein_dtype)s->from;
  const char *pattern = NULL;
  if (s->op == EIN_OP_CAST) {
    eini_cuda_say_cast(t, from, (ein_dtype)s->type, name[0]);
  } else if (s->op == EIN_OP_ROUNDTO) {
    eini_cuda_say_round(t, s, name[0]);
  } else if (s->op == EIN_OP_WHERE) {
    eini_say(t, "%s ? %s : %s", name[0], name[1], name[2]);
  } else {
    if (eini_cuda_complex(from)) pattern = eini_cuda_complex_op(s->op);
    else if (eini_cuda_order(s->op) != NULL) pattern = eini_cuda_order(s->op);
    else if (from != EIN_BOOL) pattern = eini_cuda_arith(s->op, !eini_cuda_real(from));
    if (pattern == NULL && eini_cuda_real(from)) pattern = eini_cuda_function(s->op);
    if (pattern == NULL) return 0;
    eini_cuda_say_pattern(t, pattern, from, name);
  }
  return 1;
}

// Which streams an expression reads: operand 0 is `zero` where it has a name; others are streams
// from `first` on, index values those from `values` on.
typedef struct eini_cuda_reads {
  const char *zero;
  int first, values;
} eini_cuda_reads;

// The statements of an expression, and in `result` the name of its value. tag: in front of names.
// Operand stream s was read as r<s>, the value of an index is i<s>.
static void eini_cuda_say_code(eini_cuda_writer *w, const ein_code *c, const eini_cuda_reads *r,
                               char tag, char result[16]) {
  eini_text *t = &w->t;
  int now[EINI_CUDA_REGS];
  char name[3][16], raw[16];
  if (c->nreg > EINI_CUDA_REGS || c->nstep + c->nfill > EINI_CUDA_REGS) w->bad = 1;
  if (w->bad) return;
  for (int i = 0; i < c->nreg; i++) now[i] = 0;
  for (int i = 0; i < c->nfill; i++) {
    now[c->fill[i].reg] = i;
    eini_say(t, "  const %s %c%d = ", eini_cuda_type((ein_dtype)c->fill[i].type), tag, i);
    eini_cuda_say_fill(w, &c->fill[i]);
    eini_say(t, ";\n");
  }
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    const int load = s->op == EIN_OP_OPERAND || s->op == EIN_OP_INDEX;
    if (s->op == EIN_OP_CALL) w->bad = 1;
    if (w->bad) return;
    if (!load) {
      snprintf(name[0], sizeof name[0], "%c%d", tag, now[s->a]);
      snprintf(name[1], sizeof name[1], "%c%d", tag, now[s->b]);
      snprintf(name[2], sizeof name[2], "%c%d", tag, now[s->c]);
    }
    now[s->dst] = c->nfill + i;
    eini_say(t, "  const %s %c%d = ", eini_cuda_type((ein_dtype)s->type), tag, c->nfill + i);
    if (s->op == EIN_OP_INDEX) {
      eini_say(t, "i%d", r->values + s->a);
    } else if (s->op == EIN_OP_OPERAND && s->a == 0 && r->zero != NULL) {
      eini_say(t, "%s", r->zero);
    } else if (load) {
      snprintf(raw, sizeof raw, "r%d", r->first + s->a);
      eini_cuda_say_wide(t, (ein_dtype)s->from, raw);
    } else if (!eini_cuda_say_step(t, s, name)) {
      w->bad = 1;
    }
    eini_say(t, ";\n");
  }
  snprintf(result, 16, "%c%d", tag, now[c->result]);
}

// ================================================================================================
// >>cuda-values  arguments, loops, values and folds as source
// Takes a nest; gives the pieces of which kernels are made. Loop i is j<i>, an operand's element
// r<stream>, an index's value i<stream>; all arguments are words of 8 bytes in one struct.
// ================================================================================================

// Numbers beside a nest's own, by their places in ein_args.z.
enum { EINI_CUDA_FREE, EINI_CUDA_REDUCED, EINI_CUDA_SPLIT, EINI_CUDA_SPLITS, EINI_CUDA_NUMBERS };

static int eini_cuda_words_of_strides(const eini_cuda_nest *x) {
  int n = 0;
  for (int s = 0; s < x->nstream; s++)
    for (int i = 0; i < x->n; i++) n += x->form[s][i] == EINI_CUDA_ANY;
  return n;
}

static void eini_cuda_params_of(eini_cuda_writer *w, const ein_code *c) {
  for (int i = 0; c != NULL && i < c->nfill; i++) {
    int k = 0;
    if (c->fill[i].param < 0) continue;
    while (k < w->q && w->param[k] != c->fill[i].param) k++;
    if (k == EINI_CUDA_REGS) w->bad = 1;
    else if (k == w->q) w->param[w->q++] = c->fill[i].param;
  }
}

static int eini_cuda_words(const eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  return x->nstream + 1 + x->n + 1 + eini_cuda_words_of_strides(x) + 1 + x->nstream +
         EINI_CUDA_NUMBERS + 2 * w->q + 1;
}

// The nest of a writer, and the params that it reads.
static void eini_cuda_writer_of(eini_cuda_writer *w, const eini_cuda_nest *x) {
  w->x = x;
  w->q = 0;
  eini_cuda_params_of(w, x->code[0]);
  eini_cuda_params_of(w, x->code[1]);
  eini_cuda_params_of(w, x->store);
}

// What all kernels begin with.
static void eini_cuda_say_helpers(eini_cuda_writer *w) {
  for (size_t i = 0; i < sizeof eini_cuda_helpers / sizeof *eini_cuda_helpers; i++)
    eini_say(&w->t, "%s", eini_cuda_helpers[i]);
}

// The type of offsets, and arguments.
static void eini_cuda_say_args(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  eini_text *t = &w->t;
  eini_say(t, "typedef %s ix;\n", eini_cuda_narrow(x) ? "int" : "long long");
  eini_say(t, "typedef struct {\n  char *b[%d];\n  long long e[%d], s[%d], at[%d], z[%d];\n"
              "  double q[%d];\n} ein_args;\n", x->nstream + 1, x->n + 1,
           eini_cuda_words_of_strides(x) + 1, x->nstream, EINI_CUDA_NUMBERS, 2 * w->q + 1);
  if (eini_cuda_words(w) > EINI_CUDA_WORDS) w->bad = 1;
}

// The arguments of a launch, as ein_args has them; returns how many.
static int eini_cuda_arguments(const eini_cuda_writer *w, const int64_t z[EINI_CUDA_NUMBERS],
                               const void *part, uint64_t *word) {
  const eini_cuda_nest *x = w->x;
  int n = 0;
  memset(word, 0, (size_t)eini_cuda_words(w) * sizeof *word);
  for (int s = 0; s < x->nstream; s++) word[n++] = (uint64_t)(uintptr_t)x->base[s];
  word[n++] = (uint64_t)(uintptr_t)part;
  for (int i = 0; i < x->n; i++) word[n++] = (uint64_t)x->extent[i];
  n++;
  for (int s = 0; s < x->nstream; s++)
    for (int i = 0; i < x->n; i++)
      if (x->form[s][i] == EINI_CUDA_ANY) word[n++] = (uint64_t)x->used[s][i];
  n++;
  for (int s = 0; s < x->nstream; s++) word[n++] = (uint64_t)x->at[s];
  for (int i = 0; i < EINI_CUDA_NUMBERS; i++) word[n++] = (uint64_t)z[i];
  for (int k = 0; k < w->q; k++) {
    memcpy(&word[n++], &x->param[w->param[k]].re, 8);
    memcpy(&word[n++], &x->param[w->param[k]].im, 8);
  }
  memcpy(&word[n++], &x->count, 8);
  return n;
}

// Loops [from, to) as bits.
static unsigned eini_cuda_loops(int from, int to) {
  return from < to ? (1u << to) - (1u << from) : 0;
}

// Loops of a set of one number.
static void eini_cuda_say_split_in(eini_cuda_writer *w, const char *of, unsigned loops) {
  eini_text *t = &w->t;
  int first = 0, more;
  while (first < w->x->n && !(loops >> first & 1)) first++;
  if (first == w->x->n) return;
  more = (loops >> first) > 1;
  if (more) eini_say(t, "  ix d%d = %s;\n", first, of);
  for (int i = w->x->n - 1; i > first; i--) {
    if (!(loops >> i & 1)) continue;
    if (w->along == i + 1) eini_say(t, "  const ix j%d = d%d %% n; d%d /= n;\n", i, first, first);
    else eini_say(t, "  const ix j%d = d%d %% (ix)p.e[%d]; d%d /= (ix)p.e[%d];\n", i, first, i,
                  first, i);
  }
  if (more) eini_say(t, "  const ix j%d = d%d;\n", first, first);
  else eini_say(t, "  const ix j%d = %s;\n", first, of);
}

static void eini_cuda_say_split(eini_cuda_writer *w, const char *of, int from, int to) {
  eini_cuda_say_split_in(w, of, eini_cuda_loops(from, to));
}

// The offset of a stream by loops of a set.
static void eini_cuda_say_offset_in(eini_cuda_writer *w, int s, unsigned loops) {
  const eini_cuda_nest *x = w->x;
  int word = 0, said = 0;
  for (int k = 0; k <= s; k++) {
    for (int i = 0; i < x->n; i++) {
      const int any = x->form[k][i] == EINI_CUDA_ANY;
      if (k == s && (loops >> i & 1) && x->form[k][i] != EINI_CUDA_ZERO) {
        eini_say(&w->t, "%sj%d", said++ > 0 ? " + " : "", i);
        if (any) eini_say(&w->t, " * (ix)p.s[%d]", word);
      }
      word += any;
    }
  }
  if (said == 0) eini_say(&w->t, "0");
}

static void eini_cuda_say_offset(eini_cuda_writer *w, int s, int from, int to) {
  eini_cuda_say_offset_in(w, s, eini_cuda_loops(from, to));
}

// What 1 is as it is stored.
static const char *eini_cuda_one(ein_dtype t) {
  return t == EIN_F16 ? "0x3c00" : t == EIN_BF16 ? "0x3f80" : "1";
}

// Reads of the device's memory in groups are marked: EIN_READ.
static void eini_cuda_say_load(eini_cuda_writer *w, int s, int from, int to) {
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  const int own = w->staged && w->own != NULL ? w->own[s] : 0;
  if (w->x->value[s]) {
    eini_say(&w->t, w->staged ? "  const long long i%d = at%d + ("
                              : "  const long long i%d = p.at[%d] + (", s, s);
    eini_cuda_say_offset(w, s, from, to);
    eini_say(&w->t, ");\n");
    return;
  }
  if (own == 2) {
    eini_say(&w->t, "  const %s r%d = %s;\n", type, s, eini_cuda_one((ein_dtype)w->x->dtype[s]));
    return;
  }
  eini_say(&w->t, !w->staged ? "  const %s r%d = ((const %s *)p.b[%d])["
                  : own      ? "  const %s r%d = ((const %s *)b%d)["
                             : "  const %s r%d = EIN_READ((const %s *)b%d)[", type, s, type, s);
  eini_cuda_say_offset(w, s, from, to);
  eini_say(&w->t, "];\n");
}

// All that a value reads, at loops [0, n). but: streams that were read before.
static void eini_cuda_say_loads(eini_cuda_writer *w, const unsigned char *but) {
  for (int s = 0; s < w->x->extra; s++)
    if (but == NULL || !but[s]) eini_cuda_say_load(w, s, 0, w->x->n);
}

// ---- values ----

// ein_join: what is folded, made of a value of P and one of Q.
static void eini_cuda_say_join(eini_cuda_writer *w) {
  const ein_dtype type = w->x->type;
  const char *d = eini_cuda_real(type) ? "x - y" : "(ein_t)((ein_u)x - (ein_u)y)";
  const char *mul = eini_cuda_real(type) ? "x * y" : "(ein_t)((ein_u)x * (ein_u)y)";
  eini_text *t = &w->t;
  if (type == EIN_I32 || type == EIN_I64)
    eini_say(t, "typedef unsigned %s ein_u;\n", eini_cuda_type(type));
  eini_say(t, "EIN_DEVICE ein_t ein_join(ein_t x, ein_t y) {\n");
  if (eini_cuda_complex(type)) {
    eini_say(t, "  ein_t z; z.re = x.re * y.re - x.im * y.im;\n"
                "  z.im = x.re * y.im + x.im * y.re; return z;\n}\n");
    return;
  }
  switch (w->x->pair) {
    case EIN_PAIR_SUM_MUL: eini_say(t, "  return %s;\n}\n", mul); break;
    case EIN_PAIR_ANY_AND: eini_say(t, "  return x & y;\n}\n"); break;
    case EIN_PAIR_MIN_ADD: case EIN_PAIR_MAX_ADD:
      eini_say(t, eini_cuda_real(type) ? "  return x + y;\n}\n"
                                       : "  return (ein_t)((ein_u)x + (ein_u)y);\n}\n");
      break;
    default:
      eini_say(t, "  ein_t d = %s;\n", d);
      if (w->x->pair == EIN_PAIR_SUM_SQDIFF)
        eini_say(t, eini_cuda_real(type) ? "  return d * d;\n}\n"
                                         : "  return (ein_t)((ein_u)d * (ein_u)d);\n}\n");
      else if (eini_cuda_real(type)) eini_say(t, "  return d < 0 ? -d : d;\n}\n");
      else eini_say(t, "  return d < 0 ? (ein_t)(0 - (ein_u)d) : d;\n}\n");
      break;
  }
}

// Statements of the value at hand; its name goes to `name`.
static void eini_cuda_say_value(eini_cuda_writer *w, char name[16]) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_reads p = {NULL, 0, x->nop}, q = {NULL, x->second, x->nop};
  char left[16] = "", right[16] = "";
  if (x->kind == EINI_CUDA_COPY || x->kind == EINI_CUDA_PARTS) {
    snprintf(name, 16, "r0");
  } else if (x->kind == EINI_CUDA_MAP) {
    eini_cuda_say_code(w, x->code[0], &p, 'v', name);
  } else {
    eini_cuda_say_code(w, x->code[0], &p, 'v', left);
    eini_cuda_say_code(w, x->code[1], &q, 'u', right);
    eini_say(&w->t, "  const ein_t w0 = ein_join(%s, %s);\n", left, right);
    snprintf(name, 16, "w0");
  }
}

// Stores the value `name` where loops of the output are.
static void eini_cuda_say_store(eini_cuda_writer *w, const char *name) {
  const eini_cuda_nest *x = w->x;
  const ein_dtype to = (ein_dtype)x->dtype[x->out];
  ein_dtype from = x->result;
  char made[16];
  eini_text *t = &w->t;
  snprintf(made, sizeof made, "%s", name);
  if (x->store != NULL) {
    const eini_cuda_reads r = {name, x->extra - 1, x->extra_value};
    for (int s = x->extra; s < x->out; s++) eini_cuda_say_load(w, s, 0, x->nfree);
    eini_cuda_say_code(w, x->store, &r, 's', made);
    from = (ein_dtype)x->store->type;
  }
  eini_say(t, !w->staged ? "  ((%s *)p.b[%d])["
              : w->own != NULL && w->own[x->out] ? "  ((%s *)b%d)[" : "  EIN_WRITE((%s *)b%d)[",
           eini_cuda_stored(to), x->out);
  eini_cuda_say_offset(w, x->out, 0, x->nfree);
  eini_say(t, "] = ");
  if (x->kind == EINI_CUDA_COPY) eini_say(t, "%s", made);
  else eini_cuda_say_narrow(t, from, to, made);
  eini_say(t, ";\n");
}

// ---- folds ----

static const char *eini_cuda_least(ein_dtype t, int most) {
  switch (t) {
    case EIN_BOOL: return most ? "1" : "0";
    case EIN_I32: return most ? "0x7fffffff" : "(int)0x80000000u";
    case EIN_I64: return most ? "0x7fffffffffffffffll" : "(long long)0x8000000000000000ull";
    case EIN_F32: return most ? "ein_f32(0x7f800000u)" : "ein_f32(0xff800000u)";
    default: return most ? "ein_f64(0x7ff0000000000000ull)" : "ein_f64(0xfff0000000000000ull)";
  }
}

// Folds of one scalar: what nothing is, and how two become one.
static void eini_cuda_say_simple(eini_cuda_writer *w) {
  const ein_dtype type = w->x->type;
  const int z = eini_cuda_complex(type), integer = type == EIN_I32 || type == EIN_I64;
  const char *none = "0", *merge = "a.v | b.v";
  switch (w->x->fold) {
    case EIN_FOLD_SUM: case EIN_FOLD_MEAN:
      merge = integer ? "(ein_t)((ein_w)a.v + (ein_w)b.v)" : "a.v + b.v";
      break;
    case EIN_FOLD_PROD:
      none = "1";
      merge = integer ? "(ein_t)((ein_w)a.v * (ein_w)b.v)" : "a.v * b.v";
      break;
    case EIN_FOLD_MAX: case EIN_FOLD_MIN:
      none = eini_cuda_least(type, w->x->fold == EIN_FOLD_MIN);
      merge = w->x->fold == EIN_FOLD_MAX ? "(a.v > b.v) | (a.v != a.v) ? a.v : b.v"
                                         : "(a.v < b.v) | (a.v != a.v) ? a.v : b.v";
      break;
    case EIN_FOLD_ALL: none = "1", merge = "a.v & b.v"; break;
    default: break;
  }
  eini_say(&w->t, "typedef struct { ein_t v; } ein_state;\n");
  if (integer) eini_say(&w->t, "typedef unsigned %s ein_w;\n", eini_cuda_type(type));
  eini_say(&w->t, "EIN_DEVICE ein_state ein_none(void) {\n  ein_state a; a.v%s = %s; %s"
                  "return a;\n}\n", z ? ".re" : "", none, z ? "a.v.im = 0; " : "");
  eini_say(&w->t, "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
                  "  ein_state a; a.v = x; return a;\n}\n"
                  "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n");
  if (!z) eini_say(&w->t, "  a.v = %s; return a;\n}\n", merge);
  else if (w->x->fold == EIN_FOLD_PROD)
    eini_say(&w->t, "  ein_t x = a.v; a.v.re = x.re * b.v.re - x.im * b.v.im;\n"
                    "  a.v.im = x.re * b.v.im + x.im * b.v.re; return a;\n}\n");
  else eini_say(&w->t, "  a.v.re += b.v.re; a.v.im += b.v.im; return a;\n}\n");
  eini_say(&w->t, "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n");
  if (w->x->fold != EIN_FOLD_MEAN) eini_say(&w->t, "  return a.v;\n}\n");
  else if (!z) eini_say(&w->t, "  return (ein_t)(a.v / count);\n}\n");
  else eini_say(&w->t, "  a.v.re /= count; a.v.im /= count; return a.v;\n}\n");
}

// argmax, argmin; least positions win ties, NaN is beyond all numbers.
static void eini_cuda_say_arg(eini_cuda_writer *w) {
  eini_say(&w->t,
           "typedef struct { ein_t v; long long p; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) { ein_state a; a.v = 0; a.p = -1; return a; }\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
           "  ein_state a; a.v = x; a.p = at; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  int an = a.v != a.v, bn = b.v != b.v, better = b.v %s a.v;\n"
           "  int equal = (an & bn) | (b.v == a.v);\n"
           "  better = (better | bn) & !an;\n"
           "  if (b.p >= 0 && (a.p < 0 || (equal ? b.p < a.p : better))) a = b;\n"
           "  return a;\n}\n"
           "EIN_DEVICE long long ein_finish(ein_state a, double count) { return a.p; }\n",
           w->x->fold == EIN_FOLD_ARGMAX ? ">" : "<");
}

static void eini_cuda_say_logsumexp(eini_cuda_writer *w) {
  const char *f = w->x->type == EIN_F32 ? "f" : "";
  eini_say(&w->t,
           "typedef struct { ein_t m, s; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) {\n  ein_state a; a.m = %s; a.s = 0; return a;\n}\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n  ein_state a; a.m = x;\n"
           "  a.s = x - x == 0 ? 1 : x > 0 ? x : x < 0 ? 0 : x; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  ein_t top = (a.m > b.m) | (a.m != a.m) ? a.m : b.m;\n"
           "  ein_t shift = top - top == 0 ? top : 0;\n"
           "  a.s = a.s * exp%s(a.m - shift) + b.s * exp%s(b.m - shift);\n"
           "  a.m = top; return a;\n}\n"
           "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n"
           "  ein_t s = log%s(a.s); return a.m - a.m == 0 ? a.m + s : a.m != a.m ? a.m : s;\n}\n",
           eini_cuda_least(w->x->type, 0), f, f, f);
}

static void eini_cuda_say_var(eini_cuda_writer *w) {
  eini_say(&w->t,
           "typedef struct { ein_t c, m, q; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) {\n"
           "  ein_state a; a.c = 0; a.m = 0; a.q = 0; return a;\n}\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
           "  ein_state a; a.c = 1; a.m = x; a.q = x - x; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  ein_t n = a.c + b.c, r = n > 0 ? b.c / n : 0, d = b.m - a.m;\n"
           "  a.q += b.q + (a.c > 0 ? d * d * a.c * r : 0);\n"
           "  a.m = a.c > 0 ? a.m + d * r : b.m;\n"
           "  a.c = n; return a;\n}\n"
           "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n"
           "  return (ein_t)(a.q / count);\n}\n");
}

// ein_t and the fold's functions; 0: a fold that is not said.
static int eini_cuda_say_fold(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  if (x->fold == EIN_FOLD_USER) return 0;
  if (x->kind != EINI_CUDA_COPY) eini_say(&w->t, "typedef %s ein_t;\n", eini_cuda_type(x->type));
  if (x->kind == EINI_CUDA_CONTRACT) eini_cuda_say_join(w);
  if (x->fold == EIN_FOLD_NONE) return 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN) eini_cuda_say_arg(w);
  else if (x->fold == EIN_FOLD_LOGSUMEXP) eini_cuda_say_logsumexp(w);
  else if (x->fold == EIN_FOLD_VAR) eini_cuda_say_var(w);
  else eini_cuda_say_simple(w);
  return 1;
}

// ================================================================================================
// >>cuda-maps  kernels of maps and copies
// Takes a nest; gives the source of a kernel: an element a thread, tiles through shared memory
// where two memory orders meet, a fold a thread, or a fold a block. All are of 256 threads.
// ================================================================================================

#define EINI_CUDA_THREADS 256
#define EINI_CUDA_TILE 32      // sides of a tile that is turned

// Loops of a map that is turned: a is dense in the operands marked, b in the output.
typedef struct eini_cuda_turn {
  int a, b;
  unsigned char turned[EINI_CUDA_STREAMS];
} eini_cuda_turn;

static void eini_cuda_say_begin(eini_cuda_writer *w) {
  eini_say(&w->t, "EIN_KERNEL ein_kernel(const ein_args p) {\n");
}

// The position of the value at hand, or 0.
static void eini_cuda_say_position(eini_cuda_writer *w, char name[16]) {
  snprintf(name, 16, "0");
  for (int s = 0; s < w->x->extra; s++)
    if (w->x->value[s] == 2) snprintf(name, 16, "i%d", s);
}

static void eini_cuda_say_elements(eini_cuda_writer *w) {
  char name[16] = "";
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID * %d + EIN_TID; i < (ix)p.z[0];\n"
                  "       i += (ix)EIN_BLOCKS * %d) {\n", EINI_CUDA_THREADS, EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, w->x->nfree);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(&w->t, "  }\n}\n");
}

// A fold a thread: neighbours are next to each other in the output.
static void eini_cuda_say_down(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID * %d + EIN_TID; i < (ix)p.z[0];\n"
                  "       i += (ix)EIN_BLOCKS * %d) {\n", EINI_CUDA_THREADS, EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(&w->t, "  ein_state a = ein_none();\n");
  for (int i = x->nfree; i < x->n; i++)
    eini_say(&w->t, "  for (ix j%d = 0; j%d < (ix)p.e[%d]; j%d++)\n", i, i, i, i);
  eini_say(&w->t, "  {\n");
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(&w->t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(&w->t, "  const %s y = ein_finish(a, p.q[%d]);\n", eini_cuda_type(x->result), 2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n}\n");
}

// A fold a block: threads go along the reduced loops, then a tree over their states.
static void eini_cuda_say_across(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  EIN_SHARED ein_state all[%d];\n", EINI_CUDA_THREADS);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID; i < (ix)p.z[0]; i += (ix)EIN_BLOCKS) {\n");
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(&w->t, "  ein_state a = ein_none();\n"
                  "  for (ix k = EIN_TID; k < (ix)p.z[1]; k += %d) {\n", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "k", x->nfree, x->n);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(&w->t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(&w->t, "  all[EIN_TID] = a;\n  EIN_SYNC;\n"
                  "  for (int h = %d; h > 0; h >>= 1) {\n"
                  "  if (EIN_TID < h) all[EIN_TID] = ein_merge(all[EIN_TID], all[EIN_TID + h]);\n"
                  "  EIN_SYNC;\n  }\n  if (EIN_TID == 0) {\n", EINI_CUDA_THREADS / 2);
  eini_say(&w->t, "  const %s y = ein_finish(all[0], p.q[%d]);\n", eini_cuda_type(x->result),
           2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n  EIN_SYNC;\n  }\n}\n");
}

// ---- tiles that are turned ----

// The loop that a stream is densest along, of free ones, or -1.
static int eini_cuda_dense(const eini_cuda_nest *x, int s) {
  int best = -1;
  for (int i = 0; i < x->nfree; i++) {
    const int64_t by = eini_abs64(x->used[s][i]);
    if (by != 0 && x->extent[i] > 1 && (best < 0 || by < eini_abs64(x->used[s][best]))) best = i;
  }
  return best;
}

// Is it a map whose operands, two at most, are dense along another loop than the output is?
static int eini_cuda_turns(const eini_cuda_nest *x, eini_cuda_turn *u) {
  int n = 0;
  memset(u, 0, sizeof *u);
  u->b = eini_cuda_dense(x, x->out);
  if (x->fold != EIN_FOLD_NONE || x->kind == EINI_CUDA_CONTRACT || u->b < 0) return 0;
  for (int s = 0; s < x->nop; s++) {
    const int a = eini_cuda_dense(x, s);
    if (a < 0 || a == u->b || x->used[s][u->b] == 0 || (n > 0 && a != u->a) || n == 2) continue;
    u->a = a;
    u->turned[s] = 1;
    n++;
  }
  return n > 0 && x->extent[u->a] >= 8 && x->extent[u->b] >= 8;
}

// Loops of a tile: threads along `fast`, eight rows of them along `slow`.
static void eini_cuda_say_tile(eini_cuda_writer *w, int fast, int slow) {
  const int side = EINI_CUDA_TILE;
  eini_say(&w->t, "  for (int y = EIN_TID / %d; y < %d; y += %d) {\n"
                  "  const int x = EIN_TID %% %d;\n", side, side, EINI_CUDA_THREADS / side, side);
  eini_say(&w->t, "  const ix j%d = t%d * %d + x, j%d = t%d * %d + y;\n", fast, fast, side, slow,
           slow, side);
  eini_say(&w->t, "  if (j%d < (ix)p.e[%d] && j%d < (ix)p.e[%d]) {\n", fast, fast, slow, slow);
}

static void eini_cuda_say_turn(eini_cuda_writer *w, const eini_cuda_turn *u) {
  const eini_cuda_nest *x = w->x;
  const int side = EINI_CUDA_TILE;
  char name[16] = "";
  eini_text *t = &w->t;
  eini_cuda_say_begin(w);
  for (int s = 0; s < x->nop; s++)
    if (u->turned[s])
      eini_say(t, "  EIN_SHARED %s m%d[%d][%d];\n", eini_cuda_stored((ein_dtype)x->dtype[s]), s,
               side, side + 1);
  eini_say(t, "  const ix na = ((ix)p.e[%d] + %d) / %d, nb = ((ix)p.e[%d] + %d) / %d;\n", u->a,
           side - 1, side, u->b, side - 1, side);
  eini_say(t, "  ix d = (ix)EIN_BID;\n  const ix t%d = d %% na; d /= na;\n"
              "  const ix t%d = d %% nb; d /= nb;\n", u->a, u->b);
  for (int i = x->nfree - 1; i >= 0; i--)
    if (i != u->a && i != u->b)
      eini_say(t, "  const ix j%d = d %% (ix)p.e[%d]; d /= (ix)p.e[%d];\n", i, i, i);
  eini_cuda_say_tile(w, u->a, u->b);
  for (int s = 0; s < x->nop; s++) {
    if (!u->turned[s]) continue;
    eini_say(t, "  m%d[y][x] = ((const %s *)p.b[%d])[", s,
             eini_cuda_stored((ein_dtype)x->dtype[s]), s);
    eini_cuda_say_offset(w, s, 0, x->n);
    eini_say(t, "];\n");
  }
  eini_say(t, "  }\n  }\n  EIN_SYNC;\n");
  eini_cuda_say_tile(w, u->b, u->a);
  for (int s = 0; s < x->nop; s++)
    if (u->turned[s])
      eini_say(t, "  const %s r%d = m%d[x][y];\n", eini_cuda_stored((ein_dtype)x->dtype[s]), s, s);
  eini_cuda_say_loads(w, u->turned);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(t, "  }\n  }\n}\n");
}

// ================================================================================================
// >>cuda-tiles  kernels of contractions through shared memory
// out[b,m,n] = store(fold over k of pair(P[b,m,k], Q[b,k,n])): a block makes a tile of m and n.
// Values of P and Q are made on the way to shared memory, the next while those there are folded;
// what is as it is stored goes there by itself (cp.async) on devices that have that.
// ================================================================================================

// What tensor cores multiply: nothing, f64, f32 rounded to TF32, f16 and bf16 as they are stored.
typedef enum eini_cuda_cores {
  EINI_CUDA_CORES_NONE, EINI_CUDA_CORES_F64, EINI_CUDA_CORES_TF32, EINI_CUDA_CORES_F16,
  EINI_CUDA_CORES_BF16, EINI_CUDA_CORES_F16_8
} eini_cuda_cores;

// 16 x 16 threads, each with rows x cols sums 16 apart; depth: of k that lie in shared memory. With
// tensor cores 4 x 2 warps share the tile.
typedef struct eini_cuda_shape {
  int rows, cols, split, cores;
  int async;                     // 1: the device has cp.async
  int along[2];                  // 1: neighbours read P, Q along k, 0: along m, n
} eini_cuda_shape;

enum { EINI_CUDA_SIDE = 16, EINI_CUDA_DEPTH = 16 };

static void eini_cuda_say_product(eini_cuda_writer *w, const char *name, int from, int to) {
  eini_say(&w->t, "  const ix %s = 1", name);
  for (int i = from; i < to; i++) eini_say(&w->t, " * (ix)p.e[%d]", i);
  eini_say(&w->t, ";\n");
}

// Fragments of tensor cores: rows and k of P's, registers of P's and Q's, and of sums. Those of Q
// have 8 columns. Where a lane's elements are: PTX ISA, matrix fragments of mma.m8n8k4, m16n8k8 and
// m16n8k16.
typedef struct eini_cuda_fragment {
  const char *name, *type, *reg;  // of ein_mma_.., of what lies in shared memory, of registers
  int m, k, a, b, c;
  int pitch;                      // elements from row to row there: no two lanes meet in a bank
} eini_cuda_fragment;

static const eini_cuda_fragment eini_cuda_fragments[] = {
    {"", "ein_t", "", 0, 0, 0, 0, 0, 0},
    {"f64", "double", "double", 8, 4, 1, 1, 2, 20},
    {"tf32", "float", "unsigned", 16, 8, 4, 2, 4, 20},
    {"f16", "unsigned short", "unsigned", 16, 16, 4, 2, 4, 24},
    {"bf16", "unsigned short", "unsigned", 16, 16, 4, 2, 4, 24},
    {"f16_8", "unsigned short", "unsigned", 16, 8, 2, 1, 4, 24}};

// One side of the product: its operands, where its rows are, and letters for names.
typedef struct eini_cuda_half {
  int cores, first, nop, rows, upto, side, along, which;
  int async;                     // copied as it is stored
  char letter;                   // p, q
  const char *tile, *extent;     // of its rows
} eini_cuda_half;

static eini_cuda_half eini_cuda_half_of(const eini_cuda_nest *x, const eini_cuda_shape *f, int q) {
  eini_cuda_half h;
  h.cores = f->cores;
  h.which = q;
  h.first = q ? x->second : 0;
  h.nop = q ? x->nop - x->second : x->second;
  h.rows = x->axes[1 + q];
  h.upto = x->axes[2 + q];
  h.side = EINI_CUDA_SIDE * (q ? f->cols : f->rows);
  h.along = f->along[q];
  h.async = f->async && h.nop == 1 && x->code[q]->plain == 0 && !x->code[q]->conj &&
            x->dtype[h.first] == (unsigned char)x->type && f->cores <= EINI_CUDA_CORES_F64 &&
            (x->type == EIN_F32 || x->type == EIN_F64 || x->type == EIN_I32 || x->type == EIN_I64);
  h.letter = q ? 'q' : 'p';
  h.tile = q ? "tn" : "tm";
  h.extent = q ? "en" : "em";
  return h;
}

// Element h of a thread's share of a half: its row in the tile, and its k.
static void eini_cuda_say_share(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int depth = EINI_CUDA_DEPTH, threads = EINI_CUDA_THREADS;
  if (v->along)
    eini_say(&w->t, "  const int row = EIN_TID / %d + h * %d, at = EIN_TID %% %d;\n", depth,
             threads / depth, depth);
  else
    eini_say(&w->t, "  const int row = EIN_TID %% %d, at = EIN_TID / %d + h * %d;\n", v->side,
             v->side, threads / v->side);
}

static void eini_cuda_say_shares(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int share = v->side * EINI_CUDA_DEPTH / EINI_CUDA_THREADS;
  eini_say(&w->t, "#pragma unroll\n  for (int h = 0; h < %d; h++) {\n", share);
  eini_cuda_say_share(w, v);
}

// Offsets of the rows that a thread reads, f<stream>[h], and room for values.
static void eini_cuda_say_rows(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int share = v->side * EINI_CUDA_DEPTH / EINI_CUDA_THREADS;
  eini_text *t = &w->t;
  if (!v->async) eini_say(t, "  ein_m v%c[%d];\n", v->letter, share);
  for (int s = v->first; s < v->first + v->nop; s++) eini_say(t, "  ix f%d[%d];\n", s, share);
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix full = %s * %d + row, in = full < %s ? full : 0;\n  (void)at;\n", v->tile,
           v->side, v->extent);
  eini_cuda_say_split(w, "in", v->rows, v->upto);
  for (int s = v->first; s < v->first + v->nop; s++) {
    eini_say(t, "  f%d[h] = ", s);
    eini_cuda_say_offset(w, s, 0, w->x->axes[1]);
    eini_say(t, " + ");
    eini_cuda_say_offset(w, s, v->rows, v->upto);
    eini_say(t, ";\n");
  }
  eini_say(t, "  }\n");
}

// Elements of the tile that begins at k go to shared memory, zero where there are none.
static void eini_cuda_say_async(eini_cuda_writer *w, const eini_cuda_half *v) {
  const eini_cuda_nest *x = w->x;
  const int s = v->first;
  eini_text *t = &w->t;
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix kk = k + at;\n  const int there = %s * %d + row < %s && kk < k1;\n"
              "  const ein_m *from = (const ein_m *)p.b[%d];\n  if (there) {\n", v->tile, v->side,
           v->extent, s);
  eini_cuda_say_split(w, "kk", x->axes[3], x->n);
  eini_say(t, "  from += f%d[h] + ", s);
  eini_cuda_say_offset(w, s, x->axes[3], x->n);
  eini_say(t, v->cores ? ";\n  }\n  ein_async(&s%c[b][row][at], from, there);\n  }\n"
                       : ";\n  }\n  ein_async(&s%c[b][at][row], from, there);\n  }\n", v->letter);
}

// What such a kernel needs.
static void eini_cuda_say_asyncs(eini_text *t, int bytes) {
  eini_say(t, "EIN_DEVICE void ein_async(ein_m *to, const ein_m *from, int there) {\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
              "  const unsigned at = (unsigned)__cvta_generic_to_shared(to);\n"
              "  asm volatile(\"cp.async.ca.shared.global [%%0], [%%1], %d, %%2;\"\n"
              "    :: \"r\"(at), \"l\"(from), \"r\"(there ? %d : 0) : \"memory\");\n"
              "#else\n  if (there) *to = *from; else *to = 0;\n#endif\n}\n", bytes, bytes);
  eini_say(t, "EIN_DEVICE void ein_async_wait() {\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
              "  asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n#endif\n}\n");
}

// Values of the tile that begins at k.
static void eini_cuda_say_fetch(eini_cuda_writer *w, const eini_cuda_half *v) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_reads reads = {NULL, v->first, x->nop};
  char name[16] = "";
  eini_text *t = &w->t;
  if (v->async) {
    eini_cuda_say_async(w, v);
    return;
  }
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix kk = k + at;\n  ein_m z = %s;\n"
              "  if (%s * %d + row < %s && kk < k1) {\n", v->cores ? "0" : "ein_none().v", v->tile,
           v->side, v->extent);
  eini_cuda_say_split(w, "kk", x->axes[3], x->n);
  for (int s = v->first; s < v->first + v->nop; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    eini_say(t, "  const %s r%d = ((const %s *)p.b[%d])[f%d[h] + ", type, s, type, s, s);
    eini_cuda_say_offset(w, s, x->axes[3], x->n);
    eini_say(t, "];\n");
  }
  if (v->cores >= EINI_CUDA_CORES_F16) snprintf(name, sizeof name, "r%d", v->first);
  else eini_cuda_say_code(w, x->code[v->which], &reads, v->which ? 'u' : 'v', name);
  eini_say(t, v->cores == EINI_CUDA_CORES_TF32 ? "  z = ein_tf32(%s);\n" : "  z = %s;\n", name);
  eini_say(t, "  }\n  v%c[h] = z;\n  }\n", v->letter);
}

static void eini_cuda_say_put(eini_cuda_writer *w, const eini_cuda_half *v) {
  if (v->async) return;
  eini_cuda_say_shares(w, v);
  eini_say(&w->t, v->cores ? "  s%c[b][row][at] = v%c[h];\n  }\n"
                           : "  s%c[b][at][row] = v%c[h];\n  }\n", v->letter, v->letter);
}

// ---- tensor cores ----

// What a lane holds of a fragment, of side a or b of the product: register i, from row `row` and k
// `at` of a tile on. Registers of 16-bit values have two neighbours along k.
static void eini_cuda_say_lane(eini_text *t, const eini_cuda_fragment *f, int q) {
  const int n = q ? f->b : f->a, two = f->k == 16 || f->a == 2, wide = f->m == 16;
  eini_say(t, "EIN_DEVICE void ein_lane_%c(%s *x, const ein_m *s) {\n"
              "  const int g = (EIN_TID & 31) >> 2, t = EIN_TID & 3;\n", q ? 'q' : 'p', f->reg);
  for (int i = 0; i < n; i++) {
    const int row = q || !wide ? 0 : i % 2 * 8;
    const int k = q ? i : wide ? i / 2 : 0;
    eini_say(t, "  x[%d] = ", i);
    if (two) eini_say(t, "*(const unsigned *)(s + (g + %d) * %d + 2 * t + %d);\n", row, f->pitch,
                      8 * k);
    else eini_say(t, f->k == 8 ? "ein_bits(s[(g + %d) * %d + t + %d]);\n"
                               : "s[(g + %d) * %d + t + %d];\n", row, f->pitch, 4 * k);
  }
  eini_say(t, "}\n");
}

// The instruction, but where the shim has it.
static void eini_cuda_say_mma(eini_text *t, const eini_cuda_fragment *f, int cores) {
  static const char *const types[] = {"", "m8n8k4.row.col.f64.f64.f64.f64",
                                      "m16n8k8.row.col.f32.tf32.tf32.f32",
                                      "m16n8k16.row.col.f32.f16.f16.f32",
                                      "m16n8k16.row.col.f32.bf16.bf16.f32",
                                      "m16n8k8.row.col.f32.f16.f16.f32"};
  const char *sum = f->c == 2 ? "double" : "float", *letter = f->c == 2 ? "d" : "f";
  const char *reg = f->c == 2 ? "d" : "r";
  int n = 0;
  eini_say(t, "#ifndef EIN_HOST  // needs sm_%d\n"
              "EIN_DEVICE void ein_mma_%s(%s *c, const %s *a, const %s *b) {\n"
              "  asm volatile(\"mma.sync.aligned.%s \"\n    \"", cores == EINI_CUDA_CORES_F16_8
           ? 75 : 80, f->name, sum, f->reg, f->reg, types[cores]);
  for (int part = 0; part < 4; part++) {
    const int size = part == 1 ? f->a : part == 2 ? f->b : f->c;
    eini_say(t, part > 0 ? ", {" : "{");
    for (int i = 0; i < size; i++)
      eini_say(t, "%s%%%d", i > 0 ? ", " : "", part == 3 ? i : n++);
    eini_say(t, "}");
  }
  eini_say(t, ";\"\n    :");
  for (int i = 0; i < f->c; i++) eini_say(t, "%s \"+%s\"(c[%d])", i > 0 ? "," : "", letter, i);
  eini_say(t, "\n    :");
  for (int i = 0; i < f->a; i++) eini_say(t, "%s \"%s\"(a[%d])", i > 0 ? "," : "", reg, i);
  for (int i = 0; i < f->b; i++) eini_say(t, ", \"%s\"(b[%d])", reg, i);
  eini_say(t, ");\n}\n#endif\n");
}

static void eini_cuda_say_tf32(eini_text *t) {
  eini_say(t, "EIN_DEVICE float ein_tf32(float f) {\n  unsigned u = ein_bits(f);\n"
              "  if ((u & 0x7f800000u) == 0x7f800000u) return f;\n"
              "  return ein_f32((u + 0x1000u) & 0xffffe000u);\n}\n");
}

// What such a kernel needs beside the fold.
static void eini_cuda_say_cores(eini_cuda_writer *w, const eini_cuda_shape *s) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[s->cores];
  eini_say(&w->t, "typedef %s ein_m;\n", f->type);
  if (s->cores == EINI_CUDA_CORES_NONE) return;
  if (s->cores == EINI_CUDA_CORES_TF32) eini_cuda_say_tf32(&w->t);
  eini_cuda_say_lane(&w->t, f, 0);
  eini_cuda_say_lane(&w->t, f, 1);
  eini_cuda_say_mma(&w->t, f, s->cores);
}

// Fragments of P's rows and Q's columns that a warp has.
static int eini_cuda_warp_rows(const eini_cuda_shape *s) {
  return EINI_CUDA_SIDE * s->rows / 4 / eini_cuda_fragments[s->cores].m;
}
static int eini_cuda_warp_cols(const eini_cuda_shape *s) { return EINI_CUDA_SIDE * s->cols / 16; }

static void eini_cuda_say_products(eini_cuda_writer *w, const eini_cuda_shape *s) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[s->cores];
  const int rows = eini_cuda_warp_rows(s), cols = eini_cuda_warp_cols(s);
  eini_text *t = &w->t;
  eini_say(t, "  if (k > k0) {\n#pragma unroll\n  for (int at = 0; at < %d; at += %d) {\n"
              "  %s x[%d][%d], y[%d][%d];\n", EINI_CUDA_DEPTH, f->k, f->reg, rows, f->a, cols,
           f->b);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
              "  ein_lane_p(x[i], &sp[b ^ 1][wm + %d * i][at]);\n", rows, f->m);
  eini_say(t, "#pragma unroll\n  for (int h = 0; h < %d; h++)\n"
              "  ein_lane_q(y[h], &sq[b ^ 1][wn + 8 * h][at]);\n", cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) ein_mma_%s(a[i][h], x[i], y[h]);\n  }\n  }\n", rows,
           cols, f->name);
}

static void eini_cuda_say_sums(eini_cuda_writer *w, const eini_cuda_shape *f) {
  eini_text *t = &w->t;
  const int side = EINI_CUDA_SIDE, depth = EINI_CUDA_DEPTH;
  eini_say(t, "  if (k > k0) {\n  const ix rest = k1 - (k - %d);\n"
              "  const int kb = rest < %d ? (int)rest : %d;\n", depth, depth, depth);
  eini_say(t, "#pragma unroll 8\n  for (int at = 0; at < kb; at++) {\n  ein_t x[%d], y[%d];\n",
           f->rows, f->cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) x[i] = sp[b ^ 1][at][ty + %d * i];\n",
           f->rows, side);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) y[i] = sq[b ^ 1][at][tx + %d * i];\n",
           f->cols, side);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++)\n"
              "  a[i][h] = ein_merge(a[i][h], ein_lift(ein_join(x[i], y[h]), 0));\n  }\n  }\n",
           f->rows, f->cols);
}

// Stores the sums, or of a split contraction leaves them for the kernel that folds the splits.
static void eini_cuda_say_ends(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_fragment *g = &eini_cuda_fragments[f->cores];
  const int rows = f->cores ? eini_cuda_warp_rows(f) : f->rows;
  const int cols = f->cores ? eini_cuda_warp_cols(f) * g->c : f->cols;
  eini_text *t = &w->t;
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) {\n", rows, cols);
  if (f->cores)
    eini_say(t, "  const ix m = tm * %d + wm + %d * i + (EIN_TID & 31) / 4 + h %% %d / 2 * 8;\n"
                "  const ix n = tn * %d + wn + h / %d * 8 + EIN_TID %% 4 * 2 + h %% 2;\n",
             EINI_CUDA_SIDE * f->rows, g->m, g->c, EINI_CUDA_SIDE * f->cols, g->c);
  else
    eini_say(t, "  const ix m = tm * %d + ty + %d * i, n = tn * %d + tx + %d * h;\n",
             EINI_CUDA_SIDE * f->rows, EINI_CUDA_SIDE, EINI_CUDA_SIDE * f->cols, EINI_CUDA_SIDE);
  eini_say(t, "  if (m < em && n < en) {\n  const ein_t y = ");
  if (f->cores) eini_say(t, "a[i][h / %d][h %% %d];\n", g->c, g->c);
  else eini_say(t, "a[i][h].v;\n");
  if (f->split) {
    eini_say(t, "  ((ein_t *)p.b[%d])[(((long long)sk * eb + tb) * em + m) * en + n] = y;\n",
             x->nstream);
  } else {
    eini_cuda_say_split(w, "m", x->axes[1], x->axes[2]);
    eini_cuda_say_split(w, "n", x->axes[2], x->axes[3]);
    eini_cuda_say_store(w, "y");
  }
  eini_say(t, "  }\n  }\n}\n");
}

// Tiles in shared memory, aligned to what fragments are read by.
static void eini_cuda_say_shared(eini_cuda_writer *w, const eini_cuda_shape *f, int p, int q) {
  const int pitch = eini_cuda_fragments[f->cores].pitch;
  if (!f->cores)
    eini_say(&w->t, "  EIN_SHARED ein_t sp[2][%d][%d], sq[2][%d][%d];\n", EINI_CUDA_DEPTH, p + 1,
             EINI_CUDA_DEPTH, q + 1);
  else if (f->cores < EINI_CUDA_CORES_F16)
    eini_say(&w->t, "  EIN_SHARED ein_m sp[2][%d][%d], sq[2][%d][%d];\n", p, pitch, q, pitch);
  else
    eini_say(&w->t, "  EIN_SHARED unsigned both[%d];\n"
                    "  ein_m (*const sp)[%d][%d] = (ein_m (*)[%d][%d])both;\n"
                    "  ein_m (*const sq)[%d][%d] = (ein_m (*)[%d][%d])(both + %d);\n",
             (p + q) * pitch, p, pitch, p, pitch, q, pitch, q, pitch, p * pitch);
}

// Sums of a thread.
static void eini_cuda_say_none(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const int c = eini_cuda_fragments[f->cores].c;
  eini_text *t = &w->t;
  if (!f->cores) {
    eini_say(t, "  ein_state a[%d][%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
                "#pragma unroll\n  for (int h = 0; h < %d; h++) a[i][h] = ein_none();\n", f->rows,
             f->cols, f->rows, f->cols);
    return;
  }
  const int rows = eini_cuda_warp_rows(f), cols = eini_cuda_warp_cols(f);
  eini_say(t, "  const int wm = EIN_TID / 64 * %d, wn = EIN_TID / 32 %% 2 * %d;\n"
              "  ein_t a[%d][%d][%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
              "#pragma unroll\n  for (int h = 0; h < %d; h++) a[i][h / %d][h %% %d] = 0;\n",
           4 * f->rows, 8 * f->cols, rows, cols, c, rows, cols * c, c, c);
}

static void eini_cuda_say_tiles(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_half p = eini_cuda_half_of(x, f, 0), q = eini_cuda_half_of(x, f, 1);
  eini_text *t = &w->t;
  eini_cuda_say_cores(w, f);
  if (p.async || q.async) eini_cuda_say_asyncs(t, x->size[(p.async ? &p : &q)->first]);
  eini_cuda_say_begin(w);
  eini_cuda_say_shared(w, f, p.side, q.side);
  eini_cuda_say_product(w, "eb", 0, x->axes[1]);
  eini_cuda_say_product(w, "em", x->axes[1], x->axes[2]);
  eini_cuda_say_product(w, "en", x->axes[2], x->axes[3]);
  eini_cuda_say_product(w, "ek", x->axes[3], x->n);
  eini_say(t, "  const ix nm = (em + %d) / %d, nn = (en + %d) / %d;\n", p.side - 1, p.side,
           q.side - 1, q.side);
  eini_say(t, "  ix d = (ix)EIN_BID;\n  const ix tn = d %% nn; d /= nn;\n"
              "  const ix tm = d %% nm; d /= nm;\n  const ix tb = d %% eb, sk = d / eb;\n"
              "  const ix k0 = sk * (ix)p.z[2], kx = k0 + (ix)p.z[2], k1 = kx < ek ? kx : ek;\n"
              "  const int tx = EIN_TID %% %d, ty = EIN_TID / %d;\n", EINI_CUDA_SIDE,
           EINI_CUDA_SIDE);
  eini_cuda_say_split(w, "tb", 0, x->axes[1]);
  eini_cuda_say_none(w, f);
  eini_cuda_say_rows(w, &p);
  eini_cuda_say_rows(w, &q);
  eini_say(t, "  int b = 0;\n  for (ix k = k0; ; k += %d) {\n  if (k < k1) {\n", EINI_CUDA_DEPTH);
  eini_cuda_say_fetch(w, &p);
  eini_cuda_say_fetch(w, &q);
  eini_say(t, "  }\n");
  if (f->cores) eini_cuda_say_products(w, f);
  else eini_cuda_say_sums(w, f);
  eini_say(t, "  if (k >= k1) break;\n");
  eini_cuda_say_put(w, &p);
  eini_cuda_say_put(w, &q);
  if (p.async || q.async) eini_say(t, "  ein_async_wait();\n");
  eini_say(t, "  EIN_SYNC;\n  b ^= 1;\n  }\n");
  eini_cuda_say_ends(w, f);
}

// ================================================================================================
// >>cuda-kernels  sources kept by their text, compiled when they first run
// A source is the normal form of what it computes: extents, strides, params and addresses are
// arguments, so that statements of one form share a kernel.
// ================================================================================================

// Room for a source; NULL: no memory. Ended by eini_cuda_writer_end.
static int eini_cuda_writer_begin(ein_cuda *c, eini_cuda_writer *w) {
  memset(w, 0, sizeof *w);
  char *room = (char *)c->al.alloc_fn(EINI_CUDA_SOURCE, 64, c->al.user);
  if (room == NULL) return 0;
  w->t = eini_text_of(room, EINI_CUDA_SOURCE);
  return 1;
}

static void eini_cuda_writer_end(ein_cuda *c, eini_cuda_writer *w) {
  c->al.free_fn(w->t.buf, EINI_CUDA_SOURCE, c->al.user);
}

// The kernel with this source; NULL: no memory, or the source is none.
static eini_cuda_kernel *eini_cuda_kernel_new(ein_cuda *c, const char *source, size_t bytes) {
  const uint64_t hash = eini_hash(source, bytes - 1, 0);
  eini_cuda_lock(c);
  eini_cuda_kernel *k = c->first;
  while (k != NULL && (k->hash != hash || k->bytes != bytes ||
                       memcmp(k->source, source, bytes) != 0))
    k = k->next;
  if (k == NULL) {
    k = (eini_cuda_kernel *)c->al.alloc_fn(sizeof *k, 64, c->al.user);
    char *text = k == NULL ? NULL : (char *)c->al.alloc_fn(bytes, 64, c->al.user);
    if (text == NULL && k != NULL) c->al.free_fn(k, sizeof *k, c->al.user);
    if (text == NULL) k = NULL;
    if (k != NULL) {
      memset(k, 0, sizeof *k);
      memcpy(text, source, bytes);
      k->source = text;
      k->owner = c;
      k->bytes = bytes;
      k->hash = hash;
      *c->last = k;
      c->last = &k->next;
    }
  }
  eini_cuda_unlock(c);
  return k;
}

static eini_cuda_kernel *eini_cuda_kernel_of(ein_cuda *c, const eini_cuda_writer *w) {
  if (w->bad || w->t.at + 1 > w->t.size) return NULL;
  return eini_cuda_kernel_new(c, w->t.buf, w->t.at + 1);
}

// That of a device's own, of one that was planned for the first of them.
static eini_cuda_kernel *eini_cuda_kernel_here(ein_cuda *c, eini_cuda_kernel *k) {
  return k->owner == c ? k : eini_cuda_kernel_new(c, k->source, k->bytes);
}

static void eini_cuda_kernels_free(ein_cuda *c) {
  for (eini_cuda_kernel *k = c->first, *next; k != NULL; k = next) {
    next = k->next;
    c->al.free_fn(k->source, k->bytes, c->al.user);
    c->al.free_fn(k, sizeof *k, c->al.user);
  }
}

// What NVRTC said of a source that it refuses.
static void eini_cuda_complain(ein_cuda *c, void *program, int code) {
  size_t bytes = 0;
  snprintf(c->why, sizeof c->why, "NVRTC refuses a generated kernel (%d)", code);
  if (c->api.log_size(program, &bytes) != 0 || bytes < 2 || bytes > EINI_CUDA_SOURCE) return;
  char *log = (char *)c->al.alloc_fn(bytes, 64, c->al.user);
  if (log == NULL) return;
  if (c->api.log_get(program, log) == 0)
    snprintf(c->why, sizeof c->why, "NVRTC refuses a generated kernel (%d): %.400s", code, log);
  c->al.free_fn(log, bytes, c->al.user);
}

// Source to code of the device.
static ein_status eini_cuda_compile(ein_cuda *c, eini_cuda_kernel *k, void **program,
                                    char **image, size_t *bytes) {
  char arch[48];
  const char *option[1];
  option[0] = arch;
  snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", c->device.major, c->device.minor);
  int code = c->api.program_create(program, k->source, "einsum.cu", 0, NULL, NULL);
  if (code == 0) code = c->api.program_compile(*program, 1, option);
  k->bad = code == EINI_CUDA_REFUSED;
  if (code != 0 && *program != NULL) eini_cuda_complain(c, *program, code);
  if (code == 0) code = c->api.cubin_size(*program, bytes);
  if (code != 0) return EIN_ERR_INTERNAL;
  *image = (char *)c->al.alloc_fn(*bytes, 64, c->al.user);
  if (*image == NULL) return EIN_ERR_NO_MEMORY;
  return c->api.cubin_get(*program, *image) == 0 ? EIN_OK : EIN_ERR_INTERNAL;
}

// ---- on a shelf ----

// What is saved: this, the source, the code of the device.
typedef struct eini_cuda_label {
  char magic[16];
  uint64_t source, code, hash;   // bytes of both, hash of the code
} eini_cuda_label;

static void eini_cuda_label_of(const eini_cuda_kernel *k, const char *code, size_t bytes,
                               eini_cuda_label *l) {
  memset(l, 0, sizeof *l);
  snprintf(l->magic, sizeof l->magic, "einsum kernel 1");
  l->source = k->bytes;
  l->code = bytes;
  l->hash = eini_hash(code, bytes, 0);
}

// By architecture, compiler and source.
static void eini_cuda_name(const ein_cuda *c, const eini_cuda_kernel *k, char name[96]) {
  snprintf(name, 96, "sm_%d%d-nvrtc%d.%d-%016llx%016llx", c->device.major, c->device.minor,
           c->nvrtc[0], c->nvrtc[1], (unsigned long long)k->hash,
           (unsigned long long)eini_hash(k->source, k->bytes, 1));
}

static void eini_cuda_save(ein_cuda *c, const eini_cuda_kernel *k, const char *code,
                           size_t bytes) {
  const size_t all = sizeof(eini_cuda_label) + k->bytes + bytes;
  char name[96];
  eini_cuda_label label;
  char *p = c->shelf.save_fn == NULL ? NULL : (char *)c->al.alloc_fn(all, 64, c->al.user);
  if (p == NULL) return;  // it is compiled again next time
  eini_cuda_name(c, k, name);
  eini_cuda_label_of(k, code, bytes, &label);
  memcpy(p, &label, sizeof label);
  memcpy(p + sizeof label, k->source, k->bytes);
  memcpy(p + sizeof label + k->bytes, code, bytes);
  eini_cuda_shelf_lock(c, 1);
  c->shelf.save_fn(c->shelf.user, name, p, all);
  eini_cuda_shelf_lock(c, 0);
  c->al.free_fn(p, all, c->al.user);
}

// The code of a kernel from the shelf: *at of what was allocated, *all bytes of it; 0: compile.
static int eini_cuda_load_code(ein_cuda *c, const eini_cuda_kernel *k, char **at, size_t *all,
                               const char **code) {
  const size_t head = sizeof(eini_cuda_label) + k->bytes;
  char name[96];
  eini_cuda_label label;
  size_t bytes = 0;
  *at = NULL;
  eini_cuda_name(c, k, name);
  if (c->shelf.load_fn == NULL) return 0;
  eini_cuda_shelf_lock(c, 1);
  int there = c->shelf.load_fn(c->shelf.user, name, NULL, 0, all) && *all > head &&
              *all <= SIZE_MAX / 4;
  char *p = there ? (char *)c->al.alloc_fn(*all, 64, c->al.user) : NULL;
  there = p != NULL && c->shelf.load_fn(c->shelf.user, name, p, *all, &bytes) && bytes == *all;
  eini_cuda_shelf_lock(c, 0);
  if (p == NULL) return 0;
  if (there) eini_cuda_label_of(k, p + head, *all - head, &label);
  if (there && memcmp(p, &label, sizeof label) == 0 &&
      memcmp(p + sizeof label, k->source, k->bytes) == 0) {
    *at = p;
    *code = p + head;
    return 1;
  }
  c->al.free_fn(p, *all, c->al.user);
  return 0;
}

static ein_status eini_cuda_ready_code(ein_cuda *c, eini_cuda_kernel *k, const char *code) {
  ein_status st = eini_cuda_status(c, c->api.module_load(&k->module, code), "a kernel's code");
  if (st == EIN_OK)
    st = eini_cuda_status(c, c->api.module_function(&k->function, k->module, "ein_kernel"),
                          "a kernel");
  if (st != EIN_OK && k->module != NULL) {
    (void)c->api.module_unload(k->module);
    k->module = NULL;
  }
  return st;
}

// Makes a kernel ready. Called with the lock, in the device's context.
static ein_status eini_cuda_ready_kernel(ein_cuda *c, eini_cuda_kernel *k) {
  void *program = NULL;
  char *image = NULL;
  const char *code;
  size_t bytes = 0;
  if (k->function != NULL) return EIN_OK;
  if (k->bad) return EIN_ERR_INTERNAL;
  if (eini_cuda_load_code(c, k, &image, &bytes, &code)) {
    const ein_status st = eini_cuda_ready_code(c, k, code);
    c->al.free_fn(image, bytes, c->al.user);
    c->counts.loaded += st == EIN_OK;
    return st;
  }
  ein_status st = eini_cuda_compile(c, k, &program, &image, &bytes);
  if (st == EIN_OK) st = eini_cuda_ready_code(c, k, image);
  if (st == EIN_OK) eini_cuda_save(c, k, image, bytes);
  if (image != NULL) c->al.free_fn(image, bytes, c->al.user);
  if (program != NULL) (void)c->api.program_destroy(&program);
  c->counts.compiled += st == EIN_OK;
  return st;
}

// room: bytes of shared memory beside what the source declares.
static ein_status eini_cuda_launch(ein_cuda *c, eini_cuda_kernel *k, int64_t blocks, size_t room,
                                   uint64_t word[EINI_CUDA_WORDS]) {
  void *argument[1];
  argument[0] = word;
  EINI_TRY(eini_cuda_ready_kernel(c, k));
  if (room > k->room) {
    EINI_TRY(eini_cuda_status(c, c->api.function_set(k->function, EINI_CUDA_ROOM, (int)room),
                              "shared memory"));
    k->room = room;
  }
  c->counts.launches++;
  return eini_cuda_status(c, c->api.launch(k->function, (unsigned)blocks, 1, 1, EINI_CUDA_THREADS,
                                           1, 1, (unsigned)room, c->stream, argument, NULL),
                          "a launch");
}

// ================================================================================================
// >>cuda-memory  host operands on the device and back
// Takes a nest with addresses of the host; gives one with addresses of the device, and brings the
// output home. Each direction has a stream beside that of the kernels and two pinned buffers.
// ================================================================================================

// Elements of a stream at home, in the order in which the device has them.
typedef struct eini_cuda_walk {
  int n;
  int64_t extent[EINI_CUDA_LOOPS], stride[EINI_CUDA_LOOPS], index[EINI_CUDA_LOOPS];
  int64_t size, left;
  char *at;
} eini_cuda_walk;

// low: offset of the least element, from which on all is taken where nothing is packed.
static void eini_cuda_walk_begin(const eini_cuda_nest *x, int s, eini_cuda_walk *w, int64_t *low) {
  const int64_t hull = eini_cuda_hull(x, 0, s, low);
  w->n = 0;
  w->size = x->size[s];
  w->at = x->base[s];
  if (!x->packed[s]) {
    w->at = (char *)((uintptr_t)w->at + (uintptr_t)(*low * w->size));
    w->n = 1;
    w->extent[0] = w->left = hull;
    w->stride[0] = 1;
    w->index[0] = 0;
    return;
  }
  *low = 0;
  w->left = eini_cuda_points(x, s);
  for (int i = 0; i < x->n; i++) {
    if (x->stride[s][i] == 0) continue;
    w->extent[w->n] = x->extent[i];
    w->stride[w->n] = x->stride[s][i];
    w->index[w->n++] = 0;
  }
}

// The next elements that lie next to each other, most of them at most; where they are is in *at.
static int64_t eini_cuda_walk_run(eini_cuda_walk *w, int64_t most, char **at) {
  int i = w->n - 1;
  int64_t run = 1;
  *at = w->at;
  if (i >= 0 && w->stride[i] == 1) run = eini_min64(most, w->extent[i] - w->index[i]);
  w->left -= run;
  if (i >= 0) w->index[i] += run;
  intptr_t by = i < 0 ? 0 : (intptr_t)(run * w->stride[i]);
  for (; i >= 0 && w->index[i] == w->extent[i]; i--) {
    by -= (intptr_t)(w->extent[i] * w->stride[i]);
    w->index[i] = 0;
    if (i == 0) break;
    w->index[i - 1]++;
    by += (intptr_t)w->stride[i - 1];
  }
  w->at = (char *)((uintptr_t)w->at + (uintptr_t)(by * (intptr_t)w->size));
  return run;
}

// What a run has on the device.
typedef struct eini_cuda_room {
  uint64_t at[EINI_CUDA_STREAMS + 1];
  char *home[EINI_CUDA_STREAMS];
} eini_cuda_room;

// What a stream does from here on comes after what another has by now.
static ein_status eini_cuda_after(ein_cuda *c, void *event, void *stream, void *other) {
  EINI_TRY(eini_cuda_status(c, c->api.event_record(event, other), "an event"));
  return eini_cuda_status(c, c->api.stream_after(stream, event, 0), "an event");
}

// Kernels come after the copies and allocations that were asked for.
static ein_status eini_cuda_join(ein_cuda *c) {
  c->nfresh = 0;
  if (!c->ahead) return EIN_OK;
  c->ahead = 0;
  return eini_cuda_after(c, c->order, c->stream, c->up.stream);
}

// Memory is taken in the order of copies, which need not wait for kernels then; of a stream that is
// captured, in its own.
static ein_status eini_cuda_take(ein_cuda *c, size_t bytes, uint64_t *at) {
  const int captured = eini_cuda_captured(c);
  void *stream = captured ? c->stream : c->up.stream;
  EINI_TRY(eini_cuda_status(c, c->api.alloc(at, bytes, stream), "device memory"));
  if (captured) return EIN_OK;
  c->ahead = 1;
  if (c->nfresh < EINI_CUDA_FRESH) c->fresh[c->nfresh++] = *at;
  return EIN_OK;
}

static void eini_cuda_drop(ein_cuda *c, uint64_t at) {
  if (!eini_cuda_captured(c)) (void)eini_cuda_join(c);
  (void)c->api.free_fn(at, c->stream);
}

// Adds up what kernels took that are done.
static void eini_cuda_harvest(ein_cuda *c) {
  for (int i = 0; i < c->ntimed; i++) {
    float ms = 0;
    if (c->api.event_time(&ms, c->timed[2 * i], c->timed[2 * i + 1]) == EINI_CUDA_OK)
      c->counts.seconds += 1e-3 * (double)ms;
  }
  c->ntimed = 0;
}

// Before what is timed, or after it. What is captured is not.
static ein_status eini_cuda_clock(ein_cuda *c, int after) {
  if (eini_cuda_captured(c)) return EIN_OK;
  if (!after) EINI_TRY(eini_cuda_join(c));
  if (!after && c->ntimed == EINI_CUDA_TIMED) {
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->timed[2 * c->ntimed - 1]), "a kernel"));
    eini_cuda_harvest(c);
  }
  EINI_TRY(eini_cuda_status(c, c->api.event_record(c->timed[2 * c->ntimed + after], c->stream),
                            "an event"));
  c->ntimed += after;
  return EIN_OK;
}

// Copies wait for the host, which a graph does not.
static ein_status eini_cuda_copies_here(ein_cuda *c) {
  if (!eini_cuda_captured(c)) return EIN_OK;
  snprintf(c->why, sizeof c->why, "what is captured reads and writes memory of the device alone");
  return EIN_ERR_UNSUPPORTED;
}

static ein_status eini_cuda_upload(ein_cuda *c, eini_cuda_walk *w, uint64_t to) {
  const int64_t most = (int64_t)EINI_CUDA_PINNED / w->size;
  int fresh = 0;
  EINI_TRY(eini_cuda_copies_here(c));
  for (int i = 0; i < c->nfresh; i++) fresh |= c->fresh[i] == to;
  if (!fresh)  // it may be read now
    EINI_TRY(eini_cuda_after(c, c->order, c->up.stream, c->stream));
  c->ahead = 1;
  for (int slot = 0; w->left > 0; slot ^= 1) {
    int64_t n = 0;
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->up.event[slot]), "a copy"));
    while (n < most && w->left > 0) {
      char *from;
      const int64_t run = eini_cuda_walk_run(w, most - n, &from);
      memcpy(c->up.pinned[slot] + n * w->size, from, (size_t)(run * w->size));
      n += run;
    }
    const size_t bytes = (size_t)(n * w->size);
    EINI_TRY(eini_cuda_status(c, c->api.to_device(to, c->up.pinned[slot], bytes, c->up.stream),
                              "a copy to the device"));
    EINI_TRY(eini_cuda_status(c, c->api.event_record(c->up.event[slot], c->up.stream),
                              "a copy"));
    to += bytes;
    c->counts.to_device += (int64_t)bytes;
  }
  return EIN_OK;
}

// The next part of what comes back goes into a pinned buffer; n elements.
static ein_status eini_cuda_fetch(ein_cuda *c, int slot, uint64_t from, size_t bytes) {
  void *stream = c->home.stream;
  EINI_TRY(eini_cuda_status(c, c->api.from_device(c->home.pinned[slot], from, bytes, stream),
                            "a copy from the device"));
  c->counts.from_device += (int64_t)bytes;
  return eini_cuda_status(c, c->api.event_record(c->home.event[slot], stream), "a copy");
}

// The lane is behind what makes it.
static ein_status eini_cuda_bring_home(ein_cuda *c, eini_cuda_walk *w, uint64_t from) {
  const int64_t most = (int64_t)EINI_CUDA_PINNED / w->size;
  int64_t n = eini_min64(most, w->left), asked = w->left - n;
  EINI_TRY(eini_cuda_fetch(c, 0, from, (size_t)(n * w->size)));
  for (int slot = 0; w->left > 0; slot ^= 1) {
    const int64_t next = eini_min64(most, asked);
    from += (uint64_t)(n * w->size);
    if (next > 0) EINI_TRY(eini_cuda_fetch(c, slot ^ 1, from, (size_t)(next * w->size)));
    asked -= next;
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->home.event[slot]), "a kernel or a copy"));
    for (int64_t i = 0; i < n;) {
      char *to;
      const int64_t run = eini_cuda_walk_run(w, n - i, &to);
      memcpy(to, c->home.pinned[slot] + i * w->size, (size_t)(run * w->size));
      i += run;
    }
    n = next;
  }
  return EIN_OK;
}

static ein_status eini_cuda_download(ein_cuda *c, eini_cuda_walk *w, uint64_t from) {
  EINI_TRY(eini_cuda_copies_here(c));
  EINI_TRY(eini_cuda_join(c));
  EINI_TRY(eini_cuda_after(c, c->order, c->home.stream, c->stream));
  EINI_TRY(eini_cuda_bring_home(c, w, from));
  eini_cuda_harvest(c);
  return EIN_OK;
}

// An operand before s that is the same one, or -1.
static int eini_cuda_same(const eini_cuda_nest *x, const eini_cuda_room *r, int s) {
  for (int k = 0; k < s; k++)
    if (!x->value[k] && !x->away[k] && r->home[k] == r->home[s] && x->dtype[k] == x->dtype[s] &&
        memcmp(x->stride[k], x->stride[s], sizeof x->stride[k]) == 0)
      return k;
  return -1;
}

// Operands go to the device, and all streams get its addresses.
static ein_status eini_cuda_bring(ein_cuda *c, eini_cuda_nest *x, eini_cuda_room *r) {
  memset(r, 0, sizeof *r);
  for (int s = 0; s < x->nstream; s++) r->home[s] = x->base[s];
  for (int s = 0; s < x->nstream; s++) {
    const int same = s == x->out ? -1 : eini_cuda_same(x, r, s);
    eini_cuda_walk w;
    int64_t low;
    if (x->value[s] || x->away[s]) continue;
    if (same >= 0) {
      x->base[s] = x->base[same];
      continue;
    }
    eini_cuda_walk_begin(x, s, &w, &low);
    EINI_TRY(eini_cuda_take(c, (size_t)(w.left * w.size), &r->at[s]));
    x->base[s] = (char *)(uintptr_t)(r->at[s] - (uint64_t)(low * w.size));
    if (s != x->out) EINI_TRY(eini_cuda_upload(c, &w, r->at[s]));
  }
  return EIN_OK;
}

// The output comes home.
static ein_status eini_cuda_return(ein_cuda *c, eini_cuda_nest *x, const eini_cuda_room *r) {
  eini_cuda_walk w;
  int64_t low;
  if (x->away[x->out]) return EIN_OK;
  x->base[x->out] = r->home[x->out];
  eini_cuda_walk_begin(x, x->out, &w, &low);
  return eini_cuda_download(c, &w, r->at[x->out]);
}

static void eini_cuda_leave(ein_cuda *c, eini_cuda_room *r) {
  for (int s = 0; s <= EINI_CUDA_STREAMS; s++)
    if (r->at[s] != 0) eini_cuda_drop(c, r->at[s]);
}

// ---- what plans keep there ----

// Begins a call: the lock, the device's context.
static ein_status eini_cuda_enter(ein_cuda *c) {
  eini_cuda_lock(c);
  const ein_status st = eini_cuda_status(c, c->api.push(c->primary), "the device's context");
  if (st != EIN_OK) eini_cuda_unlock(c);
  return st;
}

static ein_status eini_cuda_exit(ein_cuda *c, ein_status st) {
  void *popped;
  (void)c->api.pop(&popped);
  eini_cuda_unlock(c);
  return st;
}

static ein_status eini_slot_cuda_alloc(void *user, size_t bytes, void **at) {
  ein_cuda *c = eini_cuda_here(user);
  uint64_t address = 0;
  EINI_TRY(eini_cuda_enter(c));
  const ein_status st = eini_cuda_take(c, bytes, &address);
  *at = (void *)(uintptr_t)address;
  return eini_cuda_exit(c, st);
}

static void eini_slot_cuda_free(void *user, void *at) {
  ein_cuda *c = eini_cuda_here(user);
  if (eini_cuda_enter(c) != EIN_OK) return;
  eini_cuda_drop(c, (uint64_t)(uintptr_t)at);
  (void)eini_cuda_exit(c, EIN_OK);
}

// Bytes as they lie.
static eini_cuda_walk eini_cuda_walk_bytes(char *at, size_t bytes) {
  eini_cuda_walk w;
  memset(&w, 0, sizeof w);
  w.n = 1;
  w.size = w.stride[0] = 1;
  w.extent[0] = w.left = (int64_t)bytes;
  w.at = at;
  return w;
}

static ein_status eini_slot_cuda_copy(void *user, size_t bytes, const void *from, void *to,
                                      int away) {
  ein_cuda *c = eini_cuda_here(user);
  union { const void *c; char *v; } source;  // it is only read
  source.c = from;
  eini_cuda_walk w = eini_cuda_walk_bytes(away ? source.v : (char *)to, bytes);
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, away ? eini_cuda_upload(c, &w, (uint64_t)(uintptr_t)to)
                                : eini_cuda_download(c, &w, (uint64_t)(uintptr_t)source.v));
}

// Copies home that were left for later: those behind which kernels were started since, or all.
static ein_status eini_cuda_settle(ein_cuda *c, int all) {
  const int64_t started = c->counts.launches + c->counts.gemms;
  ein_status st = EIN_OK;
  int left = 0;
  for (int i = 0; i < c->nlater; i++) {
    eini_cuda_later *l = &c->later[i], was = c->later[left];
    if (!all && c->nlater < EINI_CUDA_LATERS && l->started == started) {
      c->later[left++] = *l;
      *l = was;
      continue;
    }
    eini_cuda_walk w = eini_cuda_walk_bytes(l->to, l->bytes);
    if (st == EIN_OK)
      st = eini_cuda_status(c, c->api.stream_after(c->home.stream, l->event, 0), "an event");
    if (st == EIN_OK) st = eini_cuda_bring_home(c, &w, l->from);
    (void)c->api.free_fn(l->from, c->home.stream);
  }
  c->nlater = left;
  if (all) eini_cuda_harvest(c);
  return st;
}

static ein_status eini_slot_cuda_later(void *user, size_t bytes, void *from, void *to) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_copies_here(c);
  if (st == EIN_OK) st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_settle(c, 0);
  eini_cuda_later *l = &c->later[c->nlater];
  if (st == EIN_OK) st = eini_cuda_status(c, c->api.event_record(l->event, c->stream), "an event");
  if (st == EIN_OK) {
    l->from = (uint64_t)(uintptr_t)from;
    l->to = (char *)to;
    l->bytes = bytes;
    l->started = c->counts.launches + c->counts.gemms;
    c->nlater++;
  }
  return eini_cuda_exit(c, st);
}

static ein_status eini_slot_cuda_settle(void *user) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, eini_cuda_settle(c, 1));
}

// A ticket counts marks from 1 on; its event may be another's by now, which is behind it.
static ein_status eini_slot_cuda_mark(void *user, ein_ticket *ticket) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  *ticket = 0;
  if (eini_cuda_captured(c)) return eini_cuda_exit(c, EIN_OK);
  void *event = c->mark[c->marks % EINI_CUDA_MARKS];
  ein_status st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_status(c, c->api.event_record(event, c->stream), "an event");
  if (st == EIN_OK) *ticket = ++c->marks;
  return eini_cuda_exit(c, st);
}

static ein_status eini_slot_cuda_wait(void *user, ein_ticket ticket) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = ticket > c->marks ? EIN_ERR_ARGUMENT : EIN_OK;
  if (st == EIN_OK && ticket > c->waited) {
    void *event = c->mark[(ticket - 1) % EINI_CUDA_MARKS];
    st = eini_cuda_status(c, c->api.event_wait(event), "a kernel");
    if (st == EIN_OK) c->waited = ticket;
    if (st == EIN_OK && ticket == c->marks) eini_cuda_harvest(c);
  }
  return eini_cuda_exit(c, st);
}

// ================================================================================================
// >>cuda-peers  what places keep on their devices, and copies between these
// Takes memory of two places; copies it directly where both devices can open each other's memory,
// else by pinned memory of the host. Which of the two is asked once for each pair of devices.
// ================================================================================================

static ein_status eini_slot_cuda_hold(void *user, size_t bytes, void **at) {
  ein_cuda *c = eini_cuda_here(user);
  uint64_t address = 0;
  EINI_TRY(eini_cuda_enter(c));
  const ein_status st = eini_cuda_status(c, c->api.hold(&address, bytes), "device memory");
  *at = (void *)(uintptr_t)address;
  return eini_cuda_exit(c, st);
}

static void eini_slot_cuda_release(void *user, void *at) {
  ein_cuda *c = eini_cuda_here(user);
  if (eini_cuda_enter(c) != EIN_OK) return;
  int code = c->api.stream_wait(c->up.stream);  // of a call that failed
  if (code == EINI_CUDA_OK) code = c->api.stream_wait(c->home.stream);
  if (code == EINI_CUDA_OK) code = c->api.stream_wait(c->stream);
  if (code == EINI_CUDA_OK) (void)c->api.release_held((uint64_t)(uintptr_t)at);
  (void)eini_cuda_exit(c, EIN_OK);
}

// The context is current meanwhile. Streams are not waited for.
static ein_status eini_slot_cuda_lend(void *user, int begin) {
  ein_cuda *c = eini_cuda_here(user);
  void *popped;
  if (begin) return eini_cuda_status(c, c->api.push(c->primary), "the device's context");
  return eini_cuda_status(c, c->api.pop(&popped), "the device's context");
}

// Opens the memory of `other` to a device; 0: it cannot be.
static int eini_cuda_open_peer(ein_cuda *c, const ein_cuda *other) {
  int can = 0;
  void *popped;
  if (c->api.peer_asked(&can, c->number, other->number) != EINI_CUDA_OK || can != 1) return 0;
  if (c->api.push(c->primary) != EINI_CUDA_OK) return 0;
  const int code = c->api.peer_open(other->primary, 0);
  (void)c->api.pop(&popped);
  return code == EINI_CUDA_OK || code == EINI_CUDA_OPENED;
}

// Do two devices, by their numbers among those of places, copy to each other?
static int eini_cuda_direct(ein_cuda *c, int a, int b) {
  ein_cuda *first = eini_cuda_at(c, a < b ? a : b), *second = eini_cuda_at(c, a < b ? b : a);
  unsigned char *said = &c->direct[a < b ? a : b][a < b ? b : a];
  eini_cuda_lock(c);
  if (*said == 0)
    *said = eini_cuda_open_peer(first, second) && eini_cuda_open_peer(second, first) ? 1 : 2;
  const int direct = *said == 1;
  eini_cuda_unlock(c);
  return direct;
}

// What the stream of a device has by now is behind c->met; with `other` it waits for that first.
static ein_status eini_cuda_meet(ein_cuda *c, const ein_cuda *other, int record) {
  ein_status st = EIN_OK;
  EINI_TRY(eini_cuda_enter(c));
  if (other != NULL)
    st = eini_cuda_status(c, c->api.stream_after(c->stream, other->met, 0), "an event");
  if (st == EIN_OK && record) st = eini_cuda_copies_here(c);
  if (st == EIN_OK && record) st = eini_cuda_join(c);
  if (st == EIN_OK && record)
    st = eini_cuda_status(c, c->api.event_record(c->met, c->stream), "an event");
  return eini_cuda_exit(c, st);
}

// In the stream of who gets it, behind what made it; who gave it waits before it changes that.
static ein_status eini_cuda_peer_copy(ein_cuda *src, uint64_t from, ein_cuda *dst, uint64_t to,
                                      size_t bytes) {
  EINI_TRY(eini_cuda_meet(src, NULL, 1));
  EINI_TRY(eini_cuda_meet(dst, src, 0));
  EINI_TRY(eini_cuda_enter(dst));
  ein_status st = eini_cuda_copies_here(dst);
  if (st == EIN_OK) st = eini_cuda_join(dst);
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.to_peer(to, dst->primary, from, src->primary, bytes,
                                                dst->stream), "a copy between devices");
  if (st == EIN_OK) dst->counts.peer += (int64_t)bytes;
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.event_record(dst->met, dst->stream), "an event");
  EINI_TRY(eini_cuda_exit(dst, st));
  return eini_cuda_meet(src, dst, 0);
}

// Both are on one device.
static ein_status eini_cuda_beside(ein_cuda *c, uint64_t from, uint64_t to, size_t bytes) {
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_join(c);
  if (st == EIN_OK)
    st = eini_cuda_status(c, c->api.beside(to, from, bytes, c->stream), "a copy on the device");
  return eini_cuda_exit(c, st);
}

// ---- by the host ----

// A part of what `src` gives is in one of its pinned buffers, which `dst` has read.
static ein_status eini_cuda_give(ein_cuda *src, const ein_cuda *dst, uint64_t from, size_t bytes,
                                 int slot) {
  void *popped;
  EINI_TRY(eini_cuda_status(src, src->api.push(src->primary), "the device's context"));
  ein_status st = eini_cuda_status(src, src->api.event_wait(dst->up.event[slot]), "a copy");
  if (st == EIN_OK) st = eini_cuda_fetch(src, slot, from, bytes);
  if (st == EIN_OK)
    st = eini_cuda_status(src, src->api.event_wait(src->home.event[slot]), "a copy");
  (void)src->api.pop(&popped);
  return st;
}

// It goes to `dst`.
static ein_status eini_cuda_get(ein_cuda *dst, const ein_cuda *src, uint64_t to, size_t bytes,
                                int slot) {
  void *popped;
  EINI_TRY(eini_cuda_status(dst, dst->api.push(dst->primary), "the device's context"));
  ein_status st = eini_cuda_status(
      dst, dst->api.to_device(to, src->home.pinned[slot], bytes, dst->up.stream),
      "a copy to the device");
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.event_record(dst->up.event[slot], dst->up.stream),
                          "a copy");
  if (st == EIN_OK) dst->counts.to_device += (int64_t)bytes;
  dst->ahead = 1;
  (void)dst->api.pop(&popped);
  return st;
}

// A lane of copies is behind all that the device was asked for.
static ein_status eini_cuda_lane_behind(ein_cuda *c, void *lane) {
  void *popped;
  EINI_TRY(eini_cuda_status(c, c->api.push(c->primary), "the device's context"));
  ein_status st = eini_cuda_copies_here(c);
  if (st == EIN_OK) st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_after(c, c->order, lane, c->stream);
  (void)c->api.pop(&popped);
  return st;
}

// What was given has been read: the buffers are another's from here on.
static ein_status eini_cuda_got(ein_cuda *c) {
  void *popped;
  EINI_TRY(eini_cuda_status(c, c->api.push(c->primary), "the device's context"));
  const ein_status st = eini_cuda_status(c, c->api.stream_wait(c->up.stream),
                                         "a copy to the device");
  (void)c->api.pop(&popped);
  return st;
}

// Parts in turn: one is fetched while the one before goes on. The locks of both are taken in the
// order of devices.
static ein_status eini_cuda_by_host(ein_cuda *src, uint64_t from, ein_cuda *dst, uint64_t to,
                                    size_t bytes, int ascending) {
  eini_cuda_lock(ascending ? src : dst);
  eini_cuda_lock(ascending ? dst : src);
  ein_status st = eini_cuda_lane_behind(src, src->home.stream);
  if (st == EIN_OK) st = eini_cuda_lane_behind(dst, dst->up.stream);
  for (int slot = 0; bytes > 0 && st == EIN_OK; slot ^= 1) {
    const size_t n = bytes < EINI_CUDA_PINNED ? bytes : EINI_CUDA_PINNED;
    st = eini_cuda_give(src, dst, from, n, slot);
    if (st == EIN_OK) st = eini_cuda_get(dst, src, to, n, slot);
    from += n, to += n, bytes -= n;
  }
  const ein_status ended = eini_cuda_got(dst);
  eini_cuda_unlock(ascending ? dst : src);
  eini_cuda_unlock(ascending ? src : dst);
  return st != EIN_OK ? st : ended;
}

static ein_status eini_slot_cuda_peer(void *user, size_t bytes, const void *from, int from_place,
                                      void *to, int to_place) {
  ein_cuda *c = (ein_cuda *)user;
  const int a = eini_cuda_of_place(c, from_place), b = eini_cuda_of_place(c, to_place);
  const uint64_t x = (uint64_t)(uintptr_t)from, y = (uint64_t)(uintptr_t)to;
  ein_cuda *src = eini_cuda_at(c, a), *dst = eini_cuda_at(c, b);
  if (bytes == 0) return EIN_OK;
  if (a == b) return eini_cuda_beside(src, x, y, bytes);
  if (eini_cuda_direct(c, a, b)) return eini_cuda_peer_copy(src, x, dst, y, bytes);
  return eini_cuda_by_host(src, x, dst, y, bytes, a < b);
}

// ================================================================================================
// >>cuda-gemm  which contractions are products of cuBLAS
// Takes a nest; gives the leading dimensions, which side is transposed, and calls. Operands are
// taken as they lie on the device, never copied to be permuted.
// ================================================================================================

enum { EINI_CUDA_GROUP = 4096 };  // products of different places in a call at most

typedef struct eini_cuda_gemm {
  int64_t m, n, k, batch;
  int64_t ld[3], step[3];        // of P, Q and the output; steps from one of the batch to the next
  int turned[3], conj[2], peel;
  int apart;                     // 1: one step does not reach all of the batch
} eini_cuda_gemm;

// The stride of loops [from, to) as one, 0 where there is but one element; -1: they are not one.
static int64_t eini_cuda_line(const eini_cuda_nest *x, int s, int from, int to) {
  int64_t stride = 0, size = 1;
  for (int i = to - 1; i >= from; i--) {
    if (x->extent[i] == 1) continue;
    if (size > 1 && x->used[s][i] != stride * size) return -1;
    if (size == 1) stride = x->used[s][i];
    size *= x->extent[i];
  }
  return stride < 0 ? -1 : stride;
}

// Loops of batch, m, n and k: [from, to) each.
typedef struct eini_cuda_groups {
  int from[4], to[4];
} eini_cuda_groups;

// Those of a nest. peel 1 or 2: the first loop of m or n is the batch.
static eini_cuda_groups eini_cuda_groups_of(const eini_cuda_nest *x, int peel) {
  eini_cuda_groups g;
  for (int i = 0; i < 4; i++) {
    g.from[i] = x->axes[i];
    g.to[i] = i < 3 ? x->axes[i + 1] : x->n;
  }
  if (peel > 0) {
    g.from[0] = g.from[peel]++;
    g.to[0] = g.from[peel];
  }
  return g;
}

// The matrix of a stream over two groups of loops. 0: it is none.
static int eini_cuda_matrix(const eini_cuda_nest *x, const eini_cuda_groups *l, int s, int rows,
                            int cols, int64_t *ld, int *turned) {
  const int64_t nr = eini_cuda_extent(x, l->from[rows], l->to[rows]);
  const int64_t nc = eini_cuda_extent(x, l->from[cols], l->to[cols]);
  const int64_t r = eini_cuda_line(x, s, l->from[rows], l->to[rows]);
  const int64_t c = eini_cuda_line(x, s, l->from[cols], l->to[cols]);
  if ((nr > 1 && r < 1) || (nc > 1 && c < 1)) return 0;
  return eini_matrix_lines(r, c, nr, nc, ld, turned);
}

static int eini_cuda_gemm_by(const eini_cuda_nest *x, const eini_cuda_groups *l,
                             eini_cuda_gemm *g) {
  const int list[3] = {0, 1, x->out};
  g->batch = eini_cuda_extent(x, l->from[0], l->to[0]);
  g->m = eini_cuda_extent(x, l->from[1], l->to[1]);
  g->n = eini_cuda_extent(x, l->from[2], l->to[2]);
  g->k = eini_cuda_extent(x, l->from[3], l->to[3]);
  if (eini_max64(eini_max64(g->batch, g->m), eini_max64(g->n, g->k)) > INT32_MAX) return 0;
  for (int s = 0; s < 3; s++)
    if ((g->step[s] = eini_cuda_line(x, list[s], l->from[0], l->to[0])) < 0) g->apart = 1;
  if (g->apart && (g->peel > 0 || g->batch > EINI_CUDA_GROUP)) return 0;
  if (!eini_cuda_matrix(x, l, 0, 1, 3, &g->ld[0], &g->turned[0]) ||
      !eini_cuda_matrix(x, l, 1, 3, 2, &g->ld[1], &g->turned[1]) ||
      !eini_cuda_matrix(x, l, x->out, 1, 2, &g->ld[2], &g->turned[2]))
    return 0;
  // Of what is read as it lies only the transpose can be conjugated.
  for (int s = 0; s < 2; s++)
    if (g->conj[s] && g->turned[s] == g->turned[2]) return 0;
  return 1;
}

// One product for each element of a batch. Without one, the first loop of m or n may be one.
static int eini_cuda_gemm_peels(const eini_cuda_nest *x, eini_cuda_gemm *g) {
  for (g->peel = 0; g->peel < 3; g->peel++) {
    const int end = g->peel == 0 ? 0 : x->axes[g->peel + 1];
    if (g->peel > 0 && (x->axes[1] > 0 || end - x->axes[g->peel] < 2)) continue;
    const eini_cuda_groups l = eini_cuda_groups_of(x, g->peel);
    if (eini_cuda_gemm_by(x, &l, g)) return 1;
  }
  return 0;
}

// Is the contraction such products, as they are or scaled?
static int eini_cuda_gemm_of(const ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                             eini_cuda_gemm *g) {
  const ein_dtype type = x->type;
  memset(g, 0, sizeof *g);
  if (c->blas == NULL || of->pair != EIN_PAIR_SUM_MUL || of->p.form != EIN_FORM_PLAIN ||
      of->q.form != EIN_FORM_PLAIN || of->p.nop != 1 || of->q.nop != 1 ||
      (!eini_cuda_real(type) && !eini_cuda_complex(type)) ||
      (!of->plain_out && !(of->scaled && of->nextra == 0)))
    return 0;
  g->conj[0] = of->p.conj;
  g->conj[1] = of->q.conj;
  return eini_cuda_gemm_peels(x, g);
}

// How cuBLAS ended.
static ein_status eini_cuda_gemm_status(ein_cuda *c, int code) {
  c->counts.gemms++;
  if (code == 0) return EIN_OK;
  snprintf(c->why, sizeof c->why, "cuBLAS fails (%d)", code);
  return code == 3 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}

// cuBLAS counts columns first: a matrix of rows is the transpose of what it sees.
static ein_status eini_cuda_gemm_strided(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_gemm *g, const void *alpha) {
  static const float onef[2] = {1, 0}, zerof[2] = {0, 0};
  static const double one[2] = {1, 0}, zero[2] = {0, 0};
  const int single = x->type == EIN_F32 || x->type == EIN_C64;
  const void *a = alpha != NULL ? alpha : single ? (const void *)onef : (const void *)one;
  const void *b = single ? (const void *)zerof : (const void *)zero;
  const int first = g->turned[2] ? 0 : 1, second = 1 - first;  // whose rows are the output's
  int op[2];
  for (int s = 0; s < 2; s++)
    op[s] = g->turned[s] == g->turned[2] ? 0 : g->conj[s] ? 2 : 1;
  int (*fn) EINI_CUDA_GEMM = x->type == EIN_F32 ? c->api.gemm_s : x->type == EIN_F64 ? c->api.gemm_d
                             : x->type == EIN_C64 ? c->api.gemm_c : c->api.gemm_z;
  const int code = fn(c->blas, op[first], op[second], (int)(first == 0 ? g->m : g->n),
                      (int)(first == 0 ? g->n : g->m), (int)g->k, a, x->base[first],
                      (int)g->ld[first], g->step[first], x->base[second], (int)g->ld[second],
                      g->step[second], b, x->base[x->out], (int)g->ld[2], g->step[2],
                      (int)g->batch);
  return eini_cuda_gemm_status(c, code);
}

// Element b of the batch.
static eini_cuda_nest eini_cuda_gemm_one(const eini_cuda_nest *x, int64_t b) {
  eini_cuda_nest y = *x;
  for (int i = x->axes[1] - 1; i >= x->axes[0]; i--) {
    for (int s = 0; s < x->nstream; s++)
      y.base[s] = (char *)((uintptr_t)y.base[s] +
                           (uintptr_t)(b % x->extent[i] * x->used[s][i] * x->size[s]));
    b /= x->extent[i];
  }
  return y;
}

// All of the batch in one call, whose addresses go to the device before.
static ein_status eini_cuda_gemm_grouped(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_gemm *g, const void *alpha) {
  const int first = g->turned[2] ? 0 : 1, second = 1 - first, count = (int)g->batch;
  const int m = (int)(first == 0 ? g->m : g->n), n = (int)(first == 0 ? g->n : g->m);
  const int k = (int)g->k, ld[3] = {(int)g->ld[first], (int)g->ld[second], (int)g->ld[2]};
  const int op[2] = {g->turned[first] != g->turned[2], g->turned[second] != g->turned[2]};
  const size_t bytes = (size_t)count * 3 * sizeof(uint64_t);
  const float onef = 1, zerof = 0;
  const double one = 1, zero = 0;
  uint64_t at = 0;
  uint64_t *list = (uint64_t *)c->al.alloc_fn(bytes, 64, c->al.user);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int b = 0; b < count; b++) {
    const eini_cuda_nest y = eini_cuda_gemm_one(x, b);
    list[b] = (uint64_t)(uintptr_t)y.base[first];
    list[count + b] = (uint64_t)(uintptr_t)y.base[second];
    list[2 * count + b] = (uint64_t)(uintptr_t)y.base[x->out];
  }
  eini_cuda_walk w = eini_cuda_walk_bytes((char *)list, bytes);
  ein_status st = eini_cuda_take(c, bytes, &at);
  if (st == EIN_OK) st = eini_cuda_upload(c, &w, at);
  if (st == EIN_OK) st = eini_cuda_join(c);
  c->al.free_fn(list, bytes, c->al.user);
  const size_t third = (size_t)count * sizeof(uint64_t);
  int code = 0;
  if (st == EIN_OK && x->type == EIN_F32)
    code = c->api.grouped_s(c->blas, &op[0], &op[1], &m, &n, &k,
                            alpha != NULL ? (const float *)alpha : &onef,
                            (const float *const *)(uintptr_t)at, &ld[0],
                            (const float *const *)(uintptr_t)(at + third), &ld[1], &zerof,
                            (float *const *)(uintptr_t)(at + 2 * third), &ld[2], 1, &count);
  else if (st == EIN_OK)
    code = c->api.grouped_d(c->blas, &op[0], &op[1], &m, &n, &k,
                            alpha != NULL ? (const double *)alpha : &one,
                            (const double *const *)(uintptr_t)at, &ld[0],
                            (const double *const *)(uintptr_t)(at + third), &ld[1], &zero,
                            (double *const *)(uintptr_t)(at + 2 * third), &ld[2], 1, &count);
  if (st == EIN_OK) st = eini_cuda_gemm_status(c, code);
  if (at != 0) eini_cuda_drop(c, at);
  return st;
}

// Can the batch be one call? Its addresses are copied, which is not captured.
static int eini_cuda_gemm_groups(const ein_cuda *c, const eini_cuda_nest *x) {
  return c->api.grouped_s != NULL && (x->type == EIN_F32 || x->type == EIN_F64);
}

static ein_status eini_cuda_gemm_run(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_gemm *g,
                                     const void *alpha) {
  if (!g->apart) return eini_cuda_gemm_strided(c, x, g, alpha);
  if (eini_cuda_gemm_groups(c, x) && !eini_cuda_captured(c))
    return eini_cuda_gemm_grouped(c, x, g, alpha);
  eini_cuda_gemm each = *g;
  each.batch = 1;
  each.step[0] = each.step[1] = each.step[2] = 0;
  for (int64_t b = 0; b < g->batch; b++) {
    const eini_cuda_nest y = eini_cuda_gemm_one(x, b);
    EINI_TRY(eini_cuda_gemm_strided(c, &y, &each, alpha));
  }
  return EIN_OK;
}

// ================================================================================================
// >>cuda-lt  products with a store, of cuBLASLt
// Takes a nest; says whether its store is relu(alpha * fold + beta * C + bias), or less, and calls.
// ================================================================================================

// A store as cuBLASLt has it: streams of C and the bias, or -1. What scales may be params.
typedef struct eini_cuda_lt {
  eini_cuda_gemm g;
  int c, bias, relu;
  int scaled;                    // alpha and beta are the contraction's own
  int64_t c_ld, c_step, bias_step;
  const ein_fill *alpha, *beta;  // NULL: 1
} eini_cuda_lt;

// Is a side one operand, converted at most?
static int eini_cuda_as_stored(const ein_side *s) {
  return s->nop == 1 && s->code->nstep == 1 && s->code->step[0].op == EIN_OP_OPERAND;
}

// The step that makes what a later one (NULL: the last) finds in a register, or NULL.
static const ein_step *eini_cuda_step_of(const ein_code *k, int reg, const ein_step *later) {
  const ein_step *s = later == NULL ? k->step + k->nstep : later;
  while (s > k->step)
    if ((--s)->dst == reg) return s;
  return NULL;
}
static const ein_fill *eini_cuda_fill_of(const ein_code *k, int reg) {
  for (int i = 0; i < k->nfill; i++)
    if (k->fill[i].reg == reg) return &k->fill[i];
  return NULL;
}
static int eini_cuda_is_zero(const ein_fill *f) { return f != NULL && f->param < 0 && f->re == 0; }

// A term of the sum: the fold or an extra, scaled at most. 0: something else, or one too many.
static int eini_cuda_lt_term(const eini_cuda_nest *x, const ein_code *k, const ein_step *s,
                             int *fold, eini_cuda_lt *t) {
  const ein_fill *by = NULL;
  if (s != NULL && s->op == EIN_OP_MUL) {
    by = eini_cuda_fill_of(k, s->a);
    const int other = by != NULL ? s->b : s->a;
    if (by == NULL) by = eini_cuda_fill_of(k, s->b);
    s = by == NULL ? NULL : eini_cuda_step_of(k, other, s);
  }
  if (s == NULL || s->op != EIN_OP_OPERAND || s->type != (unsigned char)x->type ||
      (by != NULL && by->type != s->type))
    return 0;
  if (s->a == 0) {
    t->alpha = by;
    return (*fold)++ == 0;
  }
  const int stream = x->extra + s->a - 1;
  if (x->dtype[stream] != x->dtype[x->out]) return 0;
  if (by == NULL && t->bias < 0) {  // if it is one: else it is C
    const int columns = t->g.turned[2] ? 2 : 1;
    const eini_cuda_groups l = eini_cuda_groups_of(x, t->g.peel);
    t->bias_step = eini_cuda_line(x, stream, l.from[0], l.to[0]);
    if (eini_cuda_line(x, stream, l.from[columns], l.to[columns]) == 0 &&
        eini_cuda_line(x, stream, l.from[3 - columns], l.to[3 - columns]) == 1 &&
        t->bias_step >= 0) {
      t->bias = stream;
      return 1;
    }
  }
  if (t->c >= 0) return 0;
  t->c = stream;
  t->beta = by;
  return 1;
}

// The sum's terms one after another; 0: it is no such sum.
static int eini_cuda_lt_sum(const eini_cuda_nest *x, const ein_code *k, const ein_step *s,
                            eini_cuda_lt *t) {
  int fold = 0;
  for (int left = 3; left > 0 && s != NULL && s->op == EIN_OP_ADD; left--) {
    const ein_step *a = eini_cuda_step_of(k, s->a, s), *b = eini_cuda_step_of(k, s->b, s);
    const int first = a != NULL && a->op == EIN_OP_ADD;  // it goes on there
    if (!eini_cuda_lt_term(x, k, first ? b : a, &fold, t)) return 0;
    s = first ? a : b;
  }
  return eini_cuda_lt_term(x, k, s, &fold, t) && fold == 1;
}

static int eini_cuda_lt_store(const eini_cuda_nest *x, const ein_contract *of, eini_cuda_lt *t) {
  const ein_code *k = of->store;
  t->c = t->bias = -1;
  if (of->plain_out || k == NULL) return 1;
  if (k->type != (unsigned char)x->type) return 0;
  const ein_step *s = eini_cuda_step_of(k, k->result, NULL);
  if (s != NULL && s->op == EIN_OP_ROUNDTO && s->round == x->dtype[x->out])
    s = eini_cuda_step_of(k, s->a, s);
  if (s != NULL && s->op == EIN_OP_RELU) {
    t->relu = 1;
    s = eini_cuda_step_of(k, s->a, s);
  } else if (s != NULL && s->op == EIN_OP_MAX) {
    const int second = eini_cuda_is_zero(eini_cuda_fill_of(k, s->b));
    t->relu = second || eini_cuda_is_zero(eini_cuda_fill_of(k, s->a));
    if (t->relu) s = eini_cuda_step_of(k, second ? s->a : s->b, s);
  }
  if (!eini_cuda_lt_sum(x, k, s, t)) {
    if (!of->scaled) return 0;
    t->relu = 0;
    t->scaled = 1;
    t->bias = -1;
    t->c = of->nextra > 0 ? x->extra : -1;
  }
  if (t->c < 0) return 1;
  int turned;
  const eini_cuda_groups l = eini_cuda_groups_of(x, t->g.peel);
  t->c_step = eini_cuda_line(x, t->c, l.from[0], l.to[0]);
  const int64_t near = t->g.turned[2] ? eini_cuda_line(x, t->c, l.from[1], l.to[1])
                                      : eini_cuda_line(x, t->c, l.from[2], l.to[2]);
  return near == 1 && t->c_step >= 0 &&
         eini_cuda_matrix(x, &l, t->c, 1, 2, &t->c_ld, &turned) && turned == t->g.turned[2];
}

// What cuBLASLt calls a dtype; -1: it is not used for it.
static int eini_cuda_lt_type(ein_dtype t) {
  return t == EIN_F32 ? 0 : t == EIN_F64 ? 1 : t == EIN_F16 ? 2 : t == EIN_BF16 ? 14 : -1;
}

static ein_status eini_cuda_lt_status(ein_cuda *c, int code) {
  if (code == 0) return EIN_OK;
  snprintf(c->why, sizeof c->why, "cuBLASLt fails (%d)", code);
  return code == 3 ? EIN_ERR_NO_MEMORY : EIN_ERR_INTERNAL;
}

// Descriptions of a product and its matrices, A and B as cuBLAS counts, C, D.
typedef struct eini_cuda_lt_call {
  void *of, *matrix[4], *wish;
} eini_cuda_lt_call;

static void eini_cuda_lt_end(ein_cuda *c, eini_cuda_lt_call *d) {
  for (int i = 0; i < 4; i++)
    if (d->matrix[i] != NULL) (void)c->api.lt_matrix_end(d->matrix[i]);
  if (d->wish != NULL) (void)c->api.lt_wish_end(d->wish);
  if (d->of != NULL) (void)c->api.lt_end(d->of);
}

static int eini_cuda_lt_matrix(ein_cuda *c, int type, int64_t rows, int64_t cols, int64_t ld,
                               int64_t batch, int64_t step, void **to) {
  const int32_t n = (int32_t)batch;
  int code = c->api.lt_matrix(to, type, (uint64_t)rows, (uint64_t)cols, ld);
  if (code == 0 && n > 1) code = c->api.lt_matrix_set(*to, 5, &n, sizeof n);
  if (code == 0 && n > 1) code = c->api.lt_matrix_set(*to, 6, &step, sizeof step);
  return code;
}

// cuBLAS's status. Numbers are those of cublasLt.h: transposes 3 and 4, epilogue 7, the bias 8, its
// step 10.
static int eini_cuda_lt_describe(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_lt *t,
                                 eini_cuda_lt_call *d) {
  const eini_cuda_gemm *g = &t->g;
  const int first = g->turned[2] ? 0 : 1;
  const int64_t rows = first == 0 ? g->m : g->n, cols = first == 0 ? g->n : g->m;
  const int in = eini_cuda_lt_type((ein_dtype)x->dtype[0]);
  const int out = eini_cuda_lt_type((ein_dtype)x->dtype[x->out]);
  const int wide = x->type == EIN_F64, ends = (t->relu ? 2 : 0) | (t->bias >= 0 ? 4 : 0);
  const int epilogue = ends == 0 ? 1 : ends;
  memset(d, 0, sizeof *d);
  int code = c->api.lt_begin(&d->of, wide ? 70 : c->tf32 && in == 0 ? 77 : 68, wide ? 1 : 0);
  for (int i = 0; i < 2 && code == 0; i++) {
    const int s = i == 0 ? first : 1 - first, op = g->turned[s] == g->turned[2] ? 0 : 1;
    const int64_t near = i == 0 ? rows : g->k, far = i == 0 ? g->k : cols;
    code = c->api.lt_set(d->of, 3 + i, &op, sizeof op);
    if (code == 0)
      code = eini_cuda_lt_matrix(c, in, op ? far : near, op ? near : far, g->ld[s], g->batch,
                                 g->step[s], &d->matrix[i]);
  }
  if (code == 0) code = c->api.lt_set(d->of, 7, &epilogue, sizeof epilogue);
  if (code == 0 && t->bias >= 0) {
    const void *at = x->base[t->bias];
    code = c->api.lt_set(d->of, 8, &at, sizeof at);
    if (code == 0 && g->batch > 1)
      code = c->api.lt_set(d->of, 10, &t->bias_step, sizeof t->bias_step);
  }
  if (code == 0)
    code = eini_cuda_lt_matrix(c, out, rows, cols, t->c >= 0 ? t->c_ld : g->ld[2], g->batch,
                               t->c >= 0 ? t->c_step : g->step[2], &d->matrix[2]);
  if (code == 0)
    code = eini_cuda_lt_matrix(c, out, rows, cols, g->ld[2], g->batch, g->step[2], &d->matrix[3]);
  return code;
}

// Has cuBLASLt a kernel for it? It is asked, for operands that are aligned as elements are.
static int eini_cuda_lt_known(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_lt *t) {
  struct { uint64_t algorithm[8]; size_t workspace; int state; float waves; int rest[4]; } one;
  const uint64_t room = 0;
  const uint32_t in = x->size[0], out = x->size[x->out];
  eini_cuda_lt_call d;
  int n = 0;
  if (eini_cuda_enter(c) != EIN_OK) return 0;
  int code = eini_cuda_lt_describe(c, x, t, &d);
  if (code == 0) code = c->api.lt_wish(&d.wish);
  if (code == 0) code = c->api.lt_wish_set(d.wish, 1, &room, sizeof room);
  for (int i = 0; i < 4 && code == 0; i++)
    code = c->api.lt_wish_set(d.wish, 5 + i, i < 2 ? &in : &out, sizeof in);
  memset(&one, 0, sizeof one);
  if (code == 0)
    code = c->api.lt_find(c->lt, d.of, d.matrix[0], d.matrix[1], d.matrix[2], d.matrix[3], d.wish,
                          1, &one, &n);
  eini_cuda_lt_end(c, &d);
  (void)eini_cuda_exit(c, EIN_OK);
  return code == 0 && n > 0 && one.state == 0;
}

// Is the contraction one of cuBLASLt's that cuBLAS alone does not have?
static int eini_cuda_lt_of(ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                           eini_cuda_lt *t) {
  eini_cuda_gemm plain;
  const ein_dtype in = (ein_dtype)x->dtype[0], out = (ein_dtype)x->dtype[x->out];
  memset(t, 0, sizeof *t);
  if (c->lt == NULL || of->pair != EIN_PAIR_SUM_MUL || of->p.nop != 1 || of->q.nop != 1 ||
      !eini_cuda_as_stored(&of->p) || !eini_cuda_as_stored(&of->q) || x->dtype[1] != x->dtype[0] ||
      (x->type != EIN_F32 && x->type != EIN_F64) || eini_cuda_lt_type(in) < 0 ||
      eini_cuda_lt_type(out) < 0 || (out != in && out != x->type) ||
      (in != x->type && (in == EIN_F32 || in == EIN_F64)) || eini_cuda_gemm_of(c, x, of, &plain))
    return 0;
  return eini_cuda_gemm_peels(x, &t->g) && !t->g.apart && eini_cuda_lt_store(x, of, t);
}

// What a factor of the store is, in the compute dtype.
static const void *eini_cuda_lt_factor(const eini_cuda_nest *x, const ein_fill *f, double none,
                                       double *wide, float *single) {
  *wide = f == NULL ? none : f->param >= 0 ? x->param[f->param].re : f->re;
  *single = (float)*wide;
  return x->type == EIN_F64 ? (const void *)wide : (const void *)single;
}

// cuBLASLt picks the kernel by where operands lie, and remembers it.
static ein_status eini_cuda_lt_run(ein_cuda *c, const eini_cuda_nest *x, const ein_contract *of,
                                   const eini_cuda_lt *t) {
  const int first = t->g.turned[2] ? 0 : 1, other = t->c >= 0 && !t->scaled;
  double wide[2];
  float single[2];
  eini_cuda_lt_call d;
  const void *alpha = eini_cuda_lt_factor(x, t->alpha, 1, &wide[0], &single[0]);
  const void *beta = eini_cuda_lt_factor(x, t->beta, other, &wide[1], &single[1]);
  if (t->scaled && of->alpha != NULL) alpha = of->alpha;
  if (t->scaled && of->beta != NULL) beta = of->beta;
  int code = eini_cuda_lt_describe(c, x, t, &d);
  if (code == 0)
    code = c->api.lt_run(c->lt, d.of, alpha, x->base[first], d.matrix[0], x->base[1 - first],
                         d.matrix[1], beta, x->base[t->c >= 0 ? t->c : x->out], d.matrix[2],
                         x->base[x->out], d.matrix[3], NULL, NULL, 0, c->stream);
  eini_cuda_lt_end(c, &d);
  c->counts.gemms++;
  return eini_cuda_lt_status(c, code);
}

// ================================================================================================
// >>cuda-ways  which kernel runs, and how fast
// Takes a nest; gives the ways there are with predicted seconds, the copies of host operands
// counted, and runs the one that was chosen. All that is decided is in ein_choice.state.
// ================================================================================================

typedef enum eini_cuda_way_id {
  EINI_CUDA_ELEMENTS, EINI_CUDA_TURN, EINI_CUDA_DOWN, EINI_CUDA_ACROSS, EINI_CUDA_TILES,
  EINI_CUDA_PARTED, EINI_CUDA_CORES, EINI_CUDA_CORES_PARTED, EINI_CUDA_BLAS, EINI_CUDA_LT,
  EINI_CUDA_WAYS
} eini_cuda_way_id;

static int eini_cuda_is_tiled(int id) {
  return id >= EINI_CUDA_TILES && id <= EINI_CUDA_CORES_PARTED;
}
static int eini_cuda_is_parted(int id) {
  return id == EINI_CUDA_PARTED || id == EINI_CUDA_CORES_PARTED;
}

typedef struct eini_cuda_way {
  int id;
  int32_t packed;                // a bit for each stream
  eini_cuda_kernel *kernel, *ends;
  int64_t splits, chunk;
  eini_cuda_shape shape;
  int a, b;                      // of a turn
  int64_t calls;                 // of cuBLAS for products of several places; 0: one
} eini_cuda_way;

// What is assumed of machines that nobody calibrated. NVIDIA's guides give about these for a
// launch, a PCIe 4 link, and kernels like these.
static const double eini_cuda_launch_seconds = 6e-6, eini_cuda_copy_seconds = 1e-5;
static const double eini_cuda_link = 2.2e10;        // bytes per second between host and device
static const double eini_cuda_share = 0.8;          // of the bandwidth that a streaming kernel has
static const double eini_cuda_tile_share = 0.4;     // of the peak, and cuBLAS
static const double eini_cuda_blas_share = 0.8;
static const double eini_cuda_cores_share = 0.35;   // of what tensor cores do at best
static const double eini_cuda_cached = 3;           // times the bandwidth of memory, of its cache
static const double eini_cuda_load_flops = 8;       // operations in the time of a load
static const double eini_cuda_busy = 1024;          // threads of a multiprocessor that is busy
static const double eini_cuda_apart = 4;            // how much more a gathered read moves

// What the device's tensor cores have for sums of products of type `type` whose factors are stored
// as p and q (EIN_NONE: are not as they are stored). f32 is rounded where that was asked for.
static int eini_cuda_cores_for(const ein_cuda *c, ein_dtype type, ein_dtype p, ein_dtype q) {
  const int arch = 10 * c->device.major + c->device.minor;
  if (arch < 75) return EINI_CUDA_CORES_NONE;
  if (type == EIN_F64) return arch < 80 ? EINI_CUDA_CORES_NONE : EINI_CUDA_CORES_F64;
  if (type != EIN_F32) return EINI_CUDA_CORES_NONE;
  if (p == q && p == EIN_F16) return arch < 80 ? EINI_CUDA_CORES_F16_8 : EINI_CUDA_CORES_F16;
  if (p == q && p == EIN_BF16 && arch >= 80) return EINI_CUDA_CORES_BF16;
  return c->tf32 && arch >= 80 ? EINI_CUDA_CORES_TF32 : EINI_CUDA_CORES_NONE;
}

static int eini_cuda_cores_of(const ein_cuda *c, const ein_contract *of) {
  const int stored = eini_cuda_as_stored(&of->p) && eini_cuda_as_stored(&of->q);
  if (of->pair != EIN_PAIR_SUM_MUL) return EINI_CUDA_CORES_NONE;
  return eini_cuda_cores_for(c, of->type, stored ? of->p.dtype[0] : EIN_NONE,
                             stored ? of->q.dtype[0] : EIN_NONE);
}

static int eini_cuda_has(const eini_cuda_nest *x, int id, const ein_contract *c, ein_cuda *cuda,
                         eini_cuda_way *w) {
  const int folds = x->fold != EIN_FOLD_NONE, product = x->kind == EINI_CUDA_CONTRACT;
  eini_cuda_turn u;
  eini_cuda_gemm g;
  eini_cuda_lt lt;
  switch (id) {
    case EINI_CUDA_ELEMENTS: return !folds;
    case EINI_CUDA_TURN:
      if (!eini_cuda_turns(x, &u)) return 0;
      w->a = u.a;
      w->b = u.b;
      return 1;
    case EINI_CUDA_DOWN: case EINI_CUDA_ACROSS: return folds;
    case EINI_CUDA_TILES: case EINI_CUDA_PARTED: return product;
    case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED:
      w->shape.cores = product && c != NULL ? eini_cuda_cores_of(cuda, c) : EINI_CUDA_CORES_NONE;
      return w->shape.cores != EINI_CUDA_CORES_NONE;
    case EINI_CUDA_BLAS:
      if (!product || c == NULL || !eini_cuda_gemm_of(cuda, x, c, &g)) return 0;
      w->calls = !g.apart ? 0 : eini_cuda_gemm_groups(cuda, x) ? 1 : g.batch;
      return 1;
    default:
      return product && c != NULL && eini_cuda_lt_of(cuda, x, c, &lt) &&
             eini_cuda_lt_known(cuda, x, &lt);
  }
}

// Rows and columns of a thread by the extents; 16-byte values have half.
static void eini_cuda_shape_of(const ein_cuda *c, const eini_cuda_nest *x, eini_cuda_way *w) {
  const int64_t batch = eini_cuda_extent(x, 0, x->axes[1]);
  const int64_t m = eini_cuda_extent(x, x->axes[1], x->axes[2]);
  const int64_t n = eini_cuda_extent(x, x->axes[2], x->axes[3]);
  const int64_t k = eini_cuda_extent(x, x->axes[3], x->n);
  const int most = x->type == EIN_C128 ? 2 : 4;
  eini_cuda_shape *f = &w->shape;
  f->async = c->device.major >= 8;
  f->rows = m > 32 ? most : m > 16 ? 2 : 1;
  f->cols = n > 32 ? most : n > 16 ? 2 : 1;
  if (f->cores) {  // fragments have 16 rows, or 8: as many as leave each warp one
    const int wide = f->cores == EINI_CUDA_CORES_F64 ? 4 : 8;
    f->rows = m > 64 ? wide : 4;
    f->cols = n > 64 ? wide : n > 32 ? 4 : n > 16 ? 2 : 1;
  }
  for (int side = 0; side < 2; side++) {  // which neighbours are closer in the first operand
    const int s = side ? x->second : 0, last = x->axes[2 + side] - 1;
    if (s >= (side ? x->nop : x->second)) continue;
    const int64_t row = last < x->axes[1 + side] ? 0 : eini_abs64(x->used[s][last]);
    const int64_t by = x->n > x->axes[3] ? eini_abs64(x->used[s][x->n - 1]) : 0;
    f->along[side] = by != 0 && (row == 0 || by < row);
  }
  const double tiles = (double)batch * (double)eini_ceil_div(m, EINI_CUDA_SIDE * f->rows) *
                       (double)eini_ceil_div(n, EINI_CUDA_SIDE * f->cols);
  const double want = 2.0 * c->device.processors / tiles, deep = (double)k / 128;
  w->splits = 1;
  if (want > 1 && deep > 1) w->splits = (int64_t)fmin(ceil(want), ceil(deep));
  w->chunk = eini_up(eini_ceil_div(eini_max64(k, 1), w->splits), EINI_CUDA_DEPTH);
  w->splits = eini_ceil_div(k, w->chunk);
}

static double eini_cuda_blocks_of(const eini_cuda_nest *x, const eini_cuda_way *w) {
  const double free_points = (double)eini_cuda_extent(x, 0, x->nfree);
  double n = 1;
  switch (w->id) {
    case EINI_CUDA_ACROSS: return free_points;
    case EINI_CUDA_TURN:
      for (int i = 0; i < x->nfree; i++)
        n *= i == w->a || i == w->b ? ceil((double)x->extent[i] / EINI_CUDA_TILE)
                                    : (double)x->extent[i];
      return n;
    case EINI_CUDA_TILES: case EINI_CUDA_PARTED: case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED:
      n = (double)eini_cuda_extent(x, 0, x->axes[1]);
      n *= ceil((double)eini_cuda_extent(x, x->axes[1], x->axes[2]) /
                (EINI_CUDA_SIDE * w->shape.rows));
      n *= ceil((double)eini_cuda_extent(x, x->axes[2], x->axes[3]) /
                (EINI_CUDA_SIDE * w->shape.cols));
      return n * (double)(eini_cuda_is_parted(w->id) ? w->splits : 1);
    default: return ceil(free_points / EINI_CUDA_THREADS);
  }
}

// Bytes that move in the device's memory: streams that neighbouring threads read far apart count
// more. along: the loop that neighbours differ in.
static double eini_cuda_traffic(const eini_cuda_nest *x, int along, const eini_cuda_turn *u) {
  double sum = 0;
  for (int s = 0; s < x->nstream; s++) {
    if (x->value[s]) continue;
    const int far = along >= 0 && eini_abs64(x->used[s][along]) > 1 && !(u != NULL && u->turned[s]);
    sum += (double)eini_cuda_points(x, s) * x->size[s] * (far ? eini_cuda_apart : 1);
  }
  return sum;
}

// What the device does, as it was measured (ein_rates.away, in this order, each per second) or as
// it is assumed.
typedef struct eini_cuda_speeds {
  double copies, link;           // between host and device, bytes
  double launches, stream;       // bytes of a streaming kernel
  double tiles[2], cores[5], blas[2];  // operations, of f32 and f64, and by eini_cuda_cores - 1
} eini_cuda_speeds;

static eini_cuda_speeds eini_cuda_speeds_of(const ein_cuda *c, const ein_rates *r) {
  eini_cuda_speeds v;
  if (r != NULL && r->away[0] > 0) {
    memcpy(&v, r->away, sizeof v);
    return v;
  }
  v.copies = 1 / eini_cuda_copy_seconds;
  v.link = eini_cuda_link;
  v.launches = 1 / eini_cuda_launch_seconds;
  v.stream = eini_cuda_share * c->device.bandwidth;
  for (int wide = 0; wide < 2; wide++) {
    const double peak = wide ? c->device.flops_f64 : c->device.flops_f32;
    v.tiles[wide] = eini_cuda_tile_share * peak;
    v.blas[wide] = eini_cuda_blas_share * peak;
  }
  for (int i = 0; i < 5; i++) v.cores[i] = eini_cuda_cores_share * c->device.flops_cores[1 + i];
  return v;
}

// Seconds on the device.
static double eini_cuda_seconds(const ein_cuda *c, const eini_cuda_nest *x,
                                const eini_cuda_way *w) {
  const double all = (double)eini_cuda_extent(x, 0, x->nfree) *
                     (double)eini_cuda_extent(x, x->nfree, x->n);
  const int single = x->type == EIN_F32 || x->type == EIN_C64 || x->type == EIN_I32;
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x->rates);
  const double planes = eini_cuda_complex(x->type) ? 4 : 1, wide = c->device.processors;
  const double blocks = eini_cuda_blocks_of(x, w), full = fmin(1, blocks / wide);
  double bytes = 0, flops = 0, speed = single ? c->device.flops_f32 : c->device.flops_f64;
  eini_cuda_turn u;
  switch (w->id) {
    case EINI_CUDA_TURN:
      (void)eini_cuda_turns(x, &u);
      bytes = eini_cuda_traffic(x, w->b, &u);
      break;
    case EINI_CUDA_ELEMENTS: case EINI_CUDA_DOWN:
      bytes = eini_cuda_traffic(x, x->nfree - 1, NULL);
      flops = 4 * all * planes;
      break;
    case EINI_CUDA_ACROSS:
      bytes = eini_cuda_traffic(x, x->n - 1, NULL);
      flops = 4 * planes * (all + 16.0 * EINI_CUDA_THREADS * blocks);
      break;
    case EINI_CUDA_BLAS: speed = v.blas[!single]; break;
    case EINI_CUDA_LT:
      speed = v.blas[!single];
      if (x->size[0] == 2)
        speed = eini_cuda_blas_share / eini_cuda_cores_share * v.cores[EINI_CUDA_CORES_F16 - 1];
      break;
    case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED: speed = v.cores[w->shape.cores - 1]; break;
    default: speed = v.tiles[!single]; break;
  }
  if (w->id >= EINI_CUDA_TILES) {
    bytes = eini_cuda_traffic(x, -1, NULL);
    flops = 2 * planes * all;
    if (w->id < EINI_CUDA_BLAS)  // tiles that are not full
      flops = 2 * planes * blocks * (double)(EINI_CUDA_SIDE * EINI_CUDA_SIDE) * w->shape.rows *
              w->shape.cols * (double)(eini_cuda_is_parted(w->id)
                                           ? w->chunk : eini_cuda_extent(x, x->axes[3], x->n));
  } else if (x->kind == EINI_CUDA_CONTRACT) {
    bytes += 0.1 * all * x->size[0];  // read again, mostly from caches
  }
  const double launches = eini_cuda_is_parted(w->id) ? 2 : fmax(1, (double)w->calls);
  const double busy = w->id >= EINI_CUDA_BLAS ? 1 : full;
  return launches / v.launches + fmax(bytes / v.stream, flops / speed) / busy;
}

// Bytes of operands that are staged, of *n of them.
static double eini_cuda_staged(const eini_cuda_nest *x, int *n) {
  double bytes = 0;
  int64_t low;
  *n = 0;
  for (int s = 0; s < x->nstream; s++) {
    if (x->value[s] || x->away[s]) continue;
    bytes += x->size[s] * (double)(x->packed[s] ? eini_cuda_points(x, s)
                                                : eini_cuda_hull(x, 0, s, &low));
    ++*n;
  }
  return bytes;
}

// Bytes that the parts of a contraction take.
static double eini_cuda_parts_bytes(const eini_cuda_nest *x, const eini_cuda_way *w) {
  return !eini_cuda_is_parted(w->id) ? 0 : (double)eini_cuda_extent(x, 0, x->nfree) *
                                             (double)w->splits * (double)ein_dtype_size(x->type);
}

// ---- choosing ----

// The nest that folds what the parts of a contraction left: a loop over parts behind the free ones.
static int eini_cuda_parts(const eini_cuda_nest *x, int64_t splits, eini_cuda_nest *y) {
  const int shift = x->extra - 1;
  int64_t step = 1;
  memset(y, 0, sizeof *y);
  if (x->nfree + 1 > EINI_CUDA_LOOPS) return 0;
  y->kind = EINI_CUDA_PARTS;
  y->n = x->nfree + 1;
  y->nfree = x->nfree;
  y->nop = y->extra = 1;
  y->extra_value = x->extra_value - shift;
  y->nstream = x->nstream - shift;
  y->out = y->nstream - 1;
  y->dtype[0] = (unsigned char)x->type;
  y->size[0] = (unsigned char)ein_dtype_size(x->type);
  y->extent[x->nfree] = splits;
  for (int i = x->nfree - 1; i >= 0; i--) {
    y->extent[i] = x->extent[i];
    y->stride[0][i] = step;
    step *= x->extent[i];
  }
  y->stride[0][x->nfree] = step;
  for (int s = 1; s < y->nstream; s++) {
    y->dtype[s] = x->dtype[s + shift];
    y->size[s] = x->size[s + shift];
    y->base[s] = x->base[s + shift];
    for (int i = 0; i < x->nfree; i++) y->stride[s][i] = x->used[s + shift][i];
  }
  y->store = x->store;
  y->type = y->result = x->type;
  y->fold = x->fold;
  y->count = 1;
  y->param = x->param;
  eini_cuda_strides(y);
  return 1;
}

// The source of a way; NULL: it cannot be said.
static eini_cuda_kernel *eini_cuda_write(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_way *w) {
  eini_cuda_writer t;
  eini_cuda_turn u;
  eini_cuda_kernel *k = NULL;
  if (!eini_cuda_writer_begin(c, &t)) return NULL;
  eini_cuda_writer_of(&t, x);
  eini_cuda_say_helpers(&t);
  eini_cuda_say_args(&t);
  int said = eini_cuda_say_fold(&t);
  if (said && w->id == EINI_CUDA_ELEMENTS) eini_cuda_say_elements(&t);
  else if (said && w->id == EINI_CUDA_DOWN) eini_cuda_say_down(&t);
  else if (said && w->id == EINI_CUDA_ACROSS) eini_cuda_say_across(&t);
  else if (said && w->id == EINI_CUDA_TURN) said = eini_cuda_turns(x, &u);
  else if (said) eini_cuda_say_tiles(&t, &w->shape);
  if (said && w->id == EINI_CUDA_TURN) eini_cuda_say_turn(&t, &u);
  if (said) k = eini_cuda_kernel_of(c, &t);
  eini_cuda_writer_end(c, &t);
  return k;
}

// Makes a way ready to run; 0: it cannot.
static int eini_cuda_make(ein_cuda *c, const eini_cuda_nest *x, eini_cuda_way *w) {
  eini_cuda_nest ends;
  eini_cuda_way fold;
  if (w->id >= EINI_CUDA_BLAS) return 1;
  if (eini_cuda_blocks_of(x, w) > INT32_MAX) return 0;
  w->shape.split = eini_cuda_is_parted(w->id);
  w->kernel = eini_cuda_write(c, x, w);
  if (w->kernel == NULL || !w->shape.split) return w->kernel != NULL;
  memset(&fold, 0, sizeof fold);
  fold.id = EINI_CUDA_DOWN;
  if (!eini_cuda_parts(x, w->splits, &ends)) return 0;
  w->ends = eini_cuda_write(c, &ends, &fold);
  return w->ends != NULL;
}

// The nth way, or the fastest; 0: there is none.
static int eini_cuda_plan(ein_cuda *c, eini_cuda_nest *x, const ein_contract *of, int nth,
                          ein_choice *h) {
  static const char *const names[] = {"elements", "turn", "down", "across", "tiles", "parts",
                                      "cores", "cores parts", "gemm", "lt"};
  eini_cuda_way best, w;
  double least = 0;
  int found = 0, ways = 0;
  if (!eini_cuda_stage(x)) return 0;
  eini_cuda_strides(x);
  memset(&best, 0, sizeof best);
  for (int id = 0; id < EINI_CUDA_WAYS; id++) {
    memset(&w, 0, sizeof w);
    w.id = id;
    if (!eini_cuda_has(x, id, of, c, &w)) continue;
    if (eini_cuda_is_tiled(id)) eini_cuda_shape_of(c, x, &w);
    if (eini_cuda_is_parted(id) && w.splits < 2) continue;
    if (id == EINI_CUDA_TILES || id == EINI_CUDA_CORES) {
      w.splits = 1;
      w.chunk = eini_up(eini_cuda_extent(x, x->axes[3], x->n), EINI_CUDA_DEPTH);
    }
    const double seconds = eini_cuda_seconds(c, x, &w);
    if (nth < 0 ? !found || seconds < least : ways == nth) best = w, least = seconds, found = 1;
    ways++;
  }
  if (!found || !eini_cuda_make(c, x, &best)) return 0;
  for (int s = 0; s < x->nstream; s++) best.packed |= (int32_t)x->packed[s] << s;
  memset(h, 0, sizeof *h);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  int staged;
  const double bytes = eini_cuda_staged(x, &staged);
  const double room = bytes + eini_cuda_parts_bytes(x, &best);
  h->away = room < 9e18 ? (size_t)room : SIZE_MAX / 4;
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x->rates);
  h->seconds = c->only == 1 ? 0 : least + staged / v.copies + bytes / v.link;
  snprintf(h->variant, sizeof h->variant, "%s", best.calls > 0 ? "grouped" : names[best.id]);
  memcpy(h->state, &best, sizeof best);
  return 1;
}

// ---- running ----

static ein_status eini_cuda_go(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                               eini_cuda_kernel *k, const void *part) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_writer t;
  const int64_t z[EINI_CUDA_NUMBERS] = {eini_cuda_extent(x, 0, x->nfree),
                                        eini_cuda_extent(x, x->nfree, x->n), w->chunk, w->splits};
  double blocks = eini_cuda_blocks_of(x, w);
  if (w->id < EINI_CUDA_TILES && w->id != EINI_CUDA_TURN)
    blocks = fmin(blocks, 32.0 * c->device.processors);
  if (!(blocks <= INT32_MAX)) return EIN_ERR_TOO_LARGE;
  memset(&t, 0, sizeof t);
  eini_cuda_writer_of(&t, x);
  (void)eini_cuda_arguments(&t, z, part, word);
  return eini_cuda_launch(c, k, (int64_t)blocks, 0, word);
}

// A contraction in parts: each leaves its folds, then these are folded and stored.
static ein_status eini_cuda_go_parts(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w) {
  eini_cuda_nest ends;
  eini_cuda_way fold = *w;
  uint64_t part = 0;
  fold.id = EINI_CUDA_DOWN;
  if (!eini_cuda_parts(x, w->splits, &ends)) return EIN_ERR_INTERNAL;
  const double bytes = eini_cuda_parts_bytes(x, w);
  if (!(bytes < 9e18)) return EIN_ERR_TOO_LARGE;
  EINI_TRY(eini_cuda_take(c, (size_t)bytes, &part));
  ends.base[0] = (char *)(uintptr_t)part;
  ein_status st = eini_cuda_captured(c) ? EIN_OK : eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_go(c, x, w, w->kernel, ends.base[0]);
  if (st == EIN_OK) st = eini_cuda_go(c, &ends, &fold, w->ends, NULL);
  eini_cuda_drop(c, part);
  return st;
}

static ein_status eini_cuda_start_way(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                                      const ein_contract *of) {
  eini_cuda_gemm g;
  eini_cuda_lt lt;
  if (eini_cuda_is_parted(w->id)) return eini_cuda_go_parts(c, x, w);
  if (w->id < EINI_CUDA_BLAS) return eini_cuda_go(c, x, w, w->kernel, NULL);
  if (w->id == EINI_CUDA_LT)
    return eini_cuda_lt_of(c, x, of, &lt) ? eini_cuda_lt_run(c, x, of, &lt) : EIN_ERR_INTERNAL;
  if (!eini_cuda_gemm_of(c, x, of, &g)) return EIN_ERR_INTERNAL;
  return eini_cuda_gemm_run(c, x, &g, of->scaled ? of->alpha : NULL);
}

// The same between two events. A kernel's compilation is not in between.
static ein_status eini_cuda_timed(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                                  const ein_contract *of) {
  if (w->kernel != NULL) EINI_TRY(eini_cuda_ready_kernel(c, w->kernel));
  if (w->ends != NULL) EINI_TRY(eini_cuda_ready_kernel(c, w->ends));
  EINI_TRY(eini_cuda_clock(c, 0));
  EINI_TRY(eini_cuda_start_way(c, x, w, of));
  return eini_cuda_clock(c, 1);
}

// Runs what was chosen. What lies on the host is staged; then it is done, else it may go on.
static ein_status eini_cuda_run(ein_cuda *c, eini_cuda_nest *x, const ein_contract *of,
                                const ein_choice *h) {
  eini_cuda_way w;
  eini_cuda_room room;
  memcpy(&w, h->state, sizeof w);
  for (int s = 0; s < x->nstream; s++) x->packed[s] = (unsigned char)(w.packed >> s & 1);
  eini_cuda_strides(x);
  if (w.kernel != NULL && (w.kernel = eini_cuda_kernel_here(c, w.kernel)) == NULL)
    return EIN_ERR_NO_MEMORY;
  if (w.ends != NULL && (w.ends = eini_cuda_kernel_here(c, w.ends)) == NULL)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_bring(c, x, &room);
  if (st == EIN_OK) st = eini_cuda_timed(c, x, &w, of);
  if (st == EIN_OK) st = eini_cuda_return(c, x, &room);
  eini_cuda_leave(c, &room);
  if (st != EIN_OK && !eini_cuda_captured(c))
    (void)c->api.stream_wait(c->stream);  // nothing of this call is under way
  return eini_cuda_exit(c, st);
}

// ================================================================================================
// >>cuda-groups  groups in one kernel
// Takes statements in blocks of common loops; gives a kernel whose blocks of threads run them one
// after another, what is between them in shared memory. Blocks of each shape are a launch.
// ================================================================================================

#define EINI_CUDA_STAGES 16

// What is remembered of a choice. lanes: threads that share a fold, by stage.
typedef struct eini_cuda_together {
  eini_cuda_kernel *kernel;
  int64_t blocks;
  size_t room, states;           // of shared memory, and from where states lie there
  unsigned char lanes[EINI_CUDA_STAGES];  // their logarithm
} eini_cuda_together;

// The nest of a stage in block 0; addresses of tensors that are the blocks' own count from theirs.
static int eini_cuda_of_stage(const ein_group *g, const ein_stage *s, eini_cuda_nest *x) {
  if (!eini_cuda_of_map(&s->map, x)) return 0;
  x->param = g->param;
  for (int k = 0; k < x->nstream; k++) {
    x->away[k] = 1;
    if (x->value[k]) x->at[k] = s->offset[k];
    if (x->value[k] || g->base == NULL) continue;
    const int64_t own = g->local[s->tensor[k]];
    x->base[k] = (char *)((own >= 0 ? (uintptr_t)own : (uintptr_t)g->base[s->tensor[k]]) +
                          (uintptr_t)s->offset[k]);
  }
  eini_cuda_strides(x);
  return 1;
}

// All of them; NULL: no memory, or one is not for kernels. Freed with eini_cuda_stages_end.
static eini_cuda_nest *eini_cuda_stages(ein_cuda *c, const ein_group *g) {
  const size_t bytes = (size_t)g->nstage * sizeof(eini_cuda_nest);
  if (g->nstage < 1 || g->nstage > EINI_CUDA_STAGES) return NULL;
  eini_cuda_nest *x = (eini_cuda_nest *)c->al.alloc_fn(bytes, 64, c->al.user);
  for (int k = 0; x != NULL && k < g->nstage; k++) {
    if (eini_cuda_of_stage(g, &g->stage[k], &x[k])) continue;
    c->al.free_fn(x, bytes, c->al.user);
    x = NULL;
  }
  return x;
}

static void eini_cuda_stages_end(ein_cuda *c, const ein_group *g, eini_cuda_nest *x) {
  c->al.free_fn(x, (size_t)g->nstage * sizeof *x, c->al.user);
}

// Threads that share a fold: as many as leave none idle, where there is enough to fold.
static int eini_cuda_lanes(const eini_cuda_nest *x) {
  const int64_t results = eini_cuda_extent(x, 0, x->nfree);
  const int64_t values = eini_cuda_extent(x, x->nfree, x->n);
  int log = 0;
  while (results << (log + 1) <= EINI_CUDA_THREADS && (int64_t)2 << log <= values) log++;
  return x->fold == EIN_FOLD_NONE ? 0 : log;
}

// Bytes of a state.
static size_t eini_cuda_state_bytes(const eini_cuda_nest *x) {
  const size_t scalars = x->fold == EIN_FOLD_VAR ? 3 : x->fold == EIN_FOLD_LOGSUMEXP ? 2 : 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN) return 16;  // with a position
  return ein_dtype_size(x->type) * scalars;
}

// Shared memory of a block: what is between stages, then states of threads that share a fold, whose
// place goes to *states.
static size_t eini_cuda_room_of(const ein_group *g, const eini_cuda_nest *x, size_t *states) {
  size_t most = 0;
  for (int k = 0; k < g->nstage; k++) {
    const size_t one = eini_cuda_state_bytes(&x[k]);
    if (eini_cuda_lanes(&x[k]) > 0 && one > most) most = one;
  }
  *states = (g->bytes + 63) / 64 * 64;
  return *states + most * EINI_CUDA_THREADS;
}

// ---- the source ----

static int eini_cuda_steps(const ein_group *g) {
  int n = 0;
  for (int k = 0; k < g->nstage; k++)
    for (int i = 0; i < g->stage[k].map.nstream * g->nloop; i++) n += g->stage[k].step[i] != 0;
  return n;
}

// Addresses and values of the block at hand. at: of the steps.
static void eini_cuda_say_places(eini_cuda_writer *w, const ein_group *g, int k, int *at) {
  const eini_cuda_nest *x = w->x;
  const ein_stage *s = &g->stage[k];
  eini_text *t = &w->t;
  for (int i = 0; i < x->nstream; i++) {
    const int own = !x->value[i] && g->local[s->tensor[i]] >= 0;
    if (x->value[i]) eini_say(t, "  const long long at%d = p.at[%d]", i, i);
    else if (own) eini_say(t, "  char *const b%d = ein_room + (long long)p.b[%d]", i, i);
    else eini_say(t, "  char *const b%d = p.b[%d]", i, i);
    for (int l = 0; l < g->nloop; l++)
      if (s->step[i * g->nloop + l] != 0) eini_say(t, " + g%d * u.t[%d]", l, (*at)++);
    eini_say(t, ";\n");
  }
}

// Elements go round the threads.
static void eini_cuda_say_plainly(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "";
  eini_text *t = &w->t;
  eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]%s; i += %d) {\n",
           w->along > 0 ? " * n" : "", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(t, "  }\n");
}

// Results go round groups of threads that share a fold; what follows stands where the first of them
// has it, in a.
static void eini_cuda_say_shared_folds(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  const char *free = w->along > 0 && w->along <= x->nfree ? " * n" : "";
  const char *more = w->along > x->nfree ? " * n" : "";
  char name[16] = "", at[16];
  eini_text *t = &w->t;
  eini_say(t, "  ein_state *const all = (ein_state *)(ein_room + p.z[3]);\n"
              "  const int lanes = (int)p.z[2], lane = EIN_TID & (lanes - 1);\n"
              "  for (ix i0 = 0; i0 < (ix)p.z[0]%s; i0 += %d / lanes) {\n"
              "  const ix full = i0 + EIN_TID / lanes, i = full < (ix)p.z[0]%s ? full : 0;\n",
           free, EINI_CUDA_THREADS, free);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(t, "  ein_state a = ein_none();\n"
              "  for (ix k = lane; k < (ix)p.z[1]%s; k += lanes) {\n", more);
  eini_cuda_say_split(w, "k", x->nfree, x->n);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(t, "  if (lanes > 1) {\n  all[EIN_TID] = a;\n  EIN_SYNC;\n"
              "  for (int h = lanes / 2; h > 0; h >>= 1) {\n"
              "  if (lane < h) all[EIN_TID] = ein_merge(all[EIN_TID], all[EIN_TID + h]);\n"
              "  EIN_SYNC;\n  }\n  a = all[EIN_TID];\n  }\n"
              "  if (lane == 0 && full == i) {\n");
}

static void eini_cuda_say_results(eini_cuda_writer *w) {
  if (w->x->fold == EIN_FOLD_NONE) {
    eini_cuda_say_plainly(w);
    return;
  }
  eini_cuda_say_shared_folds(w);
  eini_say(&w->t, "  const %s y = ein_finish(a, p.q[%d]);\n", eini_cuda_type(w->x->result),
           2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n  }\n");
}

// A stage's own types and functions have names of their own. on 0: no longer.
static void eini_cuda_say_names(eini_text *t, int k, int on) {
  static const char *const names[] = {"ix", "ein_args", "ein_t", "ein_u", "ein_w", "ein_state",
                                      "ein_none", "ein_lift", "ein_merge", "ein_finish",
                                      "ein_stage", "ein_sums", "ein_begin", "ein_end"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (on) eini_say(t, "#define %s %s%d\n", names[i], names[i], k);
    else eini_say(t, "#undef %s\n", names[i]);
  }
}

static int eini_cuda_say_stage(eini_cuda_writer *w, const ein_group *g, int k, int *at) {
  unsigned char own[EINI_CUDA_STREAMS];
  eini_text *t = &w->t;
  for (int s = 0; s < w->x->nstream; s++)
    own[s] = !w->x->value[s] && g->local[g->stage[k].tensor[s]] >= 0;
  w->own = own;
  eini_cuda_say_names(t, k, 1);
  eini_cuda_say_args(w);
  if (!eini_cuda_say_fold(w)) return 0;
  eini_say(t, "EIN_DEVICE void ein_stage(EIN_ARGS(ein_args) p, EIN_ARGS(ein_steps) u, "
              "char *ein_room");
  for (int l = 0; l < g->nloop; l++) eini_say(t, ", long long g%d", l);
  eini_say(t, ") {\n");
  eini_cuda_say_places(w, g, k, at);
  eini_cuda_say_results(w);
  eini_say(t, "}\n");
  eini_cuda_say_names(t, k, 0);
  w->own = NULL;
  return 1;
}

// The kernel around the stages.
static void eini_cuda_say_together(eini_text *t, const ein_group *g) {
  eini_say(t, "typedef struct {\n");
  for (int k = 0; k < g->nstage; k++) eini_say(t, "  ein_args%d a%d;\n", k, k);
  eini_say(t, "  ein_steps u;\n} ein_args;\nEIN_KERNEL ein_kernel(const ein_args p) {\n"
              "  EIN_ROOM;\n  long long d = EIN_BID;\n");
  for (int l = g->nloop - 1; l >= 0; l--)
    eini_say(t, "  const long long g%d = p.u.o[%d] + d %% p.u.n[%d] * p.u.k[%d]; d /= p.u.n[%d];\n",
             l, l, l, l, l);
  for (int k = 0; k < g->nstage; k++) {
    eini_say(t, "%s  ein_stage%d(p.a%d, p.u, ein_room", k > 0 ? "  EIN_SYNC;\n" : "", k, k);
    for (int l = 0; l < g->nloop; l++) eini_say(t, ", g%d", l);
    eini_say(t, ");\n");
  }
  eini_say(t, "}\n");
}

static eini_cuda_kernel *eini_cuda_group_write(ein_cuda *c, const ein_group *g,
                                               const eini_cuda_nest *x) {
  eini_cuda_writer w;
  eini_cuda_kernel *kernel = NULL;
  int at = 0, said = 1, words = 3 * g->nloop + eini_cuda_steps(g) + 1;
  if (!eini_cuda_writer_begin(c, &w)) return NULL;
  w.staged = 1;
  eini_cuda_say_helpers(&w);
  eini_say(&w.t, "typedef struct { long long o[%d], n[%d], k[%d], t[%d]; } ein_steps;\n", g->nloop,
           g->nloop, g->nloop, eini_cuda_steps(g) + 1);
  for (int k = 0; k < g->nstage && said; k++) {
    eini_cuda_writer_of(&w, &x[k]);
    said = eini_cuda_say_stage(&w, g, k, &at);
    words += eini_cuda_words(&w);
  }
  eini_cuda_say_together(&w.t, g);
  if (said && words <= EINI_CUDA_WORDS) kernel = eini_cuda_kernel_of(c, &w);
  eini_cuda_writer_end(c, &w);
  return kernel;
}

// ---- choosing ----

// Has a stage before k read or made the tensor of stream i, or a stream before it?
static int eini_cuda_seen(const ein_group *g, int k, int i) {
  for (int b = 0; b <= k; b++)
    for (int s = 0; s < (b < k ? g->stage[b].map.nstream : i); s++)
      if (g->stage[b].tensor[s] >= 0 &&
          g->same[g->stage[b].tensor[s]] == g->same[g->stage[k].tensor[i]]) return 1;
  return 0;
}

// Seconds of all blocks: what they move of the device's memory, once, and of its cache, each; and
// what they compute. Few threads on a multiprocessor, and idle ones, make both slower.
static double eini_cuda_together_seconds(const ein_cuda *c, const ein_group *g,
                                         const eini_cuda_nest *x, double blocks) {
  size_t states;
  const double resident = floor((double)c->device.shared /
                                (double)(eini_cuda_room_of(g, x, &states) + 1024));
  const double wide = fmin(1, blocks / c->device.processors);
  const double full = wide * fmin(1, fmax(1, resident) * EINI_CUDA_THREADS / eini_cuda_busy);
  double once = 0, cached = 0, compute = 0;
  for (int k = 0; k < g->nstage; k++) {
    const ein_stage *s = &g->stage[k];
    const double results = (double)eini_cuda_extent(&x[k], 0, x[k].nfree);
    const double points = results * (double)eini_cuda_extent(&x[k], x[k].nfree, x[k].n);
    const double rounds = ldexp(results, eini_cuda_lanes(&x[k])) / EINI_CUDA_THREADS;
    const double idle = ceil(rounds) / rounds;
    const int single = x[k].type == EIN_F32 || x[k].type == EIN_C64 || x[k].type == EIN_I32;
    const double planes = eini_cuda_complex(x[k].type) ? 4 : 1;
    compute += idle * (4 * planes + eini_cuda_load_flops * x[k].nop) * points * blocks /
               (single ? c->device.flops_f32 : c->device.flops_f64);
    for (int i = 0; i < x[k].nstream; i++) {
      double bytes = (double)eini_cuda_points(&x[k], i) * x[k].size[i];
      if (x[k].value[i] || g->local[s->tensor[i]] >= 0) continue;
      cached += idle * bytes * blocks;
      for (int l = 0; l < g->nloop; l++)
        if (s->step[i * g->nloop + l] != 0) bytes *= (double)g->count[l];
      if (!eini_cuda_seen(g, k, i)) once += bytes;
    }
  }
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x[0].rates);
  return 1 / v.launches +
         fmax(fmax(once / v.stream, cached / (eini_cuda_cached * v.stream)), compute) / full;
}

static int eini_cuda_group_plan(ein_cuda *c, const ein_group *g, int nth, ein_choice *h) {
  eini_cuda_together way;
  double blocks = 1;
  for (int l = 0; l < g->nloop; l++) blocks *= (double)g->count[l];
  if (nth > 0 || blocks > INT32_MAX) return 0;
  eini_cuda_nest *x = eini_cuda_stages(c, g);
  if (x == NULL) return 0;
  memset(&way, 0, sizeof way);
  way.room = eini_cuda_room_of(g, x, &way.states);
  way.blocks = (int64_t)blocks;
  for (int k = 0; k < g->nstage; k++) way.lanes[k] = (unsigned char)eini_cuda_lanes(&x[k]);
  if (way.room <= c->device.shared) way.kernel = eini_cuda_group_write(c, g, x);
  memset(h, 0, sizeof *h);
  h->seconds = c->only == 1 ? 0 : eini_cuda_together_seconds(c, g, x, blocks);
  eini_cuda_stages_end(c, g, x);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  snprintf(h->variant, sizeof h->variant, "group");
  h->scratch = way.room;
  memcpy(h->state, &way, sizeof way);
  return way.kernel != NULL;
}

// ---- running ----

static void eini_cuda_group_words(const ein_group *g, const eini_cuda_nest *x,
                                  const eini_cuda_together *way, uint64_t *word) {
  int n = 0;
  for (int k = 0; k < g->nstage; k++) {
    const int64_t z[EINI_CUDA_NUMBERS] = {eini_cuda_extent(&x[k], 0, x[k].nfree),
                                          eini_cuda_extent(&x[k], x[k].nfree, x[k].n),
                                          (int64_t)1 << way->lanes[k], (int64_t)way->states};
    eini_cuda_writer w;
    memset(&w, 0, sizeof w);
    eini_cuda_writer_of(&w, &x[k]);
    n += eini_cuda_arguments(&w, z, NULL, word + n);
  }
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->from[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->count[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->block[l];
  for (int k = 0; k < g->nstage; k++)
    for (int i = 0; i < g->stage[k].map.nstream * g->nloop; i++)
      if (g->stage[k].step[i] != 0) word[n++] = (uint64_t)g->stage[k].step[i];
}

static ein_status eini_cuda_together_go(ein_cuda *c, const eini_cuda_together *way,
                                        uint64_t *word) {
  eini_cuda_kernel *kernel = eini_cuda_kernel_here(c, way->kernel);
  if (kernel == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_ready_kernel(c, kernel);
  if (st == EIN_OK) st = eini_cuda_clock(c, 0);
  if (st == EIN_OK) st = eini_cuda_launch(c, kernel, way->blocks, way->room, word);
  if (st == EIN_OK) st = eini_cuda_clock(c, 1);
  return eini_cuda_exit(c, st);
}

static ein_status eini_cuda_group_run(ein_cuda *c, const ein_group *g, const ein_choice *h) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_together way;
  memcpy(&way, h->state, sizeof way);
  eini_cuda_nest *x = eini_cuda_stages(c, g);
  if (x == NULL) return EIN_ERR_NO_MEMORY;
  memset(word, 0, sizeof word);
  eini_cuda_group_words(g, x, &way, word);
  eini_cuda_stages_end(c, g, x);
  return eini_cuda_together_go(c, &way, word);
}

// ================================================================================================
// >>cuda-opens  values that a block has before it has gone along all of an index
// Takes expressions of stages; says how their values will change by what is not known before the
// end: X * exp(by * M) * R / S, or X + by * M. M: an extreme along the way; R, S: other results.
// ================================================================================================

#define EINI_CUDA_REFS 6        // results that one stage's values wait for at most

// A result that is waited for, as the loops of a stage find it.
typedef struct eini_cuda_ref {
  int stage;                    // which makes it
  int64_t at;                   // bytes in a block's memory
  ein_dtype dtype;
  int64_t stride[EINI_CUDA_LOOPS];
} eini_cuda_ref;

// The form of a value. Values of form `alone` are such a result itself, and nothing else.
typedef enum eini_cuda_form {
  EINI_CUDA_LINEAR, EINI_CUDA_ADDED, EINI_CUDA_ALONE, EINI_CUDA_NEVER
} eini_cuda_form;

typedef struct eini_cuda_wait {
  eini_cuda_form form;
  int of;                       // the ref that is M, or -1
  double by;
  signed char power[EINI_CUDA_REFS];  // of refs that multiply, or (< 0) divide
} eini_cuda_wait;

enum { EINI_CUDA_BEFORE, EINI_CUDA_PIECE, EINI_CUDA_FOLDED, EINI_CUDA_AFTER };

// A stage, or (stage -1) a copy to shared memory.
typedef struct eini_cuda_act {
  eini_cuda_nest x;             // streams behind the output: what the end, and M's changes, need
  int stage, when;
  int along;                    // x's loop, or -1
  int only;                     // operand that a fold along takes as it is, or -1
  const int64_t *step[EINI_CUDA_STREAMS];  // by the group's loops; NULL: none
  int made[EINI_CUDA_STREAMS];  // act that makes it, or -1
  unsigned char own[EINI_CUDA_STREAMS];    // as eini_cuda_writer's
  unsigned char summed[EINI_CUDA_STREAMS]; // 1: what is waited for, as M
  int nref;
  eini_cuda_ref ref[EINI_CUDA_REFS];
  eini_cuda_wait open;          // of what it makes
  int extreme;                  // 1: it is M of another
  int rows, cols;               // > 0: a product, with so many results of a thread, and ..
  unsigned across;              // .. of its free loops, those of columns
  int cores, warps, side[2];    // of tensor cores: warps down the rows; streams of rows, columns
  int state, moved, place[EINI_CUDA_REFS], change;  // streams, or -1
} eini_cuda_act;

static eini_cuda_wait eini_cuda_known(void) {
  eini_cuda_wait v;
  memset(&v, 0, sizeof v);
  v.form = EINI_CUDA_LINEAR;
  v.of = -1;
  return v;
}

static eini_cuda_wait eini_cuda_never(void) {
  eini_cuda_wait v = eini_cuda_known();
  v.form = EINI_CUDA_NEVER;
  return v;
}

static int eini_cuda_is_known(const eini_cuda_wait *v) {
  int known = v->form == EINI_CUDA_LINEAR && v->of < 0;
  for (int i = 0; i < EINI_CUDA_REFS; i++) known &= v->power[i] == 0;
  return known;
}

static int eini_cuda_alike(const eini_cuda_wait *a, const eini_cuda_wait *b) {
  return a->form == b->form && a->of == b->of && !(a->by < b->by) && !(a->by > b->by) &&
         memcmp(a->power, b->power, sizeof a->power) == 0;
}

// The ref of a result, added where there is none like it; -1: there are too many.
static int eini_cuda_ref_add(eini_cuda_act *k, const eini_cuda_ref *r) {
  for (int i = 0; i < k->nref; i++)
    if (k->ref[i].stage == r->stage && k->ref[i].at == r->at &&
        memcmp(k->ref[i].stride, r->stride, sizeof r->stride) == 0)
      return i;
  if (k->nref == EINI_CUDA_REFS) return -1;
  k->ref[k->nref] = *r;
  return k->nref++;
}

// Is loop i of a stage's operand o the loop m of the stage that makes it?
static int eini_cuda_same_loop(const eini_cuda_act *k, int o, int i, const eini_cuda_act *j,
                               int m) {
  return i != k->along && m != j->along && k->x.stride[o][i] == j->x.stride[j->x.out][m] &&
         k->x.extent[i] == j->x.extent[m];
}

// A ref of the stage j that makes operand o, as stage k finds it; -1: its loops do not say where.
static int eini_cuda_ref_moved(eini_cuda_act *k, int o, const eini_cuda_act *j, int r) {
  eini_cuda_ref y = j->ref[r];
  memset(y.stride, 0, sizeof y.stride);
  for (int m = 0; m < j->x.n; m++) {
    int i = 0;
    if (j->ref[r].stride[m] == 0) continue;
    while (i < k->x.nfree && !eini_cuda_same_loop(k, o, i, j, m)) i++;
    if (i == k->x.nfree) return -1;
    y.stride[i] = j->ref[r].stride[m];
  }
  return eini_cuda_ref_add(k, &y);
}

// Operand o of stage k, which act j makes.
static eini_cuda_wait eini_cuda_open_of(eini_cuda_act *all, eini_cuda_act *k, int o,
                                        const ein_group *g) {
  eini_cuda_wait v = eini_cuda_known(), never = eini_cuda_never();
  const eini_cuda_act *j = k->made[o] < 0 ? NULL : &all[k->made[o]];
  if (j == NULL || j->when == EINI_CUDA_BEFORE) return v;
  if (j->when == EINI_CUDA_PIECE) {
    v = j->open;
    memset(v.power, 0, sizeof v.power);
    for (int r = 0; r < EINI_CUDA_REFS; r++) {
      if (j->open.power[r] == 0 && j->open.of != r) continue;
      const int to = eini_cuda_ref_moved(k, o, j, r);
      if (to < 0) return never;
      if (j->open.of == r) v.of = to;
      v.power[to] = (signed char)(v.power[to] + j->open.power[r]);
    }
    return v;
  }
  eini_cuda_ref r;
  memset(&r, 0, sizeof r);
  r.stage = k->made[o];
  r.dtype = (ein_dtype)k->x.dtype[o];
  r.at = g->local[g->stage[k->stage].tensor[o]] + g->stage[k->stage].offset[o];
  memcpy(r.stride, k->x.stride[o], sizeof r.stride);
  for (int i = k->x.nfree; i < k->x.n; i++)
    if (r.stride[i] != 0) return never;
  if (!k->own[o] || (v.of = eini_cuda_ref_add(k, &r)) < 0) return never;
  v.form = EINI_CUDA_ALONE;
  return v;
}

// ---- the extreme of what an exponential takes ----

// Is operand o of stage k where stage j, an extreme along the way of what it reads as it is, has
// its result c? Then it is on the safe side of it.
static int eini_cuda_bounded(const eini_cuda_act *k, int o, const eini_cuda_act *j,
                             const eini_cuda_ref *c, const ein_group *g) {
  const eini_cuda_nest *x = &k->x, *y = &j->x;
  if (j->only < 0 || j->x.n - j->x.nfree != 1 || k->along < 0 || k->along >= x->nfree) return 0;
  const ein_stage *s = &g->stage[k->stage], *t = &g->stage[j->stage];
  if (k->made[o] != j->made[j->only] || g->same[s->tensor[o]] != g->same[t->tensor[j->only]] ||
      s->offset[o] != t->offset[j->only] || x->dtype[o] != y->dtype[j->only] ||
      x->stride[o][k->along] != y->stride[j->only][j->along])
    return 0;
  for (int l = 0; l < g->nloop; l++)
    if (s->step[o * g->nloop + l] != t->step[j->only * g->nloop + l]) return 0;
  for (int i = 0; i < x->n; i++) {
    int m = 0;
    if (i == k->along || (x->stride[o][i] == 0 && c->stride[i] == 0)) continue;
    while (m < y->nfree && (y->stride[j->only][m] != x->stride[o][i] ||
                            y->extent[m] != x->extent[i] ||
                            y->stride[y->out][m] != c->stride[i]))
      m++;
    if (m == y->nfree) return 0;
  }
  return c->at == g->local[t->tensor[y->out]] + t->offset[y->out];
}

// Which way the result of a stage bounds what it folds: 1: from above, -1: from below, 0: not.
static int eini_cuda_bounds(const eini_cuda_act *j) {
  if (j->when != EINI_CUDA_FOLDED || j->only < 0 || !eini_cuda_real(j->x.type)) return 0;
  if (j->x.fold == EIN_FOLD_MAX || j->x.fold == EIN_FOLD_LOGSUMEXP) return 1;
  return j->x.fold == EIN_FOLD_MIN ? -1 : 0;
}

// ---- steps ----

// What the registers of an expression are. operand: that a register is as it is, or -1; number: of
// a constant, else NAN.
typedef struct eini_cuda_reader {
  eini_cuda_act *all, *k;
  const ein_group *g;
  eini_cuda_wait value[EINI_CUDA_REGS];
  int operand[EINI_CUDA_REGS];
  double number[EINI_CUDA_REGS];
} eini_cuda_reader;

// A result itself as a factor. 0: it is M of the stage, too.
static int eini_cuda_factor(eini_cuda_reader *r, eini_cuda_wait *v) {
  if (v->form != EINI_CUDA_ALONE) return v->form == EINI_CUDA_LINEAR;
  const int of = v->of;
  *v = eini_cuda_known();
  v->power[of] = 1;
  for (int s = 0; s < r->k->x.out && s < EINI_CUDA_STREAMS; s++)  // (gcc warns without the second)
    if (r->k->made[s] == r->k->ref[of].stage) r->k->own[s] = 2;
  return 1;
}

static eini_cuda_wait eini_cuda_times(eini_cuda_reader *r, eini_cuda_wait a, eini_cuda_wait b,
                                      int sign) {
  eini_cuda_wait v = eini_cuda_never();
  if (!eini_cuda_factor(r, &a) || !eini_cuda_factor(r, &b)) return v;
  if (b.of >= 0 && (sign < 0 || a.of >= 0)) return v;
  v = a;
  if (b.of >= 0) v.of = b.of, v.by = b.by;
  for (int i = 0; i < EINI_CUDA_REFS; i++)
    v.power[i] = (signed char)(a.power[i] + sign * b.power[i]);
  return v;
}

// a - b, where one is a result that bounds the other.
static eini_cuda_wait eini_cuda_exceeds(eini_cuda_reader *r, const ein_step *s) {
  const eini_cuda_wait *a = &r->value[s->a], *b = &r->value[s->b];
  const int flip = a->form == EINI_CUDA_ALONE;
  const eini_cuda_wait *m = flip ? a : b;
  const int o = r->operand[flip ? s->b : s->a], c = r->operand[flip ? s->a : s->b];
  eini_cuda_wait v = eini_cuda_never();
  if (m->form != EINI_CUDA_ALONE || o < 0 || c < 0) return v;
  const eini_cuda_ref *ref = &r->k->ref[m->of];
  eini_cuda_act *j = &r->all[ref->stage];
  if (eini_cuda_bounds(j) != (flip ? -1 : 1) || !eini_cuda_bounded(r->k, o, j, ref, r->g))
    return v;
  v.form = EINI_CUDA_ADDED;
  v.of = m->of;
  v.by = flip ? 1 : -1;
  for (int i = 0; i < r->k->x.nop && i < EINI_CUDA_STREAMS; i++)  // (as above)
    if (r->k->made[i] == ref->stage) r->k->summed[i] = 1;
  j->extreme = 1;
  return v;
}

// Of values of which one waits for a result: those that stay in form.
static eini_cuda_wait eini_cuda_step_open(eini_cuda_reader *r, const ein_step *s) {
  const eini_cuda_wait *a = &r->value[s->a], *b = &r->value[s->b], *c = &r->value[s->c];
  eini_cuda_wait v = eini_cuda_never();
  const int added = a->form == EINI_CUDA_ADDED || b->form == EINI_CUDA_ADDED;
  const int real = eini_cuda_real((ein_dtype)s->from) && eini_cuda_real((ein_dtype)s->type);
  if (!real) return v;
  switch (s->op) {
    case EIN_OP_CAST: case EIN_OP_ROUNDTO:
      return a->form == EINI_CUDA_LINEAR || a->form == EINI_CUDA_ADDED ? *a : v;
    case EIN_OP_NEG:
      return a->form == EINI_CUDA_LINEAR ? *a : v;
    case EIN_OP_SUB: case EIN_OP_ADD:
      if (a->form == EINI_CUDA_LINEAR && eini_cuda_alike(a, b)) return *a;
      if (a->form == EINI_CUDA_ADDED && eini_cuda_is_known(b)) return *a;
      if (s->op == EIN_OP_ADD && b->form == EINI_CUDA_ADDED && eini_cuda_is_known(a)) return *b;
      return s->op == EIN_OP_SUB ? eini_cuda_exceeds(r, s) : v;
    case EIN_OP_MUL: case EIN_OP_DIV:
      if (!added) return eini_cuda_times(r, *a, *b, s->op == EIN_OP_MUL ? 1 : -1);
      if (a->form == EINI_CUDA_ADDED && r->number[s->b] > 0) {
        v = *a;
        v.by = s->op == EIN_OP_MUL ? v.by * r->number[s->b] : v.by / r->number[s->b];
      } else if (s->op == EIN_OP_MUL && b->form == EINI_CUDA_ADDED && r->number[s->a] > 0) {
        v = *b;
        v.by *= r->number[s->a];
      }
      return v;
    case EIN_OP_EXP:
      if (a->form != EINI_CUDA_ADDED) return v;
      v = *a;
      v.form = EINI_CUDA_LINEAR;
      return v;
    case EIN_OP_WHERE:
      if (!eini_cuda_is_known(a) || b->form != EINI_CUDA_LINEAR || c->form != EINI_CUDA_LINEAR)
        return v;
      if (eini_cuda_alike(b, c)) return *b;
      if (b->of >= 0 || c->of >= 0) return v;  // what M makes of infinities would be lost
      return r->number[s->c] == 0 ? *b : r->number[s->b] == 0 ? *c : v;
    default: return v;
  }
}

// The value of an expression, operand 0 of which is `zero` where that is not NULL; others are
// streams from `first` on.
static eini_cuda_wait eini_cuda_read(eini_cuda_reader *r, const ein_code *c, int first,
                                     const eini_cuda_wait *zero) {
  if (c->nreg > EINI_CUDA_REGS) return eini_cuda_never();
  for (int i = 0; i < c->nfill; i++) {
    const ein_fill *f = &c->fill[i];
    r->value[f->reg] = eini_cuda_known();
    r->operand[f->reg] = -1;
    r->number[f->reg] = f->param < 0 && eini_cuda_real((ein_dtype)f->type) ? f->re : NAN;
  }
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    eini_cuda_wait v = eini_cuda_known();
    int operand = -1;
    if (s->op == EIN_OP_OPERAND && s->a == 0 && zero != NULL) {
      v = *zero;
    } else if (s->op == EIN_OP_OPERAND) {
      operand = first + s->a;
      v = eini_cuda_open_of(r->all, r->k, operand, r->g);
    } else if (s->op == EIN_OP_CALL) {
      v = eini_cuda_never();
    } else if (s->op != EIN_OP_INDEX) {
      if (!eini_cuda_is_known(&r->value[s->a]) || !eini_cuda_is_known(&r->value[s->b]) ||
          !eini_cuda_is_known(&r->value[s->c]))
        v = eini_cuda_step_open(r, s);
    }
    r->value[s->dst] = v;
    r->operand[s->dst] = operand;
    r->number[s->dst] = NAN;
  }
  return r->value[c->result];
}

// ================================================================================================
// >>cuda-pieces  what a block does that goes along an index
// Takes a group with such a loop; gives acts: stages before, for each piece, and after, copies of
// what pieces of products read, and places in shared memory. 0: rules do not say how.
// ================================================================================================

enum { EINI_CUDA_ACTS = 3 * EINI_CUDA_STAGES, EINI_CUDA_PRODUCT = 64 };  // results of a thread

typedef struct eini_cuda_going {
  int n;
  int order[EINI_CUDA_ACTS];    // acts in order: stages by number, copies before all others
  size_t room, states;          // shared memory, and from where lanes' states lie there
  eini_cuda_act act[EINI_CUDA_ACTS];
} eini_cuda_going;

static int eini_cuda_moves(const eini_cuda_nest *x, int s, unsigned loops) {
  for (int i = 0; i < x->n; i++)
    if ((loops >> i & 1) && x->stride[s][i] != 0) return 1;
  return 0;
}

static int64_t eini_cuda_up64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The last stage before k that makes what its stream s is; -1: it comes from outside.
static int eini_cuda_maker(const ein_group *g, int k, int s) {
  for (int j = k - 1; j >= 0 && g->stage[k].tensor[s] >= 0; j--) {
    const ein_stage *y = &g->stage[j];
    if (g->same[y->tensor[y->map.nstream - 1]] == g->same[g->stage[k].tensor[s]]) return j;
  }
  return -1;
}

// Stages, and when they run.
static int eini_cuda_acts_of(const ein_group *g, eini_cuda_going *a) {
  for (int k = 0; k < g->nstage; k++) {
    const ein_stage *s = &g->stage[k];
    eini_cuda_act *x = &a->act[k];
    memset(x, 0, sizeof *x);
    if (!eini_cuda_of_stage(g, s, &x->x)) return 0;
    x->stage = k;
    x->along = s->along;
    x->when = s->along < 0 ? EINI_CUDA_BEFORE : s->along < x->x.nfree ? EINI_CUDA_PIECE
                                                                      : EINI_CUDA_FOLDED;
    x->state = x->moved = x->change = -1;
    for (int r = 0; r < EINI_CUDA_REFS; r++) x->place[r] = -1;
    x->only = x->x.nop == 1 && s->map.code->plain == 0 && !s->map.code->conj &&
                      x->x.store == NULL ? 0 : -1;
    for (int i = 0; i < x->x.nstream; i++) {
      x->step[i] = s->step + i * g->nloop;
      x->made[i] = i == x->x.out ? -1 : eini_cuda_maker(g, k, i);
      x->own[i] = s->tensor[i] >= 0 && g->local[s->tensor[i]] >= 0;
      if (x->made[i] >= 0 && a->act[x->made[i]].when >= EINI_CUDA_FOLDED && s->along < 0)
        x->when = EINI_CUDA_AFTER;
      // Another of these may overwrite it or read it too early.
      if (x->made[i] >= 0 && s->along < 0 && a->act[x->made[i]].when == EINI_CUDA_PIECE) return 0;
    }
  }
  a->n = g->nstage;
  return 1;
}

// What a stage's values wait for. 0: there is no rule.
static int eini_cuda_opened(eini_cuda_reader *r) {
  eini_cuda_act *k = r->k;
  eini_cuda_nest *x = &k->x;
  k->open = eini_cuda_known();
  if (k->when == EINI_CUDA_BEFORE || k->when == EINI_CUDA_AFTER) return 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN || x->fold == EIN_FOLD_USER)
    return 0;
  k->open = eini_cuda_read(r, x->code[0], 0, NULL);
  if (!eini_cuda_is_known(&k->open) && x->fold != EIN_FOLD_NONE &&
      (k->open.form != EINI_CUDA_LINEAR || !eini_cuda_real(x->type) ||
       (x->fold != EIN_FOLD_SUM && x->fold != EIN_FOLD_MEAN)))
    return 0;
  if (k->when == EINI_CUDA_PIECE && x->store != NULL)
    k->open = eini_cuda_read(r, x->store, x->extra - 1, &k->open);
  if (k->open.form > EINI_CUDA_ADDED || (!eini_cuda_is_known(&k->open) && !k->own[x->out] &&
                                         k->when == EINI_CUDA_PIECE))
    return 0;
  for (int s = 0; s < x->out; s++)
    if (k->own[s] == 2 && k->summed[s]) return 0;
  return 1;
}

static int eini_cuda_opens(const ein_group *g, eini_cuda_going *a) {
  eini_cuda_reader r;
  r.all = a->act;
  r.g = g;
  for (int k = 0; k < g->nstage; k++) {
    r.k = &a->act[k];
    if (!eini_cuda_opened(&r)) return 0;
  }
  return 1;
}

// ---- products ----

// The operands of which a value is the plain product, as bits; 0: it is another.
static unsigned eini_cuda_factors(const eini_cuda_act *k) {
  const ein_code *c = k->x.code[0];
  unsigned value[EINI_CUDA_REGS];
  char one[EINI_CUDA_REGS];
  if (c->nfill > 0 || c->nreg > EINI_CUDA_REGS || k->x.extra != k->x.nop) return 0;
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    const int load = s->op == EIN_OP_OPERAND;
    if (s->op != EIN_OP_OPERAND && s->op != EIN_OP_MUL && s->op != EIN_OP_DIV) return 0;
    if (s->type != (unsigned char)k->x.type || (load && s->a > 30)) return 0;
    const unsigned a = load ? 1u << s->a : value[s->a], b = load ? 0 : value[s->b];
    if (!load && (a & b) != 0) return 0;
    if (s->op == EIN_OP_DIV && !one[s->b]) return 0;
    one[s->dst] = (char)(load ? k->own[s->a] == 2 : one[s->a] && one[s->b]);
    value[s->dst] = one[s->dst] ? 0 : a | b;
  }
  return value[c->result];
}

// Does a product of `rows` and `cols` go to tensor cores? Then its operands are set.
static int eini_cuda_cored(const ein_cuda *c, eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  const unsigned all = eini_cuda_loops(0, x->nfree);
  unsigned two = x->fold == EIN_FOLD_SUM && x->n - x->nfree == 1 ? eini_cuda_factors(k) : 0;
  k->side[0] = k->side[1] = -1;
  for (int s = 0; s < x->nop && two != 0; s++) {
    const int row = eini_cuda_moves(x, s, all & ~k->across), col = eini_cuda_moves(x, s, k->across);
    if (!(two >> s & 1)) continue;
    if (row == col || k->side[col] >= 0) return EINI_CUDA_CORES_NONE;
    k->side[col] = s;
  }
  if (k->side[0] < 0 || k->side[1] < 0) return EINI_CUDA_CORES_NONE;
  const ein_dtype p = (ein_dtype)x->dtype[k->side[0]], q = (ein_dtype)x->dtype[k->side[1]];
  const int cores = eini_cuda_cores_for(c, x->type, p, q);
  const int plain = cores >= EINI_CUDA_CORES_F16 || (p == x->type && q == x->type);
  return plain ? cores : EINI_CUDA_CORES_NONE;
}

// Results of a thread where warps share fragments of tensor cores: as few as can be.
static void eini_cuda_fragmented(eini_cuda_act *k, int64_t rows, int64_t cols) {
  const int m = eini_cuda_fragments[k->cores].m;
  int64_t least = 0;
  for (int warps = 1; warps <= 8; warps *= 2) {
    const int64_t r = eini_ceil_div(eini_ceil_div(rows, m), warps) * (m / 8);
    const int64_t c = eini_ceil_div(eini_ceil_div(cols, 8), 8 / warps) * 2;
    if (least > 0 && r * c >= least) continue;
    least = r * c;
    k->warps = warps;
    k->rows = (int)r;
    k->cols = (int)c;
  }
}

// Is a stage a product of rows and columns? Columns are what goes along, or what no operand that is
// made here moves with.
static void eini_cuda_product(const ein_cuda *cuda, eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  unsigned across = 0;
  int64_t rows = 1, cols = 1;
  if (x->fold == EIN_FOLD_NONE || (k->when != EINI_CUDA_PIECE && k->when != EINI_CUDA_FOLDED))
    return;
  for (int i = 0; i < x->nfree; i++) {
    int made = 0;
    for (int s = 0; s < x->nop; s++) made |= k->made[s] >= 0 && x->stride[s][i] != 0;
    const int col = k->when == EINI_CUDA_PIECE ? i == k->along : !made;
    if (col) across |= 1u << i, cols *= x->extent[i];
    else rows *= x->extent[i];
  }
  const int64_t r = (rows + EINI_CUDA_SIDE - 1) / EINI_CUDA_SIDE;
  const int64_t c = (cols + EINI_CUDA_SIDE - 1) / EINI_CUDA_SIDE;
  const int64_t most = EINI_CUDA_PRODUCT * 4 / (int64_t)eini_cuda_state_bytes(x);
  if (cols < 8 || rows < 4 || r * c > most) return;
  k->across = across;
  k->rows = (int)r;
  k->cols = (int)c;
  k->cores = eini_cuda_cored(cuda, k);
  if (k->cores) eini_cuda_fragmented(k, rows, cols);
}

// ---- places ----

// Adds a stream behind the others. 0: there are too many.
static int eini_cuda_extra(eini_cuda_act *k, ein_dtype type, int64_t at, const int64_t *stride) {
  eini_cuda_nest *x = &k->x;
  const int s = x->nstream;
  if (s == EINI_CUDA_STREAMS) return -1;
  x->nstream++;
  x->dtype[s] = (unsigned char)type;
  x->size[s] = (unsigned char)ein_dtype_size(type);
  x->away[s] = 1;
  x->value[s] = x->packed[s] = 0;
  x->base[s] = (char *)(uintptr_t)at;
  for (int i = 0; i < x->n; i++) x->stride[s][i] = stride == NULL ? 0 : stride[i];
  k->step[s] = NULL;
  k->own[s] = 1;
  return s;
}

// Elements from where the memory of what a stage makes begins to the last.
static int64_t eini_cuda_reach(const ein_group *g, const eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  int64_t low, hull = eini_cuda_hull(x, 0, x->out, &low);
  return g->stage[k->stage].offset[x->out] / x->size[x->out] + low + hull;
}

// States, how far an extreme has moved, and where what is waited for lies.
static int eini_cuda_places(const ein_group *g, eini_cuda_going *a) {
  int64_t moved[EINI_CUDA_STAGES] = {0};
  for (int k = 0; k < g->nstage; k++) {
    eini_cuda_act *x = &a->act[k];
    if (x->when != EINI_CUDA_FOLDED) continue;
    if (x->rows == 0) {
      const int64_t results = eini_cuda_extent(&x->x, 0, x->x.nfree);
      x->state = eini_cuda_extra(x, x->x.type, (int64_t)a->room, NULL);
      a->room += (size_t)eini_cuda_up64(results * (int64_t)eini_cuda_state_bytes(&x->x));
      if (x->state < 0) return 0;
    }
    const int64_t own = g->stage[k].offset[x->x.out] / x->x.size[x->x.out];
    const int64_t size = (int64_t)ein_dtype_size(x->x.type);
    if (x->extreme) {
      moved[k] = (int64_t)a->room;
      x->moved = eini_cuda_extra(x, x->x.type, moved[k] + own * size, x->x.stride[x->x.out]);
      a->room += (size_t)eini_cuda_up64(eini_cuda_reach(g, x) * size);
      if (x->moved < 0 || x->rows > 0 || !x->own[x->x.out]) return 0;
    }
    for (int r = 0; r < x->nref; r++) {
      const eini_cuda_ref *f = &x->ref[r];
      const eini_cuda_act *m = &a->act[f->stage];
      if (x->open.of != r && x->open.power[r] == 0) continue;
      if ((x->place[r] = eini_cuda_extra(x, f->dtype, f->at, f->stride)) < 0) return 0;
      if (x->open.of != r) continue;
      const int64_t element = (f->at - g->local[g->stage[f->stage].tensor[m->x.out]]) /
                              (int64_t)ein_dtype_size(f->dtype);
      x->change = eini_cuda_extra(x, m->x.type, moved[f->stage] + element *
                                  (int64_t)ein_dtype_size(m->x.type), f->stride);
      if (x->change < 0) return 0;
    }
  }
  return 1;
}

// ---- copies ----

// The loops of a copy of stream s of stage k, those of large steps first.
static int eini_cuda_copied(const eini_cuda_act *k, int s, int *loop) {
  int n = 0;
  for (int i = 0; i < k->x.n; i++) {
    int to = n;
    if (k->x.stride[s][i] == 0) continue;
    for (; to > 0 && eini_abs64(k->x.stride[s][loop[to - 1]]) < eini_abs64(k->x.stride[s][i]); to--)
      loop[to] = loop[to - 1];
    loop[to] = i;
    n++;
  }
  return n;
}

// Steps from row to row in shared memory: no two neighbours meet in a bank.
static int64_t eini_cuda_pitch(int64_t n, int size) {
  return size >= 4 ? n | 1 : size == 2 ? ((n + 1) / 2 | 1) * 2 : n;
}

// Stream s of stage k is read from shared memory, where a copy of its own puts it. 0: no room.
static int eini_cuda_copy_act(eini_cuda_going *a, eini_cuda_act *k, int s, size_t most) {
  int loop[EINI_CUDA_LOOPS];
  int64_t step[EINI_CUDA_LOOPS], all = 1;
  const int n = eini_cuda_copied(k, s, loop), size = k->x.size[s];
  eini_cuda_act *const c = &a->act[a->n < EINI_CUDA_ACTS ? a->n : 0];
  eini_cuda_nest *const x = &c->x;
  for (int i = n - 1; i >= 0; i--) {
    step[i] = all;
    all = i == n - 1 ? eini_cuda_pitch(k->x.extent[loop[i]], size) : all * k->x.extent[loop[i]];
  }
  const int64_t bytes = eini_cuda_up64(all * size);
  if (a->n == EINI_CUDA_ACTS || n == 0 || eini_cuda_opaque[size] == EIN_NONE ||
      bytes > (int64_t)(most - a->room))
    return n == 0;
  memset(c, 0, sizeof *c);
  x->kind = EINI_CUDA_COPY;
  x->n = x->nfree = n;
  x->nstream = 2;
  x->nop = x->extra = x->extra_value = x->out = 1;
  x->count = 1;
  c->stage = c->along = c->state = c->moved = c->change = c->made[0] = c->made[1] = c->only = -1;
  c->when = EINI_CUDA_BEFORE;
  for (int i = 0; i < n; i++) {
    x->extent[i] = k->x.extent[loop[i]];
    x->stride[0][i] = k->x.stride[s][loop[i]];
    x->stride[1][i] = k->x.stride[s][loop[i]] = step[i];
    if (loop[i] == k->along) c->along = i, c->when = EINI_CUDA_PIECE;
  }
  for (int i = 0; i < 2; i++) {
    x->dtype[i] = (unsigned char)eini_cuda_opaque[size];
    x->size[i] = (unsigned char)size;
    x->away[i] = 1;
  }
  x->base[0] = k->x.base[s];
  x->base[1] = k->x.base[s] = (char *)(uintptr_t)a->room;
  c->step[0] = k->step[s];
  c->own[1] = k->own[s] = 1;
  k->step[s] = NULL;
  a->room += (size_t)bytes;
  a->n++;
  return 1;
}

// What products read again and again. 0: there is not room for all of it.
static int eini_cuda_copies(const ein_group *g, eini_cuda_going *a, size_t most) {
  for (int k = 0; k < g->nstage; k++) {
    eini_cuda_act *x = &a->act[k];
    for (int s = 0; s < x->x.nop && x->rows > 0; s++)
      if (!x->x.value[s] && !x->own[s] && x->made[s] < 0 && !eini_cuda_copy_act(a, x, s, most))
        return 0;
  }
  return 1;
}

// Copies come first, then stages as they are.
static void eini_cuda_acts_order(const ein_group *g, eini_cuda_going *a) {
  int n = 0;
  for (int k = g->nstage; k < a->n; k++) a->order[n++] = k;
  for (int k = 0; k < g->nstage; k++) a->order[n++] = k;
}

static int eini_cuda_going_of(const ein_cuda *c, const ein_group *g, eini_cuda_going *a) {
  const size_t most = c->device.shared;
  size_t lanes = 0;
  a->n = 0;
  if (g->nstage < 1 || g->nstage > EINI_CUDA_STAGES || !eini_cuda_acts_of(g, a) ||
      !eini_cuda_opens(g, a))
    return 0;
  a->room = (size_t)eini_cuda_up64((int64_t)g->bytes);
  for (int k = 0; k < g->nstage; k++) eini_cuda_product(c, &a->act[k]);
  if (!eini_cuda_places(g, a)) return 0;
  for (int k = 0; k < g->nstage; k++)
    if (a->act[k].rows == 0 && a->act[k].x.fold != EIN_FOLD_NONE)
      lanes = eini_cuda_state_bytes(&a->act[k].x) > lanes ? eini_cuda_state_bytes(&a->act[k].x)
                                                          : lanes;
  lanes *= EINI_CUDA_THREADS;
  if (a->room + lanes > most || !eini_cuda_copies(g, a, most - lanes)) return 0;
  eini_cuda_acts_order(g, a);
  for (int k = 0; k < a->n; k++) eini_cuda_strides(&a->act[k].x);
  a->states = a->room;
  a->room += lanes;
  return a->room <= most;
}

// ================================================================================================
// >>cuda-along  groups that go along an index, in one kernel
// Takes acts; gives a kernel whose blocks of threads run them piece by piece, what folds along all
// pieces in registers or shared memory, and changed by how far an extreme has moved.
// ================================================================================================

static unsigned eini_cuda_free(const eini_cuda_act *k) { return eini_cuda_loops(0, k->x.nfree); }

// Steps of an act by the group's loops that are not 0.
static int eini_cuda_act_steps(const ein_group *g, const eini_cuda_act *k) {
  int n = 0;
  for (int s = 0; s < k->x.nstream; s++)
    for (int l = 0; l < g->nloop && k->step[s] != NULL && k->own[s] != 1; l++)
      n += k->step[s][l] != 0;
  return n;
}

static int eini_cuda_going_steps(const ein_group *g, const eini_cuda_going *a) {
  int n = 0;
  for (int k = 0; k < a->n; k++) n += eini_cuda_act_steps(g, &a->act[k]);
  return n;
}

// ---- functions of an act ----

// A function that is at block and piece; at: number of its first step.
static void eini_cuda_say_head(eini_cuda_writer *w, const ein_group *g, const eini_cuda_act *k,
                               const char *name, int at) {
  const eini_cuda_nest *x = w->x;
  eini_text *t = &w->t;
  eini_say(t, "EIN_DEVICE void %s(EIN_ARGS(ein_args) p, EIN_ARGS(ein_steps) u, char *ein_room",
           name);
  for (int l = 0; l < g->nloop; l++) eini_say(t, ", long long g%d", l);
  eini_say(t, k->rows > 0 && k->when == EINI_CUDA_FOLDED ? ", int n, ein_sums *c) {\n"
                                                         : ", int n) {\n");
  for (int i = 0; i < x->nstream; i++) {
    if (x->value[i]) eini_say(t, "  const long long at%d = p.at[%d]", i, i);
    else if (k->own[i]) eini_say(t, "  char *const b%d = ein_room + (long long)p.b[%d]", i, i);
    else eini_say(t, "  char *const b%d = p.b[%d]", i, i);
    for (int l = 0; l < g->nloop && k->step[i] != NULL && k->own[i] != 1; l++) {
      if (k->step[i][l] == 0) continue;
      if (k->own[i] != 2) eini_say(t, " + g%d * u.t[%d]", l, at);
      at++;
    }
    eini_say(t, ";\n");
  }
}

// The element of a stream by loops of a set, as stored.
static void eini_cuda_say_at(eini_cuda_writer *w, int s, unsigned loops) {
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  eini_say(&w->t, w->own[s] ? "((%s *)b%d)[" : "EIN_READ((%s *)b%d)[", type, s);
  eini_cuda_say_offset_in(w, s, loops);
  eini_say(&w->t, "]");
}

// e: by how much sums change, for loops of a set; what follows is done where they do.
static void eini_cuda_say_change(eini_cuda_writer *w, const eini_cuda_act *k, unsigned loops) {
  const ein_dtype type = k->x.type;
  eini_text *t = &w->t;
  eini_say(t, "  const %s far = (%s)", eini_cuda_type(type), eini_cuda_type(type));
  eini_cuda_say_at(w, k->change, loops);
  eini_say(t, ";\n  if (far != 0) {\n  const %s e = exp%s(far * ", eini_cuda_type(type),
           type == EIN_F32 ? "f" : "");
  eini_cuda_say_bits(t, type, k->open.by, 0);
  eini_say(t, ");\n");
}

// What y waits for is there. An extreme that is no number makes none of what was summed.
static void eini_cuda_say_close(eini_cuda_writer *w, const eini_cuda_act *k) {
  const char *type = eini_cuda_type(k->x.type);
  eini_text *t = &w->t;
  for (int r = 0; r < k->nref; r++) {
    const int s = k->place[r];
    char name[16];
    if (s < 0) continue;
    snprintf(name, sizeof name, "r%d", s);
    eini_say(t, "  const %s %s = ", eini_cuda_stored(k->ref[r].dtype), name);
    eini_cuda_say_at(w, s, eini_cuda_free(k));
    eini_say(t, ";\n  const %s w%d = (%s)", type, r, type);
    eini_cuda_say_wide(t, k->ref[r].dtype, name);
    eini_say(t, ";\n");
    if (k->open.of == r) eini_say(t, "  y += w%d - w%d;\n", r, r);
    for (int i = 0; i < k->open.power[r]; i++) eini_say(t, "  y = y * w%d;\n", r);
    for (int i = 0; i > k->open.power[r]; i--) eini_say(t, "  y = y / w%d;\n", r);
  }
}

// The state of a fold along so far takes in that of a piece, a; an extreme moves where others see
// it: it stays a number, and counts as one only from the first on.
static void eini_cuda_say_taken(eini_cuda_writer *w, const eini_cuda_act *k) {
  const ein_dtype to = (ein_dtype)k->x.dtype[k->x.out];
  eini_text *t = &w->t;
  char name[2] = "c";
  eini_say(t, "  ein_state b = ((ein_state *)b%d)[i];\n", k->state);
  if (k->extreme) eini_say(t, "  const ein_t old = ein_finish(b, p.q[%d]);\n", 2 * w->q);
  if (k->change >= 0) {
    eini_cuda_say_change(w, k, eini_cuda_free(k));
    eini_say(t, "  b.v *= e;\n  }\n");
  }
  eini_say(t, "  b = ein_merge(b, a);\n  ((ein_state *)b%d)[i] = b;\n", k->state);
  if (!k->extreme) return;
  eini_say(t, "  const ein_t y = ein_finish(b, p.q[%d]), c = y - y == 0 ? y : 0;\n"
              "  const %s before = ", 2 * w->q, eini_cuda_stored(to));
  eini_cuda_say_at(w, k->x.out, eini_cuda_free(k));
  eini_say(t, ", after = ");
  eini_cuda_say_narrow(t, k->x.type, to, name);
  eini_say(t, ";\n  ");
  eini_cuda_say_at(w, k->x.out, eini_cuda_free(k));
  eini_say(t, " = after;\n  ");
  eini_cuda_say_at(w, k->moved, eini_cuda_free(k));
  eini_say(t, " = old - old == 0 ? (ein_t)");
  eini_cuda_say_wide(t, to, "after");
  eini_say(t, " - (ein_t)");
  eini_cuda_say_wide(t, to, "before");
  eini_say(t, " : 0;\n");
}

// ---- products ----

// Which thread has which results.
static void eini_cuda_say_grid(eini_cuda_writer *w, const eini_cuda_act *k) {
  const int by_piece = k->along >= 0 && (k->across >> k->along & 1);
  eini_say(&w->t, "  const ix rows = (ix)p.z[0], cols = (ix)p.z[1]%s;\n", by_piece ? " * n" : "");
  if (!k->cores)
    eini_say(&w->t, "  const int top = EIN_TID / %d, left = EIN_TID %% %d;\n", EINI_CUDA_SIDE,
             EINI_CUDA_SIDE);
  else
    eini_say(&w->t, "  const int top = EIN_TID / 32 %% %d * %d + EIN_TID %% 32 / 4;\n"
                    "  const int left = EIN_TID / %d * %d + EIN_TID %% 4 * 2;\n", k->warps,
             k->rows * 8, 32 * k->warps, k->cols * 4);
}

// Which row or column of the block a thread's number i is of.
static void eini_cuda_say_slot(eini_text *t, const eini_cuda_act *k, int col, const char *i) {
  const int m = eini_cuda_fragments[k->cores].m;
  if (!k->cores) eini_say(t, "%s + %d * %s", col ? "left" : "top", EINI_CUDA_SIDE, i);
  else if (col) eini_say(t, "left + %s / 2 * 8 + %s %% 2", i, i);
  else eini_say(t, "top + %s / %d * %d + %s %% %d * 8", i, m / 8, m, i, m / 8);
}

// Offsets of what a thread reads, by rows f<stream>[i] or columns l<stream>[i].
static void eini_cuda_say_starts(eini_cuda_writer *w, const eini_cuda_act *k, int col) {
  const eini_cuda_nest *x = w->x;
  const unsigned loops = col ? k->across : eini_cuda_free(k) & ~k->across;
  const int many = col ? k->cols : k->rows;
  const char letter = col ? 'l' : 'f';
  eini_text *t = &w->t;
  for (int s = 0; s < x->extra; s++)
    if (eini_cuda_moves(x, s, loops)) eini_say(t, "  ix %c%d[%d];\n", letter, s, many);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) {\n  const ix full = ", many);
  eini_cuda_say_slot(t, k, col, "i");
  eini_say(t, ", in = full < %s ? full : 0;\n", col ? "cols" : "rows");
  eini_cuda_say_split_in(w, "in", loops);
  for (int s = 0; s < x->extra; s++) {
    if (!eini_cuda_moves(x, s, loops)) continue;
    eini_say(t, "  %c%d[i] = ", letter, s);
    eini_cuda_say_offset_in(w, s, loops);
    eini_say(t, ";\n");
  }
  if (!col && k->change >= 0) {
    eini_cuda_say_change(w, k, loops);
    eini_say(t, "#pragma unroll\n  for (int h = 0; h < %d; h++) c->a[i][h].v *= e;\n  }\n",
             k->cols);
  }
  eini_say(t, "  }\n");
}

// What is read once for all rows or columns: x<stream>, an array where the stream moves with them.
static void eini_cuda_say_sides(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  const unsigned fold = eini_cuda_loops(x->nfree, x->n), free = eini_cuda_free(k);
  eini_text *t = &w->t;
  for (int s = 0; s < x->nop; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    const int row = eini_cuda_moves(x, s, free & ~k->across);
    const int col = eini_cuda_moves(x, s, k->across), many = row ? k->rows : k->cols;
    if (k->own[s] == 2 || (row && col)) continue;
    if (row || col)
      eini_say(t, "  %s x%d[%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++) x%d[i] = ", type,
               s, many, many, s);
    else eini_say(t, "  const %s x%d = ", type, s);
    eini_say(t, k->own[s] ? "((const %s *)b%d)[" : "EIN_READ((const %s *)b%d)[", type, s);
    if (row || col) eini_say(t, "%c%d[i] + ", row ? 'f' : 'l', s);
    eini_cuda_say_offset_in(w, s, fold);
    eini_say(t, "];\n");
  }
}

// The streams of result i, h.
static void eini_cuda_say_pair(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  const unsigned fold = eini_cuda_loops(x->nfree, x->n), free = eini_cuda_free(k);
  eini_text *t = &w->t;
  for (int s = 0; s < x->extra; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    const int row = eini_cuda_moves(x, s, free & ~k->across);
    const int col = eini_cuda_moves(x, s, k->across);
    if (k->own[s] == 2) {
      eini_say(t, "  const %s r%d = %s;\n", type, s, eini_cuda_one((ein_dtype)x->dtype[s]));
    } else if (x->value[s] || (row && col)) {
      if (x->value[s]) eini_say(t, "  const long long i%d = at%d + (", s, s);
      else eini_say(t, k->own[s] ? "  const %s r%d = ((const %s *)b%d)["
                                 : "  const %s r%d = EIN_READ((const %s *)b%d)[", type, s, type, s);
      if (row) eini_say(t, "f%d[i] + ", s);
      if (col) eini_say(t, "l%d[h] + ", s);
      eini_cuda_say_offset_in(w, s, fold);
      eini_say(t, x->value[s] ? ");\n" : "];\n");
    } else {
      eini_say(t, "  const %s r%d = x%d%s;\n", type, s, s, row ? "[i]" : col ? "[h]" : "");
    }
  }
}

static void eini_cuda_say_each(eini_text *t, const eini_cuda_act *k) {
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++)", k->rows, k->cols);
}

// Stores the results that there are.
static void eini_cuda_say_sums_end(eini_cuda_writer *w, const eini_cuda_act *k) {
  eini_text *t = &w->t;
  eini_cuda_say_each(t, k);
  eini_say(t, " {\n  const ix row = ");
  eini_cuda_say_slot(t, k, 0, "i");
  eini_say(t, ", col = ");
  eini_cuda_say_slot(t, k, 1, "h");
  eini_say(t, ";\n  if (row < rows && col < cols) {\n");
  eini_cuda_say_split_in(w, "row", eini_cuda_free(k) & ~k->across);
  eini_cuda_say_split_in(w, "col", k->across);
  eini_say(t, "  %s y = ein_finish(c->a[i][h], p.q[%d]);\n", eini_cuda_type(k->x.result), 2 * w->q);
  eini_cuda_say_close(w, k);
  eini_cuda_say_store(w, "y");
  eini_say(t, "  }\n  }\n");
}

// Registers of fragments of one side, of `many` along it, for k on.
static void eini_cuda_say_fragments(eini_cuda_writer *w, const eini_cuda_act *k, int col,
                                    int many) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[k->cores];
  const int s = k->side[col], two = f->k == 16 || f->a == 2, wide = f->m == 16, j = w->x->nfree;
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  eini_text *t = &w->t;
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) {\n", many);
  for (int i = 0; i < (col ? f->b : f->a); i++) {
    const int at = col ? i : wide ? i / 2 : 0;
    eini_say(t, "  {\n  ix j%d = k + %d * (EIN_TID %% 4) + %d;\n", j, two ? 2 : 1,
             (two ? 8 : 4) * at);
    for (int h = 0; h <= two; h++) {
      eini_say(t, "  const %s e%d = j%d < depth ? ((const %s *)b%d)[", type, h, j, type, s);
      if (col) eini_say(t, "l%d[i] + ", s);
      else eini_say(t, "f%d[%d * i + %d] + ", s, f->m / 8, wide ? i % 2 : 0);
      eini_cuda_say_offset_in(w, s, eini_cuda_loops(j, w->x->n));
      eini_say(t, h < two ? "] : 0;\n  j%d++;\n" : "] : 0;\n", j);
    }
    eini_say(t, "  %c[i][%d] = %s;\n  }\n", col ? 'y' : 'x', i,
             two ? "e0 | (unsigned)e1 << 16"
             : k->cores == EINI_CUDA_CORES_TF32 ? "ein_bits(ein_tf32(e0))" : "e0");
  }
  eini_say(t, "  }\n");
}

// The same on tensor cores: fragments are read from shared memory as they lie.
static void eini_cuda_say_cored(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[k->cores];
  const int q = f->m / 8, rows = k->rows / q, cols = k->cols / 2, s = k->side[1];
  eini_text *t = &w->t;
  eini_cuda_say_starts(w, k, 0);
  eini_say(t, "  ix l%d[%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++) {\n"
              "  const ix full = left - EIN_TID %% 4 * 2 + EIN_TID %% 32 / 4 + 8 * i;\n"
              "  const ix in = full < cols ? full : 0;\n", s, cols, cols);
  eini_cuda_say_split_in(w, "in", k->across);
  eini_say(t, "  l%d[i] = ", s);
  eini_cuda_say_offset_in(w, s, k->across);
  eini_say(t, ";\n  }\n  const ix depth = (ix)p.z[2]%s;\n"
              "  for (ix k = 0; k < depth; k += %d) {\n  %s x[%d][%d], y[%d][%d];\n",
           k->along >= w->x->nfree ? " * n" : "", f->k, f->reg, rows, f->a, cols, f->b);
  eini_cuda_say_fragments(w, k, 0, rows);
  eini_cuda_say_fragments(w, k, 1, cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) {\n  ein_t z[%d];\n#pragma unroll\n"
              "  for (int o = 0; o < %d; o++) z[o] = c->a[%d * i + o / 2][2 * h + o %% 2].v;\n",
           rows, cols, f->c, f->c, q);
  eini_say(t, "  ein_mma_%s(z, x[i], y[h]);\n#pragma unroll\n"
              "  for (int o = 0; o < %d; o++) c->a[%d * i + o / 2][2 * h + o %% 2].v = z[o];\n"
              "  }\n  }\n", f->name, f->c, q);
}

static void eini_cuda_say_summed(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_text *t = &w->t;
  eini_cuda_say_starts(w, k, 0);
  eini_cuda_say_starts(w, k, 1);
  eini_say(t, "#pragma unroll 4\n  for (ix k = 0; k < (ix)p.z[2]%s; k++) {\n",
           k->along >= x->nfree ? " * n" : "");
  eini_cuda_say_split_in(w, "k", eini_cuda_loops(x->nfree, x->n));
  eini_cuda_say_sides(w, k);
  eini_cuda_say_each(t, k);
  eini_say(t, " {\n");
  eini_cuda_say_pair(w, k);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(t, "  c->a[i][h] = ein_merge(c->a[i][h], ein_lift(%s, %s));\n  }\n  }\n", name, at);
}

static void eini_cuda_say_piece_product(eini_cuda_writer *w, const eini_cuda_act *k) {
  eini_text *t = &w->t;
  eini_cuda_say_grid(w, k);
  if (k->when == EINI_CUDA_PIECE) {
    eini_say(t, "  ein_sums own, *const c = &own;\n");
    eini_cuda_say_each(t, k);
    eini_say(t, " c->a[i][h] = ein_none();\n");
  }
  if (k->cores) eini_cuda_say_cored(w, k);
  else eini_cuda_say_summed(w, k);
  if (k->when == EINI_CUDA_PIECE) eini_cuda_say_sums_end(w, k);
}

// ---- the source ----

// How a fold along begins and ends.
static void eini_cuda_say_fold_ends(eini_cuda_writer *w, const ein_group *g,
                                    const eini_cuda_act *k, int at) {
  eini_text *t = &w->t;
  eini_cuda_say_head(w, g, k, "ein_begin", at);
  if (k->rows > 0) {
    eini_cuda_say_each(t, k);
    eini_say(t, " c->a[i][h] = ein_none();\n}\n");
  } else {
    eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]; i += %d)\n"
                "  ((ein_state *)b%d)[i] = ein_none();\n}\n", EINI_CUDA_THREADS, k->state);
  }
  eini_cuda_say_head(w, g, k, "ein_end", at);
  if (k->rows > 0) {
    eini_cuda_say_grid(w, k);
    eini_cuda_say_sums_end(w, k);
    eini_say(t, "}\n");
    return;
  }
  eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]; i += %d) {\n", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, k->x.nfree);
  eini_say(t, "  %s y = ein_finish(((ein_state *)b%d)[i], p.q[%d]);\n",
           eini_cuda_type(k->x.result), k->state, 2 * w->q);
  eini_cuda_say_close(w, k);
  eini_cuda_say_store(w, "y");
  eini_say(t, "  }\n}\n");
}

static int eini_cuda_say_act(eini_cuda_writer *w, const ein_group *g, const eini_cuda_act *k,
                             int number, int at) {
  eini_text *t = &w->t;
  w->own = k->own;
  w->along = k->along + 1;
  eini_cuda_say_names(t, number, 1);
  eini_cuda_say_args(w);
  if (!eini_cuda_say_fold(w)) return 0;
  if (k->rows > 0)
    eini_say(t, "typedef struct { ein_state a[%d][%d]; } ein_sums;\n", k->rows, k->cols);
  if (k->when == EINI_CUDA_FOLDED) eini_cuda_say_fold_ends(w, g, k, at);
  eini_cuda_say_head(w, g, k, "ein_stage", at);
  if (k->rows > 0) {
    eini_cuda_say_piece_product(w, k);
  } else if (k->when == EINI_CUDA_FOLDED) {
    eini_cuda_say_shared_folds(w);
    eini_cuda_say_taken(w, k);
    eini_say(t, "  }\n  }\n");
  } else {
    eini_cuda_say_results(w);
  }
  eini_say(t, "}\n");
  eini_cuda_say_names(t, number, 0);
  w->own = NULL;
  w->along = 0;
  return 1;
}

// The act behind number i in order of those of a kind, or -1.
static int eini_cuda_next(const eini_cuda_going *a, int i, int from, int to) {
  while (++i < a->n)
    if (a->act[a->order[i]].when >= from && a->act[a->order[i]].when <= to) return a->order[i];
  return -1;
}

// Calls what acts of a kind do, one after another; copies need not wait for each other. `of`:
// ein_stage, ..
static void eini_cuda_say_calls(eini_text *t, const ein_group *g, const eini_cuda_going *a,
                                const char *of, int from, int to) {
  for (int i = 0; i < a->n; i++) {
    const int k = a->order[i], next = eini_cuda_next(a, i, from, to);
    const eini_cuda_act *x = &a->act[k];
    if (x->when < from || x->when > to) continue;
    eini_say(t, "  %s%d(p.a%d, p.u, ein_room", x->when == EINI_CUDA_AFTER ? "ein_stage" : of, k, k);
    for (int l = 0; l < g->nloop; l++) {
      if (l != g->along) eini_say(t, ", g%d", l);
      else eini_say(t, from == EINI_CUDA_PIECE ? ", at" : ", 0");
    }
    eini_say(t, from == EINI_CUDA_PIECE ? ", n" : ", 0");
    eini_say(t, x->rows > 0 && x->when == EINI_CUDA_FOLDED ? ", &c%d);\n" : ");\n", k);
    if (x->stage >= 0 || next < 0 || a->act[next].stage >= 0) eini_say(t, "  EIN_SYNC;\n");
  }
}

// The kernel around the acts.
static void eini_cuda_say_going(eini_text *t, const ein_group *g, const eini_cuda_going *a) {
  const int l = g->along;
  eini_say(t, "typedef struct {\n");
  for (int k = 0; k < a->n; k++) eini_say(t, "  ein_args%d a%d;\n", k, k);
  eini_say(t, "  ein_steps u;\n} ein_args;\nEIN_KERNEL ein_kernel(const ein_args p) {\n"
              "  EIN_ROOM;\n  long long d = EIN_BID;\n");
  for (int i = l - 1; i >= 0; i--)
    eini_say(t, "  const long long g%d = p.u.o[%d] + d %% p.u.n[%d] * p.u.k[%d]; d /= p.u.n[%d];\n",
             i, i, i, i, i);
  for (int k = 0; k < a->n; k++)
    if (a->act[k].rows > 0 && a->act[k].when == EINI_CUDA_FOLDED)
      eini_say(t, "  ein_sums%d c%d;\n", k, k);
  eini_cuda_say_calls(t, g, a, "ein_begin", EINI_CUDA_FOLDED, EINI_CUDA_FOLDED);
  eini_cuda_say_calls(t, g, a, "ein_stage", EINI_CUDA_BEFORE, EINI_CUDA_BEFORE);
  eini_say(t, "  for (long long at = 0; at < p.u.length; at += p.u.k[%d]) {\n"
              "  const int n = (int)(p.u.length - at < p.u.k[%d] ? p.u.length - at : p.u.k[%d]);\n",
           l, l, l);
  eini_cuda_say_calls(t, g, a, "ein_stage", EINI_CUDA_PIECE, EINI_CUDA_FOLDED);
  eini_say(t, "  }\n");
  eini_cuda_say_calls(t, g, a, "ein_end", EINI_CUDA_FOLDED, EINI_CUDA_AFTER);
  eini_say(t, "}\n");
}

// The instructions of tensor cores that acts use, each once.
static void eini_cuda_say_mmas(eini_text *t, const eini_cuda_going *a) {
  for (int c = 1; c <= EINI_CUDA_CORES_F16_8; c++) {
    int used = 0;
    for (int k = 0; k < a->n; k++) used |= a->act[k].cores == c;
    if (!used) continue;
    if (c == EINI_CUDA_CORES_TF32) eini_cuda_say_tf32(t);
    eini_cuda_say_mma(t, &eini_cuda_fragments[c], c);
  }
}

static eini_cuda_kernel *eini_cuda_going_write(ein_cuda *c, const ein_group *g,
                                               const eini_cuda_going *a) {
  eini_cuda_writer w;
  eini_cuda_kernel *kernel = NULL;
  int at = 0, said = 1, words = 3 * g->nloop + 1 + eini_cuda_going_steps(g, a) + 1;
  if (!eini_cuda_writer_begin(c, &w)) return NULL;
  w.staged = 1;
  eini_cuda_say_helpers(&w);
  eini_cuda_say_mmas(&w.t, a);
  eini_say(&w.t, "typedef struct { long long o[%d], n[%d], k[%d], length, t[%d]; } ein_steps;\n",
           g->nloop, g->nloop, g->nloop, eini_cuda_going_steps(g, a) + 1);
  for (int k = 0; k < a->n && said; k++) {
    eini_cuda_writer_of(&w, &a->act[k].x);
    said = eini_cuda_say_act(&w, g, &a->act[k], k, at);
    words += eini_cuda_words(&w);
    at += eini_cuda_act_steps(g, &a->act[k]);
  }
  eini_cuda_say_going(&w.t, g, a);
  if (said && words <= EINI_CUDA_WORDS) kernel = eini_cuda_kernel_of(c, &w);
  eini_cuda_writer_end(c, &w);
  return kernel;
}

// ---- choosing ----

// Seconds of a value of an act. Products of fewer results for a thread than tiles of contractions
// have read more.
static double eini_cuda_act_seconds(const ein_cuda *c, const eini_cuda_speeds *v,
                                    const eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  const int wide = x->type == EIN_F64 || x->type == EIN_C128 || x->type == EIN_I64;
  const double planes = eini_cuda_complex(x->type) ? 4 : 1;
  if (k->cores) return 2 / v->cores[k->cores - 1];
  if (k->rows > 0) return 2 * planes * fmax(1, 2.0 / k->rows + 2.0 / k->cols) / v->tiles[wide];
  return (4 * planes + eini_cuda_load_flops * (1 + x->nop)) /
         (wide ? c->device.flops_f64 : c->device.flops_f32);
}

// Seconds of all blocks, and in *traffic bytes to and from multiprocessors.
static double eini_cuda_going_seconds(const ein_cuda *c, const ein_group *g,
                                      const eini_cuda_going *a, double blocks, double *traffic) {
  const double resident = floor((double)c->device.shared / (double)(a->room + 1024));
  const double wide = fmin(1, blocks / c->device.processors);
  const double busy = fmax(1, resident) * EINI_CUDA_THREADS / eini_cuda_busy;
  const double full = wide * fmin(1, busy);
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, a->act[0].x.rates);
  double once = 0, compute = 0;
  *traffic = 0;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    const eini_cuda_nest *x = &k->x;
    const int pieces = k->when == EINI_CUDA_PIECE || k->when == EINI_CUDA_FOLDED;
    const double times = blocks * (pieces ? (double)g->count[g->along] : 1);
    // Several results of a thread are as good as several threads.
    const double alone = wide * fmin(1, busy * fmin(4, fmax(1, k->rows * k->cols / 4.0)));
    compute += (double)eini_cuda_extent(x, 0, x->n) * times * eini_cuda_act_seconds(c, &v, k) /
               alone;
    for (int s = 0; s < x->nstream; s++) {
      double bytes = (double)eini_cuda_points(x, s) * x->size[s];
      if (x->value[s] || k->own[s]) continue;
      *traffic += bytes * times;
      for (int l = 0; l < g->nloop; l++)
        if (k->step[s] != NULL && k->step[s][l] != 0) bytes *= (double)g->count[l];
      once += bytes;
    }
  }
  return 1 / v.launches +
         fmax(fmax(once / v.stream, *traffic / (eini_cuda_cached * v.stream)) / full, compute);
}

static eini_cuda_going *eini_cuda_going_new(ein_cuda *c, const ein_group *g) {
  eini_cuda_going *a = (eini_cuda_going *)c->al.alloc_fn(sizeof *a, 64, c->al.user);
  if (a == NULL || eini_cuda_going_of(c, g, a)) return a;
  c->al.free_fn(a, sizeof *a, c->al.user);
  return NULL;
}

static int eini_cuda_going_plan(ein_cuda *c, const ein_group *g, int nth, ein_choice *h) {
  eini_cuda_together way;
  double blocks = 1, traffic;
  for (int l = 0; l < g->along; l++) blocks *= (double)g->count[l];
  if (nth > 0 || blocks > INT32_MAX || g->length > INT64_MAX / 2) return 0;
  eini_cuda_going *a = eini_cuda_going_new(c, g);
  if (a == NULL) return 0;
  memset(&way, 0, sizeof way);
  way.room = a->room;
  way.blocks = (int64_t)blocks;
  way.kernel = eini_cuda_going_write(c, g, a);
  memset(h, 0, sizeof *h);
  h->seconds = eini_cuda_going_seconds(c, g, a, blocks, &traffic);
  if (c->only == 1) h->seconds = 0;
  h->traffic = traffic;
  c->al.free_fn(a, sizeof *a, c->al.user);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  h->scratch = way.room;
  snprintf(h->variant, sizeof h->variant, "along");
  memcpy(h->state, &way, sizeof way);
  return way.kernel != NULL;
}

// ---- running ----

static void eini_cuda_going_words(const ein_group *g, const eini_cuda_going *a, uint64_t *word) {
  int n = 0;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    int64_t z[EINI_CUDA_NUMBERS] = {1, 1, 1, 1};
    eini_cuda_writer w;
    for (int j = 0; j < k->x.n; j++) {
      const int across = k->across >> j & 1;
      const int to = k->rows > 0 ? (j >= k->x.nfree ? 2 : across) : j >= k->x.nfree;
      if (j != k->along) z[to] *= k->x.extent[j];
    }
    if (k->rows == 0) {
      z[2] = (int64_t)1 << eini_cuda_lanes(&k->x);
      z[3] = (int64_t)a->states;
    }
    memset(&w, 0, sizeof w);
    eini_cuda_writer_of(&w, &k->x);
    n += eini_cuda_arguments(&w, z, NULL, word + n);
  }
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->from[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->count[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->block[l];
  word[n++] = (uint64_t)g->length;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    for (int s = 0; s < k->x.nstream; s++)
      for (int l = 0; l < g->nloop && k->step[s] != NULL && k->own[s] != 1; l++)
        if (k->step[s][l] != 0) word[n++] = (uint64_t)k->step[s][l];
  }
}

static ein_status eini_cuda_going_run(ein_cuda *c, const ein_group *g, const ein_choice *h) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_together way;
  memcpy(&way, h->state, sizeof way);
  eini_cuda_going *a = eini_cuda_going_new(c, g);
  if (a == NULL) return EIN_ERR_NO_MEMORY;
  memset(word, 0, sizeof word);
  eini_cuda_going_words(g, a, word);
  c->al.free_fn(a, sizeof *a, c->al.user);
  return eini_cuda_together_go(c, &way, word);
}

// ---- slots ----

static int eini_slot_cuda_group_plan(void *user, const ein_group *g, int nth, ein_choice *h) {
  ein_cuda *c = (ein_cuda *)user;
  return g->along < 0 ? eini_cuda_group_plan(c, g, nth, h) : eini_cuda_going_plan(c, g, nth, h);
}

static ein_status eini_slot_cuda_group_run(void *user, const ein_group *g, const ein_choice *h) {
  ein_cuda *c = eini_cuda_here(user);
  return g->along < 0 ? eini_cuda_group_run(c, g, h) : eini_cuda_going_run(c, g, h);
}

// ================================================================================================
// >>cuda-measure  what the device does, measured
// Takes an open device; gives ein_rates.away: copies by the caller's clock, kernels and products by
// the device's events, each for the largest size that takes no longer than need be.
// ================================================================================================

#define EINI_CUDA_PROBE ((int64_t)2048)        // rows and columns of products at most
#define EINI_CUDA_PROBE_COPY ((int64_t)1 << 25)  // elements of a copy on the device at most
#define EINI_CUDA_PROBE_SECONDS 3e-3           // a size that takes longer is large enough
#define EINI_CUDA_PROBE_RUNS 3

typedef struct eini_cuda_probe {
  ein_cuda *c;
  double (*now_fn)(void *user);
  void *now_user;
  void *at;                      // memory of the device: of three matrices, or of two halves
  double waited;                 // seconds of the clock that the last runs took, each
} eini_cuda_probe;

static double eini_cuda_probe_now(const eini_cuda_probe *p) { return p->now_fn(p->now_user); }

static ein_status eini_cuda_probe_wait(const eini_cuda_probe *p) {
  ein_ticket ticket;
  EINI_TRY(eini_slot_cuda_mark(p->c, &ticket));
  return eini_slot_cuda_wait(p->c, ticket);
}

// Seconds by events of what was chosen for a nest; 0: it fails. The first run compiles.
static double eini_cuda_probe_run(eini_cuda_probe *p, const eini_cuda_nest *x,
                                  const ein_contract *of, const ein_choice *h) {
  double before = 0, from = 0;
  for (int run = 0; run <= EINI_CUDA_PROBE_RUNS; run++) {
    eini_cuda_nest y = *x;
    if (eini_cuda_run(p->c, &y, of, h) != EIN_OK) return 0;
    if (run > 0) continue;
    if (eini_cuda_probe_wait(p) != EIN_OK) return 0;
    before = p->c->counts.seconds;
    from = eini_cuda_probe_now(p);
  }
  if (eini_cuda_probe_wait(p) != EIN_OK) return 0;
  p->waited = (eini_cuda_probe_now(p) - from) / EINI_CUDA_PROBE_RUNS;
  return (p->c->counts.seconds - before) / EINI_CUDA_PROBE_RUNS;
}

// Seconds of a copy of n elements of 4 bytes.
static double eini_cuda_probe_copy(eini_cuda_probe *p, int64_t n) {
  static const int64_t one = 1;
  static const unsigned char away[2] = {1, 1};
  ein_copy copy;
  ein_choice h;
  eini_cuda_nest x;
  memset(&copy, 0, sizeof copy);
  copy.n = 1;
  copy.extent = &n;
  copy.src_stride = copy.dst_stride = &one;
  copy.size = 4;
  copy.away = away;
  copy.dst = (char *)p->at;
  copy.src = copy.dst + 4 * EINI_CUDA_PROBE_COPY;
  if (!eini_cuda_of_copy(&copy, &x) || !eini_cuda_plan(p->c, &x, NULL, -1, &h)) return 0;
  return eini_cuda_probe_run(p, &x, NULL, &h);
}

// Seconds of a product of n x n matrices, stored as `stored`, by the way of this name; 0: there is
// none.
static double eini_cuda_probe_product(eini_cuda_probe *p, ein_dtype stored, const char *way,
                                      int64_t n) {
  static const unsigned char away[3] = {1, 1, 1};
  const int64_t one = 1, bytes = EINI_CUDA_PROBE * EINI_CUDA_PROBE * 8;
  const int64_t *const far[1] = {&n}, *const near[1] = {&one};
  const char *const base[2] = {(char *)p->at, (char *)p->at + bytes};
  ein_step load;
  ein_code code;
  ein_contract of;
  ein_choice h;
  eini_cuda_nest x;
  memset(&load, 0, sizeof load);
  memset(&code, 0, sizeof code);
  memset(&of, 0, sizeof of);
  of.type = ein_dtype_compute(stored);
  load.op = EIN_OP_OPERAND;
  load.type = (unsigned char)of.type;
  load.from = (unsigned char)stored;
  code.nreg = code.nstep = 1;
  code.step = &load;
  code.type = load.type;
  code.plain = stored == of.type ? 0 : -1;
  of.m.n = of.n.n = of.k.n = 1;
  of.m.extent = of.n.extent = of.k.extent = &n;
  for (int s = 0; s < 2; s++) {
    ein_side *side = s ? &of.q : &of.p;
    side->form = stored == of.type ? EIN_FORM_PLAIN : EIN_FORM_FUNCTION;
    side->nop = 1;
    side->dtype = &stored;
    side->row = s ? near : far;
    side->k = s ? far : near;
    side->batch = near;
    side->base = &base[s];
    side->code = &code;
  }
  of.out_dtype = of.type;
  of.out_m = &n, of.out_n = &one;
  of.out = (char *)p->at + 2 * bytes;
  of.plain_out = 1;
  of.away = away;
  if (!eini_cuda_of_contract(&of, &x)) return 0;
  for (int nth = 0; eini_cuda_plan(p->c, &x, &of, nth, &h); nth++)
    if (strcmp(h.variant, way) == 0) return eini_cuda_probe_run(p, &x, &of, &h);
  return 0;
}

// Operations per second of the largest product that is not too long; 1: there is none.
static double eini_cuda_probe_speed(eini_cuda_probe *p, ein_dtype stored, const char *way) {
  double speed = 1;
  for (int64_t n = 64; n <= EINI_CUDA_PROBE; n *= 2) {
    const double seconds = eini_cuda_probe_product(p, stored, way, n);
    if (!(seconds > 0)) break;
    speed = 2 * (double)n * (double)n * (double)n / seconds;
    if (p->waited > EINI_CUDA_PROBE_SECONDS) break;
  }
  return speed;
}

// Copies between host and device: a short one that is waited for, and all of `memory`.
static ein_status eini_cuda_probe_link(eini_cuda_probe *p, char *memory, size_t bytes,
                                       double away[2]) {
  const size_t most = (size_t)(8 * EINI_CUDA_PROBE_COPY);
  double least = HUGE_VAL;
  if (bytes > most) bytes = most;
  for (int run = 0; run < 2 * EINI_CUDA_PROBE_RUNS; run++) {
    const double from = eini_cuda_probe_now(p);
    EINI_TRY(eini_slot_cuda_copy(p->c, 8, p->at, memory, 0));
    least = fmin(least, eini_cuda_probe_now(p) - from);
  }
  const double from = eini_cuda_probe_now(p);
  EINI_TRY(eini_slot_cuda_copy(p->c, bytes, memory, p->at, 1));
  EINI_TRY(eini_cuda_probe_wait(p));
  const double took = fmax(eini_cuda_probe_now(p) - from, 1e-9);
  away[0] = 1 / fmax(least, 1e-9);
  away[1] = fmax((double)bytes / took, 1);
  return EIN_OK;
}

static void eini_slot_cuda_measure(void *user, double (*now_fn)(void *user), void *now_user,
                                   void *memory, size_t bytes, ein_rates *rates) {
  static const struct { ein_dtype type; const char *way; } products[] = {
      {EIN_F32, "tiles"}, {EIN_F64, "tiles"}, {EIN_F64, "cores"}, {EIN_F32, "cores"},
      {EIN_F16, "cores"}, {EIN_BF16, "cores"}, {EIN_F16, "cores"}, {EIN_F32, "gemm"},
      {EIN_F64, "gemm"}};
  eini_cuda_probe p;
  double away[16], seconds;
  memset(&p, 0, sizeof p);
  p.c = (ein_cuda *)user;
  p.now_fn = now_fn;
  p.now_user = now_user;
  for (int i = 0; i < 16; i++) away[i] = 1;
  if (eini_slot_cuda_alloc(p.c, (size_t)(8 * EINI_CUDA_PROBE_COPY), &p.at) != EIN_OK) return;
  ein_status st = eini_cuda_probe_link(&p, (char *)memory, bytes, away);
  for (int64_t n = 1; n <= EINI_CUDA_PROBE_COPY && st == EIN_OK; n = n == 1 ? 1 << 16 : 2 * n) {
    seconds = eini_cuda_probe_copy(&p, n);
    if (!(seconds > 0)) st = EIN_ERR_INTERNAL;
    else if (n == 1) away[2] = 1 / seconds;
    else away[3] = 8 * (double)n / seconds;
    if (n > 1 && p.waited > EINI_CUDA_PROBE_SECONDS) break;
  }
  for (int i = 0; i < 9 && st == EIN_OK; i++)
    away[4 + i] = eini_cuda_probe_speed(&p, products[i].type, products[i].way);
  eini_slot_cuda_free(p.c, p.at);
  if (st == EIN_OK) memcpy(rates->away, away, sizeof away);
}

// ================================================================================================
// >>cuda-public  the provider and what a caller sees
// Without a device there is an object that says so, and no provider.
// ================================================================================================

static int eini_slot_cuda_contract_plan(void *user, const ein_contract *c, int width, int nth,
                                        ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_contract(c, &x) && eini_cuda_plan((ein_cuda *)user, &x, c, nth, choice);
}
static ein_status eini_slot_cuda_contract_run(void *user, const ein_contract *c,
                                              const ein_choice *choice, const ein_part *part,
                                              void *scratch) {
  eini_cuda_nest x;
  (void)part, (void)scratch;  // it is never cut
  return eini_cuda_of_contract(c, &x) ? eini_cuda_run(eini_cuda_here(user), &x, c, choice)
                                      : EIN_ERR_INTERNAL;
}
static int eini_slot_cuda_copy_plan(void *user, const ein_copy *c, int width, int nth,
                                    ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_copy(c, &x) && eini_cuda_plan((ein_cuda *)user, &x, NULL, nth, choice);
}
static ein_status eini_slot_cuda_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                                          void *scratch) {
  eini_cuda_nest x;
  (void)scratch;
  return eini_cuda_of_copy(c, &x) ? eini_cuda_run(eini_cuda_here(user), &x, NULL, choice)
                                  : EIN_ERR_INTERNAL;
}
static int eini_slot_cuda_map_plan(void *user, const ein_map *m, int width, int nth,
                                   ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_map(m, &x) && eini_cuda_plan((ein_cuda *)user, &x, NULL, nth, choice);
}
static ein_status eini_slot_cuda_map_run(void *user, const ein_map *m, const ein_choice *choice,
                                         void *scratch) {
  eini_cuda_nest x;
  (void)scratch;
  return eini_cuda_of_map(m, &x) ? eini_cuda_run(eini_cuda_here(user), &x, NULL, choice)
                                 : EIN_ERR_INTERNAL;
}

static void eini_cuda_memory_slots(ein_cuda *c) {
  c->memory.space = EIN_CUDA_SPACE;
  c->memory.start = eini_cuda_copy_seconds;
  c->memory.bandwidth = c->only ? 0 : eini_cuda_link;
  c->memory.alloc_fn = eini_slot_cuda_alloc;
  c->memory.free_fn = eini_slot_cuda_free;
  c->memory.copy_fn = eini_slot_cuda_copy;
  c->memory.mark_fn = eini_slot_cuda_mark;
  c->memory.wait_fn = eini_slot_cuda_wait;
  c->memory.later_fn = eini_slot_cuda_later;
  c->memory.settle_fn = eini_slot_cuda_settle;
  c->memory.place_fn = eini_slot_cuda_place;
  c->memory.hold_fn = eini_slot_cuda_hold;
  c->memory.release_fn = eini_slot_cuda_release;
  c->memory.lend_fn = eini_slot_cuda_lend;
  c->memory.peer_fn = eini_slot_cuda_peer;
}

// Devices of places, as many as there are.
static ein_status eini_cuda_join_peers(ein_cuda *c, const ein_cuda_desc *d) {
  const int most = (int)eini_min64(d->devices, EINI_CUDA_DEVICES);
  if (d->devices < 0) return EIN_ERR_ARGUMENT;
  if (most < 2 || !c->ready) return EIN_OK;
  if (!eini_cuda_place_new(c)) return EIN_ERR_NO_MEMORY;
  while (c->npeer < most - 1) {
    ein_cuda_desc own = *d;
    own.devices = 1;
    own.device = d->device + c->npeer + 1;
    own.stream = NULL;
    own.shelf = NULL;
    ein_cuda **to = &c->peer[c->npeer++];
    EINI_TRY(ein_cuda_create(&own, &c->al, to));
    (*to)->chief = c;
    (*to)->shelf = c->shelf;
    if ((*to)->ready) continue;
    ein_cuda_destroy(*to);
    c->npeer--;
    if (c->npeer == 0) eini_cuda_place_end(c);
    break;
  }
  return EIN_OK;
}

EIN_API ein_status ein_cuda_create(const ein_cuda_desc *desc, const ein_allocator *allocator,
                                   ein_cuda **cuda) {
  ein_cuda_desc d;
  eini_arena arena;
  if (cuda == NULL) return EIN_ERR_ARGUMENT;
  *cuda = NULL;
  if (allocator != NULL && (allocator->alloc_fn == NULL) != (allocator->free_fn == NULL))
    return EIN_ERR_ARGUMENT;
  memset(&d, 0, sizeof d);
  if (desc != NULL) d = *desc;
  eini_arena_init(&arena, allocator);
  const ein_allocator al = arena.al;
  eini_arena_free(&arena);
  ein_cuda *c = (ein_cuda *)al.alloc_fn(sizeof *c, 64, al.user);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  memset(c, 0, sizeof *c);
  c->al = al;
  c->chief = c;
  c->last = &c->first;
  if (!eini_cuda_lock_new(c)) {
    al.free_fn(c, sizeof *c, al.user);
    return EIN_ERR_NO_MEMORY;
  }
  const ein_status st = eini_cuda_look(c, &d);
  if (st != EIN_OK) {
    ein_cuda_destroy(c);
    return st;
  }
  c->kernels.name = "cuda";
  if (c->ready) {
    snprintf(c->machine, sizeof c->machine, "%.64s, sm_%d%d", c->device.name, c->device.major,
             c->device.minor);
    c->kernels.machine = c->machine;
  }
  c->kernels.user = c;
  c->kernels.contract_plan = eini_slot_cuda_contract_plan;
  c->kernels.contract_run = eini_slot_cuda_contract_run;
  c->kernels.copy_plan = eini_slot_cuda_copy_plan;
  c->kernels.copy_run = eini_slot_cuda_copy_run;
  c->kernels.map_plan = eini_slot_cuda_map_plan;
  c->kernels.map_run = eini_slot_cuda_map_run;
  c->kernels.alone = c->only > 1;
  c->kernels.memory = &c->memory;
  c->kernels.measure_fn = eini_slot_cuda_measure;
  c->kernels.group_plan = eini_slot_cuda_group_plan;
  c->kernels.group_run = eini_slot_cuda_group_run;
  if (c->ready) c->kernels.group_bytes = c->device.shared - (size_t)EINI_CUDA_THREADS * 24;
  eini_cuda_memory_slots(c);
  const ein_status joined = eini_cuda_join_peers(c, &d);
  if (joined == EIN_OK) *cuda = c;
  else ein_cuda_destroy(c);
  return joined;
}

EIN_API void ein_cuda_destroy(ein_cuda *c) {
  if (c == NULL) return;
  for (int i = 0; i < c->npeer; i++) ein_cuda_destroy(c->peer[i]);
  if (c->npeer > 0) eini_cuda_place_end(c);
  eini_cuda_end_device(c);
  eini_cuda_kernels_free(c);
  eini_cuda_lock_end(c);
  c->al.free_fn(c, sizeof *c, c->al.user);
}

EIN_API int ein_cuda_ready(const ein_cuda *c) { return c != NULL && c->ready; }

EIN_API const ein_kernels *ein_cuda_kernels(const ein_cuda *c) {
  return ein_cuda_ready(c) ? &c->kernels : NULL;
}

EIN_API ein_status ein_cuda_use(ein_cuda *c, ein_ctx_desc *desc) {
  const int room = desc == NULL ? 0 : (int)(sizeof desc->use / sizeof *desc->use);
  if (c == NULL || desc == NULL || desc->nuse < 0) return EIN_ERR_ARGUMENT;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  if (desc->nuse >= room) return EIN_ERR_TOO_LARGE;
  desc->use[desc->nuse++] = &c->kernels;
  return EIN_OK;
}

// What was asked for is before what is put into the stream of kernels, by whom ever.
static ein_status eini_cuda_ordered(ein_cuda *c) {
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, eini_cuda_captured(c) ? EIN_OK : eini_cuda_join(c));
}

EIN_API ein_status ein_cuda_alloc(ein_cuda *c, size_t bytes, void **at) {
  if (c == NULL || at == NULL || bytes == 0) return EIN_ERR_ARGUMENT;
  *at = NULL;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_slot_cuda_alloc(c, bytes, at));
  const ein_status st = eini_cuda_ordered(c);
  if (st == EIN_OK) return EIN_OK;
  eini_slot_cuda_free(c, *at);
  *at = NULL;
  return st;
}

EIN_API void ein_cuda_free(ein_cuda *c, void *at) {
  if (ein_cuda_ready(c) && at != NULL) eini_slot_cuda_free(c, at);
}

static ein_status eini_cuda_copy(ein_cuda *c, size_t bytes, const void *from, void *to, int away) {
  if (c == NULL || (bytes > 0 && (from == NULL || to == NULL))) return EIN_ERR_ARGUMENT;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  if (bytes == 0) return EIN_OK;
  EINI_TRY(eini_slot_cuda_copy(c, bytes, from, to, away));
  return eini_cuda_ordered(c);
}

EIN_API ein_status ein_cuda_write(ein_cuda *c, void *at, const void *from, size_t bytes) {
  return eini_cuda_copy(c, bytes, from, at, 1);
}

EIN_API ein_status ein_cuda_read(ein_cuda *c, const void *at, void *to, size_t bytes) {
  return eini_cuda_copy(c, bytes, at, to, 0);
}

EIN_API size_t ein_cuda_info(const ein_cuda *c, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (c == NULL) return 0;
  if (!c->ready) {
    eini_say(&t, "cuda: no device: %s", c->why);
    return t.at;
  }
  int blas = 0;
  if (c->blas != NULL) (void)c->api.blas_version(c->blas, &blas);
  eini_say(&t, "cuda: %s, sm_%d%d, %d multiprocessors, %.1f GiB, %.1f TFLOP/s in f64, %.0f GB/s",
           c->device.name, c->device.major, c->device.minor, c->device.processors,
           c->device.bytes / 1073741824.0, c->device.flops_f64 * 1e-12,
           c->device.bandwidth * 1e-9);
  eini_say(&t, "\ncuda: driver %d.%d, NVRTC %d.%d, ", c->driver / 1000, c->driver % 1000 / 10,
           c->nvrtc[0], c->nvrtc[1]);
  if (c->blas == NULL) eini_say(&t, "no cuBLAS: generated kernels run");
  else eini_say(&t, "cuBLAS %d.%d.%d", blas / 10000, blas / 100 % 100, blas % 100);
  if (c->npeer > 0) eini_say(&t, "\ncuda: %d more for places", c->npeer);
  if (c->why[0] != 0) eini_say(&t, "\ncuda: last error: %s", c->why);
  return t.at;
}

EIN_API ein_cuda_counts ein_cuda_counts_get(const ein_cuda *c) {
  ein_cuda_counts none;
  memset(&none, 0, sizeof none);
  if (c == NULL) return none;
  ein_cuda_counts n = c->counts;
  for (int i = 0; i < c->npeer; i++) {
    const ein_cuda_counts *m = &c->peer[i]->counts;
    n.launches += m->launches, n.gemms += m->gemms;
    n.compiled += m->compiled, n.loaded += m->loaded;
    n.to_device += m->to_device, n.from_device += m->from_device, n.peer += m->peer;
    n.seconds += m->seconds;
  }
  return n;
}

EIN_API const char *ein_cuda_source(const ein_cuda *c, int i) {
  const eini_cuda_kernel *k = c == NULL ? NULL : c->first;
  while (k != NULL && i-- > 0) k = k->next;
  return k == NULL ? NULL : k->source;
}

// What EINSUM_CUDA brings into a ctx.
EINI_UNUSED static ein_status eini_cuda_start(const ein_allocator *al, ein_ctx_desc *desc,
                                              void **own) {
  ein_cuda *cuda;
  EINI_TRY(ein_cuda_create(NULL, al, &cuda));
  *own = cuda;
  return ein_cuda_use(cuda, desc);
}

EINI_UNUSED static void eini_cuda_end(void *own) { ein_cuda_destroy((ein_cuda *)own); }

#undef EINI_CUDA_LIST
#undef EINI_CUDA_GEMM
#undef EINI_CUDA_OPEN
#undef EINI_CUDA_CLOSE

#endif  // EINSUM_IMPLEMENTATION
