// The pool of threads and its memory at many widths: who runs which part, what is counted, pages.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

// ---- huge pages ----

// Whether the mapping around an address asks for huge pages; -1: the system does not say.
static int asked_for_huge(const void *at) {
  char line[512];
  int inside = 0, asked = -1;
  FILE *f = fopen("/proc/self/smaps", "r");
  if (f == NULL) return -1;
  while (asked < 0 && fgets(line, sizeof line, f) != NULL) {
    unsigned long long from, to;
    if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
      inside = (uintptr_t)at >= from && (uintptr_t)at < to;
    else if (inside && strncmp(line, "VmFlags:", 8) == 0)
      asked = strstr(line, " hg") != NULL;
  }
  fclose(f);
  return asked;
}

static void test_huge_pages(void) {
  const size_t page = (size_t)2 << 20;
  static const size_t sizes[] = {1, 4096, 2097151, 2097152, 3000000, 9000000};
  for (int huge = 0; huge < 2; huge++)
    for (int own = 0; own < 2; own++) {
      counter of_cpu = {0, -1, 0}, of_ctx = {0, -1, 0};
      const ein_allocator al = {count_alloc, count_free, &of_cpu};
      ein_cpu_desc c;
      ein_ctx_desc d;
      ein_cpu *cpu;
      memset(&c, 0, sizeof c);
      memset(&d, 0, sizeof d);
      c.threads = 1;
      c.huge_pages = huge;
      if (own) {
        d.allocator.alloc_fn = count_alloc;
        d.allocator.free_fn = count_free;
        d.allocator.user = &of_ctx;
      }
      CHECK(ein_cpu_create(&c, &al, &cpu) == EIN_OK);
      CHECK(ein_cpu_use(cpu, &d) == EIN_OK);
      CHECK((d.allocator.user == &of_ctx) == own);
      CHECK((d.allocator.alloc_fn != NULL) == (huge || own));
      for (int i = 0; i < 6 && huge && !own; i++) {
        const long live = of_cpu.live;
        char *p = (char *)d.allocator.alloc_fn(sizes[i], 64, d.allocator.user);
        CHECK(p != NULL && of_cpu.live == live + 1);
        if (p == NULL) continue;
        memset(p, 7, sizes[i]);
        CHECK((uintptr_t)p % 64 == 0);
        if (sizes[i] >= page) CHECK((uintptr_t)p % page == 0);
        const int asked = asked_for_huge(p);
        if (asked < 0) printf("  pages: the system does not say\n");
        else CHECK(asked == (sizes[i] >= page));
        d.allocator.free_fn(p, sizes[i], d.allocator.user);
        CHECK(of_cpu.live == live);
        of_cpu.fail_at = of_cpu.calls;
        CHECK(d.allocator.alloc_fn(sizes[i], 64, d.allocator.user) == NULL);
        CHECK(of_cpu.live == live);
      }
      if (huge && !own) CHECK(d.allocator.alloc_fn(SIZE_MAX - 5, 64, d.allocator.user) == NULL);
      ein_cpu_destroy(cpu);
      CHECK(of_cpu.live == 0 && of_ctx.live == 0);
    }
}

// ---- the pool ----

enum { MOST = 64 };

typedef struct seen {
  int hits[4096];
  pthread_t first[MOST];       // who ran part i
} seen;

static void note(void *arg, int i) {
  seen *s = (seen *)arg;
  __atomic_fetch_add(&s->hits[i], 1, __ATOMIC_RELAXED);
  if (i < MOST) s->first[i] = pthread_self();
}

