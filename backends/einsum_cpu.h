// einsum_cpu.h - v0.1.0 - threads and vector kernels for einsum.h on CPUs - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_cpu.h"
//
// Link with -lm -pthread. Then let a ctx use it:
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
// Manual: WHAT IT GIVES, INSTRUCTION SETS, THREADS, CALIBRATION, MEMORY
//
//   >>cpu-api         public types and functions
//   >>cpu-shared      what the sections below share
//   >>cpu             instruction sets, caches and cores of this machine
//   >>pool            threads that sleep when there is nothing to do
//   >>stream          rows of bytes past the caches
//   >>tiles           transposes in registers
//   >>copy            permuted copies
//   >>chunks          operations of expressions and folds, per instruction set
//   >>families        kernels of contractions
//   >>calibrate       rates of this machine, measured and as text
//   >>cpu-public      the provider and what a caller sees
//
// WHAT IT GIVES
//
// An executor (a pool of threads) and a provider of kernels: contractions, permuted copies,
// element-wise operations and folds. A plan takes from it what it predicts to be faster. Results
// are those of the portable kernels up to the order of rounding in sums; element-wise operations
// and folds of chunks give the same bits where the compiler rounds each operation by itself
// (-ffp-contract=off, or -std=c99).
//
//
// INSTRUCTION SETS
//
// One binary holds code for AVX-512 (F, DQ, BW, VL and FMA), AVX2 with FMA, NEON and plain C, and
// asks the processor what it has; flags like -march=native are not needed. ein_cpu_desc.isa asks
// for less than the best: "avx512", "avx2", "neon" or "plain". What the machine lacks is an error
// (EIN_ERR_UNSUPPORTED). Compilers other than gcc and clang get plain C.
//
//
// THREADS
//
// ein_cpu_create starts threads - 1 of them (default: one thread per core the process may use, the
// caller being one). They sleep when there is nothing to do, after a few microseconds of waiting
// for more. Where not all can be started there are fewer. Several threads may execute plans with
// one pool at the same time: the first one gets the pool's threads, the others work alone. pin
// binds each of the pool's threads to a core; the caller's own is never touched. The pool's threads
// start with the default floating-point environment. Without pthreads (Windows) all is done by the
// caller.
//
//
// CALIBRATION
//
// Predictions need rates: floating-point operations, bandwidths. Without calibration they come from
// a table by instruction set, so plans are the same in every run on machines of one kind.
// ein_cpu_calibrate measures for about 50 ms (and allocates 64 MiB meanwhile); do so before plans
// are made. ein_cpu_export gives the rates as one line of text, ein_cpu_import takes it back.
//
//
// MEMORY
//
// All of it comes from the allocator given, or from EINSUM_MALLOC. Nothing is allocated after
// ein_cpu_create, but for ein_cpu_calibrate. The pool and the provider must outlive every ctx and
// plan that uses them.

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
  int threads;            // with the caller; 0: as many as the process may use cores
  const char *isa;        // "avx512", "avx2", "neon", "plain"; NULL or "": the best there is
  int pin;                // 1: bind the pool's threads to cores
} ein_cpu_desc;

// desc and allocator may be NULL. *cpu is NULL on failure: EIN_ERR_ARGUMENT, EIN_ERR_UNSUPPORTED
// (an instruction set this machine lacks), EIN_ERR_NO_MEMORY.
EIN_API ein_status ein_cpu_create(const ein_cpu_desc *desc, const ein_allocator *allocator,
                                  ein_cpu **cpu);
EIN_API void ein_cpu_destroy(ein_cpu *cpu);  // NULL is a no-op; not while anything runs

// Sets desc->executor and puts the provider first among desc->kernels; leaves the rest alone. The
// array desc->kernels then points to is the cpu's: EIN_ERR_TOO_LARGE with more than 7 others.
EIN_API ein_status ein_cpu_use(ein_cpu *cpu, ein_ctx_desc *desc);
EIN_API const ein_kernels *ein_cpu_kernels(const ein_cpu *cpu);
EIN_API ein_executor ein_cpu_executor(ein_cpu *cpu);

// Facts for people, one a line: instruction set, caches, threads, rates. Returns the length of the
// whole text without its NUL, as snprintf does.
EIN_API size_t ein_cpu_info(const ein_cpu *cpu, char *buf, size_t size);

// Measures the machine (about 50 ms). Not while plans are made with this cpu.
EIN_API ein_status ein_cpu_calibrate(ein_cpu *cpu);
// The rates as one line of text; the length is returned as above.
EIN_API size_t ein_cpu_export(const ein_cpu *cpu, char *buf, size_t size);
// Takes such a line. EIN_ERR_SYNTAX when it is none, EIN_ERR_UNSUPPORTED when it is of another
// instruction set; then nothing is changed.
EIN_API ein_status ein_cpu_import(ein_cpu *cpu, const char *text);

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
#define EINI_T512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma")))
#define EINI_T256 __attribute__((target("avx2,fma")))
#else
#define EINI_CPU_X86 0
#endif

#if (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
#define EINI_CPU_NEON 1
#include <arm_neon.h>
#else
#define EINI_CPU_NEON 0
#endif

#if defined(__unix__) || defined(__APPLE__)
#define EINI_CPU_POSIX 1
#include <pthread.h>
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

// What the machine is. Rates are of one core; calibration measures them.
typedef struct eini_cpu {
  int isa;                     // the best usable one, or what the user forced
  int64_t l1, l2, l3;          // bytes of data cache one core may use (l3: its share)
  int width;                   // threads
  double hz;                   // cycles per second under load, for the time model
  double peak_f64, peak_f32;   // flops per second at this isa
  double read_bw, copy_bw;     // bytes per second from memory; copy: non-temporal, read + written
  double l2_bw, l3_bw;         // bytes per second
  double call;                 // seconds of fixed cost of one run
} eini_cpu;

// A family of contraction kernels. plan: 0 if it cannot, else fills *choice, whose last word of
// state is not its own.
typedef struct eini_cpu_family {
  const char *name;
  int (*plan)(const eini_cpu *cpu, const ein_contract *c, int width, ein_choice *choice);
  void (*run)(const eini_cpu *cpu, const ein_contract *c, const ein_choice *choice,
              const ein_part *part, void *scratch);
} eini_cpu_family;

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
  int fma = (c >> 12 & 1) && (c >> 28 & 1);
  if (!(c >> 27 & 1) || !fma) return EINI_ISA_PLAIN;
  uint64_t saved = eini_cpu_xcr0();
  if ((saved & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return EINI_ISA_PLAIN;
  const unsigned wide = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  if ((b & wide) == wide && (saved & 0xe6) == 0xe6) return EINI_ISA_AVX512;
  return b >> 5 & 1 ? EINI_ISA_AVX2 : EINI_ISA_PLAIN;
}

// Deterministic cache parameters: leaf 4 (Intel) or 0x8000001D (AMD) has one entry a cache.
static void eini_cpu_caches(eini_cpu *m) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned leaf = 4;
  __get_cpuid(0, &a, &b, &c, &d);
  if (b == 0x68747541u || b == 0x6f677948u) {  // "Auth.." of AMD, "Hygo.."
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
    if (level == 3) m->l3 = bytes / eini_min64(sharing, m->width);
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

static void eini_cpu_caches(eini_cpu *m) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  m->l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  m->l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  m->l3 = sysconf(_SC_LEVEL3_CACHE_SIZE) / m->width;
#else
  (void)m;
#endif
}

static double eini_cpu_hz(void) { return 2.5e9; }

#endif  // EINI_CPU_X86

#define EINI_CPU_MASK_WORDS 128  // 8192 cores

// The cores the process may use; mask may be longer than the kernel's.
static int eini_cpu_cores(uint64_t mask[EINI_CPU_MASK_WORDS]) {
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
  return 1;
}

// What to believe before anything is measured. Per cycle: operations of f64, bytes from L2 and L3.
static void eini_cpu_defaults(eini_cpu *m) {
  static const double flops[EINI_ISA_COUNT] = {2, 8, 16, 32};
  static const double l2[EINI_ISA_COUNT] = {8, 16, 24, 32};
  if (m->l1 <= 0) m->l1 = 32768;
  if (m->l2 <= 0) m->l2 = 512 << 10;
  if (m->l3 <= 0) m->l3 = m->l2;
  m->hz = eini_cpu_hz();
  m->peak_f64 = m->hz * flops[m->isa];
  m->peak_f32 = m->peak_f64 * (m->isa == EINI_ISA_PLAIN ? 1 : 2);
  m->l2_bw = m->hz * l2[m->isa];
  m->l3_bw = m->l2_bw / 2;
  m->read_bw = 20e9;
  m->copy_bw = 24e9;
  m->call = 100e-9;
}

// 0 when the machine lacks what is asked for, or does not know the word.
static int eini_cpu_detect(eini_cpu *m, const char *isa) {
  int best = eini_isa_best();
  m->isa = best;
  if (isa != NULL && isa[0] != 0) {
    int i = 0;
    while (i < EINI_ISA_COUNT && strcmp(isa, eini_isa_names[i]) != 0) i++;
    if (i == EINI_ISA_COUNT) return 0;
    if (i > best || (i == EINI_ISA_NEON && best != EINI_ISA_NEON)) return 0;
    m->isa = i;
  }
  eini_cpu_caches(m);
  eini_cpu_defaults(m);
  return 1;
}

// ================================================================================================
// >>pool  threads that sleep when there is nothing to do
// One job at a time. A word counts the workers inside the open job; the caller takes indices as
// they do, then closes the job and waits until nobody is inside, so that a late worker costs
// nothing. Invariant: the job's fields change only while the word is 0.
// ================================================================================================

#if EINI_CPU_POSIX && (defined(__GNUC__) || defined(__clang__))
#define EINI_CPU_THREADS 1
#else
#define EINI_CPU_THREADS 0
#endif

typedef struct eini_pool {
  int width;                   // with the caller
#if EINI_CPU_THREADS
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  pthread_t *thread;           // width - 1 of them
  int started, pin, numbered;
  int sleepers, quit;          // under lock
  int busy;                    // a caller has the pool
  int joining;                 // the caller sleeps in done
  uint32_t word;               // EINI_POOL_OPEN, and the workers inside
  uint32_t serial;             // of the job: a worker enters each once
  int64_t next;
  int n;
  void (*task)(void *arg, int i);
  void *arg;
  char apart[64];
#endif
} eini_pool;

#if EINI_CPU_THREADS

#define EINI_POOL_OPEN 0x80000000u
#define EINI_POOL_SPIN 300     // pauses before sleeping, some microseconds

static void eini_pool_pause(void) {
#if EINI_CPU_X86
  _mm_pause();
#elif EINI_CPU_NEON
  __asm__ volatile("yield");
#endif
}

static void eini_pool_take(eini_pool *p) {
  void (*task)(void *arg, int i) = p->task;
  void *arg = p->arg;
  int n = p->n;
  for (;;) {
    int64_t i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);
    if (i >= n) return;
    task(arg, (int)i);
  }
}

