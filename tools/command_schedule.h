// SPDX-License-Identifier: MIT
//
// command_schedule.h - machines, distributions and schedules: --schedule, and those of programs.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

static void add_string(text *t, const char *s) { add_text(t, s, strlen(s)); }

#include "command_forms.h"

// ================================================================================================
// Schedules.
// ================================================================================================

static char *schedule_text(const ein_schedule *s) {
  const size_t n = ein_schedule_print(s, NULL, 0);
  char *line = (char *)memory(n + 1);
  (void)ein_schedule_print(s, line, n + 1);
  return line;
}

// The program is the one in which what a schedule computes first is a statement.
static void take_graph(program *p, const ein_schedule *s) {
  text t = {NULL, 0, 0};
  if (ein_schedule_graph(s) == p->graph) return;
  p->written = p->graph;
  p->graph = (ein_graph *)(uintptr_t)ein_schedule_graph(s);  // it is only read
  add_string(&t, "");
  for (char *line = strtok(schedule_text(s), "\n"); line; line = strtok(NULL, "\n")) {
    if (strncmp(line, "on ", 3) != 0 && strncmp(line, "precompute(", 11) != 0 &&
        strncmp(line, "rfactor(", 8) != 0)
      continue;
    add_string(&t, line);
    add_string(&t, "\n");
  }
  p->first = t.s;
}

// A schedule whose graph is not in use.
static void schedule_end(const program *p, ein_schedule *s) {
  if (p->written == NULL) ein_schedule_destroy(s);
}

