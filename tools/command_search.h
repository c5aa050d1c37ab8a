// SPDX-License-Identifier: MIT
//
// command_search.h - einsum search: programs that compute the same, with schedules, none of which
// is worse than another in seconds, peak bytes of a place, bytes moved and operations together.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

enum { COSTS = 4, RULES_MOST = 32, PLANS = 6, WAYS = 9, AT_ONCE = 8 };

static const char *const cost_names[COSTS] = {"seconds", "peak_bytes", "moved_bytes", "flops"};

// How a program is decomposed: the planner's models, and baselines; the last ones are schedules
// within a part of the memory of a place, or of what the planner's answer takes.
static const struct { ein_cost cost; const char *method; double part; } ways[WAYS] = {
  {EIN_COST_SECONDS, NULL, 0}, {EIN_COST_BYTES, NULL, 0}, {EIN_COST_PAPER, NULL, 0},
  {EIN_COST_SECONDS, "none", 0}, {EIN_COST_SECONDS, "sqrt", 0}, {EIN_COST_SECONDS, "linear", 0},
  {EIN_COST_BYTES, NULL, 0.75}, {EIN_COST_BYTES, NULL, 0.5}, {EIN_COST_BYTES, NULL, 0.25}};

typedef struct member {
  char *program, *schedule;
  double cost[COSTS];
  int way;
} member;

typedef struct trial {      // what is evaluated beside others
  member m;
  int first;                // it is the planner's own answer
  int used[2], n;           // rules that made it
  int is;                   // it runs
  ein_ctx *ctx;
} trial;

typedef struct search {
  program *p;
  ein_decompose_desc desc;
  ein_machine machine;
  double full_work;         // of the first population
  member *front;
  int n, room, evaluated;
  member own;               // the planner's own answer; its cost[0] < 0: there is none
  uint64_t *seen;           // programs and ways that were evaluated, by hash
  int nseen, roomseen;
  uint64_t random;
  double tried[RULES_MOST], kept[RULES_MOST];
  int last;                 // evaluations when the front changed last
  trial at[AT_ONCE];        // those that wait; as many whatever the number of threads, so that
  int nat;                  //   a seed finds the same
} search;

static double search_random(search *s) {
  s->random = mix(s->random);
  return (double)(s->random >> 11) / 9007199254740992.0;
}

// Is a at least as good as b in every cost?
static int covers(const double *a, const double *b) {
  for (int k = 0; k < COSTS; k++)
    if (a[k] > b[k]) return 0;
  return 1;
}

static ein_graph *search_parse(ein_ctx *ctx, const char *said) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = said;
  const ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st != EIN_OK) die_library(ctx, st, "a program that was found");
  return g;
}

// Was a program met before with a way to decompose it? It is from now on.
static int search_met(search *s, const char *said, int way) {
  uint64_t h = mix((uint64_t)way + 1);
  for (const char *c = said; *c; c++) h = mix(h ^ (unsigned char)*c);
  for (int k = 0; k < s->nseen; k++)
    if (s->seen[k] == h) return 1;
  if (s->nseen == s->roomseen) {
    s->roomseen = 2 * s->roomseen + 256;
    uint64_t *more = (uint64_t *)memory(sizeof *more * (size_t)s->roomseen);
    if (s->nseen > 0) memcpy(more, s->seen, sizeof *more * (size_t)s->nseen);
    s->seen = more;
  }
  s->seen[s->nseen++] = h;
  return 0;
}

