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
