// ================================================================================================
// >>loops  a statement's loops under a schedule
// Takes commands; gives a nest: the indices of a statement and what they were cut into, in order,
// each over places, over time, or whole in a step. What is illegal is refused, with the reason.
// ================================================================================================

#define EINI_LOOPS_MAX 256
#define EINI_STEPS_MAX ((int64_t)1 << 24)

enum { EINI_AS_LIVE, EINI_AS_CUT, EINI_AS_FUSED, EINI_AS_TURNED };  // what became of a loop
enum { EINI_MADE_INDEX, EINI_MADE_OUTER, EINI_MADE_INNER, EINI_MADE_FUSED, EINI_MADE_TURNED };

typedef struct eini_loop {
  const char *name;
  eini_span at;            // where it is named first; of no length: it is an index
  int made, as;
  int64_t extent;          // its values, at most
  int outer, inner;        // CUT: into these; FUSED, TURNED: into outer
  int split, second;       // CUT: pieces have a size; FUSED: it is the inner one of two
  int64_t by;              // CUT: number, or size, of pieces
  int index;               // of the statement, that it comes from
  int reduced;             // it comes from a reduced index
  int dim;                 // of the machine; -1: it does not run over places
  int parallel;
  int nturn, turn[EINI_NAMES_MAX];  // TURNED: the loops it is rotated by
} eini_loop;

typedef struct eini_loops {
  const eini_stmt *s;
  const ein_grid *grid;    // the machine at hand at its first command behind one; or NULL
  eini_loop *loop;         // nindex of them are indices
  int nloop, norder, order[EINI_LOOPS_MAX];  // the live ones, outermost first
  int *fetch;              // of operands, and behind them of the result: the loop under whose
                           //   values it is fetched, or kept; -1: the default
  eini_span *told;         // where that is said
  int ndim;                // dimensions of the machine in use
  int used[EINI_NAMES_MAX];  // by dimension: it is
  int nstep;               // loops over places and time; the others are whole in a step
  int sent;                // where in the order the result goes home; -1: at the end
  int64_t steps;
  eini_span at;            // the command that made it; of no length: nothing is said
  const char *leaf;        // the kernels of a step; or NULL
  eini_nameset leaves;
} eini_loops;

struct ein_schedule {
  eini_arena arena;
  const ein_graph *g, *of;  // of: that it was made of; own: g, where things are precomputed, else
  ein_graph *own;          //   NULL
  ein_machine machine;     // one place of it, for predictions
  ein_grid *grid;          // the first machine, or NULL
  ein_distribution **place;  // of each tensor: where it is said to lie, or follows from the loops
                           //   that make it; NULL: inputs are everywhere, others as home says
  ein_distribution **home;   // of each statement whose tensor has none: where its values lie, by
                           //   its free indices; NULL: nobody knows where
  eini_stmt **axes;        // of tensors that are placed: a statement along their axes
  unsigned char *said;     // of each tensor: that is written
  eini_loops *nest;         // of each statement
  const char **line;       // the commands, as they are printed
  int64_t nline, capline;
};

typedef struct eini_scheduler {
  eini_parser p;
  struct eini_names names;
  const ein_ctx *ctx;
  const ein_graph *g;
  ein_schedule *to;
  ein_grid *grid;          // the machine at hand; or NULL
  eini_amounts amounts;
  int stmt;                // that commands are of; -1: not said
} eini_scheduler;

// ---- ranges ----

// Where piece k of a loop that was cut begins.
static int64_t eini_loop_start(const eini_loop *x, int64_t parts, int64_t length, int64_t k) {
  if (!x->split) return eini_piece_start(length, parts, k);
  return k > length / x->by ? length : eini_min64(length, k * x->by);
}

static void eini_loop_one(int64_t value, int64_t length, int64_t *lo, int64_t *hi) {
  *lo = eini_min64(value, length);
  *hi = eini_min64(value + 1, length);
}

