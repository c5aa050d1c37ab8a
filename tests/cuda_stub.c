// What einsum_cuda.h needs of CUDA's libraries on the CPU, as a shared object: device memory is
// memory that the host cannot touch outside of calls, streams do all at once, a generated
// kernel is compiled by $CC (cc) and its blocks and threads are loops. Barriers are kept: threads
// of a block take turns on stacks of their own, forwards and backwards, and all must reach each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 256, DEVICES = 8, STACK = 1 << 15, NO_MEMORY = 2, WRONG = 1, BROKEN = 719,
       ROOM = 48 << 10, ROOM_MOST = 64 << 10 };  // shared memory, and what a kernel may ask for

// ---- failing on purpose, and what is left behind ----

static long fail_at = -1, calls, live;
static int fail_code;

// Call number n from here on, of those that may fail, returns this code. -1: none.
void stub_fail(long n, int code);
void stub_fail(long n, int code) {
  fail_at = n < 0 ? -1 : calls + n;
  fail_code = code;
}
long stub_calls(void);
long stub_calls(void) { return calls; }
long stub_live(void);  // blocks of memory, modules, streams, events, contexts, handles
long stub_live(void) { return live; }

static int fails(void) { return calls++ == fail_at ? fail_code : 0; }

// ---- device memory ----

// Blocks that are taken, their bytes, the most there were, and how many there may be.
static struct { uint64_t at; size_t bytes; int device; } block[4096];
static int on_device;  // whose context was pushed last
static size_t taken, most_taken, room = SIZE_MAX;

void stub_room(size_t bytes);  // from now on
void stub_room(size_t bytes) { room = bytes, most_taken = taken; }
size_t stub_most(void);
size_t stub_most(void) { return most_taken; }

static char *arena;
static const size_t arena_bytes = (size_t)1 << 31;
static size_t arena_used;
static long arena_live;

// STUB_AWARE: the host may touch it, as a library of MPI does that knows of devices.
static void open_arena(void) {
  if (arena_used) mprotect(arena, arena_used, PROT_READ | PROT_WRITE);
}
static void shut_arena(void) {
  if (arena_used && getenv("STUB_AWARE") == NULL) mprotect(arena, arena_used, PROT_NONE);
}

int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream);
int cuMemAllocAsync(uint64_t *at, size_t bytes, void *stream) {
  const size_t page = 4096, whole = (bytes + 255) / 256 * 256;
  (void)stream;
  *at = 0;
  if (bytes == 0) return WRONG;
  const int failed = fails();
  if (failed) return failed;
  if (arena == NULL) {
    arena = (char *)mmap(NULL, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
    if (arena == MAP_FAILED) abort();
  }
  static size_t next;
  if (arena_live == 0) next = 0;
  int slot = 0;
  while (slot < 4095 && block[slot].at != 0) slot++;
  if (whole > arena_bytes - next || bytes > room || taken > room - bytes) return NO_MEMORY;
  char *p = arena + next;
  next += whole;
  if (next > arena_used) arena_used = (next + page - 1) / page * page;
  open_arena();
  memset(p, 0xff, whole);  // not a number
  shut_arena();
  *at = block[slot].at = (uint64_t)(uintptr_t)p;
  block[slot].bytes = bytes;
  block[slot].device = on_device;
  taken += bytes;
  if (taken > most_taken) most_taken = taken;
  arena_live++, live++;
  return 0;
}
int cuMemFreeAsync(uint64_t at, void *stream);
int cuMemFreeAsync(uint64_t at, void *stream) {
  (void)stream;
  for (int i = 0; i < 4096; i++) {
    if (block[i].at != at) continue;
    taken -= block[i].bytes;
    block[i].at = 0;
    break;
  }
  arena_live--, live--;
  return 0;
}
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuMemAlloc_v2(uint64_t *at, size_t bytes) { return cuMemAllocAsync(at, bytes, NULL); }
int cuMemFree_v2(uint64_t at);
int cuMemFree_v2(uint64_t at) { return cuMemFreeAsync(at, NULL); }
// Whose memory an address is in; -1: nobody's.
static int device_of(uint64_t at) {
  for (int i = 0; i < 4096; i++)
    if (block[i].at != 0 && at >= block[i].at && at - block[i].at < block[i].bytes)
      return block[i].device;
  return -1;
}
int stub_device(const void *at);
int stub_device(const void *at) { return device_of((uint64_t)(uintptr_t)at); }

// ---- what would be under way at a time ----
// Operations are done at once, but a clock says when each would run: after what its stream had
// before, what that waits for, and what the host has waited for. A kernel takes a unit of time, a
// copy one for each 64 KiB or less.

enum { STREAMS = 64 };
static struct { void *stream; double end; } line[STREAMS];
static double host_clock, together, last_kernel[2], last_copy[2];

static double *line_of(void *stream) {
  int free = -1;
  for (int i = 0; i < STREAMS; i++) {
    if (line[i].stream == stream) return &line[i].end;
    if (line[i].stream == NULL && free < 0) free = i;
  }
  if (free < 0) abort();
  line[free].stream = stream, line[free].end = 0;
  return &line[free].end;
}
static double shared(const double *x, const double *y) {
  const double from = x[0] > y[0] ? x[0] : y[0], to = x[1] < y[1] ? x[1] : y[1];
  return to > from ? to - from : 0;
}
static void passes(void *stream, double units, double *own, const double *other) {
  double *end = line_of(stream);
  own[0] = *end > host_clock ? *end : host_clock;
  own[1] = *end = own[0] + units;
  together += shared(own, other);
}
double stub_together(void);  // time in which a copy and a kernel, each the last one, ran at once
double stub_together(void) { return together; }
int stub_under_way(void);  // streams with something that the host has not waited for
int stub_under_way(void) {
  int n = 0;
  for (int i = 0; i < STREAMS; i++) n += line[i].stream != NULL && line[i].end > host_clock;
  return n;
}

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  (void)flags;
  const int failed = fails();
  if (failed) return failed;
  *p = malloc(bytes);
  live += *p != NULL;
  return *p == NULL ? NO_MEMORY : 0;
}
int cuMemFreeHost(void *p);
int cuMemFreeHost(void *p) {
  free(p), live--;
  return 0;
}
static int copy(void *to, const void *from, size_t bytes, const void *device, void *stream) {
  const char *d = (const char *)device;
  const int failed = fails();
  if (failed) return failed;
  if (bytes > 0 && (d < arena || d + bytes > arena + arena_used)) return WRONG;
  if (bytes > 0 && device_of((uint64_t)(uintptr_t)d) != on_device) return WRONG;
  passes(stream, (double)((bytes + 65535) / 65536), last_copy, last_kernel);
  open_arena();
  memcpy(to, from, bytes);
  shut_arena();
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  return copy((void *)(uintptr_t)to, from, bytes, (void *)(uintptr_t)to, stream);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  return copy(to, (void *)(uintptr_t)from, bytes, (void *)(uintptr_t)from, stream);
}

