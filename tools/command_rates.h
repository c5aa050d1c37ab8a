// SPDX-License-Identifier: MIT
//
// command_rates.h - `einsum calibrate`, and rates as people and programs read them.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

typedef struct rate_list {
  const char *name;
  const double *value;
  int n;
} rate_list;

enum { RATE_LISTS = 19 };

// All numbers of rates, by the names of ein_rates, in its units.
static void rate_lists(const ein_rates *r, rate_list *list) {
  const rate_list all[RATE_LISTS] = {
      {"flops_f64", &r->flops_f64, 1}, {"flops_f32", &r->flops_f32, 1},
      {"flops_bf16", &r->flops_bf16, 1}, {"flops_i8", &r->flops_i8, 1},
      {"read_bw", r->read_bw, EIN_MEMORY_LEVELS}, {"copy_bw", r->copy_bw, EIN_MEMORY_LEVELS},
      {"all_read_bw", r->all_read_bw, EIN_MEMORY_LEVELS},
      {"all_copy_bw", r->all_copy_bw, EIN_MEMORY_LEVELS}, {"gemm_f64", r->gemm_f64, EIN_GEMMS},
      {"gemm_f32", r->gemm_f32, EIN_GEMMS}, {"hz", &r->hz, 1}, {"call", &r->call, 1},
      {"start", &r->start, 1}, {"cache_bytes", r->cache_bytes, EIN_MEMORY},
      {"fast_bytes", &r->fast_bytes, 1}, {"stream_bytes", &r->stream_bytes, 1},
      {"pages", &r->pages, 1},
      {"away", r->away, (int)(sizeof r->away / sizeof *r->away)},
      {"fused", &r->fused, 1}};
  memcpy(list, all, sizeof all);
}

// Members of an object, each behind a comma.
static void put_rates_json(const ein_rates *r) {
  rate_list list[RATE_LISTS];
  rate_lists(r, list);
  fputs(", \"machine\": ", stdout);
  put_json_string(r->machine);
  printf(", \"threads\": %d", r->threads);
  for (int i = 0; i < RATE_LISTS; i++) {
    if (list[i].n == 1) put_member(list[i].name, *list[i].value);
    if (list[i].n == 1) continue;
    printf(", \"%s\": [", list[i].name);
    for (int k = 0; k < list[i].n; k++) printf("%s%.10g", k > 0 ? ", " : "", list[i].value[k]);
    putchar(']');
  }
}

static void put_curve(const char *what, const double *x, int n) {
  printf("  %s", what);
  for (int i = 0; i < n; i++) printf(" %7.1f", x[i] * 1e-9);
}

static void put_rates(const ein_rates *r) {
  put_curve("GB/s, L1 L2 L3 memory: read", r->read_bw, EIN_MEMORY_LEVELS);
  put_curve(" copy", r->copy_bw, EIN_MEMORY_LEVELS);
  printf(", one core\n");
  put_curve("         all cores (", r->all_read_bw, 0);
  printf("%2d): read", r->threads);
  put_curve("", r->all_read_bw, EIN_MEMORY_LEVELS);
  put_curve(" copy", r->all_copy_bw, EIN_MEMORY_LEVELS);
  put_curve("\n  GFLOP/s of products, n =", r->gemm_f64, 0);
  for (int i = 0; i < EIN_GEMMS; i++) printf(" %7d", EIN_GEMM_LEAST << i);
  put_curve("\n                       f64", r->gemm_f64, EIN_GEMMS);
  put_curve("\n                       f32", r->gemm_f32, EIN_GEMMS);
  printf("\n  a call %.3g us, starting threads %.3g us, past the caches from %.3g MiB on, "
         "pages together %.0f\n",
         r->call * 1e6, r->start * 1e6, r->stream_bytes / 1048576, r->pages);
}

static int command_calibrate(void) {
  ein_rates r;
  ein_options o;
  const char *path = given(O_OUT);
  if (opt[O_OUT].n > 1) misuse(NULL, "-o is given twice, but there is one file of rates");
  if (args.n > 0) misuse(NULL, "calibrate takes no argument: '%s'", args.v[0]);
  check_targets(&opt[O_OUT], path == NULL || given(O_JSON) != NULL);
  option_search(&o);
  ein_ctx *ctx = make_ctx();
  progress_begin("measuring the machine", NULL, 0);
  ein_status st = ein_calibrate(ctx, o.path_seconds, &r);
  if (st != EIN_OK) die_library(ctx, st, NULL);
  progress_end();
  const size_t n = ein_rates_print(&r, NULL, 0);
  char *said = (char *)memory(n + 1);
  (void)ein_rates_print(&r, said, n + 1);
  if (path != NULL) fputs(said, output_stream(path));
  else if (given(O_JSON) == NULL) fputs(said, stdout);
  if (given(O_JSON) != NULL) {
    fputs("{\"from\": \"measured\"", stdout);
    put_rates_json(&r);
    puts("}");
  }
  return finish(ctx, NULL, NULL);
}
