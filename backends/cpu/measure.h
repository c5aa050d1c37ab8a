// ================================================================================================
// >>measure  what only this backend can measure
// Cycles, arithmetic of an instruction set, and from which size on transposes are faster past the
// caches. The best of several short runs each.
// ================================================================================================

typedef struct eini_clock {
  double (*now_fn)(void *user);
  void *user;
} eini_clock;

static double eini_clock_now(const eini_clock *c) { return c->now_fn(c->user); }

#define EINI_MEASURE_BYTES ((size_t)64 << 20)

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
// Dot products: as many lanes of sums, each of two or four products.
#if EINI_CPU_DOTS
#define EINI_BF16_DOT(x, y, z) _mm512_dpbf16_ps(z, (__m512bh)(x), (__m512bh)(y))
#define EINI_I8_DOT(x, y, z) _mm512_dpbusd_epi32(z, x, y)
EINI_PEAK(bf16, EINI_TDOT, float, __m512, _mm512_set1_ps, EINI_BF16_DOT)
EINI_PEAK(i8, EINI_TDOT, int32_t, __m512i, _mm512_set1_epi32, EINI_I8_DOT)
#undef EINI_BF16_DOT
#undef EINI_I8_DOT
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

static double eini_measure_peak(const eini_clock *now, double (*fn)(int64_t n, double seed),
                                int lanes, volatile double *sink) {
  double best = 1;
  const int64_t n = 60000;
  for (int r = 0; r < 4; r++) {
    double t = eini_clock_now(now);
    *sink = *sink + fn(n, 0.25);
    t = eini_clock_now(now) - t;
    best = t > 0 && t < best ? t : best;
  }
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
  volatile double out = 0;
  if (m->is.has & EINI_HAS_BF16)
    r->flops_bf16 = eini_measure_peak(now, eini_peak_bf16, 2 * 16, &out);
  if (m->is.has & EINI_HAS_VNNI) r->flops_i8 = eini_measure_peak(now, eini_peak_i8, 4 * 16, &out);
#endif
#if EINI_CPU_AMX
  if (m->is.has & EINI_HAS_AMX_BF16) r->flops_bf16 = eini_measure_tiles(now, 1, 32);
  if (m->is.has & EINI_HAS_AMX_I8) r->flops_i8 = eini_measure_tiles(now, 0, 64);
#endif
  (void)m, (void)now;
}

static void eini_cpu_measure(const eini_rated *m, const eini_clock *now, char *mem,
                             ein_rates *r) {
  volatile uint64_t sink = 3;
  volatile double out = 0;
  const eini_peak_row *p = &eini_peaks[m->is.isa];
  r->hz = eini_measure_hz(now, &sink);
  r->flops_f64 = eini_measure_peak(now, p->f64, p->bytes > 0 ? p->bytes / 8 : 1, &out);
  r->flops_f32 = eini_measure_peak(now, p->f32, p->bytes > 0 ? p->bytes / 4 : 1, &out);
  eini_measure_dots(m, now, r);
  r->stream_bytes = eini_measure_past(m, now, r, mem) * m->is.l3s;
}
