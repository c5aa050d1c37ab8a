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

// Statements, those that differ in names, orders and literals only in the words of the first.
static ein_status eini_nodes_spell(eini_decomposer *dc, eini_forms *forms) {
  const ein_graph *g = dc->g;
  const eini_besides b = {EINI_SAME_EXTENTS | EINI_SAME_AXES | EINI_SAME_ALONE | EINI_SAME_TENSORS,
                          0, 0, NULL, NULL};
  for (int i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    eini_dform *f = &dc->node[dc->nnode++];
    eini_match m;
    eini_stmt *t;
    EINI_TRY(eini_forms_find(forms, g, s, &b, i, &m));
    f->s = s;
    f->kind = (int)m.first;
    if (m.same) continue;
    EINI_TRY(eini_stmt_respell(&dc->arena, s, &g->stmt[m.first], &m, &t, &f->at));
    f->s = t;
  }
  return EIN_OK;
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
  eini_forms forms;
  eini_forms_init(&forms, &dc->arena, 0);
  const ein_status st = eini_nodes_spell(dc, &forms);
  eini_forms_free(&forms);
  EINI_TRY(st);
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
