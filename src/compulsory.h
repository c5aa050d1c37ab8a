// ================================================================================================
// >>compulsory  what must move wherever tasks are placed
// Takes the vectors of all forms; gives a net like that of their ways whose sums are never more: a
// task finds of what it reads one block at its place at most, the one it has most in common with.
// ================================================================================================

// Labels of a form: its vectors, and each with its results scattered along an index; or one that
// stands for any of those that are not known.
typedef struct eini_bounded {
  int64_t n, nhome;
  int *vector, *over, *home_of;  // [label] over: -1 where results lie with their tasks
  int64_t *home;           // [home][index] cuts of blocks
} eini_bounded;

static void eini_bounded_home(const eini_dform *f, const int64_t *cut, int c, int over,
                              int64_t *home) {
  for (int i = 0; i < f->s->nindex; i++)
    home[i] = i >= f->s->nfree ? 1 : i == over ? cut[i] * cut[c] : cut[i];
}

// Labels of one form; pass 0 counts them.
static ein_status eini_bounded_fill(eini_decomposer *dc, const eini_dform *f, eini_bounded *l,
                                    int pass) {
  const int n = f->s->nindex;
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  l->n = 0;
  for (int64_t k = 0; k < f->nvector; k++) {
    const int64_t *cut = f->vector + k * n;
    const int c = eini_scatter_index(dc, f, cut);
    for (int over = -1; over < (c < 0 ? 0 : f->s->nfree); over++) {
      if (over >= 0 && !eini_scatter_over(f, cut, c, over)) continue;
      const int64_t at = l->n++;
      if (pass == 0) continue;
      int64_t *home = l->home + l->nhome * n;
      eini_bounded_home(f, cut, c, over, home);
      const int64_t id = eini_key_number(&dc->arena, &seen, home, f->s->nfree);
      if (id < 0) return EIN_ERR_NO_MEMORY;
      l->nhome += id == l->nhome;
      l->vector[at] = (int)k;
      l->over[at] = over;
      l->home_of[at] = (int)id;
    }
  }
  return EIN_OK;
}

static ein_status eini_bounded_make(eini_decomposer *dc, const eini_dform *f, eini_bounded *l) {
  eini_arena *a = &dc->arena;
  l->n = 1;
  if (!f->every) return EIN_OK;
  EINI_TRY(eini_bounded_fill(dc, f, l, 0));
  l->vector = EINI_NEW(a, int, l->n);
  l->over = EINI_NEW(a, int, l->n);
  l->home_of = EINI_NEW(a, int, l->n);
  l->home = EINI_NEW(a, int64_t, (l->n + 1) * f->s->nindex);
  if (l->vector == NULL || l->over == NULL || l->home_of == NULL || l->home == NULL)
    return EIN_ERR_NO_MEMORY;
  return eini_bounded_fill(dc, f, l, 1);
}

static eini_bounded *eini_bounded_of(const eini_decomposer *dc, const eini_dform *f) {
  return &dc->bounded[f - dc->node];
}

static int64_t eini_compulsory_size(const eini_decomposer *dc, const eini_dform *f) {
  return eini_bounded_of(dc, f)->n;
}

static ein_status eini_compulsory_costs(eini_decomposer *dc, const eini_dform *f,
                                        const double **cost) {
  const int pin = f >= dc->node + dc->nnode - dc->npinned, n = f->s->nindex;
  const eini_bounded *l = eini_bounded_of(dc, f);
  double *v = EINI_NEW(&dc->arena, double, l->n), join, agg, seconds;
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  *cost = v;
  if (!f->every) v[0] = pin ? 0 : f->least;
  for (int64_t k = 0; k < l->n && !pin && f->every; k++) {
    const int64_t *cut = f->vector + l->vector[k] * (int64_t)n;
    v[k] = eini_vertex_cost(dc, f, cut, &join, &agg, &seconds);
    if (l->over[k] < 0) continue;
    EINI_TRY(eini_scatter_cost(dc, f, cut, eini_scatter_index(dc, f, cut),
                               l->home + l->home_of[k] * (int64_t)n, &agg, &seconds));
    v[k] = dc->desc->cost == EIN_COST_BYTES ? join + agg : seconds;
  }
  return EIN_OK;
}

