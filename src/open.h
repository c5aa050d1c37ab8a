// ================================================================================================
// >>open  programs whose sizes are left open
// Takes a program; gives its graph with numbers in place of sizes that nothing says, and what each
// number of the graph is as a sum of these sizes.
// ================================================================================================

// The program is read at a point, once more for each size, which is then greater by one, and at two
// points far from the first, where all that was found must hold. So no rule of the language has a
// second, symbolic reading; what is no sum of sizes is refused.

typedef struct eini_words {   // of a graph
  eini_arena *arena;
  int64_t *word, n, cap;
  const eini_stmt **at;       // where it is
  char *number;
  int64_t capat, capnumber;
  ein_status st;
} eini_words;

static void eini_words_take(void *user, int64_t word, int number, const eini_stmt *at) {
  eini_words *w = (eini_words *)user;
  int64_t *p = (int64_t *)eini_grow(w->arena, w->word, w->n, &w->cap, sizeof *p);
  const eini_stmt **s =
      (const eini_stmt **)eini_grow(w->arena, w->at, w->n, &w->capat, sizeof *s);
  char *is = (char *)eini_grow(w->arena, w->number, w->n, &w->capnumber, 1);
  if (p == NULL || s == NULL || is == NULL) w->st = EIN_ERR_NO_MEMORY;
  if (w->st != EIN_OK) return;
  (w->word = p)[w->n] = word;
  (w->at = s)[w->n] = at;
  (w->number = is)[w->n++] = (char)number;
}

typedef struct eini_solver {
  ein_ctx *ctx;
  const ein_program_desc *desc;
  eini_arena *arena;
  eini_open open;
  eini_words base;            // words at the first point
  eini_number *number;        // what they are
  int64_t wrong;              // the first word that is no sum; -1: none
  int clash;                  // two numbers are one at this point
} eini_solver;

// Reads the program at a point, whose words are compared with the first's.
static ein_status eini_open_read(eini_solver *v, int point) {
  const int64_t *base = v->base.word;
  ein_graph *g = NULL;
  eini_words w;
  memset(&w, 0, sizeof w);
  w.arena = v->arena;
  v->open.point = point;
  ein_status st = eini_program(v->ctx, v->desc, &v->open, &g, NULL, NULL);
  if (st != EIN_OK) return st;
  eini_graph_words(g, &w, eini_words_take);
  eini_graph_free(g);
  if (w.st != EIN_OK) return w.st;
  int64_t *size = EINI_NEW(v->arena, int64_t, v->open.n);
  if (size == NULL) return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < v->open.n; s++) size[s] = eini_open_value(&v->open, s);
  if (w.n != v->base.n) v->wrong = 0;
  for (int64_t i = 0; i < w.n && v->wrong < 0; i++) {
    eini_number *x = &v->number[i];
    const int same = w.word[i] == base[i];
    if (!v->base.number[i] || point < 0) {
      if (v->base.number[i] ? eini_number_at(x, size) != w.word[i] : !same) v->wrong = i;
    } else if (!same) {
      eini_mapterm *term = EINI_NEW(v->arena, eini_mapterm, x->n + 1);
      if (term == NULL) return EIN_ERR_NO_MEMORY;
      if (x->n > 0) memcpy(term, x->term, (size_t)x->n * sizeof *term);
      term[x->n].index = point - 1;
      term[x->n].coef = w.word[i] - base[i];
      x->offset -= term[x->n++].coef * v->open.base[point - 1];
      x->term = term;
    }
  }
  return EIN_OK;
}

