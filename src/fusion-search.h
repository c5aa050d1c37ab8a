// ================================================================================================
// >>fusion-search  partitions of statements into groups
// Takes a graph; gives the partition into connected convex groups, in an order in which they can
// run, that moves least. Exact for windows of 16 statements, one after another beyond.
// ================================================================================================

#define EINI_FUSE_WORK 4096      // groups whose blocks are searched, by default
#define EINI_FUSE_STEPS (1 << 24) // groups tried behind another set of statements, in a window

typedef struct eini_fuse_known {  // of groups of one form
  double io;                     // INFINITY: no block fits
  double *side;                  // of the classes of a member's indices, in the form's order
  int member, index;             // whose class is the last one; -1: none
  double compulsory, bound;
  int bounded;
  double gain;                   // see eini_bundle; 0 before it was found
  int gained;                    // 1: it was
} eini_fuse_known;

typedef struct eini_fuse_shape {  // of a statement: what it is in the first of its form
  int64_t first;
  int *index, *operand;
} eini_fuse_shape;

typedef struct eini_fuse_search {
  eini_arena *a, scratch;        // a: what is known stays here
  eini_fuse_graph w;
  double fast;
  int64_t work, looked;
  int proved;
  eini_fuse_shape *shape;
  int *number;                   // per tensor: scratch of keys
  int64_t *key, capkey;
  eini_keys keys, windows;
  eini_fuse_known *known;
  int64_t capknown;
  double *best;                  // [1 << n] of sets of a window's statements that can run first
  int *from;                     // the group that was added last, as a mask
  int64_t *groups;               // per set of a window that was solved: groups as masks, 0 behind
  int64_t capgroups;
} eini_fuse_search;

// ---- what is known of groups ----

static ein_status eini_fuse_shapes(eini_fuse_search *z) {
  const ein_graph *g = z->w.g;
  eini_besides b;
  eini_forms forms;
  memset(&b, 0, sizeof b);
  b.what = EINI_SAME_EXTENTS | EINI_SAME_AXES | EINI_SAME_ALONE;
  z->shape = EINI_NEW(z->a, eini_fuse_shape, g->nstmt);
  if (z->shape == NULL) return EIN_ERR_NO_MEMORY;
  eini_forms_init(&forms, z->a, 0);
  ein_status st = EIN_OK;
  for (int64_t i = 0; i < g->nstmt && st == EIN_OK; i++) {
    const eini_stmt *s = &g->stmt[i];
    eini_fuse_shape *x = &z->shape[i];
    eini_match m;
    st = eini_forms_find(&forms, g, s, &b, i, &m);
    if (st != EIN_OK) break;
    x->first = m.first;
    x->index = EINI_NEW(z->a, int, s->nindex);
    x->operand = EINI_NEW(z->a, int, s->noperand);
    if (x->index == NULL || x->operand == NULL) st = EIN_ERR_NO_MEMORY;
    for (int c = 0; c < s->nindex && st == EIN_OK; c++) x->index[c] = eini_match_index(&m, c);
    for (int k = 0; k < s->noperand && st == EIN_OK; k++)
      x->operand[k] = eini_match_operand(&m, k);
  }
  eini_forms_free(&forms);
  return st;
}

// What statements are together: equal for groups that differ in names and orders only. Returns the
// words of the key; -1: out of memory.
static int64_t eini_fuse_key(eini_fuse_search *z, const int64_t *list, const eini_fuse *f) {
  int64_t n = 0, most = 0;
  int tensors = 0;
  for (int m = 0; m < f->n; m++) most += 2 + f->member[m].s->noperand;
  while (z->capkey < most) {
    int64_t *p = (int64_t *)eini_grow(z->a, z->key, z->capkey, &z->capkey, sizeof *p);
    if (p == NULL) return -1;
    z->key = p;
  }
  for (int m = 0; m < f->n; m++) {
    const eini_stmt *s = f->member[m].s;
    const eini_fuse_shape *x = &z->shape[list[m]];
    int64_t *slot = z->key + n + 2;
    z->key[n] = x->first;
    z->key[n + 1] = eini_fuse_leaves(&z->w, s->out);
    for (int k = 0; k < s->noperand; k++) slot[x->operand[k]] = s->operand[k];
    for (int k = 0; k < s->noperand; k++) {
      const int64_t t = slot[k];
      if (z->number[t] == 0) z->number[t] = ++tensors;
      slot[k] = 2 * z->number[t] + eini_fuse_here(&z->w, (int)t);
    }
    if (z->number[s->out] == 0) z->number[s->out] = ++tensors;
    z->key[n + 1] += 2 * z->number[s->out];
    n += 2 + s->noperand;
  }
  for (int m = 0; m < f->n; m++) {
    const eini_stmt *s = f->member[m].s;
    z->number[s->out] = 0;
    for (int k = 0; k < s->noperand; k++) z->number[s->operand[k]] = 0;
  }
  return n;
}

