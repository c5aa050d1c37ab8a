// SPDX-License-Identifier: MIT
//
// command_svg.h - `einsum plan PROG --svg FILE`: the graph with its partitions, the bytes that move
// along its edges, and the simulated time line; of `einsum run PROG --svg FILE` the measured one.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

typedef struct bars {
  svg_bar *v;
  int64_t n, room, dropped;
} bars;

// What the operands of a statement are drawn from: an input's box or a statement, and whether that
// is of the repetition before.
typedef struct picture_source {
  int node, carry;
} picture_source;

typedef struct picture {
  const ein_decomposition *d;
  int nstmt, ninput, nnode, nedge, room;
  svg_node *node;           // inputs, then the statements that are drawn
  svg_edge *edge;
  int *last, *before;       // of each node its last edge, and of each edge the one before; -1: none
  int *like;                // of each statement the one that is drawn for it
  int *turn;                // which repetition of that it is
  int *group;               // and the first of all statements that repeat with it; -1: none
  int *number;              // of each statement that is drawn its node
  char **title;             // of each statement
  picture_source **from;    // of each statement and operand
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
  b->text = p->title[stmt];
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

// The edge of a kind between two nodes; made where there is none.
static svg_edge *picture_edge(picture *p, int from, int to, int type) {
  for (int e = p->last[to]; e >= 0; e = p->before[e])
    if (p->edge[e].from == from && p->edge[e].kind == type) return &p->edge[e];
  if (p->nedge == p->room) {
    svg_edge *old = p->edge;
    int *had = p->before;
    p->room = p->room == 0 ? 64 : 2 * p->room;
    p->edge = (svg_edge *)memory((size_t)p->room * sizeof *p->edge);
    p->before = (int *)memory((size_t)p->room * sizeof *p->before);
    if (p->nedge > 0) memcpy(p->edge, old, (size_t)p->nedge * sizeof *old);
    if (p->nedge > 0) memcpy(p->before, had, (size_t)p->nedge * sizeof *had);
  }
  svg_edge *e = &p->edge[p->nedge];
  memset(e, 0, sizeof *e);
  e->from = from, e->to = to, e->kind = type;
  p->before[p->nedge] = p->last[to];
  p->last[to] = p->nedge++;
  return e;
}

static int picture_node(const picture *p, int stmt) { return p->number[p->like[stmt]]; }

// The edge along which an operand comes; stmt -1 of what it comes from: the one of `from`.
static svg_edge *picture_flow(picture *p, int producer, int stmt, int operand) {
  picture_source x = p->from[stmt][operand];
  if (producer >= 0) {
    x.node = picture_node(p, producer);
    x.carry = p->group[stmt] >= 0 && p->group[producer] == p->group[stmt] &&
              p->turn[producer] != p->turn[stmt];
  }
  return picture_edge(p, x.node, picture_node(p, stmt), x.carry ? SVG_CARRY : SVG_FLOW);
}

static void picture_fetch(void *user, int from, int stmt, int operand, int64_t place,
                          double bytes) {
  (void)place;
  picture_flow((picture *)user, from, stmt, operand)->bytes += bytes;
}

// Partial results that went home.
static void picture_folds(picture *p, const ein_sim_stmt *each) {
  for (int i = 0; i < p->nstmt; i++) {
    const int node = picture_node(p, i);
    if (each[i].agg > 0) picture_edge(p, node, node, SVG_LOOP)->bytes += each[i].agg;
  }
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

static int picture_is(const program *prog, const char *name, ein_role role) {
  ein_tensor_info t;
  for (int k = 0; k < ein_graph_tensors(prog->graph); k++)
    if (ein_graph_tensor(prog->graph, k, &t) && t.role == role && strcmp(t.name, name) == 0)
      return 1;
  return 0;
}

// ---- statements that repeat: equal but for names, and what they read of each other

static int same_map(const ein_zmap *a, const ein_zmap *b) {
  const size_t n = (size_t)a->rows * (size_t)a->cols;
  return a->rows == b->rows && a->cols == b->cols &&
         (n == 0 || memcmp(a->coef, b->coef, n * sizeof *a->coef) == 0) &&
         (a->rows == 0 ||
          memcmp(a->offset, b->offset, (size_t)a->rows * sizeof *a->offset) == 0);
}

// An expression with numbers in place of the names of indices.
static char *plain_map(const ein_decomp_stmt *s) {
  text t = {NULL, 0, 0};
  char b[32];
  add_text(&t, "", 0);
  for (const char *at = s->map == NULL ? "" : s->map; *at;) {
    size_t n = 0;
    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z') || at[n] == '_' ||
           (n > 0 && at[n] >= '0' && at[n] <= '9') || (unsigned char)at[n] >= 0x80)
      n++;
    int c = 0;
    while (c < s->nindex && !(n > 0 && strlen(s->index[c]) == n && memcmp(s->index[c], at, n) == 0))
      c++;
    if (c < s->nindex) add_text(&t, b, (size_t)snprintf(b, sizeof b, "#%d", c));
    else add_text(&t, at, n > 0 ? n : 1);
    at += n > 0 ? n : 1;
  }
  return t.s;
}

// Do two statements do the same, of the same extents, cut in the same way? loose: the same to
// whatever extents.
static int same_work(const picture *p, int i, int j, char *const *map, int loose) {
  const ein_decomp_stmt a = stmt_of(p->d, i), b = stmt_of(p->d, j);
  ein_parts x, y;
  const size_t n = (size_t)a.nindex;
  if (a.nindex != b.nindex || a.nfree != b.nfree || a.noperand != b.noperand ||
      a.dtype != b.dtype || a.map == NULL || b.map == NULL || strcmp(map[i], map[j]) != 0 ||
      (a.fold == NULL) != (b.fold == NULL) || (a.fold != NULL && strcmp(a.fold, b.fold) != 0))
    return 0;
  for (int k = 0; k < a.noperand; k++)
    if (!same_map(&a.proj[k], &b.proj[k])) return 0;
  if (!same_map(&a.out_map, &b.out_map)) return 0;
  if (loose) return 1;
  (void)ein_decomposition_parts(p->d, i, &x);
  (void)ein_decomposition_parts(p->d, j, &y);
  return a.rest == b.rest && x.norder == y.norder &&
         (n == 0 || (memcmp(a.extent, b.extent, n * sizeof *a.extent) == 0 &&
                     memcmp(x.cut, y.cut, n * sizeof *x.cut) == 0)) &&
         (x.norder == 0 || memcmp(x.order, y.order, (size_t)x.norder * sizeof *x.order) == 0);
}

// Numbers of kinds of statements, each that of the first of its kind.
static int *picture_kinds(const picture *p, char *const *map, int loose) {
  int *of = (int *)memory(((size_t)p->nstmt + 1) * sizeof *of);
  int *first = (int *)memory(((size_t)p->nstmt + 1) * sizeof *first), n = 0;
  for (int i = 0; i < p->nstmt; i++) {
    int k = 0;
    while (k < n && !same_work(p, i, first[k], map, loose)) k++;
    if (k == n) first[n++] = i;
    of[i] = first[k];
  }
  return of;
}

typedef struct repeats {
  const picture *p;
  const int *kind;
  int *const *maker;        // see picture_makers
} repeats;

// Do the statements from b on repeat the `period` before them, in a repetition that begins at
// `start`? They read of it what those read, so many further on; what comes from before it may be
// anything.
static int repeats_once(const repeats *r, int start, int b, int period) {
  for (int i = b; i < b + period; i++) {
    if (r->kind[i] != r->kind[i - period]) return 0;
    const int n = stmt_of(r->p->d, i).noperand;
    for (int k = 0; k <= n; k++) {
      const int x = r->maker[i - period][k], y = r->maker[i][k];
      if (x != y - period && (x >= start || y - period >= start)) return 0;
    }
  }
  return 1;
}

// So many at least are drawn as one, and so many boxes at least are saved: a few statements that
// are alike are no layers.
enum { PICTURE_REPEATS = 3, PICTURE_SAVED = 12 };

// Of the statements from `from` to `to`: finds the repetition that saves the most, then looks
// before and behind it.
static void picture_repeats(picture *p, const repeats *r, int from, int to) {
  int best = PICTURE_SAVED - 1, at = 0, period = 0, times = 0;
  for (int a = from; a < to; a++) {
    for (int m = 1; to - a - m > best && m <= (to - a) / PICTURE_REPEATS; m++) {
      int n = 1;
      while (a + (n + 1) * m <= to && repeats_once(r, a, a + n * m, m)) n++;
      if (n < PICTURE_REPEATS || (n - 1) * m <= best) continue;
      best = (n - 1) * m, at = a, period = m, times = n;
    }
  }
  if (times == 0) return;
  for (int i = at; i < at + times * period; i++) {
    p->like[i] = at + (i - at) % period;
    p->turn[i] = (i - at) / period, p->group[i] = at;
  }
  picture_repeats(p, r, from, at);
  picture_repeats(p, r, at + times * period, to);
}

// "q_*" of "q_0" and "q_31": what all names have in common.
static char *common_name(const char *a, const char *b) {
  size_t na = strlen(a), nb = strlen(b), head = 0, tail = 0;
  if (strcmp(a, b) == 0) return copy_text(a, na);
  const char *star = strchr(a, '*');  // already common
  size_t most = na < nb ? na : nb;
  while (head < most && a[head] == b[head] && a + head != star) head++;
  while (tail < most - head && a[na - 1 - tail] == b[nb - 1 - tail] && a + na - 1 - tail != star)
    tail++;
  text t = {NULL, 0, 0};
  add_text(&t, a, head);
  add_text(&t, "*", 1);
  add_text(&t, a + na - tail, tail);
  return t.s;
}

// ---- nodes and edges

enum { PICTURE_NEAR = 6, PICTURE_SMALL = 60 };  // statements

// The box of an input for statement i: the last one, where its first reader is near.
static int picture_input(picture *p, const char *name, int i, int *reader) {
  for (int n = p->ninput; n-- > 0;) {
    if (strcmp(p->node[n].title, name) != 0) continue;
    if (i - reader[n] > PICTURE_NEAR) break;
    return n;
  }
  p->node[p->ninput].title = name;
  reader[p->ninput] = i;
  return p->ninput++;
}

static void picture_statement(picture *p, const program *prog, int i) {
  ein_parts parts;
  char b[64];
  const ein_decomp_stmt s = stmt_of(p->d, i);
  svg_node *node = &p->node[p->nnode];
  (void)ein_decomposition_parts(p->d, i, &parts);
  text t = {NULL, 0, 0};
  char *cut = parts_text(&s, &parts);
  add_text(&t, cut, strlen(cut));
  add_text(&t, b, (size_t)snprintf(b, sizeof b, "\n%" PRId64 " task%s", parts.ntask,
                                   parts.ntask == 1 ? "" : "s"));
  node->title = p->title[i];
  node->kind = SVG_STATEMENT;
  for (int j = i; j < p->nstmt; j++) {
    const char *out = p->like[j] == i ? stmt_of(p->d, j).out : "";
    if (p->like[j] != i || !picture_is(prog, out, EIN_ROLE_OUTPUT)) continue;
    node->kind = SVG_OUTPUT;
    if (p->group[i] < 0) continue;
    add_text(&t, "\noutput ", 8);
    add_text(&t, out, strlen(out));
  }
  node->text = t.s;
  p->number[i] = p->nnode++;
}

// Of each statement and operand the statement that defines it, the last one before; behind the
// operands the one before that defines a part of the same tensor. -1: none, or an input.
static int **picture_makers(const picture *p) {
  int **maker = (int **)memory(((size_t)p->nstmt + 1) * sizeof *maker);
  const char **out = (const char **)memory(((size_t)p->nstmt + 1) * sizeof *out);
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(p->d, i);
    out[i] = s.out;
    maker[i] = (int *)memory(((size_t)s.noperand + 1) * sizeof **maker);
    for (int k = 0; k <= s.noperand; k++) {
      int j = i - 1;
      while (j >= 0 && strcmp(out[j], k < s.noperand ? s.operand[k] : s.out) != 0) j--;
      maker[i][k] = j;
    }
  }
  return maker;
}

