// ================================================================================================
// >>symbols  extents without numbers
// Takes a graph in which numbers stand for sizes that were left open, and for what is made of them;
// says what each of its numbers is.
// ================================================================================================

typedef struct eini_number {
  int64_t value, offset;   // in the graph; what it is: offset + the sum of coef * size
  int n;                   // 0: what it is in the graph
  eini_mapterm *term;
} eini_number;

struct eini_symbols {
  int n;                   // sizes
  const char **name;
  int64_t *base;           // what stands for each
  eini_number *number;     // all numbers of the graph, by value
  int64_t nnumber, cap;
};

// The first number that is no less.
static int64_t eini_symbols_at(const eini_symbols *s, int64_t value) {
  int64_t low = 0, high = s->nnumber;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (s->number[middle].value < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

static const eini_number *eini_symbols_find(const eini_symbols *s, int64_t value) {
  const int64_t i = s == NULL ? 0 : eini_symbols_at(s, value);
  return s == NULL || i == s->nnumber || s->number[i].value != value ? NULL : &s->number[i];
}

// What a number stands for; NULL: itself.
static const eini_number *eini_symbols_open(const eini_symbols *s, int64_t value) {
  const eini_number *x = eini_symbols_find(s, value);
  return x == NULL || x->n == 0 ? NULL : x;
}

// Adds a number whose value no other has.
EINI_UNUSED static ein_status eini_symbols_add(eini_arena *a, eini_symbols *s,
                                               const eini_number *x) {
  const int64_t i = eini_symbols_at(s, x->value);
  eini_number *p = (eini_number *)eini_grow(a, s->number, s->nnumber, &s->cap, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  s->number = p;
  memmove(&p[i + 1], &p[i], (size_t)(s->nnumber++ - i) * sizeof *p);
  p[i] = *x;
  return EIN_OK;
}

// What a number is where sizes are others.
EINI_UNUSED static int64_t eini_number_at(const eini_number *x, const int64_t *size) {
  int64_t value = x->offset;
  for (int i = 0; i < x->n; i++) value += x->term[i].coef * size[x->term[i].index];
  return value;
}

// A size, as it is, and nothing else.
EINI_UNUSED static int eini_number_plain(const eini_number *x) {
  return x->n == 1 && x->offset == 0 && x->term[0].coef == 1;
}

// Takes one word of a graph. number: it may depend on sizes; at: its statement, or NULL.
typedef void eini_word_fn(void *user, int64_t word, int number, const eini_stmt *at);

static void eini_map_words(const eini_stmt *s, const eini_map *m, void *user, eini_word_fn *fn) {
  fn(user, m->rows, 0, s);
  for (int r = 0; r < m->rows; r++) {
    fn(user, m->offset[r], 1, s);
    fn(user, m->first[r + 1], 0, s);
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      fn(user, m->term[e].index, 0, s);
      fn(user, m->term[e].coef, 0, s);
    }
  }
}

static void eini_expr_words(const eini_stmt *s, void *user, eini_word_fn *fn) {
  fn(user, s->expr.n, 0, s);
  for (int64_t i = 0; i < s->expr.n; i++) {
    const eini_node *v = &s->expr.node[i];
    const int leaf = eini_node_args(v) == 0 && v->op != EIN_OP_CONST;
    int64_t bits = 0;
    fn(user, v->op, 0, s);
    fn(user, v->dtype, 0, s);
    fn(user, leaf ? v->arg[0] : 0, 0, s);
    for (int a = 0; a < eini_node_args(v); a++) fn(user, eini_node_arg(&s->expr, v, a), 0, s);
    if (v->op == EIN_OP_CONST && !v->exact) memcpy(&bits, &v->re, sizeof bits);
    if (v->op == EIN_OP_CONST && v->exact) bits = v->ival;
    if (v->op == EIN_OP_CONST) fn(user, bits, v->exact && v->dtype != EIN_BOOL, s);
  }
}

// All that a graph consists of but names, in its order.
EINI_UNUSED static void eini_graph_words(const ein_graph *g, void *user, eini_word_fn *fn) {
  fn(user, g->ntensor, 0, NULL);
  for (int64_t i = 0; i < g->ntensor; i++) {
    const eini_tensor *t = &g->tensor[i];
    fn(user, t->role, 0, NULL);
    fn(user, t->dtype, 0, NULL);
    fn(user, t->rank, 0, NULL);
    for (int r = 0; r < t->rank; r++) fn(user, t->shape[r], 1, NULL);
  }
  fn(user, g->nstmt, 0, NULL);
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    fn(user, s->out, 0, s);
    fn(user, s->nfree, 0, s);
    fn(user, s->fold, 0, s);
    fn(user, s->rest, 0, s);
    fn(user, s->nindex, 0, s);
    for (int c = 0; c < s->nindex; c++) fn(user, s->index[c].extent, 1, s);
    eini_map_words(s, &s->out_map, user, fn);
    fn(user, s->noperand, 0, s);
    for (int k = 0; k < s->noperand; k++) {
      fn(user, s->operand[k], 0, s);
      eini_map_words(s, &s->proj[k], user, fn);
    }
    eini_expr_words(s, user, fn);
  }
}

// What runs or is planned has numbers.
static ein_status eini_graph_closed(eini_diag *d, const ein_graph *g) {
  if (g->symbols == NULL) return EIN_OK;
  return eini_fail(d, EIN_ERR_SHAPE, -1, 0, "give sizes", "the size '%.80s' was left open",
                   g->symbols->name[0]);
}
