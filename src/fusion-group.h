// ================================================================================================
// >>fusion-group  statements in one loop nest of blocks
// Takes statements of a graph; gives the classes of their indices, what crosses the group's border,
// and what one execution in blocks moves and holds.
// ================================================================================================

// A group is run block by block. Indices that have to run together, because one makes the axis of a
// tensor that another reads there, are a class, and a block has a side for each class. In a block
// the members run one after another, each over the points that later members need of it there,
// halos included, points of two blocks again. Tensors that are made and read in the group (held
// ones) are in the fast memory from their first to their last use in a block and never come from
// outside; therefore no side cuts what the maker of one folds, or its halves would have to be kept
// elsewhere. A member streams along one of its indices, or all: what moves with those is there one
// value at a time; or what several members read alike is loaded once and lies there from the first
// of them to the last, if it fits. Blocks follow each other innermost along one class, `last`: what
// has none of its indices stays. All else is loaded and stored for every block again. This is an
// execution, so what it moves is no bound from below, but can be had with so much memory.

#define EINI_FUSE_CLASSES 60
#define EINI_FUSE_MOST 16        // members of a group

enum { EINI_FUSE_READ, EINI_FUSE_STORE, EINI_FUSE_HOLD };

typedef struct eini_fuse_index {  // of a member
  int cls;
  double mul, lo, hi;            // a block that begins at b in its class, of side D, needs the
                                 //   values from mul * b + lo to mul * (b + D - 1) + hi of it
  int like;                      // the first of its member's that moves the same, each alone
  double extent, side, mean;     // the most, and the mean, in a block of the sides at hand
} eini_fuse_index;

typedef struct eini_fuse_term {
  int index;                     // of the group
  double coef;
} eini_fuse_term;

// What a member reads from outside, stores there, or makes to be held. Several accesses to a tensor
// that differ in offsets are one, which is longer.
typedef struct eini_fuse_access {
  int kind, member, tensor;
  int until;                     // HOLD: the last member that reads it; READ: that reads the same
  int same;                      // READ: an earlier member's access that touches the same, or -1
  int from, to;                  // its rows
  uint64_t in;                   // classes that it moves with
  double room;                   // elements in a block, at most
  double weight;                 // of an element that moves
  int stays;                     // from block to block
} eini_fuse_access;

typedef struct eini_fuse_row {
  int from, to;                  // terms
  double longer, most;           // by offsets; the extent of the axis
} eini_fuse_row;

typedef struct eini_fuse_member {
  const eini_stmt *s;
  int first;                     // of its indices
  int from, to;                  // its accesses: reads, and one that stores
  int held, stored;              // its result
  int over;                      // 1: what it makes may take the place of a held operand, unfolded
  uint64_t in, fold;             // classes of its indices, and of those that it folds
  double points;
} eini_fuse_member;

typedef struct eini_fuse {
  int n, nindex, ncls, naccess;
  eini_fuse_member member[EINI_FUSE_MOST];
  eini_fuse_index *index;
  eini_fuse_access *access;
  eini_fuse_row *row;
  eini_fuse_term *term;
  int nrow, nterm;
  double extent[EINI_FUSE_CLASSES], side[EINI_FUSE_CLASSES], times[EINI_FUSE_CLASSES];
  int whole[EINI_FUSE_CLASSES];  // 1: no loop may cut it
  int last;                      // class along which blocks follow each other; -1: none
  int shared;                    // 1: several members read from outside alike, and ..
  int keeps;                     // .. 1: that lies there from the first of them to the last
  double points;                 // of all members
  double io, room, again;        // of the blocks at hand: elements that move and that are held, and
                                 //   points gone through, of points
} eini_fuse;