// Enters the open job unless it is the one numbered seen; 0 when there is none.
static int eini_pool_enter(eini_pool *p, uint32_t *seen) {
  uint32_t word = __atomic_load_n(&p->word, __ATOMIC_SEQ_CST);
  while ((word & EINI_POOL_OPEN) != 0) {
    if (__atomic_load_n(&p->serial, __ATOMIC_ACQUIRE) == *seen) return 0;
    if (__atomic_compare_exchange_n(&p->word, &word, word + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_ACQUIRE)) {
      *seen = __atomic_load_n(&p->serial, __ATOMIC_ACQUIRE);
      return 1;
    }
  }
  return 0;
}

static void eini_pool_leave(eini_pool *p) {
#if EINI_CPU_X86
  _mm_sfence();  // non-temporal stores of the tasks
#endif
  uint32_t word = __atomic_sub_fetch(&p->word, 1, __ATOMIC_SEQ_CST);
  if (word == 0 && __atomic_load_n(&p->joining, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
  }
}

// Sleeps until there is a job to enter (1) or the pool ends (0).
static int eini_pool_sleep(eini_pool *p, uint32_t *seen) {
  int entered = 0;
  pthread_mutex_lock(&p->lock);
  __atomic_add_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  while (!p->quit && !(entered = eini_pool_enter(p, seen))) pthread_cond_wait(&p->work, &p->lock);
  __atomic_sub_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
  return entered;
}

// Binds the calling thread to the i-th core the process may use.
static void eini_pool_bind(int i) {
#if defined(__linux__) && defined(SYS_sched_setaffinity)
  uint64_t mask[EINI_CPU_MASK_WORDS];
  int cores = eini_cpu_cores(mask), left = i % cores;
  for (int core = 0; core < 64 * EINI_CPU_MASK_WORDS; core++) {
    if (!(mask[core / 64] >> core % 64 & 1) || left-- > 0) continue;
    memset(mask, 0, sizeof mask);
    mask[core / 64] = (uint64_t)1 << core % 64;
    syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
    return;
  }
#else
  (void)i;
#endif
}

static void *eini_pool_main(void *user) {
  eini_pool *p = (eini_pool *)user;
  uint32_t seen = 0;
  int number = __atomic_add_fetch(&p->numbered, 1, __ATOMIC_RELAXED);
  if (p->pin) eini_pool_bind(number);
  fesetenv(FE_DFL_ENV);
  for (;;) {
    int entered = 0;
    for (int i = 0; i < EINI_POOL_SPIN && !entered; i++) {
      entered = eini_pool_enter(p, &seen);
      if (!entered) eini_pool_pause();
    }
    if (!entered && !eini_pool_sleep(p, &seen)) return NULL;
    eini_pool_take(p);
    eini_pool_leave(p);
  }
}

static void eini_pool_join(eini_pool *p) {
  if (__atomic_and_fetch(&p->word, ~EINI_POOL_OPEN, __ATOMIC_SEQ_CST) == 0) return;
  for (int i = 0; i < EINI_POOL_SPIN; i++) {
    if (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == 0) return;
    eini_pool_pause();
  }
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&p->joining, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p->word, __ATOMIC_SEQ_CST) != 0) pthread_cond_wait(&p->done, &p->lock);
  __atomic_store_n(&p->joining, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
}

static void eini_pool_wake(eini_pool *p, int n) {
  if (__atomic_load_n(&p->sleepers, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&p->lock);
  if (n - 1 >= p->sleepers) {
    pthread_cond_broadcast(&p->work);
  } else {
    for (int i = 1; i < n; i++) pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
}

// The slot of ein_executor. A second caller, or a task of the pool itself, works alone.
static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  eini_pool *p = (eini_pool *)user;
  if (n < 2 || p->width < 2 || __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < n; i++) task(arg, i);
    return;
  }
  p->task = task;
  p->arg = arg;
  p->n = n;
  __atomic_store_n(&p->next, 0, __ATOMIC_RELAXED);
  __atomic_add_fetch(&p->serial, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&p->word, EINI_POOL_OPEN, __ATOMIC_SEQ_CST);
  eini_pool_wake(p, n);
  eini_pool_take(p);
  eini_pool_join(p);
  __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

// Threads get every signal blocked, so that a program's handlers run on its own threads.
static void eini_pool_start(eini_pool *p) {
#ifdef SIG_BLOCK
  sigset_t all, old;
  sigfillset(&all);
  int masked = pthread_sigmask(SIG_BLOCK, &all, &old) == 0;
#endif
  while (p->started < p->width - 1) {
    if (pthread_create(&p->thread[p->started], NULL, eini_pool_main, p) != 0) break;
    p->started++;
  }
#ifdef SIG_BLOCK
  if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
  p->width = p->started + 1;
}

// thread: room for width - 1. Fewer threads than asked for are no mistake.
static void eini_pool_init(eini_pool *p, int width, int pin, pthread_t *thread) {
  p->width = width;
  p->thread = thread;
  p->pin = pin;
  if (width < 2) return;
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    p->width = 1;
    return;
  }
  if (pthread_cond_init(&p->work, NULL) != 0 || pthread_cond_init(&p->done, NULL) != 0) {
    p->width = 1;  // what was made needs no destruction on systems where making it can fail
    return;
  }
  eini_pool_start(p);
}