// Which statements are drawn: all of a small program; of a large one those that repeat once.
static void picture_choose(picture *p, int *const *maker, char *const *map) {
  p->like = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->like);
  p->turn = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->turn);
  p->group = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->group);
  for (int i = 0; i < p->nstmt; i++) {
    p->like[i] = i, p->group[i] = -1;
  }
  if (p->nstmt <= PICTURE_SMALL) return;
  repeats r = {p, picture_kinds(p, map, 0), maker};
  picture_repeats(p, &r, 0, p->nstmt);
}

// The sources of the operands; those that a repetition reads from outside by an operand have one
// box together, which is named after all.
static void picture_sources(picture *p, int *const *maker) {
  int *reader = (int *)memory(((size_t)p->nnode + 1) * sizeof *reader);
  const char **last = (const char **)memory(((size_t)p->nnode + 1) * sizeof *last);
  p->from = (picture_source **)memory(((size_t)p->nstmt + 1) * sizeof *p->from);
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(p->d, i);
    p->from[i] = (picture_source *)memory(((size_t)s.noperand + 1) * sizeof **p->from);
    for (int k = 0; k < s.noperand; k++) {
      picture_source *x = &p->from[i][k];
      const int first = p->like[i];
      x->node = -1;
      if (maker[i][k] >= 0) continue;
      if (first == i || maker[first][k] >= 0) {
        x->node = picture_input(p, s.operand[k], first, reader);
        if (last[x->node] == NULL) last[x->node] = s.operand[k];
        continue;
      }
      x->node = p->from[first][k].node;
      svg_node *node = &p->node[x->node];
      if (last[x->node] != NULL && strcmp(last[x->node], s.operand[k]) == 0) continue;
      if (strcmp(node->title, s.operand[k]) == 0) continue;
      node->title = common_name(node->title, s.operand[k]);
      node->times += node->times == 0 ? 2 : 1;
      last[x->node] = s.operand[k];
    }
  }
}