// Plans a program in a way: gives the text of a schedule, and operations; NULL: there is none.
static char *search_plan(const search *s, ein_ctx *ctx, const ein_graph *g, int way, int first,
                         double *flops) {
  ein_decompose_desc d = s->desc;
  ein_machine m = s->machine;
  ein_decomposition *how = NULL;
  ein_schedule *fit = NULL;
  ein_sim_desc sim_desc;
  ein_sim_info sim;
  char *said = NULL;
  if (first) d.max_work = s->full_work;
  d.no_scatter = 1;  // members say themselves where folds are split
  d.cost = ways[way].cost;
  d.method = way < PLANS ? ways[way].method : "none";
  if (way >= PLANS) d.machine = NULL;  // only operations are asked for
  ein_status st = ein_decompose(ctx, g, &d, &how);
  memset(&sim_desc, 0, sizeof sim_desc);
  sim_desc.machine = d.machine;
  sim_desc.max_work = d.max_work;
  if (st == EIN_OK) st = ein_simulate(ctx, g, how, &sim_desc, &sim);
  if (st == EIN_OK) *flops = sim.flops;
  if (st == EIN_OK && way < PLANS) {
    const size_t n = ein_decomposition_schedule(g, how, NULL, 0);
    said = (char *)memory(n + 1);
    (void)ein_decomposition_schedule(g, how, said, n + 1);
  }
  ein_decomposition_destroy(how);
  d.method = NULL;
  d.machine = &m;
  m.memory = ways[way].part * (s->machine.memory > 0 ? s->machine.memory : s->own.cost[1]);
  if (st == EIN_OK && way >= PLANS) st = ein_schedule_fit(ctx, g, &d, &fit);
  if (st == EIN_OK && way >= PLANS) said = schedule_text(fit);
  ein_schedule_destroy(fit);
  if (st == EIN_ERR_NO_MEMORY) die_library(ctx, st, NULL);
  return st == EIN_OK ? said : NULL;
}

// What a schedule takes, as `plan --schedule` says; 0: it is none that runs, or too long to be
// followed.
static int search_cost(const search *s, ein_ctx *ctx, const ein_graph *g, const char *said,
                       double *cost) {
  ein_schedule_desc how;
  ein_schedule *made = NULL;
  ein_schedule_info info;
  ein_decompose_desc d = s->desc;
  clocked clock;
  double jobs = 0;
  const int n = (int)ein_graph_statements(g);
  double *peak = (double *)memory(sizeof *peak * ((size_t)n + 1));
  memset(&how, 0, sizeof how);
  memset(&clock, 0, sizeof clock);
  how.text = said;
  how.places = s->desc.p;
  how.machine = &s->machine;
  ein_status st = ein_schedule_create(ctx, g, &how, &made);
  if (st == EIN_OK) st = ein_schedule_peaks(ctx, made, s->desc.inputs, peak, NULL);
  cost[0] = cost[1] = cost[2] = 0;
  for (int i = 0; i < n && st == EIN_OK; i++) {
    st = ein_schedule_cost(ctx, made, i, NULL, NULL, &info);
    cost[1] = fmax(cost[1], peak[i]);
    cost[2] += (double)info.bytes;
    jobs += (double)info.tasks + (double)info.messages;
  }
  d.machine = &s->machine;
  if (st == EIN_OK && jobs > CLOCK_MOST) st = EIN_ERR_TOO_LARGE;
  if (st == EIN_OK) st = clock_run(ctx, g, NULL, made, &d, &clock);
  cost[0] = clock.stats.seconds;
  ein_schedule_destroy(made);
  if (st == EIN_ERR_NO_MEMORY) die_library(ctx, st, NULL);
  return st == EIN_OK && !(s->machine.memory > 0 && cost[1] > s->machine.memory);
}

// Takes a member into the front unless one there is as good; those that it covers leave.
static int search_enter(search *s, const member *m) {
  int n = 0;
  for (int k = 0; k < s->n; k++)
    if (covers(s->front[k].cost, m->cost)) return 0;
  for (int k = 0; k < s->n; k++)
    if (!covers(m->cost, s->front[k].cost)) s->front[n++] = s->front[k];
  s->n = n;
  if (s->n == s->room) {
    member *more = (member *)memory(sizeof *more * (size_t)(s->room = 2 * s->room + 16));
    if (s->n > 0) memcpy(more, s->front, sizeof *more * (size_t)s->n);
    s->front = more;
  }
  s->front[s->n++] = *m;
  s->last = s->evaluated;
  return 1;
}

