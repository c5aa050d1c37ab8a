// ================================================================================================
// >>decompose  from statements to forms
// A variable of the net is a statement (or pinned input), its labels are its ways; edges between
// producers and readers are tables that equal pairs of forms share.
// ================================================================================================

typedef struct eini_dedge {  // node y reads what node x defines, as operand k
  int x, y, k, table;
  int64_t alike;           // the first edge between the same forms, which has the same table
} eini_dedge;

typedef struct eini_edges {
  eini_dedge *e;
  int64_t n, cap;
  int64_t *shared;         // edges with a table of their own
  int64_t nshared;
} eini_edges;

// Finds what each node reads more than once.
static ein_status eini_nodes_repeat(eini_decomposer *dc) {
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    f->again = EINI_NEW(&dc->arena, unsigned char, f->s->noperand);
    if (f->again == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < f->s->noperand; k++) f->again[k] = eini_operand_first(f->s, k) < k;
  }
  return EIN_OK;
}

// The statements of a graph by kind: those that differ in names, orders and literals only. Of each
// the first of its kind, itself in the words of that, and where its indices then are (NULL: there).
typedef struct eini_respelled {
  int64_t *first;
  const eini_stmt **s;
  const int **at;
} eini_respelled;

static ein_status eini_respelled_find(eini_arena *a, const ein_graph *g, eini_respelled *x) {
  const eini_besides b = {EINI_SAME_EXTENTS | EINI_SAME_AXES | EINI_SAME_ALONE | EINI_SAME_TENSORS,
                          0, 0, NULL, NULL};
  ein_status st = EIN_OK;
  eini_forms forms;
  x->first = EINI_NEW(a, int64_t, g->nstmt);
  x->s = EINI_NEW(a, const eini_stmt *, g->nstmt);
  x->at = EINI_NEW(a, const int *, g->nstmt);
  if (x->first == NULL || x->s == NULL || x->at == NULL) return EIN_ERR_NO_MEMORY;
  eini_forms_init(&forms, a, 0);
  for (int64_t i = 0; i < g->nstmt && st == EIN_OK; i++) {
    const eini_stmt *s = x->s[i] = &g->stmt[i];
    eini_match m;
    eini_stmt *t;
    st = eini_forms_find(&forms, g, s, &b, i, &m);
    x->first[i] = m.first;
    if (st != EIN_OK || m.same) continue;
    st = eini_stmt_respell(a, s, &g->stmt[m.first], &m, &t, &x->at[i]);
    x->s[i] = t;
  }
  eini_forms_free(&forms);
  return st;
}

static ein_status eini_nodes_make(eini_decomposer *dc) {
  const ein_graph *g = dc->g;
  const ein_decompose_desc *d = dc->desc;
  int64_t most = g->nstmt;
  for (int64_t t = 0; t < g->ntensor && d->npin > 0; t++)
    most += g->tensor[t].role == EIN_ROLE_INPUT;
  dc->node = EINI_NEW(&dc->arena, eini_dform, most);
  dc->form_of = EINI_NEW(&dc->arena, int, most);
  dc->tensor_node = EINI_NEW(&dc->arena, int, g->ntensor);
  if (dc->node == NULL || dc->form_of == NULL || dc->tensor_node == NULL) return EIN_ERR_NO_MEMORY;
  eini_respelled kinds;
  EINI_TRY(eini_respelled_find(&dc->arena, g, &kinds));
  for (; dc->nnode < g->nstmt; dc->nnode++) {
    eini_dform *f = &dc->node[dc->nnode];
    f->s = kinds.s[dc->nnode];
    f->kind = (int)kinds.first[dc->nnode];
    f->at = kinds.at[dc->nnode];
  }
  for (int64_t t = 0; t < g->ntensor; t++) dc->tensor_node[t] = -1;
  for (int k = 0; k < d->npin; k++) {
    eini_spec spec;
    EINI_TRY(eini_spec_read(dc, "pin", d->pin[k], &spec));
    for (int t = 0; t < g->ntensor; t++) {
      if (g->tensor[t].role == EIN_ROLE_INPUT && dc->tensor_node[t] < 0)
        dc->tensor_node[t] = eini_pin_means(dc, &spec, t) ? 0 : -1;
    }
  }
  for (int t = 0; t < g->ntensor; t++) {
    eini_stmt *s;
    if (dc->tensor_node[t] < 0) continue;
    EINI_TRY(eini_stmt_of_tensor(&dc->arena, dc->g, t, &s));
    dc->tensor_node[t] = dc->nnode;
    dc->node[dc->nnode++].s = s;
    dc->npinned++;
  }
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    f->limit = EINI_NEW(&dc->arena, int64_t, f->s->nindex);
    f->need = EINI_NEW(&dc->arena, int64_t, f->s->nindex);
    f->active = EINI_NEW(&dc->arena, unsigned char, f->s->noperand + 1);
    f->prefer = EINI_NEW(&dc->arena, int, f->s->nindex);
    if (f->limit == NULL || f->need == NULL || f->active == NULL || f->prefer == NULL)
      return EIN_ERR_NO_MEMORY;
    eini_cut_limits(dc->g, f->s, f->limit);
    for (int c = 0; c < f->s->nindex; c++) f->prefer[c] = c;
  }
  return eini_nodes_repeat(dc);
}