// The names of statements that are drawn for several.
static void picture_titles(picture *p) {
  for (int i = 0; i < p->nstmt; i++) {
    const int first = p->like[i];
    svg_node *node = &p->node[p->number[first]];
    if (first == i) continue;
    const size_t a = strcspn(node->title, "["), b = strcspn(p->title[i], "[");
    text t = {NULL, 0, 0};
    char *name = common_name(copy_text(node->title, a), copy_text(p->title[i], b));
    add_text(&t, name, strlen(name));
    add_text(&t, node->title + a, strlen(node->title + a));
    node->title = t.s;
    node->times = p->turn[i] + 1;
  }
}

// Every statement that is drawn has a color of its own; of many those together that do the same.
static void picture_colors(picture *p, char *const *map) {
  int n = 0, drawn = p->nnode - p->ninput;
  const int *like = drawn > PICTURE_SMALL ? picture_kinds(p, map, 1) : p->like;
  int *of = (int *)memory(((size_t)p->nstmt + 1) * sizeof *of);
  int *members = (int *)memory(((size_t)p->nstmt + 1) * sizeof *members);
  p->color = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->color);
  p->name = (const char **)memory(((size_t)p->nstmt + 1) * sizeof *p->name);
  for (int i = 0; i < p->nstmt; i++) {
    const int first = like[i];
    if (first == i) of[i] = n, p->name[n++] = p->node[picture_node(p, i)].title;
    p->color[i] = of[first];
    members[of[first]] += p->like[i] == i;
  }
  for (int c = 0; c < n; c++) {
    text t = {NULL, 0, 0};
    char b[40];
    if (members[c] < 2) continue;
    const size_t name = strcspn(p->name[c], "[");
    add_text(&t, p->name[c], name);
    add_text(&t, b, (size_t)snprintf(b, sizeof b, " and %d like it ", members[c] - 1));
    add_text(&t, p->name[c] + name, strlen(p->name[c] + name));
    p->name[c] = t.s;
  }
}

