// SPDX-License-Identifier: MIT
//
// command_decomp.h - `einsum plan .. -p N`: how a program or an expression is decomposed over
// places.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

#include "svg.h"

// Which cuts the search looks at.
static void option_family(ein_decompose_desc *d) {
  const char *how = d->method != NULL ? d->method : "eindecomp";
  d->strict = given(O_STRICT) != NULL;
  d->fewer = given(O_FEWER) != NULL;
  if (d->strict && d->fewer) misuse(NULL, "--strict and --fewer contradict each other");
  if ((d->strict || d->fewer) && strcmp(how, "eindecomp") != 0 && strcmp(how, "linear") != 0)
    misuse("it is for eindecomp and linear", "%s says nothing to --decomp %s, which searches "
           "nothing", d->strict ? "--strict" : "--fewer", how);
}

// The values of a list option, separated by commas outside of brackets.
static const char *const *option_list(option_id o, int *count) {
  words w = {NULL, 0};
  for (int k = 0; k < opt[o].n; k++) {
    const char *s = opt[o].v[k];
    for (size_t depth = 0, n = 0;; n++) {
      if (s[n] == '[') depth++;
      if (s[n] == ']' && depth > 0) depth--;
      if (s[n] != 0 && (s[n] != ',' || depth > 0)) continue;
      add_word(&w, copy_text(s, n));
      if (s[n] == 0) break;
      s += n + 1;
      n = (size_t)-1;
    }
  }
  *count = w.n;
  return w.v;
}

// "name value" lines of a machine file; "#" starts a comment.
static void read_machine(const char *path, ein_machine *m) {
  static const char *const names[] = {"flops", "memory_bw", "latency", "bandwidth", "overhead",
                                      "memory", "node", "node_latency", "node_bandwidth"};
  enum { NAMES = sizeof names / sizeof *names, NODE = 6 };
  double node = 0;
  double *const values[] = {&m->flops, &m->memory_bw, &m->latency, &m->bandwidth, &m->overhead,
                            &m->memory, &node, &m->node_latency, &m->node_bandwidth};
  size_t length;
  int line = 1;
  char *s = read_text(path, &length);
  if (strlen(s) != length) die(WRONG_INPUT, NULL, "%s: a NUL byte", path);
  for (; *s; line++) {
    size_t n = strcspn(s, "\n");
    char *field = copy_text(s, strcspn(s, "#\n")), *value;
    s += n + (s[n] != 0);
    field += strspn(field, " \t\r");
    if (*field == 0) continue;
    value = field + strcspn(field, " \t\r=:");
    size_t name = (size_t)(value - field);
    value += strspn(value, " \t\r=:");
    size_t end = strcspn(value, " \t\r"), more = strspn(value + end, " \t\r");
    if (value[end + more] != 0)
      die(WRONG_INPUT, NULL, "%s:%d: more than a name and a value: '%s'", path, line,
          value + end + more);
    value[end] = 0;
    int k = 0;
    while (k < NAMES && !(strlen(names[k]) == name && memcmp(names[k], field, name) == 0)) k++;
    ein_scalar v;
    if (k == NAMES) {
      die(WRONG_INPUT, "flops, memory_bw, latency, bandwidth, overhead, memory, node, node_latency "
          "or node_bandwidth", "%s:%d: a machine has no '%.*s'", path, line, (int)name, field);
    }
    if (!read_scalar(value, &v) || v.im != 0 || !(v.re >= 1e-30) || v.re > 1e30)
      die(WRONG_INPUT, "from 1e-30 to 1e30", "%s:%d: %s is not a positive number: '%s'", path, line,
          names[k], value);
    if (k == NODE && !(v.re >= 1 && v.re <= EIN_PLACES_MAX && floor(v.re) >= v.re))
      die(WRONG_INPUT, NULL, "%s:%d: a node has a whole number of places, not '%s'", path, line,
          value);
    *values[k] = v.re;
  }
  m->node = (int64_t)node;
}

// What --machine says; without it, threads are the ones that the kernels' rates describe. Returns
// its name.
static const char *option_machine(const program *p, int on_threads, ein_machine *m) {
  const char *name = given(O_MACHINE);
  int measured = name != NULL && strcmp(name, "measured") == 0;
  if (name != NULL && !measured && strcmp(name, "threads") != 0) {
    read_machine(name, m);
    return name;
  }
  if (name == NULL && !on_threads) return "defaults";
  ein_rates r;
  ein_status st = measured ? ein_calibrate(p->ctx, 0, &r) : EIN_OK;
  if (st == EIN_OK && measured) st = ein_ctx_rates(p->ctx, &r);
  if (st == EIN_OK) st = ein_machine_threads(p->ctx, p->graph, m);
  if (st == EIN_OK && measured) return "measured threads";
  if (st == EIN_OK) return ein_ctx_rates_get(p->ctx).call > 0 ? "calibrated threads"
                                                              : "threads, by table";
  if (name == NULL) return "defaults";
  die(WRONG_INPUT, "--kernels cpu has them", "no rates are known of these kernels");
}

