// ================================================================================================
// >>labelling  one order of the vertices of a coloured graph, whatever their numbers
// Takes a graph; gives an order that is the same, up to automorphisms, for all graphs that are
// isomorphic to it.
// ================================================================================================

// Colours are refined by what vertices are joined to. What is left falls into components, which are
// ordered alone; in one that holds together, the vertices of one colour are singled out in turn,
// and the least of what comes of it is taken. A vertex that an automorphism takes to one that was
// tried is not tried. After McKay and Piperno, Practical graph isomorphism II (2014), and Junttila
// and Kaski, Conflict propagation and component recursion for canonical labeling (2011).

// Half of an arc, kept at both of its ends: where it leads, and what it is, seen from here.
typedef struct eini_link {
  int to;
  uint64_t key;
} eini_link;

typedef struct eini_colours {  // a graph; at most one arc from a vertex to another
  int n;
  uint64_t *colour;
  int64_t *first;              // n + 1, into half
  eini_link *half;
} eini_colours;

// Vertices by colour: those of a cell stand side by side, and a cell is known by its first place.
typedef struct eini_cells {
  int *lab, *at;               // vertices; the place of each
  int *cell, *size;            // of a vertex; of a cell
  int *queue;                  // cells to refine by, a ring
  char *queued;
  uint64_t *sum, *self;        // of a vertex: what joins it to the cell at hand; its number
  int *touched;                // cells, which are marked
  char *mark;
  int n, ncell, head, nqueue;
} eini_cells;

typedef struct eini_labeller {
  eini_arena *arena;
  int64_t left;                // halves that may still be looked at; < 0: given up
} eini_labeller;

#define EINI_LABEL_DEPTH 200   // vertices singled out after one another at most: each takes stack

