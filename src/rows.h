// ================================================================================================
// >>rows  many small statements of one form as one task
// Takes the units of a plan; gives batches of those that have one form, wait for as many others,
// and are too small for threads to share: planned once, rows of one loop. Units come in an order in
// which those of a batch are side by side.
// ================================================================================================

#define EINI_ROWSET_LEAST 8         // fewer are tasks of their own
#define EINI_ROWSET_POINTS 32768.0  // units of so many points are shared by threads themselves

typedef struct eini_alike {    // units that are written alike, but for names
  int first, form;             // the first such unit; the first such that has its form
  int ntensor, *tensor;        // of the form's tensors: which of the first unit's it is
  int *at;                     // of its operands, and its result: which of its tensors it is
} eini_alike;

typedef struct eini_rowset {
  eini_arena *a;               // scratch
  const ein_graph *g;
  const eini_seat *seat;
  const eini_unit *unit;
  int n;
  int *kind;                   // per unit: of alike, or -1: none
  int *batch;                  // per unit: its batch, or -1
  eini_alike *alike;
  int nalike;
  eini_sketch key;             // of a unit: words
  int *number, *list, nlist;   // per tensor: its number + 1 in the unit at hand; its tensors
  // What is found, in the order of `sorted`.
  eini_unit *sorted;
  int *length, *of;            // of the batch that begins there, 0: none; number before sorting
} eini_rowset;

// ---- what lowering reads of a unit ----

static void eini_rowset_tensor(eini_rowset *w, int id) {
  if (w->number[id] == 0) {
    w->list[w->nlist++] = id;
    w->number[id] = w->nlist;
  }
  eini_sketch_word(&w->key, w->number[id]);
}

static void eini_rowset_map(eini_rowset *w, const eini_map *m) {
  eini_sketch_word(&w->key, m->rows);
  for (int r = 0; r < m->rows; r++) {
    eini_sketch_word(&w->key, m->offset[r]);
    eini_sketch_word(&w->key, m->first[r + 1]);
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      eini_sketch_word(&w->key, m->term[e].index);
      eini_sketch_word(&w->key, m->term[e].coef);
    }
  }
}

static void eini_rowset_expr(eini_rowset *w, const eini_expr *e) {
  eini_sketch_word(&w->key, e->n);
  for (int64_t i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    eini_sketch_word(&w->key, v->op | v->dtype << 8 | v->weak << 16 | v->exact << 24);
    for (int k = 0; k < 3; k++) eini_sketch_word(&w->key, v->arg[k]);
    eini_sketch_word(&w->key, v->ival);
    eini_sketch_real(&w->key, v->re);
    eini_sketch_real(&w->key, v->im);
  }
  for (int64_t i = 0; i < e->nlist; i++) eini_sketch_word(&w->key, e->list[i]);
}

// fused: operand that is never stored, or -1.
static void eini_rowset_stmt(eini_rowset *w, const eini_stmt *s, int fused) {
  const int64_t head[] = {s->nindex, s->nfree, s->fold, s->numpy, (int64_t)s->type, s->order,
                          s->noperand, fused};
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) eini_sketch_word(&w->key, head[i]);
  for (int i = 0; i < s->nindex; i++) eini_sketch_word(&w->key, s->index[i].extent);
  eini_rowset_map(w, &s->out_map);
  for (int k = 0; k < s->noperand; k++) {
    if (k != fused) eini_rowset_tensor(w, s->operand[k]);
    eini_rowset_map(w, &s->proj[k]);
  }
  eini_rowset_expr(w, &s->expr);
}

// Fills key and list. Tensors differ where lowering may see a difference.
static void eini_rowset_key(eini_rowset *w, const eini_unit *u) {
  w->key.nword = 0;
  w->nlist = 0;
  eini_rowset_stmt(w, u->s, -1);
  if (u->f != NULL) eini_rowset_stmt(w, u->f, u->via);
  eini_rowset_tensor(w, u->out);
  for (int i = 0; i < w->nlist; i++) {
    const int id = w->list[i];
    const eini_tensor *t = &w->g->tensor[id];
    w->number[id] = 0;
    eini_sketch_word(&w->key, (int64_t)t->dtype << 8 | (int64_t)t->role);
    eini_sketch_word(&w->key, t->rank);
    for (int r = 0; r < t->rank; r++) {
      eini_sketch_word(&w->key, t->shape[r]);
      eini_sketch_word(&w->key, w->seat[id].stride[r]);
    }
  }
}

// ---- forms ----

