// ================================================================================================
// >>sketch  coloured graphs as they are drawn
// Takes vertices in words, and arcs; gives the graph, and all that was drawn, in a given order.
// ================================================================================================

enum {  // kinds of vertices, and of arcs
  EINI_C_RESULT = 1, EINI_C_INDEX, EINI_C_OPERAND, EINI_C_PARAM, EINI_C_NODE, EINI_C_ROW,
  EINI_C_ACCESS, EINI_C_TENSOR, EINI_C_SCALAR, EINI_C_COORDINATE, EINI_C_ARGUMENT, EINI_C_ROOT,
  EINI_C_OF, EINI_C_READS, EINI_C_MAKES, EINI_C_NUMBER, EINI_C_SIZE
};

typedef struct eini_arc {
  int from, to;
  int64_t what, by;
} eini_arc;

typedef struct eini_sketch {  // a graph as it is drawn
  eini_arena *arena;
  int64_t *word, nword, capword;  // what vertices are, in full, one after the other
  int64_t *end, n, cap;           // where that of a vertex ends
  eini_arc *arc;
  int64_t narc, caparc;
  const eini_symbols *symbols;  // what numbers stand for; NULL: themselves
  ein_status st;             // the first failure
} eini_sketch;

// One more word of what the next vertex is.
static void eini_sketch_word(eini_sketch *k, int64_t x) {
  if (k->nword == k->capword) {
    int64_t *p = (int64_t *)eini_grow(k->arena, k->word, k->nword, &k->capword, sizeof *p);
    if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
    if (p == NULL) return;
    k->word = p;
  }
  k->word[k->nword++] = x;
}

static void eini_sketch_text(eini_sketch *k, const char *s) {
  do eini_sketch_word(k, (unsigned char)*s);
  while (*s++ != 0);
}

static void eini_sketch_real(eini_sketch *k, double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  eini_sketch_word(k, bits);
}

static void eini_sketch_words(eini_sketch *k, const int64_t *x, int n) {
  for (int i = 0; i < n; i++) eini_sketch_word(k, x[i]);
}

// The vertex that the words since the last one are of.
static int eini_sketch_vertex(eini_sketch *k) {
  int64_t *p = (int64_t *)eini_grow(k->arena, k->end, k->n, &k->cap, sizeof *p);
  if (p == NULL) k->st = EIN_ERR_NO_MEMORY;
  else if (k->n >= INT_MAX / 8) k->st = EIN_ERR_TOO_LARGE;
  if (k->st != EIN_OK) return 0;
  k->end = p;
  p[k->n] = k->nword;
  return (int)k->n++;
}

static void eini_sketch_arc(eini_sketch *k, int from, int to, int64_t what, int64_t by) {
  if (k->narc == k->caparc) {
    eini_arc *all = (eini_arc *)eini_grow(k->arena, k->arc, k->narc, &k->caparc, sizeof *all);
    if (all == NULL) k->st = EIN_ERR_NO_MEMORY;
    if (all == NULL) return;
    k->arc = all;
  }
  eini_arc *p = &k->arc[k->narc++];
  p->from = from;
  p->to = to;
  p->what = what;
  p->by = by;
}

// A number of a graph. One that stands for a sum of sizes has a vertex, and so have they: until all
// is drawn, an arc to it leads to -1 - where the number is among the symbols.
static void eini_sketch_number(eini_sketch *k, int64_t x) {
  const eini_number *open = eini_symbols_open(k->symbols, x);
  const int64_t at = k->nword - (k->n > 0 ? k->end[k->n - 1] : 0);
  eini_sketch_word(k, open == NULL ? x : INT64_MIN);
  if (open != NULL)
    eini_sketch_arc(k, (int)k->n, -1 - (int)(open - k->symbols->number), EINI_C_NUMBER, at);
}

static void eini_sketch_numbers(eini_sketch *k, const int64_t *x, int n) {
  for (int i = 0; i < n; i++) eini_sketch_number(k, x[i]);
}

// Draws the sums of sizes that numbers stand for. size: a vertex + 1 for each, or 0.
EINI_UNUSED static ein_status eini_sketch_sizes(eini_sketch *k, int *size) {
  const int64_t drawn = k->narc;
  int *vertex = EINI_NEW(k->arena, int, k->symbols->nnumber);
  if (vertex == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t e = 0; e < drawn && k->st == EIN_OK; e++) {
    if (k->arc[e].to >= 0) continue;
    const int at = -1 - k->arc[e].to;
    const eini_number *x = &k->symbols->number[at];
    if (vertex[at] == 0) {
      eini_sketch_word(k, EINI_C_NUMBER);
      eini_sketch_word(k, x->offset);
      vertex[at] = eini_sketch_vertex(k) + 1;
      for (int i = 0; i < x->n; i++) {
        int *to = &size[x->term[i].index];
        if (*to == 0) eini_sketch_word(k, EINI_C_SIZE), *to = eini_sketch_vertex(k) + 1;
        eini_sketch_arc(k, vertex[at] - 1, *to - 1, EINI_C_SIZE, x->term[i].coef);
      }
    }
    k->arc[e].to = vertex[at] - 1;
  }
  return k->st;
}

