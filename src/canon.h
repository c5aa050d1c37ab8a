// ================================================================================================
// >>canon  statements as coloured graphs
// Takes a statement; gives the graph that says what it computes without names and orders. After
// Kulkarni and Kloeckner, Canonicalization of batched Einstein summations, section 5.
// ================================================================================================

// A statement has a vertex for the result, for each index (coloured by its extent), for each time
// an operand is read, for each param and operation of the expression, joined by coordinates and
// arguments. In the graph of a batch each row has a vertex, and one for each operand and param of
// it, joined to that of the statement and to the tensor that is read.

enum {  // kinds of vertices, and of arcs
  EINI_C_RESULT = 1, EINI_C_INDEX, EINI_C_OPERAND, EINI_C_PARAM, EINI_C_NODE, EINI_C_ROW,
  EINI_C_ACCESS, EINI_C_TENSOR, EINI_C_SCALAR, EINI_C_COORDINATE, EINI_C_ARGUMENT, EINI_C_ROOT,
  EINI_C_OF, EINI_C_READS, EINI_C_MAKES
};

typedef struct eini_arc {
  int from, to;
  int64_t what, by;
} eini_arc;

typedef struct eini_sketch {  // a graph as it is drawn
  eini_arena *arena;
  int64_t *word, nword, capword;  // what vertices are, in full, one after the other
  int64_t *end, n, cap;           // where that of a vertex ends
  eini_arc *arc;
  int64_t narc, caparc;
  ein_status st;             // the first failure
} eini_sketch;