// What lowering sees of a tensor: its part, and strides.
static void eini_rowset_besides(const eini_rowset *w, const eini_unit *u, int id, int ranks,
                              int64_t *word) {
  const eini_tensor *t = &w->g->tensor[id];
  word[0] = (int64_t)t->role << 1 | (id == u->out);
  for (int r = 0; r < t->rank && r < ranks; r++) word[1 + r] = w->seat[id].stride[r];
}

// Whether whatever has the form of an expression is rounded alike: not if its factors, three or
// more, come in another order.
static ein_status eini_rowset_exact(eini_arena *a, const eini_expr *e, int *exact) {
  char *mark = EINI_NEW(a, char, e->n);
  int products = 0;
  if (mark == NULL) return EIN_ERR_NO_MEMORY;
  const int product = eini_spelling_product(e, mark);
  for (int64_t i = 0; i < e->n; i++) products += mark[i];
  *exact = !product || products <= 1;
  return EIN_OK;
}

// The form of units written alike: of those that differ in the names and the order of operands and
// indices only.
static ein_status eini_rowset_label(eini_rowset *w, eini_forms *forms, int i) {
  eini_alike *x = &w->alike[i];
  const eini_unit *u = &w->unit[x->first];
  const eini_stmt *s = u->s;
  const int n = s->noperand;
  int exact = 0, ranks = w->g->tensor[u->out].rank;
  if (u->f == NULL) EINI_TRY(eini_rowset_exact(w->a, &s->expr, &exact));
  if (!exact) return EIN_OK;
  for (int k = 0; k < n; k++) {
    const int rank = w->g->tensor[s->operand[k]].rank;
    if (rank > ranks) ranks = rank;
  }
  int64_t *word = EINI_NEW(w->a, int64_t, (int64_t)(n + 1) * (1 + ranks));
  x->at = EINI_NEW(w->a, int, n + 1);
  if (word == NULL || x->at == NULL) return EIN_ERR_NO_MEMORY;
  eini_rowset_key(w, u);  // numbers of tensors
  if (w->key.st != EIN_OK) return w->key.st;
  for (int k = 0; k <= n; k++) {
    const int id = k < n ? s->operand[k] : u->out;
    eini_rowset_besides(w, u, id, ranks, word + (int64_t)k * (1 + ranks));
    while (w->list[x->at[k]] != id) x->at[k]++;
  }
  const eini_besides b = {EINI_SAME_VALUES | EINI_SAME_EXTENTS | EINI_SAME_AXES | EINI_SAME_ALONE |
                          EINI_SAME_TENSORS, 0, 1 + ranks, NULL, word};
  eini_match m;
  EINI_TRY(eini_forms_find(forms, w->g, s, &b, i, &m));
  x->form = (int)m.first;
  const eini_alike *to = &w->alike[x->form];
  for (int k = 0; k < n; k++) x->tensor[to->at[eini_match_operand(&m, k)]] = x->at[k];
  x->tensor[to->at[n]] = x->at[n];
  return EIN_OK;
}

static ein_status eini_rowset_all(eini_rowset *w) {
  eini_forms forms;
  ein_status st = EIN_OK;
  eini_forms_init(&forms, w->a, 0);
  for (int i = 0; i < w->nalike && st == EIN_OK; i++) st = eini_rowset_label(w, &forms, i);
  eini_forms_free(&forms);
  return st;
}

// ---- batches ----

// May the unit be a row? It defines all of a tensor, in few points.
static int eini_rowset_fits(const ein_graph *g, const eini_unit *u) {
  const eini_stmt *last = u->f != NULL ? u->f : u->s;
  const double n = eini_points(u->s, NULL, 0, u->s->nindex);
  return n > 0 && n < EINI_ROWSET_POINTS && g->tensor[u->out].nstmt == 1 &&
         last->rest == EIN_REST_ERROR && last->carry == NULL && u->s->carry == NULL &&
         u->s->fold != EIN_FOLD_BLOCK;
}

// Units written alike are one kind.
static ein_status eini_rowset_kinds(eini_rowset *w, int *fit) {
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  for (int u = 0; u < w->n; u++) {
    w->kind[u] = -1;
    if (!eini_rowset_fits(w->g, &w->unit[u])) continue;
    eini_rowset_key(w, &w->unit[u]);
    if (w->key.st != EIN_OK) return w->key.st;
    const int64_t k = eini_key_number(w->a, &seen, w->key.word, w->key.nword);
    if (k < 0) return EIN_ERR_NO_MEMORY;
    w->kind[u] = (int)k;
    ++*fit;
    if (k < w->nalike) continue;
    eini_alike *x = &w->alike[w->nalike++];
    x->first = u;
    x->form = (int)k;
    x->ntensor = w->nlist;
    x->tensor = EINI_NEW(w->a, int, w->nlist);
    if (x->tensor == NULL) return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < w->nlist; i++) x->tensor[i] = i;
  }
  return EIN_OK;
}

