// SPDX-License-Identifier: MIT
//
// command_rewrite.h - einsum rewrite: what may be rewritten in a program, and the program after.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// A place where a rule applies: RULE@LINE.N is the n-th of that rule at that line.
typedef struct place {
  ein_rewrite w;
  int n;
} place;

typedef struct places_of {
  place *v;
  int n, room;
} places_of;

static void add_place(const ein_rewrite *w, void *user) {
  places_of *x = (places_of *)user;
  if (x->n == x->room) {
    place *more = (place *)memory(sizeof *more * (size_t)(x->room = 2 * x->room + 16));
    if (x->n > 0) memcpy(more, x->v, sizeof *more * (size_t)x->n);
    x->v = more;
  }
  place *p = &x->v[x->n];
  p->w = *w;
  p->n = 1;
  for (int k = 0; k < x->n; k++)
    p->n += x->v[k].w.line == w->line && strcmp(x->v[k].w.rule, w->rule) == 0;
  x->n++;
}

static places_of find_places(ein_ctx *ctx, const ein_graph *g, int effects) {
  places_of all = {NULL, 0, 0};
  const ein_status st = ein_rewrites(ctx, g, given(O_LOOSE) != NULL ? 2 : 1, effects, add_place,
                                     &all);
  if (st != EIN_OK) die_library(ctx, st, NULL);
  return all;
}

// ---- --list

static void put_place(const place *p) {
  printf("{\"place\": \"%s@%" PRId64 ".%d\", \"rule\": \"%s\", \"line\": %" PRId64 ", \"out\": ",
         p->w.rule, p->w.line, p->n, p->w.rule, p->w.line);
  put_json_string(p->w.out);
  printf(", \"kind\": %d, \"flops\": %.17g, \"bytes\": %.17g, \"held\": %.17g}", p->w.kind,
         p->w.flops, p->w.bytes, p->w.held);
}

static void print_places(const places_of *x) {
  static const char *const head[] = {"place", "statement", "flops", "bytes", "held", "what"};
  words cells = {NULL, 0};
  for (int i = 0; i < 6; i++) add_word(&cells, head[i]);
  for (int k = 0; k < x->n; k++) {
    const place *p = &x->v[k];
    add_cell(&cells, "%s@%" PRId64 ".%d", p->w.rule, p->w.line, p->n);
    add_word(&cells, p->w.out);
    add_cell(&cells, "%+.10g", p->w.flops), add_cell(&cells, "%+.10g", p->w.bytes);
    add_cell(&cells, "%+.10g", p->w.held);
    add_word(&cells, p->w.what);
  }
  put_cells(stdout, &cells, 6, 2);
}

static void list_places(const program *p) {
  const places_of all = find_places(p->ctx, p->graph, 1);
  if (given(O_JSON) == NULL) {
    print_places(&all);
    return;
  }
  putchar('[');
  for (int k = 0; k < all.n; k++) {
    if (k > 0) fputs(",\n ", stdout);
    put_place(&all.v[k]);
  }
  puts("]");
}

// ---- --apply

// "rule", the line and the number of RULE@LINE or RULE@LINE.N; *nth 0: any.
static char *read_place(const char *s, int64_t *line, int64_t *nth) {
  const char *at = strchr(s, '@'), *dot = at == NULL ? NULL : strchr(at, '.');
  const size_t n = at == NULL ? 0 : dot == NULL ? strlen(at + 1) : (size_t)(dot - at - 1);
  *nth = 0;
  if (at == NULL || !read_int(at + 1, n, line) ||
      (dot != NULL && (!read_int(dot + 1, strlen(dot + 1), nth) || *nth < 1)))
    misuse("for example --apply inline@3", "--apply takes RULE@LINE or RULE@LINE.N, not '%s'", s);
  return copy_text(s, (size_t)(at - s));
}

// The statement of a line for which a rule says why it does not apply.
static int64_t statement_at(const program *p, int64_t line) {
  int64_t found = -1;
  for (int64_t k = 0; k < ein_graph_statements(p->graph); k++)
    if (ein_graph_line(p->graph, k) == line) found = k;
  return found;
}

