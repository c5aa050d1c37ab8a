// SPDX-License-Identifier: MIT
//
// command_schedule.h - machines, distributions and schedules: --schedule, and those of programs.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// ================================================================================================
// Schedules.
// ================================================================================================

// What is said for that many places; NULL: nothing.
static ein_schedule *schedule_of(const program *p, int64_t places) {
  const char *file = given(O_SCHEDULE);
  static ein_schedule *s;  // where a leak check finds it when a mistake ends the program
  ein_schedule_desc how;
  memset(&how, 0, sizeof how);
  how.places = places;
  if (p->commands && file != NULL)
    misuse(NULL, "%s has a schedule of its own: --schedule does not go with it", p->file);
  if (!p->commands && file == NULL) return NULL;
  if (p->commands && given(O_DETERMINISTIC) != NULL)
    misuse(NULL, "a schedule behind the statements does not go with --deterministic: give it in a "
           "file by --schedule");
  if (file != NULL) how.text = read_text(file, &how.length);
  const ein_status st = ein_schedule_create(p->ctx, p->graph, &how, &s);
  if (st != EIN_OK) die_library(p->ctx, st, file != NULL ? file : p->file);
  return s;
}

// Does it say how a statement's loops run?
static int has_loops(const program *p, const ein_schedule *s) {
  ein_loop loop;
  int any = 0;
  for (int k = 0; s != NULL && k < ein_graph_statements(p->graph); k++)
    any |= ein_schedule_loop(s, k, 0, &loop);
  return any;
}

NORETURN static void die_loops(const char *why) {
  die(WRONG_INPUT, "einsum plan prints what they move", "%s: steps of schedules are not simulated",
      why);
}

// Where tensors are placed becomes pins of the decomposition.
static void schedule_pins(const program *p, const ein_schedule *s, ein_decompose_desc *d) {
  words pins = {NULL, 0};
  char pin[1024];
  ein_tensor_info t;
  for (int k = 0; k < d->npin; k++) add_word(&pins, d->pin[k]);
  for (int k = 0; s != NULL && ein_graph_tensor(p->graph, k, &t); k++) {
    const ein_status st = ein_schedule_pin(p->ctx, s, k, pin, sizeof pin);
    if (st != EIN_OK) die_library(p->ctx, st, NULL);
    if (pin[0] != 0) add_word(&pins, copy_text(pin, strlen(pin)));
  }
  d->pin = pins.v;
  d->npin = pins.n;
}

static char *schedule_text(const ein_schedule *s) {
  const size_t n = ein_schedule_print(s, NULL, 0);
  char *line = (char *)memory(n + 1);
  (void)ein_schedule_print(s, line, n + 1);
  return line;
}

static char *distribution_text(const ein_distribution *d) {
  const size_t n = ein_distribution_print(d, NULL, 0);
  char *line = (char *)memory(n + 1);
  (void)ein_distribution_print(d, line, n + 1);
  return line;
}

// The loops of a statement: those over places with their dimension, those over time with their
// steps, and behind a bar those that are whole in a step.
static char *loops_text(const ein_schedule *s, int stmt) {
  text t = {NULL, 0, 0};
  ein_loop x;
  ein_grid_dim dim;
  int whole = 0;
  char b[256];
  add_text(&t, "", 0);
  for (int k = 0; ein_schedule_loop(s, stmt, k, &x); k++) {
    const int in = x.kind == EIN_LOOP_WHOLE || x.kind == EIN_LOOP_PARALLEL;
    if (in && !whole) add_text(&t, k > 0 ? " |" : "|", k > 0 ? 2 : 1);
    whole |= in;
    int n = snprintf(b, sizeof b, "%s%.80s", t.n > 0 ? " " : "", x.name);
    if (x.kind == EIN_LOOP_PLACE &&
        ein_grid_dimension(ein_schedule_grid(s, stmt), x.dimension, &dim))
      n += snprintf(b + n, sizeof b - (size_t)n, "@%.80s", dim.name);
    else if (x.kind == EIN_LOOP_TIME)
      n += snprintf(b + n, sizeof b - (size_t)n, "*%" PRId64, x.extent);
    else if (x.kind == EIN_LOOP_PARALLEL) n += snprintf(b + n, sizeof b - (size_t)n, "!");
    add_text(&t, b, (size_t)n);
  }
  return t.s;
}

// What statements of a schedule move and take at a place.
typedef struct scheduled {
  ein_schedule_info *each;
  double *peak, most;       // of statements; the largest
  int64_t places, bytes;
} scheduled;