static void eini_pool_end(eini_pool *p) {
  if (p->started > 0) {
    pthread_mutex_lock(&p->lock);
    p->quit = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
  }
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

// Rows of a buffer and where they go. Line k of a row starts at the k-th line of its destination.
typedef struct eini_lines {
  const char *buffer;
  char *dst;
  int64_t pitch, step, rows;   // pitch: from row to row in the buffer; step: in the destination
  int64_t from, to;            // lines
} eini_lines;

static int64_t eini_to_line(const char *p) { return (int64_t)((0 - (uintptr_t)p) & 63); }

#if EINI_CPU_X86

#define EINI_STREAM(bits, attribute, V, load, store)                                        \
  attribute static void eini_stream_lines_##bits(const eini_lines *p) {                     \
    for (int64_t r = 0; r < p->rows; r++) {                                                 \
      char *d = p->dst + r * p->step;                                                       \
      const char *s = p->buffer + r * p->pitch;                                             \
      int64_t head = eini_to_line(d);                                                       \
      s += head + 64 * p->from;                                                             \
      d += head + 64 * p->from;                                                             \
      for (int64_t k = p->from; k < p->to; k++, s += 64, d += 64) {                         \
        for (size_t i = 0; i < 64; i += sizeof(V)) {                                        \
          store((V *)(void *)(d + i), load((const V *)(const void *)(s + i)));              \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  }
#define EINI_LOAD512(p) _mm512_loadu_si512((const void *)(p))
EINI_STREAM(128, EINI_UNUSED, __m128i, _mm_loadu_si128, _mm_stream_si128)
EINI_STREAM(256, EINI_T256, __m256i, _mm256_loadu_si256, _mm256_stream_si256)
EINI_STREAM(512, EINI_T512, __m512i, EINI_LOAD512, _mm512_stream_si512)
#undef EINI_LOAD512
#undef EINI_STREAM

static void eini_stream_lines(int isa, const eini_lines *p) {
  if (isa == EINI_ISA_AVX512) eini_stream_lines_512(p);
  else if (isa == EINI_ISA_AVX2) eini_stream_lines_256(p);
  else eini_stream_lines_128(p);
}

static void eini_stream_end(void) { _mm_sfence(); }
#define EINI_STREAM_LINE 64    // what a row is completed to; 0: there are no such stores

#else  // EINI_CPU_X86

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

// A row of `bytes` of which lines before `from` have gone.
static void eini_stream_rest(int isa, int64_t bytes, const char *src, char *dst, int64_t from) {
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
  p.from = from;
  p.to = (bytes - head) / 64;
  eini_stream_lines(isa, &p);
  int64_t done = head + 64 * p.to;
  memcpy(dst + done, src + done, (size_t)(bytes - done));
}

static void eini_stream_row(int isa, size_t bytes, const char *src, char *dst) {
  eini_stream_rest(isa, (int64_t)bytes, src, dst, 0);
}

// ================================================================================================
// >>tiles  transposes in registers
// tile(src, ss, dst, ds): dst[s * ds + d] = src[d * ss + s] for s, d < B elements; steps in bytes.
// ================================================================================================

typedef void (*eini_tile_fn)(const char *src, int64_t ss, char *dst, int64_t ds);

#if EINI_CPU_X86

#define EINI_LD1(r) _mm_loadu_si128((const __m128i *)(const void *)(src + (r)*ss))
#define EINI_LD2(r) _mm256_loadu_si256((const __m256i *)(const void *)(src + (r)*ss))
#define EINI_LD5(r) _mm512_loadu_si512((const void *)(src + (r)*ss))
#define EINI_ST1(r, v) _mm_storeu_si128((__m128i *)(void *)(dst + (r)*ds), v)
#define EINI_ST2(r, v) _mm256_storeu_si256((__m256i *)(void *)(dst + (r)*ds), v)
#define EINI_ST5(r, v) _mm512_storeu_si512((void *)(dst + (r)*ds), v)

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

// Four rows: within 128-bit lanes, column j of lane L of v##j is element 4 L + j of the rows.
#define EINI_QUAD(T, P, ld, q)                                                              \
  T q##r0 = ld(4 * q##_n), q##r1 = ld(4 * q##_n + 1);                                       \
  T q##r2 = ld(4 * q##_n + 2), q##r3 = ld(4 * q##_n + 3);                                   \
  T q##t0 = P##_unpacklo_epi32(q##r0, q##r1), q##t1 = P##_unpackhi_epi32(q##r0, q##r1);     \
  T q##t2 = P##_unpacklo_epi32(q##r2, q##r3), q##t3 = P##_unpackhi_epi32(q##r2, q##r3);     \
  T q##v0 = P##_unpacklo_epi64(q##t0, q##t2), q##v1 = P##_unpackhi_epi64(q##t0, q##t2);     \
  T q##v2 = P##_unpacklo_epi64(q##t1, q##t3), q##v3 = P##_unpackhi_epi64(q##t1, q##t3);

EINI_T256 static void eini_reg_tile_32y(const char *src, int64_t ss, char *dst, int64_t ds) {
  enum { a_n = 0, b_n = 1 };
  EINI_QUAD(__m256i, _mm256, EINI_LD2, a)
  EINI_QUAD(__m256i, _mm256, EINI_LD2, b)
#define EINI_LANES2(j)                                                                      \
  EINI_ST2(j, _mm256_permute2x128_si256(av##j, bv##j, 0x20));                               \
  EINI_ST2(4 + j, _mm256_permute2x128_si256(av##j, bv##j, 0x31));
  EINI_LANES2(0)
  EINI_LANES2(1)
  EINI_LANES2(2)
  EINI_LANES2(3)
#undef EINI_LANES2
}

// The transpose of four vectors of four 128-bit lanes, stored as columns c, c + by, ..
#define EINI_LANES4(st, c, by, w0, w1, w2, w3)                                              \
  do {                                                                                      \
    __m512i u0 = _mm512_shuffle_i64x2(w0, w1, 0x44), u1 = _mm512_shuffle_i64x2(w0, w1, 0xee); \
    __m512i u2 = _mm512_shuffle_i64x2(w2, w3, 0x44), u3 = _mm512_shuffle_i64x2(w2, w3, 0xee); \
    st(c, _mm512_shuffle_i64x2(u0, u2, 0x88));                                              \
    st((c) + (by), _mm512_shuffle_i64x2(u0, u2, 0xdd));                                     \
    st((c) + 2 * (by), _mm512_shuffle_i64x2(u1, u3, 0x88));                                 \
    st((c) + 3 * (by), _mm512_shuffle_i64x2(u1, u3, 0xdd));                                 \
  } while (0)

// Tiles of whole lines; st stores, or streams to aligned destinations.
#define EINI_TILES512(suffix, st)                                                           \
  EINI_T512 static void eini_reg_tile_32##suffix(const char *src, int64_t ss, char *dst,    \
                                                 int64_t ds) {                              \
    enum { a_n = 0, b_n = 1, c_n = 2, d_n = 3 };                                            \
    EINI_QUAD(__m512i, _mm512, EINI_LD5, a)                                                 \
    EINI_QUAD(__m512i, _mm512, EINI_LD5, b)                                                 \
    EINI_QUAD(__m512i, _mm512, EINI_LD5, c)                                                 \
    EINI_QUAD(__m512i, _mm512, EINI_LD5, d)                                                 \
    EINI_LANES4(st, 0, 4, av0, bv0, cv0, dv0);                                              \
    EINI_LANES4(st, 1, 4, av1, bv1, cv1, dv1);                                              \
    EINI_LANES4(st, 2, 4, av2, bv2, cv2, dv2);                                              \
    EINI_LANES4(st, 3, 4, av3, bv3, cv3, dv3);                                              \
  }                                                                                         \
  EINI_T512 static void eini_reg_tile_64##suffix(const char *src, int64_t ss, char *dst,    \
                                                 int64_t ds) {                              \
    __m512i r0 = EINI_LD5(0), r1 = EINI_LD5(1), r2 = EINI_LD5(2), r3 = EINI_LD5(3);         \
    __m512i r4 = EINI_LD5(4), r5 = EINI_LD5(5), r6 = EINI_LD5(6), r7 = EINI_LD5(7);         \
    __m512i a = _mm512_unpacklo_epi64(r0, r1), b = _mm512_unpacklo_epi64(r2, r3);           \
    __m512i c = _mm512_unpacklo_epi64(r4, r5), d = _mm512_unpacklo_epi64(r6, r7);           \
    EINI_LANES4(st, 0, 2, a, b, c, d);                                                      \
    a = _mm512_unpackhi_epi64(r0, r1), b = _mm512_unpackhi_epi64(r2, r3);                   \
    c = _mm512_unpackhi_epi64(r4, r5), d = _mm512_unpackhi_epi64(r6, r7);                   \
    EINI_LANES4(st, 1, 2, a, b, c, d);                                                      \
  }                                                                                         \
  EINI_T512 static void eini_reg_tile_128##suffix(const char *src, int64_t ss, char *dst,   \
                                                  int64_t ds) {                             \
    __m512i r0 = EINI_LD5(0), r1 = EINI_LD5(1), r2 = EINI_LD5(2), r3 = EINI_LD5(3);         \
    EINI_LANES4(st, 0, 1, r0, r1, r2, r3);                                                  \
  }
#define EINI_NT5(r, v) _mm512_stream_si512((__m512i *)(void *)(dst + (r)*ds), v)
EINI_TILES512(z, EINI_ST5)
EINI_TILES512(nt, EINI_NT5)
#undef EINI_TILES512
#undef EINI_NT5
#undef EINI_LANES4
#undef EINI_QUAD
#undef EINI_LD1
#undef EINI_LD2
#undef EINI_LD5
#undef EINI_ST1
#undef EINI_ST2
#undef EINI_ST5

#elif EINI_CPU_NEON

#define EINI_ZIP(name, T, zip, b)                                                           \
  static void eini_zip_##name(const T *in, T *out) {                                        \
    for (int i = 0; i < b / 2; i++) {                                                       \
      out[2 * i] = vzip1q_##zip(in[i], in[i + b / 2]);                                      \
      out[2 * i + 1] = vzip2q_##zip(in[i], in[i + b / 2]);                                  \
    }                                                                                       \
  }                                                                                         \
  static void eini_reg_tile_##name(const char *src, int64_t ss, char *dst, int64_t ds) {    \
    T x[b], y[b];                                                                           \
    int bits = 0;                                                                           \
    for (int i = 0; i < b; i++) memcpy(&x[i], src + i * ss, 16);                            \
    for (int i = b; i > 1; i /= 2, bits++) eini_zip_##name(bits & 1 ? y : x, bits & 1 ? x : y); \
    for (int i = 0; i < b; i++) memcpy(dst + i * ds, bits & 1 ? &y[i] : &x[i], 16);         \
  }
EINI_ZIP(8, uint8x16_t, u8, 16)
EINI_ZIP(16, uint16x8_t, u16, 8)
EINI_ZIP(32, uint32x4_t, u32, 4)
EINI_ZIP(64, uint64x2_t, u64, 2)
#undef EINI_ZIP

#endif  // EINI_CPU_X86, EINI_CPU_NEON

// Plain C, B = 4.
#define EINI_TILE_C(bits)                                                                   \
  static void eini_c_tile_##bits(const char *src, int64_t ss, char *dst, int64_t ds) {      \
    for (int d = 0; d < 4; d++) {                                                           \
      for (int s = 0; s < 4; s++) {                                                         \
        memcpy(dst + s * ds + d * (bits / 8), src + d * ss + s * (bits / 8), bits / 8);     \
      }                                                                                     \
    }                                                                                       \
  }
EINI_TILE_C(8)
EINI_TILE_C(16)
EINI_TILE_C(32)
EINI_TILE_C(64)
EINI_TILE_C(128)
#undef EINI_TILE_C

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
     {{16, eini_reg_tile_32z}, {8, eini_reg_tile_32y}, {4, eini_reg_tile_32}, {0, NULL}},
     {{8, eini_reg_tile_64z}, {4, eini_reg_tile_64y}, {2, eini_reg_tile_64}, {0, NULL}},
     {{4, eini_reg_tile_128z}, {0, NULL}, {0, NULL}, {0, NULL}}}};
#else
    {{{0, NULL}}}, {{{0, NULL}}}};
#endif

// Tiles that stream lines from registers, where there are any.
static eini_tile_fn eini_tile_stream(int isa, int size) {
#if EINI_CPU_X86
  if (isa != EINI_ISA_AVX512) return NULL;
  if (size == 4) return eini_reg_tile_32nt;
  if (size == 8) return eini_reg_tile_64nt;
  if (size == 16) return eini_reg_tile_128nt;
#endif
  (void)isa;
  (void)size;
  return NULL;
}

// ================================================================================================
// >>copy  permuted copies
// Planes of two loops, one moving by single elements in the source and one in the destination, are
// transposed in registers. Destinations beyond the caches are assembled in a buffer and streamed.
// ================================================================================================

#define EINI_COPY_LOOPS 16     // more are walked from outside
#define EINI_COPY_RUN 256      // bytes read at a place of the source, where there are as many
#define EINI_COPY_ROW 2048     // bytes streamed to a place of the destination without the buffer
#define EINI_COPY_BLOCK 32768  // bytes of the buffer that are used
#define EINI_COPY_BUFFER (EINI_COPY_BLOCK + 128 * EINI_COPY_RUN)
#define EINI_COPY_LONG 1024    // rows of so many bytes are not put together from shorter ones

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
  int row, row2;               // loops along the rows of the block, or -1
  int ncol;                    // loops 0 .. ncol-1 are its columns
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
      w->src += (e - 1) * s;
      w->dst += (e - 1) * d;
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
    int64_t s = w->src_step[i] < 0 ? -w->src_step[i] : w->src_step[i];
    int64_t t = best < 0 ? 0 : w->src_step[best] < 0 ? -w->src_step[best] : w->src_step[best];
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
      w->src += (w->extent[near] - 1) * t;
      w->dst += (w->extent[near] - 1) * w->dst_step[near];
      w->src_step[near] = -t;
      w->dst_step[near] = -w->dst_step[near];
    }
    w->row = near;
  } else if ((t < 0 ? -t : t) < (s < 0 ? -s : s)) {
    w->row = near;
  }
}

// Blocks of a copy that goes straight to its destination.
static void eini_move_direct(eini_move *w) {
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = w->extent[0];
  if (w->row < 0 && w->n > 1) {
    w->row = 1;
    w->blk[1] = w->extent[1];
  } else if (w->row > 0) {
    int64_t side = 512 / w->size;
    w->blk[0] = eini_min64(w->extent[0], side);
    w->blk[w->row] = eini_min64(w->extent[w->row], side);
  }
}