// The program is the one after.
static void apply_place(program *p, const char *said) {
  int64_t line, nth;
  int known = 0, strict = 0;
  char *rule = read_place(said, &line, &nth);
  const places_of all = find_places(p->ctx, p->graph, 0);
  ein_graph *made = NULL;
  const char *name;
  for (int k = 0; !known && (name = ein_rewrite_rule(k, NULL, &strict)) != NULL; k++)
    known = strcmp(name, rule) == 0;
  if (!known) misuse("einsum rewrite PROG.ein --list", "no rule is called '%s'", rule);
  if (strict == 2 && given(O_LOOSE) == NULL)
    misuse("--loose allows it", "%s does not keep rounding, infinities and NaN", rule);
  for (int k = 0; k < all.n && made == NULL; k++) {
    const place *x = &all.v[k];
    if (strcmp(x->w.rule, rule) != 0 || x->w.line != line || (nth > 0 && x->n != nth)) continue;
    const ein_status st = ein_rewrite_apply(p->ctx, p->graph, rule, x->w.stmt, x->w.part, &made);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
  }
  if (made == NULL) {
    const int64_t i = statement_at(p, line);
    if (i < 0)
      die(WRONG_INPUT, NULL, "%s: %s does not apply: no statement is at line %" PRId64, p->file,
          rule, line);
    if (nth > 1)
      die(WRONG_INPUT, NULL, "%s: %s does not apply at line %" PRId64 " so many times", p->file,
          rule, line);
    const ein_status st = ein_rewrite_apply(p->ctx, p->graph, rule, i, -1, &made);
    if (st != EIN_OK) die_library(p->ctx, st, p->file);
  }
  ein_graph_destroy(p->graph);
  p->graph = made;
}

// ---- --verify

// A graph on data that depend on seed, input and coordinates alone; its outputs by name.
typedef struct evaluated {
  int n;
  array *out;
} evaluated;

static evaluated evaluate_graph(ein_ctx *ctx, const ein_graph *g, const program *p, uint64_t seed) {
  ein_options o;
  ein_plan *plan = NULL;
  ein_tensor_info t;
  ein_run run;
  evaluated e = {0, NULL};
  int nin = 0;
  memset(&o, 0, sizeof o);
  memset(&run, 0, sizeof run);
  const ein_status st = ein_plan_graph(ctx, g, 0, NULL, &o, &plan);
  if (st != EIN_OK) die_library(ctx, st, p->file);
  while (ein_plan_input(plan, nin, &t)) nin++;
  while (ein_plan_output(plan, e.n, &t)) e.n++;
  const void **in = (const void **)memory(sizeof *in * ((size_t)nin + 1));
  void **out = (void **)memory(sizeof *out * ((size_t)e.n + 1));
  e.out = (array *)memory(sizeof *e.out * ((size_t)e.n + 1));
  for (int k = 0; ein_plan_input(plan, k, &t); k++) {
    array *a = (array *)memory(sizeof *a);
    uint64_t name = seed;
    for (const char *s = t.name; *s; s++) name = mix(name + (unsigned char)*s);
    set_shape(a, t.dtype, t.rank, t.shape, 0);
    allocate(a);
    fill_random(a, name, 0);
    in[k] = a->v.data;
  }
  for (int k = 0; ein_plan_output(plan, k, &t); k++) {
    e.out[k].name = copy_text(t.name, strlen(t.name));
    set_shape(&e.out[k], t.dtype, t.rank, t.shape, 0);
    allocate(&e.out[k]);
    out[k] = e.out[k].v.data;
  }
  ein_param_info q;
  int nparam = 0;
  while (ein_plan_param(plan, nparam, &q)) nparam++;
  ein_scalar *param = (ein_scalar *)memory(sizeof *param * ((size_t)nparam + 1));
  for (int k = 0; ein_plan_param(plan, k, &q); k++) {
    param[k].set = 1;
    param[k].re = 0.75;
    if (q.has_default) param[k] = q.value;
  }
  run.in = in;
  run.out = out;
  run.param = param;
  execute(plan, &run);
  ein_plan_destroy(plan);
  return e;
}