// Every part runs once, whatever the number of threads and parts, also where a job's number begins
// anew; what is counted adds up, and the caller wakes few.
static void test_jobs(void) {
  static seen s;
  for (int width = 1; width <= MOST; width = width < 8 ? width + 1 : width * 2) {
    ein_cpu_desc c;
    ein_cpu *cpu;
    ein_cpu_counts n;
    int64_t jobs = 0, parts = 0;
    memset(&c, 0, sizeof c);
    c.threads = width;
    CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK);
    const ein_executor e = ein_cpu_executor(cpu);
    for (int r = 0; r < FEW(200); r++) {
      const int most = (int)draw(0, r % 10 == 0 ? 4096 : 2 * width);
      int good = 1;
      if (r % 50 == 49) cpu->pool.serial = UINT32_MAX - (uint32_t)draw(0, 2);
      if (r % 20 == 7) for (volatile int i = 0; i < 300000; i++) continue;  // threads fall asleep
      memset(s.hits, 0, sizeof s.hits);
      e.parallel_for(most, note, &s, e.user);
      for (int i = 0; i < 4096; i++) good &= s.hits[i] == (i < most);
      CHECK(good);
      if (most > 1 && e.width > 1) jobs++, parts += most;
    }
    ein_cpu_counts_get(cpu, &n);
    CHECK(n.jobs == jobs && n.parts == parts);
    CHECK(n.moved >= 0 && n.moved <= n.parts);
    CHECK(cpu->pool.lane[0].wakes <= EINI_POOL_FAN * n.jobs);
    CHECK(n.wakes <= (width - 1) * n.jobs);
    printf("  %d threads: %lld jobs, %lld parts, %lld moved, %lld wakes\n", e.width,
           (long long)n.jobs, (long long)n.parts, (long long)n.moved, (long long)n.wakes);
    ein_cpu_destroy(cpu);
  }
  ein_cpu_counts_get(NULL, NULL);
}

// Two parts that wait for each other's beginning keep their threads from job to job.
typedef struct pair { int begun[2]; pthread_t who[2]; } pair;

static void meet(void *arg, int i) {
  pair *p = (pair *)arg;
  __atomic_store_n(&p->begun[i], 1, __ATOMIC_SEQ_CST);
  for (int k = 0; k < 100000 && !__atomic_load_n(&p->begun[!i], __ATOMIC_SEQ_CST); k++)
    sched_yield();
  p->who[i] = pthread_self();
}

static void test_stay(void) {
  ein_cpu_desc c;
  ein_cpu *cpu;
  ein_cpu_counts n;
  pthread_t last = pthread_self();
  memset(&c, 0, sizeof c);
  c.threads = 4;
  CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK);
  const ein_executor e = ein_cpu_executor(cpu);
  for (int r = 0; r < 100 && e.width == 4; r++) {
    pair p;
    memset(&p, 0, sizeof p);
    e.parallel_for(2, meet, &p, e.user);
    if (!p.begun[0] || !p.begun[1]) continue;
    CHECK(pthread_equal(p.who[0], pthread_self()));
    if (r > 0 && !pthread_equal(p.who[1], pthread_self()))
      CHECK(r == 1 || pthread_equal(last, pthread_self()) || pthread_equal(p.who[1], last));
    last = p.who[1];
  }
  ein_cpu_counts_get(cpu, &n);
  CHECK(n.moved <= 10);  // only where a thread came so late that a part gave up waiting
  ein_cpu_destroy(cpu);
}

// ---- packed blocks ----

