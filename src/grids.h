// ================================================================================================
// >>grids  machines as grids of places, and what of a tensor a place holds
// Takes the text of a machine or a distribution, or a command that is read; gives boxes. A level of
// a distribution cuts what the level before left to a point, in the order of its elements.
// ================================================================================================

#define EINI_RUNS_MAX ((int64_t)1 << 22)  // ranges of an axis that one point holds

struct ein_grid {
  eini_arena arena;        // of one that the caller has
  int64_t places, npoint;
  int ndim, nlevel;
  ein_grid_dim *dim;
};

struct ein_distribution {
  eini_arena arena;
  const ein_grid *grid;
  int rank, memory;        // 0: where the place computes, 1: host, 2: device
  eini_held *held;         // of each dimension of the grid
};

// Ranges [v[2*i], v[2*i+1]), ascending and apart.
typedef struct eini_runs {
  int64_t *v, n, cap, length;  // length: elements in all
} eini_runs;

static ein_status eini_runs_add(eini_arena *a, eini_runs *r, int64_t lo, int64_t hi) {
  if (hi <= lo) return EIN_OK;
  r->length += hi - lo;
  if (r->n > 0 && r->v[2 * r->n - 1] == lo) {
    r->v[2 * r->n - 1] = hi;
    return EIN_OK;
  }
  if (r->n == EINI_RUNS_MAX) return EIN_ERR_TOO_LARGE;
  int64_t *v = (int64_t *)eini_grow(a, r->v, r->n, &r->cap, 2 * sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  r->v = v;
  v[2 * r->n] = lo;
  v[2 * r->n++ + 1] = hi;
  return EIN_OK;
}

// Adds elements number from to to-1 of some runs. *at, *before: the run at hand, and elements in
// those before it.
static ein_status eini_runs_part(eini_arena *a, const eini_runs *of, int64_t from, int64_t to,
                                 int64_t *at, int64_t *before, eini_runs *r) {
  while (*at < of->n && from < to) {
    const int64_t lo = of->v[2 * *at], length = of->v[2 * *at + 1] - lo;
    if (from < *before + length) {
      const int64_t end = eini_min64(to, *before + length);
      EINI_TRY(eini_runs_add(a, r, lo + from - *before, lo + end - *before));
      from = end;
    }
    if (from < to || from == *before + length) {
      *before += length;
      ++*at;
    }
  }
  return EIN_OK;
}

// What of an axis a point holds: coord are its coordinates in the grid.
static ein_status eini_distribution_runs(eini_arena *a, const ein_distribution *d, int axis,
                                         int64_t extent, const int64_t *coord, eini_runs *r) {
  memset(r, 0, sizeof *r);
  EINI_TRY(eini_runs_add(a, r, 0, extent));
  for (int m = 0; m < d->grid->ndim; m++) {
    const eini_held *h = &d->held[m];
    const int64_t n = d->grid->dim[m].extent, length = r->length;
    eini_runs part;
    int64_t at = 0, before = 0;
    if (h->kind != EINI_HELD_PIECES || h->axis != axis) continue;
    memset(&part, 0, sizeof part);
    if (h->block == 0)
      EINI_TRY(eini_runs_part(a, r, eini_piece_start(length, n, coord[m]),
                              eini_piece_start(length, n, coord[m] + 1), &at, &before, &part));
    for (int64_t k = coord[m]; h->block > 0 && k <= (length - 1) / h->block; k += n)
      EINI_TRY(eini_runs_part(a, r, k * h->block,
                              length - k * h->block > h->block ? (k + 1) * h->block : length, &at,
                              &before, &part));
    *r = part;
  }
  return EIN_OK;
}

// ---- points ----

static void eini_grid_coords(const ein_grid *g, int64_t point, int64_t *coord) {
  for (int m = g->ndim - 1; m >= 0; m--) {
    coord[m] = point % g->dim[m].extent;
    point /= g->dim[m].extent;
  }
}

static int64_t eini_grid_point(const ein_grid *g, const int64_t *coord) {
  int64_t point = 0;
  for (int m = 0; m < g->ndim; m++) point = point * g->dim[m].extent + coord[m];
  return point;
}

// Points are shared out in pieces where there are more of them than places.
static int64_t eini_grid_place(const ein_grid *g, int64_t point) {
  return g->npoint <= g->places ? point : eini_piece_of(g->npoint, g->places, point);
}

// The points of a place: [*from, *to).
static void eini_grid_points(const ein_grid *g, int64_t place, int64_t *from, int64_t *to) {
  const int many = g->npoint > g->places;
  *from = many ? eini_piece_start(g->npoint, g->places, place) : eini_min64(place, g->npoint);
  *to = many ? eini_piece_start(g->npoint, g->places, place + 1)
             : eini_min64(place + 1, g->npoint);
}

// Does a point hold anything? key: its coordinates where axes are cut, for those that hold alike.
static int eini_distribution_key(const ein_distribution *d, const int64_t *coord, int64_t *key,
                                 int64_t *nkey) {
  *nkey = 0;
  for (int m = 0; m < d->grid->ndim; m++) {
    if (d->held[m].kind == EINI_HELD_AT && d->held[m].at != coord[m]) return 0;
    if (d->held[m].kind == EINI_HELD_PIECES) key[(*nkey)++] = coord[m];
  }
  return 1;
}

// ---- from commands ----

// A machine of a command; the number of places is told.
static ein_status eini_grid_make(eini_parser *p, const eini_command *c, int64_t places,
                                 ein_grid *g) {
  const eini_nameset *dim = &c->list[0], *level = &c->list[1];
  g->places = places;
  g->npoint = 1;
  g->ndim = dim->n;
  g->dim = EINI_NEW(p->arena, ein_grid_dim, dim->n);
  if (g->dim == NULL) return eini_pmem(p);
  for (int k = 0; k < dim->n; k++) {
    ein_grid_dim *x = &g->dim[k];
    const eini_span at = dim->name[k];
    x->extent = c->amount[k];
    x->level = c->level[k];
    x->name = eini_strndup(p->arena, p->s + at.pos, at.len);
    x->level_name = eini_strndup(p->arena, p->s + level->name[k].pos, level->name[k].len);
    if (x->name == NULL || x->level_name == NULL) return eini_pmem(p);
    g->nlevel = x->level + 1;
    int same = strcmp(x->name, "p") == 0;
    for (int i = 0; i < k; i++) same |= strcmp(g->dim[i].name, x->name) == 0;
    if (same)
      return eini_perr(p, EIN_ERR_NAME, at.pos, at.len, NULL, "the name '%.*s' is taken",
                       eini_cut(x->name, at.len), x->name);
    if (eini_mul_overflow(g->npoint, x->extent, &g->npoint) || g->npoint > EIN_PLACES_MAX)
      return eini_perr(p, EIN_ERR_TOO_LARGE, at.pos, at.len, NULL,
                       "the machine has more than %d points", EIN_PLACES_MAX);
  }
  return EIN_OK;
}

// One level of a distribution, which begins at dimension `first`; gives the one behind it.
static int eini_distribution_level(eini_parser *p, eini_span at, int first, ein_distribution *d) {
  const ein_grid *g = d->grid;
  eini_spread s;
  int n = 0;
  eini_spread_read(p, at, &s);
  if (p->st != EIN_OK) return first;
  if (first == g->ndim) {
    eini_perr(p, EIN_ERR_SHAPE, at.pos, at.len, NULL, "the machine has %d level%s only", g->nlevel,
              g->nlevel == 1 ? "" : "s");
    return first;
  }
  while (first + n < g->ndim && g->dim[first + n].level == g->dim[first].level) n++;
  if (s.rank != d->rank)
    eini_perr(p, EIN_ERR_SHAPE, at.pos, at.len, NULL, "%d ax%ss left of the arrow, but the tensor "
              "has %d", s.rank, s.rank == 1 ? "i" : "e", d->rank);
  else if (s.ndim != n)
    eini_perr(p, EIN_ERR_SHAPE, at.pos, at.len, NULL, "%d dimension%s right of the arrow, but the "
              "machine has %d", s.ndim, s.ndim == 1 ? "" : "s", n);
  for (int k = 0; k < n && p->st == EIN_OK; k++) {
    const eini_held *h = &s.held[k];
    if (h->kind == EINI_HELD_AT && h->at >= g->dim[first + k].extent)
      eini_perr(p, EIN_ERR_BOUNDS, h->span.pos, h->span.len, NULL, "dimension '%s' has extent "
                "%lld", g->dim[first + k].name, (long long)g->dim[first + k].extent);
    d->held[first + k] = *h;
  }
  return first + n;
}

// Distributions of a command, one for each level of the grid, of a tensor of that rank.
static ein_status eini_distribution_make(eini_parser *p, const eini_command *c, int rank,
                                         const ein_grid *g, ein_distribution *d) {
  int at = 0;
  d->grid = g;
  d->rank = rank;
  d->held = EINI_NEW(p->arena, eini_held, g->ndim);
  if (d->held == NULL) return eini_pmem(p);
  for (int k = 0; k < c->list[1].n && p->st == EIN_OK; k++)
    at = eini_distribution_level(p, c->list[1].name[k], at, d);
  if (p->st == EIN_OK && at < g->ndim)
    eini_perr(p, EIN_ERR_SHAPE, c->word.pos, p->end - c->word.pos,
              "one for each level, with commas",
              "%d distribution%s, but the machine has %d levels", c->list[1].n,
              c->list[1].n == 1 ? "" : "s", g->nlevel);
  if (c->list[2].n > 0) d->memory = p->s[c->list[2].name[0].pos] == 'h' ? 1 : 2;
  return p->st;
}

// ---- as text ----

static void eini_say_grid(eini_text *t, const ein_grid *g) {
  for (int k = 0; k < g->ndim; k++) {
    const ein_grid_dim *x = &g->dim[k];
    const int first = k == 0 || x->level != x[-1].level, named = x->level_name[0] != 0;
    eini_say(t, k == 0 ? "" : named && first ? "], " : ", ");
    if (named && first) eini_say(t, "%s[", x->level_name);
    eini_say(t, "%s=%lld", x->name, (long long)x->extent);
    if (named && k + 1 == g->ndim) eini_say(t, "]");
  }
}

// Axes are x, y, z, w, then the letters before.
static void eini_say_axis(eini_text *t, int axis) {
  static const char letters[] = "xyzwvutsrqponmlkjihgfedcbaABCDEF";
  eini_say(t, "%c", letters[axis]);
}

static void eini_say_distribution(eini_text *t, const ein_distribution *d) {
  const ein_grid *g = d->grid;
  for (int m = 0; m < g->ndim; m++) {
    const eini_held *h = &d->held[m];
    if (m == 0 || g->dim[m].level != g->dim[m - 1].level) {
      if (m > 0) eini_say(t, ", ");
      for (int r = 0; r < d->rank; r++) eini_say_axis(t, r);
      eini_say(t, "->");
    }
    if (h->kind == EINI_HELD_EVERY) eini_say(t, "*");
    const int apart = h->at > 9 || (m > 0 && h[-1].kind == EINI_HELD_PIECES && h[-1].block > 0);
    if (h->kind == EINI_HELD_AT) eini_say(t, apart ? "(%lld)" : "%lld", (long long)h->at);
    if (h->kind != EINI_HELD_PIECES) continue;
    eini_say_axis(t, h->axis);
    if (h->block > 0) eini_say(t, ":%lld", (long long)h->block);
  }
  if (d->memory > 0) eini_say(t, " in %s", d->memory == 1 ? "host" : "device");
}

// ---- the caller's side ----

// Reads "machine text" or "place T text" without the words before it.
static ein_status eini_command_alone(ein_ctx *ctx, eini_arena *a, const char *text, int kind,
                                     const eini_amounts *amounts, eini_parser *p,
                                     eini_command *c) {
  eini_begin_call(ctx, text);
  eini_parser_init(p, a, eini_diag_of(ctx), NULL, text, (int64_t)strlen(text), 256);
  memset(c, 0, sizeof *c);
  c->kind = kind;
  if (kind == EINI_C_MACHINE) eini_command_machine(p, amounts, c);
  else eini_command_spreads(p, c);
  if (p->tok != EINI_T_END) eini_unexpected(p, "the end", NULL);
  return p->st;
}

EIN_API ein_status ein_grid_create(ein_ctx *ctx, const char *text, int64_t places,
                                   ein_grid **grid) {
  eini_amounts amounts;
  eini_arena arena;
  eini_parser p;
  eini_command c;
  if (grid == NULL) return EIN_ERR_ARGUMENT;
  *grid = NULL;
  eini_begin_call(ctx, NULL);
  if (text == NULL || places < 1 || places > EIN_PLACES_MAX)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL,
                     text == NULL ? "the text is NULL" : "places is %lld", (long long)places);
  memset(&amounts, 0, sizeof amounts);
  amounts.places = places;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_grid *g = EINI_NEW(&arena, ein_grid, 1);
  ein_status st = g == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) st = eini_command_alone(ctx, &arena, text, EINI_C_MACHINE, &amounts, &p, &c);
  if (st == EIN_OK) st = eini_grid_make(&p, &c, places, g);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) g->arena = arena;
  else eini_arena_free(&arena);
  if (st == EIN_OK) *grid = g;
  return st;
}