// The loop that goes on where the run of loop i ends in the source, outside of the columns; or -1.
static int eini_move_next_run(const eini_move *w, int i) {
  for (int k = w->ncol; k < w->n; k++) {
    if (k != w->row && w->src_step[k] == w->src_step[i] * w->extent[i]) return k;
  }
  return -1;
}

// Short rows that follow each other in the destination are one: the whole block is.
static int eini_move_one_row(const eini_move *w) {
  return w->ncol == 1 && w->row == 1 && w->blk[0] == w->extent[0] &&
         w->dst_step[1] == w->extent[0] * w->size && w->extent[0] * w->size < 256;
}

// Blocks of a copy through the buffer: whole runs of the source, long rows of the destination.
static void eini_move_buffered(eini_move *w) {
  int64_t rows = EINI_COPY_RUN / w->size;
  if (w->row > 0 && w->extent[w->row] <= 2 * rows) rows = w->extent[w->row];
  int64_t cols = eini_min64(EINI_COPY_BLOCK / rows, EINI_COPY_ROW) / w->size;
  if (w->extent[0] * w->size >= EINI_COPY_LONG && w->kind == EINI_COPY_TILES)
    cols = EINI_COPY_ROW / w->size;
  if (w->kind == EINI_COPY_ROWS) cols = EINI_COPY_BLOCK / 4 / w->size;
  for (int i = 0; i < w->n; i++) w->blk[i] = 1;
  w->blk[0] = eini_min64(w->extent[0], cols);
  int64_t width = w->blk[0];
  while (w->ncol < w->n && w->ncol < 4 && w->ncol != w->row &&
         w->blk[w->ncol - 1] == w->extent[w->ncol - 1] && 2 * width <= cols &&
         w->dst_step[w->ncol] == w->dst_step[w->ncol - 1] * w->extent[w->ncol - 1]) {
    w->blk[w->ncol] = eini_min64(w->extent[w->ncol], cols / width);
    width *= w->blk[w->ncol++];
  }
  if (w->row > 0) w->blk[w->row] = eini_min64(w->extent[w->row], rows);
  if (eini_move_one_row(w)) {
    w->blk[1] = eini_min64(w->extent[1], EINI_COPY_BLOCK / (w->extent[0] * w->size));
    return;
  }
  int from = w->row < 0 ? 0 : w->row;
  rows = EINI_COPY_RUN / w->size / w->extent[from];
  if (rows < 2 || w->kind == EINI_COPY_FILL) return;
  int next = eini_move_next_run(w, from);
  if (next < 0) return;
  if (w->row < 0) {
    w->row = next;
    rows = eini_min64(rows, EINI_COPY_BLOCK / (width * w->size));
  } else {
    w->row2 = next;
  }
  w->blk[next] = eini_min64(w->extent[next], rows);
}

// ---- planes: dst[s * ds + d * dd] = src[s * ss + d * sd] for d < nd, s < ns; steps in bytes ----

typedef struct eini_plane {
  const char *src;
  char *dst;
  int64_t sd, ss, dd, ds, nd, ns;
} eini_plane;

#define EINI_PLANE(bits)                                                                    \
  static void eini_plane_##bits(const eini_plane *p) {                                      \
    for (int64_t s = 0; s < p->ns; s++) {                                                   \
      const char *from = p->src + s * p->ss;                                                \
      char *to = p->dst + s * p->ds;                                                        \
      for (int64_t d = 0; d < p->nd; d++, from += p->sd, to += p->dd) {                     \
        memcpy(to, from, bits / 8);                                                         \
      }                                                                                     \
    }                                                                                       \
  }
EINI_PLANE(8)
EINI_PLANE(16)
EINI_PLANE(32)
EINI_PLANE(64)
EINI_PLANE(128)
#undef EINI_PLANE