// A number of at least 1; 0: not given.
static double option_count(option_id o, double most) {
  ein_scalar v;
  const char *s = given(o);
  if (s == NULL) return 0;
  if (!read_scalar(s, &v) || v.im != 0 || !(v.re >= 1 && v.re <= most) || v.re != floor(v.re))
    misuse(NULL, "%s takes a whole number from 1 to %.10g, not '%s'", options[o].name, most, s);
  return v.re;
}

static const char *const inputs_names[] = {"held", "outside", "dealt"};  // ein_inputs

static void option_inputs(ein_decompose_desc *d) {
  const char *s = given(O_INPUTS);
  for (int i = 0; s != NULL && i < 3; i++) {
    if (strcmp(s, inputs_names[i]) != 0) continue;
    d->inputs = (ein_inputs)i;
    return;
  }
  if (s != NULL) misuse("held, outside or dealt", "--inputs '%s'", s);
}

// *name: of the machine that is assumed.
static void option_decompose(const program *prog, int on_threads, ein_decompose_desc *d,
                             ein_machine *machine, const char **name) {
  const char *cost = given(O_COST);
  memset(d, 0, sizeof *d);
  memset(machine, 0, sizeof *machine);
  d->p = option_places(1);
  d->cost = cost != NULL ? ein_cost_find(cost) : EIN_COST_SECONDS;
  if (d->cost == EIN_COST_COUNT)
    misuse("paper, paper-code, bytes or seconds", "no cost model is called '%s'", cost);
  d->no_scatter = given(O_NO_SCATTER) != NULL;
  d->method = given(O_DECOMP);
  d->parts = option_list(O_PARTS, &d->nparts);
  d->keep = option_list(O_KEEP, &d->nkeep);
  d->pin = option_list(O_PIN, &d->npin);
  option_family(d);
  option_inputs(d);
  if (d->inputs == EIN_INPUTS_DEALT && d->cost != EIN_COST_BYTES)
    misuse("--cost bytes", "inputs are dealt out under the model of bytes alone");
  d->max_vectors = (int)option_count(O_VECTORS, 1 << 30);
  d->max_table = option_count(O_TABLE, 1e15);
  d->beam = (int)option_count(O_BEAM, 1 << 24);
  d->max_work = option_count(O_WORK, 1e18);
  *name = option_machine(prog, on_threads, machine);
  double budget = (double)option_memory();
  if (budget > 0 && (machine->memory == 0 || budget < machine->memory)) machine->memory = budget;
  d->machine = machine;
}

// The program is the one that a decomposition is of, with more statements where results are
// scattered.
static void scattered(program *p, const ein_decomposition *d) {
  const ein_graph *g = ein_decomposition_graph(d);
  if (g == NULL) return;
  if (p->written == NULL) p->written = p->graph;
  p->decomposed = p->graph;
  p->graph = (ein_graph *)(uintptr_t)g;  // it is only read
}

// A schedule whose places keep within the memory, where no decomposition does.
static ein_schedule *fit_schedule(const program *p, const ein_decompose_desc *desc) {
  static ein_schedule *s;  // where a leak check finds it when a mistake ends the program
  const ein_status st = ein_schedule_fit(p->ctx, p->graph, desc, &s);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
  return s;
}

