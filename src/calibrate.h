// ================================================================================================
// >>calibrate  rates of this machine, measured
// With what the ctx's providers offer: sums and stores past the caches for bandwidths, plans for
// products and calls. Medians, of as many samples as the time allows.
// ================================================================================================

#define EINI_CALIBRATE_BYTES ((int64_t)64 << 20)  // beyond the caches of a few cores
#define EINI_CALIBRATE_WINDOW ((int64_t)4 << 20)  // of it, in one sample, the next in the next
#define EINI_CALIBRATE_SECONDS 0.3
#define EINI_CALIBRATE_PARTS 30  // measurements that share the time
#define EINI_SAMPLES 15          // of each at most, and EINI_SAMPLES_LEAST if they take longer
#define EINI_SAMPLES_LEAST 5

// Sweeps over a share of the memory for each thread, which reads it or copies between its halves.
typedef struct eini_probe {
  eini_horizontal_fn sum;
  const ein_kernels *past;     // copies past the caches with it, or NULL
  char *mem;
  int64_t share, rounds;       // bytes, a multiple of 128; 0 rounds: nothing is done
  int copies, windows;         // windows: each sample has memory that no cache holds any more
} eini_probe;

static void eini_probe_part(void *arg, int i) {
  const eini_probe *p = (const eini_probe *)arg;
  char *own = p->mem + i * p->share, *half = own + p->share / 2;
  int64_t acc = 0;
  for (int64_t r = 0; r < p->rounds; r++) {
    char *to = r & 1 ? own : half, *from = r & 1 ? half : own;
    if (!p->copies) p->sum(p->share / 8, own, &acc);
    else if (p->past == NULL) memcpy(to, from, (size_t)p->share / 2);
    else p->past->stream_fn(p->past->user, (size_t)p->share / 2, from, to);
  }
  if (p->copies && p->past != NULL) p->past->stream_fn(p->past->user, 0, NULL, NULL);
  if (acc == 1) own[0] = 1;  // the sum is used
}

typedef struct eini_calibration {
  ein_ctx *ctx;
  ein_executor threads;
  double each;                 // seconds of a measurement, but for its least samples
  char *mem;
  ein_rates r;
} eini_calibration;

static double eini_calibrate_now(const eini_calibration *c) {
  return c->ctx->now_fn(c->ctx->now_user);
}

