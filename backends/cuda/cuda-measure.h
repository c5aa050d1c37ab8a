// ================================================================================================
// >>cuda-measure  what the device does, measured
// Takes an open device; gives ein_rates.away: copies by the caller's clock, kernels and products by
// the device's events, each for the largest size that takes no longer than need be.
// ================================================================================================

#define EINI_CUDA_PROBE ((int64_t)2048)        // rows and columns of products at most
#define EINI_CUDA_PROBE_COPY ((int64_t)1 << 25)  // elements of a copy on the device at most
#define EINI_CUDA_PROBE_SECONDS 3e-3           // a size that takes longer is large enough
#define EINI_CUDA_PROBE_RUNS 3

typedef struct eini_cuda_probe {
  ein_cuda *c;
  double (*now_fn)(void *user);
  void *now_user;
  void *at;                      // memory of the device: of three matrices, or of two halves
  double waited;                 // seconds of the clock that the last runs took, each
} eini_cuda_probe;

static double eini_cuda_probe_now(const eini_cuda_probe *p) { return p->now_fn(p->now_user); }

static ein_status eini_cuda_probe_wait(const eini_cuda_probe *p) {
  ein_ticket ticket;
  EINI_TRY(eini_slot_cuda_mark(p->c, &ticket));
  return eini_slot_cuda_wait(p->c, ticket);
}

// Seconds by events of what was chosen for a nest; 0: it fails. The first run compiles.
static double eini_cuda_probe_run(eini_cuda_probe *p, const eini_cuda_nest *x,
                                  const ein_contract *of, const ein_choice *h) {
  double before = 0, from = 0;
  for (int run = 0; run <= EINI_CUDA_PROBE_RUNS; run++) {
    eini_cuda_nest y = *x;
    if (eini_cuda_run(p->c, &y, of, h) != EIN_OK) return 0;
    if (run > 0) continue;
    if (eini_cuda_probe_wait(p) != EIN_OK) return 0;
    before = p->c->counts.seconds;
    from = eini_cuda_probe_now(p);
  }
  if (eini_cuda_probe_wait(p) != EIN_OK) return 0;
  p->waited = (eini_cuda_probe_now(p) - from) / EINI_CUDA_PROBE_RUNS;
  return (p->c->counts.seconds - before) / EINI_CUDA_PROBE_RUNS;
}

// Seconds of a copy of n elements of 4 bytes.
static double eini_cuda_probe_copy(eini_cuda_probe *p, int64_t n) {
  static const int64_t one = 1;
  static const unsigned char away[2] = {1, 1};
  ein_copy copy;
  ein_choice h;
  eini_cuda_nest x;
  memset(&copy, 0, sizeof copy);
  copy.n = 1;
  copy.extent = &n;
  copy.src_stride = copy.dst_stride = &one;
  copy.size = 4;
  copy.away = away;
  copy.dst = (char *)p->at;
  copy.src = copy.dst + 4 * EINI_CUDA_PROBE_COPY;
  if (!eini_cuda_of_copy(&copy, &x) || !eini_cuda_plan(p->c, &x, NULL, -1, &h)) return 0;
  return eini_cuda_probe_run(p, &x, NULL, &h);
}

// Seconds of a product of n x n matrices, stored as `stored`, by the way of this name; 0: there is
// none.
static double eini_cuda_probe_product(eini_cuda_probe *p, ein_dtype stored, const char *way,
                                      int64_t n) {
  static const unsigned char away[3] = {1, 1, 1};
  const int64_t one = 1, bytes = EINI_CUDA_PROBE * EINI_CUDA_PROBE * 8;
  const int64_t *const far[1] = {&n}, *const near[1] = {&one};
  const char *const base[2] = {(char *)p->at, (char *)p->at + bytes};
  ein_step load;
  ein_code code;
  ein_contract of;
  ein_choice h;
  eini_cuda_nest x;
  memset(&load, 0, sizeof load);
  memset(&code, 0, sizeof code);
  memset(&of, 0, sizeof of);
  of.type = ein_dtype_compute(stored);
  load.op = EIN_OP_OPERAND;
  load.type = (unsigned char)of.type;
  load.from = (unsigned char)stored;
  code.nreg = code.nstep = 1;
  code.step = &load;
  code.type = load.type;
  code.plain = stored == of.type ? 0 : -1;
  of.m.n = of.n.n = of.k.n = 1;
  of.m.extent = of.n.extent = of.k.extent = &n;
  for (int s = 0; s < 2; s++) {
    ein_side *side = s ? &of.q : &of.p;
    side->form = stored == of.type ? EIN_FORM_PLAIN : EIN_FORM_FUNCTION;
    side->nop = 1;
    side->dtype = &stored;
    side->row = s ? near : far;
    side->k = s ? far : near;
    side->batch = near;
    side->base = &base[s];
    side->code = &code;
  }
  of.out_dtype = of.type;
  of.out_m = &n, of.out_n = &one;
  of.out = (char *)p->at + 2 * bytes;
  of.plain_out = 1;
  of.away = away;
  if (!eini_cuda_of_contract(&of, &x)) return 0;
  for (int nth = 0; eini_cuda_plan(p->c, &x, &of, nth, &h); nth++)
    if (strcmp(h.variant, way) == 0) return eini_cuda_probe_run(p, &x, &of, &h);
  return 0;
}

