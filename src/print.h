// ================================================================================================
// >>print  a graph as text
// Takes a graph; gives statements in the notation of programs, temporaries under names of their
// own. Writes as snprintf does: what does not fit is cut, the whole length is counted.
// ================================================================================================

typedef struct eini_text {
  char *buf;
  size_t size, at;
  int nodes;               // of an expression so far: shared nodes could repeat without end
  int cut;                 // an expression was too long or too deep
  int numbered;            // operands are written $0, $1, .. instead of what is read of them
  int pointed;             // whole numbers that are not exact have a point, to be read as such
} eini_text;

static eini_text eini_text_of(char *buf, size_t size) {
  eini_text t = {buf, buf == NULL ? 0 : size, 0, 0, 0, 0, 0};
  if (t.size > 0) buf[0] = 0;
  return t;
}

EINI_PRINTF(2, 3)
static void eini_say(eini_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = t->at < t->size ? t->size - t->at : 0;
  int n = vsnprintf(room > 0 ? t->buf + t->at : NULL, room, format, args);
  va_end(args);
  if (n > 0) t->at += (size_t)n;
}

static const char *eini_fold_name(const ein_graph *g, int fold) {
  return fold >= EIN_FOLD_USER ? g->monoid[fold - EIN_FOLD_USER].name : eini_folds[fold].name;
}

// A number, or what it stands for. size: as it is written where no extent is meant; more: behind
// something that it is added to.
static void eini_say_integer(eini_text *t, const ein_graph *g, int64_t x, int size, int more) {
  const eini_number *v = eini_symbols_open(g->symbols, x);
  for (int i = 0; v != NULL && i < v->n; i++, more = 1) {
    const int64_t c = v->term[i].coef;
    eini_say(t, "%s", c == -1 ? "-" : more && c > 0 ? "+" : "");
    if (c != 1 && c != -1) eini_say(t, "%lld*", (long long)c);
    eini_say(t, size ? "size(%s)" : "%s", g->symbols->name[v->term[i].index]);
  }
  x = v == NULL ? x : v->offset;
  if (v == NULL || x != 0) eini_say(t, "%s%lld", more && x >= 0 ? "+" : "", (long long)x);
}

// One coordinate, like 2*i+j-1.
static void eini_say_row(eini_text *t, const ein_graph *g, const eini_stmt *s, const eini_map *m,
                         int r) {
  int terms = 0;
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    int64_t c = m->term[e].coef;
    eini_say(t, "%s", c == -1 ? "-" : terms > 0 && c > 0 ? "+" : "");
    if (c != 1 && c != -1) eini_say(t, "%lld*", (long long)c);
    eini_say(t, "%s", s->index[m->term[e].index].name);
    terms++;
  }
  if (m->offset[r] != 0 || terms == 0) eini_say_integer(t, g, m->offset[r], 1, terms > 0);
}

// The index whose extent stands where a result's coordinate r is written; -1: none.
static int eini_said_extent(const eini_map *m, int r) {
  int64_t coef;
  const int index = eini_row_index(m, r, &coef);
  return m->offset[r] == 0 && coef == 1 ? index : -1;
}

static void eini_say_access(eini_text *t, const ein_graph *g, const eini_stmt *s, int k) {
  const eini_map *m = eini_access(s, k);
  eini_say(t, "%s", g->tensor[k < 0 ? s->out : s->operand[k]].name);
  for (int r = 0; r < m->rows; r++) {
    const int var = k < 0 ? eini_said_extent(m, r) : -1;
    eini_say(t, r > 0 ? "," : "[");
    eini_say_row(t, g, s, m, r);
    if (var < 0) continue;
    eini_say(t, "=");
    eini_say_integer(t, g, s->index[var].extent, 0, 0);
  }
  if (m->rows > 0) eini_say(t, "]");
}

// Extents of indices that stand in sums alone where the result is written.
static void eini_say_extents(eini_text *t, const ein_graph *g, const eini_stmt *s) {
  const eini_map *m = &s->out_map;
  int said = 0;
  for (int i = 0; i < s->nfree; i++) {
    int shown = eini_map_uses(m, i) == 0;
    for (int r = 0; r < m->rows; r++) shown |= eini_said_extent(m, r) == i;
    if (shown) continue;
    eini_say(t, "%s%s=", said++ > 0 ? ", " : " for ", s->index[i].name);
    eini_say_integer(t, g, s->index[i].extent, 0, 0);
  }
}

static void eini_say_const(eini_text *t, const ein_graph *g, const eini_node *v) {
  const eini_number *open = v->exact ? eini_symbols_open(g->symbols, v->ival) : NULL;
  const int sum = open != NULL && !eini_number_plain(open);
  if (sum) eini_say(t, "(");
  if (v->dtype == EIN_BOOL) eini_say(t, "%s", v->ival ? "true" : "false");
  else if (v->exact) eini_say_integer(t, g, v->ival, 1, 0);
  else if (v->re != v->re) eini_say(t, "nan");
  else if (v->re - v->re != 0) eini_say(t, v->re < 0 ? "-inf" : "inf");
  else if (t->pointed && fabs(v->re) < 1e17 && floor(v->re) == v->re) eini_say(t, "%.1f", v->re);
  else eini_say(t, "%.17g", v->re);
  if (sum) eini_say(t, ")");
}

