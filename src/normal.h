// ================================================================================================
// >>normal  the normal form of one statement, extents apart
// Takes a statement; gives a text that all spellings and sizes of it share, the extents in the
// form's order, and what number operands have in it. After Kulkarni and Kloeckner, section 5.
// ================================================================================================

typedef struct eini_normal {
  const char *form;         // "ab,bc->ac sum #..": the number is of all that the graph says
  const char *dtypes;       // "f32,f32->f32"; ' behind one: its axes are not in row-major order
  int nindex;
  int64_t *extent;          // of a, b, ..
  int noperand;
  int *rank;                // operand k of the statement is operand rank[k] of the form
  uint64_t *letter;         // index c is letter[c] there
} eini_normal;

// The order in which axes lie in memory, as a word; 0: row-major, or nothing is known of it.
static int64_t eini_layout_word(int rank, const int64_t *shape, const int64_t *stride) {
  uint64_t word = 0;
  int sorted = 1;
  for (int i = 0, last = -1; stride != NULL && i < rank; i++) {
    if (shape[i] < 2) continue;
    sorted &= last < 0 || eini_abs64(stride[last]) >= eini_abs64(stride[i]);
    last = i;
  }
  for (int i = 0; !sorted && i < rank; i++) {
    int before = 0;
    for (int k = 0; k < rank; k++) before += eini_abs64(stride[k]) > eini_abs64(stride[i]);
    word = eini_mix(word, shape[i] < 2 ? 0 : (uint64_t)before + 1);
  }
  return (int64_t)word;
}

// The same graph, its vertices in another order.
static ein_status eini_sketch_reorder(const eini_sketch *k, const int *order, eini_sketch *to) {
  int *place = EINI_NEW(k->arena, int, k->n);
  if (place == NULL) return EIN_ERR_NO_MEMORY;
  memset(to, 0, sizeof *to);
  to->arena = k->arena;
  for (int i = 0; i < k->n; i++) {
    const int v = order[i];
    place[v] = i;
    int64_t w = v > 0 ? k->end[v - 1] : 0;
    while (w < k->end[v]) eini_sketch_word(to, k->word[w++]);
    (void)eini_sketch_vertex(to);
  }
  for (int64_t e = 0; e < k->narc; e++)
    eini_sketch_arc(to, place[k->arc[e].from], place[k->arc[e].to], k->arc[e].what, k->arc[e].by);
  return to->st;
}

static ein_status eini_sketch_order(const eini_sketch *k, int **order) {
  eini_colours g;
  *order = EINI_NEW(k->arena, int, k->n);
  if (*order == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_sketch_graph(k, &g));
  return eini_labelling(k->arena, &g, EINI_FORM_PASSES * (k->n + 2 * k->narc), *order);
}