// Batches: units of one form and depth do not wait for each other. *found: those large enough.
static ein_status eini_rowset_batches(eini_rowset *w, int *found) {
  int64_t *depth = EINI_NEW(w->a, int64_t, w->g->ntensor);
  int *size = EINI_NEW(w->a, int, w->n);
  const eini_map *m;
  const int *column;
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  if (depth == NULL || size == NULL) return EIN_ERR_NO_MEMORY;
  for (int u = 0; u < w->n; u++) {
    int64_t at = 0;
    for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++)
      at = eini_max64(at, depth[t]);
    depth[w->unit[u].out] = eini_max64(depth[w->unit[u].out], at + 1);
    w->batch[u] = -1;
    if (w->kind[u] < 0) continue;
    const int64_t key[2] = {w->alike[w->kind[u]].form, at};
    const int64_t b = eini_key_number(w->a, &seen, key, 2);
    if (b < 0) return EIN_ERR_NO_MEMORY;
    w->batch[u] = (int)b;
    size[b]++;
  }
  for (int u = 0; u < w->n; u++) {
    if (w->batch[u] >= 0 && size[w->batch[u]] < EINI_ROWSET_LEAST) w->batch[u] = -1;
    *found += w->batch[u] >= 0;
  }
  return EIN_OK;
}

// ---- order ----

typedef struct eini_rowset_queue {
  int *pending;                // per node: operands that are not made yet
  int *left;                   // per tensor: units that still make it
  int *reader, *next;          // per tensor: the first reading, + 1, and the next
  int *by;                     // node of a reading
  int *member, *more;          // per node: its first unit, + 1, and per unit the next
  eini_ranked *ready;
  int64_t nready;
} eini_rowset_queue;

static void eini_rowset_ready(eini_rowset_queue *q, int node) {
  const eini_ranked x = {0, q->member[node] - 1, node};
  q->ready[q->nready] = x;
  eini_heap_rise(q->ready, q->nready++);
}

// Nodes are units, and batches behind them.
static ein_status eini_rowset_queue_make(eini_rowset *w, eini_rowset_queue *q) {
  const int64_t nt = w->g->ntensor, nodes = 2 * (int64_t)w->n;
  const eini_map *m;
  const int *column;
  int64_t reads = 0;
  for (int u = 0; u < w->n; u++)
    for (int k = 0; eini_unit_operand(&w->unit[u], k, &m, &column) >= 0; k++) reads++;
  int *p = EINI_NEW(w->a, int, 2 * nodes + w->n + 2 * nt + 2 * reads);
  q->ready = EINI_NEW(w->a, eini_ranked, nodes);
  if (p == NULL || q->ready == NULL) return EIN_ERR_NO_MEMORY;
  q->pending = p, q->member = p + nodes, q->more = p + 2 * nodes;
  q->left = q->more + w->n, q->reader = q->left + nt, q->next = q->reader + nt;
  q->by = q->next + reads;
  q->nready = reads = 0;
  for (int u = 0; u < w->n; u++) q->left[w->unit[u].out]++;
  for (int u = w->n - 1; u >= 0; u--) {
    const int node = w->batch[u] < 0 ? u : w->n + w->batch[u];
    q->more[u] = q->member[node];
    q->member[node] = u + 1;
    for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++) {
      if (q->left[t] == 0) continue;
      q->pending[node]++;
      q->next[reads] = q->reader[t];
      q->by[reads] = node;
      q->reader[t] = (int)++reads;
    }
  }
  for (int i = 0; i < nodes; i++)
    if (q->member[i] > 0 && q->pending[i] == 0) eini_rowset_ready(q, i);
  return EIN_OK;
}