// Where the statements of a graph find each other, per tensor; all but nread is 0 between calls.
typedef struct eini_fuse_graph {
  const ein_graph *g;
  int *nread;                    // statements that read a tensor
  int *made, *read;              // by the group at hand: how many members do
  int *first, *until;            // one past the first that makes it; the last that reads it
  const double *weight;          // per tensor: of an element that moves; NULL: 1
  int uncut;                     // 1: of groups of several no side cuts what a member folds
  int along;                     // 1: sides may, whatever is made of the folds
} eini_fuse_graph;

static ein_status eini_fuse_graph_make(eini_arena *a, const ein_graph *g, eini_fuse_graph *w) {
  int *p = EINI_NEW(a, int, 5 * g->ntensor);
  memset(w, 0, sizeof *w);
  w->g = g;
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  w->nread = p;
  w->made = p + g->ntensor;
  w->read = p + 2 * g->ntensor;
  w->first = p + 3 * g->ntensor;
  w->until = p + 4 * g->ntensor;
  for (int64_t i = 0; i < g->nstmt; i++)
    for (int k = 0; k < g->stmt[i].noperand; k++)
      w->nread[g->stmt[i].operand[k]] += eini_operand_first(&g->stmt[i], k) == k;
  return EIN_OK;
}

// Counts, for the group at hand, who makes and reads what; undone with by = -1.
static void eini_fuse_count(eini_fuse_graph *w, const eini_fuse *f, int by) {
  for (int m = 0; m < f->n; m++) {
    const eini_stmt *s = f->member[m].s;
    w->made[s->out] += by;
    w->first[s->out] = by < 0 ? 0 : w->first[s->out] > 0 ? w->first[s->out] : m + 1;
    for (int k = 0; k < s->noperand; k++) {
      w->read[s->operand[k]] += eini_operand_first(s, k) < k ? 0 : by;
      w->until[s->operand[k]] = by < 0 ? 0 : m;
    }
  }
}

// Is it made here whole, so that who reads it here reads what is held?
static int eini_fuse_here(const eini_fuse_graph *w, int tensor) {
  return w->made[tensor] > 0 && w->made[tensor] == w->g->tensor[tensor].nstmt;
}

static int eini_fuse_leaves(const eini_fuse_graph *w, int tensor) {
  return w->g->tensor[tensor].role != EIN_ROLE_TEMP || w->read[tensor] < w->nread[tensor] ||
         w->read[tensor] == 0 || !eini_fuse_here(w, tensor);
}

// ---- classes ----

typedef struct eini_fuse_sets {  // while they are found: of indices, and of axes of held tensors
  eini_arena *a;
  const eini_fuse_graph *w;
  eini_fuse *f;
  int *up;                       // [n] union and find
  char *whole;
  eini_fuse_index *range;        // of each; mul 0: nothing needs it yet
  int *axis;                     // [member] node of axis 0 of its result
  int n;
} eini_fuse_sets;

static int eini_fuse_root(const eini_fuse_sets *z, int i) {
  while (z->up[i] != i) i = z->up[i] = z->up[z->up[i]];
  return i;
}

static void eini_fuse_join(eini_fuse_sets *z, int i, int k) {
  i = eini_fuse_root(z, i);
  k = eini_fuse_root(z, k);
  z->whole[i] = (char)(z->whole[i] | z->whole[k]);
  z->up[k] = i;
}

static void eini_fuse_fix(eini_fuse_sets *z, int i) { z->whole[eini_fuse_root(z, i)] = 1; }

// Node x is needed over another range, too.
static void eini_fuse_need(eini_fuse_sets *z, int x, double mul, double lo, double hi) {
  eini_fuse_index *r = &z->range[x];
  if (r->mul > 0 && r->mul != mul) eini_fuse_fix(z, x);
  r->lo = r->mul > 0 ? fmin(r->lo, lo) : lo;
  r->hi = r->mul > 0 ? fmax(r->hi, hi) : hi;
  r->mul = mul;
}