// Prints a node for a place that binds at the given level. Depth and length are bounded.
static void eini_say_node(eini_text *t, const ein_graph *g, const eini_stmt *s, int id, int place,
                          int depth) {
  const eini_node *v = &s->expr.node[id];
  const char *infix = NULL;
  int op = v->op, cast = op == EIN_OP_CAST || op == EIN_OP_ROUNDTO;
  int level = op == EIN_OP_NEG || (op == EIN_OP_CONST && v->re < 0) ? 5 :
              op == EIN_OP_NOT ? 2 : op == EIN_OP_SQUARE ? 6 : 7;
  for (int i = 0; i < EINI_INFIXES; i++) {
    if (eini_infixes[i].op != op) continue;
    infix = eini_infixes[i].text;
    level = eini_infixes[i].level;
  }
  if (op == EIN_OP_CAST && v->arg[1] == 1) level = 7;  // typing makes this conversion again
  if (level < place) eini_say(t, "(");
  if (depth > 200 || t->nodes++ > (1 << 16)) {
    eini_say(t, "..");
    t->cut = 1;
  } else if (infix != NULL) {
    eini_say_node(t, g, s, v->arg[0], level + (level == 6 || level == 2), depth + 1);
    eini_say(t, "%s", infix);
    eini_say_node(t, g, s, v->arg[1], level + (level != 6), depth + 1);
  } else if (op == EIN_OP_CONST) {
    eini_say_const(t, g, v);
  } else if (op == EIN_OP_OPERAND) {
    if (t->numbered) eini_say(t, "$%d", v->arg[0]);
    else eini_say_access(t, g, s, v->arg[0]);
  } else if (op == EIN_OP_INDEX || op == EIN_OP_PARAM) {
    eini_say(t, "%s", op == EIN_OP_INDEX ? s->index[v->arg[0]].name : g->param[v->arg[0]].name);
  } else if (op == EIN_OP_NEG || op == EIN_OP_NOT || op == EIN_OP_SQUARE ||
             (op == EIN_OP_CAST && v->arg[1] == 1)) {
    eini_say(t, op == EIN_OP_NEG ? "-" : op == EIN_OP_NOT ? "not " : "");
    eini_say_node(t, g, s, v->arg[0], cast ? place : level + (level == 6), depth + 1);
    if (op == EIN_OP_SQUARE) eini_say(t, "^2");
  } else {
    const int hash = op == EIN_OP_HASH;  // of arguments of rand, which are a list in it
    eini_say(t, "%s%s%s", cast ? "cast_" : op == EIN_OP_CALL ? g->function[v->arg[0]].name
             : eini_ops[op].name, cast ? ein_dtype_name((ein_dtype)v->dtype) : "", hash ? "" : "(");
    for (int i = 0; i < eini_node_args(v); i++) {
      if (i > 0) eini_say(t, ", ");
      eini_say_node(t, g, s, eini_node_arg(&s->expr, v, i), 0, depth + 1);
    }
    if (!hash) eini_say(t, ")");
  }
  if (level < place) eini_say(t, ")");
}

static void eini_say_stmt(eini_text *t, const ein_graph *g, const eini_stmt *s) {
  eini_say_access(t, g, s, -1);
  eini_say(t, " : %s = ", ein_dtype_name(g->tensor[s->out].dtype));
  const ein_operator *over = eini_stmt_operator(g, s);
  if (s->fold != EIN_FOLD_NONE)
    eini_say(t, "%s[", over != NULL ? over->name : eini_fold_name(g, s->fold));
  for (int i = s->nfree; s->fold != EIN_FOLD_NONE && i < s->nindex; i++) {
    eini_say(t, "%s%s=", i > s->nfree ? "," : "", s->index[i].name);
    eini_say_integer(t, g, s->index[i].extent, 0, 0);
  }
  if (s->fold != EIN_FOLD_NONE) eini_say(t, "](");
  t->nodes = 0;
  const eini_node *root = &s->expr.node[s->expr.n - 1];
  if (over == NULL) eini_say_node(t, g, s, (int)s->expr.n - 1, 0, 0);
  for (int k = 0; over != NULL && k < eini_node_args(root); k++) {
    if (k > 0) eini_say(t, ", ");
    eini_say_node(t, g, s, eini_node_arg(&s->expr, root, k), 0, 0);
  }
  if (s->fold != EIN_FOLD_NONE) eini_say(t, ")");
  eini_say_extents(t, g, s);
}
