// ================================================================================================
// >>tables  what edges cost, ways that are never needed, and the linearisation
// Takes the ways of all forms; gives the net of tables whose least sum is searched.
// ================================================================================================

static const eini_dform *eini_form(const eini_decomposer *dc, int node) {
  return &dc->node[dc->form_of[node]];
}

// Repartition for the classes of an edge.
static ein_status eini_edge_repart(eini_decomposer *dc, eini_edgework *w) {
  const eini_stmt *x = w->x->s, *y = w->y->s;
  int rank = x->out_map.rows, na = w->a.set.n, nb = w->b.set.n, n = rank + 1;
  int64_t *one = EINI_NEW(&dc->arena, int64_t, x->nindex);
  double *have = EINI_NEW(&dc->arena, double, (int64_t)(na + 1) * n);
  double *need = EINI_NEW(&dc->arena, double, (int64_t)nb * n);
  if (one == NULL || have == NULL || need == NULL) return EIN_ERR_NO_MEMORY;
  double *whole = have + na * n;
  for (int c = 0; c < x->nindex; c++) one[c] = 1;
  eini_paper_sides(x, -1, one, whole);
  for (int a = 0; a < na; a++)
    eini_paper_sides(x, -1, w->x->ways.cut + w->a.set.first[a] * x->nindex, have + a * n);
  for (int b = 0; b < nb; b++)
    eini_paper_sides(y, w->k, w->y->ways.cut + w->b.set.first[b] * y->nindex, need + b * n);
  for (int a = 0; a < na; a++)
    for (int b = 0; b < nb; b++)
      w->cost[(int64_t)a * nb + b] = eini_paper_repart(
          rank, whole, have + a * n, need + b * n, dc->desc->cost == EIN_COST_PAPER_CODE);
  return EIN_OK;
}

// The costs of an edge for all ways of its producer and its reader.
static ein_status eini_edge_table(eini_decomposer *dc, eini_sums *net, const eini_dedge *e,
                                  int *id) {
  eini_edgework w;
  int size[2];
  memset(&w, 0, sizeof w);
  w.x = eini_form(dc, e->x);
  w.y = eini_form(dc, e->y);
  w.k = e->k;
  EINI_TRY(eini_edgework_make(dc, &w));
  size[0] = (int)w.x->ways.n;
  size[1] = (int)w.y->ways.n;
  double bytes = eini_element_bytes(dc, w.x->s->out);
  const ein_machine *m = &dc->machine;
  if (dc->desc->cost < EIN_COST_BYTES) EINI_TRY(eini_edge_repart(dc, &w));
  else EINI_TRY(eini_edge_count(dc, &w));
  for (int64_t i = 0; i < (int64_t)w.a.set.n * w.b.set.n; i++) {
    if (dc->desc->cost == EIN_COST_BYTES) w.cost[i] *= bytes;
    if (dc->desc->cost == EIN_COST_SECONDS)
      w.cost[i] = w.cost[i] > 0 ? eini_link_seconds(m, w.cost[i] * bytes) : 0;
  }
  EINI_TRY(eini_sums_table(net, 2, size, w.cost, id));
  eini_sumtable *t = &net->table[*id];
  t->of[0] = w.a.set.of, t->nclass[0] = w.a.set.n;
  t->of[1] = w.b.set.of, t->nclass[1] = w.b.set.n;
  return EIN_OK;
}

// Every producer of every operand, each operand once.
static ein_status eini_edges_find(eini_decomposer *dc, eini_edges *q) {
  const ein_graph *g = dc->g;
  int *head = EINI_NEW(&dc->arena, int, g->ntensor), *next = EINI_NEW(&dc->arena, int, dc->nnode);
  if (head == NULL || next == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) head[t] = -1;
  for (int i = dc->nnode - 1; i >= 0; i--) {
    next[i] = head[dc->node[i].s->out];
    head[dc->node[i].s->out] = i;
  }
  for (int y = 0; y < dc->nnode - dc->npinned; y++) {
    const eini_stmt *s = dc->node[y].s;
    for (int k = 0; k < s->noperand; k++) {
      if (dc->node[y].again[k]) continue;
      for (int x = head[s->operand[k]]; x >= 0; x = next[x]) {
        dc->node[y].active[k] = 1;
        dc->node[x].active[dc->node[x].s->noperand] = 1;
        eini_dedge *e = (eini_dedge *)eini_grow(&dc->arena, q->e, q->n, &q->cap, sizeof *e);
        if (e == NULL) return EIN_ERR_NO_MEMORY;
        q->e = e;
        e[q->n].x = x;
        e[q->n].y = y;
        e[q->n++].k = k;
      }
    }
  }
  return EIN_OK;
}