// Colours and keys are made of the words, the same on all machines. Where two are equal by chance,
// forms may differ that need not.
static void eini_sketch_colours(const eini_sketch *k, uint64_t *colour) {
  for (int64_t v = 0, w = 0; v < k->n; v++)
    for (colour[v] = 0; w < k->end[v]; w++) colour[v] = eini_mix(colour[v], (uint64_t)k->word[w]);
}

static uint64_t eini_arc_label(const eini_arc *x) {
  return eini_mix(eini_mix((uint64_t)x->what, 0), (uint64_t)x->by);
}

// The graph; several arcs from one vertex to another are one.
static ein_status eini_sketch_graph(const eini_sketch *k, eini_colours *g) {
  int64_t *at = EINI_NEW(k->arena, int64_t, k->n);
  g->n = (int)k->n;
  g->colour = EINI_NEW(k->arena, uint64_t, k->n);
  g->first = EINI_NEW(k->arena, int64_t, k->n + 1);
  g->half = EINI_NEW(k->arena, eini_link, 2 * k->narc);
  if (k->st != EIN_OK) return k->st;
  if (at == NULL || g->colour == NULL || g->first == NULL || g->half == NULL)
    return EIN_ERR_NO_MEMORY;
  eini_sketch_colours(k, g->colour);
  for (int64_t e = 0; e < k->narc; e++) {
    g->first[k->arc[e].from + 1]++;
    g->first[k->arc[e].to + 1]++;
  }
  for (int64_t v = 0; v < k->n; v++) at[v] = g->first[v + 1] += g->first[v];
  for (int64_t e = k->narc - 1; e >= 0; e--) {
    const eini_arc *x = &k->arc[e];
    const uint64_t label = eini_arc_label(x);
    eini_link *out = &g->half[--at[x->from]], *in = &g->half[--at[x->to]];
    out->to = x->to;
    out->key = eini_mix(label, 1);
    in->to = x->from;
    in->key = eini_mix(label, 2);
  }
  int64_t n = 0;
  for (int64_t v = 0, next = 0; v < k->n; v++) {
    const int64_t begin = n, from = next, end = next = g->first[v + 1];
    for (int64_t h = from; h < end; h++) {
      const eini_link x = g->half[h];
      int64_t i = n;
      while (i > begin && g->half[i - 1].to > x.to) i--;
      if (i > begin && g->half[i - 1].to == x.to) {
        g->half[i - 1].key += x.key;
        continue;
      }
      memmove(&g->half[i + 1], &g->half[i], (size_t)(n - i) * sizeof x);
      g->half[i] = x;
      n++;
    }
    g->first[v + 1] = n;
  }
  return EIN_OK;
}

// ---- what is in a sketch, in full ----

typedef struct eini_arcs {  // to order them by
  const eini_arc *arc;
  const int *place;         // of vertices
} eini_arcs;

static int eini_arcs_order(const void *of, int i, int k) {
  const eini_arcs *q = (const eini_arcs *)of;
  const eini_arc *x = &q->arc[i], *y = &q->arc[k];
  const int64_t a[4] = {q->place[x->from], q->place[x->to], x->what, x->by};
  const int64_t b[4] = {q->place[y->from], q->place[y->to], y->what, y->by};
  for (int e = 0; e < 4; e++)
    if (a[e] != b[e]) return a[e] < b[e] ? -1 : 1;
  return 0;
}

static int64_t eini_sketch_size(const eini_sketch *k) {
  return 1 + k->n + k->nword + 4 * k->narc;
}

// All that was drawn, its vertices in an order: equal exactly where one order leads to the other
// by an isomorphism.
static ein_status eini_sketch_say(const eini_sketch *k, const int *order, int64_t *to) {
  const int n = (int)k->narc;
  int *place = EINI_NEW(k->arena, int, k->n), *list = EINI_NEW(k->arena, int, 2 * (int64_t)n);
  const eini_arcs arcs = {k->arc, place};
  if (place == NULL || list == NULL) return EIN_ERR_NO_MEMORY;
  *to++ = k->n;
  for (int i = 0; i < k->n; i++) {
    const int v = order[i];
    const int64_t from = v > 0 ? k->end[v - 1] : 0;
    place[v] = i;
    *to++ = k->end[v] - from;
    for (int64_t w = from; w < k->end[v]; w++) *to++ = k->word[w];
  }
  for (int e = 0; e < n; e++) list[e] = e;
  eini_merge_sort(list, list + n, n, &arcs, eini_arcs_order);
  for (int e = 0; e < n; e++) {
    const eini_arc *x = &k->arc[list[e]];
    *to++ = place[x->from], *to++ = place[x->to], *to++ = x->what, *to++ = x->by;
  }
  return EIN_OK;
}