// The values of loop v out of `length`, where value[] are those of loops, -1: all of them. Its
// hull, where they are not one range.
static void eini_loop_range(const eini_loops *n, int v, int64_t length, const int64_t *value,
                            int64_t *lo, int64_t *hi) {
  const eini_loop *x = &n->loop[v];
  int64_t a, b, c, d;
  *lo = 0;
  *hi = length;
  if (x->as == EINI_AS_LIVE) {
    if (value[v] >= 0) eini_loop_one(value[v], length, lo, hi);
  } else if (x->as == EINI_AS_TURNED) {
    if (value[x->outer] < 0) return;
    a = value[x->outer];
    for (int k = 0; k < n->loop[x->outer].nturn; k++)
      a += eini_max64(0, value[n->loop[x->outer].turn[k]]);
    eini_loop_one(a % x->extent, length, lo, hi);
  } else if (x->as == EINI_AS_FUSED) {
    eini_loop_range(n, x->outer, n->loop[x->outer].extent, value, &a, &b);
    const int64_t inner = n->loop[n->loop[x->outer].inner].extent;
    if (b - a == 1) eini_loop_one(x->second ? a % inner : a / inner, length, lo, hi);
  } else {
    const int64_t parts = n->loop[x->outer].extent;
    eini_loop_range(n, x->outer, parts, value, &a, &b);
    *hi = 0;
    if (a >= b) return;
    const int64_t first = eini_loop_start(x, parts, length, a);
    const int64_t last = eini_loop_start(x, parts, length, b - 1);
    eini_loop_range(n, x->inner, eini_loop_start(x, parts, length, a + 1) - first, value, &c, &d);
    *lo = first + c;
    *hi = first + d;
    if (b - a == 1) return;
    eini_loop_range(n, x->inner, eini_loop_start(x, parts, length, b) - last, value, &c, &d);
    *hi = last + d;
  }
}

// The ranges of all indices of the statement.
static void eini_loops_ranges(const eini_loops *n, const int64_t *value, int64_t *lo, int64_t *hi) {
  for (int i = 0; i < n->s->nindex; i++)
    eini_loop_range(n, i, n->s->index[i].extent, value, &lo[i], &hi[i]);
}

static int eini_loops_at(const eini_loops *n, int v) {
  int k = 0;
  while (k < n->norder && n->order[k] != v) k++;
  return k;
}

// Is loop v, or what it became, gone through by loops up to `depth` of the order?
static int eini_loops_cuts(const eini_loops *n, int v, int depth) {
  const eini_loop *x = &n->loop[v];
  if (x->as == EINI_AS_LIVE) return x->extent > 1 && eini_loops_at(n, v) <= depth;
  return eini_loops_cuts(n, x->outer, depth) ||
         (x->as == EINI_AS_CUT && eini_loops_cuts(n, x->inner, depth));
}

// Is a fold cut by the loops up to `depth` of the order?
static int eini_loops_folds(const eini_loops *n, int depth) {
  for (int i = n->s->nfree; i < n->s->nindex; i++)
    if (n->s->index[i].extent > 1 && eini_loops_cuts(n, i, depth)) return 1;
  return 0;
}

enum { EINI_ONE = 1, EINI_WHOLE = 2, EINI_SOME = 4 };  // of a loop's values; 0: there are gaps

// What of loop v is gone through where the loops up to `depth` of the order, and those over places,
// have a value each.
static int eini_loop_values(const eini_loops *n, int v, int depth) {
  const eini_loop *x = &n->loop[v];
  if (x->as == EINI_AS_LIVE)
    return x->extent <= 1 ? EINI_ONE | EINI_WHOLE
                          : x->dim >= 0 || eini_loops_at(n, v) <= depth ? EINI_ONE : EINI_WHOLE;
  const int outer = eini_loop_values(n, x->outer, depth);
  if (x->as != EINI_AS_CUT) return outer;
  const int inner = eini_loop_values(n, x->inner, depth);
  if (!(outer & EINI_ONE)) return inner & EINI_WHOLE ? outer : 0;
  return (inner & EINI_WHOLE ? EINI_SOME | (outer & EINI_WHOLE) : 0) |
         (inner & (EINI_ONE | EINI_SOME));
}

// Are there gaps in a result that is complete there? Partial ones have the fold of nothing in them.
static int eini_loops_gaps(const eini_loops *n, int depth) {
  int gaps = 0;
  for (int i = 0; i < n->s->nfree; i++) gaps |= eini_loop_values(n, i, depth) == 0;
  return gaps && !eini_loops_folds(n, depth);
}

// ---- names ----

