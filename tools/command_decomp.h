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
                                      "memory"};
  double *const values[] = {&m->flops, &m->memory_bw, &m->latency, &m->bandwidth, &m->overhead,
                            &m->memory};
  size_t length;
  int line = 1;
  for (char *s = read_text(path, &length); *s; line++) {
    size_t n = strcspn(s, "\n");
    char *field = copy_text(s, strcspn(s, "#\n")), *value;
    s += n + (s[n] != 0);
    field += strspn(field, " \t\r");
    if (*field == 0) continue;
    value = field + strcspn(field, " \t\r=:");
    size_t name = (size_t)(value - field);
    value += strspn(value, " \t\r=:");
    value[strcspn(value, " \t\r")] = 0;
    int k = 0;
    while (k < 6 && !(strlen(names[k]) == name && memcmp(names[k], field, name) == 0)) k++;
    ein_scalar v;
    if (k == 6) {
      die(WRONG_INPUT, "flops, memory_bw, latency, bandwidth, overhead or memory",
          "%s:%d: a machine has no '%.*s'", path, line, (int)name, field);
    }
    if (!read_scalar(value, &v) || v.im != 0 || !(v.re > 0) || v.re > 1e30)
      die(WRONG_INPUT, NULL, "%s:%d: %s is not a positive number: '%s'", path, line, names[k],
          value);
    *values[k] = v.re;
  }
}

static void option_decompose(ein_decompose_desc *d, ein_machine *machine) {
  const char *p = given(O_PLACES), *cost = given(O_COST);
  memset(d, 0, sizeof *d);
  memset(machine, 0, sizeof *machine);
  d->p = 1;
  if (p != NULL && !read_int(p, strlen(p), &d->p)) misuse(NULL, "-p takes a number, not '%s'", p);
  if (cost != NULL) d->cost = ein_cost_find(cost);
  if (d->cost == EIN_COST_COUNT)
    misuse("paper, paper-code, bytes or seconds", "no cost model is called '%s'", cost);
  d->method = given(O_DECOMP);
  d->parts = option_list(O_PARTS, &d->nparts);
  d->keep = option_list(O_KEEP, &d->nkeep);
  d->pin = option_list(O_PIN, &d->npin);
  option_family(d);
  if (given(O_MACHINE) != NULL) read_machine(given(O_MACHINE), machine);
  double budget = (double)option_memory();
  if (budget > 0 && (machine->memory == 0 || budget < machine->memory)) machine->memory = budget;
  d->machine = machine;
}