// ---- inputs that are not pinned ----

typedef struct eini_read {
  int node, k;             // operand k of statement `node`
} eini_read;

typedef struct eini_reads {
  int64_t *at;             // [tensor + 1] where its reads begin; pinned inputs and others have none
  eini_read *list;         // in the order of statements
} eini_reads;

static int eini_reads_has(const eini_decomposer *dc, int tensor) {
  if (dc->g->tensor[tensor].role != EIN_ROLE_INPUT) return 0;
  for (int i = dc->nnode - dc->npinned; i < dc->nnode; i++)
    if (dc->node[i].s->out == tensor) return 0;
  return 1;
}

// Who reads which input that is not pinned, each operand once.
static ein_status eini_reads_find(eini_decomposer *dc, eini_reads *r) {
  int64_t ntensor = dc->g->ntensor, n = 0;
  unsigned char *has = EINI_NEW(&dc->arena, unsigned char, ntensor);
  for (int i = 0; i < dc->nnode; i++) n += dc->node[i].s->noperand;
  r->at = EINI_NEW(&dc->arena, int64_t, ntensor + 2);
  r->list = EINI_NEW(&dc->arena, eini_read, n);
  if (has == NULL || r->at == NULL || r->list == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < ntensor; t++) has[t] = (unsigned char)eini_reads_has(dc, t);
  for (int pass = 0; pass < 2; pass++) {  // count, then list: at[t + 1] is where t's next one goes
    for (int i = 0; i < dc->nnode - dc->npinned; i++) {
      const eini_stmt *s = dc->node[i].s;
      for (int k = 0; k < s->noperand; k++) {
        int t = s->operand[k];
        if (!has[t] || dc->node[i].again[k]) continue;
        if (pass == 0) r->at[t + 2]++;
        if (pass == 0) continue;
        eini_read *x = &r->list[r->at[t + 1]++];
        x->node = i;
        x->k = k;
      }
    }
    for (int64_t t = 0; t < ntensor && pass == 0; t++) r->at[t + 2] += r->at[t + 1];
  }
  return EIN_OK;
}

// Finds the edges that need a table of their own.
static ein_status eini_edges_share(eini_decomposer *dc, eini_edges *q) {
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  q->shared = EINI_NEW(&dc->arena, int64_t, q->n);
  if (q->shared == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < q->n; i++) {
    eini_dedge *e = &q->e[i];
    const int64_t key[3] = {dc->form_of[e->x], dc->form_of[e->y], e->k};
    const int64_t id = eini_key_number(&dc->arena, &seen, key, 3);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    if (id == q->nshared) q->shared[q->nshared++] = i;
    e->alike = q->shared[id];
  }
  return EIN_OK;
}

#define EINI_BEAM_CELLS ((int64_t)1 << 24)  // labels that a beam has in all, about
#define EINI_EDGES_CELLS 33554432.0  // of all edges' tables, about

static double eini_work_limit(const ein_decompose_desc *d) {
  return d->max_work > 0 ? d->max_work : 6e7;
}

// Places that are looked at for the tables of all edges, about: fewer where few ways share them.
static double eini_edges_work(const eini_decomposer *dc, const eini_edges *q) {
  double work = 0;
  for (int64_t k = 0; k < q->nshared && dc->desc->cost >= EIN_COST_BYTES; k++) {
    int64_t x = eini_form(dc, q->e[q->shared[k]].x)->ways.n;
    int64_t y = eini_form(dc, q->e[q->shared[k]].y)->ways.n;
    work += (double)dc->p * (double)(x + y + 1) / 2;
  }
  return work;
}

