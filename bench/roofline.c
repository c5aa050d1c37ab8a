// Ceilings of this machine: operations in registers with the widest vectors it has, and bandwidth
// of reading, copying (plain and non-temporal stores) and triad for working sets of any size, on
// one or more pinned threads. Intrinsics on x86-64 with a target per function, plain C elsewhere.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#endif

#include "bench.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define ROOF_X86 1
#else
#define ROOF_X86 0
#endif

#define CHAINS 16     // hides latency times throughput of every unit so far
#define MOST_THREADS 256

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- operations in registers -------------------------------------------------------------------
// n rounds of one step on each chain. Values settle, so nothing overflows or becomes denormal; they
// start from memory, as chains of known equal values would become one.

typedef void (*peak_fn)(int64_t n, void *out);

#define PEAK_LOOP(V, START, STORE, PLUS, STEP)                      \
  {                                                                 \
    V acc[CHAINS];                                                  \
    for (int j = 0; j < CHAINS; j++) acc[j] = START(out[j]);        \
    for (int64_t i = 0; i < n; i++) {                               \
      for (int j = 0; j < CHAINS; j++) STEP;                        \
    }                                                               \
    for (int j = 1; j < CHAINS; j++) acc[0] = PLUS(acc[0], acc[j]); \
    STORE(out, acc[0]);                                             \
  }

#define PEAK_SET(NAME, TARGET, T, V, SET1, STORE, FMA, ADD, SUB, MIN, ABS)        \
  TARGET static void fma_##NAME(int64_t n, void *to) {                            \
    T *out = (T *)to;                                                             \
    const V half = SET1((T)0.5);                                                  \
    PEAK_LOOP(V, SET1, STORE, ADD, acc[j] = FMA(acc[j], half, half))              \
  }                                                                               \
  TARGET static void addmin_##NAME(int64_t n, void *to) {                         \
    T *out = (T *)to;                                                             \
    const V one = SET1((T)1), half = SET1((T)0.5);                                \
    PEAK_LOOP(V, SET1, STORE, ADD, acc[j] = MIN(ADD(acc[j], half), one))          \
  }                                                                               \
  TARGET static void subfma_##NAME(int64_t n, void *to) {                         \
    T *out = (T *)to;                                                             \
    const V half = SET1((T)0.5), less = SET1((T)-0.5);                            \
    PEAK_LOOP(V, SET1, STORE, ADD, acc[j] = FMA(SUB(acc[j], half), less, acc[j])) \
  }                                                                               \
  TARGET static void absadd_##NAME(int64_t n, void *to) {                         \
    T *out = (T *)to;                                                             \
    const V one = SET1((T)1), half = SET1((T)0.5);                                \
    PEAK_LOOP(V, SET1, STORE, ADD, acc[j] = ADD(ABS(SUB(acc[j], one)), half))     \
  }

#define SCALAR_SET1(x) (x)
#define SCALAR_STORE(p, v) (*(p) = (v))
#define SCALAR_FMA(a, b, c) ((a) * (b) + (c))
#define SCALAR_ADD(a, b) ((a) + (b))
#define SCALAR_SUB(a, b) ((a) - (b))
#define SCALAR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SCALAR_ABS(a) ((a) < 0 ? -(a) : (a))
PEAK_SET(f32_c, , float, float, SCALAR_SET1, SCALAR_STORE, SCALAR_FMA, SCALAR_ADD, SCALAR_SUB,
         SCALAR_MIN, SCALAR_ABS)
PEAK_SET(f64_c, , double, double, SCALAR_SET1, SCALAR_STORE, SCALAR_FMA, SCALAR_ADD, SCALAR_SUB,
         SCALAR_MIN, SCALAR_ABS)

#if ROOF_X86
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512dq")))
#define ABS256_PS(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define ABS256_PD(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
PEAK_SET(f32_avx2, AVX2, float, __m256, _mm256_set1_ps, _mm256_storeu_ps, _mm256_fmadd_ps,
         _mm256_add_ps, _mm256_sub_ps, _mm256_min_ps, ABS256_PS)