// Bytes that products pack, one run, at a width; -1: no plan. Results are those of one thread's
// sums: small whole numbers, which every order adds up to the same.
static int64_t packed_bytes(int width, const char *expr, const int64_t *shape, int64_t *jobs) {
  const int64_t m = shape[0], k = shape[1], n = shape[2];
  const int64_t a[2] = {m, k}, b[2] = {k, n}, o[2] = {m, n};
  ein_cpu_desc c;
  ein_ctx_desc d;
  ein_cpu *cpu;
  ein_ctx *ctx;
  ein_cpu_counts before, after;
  double *x = (double *)malloc((size_t)(m * k + k * n + m * n) * sizeof *x);
  memset(&c, 0, sizeof c);
  memset(&d, 0, sizeof d);
  c.threads = width;
  for (int64_t i = 0; i < m * k + k * n; i++) x[i] = (double)(i * 7 % 11 - 5);
  ein_ztensor v[3] = {ein_tensor(EIN_F64, 2, a, x), ein_tensor(EIN_F64, 2, b, x + m * k),
                      ein_tensor(EIN_F64, 2, o, x + m * k + k * n)};
  CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &d) == EIN_OK);
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  CHECK(ein_cpu_counts_of(ctx, &before) == 1 && before.packed == 0);
  ein_einsum_desc e;
  memset(&e, 0, sizeof e);
  e.expr = expr;
  e.nin = 2;
  e.in = v;
  e.out = &v[2];
  e.options.variant = "cpu:gett direct";
  CHECK(ein_einsum_ex(ctx, &e) == EIN_OK);
  CHECK(ein_cpu_counts_of(ctx, &before) == 1);
  int good = 1;
  for (int r = 0; r < 5; r++) {
    memset(v[2].data, 0, (size_t)(m * n) * sizeof *x);
    CHECK(ein_einsum_ex(ctx, &e) == EIN_OK);
    for (int t = 0; t < 200; t++) {
      const int64_t i = draw(0, m - 1), j = draw(0, n - 1);
      double sum = 0;
      for (int64_t q = 0; q < k; q++) sum += x[i * k + q] * x[m * k + q * n + j];
      good &= x[m * k + k * n + i * n + j] == sum;
    }
  }
  CHECK(good);
  CHECK(ein_cpu_counts_of(ctx, &after) == 1);
  *jobs = after.jobs - before.jobs;
  CHECK(*jobs % 5 == 0 && (after.packed - before.packed) % 5 == 0);
  *jobs /= 5;
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  free(x);
  return (after.packed - before.packed) / 5;
}

// Each element of both operands is packed once, however many threads there are; a product is one
// job, so one barrier.
static void test_packed(void) {
  static const int64_t shapes[][3] = {{320, 160, 320}, {1000, 64, 48}, {64, 200, 900}};
  for (int s = 0; s < 3; s++) {
    const int64_t *x = shapes[s];
    const int64_t once = 8 * (x[0] * x[1] + x[1] * x[2]);
    for (int width = 1; width <= MOST; width *= 2) {
      int64_t jobs;
      const int64_t bytes = packed_bytes(width, "ij,jk->ik", x, &jobs);
      printf("  %d x %d x %d, %2d threads: %lld bytes packed (%.2f of the operands), %lld jobs\n",
             (int)x[0], (int)x[1], (int)x[2], width, (long long)bytes,
             (double)bytes / (double)once, (long long)jobs);
      CHECK(jobs == (width > 1));
      CHECK(bytes > 0 && (double)bytes <= 1.5 * (double)once);  // vectors and lines are filled up
    }
  }
}

// ---- shared blocks against each thread's own, to the bit ----

typedef struct between { const ein_kernels *own; int alone; long shared; } between;

static int between_plan(void *user, const ein_contract *c, int width, int nth,
                        ein_choice *choice) {
  const ein_kernels *own = ((between *)user)->own;
  return own->contract_plan(own->user, c, width, nth, choice);
}

static ein_status between_run(void *user, const ein_contract *c, const ein_choice *choice,
                              const ein_part *part, void *scratch) {
  between *b = (between *)user;
  ein_contract own = *c;
  if (b->alone) own.shared = NULL;
  if (own.shared != NULL) __atomic_fetch_add(&b->shared, 1, __ATOMIC_RELAXED);
  return b->own->contract_run(b->own->user, &own, choice, part, scratch);
}

static void random_values(ein_dtype t, char *to, size_t bytes) {
  for (size_t i = 0; i < bytes / 4 && (t == EIN_F32 || t == EIN_C64 || t == EIN_I32); i++)
    if (t == EIN_I32) ((int32_t *)(void *)to)[i] = (int32_t)draw(-99, 99);
    else ((float *)(void *)to)[i] = (float)draw(-999, 999) / 97;
  for (size_t i = 0; i < bytes / 8 && (t == EIN_F64 || t == EIN_C128); i++)
    ((double *)(void *)to)[i] = (double)draw(-999, 999) / 97;
}

