// SPDX-License-Identifier: MIT
//
// command_expr.h - an expression as a program, for places: its operands are x0, x1, .., every step
// of its path is a statement, y is the result.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// A tensor on the way: what its axes are, and their extents (1: the same for all of the index).
typedef struct held {
  term t;
  const int64_t *shape;
  int id;           // in the graph
} held;

// The indices of a step: columns of its maps.
typedef struct columns {
  int n, nfree;
  int *column;      // of each label; -1: none
  int64_t *extent;
  const char **name;
} columns;

static void add_column(columns *s, const uint32_t *shown, uint32_t label) {
  if (s->column[label] >= 0) return;
  text t = {NULL, 0, 0};
  add_label(&t, shown[label]);
  s->name[s->n] = t.s;
  s->extent[s->n] = 1;
  s->column[label] = s->n++;
}

// Free indices in the order of the result, then the others.
static columns step_columns(const notation *no, const held *in, int n, const term *result) {
  const uint32_t *shown = shown_labels(no);
  size_t most = (size_t)no->nlabel + 1;
  columns s;
  s.n = 0;
  s.column = (int *)memory(most * sizeof *s.column);
  s.extent = (int64_t *)memory(most * sizeof *s.extent);
  s.name = (const char **)memory(most * sizeof *s.name);
  for (int i = 0; i < no->nlabel; i++) s.column[i] = -1;
  for (int a = 0; a < result->n; a++) add_column(&s, shown, result->label[a]);
  s.nfree = s.n;
  for (int k = 0; k < n; k++) {
    for (int a = 0; a < in[k].t.n; a++) {
      add_column(&s, shown, in[k].t.label[a]);
      int64_t *extent = &s.extent[s.column[in[k].t.label[a]]];
      if (in[k].shape[a] != 1) *extent = in[k].shape[a];
    }
  }
  return s;
}

// The map from a step's indices to a tensor's axes. Axes of extent 1 are read at 0.
static ein_zmap step_map(const columns *s, const term *t, const int64_t *shape) {
  ein_zmap m;
  memset(&m, 0, sizeof m);
  int64_t *coef = (int64_t *)memory(((size_t)t->n * (size_t)s->n + 1) * sizeof *coef);
  m.rows = t->n;
  m.cols = s->n;
  for (int a = 0; a < t->n; a++) {
    int c = s->column[t->label[a]];
    if (shape == NULL || shape[a] == s->extent[c]) coef[a * s->n + c] = 1;
  }
  m.coef = coef;
  return m;
}

// The product of n operands, each converted first: every step computes in what all operands and the
// result promote to, as one pass does.
static char *converted_product(int n, ein_dtype dtype) {
  text t = {NULL, 0, 0};
  char b[48];
  for (int k = 0; k < n; k++)
    add_text(&t, b, (size_t)snprintf(b, sizeof b, "%scast_%s(x%d)", k > 0 ? "*" : "",
                                     ein_dtype_name(dtype), k));
  return t.s;
}

// The dtype to convert operands to; EIN_NONE: they have it.
static ein_dtype expression_dtype(const job *j) {
  ein_dtype all = ein_dtype_compute(j->out.v.dtype);
  int same = 1;
  for (int k = 0; k < j->d.nin; k++) all = ein_dtype_promote(all, j->in[k].v.dtype);
  all = ein_dtype_compute(all);
  for (int k = 0; k < j->d.nin; k++) same &= ein_dtype_compute(j->in[k].v.dtype) == all;
  return same ? EIN_NONE : all;
}

