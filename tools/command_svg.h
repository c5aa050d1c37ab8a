// SPDX-License-Identifier: MIT
//
// command_svg.h - `einsum plan PROG --svg FILE`: the graph with its partitions, the bytes that move
// along its edges, and the simulated time line; of `einsum run PROG --svg FILE` the measured one.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

typedef struct bars {
  svg_bar *v;
  int64_t n, room, dropped;
} bars;

typedef struct picture {
  const ein_decomposition *d;
  int nstmt, ninput, nedge, room;
  svg_node *node;           // inputs, then statements
  svg_edge *edge;           // by statement that reads
  int *first;               // of each statement's edges
  double *bytes;            // of each edge
  bars place, thread;
  int *color;               // of each statement
  const char **name;        // of each color
} picture;

// A thread's tasks; it alone writes them while the program runs.
typedef struct happened {
  ein_dist_event *v;
  int64_t n, room, dropped;
  double *busy;            // seconds of tasks by statement
} happened;

enum { PICTURE_BARS = 1 << 16 };

static svg_bar *picture_bar(bars *b) {
  if (b->n == PICTURE_BARS) return b->dropped++, NULL;
  if (b->n == b->room) {
    svg_bar *old = b->v;
    b->room = b->room == 0 ? 256 : 2 * b->room;
    b->v = (svg_bar *)memory((size_t)b->room * sizeof *b->v);
    if (b->n > 0) memcpy(b->v, old, (size_t)b->n * sizeof *old);
  }
  return &b->v[b->n++];
}

static void picture_work(picture *p, bars *to, int stmt, int64_t row, double start, double end,
                         int merge) {
  svg_bar *b = row < SVG_ROWS ? picture_bar(to) : NULL;
  if (b == NULL) return;
  b->row = row, b->from = start, b->to = end, b->color = p->color[stmt], b->merge = merge;
  b->text = p->node[p->ninput + stmt].title;
}

static void picture_task(void *user, int stmt, int64_t place, double start, double end) {
  picture *p = (picture *)user;
  picture_work(p, &p->place, stmt, place, start, end, 0);
}

// Of a run: called by several threads at once, so it keeps clear of memory() and die().
static ein_status picture_event(void *user, const ein_dist_event *event) {
  happened *h = &((happened *)user)[event->worker];
  h->busy[event->stmt] += event->end - event->begin;
  if (h->n == PICTURE_BARS) return h->dropped++, EIN_OK;
  if (h->n == h->room) {
    int64_t room = h->room == 0 ? 256 : 2 * h->room;
    void *more = realloc(h->v, (size_t)room * sizeof *h->v);
    if (more == NULL) return EIN_ERR_NO_MEMORY;
    h->v = (ein_dist_event *)more, h->room = room;
  }
  h->v[h->n++] = *event;
  return EIN_OK;
}

// Bars of what happened since `begin`.
static void picture_events(picture *p, happened *of, int nworker, double begin) {
  for (int w = 0; w < nworker; w++) {
    for (int64_t i = 0; i < of[w].n; i++) {
      const ein_dist_event *e = &of[w].v[i];
      double from = e->begin - begin, to = e->end - begin;
      picture_work(p, &p->place, e->stmt, e->place, from, to, e->level >= 0);
      picture_work(p, &p->thread, e->stmt, w, from, to, e->level >= 0);
    }
    p->place.dropped += of[w].dropped, p->thread.dropped += of[w].dropped;
    free(of[w].v);
  }
}