// A statement alone whose blocks cannot be found: every point loads what it reads.
static double eini_fuse_plain(const eini_stmt *s) {
  const double points = eini_points(s, NULL, 0, s->nindex);
  const double results = eini_points(s, NULL, 0, s->nfree);
  return points * s->noperand + (s->nfree < s->nindex ? fmax(2 * points, results) : results);
}

// Searches the blocks of a group.
static ein_status eini_fuse_learn(eini_fuse_search *z, const int64_t *list, double alone,
                                  eini_fuse *f, eini_fuse_known *x) {
  int fits, empty = 0, at = 0;
  EINI_TRY(eini_fuse_make(&z->scratch, &z->w, f, &fits));
  x->io = INFINITY;
  x->member = -1;
  for (int m = 0; m < f->n; m++) empty |= f->member[m].points <= 0;
  if (fits && !empty) eini_fuse_tile(f, z->fast, alone);
  if (fits && !empty) x->io = f->io;
  if (f->n == 1 && !(x->io < INFINITY)) x->io = eini_fuse_plain(f->member[0].s);
  if ((x->side = EINI_NEW(z->a, double, f->nindex)) == NULL) return EIN_ERR_NO_MEMORY;
  for (int m = 0; m < f->n && fits; m++) {
    const int n = f->member[m].s->nindex;
    for (int c = 0; c < n; c++) {
      const int i = z->shape[list[m]].index[c], cls = f->index[f->member[m].first + c].cls;
      x->side[at + i] = f->side[cls] > 0 ? f->side[cls] : 1;
      if (cls == f->last) x->member = m, x->index = i;
    }
    at += n;
  }
  return EIN_OK;
}

// What is known of a group; alone: what its members move one by one. NULL behind *to: there is no
// work left to find out.
static ein_status eini_fuse_ask(eini_fuse_search *z, const int64_t *list, int n, double alone,
                                eini_fuse_known **to) {
  const eini_arena_at mark = eini_arena_mark(&z->scratch);
  const int64_t had = z->keys.n;
  eini_fuse f;
  *to = NULL;
  eini_fuse_of(&z->w, list, n, &f);
  eini_fuse_count(&z->w, &f, 1);
  const int64_t words = eini_fuse_key(z, list, &f);
  eini_fuse_count(&z->w, &f, -1);
  if (words < 0) return EIN_ERR_NO_MEMORY;
  const int64_t k = eini_key_number(z->a, &z->keys, z->key, words);
  if (k < 0) return EIN_ERR_NO_MEMORY;
  if (k == had) {
    eini_fuse_known *p =
        (eini_fuse_known *)eini_grow(z->a, z->known, k, &z->capknown, sizeof *p);
    if (p == NULL) return EIN_ERR_NO_MEMORY;
    z->known = p;
    memset(&p[k], 0, sizeof *p);
  }
  *to = &z->known[k];
  if ((*to)->side != NULL) return EIN_OK;
  if (n > 1 && z->looked >= z->work) {
    z->proved = 0;
    *to = NULL;
    return EIN_OK;
  }
  z->looked++;
  EINI_TRY(eini_fuse_learn(z, list, alone, &f, *to));
  eini_arena_rollback(&z->scratch, &mark);
  return EIN_OK;
}

// A group with the sides that are known of it. *fits: 0: it has too many classes.
static ein_status eini_fuse_recall(eini_fuse_search *z, const int64_t *list, int n,
                                   const eini_fuse_known *k, eini_fuse *f, int *fits) {
  eini_fuse_of(&z->w, list, n, f);
  EINI_TRY(eini_fuse_make(&z->scratch, &z->w, f, fits));
  for (int m = 0, at = 0; m < n && *fits; at += f->member[m++].s->nindex) {
    for (int c = 0; c < f->member[m].s->nindex; c++) {
      const int i = z->shape[list[m]].index[c], cls = f->index[f->member[m].first + c].cls;
      f->side[cls] = k->side[at + i];
      if (k->member == m && k->index == i) f->last = cls;
    }
  }
  if (*fits && f->points > 0) eini_fuse_weigh(f, z->fast, INFINITY);
  return EIN_OK;
}