// Leaves the last ways of all forms out as long as their tables together take too much room, or too
// much work.
static ein_status eini_edges_fit(eini_decomposer *dc, const eini_edges *q) {
  int moved = dc->desc->cost >= EIN_COST_BYTES;
  double words = moved ? (double)((dc->p + 63) / 64) : 1, room = EINI_EDGES_CELLS;
  double limit = eini_work_limit(dc->desc);
  if (moved || dc->desc->max_vectors > 0) room *= 2;
  for (;;) {
    double cells = 0;
    int64_t longest = 0;
    for (int64_t k = 0; k < q->nshared; k++) {
      int64_t x = eini_form(dc, q->e[q->shared[k]].x)->ways.n;
      int64_t y = eini_form(dc, q->e[q->shared[k]].y)->ways.n;
      cells += (double)x * (double)y * words;
      longest = eini_max64(longest, eini_max64(x, y));
    }
    dc->work = eini_edges_work(dc, q);
    int fits = cells <= room || longest <= 16, quick = 2 * dc->work <= limit;
    if (fits && (quick || (longest <= 1 && dc->work <= limit))) return EIN_OK;
    if (longest <= 1) break;
    int64_t most = longest / 2;
    for (int i = 0; i < dc->nnode; i++) {
      eini_ways *w = &dc->node[i].ways;
      dc->cut_short |= w->n > most;
      w->n = eini_min64(w->n, most);
    }
  }
  return eini_fail(dc->diag, EIN_ERR_TOO_LARGE, -1, 0, "fewer places, or the cost of the paper",
                   "what statements exchange over %lld places, by %lld different ones, takes too "
                   "long to count", (long long)dc->p, (long long)q->nshared);
}

#define EINI_TABLE_MAX 67108864.0

// What labels of nodes stand for, how many a form has, and what they cost by themselves and over an
// edge, as the number of a table.
typedef struct eini_labels {
  int64_t (*size)(const eini_decomposer *dc, const eini_dform *f);
  ein_status (*unary)(eini_decomposer *dc, const eini_dform *f, const double **cost);
  ein_status (*edge)(eini_decomposer *dc, eini_sums *net, const eini_dedge *e, int *id);
} eini_labels;

static int64_t eini_ways_size(const eini_decomposer *dc, const eini_dform *f) {
  (void)dc;
  return f->ways.n;
}

static ein_status eini_ways_unary(eini_decomposer *dc, const eini_dform *f, const double **cost) {
  (void)dc;
  *cost = f->unary;
  return EIN_OK;
}

static const eini_labels eini_way_labels = {eini_ways_size, eini_ways_unary, eini_edge_table};

// The net of all nodes and edges.
static ein_status eini_sums_make(eini_decomposer *dc, eini_edges *q, const eini_labels *label,
                                 eini_sums *net) {
  double most = dc->desc->max_table > 0 ? dc->desc->max_table : 4194304;
  if (most > EINI_TABLE_MAX) most = EINI_TABLE_MAX;
  int *unary = EINI_NEW(&dc->arena, int, dc->nnode), id;
  if (unary == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_sums_init(net, &dc->arena, dc->nnode, most));
  for (int i = 0; i < dc->nnode; i++) {
    const eini_dform *f = eini_form(dc, i);
    const double *v = NULL;
    net->size[i] = (int)label->size(dc, f);
    if (dc->form_of[i] == i) {
      EINI_TRY(label->unary(dc, f, &v));
      EINI_TRY(eini_sums_table(net, 1, &net->size[i], v, &unary[i]));
    }
    EINI_TRY(eini_sums_factor(net, unary[dc->form_of[i]], &i, &id));
  }
  for (int64_t k = 0; k < q->nshared; k++) {
    eini_dedge *e = &q->e[q->shared[k]];
    EINI_TRY(label->edge(dc, net, e, &e->table));
  }
  for (int64_t i = 0; i < q->n; i++) {
    eini_dedge *e = &q->e[i];
    int var[2];
    e->table = q->e[e->alike].table;
    var[0] = e->x;
    var[1] = e->y;
    EINI_TRY(eini_sums_factor(net, e->table, var, &id));
  }
  net->norig = (int)net->nfactor;
  return EIN_OK;
}

// ---- ways that are never needed -----------------------------------------------------------------

// A way goes when another of its form costs no more whatever the neighbours' ways are: some least
// sum does without it. Ways gone from neighbours make more go.

