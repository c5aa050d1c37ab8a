// ================================================================================================
// >>cpu-public  the provider and what a caller sees
// Thin functions around the sections above.
// ================================================================================================

struct ein_cpu {
  eini_rated machine;          // runs are given machine.is only
  eini_pool pool;
  ein_kernels kernels;
  ein_allocator allocator;
  size_t bytes;
  int huge;
  char apart[EINI_POOL_APART];
  int64_t packed;              // see eini_cpu
  char apart_end[EINI_POOL_APART];
  char name[sizeof ((ein_rates *)NULL)->machine];
};

static void eini_cpu_take(double *own, double given) {
  if (given > 0) *own = given;
}

// Bytes per second of stores where a copy reads and writes at `copy`: not more than of loads.
static double eini_cpu_store_bw(double read, double copy) {
  return copy > 0 && 2 / copy > 2 / read ? 1 / (2 / copy - 1 / read) : read;
}

// The rates to predict from: those given with a question, or the table's. What a run of the larger
// families begins with is the table's: calls are measured with a product that runs without.
static const eini_rated *eini_cpu_rated(void *user, const ein_rates *r, eini_rated *room) {
  const ein_cpu *cpu = (const ein_cpu *)user;
  if (r == NULL) return &cpu->machine;
  *room = cpu->machine;
  eini_cpu_take(&room->hz, r->hz);
  eini_cpu_take(&room->peak_f64, r->flops_f64);
  eini_cpu_take(&room->peak_f32, r->flops_f32);
  eini_cpu_take(&room->peak_bf16, r->flops_bf16);
  eini_cpu_take(&room->peak_i8, r->flops_i8);
  eini_cpu_take(&room->read_bw, r->read_bw[EIN_MEMORY]);
  eini_cpu_take(&room->copy_bw, r->copy_bw[EIN_MEMORY]);
  eini_cpu_take(&room->l3_bw, fmax(r->read_bw[EIN_L3], r->copy_bw[EIN_L3]));
  eini_cpu_take(&room->l2_bw, fmax(room->l3_bw, fmax(r->read_bw[EIN_L2], r->copy_bw[EIN_L2])));
  room->l3_store = eini_cpu_store_bw(room->l3_bw, r->copy_bw[EIN_L3]);
  room->l2_store = eini_cpu_store_bw(room->l2_bw, r->copy_bw[EIN_L2]);
  eini_cpu_take(&room->past, r->stream_bytes / room->is.l3s);
  eini_cpu_take(&room->pages, r->pages);
  return room;
}

static int eini_slot_contract_plan(void *user, const ein_contract *c, int width, int nth,
                                   ein_choice *choice) {
  eini_rated room;
  return eini_cpu_contract_plan(eini_cpu_rated(user, c->rates, &room), c, width, nth, choice);
}
static ein_status eini_slot_contract_run(void *user, const ein_contract *c,
                                         const ein_choice *choice, const ein_part *part,
                                         void *scratch) {
  return eini_cpu_contract_run(&((const ein_cpu *)user)->machine.is, c, choice, part, scratch);
}
static int eini_slot_copy_plan(void *user, const ein_copy *c, int width, int nth,
                               ein_choice *choice) {
  eini_rated room;
  return eini_cpu_copy_plan(eini_cpu_rated(user, c->rates, &room), c, width, nth, choice);
}
static ein_status eini_slot_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                                     void *scratch) {
  return eini_cpu_copy_run(&((const ein_cpu *)user)->machine.is, c, choice, scratch);
}
static ein_chunk_fn eini_slot_chunk(void *user, int op, ein_dtype type) {
  return eini_cpu_chunk_fn(((const ein_cpu *)user)->machine.is.isa, op, type);
}
static void (*eini_slot_across(void *user, int fold, ein_dtype type))(int64_t, const void *,
                                                                      void *) {
  return eini_cpu_across_fn(((const ein_cpu *)user)->machine.is.isa, fold, type);
}
static int eini_slot_map_plan(void *user, const ein_map *m, int width, int nth,
                              ein_choice *choice) {
  eini_rated room;
  return eini_cpu_map_plan(eini_cpu_rated(user, m->rates, &room), m, width, nth, choice);
}
static ein_status eini_slot_map_run(void *user, const ein_map *m, const ein_choice *choice,
                                    void *scratch) {
  return eini_cpu_map_run(&((const ein_cpu *)user)->machine.is, m, choice, scratch);
}
static void eini_slot_stream(void *user, size_t bytes, const void *src, void *dst) {
  if (bytes == 0) eini_stream_end();
  else eini_stream_row(((const ein_cpu *)user)->machine.is.isa, bytes, (const char *)src,
                       (char *)dst);
}

// Memory for contexts: blocks of some pages of 2 MiB begin at one and ask for such, where there is
// a way to ask. All of it is of the cpu's allocator, whose block is kept just below.
#define EINI_CPU_HUGE ((size_t)2 << 20)

