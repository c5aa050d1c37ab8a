// ================================================================================================
// >>rates  what a machine does, as text and of a ctx
// Text: "einsum rates 1", lines of a name and whole numbers (so that no locale matters), "end".
// ================================================================================================

typedef struct eini_rate_field {
  const char *name;
  size_t at;               // in ein_rates
  int n;                   // numbers
  int needed;              // 1: planning divides by it; 2: 0 is a number of its own
  double unit;             // of the text, for one of the struct
  double least, most;      // in the units of the struct
} eini_rate_field;

#define EINI_RATE(name, n, needed, least, most) \
  {#name, offsetof(ein_rates, name), n, needed, 1, least, most}
#define EINI_RATE_TIME(name) {#name "_ps", offsetof(ein_rates, name), 1, 0, 1e12, 1e-11, 10}

// Memory is the last of its fields' numbers: it is needed of those that are.
static const eini_rate_field eini_rate_fields[] = {
    EINI_RATE(flops_f64, 1, 1, 1e3, 1e17), EINI_RATE(flops_f32, 1, 1, 1e3, 1e17),
    EINI_RATE(flops_bf16, 1, 0, 1e3, 1e17), EINI_RATE(flops_i8, 1, 0, 1e3, 1e17),
    EINI_RATE(read_bw, EIN_MEMORY_LEVELS, 1, 1e3, 1e17),
    EINI_RATE(copy_bw, EIN_MEMORY_LEVELS, 1, 1e3, 1e17),
    EINI_RATE(all_read_bw, EIN_MEMORY_LEVELS, 0, 1e3, 1e17),
    EINI_RATE(all_copy_bw, EIN_MEMORY_LEVELS, 0, 1e3, 1e17),
    EINI_RATE(gemm_f64, EIN_GEMMS, 0, 1e3, 1e17), EINI_RATE(gemm_f32, EIN_GEMMS, 0, 1e3, 1e17),
    EINI_RATE(hz, 1, 0, 1e3, 1e17), EINI_RATE_TIME(call), EINI_RATE_TIME(start),
    EINI_RATE(cache_bytes, EIN_MEMORY, 0, 1, 1e15), EINI_RATE(fast_bytes, 1, 1, 1, 1e15),
    EINI_RATE(away, 16, 0, 1, 1e17),
    EINI_RATE(stream_bytes, 1, 2, 1, 1e17), EINI_RATE(pages, 1, 0, 1, 64),
    EINI_RATE(fused, 1, 2, 1, 1e15)};
#undef EINI_RATE
#undef EINI_RATE_TIME

#define EINI_RATE_FIELDS ((int)(sizeof eini_rate_fields / sizeof *eini_rate_fields))

static double *eini_rate_at(ein_rates *r, const eini_rate_field *f) {
  return (double *)(void *)((char *)r + f->at);
}

// One of a ctx's threads beside the others: together they have at most what was measured of all.
static void eini_rates_share(ein_rates *r, int width) {
  for (int l = 0; l < EIN_MEMORY_LEVELS && width > 1; l++) {
    const double read = r->all_read_bw[l] / width, copy = r->all_copy_bw[l] / width;
    if (read > 0 && read < r->read_bw[l]) r->read_bw[l] = read;
    if (copy > 0 && copy < r->copy_bw[l]) r->copy_bw[l] = copy;
  }
}

static ein_status eini_rates_validate(eini_diag *d, const ein_rates *rates) {
  ein_rates r = *rates;
  for (int i = 0; i < EINI_RATE_FIELDS; i++) {
    const eini_rate_field *f = &eini_rate_fields[i];
    for (int k = 0; k < f->n; k++) {
      const double x = eini_rate_at(&r, f)[k];
      const int zero = x >= 0 && x <= 0 && !(f->needed == 1 && k == f->n - 1);
      if (!zero && !(x >= f->least && x <= f->most))
        return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "rates: %s cannot be %g: from %g to %g",
                         f->name, x, f->least, f->most);
    }
  }
  for (int k = 1; k < EIN_GEMMS; k++)
    if ((r.gemm_f64[k] > 0) != (r.gemm_f64[0] > 0) || (r.gemm_f32[k] > 0) != (r.gemm_f32[0] > 0))
      return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "rates: a part of gemm is not known");
  if (memchr(r.machine, 0, sizeof r.machine) == NULL)
    return eini_fail(d, EIN_ERR_ARGUMENT, -1, 0, NULL, "rates: machine has no end");
  return EIN_OK;
}

