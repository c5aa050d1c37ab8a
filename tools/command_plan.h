// SPDX-License-Identifier: MIT
//
// command_plan.h - the notation of expressions, and the table that `einsum plan` prints.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// ================================================================================================
// The notation, as far as tables, --sizes and brute force need it. What is wrong in a text is for
// the library to say, so nothing here complains about syntax.
// ================================================================================================

#define DOTS 0x110000u  // axes under an ellipsis: DOTS + their number, counted from the right

typedef struct term {
  uint32_t *label;
  int n, dots;  // dots: place of the ellipsis among the labels; -1: none
} term;

typedef struct notation {
  term *term;  // operands, then the output
  int nin, nlabel;
  uint32_t *label;  // all labels, once each
  int64_t *extent;
} notation;

static void read_term(const char *s, const char *end, term *t) {
  t->label = (uint32_t *)memory(sizeof *t->label * ((size_t)(end - s) + 1));
  t->n = 0;
  t->dots = -1;
  while (s < end) {
    size_t n = code_point(s, &t->label[t->n]);
    if (*s == '.') t->dots = t->n;
    else if (n > 0 && *s != ' ' && *s != '\t' && *s != '\n') t->n++;
    s += n > 0 ? n : 1;
  }
}

static int find_label(const uint32_t *label, int n, uint32_t x) {
  int i = 0;
  while (i < n && label[i] != x) i++;
  return i < n ? i : -1;
}

// The implicit output: ellipsis axes, then labels that occur once, by code point.
static void implicit_output(notation *no) {
  term *out = &no->term[no->nin];
  size_t most = 0;
  for (int k = 0; k < no->nin; k++) most += (size_t)no->term[k].n;
  out->label = (uint32_t *)memory(sizeof *out->label * (most + 1));
  out->n = 0;
  out->dots = -1;
  for (int k = 0; k < no->nin; k++) {
    if (no->term[k].dots >= 0) out->dots = 0;
    for (int a = 0; a < no->term[k].n; a++) {
      uint32_t x = no->term[k].label[a];
      int uses = 0, at = out->n;
      for (int q = 0; q < no->nin; q++) {
        for (int b = 0; b < no->term[q].n; b++) uses += no->term[q].label[b] == x;
      }
      if (uses != 1) continue;
      for (; at > 0 && out->label[at - 1] > x; at--) out->label[at] = out->label[at - 1];
      out->label[at] = x;
      out->n++;
    }
  }
}

static void read_notation(const char *expr, notation *no) {
  const char *arrow = strstr(expr, "->"), *end = arrow == NULL ? expr + strlen(expr) : arrow;
  no->nin = 1;
  for (const char *s = expr; s < end; s++) no->nin += *s == ',';
  no->term = (term *)memory(sizeof *no->term * ((size_t)no->nin + 1));
  for (int k = 0; k < no->nin; k++) {
    size_t n = strcspn(expr, ",");
    if (n > (size_t)(end - expr)) n = (size_t)(end - expr);
    read_term(expr, expr + n, &no->term[k]);
    expr += n + 1;
  }
  if (arrow != NULL) read_term(arrow + 2, arrow + strlen(arrow), &no->term[no->nin]);
  else implicit_output(no);
}

// Gives ellipsis axes labels of their own and finds all extents. Only after the library has
// accepted the expression.
static void expand_notation(notation *no, const array *in, int out_rank) {
  size_t most = (size_t)out_rank;
  for (int k = 0; k < no->nin; k++) most += (size_t)in[k].v.rank;
  no->label = (uint32_t *)memory(sizeof *no->label * (most + 1));
  no->extent = (int64_t *)memory(sizeof *no->extent * (most + 1));
  for (int k = 0; k <= no->nin; k++) {
    term *t = &no->term[k];
    int rank = k < no->nin ? in[k].v.rank : out_rank, extra = rank - t->n;
    uint32_t *label = (uint32_t *)memory(sizeof *label * ((size_t)rank + 1));
    for (int a = 0; a < rank; a++) {
      int before = t->dots < 0 || a < t->dots;
      label[a] = before ? t->label[a] : a < t->dots + extra
                     ? DOTS + (uint32_t)(t->dots + extra - 1 - a) : t->label[a - extra];
      int at = find_label(no->label, no->nlabel, label[a]);
      if (at < 0) {
        at = no->nlabel++;
        no->label[at] = label[a];
        no->extent[at] = 1;
      }
      if (k < no->nin && in[k].v.shape[a] != 1) no->extent[at] = in[k].v.shape[a];
      label[a] = (uint32_t)at;  // from here on, terms number the labels
    }
    t->label = label;
    t->n = rank;
  }
}

