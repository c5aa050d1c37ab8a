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

static uint64_t eini_map_hash(const eini_map *m, uint64_t h) {
  const size_t rows = (size_t)m->rows;
  for (int e = 0; e < m->first[rows]; e++) {
    const int64_t term[2] = {m->term[e].index, m->term[e].coef};
    h = eini_hash(term, sizeof term, h);
  }
  h = eini_hash(m->first, (rows + 1) * sizeof *m->first, h);
  return rows > 0 ? eini_hash(m->offset, rows * sizeof *m->offset, h) : h;
}

// Finds what each node reads more than once.
static ein_status eini_nodes_repeat(eini_decomposer *dc) {
  uint64_t mask = 4;
  for (int i = 0; i < dc->nnode; i++)
    while (mask < 2 * (uint64_t)dc->node[i].s->noperand) mask *= 2;
  int *slot = EINI_NEW(&dc->arena, int, (int64_t)mask--);  // operand + 1
  uint64_t *used = EINI_NEW(&dc->arena, uint64_t, (int64_t)mask);
  if (slot == NULL || used == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    const eini_stmt *s = f->s;
    f->again = EINI_NEW(&dc->arena, unsigned char, s->noperand);
    if (f->again == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < s->noperand; k++) {
      uint64_t at = eini_map_hash(&s->proj[k], (uint64_t)s->operand[k]) & mask;
      for (; slot[at] != 0 && !f->again[k]; at = (at + 1) & mask)
        f->again[k] = s->operand[slot[at] - 1] == s->operand[k] &&
                      eini_map_equal(&s->proj[slot[at] - 1], &s->proj[k]);
      used[k] = at;
      if (!f->again[k]) slot[at] = k + 1;
    }
    for (int k = 0; k < s->noperand; k++)
      if (!f->again[k]) slot[used[k]] = 0;
  }
  return EIN_OK;
}

// Statements, those that differ in names, orders and literals only in the words of the first.
static ein_status eini_nodes_spell(eini_decomposer *dc, eini_forms *forms) {
  const ein_graph *g = dc->g;
  int64_t most = 0;
  int *first = EINI_NEW(&dc->arena, int, g->ntensor);
  for (int64_t i = 0; i < g->nstmt; i++) most = eini_max64(most, g->stmt[i].noperand);
  int *alike = EINI_NEW(&dc->arena, int, most);
  const eini_besides b = {EINI_SAME_EXTENTS | EINI_SAME_AXES | EINI_SAME_ALONE, 0, 0, NULL, NULL,
                          alike};
  if (first == NULL || alike == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    eini_dform *f = &dc->node[dc->nnode++];
    eini_match m;
    eini_stmt *t;
    for (int k = 0; k < s->noperand; k++) {
      int *at = &first[s->operand[k]];
      if (*at == 0) *at = k + 1;
      alike[k] = *at - 1;
    }
    for (int k = 0; k < s->noperand; k++) first[s->operand[k]] = 0;
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