// What the reader's tasks read of one of the producer's free indices, for each way to cut the
// indices it depends on; and what of that one of the producer's pieces has at most.
typedef struct eini_needs {
  int n;                   // lanes
  int *of;                 // [reader's vector] its lane
  double *sum, *least;     // [lane] over its ranges: elements; the fewest
  double *ranges;          // [lane] how many
  int *cut_of;             // [producer's home] number of its cut
  double *found, *most;    // [cut][lane] sum over ranges of what one piece has; the most
} eini_needs;

typedef struct eini_compulsory {
  eini_decomposer *dc;
  eini_edgework w;
  eini_keys seen;
  int64_t *key, *piece;
  const eini_bounded *from;  // labels of the producer
} eini_compulsory;

// Is each index of the reader in one coordinate at most, so that ranges combine freely?
static int eini_needs_apart(eini_edgework *w) {
  for (int i = 0; i < w->y->s->nindex; i++) {
    int uses = 0;
    for (int c = 0; c < w->nd - 1; c++) uses += eini_lane_uses(w, 1, c, i);
    if (uses > 1) return 0;
  }
  return 1;
}

// The elements of [lo, hi) that the best of `cut` pieces of an extent has.
static double eini_piece_best(int64_t extent, int64_t cut, int64_t lo, int64_t hi) {
  int64_t best = 0;
  if (hi <= lo) return 0;
  for (int64_t k = eini_piece_of(extent, cut, lo); k < cut; k++) {
    const int64_t from = eini_piece_start(extent, cut, k);
    const int64_t to = eini_piece_start(extent, cut, k + 1);
    if (from >= hi) break;
    best = eini_max64(best, eini_min64(hi, to) - eini_max64(lo, from));
  }
  return (double)best;
}

// Sums over all ranges of a lane: those of the reader's pieces, of a vector that has it.
static void eini_needs_lane(eini_compulsory *t, int c, int lane, const int64_t *vector, int ncut,
                            const int64_t *cut, eini_needs *q) {
  eini_edgework *w = &t->w;
  const eini_stmt *s = w->y->s, *x = w->x->s;
  const eini_stmt_block b = eini_block_of(w->klo, w->khi, NULL);
  int i = 0;
  for (int k = 0; k < s->nindex; k++) {
    t->piece[k] = w->klo[k] = 0;
    w->khi[k] = s->index[k].extent;
  }
  q->sum[lane] = q->ranges[lane] = 0;
  q->least[lane] = INFINITY;
  while (i >= 0) {
    for (int k = 0; k < s->nindex; k++) {
      if (vector[k] == 1 || !eini_lane_uses(w, 1, c, k)) continue;
      w->klo[k] = eini_piece_start(s->index[k].extent, vector[k], t->piece[k]);
      w->khi[k] = eini_piece_start(s->index[k].extent, vector[k], t->piece[k] + 1);
    }
    eini_block_hull(s, &b, w->k, w->from, w->to);
    eini_box_ranges(x, w->from, w->to, w->lo, w->hi);
    const double n = (double)eini_max64(0, w->hi[c] - w->lo[c]);
    q->sum[lane] += n;
    q->ranges[lane]++;
    if (n < q->least[lane]) q->least[lane] = n;
    for (int a = 0; a < ncut; a++) {
      const double found = eini_piece_best(x->index[c].extent, cut[a], w->lo[c], w->hi[c]);
      double *most = &q->most[(int64_t)a * q->n + lane];
      q->found[(int64_t)a * q->n + lane] += found;
      if (found > *most) *most = found;
    }
    for (i = s->nindex - 1; i >= 0; i--) {
      if (vector[i] == 1 || !eini_lane_uses(w, 1, c, i)) continue;
      if (++t->piece[i] < vector[i]) break;
      t->piece[i] = 0;
    }
  }
}