// One edge as form `mine` meets it: costs of its classes and the other's, those that are left.
typedef struct eini_dview {
  int id, other;           // id: 2 * table + (mine is the reader)
  int step;                // classes of the other
  const int *row;          // [way of mine that is left] its class
  int *favourite;          // [class of mine] the other's class with the least cost
  double *v;               // [class of mine][class of the other]
} eini_dview;

typedef struct eini_drop {
  eini_decomposer *dc;
  const eini_edges *q;
  const eini_sums *net;
  int **left, *nleft;      // [form] its ways that are left
  int *at, *list;          // [node] its views: ids; forms of the other sides
  int *other;
  eini_dview *view;        // of a form: those of all its kinds of nodes, one after the other
  int nview, *kind, nkind;  // kind: where each begins, and the end
  double *best;            // [way] its least cost in one kind, all neighbours at their favourites
} eini_drop;

static ein_status eini_drop_make(eini_drop *t) {
  eini_decomposer *dc = t->dc;
  eini_arena *a = &dc->arena;
  t->left = EINI_NEW(a, int *, dc->nnode);
  t->nleft = EINI_NEW(a, int, dc->nnode);
  t->at = EINI_NEW(a, int, dc->nnode + 2);
  t->list = EINI_NEW(a, int, 2 * t->q->n);
  t->other = EINI_NEW(a, int, 2 * t->q->n);
  t->view = EINI_NEW(a, eini_dview, 2 * t->q->n);
  t->kind = EINI_NEW(a, int, dc->nnode + 1);
  if (t->left == NULL || t->nleft == NULL || t->at == NULL || t->list == NULL ||
      t->other == NULL || t->view == NULL || t->kind == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t e = 0; e < t->q->n; e++) {
    t->at[t->q->e[e].x + 2]++;
    t->at[t->q->e[e].y + 2]++;
  }
  for (int i = 0; i < dc->nnode; i++) t->at[i + 2] += t->at[i + 1];
  for (int64_t e = 0; e < t->q->n; e++) {
    for (int side = 0; side < 2; side++) {
      int k = t->at[(side ? t->q->e[e].y : t->q->e[e].x) + 1]++;
      t->list[k] = 2 * t->q->e[e].table + side;
      t->other[k] = dc->form_of[side ? t->q->e[e].x : t->q->e[e].y];
    }
  }
  for (int i = 0; i < dc->nnode; i++) {
    if (dc->form_of[i] != i) continue;
    t->nleft[i] = t->net->size[i];
    t->left[i] = EINI_NEW(a, int, t->nleft[i]);
    if (t->left[i] == NULL) return EIN_ERR_NO_MEMORY;
    for (int w = 0; w < t->nleft[i]; w++) t->left[i][w] = w;
  }
  return EIN_OK;
}

// The kinds of nodes of a form: those of one kind have the same tables around them.
static void eini_drop_kinds(eini_drop *t, int form) {
  t->nview = t->nkind = t->kind[0] = 0;
  for (int i = form; i < t->dc->nnode; i++) {
    int n = t->at[i + 1] - t->at[i], k = 0;
    if (t->dc->form_of[i] != form) continue;
    for (; k < t->nkind; k++) {
      int same = t->kind[k + 1] - t->kind[k] == n;
      for (int j = 0; j < n && same; j++)
        same = t->view[t->kind[k] + j].id == t->list[t->at[i] + j];
      if (same) break;
    }
    if (k < t->nkind) continue;
    for (int j = 0; j < n; j++) {
      t->view[t->nview].id = t->list[t->at[i] + j];
      t->view[t->nview++].other = t->other[t->at[i] + j];
    }
    t->kind[++t->nkind] = t->nview;
  }
}

// Classes of a form's ways that are left, on one side of a table.
typedef struct eini_dclasses {
  int n, *of, *which;      // of: [way that is left]; which: as the table numbers them
} eini_dclasses;

