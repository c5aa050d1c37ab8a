// ================================================================================================
// >>unscattered  the same search without results that are scattered
// Takes the tables of a search, kept from before ways were dropped; gives a net of those ways alone
// whose results lie with their tasks: nothing is counted again.
// ================================================================================================

typedef struct eini_unscattered {
  eini_dform *node;        // of all nodes, as they were
  eini_sumtable *table;    // [edge] those of shared edges
  int **left;              // [form] its ways that are not scattered
  const eini_edges *q;
} eini_unscattered;

static ein_status eini_unscattered_keep(eini_decomposer *dc, const eini_edges *q,
                                        const eini_sums *net, eini_unscattered *u) {
  u->q = q;
  u->node = EINI_NEW(&dc->arena, eini_dform, dc->nnode);
  u->table = EINI_NEW(&dc->arena, eini_sumtable, q->n);
  u->left = EINI_NEW(&dc->arena, int *, dc->nnode);
  if (u->node == NULL || u->table == NULL || u->left == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) u->node[i] = dc->node[i];
  for (int64_t k = 0; k < q->nshared; k++)
    u->table[q->shared[k]] = net->table[q->e[q->shared[k]].table];
  return EIN_OK;
}

// The classes of the ways that are left, on one side of a table.
static ein_status eini_unscattered_classes(eini_decomposer *dc, const eini_sumtable *t, int side,
                                           int form, const int **of) {
  const int n = (int)dc->node[form].ways.n;
  int *to = EINI_NEW(&dc->arena, int, n);
  if (to == NULL) return EIN_ERR_NO_MEMORY;
  for (int w = 0; w < n; w++) to[w] = eini_table_class(t, side, dc->plain->left[form][w]);
  *of = to;
  return EIN_OK;
}

static ein_status eini_unscattered_edge(eini_decomposer *dc, eini_sums *net, const eini_dedge *e,
                                        int *id) {
  const eini_sumtable *was = &dc->plain->table[e - dc->plain->q->e];
  const int x = dc->form_of[e->x], y = dc->form_of[e->y];
  int size[2];
  size[0] = (int)dc->node[x].ways.n;
  size[1] = (int)dc->node[y].ways.n;
  EINI_TRY(eini_sums_table(net, 2, size, was->v, id));
  eini_sumtable *t = &net->table[*id];
  t->nclass[0] = was->nclass[0];
  t->nclass[1] = was->nclass[1];
  EINI_TRY(eini_unscattered_classes(dc, was, 0, x, &t->of[0]));
  return eini_unscattered_classes(dc, was, 1, y, &t->of[1]);
}

static const eini_labels eini_unscattered_labels = {eini_ways_size, eini_ways_unary,
                                                    eini_unscattered_edge};

// Forms with their ways that are not scattered, and the net of these.
static ein_status eini_unscattered_net(eini_decomposer *dc, eini_edges *q, eini_unscattered *u,
                                       eini_sums *net) {
  dc->plain = u;
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    int n = 0;
    *f = u->node[i];
    if (dc->form_of[i] != i) continue;
    u->left[i] = EINI_NEW(&dc->arena, int, f->ways.n);
    if (u->left[i] == NULL) return EIN_ERR_NO_MEMORY;
    for (int w = 0; w < f->ways.n; w++)
      if (f->ways.sent[w] < 0) u->left[i][n++] = w;
    EINI_TRY(eini_ways_take(dc, f, u->left[i], n));
  }
  EINI_TRY(eini_sums_make(dc, q, &eini_unscattered_labels, net));
  return eini_drop_ways(dc, q, net);
}