// The greatest difference of two outputs, in units of what their dtype rounds to at the greatest
// value. Infinities, NaN and integers must be the same.
static double difference(const array *a, const array *b) {
  const ein_dtype t = a->v.dtype;
  const size_t each = ein_dtype_size(t);
  double most = 0, apart = 0;
  int unused;
  for (int64_t i = 0; i < count_of(a); i++) {
    const number x = element(t, (const char *)a->v.data + (size_t)i * each);
    const number y = element(t, (const char *)b->v.data + (size_t)i * each);
    const double u[2] = {x.re, x.im}, v[2] = {y.re, y.im};
    if (!is_float(t) && x.i != y.i) return INFINITY;
    for (int k = 0; k < 2 && is_float(t); k++) {
      if (u[k] - u[k] == 0 && v[k] - v[k] == 0) {
        most = fmax(most, fabs(u[k]));
        apart = fmax(apart, fabs(u[k] - v[k]));
      } else if (u[k] == u[k] ? !(u[k] == v[k]) : v[k] == v[k]) {
        return INFINITY;
      }
    }
  }
  return apart == 0 ? 0 : apart / (ldexp(1.0, -precision(t, &unused)) * (most > 0 ? most : 1));
}

enum { VERIFY_MOST = 1 << 12 };  // roundings that sums in another order may differ by

// Both sides of a rewrite, the other one read from its text, agree.
static double verify_rewrite(const program *p, const ein_graph *before, const char *after) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = after;
  const ein_status st = ein_graph_parse(p->ctx, &d, &g);
  if (st != EIN_OK) die_library(p->ctx, st, "the program after");
  const uint64_t seed = option_seed();
  const evaluated a = evaluate_graph(p->ctx, before, p, seed);
  const evaluated b = evaluate_graph(p->ctx, g, p, seed);
  double most = 0;
  if (a.n != b.n) die(SYSTEM_FAILED, NULL, "%d outputs became %d", a.n, b.n);
  for (int i = 0; i < a.n; i++)
    for (int k = 0; k < b.n; k++)
      if (strcmp(a.out[i].name, b.out[k].name) == 0)
        most = fmax(most, difference(&a.out[i], &b.out[k]));
  ein_graph_destroy(g);
  if (!(most <= VERIFY_MOST))
    die(SYSTEM_FAILED, NULL, "the sides differ by %.3g roundings of the greatest value", most);
  return most;
}

// ---- --equal

// Another program, with the extents that inputs of this one have.
static int prove_equal(program *p) {
  const char *path = given(O_EQUAL);
  ein_program_desc d = p->d;
  ein_graph *other = NULL;
  d.text = read_text(path, &d.length);
  ein_status st = ein_graph_parse(p->ctx, &d, &other);
  if (st != EIN_OK) die_library(p->ctx, st, path);
  st = ein_rewrite_equal(p->ctx, p->graph, other);
  ein_graph_destroy(other);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (given(O_JSON) != NULL) puts("{\"equal\": true}");
  else printf("%s computes what %s does, up to the order of sums and products\n", path, p->file);
  return finish(p->ctx, NULL, p->graph);
}

static int command_rewrite(void) {
  const char *path = program_argument("einsum rewrite PROG.ein (--list | --apply RULE@LINE | "
                                      "--equal OTHER.ein)");
  program p;
  if ((given(O_LIST) != NULL) + (opt[O_APPLY].n > 0) + (given(O_EQUAL) != NULL) != 1)
    misuse("einsum rewrite PROG.ein --list", "give one of --list, --apply RULE@LINE and --equal "
           "OTHER.ein");
  if (opt[O_APPLY].n == 0 && given(O_VERIFY) != NULL)
    misuse(NULL, "--verify is for --apply");
  program_open(&p, path);
  program_inputs(&p, 1);
  program_parse(&p);
  if (given(O_EQUAL) != NULL) return prove_equal(&p);
  if (given(O_LIST) != NULL) {
    list_places(&p);
    return finish(p.ctx, NULL, p.graph);
  }
  ein_graph *before = NULL;
  const ein_status st = ein_graph_parse(p.ctx, &p.d, &before);
  if (st != EIN_OK) die_library(p.ctx, st, p.file);
  for (int k = 0; k < opt[O_APPLY].n; k++) apply_place(&p, opt[O_APPLY].v[k]);
  char *after = graph_text(p.graph);
  const double apart = given(O_VERIFY) != NULL ? verify_rewrite(&p, before, after) : NAN;
  if (given(O_JSON) != NULL) {
    fputs("{\"program\": ", stdout);
    put_json_string(after);
    put_member("apart", apart);
    puts("}");
  } else {
    fputs(after, stdout);
    if (apart == apart)
      printf("# verified: the sides differ by at most %.3g roundings of the greatest value\n",
             apart);
  }
  ein_graph_destroy(before);
  return finish(p.ctx, NULL, p.graph);
}