// Of n > 0 samples, which it sorts.
static double eini_median(double *x, int n) {
  for (int i = 1; i < n; i++) {
    const double v = x[i];
    int k = i;
    for (; k > 0 && x[k - 1] > v; k--) x[k] = x[k - 1];
    x[k] = v;
  }
  return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

// Seconds of a sweep on so many threads at a time, of `times` in a row; no threads: the caller
// alone, without the executor.
static double eini_calibrate_sample(const eini_calibration *c, eini_probe *p, int threads,
                                    int times) {
  const double end = eini_calibrate_now(c) + c->each;
  double x[EINI_SAMPLES];
  int n = 0;
  for (; n < EINI_SAMPLES && (n < EINI_SAMPLES_LEAST || eini_calibrate_now(c) < end); n++) {
    p->mem = c->mem + (p->windows ? n * EINI_CALIBRATE_WINDOW % EINI_CALIBRATE_BYTES : 0);
    const double from = eini_calibrate_now(c);
    for (int i = 0; i < times; i++) {
      if (threads > 0) c->threads.parallel_for(threads, eini_probe_part, p, c->threads.user);
      else eini_probe_part(p, 0);
    }
    x[n] = (eini_calibrate_now(c) - from) / times;
  }
  return eini_median(x, n);
}

// Bytes per second of all threads together.
static double eini_calibrate_sweep(const eini_calibration *c, eini_probe *p, int threads) {
  const int64_t parts = threads > 0 ? threads : 1;
  p->rounds = eini_max64((p->windows ? 1 : 8) * EINI_CALIBRATE_WINDOW / parts / p->share, 1);
  const double seconds = eini_calibrate_sample(c, p, threads, 1);
  return seconds > 0 ? (double)(p->rounds * parts * p->share) / seconds : 0;
}

// What each level does for one thread and for all.
static void eini_calibrate_memory(eini_calibration *c) {
  ein_rates *r = &c->r;
  const int width = c->threads.width;
  const ein_kernels *fast = NULL;
  double bytes[EIN_MEMORY_LEVELS] = {32768, 524288, 4194304, 0};
  eini_probe p;
  memset(&p, 0, sizeof p);
  for (int i = c->ctx->nkernels - 1; i >= 0; i--) {
    const ein_kernels *k = c->ctx->kernels[i];
    if (k->across_fn != NULL) fast = k;
    if (k->stream_fn != NULL) p.past = k;
  }
  const ein_kernels *past = p.past;
  p.sum = eini_across_find(fast, EIN_FOLD_SUM, EIN_I64);
  for (int l = 0; l < EIN_MEMORY_LEVELS; l++) {
    if (l < EIN_MEMORY && r->cache_bytes[l] > 0) bytes[l] = r->cache_bytes[l];
    for (int all = 0; all < 2; all++) {
      const int64_t parts = all ? width : 1, most = EINI_CALIBRATE_BYTES / 4 / parts;
      p.share = eini_min64((int64_t)(bytes[l] / 2), most);
      p.windows = l == EIN_MEMORY;
      if (p.windows) p.share = EINI_CALIBRATE_WINDOW / parts;
      p.share = eini_max64(p.share, 4096) / 128 * 128;
      for (p.copies = 0; p.copies < 2; p.copies++) {
        double *rate = p.copies ? all ? r->all_copy_bw : r->copy_bw
                                : all ? r->all_read_bw : r->read_bw;
        p.past = p.windows ? past : NULL;
        if (!all || width > 1) rate[l] = eini_calibrate_sweep(c, &p, all ? width : 0);
        else rate[l] = p.copies ? r->copy_bw[l] : r->read_bw[l];
      }
    }
  }
  p.rounds = 0;
  if (width > 1) r->start = eini_calibrate_sample(c, &p, width, 32);
}

// Seconds of a call of "ij,jk->ik" of n x n matrices on one thread, by its plan.
static ein_status eini_calibrate_product(eini_calibration *c, ein_dtype type, int64_t n,
                                         double *seconds) {
  const int64_t shape[2] = {n, n};
  const int64_t bytes = eini_max64(n * n * (int64_t)ein_dtype_size(type), 64);
  ein_ztensor in[2], out = ein_tensor(type, 2, shape, c->mem + 2 * bytes);
  ein_einsum_desc d;
  ein_plan *plan;
  ein_run run;
  void *to[1];
  const void *from[2];
  double x[EINI_SAMPLES];
  int samples = 0;
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  for (int i = 0; i < 2; i++) {
    from[i] = c->mem + i * bytes;
    in[i] = ein_tensor(type, 2, shape, from[i]);
  }
  to[0] = out.data;
  d.expr = "ij,jk->ik", d.nin = 2, d.in = in, d.out = &out;
  EINI_TRY(ein_plan_create(c->ctx, &d, &plan));
  run.in = from, run.out = to;
  run.workspace_bytes = ein_plan_workspace(plan);
  run.workspace = c->mem + EINI_CALIBRATE_BYTES / 2;
  const int fits = run.workspace_bytes <= (size_t)EINI_CALIBRATE_BYTES / 2;
  ein_status st = fits ? EIN_OK : EIN_ERR_NO_MEMORY;
  double start = eini_calibrate_now(c), took = 0;
  const double end = start + c->each;
  int64_t calls = 1;
  if (st == EIN_OK) st = ein_plan_execute(plan, &run);
  for (; st == EIN_OK && samples < EINI_SAMPLES; samples++) {
    const int least = took > EINI_CALIBRATE_SECONDS / 15 ? 1 : EINI_SAMPLES_LEAST;
    if (samples >= least && eini_calibrate_now(c) > end) break;
    start = eini_calibrate_now(c);
    for (int64_t i = 0; st == EIN_OK && i < calls; i++) st = ein_plan_execute(plan, &run);
    took = eini_calibrate_now(c) - start;
    x[samples] = took / (double)calls;
    if (took < 5e-5 && calls < 4096) calls *= 4, samples = -1;  // too short to be timed
  }
  if (st == EIN_OK) *seconds = eini_median(x, samples);
  ein_plan_destroy(plan);
  return st;
}

// The curve of products, and a call. Sizes that would take too long go on as the one before.
static ein_status eini_calibrate_products(eini_calibration *c) {
  double last = 0;
  EINI_TRY(eini_calibrate_product(c, EIN_F64, 1, &c->r.call));
  for (int wide = 0; wide < 2; wide++) {
    double *rate = wide ? c->r.gemm_f64 : c->r.gemm_f32;
    double *ones = (double *)(void *)c->mem;
    float *singles = (float *)(void *)c->mem;
    for (int64_t i = 0; i < EINI_CALIBRATE_BYTES / 64; i++) {
      if (wide) ones[i] = 1;
      else singles[i] = 1;
    }
    for (int i = 0; i < EIN_GEMMS; i++) {
      const int64_t n = (int64_t)EIN_GEMM_LEAST << i;
      const double flops = 2 * (double)n * (double)n * (double)n;
      double seconds;
      if (i > 0 && 16 * last > EINI_CALIBRATE_SECONDS / 2) {
        rate[i] = rate[i - 1];
        continue;
      }
      EINI_TRY(eini_calibrate_product(c, wide ? EIN_F64 : EIN_F32, n, &seconds));
      last = seconds;
      seconds -= seconds > 2 * c->r.call ? c->r.call : seconds / 2;
      rate[i] = seconds > 0 ? flops / seconds : 0;
    }
  }
  return EIN_OK;
}

// What providers alone can measure, of the first that does; else products are the best there is.
static ein_status eini_calibrate_host(eini_calibration *c) {
  ein_rates *r = &c->r;
  const ein_ctx *ctx = c->ctx;
  memset(c->mem, 1, (size_t)EINI_CALIBRATE_BYTES);
  eini_calibrate_memory(c);
  if (!(r->read_bw[EIN_MEMORY] > 0))
    return eini_fail(&c->ctx->diag, EIN_ERR_UNSUPPORTED, -1, 0, NULL, "the clock does not move");
  for (int i = 0; i < ctx->nkernels; i++) {
    const ein_kernels *k = ctx->kernels[i];
    if (k->measure_fn == NULL) continue;
    k->measure_fn(k->user, ctx->now_fn, ctx->now_user, c->mem, (size_t)EINI_CALIBRATE_BYTES, r);
    break;
  }
  EINI_TRY(eini_calibrate_products(c));
  for (int i = 0; i < EIN_GEMMS; i++) {
    r->flops_f64 = fmax(r->flops_f64, r->gemm_f64[i]);
    r->flops_f32 = fmax(r->flops_f32, r->gemm_f32[i]);
  }
  if (!(r->fast_bytes > 0)) r->fast_bytes = 524288;
  return EIN_OK;
}

// The host with its own providers, then the first one that has a memory of its own.
static ein_status eini_calibrate_all(eini_calibration *c) {
  ein_ctx *ctx = c->ctx;
  const ein_kernels **all = ctx->kernels, *away = NULL;
  const int n = ctx->nkernels;
  const size_t bytes = (size_t)(n + 1) * sizeof *all;
  ctx->nkernels = 0;
  ctx->kernels = (const ein_kernels **)ctx->al.alloc_fn(bytes, EINI_ALIGN, ctx->al.user);
  for (int i = 0; i < n && ctx->kernels != NULL; i++) {
    if (all[i]->memory == NULL) ctx->kernels[ctx->nkernels++] = all[i];
    else if (away == NULL) away = all[i];
  }
  ein_status st = ctx->kernels == NULL ? EIN_ERR_NO_MEMORY : eini_calibrate_host(c);
  if (ctx->kernels != NULL) ctx->al.free_fn(ctx->kernels, bytes, ctx->al.user);
  ctx->kernels = all;
  ctx->nkernels = n;
  if (st == EIN_OK && away != NULL && away->measure_fn != NULL)
    away->measure_fn(away->user, ctx->now_fn, ctx->now_user, c->mem, (size_t)EINI_CALIBRATE_BYTES,
                     &c->r);
  return st;
}

EIN_API ein_status ein_calibrate(ein_ctx *ctx, double seconds, ein_rates *rates) {
  eini_calibration c;
  if (ctx == NULL || rates == NULL || !(seconds >= 0 && seconds < HUGE_VAL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  if (ctx->now_fn == NULL)
    return eini_fail(&ctx->diag, EIN_ERR_UNSUPPORTED, -1, 0, "ein_ctx_desc.now_fn",
                     "nothing can be measured without a clock");
  memset(&c, 0, sizeof c);
  c.ctx = ctx;
  c.mem = (char *)ctx->al.alloc_fn((size_t)EINI_CALIBRATE_BYTES, EINI_ALIGN, ctx->al.user);
  if (c.mem == NULL)
    return eini_fail(&ctx->diag, EIN_ERR_NO_MEMORY, -1, 0, NULL, "%s",
                     ein_status_text(EIN_ERR_NO_MEMORY));
  const int rated = ctx->rated;
  c.threads = ctx->executor;
  ctx->rated = 0;
  const ein_rates *table = eini_rates_of(ctx);
  if (table != NULL) {
    memcpy(c.r.cache_bytes, table->cache_bytes, sizeof c.r.cache_bytes);
    c.r.fast_bytes = table->fast_bytes, c.r.fused = table->fused;
  }
  snprintf(c.r.machine, sizeof c.r.machine, "%s", eini_ctx_machine(ctx));
  c.r.threads = ctx->executor.width;
  c.each = (seconds > 0 ? seconds : EINI_CALIBRATE_SECONDS) / EINI_CALIBRATE_PARTS;
  ctx->executor.width = 1;
  ein_status st = eini_calibrate_all(&c);
  ctx->executor = c.threads;
  ctx->rated = rated;
  ctx->al.free_fn(c.mem, (size_t)EINI_CALIBRATE_BYTES, ctx->al.user);
  if (st == EIN_OK && eini_rates_validate(&ctx->diag, &c.r) != EIN_OK) st = EIN_ERR_UNSUPPORTED;
  if (st == EIN_OK) *rates = c.r;
  return st;
}