// ---- the driver ----

int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *v);
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuGetErrorString(int code, const char **text);
int cuGetErrorString(int code, const char **text) {
  *text = code == NO_MEMORY ? "out of memory" : code == BROKEN ? "launch failed" : "wrong";
  return 0;
}
int cuDeviceGetCount(int *n);
static int devices(void) {
  const char *given = getenv("STUB_DEVICES");
  return getenv("STUB_NO_DEVICE") != NULL ? 0 : given != NULL ? atoi(given) : 1;
}
int cuDeviceGetCount(int *n) { *n = devices(); return 0; }
int cuDeviceGet(int *device, int i);
int cuDeviceGet(int *device, int i) {
  *device = i;
  return i >= 0 && i < devices() && i < DEVICES ? 0 : WRONG;
}
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  snprintf(name, (size_t)size, "a stub on the CPU");
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = arena_bytes;
  return 0;
}
static int arch(void) {
  const char *given = getenv("STUB_ARCH");
  return given != NULL ? atoi(given) : 90;
}
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 13 ? 1500000 : attribute == 16 ? 2 : attribute == 36 ? 200000
           : attribute == 37 ? 4096 : attribute == 75 ? arch() / 10 : attribute == 76 ? arch() % 10
           : attribute == 97 ? ROOM_MOST : 0;
  return 0;
}
static int depth;  // contexts pushed
static char contexts[DEVICES];
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;  // between push and pop: one thread
// STUB_TRACE: a folder that gets a file for each device in use, and for each that ran a kernel.
static long ran[DEVICES];  // kernels of each
long stub_ran(int device);
long stub_ran(int device) { return ran[device]; }
static void trace(const char *what, int device) {
  const char *folder = getenv("STUB_TRACE");
  char name[300];
  if (folder == NULL) return;
  snprintf(name, sizeof name, "%.250s/%s%d", folder, what, device);
  FILE *f = fopen(name, "w");
  if (f != NULL) fclose(f);
}
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRetain(void **ctx, int device) {
  const int failed = fails();
  if (failed) return failed;
  trace("device", device);
  *ctx = &contexts[device];
  live++;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device) {
  live--;
  return device < devices() ? 0 : WRONG;
}
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPushCurrent_v2(void *ctx) {
  const char *c = (const char *)ctx;
  if (c < contexts || c >= contexts + DEVICES) return WRONG;
  pthread_mutex_lock(&one);
  depth++;
  on_device = (int)(c - contexts);
  return 0;
}
int cuCtxPopCurrent_v2(void **ctx);
int cuCtxPopCurrent_v2(void **ctx) {
  *ctx = contexts;
  const int wrong = --depth < 0;
  pthread_mutex_unlock(&one);
  return wrong ? WRONG : 0;
}

// ---- devices that open their memory to each other: not with STUB_NO_PEERS ----

static char opened[DEVICES][DEVICES];  // to whom, whose
static long peer_questions, peer_bytes;
long stub_asked(void);  // questions whether a device reaches another's memory
long stub_asked(void) { return peer_questions; }
long stub_peer(void);   // bytes that went from one device to another
long stub_peer(void) { return peer_bytes; }

int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  peer_questions++;
  *can = getenv("STUB_NO_PEERS") == NULL;
  return device != peer && device < DEVICES && peer < DEVICES ? fails() : WRONG;
}
int cuCtxEnablePeerAccess(void *ctx, unsigned flags);
int cuCtxEnablePeerAccess(void *ctx, unsigned flags) {
  const long peer = (const char *)ctx - contexts;
  if (peer < 0 || peer >= DEVICES || flags != 0 || peer == on_device || depth < 1) return WRONG;
  const int failed = fails(), again = opened[on_device][peer];
  if (failed) return failed;
  opened[on_device][peer] = 1;
  return again ? 704 : 0;
}
int cuMemcpyPeerAsync(uint64_t to, void *to_ctx, uint64_t from, void *from_ctx, size_t bytes,
                      void *stream);