// Inputs and statements as nodes; an edge from every statement that defines what another one reads.
// Inputs come again where they are read far away.
static void picture_begin(picture *p, const program *prog, const ein_decomposition *d) {
  ein_decomp_info info;
  int most = 0;
  memset(p, 0, sizeof *p);
  ein_decomposition_info(d, &info);
  p->d = d, p->nstmt = info.nstmt;
  p->title = (char **)memory(((size_t)p->nstmt + 1) * sizeof *p->title);
  char **map = (char **)memory(((size_t)p->nstmt + 1) * sizeof *map);
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    most += s.noperand;
    p->title[i] = title_text(&s);
    map[i] = plain_map(&s);
  }
  int **maker = picture_makers(p);
  picture_choose(p, maker, map);
  p->nnode = most;  // inputs at most; statements follow those there are
  p->node = (svg_node *)memory(((size_t)most + (size_t)p->nstmt + 1) * sizeof *p->node);
  p->number = (int *)memory(((size_t)p->nstmt + 1) * sizeof *p->number);
  picture_sources(p, maker);
  p->nnode = p->ninput;
  for (int i = 0; i < p->nstmt; i++)
    if (p->like[i] == i) picture_statement(p, prog, i);
  p->last = (int *)memory(((size_t)p->nnode + 1) * sizeof *p->last);
  for (int v = 0; v < p->nnode; v++) p->last[v] = -1;
  picture_titles(p);
  for (int i = 0; i < p->nstmt; i++) {
    for (int k = 0; k < stmt_of(d, i).noperand; k++) {
      int j = maker[i][k];
      if (j < 0) (void)picture_flow(p, j, i, k);
      for (; j >= 0; j = maker[j][stmt_of(d, j).noperand]) (void)picture_flow(p, j, i, k);
    }
  }
  picture_colors(p, map);
}

