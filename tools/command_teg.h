// SPDX-License-Identifier: MIT
//
// command_teg.h - `einsum plan PROG --svg FILE --view teg`: the program as written, as tensors,
// operators, selectors, generators and the sequence point of what is observed (Tapestry).
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

typedef struct teg {
  picture p;                // its nodes and edges, and nothing else of it
  program whole;            // the program of which nothing is pruned
  int ntensor;
  ein_tensor_info *tensor;  // of that
  int *first;               // of each tensor the nodes before it are its statements; -1: no node
  int *pieces, *seen;       // statements that define each tensor; of these, drawn so far
  char *observed, *needed;  // of each tensor
  int (*of)[2];             // of each statement: the tensor it defines, and its node
  int count[SVG_POINT + 1];  // nodes of each kind
} teg;

enum { TEG_WIDE = 44, TEG_LINES = 6 };  // of a text in a box

// ---- what is drawn

static int teg_find(const teg *x, const char *name) {
  int k = 0;
  while (strcmp(x->tensor[k].name, name) != 0) k++;
  return k;
}

// The lines of a graph from the first statement on.
static char *teg_statements(const ein_graph *g) {
  ein_tensor_info t;
  int before = ein_graph_params(g);
  for (int k = 0; ein_graph_tensor(g, k, &t); k++) before += t.role == EIN_ROLE_INPUT;
  char *s = graph_text(g);
  for (; before > 0; before--) s = strchr(s, '\n') + 1;
  return s;
}

// Tensors that the program names and nobody observes, as a line that observes them; NULL: none.
static char *teg_observe(const ein_graph *g, const ein_decomposition *d, int nstmt) {
  text t = {NULL, 0, 0};
  ein_tensor_info x;
  for (int k = 0; ein_graph_tensor(g, k, &x); k++) {
    int i = 0;
    while (i < nstmt && strcmp(stmt_of(d, i).out, x.name) != 0) i++;
    if (x.role != EIN_ROLE_TEMP || i < nstmt || strchr(x.name, '.') != NULL) continue;
    add_text(&t, t.n > 0 ? ", " : "output ", t.n > 0 ? 2 : 7);
    add_text(&t, x.name, strlen(x.name));
  }
  if (t.n > 0) add_text(&t, ";", 1);
  return t.s;
}