// Operands of `bench` and `plan` from --sizes.
static array *shapes_from_sizes(const char *expr, ein_dtype dtype, int *count) {
  notation no;
  int n;
  ein_size *size = option_sizes(&n);
  memset(&no, 0, sizeof no);
  read_notation(expr, &no);
  char *used = (char *)memory((uint64_t)n + 1);
  array *a = (array *)memory(sizeof *a * (size_t)no.nin);
  for (int k = 0; k < no.nin; k++) {
    term *t = &no.term[k];
    int64_t *shape = (int64_t *)memory(sizeof *shape * ((size_t)t->n + 1));
    if (t->dots >= 0) misuse("use --shapes", "--sizes cannot describe '...'");
    for (int i = 0; i < t->n; i++) {
      uint32_t cp = t->label[i], c;
      int at = 0;
      while (at < n && !(code_point(size[at].name, &c) == strlen(size[at].name) && c == cp)) at++;
      int letter = cp >= 0xA1 || (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
      if (at == n && letter) {
        misuse(NULL, cp < 128 ? "--sizes gives no extent for index '%c'"
            : "--sizes gives no extent for index U+%04X", (int)cp);
      }
      shape[i] = at < n ? size[at].value : 1;
      used[at] = 1;
    }
    a[k].name = "an operand";
    set_shape(&a[k], dtype, t->n, shape, 0);
  }
  for (int i = 0; i < n; i++) {
    if (!used[i]) misuse(NULL, "'%s' has no index '%s'", expr, size[i].name);
  }
  *count = no.nin;
  return a;
}

// Operands without data, from --shapes, --sizes or the headers of files.
static array *shapes_of_operands(const char *expr, int *n) {
  const char *shapes = given(O_SHAPES);
  ein_dtype dtype = option_dtype(EIN_F64);
  if ((shapes != NULL) + (opt[O_SIZES].n > 0) + (args.n > 1) != 1) {
    misuse("for example --shapes 64x32,32x16 or --sizes i=64,j=32,k=16",
           "give the operands' extents by one of --shapes, --sizes and files");
  }
  if (shapes != NULL) return parse_shapes(shapes, dtype, n);
  if (args.n == 1) return shapes_from_sizes(expr, dtype, n);
  if (given(O_DTYPE) != NULL) misuse(NULL, "--dtype does not apply: the files have their dtypes");
  *n = args.n - 1;
  array *a = (array *)memory(sizeof *a * (size_t)*n);
  for (int k = 0; k < *n; k++) load(&a[k], args.v[k + 1], 1, EIN_NONE);
  return a;
}

// ================================================================================================
// plan: the table that users of opt_einsum know.
// ================================================================================================

typedef struct text {
  char *s;
  size_t n, room;
} text;

static void add_text(text *t, const char *s, size_t n) {
  if (t->n + n + 1 > t->room) {
    size_t room = 2 * t->room + n + 64;
    char *more = (char *)memory(room);
    if (t->n > 0) memcpy(more, t->s, t->n);
    t->s = more;
    t->room = room;
  }
  memcpy(t->s + t->n, s, n);
  t->s[t->n += n] = 0;
}

static void add_label(text *t, uint32_t cp) {
  char b[4];
  size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  for (size_t i = n; i-- > 1; cp >>= 6) b[i] = (char)(0x80 | (cp & 0x3F));
  b[0] = (char)(n == 1 ? cp : (0xF00u >> n & 0xFF) | cp);
  add_text(t, b, n);
}

// Spaces that bring s to `width` columns, then s.
static void put_right(const char *s, int width) {
  int n = 0;
  for (const char *c = s; *c; c++) n += ((unsigned char)*c & 0xC0) != 0x80;
  printf("%*s%s", n < width ? width - n : 0, "", s);
}

// Ellipsis axes are shown by letters that the expression leaves free.
static uint32_t *shown_labels(const notation *no) {
  uint32_t *shown = (uint32_t *)memory(sizeof *shown * ((size_t)no->nlabel + 1)), next = 'a';
  for (int i = 0; i < no->nlabel; i++) {
    shown[i] = no->label[i];
    if (shown[i] < DOTS) continue;
    do {
      shown[i] = next;
      next = next == 'z' ? 'A' : next == 'Z' ? 0xC0 : next + 1;
    } while (find_label(no->label, no->nlabel, shown[i]) >= 0);
  }
  return shown;
}

static void add_term(text *t, const term *x, const uint32_t *shown) {
  for (int a = 0; a < x->n; a++) add_label(t, shown[x->label[a]]);
}

typedef struct step {
  int *pos, n;   // positions, highest first
  char kernel[32];
} step;

// The steps of the plan's JSON: its path, and the kernels of the statements that follow it.
static step *plan_steps(const char *json, int nin, int *count) {
  const char *s = strstr(json, "\"path\": ");
  int n = 0;
  step *list;
  if (s != NULL && strncmp(s, "\"path\": [[", 10) == 0) {
    list = (step *)memory(sizeof *list * (strlen(s) / 3 + 1));
    for (s += 9; *s == '['; s += s[1] == ',' ? 3 : 1) {
      step *t = &list[n++];
      t->pos = (int *)memory(sizeof *t->pos * ((size_t)nin + 1));
      while (*s != ']') {
        char *end;
        int v = (int)strtol(s + 1, &end, 10), at = t->n++;
        for (; at > 0 && t->pos[at - 1] < v; at--) t->pos[at] = t->pos[at - 1];
        t->pos[at] = v;
        s = end;
      }
    }
  } else {
    list = (step *)memory(sizeof *list);
    n = list->n = nin > 0;
    list->pos = (int *)memory(sizeof *list->pos * ((size_t)nin + 1));
    for (list->n = 0; list->n < nin; list->n++) list->pos[list->n] = nin - 1 - list->n;
  }
  const char *key = "\"kernels\": [\"";
  for (int i = 0; i < n; i++) strcpy(list[i].kernel, "-");
  int statements = 0;
  for (const char *k = json; (k = strstr(k, key)) != NULL; k++) statements++;
  s = json;
  for (int i = 0; i < n && statements == n; i++) {
    s = strstr(s, key) + strlen(key);
    if (strncmp(s, "contract-", 9) == 0) s += 9;
    snprintf(list[i].kernel, sizeof list[i].kernel, "%.*s", (int)strcspn(s, "\""), s);
  }
  *count = n;
  return list;
}

// Contracts the terms of one step: *result has the labels still needed, in order of appearance.
// Returns the number of labels involved.
static int contract_terms(const notation *no, const term *list, int n, const step *s, int last,
                          term *result) {
  const term *out = &no->term[no->nin];
  int involved = 0;
  char *taken = (char *)memory((uint64_t)n + 1), *seen = (char *)memory((uint64_t)no->nlabel + 1);
  char *kept = (char *)memory((uint64_t)no->nlabel + 1);
  for (int i = 0; i < s->n; i++) taken[s->pos[i]] = 1;
  for (int a = 0; a < out->n; a++) kept[out->label[a]] = 1;
  for (int k = 0; k < n; k++) {
    for (int a = 0; a < list[k].n && !taken[k]; a++) kept[list[k].label[a]] = 1;
  }
  result->label = (uint32_t *)memory(sizeof *result->label * ((size_t)no->nlabel + 1));
  result->n = 0;
  for (int i = 0; i < s->n; i++) {
    const term *t = &list[s->pos[i]];
    for (int a = 0; a < t->n; a++) {
      uint32_t x = t->label[a];
      if (seen[x]++) continue;
      involved++;
      if (kept[x]) result->label[result->n++] = x;
    }
  }
  if (last) *result = *out;
  return involved;
}

// As "%.3e", with the exponent as opt_einsum writes it: 4.096e+4.
static void put_count(const char *title, double x, const char *unit) {
  char b[32];
  snprintf(b, sizeof b, "%.3e", x);
  char *e = strchr(b, 'e');
  while (e != NULL && e[2] == '0' && e[3] != 0) memmove(e + 2, e + 3, strlen(e + 3) + 1);
  printf("%s:  %s%s\n", title, b, unit);
}

static void print_table(const notation *no, const step *steps, int nstep,
                        const ein_plan_info *info) {
  const uint32_t *shown = shown_labels(no);
  term *list = (term *)memory(sizeof *list * ((size_t)no->nin + 1));
  text whole = {NULL, 0, 0};
  int n = no->nin, widest = 0;
  int *scaling = (int *)memory(sizeof *scaling * ((size_t)nstep + 1));
  words current = {NULL, 0}, remaining = {NULL, 0};
  memcpy(list, no->term, sizeof *list * (size_t)n);
  for (int k = 0; k <= n; k++) {
    add_term(&whole, &no->term[k], shown);
    add_text(&whole, k + 1 < n ? "," : "->", k + 1 < n ? 1 : k < n ? 2 : 0);
  }
  for (int i = 0; i < nstep; i++) {
    text now_text = {NULL, 0, 0}, rest = {NULL, 0, 0};
    term result;
    scaling[i] = contract_terms(no, list, n, &steps[i], i == nstep - 1, &result);
    if (scaling[i] > widest) widest = scaling[i];
    for (int q = 0; q < steps[i].n; q++) {
      if (q > 0) add_text(&now_text, ",", 1);
      add_term(&now_text, &list[steps[i].pos[q]], shown);
      memmove(&list[steps[i].pos[q]], &list[steps[i].pos[q] + 1],
              sizeof *list * (size_t)(n - steps[i].pos[q] - 1));
      n--;
    }
    list[n++] = result;
    add_text(&now_text, "->", 2);
    add_term(&now_text, &result, shown);
    for (int k = 0; k < n && n <= 20; k++) {
      if (k > 0) add_text(&rest, ",", 1);
      add_term(&rest, &list[k], shown);
    }
    add_text(&rest, n <= 20 ? "->" : "...", n <= 20 ? 2 : 3);
    if (n <= 20) add_term(&rest, &no->term[no->nin], shown);
    add_word(&current, now_text.s);
    add_word(&remaining, rest.s);
  }
  printf("  Complete contraction:  %s\n         Naive scaling:  %d\n", whole.s, no->nlabel);
  printf("     Optimized scaling:  %d\n", widest);
  put_count("      Naive FLOP count", info->naive_flops, "");
  put_count("  Optimized FLOP count", info->flops, "");
  put_count("   Theoretical speedup", info->naive_flops / (info->flops > 1 ? info->flops : 1), "");
  put_count("  Largest intermediate", info->largest, " elements");
  if (given(O_DETERMINISTIC) != NULL)
    puts("         Deterministic:  the same bits for any number of threads and places");
  for (int i = 0; i < 80; i++) putchar('-');
  printf("\n%6s %11s %22s %37s\n", "scaling", "kernel", "current", "remaining");
  for (int i = 0; i < 80; i++) putchar('-');
  for (int i = 0; i < nstep; i++) {
    int len = (int)strlen(current.v[i]);
    printf("\n%4d %14s ", scaling[i], steps[i].kernel);
    put_right(current.v[i], 22);
    fputs("    ", stdout);
    put_right(remaining.v[i], len > 56 ? 0 : 56 - (len > 22 ? len : 22));
  }
  putchar('\n');
}

static int print_plan(ein_ctx *ctx, ein_plan *plan, ein_graph *graph) {
  explain(plan);
  if (given(O_JSON) != NULL) puts(plan_text(plan, ein_plan_json));
  else fputs(plan_text(plan, ein_plan_explain), stdout);
  return finish(ctx, plan, graph);
}

#include "command_decomp.h"
#include "command_expr.h"

static void add_between(text *t, const char *json, const char *from, const char *to) {
  const char *s = from == NULL ? json : strstr(json, from);
  const char *end = to == NULL ? NULL : strstr(s, to);
  add_text(t, s, end == NULL ? strlen(s) : (size_t)(end - s));
}

// With --deterministic the statements of a path run as a program: its JSON, but the path's costs
// and the path itself, which it does not know.
static char *ordered_json(const char *path, const char *ordered) {
  const char *peak = ", \"peak_bytes\"", *method = ", \"method\"", *rest = ", \"statements\"";
  text t = {NULL, 0, 0};
  add_between(&t, path, NULL, peak);
  add_between(&t, ordered, peak, method);
  add_between(&t, path, method, rest);
  add_between(&t, ordered, rest, NULL);
  return t.s;
}

static int plan_expression(const char *expr) {
  job j;
  program p;
  int n, nstep, ordered = given(O_DETERMINISTIC) != NULL;
  memset(&j, 0, sizeof j);
  memset(&p, 0, sizeof p);
  if (opt[O_SET].n > 0) misuse(NULL, "--set does not apply: an expression has no params");
  array *in = shapes_of_operands(expr, &n);
  j.ctx = make_ctx();
  job_plan(&j, expr, n, in, EIN_NONE);
  if (is_within(j.plan)) return print_plan(j.ctx, j.plan, NULL);
  ein_plan_info info;
  (void)ein_plan_info_get(j.plan, &info);
  char *json = plan_text(j.plan, ein_plan_json);
  // Over places, or in a fixed order, every step is a statement, as when it is run.
  if (decomposed() || ordered) {
    program_of_expression(&p, &j);
    ein_plan_destroy(j.plan);
    if (decomposed()) return plan_decomposed(&p);
    program_schedule(&p);
    if (is_within(p.plan)) return print_plan(p.ctx, p.plan, p.graph);
    ein_plan_info own;
    (void)ein_plan_info_get(p.plan, &own);
    info.workspace_bytes = own.workspace_bytes;
    json = ordered_json(json, plan_text(p.plan, ein_plan_json));
    j.plan = p.plan;
  }
  explain(j.plan);
  if (given(O_JSON) != NULL) {
    puts(json);
    return finish(j.ctx, j.plan, p.graph);
  }
  notation no;
  memset(&no, 0, sizeof no);
  read_notation(expr, &no);
  expand_notation(&no, in, j.out.v.rank);
  step *steps = plan_steps(json, n, &nstep);
  print_table(&no, steps, nstep, &info);
  fputs("path", stdout);
  for (int i = 0; i < nstep; i++) {
    fputs(steps[i].n > 0 ? " (" : " ", stdout);
    for (int q = steps[i].n; q-- > 0;) printf("%d%c", steps[i].pos[q], q > 0 ? ',' : ')');
  }
  const char *proved = info.proved == 1 ? " (proved optimal)"
                       : info.proved == 2 ? " (proved optimal without outer products)" : "";
  printf("; method %s%s; workspace %" PRIu64 " bytes\n", info.method, proved,
         (uint64_t)info.workspace_bytes);
  return finish(j.ctx, j.plan, p.graph);
}

static int command_plan(void) {
  if (args.n == 0) misuse("einsum plan (EXPR | PROG.ein) --shapes ...", "nothing to plan");
  const int written = view_teg();
  if (!is_program(args.v[0])) return plan_expression(args.v[0]);
  program p;
  program_open(&p, args.v[0]);
  program_inputs(&p, 1);
  if (decomposed()) {
    program_parse(&p);
    return written ? draw_teg(&p) : plan_decomposed(&p);
  }
  program_plan(&p);
  if (opt[O_SET].n > 0) (void)program_params(&p);
  return print_plan(p.ctx, p.plan, p.graph);
}