static ein_status eini_loops_init(eini_parser *p, const eini_stmt *s, eini_loops *n) {
  memset(n, 0, sizeof *n);
  n->s = s;
  if (s->nindex > EINI_LOOPS_MAX / 2) return EIN_OK;  // commands are refused
  n->loop = EINI_NEW(p->arena, eini_loop, EINI_LOOPS_MAX);
  n->fetch = EINI_NEW(p->arena, int, s->noperand + 1);
  n->told = EINI_NEW(p->arena, eini_span, s->noperand + 1);
  if (n->loop == NULL || n->fetch == NULL || n->told == NULL) return eini_pmem(p);
  for (int k = 0; k <= s->noperand; k++) n->fetch[k] = -1;
  n->sent = -1;
  for (int i = 0; i < s->nindex; i++) {
    eini_loop *x = &n->loop[n->nloop++];
    x->name = s->index[i].name;
    x->extent = s->index[i].extent;
    x->index = i;
    x->reduced = i >= s->nfree;
    x->dim = -1;
    n->order[n->norder++] = i;
  }
  return EIN_OK;
}

// The live loop of a name; -1 after a mistake.
static int eini_loops_find(eini_scheduler *w, const eini_loops *n, eini_span at) {
  eini_parser *p = &w->p;
  const char *text = p->s + at.pos;
  eini_near near;
  if (p->st != EIN_OK) return -1;
  eini_near_init(&near, text, at.len);
  for (int v = 0; v < n->nloop; v++) {
    const eini_loop *x = &n->loop[v];
    if (x->as == EINI_AS_LIVE) eini_near_try(&near, x->name, (int64_t)strlen(x->name));
    if (!eini_word_is(text, at.len, x->name)) continue;
    if (x->as == EINI_AS_LIVE) return v;
    const int cut = x->as == EINI_AS_CUT;
    eini_perr(p, EIN_ERR_NAME, at.pos, at.len, NULL, "'%.60s' has become '%.60s'%s%.60s%s", x->name,
              n->loop[x->outer].name, cut ? " and '" : "", cut ? n->loop[x->inner].name : "",
              cut ? "'" : "");
    return -1;
  }
  eini_perr(p, EIN_ERR_NAME, at.pos, at.len, eini_near_hint(&near), "the statement of '%.60s' has "
            "no loop '%.*s'", w->g->tensor[n->s->out].name, eini_cut(text, at.len), text);
  return -1;
}

// A new loop; -1 after a mistake.
static int eini_loops_new(eini_scheduler *w, eini_loops *n, eini_span at, int made, int from,
                         int64_t extent) {
  eini_parser *p = &w->p;
  for (int v = 0; v < n->nloop && p->st == EIN_OK; v++)
    if (eini_word_is(p->s + at.pos, at.len, n->loop[v].name))
      eini_perr(p, EIN_ERR_NAME, at.pos, at.len, NULL, "the name '%.60s' is taken",
                n->loop[v].name);
  if (n->nloop == EINI_LOOPS_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, at.pos, at.len, NULL, "more than %d loops", EINI_LOOPS_MAX);
  if (p->st != EIN_OK) return -1;
  eini_loop *x = &n->loop[n->nloop];
  memset(x, 0, sizeof *x);
  if ((x->name = eini_strndup(p->arena, p->s + at.pos, at.len)) == NULL) return eini_pmem(p), -1;
  x->at = at;
  x->made = made;
  x->extent = extent;
  x->index = n->loop[from].index;
  x->reduced = n->loop[from].reduced;
  x->dim = -1;
  return n->nloop++;
}

// A loop that may still be changed: neither over places nor parallel nor rotated.
static int eini_loops_free(eini_scheduler *w, const eini_loops *n, eini_span at, const char *what) {
  const int v = eini_loops_find(w, n, at);
  if (v < 0) return v;
  const eini_loop *x = &n->loop[v];
  const char *is = eini_index_whole(n->s, x->index) ? "is an axis of a block" :
                   x->dim >= 0 ? "runs over places" : x->parallel ? "is parallel" :
                   x->made == EINI_MADE_TURNED ? "is rotated" : NULL;
  if (is == NULL) return v;
  eini_perr(&w->p, EIN_ERR_SHAPE, at.pos, at.len, NULL, "'%.60s' %s, and cannot be %s", x->name, is,
            what);
  return -1;
}

