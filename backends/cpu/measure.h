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
