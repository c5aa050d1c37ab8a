// ================================================================================================
// >>canon  statements as coloured graphs
// Takes a statement; gives the graph that says what it computes without names and orders, and the
// first statement of the same form, with what is what in it. After Kulkarni and Kloeckner,
// Canonicalization of batched Einstein summations, section 5.
// ================================================================================================

// A statement has a vertex for the result, for each index (coloured by its extent), for each time
// an operand is read, for each param and operation of the expression, joined by coordinates and
// arguments. In the graph of a batch each row has a vertex, and one for each operand and param of
// it, joined to that of the statement and to the tensor that is read. A statement that stands alone
// has a vertex for each operand, and for each tensor that several of them read. Sizes without a
// number have vertices, too, and so has each extent that is a sum of them.

// ---- what vertices are ----

enum {                    // what of statements counts
  EINI_SAME_VALUES = 1,   // literals and params
  EINI_SAME_EXTENTS = 2,  // all that they run over; else they run over blocks of one shape
  EINI_SAME_AXES = 4,     // the order of the result's axes
  EINI_SAME_ALONE = 8,    // statements stand alone: operands have vertices, and params numbers
  EINI_SAME_OFFSETS = 16, // those of coordinates, where extents do not count
  EINI_SAME_TENSORS = 32  // alone: which operands read one tensor
};

// What else counts of the indices and operands of a statement that stands alone.
typedef struct eini_besides {
  int what;                        // EINI_SAME_*
  int nindex, noperand;            // words for each of them; a result is an operand, the last
  const int64_t *index, *operand;
} eini_besides;

static void eini_sketch_besides(eini_sketch *k, const int64_t *word, int n, int i) {
  if (n > 0) eini_sketch_words(k, word + (int64_t)i * n, n);
}

static void eini_sketch_tensor(eini_sketch *k, int kind, const eini_tensor *t, int shape) {
  eini_sketch_word(k, kind);
  eini_sketch_word(k, t->dtype);
  eini_sketch_word(k, t->rank);
  if (shape) eini_sketch_numbers(k, t->shape, t->rank);
}

static void eini_sketch_node(eini_sketch *k, const ein_graph *g, const eini_node *v, int values) {
  eini_sketch_word(k, EINI_C_NODE);
  eini_sketch_word(k, v->op);
  eini_sketch_word(k, v->dtype);
  if (v->op == EIN_OP_CALL) eini_sketch_text(k, g->function[v->arg[0]].name);
  if (v->op != EIN_OP_CONST || !values) return;
  eini_sketch_word(k, v->exact);
  eini_sketch_number(k, v->ival);
  eini_sketch_real(k, v->exact && eini_symbols_open(k->symbols, v->ival) != NULL ? 0 : v->re);
  eini_sketch_real(k, v->im);
}

// Folds whose result depends on which reduced index comes first: positions, and what users do.
static int eini_fold_orders(int fold) {
  return eini_fold_counts(fold) || fold >= EIN_FOLD_BLOCK;
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
  if (x->b->what & (EINI_SAME_EXTENTS | EINI_SAME_OFFSETS))
    eini_sketch_numbers(k, m->offset, m->rows);
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

static int eini_operand_order(const void *operand, int a, int b) {
  const int *x = (const int *)operand;
  return (x[a] > x[b]) - (x[a] < x[b]);
}

// The vertices of tensors that several operands read.
static ein_status eini_spelling_shared(eini_arena *a, eini_sketch *k, const eini_stmt *s) {
  const int n = s->noperand;
  int *list = EINI_NEW(a, int, 2 * (int64_t)n);
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  for (int o = 0; o < n; o++) list[o] = o;
  eini_merge_sort(list, list + n, n, s->operand, eini_operand_order);
  for (int from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && s->operand[list[to]] == s->operand[list[from]];) to++;
    if (to == from + 1) continue;
    eini_sketch_word(k, EINI_C_TENSOR);
    const int shared = eini_sketch_vertex(k);
    for (int i = from; i < to; i++)
      eini_sketch_arc(k, shared, 1 + s->nindex + list[i], EINI_C_READS, 0);
  }
  return EIN_OK;
}