// Coordinate r of a held tensor, as member m reads it: from the index that moves it most.
static void eini_fuse_reads(eini_fuse_sets *z, int m, const eini_map *map, int r, int axis) {
  const eini_fuse_member *x = &z->f->member[m];
  const eini_mapterm *main = NULL;
  double lo = (double)map->offset[r], hi = lo;
  for (int e = map->first[r]; e < map->first[r + 1]; e++) {
    const eini_mapterm *t = &map->term[e];
    if (t->coef > 0 && (main == NULL || x->s->index[t->index].extent >
                                            x->s->index[main->index].extent)) main = t;
  }
  for (int e = map->first[r]; e < map->first[r + 1]; e++) {
    const eini_mapterm *t = &map->term[e];
    const double far = (double)t->coef * (double)(x->s->index[t->index].extent - 1);
    if (t == main) continue;
    eini_fuse_fix(z, x->first + t->index);
    lo += fmin(far, 0);
    hi += fmax(far, 0);
  }
  if (main == NULL) {
    eini_fuse_fix(z, axis);
    eini_fuse_need(z, axis, 1, lo, hi);
    return;
  }
  const eini_fuse_index *i = &z->range[x->first + main->index];
  const double c = (double)main->coef;
  eini_fuse_join(z, x->first + main->index, axis);
  eini_fuse_need(z, axis, c * i->mul, c * i->lo + lo, c * i->hi + hi);
}

// Member m makes what later ones read.
static void eini_fuse_makes(eini_fuse_sets *z, int m) {
  const eini_fuse_member *x = &z->f->member[m];
  const eini_map *map = &x->s->out_map;
  for (int r = 0; r < map->rows; r++) {
    const int axis = z->axis[m] + r;
    int64_t coef;
    const int i = eini_row_index(map, r, &coef);
    const eini_fuse_index need = z->range[axis];
    if (x->stored && (need.mul != 1 || need.lo != 0 || need.hi != 0)) eini_fuse_fix(z, axis);
    if (i >= 0 && coef == 1) {
      const double off = (double)map->offset[r];
      eini_fuse_join(z, x->first + i, axis);
      if (off != 0) eini_fuse_fix(z, axis);
      eini_fuse_need(z, x->first + i, need.mul, need.lo - off, need.hi - off);
      continue;
    }
    eini_fuse_fix(z, axis);
    for (int e = map->first[r]; e < map->first[r + 1]; e++)
      eini_fuse_fix(z, x->first + map->term[e].index);
  }
  for (int i = x->s->nfree; i < x->s->nindex && !z->w->along; i++) eini_fuse_fix(z, x->first + i);
}

// Ranges from the last member to the first, which makes what later ones read.
static void eini_fuse_ranges(eini_fuse_sets *z) {
  for (int m = z->f->n - 1; m >= 0; m--) {
    const eini_fuse_member *x = &z->f->member[m];
    if (x->held) eini_fuse_makes(z, m);
    for (int i = 0; i < x->s->nindex; i++)
      if (eini_index_whole(x->s, i)) eini_fuse_fix(z, x->first + i);
    const int uncut = z->w->uncut && !z->w->along && z->f->n > 1;
    for (int i = x->s->nfree; i < x->s->nindex && uncut; i++) eini_fuse_fix(z, x->first + i);
    for (int i = 0; i < x->s->nindex; i++)
      if (z->range[x->first + i].mul <= 0) eini_fuse_need(z, x->first + i, 1, 0, 0);
    for (int k = 0; k < x->s->noperand; k++) {
      const int t = x->s->operand[k];
      if (!eini_fuse_here(z->w, t)) continue;
      for (int p = 0; p < m; p++)
        for (int r = 0; r < x->s->proj[k].rows && z->f->member[p].s->out == t; r++)
          eini_fuse_reads(z, m, &x->s->proj[k], r, z->axis[p] + r);
    }
  }
}