EIN_API void ein_grid_destroy(ein_grid *g) {
  if (g == NULL) return;
  eini_arena arena = g->arena;
  eini_arena_free(&arena);
}

EIN_API int ein_grid_dimension(const ein_grid *g, int k, ein_grid_dim *dim) {
  if (g == NULL || dim == NULL || k < 0 || k >= g->ndim) return 0;
  *dim = g->dim[k];
  return 1;
}

EIN_API int64_t ein_grid_size(const ein_grid *g) { return g == NULL ? 0 : g->npoint; }

EIN_API int64_t ein_grid_place(const ein_grid *g, int64_t point) {
  return g == NULL || point < 0 || point >= g->npoint ? -1 : eini_grid_place(g, point);
}

EIN_API size_t ein_grid_print(const ein_grid *g, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (g != NULL) eini_say_grid(&t, g);
  return t.at;
}

EIN_API ein_status ein_distribution_create(ein_ctx *ctx, const char *text, int rank,
                                           const ein_grid *grid, ein_distribution **out) {
  eini_arena arena;
  eini_parser p;
  eini_command c;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  if (text == NULL || grid == NULL || rank < 0)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL,
                     text == NULL ? "the text is NULL" : grid == NULL ? "the grid is NULL"
                                                                      : "rank is %d", rank);
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_distribution *d = EINI_NEW(&arena, ein_distribution, 1);
  ein_status st = d == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) st = eini_command_alone(ctx, &arena, text, EINI_C_PLACE, NULL, &p, &c);
  if (st == EIN_OK) st = eini_distribution_make(&p, &c, rank, grid, d);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) d->arena = arena;
  else eini_arena_free(&arena);
  if (st == EIN_OK) *out = d;
  return st;
}