static void *eini_cpu_huge_alloc(size_t size, size_t align, void *user) {
  const ein_allocator *al = &((const ein_cpu *)user)->allocator;
  if (size < EINI_CPU_HUGE) return al->alloc_fn(size, align, al->user);
  if (size > SIZE_MAX - EINI_CPU_HUGE - 64) return NULL;
  void *raw = al->alloc_fn(size + EINI_CPU_HUGE + 64, 64, al->user);
  if (raw == NULL) return NULL;
  char *p = (char *)raw + 64;
  p += (EINI_CPU_HUGE - (uintptr_t)p % EINI_CPU_HUGE) % EINI_CPU_HUGE;
  memcpy(p - sizeof raw, &raw, sizeof raw);
#if defined(__linux__) && defined(SYS_madvise) && (EINI_CPU_X86 || EINI_CPU_NEON)
  syscall(SYS_madvise, p, size / EINI_CPU_HUGE * EINI_CPU_HUGE, 14);  // MADV_HUGEPAGE, which strict
#endif                                                                // modes hide
  return p;
}

static void eini_cpu_huge_free(void *ptr, size_t size, void *user) {
  const ein_allocator *al = &((const ein_cpu *)user)->allocator;
  void *raw = ptr;
  if (ptr != NULL && size >= EINI_CPU_HUGE) memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  al->free_fn(raw, size < EINI_CPU_HUGE ? size : size + EINI_CPU_HUGE + 64, al->user);
}

// What planners see of the table.
static void eini_cpu_rates(ein_cpu *cpu) {
  const eini_rated *m = &cpu->machine;
  const double past = m->past * m->is.l3s;
  cpu->kernels.stream_bytes = past < (double)(SIZE_MAX / 2) ? (size_t)past : SIZE_MAX / 2;
  ein_rates *r = &cpu->kernels.rates;
  r->flops_f64 = m->peak_f64;
  r->flops_f32 = m->peak_f32;
  r->flops_bf16 = m->peak_bf16;
  r->flops_i8 = m->peak_i8;
  r->read_bw[EIN_L1] = r->read_bw[EIN_L2] = r->copy_bw[EIN_L1] = r->copy_bw[EIN_L2] = m->l2_bw;
  r->read_bw[EIN_L3] = r->copy_bw[EIN_L3] = m->l3_bw;
  r->read_bw[EIN_MEMORY] = m->read_bw;
  r->copy_bw[EIN_MEMORY] = m->copy_bw;
  r->cache_bytes[EIN_L1] = (double)m->is.l1;
  r->cache_bytes[EIN_L2] = (double)m->is.l2;
  r->cache_bytes[EIN_L3] = (double)m->is.l3;
  r->fast_bytes = (double)m->is.l2;
  r->fused = EINI_ELEM_FUSED;
  r->hz = m->hz;
}

static void eini_slot_measure(void *user, double (*now_fn)(void *user), void *now_user,
                              void *memory, size_t bytes, ein_rates *r) {
  const eini_clock now = {now_fn, now_user};
  if (bytes >= EINI_MEASURE_BYTES)
    eini_cpu_measure(&((const ein_cpu *)user)->machine, &now, (char *)memory, r);
}

static void eini_cpu_provide(ein_cpu *cpu) {
  ein_kernels *k = &cpu->kernels;
  k->name = "cpu";
  k->user = cpu;
  k->contract_plan = eini_slot_contract_plan;
  k->contract_run = eini_slot_contract_run;
  k->ordered = 1;
  k->copy_plan = eini_slot_copy_plan;
  k->copy_run = eini_slot_copy_run;
  k->chunk_fn = eini_slot_chunk;
  k->across_fn = eini_slot_across;
  k->map_plan = eini_slot_map_plan;
  k->map_run = eini_slot_map_run;
  if (EINI_STREAM_LINE > 0) k->stream_fn = eini_slot_stream;
  k->measure_fn = eini_slot_measure;
  k->machine = cpu->name;
  eini_cpu_machine(&cpu->machine.is, cpu->name, sizeof cpu->name);
  eini_cpu_rates(cpu);
}