// What is said for that many places, of such a machine; NULL: nothing.
static ein_schedule *schedule_of(program *p, int64_t places, const ein_machine *machine) {
  const char *file = given(O_SCHEDULE);
  static ein_schedule *s;  // where a leak check finds it when a mistake ends the program
  ein_schedule_desc how;
  memset(&how, 0, sizeof how);
  how.places = places;
  how.machine = machine;
  if (p->commands && file != NULL)
    misuse(NULL, "%s has a schedule of its own: --schedule does not go with it", p->file);
  if (file == NULL && !p->commands && (how.text = form_stored(p, places)) == NULL) return NULL;
  if (p->commands && given(O_DETERMINISTIC) != NULL)
    misuse(NULL, "a schedule behind the statements does not go with --deterministic: give it in a "
           "file by --schedule");
  if (file != NULL) how.text = read_text(file, &how.length);
  const ein_status st = ein_schedule_create(p->ctx, p->graph, &how, &s);
  if (st != EIN_OK && file == NULL && !p->commands) return NULL;  // it is as if nothing was kept
  if (st != EIN_OK) die_library(p->ctx, st, file != NULL ? file : p->file);
  take_graph(p, s);
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

typedef struct steps_one {
  int64_t messages, bytes;
  double seconds;           // when the last of it is over, since the statement began
} steps_one;

// What a schedule moves, and in which of a statement's steps; behind statements: all of them.
typedef struct steps_of {
  ein_schedule_info info;
  double peak;              // most bytes at a place
  double begin, end;        // seconds: of all that it moves and computes; NaN: it was not run
  int64_t nstep, room;      // steps that something happens in
  steps_one *step;
} steps_of;

typedef struct steps_told {
  steps_of *x;
  struct steps_picture *drawn;  // NULL: no picture is asked for
} steps_told;

enum { STEPS_TOLD = 1 << 12 };  // that are printed

// The number of a machine among those of a list; it is added.
static int machine_number(const ein_grid **list, int *n, const ein_grid *g) {
  int k = 0;
  while (k < *n && list[k] != g) k++;
  if (k == *n) list[(*n)++] = g;
  return k;
}

static void machines_json(const ein_grid *const *list, int n) {
  ein_grid_dim dim;
  fputs("\"machines\": [", stdout);
  for (int i = 0; i < n; i++) {
    fputs(i > 0 ? ", [" : "[", stdout);
    for (int k = 0; ein_grid_dimension(list[i], k, &dim); k++) {
      fputs(k > 0 ? ", {\"name\": " : "{\"name\": ", stdout);
      put_json_string(dim.name);
      printf(", \"extent\": %" PRId64 ", \"level\": %d}", dim.extent, dim.level);
    }
    putchar(']');
  }
  putchar(']');
}

static void steps_json(const steps_of *x) {
  fputs(", \"each\": [", stdout);
  for (int64_t i = 0; i < x->nstep; i++) {
    printf("%s{\"messages\": %" PRId64 ", \"bytes\": %" PRId64, i > 0 ? ", " : "",
           x->step[i].messages, x->step[i].bytes);
    put_member("seconds", x->step[i].seconds);
    putchar('}');
  }
  fputs("]}", stdout);
}

static void schedule_json(const program *p, const ein_schedule *s, const steps_of *each,
                          int64_t places, const char *machine, const ein_machine *assumed) {
  ein_loop x;
  ein_tensor_info t;
  static const char *const kinds[] = {"place", "time", "parallel", "whole"};
  const int n = (int)ein_graph_statements(p->graph);
  int nmachine = 0;
  const ein_grid **list = (const ein_grid **)memory(
      sizeof *list * ((size_t)ein_graph_tensors(p->graph) + (size_t)n + 1));
  if (ein_schedule_grid(s, -1) != NULL)
    (void)machine_number(list, &nmachine, ein_schedule_grid(s, -1));
  for (int k = 0; k < ein_graph_tensors(p->graph); k++) {
    const ein_grid *g = ein_distribution_grid(ein_schedule_distribution(s, k));
    if (g != NULL) (void)machine_number(list, &nmachine, g);
  }
  for (int i = 0; i < n; i++)
    if (ein_schedule_grid(s, i) != NULL)
      (void)machine_number(list, &nmachine, ein_schedule_grid(s, i));
  printf("{\"p\": %" PRId64 ", ", places);
  machines_json(list, nmachine);
  fputs(", \"tensors\": {", stdout);
  for (int k = 0, some = 0; ein_graph_tensor(p->graph, k, &t); k++) {
    const ein_distribution *d = ein_schedule_distribution(s, k);
    if (d == NULL) continue;
    if (some++ > 0) fputs(", ", stdout);
    put_json_string(t.name);
    printf(": {\"machine\": %d, \"distribution\": ",
           machine_number(list, &nmachine, ein_distribution_grid(d)));
    put_json_string(distribution_text(d));
    putchar('}');
  }
  fputs("}, \"statements\": [", stdout);
  for (int i = 0; i < ein_graph_statements(p->graph); i++) {
    fputs(i > 0 ? ", {\"out\": " : "{\"out\": ", stdout);
    put_json_string(each[i].info.out);
    if (ein_schedule_grid(s, i) != NULL)
      printf(", \"machine\": %d", machine_number(list, &nmachine, ein_schedule_grid(s, i)));
    fputs(", \"loops\": [", stdout);
    for (int k = 0; ein_schedule_loop(s, i, k, &x); k++) {
      fputs(k > 0 ? ", {\"name\": " : "{\"name\": ", stdout);
      put_json_string(x.name);
      printf(", \"kind\": \"%s\", \"extent\": %" PRId64 "}", kinds[x.kind], x.extent);
    }
    printf("], \"steps\": %" PRId64 ", \"tasks\": %" PRId64 ", \"messages\": %" PRId64
           ", \"bytes\": %" PRId64 ", \"fan\": %" PRId64, each[i].info.steps, each[i].info.tasks,
           each[i].info.messages, each[i].info.bytes, each[i].info.fan);
    put_member("peak_bytes", each[i].peak);
    put_member("seconds", each[i].end - each[i].begin);
    steps_json(&each[i]);
  }
  printf("], \"bytes\": %" PRId64, each[n].info.bytes);
  put_member("peak_bytes", each[n].peak);
  put_member("memory", given(O_MEMORY) != NULL ? (double)option_memory() : NAN);
  fputs(", \"commands\": ", stdout);
  put_json_string(schedule_text(s));
  put_member("seconds", each[n].end);
  machine_json(machine, assumed);
  puts("}");
}

static void schedule_table(const program *p, const ein_schedule *s, const steps_of *each,
                           int64_t places) {
  const char *head[] = {"line", "statement", "loops", "steps", "tasks", "messages", "bytes", "fan",
                        "peak"};
  const int n = (int)ein_graph_statements(p->graph);
  double scale;
  const char *unit = time_unit(each[n].end, &scale);
  words cells = {NULL, 0};
  ein_tensor_info t;
  for (size_t k = 0; k < sizeof head / sizeof *head; k++) add_word(&cells, head[k]);
  add_cell(&cells, "time, %s", unit);
  const int columns = cells.n;
  for (int i = 0; i < n; i++) {
    const ein_schedule_info *x = &each[i].info;
    line_cell(&cells, x->line);
    add_word(&cells, x->out);
    add_word(&cells, loops_text(s, i));
    add_cell(&cells, "%" PRId64, x->steps);
    add_cell(&cells, "%" PRId64, x->tasks);
    add_cell(&cells, "%" PRId64, x->messages);
    add_cell(&cells, "%" PRId64, x->bytes);
    add_cell(&cells, "%" PRId64, x->fan);
    add_cell(&cells, "%.0f", each[i].peak);
    time_cell(&cells, scale * (each[i].end - each[i].begin));
  }
  put_cells(stdout, &cells, columns, 3);
  for (int k = 0; ein_graph_tensor(p->graph, k, &t); k++) {
    const ein_distribution *d = ein_schedule_distribution(s, k);
    if (d != NULL) printf("%s %s\n", t.name, distribution_text(d));
  }
  printf("%" PRId64 " places; @: over places, *: steps, |: whole in a step; fan: most messages of "
         "a place in a step; peak: most bytes at a place\n", places);
}

// Options that say how statements are cut do not go with loops that say it.
static void schedule_only(void) {
  static const option_id none[] = {O_DECOMP, O_COST, O_PARTS, O_KEEP, O_PIN};
  for (size_t k = 0; k < sizeof none / sizeof *none; k++)
    if (opt[none[k]].n > 0)
      misuse(NULL, "%s does not apply: the schedule says how loops run", options[none[k]].name);
}

// ---- pictures: what places fetch, compute and send home, step by step

typedef struct steps_picture {
  picture p;
  ein_decomposition *d;     // of the statements, uncut, whose boxes are drawn
  const ein_schedule *s;
  int *first;               // color of a statement's computing; fetches and results follow
  int **maker;
} steps_picture;

// The color of what access k does: -2 a block is computed, -1 a result goes home, -3 all operands
// are fetched.
static int steps_color(const steps_picture *x, int stmt, int k) {
  const int n = stmt_of(x->d, stmt).noperand;
  return x->first[stmt] + (k == -2 ? 0 : k == -3 ? n + 1 : k == -1 ? n + 2 : k + 1);
}

static ein_decomposition *uncut(const program *p) {
  ein_decompose_desc how;
  ein_decomposition *d;
  memset(&how, 0, sizeof how);
  how.p = 1;
  how.method = "none";
  const ein_status st = ein_decompose(p->ctx, p->graph, &how, &d);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  return d;
}

// A machine with what is assumed where it says nothing.
static ein_machine machine_assumed(const program *p, const ein_machine *machine) {
  ein_sim_desc desc;
  ein_sim_info sim;
  ein_decomposition *d = uncut(p);
  memset(&desc, 0, sizeof desc);
  desc.machine = machine;
  desc.max_work = 1e18;
  const ein_status st = ein_simulate(p->ctx, p->graph, d, &desc, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  ein_decomposition_destroy(d);
  return sim.machine;
}

static void steps_picture_begin(steps_picture *x, const program *prog, const ein_schedule *s) {
  char b[200];
  int n = 0;
  memset(x, 0, sizeof *x);
  x->d = uncut(prog);
  picture *p = &x->p;
  picture_begin(p, prog, x->d);
  x->s = s;
  x->maker = picture_makers(p);
  x->first = (int *)memory(((size_t)p->nstmt + 1) * sizeof *x->first);
  for (int i = 0; i < p->nstmt; i++) x->first[i] = n, n += stmt_of(x->d, i).noperand + 3;
  p->name = (const char **)memory(((size_t)n + 1) * sizeof *p->name);
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt t = stmt_of(x->d, i);
    char *loops = loops_text(s, i);
    if (loops[0] != 0) p->node[picture_node(p, i)].text = loops;
    for (int k = -3; k < t.noperand; k++) {
      const int m = k == -2 ? snprintf(b, sizeof b, "%.80s is computed", t.out)
                    : k == -1 ? snprintf(b, sizeof b, "%.80s goes home", t.out)
                    : snprintf(b, sizeof b, "%.80s for %.80s", k < 0 ? "operands" : t.operand[k],
                               t.out);
      p->name[steps_color(x, i, k)] = copy_text(b, (size_t)m);
    }
  }
}

static void steps_bar(steps_picture *x, bars *to, int stmt, int k, int64_t row, int64_t turn,
                      double from, double until) {
  char b[200];
  const ein_decomp_stmt t = stmt_of(x->d, stmt);
  const int m = snprintf(b, sizeof b, "%.80s %" PRId64, k == -3 ? "operands" : k < 0 ? t.out
                         : t.operand[k], turn);
  svg_bar *bar = row < SVG_ROWS ? picture_bar(to) : NULL;
  if (bar == NULL) return;
  bar->row = row, bar->from = from, bar->to = until, bar->color = steps_color(x, stmt, k);
  bar->merge = 0;
  bar->text = copy_text(b, (size_t)m);
}

// Draws what was simulated or measured; seconds: of all.
static void steps_picture_end(steps_picture *x, const steps_of *each, int64_t places,
                              const char *how, double seconds, int nthread) {
  picture *p = &x->p;
  int64_t messages = 0, bytes = 0;
  char title[200];
  for (int i = 0; i < p->nstmt; i++)
    messages += each[i].info.messages, bytes += each[i].info.bytes;
  snprintf(title, sizeof title, "%d statement%s for %" PRId64 " place%s under a schedule: %s moved "
           "in %" PRId64 " messages; behind names: steps", p->nstmt, p->nstmt == 1 ? "" : "s",
           places, places == 1 ? "" : "s", bytes_text((double)bytes), messages);
  picture_draw(p, given(O_SVG), title, how, places, seconds, nthread);
  ein_decomposition_destroy(x->d);
}

// Bars of the events of a run since `begin`.
static void steps_picture_run(steps_picture *x, happened *of, int nworker, double begin) {
  for (int w = 0; w < nworker; w++) {
    for (int64_t i = 0; i < of[w].n; i++) {
      const ein_dist_event *e = &of[w].v[i];
      const int k = e->level == -1 ? -2 : e->level == -2 ? -3 : -1;
      steps_bar(x, &x->p.place, e->stmt, k, e->place, e->step, e->begin - begin, e->end - begin);
      steps_bar(x, &x->p.thread, e->stmt, k, w, e->step, e->begin - begin, e->end - begin);
    }
    x->p.place.dropped += of[w].dropped, x->p.thread.dropped += of[w].dropped;
    free(of[w].v);
  }
}

// ---- what it moves

// What is noted of a step; NULL: it is one of those that are not.
static steps_one *steps_step(steps_of *x, int64_t which) {
  if (which >= STEPS_TOLD) return NULL;
  if (which >= x->room) {
    steps_one *old = x->step;
    x->room = x->room == 0 ? 16 : 2 * x->room;
    if (which >= x->room) x->room = which + 1;
    x->step = (steps_one *)memory((size_t)x->room * sizeof *x->step);
    if (x->nstep > 0) memcpy(x->step, old, (size_t)x->nstep * sizeof *old);
  }
  for (; x->nstep <= which; x->nstep++) x->step[x->nstep].seconds = NAN;
  return &x->step[which];
}

static ein_status steps_tell(void *user, const ein_schedule_move *m) {
  const steps_told *t = (const steps_told *)user;
  steps_one *s = steps_step(t->x, m->step);
  if (s != NULL) s->messages++, s->bytes += m->bytes;
  if (t->drawn == NULL) return EIN_OK;
  steps_picture *d = t->drawn;
  if (m->operand >= 0) {
    const int from = d->maker[m->stmt][m->operand];
    picture_flow(&d->p, from, m->stmt, m->operand)->bytes += (double)m->bytes;
  } else {
    const int node = picture_node(&d->p, m->stmt);
    picture_edge(&d->p, node, node, SVG_LOOP)->bytes += (double)m->bytes;
  }
  return EIN_OK;
}

// Of every statement what it moves and takes; behind them what all do.
static steps_of *steps_of_all(const program *p, const ein_schedule *s, ein_inputs inputs,
                              steps_picture *drawn) {
  const int n = (int)ein_graph_statements(p->graph);
  steps_of *each = (steps_of *)memory(sizeof *each * ((size_t)n + 1));
  double *peak = (double *)memory(sizeof *peak * ((size_t)n + 1));
  ein_status st = ein_schedule_peaks(p->ctx, s, inputs, peak, NULL);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  for (int i = 0; i < n; i++) {
    steps_told told = {&each[i], drawn};
    st = ein_schedule_cost(p->ctx, s, i, steps_tell, &told, &each[i].info);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
    each[i].peak = peak[i];
    each[n].peak = fmax(each[n].peak, peak[i]);
    each[n].info.bytes += each[i].info.bytes;
    each[n].info.tasks += each[i].info.tasks;
    each[n].info.messages += each[i].info.messages;
  }
  return each;
}

// A schedule whose places have more alive than --memory allows is none.
static void schedule_fits(double peak) {
  if (given(O_MEMORY) != NULL && peak > (double)option_memory())
    die(WRONG_INPUT, NULL, "under the schedule a place has %.10g bytes alive, more than the %.10g "
        "it may have", peak, (double)option_memory());
}

typedef struct steps_clock {
  steps_of *each;
  steps_picture *drawn;     // NULL: no picture is asked for
} steps_clock;

static void steps_clocked(void *user, const ein_dist_event *e) {
  const steps_clock *c = (const steps_clock *)user;
  steps_of *x = &c->each[e->stmt];
  steps_one *one = steps_step(x, e->step);
  if (!(x->begin <= e->begin)) x->begin = e->begin;
  if (!(x->end >= e->end)) x->end = e->end;
  if (one != NULL && (isnan(one->seconds) || e->end > one->seconds)) one->seconds = e->end;
  if (c->drawn != NULL)
    steps_bar(c->drawn, &c->drawn->p.place, e->stmt, e->level == -1 ? -2 : e->operand, e->place,
              e->step, e->begin, e->end);
}

// What a schedule takes on a clock, where that is not too much to be followed and it can be run: x
// has the reason. drawn: NULL, or its time line is drawn.
static void clock_schedule(const program *p, const ein_schedule *s, steps_of *each,
                           const ein_decompose_desc *desc, steps_picture *drawn, clocked *c,
                           simulation *x) {
  const int n = (int)ein_graph_statements(p->graph);
  steps_clock told = {each, drawn};
  memset(c, 0, sizeof *c);
  c->progress = 1;
  c->draw_fn = steps_clocked;
  c->drawn = &told;
  x->places = desc->p;
  x->sim.seconds = NAN;
  x->sim.tasks = (double)each[n].info.tasks, x->sim.messages = (double)each[n].info.messages;
  x->sim.join = (double)each[n].info.bytes;
  x->sim.peak_bytes = each[n].peak;
  for (int i = 0; i <= n; i++) each[i].begin = each[i].end = NAN;
  if (x->sim.tasks + x->sim.messages > CLOCK_MOST) {
    x->why = "there is too much of it to be followed";
    return;
  }
  progress_begin("simulating", "tasks", x->sim.tasks);
  const ein_status st = clock_run(p->ctx, p->graph, NULL, s, desc, c);
  progress_end();
  if (st == EIN_ERR_UNSUPPORTED && ein_ctx_errors(p->ctx) > 0) {
    const char *why = ein_ctx_error(p->ctx, 0)->message;
    x->why = copy_text(why, strlen(why));
  } else if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (st != EIN_OK) return;
  for (int i = 0; i < n; i++)
    for (int64_t k = 0; k < each[i].nstep; k++) each[i].step[k].seconds -= each[i].begin;
  each[n].begin = 0;
  x->sim.seconds = each[n].end = c->stats.seconds;
  x->sim.busy = clock_busy(c);
  x->clock = c;
}

// Seconds that it is predicted to take; NaN: nobody knows.
static double schedule_seconds(const program *p, const ein_schedule *s,
                               const ein_decompose_desc *desc) {
  simulation x;
  clocked c;
  memset(&x, 0, sizeof x);
  clock_schedule(p, s, steps_of_all(p, s, desc->inputs, NULL), desc, NULL, &c, &x);
  return x.sim.seconds;
}

// The last line of what is printed of such a run.
static void clock_total(const simulation *x) {
  char took[40];
  if (x->clock == NULL) {
    printf("no time: %s\n", x->why);
    return;
  }
  svg_seconds(took, sizeof took, x->sim.seconds, x->sim.seconds);
  printf("simulated (machine: %s): %s, places idle %.1f%%; %.10g tasks, %.10g messages, %.10g "
         "bytes moved\n", x->machine, took,
         100 * idle_share(x->sim.busy, x->sim.seconds, x->places), x->sim.tasks, x->sim.messages,
         x->sim.join);
}

// Prints and draws what a schedule moves, and how long that takes on a clock, on a machine of that
// name; print_fn: NULL, or it prints the figures.
static int plan_schedule(program *p, const ein_schedule *s, const ein_decompose_desc *desc,
                         const char *machine, void (*print_fn)(const simulation *x)) {
  steps_picture drawn;
  const int64_t places = desc->p;
  const int n = (int)ein_graph_statements(p->graph);
  const ein_machine assumed = machine_assumed(p, desc->machine);
  if (given(O_SVG) != NULL) steps_picture_begin(&drawn, p, s);
  steps_picture *asked = given(O_SVG) != NULL ? &drawn : NULL;
  steps_of *each = steps_of_all(p, s, desc->inputs, asked);
  simulation x;
  clocked clock;
  memset(&x, 0, sizeof x);
  schedule_fits(each[n].peak);
  x.machine = machine, x.sim.machine = assumed;
  clock_schedule(p, s, each, desc, asked, &clock, &x);
  if (print_fn != NULL && x.clock == NULL) die(WRONG_INPUT, NULL, "%s: %s", p->file, x.why);
  if (given(O_SCHEDULE_OUT) != NULL) fputs(schedule_text(s), output_stream(given(O_SCHEDULE_OUT)));
  if (given(O_SVG) != NULL)
    steps_picture_end(&drawn, each, places, "simulated", x.clock == NULL ? 0 : x.sim.seconds, 0);
  if (given(O_EXPLAIN) != NULL) fputs(schedule_text(s), stderr);
  explain_machine(machine, &assumed);
  if (svg_only()) return finish(p->ctx, NULL, own_graph(p));
  if (given(O_JSON) == NULL) schedule_table(p, s, each, places);
  else if (print_fn == NULL) schedule_json(p, s, each, places, machine, &assumed);
  if (print_fn != NULL) print_fn(&x);
  if (given(O_JSON) == NULL) clock_total(&x);
  return finish(p->ctx, NULL, own_graph(p));
}

// The same of steps that were found because no decomposition fits the memory.
static int plan_steps_of(program *p, ein_schedule *s, const ein_decompose_desc *desc,
                         const char *machine, void (*print_fn)(const simulation *x)) {
  ein_fabric f = {0};
  ein_dist *made = NULL;
  const ein_status st = plan_serial(p, desc->p, NULL, s, &f, &made);
  ein_dist_destroy(made);
  ein_fabric_destroy(&f);
  if (st != EIN_OK) die_library(p->ctx, st, "no decomposition fits the memory, and in steps");
  if (given(O_QUIET) == NULL && given(O_JSON) == NULL && !svg_only())
    puts("No decomposition fits the memory of places: statements go in steps.");
  const int status = plan_schedule(p, s, desc, machine, print_fn);
  ein_schedule_destroy(s);
  return status;
}

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
  if (p->first != NULL) add_string(&t, p->first);
  const ein_graph *of = p->decomposed != NULL ? p->decomposed : p->graph;
  const size_t n = ein_decomposition_schedule(of, d, NULL, 0);
  char *said = (char *)memory(n + 1);
  (void)ein_decomposition_schedule(of, d, said, n + 1);
  add_string(&t, said);
  memset(&how, 0, sizeof how);
  how.text = t.s;
  how.length = t.n;
  how.places = info.p;
  ein_status st = ein_schedule_create(p->ctx, own_graph(p), &how, &s);
  if (st == EIN_OK) st = plan_serial(p, info.p, NULL, s, &f, &made);
  ein_dist_destroy(made);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  if (st != EIN_OK) die_library(p->ctx, st, "the plan is no schedule");
  fputs(t.s, output_stream(path));
}
