// SPDX-License-Identifier: MIT
//
// command_svg.h - `einsum plan PROG --svg FILE`: the graph with its partitions, the bytes that move
// along its edges, and the simulated time line.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

#include "svg.h"

typedef struct picture {
  const ein_decomposition *d;
  int nstmt, ninput, nedge, room;
  svg_node *node;           // inputs, then statements
  svg_edge *edge;           // by statement that reads
  int *first;               // of each statement's edges
  double *bytes;            // of each edge
  svg_bar *bar;
  int64_t nbar, bar_room;
} picture;

enum { PICTURE_BARS = 1 << 16 };

static void picture_task(void *user, int stmt, int64_t place, double start, double end) {
  picture *p = (picture *)user;
  if (place >= SVG_ROWS || p->nbar == PICTURE_BARS) return;
  if (p->nbar == p->bar_room) {
    svg_bar *old = p->bar;
    p->bar_room = p->bar_room == 0 ? 256 : 2 * p->bar_room;
    p->bar = (svg_bar *)memory((size_t)p->bar_room * sizeof *p->bar);
    if (p->nbar > 0) memcpy(p->bar, old, (size_t)p->nbar * sizeof *old);
  }
  svg_bar *b = &p->bar[p->nbar++];
  b->row = place, b->from = start, b->to = end, b->color = stmt;
  b->text = p->node[p->ninput + stmt].title;
}

static void picture_fetch(void *user, int from, int stmt, int operand, int64_t place,
                          double bytes) {
  picture *p = (picture *)user;
  (void)operand, (void)place;
  for (int e = p->first[stmt]; e < p->first[stmt + 1]; e++)
    if (from >= 0 ? p->edge[e].from == p->ninput + from : p->edge[e].from < p->ninput) {
      p->bytes[e] += bytes;
      return;
    }
}

static void picture_edge(picture *p, int from, int stmt) {
  for (int e = p->first[stmt]; e < p->nedge; e++)
    if (p->edge[e].from == from) return;
  if (p->nedge == p->room) {
    svg_edge *old = p->edge;
    p->room = p->room == 0 ? 64 : 2 * p->room;
    p->edge = (svg_edge *)memory((size_t)p->room * sizeof *p->edge);
    if (p->nedge > 0) memcpy(p->edge, old, (size_t)p->nedge * sizeof *old);
  }
  memset(&p->edge[p->nedge], 0, sizeof *p->edge);
  p->edge[p->nedge].from = from;
  p->edge[p->nedge++].to = p->ninput + stmt;
}

// "3.2 MB".
static char *bytes_text(double x) {
  static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  char b[64];
  int k = 0;
  for (; x >= 999.5 && k < 5; k++) x /= 1000;
  return copy_text(b, (size_t)snprintf(b, sizeof b, "%.3g %s", x, unit[k]));
}

static char *title_text(const ein_decomp_stmt *s) {
  text t = {NULL, 0, 0};
  add_text(&t, s->out, strlen(s->out));
  add_text(&t, "[", 1);
  for (int c = 0; c < s->nfree; c++) {
    if (c > 0) add_text(&t, ",", 1);
    add_text(&t, s->index[c], strlen(s->index[c]));
  }
  add_text(&t, "]", 1);
  for (int c = s->nfree; c < s->nindex; c++) {
    add_text(&t, c > s->nfree ? "," : " | ", c > s->nfree ? 1 : 3);
    add_text(&t, s->index[c], strlen(s->index[c]));
  }
  return t.s;
}

// A file beside PATH that takes its name when it is whole. "-" is standard output.
static char *picture_part(const char *path) {
  text t = {NULL, 0, 0};
  add_text(&t, path, strlen(path));
  add_text(&t, ".part", 5);
  return t.s;
}

static FILE *picture_open(const char *path) {
  FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(picture_part(path), "w");
  if (f == NULL) die(SYSTEM_FAILED, NULL, "%s: %s", path, strerror(errno));
  return f;
}

static void picture_close(FILE *f, const char *path, int drawn) {
  if (f == stdout) {
    if (!drawn) die(SYSTEM_FAILED, NULL, "out of memory");
    return;
  }
  char *part = picture_part(path);
  int bad = ferror(f), closed = fclose(f) == 0, error = errno;
  if (drawn && !bad && closed) {
#ifdef _WIN32
    remove(path);  // rename does not replace a file there
#endif
    if (rename(part, path) == 0) return;
    error = errno;
  }
  remove(part);
  die(SYSTEM_FAILED, NULL, "%s: %s", path, drawn ? strerror(error) : "out of memory");
}

