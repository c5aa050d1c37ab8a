// Rates: measured, as text, and what they change.
//
//   test_rates [seed] [count]     defaults: 1 and 3000 texts
//
// Texts are printed, read, cut short, damaged. Rates far from any machine's change predictions and
// choices, never results, and nothing of deterministic plans. Prints "ok" and exits 0.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "check.h"
#include "util.h"

#include <stdlib.h>
#include <time.h>

static double now(void *user) {
  (void)user;
  return (double)clock() / CLOCKS_PER_SEC;
}

static double stopped(void *user) {
  (void)user;
  return 1;
}

static int warnings;

static void count_warnings(ein_level level, const char *message, void *user) {
  (void)user;
  warnings += level == EIN_LOG_WARNING && strstr(message, "bandwidth_of_pluto") != NULL;
}

// A ctx without backends, or of two threads with that of the processor.
static ein_ctx *open_ctx(ein_cpu *cpu, const ein_allocator *al, double (*now_fn)(void *user)) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  d.now_fn = now_fn;
  d.logger.log_fn = count_warnings;
  if (al != NULL) d.allocator = *al;
  if (cpu != NULL) CHECK(ein_cpu_use(cpu, &d) == EIN_OK);
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  return ctx;
}

// Any rates that are valid.
static ein_rates draw_rates(void) {
  ein_rates r;
  memset(&r, 0, sizeof r);
  for (int i = 0; i < EINI_RATE_FIELDS; i++) {
    const eini_rate_field *f = &eini_rate_fields[i];
    for (int k = 0; k < f->n; k++) {
      const double low = log(f->least * 1.01), high = log(f->most * 0.99);
      eini_rate_at(&r, f)[k] = exp(low + (high - low) * (double)draw(0, 1000) / 1000);
    }
  }
  r.threads = (int)draw(1, 64);
  return r;
}

static int same_rates(const ein_rates *a, const ein_rates *b) {
  static char x[4096], y[4096];
  const size_t n = ein_rates_print(a, x, sizeof x), m = ein_rates_print(b, y, sizeof y);
  return n == m && n < sizeof x && memcmp(x, y, n + 1) == 0;
}

// ---- text ----

static void test_text(ein_ctx *ctx) {
  char text[4096], small[20];
  ein_rates r = draw_rates(), back, kept = draw_rates();
  snprintf(r.machine, sizeof r.machine, "made up, %d cores", 3);
  const size_t n = ein_rates_print(&r, text, sizeof text);
  CHECK(n == strlen(text) && ein_rates_print(&r, NULL, 0) == n);
  CHECK(ein_rates_print(&r, small, sizeof small) == n && memcmp(small, text, 19) == 0);
  CHECK(ein_rates_parse(ctx, text, &back) == EIN_OK && same_rates(&r, &back));
  CHECK(strcmp(r.machine, back.machine) == 0 && back.threads == r.threads);
  CHECK(ein_rates_parse(NULL, text, &back) == EIN_OK);
  back = kept;
  for (size_t i = 0; i + 1 < n; i++) {  // cut short anywhere: an error, never half of it
    const char save = text[i];
    text[i] = 0;
    CHECK(ein_rates_parse(i % 2 ? ctx : NULL, text, &back) == EIN_ERR_SYNTAX);
    CHECK(same_rates(&back, &kept));
    text[i] = save;
  }
  CHECK(ein_rates_parse(ctx, NULL, &back) == EIN_ERR_ARGUMENT);
  CHECK(ein_rates_parse(ctx, text, NULL) == EIN_ERR_ARGUMENT);
  // What providers have by table can be printed and read, too.
  ein_rates table;
  memset(&table, 0, sizeof table);
  table.flops_f64 = table.flops_f32 = table.read_bw[EIN_MEMORY] = table.copy_bw[EIN_MEMORY] = 1e9;
  table.fast_bytes = 1e6;
  ein_rates_print(&table, text, sizeof text);
  CHECK(ein_rates_parse(ctx, text, &back) == EIN_OK && same_rates(&table, &back));
  CHECK(back.call <= 0 && back.gemm_f64[0] <= 0);
}