int cuMemcpyPeerAsync(uint64_t to, void *to_ctx, uint64_t from, void *from_ctx, size_t bytes,
                      void *stream) {
  const int src = (int)((char *)from_ctx - contexts), dst = (int)((char *)to_ctx - contexts);
  const int failed = fails();
  if (failed) return failed;
  if (bytes == 0 || device_of(from) != src || device_of(to) != dst ||
      device_of(from + bytes - 1) != src || device_of(to + bytes - 1) != dst ||
      dst != on_device || !opened[src][dst] || !opened[dst][src])
    return WRONG;
  passes(stream, (double)((bytes + 65535) / 65536), last_copy, last_kernel);
  open_arena();
  memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  shut_arena();
  peer_bytes += (long)bytes;
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  if (device_of(from) != on_device) return WRONG;
  return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, (void *)(uintptr_t)to,
              stream);
}
static int handle(void **p) {
  const int failed = fails();
  if (failed) return failed;
  *p = malloc(1);
  live++;
  return 0;
}
static int drop(void *p) {
  free(p);
  live--;
  return 0;
}
// While a stream is captured, kernels are noted; stub_capture(0) ends it, stub_replay runs them.
// What would wait or time something is wrong then.
static int captured, nnoted;
static struct { void *f; unsigned blocks, shared; char args[4096]; } noted[16];
void stub_capture(int on);
void stub_capture(int on) {
  if (on) nnoted = 0;
  captured = on;
}
int stub_replay(void);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = captured; return 0; }
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags) { return flags > 1 ? WRONG : handle(stream); }
int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream) {
  for (int i = 0; i < STREAMS; i++)
    if (line[i].stream == stream) line[i].stream = NULL;
  return drop(stream);
}
int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream) {
  if (*line_of(stream) > host_clock) host_clock = *line_of(stream);
  return depth > 0 && !captured ? 0 : WRONG;
}
int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags) {
  const int failed = flags > 3 ? WRONG : fails();
  if (failed) return failed;
  *event = calloc(1, sizeof(double));
  live++;
  return 0;
}
int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event) { return drop(event); }
int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream) {
  if (event != NULL) *(double *)event = *line_of(stream);
  return event == NULL || captured ? WRONG : fails();
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  if (event == NULL || captured || flags != 0) return WRONG;
  if (*(double *)event > *line_of(stream)) *line_of(stream) = *(double *)event;
  return fails();
}
int cuEventSynchronize(void *event);
int cuEventSynchronize(void *event) {
  if (event != NULL && *(double *)event > host_clock) host_clock = *(double *)event;
  return event == NULL || captured ? WRONG : fails();
}
int cuEventElapsedTime(float *ms, void *from, void *to);
int cuEventElapsedTime(float *ms, void *from, void *to) {
  *ms = 0.5f;
  return from == NULL || to == NULL || from == to ? WRONG : 0;
}
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDeviceGetDefaultMemPool(void **pool, int device) {
  *pool = &depth;
  return device < devices() ? 0 : WRONG;
}
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  return pool == &depth && attribute == 4 && value != NULL ? 0 : WRONG;
}

// ---- NVRTC ----

static const char before[] =
    "#define EIN_HOST\n#include <math.h>\n"
    "int shim_tid, shim_bid, shim_blocks;\nvoid (*shim_sync)(void);\n"
    "#define EIN_KERNEL static void\n#define EIN_DEVICE static inline\n"
    "#define EIN_SHARED static\n#define EIN_SYNC shim_sync()\n#define EIN_TID shim_tid\n"
    "#define EIN_BID shim_bid\n#define EIN_BLOCKS shim_blocks\n"
    "char *shim_room;\n#define EIN_ROOM char *ein_room = shim_room\n"
    "#define EIN_ARGS(type) const type\n"
    "long shim_reads, shim_writes;\n#define EIN_READ(at) (shim_reads++, (at))\n"
    "#define EIN_WRITE(at) (shim_writes++, (at))\n";
