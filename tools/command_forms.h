// SPDX-License-Identifier: MIT
//
// command_forms.h - schedules in the names of a program's normal form: as of the program, and as
// records of a tuning store.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// A program and its normal form, as einsum canon prints it.
typedef struct normal_form {
  ein_canon *canon;
  const ein_graph *g, *of;      // of the form; of the program
  ein_decomposition *d, *own;   // of both, uncut: for what their statements are called
  char *key;                    // its text, and which of its tensors are one, on a line
} normal_form;

static ein_decomposition *uncut_graph(ein_ctx *ctx, const ein_graph *g) {
  ein_decompose_desc how;
  ein_decomposition *d;
  memset(&how, 0, sizeof how);
  how.p = 1;
  how.method = "none";
  const ein_status st = ein_decompose(ctx, g, &how, &d);
  if (st != EIN_OK) die_library(ctx, st, NULL);
  return d;
}

static void form_key(normal_form *f) {
  text t = {NULL, 0, 0};
  ein_tensor_info x;
  char *print = graph_text(f->g);
  for (char *line = strtok(print, "\n"); line; line = strtok(NULL, "\n")) {
    add_string(&t, line);
    add_string(&t, "; ");
  }
  add_string(&t, "#");
  for (int k = 0; ein_graph_tensor(f->g, k, &x); k++) {
    char b[40];
    int first = 0;
    while (ein_canon_tensor(f->canon, first) != ein_canon_tensor(f->canon, k)) first++;
    add_text(&t, b, (size_t)snprintf(b, sizeof b, " %d", first));
  }
  f->key = t.s;
}

// 0: its normal form takes too long.
static int form_of(const program *p, normal_form *f) {
  f->of = p->graph;
  if (ein_canon_create(p->ctx, p->graph, 0, &f->canon) != EIN_OK) return 0;
  f->g = ein_canon_graph(f->canon);
  f->d = uncut_graph(p->ctx, f->g);
  f->own = uncut_graph(p->ctx, p->graph);
  form_key(f);
  return 1;
}

static void form_end(normal_form *f) {
  ein_decomposition_destroy(f->d);
  ein_decomposition_destroy(f->own);
  ein_canon_destroy(f->canon);
}

// ---- from the form's names to the program's

typedef struct naming {
  const normal_form *f;
  int stmt;                 // of the form, whose indices are meant; -1: none
  text t;
} naming;

static int is_word(const char *s, size_t n, const char *name) {
  return strlen(name) == n && memcmp(s, name, n) == 0;
}

static int is_numeral(char c) { return c >= '0' && c <= '9'; }

