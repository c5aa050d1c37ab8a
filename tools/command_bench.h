// SPDX-License-Identifier: MIT
//
// command_bench.h - `einsum bench`: timing, the roofline, verification.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// ================================================================================================
// bench: ceilings of the machine, measured in the same run.
// ================================================================================================

static volatile double sink;  // keeps measured work from being optimised away

// Ten independent chains of multiply-adds: enough to hide their latency. 20 flops per lane and
// round. All begin with different values: a compiler makes one of those that are alike.
#define CHAINS(name, attribute, T, V, set, muladd)                                        \
  attribute static double name(int64_t rounds) {                                          \
    const V m = set((T)0.9999), c = set((T)1e-4);                                         \
    V a = set((T)0), b = set((T)1), d = set((T)2), e = set((T)3), f = set((T)4);          \
    V g = set((T)5), h = set((T)6), i = set((T)7), j = set((T)8), k = set((T)9);          \
    for (int64_t r = 0; r < rounds; r++) {                                                \
      a = muladd(a, m, c), b = muladd(b, m, c), d = muladd(d, m, c), e = muladd(e, m, c); \
      f = muladd(f, m, c), g = muladd(g, m, c), h = muladd(h, m, c), i = muladd(i, m, c); \
      j = muladd(j, m, c), k = muladd(k, m, c);                                           \
    }                                                                                     \
    V all[10] = {a, b, d, e, f, g, h, i, j, k};                                           \
    T x[10 * sizeof(V) / sizeof(T)], sum = 0;                                             \
    memcpy(x, all, sizeof x);                                                             \
    for (size_t n = 0; n < sizeof x / sizeof *x; n++) sum += x[n];                        \
    sink = (double)sum;                                                                   \
    return 20.0 * (double)(sizeof(V) / sizeof(T)) * (double)rounds;                       \
  }
#define SCALAR_SET(x) (x)
#define SCALAR_MULADD(x, m, c) ((x) * (m) + (c))
#if defined(__GNUC__)
typedef float float4 __attribute__((vector_size(16)));
typedef double double2 __attribute__((vector_size(16)));
#define FLOAT4_SET(x) ((float4){x, x, x, x})
#define DOUBLE2_SET(x) ((double2){x, x})
CHAINS(peak_f32, , float, float4, FLOAT4_SET, SCALAR_MULADD)
CHAINS(peak_f64, , double, double2, DOUBLE2_SET, SCALAR_MULADD)
#else
CHAINS(peak_f32, , float, float, SCALAR_SET, SCALAR_MULADD)
CHAINS(peak_f64, , double, double, SCALAR_SET, SCALAR_MULADD)
#endif
#if X86
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
CHAINS(peak_f32_avx2, AVX2, float, __m256, _mm256_set1_ps, _mm256_fmadd_ps)
CHAINS(peak_f64_avx2, AVX2, double, __m256d, _mm256_set1_pd, _mm256_fmadd_pd)
CHAINS(peak_f32_avx512, AVX512, float, __m512, _mm512_set1_ps, _mm512_fmadd_ps)
CHAINS(peak_f64_avx512, AVX512, double, __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
#endif

typedef double peak_fn(int64_t rounds);

// The widest multiply-add loop this machine runs.
static peak_fn *peak_loop(int wide) {
#if X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return wide ? peak_f64_avx512 : peak_f32_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return wide ? peak_f64_avx2 : peak_f32_avx2;
  }
#endif
  return wide ? peak_f64 : peak_f32;
}

typedef struct probe {  // one measurement, done by every thread on its share
  peak_fn *peak;        // or NULL: memory
  int copies;           // 1: read and write; 0: read
  int64_t rounds;
  size_t bytes;         // of a thread's share
  char *from, *to;      // shares one after another
  double *work;         // flops or bytes, per thread
} probe;