// ---- commands ----

// Cuts loop v into outer and inner; the inner one takes its place in the order.
static int eini_loops_cut(eini_scheduler *w, eini_loops *n, int v, eini_span outer, eini_span inner,
                         int64_t by, int split) {
  const int64_t extent = eini_max64(n->loop[v].extent, 1), pieces = (extent - 1) / by + 1;
  const int o = eini_loops_new(w, n, outer, EINI_MADE_OUTER, v, split ? pieces : by);
  const int i = eini_loops_new(w, n, inner, EINI_MADE_INNER, v, split ? eini_min64(by, extent)
                                                                     : pieces);
  if (o < 0 || i < 0) return -1;
  eini_loop *x = &n->loop[v];
  x->as = EINI_AS_CUT;
  x->outer = o;
  x->inner = i;
  x->by = by;
  x->split = split;
  n->order[eini_loops_at(n, v)] = i;
  return o;
}

static void eini_loops_insert(eini_loops *n, int at, int v) {
  memmove(n->order + at + 1, n->order + at, (size_t)(n->norder - at) * sizeof *n->order);
  n->order[at] = v;
  n->norder++;
}

static void eini_do_cut(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const int v = eini_loops_free(w, n, c->list[0].name[0], "cut");
  if (v < 0) return;
  if (n->loop[v].made == EINI_MADE_FUSED)
    eini_perr(&w->p, EIN_ERR_UNSUPPORTED, c->list[0].all.pos, c->list[0].all.len, NULL,
              "'%.60s' is collapsed: its pieces would be no ranges of both loops",
              n->loop[v].name);
  else if (c->kind == EINI_C_DIVIDE && c->amount[0] > EIN_PLACES_MAX)
    eini_perr(&w->p, EIN_ERR_TOO_LARGE, c->number.pos, c->number.len, NULL,
              "more than %d pieces", EIN_PLACES_MAX);
  if (w->p.st != EIN_OK) return;
  const int at = eini_loops_at(n, v);
  const int o = eini_loops_cut(w, n, v, c->list[1].name[0], c->list[2].name[0], c->amount[0],
                              c->kind == EINI_C_SPLIT);
  if (o >= 0) eini_loops_insert(n, at, o);
}

static void eini_do_collapse(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const int a = eini_loops_free(w, n, c->list[0].name[0], "collapsed");
  const int b = eini_loops_free(w, n, c->list[1].name[0], "collapsed");
  int64_t extent = 0;
  if (a < 0 || b < 0) return;
  const int at = eini_loops_at(n, a);
  const eini_span all = {c->list[0].all.pos, c->list[1].all.pos + c->list[1].all.len -
                                             c->list[0].all.pos};
  if (eini_loops_at(n, b) != at + 1)
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&all), "reorder(..) before", "'%.60s' does not stand "
              "directly inside of '%.60s'", n->loop[b].name, n->loop[a].name);
  else if (eini_mul_overflow(n->loop[a].extent, n->loop[b].extent, &extent))
    eini_perr(&w->p, EIN_ERR_TOO_LARGE, EINI_AT(&all), NULL, "the collapsed loop is too long");
  const int f = eini_loops_new(w, n, c->list[2].name[0], EINI_MADE_FUSED, a, extent);
  if (f < 0) return;
  n->loop[f].outer = a;
  n->loop[f].inner = b;
  n->loop[f].reduced = n->loop[a].reduced || n->loop[b].reduced;
  n->loop[a].as = n->loop[b].as = EINI_AS_FUSED;
  n->loop[a].outer = n->loop[b].outer = f;
  n->loop[b].second = 1;
  n->order[at] = f;
  memmove(n->order + at + 1, n->order + at + 2,
          (size_t)(--n->norder - at - 1) * sizeof *n->order);
}