// The lanes of the producer's index c, and its cuts.
static ein_status eini_needs_make(eini_compulsory *t, int c, eini_needs *q) {
  eini_edgework *w = &t->w;
  eini_arena *a = &t->dc->arena;
  const int64_t na = t->from->nhome, nb = w->y->nvector;
  const int nx = w->x->s->nindex, ny = w->y->s->nindex;
  int64_t *first = EINI_NEW(a, int64_t, nb), *cut = EINI_NEW(a, int64_t, na);
  int ncut = 0;
  q->of = EINI_NEW(a, int, nb);
  q->cut_of = EINI_NEW(a, int, na);
  if (first == NULL || cut == NULL || q->of == NULL || q->cut_of == NULL) return EIN_ERR_NO_MEMORY;
  memset(&t->seen, 0, sizeof t->seen);
  q->n = 0;
  for (int64_t v = 0; v < nb; v++) {
    int len = 0;
    for (int i = 0; i < ny; i++)
      if (eini_lane_uses(w, 1, c, i)) t->key[len++] = w->y->vector[v * ny + i];
    const int64_t id = eini_key_number(a, &t->seen, t->key, len);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    if (id == q->n) first[q->n++] = v;
    q->of[v] = (int)id;
  }
  for (int64_t v = 0; v < na; v++) {
    int k = 0;
    while (k < ncut && cut[k] != t->from->home[v * nx + c]) k++;
    if (k == ncut) cut[ncut++] = t->from->home[v * nx + c];
    q->cut_of[v] = k;
  }
  q->sum = EINI_NEW(a, double, q->n);
  q->least = EINI_NEW(a, double, q->n);
  q->ranges = EINI_NEW(a, double, q->n);
  q->found = EINI_NEW(a, double, (int64_t)q->n * ncut);
  q->most = EINI_NEW(a, double, (int64_t)q->n * ncut);
  if (q->sum == NULL || q->least == NULL || q->ranges == NULL || q->found == NULL ||
      q->most == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < q->n; k++)
    eini_needs_lane(t, c, k, w->y->vector + first[k] * ny, ncut, cut, q);
  return EIN_OK;
}

// What an edge costs at least for blocks and a vector.
static double eini_compulsory_pair(const eini_compulsory *t, const eini_needs *q, int64_t a,
                                   int64_t b, double bytes) {
  const eini_stmt *x = t->w.x->s, *y = t->w.y->s;
  const double tasks = (double)eini_tasks(t->w.y->vector + b * y->nindex, y->nindex);
  const double homes = (double)eini_tasks(t->from->home + a * x->nindex, x->nfree);
  double need = tasks, found = tasks, most = homes, least = 1;
  for (int c = 0; c < x->nfree; c++) {
    const int lane = q[c].of[b];
    const int64_t at = (int64_t)q[c].cut_of[a] * q[c].n + lane;
    need *= q[c].sum[lane] / q[c].ranges[lane];
    found *= q[c].found[at] / q[c].ranges[lane];
    most *= q[c].most[at];
    least *= q[c].least[lane];
  }
  double moved = need - (found < most ? found : most) - 1e-12 * need;
  if (moved <= 0.5) return 0;  // it is a whole number of elements
  if (t->dc->desc->cost == EIN_COST_BYTES) return moved * bytes;
  moved /= tasks;
  if (homes < tasks && least > moved) moved = least;  // some task finds nothing
  return eini_link_seconds(&t->dc->machine, moved * bytes);
}

// The table of an edge over the blocks of its producer and the vectors of its reader.
static ein_status eini_compulsory_table(eini_decomposer *dc, eini_sums *net, const eini_dedge *e,
                                        int *id) {
  eini_compulsory t;
  memset(&t, 0, sizeof t);
  t.dc = dc;
  t.w.x = eini_form(dc, e->x);
  t.w.y = eini_form(dc, e->y);
  t.w.k = e->k;
  t.from = eini_bounded_of(dc, t.w.x);
  const eini_bounded *to = eini_bounded_of(dc, t.w.y);
  const eini_stmt *x = t.w.x->s, *y = t.w.y->s;
  const int64_t na = t.w.x->every ? t.from->nhome : 1, nb = t.w.y->every ? t.w.y->nvector : 1;
  int size[2];
  size[0] = (int)t.from->n;
  size[1] = (int)to->n;
  double *v = EINI_NEW(&dc->arena, double, na * nb);
  eini_needs *q = EINI_NEW(&dc->arena, eini_needs, x->nfree);
  t.key = EINI_NEW(&dc->arena, int64_t, 2 * (int64_t)y->nindex + 1);
  if (v == NULL || q == NULL || t.key == NULL) return EIN_ERR_NO_MEMORY;
  t.piece = t.key + y->nindex;
  EINI_TRY(eini_edgework_rooms(dc, &t.w));
  if (!t.w.several && eini_needs_apart(&t.w) && t.w.x->every && t.w.y->every) {
    for (int c = 0; c < x->nfree; c++) EINI_TRY(eini_needs_make(&t, c, &q[c]));
    for (int64_t a = 0; a < na; a++)
      for (int64_t b = 0; b < nb; b++)
        v[a * nb + b] = eini_compulsory_pair(&t, q, a, b, eini_element_bytes(dc, x->out));
  }
  EINI_TRY(eini_sums_table(net, 2, size, v, id));
  eini_sumtable *table = &net->table[*id];
  table->of[0] = t.from->home_of, table->nclass[0] = (int)na;
  table->of[1] = to->vector, table->nclass[1] = (int)nb;
  return EIN_OK;
}

