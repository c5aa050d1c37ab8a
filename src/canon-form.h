// ================================================================================================
// >>canon-form  batches of statements, and their form as a graph
// Takes statements as they are written; gives groups of rows, a graph in which they stand in the
// form's order under the form's names, and what every name was.
// ================================================================================================

typedef struct eini_canon_row {  // a statement of the source
  eini_spelling x;
  int written;
  int64_t depth;                 // longest chain of statements that it waits for
  int64_t next;                  // of its group, -1: the last one
} eini_canon_row;

typedef struct eini_canon_group {
  int kind;                      // the first that is written in its form
  int64_t first, last, n;        // rows
  int64_t *row;                  // in order
  uint64_t *rank, *size;         // of the vertices of the statement; of sizes left open
  char *text;
} eini_canon_group;

struct ein_canon {
  eini_arena arena;
  const ein_graph *source;       // while it is made
  ein_graph *graph;              // the form
  int64_t ngroup, ntensor;       // tensors that are in the source
  int64_t *tensor, *param;       // of the form: number in the source
  eini_canon_sizes sizes;
  ein_canon_stmt *stmt;          // of the form
  // while it is made
  eini_canon_row *row;
  eini_forms forms;
  eini_canon_group *group;
};

// ---- statements, as written and by form ----

static const eini_besides eini_in_batches = {
  EINI_SAME_VALUES | EINI_SAME_EXTENTS | EINI_SAME_AXES, 0, 0, NULL, NULL};

