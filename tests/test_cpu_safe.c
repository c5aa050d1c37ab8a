// What runs of the cpu backend rest on, whatever happens around them.
//
//   test_cpu_safe [count] [seed] [case]     defaults: 1000 1; with a case only that one
//
// Random problems of every family of kernels are planned with one set of rates and run with
// another, in a workspace of exactly the bytes the plan asks for. Values are small whole numbers,
// so results are those of the portable kernels to the last bit. Data have the least alignment the
// manual asks for (for UBSan); no part of a run ends with a streamed store that no fence follows.
// Forks, and threads that share a pool, come last. Prints "ok" and exits 0; under ASan, UBSan and
// TSan it tests most.
#if defined(__x86_64__)
#include <immintrin.h>

// Whether the last of streamed stores and fences was a store.
static int unfenced;
#define STREAMED(store) (__atomic_store_n(&unfenced, 1, __ATOMIC_RELAXED), store)
#define _mm_stream_si128(p, v) STREAMED((_mm_stream_si128)(p, v))
#define _mm256_stream_si256(p, v) STREAMED((_mm256_stream_si256)(p, v))
#define _mm256_stream_pd(p, v) STREAMED((_mm256_stream_pd)(p, v))
#define _mm256_stream_ps(p, v) STREAMED((_mm256_stream_ps)(p, v))
#define _mm512_stream_si512(p, v) STREAMED((_mm512_stream_si512)(p, v))
#define _mm512_stream_pd(p, v) STREAMED((_mm512_stream_pd)(p, v))
#define _mm512_stream_ps(p, v) STREAMED((_mm512_stream_ps)(p, v))
#define _mm_sfence() ((_mm_sfence)(), __atomic_store_n(&unfenced, 0, __ATOMIC_RELAXED))
#else
static const int unfenced = 0;
#endif

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdlib.h>
#if EINI_CPU_THREADS
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#ifndef __cplusplus
char *mkdtemp(char *name);  // strict ISO modes hide it
#endif
#endif

#include "check.h"
#include "naive_kernels.h"
#include "util.h"

// ---- rates --------------------------------------------------------------------------------------

// Rates far from the table's: such that kernels other than the usual are faster.
static void draw_rates(const ein_cpu *cpu, ein_rates *r) {
  double *const each[] = {&r->hz, &r->flops_f64, &r->flops_f32, &r->read_bw[EIN_L3],
                          &r->read_bw[EIN_L2], &r->read_bw[EIN_MEMORY], &r->copy_bw[EIN_MEMORY]};
  *r = cpu->kernels.rates;
  for (size_t i = 0; i < sizeof each / sizeof *each; i++)
    *each[i] = 1e12 * exp((double)draw(-400, 400) / 100.0);
  r->call = 6e-8;
  r->stream_bytes = chance(50) ? 512 : 1e6;
  r->pages = chance(50) ? 1 : 4;
  r->fast_bytes = 16384;  // products of two spill it: one pass is worth its while
}

static void other_rates(const ein_cpu *cpu, ein_ctx *ctx) {
  ein_rates r;
  draw_rates(cpu, &r);
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
}

// ---- problems -----------------------------------------------------------------------------------

typedef struct kind {         // extents of the letters, from .. to
  const char *expr, *map, *monoid;
  int64_t from[8], to[8];      // a, b, ..
} kind;

