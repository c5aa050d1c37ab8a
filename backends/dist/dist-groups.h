// ================================================================================================
// >>dist-groups  blocks that many places read whole, and folds over many
// Takes the moves of a plan whose processes drive a place each; gives groups of places and, to the
// moves of a block that all of one read whole, or of partial results, a turn in that group.
// ================================================================================================

typedef struct eini_dist_groups {
  eini_arena arena;
  int n, *first, *turns, *number;
  int64_t capfirst, capturns;
  int *place;               // those of group g: place[first[g]] .. place[first[g + 1] - 1]
  int64_t cap;
  int *reader;              // of the block at hand
  int64_t nreader;
  int64_t whole;            // elements of that block
} eini_dist_groups;

static ein_status eini_dist_group_reader(void *user, const eini_dist_transfer *t,
                                         eini_dist_room *m) {
  eini_dist_groups *x = (eini_dist_groups *)user;
  (void)m;
  if (t->elements == x->whole && t->place != t->home) x->reader[x->nreader++] = (int)t->place;
  return EIN_OK;
}

static void eini_dist_group_sort(int64_t n, int *v) {
  for (int64_t i = 1; i < n; i++)
    for (int64_t j = i; j > 0 && v[j] < v[j - 1]; j--) {
      const int t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
}

// The group of the n places in x->reader; -1: no memory.
static int eini_dist_group_of(eini_dist_groups *x, int64_t n) {
  const size_t bytes = (size_t)n * sizeof *x->place;
  for (int g = 0; g < x->n; g++)
    if (x->first[g + 1] - x->first[g] == n &&
        memcmp(x->place + x->first[g], x->reader, bytes) == 0) return g;
  const int at = x->n == 0 ? 0 : x->first[x->n];
  if (x->cap < at + n) {
    int *more = EINI_NEW(&x->arena, int, 2 * (at + n));
    if (more == NULL) return -1;
    if (at > 0) memcpy(more, x->place, (size_t)at * sizeof *more);
    x->place = more;
    x->cap = 2 * (at + n);
  }
  int *first = (int *)eini_grow(&x->arena, x->first, x->n == 0 ? 0 : x->n + 1, &x->capfirst,
                                sizeof *first);
  int *turns = (int *)eini_grow(&x->arena, x->turns, x->n, &x->capturns, sizeof *turns);
  if (first == NULL || turns == NULL) return -1;
  x->first = first;
  x->turns = turns;
  memcpy(x->place + at, x->reader, bytes);
  x->first[x->n] = at;
  x->first[x->n + 1] = at + (int)n;
  x->turns[x->n] = 0;
  return x->n++;
}

// The block of statement `define` at home, read by statement k through operand o: does this place
// take part in a group that moves it? Then the moves of it get a turn.
static ein_status eini_dist_group_block(ein_dist *d, int k, int o, int define, int64_t home,
                                        eini_dist_groups *x, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const int64_t q = d->fabric.first;
  int64_t n = 0;
  int here = home == q;
  x->nreader = 0;
  x->whole = eini_dist_elements(&d->stmt[define].space, home, m);
  EINI_TRY(eini_dist_block_transfers(d, k, o, define, home, m, eini_dist_group_reader, x));
  x->reader[x->nreader++] = (int)home;
  for (int64_t i = 0; i < x->nreader; i++) here |= x->reader[i] == q;
  if (x->nreader < EINI_DIST_GROUP || !here) return EIN_OK;
  eini_dist_group_sort(x->nreader, x->reader);
  const int g = eini_dist_group_of(x, x->nreader);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
    eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_NONE || v->operand != o || v->define != define) continue;
    if (v->elements != x->whole || (v->kind == EINI_JOB_SEND ? q : v->peer) != home) continue;
    v->group = n++ == 0 ? g : -2 - g;  // one message to all
    v->turn = x->turns[g];
  }
  x->turns[g]++;
  return EIN_OK;
}

