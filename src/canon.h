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
  uint64_t label;
} eini_arc;

typedef struct eini_sketch {  // a graph as it is drawn
  eini_arena *arena;
  uint64_t *colour;
  int64_t n, cap;
  eini_arc *arc;
  int64_t narc, caparc;
  ein_status st;             // the first failure
} eini_sketch;

static int eini_sketch_vertex(eini_sketch *k, uint64_t colour) {
  uint64_t *p = (uint64_t *)eini_grow(k->arena, k->colour, k->n, &k->cap, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  else if (k->n >= INT_MAX / 8) k->st = EIN_ERR_TOO_LARGE;
  if (k->st != EIN_OK) return 0;
  k->colour = p;
  p[k->n] = colour;
  return (int)k->n++;
}

static void eini_sketch_arc(eini_sketch *k, int from, int to, uint64_t label) {
  eini_arc *p = (eini_arc *)eini_grow(k->arena, k->arc, k->narc, &k->caparc, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  if (k->st != EIN_OK) return;
  k->arc = p;
  p = &k->arc[k->narc++];
  p->from = from;
  p->to = to;
  p->label = label;
}

// The graph; several arcs from one vertex to another are one.
EINI_UNUSED static ein_status eini_sketch_graph(const eini_sketch *k, eini_colours *g) {
  int64_t *at = EINI_NEW(k->arena, int64_t, k->n);
  g->n = (int)k->n;
  g->colour = k->colour;
  g->first = EINI_NEW(k->arena, int64_t, k->n + 1);
  g->half = EINI_NEW(k->arena, eini_link, 2 * k->narc);
  if (k->st != EIN_OK) return k->st;
  if (at == NULL || g->first == NULL || g->half == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t e = 0; e < k->narc; e++) {
    g->first[k->arc[e].from + 1]++;
    g->first[k->arc[e].to + 1]++;
  }
  for (int64_t v = 0; v < k->n; v++) at[v] = g->first[v + 1] += g->first[v];
  for (int64_t e = k->narc - 1; e >= 0; e--) {
    const eini_arc *x = &k->arc[e];
    eini_link *out = &g->half[--at[x->from]], *in = &g->half[--at[x->to]];
    out->to = x->to;
    out->key = eini_mix(x->label, 1);
    in->to = x->from;
    in->key = eini_mix(x->label, 2);
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

// ---- colours: words that say all that counts, the same on all machines ----

static uint64_t eini_mix_text(uint64_t h, const char *s) {
  for (; *s != 0; s++) h = eini_mix(h, (unsigned char)*s);
  return h;
}

static uint64_t eini_mix_real(uint64_t h, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return eini_mix(h, bits);
}

static uint64_t eini_tensor_colour(int kind, const eini_tensor *t) {
  uint64_t h = eini_mix(eini_mix((uint64_t)kind, (uint64_t)t->dtype), (uint64_t)t->rank);
  for (int r = 0; r < t->rank; r++) h = eini_mix(h, (uint64_t)t->shape[r]);
  return h;
}

static uint64_t eini_map_colour(uint64_t h, const eini_map *m) {
  for (int r = 0; r < m->rows; r++)
    if (m->offset[r] != 0) h = eini_mix(eini_mix(h, (uint64_t)r), (uint64_t)m->offset[r]);
  return h;
}

static uint64_t eini_node_colour(const ein_graph *g, const eini_node *v) {
  uint64_t h = eini_mix(eini_mix(EINI_C_NODE, v->op), v->dtype);
  if (v->op == EIN_OP_CALL) return eini_mix_text(h, g->function[v->arg[0]].name);
  if (v->op != EIN_OP_CONST) return h;
  h = eini_mix(eini_mix(h, v->exact), (uint64_t)v->ival);
  return eini_mix_real(eini_mix_real(h, v->re), v->im);
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

// How a statement is written: vertex 0 is its result, then its indices, then these.
typedef struct eini_spelling {
  const eini_stmt *s;
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

static void eini_spelling_map(eini_sketch *k, const eini_map *m, int vertex) {
  for (int r = 0; r < m->rows; r++)
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      eini_sketch_arc(k, vertex, 1 + m->term[e].index, eini_mix(eini_mix(
                      EINI_C_COORDINATE, (uint64_t)r), (uint64_t)m->term[e].coef));
}

// The vertex of an operand, read there, that conversions and conjugations in h were done to.
static int eini_spelling_place(eini_sketch *k, const ein_graph *g, eini_spelling *x, int operand,
                               int node, int arg, uint64_t h) {
  const eini_map *m = &x->s->proj[operand];
  eini_place *p = &x->place[x->nplace++];
  h = eini_mix(h, eini_tensor_colour(EINI_C_OPERAND, &g->tensor[x->s->operand[operand]]));
  p->operand = operand;
  p->node = node;
  p->arg = arg;
  p->vertex = eini_sketch_vertex(k, eini_map_colour(h, m));
  eini_spelling_map(k, m, p->vertex);
  return p->vertex;
}

static void eini_spelling_factors(eini_sketch *k, const ein_graph *g, eini_spelling *x,
                                  const char *mark) {
  const eini_expr *e = &x->s->expr;
  for (int i = 0; i < e->n; i++) {
    for (int a = 0; mark[i] && a < 2; a++) {
      const int to = e->node[i].arg[a];
      const eini_node *leaf = &e->node[to];
      uint64_t h = 0;
      if (mark[to]) continue;
      for (; leaf->op != EIN_OP_OPERAND; leaf = &e->node[leaf->arg[0]])
        h = eini_mix(h, eini_node_colour(g, leaf));
      eini_sketch_arc(k, 0, eini_spelling_place(k, g, x, leaf->arg[0], i, a, h),
                      eini_mix(EINI_C_ROOT, e->node[i].dtype));
    }
  }
}

static void eini_spelling_nodes(eini_sketch *k, const ein_graph *g, eini_spelling *x,
                                const char *need) {
  const eini_expr *e = &x->s->expr;
  for (int i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    int p = 0;
    if (!need[i] || v->op == EIN_OP_OPERAND) continue;
    if (v->op == EIN_OP_INDEX) {
      x->vertex[i] = 1 + v->arg[0];
    } else if (v->op == EIN_OP_PARAM) {
      while (p < x->nparam && x->param[p] != v->arg[0]) p++;
      if (p == x->nparam) {
        x->param[x->nparam++] = v->arg[0];
        x->pvertex[p] = eini_sketch_vertex(
            k, eini_mix(EINI_C_PARAM, (uint64_t)g->param[v->arg[0]].dtype));
      }
      x->vertex[i] = x->pvertex[p];
    } else {
      x->vertex[i] = eini_sketch_vertex(k, eini_node_colour(g, v));
    }
    for (int a = 0; a < eini_node_args(v); a++) {
      const eini_node *kid = &e->node[eini_node_arg(e, v, a)];
      const int to = kid->op == EIN_OP_OPERAND
                         ? eini_spelling_place(k, g, x, kid->arg[0], i, a, 0)
                         : x->vertex[eini_node_arg(e, v, a)];
      eini_sketch_arc(k, x->vertex[i], to,
                      eini_mix(EINI_C_ARGUMENT, eini_op_commutes(v->op) ? 0 : (uint64_t)a + 1));
    }
  }
  const eini_node *root = &e->node[e->n - 1];
  eini_sketch_arc(k, 0, root->op == EIN_OP_OPERAND
                            ? eini_spelling_place(k, g, x, root->arg[0], -1, 0, 0)
                            : x->vertex[e->n - 1], EINI_C_ROOT);
}

EINI_UNUSED static ein_status eini_spelling_new(eini_arena *a, const eini_stmt *s,
                                                 eini_spelling *x) {
  const eini_expr *e = &s->expr;
  int64_t reads = 1, n = e->n;
  for (int64_t i = 0; i < n; i++) reads += eini_node_args(&e->node[i]);
  memset(x, 0, sizeof *x);
  x->s = s;
  x->place = EINI_NEW(a, eini_place, reads);
  x->vertex = EINI_NEW(a, int, 3 * n);
  if (x->place == NULL || x->vertex == NULL) return EIN_ERR_NO_MEMORY;
  x->param = x->vertex + n;
  x->pvertex = x->vertex + 2 * n;
  return EIN_OK;
}

// Draws a statement, as it is written.
EINI_UNUSED static ein_status eini_spelling_draw(eini_sketch *k, const ein_graph *g,
                                                  eini_spelling *x) {
  const eini_stmt *s = x->s;
  const eini_expr *e = &s->expr;
  uint64_t h = eini_tensor_colour(EINI_C_RESULT, &g->tensor[s->out]);
  char *mark = EINI_NEW(k->arena, char, e->n), *need = EINI_NEW(k->arena, char, e->n);
  if (mark == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  x->nplace = x->nparam = 0;
  h = eini_mix(eini_mix(h, (uint64_t)s->rest), (uint64_t)s->numpy);
  h = eini_mix_text(eini_mix(h, (uint64_t)s->type), eini_fold_name(g, s->fold));
  eini_sketch_vertex(k, eini_map_colour(h, &s->out_map));
  for (int c = 0; c < s->nindex; c++) {
    const int counts = c >= s->nfree && eini_fold_orders(s->fold) ? c - s->nfree + 1 : 0;
    h = eini_mix(eini_mix(EINI_C_INDEX, (uint64_t)s->index[c].extent), c < s->nfree);
    eini_sketch_vertex(k, eini_mix(h, (uint64_t)counts));
  }
  eini_spelling_map(k, &s->out_map, 0);
  eini_mark_needed(e, (int)e->n - 1, need);
  x->product = eini_spelling_product(e, mark);
  if (x->product) eini_spelling_factors(k, g, x, mark);
  else eini_spelling_nodes(k, g, x, need);
  return k->st;
}
