// ================================================================================================
// >>canon-sizes  sizes of a form that are left open
// Takes numbers of a graph, group by group; gives those that stand for the same in its form, and
// names for the sizes they are made of.
// ================================================================================================

// Each group has sizes of its own, and so numbers of its own stand for them.
typedef struct eini_canon_size {
  int source;                // number in the source
  uint64_t rank;             // in its group
  int64_t base;
  int name;                  // number in the form + 1; 0: not used
  int had;                   // by an input
} eini_canon_size;

typedef struct eini_canon_sizes {
  eini_arena *arena;
  const eini_symbols *source;  // NULL: nothing is open
  eini_symbols s;            // of the form so far
  eini_canon_size *size;
  int64_t cap, *base;        // what stands for the source's sizes in the group at hand
  int first;                 // size of it
  int *of, nnamed;           // sizes by their number in the form
} eini_canon_sizes;

// Do numbers that differ in the source differ at this base, and from those of other groups?
static ein_status eini_canon_apart(const eini_canon_sizes *z, int *apart) {
  const eini_arena_at at = eini_arena_mark(z->arena);
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  *apart = 1;
  for (int64_t i = 0; i < z->source->nnumber && *apart; i++) {
    const eini_number *x = &z->source->number[i];
    const int64_t value = eini_number_at(x, z->base);
    const eini_number *other = eini_symbols_find(&z->s, value);
    const int64_t number = eini_key_number(z->arena, &seen, &value, 1);
    if (number < 0) return EIN_ERR_NO_MEMORY;
    *apart = number == i && (other == NULL || (x->n == 0 && other->n == 0));
  }
  eini_arena_rollback(z->arena, &at);
  return EIN_OK;
}

// The next group, whose sizes have ranks.
static ein_status eini_canon_sizes_begin(eini_canon_sizes *z, const uint64_t *rank) {
  const eini_symbols *s = z->source;
  int apart = 0;
  if (s == NULL) return EIN_OK;
  if (z->base == NULL && (z->base = EINI_NEW(z->arena, int64_t, s->n)) == NULL)
    return EIN_ERR_NO_MEMORY;
  for (uint64_t turn = 0; !apart; turn++) {
    if (turn == 1000) return EIN_ERR_TOO_LARGE;
    for (int i = 0; i < s->n; i++) {
      const int64_t more = (int64_t)(eini_mix(turn, (uint64_t)i) % (2 * turn + 1));
      z->base[i] = s->base[i] * (1 + (int64_t)turn / 8) + more;  // larger ones stay larger
    }
    EINI_TRY(eini_canon_apart(z, &apart));
  }
  z->first = z->s.n;
  for (int i = 0; i < s->n; i++) {
    const eini_canon_size x = {i, rank[i], z->base[i], 0, 0};
    eini_canon_size *p =
        (eini_canon_size *)eini_grow(z->arena, z->size, z->s.n, &z->cap, sizeof *p);
    if (p == NULL) return EIN_ERR_NO_MEMORY;
    z->size = p;
    p[z->s.n++] = x;
  }
  return EIN_OK;
}

// Numbers of the source become those that stand for the same in the group at hand.
static ein_status eini_canon_numbers(eini_canon_sizes *z, int64_t *x, int n) {
  for (int i = 0; i < n && z->source != NULL; i++) {
    const eini_number *is = eini_symbols_find(z->source, x[i]);
    eini_number y = *is;
    x[i] = y.value = eini_number_at(is, z->base);
    if (eini_symbols_find(&z->s, y.value) != NULL) continue;
    if ((y.term = EINI_NEW(z->arena, eini_mapterm, y.n)) == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < y.n; k++) {
      y.term[k] = is->term[k];
      y.term[k].index += z->first;
    }
    EINI_TRY(eini_symbols_add(z->arena, &z->s, &y));
  }
  return EIN_OK;
}