static void test_same(int trials) {
  static const char *const forms[] = {"ij,jk->ik", "ij,jk->ki", "ji,jk->ik", "abk,kc->acb",
                                      "kab,kcd->cadb", "ijk,kl->jil", "ij,j,jk->ik"};
  static const ein_dtype types[] = {EIN_F64, EIN_F32, EIN_C128, EIN_I32, EIN_C64};
  static const char *const ways[] = {"cpu:gett direct", "cpu:gett buffer", "cpu:gett keep",
                                     "cpu:gett buffer turned", "cpu:gett keep turned"};
  long shared = 0;
  for (int at = 0; at < trials; at++) {
    const uint64_t seed = rng_state;
    const int f = (int)draw(0, 6), was = failures, width = (int)draw(2, 9);
    const ein_dtype type = types[draw(0, 4)];
    int64_t extent[128], shape[4][4];
    char *data[5] = {NULL, NULL, NULL, NULL, NULL};
    size_t bytes[5];
    ein_ztensor v[4];
    ein_einsum_desc d;
    ein_cpu_desc c;
    ein_ctx_desc cd;
    ein_cpu *cpu;
    ein_ctx *ctx;
    ein_kernels k;
    between b;
    memset(&d, 0, sizeof d);
    memset(&c, 0, sizeof c);
    memset(&cd, 0, sizeof cd);
    memset(&k, 0, sizeof k);
    memset(&b, 0, sizeof b);
    c.threads = width;
    CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &cd) == EIN_OK);
    b.own = ein_cpu_kernels(cpu);
    k.name = "cpu";
    k.user = &b;
    k.contract_plan = between_plan;
    k.contract_run = between_run;
    k.rates = b.own->rates;
    cd.use[0] = &k;
    CHECK(ein_ctx_create(&cd, &ctx) == EIN_OK);
    const int many = strlen(forms[f]) > 9;
    for (int l = 'a'; l <= 'z'; l++) extent[l] = many ? draw(3, 24) : draw(20, 90);
    extent['k'] = extent['j'] = chance(30) ? draw(200, 900) : draw(8, 60);
    if (forms[f][0] == 'i' && forms[f][2] == 'k') extent['i'] = extent['j'] = draw(5, 12);
    int n = 0, rank = 0;
    for (const char *s = forms[f];; s++) {
      if (*s >= 'a' && *s <= 'z') {
        shape[n][rank++] = extent[(int)*s];
        continue;
      }
      size_t all = ein_dtype_size(type);
      for (int r = 0; r < rank; r++) all *= (size_t)shape[n][r];
      bytes[n] = all;
      data[n] = (char *)malloc(all);
      random_values(type, data[n], all);
      v[n] = ein_tensor(type, rank, shape[n], data[n]);
      n++, rank = 0;
      if (*s == 0) break;
      if (*s == '-') s++;
    }
    d.expr = forms[f];
    d.nin = n - 1;
    d.in = v;
    d.out = &v[n - 1];
    if (n == 4) d.options.path = "none";
    if (chance(30)) d.alpha.set = 1, d.alpha.re = 3;
    ein_status st = EIN_ERR_ARGUMENT;
    for (int64_t w = draw(0, 4), end = w + 5; w < end && st != EIN_OK; w++) {  // not all have each
      d.options.variant = ways[w % 5];
      st = ein_einsum_ex(ctx, &d);
    }
    CHECK(st == EIN_OK);
    data[n] = (char *)malloc(bytes[n - 1]);
    memcpy(data[n], data[n - 1], bytes[n - 1]);
    shared += b.shared > 0;
    for (int alone = 1; alone >= 0 && st == EIN_OK; alone--) {
      b.alone = alone;
      memset(data[n - 1], 9, bytes[n - 1]);
      CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
      CHECK(memcmp(data[n], data[n - 1], bytes[n - 1]) == 0);
    }
    if (failures > was)
      printf("  %s, %s, %s, %d threads, seed %llu: %s\n", d.expr, ein_dtype_name(type),
             d.options.variant, width, (unsigned long long)seed, ein_ctx_message(ctx));
    for (int i = 0; i <= n; i++) free(data[i]);
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  printf("  %ld of %d products shared blocks\n", shared, trials);
  CHECK(shared * 10 >= trials);
}