static int picture_edge_before(const void *a, const void *b) {
  const svg_edge *x = (const svg_edge *)a, *y = (const svg_edge *)b;
  return x->to != y->to ? x->to - y->to : x->from != y->from ? x->from - y->from
                                                             : x->kind - y->kind;
}

// Under "paper" a cost counts scalars, else bytes or seconds.
static char *cost_text(const ein_decomp_info *info) {
  char b[64];
  if (info->cost == EIN_COST_BYTES) return bytes_text(info->total);
  int n = snprintf(b, sizeof b, "%.4g %s", info->total,
                   info->cost == EIN_COST_SECONDS ? "s" : "scalars");
  return copy_text(b, (size_t)n);
}

// how: what the time line is, of so many seconds; nthread > 0: one by thread, too.
static void picture_draw(picture *p, const char *path, const char *title, const char *how,
                         int64_t places, double seconds, int nthread) {
  double most = 0;
  svg_time time[2];
  memset(time, 0, sizeof time);
  if (p->nedge > 0) qsort(p->edge, (size_t)p->nedge, sizeof *p->edge, picture_edge_before);
  for (int e = 0; e < p->nedge; e++)
    if (p->edge[e].bytes > most) most = p->edge[e].bytes;
  for (int e = 0; e < p->nedge; e++) {
    text t = {NULL, 0, 0};
    if (p->edge[e].bytes <= 0) continue;
    char *moved = bytes_text(p->edge[e].bytes);
    if (p->edge[e].kind == SVG_LOOP) add_text(&t, "partials ", 9);
    add_text(&t, moved, strlen(moved));
    p->edge[e].text = t.s;
    p->edge[e].weight = p->edge[e].bytes / most;
  }
  time[0].title = how;
  time[0].what = "place";
  time[0].nrow = places, time[0].nbar = p->place.n, time[0].bar = p->place.v;
  time[0].dropped = p->place.dropped;
  time[0].seconds = seconds;
  time[0].name = p->name, time[0].keys = 1;
  time[1] = time[0];
  time[1].title = "the same tasks by thread", time[1].what = "thread", time[1].keys = 0;
  time[1].nrow = nthread, time[1].nbar = p->thread.n, time[1].bar = p->thread.v;
  time[1].dropped = p->thread.dropped;
  if (!svg_plan(output_stream(path), title, p->nnode, p->node, p->nedge, p->edge,
                nthread > 0 ? 2 : 1, time))
    die(SYSTEM_FAILED, NULL, "out of memory");
}

// seconds: measured, of a run on `threads` threads (0: those of the fabric are not shown); less
// than 0: what is drawn was simulated.
static void picture_end(picture *p, const char *path, const ein_sim_info *sim,
                        const ein_sim_stmt *each, double seconds, int nthread,
                        const char *fabric) {
  ein_decomp_info info;
  char title[300], measured[80];
  ein_decomposition_info(p->d, &info);
  picture_folds(p, each);
  snprintf(title, sizeof title, "%d statement%s for %" PRId64 " place%s by %s: cost %s (%s), %s "
           "moved in %.10g messages", p->nstmt, p->nstmt == 1 ? "" : "s", info.p,
           info.p == 1 ? "" : "s", info.method, cost_text(&info), ein_cost_name(info.cost),
           bytes_text(sim->join + sim->agg), sim->messages);
  snprintf(measured, sizeof measured, "measured, fabric %s", fabric != NULL ? fabric : "");
  picture_draw(p, path, title, seconds < 0 ? "simulated" : measured, info.p,
               seconds < 0 ? sim->seconds : seconds, nthread);
}
