// SPDX-License-Identifier: MIT
//
// command_count.h - --count: what a run moves between a fast memory and all other.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

static const char *const replacements[] = {"lru", "ideal"};

// --count N[:lru|:ideal][:LINE]
static ein_count option_counted(void) {
  const char *s = given(O_COUNTED), *end = s + strcspn(s, ":");
  ein_count d;
  int64_t n;
  int bad = !read_int(s, (size_t)(end - s), &n) || n < 1 || n > INT64_C(1000000000000000);
  memset(&d, 0, sizeof d);
  if (!bad) d.fast_memory = (double)n;
  while (!bad && *end == ':') {
    const char *word = end + 1;
    const size_t length = strcspn(word, ":");
    end = word + length;
    int r = 0;
    while (r < 2 && (strlen(replacements[r]) != length ||
                     memcmp(replacements[r], word, length) != 0)) r++;
    if (r < 2) d.ideal = r;
    else bad = !read_int(word, length, &d.line) || d.line < 1 || d.line > 1 << 20 ||
               (d.line & (d.line - 1)) != 0;
  }
  if (bad)
    misuse("for example --count 32768:ideal, or 4194304:lru:64", "--count takes elements of fast "
           "memory, lru (default) or ideal, and elements of a line, a power of two; not '%s'", s);
  return d;
}

// Plans that are counted are those of the portable kernels, for a machine whose memory is slow, and
// that plans blocks of f64 for seven eighths of the fast memory: of half a cache.
static void counted_kernels(void) {
  if (given(O_COUNTED) == NULL) return;
  if (on_places() || simulated()) misuse(NULL, "--count goes with neither --fabric nor -p");
  if (given(O_KERNELS) == NULL) add_word(&opt[O_KERNELS], "portable");
}

static void counted_rates(ein_ctx *ctx) {
  ein_rates r;
  memset(&r, 0, sizeof r);
  if (given(O_COUNTED) == NULL || given(O_RATES) != NULL) return;
  r.fast_bytes = 2 * 8 * (7 / 8.0) * option_counted().fast_memory;
  r.flops_f64 = r.flops_f32 = 1e12;
  for (int k = 0; k < EIN_MEMORY_LEVELS; k++) r.read_bw[k] = r.copy_bw[k] = 1e8;
  const ein_status st = ein_ctx_rates(ctx, &r);
  if (st != EIN_OK) die_library(ctx, st, NULL);
}

typedef struct counted {
  ein_count d;
  int ntask, nstmt;
  double bound;             // of the only statement; 0: there are several
} counted;

static const char *const moved_kinds[4] = {"inputs", "outputs", "temporaries", "sums"};

static void print_counted(const counted *c, ein_bound *b) {
  ein_bound_stmt s;
  printf("%.10g elements moved", c->d.moved);
  if (c->bound > 0)
    printf(", %.4g times what must move (%.10g)", c->d.moved / c->bound, c->bound);
  printf("\n  fast memory of %.0f elements, %s, lines of %" PRId64 "; kernels in tiles, %.10g "
         "accesses\n", c->d.fast_memory, replacements[c->d.ideal], c->d.line > 1 ? c->d.line : 1,
         c->d.accesses);
  for (int k = 0; k < 4; k++)
    if (c->d.read[k] + c->d.written[k] > 0)
      printf("  %-12s %.10g read, %.10g written\n", moved_kinds[k], c->d.read[k],
             c->d.written[k]);
  for (int k = 0; c->ntask > 1 && k < c->ntask; k++) {
    printf("  task %-7d %.10g", k, c->d.task[k]);
    if (c->ntask == c->nstmt && ein_bound_statement(b, k, &s))
      printf(", %s alone must move %.10g", s.out, s.bound);
    putchar('\n');
  }
}

static void put_counted(const counted *c, ein_bound *b) {
  ein_bound_stmt s;
  printf("{\"fast_memory\": %.17g, \"replace\": \"%s\", \"line\": %" PRId64
         ", \"kernels\": \"tiles\", \"accesses\": %.17g, \"moved\": %.17g", c->d.fast_memory,
         replacements[c->d.ideal], c->d.line > 1 ? c->d.line : 1, c->d.accesses, c->d.moved);
  put_member("bound", c->bound > 0 ? c->bound : NAN);
  put_member("ratio", c->bound > 0 ? c->d.moved / c->bound : NAN);
  for (int k = 0; k < 4; k++)
    printf(", \"%s\": {\"read\": %.17g, \"written\": %.17g}", moved_kinds[k], c->d.read[k],
           c->d.written[k]);
  fputs(", \"tasks\": [", stdout);
  for (int k = 0; k < c->ntask; k++) printf("%s%.17g", k > 0 ? ", " : "", c->d.task[k]);
  fputs("], \"statements\": [", stdout);
  for (int k = 0; ein_bound_statement(b, k, &s); k++) {
    fputs(k > 0 ? ", {\"out\": " : "{\"out\": ", stdout);
    put_json_string(s.out);
    put_member("bound", s.bound);
    putchar('}');
  }
  puts("]}");
}

// Runs a plan once, counts, and says what was counted.
static void count_plan(ein_ctx *ctx, const ein_graph *g, const ein_plan *plan,
                       const ein_run *bound) {
  ein_run run = *bound;
  ein_plan_info info = {0};
  ein_bound_desc bd;
  ein_bound *b;
  ein_bound_stmt s;
  counted c;
  char error[256] = "";
  memset(&bd, 0, sizeof bd);
  memset(&c, 0, sizeof c);
  (void)ein_plan_info_get(plan, &info);
  c.d = option_counted();
  c.d.task = (double *)memory(sizeof(double) * ((size_t)info.ntask + 1));
  c.ntask = info.ntask;
  bd.fast_memory = c.d.fast_memory;
  ein_status st = ein_bound_create(ctx, g, &bd, &b);
  if (st != EIN_OK) die_library(ctx, st, NULL);
  run.error = error;
  run.error_bytes = sizeof error;
  explain(plan);
  progress_begin("counting", NULL, 0);
  st = ein_plan_count(plan, &run, &c.d);
  progress_end();
  if (st != EIN_OK)
    die(exit_status(st), NULL, "counting: %s%s%s", ein_status_text(st), error[0] ? ": " : "",
        error);
  while (ein_bound_statement(b, c.nstmt, &s)) c.nstmt++;
  if (c.nstmt == 1 && ein_bound_statement(b, 0, &s)) c.bound = s.bound;
  if (given(O_JSON) != NULL) put_counted(&c, b);
  else print_counted(&c, b);
  ein_bound_destroy(b);
}
