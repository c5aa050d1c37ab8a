// ================================================================================================
// >>calibrate  rates of this machine, measured and as text
// The best of several short runs each. Text: "einsum_cpu 2 avx512 hz=.. ..", whole numbers, so that
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
    *sink = *sink + fn(n, 0.25);
    t = eini_cpu_now() - t;
    best = t > 0 && t < best ? t : best;
  }
  return 2.0 * 12 * lanes * (double)n / best;
}

// Bytes read per second from a buffer, swept often enough to be timed.
static double eini_measure_read(const eini_rated *m, const char *p, int64_t bytes, int64_t total) {
  eini_horizontal_fn fn = eini_cpu_across_fn(m->is.isa, EIN_FOLD_SUM, EIN_I64);
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

static double eini_measure_copy(const eini_rated *m, const char *src, char *dst, int64_t bytes) {
  double best = 1;
  for (int r = 0; r < 4; r++) {
    double t = eini_cpu_now();
    eini_stream_row(m->is.isa, (size_t)bytes, src, dst);
    eini_stream_end();
    t = eini_cpu_now() - t;
    best = t > 0 && t < best ? t : best;
  }
  return 2 * (double)bytes / best;
}

// Seconds of a transpose of n rows of n numbers of 8 bytes, past the caches or not.
static double eini_measure_turn(const eini_rated *m, int64_t n, char *mem, int stream) {
  const int64_t extent[2] = {n, n}, src[2] = {1, n}, dst[2] = {n, 1};
  const ein_copy c = {2, extent, src, dst, 8, mem + EINI_COPY_BUFFER,
                      mem + EINI_COPY_BUFFER + 8 * n * n};
  double best = 1;
  for (int r = 0; r < 2; r++) {
    double t = eini_cpu_now();
    eini_copy_go(m->is.isa, &c, stream, mem);
    if (stream) eini_stream_end();
    t = eini_cpu_now() - t;
    best = t > 0 && t < best ? t : best;
  }
  return best;
}

// The size from which on transposes are faster past the caches, by steps of 2 of the bytes; beyond
// what the memory holds, what the caches are said to be.
static double eini_measure_past(const eini_rated *m, char *mem) {
  const double said = (double)m->is.l3 * m->is.width / 2 / m->is.l3s;
  double from = 0;
  if (EINI_STREAM_LINE == 0) return said;
  for (int64_t side = 256, wins = 0; wins < 3; side = side * 181 / 128) {
    const int64_t n = side | 8;  // no high power of two
    if (16 * n * n + EINI_COPY_BUFFER > (int64_t)EINI_CALIBRATE_BYTES) break;
    const double keep = eini_measure_turn(m, n, mem, 0);
    wins = eini_measure_turn(m, n, mem, 1) < keep ? wins + 1 : 0;
    if (wins == 1) from = 8 * (double)n * (double)n / 1.4;
    if (wins == 0) from = 0;
  }
  return from > 0 ? from : said > 32e6 ? said : 32e6;
}

static void eini_cpu_measure(eini_rated *m, char *mem) {
  volatile uint64_t sink = 3;
  volatile double out = 0;
  const int64_t size = (int64_t)EINI_CALIBRATE_BYTES;
  const eini_peak_row *p = &eini_peaks[m->is.isa];
  memset(mem, 1, EINI_CALIBRATE_BYTES);
  m->hz = eini_measure_hz(&sink);
  m->peak_f64 = eini_measure_peak(p->f64, p->bytes > 0 ? p->bytes / 8 : 1, &out);
  m->peak_f32 = eini_measure_peak(p->f32, p->bytes > 0 ? p->bytes / 4 : 1, &out);
  m->read_bw = eini_measure_read(m, mem, size, size);
  m->copy_bw = eini_measure_copy(m, mem, mem + size / 2, size / 2);
  m->l2_bw = eini_measure_read(m, mem, m->is.l2 / 128 * 64, 8 << 20);
  int64_t third = eini_min64(m->is.l3 / 2, size / 4) / 64 * 64;
  m->l3_bw = third > m->is.l2 ? eini_measure_read(m, mem, third, third) : m->l2_bw;
  if (m->l3_bw > m->l2_bw) m->l2_bw = m->l3_bw;
  m->past = eini_measure_past(m, mem);
}

#define EINI_RATE_LIST(X) \
  X(hz, 1) X(peak_f64, 1) X(peak_f32, 1) X(read_bw, 1) X(copy_bw, 1) X(l2_bw, 1) X(l3_bw, 1) \
  X(call, 1e12) X(past, 1)

static size_t eini_cpu_rates_print(const eini_rated *m, char *buf, size_t size) {
  int n = snprintf(buf, size, "einsum_cpu 2 %s", eini_isa_names[m->is.isa]);
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

static ein_status eini_cpu_rates_parse(eini_rated *m, const char *text) {
  eini_rated r = *m;
  const char *at = text;
  if (!eini_rates_word(&at, "einsum_cpu ") || !eini_rates_word(&at, "2 ")) return EIN_ERR_SYNTAX;
  if (!eini_rates_word(&at, eini_isa_names[m->is.isa])) return EIN_ERR_UNSUPPORTED;
#define EINI_RATE_PARSE(name, unit) \
  if (!eini_rates_word(&at, #name "=") || !eini_rates_number(&at, unit, &r.name)) { \
    return EIN_ERR_SYNTAX; \
  }
  EINI_RATE_LIST(EINI_RATE_PARSE)
#undef EINI_RATE_PARSE
  if (strncmp(at, "end", 3) != 0) return EIN_ERR_SYNTAX;  // cut short
#define EINI_RATE_TAKE(name, unit) m->name = r.name;
  EINI_RATE_LIST(EINI_RATE_TAKE)  // (runs may look at the rest of m meanwhile)
#undef EINI_RATE_TAKE
  return EIN_OK;
}
#undef EINI_RATE_LIST
