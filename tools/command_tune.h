// SPDX-License-Identifier: MIT
//
// command_tune.h - `einsum tune`: what is fastest, measured, for a store; `einsum store`: files.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// What is measured: an expression, or a statement of a program.
typedef struct subject {
  ein_ctx *ctx;
  const ein_einsum_desc *d;  // or NULL
  const ein_graph *g;        // or NULL
  ein_options search;
  ein_run run;
  const char *name;
} subject;

typedef struct candidate {
  const char *path;  // NULL: as planned
  ein_plan *plan;
  char *record;                // up to the times
  void *workspace;
  double *time, best;
  int n, dropped;
} candidate;

enum {
  CANDIDATES_MOST = 256,
  PATHS_KEPT = 2,              // whose kernels are all tried
  FINALISTS = 3,
  ROUNDS_LEAST = 7, ROUNDS_MOST = 4096  // of the comparison that decides
};
// So much faster than the plan without tuning must another be, as a ratio of medians and as one of
// least times; else noise would choose.
static const double tune_gain = 1.05;
static const double tune_seconds = 2;  // for each statement, unless --budget says otherwise
static const char *const tune_paths[] = {"none", "naive", "greedy", "dp"};

static ein_plan *plan_subject(const subject *s, const char *path, const char *variant,
                              ein_status *st) {
  ein_plan *p = NULL;
  ein_options o = s->search;
  o.path = path;
  o.variant = variant;
  if (s->g != NULL) {
    *st = ein_plan_graph(s->ctx, s->g, 0, NULL, &o, &p);
  } else {
    ein_einsum_desc d = *s->d;
    d.options = o;
    *st = ein_plan_create(s->ctx, &d, &p);
  }
  if (*st == EIN_ERR_NO_MEMORY || (*st != EIN_OK && path == NULL && variant == NULL))
    die_library(s->ctx, *st, NULL);
  return p;
}

// The record of a plan; NULL: it has none.
static char *record_of(const ein_plan *p, double seconds, double untuned) {
  const size_t n = ein_plan_store(p, seconds, untuned, NULL, 0);
  if (n == 0) return NULL;
  char *s = (char *)memory(n + 1);
  (void)ein_plan_store(p, seconds, untuned, s, n + 1);
  return s;
}

// The record's fields without the times.
static char *choice_of(const ein_plan *p) {
  char *s = record_of(p, 0, 0);
  if (s != NULL) s[strlen(s) - 5] = 0;  // tab 0 tab 0 newline
  return s;
}

// Adds what can be planned so, and is not there yet.
static candidate *add_candidate(const subject *s, candidate *c, int *n, const char *path,
                                const char *variant) {
  ein_status st;
  if (*n == CANDIDATES_MOST) return NULL;
  ein_plan *p = plan_subject(s, path, variant, &st);
  if (p == NULL) return NULL;
  candidate *x = &c[*n];
  memset(x, 0, sizeof *x);
  x->record = choice_of(p);
  int known = x->record == NULL;
  for (int i = 0; i < *n && !known; i++) known = strcmp(c[i].record, x->record) == 0;
  if (known) {
    ein_plan_destroy(p);
    return NULL;
  }
  x->path = path;
  x->plan = p;
  x->best = HUGE_VAL;
  x->workspace = memory(ein_plan_workspace(p));
  x->time = (double *)memory(sizeof *x->time * ROUNDS_MOST);
  ++*n;
  return x;
}

static double time_once(const subject *s, candidate *c, int64_t repeat) {
  ein_run run = s->run;
  run.workspace = c->workspace;
  const double start = now(NULL);
  for (int64_t i = 0; i < repeat; i++) execute(c->plan, &run);
  const double t = (now(NULL) - start) / (double)repeat;
  if (t < c->best) c->best = t;
  return t;
}

// Runs that take 20 microseconds together, so that the clock is no part of it.
static int64_t runs_timed(double once) {
  return once < 2e-5 ? (int64_t)(2e-5 / (once > 1e-8 ? once : 1e-8)) + 1 : 1;
}