static scheduled scheduled_of(const program *p, const ein_schedule *s,
                              const ein_decompose_desc *desc) {
  const int n = (int)ein_graph_statements(p->graph);
  scheduled x = {NULL, NULL, 0, 0, 0};
  x.places = desc->p;
  x.each = (ein_schedule_info *)memory(sizeof *x.each * ((size_t)n + 1));
  x.peak = (double *)memory(sizeof *x.peak * ((size_t)n + 1));
  for (int i = 0; i < n; i++) {
    const ein_status st = ein_schedule_cost(p->ctx, s, i, NULL, NULL, &x.each[i]);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
    x.bytes += x.each[i].bytes;
  }
  const ein_status st = ein_schedule_peaks(p->ctx, s, desc->inputs, x.peak, NULL);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  for (int i = 0; i < n; i++) x.most = fmax(x.most, x.peak[i]);
  if (given(O_MEMORY) != NULL && x.most > (double)option_memory())
    die(WRONG_INPUT, NULL, "under the schedule a place has %.10g bytes alive, more than the %.10g "
        "it may have", x.most, (double)option_memory());
  return x;
}

static void schedule_json(const program *p, const ein_schedule *s, const scheduled *x) {
  const ein_schedule_info *each = x->each;
  const int64_t places = x->places;
  ein_grid_dim dim;
  ein_loop loop;
  ein_tensor_info t;
  static const char *const kinds[] = {"place", "time", "parallel", "whole"};
  printf("{\"p\": %" PRId64 ", \"machine\": [", places);
  for (int k = 0; ein_grid_dimension(ein_schedule_grid(s, -1), k, &dim); k++) {
    fputs(k > 0 ? ", {\"name\": " : "{\"name\": ", stdout);
    put_json_string(dim.name);
    printf(", \"extent\": %" PRId64 ", \"level\": %d}", dim.extent, dim.level);
  }
  fputs("], \"tensors\": {", stdout);
  for (int k = 0, n = 0; ein_graph_tensor(p->graph, k, &t); k++) {
    const ein_distribution *d = ein_schedule_distribution(s, k);
    if (d == NULL) continue;
    if (n++ > 0) fputs(", ", stdout);
    put_json_string(t.name);
    fputs(": ", stdout);
    put_json_string(distribution_text(d));
  }
  fputs("}, \"statements\": [", stdout);
  for (int i = 0; i < ein_graph_statements(p->graph); i++) {
    fputs(i > 0 ? ", {\"out\": " : "{\"out\": ", stdout);
    put_json_string(each[i].out);
    fputs(", \"loops\": [", stdout);
    for (int k = 0; ein_schedule_loop(s, i, k, &loop); k++) {
      fputs(k > 0 ? ", {\"name\": " : "{\"name\": ", stdout);
      put_json_string(loop.name);
      printf(", \"kind\": \"%s\", \"extent\": %" PRId64 "}", kinds[loop.kind], loop.extent);
    }
    printf("], \"steps\": %" PRId64 ", \"tasks\": %" PRId64 ", \"messages\": %" PRId64
           ", \"bytes\": %" PRId64 ", \"fan\": %" PRId64 ", \"peak_bytes\": %.0f}",
           each[i].steps, each[i].tasks, each[i].messages, each[i].bytes, each[i].fan, x->peak[i]);
  }
  printf("], \"bytes\": %" PRId64, x->bytes);
  put_member("peak_bytes", x->most);
  put_member("memory", given(O_MEMORY) != NULL ? (double)option_memory() : NAN);
  fputs(", \"commands\": ", stdout);
  put_json_string(schedule_text(s));
  puts("}");
}

static void schedule_table(const program *p, const ein_schedule *s, const scheduled *x) {
  const char *head[] = {"line", "statement", "loops", "steps", "tasks", "messages", "bytes", "fan",
                        "peak"};
  const ein_schedule_info *each = x->each;
  words cells = {NULL, 0};
  ein_tensor_info t;
  for (size_t k = 0; k < sizeof head / sizeof *head; k++) add_word(&cells, head[k]);
  const int columns = cells.n;
  for (int i = 0; i < ein_graph_statements(p->graph); i++) {
    line_cell(&cells, each[i].line);
    add_word(&cells, each[i].out);
    add_word(&cells, loops_text(s, i));
    add_cell(&cells, "%" PRId64, each[i].steps);
    add_cell(&cells, "%" PRId64, each[i].tasks);
    add_cell(&cells, "%" PRId64, each[i].messages);
    add_cell(&cells, "%" PRId64, each[i].bytes);
    add_cell(&cells, "%" PRId64, each[i].fan);
    add_cell(&cells, "%.0f", x->peak[i]);
  }
  put_cells(stdout, &cells, columns, 3);
  for (int k = 0; ein_graph_tensor(p->graph, k, &t); k++) {
    const ein_distribution *d = ein_schedule_distribution(s, k);
    if (d != NULL) printf("%s %s\n", t.name, distribution_text(d));
  }
  printf("%" PRId64 " places; @: over places, *: steps, |: whole in a step; fan: most messages of "
         "a place in a step; peak: most bytes at a place\n", x->places);
}