// Numbers classes. 0: there are too many.
static int eini_fuse_number(eini_fuse_sets *z) {
  eini_fuse *f = z->f;
  int *cls = z->axis;  // of a root, + 1
  memset(cls, 0, (size_t)z->n * sizeof *cls);
  for (int m = 0; m < f->n; m++) {
    eini_fuse_member *x = &f->member[m];
    for (int i = 0; i < x->s->nindex; i++) {
      eini_fuse_index *y = &f->index[x->first + i];
      const int root = eini_fuse_root(z, x->first + i);
      if (cls[root] == 0 && f->ncls == EINI_FUSE_CLASSES) return 0;
      if (cls[root] == 0) f->extent[f->ncls] = 1, cls[root] = ++f->ncls;
      *y = z->range[x->first + i];
      y->cls = cls[root] - 1;
      y->extent = (double)x->s->index[i].extent;
      f->whole[y->cls] |= z->whole[root] || (x->in >> y->cls & 1);
      x->in |= (uint64_t)1 << y->cls;
      if (i >= x->s->nfree) x->fold |= (uint64_t)1 << y->cls;
      const double n = ceil((y->extent - 1 - (y->hi - y->lo)) / y->mul) + 1;
      f->extent[y->cls] = fmax(f->extent[y->cls], n);
    }
  }
  for (int i = 0; i < f->nindex; i++)  // whole: all that there is of each
    if (f->whole[f->index[i].cls])
      f->extent[f->index[i].cls] = fmax(f->extent[f->index[i].cls], f->index[i].extent);
  return 1;
}

static ein_status eini_fuse_classes(eini_arena *a, const eini_fuse_graph *w, eini_fuse *f,
                                    int *fits) {
  eini_fuse_sets z;
  memset(&z, 0, sizeof z);
  z.w = w;
  z.f = f;
  z.n = f->nindex;
  for (int m = 0; m < f->n; m++) z.n += f->member[m].s->out_map.rows;
  z.n = z.n > f->n ? z.n : f->n;
  z.up = EINI_NEW(a, int, z.n);
  z.axis = EINI_NEW(a, int, z.n);
  z.whole = EINI_NEW(a, char, z.n);
  z.range = EINI_NEW(a, eini_fuse_index, z.n);
  if (z.up == NULL || z.axis == NULL || z.whole == NULL || z.range == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < z.n; i++) z.up[i] = i;
  for (int m = 0, at = f->nindex; m < f->n; m++) {
    z.axis[m] = at;
    at += f->member[m].s->out_map.rows;
  }
  eini_fuse_ranges(&z);
  *fits = eini_fuse_number(&z);
  return EIN_OK;
}

// ---- accesses ----

// Appends an access; rows that are there already, and those without indices, say nothing.
static eini_fuse_access *eini_fuse_access_add(const eini_fuse_graph *w, eini_fuse *f, int kind,
                                              int m, int tensor, const eini_map *map) {
  eini_fuse_access *x = &f->access[f->naccess++];
  const eini_fuse_member *y = &f->member[m];
  memset(x, 0, sizeof *x);
  x->kind = kind;
  x->weight = w->weight == NULL ? 1 : w->weight[tensor];
  x->member = m;
  x->tensor = tensor;
  x->from = f->nrow;
  for (int r = 0; r < map->rows; r++) {
    eini_fuse_row *row = &f->row[f->nrow];
    int64_t d = 0;
    for (int e = map->first[r]; e < map->first[r + 1]; e++) d = eini_gcd64(d, map->term[e].coef);
    if (d == 0 || eini_row_again(map, r)) continue;
    f->nrow++;
    row->from = f->nterm;
    row->longer = 0;
    row->most = (double)w->g->tensor[tensor].shape[r];
    for (int e = map->first[r]; e < map->first[r + 1]; e++) {
      eini_fuse_term *t = &f->term[f->nterm++];
      t->index = y->first + map->term[e].index;
      t->coef = (double)eini_abs64(map->term[e].coef / d);
      x->in |= (uint64_t)1 << f->index[t->index].cls;
    }
    row->to = f->nterm;
  }
  x->to = f->nrow;
  return x;
}