// Tensor cores: lanes of a warp hand over what they hold, and each adds up its own sums. Which lane
// holds what of a fragment: PTX ISA, matrix fragments of mma. A and B are read back by the inverse
// of what the ISA says of registers.
static const char cores[] =
    "static double core_a[256][8], core_b[256][8];\n"
    "static float core_half(int kind, unsigned h) {\n"
    "  union { unsigned u; float f; } x; int e = h >> 10 & 31, m = h & 1023; float s;\n"
    "  if (kind == 2) { x.u = h << 16; return x.f; }\n"
    "  s = e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24);\n"
    "  if (e == 31) s = m ? NAN : INFINITY;\n"
    "  return h >> 15 ? -s : s;\n}\n"
    "static void core_sum(int m, int k, double *out, const int *row, const int *col, int n) {\n"
    "  int w = shim_tid & ~31; shim_sync();\n"
    "  for (int i = 0; i < n; i++) { double s = 0;\n"
    "    for (int j = 0; j < k; j++) { int lane, at, r = row[i];\n"
    "      int two = k == 16 || (m == 16 && k == 8 && core_a[w][7] == 2);\n"
    "      if (two) { lane = r % 8 * 4 + j % 8 / 2; at = (j / 8 * 2 + r / 8) * 2 + j % 2; }\n"
    "      else { lane = r % 8 * 4 + j % 4; at = j / 4 * 2 + r / 8; }\n"
    "      double x = core_a[w + lane][at];\n"
    "      lane = two ? col[i] * 4 + j % 8 / 2 : col[i] * 4 + j % 4;\n"
    "      at = two ? j / 8 * 2 + j % 2 : j / 4;\n"
    "      s += x * core_b[w + lane][at]; }\n"
    "    out[i] = s; }\n  shim_sync();\n}\n"
    "static void core_where(int *row, int *col) { int l = shim_tid & 31;\n"
    "  for (int i = 0; i < 4; i++) row[i] = l / 4 + i / 2 * 8, col[i] = l % 4 * 2 + i % 2;\n}\n"
    "static void ein_mma_f64(double *c, const double *a, const double *b) {\n"
    "  int row[4], col[4]; double s[4]; core_where(row, col);\n"
    "  core_a[shim_tid][7] = 0; core_a[shim_tid][0] = a[0]; core_b[shim_tid][0] = b[0];\n"
    "  core_sum(8, 4, s, row, col, 2); c[0] += s[0]; c[1] += s[1];\n}\n"
    "static float core_f32(unsigned u) { union { unsigned u; float f; } x; x.u = u; return x.f; }\n"
    "static void ein_mma_tf32(float *c, const unsigned *a, const unsigned *b) {\n"
    "  int row[4], col[4]; double s[4]; core_where(row, col); core_a[shim_tid][7] = 0;\n"
    "  for (int i = 0; i < 4; i++) core_a[shim_tid][i] = core_f32(a[i] & 0xffffe000u);\n"
    "  for (int i = 0; i < 2; i++) core_b[shim_tid][i] = core_f32(b[i] & 0xffffe000u);\n"
    "  core_sum(16, 8, s, row, col, 4); for (int i = 0; i < 4; i++) c[i] += (float)s[i];\n}\n"
    "static void core_16(int kind, int k, float *c, const unsigned *a, const unsigned *b) {\n"
    "  int row[4], col[4], n = k / 4; double s[4]; core_where(row, col);\n"
    "  for (int i = 0; i < 2 * n; i++) {\n"
    "    double x = core_half(kind, a[i / 2] >> i % 2 * 16 & 0xffff);\n"
    "    if (i < n) core_b[shim_tid][i] = core_half(kind, b[i / 2] >> i % 2 * 16 & 0xffff);\n"
    "    core_a[shim_tid][i] = x; }\n"
    "  if (k == 8) core_a[shim_tid][7] = 2;\n"
    "  core_sum(16, k, s, row, col, 4); for (int i = 0; i < 4; i++) c[i] += (float)s[i];\n}\n"
    "static void ein_mma_f16(float *c, const unsigned *a, const unsigned *b) {\n"
    "  core_16(1, 16, c, a, b);\n}\n"
    "static void ein_mma_bf16(float *c, const unsigned *a, const unsigned *b) {\n"
    "  core_16(2, 16, c, a, b);\n}\n"
    "static void ein_mma_f16_8(float *c, const unsigned *a, const unsigned *b) {\n"
    "  core_16(1, 8, c, a, b);\n}\n";
static const char after[] =
    "const int shim_bytes = sizeof(ein_args);\n"
    "void shim_run(const void *a) { ein_kernel(*(const ein_args *)a); }\n";

typedef struct program {
  char *source, path[256], log[4096];
  int done;
} program;

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 0; return 0; }
int nvrtcCreateProgram(void **p, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names);
int nvrtcCreateProgram(void **p, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names) {
  (void)name, (void)headers, (void)names;
  const int failed = fails();
  if (failed) return failed;
  program *x = (program *)calloc(1, sizeof *x);
  x->source = strdup(source);
  *p = x;
  live++;
  return n;
}
int nvrtcDestroyProgram(void **p);
int nvrtcDestroyProgram(void **p) {
  program *x = (program *)*p;
  if (x->done && x->path[0]) unlink(x->path);
  free(x->source);
  free(x);
  *p = NULL;
  live--;
  return 0;
}
int nvrtcCompileProgram(void *p, int n, const char *const *options);
int nvrtcCompileProgram(void *p, int n, const char *const *options) {
  program *x = (program *)p;
  const char *cc = getenv("CC"), *tmp = getenv("TMPDIR");
  char source[280], command[1024], log[280];
  const int failed = fails();
  if (failed) return failed;
  for (int i = 0; i < n; i++)
    if (strncmp(options[i], "--gpu-architecture=sm_", 22) != 0) return 5;
  snprintf(x->path, sizeof x->path, "%.200s/einsum-stub-XXXXXX", tmp != NULL ? tmp : P_tmpdir);
  const int fd = mkstemp(x->path);
  if (fd < 0) return NO_MEMORY;
  close(fd);
  x->done = 1;
  snprintf(source, sizeof source, "%s.c", x->path);
  snprintf(log, sizeof log, "%s.log", x->path);
  FILE *f = fopen(source, "w");
  if (f == NULL) return NO_MEMORY;
  fprintf(f, "%s%s%sconst int shim_syncs = %d;\n%s", before,
          strstr(x->source, "ein_mma") != NULL ? cores : "", x->source,
          strstr(x->source, "  EIN_SYNC;") != NULL, after);
  fclose(f);
  snprintf(command, sizeof command,
           "%s -std=c99 -O0 -w -fno-strict-aliasing -shared -fPIC -o %s %s -lm > %s 2>&1",
           cc != NULL && cc[0] != 0 ? cc : "cc", x->path, source, log);
  const int rc = system(command);
  f = fopen(log, "r");
  if (f != NULL) {
    x->log[fread(x->log, 1, sizeof x->log - 1, f)] = 0;
    fclose(f);
  }
  unlink(source);
  unlink(log);
  return rc == 0 ? 0 : 6;
}
int nvrtcGetProgramLogSize(void *p, size_t *bytes);
int nvrtcGetProgramLogSize(void *p, size_t *bytes) {
  *bytes = strlen(((program *)p)->log) + 1;
  return 0;
}
int nvrtcGetProgramLog(void *p, char *log);
int nvrtcGetProgramLog(void *p, char *log) {
  strcpy(log, ((program *)p)->log);
  return 0;
}
// Code is the shared object behind the number of its bytes.
static size_t object_bytes(const program *x) {
  struct stat s;
  return stat(x->path, &s) == 0 ? (size_t)s.st_size : 0;
}
int nvrtcGetCUBINSize(void *p, size_t *bytes);
int nvrtcGetCUBINSize(void *p, size_t *bytes) {
  *bytes = sizeof *bytes + object_bytes((const program *)p);
  return fails();
}
int nvrtcGetCUBIN(void *p, char *image);
int nvrtcGetCUBIN(void *p, char *image) {
  const size_t bytes = object_bytes((const program *)p);
  const int failed = fails();
  FILE *f = failed ? NULL : fopen(((program *)p)->path, "r");
  if (f == NULL) return failed ? failed : WRONG;
  memcpy(image, &bytes, sizeof bytes);
  const size_t got = fread(image + sizeof bytes, 1, bytes, f);
  fclose(f);
  return got == bytes ? 0 : WRONG;
}