// Terms of a sum by the number that their size has in the form, or by its rank.
static void eini_canon_terms(const eini_canon_size *size, const eini_number *x, int named) {
  for (int i = 1; i < x->n; i++) {
    const eini_mapterm t = x->term[i];
    const eini_canon_size *a = &size[t.index];
    int k = i;
    for (; k > 0; k--) {
      const eini_canon_size *b = &size[x->term[k - 1].index];
      if (named ? b->name <= a->name : b->rank <= a->rank) break;
      x->term[k] = x->term[k - 1];
    }
    x->term[k] = t;
  }
}

// Sizes are numbered as they come.
static void eini_canon_name_word(void *user, int64_t word, int number, const eini_stmt *at) {
  eini_canon_sizes *z = (eini_canon_sizes *)user;
  const eini_number *x = number ? eini_symbols_open(&z->s, word) : NULL;
  (void)at;
  if (x != NULL) eini_canon_terms(z->size, x, 0);
  for (int i = 0; x != NULL && i < x->n; i++) {
    eini_canon_size *size = &z->size[x->term[i].index];
    if (size->name > 0) continue;
    z->of[z->nnamed++] = x->term[i].index;
    size->name = z->nnamed;
  }
}

// Inputs have sizes as they are, or no program could say them; those that no input has are had by
// one more, which nobody reads.
static ein_status eini_canon_declare(eini_canon_sizes *z, ein_graph *g) {
  int64_t *shape = EINI_NEW(z->arena, int64_t, z->nnamed);
  int n = 0, id;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    for (int r = 0; r < g->tensor[t].rank && g->tensor[t].role == EIN_ROLE_INPUT; r++) {
      const eini_number *x = eini_symbols_open(&z->s, g->tensor[t].shape[r]);
      if (x != NULL && !eini_number_plain(x)) return EIN_ERR_UNSUPPORTED;
      if (x != NULL) z->size[x->term[0].index].had = 1;
    }
  }
  for (int i = 0; i < z->nnamed; i++) {
    eini_mapterm *term = EINI_NEW(z->arena, eini_mapterm, 1);
    const eini_number plain = {z->size[z->of[i]].base, 0, 1, term};
    if (term == NULL) return EIN_ERR_NO_MEMORY;
    if (z->size[z->of[i]].had) continue;
    shape[n++] = plain.value;
    term->index = z->of[i];
    term->coef = 1;
    if (eini_symbols_find(&z->s, plain.value) == NULL)
      EINI_TRY(eini_symbols_add(z->arena, &z->s, &plain));
  }
  if (n == 0) return EIN_OK;
  return eini_graph_add_tensor(g, "N", 1, EIN_ROLE_INPUT, EIN_F64, n, shape, &id);
}

// The form is done: its open sizes get names, and become its own.
static ein_status eini_canon_sizes_end(eini_canon_sizes *z, ein_graph *g) {
  eini_symbols *s = EINI_NEW(&g->arena, eini_symbols, 1);
  z->of = EINI_NEW(z->arena, int, z->s.n);
  if (s == NULL || z->of == NULL) return EIN_ERR_NO_MEMORY;
  if (z->source != NULL) eini_graph_words(g, z, eini_canon_name_word);
  if (z->nnamed == 0) return EIN_OK;
  EINI_TRY(eini_canon_declare(z, g));
  s->n = z->nnamed;
  s->name = EINI_NEW(&g->arena, const char *, s->n);
  s->base = EINI_NEW(&g->arena, int64_t, s->n);
  if (s->name == NULL || s->base == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->n; i++) {
    char name[32];
    snprintf(name, sizeof name, "N%d", i);
    s->name[i] = eini_strndup(&g->arena, name, (int64_t)strlen(name));
    s->base[i] = z->size[z->of[i]].base;
    if (s->name[i] == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int64_t i = 0; i < z->s.nnumber; i++) {
    eini_number x = z->s.number[i];
    eini_canon_terms(z->size, &x, 1);
    if ((x.term = EINI_NEW(&g->arena, eini_mapterm, x.n)) == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = 0; k < x.n; k++) {
      x.term[k] = z->s.number[i].term[k];
      x.term[k].index = z->size[x.term[k].index].name - 1;
    }
    EINI_TRY(eini_symbols_add(&g->arena, s, &x));
  }
  g->symbols = s;
  return EIN_OK;
}
