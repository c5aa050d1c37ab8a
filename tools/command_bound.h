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

// ---- grids ----

// A statement over places: the cut that moves least, and the planner's; and what they are beside.
typedef struct grid_row {
  ein_decomp_stmt s;
  ein_parts best, planned;
  ein_grid_cost least, moved;
  double paper;             // V / (P rho), with a memory of what the best cut touches
} grid_row;

static grid_row grid_of(const program *p, const ein_decomposition *how, int k, int places) {
  grid_row r;
  ein_bound_desc d;
  ein_bound *b;
  ein_bound_stmt s;
  memset(&r, 0, sizeof r);
  r.s = stmt_of(how, k);
  (void)ein_decomposition_parts(how, k, &r.planned);
  r.best = r.planned;
  int64_t *cut = (int64_t *)memory(sizeof *cut * ((size_t)r.planned.nindex + 1));
  r.best.cut = cut;
  const double most = given(O_FAST) != NULL ? option_fast_memory() : 0;
  ein_status st = ein_grid_best(p->graph, k, places, most, cut, &r.least);
  if (st == EIN_ERR_NO_MEMORY && most > 0)
    die(WRONG_INPUT, "more places touch less each", "no cut of '%s' over %d places touches %.10g "
        "elements or less at a place", r.s.out, places, most);
  if (st == EIN_OK) st = ein_grid_words(p->graph, k, places, r.planned.cut, &r.moved);
  if (st != EIN_OK)
    die(exit_status(st), NULL, "grids of '%s' over %d places: %s", r.s.out, places,
        st == EIN_ERR_TOO_LARGE ? "too many cuts to look at" : ein_status_text(st));
  memset(&d, 0, sizeof d);
  d.fast_memory = r.least.holds > 1 ? r.least.holds : 1;
  d.places = places;
  st = ein_bound_create(p->ctx, p->graph, &d, &b);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (ein_bound_statement(b, k, &s)) r.paper = s.paper.per_place;
  ein_bound_destroy(b);
  return r;
}

static void put_cut(const char *name, const grid_row *r, const ein_parts *p,
                    const ein_grid_cost *c) {
  printf(", \"%s\": {\"cut\": [", name);
  for (int i = 0; i < p->nindex; i++) printf("%s%" PRId64, i > 0 ? ", " : "", p->cut[i]);
  fputs("], \"index\": [", stdout);
  for (int i = 0; i < p->nindex; i++) {  // not by name: two may have one
    if (i > 0) fputs(", ", stdout);
    put_json_string(r->s.index[i]);
  }
  putchar(']');
  put_member("words", c->words);
  put_member("touched", c->holds);
  putchar('}');
}

static void put_grid(const grid_row *r, int places) {
  fputs("{\"out\": ", stdout);
  put_json_string(r->s.out);
  printf(", \"line\": %" PRId64 ", \"places\": %d", r->s.line, places);
  put_cut("planned", r, &r->planned, &r->moved);
  put_cut("best", r, &r->best, &r->least);
  put_member("paper_per_place", r->paper);
  put_member("per_place", r->least.least);
  putchar('}');
}

// The planner's cuts are those of the model of bytes where inputs are dealt out.
static void grids_of(const program *p, int64_t places, int json) {
  ein_decompose_desc d;
  ein_decomposition *how;
  ein_decomp_info info;
  words cells = {NULL, 0};
  memset(&d, 0, sizeof d);
  d.p = places;
  d.cost = EIN_COST_BYTES;
  d.inputs = EIN_INPUTS_DEALT;
  d.no_scatter = 1;  // it is of the statements as written
  const ein_status st = ein_decompose(p->ctx, p->graph, &d, &how);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  ein_decomposition_info(how, &info);
  static const char *const head[] = {"line", "statement", "best", "touched", "words", "V/(P rho)",
                                     "at least", "planned", "touched", "words"};
  for (int i = 0; i < 10; i++) add_word(&cells, head[i]);
  if (json) putchar('[');
  for (int k = 0; k < info.nstmt; k++) {
    const grid_row r = grid_of(p, how, k, (int)places);
    if (json && k > 0) fputs(", ", stdout);
    if (json) put_grid(&r, (int)places);
    line_cell(&cells, r.s.line);
    add_word(&cells, r.s.out), add_word(&cells, parts_text(&r.s, &r.best));
    add_cell(&cells, "%.10g", r.least.holds), add_cell(&cells, "%.10g", r.least.words);
    add_cell(&cells, "%.7g", r.paper), add_cell(&cells, "%.7g", r.least.least);
    add_word(&cells, parts_text(&r.s, &r.planned));
    add_cell(&cells, "%.10g", r.moved.holds), add_cell(&cells, "%.10g", r.moved.words);
  }
  if (json) puts("]");
  else put_cells(stdout, &cells, 10, 3);
  ein_decomposition_destroy(how);
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
  const int grids = given(O_GRIDS) != NULL;
  d.fast_memory = grids ? 0 : option_fast_memory();
  d.places = option_places(1);
  if (grids && d.places < 2) misuse("for example -p 8", "--grids is for several places");
  if (grids && given(O_GROUPS) != NULL) misuse(NULL, "--grids does not go with --groups");
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
  if (grids) {
    grids_of(&p, d.places, json);
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