// Plans a program in a way: by any thread, each trial has a ctx of its own.
static void search_evaluate(void *arg, int i) {
  search *s = (search *)arg;
  trial *c = &s->at[i];
  ein_graph *g = search_parse(c->ctx, c->m.program);
  c->m.cost[3] = 0;
  c->m.schedule = search_plan(s, c->ctx, g, c->m.way, c->first, &c->m.cost[3]);
  c->is = c->m.schedule != NULL && search_cost(s, c->ctx, g, c->m.schedule, c->m.cost);
  ein_graph_destroy(g);
}

// Evaluates all that wait, on all threads, and takes them in their order.
static void search_flush(search *s) {
  ein_executor e = {1, NULL, NULL};
  if (cpu != NULL) e = ein_cpu_executor(cpu);
  if (s->nat > 1 && e.width > 1) e.parallel_for(s->nat, search_evaluate, s, e.user);
  else
    for (int i = 0; i < s->nat; i++) search_evaluate(s, i);
  for (int i = 0; i < s->nat; i++) {
    const trial *c = &s->at[i];
    s->evaluated++;
    progress_step();
    if (c->is && c->first && c->m.way == 0) s->own = c->m;
    const int in = c->is && search_enter(s, &c->m);
    for (int k = 0; k < c->n; k++) s->tried[c->used[k]]++, s->kept[c->used[k]] += in;
  }
  s->nat = 0;
}

// A program, planned in a way, waits to be evaluated; 0: it was before, or cannot be. first: it is
// the planner's own answer.
static int search_add(search *s, const char *said, int way, int first, const int *used, int n) {
  if ((way >= PLANS && s->own.cost[0] < 0 && !(s->machine.memory > 0)) || search_met(s, said, way))
    return 0;
  trial *c = &s->at[s->nat++];
  c->m.program = copy_text(said, strlen(said));
  c->m.way = way;
  c->first = first;
  c->n = n;
  for (int k = 0; k < n; k++) c->used[k] = used[k];
  if (s->nat == AT_ONCE) search_flush(s);
  return 1;
}

// A rule, drawn by how often it led to something; its number.
static int search_draw(search *s, const places_of *all, const int *rule) {
  double weight[RULES_MOST] = {0}, sum = 0;
  for (int k = 0; k < all->n; k++)
    weight[rule[k]] = (s->kept[rule[k]] + 1) / (s->tried[rule[k]] + 4);
  for (int k = 0; k < RULES_MOST; k++) sum += weight[k];
  double at = search_random(s) * sum;
  int r = 0, last = 0;
  for (; r < RULES_MOST; r++) {
    if (weight[r] <= 0) continue;
    last = r;
    if ((at -= weight[r]) < 0) break;
  }
  return r < RULES_MOST ? r : last;
}

static int rule_of(const char *name) {
  int k = 0;
  while (k < RULES_MOST - 1 && strcmp(ein_rewrite_rule(k, NULL, NULL), name) != 0) k++;
  return k;
}