// ---- tasks that do not depend on each other ----

static double no_clock(void *user) { return *(double *)user += 1; }

// Random programs of products, sums and maps of earlier tensors, in waves and one task after
// another, which a run does that is timed: the same bits, no more jobs.
static void test_waves(int trials) {
  enum { INPUTS = 3, LINES = 12, N = 48 };
  static const char *const rhs[] = {"sum[j](%s[i,j] * %s[j,k])", "%s[k,i] + 2 * %s[i,k]",
                                    "exp(%s[i,k] - %s[k,i])", "sum[j](%s[j,i] * %s[k,j])"};
  int64_t saved = 0;
  for (int at = 0; at < trials; at++) {
    const uint64_t seed = rng_state;
    const int was = failures, width = (int)draw(2, 9);
    char text[4096], *to = text;
    double clock = 0, seconds[64];
    const void *in[INPUTS];
    void *out[LINES];
    ein_cpu_desc c;
    ein_ctx_desc d;
    ein_cpu *cpu;
    ein_ctx *ctx;
    ein_program_desc pd;
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    ein_plan_info info;
    ein_run run;
    memset(&c, 0, sizeof c);
    memset(&d, 0, sizeof d);
    memset(&pd, 0, sizeof pd);
    memset(&run, 0, sizeof run);
    c.threads = width;
    CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &d) == EIN_OK);
    d.now_fn = no_clock;
    d.now_user = &clock;
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    to += sprintf(to, "input T0[%d,%d], T1[%d,%d], T2[%d,%d]\n", N, N, N, N, N, N);
    const int lines = (int)draw(2, LINES);
    for (int i = 0; i < lines; i++) {
      char a[16], b[16];
      sprintf(a, "T%d", (int)draw(chance(50) ? 0 : i, INPUTS + i - 1));
      sprintf(b, "T%d", (int)draw(0, chance(50) ? INPUTS - 1 : INPUTS + i - 1));
      to += sprintf(to, "T%d[i,k] = ", INPUTS + i);
      to += sprintf(to, rhs[draw(0, 3)], a, b);
      to += sprintf(to, " / 50\n");
    }
    for (int i = 0; i < lines; i++)
      if (i + 1 == lines || chance(40)) to += sprintf(to, "output T%d\n", INPUTS + i);
    pd.text = text;
    CHECK(ein_graph_parse(ctx, &pd, &g) == EIN_OK);
    CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
    if (plan == NULL) printf("%s%s\n", text, ein_ctx_message(ctx));
    CHECK(ein_plan_info_get(plan, &info) == EIN_OK && info.ntask <= 64);
    const size_t bytes = N * N * sizeof(double);
    char *data = (char *)malloc((size_t)(info.nin + 2 * info.nout) * bytes);
    random_values(EIN_F64, data, (size_t)info.nin * bytes);
    for (int i = 0; i < info.nin; i++) in[i] = data + (size_t)i * bytes;
    run.in = in;
    run.out = out;
    run.workspace_bytes = ein_plan_workspace(plan);
    run.workspace = malloc(run.workspace_bytes);
    int64_t jobs[2];
    for (int timed = 0; timed < 2; timed++) {
      ein_cpu_counts before, after;
      for (int i = 0; i < info.nout; i++)
        out[i] = data + (size_t)(info.nin + timed * info.nout + i) * bytes;
      run.seconds = timed ? seconds : NULL;
      ein_cpu_counts_get(cpu, &before);
      CHECK(ein_plan_execute(plan, &run) == EIN_OK);
      ein_cpu_counts_get(cpu, &after);
      jobs[timed] = after.jobs - before.jobs;
    }
    const char *first = data + (size_t)info.nin * bytes;
    CHECK(memcmp(first, first + (size_t)info.nout * bytes, (size_t)info.nout * bytes) == 0);
    CHECK(jobs[0] <= jobs[1]);
    saved += jobs[1] - jobs[0];
    if (failures > was)
      printf("  seed %llu, %d threads\n%s", (unsigned long long)seed, width, text);
    free(data);
    free(run.workspace);
    ein_plan_destroy(plan);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  printf("  waves: %.2f barriers less in a program\n", (double)saved / trials);
  CHECK(saved * 5 > trials);
}