// Options that say how statements are cut do not go with loops that say it.
static void schedule_only(void) {
  static const option_id none[] = {O_DECOMP, O_COST, O_PARTS, O_KEEP, O_PIN, O_SVG};
  for (size_t k = 0; k < sizeof none / sizeof *none; k++)
    if (opt[none[k]].n > 0)
      misuse(NULL, "%s does not apply: the schedule says how loops run", options[none[k]].name);
}

// Prints what a schedule moves.
static int plan_schedule(program *p, const ein_schedule *s, const ein_decompose_desc *desc) {
  if (given(O_SCHEDULE_OUT) != NULL) fputs(schedule_text(s), output_stream(given(O_SCHEDULE_OUT)));
  const scheduled x = scheduled_of(p, s, desc);
  if (given(O_EXPLAIN) != NULL) fputs(schedule_text(s), stderr);
  if (given(O_JSON) != NULL) schedule_json(p, s, &x);
  else schedule_table(p, s, &x);
  return finish(p->ctx, NULL, p->graph);
}

// The same of steps that were found because no decomposition fits the memory.
static int plan_steps_of(program *p, ein_schedule *s, const ein_decompose_desc *desc) {
  ein_fabric f = {0};
  ein_dist *made = NULL;
  if (given(O_SVG) != NULL) misuse(NULL, "--svg does not apply: steps have no picture");
  const ein_status st = plan_serial(p, desc->p, NULL, s, &f, &made);
  ein_dist_destroy(made);
  ein_fabric_destroy(&f);
  if (st != EIN_OK) die_library(p->ctx, st, "no decomposition fits the memory, and in steps");
  if (given(O_QUIET) == NULL && given(O_JSON) == NULL)
    puts("No decomposition fits the memory of places: statements go in steps.");
  const int status = plan_schedule(p, s, desc);
  ein_schedule_destroy(s);
  return status;
}

static void add_string(text *t, const char *s) { add_text(t, s, strlen(s)); }

// Writes a decomposition as a schedule that runs it, or says why there is none.
static void write_schedule(program *p, const ein_decomposition *d) {
  const char *path = given(O_SCHEDULE_OUT);
  ein_decomp_info info;
  ein_schedule_desc how;
  ein_schedule *s;
  ein_fabric f = {0};
  ein_dist *made = NULL;
  text t = {NULL, 0, 0};
  char b[256];
  if (path == NULL) return;
  ein_decomposition_info(d, &info);
  snprintf(b, sizeof b, "# A plan for %" PRId64 " places by %s.", info.p, info.method);
  add_string(&t, b);
  if (given(O_PATH) != NULL) snprintf(b, sizeof b, " With --path '%.180s'.", given(O_PATH));
  if (given(O_PATH) != NULL) add_string(&t, b);
  add_string(&t, " Statements:\n");
  for (char *line = strtok(graph_text(p->graph), "\n"); line; line = strtok(NULL, "\n")) {
    add_string(&t, "#   ");
    add_string(&t, line);
    add_string(&t, "\n");
  }
  const size_t n = ein_decomposition_schedule(p->graph, d, NULL, 0);
  char *said = (char *)memory(n + 1);
  (void)ein_decomposition_schedule(p->graph, d, said, n + 1);
  add_string(&t, said);
  memset(&how, 0, sizeof how);
  how.text = t.s;
  how.length = t.n;
  how.places = info.p;
  ein_status st = ein_schedule_create(p->ctx, p->graph, &how, &s);
  if (st == EIN_OK) st = plan_serial(p, info.p, NULL, s, &f, &made);
  ein_dist_destroy(made);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  if (st != EIN_OK) die_library(p->ctx, st, "the plan is no schedule");
  fputs(t.s, output_stream(path));
}