// Adds the statement of a step; `out` has its term, and gets the rest.
static void add_step(program *p, const notation *no, const held *in, int n, held *out,
                     const char *name, ein_dtype dtype, ein_dtype convert, int last) {
  ein_stmt_desc d;
  columns s = step_columns(no, in, n, &out->t);
  ein_zmap *proj = (ein_zmap *)memory(((size_t)n + 1) * sizeof *proj);
  int *operand = (int *)memory(((size_t)n + 1) * sizeof *operand);
  int64_t *shape = (int64_t *)memory(((size_t)out->t.n + 1) * sizeof *shape);
  for (int a = 0; a < out->t.n; a++) shape[a] = s.extent[s.column[out->t.label[a]]];
  out->shape = shape;
  for (int k = 0; k < n; k++) {
    proj[k] = step_map(&s, &in[k].t, in[k].shape);
    operand[k] = in[k].id;
  }
  memset(&d, 0, sizeof d);
  (void)ein_graph_add_tensor(p->graph, name, last ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP, dtype,
                             out->t.n, out->shape, &out->id);
  d.out = out->id;
  d.out_map = step_map(&s, &out->t, NULL);
  d.nindex = s.n;
  d.nfree = s.nfree;
  d.extent = s.extent;
  d.index = s.name;
  d.noperand = n;
  d.operand = operand;
  d.proj = proj;
  if (convert != EIN_NONE) d.map = converted_product(n, convert);
  (void)ein_graph_add_statement(p->graph, &d);  // the first mistake stays until the graph is done
}

static char *number_name(const char *letter, int n) {
  char b[32];
  return copy_text(b, (size_t)snprintf(b, sizeof b, "%s%d", letter, n));
}

// The path as JSON, as the plan of an expression has it.
static char *path_json(const step *steps, int nstep) {
  text t = {NULL, 0, 0};
  char b[32];
  add_text(&t, "[", 1);
  for (int i = 0; i < nstep; i++) {
    add_text(&t, i > 0 ? ", [" : "[", i > 0 ? 3 : 1);
    for (int q = steps[i].n; q-- > 0;)
      add_text(&t, b, (size_t)snprintf(b, sizeof b, "%d%s", steps[i].pos[q], q > 0 ? ", " : ""));
    add_text(&t, "]", 1);
  }
  add_text(&t, "]", 1);
  return t.s;
}

// Fills p with a planned expression: its graph, and the operands as layouts.
static void program_of_expression(program *p, const job *j) {
  notation no;
  int nstep, n = j->d.nin;
  memset(p, 0, sizeof *p);
  memset(&no, 0, sizeof no);
  read_notation(j->d.expr, &no);
  expand_notation(&no, j->in, j->out.v.rank);
  step *steps = plan_steps(plan_text(j->plan, ein_plan_json), n, &nstep);
  held *list = (held *)memory(sizeof *list * ((size_t)n + 1));
  held *in = (held *)memory(sizeof *in * ((size_t)n + 1));
  term *terms = (term *)memory(sizeof *terms * ((size_t)n + 1));
  ein_binding *bind = (ein_binding *)memory(sizeof *bind * (size_t)n);
  p->ctx = j->ctx;
  p->path = path_json(steps, nstep);
  ein_status st = ein_graph_create(p->ctx, &p->graph);
  if (st != EIN_OK) die_library(p->ctx, st, NULL);
  for (int k = 0; k < n; k++) {
    const ein_ztensor *v = &j->in[k].v;
    bind[k].name = number_name("x", k);
    bind[k].view = v;
    list[k].t = no.term[k];
    list[k].shape = v->shape;
    (void)ein_graph_add_tensor(p->graph, bind[k].name, EIN_ROLE_INPUT, v->dtype, v->rank, v->shape,
                               &list[k].id);
  }
  p->d.nbind = n;
  p->d.bind = bind;
  for (int i = 0; i < nstep; i++) {
    int last = i == nstep - 1;
    held out;
    memset(&out, 0, sizeof out);
    for (int k = 0; k < n; k++) terms[k] = list[k].t;
    (void)contract_terms(&no, terms, n, &steps[i], last, &out.t);
    for (int q = 0; q < steps[i].n; q++) {  // positions come highest first
      int at = steps[i].pos[q];
      in[steps[i].n - 1 - q] = list[at];
      memmove(&list[at], &list[at + 1], sizeof *list * (size_t)(n - at - 1));
      n--;
    }
    add_step(p, &no, in, steps[i].n, &out, last ? "y" : number_name("t", i),
             last ? j->out.v.dtype : EIN_NONE, expression_dtype(j), last);
    list[n++] = out;
  }
  st = ein_graph_finish(p->graph);
  if (st != EIN_OK) die_library(p->ctx, st, NULL);
  program_order(p);
}