static ein_status eini_drop_classes(const eini_drop *t, const eini_sumtable *table, int side,
                                    int form, eini_dclasses *c) {
  eini_arena *a = &t->dc->arena;
  const int n = t->nleft[form];
  int *seen = EINI_NEW(a, int, table->nclass[side]);
  c->n = 0;
  c->of = EINI_NEW(a, int, n);
  c->which = EINI_NEW(a, int, n);
  if (seen == NULL || c->of == NULL || c->which == NULL) return EIN_ERR_NO_MEMORY;
  for (int w = 0; w < n; w++) {
    const int k = eini_table_class(table, side, t->left[form][w]);
    if (seen[k] == 0) {
      c->which[c->n++] = k;
      seen[k] = c->n;
    }
    c->of[w] = seen[k] - 1;
  }
  return EIN_OK;
}

// Costs of one view: rows of the classes of mine, so that those of the other's are neighbours.
static ein_status eini_drop_view(eini_drop *t, int form, eini_dview *o) {
  const eini_sumtable *table = &t->net->table[o->id / 2];
  const int side = o->id % 2;
  const int64_t width = table->nclass[1];
  eini_dclasses mine, other;
  EINI_TRY(eini_drop_classes(t, table, side, form, &mine));
  EINI_TRY(eini_drop_classes(t, table, 1 - side, o->other, &other));
  o->step = other.n;
  o->row = mine.of;
  o->v = EINI_NEW(&t->dc->arena, double, (int64_t)mine.n * other.n);
  o->favourite = EINI_NEW(&t->dc->arena, int, mine.n);
  if (o->v == NULL || o->favourite == NULL) return EIN_ERR_NO_MEMORY;
  for (int c0 = 0; c0 < other.n && side == 1; c0 += 16)  // transposed by strips
    for (int w = 0; w < mine.n; w++)
      for (int c = c0; c < other.n && c < c0 + 16; c++)
        o->v[(int64_t)w * other.n + c] = table->v[other.which[c] * width + mine.which[w]];
  for (int w = 0; w < mine.n; w++) {
    double *row = o->v + (int64_t)w * other.n;
    for (int c = 0; c < other.n && side == 0; c++)
      row[c] = table->v[mine.which[w] * width + other.which[c]];
    for (int c = 1; c < other.n; c++)
      if (row[c] < row[o->favourite[w]]) o->favourite[w] = c;
  }
  return EIN_OK;
}

static ein_status eini_drop_views(eini_drop *t, int form, const double *unary) {
  const int n = t->nleft[form];
  for (int k = 0; k < t->nview; k++) {
    eini_dview *o = &t->view[k];
    int same = 0;
    while (t->view[same].id != o->id) same++;
    if (same < k) *o = t->view[same];
    else EINI_TRY(eini_drop_view(t, form, o));
  }
  t->best = EINI_NEW(&t->dc->arena, double, n);
  if (t->best == NULL) return EIN_ERR_NO_MEMORY;
  for (int w = 0; w < n; w++) {
    t->best[w] = unary[t->left[form][w]];
    for (int k = 0; k < t->kind[1]; k++) {
      const eini_dview *o = &t->view[k];
      t->best[w] += o->v[(int64_t)o->row[w] * o->step + o->favourite[o->row[w]]];
    }
  }
  return EIN_OK;
}

// Does way w (of those left) never cost less than way u, for nodes of a kind? more: w's own cost
// above u's.
static int eini_drop_above(const eini_drop *t, int kind, int w, int u, double more) {
  for (int k = t->kind[kind]; k < t->kind[kind + 1]; k++) {
    const eini_dview *o = &t->view[k];
    const int a = o->row[w], b = o->row[u], c = o->favourite[a];
    if (a != b) more += o->v[(int64_t)a * o->step + c] - o->v[(int64_t)b * o->step + c];
  }
  for (int k = t->kind[kind]; k < t->kind[kind + 1] && more >= 0; k++) {
    const eini_dview *o = &t->view[k];
    if (o->row[w] == o->row[u]) continue;
    const double *a = o->v + (int64_t)o->row[w] * o->step;
    const double *b = o->v + (int64_t)o->row[u] * o->step;
    const int c = o->favourite[o->row[w]];
    double at = a[c] - b[c], least = at;
    for (int i = 0; i < o->step; i++) {
      double x = a[i] - b[i];
      least = x < least ? x : least;
    }
    more += least - at;
  }
  return more >= 0;
}

#define EINI_DROP_TRIES 64  // ways that one is compared with: those that can cost least