// How statements are written.
static ein_status eini_canon_read(ein_canon *c) {
  const ein_graph *g = c->source;
  for (int64_t i = 0; i < g->nstmt; i++) {
    eini_canon_row *r = &c->row[i];
    EINI_TRY(eini_spelling_new(&c->arena, &g->stmt[i], &eini_in_batches, &r->x));
    EINI_TRY(eini_spelling_draw(&c->arena, eini_forms_draft(&c->forms), g, &r->x));
    EINI_TRY(eini_forms_add(&c->forms, i, &r->written));
    if (c->forms.given_up) return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

// ---- groups ----

// Statements of one form that wait for as many others.
static ein_status eini_canon_groups(ein_canon *c) {
  const ein_graph *g = c->source;
  int64_t *depth = EINI_NEW(&c->arena, int64_t, g->ntensor);
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  if (depth == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    eini_canon_row *r = &c->row[i];
    for (int k = 0; k < s->noperand; k++) r->depth = eini_max64(r->depth, depth[s->operand[k]]);
    depth[s->out] = eini_max64(depth[s->out], r->depth + 1);
    const int64_t key[2] = {c->forms.list[r->written].kind, r->depth};
    const int64_t j = eini_key_number(&c->forms.seen, &seen, key, 2);
    if (j < 0) return EIN_ERR_NO_MEMORY;
    eini_canon_group *x = &c->group[j];
    if (j == c->ngroup) {
      c->ngroup++;
      x->kind = (int)key[0];
      x->first = x->last = -1;
    }
    if (x->last >= 0) c->row[x->last].next = i;
    else x->first = i;
    x->last = i;
    r->next = -1;
    x->n++;
  }
  return EIN_OK;
}

// The vertex of what a row reads or makes.
static int eini_canon_tensor_of(eini_sketch *k, const ein_graph *g, int *vertex, int id) {
  if (vertex[id] > 0) return vertex[id] - 1;
  eini_sketch_tensor(k, EINI_C_TENSOR, &g->tensor[id], 1);
  vertex[id] = eini_sketch_vertex(k) + 1;
  return vertex[id] - 1;
}

static int eini_canon_param_of(eini_sketch *k, const ein_graph *g, int *vertex, int id) {
  const eini_param *p = &g->param[id];
  if (vertex[id] > 0) return vertex[id] - 1;
  eini_sketch_word(k, EINI_C_SCALAR);
  eini_sketch_word(k, p->dtype);
  eini_sketch_word(k, p->value.set);
  eini_sketch_real(k, p->value.re);
  eini_sketch_real(k, p->value.im);
  vertex[id] = eini_sketch_vertex(k) + 1;
  return vertex[id] - 1;
}

// Draws a group: what it computes, then row by row. row, size: the vertices of rows and sizes.
static ein_status eini_canon_draw(ein_canon *c, const eini_canon_group *x, eini_sketch *k,
                                  int *row, int *size) {
  const ein_graph *g = c->source;
  int *tensor = EINI_NEW(k->arena, int, g->ntensor), *param = EINI_NEW(k->arena, int, g->nparam);
  if (tensor == NULL || param == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_spelling_draw(k->arena, k, g, &c->row[c->forms.list[x->kind].id].x));
  int n = 0;
  for (int64_t i = x->first; i >= 0; i = c->row[i].next) {
    const eini_stmt *s = &g->stmt[i];
    const eini_spelling *w = &c->row[i].x;
    const int *to = c->forms.list[c->row[i].written].to;
    eini_sketch_word(k, EINI_C_ROW);
    const int r = row[n++] = eini_sketch_vertex(k);
    eini_sketch_arc(k, r, eini_canon_tensor_of(k, g, tensor, s->out), EINI_C_MAKES, 0);
    for (int p = 0; p < w->nplace + w->nparam; p++) {
      const int id = p < w->nplace ? s->operand[w->place[p].operand] : w->param[p - w->nplace];
      const int of = p < w->nplace ? w->place[p].vertex : w->pvertex[p - w->nplace];
      const int what = p < w->nplace ? eini_canon_tensor_of(k, g, tensor, id)
                                     : eini_canon_param_of(k, g, param, id);
      eini_sketch_word(k, EINI_C_ACCESS);
      const int a = eini_sketch_vertex(k);
      eini_sketch_arc(k, a, to[of], EINI_C_OF, 0);
      eini_sketch_arc(k, a, r, EINI_C_ROW, 0);
      eini_sketch_arc(k, a, what, EINI_C_READS, 0);
    }
  }
  return k->symbols != NULL && k->st == EIN_OK ? eini_sketch_sizes(k, size) : k->st;
}

// Rows, and what the statement consists of, in the form's order.
static ein_status eini_canon_order(ein_canon *c, eini_canon_group *x, int64_t work) {
  const int n = (int)c->forms.list[x->kind].k.n;
  int *row = EINI_NEW(&c->arena, int, x->n), *number = EINI_NEW(&c->arena, int, x->n);
  eini_sketch k;
  eini_colours g;
  const int nsize = c->source->symbols != NULL ? c->source->symbols->n : 0;
  int *size = EINI_NEW(&c->arena, int, nsize);
  memset(&k, 0, sizeof k);
  k.arena = &c->arena;
  k.symbols = c->source->symbols;
  x->size = EINI_NEW(&c->arena, uint64_t, nsize);
  x->row = EINI_NEW(&c->arena, int64_t, x->n);
  x->rank = EINI_NEW(&c->arena, uint64_t, n);
  if (row == NULL || number == NULL || size == NULL || x->size == NULL || x->row == NULL ||
      x->rank == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_canon_draw(c, x, &k, row, size));
  EINI_TRY(eini_sketch_graph(&k, &g));
  int *order = EINI_NEW(&c->arena, int, g.n), at = 0;
  uint64_t *place = EINI_NEW(&c->arena, uint64_t, g.n), *key = EINI_NEW(&c->arena, uint64_t, x->n);
  if (order == NULL || place == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_labelling(&c->arena, &g, work, order));
  for (int i = 0; i < g.n; i++) place[order[i]] = (uint64_t)i;
  memcpy(x->rank, place, (size_t)n * sizeof *place);
  for (int i = 0; i < nsize; i++) x->size[i] = size[i] > 0 ? place[size[i] - 1] : UINT64_MAX;
  for (int i = 0; i < x->n; i++) number[i] = i, key[i] = place[row[i]];
  eini_sort_by(number, (int)x->n, key);
  for (int64_t i = x->first; i >= 0; i = c->row[i].next) row[at++] = (int)i;
  for (int i = 0; i < x->n; i++) x->row[i] = row[number[i]];
  return EIN_OK;
}

// ---- the form as a graph ----

typedef struct eini_canon_build {
  ein_canon *c;
  ein_graph *g;
  int *tensor, *param;       // of the source: number in the form + 1
  int64_t nread, nmade, nscalar;
  int64_t *from, *scalar;    // of the form: number in the source
  ein_canon_stmt *stmt;
  eini_canon_sizes sizes;
} eini_canon_build;

static ein_status eini_canon_tensor(eini_canon_build *b, int id, int made, int *at) {
  const eini_tensor *t = &b->c->source->tensor[id];
  char name[32];
  if (b->tensor[id] == 0) {
    snprintf(name, sizeof name, "%c%lld", made ? 'Y' : 'A',
             (long long)(made ? b->nmade++ : b->nread++));
    EINI_TRY(eini_graph_add_tensor(b->g, name, (int64_t)strlen(name),
                                   made ? EIN_ROLE_OUTPUT : EIN_ROLE_INPUT, t->dtype, t->rank,
                                   t->shape, at));
    EINI_TRY(eini_canon_numbers(&b->sizes, b->g->tensor[*at].shape, t->rank));
    b->g->tensor[*at].partial = t->partial;
    b->g->tensor[*at].dtype_open = 0;
    b->from[*at] = id;
    b->tensor[id] = *at + 1;
  }
  *at = b->tensor[id] - 1;
  return EIN_OK;
}

// A row as it is in the form: the number that each index and place has there.
typedef struct eini_canon_names {
  const eini_stmt *s;
  const eini_spelling *w;
  const uint64_t *rank;      // of the vertices of w
  int *index, *number;       // new numbers of indices, places
  int *old, *operand, *list; // places by new number, the operands there; room
  int nindex;
} eini_canon_names;

static void eini_canon_index(eini_canon_names *y, int c, int reduced) {
  if (y->index[c] < 0 && (c >= y->s->nfree) == reduced) y->index[c] = y->nindex++;
}

// Indices of a map as they come, those of one coordinate by rank.
static void eini_canon_map(eini_canon_names *y, const eini_map *m, int reduced) {
  for (int r = 0; r < m->rows; r++) {
    int n = 0;
    for (int e = m->first[r]; e < m->first[r + 1]; e++) y->list[n++] = m->term[e].index;
    eini_sort_by(y->list, n, y->rank + 1);
    for (int i = 0; i < n; i++) eini_canon_index(y, y->list[i], reduced);
  }
}

static ein_status eini_canon_number(ein_canon *c, const eini_canon_group *x, int64_t row,
                                    eini_canon_names *y) {
  const eini_spelling *w = &c->row[row].x;
  const eini_written *as = &c->forms.list[c->row[row].written];
  const eini_stmt *s = w->s;
  const int nplace = w->nplace, n = (int)as->k.n;
  uint64_t *rank = EINI_NEW(&c->arena, uint64_t, n + nplace), *key = rank + n;
  memset(y, 0, sizeof *y);
  y->s = s;
  y->w = w;
  y->rank = rank;
  y->index = EINI_NEW(&c->arena, int, 2 * s->nindex + 3 * nplace);
  if (rank == NULL || y->index == NULL) return EIN_ERR_NO_MEMORY;
  y->list = y->index + s->nindex;
  y->number = y->list + s->nindex;
  y->old = y->number + nplace;
  y->operand = y->old + nplace;
  for (int v = 0; v < n; v++) rank[v] = x->rank[as->to[v]];
  for (int i = 0; i < nplace; i++) y->old[i] = i, key[i] = rank[w->place[i].vertex];
  eini_sort_by(y->old, nplace, key);
  for (int i = 0; i < nplace; i++) {
    y->number[y->old[i]] = i;
    y->operand[i] = w->place[y->old[i]].operand;
  }
  for (int i = 0; i < s->nindex; i++) y->index[i] = -1;
  for (int reduced = 0; reduced < 2; reduced++) {
    for (int i = s->nfree; reduced && eini_fold_orders(s->fold) && i < s->nindex; i++)
      eini_canon_index(y, i, 1);
    eini_canon_map(y, &s->out_map, reduced);
    for (int i = 0; i < nplace; i++) eini_canon_map(y, &s->proj[y->operand[i]], reduced);
    int more = 0;  // the rest, which only the expression reads or nobody
    for (int i = 0; i < s->nindex; i++) y->list[more++] = i;
    eini_sort_by(y->list, more, rank + 1);
    for (int i = 0; i < more; i++) eini_canon_index(y, y->list[i], reduced);
  }
  return EIN_OK;
}

// What an operation reads, as argument a: an operand by its place's number, or what was made of it.
static int eini_canon_leaf(eini_canon_build *b, const eini_canon_names *y, int place,
                           eini_expr *to) {
  const eini_place *p = &y->w->place[place];
  const eini_expr *e = &y->s->expr;
  int id = p->node < 0 ? (int)e->n - 1 : eini_node_arg(e, &e->node[p->node], p->arg), first = id;
  while (e->node[id].op != EIN_OP_OPERAND) id = e->node[id].arg[0];
  int last = eini_expr_add(&b->g->arena, to, EIN_OP_OPERAND, -1, y->number[place], 0, 0);
  if (last >= 0) to->node[last].dtype = e->node[id].dtype;
  while (last >= 0 && id != first) {  // what is done to a factor, from the inside
    int up = first;
    while (e->node[up].arg[0] != id) up = e->node[up].arg[0];
    const int made = eini_expr_add(&b->g->arena, to, e->node[up].op, -1, last, 0, 0);
    if (made >= 0) to->node[made] = e->node[up], to->node[made].arg[0] = last;
    last = made;
    id = up;
  }
  return last;
}

// A node with its children in the form; arguments that commute by rank. *place counts.
static int eini_canon_node(eini_canon_build *b, const eini_canon_names *y, int i, const int *map,
                           int *place, eini_expr *to) {
  const eini_expr *e = &y->s->expr;
  const eini_node *v = &e->node[i];
  const int n = eini_node_args(v);
  int arg[EINI_ARGS_MAX] = {0}, made;
  uint64_t rank[EINI_ARGS_MAX] = {0};
  for (int a = 0; a < n; a++) {
    const int kid = eini_node_arg(e, v, a), leaf = e->node[kid].op == EIN_OP_OPERAND;
    rank[a] = y->rank[leaf ? y->w->place[*place].vertex : y->w->vertex[kid]];
    arg[a] = leaf ? eini_canon_leaf(b, y, (*place)++, to) : map[kid];
    if (arg[a] < 0) return -1;
  }
  if (v->op == EIN_OP_CALL) {
    made = eini_expr_call(&b->g->arena, to, -1, v->arg[0], n, arg);
    if (made >= 0) to->node[made].dtype = v->dtype;
    return made;
  }
  if ((made = eini_expr_add(&b->g->arena, to, v->op, -1, 0, 0, 0)) < 0) return made;
  eini_node *x = &to->node[made];
  const int swap = eini_op_commutes(v->op) && rank[0] > rank[1];
  *x = *v;
  x->pos = -1;
  for (int a = 0; a < n; a++) x->arg[a] = arg[swap ? 1 - a : a];
  if (v->op == EIN_OP_INDEX) x->arg[0] = y->index[v->arg[0]];
  if (v->op == EIN_OP_PARAM) x->arg[0] = b->param[v->arg[0]] - 1;
  return made;
}

static ein_status eini_canon_expr(eini_canon_build *b, const eini_canon_names *y, eini_expr *to) {
  eini_arena *a = &b->c->arena;
  const eini_expr *e = &y->s->expr;
  const int n = (int)e->n;
  int *map = EINI_NEW(a, int, n), place = 0, last = -1;
  char *need = EINI_NEW(a, char, n);
  if (map == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  memset(to, 0, sizeof *to);
  for (int k = 0; y->w->product && k < y->w->nplace; k++) {
    const int leaf = eini_canon_leaf(b, y, y->old[k], to);
    last = k == 0 ? leaf : eini_expr_pair(&b->g->arena, to, EIN_OP_MUL, last, leaf);
    if (leaf < 0 || last < 0) return EIN_ERR_NO_MEMORY;
  }
  if (y->w->product) return EIN_OK;
  eini_mark_needed(e, n - 1, need);
  for (int i = 0; i < n; i++) {
    const int leaf = e->node[i].op == EIN_OP_OPERAND;
    if (!need[i] || (leaf && i < n - 1)) continue;
    map[i] = leaf ? eini_canon_leaf(b, y, place++, to) : eini_canon_node(b, y, i, map, &place, to);
    if (map[i] < 0) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

static ein_status eini_canon_params(eini_canon_build *b, const eini_canon_names *y) {
  const int n = y->w->nparam;
  int *list = EINI_NEW(&b->c->arena, int, n);
  uint64_t *key = EINI_NEW(&b->c->arena, uint64_t, n);
  if (list == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) list[i] = i, key[i] = y->rank[y->w->pvertex[i]];
  eini_sort_by(list, n, key);
  for (int i = 0; i < n; i++) {
    const int id = y->w->param[list[i]];
    const eini_param *p = &b->c->source->param[id];
    char name[32];
    int at;
    if (b->param[id] > 0) continue;
    snprintf(name, sizeof name, "s%lld", (long long)b->nscalar++);
    EINI_TRY(eini_graph_add_param(b->g, name, (int64_t)strlen(name), p->dtype, p->value, &at));
    b->scalar[at] = id;
    b->param[id] = at + 1;
  }
  return EIN_OK;
}

// a, b, .., z, a1, b1, ..
static const char *eini_canon_letter(eini_arena *a, int k) {
  char name[16];
  snprintf(name, sizeof name, k < 26 ? "%c" : "%c%d", 'a' + k % 26, k / 26);
  return eini_strndup(a, name, (int64_t)strlen(name));
}

static ein_status eini_canon_statement(eini_canon_build *b, const eini_canon_group *x, int64_t row,
                                       int64_t group) {
  ein_canon *c = b->c;
  eini_arena *a = &b->g->arena;
  eini_canon_names y;
  eini_stmt *t;
  int out, *operand;
  EINI_TRY(eini_canon_number(c, x, row, &y));
  const eini_stmt *s = y.s;
  const int n = y.w->nplace;
  if ((operand = EINI_NEW(&c->arena, int, n)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++)
    EINI_TRY(eini_canon_tensor(b, s->operand[y.operand[k]], 0, &operand[k]));
  EINI_TRY(eini_canon_tensor(b, s->out, 1, &out));
  EINI_TRY(eini_canon_params(b, &y));
  EINI_TRY(eini_graph_add_stmt(b->g, out, s->nindex, n, operand, &t));
  ein_canon_stmt *info = &b->stmt[b->g->nstmt - 1];
  int *from = EINI_NEW(&c->arena, int, s->nindex);
  const char **name = EINI_NEW(&c->arena, const char *, s->nindex);
  if (from == NULL || name == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    eini_index *at = &t->index[y.index[i]];
    const char *was = s->index[i].name;
    from[y.index[i]] = i;
    name[y.index[i]] = eini_strndup(&c->arena, was, (int64_t)strlen(was));
    if (name[y.index[i]] == NULL) return EIN_ERR_NO_MEMORY;
    at->extent = s->index[i].extent;
    EINI_TRY(eini_canon_numbers(&b->sizes, &at->extent, 1));
    if ((at->name = eini_canon_letter(a, y.index[i])) == NULL) return EIN_ERR_NO_MEMORY;
  }
  t->nfree = s->nfree;
  t->fold = s->fold;
  t->numpy = s->numpy;
  t->rest = s->rest;
  EINI_TRY(eini_map_copy(a, &t->out_map, &s->out_map, y.index));
  EINI_TRY(eini_canon_numbers(&b->sizes, t->out_map.offset, t->out_map.rows));
  for (int k = 0; k < n; k++) {
    EINI_TRY(eini_map_copy(a, &t->proj[k], &s->proj[y.operand[k]], y.index));
    EINI_TRY(eini_canon_numbers(&b->sizes, t->proj[k].offset, t->proj[k].rows));
  }
  EINI_TRY(eini_canon_expr(b, &y, &t->expr));
  for (int64_t k = 0; k < t->expr.n; k++) {
    eini_node *v = &t->expr.node[k];
    if (v->op != EIN_OP_CONST || !v->exact || v->dtype == EIN_BOOL) continue;
    EINI_TRY(eini_canon_numbers(&b->sizes, &v->ival, 1));
    v->re = (double)v->ival;
  }
  info->group = group;
  info->stmt = row;
  info->line = s->line;
  info->nindex = s->nindex;
  info->noperand = n;
  info->index = from;
  info->name = name;
  info->operand = y.operand;
  return eini_stmt_finish(b->g, t, NULL);
}

static ein_status eini_canon_begin(ein_canon *c, eini_canon_build *b) {
  const ein_graph *g = c->source;
  int64_t reads = 0, params = 0;
  memset(b, 0, sizeof *b);
  for (int64_t i = 0; i < g->nstmt; i++) {
    reads += c->row[i].x.nplace + 1;
    params += c->row[i].x.nparam;
  }
  b->c = c;
  b->sizes.arena = &c->arena;
  b->sizes.source = g->symbols;
  b->tensor = EINI_NEW(&c->arena, int, g->ntensor);
  b->param = EINI_NEW(&c->arena, int, g->nparam);
  b->from = EINI_NEW(&c->arena, int64_t, reads);
  b->scalar = EINI_NEW(&c->arena, int64_t, params);
  b->stmt = EINI_NEW(&c->arena, ein_canon_stmt, g->nstmt);
  if (b->tensor == NULL || b->param == NULL || b->from == NULL || b->scalar == NULL ||
      b->stmt == NULL) return EIN_ERR_NO_MEMORY;
  if ((b->g = eini_graph_new(NULL)) == NULL) return EIN_ERR_NO_MEMORY;
  return eini_graph_register(b->g, g->nfunction, g->function, g->block, g->nmonoid, g->monoid);
}

// A group alone: what other groups read or make has other names.
static ein_status eini_canon_add(eini_canon_build *b, const eini_canon_group *x, int64_t group) {
  const int64_t ntensor = b->g->ntensor, nparam = b->g->nparam;
  EINI_TRY(eini_canon_sizes_begin(&b->sizes, x->size));
  for (int64_t i = 0; i < x->n; i++) EINI_TRY(eini_canon_statement(b, x, x->row[i], group));
  for (int64_t i = ntensor; i < b->g->ntensor; i++) b->tensor[b->from[i]] = 0;
  for (int64_t i = nparam; i < b->g->nparam; i++) b->param[b->scalar[i]] = 0;
  return EIN_OK;
}

static ein_status eini_canon_text(ein_canon *c, eini_canon_group *x) {
  eini_canon_build b;
  ein_status st = eini_canon_begin(c, &b);
  if (st == EIN_OK) st = eini_canon_add(&b, x, 0);
  if (st == EIN_OK) st = eini_canon_sizes_end(&b.sizes, b.g);
  const size_t n = st == EIN_OK ? ein_graph_print(b.g, NULL, 0) : 0;
  if (st == EIN_OK && (x->text = EINI_NEW(&c->arena, char, n + 1)) == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) ein_graph_print(b.g, x->text, n + 1);
  eini_graph_free(b.g);
  return st;
}

static int eini_canon_text_order(const void *group, int a, int b) {
  const eini_canon_group *x = (const eini_canon_group *)group;
  return strcmp(x[a].text, x[b].text);
}

static ein_status eini_canon_make(ein_canon *c, int64_t work) {
  const ein_graph *g = c->source;
  c->row = EINI_NEW(&c->arena, eini_canon_row, g->nstmt);
  c->group = EINI_NEW(&c->arena, eini_canon_group, g->nstmt);
  if (c->row == NULL || c->group == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_canon_read(c));
  EINI_TRY(eini_canon_groups(c));
  int n = (int)c->ngroup, *order = EINI_NEW(&c->arena, int, 2 * (int64_t)n);
  eini_canon_build b;
  if (order == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    order[i] = i;
    EINI_TRY(eini_canon_order(c, &c->group[i], work));
    if (n > 1) EINI_TRY(eini_canon_text(c, &c->group[i]));
  }
  eini_merge_sort(order, order + n, n, c->group, eini_canon_text_order);
  ein_status st = eini_canon_begin(c, &b);
  c->graph = b.g;
  c->tensor = b.from;
  c->param = b.scalar;
  c->stmt = b.stmt;
  for (int i = 0; i < n && st == EIN_OK; i++) st = eini_canon_add(&b, &c->group[order[i]], i);
  c->ntensor = c->graph == NULL ? 0 : c->graph->ntensor;
  if (st == EIN_OK) st = eini_canon_sizes_end(&b.sizes, b.g);
  c->sizes = b.sizes;
  return st;
}

EIN_API ein_status ein_canon_create(ein_ctx *ctx, const ein_graph *graph, int64_t work,
                                    ein_canon **canon) {
  eini_arena arena;
  if (canon == NULL) return EIN_ERR_ARGUMENT;
  *canon = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  if (st == EIN_OK && work < 0) st = EIN_ERR_ARGUMENT;
  if (st != EIN_OK) return eini_fail_status(ctx, st), st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_canon *c = EINI_NEW(&arena, ein_canon, 1);
  if (c == NULL) return eini_fail_status(ctx, EIN_ERR_NO_MEMORY), EIN_ERR_NO_MEMORY;
  c->arena = arena;
  if (work == 0) work = EINI_FORM_WORK;
  eini_forms_init(&c->forms, &c->arena, work);
  c->source = graph;
  st = eini_canon_make(c, work);
  eini_forms_free(&c->forms);
  if (st == EIN_ERR_TOO_LARGE)
    eini_fail(eini_diag_of(ctx), st, -1, 0, "give more work", "too many spellings look alike: "
              "their normal form takes more than the work given");
  if (st == EIN_ERR_UNSUPPORTED)
    eini_fail(eini_diag_of(ctx), st, -1, 0, "give sizes", "sizes were left open, and a statement "
              "reads what others make: an extent of that is a sum, which no input can say");
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *canon = c;
  else ein_canon_destroy(c);
  return st;
}

EIN_API void ein_canon_destroy(ein_canon *c) {
  if (c == NULL) return;
  eini_arena arena = c->arena;  // it lives in its own arena
  eini_graph_free(c->graph);
  eini_arena_free(&arena);
}

EIN_API const ein_graph *ein_canon_graph(const ein_canon *c) { return c == NULL ? NULL : c->graph; }

EIN_API int64_t ein_canon_groups(const ein_canon *c) { return c == NULL ? 0 : c->ngroup; }

EIN_API int ein_canon_statement(const ein_canon *c, int64_t k, ein_canon_stmt *info) {
  if (c == NULL || info == NULL || k < 0 || k >= c->graph->nstmt) return 0;
  *info = c->stmt[k];
  return 1;
}

EIN_API int64_t ein_canon_tensor(const ein_canon *c, int id) {
  return c == NULL || id < 0 || id >= c->ntensor ? -1 : c->tensor[id];
}

EIN_API int64_t ein_canon_size(const ein_canon *c, int id) {
  return c == NULL || id < 0 || id >= c->sizes.nnamed ? -1 : c->sizes.size[c->sizes.of[id]].source;
}

EIN_API int64_t ein_canon_param(const ein_canon *c, int id) {
  return c == NULL || id < 0 || id >= c->graph->nparam ? -1 : c->param[id];
}