// Inputs and statements as nodes; an edge from every statement that defines what another one reads.
static void picture_begin(picture *p, const program *prog, const ein_decomposition *d) {
  ein_decomp_info info;
  ein_tensor_info tensor;
  ein_decomp_stmt s;
  int ntensor = ein_graph_tensors(prog->graph);
  memset(p, 0, sizeof *p);
  ein_decomposition_info(d, &info);
  p->d = d, p->nstmt = info.nstmt;
  p->node = (svg_node *)memory(((size_t)ntensor + (size_t)info.nstmt + 1) * sizeof *p->node);
  p->first = (int *)memory(((size_t)info.nstmt + 1) * sizeof *p->first);
  for (int t = 0; t < ntensor; t++) {
    if (!ein_graph_tensor(prog->graph, t, &tensor) || tensor.role != EIN_ROLE_INPUT) continue;
    p->node[p->ninput].title = tensor.name;
    p->node[p->ninput].text = NULL;
    p->node[p->ninput++].kind = 0;
  }
  for (int i = 0; i < p->nstmt; i++) {
    ein_parts parts;
    char b[64];
    s = stmt_of(d, i);
    (void)ein_decomposition_parts(d, i, &parts);
    text t = {NULL, 0, 0};
    char *cut = parts_text(&s, &parts);
    add_text(&t, cut, strlen(cut));
    add_text(&t, b, (size_t)snprintf(b, sizeof b, "\n%" PRId64 " task%s", parts.ntask,
                                     parts.ntask == 1 ? "" : "s"));
    p->node[p->ninput + i].title = title_text(&s);
    p->node[p->ninput + i].text = t.s;
    p->node[p->ninput + i].kind = 1;
    for (int k = 0; k < ntensor; k++)
      if (ein_graph_tensor(prog->graph, k, &tensor) && tensor.role == EIN_ROLE_OUTPUT &&
          strcmp(tensor.name, s.out) == 0)
        p->node[p->ninput + i].kind = 2;
    p->first[i] = p->nedge;
    for (int k = 0; k < s.noperand; k++) {
      for (int n = 0; n < p->ninput; n++)
        if (strcmp(p->node[n].title, s.operand[k]) == 0) picture_edge(p, n, i);
      for (int j = 0; j < i; j++)
        if (strcmp(stmt_of(d, j).out, s.operand[k]) == 0)
          picture_edge(p, p->ninput + j, i);
    }
  }
  p->first[p->nstmt] = p->nedge;
  p->bytes = (double *)memory(((size_t)p->nedge + 1) * sizeof *p->bytes);
  memset(p->bytes, 0, ((size_t)p->nedge + 1) * sizeof *p->bytes);
}

static void picture_end(picture *p, const char *path, const ein_sim_info *sim) {
  ein_decomp_info info;
  char title[300];
  double most = 0;
  ein_decomposition_info(p->d, &info);
  for (int e = 0; e < p->nedge; e++)
    if (p->bytes[e] > most) most = p->bytes[e];
  for (int e = 0; e < p->nedge; e++) {
    if (p->bytes[e] <= 0) continue;
    p->edge[e].text = bytes_text(p->bytes[e]);
    p->edge[e].weight = p->bytes[e] / most;
  }
  snprintf(title, sizeof title, "%s for %" PRId64 " places: %.4g %s under %s, %s moved, %.4g s "
           "simulated", info.method, info.p, info.total,
           info.cost == EIN_COST_SECONDS ? "s" : info.cost == EIN_COST_BYTES ? "bytes" : "scalars",
           ein_cost_name(info.cost), bytes_text(sim->join + sim->agg), sim->seconds);
  svg_time time;
  time.nrow = info.p, time.nbar = p->nbar, time.bar = p->bar, time.seconds = sim->seconds;
  FILE *f = picture_open(path);
  int drawn = svg_plan(f, title, p->ninput + p->nstmt, p->node, p->nedge, p->edge, &time);
  picture_close(f, path, drawn);
}