// The text with `with` for the line that begins with `name`, which may be "".
static void with_line(const char *text, const char *name, const char *with, char *out) {
  const size_t n = strlen(name);
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
    const size_t length = strcspn(line, "\n") + 1;
    const int it = strncmp(line, name, n) == 0 && line[n] == ' ';
    out += sprintf(out, "%.*s", it ? 0 : (int)length, line);
    if (it) out += sprintf(out, "%s", with);
  }
}

static void refused(ein_ctx *ctx, const char *text, int line, const char *why) {
  ein_rates r, kept = draw_rates();
  r = kept;
  CHECK(ein_rates_parse(ctx, text, &r) == EIN_ERR_SYNTAX && same_rates(&r, &kept));
  const ein_error *e = ein_ctx_error(ctx, 0);
  const int said = e != NULL && (line == 0 || e->line == line) && strstr(e->message, why) != NULL;
  CHECK(said);
  if (!said) printf("%d: %s: %s\n", line, why, ein_ctx_message(ctx));
}

static void test_refused(ein_ctx *ctx) {
  static char text[4096], other[8192];
  static const char *const wrong[][3] = {
      {"flops_f64", "flops_f64 0\n", "no rate is zero"},
      {"flops_f64", "flops_f64 1\n", "no machine"},
      {"flops_f64", "flops_f64 999999999999999999\n", "no machine"},
      {"flops_f64", "flops_f64 99999999999999999999999\n", "whole number"},
      {"flops_f64", "flops_f64 -5000000\n", "whole number"},
      {"flops_f64", "flops_f64 1e9\n", "whole number"},
      {"flops_f64", "flops_f64 nan\n", "whole number"},
      {"flops_f64", "flops_f64 inf\n", "whole number"},
      {"flops_f64", "flops_f64\n", "whole number"},
      {"flops_f64", "flops_f64 50000000 7\n", "goes on"},
      {"flops_f64", "flops_f64 50000000\nflops_f64 50000000\n", "twice"},
      {"flops_f64", "", "missing: flops_f64"},
      {"copy_bw", "copy_bw 50000 50000 0 50000\n", "no rate is zero"},
      {"copy_bw", "copy_bw 50000 50000 50000\n", "whole number"},
      {"call_ps", "call_ps 0\n", "no rate is zero"},
      {"call_ps", "call_ps 999999999999999\n", "no machine"},
      {"threads", "threads 0\n", "threads are"}, {"threads", "threads 3 4\n", "threads are"},
      {"machine", "machine\n", "a name"}};
  ein_rates r = draw_rates();
  strcpy(r.machine, "m");
  ein_rates_print(&r, text, sizeof text);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    int line = 1;
    const char *at = strstr(text, wrong[i][0]);
    for (const char *c = text; c < at; c++) line += *c == '\n';
    with_line(text, wrong[i][0], wrong[i][1], other);
    if (strstr(wrong[i][2], "twice") != NULL) line++;
    refused(ctx, other, wrong[i][1][0] == 0 ? 0 : line, wrong[i][2]);
  }
  sprintf(other, "machine %0200d\n", 7);
  with_line(text, "machine", other, other + 1000);
  refused(ctx, other + 1000, 2, "95 bytes");
  refused(ctx, "", 1, "empty");
  refused(ctx, "einsum rates 2\nend\n", 1, "first line");
  refused(ctx, "einsum rates 10\nend\n", 1, "first line");
  refused(ctx, "einsum rates 1\nend\n", 0, "missing");
  // Lines of other names are skipped, ends of lines may be those of other systems.
  warnings = 0;
  with_line(text, "threads", "bandwidth_of_pluto 12\nthreads 5\n", other);
  ein_rates back;
  CHECK(ein_rates_parse(ctx, other, &back) == EIN_OK && back.threads == 5 && warnings == 1);
  char *to = other;
  for (const char *c = text; *c; c++) {
    if (*c == '\n') *to++ = '\r';
    *to++ = *c;
  }
  *to = 0;
  CHECK(ein_rates_parse(ctx, other, &back) == EIN_OK && same_rates(&back, &r));
}