// Reads go through memcpy as well, into a buffer that stays in the nearest cache.
static void probe_share(void *arg, int i) {
  const probe *p = (const probe *)arg;
  char near_by[4096];
  if (p->peak != NULL) {
    p->work[i] = p->peak(p->rounds);
    return;
  }
  if (p->bytes == 0) return;
  char *from = p->from + (size_t)i * p->bytes, *to = p->to + (size_t)i * p->bytes;
  for (int64_t r = 0; r < p->rounds; r++) {
    if (p->copies) memcpy(to, from, p->bytes);
    for (size_t k = 0; k < p->bytes && !p->copies; k += sizeof near_by) {
      size_t n = p->bytes - k < sizeof near_by ? p->bytes - k : sizeof near_by;
      memcpy(near_by, from + k, n);
      sink = near_by[n - 1];
    }
    sink = (p->copies ? to : near_by)[r & 1];
  }
  p->work[i] = (double)p->rounds * (double)p->bytes * (p->copies ? 2 : 1);
}

// Work per second of all threads together: the best of several short measurements.
static double probe_rate(probe *p) {
  double best = 0, seconds = 0, stop = now(NULL) + option_seconds(O_SECONDS, 0.5) / 5;
  p->rounds = 1;
  while (now(NULL) < stop || seconds < 1e-3) {
    double start = now(NULL), work = 0;
    const ein_executor pool = ein_cpu_executor(cpu);
    pool.parallel_for(threads, probe_share, p, pool.user);
    seconds = now(NULL) - start;
    for (int i = 0; i < threads; i++) work += p->work[i];
    if (seconds > 0 && work / seconds > best && seconds > 1e-4) best = work / seconds;
    if (seconds < 1e-3) p->rounds *= 2;
    else if (seconds > 0.1) break;
  }
  return best;
}

typedef struct figures {
  double plan, best, median, flops, bytes, read_bytes, hardware_flops;
  int64_t repetitions;
  double peak, read, copy, roof;  // per second; roof: least possible seconds
  double max_error, tolerance;
  int64_t verified;
} figures;

static void measure_ceilings(figures *f, ein_dtype compute) {
  probe p;
  memset(&p, 0, sizeof p);
  int wide = compute == EIN_F64 || compute == EIN_C128 || compute == EIN_I64;
  p.work = (double *)memory(sizeof *p.work * (size_t)threads);
  p.peak = peak_loop(wide);
  f->peak = probe_rate(&p);
  double share = f->bytes / threads, least = 4096, most = 1 << 30;
  p.peak = NULL;
  p.bytes = (size_t)(share < least ? least : share > most / threads ? most / threads : share);
  p.from = (char *)memory((uint64_t)p.bytes * (uint64_t)threads);
  memset(p.from, 1, p.bytes * (size_t)threads);  // pages of its own, not the shared zero page
  p.to = p.from;
  f->read = probe_rate(&p);
  p.copies = 1;
  p.bytes /= 2;
  p.to = p.from + p.bytes * (size_t)threads;
  f->copy = probe_rate(&p);
  double t = f->hardware_flops / f->peak, r = f->read_bytes / f->read, c = f->bytes / f->copy;
  f->roof = t > r ? t : r;
  if (c > f->roof) f->roof = c;
}

// ================================================================================================
// bench: verification by brute force.
// ================================================================================================

typedef struct brute {
  const job *j;
  const notation *no;
  int64_t *at;        // value of every label
  int64_t *stride;    // (nin + 1) x nlabel, in elements
  int *reduced, nreduced;
} brute;

static void brute_setup(brute *b, const job *j, const notation *no) {
  b->j = j;
  b->no = no;
  b->at = (int64_t *)memory(sizeof *b->at * ((size_t)no->nlabel + 1));
  size_t cells = (size_t)(no->nlabel + 1) * (size_t)(no->nin + 1);
  b->stride = (int64_t *)memory(sizeof *b->stride * cells);
  b->reduced = (int *)memory(sizeof *b->reduced * ((size_t)no->nlabel + 1));
  b->nreduced = 0;
  for (int k = 0; k <= no->nin; k++) {
    const ein_ztensor *v = k < no->nin ? &j->in[k].v : &j->out.v;
    for (int a = 0; a < no->term[k].n; a++) {
      if (v->shape[a] > 1) b->stride[k * no->nlabel + (int)no->term[k].label[a]] += v->strides[a];
    }
  }
  for (int i = 0; i < no->nlabel; i++) {
    const term *out = &no->term[no->nin];
    if (find_label(out->label, out->n, (uint32_t)i) < 0) b->reduced[b->nreduced++] = i;
  }
}