static void eini_plane_any(int size, const eini_plane *p) {
  switch (size) {
    case 1: eini_plane_8(p); break;
    case 2: eini_plane_16(p); break;
    case 4: eini_plane_32(p); break;
    case 8: eini_plane_64(p); break;
    default: eini_plane_128(p); break;
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

static void eini_plane_run(const eini_move *w, const eini_plane *p) {
  if (w->kind == EINI_COPY_TILES) {
    eini_plane_tiles(w->isa, w->size, p);
  } else if (w->kind == EINI_COPY_ANY) {
    eini_plane_any(w->size, p);
  } else {
    for (int64_t s = 0; s < p->ns; s++) {
      const char *from = p->src + s * p->ss;
      char *to = p->dst + s * p->ds;
      if (w->kind == EINI_COPY_FILL) eini_plane_fill(w->size, from, to, p->nd);
      else if (p->nd * w->size > 64) memcpy(to, from, (size_t)(p->nd * w->size));
      else eini_copy_few(to, from, p->nd * w->size);
    }
  }
}

// ---- blocks ----

static int64_t eini_move_part(const eini_move *w, int i) {
  return i < 0 ? 1 : eini_min64(w->blk[i], w->extent[i] - w->pos[i]);
}

// Fills the buffer's rows with what the plane p's source holds, n[] columns of loops 0 .. 3, and
// streams lines as they get complete, but for the last two, which the processor still stores.
static void eini_block_rows(const eini_move *w, eini_plane *p, const int64_t *n, const char *src,
                            eini_lines *out) {
  const int64_t *step = w->src_step;
  int64_t some = w->kind == EINI_COPY_TILES ? 64 / w->size : n[0], filled = 0;
  int64_t at[4] = {0, 0, 0, 0}, few = w->kind == EINI_COPY_TILES ? 1 : INT_MAX;
  const char *from = src;
  out->from = 0;
  for (int i = 1; i < 4;) {
    for (int64_t d = 0; d < n[0]; d += some) {
      p->nd = eini_min64(some, n[0] - d);
      p->src = from + d * p->sd;
      eini_plane_run(w, p);
      p->dst += p->nd * w->size;
      filled += p->nd * w->size;
      out->to = filled / 64 - 2;
      if (out->to < out->from + few) continue;
      eini_stream_lines(w->isa, out);
      out->from = out->to;
    }
    for (i = 1; i < 4; i++) {  // on to the next column of loops 1 .. 3
      if (++at[i] < n[i]) {
        from += step[i];
        break;
      }
      if (n[i] > 1) from -= (n[i] - 1) * step[i];
      at[i] = 0;
    }
  }
}

// Two lines of each row, of which the first begins at out->dst: streams what is a line of the
// destination, then moves the second line to the first's place. first: 0 when the row begins with
// the second line; bytes: how much of the second line there is.
static void eini_block_pass(const eini_move *w, eini_lines *out, char *buffer, int first,
                            int64_t bytes) {
  int whole = bytes == 64;
  if (first && whole) {
    out->from = 0;
    out->to = 1;
    eini_stream_lines(w->isa, out);
  }
  for (int64_t r = 0; r < out->rows; r++) {
    char *d = out->dst + r * out->step, *s = buffer + r * out->pitch;
    int64_t head = eini_to_line(d);
    if (!first) memcpy(d + 64, s + 64, (size_t)(head < bytes ? head : bytes));
    else if (!whole) memcpy(d + head, s + head, (size_t)(64 + bytes - head));
    memcpy(s, s + 64, 64);
  }
}

// A block of tiles with long rows is streamed line by line while it is read: from registers where
// lines of tiles are lines of the destination, else through two lines of buffer for each row.
static void eini_block_stream(const eini_move *w, eini_plane *p, char *dst, int64_t step,
                              char *buffer) {
  const int64_t some = 64 / w->size, nd = p->nd, pitch = 128 + 64;
  eini_tile_fn tile = eini_tile_stream(w->isa, w->size);
  int aligned = tile != NULL && ((uintptr_t)dst & 63) == 0 && step % 64 == 0 && p->ns >= some;
  const char *src = p->src;
  eini_lines out;
  out.buffer = buffer;
  out.pitch = pitch;
  out.step = step;
  out.rows = p->ns;
  p->ds = aligned ? step : pitch;
  for (int64_t d = 0; d < nd; d += some) {
    p->src = src + d * p->sd;
    p->nd = eini_min64(some, nd - d);
    if (aligned && p->nd == some) {
      p->dst = dst + d * w->size;
      int64_t s = 0;
      for (; s + some <= p->ns; s += some) {
        tile(p->src + s * w->size, p->sd, p->dst + s * step, step);
      }
      if (s == p->ns) continue;
      s = p->ns - some;
      tile(p->src + s * w->size, p->sd, p->dst + s * step, step);
    } else if (aligned) {
      p->dst = dst + d * w->size;
      eini_plane_tiles(w->isa, w->size, p);
    } else {
      p->dst = buffer + 64;
      eini_plane_tiles(w->isa, w->size, p);
      out.dst = dst + (d - some) * w->size;
      eini_block_pass(w, &out, buffer, d > 0, p->nd * w->size);
    }
  }
  if (aligned || nd % some != 0) return;
  out.dst = dst + (nd - some) * w->size;
  eini_block_pass(w, &out, buffer, 1, 0);
}

// The block at w->pos goes through the buffer.
static void eini_block_buffered(const eini_move *w, const char *src, char *dst, char *buffer) {
  int64_t n[4] = {1, 1, 1, 1}, width = w->size, rows2 = eini_move_part(w, w->row2);
  eini_plane p;
  eini_lines out;
  for (int i = 0; i < w->ncol; i++) width *= n[i] = eini_move_part(w, i);
  p.ns = out.rows = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.dd = w->size;
  p.ds = out.pitch = (width + 63) / 64 * 64 + 64;
  out.buffer = buffer;
  out.step = w->row < 0 ? 0 : w->dst_step[w->row];
  if (eini_move_one_row(w)) {
    p.src = src;
    p.dst = buffer;
    p.nd = n[0];
    p.ds = width;
    eini_plane_run(w, &p);
    eini_stream_row(w->isa, (size_t)(width * p.ns), buffer, dst);
    return;
  }
  int lines = w->kind == EINI_COPY_TILES && w->ncol == 1 && width >= 128;
  for (int64_t r = 0; r < rows2; r++) {
    p.dst = buffer;
    out.dst = w->row2 < 0 ? dst : dst + r * w->dst_step[w->row2];
    if (lines) {
      p.src = w->row2 < 0 ? src : src + r * w->src_step[w->row2];
      p.nd = n[0];
      eini_block_stream(w, &p, out.dst, out.step, buffer);
      continue;
    }
    eini_block_rows(w, &p, n, w->row2 < 0 ? src : src + r * w->src_step[w->row2], &out);
    for (int64_t s = 0; s < out.rows; s++) {
      eini_stream_rest(w->isa, width, buffer + s * out.pitch, out.dst + s * out.step, out.from);
    }
  }
}

static void eini_block_direct(const eini_move *w, const char *src, char *dst, int stream) {
  eini_plane p;
  p.src = src;
  p.dst = dst;
  p.nd = eini_move_part(w, 0);
  p.ns = eini_move_part(w, w->row);
  p.sd = w->src_step[0];
  p.dd = w->dst_step[0];
  p.ss = w->row < 0 ? 0 : w->src_step[w->row];
  p.ds = w->row < 0 ? 0 : w->dst_step[w->row];
  if (!stream) {
    eini_plane_run(w, &p);
    return;
  }
  for (int64_t s = 0; s < p.ns; s++) {
    eini_stream_row(w->isa, (size_t)(p.nd * w->size), src + s * p.ss, dst + s * p.ds);
  }
}

// The first block of columns ends where a line of the destination does.
static int64_t eini_move_step(const eini_move *w, int i) {
  int64_t blk = w->blk[i];
  if (i > 0 || w->pos[0] > 0 || w->ncol > 1 || blk == w->extent[0]) return blk;
  int64_t over = (int64_t)((uintptr_t)w->dst & 63) / w->size;
  return over < blk ? blk - over : blk;
}

static int eini_move_nearer(const eini_move *w, int i, int j) {
  int64_t a = w->src_step[i], b = w->src_step[j];
  return (a < 0 ? -a : a) < (b < 0 ? -b : b);
}

// Every block, the runs of the source innermost, then the rows of the destination.
static void eini_move_run(eini_move *w, int stream, char *buffer) {
  int order[EINI_COPY_LOOPS], n = 0;
  if (w->row >= 0) order[n++] = w->row;
  if (w->row2 >= 0) order[n++] = w->row2;
  int few = n + w->ncol;
  for (int i = 0; i < w->n; i++) {
    w->pos[i] = 0;
    if (i == w->row || i == w->row2) continue;
    int j = n++;
    order[j] = i;
    // What is read next is near; where rows are streamed to matters less.
    for (; w->kind == EINI_COPY_TILES && j > few && eini_move_nearer(w, i, order[j - 1]); j--) {
      order[j] = order[j - 1];
      order[j - 1] = i;
    }
  }
  int64_t full = w->blk[0];
  for (int i = 0; i < n;) {
    const char *src = w->src;
    char *dst = w->dst;
    for (int k = 0; k < w->n; k++) {
      src += w->pos[k] * w->src_step[k];
      dst += w->pos[k] * w->dst_step[k];
    }
    w->blk[0] = full;
    w->blk[0] = eini_move_step(w, 0);
    if (buffer != NULL) eini_block_buffered(w, src, dst, buffer);
    else eini_block_direct(w, src, dst, stream);
    for (i = 0; i < n; i++) {
      int k = order[i];
      w->pos[k] += w->blk[k];
      if (w->pos[k] < w->extent[k]) break;
      w->pos[k] = 0;
    }
  }
}

static void eini_copy_go(int isa, const ein_copy *c, int stream, char *buffer) {
  eini_move w;
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
  w.isa = isa;
  eini_move_promote(&w);
  eini_move_kind(&w);
  stream = stream && w.dst_step[0] == w.size;
  int whole = w.kind == EINI_COPY_ROWS && w.extent[0] * w.size >= EINI_COPY_LONG;
  if (stream && !whole) {
    eini_move_buffered(&w);
    eini_move_run(&w, 1, buffer);
  } else {
    eini_move_direct(&w);
    eini_move_run(&w, stream, NULL);
  }
}

// ---- the provider's slots ----

enum { EINI_COPY_STREAM };     // words of ein_choice.state

static int eini_cpu_copy_plan(const eini_cpu *m, const ein_copy *c, int width, ein_choice *choice) {
  double bytes = 2.0 * c->size;
  int ok = c->size > 0 && c->size <= 16 && (c->size & (c->size - 1)) == 0;
  if (!ok) return 0;
  for (int i = 0; i < c->n; i++) bytes *= (double)c->extent[i];
  memset(choice, 0, sizeof *choice);
  int stream = EINI_STREAM_LINE > 0 && bytes > (double)m->l3 * m->width;
  int moves = 1;               // does the axis of single steps stay?
  for (int i = 0; i < c->n; i++) {
    if (c->dst_stride[i] == 1 && c->src_stride[i] == 1 && c->extent[i] * c->size >= 64) moves = 0;
  }
  double rate = stream ? m->copy_bw : bytes > (double)m->l2 ? m->l3_bw : m->l2_bw;
  int threads = width < m->width ? width : m->width;
  choice->seconds = m->call + bytes / (moves ? 0.7 * rate : rate) / (threads > 1 ? threads : 1);
  choice->scratch = stream ? EINI_COPY_BUFFER : 0;
  choice->state[EINI_COPY_STREAM] = stream;
  snprintf(choice->variant, sizeof choice->variant, "copy %s%s", eini_isa_names[m->isa],
           stream ? " stream" : "");
  return 1;
}

static void eini_cpu_copy_run(const eini_cpu *m, const ein_copy *c, const ein_choice *choice,
                              void *scratch) {
  int stream = choice->state[EINI_COPY_STREAM] != 0;
  eini_copy_go(m->isa, c, stream, (char *)scratch);
  if (stream) eini_stream_end();
}

// ================================================================================================
// >>chunks  operations of expressions and folds, per instruction set
// The loops of einsum.h's sections math, eval and fold, compiled again: each function here has
// nothing in it but a call, and takes the callee's body in (flatten) under its own target.
// ================================================================================================

#if EINI_CPU_X86

#define EINI_FLAT512 EINI_T512 __attribute__((flatten))
#define EINI_FLAT256 EINI_T256 __attribute__((flatten))

#define EINI_OP1(name)                                                                      \
  EINI_FLAT256 static void eini_c_##name##_256(                                             \
      int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                  \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d) {                                 \
    eini_c_##name(n, a, b, c, d);                                                           \
  }
#define EINI_OP2(name)                                                                      \
  EINI_OP1(name)                                                                            \
  EINI_FLAT512 static void eini_c_##name##_512(                                             \
      int64_t n, const void *EINI_RESTRICT a, const void *EINI_RESTRICT b,                  \
      const void *EINI_RESTRICT c, void *EINI_RESTRICT d) {                                 \
    eini_c_##name(n, a, b, c, d);                                                           \
  }
#define EINI_OP_NUMBERS(name)                                                               \
  EINI_OP1(name##_i32) EINI_OP1(name##_i64) EINI_OP1(name##_f32) EINI_OP1(name##_f64)
#define EINI_OP_REALS(name) EINI_OP2(name##_f32) EINI_OP2(name##_f64)

EINI_OP_NUMBERS(add)
EINI_OP_NUMBERS(sub)
EINI_OP_NUMBERS(mul)
EINI_OP_NUMBERS(square)
EINI_OP_NUMBERS(neg)
EINI_OP_NUMBERS(max)
EINI_OP_NUMBERS(min)
EINI_OP_NUMBERS(lt)
EINI_OP_NUMBERS(le)
EINI_OP_NUMBERS(gt)
EINI_OP_NUMBERS(ge)
EINI_OP_NUMBERS(eq)
EINI_OP_NUMBERS(ne)
EINI_OP_NUMBERS(where)
EINI_OP_NUMBERS(relu)
EINI_OP_NUMBERS(abs)
EINI_OP_REALS(quot)
EINI_OP_REALS(exp)
EINI_OP_REALS(log)
EINI_OP_REALS(sin)
EINI_OP_REALS(cos)
EINI_OP_REALS(tanh)
EINI_OP_REALS(erf)
EINI_OP_REALS(sigmoid)
EINI_OP_REALS(silu)
EINI_OP1(gelu_f32)
EINI_OP1(gelu_f64)
#undef EINI_OP_REALS
#undef EINI_OP_NUMBERS
#undef EINI_OP2
#undef EINI_OP1

// libm's names keep compilers from vector code (errno, traps), so these say it themselves.
#define EINI_OP_SELF(name, bits, s, T, V, expr)                                             \
  EINI_T##bits static void eini_c_##name##_##s##_##bits(                                    \
      int64_t n, const void *pa, const void *b, const void *c, void *pd) {                  \
    const T *a = (const T *)pa;                                                             \
    T *d = (T *)pd;                                                                         \
    (void)b;                                                                                \
    (void)c;                                                                                \
    for (int64_t i = 0; i < n; i += (int64_t)(sizeof(V) / sizeof(T))) {                     \
      V x;                                                                                  \
      memcpy(&x, a + i, sizeof x);                                                          \
      x = expr;                                                                             \
      memcpy(d + i, &x, sizeof x);                                                          \
    }                                                                                       \
  }
#define EINI_OP_ROOTS(bits, s, T, V, P, F)                                                  \
  EINI_OP_SELF(sqrt, bits, s, T, V, P##_sqrt_##F(x))                                        \
  EINI_OP_SELF(rsqrt, bits, s, T, V, P##_div_##F(P##_set1_##F(1), P##_sqrt_##F(x)))
#define EINI_OP_ROUNDING(s, T, V, F)                                                        \
  EINI_OP_SELF(floor, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_FLOOR))                  \
  EINI_OP_SELF(ceil, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_CEIL))                    \
  EINI_OP_SELF(round, 256, s, T, V, _mm256_round_##F(x, _MM_FROUND_RINT))
EINI_OP_ROOTS(256, f32, float, __m256, _mm256, ps)
EINI_OP_ROOTS(256, f64, double, __m256d, _mm256, pd)
EINI_OP_ROOTS(512, f32, float, __m512, _mm512, ps)
EINI_OP_ROOTS(512, f64, double, __m512d, _mm512, pd)
EINI_OP_ROUNDING(f32, float, __m256, ps)
EINI_OP_ROUNDING(f64, double, __m256d, pd)
#undef EINI_OP_ROUNDING
#undef EINI_OP_ROOTS
#undef EINI_OP_SELF

#define EINI_NUM(op, name, bits) EINI_NUM_(op, name, bits)
#define EINI_REA(op, name, bits) EINI_REA_(op, name, bits)
#define EINI_NUM_(op, name, bits)                                                           \
  {EINI_OP_##op, {NULL, eini_c_##name##_i32_##bits, eini_c_##name##_i64_##bits,             \
                  eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, NULL, NULL}}