// ---- modules and launches ----

typedef struct module {
  void *object;
  void (*run)(const void *args);
  int *tid, *bid, *blocks;
  void (**sync)(void);
  char **room;
  long *reads, *writes;
  int syncs, bytes, most;      // most: shared memory
} module;

int cuModuleLoadData(void **m, const void *image);
int cuModuleLoadData(void **m, const void *image) {
  const int failed = fails();
  if (failed) return failed;
  const char *tmp = getenv("TMPDIR");
  char path[256];
  size_t bytes;
  module *x = (module *)calloc(1, sizeof *x);
  snprintf(path, sizeof path, "%.200s/einsum-stub-XXXXXX", tmp != NULL ? tmp : P_tmpdir);
  const int fd = mkstemp(path);
  memcpy(&bytes, image, sizeof bytes);
  if (fd >= 0 && write(fd, (const char *)image + sizeof bytes, bytes) == (ssize_t)bytes)
    x->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (fd >= 0) close(fd), unlink(path);
  if (x->object == NULL) {
    free(x);
    return WRONG;
  }
  *m = x;
  live++;
  return 0;
}
int cuModuleUnload(void *m);
int cuModuleUnload(void *m) {
  dlclose(((module *)m)->object);
  return drop(m);
}
int cuModuleGetFunction(void **f, void *m, const char *name);
int cuModuleGetFunction(void **f, void *m, const char *name) {
  module *x = (module *)m;
  const int failed = fails();
  if (failed) return failed;
  if (strcmp(name, "ein_kernel") != 0) return WRONG;
  *(void **)&x->run = dlsym(x->object, "shim_run");
  x->tid = (int *)dlsym(x->object, "shim_tid");
  x->bid = (int *)dlsym(x->object, "shim_bid");
  x->blocks = (int *)dlsym(x->object, "shim_blocks");
  x->sync = (void (**)(void))dlsym(x->object, "shim_sync");
  x->room = (char **)dlsym(x->object, "shim_room");
  x->reads = (long *)dlsym(x->object, "shim_reads");
  x->writes = (long *)dlsym(x->object, "shim_writes");
  x->most = ROOM;
  x->syncs = *(int *)dlsym(x->object, "shim_syncs");
  x->bytes = *(int *)dlsym(x->object, "shim_bytes");
  *f = x;
  return x->run == NULL;
}

int cuFuncSetAttribute(void *f, int attribute, int value);
int cuFuncSetAttribute(void *f, int attribute, int value) {
  const int failed = fails();
  if (failed) return failed;
  if (attribute != 8 || value < 1 || value > ROOM_MOST) return WRONG;
  ((module *)f)->most = value;
  return 0;
}

// Elements that kernels of groups read and wrote of the device's memory, since these were asked.
static long reads, writes;
long stub_reads(void);
long stub_reads(void) {
  const long n = reads;
  reads = 0;
  return n;
}
long stub_writes(void);
long stub_writes(void) {
  const long n = writes;
  writes = 0;
  return n;
}

// Threads of the block at hand: coroutines that are made once and run block after block.
static jmp_buf scheduler, thread[THREADS];
static ucontext_t entry[THREADS];
static char started[THREADS], ended[THREADS];
static int current;
static const module *at_work;
static const void *args_at_work;

static void yield(void) {
  if (_setjmp(thread[current]) == 0) _longjmp(scheduler, 1);
}
static void body(void) {
  for (;;) {
    at_work->run(args_at_work);
    ended[current] = 1;
    yield();
  }
}
static void resume(int i) {
  current = i;
  *at_work->tid = i;
  if (_setjmp(scheduler) != 0) return;
  if (started[i]) _longjmp(thread[i], 1);
  started[i] = 1;
  getcontext(&entry[i]);
  entry[i].uc_stack.ss_sp = malloc(STACK);
  entry[i].uc_stack.ss_size = STACK;
  makecontext(&entry[i], body, 0);
  setcontext(&entry[i]);
}