static number brute_operand(const brute *b, int k) {
  const ein_ztensor *v = k < b->no->nin ? &b->j->in[k].v : &b->j->out.v;
  int64_t offset = 0;
  for (int i = 0; i < b->no->nlabel; i++) offset += b->at[i] * b->stride[k * b->no->nlabel + i];
  return element(v->dtype, (const char *)v->data + offset * (int64_t)ein_dtype_size(v->dtype));
}

// Sums the products at the output element that b->at names. *size: the sum of their magnitudes.
static number brute_sum(const brute *b, double *size) {
  number sum = {0, 0, 0};
  int is_bool = b->j->out.v.dtype == EIN_BOOL;
  *size = 0;
  for (int r = 0; r < b->nreduced; r++) {
    b->at[b->reduced[r]] = 0;
    if (b->no->extent[b->reduced[r]] == 0) return sum;
  }
  for (;;) {
    number p = {1, 0, 1};
    for (int k = 0; k < b->no->nin; k++) {
      number x = brute_operand(b, k);
      double re = p.re * x.re - p.im * x.im;
      p.im = p.re * x.im + p.im * x.re;
      p.re = re;
      p.i = (int64_t)((uint64_t)p.i * (uint64_t)x.i);
    }
    sum.re += p.re;
    sum.im += p.im;
    sum.i = is_bool ? sum.i | p.i : (int64_t)((uint64_t)sum.i + (uint64_t)p.i);
    *size += fabs(p.re) + fabs(p.im);
    int r = b->nreduced - 1;
    for (; r >= 0; r--) {
      int i = b->reduced[r];
      if (++b->at[i] < b->no->extent[i]) break;
      b->at[i] = 0;
    }
    if (r < 0) return sum;
  }
}

// Integers wrap: keeps the bits that the dtype has.
static int64_t wrapped(ein_dtype t, int64_t x) {
  if (t == EIN_U8) return (int64_t)((uint64_t)x & 255);
  if (t == EIN_I64 || t == EIN_BOOL) return x;
  unsigned drop = 64 - 8 * (unsigned)ein_dtype_size(t);
  uint64_t u = (uint64_t)x << drop;
  return u >> 63 ? -(int64_t)(~u >> drop) - 1 : (int64_t)(u >> drop);
}

// Compares elements of the output with the definition. Errors are relative to the sum of absolute
// products, so that cancellation does not count against the result.
static void verify(figures *f, const job *j, const notation *no, uint64_t seed) {
  brute b;
  ein_dtype t = j->out.v.dtype, compute = ein_dtype_compute(t);
  double terms = 1, budget = 2e8;
  int64_t total = count_of(&j->out), samples = 256;
  int unused;
  brute_setup(&b, j, no);
  for (int r = 0; r < b.nreduced; r++) terms *= (double)no->extent[b.reduced[r]];
  double each = (terms > 1 ? terms : 1) * no->nin * (no->nlabel + 4);
  if (samples > total) samples = total;
  if ((double)samples * each > budget) samples = budget > each ? (int64_t)(budget / each) : 1;
  // The bound of any order of summation, and the rounding of the stored result.
  f->tolerance = (terms + 8 * no->nin) * ldexp(1.0, 1 - precision(compute, &unused)) +
                 ldexp(1.0, -precision(t, &unused));
  for (int64_t s = 0; s < samples; s++) {
    int64_t at = total == samples ? s : (int64_t)(mix(seed ^ mix((uint64_t)s)) % (uint64_t)total);
    const term *out = &no->term[no->nin];
    for (int a = out->n; a-- > 0;) {
      b.at[out->label[a]] = at % j->out.v.shape[a];
      at /= j->out.v.shape[a];
    }
    double size, error;
    number want = brute_sum(&b, &size), got = brute_operand(&b, no->nin);
    error = fabs(want.re - got.re) + fabs(want.im - got.im);
    if (size > 0) error /= size;
    if (!is_float(t)) error = wrapped(t, want.i) == got.i ? 0 : HUGE_VAL;
    if (!(error <= f->max_error)) f->max_error = error;
    f->verified++;
  }
}