// Draws a statement without extents, and orders its vertices: first by a drawing that has them, so
// that of several orders that differ by a symmetry of the form alone one is chosen by extents, then
// as the form alone says.
static ein_status eini_normal_order(eini_arena *a, const ein_graph *g, const eini_stmt *s,
                                    const int64_t *layout, eini_sketch *k, int **order) {
  eini_besides b;
  eini_spelling x;
  eini_sketch sized, again;
  int *first, *second;
  memset(&b, 0, sizeof b);
  memset(k, 0, sizeof *k);
  memset(&sized, 0, sizeof sized);
  k->arena = sized.arena = a;
  b.what = EINI_SAME_AXES | EINI_SAME_ALONE | EINI_SAME_OFFSETS;
  b.noperand = layout != NULL;
  b.operand = layout;
  EINI_TRY(eini_spelling_new(a, s, &b, &x));
  EINI_TRY(eini_spelling_draw(a, k, g, &x));
  b.what |= EINI_SAME_EXTENTS;
  EINI_TRY(eini_spelling_draw(a, &sized, g, &x));
  EINI_TRY(eini_sketch_order(&sized, &first));
  EINI_TRY(eini_sketch_reorder(k, first, &again));
  EINI_TRY(eini_sketch_order(&again, &second));
  if ((*order = EINI_NEW(a, int, k->n)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < k->n; i++) (*order)[i] = first[second[i]];
  return EIN_OK;
}

// Letters of the form, by the first place where an index stands; rank: of its vertex.
typedef struct eini_letters {
  int n, *of;               // letter + 1 of an index, 0: none yet
  const int *rank;
} eini_letters;

static void eini_letters_map(eini_letters *l, const eini_map *m) {
  for (int r = 0; r < m->rows; r++) {
    for (;;) {  // those of one coordinate by rank
      int next = -1;
      for (int e = m->first[r]; e < m->first[r + 1]; e++) {
        const int c = m->term[e].index;
        if (l->of[c] == 0 && (next < 0 || l->rank[c] < l->rank[next])) next = c;
      }
      if (next < 0) break;
      l->of[next] = ++l->n;
    }
  }
}

static void eini_say_letter(eini_text *t, int k) {
  eini_say(t, "%c", 'a' + k % 26);
  if (k >= 26) eini_say(t, "%d", k / 26);
}

// "ab", "a(2*b+c-1)"; letters beyond z and sums in brackets.
static void eini_say_letters(eini_text *t, const eini_letters *l, const eini_map *m) {
  for (int r = 0; r < m->rows; r++) {
    const int plain = eini_plain_row(m, r);
    if (plain >= 0 && l->of[plain] <= 26) {
      eini_say_letter(t, l->of[plain] - 1);
      continue;
    }
    eini_say(t, "(");
    int last = 0, said = 0;
    for (;; said++) {
      const eini_mapterm *x = NULL;
      for (int e = m->first[r]; e < m->first[r + 1]; e++) {
        const int at = l->of[m->term[e].index];
        if (at > last && (x == NULL || at < l->of[x->index])) x = &m->term[e];
      }
      if (x == NULL) break;
      last = l->of[x->index];
      if (said > 0 || x->coef < 0) eini_say(t, x->coef < 0 ? "-" : "+");
      if (eini_abs64(x->coef) != 1) eini_say(t, "%lld*", (long long)eini_abs64(x->coef));
      eini_say_letter(t, last - 1);
    }
    if (said == 0 || m->offset[r] != 0)
      eini_say(t, "%s%lld", said > 0 && m->offset[r] >= 0 ? "+" : "", (long long)m->offset[r]);
    eini_say(t, ")");
  }
}

// by[r]: the operand of rank r.
static void eini_normal_say(eini_text *t, const ein_graph *g, const eini_stmt *s, const int *by,
                            const eini_letters *l, uint64_t hash) {
  for (int r = 0; r < s->noperand; r++) {
    if (r > 0) eini_say(t, ",");
    eini_say_letters(t, l, &s->proj[by[r]]);
  }
  eini_say(t, "->");
  eini_say_letters(t, l, &s->out_map);
  if (s->fold != EIN_FOLD_NONE) eini_say(t, " %s", eini_fold_name(g, s->fold));
  eini_say(t, " #%016llx", (unsigned long long)hash);
}

static void eini_normal_dtypes(eini_text *t, const ein_graph *g, const eini_stmt *s, const int *by,
                               const int64_t *layout) {
  for (int r = 0; r <= s->noperand; r++) {
    const int k = r < s->noperand ? by[r] : r;
    eini_say(t, "%s%s%s", r == s->noperand ? "->" : r > 0 ? "," : "",
             ein_dtype_name(g->tensor[r < s->noperand ? s->operand[k] : s->out].dtype),
             layout != NULL && layout[k] != 0 ? "'" : "");
  }
}

// What was said into nothing is said again, into memory of the arena.
static ein_status eini_text_room(eini_arena *a, eini_text *t, const char **to) {
  char *buf = EINI_NEW(a, char, (int64_t)t->at + 1);
  *to = buf;
  if (buf == NULL) return EIN_ERR_NO_MEMORY;
  *t = eini_text_of(buf, t->at + 1);
  return EIN_OK;
}

// The texts and numbers, from the order of the vertices.
static ein_status eini_normal_give(eini_arena *a, eini_arena *scratch, const ein_graph *g,
                                   const eini_stmt *s, const int64_t *layout,
                                   const eini_sketch *k, const int *order, const char *more,
                                   eini_normal *n) {
  int64_t *said = EINI_NEW(scratch, int64_t, eini_sketch_size(k));
  int *rank = EINI_NEW(scratch, int, k->n), *by = EINI_NEW(scratch, int, s->noperand);
  eini_letters l = {0, EINI_NEW(scratch, int, s->nindex), NULL};
  uint64_t hash = 0;
  memset(n, 0, sizeof *n);
  n->nindex = s->nindex;
  n->noperand = s->noperand;
  n->rank = EINI_NEW(a, int, s->noperand);
  n->extent = EINI_NEW(a, int64_t, s->nindex);
  n->letter = EINI_NEW(a, uint64_t, s->nindex);
  if (said == NULL || rank == NULL || by == NULL || l.of == NULL || n->rank == NULL ||
      n->extent == NULL || n->letter == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_sketch_say(k, order, said));
  for (int64_t i = 0; i < eini_sketch_size(k); i++) hash = eini_mix(hash, (uint64_t)said[i]);
  int at = 0;
  for (int i = 0; i < k->n; i++) {
    const int v = order[i], operand = v - 1 - s->nindex;
    rank[v] = i;
    if (operand < 0 || operand >= s->noperand) continue;
    by[at] = operand;
    n->rank[operand] = at++;
  }
  l.rank = rank + 1;
  for (int r = 0; r < s->noperand; r++) eini_letters_map(&l, &s->proj[by[r]]);
  eini_letters_map(&l, &s->out_map);
  for (int i = 0; i < k->n; i++)
    if (order[i] > 0 && order[i] <= s->nindex && l.of[order[i] - 1] == 0)
      l.of[order[i] - 1] = ++l.n;
  for (int c = 0; c < s->nindex; c++) {
    n->letter[c] = (uint64_t)l.of[c] - 1;
    n->extent[l.of[c] - 1] = s->index[c].extent;
  }
  eini_text t = eini_text_of(NULL, 0);
  for (int pass = 0; pass < 2; pass++) {
    if (pass > 0) EINI_TRY(eini_text_room(a, &t, &n->form));
    eini_normal_say(&t, g, s, by, &l, hash);
    eini_say(&t, "%s", more);
  }
  t = eini_text_of(NULL, 0);
  for (int pass = 0; pass < 2; pass++) {
    if (pass > 0) EINI_TRY(eini_text_room(a, &t, &n->dtypes));
    eini_normal_dtypes(&t, g, s, by, layout);
  }
  return EIN_OK;
}

// layout: a word for each operand and the result, see eini_layout_word; may be NULL. more: stands
// behind the form. EIN_ERR_TOO_LARGE: too many spellings look alike.
static ein_status eini_normal_make(eini_arena *a, const ein_graph *g, const eini_stmt *s,
                                   const int64_t *layout, const char *more, eini_normal *n) {
  eini_arena scratch;
  eini_sketch k;
  int *order = NULL;
  eini_stmt t = *s;
  t.numpy = 0;  // its fold says what that changes
  eini_arena_init(&scratch, &a->al);
  ein_status st = eini_normal_order(&scratch, g, &t, layout, &k, &order);
  if (st == EIN_OK) st = eini_normal_give(a, &scratch, g, &t, layout, &k, order, more, n);
  eini_arena_free(&scratch);
  return st;
}