// The reads of member m from outside: one for all accesses that differ in offsets.
static void eini_fuse_reads_of(const eini_fuse_graph *w, eini_fuse *f, int m) {
  const eini_stmt *s = f->member[m].s;
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k];
    int again = eini_fuse_here(w, t);
    for (int j = 0; j < k && !again; j++)
      again = s->operand[j] == t && eini_map_alike(&s->proj[j], &s->proj[k]);
    if (again) continue;
    eini_fuse_access *x = eini_fuse_access_add(w, f, EINI_FUSE_READ, m, t, &s->proj[k]);
    for (int r = 0, at = x->from; r < s->proj[k].rows && at < x->to; r++) {
      int64_t lo = s->proj[k].offset[r], hi = lo;
      if (eini_map_terms(&s->proj[k], r) == 0 || eini_row_again(&s->proj[k], r)) continue;
      for (int j = k + 1; j < s->noperand; j++) {
        if (s->operand[j] != t || !eini_map_alike(&s->proj[j], &s->proj[k])) continue;
        lo = eini_min64(lo, s->proj[j].offset[r]);
        hi = eini_max64(hi, s->proj[j].offset[r]);
      }
      f->row[at++].longer = (double)hi - (double)lo;
    }
  }
}

// May the result take the place of an operand that ends here, element by element?
static int eini_fuse_over(const eini_fuse_graph *w, const eini_fuse *f, int m) {
  const eini_stmt *s = f->member[m].s;
  if (s->nfree < s->nindex || !f->member[m].held || f->member[m].stored) return 0;
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k], p = w->first[t] - 1;
    if (!eini_fuse_here(w, t) || w->until[t] != m || w->made[t] != 1 || w->made[s->out] != 1)
      continue;
    int reads = 0;
    for (int j = 0; j < s->noperand; j++) reads += s->operand[j] == t;
    if (reads == 1 && eini_map_equal(&s->proj[k], &s->out_map) && !eini_fuse_leaves(w, t) &&
        f->member[p].in == f->member[m].in) return 1;
  }
  return 0;
}

// Does index i of the group stand in a row of an access? 2: with others, or in a longer one.
static int eini_fuse_moved(const eini_fuse *f, const eini_fuse_access *x, int i) {
  int found = 0;
  for (int r = x->from; r < x->to; r++) {
    const eini_fuse_row *row = &f->row[r];
    for (int e = row->from; e < row->to; e++)
      if (f->term[e].index == i) found |= row->to - row->from > 1 || row->longer > 0 ? 2 : 1;
  }
  return found;
}

// A member streams along all indices at once that stand in the same accesses.
static void eini_fuse_likes(eini_fuse *f, int m) {
  const eini_fuse_member *x = &f->member[m];
  for (int i = x->first; i < x->first + x->s->nindex; i++) {
    int like = x->first - 1, same = 0;
    while (!same && ++like < i) {
      same = f->index[like].like == like;
      for (int k = x->from; k < x->to && same; k++) {
        const int a = eini_fuse_moved(f, &f->access[k], i);
        same = a < 2 && a == eini_fuse_moved(f, &f->access[k], like);
      }
    }
    f->index[i].like = like;
  }
}

// Do two members read the same elements of a tensor, in every block?
static int eini_fuse_alike(const eini_fuse *f, const eini_fuse_access *x,
                           const eini_fuse_access *y) {
  if (x->tensor != y->tensor || x->to - x->from != y->to - y->from) return 0;
  for (int r = 0; r < x->to - x->from; r++) {
    const eini_fuse_row *a = &f->row[x->from + r], *b = &f->row[y->from + r];
    if (a->to - a->from != b->to - b->from || a->longer != b->longer) return 0;
    for (int e = 0; e < a->to - a->from; e++) {
      const eini_fuse_term *s = &f->term[a->from + e], *t = &f->term[b->from + e];
      const eini_fuse_index *i = &f->index[s->index], *j = &f->index[t->index];
      if (s->coef != t->coef || i->cls != j->cls || i->mul != j->mul || i->lo != j->lo ||
          i->hi != j->hi || i->extent != j->extent) return 0;
    }
  }
  return 1;
}