// ================================================================================================
// bench: the command.
// ================================================================================================

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Times plans until a fifth of --seconds is spent, the first included, and runs until all of it is
// and for 5 repetitions.
static void measure_job(figures *f, job *j) {
  const double limit = option_seconds(O_SECONDS, 0.5);
  double stop = now(NULL) + limit / 5;
  f->plan = HUGE_VAL;
  do {
    ein_plan *p;
    double start = now(NULL);
    ein_status st = ein_plan_create(j->ctx, &j->d, &p);
    double t = now(NULL) - start;
    if (st != EIN_OK) die_library(j->ctx, st, NULL);
    ein_plan_destroy(p);
    if (t < f->plan) f->plan = t;
  } while (now(NULL) < stop);
  ein_run run;
  void *out[1];
  job_bind(j, &run, out);
  run.workspace = memory(ein_plan_workspace(j->plan));
  execute(j->plan, &run);  // pages in, caches warm
  double start = now(NULL);
  execute(j->plan, &run);
  double once = now(NULL) - start;
  int64_t batch = once < 2e-5 ? (int64_t)(2e-5 / (once > 1e-8 ? once : 1e-8)) + 1 : 1;
  int64_t room = 1 << 16, n = 0;
  double *times = (double *)memory(sizeof *times * (size_t)room);
  stop = now(NULL) + limit;
  count_pool(1);
  while (n < room && (n < 5 || now(NULL) < stop)) {
    start = now(NULL);
    for (int64_t k = 0; k < batch; k++) execute(j->plan, &run);
    times[n++] = (now(NULL) - start) / (double)batch;
  }
  count_pool(0);
  qsort(times, (size_t)n, sizeof *times, by_size);
  f->best = times[0];
  f->median = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
  f->repetitions = n * batch;
}

static const char *kernels_used(void) {
  return given(O_KERNELS) != NULL ? given(O_KERNELS) : "cpu";
}

static void print_figures_json(const figures *f, const job *j, int checked) {
  fputs("{\"expr\": ", stdout);
  put_json_string(j->d.expr);
  printf(", \"dtype\": \"%s\", \"shapes\": [", ein_dtype_name(j->in[0].v.dtype));
  for (int k = 0; k < j->d.nin; k++) {
    const ein_ztensor *v = &j->in[k].v;
    printf("%s[", k > 0 ? ", " : "");
    for (int a = 0; a < v->rank; a++) printf("%s%" PRId64, a > 0 ? ", " : "", v->shape[a]);
    putchar(']');
  }
  printf("], \"threads\": %d, \"kernels\": \"%s\", \"repetitions\": %" PRId64, threads,
         kernels_used(), f->repetitions);
  put_member("plan_seconds", f->plan);
  put_member("best_seconds", f->best);
  put_member("median_seconds", f->median);
  put_member("flops", f->flops);
  put_member("bytes", f->bytes);
  put_member("gflops", f->flops / f->best * 1e-9);
  put_member("gbytes_per_second", f->bytes / f->best * 1e-9);
  put_member("peak_gflops", f->peak * 1e-9);
  put_member("read_gbytes_per_second", f->read * 1e-9);
  put_member("copy_gbytes_per_second", f->copy * 1e-9);
  put_member("roofline_seconds", f->roof);
  put_member("roofline_fraction", f->roof / f->best);
  put_pool_json(1, f->repetitions);
  if (checked) {
    printf(", \"verified\": %" PRId64, f->verified);
    put_member("max_error", f->max_error);
    put_member("tolerance", f->tolerance);
    printf(", \"correct\": %s", f->max_error <= f->tolerance ? "true" : "false");
  }
  puts("}");
}