// Operations per second of the largest product that is not too long; 1: there is none.
static double eini_cuda_probe_speed(eini_cuda_probe *p, ein_dtype stored, const char *way) {
  double speed = 1;
  for (int64_t n = 64; n <= EINI_CUDA_PROBE; n *= 2) {
    const double seconds = eini_cuda_probe_product(p, stored, way, n);
    if (!(seconds > 0)) break;
    speed = 2 * (double)n * (double)n * (double)n / seconds;
    if (p->waited > EINI_CUDA_PROBE_SECONDS) break;
  }
  return speed;
}

// Copies between host and device: a short one that is waited for, and all of `memory`.
static ein_status eini_cuda_probe_link(eini_cuda_probe *p, char *memory, size_t bytes,
                                       double away[2]) {
  const size_t most = (size_t)(8 * EINI_CUDA_PROBE_COPY);
  double least = HUGE_VAL;
  if (bytes > most) bytes = most;
  for (int run = 0; run < 2 * EINI_CUDA_PROBE_RUNS; run++) {
    const double from = eini_cuda_probe_now(p);
    EINI_TRY(eini_slot_cuda_copy(p->c, 8, p->at, memory, 0));
    least = fmin(least, eini_cuda_probe_now(p) - from);
  }
  const double from = eini_cuda_probe_now(p);
  EINI_TRY(eini_slot_cuda_copy(p->c, bytes, memory, p->at, 1));
  EINI_TRY(eini_cuda_probe_wait(p));
  const double took = fmax(eini_cuda_probe_now(p) - from, 1e-9);
  away[0] = 1 / fmax(least, 1e-9);
  away[1] = fmax((double)bytes / took, 1);
  return EIN_OK;
}

static void eini_slot_cuda_measure(void *user, double (*now_fn)(void *user), void *now_user,
                                   void *memory, size_t bytes, ein_rates *rates) {
  static const struct { ein_dtype type; const char *way; } products[] = {
      {EIN_F32, "tiles"}, {EIN_F64, "tiles"}, {EIN_F64, "cores"}, {EIN_F32, "cores"},
      {EIN_F16, "cores"}, {EIN_BF16, "cores"}, {EIN_F16, "cores"}, {EIN_F32, "gemm"},
      {EIN_F64, "gemm"}};
  eini_cuda_probe p;
  double away[16], seconds;
  memset(&p, 0, sizeof p);
  p.c = (ein_cuda *)user;
  p.now_fn = now_fn;
  p.now_user = now_user;
  for (int i = 0; i < 16; i++) away[i] = 1;
  if (eini_slot_cuda_alloc(p.c, (size_t)(8 * EINI_CUDA_PROBE_COPY), &p.at) != EIN_OK) return;
  ein_status st = eini_cuda_probe_link(&p, (char *)memory, bytes, away);
  for (int64_t n = 1; n <= EINI_CUDA_PROBE_COPY && st == EIN_OK; n = n == 1 ? 1 << 16 : 2 * n) {
    seconds = eini_cuda_probe_copy(&p, n);
    if (!(seconds > 0)) st = EIN_ERR_INTERNAL;
    else if (n == 1) away[2] = 1 / seconds;
    else away[3] = 8 * (double)n / seconds;
    if (n > 1 && p.waited > EINI_CUDA_PROBE_SECONDS) break;
  }
  for (int i = 0; i < 9 && st == EIN_OK; i++)
    away[4 + i] = eini_cuda_probe_speed(&p, products[i].type, products[i].way);
  eini_slot_cuda_free(p.c, p.at);
  if (st == EIN_OK) memcpy(rates->away, away, sizeof away);
}