// One block; 0: a barrier that not all threads reach.
static int run_block(void) {
  memset(ended, 0, sizeof ended);
  for (int phase = 0;; phase++) {
    int n = 0;
    for (int i = 0; i < THREADS; i++) resume(phase % 2 ? THREADS - 1 - i : i);
    for (int i = 0; i < THREADS; i++) n += ended[i];
    if (n == THREADS) return 1;
    if (n > 0) return 0;
  }
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra) {
  const module *m = (const module *)f;
  (void)extra;
  const int failed = fails();
  if (failed) return failed;
  if (gx == 0 || gx > INT32_MAX || gy * gz * by * bz != 1 || bx != THREADS ||
      (int)shared > m->most || m->bytes > 4096 || depth != 1)
    return WRONG;
  for (int i = 0; i + 8 <= m->bytes; i += 8) {  // what may be an address is none of another device
    uint64_t word;
    memcpy(&word, (const char *)args[0] + i, sizeof word);
    if (device_of(word) >= 0 && device_of(word) != on_device) return BROKEN;
  }
  if (captured) {
    if (nnoted == 16) return NO_MEMORY;
    noted[nnoted].f = f;
    noted[nnoted].blocks = gx;
    noted[nnoted].shared = shared;
    memcpy(noted[nnoted++].args, args[0], (size_t)m->bytes);
    return 0;
  }
  passes(stream, 1, last_kernel, last_copy);
  trace("ran", on_device);
  ran[on_device]++;
  open_arena();
  *m->blocks = (int)gx;
  *m->sync = yield;
  *m->room = (char *)malloc(shared + 1);
  at_work = m;
  args_at_work = args[0];
  for (unsigned b = 0; b < gx; b++) {
    *m->bid = (int)b;
    memset(*m->room, 0xff, shared);  // not a number
    if (m->syncs) {
      if (!run_block()) {
        fprintf(stderr, "stub: a barrier that not all threads of a block reach\n");
        abort();
      }
      continue;
    }
    for (int i = 0; i < THREADS; i++) {
      *m->tid = i;
      m->run(args[0]);
    }
  }
  shut_arena();
  reads += *m->reads, writes += *m->writes;
  *m->reads = *m->writes = 0;
  free(*m->room);
  return 0;
}

int stub_replay(void) {
  int code = 0;
  depth++;
  for (int i = 0; i < nnoted && code == 0; i++) {
    void *args[1] = {noted[i].args};
    code = cuLaunchKernel(noted[i].f, noted[i].blocks, 1, 1, THREADS, 1, 1, noted[i].shared, NULL,
                          args, NULL);
  }
  depth--;
  return code;
}

// ---- cuBLAS: products of matrices whose columns lie together ----

int cublasCreate_v2(void **h);
int cublasCreate_v2(void **h) { return getenv("STUB_NO_BLAS") != NULL ? 1 : handle(h); }
int cublasDestroy_v2(void *h);
int cublasDestroy_v2(void *h) { return drop(h); }
int cublasSetStream_v2(void *h, void *stream);
static void *blas_stream;
int cublasSetStream_v2(void *h, void *stream) { (void)h; blas_stream = stream; return 0; }
int cublasSetMathMode(void *h, int mode);
int cublasSetMathMode(void *h, int mode) { (void)h; return mode == 3 ? 0 : 7; }
int cublasGetVersion_v2(void *h, int *v);
int cublasGetVersion_v2(void *h, int *v) { (void)h; *v = 130000; return 0; }

// c = alpha * op(a) * op(b) + beta * c; what BLAS asks of leading dimensions is checked.
#define GEMM(name, T, R, planes)                                                                  \
  int name(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,        \
           int lda, long long sa, const void *b, int ldb, long long sb, const void *beta,         \
           void *c, int ldc, long long sc, int batch);                                            \
  int name(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,        \
           int lda, long long sa, const void *b, int ldb, long long sb, const void *beta,         \
           void *c, int ldc, long long sc, int batch) {                                           \
    const R *al = (const R *)alpha, *be = (const R *)beta;                                        \
    const int failed = fails();                                                                   \
    (void)h;                                                                                      \
    passes(blas_stream, 1, last_kernel, last_copy);                                               \
    if (failed) return failed == NO_MEMORY ? 3 : failed;                                          \
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || m < 1 || n < 1 || k < 1 ||         \
        (planes == 1 && (ta > 1 || tb > 1)))                                                      \
      return 7;                                                                                   \
    open_arena();                                                                                 \
    for (int q = 0; q < batch; q++)                                                               \
      for (int j = 0; j < n; j++)                                                                 \
        for (int i = 0; i < m; i++) {                                                             \
          R s[2] = {0, 0};                                                                        \
          for (int l = 0; l < k; l++) {                                                           \
            const R *x = (const R *)a + planes * (q * sa + (ta ? l + (long long)i * lda           \
                                                               : i + (long long)l * lda));        \
            const R *y = (const R *)b + planes * (q * sb + (tb ? j + (long long)l * ldb           \
                                                               : l + (long long)j * ldb));        \
            if (planes == 1) {                                                                    \
              s[0] += x[0] * y[0];                                                                \
              continue;                                                                           \
            }                                                                                     \
            const R xi = ta == 2 ? -x[planes - 1] : x[planes - 1];                                \
            const R yi = tb == 2 ? -y[planes - 1] : y[planes - 1];                                \
            s[0] += x[0] * y[0] - xi * yi;                                                        \
            s[1] += x[0] * yi + xi * y[0];                                                        \
          }                                                                                       \
          R *z = (R *)c + planes * (q * sc + i + (long long)j * ldc);                             \
          if (be[0] != 0) abort();                                                                \
          z[0] = planes == 1 ? al[0] * s[0] : al[0] * s[0] - al[1] * s[1];                        \
          if (planes == 2) z[planes - 1] = al[0] * s[1] + al[1] * s[0];                           \
        }                                                                                         \
    shut_arena();                                                                                 \
    return 0;                                                                                     \
  }