// Every unit after those it waits for, else as they were; those of a batch together.
static ein_status eini_rowset_sort(eini_rowset *w, eini_arena *plan) {
  eini_rowset_queue q;
  int n = 0;
  EINI_TRY(eini_rowset_queue_make(w, &q));
  w->sorted = EINI_NEW(plan, eini_unit, w->n);
  w->length = EINI_NEW(w->a, int, w->n);
  w->of = EINI_NEW(w->a, int, w->n);
  if (w->sorted == NULL || w->length == NULL || w->of == NULL) return EIN_ERR_NO_MEMORY;
  while (q.nready > 0) {
    const int node = (int)eini_heap_pop(q.ready, &q.nready).what, first = n;
    for (int u = q.member[node]; u > 0; u = q.more[u - 1]) {
      w->of[n] = u - 1;
      w->sorted[n++] = w->unit[u - 1];
      const int t = w->unit[u - 1].out;
      if (--q.left[t] > 0) continue;
      for (int r = q.reader[t]; r > 0; r = q.next[r - 1])
        if (--q.pending[q.by[r - 1]] == 0) eini_rowset_ready(&q, q.by[r - 1]);
    }
    if (node >= w->n) w->length[first] = n - first;
  }
  return n == w->n ? EIN_OK : EIN_ERR_INTERNAL;
}

// Finds the batches among n units; w->sorted NULL: there is none.
static ein_status eini_rowset_find(eini_rowset *w, eini_arena *a, eini_arena *plan,
                                 const eini_lowering *lo, const eini_unit *unit, int n) {
  int fit = 0, found = 0;
  memset(w, 0, sizeof *w);
  w->key.arena = a;
  w->a = a, w->g = lo->g, w->seat = lo->seat, w->unit = unit, w->n = n;
  if (n < EINI_ROWSET_LEAST) return EIN_OK;
  int64_t most = 0;
  for (int u = 0; u < n; u++)
    most = eini_max64(most, unit[u].s->noperand + (unit[u].f != NULL ? unit[u].f->noperand : 0));
  w->kind = EINI_NEW(a, int, n);
  w->batch = EINI_NEW(a, int, n);
  w->alike = EINI_NEW(a, eini_alike, n);
  w->number = EINI_NEW(a, int, lo->g->ntensor);
  w->list = EINI_NEW(a, int, most + 1);
  if (w->kind == NULL || w->batch == NULL || w->alike == NULL || w->number == NULL ||
      w->list == NULL)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_rowset_kinds(w, &fit));
  if (fit < EINI_ROWSET_LEAST) return EIN_OK;
  // Deterministic mode adds in the order that is written.
  if (!lo->g->ordered && w->nalike > 1 && 2 * w->nalike <= fit) EINI_TRY(eini_rowset_all(w));
  EINI_TRY(eini_rowset_batches(w, &found));
  return found > 0 ? eini_rowset_sort(w, plan) : EIN_OK;
}

// ---- the task of a batch ----

// The task of the batch that begins at unit `at` of w->sorted.
static ein_status eini_rowset_lower(eini_rowset *w, const eini_lowering *lo, int at, eini_task *t) {
  const int n = w->length[at], nt = w->alike[w->kind[w->of[at]]].ntensor;
  const eini_unit *u = &w->sorted[at];
  eini_lowering sub = *lo;
  eini_group *gr = EINI_NEW(lo->a, eini_group, 1);
  eini_task *form = EINI_NEW(lo->a, eini_task, 1);
  int *row = EINI_NEW(lo->a, int, (int64_t)n * nt), empty;
  if (gr == NULL || form == NULL || row == NULL) return EIN_ERR_NO_MEMORY;
  memset(t, 0, sizeof *t);
  t->kind = EINI_TASK_GROUP;
  t->group = gr;
  t->cut = -1;
  sub.width = 1;
  sub.at_home = 1;
  EINI_TRY(eini_plan_task(&sub, u->s, u->f, u->via, form, &empty));
  gr->nrow = n;
  gr->form = form;
  gr->unit = u;
  gr->row = row;
  gr->row_slots = nt;
  for (int i = 0; i < n; i++) {
    eini_rowset_key(w, &u[i]);
    if (w->key.st != EIN_OK) return w->key.st;
    const int *tensor = w->alike[w->kind[w->of[at + i]]].tensor;
    for (int k = 0; k < nt; k++) row[i * nt + k] = lo->seat[w->list[tensor[k]]].slot;
  }
  for (int s = 0; s < form->nstream; s++) {
    int k = 0;
    if (form->ref[s].slot < 0) continue;
    while (row[k] != form->ref[s].slot) k++;
    form->ref[s].slot = k;
  }
  t->parts = 1;
  eini_nest_carve(NULL, &t->scratch, (size_t)nt * sizeof(char *));
  t->scratch += form->scratch;
  return EIN_OK;
}