// Texts that were damaged are refused, or are rates.
static void test_damaged(ein_ctx *ctx, int64_t count) {
  char text[4096];
  int64_t taken = 0;
  for (int64_t i = 0; i < count; i++) {
    ein_rates r = draw_rates(), back;
    const int64_t n = (int64_t)ein_rates_print(&r, text, sizeof text);
    for (int64_t k = draw(1, 4); k > 0; k--) {
      const int64_t at = draw(0, n - 1);
      if (draw(0, 1)) text[at] = (char)draw(1, 255);
      else text[at] = "0 \n9e-"[draw(0, 5)];
    }
    if (ein_rates_parse(ctx, text, &back) != EIN_OK) continue;
    taken++;
    back.machine[0] = 0;
    CHECK(ein_ctx_rates(ctx, &back) == EIN_OK);
  }
  CHECK(taken > 0 && taken < count);
  CHECK(ein_ctx_rates(ctx, NULL) == EIN_OK);
}

// ---- of a ctx ----

static void test_given(ein_cpu *cpu) {
  ein_ctx *ctx = open_ctx(cpu, NULL, NULL), *bare = open_ctx(NULL, NULL, NULL);
  ein_rates table = ein_ctx_rates_get(ctx), r = table, none = ein_ctx_rates_get(bare);
  CHECK(table.copy_bw[EIN_MEMORY] > 0 && table.call <= 0 && none.copy_bw[EIN_MEMORY] <= 0);
  CHECK(ein_ctx_rates(NULL, &r) == EIN_ERR_ARGUMENT);
  strcpy(r.machine, ein_cpu_kernels(cpu)->machine);
  CHECK(strlen(r.machine) > 10 && ein_ctx_rates(ctx, &r) == EIN_OK);
  CHECK(ein_ctx_rates(bare, &r) == EIN_ERR_UNSUPPORTED);
  strcpy(r.machine, "another");
  CHECK(ein_ctx_rates(ctx, &r) == EIN_ERR_UNSUPPORTED);
  CHECK(strstr(ein_ctx_message(ctx), "'another'") != NULL);
  memset(r.machine, 'x', sizeof r.machine);
  CHECK(ein_ctx_rates(ctx, &r) == EIN_ERR_ARGUMENT);
  r.machine[0] = 0;
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
  for (int i = 0; i < EINI_RATE_FIELDS; i++) {
    const eini_rate_field *f = &eini_rate_fields[i];
    const double bad[] = {-1, f->least / 2, f->most * 2, HUGE_VAL, -HUGE_VAL, NAN, 0};
    for (int k = 0; k < 7; k++) {
      ein_rates other = draw_rates();
      eini_rate_at(&other, f)[f->n - 1] = bad[k];
      const int fits = k == 6 && f->needed != 1 && f->n != EIN_GEMMS;
      CHECK(ein_ctx_rates(ctx, &other) == (fits ? EIN_OK : EIN_ERR_ARGUMENT));
    }
  }
  // Of two threads each has half of what both have, where that is less.
  r = draw_rates();
  r.read_bw[EIN_MEMORY] = 1e10, r.all_read_bw[EIN_MEMORY] = 1.5e10;
  r.copy_bw[EIN_MEMORY] = 1e10, r.all_copy_bw[EIN_MEMORY] = 3e10;
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK && fabs(ctx->rates.read_bw[EIN_MEMORY] - 7.5e9) < 1);
  CHECK(fabs(ctx->rates.copy_bw[EIN_MEMORY] - 1e10) < 1);
  const ein_rates got = ein_ctx_rates_get(ctx);
  CHECK(same_rates(&got, &r) && ein_ctx_rates(ctx, NULL) == EIN_OK);
  const ein_rates again = ein_ctx_rates_get(ctx);
  CHECK(same_rates(&again, &table));
  ein_ctx_destroy(ctx);
  ein_ctx_destroy(bare);
}

