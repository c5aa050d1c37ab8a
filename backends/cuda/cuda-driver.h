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