#define EINI_REA_(op, name, bits)                                                           \
  {EINI_OP_##op, {NULL, NULL, NULL, eini_c_##name##_f32_##bits, eini_c_##name##_f64_##bits, \
                  NULL, NULL}}
// Cheap operations are bound by the first-level cache: AVX2 does as well. (And clang makes no good
// 512-bit code of gelu.)
#define EINI_CHUNK_ROWS(cheap, bits)                                                        \
  EINI_NUM(ADD, add, cheap), EINI_NUM(SUB, sub, cheap), EINI_NUM(MUL, mul, cheap),          \
  EINI_NUM(SQUARE, square, cheap), EINI_NUM(NEG, neg, cheap), EINI_NUM(MAX, max, cheap),    \
  EINI_NUM(MIN, min, cheap), EINI_NUM(LT, lt, cheap), EINI_NUM(LE, le, cheap),              \
  EINI_NUM(GT, gt, cheap), EINI_NUM(GE, ge, cheap), EINI_NUM(EQ, eq, cheap),                \
  EINI_NUM(NE, ne, cheap), EINI_NUM(WHERE, where, cheap), EINI_NUM(RELU, relu, cheap),      \
  EINI_NUM(ABS, abs, cheap), EINI_REA(DIV, quot, bits), EINI_REA(EXP, exp, bits),           \
  EINI_REA(LOG, log, bits), EINI_REA(SIN, sin, bits), EINI_REA(COS, cos, bits),             \
  EINI_REA(TANH, tanh, bits), EINI_REA(ERF, erf, bits), EINI_REA(SIGMOID, sigmoid, bits),   \
  EINI_REA(SILU, silu, bits), EINI_REA(GELU, gelu, cheap),                                  \
  EINI_REA(SQRT, sqrt, bits), EINI_REA(RSQRT, rsqrt, bits), EINI_REA(FLOOR, floor, cheap),  \
  EINI_REA(CEIL, ceil, cheap), EINI_REA(ROUND, round, cheap)

static const eini_chunk_row eini_chunk_table_256[] = {EINI_CHUNK_ROWS(256, 256)};
static const eini_chunk_row eini_chunk_table_512[] = {EINI_CHUNK_ROWS(256, 512)};
#undef EINI_CHUNK_ROWS
#undef EINI_REA_
#undef EINI_REA
#undef EINI_NUM_
#undef EINI_NUM

static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  const eini_chunk_row *row = isa == EINI_ISA_AVX512 ? eini_chunk_table_512 : eini_chunk_table_256;
  if (isa < EINI_ISA_AVX2) return NULL;
  for (size_t i = 0; i < sizeof eini_chunk_table_512 / sizeof *row; i++) {
    if (row[i].op == op) return row[i].fn[eini_type_column(type)];
  }
  return NULL;
}

// Callers fold one chunk after the other: what comes next is on its way when this one ends.
#define EINI_ACROSS_AHEAD 4096  // bytes
// Folds in EINI_LANES lanes as section fold does, so that the bits are the same: the body here,
// the rest with its functions.
#define EINI_ACROSS_BODY(name, bits, T, V, load, op)                                             \
  EINI_T##bits static void eini_h_##name##_##bits(int64_t n, const void *px, void *acc) {   \
    enum { step = (int)(sizeof(V) / sizeof(T)), vectors = EINI_LANES / step };              \
    const T *x = (const T *)px;                                                             \
    T lane[EINI_LANES];                                                                     \
    V v[vectors];                                                                           \
    int64_t i = EINI_LANES;                                                                 \
    if (n < EINI_LANES) {                                                                   \
      eini_h_##name(n, px, acc);                                                            \
      return;                                                                               \
    }                                                                                       \
    for (int k = 0; k < vectors; k++) v[k] = load(x + k * step);                            \
    for (; i + EINI_LANES <= n; i += EINI_LANES) {                                          \
      for (size_t line = 0; line < sizeof lane; line += 64) {                               \
        _mm_prefetch((const char *)((uintptr_t)(x + i) + EINI_ACROSS_AHEAD + line), _MM_HINT_T0); \
      }                                                                                     \
      for (int k = 0; k < vectors; k++) v[k] = op(v[k], load(x + i + k * step));            \
    }                                                                                       \
    memcpy(lane, v, sizeof lane);                                                           \
    eini_v_##name(n - i, lane, x + i);                                                      \
    for (int64_t w = EINI_LANES / 2; w > 0; w /= 2) eini_v_##name(w, lane, lane + w);       \
    eini_v_##name(1, (T *)acc, lane);                                                       \
  }
#define EINI_LOADI(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define EINI_LOADZ(p) _mm512_loadu_si512((const void *)(p))
// x where it is NaN; maxps gives its second operand for NaN and for zeros of two signs, as we want.
#define EINI_PICK256(F, f)                                                                  \
  EINI_T256 static inline __m256##f eini_max_256##F(__m256##f x, __m256##f y) {             \
    return _mm256_blendv_##F(_mm256_max_##F(x, y), x, _mm256_cmp_##F(x, x, _CMP_UNORD_Q));  \
  }                                                                                         \
  EINI_T256 static inline __m256##f eini_min_256##F(__m256##f x, __m256##f y) {             \
    return _mm256_blendv_##F(_mm256_min_##F(x, y), x, _mm256_cmp_##F(x, x, _CMP_UNORD_Q));  \
  }
#define EINI_PICK512(F, f)                                                                  \
  EINI_T512 static inline __m512##f eini_max_512##F(__m512##f x, __m512##f y) {             \
    return _mm512_mask_mov_##F(_mm512_max_##F(x, y),                                        \
                               _mm512_cmp_##F##_mask(x, x, _CMP_UNORD_Q), x);               \
  }                                                                                         \
  EINI_T512 static inline __m512##f eini_min_512##F(__m512##f x, __m512##f y) {             \
    return _mm512_mask_mov_##F(_mm512_min_##F(x, y),                                        \
                               _mm512_cmp_##F##_mask(x, x, _CMP_UNORD_Q), x);               \
  }
EINI_PICK256(ps, )
EINI_PICK256(pd, d)
EINI_PICK512(ps, )
EINI_PICK512(pd, d)
#undef EINI_PICK256
#undef EINI_PICK512
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
EINI_ACROSS_BODY(sum_f32, 256, float, __m256, _mm256_loadu_ps, _mm256_add_ps)
EINI_ACROSS_BODY(sum_f64, 256, double, __m256d, _mm256_loadu_pd, _mm256_add_pd)
EINI_ACROSS_BODY(sum_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_add_epi32)
EINI_ACROSS_BODY(sum_i64, 256, int64_t, __m256i, EINI_LOADI, _mm256_add_epi64)
EINI_ACROSS_BODY(prod_f32, 256, float, __m256, _mm256_loadu_ps, _mm256_mul_ps)
EINI_ACROSS_BODY(prod_f64, 256, double, __m256d, _mm256_loadu_pd, _mm256_mul_pd)
EINI_ACROSS_BODY(prod_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_mullo_epi32)
EINI_ACROSS_BODY(prod_i64, 256, int64_t, __m256i, EINI_LOADI, eini_mul_256q)
EINI_ACROSS_BODY(max_f32, 256, float, __m256, _mm256_loadu_ps, eini_max_256ps)
EINI_ACROSS_BODY(max_f64, 256, double, __m256d, _mm256_loadu_pd, eini_max_256pd)
EINI_ACROSS_BODY(max_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_max_epi32)
EINI_ACROSS_BODY(max_i64, 256, int64_t, __m256i, EINI_LOADI, eini_max_256q)
EINI_ACROSS_BODY(min_f32, 256, float, __m256, _mm256_loadu_ps, eini_min_256ps)
EINI_ACROSS_BODY(min_f64, 256, double, __m256d, _mm256_loadu_pd, eini_min_256pd)
EINI_ACROSS_BODY(min_i32, 256, int32_t, __m256i, EINI_LOADI, _mm256_min_epi32)
EINI_ACROSS_BODY(min_i64, 256, int64_t, __m256i, EINI_LOADI, eini_min_256q)
EINI_ACROSS_BODY(sum_f32, 512, float, __m512, _mm512_loadu_ps, _mm512_add_ps)
EINI_ACROSS_BODY(sum_f64, 512, double, __m512d, _mm512_loadu_pd, _mm512_add_pd)
EINI_ACROSS_BODY(sum_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_add_epi32)
EINI_ACROSS_BODY(sum_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_add_epi64)
EINI_ACROSS_BODY(prod_f32, 512, float, __m512, _mm512_loadu_ps, _mm512_mul_ps)
EINI_ACROSS_BODY(prod_f64, 512, double, __m512d, _mm512_loadu_pd, _mm512_mul_pd)
EINI_ACROSS_BODY(prod_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_mullo_epi32)
EINI_ACROSS_BODY(prod_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_mullo_epi64)
EINI_ACROSS_BODY(max_f32, 512, float, __m512, _mm512_loadu_ps, eini_max_512ps)
EINI_ACROSS_BODY(max_f64, 512, double, __m512d, _mm512_loadu_pd, eini_max_512pd)
EINI_ACROSS_BODY(max_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_max_epi32)
EINI_ACROSS_BODY(max_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_max_epi64)
EINI_ACROSS_BODY(min_f32, 512, float, __m512, _mm512_loadu_ps, eini_min_512ps)
EINI_ACROSS_BODY(min_f64, 512, double, __m512d, _mm512_loadu_pd, eini_min_512pd)
EINI_ACROSS_BODY(min_i32, 512, int32_t, __m512i, EINI_LOADZ, _mm512_min_epi32)
EINI_ACROSS_BODY(min_i64, 512, int64_t, __m512i, EINI_LOADZ, _mm512_min_epi64)
#undef EINI_LOADI
#undef EINI_LOADZ
#undef EINI_ACROSS_BODY
#undef EINI_ACROSS_AHEAD