// The loops named take the positions that they have together, in the order written.
static void eini_do_reorder(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  int v[EINI_NAMES_MAX], at[EINI_NAMES_MAX], k = 0;
  for (int i = 0; i < c->list[0].n; i++) {
    if ((v[i] = eini_loops_find(w, n, c->list[0].name[i])) < 0) return;
    for (int j = 0; j < i; j++)
      if (v[j] == v[i])
        eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&c->list[0].name[i]), NULL,
                  "'%.60s' is named twice", n->loop[v[i]].name);
  }
  if (w->p.st != EIN_OK) return;
  for (int i = 0; i < n->norder; i++)
    for (int j = 0; j < c->list[0].n; j++)
      if (n->order[i] == v[j]) at[k++] = i;
  for (int i = 0; i < k; i++) n->order[at[i]] = v[i];
}

static void eini_do_parallelize(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const int v = eini_loops_free(w, n, c->list[0].name[0], "parallel");
  if (v < 0) return;
  if (n->loop[v].reduced)
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&c->list[0].all), "distribute(..) folds by places",
              "'%.60s' is folded over: threads would add to one element, a race", n->loop[v].name);
  else n->loop[v].parallel = 1;
}

// Loop v runs over a dimension of the machine.
static void eini_loops_spread(eini_scheduler *w, eini_loops *n, int v, int dim, eini_span at) {
  const ein_grid *g = n->grid;
  if (n->loop[v].extent > g->dim[dim].extent)
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&at), NULL, "'%.60s' has %lld values, dimension "
              "'%.60s' of the machine %lld points", n->loop[v].name, (long long)n->loop[v].extent,
              g->dim[dim].name, (long long)g->dim[dim].extent);
  else if (n->used[dim])
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&at), NULL, "another loop runs over dimension '%.60s'",
              g->dim[dim].name);
  if (w->p.st != EIN_OK) return;
  n->loop[v].dim = dim;
  n->used[dim] = 1;
}

// distribute([targets], [outer], [inner], [dimensions]): the outer loops become the outermost ones,
// behind those that run over places already (Yadav et al. 2022, section 3.3).
static void eini_do_compound(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const ein_grid *g = n->grid;
  const int count = c->list[0].n;
  int at = 0, v[EINI_NAMES_MAX];
  for (int k = 1; k < 4; k++)
    if (c->list[k].n != count)
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&c->list[k].all), NULL, "%d name%s, but %d loop%s",
                c->list[k].n, c->list[k].n == 1 ? "" : "s", count, count == 1 ? "" : "s");
  for (int i = 0; i < count; i++) {
    if ((v[i] = eini_loops_free(w, n, c->list[0].name[i], "distributed")) < 0) return;
  }
  while (at < n->norder && n->loop[n->order[at]].dim >= 0) at++;
  for (int i = 0; i < count && w->p.st == EIN_OK; i++) {
    const eini_span name = c->list[3].name[i];
    int dim = 0;
    while (dim < g->ndim && !eini_word_is(w->p.s + name.pos, name.len, g->dim[dim].name)) dim++;
    if (dim == g->ndim) {
      eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&name), NULL, "the machine has no dimension '%.*s'",
                eini_cut(w->p.s + name.pos, name.len), w->p.s + name.pos);
      return;
    }
    if (n->loop[v[i]].as != EINI_AS_LIVE || n->loop[v[i]].made == EINI_MADE_FUSED) {
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&c->list[0].name[i]), NULL, "'%.60s' cannot be cut",
                n->loop[v[i]].name);
      return;
    }
    const int o = eini_loops_cut(w, n, v[i], c->list[1].name[i], c->list[2].name[i],
                                g->dim[dim].extent, 0);
    if (o < 0) return;
    eini_loops_insert(n, at + i, o);
    eini_loops_spread(w, n, o, dim, c->list[1].name[i]);
  }
}

static void eini_do_distribute(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const ein_grid *g = n->grid;
  if (g == NULL)
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&c->word), "machine gx=.., gy=.. before it",
              "there is no machine to distribute over");
  else if (c->list[1].n > 0) eini_do_compound(w, n, c);
  for (int i = 0, dim = 0; w->p.st == EIN_OK && c->list[1].n == 0 && i < c->list[0].n; i++) {
    const eini_span at = c->list[0].name[i];
    const int v = eini_loops_free(w, n, at, "distributed");
    while (dim < g->ndim && n->used[dim]) dim++;
    if (v >= 0 && dim == g->ndim)
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&at), NULL, "the machine has no dimension left for "
                "'%.60s'", n->loop[v].name);
    else if (v >= 0) eini_loops_spread(w, n, v, dim, at);
  }
}