static const kind shapes[] = {
    {"ab,bc->ac", NULL, NULL, {2, 2, 2}, {60, 60, 60}},                   // gett, small, tiny
    {"ab,bc->ac", NULL, NULL, {60, 60, 60}, {200, 90, 200}},
    {"ab,cb->ca", NULL, NULL, {100, 2, 1}, {900, 20, 9}},                 // skinny
    {"abc,acd->abd", NULL, NULL, {1, 1, 1, 1}, {90, 9, 9, 9}},            // batches
    {"bca,cda->bda", NULL, NULL, {16, 1, 1, 1}, {90, 9, 9, 9}},           // lanes of the batch
    {"ab,b->a", NULL, NULL, {1, 2}, {300, 300}},                          // matvec
    {"ab,a->b", NULL, NULL, {1, 2}, {300, 300}},
    {"ab,ab->", NULL, NULL, {1, 1}, {200, 200}},                          // dot
    {"abc,cba->", NULL, NULL, {2, 2, 2}, {60, 9, 60}},                    // inner
    {"abc,adc->bad", NULL, NULL, {2, 2, 2, 2}, {40, 40, 9, 40}},          // moved
    {"abe,cde->acbd", NULL, NULL, {20, 3, 40, 3, 2}, {50, 14, 60, 14, 20}},
    {"abe,ecd->cadb", NULL, NULL, {20, 3, 40, 3, 2}, {50, 14, 60, 14, 20}},
    {"abcd,eb->dcea", NULL, NULL, {9, 9, 9, 9, 2}, {24, 20, 24, 24, 20}},
    {"bac,cd,bed->aec", NULL, NULL, {300, 2, 2, 2, 2}, {900, 5, 15, 15, 5}},  // elements
    {"bca,ad,bed->aec", NULL, NULL, {300, 2, 2, 2, 2}, {900, 5, 15, 15, 5}},
    {"bca,dea,cfe->bfad", NULL, NULL, {300, 2, 2, 2, 2, 2}, {900, 3, 4, 3, 9, 9}},
    {"bac,acd,ebd->ae", NULL, NULL, {300, 2, 2, 2, 2}, {900, 5, 9, 9, 20}},   // rows
    {"ba,abc,dbc->ad", NULL, NULL, {300, 2, 4, 4}, {900, 3, 15, 30}},
    {"ab->ba", NULL, NULL, {1, 1}, {300, 300}},                           // copies
    {"abc->cab", NULL, NULL, {1, 1, 1}, {40, 40, 40}},
    {"abc->bac", NULL, NULL, {1, 1, 1}, {40, 40, 40}},
    {"aab->ba", NULL, NULL, {1, 1}, {90, 300}},
    {"abc->ac", NULL, NULL, {1, 1, 1}, {40, 40, 90}},                     // sums, across
    {"abc->b", NULL, NULL, {1, 1, 1}, {40, 40, 90}},
    {"abc->a", NULL, NULL, {1, 1, 1}, {9, 90, 90}},                       // pages together
    {"abc->", NULL, "max", {1, 1, 1}, {40, 40, 90}},
    {"abc->ab", NULL, "min", {1, 1, 1}, {40, 40, 90}},
    {"ab,ab->ab", "x0*2-x1", NULL, {1, 1}, {90, 900}},                    // chunks, rows, streams
    {"ab,b->ab", "where(x0<x1,x0,x1)", NULL, {1, 1}, {90, 900}},
    {"ab,ab->a", "abs(x0-x1)", NULL, {1, 1}, {90, 900}},
    {"ab,bc->ac", "abs(x0-x1)", "max", {1, 1, 1}, {50, 50, 50}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static long families[sizeof eini_cpu_families / sizeof *eini_cpu_families], copies, streams, kept;

typedef struct problem {
  ein_einsum_desc d;
  ein_ztensor in[3], out, want;
  char *raw[5];                // memory of operands, output and what is wanted
  int64_t count[3];            // elements of operands
  int64_t shape[4][8], strides[4][8];
  size_t bytes;                // of the output
} problem;

// Memory aligned as the manual asks for and no better: to a part of a complex number.
static char *place(ein_ztensor *t, size_t bytes) {
  const int complex = t->dtype == EIN_C64 || t->dtype == EIN_C128;
  const size_t part = ein_dtype_size(t->dtype) / (complex ? 2 : 1);
  char *raw = (char *)malloc(bytes + 128);
  if (raw == NULL) exit(3);
  t->data = raw + 64 - (uintptr_t)raw % 64 + part * (size_t)(2 * draw(0, 3) + 1);
  return raw;
}

static void fill(const ein_ztensor *t, int64_t n) {
  const int64_t reals = t->dtype == EIN_C64 || t->dtype == EIN_C128 ? 2 * n : n;
  for (int64_t i = 0; i < reals; i++) {
    const int v = (int)draw(-2, 2);
    switch (t->dtype) {
      case EIN_F32: case EIN_C64: ((float *)t->data)[i] = (float)v; break;
      case EIN_F64: case EIN_C128: ((double *)t->data)[i] = v; break;
      case EIN_I32: ((int32_t *)t->data)[i] = v; break;
      case EIN_I64: ((int64_t *)t->data)[i] = v; break;
      case EIN_I16: ((int16_t *)t->data)[i] = (int16_t)v; break;
      case EIN_F16: case EIN_BF16: {  // 1 and 2 as they are there
        const int one = t->dtype == EIN_F16 ? 0x3c00 : 0x3f80, two = 0x4000;
        const int bits = v == 0 ? 0 : v * v == 1 ? one : two;
        ((uint16_t *)t->data)[i] = (uint16_t)(bits | (v < 0 ? 0x8000 : 0));
        break;
      }
      default: ((uint8_t *)t->data)[i] = (uint8_t)(v & 1); break;
    }
  }
}

// Axes of a tensor as they lie in memory: in order, or in any.
static int64_t lay_out(ein_ztensor *t, int64_t *shape, int64_t *strides, const char *axes, int rank,
                       const int64_t *extent) {
  int order[8];
  int64_t n = 1;
  const int any = chance(40);
  for (int i = 0; i < rank; i++) {
    int at = any ? (int)draw(0, i) : i;
    for (int k = i; k > at; k--) order[k] = order[k - 1];
    order[at] = i;
  }
  for (int i = rank - 1; i >= 0; i--) {
    shape[order[i]] = extent[axes[order[i]] - 'a'];
    strides[order[i]] = n;
    n *= shape[order[i]];
  }
  t->rank = rank, t->shape = shape, t->strides = strides;
  return n;
}

static void draw_problem(problem *p, const kind *s) {
  static const ein_dtype dtypes[] = {EIN_F32, EIN_F64, EIN_F32, EIN_F64, EIN_I32,  EIN_I64,
                                     EIN_F16, EIN_I16, EIN_U8,  EIN_C64, EIN_BF16, EIN_C128,
                                     EIN_C64, EIN_C128};
  memset(p, 0, sizeof *p);
  const int reals = s->map != NULL || s->monoid != NULL;
  const ein_dtype type = dtypes[draw(0, reals ? 8 : 13)];
  int64_t extent[8];
  for (int i = 0; i < 8; i++) extent[i] = draw(s->from[i], s->to[i] > 0 ? s->to[i] : s->from[i]);
  const char *axes = s->expr;
  for (int k = 0; axes != NULL; k++) {
    const int out = axes[0] == '>';
    if (out) axes++;
    const int rank = (int)strcspn(axes, ",-");
    ein_ztensor *t = out ? &p->out : &p->in[k];
    const int64_t n = lay_out(t, p->shape[out ? 3 : k], p->strides[out ? 3 : k], axes, rank,
                              extent);
    t->dtype = type;
    const size_t bytes = (size_t)n * ein_dtype_size(type);
    p->raw[out ? 3 : k] = place(t, bytes);
    fill(t, n);
    if (!out) p->count[k] = n;
    if (out) p->bytes = bytes;
    if (!out) p->d.nin = k + 1;
    axes = out ? NULL : axes + rank + 1;
  }
  p->want = p->out;
  p->raw[4] = place(&p->want, p->bytes);
  p->d.expr = s->expr, p->d.map = s->map, p->d.monoid = s->monoid;
  p->d.in = p->in, p->d.out = &p->out;
  if (chance(40)) p->d.options.path = "none";
}

static void free_problem(problem *p) {
  for (int k = 0; k < 5; k++) free(p->raw[k]);
}

// Equal as numbers: a sum of nothing but -0 may be 0.
static int same(const ein_ztensor *x, const ein_ztensor *y, size_t bytes) {
  const int f32 = x->dtype == EIN_F32 || x->dtype == EIN_C64;
  if (x->dtype == EIN_F16 || x->dtype == EIN_BF16) {
    for (size_t i = 0; i < bytes / 2; i++) {
      const unsigned a = ((uint16_t *)x->data)[i], b = ((uint16_t *)y->data)[i];
      if (a != b && ((a | b) & 0x7fff) != 0) return 0;
    }
    return 1;
  }
  if (!f32 && x->dtype != EIN_F64 && x->dtype != EIN_C128)
    return memcmp(x->data, y->data, bytes) == 0;
  for (size_t i = 0; i < bytes / (f32 ? 4 : 8); i++) {
    if (f32 ? !(((float *)x->data)[i] == ((float *)y->data)[i])
            : !(((double *)x->data)[i] == ((double *)y->data)[i]))
      return 0;
  }
  return 1;
}

// ---- runs ---------------------------------------------------------------------------------------

static void count_tasks(const ein_plan *plan) {
  for (int k = 0; k < plan->ntask; k++) {
    const eini_task *t = &plan->task[k];
    streams += t->stream != NULL;
    if (t->kernels == NULL || strcmp(t->kernels->name, "cpu") != 0) continue;
    if (t->kind == EINI_TASK_COPY) copies++;
    if (t->kind == EINI_TASK_CONTRACT) families[t->choice.state[EINI_FAMILY_WORD]]++;
  }
}

// Runs parts on the calling thread, as an executor of somebody else might: what each wrote has to
// be visible to the next thread without any more ado.
static long parts_run, parts_unfenced;

static void fenced_parts(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) {
    task(arg, i);
    parts_run++, parts_unfenced += unfenced;
  }
}

// With the pool, or alone with that executor.
static ein_ctx *ctx_of(ein_cpu *cpu, int alone) {
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  memset(&desc, 0, sizeof desc);
  CHECK(ein_cpu_use(cpu, &desc) == EIN_OK);
  if (alone) desc.executor.width = alone, desc.executor.parallel_for = fenced_parts;
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  return ctx;
}

// The family of a variant, as "cpu:gett direct"; -1: none of the backend's.
static int family_of(const char *variant) {
  int found = -1;
  size_t longest = 0;
  if (strncmp(variant, "cpu:", 4) != 0) return -1;
  for (int i = 0; eini_cpu_families[i] != NULL; i++) {
    const size_t n = strlen(eini_cpu_families[i]->name);
    if (n > longest && strncmp(variant + 4, eini_cpu_families[i]->name, n) == 0)
      found = i, longest = n;
  }
  return found;
}

// Of the variants that a plan's tasks have, the one whose family ran least: no family's turn rests
// on what this machine finds it to cost. Text as ein_options.variant takes it; empty: none, or the
// one that is chosen shall run.
static void draw_variant(ein_ctx *ctx, const ein_einsum_desc *d, char *name, size_t size) {
  char list[8192];
  ein_einsum_desc asked = *d;
  ein_plan *plan = NULL;
  int least = -1;
  asked.options.variant = "any";
  CHECK(ein_plan_create(ctx, &asked, &plan) == EIN_OK);
  CHECK(ein_plan_variants(plan, list, sizeof list) < sizeof list);
  ein_plan_destroy(plan);
  for (const char *at = list; *at != 0; at = strchr(at, '\n') + 1) {
    const int f = family_of(at);
    if (f < 0 || (least >= 0 && families[f] >= families[least])) continue;
    least = f;
    snprintf(name, size, "%.*s", (int)strcspn(at, "\n"), at);
  }
  if (least >= 0 && families[least] >= 9 && chance(70)) name[0] = 0;
}

// What the portable kernels make of the operands as they are.
static void want_again(problem *p) {
  ein_einsum_desc plain = p->d;
  plain.out = &p->want;
  plain.options.constant = NULL;
  CHECK(ein_einsum_ex(NULL, &plain) == EIN_OK);
}

static void run_again(const ein_plan *plan, const ein_run *run, problem *p) {
  memset(p->out.data, 0x5a, p->bytes);
  CHECK(ein_plan_execute(plan, run) == EIN_OK);
  CHECK(same(&p->out, &p->want, p->bytes));
}

// Other data of constant operands: at the same address, which is told, and at another one, which
// need not be; and again at the first.
static void run_constant(ein_plan *plan, const ein_run *run, problem *p) {
  const void *in[3];
  ein_run other = *run;
  char *raw[3] = {NULL, NULL, NULL};
  for (int k = 0; k < p->d.nin; k++) fill(&p->in[k], p->count[k]);
  want_again(p);
  ein_plan_changed(plan);
  run_again(plan, run, p);
  run_again(plan, run, p);
  for (int k = 0; k < p->d.nin; k++) {
    const size_t bytes = (size_t)p->count[k] * ein_dtype_size(p->in[k].dtype);
    ein_ztensor moved = p->in[k];
    raw[k] = place(&moved, bytes);
    memcpy(moved.data, p->in[k].data, bytes);
    in[k] = moved.data;
    fill(&p->in[k], p->count[k]);  // what is at the first address is read no more
  }
  other.in = in;
  run_again(plan, &other, p);
  want_again(p);
  ein_plan_changed(plan);
  run_again(plan, run, p);
  for (int k = 0; k < p->d.nin; k++) free(raw[k]);
}

// Planned with some rates, run with others.
static void run_problem(ein_cpu *cpu, ein_ctx *ctx, problem *p) {
  static const char *const constant[] = {"x0", "x1", "x0,x1"};
  ein_plan *plan = NULL;
  ein_run run;
  const void *in[3];
  void *out[1];
  ein_einsum_desc plain = p->d;
  plain.out = &p->want;
  CHECK(ein_einsum_ex(NULL, &plain) == EIN_OK);
  other_rates(cpu, ctx);
  char variant[128] = "";
  draw_variant(ctx, &p->d, variant, sizeof variant);
  p->d.options.variant = variant[0] ? variant : NULL;
  p->d.options.constant = !chance(40) ? NULL : p->d.nin < 2 ? "x0" : constant[draw(0, 2)];
  const ein_status st = ein_plan_create(ctx, &p->d, &plan);
  p->d.options.variant = NULL;
  CHECK(st == EIN_OK);
  if (st != EIN_OK) return;
  ein_plan_info info;
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
  CHECK(info.kept_bytes == 0 || p->d.options.constant != NULL);
  kept += info.kept_bytes > 0;
  count_tasks(plan);
  other_rates(cpu, ctx);
  memset(&run, 0, sizeof run);
  for (int k = 0; k < p->d.nin; k++) in[k] = p->in[k].data;
  out[0] = p->out.data;
  run.in = in, run.out = out;
  const size_t need = ein_plan_workspace(plan);
  char *raw = (char *)malloc(need + 63);
  if (raw == NULL) exit(3);
  const size_t skew = (64 - (uintptr_t)raw % 64) % 64;  // what ASan watches is behind the bytes
  run.workspace = raw + skew, run.workspace_bytes = need;
  for (int twice = 0; twice < 2; twice++) {
    run_again(plan, &run, p);
    other_rates(cpu, ctx);
  }
  if (p->d.options.constant != NULL) run_constant(plan, &run, p);
  free(raw);
  ein_plan_destroy(plan);
}

// Every family has had its turn where the machine has vectors; of those of dot products, which need
// more of it and come in each other's way, one.
static void check_families(const ein_cpu *cpu) {
  long dots = 0;
  for (int i = 0; eini_cpu_families[i] != NULL; i++) {
    const eini_cpu_family *f = eini_cpu_families[i];
    printf("%s %ld ", f->name, families[i]);
    if (f->run == eini_gett_run && f != &eini_gett_family) dots += families[i];
    else CHECK(families[i] > 0 || cpu->machine.is.isa == EINI_ISA_PLAIN);
  }
  CHECK(dots > 0 || cpu->machine.is.isa < EINI_ISA_AVX2);
  printf("copies %ld streams %ld kept %ld\n", copies, streams, kept);
  CHECK(kept > 0);
  CHECK(copies > 0 && (streams > 0 || cpu->kernels.stream_fn == NULL));
}

static ein_cpu *cpu_of(const char *isa, int threads) {
  ein_cpu_desc desc;
  ein_cpu *cpu = NULL;
  memset(&desc, 0, sizeof desc);
  desc.threads = threads, desc.isa = isa;
  const ein_status st = ein_cpu_create(&desc, NULL, &cpu);
  CHECK(st == EIN_OK || st == EIN_ERR_UNSUPPORTED);
  return cpu;
}

// alone: 0 with the pool, else the width of the other executor.
static void test_rates(const char *isa, int alone, int64_t count, uint64_t seed, int64_t only) {
  ein_cpu *cpu = cpu_of(isa, 3);
  if (cpu == NULL) return;  // not here
  ein_ctx *ctx = ctx_of(cpu, alone);
  memset(families, 0, sizeof families);
  copies = streams = kept = 0;
  for (int64_t k = 0; k < count; k++) {
    problem p;
    const int before = failures;
    if (only >= 0 && k != only) continue;
    rng_state = seed * 0x9e3779b97f4a7c15u + (uint64_t)k * 0xd1342543de82ef95u;
    draw_problem(&p, &shapes[k % SHAPES]);
    run_problem(cpu, ctx, &p);
    CHECK(!alone || (!unfenced && parts_unfenced == 0));
    if (failures > before) {
      printf("  case %lld: %s, dtype %s\n", (long long)k, p.d.expr, ein_dtype_name(p.out.dtype));
    }
    free_problem(&p);
  }
  ein_ctx_destroy(ctx);
  if (count >= 1000 && only < 0) check_families(cpu);
  ein_cpu_destroy(cpu);
}

// ---- a kernel that fails ------------------------------------------------------------------------

static ein_status fail_contract(void *user, const ein_contract *c, const ein_choice *h,
                                const ein_part *part, void *scratch) {
  if (part->m[0] > 0) return EIN_ERR_UNSUPPORTED;  // one part of two, where there are two
  naive_contract_run(user, c, h, part, scratch);
  return part->m[1] == eini_axes_size(&c->m) ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status fail_copy(void *user, const ein_copy *c, const ein_choice *h, void *scratch) {
  (void)user, (void)c, (void)h, (void)scratch;
  return EIN_ERR_TOO_LARGE;
}

static void two_parts(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

// What a kernel returns is the status of the execution, with one thread and with several.
static void test_status(void) {
  static double a[32 * 32], b[32 * 32], c[32 * 32];
  const int64_t shape[2] = {32, 32};
  ein_kernels k = naive_kernels;
  const ein_kernels *list[1];
  ein_ztensor in[2], out;
  memset(in, 0, sizeof in);
  for (int i = 0; i < 2; i++) in[i].dtype = EIN_F64, in[i].rank = 2, in[i].shape = shape;
  out = in[0];
  in[0].data = a, in[1].data = b, out.data = c;
  k.contract_run = fail_contract, k.copy_run = fail_copy;
  list[0] = &k;
  for (int width = 1; width <= 2; width++) {
    ein_ctx_desc desc;
    ein_ctx *ctx;
    memset(&desc, 0, sizeof desc);
    desc.kernels = list, desc.nkernels = 1;
    desc.executor.width = width, desc.executor.parallel_for = two_parts;
    CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
    CHECK(ein_einsum(ctx, "ij,jk->ik", 2, in, &out) ==
          (width == 1 ? EIN_ERR_NO_MEMORY : EIN_ERR_UNSUPPORTED));
    CHECK(ein_einsum(ctx, "ij->ji", 1, in, &out) == EIN_ERR_TOO_LARGE);
    ein_ctx_destroy(ctx);
  }
}

// ---- one law for what goes past the caches ------------------------------------------------------

static int copy_streams(const ein_cpu *cpu, const ein_rates *rates, int64_t rows) {
  const int64_t extent[2] = {64, 0}, src[2] = {1, 0}, dst[2] = {0, 1};
  int64_t e[2] = {extent[0], rows}, s[2] = {src[0], 64}, d[2] = {rows, dst[1]};
  const ein_copy c = {2, e, s, d, 8, NULL, NULL, rates, NULL};
  ein_choice h;
  memset(&h, 0, sizeof h);
  CHECK(cpu->kernels.copy_plan(cpu->kernels.user, &c, 2, -1, &h));
  return h.state[EINI_COPY_STREAM] != 0;
}

static int map_streams(ein_ctx *ctx, int64_t n) {
  ein_einsum_desc d;
  ein_ztensor in, out;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  memset(&in, 0, sizeof in);
  in.dtype = EIN_F64, in.rank = 1, in.shape = &n;
  out = in;
  d.expr = "i->i", d.map = "x0*2", d.nin = 1, d.in = &in, d.out = &out;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  const int streams_it = plan != NULL && plan->ntask == 1 && plan->task[0].stream != NULL;
  ein_plan_destroy(plan);
  return streams_it;
}

// What is timed when a machine is opened is told alike by every run.
static void test_opened(void) {
  ein_cpu *cpu = cpu_of(NULL, 1);
  const eini_rated opened = cpu->machine;
  ein_cpu_destroy(cpu);
  for (int again = 0; again < 20; again++) {
    eini_rated m = opened;
    m.is.halves = 0;
    eini_cpu_defaults(&m);
    const double f64 = m.peak_f64, f32 = m.peak_f32;
    eini_cpu_open(&m);
    CHECK(m.is.halves == opened.is.halves && m.peak_f64 == opened.peak_f64);
    CHECK(m.peak_bf16 == opened.peak_bf16 && m.peak_i8 == opened.peak_i8);
    CHECK(m.peak_f64 == (m.is.halves ? f64 / 2 : f64) && m.peak_f32 / m.peak_f64 == f32 / f64);
    if (m.is.isa != EINI_ISA_AVX512) CHECK(!m.is.halves);
    if (m.is.has & EINI_HAS_AMX_BF16) continue;
    const double times = m.peak_bf16 / m.peak_f32;
    CHECK(m.is.has & EINI_HAS_BF16 ? times == 0.5 || times == 2 : times == 1);
  }
}

// Copies, maps and contractions switch at the same size, which is a rate. Without calibration no
// core is taken to have more than 4 MiB of a cache, however large it is said to be.
static void test_past(void) {
  ein_cpu *cpu = cpu_of(NULL, 2);
  if (cpu->kernels.stream_fn == NULL) {
    ein_cpu_destroy(cpu);
    return;
  }
  ein_ctx *ctx = ctx_of(cpu, 0);
  eini_rated m = cpu->machine;
  m.is.width = 2, m.is.l3s = 1, m.is.l3 = (int64_t)130 << 20;
  eini_cpu_defaults(&m);
  CHECK(m.past == 4 << 20);
  m.is.l3 = 1 << 20;
  eini_cpu_defaults(&m);
  CHECK(m.past == 1 << 20);
  for (int64_t past = 1 << 15; past <= 1 << 22; past *= 2) {
    ein_rates r = cpu->kernels.rates;
    r.stream_bytes = (double)(past * cpu->machine.is.l3s);
    CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
    const int64_t n = past * cpu->machine.is.l3s / 8;
    CHECK(!copy_streams(cpu, &r, n / 64) && copy_streams(cpu, &r, n / 64 + 1));
    CHECK(!map_streams(ctx, n) && map_streams(ctx, n + 8));
  }
  CHECK(ein_ctx_rates(ctx, NULL) == EIN_OK);
  const int64_t n = (int64_t)(cpu->machine.past * cpu->machine.is.l3s / 8);
  CHECK(!map_streams(ctx, n) && map_streams(ctx, n + 8));
  ctx->now_fn = eini_cpu_clock;
  ein_rates own;
  CHECK(ein_calibrate(ctx, 0.01, &own) == EIN_OK);
  const double most = (double)(cpu->machine.is.l3 * 2), past = own.stream_bytes;
  CHECK(past >= 1e5 && past / cpu->machine.is.l3s <= (most > 64e6 ? most : 64e6));
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
}

#if EINI_CPU_THREADS
// ---- what the system tells, in trees of files made up -------------------------------------------

static char tree[800];

// Writes a file of a tree, and the directories above it.
static void put_file(const char *name, const char *text) {
  char path[1024];
  snprintf(path, sizeof path, "%s%s", tree, name);
  for (char *c = path + strlen(tree) + 1; *c; c++) {
    if (*c != '/') continue;
    *c = 0;
    mkdir(path, 0700);
    *c = '/';
  }
  FILE *f = fopen(path, "w");
  CHECK(f != NULL);
  if (f == NULL) return;
  fputs(text, f);
  fclose(f);
}

// A new tree with so many processors, `smt` of them in a core: next to each other, or far apart.
static void new_tree(int processors, int smt, int apart) {
  char name[100], text[100];
  const char *dir = getenv("TMPDIR");
  snprintf(tree, sizeof tree, "%s/einsum_treeXXXXXX", dir != NULL ? dir : "/tmp");
  CHECK(mkdtemp(tree) != NULL);
  for (int i = 0; i < processors && smt > 0; i++) {
    const int cores = processors / smt;
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
    if (smt == 1) snprintf(text, sizeof text, "%d\n", i);
    else if (apart) snprintf(text, sizeof text, "%d,%d\n", i % cores, i % cores + cores);
    else snprintf(text, sizeof text, "%d-%d\n", i / smt * smt, i / smt * smt + smt - 1);
    put_file(name, text);
  }
}

static void end_tree(void) {
  char line[900];
  snprintf(line, sizeof line, "rm -r '%s'", tree);
  CHECK(system(line) == 0);
}

// Threads by default with processors [0, n) but those left out allowed.
static int threads_of(int n, uint64_t left_out) {
  uint64_t mask[EINI_CPU_MASK_WORDS];
  int count = 0;
  memset(mask, 0, sizeof mask);
  for (int i = 0; i < n; i++) {
    if (i < 64 && (left_out >> i & 1)) continue;
    mask[i / 64] |= (uint64_t)1 << i % 64, count++;
  }
  return eini_cpu_threads(tree, mask, count);
}

static void test_system(void) {
  new_tree(0, 0, 0);
  CHECK(threads_of(7, 0) == 7 && threads_of(130, 0) == 130);  // nothing is told
  end_tree();
  new_tree(8, 1, 0);
  CHECK(threads_of(8, 0) == 8 && threads_of(8, 0xf0) == 4);
  end_tree();
  for (int apart = 0; apart < 2; apart++) {
    new_tree(16, 2, apart);
    CHECK(threads_of(16, 0) == 8 && threads_of(16, 0xff) == (apart ? 8 : 4));
    CHECK(threads_of(2, 0) == (apart ? 2 : 1));  // two of one core, or of two
    put_file("/proc/self/cgroup", "0::/a.slice/b\n");
    put_file("/sys/fs/cgroup/a.slice/b/cpu.max", "max 100000\n");
    CHECK(threads_of(16, 0) == 8);
    put_file("/sys/fs/cgroup/a.slice/cpu.max", "250000 100000\n");  // of a group around it
    CHECK(threads_of(16, 0) == 3);
    put_file("/sys/fs/cgroup/a.slice/b/cpu.max", "50000 100000\n");
    CHECK(threads_of(16, 0) == 1);
    put_file("/sys/fs/cgroup/a.slice/b/cpu.max", "9999999 100000\n");
    put_file("/sys/fs/cgroup/a.slice/cpu.max", "nonsense");
    CHECK(threads_of(16, 0) == 8);
    end_tree();
  }
  new_tree(8, 1, 0);  // the first version, from within a container: its path is not seen
  put_file("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/x\n3:cpuset:/x\n0::/\n");
  put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(threads_of(8, 0) == 8);
  put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  CHECK(threads_of(8, 0) == 4);
  end_tree();
}

static void put_cache(int index, const char *level, const char *type, const char *size,
                      const char *shared) {
  static const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
  const char *text[4] = {level, type, size, shared};
  for (int i = 0; i < 4; i++) {
    char name[100];
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, names[i]);
    put_file(name, text[i]);
  }
}

static void test_caches(void) {
  eini_cpu m;
  memset(&m, 0, sizeof m);
  new_tree(0, 0, 0);
  put_cache(0, "1\n", "Data\n", "64K\n", "0\n");
  put_cache(1, "1\n", "Instruction\n", "32K\n", "0\n");
  put_cache(2, "2\n", "Unified\n", "1024K\n", "0\n");
  put_cache(3, "3\n", "Unified\n", "32M\n", "0-3,8-11\n");
  m.width = 4;
  eini_cpu_sys_caches(tree, &m);
  CHECK(m.l1 == 65536 && m.l2 == 1048576 && m.l3 == 8 << 20 && m.l3s == 1);
  m.width = 64;
  eini_cpu_sys_caches(tree, &m);
  CHECK(m.l3 == 4 << 20 && m.l3s == 8);
  end_tree();
}

// ---- forks and threads --------------------------------------------------------------------------

typedef struct product {
  double a[80 * 80], b[80 * 80], out[80 * 80], want[80 * 80];
  ein_ztensor in[2], c;
  int64_t shape[2];
} product;

static ein_status multiply(product *p, ein_ctx *ctx, double *out) {
  memset(p->in, 0, sizeof p->in);
  p->shape[0] = p->shape[1] = 80;
  for (int i = 0; i < 80 * 80; i++) p->a[i] = i % 7 - 3, p->b[i] = i % 5 - 2;
  for (int i = 0; i < 2; i++) {
    p->in[i].dtype = EIN_F64, p->in[i].rank = 2, p->in[i].shape = p->shape;
  }
  p->c = p->in[0];
  p->in[0].data = p->a, p->in[1].data = p->b, p->c.data = out;
  return ein_einsum(ctx, "ij,jk->ik", 2, p->in, &p->c);
}

// ThreadSanitizer does not follow threads that start after a fork.
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { FORKS = 2 };
#else
enum { FORKS = 3 };
#endif

// The pool of a parent works in its child, on one thread, and can be destroyed there.
static void test_fork(void) {
  static product p;
  ein_cpu *cpu = cpu_of(NULL, 4);
  ein_ctx *ctx = ctx_of(cpu, 0);
  CHECK(multiply(&p, NULL, p.want) == EIN_OK);
  CHECK(multiply(&p, ctx, p.out) == EIN_OK);
  for (int how = 0; how < FORKS; how++) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      int bad = how > 0 && (multiply(&p, ctx, p.out) != EIN_OK ||
                            memcmp(p.out, p.want, sizeof p.out) != 0);
      ein_ctx_destroy(ctx);
      ein_cpu_destroy(cpu);
      if (how == 2) bad |= ein_cpu_create(NULL, NULL, &cpu) != EIN_OK, ein_cpu_destroy(cpu);
      _exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  CHECK(multiply(&p, ctx, p.out) == EIN_OK && memcmp(p.out, p.want, sizeof p.out) == 0);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
}

// Tasks of a job that the caller's thread does not leave before another thread is inside one, which
// takes a while: whoever does not wait for it sees it unfinished.
typedef struct slow {
  pthread_t caller;
  int entered, left, millis;
} slow;

static void slow_task(void *arg, int i) {
  slow *s = (slow *)arg;
  const int mine = pthread_equal(pthread_self(), s->caller);
  (void)i;
  if (!mine) __atomic_add_fetch(&s->entered, 1, __ATOMIC_SEQ_CST);
  for (int k = 0; mine && k < 2000 && __atomic_load_n(&s->entered, __ATOMIC_SEQ_CST) == 0; k++)
    poll(NULL, 0, 1);
  if (!mine && s->millis > 0) poll(NULL, 0, s->millis);
  if (!mine) __atomic_add_fetch(&s->left, 1, __ATOMIC_SEQ_CST);
}

static void test_join(void) {
  static const int millis[] = {0, 0, 1, 3, 30};  // the caller spins, or sleeps
  ein_cpu *cpu = cpu_of(NULL, 3);
  const ein_executor pool = ein_cpu_executor(cpu);
  int met = 0;
  for (int k = 0; k < 100; k++) {
    slow s = {pthread_self(), 0, 0, millis[k % 5]};
    pool.parallel_for(3, slow_task, &s, pool.user);
    const int left = __atomic_load_n(&s.left, __ATOMIC_SEQ_CST);
    CHECK(left == __atomic_load_n(&s.entered, __ATOMIC_SEQ_CST));
    met += left > 0;
    if (left != s.entered) poll(NULL, 0, 40);  // for those that were left behind
  }
  CHECK(met > 90);
  ein_cpu_destroy(cpu);
}

typedef struct user {
  ein_cpu *cpu;
  ein_ctx *ctx;
  int bad, *stop;
  product p;
} user;

// Makes contexts of its own from one pool, and uses them.
static void *use_pool(void *arg) {
  user *u = (user *)arg;
  for (int i = 0; i < 20; i++) {
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    memset(&desc, 0, sizeof desc);
    u->bad += ein_cpu_use(u->cpu, &desc) != EIN_OK || ein_ctx_create(&desc, &ctx) != EIN_OK;
    u->bad += ctx != NULL && multiply(&u->p, ctx, u->p.out) != EIN_OK;
    u->bad += memcmp(u->p.out, u->p.want, sizeof u->p.out) != 0;
    ein_ctx_destroy(ctx);
  }
  return NULL;
}

// Runs what was planned before.
static void *run_planned(void *arg) {
  user *u = (user *)arg;
  do {
    u->bad += multiply(&u->p, u->ctx, u->p.out) != EIN_OK;
    u->bad += memcmp(u->p.out, u->p.want, sizeof u->p.out) != 0;
  } while (!__atomic_load_n(u->stop, __ATOMIC_ACQUIRE));
  return NULL;
}

// Threads that run one plan at a time, and pack its constant operand together.
typedef struct weights {
  const ein_plan *plan;
  const float *in[2];
  float out[33 * 70];
  int bad, runs;
} weights;

static void *use_weights(void *arg) {
  weights *w = (weights *)arg;
  const void *const in[2] = {w->in[0], w->in[1]};
  void *out[1] = {w->out};
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in, run.out = out;
  for (int i = 0; i < w->runs; i++) w->bad += ein_plan_execute(w->plan, &run) != EIN_OK;
  return NULL;
}

// Plans it with every allocation failing once.
static void plan_short(ein_cpu *cpu, const ein_einsum_desc *d) {
  ein_status st = EIN_ERR_NO_MEMORY;
  for (long n = 0; st != EIN_OK && n < 10000; n++) {
    counter c = {0, 0, 0};
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    ein_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    c.fail_at = n;
    CHECK(ein_cpu_use(cpu, &desc) == EIN_OK);
    desc.allocator.alloc_fn = count_alloc, desc.allocator.free_fn = count_free;
    desc.allocator.user = &c;
    st = ein_ctx_create(&desc, &ctx);
    if (st == EIN_OK) st = ein_plan_create(ctx, d, &plan);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && plan == NULL));
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
    CHECK(c.live == 0);
  }
  CHECK(st == EIN_OK);
}