// One more word of what the next vertex is.
static void eini_sketch_word(eini_sketch *k, int64_t x) {
  int64_t *p = (int64_t *)eini_grow(k->arena, k->word, k->nword, &k->capword, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  if (k->st != EIN_OK) return;
  k->word = p;
  p[k->nword++] = x;
}

static void eini_sketch_text(eini_sketch *k, const char *s) {
  do eini_sketch_word(k, (unsigned char)*s);
  while (*s++ != 0);
}

static void eini_sketch_real(eini_sketch *k, double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  eini_sketch_word(k, bits);
}

static void eini_sketch_words(eini_sketch *k, const int64_t *x, int n) {
  for (int i = 0; i < n; i++) eini_sketch_word(k, x[i]);
}

// The vertex that the words since the last one are of.
static int eini_sketch_vertex(eini_sketch *k) {
  int64_t *p = (int64_t *)eini_grow(k->arena, k->end, k->n, &k->cap, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  else if (k->n >= INT_MAX / 8) k->st = EIN_ERR_TOO_LARGE;
  if (k->st != EIN_OK) return 0;
  k->end = p;
  p[k->n] = k->nword;
  return (int)k->n++;
}

static void eini_sketch_arc(eini_sketch *k, int from, int to, int64_t what, int64_t by) {
  eini_arc *p = (eini_arc *)eini_grow(k->arena, k->arc, k->narc, &k->caparc, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  if (k->st != EIN_OK) return;
  k->arc = p;
  p = &k->arc[k->narc++];
  p->from = from;
  p->to = to;
  p->what = what;
  p->by = by;
}

// The graph; several arcs from one vertex to another are one. Colours and keys are made of the
// words, the same on all machines; where two are equal by chance, forms may differ that need not.
static ein_status eini_sketch_graph(const eini_sketch *k, eini_colours *g) {
  int64_t *at = EINI_NEW(k->arena, int64_t, k->n);
  g->n = (int)k->n;
  g->colour = EINI_NEW(k->arena, uint64_t, k->n);
  g->first = EINI_NEW(k->arena, int64_t, k->n + 1);
  g->half = EINI_NEW(k->arena, eini_link, 2 * k->narc);
  if (k->st != EIN_OK) return k->st;
  if (at == NULL || g->colour == NULL || g->first == NULL || g->half == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t v = 0, w = 0; v < k->n; v++)
    for (; w < k->end[v]; w++) g->colour[v] = eini_mix(g->colour[v], (uint64_t)k->word[w]);
  for (int64_t e = 0; e < k->narc; e++) {
    g->first[k->arc[e].from + 1]++;
    g->first[k->arc[e].to + 1]++;
  }
  for (int64_t v = 0; v < k->n; v++) at[v] = g->first[v + 1] += g->first[v];
  for (int64_t e = k->narc - 1; e >= 0; e--) {
    const eini_arc *x = &k->arc[e];
    const uint64_t label = eini_mix(eini_mix((uint64_t)x->what, 0), (uint64_t)x->by);
    eini_link *out = &g->half[--at[x->from]], *in = &g->half[--at[x->to]];
    out->to = x->to;
    out->key = eini_mix(label, 1);
    in->to = x->from;
    in->key = eini_mix(label, 2);
  }
  int64_t n = 0;
  for (int64_t v = 0, next = 0; v < k->n; v++) {
    const int64_t begin = n, from = next, end = next = g->first[v + 1];
    for (int64_t h = from; h < end; h++) {
      const eini_link x = g->half[h];
      int64_t i = n;
      while (i > begin && g->half[i - 1].to > x.to) i--;
      if (i > begin && g->half[i - 1].to == x.to) {
        g->half[i - 1].key += x.key;
        continue;
      }
      memmove(&g->half[i + 1], &g->half[i], (size_t)(n - i) * sizeof x);
      g->half[i] = x;
      n++;
    }
    g->first[v + 1] = n;
  }
  return EIN_OK;
}

// ---- what is in a sketch, in full ----

typedef struct eini_arcs {  // to order them by
  const eini_arc *arc;
  const int *place;         // of vertices
} eini_arcs;

static int eini_arcs_order(const void *of, int i, int k) {
  const eini_arcs *q = (const eini_arcs *)of;
  const eini_arc *x = &q->arc[i], *y = &q->arc[k];
  const int64_t a[4] = {q->place[x->from], q->place[x->to], x->what, x->by};
  const int64_t b[4] = {q->place[y->from], q->place[y->to], y->what, y->by};
  for (int e = 0; e < 4; e++)
    if (a[e] != b[e]) return a[e] < b[e] ? -1 : 1;
  return 0;
}

static int64_t eini_sketch_size(const eini_sketch *k) {
  return 1 + k->n + k->nword + 4 * k->narc;
}

// All that was drawn, its vertices in an order: equal exactly where one order leads to the other
// by an isomorphism.
static ein_status eini_sketch_say(const eini_sketch *k, const int *order, int64_t *to) {
  const int n = (int)k->narc;
  int *place = EINI_NEW(k->arena, int, k->n), *list = EINI_NEW(k->arena, int, 2 * (int64_t)n);
  const eini_arcs arcs = {k->arc, place};
  if (place == NULL || list == NULL) return EIN_ERR_NO_MEMORY;
  *to++ = k->n;
  for (int i = 0; i < k->n; i++) {
    const int v = order[i];
    const int64_t from = v > 0 ? k->end[v - 1] : 0;
    place[v] = i;
    *to++ = k->end[v] - from;
    for (int64_t w = from; w < k->end[v]; w++) *to++ = k->word[w];
  }
  for (int e = 0; e < n; e++) list[e] = e;
  eini_merge_sort(list, list + n, n, &arcs, eini_arcs_order);
  for (int e = 0; e < n; e++) {
    const eini_arc *x = &k->arc[list[e]];
    *to++ = place[x->from], *to++ = place[x->to], *to++ = x->what, *to++ = x->by;
  }
  return EIN_OK;
}

// ---- what vertices are ----

enum {                    // what of statements counts
  EINI_SAME_VALUES = 1,   // literals and params
  EINI_SAME_EXTENTS = 2,  // all that they run over; else they run over blocks of one shape
  EINI_SAME_AXES = 4,     // the order of the result's axes
  EINI_SAME_ALONE = 8     // statements stand alone: operands have vertices, and params numbers
};

// What else counts of the indices and operands of a statement that stands alone.
typedef struct eini_besides {
  int what;                        // EINI_SAME_*
  int nindex, noperand;            // words for each of them; a result is an operand, the last
  const int64_t *index, *operand;
  const int *alike;                // of an operand: the first that reads the same tensor; or NULL
} eini_besides;

static void eini_sketch_besides(eini_sketch *k, const int64_t *word, int n, int i) {
  if (n > 0) eini_sketch_words(k, word + (int64_t)i * n, n);
}

static void eini_sketch_tensor(eini_sketch *k, int kind, const eini_tensor *t, int shape) {
  eini_sketch_word(k, kind);
  eini_sketch_word(k, t->dtype);
  eini_sketch_word(k, t->rank);
  if (shape) eini_sketch_words(k, t->shape, t->rank);
}

static void eini_sketch_node(eini_sketch *k, const ein_graph *g, const eini_node *v, int values) {
  eini_sketch_word(k, EINI_C_NODE);
  eini_sketch_word(k, v->op);
  eini_sketch_word(k, v->dtype);
  if (v->op == EIN_OP_CALL) eini_sketch_text(k, g->function[v->arg[0]].name);
  if (v->op != EIN_OP_CONST || !values) return;
  eini_sketch_word(k, v->exact);
  eini_sketch_word(k, v->ival);
  eini_sketch_real(k, v->re);
  eini_sketch_real(k, v->im);
}

// Folds whose result depends on which reduced index comes first: positions, and what users do.
static int eini_fold_orders(int fold) {
  return eini_fold_counts(fold) || fold >= EIN_FOLD_USER;
}

static int eini_op_commutes(int op) {
  return op == EIN_OP_ADD || op == EIN_OP_MUL || op == EIN_OP_MAX || op == EIN_OP_MIN ||
         op == EIN_OP_EQ || op == EIN_OP_NE || op == EIN_OP_AND || op == EIN_OP_OR;
}

// ---- the graph of a notation ----

typedef struct eini_place {  // where an expression reads an operand: each time counts
  int operand, vertex;
  int node;                  // that it is read by, and as which argument; -1: the whole expression
  int arg;
} eini_place;

// How a statement is written: vertex 0 is its result, then its indices, of one that stands alone
// its operands, then these.
typedef struct eini_spelling {
  const eini_stmt *s;
  const eini_besides *b;
  int nplace, nparam;
  eini_place *place;
  int *param, *pvertex;      // params of the graph, as they occur; their vertices
  int *vertex;               // of a node of the expression that is no operand
  int product;               // the expression is a product of operands: its factors are one set
} eini_spelling;

// Marks the multiplications of a product. Is it one of operands alone, in need of no order?
static int eini_spelling_product(const eini_expr *e, char *mark) {
  int only = e->node[e->n - 1].op == EIN_OP_MUL;
  mark[e->n - 1] = 1;
  for (int64_t i = e->n - 1; i >= 0 && only; i--) {
    const eini_node *v = &e->node[i];
    for (int k = 0; mark[i] && k < 2; k++) {
      const eini_node *kid = &e->node[v->arg[k]], *leaf = kid;
      const int times = kid->op == EIN_OP_MUL && kid->dtype == v->dtype;
      while (leaf->op == EIN_OP_CAST || leaf->op == EIN_OP_CONJ) leaf = &e->node[leaf->arg[0]];
      only &= times ? !mark[v->arg[k]] : leaf->op == EIN_OP_OPERAND;
      mark[v->arg[k]] |= (char)times;
    }
  }
  return only;
}

// The offsets of a map count; or blocks have their own.
static void eini_spelling_offsets(eini_sketch *k, const eini_spelling *x, const eini_map *m) {
  if (x->b->what & EINI_SAME_EXTENTS) eini_sketch_words(k, m->offset, m->rows);
}

static void eini_spelling_map(eini_sketch *k, const eini_map *m, int vertex) {
  for (int r = 0; r < m->rows; r++)
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      eini_sketch_arc(k, vertex, 1 + m->term[e].index, EINI_C_COORDINATE + 32 * (int64_t)r,
                      m->term[e].coef);
}

static void eini_spelling_tensor(eini_sketch *k, const ein_graph *g, const eini_spelling *x,
                                 int operand) {
  eini_sketch_tensor(k, EINI_C_OPERAND, &g->tensor[x->s->operand[operand]],
                     x->b->what & EINI_SAME_EXTENTS);
  eini_spelling_offsets(k, x, &x->s->proj[operand]);
}

// The vertices of the operands of a statement that stands alone, and of tensors they share.
static ein_status eini_spelling_operands(eini_sketch *k, const ein_graph *g,
                                         const eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_besides *b = x->b;
  int *shared = EINI_NEW(k->arena, int, s->noperand);
  if (shared == NULL) return EIN_ERR_NO_MEMORY;
  for (int o = 0; o < s->noperand; o++) {
    eini_spelling_tensor(k, g, x, o);
    eini_sketch_besides(k, b->operand, b->noperand, o);
    eini_spelling_map(k, &s->proj[o], eini_sketch_vertex(k));
  }
  for (int o = 0; o < s->noperand && b->alike != NULL; o++) {
    const int first = b->alike[o];
    if (first == o) continue;
    if (shared[first] == 0) {
      eini_sketch_word(k, EINI_C_TENSOR);
      shared[first] = eini_sketch_vertex(k);
      eini_sketch_arc(k, shared[first], 1 + s->nindex + first, EINI_C_READS, 0);
    }
    eini_sketch_arc(k, shared[first], 1 + s->nindex + o, EINI_C_READS, 0);
  }
  return EIN_OK;
}

// The vertex of an operand, read there, that conversions and conjugations up to node `top` were
// done to.
static int eini_spelling_place(eini_sketch *k, const ein_graph *g, eini_spelling *x, int top,
                               int node, int arg) {
  const eini_expr *e = &x->s->expr;
  const eini_node *leaf = &e->node[top];
  const int alone = x->b->what & EINI_SAME_ALONE;
  eini_place *p = &x->place[x->nplace++];
  eini_sketch_word(k, EINI_C_ACCESS);
  for (; leaf->op != EIN_OP_OPERAND; leaf = &e->node[leaf->arg[0]])
    eini_sketch_node(k, g, leaf, 1);
  p->operand = leaf->arg[0];
  p->node = node;
  p->arg = arg;
  if (!alone) eini_spelling_tensor(k, g, x, p->operand);
  p->vertex = eini_sketch_vertex(k);
  if (!alone) eini_spelling_map(k, &x->s->proj[p->operand], p->vertex);
  else eini_sketch_arc(k, p->vertex, 1 + x->s->nindex + p->operand, EINI_C_OF, 0);
  return p->vertex;
}

static void eini_spelling_factors(eini_sketch *k, const ein_graph *g, eini_spelling *x,
                                  const char *mark) {
  const eini_expr *e = &x->s->expr;
  for (int i = 0; i < e->n; i++)
    for (int a = 0; mark[i] && a < 2; a++)
      if (!mark[e->node[i].arg[a]])
        eini_sketch_arc(k, 0, eini_spelling_place(k, g, x, e->node[i].arg[a], i, a), EINI_C_ROOT,
                        e->node[i].dtype);
}

// The vertex of a param of the graph.
static int eini_spelling_param(eini_sketch *k, const ein_graph *g, eini_spelling *x, int param) {
  const int what = x->b->what, values = what & EINI_SAME_VALUES;
  int p = values ? 0 : x->nparam;
  while (p < x->nparam && x->param[p] != param) p++;
  if (p < x->nparam) return x->pvertex[p];
  eini_sketch_word(k, EINI_C_PARAM);
  eini_sketch_word(k, g->param[param].dtype);
  if (values && (what & EINI_SAME_ALONE)) eini_sketch_word(k, param);
  x->param[x->nparam++] = param;
  return x->pvertex[p] = eini_sketch_vertex(k);
}

static void eini_spelling_nodes(eini_sketch *k, const ein_graph *g, eini_spelling *x,
                                const char *need) {
  const eini_expr *e = &x->s->expr;
  for (int i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    if (!need[i] || v->op == EIN_OP_OPERAND) continue;
    if (v->op == EIN_OP_INDEX) {
      x->vertex[i] = 1 + v->arg[0];
    } else if (v->op == EIN_OP_PARAM) {
      x->vertex[i] = eini_spelling_param(k, g, x, v->arg[0]);
    } else {
      eini_sketch_node(k, g, v, x->b->what & EINI_SAME_VALUES);
      x->vertex[i] = eini_sketch_vertex(k);
    }
    for (int a = 0; a < eini_node_args(v); a++) {
      const int kid = eini_node_arg(e, v, a);
      const int to = e->node[kid].op == EIN_OP_OPERAND ? eini_spelling_place(k, g, x, kid, i, a)
                                                       : x->vertex[kid];
      eini_sketch_arc(k, x->vertex[i], to, EINI_C_ARGUMENT, eini_op_commutes(v->op) ? 0 : a + 1);
    }
  }
  const int root = (int)e->n - 1;
  eini_sketch_arc(k, 0, e->node[root].op == EIN_OP_OPERAND
                            ? eini_spelling_place(k, g, x, root, -1, 0) : x->vertex[root],
                  EINI_C_ROOT, 0);
}

static ein_status eini_spelling_new(eini_arena *a, const eini_stmt *s, const eini_besides *b,
                                    eini_spelling *x) {
  const eini_expr *e = &s->expr;
  int64_t reads = 1, n = e->n;
  for (int64_t i = 0; i < n; i++) reads += eini_node_args(&e->node[i]);
  memset(x, 0, sizeof *x);
  x->s = s;
  x->b = b;
  x->place = EINI_NEW(a, eini_place, reads);
  x->vertex = EINI_NEW(a, int, 3 * n);
  if (x->place == NULL || x->vertex == NULL) return EIN_ERR_NO_MEMORY;
  x->param = x->vertex + n;
  x->pvertex = x->vertex + 2 * n;
  return EIN_OK;
}

static void eini_spelling_result(eini_sketch *k, const ein_graph *g, const eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_besides *b = x->b;
  const int extents = b->what & EINI_SAME_EXTENTS, axes = b->what & EINI_SAME_AXES;
  eini_sketch_tensor(k, EINI_C_RESULT, &g->tensor[s->out], extents && axes);
  eini_sketch_word(k, s->numpy);
  eini_sketch_word(k, s->type);
  eini_sketch_word(k, s->order);
  eini_sketch_text(k, eini_fold_name(g, s->fold));
  if (extents) eini_sketch_word(k, s->rest);
  if (axes) eini_spelling_offsets(k, x, &s->out_map);
  eini_sketch_besides(k, b->operand, b->noperand, s->noperand);
  eini_sketch_vertex(k);
}

// Draws a statement, as it is written.
static ein_status eini_spelling_draw(eini_sketch *k, const ein_graph *g, eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_besides *b = x->b;
  const eini_expr *e = &s->expr;
  char *mark = EINI_NEW(k->arena, char, e->n), *need = EINI_NEW(k->arena, char, e->n);
  if (mark == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  x->nplace = x->nparam = 0;
  eini_spelling_result(k, g, x);
  for (int c = 0; c < s->nindex; c++) {
    eini_sketch_word(k, EINI_C_INDEX);
    if (b->what & EINI_SAME_EXTENTS) eini_sketch_word(k, s->index[c].extent);
    eini_sketch_word(k, c < s->nfree);
    eini_sketch_word(k, c >= s->nfree && eini_fold_orders(s->fold) ? c - s->nfree + 1 : 0);
    eini_sketch_besides(k, b->index, b->nindex, c);
    eini_sketch_vertex(k);
  }
  if (b->what & EINI_SAME_ALONE) EINI_TRY(eini_spelling_operands(k, g, x));
  if (b->what & EINI_SAME_AXES) eini_spelling_map(k, &s->out_map, 0);
  eini_mark_needed(e, (int)e->n - 1, need);
  x->product = eini_spelling_product(e, mark);
  if (x->product) eini_spelling_factors(k, g, x, mark);
  else eini_spelling_nodes(k, g, x, need);
  return k->st;
}

// ---- forms: statements that differ in names and orders only ----

#define EINI_FORM_WORK (1 << 26)   // half a second, about
#define EINI_FORM_PASSES 64        // over the arcs, in planning: symmetries rarely take more

typedef struct eini_written {   // statements that are written alike, but for names
  eini_sketch k;
  int64_t id;                   // of the first
  int *order;                   // of the vertices, as written, then in the form's order
  int kind, *to;                // the first of one form; its vertices by those here
} eini_written;

// Each way of writing is drawn and ordered once, in the arena, which nobody else may roll back;
// what is found of it lies in `seen`.
typedef struct eini_forms {
  eini_arena *arena, seen;
  int64_t work;                 // of the search, for each; 0: some passes over its arcs
  eini_written *list;
  int64_t n, cap, ordered;      // one alone needs no order
  eini_keys written, kinds;
  int *first;                   // of kinds
  int64_t nkind, capkind;
  int given_up;                 // some took more work: they are of no form but their own
} eini_forms;

static void eini_forms_init(eini_forms *f, eini_arena *a, int64_t work) {
  memset(f, 0, sizeof *f);
  f->arena = a;
  f->work = work;
  eini_arena_init(&f->seen, &a->al);
}

static void eini_forms_free(eini_forms *f) { eini_arena_free(&f->seen); }

// Orders the next of the ways of writing, and finds the first of its form.
static ein_status eini_forms_order(eini_forms *f) {
  eini_written *x = &f->list[f->ordered];
  const eini_arena_at at = eini_arena_mark(f->arena);
  eini_colours g;
  EINI_TRY(eini_sketch_graph(&x->k, &g));
  int64_t *key = EINI_NEW(f->arena, int64_t, eini_sketch_size(&x->k));
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  const int64_t passes = EINI_FORM_PASSES * (x->k.n + 2 * x->k.narc);
  const ein_status st = eini_labelling(f->arena, &g, f->work > 0 ? f->work : passes, x->order);
  if (st != EIN_OK && st != EIN_ERR_TOO_LARGE) return st;
  for (int v = 0; v < x->k.n && st != EIN_OK; v++) x->order[v] = v;
  f->given_up |= st != EIN_OK;
  EINI_TRY(eini_sketch_say(&x->k, x->order, key));
  const int64_t kind = eini_key_number(&f->seen, &f->kinds, key, eini_sketch_size(&x->k));
  int *first = (int *)eini_grow(&f->seen, f->first, f->nkind, &f->capkind, sizeof *first);
  if (kind < 0 || first == NULL) return EIN_ERR_NO_MEMORY;
  f->first = first;
  if (kind == f->nkind) first[f->nkind++] = (int)f->ordered;
  x->kind = first[kind];
  for (int v = 0; v < x->k.n; v++) x->to[x->order[v]] = f->list[x->kind].order[v];
  eini_arena_rollback(f->arena, &at);
  f->ordered++;
  return EIN_OK;
}

// The number among the ways of writing of what was drawn in the arena since `at`: that is kept
// only if it is a new one.
static ein_status eini_forms_add(eini_forms *f, const eini_sketch *k, const eini_arena_at *at,
                                 int64_t id, int *number) {
  eini_written *p = (eini_written *)eini_grow(&f->seen, f->list, f->n, &f->cap, sizeof *p);
  int *order = EINI_NEW(f->arena, int, k->n), *to = EINI_NEW(f->arena, int, k->n);
  const eini_arena_at mark = eini_arena_mark(f->arena);
  int64_t *key = EINI_NEW(f->arena, int64_t, eini_sketch_size(k)), at_key = 0;
  if (k->st != EIN_OK) return k->st;
  if (p == NULL || order == NULL || to == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  for (int v = 0; v < k->n; v++) order[v] = to[v] = v;
  key[at_key++] = k->n;
  for (int64_t v = 0; v < k->n; v++) key[at_key++] = k->end[v];
  for (int64_t w = 0; w < k->nword; w++) key[at_key++] = k->word[w];
  for (int64_t e = 0; e < k->narc; e++) {
    const eini_arc *x = &k->arc[e];
    key[at_key++] = x->from, key[at_key++] = x->to, key[at_key++] = x->what;
    key[at_key++] = x->by;
  }
  f->list = p;
  *number = (int)eini_key_number(&f->seen, &f->written, key, at_key);
  if (*number < 0) return EIN_ERR_NO_MEMORY;
  eini_arena_rollback(f->arena, *number < f->n ? at : &mark);
  if (*number < f->n) return EIN_OK;
  p = &p[f->n++];
  p->k = *k;
  p->id = id;
  p->order = order;
  p->to = to;
  p->kind = *number;
  while (f->n > 1 && f->ordered < f->n) EINI_TRY(eini_forms_order(f));
  return EIN_OK;
}

// What a statement is in the statement that was first of its form.
typedef struct eini_match {
  int64_t first;                // the id it came with: the statement's own if it is the first
  int same, nindex;             // 1: both are written alike
  const int *to;
} eini_match;

static int eini_match_index(const eini_match *m, int c) { return m->to[1 + c] - 1; }

static int eini_match_operand(const eini_match *m, int k) {
  return m->to[1 + m->nindex + k] - 1 - m->nindex;
}

// The first statement of a form, of those that were looked for.
EINI_UNUSED static ein_status eini_forms_find(eini_forms *f, const ein_graph *g,
                                              const eini_stmt *s, const eini_besides *b,
                                              int64_t id, eini_match *m) {
  const eini_arena_at at = eini_arena_mark(f->arena);
  eini_spelling x;
  eini_sketch k;
  int number;
  memset(&k, 0, sizeof k);
  k.arena = f->arena;
  EINI_TRY(eini_spelling_new(f->arena, s, b, &x));
  EINI_TRY(eini_spelling_draw(&k, g, &x));
  EINI_TRY(eini_forms_add(f, &k, &at, id, &number));
  const eini_written *w = &f->list[number];
  m->first = f->list[w->kind].id;
  m->same = w->kind == number;
  m->nindex = s->nindex;
  m->to = w->to;
  return EIN_OK;
}

// A statement in the words of another of its form: the same indices and operands, in its order.
// index: where those of s are.
EINI_UNUSED static ein_status eini_stmt_respell(eini_arena *a, const eini_stmt *s,
                                                const eini_stmt *as, const eini_match *m,
                                                eini_stmt **to, const int **index) {
  eini_stmt *t = EINI_NEW(a, eini_stmt, 1);
  int *at = EINI_NEW(a, int, s->nindex);
  *to = t;
  *index = at;
  if (t == NULL || at == NULL) return EIN_ERR_NO_MEMORY;
  *t = *s;
  t->index = EINI_NEW(a, eini_index, s->nindex);
  t->operand = EINI_NEW(a, int, s->noperand);
  t->proj = EINI_NEW(a, eini_map, s->noperand);
  if (t->index == NULL || t->operand == NULL || t->proj == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < s->nindex; c++) t->index[at[c] = eini_match_index(m, c)] = s->index[c];
  EINI_TRY(eini_map_new(a, s->out_map.rows, s->nindex, &t->out_map));
  EINI_TRY(eini_map_copy(a, &t->out_map, &s->out_map, at));
  for (int k = 0; k < s->noperand; k++) {
    const int o = eini_match_operand(m, k);
    t->operand[o] = s->operand[k];
    EINI_TRY(eini_map_new(a, s->proj[k].rows, s->nindex, &t->proj[o]));
    EINI_TRY(eini_map_copy(a, &t->proj[o], &s->proj[k], at));
  }
  t->expr = as->expr;
  return EIN_OK;
}