// Drops ways of a form; counts them.
static ein_status eini_drop_form(eini_drop *t, int form, int *dropped) {
  const double *unary = t->net->table[t->net->factor[form].table].v;
  int n = t->nleft[form], *left = t->left[form], kept = 0, ntry = 0;
  int tries[EINI_DROP_TRIES];
  if (n == 1) return EIN_OK;
  const eini_arena_at mark = eini_arena_mark(&t->dc->arena);
  eini_drop_kinds(t, form);
  EINI_TRY(eini_drop_views(t, form, unary));
  for (int w = 0; w < n; w++) {  // the least, in order
    int i = ntry < EINI_DROP_TRIES ? ntry++ : ntry;
    if (i == ntry && t->best[w] >= t->best[tries[--i]]) continue;
    for (; i > 0 && t->best[w] < t->best[tries[i - 1]]; i--) tries[i] = tries[i - 1];
    tries[i] = w;
  }
  for (int w = n - 1; w >= 0; w--) {
    for (int i = 0; i < ntry && left[w] >= 0; i++) {
      int u = tries[i], above = u != w && left[u] >= 0;
      for (int k = 0; k < t->nkind && above; k++)
        above = eini_drop_above(t, k, w, u, unary[left[w]] - unary[left[u]]);
      if (above) left[w] = -1;
    }
  }
  for (int w = 0; w < n; w++)
    if (left[w] >= 0) left[kept++] = left[w];
  t->nleft[form] = kept;
  *dropped += n - kept;
  eini_arena_rollback(&t->dc->arena, &mark);
  return EIN_OK;
}

// The net of what is left, its tables by labels.
static ein_status eini_drop_apply(const eini_drop *t, eini_sums *net) {
  eini_decomposer *dc = t->dc;
  for (int64_t k = 0; k < t->q->nshared; k++) {
    const eini_dedge *e = &t->q->e[t->q->shared[k]];
    const int x = dc->form_of[e->x], y = dc->form_of[e->y];
    const int *const left[2] = {t->left[x], t->left[y]};
    const int nleft[2] = {t->nleft[x], t->nleft[y]};
    EINI_TRY(eini_table_expand(&dc->arena, &net->table[e->table], left, nleft));
  }
  for (int i = 0; i < dc->nnode; i++) {
    eini_sumtable *u = &net->table[net->factor[i].table];
    const int form = dc->form_of[i];
    net->size[i] = t->nleft[form];
    if (form != i) continue;
    double *v = EINI_NEW(&dc->arena, double, t->nleft[i]);
    if (v == NULL) return EIN_ERR_NO_MEMORY;
    for (int w = 0; w < t->nleft[i]; w++) v[w] = u->v[t->left[i][w]];
    u->v = v;
    u->size[0] = u->nclass[0] = t->nleft[i];
  }
  return EIN_OK;
}

// Leaves what is never needed out of a net; left: of each form, which labels there are now.
static ein_status eini_drop_labels(eini_decomposer *dc, const eini_edges *q, eini_sums *net,
                                   int ***left) {
  eini_drop t;
  int dropped = 1;
  memset(&t, 0, sizeof t);
  t.dc = dc;
  t.q = q;
  t.net = net;
  EINI_TRY(eini_drop_make(&t));
  for (int round = 0; round < 4 && dropped > 0; round++) {
    dropped = 0;
    for (int i = 0; i < dc->nnode; i++)
      if (dc->form_of[i] == i) EINI_TRY(eini_drop_form(&t, i, &dropped));
  }
  *left = t.left;
  return eini_drop_apply(&t, net);
}

// A form has these of its ways and no others, in arrays of their own.
static ein_status eini_ways_take(eini_decomposer *dc, eini_dform *f, const int *which, int n) {
  eini_arena *a = &dc->arena;
  const eini_dform was = *f;
  EINI_TRY(eini_ways_make(a, n, f->s->nindex, &f->ways));
  f->join = EINI_NEW(a, double, n);
  f->agg = EINI_NEW(a, double, n);
  f->seconds = EINI_NEW(a, double, n);
  f->unary = EINI_NEW(a, double, n);
  if (f->join == NULL || f->agg == NULL || f->seconds == NULL || f->unary == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int w = 0; w < n; w++) {
    const int from = which[w];
    eini_way_copy(&was.ways, from, &f->ways, w, f->s->nindex);
    f->join[w] = was.join[from];
    f->agg[w] = was.agg[from];
    f->seconds[w] = was.seconds[from];
    f->unary[w] = was.unary[from];
  }
  f->ways.n = n;
  return EIN_OK;
}