GEMM(cublasSgemmStridedBatched, float, float, 1)
GEMM(cublasDgemmStridedBatched, double, double, 1)
GEMM(cublasCgemmStridedBatched, float, float, 2)
GEMM(cublasZgemmStridedBatched, double, double, 2)

// Products of one group, whose addresses are on the device.
#define GROUPED(name, strided, T)                                                                 \
  int name(void *h, const int *ta, const int *tb, const int *m, const int *n, const int *k,       \
           const T *alpha, const T *const *a, const int *lda, const T *const *b, const int *ldb,  \
           const T *beta, T *const *c, const int *ldc, int groups, const int *size);              \
  int name(void *h, const int *ta, const int *tb, const int *m, const int *n, const int *k,       \
           const T *alpha, const T *const *a, const int *lda, const T *const *b, const int *ldb,  \
           const T *beta, T *const *c, const int *ldc, int groups, const int *size) {             \
    int code = groups == 1 ? 0 : 7;                                                               \
    for (int i = 0; i < size[0] && code == 0; i++) {                                              \
      open_arena();                                                                               \
      const T *x = a[i], *y = b[i];                                                               \
      T *z = c[i];                                                                                \
      shut_arena();                                                                               \
      code = strided(h, *ta, *tb, *m, *n, *k, alpha, x, *lda, 0, y, *ldb, 0, beta, z, *ldc, 0,    \
                     1);                                                                          \
    }                                                                                             \
    return code;                                                                                  \
  }
GROUPED(cublasSgemmGroupedBatched, cublasSgemmStridedBatched, float)
GROUPED(cublasDgemmGroupedBatched, cublasDgemmStridedBatched, double)

// ---- cuBLASLt: the same with stores, of what describes them ----

typedef struct lt {
  int compute, scale, op[2], epilogue;
  const char *bias;
  long long bias_step;
} lt;
typedef struct lt_matrix { int type, batch; uint64_t rows, cols; long long ld, step; } lt_matrix;