EIN_API void ein_distribution_destroy(ein_distribution *d) {
  if (d == NULL) return;
  eini_arena arena = d->arena;
  eini_arena_free(&arena);
}

EIN_API const ein_grid *ein_distribution_grid(const ein_distribution *d) {
  return d == NULL ? NULL : d->grid;
}

EIN_API size_t ein_distribution_print(const ein_distribution *d, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (d != NULL) eini_say_distribution(&t, d);
  return t.at;
}

// All combinations of one range of each axis.
static ein_status eini_distribution_each(const ein_distribution *d, const eini_runs *run,
                                         int64_t *room, ein_box_fn fn, void *user) {
  const int n = d->rank;
  int64_t *at = room, *lo = room + n, *hi = room + 2 * n;
  for (int r = 0; r < n; r++) {
    at[r] = 0;
    if (run[r].n == 0) return EIN_OK;
  }
  for (int r = n;;) {
    for (r = 0; r < n; r++) {
      lo[r] = run[r].v[2 * at[r]];
      hi[r] = run[r].v[2 * at[r] + 1];
    }
    EINI_TRY(fn(user, lo, hi));
    for (r = n - 1; r >= 0 && ++at[r] == run[r].n; r--) at[r] = 0;
    if (r < 0) return EIN_OK;
  }
}

