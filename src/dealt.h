// ================================================================================================
// >>dealt  inputs that are dealt out
// Takes a decomposition by the model of bytes; gives pins: each element of an input lies at one of
// the places that read it in the first statement that does.
// ================================================================================================

// Pieces of a tensor's axes, most significant digit first.
typedef struct eini_dealing {
  const eini_tensor *t;
  int64_t *cut;
  int norder, *order;
} eini_dealing;

// Cuts an axis, or one that has been cut into n times as many pieces. 0: it is too short.
static int eini_deal_cut(eini_dealing *x, int axis, int64_t n) {
  if (axis < 0 || x->t->shape[axis] / x->cut[axis] < n) return 0;
  if (x->cut[axis] == 1) x->order[x->norder++] = axis;
  x->cut[axis] *= n;
  return 1;
}

// The axis that an index moves along first; -1: none.
static int eini_deal_axis(const eini_map *m, int index) {
  for (int r = 0; r < m->rows; r++)
    for (int e = m->first[r]; e < m->first[r + 1]; e++)
      if (m->term[e].index == index) return r;
  return -1;
}

// Pieces of an input as the places of a statement read its operand k. Places that read the same
// share it: in smaller pieces of the axis cut last, which follow it in the order of places, or of
// an axis that is whole; else those whose digit is 0 have it.
static ein_status eini_deal(eini_arena *a, const ein_graph *g, const eini_stmt *s, int k,
                            const ein_parts *p, ein_parts *to) {
  const eini_map *m = &s->proj[k];
  eini_dealing x;
  x.t = &g->tensor[s->operand[k]];
  x.norder = 0;
  x.cut = EINI_NEW(a, int64_t, x.t->rank);
  x.order = EINI_NEW(a, int, x.t->rank);
  unsigned char *read = EINI_NEW(a, unsigned char, x.t->rank);  // by a cut index
  if (x.cut == NULL || x.order == NULL || read == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < x.t->rank; r++) x.cut[r] = 1;
  for (int j = 0; j < p->norder; j++) {
    const int axis = eini_deal_axis(m, p->order[j]);
    if (axis >= 0) read[axis] = 1;
  }
  for (int j = 0; j < p->norder; j++) {
    const int64_t n = p->cut[p->order[j]];
    const int axis = eini_deal_axis(m, p->order[j]);
    if (axis >= 0 && x.cut[axis] == 1 && eini_deal_cut(&x, axis, n)) continue;
    if (x.norder > 0 && eini_deal_cut(&x, x.order[x.norder - 1], n)) continue;
    for (int r = 0; r < x.t->rank; r++)
      if (!read[r] && x.cut[r] == 1 && eini_deal_cut(&x, r, n)) break;
  }
  memset(to, 0, sizeof *to);
  to->nindex = x.t->rank;
  to->cut = x.cut;
  to->norder = x.norder;
  to->order = x.order;
  to->ntask = eini_tasks(x.cut, x.t->rank);
  return EIN_OK;
}

// Pins of all inputs that have none; d has room for them.
static ein_status eini_deal_all(const eini_decomposer *dc, ein_decomposition *d) {
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = &dc->g->stmt[i];
    for (int k = 0; k < s->noperand; k++) {
      const int t = s->operand[k];
      int done = dc->g->tensor[t].role != EIN_ROLE_INPUT;
      for (int n = 0; n < d->npinned; n++) done |= d->pinned[n] == t;
      if (done) continue;
      ein_parts *to = &d->parts[dc->nnode - dc->npinned + d->npinned];
      EINI_TRY(eini_deal(&d->arena, dc->g, s, k, &d->parts[i], to));
      d->pinned[d->npinned++] = t;
    }
  }
  return EIN_OK;
}
