// ================================================================================================
// >>compulsory  what must move wherever tasks are placed
// Takes the vectors of all forms; gives a net like that of their ways whose sums are never more: a
// task finds of what it reads one block at its place at most, the one it has most in common with.
// ================================================================================================

// Labels of a form: its vectors, or one that stands for any of those that are not known.
static int64_t eini_compulsory_size(const eini_dform *f) {
  return f->every ? f->nvector : 1;
}

static ein_status eini_compulsory_costs(eini_decomposer *dc, const eini_dform *f,
                                        const double **cost) {
  const int pin = f >= dc->node + dc->nnode - dc->npinned;
  const int64_t n = eini_compulsory_size(f);
  double *v = EINI_NEW(&dc->arena, double, n), join, agg, seconds, least;
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  *cost = v;
  for (int64_t k = 0; k < n && !pin; k++) {
    const int64_t *cut = f->vector + k * f->s->nindex;
    v[k] = !f->every ? f->least : eini_vertex_cost(dc, f, cut, &join, &agg, &seconds);
    if (!f->every) continue;
    EINI_TRY(eini_scatter_least(dc, f, cut, &least));
    v[k] = least < v[k] ? least : v[k];
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
  int *cut_of;             // [producer's vector] number of its cut
  double *found, *most;    // [cut][lane] sum over ranges of what one piece has; the most
} eini_needs;

typedef struct eini_compulsory {
  eini_decomposer *dc;
  eini_edgework w;
  eini_keys seen;
  int64_t *key, *piece;
  unsigned char *scattered;  // [producer's vector] its results may be
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
  const int64_t na = w->x->nvector, nb = w->y->nvector;
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
    while (k < ncut && cut[k] != w->x->vector[v * nx + c]) k++;
    if (k == ncut) cut[ncut++] = w->x->vector[v * nx + c];
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

// What an edge costs at least for two vectors.
static double eini_compulsory_pair(const eini_compulsory *t, const eini_needs *q, int64_t a,
                                   int64_t b, double bytes) {
  const eini_stmt *x = t->w.x->s, *y = t->w.y->s;
  const double tasks = (double)eini_tasks(t->w.y->vector + b * y->nindex, y->nindex);
  const int64_t *from = t->w.x->vector + a * x->nindex;
  const double homes = (double)eini_tasks(from, t->scattered[a] ? x->nindex : x->nfree);
  double need = tasks, found = tasks, most = homes, least = 1;
  for (int c = 0; c < x->nfree; c++) {
    const int lane = q[c].of[b];
    const int64_t at = (int64_t)q[c].cut_of[a] * q[c].n + lane;
    need *= q[c].sum[lane] / q[c].ranges[lane];
    found *= q[c].found[at] / q[c].ranges[lane];
    most *= q[c].most[at];
    least *= q[c].least[lane];
  }
  if (t->scattered[a]) most = found;  // of finer blocks there are more
  double moved = need - (found < most ? found : most) - 1e-12 * need;
  if (moved <= 0.5) return 0;  // it is a whole number of elements
  if (t->dc->desc->cost == EIN_COST_BYTES) return moved * bytes;
  moved /= tasks;
  if (homes < tasks && least > moved) moved = least;  // some task finds nothing
  return eini_link_seconds(&t->dc->machine, moved * bytes);
}

// The table of an edge over the vectors of its producer and its reader.
static ein_status eini_compulsory_table(eini_decomposer *dc, eini_sums *net, const eini_dedge *e,
                                        int *id) {
  eini_compulsory t;
  memset(&t, 0, sizeof t);
  t.dc = dc;
  t.w.x = eini_form(dc, e->x);
  t.w.y = eini_form(dc, e->y);
  t.w.k = e->k;
  const eini_stmt *x = t.w.x->s, *y = t.w.y->s;
  const int64_t na = eini_compulsory_size(t.w.x), nb = eini_compulsory_size(t.w.y);
  int size[2];
  size[0] = (int)na;
  size[1] = (int)nb;
  double *v = EINI_NEW(&dc->arena, double, na * nb);
  eini_needs *q = EINI_NEW(&dc->arena, eini_needs, x->nfree);
  t.key = EINI_NEW(&dc->arena, int64_t, 2 * (int64_t)y->nindex + 1);
  t.scattered = EINI_NEW(&dc->arena, unsigned char, na);
  if (v == NULL || q == NULL || t.key == NULL || t.scattered == NULL) return EIN_ERR_NO_MEMORY;
  t.piece = t.key + y->nindex;
  for (int64_t a = 0; a < na && t.w.x->every; a++)
    t.scattered[a] = eini_scatter_index(dc, t.w.x, t.w.x->vector + a * x->nindex) >= 0;
  EINI_TRY(eini_edgework_rooms(dc, &t.w));
  if (!t.w.several && eini_needs_apart(&t.w) && t.w.x->every && t.w.y->every) {
    for (int c = 0; c < x->nfree; c++) EINI_TRY(eini_needs_make(&t, c, &q[c]));
    for (int64_t a = 0; a < na; a++)
      for (int64_t b = 0; b < nb; b++)
        v[a * nb + b] = eini_compulsory_pair(&t, q, a, b, eini_element_bytes(dc, x->out));
  }
  return eini_sums_table(net, 2, size, v, id);
}

static const eini_labels eini_vector_labels = {eini_compulsory_size, eini_compulsory_costs,
                                               eini_compulsory_table};

#define EINI_COMPULSORY_CELLS 16777216.0  // of all edges' tables

// Vectors of the least sum come first in their forms.
static ein_status eini_compulsory_raise(eini_decomposer *dc, const int *label) {
  unsigned char **mark = EINI_NEW(&dc->arena, unsigned char *, dc->nnode);
  if (mark == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    const int form = dc->form_of[i];
    if (!dc->node[form].every) continue;
    if (mark[form] == NULL)
      mark[form] = EINI_NEW(&dc->arena, unsigned char, dc->node[form].nvector);
    if (mark[form] == NULL) return EIN_ERR_NO_MEMORY;
    mark[form][label[i]] = 1;
  }
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    const int64_t n = f->s->nindex;
    if (mark[i] == NULL) continue;
    int64_t *to = EINI_NEW(&dc->arena, int64_t, f->nvector * n), *at = to;
    if (to == NULL) return EIN_ERR_NO_MEMORY;
    for (int pass = 1; pass >= 0; pass--) {
      for (int64_t k = 0; k < f->nvector; k++) {
        if (mark[i][k] != pass || n == 0) continue;
        memcpy(at, f->vector + k * n, (size_t)n * sizeof *at);
        at += n;
      }
    }
    f->vector = to;
  }
  return EIN_OK;
}

// A lower bound for all labels, also those of vectors that are dropped. raise: vectors that it
// takes come first.
static ein_status eini_compulsory_bound(eini_decomposer *dc, eini_edges *q, int raise) {
  double cells = 0, total, lower;
  for (int64_t k = 0; k < q->nshared; k++)
    cells += (double)eini_compulsory_size(eini_form(dc, q->e[q->shared[k]].x)) *
             (double)eini_compulsory_size(eini_form(dc, q->e[q->shared[k]].y));
  if (cells > EINI_COMPULSORY_CELLS) return EIN_OK;
  int *label = EINI_NEW(&dc->arena, int, dc->nnode);
  if (label == NULL) return EIN_ERR_NO_MEMORY;
  const eini_arena_at mark = eini_arena_mark(&dc->arena);
  eini_sums net;
  EINI_TRY(eini_sums_make(dc, q, &eini_vector_labels, &net));
  EINI_TRY(eini_sums_solve(&net, 1, label, &total, &lower));
  if (lower > dc->lower) dc->lower = lower;
  eini_arena_rollback(&dc->arena, &mark);
  return raise ? eini_compulsory_raise(dc, label) : EIN_OK;
}