// ---- bandwidth that threads share ----

// Jobs of one run of a statement that memory limits, where two threads have `times` the bandwidth
// of one, and what it was predicted to take.
static int64_t jobs_with(const char *expr, double times, int threads, double *seconds) {
  const int64_t shape[2] = {1500, 1500};
  const size_t bytes = 1500 * 1500 * sizeof(double);
  char *data = (char *)calloc(2, bytes);
  ein_cpu_desc c;
  ein_ctx_desc d;
  ein_cpu *cpu;
  ein_ctx *ctx;
  ein_cpu_counts n;
  ein_einsum_desc e;
  ein_plan *plan = NULL;
  ein_plan_info info;
  ein_run run;
  const void *in[1] = {data};
  void *out[1] = {data + bytes};
  memset(&c, 0, sizeof c);
  memset(&d, 0, sizeof d);
  memset(&e, 0, sizeof e);
  memset(&run, 0, sizeof run);
  c.threads = threads;
  CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &d) == EIN_OK);
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  ein_rates r = ein_ctx_rates_get(ctx);
  r.machine[0] = 0;
  r.threads = threads;
  r.start = 1e-6;
  for (int l = 0; l < EIN_MEMORY_LEVELS; l++)
    r.all_read_bw[l] = times * r.read_bw[l], r.all_copy_bw[l] = times * r.copy_bw[l];
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
  const ein_ztensor v[2] = {ein_tensor(EIN_F64, 2, shape, NULL),
                            ein_tensor(EIN_F64, strchr(expr, '>')[2] ? 2 : 1, shape, NULL)};
  e.expr = expr;
  e.nin = 1;
  e.in = v;
  e.out = &v[1];
  CHECK(ein_plan_create(ctx, &e, &plan) == EIN_OK);
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
  *seconds = info.seconds;
  run.in = in;
  run.out = out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  ein_cpu_counts_get(cpu, &n);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  free(data);
  return n.jobs;
}

static void test_bandwidth(void) {
  static const char *const exprs[] = {"ij->ji", "ij->j", "ij->i"};
  for (int i = 0; i < 3; i++) {
    double one, same, twice;
    CHECK(jobs_with(exprs[i], 1, 1, &one) == 0);
    const int64_t none = jobs_with(exprs[i], 1, 2, &same);
    const int64_t some = jobs_with(exprs[i], 2, 2, &twice);
    printf("  %s: %.0f us by one thread, %.0f by two with its bandwidth, %.0f with twice\n",
           exprs[i], 1e6 * one, 1e6 * same, 1e6 * twice);
    CHECK(none == 0 && some == 1);
    CHECK(same >= 0.99 * one && twice < 0.8 * one);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) rng_state = strtoull(argv[1], NULL, 10);
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_huge_pages();
  test_jobs();
  test_stay();
  test_packed();
  test_same(FEW(120));
  test_waves(FEW(150));
  test_bandwidth();
  if (failures == 0) printf("ok %d checks\n", checks);
  return failures > 0;
}