// Decomposes. With a limit to the memory of places a plan with more alive is none: then statements
// go in steps, NULL is returned, and *steps is a schedule.
static ein_decomposition *decompose(const program *p, const ein_decompose_desc *desc,
                                    const ein_machine *machine, ein_schedule **steps) {
  ein_decomposition *d;
  ein_sim_desc sim_desc;
  ein_sim_info sim;
  *steps = NULL;
  progress_begin("decomposing", NULL, 0);
  ein_status st = ein_decompose(p->ctx, p->graph, desc, &d);
  if (st == EIN_ERR_TOO_LARGE && machine->memory > 0) {
    *steps = fit_schedule(p, desc);
    return NULL;
  }
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (given(O_MEMORY) == NULL) return progress_end(), d;
  memset(&sim_desc, 0, sizeof sim_desc);
  sim_desc.machine = machine;
  sim_desc.max_work = desc->max_work;
  st = ein_simulate(p->ctx, p->graph, d, &sim_desc, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
  if (sim.peak_bytes <= machine->memory) return d;
  ein_decomposition_destroy(d);
  *steps = fit_schedule(p, desc);
  return NULL;
}

static ein_decomp_stmt stmt_of(const ein_decomposition *d, int i) {
  ein_decomp_stmt s;
  memset(&s, 0, sizeof s);
  (void)ein_decomposition_stmt(d, i, &s);
  return s;
}

// The indices of a statement as "s/2 t | d": free ones, then those reduced; pieces of those cut.
static char *parts_text(const ein_decomp_stmt *s, const ein_parts *p) {
  text t = {NULL, 0, 0};
  char b[64];
  add_text(&t, "", 0);
  for (int c = 0; c < p->nindex; c++) {
    if (t.n > 0) add_text(&t, " ", 1);
    if (c == s->nfree) add_text(&t, "| ", 2);
    add_text(&t, s->index[c], strlen(s->index[c]));
    if (p->cut[c] == 1) continue;
    int n = snprintf(b, sizeof b, "/%" PRId64, p->cut[c]);
    add_text(&t, b, (size_t)n);
  }
  return t.s;
}

// ---- tables: cells of text, row after row; the first `left` columns are set left

PRINTF(2, 3) static void add_cell(words *cells, const char *format, ...) {
  char b[64];
  va_list list;
  va_start(list, format);
  (void)vsnprintf(b, sizeof b, format, list);
  va_end(list);
  add_word(cells, copy_text(b, strlen(b)));
}

static int width_of(const char *s) {
  int n = 0;
  for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
  return n;
}

static void put_cells(FILE *f, const words *cells, int ncolumn, int left) {
  int *width = (int *)memory(sizeof *width * (size_t)ncolumn);
  for (int i = 0; i < cells->n; i++) {
    int n = width_of(cells->v[i]);
    if (n > width[i % ncolumn]) width[i % ncolumn] = n;
  }
  for (int i = 0; i < cells->n; i++) {
    int c = i % ncolumn, fill = width[c] - width_of(cells->v[i]);
    if (c >= left) fprintf(f, "%*s", fill, "");
    fputs(cells->v[i], f);
    if (c < left) fprintf(f, "%*s", fill, "");
    fputs(c == ncolumn - 1 ? "\n" : "  ", f);
  }
}

// ---- the table of a decomposition

// What a statement costs under the model; the sum of all is the total.
static double parts_cost(const ein_decomp_info *info, const ein_parts *p) {
  return info->cost == EIN_COST_SECONDS ? p->seconds : p->join + p->agg + p->repart;
}

// The share of the places' time, between a statement's first task and its last result, in which
// they do not compute for it; of all statements, in which they do not compute.
static double idle_share(double busy, double seconds, int64_t places) {
  double all = seconds * (double)places;
  return all > 0 && busy < all * (1 - 1e-12) ? 1 - busy / all : 0;  // sums are rounded
}

// A unit in which seconds look well, and what to multiply them with.
static const char *time_unit(double seconds, double *scale) {
  *scale = seconds >= 1e-3 ? 1e3 : 1e6;
  return seconds >= 1e-3 ? "ms" : "us";
}

static void line_cell(words *cells, int64_t line) {
  if (line > 0) add_cell(cells, "%" PRId64, line);
  else add_word(cells, "");
}

static void time_cell(words *cells, double t) {
  if (t < 1e4) add_cell(cells, "%.4g", t);
  else add_cell(cells, "%.0f", t);
}

// Cost terms: three of them for the paper's models, two in bytes, or seconds and the bytes moved.
static void cost_cells(words *cells, const ein_decomp_info *info, const ein_parts *p,
                       double moved) {
  if (info->cost == EIN_COST_SECONDS) {
    add_cell(cells, "%.4g", p->seconds);
  } else {
    add_cell(cells, "%.10g", p->join);
    add_cell(cells, "%.10g", p->agg);
    if (info->cost != EIN_COST_BYTES) add_cell(cells, "%.10g", p->repart);
  }
  if (info->cost != EIN_COST_BYTES) add_cell(cells, "%.10g", moved);
}

static void table_head(words *cells, const ein_decomp_info *info, const char *unit) {
  static const char *const of[EIN_COST_COUNT] = {"join,agg,repart,bytes moved",
                                                 "join,agg,repart,bytes moved", "join,agg",
                                                 "seconds,bytes moved"};
  add_word(cells, "line");
  add_word(cells, "statement");
  add_word(cells, "index/pieces");
  add_word(cells, "tasks");
  for (const char *s = of[info->cost]; *s != 0; s += *s == ',') {
    size_t n = strcspn(s, ",");
    add_word(cells, copy_text(s, n));
    s += n;
  }
  add_word(cells, "messages");
  add_cell(cells, "time, %s", unit);
  add_word(cells, "idle");
}

// Is the method a search? Of what it gives by itself nothing is proved.
static int is_searched(const ein_decomp_info *info) {
  return strcmp(info->family, "method") != 0;
}

// What is known of the total beside all others of the family.
static char *searched_text(const ein_decomp_info *info) {
  text t = {NULL, 0, 0};
  char b[80];
  const char *of = strcmp(info->family, "paper") == 0
                   ? " over vectors of p tasks, in this model)"
                   : " over vectors of every divisor of p tasks, in this model)";
  if (info->proved) snprintf(b, sizeof b, " (proved optimal");
  else if (info->lower > 0)
    snprintf(b, sizeof b, " (at most %.3g%% above the least",
             100 * (info->total / info->lower - 1));
  else snprintf(b, sizeof b, " (not proved optimal");
  add_text(&t, b, is_searched(info) ? strlen(b) : 0);
  add_text(&t, of, is_searched(info) ? strlen(of) : 0);
  return t.s;
}

static void decomposed_total(const ein_decomp_info *info, const ein_sim_info *sim,
                             const char *machine) {
  static const char *const units[] = {"scalars", "scalars", "bytes", "seconds"};
  char took[40];
  printf("total %.10g %s under %s for p = %" PRId64 "; method %s", info->total, units[info->cost],
         ein_cost_name(info->cost), info->p, info->method);
  puts(searched_text(info));
  svg_seconds(took, sizeof took, sim->seconds, sim->seconds);
  printf("simulated (machine: %s): %s, places idle %.1f%%; %.10g tasks, %.10g messages, %.10g "
         "bytes moved, peak %.10g bytes at a place, inputs %.10g of them at most\n", machine, took,
         100 * idle_share(sim->busy, sim->seconds, info->p), sim->tasks, sim->messages,
         sim->join + sim->agg, sim->peak_bytes, sim->input_bytes);
}

// parts: are there statements that are parts of others?
static void decomposed_notes(const ein_decomp_info *info, const ein_sim_info *sim, int parts) {
  static const char *const terms[EIN_COST_COUNT] = {
    "join + agg + repart: scalars moved, at most, as the paper counts them",
    "join + agg + repart: scalars moved, as the paper's implementation counts them",
    "join + agg: bytes moved to tasks, and of partial results", "seconds: predicted by the model"};
  if (given(O_QUIET) != NULL) return;
  puts("index/pieces: i/4 is cut into 4; free indices | reduced ones. tasks: kernel calls, at most"
       " one\nper place. time: from a statement's first task to its last result; idle: of the"
       " places meanwhile.");
  printf("%s.\n", terms[info->cost]);
  if (is_searched(info))
    puts("What is proved is the total, the sum of the model's costs; simulated seconds are not.");
  if (parts) puts("T.1, T.2, ..: parts of the statement of T; T.d1, ..: for gradients.");
  if (idle_share(sim->busy, sim->seconds, info->p) > 0.5 && info->cost != EIN_COST_SECONDS)
    puts("Places are idle most of the time: --cost seconds looks at time.");
}

static void decomposed_table(const ein_decomposition *d, const ein_sim_info *sim,
                             const ein_sim_stmt *each, const char *machine) {
  ein_decomp_info info;
  ein_parts sum;
  words cells = {NULL, 0};
  double k, messages = 0;
  int parts = 0, columns;
  const char *unit = time_unit(sim->seconds, &k);
  ein_decomposition_info(d, &info);
  memset(&sum, 0, sizeof sum);
  table_head(&cells, &info, unit);
  columns = cells.n;
  for (int i = 0; i < info.nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    ein_parts p;
    (void)ein_decomposition_parts(d, i, &p);
    line_cell(&cells, s.line);
    add_word(&cells, s.out);
    add_word(&cells, parts_text(&s, &p));
    add_cell(&cells, "%" PRId64, p.ntask);
    cost_cells(&cells, &info, &p, each[i].join + each[i].agg);
    add_cell(&cells, "%.10g", each[i].messages);
    double span = each[i].end - each[i].start;
    time_cell(&cells, k * span);
    add_cell(&cells, "%.1f%%", 100 * idle_share(each[i].busy, span, info.p));
    sum.join += p.join, sum.agg += p.agg, sum.repart += p.repart, sum.seconds += p.seconds;
    sum.ntask += p.ntask, messages += each[i].messages;
    parts |= strchr(s.out, '.') != NULL;
  }
  add_word(&cells, "");
  add_word(&cells, "all");
  add_word(&cells, "");
  add_cell(&cells, "%" PRId64, sum.ntask);
  cost_cells(&cells, &info, &sum, sim->join + sim->agg);
  add_cell(&cells, "%.10g", messages);
  time_cell(&cells, k * sim->seconds);
  add_cell(&cells, "%.1f%%", 100 * idle_share(sim->busy, sim->seconds, info.p));
  put_cells(stdout, &cells, columns, 3);
  decomposed_total(&info, sim, machine);
  decomposed_notes(&info, sim, parts);
}

// The same for people, with --explain.
static void explain_machine(const char *name, const ein_machine *m) {
  if (given(O_EXPLAIN) == NULL) return;
  fprintf(stderr, "machine (%s): of a place %.4g flop/s, memory %.4g B/s, %.3g s a task; a message "
          "%.3g s and %.4g B/s", name, m->flops, m->memory_bw, m->overhead, m->latency,
          m->bandwidth);
  if (m->memory > 0) fprintf(stderr, "; %.10g bytes", m->memory);
  if (m->node > 0)
    fprintf(stderr, "; nodes of %" PRId64 " places, between them %.3g s and %.4g B/s", m->node,
            m->node_latency, m->node_bandwidth);
  fputc('\n', stderr);
}

// What a machine is, defaults included; memory 0: no limit.
static void machine_json(const char *name, const ein_machine *m) {
  fputs(", \"machine\": {\"name\": ", stdout);
  put_json_string(name);
  put_member("flops", m->flops);
  put_member("memory_bw", m->memory_bw);
  put_member("latency", m->latency);
  put_member("bandwidth", m->bandwidth);
  put_member("overhead", m->overhead);
  put_member("memory", m->memory);
  printf(", \"node\": %" PRId64, m->node);
  put_member("node_latency", m->node_latency);
  put_member("node_bandwidth", m->node_bandwidth);
  putchar('}');
}

static void names_json(const char *key, const char *const *name, int n) {
  printf(", \"%s\": [", key);
  for (int i = 0; i < n; i++) {
    if (i > 0) fputs(", ", stdout);
    put_json_string(name[i]);
  }
  putchar(']');
}

// A point of a tensor, coordinate by coordinate.
static void map_json(const ein_decomp_stmt *s, const ein_zmap *m) {
  putchar('[');
  for (int r = 0; r < m->rows; r++) {
    int terms = 0;
    fputs(r > 0 ? ", {\"coef\": {" : "{\"coef\": {", stdout);
    for (int c = 0; c < m->cols; c++) {
      const int64_t v = m->coef[(size_t)r * (size_t)m->cols + (size_t)c];
      if (v == 0) continue;
      if (terms++ > 0) fputs(", ", stdout);
      put_json_string(s->index[c]);
      printf(": %" PRId64, v);
    }
    printf("}, \"offset\": %" PRId64 "}", m->offset[r]);
  }
  putchar(']');
}

// What a statement computes from what.
static void meaning_json(const ein_decomp_stmt *s) {
  printf(", \"dtype\": \"%s\", \"accumulates\": ", ein_dtype_name(s->dtype));
  if (s->accumulates != EIN_NONE) printf("\"%s\"", ein_dtype_name(s->accumulates));
  else fputs("null", stdout);
  put_member("error_bound", s->error_bound < 0 ? NAN : s->error_bound);
  printf(", \"error_from\": %s, \"fallback\": null, \"fold\": ", s->error_bound < 0 ? "null"
         : s->from_inputs ? "\"inputs\"" : "\"operands\"");
  if (s->fold != NULL) put_json_string(s->fold);
  else fputs("null", stdout);
  fputs(", \"map\": ", stdout);
  if (s->map != NULL) put_json_string(s->map);
  else fputs("null", stdout);
  fputs(", \"writes\": ", stdout);
  map_json(s, &s->out_map);
  fputs(", \"reads\": [", stdout);
  for (int k = 0; k < s->noperand; k++) {
    if (k > 0) fputs(", ", stdout);
    map_json(s, &s->proj[k]);
  }
  putchar(']');
}

static void add_once(words *list, const char *s) {
  for (int i = 0; i < list->n; i++)
    if (strcmp(list->v[i], s) == 0) return;
  add_word(list, s);
}

enum { PLANNED_BLOCKS = 1 << 16 };

// A program, decomposed or as a schedule says, as it would run on places in one memory. The fabric
// is the caller's, to be destroyed after the plan.
static ein_status plan_serial(const program *prog, int64_t places, const ein_decomposition *d,
                              const ein_schedule *s, ein_fabric *f, ein_dist **laid) {
  ein_dist_desc how;
  memset(&how, 0, sizeof how);
  how.fabric = f;
  how.decomposition = d;
  how.schedule = s;
  how.nlayout = prog->d.nbind;
  how.layout = prog->d.bind;
  *laid = NULL;
  const ein_status st = ein_fabric_serial((int)places, f);
  return st != EIN_OK ? st : ein_dist_create(prog->ctx, s != NULL ? ein_schedule_graph(s)
                                                                : prog->graph, &how, laid);
}

// The blocks of a decomposition; NULL where there are too many to plan each.
static ein_dist *plan_blocks(const program *prog, const ein_decomposition *d, ein_fabric *f) {
  ein_decomp_info info;
  ein_dist *laid = NULL;
  ein_decomposition_info(d, &info);
  memset(f, 0, sizeof *f);
  if (info.p * info.nstmt <= PLANNED_BLOCKS) (void)plan_serial(prog, info.p, d, NULL, f, &laid);
  return laid;
}

// The kernels of the first block of a statement; each once in the list.
static void add_kernels(words *list, const ein_dist *laid, int stmt) {
  size_t n = ein_dist_kernels(laid, stmt, NULL, 0);
  char *s = (char *)memory(n + 1);
  (void)ein_dist_kernels(laid, stmt, s, n + 1);
  for (char *line = strtok(s, "\n"); line != NULL; line = strtok(NULL, "\n")) add_once(list, line);
}

static void kernels_json(const ein_dist *laid, int stmt) {
  words list = {NULL, 0};
  add_kernels(&list, laid, stmt);
  names_json("kernels", list.v, list.n);
}

static void statement_json(const ein_decomposition *d, const ein_dist *laid,
                           const ein_decomp_info *info, int i, const ein_sim_stmt *each,
                           double least) {
  const ein_decomp_stmt s = stmt_of(d, i);
  ein_parts p;
  (void)ein_decomposition_parts(d, i, &p);
  fputs(i > 0 ? ", {\"out\": " : "{\"out\": ", stdout);
  put_json_string(s.out);
  printf(", \"from\": [");
  if (s.line > 0) printf("%" PRId64, s.line);
  fputs("], \"group\": null, \"path\": null, \"indices\": {", stdout);
  for (int pass = 0; pass < 2; pass++) {
    for (int c = 0; c < p.nindex; c++) {
      if (c > 0) fputs(", ", stdout);
      put_json_string(s.index[c]);
      printf(": %" PRId64, pass ? p.cut[c] : s.extent[c]);
    }
    fputs(pass ? "}, \"order\": [" : "}, \"parts\": {", stdout);
  }
  for (int k = 0; k < p.norder; k++) {
    if (k > 0) fputs(", ", stdout);
    put_json_string(s.index[p.order[k]]);
  }
  putchar(']');
  put_member("join", p.join);
  put_member("agg", p.agg);
  put_member("repart", p.repart);
  printf(", \"tasks\": %" PRId64 ", \"flops\": null, \"traffic\": null, \"einsum\": null", p.ntask);
  kernels_json(laid, i);
  put_member("seconds", each[i].end - each[i].start);
  put_member("cost", parts_cost(info, &p));
  put_member("bytes", each[i].join + each[i].agg);
  put_member("messages", each[i].messages);
  put_member("start", each[i].start);
  put_member("idle", idle_share(each[i].busy, each[i].end - each[i].start, info->p));
  put_member("partials", each[i].agg);
  names_json("free", s.index, s.nfree);
  names_json("reduced", s.index + s.nfree, s.nindex - s.nfree);
  names_json("operands", s.operand, s.noperand);
  meaning_json(&s);
  put_member("io_bound", least);
  putchar('}');
}

// The bytes of the smallest elements of a graph.
static double least_element(const ein_graph *g) {
  ein_tensor_info t;
  size_t size = 16;
  for (int k = 0; k < ein_graph_tensors(g); k++)
    if (ein_graph_tensor(g, k, &t) && ein_dtype_size(t.dtype) < size)
      size = ein_dtype_size(t.dtype);
  return (double)size;
}

// What places must receive and send, each with memory for so many bytes. NULL: not known.
static ein_bound *places_bound(const program *prog, const ein_decomp_info *info, double bytes) {
  ein_bound_desc how;
  ein_bound *b = NULL;
  memset(&how, 0, sizeof how);
  how.places = info->p;
  how.fast_memory = fmax(1, bytes / least_element(prog->graph));
  return ein_bound_create(prog->ctx, prog->graph, &how, &b) == EIN_OK ? b : NULL;
}

// The statements that are decomposed, as a program.
static char *graph_text(const ein_graph *g) {
  size_t n = ein_graph_print(g, NULL, 0);
  char *s = (char *)memory(n + 1);
  (void)ein_graph_print(g, s, n + 1);
  return s;
}

// What statements fetch for one operand from one statement, from all places.
typedef struct transfer {
  int stmt, operand, from;  // from -1: a pinned input
  double bytes;
} transfer;

typedef struct transfers {
  transfer *v;
  int n, room;
} transfers;

static void add_transfer(void *user, int from, int stmt, int operand, int64_t place,
                         double bytes) {
  transfers *t = (transfers *)user;
  (void)place;
  for (int i = t->n; i-- > 0 && t->v[i].stmt == stmt;) {
    if (t->v[i].operand != operand || t->v[i].from != from) continue;
    t->v[i].bytes += bytes;
    return;
  }
  if (t->n == t->room) {
    transfer *old = t->v;
    t->room = t->room == 0 ? 64 : 2 * t->room;
    t->v = (transfer *)memory((size_t)t->room * sizeof *t->v);
    if (t->n > 0) memcpy(t->v, old, (size_t)t->n * sizeof *old);
  }
  t->v[t->n].stmt = stmt, t->v[t->n].operand = operand, t->v[t->n].from = from;
  t->v[t->n++].bytes = bytes;
}

// The tensors: a pinned input with the pieces of its axes and their order.
static void tensors_json(const program *prog, const ein_decomposition *d) {
  static const char *const role[] = {"input", "temporary", "output"};
  ein_tensor_info t;
  ein_parts pin;
  fputs(", \"tensors\": {", stdout);
  for (int i = 0, n = 0; i < ein_graph_tensors(prog->graph); i++) {
    if (!ein_graph_tensor(prog->graph, i, &t)) continue;
    if (n++ > 0) fputs(", ", stdout);
    put_json_string(t.name);
    printf(": {\"role\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
           role[t.role == EIN_ROLE_INPUT ? 0 : t.role == EIN_ROLE_OUTPUT ? 2 : 1],
           ein_dtype_name(t.dtype));
    for (int r = 0; r < t.rank; r++) printf("%s%" PRId64, r > 0 ? ", " : "", t.shape[r]);
    fputs("], \"pin\": ", stdout);
    if (ein_decomposition_pin(d, i, &pin) == EIN_OK) {
      fputs("{\"parts\": [", stdout);
      for (int c = 0; c < pin.nindex; c++) printf("%s%" PRId64, c > 0 ? ", " : "", pin.cut[c]);
      fputs("], \"order\": [", stdout);
      for (int k = 0; k < pin.norder; k++) printf("%s%d", k > 0 ? ", " : "", pin.order[k]);
      fputs("]}", stdout);
    } else {
      fputs("null", stdout);
    }
    putchar('}');
  }
  putchar('}');
}

// The params: dtype null, it takes what it meets; value: the default, or null.
static void params_json(const ein_graph *g) {
  ein_param_info p;
  fputs(", \"params\": {", stdout);
  for (int i = 0; i < ein_graph_params(g) && ein_graph_param(g, i, &p); i++) {
    if (i > 0) fputs(", ", stdout);
    put_json_string(p.name);
    fputs(": {\"dtype\": ", stdout);
    if (p.dtype == EIN_NONE) fputs("null", stdout);
    else put_json_string(ein_dtype_name(p.dtype));
    fputs(", \"value\": ", stdout);
    if (p.has_default) put_number(p.value.re);
    else fputs("null", stdout);
    putchar('}');
  }
  putchar('}');
}

// What it takes to do the same elsewhere: the statements as a program, the tensors, the rule of
// places, and what is fetched. Partial results are the `partials` of statements.
static void carried_json(const program *prog, const ein_decomposition *d,
                         const ein_machine *machine) {
  transfers list = {NULL, 0, 0};
  ein_sim_desc how;
  ein_sim_info sim;
  memset(&how, 0, sizeof how);
  how.machine = machine;
  how.fetch_fn = add_transfer;
  how.user = &list;
  how.max_work = option_count(O_WORK, 1e18);
  ein_status st = ein_simulate(prog->ctx, prog->graph, d, &how, &sim);
  if (st != EIN_OK) die_library(prog->ctx, st, prog->file);
  fputs(", \"program\": ", stdout);
  put_json_string(graph_text(prog->graph));
  tensors_json(prog, d);
  params_json(prog->graph);
  fputs(", \"placement\": \"piece q of index c is [floor(q*extent/parts), "
        "floor((q+1)*extent/parts)); the place of a task is the number whose digits are the pieces "
        "of `order`, the first the most significant, each of base `parts`; a block's home is the "
        "place of the task whose reduced pieces are 0\", \"transfers\": [", stdout);
  for (int i = 0; i < list.n; i++) {
    const transfer *t = &list.v[i];
    printf("%s{\"statement\": %d, \"operand\": %d, \"tensor\": ", i > 0 ? ", " : "", t->stmt,
           t->operand);
    put_json_string(stmt_of(d, t->stmt).operand[t->operand]);
    if (t->from < 0) fputs(", \"from\": null", stdout);
    else printf(", \"from\": %d", t->from);
    put_member("bytes", t->bytes);
    putchar('}');
  }
  putchar(']');
}

// laid: NULL where blocks are not planned.
static void statements_json(const program *prog, const ein_decomposition *d, const ein_dist *laid,
                            const ein_decomp_info *info, const ein_sim_info *sim,
                            const ein_sim_stmt *each) {
  ein_bound *bound = places_bound(prog, info, sim->peak_bytes);
  for (int i = 0; i < info->nstmt; i++) {
    ein_bound_stmt least;
    const int known = ein_bound_statement(bound, i, &least);
    statement_json(d, laid, info, i, each,
                   known ? least.per_place * least_element(prog->graph) : NAN);
  }
  ein_bound_destroy(bound);
}

static void decomposed_json(const program *prog, const ein_decomposition *d,
                            const ein_sim_info *sim, const ein_sim_stmt *each,
                            const char *machine) {
  ein_decomp_info info;
  ein_decomposition_info(d, &info);
  printf("{\"p\": %" PRId64 ", \"deterministic\": %s, \"cost_model\": \"%s\", \"method\": "
         "\"%s\"", info.p, given(O_DETERMINISTIC) != NULL ? "true" : "false",
         ein_cost_name(info.cost), info.method);
  put_member("total", info.total);
  put_member("lower", info.lower);
  printf(", \"proved\": %s, \"proved_of\": \"model\", \"family\": \"%s\"",
         info.proved && is_searched(&info) ? "true" : "false", info.family);
  put_member("gap", info.gap);
  put_member("flops", sim->flops);
  fputs(", \"naive_flops\": null, \"largest\": null, \"workspace_bytes\": null", stdout);
  machine_json(machine, &sim->machine);
  printf(", \"inputs\": \"%s\"", inputs_names[info.inputs]);
  put_member("peak_bytes", sim->peak_bytes);
  put_member("seconds", sim->seconds);
  put_member("memory", given(O_MEMORY) != NULL ? (double)option_memory() : NAN);
  printf(", \"regions\": [], \"groups\": [], \"fallbacks\": null, \"choices\": [], "
         "\"store\": [], \"path\": %s, \"statements\": [",
         prog->path != NULL ? prog->path : "null");
  ein_fabric fabric;
  ein_dist *laid = plan_blocks(prog, d, &fabric);
  statements_json(prog, d, laid, &info, sim, each);
  ein_dist_destroy(laid);
  ein_fabric_destroy(&fabric);
  putchar(']');
  carried_json(prog, d, &sim->machine);
  fputs(", \"simulated\": {\"seconds\": ", stdout);
  put_number(sim->seconds);
  put_member("tasks", sim->tasks);
  put_member("messages", sim->messages);
  put_member("bytes", sim->join + sim->agg);
  put_member("peak_bytes", sim->peak_bytes);
  put_member("idle", idle_share(sim->busy, sim->seconds, info.p));
  puts("}}");
}

#include "command_svg.h"
#include "command_clock.h"
#include "command_schedule.h"
#include "command_teg.h"

// What every statement adds in, and how far from the truth it may be.
static void explain_accuracy(const ein_decomposition *d) {
  ein_decomp_info info;
  words cells = {NULL, 0};
  if (given(O_EXPLAIN) == NULL) return;
  ein_decomposition_info(d, &info);
  add_word(&cells, "line"), add_word(&cells, "statement"), add_word(&cells, "accumulates in");
  add_word(&cells, "error at most, of the sum of absolute values");
  for (int i = 0; i < info.nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    line_cell(&cells, s.line);
    add_word(&cells, s.out);
    add_word(&cells, s.accumulates == EIN_NONE ? "" : ein_dtype_name(s.accumulates));
    if (s.error_bound < 0) add_word(&cells, "unknown");
    else add_cell(&cells, "%.3g %s", s.error_bound, s.from_inputs ? "from the inputs on"
                  : "operands taken as stored");
  }
  put_cells(stderr, &cells, 4, 4);
}

// Decomposes and simulates a program, and prints the plan, or has print_fn print the run.
static int simulate_decomposed(program *p, void (*print_fn)(const simulation *x)) {
  const char *svg = given(O_SVG);
  picture drawn;
  ein_decompose_desc desc;
  ein_machine machine;
  ein_decomposition *d;
  ein_decomp_info info;
  ein_sim_desc how;
  simulation x;
  clocked clock;
  const words none = {NULL, 0};
  const char *name;
  memset(&x, 0, sizeof x);
  if (svg_only() && given(O_JSON) != NULL)
    misuse(NULL, "the picture and --json both go to standard output");
  check_targets(&none, !svg_only());
  option_decompose(p, 0, &desc, &machine, &name);
  ein_schedule *said = schedule_of(p, desc.p, &machine);
  if (has_loops(p, said)) return schedule_only(), plan_schedule(p, said, &desc, name, print_fn);
  schedule_pins(p, said, &desc);
  schedule_end(p, said);
  d = decompose(p, &desc, &machine, &said);
  if (d == NULL) return plan_steps_of(p, said, &desc, name, print_fn);
  scattered(p, d);
  ein_decomposition_info(d, &info);
  write_schedule(p, d);
  memset(&how, 0, sizeof how);
  how.machine = &machine;
  how.stmt = x.each = (ein_sim_stmt *)memory(sizeof *how.stmt * ((size_t)info.nstmt + 1));
  if (svg != NULL) {
    picture_begin(&drawn, p, d);
    how.task_fn = picture_task;
    how.fetch_fn = picture_fetch;
    how.user = &drawn;
  }
  how.max_work = desc.max_work;
  progress_begin("simulating", NULL, 0);
  ein_status st = ein_simulate(p->ctx, p->graph, d, &how, &x.sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
  x.d = d, x.places = info.p, x.machine = name;
  if (print_fn != NULL) clock_decomposed(p, &desc, &x, &clock, svg != NULL ? &drawn : NULL);
  if (svg != NULL) picture_end(&drawn, svg, &x.sim, how.stmt, -1, 0, NULL);
  if (given(O_EXPLAIN) != NULL && given(O_DETERMINISTIC) != NULL)
    fputs("# deterministic: the same bits for any number of threads and places\n", stderr);
  if (given(O_EXPLAIN) != NULL) fputs(graph_text(p->graph), stderr);
  explain_machine(name, &x.sim.machine);
  explain_accuracy(d);
  if (!svg_only() && print_fn != NULL) print_fn(&x);
  else if (!svg_only() && given(O_JSON) != NULL) decomposed_json(p, d, &x.sim, how.stmt, name);
  else if (!svg_only()) decomposed_table(d, &x.sim, how.stmt, name);
  ein_decomposition_destroy(d);
  return finish(p->ctx, NULL, own_graph(p));
}

static int plan_decomposed(program *p) { return simulate_decomposed(p, NULL); }