PEAK_SET(f64_avx2, AVX2, double, __m256d, _mm256_set1_pd, _mm256_storeu_pd, _mm256_fmadd_pd,
         _mm256_add_pd, _mm256_sub_pd, _mm256_min_pd, ABS256_PD)
PEAK_SET(f32_avx512, AVX512, float, __m512, _mm512_set1_ps, _mm512_storeu_ps, _mm512_fmadd_ps,
         _mm512_add_ps, _mm512_sub_ps, _mm512_min_ps, _mm512_abs_ps)
PEAK_SET(f64_avx512, AVX512, double, __m512d, _mm512_set1_pd, _mm512_storeu_pd, _mm512_fmadd_pd,
         _mm512_add_pd, _mm512_sub_pd, _mm512_min_pd, _mm512_abs_pd)
#endif

#define PEAK_ROW(NAME) {fma_##NAME, addmin_##NAME, subfma_##NAME, absadd_##NAME}
typedef struct peak_isa {
  const char *name;
  int lanes[2];      // f32, f64
  peak_fn fn[2][4];
} peak_isa;

static const peak_isa peaks[] = {
  {"plain C", {1, 1}, {PEAK_ROW(f32_c), PEAK_ROW(f64_c)}},
#if ROOF_X86
  {"AVX2", {8, 4}, {PEAK_ROW(f32_avx2), PEAK_ROW(f64_avx2)}},
  {"AVX-512", {16, 8}, {PEAK_ROW(f32_avx512), PEAK_ROW(f64_avx512)}},
#endif
};

static int isa(void) {
#if ROOF_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

const char *roof_isa(void) { return peaks[isa()].name; }

// ---- streams -----------------------------------------------------------------------------------
// n doubles, a multiple of 64, 64-byte aligned. The result keeps compilers from leaving work out.

typedef double (*stream_fn)(double *a, const double *b, const double *c, size_t n);

static double read_c(double *a, const double *b, const double *c, size_t n) {
  double s[8] = {0};
  (void)b;
  (void)c;
  for (size_t i = 0; i < n; i += 8) {
    for (size_t j = 0; j < 8; j++) s[j] += a[i + j];
  }
  for (size_t j = 1; j < 8; j++) s[0] += s[j];
  return s[0];
}

static double copy_c(double *a, const double *b, const double *c, size_t n) {
  (void)c;
  memcpy(a, b, n * sizeof *a);
  return a[0];
}

static double triad_c(double *a, const double *b, const double *c, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5 * c[i];
  return a[0];
}

static double write_c(double *a, const double *b, const double *c, size_t n) {
  (void)b;
  (void)c;
  for (size_t i = 0; i < n; i++) a[i] = 1.0;
  return a[0];
}

#if ROOF_X86
// Unrolled to one or more lines a round, so that loads, not the loop, are the limit.
#define STREAM_READ(NAME, TARGET, V, W, ZERO, LOAD, ADD, STOREU)                            \
  TARGET static double read_##NAME(double *a, const double *b, const double *c, size_t n) { \
    V s[8];                                                                                 \
    double out[W], sum = 0;                                                                 \
    (void)b;                                                                                \
    (void)c;                                                                                \
    for (int j = 0; j < 8; j++) s[j] = ZERO();                                              \
    for (size_t i = 0; i < n; i += 8 * W) {                                                 \
      for (size_t j = 0; j < 8; j++) s[j] = ADD(s[j], LOAD(a + i + j * W));                 \
    }                                                                                       \
    for (int j = 1; j < 8; j++) s[0] = ADD(s[0], s[j]);                                     \
    STOREU(out, s[0]);                                                                      \
    for (int k = 0; k < W; k++) sum += out[k];                                              \
    return sum;                                                                             \
  }

#define STREAM_BODY(NAME, TARGET, W, EXPR, STORE)                                    \
  TARGET static double NAME(double *a, const double *b, const double *c, size_t n) { \
    (void)b;                                                                         \
    (void)c;                                                                         \
    for (size_t i = 0; i < n; i += 4 * W) {                                          \
      for (size_t j = i; j < i + 4 * W; j += W) STORE(a + j, EXPR);                  \
    }                                                                                \
    _mm_sfence();                                                                    \
    return a[0];                                                                     \
  }