static void eini_do_communicate(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const eini_stmt *s = n->s;
  const int v = eini_loops_find(w, n, c->list[1].name[0]);
  for (int i = 0; i < c->list[0].n && w->p.st == EIN_OK; i++) {
    const eini_span at = c->list[0].name[i];
    int found = 0, again = 0;
    for (int k = 0; k <= s->noperand; k++) {
      const int tensor = k < s->noperand ? s->operand[k] : s->out;
      if (!eini_word_is(w->p.s + at.pos, at.len, w->g->tensor[tensor].name)) continue;
      found = 1;
      again |= n->fetch[k] >= 0;
      n->fetch[k] = v;
      n->told[k] = c->list[1].all;
    }
    if (!found || again)
      eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&at), NULL, again ? "'%.*s' is communicated already" :
                "the statement does not use '%.*s'", eini_cut(w->p.s + at.pos, at.len),
                w->p.s + at.pos);
  }
}

static void eini_do_rotate(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const eini_span at = c->list[0].name[0];
  const int t = eini_loops_free(w, n, at, "rotated");
  int by[EINI_NAMES_MAX];
  if (t >= 0 && n->loop[t].made == EINI_MADE_INNER)
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&at), "divide or split it, and rotate the outer loop",
              "'%.60s' goes through a piece: it is no loop over time", n->loop[t].name);
  for (int i = 0; i < c->list[1].n; i++) {
    const eini_span name = c->list[1].name[i];
    if ((by[i] = eini_loops_find(w, n, name)) < 0) return;
    if (eini_loops_at(n, by[i]) >= eini_loops_at(n, t))
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&name), "reorder(..) before", "'%.60s' does not "
                "stand outside of '%.60s'", n->loop[by[i]].name, n->loop[t].name);
  }
  if (w->p.st != EIN_OK) return;
  const int r = eini_loops_new(w, n, c->list[2].name[0], EINI_MADE_TURNED, t, n->loop[t].extent);
  if (r < 0) return;
  n->loop[r].nturn = c->list[1].n;
  for (int i = 0; i < c->list[1].n; i++) n->loop[r].turn[i] = by[i];
  n->order[eini_loops_at(n, t)] = r;
  n->loop[t].as = EINI_AS_TURNED;
  n->loop[t].outer = r;
}

// The kernels of a name must be there.
static void eini_do_substitute(eini_scheduler *w, eini_loops *n, const eini_command *c) {
  const eini_span at = c->list[1].name[0];
  const char *text = w->p.s + at.pos;
  int there = eini_word_is(text, at.len, "portable");
  for (int k = 0; w->ctx != NULL && k < w->ctx->nkernels; k++)
    there |= eini_word_is(text, at.len, w->ctx->kernels[k]->name);
  if (!there)
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&at), "portable is always there", "no kernels are "
              "called '%.*s'", eini_cut(text, at.len), text);
  n->leaves = c->list[0];
  if (w->p.st == EIN_OK && (n->leaf = eini_strndup(w->p.arena, text, at.len)) == NULL)
    eini_pmem(&w->p);
}

// ---- the whole nest ----

// Are all live loops that v became among the first n->nstep; with any: is one of them?
static int eini_loops_stepped(const eini_loops *n, int v, int any) {
  const eini_loop *x = &n->loop[v];
  if (x->as == EINI_AS_LIVE) return eini_loops_at(n, v) < n->nstep;
  const int a = eini_loops_stepped(n, x->outer, any);
  const int b = x->as == EINI_AS_CUT ? eini_loops_stepped(n, x->inner, any) : a;
  return any ? a || b : a && b;
}

static int eini_loops_is_outer(const eini_loop *x) {
  return x->dim >= 0 || ((x->made == EINI_MADE_OUTER || x->made == EINI_MADE_TURNED) &&
                         !x->parallel);
}