// The vertices of the operands of a statement that stands alone.
static ein_status eini_spelling_operands(eini_arena *a, eini_sketch *k, const ein_graph *g,
                                         const eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_besides *b = x->b;
  for (int o = 0; o < s->noperand; o++) {
    eini_spelling_tensor(k, g, x, o);
    eini_sketch_besides(k, b->operand, b->noperand, o);
    eini_spelling_map(k, &s->proj[o], eini_sketch_vertex(k));
  }
  return b->what & EINI_SAME_TENSORS ? eini_spelling_shared(a, k, s) : EIN_OK;
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

// Draws a statement, as it is written. a: for scratch.
static ein_status eini_spelling_draw(eini_arena *a, eini_sketch *k, const ein_graph *g,
                                     eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_besides *b = x->b;
  const eini_expr *e = &s->expr;
  char *mark = EINI_NEW(a, char, e->n), *need = EINI_NEW(a, char, e->n);
  if (mark == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  x->nplace = x->nparam = 0;
  eini_spelling_result(k, g, x);
  for (int c = 0; c < s->nindex; c++) {
    eini_sketch_word(k, EINI_C_INDEX);
    if (b->what & EINI_SAME_EXTENTS) eini_sketch_number(k, s->index[c].extent);
    eini_sketch_word(k, c < s->nfree);
    eini_sketch_word(k, c >= s->nfree && eini_fold_orders(s->fold) ? c - s->nfree + 1 : 0);
    eini_sketch_besides(k, b->index, b->nindex, c);
    eini_sketch_vertex(k);
  }
  if (b->what & EINI_SAME_ALONE) EINI_TRY(eini_spelling_operands(a, k, g, x));
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
  int *order;                   // of the vertices, in the form's order
  int ordered;
  int kind, *to;                // the first of one form; its vertices by those here
} eini_written;

// Words are compared in full: no statement is taken for another because hashes are equal.
// Each way of writing is kept once, and ordered once there are others that may have its form.
typedef struct eini_forms {
  eini_arena *arena, seen;      // of what is drawn, as it is written; of what is found of it
  int64_t work;                 // of the search, for each; 0: some passes over its arcs
  eini_sketch draft;
  int64_t *key, capkey;         // scratch
  eini_written *list;
  int64_t n, cap;
  eini_keys written, looks, kinds;
  int *look, *first;            // the first that looks so, and that is of a kind
  int64_t caplook, capfirst;
  int given_up;                 // some took more work: they are of no form but their own
} eini_forms;

EINI_UNUSED static void eini_forms_init(eini_forms *f, eini_arena *a, int64_t work) {
  memset(f, 0, sizeof *f);
  f->arena = a;
  f->work = work;
  eini_arena_init(&f->seen, &a->al);
}

EINI_UNUSED static void eini_forms_free(eini_forms *f) { eini_arena_free(&f->seen); }

// An empty sketch, to draw the next statement in.
static eini_sketch *eini_forms_draft(eini_forms *f) {
  eini_sketch *k = &f->draft;
  k->arena = &f->seen;
  k->nword = k->n = k->narc = 0;
  k->st = EIN_OK;
  return k;
}

// Room for a key of n words; NULL: out of memory.
static int64_t *eini_forms_key(eini_forms *f, int64_t n) {
  while (f->capkey < n) {
    int64_t *p = (int64_t *)eini_grow(&f->seen, f->key, f->capkey, &f->capkey, sizeof *p);
    if (p == NULL) return NULL;
    f->key = p;
  }
  return f->key;
}

// The number of a key among others; list: who came first with it, which may be this one.
static ein_status eini_forms_number(eini_forms *f, eini_keys *t, const int64_t *key, int64_t n,
                                    int **list, int64_t *cap, int *who) {
  const int64_t known = t->n, i = eini_key_number(&f->seen, t, key, n);
  int *p = i < known ? *list : (int *)eini_grow(&f->seen, *list, known, cap, sizeof *p);
  if (i < 0 || p == NULL) return EIN_ERR_NO_MEMORY;
  *list = p;
  if (i == known) p[i] = *who;
  *who = p[i];
  return EIN_OK;
}

// Orders a way of writing, and finds the first of its form.
static ein_status eini_forms_order(eini_forms *f, int number) {
  eini_written *x = &f->list[number];
  const int64_t size = eini_sketch_size(&x->k), n = x->k.n;
  const int64_t passes = EINI_FORM_PASSES * (n + 2 * x->k.narc);
  int64_t *key = eini_forms_key(f, size);
  if (x->ordered) return EIN_OK;
  if ((x->order = EINI_NEW(f->arena, int, n)) == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  const eini_arena_at at = eini_arena_mark(f->arena);
  eini_colours g;
  EINI_TRY(eini_sketch_graph(&x->k, &g));
  const ein_status st = eini_labelling(f->arena, &g, f->work > 0 ? f->work : passes, x->order);
  if (st != EIN_OK && st != EIN_ERR_TOO_LARGE) return st;
  for (int v = 0; v < n && st != EIN_OK; v++) x->order[v] = v;
  f->given_up |= st != EIN_OK;
  EINI_TRY(eini_sketch_say(&x->k, x->order, key));
  x->kind = number;
  EINI_TRY(eini_forms_number(f, &f->kinds, key, size, &f->first, &f->capfirst, &x->kind));
  for (int v = 0; v < n; v++) x->to[x->order[v]] = f->list[x->kind].order[v];
  eini_arena_rollback(f->arena, &at);
  x->ordered = 1;
  return EIN_OK;
}

// What any order of a sketch has alike.
static ein_status eini_sketch_looks(eini_arena *a, const eini_sketch *k, int64_t *looks) {
  const eini_arena_at at = eini_arena_mark(a);
  uint64_t *colour = EINI_NEW(a, uint64_t, k->n), sum = 0;
  if (colour == NULL) return EIN_ERR_NO_MEMORY;
  eini_sketch_colours(k, colour);
  for (int64_t v = 0; v < k->n; v++) sum += eini_mix(colour[v], 1);
  for (int64_t e = 0; e < k->narc; e++) {
    const eini_arc *x = &k->arc[e];
    sum += eini_mix(eini_mix(colour[x->from], eini_arc_label(x)), colour[x->to]);
  }
  eini_arena_rollback(a, &at);
  memcpy(looks, &sum, sizeof *looks);
  return EIN_OK;
}

// The draft was written for the first time.
static ein_status eini_forms_new(eini_forms *f, int64_t id) {
  const eini_sketch *k = &f->draft;
  eini_written *p = (eini_written *)eini_grow(&f->seen, f->list, f->n, &f->cap, sizeof *p);
  int look = (int)f->n;
  int64_t looks;
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  f->list = p;
  memset(p += f->n, 0, sizeof *p);
  p->k = *k;
  p->k.arena = f->arena;
  p->k.word = EINI_NEW(f->arena, int64_t, k->nword);
  p->k.end = EINI_NEW(f->arena, int64_t, k->n);
  p->k.arc = EINI_NEW(f->arena, eini_arc, k->narc);
  p->to = EINI_NEW(f->arena, int, k->n);
  if (p->k.word == NULL || p->k.end == NULL || p->k.arc == NULL || p->to == NULL)
    return EIN_ERR_NO_MEMORY;
  memcpy(p->k.word, k->word, (size_t)k->nword * sizeof *k->word);
  memcpy(p->k.end, k->end, (size_t)k->n * sizeof *k->end);
  if (k->narc > 0) memcpy(p->k.arc, k->arc, (size_t)k->narc * sizeof *k->arc);
  for (int v = 0; v < k->n; v++) p->to[v] = v;
  p->id = id;
  p->kind = (int)f->n++;
  EINI_TRY(eini_sketch_looks(f->arena, k, &looks));
  EINI_TRY(eini_forms_number(f, &f->looks, &looks, 1, &f->look, &f->caplook, &look));
  if (look == p->kind) return EIN_OK;
  EINI_TRY(eini_forms_order(f, look));
  return eini_forms_order(f, (int)f->n - 1);
}

// The number of the draft among the ways of writing.
static ein_status eini_forms_add(eini_forms *f, int64_t id, int *number) {
  const eini_sketch *k = &f->draft;
  int64_t *key = eini_forms_key(f, eini_sketch_size(k)), n = 0;
  const int64_t known = f->written.n;
  if (k->st != EIN_OK) return k->st;
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  key[n++] = k->n;
  for (int64_t v = 0; v < k->n; v++) key[n++] = k->end[v];
  for (int64_t w = 0; w < k->nword; w++) key[n++] = k->word[w];
  for (int64_t e = 0; e < k->narc; e++) {
    const eini_arc *x = &k->arc[e];
    key[n++] = (int64_t)x->from << 32 | x->to;
    key[n++] = x->what;
    key[n++] = x->by;
  }
  *number = (int)eini_key_number(&f->seen, &f->written, key, n);
  if (*number < 0) return EIN_ERR_NO_MEMORY;
  return *number < known ? EIN_OK : eini_forms_new(f, id);
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
  eini_sketch *k = eini_forms_draft(f);
  eini_spelling x;
  int number;
  EINI_TRY(eini_spelling_new(f->arena, s, b, &x));
  EINI_TRY(eini_spelling_draw(f->arena, k, g, &x));
  eini_arena_rollback(f->arena, &at);
  EINI_TRY(eini_forms_add(f, id, &number));
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