// Decomposes. With --memory, a plan whose places have more than that alive is none: then the
// message says what is enough.
static ein_decomposition *decompose(const program *p, const ein_decompose_desc *desc,
                                    const ein_machine *machine) {
  ein_machine wider = *machine;
  ein_decompose_desc how = *desc;
  ein_decomposition *d;
  ein_sim_desc sim_desc;
  ein_sim_info sim;
  how.machine = &wider;
  for (;;) {
    ein_status st = ein_decompose(p->ctx, p->graph, &how, &d);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
    if (given(O_MEMORY) == NULL) return d;
    memset(&sim_desc, 0, sizeof sim_desc);
    sim_desc.machine = machine;
    st = ein_simulate(p->ctx, p->graph, d, &sim_desc, &sim);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
    if (sim.peak_bytes <= wider.memory) break;
    wider.memory = sim.peak_bytes;
    ein_decomposition_destroy(d);
  }
  if (wider.memory == machine->memory) return d;
  die(WRONG_INPUT, "more places have less each",
      "no plan found keeps every place within %.10g bytes; %.10g are enough", machine->memory,
      wider.memory);
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

static void decomposed_total(const ein_decomp_info *info, const ein_sim_info *sim) {
  static const char *const units[] = {"scalars", "scalars", "bytes", "seconds"};
  char took[40];
  printf("total %.10g %s under %s for p = %" PRId64 "; method %s", info->total, units[info->cost],
         ein_cost_name(info->cost), info->p, info->method);
  if (info->proved) puts(" (proved optimal)");
  else if (info->lower > 0)
    printf(" (at most %.3g%% above the least)\n", 100 * (info->total / info->lower - 1));
  else puts(" (not proved optimal)");
  svg_seconds(took, sizeof took, sim->seconds, sim->seconds);
  printf("simulated: %s, places idle %.1f%%; %.10g tasks, %.10g messages, %.10g bytes moved, "
         "peak %.10g bytes at a place\n", took,
         100 * idle_share(sim->busy, sim->seconds, info->p), sim->tasks, sim->messages,
         sim->join + sim->agg, sim->peak_bytes);
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
  if (parts) puts("T.1, T.2, ..: parts of the statement of T; T.d1, ..: for gradients.");
  if (idle_share(sim->busy, sim->seconds, info->p) > 0.5 && info->cost != EIN_COST_SECONDS)
    puts("Places are idle most of the time: --cost seconds looks at time, --strict cuts all into "
         "-p tasks.");
}

static void decomposed_table(const ein_decomposition *d, const ein_sim_info *sim,
                             const ein_sim_stmt *each) {
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
  decomposed_total(&info, sim);
  decomposed_notes(&info, sim, parts);
}

static void put_number(double v) {  // of JSON; NaN is null
  if (v != v) fputs("null", stdout);
  else printf("%.17g", v);
}

static void decomposed_json(const program *prog, const ein_decomposition *d,
                            const ein_sim_info *sim, const ein_sim_stmt *each) {
  ein_decomp_info info;
  ein_decomposition_info(d, &info);
  printf("{\"p\": %" PRId64 ", \"cost_model\": \"%s\", \"method\": \"%s\", \"total\": %.17g, ",
         info.p, ein_cost_name(info.cost), info.method, info.total);
  printf("\"lower\": %.17g, \"proved\": %s, \"gap\": %.17g, \"flops\": %.17g, ", info.lower,
         info.proved ? "true" : "false", info.gap, sim->flops);
  printf("\"peak_bytes\": %.17g, \"path\": %s, \"statements\": [", sim->peak_bytes,
         prog->path != NULL ? prog->path : "null");
  for (int i = 0; i < info.nstmt; i++) {
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
    printf("], \"join\": %.17g, \"agg\": %.17g, \"repart\": %.17g, \"kernels\": %" PRId64
           ", \"seconds\": ", p.join, p.agg, p.repart, p.ntask);
    put_number(each[i].end - each[i].start);
    printf(", \"cost\": %.17g, \"bytes\": %.17g, \"messages\": %.17g, \"start\": %.17g, "
           "\"idle\": %.17g, \"io_bound\": null}", parts_cost(&info, &p),
           each[i].join + each[i].agg, each[i].messages, each[i].start,
           idle_share(each[i].busy, each[i].end - each[i].start, info.p));
  }
  printf("], \"simulated\": {\"seconds\": %.17g, \"tasks\": %.17g, \"messages\": %.17g, "
         "\"bytes\": %.17g, \"peak_bytes\": %.17g, \"idle\": %.17g}}\n", sim->seconds, sim->tasks,
         sim->messages, sim->join + sim->agg, sim->peak_bytes,
         idle_share(sim->busy, sim->seconds, info.p));
}

#include "command_svg.h"

// The statements that are decomposed, as a program.
static char *graph_text(const ein_graph *g) {
  size_t n = ein_graph_print(g, NULL, 0);
  char *s = (char *)memory(n + 1);
  (void)ein_graph_print(g, s, n + 1);
  return s;
}

static int plan_decomposed(program *p) {
  const char *svg = given(O_SVG);
  picture drawn;
  ein_decompose_desc desc;
  ein_machine machine;
  ein_decomposition *d;
  ein_decomp_info info;
  ein_sim_desc how;
  ein_sim_info sim;
  if (svg != NULL) check_target(svg);
  if (svg != NULL && strcmp(svg, "-") == 0 && given(O_JSON) != NULL)
    misuse(NULL, "the picture and --json both go to standard output");
  option_decompose(&desc, &machine);
  d = decompose(p, &desc, &machine);
  ein_decomposition_info(d, &info);
  memset(&how, 0, sizeof how);
  how.machine = &machine;
  how.stmt = (ein_sim_stmt *)memory(sizeof *how.stmt * ((size_t)info.nstmt + 1));
  if (svg != NULL) {
    picture_begin(&drawn, p, d);
    how.task_fn = picture_task;
    how.fetch_fn = picture_fetch;
    how.user = &drawn;
  }
  ein_status st = ein_simulate(p->ctx, p->graph, d, &how, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (svg != NULL) picture_end(&drawn, svg, &sim, -1, 0, NULL);
  if (given(O_EXPLAIN) != NULL) fputs(graph_text(p->graph), stderr);
  if (svg == NULL || strcmp(svg, "-") != 0) {
    if (given(O_JSON) != NULL) decomposed_json(p, d, &sim, how.stmt);
    else decomposed_table(d, &sim, how.stmt);
  }
  if (svg != NULL) picture_keep(svg);
  ein_decomposition_destroy(d);
  return finish(p->ctx, NULL, p->graph);
}