// A member of the front, changed by a rule or a few, or decomposed in another way.
static void search_step(search *s) {
  const member *from = &s->front[(int)(search_random(s) * s->n)];
  const int steps = search_random(s) < 0.1 ? 0 : search_random(s) < 0.6 ? 1 : 2;
  const double slow = search_random(s), any = search_random(s);  // steps within a memory take long
  const int way = slow < 0.05 ? PLANS + (int)(any * (WAYS - PLANS))
                  : slow < 0.5 && from->way < PLANS ? from->way : (int)(any * PLANS);
  ein_graph *g = search_parse(s->p->ctx, from->program);
  int used[2], n = 0;
  for (int k = 0; k < steps; k++) {
    places_of all = {NULL, 0, 0};
    ein_graph *made = NULL;
    ein_status st = ein_rewrites(s->p->ctx, g, given(O_LOOSE) != NULL ? 2 : 1, 0, add_place, &all);
    if (st != EIN_OK) die_library(s->p->ctx, st, NULL);
    if (all.n == 0) break;
    int *rule = (int *)memory(sizeof *rule * (size_t)all.n), count = 0;
    for (int i = 0; i < all.n; i++) rule[i] = rule_of(all.v[i].w.rule);
    const int r = search_draw(s, &all, rule);
    for (int i = 0; i < all.n; i++) count += rule[i] == r;
    int at = (int)(search_random(s) * count), i = 0;
    for (; i < all.n - 1 && (rule[i] != r || at-- > 0); i++) continue;
    st = ein_rewrite_apply(s->p->ctx, g, all.v[i].w.rule, all.v[i].w.stmt, all.v[i].w.part, &made);
    if (st != EIN_OK) die_library(s->p->ctx, st, NULL);
    ein_graph_destroy(g);
    g = made;
    used[n++] = r;
  }
  if (!search_add(s, graph_text(g), way, 0, used, n))  // in the end all are known
    s->evaluated += s->nseen > 0 && search_random(s) < 0.02;
  ein_graph_destroy(g);
}

// The program with all that is read once computed where it is read, as groups of statements are
// that run block by block; NULL: nothing is.
static ein_graph *search_fused(search *s, const ein_graph *plain) {
  ein_graph *g = NULL;
  for (int k = 0, most = 256; most > 0; most--) {
    const ein_graph *from = g != NULL ? g : plain;
    ein_graph *made = NULL;
    if (k >= ein_graph_statements(from)) return g;
    const ein_status st = ein_rewrite_apply(s->p->ctx, from, "inline", k, -1, &made);
    if (st == EIN_ERR_NO_MEMORY) die_library(s->p->ctx, st, s->p->file);
    if (st != EIN_OK) {
      k++;
      continue;
    }
    ein_graph_destroy(g);
    g = made;
    k = 0;
  }
  return g;
}

// What the planners answer: the program as it is, fused, and with folds scattered.
static void search_first(search *s) {
  ein_graph *plain = NULL;
  ein_decomposition *d = NULL;
  ein_status st = ein_rewrite_apply(s->p->ctx, s->p->graph, NULL, 0, 0, &plain);
  if (st != EIN_OK) die_library(s->p->ctx, st, s->p->file);
  char *plain_text = graph_text(plain);
  for (int k = 0; k < WAYS; k++) {
    if (k == PLANS) search_flush(s);  // schedules take a part of the memory of the first
    (void)search_add(s, plain_text, k, 1, NULL, 0);
  }
  ein_graph *fused = search_fused(s, plain);
  for (int k = 0; k < PLANS && fused != NULL; k++)
    (void)search_add(s, graph_text(fused), k, 0, NULL, 0);
  ein_graph_destroy(fused);
  ein_decompose_desc desc = s->desc;
  desc.cost = EIN_COST_SECONDS;
  desc.no_scatter = 0;
  st = ein_decompose(s->p->ctx, plain, &desc, &d);
  const ein_graph *better = st == EIN_OK ? ein_decomposition_graph(d) : NULL;
  if (better != NULL) {
    ein_graph *named = NULL;
    st = ein_rewrite_apply(s->p->ctx, better, NULL, 0, 0, &named);
    if (st == EIN_OK) (void)search_add(s, graph_text(named), 1, 0, NULL, 0);
    ein_graph_destroy(named);
  }
  search_flush(s);
  ein_decomposition_destroy(d);
  ein_graph_destroy(plain);
}

static int member_before(const void *a, const void *b) {
  const member *x = (const member *)a, *y = (const member *)b;
  for (int k = 0; k < COSTS; k++)
    if (x->cost[k] != y->cost[k]) return x->cost[k] < y->cost[k] ? -1 : 1;
  return strcmp(x->program, y->program);
}

// ---- what was found