// All of statement k that this place has to do with, by operand, block and home.
static ein_status eini_dist_group_stmt(ein_dist *d, int k, eini_dist_groups *x,
                                       eini_dist_room *m) {
  const eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine; u++) {
      for (int64_t last = -1, home;; last = home) {
        home = INT64_MAX;
        for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
          const eini_dist_moved *v = &c->move[i];
          const int64_t at = v->kind == EINI_JOB_SEND ? q : v->peer;
          if (v->kind != EINI_JOB_NONE && v->operand == o && v->define == t->define[u] &&
              at > last && at < home) home = at;
        }
        if (home == INT64_MAX) break;
        EINI_TRY(eini_dist_group_block(d, k, o, t->define[u], home, x, m));
      }
    }
  }
  return EIN_OK;
}

// The partial results of this place's block of statement k, where the fabric may fold them: the
// message up of the last level is the one that is posted.
static ein_status eini_dist_group_partials(ein_dist *d, int k, eini_dist_groups *x) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first, n = e->space.nagg;
  eini_dist_moved *last = NULL;
  if (q >= e->space.ntask || !eini_dist_may_reduce(d, e)) return EIN_OK;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++)
    if (c->move[i].level >= 0) last = &c->move[i];  // levels ascend
  if (last == NULL) return EIN_OK;  // of no elements
  for (x->nreader = 0; x->nreader < n; x->nreader++)
    x->reader[x->nreader] = (int)eini_space_partner(&e->space, q, x->nreader);
  const int g = eini_dist_group_of(x, n);
  if (g < 0) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[k]; i < c->first[k + 1]; i++) {
    eini_dist_moved *v = &c->move[i];
    if (v->level < 0) continue;
    v->group = v == last ? g : -2 - g;
    v->turn = x->turns[g];
  }
  x->turns[g]++;
  return EIN_OK;
}

// Collective. Numbers of the groups, where st is EIN_OK; *st: whether this process has them.
static ein_status eini_dist_groups_number(const ein_dist *d, eini_dist_groups *x, ein_status *st) {
  const ein_fabric *f = &d->fabric;
  x->number = EINI_NEW(&x->arena, int, (int64_t)x->n + 1);
  if (x->number == NULL) *st = EIN_ERR_NO_MEMORY;
  return f->groups_fn(f->user, *st == EIN_OK ? x->n : -1, x->first, x->place, x->turns, x->number);
}

// What a move says of a group, by its number. Returns whether it said something.
static int eini_dist_group_said(const eini_dist_groups *x, int32_t *group, int32_t *turns) {
  const int lead = *group >= 0, g = lead ? *group : -2 - *group;
  if (g < 0) return 0;
  *turns = x->turns[g];
  *group = x->number[g] < 0 ? -1 : lead ? x->number[g] : EINI_FOLLOWS;
  return 1;
}

// Collective: all processes have made their plans.
static ein_status eini_dist_groups_make(ein_dist *d) {
  const ein_fabric *f = &d->fabric;
  eini_dist_copies *c = d->copies;
  eini_dist_groups x;
  eini_dist_room room;
  if (f->groups_fn == NULL || c == NULL) return EIN_OK;
  memset(&x, 0, sizeof x);
  eini_arena_init(&x.arena, &d->al);
  x.reader = EINI_NEW(&x.arena, int, (int64_t)f->places + 1);
  ein_status st = x.reader != NULL && eini_dist_room_init(&x.arena, d->rank, &room)
                      ? EIN_OK : EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) {
    st = eini_dist_group_stmt(d, k, &x, &room);
    if (st == EIN_OK) st = eini_dist_group_partials(d, k, &x);
  }
  const ein_status all = eini_dist_groups_number(d, &x, &st);
  for (int64_t i = 0; i < c->nmove && st == EIN_OK && all == EIN_OK; i++) {
    eini_dist_moved *v = &c->move[i];
    if (eini_dist_group_said(&x, &v->group, &v->turns) && v->level >= 0)
      d->stmt[v->define].reduced = v->group != -1;
  }
  eini_arena_free(&x.arena);
  return all;
}