// By fold (EINI_SUM first) and column of the type.
#define EINI_ACROSS_ROW(name, bits)                                                         \
  {NULL, eini_h_##name##_i32_##bits, eini_h_##name##_i64_##bits, eini_h_##name##_f32_##bits, \
   eini_h_##name##_f64_##bits, NULL, NULL}
#define EINI_ACROSS_ROWS(bits)                                                              \
  {EINI_ACROSS_ROW(sum, bits), EINI_ACROSS_ROW(prod, bits), EINI_ACROSS_ROW(max, bits),     \
   EINI_ACROSS_ROW(min, bits)}
static const eini_horizontal_fn eini_across_table_256[4][7] = EINI_ACROSS_ROWS(256);
static const eini_horizontal_fn eini_across_table_512[4][7] = EINI_ACROSS_ROWS(512);
#undef EINI_ACROSS_ROWS
#undef EINI_ACROSS_ROW

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  if (isa < EINI_ISA_AVX2 || fold < EINI_SUM || fold > EINI_MIN) return NULL;
  int column = eini_type_column(type);
  return isa == EINI_ISA_AVX512 ? eini_across_table_512[fold - EINI_SUM][column]
                                : eini_across_table_256[fold - EINI_SUM][column];
}

#else  // EINI_CPU_X86

// NEON is what the compiler uses anyway.
static ein_chunk_fn eini_cpu_chunk_fn(int isa, int op, ein_dtype type) {
  (void)isa;
  (void)op;
  (void)type;
  return NULL;
}

static eini_horizontal_fn eini_cpu_across_fn(int isa, int fold, ein_dtype type) {
  (void)isa;
  (void)fold;
  (void)type;
  return NULL;
}

#endif  // EINI_CPU_X86

// ================================================================================================
// >>families  kernels of contractions
// The least prediction wins; on a tie the family named first.
// ================================================================================================

static const eini_cpu_family *const eini_cpu_families[] = {NULL};

#define EINI_FAMILY_WORD 39    // of ein_choice.state: the number of the family

static int eini_cpu_contract_plan(const eini_cpu *m, const ein_contract *c, int width,
                                  ein_choice *choice) {
  ein_choice one;
  int found = 0;
  for (int i = 0; eini_cpu_families[i] != NULL; i++) {
    memset(&one, 0, sizeof one);
    if (!eini_cpu_families[i]->plan(m, c, width, &one)) continue;
    if (found && one.seconds >= choice->seconds) continue;
    *choice = one;
    choice->state[EINI_FAMILY_WORD] = i;
    found = 1;
  }
  return found;
}

static void eini_cpu_contract_run(const eini_cpu *m, const ein_contract *c,
                                  const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_cpu_families[choice->state[EINI_FAMILY_WORD]]->run(m, c, choice, part, scratch);
}

// ================================================================================================
// >>calibrate  rates of this machine, measured and as text
// The best of several short runs each. Text: "einsum_cpu 1 avx512 hz=.. ..", whole numbers, so that
// no locale matters.
// ================================================================================================

#define EINI_CALIBRATE_BYTES ((size_t)64 << 20)

// Chains of fused multiply-adds, enough of them to hide their latency.
#define EINI_PEAK(name, attribute, T, V, set1, fma)                                         \
  attribute static double eini_peak_##name(int64_t n, double seed) {                        \
    V a[12], b = set1((T)seed), c = set1((T)0.5);                                           \
    T out[sizeof(V) / sizeof(T)];                                                           \
    for (int k = 0; k < 12; k++) a[k] = set1((T)k);                                         \
    for (int64_t i = 0; i < n; i++) {                                                       \
      a[0] = fma(a[0], b, c), a[1] = fma(a[1], b, c), a[2] = fma(a[2], b, c);               \
      a[3] = fma(a[3], b, c), a[4] = fma(a[4], b, c), a[5] = fma(a[5], b, c);               \
      a[6] = fma(a[6], b, c), a[7] = fma(a[7], b, c), a[8] = fma(a[8], b, c);               \
      a[9] = fma(a[9], b, c), a[10] = fma(a[10], b, c), a[11] = fma(a[11], b, c);           \
    }                                                                                       \
    double sum = 0;                                                                         \
    for (int k = 0; k < 12; k++) {                                                          \
      memcpy(out, &a[k], sizeof out);                                                       \
      sum += (double)out[0];                                                                \
    }                                                                                       \
    return sum;                                                                             \
  }
#define EINI_PLAIN_SET(x) (x)
#define EINI_PLAIN_FMA(x, y, z) ((x) * (y) + (z))
EINI_PEAK(plain64, EINI_UNUSED, double, double, EINI_PLAIN_SET, EINI_PLAIN_FMA)
EINI_PEAK(plain32, EINI_UNUSED, float, float, EINI_PLAIN_SET, EINI_PLAIN_FMA)
#undef EINI_PLAIN_SET
#undef EINI_PLAIN_FMA
#if EINI_CPU_X86
EINI_PEAK(wide64, EINI_T512, double, __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
EINI_PEAK(wide32, EINI_T512, float, __m512, _mm512_set1_ps, _mm512_fmadd_ps)
EINI_PEAK(half64, EINI_T256, double, __m256d, _mm256_set1_pd, _mm256_fmadd_pd)
EINI_PEAK(half32, EINI_T256, float, __m256, _mm256_set1_ps, _mm256_fmadd_ps)
#elif EINI_CPU_NEON
#define EINI_NEON_FMA64(x, y, z) vfmaq_f64(z, x, y)
#define EINI_NEON_FMA32(x, y, z) vfmaq_f32(z, x, y)
EINI_PEAK(neon64, EINI_UNUSED, double, float64x2_t, vdupq_n_f64, EINI_NEON_FMA64)
EINI_PEAK(neon32, EINI_UNUSED, float, float32x4_t, vdupq_n_f32, EINI_NEON_FMA32)
#undef EINI_NEON_FMA64
#undef EINI_NEON_FMA32
#endif
#undef EINI_PEAK

typedef struct eini_peak_row {
  double (*f64)(int64_t n, double seed), (*f32)(int64_t n, double seed);
  int bytes;                   // of a vector; 0: of one element
} eini_peak_row;

static const eini_peak_row eini_peaks[EINI_ISA_COUNT] = {
    {eini_peak_plain64, eini_peak_plain32, 0},
#if EINI_CPU_NEON
    {eini_peak_neon64, eini_peak_neon32, 16},
#else
    {NULL, NULL, 0},
#endif
#if EINI_CPU_X86
    {eini_peak_half64, eini_peak_half32, 32},
    {eini_peak_wide64, eini_peak_wide32, 64}};
#else
    {NULL, NULL, 0},
    {NULL, NULL, 0}};
#endif

// Cycles per second from a chain of multiplications of three cycles each.
static double eini_measure_hz(volatile uint64_t *sink) {
  double best = 1;
  for (int r = 0; r < 4; r++) {
    uint64_t x = *sink | 1, y = x;
    double t = eini_cpu_now();
    for (int i = 0; i < 200000; i++) {
      x *= y;
#if defined(__GNUC__) || defined(__clang__)
      __asm__ volatile("" : "+r"(x));
#endif
    }
    t = eini_cpu_now() - t;
    *sink = x;
    best = t > 0 && t < best ? t : best;
  }
  return 3 * 200000 / best;
}

static double eini_measure_peak(double (*fn)(int64_t n, double seed), int lanes,
                                volatile double *sink) {
  double best = 1;
  const int64_t n = 60000;
  for (int r = 0; r < 4; r++) {
    double t = eini_cpu_now();
    *sink += fn(n, 0.25);
    t = eini_cpu_now() - t;
    best = t > 0 && t < best ? t : best;
  }
  return 2.0 * 12 * lanes * (double)n / best;
}

// Bytes read per second from a buffer, swept often enough to be timed.
static double eini_measure_read(const eini_cpu *m, const char *p, int64_t bytes, int64_t total) {
  eini_horizontal_fn fn = eini_cpu_across_fn(m->isa, EINI_SUM, EIN_I64);
  if (fn == NULL) fn = eini_h_sum_i64;
  double best = 1;
  for (int r = 0; r < 4; r++) {
    int64_t acc = 0, done = 0;
    double t = eini_cpu_now();
    for (; done < total; done += bytes) fn(bytes / 8, p, &acc);
    t = (eini_cpu_now() - t) / (double)done;
    best = t > 0 && t < best ? t : best;
  }
  return 1 / best;
}

static double eini_measure_copy(const eini_cpu *m, const char *src, char *dst, int64_t bytes) {
  double best = 1;
  for (int r = 0; r < 4; r++) {
    double t = eini_cpu_now();
    eini_stream_row(m->isa, (size_t)bytes, src, dst);
    eini_stream_end();
    t = eini_cpu_now() - t;
    best = t > 0 && t < best ? t : best;
  }
  return 2 * (double)bytes / best;
}

static void eini_cpu_measure(eini_cpu *m, char *mem) {
  volatile uint64_t sink = 3;
  volatile double out = 0;
  const int64_t size = (int64_t)EINI_CALIBRATE_BYTES;
  const eini_peak_row *p = &eini_peaks[m->isa];
  memset(mem, 1, EINI_CALIBRATE_BYTES);
  m->hz = eini_measure_hz(&sink);
  m->peak_f64 = eini_measure_peak(p->f64, p->bytes > 0 ? p->bytes / 8 : 1, &out);
  m->peak_f32 = eini_measure_peak(p->f32, p->bytes > 0 ? p->bytes / 4 : 1, &out);
  m->read_bw = eini_measure_read(m, mem, size, size);
  m->copy_bw = eini_measure_copy(m, mem, mem + size / 2, size / 2);
  m->l2_bw = eini_measure_read(m, mem, m->l2 / 128 * 64, 8 << 20);
  int64_t third = eini_min64(m->l3 / 2, size / 4) / 64 * 64;
  m->l3_bw = third > m->l2 ? eini_measure_read(m, mem, third, third) : m->l2_bw;
  if (m->l3_bw > m->l2_bw) m->l2_bw = m->l3_bw;
}

#define EINI_RATE_LIST(X) \
  X(hz, 1) X(peak_f64, 1) X(peak_f32, 1) X(read_bw, 1) X(copy_bw, 1) X(l2_bw, 1) X(l3_bw, 1) \
  X(call, 1e12)

