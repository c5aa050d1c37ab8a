// einsum bound: what must move between a fast memory and all other. Part of einsum.c.

static double option_fast_memory(void) {
  const char *s = given(O_FAST);
  int64_t n;
  if (s == NULL) misuse("for example --fast-memory 32768", "give the elements of --fast-memory");
  if (!read_int(s, strlen(s), &n) || n < 1 || n > INT64_C(1000000000000000))
    misuse(NULL, "--fast-memory takes a number of elements from 1 to 1e15, not '%s'", s);
  return (double)n;
}

static void put_intensity(const char *name, const ein_bound_stmt *s, const ein_intensity *x) {
  printf(", \"%s\": {\"rho\": ", name);
  put_number(x->rho);
  put_member("x0", x->x0);
  fputs(", \"tile\": {", stdout);
  for (int i = 0; i < s->nindex; i++) {
    if (i > 0) fputs(", ", stdout);
    put_json_string(s->index[i]);
    fputs(": ", stdout);
    put_number(x->tile[i]);
  }
  putchar('}');
  put_member("bound", x->bound);
  put_member("per_place", x->per_place);
  putchar('}');
}

static void put_bound(const ein_bound_stmt *s, double fast) {
  fputs("{\"out\": ", stdout);
  put_json_string(s->out);
  printf(", \"line\": %" PRId64, s->line);
  put_member("volume", s->volume);
  put_member("flops", s->flops);
  put_member("fast_memory", fast);
  put_member("balance", s->balance);
  put_member("compulsory", s->compulsory);
  put_member("bound", s->bound);
  put_member("per_place", s->per_place);
  put_intensity("paper", s, &s->paper);
  put_intensity("capped", s, &s->capped);
  putchar('}');
}

static void print_intensity(const char *name, const ein_bound_stmt *s, const ein_intensity *x,
                            int64_t places) {
  printf("  %-26s bound %.10g", name, x->bound);
  if (places > 1) printf(", per place %.10g", x->per_place);
  printf("; intensity %.10g", x->rho);
  if (x->x0 < INFINITY) printf(" at X0 %.10g", x->x0);
  fputs("; tile", stdout);
  for (int i = 0; i < s->nindex; i++) {
    printf(" %s=", s->index[i]);
    if (x->tile[i] < INFINITY) printf("%.5g", x->tile[i]);
    else fputs("any", stdout);
  }
  putchar('\n');
}

static void print_bound(const ein_bound_stmt *s, double fast, int64_t places) {
  const double moved = s->bound > s->compulsory ? s->bound : s->compulsory;
  if (s->line > 0) printf("%s, line %" PRId64 ":", s->out, s->line);
  else printf("%s:", s->out);
  printf(" points %.10g, operations %.10g, fast memory %.0f elements\n", s->volume, s->flops, fast);
  printf("  moves at least %.10g elements, compulsory %.10g; at most %.4g operations each\n",
         s->bound, s->compulsory, moved > 0 ? s->flops / moved : 0);
  if (s->balance > 0)
    printf("  a core does %.4g operations while an element comes from memory: %s the ceiling\n",
           s->balance, s->flops < s->balance * moved ? "memory is" : "arithmetic is");
  if (places > 1)
    printf("  the busiest of %" PRId64 " places receives and sends at least %.10g\n", places,
           s->per_place);
  print_intensity("sides as long as they like", s, &s->paper, places);
  print_intensity("no longer than extents", s, &s->capped, places);
}

// ---- groups ----

static void put_group(const ein_fusion_group *g) {
  fputs("{\"out\": [", stdout);
  for (int64_t m = 0; m < g->nstmt; m++) {
    if (m > 0) fputs(", ", stdout);
    put_json_string(g->out[m]);
  }
  fputs("], \"lines\": [", stdout);
  for (int64_t m = 0; m < g->nstmt; m++) printf("%s%" PRId64, m > 0 ? ", " : "", g->line[m]);
  putchar(']');
  put_member("volume", g->volume);
  put_member("again", g->again);
  put_member("compulsory", g->compulsory);
  put_member("bound", g->bound);
  put_member("io", g->io);
  put_member("alone", g->alone);
  put_member("held", g->held);
  fputs(", \"last\": ", stdout);
  if (g->last >= 0) printf("%d", g->last);
  else fputs("null", stdout);
  fputs(", \"tile\": [", stdout);
  for (int i = 0; i < g->nindex; i++) {  // not by name: two may have one
    fputs(i > 0 ? ", {\"index\": " : "{\"index\": ", stdout);
    put_json_string(g->index[i]);
    printf(", \"side\": %" PRId64 ", \"extent\": %" PRId64 "}", g->tile[i], g->extent[i]);
  }
  fputs("]}", stdout);
}