// Which loops are gone through: those up to the last that is over places, rotated or communicated
// under, and outer loops that follow and are not parallel.
static void eini_loops_split(eini_loops *n) {
  n->nstep = 0;
  for (int i = 0; i < n->norder; i++) {
    const eini_loop *x = &n->loop[n->order[i]];
    int need = x->dim >= 0 || x->made == EINI_MADE_TURNED;
    for (int k = 0; k <= n->s->noperand; k++) need |= n->fetch[k] == n->order[i];
    if (need || (i == n->nstep && eini_loops_is_outer(x))) n->nstep = i + 1;
  }
  n->steps = 1;
  for (int i = 0; i < n->nstep; i++) {
    const eini_loop *x = &n->loop[n->order[i]];
    if (x->dim < 0 && (eini_mul_overflow(n->steps, eini_max64(x->extent, 1), &n->steps) ||
                       n->steps > EINI_STEPS_MAX))
      n->steps = EINI_STEPS_MAX + 1;
  }
}

static void eini_loops_order(eini_scheduler *w, const eini_loops *n) {
  int time = -1;
  for (int i = 0; i < n->norder && w->p.st == EIN_OK; i++) {
    const eini_loop *x = &n->loop[n->order[i]];
    if (x->dim >= 0 && time >= 0)
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&x->at), "reorder(..)", "'%.60s' runs over places "
                "inside of '%.60s', which runs over time", x->name, n->loop[time].name);
    if (i < n->nstep && x->parallel)
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&n->at), "reorder(..)", "'%.60s' is parallel, but "
                "loops over places or time stand inside of it", x->name);
    for (int k = 0; k < x->nturn; k++)
      if (eini_loops_at(n, x->turn[k]) >= i)
        eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&x->at), "reorder(..)", "'%.60s' is rotated by "
                  "'%.60s', which does not stand outside of it", x->name,
                  n->loop[x->turn[k]].name);
    if (x->dim < 0) time = n->order[i];
  }
}

// The result goes home behind the last loop over places unless told, or further inside, where it
// has no gaps.
static void eini_loops_send(eini_scheduler *w, eini_loops *n) {
  const int told = n->fetch[n->s->noperand];
  if (w->p.st != EIN_OK) return;
  n->sent = told < 0 ? n->nstep - 1 : eini_loops_at(n, told);
  while (told < 0 && n->sent >= 0 && n->loop[n->order[n->sent]].dim < 0) n->sent--;
  while (told < 0 && n->sent < n->nstep - 1 && eini_loops_gaps(n, n->sent)) n->sent++;
  if (told >= 0 && eini_loops_gaps(n, n->sent))
    eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&n->told[n->s->noperand]), "communicate it in a loop "
              "further inside", "what there is of the result under '%.60s' has gaps",
              n->loop[told].name);
}

// What can be seen at the end only.
static void eini_loops_check(eini_scheduler *w, eini_loops *n) {
  eini_parser *p = &w->p;
  int leaves = 0;
  for (int k = 0; k <= n->s->noperand && p->st == EIN_OK; k++)
    if (n->fetch[k] >= 0 && n->loop[n->fetch[k]].as != EINI_AS_LIVE)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&n->told[k]), "communicate after it", "'%.60s' is no "
                "loop any more at the end", n->loop[n->fetch[k]].name);
  eini_loops_split(n);
  eini_loops_order(w, n);
  eini_loops_send(w, n);
  for (int v = 0; v < n->nloop && p->st == EIN_OK; v++) {
    const eini_loop *x = &n->loop[v];
    if (x->as == EINI_AS_CUT && eini_loops_stepped(n, x->inner, 1) &&
        !eini_loops_stepped(n, x->outer, 0))
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&n->loop[x->inner].at), "reorder(..)", "'%.60s' is gone "
                "through step by step, but '%.60s' is not: communication stands below its use",
                n->loop[x->inner].name, n->loop[x->outer].name);
  }
  if (p->st == EIN_OK && n->steps > EINI_STEPS_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(&n->at), NULL, "more than %lld steps",
              (long long)EINI_STEPS_MAX);
  for (int i = 0; i < n->leaves.n && p->st == EIN_OK; i++) {
    const int v = eini_loops_find(w, n, n->leaves.name[i]);
    leaves += v >= 0 && eini_loops_at(n, v) >= n->nstep;
  }
  if (p->st == EIN_OK && n->leaf != NULL && (leaves != n->leaves.n ||
                                             leaves != n->norder - n->nstep))
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(&n->leaves.all), NULL, "these are not the %d loops inside "
              "of a step", n->norder - n->nstep);
}