STREAM_READ(avx2, AVX2, __m256d, 4, _mm256_setzero_pd, _mm256_load_pd, _mm256_add_pd,
            _mm256_storeu_pd)
STREAM_READ(avx512, AVX512, __m512d, 8, _mm512_setzero_pd, _mm512_load_pd, _mm512_add_pd,
            _mm512_storeu_pd)
#define TRIAD256 _mm256_fmadd_pd(_mm256_set1_pd(0.5), _mm256_load_pd(c + j), _mm256_load_pd(b + j))
#define TRIAD512 _mm512_fmadd_pd(_mm512_set1_pd(0.5), _mm512_load_pd(c + j), _mm512_load_pd(b + j))
STREAM_BODY(copy_avx2, AVX2, 4, _mm256_load_pd(b + j), _mm256_store_pd)
STREAM_BODY(copy_nt_avx2, AVX2, 4, _mm256_load_pd(b + j), _mm256_stream_pd)
STREAM_BODY(triad_avx2, AVX2, 4, TRIAD256, _mm256_store_pd)
STREAM_BODY(triad_nt_avx2, AVX2, 4, TRIAD256, _mm256_stream_pd)
STREAM_BODY(write_nt_avx2, AVX2, 4, _mm256_set1_pd(1.0), _mm256_stream_pd)
STREAM_BODY(copy_avx512, AVX512, 8, _mm512_load_pd(b + j), _mm512_store_pd)
STREAM_BODY(copy_nt_avx512, AVX512, 8, _mm512_load_pd(b + j), _mm512_stream_pd)
STREAM_BODY(triad_avx512, AVX512, 8, TRIAD512, _mm512_store_pd)
STREAM_BODY(triad_nt_avx512, AVX512, 8, TRIAD512, _mm512_stream_pd)
STREAM_BODY(write_nt_avx512, AVX512, 8, _mm512_set1_pd(1.0), _mm512_stream_pd)
#endif

static const stream_fn streams[][6] = {
  {read_c, copy_c, copy_c, triad_c, triad_c, write_c},
#if ROOF_X86
  {read_avx2, copy_avx2, copy_nt_avx2, triad_avx2, triad_nt_avx2, write_nt_avx2},
  {read_avx512, copy_avx512, copy_nt_avx512, triad_avx512, triad_nt_avx512, write_nt_avx512},
#endif
};
static const int stream_arrays[6] = {1, 2, 2, 3, 3, 1};

// ---- pinned threads that start together --------------------------------------------------------

typedef struct roof_team {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  int waiting, round, threads;
} roof_team;

typedef struct roof_job {
  roof_team *team;
  int thread, failed;
  peak_fn peak;
  stream_fn stream;
  size_t n;          // doubles of one array, or rounds of a chain
  int arrays;
  int64_t reps;
  double start, stop, sink;
} roof_job;

static void meet(roof_team *t) {
  pthread_mutex_lock(&t->lock);
  int round = t->round;
  if (++t->waiting == t->threads) {
    t->waiting = 0;
    t->round++;
    pthread_cond_broadcast(&t->wake);
  }
  while (round == t->round) pthread_cond_wait(&t->wake, &t->lock);
  pthread_mutex_unlock(&t->lock);
}

// The thread-th processor this process may use.
static void pin(int thread) {
#if defined(__linux__)
  cpu_set_t may, one;
  if (sched_getaffinity(0, sizeof may, &may) != 0) return;
  int count = CPU_COUNT(&may), at = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET((size_t)cpu, &may) || at++ != thread % count) continue;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
#else
  (void)thread;
#endif
}

// Arrays on huge pages where they may be, a line apart in their sets, touched by their own thread.
static double *arrays_new(size_t n, int arrays, void **raw) {
  size_t huge = (size_t)2 << 20, one = n * sizeof(double) + 1088;
  size_t bytes = ((size_t)arrays * one + huge) / huge * huge;
  *raw = malloc(bytes + huge);
  if (*raw == NULL) return NULL;
  double *p = (double *)(((uintptr_t)*raw + huge - 1) / huge * huge);
#if defined(__linux__)
  madvise(p, bytes, MADV_HUGEPAGE);
#endif
  for (size_t i = 0; i < bytes / sizeof *p; i++) p[i] = 1.0;
  return p;
}