// Seconds across, peak bytes upwards, both by their logarithm; the start in another colour.
static void search_picture(const search *s, const char *path) {
  FILE *f = output_stream(path);
  double low[2] = {INFINITY, INFINITY}, high[2] = {0, 0};
  for (int k = -1; k < s->n; k++) {
    const double *c = k < 0 ? s->own.cost : s->front[k].cost;
    for (int a = 0; a < 2 && c[0] >= 0; a++) {
      low[a] = fmin(low[a], log10(fmax(c[a], 1e-12)));
      high[a] = fmax(k < 0 ? -INFINITY : high[a], log10(fmax(c[a], 1e-12)));
    }
    for (int a = 0; a < 2 && k <= 0 && c[0] >= 0; a++) high[a] = fmax(low[a], high[a]);
  }
  svg_head(f, 640, 480);
  fputs("<path d=\"M60 20V430H620\" fill=\"none\" stroke=\"#000000\"/>\n", f);
  fprintf(f, "<text x=\"340\" y=\"470\" text-anchor=\"middle\">seconds, 10^%.2f to 10^%.2f</text>\n"
          "<text x=\"20\" y=\"225\" text-anchor=\"middle\" transform=\"rotate(-90 20 225)\">"
          "peak bytes, 10^%.2f to 10^%.2f</text>\n", low[0], high[0], low[1], high[1]);
  for (int k = -1; k < s->n; k++) {
    const double *c = k < 0 ? s->own.cost : s->front[k].cost;
    double at[2];
    if (c[0] < 0) continue;
    for (int a = 0; a < 2; a++) {
      const double span = high[a] - low[a];
      at[a] = span > 0 ? fmin(1, fmax(0, (log10(fmax(c[a], 1e-12)) - low[a]) / span)) : 0.5;
    }
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" stroke=\"#000000\"><title>"
            "%s%d: %.6g seconds, %.10g bytes, %.10g moved, %.10g operations</title></circle>\n",
            80 + 520 * at[0], 410 - 370 * at[1], k < 0 ? 8 : 5, k < 0 ? "none" : "#4477aa",
            k < 0 ? "start " : "m", k < 0 ? 0 : k, c[0], c[1], c[2], c[3]);
  }
  fputs("</svg>\n", f);
}

// Of member k; below 0 of the planner's own answer.
static char *search_path(const char *dir, int k, const char *end) {
  const size_t n = strlen(dir) + 64;
  char *path = (char *)memory(n);
  if (k < 0) (void)snprintf(path, n, "%s/start.%s", dir, end);
  else (void)snprintf(path, n, "%s/m%d.%s", dir, k, end);
  return path;
}

static void put_costs(const double *c) {
  for (int k = 0; k < COSTS; k++) {
    printf("%s\"%s\": ", k > 0 ? ", " : "", cost_names[k]);
    put_number(c[k]);
  }
}

static void search_write(const search *s, const char *dir) {
#if POSIX
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    die(SYSTEM_FAILED, NULL, "%s: %s", dir, strerror(errno));
#endif
  for (int k = s->own.cost[0] < 0 ? 0 : -1; k < s->n; k++) {
    const member *m = k < 0 ? &s->own : &s->front[k];
    fputs(m->program, output_stream(search_path(dir, k, "ein")));
    fputs(m->schedule, output_stream(search_path(dir, k, "schedule")));
  }
  if (s->own.cost[0] < 0) {
    (void)remove(search_path(dir, -1, "ein"));
    (void)remove(search_path(dir, -1, "schedule"));
  }
  // What a larger front left there before is no member of this one.
  for (int k = s->n; remove(search_path(dir, k, "ein")) == 0; k++)
    (void)remove(search_path(dir, k, "schedule"));
  char *svg = search_path(dir, 0, "svg");
  (void)snprintf(svg, strlen(dir) + 64, "%s/front.svg", dir);
  search_picture(s, svg);
}