int cublasLtCreate(void **h);
int cublasLtCreate(void **h) { return getenv("STUB_NO_BLAS") != NULL ? 1 : handle(h); }
int cublasLtDestroy(void *h);
int cublasLtDestroy(void *h) { return drop(h); }
static int zeroed(void **p, size_t bytes) {
  const int failed = fails();
  if (failed) return failed == NO_MEMORY ? 3 : failed;
  *p = calloc(1, bytes);
  live++;
  return 0;
}
int cublasLtMatmulDescCreate(void **d, int compute, int scale);
int cublasLtMatmulDescCreate(void **d, int compute, int scale) {
  const int code = zeroed(d, sizeof(lt));
  if (code) return code;
  lt *x = (lt *)*d;
  x->compute = compute, x->scale = scale, x->epilogue = 1;
  return 0;
}
int cublasLtMatmulDescDestroy(void *d);
int cublasLtMatmulDescDestroy(void *d) { return drop(d); }
int cublasLtMatmulDescSetAttribute(void *d, int what, const void *from, size_t bytes);
int cublasLtMatmulDescSetAttribute(void *d, int what, const void *from, size_t bytes) {
  lt *x = (lt *)d;
  if (bytes != (what == 8 || what == 10 ? 8 : 4)) return 7;
  if (what == 3 || what == 4) memcpy(&x->op[what - 3], from, bytes);
  else if (what == 7) memcpy(&x->epilogue, from, bytes);
  else if (what == 8) memcpy(&x->bias, from, bytes);
  else if (what == 10) memcpy(&x->bias_step, from, bytes);
  else return 7;
  return 0;
}
int cublasLtMatrixLayoutCreate(void **d, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutCreate(void **d, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  const int code = zeroed(d, sizeof(lt_matrix));
  if (code) return code;
  if (ld < (int64_t)rows || (type > 2 && type != 14)) return 7;
  lt_matrix *x = (lt_matrix *)*d;
  x->type = type, x->batch = 1, x->rows = rows, x->cols = cols, x->ld = ld;
  return 0;
}
int cublasLtMatrixLayoutDestroy(void *d);
int cublasLtMatrixLayoutDestroy(void *d) { return drop(d); }
int cublasLtMatrixLayoutSetAttribute(void *d, int what, const void *from, size_t bytes);
int cublasLtMatrixLayoutSetAttribute(void *d, int what, const void *from, size_t bytes) {
  lt_matrix *x = (lt_matrix *)d;
  if (what == 5 && bytes == 4) memcpy(&x->batch, from, bytes);
  else if (what == 6 && bytes == 8) memcpy(&x->step, from, bytes);
  else return 7;
  return 0;
}
int cublasLtMatmulPreferenceCreate(void **d);
int cublasLtMatmulPreferenceCreate(void **d) { return zeroed(d, 1); }
int cublasLtMatmulPreferenceDestroy(void *d);
int cublasLtMatmulPreferenceDestroy(void *d) { return drop(d); }
int cublasLtMatmulPreferenceSetAttribute(void *d, int what, const void *from, size_t bytes);
int cublasLtMatmulPreferenceSetAttribute(void *d, int what, const void *from, size_t bytes) {
  return d != NULL && from != NULL && bytes == (what == 1 ? 8 : 4) ? 0 : 7;
}
static int lt_wrong(const lt *d, const lt_matrix *a, const lt_matrix *b, const lt_matrix *c,
                    const lt_matrix *to) {
  const uint64_t m = d->op[0] ? a->cols : a->rows, k = d->op[0] ? a->rows : a->cols;
  const uint64_t n = d->op[1] ? b->rows : b->cols, l = d->op[1] ? b->cols : b->rows;
  const int wide = a->type == 1;
  return m != to->rows || n != to->cols || k != l || c->rows != m || c->cols != n ||
         a->type != b->type || c->type != to->type || (d->epilogue & ~6 && d->epilogue != 1) ||
         d->scale != (wide ? 1 : 0) || d->compute != (wide ? 70 : 68) ||
         a->batch != to->batch || b->batch != to->batch || c->batch != to->batch;
}
// STUB_NO_STORES: it has no kernel for any of them.
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *to,
                                   void *wish, int most, void *found, int *n);
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *to,
                                   void *wish, int most, void *found, int *n) {
  (void)found;
  *n = 0;
  if (h == NULL || wish == NULL || most < 1 || getenv("STUB_NO_STORES") != NULL) return 15;
  if (lt_wrong((const lt *)d, (const lt_matrix *)a, (const lt_matrix *)b, (const lt_matrix *)c,
               (const lt_matrix *)to))
    return 7;
  *n = 1;
  return 0;
}
static double lt_at(int type, const void *p, long long i) {
  if (type == 1) return ((const double *)p)[i];
  if (type == 0) return (double)((const float *)p)[i];
  const unsigned h = ((const uint16_t *)p)[i], e = h >> 10 & 31, m = h & 1023;
  union { unsigned u; float f; } x;
  x.u = h << 16;
  if (type == 14) return (double)x.f;
  const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, (int)e - 25)
                                                      : ldexp(m, -24);
  return h >> 15 ? -v : v;
}
static void lt_put(int type, void *p, long long i, double v) {
  union { unsigned u; float f; } x;
  x.f = (float)v;
  if (type == 1) ((double *)p)[i] = v;
  else if (type == 0) ((float *)p)[i] = x.f;
  else if (type == 14) ((uint16_t *)p)[i] = (uint16_t)((x.u + 0x7fff + (x.u >> 16 & 1)) >> 16);
  else {  // the nearest of 11 bits, ties to even
    int e;
    const double a = fabs(v);
    (void)frexp(a, &e);
    const int unit = e - 11 < -24 ? -24 : e - 11;
    const double r = nearbyint(ldexp(a, -unit));
    unsigned bits = r < 1024 ? (unsigned)r : (unsigned)(unit + 24) * 1024 + (unsigned)r;
    if (bits > 0x7c00) bits = 0x7c00;
    ((uint16_t *)p)[i] = (uint16_t)((v < 0 ? 0x8000 : 0) | bits);
  }
}
int cublasLtMatmul(void *h, void *d, const void *alpha, const void *a, void *am, const void *b,
                   void *bm, const void *beta, const void *c, void *cm, void *to, void *tm,
                   const void *algorithm, void *workspace, size_t bytes, void *stream);
int cublasLtMatmul(void *h, void *d, const void *alpha, const void *a, void *am, const void *b,
                   void *bm, const void *beta, const void *c, void *cm, void *to, void *tm,
                   const void *algorithm, void *workspace, size_t bytes, void *stream) {
  const lt *x = (const lt *)d;
  const lt_matrix *A = (const lt_matrix *)am, *B = (const lt_matrix *)bm;
  const lt_matrix *C = (const lt_matrix *)cm, *D = (const lt_matrix *)tm;
  const int failed = fails();
  (void)h, (void)algorithm, (void)workspace, (void)bytes;
  if (failed) return failed == NO_MEMORY ? 3 : failed;
  if (lt_wrong(x, A, B, C, D) || depth != 1) return 7;
  const long long k = (long long)(x->op[0] ? A->rows : A->cols);
  passes(stream, 1, last_kernel, last_copy);
  const double al = lt_at(x->scale, alpha, 0), be = lt_at(x->scale, beta, 0);
  open_arena();
  for (long long q = 0; q < D->batch; q++)
    for (long long j = 0; j < (long long)D->cols; j++)
      for (long long i = 0; i < (long long)D->rows; i++) {
        double s = 0;
        for (long long l = 0; l < k; l++)
          s += lt_at(A->type, a, q * A->step + (x->op[0] ? l + i * A->ld : i + l * A->ld)) *
               lt_at(B->type, b, q * B->step + (x->op[1] ? j + l * B->ld : l + j * B->ld));
        s *= al;
        if (be != 0) s += be * lt_at(C->type, c, q * C->step + i + j * C->ld);
        if (x->epilogue & 4) s += lt_at(D->type, x->bias, q * x->bias_step + i);
        if (x->epilogue & 2 && s < 0) s = 0;
        lt_put(D->type, to, q * D->step + i + j * D->ld, s);
      }
  shut_arena();
  return 0;
}