static void test_constant(void) {
  static float x[33 * 300], y[300 * 70], want[33 * 70];
  static weights w[3];
  const int64_t sx[2] = {33, 300}, sy[2] = {300, 70}, so[2] = {33, 70};
  ein_cpu *cpu = cpu_of(NULL, 3);
  ein_ctx *ctx = ctx_of(cpu, 0);
  ein_ztensor in[2], out;
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  ein_plan_info info;
  memset(in, 0, sizeof in);
  memset(&d, 0, sizeof d);
  for (int i = 0; i < 2; i++) in[i].dtype = EIN_F32, in[i].rank = 2;
  out = in[0];
  in[0].data = x, in[0].shape = sx, in[1].data = y, in[1].shape = sy;
  out.data = want, out.shape = so;
  d.expr = "ij,jk->ik", d.nin = 2, d.in = in, d.out = &out;
  static const char *const wrong[] = {"", "x2", "x", "x1,", ",x1", "x1,x3", "x11"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    d.options.constant = wrong[i];
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_ERR_NAME && plan == NULL);
    CHECK(strstr(ein_ctx_message(ctx), "constant") != NULL);
  }
  d.options.constant = "x1", d.options.memory = 1 << 20;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_ERR_UNSUPPORTED);
  d.options.memory = 0, d.options.variant = "gett direct";
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK && ein_plan_info_get(plan, &info) == EIN_OK);
  CHECK(info.kept_bytes >= sizeof y || cpu->machine.is.isa == EINI_ISA_PLAIN);
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);  // takes no notice
  plan_short(cpu, &d);
  for (int again = 0; again < 4; again++) {
    pthread_t t[3];
    fill(&in[0], 33 * 300), fill(&in[1], 300 * 70);
    CHECK(ein_einsum(NULL, "ij,jk->ik", 2, in, &out) == EIN_OK);
    ein_plan_changed(plan);
    for (int i = 0; i < 3; i++) {
      w[i].plan = plan, w[i].in[0] = x, w[i].in[1] = y, w[i].runs = 5;
      CHECK(pthread_create(&t[i], NULL, use_weights, &w[i]) == 0);
    }
    for (int i = 0; i < 3; i++) {
      CHECK(pthread_join(t[i], NULL) == 0 && w[i].bad == 0);
      CHECK(memcmp(w[i].out, want, sizeof want) == 0);
    }
  }
  fill(&in[1], 300 * 70);  // not told: what was packed before is read
  w[0].runs = 1;
  (void)use_weights(&w[0]);
  CHECK(w[0].bad == 0);
  CHECK(info.kept_bytes == 0 || memcmp(w[0].out, want, sizeof want) == 0);
  ein_plan_changed(plan);
  CHECK(ein_einsum(NULL, "ij,jk->ik", 2, in, &out) == EIN_OK);
  (void)use_weights(&w[0]);
  CHECK(memcmp(w[0].out, want, sizeof want) == 0);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
}