// The best of a few runs, of those that are much slower than the best so far of one.
static void time_quickly(const subject *s, candidate *c, double best, double until) {
  double t = time_once(s, c, 1);
  if (t > 3 * best) return;
  for (int i = 0; i < 5 && now(NULL) < until; i++) (void)time_once(s, c, runs_timed(c->best));
}

static int by_best(const void *a, const void *b) {
  const double x = ((const candidate *)a)->best, y = ((const candidate *)b)->best;
  return (x > y) - (x < y);
}

// The variants that the tasks of a plan by a path have.
static words known_variants(const subject *s, const char *path) {
  words w = {NULL, 0};
  ein_status st;
  ein_plan *p = plan_subject(s, path, "any", &st);
  const char *list = plan_text(p, ein_plan_variants), *end;
  for (; (end = strchr(list, '\n')) != NULL; list = end + 1)
    add_word(&w, copy_text(list, (size_t)(end - list)));
  ein_plan_destroy(p);
  return w;
}

static double median_of(double *t, int n) {
  qsort(t, (size_t)n, sizeof *t, by_size);
  return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

// Candidates in turn, until the time is over: who is measurably faster than the first, or that.
static candidate *decide(const subject *s, candidate **c, int n, double until) {
  int round = 0;
  for (; round < ROUNDS_LEAST || (round < ROUNDS_MOST && now(NULL) < until); round++)
    for (int i = 0; i < n; i++) c[i]->time[round] = time_once(s, c[i], runs_timed(c[i]->best));
  candidate *best = c[0];
  for (int i = 0; i < n; i++) c[i]->best = median_of(c[i]->time, round);
  for (int i = 1; i < n; i++)
    if (c[i]->best * tune_gain < c[0]->best && c[i]->best < best->best &&
        c[i]->time[0] * tune_gain < c[0]->time[0])  // sorted
      best = c[i];
  return best;
}

typedef struct tuned {
  char *record;
  double seconds, untuned;
} tuned;

// All candidates of a subject, the plan without tuning first. *record NULL: it has no form.
static tuned tune_subject(const subject *s, int npath, const char *const *path, double seconds) {
  candidate *c = (candidate *)memory(sizeof *c * CANDIDATES_MOST), *last[FINALISTS + 1], *won;
  const double start = now(NULL);
  tuned t = {NULL, 0, 0};
  int n = 0;
  candidate *first = add_candidate(s, c, &n, NULL, NULL);
  if (first == NULL) return t;
  for (int k = 0; k < npath; k++) (void)add_candidate(s, c, &n, path[k], NULL);
  double best = HUGE_VAL;
  for (int i = 0; i < n; i++) {
    time_quickly(s, &c[i], best, start + 0.3 * seconds);
    if (c[i].best < best) best = c[i].best;
  }
  qsort(c + 1, (size_t)n - 1, sizeof *c, by_best);
  const int paths = n;
  // The steps found, as a path of its own: with a variant they are not weighed anew.
  const char *steps = s->d != NULL && s->d->nin > 2 ? plan_text(first->plan, ein_plan_path) : "";
  for (int i = 0, kept = 0; i < paths && kept < PATHS_KEPT; i++) {
    if (c[i].best > 2 * best) continue;
    const char *p = i == 0 && steps[0] != 0 ? steps : c[i].path;
    const words w = known_variants(s, p);
    kept++;
    for (int k = 0; k < w.n && now(NULL) < start + 0.6 * seconds; k++) {
      candidate *x = add_candidate(s, c, &n, p, w.v[k]);
      if (x == NULL) continue;
      time_quickly(s, x, best, start + 0.6 * seconds);
      if (x->best < best) best = x->best;
    }
  }
  qsort(c + 1, (size_t)n - 1, sizeof *c, by_best);
  int m = 0;
  for (int i = 0; i < n && m <= FINALISTS; i++)
    if (i == 0 || c[i].best < 1.5 * best) last[m++] = &c[i];
  won = decide(s, last, m, start + seconds);
  t.seconds = won->best;
  t.untuned = c[0].best;
  t.record = record_of(won->plan, t.seconds, t.untuned);
  for (int i = 0; i < n; i++) ein_plan_destroy(c[i].plan);
  return t;
}

// Data for a plan: random inputs, params of 1 where there is no default.
static void bind_random(subject *s, const ein_plan *p) {
  ein_tensor_info t;
  ein_param_info q;
  int nin = 0, nout = 0, nparam = 0;
  while (ein_plan_input(p, nin, &t)) nin++;
  while (ein_plan_output(p, nout, &t)) nout++;
  while (ein_plan_param(p, nparam, &q)) nparam++;
  const void **in = (const void **)memory(sizeof *in * ((size_t)nin + 1));
  void **out = (void **)memory(sizeof *out * ((size_t)nout + 1));
  ein_scalar *param = (ein_scalar *)memory(sizeof *param * ((size_t)nparam + 1));
  for (int k = 0; k < nin + nout; k++) {
    array a;
    memset(&a, 0, sizeof a);
    (void)(k < nin ? ein_plan_input(p, k, &t) : ein_plan_output(p, k - nin, &t));
    a.name = t.name;
    set_shape(&a, t.dtype, t.rank, t.shape, 0);
    allocate(&a);
    if (k < nin) fill_random(&a, option_seed(), k);
    if (k < nin) in[k] = a.v.data;
    else out[k - nin] = a.v.data;
  }
  for (int k = 0; ein_plan_param(p, k, &q); k++)
    if (!q.has_default) param[k].set = 1, param[k].re = 1;
  memset(&s->run, 0, sizeof s->run);
  s->run.in = in;
  s->run.out = out;
  s->run.param = param;
}

// name NULL: of the whole program.
static void report_tuned(const char *name, const tuned *t) {
  const char *path = t->record, *variant, *end;
  for (int f = 0; f < 4; f++) path = strchr(path, '\t') + 1;
  variant = strchr(path, '\t') + 1;
  end = strchr(variant, '\t');
  if (given(O_JSON) != NULL) {
    fputs("{\"statement\": ", stdout);
    if (name == NULL) fputs("null", stdout);
    else put_json_string(name);
    printf(", \"untuned_seconds\": %.17g, \"seconds\": %.17g, \"gain\": %.17g, \"path\": ",
           t->untuned, t->seconds, t->untuned / t->seconds);
    put_json_string(copy_text(path, (size_t)(variant - path) - 1));
    fputs(", \"variant\": ", stdout);
    put_json_string(copy_text(variant, (size_t)(end - variant)));
    puts("}");
    return;
  }
  put_clean(stdout, name == NULL ? "program" : name);
  printf(": %.4g us, untuned %.4g us, gain %.3g; path %.*s, variant %.*s\n", t->seconds * 1e6,
         t->untuned * 1e6, t->untuned / t->seconds, (int)(variant - path) - 1, path,
         (int)(end - variant), variant);
}

// A store of records that are added to it.
static text new_store(void) {
  const content none = merge_stores(0, NULL);
  text all = {NULL, 0, 0};
  add_text(&all, none.s, none.n);
  return all;
}

static void keep_store(const text *all) {
  const content records = {all->s, all->n};
  update_store(store_path(), 1, &records);
}

static int tune_expression(const char *expr) {
  job j;
  subject s;
  int n;
  memset(&j, 0, sizeof j);
  memset(&s, 0, sizeof s);
  array *in = shapes_of_operands(expr, &n);
  const double seconds = option_seconds(O_BUDGET, tune_seconds);
  j.ctx = make_ctx();
  job_plan(&j, expr, n, in, EIN_NONE);
  s.ctx = j.ctx;
  s.d = &j.d;
  s.search.seed = option_seed();
  bind_random(&s, j.plan);
  progress_begin("tuning", NULL, seconds);
  const tuned t = tune_subject(&s, n > 2 ? 4 : 0, tune_paths, seconds);
  progress_end();
  if (t.record == NULL) die(WRONG_INPUT, NULL, "'%s' has no normal form that ends in time", expr);
  text all = new_store();
  add_text(&all, t.record, strlen(t.record));
  keep_store(&all);
  report_tuned(expr, &t);
  return finish(j.ctx, j.plan, NULL);
}

// How a program is planned.
typedef struct planned {
  const text *records;  // of a store; NULL: none
  int ungrouped;
} planned;

// Two plans of a program, measured in turn: which is measurably faster, or the first.
static candidate *compare_programs(program *p, const planned how[2], candidate c[2],
                                   double seconds) {
  subject s;
  candidate *both[2] = {&c[0], &c[1]};
  ein_status st;
  memset(&s, 0, sizeof s);
  memset(c, 0, 2 * sizeof *c);
  s.ctx = p->ctx;
  s.g = p->graph;
  for (int k = 0; k < 2; k++) {
    const text *t = how[k].records;
    st = ein_ctx_store(p->ctx, t == NULL ? "" : t->s, t == NULL ? 0 : t->n);
    if (st != EIN_OK) die_library(p->ctx, st, NULL);
    s.search.ungrouped = how[k].ungrouped;
    c[k].plan = plan_subject(&s, NULL, NULL, &st);
    c[k].workspace = memory(ein_plan_workspace(c[k].plan));
    c[k].time = (double *)memory(sizeof *c[k].time * ROUNDS_MOST);
    c[k].best = HUGE_VAL;
    if (k == 0) bind_random(&s, c[k].plan);
    (void)time_once(&s, &c[k], 1);
  }
  return decide(&s, both, 2, now(NULL) + seconds);
}

// Does the record choose anything but what is planned anyway?
static int chooses(const tuned *t) { return strstr(t->record, "\tauto\t-\t") == NULL; }

// Is the program faster where its statements run one by one? Then that is a record, too: 1.
static int tune_groups(program *p, text *records, double seconds) {
  const planned how[2] = {{records, 0}, {records, 1}};
  candidate c[2];
  const candidate *won = compare_programs(p, how, c, seconds);
  const tuned t = {record_of(won->plan, won->best, c[0].best), won->best, c[0].best};
  if (t.record != NULL) {
    add_text(records, t.record, strlen(t.record));
    report_tuned(NULL, &t);
  }
  for (int k = 0; k < 2; k++) ein_plan_destroy(c[k].plan);
  return t.record != NULL && chooses(&t);
}

// Is the program faster with the records? Else they are not kept.
static int program_gains(program *p, const text *records, double seconds) {
  const planned how[2] = {{NULL, 0}, {records, 0}};
  candidate c[2];
  (void)compare_programs(p, how, c, seconds);
  for (int k = 0; k < 2; k++) ein_plan_destroy(c[k].plan);
  if (given(O_JSON) == NULL)
    printf("all: %.4g us, untuned %.4g us, gain %.3g\n", c[1].best * 1e6, c[0].best * 1e6,
           c[0].best / c[1].best);
  return c[1].best <= c[0].best || c[1].time[0] <= c[0].time[0];
}

static int tune_program(void) {
  program p;
  text all = new_store();
  words seen = {NULL, 0};
  int chosen = 0;
  program_open(&p, program_argument("einsum tune (EXPR | PROG.ein) --store FILE"));
  program_inputs(&p, 1);
  program_parse(&p);
  const double seconds = option_seconds(O_BUDGET, tune_seconds);
  const int64_t n = ein_graph_statements(p.graph);
  progress_begin("tuning", "statements", (double)n);
  for (int64_t i = 0; i < n; i++) {
    ein_graph *alone = NULL;
    subject s;
    ein_status st = ein_graph_statement(p.ctx, p.graph, i, &alone);
    if (st == EIN_ERR_UNSUPPORTED) continue;
    if (st != EIN_OK) die_library(p.ctx, st, p.file);
    memset(&s, 0, sizeof s);
    s.ctx = p.ctx;
    s.g = alone;
    s.search.seed = option_seed();
    ein_plan *plan = plan_subject(&s, NULL, NULL, &st);
    char *key = choice_of(plan);
    int known = key == NULL;
    for (int k = 0; k < seen.n && !known; k++) known = strcmp(seen.v[k], key) == 0;
    if (!known) {
      ein_tensor_info out;
      add_word(&seen, key);
      bind_random(&s, plan);
      const tuned t = tune_subject(&s, 4, tune_paths, seconds);
      chosen |= chooses(&t);
      add_text(&all, t.record, strlen(t.record));
      progress_end();
      report_tuned(ein_plan_output(plan, 0, &out) ? out.name : "?", &t);
      progress_begin("tuning", "statements", (double)n);
    }
    ein_plan_destroy(plan);
    ein_graph_destroy(alone);
    progress_step();
  }
  progress_end();
  if (n > 1) chosen |= tune_groups(&p, &all, seconds);
  if (!chosen || program_gains(&p, &all, seconds)) keep_store(&all);
  else puts("nothing is kept: the whole program is not faster");
  return finish(p.ctx, NULL, p.graph);
}

// ---- schedules in the names of the normal form, over places

// A plan over places that is measured; said: the setting of its parameters, NULL: a decomposition.
typedef struct placed {
  char *said, *commands;       // in the form's names
  ein_schedule *s;
  ein_dist *d;
  double best, *time;
} placed;

static double time_placed(const ein_dist *d, const ein_run *run) {
  const double start = now(NULL);
  const ein_status st = ein_dist_execute(d, run, NULL);
  if (st != EIN_OK) die(exit_status(st), NULL, "%s", ein_status_text(st));
  return now(NULL) - start;
}

// Random inputs of a program, params of 1 where there is no default.
static ein_run random_run(const program *p) {
  ein_tensor_info t;
  ein_param_info q;
  ein_run run;
  const size_t n = (size_t)ein_graph_tensors(p->graph) + 1;
  const void **in = (const void **)memory(sizeof *in * n);
  void **out = (void **)memory(sizeof *out * n);
  ein_scalar *param = (ein_scalar *)memory(sizeof *param *
                                           ((size_t)ein_graph_params(p->graph) + 1));
  int nin = 0, nout = 0;
  for (int k = 0; ein_graph_tensor(p->graph, k, &t); k++) {
    array a;
    if (t.role == EIN_ROLE_TEMP) continue;
    memset(&a, 0, sizeof a);
    a.name = t.name;
    set_shape(&a, t.dtype, t.rank, t.shape, 0);
    allocate(&a);
    if (t.role == EIN_ROLE_INPUT) fill_random(&a, option_seed(), nin);
    if (t.role == EIN_ROLE_INPUT) in[nin++] = a.v.data;
    else out[nout++] = a.v.data;
  }
  for (int k = 0; ein_graph_param(p->graph, k, &q); k++)
    if (!q.has_default) param[k].set = 1, param[k].re = 1;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.param = param;
  return run;
}

static int by_placed(const void *a, const void *b) {
  const double x = ((const placed *)a)->best, y = ((const placed *)b)->best;
  return (x > y) - (x < y);
}

// A plan of the program under a setting.
static ein_status placed_make(const program *p, const normal_form *f, const ein_fabric *at,
                       const ein_machine *machine, placed *x) {
  ein_schedule_desc how;
  ein_dist_desc run;
  memset(&how, 0, sizeof how);
  memset(&run, 0, sizeof run);
  how.text = form_named(f, x->commands);
  how.places = at->places;
  how.machine = machine;
  ein_status st = ein_schedule_create(p->ctx, p->graph, &how, &x->s);
  if (st != EIN_OK) return st;
  run.fabric = at;
  run.schedule = x->s;
  st = ein_dist_create(p->ctx, p->graph, &run, &x->d);
  if (st != EIN_OK) ein_schedule_destroy(x->s);
  return st;
}

// The plan without a schedule first, then those of all settings; *n of them.
static placed *placed_all(program *p, const normal_form *f, const ein_fabric *at,
                          const ein_decomposition *how, const ein_machine *machine, int *n) {
  parameter q[PARAMETERS_MOST];
  size_t length;
  int nq;
  int64_t settings = 1;
  placed *all = (placed *)memory(sizeof *all * (CANDIDATES_MOST + 1));
  char *file = read_text(given(O_SCHEDULE), &length);
  form_parameters(file, q, &nq);
  for (int i = 0; i < nq; i++) settings *= q[i].value.n;
  if (settings > CANDIDATES_MOST)
    die(WRONG_INPUT, NULL, "%s: more than %d settings of parameters", given(O_SCHEDULE),
        CANDIDATES_MOST);
  memset(all, 0, sizeof *all * (CANDIDATES_MOST + 1));
  ein_dist_desc run;
  memset(&run, 0, sizeof run);
  run.fabric = at;
  run.decomposition = how;
  ein_status st = ein_dist_create(p->ctx, p->graph, &run, &all[0].d);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  *n = 1;
  for (int64_t k = 0; k < settings; k++) {
    placed *x = &all[*n];
    x->commands = form_setting(file, q, nq, k, &x->said);
    st = placed_make(p, f, at, machine, x);  // some settings may be no schedule
    if (st == EIN_OK) ++*n;
  }
  if (*n == 1) die_library(p->ctx, st, given(O_SCHEDULE));
  return all;
}

// Which is measurably faster than the first, or the first.
static placed *placed_decide(placed *x, int n, const ein_run *run, double seconds) {
  const double start = now(NULL);
  int round = 0;
  for (int i = 0; i < n; i++) {
    x[i].time = (double *)memory(sizeof(double) * ROUNDS_MOST);
    (void)time_placed(x[i].d, run);
    x[i].best = time_placed(x[i].d, run);
  }
  qsort(x + 1, (size_t)n - 1, sizeof *x, by_placed);
  const int last = n > FINALISTS + 1 ? FINALISTS + 1 : n;
  for (; round < ROUNDS_LEAST || (round < ROUNDS_MOST && now(NULL) < start + seconds); round++)
    for (int i = 0; i < last; i++) x[i].time[round] = time_placed(x[i].d, run);
  placed *best = x;
  for (int i = 0; i < last; i++) x[i].best = median_of(x[i].time, round);
  for (int i = 1; i < last; i++)
    if (x[i].best * tune_gain < x[0].best && x[i].best < best->best &&
        x[i].time[0] * tune_gain < x[0].time[0])
      best = &x[i];
  return best;
}

static void report_placed(const placed *won, const placed *first) {
  if (given(O_JSON) != NULL) {
    printf("{\"untuned_seconds\": %.17g, \"seconds\": %.17g, \"gain\": %.17g, \"setting\": ",
           first->best, won->best, first->best / won->best);
    if (won->said == NULL) fputs("null", stdout);
    else put_json_string(won->said);
    puts("}");
    return;
  }
  printf("program: %.4g us, decomposed %.4g us, gain %.3g", won->best * 1e6, first->best * 1e6,
         first->best / won->best);
  if (won->commands == NULL) puts("; nothing is kept: no schedule is faster");
  else printf("; the schedule%s%s is kept\n", won->said[0] != 0 ? " with " : "", won->said);
}

// The schedule as the record keeps it: on a line.
static void keep_placed(const program *p, const normal_form *f, const ein_fabric *at,
                        const placed *won, const placed *first) {
  text all = new_store();
  const size_t from = all.n;
  char b[80];
  add_string(&all, form_record(p, f, at->places, at->name));
  for (char *line = strtok(won->commands, "\n"); line; line = strtok(NULL, "\n")) {
    size_t k = strlen(line);
    line += strspn(line, " \t");
    k = strlen(line);
    for (size_t i = 0; i < k; i++)
      if (line[i] == '\t' || line[i] == '\r') line[i] = ' ';
    if (k > 0) add_string(&all, line);
    if (k > 0) add_string(&all, "; ");
  }
  snprintf(b, sizeof b, "\t%.0f\t%.0f\n", won->best * 1e9, first->best * 1e9);
  add_string(&all, b);
  if (all.n - from >= 65536)
    die(WRONG_INPUT, NULL, "%s: the program's form and the schedule are too long for a store",
        p->file);
  keep_store(&all);
}

// einsum tune PROG.ein -p N --schedule FILE: is the program faster so than decomposed?
static int tune_schedules(void) {
  program p;
  normal_form f;
  ein_decompose_desc desc;
  ein_machine machine;
  ein_schedule *steps;
  const char *name;
  int n;
  if (given(O_PLACES) == NULL) misuse("-p N", "a schedule is for a number of places");
  program_open(&p, program_argument("einsum tune PROG.ein -p N --schedule FILE --store FILE"));
  program_inputs(&p, 1);
  program_parse(&p);
  if (p.commands) misuse(NULL, "%s has a schedule of its own", p.file);
  ein_fabric at = run_fabric(&p);
  if (at.count < at.places) misuse(NULL, "--fabric mpi does not go with tune");
  if (!form_of(&p, &f)) die(WRONG_INPUT, NULL, "%s has no normal form that ends in time", p.file);
  option_decompose(&p, at.threads, &desc, &machine, &name);
  desc.p = at.places;
  const ein_decomposition *how = decompose(&p, &desc, &machine, &steps);
  if (how == NULL) misuse(NULL, "with --memory nothing is tuned");
  placed *all = placed_all(&p, &f, &at, how, &machine, &n);
  const ein_run run = random_run(&p);
  const double seconds = option_seconds(O_BUDGET, tune_seconds);
  progress_begin("tuning", NULL, seconds);
  const placed *won = placed_decide(all, n, &run, seconds);
  progress_end();
  if (won->commands != NULL) keep_placed(&p, &f, &at, won, &all[0]);
  report_placed(won, &all[0]);
  for (int i = 0; i < n; i++) ein_dist_destroy(all[i].d), ein_schedule_destroy(all[i].s);
  ein_decomposition_destroy((ein_decomposition *)(uintptr_t)how);
  form_end(&f);
  ein_fabric_destroy(&at);
  return finish(p.ctx, NULL, p.graph);
}

static int command_tune(void) {
  if (store_path() == NULL)
    misuse("--store FILE, or EINSUM_STORE in the environment", "there is no store to write to");
  check_target(store_path());
  if (given(O_SCHEDULE) != NULL) return tune_schedules();
  return args.n > 0 && !is_program(args.v[0]) ? tune_expression(expression()) : tune_program();
}

// einsum store merge FILE .. -o FILE
static int command_store(void) {
  const char *how = "einsum store merge FILE ... -o FILE";
  if (args.n < 2 || strcmp(args.v[0], "merge") != 0) misuse(how, "files to merge are missing");
  if (opt[O_OUT].n != 1) misuse(how, "merge needs one -o FILE");
  const int n = args.n - 1;
  content *b = (content *)memory(sizeof *b * (size_t)n);
  for (int k = 0; k < n; k++) b[k] = read_store(args.v[k + 1], 1);
  if (strcmp(given(O_OUT), "-") == 0) {
    const content all = merge_stores(n, b);
    (void)fwrite(all.s, 1, all.n, stdout);
  } else {
    check_target(given(O_OUT));
    update_store(given(O_OUT), n, b);
  }
  return finish(NULL, NULL, NULL);
}

// What is in the store, for info.
static void info_store(const ein_ctx *ctx, int json) {
  ein_store_info s;
  const int has = ein_ctx_store_info(ctx, &s);
  if (json && !has) fputs(", \"store\": null", stdout);
  if (json && has) {
    fputs(", \"store\": {\"file\": ", stdout);
    put_json_string(store_path());
    fputs(", \"machine\": ", stdout);
    put_json_string(s.machine == NULL ? "any" : s.machine);
    printf(", \"records\": %" PRId64 ", \"mine\": %" PRId64 ", \"skipped\": %" PRId64 "}",
           s.records, s.mine, s.skipped);
  }
  if (json) return;
  printf("store     %s", has ? "" : "none; --store FILE or EINSUM_STORE names one\n");
  if (!has) return;
  put_clean(stdout, store_path());
  printf(": %" PRId64 " record%s, %" PRId64 " of this machine (%s)\n", s.records,
         s.records == 1 ? "" : "s", s.mine, s.machine == NULL ? "any" : s.machine);
}