static void work(roof_job *job, double *a, size_t step) {
  for (int64_t r = 0; r < job->reps; r++) {
    if (job->peak != NULL) {
      double out[16] = {1.0};
      job->peak((int64_t)job->n, out);
      job->sink += out[0];
    } else {
      job->sink += job->stream(a, a + step, a + 2 * step, job->n);
    }
  }
}

static void *member(void *arg) {
  roof_job *job = (roof_job *)arg;
  void *raw = NULL;
  double *a = NULL;
  size_t step = job->n + 1088 / sizeof(double) / 8 * 8;
  pin(job->thread);
  if (job->stream != NULL) {
    a = arrays_new(job->n, 3, &raw);
    job->failed = a == NULL;
  }
  if (!job->failed) work(job, a, job->arrays > 1 ? step : 0);
  meet(job->team);
  job->start = now();
  if (!job->failed) work(job, a, job->arrays > 1 ? step : 0);
  job->stop = now();
  free(raw);
  return NULL;
}

// Seconds from the first start to the last stop; 0 when something failed.
static double team_run(const roof_job *pattern, int threads) {
  static roof_job jobs[MOST_THREADS];
  pthread_t id[MOST_THREADS];
  roof_team team;
  memset(&team, 0, sizeof team);
  pthread_mutex_init(&team.lock, NULL);
  pthread_cond_init(&team.wake, NULL);
  team.threads = threads;
  for (int t = 0; t < threads; t++) {
    jobs[t] = *pattern;
    jobs[t].team = &team;
    jobs[t].thread = t;
    if (pthread_create(&id[t], NULL, member, &jobs[t]) != 0) abort();
  }
  double first = 0, last = 0;
  int failed = 0;
  for (int t = 0; t < threads; t++) {
    pthread_join(id[t], NULL);
    if (t == 0 || jobs[t].start < first) first = jobs[t].start;
    if (t == 0 || jobs[t].stop > last) last = jobs[t].stop;
    failed |= jobs[t].failed;
  }
  pthread_cond_destroy(&team.wake);
  pthread_mutex_destroy(&team.lock);
  return failed ? 0 : last - first;
}

// Best rate of units per run and thread; runs are repeated until one takes 20 ms, or 4 ms where one
// trial is enough.
static double best_rate(roof_job *job, double units, int threads, int trials) {
  double best = 0, least = trials > 1 ? 0.02 : 0.004;
  job->reps = 1;
  for (double t = 0; t < least;) {
    t = team_run(job, threads);
    if (t <= 0) return 0;
    if (t < least) {
      job->reps = (int64_t)((double)job->reps * (t < least / 10 ? 10 : 1.25 * least / t)) + 1;
    }
  }
  for (int trial = 0; trial < trials; trial++) {
    double t = team_run(job, threads);
    double rate = t <= 0 ? 0 : units * (double)job->reps * threads / t * 1e-9;
    if (rate > best) best = rate;
  }
  return best;
}

static int clamp_threads(int threads) {
  return threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
}

double roof_peak(int kind, int f64, int threads, int trials) {
  static const int operations[4] = {2, 2, 2, 3};
  roof_job job;
  memset(&job, 0, sizeof job);
  job.peak = peaks[isa()].fn[f64 != 0][kind];
  job.n = 100000;
  double units = (double)job.n * CHAINS * peaks[isa()].lanes[f64 != 0] * operations[kind];
  return best_rate(&job, units, clamp_threads(threads), trials);
}

double roof_stream(int kind, size_t bytes, int threads, int trials) {
  roof_job job;
  threads = clamp_threads(threads);
  memset(&job, 0, sizeof job);
  job.stream = streams[isa()][kind];
  job.arrays = stream_arrays[kind];
  job.n = bytes / (size_t)threads / (size_t)job.arrays / sizeof(double) / 64 * 64;
  if (job.n < 64) job.n = 64;
  return best_rate(&job, (double)job.n * job.arrays * sizeof(double), threads, trials);
}