static void test_together(void) {
  static user u[3];
  int stop = 0;
  ein_cpu *cpu = cpu_of(NULL, 3);
  for (int planned = 0; planned < 2; planned++) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
      u[i].cpu = cpu, u[i].stop = &stop;
      CHECK(multiply(&u[i].p, NULL, u[i].p.want) == EIN_OK);
      u[i].ctx = ctx_of(cpu, 0);
      CHECK(multiply(&u[i].p, u[i].ctx, u[i].p.out) == EIN_OK);  // now its plan is kept
    }
    for (int i = 0; i < 3; i++)
      CHECK(pthread_create(&t[i], NULL, planned ? run_planned : use_pool, &u[i]) == 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) {
      CHECK(pthread_join(t[i], NULL) == 0 && u[i].bad == 0);
      ein_ctx_destroy(u[i].ctx);
    }
    stop = 0;
  }
  ein_cpu_destroy(cpu);
}
#endif  // EINI_CPU_THREADS

int main(int argc, char **argv) {
  const int64_t count = argc > 1 ? strtoll(argv[1], NULL, 10) : FEW(1000);
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const int64_t only = argc > 3 ? strtoll(argv[3], NULL, 10) : -1;
  static const char *const isas[] = {"plain", "neon", "avx2"};
  test_status();
  test_opened();
  test_past();
  test_rates(NULL, 0, count, seed, only);
  test_rates(NULL, 1, count / 4, seed + 1, only);
  test_rates(NULL, 3, count / 4, seed + 2, only);
  for (int i = 0; i < 3; i++) test_rates(isas[i], 3, count / 4, seed + 3, only);
  CHECK(count < 1000 || only >= 0 || parts_run > 0);
#if EINI_CPU_THREADS
  test_system();
  test_caches();
  test_join();
  test_constant();
  test_fork();
  test_together();
#endif
  printf("cpu_safe: %d checks, %d failed\n", checks, failures);
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