EIN_API ein_status ein_ctx_rates(ein_ctx *ctx, const ein_rates *rates) {
  if (ctx == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  if (rates != NULL) {
    EINI_TRY(eini_rates_validate(&ctx->diag, rates));
    const char *own = eini_ctx_machine(ctx);
    if (rates->machine[0] && strcmp(rates->machine, own) != 0)
      return eini_fail(&ctx->diag, EIN_ERR_UNSUPPORTED, -1, 0, "calibrate this one",
                       "rates of another machine: '%s', this is '%s'", rates->machine, own);
    ctx->given = ctx->rates = *rates;
    eini_rates_share(&ctx->rates, ctx->executor.width);
  }
  ctx->rated = rates != NULL;
  if (ctx->cache != NULL) eini_cache_clear(ctx);
  return EIN_OK;
}

EIN_API ein_rates ein_ctx_rates_get(const ein_ctx *ctx) {
  ein_rates none;
  memset(&none, 0, sizeof none);
  const ein_rates *r = ctx != NULL && ctx->rated ? &ctx->given : eini_rates_of(ctx);
  return r == NULL ? none : *r;
}

// ---- text ----

#define EINI_RATES_HEAD "einsum rates 1"

EIN_API size_t ein_rates_print(const ein_rates *rates, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (rates == NULL) return 0;
  ein_rates r = *rates;
  r.machine[sizeof r.machine - 1] = 0;
  eini_say(&t, "%s\n", EINI_RATES_HEAD);
  if (r.machine[0]) eini_say(&t, "machine %s\n", r.machine);
  if (r.threads > 0) eini_say(&t, "threads %d\n", r.threads);
  for (int i = 0; i < EINI_RATE_FIELDS; i++) {
    const eini_rate_field *f = &eini_rate_fields[i];
    const double *x = eini_rate_at(&r, f);
    double known = x[f->n - 1];
    if (!(known > 0) && f->needed != 2) continue;
    eini_say(&t, "%s", f->name);
    for (int k = 0; k < f->n; k++) {  // a level that is not known: as slow as the next that is
      for (int l = f->n - 1; l >= k; l--) known = x[l] > 0 ? x[l] : known;
      eini_say(&t, " %.0f", known * f->unit);
    }
    eini_say(&t, "\n");
  }
  eini_say(&t, "end\n");
  return t.at;
}

typedef struct eini_rates_text {
  ein_ctx *ctx;              // or NULL
  eini_diag *diag;
  const char *text, *line, *end;  // the line at hand
  ein_rates r;
  int64_t seen;              // fields, by bit; then machine and threads
} eini_rates_text;

// A mistake in the word at `at`.
static ein_status eini_rates_wrong(const eini_rates_text *p, const char *at, const char *what) {
  const char *to = at;
  while (to < p->end && *to != ' ') to++;
  return eini_fail(p->diag, EIN_ERR_SYNTAX, at - p->text, to - at, NULL, "rates: %s", what);
}

// The number at *at, which moves behind it.
static ein_status eini_rates_number(const eini_rates_text *p, const char **at, double *x) {
  const char *first;
  uint64_t whole = 0;  // rounded once
  while (*at < p->end && **at == ' ') ++*at;
  first = *at;
  for (; *at < p->end && **at >= '0' && **at <= '9' && *at - first < 18; ++*at)
    whole = 10 * whole + (uint64_t)(**at - '0');
  *x = (double)whole;
  if (*at > first && (*at == p->end || **at == ' ')) return EIN_OK;
  return eini_rates_wrong(p, first, "a whole number of at most 18 digits is missing here");
}

static int eini_rates_is(const eini_rates_text *p, const char *name, const char **rest) {
  const size_t n = strlen(name);
  if ((size_t)(p->end - p->line) < n || memcmp(p->line, name, n) != 0) return 0;
  *rest = p->line + n;
  return *rest == p->end || **rest == ' ';
}

static ein_status eini_rates_once(eini_rates_text *p, int bit) {
  if (p->seen >> bit & 1) return eini_rates_wrong(p, p->line, "this line is there twice");
  p->seen |= (int64_t)1 << bit;
  return EIN_OK;
}

static ein_status eini_rates_field(eini_rates_text *p, int i, const char *at) {
  const eini_rate_field *f = &eini_rate_fields[i];
  EINI_TRY(eini_rates_once(p, i));
  for (int k = 0; k < f->n; k++) {
    double x;
    while (at < p->end && *at == ' ') at++;
    const char *first = at;
    EINI_TRY(eini_rates_number(p, &at, &x));
    x /= f->unit;
    if (!(x > 0) && f->needed == 2) x = 0;
    else if (!(x > 0)) return eini_rates_wrong(p, first, "no rate is zero");
    else if (!(x >= f->least && x <= f->most))
      return eini_rates_wrong(p, first, "no machine has a rate like this");
    eini_rate_at(&p->r, f)[k] = x;
  }
  return at == p->end ? EIN_OK : eini_rates_wrong(p, at + 1, "the line goes on after its numbers");
}

static ein_status eini_rates_line(eini_rates_text *p) {
  const char *at = p->line;
  double x;
  for (int i = 0; i < EINI_RATE_FIELDS; i++)
    if (eini_rates_is(p, eini_rate_fields[i].name, &at)) return eini_rates_field(p, i, at);
  if (eini_rates_is(p, "threads", &at)) {
    EINI_TRY(eini_rates_once(p, EINI_RATE_FIELDS));
    EINI_TRY(eini_rates_number(p, &at, &x));
    if (at < p->end || !(x >= 1 && x <= 65536))
      return eini_rates_wrong(p, p->line, "threads are from 1 to 65536");
    p->r.threads = (int)x;
    return EIN_OK;
  }
  if (eini_rates_is(p, "machine", &at)) {
    const size_t n = (size_t)(p->end - at);
    EINI_TRY(eini_rates_once(p, EINI_RATE_FIELDS + 1));
    if (n < 2 || n > sizeof p->r.machine)
      return eini_rates_wrong(p, p->line, "a machine has a name of up to 95 bytes");
    memcpy(p->r.machine, at + 1, n - 1);
    return EIN_OK;
  }
  if (p->ctx != NULL && p->ctx->logger.log_fn != NULL && p->line < p->end) {
    char note[128];
    snprintf(note, sizeof note, "rates: a line that is not known is skipped: %.*s",
             (int)eini_min64(p->end - p->line, 64), p->line);
    for (char *c = note; *c; c++)
      if ((unsigned char)*c < 32) *c = '?';
    p->ctx->logger.log_fn(EIN_LOG_WARNING, note, p->ctx->logger.user);
  }
  return EIN_OK;
}

static ein_status eini_rates_read(eini_rates_text *p) {
  const char *rest, *next = p->text;
  for (int line = 1;; line++) {
    p->line = next;
    if (*next == 0)
      return eini_rates_wrong(p, next, line > 1 ? "the text is cut short, 'end' is missing"
                                                : "the text is empty");
    p->end = next + strcspn(next, "\n");
    next = *p->end ? p->end + 1 : p->end;
    if (p->end > p->line && p->end[-1] == '\r') p->end--;
    if (line > 1 && eini_rates_is(p, "end", &rest) && rest == p->end) return EIN_OK;
    if (line > 1) EINI_TRY(eini_rates_line(p));
    else if (!eini_rates_is(p, EINI_RATES_HEAD, &rest) || rest < p->end)
      return eini_rates_wrong(p, p->line, "the first line is not '" EINI_RATES_HEAD "'");
  }
}

EIN_API ein_status ein_rates_parse(ein_ctx *ctx, const char *text, ein_rates *rates) {
  eini_rates_text p;
  if (text == NULL || rates == NULL) return EIN_ERR_ARGUMENT;
  memset(&p, 0, sizeof p);
  eini_begin_call(ctx, text);
  p.ctx = ctx, p.diag = eini_diag_of(ctx);
  p.text = p.line = p.end = text;
  EINI_TRY(eini_rates_read(&p));
  for (int i = 0; i < EINI_RATE_FIELDS; i++)
    if (eini_rate_fields[i].needed == 1 && !(p.seen >> i & 1))
      return eini_fail(p.diag, EIN_ERR_SYNTAX, -1, 0, NULL, "rates: a line is missing: %s",
                       eini_rate_fields[i].name);
  *rates = p.r;
  return EIN_OK;
}