// A good mixture of two words, the same on all machines (the finaliser of splitmix64).
static uint64_t eini_mix(uint64_t h, uint64_t x) {
  h = (h ^ x) + 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

static void eini_sift(int *v, int at, int end, const uint64_t *key) {
  for (int kid; (kid = 2 * at + 1) < end; at = kid) {
    kid += kid + 1 < end && key[v[kid]] < key[v[kid + 1]];
    if (key[v[kid]] <= key[v[at]]) break;
    const int x = v[at];
    v[at] = v[kid];
    v[kid] = x;
  }
}

// Vertices by their keys, ascending; no input is slow.
static void eini_sort_by(int *v, int n, const uint64_t *key) {
  if (n <= 16) {
    for (int i = 1; i < n; i++) {
      const int x = v[i];
      int k = i;
      for (; k > 0 && key[v[k - 1]] > key[x]; k--) v[k] = v[k - 1];
      v[k] = x;
    }
    return;
  }
  for (int i = n / 2 - 1; i >= 0; i--) eini_sift(v, i, n, key);
  for (int end = n - 1; end > 0; end--) {
    const int x = v[0];
    v[0] = v[end];
    v[end] = x;
    eini_sift(v, 0, end, key);
  }
}

// Numbers in the order that a function gives them; equal ones stay as they are. other: n of room.
// Takes time by the runs that are in order already.
static void eini_merge_sort(int *v, int *other, int n, const void *of,
                            int (*order)(const void *of, int a, int b)) {
  for (int runs = 2; runs > 1;) {
    runs = 0;
    for (int from = 0, mid, end; from < n; from = end, runs++) {
      for (mid = from + 1; mid < n && order(of, v[mid - 1], v[mid]) <= 0;) mid++;
      for (end = mid < n ? mid + 1 : n; end < n && order(of, v[end - 1], v[end]) <= 0;) end++;
      for (int a = from, b = mid, to = from; to < end; to++)
        other[to] = b >= end || (a < mid && order(of, v[a], v[b]) <= 0) ? v[a++] : v[b++];
    }
    if (n > 0) memcpy(v, other, (size_t)n * sizeof *v);
  }
}

// ---- cells ----

static ein_status eini_cells_new(eini_arena *a, int n, eini_cells *c) {
  memset(c, 0, sizeof *c);
  int *p = EINI_NEW(a, int, 6 * (int64_t)n);
  c->sum = EINI_NEW(a, uint64_t, 2 * (int64_t)n);
  c->queued = EINI_NEW(a, char, 2 * (int64_t)n);
  if (p == NULL || c->sum == NULL || c->queued == NULL) return EIN_ERR_NO_MEMORY;
  c->n = n;
  c->lab = p;
  c->at = p + n;
  c->cell = p + 2 * (int64_t)n;
  c->size = p + 3 * (int64_t)n;
  c->queue = p + 4 * (int64_t)n;
  c->touched = p + 5 * (int64_t)n;
  c->self = c->sum + n;
  c->mark = c->queued + n;
  for (int i = 0; i < n; i++) c->self[i] = (uint64_t)i;
  return EIN_OK;
}

// The same cells; nothing is queued.
static void eini_cells_copy(eini_cells *to, const eini_cells *c) {
  memcpy(to->lab, c->lab, 4 * (size_t)c->n * sizeof *c->lab);
  to->ncell = c->ncell;
}

static void eini_cells_queue(eini_cells *c, int cell) {
  if (c->queued[cell]) return;
  c->queued[cell] = 1;
  c->queue[(c->head + c->nqueue++) % c->n] = cell;
}

// Vertices from place `from` to `to` are a cell.
static void eini_cells_cut(eini_cells *c, int from, int to) {
  c->size[from] = to - from;
  for (int i = from; i < to; i++) {
    c->cell[c->lab[i]] = from;
    c->at[c->lab[i]] = i;
  }
}

// Splits a cell by the sums of its vertices, and forgets them; what can be seen of it, whatever
// vertices were numbered.
static uint64_t eini_cells_split(eini_cells *c, int cell, uint64_t trace) {
  const int end = cell + c->size[cell];
  int largest = cell, parts = 0, queued = c->queued[cell], alike = cell + 1;
  while (alike < end && c->sum[c->lab[alike]] == c->sum[c->lab[cell]]) alike++;
  if (alike < end) eini_sort_by(c->lab + cell, end - cell, c->sum);  // or places stay as they are
  for (int i = cell, k; i < end; i = k) {
    const uint64_t x = c->sum[c->lab[i]];
    for (k = i + 1; k < end && c->sum[c->lab[k]] == x; k++) {}
    trace = eini_mix(eini_mix(trace, x), (uint64_t)k);
    if (i > cell || k < end) eini_cells_cut(c, i, k);
    if (c->size[i] > c->size[largest]) largest = i;
    parts++;
  }
  c->ncell += parts - 1;
  for (int i = cell; i < end; i += c->size[i])
    if (parts > 1 && (queued || i != largest)) eini_cells_queue(c, i);
  for (int i = cell; i < end; i++) c->sum[c->lab[i]] = 0;
  return trace;
}

// Splits cells until all vertices of one see the same of each other one.
static uint64_t eini_cells_refine(eini_labeller *w, const eini_colours *g, eini_cells *c) {
  uint64_t trace = 0;
  while (c->nqueue > 0) {
    const int s = c->queue[c->head], end = s + c->size[s];
    int ntouched = 0;
    c->head = (c->head + 1) % c->n;
    c->nqueue--;
    c->queued[s] = 0;
    if (c->ncell == c->n) continue;
    for (int i = s; i < end; i++) {
      const int v = c->lab[i];
      for (int64_t h = g->first[v]; h < g->first[v + 1]; h++) {
        const int u = g->half[h].to, cell = c->cell[u];
        if (c->size[cell] == 1) continue;
        if (!c->mark[cell]) c->mark[cell] = 1, c->touched[ntouched++] = cell;
        c->sum[u] += eini_mix(g->half[h].key, 1);
      }
      w->left -= g->first[v + 1] - g->first[v];
    }
    eini_sort_by(c->touched, ntouched, c->self);
    trace = eini_mix(trace, (uint64_t)s);
    for (int i = 0; i < ntouched; i++) {
      c->mark[c->touched[i]] = 0;
      w->left -= c->size[c->touched[i]];
      trace = eini_cells_split(c, c->touched[i], eini_mix(trace, (uint64_t)c->touched[i]));
    }
  }
  return trace;
}

// Cells by colour, refined.
static ein_status eini_cells_begin(eini_labeller *w, const eini_colours *g, eini_cells *c) {
  EINI_TRY(eini_cells_new(w->arena, g->n, c));
  for (int i = 0; i < g->n; i++) c->lab[i] = i;
  eini_sort_by(c->lab, g->n, g->colour);
  for (int i = 0, k; i < g->n; i = k, c->ncell++) {
    for (k = i + 1; k < g->n && g->colour[c->lab[k]] == g->colour[c->lab[i]]; k++) {}
    eini_cells_cut(c, i, k);
    eini_cells_queue(c, i);
  }
  eini_cells_refine(w, g, c);
  return EIN_OK;
}

// A vertex gets a cell of its own, before the others of its cell.
static uint64_t eini_cells_single(eini_labeller *w, const eini_colours *g, eini_cells *c, int v) {
  const int cell = c->cell[v], end = cell + c->size[cell], other = c->lab[cell];
  c->lab[c->at[v]] = other;
  c->lab[cell] = v;
  eini_cells_cut(c, cell, cell + 1);
  eini_cells_cut(c, cell + 1, end);
  c->ncell++;
  eini_cells_queue(c, cell);
  return eini_cells_refine(w, g, c);
}

// ---- what an order makes of a graph ----

static int64_t eini_certificate_size(const eini_colours *g) {
  return 2 * ((int64_t)g->n + g->first[g->n]);
}

// The graph with its vertices numbered by their places: equal where an isomorphism that keeps
// colours takes one order to the other. place: n words of room.
static void eini_certificate(const eini_colours *g, const int *order, uint64_t *place,
                             uint64_t *out) {
  for (int i = 0; i < g->n; i++) place[order[i]] = (uint64_t)i;
  for (int i = 0; i < g->n; i++) {
    const int v = order[i];
    uint64_t *list = out + 2;
    out[0] = g->colour[v];
    out[1] = (uint64_t)(g->first[v + 1] - g->first[v]);
    for (int64_t h = g->first[v], n = 0; h < g->first[v + 1]; h++, n++) {
      const uint64_t to = place[g->half[h].to];
      int64_t k = n;
      for (; k > 0 && list[2 * k - 2] > to; k--)
        list[2 * k] = list[2 * k - 2], list[2 * k + 1] = list[2 * k - 1];
      list[2 * k] = to;
      list[2 * k + 1] = g->half[h].key;
    }
    out = list + 2 * out[1];
  }
}

static int eini_words_order(const uint64_t *a, const uint64_t *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

// ---- components ----

static int eini_union_find(int *up, int v) {
  while (up[v] != v) v = up[v] = up[up[v]];
  return v;
}

// The least is the root.
static void eini_union_join(int *up, int a, int b) {
  a = eini_union_find(up, a);
  b = eini_union_find(up, b);
  if (a < b) up[b] = a;
  else up[a] = b;
}

// Joins vertices by arcs that tell vertices of two cells apart: not those to a cell of one, nor
// those that join all of a cell to all of another alike, which are left out (skip of a half).
static ein_status eini_components(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                  int *up, char *skip) {
  int *count = EINI_NEW(w->arena, int, g->n);
  char *mixed = EINI_NEW(w->arena, char, g->n);
  uint64_t *key = EINI_NEW(w->arena, uint64_t, g->n);
  if (count == NULL || mixed == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  for (int v = 0; v < g->n; v++) up[v] = v;
  for (int v = 0; v < g->n; v++) {
    const int own = c->cell[v], single = c->size[own] == 1;
    const eini_link *half = g->half + g->first[v];
    const int64_t n = g->first[v + 1] - g->first[v];
    for (int64_t h = 0; h < n && !single; h++) {
      const int cell = c->cell[half[h].to];
      if (count[cell]++ == 0) key[cell] = half[h].key;
      mixed[cell] |= half[h].key != key[cell];
    }
    for (int64_t h = 0; h < n; h++) {
      const int cell = c->cell[half[h].to];
      const int all = c->size[cell] == 1 ||
                      (count[cell] == c->size[cell] - (cell == own) && !mixed[cell]);
      skip[g->first[v] + h] = (char)(single || all);
      if (!single && !all) eini_union_join(up, v, half[h].to);
    }
    for (int64_t h = 0; h < n; h++) {
      count[c->cell[half[h].to]] = 0;
      mixed[c->cell[half[h].to]] = 0;
    }
  }
  return EIN_OK;
}

// The graph of n vertices and the arcs between them that count; local: the number of a vertex in
// it, for those it has.
static ein_status eini_component(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                 const int *vertex, int n, int *local, const char *skip,
                                 eini_colours *sub) {
  int64_t most = 0, k = 0;
  for (int i = 0; i < n; i++) {
    local[vertex[i]] = i;
    most += g->first[vertex[i] + 1] - g->first[vertex[i]];
  }
  sub->n = n;
  sub->colour = EINI_NEW(w->arena, uint64_t, n);
  sub->first = EINI_NEW(w->arena, int64_t, n + 1);
  sub->half = EINI_NEW(w->arena, eini_link, most);
  if (sub->colour == NULL || sub->first == NULL || sub->half == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    const int v = vertex[i];
    sub->colour[i] = (uint64_t)c->cell[v];
    for (int64_t h = g->first[v]; h < g->first[v + 1]; h++) {
      if (skip[h]) continue;
      sub->half[k] = g->half[h];
      sub->half[k++].to = local[g->half[h].to];
    }
    sub->first[i + 1] = k;
  }
  w->left -= most + n;
  return EIN_OK;
}

static ein_status eini_label_cells(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                   int dive, int depth, int *order);  // cells nest

typedef struct eini_labelled {  // a component in order
  int n, *order;                // vertices of the whole
  int64_t size;
  uint64_t *certificate;
} eini_labelled;

static int eini_labelled_order(const void *set, int i, int k) {
  const eini_labelled *a = (const eini_labelled *)set + i, *b = (const eini_labelled *)set + k;
  if (a->n != b->n || a->size != b->size)
    return a->n != b->n ? (a->n < b->n ? -1 : 1) : a->size < b->size ? -1 : 1;
  return eini_words_order(a->certificate, b->certificate, a->size);
}

static ein_status eini_label_component(eini_labeller *w, const eini_colours *g,
                                       const eini_cells *c, int dive, int depth, int *local,
                                       const char *skip, eini_labelled *x) {
  eini_colours sub;
  eini_cells cells;
  int *order = EINI_NEW(w->arena, int, x->n);
  uint64_t *place = EINI_NEW(w->arena, uint64_t, x->n);
  EINI_TRY(eini_component(w, g, c, x->order, x->n, local, skip, &sub));
  EINI_TRY(eini_cells_begin(w, &sub, &cells));
  x->size = eini_certificate_size(&sub);
  x->certificate = EINI_NEW(w->arena, uint64_t, x->size);
  if (order == NULL || place == NULL || x->certificate == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_label_cells(w, &sub, &cells, dive, depth, order));
  eini_certificate(&sub, order, place, x->certificate);
  for (int i = 0; i < x->n; i++) order[i] = x->order[order[i]];
  memcpy(x->order, order, (size_t)x->n * sizeof *order);
  return EIN_OK;
}

// Vertices alone in their cells first, then components by their certificates; those of one
// certificate stand as they were found.
static ein_status eini_label_parts(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                   int dive, int depth, int *up, const char *skip, int *order) {
  int *number = EINI_NEW(w->arena, int, g->n), *local = EINI_NEW(w->arena, int, g->n);
  int *vertex = EINI_NEW(w->arena, int, g->n), nsingle = 0, nset = 0, at = 0;
  eini_labelled *set = EINI_NEW(w->arena, eini_labelled, g->n);
  if (number == NULL || local == NULL || vertex == NULL || set == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < g->n; i++) {
    const int v = c->lab[i], root = eini_union_find(up, v);
    if (c->size[c->cell[v]] == 1) order[nsingle++] = v;
    else if (number[root] == 0) number[root] = ++nset;
    if (c->size[c->cell[v]] > 1) set[number[root] - 1].n++;
  }
  for (int k = 0; k < nset; at += set[k++].n) set[k].order = vertex + at, set[k].size = 0;
  for (int i = 0; i < g->n; i++) {
    const int v = c->lab[i];
    if (c->size[c->cell[v]] == 1) continue;
    eini_labelled *x = &set[number[eini_union_find(up, v)] - 1];
    x->order[x->size++] = v;
  }
  for (int k = 0; k < nset; k++)
    EINI_TRY(eini_label_component(w, g, c, dive, depth, local, skip, &set[k]));
  for (int k = 0; k < nset; k++) number[k] = k;
  eini_merge_sort(number, local, nset, set, eini_labelled_order);
  for (int k = 0; k < nset; nsingle += set[number[k++]].n)
    memcpy(order + nsingle, set[number[k]].order, (size_t)set[number[k]].n * sizeof *order);
  return EIN_OK;
}

// ---- vertices singled out ----

typedef struct eini_branch {    // at one set of cells
  eini_colours g;               // coloured by them
  eini_cells cells;             // with the vertex at hand singled out
  int *best, *order, *orbit;    // orbits of the automorphisms found
  int *first_dive;              // a first order below the best vertex, and its certificate
  uint64_t *place, *certificate, *dive_certificate, *other;
  uint64_t trace;               // the least
  int vertex, found;            // the best
} eini_branch;

static ein_status eini_branch_new(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                  eini_branch *b) {
  const int64_t n = g->n, size = eini_certificate_size(g);
  memset(b, 0, sizeof *b);
  EINI_TRY(eini_cells_new(w->arena, g->n, &b->cells));
  b->best = EINI_NEW(w->arena, int, 4 * n);
  b->place = EINI_NEW(w->arena, uint64_t, 2 * n + 3 * size);
  if (b->best == NULL || b->place == NULL) return EIN_ERR_NO_MEMORY;
  b->order = b->best + n;
  b->orbit = b->best + 2 * n;
  b->first_dive = b->best + 3 * n;
  b->g = *g;
  b->g.colour = b->place + n;
  b->certificate = b->place + 2 * n;
  b->dive_certificate = b->certificate + size;
  b->other = b->dive_certificate + size;
  for (int v = 0; v < g->n; v++) {
    b->g.colour[v] = (uint64_t)c->cell[v];
    b->orbit[v] = v;
  }
  return EIN_OK;
}

static void eini_branch_join(eini_branch *b, const int *x, const int *y) {
  for (int i = 0; i < b->g.n; i++) eini_union_join(b->orbit, x[i], y[i]);
}

// Orders below the vertex that is singled out in b's cells; keeps it when it is the least.
static ein_status eini_branch_try(eini_labeller *w, eini_branch *b, int v, int depth) {
  const int64_t size = eini_certificate_size(&b->g);
  EINI_TRY(eini_label_cells(w, &b->g, &b->cells, 1, depth + 1, b->order));
  eini_certificate(&b->g, b->order, b->place, b->other);
  if (b->found && eini_words_order(b->other, b->dive_certificate, size) == 0) {
    eini_branch_join(b, b->order, b->first_dive);
    if (eini_union_find(b->orbit, v) == eini_union_find(b->orbit, b->vertex)) return EIN_OK;
  }
  uint64_t *dive = b->other;
  int *dive_order = EINI_NEW(w->arena, int, b->g.n);
  uint64_t *mine = EINI_NEW(w->arena, uint64_t, size);
  if (dive_order == NULL || mine == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(dive_order, b->order, (size_t)b->g.n * sizeof *dive_order);
  EINI_TRY(eini_label_cells(w, &b->g, &b->cells, 0, depth + 1, b->order));
  eini_certificate(&b->g, b->order, b->place, mine);
  const int sign = b->found ? eini_words_order(mine, b->certificate, size) : -1;
  if (sign == 0) eini_branch_join(b, b->order, b->best);
  if (sign >= 0) return EIN_OK;
  memcpy(b->certificate, mine, (size_t)size * sizeof *mine);
  memcpy(b->dive_certificate, dive, (size_t)size * sizeof *dive);
  memcpy(b->best, b->order, (size_t)b->g.n * sizeof *b->best);
  memcpy(b->first_dive, dive_order, (size_t)b->g.n * sizeof *dive_order);
  b->vertex = v;
  b->found = 1;
  return EIN_OK;
}

// Singles out each vertex of the smallest cell. A dive takes the first of the least trace.
static ein_status eini_label_branch(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                    int dive, int depth, int *order) {
  eini_branch b;
  int target = -1;
  EINI_TRY(eini_branch_new(w, g, c, &b));
  for (int i = 0; i < c->n; i += c->size[i])
    if (c->size[i] > 1 && (target < 0 || c->size[i] < c->size[target])) target = i;
  for (int pass = 0; pass < 2; pass++) {  // the least trace, then those that have it
    for (int i = 0; i < c->size[target]; i++) {
      const int v = c->lab[target + i];
      int known = 0;
      for (int k = 0; pass == 1 && k < i && !known; k++)
        known = eini_union_find(b.orbit, c->lab[target + k]) == eini_union_find(b.orbit, v);
      if (known) continue;
      eini_cells_copy(&b.cells, c);
      const uint64_t trace = eini_cells_single(w, g, &b.cells, v);
      if (w->left < 0) return EIN_ERR_TOO_LARGE;
      if (pass == 0) b.trace = i == 0 || trace < b.trace ? trace : b.trace;
      if (pass == 0 || trace != b.trace) continue;
      if (dive) return eini_label_cells(w, &b.g, &b.cells, 1, depth + 1, order);
      const eini_arena_at at = eini_arena_mark(w->arena);
      EINI_TRY(eini_branch_try(w, &b, v, depth));
      eini_arena_rollback(w->arena, &at);
    }
  }
  memcpy(order, b.best, (size_t)g->n * sizeof *order);
  return EIN_OK;
}

// Cells are refined. order: n vertices.
static ein_status eini_label_cells(eini_labeller *w, const eini_colours *g, const eini_cells *c,
                                   int dive, int depth, int *order) {
  int whole = c->ncell > 0 && c->ncell < c->n;
  if (w->left < 0 || depth > EINI_LABEL_DEPTH) return EIN_ERR_TOO_LARGE;
  memcpy(order, c->lab, (size_t)c->n * sizeof *order);
  if (!whole) return EIN_OK;
  int *up = EINI_NEW(w->arena, int, g->n);
  char *skip = EINI_NEW(w->arena, char, g->first[g->n]);
  if (up == NULL || skip == NULL) return EIN_ERR_NO_MEMORY;
  w->left -= g->n + g->first[g->n];
  EINI_TRY(eini_components(w, g, c, up, skip));
  for (int v = 0; v < g->n; v++) whole &= c->size[c->cell[v]] > 1 && eini_union_find(up, v) == 0;
  return whole ? eini_label_branch(w, g, c, dive, depth, order)
               : eini_label_parts(w, g, c, dive, depth, up, skip, order);
}

// The order of the vertices: alike for alike graphs, up to automorphisms; among these, that which
// comes first as vertices are numbered. EIN_ERR_TOO_LARGE after about `work` halves of arcs.
EINI_UNUSED static ein_status eini_labelling(eini_arena *arena, const eini_colours *g,
                                             int64_t work, int *order) {
  eini_labeller w = {arena, work};
  eini_cells c;
  EINI_TRY(eini_cells_begin(&w, g, &c));
  return eini_label_cells(&w, g, &c, 0, 0, order);
}
