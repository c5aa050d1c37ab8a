// einsum_cpu.h - v0.1.0 - threads and vector kernels for einsum.h on CPUs - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cpu/: edit those.
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_cpu.h"
//
// Link with -lm -pthread. einsum_cpu_kernels.h has to lie beside it. Then let a ctx use it:
//
//     ein_cpu *cpu;
//     ein_ctx_desc desc;
//     memset(&desc, 0, sizeof desc);         // and what else you set
//     if (ein_cpu_create(NULL, NULL, &cpu) == EIN_OK) ein_cpu_use(cpu, &desc);
//     ein_ctx_create(&desc, &ctx);           // or without, if it failed
//     ..                                     // as without it, faster
//     ein_ctx_destroy(ctx);                  // and every plan
//     ein_cpu_destroy(cpu);                  // last
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT IT GIVES, INSTRUCTION SETS, REDUCED PRECISION, THREADS, CALIBRATION,
// MEMORY
//
//                 >>cpu-api >>cpu-shared >>cpu >>pool >>stream >>tile-lines >>tiles >>copy
//                 >>copy-blocks >>copy-strips >>copy-rows >>copy-ways >>vectors >>exp >>chunks
//                 >>chunk-rows >>map-rows >>gett >>gett-pack >>gett-narrow >>gett-amx
//                 >>gett-forms >>gett-boxes >>gett-job >>gett-sketch >>gett-plan >>gett-run
//                 >>moved >>map-turned >>map-masked >>direct >>direct-job >>matvec >>small
//                 >>elements >>element-rows >>tiny >>sums >>lanes >>lanes-batch >>families
//                 >>measure >>cpu-public
//
// Kernels, once for each set of >>vectors: einsum_cpu_kernels.h, with contents of its own.
//
// WHAT IT GIVES
//
// An executor (a pool of threads) and a provider of kernels: contractions, permuted copies,
// element-wise operations and folds. A plan takes from it what it predicts to be faster. Results
// are those of the portable kernels up to the order of rounding in sums; element-wise operations
// and folds of chunks give the same bits where the compiler rounds each operation by itself
// (-ffp-contract=off, or -std=c99). Functions like exp keep their bound of 2 ulp in every
// instruction set, but not the bits: two sets differ by at most 4 ulp.
//
//
// INSTRUCTION SETS
//
// One binary holds code for AVX-512 (F, DQ, BW, VL and FMA), AVX2 with FMA and F16C, NEON and plain
// C, and asks the processor what it has; flags like -march=native are not needed. Of ein_cpu_desc,
// isa asks for less than the best: "avx512", "avx2", "neon" or "plain". What the machine lacks is
// an error (EIN_ERR_UNSUPPORTED). Compilers other than gcc and clang get plain C. To compile less,
// there are no kernels without packing in plain C on x86, and of integers only those of AVX2.
//
// REDUCED PRECISION
//
// Sums of products of f16 and bf16 are sums of f32, those of i8, u8 and i16 of i32 that wrap, as
// everywhere in the library; the result is converted once, when it is stored. Operands are
// converted while they are packed, or multiplied as they are where the machine has dot products
// for them; the plan says which (variants bf16, i16, i8, amx):
//
//     bf16 x bf16           AMX-BF16, AVX512-BF16; else f32
//     f16, mixed            f32 (AVX512-FP16 would sum in f16)
//     i8, u8                AMX-INT8, AVX512-VNNI
//     i8, u8, i16           AVX512-VNNI, AVX2
//
// Integers are exact. Dot products of bf16 take the products as they are and round each sum to
// f32, in another order than the portable kernels; sums below 2^-126 in size become 0. Inputs below
// 2^-126, which these instructions take for 0, are looked for while packing: blocks with some are
// multiplied in f32. AMX is used where the operating system lets a process have its registers
// (Linux; it is asked when a pool is made, for the whole process), ein_cpu_info says what is there.
// Deterministic plans convert to f32.
//
// AVX-512, AVX2 and NEON have the same families: products, dot products, sums, rows of maps with
// exp in registers, copies by whole lines. Machines with SVE run what NEON machines run. NEON has
// no stores past the caches here: "copy stream" is a variant there that may be asked for, and is
// never chosen.
//
//
// THREADS
//
// ein_cpu_create starts threads - 1 of them, the caller being one. The default is one thread for
// each core the process may use: of processors that share a core (SMT) one counts, affinity masks
// and the quotas of control groups (cpu.max, cpu.cfs_quota_us, rounded up) are respected. Threads
// sleep when there is nothing to do, after a millisecond of waiting for more. Where not all
// can be started there are fewer. Several threads may execute plans with one pool at the same time:
// the first one gets the pool's threads, the others work alone. pin binds each of the pool's
// threads to a core, from the second on of those the process may use; the caller's own is never
// touched, so bind it to the first, or it may share a core with one of them. The pool's threads
// start with the default floating-point environment. Without pthreads (Windows) all is done by the
// caller. Several threads may make and use contexts with one pool at a time.
//
// A part of a job belongs to a thread, so that its scratch and blocks stay in that core's caches
// from one statement to the next; a thread that comes late loses its parts to those that are done
// with theirs. Sleeping threads are woken as a tree, four by each. Blocks that several parts of a
// product would pack are packed once, together, in memory they share, where all of them fit half of
// the last-level caches. ein_cpu_counts_get counts jobs, parts that went elsewhere, bytes packed.
//
// Kernels are chosen by predicted seconds, and those depend on the number of threads and the rates:
// with another number of threads, or other rates, the same call may sum in another order and differ
// in the last bits. With the same ones every run gives the same bits, however threads take turns.
// Where all bits have to be equal for any number of threads there is ein_options.deterministic.
//
// After fork() the child has the pool without its threads: what it runs, it runs on the calling
// thread, with the same results, and it may destroy the pool or make one of its own.
//
// When a run ends, all it wrote is visible to whoever learns so by any release store, lock or join:
// every part of it ends with a fence where it stored past the caches.
//
//
// CALIBRATION
//
// Predictions need rates: floating-point operations, bandwidths, and the size of an output from
// which stores past the caches are faster. Without calibration they come from a table by
// instruction set, so plans are the same in every run on machines of one kind; of the last-level
// cache a core is then taken to have 4 MiB at most, whatever a virtual machine is told.
// ein_calibrate measures them through a ctx, ein_ctx_rates gives them to one: others that share the
// pool keep the table. What only this backend can measure are cycles, the arithmetic of the
// instruction set and the size for stores past the caches. Rates decide while a plan is made and
// never later: a plan runs as it was made.
//
//
// MEMORY
//
// All of it comes from the allocator given, or from EINSUM_MALLOC. Nothing is allocated after
// ein_cpu_create. The pool and the provider must outlive every ctx and plan that uses them.
//
// With ein_cpu_desc.huge_pages a ctx that brings no allocator of its own gets one, over the cpu's:
// blocks of 2 MiB and more, such as the workspaces of large products, begin at a multiple of 2 MiB
// and ask Linux for pages of that size (MADV_HUGEPAGE), which is granted as the system is set; on
// other systems they are as they were. Your own workspaces and arrays are yours to ask for.

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

// ================================================================================================
// >>cpu-shared  what the sections below share
// Macros per instruction set; what the machine is; the interface of a family of contractions.
// ================================================================================================

#include <fenv.h>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define EINI_CPU_X86 1
#include <cpuid.h>
#include <immintrin.h>
#define EINI_T512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma,f16c")))
#define EINI_T256 __attribute__((target("avx2,fma,f16c")))
#else
#define EINI_CPU_X86 0
#endif

// Dot products of short numbers, and tiles of them: where the compiler knows the instructions.
#if EINI_CPU_X86 && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define EINI_CPU_DOTS 1
#define EINI_TDOT __attribute__((target( \
    "avx512f,avx512dq,avx512vl,avx512bw,fma,f16c,avx512bf16,avx512vnni")))
#else
#define EINI_CPU_DOTS 0
#endif
#if EINI_CPU_DOTS && defined(__linux__)
#define EINI_CPU_AMX 1
#define EINI_TAMX __attribute__((target( \
    "avx512f,avx512dq,avx512vl,avx512bw,fma,f16c,amx-tile,amx-bf16,amx-int8")))
#else
#define EINI_CPU_AMX 0
#endif

#if (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
#define EINI_CPU_NEON 1
#include <arm_neon.h>
#else
#define EINI_CPU_NEON 0
#endif

// Kernels are in einsum_cpu_kernels.h, which is included for each set of vectors. Which of them:
#define EINI_KERNELS_EXP 1
#define EINI_KERNELS_PARTIAL 2
#define EINI_KERNELS_DIRECT 3
#define EINI_KERNELS_SUMS 4
#define EINI_KERNELS_STEPS 5
#define EINI_KERNELS_CHUNKS 6
#define EINI_KERNELS_PEAK 7
#define EINI_KERNELS_LINES 8
#define EINI_KERNELS_COMPLEX 9
#define EINI_KERNELS_TILE 10
#define EINI_KERNELS_PACK 11
#define EINI_KERNELS_AMX 12
#define EINI_KERNELS_FOUR 13
#define EINI_KERNELS_GENERIC 14
#define EINI_CAT(a, b) EINI_CAT_(a, b)
#define EINI_CAT_(a, b) a##b
#define EINI_X(word) EINI_CAT(EINI_VEC, _##word)

#if defined(__GNUC__) || defined(__clang__)
#define EINI_FETCH(p) __builtin_prefetch((const void *)(p), 0, 3)
#define EINI_FETCH2(p) __builtin_prefetch((const void *)(p), 0, 2)  // into the second cache
#define EINI_FETCHW(p) __builtin_prefetch((const void *)(p), 1, 3)  // to be written
#else
#define EINI_FETCH(p) ((void)(p))
#define EINI_FETCH2(p) ((void)(p))
#define EINI_FETCHW(p) ((void)(p))
#endif

#if defined(__unix__) || defined(__APPLE__)
#define EINI_CPU_POSIX 1
#include <pthread.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#else
#define EINI_CPU_POSIX 0
#endif

#ifdef __linux__
#include <sys/syscall.h>
#ifndef __cplusplus
long syscall(long number, ...);  // strict ISO modes hide it
#endif
#endif

typedef enum eini_isa {
  EINI_ISA_PLAIN, EINI_ISA_NEON, EINI_ISA_AVX2, EINI_ISA_AVX512, EINI_ISA_COUNT
} eini_isa;

// What a machine may have beside AVX-512. PLAIN: its tiles are plain C, for tests.
enum { EINI_HAS_VNNI = 1, EINI_HAS_BF16 = 2, EINI_HAS_AMX_I8 = 4, EINI_HAS_AMX_BF16 = 8,
       EINI_HAS_AMX_PLAIN = 16 };

// What the machine is. It never changes, so what runs may look at it.
typedef struct eini_cpu {
  int isa;                     // the best usable one, or what the user forced
  int has;                     // EINI_HAS_..; 0 where isa is less than AVX-512
  int64_t l1, l2, l3;          // bytes of data cache one core may use (l3: its share)
  int64_t l3_whole;            // all of a last-level cache
  int l3s;                     // last-level caches that the threads have between them
  int width;                   // threads
  int halves;                  // 512-bit operations take twice as long as others
  int64_t *packed;             // counts bytes; on lines of its own
} eini_cpu;

// A part's bytes that went into packed blocks.
static void eini_cpu_packed(const eini_cpu *m, int64_t bytes) {
#if defined(__GNUC__) || defined(__clang__)
  if (m->packed != NULL && bytes > 0) __atomic_fetch_add(m->packed, bytes, __ATOMIC_RELAXED);
#else
  if (m->packed != NULL) *m->packed += bytes;
#endif
}

// Bytes of the last-level caches that all threads have between them.
static double eini_cpu_l3(const eini_cpu *m) {
  return (double)m->l3 * m->width;
}

// Whether a statement's operands of so many bytes, of all threads, come from memory and not from
// there: what ran before had its share.
static int eini_cpu_far(const eini_cpu *m, double bytes) {
  return bytes > 0.5 * eini_cpu_l3(m);
}

// The same of operands of a side, which may be blocks of larger tensors.
static int eini_cpu_far_side(const eini_cpu *m, const ein_side *s, double bytes) {
  return eini_cpu_far(m, fmax(bytes, s->whole));
}

// With the rates of one core, by table, or as a question about a plan gives them. Only planning
// sees them: what they decide is in the choice, and a run decodes it.
typedef struct eini_rated {
  eini_cpu is;
  double hz;                   // cycles per second under load, for the time model
  double peak_f64, peak_f32;   // flops per second at this isa
  double peak_bf16, peak_i8;   // of dot products of bf16, and of i8
  double read_bw, copy_bw;     // bytes per second from memory; copy: non-temporal, read + written
  double l2_bw, l3_bw;         // bytes per second
  double l2_store, l3_store;   // of bytes written there: a copy's time beyond what reading takes
  double call;                 // seconds of fixed cost of one run
  double past;                 // bytes of an output from which it goes past one last-level cache
  double pages;                // that are read together, of long runs
} eini_rated;

// Whether a working set of so many bytes, of all threads, is more than the last-level caches keep.
static int eini_cpu_beyond(const eini_cpu *m, double bytes) {
  return bytes >= 0.8 * eini_cpu_l3(m);
}

// Whether a core's second cache keeps so many bytes.
static int eini_cpu_near(const eini_cpu *m, double bytes) { return bytes < 0.8 * (double)m->l2; }

// Bytes per second of one core where a working set of `bytes`, of all threads, lies.
static double eini_cpu_bw(const eini_rated *cpu, double bytes) {
  if (eini_cpu_near(&cpu->is, bytes)) return cpu->l2_bw;
  return eini_cpu_beyond(&cpu->is, bytes) ? cpu->read_bw : cpu->l3_bw;
}

// The same of a copy, read and written.
static double eini_cpu_copy_bw(const eini_rated *cpu, double bytes) {
  if (bytes <= (double)cpu->is.l2) return cpu->l2_bw;
  return bytes <= eini_cpu_l3(&cpu->is) ? cpu->l3_bw : cpu->copy_bw;
}

// Seconds of reading and writing so many bytes there. Lines that stores reach are read from memory
// first, unless they go past the caches; caches' rates of stores have that in them.
static double eini_cpu_move(const eini_rated *cpu, double in, double out, int past) {
  const double rate = eini_cpu_bw(cpu, in + out);
  if (eini_cpu_beyond(&cpu->is, in + out)) return (in + out * (past ? 1 : 2)) / rate;
  return in / rate + out / (eini_cpu_near(&cpu->is, in + out) ? cpu->l2_store : cpu->l3_store);
}

// Seconds of work, and of memory's traffic beside it: of the shorter one a part is not hidden.
#define EINI_CPU_BESIDE 0.3
static double eini_cpu_beside(double work, double move, double part) {
  return fmax(work, move) + part * fmin(work, move);
}

// Numbers that lie so far apart have pages of their own, and each is found that way; of so many
// pages each is looked up in tables. Prefetchers end at them too.
#define EINI_PAGE_BYTES 4096
#define EINI_PAGE_SECONDS 6e-9
#define EINI_PAGES_MANY 1024
#define EINI_WALK_SECONDS 4e-8

// The least step, or `least`, along axes with more than one value.
static int64_t eini_least_step(int n, const int64_t *extent, const int64_t *stride,
                               int64_t least) {
  for (int i = 0; i < n; i++)
    if (extent[i] > 1) least = eini_min64(least, eini_abs64(stride[i]));
  return least;
}

// Whether numbers of `size` bytes at such a least step have pages of their own; INT64_MAX: there is
// one alone.
static int eini_pages_apart(int64_t least, int64_t size) {
  return least != INT64_MAX && least >= EINI_PAGE_BYTES / size;
}

// Whether an output of so many bytes is written past the caches: it would not stay in them. All
// that stores past them asks here, while planning.
static int eini_cpu_past(const eini_rated *m, double bytes) {
  return bytes > m->past * m->is.l3s;
}

// The same of an output for which `in` bytes are read: with fewer of them there is more room.
static int eini_cpu_past_with(const eini_rated *m, double bytes, double in) {
  return eini_cpu_past(m, in < bytes ? (in + bytes) / 2 : bytes);
}

// A family of contraction kernels. plan: 0 if it cannot, else fills *choice, whose last word of
// state is not its own. run: EIN_ERR_INTERNAL for a choice that is not of this contraction.
typedef struct eini_cpu_family {
  const char *name;
  int (*plan)(const eini_rated *cpu, const ein_contract *c, int width, ein_choice *choice);
  ein_status (*run)(const eini_cpu *cpu, const ein_contract *c, const ein_choice *choice,
                    const ein_part *part, void *scratch);
} eini_cpu_family;

static void eini_cpu_name(ein_choice *choice, const char *name) {
  memcpy(choice->variant, name, strlen(name) + 1);
}

// Up to three matrices that the next problem of a batch reads or writes, rows `step` bytes apart.
// They are asked for while the present problem runs, `share` lines at a time.
typedef struct eini_next {
  uintptr_t row[3];
  int64_t rows[3], step[3], lines[3];  // lines: of a row
  int64_t share, i, line;
} eini_next;

static void eini_next_row(eini_next *x, int i, uintptr_t at, int64_t rows, int64_t step,
                          int64_t bytes) {
  if (step < 0) at -= (uintptr_t)(-step * (rows - 1)), step = -step;
  if (rows == 0) bytes = 0;
  else if (step < bytes + 64) bytes += step * (rows - 1), rows = 1;
  x->row[i] = at, x->rows[i] = rows, x->step[i] = step, x->lines[i] = (bytes + 63) / 64;
}

// Shares for so many calls of eini_next_some.
static void eini_next_start(eini_next *x, int64_t calls) {
  int64_t all = 0;
  for (int i = 0; i < 3; i++) all += x->rows[i] * x->lines[i];
  x->share = (all + calls - 1) / calls, x->i = x->line = 0;
}

static void eini_next_some(eini_next *x) {
  for (int64_t left = x->share, n; left > 0 && x->i < 3; left -= n) {
    uintptr_t p = x->row[x->i] + 64 * (uintptr_t)x->line;
    n = eini_min64(left, x->lines[x->i] - x->line);
    x->line += n;
    for (int64_t l = 0; l < n; l++, p += 64) EINI_FETCH2(p);
    if (x->line < x->lines[x->i]) continue;
    x->line = 0, x->row[x->i] += (uintptr_t)x->step[x->i];
    if (--x->rows[x->i] <= 0) x->i++;
  }
}

static double eini_cpu_now(void) {
#if EINI_CPU_POSIX
  struct timeval tv;
  gettimeofday(&tv, NULL);
  return (double)tv.tv_sec + 1e-6 * (double)tv.tv_usec;
#else
  return 0;
#endif
}

// ================================================================================================
// >>cpu  instruction sets, caches and cores of this machine
// Takes CPUID and the operating system's answers; fills eini_cpu. No environment variables.
// ================================================================================================

static const char *const eini_isa_names[EINI_ISA_COUNT] = {"plain", "neon", "avx2", "avx512"};

#define EINI_CPU_MASK_WORDS 128  // 8192 cores

// The processors the process may use; mask may be longer than the kernel's. Their number.
static int eini_cpu_allowed(uint64_t mask[EINI_CPU_MASK_WORDS]) {
  memset(mask, 0, EINI_CPU_MASK_WORDS * sizeof *mask);
#if defined(__linux__) && defined(SYS_sched_getaffinity)
  long got = syscall(SYS_sched_getaffinity, 0, EINI_CPU_MASK_WORDS * sizeof *mask, mask);
  int n = 0;
  for (int i = 0; got > 0 && i < EINI_CPU_MASK_WORDS; i++) n += __builtin_popcountll(mask[i]);
  if (n > 0) return n;
#endif
#ifdef _SC_NPROCESSORS_ONLN
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) return (int)eini_min64(online, INT_MAX);
#endif
  mask[0] = 1;
  return 1;
}

// ---- what the system tells in files; `root` is put before their names, "" but in tests ----------

typedef struct eini_file {     // what a small file holds, ended by NUL; empty where there is none
  char text[4096];
} eini_file;

// The file root/dir/name; dir is the first `n` bytes of it.
static int eini_file_read(eini_file *f, const char *root, const char *dir, size_t n,
                          const char *name) {
  char path[1024];
  const int len = snprintf(path, sizeof path, "%s%.*s%s", root, (int)n, dir, name);
  f->text[0] = 0;
#if EINI_CPU_POSIX
  const int fd = len > 0 && (size_t)len < sizeof path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return 0;
  const ssize_t got = read(fd, f->text, sizeof f->text - 1);
  close(fd);
  f->text[got > 0 ? got : 0] = 0;
  return got > 0;
#else
  (void)len;
  return 0;
#endif
}

// A number at *at, which moves behind it; -1: none.
static int64_t eini_file_number(const char **at) {
  int64_t v = 0;
  const char *first = *at;
  for (; **at >= '0' && **at <= '9'; ++*at) {
    if (v < INT64_MAX / 16) v = 10 * v + (**at - '0');
  }
  return *at == first ? -1 : v;
}

// Takes processors of a list like "0,4-7" into a mask, those that fit. How many the list has.
static int64_t eini_file_list(const char *at, uint64_t mask[EINI_CPU_MASK_WORDS]) {
  int64_t all = 0;
  memset(mask, 0, EINI_CPU_MASK_WORDS * sizeof *mask);
  for (;; at++) {
    const int64_t from = eini_file_number(&at);
    if (from < 0) return all;
    const int64_t to = *at == '-' ? (at++, eini_file_number(&at)) : from;
    if (to < from) return all;
    all += to - from + 1;
    for (int64_t i = from; i <= to && i < 64 * EINI_CPU_MASK_WORDS; i++) {
      mask[i / 64] |= (uint64_t)1 << i % 64;
    }
    if (*at != ',') return all;
  }
}

// Leaves one processor of each core in the mask, the first: threads of one core share its units.
static int eini_cpu_cores(const char *root, uint64_t mask[EINI_CPU_MASK_WORDS]) {
  static const char dir[] = "/sys/devices/system/cpu/";
  uint64_t same[EINI_CPU_MASK_WORDS];
  int cores = 0;
  for (int i = 0; i < 64 * EINI_CPU_MASK_WORDS; i++) {
    char name[64];
    eini_file f;
    if (!(mask[i / 64] >> i % 64 & 1)) continue;
    cores++;
    snprintf(name, sizeof name, "cpu%d/topology/thread_siblings_list", i);
    if (!eini_file_read(&f, root, dir, sizeof dir - 1, name)) continue;
    eini_file_list(f.text, same);
    same[i / 64] &= ~((uint64_t)1 << i % 64);
    for (int w = 0; w < EINI_CPU_MASK_WORDS; w++) mask[w] &= ~same[w];
  }
  return cores;
}

// Cores that the quota in one directory of control groups allows, rounded up; 0: it sets none.
static int64_t eini_cpu_quota_at(const char *root, const char *dir, size_t n, int v2) {
  eini_file f;
  int64_t quota = -1, period = -1;
  const char *at = f.text;
  if (!eini_file_read(&f, root, dir, n, v2 ? "/cpu.max" : "/cpu.cfs_quota_us")) return 0;
  quota = eini_file_number(&at);  // "max" and -1 are none
  if (!v2) eini_file_read(&f, root, dir, n, "/cpu.cfs_period_us"), at = f.text;
  while (*at == ' ') at++;
  period = eini_file_number(&at);
  if (quota <= 0 || period <= 0) return 0;
  return (quota + period - 1) / period;
}

// The least quota of the process's control group and of those it lies in; 0: none.
static int64_t eini_cpu_quota(const char *root) {
  eini_file f;
  int64_t least = 0;
  eini_file_read(&f, root, "/proc/self/cgroup", 17, "");
  for (const char *line = f.text, *end; *line; line = *end ? end + 1 : end) {
    // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const char *names = strchr(line, ':'), *path = names == NULL ? NULL : strchr(names + 1, ':');
    char dir[1024];
    end = line + strcspn(line, "\n");
    if (path == NULL || path > end) continue;
    const int v2 = path == names + 1;
    int ours = v2;
    for (const char *c = names + 1; c < path; c += strcspn(c, ",:") + 1) {
      ours |= strncmp(c, "cpu", 3) == 0 && (c[3] == ',' || c[3] == ':');
    }
    const char *top = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    const int len = snprintf(dir, sizeof dir, "%s%.*s", top, (int)(end - path - 1), path + 1);
    if (!ours || len < 0 || (size_t)len >= sizeof dir) continue;
    for (size_t n = (size_t)len;; n--) {  // up to the top: a container sees its own group there
      if (n > strlen(top) && dir[n] != 0 && dir[n] != '/') continue;
      const int64_t q = eini_cpu_quota_at(root, dir, n, v2);
      if (q > 0 && (least == 0 || q < least)) least = q;
      if (n <= strlen(top)) break;
    }
  }
  return least;
}

// Threads by default: one for each core the process may use, no more than its quota.
static int eini_cpu_threads(const char *root, const uint64_t allowed[EINI_CPU_MASK_WORDS],
                            int online) {
  uint64_t mask[EINI_CPU_MASK_WORDS];
  memcpy(mask, allowed, sizeof mask);
  int64_t listed = 0;
  for (int i = 0; i < 64 * EINI_CPU_MASK_WORDS; i++) listed += (mask[i / 64] >> i % 64 & 1) != 0;
  int64_t n = eini_cpu_cores(root, mask), quota = eini_cpu_quota(root);
  if (listed < online) n = online;  // no mask, only a number
  if (quota > 0 && quota < n) n = quota;
  return (int)n;
}

// What a thread may find in a last-level cache at most. Larger ones are sums over chips and guests:
// of 480 MiB that a virtual machine of two cores was told of, loads took 36 to 54 ns within 16 MiB
// and 117 from 32 MiB on.
#define EINI_L3_MOST ((int64_t)32 << 20)

// A share of a last-level cache of so many bytes.
static void eini_cpu_share_l3(eini_cpu *m, int64_t bytes, int64_t sharing) {
  const int64_t share = bytes / eini_min64(eini_max64(sharing, 1), m->width);
  m->l3 = eini_min64(share, EINI_L3_MOST);
  m->l3_whole = bytes;
  m->l3s = (int)eini_max64(m->width / eini_max64(sharing, 1), 1);
}

// Caches as the system lists them; where it does not, as the C library knows them.
EINI_UNUSED static void eini_cpu_sys_caches(const char *root, eini_cpu *m) {
  static const char dir[] = "/sys/devices/system/cpu/cpu0/cache/index0";
  uint64_t mask[EINI_CPU_MASK_WORDS];
  for (int i = 0; i < 10; i++) {
    char at[sizeof dir];
    eini_file f;
    memcpy(at, dir, sizeof dir);
    at[sizeof dir - 2] = (char)('0' + i);
    if (!eini_file_read(&f, root, at, sizeof dir - 1, "/type") || f.text[0] == 'I') continue;
    eini_file_read(&f, root, at, sizeof dir - 1, "/level");
    const int level = f.text[0] - '0';
    eini_file_read(&f, root, at, sizeof dir - 1, "/size");
    const char *end = f.text;
    int64_t bytes = eini_file_number(&end);
    bytes *= *end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1;
    if (bytes <= 0) continue;
    eini_file_read(&f, root, at, sizeof dir - 1, "/shared_cpu_list");
    const int64_t sharing = eini_file_list(f.text, mask);
    if (level == 1) m->l1 = bytes;
    if (level == 2) m->l2 = bytes;
    if (level == 3) eini_cpu_share_l3(m, bytes, sharing);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (m->l1 <= 0) m->l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  if (m->l2 <= 0) m->l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (m->l3 <= 0) eini_cpu_share_l3(m, sysconf(_SC_LEVEL3_CACHE_SIZE), m->width);
#endif
}

// ---- the processor itself -----------------------------------------------------------------------

#if EINI_CPU_X86

static uint64_t eini_cpu_xcr0(void) {
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}

// The instruction set must be there, and the operating system must save its registers.
static int eini_isa_best(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return EINI_ISA_PLAIN;
  int fma = (c >> 12 & 1) && (c >> 28 & 1) && (c >> 29 & 1);  // AVX and F16C with it
  if (!(c >> 27 & 1) || !fma) return EINI_ISA_PLAIN;
  uint64_t saved = eini_cpu_xcr0();
  if ((saved & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return EINI_ISA_PLAIN;
  const unsigned wide = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  if ((b & wide) == wide && (saved & 0xe6) == 0xe6) return EINI_ISA_AVX512;
  return b >> 5 & 1 ? EINI_ISA_AVX2 : EINI_ISA_PLAIN;
}

// Tile registers are there if the system saves them, and lets this process have them: on Linux it
// is asked, once and for all its threads.
static int eini_cpu_may_tiles(void) {
#if EINI_CPU_AMX
  enum { ask = 0x1023, data = 18 };  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (eini_cpu_xcr0() >> 17 & 3) == 3 && syscall(SYS_arch_prctl, ask, data) == 0;
#else
  return 0;
#endif
}

// What there is beside AVX-512: EINI_HAS_..
static int eini_cpu_has(void) {
  unsigned a = 0, b = 0, c = 0, d = 0, most = 0;
  int has = 0;
  if (!EINI_CPU_DOTS || !__get_cpuid_count(7, 0, &most, &b, &c, &d)) return 0;
  if (c >> 11 & 1) has |= EINI_HAS_VNNI;
  const int tiles = (d >> 24 & 1) && (d >> 22 & 9) != 0 && eini_cpu_may_tiles();
  if (tiles && (d >> 22 & 1)) has |= EINI_HAS_AMX_BF16;
  if (tiles && (d >> 25 & 1)) has |= EINI_HAS_AMX_I8;
  if (most >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1)) has |= EINI_HAS_BF16;
  return has;
}

static int eini_cpu_amd(unsigned vendor) {  // ebx of leaf 0: "Auth", or "Hygo"
  return vendor == 0x68747541u || vendor == 0x6f677948u;
}

// Deterministic cache parameters: leaf 4 (Intel) or 0x8000001D (AMD) has one entry a cache.
static void eini_cpu_caches(eini_cpu *m) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned leaf = 4;
  __get_cpuid(0, &a, &b, &c, &d);
  if (eini_cpu_amd(b)) {
    unsigned top = (unsigned)__get_cpuid_max(0x80000000u, NULL);
    if (top < 0x8000001Du) return;
    leaf = 0x8000001Du;
  } else if (a < 4) {
    return;
  }
  for (unsigned i = 0; i < 16; i++) {
    __cpuid_count(leaf, i, a, b, c, d);
    unsigned type = a & 31, level = a >> 5 & 7;
    if (type == 0) break;
    int64_t bytes = (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
                    ((int64_t)c + 1);
    int64_t sharing = (a >> 14 & 4095) + 1;
    if (type == 2) continue;  // instructions
    if (level == 1) m->l1 = bytes;
    if (level == 2) m->l2 = bytes;
    if (level == 3) eini_cpu_share_l3(m, bytes, sharing);
  }
}

// Base frequency where CPUID tells it (leaf 0x16, in MHz), else a guess.
static double eini_cpu_hz(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x16, &a, &b, &c, &d) && (b & 0xffff) > 500) return 1e6 * (b & 0xffff);
  return 3.5e9;
}

#else  // EINI_CPU_X86

static int eini_isa_best(void) { return EINI_CPU_NEON ? EINI_ISA_NEON : EINI_ISA_PLAIN; }

static int eini_cpu_has(void) { return 0; }

static void eini_cpu_caches(eini_cpu *m) { eini_cpu_sys_caches("", m); }

static double eini_cpu_hz(void) { return 2.5e9; }

#endif  // EINI_CPU_X86

// Of a last-level cache a core has seldom more to itself, and a virtual machine is told of all of
// it though others use it too: a transpose of 4000x4000 f64 that took the caches for 100 MB needed
// 38 ms on one where 11 to 14 were possible.
#define EINI_L3_SHARE (4 << 20)

// What to believe before anything is measured. Per cycle: operations of f64, bytes from L2 and L3.
static void eini_cpu_defaults(eini_rated *m) {
  static const double flops[EINI_ISA_COUNT] = {2, 8, 16, 32};
  static const double l2[EINI_ISA_COUNT] = {8, 16, 24, 32};
  if (m->is.l1 <= 0) m->is.l1 = 32768;
  if (m->is.l2 <= 0) m->is.l2 = 512 << 10;
  if (m->is.l3 <= 0) m->is.l3 = m->is.l2;
  if (m->is.l3s <= 0) m->is.l3s = 1;
  m->hz = eini_cpu_hz();
  m->peak_f64 = m->hz * flops[m->is.isa];
  m->peak_f32 = m->peak_f64 * (m->is.isa == EINI_ISA_PLAIN ? 1 : 2);
  // Of dot products as many; a tile of AMX takes 16 cycles for 16 K operations.
  m->is.has = m->is.isa == EINI_ISA_AVX512 ? eini_cpu_has() : 0;
  m->peak_bf16 = m->is.has & EINI_HAS_AMX_BF16 ? m->hz * 1024 : m->peak_f32;
  m->peak_i8 = m->is.has & EINI_HAS_AMX_I8 ? m->hz * 2048 : m->peak_f32;
  m->l2_bw = m->hz * l2[m->is.isa];
  m->l2_store = m->l2_bw;
  m->l3_bw = m->l3_store = m->l2_bw / 2;
  m->read_bw = 20e9;
  m->copy_bw = 24e9;
  m->call = 100e-9;
  m->pages = 1;
  m->past = (double)(eini_min64(m->is.l3, EINI_L3_SHARE) * m->is.width) / 2 / m->is.l3s;
}

// The processor by name, its cores, the instruction set in use and the caches.
static void eini_cpu_machine(const eini_cpu *m, char *text, size_t size) {
  char name[49] = "";
  long cores = 0;
#if EINI_CPU_X86
  for (unsigned i = 0; i < 3; i++) {
    unsigned word[4] = {0, 0, 0, 0};
    if (!__get_cpuid(0x80000002u + i, &word[0], &word[1], &word[2], &word[3])) break;
    memcpy(name + 16 * i, word, 16);
  }
#endif
#ifdef _SC_NPROCESSORS_ONLN
  cores = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  size_t n = strlen(name), from = strspn(name, " ");
  while (n > from && name[n - 1] == ' ') name[--n] = 0;
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)name[i] < 32 || (unsigned char)name[i] > 126) name[i] = '?';
  snprintf(text, size, "%s, %ld cores, %s, L1 %lldK L2 %lldK L3 %lldK",
           n > from ? name + from : "processor", cores, eini_isa_names[m->isa],
           (long long)(m->l1 >> 10), (long long)(m->l2 >> 10), (long long)(m->l3_whole >> 10));
}

// 0 when the machine lacks what is asked for, or does not know the word.
static int eini_cpu_detect(eini_rated *m, const char *isa) {
  int best = eini_isa_best();
  m->is.isa = best;
  if (isa != NULL && isa[0] != 0) {
    int i = 0;
    while (i < EINI_ISA_COUNT && strcmp(isa, eini_isa_names[i]) != 0) i++;
    if (i == EINI_ISA_COUNT) return 0;
    if (i > best || (i == EINI_ISA_NEON && best != EINI_ISA_NEON)) return 0;
    m->is.isa = i;
  }
  eini_cpu_caches(&m->is);
  eini_cpu_defaults(m);
  return 1;
}

// ================================================================================================
// >>pool  threads that sleep when there is nothing to do
// One job at a time. Each thread runs the parts of its lane, then what others have not begun. A
// word counts the workers inside the open job; the caller, who does as they do, closes it and waits
// until nobody is inside. Invariant: the job's fields change only while the word is 0.
// ================================================================================================

#if EINI_CPU_POSIX && (defined(__GNUC__) || defined(__clang__))
#define EINI_CPU_THREADS 1
#else
#define EINI_CPU_THREADS 0
#endif

#define EINI_POOL_APART 128    // bytes that caches fetch together: two lines

#if EINI_CPU_THREADS

// Of a thread, 0 being whoever calls. Others look at it only to take what it has not begun.
typedef struct eini_pool_lane {
  uint64_t next;               // serial of the job << 32 | parts taken of this lane
  int64_t moved, wakes;        // parts of other lanes that this thread ran; threads it woke
  char apart[EINI_POOL_APART - 24];
} eini_pool_lane;

typedef struct eini_pool_worker {
  struct eini_pool *pool;
  int number;                  // its lane
  int asleep;                  // under lock
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work;
  char apart[EINI_POOL_APART];
} eini_pool_worker;

#endif  // EINI_CPU_THREADS

typedef struct eini_pool {
  int width;                   // with the caller
#if EINI_CPU_THREADS
  pid_t owner;                 // the process that has the threads; a fork of it has none
  int started, pin;
  int crowded;                 // more threads than processors: who waits sleeps soon
  eini_pool_lane *lane;        // [width]
  eini_pool_worker *worker;    // [width - 1]
  char apart[EINI_POOL_APART];  // between what threads write at different times
  uint32_t word;               // EINI_POOL_OPEN, and the workers inside
  char apart_left[EINI_POOL_APART];
  int64_t left;                // parts that nobody has taken
  char apart_job[EINI_POOL_APART];
  uint32_t serial;             // of the job: a worker enters each once
  int n, lanes;                // lanes: that have parts, the first ones
  void (*task)(void *arg, int i);
  void *arg;
  char apart_end[EINI_POOL_APART];
  int quit;
  int busy;                    // a caller has the pool
  int joining;                 // the caller sleeps in done
  int64_t jobs, parts;         // so far
  pthread_mutex_t lock;
  pthread_cond_t done;
#endif  // EINI_CPU_THREADS
} eini_pool;

#if EINI_CPU_THREADS

#define EINI_POOL_OPEN 0x80000000u
#define EINI_POOL_SPIN 300     // pauses at first, some microseconds
#define EINI_POOL_LINGER 1e-3  // seconds before sleeping: what waking costs where cores are rented
#define EINI_POOL_FAN 4        // threads that one wakes, who wake others

static void eini_pool_pause(void) {
#if EINI_CPU_X86
  _mm_pause();
#elif EINI_CPU_NEON
  __asm__ volatile("yield");
#endif
}

// One step of waiting; times counts them from 0. Pauses, then lets others that want this core have
// it, and reads the clock only now and then. 0: better to sleep.
static int eini_pool_wait(const eini_pool *p, int *times, double *since) {
  const int n = (*times)++;
  if (n < EINI_POOL_SPIN) {
    eini_pool_pause();
    return 1;
  }
  if (p->crowded) return 0;
  if (n == EINI_POOL_SPIN) *since = eini_cpu_now();
  sched_yield();
  if (n % 8 != 0) return 1;
  const double gone = eini_cpu_now() - *since;
  return gone >= 0 && gone < EINI_POOL_LINGER;  // clocks are set back, too
}

// Takes the next part of a lane; -1: all are taken. What another job left there counts as none.
static int64_t eini_pool_claim(eini_pool *p, int lane) {
  const int64_t from = (int64_t)p->n * lane / p->lanes;
  const int64_t count = (int64_t)p->n * (lane + 1) / p->lanes - from;
  const uint64_t job = (uint64_t)p->serial << 32;
  uint64_t *next = &p->lane[lane].next, was = __atomic_load_n(next, __ATOMIC_RELAXED);
  for (;;) {
    const uint64_t taken = (was ^ job) >> 32 == 0 ? was & UINT32_MAX : 0;
    if ((int64_t)taken >= count) return -1;
    if (__atomic_compare_exchange_n(next, &was, job | (taken + 1), 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      __atomic_fetch_sub(&p->left, 1, __ATOMIC_RELAXED);
      return from + (int64_t)taken;
    }
  }
}

// All there is to do for the thread of a lane: its own parts, then those of the lanes behind it.
static void eini_pool_take(eini_pool *p, int own) {
  void (*task)(void *arg, int i) = p->task;
  void *arg = p->arg;
  const int lanes = p->lanes;
  int64_t moved = 0;
  for (int k = 0; k < lanes; k++) {
    const int lane = (own + k) % lanes;
    for (int64_t i; (i = eini_pool_claim(p, lane)) >= 0; moved += lane != own) task(arg, (int)i);
    if (__atomic_load_n(&p->left, __ATOMIC_RELAXED) <= 0) break;
  }
  if (moved > 0) __atomic_fetch_add(&p->lane[own].moved, moved, __ATOMIC_RELAXED);
}

// Wakes the threads below one in the tree, as far as they have parts.
static void eini_pool_wake(eini_pool *p, int own) {
  const int from = own * EINI_POOL_FAN + 1;
  for (int i = from; i < from + EINI_POOL_FAN && i < p->lanes; i++) {
    eini_pool_worker *w = &p->worker[i - 1];
    if (!__atomic_load_n(&w->asleep, __ATOMIC_SEQ_CST)) continue;
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    __atomic_fetch_add(&p->lane[own].wakes, 1, __ATOMIC_RELAXED);
  }
}

// Enters the open job unless it is the one numbered seen, or has no parts for it; 0: there is none.
static int eini_pool_enter(eini_pool *p, int own, uint32_t *seen) {
  uint32_t word = __atomic_load_n(&p->word, __ATOMIC_SEQ_CST);
  while ((word & EINI_POOL_OPEN) != 0) {
    if (__atomic_load_n(&p->serial, __ATOMIC_ACQUIRE) == *seen) return 0;
    if (own >= __atomic_load_n(&p->lanes, __ATOMIC_RELAXED)) return 0;
    if (__atomic_compare_exchange_n(&p->word, &word, word + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_ACQUIRE)) {
      *seen = __atomic_load_n(&p->serial, __ATOMIC_ACQUIRE);
      return 1;
    }
  }
  return 0;
}

static void eini_pool_leave(eini_pool *p) {
  uint32_t word = __atomic_sub_fetch(&p->word, 1, __ATOMIC_SEQ_CST);
  if (word == 0 && __atomic_load_n(&p->joining, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
  }
}

// Sleeps until there is a job to enter (1) or the pool ends (0).
static int eini_pool_sleep(eini_pool_worker *w, uint32_t *seen) {
  int entered = 0;
  pthread_mutex_lock(&w->lock);
  __atomic_store_n(&w->asleep, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&w->pool->quit, __ATOMIC_SEQ_CST) &&
         !(entered = eini_pool_enter(w->pool, w->number, seen)))
    pthread_cond_wait(&w->work, &w->lock);
  __atomic_store_n(&w->asleep, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&w->lock);
  return entered;
}

// Binds the calling thread to the i-th core the process may use, then to processors that share one.
static void eini_pool_bind(int i) {
#if defined(__linux__) && defined(SYS_sched_setaffinity)
  uint64_t mask[EINI_CPU_MASK_WORDS], one[EINI_CPU_MASK_WORDS];
  int n = eini_cpu_allowed(mask);
  memcpy(one, mask, sizeof one);
  const int cores = eini_cpu_cores("", one);
  if (i < cores) memcpy(mask, one, sizeof mask), n = cores;  // first one of each core
  int left = i % n;
  for (int core = 0; core < 64 * EINI_CPU_MASK_WORDS; core++) {
    if (!(mask[core / 64] >> core % 64 & 1) || left-- > 0) continue;
    memset(mask, 0, sizeof mask);
    mask[core / 64] = (uint64_t)1 << core % 64;
    syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
    return;
  }
#else  // defined(__linux__) && defined(SYS_sched_setaffinity)
  (void)i;
#endif
}

static void *eini_pool_main(void *user) {
  eini_pool_worker *w = (eini_pool_worker *)user;
  eini_pool *p = w->pool;
  const int number = w->number;
  uint32_t seen = 0;
  if (p->pin) eini_pool_bind(number);
  fesetenv(FE_DFL_ENV);
  for (;;) {
    int entered, times = 0;
    double since = 0;
    while (!(entered = eini_pool_enter(p, number, &seen)))
      if (__atomic_load_n(&p->quit, __ATOMIC_RELAXED) || !eini_pool_wait(p, &times, &since)) break;
    if (!entered && !eini_pool_sleep(w, &seen)) return NULL;
    eini_pool_wake(p, number);
    eini_pool_take(p, number);
    eini_pool_leave(p);
  }
}

static void eini_pool_join(eini_pool *p) {
  if (__atomic_and_fetch(&p->word, ~EINI_POOL_OPEN, __ATOMIC_SEQ_CST) == 0) return;
  int times = 0;
  double since = 0;
  do {
    if (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == 0) return;
  } while (eini_pool_wait(p, &times, &since));
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&p->joining, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p->word, __ATOMIC_SEQ_CST) != 0) pthread_cond_wait(&p->done, &p->lock);
  __atomic_store_n(&p->joining, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
}

// A job's number. Lanes have those of earlier ones, so they are cleared before numbers come again.
static uint32_t eini_pool_number(eini_pool *p) {
  uint32_t serial = p->serial + 1;
  for (int i = 0; serial == 0 && i < p->width; i++)
    __atomic_store_n(&p->lane[i].next, 0, __ATOMIC_RELAXED);
  return serial == 0 ? 1 : serial;
}

// The slot of ein_executor. A second caller, a task of the pool itself, or a process that has the
// pool from its parent works alone.
static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  eini_pool *p = (eini_pool *)user;
  if (n < 2 || p->width < 2 || p->owner != getpid() ||
      __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < n; i++) task(arg, i);
    return;
  }
  p->task = task;
  p->arg = arg;
  p->n = n;
  __atomic_store_n(&p->lanes, n < p->width ? n : p->width, __ATOMIC_RELAXED);
  __atomic_store_n(&p->left, n, __ATOMIC_RELAXED);
  __atomic_store_n(&p->serial, eini_pool_number(p), __ATOMIC_RELEASE);
  __atomic_store_n(&p->word, EINI_POOL_OPEN, __ATOMIC_SEQ_CST);
  eini_pool_wake(p, 0);
  eini_pool_take(p, 0);
  eini_pool_join(p);
  __atomic_fetch_add(&p->jobs, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&p->parts, n, __ATOMIC_RELAXED);
  __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

static int eini_pool_add(eini_pool *p, int i) {
  eini_pool_worker *w = &p->worker[i];
  w->pool = p;
  w->number = i + 1;
  if (pthread_mutex_init(&w->lock, NULL) != 0) return 0;
  if (pthread_cond_init(&w->work, NULL) == 0) {
    if (pthread_create(&w->thread, NULL, eini_pool_main, w) == 0) return 1;
    pthread_cond_destroy(&w->work);
  }
  pthread_mutex_destroy(&w->lock);
  return 0;
}

// Threads get every signal blocked, so that a program's handlers run on its own threads.
static void eini_pool_start(eini_pool *p) {
#ifdef SIG_BLOCK
  sigset_t all, old;
  sigfillset(&all);
  int masked = pthread_sigmask(SIG_BLOCK, &all, &old) == 0;
#endif
  while (p->started < p->width - 1 && eini_pool_add(p, p->started)) p->started++;
#ifdef SIG_BLOCK
  if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
  p->width = p->started + 1;
}

// Bytes of lanes and workers.
static size_t eini_pool_bytes(int width) {
  return (size_t)width * (sizeof(eini_pool_lane) + sizeof(eini_pool_worker)) + EINI_POOL_APART;
}

// room: so many zero bytes. Fewer threads than asked for are no mistake.
static void eini_pool_init(eini_pool *p, int width, int pin, char *room) {
  uint64_t mask[EINI_CPU_MASK_WORDS];
  room += (EINI_POOL_APART - (uintptr_t)room % EINI_POOL_APART) % EINI_POOL_APART;
  p->owner = getpid();
  p->width = width;
  p->lane = (eini_pool_lane *)(void *)room;
  p->worker = (eini_pool_worker *)(void *)(p->lane + width);
  p->pin = pin;
  if (width < 2) return;
  const int64_t online = eini_cpu_allowed(mask), quota = eini_cpu_quota("");
  p->crowded = width > online || (quota > 0 && width > quota);
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    p->width = 1;
    return;
  }
  if (pthread_cond_init(&p->done, NULL) != 0) {
    p->width = 1;  // what was made needs no destruction on systems where making it can fail
    return;
  }
  eini_pool_start(p);
}

// In a fork there is nobody to wait for, and the locks are as some thread left them.
static void eini_pool_end(eini_pool *p) {
  if (p->started == 0 || p->owner != getpid()) return;
  __atomic_store_n(&p->quit, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < p->started; i++) {
    eini_pool_worker *w = &p->worker[i];
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
  }
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
}

#else  // EINI_CPU_THREADS

static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = 0; i < n; i++) task(arg, i);
}

#endif  // EINI_CPU_THREADS

// ================================================================================================
// >>stream  rows of bytes past the caches
// A line written whole with non-temporal stores is never read from memory. Rows of any alignment:
// their first and last bytes, which share a line with others, go the ordinary way.
// ================================================================================================

// Lines of the source that are read after those being written now. Streaming a line does not wait
// for memory, reading one does: each line streamed asks for its share of lines to come.
typedef struct eini_ahead {
  uintptr_t at;
  int64_t left, share;         // lines to ask for: in all, and for each line streamed
  int64_t n[5], step[5], i[5]; // loops, innermost first: lines that follow each other, then runs
  int first;                   // into the first cache, or the second
} eini_ahead;

// On to the next run where one ends.
static void eini_ahead_next(eini_ahead *a) {
  for (int k = 0; k < 4 && a->i[k] == a->n[k]; k++) {
    a->i[k] = 0;
    a->i[k + 1]++;
    a->at += (uintptr_t)(a->step[k + 1] - (k > 0 ? a->n[k] * a->step[k] : 0));
  }
}

static void eini_ahead_some(eini_ahead *a, int64_t streamed) {
  int64_t some = eini_min64(a->share * streamed, a->left);
  a->left -= some;
  for (int64_t n; some > 0; some -= n) {
    uintptr_t p = a->at + 64 * (uintptr_t)a->i[0];
    n = eini_min64(some, a->n[0] - a->i[0]);
    a->i[0] += n;
    for (int64_t l = 0; l < n && a->first; l++) EINI_FETCH(p + 64 * (uintptr_t)l);
    for (int64_t l = 0; l < n && !a->first; l++) EINI_FETCH2(p + 64 * (uintptr_t)l);
    eini_ahead_next(a);
  }
}

// Rows of a buffer and where they go. Line k of a row starts at the k-th line of its destination.
typedef struct eini_lines {
  const char *buffer;
  char *dst;
  int64_t pitch, step, rows;   // pitch: from row to row in the buffer; step: in the destination
  int64_t from, to;            // lines
  eini_ahead *ahead;           // or NULL
} eini_lines;

static int64_t eini_to_line(const char *p) { return (int64_t)((0 - (uintptr_t)p) & 63); }

#if EINI_CPU_X86

// One line, by vectors of 16, 32 or 64 bytes.
static inline void eini_stream_line(char *d, const char *s) {
  for (int i = 0; i < 64; i += 16)
    _mm_stream_si128((__m128i *)(void *)(d + i),
                     _mm_loadu_si128((const __m128i *)(const void *)(s + i)));
}
EINI_T256 static inline void eini_stream_line_y(char *d, const char *s) {
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256((__m256i *)(void *)(d + i),
                        _mm256_loadu_si256((const __m256i *)(const void *)(s + i)));
}
EINI_T512 static inline void eini_stream_line_z(char *d, const char *s) {
  _mm512_stream_si512((__m512i *)(void *)d, _mm512_loadu_si512((const void *)s));
}

EINI_INLINE void eini_stream_by(int vector, const eini_lines *p) {
  for (int64_t r = 0; r < p->rows; r++) {
    char *d = p->dst + r * p->step;
    const char *s = p->buffer + r * p->pitch;
    int64_t head = eini_to_line(d);
    s += head + 64 * p->from;
    d += head + 64 * p->from;
    for (int64_t k = p->from, n; k < p->to; k += n) {
      n = p->ahead == NULL ? p->to - k : eini_min64(8, p->to - k);
      for (int64_t l = 0; l < n; l++, s += 64, d += 64) {
        if (vector == 64) eini_stream_line_z(d, s);
        else if (vector == 32) eini_stream_line_y(d, s);
        else eini_stream_line(d, s);
      }
      if (p->ahead != NULL) eini_ahead_some(p->ahead, n);
    }
  }
}
static void eini_stream_lines_x(const eini_lines *p) { eini_stream_by(16, p); }
EINI_T256 static void eini_stream_lines_y(const eini_lines *p) { eini_stream_by(32, p); }
EINI_T512 static void eini_stream_lines_z(const eini_lines *p) { eini_stream_by(64, p); }

static void eini_stream_lines(int isa, const eini_lines *p) {
  if (isa == EINI_ISA_AVX512) eini_stream_lines_z(p);
  else if (isa == EINI_ISA_AVX2) eini_stream_lines_y(p);
  else eini_stream_lines_x(p);
}

// Ends every part of a run that may have streamed: no release store and no lock orders streamed
// stores, and who runs parts, or learns that a run is over, knows nothing of them.
static void eini_stream_end(void) { _mm_sfence(); }
#define EINI_STREAM_LINE 64    // what a row is completed to; 0: there are no such stores

#else  // EINI_CPU_X86

static inline void eini_stream_line(char *d, const char *s) { memcpy(d, s, 64); }

static void eini_stream_lines(int isa, const eini_lines *p) {
  (void)isa;
  for (int64_t r = 0; r < p->rows; r++) {
    char *d = p->dst + r * p->step;
    int64_t at = eini_to_line(d) + 64 * p->from;
    memcpy(d + at, p->buffer + r * p->pitch + at, (size_t)(64 * (p->to - p->from)));
  }
}

static void eini_stream_end(void) {}
#define EINI_STREAM_LINE 0

#endif  // EINI_CPU_X86

static void eini_stream_ahead(int isa, int64_t bytes, const char *src, char *dst,
                              eini_ahead *ahead) {
  int64_t head = eini_to_line(dst);
  eini_lines p;
  if (bytes < head + 64) {
    memcpy(dst, src, (size_t)bytes);
    return;
  }
  memcpy(dst, src, (size_t)head);
  p.buffer = src;
  p.dst = dst;
  p.pitch = p.step = 0;
  p.rows = 1;
  p.from = 0;
  p.to = (bytes - head) / 64;
  p.ahead = ahead;
  eini_stream_lines(isa, &p);
  int64_t done = head + 64 * p.to;
  memcpy(dst + done, src + done, (size_t)(bytes - done));
}

static void eini_stream_row(int isa, size_t bytes, const char *src, char *dst) {
  eini_stream_ahead(isa, (int64_t)bytes, src, dst, NULL);
}

// A line to be streamed: bytes [from, to) so far, which follow each other; line NULL: none.
typedef struct eini_tail {
  char *line;
  int64_t from, to;
  char bytes[64];
} eini_tail;

// Writes past the caches: whole lines only. What does not fill a line waits in a carry; pieces that
// follow each other in the output complete each other's lines, also from call to call.

#if EINI_CPU_X86
EINI_T256 static void eini_tail_lines_y(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 32)
    _mm256_stream_pd((double *)(void *)(to + i),
                     _mm256_loadu_pd((const double *)(const void *)(from + i)));
}

// The last 64 - n of 64 bytes.
#define EINI_TAIL_FROM(n) ((__mmask64)(~0ull << (n)))

// `count` pieces of `bytes`, at least a line, `stride` apart, that belong at c->line + c->to. Loads
// may go on past a piece, for scratch memory does.
EINI_T512 static void eini_tail_put_z(eini_tail *c, const char *src, int64_t bytes,
                                      int64_t count, int64_t stride) {
  char *line = c->line;
  int64_t at = 0, left = bytes * count;  // at: in the current piece
  if (c->to > 0) {
    const __m512i x = _mm512_mask_loadu_epi8(_mm512_loadu_si512(c->bytes), EINI_TAIL_FROM(c->to),
                                             (const void *)((uintptr_t)src - (uintptr_t)c->to));
    if (c->from == 0) _mm512_stream_si512((__m512i *)(void *)line, x);
    else _mm512_mask_storeu_epi8(line, EINI_TAIL_FROM(c->from), x);
    at = 64 - c->to, left -= at, line += 64;
  }
  for (; left > 0; left -= 64, line += 64, at += 64) {
    __m512i x = _mm512_loadu_si512(src + at);
    if (at + 64 > bytes && left > bytes - at) {
      const int64_t had = bytes - at;
      src += stride, at = -had;
      x = _mm512_mask_loadu_epi8(x, EINI_TAIL_FROM(had),
                                 (const void *)((uintptr_t)src - (uintptr_t)had));
    }
    if (left < 64) {
      _mm512_storeu_si512(c->bytes, x);
      break;
    }
    _mm512_stream_si512((__m512i *)(void *)line, x);
  }
  c->line = line, c->from = 0, c->to = left;
}
#undef EINI_TAIL_FROM

// The same where every piece is a number of half lines and belongs at one: two stores that follow
// each other fill a line.
EINI_T256 static void eini_tail_put_halves(char *to, const char *src, int64_t bytes, int64_t count,
                                           int64_t stride) {
  for (; count > 0; count--, src += stride)
    for (int64_t i = 0; i < bytes; i += 32, to += 32)
      _mm256_stream_pd((double *)(void *)to,
                       _mm256_loadu_pd((const double *)(const void *)(src + i)));
}
#endif  // EINI_CPU_X86

static void eini_tail_lines(int isa, char *to, const char *from, int64_t bytes) {
#if EINI_CPU_X86
  if (isa != EINI_ISA_PLAIN) {
    eini_tail_lines_y(to, from, bytes);
    return;
  }
#else
  (void)isa;
#endif
  memcpy(to, from, (size_t)bytes);
}

// Writes what waits.
static void eini_tail_send(eini_tail *c) {
  if (c->from < c->to) memcpy(c->line + c->from, c->bytes + c->from, (size_t)(c->to - c->from));
  c->from = c->to = 0, c->line = NULL;
}

static void eini_tail_put_any(int isa, eini_tail *c, const char *src,
                              int64_t bytes) {
  for (int64_t i = 0; i < bytes;) {
    int64_t n = eini_min64(64 - c->to, bytes - i);
    if (c->to == 0 && n == 64) {
      n = (bytes - i) / 64 * 64;
      eini_tail_lines(isa, c->line, src + i, n);
      c->line += n;
    } else {
      memcpy(c->bytes + c->to, src + i, (size_t)n);
      c->to += n;
    }
    i += n;
    if (c->to < 64) continue;
    if (c->from == 0) eini_tail_lines(isa, c->line, c->bytes, 64);
    else memcpy(c->line + c->from, c->bytes + c->from, (size_t)(64 - c->from));
    c->line += 64, c->from = c->to = 0;
  }
}

// The same at dst, where it may go on from what the carry had.
static void eini_tail_put(int isa, eini_tail *c, char *dst, const char *src, int64_t bytes,
                           int64_t count, int64_t stride) {
#if EINI_CPU_X86
  if (isa != EINI_ISA_PLAIN && ((uintptr_t)dst & 63) == 0 && bytes % 32 == 0 &&
      bytes * count % 64 == 0) {
    eini_tail_put_halves(dst, src, bytes, count, stride);
    return;
  }
#endif
  if (c->line == NULL || dst != c->line + c->to) {
    eini_tail_send(c);
    c->from = c->to = (int64_t)((uintptr_t)dst & 63);
    c->line = dst - c->from;
  }
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512 && bytes >= 64) {
    eini_tail_put_z(c, src, bytes, count, stride);
    return;
  }
#endif
  for (; count > 0; count--, src += stride) eini_tail_put_any(isa, c, src, bytes);
}

// ================================================================================================
// >>tile-lines  transposes of whole lines
// Tiles of 64 / size rows of a line each, from and to any places, also past the caches and as lines
// joined from two tiles.
// ================================================================================================

typedef void (*eini_tile_fn)(const char *src, int64_t ss, char *dst, int64_t ds);

// Where a tile of whole lines is read, where it goes, and how: to the caches or past them.
typedef struct eini_tile {
  const char *src;
  const int64_t *column;       // columns of any places: their offsets; or NULL: ss apart
  int64_t ss;
  char *dst;
  int64_t ds;
  int stream;
  char *const *row;            // rows of any places; or NULL: those at dst, ds apart
  int64_t at;                  // of the line from that with the row's first byte
  char *carry;
  const int64_t *place;        // rows of any places, to the caches: offsets from dst; or NULL
} eini_tile;

// Tiles that store whole lines past the caches, B = 64 / size. join: from columns and to rows of
// any places, see eini_tile. put: the same to the caches, rows at offsets from dst.
typedef struct eini_line_kind {
  int b;
  eini_tile_fn line;
  void (*join)(const char *src, const int64_t *column, char *const *row, int64_t at, char *carry);
  void (*put)(const char *src, const int64_t *column, char *dst, const int64_t *place);
} eini_line_kind;

EINI_INLINE char *eini_tile_to(const eini_tile *t, int r) {
  return t->row != NULL ? t->row[r] : t->dst + (t->place != NULL ? t->place[r] : r * t->ds);
}

EINI_INLINE const char *eini_tile_from(const eini_tile *t, int s, int r) {
  return t->src + (t->column != NULL ? t->column[r] : r * t->ss) + s;
}

// Sets of vectors for lines: LANES lanes of 128 bits each. LO and HI: elements of the first and of
// the second half of lanes of a and b, of each in turn.
#if EINI_CPU_X86
#define EINI_ZT_TAG zt
#define EINI_ZT_AT EINI_T512
#define EINI_ZT_V __m512i
#define EINI_ZT_LANES 4
#define EINI_ZT_LO32(a, b) _mm512_unpacklo_epi32(a, b)
#define EINI_ZT_HI32(a, b) _mm512_unpackhi_epi32(a, b)
#define EINI_ZT_LO64(a, b) _mm512_unpacklo_epi64(a, b)
#define EINI_ZT_HI64(a, b) _mm512_unpackhi_epi64(a, b)

EINI_T512 EINI_INLINE __m512i eini_tile_load_zt(const eini_tile *t, int r) {
  return _mm512_loadu_si512((const void *)eini_tile_from(t, 0, r));
}

// The line of a row that starts anywhere, by words: it begins with the end of the tile before,
// which waits in `carry`, and what is left of this tile waits there.
EINI_T512 EINI_INLINE __m512i eini_line_join(const char *row, __m512i before, __m512i v) {
  const __m512i words =
      _mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  const int in = (int)((uintptr_t)row >> 2 & 15);
  return _mm512_permutex2var_epi32(before, _mm512_sub_epi32(words, _mm512_set1_epi32(in)), v);
}

EINI_T512 EINI_INLINE void eini_tile_store_zt(const eini_tile *t, int r, __m512i v) {
  char *d = eini_tile_to(t, r);
  if (t->row != NULL) {
    const __m512i line =
        eini_line_join(d, _mm512_loadu_si512((const void *)(t->carry + 64 * r)), v);
    d += t->at - (int64_t)((uintptr_t)d & 63);
    _mm512_stream_si512((__m512i *)(void *)d, line);
    _mm512_storeu_si512((void *)(t->carry + 64 * r), v);
  } else if (t->stream) {
    _mm512_stream_si512((__m512i *)(void *)d, v);
  } else {
    _mm512_storeu_si512((void *)d, v);
  }
}

// The transpose of four vectors of four lanes, stored as columns c, c + by, ..
EINI_T512 EINI_INLINE void eini_tile_lanes_zt(const eini_tile *t, int c, int by, __m512i w0,
                                              __m512i w1, __m512i w2, __m512i w3) {
  const __m512i u0 = _mm512_shuffle_i64x2(w0, w1, 0x44), u1 = _mm512_shuffle_i64x2(w0, w1, 0xee);
  const __m512i u2 = _mm512_shuffle_i64x2(w2, w3, 0x44), u3 = _mm512_shuffle_i64x2(w2, w3, 0xee);
  eini_tile_store_zt(t, c, _mm512_shuffle_i64x2(u0, u2, 0x88));
  eini_tile_store_zt(t, c + by, _mm512_shuffle_i64x2(u0, u2, 0xdd));
  eini_tile_store_zt(t, c + 2 * by, _mm512_shuffle_i64x2(u1, u3, 0x88));
  eini_tile_store_zt(t, c + 3 * by, _mm512_shuffle_i64x2(u1, u3, 0xdd));
}

#define EINI_YT_TAG yt
#define EINI_YT_AT EINI_T256
#define EINI_YT_V __m256i
#define EINI_YT_LANES 2
#define EINI_YT_LO32(a, b) _mm256_unpacklo_epi32(a, b)
#define EINI_YT_HI32(a, b) _mm256_unpackhi_epi32(a, b)
#define EINI_YT_LO64(a, b) _mm256_unpacklo_epi64(a, b)
#define EINI_YT_HI64(a, b) _mm256_unpackhi_epi64(a, b)

// Of rows r and r + by, 16 bytes each.
EINI_T256 EINI_INLINE __m256i eini_tile_rows_yt(const eini_tile *t, int s, int r, int by) {
  const __m128i *a = (const __m128i *)(const void *)eini_tile_from(t, s, r);
  const __m128i *b = (const __m128i *)(const void *)eini_tile_from(t, s, r + by);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(a)), _mm_loadu_si128(b), 1);
}

// The line of a row as of eini_line_join, of two halves: whichever of both lines' meet in it are
// turned by what is less than a half.
EINI_T256 EINI_INLINE void eini_line_join_y(const char *row, const char *before, __m256i *a,
                                            __m256i *b) {
  const __m256i *old = (const __m256i *)(const void *)before;
  const __m256i words = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const int in = (int)((uintptr_t)row >> 2 & 15);
  const __m256i by = _mm256_set1_epi32(in & 7), from = _mm256_sub_epi32(words, by);
  const __m256i half = _mm256_set1_epi32(in >= 8 ? -1 : 0), turned = _mm256_cmpgt_epi32(by, words);
  const __m256i last = _mm256_loadu_si256(old + 1);
  __m256i x = _mm256_loadu_si256(old + (in < 8));
  __m256i y = _mm256_blendv_epi8(*a, last, half), z = _mm256_blendv_epi8(*b, *a, half);
  x = _mm256_permutevar8x32_epi32(x, from);
  y = _mm256_permutevar8x32_epi32(y, from);
  z = _mm256_permutevar8x32_epi32(z, from);
  *a = _mm256_blendv_epi8(y, x, turned);
  *b = _mm256_blendv_epi8(z, y, turned);
}

EINI_T256 static void eini_line_joined_y(const char *row, const char *before, const char *tile,
                                         char *line) {
  __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)tile);
  __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(tile + 32));
  eini_line_join_y(row, before, &a, &b);
  _mm256_storeu_si256((__m256i *)(void *)line, a);
  _mm256_storeu_si256((__m256i *)(void *)(line + 32), b);
}

EINI_T256 EINI_INLINE void eini_tile_store_yt(const eini_tile *t, int r, __m256i (*q)[4], int j) {
  const __m256i a = q[0][j], b = q[1][j];
  char *d = eini_tile_to(t, r);
  if (t->row != NULL) {
    __m256i x = a, y = b;
    eini_line_join_y(d, t->carry + 64 * r, &x, &y);
    d += t->at - (int64_t)((uintptr_t)d & 63);
    _mm256_stream_si256((__m256i *)(void *)d, x);
    _mm256_stream_si256((__m256i *)(void *)(d + 32), y);
    _mm256_storeu_si256((__m256i *)(void *)(t->carry + 64 * r), a);
    _mm256_storeu_si256((__m256i *)(void *)(t->carry + 64 * r + 32), b);
  } else if (t->stream) {
    _mm256_stream_si256((__m256i *)(void *)d, a);
    _mm256_stream_si256((__m256i *)(void *)(d + 32), b);
  } else {
    _mm256_storeu_si256((__m256i *)(void *)d, a);
    _mm256_storeu_si256((__m256i *)(void *)(d + 32), b);
  }
}
#elif EINI_CPU_NEON
#define EINI_NT_TAG nt
#define EINI_NT_AT EINI_UNUSED
#define EINI_NT_V uint32x4_t
#define EINI_NT_LANES 1
#define EINI_NT_LO32(a, b) vzip1q_u32(a, b)
#define EINI_NT_HI32(a, b) vzip2q_u32(a, b)
#define EINI_NT_64(zip, a, b) \
  vreinterpretq_u32_u64(zip(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)))
#define EINI_NT_LO64(a, b) EINI_NT_64(vzip1q_u64, a, b)
#define EINI_NT_HI64(a, b) EINI_NT_64(vzip2q_u64, a, b)

EINI_INLINE uint32x4_t eini_tile_rows_nt(const eini_tile *t, int s, int r, int by) {
  (void)by;
  return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)eini_tile_from(t, s, r)));
}

// The line of a row as of eini_line_join, from neighbours among the vectors of both.
EINI_INLINE void eini_line_join_n(const char *row, const char *before, uint8x16_t *v) {
  static const uint8_t bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int in = (int)((uintptr_t)row & 60);
  const uint8x16_t from = vaddq_u8(vld1q_u8(bytes), vdupq_n_u8((uint8_t)(16 - in % 16)));
  uint8_t both[128];
  const uint8_t *p = both + 64 - in / 16 * 16;
  for (int i = 0; i < 4; i++) {
    vst1q_u8(both + 16 * i, vld1q_u8((const uint8_t *)before + 16 * i));
    vst1q_u8(both + 64 + 16 * i, v[i]);
  }
  for (int i = 0; i < 4; i++, p += 16) {
    const uint8x16x2_t two = {{vld1q_u8(p - 16), vld1q_u8(p)}};
    v[i] = vqtbl2q_u8(two, from);
  }
}

static void eini_line_joined_n(const char *row, const char *before, const char *tile, char *line) {
  uint8x16_t v[4];
  for (int i = 0; i < 4; i++) v[i] = vld1q_u8((const uint8_t *)tile + 16 * i);
  eini_line_join_n(row, before, v);
  for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)line + 16 * i, v[i]);
}

EINI_INLINE void eini_tile_store_nt(const eini_tile *t, int r, uint32x4_t (*q)[4], int j) {
  char *to = eini_tile_to(t, r);
  uint8x16_t v[4], w[4];
  for (int i = 0; i < 4; i++) v[i] = vreinterpretq_u8_u32(q[i][j]);
  memcpy(w, v, sizeof w);
  if (t->row != NULL) {
    char *carry = t->carry + 64 * r;
    eini_line_join_n(to, carry, w);
    to += t->at - (int64_t)((uintptr_t)to & 63);
    for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)carry + 16 * i, v[i]);
  }
  for (int i = 0; i < 4; i++) vst1q_u8((uint8_t *)to + 16 * i, w[i]);
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#define EINI_KERNELS EINI_KERNELS_LINES
#if EINI_CPU_X86
#define EINI_VEC EINI_ZT
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YT
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NT
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// Of the instruction sets that have such tiles.
static const eini_line_kind *const eini_line_kinds[EINI_ISA_COUNT] = {
    NULL,
#if EINI_CPU_NEON
    eini_line_kinds_nt, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_line_kinds_yt, eini_line_kinds_zt};
#else
    NULL, NULL, NULL};
#endif

static eini_line_kind eini_tile_lines(int isa, int size) {
  const eini_line_kind none = {0, NULL, NULL, NULL};
  return size < 4 || eini_line_kinds[isa] == NULL ? none : eini_line_kinds[isa][size / 8];
}

// ================================================================================================
// >>tiles  transposes in registers
// tile(src, ss, dst, ds): dst[s * ds + d] = src[d * ss + s] for s, d < B elements; steps in bytes.
// ================================================================================================

#if EINI_CPU_X86

#define EINI_LD1(r) _mm_loadu_si128((const __m128i *)(const void *)(src + (r)*ss))
#define EINI_LD2(r) _mm256_loadu_si256((const __m256i *)(const void *)(src + (r)*ss))
#define EINI_ST1(r, v) _mm_storeu_si128((__m128i *)(void *)(dst + (r)*ds), v)
#define EINI_ST2(r, v) _mm256_storeu_si256((__m256i *)(void *)(dst + (r)*ds), v)

// Perfect shuffles of 128 bits: log2(B) rounds of interleaving vector i with vector i + B/2.
#define EINI_ZIP2(T, x, y, bits, i, j, k, l)                                                \
  const T y##k = _mm_unpacklo_epi##bits(x##i, x##j);                                        \
  const T y##l = _mm_unpackhi_epi##bits(x##i, x##j);
#define EINI_ZIP8(x, y)                                                                     \
  EINI_ZIP2(__m128i, x, y, 16, 0, 4, 0, 1) EINI_ZIP2(__m128i, x, y, 16, 1, 5, 2, 3)         \
  EINI_ZIP2(__m128i, x, y, 16, 2, 6, 4, 5) EINI_ZIP2(__m128i, x, y, 16, 3, 7, 6, 7)
#define EINI_ZIP16(x, y)                                                                    \
  EINI_ZIP2(__m128i, x, y, 8, 0, 8, 0, 1) EINI_ZIP2(__m128i, x, y, 8, 1, 9, 2, 3)           \
  EINI_ZIP2(__m128i, x, y, 8, 2, 10, 4, 5) EINI_ZIP2(__m128i, x, y, 8, 3, 11, 6, 7)         \
  EINI_ZIP2(__m128i, x, y, 8, 4, 12, 8, 9) EINI_ZIP2(__m128i, x, y, 8, 5, 13, 10, 11)       \
  EINI_ZIP2(__m128i, x, y, 8, 6, 14, 12, 13) EINI_ZIP2(__m128i, x, y, 8, 7, 15, 14, 15)

EINI_T256 static void eini_reg_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  const __m128i a0 = EINI_LD1(0), a1 = EINI_LD1(1), a2 = EINI_LD1(2), a3 = EINI_LD1(3);
  const __m128i a4 = EINI_LD1(4), a5 = EINI_LD1(5), a6 = EINI_LD1(6), a7 = EINI_LD1(7);
  const __m128i a8 = EINI_LD1(8), a9 = EINI_LD1(9), a10 = EINI_LD1(10), a11 = EINI_LD1(11);
  const __m128i a12 = EINI_LD1(12), a13 = EINI_LD1(13), a14 = EINI_LD1(14), a15 = EINI_LD1(15);
  EINI_ZIP16(a, b)
  EINI_ZIP16(b, c)
  EINI_ZIP16(c, d)
  EINI_ZIP16(d, e)
  EINI_ST1(0, e0), EINI_ST1(1, e1), EINI_ST1(2, e2), EINI_ST1(3, e3);
  EINI_ST1(4, e4), EINI_ST1(5, e5), EINI_ST1(6, e6), EINI_ST1(7, e7);
  EINI_ST1(8, e8), EINI_ST1(9, e9), EINI_ST1(10, e10), EINI_ST1(11, e11);
  EINI_ST1(12, e12), EINI_ST1(13, e13), EINI_ST1(14, e14), EINI_ST1(15, e15);
}

EINI_T256 static void eini_reg_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  const __m128i a0 = EINI_LD1(0), a1 = EINI_LD1(1), a2 = EINI_LD1(2), a3 = EINI_LD1(3);
  const __m128i a4 = EINI_LD1(4), a5 = EINI_LD1(5), a6 = EINI_LD1(6), a7 = EINI_LD1(7);
  EINI_ZIP8(a, b)
  EINI_ZIP8(b, c)
  EINI_ZIP8(c, d)
  EINI_ST1(0, d0), EINI_ST1(1, d1), EINI_ST1(2, d2), EINI_ST1(3, d3);
  EINI_ST1(4, d4), EINI_ST1(5, d5), EINI_ST1(6, d6), EINI_ST1(7, d7);
}
#undef EINI_ZIP2
#undef EINI_ZIP8
#undef EINI_ZIP16

static void eini_reg_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m128i r0 = EINI_LD1(0), r1 = EINI_LD1(1), r2 = EINI_LD1(2), r3 = EINI_LD1(3);
  __m128i t0 = _mm_unpacklo_epi32(r0, r1), t1 = _mm_unpackhi_epi32(r0, r1);
  __m128i t2 = _mm_unpacklo_epi32(r2, r3), t3 = _mm_unpackhi_epi32(r2, r3);
  EINI_ST1(0, _mm_unpacklo_epi64(t0, t2));
  EINI_ST1(1, _mm_unpackhi_epi64(t0, t2));
  EINI_ST1(2, _mm_unpacklo_epi64(t1, t3));
  EINI_ST1(3, _mm_unpackhi_epi64(t1, t3));
}

static void eini_reg_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m128i r0 = EINI_LD1(0), r1 = EINI_LD1(1);
  EINI_ST1(0, _mm_unpacklo_epi64(r0, r1));
  EINI_ST1(1, _mm_unpackhi_epi64(r0, r1));
}

static void eini_reg_tile_128(const char *src, int64_t ss, char *dst, int64_t ds) {
  for (int i = 0; i < 4; i++) {
    __m128i a = EINI_LD1(i), b;
    b = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 16));
    EINI_ST1(0, a);
    EINI_ST1(1, b);
    a = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 32));
    b = _mm_loadu_si128((const __m128i *)(const void *)(src + i * ss + 48));
    EINI_ST1(2, a);
    EINI_ST1(3, b);
    dst += 16;
  }
}

EINI_T256 static void eini_reg_tile_64y(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m256i r0 = EINI_LD2(0), r1 = EINI_LD2(1), r2 = EINI_LD2(2), r3 = EINI_LD2(3);
  __m256i t0 = _mm256_unpacklo_epi64(r0, r1), t1 = _mm256_unpackhi_epi64(r0, r1);
  __m256i t2 = _mm256_unpacklo_epi64(r2, r3), t3 = _mm256_unpackhi_epi64(r2, r3);
  EINI_ST2(0, _mm256_permute2x128_si256(t0, t2, 0x20));
  EINI_ST2(1, _mm256_permute2x128_si256(t1, t3, 0x20));
  EINI_ST2(2, _mm256_permute2x128_si256(t0, t2, 0x31));
  EINI_ST2(3, _mm256_permute2x128_si256(t1, t3, 0x31));
}

EINI_T256 static void eini_reg_tile_32y(const char *src, int64_t ss, char *dst, int64_t ds) {
  __m256i a[4], b[4];
  const __m256i r0 = EINI_LD2(0), r1 = EINI_LD2(1), r2 = EINI_LD2(2), r3 = EINI_LD2(3);
  eini_tile_quad_yt(r0, r1, r2, r3, a);
  const __m256i r4 = EINI_LD2(4), r5 = EINI_LD2(5), r6 = EINI_LD2(6), r7 = EINI_LD2(7);
  eini_tile_quad_yt(r4, r5, r6, r7, b);
  EINI_ST2(0, _mm256_permute2x128_si256(a[0], b[0], 0x20));
  EINI_ST2(4, _mm256_permute2x128_si256(a[0], b[0], 0x31));
  EINI_ST2(1, _mm256_permute2x128_si256(a[1], b[1], 0x20));
  EINI_ST2(5, _mm256_permute2x128_si256(a[1], b[1], 0x31));
  EINI_ST2(2, _mm256_permute2x128_si256(a[2], b[2], 0x20));
  EINI_ST2(6, _mm256_permute2x128_si256(a[2], b[2], 0x31));
  EINI_ST2(3, _mm256_permute2x128_si256(a[3], b[3], 0x20));
  EINI_ST2(7, _mm256_permute2x128_si256(a[3], b[3], 0x31));
}

#undef EINI_LD1
#undef EINI_LD2
#undef EINI_ST1
#undef EINI_ST2

#elif EINI_CPU_NEON

// Elements of the first and the second half of two vectors, of each in turn.
EINI_INLINE void eini_zip(int size, uint8x16_t a, uint8x16_t b, uint8x16_t *to) {
  const uint16x8_t c = vreinterpretq_u16_u8(a), d = vreinterpretq_u16_u8(b);
  const uint32x4_t e = vreinterpretq_u32_u8(a), f = vreinterpretq_u32_u8(b);
  const uint64x2_t g = vreinterpretq_u64_u8(a), h = vreinterpretq_u64_u8(b);
  to[0] = size == 1   ? vzip1q_u8(a, b)
          : size == 2 ? vreinterpretq_u8_u16(vzip1q_u16(c, d))
          : size == 4 ? vreinterpretq_u8_u32(vzip1q_u32(e, f))
                      : vreinterpretq_u8_u64(vzip1q_u64(g, h));
  to[1] = size == 1   ? vzip2q_u8(a, b)
          : size == 2 ? vreinterpretq_u8_u16(vzip2q_u16(c, d))
          : size == 4 ? vreinterpretq_u8_u32(vzip2q_u32(e, f))
                      : vreinterpretq_u8_u64(vzip2q_u64(g, h));
}

EINI_INLINE void eini_reg_tile(int size, const char *src, int64_t ss, char *dst, int64_t ds) {
  const int b = 16 / size;
  uint8x16_t x[2][16];
  int at = 0;
  for (int i = 0; i < b; i++) memcpy(&x[0][i], src + i * ss, 16);
  for (int rounds = b; rounds > 1; rounds /= 2, at = !at)
    for (int i = 0; i < b / 2; i++) eini_zip(size, x[at][i], x[at][i + b / 2], &x[!at][2 * i]);
  for (int i = 0; i < b; i++) memcpy(dst + i * ds, &x[at][i], 16);
}
static void eini_reg_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(1, src, ss, dst, ds);
}
static void eini_reg_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(2, src, ss, dst, ds);
}
static void eini_reg_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(4, src, ss, dst, ds);
}
static void eini_reg_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_reg_tile(8, src, ss, dst, ds);
}

#endif  // EINI_CPU_X86, EINI_CPU_NEON

// Plain C, B = 4.
EINI_INLINE void eini_c_tile(int size, const char *src, int64_t ss, char *dst, int64_t ds) {
  for (int d = 0; d < 4; d++) {
    for (int s = 0; s < 4; s++)
      memcpy(dst + s * ds + d * size, src + d * ss + s * size, (size_t)size);
  }
}
static void eini_c_tile_8(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(1, src, ss, dst, ds);
}
static void eini_c_tile_16(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(2, src, ss, dst, ds);
}
static void eini_c_tile_32(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(4, src, ss, dst, ds);
}
static void eini_c_tile_64(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(8, src, ss, dst, ds);
}
static void eini_c_tile_128(const char *src, int64_t ss, char *dst, int64_t ds) {
  eini_c_tile(16, src, ss, dst, ds);
}

// The tiles of an element size, widest first, ended by B = 0.
typedef struct eini_tile_kind {
  int b;
  eini_tile_fn fn;
} eini_tile_kind;

// By log2 of the size, per instruction set.
static const eini_tile_kind eini_tile_kinds[EINI_ISA_COUNT][5][4] = {
    {{{4, eini_c_tile_8}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_16}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_32}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_64}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
#if EINI_CPU_NEON
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_32}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{2, eini_reg_tile_64}, {0, NULL}, {0, NULL}, {0, NULL}},
     {{4, eini_c_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
#else
    {{{0, NULL}}},
#endif
#if EINI_CPU_X86
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_32y}, {4, eini_reg_tile_32}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_64y}, {2, eini_reg_tile_64}, {0, NULL}, {0, NULL}},
     {{4, eini_reg_tile_128}, {0, NULL}, {0, NULL}, {0, NULL}}},
    {{{16, eini_reg_tile_8}, {4, eini_c_tile_8}, {0, NULL}, {0, NULL}},
     {{8, eini_reg_tile_16}, {4, eini_c_tile_16}, {0, NULL}, {0, NULL}},
     {{16, eini_reg_tile_32_zt}, {8, eini_reg_tile_32y}, {4, eini_reg_tile_32}, {0, NULL}},
     {{8, eini_reg_tile_64_zt}, {4, eini_reg_tile_64y}, {2, eini_reg_tile_64}, {0, NULL}},
     {{4, eini_reg_tile_128_zt}, {0, NULL}, {0, NULL}, {0, NULL}}}};
#else  // EINI_CPU_X86
    {{{0, NULL}}}, {{{0, NULL}}}};
#endif

// dst[s * ds + d] = src[d * ss + s] for s < ns <= 4 and d < nd, nd >= 8, of eight bytes; steps in
// bytes. Rows too short for tiles: eight at once, of which nothing after their end is read.
#if EINI_CPU_X86
#define EINI_NARROW_ROW(k) _mm256_maskz_loadu_pd(m, (const void *)(r + (k) * ss))
#define EINI_NARROW_PAIR(k) \
  _mm512_insertf64x4(_mm512_castpd256_pd512(EINI_NARROW_ROW(k)), EINI_NARROW_ROW((k) + 2), 1)
EINI_T512 static void eini_turn_narrow(int64_t ns, int64_t nd, const char *src, int64_t ss,
                                       char *dst, int64_t ds) {
  const __mmask8 m = (__mmask8)((1u << ns) - 1u);
  for (int64_t i = 0; i < nd; i += 8) {
    const int64_t d = eini_min64(i, nd - 8);
    const char *r = src + d * ss;
    char *to = dst + 8 * d;
    const __m512d a = EINI_NARROW_PAIR(0), b = EINI_NARROW_PAIR(1);
    const __m512d e = EINI_NARROW_PAIR(4), f = EINI_NARROW_PAIR(5);
    const __m512d x = _mm512_unpacklo_pd(a, b), y = _mm512_unpacklo_pd(e, f);
    const __m512d z = _mm512_unpackhi_pd(a, b), w = _mm512_unpackhi_pd(e, f);
    _mm512_storeu_pd(to, _mm512_shuffle_f64x2(x, y, 0x88));
    if (ns > 1) _mm512_storeu_pd(to + ds, _mm512_shuffle_f64x2(z, w, 0x88));
    if (ns > 2) _mm512_storeu_pd(to + 2 * ds, _mm512_shuffle_f64x2(x, y, 0xdd));
    if (ns > 3) _mm512_storeu_pd(to + 3 * ds, _mm512_shuffle_f64x2(z, w, 0xdd));
  }
}
#else  // EINI_CPU_X86
static void eini_turn_narrow(int64_t ns, int64_t nd, const char *src, int64_t ss, char *dst,
                             int64_t ds) {
  for (int64_t s = 0; s < ns; s++) {
    for (int64_t d = 0; d < nd; d++) memcpy(dst + s * ds + 8 * d, src + d * ss + 8 * s, 8);
  }
}
#endif

// The same for any number and size of elements. Tiles overlap.
static void eini_turn(int isa, int size, int64_t ns, int64_t nd, const char *src, int64_t ss,
                      char *dst, int64_t ds) {
  const eini_tile_kind *kind = eini_tile_kinds[isa][size == 8 ? 3 : 2];
  while (kind->b > eini_min64(ns, nd)) kind++;
  const int64_t b = kind->b;
  const int narrow = isa == EINI_ISA_AVX512 && size == 8 && nd >= 8;
  for (int64_t s = 0, n; s < ns; s += n) {
    n = b > 0 ? b : 1;
    if (narrow && (b < 8 || ns - s <= 4)) {
      n = eini_min64(ns - s, 4);
      eini_turn_narrow(n, nd, src + s * size, ss, dst + s * ds, ds);
      continue;
    }
    if (b == 0) {
      for (int64_t d = 0; d < nd; d++) {
        memcpy(dst + s * ds + d * size, src + d * ss + s * size, (size_t)size);
      }
      continue;
    }
    const int64_t u = eini_min64(s, ns - b);
    for (int64_t d = 0; d < nd; d += b) {
      const int64_t w = eini_min64(d, nd - b);
      kind->fn(src + w * ss + u * size, ss, dst + u * ds + w * size, ds);
    }
  }
}

// ================================================================================================
// >>copy  permuted copies
// Planes of two loops, one moving by single elements in the source and one in the destination, are
// transposed in registers. Destinations beyond the caches are streamed.
// ================================================================================================

// Streamed are tiles that are lines, and long rows, straight to their places; tiles that are not,
// as lines joined from two of them; rows that follow each other there with what is left of a line
// waiting for the next of them; all else by way of a buffer.

#define EINI_COPY_LOOPS 16     // more are walked from outside
#define EINI_COPY_RUN 512      // bytes read at a place of the source, where there are as many
#define EINI_COPY_MANY 128     // but no more elements of them: each begins a row of the destination
#define EINI_COPY_ROW 4096     // bytes of rows that are put together piece by piece
#define EINI_COPY_PIECE 512
#define EINI_COPY_FEW 32       // rows of the source that are read along when they are far apart
#define EINI_COPY_PAGES 8192   // bytes of each
#define EINI_COPY_BLOCK 32768  // bytes of the buffer that are used
#define EINI_COPY_CHAIN 1024   // rows of such blocks that start anywhere
#define EINI_COPY_ENDS 8       // lines of them at least: the first and the last one take longer
#define EINI_COPY_BUFFER (EINI_COPY_CHAIN * (64 + 64 + 8))  // a row: two lines and its place
#define EINI_COPY_LONG 320     // rows of so many bytes are not put together from shorter ones
#define EINI_COPY_TURN 512     // bytes asked for, then as many streamed: memory turns less often
#define EINI_COPY_LEAD 48      // lines of such rows asked for before they are read
#define EINI_COPY_CARRY 512    // rows whose unfinished lines are kept
#define EINI_COPY_SMALL 256    // elements of blocks that are turned one by one, by a table
#define EINI_COPY_NEAR 16384   // bytes of the source in a row from which the first cache is better

typedef enum eini_copy_kind {
  EINI_COPY_ROWS,              // the source moves with the destination
  EINI_COPY_FILL,              // the source stays
  EINI_COPY_TILES,             // another loop moves the source by single elements
  EINI_COPY_ANY
} eini_copy_kind;

// Loops, innermost of the destination first; steps in bytes. A block of blk[] of every loop is one
// plane (loops 0 and row), times the few other loops that widen it.
typedef struct eini_move {
  int n, size, isa;
  eini_copy_kind kind;
  int64_t extent[EINI_COPY_LOOPS], src_step[EINI_COPY_LOOPS], dst_step[EINI_COPY_LOOPS];
  int64_t blk[EINI_COPY_LOOPS], pos[EINI_COPY_LOOPS];
  int64_t then[EINI_COPY_LOOPS];  // where the block after that at pos is
  int last;                    // there is none
  int order[EINI_COPY_LOOPS];  // of the blocks, innermost first
  int row, row2;               // loops along the rows of the block, or -1
  int ncol;                    // loops 0 .. ncol-1 are its columns
  eini_line_kind tile;         // whole lines of the destination, from registers; or B = 0
  const char *src;
  char *dst;
} eini_move;

static void eini_move_swap(eini_move *w, int i, int j) {
  int64_t e = w->extent[i], s = w->src_step[i], d = w->dst_step[i];
  w->extent[i] = w->extent[j], w->src_step[i] = w->src_step[j], w->dst_step[i] = w->dst_step[j];
  w->extent[j] = e, w->src_step[j] = s, w->dst_step[j] = d;
}

static void eini_move_drop(eini_move *w, int i) {
  for (w->n--; i < w->n; i++) eini_move_swap(w, i, i + 1);
}

// The first element is so many bytes further. (While it is planned there are no addresses yet.)
static void eini_move_by(eini_move *w, int64_t src, int64_t dst) {
  w->src = (const char *)((uintptr_t)w->src + (uintptr_t)src);
  w->dst = (char *)((uintptr_t)w->dst + (uintptr_t)dst);
}

// Takes the loops over: no extents of 1, destination steps positive and ascending, merged. 0 when
// there is nothing to copy.
static int eini_move_take(eini_move *w, const ein_copy *c) {
  w->n = 0;
  w->size = c->size;
  w->src = c->src;
  w->dst = c->dst;
  for (int i = 0; i < c->n; i++) {
    int64_t e = c->extent[i], s = c->src_stride[i] * c->size, d = c->dst_stride[i] * c->size;
    if (e <= 0) return 0;
    if (e == 1) continue;
    if (d < 0) {
      eini_move_by(w, (e - 1) * s, (e - 1) * d);
      s = -s;
      d = -d;
    }
    int j = w->n++;
    w->extent[j] = e, w->src_step[j] = s, w->dst_step[j] = d;
    for (; j > 0 && w->dst_step[j] < w->dst_step[j - 1]; j--) eini_move_swap(w, j, j - 1);
  }
  for (int i = w->n - 2; i >= 0; i--) {
    int64_t e = w->extent[i];
    if (w->dst_step[i + 1] == w->dst_step[i] * e && w->src_step[i + 1] == w->src_step[i] * e) {
      w->extent[i] *= w->extent[i + 1];
      eini_move_drop(w, i + 1);
    }
  }
  return 1;
}

// Few elements that stay together are one bigger element.
static void eini_move_promote(eini_move *w) {
  while (w->n > 1 && w->dst_step[0] == w->size && w->src_step[0] == w->size &&
         w->extent[0] <= 16 / w->size && (w->extent[0] & (w->extent[0] - 1)) == 0) {
    int64_t size = w->size * w->extent[0];
    for (int i = 1; i < w->n; i++) {
      if (w->src_step[i] % size != 0 || w->dst_step[i] % size != 0) return;
    }
    w->size = (int)size;
    eini_move_drop(w, 0);
  }
}

// The loop but loop 0 with the least move of the source, or -1.
static int eini_move_near(const eini_move *w) {
  int best = -1;
  for (int i = 1; i < w->n; i++) {
    const int64_t s = eini_abs64(w->src_step[i]), t = best < 0 ? 0 : eini_abs64(w->src_step[best]);
    if (s != 0 && (best < 0 || s < t)) best = i;
  }
  return best;
}

static void eini_move_kind(eini_move *w) {
  w->row = w->row2 = -1;
  w->ncol = 1;
  if (w->n == 0) {  // one element
    w->extent[0] = w->n = 1;
    w->src_step[0] = w->dst_step[0] = w->size;
  }
  int64_t s = w->src_step[0];
  int unit = w->dst_step[0] == w->size;
  w->kind = unit && s == w->size ? EINI_COPY_ROWS : unit && s == 0 ? EINI_COPY_FILL : EINI_COPY_ANY;
  if (w->kind != EINI_COPY_ANY) return;
  int near = eini_move_near(w);
  if (near < 0) return;
  int64_t t = w->src_step[near];
  if (unit && (t == w->size || t == -w->size)) {
    w->kind = EINI_COPY_TILES;
    if (t < 0) {
      eini_move_by(w, (w->extent[near] - 1) * t, (w->extent[near] - 1) * w->dst_step[near]);
      w->src_step[near] = -t;
      w->dst_step[near] = -w->dst_step[near];
    }
    w->row = near;
  } else if (eini_abs64(t) < eini_abs64(s)) {
    w->row = near;
  }
}

// Do all rows of tiles start lines of the destination? Then nothing is put together for them.
static void eini_move_tile(eini_move *w) {
  uintptr_t bits = (uintptr_t)w->dst;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  w->tile = eini_tile_lines(w->isa, w->size);
  int ok = w->kind == EINI_COPY_TILES && bits % 64 == 0 && w->tile.b <= w->extent[0] &&
           w->tile.b <= w->extent[w->row];
  if (!ok || (w->row == 1 && w->extent[0] * w->extent[1] * w->size < EINI_COPY_ROW)) w->tile.b = 0;
}

// The loop outside of the columns that goes on where a run of the source of so many bytes ends;
// or -1.
static int eini_move_next_run(const eini_move *w, int64_t run) {
  for (int k = w->ncol; k < w->n; k++) {
    if (k != w->row && w->src_step[k] == run) return k;
  }
  return -1;
}

// Bytes of the run of the source which the row and whole columns make.
static int64_t eini_move_whole_run(const eini_move *w) {
  int64_t run = w->extent[w->row] * w->size;
  for (int i = 0; i < w->ncol; i++) {
    if (w->src_step[i] == run && w->blk[i] == w->extent[i]) run *= w->extent[i], i = -1;
  }
  return run;
}

// Their blocks: many rows of the source where those are near each other, else few, by pages: the
// sets of a cache do not hold many that are a power of two apart. Short rows of the destination
// that go on are one.
static void eini_move_tiles(eini_move *w) {
  const int64_t step = eini_abs64(w->src_step[0]);
  int64_t rows = eini_min64(EINI_COPY_PIECE / w->size, EINI_COPY_BLOCK / step);
  int64_t width = w->extent[0] * w->size;
  rows = eini_max64(EINI_COPY_FEW, rows) / w->tile.b * w->tile.b;
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = eini_min64(w->extent[0], rows);
  w->blk[w->row] = eini_min64(w->extent[w->row], EINI_COPY_PAGES / w->size);
  for (int i = 1; i < w->n && i < 3 && i != w->row; i++) {
    if (w->blk[i - 1] < w->extent[i - 1] || 2 * width > EINI_COPY_PIECE ||
        w->dst_step[i] != w->dst_step[i - 1] * w->extent[i - 1]) {
      break;
    }
    w->blk[i] = eini_min64(w->extent[i], EINI_COPY_PIECE / width);
    width *= w->blk[i];
    w->ncol++;
  }
  const int64_t run = eini_move_whole_run(w);
  int next = eini_move_next_run(w, run);
  if (next < 0 || w->blk[w->row] < w->extent[w->row] || 2 * run > EINI_COPY_PAGES) return;
  w->row2 = next;
  w->blk[next] = eini_min64(w->extent[next], EINI_COPY_PAGES / run);
}

// Blocks of a copy that goes straight to its destination.
static void eini_move_direct(eini_move *w) {
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = w->extent[0];
  if (w->row < 0 && w->n > 1) {
    int near = w->kind == EINI_COPY_ROWS ? eini_move_near(w) : 1;
    w->row = near < 0 ? 1 : near;
    w->blk[w->row] = w->extent[w->row];
  } else if (w->row > 0) {
    int64_t side = 512 / w->size;
    w->blk[0] = eini_min64(w->extent[0], side);
    w->blk[w->row] = eini_min64(w->extent[w->row], side);
  }
}

// Short rows that follow each other in the destination are one: the whole block is.
static int eini_move_one_row(const eini_move *w) {
  return w->ncol == 1 && w->row == 1 && w->blk[0] == w->extent[0] &&
         w->dst_step[1] == w->extent[0] * w->size &&
         w->extent[0] * w->size <= (w->kind == EINI_COPY_TILES ? 512 : 255);
}

// Blocks of a copy through the buffer: whole runs of the source, long rows of the destination.
static void eini_move_buffered(eini_move *w) {
  int64_t rows = eini_min64(EINI_COPY_RUN / w->size, EINI_COPY_MANY);
  if (w->row > 0 && w->extent[w->row] <= 2 * rows) rows = w->extent[w->row];
  int64_t cols = eini_min64(EINI_COPY_BLOCK / rows, EINI_COPY_ROW) / w->size;
  int64_t places = w->extent[0] * w->size < 128 ? 16 : 8;  // of the destination, for short rows
  if (w->kind == EINI_COPY_ROWS) cols = EINI_COPY_BLOCK / 2 / places / w->size;
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = eini_min64(w->extent[0], cols);
  int64_t width = w->blk[0];
  while (w->ncol < w->n && w->ncol < 4 && w->ncol != w->row &&
         w->blk[w->ncol - 1] == w->extent[w->ncol - 1] && 2 * width <= cols &&
         w->dst_step[w->ncol] == w->dst_step[w->ncol - 1] * w->extent[w->ncol - 1]) {
    w->blk[w->ncol] = eini_min64(w->extent[w->ncol], cols / width);
    width *= w->blk[w->ncol++];
  }
  if (w->ncol == 1 && w->kind == EINI_COPY_TILES)
    w->blk[0] = eini_min64(w->extent[0], EINI_COPY_ROW / w->size);
  if (w->row > 0) w->blk[w->row] = eini_min64(w->extent[w->row], rows);
  if (eini_move_one_row(w)) {
    w->blk[1] = eini_min64(w->extent[1], EINI_COPY_BLOCK / (w->extent[0] * w->size));
    return;
  }
  int from = w->row < 0 ? 0 : w->row;
  int64_t run = w->kind == EINI_COPY_ROWS ? 256 * places : EINI_COPY_RUN;
  rows = run / w->size / w->extent[from];
  if (rows < 2 || w->kind == EINI_COPY_FILL) return;
  int next = eini_move_next_run(w, w->src_step[from] * w->extent[from]);
  if (next < 0) return;
  if (w->row < 0) {
    w->row = next;
    rows = eini_min64(rows, EINI_COPY_BLOCK / (width * w->size));
  } else {
    w->row2 = next;
  }
  w->blk[next] = eini_min64(w->extent[next], rows);
}

static int64_t eini_move_part(const eini_move *w, int i) {
  return i < 0 ? 1 : eini_min64(w->blk[i], w->extent[i] - w->pos[i]);
}

// Rows of tiles that are put together by pieces: a line before the piece holds what is left of the
// one before. An odd number of lines, which is well for the sets of a cache.
#define EINI_COPY_PITCH (64 + EINI_COPY_PIECE)
static int eini_move_lines(const eini_move *w, int64_t width) {
  return w->kind == EINI_COPY_TILES && w->ncol == 1 && width >= 128;
}

// Bytes from row to row of the buffer, where rows are put together in it.
static int64_t eini_move_pitch(int64_t width) { return (width + 63) / 64 * 64 + 64; }

// No more rows than the buffer has room for.
static void eini_move_bound(eini_move *w) {
  int64_t width = w->size;
  if (w->row < 0 || eini_move_one_row(w)) return;
  for (int i = 0; i < w->ncol; i++) width *= w->blk[i];
  int64_t pitch = eini_move_lines(w, width) ? EINI_COPY_PITCH : eini_move_pitch(width);
  w->blk[w->row] = eini_min64(w->blk[w->row], EINI_COPY_BUFFER / pitch);
}

// ---- planes: dst[s * ds + d * dd] = src[s * ss + d * sd] for d < nd, s < ns; steps in bytes ----

typedef struct eini_plane {
  const char *src;
  char *dst;
  int64_t sd, ss, dd, ds, nd, ns;
} eini_plane;

EINI_INLINE void eini_plane_of(int size, const eini_plane *p) {
  for (int64_t s = 0; s < p->ns; s++) {
    const char *from = p->src + s * p->ss;
    char *to = p->dst + s * p->ds;
    for (int64_t d = 0; d < p->nd; d++, from += p->sd, to += p->dd) memcpy(to, from, (size_t)size);
  }
}

static void eini_plane_any(int size, const eini_plane *p) {
  switch (size) {
    case 1: eini_plane_of(1, p); break;
    case 2: eini_plane_of(2, p); break;
    case 4: eini_plane_of(4, p); break;
    case 8: eini_plane_of(8, p); break;
    default: eini_plane_of(16, p); break;
  }
}

// n copies of an element: doubling what is there up to a page.
static void eini_plane_fill(int size, const char *src, char *dst, int64_t n) {
  int64_t bytes = n * size, done = size;
  memcpy(dst, src, (size_t)size);
  while (done < bytes) {
    int64_t more = eini_min64(eini_min64(done, 4096), bytes - done);
    memcpy(dst + done, dst, (size_t)more);
    done += more;
  }
}

static int eini_log2(int size) {
  int n = 0;
  while (size >> n > 1) n++;
  return n;
}

// Tiles of the widest kind that fits; the last ones overlap their neighbours.
static void eini_plane_tiles(int isa, int size, const eini_plane *p) {
  const eini_tile_kind *k = eini_tile_kinds[isa][eini_log2(size)];
  while (k->b > p->nd || k->b > p->ns) k++;
  if (k->b == 0) {
    eini_plane_any(size, p);
    return;
  }
  for (int64_t s = 0; s < p->ns; s += k->b) {
    if (s > p->ns - k->b) s = p->ns - k->b;
    const char *from = p->src + s * size;
    char *to = p->dst + s * p->ds;
    for (int64_t d = 0; d < p->nd; d += k->b) {
      if (d > p->nd - k->b) d = p->nd - k->b;
      k->fn(from + d * p->sd, p->sd, to + d * size, p->ds);
    }
  }
}

// memcpy for few bytes: the last 16 (8) of them overlap those before.
static void eini_copy_few(char *d, const char *s, int64_t n) {
  if (n >= 16) {
    for (int64_t i = 0; i + 16 <= n; i += 16) memcpy(d + i, s + i, 16);
    memcpy(d + n - 16, s + n - 16, 16);
  } else if (n >= 8) {
    memcpy(d, s, 8);
    memcpy(d + n - 8, s + n - 8, 8);
  } else {
    for (int64_t i = 0; i < n; i++) d[i] = s[i];
  }
}

// Short rows are too short for what the processor fetches ahead by itself: the next block's. Into
// the second cache: the buffer and the present block fill the first.
static void eini_copy_ahead(uintptr_t p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) EINI_FETCH2(p + (uintptr_t)i);
}

static void eini_plane_run(const eini_move *w, const eini_plane *p) {
  if (w->kind == EINI_COPY_TILES) {
    eini_plane_tiles(w->isa, w->size, p);
  } else if (w->kind == EINI_COPY_ANY) {
    eini_plane_any(w->size, p);
  } else {
    for (int64_t s = 0; s < p->ns; s++) {
      const char *from = p->src + s * p->ss;
      char *to = p->dst + s * p->ds;
      int64_t bytes = p->nd * w->size;
      if (w->kind == EINI_COPY_FILL) {
        eini_plane_fill(w->size, from, to, p->nd);
        continue;
      }
      eini_copy_ahead((uintptr_t)from + (uintptr_t)(p->ns * p->ss), bytes);
      if (bytes > 64) memcpy(to, from, (size_t)bytes);
      else eini_copy_few(to, from, bytes);
    }
  }
}

// ================================================================================================
// >>copy-blocks  the blocks of a copy
// Takes a copy as a move; runs it block by block, direct, through a buffer or past the caches.
// ================================================================================================

// `columns` of loops 0 .. 3, rows of `bytes` at src: asked for while so many lines are streamed.
static void eini_ahead_start(eini_ahead *a, const eini_move *w, const char *src,
                             const int64_t *columns, int64_t bytes, int64_t lines) {
  int odd = ((uintptr_t)src & 63) != 0;
  a->at = (uintptr_t)src;
  for (int i = 0; i < 4; i++) {
    a->n[i + 1] = columns[i];
    a->step[i + 1] = columns[i] > 1 ? w->src_step[i] : 0;
    odd |= a->step[i + 1] % 64 != 0;
  }
  a->n[0] = (bytes + (odd ? 126 : 63)) / 64;
  a->step[0] = 0;
  a->left = 1;
  for (int i = 0; i < 5; i++) a->left *= a->n[i], a->i[i] = 0;
  a->share = (a->left + lines - 1) / lines;
  a->first = 0;
}

// Bytes to the block at pos, by steps of the source or the destination.
static int64_t eini_move_offset(const eini_move *w, const int64_t *step) {
  int64_t r = 0;
  for (int k = 0; k < w->n; k++) r += w->pos[k] * step[k];
  return r;
}

// Where the block after that at pos is.
static void eini_move_then(eini_move *w) {
  int i = 0;
  memcpy(w->then, w->pos, sizeof w->then);
  for (; i < w->n; i++) {
    int k = w->order[i];
    w->then[k] += w->blk[k];
    if (w->then[k] < w->extent[k]) break;
    w->then[k] = 0;
  }
  w->last = i == w->n;
}

// Lines that `rows` rows may share which follow each other from any place.
static int64_t eini_rows_lines(int64_t rows, int64_t bytes) { return (rows * bytes + 126) / 64; }

// The passes of a block of tiles, among its columns: what is near is asked for first.
static void eini_move_ahead_tiles(const eini_move *w, eini_ahead *a) {
  const int64_t passes = eini_move_part(w, w->row2);
  int k = 4;                   // (there are three columns at most)
  if (passes == 1) return;
  const int64_t step = w->src_step[w->row2];
  a->left *= passes;
  if (step == eini_move_part(w, w->row) * w->size) {
    a->n[0] *= passes;
    return;
  }
  for (; k > 1 && (a->n[k - 1] == 1 || eini_abs64(a->step[k - 1]) > step); k--) {
    a->n[k] = a->n[k - 1];
    a->step[k] = a->step[k - 1];
  }
  a->n[k] = passes;
  a->step[k] = step;
}

// The lines of the block at w->pos: of tiles, or of whole rows by columns of them.
static void eini_move_ahead(const eini_move *w, eini_ahead *lines) {
  const int64_t rows = eini_move_part(w, w->row), row = eini_move_part(w, 0) * w->size;
  const int tiles = w->kind == EINI_COPY_TILES;
  int64_t n[4] = {1, 1, 1, 1};
  for (int i = tiles ? 0 : 1; i < w->ncol; i++) n[i] = eini_move_part(w, i);
  eini_ahead_start(lines, w, w->src + eini_move_offset(w, w->src_step), n,
                   tiles ? rows * w->size : row, 1);
  lines->share = 1;
  if (tiles) {
    eini_move_ahead_tiles(w, lines);
    return;
  }
  const int follow = w->row >= 0 && w->src_step[w->row] == row;
  lines->first = follow || row >= EINI_COPY_NEAR;
  if (w->ncol > 1) lines->n[0] = eini_rows_lines(follow ? rows : 1, row);
  if (w->row >= 0 && (w->ncol == 1 || !follow)) {
    lines->n[1] = rows;
    lines->step[1] = w->src_step[w->row];
  }
  lines->left = 1;
  for (int i = 0; i < 5; i++) lines->left *= lines->n[i];
}

// What is read after the present pass over a block: the same block's next pass or the next block.
typedef struct eini_after {
  const char *src;             // NULL: nothing
  int64_t n[4], bytes;         // columns of loops 0 .. 3, bytes of a row
} eini_after;

static void eini_block_after(const eini_move *w, const char *src, const int64_t *n, int64_t rows,
                             int64_t pass, int64_t passes, eini_after *after) {
  after->src = src;
  after->bytes = rows * w->size;
  for (int i = 0; i < 4; i++) after->n[i] = n[i];
  if (pass + 1 < passes) {
    after->src += w->src_step[w->row2];
    return;
  }
  if (w->row2 >= 0) after->src -= pass * w->src_step[w->row2];
  for (int k = 0; k < w->n; k++) {
    int64_t part = eini_min64(w->blk[k], w->extent[k] - w->then[k]);
    after->src += (w->then[k] - w->pos[k]) * w->src_step[k];
    if (k < w->ncol) after->n[k] = part;
    if (k == w->row) after->bytes = part * w->size;
  }
  if (w->last || w->kind != EINI_COPY_TILES) after->src = NULL;
}

// p->nd columns of loop 0: tiles side by side, so that places of the source are read along.
static void eini_block_fill(const eini_move *w, const eini_plane *p) {
  const int64_t some = w->kind == EINI_COPY_TILES ? 64 / w->size : p->nd;
  eini_plane part = *p;
  for (int64_t d = 0; d < p->nd; d += some) {
    part.nd = eini_min64(some, p->nd - d);
    eini_plane_run(w, &part);
    part.src += some * p->sd;
    part.dst += some * w->size;
  }
}

// Blocks of tiles that are lines are asked for in the order in which they are read.
typedef struct eini_before {
  eini_move w;                 // at the block that is asked for now
  eini_ahead lines;            // of it
  int64_t lead, most;          // lines asked for and not yet read
  int64_t share;               // lines to ask for with each tile
} eini_before;

static void eini_before_some(eini_before *b, int64_t lines) {
  lines = eini_min64(lines, b->most - b->lead);
  while (lines > 0 && (b->lines.left > 0 || !b->w.last)) {
    if (b->lines.left == 0) {
      memcpy(b->w.pos, b->w.then, sizeof b->w.pos);
      eini_move_then(&b->w);
      eini_move_ahead(&b->w, &b->lines);
    }
    int64_t n = eini_min64(lines, b->lines.left);
    eini_ahead_some(&b->lines, n);
    b->lead += n;
    lines -= n;
  }
}

// The same where these lines follow each other: the caller asks for them, from here; or 0.
static uintptr_t eini_before_run(eini_before *b, int64_t lines) {
  eini_ahead *a = &b->lines;
  const uintptr_t at = a->at + 64 * (uintptr_t)a->i[0];
  if (lines > a->n[0] - a->i[0] || lines > a->left || lines > b->most - b->lead) return 0;
  a->i[0] += lines;
  a->left -= lines;
  b->lead += lines;
  eini_ahead_next(a);
  return at;
}

static void eini_before_start(eini_before *b, const eini_move *w, int64_t most) {
  b->w = *w;
  b->lead = 0;
  b->most = most;
  eini_move_then(&b->w);
  eini_move_ahead(&b->w, &b->lines);
  eini_before_some(b, b->most);
}

// Tiles of whole lines, a line of the source's rows after the other; columns that fill no line by
// the way of the caches. Everything is in registers: what waits for a store waits for those past
// the caches before it.
static void eini_block_lines(const eini_move *w, const eini_plane *p, eini_before *before) {
  const int64_t b = w->tile.b, sd = p->sd, ds = p->ds, full = p->nd / b, ns = p->ns;
  const int64_t share = before->share, size = w->size;
  const eini_tile_fn fn = w->tile.line;
  for (int64_t s = 0; s < ns; s += b) {
    if (s > ns - b) s = ns - b;
    const char *src = p->src + s * size;
    char *dst = p->dst + s * ds;
    uintptr_t at = eini_before_run(before, full * share);
    for (int64_t l = 0; l < full; l++, src += b * sd, dst += 64) {
      fn(src, sd, dst, ds);
      if (at == 0) eini_before_some(before, share);
      for (int64_t i = 0; i < share && at != 0; i++, at += 64) EINI_FETCH2(at);
    }
  }
  if (p->nd == full * b) return;
  eini_plane rest = *p;
  rest.nd -= full * b;
  rest.src += full * b * sd;
  rest.dst += full * 64;
  eini_plane_tiles(w->isa, w->size, &rest);
}

// Fills the rows of a buffer, or with `before` of the destination, with what the plane p's source
// holds, n[] columns of loops 0 .. 3.
static void eini_block_rows(const eini_move *w, eini_plane *p, const int64_t *n,
                            eini_before *before) {
  const int64_t *step = w->src_step;
  int64_t at[4] = {0, 0, 0, 0};
  for (int i = 1; i < 4;) {
    if (before != NULL) eini_block_lines(w, p, before);
    else eini_block_fill(w, p);
    p->dst += p->nd * w->size;
    for (i = 1; i < 4; i++) {  // on to the next column of loops 1 .. 3
      if (++at[i] < n[i]) {
        p->src += step[i];
        break;
      }
      if (n[i] > 1) p->src -= (n[i] - 1) * step[i];
      at[i] = 0;
    }
  }
}

// Rows that end with a piece of `bytes`: what of them is left to write, their first line if it is
// the first piece too.
static void eini_block_ends(int isa, const eini_lines *out, int first, int last, int64_t bytes) {
  for (int64_t r = 0; r < out->rows; r++) {
    char *d = out->dst + r * out->step;
    const char *s = out->buffer + r * out->pitch;
    int64_t head = eini_to_line(d);
    if (first) memcpy(d + 64, s + 64, (size_t)eini_min64(head, bytes));
    if (!last) continue;
    head += 64 * out->to;
    eini_stream_row(isa, (size_t)(64 + bytes - head), s + head, d + head);
  }
}

// Long rows of tiles are put together by pieces of them all. A row's lines are streamed as soon as
// they are complete; what is left, a line at most, goes before the next piece.
static void eini_block_pieces(const eini_move *w, const eini_plane *all, char *dst, int64_t step,
                              char *buffer, const eini_after *after) {
  const int64_t some = EINI_COPY_PIECE / w->size;
  eini_plane p = *all;
  eini_ahead ahead;
  eini_lines out;
  out.buffer = buffer;
  out.pitch = p.ds = EINI_COPY_PITCH;
  out.step = step;
  out.rows = p.ns;
  p.dst = buffer + 64;
  for (int64_t d = 0; d < all->nd; d += some) {
    int64_t columns[4] = {0, 1, 1, 1}, left = all->nd - d - some;
    int first = d == 0, last = left <= 0;
    p.src = all->src + d * p.sd;
    p.nd = eini_min64(some, all->nd - d);
    const int64_t bytes = p.nd * w->size;
    eini_block_fill(w, &p);
    out.dst = dst + d * w->size - 64;
    out.from = first;
    out.to = bytes / 64;
    out.ahead = last && after->src == NULL ? NULL : &ahead;
    columns[0] = eini_min64(some, last ? after->n[0] : left);
    if (out.ahead != NULL) {
      int64_t lines = eini_max64(1, out.rows * (out.to - out.from));
      eini_ahead_start(&ahead, w, last ? after->src : p.src + some * p.sd, columns,
                       last ? after->bytes : p.ns * w->size, lines);
    }
    eini_stream_lines(w->isa, &out);
    if (first || last) eini_block_ends(w->isa, &out, first, last, bytes);
    for (int64_t r = 0; r < out.rows && !last; r++) {
      memcpy(buffer + r * out.pitch, buffer + r * out.pitch + EINI_COPY_PIECE, 64);
    }
  }
}

// The block at w->pos goes through the buffer.
static void eini_block_buffered(const eini_move *w, const char *src, char *dst, char *buffer) {
  int64_t n[4] = {1, 1, 1, 1}, width = w->size, passes = eini_move_part(w, w->row2);
  eini_plane p;
  eini_after after;
  eini_ahead ahead;
  for (int i = 0; i < w->ncol; i++) width *= n[i] = eini_move_part(w, i);
  const int one = eini_move_one_row(w);
  const int64_t step = w->row < 0 ? 0 : w->dst_step[w->row];
  p.nd = n[0];
  p.ns = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.dd = w->size;
  p.ds = one ? width : eini_move_pitch(width);
  for (int64_t r = 0; r < passes; r++) {
    p.src = w->row2 < 0 ? src : src + r * w->src_step[w->row2];
    p.dst = buffer;
    char *to = w->row2 < 0 ? dst : dst + r * w->dst_step[w->row2];
    eini_block_after(w, p.src, n, p.ns, r, passes, &after);
    if (!one && eini_move_lines(w, width)) {
      eini_block_pieces(w, &p, to, step, buffer, &after);
      continue;
    }
    if (after.src != NULL) {
      eini_ahead_start(&ahead, w, after.src, after.n, after.bytes, (width * p.ns + 63) / 64);
    }
    eini_block_rows(w, &p, n, NULL);
    for (int64_t s = 0; s < (one ? 1 : p.ns); s++) {
      eini_stream_ahead(w->isa, one ? width * p.ns : width, buffer + s * p.ds, to + s * step,
                        after.src == NULL ? NULL : &ahead);
    }
  }
}

// Rows that go straight to their places, past the caches.
static void eini_block_stream(const eini_move *w, const eini_plane *p, eini_before *before) {
  const int64_t bytes = p->nd * w->size;
  eini_lines out;
  out.pitch = out.step = 0;
  out.rows = 1;
  out.ahead = NULL;
  for (int64_t s = 0; s < p->ns; s++) {
    const char *src = p->src + s * p->ss;
    char *dst = p->dst + s * p->ds;
    const int64_t head = eini_min64(eini_to_line(dst), bytes), lines = (bytes - head) / 64;
    const int64_t done = head + 64 * lines;
    if (head > 0) memcpy(dst, src, (size_t)head);
    out.buffer = src;
    out.dst = dst;
    for (int64_t n = out.from = 0; out.from < lines; out.from = out.to) {
      n = eini_min64(EINI_COPY_TURN / 64, lines - out.from);
      out.to = out.from + n;
      before->lead -= n;
      eini_before_some(before, before->most);
      eini_stream_lines(w->isa, &out);
    }
    before->lead -= before->lines.n[0] - lines;
    if (done < bytes) memcpy(dst + done, src + done, (size_t)(bytes - done));
  }
}

static void eini_block_direct(const eini_move *w, const char *src, char *dst,
                              eini_before *before) {
  eini_plane p;
  p.src = src;
  p.dst = dst;
  p.nd = eini_move_part(w, 0);
  p.ns = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.dd = w->dst_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.ds = w->row < 0 ? 0 : w->dst_step[w->row];
  if (before != NULL) eini_block_stream(w, &p, before);
  else eini_plane_run(w, &p);
}

static int eini_move_nearer(const eini_move *w, int i, int j) {
  return eini_abs64(w->src_step[i]) < eini_abs64(w->src_step[j]);
}

// Loops of blocks, innermost first: along rows, then columns, then what is nearest in the source:
// what is read next is near, where rows are streamed to matters less.
static void eini_move_order(eini_move *w, int near) {
  int n = 0, few, j = 1;
  if (w->row >= 0) w->order[n++] = w->row;
  if (w->row2 >= 0) w->order[n++] = w->row2;
  few = n + (w->tile.b > 0 ? 0 : w->ncol);
  for (int i = 0; i < w->n; i++) {
    if (i == w->row || i == w->row2) continue;
    int k = n++;
    w->order[k] = i;
    for (; near && k > few && eini_move_nearer(w, i, w->order[k - 1]); k--) {
      w->order[k] = w->order[k - 1];
      w->order[k - 1] = i;
    }
  }
  if (w->tile.b == 0) return;
  // Columns before what is further, but short runs of the source go on first.
  int64_t run = w->blk[w->row] * (w->row2 < 0 ? 1 : w->blk[w->row2]) * w->size;
  while (w->order[j] != 0 && run < EINI_COPY_ROW) run *= w->extent[w->order[j++]];
  for (int k = n - 1; k > j; k--) {
    if (w->order[k] != 0) continue;
    w->order[k] = w->order[k - 1];
    w->order[k - 1] = 0;
  }
}

// The first block of columns ends where a line of the destination does.
static int64_t eini_move_step(const eini_move *w, int i) {
  int64_t blk = w->blk[i];
  if (i > 0 || w->pos[0] > 0 || w->ncol > 1 || blk == w->extent[0]) return blk;
  int64_t over = (int64_t)((uintptr_t)w->dst & 63) / w->size;
  return over < blk ? blk - over : blk;
}

// Every block, the runs of the source innermost, then the rows of the destination.
static void eini_move_run(eini_move *w, int stream, char *buffer) {
  eini_before before;
  eini_move_order(w, w->kind == EINI_COPY_TILES || buffer == NULL);
  int64_t full = w->blk[0];
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  if (stream && buffer == NULL) {
    // (Rows that follow each other in the source are foreseen by the processor.)
    const int follow = w->row >= 0 && w->src_step[w->row] == w->extent[0] * w->size;
    eini_before_start(&before, w, follow ? 0 : EINI_COPY_LEAD);
  }
  for (w->last = 0; !w->last;) {
    const char *src = w->src + eini_move_offset(w, w->src_step);
    char *dst = w->dst + eini_move_offset(w, w->dst_step);
    w->blk[0] = full;
    w->blk[0] = eini_move_step(w, 0);
    eini_move_then(w);
    if (buffer != NULL) eini_block_buffered(w, src, dst, buffer);
    else eini_block_direct(w, src, dst, stream ? &before : NULL);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// The block of tiles that are lines at w->pos, a line of the source's rows after the other.
static void eini_block_tiles(const eini_move *w, eini_before *before) {
  const int64_t b = w->tile.b, part = eini_move_part(w, w->row);
  const int64_t passes = eini_move_part(w, w->row2);
  const int64_t ns = eini_max64(part, b), back = ns - part;  // (there is such a row before it)
  int64_t n[4] = {1, 1, 1, 1}, tiles = (ns + b - 1) / b * passes;
  const char *src = w->src + eini_move_offset(w, w->src_step) - back * w->size;
  char *dst = w->dst + eini_move_offset(w, w->dst_step) - back * w->dst_step[w->row];
  eini_ahead now;
  eini_plane p;
  for (int i = 0; i < w->ncol; i++) n[i] = eini_move_part(w, i);
  p.nd = n[0];
  p.ns = w->ncol == 1 ? ns : b;
  p.sd = w->src_step[0];
  p.ss = w->size;
  p.dd = w->size;
  p.ds = w->dst_step[w->row];
  tiles *= n[0] / b * n[1] * n[2] * n[3];
  eini_move_ahead(w, &now);
  before->lead -= now.left;
  if (tiles > 0) before->share = (now.left + tiles - 1) / tiles;
  for (int64_t r = 0; r < passes; r++) {
    for (int64_t s = 0; s < ns; s += p.ns) {
      if (s > ns - p.ns) s = ns - p.ns;
      p.src = src + s * w->size;
      p.dst = dst + s * p.ds;
      eini_block_rows(w, &p, n, before);
    }
    if (r + 1 == passes) break;
    src += w->src_step[w->row2];
    dst += w->dst_step[w->row2];
  }
}

// Every block of tiles that are lines: the next one is asked for while one is written.
static void eini_move_run_tiles(eini_move *w) {
  eini_before before;
  eini_ahead first;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  eini_move_ahead(w, &first);
  eini_before_start(&before, w, eini_max64(first.left, EINI_COPY_BLOCK / 64));
  before.share = 1;
  for (w->last = 0; !w->last;) {
    eini_block_tiles(w, &before);
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// ================================================================================================
// >>copy-strips  copies between runs of several axes
// Takes a copy as a move; tiles go from a run of the source to a run of the destination, each along
// as many loops as follow each other there: short axes make long runs. Through the caches.
// ================================================================================================

#define EINI_STRIPS_MOST 512   // elements of a run in a block
#define EINI_STRIPS_NEAR 512   // bytes of the destination's, where there are as many
#define EINI_STRIPS_FEW 16384  // bytes that take no longer without lists, if first loops are long

enum { EINI_STRIP_SRC, EINI_STRIP_DST };

typedef struct eini_strips {
  eini_move w;
  eini_line_kind tile;
  int count[2], loop[2][EINI_COPY_LOOPS];  // of the runs, innermost first
  int64_t n[2];                // elements of them in a block
} eini_strips;

// The loop that goes on where a run ends, and is of none; or -1.
static int eini_strips_next(const eini_strips *r, int side) {
  const eini_move *w = &r->w;
  const int64_t *step = side == EINI_STRIP_SRC ? w->src_step : w->dst_step;
  const int last = r->loop[side][r->count[side] - 1];
  if (w->blk[last] < w->extent[last]) return -1;
  for (int i = 0; i < w->n; i++) {
    int taken = 0;
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < r->count[s]; k++) taken |= r->loop[s][k] == i;
    if (!taken && step[i] == r->n[side] * w->size) return i;
  }
  return -1;
}

// Adds loop i to a run, as much of it as there may be; 0: not twice.
static int eini_strips_add(eini_strips *r, int side, int i) {
  eini_move *w = &r->w;
  const int64_t bytes = side == EINI_STRIP_SRC ? EINI_STRIPS_MOST * w->size : EINI_STRIPS_NEAR;
  const int64_t some = eini_min64(w->extent[i], eini_min64(bytes / w->size, EINI_STRIPS_MOST) /
                                                    r->n[side]);
  if (some < 2) return 0;
  w->blk[i] = some;
  r->loop[side][r->count[side]++] = i;
  r->n[side] *= some;
  return 1;
}

// Runs of a copy in tiles, see eini_move_kind; 0: one is shorter than a tile.
static int eini_strips_take(const eini_move *w, eini_strips *r) {
  const eini_line_kind tile = eini_tile_lines(w->isa, w->size);
  int open[2] = {1, 1};
  if (tile.b == 0 || w->kind != EINI_COPY_TILES) return 0;
  double bytes = w->size;
  for (int i = 0; i < w->n; i++) bytes *= (double)w->extent[i];
  if (bytes <= EINI_STRIPS_FEW && w->extent[0] >= tile.b && w->extent[w->row] >= tile.b) return 0;
  r->w = *w;
  r->tile = tile;
  for (int i = 0; i < w->n; i++) r->w.blk[i] = 1;
  for (int s = 0; s < 2; s++) {
    r->count[s] = 0, r->n[s] = 1;
    eini_strips_add(r, s, s == EINI_STRIP_SRC ? w->row : 0);
  }
  while (open[0] || open[1]) {  // the shorter one is longer by a loop
    const int s = open[0] && (!open[1] || r->n[0] <= r->n[1]) ? 0 : 1, i = eini_strips_next(r, s);
    open[s] = i >= 0 && eini_strips_add(r, s, i);
  }
  return r->n[0] >= tile.b && r->n[1] >= tile.b;
}

// Offsets of the block's positions along a run, by steps of the other side. Returns how many.
static int64_t eini_strips_list(const eini_strips *r, int side, int64_t *list) {
  const eini_move *w = &r->w;
  const int64_t *step = side == EINI_STRIP_SRC ? w->dst_step : w->src_step;
  int64_t n = 1;
  list[0] = 0;
  for (int k = 0; k < r->count[side]; k++) {
    const int i = r->loop[side][k];
    const int64_t part = eini_move_part(w, i), have = n;
    for (int64_t j = 1; j < part; j++)
      for (int64_t e = 0; e < have; e++) list[n++] = list[e] + j * step[i];
  }
  return n;
}

// A block at some address, and that of the block after it.
typedef struct eini_strips_block {
  const char *src, *src_then;
  char *dst, *dst_then;
  int64_t n[2];                // of the runs
  int64_t at[2][EINI_STRIPS_MOST];  // where they are on the other side: offsets
} eini_strips_block;

// Asks for what the tile at s, d reads and writes, lines as far as they were not asked for.
EINI_INLINE void eini_strips_ahead(const eini_strips_block *x, uintptr_t src, uintptr_t dst,
                                   int64_t s, int64_t d, int64_t b, int64_t size) {
  for (int64_t k = 0; k < b; k++) {
    EINI_FETCH2(src + (uintptr_t)(s * size + x->at[EINI_STRIP_DST][d + k] + 63));
    EINI_FETCHW(dst + (uintptr_t)(d * size + x->at[EINI_STRIP_SRC][s + k] + 63));
  }
}

// Tiles along the shorter run first. Stores wait for lines that are not there: the tile beside
// each, one further along the longer run, is asked for. A block that is narrower than a tile is
// copied element by element.
static void eini_strips_tiles(const eini_strips *r, const eini_strips_block *x) {
  const int64_t b = r->tile.b, size = r->w.size, ns = x->n[0], nd = x->n[1];
  const int64_t *place = x->at[EINI_STRIP_SRC], *column = x->at[EINI_STRIP_DST];
  const int along = ns < nd;   // the inner loop: over s
  const int64_t outer = along ? nd : ns, inner = along ? ns : nd;
  if (ns < b || nd < b) {
    for (int64_t s = 0; s < ns; s++)
      for (int64_t d = 0; d < nd; d++)
        memcpy(x->dst + place[s] + d * size, x->src + column[d] + s * size, (size_t)size);
    return;
  }
  for (int64_t o = 0; o < outer; o += b) {
    if (o > outer - b) o = outer - b;
    const int last = o + b >= outer;
    const int64_t then = last ? 0 : eini_min64(o + b, outer - b);
    const uintptr_t src = (uintptr_t)(last ? x->src_then : x->src);
    const uintptr_t dst = (uintptr_t)(last ? x->dst_then : x->dst);
    for (int64_t i = 0; i < inner; i += b) {
      if (i > inner - b) i = inner - b;
      const int64_t s = along ? i : o, d = along ? o : i;
      r->tile.put(x->src + s * size, column + d, x->dst + d * size, place + s);
      eini_strips_ahead(x, src, dst, along ? i : then, along ? then : i, b, size);
    }
  }
}

// Blocks, first along what is left of the source's run.
static void eini_strips_order(eini_strips *r) {
  eini_move *w = &r->w;
  const int last = r->loop[EINI_STRIP_SRC][r->count[EINI_STRIP_SRC] - 1];
  int n = 0;
  w->order[n++] = last;
  for (int i = 0; i < w->n; i++)
    if (i != last) w->order[n++] = i;
}

static void eini_strips_go(eini_strips *r) {
  eini_strips_block x;
  eini_move *w = &r->w;
  int64_t part[2] = {0, 0};
  eini_strips_order(r);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  x.src_then = w->src, x.dst_then = w->dst;
  for (w->last = 0; !w->last;) {
    for (int s = 0; s < 2; s++) {
      const int64_t some = eini_move_part(w, r->loop[s][r->count[s] - 1]);
      if (part[s] != some) x.n[s] = eini_strips_list(r, s, x.at[s]);
      part[s] = some;
    }
    x.src = x.src_then, x.dst = x.dst_then;
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
    x.src_then = w->src + eini_move_offset(w, w->src_step);
    x.dst_then = w->dst + eini_move_offset(w, w->dst_step);
    eini_strips_tiles(r, &x);
  }
}

// ================================================================================================
// >>copy-rows  rows of copies past the caches
// Rows that complete each other's lines, and rows of tiles that start anywhere.
// ================================================================================================

// Without masks, lines are taken by 16 bytes. MOVE: byte i is byte i - n of v, where there is one.
// MIX: n bytes of a, then those of b.
#if EINI_CPU_X86
#define EINI_Q_AT EINI_T256
#define EINI_Q_V __m128i
#define EINI_Q_LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define EINI_Q_STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define EINI_Q_PAST(p, v) _mm_stream_si128((__m128i *)(void *)(p), v)
#define EINI_Q_BYTES _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define EINI_Q_SET(n) _mm_set1_epi8((char)(n))
#define EINI_Q_MOVE(v, n) _mm_shuffle_epi8(v, _mm_sub_epi8(EINI_Q_BYTES, EINI_Q_SET(n)))
#define EINI_Q_MIX(n, a, b) \
  _mm_blendv_epi8(b, a, _mm_cmpgt_epi8(EINI_Q_SET(n), EINI_Q_BYTES))
#define EINI_Q_JOINED eini_line_joined_y
#elif EINI_CPU_NEON
static const int8_t eini_q_bytes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define EINI_Q_AT EINI_UNUSED
#define EINI_Q_V uint8x16_t
#define EINI_Q_LOAD(p) vld1q_u8((const uint8_t *)(p))
#define EINI_Q_STORE(p, v) vst1q_u8((uint8_t *)(p), v)
#define EINI_Q_PAST(p, v) vst1q_u8((uint8_t *)(p), v)
#define EINI_Q_SET(n) vdupq_n_s8((int8_t)(n))
#define EINI_Q_MOVE(v, n) \
  vqtbl1q_u8(v, vreinterpretq_u8_s8(vsubq_s8(vld1q_s8(eini_q_bytes), EINI_Q_SET(n))))
#define EINI_Q_MIX(n, a, b) vbslq_u8(vcgtq_s8(EINI_Q_SET(n), vld1q_s8(eini_q_bytes)), a, b)
#define EINI_Q_JOINED eini_line_joined_n
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#if EINI_CPU_X86 || EINI_CPU_NEON
// p->ns rows, at least a line each. What of a row does not fill its last line waits in the row's
// line of `carry` for the row that follows it in the destination.
EINI_Q_AT static void eini_rows_carry_q(const eini_plane *p, char *carry, int first, int last) {
  for (int64_t r = 0; r < p->ns; r++, carry += 64) {
    const char *s = p->src + r * p->ss, *end = s + p->nd;
    char *d = p->dst + r * p->ds;
    const int64_t at = (int64_t)((uintptr_t)d & 63), n = at + p->nd, rest = n & 63;
    const int64_t old = at & ~(int64_t)15;
    if (first && at > 0) {
      memcpy(d, s, (size_t)(64 - at));
    } else {
      for (int64_t i = 0; i < old; i += 16) EINI_Q_PAST(d - at + i, EINI_Q_LOAD(carry + i));
      const EINI_Q_V v = EINI_Q_MOVE(EINI_Q_LOAD(s), at - old);
      EINI_Q_PAST(d - at + old, EINI_Q_MIX(at - old, EINI_Q_LOAD(carry + old), v));
      for (int64_t i = old + 16; i < 64; i += 16) EINI_Q_PAST(d - at + i, EINI_Q_LOAD(s + i - at));
    }
    s += 64 - at;
    d += 64 - at;
    for (int64_t k = 64; k + 64 <= n; k += 64, s += 64, d += 64) {
      EINI_Q_PAST(d, EINI_Q_LOAD(s));
      EINI_Q_PAST(d + 16, EINI_Q_LOAD(s + 16));
      EINI_Q_PAST(d + 32, EINI_Q_LOAD(s + 32));
      EINI_Q_PAST(d + 48, EINI_Q_LOAD(s + 48));
    }
    for (int64_t i = 0; i < rest; i += 16) {
      const EINI_Q_V v = EINI_Q_LOAD(i + 16 <= rest ? s + i : end - 16);
      EINI_Q_STORE(carry + i, EINI_Q_MOVE(v, i + 16 <= rest ? 0 : rest - i - 16));
    }
    if (last && rest > 0) memcpy(d, s, (size_t)rest);
  }
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON

#if EINI_CPU_X86

// The same by masks.
EINI_T512 static void eini_rows_carry_by_masks(const eini_plane *p, char *carry, int first,
                                               int last) {
  for (int64_t r = 0; r < p->ns; r++, carry += 64) {
    const char *dst = p->dst + r * p->ds;
    const int64_t at = (int64_t)((uintptr_t)dst & 63), n = at + p->nd, whole = n & ~(int64_t)63;
    const uintptr_t s = (uintptr_t)(p->src + r * p->ss) - (uintptr_t)at;
    char *d = p->dst + r * p->ds - at;
    const __mmask64 own = ~(__mmask64)0 << at, rest = ((__mmask64)1 << (n - whole)) - 1;
    __m512i v = _mm512_mask_loadu_epi8(_mm512_loadu_si512(carry), own, (const void *)s);
    if (first && at > 0) _mm512_mask_storeu_epi8(d, own, v);
    else _mm512_stream_si512((__m512i *)(void *)d, v);
    for (int64_t k = 64; k < whole; k += 64) {
      v = _mm512_loadu_si512((const void *)(s + (uintptr_t)k));
      _mm512_stream_si512((__m512i *)(void *)(d + k), v);
    }
    if (rest == 0) continue;
    v = _mm512_maskz_loadu_epi8(rest, (const void *)(s + (uintptr_t)whole));
    _mm512_storeu_si512(carry, v);
    if (last) _mm512_mask_storeu_epi8(d + whole, rest, v);
  }
}

#endif  // EINI_CPU_X86

typedef void (*eini_carry_fn)(const eini_plane *p, char *carry, int first, int last);
static const eini_carry_fn eini_rows_carry[EINI_ISA_COUNT] = {
    NULL,
#if EINI_CPU_NEON
    eini_rows_carry_q, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_rows_carry_q, eini_rows_carry_by_masks};
#else
    NULL, NULL, NULL};
#endif

// Do rows follow each other in the destination, but not as lines? Their blocks, in the order of the
// source: rows of other places, then the next row of each place.
static int eini_move_carried(eini_move *w) {
  const int near = eini_move_near(w), row = near > 1 ? near : -1;
  const int64_t bytes = w->extent[0] * w->size;
  int64_t all = bytes;
  int n = 1;
  if (eini_rows_carry[w->isa] == NULL || w->kind != EINI_COPY_ROWS || bytes < 64) return 0;
  for (; n < w->n && n < 4 && n != row && w->dst_step[n] == all; n++) all *= w->extent[n];
  if (n == 1 || bytes % 64 == 0 || all < EINI_COPY_ROW) return 0;
  w->ncol = n;
  w->row = row;
  for (int i = 0; i < w->n; i++) w->blk[i] = i < n ? w->extent[i] : 1;
  if (row >= 0) w->blk[row] = eini_min64(w->extent[row], EINI_COPY_CARRY);
  return 1;
}

static void eini_block_carried(const eini_move *w, const char *src, char *dst, char *buffer,
                               eini_before *before) {
  const int64_t bytes = w->extent[0] * w->size, rows = eini_move_part(w, w->row);
  const int64_t some = eini_max64(1, EINI_COPY_TURN / bytes);
  int64_t at[4] = {0, 0, 0, 0};
  eini_plane p;
  p.sd = p.dd = 1;
  p.nd = bytes;
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.ds = w->row < 0 ? 0 : w->dst_step[w->row];
  const int follow = w->row >= 0 && p.ss == bytes;
  for (int first = 1, last = 0; !last; first = 0, dst += bytes) {
    const char *column = src;
    last = 1;
    for (int i = 1; i < w->ncol; i++) last = last && at[i] + 1 == w->extent[i];
    for (int64_t r = 0, read = 0, to; r < rows; r += some, read = to) {
      p.ns = eini_min64(some, rows - r);
      p.src = column + r * p.ss;
      p.dst = dst + r * p.ds;
      to = follow ? eini_rows_lines(r + p.ns, bytes) : (r + p.ns) * eini_rows_lines(1, bytes);
      before->lead -= to - read;
      eini_before_some(before, before->most);
      eini_rows_carry[w->isa](&p, buffer + 64 * r, first, last);
    }
    for (int i = 1; i < w->ncol; i++) {  // on to the next column
      src += w->src_step[i];
      if (++at[i] < w->extent[i]) break;
      src -= w->extent[i] * w->src_step[i];
      at[i] = 0;
    }
  }
}

// Every block of rows that complete each other's lines.
static void eini_move_run_carried(eini_move *w, char *buffer) {
  eini_before before;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = 0;
  eini_before_start(&before, w, EINI_COPY_LEAD);
  for (w->last = 0; !w->last;) {
    eini_block_carried(w, w->src + eini_move_offset(w, w->src_step),
                       w->dst + eini_move_offset(w, w->dst_step), buffer, &before);
    eini_move_then(w);
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// ---- rows of tiles that start anywhere ----

// The columns of such a copy, in the order of the destination, by blocks of them. A block has every
// row of a run of the source.
typedef struct eini_chain {
  eini_move w;
  eini_line_kind tile;
  int64_t columns, some;       // of all rows; of a block
  int64_t rows, next;          // of the run; from a row to that which may follow it; or 0
  int64_t at[EINI_COPY_LOOPS]; // the first column that is not listed yet
  const int64_t *column;       // offsets in the source
  char **row;                  // destinations
  char *carry, *heads;         // a line for each row: of the tile before; of its first tile
  const char *ask;             // the run that is read after this one, its columns, how far it is
  const int64_t *ask_column;
  int64_t ask_columns, ask_lines, ask_i, ask_line;
} eini_chain;

static void eini_chain_ask(eini_chain *c, int64_t lines) {
  for (int64_t n; lines > 0 && c->ask_i < c->ask_columns; lines -= n) {
    uintptr_t p = (uintptr_t)c->ask + (uintptr_t)c->ask_column[c->ask_i];
    p += 64 * (uintptr_t)c->ask_line;
    n = eini_min64(lines, c->ask_lines - c->ask_line);
    for (int64_t l = 0; l < n; l++) EINI_FETCH2(p + 64 * (uintptr_t)l);
    c->ask_line += n;
    if (c->ask_line == c->ask_lines) c->ask_line = 0, c->ask_i++;
  }
}

// Lists the next n columns; for a tile of them at the end the last one again.
static void eini_chain_list(eini_chain *c, int64_t n, int64_t *list) {
  const eini_move *w = &c->w;
  int64_t offset = 0, i = 0;
  for (int k = 0; k < w->ncol; k++) offset += c->at[k] * w->src_step[k];
  for (; i < n; i++) {
    list[i] = offset;
    for (int k = 0; k < w->ncol; k++) {
      offset += w->src_step[k];
      if (++c->at[k] < w->extent[k]) break;
      offset -= w->extent[k] * w->src_step[k];
      c->at[k] = 0;
    }
  }
  for (; i % c->tile.b != 0; i++) list[i] = list[n - 1];
}

#if EINI_CPU_X86 || EINI_CPU_NEON
// The last line of row x, which has only n bytes of it: the row after it has the rest, or it stays
// as it is.
EINI_Q_AT static void eini_chain_end_q(const eini_chain *c, int64_t x, char *d, int64_t n,
                                       const char *line) {
  const int64_t y = x + c->next;
  const char *end = c->row[x] + c->columns * c->w.size;
  char head[64];
  if (c->next == 0 || y >= c->rows || c->row[y] != end) {
    memcpy(d, line, (size_t)n);
    return;
  }
  EINI_Q_JOINED(end, c->heads + 64 * y, c->heads + 64 * y, head);
  for (int64_t i = 0; i < 64; i += 16)
    EINI_Q_PAST(d + i, EINI_Q_MIX(eini_max64(0, eini_min64(n - i, 16)), EINI_Q_LOAD(line + i),
                                  EINI_Q_LOAD(head + i)));
}

// Tile t of the rows from x to `to`, as lines at `tile`.
EINI_Q_AT static void eini_chain_lines_q(const eini_chain *c, int64_t x, int64_t to, int64_t t,
                                         const char *tile) {
  const int64_t bytes = c->columns * c->w.size;
  const int last = (t + 1) * c->tile.b >= c->columns;
  char line[64], rest[64];
  for (; x < to; x++, tile += 64) {
    char *row = c->row[x], *carry = c->carry + 64 * x;
    const int64_t in = (int64_t)((uintptr_t)row & 63), end = in + bytes - 64 * t;
    char *d = row - in + 64 * t;
    EINI_Q_JOINED(row, carry, tile, line);
    if (t == 0) {
      const char *before = c->next == 0 || x < c->next ? NULL : c->row[x - c->next];
      if (c->next > 0) memcpy(c->heads + 64 * x, tile, 64);
      if (in == 0) eini_stream_line(d, tile);
      else if (before == NULL || before + bytes != row)
        memcpy(row, tile, (size_t)(64 - in));
    } else if (end >= 64) {
      eini_stream_line(d, line);
    }
    memcpy(carry, tile, 64);
    if (!last || end == 64) continue;
    if (end < 64) {
      eini_chain_end_q(c, x, d, end, line);
    } else {
      EINI_Q_JOINED(row, tile, tile, rest);
      eini_chain_end_q(c, x, d + 64, end - 64, rest);
    }
  }
}
#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_Q_AT
#undef EINI_Q_V
#undef EINI_Q_LOAD
#undef EINI_Q_STORE
#undef EINI_Q_PAST
#undef EINI_Q_BYTES
#undef EINI_Q_SET
#undef EINI_Q_MOVE
#undef EINI_Q_MIX
#undef EINI_Q_JOINED

#if EINI_CPU_X86

// The same two by masks; e: words.
EINI_T512 static void eini_chain_end_by_masks(const eini_chain *c, int64_t x, char *d, int e,
                                              __m512i v) {
  const int64_t y = x + c->next;
  const __mmask16 own = (__mmask16)((1u << e) - 1);
  const char *end = c->row[x] + c->columns * c->w.size;
  if (c->next == 0 || y >= c->rows || c->row[y] != end) {
    _mm512_mask_storeu_epi32(d, own, v);
    return;
  }
  const __m512i head = _mm512_loadu_si512((const void *)(c->heads + 64 * y));
  v = _mm512_mask_mov_epi32(eini_line_join(end, head, head), own, v);
  _mm512_stream_si512((__m512i *)(void *)d, v);
}

EINI_T512 static void eini_chain_lines_by_masks(const eini_chain *c, int64_t x, int64_t to,
                                                int64_t t, const char *tile) {
  const int64_t words = c->columns * c->w.size / 4;
  const int last = (t + 1) * c->tile.b >= c->columns;
  for (; x < to; x++, tile += 64) {
    char *row = c->row[x], *carry = c->carry + 64 * x;
    const int in = (int)((uintptr_t)row >> 2 & 15);
    char *d = row - 4 * in + 64 * t;
    const __m512i v = _mm512_loadu_si512((const void *)tile);
    const __m512i line = eini_line_join(row, _mm512_loadu_si512((const void *)carry), v);
    const int64_t end = in + words - 16 * t;
    if (t == 0) {
      const char *before = c->next == 0 || x < c->next ? NULL : c->row[x - c->next];
      if (c->next > 0) _mm512_storeu_si512((void *)(c->heads + 64 * x), v);
      if (in == 0) _mm512_stream_si512((__m512i *)(void *)d, v);
      else if (before == NULL || before + 4 * words != row)
        _mm512_mask_storeu_epi32(d, (__mmask16)(0xffffu << in), line);
    } else if (end >= 16) {
      _mm512_stream_si512((__m512i *)(void *)d, line);
    }
    _mm512_storeu_si512((void *)carry, v);
    if (!last || end == 16) continue;
    if (end < 16) eini_chain_end_by_masks(c, x, d, (int)end, line);
    else eini_chain_end_by_masks(c, x, d + 64, (int)end - 16, eini_line_join(row, v, v));
  }
}

#endif  // EINI_CPU_X86

// Of the sets that have tiles of lines.
static void (*const eini_chain_lines[EINI_ISA_COUNT])(const eini_chain *c, int64_t x, int64_t to,
                                                      int64_t t, const char *tile) = {
    NULL,
#if EINI_CPU_NEON
    eini_chain_lines_q, NULL, NULL};
#elif EINI_CPU_X86
    NULL, eini_chain_lines_q, eini_chain_lines_by_masks};
#else
    NULL, NULL, NULL};
#endif

// Columns from `first` on, n of them, of every row.
static void eini_chain_block(eini_chain *c, const char *src, int64_t first, int64_t n) {
  static const int64_t lines[16] = {0,   64,  128, 192, 256, 320, 384, 448,
                                    512, 576, 640, 704, 768, 832, 896, 960};
  const int64_t b = c->tile.b, size = c->w.size, tiles = (n + b - 1) / b;
  const int64_t share = (c->ask_columns * c->ask_lines * b + tiles * c->rows - 1) /
                        (tiles * c->rows);
  char space[17 * 64] = {0};  // (set, as its address goes to a function before it is written)
  char *tile = space + eini_to_line(space);
  const int64_t head = eini_to_line(src + c->column[0]) / size;
  for (int64_t x = 0, some = 0; x < c->rows; x += some) {
    const int64_t back = eini_max64(0, x + b - c->rows);  // (there are such rows before these)
    const char *from = src + (x - back) * size;
    some = eini_min64(x == 0 && head > 0 ? head : b, c->rows - x);
    char *carry = c->carry + 64 * x;
    for (int64_t l = 0; l < tiles; l++) {
      const int64_t t = first / b + l;
      const int64_t *column = c->column + l * b;
      if (some == b && t > 0 && (t + 1) * b < c->columns) {
        c->tile.join(from, column, c->row + x, 64 * t, carry);
      } else {
        c->tile.put(from, column, tile, lines);
        eini_chain_lines[c->w.isa](c, x, x + some, t, tile + 64 * back);
      }
      eini_chain_ask(c, share);
    }
  }
}

// The rows of the block at w->pos, and where they are read.
static const char *eini_chain_rows(eini_chain *c) {
  const eini_move *w = &c->w;
  const int64_t rows = eini_move_part(w, w->row), passes = eini_move_part(w, w->row2);
  char *dst = w->dst + eini_move_offset(w, w->dst_step);
  c->rows = rows * passes;
  for (int64_t p = 0; p < passes; p++) {
    char *to = w->row2 < 0 ? dst : dst + p * w->dst_step[w->row2];
    for (int64_t r = 0; r < rows; r++) c->row[p * rows + r] = to + r * w->dst_step[w->row];
  }
  const int64_t bytes = c->columns * w->size;
  c->next = w->dst_step[w->row] == bytes                   ? 1
            : w->row2 >= 0 && w->dst_step[w->row2] == bytes ? rows
                                                            : 0;
  return w->src + eini_move_offset(w, w->src_step);
}

// What is asked for while a block is written: `n` columns of the block of rows at `pos`.
static void eini_chain_ahead(eini_chain *c, const int64_t *pos, int64_t n, const int64_t *list) {
  const eini_move *w = &c->w;
  int64_t rows = 1;
  c->ask = w->src;
  for (int k = 0; k < w->n; k++) {
    c->ask += pos[k] * w->src_step[k];
    if (k == w->row || k == w->row2) rows *= eini_min64(w->blk[k], w->extent[k] - pos[k]);
  }
  c->ask_columns = n;
  c->ask_column = list;
  c->ask_lines = (rows * w->size + (int64_t)((uintptr_t)c->ask & 63) + 63) / 64;
  c->ask_i = c->ask_line = 0;
}

// Every block, along the columns first.
static void eini_move_run_chain(eini_chain *c, char *buffer) {
  int64_t list[2][EINI_COPY_PIECE / 4], *here = list[0], *then = list[1];
  eini_move *w = &c->w;
  eini_move_order(w, 1);
  for (int i = 0; i < w->n; i++) w->pos[i] = c->at[i] = 0;
  c->carry = buffer;
  c->heads = buffer + 64 * EINI_COPY_CHAIN;
  c->row = (char **)(void *)(c->heads + 64 * EINI_COPY_CHAIN);
  int64_t n = eini_min64(c->some, c->columns);
  eini_chain_list(c, n, here);
  eini_chain_ahead(c, w->pos, n, here);
  eini_chain_ask(c, c->ask_columns * c->ask_lines);
  for (w->last = 0; !w->last;) {
    const char *src = eini_chain_rows(c);
    eini_move_then(w);
    for (int64_t first = 0, more; first < c->columns; first += n, n = more) {
      const int end = first + n == c->columns;
      int64_t *swap = here;
      more = eini_min64(c->some, end ? c->columns : c->columns - first - n);
      if (end && w->last) c->ask_columns = 0;
      else {
        eini_chain_list(c, more, then);
        eini_chain_ahead(c, end ? w->then : w->pos, more, then);
      }
      c->column = here;
      eini_chain_block(c, src, first, n);
      here = then;
      then = swap;
    }
    memcpy(w->pos, w->then, sizeof w->pos);
  }
}

// Are tiles lines, and is what is left of lines of the source near when it is read again? Not so
// where columns start as far from a line as each other, in the same sets of the first cache.
static int eini_move_near_lines(const eini_move *w) {
  uintptr_t bits = 0;
  for (int i = 0; i < w->n; i++) bits |= i == w->row ? 0 : (uintptr_t)w->src_step[i];
  return w->tile.b > 0 && ((uintptr_t)w->src % 64 == 0 || bits % 64 != 0 ||
                           eini_abs64(w->src_step[0]) < EINI_COPY_ROW);
}

// Do rows of tiles start at words? Then their columns go on as long as they do in the destination;
// unless the run of the source goes on too, by another loop.
static int eini_move_chain(eini_chain *c, const eini_move *all) {
  eini_move *w = &c->w;
  uintptr_t bits = (uintptr_t)all->dst;
  int64_t most = EINI_COPY_CHAIN;
  *w = *all;
  c->tile = eini_tile_lines(w->isa, w->size);
  const int b = c->tile.b;
  if (b == 0 || w->kind != EINI_COPY_TILES || w->extent[w->row] < b) return 0;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  if (bits % 4 != 0) return 0;
  w->tile.b = b;               // (as for those that are lines)
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  if (most * w->size > EINI_COPY_PAGES) most = EINI_COPY_PAGES / w->size;
  w->blk[w->row] = eini_min64(w->extent[w->row], most);
  w->ncol = 1;
  const int next = eini_move_next_run(w, w->extent[w->row] * w->size);
  if (next >= 0 && 2 * w->extent[w->row] <= most) {
    w->row2 = next;
    w->blk[next] = eini_min64(w->extent[next], most / w->extent[w->row]);
  }
  c->columns = w->extent[0];
  while (w->ncol < w->n && w->ncol != w->row && w->ncol != w->row2 &&
         w->dst_step[w->ncol] == c->columns * w->size) {
    c->columns *= w->extent[w->ncol++];
  }
  for (int i = 0; i < w->ncol; i++) w->blk[i] = w->extent[i];
  if (c->columns < EINI_COPY_ENDS * b) return 0;
  const int64_t step = eini_max64(1, eini_abs64(w->src_step[0]));
  c->some = eini_min64(EINI_COPY_PIECE / w->size, EINI_COPY_BLOCK / step);
  c->some = eini_max64(EINI_COPY_FEW, c->some) / b * b;
  if (w->dst_step[w->row] == c->columns * w->size || w->row2 >= 0)
    c->some = eini_min64(c->some, c->columns / 2 / b * b);  // rows' heads are there before ends
  return 1;
}

// Do rows go to their places one by one? Long ones do, and those that are lines of both.
static int eini_move_whole(const eini_move *w) {
  int64_t bytes = w->extent[0] * w->size;
  uintptr_t bits = (uintptr_t)w->dst | (uintptr_t)bytes;
  for (int i = 1; i < w->n; i++) bits |= (uintptr_t)w->dst_step[i];
  return w->kind == EINI_COPY_ROWS &&
         (bytes >= EINI_COPY_LONG || (bytes >= EINI_COPY_RUN && bits % 64 == 0));
}

// ================================================================================================
// >>copy-ways  the way of a copy
// Small blocks, which of the ways of sections copy-strips to copy-rows a copy goes, and what it
// takes: the provider's slots.
// ================================================================================================

// ---- small blocks ----

// Elements of the least block of first loops without gaps on both sides, `most` at most; 0: there
// is none. row: bytes of its rows there, and in the source.
static int64_t eini_move_dense(const eini_move *w, int64_t most, int *loops, int64_t *row) {
  int64_t n = 1;
  row[0] = row[1] = 0;
  for (int m = 0; m < w->n && w->dst_step[m] == n * w->size; m++) {
    int64_t at = w->size;
    int found = 0;
    n *= w->extent[m];
    if (n > most) return 0;
    for (int i = 0; i <= m; i++)  // the loop that moves the source least, of those that are left
      for (int j = 0; j <= m; j++)
        if (w->src_step[j] == at && w->extent[j] > 1) {
          if (i == 0) row[0] = w->extent[0] * w->size, row[1] = w->extent[j] * w->size;
          at *= w->extent[j], found++;
          break;
        }
    *loops = m + 1;
    if (m > 0 && found == m + 1) return m + 1 < w->n ? n : 0;
  }
  return 0;
}

// Elements of small blocks are turned one by one where rows are shorter than lines.
static int64_t eini_move_small(const eini_move *w, int *loops) {
  int64_t row[2];
  const int64_t n = eini_move_dense(w, EINI_COPY_SMALL, loops, row);
  return n > 0 && eini_min64(row[0], row[1]) < 64 ? n : 0;
}

// Blocks of short rows that are put together for whole lines take longer than memory does.
static int eini_move_stays(const eini_move *w, int64_t cache) {
  int64_t row[2];
  int loops;
  return eini_move_dense(w, cache / w->size, &loops, row) > 0 && eini_max64(row[0], row[1]) < 128;
}

EINI_INLINE void eini_turned_of(int size, int64_t blocks, int64_t n, const int *from,
                                const char *s, int64_t by, char *d, int64_t to) {
  for (; blocks > 0; blocks--, s += by, d += to)
    for (int64_t i = 0; i < n; i++)
      memcpy(d + size * i, s + size * (int64_t)from[i], (size_t)size);
}

static void eini_copy_turned(int size, int64_t blocks, int64_t n, const int *from, const char *s,
                             int64_t by, char *d, int64_t to) {
  switch (size) {
    case 1: eini_turned_of(1, blocks, n, from, s, by, d, to); break;
    case 2: eini_turned_of(2, blocks, n, from, s, by, d, to); break;
    case 4: eini_turned_of(4, blocks, n, from, s, by, d, to); break;
    case 8: eini_turned_of(8, blocks, n, from, s, by, d, to); break;
    default: eini_turned_of(16, blocks, n, from, s, by, d, to); break;
  }
}

// Blocks of n elements, over the loops behind the first ones.
static void eini_move_run_small(const eini_move *w, int loops, int64_t n) {
  int64_t at[EINI_COPY_LOOPS] = {0};
  int from[EINI_COPY_SMALL];
  for (int64_t i = 0; i < n; i++) {
    int64_t left = i, s = 0;
    for (int m = 0; m < loops; m++) s += left % w->extent[m] * w->src_step[m], left /= w->extent[m];
    from[i] = (int)(s / w->size);
  }
  const int64_t count = w->extent[loops], by = w->src_step[loops], to = w->dst_step[loops];
  for (int m = loops; m >= 0;) {
    const char *src = w->src;
    char *dst = w->dst;
    for (int i = loops + 1; i < w->n; i++)
      src += at[i] * w->src_step[i], dst += at[i] * w->dst_step[i];
    eini_copy_turned(w->size, count, n, from, src, by, dst, to);
    for (m = loops + 1; m < w->n && ++at[m] == w->extent[m]; m++) at[m] = 0;
    if (m >= w->n) m = -1;
  }
}

// ---- ways ----

// How a copy goes to its destination, see section copy.
typedef enum eini_copy_way {
  EINI_COPY_CHAINED, EINI_COPY_LINED, EINI_COPY_CARRIED, EINI_COPY_BUFFERED,  // past the caches
  EINI_COPY_STRIPS, EINI_COPY_DIRECT,
  EINI_COPY_WAYS
} eini_copy_way;

// That of a copy of no more loops than there may be; its blocks. What would be put together in the
// buffer from tiles takes less time through the caches.
static eini_copy_way eini_move_way(eini_move *w, eini_chain *chain, eini_strips *strips, int isa,
                                   int stream) {
  w->isa = isa;
  eini_move_promote(w);
  eini_move_kind(w);
  w->tile.b = 0;
  if (w->dst_step[0] != w->size || !stream) {
    if (eini_strips_take(w, strips)) return EINI_COPY_STRIPS;
    eini_move_direct(w);
    return EINI_COPY_DIRECT;
  }
  eini_move_tile(w);
  if (!eini_move_near_lines(w) && eini_move_chain(chain, w)) return EINI_COPY_CHAINED;
  if (w->tile.b > 0) {
    eini_move_tiles(w);
    return EINI_COPY_LINED;
  }
  if (eini_move_carried(w)) return EINI_COPY_CARRIED;
  if (eini_move_whole(w)) {
    eini_move_direct(w);
    return EINI_COPY_DIRECT;
  }
  if (eini_strips_take(w, strips)) return EINI_COPY_STRIPS;
  eini_move_buffered(w);
  eini_move_bound(w);
  return EINI_COPY_BUFFERED;
}

static void eini_copy_go(int isa, const ein_copy *c, int stream, char *buffer) {
  eini_move w;
  eini_chain chain;
  eini_strips strips;
  if (c->n > EINI_COPY_LOOPS) {
    ein_copy inner = *c;
    inner.n--;
    inner.extent++;
    inner.src_stride++;
    inner.dst_stride++;
    for (int64_t i = 0; i < c->extent[0]; i++) {
      eini_copy_go(isa, &inner, stream, buffer);
      inner.src += c->src_stride[0] * c->size;
      inner.dst += c->dst_stride[0] * c->size;
    }
    return;
  }
  if (!eini_move_take(&w, c)) return;
  int loops;
  w.isa = isa;
  const int64_t small = eini_move_small(&w, &loops);
  if (small > 0) {
    eini_move_run_small(&w, loops, small);
    return;
  }
  switch (eini_move_way(&w, &chain, &strips, isa, stream)) {
    case EINI_COPY_STRIPS: eini_strips_go(&strips); break;
    case EINI_COPY_CHAINED: eini_move_run_chain(&chain, buffer); break;
    case EINI_COPY_LINED: eini_move_run_tiles(&w); break;
    case EINI_COPY_CARRIED: eini_move_run_carried(&w, buffer); break;
    case EINI_COPY_BUFFERED: eini_move_run(&w, 1, buffer); break;
    default: eini_move_run(&w, stream && w.dst_step[0] == w.size, NULL); break;
  }
}

// ---- the provider's slots ----

enum { EINI_COPY_STREAM };     // words of ein_choice.state

// Cycles of an element of 8 bytes that is turned: along runs, otherwise, and where a run ends
// within a line.
#define EINI_COPY_STRIP 1.0
#define EINI_COPY_TURNED 1.4
#define EINI_COPY_NARROW 2.1

// Seconds of a copy of so many bytes, read and written, of one thread.
static double eini_copy_seconds(const eini_rated *m, const ein_copy *c, double bytes, int strips,
                                int stream) {
  const double rate = stream ? m->copy_bw : eini_cpu_copy_bw(m, bytes);
  // Does the axis of single steps stay? If not, the extents of both.
  int64_t along[2] = {1, 1};
  for (int i = 0; i < c->n; i++) {
    if (c->dst_stride[i] == 1 && c->src_stride[i] == 1 && c->extent[i] * c->size >= 64)
      return bytes / rate;
    if (c->src_stride[i] == 1) along[0] = c->extent[i];
    if (c->dst_stride[i] == 1) along[1] = c->extent[i];
  }
  const int narrow = eini_min64(along[0], along[1]) * c->size < 64;
  const double cycles = strips   ? EINI_COPY_STRIP
                        : narrow ? EINI_COPY_NARROW
                                 : EINI_COPY_TURNED;
  return fmax(bytes / ((strips ? 0.85 : 0.7) * rate),
              bytes / 2 / c->size * cycles * (c->size < 8 ? 0.6 : 1) / m->hz);
}
#undef EINI_COPY_STRIP
#undef EINI_COPY_TURNED
#undef EINI_COPY_NARROW

// Ways: through the caches, and past them.
static int eini_cpu_copy_plan(const eini_rated *m, const ein_copy *c, int width, int nth,
                              ein_choice *choice) {
  double bytes = 2.0 * c->size;
  eini_move w;
  eini_chain chain;
  eini_strips strips;
  int loops, past = EINI_STREAM_LINE > 0, near = 0, runs = 0;
  int ok = c->size > 0 && c->size <= 16 && (c->size & (c->size - 1)) == 0;
  if (!ok || nth > 1) return 0;
  for (int i = 0; i < c->n; i++) bytes *= (double)c->extent[i];
  memset(choice, 0, sizeof *choice);
  const int taken = c->n <= EINI_COPY_LOOPS && eini_move_take(&w, c);
  w.isa = m->is.isa;
  const int small = taken && eini_move_small(&w, &loops) > 0;
  if (taken && !small) {
    near = eini_move_stays(&w, m->is.l2 / 4);
    const eini_copy_way way = eini_move_way(&w, &chain, &strips, m->is.isa, 1);
    past &= way != EINI_COPY_STRIPS;
    runs = eini_strips_take(&w, &strips);
  }
  past &= !small;
  if (!past && nth > 0) return 0;
  const int best = past && !near && eini_cpu_past(m, bytes / 2), stream = nth < 0 ? best : nth;
  const int threads = (int)eini_max64(1, eini_min64(width, m->is.width));
  choice->seconds = m->call + eini_copy_seconds(m, c, bytes, runs, best) / threads;
  if (small) choice->seconds = fmax(choice->seconds, bytes / 2 / c->size / m->hz / threads);
  if (stream != best) choice->seconds *= 1.5;  // memory is read once more
  choice->scratch = stream ? EINI_COPY_BUFFER : 0;
  choice->state[EINI_COPY_STREAM] = stream;
  eini_cpu_name(choice, stream ? "copy stream" : "copy");
  return 1;
}

static ein_status eini_cpu_copy_run(const eini_cpu *m, const ein_copy *c,
                                    const ein_choice *choice, void *scratch) {
  int stream = choice->state[EINI_COPY_STREAM] != 0;
  eini_copy_go(m->isa, c, stream, (char *)scratch);
  if (stream) eini_stream_end();
  return EIN_OK;
}

// ================================================================================================
// >>vectors  vectors of the instruction sets
// One small set of operations per instruction set (Z: AVX-512, Y: AVX2, N: NEON, C: plain C, S: one
// number) and dtype (D, S: f64 and f32; L, I: i64 and i32) under a common prefix, for kernels.
// ================================================================================================

// TAG: the end of the names of its functions. BYTES: of T, of which there are W to a vector V.
// AT: what functions with such vectors are declared with; END: after the last of them. PAST and
// STREAM go past the caches, where there are such stores; m: the lanes, ~0 for all. MIN and MAX
// give their second argument when one is NaN (NEON: NaN). KEEP: c where it is NaN, else r. TOP and
// LOW: the extrema of expressions, x where it is NaN. FNMA: c - a * b. RELU: 0 where it is less.
// TYPE: T as other sections name it in their functions. B: the same bits as integers. EXPS: EXP of
// eight variables. U: T in memory, written as whatever type; integers unsigned, so that they wrap.
// LOADM and STOREM touch no lanes but the first n, of the mask MASK(n) of type M; the others are 0.
// REAL: 1 of floating types. REGS: registers. HALF: where vectors have 64 bytes, the set of those
// of 32, if there is one. FAR: the tag of the set that reads what comes from memory, in the first
// lanes of this one (Zen 4 reads memory 7 % faster by halves of its lines). O: V as it is compared.

#if defined(__GNUC__) || defined(__clang__)
#define EINI_ALIAS __attribute__((may_alias))
#else
#define EINI_ALIAS
#endif
typedef float eini_any_f32 EINI_ALIAS;
typedef double eini_any_f64 EINI_ALIAS;
typedef uint32_t eini_any_i32 EINI_ALIAS;
typedef uint64_t eini_any_i64 EINI_ALIAS;
#undef EINI_ALIAS

#if EINI_CPU_X86
// min and max with a mask of all lanes: gcc 12 warns of its own headers about the plain ones.
#define EINI_ZD_TAG zd
#define EINI_ZD_TYPE f64
#define EINI_ZD_BYTES 8
#define EINI_ZD_T double
#define EINI_ZD_U eini_any_f64
#define EINI_ZD_V __m512d
#define EINI_ZD_W 8
#define EINI_ZD_REAL 1
#define EINI_ZD_REGS 32
#define EINI_ZD_FAR yd
#define EINI_ZD_HALF EINI_YD
#define EINI_ZD_LOAD(p) _mm512_loadu_pd(p)
#define EINI_ZD_STORE(p, x) _mm512_storeu_pd(p, x)
#define EINI_ZD_M __mmask8
#define EINI_ZD_MASK(n) (__mmask8)((1u << (n)) - 1u)
#define EINI_ZD_LOADM(p, m) _mm512_maskz_loadu_pd(m, p)
#define EINI_ZD_STOREM(p, m, x) _mm512_mask_storeu_pd(p, m, x)
#define EINI_ZD_STREAM(p, x, m) \
  ((m) == ~0u ? _mm512_stream_pd(p, x) : _mm512_mask_storeu_pd(p, (__mmask8)(m), x))
#define EINI_ZD_SET(x) _mm512_set1_pd(x)
#define EINI_ZD_ADD(a, b) _mm512_add_pd(a, b)
#define EINI_ZD_SUB(a, b) _mm512_sub_pd(a, b)
#define EINI_ZD_MUL(a, b) _mm512_mul_pd(a, b)
#define EINI_ZD_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define EINI_ZD_MIN(a, b) _mm512_mask_min_pd(a, 0xff, a, b)
#define EINI_ZD_MAX(a, b) _mm512_mask_max_pd(a, 0xff, a, b)
#define EINI_ZD_ABS(a) _mm512_abs_pd(a)
#define EINI_ZD_KEEP(c, r) \
  _mm512_mask_mov_pd(r, _mm512_cmp_pd_mask(c, c, _CMP_UNORD_Q), c)
#define EINI_ZD_AT EINI_T512
#define EINI_ZD_END _mm256_zeroupper()
#define EINI_ZD_PAST(p, x) _mm512_stream_pd(p, x)
#define EINI_ZD_DIV(a, b) _mm512_div_pd(a, b)
#define EINI_ZD_SQRT(a) _mm512_sqrt_pd(a)
#define EINI_ZD_FNMA(a, b, c) _mm512_fnmadd_pd(a, b, c)
#define EINI_ZD_NEG(a) _mm512_xor_pd(a, _mm512_set1_pd(-0.0))
#define EINI_ZD_RELU(a) \
  _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_NLT_UQ), a)
#define EINI_ZD_TOP(x, y) eini_max_512pd(x, y)
#define EINI_ZD_LOW(x, y) eini_min_512pd(x, y)
#define EINI_ZD_EXP(x) eini_exp_zd(x)
#define EINI_ZD_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_zd, a, b, c, d, e, f, g, h)

#define EINI_ZS_TAG zs
#define EINI_ZS_TYPE f32
#define EINI_ZS_BYTES 4
#define EINI_ZS_T float
#define EINI_ZS_U eini_any_f32
#define EINI_ZS_V __m512
#define EINI_ZS_W 16
#define EINI_ZS_REAL 1
#define EINI_ZS_REGS 32
#define EINI_ZS_FAR ys
#define EINI_ZS_HALF EINI_YS
#define EINI_ZS_LOAD(p) _mm512_loadu_ps(p)
#define EINI_ZS_STORE(p, x) _mm512_storeu_ps(p, x)
#define EINI_ZS_M __mmask16
#define EINI_ZS_MASK(n) (__mmask16)((1u << (n)) - 1u)
#define EINI_ZS_LOADM(p, m) _mm512_maskz_loadu_ps(m, p)
#define EINI_ZS_STOREM(p, m, x) _mm512_mask_storeu_ps(p, m, x)
#define EINI_ZS_STREAM(p, x, m) \
  ((m) == ~0u ? _mm512_stream_ps(p, x) : _mm512_mask_storeu_ps(p, (__mmask16)(m), x))
#define EINI_ZS_SET(x) _mm512_set1_ps(x)
#define EINI_ZS_ADD(a, b) _mm512_add_ps(a, b)
#define EINI_ZS_SUB(a, b) _mm512_sub_ps(a, b)
#define EINI_ZS_MUL(a, b) _mm512_mul_ps(a, b)
#define EINI_ZS_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define EINI_ZS_MIN(a, b) _mm512_mask_min_ps(a, 0xffff, a, b)
#define EINI_ZS_MAX(a, b) _mm512_mask_max_ps(a, 0xffff, a, b)
#define EINI_ZS_ABS(a) _mm512_abs_ps(a)
#define EINI_ZS_KEEP(c, r) \
  _mm512_mask_mov_ps(r, _mm512_cmp_ps_mask(c, c, _CMP_UNORD_Q), c)
#define EINI_ZS_AT EINI_T512
#define EINI_ZS_END _mm256_zeroupper()
#define EINI_ZS_PAST(p, x) _mm512_stream_ps(p, x)
#define EINI_ZS_DIV(a, b) _mm512_div_ps(a, b)
#define EINI_ZS_SQRT(a) _mm512_sqrt_ps(a)
#define EINI_ZS_FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define EINI_ZS_NEG(a) _mm512_xor_ps(a, _mm512_set1_ps(-0.0f))
#define EINI_ZS_RELU(a) \
  _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NLT_UQ), a)
#define EINI_ZS_TOP(x, y) eini_max_512ps(x, y)
#define EINI_ZS_LOW(x, y) eini_min_512ps(x, y)
#define EINI_ZS_EXP(x) eini_exp_zs(x)
#define EINI_ZS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_zs, a, b, c, d, e, f, g, h)

static const int32_t eini_mask_256[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#define EINI_MASK_256(words) \
  _mm256_loadu_si256((const __m256i *)(const void *)(eini_mask_256 + 8 - (words)))

#define EINI_YD_TAG yd
#define EINI_YD_TYPE f64
#define EINI_YD_BYTES 8
#define EINI_YD_T double
#define EINI_YD_U eini_any_f64
#define EINI_YD_V __m256d
#define EINI_YD_W 4
#define EINI_YD_REAL 1
#define EINI_YD_REGS 16
#define EINI_YD_FAR yd
#define EINI_YD_LOAD(p) _mm256_loadu_pd(p)
#define EINI_YD_STORE(p, x) _mm256_storeu_pd(p, x)
#define EINI_YD_M __m256i
#define EINI_YD_MASK(n) EINI_MASK_256(2 * (n))
#define EINI_YD_LOADM(p, m) _mm256_maskload_pd(p, m)
#define EINI_YD_STOREM(p, m, x) _mm256_maskstore_pd(p, m, x)
#define EINI_YD_STREAM(p, x, m) _mm256_stream_pd(p, x)
#define EINI_YD_SET(x) _mm256_set1_pd(x)
#define EINI_YD_ADD(a, b) _mm256_add_pd(a, b)
#define EINI_YD_SUB(a, b) _mm256_sub_pd(a, b)
#define EINI_YD_MUL(a, b) _mm256_mul_pd(a, b)
#define EINI_YD_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define EINI_YD_MIN(a, b) _mm256_min_pd(a, b)
#define EINI_YD_MAX(a, b) _mm256_max_pd(a, b)
#define EINI_YD_ABS(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define EINI_YD_KEEP(c, r) _mm256_blendv_pd(r, c, _mm256_cmp_pd(c, c, _CMP_UNORD_Q))
#define EINI_YD_AT EINI_T256
#define EINI_YD_END _mm256_zeroupper()
#define EINI_YD_PAST(p, x) _mm256_stream_pd(p, x)
#define EINI_YD_DIV(a, b) _mm256_div_pd(a, b)
#define EINI_YD_SQRT(a) _mm256_sqrt_pd(a)
#define EINI_YD_FNMA(a, b, c) _mm256_fnmadd_pd(a, b, c)
#define EINI_YD_NEG(a) _mm256_xor_pd(a, _mm256_set1_pd(-0.0))
#define EINI_YD_RELU(a) _mm256_and_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NLT_UQ), a)
#define EINI_YD_TOP(x, y) eini_max_256pd(x, y)
#define EINI_YD_LOW(x, y) eini_min_256pd(x, y)
#define EINI_YD_FLOOR(x) _mm256_round_pd(x, _MM_FROUND_FLOOR)
#define EINI_YD_CEIL(x) _mm256_round_pd(x, _MM_FROUND_CEIL)
#define EINI_YD_RINT(x) _mm256_round_pd(x, _MM_FROUND_RINT)
#define EINI_YD_EXP(x) eini_exp_yd(x)
#define EINI_YD_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS_YD(a, b, c, d, e, f, g, h)
#define EINI_YD_B __m256i
#define EINI_YD_BITS(x) _mm256_castpd_si256(x)
#define EINI_YD_FROM(i) _mm256_castsi256_pd(i)
#define EINI_YD_BSET(i) _mm256_set1_epi64x(i)
#define EINI_YD_BSUB(i, j) _mm256_sub_epi64(i, j)
#define EINI_YD_SHR(i, n) _mm256_srli_epi64(i, n)
#define EINI_YD_SHL(i, n) _mm256_slli_epi64(i, n)

#define EINI_YS_TAG ys
#define EINI_YS_TYPE f32
#define EINI_YS_BYTES 4
#define EINI_YS_T float
#define EINI_YS_U eini_any_f32
#define EINI_YS_V __m256
#define EINI_YS_W 8
#define EINI_YS_REAL 1
#define EINI_YS_REGS 16
#define EINI_YS_FAR ys
#define EINI_YS_LOAD(p) _mm256_loadu_ps(p)
#define EINI_YS_STORE(p, x) _mm256_storeu_ps(p, x)
#define EINI_YS_M __m256i
#define EINI_YS_MASK(n) EINI_MASK_256(n)
#define EINI_YS_LOADM(p, m) _mm256_maskload_ps(p, m)
#define EINI_YS_STOREM(p, m, x) _mm256_maskstore_ps(p, m, x)
#define EINI_YS_STREAM(p, x, m) _mm256_stream_ps(p, x)
#define EINI_YS_SET(x) _mm256_set1_ps(x)
#define EINI_YS_ADD(a, b) _mm256_add_ps(a, b)
#define EINI_YS_SUB(a, b) _mm256_sub_ps(a, b)
#define EINI_YS_MUL(a, b) _mm256_mul_ps(a, b)
#define EINI_YS_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define EINI_YS_MIN(a, b) _mm256_min_ps(a, b)
#define EINI_YS_MAX(a, b) _mm256_max_ps(a, b)
#define EINI_YS_ABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define EINI_YS_KEEP(c, r) _mm256_blendv_ps(r, c, _mm256_cmp_ps(c, c, _CMP_UNORD_Q))
#define EINI_YS_AT EINI_T256
#define EINI_YS_END _mm256_zeroupper()
#define EINI_YS_PAST(p, x) _mm256_stream_ps(p, x)
#define EINI_YS_DIV(a, b) _mm256_div_ps(a, b)
#define EINI_YS_SQRT(a) _mm256_sqrt_ps(a)
#define EINI_YS_FNMA(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define EINI_YS_NEG(a) _mm256_xor_ps(a, _mm256_set1_ps(-0.0f))
#define EINI_YS_RELU(a) _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NLT_UQ), a)
#define EINI_YS_TOP(x, y) eini_max_256ps(x, y)
#define EINI_YS_LOW(x, y) eini_min_256ps(x, y)
#define EINI_YS_FLOOR(x) _mm256_round_ps(x, _MM_FROUND_FLOOR)
#define EINI_YS_CEIL(x) _mm256_round_ps(x, _MM_FROUND_CEIL)
#define EINI_YS_RINT(x) _mm256_round_ps(x, _MM_FROUND_RINT)
#define EINI_YS_EXP(x) eini_exp_ys(x)
#define EINI_YS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_ys, a, b, c, d, e, f, g, h)
#define EINI_YS_B __m256i
#define EINI_YS_BITS(x) _mm256_castps_si256(x)
#define EINI_YS_FROM(i) _mm256_castsi256_ps(i)
#define EINI_YS_BSET(i) _mm256_set1_epi32(i)
#define EINI_YS_BSUB(i, j) _mm256_sub_epi32(i, j)
#define EINI_YS_SHR(i, n) _mm256_srli_epi32(i, n)
#define EINI_YS_SHL(i, n) _mm256_slli_epi32(i, n)

#define EINI_ZL_TAG zl
#define EINI_ZL_TYPE i64
#define EINI_ZL_BYTES 8
#define EINI_ZL_T int64_t
#define EINI_ZL_V __m512i
#define EINI_ZL_W 8
#define EINI_ZL_HALF EINI_ZL
#define EINI_ZL_LOAD(p) _mm512_loadu_si512(p)
#define EINI_ZL_STORE(p, x) _mm512_storeu_si512(p, x)
#define EINI_ZL_STREAM(p, x, m)                                   \
  ((m) == ~0u ? _mm512_stream_si512((__m512i *)(void *)(p), x)         \
              : _mm512_mask_storeu_epi64((void *)(p), (__mmask8)(m), x))
#define EINI_ZL_SET(x) _mm512_set1_epi64(x)
#define EINI_ZL_ADD(a, b) _mm512_add_epi64(a, b)
#define EINI_ZL_FMA(a, b, c) _mm512_add_epi64(c, _mm512_mullo_epi64(a, b))
#define EINI_ZL_AT EINI_T512
#define EINI_ZL_MUL(a, b) _mm512_mullo_epi64(a, b)
#define EINI_ZL_TOP(x, y) _mm512_max_epi64(x, y)
#define EINI_ZL_LOW(x, y) _mm512_min_epi64(x, y)

#define EINI_ZI_TAG zi
#define EINI_ZI_TYPE i32
#define EINI_ZI_BYTES 4
#define EINI_ZI_T int32_t
#define EINI_ZI_V __m512i
#define EINI_ZI_W 16
#define EINI_ZI_HALF EINI_YI
#define EINI_ZI_LOAD(p) _mm512_loadu_si512(p)
#define EINI_ZI_STORE(p, x) _mm512_storeu_si512(p, x)
#define EINI_ZI_STREAM(p, x, m)                                   \
  ((m) == ~0u ? _mm512_stream_si512((__m512i *)(void *)(p), x)         \
              : _mm512_mask_storeu_epi32((void *)(p), (__mmask16)(m), x))
#define EINI_ZI_SET(x) _mm512_set1_epi32(x)
#define EINI_ZI_ADD(a, b) _mm512_add_epi32(a, b)
#define EINI_ZI_FMA(a, b, c) _mm512_add_epi32(c, _mm512_mullo_epi32(a, b))
#define EINI_ZI_AT EINI_T512
#define EINI_ZI_MUL(a, b) _mm512_mullo_epi32(a, b)
#define EINI_ZI_TOP(x, y) _mm512_max_epi32(x, y)
#define EINI_ZI_LOW(x, y) _mm512_min_epi32(x, y)

#define EINI_YI_TAG yi
#define EINI_YI_TYPE i32
#define EINI_YI_BYTES 4
#define EINI_YI_T int32_t
#define EINI_YI_V __m256i
#define EINI_YI_W 8
#define EINI_YI_AT EINI_T256
#define EINI_YI_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_YI_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define EINI_YI_STREAM(p, x, m) _mm256_stream_si256((__m256i *)(void *)(p), x)
#define EINI_YI_SET(x) _mm256_set1_epi32(x)
#define EINI_YI_ADD(a, b) _mm256_add_epi32(a, b)
#define EINI_YI_MUL(a, b) _mm256_mullo_epi32(a, b)
#define EINI_YI_FMA(a, b, c) _mm256_add_epi32(c, _mm256_mullo_epi32(a, b))
#define EINI_YI_TOP(x, y) _mm256_max_epi32(x, y)
#define EINI_YI_LOW(x, y) _mm256_min_epi32(x, y)

#define EINI_YL_TAG yl
#define EINI_YL_TYPE i64
#define EINI_YL_BYTES 8
#define EINI_YL_T int64_t
#define EINI_YL_V __m256i
#define EINI_YL_W 4
#define EINI_YL_AT EINI_T256
#define EINI_YL_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_YL_ADD(a, b) _mm256_add_epi64(a, b)
#define EINI_YL_MUL(a, b) eini_mul_256q(a, b)
#define EINI_YL_TOP(x, y) eini_max_256q(x, y)
#define EINI_YL_LOW(x, y) eini_min_256q(x, y)

// The same, and i64, as vectors of unsigned numbers: of __m256i gcc 12 would keep fewer sums in
// registers, for each operation has to change the type.
#define EINI_QI_TAG qi
#define EINI_QI_BYTES 4
#define EINI_QI_T int32_t
#define EINI_QI_U eini_any_i32
#define EINI_QI_V __v8su
#define EINI_QI_W 8
#define EINI_QI_REAL 0
#define EINI_QI_REGS 16
#define EINI_QI_FAR qi
#define EINI_QI_AT EINI_T256
#define EINI_QI_LOAD(p) (__v8su)_mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_QI_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), (__m256i)(x))
#define EINI_QI_M __m256i
#define EINI_QI_MASK(n) EINI_MASK_256(n)
#define EINI_QI_LOADM(p, m) (__v8su)_mm256_maskload_epi32((const int *)(const void *)(p), m)
#define EINI_QI_STOREM(p, m, x) \
  _mm256_maskstore_epi32((int *)(void *)(p), m, (__m256i)(x))
#define EINI_QI_SET(x) (__v8su)_mm256_set1_epi32((int32_t)(x))
#define EINI_QI_ADD(a, b) ((a) + (b))
#define EINI_QI_MUL(a, b) ((a) * (b))
#define EINI_QI_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_QI_TOP(x, y) (__v8su)_mm256_max_epi32((__m256i)(x), (__m256i)(y))
#define EINI_QI_LOW(x, y) (__v8su)_mm256_min_epi32((__m256i)(x), (__m256i)(y))

#define EINI_QL_TAG ql
#define EINI_QL_BYTES 8
#define EINI_QL_T int64_t
#define EINI_QL_U eini_any_i64
#define EINI_QL_V __v4du
#define EINI_QL_W 4
#define EINI_QL_REAL 0
#define EINI_QL_REGS 16
#define EINI_QL_FAR ql
#define EINI_QL_AT EINI_T256
#define EINI_QL_LOAD(p) (__v4du)_mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_QL_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), (__m256i)(x))
#define EINI_QL_M __m256i
#define EINI_QL_MASK(n) EINI_MASK_256(2 * (n))
#define EINI_QL_LOADM(p, m) (__v4du)_mm256_maskload_epi64((const long long *)(const void *)(p), m)
#define EINI_QL_STOREM(p, m, x) \
  _mm256_maskstore_epi64((long long *)(void *)(p), m, (__m256i)(x))
#define EINI_QL_SET(x) (__v4du)_mm256_set1_epi64x((int64_t)(x))
#define EINI_QL_ADD(a, b) ((a) + (b))
#define EINI_QL_MUL(a, b) ((a) * (b))
#define EINI_QL_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_QL_TOP(x, y) (__v4du)eini_max_256q((__m256i)(x), (__m256i)(y))
#define EINI_QL_LOW(x, y) (__v4du)eini_min_256q((__m256i)(x), (__m256i)(y))

// x where it is NaN; maxps gives its second operand for NaN and for zeros of two signs, as we want.
EINI_T256 static inline __m256 eini_max_256ps(__m256 x, __m256 y) {
  return EINI_YS_KEEP(x, EINI_YS_MAX(x, y));
}
EINI_T256 static inline __m256 eini_min_256ps(__m256 x, __m256 y) {
  return EINI_YS_KEEP(x, EINI_YS_MIN(x, y));
}
EINI_T256 static inline __m256d eini_max_256pd(__m256d x, __m256d y) {
  return EINI_YD_KEEP(x, EINI_YD_MAX(x, y));
}
EINI_T256 static inline __m256d eini_min_256pd(__m256d x, __m256d y) {
  return EINI_YD_KEEP(x, EINI_YD_MIN(x, y));
}
EINI_T512 static inline __m512 eini_max_512ps(__m512 x, __m512 y) {
  return EINI_ZS_KEEP(x, EINI_ZS_MAX(x, y));
}
EINI_T512 static inline __m512 eini_min_512ps(__m512 x, __m512 y) {
  return EINI_ZS_KEEP(x, EINI_ZS_MIN(x, y));
}
EINI_T512 static inline __m512d eini_max_512pd(__m512d x, __m512d y) {
  return EINI_ZD_KEEP(x, EINI_ZD_MAX(x, y));
}
EINI_T512 static inline __m512d eini_min_512pd(__m512d x, __m512d y) {
  return EINI_ZD_KEEP(x, EINI_ZD_MIN(x, y));
}
#endif  // EINI_CPU_X86

#if EINI_CPU_NEON
#define EINI_ND_TAG nd
#define EINI_ND_BYTES 8
#define EINI_ND_T double
#define EINI_ND_U eini_any_f64
#define EINI_ND_V float64x2_t
#define EINI_ND_W 2
#define EINI_ND_REAL 1
#define EINI_ND_REGS 32
#define EINI_ND_FAR nd
#define EINI_ND_LOAD(p) vld1q_f64(p)
#define EINI_ND_STORE(p, x) vst1q_f64(p, x)
#define EINI_ND_M int
#define EINI_ND_MASK(n) ((int)(n))
#define EINI_ND_LOADM(p, m) eini_loadm_nd(p, m)
#define EINI_ND_STOREM(p, m, x) eini_storem_nd(p, m, x)
#define EINI_ND_STREAM(p, x, m) vst1q_f64(p, x)
#define EINI_ND_SET(x) vdupq_n_f64(x)
#define EINI_ND_ADD(a, b) vaddq_f64(a, b)
#define EINI_ND_SUB(a, b) vsubq_f64(a, b)
#define EINI_ND_MUL(a, b) vmulq_f64(a, b)
#define EINI_ND_FMA(a, b, c) vfmaq_f64(c, a, b)
#define EINI_ND_MIN(a, b) vminq_f64(a, b)
#define EINI_ND_MAX(a, b) vmaxq_f64(a, b)
#define EINI_ND_ABS(a) vabsq_f64(a)
#define EINI_ND_KEEP(c, r) (r)  // vmin and vmax keep NaN themselves
#define EINI_ND_AT EINI_UNUSED
#define EINI_ND_END (void)0
#define EINI_ND_PAST(p, x) vst1q_f64(p, x)
#define EINI_ND_DIV(a, b) vdivq_f64(a, b)
#define EINI_ND_SQRT(a) vsqrtq_f64(a)
#define EINI_ND_FNMA(a, b, c) vfmsq_f64(c, a, b)
#define EINI_ND_NEG(a) vnegq_f64(a)
#define EINI_ND_RELU(a) \
  vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(a), vcltzq_f64(a)))
#define EINI_ND_TOP(x, y) vbslq_f64(vornq_u64(vcgtq_f64(x, y), vceqq_f64(x, x)), x, y)
#define EINI_ND_LOW(x, y) vbslq_f64(vornq_u64(vcltq_f64(x, y), vceqq_f64(x, x)), x, y)
#define EINI_ND_FLOOR(x) vrndmq_f64(x)
#define EINI_ND_CEIL(x) vrndpq_f64(x)
#define EINI_ND_RINT(x) vrndiq_f64(x)
#define EINI_ND_EXP(x) eini_exp_nd(x)
#define EINI_ND_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_nd, a, b, c, d, e, f, g, h)
#define EINI_ND_B uint64x2_t
#define EINI_ND_BITS(x) vreinterpretq_u64_f64(x)
#define EINI_ND_FROM(i) vreinterpretq_f64_u64(i)
#define EINI_ND_BSET(i) vdupq_n_u64(i)
#define EINI_ND_BSUB(i, j) vsubq_u64(i, j)
#define EINI_ND_SHR(i, n) vshrq_n_u64(i, n)
#define EINI_ND_SHL(i, n) vshlq_n_u64(i, n)

#define EINI_NS_TAG ns
#define EINI_NS_BYTES 4
#define EINI_NS_T float
#define EINI_NS_U eini_any_f32
#define EINI_NS_V float32x4_t
#define EINI_NS_W 4
#define EINI_NS_REAL 1
#define EINI_NS_REGS 32
#define EINI_NS_FAR ns
#define EINI_NS_LOAD(p) vld1q_f32(p)
#define EINI_NS_STORE(p, x) vst1q_f32(p, x)
#define EINI_NS_M int
#define EINI_NS_MASK(n) ((int)(n))
#define EINI_NS_LOADM(p, m) eini_loadm_ns(p, m)
#define EINI_NS_STOREM(p, m, x) eini_storem_ns(p, m, x)
#define EINI_NS_STREAM(p, x, m) vst1q_f32(p, x)
#define EINI_NS_SET(x) vdupq_n_f32(x)
#define EINI_NS_ADD(a, b) vaddq_f32(a, b)
#define EINI_NS_SUB(a, b) vsubq_f32(a, b)
#define EINI_NS_MUL(a, b) vmulq_f32(a, b)
#define EINI_NS_FMA(a, b, c) vfmaq_f32(c, a, b)
#define EINI_NS_MIN(a, b) vminq_f32(a, b)
#define EINI_NS_MAX(a, b) vmaxq_f32(a, b)
#define EINI_NS_ABS(a) vabsq_f32(a)
#define EINI_NS_KEEP(c, r) (r)
#define EINI_NS_AT EINI_UNUSED
#define EINI_NS_END (void)0
#define EINI_NS_PAST(p, x) vst1q_f32(p, x)
#define EINI_NS_DIV(a, b) vdivq_f32(a, b)
#define EINI_NS_SQRT(a) vsqrtq_f32(a)
#define EINI_NS_FNMA(a, b, c) vfmsq_f32(c, a, b)
#define EINI_NS_NEG(a) vnegq_f32(a)
#define EINI_NS_RELU(a) \
  vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), vcltzq_f32(a)))
#define EINI_NS_TOP(x, y) vbslq_f32(vornq_u32(vcgtq_f32(x, y), vceqq_f32(x, x)), x, y)
#define EINI_NS_LOW(x, y) vbslq_f32(vornq_u32(vcltq_f32(x, y), vceqq_f32(x, x)), x, y)
#define EINI_NS_FLOOR(x) vrndmq_f32(x)
#define EINI_NS_CEIL(x) vrndpq_f32(x)
#define EINI_NS_RINT(x) vrndiq_f32(x)
#define EINI_NS_EXP(x) eini_exp_ns(x)
#define EINI_NS_EXPS(a, b, c, d, e, f, g, h) EINI_EXPS(eini_exp_ns, a, b, c, d, e, f, g, h)
#define EINI_NS_B uint32x4_t
#define EINI_NS_BITS(x) vreinterpretq_u32_f32(x)
#define EINI_NS_FROM(i) vreinterpretq_f32_u32(i)
#define EINI_NS_BSET(i) vdupq_n_u32(i)
#define EINI_NS_BSUB(i, j) vsubq_u32(i, j)
#define EINI_NS_SHR(i, n) vshrq_n_u32(i, n)
#define EINI_NS_SHL(i, n) vshlq_n_u32(i, n)

#define EINI_NI_TAG ni
#define EINI_NI_AT EINI_UNUSED
#define EINI_NI_BYTES 4
#define EINI_NI_T int32_t
#define EINI_NI_V int32x4_t
#define EINI_NI_W 4
#define EINI_NI_LOAD(p) vld1q_s32(p)
#define EINI_NI_STORE(p, x) vst1q_s32(p, x)
#define EINI_NI_STREAM(p, x, m) vst1q_s32(p, x)
#define EINI_NI_SET(x) vdupq_n_s32(x)
#define EINI_NI_ADD(a, b) vaddq_s32(a, b)
#define EINI_NI_FMA(a, b, c) vmlaq_s32(c, a, b)

#define EINI_KERNELS EINI_KERNELS_PARTIAL
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS
#endif  // EINI_CPU_NEON

#if !EINI_CPU_X86
// Vectors of compilers that have them, whatever the machine is; else single numbers. Of integers
// they do for NEON, too.
#if defined(__GNUC__) || defined(__clang__)
#define EINI_C_VECTOR __attribute__((vector_size(16)))
#define EINI_C_LANES(bytes) (16 / (bytes))
#else
#define EINI_C_VECTOR
#define EINI_C_LANES(bytes) 1
#endif
typedef double eini_vector_cd EINI_C_VECTOR;
typedef float eini_vector_cs EINI_C_VECTOR;
typedef uint64_t eini_vector_cl EINI_C_VECTOR;
typedef uint32_t eini_vector_ci EINI_C_VECTOR;
typedef int64_t eini_signed_cl EINI_C_VECTOR;
typedef int32_t eini_signed_ci EINI_C_VECTOR;
#undef EINI_C_VECTOR

#define EINI_CD_TAG cd
#define EINI_CD_BYTES 8
#define EINI_CD_T double
#define EINI_CD_U eini_any_f64
#define EINI_CD_V eini_vector_cd
#define EINI_CD_B eini_signed_cl
#define EINI_CD_O eini_vector_cd
#define EINI_CD_W EINI_C_LANES(8)
#define EINI_CD_REAL 1
#define EINI_CD_REGS 16
#define EINI_CD_FAR cd
#define EINI_CD_AT
#define EINI_CD_LOAD(p) eini_load_cd(p)
#define EINI_CD_STORE(p, x) eini_store_cd(p, x)
#define EINI_CD_M int
#define EINI_CD_MASK(n) ((int)(n))
#define EINI_CD_LOADM(p, m) eini_loadm_cd(p, m)
#define EINI_CD_STOREM(p, m, x) eini_storem_cd(p, m, x)
#define EINI_CD_SET(x) eini_set_cd(x)
#define EINI_CD_ADD(a, b) ((a) + (b))
#define EINI_CD_MUL(a, b) ((a) * (b))
#define EINI_CD_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CD_TOP(x, y) eini_top_cd(x, y)
#define EINI_CD_LOW(x, y) eini_low_cd(x, y)
#define EINI_CD_IS_NAN(x) ((x) != (x))

#define EINI_CS_TAG cs
#define EINI_CS_BYTES 4
#define EINI_CS_T float
#define EINI_CS_U eini_any_f32
#define EINI_CS_V eini_vector_cs
#define EINI_CS_B eini_signed_ci
#define EINI_CS_O eini_vector_cs
#define EINI_CS_W EINI_C_LANES(4)
#define EINI_CS_REAL 1
#define EINI_CS_REGS 16
#define EINI_CS_FAR cs
#define EINI_CS_AT
#define EINI_CS_LOAD(p) eini_load_cs(p)
#define EINI_CS_STORE(p, x) eini_store_cs(p, x)
#define EINI_CS_M int
#define EINI_CS_MASK(n) ((int)(n))
#define EINI_CS_LOADM(p, m) eini_loadm_cs(p, m)
#define EINI_CS_STOREM(p, m, x) eini_storem_cs(p, m, x)
#define EINI_CS_SET(x) eini_set_cs(x)
#define EINI_CS_ADD(a, b) ((a) + (b))
#define EINI_CS_MUL(a, b) ((a) * (b))
#define EINI_CS_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CS_TOP(x, y) eini_top_cs(x, y)
#define EINI_CS_LOW(x, y) eini_low_cs(x, y)
#define EINI_CS_IS_NAN(x) ((x) != (x))

#define EINI_CL_TAG cl
#define EINI_CL_BYTES 8
#define EINI_CL_T int64_t
#define EINI_CL_U eini_any_i64
#define EINI_CL_V eini_vector_cl
#define EINI_CL_B eini_signed_cl
#define EINI_CL_O eini_signed_cl
#define EINI_CL_W EINI_C_LANES(8)
#define EINI_CL_REAL 0
#define EINI_CL_REGS (EINI_CPU_NEON ? 32 : 16)
#define EINI_CL_FAR cl
#define EINI_CL_AT
#define EINI_CL_LOAD(p) eini_load_cl(p)
#define EINI_CL_STORE(p, x) eini_store_cl(p, x)
#define EINI_CL_M int
#define EINI_CL_MASK(n) ((int)(n))
#define EINI_CL_LOADM(p, m) eini_loadm_cl(p, m)
#define EINI_CL_STOREM(p, m, x) eini_storem_cl(p, m, x)
#define EINI_CL_SET(x) eini_set_cl(x)
#define EINI_CL_ADD(a, b) ((a) + (b))
#define EINI_CL_MUL(a, b) ((a) * (b))
#define EINI_CL_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CL_TOP(x, y) eini_top_cl(x, y)
#define EINI_CL_LOW(x, y) eini_low_cl(x, y)
#define EINI_CL_IS_NAN(x) 0

#define EINI_CI_TAG ci
#define EINI_CI_BYTES 4
#define EINI_CI_T int32_t
#define EINI_CI_U eini_any_i32
#define EINI_CI_V eini_vector_ci
#define EINI_CI_B eini_signed_ci
#define EINI_CI_O eini_signed_ci
#define EINI_CI_W EINI_C_LANES(4)
#define EINI_CI_REAL 0
#define EINI_CI_REGS (EINI_CPU_NEON ? 32 : 16)
#define EINI_CI_FAR ci
#define EINI_CI_AT
#define EINI_CI_LOAD(p) eini_load_ci(p)
#define EINI_CI_STORE(p, x) eini_store_ci(p, x)
#define EINI_CI_M int
#define EINI_CI_MASK(n) ((int)(n))
#define EINI_CI_LOADM(p, m) eini_loadm_ci(p, m)
#define EINI_CI_STOREM(p, m, x) eini_storem_ci(p, m, x)
#define EINI_CI_SET(x) eini_set_ci(x)
#define EINI_CI_ADD(a, b) ((a) + (b))
#define EINI_CI_MUL(a, b) ((a) * (b))
#define EINI_CI_FMA(a, b, c) ((a) * (b) + (c))
#define EINI_CI_TOP(x, y) eini_top_ci(x, y)
#define EINI_CI_LOW(x, y) eini_low_ci(x, y)
#define EINI_CI_IS_NAN(x) 0

#define EINI_KERNELS EINI_KERNELS_GENERIC
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS
#endif  // !EINI_CPU_X86

// Plain C: numbers one by one.
#define EINI_SD_TAG sd
#define EINI_SD_T double
#define EINI_SD_V double
#define EINI_SD_AT EINI_UNUSED
#define EINI_SD_SET(x) (x)
#define EINI_SD_FMA(x, y, z) ((x) * (y) + (z))

#define EINI_SS_TAG ss
#define EINI_SS_T float
#define EINI_SS_V float
#define EINI_SS_AT EINI_UNUSED
#define EINI_SS_SET(x) (x)
#define EINI_SS_FMA(x, y, z) ((x) * (y) + (z))

#if EINI_CPU_DOTS  // FMA: sums of dot products, of two bf16 or of four bytes each
#define EINI_ZB_TAG zb
#define EINI_ZB_T float
#define EINI_ZB_V __m512
#define EINI_ZB_AT EINI_TDOT
#define EINI_ZB_SET(x) _mm512_set1_ps(x)
#define EINI_ZB_FMA(x, y, z) _mm512_dpbf16_ps(z, (__m512bh)(x), (__m512bh)(y))
#define EINI_ZU_TAG zu
#define EINI_ZU_T int32_t
#define EINI_ZU_V __m512i
#define EINI_ZU_AT EINI_TDOT
#define EINI_ZU_SET(x) _mm512_set1_epi32(x)
#define EINI_ZU_FMA(x, y, z) _mm512_dpbusd_epi32(z, x, y)
#endif  // EINI_CPU_DOTS

// ================================================================================================
// >>exp  the exponential function of vectors
// At most 2 ulp, as in section math; special values as C99.
// ================================================================================================

#if EINI_CPU_X86
// 2^(j/16)
static const double eini_exp_parts[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};

// exp(x) = 2^m e^r, where m is x / ln 2 rounded to sixteenths: adding 1.5 * 2^48 rounds, and leaves
// the sixteenths j in the last four bits. 2^m comes as 2^(j/16) from two registers and as a power
// of two, which scalef also takes to subnormals, 0 and infinity. e^r = 1 + r + r^2 q(r), q fitted
// as those of section math; with y = r^2 + 19.99.. its degree of 4 takes three products. For x
// infinite, NaN or far out r means nothing and is made finite: m says what comes out. At most
// 1.13 ulp: 0.5 of the last sum, 0.5 of 2^(j/16), 0.1 of q; a second table with what 2^(j/16) lacks
// would halve that and take a fifth longer.
EINI_T512 static inline __m512d eini_exp_zd(__m512d x) {
  const __m512d shift = _mm512_set1_pd(6755399441055744.0 / 16);
  const __m512d t = _mm512_fmadd_pd(x, _mm512_set1_pd(1.4426950408889634), shift);
  const __m512d m = _mm512_sub_pd(t, shift);
  const __m512d part = _mm512_permutex2var_pd(_mm512_loadu_pd(eini_exp_parts),
                                              _mm512_castpd_si512(t),
                                              _mm512_loadu_pd(eini_exp_parts + 8));
  __m512d r = _mm512_fnmadd_pd(m, _mm512_set1_pd(0.69314718055989033), x);  // ln 2 in two parts
  r = _mm512_fnmadd_pd(m, _mm512_set1_pd(5.4979230187083712e-14), r);
  r = _mm512_max_pd(_mm512_min_pd(r, _mm512_set1_pd(1)), _mm512_set1_pd(-1));  // NaN: 1
  const __m512d r2 = _mm512_mul_pd(r, r);
  const __m512d y = _mm512_add_pd(r2, _mm512_set1_pd(19.999664536645206));
  __m512d q = _mm512_fmadd_pd(r, _mm512_set1_pd(0.008333473110926876),
                              _mm512_set1_pd(-0.013885661260104924));
  q = _mm512_fmadd_pd(y, _mm512_set1_pd(0.0013888314944317652), q);
  q = _mm512_fmadd_pd(q, y, _mm512_set1_pd(0.22219460522547685));
  q = _mm512_fmadd_pd(q, r2, r);
  return _mm512_scalef_pd(_mm512_fmadd_pd(q, part, part), m);
}

// Here m is an integer, and e^r that of section math.
EINI_T512 static inline __m512 eini_exp_zs(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0f);
  const __m512 m = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), shift), shift);
  __m512 r = _mm512_fnmadd_ps(m, _mm512_set1_ps(0.693145752f), x);
  r = _mm512_fnmadd_ps(m, _mm512_set1_ps(1.42860677e-06f), r);
  r = _mm512_max_ps(_mm512_min_ps(r, _mm512_set1_ps(1)), _mm512_set1_ps(-1));
  const __m512 r2 = _mm512_mul_ps(r, r);
  const __m512 low = _mm512_fmadd_ps(r, _mm512_set1_ps(0.166665167f), _mm512_set1_ps(0.499999881f));
  __m512 q = _mm512_fmadd_ps(r, _mm512_set1_ps(0.00836911518f), _mm512_set1_ps(0.0416696332f));
  q = _mm512_fmadd_ps(r2, _mm512_set1_ps(0.00137470546f), q);
  q = _mm512_fmadd_ps(_mm512_fmadd_ps(q, r2, low), r2, r);
  return _mm512_scalef_ps(_mm512_add_ps(q, _mm512_set1_ps(1)), m);
}
#endif  // EINI_CPU_X86

#if EINI_CPU_X86

// 2^(j/8), less the j/8 that a shift of m adds to it, as words of the two halves of its bits.
static const uint32_t eini_exp_high[8] = {0x3ff00000, 0x3fef72b8, 0x3fef06fe, 0x3feebfda,
                                          0x3feea09e, 0x3feeace5, 0x3feee89f, 0x3fef5818};
static const uint32_t eini_exp_low[8] = {0x00000000, 0x3c7d517b, 0x0a31b715, 0xd5362a27,
                                         0x667f3bcd, 0x422aa0db, 0x995ad3ad, 0xdcfba487};

// AVX2: m in eighths, e^r = 1 + r + r^2 q(r). Near 0 the exponents of 2^m are there and are added
// to those of 2^(j/8); else they come in two factors, after the sum, which gives the same bits.
EINI_T256 EINI_INLINE __m256d eini_exp_eighths(__m256d x, int near) {
  const __m256d shift = _mm256_set1_pd(6755399441055744.0 / 8);
  const __m256d t = _mm256_fmadd_pd(x, _mm256_set1_pd(1.4426950408889634), shift);
  const __m256d m = _mm256_sub_pd(t, shift);
  const __m256i bits = _mm256_castpd_si256(t), j = _mm256_shuffle_epi32(bits, 0xa0);
  const __m256i high = _mm256_permutevar8x32_epi32(
      _mm256_loadu_si256((const __m256i *)(const void *)eini_exp_high), j);
  const __m256i low = _mm256_permutevar8x32_epi32(
      _mm256_loadu_si256((const __m256i *)(const void *)eini_exp_low), j);
  const __m256i by = near ? bits : _mm256_and_si256(bits, _mm256_set1_epi64x(7));
  const __m256d part = _mm256_castsi256_pd(
      _mm256_add_epi64(_mm256_blend_epi32(low, high, 0xaa), _mm256_slli_epi64(by, 49)));
  __m256d r = _mm256_fnmadd_pd(m, _mm256_set1_pd(0.69314718055989033), x);
  r = _mm256_fnmadd_pd(m, _mm256_set1_pd(5.4979230187083712e-14), r);
  const __m256d r2 = _mm256_mul_pd(r, r);
  __m256d q = _mm256_fmadd_pd(r, _mm256_set1_pd(0.00019841090331182177),
                              _mm256_set1_pd(0.0013889786727626482));
  const __m256d q1 = _mm256_fmadd_pd(r, _mm256_set1_pd(0.008333333355552619),
                                     _mm256_set1_pd(0.041666666568360045));
  const __m256d q0 = _mm256_fmadd_pd(r, _mm256_set1_pd(0.1666666666666483),
                                     _mm256_set1_pd(0.5000000000000308));
  q = _mm256_fmadd_pd(_mm256_fmadd_pd(q, r2, q1), r2, q0);
  q = _mm256_fmadd_pd(q, r2, r);
  q = _mm256_fmadd_pd(q, part, part);
  if (near) return q;
  const __m256i k = _mm256_srli_epi64(
      _mm256_sub_epi64(bits, _mm256_set1_epi64x(0x4338000000000000 - 8 * 0x7fe)), 3);
  const __m256i h = _mm256_srli_epi64(k, 1), l = _mm256_sub_epi64(k, h);
  q = _mm256_mul_pd(q, _mm256_castsi256_pd(_mm256_slli_epi64(h, 52)));
  return _mm256_mul_pd(q, _mm256_castsi256_pd(_mm256_slli_epi64(l, 52)));
}

EINI_T256 static inline __m256d eini_exp_near_yd(__m256d x) { return eini_exp_eighths(x, 1); }

EINI_T256 static __m256d eini_exp_far_yd(__m256d x) {
  x = _mm256_min_pd(_mm256_set1_pd(746), x);  // NaN goes through as the second argument
  return eini_exp_eighths(_mm256_max_pd(_mm256_set1_pd(-746), x), 0);
}

// Negative where x is far from 0, or NaN.
EINI_T256 EINI_INLINE __m256i eini_exp_sign_yd(__m256d x) {
  const __m256i bits = _mm256_castpd_si256(_mm256_andnot_pd(_mm256_set1_pd(-0.0), x));
  return _mm256_sub_epi64(_mm256_castpd_si256(_mm256_set1_pd(350)), bits);
}

EINI_T256 static inline __m256d eini_exp_yd(__m256d x) {
  if (_mm256_movemask_pd(_mm256_castsi256_pd(eini_exp_sign_yd(x)))) return eini_exp_far_yd(x);
  return eini_exp_near_yd(x);
}

// Of eight vectors at once.
EINI_T256 EINI_INLINE __m256i eini_exp_signs_yd(__m256d a, __m256d b, __m256d c, __m256d d) {
  return _mm256_or_si256(_mm256_or_si256(eini_exp_sign_yd(a), eini_exp_sign_yd(b)),
                         _mm256_or_si256(eini_exp_sign_yd(c), eini_exp_sign_yd(d)));
}
EINI_T256 EINI_INLINE int eini_exp_is_far_yd(__m256i x, __m256i y) {
  return _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(x, y))) != 0;
}
#define EINI_EXPS_YD(a, b, c, d, e, f, g, h)                                                \
  if (eini_exp_is_far_yd(eini_exp_signs_yd(a, b, c, d), eini_exp_signs_yd(e, f, g, h)))     \
    EINI_EXPS(eini_exp_far_yd, a, b, c, d, e, f, g, h);                                     \
  else EINI_EXPS(eini_exp_near_yd, a, b, c, d, e, f, g, h)
#endif  // EINI_CPU_X86
#define EINI_EXPS(fn, a, b, c, d, e, f, g, h) \
  (a = fn(a), b = fn(b), c = fn(c), d = fn(d), e = fn(e), f = fn(f), g = fn(g), h = fn(h))

#if EINI_CPU_X86
#define EINI_KERNELS EINI_KERNELS_EXP
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_KERNELS EINI_KERNELS_EXP
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// ================================================================================================
// >>chunks  operations of expressions and folds, per instruction set
// The loops of einsum.h's sections math, eval and fold, compiled again: functions with nothing in
// them but a call take the callee's body in (flatten) under their own target.
// ================================================================================================

#define EINI_OP_ARGS                                                                        \
  int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                      \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d
#define EINI_REA(op, name, s, t)                                                            \
  {EIN_OP_##op, {NULL, NULL, NULL, eini_c_##name##_##s, eini_c_##name##_##t, NULL, NULL}}

#if EINI_CPU_X86

// Elementary functions gain a third by fused products, and lose nothing: test_cpu has their errors.
#if defined(__GNUC__) && !defined(__clang__)
#define EINI_FLAT __attribute__((flatten, optimize("fp-contract=fast")))
#else
#define EINI_FLAT __attribute__((flatten))
#endif

EINI_T256 static inline __m256i eini_max_256q(__m256i x, __m256i y) {
  return _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
}
EINI_T256 static inline __m256i eini_min_256q(__m256i x, __m256i y) {
  return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
}
EINI_T256 static inline __m256i eini_mul_256q(__m256i x, __m256i y) {
  __m256i mixed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), y),
                                   _mm256_mul_epu32(x, _mm256_srli_epi64(y, 32)));
  return _mm256_add_epi64(_mm256_mul_epu32(x, y), _mm256_slli_epi64(mixed, 32));
}

#define EINI_KERNELS EINI_KERNELS_CHUNKS
#define EINI_CHUNK_REAL 0
#define EINI_VEC EINI_YI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZL
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#define EINI_CHUNK_REAL 1
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#undef EINI_KERNELS

#define EINI_NUM(op, name)                                                                  \
  {EIN_OP_##op, {NULL, eini_c_##name##_yi, eini_c_##name##_yl, eini_c_##name##_ys,          \
                 eini_c_##name##_yd, NULL, NULL}}
// Cheap operations are bound by the first-level cache: AVX2 does as well.
#define EINI_CHUNK_ROWS(s, d)                                                               \
  EINI_NUM(ADD, add), EINI_NUM(SUB, sub), EINI_NUM(MUL, mul), EINI_NUM(SQUARE, square),     \
  EINI_NUM(NEG, neg), EINI_NUM(MAX, max), EINI_NUM(MIN, min), EINI_NUM(LT, lt),             \
  EINI_NUM(LE, le), EINI_NUM(GT, gt), EINI_NUM(GE, ge), EINI_NUM(EQ, eq), EINI_NUM(NE, ne), \
  EINI_NUM(WHERE, where), EINI_NUM(RELU, relu), EINI_NUM(ABS, abs),                         \
  EINI_REA(DIV, quot, s, d), EINI_REA(EXP, exp, s, d), EINI_REA(LOG, log, s, d),            \
  EINI_REA(SIN, sin, s, d), EINI_REA(COS, cos, s, d), EINI_REA(TANH, tanh, s, d),           \
  EINI_REA(ERF, erf, s, d), EINI_REA(SIGMOID, sigmoid, s, d), EINI_REA(SILU, silu, s, d),   \
  EINI_REA(GELU, gelu, ys, yd), EINI_REA(SQRT, sqrt, s, d), EINI_REA(RSQRT, rsqrt, s, d),   \
  EINI_REA(FLOOR, floor, ys, yd), EINI_REA(CEIL, ceil, ys, yd), EINI_REA(ROUND, round, ys, yd)
static const eini_chunk_row eini_chunk_table_256[] = {EINI_CHUNK_ROWS(ys, yd)};
static const eini_chunk_row eini_chunk_table_512[] = {EINI_CHUNK_ROWS(zs, zd)};
#undef EINI_CHUNK_ROWS
#undef EINI_NUM
#undef EINI_FLAT

// eini_bf16_store in vectors, for which compilers need twice as many operations: tiles of bf16 are
// soon done.
EINI_T512 static void eini_c_store_bf16_zs(EINI_OP_ARGS) {
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1);
  (void)b, (void)c;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 f = _mm512_loadu_ps((const float *)a + i);
    const __m512i u = _mm512_castps_si512(f), high = _mm512_srli_epi32(u, 16);
    const __m512i r = _mm512_srli_epi32(
        _mm512_add_epi32(_mm512_add_epi32(u, half), _mm512_and_si512(high, one)), 16);
    const __m512i x = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q), high,
                                           _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)d + i), _mm512_cvtepi32_epi16(x));
  }
}

// Loads and stores of storage dtypes.
static ein_chunk_fn eini_cpu_storage_fn(int wide, int load, ein_dtype type) {
  switch (type) {
    case EIN_F16:
      return wide ? (load ? eini_c_load_f16_zs : eini_c_store_f16_zs)
                  : load ? eini_c_load_f16_ys : eini_c_store_f16_ys;
    case EIN_BF16:
      return wide ? (load ? eini_c_load_bf16_zs : eini_c_store_bf16_zs)
                  : load ? eini_c_load_bf16_ys : eini_c_store_bf16_ys;
    case EIN_I8: return load ? eini_c_load_i8_yi : eini_c_store_8_yi;
    case EIN_U8: return load ? eini_c_load_u8_yi : eini_c_store_8_yi;
    case EIN_I16: return load ? eini_c_load_i16_yi : eini_c_store_16_yi;
    default: return NULL;
  }
}

// By fold (EIN_FOLD_SUM first) and column of the type.
#define EINI_ACROSS_ROW(name, v)                                                            \
  {NULL, eini_h_##name##_##v##i, eini_h_##name##_##v##l, eini_h_##name##_##v##s,            \
   eini_h_##name##_##v##d, NULL, NULL}
static const eini_horizontal_fn eini_across_table_256[4][7] = {
    EINI_ACROSS_ROW(sum, y), EINI_ACROSS_ROW(prod, y), EINI_ACROSS_ROW(max, y),
    EINI_ACROSS_ROW(min, y)};
static const eini_horizontal_fn eini_across_table_512[4][7] = {
    EINI_ACROSS_ROW(sum, z), EINI_ACROSS_ROW(prod, z), EINI_ACROSS_ROW(max, z),
    EINI_ACROSS_ROW(min, z)};
#undef EINI_ACROSS_ROW

#elif EINI_CPU_NEON

// The others are what the compiler makes of section eval anyway.
#define EINI_KERNELS EINI_KERNELS_CHUNKS
#define EINI_CHUNK_REAL 1
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#undef EINI_CHUNK_REAL
#undef EINI_KERNELS
static const eini_chunk_row eini_chunk_table_128[] = {
    EINI_REA(EXP, exp, ns, nd), EINI_REA(SIGMOID, sigmoid, ns, nd), EINI_REA(SILU, silu, ns, nd),
    EINI_REA(SQRT, sqrt, ns, nd), EINI_REA(RSQRT, rsqrt, ns, nd), EINI_REA(FLOOR, floor, ns, nd),
    EINI_REA(CEIL, ceil, ns, nd), EINI_REA(ROUND, round, ns, nd)};

#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_REA
#undef EINI_OP_ARGS

// Of an instruction set: rows of chunks; folds, by fold and column of the type. NULL: none.
typedef struct eini_chunk_set {
  const eini_chunk_row *row;
  size_t rows;
  const eini_horizontal_fn (*across)[7];
} eini_chunk_set;

#define EINI_CHUNK_TABLE(table) table, sizeof table / sizeof *table
static const eini_chunk_set eini_chunk_sets[EINI_ISA_COUNT] = {
    {NULL, 0, NULL},
#if EINI_CPU_NEON
    {EINI_CHUNK_TABLE(eini_chunk_table_128), NULL}, {NULL, 0, NULL}, {NULL, 0, NULL}};
#elif EINI_CPU_X86
    {NULL, 0, NULL},
    {EINI_CHUNK_TABLE(eini_chunk_table_256), eini_across_table_256},
    {EINI_CHUNK_TABLE(eini_chunk_table_512), eini_across_table_512}};
#else
    {NULL, 0, NULL}, {NULL, 0, NULL}, {NULL, 0, NULL}};
#endif
#undef EINI_CHUNK_TABLE

static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  const eini_chunk_set *set = &eini_chunk_sets[isa];
#if EINI_CPU_X86
  if (isa >= EINI_ISA_AVX2 && (op == EIN_OP_OPERAND || op == EIN_OP_CAST))
    return eini_cpu_storage_fn(isa == EINI_ISA_AVX512, op == EIN_OP_OPERAND, type);
#endif
  for (size_t i = 0; i < set->rows; i++)
    if (set->row[i].op == op) return set->row[i].fn[eini_type_column(type)];
  return NULL;
}

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  const eini_chunk_set *set = &eini_chunk_sets[isa];
  if (set->across == NULL || fold < EIN_FOLD_SUM || fold > EIN_FOLD_MIN) return NULL;
  return set->across[fold - EIN_FOLD_SUM][eini_type_column(type)];
}

// ================================================================================================
// >>chunk-rows  expressions over rows
// Takes an expression program; runs it over rows of a map with its values in registers.
// ================================================================================================

// A row is made block by block. The value at hand stays in eight vectors, which a step hands on to
// the next as arguments, so in registers; the other operand is memory: a row of an operand, or a
// block that is always the same (constants, operands without a stride) or holds a value put away.
// The last step stores. Steps round as the operations of chunks do, so the bits are the same.
//
// A block is eight vectors that follow each other, or a vector of each of eight tracks: rows that
// follow each other in a walk. What they share, like the x of A[i,j]*x[j], is then read from the
// second cache once for eight, and what is done per row is done once. So short rows run; where they
// follow each other in the output, they are joined to longer ones instead, for which operands that
// do not follow each other are laid out.

#define EINI_ROW_BLOCK 512   // bytes at most
#define EINI_ROW_NEAR 8192   // bytes of a row whose operands are likely to be in the first cache
#define EINI_ROW_STEPS 32
#define EINI_ROW_REGS 32
#define EINI_ROW_LEAST 256   // elements of a row; shorter ones are joined or run in eight tracks,
#define EINI_ROW_SHORT 64    //   from so many bytes on; else they are chunks of several loops
#define EINI_ROW_JOIN 4096   // bytes of joined rows at most
#define EINI_ROW_CYCLES 8    // of a short row of an operand, laid out or found: an estimate
#define EINI_ROW_FOUND 120   // of a longer one
// What an operation takes, as flops of what the peak counts: from a cache, and called. Estimates:
// they say only which of several providers is asked to run a map.
#define EINI_ROW_FLOPS 4
#define EINI_ROW_CALL_FLOPS 64

// Steps have the type eini_row_zs or another, by the vectors of a set; they are kept as this one.
typedef void (*eini_row_fn)(void);
typedef struct eini_row_step {
  eini_row_fn fn;
  char *const *with;         // where the other operand is, or where the value goes
  const int64_t *off;        // from there to each of its eight vectors, in bytes
  int64_t moves;             // -1: that moves with the row; 0: it stays
  ein_chunk_fn chunk;        // what the step calls, with two blocks of room
  char *room;
} eini_row_step;

// Operands that move with the row. A block's lines are asked for first, one of each operand in
// turn: processors foresee this order, that of a plain loop, better than the order of the steps.
typedef struct eini_row_from {
  int n;
  uintptr_t p[EINI_ROW_REGS];
  const int64_t *off[EINI_ROW_REGS];
} eini_row_from;

enum { EINI_ROW_LOAD = EIN_OP_COUNT, EINI_ROW_SAVE, EINI_ROW_STORE, EINI_ROW_STREAM };

// Steps of an operation, in lines and in tracks; the second of a pair has its operands exchanged.
typedef struct eini_row_op {
  int op;
  eini_row_fn fn[2][2];
} eini_row_op;

enum { EINI_ROW_CALLED = 14, EINI_ROW_OPS = 28 };  // the first that takes long; all

// The steps of a set and what runs them. equal: a block of one value, or of one for each track.
// lay: `each` bytes, or the first value, from every one of rows that are `by` bytes apart.
typedef struct eini_row_set {
  int wide;                        // bytes of a vector
  const eini_row_op *op;
  void (*go[2])(const eini_row_step *t, const eini_row_from *from, int64_t at, int64_t to);
  void (*equal)(const char *p, const int64_t *track, char *block);
  void (*lay)(int64_t rows, int64_t each, int along, const char *p, int64_t by, char *to);
} eini_row_set;

#define EINI_KERNELS EINI_KERNELS_STEPS
#if EINI_CPU_X86
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// By instruction set: f32, f64. wide 0: none.
#define EINI_ROW_SET(s, wide)                                                               \
  {wide, eini_row_table_##s, {eini_q_lines_go_##s, eini_q_tracks_go_##s}, eini_q_equal_##s, \
   eini_q_lay_##s}
#define EINI_ROW_NONE {{0, NULL, {NULL, NULL}, NULL, NULL}, {0, NULL, {NULL, NULL}, NULL, NULL}}
static const eini_row_set eini_row_sets[EINI_ISA_COUNT][2] = {
    EINI_ROW_NONE,
#if EINI_CPU_NEON
    {EINI_ROW_SET(ns, 16), EINI_ROW_SET(nd, 16)}, EINI_ROW_NONE, EINI_ROW_NONE};
#elif EINI_CPU_X86
    EINI_ROW_NONE,
    {EINI_ROW_SET(ys, 32), EINI_ROW_SET(yd, 32)},
    {EINI_ROW_SET(zs, 64), EINI_ROW_SET(zd, 64)}};
#else
    EINI_ROW_NONE, EINI_ROW_NONE, EINI_ROW_NONE};
#endif
#undef EINI_ROW_NONE
#undef EINI_ROW_SET

// A code as steps. Streams: operands, then the output.
typedef struct eini_steps {
  const ein_map *map;
  int isa;
  const eini_row_set *set;
  int64_t wide, whole;             // bytes of a vector, of a block
  int tracks;                      // 1, or 8
  int n, calls;                    // steps, and those that call chunks or take as long
  eini_row_step step[EINI_ROW_STEPS];
  eini_row_from from;
  char *block;                     // of each register a block, or room for rows laid out,
  int64_t pitch;                   //   so many bytes apart
  int64_t bytes;                   // of a row
  int64_t joined;                  // rows to one, of so many bytes each, or 0
  int64_t each;
  const char *laid[EINI_ROW_REGS]; // a row that a register has so many times, or NULL
  int64_t times[EINI_ROW_REGS];
  int near;                        // nothing is asked for ahead
  char *next[EINI_ROW_REGS + 1];   // streams at the row that comes next
  char *at[EINI_ROW_REGS + 1];     // .. at the row of the first track,
  int64_t track[EINI_ROW_REGS + 1][8];  // and from there to those of all
  char *with[EINI_ROW_REGS + 1];   // where registers are; then where the last step stores
  int64_t moves[EINI_ROW_REGS];
  int64_t off[EINI_ROW_REGS][8];
  char room[2 * EINI_ROW_BLOCK + 64];
} eini_steps;

// Appends one, with register reg; 0 where the operation has no step.
static int eini_steps_put(eini_steps *r, int op, int swapped, eini_row_step with) {
  eini_row_step *t = &r->step[r->n];
  for (int i = 0; i < EINI_ROW_OPS; i++) {
    const eini_row_op *o = &r->set->op[i];
    if (o->op != op) continue;
    *t = with;
    t->fn = o->fn[r->tracks > 1][swapped];
    t->room = r->room + eini_to_line(r->room);
    r->calls += i >= EINI_ROW_CALLED;
    r->n++;
    return 1;
  }
  return 0;
}

static int eini_steps_add(eini_steps *r, int op, int swapped, int reg, ein_chunk_fn chunk) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  with.with = &r->with[reg];
  with.off = r->off[reg];
  with.moves = r->moves[reg];
  with.chunk = chunk;
  return eini_steps_put(r, op, swapped, with);
}

static int eini_step_loads(const ein_step *s) {
  return s->op == EIN_OP_OPERAND || s->op == EIN_OP_INDEX;
}

// Whether a step from the i-th on needs what register reg holds.
static int eini_steps_needs(const ein_code *code, int i, int reg) {
  for (; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) continue;
    if (s->a == reg || s->b == reg || s->c == reg) return 1;
    if (s->dst == reg) return 0;
  }
  return 0;
}

// Of an operand or the output: the stride along loop i.
static int64_t eini_row_stride(const ein_map *m, int stream, int i) {
  return m->stride[(int64_t)stream * m->pitch + i];
}

static int64_t eini_steps_size(const eini_steps *r) {
  return r->map->code->type == EIN_F32 ? 4 : 8;
}

// Does a register hold what was laid out until another row is?
static int eini_steps_keeps(const ein_code *code, int load) {
  for (int i = 0; i < code->nstep; i++)
    if (i != load && code->step[i].dst == code->step[load].dst) return 0;
  return 1;
}

// Operands are at the rows that are joined. One row for all of them is laid out once.
static void eini_rows_lay(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int64_t size = eini_steps_size(r);
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    r->with[reg] = r->block + reg * r->pitch;
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    const int64_t by = eini_row_stride(m, o, m->n - 2) * size;
    if (r->bytes >= r->whole && along && by == r->each) {
      r->with[reg] = r->at[o];
      continue;
    }
    if (by == 0 && r->laid[reg] == r->at[o] && r->times[reg] >= r->joined) continue;
    r->set->lay(r->joined, r->each, along, r->at[o], by, r->with[reg]);
    r->laid[reg] = by == 0 && eini_steps_keeps(code, i) ? r->at[o] : NULL;
    r->times[reg] = r->joined;
  }
}

// Operands are at the rows of the tracks; one that does not move along rows is a block of its
// values.
static void eini_steps_aim(eini_steps *r) {
  const ein_code *code = r->map->code;
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    if (r->moves[reg] == 0) {
      r->set->equal(r->at[o], r->track[o], r->with[reg]);
      continue;
    }
    r->with[reg] = r->at[o];
    if (r->tracks > 1) memcpy(r->off[reg], r->track[o], sizeof r->off[reg]);
    if (r->near || (r->tracks > 1 && r->track[o][7] == 0)) continue;
    r->from.p[r->from.n] = (uintptr_t)r->at[o];
    r->from.off[r->from.n++] = r->off[reg];
  }
}

// All steps but the one that stores. 0: there is an operation or an operand without steps.
static int eini_steps_make(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  int hand = -1;  // the register whose value is at hand
  r->n = r->calls = 0;
  for (int i = 0; i < code->nreg; i++) {
    r->with[i] = r->block == NULL ? NULL : r->block + i * r->pitch;
    r->moves[i] = 0;
    for (int k = 0; k < 8; k++) r->off[i][k] = k * r->wide;
  }
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) {
      if (s->op != EIN_OP_OPERAND || s->from != code->type) return 0;
      const int64_t stride = eini_row_stride(m, s->a, m->n - 1);
      if (stride >> 1 != 0) return 0;
      r->moves[s->dst] = r->joined > 0 ? -1 : -stride;
      continue;
    }
    if (s->op == EIN_OP_CALL || r->n + 4 > EINI_ROW_STEPS) return 0;
    const int two = eini_ops[s->op].args == 2, swapped = two && hand == s->b && hand != s->a;
    int with = swapped ? s->a : s->b;
    if (hand >= 0 && ((two && hand == with) || eini_steps_needs(code, i + 1, hand)))
      eini_steps_add(r, EINI_ROW_SAVE, 0, hand, NULL);
    if (hand != s->a && !swapped) eini_steps_add(r, EINI_ROW_LOAD, 0, s->a, NULL);
    if (!eini_steps_add(r, s->op, swapped, with, s->fn)) return 0;
    hand = s->dst;
  }
  return hand >= 0 && hand == code->result;
}

// Blocks from byte `at` on until `to`, stored at out (of tracks: and off), or always at the same
// place.
static void eini_steps_go(eini_steps *r, int64_t at, int64_t to, int op, char *out,
                          const int64_t *off, int64_t moves) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  r->with[EINI_ROW_REGS] = out;
  with.with = &r->with[EINI_ROW_REGS];
  with.off = off;
  with.moves = moves;
  eini_steps_put(r, op, 0, with);
  r->n--;
  r->set->go[r->tracks > 1](r->step, &r->from, at, to);
}

// Eight rows past the caches, by vectors that are lines. A track is the lines of a row's output;
// the ends, which share a line with others, are taken from blocks of the first and the last bytes
// of each row.
static void eini_steps_rows(eini_steps *r) {
  static const int64_t ones[8] = {0, 64, 128, 192, 256, 320, 384, 448};
  static const int64_t twos[8] = {0, 128, 256, 384, 512, 640, 768, 896};
  char first[EINI_ROW_BLOCK], last[2 * EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *pitch = r->track[r->map->nop], bytes = r->bytes;
  int64_t head[8], off[8], end = bytes / 64 * 64, odd = bytes % 64;
  for (int k = 0; k < 8; k++) {
    head[k] = eini_to_line(to + pitch[k]);
    odd |= head[k];
    end = eini_min64(end, (bytes - head[k]) / 64 * 64);
    off[k] = pitch[k] + head[k];
  }
  if (odd != 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, first, ones, 0);
    eini_steps_go(r, bytes - 128, bytes - 127, EINI_ROW_STORE, last, twos, 0);
    eini_steps_go(r, bytes - 64, bytes - 63, EINI_ROW_STORE, last + 64, twos, 0);
  }
  for (int k = 0; odd != 0 && k < 8; k++) {
    const int64_t tail = bytes - head[k] - end;
    memcpy(to + pitch[k], first + 64 * k, (size_t)head[k]);
    memcpy(to + pitch[k] + bytes - tail, last + twos[k] + 128 - tail, (size_t)tail);
    for (int i = 0; i < r->map->code->nreg; i++) r->off[i][k] += head[k] & r->moves[i];
  }
  eini_steps_go(r, 0, end, EINI_ROW_STREAM, to, off, -1);
}

// Eight short rows. Their last vectors, which overlap those before, are made first: the output may
// be an operand.
static void eini_steps_short(eini_steps *r) {
  char last[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *off = r->track[r->map->nop], bytes = r->bytes, wide = r->wide;
  const int64_t end = bytes / wide * wide;
  int64_t each[8];
  for (int k = 0; k < 8; k++) each[k] = k * wide;
  if (end < bytes)
    eini_steps_go(r, bytes - wide, bytes - wide + 1, EINI_ROW_STORE, last, each, 0);
  eini_steps_go(r, 0, end, EINI_ROW_STORE, to, off, -1);
  for (int k = 0; k < 8 && end < bytes; k++)
    memcpy(to + off[k] + bytes - wide, last + each[k], (size_t)wide);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, int stream) {
  const int64_t bytes = r->bytes, whole = r->whole;
  char part[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  if (bytes < whole) {  // operands are laid out
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)bytes);
    return;
  }
  const int64_t head = stream ? eini_to_line(to) : 0;
  const int64_t end = head + (bytes - head) / whole * whole;
  if (head > 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)head);
  }
  eini_steps_go(r, head, end, stream ? EINI_ROW_STREAM : EINI_ROW_STORE, to, NULL, -1);
  if (end < bytes) {
    eini_steps_go(r, bytes - whole, bytes, EINI_ROW_STORE, part, NULL, 0);
    char *last = part + whole - (bytes - end);
    if (stream) eini_stream_row(r->isa, (size_t)(bytes - end), last, to + end);
    else memcpy(to + end, last, (size_t)(bytes - end));
  }
}

// ================================================================================================
// >>map-rows  maps by rows
// Which maps run over rows, how rows are taken from a walk, joined and put together, and when.
// ================================================================================================

// Words of ein_choice.state; together: eight rows at a time.
enum { EINI_ROWS_STREAM, EINI_ROWS_TOGETHER };

// Do rows that follow each other in a walk do so in the output?
static int eini_rows_joins(const ein_map *m) {
  return m->n > 1 && eini_row_stride(m, m->nop, m->n - 2) == m->extent[m->n - 1];
}

// Do tracks gain? Few operands come from memory, and nothing is called, which takes longer than
// memory does. They are faster on Zen 4; on Zen 5 they take 1.2 to 1.8 times as long.
static int eini_rows_together(const eini_cpu *cpu, const eini_steps *r) {
  const ein_map *m = r->map;
  int own = 0, shared = 0;
  if (!cpu->halves || r->wide < 64 || m->n < 2 || r->calls > 0) return 0;
  for (int o = 0; o < m->nop; o++) {
    const int moves = eini_row_stride(m, o, m->n - 2) != 0;
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    own += moves && along;
    shared += !moves && along;
  }
  return own < 2 || (own == 2 && shared > 0);
}

// The steps of an instruction set for the type of a map; 0: none.
static int eini_rows_set(eini_steps *r, int isa, const ein_map *m) {
  const int type = m->code->type;
  r->map = m;
  r->isa = isa;
  r->set = &eini_row_sets[isa][type == EIN_F64];
  r->wide = r->set->wide;
  r->whole = 8 * r->wide;
  r->tracks = 1;
  r->block = NULL;
  r->pitch = r->joined = 0;
  return r->wide > 0 && (type == EIN_F32 || type == EIN_F64);
}

// A row that all operations have steps for: values of f32 or f64, stored as they are, one after the
// other, read one after the other or always the same.
static int eini_rows_fit(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int out = m->nstream - 1;
  if (m->fold != EIN_FOLD_NONE || m->store != NULL || m->nvalue > 0 || m->n == 0) return 0;
  if (code->nreg > EINI_ROW_REGS || m->nop > EINI_ROW_REGS || m->dtype[out] != code->type) return 0;
  if (eini_row_stride(m, out, m->n - 1) != 1) return 0;
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].type != code->type) return 0;
  return eini_steps_make(r);
}

static int eini_rows_short(const ein_map *m) { return m->extent[m->n - 1] < EINI_ROW_LEAST; }

// Bytes of a register: behind rows that are laid out there is room for a line.
static int64_t eini_rows_pitch(const ein_map *m) {
  return eini_rows_short(m) ? EINI_ROW_JOIN + 64 : EINI_ROW_BLOCK;
}

// Bytes of scratch, for rows of any length.
static int64_t eini_rows_room(const ein_map *m) {
  return m->code->nreg * (EINI_ROW_JOIN + 64) + m->n * (int64_t)sizeof(int64_t);
}

static double eini_rows_count(const ein_map *m) {
  double rows = 1;
  for (int i = 0; i < m->n - 1; i++) rows *= (double)m->extent[i];
  return rows;
}

// Seconds of memory, or of operations where these take longer.
static double eini_rows_seconds(const eini_rated *cpu, const eini_steps *r, int stream,
                                int threads) {
  const ein_map *m = r->map;
  const int f32 = m->code->type == EIN_F32;
  const double rows = eini_rows_count(m), work = rows * (double)m->extent[m->n - 1];
  double bytes = 0, out = 0;
  for (int s = 0; s < m->nstream; s++) {
    out = f32 ? 4 : 8;  // of the last stream, in the end
    for (int i = 0; i < m->n; i++) out *= eini_row_stride(m, s, i) != 0 ? (double)m->extent[i] : 1;
    bytes += out;
  }
  const double move = stream ? bytes / cpu->copy_bw : eini_cpu_move(cpu, bytes - out, out, 0);
  const double flops = EINI_ROW_FLOPS * (r->n - r->calls) + EINI_ROW_CALL_FLOPS * r->calls;
  double time = work * flops / (f32 ? cpu->peak_f32 : cpu->peak_f64);
  const double each = (double)m->extent[m->n - 1] * (f32 ? 4 : 8);
  const double found = eini_rows_short(m) ? 0 : rows * EINI_ROW_FOUND / cpu->hz;
  if (eini_rows_short(m)) time += rows * (EINI_ROW_CYCLES + each / 32) * (m->nop + 1) / cpu->hz;
  return cpu->call + (fmax(time, move) + found) / threads;
}

// Ways: through the caches, past them, and eight rows at a time where that gains. Short rows that
// are not joined go through the caches: what is past them has many lines of two rows.
static int eini_map_rows_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                              ein_choice *choice) {
  static const char *const names[] = {"rows", "rows stream", "rows of eight"};
  eini_steps r;
  if (!eini_rows_set(&r, cpu->is.isa, m) || !eini_rows_fit(&r)) return 0;
  const int few = eini_rows_short(m);
  if (few && (nth > 1 || m->extent[m->n - 1] * eini_steps_size(&r) < EINI_ROW_SHORT ||
              eini_rows_count(m) < 8))
    return 0;
  const int past = (!few || eini_rows_joins(m)) && eini_cpu_past(cpu, m->out_bytes);
  const int gains = !few && eini_rows_together(&cpu->is, &r);
  const int best = past ? 1 + gains : 0, way = nth < 0 ? best : nth;
  if (way > 1 + gains) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  choice->seconds = eini_rows_seconds(cpu, &r, past, threads);
  if (way != best) choice->seconds *= 1.5;  // memory is read once more
  choice->scratch = (size_t)(m->code->nreg * eini_rows_pitch(m)) + (size_t)m->n * sizeof(int64_t);
  choice->state[EINI_ROWS_STREAM] = way > 0;
  choice->state[EINI_ROWS_TOGETHER] = way > 1;
  eini_cpu_name(choice, names[way]);
  return 1;
}

// Registers of constants and params, once.
static void eini_rows_begin(eini_steps *r, char *scratch) {
  static const int64_t same[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  r->block = scratch;
  for (int i = 0; i < code->nreg; i++)  // of a short last group a whole block is read
    if (r->bytes < r->whole) memset(r->block + i * r->pitch, 0, (size_t)r->whole);
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    const double v = f->param >= 0 ? m->param[f->param].re : f->re;
    const float s = (float)v;
    char *block = r->block + f->reg * r->pitch;
    r->set->equal(f->type == EIN_F32 ? (const char *)&s : (const char *)&v, same, block);
  }
}

// Moves on by `rows` along the innermost outer loop, which has as many left; 0: all rows are made.
static int eini_rows_next(eini_steps *r, int64_t *index, int64_t rows) {
  const ein_map *m = r->map;
  const int64_t size = eini_steps_size(r);
  for (int i = m->n - 2; i >= 0; i--, rows = 1) {
    index[i] += rows;
    const int ends = index[i] == m->extent[i];
    const int64_t by = ends ? rows - m->extent[i] : rows;
    if (ends) index[i] = 0;
    for (int s = 0; s <= m->nop; s++) r->next[s] += by * eini_row_stride(m, s, i) * size;
    if (!ends) return 1;
  }
  return 0;
}

// The rows of the tracks; where there are no more, the last one again. 0: they are the last.
static int eini_rows_take(eini_steps *r, int64_t *index) {
  const int streams = r->map->nop + 1;
  int more = 1;
  memcpy(r->at, r->next, (size_t)streams * sizeof *r->at);
  if (r->tracks == 1) {
    for (int s = 0; s < streams; s++) memset(r->track[s], 0, sizeof r->track[s]);
    return eini_rows_next(r, index, 1);
  }
  for (int k = 0; k < 8; k++) {
    for (int s = 0; s < streams; s++)
      r->track[s][k] = k == 0 || more ? r->next[s] - r->at[s] : r->track[s][k - 1];
    if (more) more = eini_rows_next(r, index, 1);
  }
  return more;
}

// Short rows, joined along the innermost outer loop where the output's follow each other.
static void eini_rows_join(eini_steps *r, int64_t *index, int stream) {
  const ein_map *m = r->map;
  r->each = r->bytes;
  r->joined = r->tracks = 1;
  memset(r->laid, 0, sizeof r->laid);
  eini_steps_make(r);
  for (int more = 1; more;) {
    r->joined = !eini_rows_joins(m) ? 1
                : eini_min64(EINI_ROW_JOIN / r->each, m->extent[m->n - 2] - index[m->n - 2]);
    r->bytes = r->joined * r->each;
    memcpy(r->at, r->next, (size_t)(m->nop + 1) * sizeof *r->at);
    eini_rows_lay(r);
    eini_steps_row(r, stream && r->bytes >= 2 * EINI_ROW_BLOCK);
    more = eini_rows_next(r, index, r->joined);
  }
}

// Bytes of rows of so many that are made before others: what rows share stays in the second cache.
static int64_t eini_rows_columns(const eini_cpu *cpu, const ein_map *m, int64_t bytes) {
  int64_t shared = 0;
  for (int s = 0; s < m->nop; s++) {
    int again = 0;
    for (int i = 0; i < m->n - 1; i++) again |= m->extent[i] > 1 && eini_row_stride(m, s, i) == 0;
    shared += again && eini_row_stride(m, s, m->n - 1) != 0;
  }
  const int64_t most = eini_max64(cpu->l2 / 2 / eini_max64(shared, 1), EINI_PAGE_BYTES);
  if (shared == 0 || bytes <= most) return bytes;
  const int64_t parts = (bytes + most - 1) / most;  // of one size
  return eini_up((bytes + parts - 1) / parts, 64);
}

// All rows' bytes [from, from + r->bytes).
static void eini_rows_each(eini_steps *r, int64_t *index, int64_t from, int stream, int together,
                          double left) {
  const ein_map *m = r->map;
  const int few = eini_rows_short(m);
  r->tracks = 0;
  memset(index, 0, (size_t)m->n * sizeof *index);
  for (int s = 0; s <= m->nop; s++)
    r->next[s] = m->base[s] + eini_row_stride(m, s, m->n - 1) * from;
  for (int more = left > 0; more;) {
    const int rows = together && (few || left >= 8) ? 8 : 1;
    if (rows != r->tracks) {
      r->tracks = rows;
      eini_steps_make(r);
    }
    more = eini_rows_take(r, index);
    left -= rows;
    eini_steps_aim(r);
    if (few) eini_steps_short(r);
    else if (rows == 8) eini_steps_rows(r);
    else eini_steps_row(r, stream);
  }
}

static ein_status eini_map_rows_run(const eini_cpu *cpu, const ein_map *m,
                                    const ein_choice *choice, char *scratch) {
  eini_steps r;
  int64_t *index = (int64_t *)(void *)(scratch + m->code->nreg * eini_rows_pitch(m));
  const int few = eini_rows_short(m);
  double left = eini_rows_count(m);
  if (!eini_rows_set(&r, cpu->isa, m)) return EIN_ERR_INTERNAL;
  r.pitch = eini_rows_pitch(m);
  r.bytes = m->extent[m->n - 1] * eini_steps_size(&r);
  const int whole =
      ((uintptr_t)m->base[m->nop] & (uintptr_t)(eini_steps_size(&r) - 1)) == 0;
  const int stream = choice->state[EINI_ROWS_STREAM] && whole;
  const int together =
      few || (stream && choice->state[EINI_ROWS_TOGETHER] && r.bytes >= 2 * EINI_ROW_BLOCK);
  r.near = !stream && r.bytes <= EINI_ROW_NEAR;
  const int64_t all = r.bytes, some = few ? all : eini_rows_columns(cpu, m, all);
  eini_rows_begin(&r, scratch);
  if (few && (eini_rows_joins(m) || r.bytes < r.wide)) {
    memset(index, 0, (size_t)m->n * sizeof *index);
    for (int s = 0; s <= m->nop; s++) r.next[s] = m->base[s];
    eini_rows_join(&r, index, stream);
    left = 0;
  }
  for (int64_t c = 0; c < all && left > 0; c += some) {
    r.bytes = eini_min64(some, all - c);
    eini_rows_each(&r, index, c, stream, together && (few || r.bytes >= 2 * EINI_ROW_BLOCK), left);
  }
  if (stream) eini_stream_end();
  return EIN_OK;
}

// ================================================================================================
// >>gett  contractions as products of packed blocks
// One contraction as a matrix product over blocks that are boxes in index space. The side that
// holds the unit stride of the output lies along vectors ("V"), the other is broadcast ("U").
// ================================================================================================

//   for each box of U, of K, of V:   pack both into panels [k][lane], tables say from where;
//     for each panel of V, of U:     a tile of the output in registers, over all k of the box;
//                                    stored in place, or through a buffer and then to its layout
//
// A box holds some of the index along which an operand is contiguous and some of the index along
// which the output is, so reads and writes use whole lines whatever the order of the indices.
// Complex problems run on the real tiles: V holds (re, im) as two lanes, U as two columns; what
// comes out are the sums of v*re(u) and v*im(u), put together when they leave the buffer.
//
// Part of a problem: the linear index of m (n) is cut at multiples of unit; the i-th stretch of
// unit elements stands for the i-th box, in the order of eini_gett_box.

// How a tile leaves the registers: stored, added to what is there, past the caches.
enum { EINI_GETT_STORE, EINI_GETT_ADD, EINI_GETT_STREAM };
// Steps in which lines of the output come from memory; what marks a tile that asks for them.
enum { EINI_GETT_LATE = 128, EINI_GETT_LATE_TILE = 256 };
// In the place of a pair: sums begin as v + u.
enum { EINI_GETT_FIRST = -1 };
enum { EINI_GETT_COLUMNS = 32 };   // of U in a tile at most

// A register tile: nv vectors of V times nu columns of U over k. V steps by sv from k to k + 1, U
// by uk; columns of U lie us apart. Row j, vector i goes to dst + uoff[j] + voff[i] (elements).
// Each k asks for one line that a later block needs: soon_base + *soon, then soon += soon_step. The
// lines that are added to are asked for when `late` steps are left; 0: not. Such tiles are whole,
// of packed panels of U (uk = nu, us = 1), which leaves registers for it.
typedef struct eini_gett_tile_arg {
  int nv, nu, how;
  int soon_step;
  uintptr_t soon_base;
  const int64_t *soon;         // bytes
  int64_t k, late, sv, uk, us;
  const void *v, *u;
  void *dst;
  const int64_t *uoff, *voff;
  const unsigned *lanes;       // of each vector those that are streamed; ~0: the whole vector
} eini_gett_tile_arg;

typedef void (*eini_gett_tile_fn)(const eini_gett_tile_arg *a);

// d[i] = the fold of d[i] and s[i], which may be read on to the end of a vector; or d[i] *= *s.
typedef void (*eini_gett_fold_fn)(int64_t n, void *d, const void *s);
// d[i] *= s[i] for products of operands; n is a multiple of every vector.
typedef void (*eini_gett_times_fn)(int64_t n, void *d, const void *s);

// ---- the kernels of one problem
typedef struct eini_gett_kit eini_gett_kit;
typedef struct eini_gett_pack_arg eini_gett_pack_arg;
typedef void (*eini_gett_pack_fn)(const eini_gett_pack_arg *a);

// What remains to be done with a panel of so many rows, some of them more than were packed. 1: it
// has values that only the exact tile takes.
typedef int (*eini_gett_done_fn)(const eini_gett_kit *kit, int is_u, int64_t lanes, int64_t rows,
                                 void *panel);

struct eini_gett_kit {
  eini_gett_tile_fn tile;
  eini_gett_fold_fn fold, by;  // by: scales; NULL: it cannot
  eini_gett_pack_fn pack_v, pack_u;
  eini_gett_times_fn times;    // products of operands; NULL: none
  int parts;                   // reals of an element: 2 for complex
  int size;                    // bytes of an element
  int w, nv, nu;               // elements of a vector; vectors and columns of the largest tile
  int gv, gu;                  // granules of V and U
  int cols;                    // columns of a tile, in elements: a multiple of it
  int isa, type;               // type: dtype of sums
  int form, group;             // see section gett-narrow; values of k in an element of a panel
  int head, round;             // rows that a panel begins with; the others are a multiple of round
  int flip_u, flip_v;          // i8: panels hold values plus or less 128
  eini_gett_tile_fn exact;     // what takes all values; NULL: the tile does
  eini_gett_done_fn done;      // NULL: nothing
};

// ---- sets of vectors in plain C; booleans are bytes
#define EINI_PD_TAG pd
#define EINI_PD_AT
#define EINI_PD_BYTES 8
#define EINI_PD_T double
#define EINI_PD_A double
#define EINI_PD_W 4
#define EINI_PS_TAG ps
#define EINI_PS_AT
#define EINI_PS_BYTES 4
#define EINI_PS_T float
#define EINI_PS_A float
#define EINI_PS_W 4
#define EINI_PL_TAG pl
#define EINI_PL_AT
#define EINI_PL_BYTES 8
#define EINI_PL_T int64_t
#define EINI_PL_A uint64_t
#define EINI_PL_W 4
#define EINI_PI_TAG pi
#define EINI_PI_AT
#define EINI_PI_BYTES 4
#define EINI_PI_T int32_t
#define EINI_PI_A uint32_t
#define EINI_PI_W 4
#define EINI_PB_TAG pb
#define EINI_PB_AT
#define EINI_PB_BYTES 1
#define EINI_PB_T unsigned char
#define EINI_PB_W 4
#define EINI_KERNELS EINI_KERNELS_FOUR
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS

// ---- tiles
// What there is of a set: sums of products, of narrow types or of those with heads (rows that
// panels begin with, of which sums are v + u); those with their folds; all pairs; the same with any
// number of columns, and scaled.
#define EINI_TILE_DOTS 1
#define EINI_TILE_HEADS 2
#define EINI_TILE_SUMS 3
#define EINI_TILE_INTS 4
#define EINI_TILE_FLOATS 5
#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_FLOATS
#if EINI_CPU_X86
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#endif
#define EINI_TILE_PLAIN
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_INTS
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_SUMS
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_PLAIN
#if EINI_CPU_X86
#define EINI_VEC EINI_YI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZI
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NI
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_TILE_KIND
#undef EINI_KERNELS

// ================================================================================================
// >>gett-pack  packing for section gett, and its kernels by type
// A block of one side goes into panels [k][lane].
// ================================================================================================

// Positions of a box are numbered row-major and filled up to whole granules of G lanes with copies
// of what comes before; operands are contiguous along the lanes, along k, across positions that
// are some granules apart, of one axis or of several, or an uneven step, or nowhere.
enum { EINI_GETT_ROWS, EINI_GETT_ALONG, EINI_GETT_ACROSS, EINI_GETT_UNEVEN, EINI_GETT_NOWHERE };

struct eini_gett_pack_arg {
  int kind;
  int64_t n, np, nk;           // positions, the same filled up, extent of k
  int64_t lanes;               // of one panel
  int64_t step, count;         // the contiguous index: its step in k (UNEVEN: in positions), its
                               //   extent; ACROSS: elements of a run
  const int64_t *row, *col;    // [np], [nk] offsets in the operand
  const int64_t *place;        // [np / G] where a granule goes
  const unsigned char *flat;   // [np / G] whether its lanes are contiguous
  const int64_t *across;       // ACROSS: [count] positions beside one where a run of memory begins
  const int64_t *first;        // [nfirst] such positions, of granules
  int64_t nfirst;
  const void *src;
  void *dst;
};

// Elements are moved whole, and those of c64 are aligned as their parts are.
#if defined(__GNUC__) || defined(__clang__)
typedef int64_t eini_gett_8 __attribute__((aligned(4), may_alias));
typedef double eini_gett_8d __attribute__((aligned(4), may_alias));
#else
typedef int64_t eini_gett_8;
#endif
typedef struct eini_gett_16 { double re, im; } eini_gett_16;

#define EINI_PC_TAG pc
#define EINI_PC_AT
#define EINI_PC_BYTES 16
#define EINI_PC_T eini_gett_16
#define EINI_KERNELS EINI_KERNELS_PACK
#define EINI_PACK_N 1
#define EINI_PACK_PLAIN
#define EINI_VEC EINI_PB
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PI
#include "einsum_cpu_kernels.h"
#define EINI_PACK_T eini_gett_8
#define EINI_VEC EINI_PL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PC
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_PLAIN

#if EINI_CPU_X86
// Loads and stores of so many elements of 4 and of 8 bytes; TURN: rows, transposed.
EINI_T512 EINI_INLINE __m512d eini_load_zd(const eini_gett_8d *s) { return _mm512_loadu_pd(s); }
EINI_T512 EINI_INLINE __m256 eini_load_zs(const float *s) { return _mm256_loadu_ps(s); }
EINI_T256 EINI_INLINE __m128 eini_load_ys(const float *s) { return _mm_loadu_ps(s); }
EINI_T256 EINI_INLINE __m256d eini_load_yd(const eini_gett_8d *s) {
  return _mm256_loadu_pd((const double *)(const void *)s);
}
EINI_T512 EINI_INLINE void eini_save_zd(eini_gett_8d *d, __m512d x) { _mm512_storeu_pd(d, x); }
EINI_T512 EINI_INLINE void eini_save_zs(void *d, __m256 x) { _mm256_storeu_ps((float *)d, x); }
EINI_T256 EINI_INLINE void eini_save_ys(void *d, __m128 x) { _mm_storeu_ps((float *)d, x); }
EINI_T256 EINI_INLINE void eini_save_yd(eini_gett_8d *d, __m256d x) {
  _mm256_storeu_pd((double *)(void *)d, x);
}

EINI_T512 EINI_INLINE void eini_turn_zd(__m512d a0, __m512d a1, __m512d a2, __m512d a3,
                                        __m512d a4, __m512d a5, __m512d a6, __m512d a7,
                                        eini_gett_8d *d, const int64_t *o) {
  const __m512d b0 = _mm512_unpacklo_pd(a0, a1), b1 = _mm512_unpackhi_pd(a0, a1),
                b2 = _mm512_unpacklo_pd(a2, a3), b3 = _mm512_unpackhi_pd(a2, a3),
                b4 = _mm512_unpacklo_pd(a4, a5), b5 = _mm512_unpackhi_pd(a4, a5),
                b6 = _mm512_unpacklo_pd(a6, a7), b7 = _mm512_unpackhi_pd(a6, a7);
  // b: pairs of rows at columns 0 2 4 6 (even) and 1 3 5 7 (odd); then fours of rows, then all.
  const __m512d c0 = _mm512_shuffle_f64x2(b0, b2, 0x88), c1 = _mm512_shuffle_f64x2(b1, b3, 0x88),
                c2 = _mm512_shuffle_f64x2(b0, b2, 0xdd), c3 = _mm512_shuffle_f64x2(b1, b3, 0xdd),
                c4 = _mm512_shuffle_f64x2(b4, b6, 0x88), c5 = _mm512_shuffle_f64x2(b5, b7, 0x88),
                c6 = _mm512_shuffle_f64x2(b4, b6, 0xdd), c7 = _mm512_shuffle_f64x2(b5, b7, 0xdd);
  _mm512_storeu_pd(d + o[0], _mm512_shuffle_f64x2(c0, c4, 0x88));
  _mm512_storeu_pd(d + o[1], _mm512_shuffle_f64x2(c1, c5, 0x88));
  _mm512_storeu_pd(d + o[2], _mm512_shuffle_f64x2(c2, c6, 0x88));
  _mm512_storeu_pd(d + o[3], _mm512_shuffle_f64x2(c3, c7, 0x88));
  _mm512_storeu_pd(d + o[4], _mm512_shuffle_f64x2(c0, c4, 0xdd));
  _mm512_storeu_pd(d + o[5], _mm512_shuffle_f64x2(c1, c5, 0xdd));
  _mm512_storeu_pd(d + o[6], _mm512_shuffle_f64x2(c2, c6, 0xdd));
  _mm512_storeu_pd(d + o[7], _mm512_shuffle_f64x2(c3, c7, 0xdd));
}

EINI_T512 EINI_INLINE void eini_turn_zs(__m256 a0, __m256 a1, __m256 a2, __m256 a3, __m256 a4,
                                        __m256 a5, __m256 a6, __m256 a7, void *to,
                                        const int64_t *o) {
  float *d = (float *)to;
  const __m256 b0 = _mm256_unpacklo_ps(a0, a1), b1 = _mm256_unpackhi_ps(a0, a1),
               b2 = _mm256_unpacklo_ps(a2, a3), b3 = _mm256_unpackhi_ps(a2, a3),
               b4 = _mm256_unpacklo_ps(a4, a5), b5 = _mm256_unpackhi_ps(a4, a5),
               b6 = _mm256_unpacklo_ps(a6, a7), b7 = _mm256_unpackhi_ps(a6, a7);
  const __m256 c0 = _mm256_shuffle_ps(b0, b2, 0x44), c1 = _mm256_shuffle_ps(b0, b2, 0xee),
               c2 = _mm256_shuffle_ps(b1, b3, 0x44), c3 = _mm256_shuffle_ps(b1, b3, 0xee),
               c4 = _mm256_shuffle_ps(b4, b6, 0x44), c5 = _mm256_shuffle_ps(b4, b6, 0xee),
               c6 = _mm256_shuffle_ps(b5, b7, 0x44), c7 = _mm256_shuffle_ps(b5, b7, 0xee);
  _mm256_storeu_ps(d + o[0], _mm256_permute2f128_ps(c0, c4, 0x20));
  _mm256_storeu_ps(d + o[1], _mm256_permute2f128_ps(c1, c5, 0x20));
  _mm256_storeu_ps(d + o[2], _mm256_permute2f128_ps(c2, c6, 0x20));
  _mm256_storeu_ps(d + o[3], _mm256_permute2f128_ps(c3, c7, 0x20));
  _mm256_storeu_ps(d + o[4], _mm256_permute2f128_ps(c0, c4, 0x31));
  _mm256_storeu_ps(d + o[5], _mm256_permute2f128_ps(c1, c5, 0x31));
  _mm256_storeu_ps(d + o[6], _mm256_permute2f128_ps(c2, c6, 0x31));
  _mm256_storeu_ps(d + o[7], _mm256_permute2f128_ps(c3, c7, 0x31));
}

EINI_T256 EINI_INLINE void eini_turn_yd(__m256d a0, __m256d a1, __m256d a2, __m256d a3,
                                        eini_gett_8d *d, const int64_t *o) {
  const __m256d b0 = _mm256_unpacklo_pd(a0, a1), b1 = _mm256_unpackhi_pd(a0, a1),
                b2 = _mm256_unpacklo_pd(a2, a3), b3 = _mm256_unpackhi_pd(a2, a3);
  eini_save_yd(d + o[0], _mm256_permute2f128_pd(b0, b2, 0x20));
  eini_save_yd(d + o[1], _mm256_permute2f128_pd(b1, b3, 0x20));
  eini_save_yd(d + o[2], _mm256_permute2f128_pd(b0, b2, 0x31));
  eini_save_yd(d + o[3], _mm256_permute2f128_pd(b1, b3, 0x31));
}

EINI_T256 EINI_INLINE void eini_turn_ys(__m128 a0, __m128 a1, __m128 a2, __m128 a3, void *to,
                                        const int64_t *o) {
  float *d = (float *)to;
  _MM_TRANSPOSE4_PS(a0, a1, a2, a3);
  _mm_storeu_ps(d + o[0], a0);
  _mm_storeu_ps(d + o[1], a1);
  _mm_storeu_ps(d + o[2], a2);
  _mm_storeu_ps(d + o[3], a3);
}

#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
EINI_INLINE float64x2_t eini_load_nd(const eini_gett_8d *s) {
  return vld1q_f64((const double *)(const void *)s);
}
EINI_INLINE float32x4_t eini_load_ns(const float *s) { return vld1q_f32(s); }
EINI_INLINE void eini_save_nd(eini_gett_8d *d, float64x2_t x) {
  vst1q_f64((double *)(void *)d, x);
}
EINI_INLINE void eini_save_ns(float *d, float32x4_t x) { vst1q_f32(d, x); }

EINI_INLINE void eini_turn_nd(float64x2_t a, float64x2_t b, eini_gett_8d *d, const int64_t *o) {
  eini_save_nd(d + o[0], vzip1q_f64(a, b));
  eini_save_nd(d + o[1], vzip2q_f64(a, b));
}

EINI_INLINE void eini_turn_ns(float32x4_t a0, float32x4_t a1, float32x4_t a2, float32x4_t a3,
                              float *d, const int64_t *o) {
  const float32x4_t b0 = vzip1q_f32(a0, a2), b1 = vzip2q_f32(a0, a2),  // pairs of columns
                    b2 = vzip1q_f32(a1, a3), b3 = vzip2q_f32(a1, a3);
  vst1q_f32(d + o[0], vzip1q_f32(b0, b2));
  vst1q_f32(d + o[1], vzip2q_f32(b0, b2));
  vst1q_f32(d + o[2], vzip1q_f32(b1, b3));
  vst1q_f32(d + o[3], vzip2q_f32(b1, b3));
}

#define EINI_PACK_T eini_gett_8d
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86, EINI_CPU_NEON
#undef EINI_PACK_N
#undef EINI_KERNELS

#define EINI_KERNELS EINI_KERNELS_COMPLEX
#define EINI_VEC EINI_PD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_KERNELS

// Rows of a panel of so many k that a tile multiplies.
static int64_t eini_gett_rows(const eini_gett_kit *kit, int64_t nk) {
  return eini_up((nk + kit->group - 1) / kit->group, kit->round);
}

// The shape of a tile in reals.
static void eini_gett_shape(eini_gett_kit *k, int w, int nv, int nu) {
  k->w = w, k->nv = nv, k->nu = nu;
}

// Sums that are only scaled are stored as others are, and scaled there.
static int eini_gett_plain(const ein_contract *c, const eini_gett_kit *k) {
  return c->plain_out || (c->scaled && c->nextra == 0 && k->by != NULL && k->parts == 1);
}

static void eini_gett_kit_float(int isa, int wide, ein_pair pair, eini_gett_kit *k) {
  void (*fill)(ein_pair, eini_gett_kit *) = wide ? eini_gett_kit_pd : eini_gett_kit_ps;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) fill = wide ? eini_gett_kit_zd : eini_gett_kit_zs;
  if (isa == EINI_ISA_AVX2) fill = wide ? eini_gett_kit_yd : eini_gett_kit_ys;
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) fill = wide ? eini_gett_kit_nd : eini_gett_kit_ns;
#endif
  (void)isa;
  fill(pair, k);
}

// Of integers vectors have sums of products; the other pairs are plain C's.
static void eini_gett_kit_int(int isa, int wide, ein_pair pair, eini_gett_kit *k) {
  k->size = wide ? 8 : 4;
  if (wide) eini_gett_kit_pl(pair, k);
  else eini_gett_kit_pi(pair, k);
  if (pair != EIN_PAIR_SUM_MUL) return;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512 && wide) eini_gett_kit_zl(pair, k);
  else if (isa == EINI_ISA_AVX512) eini_gett_kit_zi(pair, k);
  else if (isa == EINI_ISA_AVX2 && !wide) eini_gett_kit_yi(pair, k);
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON && !wide) eini_gett_kit_ni(pair, k);
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

// Packing functions and granules, once the shape of the tile is known.
static void eini_gett_kit_pack(int isa, ein_dtype type, eini_gett_kit *k) {
  k->pack_v = k->pack_u = k->size == 1   ? eini_pack_pb
                          : k->size == 4 ? eini_pack_pi
                          : k->size == 8 ? eini_pack_pl
                                         : eini_pack_pc;
  k->gv = k->gu = k->size < 8 ? 4 : 2;
  k->times = type == EIN_F64    ? eini_gett_times_pd
             : type == EIN_F32  ? eini_gett_times_ps
             : type == EIN_I64  ? eini_gett_times_pl
             : type == EIN_I32  ? eini_gett_times_pi
             : type == EIN_C128 ? eini_gett_times_complex_pd
             : type == EIN_C64  ? eini_gett_times_complex_ps
                                : NULL;
#if EINI_CPU_X86
  if (isa != EINI_ISA_AVX512 && isa != EINI_ISA_AVX2) return;
  const eini_gett_pack_fn y = k->size == 4   ? eini_pack_ys
                              : k->size == 8 ? eini_pack_yd
                                             : NULL;
  const eini_gett_pack_fn z = k->size == 4   ? eini_pack_zs
                              : k->size == 8 ? eini_pack_zd
                                             : NULL;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->w % 8 == 0) k->pack_v = z, k->gv = 8;
  else if (y != NULL && k->w % 4 == 0) k->pack_v = y, k->gv = 4;
  if (isa == EINI_ISA_AVX512 && z != NULL && k->nu % 8 == 0) k->pack_u = z, k->gu = 8;
  else if (y != NULL && k->nu % 4 == 0) k->pack_u = y, k->gu = 4;
  if (type == EIN_F64) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zd : eini_gett_times_yd;
  if (type == EIN_F32) k->times = isa == EINI_ISA_AVX512 ? eini_gett_times_zs : eini_gett_times_ys;
#elif EINI_CPU_NEON
  if (isa != EINI_ISA_NEON) return;
  if (k->size == 4) k->pack_v = k->pack_u = eini_pack_ns;  // (granules are as in plain C)
  if (k->size == 8) k->pack_v = k->pack_u = eini_pack_nd;
  if (type == EIN_F64) k->times = eini_gett_times_nd;
  if (type == EIN_F32) k->times = eini_gett_times_ns;
#else  // EINI_CPU_X86, EINI_CPU_NEON
  (void)isa;
#endif
}

static int eini_gett_pick(const eini_cpu *cpu, ein_dtype type, ein_pair pair, eini_gett_kit *k) {
  memset(k, 0, sizeof *k);
  k->isa = cpu->isa, k->type = (int)type;
  k->group = k->round = 1;
  k->parts = type == EIN_C64 || type == EIN_C128 ? 2 : 1;
  if (k->parts == 2 && pair != EIN_PAIR_SUM_MUL) return 0;
  if (type == EIN_BOOL) {
    if (pair == EIN_PAIR_ANY_AND) eini_gett_kit_pb(EIN_PAIR_SUM_MUL, k);
    k->size = 1;
  } else if (type == EIN_F64 || type == EIN_C128) {
    eini_gett_kit_float(cpu->isa, 1, pair, k);
    k->size = 8 * k->parts;
  } else if (type == EIN_F32 || type == EIN_C64) {
    eini_gett_kit_float(cpu->isa, 0, pair, k);
    k->size = 4 * k->parts;
  } else if (type == EIN_I64 || type == EIN_I32) {
    eini_gett_kit_int(cpu->isa, type == EIN_I64, pair, k);
  }
  if (k->tile == NULL) return 0;
  k->w /= k->parts, k->nu /= k->parts;
  const int ints = type == EIN_I32 || type == EIN_I64;
  k->cols = pair != EIN_PAIR_SUM_MUL ? k->nu : ints ? 4 : 1;
  eini_gett_kit_pack(cpu->isa, type, k);
  return 1;
}

// ================================================================================================
// >>gett-narrow  f16, bf16 and short integers in section gett
// Packing that converts; panels of two bf16 or i16, or four i8, to a lane, and what is multiplied.
// ================================================================================================

// Forms of panels: elements of the compute type; groups of values of a narrow one, of which dot
// products make sums of f32 or i32.
enum { EINI_GETT_WHOLE, EINI_GETT_BF16, EINI_GETT_I16, EINI_GETT_I8, EINI_GETT_AMX_BF16,
       EINI_GETT_AMX_I8, EINI_GETT_FORMS };

// Whether panels are for tile registers.
static int eini_gett_tiled(const eini_gett_kit *kit) { return kit->form >= EINI_GETT_AMX_BF16; }

#define EINI_KERNELS EINI_KERNELS_PACK
#define EINI_PACK_N 1
#define EINI_PACK_PLAIN
#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_PS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_PLAIN

#if EINI_CPU_X86
// n values at s + c[i] to one of four bytes, the first in the low bits: w two of 16 bits, s of i8
// and u of u8 as two of 16 bits, q four of 8 bits, f the same less 128.
EINI_INLINE int32_t eini_two(int low, int high) {
  return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16);
}
EINI_INLINE int32_t eini_one_w(const uint16_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_s(const int8_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_u(const uint8_t *s, const int64_t *c, int64_t n) {
  return eini_two(s[c[0]], n > 1 ? s[c[1]] : 0);
}
EINI_INLINE int32_t eini_one_q(const uint8_t *s, const int64_t *c, int64_t n) {
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) r |= (uint32_t)(i < n ? s[c[i]] : 0) << 8 * i;
  return (int32_t)r;
}
EINI_INLINE int32_t eini_one_f(const uint8_t *s, const int64_t *c, int64_t n) {
  return (int32_t)((uint32_t)eini_one_q(s, c, n) ^ 0x80808080u);
}

// Vectors of eight (zs) or four (ys) such, and of f16 and bf16 as f32. run: values that follow each
// other along k lie so.
#define EINI_READ16(s) _mm_loadu_si128((const __m128i *)(const void *)(s))
#define EINI_READ32(s) _mm256_loadu_si256((const __m256i *)(const void *)(s))
#define EINI_READ8(s) _mm_loadl_epi64((const __m128i *)(const void *)(s))
EINI_T256 EINI_INLINE __m128i eini_read4(const void *s) {
  int x;
  memcpy(&x, s, 4);
  return _mm_cvtsi32_si128(x);
}
EINI_T512 EINI_INLINE __m256 eini_load_f16zs(const uint16_t *s) {
  return _mm256_cvtph_ps(EINI_READ16(s));
}
EINI_T512 EINI_INLINE __m256 eini_load_bf16zs(const uint16_t *s) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(EINI_READ16(s)), 16));
}
EINI_T256 EINI_INLINE __m128 eini_load_f16ys(const uint16_t *s) {
  return _mm_cvtph_ps(EINI_READ8(s));
}
EINI_T256 EINI_INLINE __m128 eini_load_bf16ys(const uint16_t *s) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(EINI_READ8(s)), 16));
}

EINI_T512 EINI_INLINE __m256 eini_zip_z(__m128i a, __m128i b) {
  return _mm256_castsi256_ps(_mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_unpacklo_epi16(a, b)), _mm_unpackhi_epi16(a, b), 1));
}
EINI_T512 EINI_INLINE __m256 eini_load_wzs(const uint16_t *s, const int64_t *c) {
  return eini_zip_z(EINI_READ16(s + c[0]), EINI_READ16(s + c[1]));
}
EINI_T512 EINI_INLINE __m256 eini_load_szs(const int8_t *s, const int64_t *c) {
  return eini_zip_z(_mm_cvtepi8_epi16(EINI_READ8(s + c[0])),
                    _mm_cvtepi8_epi16(EINI_READ8(s + c[1])));
}
EINI_T512 EINI_INLINE __m256 eini_load_uzs(const uint8_t *s, const int64_t *c) {
  return eini_zip_z(_mm_cvtepu8_epi16(EINI_READ8(s + c[0])),
                    _mm_cvtepu8_epi16(EINI_READ8(s + c[1])));
}
EINI_T512 EINI_INLINE __m256 eini_fours(const uint8_t *s, const int64_t *c, int flip) {
  const __m128i a = _mm_unpacklo_epi8(EINI_READ8(s + c[0]), EINI_READ8(s + c[1]));
  const __m128i b = _mm_unpacklo_epi8(EINI_READ8(s + c[2]), EINI_READ8(s + c[3]));
  const __m128i f = _mm_set1_epi8((char)flip);
  return eini_zip_z(_mm_xor_si128(a, f), _mm_xor_si128(b, f));
}
EINI_T512 EINI_INLINE __m256 eini_load_qzs(const uint8_t *s, const int64_t *c) {
  return eini_fours(s, c, 0);
}
EINI_T512 EINI_INLINE __m256 eini_load_fzs(const uint8_t *s, const int64_t *c) {
  return eini_fours(s, c, -128);
}
EINI_T256 EINI_INLINE __m128 eini_load_wys(const uint16_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(EINI_READ8(s + c[0]), EINI_READ8(s + c[1])));
}
EINI_T256 EINI_INLINE __m128 eini_load_sys(const int8_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_cvtepi8_epi16(eini_read4(s + c[0])),
                                             _mm_cvtepi8_epi16(eini_read4(s + c[1]))));
}
EINI_T256 EINI_INLINE __m128 eini_load_uys(const uint8_t *s, const int64_t *c) {
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_cvtepu8_epi16(eini_read4(s + c[0])),
                                             _mm_cvtepu8_epi16(eini_read4(s + c[1]))));
}

EINI_T512 EINI_INLINE __m256 eini_run_wzs(const void *s) {
  return _mm256_castsi256_ps(EINI_READ32(s));
}
EINI_T512 EINI_INLINE __m256 eini_run_szs(const int8_t *s) {
  return _mm256_castsi256_ps(_mm256_cvtepi8_epi16(EINI_READ16(s)));
}
EINI_T512 EINI_INLINE __m256 eini_run_uzs(const uint8_t *s) {
  return _mm256_castsi256_ps(_mm256_cvtepu8_epi16(EINI_READ16(s)));
}
EINI_T512 EINI_INLINE __m256 eini_run_qzs(const uint8_t *s) { return eini_run_wzs(s); }
EINI_T512 EINI_INLINE __m256 eini_run_fzs(const uint8_t *s) {
  return _mm256_castsi256_ps(_mm256_xor_si256(EINI_READ32(s), _mm256_set1_epi8((char)-128)));
}
EINI_T256 EINI_INLINE __m128 eini_run_wys(const uint16_t *s) {
  return _mm_castsi128_ps(EINI_READ16(s));
}
EINI_T256 EINI_INLINE __m128 eini_run_sys(const int8_t *s) {
  return _mm_castsi128_ps(_mm_cvtepi8_epi16(EINI_READ8(s)));
}
EINI_T256 EINI_INLINE __m128 eini_run_uys(const uint8_t *s) {
  return _mm_castsi128_ps(_mm_cvtepu8_epi16(EINI_READ8(s)));
}

#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK f16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK bf16
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_N
#define EINI_PACK_N 2
#define EINI_PACK w
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK s
#define EINI_PACK_S int8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK u
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK w
#define EINI_PACK_S uint16_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK s
#define EINI_PACK_S int8_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_PACK u
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#undef EINI_PACK_N
#define EINI_PACK_N 4
#define EINI_PACK q
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_PACK f
#define EINI_PACK_S uint8_t
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#undef EINI_PACK_N
#undef EINI_KERNELS

// ---- dot products in lanes
#if EINI_CPU_X86
#define EINI_WY_TAG wy
#define EINI_WY_AT EINI_T256
#define EINI_WY_BYTES 4
#define EINI_WY_T int32_t
#define EINI_WY_V __m256i
#define EINI_WY_W 8
#define EINI_WY_LOAD(p) EINI_YI_LOAD(p)
#define EINI_WY_STORE(p, x) EINI_YI_STORE(p, x)
#define EINI_WY_STREAM(p, x, m) EINI_YI_STREAM(p, x, m)
#define EINI_WY_SET(x) _mm256_set1_epi32(x)
#define EINI_WY_ADD(a, b) _mm256_add_epi32(a, b)
#define EINI_WY_FMA(a, b, c) _mm256_add_epi32(c, _mm256_madd_epi16(a, b))

#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_DOTS
#define EINI_VEC EINI_WY
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#undef EINI_KERNELS
#endif  // EINI_CPU_X86

#if EINI_CPU_DOTS
#define EINI_BZ_TAG bz
#define EINI_BZ_AT EINI_TDOT
#define EINI_BZ_BYTES 4
#define EINI_BZ_T float
#define EINI_BZ_V __m512
#define EINI_BZ_W 16
#define EINI_BZ_LOAD EINI_ZS_LOAD
#define EINI_BZ_STORE EINI_ZS_STORE
#define EINI_BZ_STREAM EINI_ZS_STREAM
#define EINI_BZ_SET EINI_ZS_SET
#define EINI_BZ_ADD EINI_ZS_ADD
#define EINI_BZ_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))

// The same with products and sums of f32, for subnormal values: the instruction takes them for 0.
#define EINI_EZ_TAG ez
#define EINI_EZ_AT EINI_T512
#define EINI_EZ_BYTES 4
#define EINI_EZ_T float
#define EINI_EZ_V __m512
#define EINI_EZ_W 16
#define EINI_EZ_LOAD EINI_ZS_LOAD
#define EINI_EZ_STORE EINI_ZS_STORE
#define EINI_EZ_STREAM EINI_ZS_STREAM
#define EINI_EZ_SET EINI_ZS_SET
#define EINI_EZ_ADD EINI_ZS_ADD
#define EINI_EZ_BOTTOM(x) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16))
#define EINI_EZ_UPPER(x) \
  _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-65536)))
#define EINI_EZ_FMA(a, b, c)                               \
  _mm512_fmadd_ps(EINI_EZ_BOTTOM(a), EINI_EZ_BOTTOM(b),     \
                  _mm512_fmadd_ps(EINI_EZ_UPPER(a), EINI_EZ_UPPER(b), c))

#define EINI_WZ_TAG wz
#define EINI_WZ_AT EINI_TDOT
#define EINI_WZ_BYTES 4
#define EINI_WZ_T int32_t
#define EINI_WZ_V __m512i
#define EINI_WZ_W 16
#define EINI_WZ_LOAD EINI_ZI_LOAD
#define EINI_WZ_STORE EINI_ZI_STORE
#define EINI_WZ_STREAM EINI_ZI_STREAM
#define EINI_WZ_SET EINI_ZI_SET
#define EINI_WZ_ADD EINI_ZI_ADD
#define EINI_WZ_FMA(a, b, c) _mm512_dpwssd_epi32(c, a, b)

// U is unsigned, V signed.
#define EINI_QZ_TAG qz
#define EINI_QZ_AT EINI_TDOT
#define EINI_QZ_BYTES 4
#define EINI_QZ_T int32_t
#define EINI_QZ_V __m512i
#define EINI_QZ_W 16
#define EINI_QZ_LOAD EINI_ZI_LOAD
#define EINI_QZ_STORE EINI_ZI_STORE
#define EINI_QZ_STREAM EINI_ZI_STREAM
#define EINI_QZ_SET EINI_ZI_SET
#define EINI_QZ_ADD EINI_ZI_ADD
#define EINI_QZ_FMA(a, b, c) _mm512_dpbusd_epi32(c, b, a)

#define EINI_KERNELS EINI_KERNELS_TILE
#define EINI_TILE_KIND EINI_TILE_DOTS
#define EINI_VEC EINI_BZ
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_EZ
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_WZ
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#define EINI_TILE_KIND EINI_TILE_HEADS
#define EINI_VEC EINI_QZ
#include "einsum_cpu_kernels.h"
#undef EINI_TILE_KIND
#undef EINI_KERNELS

// Not 0: of 32 values of bf16 some are subnormal.
EINI_T512 EINI_INLINE uint32_t eini_gett_subnormal(__m512i x) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80), fraction = _mm512_set1_epi16(0x7f);
  return _mm512_testn_epi16_mask(x, exponent) & _mm512_test_epi16_mask(x, fraction);
}

// Whether a panel has subnormal values.
EINI_T512 static int eini_gett_done_bf16(const eini_gett_kit *kit, int is_u, int64_t lanes,
                                         int64_t rows, void *panel) {
  const int32_t *p = (const int32_t *)panel;
  uint32_t any = 0;
  int64_t i = 0;
  (void)kit, (void)is_u;
  for (; i + 16 <= lanes * rows; i += 16) any |= eini_gett_subnormal(_mm512_loadu_si512(p + i));
  for (; i < lanes * rows; i += 8)
    any |= eini_gett_subnormal(_mm512_castsi256_si512(EINI_READ32(p + i))) & 0xffff;
  return any != 0;
}

// U holds x + 128 where x is signed, V y - 128 where y is unsigned. With x = u - a, y = v + b the
// sum of x y is that of u v, plus b times the sum of x, less a times that of v: the rows that
// panels begin with. What a group lacks counts as 0 in x and y.
EINI_TDOT static int eini_gett_done_i8(const eini_gett_kit *kit, int is_u, int64_t lanes,
                                       int64_t rows, void *panel) {
  const __m256i ones = _mm256_set1_epi8(1);
  int32_t *head = (int32_t *)panel;
  const int32_t by = is_u ? (kit->flip_v ? 128 : 0) : kit->flip_u ? -128 : 0;
  const int64_t first = is_u && kit->flip_u ? -512 * rows : 0;
  for (int64_t i = 0; i < lanes; i += 8) {
    __m256i sum = _mm256_set1_epi32((int32_t)(uint32_t)(uint64_t)first);
    for (int64_t q = 1; q <= rows && by != 0; q++) {
      const __m256i x = EINI_READ32(head + q * lanes + i);
      sum = is_u ? _mm256_dpbusd_epi32(sum, x, ones) : _mm256_dpbusd_epi32(sum, ones, x);
    }
    _mm256_storeu_si256((__m256i *)(void *)(head + i),
                        _mm256_mullo_epi32(sum, _mm256_set1_epi32(by)));
  }
  return 0;
}
#endif  // EINI_CPU_DOTS

// ================================================================================================
// >>gett-amx  tiles of section gett in tile registers
// 32 columns of U by 32 lanes of V, of panels of section gett-narrow: 16 rows a step. Operands in
// lines along k, or in lanes, are packed here, whole lines at a time.
// ================================================================================================

#if EINI_CPU_DOTS

typedef struct eini_gett_regs { unsigned char t[8][16][64]; } eini_gett_regs;

// What is multiplied: U and V, unsigned or signed bytes; pairs of bf16.
enum { EINI_AMX_UU, EINI_AMX_US, EINI_AMX_SU, EINI_AMX_SS, EINI_AMX_BF16 };
enum { EINI_AMX_LANES = 32, EINI_AMX_RUNS = 4 };  // of a panel; runs of memory of its lanes

// Vectors of a row may overlap: what they add to is taken before any of them is stored.
EINI_T512 static void eini_gett_amx_leave(int ints, const eini_gett_tile_arg *a,
                                          const float *sums) {
  for (int j = 0; j < a->nu; j++, sums += 32) {
    float *d = (float *)a->dst + a->uoff[j];
    __m512 x[2] = {_mm512_loadu_ps(sums), _mm512_loadu_ps(sums + 16)};
    for (int i = 0; i < a->nv && a->how == EINI_GETT_ADD; i++) {
      const __m512 y = _mm512_loadu_ps(d + a->voff[i]);
      x[i] = ints ? _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y),
                                                         _mm512_castps_si512(x[i])))
                  : _mm512_add_ps(y, x[i]);
    }
    for (int i = 0; i < a->nv; i++)
      if (a->how == EINI_GETT_STREAM) EINI_ZS_STREAM(d + a->voff[i], x[i], a->lanes[i]);
      else _mm512_storeu_ps(d + a->voff[i], x[i]);
  }
}

// Reals from column to column of a whole tile whose columns are evenly apart, each one run; 0: of
// another.
EINI_T512 static int64_t eini_gett_amx_even(const eini_gett_tile_arg *a) {
  __mmask8 odd = 0;
  if (a->nu != EINI_AMX_LANES || a->nv != 2 || a->how == EINI_GETT_STREAM) return 0;
  const int64_t ld = a->uoff[1] - a->uoff[0];
  const __m512i next = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                          _mm512_set1_epi64(ld));
  if (ld < EINI_AMX_LANES || a->voff[1] != a->voff[0] + 16) return 0;
  for (int j = 0; j < EINI_AMX_LANES; j += 8) {
    const __m512i to = _mm512_add_epi64(_mm512_set1_epi64(a->uoff[0] + j * ld), next);
    odd |= _mm512_cmpneq_epi64_mask(to, _mm512_loadu_si512(a->uoff + j));
  }
  return odd == 0 ? ld : 0;
}

static void eini_gett_regs_load(unsigned char (*t)[64], const char *from, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(t[i], from + i * step, 64);
}

static void eini_gett_regs_save(unsigned char (*t)[64], char *to, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(to + i * step, t[i], 64);
}

// c[i][j] += the sum over k of the dot product of a[i][k] and b[k][j], four bytes each. What this
// takes as well, tile registers take for 0: subnormal values.
EINI_T512 static void eini_gett_regs_sum_bf16(unsigned char (*c)[64], unsigned char (*a)[64],
                                              unsigned char (*b)[64]) {
  for (int i = 0; i < 16; i++) {
    __m512 sum = _mm512_loadu_ps(c[i]), other = _mm512_setzero_ps();
    for (int k = 0; k < 16; k++) {
      int32_t pair;
      memcpy(&pair, a[i] + 4 * k, 4);
      const __m512 x = EINI_EZ_SET(eini_f32_from_bits((uint32_t)pair)), y = EINI_EZ_LOAD(b[k]);
      sum = _mm512_fmadd_ps(EINI_EZ_BOTTOM(x), EINI_EZ_BOTTOM(y), sum);
      other = _mm512_fmadd_ps(EINI_EZ_UPPER(x), EINI_EZ_UPPER(y), other);
    }
    _mm512_storeu_ps(c[i], _mm512_add_ps(sum, other));
  }
}

static void eini_gett_regs_sum_i8(unsigned char (*c)[64], unsigned char (*a)[64],
                              unsigned char (*b)[64], int a_signed, int b_signed) {
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 16; k++)
      for (int j = 0; j < 16; j++) {
        uint32_t sum;
        memcpy(&sum, c[i] + 4 * j, 4);
        for (int h = 0; h < 4; h++) {
          const int x = a[i][4 * k + h], y = b[k][4 * j + h];
          sum += (uint32_t)((a_signed && x > 127 ? x - 256 : x) *
                            (b_signed && y > 127 ? y - 256 : y));
        }
        memcpy(c[i] + 4 * j, &sum, 4);
      }
}

static void eini_gett_regs_dot(int kind, unsigned char (*c)[64], unsigned char (*a)[64],
                               unsigned char (*b)[64]) {
  if (kind == EINI_AMX_BF16) eini_gett_regs_sum_bf16(c, a, b);
  else eini_gett_regs_sum_i8(c, a, b, (kind & EINI_AMX_SU) != 0, (kind & EINI_AMX_US) != 0);
}

#define EINI_KERNELS EINI_KERNELS_AMX
#define EINI_AMX regs
#define EINI_AMX_AT
#define EINI_AMX_ZERO(n) memset(regs.t[n], 0, sizeof regs.t[n])
#define EINI_AMX_LOAD(n, p, step) eini_gett_regs_load(regs.t[n], (const char *)(p), step)
#define EINI_AMX_SAVE(n, p, step) eini_gett_regs_save(regs.t[n], (char *)(void *)(p), step)
#define EINI_AMX_DOT(c, a, b) eini_gett_regs_dot(kind, regs.t[c], regs.t[a], regs.t[b])
#include "einsum_cpu_kernels.h"
#undef EINI_AMX_DOT
#if EINI_CPU_AMX
#define EINI_AMX amx
#define EINI_AMX_AT EINI_TAMX
#define EINI_AMX_ZERO(n) _tile_zero(n)
#define EINI_AMX_LOAD(n, p, step) _tile_loadd(n, p, step)
#define EINI_AMX_SAVE(n, p, step) _tile_stored(n, p, step)
#define EINI_AMX_DOT(c, a, b)                            \
  do {                                                   \
    if (kind == EINI_AMX_BF16) _tile_dpbf16ps(c, a, b);  \
    else if (kind == EINI_AMX_SS) _tile_dpbssd(c, a, b); \
    else if (kind == EINI_AMX_SU) _tile_dpbsud(c, a, b); \
    else if (kind == EINI_AMX_US) _tile_dpbusd(c, a, b); \
    else _tile_dpbuud(c, a, b);                          \
  } while (0)
#include "einsum_cpu_kernels.h"
#undef EINI_AMX_DOT

// All eight registers whole: 16 rows of 64 bytes. A constant, since some compilers take the
// instruction to read 8 bytes, and leave out what is stored behind them.
EINI_TAMX static void eini_gett_amx_begin(void) {
  static const struct {
    unsigned char palette, zero[15];
    uint16_t bytes[16];
    unsigned char rows[16];
  } config = {1, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
}
EINI_TAMX static void eini_gett_amx_end(void) { _tile_release(); }
#endif  // EINI_CPU_AMX
#undef EINI_KERNELS

// By whether U and V are signed; in C where the machine has no such tiles.
static eini_gett_tile_fn eini_gett_amx_tile(int has, int bf16, int u_signed, int v_signed) {
  static const eini_gett_tile_fn in_c[4] = {eini_gett_regs_uu, eini_gett_regs_us,
                                            eini_gett_regs_su, eini_gett_regs_ss};
  const int i = 2 * u_signed + v_signed;
#if EINI_CPU_AMX
  static const eini_gett_tile_fn own[4] = {eini_gett_amx_uu, eini_gett_amx_us, eini_gett_amx_su,
                                           eini_gett_amx_ss};
  if (!(has & EINI_HAS_AMX_PLAIN)) return bf16 ? eini_gett_amx_bf16 : own[i];
#endif
  (void)has;
  return bf16 ? eini_gett_regs_bf16 : in_c[i];
}

// U's panels are turned, 16 lanes by 16 rows at a time.
EINI_T512 static void eini_gett_amx_turn(int64_t lanes, int64_t rows, float *p) {
  static const int64_t o[8] = {0, 16, 32, 48, 64, 80, 96, 112};
  const int64_t step[8] = {0, lanes, 2 * lanes, 3 * lanes, 4 * lanes, 5 * lanes, 6 * lanes,
                           7 * lanes};
  for (int64_t q = 0; q < rows; q += 16)
    for (int64_t i = 0; i < lanes; i += 16) {
      float turned[16 * 16], *b = p + q * lanes + i;
      for (int h = 0; h < 4; h++)
        eini_pack_swap_zs(b + h / 2 * 8 * lanes + h % 2 * 8, step, NULL,
                          turned + h % 2 * 128 + h / 2 * 8, o);
      for (int r = 0; r < 16; r++) memcpy(b + r * lanes, turned + 16 * r, 64);
    }
}
static int eini_gett_done_amx(const eini_gett_kit *kit, int is_u, int64_t lanes, int64_t rows,
                              void *panel) {
  if (is_u) eini_gett_amx_turn(lanes, rows, (float *)panel);
  return kit->form == EINI_GETT_AMX_BF16 && eini_gett_done_bf16(kit, is_u, lanes, rows, panel);
}

// Panels of U whose 64 bytes along k follow each other: they are rows of tiles as they are.
EINI_T512 static int eini_gett_amx_lines(const eini_gett_kit *kit, const eini_gett_pack_arg *a,
                                         int64_t panel) {
  const int64_t lanes = EINI_AMX_LANES, size = 4 / kit->group, each = 16 * kit->group;
  uint32_t odd = 0;
  for (int64_t p = 0; p < eini_up(a->np, lanes); p++) {
    const char *s = (const char *)a->src + a->row[eini_min64(p, a->np - 1)] * size;
    int32_t *d = (int32_t *)a->dst + p / lanes * panel + p % 16 * lanes + p % lanes / 16 * 16;
    for (int64_t q = 0; q < a->nk; q += each, d += 16 * lanes) {
      const int64_t rest = (a->nk - q) * size;
      const __mmask64 m = rest < 64 ? ((__mmask64)1 << rest) - 1 : ~(__mmask64)0;
      const __m512i x = _mm512_maskz_loadu_epi8(m, s + a->col[q] * size);
      odd |= eini_gett_subnormal(x);
      _mm512_storeu_si512(d, x);
    }
  }
  return kit->form == EINI_GETT_AMX_BF16 && odd != 0;
}

// What the lanes of a panel are made of: from where each run, less its first lane.
typedef struct eini_amx_runs {
  int n;
  int64_t from[EINI_AMX_RUNS];
  uint32_t lanes[EINI_AMX_RUNS];
} eini_amx_runs;

// Of the panel whose first position is p. 0: they are too many.
static int eini_gett_amx_runs(const eini_gett_pack_arg *a, int64_t p, eini_amx_runs *r) {
  r->n = 0;
  for (int64_t i = 0; i < EINI_AMX_LANES && p + i < a->np; i++) {
    const int64_t from = a->row[p + i] - i;
    if (r->n == 0 || from != r->from[r->n - 1]) {
      if (r->n == EINI_AMX_RUNS) return 0;
      r->from[r->n] = from, r->lanes[r->n++] = 0;
    }
    r->lanes[r->n - 1] |= 1u << i;
  }
  return 1;
}

// 32 values of two bytes, or as many pairs of one byte, of which the second may not be there.
EINI_T512 EINI_INLINE __m512i eini_gett_amx_row(const eini_amx_runs *r, const void *src, int bytes,
                                                const int64_t *col, int64_t n) {
  __m512i x = _mm512_setzero_si512();
  if (!bytes) {
    for (int i = 0; i < r->n && n > 0; i++)
      x = _mm512_mask_loadu_epi16(x, r->lanes[i], (const void *)((uintptr_t)src +
                                      2 * (uintptr_t)(r->from[i] + col[0])));
    return x;
  }
  for (int h = 0; h < 2 && h < n; h++) {
    __m256i y = _mm256_setzero_si256();
    for (int i = 0; i < r->n; i++)
      y = _mm256_mask_loadu_epi8(y, r->lanes[i], (const void *)((uintptr_t)src +
                                     (uintptr_t)(r->from[i] + col[h])));
    const __m512i z = _mm512_cvtepu8_epi16(y);
    x = h == 0 ? z : _mm512_or_si512(x, _mm512_slli_epi16(z, 8));
  }
  return x;
}

// Panels whose lanes are few runs of memory: two rows of values of two bytes become one of pairs.
// -1: they are not.
EINI_T512 static int eini_gett_amx_zip(const eini_gett_kit *kit, int is_u,
                                       const eini_gett_pack_arg *a, int64_t panel, int64_t rows) {
  const int bytes = kit->group == 4, half = kit->group / 2;
  const __m512i first = _mm512_set_epi32(
      0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a, 0x290009, 0x280008, 0x270007,
      0x260006, 0x250005, 0x240004, 0x230003, 0x220002, 0x210001, 0x200000);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  uint32_t odd = 0;
  eini_amx_runs r;
  for (int64_t p = 0; p < a->np; p += EINI_AMX_LANES) {
    int32_t *to = (int32_t *)a->dst + p / EINI_AMX_LANES * panel, *d = to;
    if (!eini_gett_amx_runs(a, p, &r)) return -1;
    for (int64_t q = 0; q < a->nk; q += kit->group, d += EINI_AMX_LANES) {
      const __m512i x = eini_gett_amx_row(&r, a->src, bytes, a->col + q, a->nk - q);
      const __m512i y = eini_gett_amx_row(&r, a->src, bytes, a->col + q + half, a->nk - q - half);
      odd |= eini_gett_subnormal(x) | eini_gett_subnormal(y);
      _mm512_storeu_si512(d, _mm512_permutex2var_epi16(x, first, y));
      _mm512_storeu_si512(d + 16, _mm512_permutex2var_epi16(x, second, y));
    }
    memset(d, 0, (size_t)(rows * EINI_AMX_LANES - (d - to)) * sizeof *d);
    if (is_u) eini_gett_amx_turn(EINI_AMX_LANES, rows, (float *)(void *)to);
  }
  return kit->form == EINI_GETT_AMX_BF16 && odd != 0;
}

// Packs all panels of a side, of so many rows, where its lines, or its lanes, lie so. 1: some value
// is subnormal; -1: they do not.
static int eini_gett_amx_pack(const eini_gett_kit *kit, int is_u, const eini_gett_pack_arg *a,
                              int64_t panel, int64_t rows) {
  if (a->lanes != EINI_AMX_LANES) return -1;
  if (is_u && a->kind == EINI_GETT_ALONG && a->step == 1 &&
      (a->count == a->nk || a->count % (16 * kit->group) == 0))
    return eini_gett_amx_lines(kit, a, panel);
  return eini_gett_amx_zip(kit, is_u, a, panel, rows);
}
#endif  // EINI_CPU_DOTS

// ================================================================================================
// >>gett-forms  which form of panels a problem may have
// Takes dtypes of operands and what the machine has; gives kernels and packing.
// ================================================================================================

// Whether an operand is to be converted, alone.
static int eini_gett_narrow(const ein_side *s) {
  return s->form == EIN_FORM_CONVERT && s->nop == 1;
}

// Whether the store is a conversion from the compute dtype of what is stored, and nothing else.
static int eini_gett_converts(const ein_contract *c) {
  return !c->plain_out && !c->scaled && c->store == NULL && c->nextra == 0 &&
         c->out_dtype != EIN_BOOL && c->out_dtype != c->type &&
         ein_dtype_compute(c->out_dtype) == c->type;
}

// What packs a narrow operand into panels as they are; NULL: it is packed as it is, and values made
// of that.
static eini_gett_pack_fn eini_gett_converter(const eini_gett_kit *k, const ein_side *s, int is_u) {
  if (!eini_gett_narrow(s)) return NULL;
  const ein_dtype t = s->dtype[0];
#if EINI_CPU_X86
  const int wide = (is_u ? k->gu : k->gv) == 8, vectors = k->isa >= EINI_ISA_AVX2;
  const int flip = is_u ? k->flip_u : k->flip_v;
  if (k->form == EINI_GETT_BF16 || k->form == EINI_GETT_AMX_BF16) return eini_pack_wzs;
  if (k->form == EINI_GETT_I8 || k->form == EINI_GETT_AMX_I8)
    return flip ? eini_pack_fzs : eini_pack_qzs;
  if (k->form == EINI_GETT_I16)
    return t == EIN_I16  ? (wide ? eini_pack_wzs : eini_pack_wys)
           : t == EIN_I8 ? (wide ? eini_pack_szs : eini_pack_sys)
                         : (wide ? eini_pack_uzs : eini_pack_uys);
  if (k->type == EIN_F32 && vectors && t == EIN_F16)
    return wide ? eini_pack_f16zs : eini_pack_f16ys;
  if (k->type == EIN_F32 && vectors && t == EIN_BF16)
    return wide ? eini_pack_bf16zs : eini_pack_bf16ys;
#else  // EINI_CPU_X86
  (void)is_u;
#endif
  if (k->type == EIN_F32 && t == EIN_F16) return eini_pack_f16ps;
  return k->type == EIN_F32 && t == EIN_BF16 ? eini_pack_bf16ps : NULL;
}

#if EINI_CPU_X86
// Whether panels of a form hold what a side converts.
static int eini_gett_takes(int form, const ein_side *s) {
  if (!eini_gett_narrow(s)) return 0;
  const ein_dtype t = s->dtype[0];
  if (form == EINI_GETT_BF16 || form == EINI_GETT_AMX_BF16) return t == EIN_BF16;
  return t == EIN_I8 || t == EIN_U8 || (form == EINI_GETT_I16 && t == EIN_I16);
}

// The tiles of dot products; 0: the machine has none.
static int eini_gett_kit_dots(const eini_cpu *cpu, int form, eini_gett_kit *k) {
  k->size = 4, k->group = 2, k->cols = 4;
  if (form == EINI_GETT_I16) k->tile = eini_gett_sum_mul_wy, k->fold = eini_gett_sum_yi;
  eini_gett_shape(k, 8, 3, 4);
#if EINI_CPU_DOTS
  const int plain = (cpu->has & EINI_HAS_AMX_PLAIN) != 0;
  if (form == EINI_GETT_BF16 && cpu->has & EINI_HAS_BF16) {
    k->tile = eini_gett_sum_mul_bz, k->exact = eini_gett_sum_mul_ez, k->fold = eini_gett_sum_zs;
    k->done = eini_gett_done_bf16;
  }
  if (form == EINI_GETT_I16 && cpu->has & EINI_HAS_VNNI)
    k->tile = eini_gett_sum_mul_wz, k->fold = eini_gett_sum_zi;
  if (form == EINI_GETT_I8 && cpu->has & EINI_HAS_VNNI) {
    k->tile = eini_gett_sum_mul_qz, k->fold = eini_gett_sum_zi;
    k->group = 4, k->head = 1, k->done = eini_gett_done_i8;
  }
  if (k->tile != NULL && k->tile != eini_gett_sum_mul_wy) eini_gett_shape(k, 16, 3, 8);
  if (form == EINI_GETT_AMX_BF16 && (plain || cpu->has & EINI_HAS_AMX_BF16))
    k->exact = eini_gett_regs_bf16, k->fold = eini_gett_sum_zs;
  if (form == EINI_GETT_AMX_I8 && (plain || cpu->has & EINI_HAS_AMX_I8))
    k->fold = eini_gett_sum_zi, k->group = 4;
  if (eini_gett_tiled(k) && k->fold != NULL) {
    k->tile = eini_gett_amx_tile(cpu->has, form == EINI_GETT_AMX_BF16, 0, 0);
    k->done = eini_gett_done_amx, k->round = 16, k->cols = 1;
    eini_gett_shape(k, 16, 2, 32);
  }
#endif  // EINI_CPU_DOTS
  return k->tile != NULL && cpu->isa >= EINI_ISA_AVX2;
}
#endif  // EINI_CPU_X86

// The kernels of a contraction with panels of a form; 0: there are none.
static int eini_gett_pick_form(const eini_cpu *cpu, const ein_contract *c, int form,
                               eini_gett_kit *k) {
  if (form == EINI_GETT_WHOLE) return eini_gett_pick(cpu, c->type, c->pair, k);
#if EINI_CPU_X86
  const ein_dtype type = form == EINI_GETT_BF16 || form == EINI_GETT_AMX_BF16 ? EIN_F32 : EIN_I32;
  memset(k, 0, sizeof *k);
  if (c->pair != EIN_PAIR_SUM_MUL || c->type != type || !eini_gett_takes(form, &c->p) ||
      !eini_gett_takes(form, &c->q))
    return 0;
  k->parts = k->round = 1;
  k->isa = cpu->isa, k->type = (int)type, k->form = form;
  if (!eini_gett_kit_dots(cpu, form, k)) return 0;
  eini_gett_kit_pack(cpu->isa, type, k);
  return 1;
#else  // EINI_CPU_X86
  return 0;
#endif
}

// What depends on which side is U.
static void eini_gett_dress(const eini_cpu *cpu, eini_gett_kit *k, const ein_side *v,
                            const ein_side *u) {
#if EINI_CPU_DOTS
  const int u_signed = u->nop > 0 && u->dtype[0] == EIN_I8;
  const int v_signed = v->nop > 0 && v->dtype[0] == EIN_I8;
  if (k->form == EINI_GETT_I8) k->flip_u = u_signed, k->flip_v = !v_signed;
  if (k->form == EINI_GETT_AMX_I8) k->tile = eini_gett_amx_tile(cpu->has, 0, u_signed, v_signed);
#else
  (void)cpu, (void)k, (void)v, (void)u;
#endif
}

// Around the tiles of a run.
static void eini_gett_begin(const eini_cpu *cpu, const eini_gett_kit *k) {
#if EINI_CPU_AMX
  if (eini_gett_tiled(k) && !(cpu->has & EINI_HAS_AMX_PLAIN)) eini_gett_amx_begin();
#else
  (void)cpu, (void)k;
#endif
}

static void eini_gett_end(const eini_cpu *cpu, const eini_gett_kit *k) {
#if EINI_CPU_AMX
  if (eini_gett_tiled(k) && !(cpu->has & EINI_HAS_AMX_PLAIN)) eini_gett_amx_end();
#else
  (void)cpu, (void)k;
#endif
}

// ================================================================================================
// >>gett-boxes  boxes and tables of section gett
// The indices of both sides and k in boxes; offsets of a box's rows in tables.
// ================================================================================================

enum { EINI_GETT_AXES = 12, EINI_GETT_OPS = 8 };

typedef struct eini_gett_axes {      // V, U or K
  int n;
  const int64_t *extent, *box;
  int64_t total;                     // number of boxes
  int inner;                         // the axis along which boxes follow each other; -1: the last
  int64_t early;                     // boxes of the last axis but the first start so much earlier
  int64_t at[EINI_GETT_AXES], size[EINI_GETT_AXES];  // the current box
} eini_gett_axes;

// A packed box that several threads make and use: a pair of counts of its shares, begun and made.
typedef struct eini_gett_slot { uint32_t begun, made; } eini_gett_slot;

static uint32_t eini_gett_begun(const eini_gett_slot *slot) {
#if EINI_CPU_THREADS
  return __atomic_load_n(&slot->begun, __ATOMIC_RELAXED);
#else
  return slot->begun;
#endif
}

typedef struct eini_gett_hand {      // one side of the problem: V or U
  const ein_side *s;
  eini_gett_axes g;
  int64_t panel;                     // elements from panel to panel
  int64_t lanes, granule, fill, pad; // of a panel; np is a multiple of fill; runs of pad
  eini_gett_pack_fn pack;
  int64_t run, step, n, np;          // of the current box: last extent, filled up; positions
  int64_t *row[EINI_GETT_OPS], *col[EINI_GETT_OPS], *place, *out;
  int64_t *left;                     // V: positions up to the end of a run of the output, or
                                     // less than 0: as many to skip
  int64_t whole;                     // positions of such a run
  unsigned char *flat[EINI_GETT_OPS];
  int kind[EINI_GETT_OPS];
  int64_t kstep[EINI_GETT_OPS], kcount[EINI_GETT_OPS];
  int64_t *across[EINI_GETT_OPS], *first[EINI_GETT_OPS], nfirst[EINI_GETT_OPS];
  int64_t shape[EINI_GETT_AXES], nk; // what the tables were built for
  int64_t kshape[EINI_GETT_AXES];
  const char *have[EINI_GETT_OPS];   // what the panels hold
  int in_place;                      // read where it is: no panels
  int64_t shift;                     // w: the last vector of a run ends with it; 0: it is filled up
  int64_t lead, led;                 // positions that fill up runs in front; those of the tables
  int64_t even, row_step, kby;       // in place: positions in even steps; from k to k + 1
  int64_t block;                     // positions after which the lines of others are asked for
  int64_t *soon, nsoon, most_soon;   // bytes to the lines of a block; NULL: not asked for ahead
  int packed_soon;                   // they are those of the next panel
  int fresh;
  int odd;                           // panels have values that only the exact tile takes
  char *panels;
  eini_gett_slot *slots;             // of all boxes, and what lies in them; NULL: packed for itself
  char *all;
  int64_t slot_bytes, box;           // box: the current one's number
  int64_t packed;                    // bytes, so far
  char *spare[EINI_GETT_OPS];        // an operand as it is stored; NULL: in the panels
} eini_gett_hand;

static int64_t eini_gett_product(int n, const int64_t *x) {
  int64_t r = 1;
  for (int i = 0; i < n; i++) r *= x[i];
  return r;
}

static void eini_gett_axes_init(eini_gett_axes *g, const ein_axes *x, const int64_t *box) {
  g->n = x->n, g->extent = x->extent, g->box = box, g->total = 1, g->inner = -1, g->early = 0;
  for (int i = 0; i < g->n; i++) g->total *= (x->extent[i] + box[i] - 1) / box[i];
}

// Where an operand is most of the traffic, boxes follow its layout: what was fetched beside the
// lines of one box is still near for the next.
static void eini_gett_follow(eini_gett_axes *g, const ein_side *s, int64_t k, int64_t other) {
  if (s->nop == 0 || k < other) return;
  const int64_t *stride = s->row[0];
  for (int i = 0; i < g->n; i++) {
    if (g->box[i] >= g->extent[i] || stride[i] == 0) continue;
    if (g->inner < 0 || eini_abs64(stride[i]) < eini_abs64(stride[g->inner])) g->inner = i;
  }
}

// Boxes are counted row-major, but first along the inner axis.
static void eini_gett_box(eini_gett_axes *g, int64_t index) {
  for (int t = g->inner >= 0 ? g->n : g->n - 1; t >= 0; t--) {
    if (t == g->inner) continue;
    const int i = t < g->n ? t : g->inner;
    const int64_t e = g->extent[i], b = g->box[i], count = (e + b - 1) / b;
    const int64_t c = index % count, early = i == g->n - 1 ? g->early : 0;
    g->at[i] = c > 0 ? c * b - early : 0;
    g->size[i] = (c < count - 1 ? (c + 1) * b - early : e) - g->at[i];
    index /= count;
  }
}

static int64_t eini_gett_offset(const eini_gett_axes *g, const int64_t *stride) {
  int64_t r = 0;
  for (int i = 0; i < g->n; i++) r += g->at[i] * stride[i];
  return r;
}

// Offsets of all positions of a box; runs along the last axis are filled up to pad, all to fill.
static void eini_gett_table(int n, const int64_t *size, const int64_t *stride, int64_t pad,
                            int64_t fill, int64_t *out) {
  int64_t count = 1;
  out[0] = 0;
  for (int i = n - 1; i >= 0; i--) {
    const int64_t s = stride[i];
    if (count == 1)
      for (int64_t j = 1; j < size[i]; j++) out[j] = j * s;
    else
      for (int64_t j = 1; j < size[i]; j++)
        for (int64_t p = 0; p < count; p++) out[j * count + p] = out[p] + j * s;
    count *= size[i];
    if (i == n - 1)
      for (; count % pad != 0; count++) out[count] = out[count - 1];
  }
  if (n == 0)
    for (; count % pad != 0; count++) out[count] = out[count - 1];
  for (; count % fill != 0; count++) out[count] = out[count - 1];
}

// The axis on which `run` elements that follow each other in memory go on; -1: none.
static int eini_gett_goes_on(int n, const int64_t *extent, const int64_t *stride, int64_t run) {
  for (int i = 0; i < n; i++)
    if (extent[i] > 1 && stride[i] == run) return i;
  return -1;
}

// Whether operand o has runs of memory across positions that are whole granules apart: of axes each
// of which continues the one before it. Makes the tables of a run and of where runs begin.
static int eini_gett_across(eini_gett_hand *h, int o) {
  const int n = h->g.n;
  int64_t run = 1, step, count = 1;
  int in[EINI_GETT_AXES] = {0};
  if (h->step % h->granule != 0) return 0;
  int64_t *across = h->across[o], *first = h->first[o];
  across[0] = 0;
  for (int i; (i = eini_gett_goes_on(n - 1, h->g.size, h->s->row[o], run)) >= 0;) {
    step = h->step;
    for (int t = i + 1; t < n - 1; t++) step *= h->g.size[t];
    for (int64_t j = 1; j < h->g.size[i]; j++)
      for (int64_t t = 0; t < run; t++) across[j * run + t] = across[t] + j * step;
    in[i] = 1, run *= h->g.size[i];
  }
  if (run < h->granule) return 0;
  first[0] = 0;
  step = h->step;
  for (int64_t p = h->granule; p < h->step; p += h->granule) first[count++] = p;
  for (int i = n - 2; i >= 0; step *= h->g.size[i--]) {
    if (in[i]) continue;
    for (int64_t j = 1; j < h->g.size[i]; j++)
      for (int64_t t = 0; t < count; t++) first[j * count + t] = first[t] + j * step;
    count *= h->g.size[i];
  }
  h->kind[o] = EINI_GETT_ACROSS, h->kcount[o] = run, h->nfirst[o] = count;
  return 1;
}

// Where operand o is contiguous within the current boxes.
static void eini_gett_kind(eini_gett_hand *h, const eini_gett_axes *k, int o) {
  const int n = h->g.n;
  h->kind[o] = n > 0 && h->s->row[o][n - 1] == 1 ? EINI_GETT_ROWS : EINI_GETT_NOWHERE;
  if (n > 0 && h->s->row[o][n - 1] == 1 && h->g.size[n - 1] >= h->granule) return;
  if (eini_gett_across(h, o)) return;
  int64_t step = h->step;
  for (int i = n - 2; i >= 0; step *= h->g.size[i--]) {
    if (h->s->row[o][i] != 1 || h->g.size[i] < h->granule) continue;
    h->kind[o] = EINI_GETT_UNEVEN, h->kstep[o] = step, h->kcount[o] = h->g.size[i];
    return;
  }
  step = 1;
  for (int i = k->n - 1; i >= 0; i--) {
    if (h->s->k[o][i] == 1 && k->size[i] >= h->granule) {
      h->kind[o] = EINI_GETT_ALONG, h->kstep[o] = step, h->kcount[o] = k->size[i];
      return;
    }
    step *= k->size[i];
  }
}

// How many trailing positions of a box lie in even steps, and the step.
static int64_t eini_gett_even(int n, const int64_t *size, const int64_t *stride, int64_t *step) {
  int64_t count = 1;
  *step = 0;
  for (int i = n - 1; i >= 0; i--) {
    if (size[i] == 1) continue;
    if (count == 1) *step = stride[i];
    else if (stride[i] != *step * count) break;
    count *= size[i];
  }
  return count;
}

// The lines of a block of a side that is read in place: all k of the positions in even steps if it
// is contiguous along them, else of the columns of one tile.
static void eini_gett_soon_in_place(eini_gett_hand *h, int64_t nk, int64_t size) {
  const int64_t lane = 64 / size;
  h->nsoon = 0;
  if (h->soon == NULL || (h->row_step != 1 && h->kby != 1)) return;
  h->block = h->row_step == 1 ? h->even : eini_min64(h->even, h->lanes);
  int64_t n = 0;
  if (h->row_step == 1) {
    for (int64_t q = 0; q < nk; q++)
      for (int64_t t = 0; t < h->even && n < h->most_soon; t += lane)
        h->soon[n++] = (q * h->kby + t) * size;
  } else {
    for (int64_t q = 0; q < nk; q += lane)
      for (int64_t t = 0; t < h->block && n < h->most_soon; t++)
        h->soon[n++] = (t * h->row_step + q) * size;
  }
  for (; n % nk != 0 && n < h->most_soon; n++) h->soon[n] = h->soon[n - 1];
  h->nsoon = n;
}

// The lines of a block that is packed, about in the order in which packing reads them. Where rows
// do not start lines, each stretch of a line lies in two: its last element's is asked for, as the
// other came with the stretch before.
static void eini_gett_soon_packed(eini_gett_hand *h, int64_t nk, int64_t size) {
  const int64_t lane = 64 / size, step = h->kstep[0], count = h->kcount[0], most = h->most_soon;
  const int64_t *row = h->row[0], *col = h->col[0];
  int64_t n = 0;
  h->nsoon = 0;
  if (most == 0) return;
  if (h->kind[0] == EINI_GETT_ROWS)
    for (int64_t q = 0; q < nk; q++)
      for (int64_t p = 0; p < h->n; p += h->step)
        for (int64_t t = p, end = p + h->step; t < end && n < most; t += lane)
          h->soon[n++] = (row[eini_min64(t + lane, end) - 1] + col[q]) * size;
  if (h->kind[0] == EINI_GETT_ALONG)
    for (int64_t p = 0; p < h->n; p++)
      for (int64_t q = 0; q < nk; q += step * count)
        for (int64_t t = q; t < q + step * count; t += step * lane)
          for (int64_t i = eini_min64(t + step * lane, q + step * count) - step, end = i + step;
               i < end && n < most; i++)
            h->soon[n++] = (row[p] + col[i]) * size;
  if (h->kind[0] == EINI_GETT_ACROSS)
    for (int64_t i = 0; i < h->nfirst[0]; i++)
      for (int64_t p = h->first[0][i], end = p + h->granule; p < end; p++)
        for (int64_t q = 0; q < nk; q++)
          for (int64_t t = 0; t < count && n < most; t += lane)
            h->soon[n++] =
                (row[p + h->across[0][eini_min64(t + lane, count) - 1]] + col[q]) * size;
  for (; n % nk != 0 && n < h->most_soon; n++) h->soon[n] = h->soon[n - 1];
  h->nsoon = n;
}

// The lines of a panel.
static void eini_gett_soon_panel(eini_gett_hand *h, int64_t rows, int64_t size) {
  const int64_t last = (h->lanes * rows * size + 63) / 64 - 1;
  for (int64_t q = 0; q < rows; q++) h->soon[q] = eini_min64(q, last) * 64;
  h->nsoon = rows;
}

// Elements from panel to panel: an odd number of lines, so that stores to one place of each panel
// in turn reach all sets of the cache.
static int64_t eini_gett_panel(int64_t lanes, int64_t rows, int64_t size) {
  return ((lanes * rows * size + 63) / 64 | 1) * 64 / size;
}

// Runs are filled up in front, too, so that vectors start where lines of the output do: with copies
// of the first element, or, in the table of the output, with what lies before it and is not stored.
static void eini_gett_lead(const eini_gett_hand *h, int64_t by, int64_t *table) {
  if (h->lead == 0) return;
  for (int64_t p = 0; p < h->n; p += h->step) {
    memmove(table + p + h->lead, table + p, (size_t)(h->step - h->lead) * sizeof(int64_t));
    for (int64_t i = 0; i < h->lead; i++) table[p + i] = table[p + h->lead] - by * (h->lead - i);
  }
}

// Moves the last vector of each run back to where it ends with the run: lanes that two vectors of
// one tile hold are the same sums, stored twice.
static void eini_gett_shift(const eini_gett_hand *h, int64_t *table) {
  if (h->shift == 0) return;
  for (int64_t p = 0; p < h->n; p += h->step)
    memmove(table + p + h->step - h->shift, table + p + h->run - h->shift,
            (size_t)h->shift * sizeof(int64_t));
}

// Runs of the output go on over axes that follow each other in it, where nothing is filled up.
static void eini_gett_runs(eini_gett_hand *h, const int64_t *out_stride) {
  int64_t run = h->run, step = h->step;
  for (int i = h->g.n - 2; i >= 0 && run == step && out_stride[h->g.n - 1] == 1; i--) {
    if (h->g.size[i] == 1) continue;
    if (out_stride[i] != run) break;
    run *= h->g.size[i], step = run;
  }
  h->whole = run;
  for (int64_t p = 0, at = 0; p < h->np; p++, at = at + 1 < step ? at + 1 : 0)
    h->left[p] = at < run ? run - at : at - step;
}

// Builds the tables of one side for its current box and the current box of K, if they changed.
static void eini_gett_tables(eini_gett_hand *h, const eini_gett_axes *k, int64_t nk,
                             const eini_gett_kit *kit, const int64_t *out_stride) {
  const size_t bytes = (size_t)h->g.n * sizeof(int64_t), kbytes = (size_t)k->n * sizeof(int64_t);
  const int same = h->nk >= 0 && h->led == h->lead && memcmp(h->shape, h->g.size, bytes) == 0;
  if (same && memcmp(h->kshape, k->size, kbytes) == 0) return;
  const int n = h->g.n;
  h->fresh = 0;
  if (!same) {
    const int64_t runs = eini_gett_product(n - 1, h->g.size);
    h->run = n > 0 ? h->g.size[n - 1] : 1;
    h->step = eini_up(h->lead + h->run, h->pad), h->led = h->lead;
    h->n = runs * h->step;
    h->np = eini_up(h->n, h->fill);
    eini_gett_table(n, h->g.size, out_stride, h->step, h->fill, h->out);
    eini_gett_shift(h, h->out);
    eini_gett_lead(h, 1, h->out);
    if (h->left != NULL) eini_gett_runs(h, out_stride);
  }
  const int64_t g = h->granule, rows = eini_gett_rows(kit, nk), size = kit->size;
  const int64_t panel = eini_gett_panel(h->lanes, kit->head + rows, size);
  h->panel = panel;
  for (int o = 0; o < h->s->nop; o++) {
    eini_gett_table(k->n, k->size, h->s->k[o], 1, 1, h->col[o]);
    if (!same) {
      int64_t *row = h->row[o];
      eini_gett_table(n, h->g.size, h->s->row[o], h->step, h->fill, row);
      eini_gett_shift(h, row);
      eini_gett_lead(h, 0, row);
      for (int64_t p = 0; p < h->np; p += g) {
        int flat = 1;
        for (int64_t i = 1; i < g; i++) flat &= row[p + i] == row[p] + i;
        h->flat[o][p / g] = (unsigned char)flat;
      }
    }
    eini_gett_kind(h, k, o);
  }
  for (int64_t p = 0; p < h->np; p += g)
    h->place[p / g] = p / h->lanes * panel + p % h->lanes;
  if (h->in_place) {
    h->even = eini_gett_even(n, h->g.size, h->s->row[0], &h->row_step);
    eini_gett_even(k->n, k->size, h->s->k[0], &h->kby);
    eini_gett_soon_in_place(h, nk, size);
  } else if (h->packed_soon) {
    eini_gett_soon_panel(h, rows, size);
  } else {
    eini_gett_soon_packed(h, nk, size);
  }
  memcpy(h->shape, h->g.size, bytes);
  memcpy(h->kshape, k->size, kbytes);
  h->nk = nk;
}

// Packs an operand of another size than the panels' elements, few k at a time: lines that are
// contiguous along k are then read once.
static void eini_gett_pack_other(const eini_gett_pack_arg *a, int64_t granule, int64_t size) {
  for (int64_t q0 = 0; q0 < a->nk; q0 += 16)
    for (int64_t p = 0; p < a->np; p += granule)
      for (int64_t q = q0; q < eini_min64(q0 + 16, a->nk); q++) {
        const int64_t *row = a->row + p;
        const char *s = (const char *)a->src + a->col[q] * size;
        char *d = (char *)a->dst + (a->place[p / granule] + q * a->lanes) * size;
        const int flat = a->flat[p / granule];
        eini_gather((size_t)size, granule, s + (flat ? row[0] * size : 0), 1, flat ? NULL : row, d);
      }
}

// Lanes of the last panel that hold nothing become copies of the last that does.
static void eini_gett_rest(const eini_gett_hand *h, int64_t rows, int64_t size, char *panels) {
  const int64_t n = h->np % h->lanes;
  char *d = panels + h->np / h->lanes * h->panel * size;
  for (int64_t q = 0; q < rows && n > 0; q++, d += h->lanes * size)
    eini_gather((size_t)size, h->lanes - n, d + (n - 1) * size, 0, NULL, d + n * size);
}

// Positions that stand for a box, so that as many of them as there are boxes make all.
static int64_t eini_gett_stretch(int64_t all, int64_t boxes) {
  const int64_t more = (all + boxes - 1) / boxes;
  return (all + more - 1) / more == boxes ? more : eini_max64(all / boxes, 1);
}

// The part of `boxes` that the busiest of so many takes.
static double eini_gett_most(int64_t boxes, int64_t shares) {
  return (double)((boxes + shares - 1) / shares) / (double)boxes;
}

// Whether values of a side are made of operands that were packed as they are stored.
static int eini_gett_made(const ein_side *s, const eini_gett_kit *kit, int is_u) {
  return s->form != EIN_FORM_PLAIN && (s->form != EIN_FORM_PRODUCT || kit->times == NULL) &&
         eini_gett_converter(kit, s, is_u) == NULL;
}

// Packs a narrow operand, converted, and does what remains to be done with its panels.
static void eini_gett_pack_narrow(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  eini_gett_pack_fn pack, const eini_gett_pack_arg *a) {
  const int64_t used = (a->nk + kit->group - 1) / kit->group, rows = eini_gett_rows(kit, a->nk);
  const int64_t panels = (h->np + h->lanes - 1) / h->lanes, row = h->lanes * kit->size;
#if EINI_CPU_DOTS
  h->odd = eini_gett_tiled(kit) ? eini_gett_amx_pack(kit, is_u, a, h->panel, rows) : -1;
  if (h->odd >= 0) return;
#endif
  h->odd = 0;
  pack(a);
  if (kit->done == NULL) return;
  eini_gett_rest(h, used, kit->size, (char *)a->dst);
  for (int64_t i = 0; i < panels; i++) {
    char *p = h->panels + i * h->panel * kit->size;
    memset(p + (kit->head + used) * row, 0, (size_t)((rows - used) * row));
    h->odd |= kit->done(kit, is_u, h->lanes, rows, p);
  }
}

// Packs panels [from, to) of the current box. Values of expressions are made panel by panel, where
// all operands stand one after the other, and of all panels.
static void eini_gett_pack_panels(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  const char *const *base, int64_t nk, int64_t from,
                                  int64_t to) {
  static const int64_t start = 0;
  const int64_t p = from * h->lanes, np = eini_min64(to * h->lanes, h->np) - p, g = h->granule;
  const int made = eini_gett_made(h->s, kit, is_u);
  const char *at[EINI_GETT_OPS];
  const int64_t *offs[EINI_GETT_OPS];
  int64_t gap[EINI_GETT_OPS];
  for (int o = 0; o < h->s->nop; o++) {
    char *into = h->spare[o] != NULL ? h->spare[o] : h->panels;
    const int64_t size = (int64_t)ein_dtype_size(h->s->dtype[o]), first = from * h->panel;
    const eini_gett_pack_arg a = {
        h->kind[o], eini_min64(h->n - p, np), np, nk, h->lanes, h->kstep[o], h->kcount[o],
        h->row[o] + p, h->col[o], h->place + p / g, h->flat[o] + p / g, h->across[o], h->first[o],
        h->nfirst[o], base[o], into};
    if (size == kit->size) h->pack(&a);
    else eini_gett_pack_other(&a, g, size);
    if (made) eini_gett_rest(h, nk, size, into);
    else if (o > 0)
      kit->times((to - from) * h->panel, h->panels + first * size, into + first * size);
    at[o] = into, offs[o] = &start, gap[o] = 1;
  }
  for (int64_t i = from; i < to && made; i++) {
    h->s->fill_fn(h->s->user, h->lanes * nk, at, offs, gap, h->panels + i * h->panel * kit->size);
    for (int o = 0; o < h->s->nop; o++)
      at[o] += h->panel * (int64_t)ein_dtype_size(h->s->dtype[o]);
  }
  h->packed += (to - from) * h->panel * kit->size;
}

#define EINI_GETT_SHARES 16  // of a box that threads pack together

// The same for threads that share the box: each takes shares while there are some, and waits for
// those of others, who are at work on them.
static void eini_gett_pack_shared(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  const char *const *base, int64_t nk, int64_t panels) {
#if EINI_CPU_THREADS
  eini_gett_slot *slot = &h->slots[h->box];
  const int whole = eini_gett_made(h->s, kit, is_u) || h->lanes % h->granule != 0;
  int64_t shares = whole ? 1 : EINI_GETT_SHARES;
  for (int o = 0; o < h->s->nop; o++)
    if (h->kind[o] == EINI_GETT_ACROSS) shares = 1;  // whose positions are not packed by panels
  shares = eini_min64(shares, panels);
  while (eini_gett_begun(slot) < (uint32_t)shares) {
    const int64_t i = (int64_t)__atomic_fetch_add(&slot->begun, 1, __ATOMIC_RELAXED);
    if (i >= shares) break;
    eini_gett_pack_panels(h, kit, is_u, base, nk, panels * i / shares, panels * (i + 1) / shares);
    __atomic_fetch_add(&slot->made, 1, __ATOMIC_RELEASE);
  }
  for (int turn = 0; __atomic_load_n(&slot->made, __ATOMIC_ACQUIRE) < (uint32_t)shares; turn++)
    if (turn < EINI_POOL_SPIN) eini_pool_pause();
    else sched_yield();
#else  // EINI_CPU_THREADS
  if (h->slots[h->box].begun == 0) eini_gett_pack_panels(h, kit, is_u, base, nk, 0, panels);
  h->slots[h->box].begun = 1;
#endif
}

// Packs the current box of one side; base: the operands at the current box of V or U, K and batch.
static void eini_gett_pack(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                           const char *const *base, int64_t nk) {
  const int64_t panels = (h->np + h->lanes - 1) / h->lanes;
  const eini_gett_pack_fn convert = eini_gett_converter(kit, h->s, is_u);
  char *into = h->slots == NULL ? h->panels : h->all + h->box * h->slot_bytes;
  int same = h->fresh && into == h->panels;
  for (int o = 0; o < h->s->nop; o++) same &= h->have[o] == base[o];
  if (same) return;
  for (int o = 0; o < h->s->nop; o++) h->have[o] = base[o];
  h->fresh = 1;
  if (h->in_place) return;
  h->panels = into;
  if (convert != NULL) {  // never shared
    const eini_gett_pack_arg n = {h->kind[0], h->n, h->np, nk, h->lanes, h->kstep[0], h->kcount[0],
                                  h->row[0], h->col[0], h->place, h->flat[0], h->across[0],
                                  h->first[0], h->nfirst[0], base[0],
                                  into + kit->head * h->lanes * kit->size};
    eini_gett_pack_narrow(h, kit, is_u, convert, &n);
    h->packed += panels * h->panel * kit->size;
  } else if (h->slots == NULL) {
    eini_gett_pack_panels(h, kit, is_u, base, nk, 0, panels);
  } else {
    eini_gett_pack_shared(h, kit, is_u, base, nk, panels);
  }
}

// ================================================================================================
// >>gett-job  tiles and stores of section gett
// One thread's part of a contraction: tiles of a box, and how their results are stored.
// ================================================================================================

enum { EINI_GETT_CARRIES = 2048 };  // at most; a power of 2

typedef struct eini_gett_job {
  const eini_cpu *cpu;
  const ein_contract *c;
  eini_gett_kit kit;
  eini_gett_tile_fn tile;        // for the current boxes
  eini_chunk_fn narrow;          // what a store does that only converts; else NULL
  eini_gett_hand v, u;
  eini_gett_axes k;
  int swap;                      // V is m
  int direct;                    // tiles go to the output; otherwise through the buffer
  int inner_direct;              // direct where a box starts and ends at lines
  int masked;                    // direct wherever runs start and end: parts of vectors are stored
  int64_t odd;                   // elements of a line before each run of the output; -1: differ
  int comes;                     // tiles ask for the output, which leaves the cache between boxes
  int stream;                    // past the caches
  int parted;                    // streamed runs do not start at lines
  int unit;                      // the output is contiguous along runs of V
  const void *by;                // what plain sums are scaled by, or NULL
  int64_t sub, ld;               // positions of V per pass; elements of a row of the buffer
  const int64_t *out_v, *out_u;  // strides
  const int64_t *const *extra_v, *const *extra_u;
  int64_t *xv[EINI_GETT_OPS], *xu[EINI_GETT_OPS];
  char *out;                     // at the current boxes
  const char *extra[EINI_GETT_OPS];
  char *buffer, *edge, *values;
  int64_t *off;                  // tables for emit_fn
  const char *next_u;            // U at the next box of K; NULL: unknown
  const int64_t *soon;           // lines to ask for: soon_base + soon[0 .. soon_left)
  int64_t soon_left;
  uintptr_t soon_base;
  int64_t wait;                  // tiles before they are asked for
  const char *then_u;            // the next panel of U, to be asked for first; NULL: none
  eini_tail *carry;             // [carries]
  int64_t carries;               // a power of 2
  int chained;                   // what runs leave over waits for the runs behind them
} eini_gett_job;

#define EINI_GETT_EACH(T)                                                   \
  for (int64_t i = 0; i < n; i++)                                           \
    ((T *)(void *)dst)[to[i]] = ((const T *)(const void *)src)[i]

// dst[to[i]] = src[i].
static void eini_gett_scatter(int size, int64_t n, char *dst, const int64_t *to, const char *src) {
  if (size == 2) EINI_GETT_EACH(int16_t);
  else if (size == 4) EINI_GETT_EACH(int32_t);
  else if (size == 8) EINI_GETT_EACH(eini_gett_8);
  else if (size == 16) EINI_GETT_EACH(eini_gett_16);
  else EINI_GETT_EACH(char);
}
#undef EINI_GETT_EACH

// The next piece of [p, to) within one run of V; 0: no more.
static int64_t eini_gett_piece(const eini_gett_hand *v, int64_t *p, int64_t to) {
  if (*p < to && v->left[*p] < 0) *p -= v->left[*p];
  if (*p >= to || *p >= v->n) return 0;
  return eini_min64(v->left[*p], to - *p);
}

// Whether each column starts in the output where the one before it ends.
static int eini_gett_follows(const eini_gett_job *j) {
  return j->u.n > 1 && j->u.out[1] - j->u.out[0] == j->v.whole;
}

// Positions [p, p + n) of `count` columns from u on, which lie one after the other if more than 1.
static void eini_gett_store(eini_gett_job *j, int64_t p, int64_t n, int64_t u, int64_t count,
                            const char *row, int64_t ld) {
  const int size = j->kit.size;
  char *dst = j->out + j->u.out[u] * size;
  if (j->unit) dst += j->v.out[p] * size;
  if (j->stream) {
    const int64_t run = p / (j->v.whole > j->v.run ? j->v.whole : j->v.step);
    const int follow = n == j->v.whole && eini_gett_follows(j);
    const int64_t turn = follow ? run : run * j->u.n + u;
    eini_tail_put(j->cpu->isa, j->carry + (turn & (j->carries - 1)), dst, row, n * size, count, ld);
    return;
  }
  for (; count > 0; count--, row += ld, dst += n * size)
    if (j->unit) memcpy(dst, row, (size_t)(n * size));
    else eini_gett_scatter(size, n, dst, j->v.out + p, row);
}

#define EINI_GETT_STEPS 32  // least extent for which a row is stored by itself

static void eini_gett_emit(eini_gett_job *j, int64_t n) {
  const int64_t *offs[EINI_GETT_OPS];
  for (int e = 0; e < j->c->nextra; e++) offs[e] = j->off + (e + 1) * EIN_POINTS;
  if (n > 0)
    j->c->emit_fn(j->c->emit_user, n, j->values, j->out, j->off, j->extra, offs, NULL);
}

// The same where V's last axis is long: the output and what the store reads go in steps along it.
static void eini_gett_leave_steps(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                  const char *rows, int64_t ld) {
  const int size = j->kit.size, last = j->v.g.n - 1;
  const int64_t *offs[EINI_GETT_OPS];
  int64_t step[EINI_GETT_OPS + 1], x[EINI_GETT_OPS];
  step[0] = j->out_v[last];
  for (int e = 0; e < j->c->nextra; e++) step[e + 1] = j->extra_v[e][last], offs[e] = &x[e];
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      int64_t at = j->v.out[p] + j->u.out[u];
      len = eini_min64(eini_min64(len, EIN_POINTS), j->v.run - p % j->v.run);
      for (int e = 0; e < j->c->nextra; e++) x[e] = j->xv[e][p] + j->xu[e][u];
      memcpy(j->values, rows + (u - u0) * ld + (p - p0) * size, (size_t)(len * size));
      j->c->emit_fn(j->c->emit_user, len, j->values, j->out, &at, j->extra, offs, step);
    }
}

// Columns [u0, u0 + nu) of positions [p0, p1) leave the buffer through emit_fn.
static void eini_gett_leave_emit(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                 const char *rows, int64_t ld) {
  const int size = j->kit.size;
  int64_t n = 0;
  if (j->v.g.n > 0 && j->v.g.size[j->v.g.n - 1] >= EINI_GETT_STEPS) {
    eini_gett_leave_steps(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      if (n == EIN_POINTS) eini_gett_emit(j, n), n = 0;
      len = eini_min64(len, EIN_POINTS - n);
      memcpy(j->values + n * size, rows + (u - u0) * ld + (p - p0) * size, (size_t)(len * size));
      for (int64_t i = 0; i < len; i++) j->off[n + i] = j->v.out[p + i] + j->u.out[u];
      for (int e = 0; e < j->c->nextra; e++)
        for (int64_t i = 0; i < len; i++)
          j->off[(e + 1) * EIN_POINTS + n + i] = j->xv[e][p + i] + j->xu[e][u];
      n += len;
    }
  eini_gett_emit(j, n);
}

// The same where sums are only scaled.
static void eini_gett_leave_scaled(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                                   const char *rows, int64_t ld) {
  const ein_contract *c = j->c;
  const eini_ckern *t = eini_ckern_of(c->type);
  const int size = j->kit.size;
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *y = c->beta == NULL ? NULL : j->extra[0] + j->xu[0][u] * size;
      t->scale(len, t->planes, c->alpha, c->beta, rows + (u - u0) * ld + (p - p0) * size, y,
               y == NULL ? NULL : j->xv[0] + p, j->out + j->u.out[u] * size, j->v.out + p);
    }
}

// The same where sums are only converted.
static void eini_gett_leave_converted(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                      int64_t p1, const char *rows, int64_t ld) {
  const int size = j->kit.size, to = (int)ein_dtype_size(j->c->out_dtype);
  for (int64_t u = u0; u < u0 + nu; u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *row = rows + (u - u0) * ld + (p - p0) * size;
      char *dst = j->out + j->u.out[u] * to;
      const int64_t whole = j->unit ? len / EINI_LANES * EINI_LANES : 0;
      if (whole > 0) {  // at once where they go
        j->narrow(whole, row, row, row, dst + j->v.out[p] * to);
        len = whole;
        continue;
      }
      len = eini_min64(len, EIN_POINTS);
      j->narrow(eini_whole_lanes(len), row, row, row, j->values);  // rows have room behind them
      if (j->unit) memcpy(dst + j->v.out[p] * to, j->values, (size_t)(len * to));
      else eini_gett_scatter(to, len, dst, j->v.out + p, j->values);
    }
}

static void eini_gett_leave(eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0, int64_t p1,
                            char *rows) {
  const int size = j->kit.size;
  const int64_t ld = j->ld * size * j->kit.parts;
  if (j->kit.parts == 2)
    for (int64_t u = 0; u < nu; u++) {
      char *a = rows + u * ld, *b = a + ld / 2;
      if (size == 16)
        eini_gett_join_pd(p1 - p0, j->v.s->conj, j->u.s->conj, (double *)(void *)a,
                         (const double *)(const void *)b);
      else
        eini_gett_join_ps(p1 - p0, j->v.s->conj, j->u.s->conj, (float *)(void *)a,
                         (const float *)(const void *)b);
    }
  if (j->by != NULL)
    for (int64_t u = 0; u < nu; u++) j->kit.by(p1 - p0, rows + u * ld, j->by);
  if (j->narrow != NULL) {
    eini_gett_leave_converted(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  if (!eini_gett_plain(j->c, &j->kit)) {
    (j->c->scaled ? eini_gett_leave_scaled : eini_gett_leave_emit)(j, u0, nu, p0, p1, rows, ld);
    return;
  }
  const int64_t whole = j->v.whole;
  int by_run = j->unit && nu > 1 && p1 - p0 >= whole;
  for (int64_t u = u0 + 1; u < u0 + nu; u++) by_run &= j->u.out[u] - j->u.out[u - 1] == whole;
  for (int64_t u = 0; u < (by_run ? 1 : nu); u++)
    for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
      const char *row = rows + u * ld + (p - p0) * size;
      if (!by_run || len == whole) {
        eini_gett_store(j, p, len, u0 + u, by_run ? nu : 1, row, ld);
        continue;
      }
      for (int64_t i = 0; i < nu; i++) eini_gett_store(j, p, len, u0 + i, 1, row + i * ld, ld);
    }
}

// A tile at the rim of the output or with vectors across the ends of its runs: through a small
// buffer.
static void eini_gett_rim(eini_gett_job *j, eini_gett_tile_arg *a, int64_t p, int64_t u,
                          int64_t nu) {
  const int size = j->kit.size;
  const eini_gett_tile_arg whole = *a;
  const int64_t lanes = j->v.lanes, end = eini_min64(p + lanes, j->v.np);
  int64_t rows[EINI_GETT_COLUMNS], cols[3];
  for (int i = 0; i < EINI_GETT_COLUMNS; i++) rows[i] = i * lanes;
  for (int i = 0; i < 3; i++) cols[i] = i * j->kit.w;
  a->dst = j->edge, a->uoff = rows, a->voff = cols, a->how = EINI_GETT_STORE;
  j->tile(a);
  *a = whole;
  for (int64_t q = p, len; (len = eini_gett_piece(&j->v, &q, end)) > 0; q += len)
    for (int64_t r = 0; r < nu; r++) {
      const char *in = j->edge + (r * lanes + q - p) * size;
      char *out = (char *)a->dst + (j->u.out[u + r] + j->v.out[q]) * size;
      if (a->how == EINI_GETT_ADD) j->kit.fold(len, out, in);
      else memcpy(out, in, (size_t)(len * size));
    }
}

// Scales columns [u, u + nu) of positions [p0, p1), which tiles have just stored.
static void eini_gett_scale(eini_gett_job *j, int64_t u, int64_t nu, int64_t p0, int64_t p1) {
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len)
    for (int64_t r = u; r < u + nu; r++)
      j->kit.by(len, j->out + (j->u.out[r] + j->v.out[p]) * j->kit.size, j->by);
}

// Whether all vectors of the panel at p lie within runs, and where they go.
static int eini_gett_place(const eini_gett_job *j, int64_t p, int nv, int64_t *voff,
                           unsigned *lanes) {
  int good = 1;
  for (int i = 0; i < nv; i++) {
    const int64_t q = p + i * j->kit.w;
    voff[i] = j->v.out[q], lanes[i] = ~0u;
    good &= (j->masked || j->v.shift > 0 || j->v.left[q] >= j->kit.w) && q < j->v.n;
    if (!j->masked) continue;
    const int64_t at = q % j->v.step - j->v.lead;  // in the run
    if (at < 0) lanes[i] &= ~0u << -at;
    if (at >= j->v.run) lanes[i] = 0;
    else if (at + j->kit.w > j->v.run) lanes[i] &= ~(~0u << (j->v.run - at));
  }
  return good;
}

// Asks for the lines of the output that the tile of positions p and columns u will change.
static void eini_gett_expect(const eini_gett_job *j, int64_t p, int64_t p1, int64_t u) {
  const int64_t size = j->kit.size, w = j->kit.w, *out = j->v.out + p;
  const int64_t nu = eini_min64(j->u.lanes, j->u.n - u), nv = eini_min64(j->v.lanes, p1 - p);
  int64_t first[3], last[3];
  int n = 0;
  for (int64_t i = 0; i < nv; i += w, n++)
    first[n] = out[i] * size, last[n] = (out[eini_min64(i + w, nv) - 1] + 1) * size - 1;
  for (int64_t r = 0; r < nu; r++) {
    const uintptr_t row = (uintptr_t)j->out + (uintptr_t)(j->u.out[u + r] * size);
    for (int i = 0; i < n; i++) {
      EINI_FETCHW(row + (uintptr_t)first[i]);
      if (((row + (uintptr_t)first[i]) ^ (row + (uintptr_t)last[i])) >> 6 != 0)
        EINI_FETCHW(row + (uintptr_t)last[i]);
    }
  }
}

// The same of the tile behind that one of the box's part from p0 to p1: sums of few products would
// wait for lines that they have just asked for.
static void eini_gett_expect_next(const eini_gett_job *j, int64_t p, int64_t p0, int64_t p1,
                                  int64_t u, int64_t nu) {
  if (p == p0 && u == 0) eini_gett_expect(j, p, p1, u);
  if (p + j->v.lanes < p1) eini_gett_expect(j, p + j->v.lanes, p1, u);
  else if (u + nu < j->u.n) eini_gett_expect(j, p0, p1, u + nu);
}

// Asks for the lines of the output that the tile will store in part.
static void eini_gett_expect_masked(const eini_gett_job *j, const eini_gett_tile_arg *a) {
  for (int i = 0; i < a->nv; i++)
    for (int r = 0; r < a->nu && a->lanes[i] != ~0u; r++)
      EINI_FETCHW((uintptr_t)a->dst + (uintptr_t)((a->uoff[r] + a->voff[i]) * j->kit.size));
}

// Asks for the lines that streamed runs, of columns [u0, u0 + nu) and positions [p0, p1), share
// with others: parts of lines are ordinary stores, and each that waits for its line would hold up
// those behind it.
static void eini_gett_expect_parts(const eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                   int64_t p1) {
  const int64_t size = j->kit.size;
  if (eini_gett_follows(j)) return;  // columns complete each other's lines
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len) {
    const int starts = j->v.left[p] == j->v.whole, ends = j->v.left[p] == len;
    const char *row = j->out + j->v.out[p] * size;
    for (int64_t u = u0; u < u0 + nu; u++) {
      const char *from = row + j->u.out[u] * size, *to = from + len * size;
      if (starts && ((uintptr_t)from & 63) != 0) EINI_FETCHW(from);
      if (ends && ((uintptr_t)to & 63) != 0) EINI_FETCHW(to - 1);
    }
  }
}

// Asks for the lines of the output that columns [u0, u0 + nu) of positions [p0, p1) will change
// when they leave the buffer.
static void eini_gett_expect_rows(const eini_gett_job *j, int64_t u0, int64_t nu, int64_t p0,
                                  int64_t p1) {
  const int64_t size = j->kit.size;
  for (int64_t p = p0, len; (len = eini_gett_piece(&j->v, &p, p1)) > 0; p += len)
    for (int64_t u = u0; u < u0 + nu; u++) {
      const uintptr_t row = (uintptr_t)j->out + (uintptr_t)((j->u.out[u] + j->v.out[p]) * size);
      for (int64_t b = 0; b < len * size; b += 64) EINI_FETCHW(row + (uintptr_t)b);
    }
}

// The lines one tile asks for; none: one of its own.
static void eini_gett_ask(eini_gett_job *j, eini_gett_tile_arg *a) {
  static const int64_t none = 0;
  a->soon = &none, a->soon_base = (uintptr_t)a->v, a->soon_step = 0;
  j->wait--;
  if (j->then_u != NULL) {
    a->soon = j->u.soon, a->soon_base = (uintptr_t)j->then_u, a->soon_step = 1;
    j->then_u = NULL;
    return;
  }
  if (j->soon_left < a->k || j->wait >= 0) return;
  a->soon = j->soon, a->soon_base = j->soon_base, a->soon_step = 1;
  j->soon += a->k, j->soon_left -= a->k;
}

// Columns of U from u on for the next tile; returns how many.
static int64_t eini_gett_columns(eini_gett_job *j, int64_t u, eini_gett_tile_arg *a) {
  const eini_gett_hand *h = &j->u;
  const int64_t size = j->kit.size;
  int64_t nu = eini_min64(h->lanes, h->n - u);
  if (!h->in_place) {
    a->u = h->panels + u / h->lanes * h->panel * size;
    if (h->nsoon > 0)
      j->then_u = u + nu < h->n ? (const char *)a->u + h->panel * size : h->panels;
    return nu;
  }
  nu = eini_min64(nu, h->even - u % h->even);
  a->u = h->have[0] + h->row[0][u] * size;
  if (h->nsoon > 0 && (h->row_step != 1 || u % h->block == 0)) {
    const int64_t then = u + (h->row_step == 1 ? h->block : nu);
    const char *next = then < h->n ? h->have[0] + h->row[0][then] * size : j->next_u;
    j->soon = h->soon, j->soon_base = (uintptr_t)next, j->soon_left = next != NULL ? h->nsoon : 0;
  }
  return nu;
}

// The next box of V is asked for late where the panels of U, which come from the last cache, would
// push it out again.
static void eini_gett_wait(eini_gett_job *j, int64_t rows) {
  const eini_gett_hand *v = &j->v, *u = &j->u;
  j->wait = 0, j->then_u = NULL;
  if (u->in_place || u->nsoon == 0) return;
  const int64_t tiles = (v->np + v->lanes - 1) / v->lanes * ((u->n + u->lanes - 1) / u->lanes);
  j->wait = tiles - 2 * (j->soon_left / rows);
}

// All tiles of the current boxes of V and U over the current box of K.
static void eini_gett_tiles(eini_gett_job *j, int64_t nk, int first, int last, int keep) {
  const eini_gett_kit *kit = &j->kit;
  const int64_t lanes = j->v.lanes, ulanes = j->u.lanes, parts = kit->parts, size = kit->size;
  int64_t rows[EINI_GETT_COLUMNS], voff[3];
  unsigned masks[3];
  for (int i = 0; i < EINI_GETT_COLUMNS; i++) rows[i] = i * j->ld * parts;
  eini_gett_tile_arg a;
  a.lanes = masks;
  a.k = eini_gett_rows(kit, nk), a.sv = lanes * parts, a.uk = ulanes * parts, a.us = 1;
  if (j->u.in_place) a.uk = j->u.kby, a.us = j->u.row_step;
  a.how = first ? (j->direct && j->stream ? EINI_GETT_STREAM : EINI_GETT_STORE) : EINI_GETT_ADD;
  const int64_t left = a.how == EINI_GETT_ADD && j->comes ? eini_min64(EINI_GETT_LATE, a.k / 2) : 0;
  const int soon = last && !j->direct && !j->stream && j->unit && eini_gett_plain(j->c, kit);
  eini_gett_wait(j, a.k);
  j->tile = kit->exact != NULL && (j->v.odd || j->u.odd) ? kit->exact : kit->tile;
  int64_t late[4] = {0, 0, 0, 0}, turn = 0;  // what is to leave: columns u, nu; positions p0, p1
  char *const other = keep || j->direct ? NULL : j->buffer + j->ld * parts * size * ulanes;
  char *full = NULL;
  for (int64_t p0 = 0; p0 < j->v.np; p0 += j->sub) {
    const int64_t p1 = eini_min64(p0 + j->sub, j->v.np);
    for (int64_t u = 0, nu; u < j->u.n; u += nu) {
      nu = eini_gett_columns(j, u, &a);
      char *buffer = keep ? j->buffer + (u * parts * j->ld + p0) * size : turn ? other : j->buffer;
      a.nu = (int)(eini_up(nu, kit->cols) * parts);
      if (j->parted && !j->chained && !j->direct) eini_gett_expect_parts(j, u, nu, p0, p1);
      if (soon) eini_gett_expect_rows(j, u, nu, p0, p1);
      for (int64_t p = p0; p < p1; p += lanes) {
        a.nv = (int)((eini_min64(lanes, p1 - p) + kit->w - 1) / kit->w);
        a.v = j->v.panels + p / lanes * j->v.panel * size;
        eini_gett_ask(j, &a);
        const int good = eini_gett_place(j, p, a.nv, voff, masks);
        a.voff = voff;
        a.late = good && a.nv == kit->nv && a.nu == kit->nu ? left : 0;
        if (!j->direct) {
          for (int i = 0; i < 3; i++) voff[i] = i * kit->w * parts;
          a.dst = buffer + (p - p0) * size, a.uoff = rows;
          j->tile(&a);
        } else {
          a.dst = j->out, a.uoff = j->u.out + u;
          if (a.how != EINI_GETT_STREAM) {
            if (a.late == 0) eini_gett_expect_next(j, p, p0, p1, u, nu);
          } else if (j->masked) {
            eini_gett_expect_masked(j, &a);
          }
          if (good && nu % kit->cols == 0) j->tile(&a);
          else eini_gett_rim(j, &a, p, u, nu);
        }
      }
      if (j->direct && last && j->by != NULL) eini_gett_scale(j, u, nu, p0, p1);
      if (j->direct || !last) continue;
      // One behind: loads right after the stores they overlap would wait for them.
      if (full != NULL) eini_gett_leave(j, late[0], late[1], late[2], late[3], full);
      late[0] = u, late[1] = nu, late[2] = p0, late[3] = p1, full = buffer, turn = !turn;
    }
  }
  if (full != NULL) eini_gett_leave(j, late[0], late[1], late[2], late[3], full);
}

// ================================================================================================
// >>gett-sketch  boxes of section gett
// Takes a contraction and the machine; gives orientation, and boxes that fit its caches.
// ================================================================================================

// choice.state: flags, lanes of V, sub, then the boxes of V, U and K.
enum { EINI_GETT_FORM = 12 };  // where a form begins in the flags
enum { EINI_GETT_SWAP = 1, EINI_GETT_DIRECT = 2, EINI_GETT_PAST = 4, EINI_GETT_KEEP = 8,
       EINI_GETT_BARE = 16, EINI_GETT_IN_PLACE = 32, EINI_GETT_SOON = 64, EINI_GETT_SHIFT = 128,
       EINI_GETT_SHARE_U = 256, EINI_GETT_SHARE_V = 512, EINI_GETT_LASTS_U = 1024,
       EINI_GETT_LASTS_V = 2048 };
#define EINI_GETT_WAYS 64      // sets of the flags that make different ways
enum { EINI_GETT_HEAD = 4, EINI_GETT_STATE = 39, EINI_GETT_BARE_K = 256,
       EINI_GETT_ORDERED = 4096 };  // bytes along K of a box in deterministic mode

// Gives an axis up to `want`, in even shares, while the box stays within `most` positions.
static void eini_gett_grow(int n, const int64_t *extent, int64_t *box, int i, int64_t want,
                           int64_t most, int64_t unit) {
  if (i < 0 || i >= n) return;
  const int64_t others = eini_gett_product(n, box) / box[i];
  int64_t b = eini_min64(extent[i], eini_min64(want, most / others));
  if (b <= box[i]) return;
  // In whole units where there is more than one; even shares.
  const int64_t step = b < extent[i] && b >= unit ? unit : 1;
  const int64_t units = (extent[i] + step - 1) / step, parts = (units + b / step - 1) / (b / step);
  b = (units + parts - 1) / parts * step;
  box[i] = eini_max64(box[i], eini_min64(b, extent[i]));
}

// The same, where the axis has unit steps in an operand, for a run of so many elements: axes where
// the run goes on grow, too. stride: of the operand; or NULL.
static void eini_gett_grow_run(int n, const int64_t *extent, const int64_t *stride, int64_t *box,
                               int i, int64_t want, int64_t most, int64_t unit) {
  int64_t run = 1;
  eini_gett_grow(n, extent, box, i, want, most, unit);
  if (stride == NULL || i < 0 || stride[i] != 1) return;
  while (i >= 0 && box[i] == extent[i] && (run *= extent[i]) < want) {
    i = eini_gett_goes_on(n, extent, stride, run);
    eini_gett_grow(n, extent, box, i, (want + run - 1) / run, most, 1);
  }
}

// A box of at most `most` positions: first some of axes x and y, then more of them, then the rest.
static void eini_gett_fit(int n, const int64_t *extent, const int64_t *stride, int64_t *box,
                          int64_t most, int x, int y, int64_t some, int64_t unit) {
  for (int i = 0; i < n; i++) box[i] = 1;
  eini_gett_grow_run(n, extent, stride, box, x, some, most, unit);
  eini_gett_grow_run(n, extent, stride, box, y, some, most, unit);
  eini_gett_grow(n, extent, box, x, 4 * some, most, unit);
  eini_gett_grow(n, extent, box, y, most, most, unit);
  eini_gett_grow(n, extent, box, x, most, most, unit);
  for (int i = n - 1; i >= 0; i--)
    eini_gett_grow(n, extent, box, i, most, most, i == x || i == y ? unit : 1);
}

// A little less of one axis where this makes a whole number of tiles, but no more boxes where they
// are few: threads share them.
static void eini_gett_whole(int n, const int64_t *extent, int64_t *box, int64_t tile,
                            int64_t granule, int64_t unit, int64_t few) {
  if (n == 0 || box[n - 1] % unit != 0) return;
  int64_t boxes = 1;
  for (int i = 0; i < n; i++) boxes *= (extent[i] + box[i] - 1) / box[i];
  for (int i = n - 1; i >= 0; i--) {
    const int64_t others = eini_gett_product(n, box) / box[i],
                  step = i == n - 1 ? unit : box[i] % granule == 0 ? granule : 1;
    for (int64_t b = box[i]; box[i] < extent[i] && b * 8 >= box[i] * 7; b -= step) {
      if (others * b % tile != 0) continue;
      if (boxes >= few || (extent[i] + b - 1) / b == (extent[i] + box[i] - 1) / box[i]) box[i] = b;
      return;
    }
  }
}

// The axis along which the first operand with one is contiguous; -1: none.
static int eini_gett_unit_axis(const ein_side *s, const int64_t *const *stride,
                               const ein_axes *x) {
  for (int o = 0; o < s->nop; o++)
    for (int i = 0; i < x->n; i++)
      if (stride[o][i] == 1 && x->extent[i] > 1) return i;
  return -1;
}

// Extents may be less when it runs; but not those of the group that has unit steps in the output.
enum { EINI_GETT_CUT = 1, EINI_GETT_CUT_OTHERS };

typedef struct eini_gett_sketch {  // a plan while it is being made
  eini_gett_kit kit;
  const ein_axes *vx, *ux, *kx;
  const ein_side *v, *u;
  const int64_t *out_v, *out_u;
  int swap, direct, past, keep, unit, bare, in_place, ahead, far, shift;
  int cut;                                  // EINI_GETT_CUT, .._OTHERS, or 0
  int without;                              // flags: what is not to be; of SWAP, as it would be
  int beyond;                               // the output would not stay in the caches
  int ordered;                              // boxes of K from extents and dtype alone
  int64_t lanes, sub, pad, nv, nu, nk;      // positions of the boxes
  int64_t rows;                             // of a panel
  int64_t shares[3];                        // of batch, V and U that threads are to take
  int64_t box_v[EINI_GETT_AXES], box_u[EINI_GETT_AXES], box_k[EINI_GETT_AXES];
} eini_gett_sketch;

static void eini_gett_orient(const eini_cpu *cpu, const ein_contract *c, eini_gett_sketch *p,
                             int swap) {
  p->swap = swap;
  p->vx = swap ? &c->m : &c->n, p->ux = swap ? &c->n : &c->m, p->kx = &c->k;
  p->v = swap ? &c->p : &c->q, p->u = swap ? &c->q : &c->p;
  p->out_v = swap ? c->out_m : c->out_n, p->out_u = swap ? c->out_n : c->out_m;
  const int n = p->vx->n;
  p->unit = n == 0 || p->out_v[n - 1] == 1;
  eini_gett_dress(cpu, &p->kit, p->v, p->u);
}

// Elements that follow each other in the output along a group.
static int64_t eini_gett_run_of(const ein_axes *x, const int64_t *out) {
  int64_t run = 1;
  for (int i = x->n - 1; i >= 0 && out[i] == run; i--) run *= x->extent[i];
  return run;
}

// How well a group fills vectors of w: its run along the unit stride of the output, or what it is
// joined to.
static double eini_gett_filled(const ein_axes *x, const int64_t *out, int64_t w) {
  if (x->n == 0) return 1.0 / (double)w;
  if (out[x->n - 1] != 1) {
    const int64_t all = eini_gett_product(x->n, x->extent);
    return 0.5 * (double)all / (double)eini_up(all, w);
  }
  const int64_t run = x->extent[x->n - 1], whole = eini_gett_run_of(x, out);
  const double one = (double)run / (double)eini_up(run, w);
  return one > 0.85 ? one : (double)whole / (double)eini_up(whole, w);
}

// The panel width with the least work for np positions: narrow tiles are less efficient.
static int64_t eini_gett_lanes(const eini_gett_kit *kit, int64_t np, int64_t *cost) {
  static const int price[4] = {0, 10, 17, 24};
  int64_t best = 0;
  const int64_t vectors = (np + kit->w - 1) / kit->w;
  for (int nv = kit->nv; nv > 0; nv--) {
    const int64_t lanes = nv * kit->w;
    if (lanes % kit->gv != 0 && nv != kit->nv) continue;
    const int64_t price_all = vectors / nv * price[nv] + price[vectors % nv];
    if (best == 0 || price_all < *cost) best = lanes, *cost = price_all;
  }
  return best;
}

// Sets of the second-level cache (of 16 ways) that steps of an axis reach, at most `sets`.
static int64_t eini_gett_sets(int64_t sets, int n, const int64_t *box, const int64_t *stride,
                              int64_t size, int64_t reached) {
  for (int i = 0; i < n; i++) {
    int64_t a = eini_abs64(stride[i]) * size % (sets * 64), b = sets * 64;
    while (a != 0) {
      const int64_t r = b % a;
      b = a, a = r;
    }
    if (b < 64) b = 64;  // lines that follow each other
    reached *= eini_min64(stride[i] == 1 ? (box[i] * size + 63) / 64 : box[i], sets * 64 / b);
    reached = eini_min64(reached, sets);
  }
  return reached;
}

// Whether the next box of V stays in the cache until it is packed: not with steps of large powers
// of two. Long runs are worth it still, for the last-level cache has them then.
static int eini_gett_stays(const eini_cpu *cpu, const eini_gett_sketch *p) {
  const int64_t sets = eini_max64(cpu->l2 / 1024, 1), size = p->kit.size;
  const int x = eini_gett_unit_axis(p->v, p->v->row, p->vx);
  if (x >= 0 && p->box_v[x] * size >= 512) return 1;
  int64_t reached = eini_gett_sets(sets, p->vx->n, p->box_v, p->v->row[0], size, 1);
  reached = eini_gett_sets(sets, p->kx->n, p->box_k, p->v->k[0], size, reached);
  return p->nv * p->rows * size / 64 <= reached * 12;
}

// Positions of V per pass through the buffer. Streamed output leaves in small portions, so that
// stores and arithmetic overlap: a number of lines, or whole runs.
static void eini_gett_passes(const eini_cpu *cpu, int64_t run, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t step = eini_up(run, p->pad), column = kit->nu * kit->parts * kit->size;
  const int last = p->vx->n - 1;
  if (p->past && !p->direct && step == run && last > 0 && p->out_v[last - 1] == run) {
    p->sub = eini_max64(cpu->l1 / 8 / column / (4 * p->lanes), 1) * 4 * p->lanes;
    return;
  }
  if (p->past && !p->direct && step % p->lanes != 0) {
    p->sub = step;
    while (p->sub % p->lanes != 0) p->sub += step;
    if (p->sub * column <= cpu->l1 / 4) return;
  }
  if (p->past && step < p->lanes && p->lanes % step != 0 && step % kit->w == 0) p->lanes = step;
  const int64_t fit = eini_max64(cpu->l1 / 2 / column / p->lanes, 16) * p->lanes;  // U goes again
  p->sub = p->past ? eini_min64(fit, eini_up(step, p->lanes)) : fit;
  p->sub = eini_max64(p->sub, p->lanes);
}

// The most positions of a box, less where boxes are so few that shares of them would be unequal.
static int64_t eini_gett_even_share(int64_t all, int64_t most, int64_t shares, int64_t unit) {
  const int64_t boxes = (all + most - 1) / most;
  if (boxes >= 8 * shares || boxes % shares == 0) return most;
  return eini_min64(most, eini_up((all - 1) / eini_up(boxes, shares) + 1, unit));
}

#define EINI_GETT_KEPT 512  // positions of either side in the buffer at most, while boxes of K pass

// The box of K. In deterministic mode extents and dtype alone make it: all tiles add along K alike.
static void eini_gett_box_k(const eini_cpu *cpu, eini_gett_sketch *p, int64_t k) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size;
  // Each box of K reads and writes the output; from the second cache tiles have full speed.
  int64_t kc = eini_min64(cpu->l1 / 3 * 4 / kit->nu, cpu->l2 / 8 / (kit->nv * kit->w)) / size;
  kc = eini_max64(kc / kit->round, 1) * kit->round * kit->group;
  if (p->ordered) kc = EINI_GETT_ORDERED / size;
  // Tile registers take little longer to multiply than it takes to pack again, or to add to sums.
  if (k < (eini_gett_tiled(kit) ? 4 * kc : kc + kc / 4)) kc = k;
  const int ku = p->ordered ? -1 : eini_gett_unit_axis(p->u, p->u->k, p->kx);
  const int kv = p->ordered ? -1 : eini_gett_unit_axis(p->v, p->v->k, p->kx);
  eini_gett_fit(p->kx->n, p->kx->extent, NULL, p->box_k, kc, kv, ku, 16,
               eini_max64(8, kit->round * kit->group));
  p->nk = eini_gett_product(p->kx->n, p->box_k);
  p->rows = kit->head + eini_gett_rows(kit, p->nk);
}

// The box of V of at most most_v positions, of a sum of k over all_u columns.
static void eini_gett_box_v(eini_gett_sketch *p, int64_t most_v, int64_t k, int64_t all_u) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, line = eini_max64(128 / size, 1);
  const int64_t unit_v = eini_max64(p->pad, kit->gv);
  const int za = eini_gett_unit_axis(p->v, p->v->row, p->vx);
  const int64_t *run_v = p->v->nop > 0 ? p->v->row[0] : NULL;
  // More of the side with more traffic: what is read or what is written.
  // Runs of the output that end within lines stay whole.
  const int64_t row = p->vx->n > 0 ? p->vx->extent[p->vx->n - 1] : 1;
  const int whole = p->past && row * size % 64 != 0 && row * line / 2 <= most_v;
  const int read_more = k >= all_u && !whole;
  // Of a line of what is read a share that leaves room for a vector of what is written.
  const int64_t vector = eini_max64(eini_min64(row, p->pad), 1);
  int64_t some = whole ? row : most_v < 16 * line ? line : 2 * line;
  if (!whole) some = eini_min64(some, eini_max64(most_v / vector / kit->gv * kit->gv, kit->gv));
  // Rows of V from memory stay whole where a line of the output fits beside: what is fetched ahead
  // of a part of one would often be gone before its turn comes.
  if (read_more && p->ahead && za >= 0 && za + 1 < p->vx->n &&
      p->vx->extent[za] <= most_v / eini_max64(line / 2, unit_v))
    some = eini_max64(some, p->vx->extent[za]);
  eini_gett_fit(p->vx->n, p->vx->extent, run_v, p->box_v, most_v, read_more ? za : p->vx->n - 1,
                read_more ? p->vx->n - 1 : za, some, unit_v);
  if (p->vx->n > 0 && p->box_v[p->vx->n - 1] < vector)  // less of a vector than there is
    eini_gett_fit(p->vx->n, p->vx->extent, run_v, p->box_v, most_v, p->vx->n - 1, za, vector,
                  unit_v);
  eini_gett_whole(p->vx->n, p->vx->extent, p->box_v, kit->nv * kit->w, kit->gv, unit_v,
                  8 * p->shares[1]);
}

static void eini_gett_boxes(const eini_cpu *cpu, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, line = eini_max64(128 / size, 1);
  const int64_t k = eini_gett_product(p->kx->n, p->kx->extent);
  const int64_t all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  eini_gett_box_k(cpu, p, k);
  p->keep = !p->direct && p->nk < k;
  // Where V comes from memory the next box waits in the cache too.
  p->ahead = p->v->nop == 1 && ein_dtype_size(p->v->dtype[0]) == (size_t)size && !p->far &&
             all_v * k * size > cpu->l2 * 2;
  const int64_t room = (p->ahead ? cpu->l2 / 8 * 3 : cpu->l2 / 4 * 3) / (p->rows * size);
  const int64_t unit_v = eini_max64(p->pad, kit->gv);
  const int64_t kept = eini_gett_tiled(kit) ? 4 * EINI_GETT_KEPT : EINI_GETT_KEPT;
  int64_t most_v = eini_max64(p->keep ? eini_min64(room, kept) : room, 4 * kit->w);
  most_v = eini_gett_even_share(all_v, most_v, p->shares[1], unit_v);
  const int64_t *run_u = p->u->nop > 0 ? p->u->row[0] : NULL;
  eini_gett_box_v(p, most_v, k, all_u);
  const int64_t run = p->vx->n > 0 ? p->box_v[p->vx->n - 1] : 1;
  p->nv = eini_gett_product(p->vx->n, p->box_v) / run * eini_up(run, p->pad);
  p->nv = eini_up(p->nv, eini_max64(kit->gv, kit->w));
  if (p->ahead && !eini_gett_stays(cpu, p)) {
    p->far = 1;
    eini_gett_boxes(cpu, p);
    return;
  }
  int64_t most_u = (p->nv >= all_v ? cpu->l2 * 3 / 8 : cpu->l3 / 4) / (p->rows * size);
  if (p->keep) most_u = eini_min64(most_u, kept);
  most_u = eini_max64(most_u, 4 * kit->nu);
  most_u = eini_gett_even_share(all_u, most_u, p->shares[2], kit->nu);
  const int zu = eini_gett_unit_axis(p->u, p->u->row, p->ux);
  eini_gett_fit(p->ux->n, p->ux->extent, run_u, p->box_u, most_u, zu, p->ux->n - 1, line,
                kit->nu);
  p->nu = eini_up(eini_gett_product(p->ux->n, p->box_u), kit->nu);
  int64_t cost = 0;
  p->lanes = eini_gett_lanes(kit, p->nv, &cost);
  p->sub = p->nv;
  if (p->keep || (p->direct && !p->past)) return;
  eini_gett_passes(cpu, run, p);
}
#undef EINI_GETT_KEPT

// The axis of K with the least step of an operand; -1: none.
static int eini_gett_least_axis(const ein_axes *x, const int64_t *stride) {
  int r = -1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] > 1 && (r < 0 || eini_abs64(stride[i]) <= eini_abs64(stride[r]))) r = i;
  return r;
}

// Boxes for a V of few panels: U is read where it is, in even steps along K.
static int eini_gett_in_place(const eini_cpu *cpu, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  const int64_t wide = eini_up(all_v, kit->w);
  if (p->ordered || kit->cols > 1 || kit->parts != 1 || p->u->form != EIN_FORM_PLAIN || p->past ||
      !p->direct || p->vx->n == 0 || all_u < 2 * kit->nu)
    return 0;
  eini_gett_sketch t = *p;
  const int along = eini_gett_unit_axis(p->u, p->u->row, p->ux);
  const int x = eini_gett_least_axis(p->kx, p->u->k[0]);
  if (x < 0 || (along < 0 && p->u->k[0][x] != 1)) return 0;
  // Along K its lines are read whole, again from the first cache: while V stays in the second one.
  if (along < 0 ? wide * cpu->l1 / kit->nu > cpu->l2 : wide > 2 * kit->nv * kit->w) return 0;
  int64_t most_u = eini_max64(cpu->l2 / 4 / (wide * size), 4 * kit->nu);
  const int last = p->ux->n - 1;
  eini_gett_fit(p->ux->n, p->ux->extent, NULL, t.box_u, most_u, along, last, most_u, kit->nu);
  int64_t step, kc = cpu->l1 / 2 / (kit->nu * size);
  const int64_t even = eini_gett_even(p->ux->n, t.box_u, p->u->row[0], &step);
  if (even < kit->nu || (along >= 0 && step != 1)) return 0;
  if (step == 1) kc = eini_min64(kc, eini_max64(cpu->l2 / 4 / (even * size), 32));
  // The boxes of K are the same for any number of threads.
  most_u = eini_gett_even_share(all_u, most_u, p->shares[2], kit->nu);
  int64_t less[EINI_GETT_AXES];
  eini_gett_fit(p->ux->n, p->ux->extent, NULL, less, most_u, along, last, most_u, kit->nu);
  if (eini_gett_even(p->ux->n, less, p->u->row[0], &step) >= kit->nu)
    memcpy(t.box_u, less, sizeof less);
  for (int i = 0; i < p->kx->n; i++) t.box_k[i] = 1;
  eini_gett_grow(p->kx->n, p->kx->extent, t.box_k, x, kc, kc, 8);
  for (int i = x - 1; i >= 0 && t.box_k[i + 1] == p->kx->extent[i + 1]; i--) {
    if (p->u->k[0][i] != p->u->k[0][i + 1] * p->kx->extent[i + 1]) break;
    eini_gett_grow(p->kx->n, p->kx->extent, t.box_k, i, kc, kc, 1);
  }
  t.nk = t.rows = eini_gett_product(p->kx->n, t.box_k);
  if (t.nk < eini_min64(32, eini_gett_product(p->kx->n, p->kx->extent))) return 0;
  // What V has along another axis of K it would read in parts of lines, again for each box.
  const int kv = eini_gett_unit_axis(p->v, p->v->k, p->kx);
  if (kv >= 0 && t.box_k[kv] < eini_min64(p->kx->extent[kv], 64 / size)) return 0;
  for (int i = 0; i < p->vx->n; i++) t.box_v[i] = p->vx->extent[i];
  const int64_t run = p->vx->extent[p->vx->n - 1];
  t.nv = eini_up(all_v / run * eini_up(run, p->pad), eini_max64(kit->gv, kit->w));
  t.nu = eini_up(eini_gett_product(p->ux->n, t.box_u), kit->nu);
  int64_t cost = 0;
  t.lanes = eini_gett_lanes(kit, t.nv, &cost);
  t.sub = t.nv, t.ahead = 0;
  *p = t;
  return 1;
}

// Small problems of one index per group, contiguous along V, need no panels: tiles read in place.
static int eini_gett_bare(const eini_cpu *cpu, const eini_gett_sketch *p) {
  const int64_t size = p->kit.size;
  if (!p->direct || p->past || p->kit.cols > 1 || p->vx->n != 1 || p->ux->n > 1 || p->kx->n > 1 ||
      p->v->form != EIN_FORM_PLAIN || p->u->form != EIN_FORM_PLAIN || p->v->row[0][0] != 1)
    return 0;
  const int64_t v = p->vx->extent[0], u = p->ux->n > 0 ? p->ux->extent[0] : 1;
  const int64_t k = p->kx->n > 0 ? p->kx->extent[0] : 1;
  const int64_t sv = p->kx->n > 0 ? p->v->k[0][0] * size : 0;
  const int64_t su = p->ux->n > 0 ? p->u->row[0][0] * size : 0;
  // Rows a multiple of many lines apart compete for few sets of the cache.
  return v % p->kit.w == 0 && k <= EINI_GETT_BARE_K &&
         v * k * size <= (sv % 512 == 0 ? cpu->l1 : cpu->l2 / 2) &&
         u * k * size <= (su % 512 == 0 ? cpu->l1 : cpu->l2 / 2);
}

static void eini_gett_sketch_make(const eini_cpu *cpu, const ein_contract *c,
                                  eini_gett_sketch *p) {
  const int64_t w = p->kit.w;
  p->ordered = c->ordered;
  const double m = eini_gett_filled(&c->m, c->out_m, w), n = eini_gett_filled(&c->n, c->out_n, w);
  const int plain = eini_gett_plain(c, &p->kit);
  const int direct = plain && p->kit.parts == 1 && !(p->without & EINI_GETT_DIRECT);
  eini_gett_orient(cpu, c, p, (m > n) != (p->without & EINI_GETT_SWAP));
  int64_t run = p->vx->n > 0 ? p->vx->extent[p->vx->n - 1] : 1;
  p->direct = direct && p->unit && p->vx->n > 0 &&
              (p->vx->n == 1 || run * 20 >= eini_up(run, w) * 17);
  // Short runs that go on in the output are one, with vectors across them.
  const int64_t whole = eini_gett_run_of(p->vx, p->out_v);
  const int joined = !p->direct && direct && whole > run && whole * 20 >= eini_up(whole, w) * 17;
  if (joined) p->direct = 1, run = whole;
  const int64_t full = joined ? 1 : eini_max64(w, p->kit.gv);
  p->pad = p->direct ? full : p->kit.gv;
  if (!p->direct && (!p->unit || run * 5 < eini_up(run, p->kit.gv) * 4)) p->pad = 1;
  // Whole runs are not filled up where what is saved pays for vectors across two of them.
  const int across = p->direct && !joined && p->vx->n > 1 && run % w != 0 && run % p->kit.gv == 0 &&
                     eini_gett_product(c->k.n, c->k.extent) >= 128;
  if (across) p->pad = p->kit.gv;
  eini_gett_boxes(cpu, p);
  if (across && p->box_v[p->vx->n - 1] < run) p->pad = full, eini_gett_boxes(cpu, p);
  p->past = !p->cut && plain && p->unit && p->beyond && run * p->kit.size >= 64 &&
            p->nk >= eini_gett_product(c->k.n, c->k.extent) && !(p->without & EINI_GETT_PAST);
  if (p->past) {
    if (!c->plain_out) p->direct = 0;  // they are scaled in the buffer
    if (p->direct) p->pad = full;
    // Vectors that would not start lines go through the buffer.
    if (p->kit.w * p->kit.size == 64 && run % w != 0) p->direct = 0, p->pad = p->kit.gv;
    if (joined) p->direct = 0, p->pad = 1;
    eini_gett_boxes(cpu, p);
  }
  p->bare = !p->cut && c->plain_out && !(p->without & EINI_GETT_BARE) && eini_gett_bare(cpu, p);
  p->in_place = !(p->without & EINI_GETT_IN_PLACE) && !p->bare && eini_gett_in_place(cpu, p);
  // Runs of more than a vector, no whole number of them, each within one tile.
  const int64_t step = eini_up(run, w);
  p->shift = p->cut != EINI_GETT_CUT && p->direct && !p->past && p->kit.cols == 1 &&
             p->pad == w && run > w && run < step && step <= p->kit.nv * w &&
             p->box_v[p->vx->n - 1] == run;
  if (p->shift) p->lanes = step;
}

// ================================================================================================
// >>gett-plan  ways of section gett by predicted time
// Takes a contraction and rates; gives boxes, orientation and seconds.
// ================================================================================================

// Pieces of the output of fewer bytes cost what turning to their places takes, about so many cycles
// where the output is beyond the second cache.
#define EINI_TURN_PIECE 128
#define EINI_TURN_CYCLES 20

// Cycles of an element for turning to another place of an output of so many bytes, in short pieces
// through the buffer: columns of a tile fill a line together where they follow each other.
static double eini_gett_turns(const eini_rated *cpu, const eini_gett_sketch *p, double out) {
  if (p->direct) return 0;
  const int64_t run = eini_gett_run_of(p->vx, p->out_v);
  const int64_t next = p->unit ? 1 : eini_gett_run_of(p->ux, p->out_u);
  const double turn = out > (double)cpu->is.l2 / 2 ? EINI_TURN_CYCLES : 2;
  if (run * p->kit.size >= EINI_TURN_PIECE) return 0;
  return turn / (double)(run * eini_min64(next, p->kit.nu)) + (p->unit ? 0 : 2);
}

// Seconds of a problem of a batch beyond its arithmetic: with tables of offsets, and without.
#define EINI_GETT_SECONDS 8e-8
#define EINI_BARE_SECONDS 5e-9

// Products per second of a kit at its best.
static double eini_gett_peak(const eini_rated *cpu, ein_dtype type, ein_pair pair,
                             const eini_gett_kit *k) {
  const double parts = (double)(k->parts * k->parts), times = pair == EIN_PAIR_SUM_MUL ? 1 : 2;
  double peak = cpu->hz * 2;
  if (k->form == EINI_GETT_AMX_BF16) peak = cpu->peak_bf16 / 2;
  else if (k->form == EINI_GETT_AMX_I8) peak = cpu->peak_i8 / 2;
  else if (k->form == EINI_GETT_BF16) peak = fmin(cpu->peak_bf16, 2 * cpu->peak_f32) / 2;
  else if (k->form == EINI_GETT_I8) peak = fmin(cpu->peak_i8, 4 * cpu->peak_f32) / 2;
  else if (k->form == EINI_GETT_I16) peak = cpu->peak_f32 / (k->w < 16 ? 2 : 1);
  else if (type == EIN_F64 || type == EIN_C128) peak = cpu->peak_f64 / 2;
  else if (type == EIN_F32 || type == EIN_C64) peak = cpu->peak_f32 / 2;
  else if (type == EIN_I64 && k->w > 4) peak = cpu->peak_f32 / 8;  // in vectors
  else if (type == EIN_I32 && k->w > 4) peak = cpu->peak_f32 / 4;
  return peak / parts / times;
}

// How often V is packed: for each box of U, unless the panels of all of it stay.
static double eini_gett_again(const eini_gett_sketch *p, double v, double u, double k) {
  return (double)p->nv < v || (double)p->nk < k ? ceil(u / (double)p->nu) : 1;
}

// Bytes that move to and from a core's second cache. Panels of V stay there. Those of U do if V is
// one box; else they are written, and come again for each box of V, as sums do for each of K.
static double eini_gett_traffic(const ein_contract *c, const eini_gett_sketch *p) {
  const double b = (double)eini_gett_product(c->batch.n, c->batch.extent);
  const double v = (double)eini_gett_product(p->vx->n, p->vx->extent);
  const double u = (double)eini_gett_product(p->ux->n, p->ux->extent);
  const double k = (double)eini_gett_product(p->kx->n, p->kx->extent);
  const double size = b * (double)p->kit.size;
  if (p->bare) return (k * (v + u) + v * u) * size;
  const double blocks_v = ceil(v / (double)p->nv), blocks_k = ceil(k / (double)p->nk);
  const double again_v = p->in_place ? ceil(u / (double)p->nu) : eini_gett_again(p, v, u, k);
  const double again_u = p->in_place || blocks_v <= 1 ? 1 : blocks_v + 2;
  return (k * (v * again_v + u * again_u) + v * u * (2 * blocks_k - 1)) * size;
}

// Bytes and cycles of an element of a side that is packed; bytes of one of the output.
static double eini_gett_bytes(const ein_side *s) {
  double bytes = 0;
  for (int o = 0; o < s->nop; o++) bytes += (double)ein_dtype_size(s->dtype[o]);
  return bytes;
}
static double eini_gett_cycles(const eini_gett_kit *kit, const ein_side *s, int is_u) {
  return eini_gett_converter(kit, s, is_u) != NULL ? 0 : eini_side_cycles(s);
}

#define EINI_GETT_PACK 0.6   // cycles of an element that is packed in vectors
#define EINI_GETT_ALONE 2.5  // times as long for one that is packed by itself
#define EINI_GETT_MANY 512   // elements of pages of their own that no cache has the pages of

// Cycles beside those of elements: to make tables, a position; to pack, a position, beside what
// its elements take; of a tile; of a column whose run ends within a vector, and of a vector that
// does not start a line; of an element that leaves the buffer, by itself and where columns of U,
// which follow each other, leave as one.
#define EINI_GETT_TABLE_CYCLES 6
#define EINI_GETT_PANEL_CYCLES 4
#define EINI_GETT_TILE_CYCLES 10
#define EINI_GETT_RIM_CYCLES 15
#define EINI_GETT_BUFFER_CYCLES 0.7
#define EINI_GETT_LEAVE_CYCLES 0.21

// Positions of V for one of its elements: runs of a box are filled up to whole granules of it.
static double eini_gett_padded(const eini_gett_sketch *p) {
  const int n = p->vx->n;
  if (n == 0) return 1;
  const int64_t run = p->vx->extent[n - 1], box = p->box_v[n - 1];
  return (double)(run / box * eini_up(box, p->pad) + eini_up(run % box, p->pad)) / (double)run;
}

// All of them for b problems of v by u elements. (Tables stay while boxes have one shape.)
static double eini_gett_around(const eini_gett_sketch *p, double b, double v, double u,
                               double again_v, double blocks_k) {
  const int n = p->vx->n;
  const int64_t w = p->kit.w, run = n == 0 ? 1 : p->pad == 1 ? eini_gett_run_of(p->vx, p->out_v)
                                                             : p->vx->extent[n - 1];
  const double runs = v / (double)run, places = v * eini_gett_padded(p);
  const int64_t next = eini_least_step(p->ux->n, p->ux->extent, p->out_u, INT64_MAX);
  const int whole = runs <= 1 && next == run && (double)p->sub >= v;
  const double tiles = ceil(places / (double)p->lanes) * ceil(u / (double)p->kit.nu);
  const double all = fmin(places, 2 * (double)p->nv) + fmin(u, 2 * (double)p->nu);
  double each = EINI_GETT_PANEL_CYCLES * (places * again_v + (p->in_place ? 0 : u));
  each += EINI_GETT_TILE_CYCLES * tiles * blocks_k;
  if (!p->direct) each += (whole ? EINI_GETT_LEAVE_CYCLES : EINI_GETT_BUFFER_CYCLES) * v * u;
  else if (run % w != 0 && !p->shift) each += EINI_GETT_RIM_CYCLES * runs * u * blocks_k;
  int64_t odd = 0;
  for (int i = 0; i < p->ux->n; i++) odd |= p->out_u[i] % w;
  for (int i = 0; i + 1 < n; i++) odd |= p->out_v[i] % w;
  if (p->direct && odd != 0 && w * p->kit.size >= 64) each += places * u / (double)w * blocks_k;
  return EINI_GETT_TABLE_CYCLES * all + b * each;
}

#undef EINI_GETT_TABLE_CYCLES
#undef EINI_GETT_PANEL_CYCLES
#undef EINI_GETT_TILE_CYCLES
#undef EINI_GETT_RIM_CYCLES
#undef EINI_GETT_BUFFER_CYCLES
#undef EINI_GETT_LEAVE_CYCLES

// Positions of a side as they are packed: whole granules, each lane by itself where the operand is
// contiguous along no run of a granule.
static double eini_gett_places(const eini_rated *cpu, const ein_side *s, const ein_axes *x,
                               const ein_axes *k, double n, int granule) {
  const double filled = (double)eini_up((int64_t)n, granule);
  if (s->nop == 0) return filled;
  const int along = eini_gett_unit_axis(s, s->k, k);
  if (along >= 0 && k->extent[along] >= granule) return filled;
  int64_t run = 1;
  for (int i; (i = eini_gett_goes_on(x->n, x->extent, s->row[0], run)) >= 0;) run *= x->extent[i];
  if (run >= granule) return filled;
  int64_t step = eini_least_step(x->n, x->extent, s->row[0], INT64_MAX);
  step = eini_least_step(k->n, k->extent, s->k[0], step);
  const int many = n * (double)eini_gett_product(k->n, k->extent) >= EINI_GETT_MANY;
  const int pages = many && eini_pages_apart(step, (int64_t)ein_dtype_size(s->dtype[0]));
  return (pages ? EINI_PAGE_SECONDS * cpu->hz / EINI_GETT_PACK : EINI_GETT_ALONE) * filled;
}

// Is a side packed in the first of many runs only?
static int eini_gett_lasts(const ein_contract *c, const eini_gett_sketch *p, const ein_side *s,
                           int is_u) {
  return s->constant && c->batch.n == 0 && !p->past && !(p->in_place && is_u) &&
         eini_gett_converter(&p->kit, s, is_u) == NULL;
}

// Of a share of batch, V and U.
static double eini_gett_seconds(const eini_rated *cpu, const ein_contract *c,
                                const eini_gett_sketch *p, const double *share) {
  const double b = share[0] * (double)eini_gett_product(c->batch.n, c->batch.extent);
  const double v = share[1] * (double)eini_gett_product(p->vx->n, p->vx->extent);
  const double u = share[2] * (double)eini_gett_product(p->ux->n, p->ux->extent);
  const double k = (double)eini_gett_product(p->kx->n, p->kx->extent);
  const double size = (double)p->kit.size, out_size = (double)ein_dtype_size(c->out_dtype);
  const double out = b * v * u * out_size / (share[0] * share[1] * share[2]);
  const double wide = (double)eini_up((int64_t)(v * eini_gett_padded(p)), p->kit.w);
  const double high = u < 4 ? u + (4 - u) * 0.7 : u;
  const double blocks_u = ceil(u / (double)p->nu), blocks_k = ceil(k / (double)p->nk);
  double t = b * wide * high * k / eini_gett_peak(cpu, c->type, c->pair, &p->kit);
  if (p->bare) {
    const double all = b * (k * (v + u) + v * u) * size / share[0];
    const double move = b * (k * (v + u) + 2 * v * u) * size / eini_cpu_bw(cpu, all);
    return eini_cpu_beside(t, move, EINI_CPU_BESIDE) + b * EINI_BARE_SECONDS;
  }
  const int lasts_v = eini_gett_lasts(c, p, p->v, 0), lasts_u = eini_gett_lasts(c, p, p->u, 1);
  if (p->in_place) {
    // Reads are asked for ahead and overlap the arithmetic.
    const double read = b * k * u * size / cpu->read_bw;
    t = t * 1.1 > read ? t * 1.1 : read;
    const double places = eini_gett_places(cpu, p->v, p->vx, p->kx, v, p->kit.gv);
    const double packed = fmax(v * (double)p->v->nop, places * EINI_GETT_PACK);
    if (!lasts_v) t += b * k * blocks_u * (packed + v * eini_side_cycles(p->v)) / cpu->hz;
    t += b * v * u * size * blocks_k / cpu->l2_bw;
    t += eini_gett_around(p, b, v, u, blocks_u, blocks_k) / cpu->hz;
    if (!p->beyond) t += b * v * u * size / cpu->l3_bw;
    const double lines = p->beyond ? 2 * b * v * u * size / eini_cpu_copy_bw(cpu, out) : 0;
    return eini_cpu_beside(t, lines, EINI_CPU_BESIDE) + b * EINI_GETT_SECONDS;
  }
  const double again_v = eini_gett_again(p, v, u, k);
  const double places_v =
      lasts_v ? 0 : eini_gett_places(cpu, p->v, p->vx, p->kx, v, p->kit.gv);
  const double places_u =
      lasts_u ? 0 : eini_gett_places(cpu, p->u, p->ux, p->kx, u, p->kit.gu);
  t += b * k * (places_v * again_v + places_u) * EINI_GETT_PACK / cpu->hz;
  const double in = b * k * (v * eini_gett_bytes(p->v) + u * eini_gett_bytes(p->u));
  t += in / eini_cpu_bw(cpu, in / share[0] + out);
  t += eini_gett_around(p, b, v, u, again_v, blocks_k) / cpu->hz;
  const int again = p->direct && !p->past && p->beyond;  // lines are read before they are written
  if (!again) t += b * v * u * out_size / (p->beyond ? cpu->copy_bw : cpu->l3_bw);
  t += b * v * u * eini_gett_turns(cpu, p, out) / cpu->hz;
  if (p->far) t += 2 * b * k * v * size / cpu->read_bw;  // lines compete for few sets
  if (!lasts_v) t += b * k * v * again_v * eini_gett_cycles(&p->kit, p->v, 0) / cpu->hz;
  if (!lasts_u) t += b * k * u * eini_gett_cycles(&p->kit, p->u, 1) / cpu->hz;
  if (!eini_gett_plain(c, &p->kit))
    t += b * v * u * (eini_gett_converts(c) ? 0.4 : 2) / cpu->hz;
  const double lines = again ? 2 * b * v * u * out_size / eini_cpu_copy_bw(cpu, out) : 0;
  return eini_cpu_beside(t, lines, EINI_CPU_BESIDE) + b * EINI_GETT_SECONDS;
}

#undef EINI_GETT_PACK
#undef EINI_GETT_ALONE
#undef EINI_GETT_MANY

static size_t eini_gett_layout(const eini_cpu *cpu, const ein_contract *c,
                               const eini_gett_sketch *p, char *base, eini_gett_job *job);

static int eini_gett_able(const ein_contract *c) {
  const ein_axes *x[4] = {&c->batch, &c->m, &c->n, &c->k};
  int axes = 0;
  if (c->pair != EIN_PAIR_SUM_MUL && (c->p.nop == 0 || c->q.nop == 0)) return 0;
  for (int g = 0; g < 4; g++) {
    if (x[g]->n > EINI_GETT_AXES) return 0;
    if (g > 0) axes += x[g]->n;
    for (int i = 0; i < x[g]->n; i++)
      if (x[g]->extent[i] <= 0) return 0;
  }
  return axes + EINI_GETT_HEAD <= EINI_GETT_STATE && c->p.nop <= EINI_GETT_OPS &&
         c->q.nop <= EINI_GETT_OPS && c->nextra < EINI_GETT_OPS;
}

// The grid of at most `width` parts with the least time for the busiest thread; returns the time.
static double eini_gett_cut(const eini_rated *cpu, const ein_contract *c, const eini_gett_sketch *p,
                            int64_t width, ein_choice *choice) {
  eini_gett_axes v, u;
  eini_gett_axes_init(&v, p->vx, p->box_v);
  eini_gett_axes_init(&u, p->ux, p->box_u);
  const int64_t all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  const int64_t batch = eini_gett_product(c->batch.n, c->batch.extent);
  const int iv = p->swap ? 1 : 2, iu = p->swap ? 2 : 1;
  if (p->bare) v.total = u.total = 1;
  choice->unit[0] = 1;
  choice->unit[iv] = eini_gett_stretch(all_v, v.total);
  choice->unit[iu] = eini_gett_stretch(all_u, u.total);
  choice->grid[0] = eini_min64(batch, p->shares[0]);
  const int64_t left = eini_max64(width / choice->grid[0], 1);
  double best = 0;
  for (int64_t gv = 1; gv <= eini_min64(left, v.total); gv++) {
    const int64_t gu = eini_min64(u.total, left / gv);
    const double share[3] = {eini_gett_most(batch, choice->grid[0]), eini_gett_most(v.total, gv),
                             eini_gett_most(u.total, gu)};
    const double seconds = eini_gett_seconds(cpu, c, p, share);
    if (gv > 1 && seconds >= best) continue;
    best = seconds, choice->grid[iv] = gv, choice->grid[iu] = gu;
  }
  return best;
}

// Stores past the caches that go through a buffer must be predicted to save so much where U can be
// read in place: such reads overlap what predictions add up. ij,jk->ik, 2,000,000 by 16 and 16 by
// 16 f64 on a Xeon: 42 ms in place, 54 past the caches; 23 and 27 on two threads, where 1.24 times
// as much was predicted. Where tiles can store at once they must save anything: lines are asked for
// before. mk,kn->mn, 2,001 by 2,003 f64, k = 25: 3.7 ms at once, 4.9 past the caches.
#define EINI_GETT_PAST_GAIN 1.3

// The rest of a sketch of which shares and flags are set, and its grid.
static void eini_gett_settle(const eini_rated *cpu, const ein_contract *c, int64_t width,
                             eini_gett_sketch *p, ein_choice *choice) {
  eini_gett_sketch q = *p;
  eini_gett_sketch_make(&cpu->is, c, p);
  memset(choice, 0, sizeof *choice);
  choice->seconds = eini_gett_cut(cpu, c, p, width, choice);
  if (!p->past) return;
  ein_choice other;
  memset(&other, 0, sizeof other);
  q.without |= EINI_GETT_PAST;
  eini_gett_sketch_make(&cpu->is, c, &q);
  if (!q.in_place && !q.bare && !(q.direct && !p->direct)) return;
  other.seconds = eini_gett_cut(cpu, c, &q, width, &other);
  const double gain = q.in_place || q.bare ? EINI_GETT_PAST_GAIN : 1;
  if (other.seconds < gain * choice->seconds) *p = q, *choice = other;
}

// The sketch of one thread, or one with boxes for some way to share batch, V and U that takes
// clearly less time.
static int eini_gett_best(const eini_rated *cpu, const ein_contract *c, int64_t width, int cut,
                          int form, int without, eini_gett_sketch *best, ein_choice *choice) {
  const int64_t batch = eini_gett_product(c->batch.n, c->batch.extent);
  const double m = (double)eini_gett_product(c->m.n, c->m.extent);
  const double n = (double)eini_gett_product(c->n.n, c->n.extent);
  const double out = (double)batch * m * n;
  const double in = (double)batch * (double)eini_gett_product(c->k.n, c->k.extent) *
                    (m * eini_gett_bytes(&c->p) + n * eini_gett_bytes(&c->q));
  int found = 0;
  for (int64_t b = eini_min64(width, batch); b > 0; b--) {
    const int64_t left = width / b;
    for (int64_t v = 0; v <= left; v++) {
      if (v == 0 ? b < eini_min64(width, batch) : left == 1 || left % v != 0) continue;
      eini_gett_sketch p;
      ein_choice one;
      memset(&p, 0, sizeof p);
      if (!eini_gett_pick_form(&cpu->is, c, form, &p.kit)) return 0;
      p.shares[0] = b, p.shares[1] = v > 0 ? v : 1, p.shares[2] = v > 0 ? left / v : 1;
      p.cut = cut;
      p.without = without;
      p.beyond = eini_cpu_past_with(cpu, out * (double)p.kit.size, in);
      eini_gett_settle(cpu, c, width, &p, &one);
      if (found && one.seconds >= 0.98 * choice->seconds) continue;
      *best = p, *choice = one, found = 1;
    }
    if (batch % b == 0 || batch >= 8 * b) break;  // equal enough
  }
  return found;
}

static int eini_gett_plan_cut(const eini_rated *cpu, const ein_contract *c, int width, int cut,
                              int form, int without, ein_choice *choice) {
  static const char *const names[EINI_GETT_FORMS] = {"gett", "bf16", "i16", "i8", "amx", "amx"};
  eini_gett_sketch p;
  if (!eini_gett_able(c) || !eini_gett_best(cpu, c, width, cut, form, without, &p, choice))
    return 0;
  int64_t *s = choice->state;
  s[0] = (p.swap ? EINI_GETT_SWAP : 0) | (p.direct ? EINI_GETT_DIRECT : 0) |
         (p.past ? EINI_GETT_PAST : 0) | (p.keep ? EINI_GETT_KEEP : 0) |
         (p.bare ? EINI_GETT_BARE : 0) |
         (p.in_place ? EINI_GETT_IN_PLACE : 0) | (p.ahead ? EINI_GETT_SOON : 0) |
         (p.shift ? EINI_GETT_SHIFT : 0) | form << EINI_GETT_FORM;
  s[1] = p.lanes, s[2] = p.sub, s[3] = p.pad;
  s += EINI_GETT_HEAD;
  for (int i = 0; i < p.vx->n; i++) *s++ = p.box_v[i];
  for (int i = 0; i < p.ux->n; i++) *s++ = p.box_u[i];
  for (int i = 0; i < p.kx->n; i++) *s++ = p.box_k[i];
  choice->batches = 1;
  choice->seconds += cpu->call;
  choice->traffic = eini_gett_traffic(c, &p);
  choice->scratch = p.bare ? 0 : eini_gett_layout(&cpu->is, c, &p, NULL, NULL);
  const char *how = p.bare ? "bare"
                    : p.in_place ? "in place"
                    : p.direct ? (p.past ? "stream" : "direct")
                    : p.keep ? "keep"
                             : (p.past ? "buffer past" : "buffer");
  snprintf(choice->variant, sizeof choice->variant, "%s %s%s", names[form], how,
           without & EINI_GETT_SWAP ? " turned" : "");
  return 1;
}

// V and U turned are to be predicted to take so much less: the rules of a sketch know better where
// it is close.
#define EINI_GETT_TURN_GAIN 0.8

static int eini_gett_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  ein_choice turned;
  if (!eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, 0, choice)) return 0;
  if (c->ordered || choice->state[0] & EINI_GETT_BARE) return 1;
  memset(&turned, 0, sizeof turned);
  eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, EINI_GETT_SWAP, &turned);
  if (turned.seconds < EINI_GETT_TURN_GAIN * choice->seconds) *choice = turned;
  return 1;
}

// The nth of the ways that differ from that plan: without what it does, and with V and U turned.
// The model is not to overrule the rules, so none is predicted to take less.
static int eini_gett_other(const eini_rated *cpu, const ein_contract *c, int width, int nth,
                           ein_choice *choice) {
  static const int without[] = {0, EINI_GETT_BARE, EINI_GETT_BARE | EINI_GETT_IN_PLACE,
                                EINI_GETT_DIRECT};
  if (c->ordered || !eini_gett_plan(cpu, c, width, choice)) return 0;
  const double least = choice->seconds;
  uint64_t seen = (uint64_t)1 << choice->state[0] % EINI_GETT_WAYS;
  for (int i = 0; i < 16; i++) {
    const int less = without[i % 4] | (i & 4 ? EINI_GETT_PAST : 0) | (i & 8 ? EINI_GETT_SWAP : 0);
    memset(choice, 0, sizeof *choice);
    if (!eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, less, choice)) return 0;
    const uint64_t how = (uint64_t)1 << choice->state[0] % EINI_GETT_WAYS;
    if (!(seen & how) && nth-- == 0) {
      choice->seconds = fmax(choice->seconds, least);
      return 1;
    }
    seen |= how;
  }
  return 0;
}

// Takes bytes off the scratch memory, on lines of their own.
static char *eini_gett_take(char *base, size_t *at, int64_t bytes) {
  char *r = base != NULL ? base + *at : NULL;
  *at += (size_t)eini_up(bytes, 64) + 64;
  return r;
}

static void eini_gett_take_hand(const eini_gett_kit *kit, eini_gett_hand *h, const ein_side *s,
                                int64_t np, int64_t nk, int64_t lanes, int ahead, int is_u,
                                char *base, size_t *at) {
  const int64_t size = kit->size, rows = eini_gett_rows(kit, nk);
  const int64_t panel = eini_gett_panel(lanes, kit->head + rows, size);
  const int64_t bytes = (np + lanes - 1) / lanes * panel * size;
  h->panels = h->in_place ? NULL : eini_gett_take(base, at, bytes);
  h->most_soon = 0;
  if (h->in_place) h->most_soon = eini_up((np / (64 / size) + lanes + 1) * nk, nk);
  else if (h->packed_soon) h->most_soon = rows;
  else if (ahead) h->most_soon = eini_up(np * nk * size / 32, nk);
  h->soon = (int64_t *)(void *)eini_gett_take(base, at, h->most_soon * 8);
  for (int o = 0; o < s->nop; o++) {
    const int64_t one = (int64_t)ein_dtype_size(s->dtype[o]);
    const int own = o > 0 || (one != size && eini_gett_converter(kit, s, is_u) == NULL);
    if (own && (o < 2 || eini_gett_made(s, kit, is_u)))
      h->spare[o] = eini_gett_take(base, at, bytes / size * one);
    else h->spare[o] = own ? h->spare[1] : NULL;
  }
  h->place = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  h->out = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  for (int o = 0; o < s->nop; o++) {
    h->row[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
    h->col[o] = (int64_t *)(void *)eini_gett_take(base, at, nk * 8);
    h->flat[o] = (unsigned char *)eini_gett_take(base, at, np);
    h->across[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
    h->first[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  }
}

// Positions of a box of V at most: boxes of streamed output may be moved to where lines start, or
// their runs are filled up in front.
static int64_t eini_gett_room(const eini_gett_sketch *p) {
  const int last = p->vx->n - 1;
  if (!p->past || last < 0) return p->nv;
  const int64_t run = eini_up(p->box_v[last], p->pad);
  const int64_t more = eini_up(p->box_v[last] + 64 / p->kit.size, p->pad);
  return eini_up((p->nv + run - 1) / run * more, eini_max64(p->kit.gv, p->kit.w));
}

// One carry for each run of a box of V and each column of U, as far as there are so many.
static int64_t eini_gett_carries(const eini_gett_sketch *p) {
  const int last = p->vx->n - 1;
  const int64_t runs = last < 0 ? 1 : eini_gett_product(last, p->box_v);
  int64_t n = 64;
  while (n < runs * p->nu && n < EINI_GETT_CARRIES) n *= 2;
  return n;
}

static size_t eini_gett_layout(const eini_cpu *cpu, const ein_contract *c,
                               const eini_gett_sketch *p, char *base, eini_gett_job *job) {
  eini_gett_job none;
  eini_gett_job *j = job != NULL ? job : &none;
  const eini_gett_kit *kit = &p->kit;
  size_t at = 0;
  j->v.in_place = 0, j->u.in_place = p->in_place;
  // Panels of U that do not stay in the second cache, several tiles long.
  j->v.packed_soon = 0;
  j->u.packed_soon = !p->in_place && p->nu * p->rows * kit->size > cpu->l2 / 2 &&
                     p->sub > p->lanes;
  const int64_t room = eini_gett_room(p);
  j->v.left = (int64_t *)(void *)eini_gett_take(base, &at, room * 8);
  eini_gett_take_hand(kit, &j->v, p->v, room, p->nk, p->lanes, p->ahead, 0, base, &at);
  eini_gett_take_hand(kit, &j->u, p->u, p->nu, p->nk, kit->nu, 0, 1, base, &at);
  j->ld = p->keep ? eini_up(p->nv, p->lanes) : p->sub;
  if (!p->direct || p->past)
    j->buffer = eini_gett_take(base, &at, j->ld * kit->parts * kit->size *
                                              (p->keep ? p->nu : 2 * kit->nu));
  j->carries = p->past ? eini_gett_carries(p) : 0;
  if (p->past)
    j->carry = (eini_tail *)(void *)eini_gett_take(
        base, &at, j->carries * (int64_t)sizeof(eini_tail));
  j->edge = eini_gett_take(base, &at, p->lanes * kit->nu * kit->size);
  if (!c->plain_out && !c->scaled) {
    j->off = (int64_t *)(void *)eini_gett_take(base, &at, 8 * EIN_POINTS * (c->nextra + 1));
    j->values = eini_gett_take(base, &at, 16 * EIN_POINTS);
  }
  for (int e = 0; !c->plain_out && e < c->nextra; e++) {
    j->xv[e] = (int64_t *)(void *)eini_gett_take(base, &at, p->nv * 8);
    j->xu[e] = (int64_t *)(void *)eini_gett_take(base, &at, p->nu * 8);
  }
  return at;
}

// ================================================================================================
// >>gett-run  runs of section gett
// Takes a choice; runs its boxes.
// ================================================================================================

// s: words of ein_choice.state as eini_gett_plan_cut writes them.
static void eini_gett_job_init(const eini_cpu *cpu, const ein_contract *c, const int64_t *s,
                               eini_gett_sketch *p, char *scratch, eini_gett_job *j) {
  const int64_t flags = s[0];
  memset(j, 0, sizeof *j);
  eini_gett_pick_form(cpu, c, (int)(flags >> EINI_GETT_FORM), &p->kit);
  eini_gett_orient(cpu, c, p, (s[0] & EINI_GETT_SWAP) != 0);
  p->direct = (s[0] & EINI_GETT_DIRECT) != 0, p->past = (s[0] & EINI_GETT_PAST) != 0;
  p->keep = (s[0] & EINI_GETT_KEEP) != 0, p->in_place = (s[0] & EINI_GETT_IN_PLACE) != 0;
  p->ahead = (s[0] & EINI_GETT_SOON) != 0;
  p->lanes = s[1], p->sub = s[2], p->pad = s[3];
  s += EINI_GETT_HEAD;
  j->cpu = cpu, j->c = c, j->kit = p->kit, j->swap = p->swap;
  if (eini_gett_converts(c)) {
    j->narrow = eini_cpu_chunk_fn(cpu->isa, EIN_OP_CAST, c->out_dtype);
    if (j->narrow == NULL) j->narrow = eini_storage_find(NULL, EIN_OP_CAST, c->out_dtype);
  }
  j->v.s = p->v, j->u.s = p->u, j->unit = p->unit;
  j->by = c->plain_out || !eini_gett_plain(c, &p->kit) ? NULL : c->alpha;
  eini_gett_axes_init(&j->v.g, p->vx, s);
  eini_gett_axes_init(&j->u.g, p->ux, s + p->vx->n);
  eini_gett_axes_init(&j->k, p->kx, s + p->vx->n + p->ux->n);
  const int64_t k = eini_gett_product(p->kx->n, p->kx->extent);
  eini_gett_follow(&j->v.g, p->v, k, eini_gett_product(p->ux->n, p->ux->extent));
  eini_gett_follow(&j->u.g, p->u, k, eini_gett_product(p->vx->n, p->vx->extent));
  const int64_t run = p->vx->n > 0 ? s[p->vx->n - 1] : 1;
  for (int i = 0; i < p->vx->n; i++) p->box_v[i] = s[i];
  j->v.granule = p->kit.gv, j->u.granule = p->kit.gu;
  j->v.fill = eini_max64(p->kit.gv, p->kit.w);
  j->u.fill = eini_max64(p->kit.gu, p->kit.cols);
  p->nv = eini_gett_product(p->vx->n, j->v.g.box) / run * eini_up(run, p->pad);
  p->nv = eini_up(p->nv, j->v.fill);
  p->nu = eini_up(eini_gett_product(p->ux->n, j->u.g.box), p->kit.nu);
  p->nk = eini_gett_product(p->kx->n, j->k.box);
  p->rows = p->kit.head + eini_gett_rows(&p->kit, p->nk);
  j->v.shift = flags & EINI_GETT_SHIFT ? p->kit.w : 0;
  j->v.lanes = p->lanes, j->u.lanes = p->kit.nu, j->v.pad = p->pad, j->u.pad = 1;
  j->v.pack = p->kit.pack_v, j->u.pack = p->kit.pack_u;
  j->v.nk = j->u.nk = -1;
  j->sub = p->sub, j->direct = p->direct, j->stream = p->past;
  const int64_t between = p->nu * eini_gett_product(p->vx->n, p->vx->extent) * p->kit.size;
  j->comes = p->direct && p->kit.cols == 1 && !p->in_place && between > cpu->l2 / 2;
  j->out_v = p->out_v, j->out_u = p->out_u;
  j->extra_v = p->swap ? c->extra_m : c->extra_n, j->extra_u = p->swap ? c->extra_n : c->extra_m;
  eini_gett_layout(cpu, c, p, scratch, j);
  if (p->past && scratch != NULL) memset(j->carry, 0, (size_t)j->carries * sizeof *j->carry);
}

// Elements of a line that stand before the output's first one and before each of its runs;
// -1: they differ.
static int64_t eini_gett_odd(const eini_gett_job *j) {
  const ein_contract *c = j->c;
  const int64_t lane = 64 / j->kit.size, bytes = (int64_t)((uintptr_t)c->out & 63);
  int64_t other = bytes % j->kit.size;
  for (int i = 0; i < j->v.g.n - 1; i++) other |= j->out_v[i] % lane;
  for (int i = 0; i < j->u.g.n; i++) other |= j->out_u[i] % lane;
  for (int i = 0; i < c->batch.n; i++) other |= c->out_batch[i] % lane;
  return other != 0 ? -1 : bytes / j->kit.size;
}

// Whether boxes of V come in the order of the output, so that each run is followed by the one
// behind it. Where reading asks for another order that is worth more.
static int eini_gett_in_order(const eini_gett_job *j) {
  const eini_gett_axes *g = &j->v.g;
  const int last = g->n - 1;
  if (last < 1 || j->v.s->nop == 0 || j->out_v[last - 1] != g->extent[last] ||
      (g->box[last] < g->extent[last] && g->box[last - 1] > 1))
    return 0;
  for (int i = 0; i < g->n; i++)
    if (j->v.s->row[0][i] == 1 && g->box[i] < g->extent[i]) return 0;
  for (int i = g->inner + 1; i < g->n && g->inner >= 0; i++)
    if (g->box[i] < g->extent[i]) return 0;
  return eini_gett_product(last, g->box) * eini_gett_product(j->u.g.n, j->u.g.box) <= j->carries;
}

// Whether runs are so long that it pays to fill them up to lines of the output.
static int eini_gett_pays(const eini_gett_job *j, int64_t odd) {
  const int last = j->v.g.n - 1;
  const int64_t run = last < 0 ? 1 : j->v.g.box[last];
  return eini_up(run + odd, j->kit.w) * 7 <= run * 8;
}

// Streamed vectors start lines. Where the output's runs do not, boxes that end within runs are
// moved to where lines start, for parts of a line would be stored twice. What is left of a line at
// the ends of a run is stored from a vector that is filled up, where that is little more to
// compute; otherwise all goes through the buffer, but for boxes without such ends.
static void eini_gett_align(eini_gett_job *j) {
  const int64_t lane = 64 / j->kit.size, odd = eini_gett_odd(j);
  const int last = j->v.g.n - 1;
  const int moved = odd > 0 && j->unit && last >= 0 && j->v.g.box[last] < j->v.g.extent[last] &&
                    j->v.g.box[last] % lane == 0;
  j->inner_direct = j->direct && j->kit.w == lane;
  j->masked = j->inner_direct && j->kit.cols == 1 && odd > 0 && (moved || eini_gett_pays(j, odd));
  j->direct = j->inner_direct && (odd == 0 || j->masked);
  j->parted = odd != 0 && j->unit && !j->masked;
  j->chained = j->parted && eini_gett_in_order(j);
  if (moved) j->v.g.early = odd;
  j->odd = odd;
}

// Whether the tiles of the current box of V, one of those that were moved, store whole lines.
static int eini_gett_inner(const eini_gett_job *j) {
  const int last = j->v.g.n - 1;
  return j->inner_direct && j->v.g.at[last] > 0 && j->v.g.size[last] % j->kit.w == 0;
}

// The operands of one side at the current boxes.
static void eini_gett_bases(const eini_gett_hand *h, const eini_gett_axes *k,
                            const int64_t *batch_at, int nbatch, const char **base) {
  for (int o = 0; o < h->s->nop; o++) {
    int64_t at = eini_gett_offset(&h->g, h->s->row[o]) + eini_gett_offset(k, h->s->k[o]);
    for (int i = 0; i < nbatch; i++) at += batch_at[i] * h->s->batch[o][i];
    base[o] = h->s->base[o] + at * (int64_t)ein_dtype_size(h->s->dtype[o]);
  }
}

static void eini_gett_pack_hand(eini_gett_job *j, eini_gett_hand *h, const int64_t *stride,
                                const int64_t *batch_at) {
  const char *base[EINI_GETT_OPS];
  const int64_t nk = eini_gett_product(j->k.n, j->k.size);
  eini_gett_tables(h, &j->k, nk, &j->kit, stride);
  eini_gett_bases(h, &j->k, batch_at, j->c->batch.n, base);
  eini_gett_pack(h, &j->kit, h == &j->u, base, nk);
}

// The output and what the store reads, at the current boxes of V and U.
static void eini_gett_target(eini_gett_job *j, const int64_t *batch_at) {
  const ein_contract *c = j->c;
  int64_t at = eini_gett_offset(&j->v.g, j->out_v) + eini_gett_offset(&j->u.g, j->out_u);
  for (int i = 0; i < c->batch.n; i++) at += batch_at[i] * c->out_batch[i];
  j->out = c->out + at * (int64_t)ein_dtype_size(c->out_dtype);
  if (eini_gett_plain(c, &j->kit)) return;
  for (int e = 0; e < c->nextra; e++) {
    at = eini_gett_offset(&j->v.g, j->extra_v[e]) + eini_gett_offset(&j->u.g, j->extra_u[e]);
    for (int i = 0; i < c->batch.n; i++) at += batch_at[i] * c->extra_batch[e][i];
    j->extra[e] = c->extra_base[e] + at * (int64_t)ein_dtype_size(c->extra_dtype[e]);
    eini_gett_table(j->v.g.n, j->v.g.size, j->extra_v[e], j->v.pad, j->v.fill, j->xv[e]);
    eini_gett_table(j->u.g.n, j->u.g.size, j->extra_u[e], 1, j->u.fill, j->xu[e]);
  }
}

// One box of V, U and K: pack what is not there yet, then multiply.
static void eini_gett_step(eini_gett_job *j, int64_t kb, const int64_t *batch_at, int keep,
                           int64_t then_v, int64_t then_k) {
  if (j->masked) j->v.lead = (j->odd + j->v.g.at[j->v.g.n - 1]) % j->kit.w;
  eini_gett_pack_hand(j, &j->u, j->out_u, batch_at);
  eini_gett_pack_hand(j, &j->v, j->out_v, batch_at);
  if (kb == 0 || !keep) eini_gett_target(j, batch_at);
  if (j->v.g.early > 0 && !j->masked) j->direct = eini_gett_inner(j);
  j->soon_left = 0, j->next_u = NULL;
  if (then_k < j->k.total && j->u.s->nop > 0 && j->v.s->nop > 0) {
    eini_gett_axes k = j->k, v = j->v.g;
    eini_gett_box(&k, then_k);
    eini_gett_box(&v, then_v);
    const int64_t *ku = j->u.s->k[0], *kv = j->v.s->k[0], *row = j->v.s->row[0];
    j->next_u = j->u.have[0] + (eini_gett_offset(&k, ku) - eini_gett_offset(&j->k, ku)) *
                                   j->kit.size;
    j->soon = j->v.soon, j->soon_left = j->v.nsoon;
    j->soon_base = (uintptr_t)j->v.have[0] +
                   (uintptr_t)((eini_gett_offset(&k, kv) - eini_gett_offset(&j->k, kv) +
                                eini_gett_offset(&v, row) - eini_gett_offset(&j->v.g, row)) *
                               j->kit.size);
  }
  eini_gett_tiles(j, eini_gett_product(j->k.n, j->k.size), kb == 0, kb == j->k.total - 1, keep);
}

static void eini_gett_boxes_of(const eini_gett_axes *g, const int64_t *part, int64_t all,
                               int64_t unit, int64_t *from, int64_t *to) {
  *from = eini_min64(part[0] / unit, g->total);
  *to = part[1] >= all ? g->total : eini_min64(part[1] / unit, g->total);
}

// The boxes of one side that threads share, in memory of theirs. Returns where they end.
static size_t eini_gett_slots(eini_gett_job *j, eini_gett_hand *h, int64_t np, int64_t nk,
                              char *base, size_t at) {
  const int64_t bytes = (np + h->lanes - 1) / h->lanes *
                        eini_gett_panel(h->lanes, nk, j->kit.size) * j->kit.size;
  h->slot_bytes = eini_up(bytes, 64);
  h->all = base == NULL ? NULL : base + at;
  return at + (size_t)h->slot_bytes * (size_t)(h->g.total * j->k.total);
}

// Counts of all boxes, first of U, then of V; then the boxes. The counts begin as 0.
static size_t eini_gett_shared(eini_gett_job *j, const eini_gett_sketch *p, int in_u, int in_v,
                               char *base, size_t *cleared) {
  const int64_t u = in_u ? j->u.g.total * j->k.total : 0;
  const int64_t v = in_v ? j->v.g.total * j->k.total : 0;
  eini_gett_slot *slots = (eini_gett_slot *)(void *)base;
  size_t at = (size_t)eini_up((u + v) * (int64_t)sizeof *slots, 64);
  *cleared = at;
  if (u > 0) at = eini_gett_slots(j, &j->u, p->nu, p->nk, base, at);
  if (v > 0) at = eini_gett_slots(j, &j->v, p->nv, p->nk, base, at);
  if (base != NULL && u > 0) j->u.slots = slots;
  if (base != NULL && v > 0) j->v.slots = slots + u;
  return at;
}

// The boxes of constant sides, as they last. Those that have begun do not come from operands.
static void eini_gett_lasting(eini_gett_job *j, const eini_gett_sketch *p, int64_t flags,
                              char *base) {
  size_t cleared;
  const int u = (flags & EINI_GETT_LASTS_U) != 0, v = (flags & EINI_GETT_LASTS_V) != 0;
  (void)eini_gett_shared(j, p, u, v, base, &cleared);
  if (u && eini_gett_begun(&j->u.slots[0]) > 0) j->u.most_soon = 0;
  if (v && eini_gett_begun(&j->v.slots[0]) > 0) j->v.most_soon = 0;
}

// Which sides parts of a plan's grid would pack several times, as far as all their boxes fit beside
// what else is in the caches; and which are constant.
static void eini_gett_share(const eini_cpu *cpu, const ein_contract *c, ein_choice *choice) {
  eini_gett_sketch p;
  eini_gett_job j;
  const int64_t flags = choice->state[0];
  size_t cleared;
  if (c->batch.n > 0 || flags & (EINI_GETT_BARE | EINI_GETT_PAST)) return;
  eini_gett_job_init(cpu, c, choice->state, &p, NULL, &j);
  const int64_t in_v = choice->grid[p.swap ? 1 : 2], in_u = choice->grid[p.swap ? 2 : 1];
  int lasts[2] = {0, 0};
  for (int side = 0; side < 2; side++) {
    const eini_gett_hand *h = side ? &j.v : &j.u;
    if (h->in_place || eini_gett_converter(&j.kit, h->s, !side) != NULL) continue;
    lasts[side] = eini_gett_lasts(c, &p, h->s, !side);
    if (lasts[side]) choice->state[0] |= side ? EINI_GETT_LASTS_V : EINI_GETT_LASTS_U;
    if (lasts[side] || !EINI_CPU_THREADS || (side ? in_u : in_v) < 2) continue;
    const int before = !side ? 0 : (choice->state[0] & EINI_GETT_SHARE_U) != 0;
    const size_t bytes = eini_gett_shared(&j, &p, !side || before, side, NULL, &cleared);
    if ((double)bytes > fmax(0.5 * eini_cpu_l3(cpu), 1 << 20)) continue;
    choice->state[0] |= side ? EINI_GETT_SHARE_V : EINI_GETT_SHARE_U;
    choice->shared = bytes, choice->cleared = cleared;
  }
  if (lasts[0] || lasts[1])
    choice->kept = eini_gett_shared(&j, &p, lasts[0], lasts[1], NULL, &cleared);
}

static void eini_gett_batch(eini_gett_job *j, const int64_t *batch_at, const int64_t *vr,
                            const int64_t *ur, int keep) {
  for (int64_t u = ur[0]; u < ur[1]; u++) {
    eini_gett_box(&j->u.g, u);
    // Either all of k for one box of V, or all boxes of V for some of k.
    const int64_t outer = keep ? vr[1] - vr[0] : j->k.total;
    const int64_t inner = keep ? j->k.total : vr[1] - vr[0];
    for (int64_t a = 0; a < outer; a++)
      for (int64_t b = 0; b < inner; b++) {
        const int64_t kb = keep ? b : a, v = vr[0] + (keep ? a : b);
        eini_gett_box(&j->k, kb);
        eini_gett_box(&j->v.g, v);
        j->u.box = u * j->k.total + kb, j->v.box = v * j->k.total + kb;
        const int64_t then = b + 1 < inner ? b + 1 : 0, next = a + (b + 1 == inner);
        eini_gett_step(j, kb, batch_at, keep, keep ? vr[0] + next : vr[0] + then,
                       keep ? (next < outer ? then : j->k.total) : next);
      }
  }
}

static void eini_gett_odometer(const ein_axes *x, int64_t index, int64_t *at) {
  for (int i = x->n - 1; i >= 0; i--) at[i] = index % x->extent[i], index /= x->extent[i];
}

static int64_t eini_gett_dot(int n, const int64_t *at, const int64_t *stride) {
  int64_t r = 0;
  for (int i = 0; i < n; i++) r += at[i] * stride[i];
  return r;
}

// Bytes to the lines of a tile's columns of U, at most one for every k. An earlier tile asks for
// them: U is often in memory, and each line is read by one tile.
static void eini_gett_soon_bare(const eini_gett_tile_arg *a, int64_t nu, int64_t size,
                                int64_t *soon) {
  const int64_t lane = 64 / size;
  int64_t n = 0;
  if (a->us == 1)
    for (; n < a->k; n++) soon[n] = n * a->uk * size;
  else
    for (int64_t q = 0; q < a->k; q += lane)
      for (int64_t t = 0; t < nu && n < a->k; t++) soon[n++] = (t * a->us + q * a->uk) * size;
  for (; n < a->k; n++) soon[n] = soon[n - 1];
}

static void eini_gett_run_bare(const eini_cpu *cpu, const ein_contract *c, int swap,
                               const ein_part *part) {
  eini_gett_sketch p;
  eini_gett_pick(cpu, c->type, c->pair, &p.kit);
  eini_gett_orient(cpu, c, &p, swap);
  const int64_t size = p.kit.size, lanes = p.kit.w * p.kit.nv, nv = p.vx->extent[0];
  const int64_t nu = p.ux->n > 0 ? p.ux->extent[0] : 1, step = p.ux->n > 0 ? p.out_u[0] : 0;
  static const unsigned whole[3] = {~0u, ~0u, ~0u};
  int64_t at[EINI_GETT_AXES], uoff[8], voff[3], soon[EINI_GETT_BARE_K];
  for (int i = 0; i < 8; i++) uoff[i] = i * step, voff[i % 3] = i % 3 * p.kit.w;
  eini_next next;
  eini_gett_tile_arg a;
  memset(&next, 0, sizeof next);
  a.how = EINI_GETT_STORE, a.uoff = uoff, a.voff = voff, a.soon = soon, a.lanes = whole;
  a.k = p.kx->n > 0 ? p.kx->extent[0] : 1, a.late = 0;
  a.sv = p.kx->n > 0 ? p.v->k[0][0] : 0, a.uk = p.kx->n > 0 ? p.u->k[0][0] : 0;
  a.us = p.ux->n > 0 ? p.u->row[0][0] : 0;
  eini_gett_soon_bare(&a, p.kit.nu, size, soon);
  const int64_t later = 2 * p.kit.nu * a.us * size;
  const int64_t reads = a.k * (nv + nu) + nv * nu, batches = part->batch[1] - part->batch[0];
  const double all = (double)eini_axes_size(&c->batch) * (double)(reads * size);
  const int ahead = batches > 1 && eini_cpu_far(cpu, all);
  const int64_t tiles = (nu + p.kit.nu - 1) / p.kit.nu * ((nv + lanes - 1) / lanes);
  const char *v, *u, *next_v = NULL, *next_u = NULL;
  char *out, *next_out = NULL;
  for (int64_t b = part->batch[0]; b <= part->batch[1]; b++) {
    v = next_v, u = next_u, out = next_out;
    const int64_t then = eini_min64(b, part->batch[1] - 1);
    eini_gett_odometer(&c->batch, then, at);
    next_v = p.v->base[0] + eini_gett_dot(c->batch.n, at, p.v->batch[0]) * size;
    next_u = p.u->base[0] + eini_gett_dot(c->batch.n, at, p.u->batch[0]) * size;
    next_out = c->out + eini_gett_dot(c->batch.n, at, c->out_batch) * size;
    if (b == part->batch[0]) continue;
    const uintptr_t odd = (uintptr_t)out | (uintptr_t)(step * size);
    const int stream = ahead && p.kit.w * size == 64 && (odd & 63) == 0;
    a.how = stream ? EINI_GETT_STREAM : EINI_GETT_STORE;
    if (ahead) {
      const int by = a.us == 1;  // U contiguous along its rows
      eini_next_row(&next, 0, (uintptr_t)next_v, a.k, a.sv * size, nv * size);
      eini_next_row(&next, 1, (uintptr_t)next_u, by ? a.k : nu, (by ? a.uk : a.us) * size,
                    (by ? nu : a.k) * size);
      eini_next_row(&next, 2, (uintptr_t)next_out, stream ? 0 : nu, step * size, nv * size);
      eini_next_start(&next, tiles);
    }
    for (int64_t j = 0; j < nu; j += p.kit.nu) {
      a.nu = (int)eini_min64(p.kit.nu, nu - j);
      a.u = u + j * a.us * size;
      for (int64_t i = 0; i < nv; i += lanes) {
        a.nv = (int)(eini_min64(lanes, nv - i) / p.kit.w);
        a.v = v + i * size, a.dst = out + (j * step + i) * size;
        a.soon_step = i == 0 && j + 2 * p.kit.nu < nu;
        a.soon_base = (uintptr_t)a.u + (uintptr_t)(a.soon_step ? later : 0);
        eini_next_some(&next);
        p.kit.tile(&a);
      }
    }
  }
  if (ahead) eini_stream_end();
}

static ein_status eini_gett_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  if (choice->state[0] & EINI_GETT_BARE) {
    if (part->m[0] == 0 && part->n[0] == 0 && part->m[1] > 0 && part->n[1] > 0)
      eini_gett_run_bare(cpu, c, (int)(choice->state[0] & EINI_GETT_SWAP), part);
    return EIN_OK;
  }
  eini_gett_sketch p;
  eini_gett_job j;
  int64_t vr[2], ur[2], at[EINI_GETT_AXES];
  eini_gett_job_init(cpu, c, choice->state, &p, (char *)scratch, &j);
  const int iv = p.swap ? 1 : 2, iu = p.swap ? 2 : 1;
  eini_gett_boxes_of(&j.v.g, p.swap ? part->m : part->n,
                     eini_gett_product(p.vx->n, p.vx->extent), choice->unit[iv], &vr[0], &vr[1]);
  eini_gett_boxes_of(&j.u.g, p.swap ? part->n : part->m,
                     eini_gett_product(p.ux->n, p.ux->extent), choice->unit[iu], &ur[0], &ur[1]);
  size_t cleared;
  if (c->shared != NULL && choice->shared > 0)
    eini_gett_shared(&j, &p, (choice->state[0] & EINI_GETT_SHARE_U) != 0,
                     (choice->state[0] & EINI_GETT_SHARE_V) != 0, (char *)c->shared, &cleared);
  if (c->kept != NULL && choice->kept > 0)
    eini_gett_lasting(&j, &p, choice->state[0], (char *)c->kept);
  if (j.stream) eini_gett_align(&j);
  eini_gett_begin(cpu, &j.kit);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_gett_odometer(&c->batch, b, at);
    eini_gett_batch(&j, at, vr, ur, p.keep);
  }
  eini_gett_end(cpu, &j.kit);
  for (int64_t i = 0; j.stream && i < j.carries; i++) eini_tail_send(&j.carry[i]);
  if (j.stream) eini_stream_end();
  eini_cpu_packed(cpu, j.v.packed + j.u.packed);
  return EIN_OK;
}

static const eini_cpu_family eini_gett_family = {"gett", eini_gett_plan, eini_gett_run};

// A family for each form of panels of dot products.
static int eini_gett_bf16_plan(const eini_rated *cpu, const ein_contract *c, int width,
                               ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_BF16, 0, choice);
}
static int eini_gett_i16_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_I16, 0, choice);
}
static int eini_gett_i8_plan(const eini_rated *cpu, const ein_contract *c, int width,
                             ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_I8, 0, choice);
}
static int eini_gett_amx_f_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_AMX_BF16, 0, choice);
}
static int eini_gett_amx_i_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_AMX_I8, 0, choice);
}
static const eini_cpu_family eini_gett_bf16 = {"bf16", eini_gett_bf16_plan, eini_gett_run};
static const eini_cpu_family eini_gett_i16 = {"i16", eini_gett_i16_plan, eini_gett_run};
static const eini_cpu_family eini_gett_i8 = {"i8", eini_gett_i8_plan, eini_gett_run};
static const eini_cpu_family eini_gett_amx_f = {"amx bf16", eini_gett_amx_f_plan, eini_gett_run};
static const eini_cpu_family eini_gett_amx_i = {"amx i8", eini_gett_amx_i_plan, eini_gett_run};

// ================================================================================================
// >>moved  contractions in blocks that are moved to their places
// Where short pieces of both operands, or of the batch, take turns in the output, sums of one tile
// go to many lines, and each line gets some of many tiles. Blocks of the output are computed in a
// layout that suits section gett and moved from the cache by section copy. Plain operands only.
// ================================================================================================

// Words of ein_choice.state: then come the box's axes, and what section gett says of a block.
enum { EINI_MOVED_V, EINI_MOVED_STREAM, EINI_MOVED_BOX };
enum { EINI_MOVED_AXES = 36, EINI_MOVED_RUN = 512 };

typedef struct eini_moved {
  const ein_contract *c;
  int v;                               // the group contiguous in a block: 1 m, 2 n
  int n;                               // axes of the output: batch, m, n
  int64_t size;                        // bytes of an element
  int64_t extent[EINI_MOVED_AXES], out[EINI_MOVED_AXES], box[EINI_MOVED_AXES];
  int64_t in[2][EINI_MOVED_AXES];      // strides of P and Q; 0: not its axis
  int group[EINI_MOVED_AXES];
  int64_t at[EINI_MOVED_AXES], some[EINI_MOVED_AXES];  // the block
  int64_t step[EINI_MOVED_AXES];       // in the block's memory
  int to[EINI_MOVED_AXES];             // the axis of its group in `one`
  // The contraction of one block.
  ein_contract one;
  int64_t one_extent[3][EINI_GETT_AXES], one_out[3][EINI_GETT_AXES];
  int64_t one_in[2][3][EINI_GETT_AXES];
  const int64_t *row[2], *batch[2];
  const char *base[2];
} eini_moved;

static void eini_moved_take(eini_moved *w, const ein_contract *c) {
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  const int64_t *out[3] = {c->out_batch, c->out_m, c->out_n};
  memset(w, 0, sizeof *w);
  w->c = c;
  w->size = (int64_t)ein_dtype_size(c->out_dtype);
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < x[g]->n; i++) {
      const int f = w->n++;
      w->group[f] = g, w->extent[f] = x[g]->extent[i], w->out[f] = out[g][i], w->box[f] = 1;
      w->in[0][f] = g == 0 ? c->p.batch[0][i] : g == 1 ? c->p.row[0][i] : 0;
      w->in[1][f] = g == 0 ? c->q.batch[0][i] : g == 2 ? c->q.row[0][i] : 0;
    }
}

// Axes with more than one element, the least of these strides first; returns how many.
static int eini_moved_sort(const eini_moved *w, const int64_t *stride, int *order) {
  int n = 0;
  for (int f = 0; f < w->n; f++) {
    if (w->extent[f] == 1) continue;
    int t = n++;
    for (; t > 0 && eini_abs64(stride[order[t - 1]]) > eini_abs64(stride[f]); t--)
      order[t] = order[t - 1];
    order[t] = f;
  }
  return n;
}

// Bytes of the output that follow each other and are of one group.
static int64_t eini_moved_piece(const eini_moved *w) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, w->out, order);
  int64_t run = 1;
  for (int t = 0; t < n && eini_abs64(w->out[order[t]]) == run; t++) {
    if (w->group[order[t]] != w->group[order[0]]) break;
    run *= w->extent[order[t]];
  }
  return n == 0 ? 0 : run * w->size;
}

// Axes of group g up to `want` positions, first those with the least steps of `stride`.
static void eini_moved_widen(eini_moved *w, int g, const int64_t *stride, int64_t want,
                             int64_t most) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, stride, order);
  int64_t have = 1;
  for (int f = 0; f < w->n; f++) have *= w->group[f] == g ? w->box[f] : 1;
  for (int t = 0; t < n && have < want; t++) {
    const int f = order[t];
    if (w->group[f] != g) continue;
    have /= w->box[f];
    eini_gett_grow(w->n, w->extent, w->box, f, (want + have - 1) / have, most, 1);
    have *= w->box[f];
  }
}

// Extents of a block: a run of the output, enough of both hands for whole tiles, then what is next
// in the output.
static void eini_moved_boxes(eini_moved *w, int64_t most) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, w->out, order);
  const int64_t want = EINI_MOVED_RUN / w->size;
  int64_t run = 1;
  for (int t = 0; t < n && run < want; t++) {
    eini_gett_grow(w->n, w->extent, w->box, order[t], (want + run - 1) / run, most, 1);
    run *= w->box[order[t]];
    if (w->box[order[t]] < w->extent[order[t]]) break;
  }
  eini_moved_widen(w, w->v, w->in[w->v - 1], 64, most);
  eini_moved_widen(w, 3 - w->v, w->in[2 - w->v], 32, most);
  for (int t = 0; t < n; t++)
    eini_gett_grow(w->n, w->extent, w->box, order[t], w->extent[order[t]], most, 1);
}

// Axes of a group as they lie in a block, the outermost first: as in the output, but the one along
// which the operand is contiguous last.
static int eini_moved_order(const eini_moved *w, int g, int *order) {
  int n = 0, last = -1;
  for (int f = 0; f < w->n; f++) {
    if (w->group[f] != g) continue;
    if (g > 0 && w->in[g - 1][f] == 1 && w->box[f] > 1) last = f;
    else order[n++] = f;
  }
  if (last >= 0) order[n++] = last;
  return n;
}

// Whether axis f continues axis e of the same group inward, in all operands.
static int eini_moved_merge(const eini_moved *w, int e, int f) {
  return w->box[f] == w->extent[f] && w->in[0][e] == w->in[0][f] * w->extent[f] &&
         w->in[1][e] == w->in[1][f] * w->extent[f];
}

// The contraction of a block whose extents are box[], but for its addresses.
static void eini_moved_one(eini_moved *w) {
  const ein_contract *c = w->c;
  const int groups[3] = {w->v, 3 - w->v, 0};
  int64_t step = 1;
  w->one = *c;
  for (int h = 0; h < 3; h++) {
    const int g = groups[h];
    int order[EINI_MOVED_AXES], m = 0;
    const int n = eini_moved_order(w, g, order);
    for (int t = 0; t < n; t++) {
      const int f = order[t];
      if (t == 0 || !eini_moved_merge(w, order[t - 1], f)) m++;
      w->to[f] = m - 1;
      for (int o = 0; o < 2; o++) w->one_in[o][g][m - 1] = w->in[o][f];
    }
    for (int t = n - 1; t >= 0; t--) {
      const int f = order[t];
      if (t == n - 1 || w->to[f] != w->to[order[t + 1]]) w->one_out[g][w->to[f]] = step;
      w->step[f] = step;
      step *= w->box[f];
    }
    ein_axes *x = g == 0 ? &w->one.batch : g == 1 ? &w->one.m : &w->one.n;
    x->n = m, x->extent = w->one_extent[g];
  }
  ein_side *side[2] = {&w->one.p, &w->one.q};
  for (int o = 0; o < 2; o++) {
    w->row[o] = w->one_in[o][o + 1], w->batch[o] = w->one_in[o][0];
    side[o]->row = &w->row[o], side[o]->batch = &w->batch[o], side[o]->base = &w->base[o];
  }
  w->one.out_batch = w->one_out[0], w->one.out_m = w->one_out[1], w->one.out_n = w->one_out[2];
}

// The block has some[] elements.
static void eini_moved_extents(eini_moved *w, const int64_t *some) {
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < EINI_GETT_AXES; i++) w->one_extent[g][i] = 1;
  for (int f = 0; f < w->n; f++) w->one_extent[w->group[f]][w->to[f]] *= some[f];
}

static int64_t eini_moved_offset(const eini_moved *w, const int64_t *stride) {
  int64_t r = 0;
  for (int f = 0; f < w->n; f++) r += w->at[f] * stride[f];
  return r * w->size;
}

// Seconds to move all blocks. Tiles of elements, or short rows where the contiguous axis stays.
static double eini_moved_seconds(const eini_rated *cpu, const eini_moved *w, double all,
                                 int stream) {
  int order[EINI_MOVED_AXES];
  eini_moved_sort(w, w->out, order);  // (blocks are of many elements)
  const double run = (double)w->box[order[0]], size = (double)w->size, wide = 64 / size;
  const double t = all * size / (stream ? cpu->copy_bw : cpu->l3_bw);
  if (w->step[order[0]] == 1) return t + all / run * (20 + run / wide) / cpu->hz;
  return t + all * (run >= wide ? 0.5 : run >= wide / 2 ? 2 : 4) / cpu->hz;
}

// Are all blocks as long along group v, which is contiguous in them?
static int eini_moved_even(const eini_moved *w) {
  int64_t all = 1;
  for (int f = 0; f < w->n; f++) {
    if (w->group[f] != w->v) continue;
    if (w->box[f] < w->extent[f]) return 0;
    all *= w->box[f];
  }
  return all > 1;
}

// Blocks with group v contiguous.
static int eini_moved_try(const eini_rated *cpu, const ein_contract *c, int v, int width,
                          ein_choice *choice) {
  eini_moved w;
  ein_choice one;
  eini_moved_take(&w, c);
  w.v = v;
  eini_moved_boxes(&w, cpu->is.l2 / 4 / w.size);
  eini_moved_one(&w);
  eini_moved_extents(&w, w.box);
  const int words = EINI_GETT_HEAD + w.one.m.n + w.one.n.n + w.one.k.n;
  if (EINI_MOVED_BOX + w.n + words > EINI_GETT_STATE) return 0;
  const int cut = eini_moved_even(&w) ? EINI_GETT_CUT_OTHERS : EINI_GETT_CUT;
  if (!eini_gett_plan_cut(cpu, &w.one, 1, cut, EINI_GETT_WHOLE, 0, &one)) return 0;
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  double blocks = 1, all = 1, threads = width;
  for (int g = 0, f = 0; g < 3; f += x[g++]->n) {
    const int64_t size = eini_axes_size(x[g]);
    eini_gett_axes boxes;
    eini_gett_axes_init(&boxes, x[g], w.box + f);
    choice->grid[g] = boxes.total;
    choice->unit[g] = eini_gett_stretch(size, boxes.total);
    blocks *= (double)boxes.total, all *= (double)size;
  }
  const int stream = EINI_STREAM_LINE > 0 && eini_cpu_past(cpu, all * (double)w.size);
  if (threads > blocks) threads = blocks;
  choice->seconds = cpu->call + (blocks * (one.seconds + 3e-7) +
                                 eini_moved_seconds(cpu, &w, all, stream)) / threads;
  choice->scratch = one.scratch + EINI_COPY_BUFFER + 128;
  choice->scratch += (size_t)(eini_gett_product(w.n, w.box) * w.size);
  choice->state[EINI_MOVED_V] = v, choice->state[EINI_MOVED_STREAM] = stream;
  for (int f = 0; f < w.n; f++) choice->state[EINI_MOVED_BOX + f] = w.box[f];
  for (int i = 0; i < words; i++) choice->state[EINI_MOVED_BOX + w.n + i] = one.state[i];
  eini_cpu_name(choice, "gett moved");
  return 1;
}

static int eini_moved_plan(const eini_rated *cpu, const ein_contract *c, int width,
                           ein_choice *choice) {
  eini_moved w;
  const ein_side *side[2] = {&c->p, &c->q};
  if (!eini_gett_able(c) || !c->plain_out) return 0;
  if (c->batch.n + c->m.n + c->n.n > EINI_MOVED_AXES || c->type == EIN_BOOL) return 0;
  for (int o = 0; o < 2; o++)
    if (side[o]->form != EIN_FORM_PLAIN || side[o]->nop != 1) return 0;
  eini_moved_take(&w, c);
  const double all = (double)w.size * (double)eini_axes_size(&c->batch) *
                     (double)eini_axes_size(&c->m) * (double)eini_axes_size(&c->n);
  if (all < (double)cpu->is.l2 / 2 || eini_moved_piece(&w) >= EINI_TURN_PIECE) return 0;
  ein_choice other;
  memset(&other, 0, sizeof other);
  const int m = eini_moved_try(cpu, c, 1, width, choice);
  const int n = eini_moved_try(cpu, c, 2, width, &other);
  if (n && (!m || other.seconds < choice->seconds)) *choice = other;
  return m || n;
}

// One block: computed where `block` is, then moved.
static void eini_moved_block(eini_moved *w, eini_gett_job *j, int keep, int stream, char *block,
                             char *buffer) {
  const ein_contract *c = w->c;
  const int64_t batches = eini_gett_product(w->one.batch.n, w->one.batch.extent);
  int64_t at[EINI_GETT_AXES];
  eini_gett_axes_init(&j->v.g, j->swap ? &w->one.m : &w->one.n, j->v.g.box);
  eini_gett_axes_init(&j->u.g, j->swap ? &w->one.n : &w->one.m, j->u.g.box);
  const int64_t vr[2] = {0, j->v.g.total}, ur[2] = {0, j->u.g.total};
  w->base[0] = c->p.base[0] + eini_moved_offset(w, w->in[0]);
  w->base[1] = c->q.base[0] + eini_moved_offset(w, w->in[1]);
  for (int64_t b = 0; b < batches; b++) {
    eini_gett_odometer(&w->one.batch, b, at);
    eini_gett_batch(j, at, vr, ur, keep);
  }
  const ein_copy copy = {w->n, w->some, w->step, w->out, (int)w->size, block,
                         c->out + eini_moved_offset(w, w->out), NULL, NULL};
  eini_copy_go(j->cpu->isa, &copy, stream, buffer);
}

static ein_status eini_moved_run(const eini_cpu *cpu, const ein_contract *c,
                                 const ein_choice *choice, const ein_part *part, void *scratch) {
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  const int64_t *ranges[3] = {part->batch, part->m, part->n};
  eini_moved w;
  eini_gett_sketch p;
  eini_gett_job j;
  eini_gett_axes g[3];
  int64_t from[3], to[3], i[3];
  eini_moved_take(&w, c);
  w.v = (int)choice->state[EINI_MOVED_V];
  for (int f = 0; f < w.n; f++) w.box[f] = choice->state[EINI_MOVED_BOX + f];
  for (int h = 0, f = 0; h < 3; f += x[h++]->n) {
    eini_gett_axes_init(&g[h], x[h], w.box + f);
    eini_gett_boxes_of(&g[h], ranges[h], eini_axes_size(x[h]), choice->unit[h], &from[h], &to[h]);
  }
  eini_moved_one(&w);
  char *block = (char *)scratch, *buffer, *rest;
  buffer = block + eini_up(eini_gett_product(w.n, w.box) * w.size, 64);
  rest = buffer + EINI_COPY_BUFFER;
  eini_moved_extents(&w, w.box);
  w.one.out = block;
  eini_gett_job_init(cpu, &w.one, choice->state + EINI_MOVED_BOX + w.n, &p, rest, &j);
  const int stream = choice->state[EINI_MOVED_STREAM] != 0;
  for (i[0] = from[0]; i[0] < to[0]; i[0]++)
    for (i[1] = from[1]; i[1] < to[1]; i[1]++)
      for (i[2] = from[2]; i[2] < to[2]; i[2]++) {
        for (int h = 0, f = 0; h < 3; f += x[h++]->n) {
          eini_gett_box(&g[h], i[h]);
          memcpy(w.at + f, g[h].at, (size_t)x[h]->n * sizeof(int64_t));
          memcpy(w.some + f, g[h].size, (size_t)x[h]->n * sizeof(int64_t));
        }
        eini_moved_extents(&w, w.some);
        eini_moved_block(&w, &j, p.keep, stream, block, buffer);
      }
  if (stream) eini_stream_end();
  return EIN_OK;
}

static const eini_cpu_family eini_moved_family = {"moved", eini_moved_plan, eini_moved_run};

// ================================================================================================
// >>map-turned  maps whose operands are turned
// Operands that do not move by single elements along rows of the output are copied, a block of the
// map at a time, into a layout in which they do; section map-rows does the rest.
// ================================================================================================

enum { EINI_TURNED = EINI_ROWS_TOGETHER + 1, EINI_TURNED_BOX };  // words of ein_choice.state
enum { EINI_TURNED_LOOPS = EINI_GETT_AXES };
#define EINI_TURNED_ROW 4096   // bytes of a row of a block, where the output has as many
#define EINI_TURNED_RUN 512    // bytes read at a place of an operand
#define EINI_TURNED_LEAST 512  // elements of a map; chunks take less time for fewer
// An estimate, from the second cache: elements that go through tiles in registers, and others.
#define EINI_TURNED_CYCLES 0.7
#define EINI_TURNED_SINGLE 2.0

typedef struct eini_turned {
  const ein_map *m;
  int64_t size;                                  // bytes of an element
  int64_t box[EINI_TURNED_LOOPS];
  eini_gett_axes g;                              // the block
  int ncopy, op[EINI_ROW_REGS];                  // operands that are copied
  int64_t place[EINI_ROW_REGS], bytes;           // where, and all of them: per block
  int64_t step[EINI_ROW_REGS][EINI_TURNED_LOOPS];  // there; 0: it does not move
  ein_map one;                                   // the map of a block: its last loops are one
                                                 //   where all operands go on
  int64_t extent[EINI_TURNED_LOOPS];             // of its loops
  int64_t stride[(EINI_ROW_REGS + 1) * EINI_TURNED_LOOPS];
  char *base[EINI_ROW_REGS + 1];
} eini_turned;

// The loop along which operand o moves least; -1: it does not move.
static int eini_turned_loop(const ein_map *m, int o) {
  int best = -1;
  for (int i = m->n - 1; i >= 0; i--) {
    const int64_t s = eini_abs64(eini_row_stride(m, o, i));
    if (s != 0 && (best < 0 || s < eini_abs64(eini_row_stride(m, o, best)))) best = i;
  }
  return best;
}

// The operands to copy. 0: none, or more loops and operands than there is room for.
static int eini_turned_take(eini_turned *w, const ein_map *m) {
  memset(w, 0, sizeof *w);
  w->m = m;
  w->size = m->code->type == EIN_F32 ? 4 : 8;
  if (m->n < 2 || m->n > EINI_TURNED_LOOPS || m->nop > EINI_ROW_REGS || m->nvalue > 0) return 0;
  for (int o = 0; o < m->nop; o++) {
    if (m->dtype[o] != m->code->type) return 0;
    if (eini_row_stride(m, o, m->n - 1) >> 1 != 0) w->op[w->ncopy++] = o;
  }
  return w->ncopy > 0;
}

// Does any operand that is copied move along loop i?
static int eini_turned_moves(const eini_turned *w, int i) {
  int moves = 0;
  for (int k = 0; k < w->ncopy; k++) moves |= eini_row_stride(w->m, w->op[k], i) != 0;
  return moves;
}

// Extents of a block: a row of the output, a run of each operand, then what is next in the output,
// while there is room for what is copied.
static void eini_turned_boxes(eini_turned *w, int64_t room) {
  const ein_map *m = w->m;
  const int64_t most = eini_max64(room / w->size / w->ncopy, 1);
  for (int i = 0; i < m->n; i++) w->box[i] = 1;
  eini_gett_grow(m->n, m->extent, w->box, m->n - 1, EINI_TURNED_ROW / w->size, most, 64 / w->size);
  for (int k = 0; k < w->ncopy; k++)
    eini_gett_grow(m->n, m->extent, w->box, eini_turned_loop(m, w->op[k]),
                   EINI_TURNED_RUN / w->size, most, 1);
  for (int i = m->n - 2; i >= 0; i--)
    if (eini_turned_moves(w, i)) eini_gett_grow(m->n, m->extent, w->box, i, m->extent[i], most, 1);
  for (int i = m->n - 2; i >= 0; i--)  // what is copied is used for all of the others
    if (!eini_turned_moves(w, i)) w->box[i] = m->extent[i];
}

// Bytes of rows of what is copied that begin in few sets of a cache: they are a line longer.
#define EINI_TURNED_SETS 512

// Does loop i of a block go on where the next one, which is whole, ends?
static int eini_turned_goes_on(const eini_turned *w, int i) {
  int on = w->box[i + 1] == w->m->extent[i + 1];
  for (int s = 0; s < w->m->nstream; s++) {
    const int64_t *stride = w->stride + s * EINI_TURNED_LOOPS;
    on &= stride[i] == stride[i + 1] * w->box[i + 1];
  }
  return on;
}

// The map of a block but for its addresses and extents.
static void eini_turned_one(eini_turned *w) {
  const ein_map *m = w->m;
  const int64_t line = 64 / w->size;
  for (int s = 0; s < m->nstream; s++)
    for (int i = 0; i < m->n; i++) w->stride[s * EINI_TURNED_LOOPS + i] = eini_row_stride(m, s, i);
  w->bytes = 0;
  for (int k = 0; k < w->ncopy; k++) {
    int64_t step = 1, *stride = w->stride + w->op[k] * EINI_TURNED_LOOPS;
    w->place[k] = w->bytes;
    for (int i = m->n - 1; i >= 0; i--) {
      if (stride[i] == 0) continue;
      w->step[k][i] = stride[i] = step;
      step *= w->box[i];
      if (i == m->n - 1 && step * w->size % EINI_TURNED_SETS == 0) step += line;
    }
    w->bytes += eini_up(step * w->size, 64);
  }
  int last = m->n - 1;
  while (last > 0 && eini_turned_goes_on(w, last - 1)) last--;
  for (int s = 0; s < m->nstream; s++)
    w->stride[s * EINI_TURNED_LOOPS + last] = w->stride[s * EINI_TURNED_LOOPS + m->n - 1];
  w->one = *m;
  w->one.n = last + 1;
  w->one.extent = w->extent, w->one.stride = w->stride, w->one.pitch = EINI_TURNED_LOOPS;
  w->one.base = w->base;
}

static void eini_turned_extents(eini_turned *w, const int64_t *size) {
  const int last = w->one.n - 1;
  for (int i = 0; i < w->m->n; i++) {
    if (i <= last) w->extent[i] = size[i];
    else w->extent[last] *= size[i];
  }
}

// Seconds to copy them, beside memory's.
static double eini_turned_seconds(const eini_rated *cpu, const eini_turned *w) {
  double cycles = 0;
  for (int k = 0; k < w->ncopy; k++) {
    const int o = w->op[k], loop = eini_turned_loop(w->m, o);
    const int unit = eini_abs64(eini_row_stride(w->m, o, loop)) == 1;
    double all = unit ? EINI_TURNED_CYCLES : EINI_TURNED_SINGLE;
    for (int i = 0; i < w->m->n; i++)
      all *= eini_row_stride(w->m, o, i) != 0 ? (double)w->m->extent[i] : 1;
    cycles += all;
  }
  return cycles / cpu->hz;
}

// Ways: as of the rows of a block.
static int eini_turned_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                            ein_choice *choice) {
  static const char *const names[] = {"rows turned", "rows turned stream", "rows turned of eight"};
  eini_turned w;
  double all = 1;
  for (int i = 0; i < m->n; i++) all *= (double)m->extent[i];
  if (!(all >= EINI_TURNED_LEAST) || !eini_turned_take(&w, m)) return 0;
  eini_turned_boxes(&w, cpu->is.l2 / 4);
  eini_turned_one(&w);
  eini_turned_extents(&w, w.box);
  if (!eini_map_rows_plan(cpu, &w.one, 1, nth, choice)) return 0;
  const int way = (int)choice->state[EINI_ROWS_STREAM] + (int)choice->state[EINI_ROWS_TOGETHER];
  eini_turned_extents(&w, m->extent);
  if (!eini_map_rows_plan(cpu, &w.one, width, nth, choice)) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  choice->seconds += eini_turned_seconds(cpu, &w) / threads;
  choice->scratch = (size_t)(w.bytes + eini_rows_room(m));  // a last block may have short rows
  choice->state[EINI_ROWS_STREAM] = way > 0, choice->state[EINI_ROWS_TOGETHER] = way > 1;
  choice->state[EINI_TURNED] = 1;
  for (int i = 0; i < m->n; i++) choice->state[EINI_TURNED_BOX + i] = w.box[i];
  eini_cpu_name(choice, names[way]);
  return 1;
}

// Operand k of a block, of the loops along which it moves, to where it is read.
static void eini_turned_copy(eini_turned *w, const eini_cpu *cpu, int k, char *to) {
  const int o = w->op[k], n = w->m->n;
  int64_t extent[EINI_TURNED_LOOPS], src[EINI_TURNED_LOOPS], dst[EINI_TURNED_LOOPS];
  int x = 0;
  for (int i = 0; i < n; i++) {
    if (eini_row_stride(w->m, o, i) == 0) continue;
    extent[x] = w->g.size[i], src[x] = eini_row_stride(w->m, o, i), dst[x++] = w->step[k][i];
  }
  const ein_copy c = {x, extent, src, dst, (int)w->size, w->base[o], to, NULL, NULL};
  eini_copy_go(cpu->isa, &c, 0, NULL);
  w->base[o] = to;
}

static ein_status eini_turned_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                  char *scratch) {
  eini_turned w;
  const ein_axes loops = {m->n, m->extent};
  if (!eini_turned_take(&w, m)) return EIN_ERR_INTERNAL;
  for (int i = 0; i < m->n; i++) w.box[i] = choice->state[EINI_TURNED_BOX + i];
  eini_turned_one(&w);
  eini_gett_axes_init(&w.g, &loops, w.box);
  for (int64_t b = 0; b < w.g.total; b++) {
    eini_gett_box(&w.g, b);
    eini_turned_extents(&w, w.g.size);
    for (int s = 0; s < m->nstream; s++)
      w.base[s] = m->base[s] + eini_gett_offset(&w.g, m->stride + (int64_t)s * m->pitch) * w.size;
    for (int k = 0; k < w.ncopy; k++) eini_turned_copy(&w, cpu, k, scratch + w.place[k]);
    EINI_TRY(eini_map_rows_run(cpu, &w.one, choice, scratch + w.bytes));
  }
  return EIN_OK;
}
#undef EINI_TURNED_ROW
#undef EINI_TURNED_RUN
#undef EINI_TURNED_LEAST
#undef EINI_TURNED_CYCLES
#undef EINI_TURNED_SINGLE
#undef EINI_TURNED_SETS

// ================================================================================================
// >>map-masked  maps with a mask of indices
// In where(t <= s, X, c) a comparison of affine indices holds for one range of each row, and so do
// several of which all are to hold: X is made by section map-rows, a few rows at a time and no more
// than their ranges need, or is a constant; c is filled in.
// ================================================================================================

enum { EINI_MASKED = EINI_TURNED_BOX + (int)EINI_TURNED_LOOPS };  // word of ein_choice.state
enum { EINI_MASKED_VALUES = 4, EINI_MASKED_LOOPS = EINI_TURNED_LOOPS + 1, EINI_MASKED_TERMS = 6 };
#define EINI_MASKED_BYTES (1 << 15)       // of rows that are made at once
#define EINI_MASKED_FACTOR 1048576.0      // of indices, at most
#define EINI_MASKED_NUMBER 1099511627776.0
#define EINI_MASKED_CYCLES 60             // of a row's range: an estimate

// A number that is the same for all elements but for indices: factors of values, then a constant.
typedef struct eini_masked_sum {
  int is;
  int64_t by[EINI_MASKED_VALUES + 1];
} eini_masked_sum;

// A comparison: less op 0, where less grows with the loops and is `now` in the row at hand.
typedef struct eini_masked_term {
  eini_masked_sum less;
  int op;                        // LT, LE, or EQ
  int64_t first, now, grows[EINI_MASKED_LOOPS];
} eini_masked_term;

// A condition: all of some terms hold, or, if not, that is not so. None: another one.
typedef struct eini_masked_set {
  unsigned terms;
  int is_not;
} eini_masked_set;

typedef struct eini_masked {
  int64_t size;
  int nterm;
  eini_masked_term term[EINI_MASKED_TERMS];
  unsigned terms;                // those that are to hold
  int inside;                    // X is where they hold, or where they do not
  int copies;                    // X is operand number copies - 1
  const ein_fill *c, *x;         // x: X is a constant, or NULL
  ein_code code;                 // of X
  ein_step step[EINI_ROW_STEPS];
  ein_fill fill[EINI_ROW_REGS];
  ein_map all;                   // X of all rows; its first loop has one value, so that there are
                                 //   always rows
  ein_map some;                  // of the last two loops
  int64_t extent[EINI_MASKED_LOOPS], rows[2];
  int64_t stride[(EINI_ROW_REGS + 1) * EINI_MASKED_LOOPS];
  char *base[EINI_ROW_REGS + 1];
  ein_dtype dtype[EINI_ROW_REGS + 1];
  char block[2][EINI_ROW_BLOCK]; // of c, and of a constant X
} eini_masked;

// What a step of integers makes of such numbers.
static eini_masked_sum eini_masked_step(const ein_step *s, const eini_masked_sum *reg) {
  static const eini_masked_sum none = {0, {0}};
  const eini_masked_sum *x = &reg[s->a], *y = &reg[s->b];
  eini_masked_sum z = none;
  const int two = eini_ops[s->op].args == 2, last = EINI_MASKED_VALUES;
  if (s->op == EIN_OP_INDEX) {
    z.is = s->a < EINI_MASKED_VALUES;
    if (z.is) z.by[s->a] = 1;
    return z;
  }
  if (s->from != EIN_I64 || eini_step_loads(s) || s->op == EIN_OP_CALL) return none;
  if (!x->is || (two && !y->is)) return none;
  int moves[2] = {0, 0};
  for (int v = 0; v < last; v++) moves[0] |= x->by[v] != 0, moves[1] |= two && y->by[v] != 0;
  if (s->op == EIN_OP_MUL && moves[0]) y = x, x = &reg[s->b];
  if (s->op == EIN_OP_MUL && moves[0] && moves[1]) return none;
  z.is = s->op == EIN_OP_NEG || s->op == EIN_OP_ADD || s->op == EIN_OP_SUB || s->op == EIN_OP_MUL;
  for (int v = 0; v <= last && z.is; v++) {
    const double a = (double)x->by[v], b = (double)y->by[v];
    const double by = s->op == EIN_OP_NEG   ? -a
                      : s->op == EIN_OP_ADD ? a + b
                      : s->op == EIN_OP_SUB ? a - b
                                            : (double)x->by[last] * b;
    z.is = fabs(by) <= (v < last ? EINI_MASKED_FACTOR : EINI_MASKED_NUMBER);
    z.by[v] = z.is ? (int64_t)by : 0;
  }
  return z;
}

// Adds a term; none: there are too many.
static eini_masked_set eini_masked_add(eini_masked *w, const eini_masked_sum *less, int op) {
  eini_masked_set set = {0, 0};
  if (w->nterm == EINI_MASKED_TERMS) return set;
  w->term[w->nterm].less = *less, w->term[w->nterm].op = op;
  set.terms = 1u << w->nterm++;
  return set;
}

// The condition said as `is_not` asks, which a single inequality can be either way; or none.
static eini_masked_set eini_masked_said(eini_masked *w, eini_masked_set x, int is_not) {
  static const eini_masked_set none = {0, 0};
  int t = 0;
  if (x.terms == 0 || x.is_not == is_not) return x;
  while (!(x.terms >> t & 1)) t++;
  if (x.terms != 1u << t || w->term[t].op == EIN_OP_EQ) return none;
  eini_masked_sum more = w->term[t].less;
  for (int v = 0; v <= EINI_MASKED_VALUES; v++) more.by[v] = -more.by[v];
  x = eini_masked_add(w, &more, w->term[t].op == EIN_OP_LT ? EIN_OP_LE : EIN_OP_LT);
  x.is_not = is_not;
  return x;
}

// What a step makes of conditions, or of numbers that it compares.
static eini_masked_set eini_masked_condition(eini_masked *w, const ein_step *s,
                                             const eini_masked_sum *reg,
                                             const eini_masked_set *set) {
  static const eini_masked_set none = {0, 0};
  const int both = s->op == EIN_OP_AND, either = s->op == EIN_OP_OR;
  if (s->type != EIN_BOOL || eini_step_loads(s)) return none;
  if (s->op == EIN_OP_NOT) {
    eini_masked_set x = set[s->a];
    x.is_not = !x.is_not;
    return x;
  }
  if (both || either) {
    eini_masked_set x = eini_masked_said(w, set[s->a], either);
    const eini_masked_set y = eini_masked_said(w, set[s->b], either);
    x.terms = x.terms != 0 && y.terms != 0 ? x.terms | y.terms : 0;
    return x;
  }
  const int back = s->op == EIN_OP_GT || s->op == EIN_OP_GE;
  const eini_masked_sum *x = &reg[back ? s->b : s->a], *y = &reg[back ? s->a : s->b];
  if (s->op < EIN_OP_LT || s->op > EIN_OP_NE || s->from != EIN_I64 || !x->is || !y->is) return none;
  eini_masked_sum less = {1, {0}};
  for (int v = 0; v <= EINI_MASKED_VALUES; v++) less.by[v] = x->by[v] - y->by[v];
  const int op = s->op == EIN_OP_LT || s->op == EIN_OP_GT   ? EIN_OP_LT
                 : s->op == EIN_OP_LE || s->op == EIN_OP_GE ? EIN_OP_LE
                                                            : EIN_OP_EQ;
  eini_masked_set z = eini_masked_add(w, &less, op);
  z.is_not = s->op == EIN_OP_NE;
  return z;
}

static const ein_fill *eini_masked_fill(const ein_code *code, int reg) {
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].reg == reg) return &code->fill[i];
  return NULL;
}

// Splits a code into the condition, the constant and X; 0: it is another one.
static int eini_masked_split(eini_masked *w, const ein_code *code) {
  eini_masked_sum reg[EINI_ROW_REGS];
  eini_masked_set set[EINI_ROW_REGS];
  const ein_step *last = &code->step[code->nstep - 1];
  if (code->nstep < 3 || code->nstep > EINI_ROW_STEPS || code->nreg > EINI_ROW_REGS) return 0;
  if (last->op != EIN_OP_WHERE || last->dst != code->result) return 0;
  memset(reg, 0, sizeof reg);
  memset(set, 0, sizeof set);
  w->code = *code;
  w->code.step = w->step, w->code.fill = w->fill, w->code.plain = -1;
  w->code.nstep = w->code.nfill = 0;
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    const int whole = f->type == EIN_I64 && f->param < 0;
    reg[f->reg].is = whole && fabs((double)f->ival) <= EINI_MASKED_NUMBER;
    reg[f->reg].by[EINI_MASKED_VALUES] = f->ival;
    if (f->type == code->type) w->fill[w->code.nfill++] = *f;
  }
  w->inside = (w->c = eini_masked_fill(code, last->c)) != NULL;
  if (!w->inside && (w->c = eini_masked_fill(code, last->b)) == NULL) return 0;
  w->code.result = w->inside ? last->b : last->c;
  w->x = eini_masked_fill(code, w->code.result);
  for (const ein_step *s = code->step; s < last; s++) {
    reg[s->dst] = eini_masked_step(s, reg);
    set[s->dst] = eini_masked_condition(w, s, reg, set);
    if (w->x != NULL || s->type == EIN_BOOL || (s->type == EIN_I64 && code->type != EIN_I64))
      continue;
    if (s->type != code->type || s->op == EIN_OP_INDEX || s->from != code->type) return 0;
    if (s->op == EIN_OP_WHERE) return 0;
    w->step[w->code.nstep++] = *s;
    w->copies = s->op == EIN_OP_OPERAND && s->dst == w->code.result ? s->a + 1 : 0;
  }
  w->terms = set[last->a].terms;
  if (set[last->a].is_not) w->inside = !w->inside;
  return w->terms != 0;
}

// 0: not such a map.
static int eini_masked_take(eini_masked *w, const ein_map *m) {
  const int type = m->code->type, to = (int)m->dtype[m->nstream - 1];
  memset(w, 0, sizeof *w);
  w->size = to == EIN_F32 ? 4 : 8;
  if (m->nvalue == 0 || m->nvalue > EINI_MASKED_VALUES || m->fold != EIN_FOLD_NONE) return 0;
  if (m->store != NULL || m->n == 0 || m->n > EINI_TURNED_LOOPS || m->nop > EINI_ROW_REGS ||
      (to != EIN_F32 && to != EIN_F64) || !eini_masked_split(w, m->code) ||
      (w->x == NULL ? type != to : type != EIN_F32 && type != EIN_F64 && type != EIN_I64))
    return 0;
  if (type == EIN_I64 && (w->x->param >= 0 || w->c->param >= 0)) return 0;  // cut to integers
  w->code.type = (unsigned char)to;
  w->extent[0] = 1;
  memcpy(w->extent + 1, m->extent, (size_t)m->n * sizeof *m->extent);
  for (int s = 0; s <= m->nop; s++) {
    const int from = s < m->nop ? s : m->nstream - 1;
    w->dtype[s] = m->dtype[from];
    for (int i = 0; i < m->n; i++)
      w->stride[s * EINI_MASKED_LOOPS + i + 1] = eini_row_stride(m, from, i);
  }
  w->all = *m;
  w->all.n = w->all.nfree = m->n + 1;
  w->all.extent = w->extent;
  w->all.code = &w->code;
  w->all.nvalue = 0, w->all.nstream = m->nop + 1;
  w->all.stride = w->stride, w->all.pitch = EINI_MASKED_LOOPS, w->all.dtype = w->dtype;
  w->all.out_bytes = 0;  // what is made is filled in while it is in a cache
  w->some = w->all;
  w->some.n = w->some.nfree = 2;
  w->some.extent = w->rows, w->some.base = w->base;
  w->some.stride = w->stride + m->n - 1;
  if (w->copies == 0 && w->x == NULL) return 1;
  return eini_row_stride(&w->some, m->nop, 1) == 1 &&
         (w->x != NULL || ((int)w->dtype[w->copies - 1] == type &&
                           eini_row_stride(&w->some, w->copies - 1, 1) == 1));
}

static int eini_masked_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                            ein_choice *choice) {
  eini_masked w;
  if (nth > 0 || !eini_masked_take(&w, m)) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  const double rows = eini_rows_count(m);
  const double bytes = rows * (double)(m->extent[m->n - 1] * w.size);
  const int made = w.copies == 0 && w.x == NULL;
  if (made && !eini_map_rows_plan(cpu, &w.all, width, nth, choice)) return 0;
  if (!made) {
    const double rate = 2 * bytes > (double)cpu->is.l2 ? cpu->copy_bw : cpu->l2_bw;
    choice->seconds = cpu->call + 2 * bytes / rate / threads;
  }
  choice->seconds += (rows * EINI_MASKED_CYCLES / cpu->hz + bytes / 2 / cpu->l2_bw) / threads;
  choice->scratch = (size_t)eini_rows_room(&w.some);
  choice->state[EINI_MASKED] = 1;
  eini_cpu_name(choice, "rows masked");
  return 1;
}

// ---- rows ----

// The range of a row of n elements for which the comparison holds, less being `first` at its begin
// and growing by `step`.
static void eini_masked_range(int op, int64_t first, int64_t step, int64_t n, int64_t *range) {
  const int64_t room = (op == EIN_OP_LT ? 0 : 1) - first;  // step * j < room
  range[0] = 0, range[1] = n;
  if (op == EIN_OP_EQ) {
    if (step == 0) range[1] = first == 0 ? n : 0;
    else if (first % step != 0 || -(first / step) < 0 || -(first / step) >= n) range[1] = 0;
    else range[0] = -(first / step), range[1] = range[0] + 1;
  } else if (step == 0) {
    range[1] = room > 0 ? n : 0;
  } else if (step > 0) {
    range[1] = room <= 0 ? 0 : eini_min64(n, step == 1 ? room : (room - 1) / step + 1);
  } else {
    range[0] = room > 0 ? 0 : eini_min64(n, (step == -1 ? -room : -room / -step) + 1);
  }
}

// The range of row r of those at hand, of n elements, for which all terms hold.
static void eini_masked_row(const eini_masked *w, int64_t r, int64_t n, int64_t *range) {
  const int last = w->all.n - 1;
  range[0] = 0, range[1] = n;
  for (int t = 0; t < w->nterm; t++) {
    const eini_masked_term *x = &w->term[t];
    int64_t one[2];
    if (!(w->terms >> t & 1)) continue;
    eini_masked_range(x->op, x->now + r * x->grows[last - 1], x->grows[last], n, one);
    range[0] = eini_max64(range[0], one[0]), range[1] = eini_min64(range[1], one[1]);
  }
  if (range[0] >= range[1]) range[0] = range[1] = 0;
}

// Elements [from, to) of the row at p become a constant, of which there is a block.
static void eini_masked_put(const eini_masked *w, char *p, int64_t from, int64_t to,
                            const char *block) {
  for (int64_t left; (left = (to - from) * w->size) > 0; from += EINI_ROW_BLOCK / w->size)
    memcpy(p + from * w->size, block, (size_t)eini_min64(left, EINI_ROW_BLOCK));
}

// X of elements [from, to) of so many rows, of which the first are at `base`.
static ein_status eini_masked_make(eini_masked *w, const eini_cpu *cpu, char *const *base,
                                   int64_t rows, int64_t from, int64_t to,
                                   const ein_choice *choice, char *scratch) {
  const int x = w->copies - 1, out = w->some.nop;
  if (to <= from) return EIN_OK;
  for (int s = 0; s <= out; s++)
    w->base[s] = base[s] + from * w->size * eini_row_stride(&w->some, s, 1);
  w->rows[0] = rows, w->rows[1] = to - from;
  if (x < 0 && w->x == NULL) return eini_map_rows_run(cpu, &w->some, choice, scratch);
  for (int64_t r = 0; r < rows; r++) {
    char *p = w->base[out] + r * eini_row_stride(&w->some, out, 0) * w->size;
    if (w->x != NULL) {
      eini_masked_put(w, p, 0, to - from, w->block[1]);
    } else {
      memmove(p, w->base[x] + r * eini_row_stride(&w->some, x, 0) * w->size,
              (size_t)((to - from) * w->size));
    }
  }
  return EIN_OK;
}

// So many rows.
static ein_status eini_masked_rows(eini_masked *w, const eini_cpu *cpu, char *const *base,
                                   int64_t rows, const ein_choice *choice, char *scratch) {
  const int64_t n = w->extent[w->all.n - 1];
  const int64_t pitch = eini_row_stride(&w->some, w->some.nop, 0) * w->size;
  int64_t low = n, high = 0, range[2];
  for (int64_t r = 0; r < rows && w->inside; r++) {
    eini_masked_row(w, r, n, range);
    if (range[0] < range[1]) low = eini_min64(low, range[0]), high = eini_max64(high, range[1]);
  }
  if (!w->inside) low = 0, high = n;
  const int64_t least = eini_min64(n, EINI_ROW_SHORT / w->size);  // which rows can be made
  if (low < high && high - low < least) high = eini_min64(n, low + least), low = high - least;
  EINI_TRY(eini_masked_make(w, cpu, base, rows, low, high, choice, scratch));
  for (int64_t r = 0; r < rows; r++) {
    char *p = base[w->some.nop] + r * pitch;
    eini_masked_row(w, r, n, range);
    if (!w->inside) {
      eini_masked_put(w, p, range[0], range[1], w->block[0]);
      continue;
    }
    eini_masked_put(w, p, 0, range[0], w->block[0]);
    eini_masked_put(w, p, range[1], n, w->block[0]);
  }
  return EIN_OK;
}

// What terms begin with, and how they grow.
static void eini_masked_begin(eini_masked *w, const ein_map *m) {
  for (eini_masked_term *t = w->term; t < w->term + w->nterm; t++) {
    t->first = t->less.by[EINI_MASKED_VALUES];
    for (int v = 0; v < m->nvalue; v++) {
      t->first += t->less.by[v] * m->at[m->nop + v];
      for (int i = 0; i < m->n; i++)
        t->grows[i + 1] += t->less.by[v] * eini_row_stride(m, m->nop + v, i);
    }
  }
  for (int k = 0; k < 2; k++) {
    const ein_fill *f = k ? w->x : w->c;
    const double c = f == NULL ? 0 : f->param >= 0 ? m->param[f->param].re
                     : f->type == EIN_I64 ? (double)f->ival : f->re;
    // Rounded once.
    const float single = f != NULL && f->type == EIN_I64 ? (float)f->ival : (float)c;
    for (int64_t at = 0; f != NULL && at < EINI_ROW_BLOCK; at += w->size)
      memcpy(w->block[k] + at, w->size == 4 ? (const void *)&single : (const void *)&c,
             (size_t)w->size);
  }
}

static ein_status eini_masked_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                  char *scratch) {
  eini_masked w;
  eini_steps r;  // walks over the rows
  int64_t index[EINI_MASKED_LOOPS] = {0};
  if (!eini_masked_take(&w, m)) return EIN_ERR_INTERNAL;
  eini_masked_begin(&w, m);
  const int64_t *last = w.extent + m->n - 1;  // rows, and their elements
  const int64_t some = eini_max64(1, EINI_MASKED_BYTES / eini_max64(1, last[1] * w.size));
  r.map = &w.all;
  for (int s = 0; s <= m->nop; s++) r.next[s] = m->base[s < m->nop ? s : m->nstream - 1];
  for (int more = 1; more;) {
    const int64_t rows = eini_min64(some, last[0] - index[m->n - 1]);
    for (eini_masked_term *t = w.term; t < w.term + w.nterm; t++) {
      t->now = t->first;
      for (int i = 0; i < m->n; i++) t->now += index[i] * t->grows[i];
    }
    EINI_TRY(eini_masked_rows(&w, cpu, r.next, rows, choice, scratch));
    more = eini_rows_next(&r, index, rows);
  }
  return EIN_OK;
}

// ---- the provider's slots ----

static int eini_cpu_map_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                             ein_choice *choice) {
  return eini_map_rows_plan(cpu, m, width, nth, choice) ||
         eini_turned_plan(cpu, m, width, nth, choice) ||
         eini_masked_plan(cpu, m, width, nth, choice);
}

static ein_status eini_cpu_map_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                   void *scratch) {
  if (choice->state[EINI_TURNED]) return eini_turned_run(cpu, m, choice, (char *)scratch);
  if (choice->state[EINI_MASKED]) return eini_masked_run(cpu, m, choice, (char *)scratch);
  return eini_map_rows_run(cpu, m, choice, (char *)scratch);
}
#undef EINI_ROW_BLOCK
#undef EINI_ROW_NEAR
#undef EINI_ROW_STEPS
#undef EINI_ROW_REGS
#undef EINI_ROW_LEAST
#undef EINI_ROW_SHORT
#undef EINI_ROW_JOIN
#undef EINI_ROW_CYCLES
#undef EINI_ROW_FOUND
#undef EINI_ROW_FLOPS
#undef EINI_ROW_CALL_FLOPS
#undef EINI_MASKED_BYTES
#undef EINI_MASKED_FACTOR
#undef EINI_MASKED_NUMBER
#undef EINI_MASKED_CYCLES

// ================================================================================================
// >>direct  kernels of contractions without packing
// On contiguous runs, per instruction set and real type; what they work on, and their tables.
// ================================================================================================

// Complex numbers are pairs of reals: a complex product with a scalar is two real ones, with its
// real and with its imaginary part, and the parts are put together when the sums are done.
// Integers are unsigned, so that they wrap.

// A tile of the output: R rows of up to three vectors, each the sum over k of a scalar (or, in
// kernels of lanes, a vector) of p and vectors of q. k is two loops; the outer one has tables.
typedef struct eini_dir_tile {
  int64_t k1, k0, pk, qk;       // extents, and strides of the inner loop, in reals
  const int64_t *pk1, *qk1;     // offsets of the outer loop
  const int64_t *prow, *orow;   // offsets of the rows
  const char *p, *q;
  char *out;
  int last;                     // lanes of the last vector in use
  int64_t ahead;                // lanes of the batch: bytes of p to what is read soon
  int64_t rows;                 // in use: of a tile of 8 the last one is taken again up to there
} eini_dir_tile;

// Dot products of rows of a with x: runs of `len` reals, run r of row i at a + row[i] + run[r] and
// at x + r * xrun. sums[i * lanes ..] (+)= one vector of partial sums each.
typedef struct eini_dir_dots {
  int64_t runs, len, xrun;
  const int64_t *run, *row;
  int64_t ahead;                // bytes of a to what is read soon; 0: the caches have it
  const char *a, *x;
  char *sums;
} eini_dir_dots;

// Of each row r, y[r * ystep + i] (+)= sum over j of x[r * xstep + j] * a[j][i]; steps in bytes.
// first: y is not read. y is read and written in whole vectors.
typedef struct eini_dir_axpys {
  int64_t n, rows;
  int first;
  int64_t xstep, ystep;
  const char *const *a;
  const char *x;
  char *y;
} eini_dir_axpys;

// Runs of products: y[r * step + i] = a[aoff[r] + i * sa] * b[boff[r] + i * sb]; the steps sa and
// sb are 0 or 1; one of them is 1, or len is.
typedef struct eini_dir_mul {
  int64_t runs, len, step;
  const char *a, *b;
  const int64_t *aoff, *boff;
  int64_t ahead[2];             // bytes of a and b to what is read soon
  int sa, sb;
  char *y;
} eini_dir_mul;

// Dot products of evenly spaced rows with x, all contiguous: y[i] = a[i * step ..] * x. xstep: far
// rows have an x each, so far apart.
typedef struct eini_dir_even {
  int64_t rows, step, len, xstep;
  const void *a, *x;
  void *y;
} eini_dir_even;

// Rows of sums over k of products of vectors, for each of n lanes, a multiple of a vector's.
typedef struct eini_dir_pairs {
  int64_t n, k;
  const int64_t *pk, *qk, *prow, *orow;  // offsets of p and q along k, of p and out along rows
  const char *p, *q;
  char *out;
} eini_dir_pairs;

// For each of n elements, rows of sums over k of scalars of p times vectors of q, `len` reals long.
typedef struct eini_dir_bands {
  int64_t n, k, len, pe, qe, oe;          // steps from element to element
  int64_t masked;                         // elements from here on write nothing behind len
  const int64_t *pk, *qk, *prow, *orow;   // offsets of p and q along k, of p and out along rows
  const char *p, *q;
  char *out;
} eini_dir_bands;

// Sums over groups of a scalar of each row and group times a tile, which are sums over k as above.
typedef struct eini_dir_scaled {
  int64_t groups, k1, k0, pk, qk;
  int64_t pe, se, oe;                     // steps from row to row
  const int64_t *pg, *sg, *qg;            // offsets of the groups
  const int64_t *pk1, *qk1;
  const char *p, *s, *q;
  char *out;
  int last;                               // lanes of the last vector in use
} eini_dir_scaled;

typedef void (*eini_dir_tile_fn)(const eini_dir_tile *t);
typedef void (*eini_dir_scaled_fn)(const eini_dir_scaled *t);
#define EINI_DIR_NR 5           // numbers of rows of a tile: 1 2 3 4 8

typedef struct eini_dir_kern {
  int lanes, size;              // reals of a vector, bytes of a real
  int rows;                     // the most rows a tile should have
  eini_dir_tile_fn tile[3][EINI_DIR_NR], lane[EINI_DIR_NR];
  // y[i] (+)= sum over j < g of x[j] * a[j][i]; g: 1 2 4 8. first: y is not read. y is read and
  // written in whole vectors
  void (*axpy[4])(int64_t n, int first, const char *const *a, const void *x, void *y);
  // of one row that comes from memory
  void (*axpy_far)(int64_t n, int first, const char *const *a, const void *x, void *y);
  // the same of several y and x: with one column, and with 1 << columns
  int columns;
  void (*axpys[2])(const eini_dir_axpys *d);
  void (*dots1)(const eini_dir_dots *d), (*dots4)(const eini_dir_dots *d);
  // one row; far: both operands come from memory, and the first lanes of the sums are written
  void (*dot_long)(const eini_dir_dots *d), (*dot_far)(const eini_dir_dots *d);
  // y[i] += the sum of the lanes of sums[i]; complex: s1 and s2 are sums of products with x and
  // with x of swapped parts; ca, cx: conjugated
  void (*fold)(int rows, int planes, const void *s1, const void *s2, int ca, int cx, void *y);
  // Complex sums from real ones: x are the sums of vectors times real parts of scalars, y the same
  // with imaginary parts; cv, cs: vectors or scalars are conjugated. In place in x.
  void (*join)(int64_t n, void *x, const void *y, int cv, int cs);
  // far: one row after another, as they lie; near: four at a time
  void (*even_far)(const eini_dir_even *d), (*even_near)(const eini_dir_even *d);
  void (*mul)(const eini_dir_mul *d);
  // for elements; NULL: of integers there are none
  void (*pairs[EINI_DIR_NR])(const eini_dir_pairs *t);
  void (*bands[4])(const eini_dir_bands *t);  // of 1 to 4 rows
  eini_dir_scaled_fn scaled[3][2];            // of 1 row and of several: 8 of one vector, else 4
} eini_dir_kern;

#define EINI_KERNELS EINI_KERNELS_DIRECT
#if EINI_CPU_X86
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#else  // x86 without AVX2 packs: section gett has plain C of its own
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#if EINI_CPU_NEON
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// ================================================================================================
// >>direct-job  operands, loops and stores without packing
// (text)
// ================================================================================================

#define EINI_DIR_RANK 8      // axes of a group
#define EINI_DIR_OPS 4       // operands of a side, and extras, at most
#define EINI_DIR_OUT 8       // streams: operands of P from 0, Q from 4, the output, extras from 9
#define EINI_DIR_STREAMS 13

// A group of indices with the strides of all streams; its order may be changed.
typedef struct eini_dir_index {
  int n;
  int64_t size, extent[EINI_DIR_RANK], stride[EINI_DIR_STREAMS][EINI_DIR_RANK];
} eini_dir_index;

enum { EINI_DIR_B, EINI_DIR_M, EINI_DIR_N, EINI_DIR_K };

// One run. Addresses are those of the current batch; scratch is carved as eini_dir_carve says.
typedef struct eini_dir_job {
  const ein_contract *c;
  const eini_dir_kern *kern;
  int isa, planes, unit;                   // planes, unit: reals and bytes of an element
  eini_dir_index x[4];
  const char *base[EINI_DIR_STREAMS], *at[EINI_DIR_STREAMS];
  int64_t esize[EINI_DIR_STREAMS];
  int64_t *off;                            // [EINI_DIR_STREAMS][EIN_POINTS]
  char *val;                               // EIN_POINTS elements
} eini_dir_job;

static int eini_dir_planes(ein_dtype type) { return type == EIN_C64 || type == EIN_C128 ? 2 : 1; }

static const eini_dir_kern *eini_dir_kern_of(int isa, ein_dtype type) {
#if EINI_CPU_X86
  static const eini_dir_kern *const avx2[4] = {&eini_dir_kern_ys, &eini_dir_kern_yd,
                                               &eini_dir_kern_qi, &eini_dir_kern_ql};
  static const eini_dir_kern *const avx512[4] = {&eini_dir_kern_zs, &eini_dir_kern_zd,
                                                 &eini_dir_kern_qi, &eini_dir_kern_ql};
#else
  static const eini_dir_kern *const plain[4] = {&eini_dir_kern_cs, &eini_dir_kern_cd,
                                                &eini_dir_kern_ci, &eini_dir_kern_cl};
#endif
#if EINI_CPU_NEON
  static const eini_dir_kern *const neon[4] = {&eini_dir_kern_ns, &eini_dir_kern_nd,
                                               &eini_dir_kern_ci, &eini_dir_kern_cl};
#endif
  int t;
  switch (type) {
    case EIN_F32: case EIN_C64: t = 0; break;
    case EIN_F64: case EIN_C128: t = 1; break;
    case EIN_I32: t = 2; break;
    case EIN_I64: t = 3; break;
    default: return NULL;
  }
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) return avx512[t];
  return isa == EINI_ISA_AVX2 ? avx2[t] : NULL;
#else
#if EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) return neon[t];
#endif
  (void)isa;
  return plain[t];
#endif
}

// Which tile has the most of `rows` rows, and how many those are. Sums of one or two vectors wait
// for each other: 5 to 7 rows take as long as 8, and half of what they take in two tiles.
static int eini_dir_tile_rows(const eini_dir_kern *kern, int64_t rows, int64_t vectors,
                              int64_t *most) {
  const int64_t n = eini_min64(kern->rows, rows);
  const int which = n >= (vectors < 3 ? 5 : 8) ? 4 : n >= 4 ? 3 : (int)n - 1;
  *most = which == 4 ? n : which + 1;
  return which;
}

// What every family needs: types with kernels, ranks and operands in bounds.
static int eini_dir_fits(const eini_cpu *cpu, const ein_contract *c) {
  const ein_axes *x[4] = {&c->batch, &c->m, &c->n, &c->k};
  const eini_dir_kern *kern = eini_dir_kern_of(cpu->isa, c->type);
  if (!kern || kern->lanes < eini_dir_planes(c->type)) return 0;
  if (c->p.nop > EINI_DIR_OPS || c->q.nop > EINI_DIR_OPS) return 0;
  if (c->nextra > EINI_DIR_OPS) return 0;
  for (int g = 0; g < 4; g++) {
    if (x[g]->n > EINI_DIR_RANK) return 0;
  }
  return 1;
}

static int eini_dir_able(const eini_cpu *cpu, const ein_contract *c) {
  return c->pair == EIN_PAIR_SUM_MUL && eini_dir_fits(cpu, c);
}

// The same of elements: integers have no such kernels.
static int eini_dir_able_elements(const eini_cpu *cpu, const ein_contract *c) {
  return eini_dir_able(cpu, c) && eini_dir_kern_of(cpu->isa, c->type)->bands[0] != NULL;
}

static void eini_dir_strides(eini_dir_index *x, const ein_axes *axes, int stream,
                             const int64_t *stride) {
  for (int i = 0; i < axes->n; i++) x->stride[stream][i] = stride == NULL ? 0 : stride[i];
}

// The job of a whole contraction; scratch NULL while planning.
static void eini_dir_init(eini_dir_job *j, const eini_cpu *cpu, const ein_contract *c) {
  const ein_axes *axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  const int64_t *const out[4] = {c->out_batch, c->out_m, c->out_n, NULL};
  const int64_t *const *const extra[4] = {c->extra_batch, c->extra_m, c->extra_n, NULL};
  j->c = c;
  j->isa = cpu->isa;
  j->kern = eini_dir_kern_of(cpu->isa, c->type);
  j->planes = eini_dir_planes(c->type);
  j->unit = j->planes * j->kern->size;
  for (int g = 0; g < 4; g++) {
    eini_dir_index *x = &j->x[g];
    x->n = axes[g]->n;
    x->size = eini_axes_size(axes[g]);
    for (int i = 0; i < x->n; i++) x->extent[i] = axes[g]->extent[i];
    eini_dir_strides(x, axes[g], EINI_DIR_OUT, out[g]);
    for (int e = 0; e < c->nextra; e++) {
      eini_dir_strides(x, axes[g], EINI_DIR_OUT + 1 + e, extra[g] ? extra[g][e] : NULL);
    }
    for (int s = 0; s < 2; s++) {
      const ein_side *side = s ? &c->q : &c->p;
      const int64_t *const *const st[4] = {side->batch, s ? NULL : side->row, s ? side->row : NULL,
                                           side->k};
      for (int o = 0; o < EINI_DIR_OPS; o++) {
        const int64_t *t = o < side->nop && st[g] ? st[g][o] : NULL;
        eini_dir_strides(x, axes[g], s * EINI_DIR_OPS + o, t);
      }
    }
  }
  for (int s = 0; s < 2; s++) {
    const ein_side *side = s ? &c->q : &c->p;
    for (int o = 0; o < side->nop; o++) {
      j->esize[s * EINI_DIR_OPS + o] = (int)eini_dtype_bytes(side->dtype[o]);
      j->base[s * EINI_DIR_OPS + o] = side->base[o];
    }
  }
  j->base[EINI_DIR_OUT] = c->out;
  j->esize[EINI_DIR_OUT] = (int)eini_dtype_bytes(c->out_dtype);
  for (int e = 0; e < c->nextra; e++) {
    j->base[EINI_DIR_OUT + 1 + e] = c->extra_base[e];
    j->esize[EINI_DIR_OUT + 1 + e] = (int)eini_dtype_bytes(c->extra_dtype[e]);
  }
}

static int eini_dir_used(const eini_dir_job *j, int stream) {
  if (stream < EINI_DIR_OPS) return stream < j->c->p.nop;
  if (stream < EINI_DIR_OUT) return stream - EINI_DIR_OPS < j->c->q.nop;
  return stream - EINI_DIR_OUT <= j->c->nextra;
}

// Restrict a group to the linear range [from, to), whole steps of its first axis.
static void eini_dir_cut(eini_dir_job *j, int group, int64_t from, int64_t to) {
  eini_dir_index *x = &j->x[group];
  if (from >= to) x->size = 0;
  if (x->size == 0 || (from == 0 && to == x->size)) return;
  int64_t inner = x->size / x->extent[0], lo = from / inner;
  x->extent[0] = to / inner - lo;
  x->size = x->extent[0] * inner;
  for (int s = 0; s < EINI_DIR_STREAMS; s++) {
    if (eini_dir_used(j, s)) j->base[s] += lo * x->stride[s][0] * j->esize[s];
  }
}

// Offset of a stream at a linear index, in elements.
static int64_t eini_dir_offset(const eini_dir_index *x, int stream, int64_t at) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) {
    int64_t e = x->extent[d];
    off += (d == 0 ? at : at % e) * x->stride[stream][d];
    if (d > 0) at /= e;
  }
  return off;
}

static void eini_dir_at(eini_dir_job *j, int64_t batch) {
  for (int s = 0; s < EINI_DIR_STREAMS; s++) {
    if (!eini_dir_used(j, s)) continue;
    j->at[s] = j->base[s] + eini_dir_offset(&j->x[EINI_DIR_B], s, batch) * j->esize[s];
  }
}

// table[i] = offset of linear index start + i
static void eini_dir_table(const eini_dir_index *x, int stream, int64_t start, int64_t count,
                           int64_t *table) {
  const int last = x->n - 1;
  for (int64_t i = 0, run; i < count; i += run) {
    int64_t off = eini_dir_offset(x, stream, start + i);
    int64_t step = last < 0 ? 0 : x->stride[stream][last];
    run = count - i;
    if (last > 0) run = eini_min64(run, x->extent[last] - (start + i) % x->extent[last]);
    for (int64_t l = 0; l < run; l++) table[i + l] = off + l * step;
  }
}

// The step along the last axis.
static int64_t eini_dir_step(const eini_dir_index *x, int stream) {
  return x->n == 0 ? 0 : x->stride[stream][x->n - 1];
}

static int64_t eini_dir_key(const eini_dir_index *x, int stream, int i) {
  return x->stride[stream][i] == 0 ? INT64_MAX : eini_abs64(x->stride[stream][i]);
}

// Order a group by the steps of a stream, 0 and large ones first; axes of extent 1 go.
static void eini_dir_sort(eini_dir_index *x, int stream) {
  int n = 0;
  for (int i = 0; i < x->n; i++) {
    int d = n;
    int64_t e = x->extent[i], key = eini_dir_key(x, stream, i), keep[EINI_DIR_STREAMS];
    if (e == 1) continue;
    for (int s = 0; s < EINI_DIR_STREAMS; s++) keep[s] = x->stride[s][i];
    for (; d > 0 && eini_dir_key(x, stream, d - 1) < key; d--) {
      x->extent[d] = x->extent[d - 1];
      for (int s = 0; s < EINI_DIR_STREAMS; s++) x->stride[s][d] = x->stride[s][d - 1];
    }
    x->extent[d] = e;
    for (int s = 0; s < EINI_DIR_STREAMS; s++) x->stride[s][d] = keep[s];
    n++;
  }
  x->n = n;
}

// Of a side of several operands: an axis along which all of them have steps 0 or 1 goes last.
static void eini_dir_units_last(eini_dir_index *x, int s0) {
  for (int d = x->n - 2; d >= 0; d--) {
    int ones = 0, others = 0;
    for (int s = s0; s < s0 + EINI_DIR_OPS; s++) {
      ones += x->stride[s][d] == 1;
      others += x->stride[s][d] != 1 && x->stride[s][d] != 0;
    }
    if (ones == 0 || others > 0) continue;
    for (int s = 0; s <= EINI_DIR_STREAMS; s++) {
      int64_t *t = s < EINI_DIR_STREAMS ? x->stride[s] : x->extent, keep = t[d];
      memmove(t + d, t + d + 1, (size_t)(x->n - 1 - d) * sizeof *t);
      t[x->n - 1] = keep;
    }
    return;
  }
}

// How many of the last elements, in the order of the group, have steps of `step` in a stream.
static int64_t eini_dir_run(const eini_dir_index *x, int stream, int64_t step) {
  int64_t run = 1;
  for (int d = x->n - 1; d >= 0 && x->stride[stream][d] == run * step; d--) run *= x->extent[d];
  return run;
}

static void eini_dir_gather(const char *src, const int64_t *off, int64_t n, int unit, char *dst) {
  for (int64_t i = 0; i < n; i++) {
    switch (unit) {
      case 4: ((eini_any_i32 *)dst)[i] = ((const eini_any_i32 *)src)[off[i]]; break;
      case 8: memcpy(dst + 8 * i, src + 8 * off[i], 8); break;
      default: memcpy(dst + 16 * i, src + 16 * off[i], 16);
    }
  }
}

// Rows of products of plain operands, in vectors. 0: their steps along columns are not 0 or 1.
static int eini_dir_product(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                            int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                            int64_t pitch, char *dst) {
  const int nop = s0 ? j->c->q.nop : j->c->p.nop, last = x->n - 1;
  int unit[EINI_DIR_OPS], units = 0;
  int64_t *whole = j->off + EINI_DIR_OPS * EIN_POINTS, n;
  const int64_t len = last > 0 && in > 1 ? x->extent[last] : in;
  if (j->planes == 2 || in % len != 0 || (last > 0 && i0 % len != 0)) return 0;
  for (int o = 0; o < nop; o++) {
    unit[o] = last >= 0 && len > 1 && x->stride[s0 + o][last] == 1;
    if (len > 1 && !unit[o] && x->stride[s0 + o][last] != 0) return 0;
    units += unit[o];
  }
  if (len > 1 && units == 0) return 0;
  for (int64_t r = 0; r < rn; r += n) {
    n = eini_min64(rn - r, EIN_POINTS);
    for (int o = 0; o < nop; o++) {
      eini_dir_table(rows, s0 + o, row0 + r, n, j->off + o * EIN_POINTS);
    }
    for (int64_t l = 0; l < n; l++) whole[l] = l * pitch;
    for (int64_t i = 0; i < in; i += len) {
      eini_dir_mul d = {n, len, pitch, NULL, NULL, NULL, NULL, {0, 0}, 1, 0, NULL};
      int first = 0;
      while (first < nop - 1 && !unit[first]) first++;
      d.y = dst + (r * pitch + i) * j->unit;
      d.a = j->at[s0 + first] + eini_dir_offset(x, s0 + first, i0 + i) * j->unit;
      d.aoff = j->off + first * EIN_POINTS;
      d.ahead[0] = n * eini_dir_step(rows, s0 + first) * j->unit;
      for (int o = 0; o < nop; o++) {
        if (o == first) continue;
        d.b = j->at[s0 + o] + eini_dir_offset(x, s0 + o, i0 + i) * j->unit;
        d.boff = j->off + o * EIN_POINTS;
        d.sb = unit[o];
        d.ahead[1] = n * eini_dir_step(rows, s0 + o) * j->unit;
        j->kern->mul(&d);
        d.a = d.y;
        d.aoff = whole;
        d.ahead[0] = 0;
      }
    }
  }
  return 1;
}

// How many of the next n positions from `at` on go on along the last axis.
static int64_t eini_dir_goes_on(const eini_dir_index *x, int64_t at, int64_t n) {
  const int64_t last = x->n > 0 ? x->extent[x->n - 1] : 1;
  return eini_min64(n, x->n == 1 ? n : last - at % last);
}

// Is a plain side turned by tiles? Where its rows follow each other in memory, and what is fetched
// of each does not.
static int eini_dir_turns_in(const eini_dir_job *j, int s0, const eini_dir_index *rows,
                             const eini_dir_index *x) {
  const int unit = x->n == 0 || (x->n == 1 && x->stride[s0][0] == 1);
  return !unit && j->planes == 1 && rows->n > 0 && rows->stride[s0][rows->n - 1] == 1;
}

// The same of such a side: blocks are turned.
static void eini_dir_fetch_turned(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                                  int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                                  int64_t pitch, char *dst) {
  const int64_t step = x->stride[s0][x->n - 1] * j->unit;
  for (int64_t r = 0, nr; r < rn; r += nr) {
    nr = eini_dir_goes_on(rows, row0 + r, rn - r);
    const char *a = j->at[s0] + eini_dir_offset(rows, s0, row0 + r) * j->unit;
    for (int64_t i = 0, ni; i < in; i += ni) {
      ni = eini_dir_goes_on(x, i0 + i, in - i);
      eini_turn(j->isa, j->unit, nr, ni, a + eini_dir_offset(x, s0, i0 + i) * j->unit, step,
                dst + (r * pitch + i) * j->unit, pitch * j->unit);
    }
  }
}

// dst[r * pitch + i] = value of a plain side at rows row0 + r and columns from i0; both groups.
static void eini_dir_fetch_plain(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                                 int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                                 int64_t pitch, char *dst) {
  const int unit = x->n == 0 || (x->n == 1 && x->stride[s0][0] == 1);
  if (rn > 1 && eini_dir_turns_in(j, s0, rows, x)) {
    eini_dir_fetch_turned(j, s0, rows, row0, rn, x, i0, in, pitch, dst);
    return;
  }
  for (int64_t i = 0, n; i < in; i += n) {
    n = eini_min64(in - i, EIN_POINTS);
    eini_dir_table(x, s0, i0 + i, n, j->off);
    for (int64_t r = 0; r < rn; r++) {
      const char *a = j->at[s0] + eini_dir_offset(rows, s0, row0 + r) * j->unit;
      char *d = dst + (r * pitch + i) * j->unit;
      if (unit) {
        memcpy(d, a + j->off[0] * j->unit, (size_t)(n * j->unit));
      } else {
        eini_dir_gather(a, j->off, n, j->unit, d);
      }
    }
  }
}

// The same for sides of any form, in the compute dtype; a plain side is not conjugated.
static void eini_dir_fetch(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                           int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                           int64_t pitch, char *dst) {
  const ein_side *side = s0 ? &j->c->q : &j->c->p;
  if (side->form == EIN_FORM_PLAIN) {
    eini_dir_fetch_plain(j, s0, rows, row0, rn, x, i0, in, pitch, dst);
    return;
  }
  if (side->form == EIN_FORM_PRODUCT &&
      eini_dir_product(j, s0, rows, row0, rn, x, i0, in, pitch, dst)) {
    return;
  }
  for (int64_t r = 0; r < rn; r++, dst += pitch * j->unit) {
    int64_t row[EINI_DIR_OPS];
    const int64_t *offp[EINI_DIR_OPS];
    for (int o = 0; o < side->nop; o++) row[o] = eini_dir_offset(rows, s0 + o, row0 + r);
    for (int64_t i = 0, n; i < in; i += n) {
      n = eini_min64(in - i, EIN_POINTS);
      for (int o = 0; o < side->nop; o++) {
        int64_t *off = j->off + o * EIN_POINTS;
        eini_dir_table(x, s0 + o, i0 + i, n, off);
        for (int64_t l = 0; l < n; l++) off[l] += row[o];
        offp[o] = off;
      }
      side->fill_fn(side->user, n, j->at + s0, offp, NULL, j->val);
      memcpy(dst + i * j->unit, j->val, (size_t)(n * j->unit));
    }
  }
}

static void eini_dir_scatter(const char *src, int64_t n, int64_t step, int unit, char *dst) {
  for (int64_t i = 0; i < n; i++) {
    switch (unit) {
      case 4: ((eini_any_i32 *)dst)[i * step] = ((const eini_any_i32 *)src)[i]; break;
      case 8: memcpy(dst + 8 * i * step, src + 8 * i, 8); break;
      default: memcpy(dst + 16 * i * step, src + 16 * i, 16);
    }
  }
}

// Store n finished sums at offset off[s] + i * step[s] of the output and of the extras; both arrays
// are indexed from 0.
static void eini_dir_put(eini_dir_job *j, int64_t n, const char *folds, const int64_t *off,
                         const int64_t *step) {
  const ein_contract *c = j->c;
  if (c->plain_out) {
    char *d = c->out == NULL ? NULL : (char *)(uintptr_t)j->at[EINI_DIR_OUT] + off[0] * j->unit;
    if (step[0] == 1) {
      memcpy(d, folds, (size_t)(n * j->unit));
    } else {
      eini_dir_scatter(folds, n, step[0], j->unit, d);
    }
    return;
  }
  for (int64_t i = 0, m; i < n; i += m) {
    const int64_t *offp[EINI_DIR_OPS + 1];
    int64_t at[EINI_DIR_OPS + 1];
    m = c->scaled ? n : eini_min64(n - i, EIN_POINTS);
    for (int e = 0; e <= c->nextra; e++) {
      at[e] = off[e] + i * step[e];
      offp[e] = &at[e];
    }
    const char *x = folds + i * j->unit;
    if (!c->scaled) x = (const char *)memcpy(j->val, x, (size_t)(m * j->unit));
    c->emit_fn(c->emit_user, m, x, (char *)(uintptr_t)j->at[EINI_DIR_OUT], offp[0],
               j->at + EINI_DIR_OUT + 1, offp + 1, step);
  }
}

static int eini_dir_conj(const eini_dir_job *j, int s0) {
  const ein_side *s = s0 ? &j->c->q : &j->c->p;
  return s->form == EIN_FORM_PLAIN && s->conj;
}

// The part of scratch that fetch and put use.
static void eini_dir_carve_job(eini_dir_job *j, char *base, size_t *used) {
  j->off = (int64_t *)eini_carve(base, used, EINI_DIR_OPS * EIN_POINTS * 8 + EIN_POINTS * 8, 1);
  j->val = (char *)eini_carve(base, used, EIN_POINTS * j->unit, 1);
}

// ================================================================================================
// >>matvec  matrix-vector products, dot and inner products
// One side is a matrix, the other depends on k only, or has few rows. The matrix is read once, in
// place, along k as dot products of several rows, or along its rows as sums of several columns,
// with those of all vectors in the first- or second-level cache. What has no unit steps is fetched.
// ================================================================================================

#define EINI_DIR_ROWS 512    // rows of a block
#define EINI_DIR_KB 4096     // k of a block
#define EINI_DIR_Y 16384     // bytes of a block of the output
#define EINI_DIR_COLUMNS 4   // short columns that are asked for ahead
#define EINI_DIR_VECTORS 16  // at most; more are a matrix

typedef struct eini_dir_mv {
  eini_dir_job j;
  int group, other, a, x;      // groups of the rows and of the vectors; first streams of the
                               // matrix and the vectors
  int by_rows, fetch, direct;  // along k; the matrix is fetched; the vector is read in place
  int one, far;                // a single row; it, or short rows, come from memory
  int log;                     // of the number of columns at once
  int apart;                   // short columns come from memory, and do not follow each other
  int64_t vectors;             // how many
  int64_t block, pitch;        // bytes of a block of the output by columns, and from one vector's
                               // to the next
  int64_t run, kb;             // contiguous elements of the matrix
  char *xv, *xs, *y, *y2, *av, *sums;
  int64_t *row, *koff;
} eini_dir_mv;

// The stream of a side with the largest extent in memory.
static int eini_dir_largest(const eini_dir_job *j, int s0) {
  int best = s0;
  int64_t most = -1;
  for (int o = s0; o < s0 + (s0 ? j->c->q.nop : j->c->p.nop); o++) {
    int64_t reach = 0;
    for (int g = 0; g < 4; g++) {
      for (int d = 0; d < j->x[g].n; d++) {
        reach += eini_abs64(j->x[g].stride[o][d]) * (j->x[g].extent[d] - 1);
      }
    }
    if (reach > most) most = reach, best = o;
  }
  return best;
}

// How many rows or columns to read at once. What comes from memory is fastest as one stream, which
// needs the vector or the output in the first-level cache; else as a few that are far apart.
static void eini_dir_mv_streams(eini_dir_mv *v, const eini_cpu *cpu, int64_t step) {
  const eini_dir_job *j = &v->j;
  const int64_t k = j->x[EINI_DIR_K].size, run = v->run * j->unit;
  const double bytes = (double)j->x[EINI_DIR_B].size * (double)j->x[v->group].size * (double)k;
  const int far = !v->fetch && eini_cpu_far(cpu, bytes * j->unit);
  v->far = far && (v->one || (step == k && eini_min64(run, v->kb * j->unit) <= cpu->l1 / 2));
  v->log = 3;
  v->apart = 0;
  v->block = EINI_DIR_Y;
  if (v->vectors > 1) {  // far: as long runs as sums in the second-level cache allow
    const int64_t sums = (far ? cpu->l2 / 2 : EINI_DIR_Y) / v->vectors;
    v->block = eini_max64(EINI_DIR_Y / 8, eini_min64(run, sums));
    return;
  }
  if (!far || v->by_rows || v->run < 4 * j->kern->lanes) return;
  if (run <= cpu->l1 / 4) {
    v->log = 0;
    v->apart = eini_dir_step(&j->x[EINI_DIR_K], v->a) > v->run;
  } else if (run > cpu->l1 / 2 && j->planes == 1) {
    v->log = 2;
    v->block = eini_min64(run, cpu->l2 / 2);
  }
}

// How to run: from the whole contraction, so that parts have the same bits.
static void eini_dir_mv_init(eini_dir_mv *v, const eini_cpu *cpu, const ein_contract *c,
                             const ein_part *part) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  eini_dir_init(j, cpu, c);
  const int swap = j->x[EINI_DIR_M].size < j->x[EINI_DIR_N].size;
  v->group = swap ? EINI_DIR_N : EINI_DIR_M;
  v->other = swap ? EINI_DIR_M : EINI_DIR_N;
  v->vectors = j->x[v->other].size;
  v->a = swap ? EINI_DIR_OPS : 0;
  v->x = EINI_DIR_OPS - v->a;
  eini_dir_index *r = &j->x[v->group];
  const int64_t m = r->size;
  const ein_side *side = swap ? &c->q : &c->p, *vec = swap ? &c->p : &c->q;
  eini_dir_index whole = *r;
  const int big = eini_dir_largest(j, v->a);
  eini_dir_sort(&whole, big);
  eini_dir_sort(&j->x[EINI_DIR_K], big);
  const int64_t krun = eini_dir_run(k, big, 1), rrun = eini_dir_run(&whole, big, 1);
  v->one = m == 1;
  v->fetch = side->form != EIN_FORM_PLAIN || (krun == 1 && rrun == 1 && k->size > 1 && m > 1);
  v->by_rows = v->fetch || m == 1 || krun >= rrun;
  if (m == 1 && krun == 1) v->fetch = 1;
  v->run = v->by_rows ? (v->fetch ? k->size : krun) : rrun;
  v->direct = v->by_rows && v->vectors == 1 && j->planes == 1 && vec->form == EIN_FORM_PLAIN &&
              eini_dir_run(k, v->x, 1) == k->size;
  v->kb = v->fetch ? EIN_POINTS : EINI_DIR_KB;
  if (v->direct && m == 1 && !v->fetch && v->run == k->size) v->kb *= 16;
  if (v->vectors > 1 && v->by_rows) v->kb = EINI_DIR_KB / 8;  // rows stay in the first cache
  eini_dir_mv_streams(v, cpu, eini_dir_step(&whole, v->a));
  if (part != NULL) {
    const int64_t *cut = swap ? part->n : part->m;
    eini_dir_cut(j, v->group, cut[0], cut[1]);
  }
  eini_dir_sort(r, big);
  if (!v->by_rows) v->run = eini_dir_run(r, big, 1);
}

static size_t eini_dir_mv_carve(eini_dir_mv *v, char *base) {
  eini_dir_job *j = &v->j;
  const int64_t kb = eini_min64(v->kb, EINI_DIR_KB);
  size_t used = 0;
  eini_dir_carve_job(j, base, &used);
  v->xv = (char *)eini_carve(base, &used, v->direct ? 0 : v->vectors * kb * j->unit, 1);
  v->xs = (char *)eini_carve(base, &used, j->planes == 2 ? kb * j->unit : 0, 1);
  v->koff = (int64_t *)eini_carve(base, &used, kb * 8, 1);
  v->row = (int64_t *)eini_carve(base, &used, EINI_DIR_ROWS * 8, 1);
  v->sums = (char *)eini_carve(base, &used, 2 * 4 * 64, 1);
  v->pitch = eini_max64(eini_up(v->block, 64), EINI_DIR_ROWS * j->unit);
  v->y = (char *)eini_carve(base, &used, v->vectors * v->pitch, 1);
  v->y2 = (char *)eini_carve(base, &used, j->planes == 2 ? EINI_DIR_Y : 0, 1);
  v->av = (char *)eini_carve(base, &used, v->fetch ? 4 * kb * j->unit : 0, 1);
  return used;
}

// Store `n` values of a vector at rows from r on, in the order of the group.
static void eini_dir_mv_put(eini_dir_mv *v, int64_t r, int64_t n, int64_t vector, const char *y) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->group];
  const int last = x->n - 1;
  for (int64_t i = 0, run; i < n; i += run) {
    int64_t off[EINI_DIR_OPS + 1], step[EINI_DIR_OPS + 1];
    run = n - i;
    if (last > 0) run = eini_min64(run, x->extent[last] - (r + i) % x->extent[last]);
    for (int e = 0; e <= j->c->nextra; e++) {
      off[e] = eini_dir_offset(x, EINI_DIR_OUT + e, r + i) +
               eini_dir_offset(&j->x[v->other], EINI_DIR_OUT + e, vector);
      step[e] = last < 0 ? 0 : x->stride[EINI_DIR_OUT + e][last];
    }
    eini_dir_put(j, run, y + i * j->unit, off, step);
  }
}

// The vectors at k from k0; complex by rows: and with its parts swapped; complex by columns: real
// parts in xv and imaginary parts in xs.
static const char *eini_dir_mv_x(eini_dir_mv *v, int64_t k0, int64_t kn) {
  eini_dir_job *j = &v->j;
  const int z = j->kern->size;
  if (v->direct) {
    return j->at[v->x] + eini_dir_offset(&j->x[EINI_DIR_K], v->x, k0) * j->unit;
  }
  eini_dir_fetch(j, v->x, &j->x[v->other], 0, v->vectors, &j->x[EINI_DIR_K], k0, kn, kn, v->xv);
  if (j->planes == 1) return v->xv;
  for (int64_t k = 0; k < kn; k++) {
    char t[8];
    if (v->by_rows) {
      memcpy(v->xs + 2 * k * z, v->xv + (2 * k + 1) * z, (size_t)z);
      memcpy(v->xs + (2 * k + 1) * z, v->xv + 2 * k * z, (size_t)z);
    } else {
      memcpy(t, v->xv + (2 * k + 1) * z, (size_t)z);
      memmove(v->xv + k * z, v->xv + 2 * k * z, (size_t)z);
      memcpy(v->xs + k * z, t, (size_t)z);
    }
  }
  return v->xv;
}

// y[r] += a[row[r], k0 ..] * x, four rows at a time; the last rows are repeated.
static void eini_dir_mv_dots(eini_dir_mv *v, int64_t r0, int64_t rn, int64_t k0, int64_t kn,
                             const char *x, int64_t runs) {
  eini_dir_job *j = &v->j;
  const int p = j->planes, ca = eini_dir_conj(j, v->a), cx = eini_dir_conj(j, v->x);
  char *sums[2] = {v->sums, v->sums + 4 * 64};
  int64_t fetched[4] = {0};
  for (int64_t r = 0; r < rn; r += 4) {
    const int n = (int)eini_min64(4, rn - r);
    const int64_t len = p * kn / runs;
    eini_dir_dots d = {runs, len, len, v->koff, v->row + r, 0, j->at[v->a], x, NULL};
    if (v->fetch) {
      eini_dir_fetch(j, v->a, &j->x[v->group], r0 + r, n, &j->x[EINI_DIR_K], k0, kn, kn,
                     v->av);
      for (int i = 0; i < 4; i++) fetched[i] = (i < n ? i : 0) * kn * p;
      d.row = fetched;
      d.a = v->av;
    }
    for (int h = 0; h < p; h++) {
      d.sums = sums[h];
      if (h) d.x = v->xs;
      if (v->one && v->far) {
        memset(d.sums, 0, 64);
        j->kern->dot_far(&d);
      } else if (v->one) {
        j->kern->dot_long(&d);
      } else if (v->far) {  // one after another, as they lie
        for (int i = 0; i < n; i++, d.row++, d.sums += j->kern->lanes * j->kern->size) {
          j->kern->dots1(&d);
        }
        d.row -= n;
      } else {
        j->kern->dots4(&d);
      }
    }
    j->kern->fold(n, p, sums[0], sums[1], ca, cx, v->y + r * j->unit);
  }
}

// The same of several real vectors, of a matrix in place.
static void eini_dir_mv_dots_several(eini_dir_mv *v, int64_t rn, int64_t kn, const char *x,
                                     int64_t runs) {
  const eini_dir_job *j = &v->j;
  for (int64_t r = 0; r < rn; r += 4) {
    eini_dir_dots d = {runs, kn / runs, kn / runs, v->koff, v->row + r, 0,
                       j->at[v->a], x, v->sums};
    char *y = v->y + r * j->unit;
    for (int64_t i = 0; i < v->vectors; i++, d.x += kn * j->unit, y += v->pitch) {
      j->kern->dots4(&d);
      j->kern->fold((int)eini_min64(4, rn - r), 1, v->sums, v->sums, 0, 0, y);
    }
  }
}

static void eini_dir_mv_by_rows(eini_dir_mv *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_K], *rows = &j->x[v->group];
  const char *xv = NULL;
  for (int64_t r = 0, rn; r < rows->size; r += rn) {
    rn = eini_min64(EINI_DIR_ROWS, rows->size - r);
    eini_dir_table(rows, v->a, r, rn, v->row);
    for (int64_t i = 0; i < rn; i++) v->row[i] *= j->planes;
    for (int64_t i = rn; i % 4; i++) v->row[i] = v->row[rn - 1];
    memset(v->y, 0, (size_t)((v->vectors - 1) * v->pitch + rn * j->unit));
    for (int64_t k = 0, kn; k < x->size; k += kn) {
      int64_t runs = 1;
      kn = eini_min64(v->kb, x->size - k);
      if (!v->fetch) {
        if (v->run >= v->kb) {
          kn = eini_min64(kn, v->run - k % v->run);
        } else {
          runs = kn / v->run;
          kn = runs * v->run;
        }
      }
      if (kn < x->size || r == 0) xv = eini_dir_mv_x(v, k, kn);
      for (int64_t i = 0; i < runs; i++) {
        v->koff[i] = v->fetch ? 0 : j->planes * eini_dir_offset(x, v->a, k + i * v->run);
      }
      if (v->vectors > 1) eini_dir_mv_dots_several(v, rn, kn, xv, runs);
      else eini_dir_mv_dots(v, r, rn, k, kn, xv, runs);
    }
    for (int64_t i = 0; i < v->vectors; i++) eini_dir_mv_put(v, r, rn, i, v->y + i * v->pitch);
  }
}

// y[0 .. n) (+)= columns k of the block at a, several at a time. Complex products are those with
// two vectors, of real parts and of imaginary ones.
static void eini_dir_mv_axpy(eini_dir_mv *v, const char *a, int64_t n, int64_t kn, int first) {
  const eini_dir_job *j = &v->j;
  const eini_dir_kern *t = j->kern;
  const int several = v->vectors > 1 || j->planes == 2;
  eini_dir_axpys d = {n * j->planes, v->vectors * j->planes, 0, kn * t->size, v->pitch, NULL, NULL,
                      v->y};
  if (j->planes == 2) d.xstep = v->xs - v->xv, d.ystep = v->y2 - v->y;
  for (int64_t k = 0; k < kn;) {
    const int64_t left = kn - k;
    const int most = several ? t->columns : v->log;
    int log = left >= 8 ? 3 : left >= 4 ? 2 : left >= 2;
    if (log > most) log = most;
    if (several && log < most) log = 0;
    const char *col[8];
    for (int i = 0; i < 1 << log; i++) col[i] = a + v->koff[k + i] * j->unit;
    for (int64_t b = 0; v->apart && left > EINI_DIR_COLUMNS && b < n * j->unit; b += 64)
      EINI_FETCH((uintptr_t)a + (uintptr_t)(v->koff[k + EINI_DIR_COLUMNS] * j->unit + b));
    d.first = first && k == 0;
    d.a = col;
    d.x = v->xv + k * t->size;
    if (several) t->axpys[log > 0](&d);
    else (v->log > 0 ? t->axpy[log] : t->axpy_far)(n, d.first, col, d.x, v->y);
    k += 1 << log;
  }
}

static void eini_dir_mv_by_columns(eini_dir_mv *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_K], *rows = &j->x[v->group];
  const int64_t most = v->block / j->unit;
  for (int64_t r = 0, rn; r < rows->size; r += rn) {
    const char *a = j->at[v->a] + eini_dir_offset(rows, v->a, r) * j->unit;
    rn = eini_min64(most, v->run - r % v->run);
    if (x->size == 0) memset(v->y, 0, (size_t)(v->vectors * v->pitch));
    if (x->size == 0 && j->planes == 2) memset(v->y2, 0, (size_t)(rn * j->unit));
    for (int64_t k = 0, kn; k < x->size; k += kn) {
      kn = eini_min64(v->kb, x->size - k);
      if (kn < x->size || r == 0) {
        eini_dir_mv_x(v, k, kn);
        eini_dir_table(x, v->a, k, kn, v->koff);
      }
      eini_dir_mv_axpy(v, a, rn, kn, k == 0);
    }
    if (j->planes == 2) {
      j->kern->join(rn, v->y, v->y2, eini_dir_conj(j, v->a), eini_dir_conj(j, v->x));
    }
    for (int64_t i = 0; i < v->vectors; i++) eini_dir_mv_put(v, r, rn, i, v->y + i * v->pitch);
  }
}

static ein_status eini_dir_mv_run(const eini_cpu *cpu, const ein_contract *c,
                                  const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_mv v;
  (void)choice;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  eini_dir_mv_init(&v, cpu, c, part);
  eini_dir_mv_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v.j, b);
    if (v.by_rows) {
      eini_dir_mv_by_rows(&v);
    } else {
      eini_dir_mv_by_columns(&v);
    }
  }
  return EIN_OK;
}

static double eini_dir_peak(const eini_rated *cpu, ein_dtype type) {
  switch (type) {
    case EIN_F32: case EIN_C64: return cpu->peak_f32;
    case EIN_F64: case EIN_C128: return cpu->peak_f64;
    case EIN_I32: return cpu->peak_f32 / 4;
    default: return cpu->peak_f64 / 4;
  }
}

static double eini_dir_out_bytes(const eini_dir_job *j) {
  return (double)j->x[EINI_DIR_B].size * (double)j->x[EINI_DIR_M].size *
         (double)j->x[EINI_DIR_N].size * j->unit;
}

// Into how many parts a group may be cut: along its first axis, in steps of at least `step`.
static void eini_dir_grid(const eini_dir_index *x, int64_t step, int64_t *grid, int64_t *unit) {
  const int64_t inner = x->n > 0 && x->size > 0 ? x->size / x->extent[0] : 1;
  step = (step + inner - 1) / inner;
  *unit = inner * step;
  *grid = x->n > 0 && x->size > 0 ? (x->extent[0] + step - 1) / step : 1;
}

static double eini_dir_threads(const ein_choice *choice, int width) {
  const double most = (double)choice->grid[0] * (double)choice->grid[1] * (double)choice->grid[2];
  return most < 1 ? 1 : most < (double)width ? most : (double)width;
}

// Of several vectors by rows: what dot products take, which wait for what they load, and adding up
// those of four rows; vectors that the first cache does not keep come from the second for each.
static double eini_dir_mv_several_rows(const eini_dir_mv *v, const eini_rated *cpu, double read) {
  const double lanes = v->j.kern->lanes, rows = ceil((double)v->j.x[v->group].size / 4);
  const double some = (double)v->j.x[EINI_DIR_B].size * (double)v->vectors * rows;
  const double k = (double)v->j.x[EINI_DIR_K].size, run = (double)eini_min64(v->run, v->kb);
  const double four = 4 * 2 * lanes / eini_dir_peak(cpu, v->j.c->type);  // seconds, of a vector
  const double held = ((double)v->vectors + 4) * (double)eini_min64(v->kb, (int64_t)k) * v->j.unit;
  if (held > (double)cpu->is.l1) read += some * k * v->j.unit / cpu->l2_bw;
  return read + some * k / run * (1.5 * ceil(run / lanes) + 20) * four;
}

// The same by columns, in `calls` of some vectors of columns: these are read, sums are read and
// written, and products are added at less than the peak, as each waits for the one before; results
// are written, each for itself where they do not lie along the output. Each run of a block takes
// calls for its columns, and is written for each vector.
static double eini_dir_mv_several_columns(const eini_dir_mv *v, const eini_rated *cpu,
                                          double calls, double vectors, double peak) {
  const eini_dir_kern *t = v->j.kern;
  const double rows = (double)v->vectors, sums = rows * vectors * t->lanes * t->size;
  const double out = 2 * eini_dir_out_bytes(&v->j);
  const int64_t k = v->j.x[EINI_DIR_K].size, some = (int64_t)1 << t->columns;
  const double runs = out / (2 * rows * (double)eini_min64(v->run * v->j.unit, v->block));
  const double each = (double)(k / some + k % some) * 15e-9 + rows * 8e-9;
  return runs * each + 1.4 * peak + calls * vectors * 10 / cpu->hz + out / eini_cpu_bw(cpu, out) +
         calls * sums / eini_cpu_bw(cpu, rows * (double)v->block) +
         (eini_dir_step(&v->j.x[v->group], EINI_DIR_OUT) == 1 ? 0 : out / v->j.unit * 1e-9);
}

static int eini_dir_mv_plan(const eini_rated *cpu, const ein_contract *c, int width,
                            ein_choice *choice) {
  eini_dir_mv v;
  eini_dir_job *j = &v.j;
  if (!eini_dir_able(&cpu->is, c)) return 0;
  eini_dir_mv_init(&v, &cpu->is, c, NULL);
  const int several = v.vectors > 1;
  if (several && (v.vectors > EINI_DIR_VECTORS || v.fetch || j->planes == 2)) return 0;
  if (v.vectors < 1 || j->x[EINI_DIR_K].size < 2) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, m = (double)j->x[v.group].size;
  const double k = (double)j->x[EINI_DIR_K].size;
  double bytes = batch * (m + v.one) * k * j->unit;
  if (v.by_rows && !v.fetch && m > 1)  // a pass for each row brings whole lines for short runs
    bytes *= fmax(1, EINI_LINE_BYTES / (double)(v.run * j->unit));
  const double flops = 2 * batch * m * k * j->planes * j->planes * (double)v.vectors;
  const double peak = flops / eini_dir_peak(cpu, c->type), read = bytes / eini_cpu_bw(cpu, bytes);
  const double calls = batch * ceil(k / 8), vectors = ceil(m / j->kern->lanes);
  double seconds = fmax(read, peak);
  const int short_runs = v.run * j->unit < EINI_PAGE_BYTES && eini_cpu_beyond(&cpu->is, bytes);
  if (!v.by_rows)  // eight at a time, each vector of their sum waits for the eight before
    seconds = fmax(seconds, calls * (40 + 16 * vectors) / cpu->hz);
  if (several && v.by_rows) seconds = eini_dir_mv_several_rows(&v, cpu, read);
  else if (several)
    seconds = eini_cpu_beside(eini_dir_mv_several_columns(&v, cpu, calls, vectors, peak), read,
                              short_runs ? 1 : EINI_CPU_BESIDE);
  if (v.fetch) seconds += batch * m * k * 2e-9;
  if (!v.by_rows && v.run < 8) seconds += batch * m * k / (double)v.run * 1e-9;
  if (!v.direct) seconds += batch * k * (double)v.vectors * 1e-9;
  seconds += batch * (1e-7 + m * (several ? 0 : v.by_rows ? 5e-9 : 1e-9));
  eini_dir_grid(&j->x[EINI_DIR_B], 1, &choice->grid[0], &choice->unit[0]);
  choice->unit[0] = 1;
  choice->grid[0] = j->x[EINI_DIR_B].size;
  choice->grid[1] = choice->grid[2] = choice->unit[1] = choice->unit[2] = 1;
  const int g = v.group == EINI_DIR_M ? 1 : 2;
  eini_dir_init(j, &cpu->is, c);
  eini_dir_grid(&j->x[v.group], v.by_rows ? 16 : 256, &choice->grid[g], &choice->unit[g]);
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  choice->scratch = eini_dir_mv_carve(&v, NULL);
  static const char *const name[] = {"matvec columns", "matvec rows", "matvec several columns",
                                     "matvec several rows"};
  eini_cpu_name(choice, name[2 * several + v.by_rows]);
  return 1;
}

static int eini_dir_matvec_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  if (eini_axes_size(&c->m) == 1 && eini_axes_size(&c->n) == 1) return 0;
  return eini_dir_mv_plan(cpu, c, width, choice);
}

static int eini_dir_dot_plan(const eini_rated *cpu, const ein_contract *c, int width,
                             ein_choice *choice) {
  if (eini_axes_size(&c->m) != 1 || eini_axes_size(&c->n) != 1) return 0;
  return eini_dir_mv_plan(cpu, c, width, choice);
}

EINI_UNUSED static const eini_cpu_family eini_dir_matvec = {
    "matvec", eini_dir_matvec_plan, eini_dir_mv_run};
EINI_UNUSED static const eini_cpu_family eini_dir_dot = {
    "dot", eini_dir_dot_plan, eini_dir_mv_run};

// ---- inner products of permuted operands --------------------------------------------------------
// P is contiguous along one axis of k, u, and Q along another, v. Blocks of Q are turned into the
// second-level cache, then multiplied with rows of P: both are read in runs as they lie, and what
// comes next is asked for, as runs are too short and too far apart for the machine to foresee.
// Q may go on from one sum of the batch to the next: then a block is of several sums. Rows of one
// axis are multiplied as they are.

#define EINI_DIR_TURN 256      // elements of a row of a turned block
#define EINI_DIR_TURNED 128    // rows of one, at most
#define EINI_DIR_TURN_AHEAD 256  // bytes of what is turned to read ahead

typedef struct eini_dir_inner {
  eini_dir_job j;
  int u, v;                    // axes of k along which P and Q are contiguous; v -1: the batch
  int same;                    // both are along u; v is another axis, and nothing is turned
  eini_dir_index rest;         // the others
  int64_t nv, at_once;         // extent of v; sums at once
  int64_t *run, pitch;         // pitch: bytes from row to row of a block
  char *block, *sums;
} eini_dir_inner;

// dst[v * pitch + u] = src[u * step + v], in bytes, along v first, as src lies. Tiles overlap.
static void eini_dir_turn(int isa, int size, int64_t nu, int64_t nv, const char *src, int64_t step,
                          char *dst, int64_t pitch) {
  const eini_tile_kind *kind = eini_tile_kinds[isa][size == 8 ? 3 : 2];
  while (kind->b > eini_min64(nu, nv)) kind++;
  const int64_t b = kind->b, ahead = EINI_DIR_TURN_AHEAD;
  for (int64_t u = 0; u < nu; u += b > 0 ? b : 1) {
    if (b == 0) {
      eini_dir_scatter(src + u * step, nv, pitch / size, size, dst + u * size);
      continue;
    }
    const int64_t w = eini_min64(u, nu - b), then = eini_min64(u + b, nu - b);
    for (int64_t v = 0; v < nv; v += b) {
      const int64_t at = eini_min64(v, nv - b) * size, next = v * size + ahead;
      const char *f = src + (next < nv * size ? w * step + next : then * step + next - nv * size);
      for (int64_t i = 0; i < b; i++) EINI_FETCH(f + i * step);
      kind->fn(src + w * step + at, step, dst + at / size * pitch + w * size, pitch);
    }
  }
}

static int eini_dir_inner_init(eini_dir_inner *v, const eini_cpu *cpu, const ein_contract *c) {
  eini_dir_job *j = &v->j;
  if (eini_axes_size(&c->m) != 1 || eini_axes_size(&c->n) != 1 || !eini_dir_able(cpu, c)) return 0;
  if (c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN) return 0;
  eini_dir_init(j, cpu, c);
  if (j->planes == 2) return 0;
  const eini_dir_index *k = &j->x[EINI_DIR_K], *batch = &j->x[EINI_DIR_B];
  v->u = v->v = -1;
  for (int d = 0; d < k->n; d++) {
    if (k->extent[d] > 1 && k->stride[0][d] == 1) v->u = d;
    if (k->extent[d] > 1 && k->stride[EINI_DIR_OPS][d] == 1) v->v = d;
  }
  if (v->u < 0 || k->size == 0) return 0;
  v->same = v->u == v->v;
  if (v->same && k->n < 2) return 0;
  if (v->same) v->v = v->u == k->n - 1 ? k->n - 2 : k->n - 1;
  v->nv = v->v < 0 ? 1 : k->extent[v->v];
  const int joined = batch->n == 1 && batch->stride[EINI_DIR_OPS][0] == v->nv && !v->same;
  if (v->v < 0 && !joined) return 0;
  v->at_once = joined ? eini_max64(EINI_DIR_TURNED / v->nv, 1) : 1;
  v->rest = *k;
  v->rest.extent[v->u] = 1;
  if (v->v >= 0) v->rest.extent[v->v] = 1;
  v->rest.size = k->size / k->extent[v->u] / v->nv;
  v->pitch = EINI_DIR_TURN * j->unit + 64;  // columns in different sets of the caches
  eini_dir_sort(&v->rest, EINI_DIR_OPS);
  return 1;
}

static size_t eini_dir_inner_carve(eini_dir_inner *v, char *base) {
  size_t used = 0;
  eini_dir_carve_job(&v->j, base, &used);
  v->sums = (char *)eini_carve(base, &used, 64, 1);
  v->run = (int64_t *)eini_carve(base, &used, 8 * EINI_DIR_TURNED, 1);
  v->block = (char *)eini_carve(base, &used, v->same ? 0 : EINI_DIR_TURNED * v->pitch, 1);
  return used;
}

// y[i] += the sum over u0 .. u0 + un and v0 .. v0 + vn of each of n products at p and q.
static void eini_dir_inner_block(eini_dir_inner *v, int isa, int64_t n, int64_t un, int64_t vn,
                                 const char *p, const char *q, char *y) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const int64_t zero = 0, unit = j->unit, sv = v->v < 0 ? 0 : k->stride[0][v->v];
  const int64_t next = n > 1 ? j->x[EINI_DIR_B].stride[0][0] : 0;
  eini_dir_dots d = {vn, un, v->pitch / unit, v->run, &zero, (vn > 1 ? sv : next) * unit,
                     p, v->block, v->sums};
  if (v->same) {
    d.ahead = 0, d.x = q, d.xrun = k->stride[EINI_DIR_OPS][v->v];
  } else {
    eini_dir_turn(isa, (int)unit, un, n * vn, q, k->stride[EINI_DIR_OPS][v->u] * unit, v->block,
                  v->pitch);
  }
  for (int64_t i = 0; i < n; i++) {
    j->kern->dot_long(&d);
    j->kern->fold(1, 1, v->sums, v->sums, 0, 0, y + i * unit);
    d.a += next * unit, d.x += vn * v->pitch;
  }
}

// n sums, from the one at the current addresses on. Their bits do not depend on n.
static void eini_dir_inner_sum(eini_dir_inner *v, int isa, int64_t n, char *y) {
  const eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const int64_t su = k->stride[EINI_DIR_OPS][v->u], sv = v->v < 0 ? 0 : k->stride[0][v->v];
  const int64_t qv = v->v < 0 ? 0 : k->stride[EINI_DIR_OPS][v->v], nu = k->extent[v->u];
  const int64_t wide = v->same ? 8 * EINI_DIR_TURN : EINI_DIR_TURN;
  for (int i = 0; i < EINI_DIR_TURNED; i++) v->run[i] = i * sv;
  for (int64_t r = 0; r < v->rest.size; r++) {
    const int64_t p = eini_dir_offset(&v->rest, 0, r);
    const int64_t q = eini_dir_offset(&v->rest, EINI_DIR_OPS, r);
    for (int64_t v0 = 0; v0 < v->nv; v0 += EINI_DIR_TURNED) {
      for (int64_t u0 = 0; u0 < nu; u0 += wide) {
        eini_dir_inner_block(v, isa, n, eini_min64(wide, nu - u0),
                             eini_min64(EINI_DIR_TURNED, v->nv - v0),
                             j->at[0] + (p + u0 + v0 * sv) * j->unit,
                             j->at[EINI_DIR_OPS] + (q + u0 * su + v0 * qv) * j->unit, y);
      }
    }
  }
}

static ein_status eini_dir_inner_run(const eini_cpu *cpu, const ein_contract *c,
                                     const ein_choice *choice, const ein_part *part,
                                     void *scratch) {
  eini_dir_inner v;
  const int64_t off[EINI_DIR_OPS + 1] = {0}, step[EINI_DIR_OPS + 1] = {0};
  (void)choice;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (!eini_dir_inner_init(&v, cpu, c)) return EIN_ERR_INTERNAL;
  eini_dir_inner_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0], n; b < part->batch[1]; b += n) {
    char y[8 * EINI_DIR_TURNED] = {0};
    n = eini_min64(v.at_once, part->batch[1] - b);
    eini_dir_at(&v.j, b);
    eini_dir_inner_sum(&v, cpu->isa, n, y);
    for (int64_t i = 0; i < n; i++) {
      eini_dir_at(&v.j, b + i);
      eini_dir_put(&v.j, 1, y + i * v.j.unit, off, step);
    }
  }
  return EIN_OK;
}

static int eini_dir_inner_plan(const eini_rated *cpu, const ein_contract *c, int width,
                               ein_choice *choice) {
  eini_dir_inner v;
  if (!eini_dir_inner_init(&v, &cpu->is, c)) return 0;
  const eini_dir_index *k = &v.j.x[EINI_DIR_K];
  const double batch = (double)v.j.x[EINI_DIR_B].size, all = batch * (double)k->size;
  const double nu = (double)k->extent[v.u], nv = (double)v.nv, rows = nv * (double)v.at_once;
  const double bytes = 2 * all * v.j.unit;
  double seconds = bytes / eini_cpu_bw(cpu, bytes);
  if (!v.same) seconds += all * (1.5 + 4 / (rows < 8 ? rows : 8)) / cpu->hz;
  seconds += all / (nu < EINI_DIR_TURN ? nu : EINI_DIR_TURN) /
             (nv < EINI_DIR_TURNED ? nv : EINI_DIR_TURNED) * 2e-8;
  choice->unit[0] = choice->unit[1] = choice->unit[2] = choice->grid[1] = choice->grid[2] = 1;
  choice->grid[0] = v.j.x[EINI_DIR_B].size;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  choice->scratch = eini_dir_inner_carve(&v, NULL);
  eini_cpu_name(choice, v.same ? "inner in rows" : "inner turned");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_inner_family = {
    "inner", eini_dir_inner_plan, eini_dir_inner_run};

// ================================================================================================
// >>small  small, skinny and outer products
// Tiles of the output: lanes are consecutive elements of one side's group (or of the batch, then
// both sides are vectors), rows belong to the other side, whose scalars are read in place. What is
// not plain or has no unit steps is fetched, a block of rows or the whole of a small operand.
// ================================================================================================

#define EINI_DIR_TILE_BYTES 16384  // of a block of the output
#define EINI_DIR_PACK_BYTES 262144 // of a fetched operand
#define EINI_DIR_L2_BYTES 131072   // of a block of an operand that is read once
#define EINI_DIR_K1 1024           // outer steps of k

typedef struct eini_dir_nest {
  eini_dir_job j;
  int a, b, ga, gb;            // first streams of scalars and vectors; groups of rows and lanes
  int soa;                     // lanes are the batch
  int packed, fetched;         // vectors, scalars
  int nt;                      // past the caches
  int far;                     // vectors come from memory
  int64_t run, orun;           // contiguous lanes of vectors and of the output
  int64_t m, n;                // rows and lanes of the whole
  int64_t mb, nb, pitch;       // blocks; lanes of a fetched row
  eini_dir_tile t;
  int64_t *pk1, *qk1, *prow, *orow;
  int64_t made[2];             // rows of the last two that stay from block to block
  char *pack, *rows, *tile;
} eini_dir_nest;

static int eini_dir_unit_last(const eini_dir_index *x, int stream) {
  return x->n == 0 || x->stride[stream][x->n - 1] == 1;
}

// May the batch be the lanes?
static int eini_dir_soa(const eini_dir_job *j) {
  const eini_dir_index *x = &j->x[EINI_DIR_B];
  const ein_contract *c = j->c;
  return x->n > 0 && j->planes == 1 && c->p.form == EIN_FORM_PLAIN &&
         c->q.form == EIN_FORM_PLAIN && eini_dir_unit_last(x, 0) &&
         eini_dir_unit_last(x, EINI_DIR_OPS) && x->extent[x->n - 1] >= j->kern->lanes / 2;
}

// Seconds of tiles: a sum takes four cycles a step, however few there are.
static double eini_dir_chain(const eini_rated *cpu, double rows, double vectors, double k,
                             double s) {
  const double tiles = ceil(rows / 8) * ceil(vectors / 3);
  const double least = tiles * k * 4 / cpu->hz;
  return s > least ? s : least;
}

// Seconds of reading so many bytes again, out of a set of data that is gone through between: none
// where `keep` bytes of a cache hold it. *moved, unless NULL: bytes that are read.
static double eini_dir_missed(const eini_rated *cpu, double keep, double set, double bytes,
                              double *moved) {
  if (set <= keep) return 0;
  if (moved != NULL) *moved += bytes;
  return bytes / eini_cpu_bw(cpu, set);
}

// Seconds of reading again what the first-level cache does not keep: columns of three vectors for
// every eight rows, and the rows for every such column. Short runs are read at half the rate.
static double eini_dir_again(const eini_rated *cpu, double m, double n, double k, double row,
                             double line) {
  const double columns = fmax(ceil(n * row / (3 * line)), 1), tiles = fmax(ceil(m / 8), 1);
  const double strip = k * (columns > 1 ? 3 * line : n * row), keep = 0.7 * (double)cpu->is.l1;
  const double slow = !eini_cpu_near(&cpu->is, strip) && columns > 1 ? 2.5 : 1;
  return eini_dir_missed(cpu, keep, strip, slow * (tiles - 1) * n * k * row, NULL) +
         eini_dir_missed(cpu, keep, m * k * row, (columns - 1) * m * k * row, NULL);
}

// Seconds beyond those of long runs of reading side b, which lies along memory beyond the second
// cache, in pieces of so many values: they are seen late, if at all, and end within lines, which
// the first cache does not keep until the next piece.
#define EINI_PIECE_SLOW 1.8
static double eini_dir_pieces(const eini_rated *cpu, const eini_dir_job *j, int b, int64_t piece) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const double all = (double)x->size * (double)j->x[EINI_DIR_K].size * j->unit;
  const double some = (double)piece * j->unit, lines = some + EINI_LINE_BYTES - j->unit;
  if (x->size <= piece || !eini_dir_unit_last(x, b)) return 0;
  if (eini_cpu_near(&cpu->is, all)) return 0;
  if ((double)j->x[EINI_DIR_K].size * lines <= 0.7 * (double)cpu->is.l1) return 0;
  return all * (EINI_PIECE_SLOW * lines / some - 1) / eini_cpu_bw(cpu, all);
}

// Seconds of reading scalars of side b one from a line at a time: neither rows nor k go on within
// the line, and what is read until they come back to it is more than the first-level cache.
static double eini_dir_scattered(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *r = &j->x[b ? EINI_DIR_N : EINI_DIR_M], *k = &j->x[EINI_DIR_K];
  const double all = (double)r->size * (double)k->size;
  double lines = all, inner = 1;
  for (int d = k->n - 1; d >= 0; inner *= (double)k->extent[d--]) {
    if (k->stride[b][d] == 1 && k->extent[d] > 1) lines = 8 * inner;
  }
  for (int d = r->n - 1; d >= 0; inner *= (double)r->extent[d--]) {
    if (r->stride[b][d] == 1 && inner < lines && r->extent[d] > 1) lines = inner;
    if (r->stride[b][d] == 1 && d == r->n - 1) return 0;
  }
  if (64 * lines <= 0.7 * (double)cpu->is.l1) return 0;
  int64_t step = eini_least_step(k->n, k->extent, k->stride[b], INT64_MAX);
  step = eini_least_step(r->n, r->extent, r->stride[b], step);
  if (eini_pages_apart(step, j->unit)) return all * EINI_PAGE_SECONDS;
  return 2 * 64 * all / eini_cpu_bw(cpu, 64 * lines);
}

// Seconds of one row of k of a product of operands.
static double eini_dir_product_cost(const eini_dir_job *j, int s0) {
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  double run = 1, lanes = (double)j->kern->lanes;
  for (int d = 0; d < k->n; d++) {
    for (int o = s0; o < s0 + (s0 ? j->c->q.nop : j->c->p.nop); o++) {
      if (k->stride[o][d] == 1 && (double)k->extent[d] > run) run = (double)k->extent[d];
    }
  }
  return (double)k->size / run * (2.7e-9 + 3e-9 * ceil(run / lanes));
}

static double eini_dir_out_run(const eini_dir_index *x) {
  double run = 1;
  for (int d = x->n - 1; d >= 0 && (double)x->stride[EINI_DIR_OUT][d] == run; d--)
    run *= (double)x->extent[d];
  return run;
}

// Seconds of turning to another place of an output beyond the second cache in short pieces of a
// row; rows of a tile fill a line together where they follow each other.
static double eini_dir_turns(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const eini_dir_index *r = &j->x[b ? EINI_DIR_M : EINI_DIR_N];
  const double all = (double)x->size * (double)r->size, run = eini_dir_out_run(x);
  double next = run > 1 ? 1 : eini_dir_out_run(r);
  if (next > 8) next = 8;
  if (run * j->unit >= EINI_TURN_PIECE || run == (double)x->size) return 0;
  if ((double)j->x[EINI_DIR_B].size * all * j->unit <= (double)cpu->is.l2 / 2) return 0;
  return all / (run * next) * EINI_TURN_CYCLES / cpu->hz;
}

// Seconds of arithmetic and of what is not in place, were lanes to be the group of side b.
static double eini_dir_nest_cost(const eini_rated *cpu, const eini_dir_job *j, int b) {
  const eini_dir_index *x = &j->x[b ? EINI_DIR_N : EINI_DIR_M];
  const ein_side *side = b ? &j->c->q : &j->c->p, *other = b ? &j->c->p : &j->c->q;
  const double m = (double)j->x[b ? EINI_DIR_M : EINI_DIR_N].size, n = (double)x->size;
  const double k = (double)j->x[EINI_DIR_K].size, batch = (double)j->x[EINI_DIR_B].size;
  const int64_t lanes = j->kern->lanes / j->planes;
  const int64_t vectors = (x->size + lanes - 1) / lanes;
  double s = 2 * m * k * (double)(vectors * lanes) * j->planes * j->planes;
  s = s / eini_dir_peak(cpu, j->c->type) + m * (double)(2 + vectors) * 1e-9;
  s = eini_dir_chain(cpu, m, (double)vectors, k, s);
  s += eini_dir_again(cpu, m, n, k, (double)j->unit, (double)(lanes * j->unit));
  s += eini_dir_pieces(cpu, j, EINI_DIR_OPS - b, 8) + eini_dir_pieces(cpu, j, b, 3 * lanes);
  const int64_t run = eini_dir_run(x, b, 1);  // short ones are packed
  if (side->form != EIN_FORM_PLAIN || (run < x->size && run < 2 * j->kern->lanes))
    s += side->form == EIN_FORM_PLAIN && eini_dir_turns_in(j, b, &j->x[EINI_DIR_K], x)
             ? ceil(n / 8) * ceil(k / 8) * 2e-8 : n * k * 1e-9;
  if (n * k * j->unit > EINI_DIR_PACK_BYTES && !eini_dir_unit_last(x, b)) s += 1e3;
  if (other->form == EIN_FORM_PRODUCT) s += m * eini_dir_product_cost(j, EINI_DIR_OPS - b);
  else if (other->form != EIN_FORM_PLAIN) s += m * k * 1e-9;
  else s += eini_dir_scattered(cpu, j, EINI_DIR_OPS - b);
  if (!eini_dir_unit_last(x, EINI_DIR_OUT)) s += m * n * 2e-9;
  s += eini_dir_turns(cpu, j, b);
  // Results leave run by run, each a call where something follows, or one by one.
  const int64_t leaves = eini_dir_run(x, EINI_DIR_OUT, 1);
  const double runs = m * ceil(n / (double)leaves);
  if (j->c->scaled) s += m * n * 0.3e-9 + runs * 1e-8;
  else if (!j->c->plain_out) s += m * n * 2e-9 + runs * 6e-8;
  else if (runs > m && leaves > 1) s += runs * 1e-8;
  return batch * s;
}

// Vectors that are loaded for one of lanes and a position of n, of operands whose rows have pages
// of their own, more than the first cache of pages holds.
static double eini_dir_soa_pages(const eini_dir_job *j) {
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  double loads = 0;
  if ((j->x[EINI_DIR_M].size + 1) * k->size < 64) return 0;
  for (int q = 0; q < 2; q++) {
    const eini_dir_index *r = &j->x[q ? EINI_DIR_N : EINI_DIR_M];
    const int stream = q ? EINI_DIR_OPS : 0;
    int64_t step = eini_least_step(k->n, k->extent, k->stride[stream], INT64_MAX);
    step = eini_least_step(r->n, r->extent, r->stride[stream], step);
    const double rows = (double)j->x[EINI_DIR_M].size;
    if (eini_pages_apart(step, j->unit)) loads += (double)k->size * (q ? ceil(rows / 8) : rows);
  }
  return loads;
}

// The same for lanes of the batch: both sides are loaded for every product.
static double eini_dir_soa_cost(const eini_rated *cpu, const eini_dir_job *j, int64_t nb) {
  const double m = (double)j->x[EINI_DIR_M].size, n = (double)j->x[EINI_DIR_N].size;
  const double k = (double)j->x[EINI_DIR_K].size, batch = (double)j->x[EINI_DIR_B].size;
  const double lanes = (double)j->kern->lanes, tiles = ceil(m / 8);
  double cycles = tiles * (20 + 3 * (double)j->x[EINI_DIR_K].n) + k * (1.2 * m + tiles);
  double s = n * (batch / lanes * cycles / cpu->hz + (batch / (double)nb + 1) * 6e-8);
  s += n * batch / lanes * eini_dir_soa_pages(j) * EINI_PAGE_SECONDS / 5;
  if (!eini_dir_unit_last(&j->x[EINI_DIR_B], EINI_DIR_OUT)) s += batch * m * n * 1e-9;
  if (!j->c->plain_out) s += batch * m * n * (j->c->scaled ? 0.3e-9 : 2e-9);
  return s;
}

enum { EINI_NEST_B, EINI_NEST_NT };  // words of ein_choice.state

// Elements that a row of lanes, or rows that follow each other, store together.
static double eini_dir_nest_piece(const eini_dir_index *lanes, const eini_dir_index *rows) {
  const double run = eini_dir_out_run(lanes);
  const int last = rows->n - 1;
  const int goes_on = last >= 0 && run == (double)lanes->size &&
                      (double)rows->stride[EINI_DIR_OUT][last] == run;
  return goes_on ? run * (double)rows->extent[last] : run;
}

// What rates decide of a product: its side of lanes, and whether it goes past the caches, which
// pieces shorter than lines do not.
static void eini_dir_nest_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_job j;
  eini_dir_init(&j, &cpu->is, c);
  s[EINI_NEST_B] = EINI_DIR_OPS;
  if (!eini_dir_soa(&j) &&
      eini_dir_nest_cost(cpu, &j, 0) < eini_dir_nest_cost(cpu, &j, EINI_DIR_OPS))
    s[EINI_NEST_B] = 0;
  const double rows = (double)j.x[EINI_DIR_M].size + (double)j.x[EINI_DIR_N].size;
  const double in = (double)j.x[EINI_DIR_B].size * (double)j.x[EINI_DIR_K].size * rows * j.unit;
  const int b = s[EINI_NEST_B] != 0, lane = b ? EINI_DIR_N : EINI_DIR_M;
  const double piece = eini_dir_nest_piece(&j.x[eini_dir_soa(&j) ? EINI_DIR_B : lane],
                                           &j.x[b ? EINI_DIR_M : EINI_DIR_N]);
  s[EINI_NEST_NT] = c->plain_out && piece * j.unit >= EINI_TURN_PIECE &&
                    eini_cpu_past_with(cpu, eini_dir_out_bytes(&j), in);
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_dir_nest_init(eini_dir_nest *v, const eini_cpu *cpu, const ein_contract *c,
                              const int64_t *decided, const ein_part *part) {
  eini_dir_job *j = &v->j;
  eini_dir_init(j, cpu, c);
  v->soa = eini_dir_soa(j);
  v->b = (int)decided[EINI_NEST_B];
  v->a = EINI_DIR_OPS - v->b;
  v->ga = v->b ? EINI_DIR_M : EINI_DIR_N;
  v->gb = v->soa ? EINI_DIR_B : v->b ? EINI_DIR_N : EINI_DIR_M;
  const eini_dir_index *x = &j->x[v->gb], *k = &j->x[EINI_DIR_K];
  const int64_t m = v->m = j->x[v->ga].size, n = v->n = x->size;
  eini_dir_sort(&j->x[EINI_DIR_K], eini_dir_largest(j, m > n && !v->soa ? v->a : v->b));
  if ((v->a ? &c->q : &c->p)->form == EIN_FORM_PRODUCT) {
    eini_dir_units_last(&j->x[EINI_DIR_K], v->a);
  }
  v->made[0] = v->made[1] = 0;
  v->t.k0 = k->n == 0 ? 1 : k->extent[k->n - 1];
  v->t.k1 = k->size == 0 ? 0 : k->size / v->t.k0;
  v->run = eini_dir_run(x, v->b, 1);
  v->orun = eini_dir_run(x, EINI_DIR_OUT, 1);
  if (v->soa) {
    v->run = eini_min64(v->run, eini_dir_run(x, v->a, 1));
    v->run = eini_min64(v->run, x->extent[x->n - 1]);
  }
  v->packed = (v->b ? &c->q : &c->p)->form != EIN_FORM_PLAIN;
  if (v->run < n && v->run < 2 * j->kern->lanes && !v->soa) v->packed = 1;
  v->fetched = (v->a ? &c->q : &c->p)->form != EIN_FORM_PLAIN;
  v->far = !v->packed && eini_cpu_far_side(cpu, v->b ? &c->q : &c->p,
                                           (double)j->x[EINI_DIR_B].size * (double)n *
                                               (double)k->size * j->unit);
  v->nt = decided[EINI_NEST_NT] != 0;
  if (part != NULL) {
    eini_dir_cut(j, EINI_DIR_M, part->m[0], part->m[1]);
    eini_dir_cut(j, EINI_DIR_N, part->n[0], part->n[1]);
    if (v->soa) eini_dir_cut(j, EINI_DIR_B, part->batch[0], part->batch[1]);
    if (x->size < n) {  // runs are shorter where the first axis is cut
      v->run = eini_min64(v->run, x->size);
      v->orun = eini_min64(v->orun, x->size);
    }
  }
  return v->t.k1 <= EINI_DIR_K1;
}

static int64_t eini_dir_clamp(int64_t x, int64_t step, int64_t least, int64_t most) {
  x = x / step * step;
  return x < least ? least : x > most ? most : x;
}

// Block sizes, and scratch.
static size_t eini_dir_nest_carve(eini_dir_nest *v, char *base) {
  eini_dir_job *j = &v->j;
  const int64_t k = eini_max64(j->x[EINI_DIR_K].size, 1), m = v->m, n = v->n;
  const int64_t lanes = j->kern->lanes, p = j->planes;
  size_t used = 0;
  eini_dir_carve_job(j, base, &used);
  if (v->soa) {
    const int64_t c = eini_axes_size(&j->c->n), h = c > 1 ? m : eini_min64(m, 8);
    const int64_t each = (h * k + k * c + h * c) * j->unit;
    v->nb = eini_dir_clamp(EINI_DIR_L2_BYTES / eini_max64(each, 1), lanes, 2 * lanes, 1024);
  } else if (v->packed) {
    v->nb = 24 * lanes;
  } else {
    v->nb = eini_dir_clamp(EINI_DIR_L2_BYTES / (k * j->unit), 3 * lanes, 3 * lanes, 1536);
  }
  v->nb = eini_min64(v->nb, eini_max64(n, 1));
  v->mb = eini_dir_clamp(EINI_DIR_TILE_BYTES / (v->nb * j->unit * p), 8, 8, 256);
  if (v->fetched) v->mb = eini_dir_clamp(2 * EINI_DIR_TILE_BYTES / (k * j->unit), 8, 8, v->mb);
  v->pitch = n;
  v->pk1 = (int64_t *)eini_carve(base, &used, v->t.k1 * 8, 1);
  v->qk1 = (int64_t *)eini_carve(base, &used, v->t.k1 * 8, 1);
  v->prow = (int64_t *)eini_carve(base, &used, p * v->mb * 8, 1);
  v->orow = (int64_t *)eini_carve(base, &used, p * v->mb * 8, 1);
  v->pack = (char *)eini_carve(base, &used, v->packed ? k * n * j->unit : 0, 1);
  v->rows = (char *)eini_carve(base, &used, v->fetched ? v->mb * k * j->unit : 0, 1);
  v->tile = (char *)eini_carve(base, &used, v->mb * v->nb * j->unit * p, 1);
  return used;
}

// The steps of both sides along k, in reals.
static void eini_dir_nest_k(eini_dir_nest *v) {
  const eini_dir_index *k = &v->j.x[EINI_DIR_K];
  const int64_t p = v->j.planes;
  const int last = k->n - 1;
  v->t.pk = v->fetched ? p : last < 0 ? 0 : k->stride[v->a][last] * p;
  v->t.qk = v->packed ? p * v->pitch : last < 0 ? 0 : k->stride[v->b][last] * p;
  for (int64_t i = 0; i < v->t.k1; i++) {
    v->pk1[i] = v->fetched ? i * v->t.k0 * p : eini_dir_offset(k, v->a, i * v->t.k0) * p;
    v->qk1[i] = v->packed ? i * v->t.k0 * v->t.qk : eini_dir_offset(k, v->b, i * v->t.k0) * p;
  }
  v->t.pk1 = v->pk1;
  v->t.qk1 = v->qk1;
}

// Store nb lanes from n0 on of each of mb rows from m0 on; `line` bytes from row to row.
static void eini_dir_nest_put(eini_dir_nest *v, int64_t m0, int64_t mb, int64_t n0, int64_t nb,
                              int64_t line) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->gb], *r = &j->x[v->ga];
  const int last = x->n - 1;
  const int whole = v->orun == x->size || n0 % v->orun + nb <= v->orun;
  if (v->nt && whole) {
    int64_t rows = r->n > 0 && r->stride[EINI_DIR_OUT][r->n - 1] == nb && line == nb * j->unit ?
                   r->extent[r->n - 1] : 1;
    for (int64_t i = 0, n; i < mb; i += n) {
      int64_t off = eini_dir_offset(r, EINI_DIR_OUT, m0 + i) + eini_dir_offset(x, EINI_DIR_OUT, n0);
      n = eini_min64(mb - i, rows - (m0 + i) % rows);
      eini_stream_row(j->isa, (size_t)(n * nb * j->unit), v->tile + i * line,
                      (char *)(uintptr_t)j->at[EINI_DIR_OUT] + off * j->unit);
    }
    return;
  }
  for (int64_t l = 0, run; l < nb; l += run) {
    int64_t off[EINI_DIR_OPS + 1], step[EINI_DIR_OPS + 1];
    run = nb - l;
    if (last > 0) run = eini_min64(run, x->extent[last] - (n0 + l) % x->extent[last]);
    for (int64_t i = 0; i < mb; i++) {
      for (int e = 0; e <= j->c->nextra; e++) {
        off[e] = eini_dir_offset(x, EINI_DIR_OUT + e, n0 + l);
        off[e] += eini_dir_offset(r, EINI_DIR_OUT + e, m0 + i);
        step[e] = last < 0 ? 0 : x->stride[EINI_DIR_OUT + e][last];
      }
      eini_dir_put(j, run, v->tile + i * line + l * j->unit, off, step);
    }
  }
}

// Vectors of the next tiles, of `left`: three, but not so that a single one is left.
static int64_t eini_dir_strip(int64_t left) {
  return left > 3 && left % 3 == 1 ? 2 : eini_min64(left, 3);
}

// The tiles of `rows` rows of reals and `n` lanes.
static void eini_dir_nest_tiles(const eini_dir_nest *v, eini_dir_tile t, int64_t rows, int64_t n) {
  const int ahead = v->far && rows > 0 ? (rows <= 16 ? 6 : 3) : 0;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t vectors = (n + kern->lanes - 1) / kern->lanes, line = kern->lanes * kern->size;
  const char *p = t.p;
  for (int64_t i = 0, l; i < vectors; i += l) {
    const int64_t left = vectors - i;
    l = v->soa ? 1 : eini_dir_strip(left);
    t.last = left > l ? kern->lanes : (int)(n - (vectors - 1) * kern->lanes);
    for (int64_t h = 0; ahead > 0 && left > ahead && h < t.k1; h++) {
      const char *q = t.q + t.qk1[h] * kern->size + ahead * line;
      for (int64_t k = 0; k < t.k0; k++, q += t.qk * kern->size) {
        for (int64_t w = 0; w < l * line; w += 64) EINI_FETCH(q + w);
      }
    }
    t.prow = v->prow;
    t.orow = v->orow;
    for (int64_t r = 0; r < rows; r += t.rows) {
      const int which = eini_dir_tile_rows(kern, rows - r, l, &t.rows);
      (v->soa ? kern->lane : kern->tile[l - 1])[which](&t);
      t.prow += t.rows;
      t.orow += t.rows;
    }
    t.q += l * line;
    t.out += l * line;
    if (v->soa) t.p = p += line;
  }
}

// A block with a single k: rows of products, as many at once as are evenly apart.
static void eini_dir_nest_outer(eini_dir_nest *v, const eini_dir_tile *t, int64_t mb, int64_t nb) {
  const int64_t z = v->j.kern->size, *o = v->orow;
  const char *p = t->p + t->pk1[0] * z, *q = t->q + t->qk1[0] * z;
  int64_t *none = v->j.off;
  for (int64_t i = 0; i < mb; i++) none[i] = 0;
  for (int64_t r = 0, n; r < mb; r += n) {
    const int64_t step = r + 1 < mb ? o[r + 1] - o[r] : 0;
    for (n = 1; r + n < mb && o[r + n] - o[r + n - 1] == step; n++) continue;
    eini_dir_mul d = {n, nb, step, q, p, none, v->prow + r, {0, 0}, 1, 0, t->out + o[r] * z};
    if (v->soa) {
      d.a = p;
      d.b = q;
      d.aoff = v->prow + r;
      d.boff = none;
      d.sb = 1;
    }
    d.ahead[0] = v->soa ? t->ahead : mb == 1 ? 1024 : 0;
    v->j.kern->mul(&d);
  }
}

// Offsets of mb rows from m0 on, less what is returned: those of a single axis stay for all blocks.
static int64_t eini_dir_nest_rows(eini_dir_nest *v, int stream, int64_t m0, int64_t mb,
                                  int64_t *table, int64_t *made) {
  const eini_dir_index *r = &v->j.x[v->ga];
  const int stay = r->n <= 1 && v->j.planes == 1;
  if (!stay || *made < mb) eini_dir_table(r, stream, stay ? 0 : m0, mb, table);
  if (!stay) return 0;
  *made = eini_max64(*made, mb);
  return eini_dir_offset(r, stream, m0) - eini_dir_offset(r, stream, 0);
}

// One block of the output.
static void eini_dir_nest_block(eini_dir_nest *v, int64_t m0, int64_t mb, int64_t n0, int64_t nb) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->gb], *r = &j->x[v->ga];
  const int64_t p = j->planes, k = j->x[EINI_DIR_K].size, line = p * nb * j->unit;
  const int direct = j->c->plain_out && p == 1 && !v->nt &&
                     (v->orun == x->size || n0 % v->orun + nb <= v->orun);
  eini_dir_tile t = v->t;
  t.q = v->packed ? v->pack + n0 * j->unit : j->at[v->b] + eini_dir_offset(x, v->b, n0) * j->unit;
  if (v->fetched) {
    t.p = v->rows;
    for (int64_t i = 0; i < mb; i++) v->prow[i] = i * k;
  } else {
    t.ahead = m0 + 8 < r->size ? 8 * eini_dir_step(r, v->a) * j->unit : 8 * 64;
    t.p = j->at[v->a] + (v->soa ? eini_dir_offset(x, v->a, n0) * j->unit : 0);
    t.p += eini_dir_nest_rows(v, v->a, m0, mb, v->prow, &v->made[0]) * j->unit;
  }
  for (int64_t i = mb - 1; p == 2 && i >= 0; i--) {
    v->prow[2 * i + 1] = 2 * v->prow[i] + 1;
    v->prow[2 * i] = 2 * v->prow[i];
  }
  if (direct) {
    t.out = (char *)(uintptr_t)j->at[EINI_DIR_OUT] + eini_dir_offset(x, EINI_DIR_OUT, n0) * j->unit;
    t.out += eini_dir_nest_rows(v, EINI_DIR_OUT, m0, mb, v->orow, &v->made[1]) * j->unit;
  } else {
    t.out = v->tile, v->made[1] = 0;
    for (int64_t i = 0; i < p * mb; i++) v->orow[i] = i * p * nb;
  }
  if (k == 1 && p == 1) {
    eini_dir_nest_outer(v, &t, mb, nb);
  } else {
    eini_dir_nest_tiles(v, t, p * mb, p * nb);
  }
  if (direct) return;
  for (int64_t i = 0; p == 2 && i < mb; i++) {
    char *row = v->tile + i * line;
    j->kern->join(nb, row, row + line / 2, eini_dir_conj(j, v->b), eini_dir_conj(j, v->a));
  }
  eini_dir_nest_put(v, m0, mb, n0, nb, line);
}

// How many lanes a block from n on has, before l1.
static int64_t eini_dir_nest_width(const eini_dir_nest *v, int64_t n, int64_t l1) {
  int64_t w = eini_min64(v->nb, l1 - n);
  if (!v->packed) w = eini_min64(w, v->run - n % v->run);
  if (v->orun >= v->j.kern->lanes) w = eini_min64(w, v->orun - n % v->orun);
  return w;
}

// All blocks at the current addresses, lanes from l0 to l1. Rows that are fetched are fetched once.
static void eini_dir_nest_blocks(eini_dir_nest *v, int64_t l0, int64_t l1) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *r = &j->x[v->ga], *k = &j->x[EINI_DIR_K];
  int64_t wide;
  for (int64_t n0 = l0; n0 < l1; n0 += wide) {
    wide = v->fetched ? l1 - n0 : eini_dir_nest_width(v, n0, l1);
    for (int64_t m = 0, mb; m < r->size; m += mb) {
      mb = eini_min64(v->mb, r->size - m);
      if (v->fetched && k->size > 0) {
        eini_dir_fetch(j, v->a, r, m, mb, k, 0, k->size, k->size, v->rows);
      }
      for (int64_t n = n0, w; n < n0 + wide; n += w) {
        w = eini_dir_nest_width(v, n, l1);
        eini_dir_nest_block(v, m, mb, n, w);
      }
    }
  }
}

static void eini_dir_nest_soa(eini_dir_nest *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_B], *c = &j->x[EINI_DIR_N];
  int64_t nb;
  for (int s = 0; s < EINI_DIR_STREAMS; s++) j->at[s] = j->base[s];
  for (int64_t b = 0; b < x->size; b += nb) {
    nb = eini_min64(eini_min64(v->nb, x->size - b), v->run - b % v->run);
    for (int64_t n = 0; n < c->size; n++) {
      for (int s = 0; s < EINI_DIR_STREAMS; s++) {
        if (!eini_dir_used(j, s)) continue;
        j->at[s] = j->base[s] + eini_dir_offset(c, s, n) * j->esize[s];
      }
      eini_dir_nest_blocks(v, b, b + nb);
    }
  }
}

static ein_status eini_dir_nest_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  eini_dir_nest v;
  eini_dir_job *j = &v.j;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_dir_nest_init(&v, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_dir_nest_carve(&v, (char *)scratch);
  eini_dir_nest_k(&v);
  if (v.soa) {
    eini_dir_nest_soa(&v);
  } else {
    const eini_dir_index *x = &j->x[v.gb], *k = &j->x[EINI_DIR_K];
    const char *packed = NULL;
    for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
      eini_dir_at(j, b);
      const int nop = (v.b ? &c->q : &c->p)->nop;
      const char *at = nop > 0 ? j->at[v.b] : "";  // no operand: the same for every batch
      if (v.packed && k->size > 0 && (packed != at || nop > 1)) {
        eini_dir_fetch(j, v.b, k, 0, k->size, x, 0, x->size, v.pitch, v.pack);
        packed = at;
      }
      eini_dir_nest_blocks(&v, 0, x->size);
    }
  }
  if (v.nt) eini_stream_end();
  return EIN_OK;
}

// Bytes to and from the second cache. Blocks of lanes are read once if they fit it, else for each
// tile of rows; the rows for each such block, unless all of them fit. Blocks are carved.
static double eini_dir_nest_traffic(const eini_rated *cpu, const eini_dir_nest *v, double in,
                                    double out) {
  const eini_dir_job *j = &v->j;
  const double batch = (double)j->x[EINI_DIR_B].size, blocks = (double)v->n / (double)v->nb;
  const double line = (double)eini_max64(j->x[EINI_DIR_K].size, 1) * j->unit;
  const double rows = (double)v->m * line, all = (double)v->n * line;
  const double wide = (double)v->nb * line, keep = 0.5 * (double)cpu->is.l2;
  double moved = in + out;
  if (v->soa) return moved;  // blocks hold all of what they need
  (void)eini_dir_missed(cpu, keep, wide, batch * (ceil((double)v->m / 8) - 1) * all, &moved);
  (void)eini_dir_missed(cpu, keep, rows, batch * (ceil(blocks) - 1) * rows, &moved);
  return moved;
}

// Seconds to find the pieces of three vectors of lanes that lie along rows, where these are as far
// apart as pages and more than there are addresses at hand: each is looked up.
static double eini_dir_nest_walks(const eini_dir_nest *v) {
  const eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const double pieces = ceil((double)v->n / (3 * j->kern->lanes)) * ceil((double)v->m / 8);
  if (v->soa || v->packed || v->fetched || k->size < EINI_PAGES_MANY) return 0;
  const int64_t step = eini_least_step(k->n, k->extent, k->stride[v->b], INT64_MAX);
  if (!eini_pages_apart(step, j->unit)) return 0;
  return EINI_WALK_SECONDS * (double)j->x[EINI_DIR_B].size * (double)k->size * pieces;
}

static int eini_dir_nest_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  eini_dir_nest v;
  eini_dir_job *j = &v.j;
  if (!eini_dir_able(&cpu->is, c)) return 0;
  eini_dir_nest_decide(cpu, c, choice->state);
  if (!eini_dir_nest_init(&v, &cpu->is, c, choice->state, NULL)) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, m = (double)j->x[EINI_DIR_M].size;
  const double n = (double)j->x[EINI_DIR_N].size, k = (double)j->x[EINI_DIR_K].size;
  if (v.packed && k * (double)j->x[v.gb].size * j->unit > EINI_DIR_PACK_BYTES) return 0;
  if (v.fetched && 8 * k * j->unit > EINI_DIR_PACK_BYTES) return 0;
  choice->scratch = eini_dir_nest_carve(&v, NULL);
  double seconds = v.soa ? eini_dir_soa_cost(cpu, j, v.nb) : eini_dir_nest_cost(cpu, j, v.b);
  const double in = batch * (m * k + n * k) * j->unit, out = batch * m * n * j->unit;
  const double move = eini_cpu_move(cpu, in, out, v.nt);
  choice->traffic = eini_dir_nest_traffic(cpu, &v, in, out);
  // What comes from memory is asked for in bursts, which arithmetic waits for.
  const int plain = c->p.form == EIN_FORM_PLAIN && c->q.form == EIN_FORM_PLAIN;
  const int large = plain && !v.soa &&
                    eini_cpu_far(&cpu->is, fmax(in + out, c->p.whole + c->q.whole));
  seconds = eini_cpu_beside(seconds, move, v.far || large ? 1 : EINI_CPU_BESIDE);
  seconds += (v.soa ? 0 : batch * 3e-8) + 1e-7 + eini_dir_nest_walks(&v);
  eini_dir_init(j, &cpu->is, c);
  for (int g = 0; g < 3; g++) {
    const int64_t step = g == v.gb || g == EINI_DIR_B ? 64 : 16;
    eini_dir_grid(&j->x[g], step, &choice->grid[g], &choice->unit[g]);
  }
  if (!v.soa) choice->grid[0] = j->x[EINI_DIR_B].size, choice->unit[0] = 1;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  eini_cpu_name(choice, v.soa ? "small lanes of batch" : v.b ? "small lanes of n"
                                                             : "small lanes of m");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_small = {
    "small", eini_dir_nest_plan, eini_dir_nest_run};

// ================================================================================================
// >>elements  small products of very many elements
// Products of two factors along a long index e with a small operand q without it, such as
// out[x,e,i] = sum over r, j of f[x,r,e] * g[e,j] * q[r,i,j]. Lanes are consecutive e: blocks of
// the factors are turned so that e comes last. Then either the factors are multiplied first, with
// ================================================================================================

// sums over what q has no part in, or one factor is multiplied with q first, whichever is less
// work; what is between stays in the caches.

#define EINI_ELEM_BYTES 24576    // of the blocks, where they are narrow
#define EINI_ELEM_MOST 262144    // of the blocks, where they are wide
#define EINI_ELEM_TABLE 4096     // entries of a table
#define EINI_ELEM_FUSED 64       // e from which planners count on this

// Streams of the axes but e: factors in memory are 0 and 1, blocks of them 2 and 3.
enum {
  EINI_ELEM_BLOCK = 2, EINI_ELEM_SMALL = 4, EINI_ELEM_PACKED, EINI_ELEM_BETWEEN, EINI_ELEM_SUMS,
  EINI_ELEM_OUT
};

// Some axes as one index, with its offsets in some streams.
typedef struct eini_elem_list {
  unsigned axes;
  int ns, stream[3];
  int64_t n, *off[3];
} eini_elem_list;

// Between memory and a block: axis t has unit steps in memory, the others are a list.
typedef struct eini_elem_move {
  int t;                       // -1: none
  int64_t nt, step, pitch;     // steps of e in memory and of t in the block
  eini_elem_list rest;
} eini_elem_move;

// What the next block reads and writes is asked for while the present one is worked on, for the
// first-level cache unless it would take more than half of it.
typedef struct eini_elem_ahead {
  int64_t lines[3], share;     // of a row of every move; of one call
  int64_t e0, row, line;
  int o, second;
} eini_elem_ahead;

typedef struct eini_dir_elem {
  eini_dir_job j;
  int s0, group;               // stream of the first factor; the group of its rows
  int first, u;                // factors first; the factor that varies along rows of products
  int nt;                      // past the caches
  int64_t l1;                  // bytes of the first-level cache
  eini_dir_index all;
  unsigned rows, k, small, in[2];  // sets of axes
  int64_t e, step[3];          // steps of both factors and of the output
  int64_t wide;                // e of a block
  eini_elem_list sum_loop, sum_row, sum_k, mul_loop, mul_row, mul_k;
  eini_elem_move move[3];
  eini_elem_ahead ahead;
  int64_t columns[EINI_ELEM_OUT];
  char *block[EINI_ELEM_OUT], *stage;
} eini_dir_elem;

static int64_t eini_elem_size(const eini_dir_elem *v, unsigned axes) {
  int64_t n = 1;
  for (int d = 0; d < v->all.n; d++) n *= axes >> d & 1 ? v->all.extent[d] : 1;
  return n;
}

// The axes of both sides but e, those of extent 1 left out. 0: too many.
static int eini_elem_axes(eini_dir_elem *v) {
  eini_dir_index *all = &v->all;
  const int order[3] = {v->group, EINI_DIR_M + EINI_DIR_N - v->group, EINI_DIR_K};
  const int from[4] = {v->s0, v->s0 + 1, EINI_DIR_OPS - v->s0, EINI_DIR_OUT};
  const int to[4] = {0, 1, EINI_ELEM_SMALL, EINI_ELEM_OUT};
  memset(all, 0, sizeof *all);
  for (int g = 0; g < 3; g++) {
    const eini_dir_index *x = &v->j.x[order[g]];
    for (int d = g == 0; d < x->n; d++) {
      if (x->extent[d] == 1) continue;
      if (all->n == EINI_DIR_RANK) return 0;
      const int at = all->n++;
      const unsigned bit = 1U << at;
      all->extent[at] = x->extent[d];
      for (int s = 0; s < 4; s++) all->stride[to[s]][at] = x->stride[from[s]][d];
      if (g == 0) v->rows |= bit;
      if (g == 2) v->k |= bit;
      if (all->stride[EINI_ELEM_SMALL][at] != 0) v->small |= bit;
      if (all->stride[0][at] != 0) v->in[0] |= bit;
      if (all->stride[1][at] != 0) v->in[1] |= bit;
    }
  }
  return 1;
}

static void eini_elem_set(const eini_dir_elem *v, eini_elem_list *l, unsigned axes, int ns, int s0,
                          int s1, int s2) {
  l->axes = axes, l->ns = ns, l->n = eini_elem_size(v, axes);
  l->stream[0] = s0, l->stream[1] = s1, l->stream[2] = s2;
}

// Steps of a block's axes: those of a are the fastest, then those of b, then c.
static void eini_elem_lay(eini_dir_elem *v, int stream, unsigned a, unsigned b, unsigned c,
                          int64_t step) {
  const unsigned set[3] = {a, b, c};
  int64_t n = step;
  for (int d = 0; d < v->all.n; d++) v->all.stride[stream][d] = 0;
  for (int i = 0; i < 3; i++) {
    for (int d = v->all.n - 1; d >= 0; d--) {
      if (!(set[i] >> d & 1)) continue;
      v->all.stride[stream][d] = n;
      n *= v->all.extent[d];
    }
  }
  v->columns[stream] = n / step;
}

// Both steps: sums of products with the small operand, and sums of products of vectors.
static void eini_elem_order(eini_dir_elem *v, int first, int u) {
  const unsigned every = (1U << v->all.n) - 1, out = every & ~v->k, other = v->in[1 - u];
  const unsigned k = v->k & v->small & (first ? every : v->in[u] & ~other);
  const unsigned loop = first ? v->rows : v->in[u] & ~k;
  const unsigned row = first ? out & ~v->rows : (every & v->small & ~loop & ~k) | (out & ~v->rows);
  const unsigned between = first ? loop | k : loop | row, vary = first ? between : out;
  const int from = first ? EINI_ELEM_BETWEEN : EINI_ELEM_BLOCK + u;
  const int to = first ? EINI_ELEM_SUMS : EINI_ELEM_BETWEEN;
  const int p = first ? EINI_ELEM_BLOCK + u : EINI_ELEM_BETWEEN, q = EINI_ELEM_BLOCK + 1 - u;
  const int made = first ? EINI_ELEM_BETWEEN : EINI_ELEM_SUMS;
  v->first = first, v->u = u;
  eini_elem_set(v, &v->sum_loop, loop, 3, EINI_ELEM_PACKED, from, to);
  eini_elem_set(v, &v->sum_row, row, 2, EINI_ELEM_PACKED, to, 0);
  eini_elem_set(v, &v->sum_k, k, 0, 0, 0, 0);
  eini_elem_set(v, &v->mul_loop, vary & other, 3, p, q, made);
  eini_elem_set(v, &v->mul_row, vary & ~other, 2, p, made, 0);
  eini_elem_set(v, &v->mul_k, v->k & ~k, 2, p, q, 0);
  eini_elem_lay(v, EINI_ELEM_BLOCK, v->in[0] & k, v->in[0] & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_BLOCK + 1, v->in[1] & k, v->in[1] & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_PACKED, v->small & k, v->small & ~k, 0, 1);
  eini_elem_lay(v, EINI_ELEM_BETWEEN, between & k, between & ~k, 0, v->wide);
  eini_elem_lay(v, EINI_ELEM_SUMS, out, 0, 0, v->wide);
}

// Cycles of a vector's multiply-add.
static double eini_elem_fma(const eini_rated *cpu, const eini_dir_elem *v) {
  return 2 * v->j.kern->lanes * cpu->hz / eini_dir_peak(cpu, v->j.c->type);
}

// Cycles of both steps for a vector of e.
static double eini_elem_cycles(const eini_dir_elem *v, double fma) {
  const double loop = (double)v->sum_loop.n, row = (double)v->sum_row.n, k = (double)v->sum_k.n;
  const double ml = (double)v->mul_loop.n, mr = (double)v->mul_row.n, mk = (double)v->mul_k.n;
  return loop * (1.1 * fma * row * k + 7 * ceil(row / 8)) +
         ml * (2.2 * fma * mr * mk + 5 * ceil(mr / 8)) * (1 + 2 / mk);
}

// The order with the least work.
static int eini_elem_least(eini_dir_elem *v, double fma) {
  double least = 0;
  int best = 0;
  for (int way = 0; way < 4; way++) {
    eini_elem_order(v, way < 2, way & 1);
    const double cycles = eini_elem_cycles(v, fma);
    if (way >= 2 && v->sum_k.n == 1) continue;
    if (way > 0 && cycles >= least) continue;
    least = cycles, best = way;
  }
  return best;
}

// e: the longest index of rows that both factors have. It goes first, for parts to be cut there.
static int eini_elem_longest(eini_dir_elem *v) {
  eini_dir_index *x = &v->j.x[v->group];
  int e = -1;
  for (int d = 0; d < x->n; d++) {
    if (x->stride[v->s0][d] == 0 || x->stride[v->s0 + 1][d] == 0) continue;
    if (e < 0 || x->extent[d] > x->extent[e]) e = d;
  }
  if (e < 0) return 0;
  for (int s = -1; s < EINI_DIR_STREAMS; s++) {
    int64_t *of = s < 0 ? x->extent : x->stride[s], t = of[e];
    for (int d = e; d > 0; d--) of[d] = of[d - 1];
    of[0] = t;
  }
  return 1;
}

// Words of ein_choice.state: the order (factors first for less than 2, and their factor u), and
// whether the output goes past the caches.
enum { EINI_ELEM_WAY, EINI_ELEM_NT };

// Sides, axes and the long index. 0: not of this kind
static int eini_elem_sides(eini_dir_elem *v, const eini_cpu *cpu, const ein_contract *c) {
  eini_dir_job *j = &v->j;
  memset(v, 0, sizeof *v);
  if (!c->plain_out || c->unsplit || eini_dir_planes(c->type) == 2) return 0;
  v->s0 = c->p.form == EIN_FORM_PRODUCT ? 0 : EINI_DIR_OPS;
  const ein_side *p = v->s0 ? &c->q : &c->p, *q = v->s0 ? &c->p : &c->q;
  if (p->form != EIN_FORM_PRODUCT || p->nop != 2 || q->form != EIN_FORM_PLAIN) return 0;
  eini_dir_init(j, cpu, c);
  v->l1 = cpu->l1;
  v->group = v->s0 ? EINI_DIR_N : EINI_DIR_M;
  for (int g = 0; g < 4; g++) {
    if (j->x[g].size == 0) return 0;
  }
  if (!eini_elem_longest(v) || !eini_elem_axes(v)) return 0;
  v->e = j->x[v->group].extent[0];
  for (int s = 0; s < 3; s++) {
    v->step[s] = j->x[v->group].stride[s < 2 ? v->s0 + s : EINI_DIR_OUT][0];
  }
  return 1;
}

// The part of the long index.
static void eini_elem_cut(eini_dir_elem *v, const ein_part *part) {
  if (part == NULL) return;
  eini_dir_cut(&v->j, v->group, (v->s0 ? part->n : part->m)[0], (v->s0 ? part->n : part->m)[1]);
  v->e = v->j.x[v->group].extent[0];
}

// What rates decide. 0: not of this kind
static int eini_elem_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_elem v;
  if (!eini_elem_sides(&v, &cpu->is, c)) return 0;
  v.wide = v.j.kern->lanes;
  s[EINI_ELEM_WAY] = eini_elem_least(&v, eini_elem_fma(cpu, &v));
  s[EINI_ELEM_NT] = eini_cpu_past(cpu, eini_dir_out_bytes(&v.j));
  return 1;
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_elem_init(eini_dir_elem *v, const eini_cpu *cpu, const ein_contract *c,
                          const int64_t *decided, const ein_part *part) {
  if (!eini_elem_sides(v, cpu, c)) return 0;
  const eini_dir_job *j = &v->j;
  const int64_t lanes = j->kern->lanes;
  const int way = (int)decided[EINI_ELEM_WAY];
  int64_t columns = 0;
  v->nt = decided[EINI_ELEM_NT] != 0;
  v->wide = lanes;
  eini_elem_order(v, way < 2, way & 1);
  for (int s = EINI_ELEM_BLOCK; s < EINI_ELEM_OUT; s++) {
    if (v->columns[s] > EINI_ELEM_TABLE) return 0;
    columns += s == EINI_ELEM_PACKED || s == EINI_ELEM_SMALL ? 0 : v->columns[s];
  }
  v->wide = EINI_ELEM_BYTES / (columns * j->unit * 3 * lanes) * 3 * lanes;
  v->wide = eini_min64(eini_max64(v->wide, 3 * lanes), 48 * lanes);
  if (columns * v->wide * j->unit > EINI_ELEM_MOST || v->e < lanes) return 0;
  eini_elem_order(v, v->first, v->u);
  eini_elem_cut(v, part);
  return 1;
}

static void eini_elem_fill(const eini_dir_elem *v, eini_elem_list *l, char *base, size_t *used) {
  eini_dir_index x;
  x.n = 0, x.size = l->n;
  for (int s = 0; s < l->ns; s++) {
    l->off[s] = (int64_t *)eini_carve(base, used, l->n * 8, 1);
  }
  if (base == NULL) return;
  for (int d = 0; d < v->all.n; d++) {
    if (!(l->axes >> d & 1)) continue;
    x.extent[x.n] = v->all.extent[d];
    for (int s = 0; s < l->ns; s++) x.stride[s][x.n] = v->all.stride[l->stream[s]][d];
    x.n++;
  }
  for (int s = 0; s < l->ns; s++) eini_dir_table(&x, s, 0, l->n, l->off[s]);
}

static void eini_elem_tables(eini_dir_elem *v, char *base, size_t *used) {
  eini_elem_fill(v, &v->sum_loop, base, used);
  eini_elem_fill(v, &v->sum_row, base, used);
  eini_elem_fill(v, &v->mul_loop, base, used);
  eini_elem_fill(v, &v->mul_row, base, used);
  eini_elem_fill(v, &v->mul_k, base, used);
}

// What is moved between memory and block: factors 0 and 1, and the output as 2.
static void eini_elem_moves(eini_dir_elem *v, int n, char *base, size_t *used) {
  for (int o = 0; o < n; o++) {
    eini_elem_move *m = &v->move[o];
    const int memory = o < 2 ? o : EINI_ELEM_OUT, block = EINI_ELEM_BLOCK + o;
    const int to = o < 2 ? block : EINI_ELEM_SUMS;
    const unsigned axes = o < 2 ? v->in[o] : ((1U << v->all.n) - 1) & ~v->k;
    m->t = -1, m->nt = 1, m->pitch = 0, m->step = v->step[o];
    for (int d = 0; d < v->all.n && m->step != 1; d++) {
      if ((axes >> d & 1) && v->all.stride[memory][d] == 1) m->t = d;
    }
    if (m->t >= 0) m->nt = v->all.extent[m->t], m->pitch = v->all.stride[to][m->t];
    eini_elem_set(v, &m->rest, m->t < 0 ? axes : axes & ~(1U << m->t), 2, memory, to, 0);
    eini_elem_fill(v, &m->rest, base, used);
  }
}

static size_t eini_elem_carve(eini_dir_elem *v, char *base) {
  size_t used = 0;
  for (int s = EINI_ELEM_BLOCK; s < EINI_ELEM_OUT; s++) {
    const int64_t wide = s == EINI_ELEM_PACKED ? 1 : v->wide;
    v->block[s] = (char *)eini_carve(base, &used, v->columns[s] * wide, v->j.unit);
  }
  eini_elem_tables(v, base, &used);
  eini_elem_moves(v, 3, base, &used);
  v->stage = (char *)eini_carve(base, &used, v->nt ? v->move[2].nt * v->wide : 0, v->j.unit);
  return used;
}

// The n elements from e0 on will be next; they are asked for in so many calls.
static void eini_elem_ahead_start(eini_dir_elem *v, int64_t e0, int64_t n, int64_t calls) {
  eini_elem_ahead *a = &v->ahead;
  int64_t lines = 0;
  for (int o = 0; o < 3; o++) {
    const eini_elem_move *m = &v->move[o];
    const int dense = m->step > 0 && m->step <= 2 * m->nt && !(o == 2 && v->nt);
    a->lines[o] = dense && n > 0 ? (n * m->step * v->j.unit + 63) / 64 : 0;
    lines += a->lines[o] * m->rest.n;
  }
  a->share = (lines + calls - 1) / calls;
  a->second = 64 * lines > v->l1 / 2;
  a->e0 = e0, a->o = 0, a->row = a->line = 0;
}

static void eini_elem_ahead_some(eini_dir_elem *v) {
  eini_elem_ahead *a = &v->ahead;
  for (int64_t left = a->share; left > 0 && a->o < 3;) {
    const eini_elem_move *m = &v->move[a->o];
    const int64_t n = a->row < m->rest.n ? eini_min64(left, a->lines[a->o] - a->line) : 0;
    if (n == 0) {
      a->row++, a->line = 0;
      if (a->row >= m->rest.n || a->lines[a->o] == 0) a->o++, a->row = 0;
      continue;
    }
    const char *p = v->j.at[a->o < 2 ? v->s0 + a->o : EINI_DIR_OUT] + 64 * a->line;
    p += (m->rest.off[0][a->row] + a->e0 * m->step) * v->j.unit;
    for (int64_t l = 0; l < n && !a->second; l++) EINI_FETCH(p + 64 * l);
    for (int64_t l = 0; l < n && a->second; l++) EINI_FETCH2(p + 64 * l);
    a->line += n, left -= n;
  }
}

// Elements e0 .. e0 + n of a factor into its block; lanes up to a whole vector are 0.
static void eini_elem_take(eini_dir_elem *v, int o, int64_t e0, int64_t n) {
  const eini_elem_move *m = &v->move[o];
  const int64_t unit = v->j.unit;
  char *const block = v->block[EINI_ELEM_BLOCK + o];
  if (n % v->j.kern->lanes != 0) {
    memset(block, 0, (size_t)(v->columns[EINI_ELEM_BLOCK + o] * v->wide * unit));
  }
  for (int64_t r = 0; r < m->rest.n; r++) {
    const char *src = v->j.at[v->s0 + o] + (m->rest.off[0][r] + e0 * m->step) * unit;
    char *dst = block + m->rest.off[1][r] * unit;
    if (m->step == 1) memcpy(dst, src, (size_t)(n * unit));
    else eini_turn(v->j.isa, (int)unit, m->nt, n, src, m->step * unit, dst, m->pitch * unit);
  }
}

static void eini_elem_put(eini_dir_elem *v, int64_t e0, int64_t n) {
  const eini_elem_move *m = &v->move[2];
  const int64_t unit = v->j.unit;
  const int stream = v->nt && (m->step == 1 || m->step == m->nt);
  for (int64_t r = 0; r < m->rest.n; r++) {
    const char *src = v->block[EINI_ELEM_SUMS] + m->rest.off[1][r] * unit;
    char *dst = (char *)(uintptr_t)v->j.at[EINI_DIR_OUT], *to;
    dst += (m->rest.off[0][r] + e0 * m->step) * unit;
    to = stream ? v->stage : dst;
    if (m->step != 1) {
      eini_turn(v->j.isa, (int)unit, n, m->nt, src, m->pitch * unit, to, m->step * unit);
      src = to;
    }
    if (stream) eini_stream_row(v->j.isa, (size_t)(n * m->nt * unit), src, dst);
    else if (m->step == 1) memcpy(dst, src, (size_t)(n * unit));
  }
}

// Sums of products with the small operand.
static void eini_elem_sums(eini_dir_elem *v, int64_t n) {
  const eini_dir_kern *kern = v->j.kern;
  const int from = v->sum_loop.stream[1], to = v->sum_loop.stream[2];
  const int64_t zero = 0, unit = v->j.unit, line = kern->lanes * unit;
  eini_dir_tile t;
  memset(&t, 0, sizeof t);
  t.k1 = 1, t.k0 = v->sum_k.n, t.pk = 1, t.qk = v->wide, t.pk1 = t.qk1 = &zero;
  t.last = kern->lanes;
  for (int64_t b = 0; b < v->sum_loop.n; b++) {
    t.p = v->block[EINI_ELEM_PACKED] + v->sum_loop.off[0][b] * unit;
    t.q = v->block[from] + v->sum_loop.off[1][b] * unit;
    t.out = v->block[to] + v->sum_loop.off[2][b] * unit;
    for (int64_t i = 0, l; i < n; i += l * kern->lanes, t.q += l * line, t.out += l * line) {
      l = eini_min64((n - i) / kern->lanes, 3);
      for (int64_t r = 0; r < v->sum_row.n; r += t.rows) {
        const int which = eini_dir_tile_rows(v->j.kern, v->sum_row.n - r, l, &t.rows);
        t.prow = v->sum_row.off[0] + r;
        t.orow = v->sum_row.off[1] + r;
        kern->tile[l - 1][which](&t);
        eini_elem_ahead_some(v);
      }
    }
  }
}

// Sums of products of vectors.
static void eini_elem_products(eini_dir_elem *v, int64_t n) {
  const int64_t unit = v->j.unit;
  const eini_elem_list *l = &v->mul_loop;
  eini_dir_pairs t;
  t.n = n, t.k = v->mul_k.n, t.pk = v->mul_k.off[0], t.qk = v->mul_k.off[1];
  for (int64_t b = 0; b < l->n; b++) {
    t.p = v->block[l->stream[0]] + l->off[0][b] * unit;
    t.q = v->block[l->stream[1]] + l->off[1][b] * unit;
    t.out = v->block[l->stream[2]] + l->off[2][b] * unit;
    for (int64_t r = 0, most; r < v->mul_row.n; r += most) {
      const int which = eini_dir_tile_rows(v->j.kern, v->mul_row.n - r, 3, &most);
      t.prow = v->mul_row.off[0] + r;
      t.orow = v->mul_row.off[1] + r;
      v->j.kern->pairs[which](&t);
      eini_elem_ahead_some(v);
    }
  }
}

static void eini_elem_batch(eini_dir_elem *v) {
  const eini_dir_job *j = &v->j;
  const int lanes = j->kern->lanes;
  const int64_t rows = v->sum_loop.n * ((v->sum_row.n + 7) / 8);
  const int64_t calls = rows * ((v->wide / lanes + 2) / 3) +
                        v->mul_loop.n * ((v->mul_row.n + 7) / 8);
  for (int64_t e0 = 0, n; e0 < v->e; e0 += n) {
    n = eini_min64(v->wide, v->e - e0);
    const int64_t whole = eini_up(n, lanes);
    eini_elem_take(v, 0, e0, n);
    eini_elem_take(v, 1, e0, n);
    eini_elem_ahead_start(v, e0 + n, eini_min64(v->wide, v->e - e0 - n), calls);
    if (v->first) eini_elem_products(v, whole);
    eini_elem_sums(v, whole);
    if (!v->first) eini_elem_products(v, whole);
    eini_elem_put(v, e0, n);
  }
}

// The small operand with its steps along the sums 1.
static void eini_elem_pack(eini_dir_elem *v) {
  const char *src = v->j.at[EINI_DIR_OPS - v->s0];
  char *dst = v->block[EINI_ELEM_PACKED];
  const int size = v->j.unit;
  int64_t at[EINI_DIR_RANK] = {0}, from = 0, to = 0;
  for (int d = 0; d >= 0;) {
    memcpy(dst + to * size, src + from * size, (size_t)size);
    for (d = v->all.n - 1; d >= 0; d--) {
      if (!(v->small >> d & 1)) continue;
      const int64_t s = v->all.stride[EINI_ELEM_SMALL][d], p = v->all.stride[EINI_ELEM_PACKED][d];
      from += s, to += p;
      if (++at[d] < v->all.extent[d]) break;
      from -= s * at[d], to -= p * at[d], at[d] = 0;
    }
  }
}

static ein_status eini_elem_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_elem v;
  const char *packed = NULL;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_elem_init(&v, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_elem_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v.j, b);
    if (packed != v.j.at[EINI_DIR_OPS - v.s0]) eini_elem_pack(&v);
    packed = v.j.at[EINI_DIR_OPS - v.s0];
    eini_elem_batch(&v);
  }
  if (v.nt) eini_stream_end();
  return EIN_OK;
}

// Cycles of moving a vector of e of a factor or of the output.
static double eini_elem_moved(const eini_dir_elem *v, int o) {
  const eini_elem_move *m = &v->move[o];
  const double lanes = (double)v->j.kern->lanes, rest = (double)m->rest.n, nt = (double)m->nt;
  if (m->step == 1) return rest * (2 + 15 * lanes / (double)v->wide);
  if (m->nt == 1) return rest * 2 * lanes;
  return rest * (nt < lanes ? 3 * lanes + 2 * nt : ceil(nt / lanes) * 3 * lanes) +
         rest * 10 * lanes / (double)v->wide;
}

// Parts: of the batch and of e.
static void eini_elem_grid(const eini_dir_elem *v, ein_choice *choice) {
  const int at = v->s0 ? 2 : 1;
  eini_dir_grid(&v->j.x[v->group], 16 * v->j.kern->lanes * eini_elem_size(v, v->rows),
                &choice->grid[at], &choice->unit[at]);
  choice->grid[3 - at] = choice->unit[3 - at] = 1;
  choice->grid[0] = v->j.x[EINI_DIR_B].size, choice->unit[0] = 1;
}

static int eini_elem_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  eini_dir_elem v;
  eini_dir_job *j = &v.j;
  int64_t *s = choice->state;
  if (!eini_dir_able_elements(&cpu->is, c) || !eini_elem_decide(cpu, c, s)) return 0;
  if (!eini_elem_init(&v, &cpu->is, c, s, NULL)) return 0;
  choice->scratch = eini_elem_carve(&v, NULL);
  const double batch = (double)j->x[EINI_DIR_B].size, lanes = (double)j->kern->lanes;
  const double e = (double)v.e, unit = (double)j->unit;
  double cycles = eini_elem_cycles(&v, eini_elem_fma(cpu, &v)), in = 0;
  double out = (double)v.columns[EINI_ELEM_SUMS];
  for (int o = 0; o < 3; o++) cycles += eini_elem_moved(&v, o);
  for (int o = 0; o < 2; o++) in += (double)v.columns[EINI_ELEM_BLOCK + o];
  in *= batch * e * unit, out *= batch * e * unit;
  const double move = eini_cpu_move(cpu, in, out, v.nt);
  const double busy = batch * (ceil(e / lanes) * cycles +
                               2 * (double)v.columns[EINI_ELEM_PACKED]) / cpu->hz;
  eini_elem_grid(&v, choice);
  choice->seconds = cpu->call + 1e-6 + (busy + 0.5 * move) / eini_dir_threads(choice, width);
  eini_cpu_name(choice, v.first ? "elements factors first" : "elements small first");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_elements = {
    "elements", eini_elem_plan, eini_elem_run};

// ================================================================================================
// >>element-rows  small products of elements in rows
// The same contractions where e is not the fastest axis in memory: nothing is turned. Each e is a
// row; lanes are the axes that only q gives to the output, which must be contiguous there, and for
// the factors' product an axis of one factor. What is between is a block of rows of e, or stays in
// ================================================================================================

// registers: out[e,i] = sum over f of x[f,e] * sum over j of g[f,e,j] * q[f,i,j].

#define EINI_ROWS_BYTES 32768   // of the blocks
enum { EINI_ROWS_LEAST = 16, EINI_ROWS_MOST = 256 };  // e of a block

typedef struct eini_dir_rows {
  eini_dir_elem v;
  int scaled;                  // both steps are one: sums times scalars of the other factor
  int64_t len, lanes;          // reals of a vector of factors, and of a row of sums
  int64_t from, to, out;       // reals from e to e of what sums read and write, of the output
  int64_t k0, pk, qk;          // the innermost axis of sums, and steps along it
  eini_elem_list k1;           // the other axes of sums
  int64_t *frow, *trow;        // a block's rows of what sums read and write
} eini_dir_rows;

// The axis of `axes` with unit steps in a stream, else the last of them; -1: none.
static int eini_rows_unit(const eini_dir_elem *v, unsigned axes, int stream) {
  int at = -1;
  for (int d = 0; d < v->all.n; d++) {
    if (!(axes >> d & 1)) continue;
    at = d;
    if (v->all.stride[stream][d] == 1) break;
  }
  return at;
}

// Both steps. first: the factors are multiplied first, vectors along axis w of factor u alone; else
// factor u and the small operand. 0: not this way
static int eini_rows_order(eini_dir_rows *r, int first, int u) {
  eini_dir_elem *v = &r->v;
  const unsigned every = (1U << v->all.n) - 1, in = v->in[u], other = v->in[1 - u];
  const unsigned n = every & ~v->k & ~v->rows;  // of the other group: the lanes of the output
  const unsigned k = v->k & v->small & (first ? every : in & ~other);
  const unsigned loop = first ? v->rows : in & ~k, lanes = first ? n : v->small & ~loop & ~k;
  const int made = v->nt ? EINI_ELEM_SUMS : EINI_ELEM_OUT;
  const int from = first ? EINI_ELEM_BETWEEN : u, to = first ? made : EINI_ELEM_BETWEEN;
  const int w = first ? eini_rows_unit(v, k & in & ~other, u) : -1;
  const int k0 = first ? w : eini_rows_unit(v, k, u);
  if ((first && (w < 0 || v->all.stride[u][w] != 1)) || (!first && k == 0)) return 0;
  if (n & ~v->small) return 0;
  const unsigned inner = k0 < 0 ? 0 : 1U << k0;
  v->first = first, v->u = u;
  if (first) eini_elem_lay(v, EINI_ELEM_BETWEEN, inner, k & ~inner, loop, 1);
  else eini_elem_lay(v, EINI_ELEM_BETWEEN, n, lanes & ~n, loop, 1);
  eini_elem_lay(v, EINI_ELEM_PACKED, n, lanes & ~n, v->small & ~lanes, 1);
  eini_elem_lay(v, EINI_ELEM_SUMS, n, 0, 0, 1);
  r->lanes = eini_elem_size(v, lanes);
  for (int d = 0; d < v->all.n; d++) {
    const int64_t step = v->all.stride[EINI_ELEM_SUMS][d];
    if ((n >> d & 1) && v->all.stride[EINI_ELEM_OUT][d] != step) return 0;
  }
  const int64_t line = eini_elem_size(v, n);
  v->columns[EINI_ELEM_SUMS] = line * eini_elem_size(v, v->rows);
  for (int64_t d = v->all.n - 1, size = line * v->wide; d >= 0; d--) {
    if (v->rows >> d & 1) v->all.stride[EINI_ELEM_SUMS][d] = size, size *= v->all.extent[d];
  }
  // Whole vectors are stored there: what is too much is overwritten later, or falls in the pad.
  const int64_t column = v->columns[EINI_ELEM_BETWEEN] += v->j.kern->lanes;
  r->out = v->nt ? line : v->step[2];
  r->len = first ? v->all.extent[w] : line;
  r->from = first ? column : v->step[u], r->to = first ? r->out : column;
  r->k0 = k0 < 0 ? 1 : v->all.extent[k0];
  r->pk = k0 < 0 ? 0 : v->all.stride[from][k0];
  r->qk = k0 < 0 ? 0 : v->all.stride[EINI_ELEM_PACKED][k0];
  const unsigned made_axes = first ? loop | (k & ~inner) : v->rows;  // of products of factors
  const unsigned vary = first ? in : loop | lanes;                  // axes of their vectors
  eini_elem_set(v, &v->sum_loop, loop, 3, EINI_ELEM_PACKED, from, to);
  eini_elem_set(v, &r->k1, k & ~inner, 2, from, EINI_ELEM_PACKED, 0);
  eini_elem_set(v, &v->mul_loop, made_axes & vary, 3, 1 - u, first ? u : EINI_ELEM_BETWEEN,
                first ? EINI_ELEM_BETWEEN : made);
  eini_elem_set(v, &v->mul_row, made_axes & ~vary, 2, 1 - u, v->mul_loop.stream[2], 0);
  eini_elem_set(v, &v->mul_k, v->k & ~k, 2, 1 - u, v->mul_loop.stream[1], 0);
  eini_elem_set(v, &v->move[2].rest, v->rows, 2, EINI_ELEM_OUT, EINI_ELEM_SUMS, 0);
  // Each sum with the small operand has one use: it stays in registers.
  r->scaled = !first && lanes == n && (loop & v->k) == (v->k & ~k) && v->mul_row.n == 1 &&
              eini_elem_size(v, loop) <= EINI_ELEM_TABLE;
  if (r->scaled) {
    v->columns[EINI_ELEM_BETWEEN] = 0;
    r->to = r->out;
    eini_elem_set(v, &v->sum_loop, v->rows, 3, 1 - u, u, made);
    eini_elem_set(v, &v->mul_k, v->k & ~k, 3, 1 - u, u, EINI_ELEM_PACKED);
  }
  return 1;
}

// Cycles of both steps for one e.
static double eini_rows_cycles(const eini_dir_rows *r, double fma) {
  const eini_dir_elem *v = &r->v;
  const double n = (double)v->j.kern->lanes, vectors = ceil((double)r->lanes / n);
  const double k = (double)(r->k0 * r->k1.n), loop = (double)v->mul_loop.n;
  const double rows = (double)v->mul_row.n, mk = (double)v->mul_k.n;
  if (r->scaled) return (double)v->sum_loop.n * vectors * (1.1 * fma * mk * (k + 1) + 3);
  return (double)v->sum_loop.n * vectors * (1.2 * fma * k + 3) +
         loop * ceil((double)r->len / n) * (mk * (1 + rows) + 2 * rows) + 2 * loop;
}

static int eini_rows_sides(eini_dir_rows *r, const eini_cpu *cpu, const ein_contract *c, int nt) {
  eini_dir_elem *v = &r->v;
  memset(r, 0, sizeof *r);
  if (!eini_elem_sides(v, cpu, c)) return 0;
  v->nt = nt && v->step[2] == v->j.x[EINI_DIR_M + EINI_DIR_N - v->group].size;
  return 1;
}

// What rates decide. 0: not of this kind
static int eini_rows_decide(const eini_rated *cpu, const ein_contract *c, int64_t *s) {
  eini_dir_rows r;
  double least = 0;
  int best = -1;
  if (!eini_rows_sides(&r, &cpu->is, c, 0)) return 0;
  s[EINI_ELEM_NT] = eini_cpu_past(cpu, eini_dir_out_bytes(&r.v.j));
  eini_rows_sides(&r, &cpu->is, c, s[EINI_ELEM_NT] != 0);
  for (int way = 0; way < 4; way++) {
    if (!eini_rows_order(&r, way < 2, way & 1)) continue;
    const double cycles = eini_rows_cycles(&r, eini_elem_fma(cpu, &r.v));
    if (best >= 0 && cycles >= least) continue;
    best = way, least = cycles;
  }
  s[EINI_ELEM_WAY] = best;
  return best >= 0;
}

// How to run: from the whole contraction and what was decided. 0: not this way
static int eini_rows_init(eini_dir_rows *r, const eini_cpu *cpu, const ein_contract *c,
                          const int64_t *decided, const ein_part *part) {
  eini_dir_elem *v = &r->v;
  const int best = (int)decided[EINI_ELEM_WAY];
  if (!eini_rows_sides(r, cpu, c, decided[EINI_ELEM_NT] != 0)) return 0;
  if (!eini_rows_order(r, best < 2, best & 1)) return 0;
  const int64_t columns = v->columns[EINI_ELEM_BETWEEN] + (v->nt ? v->columns[EINI_ELEM_SUMS] : 0);
  if (columns > EINI_ELEM_TABLE || v->columns[EINI_ELEM_PACKED] > EINI_ELEM_TABLE) return 0;
  const int64_t bytes = r->scaled ? EINI_ROWS_BYTES / 4 : EINI_ROWS_BYTES;
  v->wide = eini_dir_clamp(bytes / (eini_max64(columns, 1) * v->j.unit), 8, EINI_ROWS_LEAST,
                           EINI_ROWS_MOST);
  eini_rows_order(r, best < 2, best & 1);
  eini_elem_cut(v, part);
  return 1;
}

static size_t eini_rows_carve(eini_dir_rows *r, char *base) {
  eini_dir_elem *v = &r->v;
  const int64_t unit = v->j.unit;
  size_t used = 0;
  int64_t sums = v->nt ? v->columns[EINI_ELEM_SUMS] * v->wide : 0;
  v->block[EINI_ELEM_BETWEEN] =
      (char *)eini_carve(base, &used, v->columns[EINI_ELEM_BETWEEN] * v->wide, unit);
  v->block[EINI_ELEM_PACKED] =
      (char *)eini_carve(base, &used, v->columns[EINI_ELEM_PACKED] + v->j.kern->lanes, unit);
  v->block[EINI_ELEM_SUMS] = (char *)eini_carve(base, &used, sums, unit);
  r->frow = (int64_t *)eini_carve(base, &used, v->wide * 8, 1);
  r->trow = (int64_t *)eini_carve(base, &used, v->wide * 8, 1);
  eini_elem_tables(v, base, &used);
  eini_elem_fill(v, &r->k1, base, &used);
  eini_elem_moves(v, 2, base, &used);
  eini_elem_fill(v, &v->move[2].rest, base, &used);
  v->move[2].step = 0;  // its lines are not asked for
  return used;
}

// Where element e0 of a stream is: in memory, or the start of a block.
static char *eini_rows_at(const eini_dir_elem *v, int stream, int64_t e0) {
  const int memory = stream < 2 ? v->s0 + stream : EINI_DIR_OUT;
  if (stream >= EINI_ELEM_BLOCK && stream != EINI_ELEM_OUT) return v->block[stream];
  return (char *)(uintptr_t)v->j.at[memory] + e0 * v->step[stream < 2 ? stream : 2] * v->j.unit;
}

// Sums of products with the small operand: rows are n elements from e0 on.
static void eini_rows_sums(eini_dir_rows *r, int64_t e0, int64_t n) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->sum_loop;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t unit = v->j.unit, vectors = (r->lanes + kern->lanes - 1) / kern->lanes;
  const char *from = eini_rows_at(v, loop->stream[1], e0);
  char *to = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_tile t;
  memset(&t, 0, sizeof t);
  t.k1 = r->k1.n, t.k0 = r->k0, t.pk = r->pk, t.qk = r->qk;
  t.pk1 = r->k1.off[0], t.qk1 = r->k1.off[1];
  for (int64_t b = 0; b < loop->n; b++) {
    t.q = v->block[EINI_ELEM_PACKED] + loop->off[0][b] * unit;
    t.p = from + loop->off[1][b] * unit;
    t.out = to + loop->off[2][b] * unit;
    for (int64_t i = 0, l; i < vectors; i += l) {
      const int64_t left = vectors - i;
      l = eini_dir_strip(left);
      t.last = left > l || !v->first ? kern->lanes :
               (int)(r->lanes - (vectors - 1) * kern->lanes);
      for (int64_t e = 0; e < n; e += t.rows) {
        const int which = eini_dir_tile_rows(v->j.kern, n - e, l, &t.rows);
        t.prow = r->frow + e;
        t.orow = r->trow + e;
        kern->tile[l - 1][which](&t);
        eini_elem_ahead_some(v);
      }
      t.q += l * kern->lanes * unit;
      t.out += l * kern->lanes * unit;
    }
  }
}

// Sums of products of both factors, or of one factor and what is between.
static void eini_rows_products(const eini_dir_rows *r, int64_t e0, int64_t n) {
  const eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->mul_loop;
  const int64_t unit = v->j.unit, column = v->columns[EINI_ELEM_BETWEEN];
  const char *p = eini_rows_at(v, loop->stream[0], e0), *q = eini_rows_at(v, loop->stream[1], e0);
  char *out = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_bands t;
  t.n = n, t.k = v->mul_k.n, t.len = r->len, t.pe = v->step[1 - v->u];
  t.qe = v->first ? v->step[v->u] : column;
  t.oe = v->first ? column : r->out;
  t.pk = v->mul_k.off[0], t.qk = v->mul_k.off[1];
  t.masked = v->first ? (v->mul_row.n == 1 || loop->n == 1) * n :
             t.oe == t.len ? n - (v->j.kern->lanes + t.len - 1) / t.len : 0;
  for (int64_t b = 0; b < loop->n; b++) {
    t.p = p + loop->off[0][b] * unit;
    t.q = q + loop->off[1][b] * unit;
    t.out = out + loop->off[2][b] * unit;
    for (int64_t i = 0, most; i < v->mul_row.n; i += most) {
      most = eini_min64(v->mul_row.n - i, 4);
      t.prow = v->mul_row.off[0] + i;
      t.orow = v->mul_row.off[1] + i;
      v->j.kern->bands[most - 1](&t);
    }
  }
}

// Rows that are made together when both steps are one.
static int64_t eini_rows_at_once(const eini_dir_rows *r) {
  return r->lanes <= r->v.j.kern->lanes ? 8 : 4;
}

// Both steps at once. The last rows may be made twice.
static void eini_rows_scaled(eini_dir_rows *r, int64_t e0, int64_t n) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *loop = &v->sum_loop, *group = &v->mul_k;
  const eini_dir_kern *kern = v->j.kern;
  const int64_t unit = v->j.unit, vectors = (r->lanes + kern->lanes - 1) / kern->lanes;
  const int64_t most = eini_rows_at_once(r), rows = n < most ? 1 : most;
  const char *s = eini_rows_at(v, loop->stream[0], e0), *p = eini_rows_at(v, loop->stream[1], e0);
  char *to = eini_rows_at(v, loop->stream[2], e0);
  eini_dir_scaled t = {group->n, r->k1.n, r->k0, r->pk, r->qk, r->from, v->step[1 - v->u], r->to,
                       group->off[1], group->off[0], group->off[2], r->k1.off[0], r->k1.off[1],
                       NULL, NULL, NULL, NULL, 0};
  for (int64_t b = 0; b < loop->n; b++) {
    for (int64_t e = 0; e < n; e += rows) {
      const int64_t at = eini_min64(e, n - rows);
      t.s = s + (loop->off[0][b] + at * t.se) * unit;
      t.p = p + (loop->off[1][b] + at * t.pe) * unit;
      t.q = v->block[EINI_ELEM_PACKED];
      t.out = to + (loop->off[2][b] + at * t.oe) * unit;
      eini_elem_ahead_some(v);
      for (int64_t i = 0, l; i < vectors; i += l) {
        const int64_t left = vectors - i;
        l = eini_dir_strip(left);
        t.last = left > l ? kern->lanes : (int)(r->lanes - (vectors - 1) * kern->lanes);
        kern->scaled[l - 1][rows > 1](&t);
        t.q += l * kern->lanes * unit;
        t.out += l * kern->lanes * unit;
      }
    }
  }
}

static void eini_rows_batch(eini_dir_rows *r) {
  eini_dir_elem *v = &r->v;
  const eini_elem_list *rest = &v->move[2].rest;
  const int64_t unit = v->j.unit, line = v->columns[EINI_ELEM_SUMS] / rest->n;
  const int64_t strips = (r->lanes + 3 * v->j.kern->lanes - 1) / (3 * v->j.kern->lanes);
  const int64_t rows = r->scaled ? eini_rows_at_once(r) : 8, times = r->scaled ? 1 : strips;
  for (int64_t e0 = 0, n; e0 < v->e; e0 += n) {
    n = eini_min64(v->wide, v->e - e0);
    eini_elem_ahead_start(v, e0 + n, eini_min64(v->wide, v->e - e0 - n),
                          v->sum_loop.n * times * ((n + rows - 1) / rows));
    if (r->scaled) {
      eini_rows_scaled(r, e0, n);
    } else {
      if (v->first) eini_rows_products(r, e0, n);
      eini_rows_sums(r, e0, n);
      if (!v->first) eini_rows_products(r, e0, n);
    }
    for (int64_t i = 0; v->nt && i < rest->n; i++) {
      char *dst = eini_rows_at(v, EINI_ELEM_OUT, e0) + rest->off[0][i] * unit;
      eini_stream_row(v->j.isa, (size_t)(n * line * unit),
                      v->block[EINI_ELEM_SUMS] + rest->off[1][i] * unit, dst);
    }
  }
}

static ein_status eini_rows_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_rows r;
  eini_dir_elem *v = &r.v;
  const char *packed = NULL;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (part->batch[0] >= part->batch[1]) return EIN_OK;
  if (!eini_rows_init(&r, cpu, c, choice->state, part)) return EIN_ERR_INTERNAL;
  eini_rows_carve(&r, (char *)scratch);
  for (int64_t e = 0; e < v->wide; e++) r.frow[e] = e * r.from, r.trow[e] = e * r.to;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v->j, b);
    if (packed != v->j.at[EINI_DIR_OPS - v->s0]) eini_elem_pack(v);
    packed = v->j.at[EINI_DIR_OPS - v->s0];
    eini_rows_batch(&r);
  }
  if (v->nt) eini_stream_end();
  return EIN_OK;
}

static int eini_rows_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  eini_dir_rows r;
  eini_dir_elem *v = &r.v;
  eini_dir_job *j = &v->j;
  int64_t *s = choice->state;
  if (!eini_dir_able_elements(&cpu->is, c) || !eini_rows_decide(cpu, c, s)) return 0;
  if (!eini_rows_init(&r, &cpu->is, c, s, NULL)) return 0;
  choice->scratch = eini_rows_carve(&r, NULL);
  const double batch = (double)j->x[EINI_DIR_B].size, e = (double)v->e, unit = (double)j->unit;
  const unsigned every = (1U << v->all.n) - 1;
  const double in = batch * e * unit * (double)(eini_elem_size(v, v->in[0]) +
                                                eini_elem_size(v, v->in[1]));
  const double out = batch * e * unit * (double)eini_elem_size(v, every & ~v->k);
  const double move = eini_cpu_move(cpu, in, out, v->nt);
  const double busy = batch * (e * eini_rows_cycles(&r, eini_elem_fma(cpu, v)) +
                               2 * (double)v->columns[EINI_ELEM_PACKED]) / cpu->hz;
  eini_elem_grid(v, choice);
  choice->seconds = cpu->call + 1e-6 + (busy + 0.5 * move) / eini_dir_threads(choice, width);
  eini_cpu_name(choice, r.scaled ? "rows scaled" : v->first ? "rows factors" : "rows small");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_rows_family = {
    "rows", eini_rows_plan, eini_rows_run};

// ================================================================================================
// >>tiny  products of one tile
// The same tiles where nothing needs a table: plain real operands, at most one axis a group, lanes
// next to each other. Everything is in the choice, so that a run costs nanoseconds.
// ================================================================================================

enum {
  EINI_DIR_SWAP, EINI_DIR_TK, EINI_DIR_PM, EINI_DIR_PK, EINI_DIR_QK, EINI_DIR_OM, EINI_DIR_BP,
  EINI_DIR_BQ, EINI_DIR_BO, EINI_DIR_TISA, EINI_DIR_BY_ROWS, EINI_DIR_NEXT, EINI_DIR_FARAWAY,
  EINI_DIR_ONE,   // all is one tile: its vectors, else 0
  EINI_DIR_HIGH,  // the number of its rows among those of tiles
  EINI_DIR_TILE,  // its rows
  EINI_DIR_LAST,  // the lanes of its last vector
  EINI_DIR_BLOCK, // rows that all lanes are computed of before the next rows
  EINI_DIR_PROW,  // offsets of rows of tiles
  EINI_DIR_OROW = EINI_DIR_PROW + 8
};
enum { EINI_DIR_AT_ONCE = 1, EINI_DIR_IN_TURN };  // how the next matrices are asked for
#define EINI_DIR_EVEN_ROWS 256
#define EINI_DIR_ROW_LEAST 3  // elements of a row: shorter ones leave most of a vector empty
// Lines of memory that no prefetcher sees coming take so many times as long as those of long runs;
// so many where they are asked for.
#define EINI_DIR_UNSEEN 2.5
#define EINI_DIR_ASKED 2.0

static int64_t eini_dir_only(const ein_axes *x, const int64_t *stride) {
  return x->n == 0 ? 0 : stride[0];
}

// 1: lanes of side b are in place.
static int eini_dir_tiny_fits(const ein_contract *c, int b) {
  const ein_axes *x = b ? &c->n : &c->m;
  const int64_t *row = b ? c->q.row[0] : c->p.row[0], *out = b ? c->out_n : c->out_m;
  if (x->n > 0 && c->nextra > 0 && (b ? c->extra_n : c->extra_m)[0][0] != 1) return 0;
  return x->n == 0 || (row[0] == 1 && out[0] == 1);
}

// Steps of what a scaled store reads along the batch and along m or n.
static void eini_dir_tiny_extra(const ein_contract *c, int along_n, int64_t *batch, int64_t *row) {
  *batch = *row = 0;
  if (c->nextra == 0) return;
  *batch = eini_dir_only(&c->batch, c->extra_batch[0]);
  *row = along_n ? eini_dir_only(&c->n, c->extra_n[0]) : eini_dir_only(&c->m, c->extra_m[0]);
}

// A tile whose sums are scaled: n lanes of its rows, which leave through scratch.
static void eini_dir_tiny_scaled(const ein_contract *c, eini_dir_tile_fn tile, eini_dir_tile t,
                                 int64_t n, int64_t om, const char *y, int64_t ym, char *scratch) {
  const eini_ckern *k = eini_ckern_of(c->type);
  const int64_t z = k->size, rows = t.rows;
  int64_t orow[8];
  char *out = t.out;
  for (int64_t i = 0; i < rows; i++) orow[i] = i * n;
  t.orow = orow, t.out = scratch;
  tile(&t);
  for (int64_t i = 0; i < rows; i++)
    k->scale(n, 1, c->alpha, c->beta, scratch + i * n * z, y == NULL ? NULL : y + i * ym * z, NULL,
             out + i * om * z, NULL);
}

// 1: a plain real matrix with unit steps along k times a vector with unit steps.
static int eini_dir_tiny_rows(const ein_contract *c) {
  const int swap = c->m.n == 0;
  return (swap || c->n.n == 0) && c->k.n == 1 && c->p.k[0][0] == 1 && c->q.k[0][0] == 1;
}

// Rows from those at d on, which go to the output `step` apart; `other`: where an operand of an
// output that is scaled is.
static void eini_dir_tiny_rows_some(const eini_dir_kern *kern, const ein_contract *c, int far,
                                    eini_dir_even *d, char *out, int64_t other,
                                    const int64_t *step) {
  const int64_t z = kern->size, at = 0, *const xoff = &other;
  double y[EINI_DIR_EVEN_ROWS];
  d->y = step[0] == 1 && !c->scaled ? (void *)out : (void *)y;
  (far ? kern->even_far : kern->even_near)(d);
  if (c->scaled) {
    c->emit_fn(c->emit_user, d->rows, y, out, &at, c->extra_base, &xoff, step);
    return;
  }
  for (int64_t i = 0; i < d->rows && d->y != (void *)out; i++)
    memcpy(out + i * step[0] * z, (const char *)y + i * z, (size_t)z);
}

static void eini_dir_tiny_rows_run(const eini_dir_kern *kern, const ein_contract *c,
                                   const int64_t *s, const ein_part *part) {
  const int swap = (int)s[EINI_DIR_SWAP];
  const int64_t *row = swap ? part->n : part->m, z = kern->size, most = EINI_DIR_EVEN_ROWS;
  const char *p = swap ? c->q.base[0] : c->p.base[0], *q = swap ? c->p.base[0] : c->q.base[0];
  int64_t xb, xm;
  eini_dir_tiny_extra(c, swap, &xb, &xm);
  // Rows of a problem share x; where it has one, those of the batch are taken, with their own.
  const int one = row[1] - row[0] == 1, far = one || s[EINI_DIR_FARAWAY];
  const int64_t *inner = one ? part->batch : row, *outer = one ? row : part->batch;
  const int64_t pa = s[one ? EINI_DIR_BP : EINI_DIR_PM], pb = s[one ? EINI_DIR_PM : EINI_DIR_BP];
  const int64_t qa = one ? s[EINI_DIR_BQ] : 0, qb = one ? 0 : s[EINI_DIR_BQ];
  const int64_t oa = s[one ? EINI_DIR_BO : EINI_DIR_OM], ob = s[one ? EINI_DIR_OM : EINI_DIR_BO];
  const int64_t step[2] = {oa, one ? xb : xm}, other = one ? xm : xb;
  eini_dir_even d = {0, pa, s[EINI_DIR_TK], qa, NULL, NULL, NULL};
  for (int64_t b = outer[0]; b < outer[1]; b++)
    for (int64_t r = inner[0]; r < inner[1]; r += most) {
      d.rows = eini_min64(most, inner[1] - r);
      d.a = p + (b * pb + r * pa) * z, d.x = q + (b * qb + r * qa) * z;
      eini_dir_tiny_rows_some(kern, c, far, &d, c->out + (b * ob + r * oa) * z,
                              b * other + r * step[1], step);
    }
}

// The strides, and the tile if there is only one.
static void eini_dir_tiny_state(const eini_dir_kern *kern, const ein_contract *c, int swap,
                                int64_t *s) {
  const ein_side *a = swap ? &c->q : &c->p, *b = swap ? &c->p : &c->q;
  const int64_t lanes = eini_axes_size(swap ? &c->m : &c->n), vl = kern->lanes;
  const int64_t rows = eini_axes_size(swap ? &c->n : &c->m);
  s[EINI_DIR_SWAP] = swap;
  s[EINI_DIR_TK] = eini_axes_size(&c->k);
  s[EINI_DIR_PM] = eini_dir_only(swap ? &c->n : &c->m, a->row[0]);
  s[EINI_DIR_PK] = eini_dir_only(&c->k, a->k[0]);
  s[EINI_DIR_QK] = eini_dir_only(&c->k, b->k[0]);
  s[EINI_DIR_OM] = swap ? eini_dir_only(&c->n, c->out_n) : eini_dir_only(&c->m, c->out_m);
  s[EINI_DIR_BP] = eini_dir_only(&c->batch, a->batch[0]);
  s[EINI_DIR_BQ] = eini_dir_only(&c->batch, b->batch[0]);
  s[EINI_DIR_BO] = eini_dir_only(&c->batch, c->out_batch);
  for (int i = 0; i < 8; i++) {
    s[EINI_DIR_PROW + i] = i * s[EINI_DIR_PM];
    s[EINI_DIR_OROW + i] = i * s[EINI_DIR_OM];
  }
  if (eini_axes_size(&c->batch) != 1 || rows < 1 || lanes < 1 || lanes > 3 * vl) return;
  s[EINI_DIR_HIGH] = eini_dir_tile_rows(kern, rows, (lanes + vl - 1) / vl, &s[EINI_DIR_TILE]);
  if (s[EINI_DIR_TILE] != rows) return;
  s[EINI_DIR_ONE] = (lanes + vl - 1) / vl;
  s[EINI_DIR_LAST] = lanes - (s[EINI_DIR_ONE] - 1) * vl;
}

// 1: rows are read by runs that end before prefetchers have seen them, those of a tile by turns.
static int eini_dir_tiny_unseen(const eini_dir_kern *kern, int64_t rows, const int64_t *s) {
  const int64_t run = s[EINI_DIR_TK] * kern->size;
  const int one = s[EINI_DIR_PM] == s[EINI_DIR_TK] && kern->rows * run <= EINI_PAGE_BYTES / 2;
  return !s[EINI_DIR_BY_ROWS] && s[EINI_DIR_BLOCK] < rows && run <= EINI_PAGE_BYTES && !one;
}

// Blocks of rows, and what is asked for ahead.
static void eini_dir_tiny_ahead(const eini_rated *cpu, const ein_contract *c,
                                const eini_dir_kern *kern, int64_t rows, int64_t lanes,
                                int64_t *s) {
  const int64_t batch = eini_axes_size(&c->batch), k = s[EINI_DIR_TK], z = kern->size;
  const int64_t m = eini_axes_size(&c->m), n = eini_axes_size(&c->n);
  const double all = (double)batch * (double)(m * k + k * n + m * n) * (double)z;
  const int tall = rows * k * z > cpu->is.l2;
  s[EINI_DIR_BLOCK] = eini_max64(rows, 1);
  s[EINI_DIR_NEXT] = 0;
  if (tall) {
    const int64_t fit = cpu->is.l2 / 4 / eini_max64(k * z, 1);
    s[EINI_DIR_BLOCK] = eini_max64(fit / kern->rows, 1) * kern->rows;
    if (eini_dir_tiny_unseen(kern, rows, s) && eini_cpu_far(&cpu->is, all))
      s[EINI_DIR_NEXT] = EINI_DIR_IN_TURN;
  } else if (lanes > 3 * kern->lanes && rows * lanes * z > cpu->is.l2 &&
             k * lanes * z <= cpu->is.l2 / 2) {
    const int64_t fit = cpu->is.l2 / 4 / (lanes * z);
    s[EINI_DIR_BLOCK] = eini_max64(fit / kern->rows, 1) * kern->rows;
  } else if (batch > 1 && all > (double)cpu->is.l2) {
    s[EINI_DIR_NEXT] = eini_max64(m * k, k * n) * z <= 4096 ? EINI_DIR_AT_ONCE
                       : eini_cpu_far(&cpu->is, all) ? EINI_DIR_IN_TURN : 0;
  }
}

// What all bytes take to come and go.
static double eini_dir_tiny_move(const eini_rated *cpu, const ein_contract *c, int64_t rows,
                                 int64_t lanes, const eini_dir_kern *kern, const int64_t *s) {
  const int64_t z = kern->size;
  const double batch = (double)eini_axes_size(&c->batch), k = (double)s[EINI_DIR_TK];
  double a = batch * (double)rows * k * (double)z, b = batch * (double)lanes * k * (double)z;
  const double out = batch * (double)rows * (double)lanes * (double)z;
  const int far = eini_cpu_far(&cpu->is, a + b);
  if (eini_dir_tiny_unseen(kern, rows, s)) a *= s[EINI_DIR_NEXT] ? EINI_DIR_ASKED : EINI_DIR_UNSEEN;
  if (far && batch == 1 && s[EINI_DIR_QK] * z >= EINI_PAGE_BYTES) b *= EINI_DIR_UNSEEN;
  return far ? (a + b + 2 * out) / cpu->read_bw : eini_cpu_move(cpu, a + b, out, 0);
}

// Bytes of n rows of `width` elements: whole lines where they are apart.
static double eini_dir_tiny_lines(double n, int64_t width, int64_t step, int64_t z) {
  return n * (double)(step > width ? eini_up(width * z, 64) : width * z);
}

// What it takes to read again what has left the second cache: a strip of lanes for each tile of
// rows, the rows of a block for each strip, all strips for each block. *bytes: of that.
static double eini_dir_tiny_again(const eini_rated *cpu, const ein_contract *c, int64_t rows,
                                  int64_t lanes, const eini_dir_kern *kern, const int64_t *s,
                                  double *bytes) {
  const int64_t z = kern->size, strip = eini_min64(lanes, 3 * kern->lanes);
  const int64_t high = eini_min64(rows, kern->rows), block = eini_min64(rows, s[EINI_DIR_BLOCK]);
  const double batch = (double)eini_axes_size(&c->batch), k = (double)s[EINI_DIR_TK];
  if (rows < 1 || lanes < 1) return 0;
  const double strips = ceil((double)lanes / (double)strip);
  const double tiles = ceil((double)rows / (double)high);
  const double blocks = ceil((double)rows / (double)block);
  const double q = eini_dir_tiny_lines(k, strip, s[EINI_DIR_QK], z);
  const double p = s[EINI_DIR_PK] == 1 ? k * (double)(high * z)
                                       : eini_dir_tiny_lines(k, high, s[EINI_DIR_PK], z);
  const double all_p = p * tiles / blocks, all_q = q * strips, keep = 0.5 * (double)cpu->is.l2;
  return eini_dir_missed(cpu, keep, q, batch * (tiles - blocks) * all_q, bytes) +
         eini_dir_missed(cpu, keep, all_p, batch * (strips - 1) * p * tiles, bytes) +
         eini_dir_missed(cpu, keep, all_p + all_q, batch * (blocks - 1) * all_q, bytes);
}

// Seconds of reading scalars each of which lies in a line, or page, of its own, where the first
// cache does not keep them for the next problem.
static double eini_dir_tiny_apart(const eini_rated *cpu, const eini_dir_kern *kern, int64_t batch,
                                  int64_t rows, const int64_t *s) {
  const int64_t k = s[EINI_DIR_TK];
  const int64_t pm = eini_abs64(s[EINI_DIR_PM]), pk = eini_abs64(s[EINI_DIR_PK]);
  const int64_t near = (rows > 1 && (pm < pk || k < 2) ? pm : pk) * kern->size;
  if (near < 64 || rows * k * 64 < cpu->is.l1 * 7 / 10) return 0;
  const double each = eini_pages_apart(near, 1) ? EINI_PAGE_SECONDS : 1e-9;
  return (double)batch * (double)(rows * k) * each;
}

static double eini_dir_tiny_seconds(const eini_rated *cpu, const ein_contract *c,
                                    const eini_dir_kern *kern, int64_t rows, int64_t lanes,
                                    const int64_t *s, double *traffic) {
  const int64_t batch = eini_axes_size(&c->batch), k = s[EINI_DIR_TK], vl = kern->lanes;
  const double vectors = (double)((lanes + vl - 1) / vl), most = (double)(batch > 0 ? batch : 1);
  const double flops = 2.0 * (double)batch * (double)rows * vectors * (double)(vl * k);
  const double in = (double)batch * (double)(rows * k + k * lanes) * kern->size;
  *traffic = in + (double)batch * (double)(rows * lanes) * kern->size;
  const double move = eini_dir_tiny_move(cpu, c, rows, lanes, kern, s) +
                      eini_dir_tiny_again(cpu, c, rows, lanes, kern, s, traffic);
  double seconds = flops / eini_dir_peak(cpu, c->type) * (rows < 8 ? 1.5 : 1.1);
  const int alone = rows > 1 || !s[EINI_DIR_BY_ROWS];  // else the batch's rows are taken at once
  const int64_t strips = k * lanes * kern->size, apart = s[EINI_DIR_QK] * kern->size;
  if (strips > cpu->is.l3 / 8 || (strips > cpu->is.l2 / 2 && apart % EINI_PAGE_BYTES == 0))
    seconds *= 1.5;
  else if (strips >= cpu->is.l2 / 2) seconds *= 1.15;
  seconds += (double)batch * vectors * (double)(rows + 7) / 8 * 2e-9;
  seconds = (double)batch * eini_dir_chain(cpu, (double)rows, vectors, (double)k, seconds / most);
  if (s[EINI_DIR_BY_ROWS])
    seconds = in / cpu->l2_bw / 2 +
              (double)batch * (alone ? 1e-8 + (double)rows * 1.5e-9 : 2.5e-9);
  // Half of what a problem takes by itself goes on beside memory's traffic.
  const double each = batch > 1 && alone ? (double)batch * EINI_BARE_SECONDS : 0;
  seconds += each;
  // Strips of a large output wait for their lines, which are not asked for.
  const int large = lanes > 3 * vl && rows * lanes * kern->size > cpu->is.l2;
  seconds = eini_cpu_beside(seconds, move, large ? 1 : EINI_CPU_BESIDE) + each;
  if (!s[EINI_DIR_BY_ROWS]) seconds += eini_dir_tiny_apart(cpu, kern, batch, rows, s);
  if (!s[EINI_DIR_BY_ROWS] && eini_cpu_far(&cpu->is, in) && k * rows > 0 && batch > 1 &&
      s[EINI_DIR_BQ] != lanes) {
    // runs too short to be read ahead
    seconds += (double)batch * (double)k * vectors * (s[EINI_DIR_SWAP] || rows < 8 ? 4e-9 : 1e-9);
  }
  return seconds;
}

static int eini_dir_tiny_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  const eini_dir_kern *kern = eini_dir_kern_of(cpu->is.isa, c->type);
  int64_t *s = choice->state;
  if (c->pair != EIN_PAIR_SUM_MUL || kern == NULL || eini_dir_planes(c->type) == 2) return 0;
  if (c->batch.n > 1 || c->m.n > 1 || c->n.n > 1 || c->k.n > 1) return 0;
  if (!c->plain_out && !c->scaled) return 0;
  if (c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN) return 0;
  const int64_t batch = eini_axes_size(&c->batch), m = eini_axes_size(&c->m);
  const int64_t n = eini_axes_size(&c->n), k = eini_axes_size(&c->k);
  const int fits[2] = {eini_dir_tiny_fits(c, 0), eini_dir_tiny_fits(c, 1)};
  const int by_rows = eini_dir_tiny_rows(c) && k >= EINI_DIR_ROW_LEAST;
  if (!fits[0] && !fits[1] && !by_rows) return 0;
  const int swap = by_rows ? c->m.n == 0 && c->n.n > 0 : !fits[1] || (fits[0] && m > n);
  const int64_t lanes = swap ? m : n, rows = swap ? n : m, vl = kern->lanes;
  eini_dir_tiny_state(kern, c, swap, s);
  s[EINI_DIR_TISA] = cpu->is.isa;
  s[EINI_DIR_BY_ROWS] = by_rows;
  if (by_rows || c->scaled) s[EINI_DIR_ONE] = 0;
  eini_dir_tiny_ahead(cpu, c, kern, rows, lanes, s);
  const double in = (double)batch * (double)(m * k + k * n) * kern->size;
  s[EINI_DIR_FARAWAY] = s[EINI_DIR_PM] == k && eini_cpu_far(&cpu->is, in) &&
                        k * kern->size <= cpu->is.l1 / 2;
  double seconds = eini_dir_tiny_seconds(cpu, c, kern, rows, lanes, s, &choice->traffic);
  choice->grid[0] = batch, choice->unit[0] = 1;
  choice->grid[1] = (m + 63) / 64, choice->unit[1] = 64;
  choice->grid[2] = (n + 63) / 64, choice->unit[2] = 64;
  choice->batches = c->batch.n == 0;
  choice->scratch = 0;
  if (c->scaled) {
    const int64_t tile = eini_min64(rows, 8) * eini_min64(lanes, 3 * vl) * kern->size;
    if (!by_rows) choice->scratch = (size_t)eini_up(tile, 64);
    seconds += (double)batch * (double)rows *
               ((double)lanes * 0.15e-9 + (double)((lanes + vl - 1) / vl) * 1e-9);
  }
  choice->seconds = seconds / eini_dir_threads(choice, width) +
                    (s[EINI_DIR_ONE] ? 0.1 * cpu->call : 0.2 * cpu->call + 1e-8);
  eini_cpu_name(choice, by_rows ? "tiny rows along k"
                        : swap  ? "tiny lanes of m" : "tiny lanes of n");
  return 1;
}

// The same for bigger ones: a share before each tile. NULL: that is at hand.
static void eini_dir_in_turn(const int64_t *s, int64_t rows, int64_t n, int64_t z, const char *p,
                             const char *q, const char *out, eini_next *next) {
  const int64_t k = s[EINI_DIR_TK], pm = s[EINI_DIR_PM] * z, pk = s[EINI_DIR_PK] * z;
  const int by_k = pk == z || rows == 1;
  eini_next_row(next, 0, (uintptr_t)p, p == NULL ? 0 : by_k ? rows : k, by_k ? pm : pk,
                (by_k ? k : rows) * z);
  eini_next_row(next, 1, (uintptr_t)q, q == NULL ? 0 : k, s[EINI_DIR_QK] * z, n * z);
  eini_next_row(next, 2, (uintptr_t)out, rows, s[EINI_DIR_OM] * z, n * z);
}

// Have what follows one operand of a batch at hand, unless it is far away.
static void eini_dir_next(const char *at, int64_t step) {
  if (step > 16384) return;
  for (int64_t i = 0; i < step; i += 64) EINI_FETCH(at + step + i);
}

// A run over problems of a batch, and blocks of their rows.
typedef struct eini_dir_tiny_job {
  const ein_contract *c;
  const int64_t *s;
  const eini_dir_kern *kern;
  int64_t n, rows, row, lane;   // of the part; where it begins
  int64_t xb, xm;               // see eini_dir_tiny_extra
  const char *p, *q;
  char *out, *scratch;
  eini_next next;
} eini_dir_tiny_job;

// Asks for the block of rows behind that at r, or the first of the next problem (last: none is).
static void eini_dir_tiny_ask(eini_dir_tiny_job *j, int64_t b, int64_t r, int last) {
  const int64_t *s = j->s, z = j->kern->size, block = s[EINI_DIR_BLOCK];
  const int same = r + block < j->rows, on = s[EINI_DIR_NEXT] == EINI_DIR_IN_TURN;
  const int64_t then = same ? r + block : 0, at = same ? b : b + 1;
  const char *p = j->p + (at * s[EINI_DIR_BP] + then * s[EINI_DIR_PM]) * z;
  const char *q = j->q + at * s[EINI_DIR_BQ] * z;
  if (!same && last) {
    j->next.i = 3;
  } else if (on) {
    const int64_t n = (j->n + j->kern->lanes - 1) / j->kern->lanes;
    eini_dir_in_turn(s, eini_min64(block, j->rows - then), j->n, z,
                     !same && s[EINI_DIR_BP] == 0 ? NULL : p,
                     same || s[EINI_DIR_BQ] == 0 ? NULL : q,
                     j->out + (at * s[EINI_DIR_BO] + then * s[EINI_DIR_OM]) * z, &j->next);
    eini_next_start(&j->next, (n + 2) / 3 * ((eini_min64(block, j->rows - r) + j->kern->rows - 1) /
                                             j->kern->rows));
  } else if (s[EINI_DIR_NEXT]) {
    eini_dir_next(j->p + b * s[EINI_DIR_BP] * z, s[EINI_DIR_BP] * z);
    eini_dir_next(j->q + b * s[EINI_DIR_BQ] * z, s[EINI_DIR_BQ] * z);
    eini_dir_next(j->out + b * s[EINI_DIR_BO] * z, s[EINI_DIR_BO] * z);
  }
}

// All lanes of the rows from r on.
static void eini_dir_tiny_block(eini_dir_tiny_job *j, eini_dir_tile t, int64_t b, int64_t r0,
                                int64_t rows) {
  const int64_t *s = j->s, z = j->kern->size, vl = j->kern->lanes, n = j->n;
  const int64_t vectors = n <= vl ? 1 : (n + vl - 1) / vl, pm = s[EINI_DIR_PM];
  const int64_t om = s[EINI_DIR_OM];
  for (int64_t i = 0, l; i < vectors; i += l) {
    const int64_t left = vectors - i;
    l = eini_dir_strip(left);
    t.last = (int)(left > l ? vl : n - (vectors - 1) * vl);
    t.p = j->p + (b * s[EINI_DIR_BP] + r0 * pm) * z;
    t.q = j->q + (b * s[EINI_DIR_BQ] + i * vl) * z;
    t.out = j->out + (b * s[EINI_DIR_BO] + r0 * om + i * vl) * z;
    for (int64_t r = r0; r < r0 + rows; r += t.rows) {
      const int which = eini_dir_tile_rows(j->kern, r0 + rows - r, l, &t.rows);
      if (s[EINI_DIR_NEXT] == EINI_DIR_IN_TURN) eini_next_some(&j->next);
      if (j->c->scaled) {
        const char *y = j->c->beta == NULL ? NULL : j->c->extra_base[0];
        if (y != NULL) y += (b * j->xb + (j->row + r) * j->xm + j->lane + i * vl) * z;
        eini_dir_tiny_scaled(j->c, j->kern->tile[l - 1][which], t, eini_min64(l * vl, n - i * vl),
                             om, y, j->xm, j->scratch);
      } else {
        j->kern->tile[l - 1][which](&t);
      }
      t.p += t.rows * pm * z;
      t.out += t.rows * om * z;
    }
  }
}

static void eini_dir_tiny_all(const ein_contract *c, const int64_t *s, const ein_part *part,
                              char *scratch) {
  const int64_t zero = 0;
  const int swap = (int)s[EINI_DIR_SWAP];
  const eini_dir_kern *kern = eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type);
  const int64_t *lane = swap ? part->m : part->n, *row = swap ? part->n : part->m, z = kern->size;
  eini_dir_tiny_job j = {c, s, kern, lane[1] - lane[0], row[1] - row[0], row[0], lane[0], 0, 0,
                         (swap ? c->q.base[0] : c->p.base[0]) + row[0] * s[EINI_DIR_PM] * z,
                         (swap ? c->p.base[0] : c->q.base[0]) + lane[0] * z,
                         c->out + (row[0] * s[EINI_DIR_OM] + lane[0]) * z, scratch,
                         {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 0, 3, 0}};
  const eini_dir_tile t = {s[EINI_DIR_TK] > 0, s[EINI_DIR_TK], s[EINI_DIR_PK], s[EINI_DIR_QK],
                           &zero, &zero, s + EINI_DIR_PROW, s + EINI_DIR_OROW, NULL, NULL, NULL, 0,
                           0, 0};
  if (s[EINI_DIR_BY_ROWS]) {
    eini_dir_tiny_rows_run(kern, c, s, part);
    return;
  }
  eini_dir_tiny_extra(c, swap, &j.xb, &j.xm);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    for (int64_t r = 0; r < j.rows; r += s[EINI_DIR_BLOCK]) {
      if (s[EINI_DIR_NEXT]) eini_dir_tiny_ask(&j, b, r, b + 1 == part->batch[1]);
      eini_dir_tiny_block(&j, t, b, r, eini_min64(s[EINI_DIR_BLOCK], j.rows - r));
    }
  }
}

// A batch of problems each of which is planned alone: what follows is asked for where all of them
// come from beyond the second cache.
static void eini_dir_tiny_batch(const eini_cpu *cpu, const ein_contract *c, const ein_part *part,
                                int64_t *s) {
  const ein_side *p = s[EINI_DIR_SWAP] ? &c->q : &c->p, *q = s[EINI_DIR_SWAP] ? &c->p : &c->q;
  s[EINI_DIR_BP] = p->batch[0][0];
  s[EINI_DIR_BQ] = q->batch[0][0];
  s[EINI_DIR_BO] = c->out_batch[0];
  const double step = (double)eini_abs64(s[EINI_DIR_BP]) + (double)eini_abs64(s[EINI_DIR_BQ]) +
                      (double)eini_abs64(s[EINI_DIR_BO]);
  const double all = step * (double)(part->batch[1] - part->batch[0]);
  if (all * (double)eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type)->size < (double)cpu->l2 ||
      s[EINI_DIR_BLOCK] < 1 || s[EINI_DIR_BY_ROWS])
    return;
  s[EINI_DIR_NEXT] = EINI_DIR_AT_ONCE;
  s[EINI_DIR_ONE] = 0;
}

// A single tile is run at once: the loops around it would take as long.
static ein_status eini_dir_tiny_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  static const int64_t zero = 0;
  const int64_t *s = choice->state;
  int64_t many[sizeof choice->state / sizeof *choice->state];
  if (choice->batches && c->batch.n > 0) {
    memcpy(many, s, sizeof many);
    eini_dir_tiny_batch(cpu, c, part, many);
    s = many;
  }
  if (s[EINI_DIR_ONE] == 0) {
    eini_dir_tiny_all(c, s, part, (char *)scratch);
    return EIN_OK;
  }
  const int swap = (int)s[EINI_DIR_SWAP];
  const ein_side *p = swap ? &c->q : &c->p, *q = swap ? &c->p : &c->q;
  const eini_dir_kern *kern = eini_dir_kern_of((int)s[EINI_DIR_TISA], c->type);
  eini_dir_tile t = {s[EINI_DIR_TK] > 0, s[EINI_DIR_TK], s[EINI_DIR_PK], s[EINI_DIR_QK],
                     &zero, &zero, s + EINI_DIR_PROW, s + EINI_DIR_OROW, p->base[0],
                     q->base[0], c->out, (int)s[EINI_DIR_LAST], 0, s[EINI_DIR_TILE]};
  const eini_dir_tile_fn tile = kern->tile[s[EINI_DIR_ONE] - 1][s[EINI_DIR_HIGH]];
  for (int64_t b = part->batch[0];;) {
    tile(&t);
    if (++b >= part->batch[1]) return EIN_OK;
    t.p += s[EINI_DIR_BP] * kern->size;
    t.q += s[EINI_DIR_BQ] * kern->size;
    t.out += s[EINI_DIR_BO] * kern->size;
  }
}

EINI_UNUSED static const eini_cpu_family eini_dir_tiny = {
    "tiny", eini_dir_tiny_plan, eini_dir_tiny_run};

// ================================================================================================
// >>sums  sums and extrema over one operand
// Takes contractions with a side that has no operands, so is one number; goes along the operand in
// the order of memory, whatever the order of its indices is. Nothing is packed. Below, sums are
// extrema too: what is added may be merged as section fold does it.
// ================================================================================================

// Runs of len reals, step apart, are added to sums `to` apart: `along` to the lanes of one vector
// each; `down` each real to its own sum, all runs to the same ones. page: bytes of each of four
// pages that are read together, or 0.
typedef void (*eini_dir_sums_fn)(int64_t runs, int64_t step, int64_t to, int64_t len, int64_t page,
                                 const void *x, void *sums);

typedef struct eini_dir_sums_kern {
  eini_dir_sums_fn along, down;
  // y[i] = what the lanes of sums[i] add up to, or (not along) sums[i], plus a number; the sums are
  // lost, and half a vector behind them is read. NULL: functions of section direct do it.
  void (*end)(int64_t n, int along, void *sums, const void *one, void *y);
} eini_dir_sums_kern;

#define EINI_KERNELS EINI_KERNELS_SUMS
#if EINI_CPU_X86
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#else  // EINI_CPU_X86
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#undef EINI_KERNELS

// The functions that go with those of section direct.
static const eini_dir_sums_kern *eini_dir_sums_kern_of(const eini_dir_kern *kern, ein_pair pair) {
#define EINI_SUMS_OF(tag, sums) {&eini_dir_kern_##tag, eini_sums_kern_##sums}
  static const struct { const eini_dir_kern *kern; const eini_dir_sums_kern *sums; } table[] = {
#if EINI_CPU_X86
      EINI_SUMS_OF(ys, ys), EINI_SUMS_OF(yd, yd), EINI_SUMS_OF(qi, qi), EINI_SUMS_OF(ql, ql),
      EINI_SUMS_OF(zs, zs), EINI_SUMS_OF(zd, zd)};
#else
#if EINI_CPU_NEON  // without products they are those of plain C
      EINI_SUMS_OF(ns, cs), EINI_SUMS_OF(nd, cd),
#endif
      EINI_SUMS_OF(cs, cs), EINI_SUMS_OF(cd, cd), EINI_SUMS_OF(ci, ci), EINI_SUMS_OF(cl, cl)};
#endif
#undef EINI_SUMS_OF
  size_t i = 0;
  while (table[i].kern != kern) i++;
  return table[i].sums + (pair == EIN_PAIR_MAX_ADD) + 2 * (pair == EIN_PAIR_MIN_ADD);
}

typedef struct eini_dir_sums {
  eini_dir_mv mv;              // its job, rows and block of the output, in which sums end
  const eini_dir_sums_kern *kern;
  int along;                   // whether runs of memory are summed,
  int64_t spread;              //   or short ones: reals of them, each of which has a sum; or 0
  int64_t wide;                // reals of the sum of a row, in a block
  int64_t block, most;         // bytes of the sums of a block, and how many
  int64_t page;                // see eini_dir_sums_fn
  char *sums;                  // their vectors, or reals, where runs are summed
  char *one;                   // the other side's number
} eini_dir_sums;

typedef struct eini_dir_sums_loop {
  int64_t extent, step, to, key;
} eini_dir_sums_loop;

static void eini_dir_sums_init(eini_dir_sums *s, const eini_cpu *cpu, const ein_contract *c,
                               const ein_part *part) {
  eini_dir_job *j = &s->mv.j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  eini_dir_init(j, cpu, c);
  s->mv.group = c->p.nop > 0 ? EINI_DIR_M : EINI_DIR_N;
  s->mv.other = EINI_DIR_M + EINI_DIR_N - s->mv.group;
  s->mv.a = c->p.nop > 0 ? 0 : EINI_DIR_OPS;
  s->mv.x = EINI_DIR_OPS - s->mv.a;
  eini_dir_sort(&j->x[EINI_DIR_K], s->mv.a);
  s->kern = eini_dir_sums_kern_of(j->kern, c->pair);
  s->along = k->n > 0 && k->stride[s->mv.a][k->n - 1] == 1;
  s->spread = s->along && k->n > 1 && k->extent[k->n - 1] * j->unit < 64 ? k->extent[k->n - 1] : 0;
  if (s->spread > 0) s->along = 0;
  s->wide = s->along ? j->kern->lanes : eini_max64(s->spread, 1);
  s->block = eini_max64(cpu->l2 / 8, 4096);
  s->most = s->block / (s->wide * j->unit);
  if (part != NULL) {
    const int64_t *cut = s->mv.a == 0 ? part->m : part->n;
    eini_dir_cut(j, s->mv.group, cut[0], cut[1]);
  }
  eini_dir_sort(&j->x[s->mv.group], s->mv.a);
}

static size_t eini_dir_sums_carve(eini_dir_sums *s, char *base) {
  const eini_dir_job *j = &s->mv.j;
  size_t used = 0;
  eini_dir_carve_job(&s->mv.j, base, &used);
  s->mv.y = (char *)eini_carve(base, &used, s->most * j->unit, 1);
  s->sums = !s->along && s->spread == 0 ? s->mv.y
                                        : (char *)eini_carve(base, &used, s->block + 64, 1);
  s->one = (char *)eini_carve(base, &used, 64, 1);
  return used;
}

// The loops over `chunk` values of axis d of the rows, all of the axes behind it and all of k, in
// the order of memory, innermost first; the first of them is along a run. Two that are one are.
static int eini_dir_sums_loops(const eini_dir_sums *s, int d, int64_t chunk,
                               eini_dir_sums_loop *loop) {
  const eini_dir_job *j = &s->mv.j;
  int64_t to = s->wide;
  int n = 0;
  for (int g = 0; g < 2; g++) {
    const eini_dir_index *x = &j->x[g ? s->mv.group : EINI_DIR_K];
    for (int i = x->n - 1; i >= (g ? d : 0); i--) {
      eini_dir_sums_loop one = {g && i == d ? chunk : x->extent[i], x->stride[s->mv.a][i],
                                g ? to : s->spread > 0 && i == x->n - 1,
                                eini_dir_key(x, s->mv.a, i)};
      int at = n++;
      if (g) to *= one.extent;
      for (; at > 0 && loop[at - 1].key > one.key; at--) loop[at] = loop[at - 1];
      loop[at] = one;
    }
  }
  for (int i = n - 1; i > 0; i--) {
    eini_dir_sums_loop *in = &loop[i - 1];
    if (loop[i].step != in->step * in->extent || loop[i].to != in->to * in->extent) continue;
    in->extent *= loop[i].extent;
    memmove(loop + i, loop + i + 1, (size_t)(--n - i) * sizeof *loop);
  }
  if (s->along || (n > 0 && loop[0].to == 1 && loop[0].step == 1)) return n;
  memmove(loop + 1, loop, (size_t)n * sizeof *loop);
  loop[0].extent = loop[0].step = loop[0].to = 1;
  return n + 1;
}

// Adds up a block that starts at x.
static void eini_dir_sums_block(const eini_dir_sums *s, const char *x, int d, int64_t chunk) {
  const int size = s->mv.j.kern->size;
  eini_dir_sums_loop loop[2 * EINI_DIR_RANK + 1], one = {1, 0, 0, 0};
  int64_t at[2 * EINI_DIR_RANK + 1] = {0};
  const int n = eini_dir_sums_loops(s, d, chunk, loop);
  const eini_dir_sums_fn add = s->along ? s->kern->along : s->kern->down;
  int first = 1, i;
  char *y = s->sums;
  if (n > 1 && (s->along || loop[1].to == 0)) one = loop[first++];
  do {
    add(one.extent, one.step, one.to, loop[0].extent, s->page, x, y);
    for (i = first; i < n; i++) {
      x += loop[i].step * size, y += loop[i].to * size;
      if (++at[i] < loop[i].extent) break;
      x -= loop[i].extent * loop[i].step * size, y -= loop[i].extent * loop[i].to * size;
      at[i] = 0;
    }
  } while (i < n);
}

// n sums that nothing has been added to.
static void eini_dir_sums_begin(const eini_dir_sums *s, char *sums, int64_t n) {
  const eini_dir_job *j = &s->mv.j;
  const int max = j->c->pair == EIN_PAIR_MAX_ADD;
  if (s->kern->end == NULL) {
    memset(sums, 0, (size_t)(n * j->unit));
    return;
  }
  eini_fill_value(j->c->type, max ? -HUGE_VAL : HUGE_VAL, 0,
                  eini_int_limit(j->c->type, max ? -1 : 1), n, sums);
}

// Values of n rows from their sums: vectors, or (not along) the reals at y.
static void eini_dir_sums_end(const eini_dir_sums *s, int64_t n, int along, char *sums, char *y) {
  const eini_dir_job *j = &s->mv.j;
  const char *col[1] = {y};
  if (s->kern->end != NULL) {
    s->kern->end(n, along, sums, s->one, y);
    return;
  }
  if (along) {
    memset(y, 0, (size_t)(n * j->unit));
    j->kern->fold((int)n, 1, sums, sums, 0, 0, y);
  }
  j->kern->axpy[0](n, 1, col, s->one, y);
}

// The same of short runs whose reals have sums.
static void eini_dir_sums_gather(const eini_dir_sums *s, int64_t n) {
  const eini_dir_job *j = &s->mv.j;
  eini_dir_sums_begin(s, s->mv.y, n);
  for (int64_t i = 0; i < n; i++)
    s->kern->down(s->spread, 1, 0, 1, 0, s->sums + i * s->spread * j->unit,
                  s->mv.y + i * j->unit);
  eini_dir_sums_end(s, n, 0, s->mv.y, s->mv.y);
}

static ein_status eini_dir_sums_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  static const eini_dir_index none = {0, 1, {0}, {{0}}};
  eini_dir_sums s;
  eini_dir_job *j = &s.mv.j;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  eini_dir_sums_init(&s, cpu, c, part);
  eini_dir_sums_carve(&s, (char *)scratch);
  s.page = choice->state[0];
  const eini_dir_index *m = &j->x[s.mv.group];
  int d = 0;
  int64_t inner = m->size, chunk = 1;  // axes from d on lie in a block, and `chunk` of that before
  while (inner > s.most) inner /= m->extent[d++];
  if (d > 0) chunk = s.most / inner;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(j, b);
    eini_dir_fetch(j, s.mv.x, &none, 0, 1, &none, 0, 1, 1, s.one);
    for (int64_t r = 0, rn; r < m->size; r += rn) {
      const int64_t left = d > 0 ? m->extent[d - 1] - r / inner % m->extent[d - 1] : 1;
      const int64_t some = eini_min64(chunk, left);
      rn = some * inner;
      eini_dir_sums_begin(&s, s.sums, rn * s.wide);
      const char *x = j->at[s.mv.a] + eini_dir_offset(m, s.mv.a, r) * j->unit;
      if (d > 0) eini_dir_sums_block(&s, x, d - 1, some);
      else eini_dir_sums_block(&s, x, 0, m->n > 0 ? m->extent[0] : 1);
      if (s.spread > 0) eini_dir_sums_gather(&s, rn);
      else eini_dir_sums_end(&s, rn, s.along, s.sums, s.mv.y);
      eini_dir_mv_put(&s.mv, r, rn, 0, s.mv.y);
    }
  }
  return EIN_OK;
}

// Cycles of a run that is added to sums as wide: vectors eight, four, two and one at a time, each
// time through all runs, and each time a sum waits for the one before it.
static double eini_dir_sums_waits(int64_t run, int lanes) {
  const int64_t v = run / lanes;
  return 5 * (double)(v / 8 + (v >> 2 & 1) + (v >> 1 & 1) + (v & 1) + (run % lanes != 0));
}

static int eini_dir_sums_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  eini_dir_sums s;
  eini_dir_job *j = &s.mv.j;
  const ein_side *side = c->p.nop > 0 ? &c->p : &c->q, *other = c->p.nop > 0 ? &c->q : &c->p;
  if (c->pair != EIN_PAIR_SUM_MUL && c->pair != EIN_PAIR_MAX_ADD && c->pair != EIN_PAIR_MIN_ADD)
    return 0;
  if (!eini_dir_fits(&cpu->is, c) || side->form != EIN_FORM_PLAIN || other->nop > 0) return 0;
  eini_dir_sums_init(&s, &cpu->is, c, NULL);
  const int g = s.mv.group == EINI_DIR_M ? 1 : 2;
  const eini_dir_index *m = &j->x[s.mv.group], *k = &j->x[EINI_DIR_K];
  const eini_dir_index *in = s.along ? k : m;
  if (j->planes > 1 || k->size < 2 || in->n == 0) return 0;
  if (j->x[s.mv.other].size != 1) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, all = batch * (double)m->size;
  int64_t run = in->extent[in->n - 1];
  if (in->stride[s.mv.a][in->n - 1] != eini_max64(s.spread, 1)) return 0;
  run *= eini_max64(s.spread, 1);
  if (run * j->unit < (s.along ? 64 : 16)) return 0;  // along: a vector at least
  const double reals = all * (double)k->size, bytes = reals * j->unit;
  double seconds = bytes / eini_cpu_bw(cpu, bytes);
  double cycles = reals * (4 / (double)run + 0.5 / j->kern->lanes);
  const double waits = eini_dir_sums_waits(run, j->kern->lanes);
  if (!s.along) cycles = fmax(cycles, reals / (double)run * waits);
  if (cycles / cpu->hz > seconds) seconds = cycles / cpu->hz;
  choice->unit[0] = choice->grid[1] = choice->grid[2] = choice->unit[1] = choice->unit[2] = 1;
  choice->grid[0] = j->x[EINI_DIR_B].size;
  choice->scratch = eini_dir_sums_carve(&s, NULL);
  choice->state[0] = cpu->pages > 1 ? EINI_PAGE_BYTES : 0;
  eini_dir_init(j, &cpu->is, c);
  eini_dir_grid(&j->x[s.mv.group], s.along ? 16 : 256, &choice->grid[g], &choice->unit[g]);
  seconds += batch * 5e-8 + all * 1e-9;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  eini_cpu_name(choice, s.along ? "sums along" : s.spread > 0 ? "sums spread" : "sums down");
  return 1;
}

static const eini_cpu_family eini_dir_sums_family = {"sums", eini_dir_sums_plan, eini_dir_sums_run};

// ================================================================================================
// >>lanes  small matrices on pieces of an index that steps over them
// An index of many values that one operand and the output have outside of short pieces of their
// memory, as in edq,qi->eid. Its values are lanes: pieces are turned on the way in and out.
// ================================================================================================

// A block of values e of that index:
//   turned:    in[k][d][e] = X[e ..]       its pieces, from memory
//   products:  out[m][d][e] = sum over k of A[m, k] * in[k][d][e]       tiles of section direct
//   turned:    Y[e ..] = out[m][d][e]      pieces of the output, each one run of memory; where e
//                                          steps by single reals there, tiles store at once
// d: the other indices of X that the output has. A is small, and stays in the first-level cache.
// What a vector reads behind the end of a piece is another's, and what it writes there is written
// again by the next: the last values of a part, and of X, go through memory of their own. Pieces
// shorter than a vector that follow each other are turned as one where each lane has its own run of
// values: lane i of granule v then holds value i * G + v of a block of G granules.

// n times: a granule of rows at src + r[i], of as many reals each, turned to dst + o[j]. What is
// `behind` reals further is asked for.
typedef void (*eini_lanes_turn)(int64_t n, const void *src, const int64_t *r, int64_t ss,
                                void *dst, const int64_t *o, int64_t ds, int64_t behind);

enum {
  EINI_LANES_BLOCK,         // words of ein_choice.state: lanes of a block
  EINI_LANES_PAST,          // the output goes past the caches
  EINI_LANES_COPIED,        // bits: the operands that are copied
  EINI_LANES_ROWS = 32,     // rows at least of what is copied
  EINI_LANES_PIECE = 256,   // reals of a piece at most
  EINI_LANES_SMALL = 4096,  // reals of A at most
  EINI_LANES_MOST = 8,      // of a granule
  EINI_LANES_JOINED = 32    // reals of a piece at most that is turned with others
};

// The reals of a piece in the order of memory: their offsets, and their rows in a block.
typedef struct eini_lanes_piece {
  int64_t n, *off, *row;
} eini_lanes_piece;

// How pieces are turned: a granule of reals at once, the last values by way of `some`.
typedef struct eini_lanes_by {
  eini_lanes_turn turn;
  int64_t size, pitch;         // bytes of a real; reals of one of the last values
  int isa, granule, apart;     // apart: each lane has its own run of values
  char *some;
} eini_lanes_by;

// An operand, or the output, whose pieces are turned, `step` reals apart.
typedef struct eini_lanes_move {
  eini_lanes_piece piece;
  int64_t step, behind;        // behind: of the next block, which is asked for; 0: it is not
  int copied;                  // of step 1, to a block: vectors of all rows, one after the other
  char *block;                 // its lanes
  int64_t *joined;             // where reals of pieces turned as one are, in a block of so many
  int64_t granules, lanes;     //   granules and lanes; NULL: one by one
  char *stage;                 // pieces on their way past the caches, or NULL
  eini_tail *carry;
} eini_lanes_move;

typedef struct eini_lanes_job {
  const ein_contract *c;
  const eini_dir_kern *kern;
  eini_lanes_by by;
  int side, axis;              // X is Q, or P; the axis of its rows
  const ein_axes *row[2];      // axes of X's rows, of A's
  const int64_t *out[2];       // their strides in the output
  const ein_side *x, *a;
  int64_t size, lanes;         // values of the index; see EINI_LANES_BLOCK
  int64_t nd, nk, nm;
  int past;                    // see EINI_LANES_PAST
  eini_lanes_move move[2];     // X, the output
  int64_t *pk, *qk, *prow, *orow, *od;
} eini_lanes_job;

// turn is NULL where the instruction set has none.
static void eini_lanes_by_of(int isa, ein_dtype type, eini_lanes_by *by) {
  const int wide = type == EIN_F64;
  by->size = (int64_t)ein_dtype_size(type), by->turn = NULL, by->isa = isa;
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) {
    by->granule = 8;
    by->turn = wide ? eini_pack_turned_zd : eini_pack_turned_zs;
  }
  if (isa == EINI_ISA_AVX2) {
    by->granule = 4;
    by->turn = wide ? eini_pack_turned_yd : eini_pack_turned_ys;
  }
#elif EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) {
    by->granule = wide ? 2 : 4;
    by->turn = wide ? eini_pack_turned_nd : eini_pack_turned_ns;
  }
#endif
  (void)isa, (void)wide;
}

// The axis with most values; -1: none.
static int eini_lanes_longest(const ein_axes *x) {
  int r = -1;
  for (int i = 0; i < x->n; i++)
    if (r < 0 || x->extent[i] > x->extent[r]) r = i;
  return r;
}

// The longest axis of the side with more rows, and what is beside it. 0: the way is not for this.
static int eini_lanes_take(eini_lanes_job *j, const ein_contract *c, int isa) {
  const int side = eini_axes_size(&c->n) > eini_axes_size(&c->m);
  const ein_axes *const rows[2] = {&c->m, &c->n};
  const int64_t *const out[2] = {c->out_m, c->out_n};
  const ein_side *const sides[2] = {&c->p, &c->q};
  memset(j, 0, sizeof *j);
  j->c = c, j->side = side;
  j->kern = eini_dir_kern_of(isa, c->type);
  eini_lanes_by_of(isa, c->type, &j->by);
  for (int i = 0; i < 2; i++) {
    j->row[i] = rows[i == 0 ? side : 1 - side], j->out[i] = out[i == 0 ? side : 1 - side];
  }
  j->x = sides[side], j->a = sides[1 - side];
  j->nk = eini_axes_size(&c->k), j->nm = eini_axes_size(j->row[1]), j->nd = 1;
  j->axis = eini_lanes_longest(j->row[0]);
  if (j->axis < 0 || j->kern == NULL || j->by.turn == NULL) return 0;
  for (int i = 0; i < j->row[0]->n; i++) j->nd *= i == j->axis ? 1 : j->row[0]->extent[i];
  j->size = j->row[0]->extent[j->axis];
  j->move[0].step = j->x->row[0][j->axis], j->move[1].step = j->out[0][j->axis];
  j->move[0].piece.n = j->nd * j->nk, j->move[1].piece.n = j->nd * j->nm;
  return 1;
}

// Axes of a piece, the greatest stride first, and their steps in the rows of a block.
typedef struct eini_lanes_axes {
  int n;
  int64_t extent[3 * EINI_DIR_RANK], stride[3 * EINI_DIR_RANK], row[3 * EINI_DIR_RANK];
} eini_lanes_axes;

// Adds all axes but one; `row`: the step of the last.
static void eini_lanes_add(eini_lanes_axes *a, const ein_axes *x, const int64_t *stride, int but,
                           int64_t row) {
  for (int i = x->n - 1; i >= 0; i--) {
    if (i == but) continue;
    int at = a->n++;
    for (; at > 0 && a->stride[at - 1] <= stride[i]; at--) {
      a->extent[at] = a->extent[at - 1], a->stride[at] = a->stride[at - 1];
      a->row[at] = a->row[at - 1];
    }
    a->extent[at] = x->extent[i], a->stride[at] = stride[i], a->row[at] = row;
    row *= x->extent[i];
  }
}

// Of X's piece, or of the output's.
static eini_lanes_axes eini_lanes_piece_axes(const eini_lanes_job *j, int out) {
  eini_lanes_axes a;
  a.n = 0;
  eini_lanes_add(&a, j->row[0], out ? j->out[0] : j->x->row[0], j->axis, 1);
  eini_lanes_add(&a, out ? j->row[1] : &j->c->k, out ? j->out[1] : j->x->k[0], -1, j->nd);
  return a;
}

static void eini_lanes_enumerate(const eini_lanes_axes *a, const eini_lanes_piece *p) {
  eini_gett_table(a->n, a->extent, a->stride, 1, 1, p->off);
  eini_gett_table(a->n, a->extent, a->row, 1, 1, p->row);
}

// Reals of a piece that follow each other, from the i-th on.
static int64_t eini_lanes_run(const eini_lanes_piece *p, int64_t i) {
  int64_t n = 1;
  while (i + n < p->n && p->off[i + n] == p->off[i] + n) n++;
  return n;
}

// Pieces that are one run, end where the next begins, and fill no granules.
static int eini_lanes_joins(const eini_lanes_by *by, const eini_lanes_move *m,
                            const eini_lanes_axes *a) {
  int64_t run = 1;
  for (int i = a->n - 1; i >= 0; i--) {
    if (a->extent[i] > 1 && a->stride[i] != run) return 0;
    run *= a->extent[i];
  }
  return run == m->step && run % by->granule != 0 && run <= EINI_LANES_JOINED;
}

// May each lane have its own run of values? Where all is turned, and pieces are turned as one.
static int eini_lanes_apart(const eini_lanes_by *by, int64_t lanes, int n,
                            const eini_lanes_move *m, const eini_lanes_axes *axes) {
  int some = 0;
  for (int i = 0; i < n; i++) {
    if (m[i].step == 1) return 0;
    if (!eini_lanes_joins(by, &m[i], &axes[i])) continue;
    if (lanes / by->granule * m[i].piece.n < by->granule) return 0;
    some = 1;
  }
  return some;
}

// The tables of a piece, and so many lanes.
static void eini_lanes_carve_move(const eini_lanes_by *by, eini_lanes_move *m, int64_t lanes,
                                  int joins, char *base, size_t *used) {
  const int64_t each = by->apart && joins ? lanes / by->granule : 0;
  m->piece.off = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->piece.row = (int64_t *)(void *)eini_carve(base, used, m->piece.n, 8);
  m->joined = (int64_t *)(void *)eini_carve(base, used, each * m->piece.n, 8);
  if (each == 0) m->joined = NULL;
  m->granules = -1;
  m->block = (char *)eini_carve(base, used, m->piece.n + 1, lanes * by->size);  // and of no piece
}

// Room for the output's pieces of so many lanes, which go past the caches.
static void eini_lanes_carve_past(const eini_lanes_by *by, eini_lanes_move *m, int64_t lanes,
                                  char *base, size_t *used) {
  const int64_t reals = lanes * m->piece.n + EINI_LANES_MOST;
  m->carry = (eini_tail *)(void *)eini_carve(base, used, 1, (int64_t)sizeof *m->carry);
  m->stage = (char *)eini_carve(base, used, reals * by->size + 64, 1);  // loads go on behind it
}

// For pieces of `most` reals at most.
static void eini_lanes_carve_by(eini_lanes_by *by, int64_t most, char *base, size_t *used) {
  by->pitch = eini_up(most, EINI_LANES_MOST) + EINI_LANES_MOST;
  by->some = (char *)eini_carve(base, used, EINI_LANES_MOST * by->pitch, by->size);
}

static size_t eini_lanes_carve(eini_lanes_job *j, char *base) {
  const eini_lanes_axes axes[2] = {eini_lanes_piece_axes(j, 0), eini_lanes_piece_axes(j, 1)};
  size_t used = 0;
  j->by.apart = eini_lanes_apart(&j->by, j->lanes, 2, j->move, axes);
  j->pk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->qk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->prow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->orow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->od = (int64_t *)(void *)eini_carve(base, &used, j->nd, 8);
  eini_lanes_carve_by(&j->by, eini_max64(j->move[0].piece.n, j->move[1].piece.n), base, &used);
  for (int i = 0; i < 2; i++)
    if (j->move[i].step != 1)
      eini_lanes_carve_move(&j->by, &j->move[i], j->lanes,
                            eini_lanes_joins(&j->by, &j->move[i], &axes[i]), base, &used);
  if (j->past) eini_lanes_carve_past(&j->by, &j->move[1], j->lanes, base, &used);
  return used;
}

// A block's values: n of them, whole granules of which are turned at once, in rows of so many
// lanes.
typedef struct eini_lanes_range {
  int64_t n, whole, lanes;
} eini_lanes_range;

// The next block of `left` values, of which `safe` may be turned by whole granules. Pieces turned
// as one fill a granule: fewer are turned one by one.
static eini_lanes_range eini_lanes_next(const eini_lanes_by *by, int nmove,
                                        const eini_lanes_move *m, int64_t lanes, int64_t left,
                                        int64_t safe, int64_t vector) {
  eini_lanes_range b;
  b.n = eini_min64(lanes, left), b.whole = eini_max64(eini_min64(b.n, safe), 0) / by->granule;
  for (int i = 0; i < nmove && by->apart && b.whole > 1; i++)
    if (m[i].joined != NULL && b.whole * m[i].piece.n < by->granule)
      b.n = by->granule, b.whole = 1;
  b.lanes = eini_up(b.n, vector);
  return b;
}

// Places in the block of the reals of pieces turned as one.
static void eini_lanes_join(const eini_lanes_by *by, eini_lanes_move *m,
                            const eini_lanes_range *x) {
  int64_t *to = m->joined;
  if (m->granules == x->whole && m->lanes == x->lanes) return;
  m->granules = x->whole, m->lanes = x->lanes;
  for (int64_t v = 0; v < x->whole; v++)
    for (int64_t i = 0; i < m->piece.n; i++)
      *to++ = m->piece.row[i] * x->lanes + v * by->granule;
}

// Values from the one at p on, as lanes of a block; lanes behind them are as the last one.
static void eini_lanes_in(const eini_lanes_by *by, eini_lanes_move *m, const char *p,
                          const eini_lanes_range *b) {
  const eini_lanes_piece *x = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step, lanes = b->lanes;
  const int64_t lane = by->apart ? b->whole * step : step, next = by->apart ? step : g * step;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST], i = 0;
  for (int64_t h = 0; h < g; h++) r[h] = h * lane, some[h] = h * by->pitch;
  if (m->joined != NULL && b->whole * x->n >= g) {
    eini_lanes_join(by, m, b);
    for (int64_t t = 0, all = b->whole * x->n; t < all; t += g) {
      const int64_t from = eini_min64(t, all - g);
      by->turn(1, p + from * z, r, 0, m->block, m->joined + from, 0, m->behind);
    }
    i = x->n;
  }
  for (int64_t run; i < x->n && b->whole > 0; i += run) {
    run = eini_lanes_run(x, i);
    for (int64_t t = 0; t < run; t += g) {
      const int64_t from = run < g ? 0 : eini_min64(t, run - g);
      for (int64_t h = 0; h < g; h++)
        o[h] = (from + h < run ? x->row[i + from + h] : x->n) * lanes;
      by->turn(b->whole, p + (x->off[i] + from) * z, r, next, m->block, o, g, m->behind);
    }
  }
  for (int64_t e = b->whole * g; e < lanes; e += g) {
    for (int64_t h = 0; h < g; h++) {
      const char *from = p + eini_min64(e + h, b->n - 1) * step * z;
      char *to = by->some + h * by->pitch * z;
      for (int64_t k = 0, run; k < x->n; k += run, to += run * z) {
        run = eini_lanes_run(x, k);
        memcpy(to, from + x->off[k] * z, (size_t)(run * z));
      }
    }
    for (int64_t t = 0; t < x->n; t += g) {
      for (int64_t h = 0; h < g; h++) o[h] = (t + h < x->n ? x->row[t + h] : x->n) * lanes;
      by->turn(1, by->some + t * z, some, 0, m->block + e * z, o, 0, 0);
    }
  }
}

// Values from the one at p on, which lie along the lanes, as vectors of so many; lanes behind them
// are as the last one.
static void eini_lanes_copy(const eini_lanes_by *by, const eini_lanes_move *m, const char *p,
                            int64_t n, int64_t vector) {
  const int64_t z = by->size, bytes = vector * z, next = m->piece.n * bytes;
  for (int64_t i = 0; i < m->piece.n; i++) {
    const char *s = p + m->piece.off[i] * z, *end = s + n * z;
    char *d = m->block + m->piece.row[i] * bytes;
    for (; end - s >= bytes; s += bytes, d += next)
      if (bytes == 64) memcpy(d, s, 64);
      else memcpy(d, s, (size_t)bytes);
    if (s == end) continue;
    memcpy(d, s, (size_t)(end - s));
    for (char *last = d + (end - s); last < d + bytes; last += z) memcpy(last, end - z, (size_t)z);
  }
}

// The pieces of the output's values from the one at p on.
static void eini_lanes_leave(const eini_lanes_by *by, eini_lanes_move *m, char *p,
                             const eini_lanes_range *b) {
  const eini_lanes_piece *y = &m->piece;
  const int64_t g = by->granule, z = by->size, step = m->step, all = y->n, lanes = b->lanes;
  const int64_t lane = by->apart ? b->whole * step : step, next = by->apart ? step : g * step;
  int64_t r[EINI_LANES_MOST], o[EINI_LANES_MOST], some[EINI_LANES_MOST], t = 0;
  for (int64_t i = 0; i < g; i++) o[i] = i * lane, some[i] = i * by->pitch;
  if (m->joined != NULL && b->whole * all >= g) {
    eini_lanes_join(by, m, b);
    for (const int64_t end = b->whole * all; t < end; t += g) {
      const int64_t from = eini_min64(t, end - g);
      by->turn(1, m->block, m->joined + from, 0, p + from * z, o, 0, 0);
    }
    t = all;
  }
  for (; t < all && b->whole > 0; t += g) {
    const int64_t from = all < g ? 0 : eini_min64(t, all - g);
    for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(from + h, all - 1)] * lanes;
    by->turn(b->whole, m->block, r, g, p + from * z, o, next, 0);
  }
  for (int64_t e = b->whole * g; e < b->n; e += g) {
    for (t = 0; t < all; t += g) {
      for (int64_t h = 0; h < g; h++) r[h] = y->row[eini_min64(t + h, all - 1)] * lanes;
      by->turn(1, m->block + e * z, r, 0, by->some + t * z, some, 0, 0);
    }
    for (int64_t h = 0; h < g && e + h < b->n; h++)
      memcpy(p + (e + h) * step * z, by->some + h * by->pitch * z, (size_t)(all * z));
  }
}

// The same, past the caches where it is to be.
static void eini_lanes_out(const eini_lanes_by *by, eini_lanes_move *m, char *p,
                           const eini_lanes_range *b) {
  eini_lanes_leave(by, m, m->stage != NULL ? m->stage : p, b);
  if (m->stage != NULL)
    eini_tail_put(by->isa, m->carry, p, m->stage, b->n * m->step * by->size, 1, 0);
}

static void eini_lanes_begin(eini_lanes_move *m) {
  if (m->stage != NULL) memset(m->carry, 0, sizeof *m->carry);
}

// Blocks of an operand that comes from beyond the second cache are asked for.
static void eini_lanes_expect(const eini_cpu *cpu, const eini_lanes_by *by, int64_t size,
                              int64_t lanes, eini_lanes_move *m) {
  m->behind = size * m->piece.n * by->size > cpu->l2 ? lanes * m->step : 0;
}

static void eini_lanes_end(eini_lanes_move *m) {
  if (m->stage == NULL) return;
  eini_tail_send(m->carry);
  eini_stream_end();
}

// Shall an output of so many bytes go past the caches? Where its pieces follow each other.
static int eini_lanes_past(const eini_rated *cpu, const eini_lanes_move *m, double out,
                           double in) {
  return EINI_STREAM_LINE > 0 && m->step == m->piece.n && eini_cpu_past_with(cpu, out, in);
}

// A row of lanes, of all rows of A.
static void eini_lanes_row(const eini_lanes_job *j, eini_dir_tile *t, const char *q, char *out,
                           int64_t lanes) {
  const int64_t z = j->kern->size, vl = j->kern->lanes, vectors = (lanes + vl - 1) / vl;
  for (int64_t i = 0, l; i < vectors; i += l) {
    l = eini_dir_strip(vectors - i);
    t->q = q + i * vl * z, t->out = out + i * vl * z;
    t->last = (int)eini_min64(vl, lanes - (i + l - 1) * vl);
    t->prow = j->prow, t->orow = j->orow;
    for (int64_t m = 0; m < j->nm; m += t->rows, t->prow += t->rows, t->orow += t->rows)
      j->kern->tile[l - 1][eini_dir_tile_rows(j->kern, j->nm - m, l, &t->rows)](t);
  }
}

// Products of a block of n values in so many lanes, whole vectors: into rows of lanes, or to y.
static void eini_lanes_multiply(const eini_lanes_job *j, const char *a, char *y, int64_t n,
                                int64_t lanes) {
  const int64_t z = j->kern->size, row = j->nd * lanes;
  const ein_axes *k = &j->c->k;
  const int64_t inner = k->n > 0 ? k->extent[k->n - 1] : 1;
  for (int64_t h = 0; h < j->nk / inner; h++) j->qk[h] = h * inner * row;
  eini_dir_tile t = {j->nk / inner, inner, k->n > 0 ? j->a->k[0][k->n - 1] : 0, row,
                     j->pk, j->qk, NULL, NULL, a, NULL, NULL, 0, 0, 0};
  if (j->move[1].step == 1) {
    for (int64_t d = 0; d < j->nd; d++)
      eini_lanes_row(j, &t, j->move[0].block + d * lanes * z, y + j->od[d] * z, n);
    return;
  }
  for (int64_t i = 0; i < j->nm; i++) j->orow[i] = i * row;
  eini_lanes_row(j, &t, j->move[0].block, j->move[1].block, row);
}

// Offsets of n positions of some axes but one: of what is in place by its strides, else of rows of
// lanes.
static void eini_lanes_offsets(const ein_axes *x, int but, const int64_t *stride, int64_t n,
                               int64_t row, int in_place, int64_t *out) {
  int64_t extent[EINI_DIR_RANK], step[EINI_DIR_RANK];
  int axes = 0;
  for (int i = 0; i < x->n; i++)
    if (i != but) extent[axes] = x->extent[i], step[axes++] = stride[i];
  if (in_place) eini_gett_table(axes, extent, step, 1, 1, out);
  for (int64_t i = 0; i < n && !in_place; i++) out[i] = i * row;
}

static void eini_lanes_tables(eini_lanes_job *j) {
  const ein_axes *k = &j->c->k, *m = j->row[1];
  const eini_lanes_axes in = eini_lanes_piece_axes(j, 0);
  eini_lanes_enumerate(&in, &j->move[0].piece);
  eini_gett_table(k->n > 0 ? k->n - 1 : 0, k->extent, j->a->k[0], 1, 1, j->pk);
  eini_gett_table(m->n, m->extent, j->a->row[0], 1, 1, j->prow);
  if (j->move[1].step != 1) {
    const eini_lanes_axes to = eini_lanes_piece_axes(j, 1);
    eini_lanes_enumerate(&to, &j->move[1].piece);
    return;
  }
  eini_gett_table(m->n, m->extent, j->out[1], 1, 1, j->orow);
  eini_lanes_offsets(j->row[0], j->axis, j->out[0], j->nd, 0, 1, j->od);
}

// Values of the index behind one of which a granule is read (written) at once, as far as its runs
// are shorter than that.
static int64_t eini_lanes_behind(const eini_lanes_by *by, const eini_lanes_move *m) {
  int64_t least = by->granule;
  for (int64_t i = 0, run; i < m->piece.n; i += run) {
    run = eini_lanes_run(&m->piece, i);
    least = eini_min64(least, run);
  }
  return (by->granule - least + m->step - 1) / m->step;
}

static ein_status eini_lanes_run_part(const eini_cpu *cpu, const ein_contract *c,
                                      const ein_choice *choice, const ein_part *part,
                                      void *scratch) {
  eini_lanes_job j;
  int64_t at[EINI_DIR_RANK];
  if (!eini_lanes_take(&j, c, cpu->isa)) return EIN_ERR_INTERNAL;
  j.lanes = choice->state[EINI_LANES_BLOCK], j.past = (int)choice->state[EINI_LANES_PAST];
  eini_lanes_carve(&j, (char *)scratch);
  eini_lanes_begin(&j.move[1]);
  eini_lanes_expect(cpu, &j.by, j.size, j.lanes, &j.move[0]);
  eini_lanes_tables(&j);
  const int64_t *range = j.side ? part->n : part->m, z = j.kern->size, vl = j.kern->lanes;
  const int64_t from = j.axis == 0 ? range[0] / j.nd : 0;
  const int64_t to = j.axis == 0 ? range[1] / j.nd : j.size;
  const int64_t in = eini_lanes_behind(&j.by, &j.move[0]);
  const int64_t out = j.move[1].step == 1 ? 0 : eini_lanes_behind(&j.by, &j.move[1]);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_gett_odometer(&c->batch, b, at);
    const char *x = j.x->base[0] + eini_gett_dot(c->batch.n, at, j.x->batch[0]) * z;
    const char *a = j.a->base[0] + eini_gett_dot(c->batch.n, at, j.a->batch[0]) * z;
    char *y = c->out + eini_gett_dot(c->batch.n, at, c->out_batch) * z;
    eini_lanes_range r;
    for (int64_t e = from; e < to; e += r.n) {
      const int64_t safe = eini_min64(j.size - in, to - out) - e;
      r = eini_lanes_next(&j.by, 2, j.move, j.lanes, to - e, safe, vl);
      eini_lanes_in(&j.by, &j.move[0], x + e * j.move[0].step * z, &r);
      char *first = y + e * j.move[1].step * z;
      eini_lanes_multiply(&j, a, first, r.n, r.lanes);
      if (j.move[1].step != 1) eini_lanes_out(&j.by, &j.move[1], first, &r);
    }
  }
  eini_lanes_end(&j.move[1]);
  return EIN_OK;
}

// 1: a piece has so many reals at most, and all its steps are forward.
static int eini_lanes_short(const eini_lanes_move *m, const eini_lanes_axes *a, int64_t most) {
  if (m->piece.n < 1 || m->piece.n > most || m->step < 1) return 0;
  for (int i = 0; i < a->n; i++)
    if (a->stride[i] < 0 || (a->stride[i] == 0 && a->extent[i] > 1)) return 0;
  return 1;
}

// The same of the output's: one run of memory, and where that is less than a granule the next one
// follows.
static int eini_lanes_one_run(const eini_lanes_by *by, const eini_lanes_move *m,
                              const eini_lanes_axes *a, int64_t most) {
  int64_t run = 1;
  if (!eini_lanes_short(m, a, most) || m->step < m->piece.n) return 0;
  for (int i = a->n - 1; i >= 0; i--) {
    if (a->extent[i] > 1 && a->stride[i] != run) return 0;
    run *= a->extent[i];
  }
  return run >= by->granule || run == m->step;
}

static int eini_lanes_fits(const eini_lanes_job *j) {
  const eini_lanes_axes in = eini_lanes_piece_axes(j, 0), to = eini_lanes_piece_axes(j, 1);
  if (j->nm * j->nk > EINI_LANES_SMALL || j->size < 4 * j->kern->lanes) return 0;
  if (j->move[0].step == 1 || !eini_lanes_short(&j->move[0], &in, EINI_LANES_PIECE)) return 0;
  const int64_t to_n = j->move[1].piece.n;
  if (j->move[1].step == 1) return to_n >= 1 && to_n <= EINI_LANES_PIECE;
  return to_n >= 2 && eini_lanes_one_run(&j->by, &j->move[1], &to, EINI_LANES_PIECE);
}

// Plain products of what the vectors of either way hold.
static int eini_lanes_able(const ein_contract *c) {
  const ein_axes *const axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  for (int g = 0; g < 4; g++)
    if (axes[g]->n > EINI_DIR_RANK) return 0;
  if (c->type != EIN_F32 && c->type != EIN_F64) return 0;
  return c->pair == EIN_PAIR_SUM_MUL && c->plain_out && c->p.form == EIN_FORM_PLAIN &&
         c->q.form == EIN_FORM_PLAIN;
}

// Lanes of a block whose pieces have `each` bytes for one, half of the first cache, and so many
// vectors at least; a part of group g is some blocks. inner: positions of the group for a value of
// the index; 0: it is not cut.
static int64_t eini_lanes_blocks(const eini_rated *cpu, const eini_dir_kern *kern, int64_t each,
                                 int64_t least, int64_t size, int64_t inner, int g,
                                 ein_choice *choice) {
  const int64_t fit = eini_min64(cpu->is.l1 / 2 / each, 64) / kern->lanes;
  const int64_t lanes = eini_max64(eini_max64(fit, least), 1) * kern->lanes, some = 4 * lanes;
  for (int i = 0; i < 3; i++) choice->grid[i] = choice->unit[i] = 1;
  if (inner > 0) choice->unit[g] = some * inner, choice->grid[g] = (size + some - 1) / some;
  return lanes;
}

// A granule of a lane that is turned takes so many cycles, of two sizes of reals, and a tile of
// products as many beside its products.
#define EINI_LANES_TURN(size) ((size) == 8 ? 5.5 : 4.5)
#define EINI_LANES_TILE 25
#define EINI_LANES_WAIT 12e-9  // seconds for a line of A from beyond the second cache
#define EINI_LANES_REST 600  // and the last values of a problem, through memory of their own

// Granules of a piece.
static double eini_lanes_granules(const eini_lanes_by *by, const eini_lanes_move *m,
                                  const eini_lanes_axes *a) {
  double run = 1, runs = 1;
  if (by->apart && eini_lanes_joins(by, m, a)) return (double)m->piece.n / by->granule;
  for (int i = a->n - 1; i >= 0; i--) {
    if ((double)a->stride[i] == run && runs == 1) run *= (double)a->extent[i];
    else runs *= (double)a->extent[i];
  }
  return runs * ceil(run / by->granule);
}

// Seconds to find the reals of a piece where they have pages of their own, the next value's `step`
// further.
static double eini_lanes_pages(const eini_lanes_axes *a, int64_t step, int64_t size) {
  if (!eini_pages_apart(eini_least_step(a->n, a->extent, a->stride, step), size)) return 0;
  return EINI_PAGE_SECONDS * (double)eini_gett_product(a->n, a->extent);
}

// Seconds of reading and writing so many bytes of pieces. Lines that their stores reach, in short
// runs and at once, are waited for in caches too.
static double eini_lanes_moved(const eini_rated *cpu, double in, double out, int past) {
  return (in + out * (past ? 1 : 2)) / eini_cpu_bw(cpu, in + out);
}

static double eini_lanes_seconds(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const eini_lanes_axes axes[2] = {eini_lanes_piece_axes(j, 0), eini_lanes_piece_axes(j, 1)};
  const double all = batch * (double)j->size, z = (double)j->kern->size;
  const double wide = (double)j->nd * (double)j->lanes / (double)j->kern->lanes;
  const double rows = (double)j->nm, k = (double)j->nk;
  double turned = 0;
  for (int i = 0; i < 2; i++)
    if (j->move[i].step != 1) turned += eini_lanes_granules(&j->by, &j->move[i], &axes[i]);
  const double tiles = ceil(rows / 8) * ceil(wide / 3);
  const double one = fmax(2 * rows * k * wide * (double)j->kern->lanes /
                          eini_dir_peak(cpu, j->c->type) * (rows < 8 ? 1.5 : 1.1),
                          tiles * k * 4 / cpu->hz) + tiles * EINI_LANES_TILE / cpu->hz;
  const double each = turned * EINI_LANES_TURN(j->by.size) / cpu->hz + one / (double)j->lanes;
  const double made = batch * (double)eini_up(j->size, j->kern->lanes);
  const double rest = j->size % j->kern->lanes == 0 ? 0 : batch * EINI_LANES_REST / cpu->hz;
  const double busy = made * each + rest +
                      all * eini_lanes_pages(&axes[0], j->move[0].step, j->by.size);
  const double a = (double)(j->nm * j->nk) * z * batch;
  int own = 0;  // each problem has an A of its own
  for (int i = 0; i < j->c->batch.n; i++) own |= j->a->batch[0][i] != 0;
  const double wait = own && a > (double)cpu->is.l2 ? a / 64 * EINI_LANES_WAIT : 0;
  const double in = all * (double)j->move[0].piece.n * z;
  const double out = all * (double)j->move[1].piece.n * z;
  return eini_cpu_beside(busy, eini_lanes_moved(cpu, in, out, j->past), EINI_CPU_BESIDE) + wait;
}

// Bytes to and from the second cache: A is read again for each block where it does not fit.
static double eini_lanes_traffic(const eini_rated *cpu, const eini_lanes_job *j, double batch) {
  const double z = (double)j->by.size, a = (double)(j->nm * j->nk) * z, size = (double)j->size;
  const double all = size * (double)(j->move[0].piece.n + j->move[1].piece.n) * z;
  double moved = batch * (all + a);
  (void)eini_dir_missed(cpu, 0.5 * (double)cpu->is.l2, a,
                        batch * (ceil(size / (double)j->lanes) - 1) * a, &moved);
  return moved;
}

static int eini_lanes_plan(const eini_rated *cpu, const ein_contract *c, int width,
                           ein_choice *choice) {
  eini_lanes_job j;
  if (!eini_lanes_able(c) || !eini_lanes_take(&j, c, cpu->is.isa) || !eini_lanes_fits(&j)) return 0;
  const double batch = (double)eini_axes_size(&c->batch);
  const int64_t in = j.move[0].piece.n, out = j.move[1].piece.n;
  const double all = batch * (double)(j.size * j.by.size);
  j.past = eini_lanes_past(cpu, &j.move[1], all * (double)out, all * (double)in);
  j.lanes = eini_lanes_blocks(cpu, j.kern, (in + out * (1 + j.past) + 2) * j.by.size, 1, j.size,
                              j.axis == 0 ? j.nd : 0, 1 + j.side, choice);
  choice->grid[0] = eini_axes_size(&c->batch);
  choice->scratch = eini_lanes_carve(&j, NULL);
  choice->seconds = cpu->call + 1e-7 +
                    eini_lanes_seconds(cpu, &j, batch) / eini_dir_threads(choice, width);
  choice->traffic = eini_lanes_traffic(cpu, &j, batch);
  choice->state[EINI_LANES_BLOCK] = j.lanes, choice->state[EINI_LANES_PAST] = j.past;
  eini_cpu_name(choice, "lanes");
  return 1;
}

static const eini_cpu_family eini_lanes_family = {"lanes", eini_lanes_plan, eini_lanes_run_part};

// ================================================================================================
// >>lanes-batch  products whose batch steps over pieces
// An index of many values that both operands and the output have, as in ijk,ijk->ij: its values are
// lanes. What steps over pieces along it is turned, what lies along it is taken where it is; an
// operand that does so in pages of their own is copied, many lanes of a page at once.
// ================================================================================================

enum { EINI_LANES_P, EINI_LANES_Q, EINI_LANES_Y };

// Rows of a block, row-major, the last the fastest: m or n (of the output both), k, then d, the
// other indices of the batch.
typedef struct eini_lanes_three {
  const ein_contract *c;
  const eini_dir_kern *kern;
  eini_lanes_by by;
  int axis, past;              // of the batch; see EINI_LANES_PAST
  int64_t size, lanes;         // values of it; of a block
  int64_t nd, nk, nm, nn;
  eini_lanes_move move[3];     // step 1: in place, without a block, unless copied
  int64_t inner;               // the last axis of k; the others have tables
  int64_t *pk, *qk, *prow, *qrow, *ym, *yn, *d[3];
  char *base[3];               // of the lanes at hand
} eini_lanes_three;

static int eini_lanes_three_take(eini_lanes_three *j, const ein_contract *c, int isa) {
  memset(j, 0, sizeof *j);
  j->c = c, j->kern = eini_dir_kern_of(isa, c->type);
  j->axis = eini_lanes_longest(&c->batch);
  eini_lanes_by_of(isa, c->type, &j->by);
  if (j->axis < 0 || j->kern == NULL || j->by.turn == NULL) return 0;
  j->size = c->batch.extent[j->axis];
  j->nd = eini_axes_size(&c->batch) / eini_max64(j->size, 1);
  j->nk = eini_axes_size(&c->k), j->nm = eini_axes_size(&c->m), j->nn = eini_axes_size(&c->n);
  j->inner = c->k.n > 0 ? c->k.extent[c->k.n - 1] : 1;
  j->move[EINI_LANES_P].step = c->p.batch[0][j->axis];
  j->move[EINI_LANES_Q].step = c->q.batch[0][j->axis];
  j->move[EINI_LANES_Y].step = c->out_batch[j->axis];
  j->move[EINI_LANES_P].piece.n = j->nm * j->nk * j->nd;
  j->move[EINI_LANES_Q].piece.n = j->nn * j->nk * j->nd;
  j->move[EINI_LANES_Y].piece.n = j->nm * j->nn * j->nd;
  return 1;
}

static eini_lanes_axes eini_lanes_three_axes(const eini_lanes_three *j, int i) {
  const ein_contract *c = j->c;
  const int q = i == EINI_LANES_Q, y = i == EINI_LANES_Y;
  const ein_side *s = q ? &c->q : &c->p;
  eini_lanes_axes a;
  a.n = 0;
  eini_lanes_add(&a, &c->batch, y ? c->out_batch : s->batch[0], j->axis, 1);
  eini_lanes_add(&a, y ? &c->n : &c->k, y ? c->out_n : s->k[0], -1, j->nd);
  eini_lanes_add(&a, q ? &c->n : &c->m, y ? c->out_m : s->row[0], -1, j->nd * (y ? j->nn : j->nk));
  return a;
}

// Whether operand i is taken, or the output left, where it is.
static int eini_lanes_in_place(const eini_lanes_three *j, int i) {
  return j->move[i].step == 1 && !j->move[i].copied;
}

static size_t eini_lanes_three_carve(eini_lanes_three *j, char *base) {
  eini_lanes_axes axes[3];
  int64_t most = 0;
  size_t used = 0;
  for (int i = 0; i < 3; i++) axes[i] = eini_lanes_three_axes(j, i);
  j->by.apart = eini_lanes_apart(&j->by, j->lanes, 3, j->move, axes);
  j->pk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->qk = (int64_t *)(void *)eini_carve(base, &used, j->nk, 8);
  j->prow = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->ym = (int64_t *)(void *)eini_carve(base, &used, j->nm, 8);
  j->qrow = (int64_t *)(void *)eini_carve(base, &used, j->nn, 8);
  j->yn = (int64_t *)(void *)eini_carve(base, &used, j->nn, 8);
  for (int i = 0; i < 3; i++) {
    j->d[i] = (int64_t *)(void *)eini_carve(base, &used, j->nd, 8);
    if (eini_lanes_in_place(j, i)) continue;
    most = eini_max64(most, j->move[i].piece.n);
    eini_lanes_carve_move(&j->by, &j->move[i], j->lanes,
                          eini_lanes_joins(&j->by, &j->move[i], &axes[i]), base, &used);
  }
  if (j->past) eini_lanes_carve_past(&j->by, &j->move[EINI_LANES_Y], j->lanes, base, &used);
  eini_lanes_carve_by(&j->by, most, base, &used);
  return used;
}

// Lanes of a row of an operand's block: of those that are copied a vector's.
static int64_t eini_lanes_pitch(const eini_lanes_three *j, int i, int64_t lanes) {
  return j->move[i].copied ? j->kern->lanes : lanes;
}

// All tables, for blocks of so many lanes.
static void eini_lanes_three_tables(eini_lanes_three *j, int64_t lanes) {
  const ein_contract *c = j->c;
  const int64_t d = lanes, k = j->nd * d, y = j->nn * k;
  const int p = eini_lanes_in_place(j, EINI_LANES_P), q = eini_lanes_in_place(j, EINI_LANES_Q);
  const int to = eini_lanes_in_place(j, EINI_LANES_Y);
  const ein_axes outer = {c->k.n > 0 ? c->k.n - 1 : 0, c->k.extent};
  const int64_t nk = j->nk / j->inner;
  const int64_t dp = eini_lanes_pitch(j, EINI_LANES_P, lanes), kp = j->nd * dp;
  const int64_t dq = eini_lanes_pitch(j, EINI_LANES_Q, lanes), kq = j->nd * dq;
  eini_lanes_offsets(&outer, -1, c->p.k[0], nk, kp * j->inner, p, j->pk);
  eini_lanes_offsets(&outer, -1, c->q.k[0], nk, kq * j->inner, q, j->qk);
  eini_lanes_offsets(&c->m, -1, c->p.row[0], j->nm, j->nk * kp, p, j->prow);
  eini_lanes_offsets(&c->n, -1, c->q.row[0], j->nn, j->nk * kq, q, j->qrow);
  eini_lanes_offsets(&c->m, -1, c->out_m, j->nm, y, to, j->ym);
  eini_lanes_offsets(&c->n, -1, c->out_n, j->nn, k, to, j->yn);
  eini_lanes_offsets(&c->batch, j->axis, c->p.batch[0], j->nd, dp, p, j->d[EINI_LANES_P]);
  eini_lanes_offsets(&c->batch, j->axis, c->q.batch[0], j->nd, dq, q, j->d[EINI_LANES_Q]);
  eini_lanes_offsets(&c->batch, j->axis, c->out_batch, j->nd, d, to, j->d[EINI_LANES_Y]);
}

// Products of a block of n values: vectors times vectors.
static void eini_lanes_three_multiply(const eini_lanes_three *j, int64_t n, int64_t lanes) {
  const ein_contract *c = j->c;
  const int64_t z = j->by.size, vl = j->kern->lanes;
  const int last = c->k.n - 1, p_here = eini_lanes_in_place(j, EINI_LANES_P);
  const int q_here = eini_lanes_in_place(j, EINI_LANES_Q);
  const int64_t prow = j->nd * eini_lanes_pitch(j, EINI_LANES_P, lanes);
  const int64_t qrow = j->nd * eini_lanes_pitch(j, EINI_LANES_Q, lanes);
  const int64_t pk = last < 0 ? 0 : p_here ? c->p.k[0][last] : prow;
  const int64_t qk = last < 0 ? 0 : q_here ? c->q.k[0][last] : qrow;
  // From a vector to the next, in vectors' lanes.
  const int64_t pv = j->move[EINI_LANES_P].copied ? j->move[EINI_LANES_P].piece.n : 1;
  const int64_t qv = j->move[EINI_LANES_Q].copied ? j->move[EINI_LANES_Q].piece.n : 1;
  eini_dir_tile t = {j->nk / j->inner, j->inner, pk, qk, j->pk, j->qk, NULL, NULL, NULL, NULL,
                     NULL, 0, 0, 0};
  for (int64_t i = 0; i < n; i += vl)
    for (int64_t d = 0; d < j->nd; d++) {
      t.p = j->base[EINI_LANES_P] + (j->d[EINI_LANES_P][d] + i * pv) * z;
      t.last = (int)eini_min64(vl, n - i);
      // Rows of P stay in the first cache for all of Q.
      for (int64_t m = 0; m < j->nm; m += t.rows) {
        const int rows = eini_dir_tile_rows(j->kern, j->nm - m, 1, &t.rows);
        t.prow = j->prow + m, t.orow = j->ym + m;
        for (int64_t b = 0; b < j->nn; b++) {
          t.q = j->base[EINI_LANES_Q] + (j->d[EINI_LANES_Q][d] + j->qrow[b] + i * qv) * z;
          t.out = j->base[EINI_LANES_Y] + (j->d[EINI_LANES_Y][d] + j->yn[b] + i) * z;
          j->kern->lane[rows](&t);
        }
      }
    }
}

static ein_status eini_lanes_three_run(const eini_cpu *cpu, const ein_contract *c,
                                       const ein_choice *choice, const ein_part *part,
                                       void *scratch) {
  eini_lanes_three j;
  int64_t behind[3] = {0, 0, 0}, tabled = -1;
  if (!eini_lanes_three_take(&j, c, cpu->isa)) return EIN_ERR_INTERNAL;
  j.lanes = choice->state[EINI_LANES_BLOCK], j.past = (int)choice->state[EINI_LANES_PAST];
  for (int i = 0; i < 2; i++) j.move[i].copied = (int)(choice->state[EINI_LANES_COPIED] >> i & 1);
  eini_lanes_three_carve(&j, (char *)scratch);
  eini_lanes_begin(&j.move[EINI_LANES_Y]);
  for (int i = 0; i < 2; i++) eini_lanes_expect(cpu, &j.by, j.size, j.lanes, &j.move[i]);
  for (int i = 0; i < 3; i++) {
    if (eini_lanes_in_place(&j, i)) continue;
    const eini_lanes_axes axes = eini_lanes_three_axes(&j, i);
    eini_lanes_enumerate(&axes, &j.move[i].piece);
    if (!j.move[i].copied) behind[i] = eini_lanes_behind(&j.by, &j.move[i]);
  }
  const int64_t from = j.axis == 0 ? part->batch[0] / j.nd : 0;
  const int64_t to = j.axis == 0 ? part->batch[1] / j.nd : j.size, z = j.by.size;
  const char *in[2] = {c->p.base[0], c->q.base[0]};
  const int64_t safe = eini_min64(j.size - eini_max64(behind[0], behind[1]), to - behind[2]);
  eini_lanes_range r;
  for (int64_t e = from; e < to; e += r.n) {
    r = eini_lanes_next(&j.by, 3, j.move, j.lanes, to - e, safe - e, j.kern->lanes);
    if (r.lanes != tabled) eini_lanes_three_tables(&j, tabled = r.lanes);
    for (int i = 0; i < 2; i++) {
      const char *at = in[i] + e * j.move[i].step * z;
      j.base[i] = j.move[i].block;
      if (j.move[i].copied) eini_lanes_copy(&j.by, &j.move[i], at, r.n, j.kern->lanes);
      else if (j.move[i].step == 1) j.base[i] = (char *)(uintptr_t)at;
      else eini_lanes_in(&j.by, &j.move[i], at, &r);
    }
    eini_lanes_move *y = &j.move[EINI_LANES_Y];
    char *out = c->out + e * y->step * z;
    j.base[EINI_LANES_Y] = y->step == 1 ? out : y->block;
    eini_lanes_three_multiply(&j, r.n, r.lanes);
    if (y->step != 1) eini_lanes_out(&j.by, y, out, &r);
  }
  eini_lanes_end(&j.move[EINI_LANES_Y]);
  return EIN_OK;
}

// 1: something is turned or copied, and a quarter of the second cache has a vector of each of its
// reals. Says what is copied.
static int eini_lanes_three_fits(const eini_cpu *cpu, eini_lanes_three *j) {
  const int64_t most = cpu->l2 / 4 / (j->kern->lanes * j->by.size);
  int turned = 0;
  if (j->size < 2 * j->kern->lanes || j->nk < 1 || j->nm < 1 || j->nn < 1 || j->nd < 1) return 0;
  for (int i = 0; i < 3; i++) {
    const eini_lanes_axes axes = eini_lanes_three_axes(j, i);
    j->move[i].copied = i < EINI_LANES_Y && j->move[i].step == 1 && j->move[i].piece.n <= most &&
                        j->move[i].piece.n >= EINI_LANES_ROWS &&
                        eini_lanes_pages(&axes, INT64_MAX / j->by.size, j->by.size) > 0;
    turned += j->move[i].copied;
    if (j->move[i].step == 1) continue;
    if (i < EINI_LANES_Y ? !eini_lanes_short(&j->move[i], &axes, most)
                         : !eini_lanes_one_run(&j->by, &j->move[i], &axes, most))
      return 0;
    turned++;
  }
  return turned > 0;
}

#define EINI_LANES_COPY 5       // cycles of a vector that is copied
#define EINI_LANES_LOAD 1.25    // cycles of a product of vectors, whose rows are loaded for each

// Seconds of reading again what the first cache does not keep: rows of P's tile for each of Q's,
// and those for each tile.
static double eini_lanes_three_again(const eini_rated *cpu, const eini_lanes_three *j) {
  const double line = (double)(j->nk * j->kern->lanes * j->by.size);
  const double keep = 0.7 * (double)cpu->is.l1;
  const double vectors = ceil((double)j->size / j->kern->lanes) * (double)j->nd;
  const double rows = fmin((double)j->nm, (double)j->kern->rows), q = (double)j->nn * line;
  return eini_dir_missed(cpu, keep, (rows + 1) * line, vectors * (double)j->nm * q, NULL) +
         eini_dir_missed(cpu, keep, q, vectors * ceil((double)j->nm / rows) * q, NULL);
}

static double eini_lanes_three_seconds(const eini_rated *cpu, const eini_lanes_three *j) {
  const double size = (double)eini_up(j->size, j->kern->lanes), k = (double)j->nk;
  const double rows = (double)(j->nd * j->nn * j->nm);
  const double tiles = (double)(j->nd * j->nn) * ceil((double)j->nm / j->kern->rows);
  double turned = 0, copied = 0, bytes[2] = {0, 0}, pages = 0;
  for (int i = 0; i < 3; i++) {
    bytes[i == EINI_LANES_Y] += size * (double)j->move[i].piece.n * (double)j->by.size;
    const eini_lanes_axes axes = eini_lanes_three_axes(j, i);
    if (j->move[i].step == 1) {
      const double lanes = (double)(j->move[i].copied ? j->lanes : j->kern->lanes);
      pages += eini_lanes_pages(&axes, INT64_MAX / j->by.size, j->by.size) / lanes;
      copied += (double)(j->move[i].copied * j->move[i].piece.n);
      continue;
    }
    turned += eini_lanes_granules(&j->by, &j->move[i], &axes);
    pages += eini_lanes_pages(&axes, j->move[i].step, j->by.size);
  }
  const double one = fmax(rows * k * EINI_LANES_LOAD, tiles * k * 4) + tiles * EINI_LANES_TILE +
                     copied * EINI_LANES_COPY;
  const double busy =
      size * ((turned * EINI_LANES_TURN(j->by.size) + one / j->kern->lanes) / cpu->hz + pages) +
      eini_lanes_three_again(cpu, j);
  const double move = eini_lanes_moved(cpu, bytes[0], bytes[1], j->past);
  return eini_cpu_beside(busy, move, EINI_CPU_BESIDE);
}

// Bytes to and from the second cache: Q is read again for each tile of rows where a vector of each
// of its reals does not fit.
static double eini_lanes_three_traffic(const eini_rated *cpu, const eini_lanes_three *j) {
  const double size = (double)j->size * (double)j->by.size, rows = (double)j->kern->rows;
  const double q = (double)j->move[EINI_LANES_Q].piece.n;
  double moved = 0;
  for (int i = 0; i < 3; i++) moved += size * (double)j->move[i].piece.n;
  (void)eini_dir_missed(cpu, 0.5 * (double)cpu->is.l2,
                        (double)(j->nn * j->nk * j->kern->lanes * j->by.size),
                        (ceil((double)j->nm / rows) - 1) * size * q, &moved);
  return moved;
}

static int eini_lanes_three_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                 ein_choice *choice) {
  eini_lanes_three j;
  int64_t each = 0;
  if (!eini_lanes_able(c) || !eini_lanes_three_take(&j, c, cpu->is.isa)) return 0;
  if (!eini_lanes_three_fits(&cpu->is, &j)) return 0;
  const double all = (double)(j.size * j.by.size);
  j.past = j.move[EINI_LANES_Y].step != 1 &&
           eini_lanes_past(cpu, &j.move[EINI_LANES_Y], all * (double)j.move[EINI_LANES_Y].piece.n,
                           all * (double)(j.move[0].piece.n + j.move[1].piece.n));
  for (int i = 0; i < 3; i++)
    each += eini_lanes_in_place(&j, i) ? 0 : (j.move[i].piece.n + 1) * j.by.size;
  each += j.past * j.move[EINI_LANES_Y].piece.n * j.by.size;
  const int copied = j.move[0].copied | j.move[1].copied << 1;
  const int64_t least = copied ? eini_min64(4, cpu->is.l2 / 4 / (each * j.kern->lanes)) : 1;
  j.lanes = eini_lanes_blocks(cpu, j.kern, each, least, j.size, j.axis == 0 ? j.nd : 0, 0, choice);
  choice->scratch = eini_lanes_three_carve(&j, NULL);
  choice->seconds = cpu->call + 1e-7 +
                    eini_lanes_three_seconds(cpu, &j) / eini_dir_threads(choice, width);
  choice->traffic = eini_lanes_three_traffic(cpu, &j);
  choice->state[EINI_LANES_BLOCK] = j.lanes, choice->state[EINI_LANES_PAST] = j.past;
  choice->state[EINI_LANES_COPIED] = copied;
  eini_cpu_name(choice, "lanes of batch");
  return 1;
}
#undef EINI_LANES_TILE
#undef EINI_LANES_WAIT
#undef EINI_LANES_REST
#undef EINI_LANES_TURN
#undef EINI_LANES_LOAD
#undef EINI_LANES_COPY

static const eini_cpu_family eini_lanes_batch = {"lanes of batch", eini_lanes_three_plan,
                                                 eini_lanes_three_run};

// ================================================================================================
// >>families  kernels of contractions
// The least prediction wins; on a tie the family named first. Folds in order are the first's.
// ================================================================================================

static const eini_cpu_family *const eini_cpu_families[] = {
    &eini_gett_family, &eini_dir_tiny, &eini_dir_sums_family, &eini_dir_matvec, &eini_dir_dot,
    &eini_dir_inner_family, &eini_dir_small, &eini_dir_elements, &eini_dir_rows_family,
    &eini_moved_family, &eini_lanes_family, &eini_lanes_batch, &eini_gett_bf16, &eini_gett_i16,
    &eini_gett_i8, &eini_gett_amx_f, &eini_gett_amx_i, NULL};

#define EINI_FAMILY_WORD 39    // of ein_choice.state: the number of the family

// Of as many parts as a family allows, `width` in all: those with the least work in the largest.
static void eini_cpu_share(ein_choice *choice, int64_t width) {
  int64_t most[3], got[3] = {1, 1, 1};
  double least = 2;
  for (int i = 0; i < 3; i++) most[i] = eini_max64(choice->grid[i], 1);
  for (int64_t b = 1; b <= eini_min64(most[0], width); b++) {
    for (int64_t m = 1; m <= eini_min64(most[1], width / b); m++) {
      const int64_t n = eini_min64(most[2], width / b / m), g[3] = {b, m, n};
      double work = 1;
      for (int i = 0; i < 3; i++) work *= (double)((most[i] + g[i] - 1) / g[i]) / (double)most[i];
      if (work > least || (work == least && b <= got[0])) continue;
      least = work;
      memcpy(got, g, sizeof g);
    }
  }
  memcpy(choice->grid, got, sizeof got);
}

// Do elements, and bytes of them in a few copies, have counts? Only strides of 0 make them larger.
static int eini_cpu_countable(const ein_contract *c) {
  const ein_axes *const axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  double work = 1;
  for (int g = 0; g < 4; g++)
    for (int i = 0; i < axes[g]->n; i++) work *= (double)axes[g]->extent[i];
  return work < (double)(INT64_MAX / 1024);
}

static int eini_cpu_contract_plan(const eini_rated *m, const ein_contract *c, int width, int nth,
                                  ein_choice *choice) {
  ein_choice one;
  int found = 0, able = 0;
  if (!eini_cpu_countable(c)) return 0;
  for (int i = 0; eini_cpu_families[i] != NULL && (i == 0 || !c->ordered); i++) {
    memset(&one, 0, sizeof one);
    if (!eini_cpu_families[i]->plan(m, c, width, &one)) continue;
    if (nth >= 0 && able++ != nth) continue;
    if (found && one.seconds >= choice->seconds) continue;
    *choice = one;
    choice->state[EINI_FAMILY_WORD] = i;
    found = 1;
  }
  if (!found && nth >= 0) found = eini_gett_other(m, c, width, nth - able, choice);
  if (!found) return 0;
  eini_cpu_share(choice, width);
  if (eini_cpu_families[choice->state[EINI_FAMILY_WORD]] == &eini_gett_family)
    eini_gett_share(&m->is, c, choice);
  return 1;
}

static ein_status eini_cpu_contract_run(const eini_cpu *m, const ein_contract *c,
                                        const ein_choice *choice, const ein_part *part,
                                        void *scratch) {
  return eini_cpu_families[choice->state[EINI_FAMILY_WORD]]->run(m, c, choice, part, scratch);
}

// ================================================================================================
// >>measure  what only this backend can measure
// Cycles, arithmetic of an instruction set, from which size on transposes are faster past the
// caches, and whether pages are read together. The best of several short runs each.
// ================================================================================================

typedef struct eini_clock {
  double (*now_fn)(void *user);
  void *user;
} eini_clock;

static double eini_clock_now(const eini_clock *c) { return c->now_fn(c->user); }

#define EINI_MEASURE_BYTES ((size_t)64 << 20)

#define EINI_KERNELS EINI_KERNELS_PEAK
#define EINI_VEC EINI_SD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_SS
#include "einsum_cpu_kernels.h"
#if EINI_CPU_X86
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#endif
#if EINI_CPU_DOTS  // as many lanes of sums, each of two or four products
#define EINI_VEC EINI_ZB
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZU
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_DOTS
#undef EINI_KERNELS

typedef struct eini_peak_row {
  double (*f64)(int64_t n, double seed), (*f32)(int64_t n, double seed);
  int bytes;                   // of a vector; 0: of one element
} eini_peak_row;

static const eini_peak_row eini_peaks[EINI_ISA_COUNT] = {
    {eini_peak_sd, eini_peak_ss, 0},
#if EINI_CPU_NEON
    {eini_peak_nd, eini_peak_ns, 16},
#else
    {NULL, NULL, 0},
#endif
#if EINI_CPU_X86
    {eini_peak_yd, eini_peak_ys, 32},
    {eini_peak_zd, eini_peak_zs, 64}};
#else
    {NULL, NULL, 0},
    {NULL, NULL, 0}};
#endif

// Cycles per second from a chain of multiplications of three cycles each.
static double eini_measure_hz(const eini_clock *now, volatile uint64_t *sink) {
  double best = 1;
  for (int r = 0; r < 4; r++) {
    uint64_t x = *sink | 1, y = x;
    double t = eini_clock_now(now);
    for (int i = 0; i < 200000; i++) {
      x *= y;
#if defined(__GNUC__) || defined(__clang__)
      __asm__ volatile("" : "+r"(x));
#endif
    }
    t = eini_clock_now(now) - t;
    *sink = x;
    best = t > 0 && t < best ? t : best;
  }
  return 3 * 200000 / best;
}

// The least time of so many runs of n steps.
static double eini_measure_least(const eini_clock *now, double (*fn)(int64_t n, double seed),
                                 int64_t n, int runs) {
  volatile double sink = 0;
  double best = INFINITY;
  for (int r = 0; r < runs; r++) {
    double t = eini_clock_now(now);
    sink = sink + fn(n, 0.25);
    t = eini_clock_now(now) - t;
    if (t > 0) best = fmin(best, t);
  }
  return best;
}

static double eini_measure_peak(const eini_clock *now, double (*fn)(int64_t n, double seed),
                                int lanes) {
  const int64_t n = 60000;
  const double best = fmin(eini_measure_least(now, fn, n, 4), 1);
  return 2.0 * 12 * lanes * (double)n / best;
}

// Seconds of a transpose of n rows of n numbers of 8 bytes, past the caches or not.
static double eini_measure_turn(const eini_rated *m, const eini_clock *now, int64_t n, char *mem,
                                int stream) {
  const int64_t extent[2] = {n, n}, src[2] = {1, n}, dst[2] = {n, 1};
  const ein_copy c = {2, extent, src, dst, 8, mem + EINI_COPY_BUFFER,
                      mem + EINI_COPY_BUFFER + 8 * n * n, NULL, NULL};
  double best = 1;
  for (int r = 0; r < 2; r++) {
    double t = eini_clock_now(now);
    eini_copy_go(m->is.isa, &c, stream, mem);
    if (stream) eini_stream_end();
    t = eini_clock_now(now) - t;
    best = t > 0 && t < best ? t : best;
  }
  return best;
}

// What is written is read later, and copies that turn nothing gain less than transposes: outputs
// stay in the last cache while they and their operands take half of a share that was found to be
// there, which reads so many times as fast as memory.
#define EINI_MEASURE_REAL 1.5
static double eini_measure_stays(const ein_rates *r) {
  const double cache = r->read_bw[EIN_L3], memory = r->read_bw[EIN_MEMORY];
  return memory > 0 && cache > EINI_MEASURE_REAL * memory ? r->cache_bytes[EIN_L3] / 4 : 0;
}
#undef EINI_MEASURE_REAL

// The size from which on transposes are faster past the caches, by steps of 2 of the bytes; beyond
// what the memory holds, what the caches are said to be.
static double eini_measure_past(const eini_rated *m, const eini_clock *now, const ein_rates *r,
                                char *mem) {
  const double said = (double)m->is.l3 * m->is.width / 2 / m->is.l3s;
  double from = 0;
  if (EINI_STREAM_LINE == 0) return said;
  for (int64_t side = 256, wins = 0; wins < 3; side = side * 181 / 128) {
    const int64_t n = side | 8;  // no high power of two
    if (16 * n * n + EINI_COPY_BUFFER > (int64_t)EINI_MEASURE_BYTES) break;
    const double keep = eini_measure_turn(m, now, n, mem, 0);
    wins = eini_measure_turn(m, now, n, mem, 1) < keep ? wins + 1 : 0;
    if (wins == 1) from = 8 * (double)n * (double)n / 1.4;
    if (wins == 0) from = 0;
  }
  from = from > 0 ? from : said > 32e6 ? said : 32e6;
  return fmax(from, eini_measure_stays(r));
}

// How many pages of long runs are read together where that is fastest: one, or four.
static double eini_measure_pages(const eini_rated *m, const eini_clock *now, const char *mem) {
  const eini_dir_kern *kern = eini_dir_kern_of(m->is.isa, EIN_F64);
  const eini_dir_sums_kern *k = eini_dir_sums_kern_of(kern, EIN_PAIR_SUM_MUL);
  const int64_t n = (int64_t)EINI_MEASURE_BYTES / kern->size;
  double sums[8] = {0}, best[2] = {INFINITY, INFINITY};
  for (int r = 0; r < 6; r++) {
    double t = eini_clock_now(now);
    k->along(1, 0, 0, n, r % 2 ? EINI_PAGE_BYTES : 0, mem, sums);
    t = eini_clock_now(now) - t;
    if (t > 0) best[r % 2] = fmin(best[r % 2], t);
  }
  return best[1] < best[0] ? 4 : 1;
}

#if EINI_CPU_AMX
// The same of tiles: four sums, each of 16 x 16 elements, of `deep` products a step.
EINI_TAMX static double eini_measure_tiles(const eini_clock *now, int bf16, int deep) {
  double best = 1;
  const int64_t n = 20000;
  eini_gett_amx_begin();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(6);
  for (int r = 0; r < 4; r++) {
    double t = eini_clock_now(now);
    for (int64_t i = 0; i < n && bf16; i++) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 6);
      _tile_dpbf16ps(2, 4, 6);
      _tile_dpbf16ps(3, 4, 6);
    }
    for (int64_t i = 0; i < n && !bf16; i++) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 6);
      _tile_dpbssd(2, 4, 6);
      _tile_dpbssd(3, 4, 6);
    }
    t = eini_clock_now(now) - t;
    best = t > 0 && t < best ? t : best;
  }
  eini_gett_amx_end();
  return 2.0 * 4 * 256 * deep * (double)n / best;
}
#endif  // EINI_CPU_AMX

// Dot products of bf16 and of i8, of what the machine has.
static void eini_measure_dots(const eini_rated *m, const eini_clock *now, ein_rates *r) {
  r->flops_bf16 = r->flops_i8 = r->flops_f32;
#if EINI_CPU_DOTS
  if (m->is.has & EINI_HAS_BF16) r->flops_bf16 = eini_measure_peak(now, eini_peak_zb, 2 * 16);
  if (m->is.has & EINI_HAS_VNNI) r->flops_i8 = eini_measure_peak(now, eini_peak_zu, 4 * 16);
#endif
#if EINI_CPU_AMX
  if (m->is.has & EINI_HAS_AMX_BF16) r->flops_bf16 = eini_measure_tiles(now, 1, 32);
  if (m->is.has & EINI_HAS_AMX_I8) r->flops_i8 = eini_measure_tiles(now, 0, 64);
#endif
  (void)m, (void)now;
}

// ---- while a machine is opened ----

#if EINI_CPU_X86
EINI_UNUSED static double eini_open_ticks(void *user) {
  (void)user;
  return (double)__rdtsc();
}

// Do steps of fn take more than `times` as long as those of other? What else the core does delays
// either: they take turns, for microseconds where the answer is clear, at most some milliseconds.
EINI_UNUSED static int eini_open_slower(double (*fn)(int64_t n, double seed),
                                        double (*other)(int64_t n, double seed), double times) {
  const eini_clock now = {eini_open_ticks, NULL};
  double one = INFINITY, two = INFINITY;
  for (int r = 0; r < 64; r++) {
    one = fmin(one, eini_measure_least(&now, fn, 256, 4));
    two = fmin(two, eini_measure_least(&now, other, 256, 4));
    if (r >= 4 && fabs(log2(one / (times * two))) > 0.25) break;
  }
  return one > times * two;
}
#endif  // EINI_CPU_X86

// Corrects what the table says of 512-bit operations, which take as long as others or twice as
// long, and of dot products of bf16, which take as long as an FMA or four times: every run must
// give the same answer. Without optimization the kernels' own loads take longest, and nothing is
// timed. All else is believed until it is calibrated.
static void eini_cpu_open(eini_rated *m) {
  const int dots = (m->is.has & EINI_HAS_BF16) && !(m->is.has & EINI_HAS_AMX_BF16);
  const int bytes = (m->is.has & EINI_HAS_VNNI) && !(m->is.has & EINI_HAS_AMX_I8);
  int slow = 0;
  if (m->is.isa != EINI_ISA_AVX512) return;
#if EINI_CPU_X86 && defined(__OPTIMIZE__)
  m->is.halves = eini_open_slower(eini_peak_zs, eini_peak_ys, 1.414);
#if EINI_CPU_DOTS
  slow = dots && eini_open_slower(eini_peak_zb, eini_peak_zs, 2);
#endif  // EINI_CPU_DOTS
#endif  // EINI_CPU_X86 && __OPTIMIZE__
  const double part = m->is.halves ? 0.5 : 1;
  m->peak_f64 *= part, m->peak_f32 *= part;
  if (!(m->is.has & EINI_HAS_AMX_BF16)) m->peak_bf16 = m->peak_f32;
  if (!(m->is.has & EINI_HAS_AMX_I8)) m->peak_i8 = m->peak_f32;
  if (dots) m->peak_bf16 *= slow ? 0.5 : 2;
  if (bytes) m->peak_i8 *= 4;
}

static void eini_cpu_measure(const eini_rated *m, const eini_clock *now, char *mem,
                             ein_rates *r) {
  volatile uint64_t sink = 3;
  const eini_peak_row *p = &eini_peaks[m->is.isa];
  r->hz = eini_measure_hz(now, &sink);
  r->flops_f64 = eini_measure_peak(now, p->f64, p->bytes > 0 ? p->bytes / 8 : 1);
  r->flops_f32 = eini_measure_peak(now, p->f32, p->bytes > 0 ? p->bytes / 4 : 1);
  eini_measure_dots(m, now, r);
  r->stream_bytes = eini_measure_past(m, now, r, mem) * m->is.l3s;
  r->pages = eini_measure_pages(m, now, mem);
}

// ================================================================================================
// >>cpu-public  the provider and what a caller sees
// Thin functions around the sections above.
// ================================================================================================

struct ein_cpu {
  eini_rated machine;          // runs are given machine.is only
  eini_pool pool;
  ein_kernels kernels;
  ein_allocator allocator;
  size_t bytes;
  int huge;
  char apart[EINI_POOL_APART];
  int64_t packed;              // see eini_cpu
  char apart_end[EINI_POOL_APART];
  char name[sizeof ((ein_rates *)NULL)->machine];
};

static void eini_cpu_take(double *own, double given) {
  if (given > 0) *own = given;
}

// Bytes per second of stores where a copy reads and writes at `copy`: not more than of loads.
static double eini_cpu_store_bw(double read, double copy) {
  return copy > 0 && 2 / copy > 2 / read ? 1 / (2 / copy - 1 / read) : read;
}

// The rates to predict from: those given with a question, or the table's. What a run of the larger
// families begins with is the table's: calls are measured with a product that runs without.
static const eini_rated *eini_cpu_rated(void *user, const ein_rates *r, eini_rated *room) {
  const ein_cpu *cpu = (const ein_cpu *)user;
  if (r == NULL) return &cpu->machine;
  *room = cpu->machine;
  eini_cpu_take(&room->hz, r->hz);
  eini_cpu_take(&room->peak_f64, r->flops_f64);
  eini_cpu_take(&room->peak_f32, r->flops_f32);
  eini_cpu_take(&room->peak_bf16, r->flops_bf16);
  eini_cpu_take(&room->peak_i8, r->flops_i8);
  eini_cpu_take(&room->read_bw, r->read_bw[EIN_MEMORY]);
  eini_cpu_take(&room->copy_bw, r->copy_bw[EIN_MEMORY]);
  eini_cpu_take(&room->l3_bw, fmax(r->read_bw[EIN_L3], r->copy_bw[EIN_L3]));
  eini_cpu_take(&room->l2_bw, fmax(room->l3_bw, fmax(r->read_bw[EIN_L2], r->copy_bw[EIN_L2])));
  room->l3_store = eini_cpu_store_bw(room->l3_bw, r->copy_bw[EIN_L3]);
  room->l2_store = eini_cpu_store_bw(room->l2_bw, r->copy_bw[EIN_L2]);
  eini_cpu_take(&room->past, r->stream_bytes / room->is.l3s);
  eini_cpu_take(&room->pages, r->pages);
  return room;
}

static int eini_slot_contract_plan(void *user, const ein_contract *c, int width, int nth,
                                   ein_choice *choice) {
  eini_rated room;
  return eini_cpu_contract_plan(eini_cpu_rated(user, c->rates, &room), c, width, nth, choice);
}
static ein_status eini_slot_contract_run(void *user, const ein_contract *c,
                                         const ein_choice *choice, const ein_part *part,
                                         void *scratch) {
  return eini_cpu_contract_run(&((const ein_cpu *)user)->machine.is, c, choice, part, scratch);
}
static int eini_slot_copy_plan(void *user, const ein_copy *c, int width, int nth,
                               ein_choice *choice) {
  eini_rated room;
  return eini_cpu_copy_plan(eini_cpu_rated(user, c->rates, &room), c, width, nth, choice);
}
static ein_status eini_slot_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                                     void *scratch) {
  return eini_cpu_copy_run(&((const ein_cpu *)user)->machine.is, c, choice, scratch);
}
static ein_chunk_fn eini_slot_chunk(void *user, int op, ein_dtype type) {
  return eini_cpu_chunk_fn(((const ein_cpu *)user)->machine.is.isa, op, type);
}
static void (*eini_slot_across(void *user, int fold, ein_dtype type))(int64_t, const void *,
                                                                      void *) {
  return eini_cpu_across_fn(((const ein_cpu *)user)->machine.is.isa, fold, type);
}
static int eini_slot_map_plan(void *user, const ein_map *m, int width, int nth,
                              ein_choice *choice) {
  eini_rated room;
  return eini_cpu_map_plan(eini_cpu_rated(user, m->rates, &room), m, width, nth, choice);
}
static ein_status eini_slot_map_run(void *user, const ein_map *m, const ein_choice *choice,
                                    void *scratch) {
  return eini_cpu_map_run(&((const ein_cpu *)user)->machine.is, m, choice, scratch);
}
static void eini_slot_stream(void *user, size_t bytes, const void *src, void *dst) {
  if (bytes == 0) eini_stream_end();
  else eini_stream_row(((const ein_cpu *)user)->machine.is.isa, bytes, (const char *)src,
                       (char *)dst);
}

// Memory for contexts: blocks of some pages of 2 MiB begin at one and ask for such, where there is
// a way to ask. All of it is of the cpu's allocator, whose block is kept just below.
#define EINI_CPU_HUGE ((size_t)2 << 20)

static void *eini_cpu_huge_alloc(size_t size, size_t align, void *user) {
  const ein_allocator *al = &((const ein_cpu *)user)->allocator;
  if (size < EINI_CPU_HUGE) return al->alloc_fn(size, align, al->user);
  if (size > SIZE_MAX - EINI_CPU_HUGE - 64) return NULL;
  void *raw = al->alloc_fn(size + EINI_CPU_HUGE + 64, 64, al->user);
  if (raw == NULL) return NULL;
  char *p = (char *)raw + 64;
  p += (EINI_CPU_HUGE - (uintptr_t)p % EINI_CPU_HUGE) % EINI_CPU_HUGE;
  memcpy(p - sizeof raw, &raw, sizeof raw);
#if defined(__linux__) && defined(SYS_madvise) && (EINI_CPU_X86 || EINI_CPU_NEON)
  syscall(SYS_madvise, p, size / EINI_CPU_HUGE * EINI_CPU_HUGE, 14);  // MADV_HUGEPAGE, which strict
#endif                                                                // modes hide
  return p;
}

static void eini_cpu_huge_free(void *ptr, size_t size, void *user) {
  const ein_allocator *al = &((const ein_cpu *)user)->allocator;
  void *raw = ptr;
  if (ptr != NULL && size >= EINI_CPU_HUGE) memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  al->free_fn(raw, size < EINI_CPU_HUGE ? size : size + EINI_CPU_HUGE + 64, al->user);
}

// What planners see of the table.
static void eini_cpu_rates(ein_cpu *cpu) {
  const eini_rated *m = &cpu->machine;
  const double past = m->past * m->is.l3s;
  cpu->kernels.stream_bytes = past < (double)(SIZE_MAX / 2) ? (size_t)past : SIZE_MAX / 2;
  ein_rates *r = &cpu->kernels.rates;
  r->flops_f64 = m->peak_f64;
  r->flops_f32 = m->peak_f32;
  r->flops_bf16 = m->peak_bf16;
  r->flops_i8 = m->peak_i8;
  r->read_bw[EIN_L1] = r->read_bw[EIN_L2] = r->copy_bw[EIN_L1] = r->copy_bw[EIN_L2] = m->l2_bw;
  r->read_bw[EIN_L3] = r->copy_bw[EIN_L3] = m->l3_bw;
  r->read_bw[EIN_MEMORY] = m->read_bw;
  r->copy_bw[EIN_MEMORY] = m->copy_bw;
  r->cache_bytes[EIN_L1] = (double)m->is.l1;
  r->cache_bytes[EIN_L2] = (double)m->is.l2;
  r->cache_bytes[EIN_L3] = (double)m->is.l3;
  r->fast_bytes = (double)m->is.l2;
  r->fused = EINI_ELEM_FUSED;
  r->hz = m->hz;
}

static void eini_slot_measure(void *user, double (*now_fn)(void *user), void *now_user,
                              void *memory, size_t bytes, ein_rates *r) {
  const eini_clock now = {now_fn, now_user};
  if (bytes >= EINI_MEASURE_BYTES)
    eini_cpu_measure(&((const ein_cpu *)user)->machine, &now, (char *)memory, r);
}

static void eini_cpu_provide(ein_cpu *cpu) {
  ein_kernels *k = &cpu->kernels;
  k->name = "cpu";
  k->user = cpu;
  k->contract_plan = eini_slot_contract_plan;
  k->contract_run = eini_slot_contract_run;
  k->ordered = 1;
  k->copy_plan = eini_slot_copy_plan;
  k->copy_run = eini_slot_copy_run;
  k->chunk_fn = eini_slot_chunk;
  k->across_fn = eini_slot_across;
  k->map_plan = eini_slot_map_plan;
  k->map_run = eini_slot_map_run;
  if (EINI_STREAM_LINE > 0) k->stream_fn = eini_slot_stream;
  k->measure_fn = eini_slot_measure;
  k->machine = cpu->name;
  eini_cpu_machine(&cpu->machine.is, cpu->name, sizeof cpu->name);
  eini_cpu_rates(cpu);
}

static ein_status eini_cpu_new(const ein_cpu_desc *desc, const ein_allocator *allocator,
                               ein_cpu **out) {
  eini_rated m;
  uint64_t mask[EINI_CPU_MASK_WORDS];
  memset(&m, 0, sizeof m);
  const int online = desc->threads > 0 ? 0 : eini_cpu_allowed(mask);
  m.is.width = desc->threads > 0 ? desc->threads : eini_cpu_threads("", mask, online);
  if (!EINI_CPU_THREADS) m.is.width = 1;
  if (!eini_cpu_detect(&m, desc->isa)) return EIN_ERR_UNSUPPORTED;
  eini_cpu_open(&m);
  size_t bytes = sizeof(ein_cpu);
#if EINI_CPU_THREADS
  bytes += eini_pool_bytes(m.is.width);
#endif
  ein_cpu *cpu = (ein_cpu *)allocator->alloc_fn(bytes, 64, allocator->user);
  if (cpu == NULL) return EIN_ERR_NO_MEMORY;
  memset(cpu, 0, bytes);
  cpu->machine = m;
  cpu->allocator = *allocator;
  cpu->bytes = bytes;
  cpu->huge = desc->huge_pages;
  cpu->machine.is.packed = &cpu->packed;
#if EINI_CPU_THREADS
  eini_pool_init(&cpu->pool, m.is.width, desc->pin, (char *)(cpu + 1));
  cpu->machine.is.width = cpu->pool.width;
#else
  cpu->pool.width = 1;
#endif
  eini_cpu_provide(cpu);
  *out = cpu;
  return EIN_OK;
}

EIN_API ein_status ein_cpu_create(const ein_cpu_desc *desc, const ein_allocator *allocator,
                                  ein_cpu **cpu) {
  ein_cpu_desc none;
  ein_allocator plain;
  memset(&none, 0, sizeof none);
  plain.alloc_fn = eini_default_alloc;
  plain.free_fn = eini_default_free;
  plain.user = NULL;
  if (cpu == NULL) return EIN_ERR_ARGUMENT;
  *cpu = NULL;
  if (desc == NULL) desc = &none;
  if (desc->threads < 0 || desc->threads > 4096) return EIN_ERR_ARGUMENT;
  if (allocator == NULL || (allocator->alloc_fn == NULL && allocator->free_fn == NULL))
    allocator = &plain;
  if (allocator->alloc_fn == NULL || allocator->free_fn == NULL) return EIN_ERR_ARGUMENT;
  return eini_cpu_new(desc, allocator, cpu);
}

EIN_API void ein_cpu_destroy(ein_cpu *cpu) {
  if (cpu == NULL) return;
#if EINI_CPU_THREADS
  eini_pool_end(&cpu->pool);
#endif
  ein_allocator a = cpu->allocator;
  a.free_fn(cpu, cpu->bytes, a.user);
}

EIN_API const ein_kernels *ein_cpu_kernels(const ein_cpu *cpu) {
  return cpu == NULL ? NULL : &cpu->kernels;
}

EIN_API ein_executor ein_cpu_executor(ein_cpu *cpu) {
  ein_executor e;
  memset(&e, 0, sizeof e);
  if (cpu == NULL) return e;
  e.width = cpu->pool.width;
  e.parallel_for = eini_pool_for;
  e.user = &cpu->pool;
  return e;
}

EIN_API ein_status ein_cpu_use(ein_cpu *cpu, ein_ctx_desc *desc) {
  const int room = desc == NULL ? 0 : (int)(sizeof desc->use / sizeof *desc->use);
  if (cpu == NULL || desc == NULL || desc->nuse < 0) return EIN_ERR_ARGUMENT;
  if (desc->nuse >= room) return EIN_ERR_TOO_LARGE;
  for (int i = desc->nuse++; i > 0; i--) desc->use[i] = desc->use[i - 1];
  desc->use[0] = &cpu->kernels;
  desc->executor = ein_cpu_executor(cpu);
  if (!cpu->huge || desc->allocator.alloc_fn != NULL) return EIN_OK;
  desc->allocator.alloc_fn = eini_cpu_huge_alloc;
  desc->allocator.free_fn = eini_cpu_huge_free;
  desc->allocator.user = cpu;
  return EIN_OK;
}

EIN_API void ein_cpu_counts_get(const ein_cpu *cpu, ein_cpu_counts *n) {
  if (n == NULL) return;
  memset(n, 0, sizeof *n);
  if (cpu == NULL) return;
#if EINI_CPU_THREADS
  const eini_pool *p = &cpu->pool;
  n->jobs = __atomic_load_n(&p->jobs, __ATOMIC_RELAXED);
  n->parts = __atomic_load_n(&p->parts, __ATOMIC_RELAXED);
  for (int i = 0; i < p->width; i++) {
    n->moved += __atomic_load_n(&p->lane[i].moved, __ATOMIC_RELAXED);
    n->wakes += __atomic_load_n(&p->lane[i].wakes, __ATOMIC_RELAXED);
  }
  n->packed = __atomic_load_n(&cpu->packed, __ATOMIC_RELAXED);
#else
  n->packed = cpu->packed;
#endif
}

EIN_API int ein_cpu_counts_of(const ein_ctx *ctx, ein_cpu_counts *n) {
  for (int i = 0; ctx != NULL && i < ctx->nkernels; i++) {
    if (ctx->kernels[i]->contract_run != eini_slot_contract_run) continue;
    ein_cpu_counts_get((const ein_cpu *)ctx->kernels[i]->user, n);
    return 1;
  }
  return 0;
}

EIN_API size_t ein_cpu_info(const ein_cpu *cpu, char *buf, size_t size) {
  if (cpu == NULL) return 0;
  const eini_rated *m = &cpu->machine;
  const int has = m->is.has;
  int n = snprintf(
      buf, size,
      "instruction set: %s (best here: %s)\ndot products:%s%s%s%s%s\nthreads: %d\n"
      "caches per core: L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\nrates by table:\n"
      "frequency: %.2f GHz\npeak per core: %.1f GFLOP/s f64, %.1f GFLOP/s f32, "
      "%.1f GFLOP/s bf16, %.1f GOP/s i8\n"
      "memory per core: read %.1f GB/s, copy %.1f GB/s\ncaches: L2 %.0f GB/s, L3 %.0f GB/s\n"
      "past the caches: outputs from %.1f MiB on\n",
      eini_isa_names[m->is.isa], eini_isa_names[eini_isa_best()],
      has & EINI_HAS_BF16 ? " avx512_bf16" : "", has & EINI_HAS_VNNI ? " avx512_vnni" : "",
      has & EINI_HAS_AMX_BF16 ? " amx_bf16" : "", has & EINI_HAS_AMX_I8 ? " amx_int8" : "",
      has == 0 ? " none" : "", m->is.width,
      (long long)(m->is.l1 >> 10),
      (long long)(m->is.l2 >> 10), (long long)(m->is.l3 >> 10),
      m->hz * 1e-9, m->peak_f64 * 1e-9, m->peak_f32 * 1e-9, m->peak_bf16 * 1e-9,
      m->peak_i8 * 1e-9, m->read_bw * 1e-9, m->copy_bw * 1e-9,
      m->l2_bw * 1e-9, m->l3_bw * 1e-9, m->past * m->is.l3s / 1048576);
  return n < 0 ? 0 : (size_t)n;
}

EINI_UNUSED static double eini_cpu_clock(void *user) {
  (void)user;
  return eini_cpu_now();
}

// What EINSUM_CPU brings into a ctx.
EINI_UNUSED static ein_status eini_cpu_start(const ein_allocator *al, ein_ctx_desc *desc,
                                             void **own) {
  ein_cpu *cpu;
  EINI_TRY(ein_cpu_create(NULL, al, &cpu));
  *own = cpu;
  if (desc->now_fn == NULL && EINI_CPU_POSIX) desc->now_fn = eini_cpu_clock;
  return ein_cpu_use(cpu, desc);
}

EINI_UNUSED static void eini_cpu_end(void *own) { ein_cpu_destroy((ein_cpu *)own); }

#endif  // EINSUM_IMPLEMENTATION