// All numbers of the graph, once each.
static ein_status eini_open_symbols(eini_solver *v, ein_graph *g) {
  eini_symbols *s = EINI_NEW(&g->arena, eini_symbols, 1);
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  s->n = v->open.n;
  s->name = EINI_NEW(&g->arena, const char *, s->n);
  s->base = EINI_NEW(&g->arena, int64_t, s->n);
  if (s->name == NULL || s->base == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(s->base, v->open.base, (size_t)s->n * sizeof *s->base);
  for (int i = 0; i < s->n; i++) {
    const char *name = v->open.name[i];
    if ((s->name[i] = eini_strndup(&g->arena, name, (int64_t)strlen(name))) == NULL)
      return EIN_ERR_NO_MEMORY;
    eini_number x = {s->base[i], 0, 1, EINI_NEW(&g->arena, eini_mapterm, 1)};
    if (x.term == NULL) return EIN_ERR_NO_MEMORY;
    x.term->index = i;
    x.term->coef = 1;
    v->clash |= eini_symbols_find(s, x.value) != NULL;
    EINI_TRY(eini_symbols_add(&g->arena, s, &x));
  }
  for (int64_t i = 0; i < v->base.n; i++) {
    eini_number x = v->number[i];
    const eini_number *y = eini_symbols_find(s, x.value);
    const size_t bytes = (size_t)x.n * sizeof *x.term;
    if (!v->base.number[i]) continue;
    if (y != NULL) {
      v->clash |= x.offset != y->offset || x.n != y->n;
      for (int k = 0; k < x.n && !v->clash; k++)
        v->clash |= x.term[k].index != y->term[k].index || x.term[k].coef != y->term[k].coef;
      continue;
    }
    if ((x.term = EINI_NEW(&g->arena, eini_mapterm, x.n)) == NULL) return EIN_ERR_NO_MEMORY;
    if (x.n > 0) memcpy(x.term, v->number[i].term, bytes);
    EINI_TRY(eini_symbols_add(&g->arena, s, &x));
  }
  g->symbols = s;
  return EIN_OK;
}

static ein_status eini_open_solve(eini_solver *v, ein_graph *g) {
  v->base.arena = v->arena;
  eini_graph_words(g, &v->base, eini_words_take);
  if (v->base.st != EIN_OK) return v->base.st;
  if ((v->number = EINI_NEW(v->arena, eini_number, v->base.n)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < v->base.n; i++)
    v->number[i].value = v->number[i].offset = v->base.word[i];
  const int n = v->open.n;
  for (int point = 1; point <= n + 2 && v->wrong < 0; point++) {
    const eini_arena_at at = eini_arena_mark(v->arena);
    EINI_TRY(eini_open_read(v, point <= n ? point : n - point));
    if (point > n) eini_arena_rollback(v->arena, &at);
  }
  return v->wrong >= 0 ? EIN_ERR_UNSUPPORTED : eini_open_symbols(v, g);
}

// What is wrong, where the sizes are numbers.
static ein_status eini_open_fail(eini_solver *v, const ein_graph *g, ein_status st) {
  eini_diag *d = eini_diag_of(v->ctx);
  char list[256] = "";
  for (int i = 0, at = 0; i < v->open.n && at < 200; i++)
    at += snprintf(list + at, sizeof list - (size_t)at, "%s%.40s", i > 0 ? ", " : "",
                   v->open.name[i]);
  if (st == EIN_ERR_NO_MEMORY || v->open.n == 0 || d == NULL) return st;
  if (st == EIN_ERR_UNSUPPORTED && g != NULL) {
    const eini_stmt *at = v->wrong < 0 || v->wrong >= v->base.n ? NULL : v->base.at[v->wrong];
    eini_diag_reset(d, v->desc->text, (int64_t)(v->desc->length > 0 ? v->desc->length
                                                                   : strlen(v->desc->text)));
    eini_fail(d, EIN_ERR_UNSUPPORTED, at == NULL ? -1 : at->pos, 1, "give sizes",
              "an extent, a coordinate or a number here is no sum of the sizes left open: %s",
              list);
    d->text = NULL;
    return EIN_ERR_UNSUPPORTED;
  }
  for (int i = 0, at = 0; i < v->open.n && at < 200; i++)
    at += snprintf(list + at, sizeof list - (size_t)at, "%s%.40s=%lld", i > 0 ? ", " : "",
                   v->open.name[i], (long long)eini_open_value(&v->open, i));
  d->max = d->count + 1;
  eini_fail(d, st, -1, 0, "or give sizes", "sizes that nothing says are numbers here: %s", list);
  return st;
}

static ein_status eini_open_try(ein_ctx *ctx, const ein_program_desc *desc, int how, int report,
                                ein_graph **graph) {
  eini_arena arena;
  eini_solver v;
  ein_graph *g = NULL;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  memset(&v, 0, sizeof v);
  v.ctx = ctx;
  v.desc = desc;
  v.arena = v.open.arena = &arena;
  v.open.how = how;
  v.wrong = -1;
  ein_status st = eini_program(ctx, desc, &v.open, &g, NULL, NULL);
  if (st == EIN_OK && v.open.n > 0) st = eini_open_solve(&v, g);
  if (st == EIN_OK && v.clash) st = EIN_ERR_UNSUPPORTED;
  if (st == EIN_OK) *graph = g;
  else if (report) st = eini_open_fail(&v, g, st);
  if (st != EIN_OK) eini_graph_free(g);
  eini_arena_free(&arena);
  return st;
}

// Where extents and coordinates of the program are of the size of a point, another one may do.
static ein_status eini_open_graph(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph) {
  ein_status st = EIN_ERR_UNSUPPORTED;
  for (int how = 0; how < EINI_OPEN_WAYS && st != EIN_OK && st != EIN_ERR_NO_MEMORY; how++)
    st = eini_open_try(ctx, desc, how, 0, graph);
  return st == EIN_OK || st == EIN_ERR_NO_MEMORY ? st : eini_open_try(ctx, desc, 0, 1, graph);
}

EIN_API ein_status ein_graph_parse(ein_ctx *ctx, const ein_program_desc *desc, ein_graph **graph) {
  if (graph == NULL) return EIN_ERR_ARGUMENT;
  *graph = NULL;
  return desc != NULL && desc->open ? eini_open_graph(ctx, desc, graph)
                                    : eini_program(ctx, desc, NULL, graph, NULL, NULL);
}

EIN_API const char *ein_graph_size(const ein_graph *g, int i) {
  return g == NULL || g->symbols == NULL || i < 0 || i >= g->symbols->n ? NULL
                                                                       : g->symbols->name[i];
}