// The same for ways, with those of the forms.
static ein_status eini_drop_ways(eini_decomposer *dc, const eini_edges *q, eini_sums *net) {
  int **left;
  EINI_TRY(eini_drop_labels(dc, q, net, &left));
  for (int i = 0; i < dc->nnode; i++)
    if (dc->form_of[i] == i)
      EINI_TRY(eini_ways_take(dc, &dc->node[i], left[i], net->size[i]));
  return EIN_OK;
}

// ---- the paper's linearisation ------------------------------------------------------------------

// The longest paths that end at nodes without labels, through such nodes.
typedef struct eini_paths {
  int *length, *from;      // [node] nodes of its path; the edge it ends with, or -1
  int64_t *in, *out;       // [node] where its edges begin as a reader (they are in this order) and,
  int *reader;             //   in `reader`, its readers
  unsigned char *stale;    // a node before it has got a label
  int *path, **arg;        // of one path
  double **m;
} eini_paths;

static ein_status eini_paths_make(eini_decomposer *dc, const eini_edges *q, eini_paths *p) {
  int n = dc->nnode;
  p->length = EINI_NEW(&dc->arena, int, n);
  p->from = EINI_NEW(&dc->arena, int, n);
  p->in = EINI_NEW(&dc->arena, int64_t, n + 1);
  p->out = EINI_NEW(&dc->arena, int64_t, n + 2);
  p->reader = EINI_NEW(&dc->arena, int, q->n);
  p->stale = EINI_NEW(&dc->arena, unsigned char, n);
  p->path = EINI_NEW(&dc->arena, int, n);
  p->arg = EINI_NEW(&dc->arena, int *, n);
  p->m = EINI_NEW(&dc->arena, double *, n);
  if (p->length == NULL || p->from == NULL || p->in == NULL || p->out == NULL ||
      p->reader == NULL || p->stale == NULL || p->path == NULL || p->arg == NULL || p->m == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < q->n; k++) {
    p->in[q->e[k].y + 1]++;
    p->out[q->e[k].x + 2]++;
  }
  for (int i = 0; i < n; i++) {
    p->in[i + 1] += p->in[i];
    p->out[i + 2] += p->out[i + 1];
  }
  for (int64_t k = 0; k < q->n; k++) p->reader[p->out[q->e[k].x + 1]++] = q->e[k].y;
  return EIN_OK;
}

// The longest path that ends at a node without a label, from those of the nodes before it.
static void eini_paths_find(const eini_edges *q, const int *label, eini_paths *p, int node) {
  p->length[node] = 1;
  p->from[node] = -1;
  for (int64_t k = p->in[node]; k < p->in[node + 1]; k++) {
    int x = q->e[k].x;
    if (label[x] >= 0 || p->length[x] < p->length[node]) continue;
    p->length[node] = p->length[x] + 1;
    p->from[node] = (int)k;
  }
}

// Marks the readers of a node; returns how many more are marked.
static int eini_path_readers(const int *label, eini_paths *p, int node, int *first) {
  int more = 0;
  for (int64_t k = p->out[node]; k < p->out[node + 1]; k++) {
    int y = p->reader[k];
    if (label[y] >= 0 || p->stale[y]) continue;
    p->stale[y] = 1;
    *first = y < *first ? y : *first;
    more++;
  }
  return more;
}

// The nodes of a path have got labels: paths through them end, and become shorter behind them.
static void eini_paths_update(const eini_edges *q, const int *label, eini_paths *p, int npath) {
  int x = INT_MAX, left = 0;
  for (int i = 0; i < npath; i++) left += eini_path_readers(label, p, p->path[i], &x);
  for (; left > 0; x++) {  // readers come later
    int before = p->length[x];
    if (!p->stale[x]) continue;
    p->stale[x] = 0;
    left--;
    eini_paths_find(q, label, p, x);
    if (p->length[x] != before) left += eini_path_readers(label, p, x, &x);
  }
}