static void eini_fuse_shares(eini_fuse *f) {
  for (int k = 0; k < f->naccess; k++) {
    eini_fuse_access *x = &f->access[k];
    x->same = -1;
    if (x->kind != EINI_FUSE_READ) continue;
    x->until = x->member;
    for (int j = 0; j < k && x->same < 0; j++) {
      eini_fuse_access *y = &f->access[j];
      if (y->kind != EINI_FUSE_READ || y->same >= 0 || y->member == x->member) continue;
      if (!eini_fuse_alike(f, y, x)) continue;
      x->same = j;
      f->shared = 1;
      y->until = x->member;
    }
  }
}

static ein_status eini_fuse_accesses(eini_arena *a, const eini_fuse_graph *w, eini_fuse *f) {
  int64_t nrow = 0, nterm = 0, n = 0;
  for (int m = 0; m < f->n; m++) {
    const eini_stmt *s = f->member[m].s;
    for (int k = -1; k < s->noperand; k++) {
      const eini_map *map = eini_access(s, k);
      const int twice = k < 0 ? 2 : 1;
      n += twice;
      nrow += (int64_t)twice * map->rows;
      nterm += (int64_t)twice * map->first[map->rows];
    }
  }
  f->access = EINI_NEW(a, eini_fuse_access, n);
  f->row = EINI_NEW(a, eini_fuse_row, nrow + 1);
  f->term = EINI_NEW(a, eini_fuse_term, nterm);
  if (f->access == NULL || f->row == NULL || f->term == NULL) return EIN_ERR_NO_MEMORY;
  for (int m = 0; m < f->n; m++) {
    eini_fuse_member *x = &f->member[m];
    const int t = x->s->out;
    x->from = f->naccess;
    eini_fuse_reads_of(w, f, m);
    if (x->stored) eini_fuse_access_add(w, f, EINI_FUSE_STORE, m, t, &x->s->out_map);
    x->over = eini_fuse_over(w, f, m);
    x->to = f->naccess;
    eini_fuse_likes(f, m);
    if (!x->held) continue;
    eini_fuse_access_add(w, f, EINI_FUSE_HOLD, m, t, &x->s->out_map)->until = w->until[t];
  }
  eini_fuse_shares(f);
  return EIN_OK;
}

// The group of statements list[0..n), ascending; its members, and nothing else yet.
static void eini_fuse_of(const eini_fuse_graph *w, const int64_t *list, int n, eini_fuse *f) {
  memset(f, 0, sizeof *f);
  f->n = n;
  f->last = -1;
  for (int m = 0; m < n; m++) f->member[m].s = &w->g->stmt[list[m]];
}

// All else. *fits: 0: it has too many classes.
static ein_status eini_fuse_make(eini_arena *a, eini_fuse_graph *w, eini_fuse *f, int *fits) {
  for (int m = 0; m < f->n; m++) {
    eini_fuse_member *x = &f->member[m];
    x->first = f->nindex;
    x->points = eini_points(x->s, NULL, 0, x->s->nindex);
    f->nindex += x->s->nindex;
    f->points += x->points;
  }
  if ((f->index = EINI_NEW(a, eini_fuse_index, f->nindex)) == NULL) return EIN_ERR_NO_MEMORY;
  eini_fuse_count(w, f, 1);
  for (int m = 0; m < f->n; m++) {
    eini_fuse_member *x = &f->member[m];
    x->held = eini_fuse_here(w, x->s->out) && w->read[x->s->out] > 0;
    x->stored = eini_fuse_leaves(w, x->s->out);
  }
  ein_status st = eini_fuse_classes(a, w, f, fits);
  if (st == EIN_OK && *fits) st = eini_fuse_accesses(a, w, f);
  eini_fuse_count(w, f, -1);
  return st;
}