static void picture_fetch(void *user, int from, int stmt, int operand, int64_t place,
                          double bytes) {
  picture *p = (picture *)user;
  const char *name = stmt_of(p->d, stmt).operand[operand];
  (void)place;
  for (int e = p->first[stmt]; e < p->first[stmt + 1]; e++) {
    const int node = p->edge[e].from;
    if (from >= 0 ? node != p->ninput + from
                  : node >= p->ninput || strcmp(p->node[node].title, name) != 0)
      continue;
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

enum { PICTURE_NEAR = 6 };  // statements apart that still share the box of an input

// The box of an input for statement i: the last one, where its first reader is near.
static int picture_input(picture *p, const char *name, int i, int *reader, int most) {
  for (int n = p->ninput; n-- > 0;) {
    if (strcmp(p->node[n].title, name) != 0) continue;
    if (i - reader[n] > PICTURE_NEAR && p->ninput < most) break;
    return n;
  }
  if (p->ninput == most) return -1;
  p->node[p->ninput].title = name;
  reader[p->ninput] = i;
  return p->ninput++;
}

static int picture_is(const program *prog, const char *name, ein_role role) {
  ein_tensor_info t;
  for (int k = 0; k < ein_graph_tensors(prog->graph); k++)
    if (ein_graph_tensor(prog->graph, k, &t) && t.role == role && strcmp(t.name, name) == 0)
      return 1;
  return 0;
}

static void picture_statement(picture *p, const program *prog, int i) {
  ein_parts parts;
  char b[64];
  const ein_decomp_stmt s = stmt_of(p->d, i);
  svg_node *node = &p->node[p->ninput + i];
  (void)ein_decomposition_parts(p->d, i, &parts);
  text t = {NULL, 0, 0};
  char *cut = parts_text(&s, &parts);
  add_text(&t, cut, strlen(cut));
  add_text(&t, b, (size_t)snprintf(b, sizeof b, "\n%" PRId64 " task%s", parts.ntask,
                                   parts.ntask == 1 ? "" : "s"));
  node->title = title_text(&s);
  node->text = t.s;
  node->kind = picture_is(prog, s.out, EIN_ROLE_OUTPUT) ? 2 : 1;
}

enum { PICTURE_SMALL = 60 };

// Every statement has a color of its own, but in a large graph those have one together whose names
// differ in numbers only, as those of layers do.
static void picture_colors(picture *p) {
  int n = 0;
  p->color = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->color);
  p->name = (const char **)memory(((size_t)p->nstmt + 1) * sizeof *p->name);
  for (int i = 0; i < p->nstmt; i++) {
    const char *s = p->node[p->ninput + i].title;
    text t = {NULL, 0, 0};
    int c = n, large = p->nstmt > PICTURE_SMALL;
    for (const char *from = s; *s; s++) {
      int digit = *s >= '0' && *s <= '9', letter = s > from && s[-1] != '_' && s[-1] != '.';
      if (!large || !digit || (letter && t.s[t.n - 1] != '#')) add_text(&t, s, 1);
      else if (t.n > 0 && t.s[t.n - 1] != '#') add_text(&t, "#", 1);
    }
    for (int k = 0; k < n && large && c == n; k++)
      if (strcmp(p->name[k], t.s) == 0) c = k;
    if (c == n) p->name[n++] = t.s;
    p->color[i] = c;
  }
}

// Inputs and statements as nodes; an edge from every statement that defines what another one reads.
// Inputs come again where they are read far away.
static void picture_begin(picture *p, const program *prog, const ein_decomposition *d) {
  ein_decomp_info info;
  int most = 0, nread = 0;
  memset(p, 0, sizeof *p);
  ein_decomposition_info(d, &info);
  p->d = d, p->nstmt = info.nstmt;
  for (int i = 0; i < p->nstmt; i++) most += stmt_of(d, i).noperand;
  p->node = (svg_node *)memory(((size_t)most + (size_t)p->nstmt + 1) * sizeof *p->node);
  p->first = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->first);
  int *reader = (int *)memory(((size_t)most + 1) * sizeof *reader);
  int *from = (int *)memory(((size_t)most + 1) * sizeof *from);  // of each operand: its input
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    for (int k = 0; k < s.noperand; k++, nread++) {
      from[nread] = -1;
      if (picture_is(prog, s.operand[k], EIN_ROLE_INPUT))
        from[nread] = picture_input(p, s.operand[k], i, reader, most);
    }
  }
  nread = 0;
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    picture_statement(p, prog, i);
    p->first[i] = p->nedge;
    for (int k = 0; k < s.noperand; k++, nread++) {
      if (from[nread] >= 0) picture_edge(p, from[nread], i);
      for (int j = 0; j < i && from[nread] < 0; j++)
        if (strcmp(stmt_of(d, j).out, s.operand[k]) == 0)
          picture_edge(p, p->ninput + j, i);
    }
  }
  p->first[p->nstmt] = p->nedge;
  p->bytes = (double *)memory(((size_t)p->nedge + 1) * sizeof *p->bytes);
  picture_colors(p);
}

// Under "paper" a cost counts scalars, else bytes or seconds.
static char *cost_text(const ein_decomp_info *info) {
  char b[64];
  if (info->cost == EIN_COST_BYTES) return bytes_text(info->total);
  int n = snprintf(b, sizeof b, "%.4g %s", info->total,
                   info->cost == EIN_COST_SECONDS ? "s" : "scalars");
  return copy_text(b, (size_t)n);
}

// seconds: measured, of a run on `threads` threads (0: those of the fabric are not shown); less
// than 0: what is drawn was simulated.
static void picture_end(picture *p, const char *path, const ein_sim_info *sim, double seconds,
                        int nthread, const char *fabric) {
  ein_decomp_info info;
  char title[300], measured[80];
  double most = 0;
  svg_time time[2];
  memset(time, 0, sizeof time);
  ein_decomposition_info(p->d, &info);
  for (int e = 0; e < p->nedge; e++)
    if (p->bytes[e] > most) most = p->bytes[e];
  for (int e = 0; e < p->nedge; e++) {
    if (p->bytes[e] <= 0) continue;
    p->edge[e].text = bytes_text(p->bytes[e]);
    p->edge[e].weight = p->bytes[e] / most;
  }
  snprintf(title, sizeof title, "%d statement%s for %" PRId64 " place%s by %s: cost %s (%s), %s "
           "moved in %.10g messages", p->nstmt, p->nstmt == 1 ? "" : "s", info.p,
           info.p == 1 ? "" : "s", info.method, cost_text(&info), ein_cost_name(info.cost),
           bytes_text(sim->join + sim->agg), sim->messages);
  snprintf(measured, sizeof measured, "measured, fabric %s", fabric != NULL ? fabric : "");
  time[0].title = seconds < 0 ? "simulated" : measured;
  time[0].what = "place";
  time[0].nrow = info.p, time[0].nbar = p->place.n, time[0].bar = p->place.v;
  time[0].dropped = p->place.dropped;
  time[0].seconds = seconds < 0 ? sim->seconds : seconds;
  time[0].name = p->name, time[0].keys = 1;
  time[1] = time[0];
  time[1].title = "the same tasks by thread", time[1].what = "thread", time[1].keys = 0;
  time[1].nrow = nthread, time[1].nbar = p->thread.n, time[1].bar = p->thread.v;
  time[1].dropped = p->thread.dropped;
  if (!svg_plan(output_stream(path), title, p->ninput + p->nstmt, p->node, p->nedge, p->edge,
                nthread > 0 ? 2 : 1, time))
    die(SYSTEM_FAILED, NULL, "out of memory");
}