static void print_group(const ein_fusion_group *g) {
  for (int64_t m = 0; m < g->nstmt; m++) printf("%s%s", m > 0 ? " + " : "", g->out[m]);
  if (g->line[0] > 0) {
    printf(g->line[g->nstmt - 1] > g->line[0] ? ", lines" : ", line");
    for (int64_t m = 0; m < g->nstmt; m++)
      if (m == 0 || g->line[m] != g->line[m - 1]) printf(" %" PRId64, g->line[m]);
  }
  printf(": moves %.10g elements", g->io);
  if (g->nstmt > 1) printf(", one by one %.10g", g->alone);
  printf(", at least %.10g\n  points %.10g", g->bound, g->volume);
  if (g->again > 0) printf(" and %.4g again", g->again);
  printf("; holds %.10g elements; blocks of", g->held);
  for (int i = 0; i < g->nindex; i++)
    printf(" %s=%" PRId64 "%s", g->index[i], g->tile[i], g->tile[i] < g->extent[i] ? "" : " (all)");
  if (g->last >= 0) printf(", along %s", g->index[g->last]);
  putchar('\n');
}

static void groups_of(const program *p, double fast, int json) {
  ein_fusion_desc d;
  ein_fusion_info info;
  ein_fusion_group g;
  ein_fusion *x;
  memset(&d, 0, sizeof d);
  d.fast_memory = fast;
  const ein_status st = ein_fusion_create(p->ctx, p->graph, &d, &x);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  (void)ein_fusion_get(x, &info);
  if (json) {
    fputs("{\"fast_memory\": ", stdout);
    put_number(fast);
    put_member("io", info.io);
    put_member("alone", info.alone);
    printf(", \"proved\": %s, \"looked\": %" PRId64 ", \"groups\": [",
           info.proved ? "true" : "false", info.looked);
  }
  for (int64_t k = 0; ein_fusion_part(x, k, &g); k++) {
    if (json && k > 0) fputs(", ", stdout);
    if (json) put_group(&g);
    else print_group(&g);
  }
  if (json) puts("]}");
  else
    printf("%" PRId64 " group%s: %.10g elements move, %.10g one by one%s\n", info.ngroup,
           info.ngroup == 1 ? "" : "s", info.io, info.alone,
           info.proved ? "; no other groups move less" : "");
  ein_fusion_destroy(x);
}

static int command_bound(void) {
  program p;
  ein_bound_desc d;
  ein_bound *b = NULL;
  ein_bound_stmt s;
  const int json = given(O_JSON) != NULL;
  if (args.n == 0) misuse("einsum bound (EXPR | PROG.ein) --fast-memory N", "nothing to bound");
  const int whole = is_program(args.v[0]);
  memset(&d, 0, sizeof d);
  d.fast_memory = option_fast_memory();
  d.places = option_places(1);
  if (whole) {
    program_open(&p, args.v[0]);
    program_inputs(&p, 1);
    program_parse(&p);
  } else {
    job j;
    int n;
    memset(&j, 0, sizeof j);
    array *in = shapes_of_operands(args.v[0], &n);
    add_word(&opt[O_PATH], "none");  // run as one statement
    j.ctx = make_ctx();
    job_plan(&j, args.v[0], n, in, EIN_NONE);
    program_of_expression(&p, &j);
    ein_plan_destroy(j.plan);
  }
  if (given(O_GROUPS) != NULL) {
    groups_of(&p, d.fast_memory, json);
    return finish(p.ctx, NULL, p.graph);
  }
  ein_status st = ein_bound_create(p.ctx, p.graph, &d, &b);
  if (st != EIN_OK) die_library(p.ctx, st, p.file);
  if (json && whole) putchar('[');
  for (int64_t k = 0; ein_bound_statement(b, k, &s); k++) {
    if (json && k > 0) fputs(", ", stdout);
    if (json) put_bound(&s, d.fast_memory);
    else print_bound(&s, d.fast_memory, d.places);
  }
  if (json) puts(whole ? "]" : "");
  ein_bound_destroy(b);
  return finish(p.ctx, NULL, p.graph);
}