// ---- what they change ----

static size_t plan_text(ein_ctx *ctx, int deterministic, const char *expr, int64_t extent,
                        ein_plan **keep, char *text, size_t size, double *seconds) {
  int64_t shape[2] = {extent, extent};
  ein_ztensor in[3], out = ein_tensor(EIN_F64, 2, shape, NULL);
  ein_einsum_desc d;
  ein_plan_info info;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  for (int i = 0; i < 3; i++) in[i] = out;
  d.expr = expr, d.nin = 3, d.in = in, d.out = &out;
  d.options.deterministic = deterministic;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  if (plan == NULL) return 0;
  CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
  *seconds = info.seconds;
  const size_t n = ein_plan_explain(plan, text, size);
  if (keep != NULL) *keep = plan;
  else ein_plan_destroy(plan);
  return n;
}

// Small whole numbers: every order of adding gives the same bits.
static void run_plan(const ein_plan *plan, int64_t extent, double *y) {
  static double x[3][64 * 64];
  const void *in[3];
  void *out[1] = {y};
  ein_run run;
  memset(&run, 0, sizeof run);
  for (int k = 0; k < 3; k++) {
    for (int64_t i = 0; i < extent * extent; i++) x[k][i] = (double)((i * 7 + k) % 5 - 2);
    in[k] = x[k];
  }
  run.in = in, run.out = out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
}

static void test_choices(ein_cpu *cpu, int64_t count) {
  static const char *const expr[] = {"ij,jk,kl->il", "ij,kj,il->kl", "ij,ik,il->jk",
                                     "ij,ij,jk->ki"};
  static double first[4][64 * 64], y[64 * 64];
  static char before[1 << 14], after[1 << 14], ordered[1 << 14];
  ein_ctx *ctx = open_ctx(cpu, NULL, NULL), *plain = open_ctx(cpu, NULL, NULL);
  double seconds, was, det;
  int differ = 0, faster = 0;
  for (int64_t i = 0; i < count; i++) {
    const int e = (int)(i % 4);
    const int64_t extent = e % 2 ? 48 : 64;
    const ein_rates r = draw_rates();
    ein_plan *plan = NULL;
    plan_text(plain, 0, expr[e], extent, i < 4 ? &plan : NULL, before, sizeof before, &was);
    if (i < 4) run_plan(plan, extent, first[e]);
    ein_plan_destroy(plan);
    plan_text(plain, 1, expr[e], extent, NULL, ordered, sizeof ordered, &det);
    CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
    plan_text(ctx, 1, expr[e], extent, NULL, after, sizeof after, &seconds);
    CHECK(strcmp(ordered, after) == 0 && seconds >= det && seconds <= det);
    plan_text(ctx, 0, expr[e], extent, &plan, after, sizeof after, &seconds);
    CHECK(seconds > 0 && seconds < 1e30);
    differ += strcmp(before, after) != 0, faster += seconds < was;
    memset(y, 0, sizeof y);
    ein_ctx_rates(ctx, NULL);  // a plan runs as it was made
    run_plan(plan, extent, y);
    ein_plan_destroy(plan);
    CHECK(memcmp(y, first[e], (size_t)(extent * extent) * sizeof *y) == 0);
    plan_text(ctx, 0, expr[e], extent, NULL, after, sizeof after, &seconds);
    CHECK(strcmp(before, after) == 0);
  }
  CHECK(differ > count / 2 && faster > 0 && faster < count);
  ein_ctx_destroy(ctx);
  ein_ctx_destroy(plain);
}