static void search_json(const search *s, const char *dir, double seconds) {
  fputs("{\"start\": ", stdout);
  if (s->own.cost[0] < 0) fputs("null", stdout);
  else putchar('{'), put_costs(s->own.cost), putchar('}');
  fputs(", \"front\": [", stdout);
  for (int k = 0; k < s->n; k++) {
    fputs(k > 0 ? ",\n {" : "\n {", stdout);
    put_costs(s->front[k].cost);
    for (int i = 0; i < 2; i++) {
      fputs(i > 0 ? ", \"schedule\": " : ", \"program\": ", stdout);
      if (dir == NULL) fputs("null", stdout);
      else put_json_string(search_path(dir, k, i > 0 ? "schedule" : "ein"));
    }
    putchar('}');
  }
  printf("], \"evaluated\": %d, \"search_seconds\": ", s->evaluated);
  put_number(seconds);
  puts("}");
}

static void search_table(const search *s, double seconds) {
  words cells = {NULL, 0};
  add_word(&cells, "member");
  for (int c = 0; c < COSTS; c++) add_word(&cells, cost_names[c]);
  for (int k = s->own.cost[0] < 0 ? 0 : -1; k < s->n; k++) {
    const double *c = k < 0 ? s->own.cost : s->front[k].cost;
    if (k < 0) add_word(&cells, "start");
    else add_cell(&cells, "m%d", k);
    add_cell(&cells, "%.6g", c[0]);
    for (int i = 1; i < COSTS; i++) add_cell(&cells, "%.10g", c[i]);
  }
  put_cells(stdout, &cells, 1 + COSTS, 1);
  printf("%d programs with schedules evaluated in %.3g seconds\n", s->evaluated, seconds);
}

static int command_search(void) {
  const char *path = program_argument("einsum search PROG.ein -p N --seconds S --out DIR");
  const char *dir = given(O_DIR), *name;
  search s;
  program p;
  memset(&s, 0, sizeof s);
  if (given(O_INPUTS) != NULL && strcmp(given(O_INPUTS), "dealt") == 0)
    misuse("held or outside", "inputs are dealt out in bytes alone, a search counts seconds");
  const double most = option_count(O_EVALUATIONS, 1e9);
  const double limit = option_seconds(O_SECONDS, most > 0 ? INFINITY : 10), begin = now(NULL);
  program_open(&p, path);
  program_inputs(&p, 1);
  program_parse(&p);
  s.p = &p;
  option_decompose(&p, 0, &s.desc, &s.machine, &name);
  s.full_work = s.desc.max_work;
  if (s.desc.max_work <= 0) s.desc.max_work = 2e6;
  s.random = mix(option_seed());
  s.own.cost[0] = -1;
  for (int i = 0; i < AT_ONCE; i++) {
    const ein_status st = ein_ctx_create(NULL, &s.at[i].ctx);
    if (st != EIN_OK) die_library(NULL, st, NULL);
  }
  progress_begin("searching", "programs", most);
  search_first(&s);
  // Where nothing was found for as long as all of the search before, more is not worth its cost.
  while (s.n > 0 && now(NULL) - begin < limit &&
         (most > 0 ? s.evaluated < most : s.evaluated < 2 * s.last + 200)) {
    search_step(&s);
    if (most > 0 && s.evaluated + s.nat >= most) search_flush(&s);
  }
  search_flush(&s);
  for (int i = 0; i < AT_ONCE; i++) ein_ctx_destroy(s.at[i].ctx);
  progress_end();
  if (s.n == 0) {
    ein_schedule_destroy(fit_schedule(&p, &s.desc));  // which says how much is enough
    die(WRONG_INPUT, NULL, "no plan keeps within %.10g bytes at a place", s.machine.memory);
  }
  qsort(s.front, (size_t)s.n, sizeof *s.front, member_before);
  if (dir != NULL) search_write(&s, dir);
  const double seconds = now(NULL) - begin;
  if (given(O_JSON) != NULL) search_json(&s, dir, seconds);
  else search_table(&s, seconds);
  return finish(p.ctx, NULL, p.graph);
}