static void print_figures(const figures *f, const job *j, int checked) {
  printf("expression  %s, %s, %d thread%s, kernels: %s\n", j->d.expr,
         ein_dtype_name(j->in[0].v.dtype), threads, threads == 1 ? "" : "s", kernels_used());
  printf("plan        %.3g us\n", f->plan * 1e6);
  printf("best        %.4g us\n", f->best * 1e6);
  printf("median      %.4g us of %" PRId64 " runs\n", f->median * 1e6, f->repetitions);
  printf("arithmetic  %.4g GFLOP/s (%.4g flops; peak %.4g GFLOP/s)\n", f->flops / f->best * 1e-9,
         f->flops, f->peak * 1e-9);
  printf("memory      %.4g GB/s (%.4g bytes; read %.4g, copy %.4g GB/s)\n",
         f->bytes / f->best * 1e-9, f->bytes, f->read * 1e-9, f->copy * 1e-9);
  printf("roofline    %.1f %% (%.4g us)\n", 100 * f->roof / f->best, f->roof * 1e6);
  if (checked) {
    printf("verified    %" PRId64 " elements, max error %.3g of the sum of |products| (%s: "
           "allowed %.3g)\n", f->verified, f->max_error,
           f->max_error <= f->tolerance ? "right" : "WRONG", f->tolerance);
  }
}

// Operations that one pass over all points needs: where the other operands of one lack an index,
// their product is the same along it, and what is left of each point is one multiply-add.
static double one_pass_flops(const notation *no, double flops) {
  double points = 1, least = flops;
  for (int i = 0; i < no->nlabel; i++) points *= (double)no->extent[i];
  for (int k = 0; k < no->nin; k++) {
    double rest = 1;
    for (int i = 0; i < no->nlabel; i++) {
      int used = 0;
      for (int t = 0; t < no->nin && !used; t++) {
        used = t != k && find_label(no->term[t].label, no->term[t].n, (uint32_t)i) >= 0;
      }
      if (used) rest *= (double)no->extent[i];
    }
    double f = 2 * points + (no->nin - 2) * rest;
    if (rest < points && f < least) least = f;
  }
  return least;
}

static int bench_counted(const job *j) {
  program p;
  ein_run run;
  void *out[1];
  job_bind(j, &run, out);
  program_of_expression(&p, j);
  count_plan(j->ctx, p.graph, j->plan, &run);
  return finish(j->ctx, j->plan, p.graph);
}

static int command_bench(void) {
  const char *expr = expression();
  if (is_program(expr)) misuse(NULL, "bench takes an expression, '%s' is a program", expr);
  job j;
  figures f;
  ein_plan_info info;
  notation no;
  int n, checked = given(O_VERIFY) != NULL;
  memset(&j, 0, sizeof j);
  memset(&f, 0, sizeof f);
  memset(&no, 0, sizeof no);
  array *in = shapes_of_operands(expr, &n);
  counted_kernels();
  j.ctx = make_ctx();
  counted_rates(j.ctx);
  job_plan(&j, expr, n, in, EIN_NONE);
  for (int k = 0; k < n; k++) {
    set_shape(&in[k], in[k].v.dtype, in[k].v.rank, in[k].v.shape, 0);
    allocate(&in[k]);
    fill_random(&in[k], option_seed(), k);
    f.read_bytes += (double)in[k].nbytes;
  }
  allocate(&j.out);
  if (given(O_COUNTED) != NULL) return bench_counted(&j);
  explain(j.plan);
  memset(&info, 0, sizeof info);
  (void)ein_plan_info_get(j.plan, &info);
  ein_dtype compute = ein_dtype_compute(j.out.v.dtype);
  read_notation(expr, &no);
  expand_notation(&no, in, j.out.v.rank);
  f.flops = info.ntask == 1 && n > 2 ? one_pass_flops(&no, info.flops) : info.flops;
  f.hardware_flops = f.flops * (is_complex(compute) ? 4 : 1);  // 8 real ones per multiply-add
  f.bytes = f.read_bytes + (double)j.out.nbytes;
  progress_begin("timing", NULL, 0);
  measure_job(&f, &j);
  progress_begin("measuring the machine", NULL, 0);
  measure_ceilings(&f, compute);
  progress_begin("verifying", NULL, 0);
  if (checked) verify(&f, &j, &no, option_seed());
  progress_end();
  if (given(O_EXPLAIN) != NULL) explain_pool(stderr, f.repetitions);
  if (given(O_JSON) != NULL) print_figures_json(&f, &j, checked);
  else print_figures(&f, &j, checked);
  finish(j.ctx, j.plan, NULL);
  if (!(f.max_error <= f.tolerance)) die(SYSTEM_FAILED, NULL, "the result is wrong: this is a bug");
  return DONE;
}