// Rates below those of the table give no task to portable kernels that they did not have.
static void test_slower(ein_cpu *cpu, int64_t count) {
  static const char *const expr[] = {"ijk,kji->", "ijk,kj->i", "ijk,kl->jil", "kij,kjl->il"};
  static char text[1 << 14];
  ein_ctx *ctx = open_ctx(cpu, NULL, NULL), *plain = open_ctx(cpu, NULL, NULL);
  int portable = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t e = draw(2, 96), shape[3] = {e, e, e};
    const char *s = expr[i % 4], *comma = strchr(s, ','), *arrow = strchr(s, '-');
    const ein_ztensor in[2] = {ein_tensor(EIN_F64, (int)(comma - s), shape, NULL),
                               ein_tensor(EIN_F64, (int)(arrow - comma - 1), shape, NULL)};
    const ein_ztensor out = ein_tensor(EIN_F64, (int)strlen(arrow + 2), shape, NULL);
    ein_rates r = ein_ctx_rates_get(plain);
    for (int l = 0; l < EIN_MEMORY_LEVELS; l++) {
      r.read_bw[l] *= (double)draw(10, 100) / 100;
      r.copy_bw[l] *= (double)draw(10, 100) / 100;
    }
    r.flops_f64 *= (double)draw(10, 100) / 100, r.hz *= (double)draw(10, 100) / 100;
    CHECK(ein_ctx_rates(ctx, &r) == EIN_OK);
    int first[2] = {0, 0};
    for (int w = 0; w < 2; w++) {
      ein_einsum_desc d;
      ein_plan *plan = NULL;
      memset(&d, 0, sizeof d);
      d.expr = s, d.nin = 2, d.in = in, d.out = &out;
      CHECK(ein_plan_create(w ? ctx : plain, &d, &plan) == EIN_OK);
      ein_plan_explain(plan, text, sizeof text);
      first[w] = strstr(text, "contract-") != NULL;
      ein_plan_destroy(plan);
    }
    portable += first[0];
    CHECK(first[1] <= first[0]);
  }
  printf("portable by table: %d of %d\n", portable, (int)count);
  ein_ctx_destroy(ctx);
  ein_ctx_destroy(plain);
}

// Kept plans go with the rates they were made by.
static void test_kept(ein_cpu *cpu) {
  const int64_t shape[1] = {4};
  double x[4] = {1, 2, 3, 4}, y[1];
  const ein_ztensor in = ein_tensor(EIN_F64, 1, shape, x), out = ein_tensor(EIN_F64, 0, NULL, y);
  ein_ctx *ctx = open_ctx(cpu, NULL, NULL);
  const ein_rates r = draw_rates();
  CHECK(ein_einsum(ctx, "i->", 1, &in, &out) == EIN_OK && ctx->cache->n == 1);
  CHECK(ein_ctx_rates(ctx, &r) == EIN_OK && ctx->cache->n == 0);
  CHECK(ein_einsum(ctx, "i->", 1, &in, &out) == EIN_OK && ctx->cache->n == 1 && y[0] == 10);
  CHECK(ein_ctx_rates(ctx, NULL) == EIN_OK && ctx->cache->n == 0);
  ein_ctx_destroy(ctx);
}

// Faster products of large matrices, slower ones of small: what is predicted follows the curve.
static void test_curve(void) {
  ein_rates r = draw_rates();
  r.flops_f64 = 1e12;
  for (int i = 0; i < EIN_GEMMS; i++) r.gemm_f64[i] = 1e9 * (i + 1), r.gemm_f32[i] = 3e9;
  for (int i = 0; i < EIN_GEMMS; i++) {
    const double n = EIN_GEMM_LEAST << i;
    CHECK(fabs(eini_core_flops(&r, EIN_F64, n * n * n) - r.gemm_f64[i]) < 1e3);
    CHECK(fabs(eini_core_flops(&r, EIN_C64, n * n * n) - 3e9) < 1e3);
  }
  const double between = (1 + log(1.5) / log(2.0)) * 1e9;
  CHECK(fabs(eini_core_flops(&r, EIN_F64, 24.0 * 24 * 24) - between) < 1e3);
  CHECK(eini_core_flops(&r, EIN_F64, 0) <= 1e9 && eini_core_flops(&r, EIN_F64, 1e300) >= 6e9);
  CHECK(eini_core_flops(&r, EIN_F64, HUGE_VAL) >= 6e9);
  memset(r.gemm_f64, 0, sizeof r.gemm_f64);
  CHECK(eini_core_flops(&r, EIN_F64, 5) >= 1e12);
}