// Statements whose values nobody observes are not in the graph: where there are any, the program
// is read again with all observed.
static void teg_whole(teg *x, const program *p) {
  ein_decomp_info info;
  x->whole = *p;
  x->p.d = uncut(p);
  ein_decomposition_info(x->p.d, &info);
  char *line = teg_observe(p->graph, x->p.d, info.nstmt);
  if (line != NULL) {
    const size_t mark = strncmp(p->d.text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    text t = {NULL, 0, 0};
    add_text(&t, line, strlen(line));
    add_text(&t, p->d.text + mark, p->d.length - mark);
    x->whole.d.text = t.s, x->whole.d.length = t.n;
    const ein_status st = ein_graph_parse(p->ctx, &x->whole.d, &x->whole.graph);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
    ein_decomposition_destroy((ein_decomposition *)(uintptr_t)x->p.d);
    x->p.d = uncut(&x->whole);
    ein_decomposition_info(x->p.d, &info);
  }
  x->p.nstmt = info.nstmt;
}

// What is observed, and what that needs.
static void teg_survey(teg *x, const program *p) {
  const size_t n = (size_t)ein_graph_tensors(x->whole.graph) + 1;
  x->tensor = (ein_tensor_info *)memory(n * sizeof *x->tensor);
  x->first = (int *)memory(n * sizeof *x->first);
  x->pieces = (int *)memory(n * sizeof *x->pieces);
  x->seen = (int *)memory(n * sizeof *x->seen);
  x->observed = (char *)memory(n), x->needed = (char *)memory(n);
  x->of = (int(*)[2])memory(((size_t)x->p.nstmt + 1) * sizeof *x->of);
  while (ein_graph_tensor(x->whole.graph, x->ntensor, &x->tensor[x->ntensor])) x->ntensor++;
  for (int k = 0; k < x->ntensor; k++)
    x->needed[k] = x->observed[k] = (char)picture_is(p, x->tensor[k].name, EIN_ROLE_OUTPUT);
  for (int i = x->p.nstmt; i-- > 0;) {
    const ein_decomp_stmt s = stmt_of(x->p.d, i);
    x->of[i][0] = teg_find(x, s.out);
    x->pieces[x->of[i][0]]++;
    for (int k = 0; k < s.noperand && x->needed[x->of[i][0]]; k++)
      x->needed[teg_find(x, s.operand[k])] = 1;
  }
}

// ---- texts

// A line, in several where it is long: broken behind what joins, or where there is no more room.
static void teg_wrap(text *t, const char *s) {
  for (int line = 0; *s; line++) {
    size_t n = 0, last = 0;
    for (int columns = 0; s[n] && columns < TEG_WIDE; columns++) {
      n++;
      while ((s[n] & 0xC0) == 0x80) n++;
      if (strchr(" ,+*/", s[n - 1]) != NULL) last = n;
    }
    if (s[n] && last > 0) n = last;
    const int cut = line + 1 == TEG_LINES && s[n];
    add_text(t, "\n", 1);
    add_text(t, s, n);
    if (cut) add_text(t, "..", 2);
    s += cut ? strlen(s) : n;
  }
}

// "from D[8]": where an access begins; nothing at the first element.
static void teg_start(text *t, const char *how, const char *name, const ein_zmap *m) {
  char b[40];
  int any = 0;
  for (int r = 0; r < m->rows; r++) any |= m->offset[r] != 0;
  if (!any) return;
  add_text(t, "\n", 1);
  add_text(t, how, strlen(how));
  add_text(t, name, strlen(name));
  for (int r = 0; r < m->rows; r++)
    add_text(t, b, (size_t)snprintf(b, sizeof b, "%s%" PRId64, r > 0 ? "," : "[", m->offset[r]));
  add_text(t, "]", 1);
}

// "stride -1 along i": how far an index goes, where that is not one element after another.
static void teg_strides(text *t, const char *how, const ein_decomp_stmt *s, const ein_zmap *m) {
  char b[64];
  for (int c = 0; c < m->cols; c++) {
    for (int r = 0; r < m->rows; r++) {
      const int64_t by = m->coef[(size_t)r * (size_t)m->cols + (size_t)c];
      if (by == 0 || by == 1 || s->extent[c] < 2) continue;
      add_text(t, b, (size_t)snprintf(b, sizeof b, "\n%s stride %" PRId64 " along ", how, by));
      add_text(t, s->index[c], strlen(s->index[c]));
    }
  }
}

// What a selector does besides copying: offsets, strides, repeats.
static void teg_moves(text *t, const ein_decomp_stmt *s) {
  const ein_zmap *m = &s->proj[0];
  teg_start(t, "from ", s->operand[0], m);
  teg_strides(t, "reads by", s, m);
  teg_start(t, "to ", s->out, &s->out_map);
  teg_strides(t, "writes by", s, &s->out_map);
  for (int c = 0; c < m->cols; c++) {
    int used = s->extent[c] < 2;
    for (int r = 0; r < m->rows; r++) used |= m->coef[(size_t)r * (size_t)m->cols + (size_t)c] != 0;
    if (used) continue;
    add_text(t, "\nrepeats along ", 15);
    add_text(t, s->index[c], strlen(s->index[c]));
  }
}

// "T: sum[k]" of what folds; else what it is.
static char *teg_title(const ein_decomp_stmt *s, int type) {
  const char *what = s->fold != NULL ? s->fold : type == SVG_SELECTOR ? "selector" :
                     type == SVG_GENERATOR ? "generator" : "element-wise";
  text t = {NULL, 0, 0};
  add_text(&t, s->out, strlen(s->out));
  add_text(&t, ": ", 2);
  add_text(&t, what, strlen(what));
  for (int c = s->nfree; c < s->nindex; c++) {
    add_text(&t, c > s->nfree ? "," : "[", 1);
    add_text(&t, s->index[c], strlen(s->index[c]));
  }
  if (s->nfree < s->nindex) add_text(&t, "]", 1);
  return t.s;
}

// ---- nodes and edges

static svg_node *teg_node(teg *x, int type, char *title, int pruned) {
  svg_node *node = &x->p.node[x->p.nnode++];
  x->count[type]++;
  node->kind = type, node->title = title, node->pale = pruned;
  return node;
}

static void teg_tensor(teg *x, int k) {
  const ein_tensor_info *info = &x->tensor[k];
  const int type = info->role == EIN_ROLE_INPUT ? SVG_INPUT :
                   x->observed[k] ? SVG_OUTPUT : SVG_TENSOR;
  char b[40];
  text t = {NULL, 0, 0};
  add_text(&t, info->name, strlen(info->name));
  add_text(&t, "[", 1);
  for (int r = 0; r < info->rank; r++)
    add_text(&t, b, (size_t)snprintf(b, sizeof b, "%s%" PRId64, r > 0 ? "," : "", info->shape[r]));
  add_text(&t, "] : ", 4);
  add_text(&t, ein_dtype_name(info->dtype), strlen(ein_dtype_name(info->dtype)));
  x->first[k] = x->p.nnode;
  svg_node *node = teg_node(x, type, t.s, !x->needed[k]);
  node->text = !x->needed[k] ? type == SVG_INPUT ? "input, pruned" : "pruned" :
               type == SVG_INPUT ? "input" : type == SVG_OUTPUT ? "output" : NULL;
}

static void teg_statement(teg *x, int i, const char *said) {
  const ein_decomp_stmt s = stmt_of(x->p.d, i);
  const int out = x->of[i][0];
  const int type = s.noperand == 0 && s.fold == NULL ? SVG_GENERATOR :
                   s.noperand == 1 && s.fold == NULL && s.map != NULL && strcmp(s.map, "$0") == 0
                   ? SVG_SELECTOR : SVG_OPERATOR;
  char b[64];
  text t = {NULL, 0, 0};
  teg_wrap(&t, said);
  if (x->pieces[out] > 1)
    add_text(&t, b, (size_t)snprintf(b, sizeof b, "\npiece %d of %d", ++x->seen[out],
                                     x->pieces[out]));
  if (type == SVG_SELECTOR) teg_moves(&t, &s);
  if (s.rest == EIN_REST_ZERO) add_text(&t, "\nelsewhere 0", 12);
  if (!x->needed[out]) add_text(&t, "\npruned", 7);
  x->of[i][1] = x->p.nnode;
  teg_node(x, type, teg_title(&s, type), !x->needed[out])->text = t.s + 1;
}

// Nodes are numbered so that edges go to higher ones: inputs, statements in turn, each tensor
// behind the last statement that defines it, and what is observed.
static void teg_nodes(teg *x) {
  char *said = teg_statements(x->whole.graph);
  for (int k = 0; k < x->ntensor; k++) {
    x->first[k] = -1;
    if (x->tensor[k].role == EIN_ROLE_INPUT) teg_tensor(x, k);
  }
  for (int i = 0; i < x->p.nstmt; i++) {
    const int out = x->of[i][0];
    char *end = strchr(said, '\n');
    *end = 0;
    teg_statement(x, i, said);
    said = end + 1;
    int more = i + 1;
    while (more < x->p.nstmt && x->of[more][0] != out) more++;
    if (more == x->p.nstmt) teg_tensor(x, out);
  }
}

static void teg_edges(teg *x) {
  picture *p = &x->p;
  const int point = p->nnode;
  teg_node(x, SVG_POINT, copy_text("sequence point", 14), 0)->text = "what is observed";
  p->last = (int *)memory(((size_t)p->nnode + 1) * sizeof *p->last);
  for (int v = 0; v < p->nnode; v++) p->last[v] = -1;
  for (int i = 0; i < p->nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(p->d, i);
    for (int k = 0; k < s.noperand; k++)
      (void)picture_edge(p, x->first[teg_find(x, s.operand[k])], x->of[i][1], SVG_FLOW);
    (void)picture_edge(p, x->of[i][1], x->first[x->of[i][0]], SVG_FLOW);
  }
  for (int k = 0; k < x->ntensor; k++)
    if (x->observed[k] && x->first[k] >= 0)
      (void)picture_edge(p, x->first[k], point, SVG_FLOW);
  if (p->nedge > 0) qsort(p->edge, (size_t)p->nedge, sizeof *p->edge, picture_edge_before);
}

// ---- the whole

// Names of the tensors that are observed, or of those that are not needed.
static void teg_names(const teg *x, int observed, int json) {
  int n = 0;
  for (int k = 0; k < x->ntensor; k++) {
    if (x->first[k] < 0 || (observed ? !x->observed[k] : x->needed[k])) continue;
    if (n++ > 0) fputs(", ", stdout);
    if (json) put_json_string(x->tensor[k].name);
    else fputs(x->tensor[k].name, stdout);
  }
  if (n == 0 && !json) fputs("nothing", stdout);
}

static void teg_print(const teg *x) {
  const int json = given(O_JSON) != NULL, *n = x->count;
  printf(json ? "{\"inputs\": %d, \"tensors\": %d, \"operators\": %d, \"selectors\": %d, "
                "\"generators\": %d, \"observed\": [" :
                "inputs %d, other tensors %d, operators %d, selectors %d, generators %d\n"
                "observed: ", n[SVG_INPUT], n[SVG_TENSOR] + n[SVG_OUTPUT], n[SVG_OPERATOR],
         n[SVG_SELECTOR], n[SVG_GENERATOR]);
  teg_names(x, 1, json);
  fputs(json ? "], \"pruned\": [" : "\npruned: ", stdout);
  teg_names(x, 0, json);
  puts(json ? "]}" : "");
}

// Is the program to be drawn as written? Then nothing is planned.
static int view_teg(void) {
  static const option_id apply[] = {O_SHAPES, O_SIZES, O_DTYPE, O_SVG, O_VIEW, O_JSON, O_QUIET,
                                    O_CORES, O_KERNELS, O_STORE, O_RATES, O_KERNEL_CACHE};
  const char *s = given(O_VIEW);
  if (s == NULL) return 0;
  if (strcmp(s, "plan") != 0 && strcmp(s, "teg") != 0) misuse("plan or teg", "--view '%s'", s);
  if (given(O_SVG) == NULL) misuse("--svg FILE", "--view is of a picture, and there is none");
  if (strcmp(s, "plan") == 0) return 0;
  for (int o = 0; o < O_COUNT; o++) {
    size_t k = 0;
    while (k < sizeof apply / sizeof *apply && (int)apply[k] != o) k++;
    if (opt[o].n > 0 && k == sizeof apply / sizeof *apply)
      misuse(NULL, "%s does not apply: --view teg draws the program as written", options[o].name);
  }
  if (!is_program(args.v[0])) misuse("einsum plan PROG.ein --svg FILE --view teg",
                                     "--view teg draws programs, and '%s' is none", args.v[0]);
  if (svg_only() && given(O_JSON) != NULL)
    misuse(NULL, "the picture and --json both go to standard output");
  return 1;
}

// Draws a program that was parsed.
static int draw_teg(program *p) {
  teg x;
  char title[200];
  const words none = {NULL, 0};
  memset(&x, 0, sizeof x);
  check_targets(&none, !svg_only());
  teg_whole(&x, p);
  teg_survey(&x, p);
  x.p.node = (svg_node *)memory(((size_t)x.ntensor + (size_t)x.p.nstmt + 1) * sizeof *x.p.node);
  teg_nodes(&x);
  teg_edges(&x);
  const int *n = x.count;
  snprintf(title, sizeof title, "as written: operators %d, selectors %d, generators %d",
           n[SVG_OPERATOR], n[SVG_SELECTOR], n[SVG_GENERATOR]);
  if (!svg_plan(output_stream(given(O_SVG)), title, x.p.nnode, x.p.node, x.p.nedge, x.p.edge, 0,
                NULL))
    die(SYSTEM_FAILED, NULL, "out of memory");
  if (!svg_only()) teg_print(&x);
  ein_decomposition_destroy((ein_decomposition *)(uintptr_t)x.p.d);
  if (x.whole.graph != p->graph) ein_graph_destroy(x.whole.graph);
  return finish(p->ctx, NULL, p->graph);
}