static ein_status eini_cpu_new(const ein_cpu_desc *desc, const ein_allocator *allocator,
                               ein_cpu **out) {
  eini_rated m;
  uint64_t mask[EINI_CPU_MASK_WORDS];
  memset(&m, 0, sizeof m);
  const int online = desc->threads > 0 ? 0 : eini_cpu_allowed(mask);
  m.is.width = desc->threads > 0 ? desc->threads : eini_cpu_threads("", mask, online);
  if (!EINI_CPU_THREADS) m.is.width = 1;
  if (!eini_cpu_detect(&m, desc->isa)) return EIN_ERR_UNSUPPORTED;
  eini_cpu_open(&m);
  size_t bytes = sizeof(ein_cpu);
#if EINI_CPU_THREADS
  bytes += eini_pool_bytes(m.is.width);
#endif
  ein_cpu *cpu = (ein_cpu *)allocator->alloc_fn(bytes, 64, allocator->user);
  if (cpu == NULL) return EIN_ERR_NO_MEMORY;
  memset(cpu, 0, bytes);
  cpu->machine = m;
  cpu->allocator = *allocator;
  cpu->bytes = bytes;
  cpu->huge = desc->huge_pages;
  cpu->machine.is.packed = &cpu->packed;
#if EINI_CPU_THREADS
  eini_pool_init(&cpu->pool, m.is.width, desc->pin, (char *)(cpu + 1));
  cpu->machine.is.width = cpu->pool.width;
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
  plain.alloc_fn = eini_default_alloc;
  plain.free_fn = eini_default_free;
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
  const int room = desc == NULL ? 0 : (int)(sizeof desc->use / sizeof *desc->use);
  if (cpu == NULL || desc == NULL || desc->nuse < 0) return EIN_ERR_ARGUMENT;
  if (desc->nuse >= room) return EIN_ERR_TOO_LARGE;
  for (int i = desc->nuse++; i > 0; i--) desc->use[i] = desc->use[i - 1];
  desc->use[0] = &cpu->kernels;
  desc->executor = ein_cpu_executor(cpu);
  if (!cpu->huge || desc->allocator.alloc_fn != NULL) return EIN_OK;
  desc->allocator.alloc_fn = eini_cpu_huge_alloc;
  desc->allocator.free_fn = eini_cpu_huge_free;
  desc->allocator.user = cpu;
  return EIN_OK;
}

EIN_API void ein_cpu_counts_get(const ein_cpu *cpu, ein_cpu_counts *n) {
  if (n == NULL) return;
  memset(n, 0, sizeof *n);
  if (cpu == NULL) return;
#if EINI_CPU_THREADS
  const eini_pool *p = &cpu->pool;
  n->jobs = __atomic_load_n(&p->jobs, __ATOMIC_RELAXED);
  n->parts = __atomic_load_n(&p->parts, __ATOMIC_RELAXED);
  for (int i = 0; i < p->width; i++) {
    n->moved += __atomic_load_n(&p->lane[i].moved, __ATOMIC_RELAXED);
    n->wakes += __atomic_load_n(&p->lane[i].wakes, __ATOMIC_RELAXED);
  }
  n->packed = __atomic_load_n(&cpu->packed, __ATOMIC_RELAXED);
#else
  n->packed = cpu->packed;
#endif
}

EIN_API int ein_cpu_counts_of(const ein_ctx *ctx, ein_cpu_counts *n) {
  for (int i = 0; ctx != NULL && i < ctx->nkernels; i++) {
    if (ctx->kernels[i]->contract_run != eini_slot_contract_run) continue;
    ein_cpu_counts_get((const ein_cpu *)ctx->kernels[i]->user, n);
    return 1;
  }
  return 0;
}

EIN_API size_t ein_cpu_info(const ein_cpu *cpu, char *buf, size_t size) {
  if (cpu == NULL) return 0;
  const eini_rated *m = &cpu->machine;
  const int has = m->is.has;
  int n = snprintf(
      buf, size,
      "instruction set: %s (best here: %s)\ndot products:%s%s%s%s%s\nthreads: %d\n"
      "caches per core: L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\nrates by table:\n"
      "frequency: %.2f GHz\npeak per core: %.1f GFLOP/s f64, %.1f GFLOP/s f32, "
      "%.1f GFLOP/s bf16, %.1f GOP/s i8\n"
      "memory per core: read %.1f GB/s, copy %.1f GB/s\ncaches: L2 %.0f GB/s, L3 %.0f GB/s\n"
      "past the caches: outputs from %.1f MiB on\n",
      eini_isa_names[m->is.isa], eini_isa_names[eini_isa_best()],
      has & EINI_HAS_BF16 ? " avx512_bf16" : "", has & EINI_HAS_VNNI ? " avx512_vnni" : "",
      has & EINI_HAS_AMX_BF16 ? " amx_bf16" : "", has & EINI_HAS_AMX_I8 ? " amx_int8" : "",
      has == 0 ? " none" : "", m->is.width,
      (long long)(m->is.l1 >> 10),
      (long long)(m->is.l2 >> 10), (long long)(m->is.l3 >> 10),
      m->hz * 1e-9, m->peak_f64 * 1e-9, m->peak_f32 * 1e-9, m->peak_bf16 * 1e-9,
      m->peak_i8 * 1e-9, m->read_bw * 1e-9, m->copy_bw * 1e-9,
      m->l2_bw * 1e-9, m->l3_bw * 1e-9, m->past * m->is.l3s / 1048576);
  return n < 0 ? 0 : (size_t)n;
}

EINI_UNUSED static double eini_cpu_clock(void *user) {
  (void)user;
  return eini_cpu_now();
}

// What EINSUM_CPU brings into a ctx.
EINI_UNUSED static ein_status eini_cpu_start(const ein_allocator *al, ein_ctx_desc *desc,
                                             void **own) {
  ein_cpu *cpu;
  EINI_TRY(ein_cpu_create(NULL, al, &cpu));
  *own = cpu;
  if (desc->now_fn == NULL && EINI_CPU_POSIX) desc->now_fn = eini_cpu_clock;
  return ein_cpu_use(cpu, desc);
}

EINI_UNUSED static void eini_cpu_end(void *own) { ein_cpu_destroy((ein_cpu *)own); }