static int is_part_of_word(char c) {
  return c == '_' || ((unsigned char)c & 0x80) != 0 || is_numeral(c) ||
         ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// Of the word that a text begins with; 0: with none.
static size_t word_length(const char *s) {
  size_t n = 0;
  while (is_part_of_word(s[n])) n++;
  return is_numeral(s[0]) ? 0 : n;
}

// Has the program something of that name?
static int form_taken(const normal_form *f, const char *name) {
  ein_tensor_info x;
  for (int k = 0; ein_graph_tensor(f->of, k, &x); k++)
    if (strcmp(x.name, name) == 0) return 1;
  for (int k = 0; k < ein_graph_statements(f->of); k++) {
    const ein_decomp_stmt s = stmt_of(f->own, k);
    for (int i = 0; i < s.nindex; i++)
      if (strcmp(s.index[i], name) == 0) return 1;
  }
  return 0;
}

// Adds what a word of the form is called in the program; one that is none of the form's, as the
// name of a loop, keeps its name, or gets another where the program has it.
static void name_word(naming *w, const char *s, size_t n) {
  const normal_form *f = w->f;
  ein_tensor_info x, own;
  ein_canon_stmt c;
  ein_param_info q;
  for (int k = 0; ein_graph_tensor(f->g, k, &x); k++)
    if (is_word(s, n, x.name) &&
        ein_graph_tensor(f->of, (int)ein_canon_tensor(f->canon, k), &own)) {
      add_string(&w->t, own.name);
      return;
    }
  for (int k = 0; ein_graph_param(f->g, k, &q); k++)
    if (is_word(s, n, q.name) &&
        ein_graph_param(f->of, (int)ein_canon_param(f->canon, k), &q)) {
      add_string(&w->t, q.name);
      return;
    }
  if (w->stmt >= 0 && ein_canon_statement(f->canon, w->stmt, &c)) {
    const ein_decomp_stmt of = stmt_of(f->d, w->stmt);
    for (int i = 0; i < c.nindex; i++)
      if (is_word(s, n, of.index[i])) {
        add_string(&w->t, c.name[i]);
        return;
      }
  }
  char *name = copy_text(s, n);
  while (form_taken(f, name)) {
    char *more = (char *)memory(strlen(name) + 2);
    (void)sprintf(more, "%s_", name);
    name = more;
  }
  add_string(&w->t, name);
}

// on NAME, on NAME number: NAME is read. The statement's number among those of its tensor.
static const char *name_on(naming *w, const char *s, size_t n) {
  const normal_form *f = w->f;
  ein_canon_stmt c;
  long left = 1;
  const char *end = s + n + strspn(s + n, " \t");
  if (is_numeral(*end)) left = strtol(end, (char **)(uintptr_t)&end, 10);
  else end = s + n;
  name_word(w, s, n);
  w->stmt = -1;
  for (int k = 0; k < ein_graph_statements(f->g) && w->stmt < 0; k++)
    if (is_word(s, n, stmt_of(f->d, k).out) && --left <= 0) w->stmt = k;
  if (w->stmt < 0 || !ein_canon_statement(f->canon, w->stmt, &c)) return end;
  const char *out = stmt_of(f->own, (int)c.stmt).out;
  int place = 0, all = 0;
  for (int k = 0; k < ein_graph_statements(f->of); k++) {
    all += strcmp(stmt_of(f->own, k).out, out) == 0;
    if (k == c.stmt) place = all;
  }
  char b[40];
  if (all > 1) add_text(&w->t, b, (size_t)snprintf(b, sizeof b, " %d", place));
  return end;
}

// One command, up to the end of its line. What names of the machine, kernels and numbers stand for
// is the same in both.
static const char *name_command(naming *w, const char *s) {
  static const char *const whole[] = {"machine"}, *const last[] = {"divide", "split", "distribute",
                                                                   "rfactor", "substitute"};
  const size_t n = word_length(s);
  int depth = 0, argument = 0, keep = n > 0 && is_word(s, n, whole[0]), most = 99;
  for (int k = 0; k < 5; k++)
    if (n > 0 && is_word(s, n, last[k])) most = k < 4 ? 3 : 1;
  const int list = most == 3 && s[0] == 'd' && s[2] == 's', on = n > 0 && is_word(s, n, "on");
  const int brackets = list && s[n + strspn(s + n, " \t(")] == '[';
  add_text(&w->t, s, n);
  for (s += n; *s != 0 && (depth > 0 || (*s != '\n' && *s != ';'));) {
    const size_t k = word_length(s);
    const int numeral = is_numeral(*s);
    if (k > 0 && !keep && s[k] == '-' && s[k + 1] == '>') keep = 1;  // a distribution
    if (k > 0 && on) {
      s = name_on(w, s, k);
      continue;
    }
    if (k > 0 && (keep || s[k] == '(' || (argument >= most && (!list || brackets)))) {
      add_text(&w->t, s, k);
    } else if (k > 0) {
      name_word(w, s, k);
    } else {
      depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
      argument += *s == ',' && depth == 1;
      add_text(&w->t, s, 1);
    }
    s += k > 0 ? k : 1;
    while (numeral && (is_part_of_word(*s) || *s == '.')) add_text(&w->t, s++, 1);
  }
  return s;
}

// A schedule in the program's names; lines stay where they are.
static char *form_named(const normal_form *f, const char *s) {
  naming w = {f, ein_graph_statements(f->g) == 1 ? 0 : -1, {NULL, 0, 0}};
  add_string(&w.t, "");
  while (*s != 0) {
    if (*s == ' ' || *s == '\t' || *s == '\n' || *s == ';' || *s == '\r') add_text(&w.t, s++, 1);
    else s = name_command(&w, s);
  }
  return w.t.s;
}

// ---- in a store

// The beginning of the record of the program's schedule, up to the schedule.
static char *form_record(const program *p, const normal_form *f, int64_t places,
                         const char *fabric) {
  text t = {NULL, 0, 0};
  ein_store_info info;
  char b[160];
  const char *machine = ein_ctx_store_info(p->ctx, &info) ? info.machine : NULL;
  add_string(&t, machine == NULL ? "-" : machine);
  snprintf(b, sizeof b, "\tschedule over %" PRId64 " places, %s, %d threads: ", places, fabric,
           strcmp(fabric, "threads") == 0 ? threads : 1);
  add_string(&t, b);
  add_string(&t, f->key);
  add_string(&t, "\t-\t-\tauto\t");
  return t.s;
}

// The fabric that was asked for.
static const char *fabric_name(void) {
  return given(O_FABRIC) == NULL ? "serial" : given(O_FABRIC);
}

// What the store has for the program, in its names, where nothing else is asked for; or NULL.
static char *form_stored(const program *p, int64_t places) {
  static const option_id other[] = {O_DECOMP, O_COST, O_PARTS, O_KEEP, O_PIN, O_MEMORY,
                                    O_NO_SCATTER, O_DETERMINISTIC};
  normal_form f;
  char *found = NULL;
  if (store_path() == NULL || given(O_PLACES) == NULL) return NULL;
  for (size_t k = 0; k < sizeof other / sizeof *other; k++)
    if (opt[other[k]].n > 0) return NULL;
  const content b = read_store(store_path(), 0);
  if (b.n == 0 || !form_of(p, &f)) return NULL;
  const char *record = form_record(p, &f, places, fabric_name());
  const size_t n = strlen(record);
  for (const char *s = b.s, *end = b.s + b.n; s < end;) {
    const char *stop = (const char *)memchr(s, '\n', (size_t)(end - s));
    if (stop == NULL) stop = end;
    const char *tab = (size_t)(stop - s) > n && memcmp(s, record, n) == 0
                          ? (const char *)memchr(s + n, '\t', (size_t)(stop - s) - n) : NULL;
    if (tab != NULL) found = form_named(&f, copy_text(s + n, (size_t)(tab - s) - n));
    s = stop + 1;
  }
  form_end(&f);
  return found;
}

// ---- parameters: "param b = 16, 32, 64" before the commands

typedef struct parameter {
  char *name;
  words value;
} parameter;

enum { PARAMETERS_MOST = 8 };

// Takes lines of parameters out of a text, and comments.
static char *form_parameters(char *s, parameter *q, int *n) {
  for (char *c = s, comment = 0; *c != 0; c++) {
    comment = (char)(*c == '#' || (comment && *c != '\n'));
    if (comment) *c = ' ';
  }
  *n = 0;
  for (char *line = s; *line != 0;) {
    char *end = line + strcspn(line, "\n;"), *at = line + strspn(line, " \t");
    if (strncmp(at, "param", 5) == 0 && (at[5] == ' ' || at[5] == '\t')) {
      char *name = at + 5 + strspn(at + 5, " \t");
      const size_t k = word_length(name);
      char *eq = name + k + strspn(name + k, " \t");
      if (k == 0 || *eq != '=' || *n == PARAMETERS_MOST)
        die(WRONG_INPUT, "like param b = 16, 32, 64", "%s: '%.*s' is no parameter of a schedule",
            given(O_SCHEDULE), (int)(end - at), at);
      q[*n].name = copy_text(name, k);
      q[*n].value.v = NULL, q[*n].value.n = 0;
      for (char *v = eq + 1; v <= end; v++) {
        size_t len = strcspn(v, ",\n;");
        char *value = copy_text(v + strspn(v, " \t"), len - strspn(v, " \t") * (len > 0));
        for (size_t i = strlen(value); i > 0 && strchr(" \t\r", value[i - 1]); ) value[--i] = 0;
        if (value[0] == 0)
          die(WRONG_INPUT, NULL, "%s: a value of '%s' is missing", given(O_SCHEDULE), q[*n].name);
        add_word(&q[*n].value, value);
        v += len;
      }
      ++*n;
      memset(at, ' ', (size_t)(end - at));
    }
    line = *end == 0 ? end : end + 1;
  }
  return s;
}

// The text with setting number k of the parameters, and what it is in words.
static char *form_setting(const char *s, const parameter *q, int n, int64_t k, char **said) {
  text t = {NULL, 0, 0}, is = {NULL, 0, 0};
  const char *value[PARAMETERS_MOST];
  add_string(&t, "");
  add_string(&is, "");
  for (int i = n - 1; i >= 0; i--) value[i] = q[i].value.v[k % q[i].value.n], k /= q[i].value.n;
  for (int i = 0; i < n; i++) {
    add_string(&is, i > 0 ? ", " : "");
    add_string(&is, q[i].name);
    add_string(&is, "=");
    add_string(&is, value[i]);
  }
  while (*s != 0) {
    const size_t m = word_length(s);
    const size_t more = m > 0 ? m : is_numeral(*s) ? strspn(s, "0123456789.") : 1;
    int i = 0;
    while (m > 0 && i < n && !is_word(s, m, q[i].name)) i++;
    if (m > 0 && i < n) {
      const int plain = value[i][strspn(value[i], "0123456789")] == 0;
      add_string(&t, plain ? "" : "(");
      add_string(&t, value[i]);
      add_string(&t, plain ? "" : ")");
    } else {
      add_text(&t, s, more);
    }
    s += more;
  }
  *said = is.s;
  return t.s;
}