// a: what is known stays there; scratch is the caller's to free, unless this fails.
static ein_status eini_fuse_search_make(eini_fuse_search *z, eini_arena *a, const ein_graph *g,
                                        double fast, int64_t work) {
  memset(z, 0, sizeof *z);
  eini_arena_init(&z->scratch, &a->al);
  z->a = a;
  z->fast = fast;
  z->work = work > 0 ? work : EINI_FUSE_WORK;
  z->proved = 1;
  z->number = EINI_NEW(a, int, g->ntensor);
  ein_status st = z->number == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) st = eini_fuse_graph_make(a, g, &z->w);
  if (st == EIN_OK) st = eini_fuse_shapes(z);
  if (st != EIN_OK) eini_arena_free(&z->scratch);
  return st;
}

// ---- windows ----

typedef struct eini_fuse_set {    // a connected convex set of a window's statements
  unsigned mask;
  int asked;                     // 1: io is known
  double io;
} eini_fuse_set;

typedef struct eini_fuse_window {
  int n;
  int64_t list[EINI_FUSE_MOST];
  unsigned before[EINI_FUSE_MOST], beside[EINI_FUSE_MOST];  // those it reads; and that read it
  unsigned above[EINI_FUSE_MOST], below[EINI_FUSE_MOST];    // all that it waits for, that wait
  eini_fuse_set *set;
  int64_t nset, capset;
  int first[EINI_FUSE_MOST + 1];  // sets by their first statement
} eini_fuse_window;

static void eini_fuse_edges(const eini_fuse_search *z, eini_fuse_window *x) {
  for (int i = 0; i < x->n; i++) {
    const eini_stmt *s = &z->w.g->stmt[x->list[i]];
    x->before[i] = x->beside[i] = x->above[i] = x->below[i] = 0;
    for (int j = 0; j < i; j++) {
      const int t = z->w.g->stmt[x->list[j]].out;
      int reads = 0;
      for (int k = 0; k < s->noperand; k++) reads |= s->operand[k] == t;
      if (!reads) continue;
      x->before[i] |= 1u << j;
      x->beside[i] |= 1u << j;
      x->beside[j] |= 1u << i;
      x->above[i] |= x->above[j] | 1u << j;
    }
    for (int j = 0; j < i; j++)
      if (x->above[i] >> j & 1) x->below[j] |= 1u << i;
  }
}