// coord: room for coordinates and a key; of axes: 3 numbers, and their ranges.
static ein_status eini_distribution_boxes(eini_arena *a, const ein_distribution *d,
                                          const int64_t *shape, int64_t place, ein_box_fn fn,
                                          void *user) {
  const ein_grid *g = d->grid;
  int64_t from, to, nkey;
  int64_t *coord = EINI_NEW(a, int64_t, 2 * (int64_t)g->ndim + 3 * (int64_t)d->rank);
  eini_runs *run = EINI_NEW(a, eini_runs, d->rank);
  eini_keys seen;
  memset(&seen, 0, sizeof seen);
  if (coord == NULL || run == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *key = coord + g->ndim, *room = key + g->ndim;
  eini_grid_points(g, place, &from, &to);
  for (int64_t point = from; point < to; point++) {
    eini_grid_coords(g, point, coord);
    if (!eini_distribution_key(d, coord, key, &nkey)) continue;
    const int64_t before = seen.n, k = eini_key_number(a, &seen, key, nkey);
    if (k < 0) return EIN_ERR_NO_MEMORY;
    if (k < before) continue;  // a point of this place holds the same
    eini_arena scratch;
    eini_arena_init(&scratch, &a->al);
    ein_status st = EIN_OK;
    for (int r = 0; r < d->rank && st == EIN_OK; r++)
      st = eini_distribution_runs(&scratch, d, r, shape[r], coord, &run[r]);
    if (st == EIN_OK) st = eini_distribution_each(d, run, room, fn, user);
    eini_arena_free(&scratch);
    EINI_TRY(st);
  }
  return EIN_OK;
}

EIN_API ein_status ein_distribution_boxes(const ein_distribution *d, const int64_t *shape,
                                          int64_t place, ein_box_fn fn, void *user) {
  eini_arena arena;
  if (d == NULL || fn == NULL || place < 0 || place >= d->grid->places ||
      (shape == NULL && d->rank > 0))
    return EIN_ERR_ARGUMENT;
  for (int r = 0; r < d->rank; r++)
    if (shape[r] < 0) return EIN_ERR_ARGUMENT;
  eini_arena_init(&arena, &d->arena.al);
  const ein_status st = eini_distribution_boxes(&arena, d, shape, place, fn, user);
  eini_arena_free(&arena);
  return st;
}