// to[b] = the least of from[a] and the table at a, b; arg[b]: the first such a.
static ein_status eini_linear_step(eini_decomposer *dc, const eini_sumtable *t, const double *from,
                                   double *to, int *arg) {
  const eini_arena_at mark = eini_arena_mark(&dc->arena);
  int *first = EINI_NEW(&dc->arena, int, t->nclass[0]);
  int *of = EINI_NEW(&dc->arena, int, t->nclass[1]);
  double *best = EINI_NEW(&dc->arena, double, t->nclass[1]);
  if (first == NULL || of == NULL || best == NULL) return EIN_ERR_NO_MEMORY;
  for (int a = t->size[0] - 1; a >= 0; a--) {  // the least of each class, and of those the first
    int *f = &first[eini_table_class(t, 0, a)];
    if (*f == 0 || from[a] <= from[*f - 1]) *f = a + 1;
  }
  for (int b = 0; b < t->nclass[1]; b++) best[b] = INFINITY;
  for (int c = 0; c < t->nclass[0]; c++) {
    const int a = first[c] - 1;
    const double *v = t->v + (int64_t)c * t->nclass[1];
    for (int b = 0; b < t->nclass[1] && a >= 0; b++) {
      const double x = from[a] + v[b];
      if (x < best[b] || (x <= best[b] && a < of[b])) best[b] = x, of[b] = a;
    }
  }
  for (int b = 0; b < t->size[1]; b++) {
    to[b] = best[eini_table_class(t, 1, b)];
    arg[b] = of[eini_table_class(t, 1, b)];
  }
  eini_arena_rollback(&dc->arena, &mark);
  return EIN_OK;
}

// Dynamic programme along the path that ends at `last`; edges between paths do not count
// (EinDecomp, section 8). Returns its length, -1 without memory.
static int eini_linear_path(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                            eini_paths *p, int last, int *label) {
  double **m = p->m;
  int **arg = p->arg, *path = p->path, n = 0;
  for (int at = last; at >= 0; at = p->from[at] < 0 ? -1 : q->e[p->from[at]].x) path[n++] = at;
  for (int i = n - 1; i >= 0; i--) {
    int y = path[i], ky = net->size[y];
    m[i] = EINI_NEW(&dc->arena, double, ky);
    arg[i] = EINI_NEW(&dc->arena, int, ky);
    if (m[i] == NULL || arg[i] == NULL) return -1;
    if (i < n - 1 && eini_linear_step(dc, &net->table[q->e[p->from[y]].table], m[i + 1], m[i],
                                      arg[i]) != EIN_OK) return -1;
    for (int b = 0; b < ky; b++) m[i][b] += eini_form(dc, y)->unary[b];
  }
  label[last] = 0;
  for (int b = 1; b < net->size[last]; b++)
    if (m[0][b] < m[0][label[last]]) label[last] = b;
  for (int i = 0; i + 1 < n; i++) label[path[i + 1]] = arg[i][label[path[i]]];
  return n;
}

// Takes the longest path of nodes without labels, of equal ones that which ends first, then the
// next. Lengths never grow: one walk over the nodes takes all paths of a length.
static ein_status eini_linear(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                              int *label) {
  eini_paths p;
  EINI_TRY(eini_paths_make(dc, q, &p));
  const eini_arena_at at = eini_arena_mark(&dc->arena);
  for (int i = 0; i < dc->nnode; i++) label[i] = -1;
  for (int i = dc->nnode - dc->npinned; i < dc->nnode; i++) eini_paths_find(q, label, &p, i);
  for (int i = 0; i < dc->nnode - dc->npinned; i++) eini_paths_find(q, label, &p, i);
  for (;;) {
    int most = 0;
    for (int i = 0; i < dc->nnode; i++)
      if (label[i] < 0 && p.length[i] > most) most = p.length[i];
    if (most == 0) return EIN_OK;
    for (int i = 0; i < dc->nnode; i++) {
      if (label[i] >= 0 || p.length[i] != most) continue;
      int npath = eini_linear_path(dc, q, net, &p, i, label);
      if (npath < 0) return EIN_ERR_NO_MEMORY;
      eini_paths_update(q, label, &p, npath);
      eini_arena_rollback(&dc->arena, &at);
    }
  }
}