static ein_status eini_fuse_add_set(eini_fuse_search *z, eini_fuse_window *x, unsigned mask) {
  unsigned above = 0, below = 0;
  for (int i = 0; i < x->n; i++) {
    if (!(mask >> i & 1)) continue;
    above |= x->above[i];
    below |= x->below[i];
  }
  if (above & below & ~mask) return EIN_OK;
  eini_fuse_set *p =
      (eini_fuse_set *)eini_grow(&z->scratch, x->set, x->nset, &x->capset, sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  x->set = p;
  p += x->nset++;
  p->mask = mask;
  p->asked = 0;
  p->io = INFINITY;
  return EIN_OK;
}

// Every connected set that holds `mask`, with any of `next` and what is beside those, but none of
// `out`, once.
static ein_status eini_fuse_connected(eini_fuse_search *z, eini_fuse_window *x, unsigned mask,
                                      unsigned next, unsigned out) {
  EINI_TRY(eini_fuse_add_set(z, x, mask));
  for (int i = 0; i < x->n; i++) {
    if (!((next & ~out & ~mask) >> i & 1)) continue;
    EINI_TRY(eini_fuse_connected(z, x, mask | 1u << i, next | x->beside[i], out));
    out |= 1u << i;
  }
  return EIN_OK;
}

// Sets by their first statement, smaller ones before larger.
static ein_status eini_fuse_sets_make(eini_fuse_search *z, eini_fuse_window *x) {
  unsigned out = 0;
  for (int i = 0; i < x->n; i++) {
    x->first[i] = (int)x->nset;
    EINI_TRY(eini_fuse_connected(z, x, 1u << i, x->beside[i], out));
    out |= 1u << i;
    const int64_t n = x->nset - x->first[i];
    eini_fuse_set *own = x->set + x->first[i], *was = EINI_NEW(&z->scratch, eini_fuse_set, n);
    if (was == NULL) return EIN_ERR_NO_MEMORY;
    memcpy(was, own, (size_t)n * sizeof *was);
    int64_t at = 0;
    for (int size = 1; size <= x->n; size++)
      for (int64_t k = 0; k < n; k++)
        if (eini_count_bits(was[k].mask) == size) own[at++] = was[k];
  }
  x->first[x->n] = (int)x->nset;
  return EIN_OK;
}

static int eini_fuse_members(const eini_fuse_window *x, unsigned mask, int64_t *list) {
  int n = 0;
  for (int i = 0; i < x->n; i++)
    if (mask >> i & 1) list[n++] = x->list[i];
  return n;
}

static ein_status eini_fuse_set_io(eini_fuse_search *z, const eini_fuse_window *x,
                                   eini_fuse_set *s) {
  int64_t list[EINI_FUSE_MOST];
  eini_fuse_known *k;
  double alone = 0;
  if (s->asked) return EIN_OK;
  const int n = eini_fuse_members(x, s->mask, list);
  for (int i = 0; i < n && n > 1; i++) {
    EINI_TRY(eini_fuse_ask(z, &list[i], 1, INFINITY, &k));
    alone += k->io;
  }
  EINI_TRY(eini_fuse_ask(z, list, n, n > 1 ? alone : INFINITY, &k));
  s->asked = 1;
  s->io = k == NULL ? INFINITY : k->io;
  return EIN_OK;
}

// Sets of statements that can run first, from small to large, and every group that can follow.
static ein_status eini_fuse_order(eini_fuse_search *z, eini_fuse_window *x) {
  const unsigned all = (1u << x->n) - 1;
  int64_t steps = 0;
  for (unsigned i = 0; i <= all; i++) z->best[i] = INFINITY;
  z->best[0] = 0;
  for (unsigned done = 0; done < all; done++) {
    if (!(z->best[done] < INFINITY)) continue;
    for (int i = 0; i < x->n; i++) {
      if ((done >> i & 1) || (x->before[i] & ~done)) continue;
      for (int k = x->first[i]; k < x->first[i + 1]; k++) {
        eini_fuse_set *s = &x->set[k];
        unsigned before = 0;
        if (s->mask & done) continue;
        if (++steps > EINI_FUSE_STEPS && s->mask != 1u << i) {
          z->proved = 0;
          break;
        }
        for (int j = i; j < x->n; j++) before |= s->mask >> j & 1 ? x->before[j] : 0;
        if (before & ~done & ~s->mask) continue;
        EINI_TRY(eini_fuse_set_io(z, x, s));
        const unsigned to = done | s->mask;
        if (!(z->best[done] + s->io < z->best[to] * (1 - 1e-12))) continue;
        z->best[to] = z->best[done] + s->io;
        z->from[to] = (int)s->mask;
      }
    }
  }
  return EIN_OK;
}

// The groups of a window, in order, as masks; the one behind the last is 0.
EINI_UNUSED static ein_status eini_fuse_window_solve(eini_fuse_search *z, eini_fuse_window *x,
                                                     int64_t *groups) {
  const eini_arena_at mark = eini_arena_mark(&z->scratch);
  const int64_t had = z->windows.n, most = EINI_FUSE_MOST + 1;
  eini_fuse f;
  eini_fuse_of(&z->w, x->list, x->n, &f);
  eini_fuse_count(&z->w, &f, 1);
  const int64_t words = eini_fuse_key(z, x->list, &f);
  eini_fuse_count(&z->w, &f, -1);
  const int64_t k = words < 0 ? -1 : eini_key_number(z->a, &z->windows, z->key, words);
  if (k < 0) return EIN_ERR_NO_MEMORY;
  if (k < had) {
    memcpy(groups, z->groups + k * most, (size_t)most * sizeof *groups);
    return EIN_OK;
  }
  int64_t *p = (int64_t *)eini_grow(z->a, z->groups, k, &z->capgroups, (size_t)most * sizeof *p);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  z->groups = p;
  eini_fuse_edges(z, x);
  EINI_TRY(eini_fuse_sets_make(z, x));
  EINI_TRY(eini_fuse_order(z, x));
  int n = 0;
  for (int i = 0; i < (int)most; i++) groups[i] = 0;
  for (int at = (1 << x->n) - 1; at > 0; at &= ~z->from[at]) groups[n++] = z->from[at];
  for (int i = 0; i < n / 2; i++) {
    const int64_t was = groups[i];
    groups[i] = groups[n - 1 - i];
    groups[n - 1 - i] = was;
  }
  memcpy(z->groups + k * most, groups, (size_t)most * sizeof *groups);
  eini_arena_rollback(&z->scratch, &mark);
  return EIN_OK;
}