static size_t eini_cpu_rates_print(const eini_cpu *m, char *buf, size_t size) {
  int n = snprintf(buf, size, "einsum_cpu 1 %s", eini_isa_names[m->isa]);
#define EINI_RATE_PRINT(name, unit)                                                         \
  n += snprintf(buf != NULL && (size_t)n < size ? buf + n : NULL,                           \
                buf != NULL && (size_t)n < size ? size - (size_t)n : 0, " " #name "=%.0f",  \
                m->name * unit);
  EINI_RATE_LIST(EINI_RATE_PRINT)
#undef EINI_RATE_PRINT
  n += snprintf(buf != NULL && (size_t)n < size ? buf + n : NULL,
                buf != NULL && (size_t)n < size ? size - (size_t)n : 0, " end");
  return (size_t)n;
}

// The word at *at, which moves behind it and the blanks after it.
static int eini_rates_word(const char **at, const char *word) {
  size_t n = strlen(word);
  if (strncmp(*at, word, n) != 0) return 0;
  *at += n;
  while (**at == ' ') ++*at;
  return 1;
}

static int eini_rates_number(const char **at, double unit, double *value) {
  double v = 0;
  const char *first = *at;
  for (; **at >= '0' && **at <= '9' && *at - first < 18; ++*at) v = 10 * v + (**at - '0');
  if (*at == first || **at != ' ') return 0;
  while (**at == ' ') ++*at;
  *value = v / unit;
  return v > 0;
}

static ein_status eini_cpu_rates_parse(eini_cpu *m, const char *text) {
  eini_cpu r = *m;
  const char *at = text;
  if (!eini_rates_word(&at, "einsum_cpu ") || !eini_rates_word(&at, "1 ")) return EIN_ERR_SYNTAX;
  if (!eini_rates_word(&at, eini_isa_names[m->isa])) return EIN_ERR_UNSUPPORTED;
#define EINI_RATE_PARSE(name, unit) \
  if (!eini_rates_word(&at, #name "=") || !eini_rates_number(&at, unit, &r.name)) { \
    return EIN_ERR_SYNTAX; \
  }
  EINI_RATE_LIST(EINI_RATE_PARSE)
#undef EINI_RATE_PARSE
  if (strncmp(at, "end", 3) != 0) return EIN_ERR_SYNTAX;  // cut short
  *m = r;
  return EIN_OK;
}
#undef EINI_RATE_LIST

// ================================================================================================
// >>cpu-public  the provider and what a caller sees
// Thin functions around the sections above.
// ================================================================================================

#define EINI_CPU_PROVIDERS 8

struct ein_cpu {
  eini_cpu machine;
  eini_pool pool;
  ein_kernels kernels;
  const ein_kernels *provider[EINI_CPU_PROVIDERS];
  ein_allocator allocator;
  size_t bytes;
  int calibrated;
};

static int eini_slot_contract_plan(void *user, const ein_contract *c, int width,
                                   ein_choice *choice) {
  return eini_cpu_contract_plan(&((const ein_cpu *)user)->machine, c, width, choice);
}
static void eini_slot_contract_run(void *user, const ein_contract *c, const ein_choice *choice,
                                   const ein_part *part, void *scratch) {
  eini_cpu_contract_run(&((const ein_cpu *)user)->machine, c, choice, part, scratch);
}
static int eini_slot_copy_plan(void *user, const ein_copy *c, int width, ein_choice *choice) {
  return eini_cpu_copy_plan(&((const ein_cpu *)user)->machine, c, width, choice);
}
static void eini_slot_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                               void *scratch) {
  eini_cpu_copy_run(&((const ein_cpu *)user)->machine, c, choice, scratch);
}
static ein_chunk_fn eini_slot_chunk(void *user, int op, ein_dtype type) {
  return eini_cpu_chunk_fn(((const ein_cpu *)user)->machine.isa, op, type);
}
static void (*eini_slot_across(void *user, int fold, ein_dtype type))(int64_t, const void *,
                                                                      void *) {
  return eini_cpu_across_fn(((const ein_cpu *)user)->machine.isa, fold, type);
}
// Called for small pieces, so there is no fence here: whatever tells other threads that the work is
// done (a locked instruction, a system call) orders these stores too, and the pool has a fence.
static void eini_slot_stream(void *user, size_t bytes, const void *src, void *dst) {
  eini_stream_row(((const ein_cpu *)user)->machine.isa, bytes, (const char *)src, (char *)dst);
}

static void *eini_cpu_alloc_default(size_t size, size_t align, void *user) {
  (void)align;
  (void)user;
  return EINSUM_MALLOC(size);
}
static void eini_cpu_free_default(void *ptr, size_t size, void *user) {
  (void)size;
  (void)user;
  EINSUM_FREE(ptr);
}

// What planners see of the rates; after whatever changes them.
static void eini_cpu_rates(ein_cpu *cpu) {
  const eini_cpu *m = &cpu->machine;
  ein_rates *r = &cpu->kernels.rates;
  r->flops_f64 = m->peak_f64;
  r->flops_f32 = m->peak_f32;
  r->read_bw = m->read_bw;
  r->copy_bw = m->copy_bw;
  r->fast_bytes = (double)m->l2;
}

static void eini_cpu_provide(ein_cpu *cpu) {
  ein_kernels *k = &cpu->kernels;
  k->name = "cpu";
  k->user = cpu;
  k->contract_plan = eini_slot_contract_plan;
  k->contract_run = eini_slot_contract_run;
  k->copy_plan = eini_slot_copy_plan;
  k->copy_run = eini_slot_copy_run;
  k->chunk_fn = eini_slot_chunk;
  k->across_fn = eini_slot_across;
  if (EINI_STREAM_LINE > 0) k->stream_fn = eini_slot_stream;
  k->stream_bytes = (size_t)(cpu->machine.l3 * cpu->machine.width / 2);
  eini_cpu_rates(cpu);
}

static ein_status eini_cpu_new(const ein_cpu_desc *desc, const ein_allocator *allocator,
                               ein_cpu **out) {
  eini_cpu m;
  uint64_t mask[EINI_CPU_MASK_WORDS];
  memset(&m, 0, sizeof m);
  m.width = desc->threads > 0 ? desc->threads : eini_cpu_cores(mask);
  if (!EINI_CPU_THREADS) m.width = 1;
  if (!eini_cpu_detect(&m, desc->isa)) return EIN_ERR_UNSUPPORTED;
  size_t bytes = sizeof(ein_cpu);
#if EINI_CPU_THREADS
  bytes += (size_t)(m.width - 1) * sizeof(pthread_t);
#endif
  ein_cpu *cpu = (ein_cpu *)allocator->alloc_fn(bytes, 64, allocator->user);
  if (cpu == NULL) return EIN_ERR_NO_MEMORY;
  memset(cpu, 0, bytes);
  cpu->machine = m;
  cpu->allocator = *allocator;
  cpu->bytes = bytes;
#if EINI_CPU_THREADS
  eini_pool_init(&cpu->pool, m.width, desc->pin, (pthread_t *)(void *)(cpu + 1));
  cpu->machine.width = cpu->pool.width;
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
  plain.alloc_fn = eini_cpu_alloc_default;
  plain.free_fn = eini_cpu_free_default;
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
  if (cpu == NULL || desc == NULL || desc->nkernels < 0) return EIN_ERR_ARGUMENT;
  if (desc->nkernels > EINI_CPU_PROVIDERS - 1) return EIN_ERR_TOO_LARGE;
  for (int i = desc->nkernels - 1; i >= 0; i--) cpu->provider[i + 1] = desc->kernels[i];
  cpu->provider[0] = &cpu->kernels;
  desc->nkernels++;
  desc->kernels = cpu->provider;
  desc->executor = ein_cpu_executor(cpu);
  return EIN_OK;
}

EIN_API size_t ein_cpu_info(const ein_cpu *cpu, char *buf, size_t size) {
  if (cpu == NULL) return 0;
  const eini_cpu *m = &cpu->machine;
  int n = snprintf(
      buf, size,
      "instruction set: %s (best here: %s)\nthreads: %d\n"
      "caches per core: L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\nrates: %s\n"
      "frequency: %.2f GHz\npeak per core: %.1f GFLOP/s f64, %.1f GFLOP/s f32\n"
      "memory per core: read %.1f GB/s, copy %.1f GB/s\ncaches: L2 %.0f GB/s, L3 %.0f GB/s\n",
      eini_isa_names[m->isa], eini_isa_names[eini_isa_best()], m->width, (long long)(m->l1 >> 10),
      (long long)(m->l2 >> 10), (long long)(m->l3 >> 10),
      cpu->calibrated ? "calibrated" : "by table, not calibrated", m->hz * 1e-9,
      m->peak_f64 * 1e-9, m->peak_f32 * 1e-9, m->read_bw * 1e-9, m->copy_bw * 1e-9,
      m->l2_bw * 1e-9, m->l3_bw * 1e-9);
  return n < 0 ? 0 : (size_t)n;
}

EIN_API ein_status ein_cpu_calibrate(ein_cpu *cpu) {
  if (cpu == NULL) return EIN_ERR_ARGUMENT;
  if (!EINI_CPU_POSIX) return EIN_ERR_UNSUPPORTED;
  char *mem = (char *)cpu->allocator.alloc_fn(EINI_CALIBRATE_BYTES, 64, cpu->allocator.user);
  if (mem == NULL) return EIN_ERR_NO_MEMORY;
  eini_cpu_measure(&cpu->machine, mem);
  cpu->allocator.free_fn(mem, EINI_CALIBRATE_BYTES, cpu->allocator.user);
  cpu->calibrated = 1;
  eini_cpu_rates(cpu);
  return EIN_OK;
}

EIN_API size_t ein_cpu_export(const ein_cpu *cpu, char *buf, size_t size) {
  return cpu == NULL ? 0 : eini_cpu_rates_print(&cpu->machine, buf, size);
}

EIN_API ein_status ein_cpu_import(ein_cpu *cpu, const char *text) {
  if (cpu == NULL || text == NULL) return EIN_ERR_ARGUMENT;
  ein_status st = eini_cpu_rates_parse(&cpu->machine, text);
  if (st == EIN_OK) cpu->calibrated = 1;
  eini_cpu_rates(cpu);
  return st;
}

#endif  // EINSUM_IMPLEMENTATION
