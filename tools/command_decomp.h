// SPDX-License-Identifier: MIT
//
// command_decomp.h - `einsum plan PROG -p N`: how a program is decomposed over places.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// Options that ask for a decomposition.
static int decomposed(void) {
  static const option_id o[] = {O_PLACES, O_DECOMP, O_COST, O_PARTS, O_KEEP, O_PIN, O_MACHINE,
                                O_SVG};
  int any = 0;
  for (int i = 0; i < 8; i++) any |= opt[o[i]].n > 0;
  return any && !(opt[O_PLACES].n > 0 && strcmp(given(O_PLACES), "1") == 0 &&
                  given(O_DECOMP) == NULL && given(O_COST) == NULL && given(O_SVG) == NULL);
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
  if (given(O_MACHINE) != NULL) read_machine(given(O_MACHINE), machine);
  d->machine = machine;
}

static ein_decomp_stmt stmt_of(const ein_decomposition *d, int i) {
  ein_decomp_stmt s;
  memset(&s, 0, sizeof s);
  (void)ein_decomposition_stmt(d, i, &s);
  return s;
}

static void put_number(double v) {  // of JSON; NaN is null
  if (v != v) fputs("null", stdout);
  else printf("%.17g", v);
}

static void decomposed_json(const ein_decomposition *d, const ein_sim_info *sim,
                            const ein_sim_stmt *each) {
  ein_decomp_info info;
  ein_decomposition_info(d, &info);
  printf("{\"p\": %" PRId64 ", \"cost_model\": \"%s\", \"method\": \"%s\", \"total\": %.17g, ",
         info.p, ein_cost_name(info.cost), info.method, info.total);
  printf("\"lower\": %.17g, \"proved\": %s, \"gap\": %.17g, \"flops\": %.17g, ", info.lower,
         info.proved ? "true" : "false", info.gap, sim->flops);
  printf("\"peak_bytes\": %.17g, \"path\": null, \"statements\": [", sim->peak_bytes);
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
    printf(", \"bytes\": %.17g, \"io_bound\": null}", each[i].join + each[i].agg);
  }
  printf("], \"simulated\": {\"seconds\": %.17g, \"tasks\": %.17g, \"messages\": %.17g, "
         "\"bytes\": %.17g, \"peak_bytes\": %.17g}}\n", sim->seconds, sim->tasks, sim->messages,
         sim->join + sim->agg, sim->peak_bytes);
}

// The indices of a statement as "s 2 of 8": pieces and extent; those that are whole come bare.
static char *parts_text(const ein_decomp_stmt *s, const ein_parts *p) {
  text t = {NULL, 0, 0};
  char b[64];
  add_text(&t, "", 0);
  for (int c = 0; c < p->nindex; c++) {
    if (t.n > 0) add_text(&t, " ", 1);
    add_text(&t, s->index[c], strlen(s->index[c]));
    if (p->cut[c] == 1) continue;
    int n = snprintf(b, sizeof b, "/%" PRId64, p->cut[c]);
    add_text(&t, b, (size_t)n);
  }
  return t.s;
}

static void decomposed_table(const ein_decomposition *d, const ein_sim_info *sim,
                             const ein_sim_stmt *each) {
  static const char *const units[] = {"scalars", "scalars", "bytes", "seconds"};
  ein_decomp_info info;
  ein_decomposition_info(d, &info);
  int paper = info.cost == EIN_COST_PAPER || info.cost == EIN_COST_PAPER_CODE, width = 9;
  for (int i = 0; i < info.nstmt; i++) {
    int n = (int)strlen(stmt_of(d, i).out);
    if (n > width) width = n;
  }
  printf("%-*s  %-28s %8s %12s %12s %12s %11s\n", width, "statement", "index/pieces", "tasks",
         "join", "agg", paper ? "repart" : "messages", "seconds");
  for (int i = 0; i < info.nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    ein_parts p;
    (void)ein_decomposition_parts(d, i, &p);
    int seconds = info.cost == EIN_COST_SECONDS;
    printf("%-*s  %-28s %8" PRId64 " %12.6g %12.6g %12.6g %11.4g\n", width, s.out,
           parts_text(&s, &p), p.ntask, seconds ? each[i].join : p.join, p.agg,
           paper ? p.repart : each[i].messages, each[i].end - each[i].start);
  }
  printf("total %.10g %s under %s for p = %" PRId64 "; method %s", info.total, units[info.cost],
         ein_cost_name(info.cost), info.p, info.method);
  if (info.proved) puts(" (proved optimal)");
  else printf(" (at most %.3g%% above the least)\n",
              info.lower > 0 ? 100 * (info.total / info.lower - 1) : 1e9);
  printf("simulated: %.6g s, %.10g tasks, %.10g messages, %.10g bytes moved, peak %.10g bytes at "
         "a place\n", sim->seconds, sim->tasks, sim->messages, sim->join + sim->agg,
         sim->peak_bytes);
}

#include "command_svg.h"

static int plan_decomposed(program *p) {
  const char *svg = given(O_SVG);
  picture drawn;
  ein_decompose_desc desc;
  ein_machine machine;
  ein_decomposition *d;
  ein_decomp_info info;
  ein_sim_desc how;
  ein_sim_info sim;
  option_decompose(&desc, &machine);
  ein_status st = ein_decompose(p->ctx, p->graph, &desc, &d);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
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
  st = ein_simulate(p->ctx, p->graph, d, &how, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (svg != NULL) picture_end(&drawn, svg, &sim);
  if (given(O_JSON) != NULL) decomposed_json(d, &sim, how.stmt);
  else decomposed_table(d, &sim, how.stmt);
  ein_decomposition_destroy(d);
  return finish(p->ctx, NULL, p->graph);
}