// ---- measured ----

static void test_measured(ein_cpu *cpu) {
  counter c = {0, 0, 0};
  ein_allocator a = {count_alloc, count_free, NULL};
  ein_rates r, kept = draw_rates();
  a.user = &c;
  for (int bare = 0; bare < 2; bare++) {
    c.fail_at = -1;
    ein_ctx *ctx = open_ctx(bare ? NULL : cpu, &a, now);
    const int live = (int)c.live;
    ein_status st = EIN_ERR_NO_MEMORY;
    for (int n = 0; n < 2000 && st == EIN_ERR_NO_MEMORY; n += 1 + n) {
      c.fail_at = c.calls + n;
      r = kept;
      st = ein_calibrate(ctx, 1e-9, &r);
      CHECK((int)c.live == live && ctx->executor.width == (bare ? 1 : 2) && ctx->rated == 0);
      CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && same_rates(&r, &kept)));
    }
    CHECK(st == EIN_OK && ein_ctx_rates(ctx, &r) == EIN_OK);
    CHECK(r.threads == (bare ? 1 : 2) && (r.machine[0] != 0) == !bare && r.call > 0);
    for (int l = 0; l < EIN_MEMORY_LEVELS; l++)
      CHECK(r.read_bw[l] > 1e8 && r.all_copy_bw[l] > 1e8);
    CHECK(r.gemm_f64[3] > 1e7 && r.flops_f64 >= r.gemm_f64[3] && r.fast_bytes > 1);
    CHECK((r.hz > 1e8) == !bare);
    c.fail_at = -1;
    CHECK(ein_calibrate(ctx, -1, &r) == EIN_ERR_ARGUMENT);
    CHECK(ein_calibrate(ctx, 0, NULL) == EIN_ERR_ARGUMENT);
    CHECK(ein_calibrate(NULL, 0, &r) == EIN_ERR_ARGUMENT);
    ctx->now_fn = NULL;
    CHECK(ein_calibrate(ctx, 0, &r) == EIN_ERR_UNSUPPORTED);
    ctx->now_fn = stopped;
    r = kept;
    CHECK(ein_calibrate(ctx, 1e-9, &r) == EIN_ERR_UNSUPPORTED && same_rates(&r, &kept));
    ein_ctx_destroy(ctx);
    CHECK(c.live == 0);
  }
}

int main(int argc, char **argv) {
  const uint64_t seed = argc > 1 ? (uint64_t)strtoull(argv[1], NULL, 10) : 1;
  const int64_t count = argc > 2 ? strtoll(argv[2], NULL, 10) : FEW(3000);
  ein_cpu_desc two;
  ein_cpu *cpu = NULL;
  rng_state = seed;
  printf("seed %llu\n", (unsigned long long)seed);
  memset(&two, 0, sizeof two);
  two.threads = 2;
  CHECK(ein_cpu_create(&two, NULL, &cpu) == EIN_OK);
  ein_ctx *ctx = open_ctx(NULL, NULL, NULL);
  test_text(ctx);
  test_refused(ctx);
  test_damaged(ctx, count);
  ein_ctx_destroy(ctx);
  test_given(cpu);
  test_choices(cpu, count / 30 + 8);
  test_slower(cpu, count / 10 + 8);
  test_kept(cpu);
  test_curve();
  test_measured(cpu);
  ein_cpu_destroy(cpu);
  printf("rates: %d checks, %d failed\n", checks, failures);
  if (failures == 0) puts("ok");
  return failures != 0;
}