static const eini_labels eini_vector_labels = {eini_compulsory_size, eini_compulsory_costs,
                                               eini_compulsory_table};

#define EINI_COMPULSORY_CELLS 16777216.0  // of all edges' tables

// Notes the vectors that labels take; raised: [form][vector], NULL where they are not known.
static void eini_compulsory_note(const eini_decomposer *dc, const int *label, int *const *left,
                                 unsigned char *const *raised) {
  for (int i = 0; i < dc->nnode; i++) {
    const int form = dc->form_of[i];
    if (raised[form] != NULL)
      raised[form][dc->bounded[form].vector[left[form][label[i]]]] = 1;
  }
}

// They come first in their forms.
static ein_status eini_compulsory_raise(eini_decomposer *dc, unsigned char *const *raised) {
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    const int64_t n = f->s->nindex;
    if (raised[i] == NULL) continue;
    int64_t *to = EINI_NEW(&dc->arena, int64_t, f->nvector * n), *at = to;
    if (to == NULL) return EIN_ERR_NO_MEMORY;
    for (int pass = 1; pass >= 0; pass--) {
      for (int64_t k = 0; k < f->nvector; k++) {
        if (raised[i][k] != pass) continue;
        f->nraised += pass;
        if (n > 0) memcpy(at, f->vector + k * n, (size_t)n * sizeof *at);
        at += n;
      }
    }
    f->vector = to;
  }
  return EIN_OK;
}

// The least sum of the net, and what it takes.
static ein_status eini_compulsory_solve(eini_decomposer *dc, eini_edges *q,
                                        unsigned char *const *raised) {
  double cells = 0, total, lower;
  int *label = EINI_NEW(&dc->arena, int, dc->nnode), **left;
  dc->bounded = EINI_NEW(&dc->arena, eini_bounded, dc->nnode);
  if (label == NULL || dc->bounded == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++)
    if (dc->form_of[i] == i) EINI_TRY(eini_bounded_make(dc, &dc->node[i], &dc->bounded[i]));
  for (int64_t k = 0; k < q->nshared; k++)
    cells += (double)eini_bounded_of(dc, eini_form(dc, q->e[q->shared[k]].x))->nhome *
             (double)eini_form(dc, q->e[q->shared[k]].y)->nvector;
  if (cells > EINI_COMPULSORY_CELLS) return EIN_OK;
  eini_sums net;
  EINI_TRY(eini_sums_make(dc, q, &eini_vector_labels, &net));
  EINI_TRY(eini_drop_labels(dc, q, &net, &left));
  EINI_TRY(eini_sums_solve(&net, 1, label, &total, &lower));
  if (lower > dc->lower) dc->lower = lower;
  eini_compulsory_note(dc, label, left, raised);
  return EIN_OK;
}

// A lower bound for all labels, also those of vectors that are dropped. raise: vectors that it
// takes come first.
static ein_status eini_compulsory_bound(eini_decomposer *dc, eini_edges *q, int raise) {
  unsigned char **raised = EINI_NEW(&dc->arena, unsigned char *, dc->nnode);
  if (raised == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode && raise; i++) {
    if (dc->form_of[i] != i || !dc->node[i].every) continue;
    raised[i] = EINI_NEW(&dc->arena, unsigned char, dc->node[i].nvector);
    if (raised[i] == NULL) return EIN_ERR_NO_MEMORY;
  }
  const eini_arena_at mark = eini_arena_mark(&dc->arena);
  EINI_TRY(eini_compulsory_solve(dc, q, raised));
  eini_arena_rollback(&dc->arena, &mark);
  return eini_compulsory_raise(dc, raised);
}
