// ================================================================================================
// >>dist-plan  from a cut graph to plans of tasks, memory and dependencies
// Takes a graph and how its statements are cut; gives an immutable ein_dist. Tasks are rules: task
// q of a statement runs at place q, and what it reads, and who reads its block, is computed. Only
// what places of this process do is derived: nothing here grows with the places of others.
// ================================================================================================

typedef struct eini_dist_tensor {
  int port;                 // number among inputs or outputs; -1: a temporary
  const int64_t *stride;
  int64_t lo, hi;           // bytes it spans from its data pointer; equal when there are none
  int item;                 // of the memory plan, or -1
  int ndefine, *define;     // statements
  int nread, *read;
} eini_dist_tensor;

// Arrays of tasks have an entry for each that this process runs, from place d->fabric.first on.
typedef struct eini_dist_stmt {
  const eini_stmt *s;
  eini_space space;
  int64_t nown;             // tasks of this process
  int64_t *plan;            // of each; merges: into this partial result, and the last one
  int64_t *merge, *last;
  const eini_folder *folder;  // partial results are its states, merged without plans; NULL: values
  int64_t wide;             // bytes of one element of a partial result
  int direct;               // 1: partial result 0 is made in the block of the output
  int away;                 // 1: its tasks run in the provider's memory, where their operands are,
  int own_away, part_away;  //   its blocks, and its partial results
  int reduced;              // 1: the fabric folds partial results, merges but the last do nothing
  int item;                 // memory of the partial results, one of partial_bytes per task; or -1
  size_t partial_bytes;
  int form;                 // the first statement whose plans its blocks may run
  int64_t bytes, messages;  // what its tasks of this process read from other places
  int64_t *fetched;         // of each
  unsigned char *again;     // of operands: does one before read the same? See eini_cost_of
  int levels;               // of the tree of merges
  int32_t block, merges, memory, done, zero, fetches;  // jobs, see dist-jobs; -1: there are none
} eini_dist_stmt;

// Memory alive from statement first to last.
typedef struct eini_dist_item {
  int first, last;
  int tensor;               // or -1: partial results of statement first
  int64_t at, bytes;
} eini_dist_item;

struct ein_dist {
  eini_arena arena;         // owns everything, itself included
  ein_allocator al;
  ein_executor executor;
  double (*now_fn)(void *user);
  void *now_user;
  const ein_graph *g;
  ein_fabric fabric;
  ein_dist_desc desc;
  int nstmt, nin, nout;
  eini_dist_stmt *stmt;     // and, behind them, pinned inputs as statements that copy them: these
  int npin;                 //   have no tasks, only a space
  eini_dist_tensor *tensor;
  eini_block_plans plans;
  eini_dist_item *item;
  int nitem;
  int64_t temp_bytes;
  eini_jobs jobs;
  int64_t tags, defines;    // of messages: a statement has so many, and so many an operand
  int64_t *peak;            // per place of this process
  int width, rank;          // workers; most indices, axes or operands of a statement
  size_t workspace;
  struct eini_dist_copies *copies;  // of a fabric that does not share memory
  const ein_kernels *away;  // in whose memory they may be; NULL: nobody's but the host's
  int carried;              // 1: the fabric carries messages from there, and there
  void **held;              // per place of this process: that memory, from the first run on
  int64_t *held_bytes;
  char **kept;              // and its memory, between runs, of which there is one at a time
  struct eini_steps_stmt *steps;    // of a schedule: per statement
  struct eini_step_home *home;      // per tensor and memory
  int64_t *start;           // of memories, from the first on
  size_t spare;             // bytes of scratch
  ein_dist_info info;
};

// Does this process drive a place?
static int eini_fabric_drives(const ein_fabric *f, int64_t q) {
  return q >= f->first && q - f->first < f->count;
}

static int eini_dist_driven(const ein_dist *d, int64_t q) {
  return eini_fabric_drives(&d->fabric, q);
}

// Does the fabric have a clock? Then there are no data, and no plans of tasks.
static int eini_dist_clocked(const ein_dist *d) { return d->fabric.machine != NULL; }

static double eini_dist_now(const ein_dist *d) {
  return d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
}

// The status of a process becomes that of all.
static ein_status eini_dist_agree(const ein_fabric *f, ein_status st) {
  ein_status all = st;
  if (f->agree_fn == NULL) return st;  // one process drives all places
  const ein_status failed = f->agree_fn(f->user, &all);
  return failed != EIN_OK ? failed : all;
}

// The statement and index of a mistake in parts. k: the statement's number, -1 of a pinned input.
static ein_status eini_dist_bad(ein_ctx *ctx, const ein_graph *g, const eini_stmt *s, int k, int i,
                                const char *what) {
  const char *name = i >= 0 && i < s->nindex ? s->index[i].name : NULL;
  char where[32] = "the pinned input";
  if (k >= 0) snprintf(where, sizeof where, "statement %d,", k);
  return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "%s '%.60s'%s%.60s%s: %s", where,
                          g->tensor[s->out].name, name != NULL ? ", index '" : "",
                          name != NULL ? name : "", name != NULL ? "'" : "", what);
}

static ein_status eini_dist_check_parts(ein_ctx *ctx, const ein_graph *g, const eini_stmt *s,
                                        int k, int64_t places, const ein_parts *p) {
  int64_t n = 1;
  if (p->nindex != s->nindex || (p->nindex > 0 && p->cut == NULL) || p->norder < 0 ||
      (p->norder > 0 && p->order == NULL))
    return eini_dist_bad(ctx, g, s, k, -1, "its parts are of another statement");
  for (int i = 0; i < s->nindex; i++) {
    if (p->cut[i] < 1 || p->cut[i] > eini_max64(1, s->index[i].extent))
      return eini_dist_bad(ctx, g, s, k, i, "cut into fewer than 1 or more pieces than its extent");
    if (p->cut[i] > 1 && eini_index_whole(s, i))
      return eini_dist_bad(ctx, g, s, k, i, "an axis of a block is not cut");
    if (p->cut[i] > 1 && !eini_order_cuts(g, s, i))
      return eini_dist_bad(ctx, g, s, k, i, "deterministic: its fold may not be cut");
    int seen = 0;
    for (int j = 0; j < p->norder; j++) seen += p->order[j] == i;
    if (seen != (p->cut[i] > 1))
      return eini_dist_bad(ctx, g, s, k, i, seen ? "stands in the order twice, or is not cut"
                                              : "cut, but not in the order");
    if (eini_mul_overflow(n, p->cut[i], &n) || n > places)
      return eini_dist_bad(ctx, g, s, k, i, "more tasks than places");
  }
  for (int j = 0; j < p->norder; j++)
    if (p->order[j] < 0 || p->order[j] >= s->nindex)
      return eini_dist_bad(ctx, g, s, k, -1, "its order names an index it does not have");
  if (n != p->ntask) return eini_dist_bad(ctx, g, s, k, -1, "ntask is not the product of its cuts");
  return EIN_OK;
}

// The statement's space; p NULL: nothing is cut.
static ein_status eini_dist_space_init(eini_arena *a, const eini_stmt *s, const ein_parts *p,
                                       eini_space *x) {
  int64_t *cut = EINI_NEW(a, int64_t, s->nindex);
  int norder = p == NULL ? 0 : p->norder, *order = EINI_NEW(a, int, norder);
  if (cut == NULL || order == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) cut[i] = p == NULL ? 1 : p->cut[i];
  for (int j = 0; j < norder; j++) order[j] = p->order[j];
  return eini_space_init(a, s, cut, order, norder, x);
}

// ---- tensors ----

static ein_status eini_dist_tensor_init(ein_dist *d, int t, const ein_ztensor *view) {
  eini_dist_tensor *x = &d->tensor[t];
  const eini_tensor *from = &d->g->tensor[t];
  eini_port port;
  memset(&port, 0, sizeof port);
  EINI_TRY(eini_port_init(&d->arena, from, view, &port));
  x->stride = port.stride;
  x->lo = port.lo;
  x->hi = port.hi;
  x->item = -1;
  x->port = from->role == EIN_ROLE_INPUT ? d->nin++
            : from->role == EIN_ROLE_OUTPUT ? d->nout++ : -1;
  x->define = EINI_NEW(&d->arena, int, from->nstmt);
  int n = 0;
  for (int k = 0; k < d->nstmt; k++)
    for (int o = 0; o < d->g->stmt[k].noperand; o++) n += d->g->stmt[k].operand[o] == t;
  x->read = EINI_NEW(&d->arena, int, n);
  if (x->define == NULL || x->read == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = &d->g->stmt[k];
    int reads = 0;
    for (int o = 0; o < s->noperand; o++) reads |= s->operand[o] == t;
    if (reads) x->read[x->nread++] = k;
    if (s->out == t) x->define[x->ndefine++] = k;
  }
  return EIN_OK;
}

static ein_status eini_dist_tensors(ein_dist *d) {
  const ein_dist_desc *e = &d->desc;
  d->tensor = EINI_NEW(&d->arena, eini_dist_tensor, d->g->ntensor);
  if (d->tensor == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t < d->g->ntensor; t++) {
    const eini_tensor *x = &d->g->tensor[t];
    const ein_ztensor *view = NULL;
    for (int k = 0; k < e->nlayout && x->role != EIN_ROLE_TEMP; k++)
      if (strcmp(e->layout[k].name, x->name) == 0) view = e->layout[k].view;
    EINI_TRY(eini_dist_tensor_init(d, t, view));
  }
  return EIN_OK;
}

// An input held in a partition: it is homed as if a statement along its axes had defined it.
static ein_status eini_dist_pin(ein_ctx *ctx, ein_dist *d, int t, const ein_parts *p) {
  eini_arena *a = &d->arena;
  eini_dist_stmt *e = &d->stmt[d->nstmt + d->npin];
  eini_stmt *s;
  EINI_TRY(eini_stmt_of_tensor(a, d->g, t, &s));
  EINI_TRY(eini_dist_check_parts(ctx, d->g, s, -1, d->fabric.places, p));
  EINI_TRY(eini_dist_space_init(a, s, p, &e->space));
  e->s = s;
  d->tensor[t].define = EINI_NEW(a, int, 1);
  if (d->tensor[t].define == NULL) return EIN_ERR_NO_MEMORY;
  d->tensor[t].define[0] = d->nstmt + d->npin++;
  d->tensor[t].ndefine = 1;
  return EIN_OK;
}

static ein_status eini_dist_pins(ein_ctx *ctx, ein_dist *d) {
  for (int t = 0; t < d->g->ntensor; t++) {
    ein_parts p;
    memset(&p, 0, sizeof p);
    if (d->g->tensor[t].role != EIN_ROLE_INPUT) continue;
    if (d->desc.decomposition != NULL) {
      if (ein_decomposition_pin(d->desc.decomposition, t, &p) != EIN_OK) continue;
    } else {
      if (d->desc.pins == NULL || d->desc.pins[t].ntask == 0) continue;
      p = d->desc.pins[t];
    }
    EINI_TRY(eini_dist_pin(ctx, d, t, &p));
  }
  return EIN_OK;
}

// ---- what a task reads ----

// The box operand k of the task at `place` reads, in m->from and m->to; 0: it reads nothing, not
// even a scalar, since its index space is empty.
static int eini_dist_box(const eini_dist_stmt *e, int64_t place, int k, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, k, m->from, m->to);
  return !eini_zrange_empty(e->s->nindex, m->lo, m->hi);
}

// What a task reads from other places.
typedef struct eini_dist_read {
  int64_t bytes, messages;
  int64_t *sent;            // bytes by place, to be added to, or NULL
} eini_dist_read;

static void eini_dist_reads(eini_dist_read *r, int64_t from, int64_t bytes) {
  r->bytes += bytes;
  r->messages += bytes > 0;
  if (r->sent != NULL) r->sent[from] += bytes;
}

// The elements of block `home` of statement `define` that lie in the box operand `operand` of the
// task at `place` reads (m->from, m->to).
typedef struct eini_dist_transfer {
  int64_t place, home;
  int operand, define;
  int64_t elements, bytes;
} eini_dist_transfer;

typedef ein_status (*eini_dist_transfer_fn)(void *user, const eini_dist_transfer *t,
                                            eini_dist_room *m);

// Calls fn for all blocks that the task at `place` reads of, its own among them.
static ein_status eini_dist_task_transfers(const ein_dist *d, const eini_dist_stmt *e,
                                           int64_t place, eini_dist_room *m,
                                           eini_dist_transfer_fn fn, void *user) {
  eini_dist_transfer t;
  eini_dist_near w;
  t.place = place;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *x = &d->tensor[e->s->operand[o]];
    if (x->ndefine == 0 || eini_operand_first(e->s, o) < o ||
        !eini_dist_box(e, place, o, m)) continue;
    t.operand = o;
    for (int u = 0; u < x->ndefine; u++) {
      const eini_space *from = &d->stmt[x->define[u]].space;
      t.define = x->define[u];
      int more = eini_dist_near_first(from, m->from, m->to, m, &w);
      for (; more; more = eini_dist_near_next(&w)) {
        t.home = eini_dist_near_place(from, &w);
        t.elements = eini_dist_overlap(from, t.home, m->from, m->to, m);
        t.bytes = t.elements * (int64_t)ein_dtype_size(d->g->tensor[e->s->operand[o]].dtype);
        if (t.elements > 0) EINI_TRY(fn(user, &t, m));
      }
    }
  }
  return EIN_OK;
}

static ein_status eini_dist_read_of(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  (void)m;
  if (t->home != t->place) eini_dist_reads((eini_dist_read *)user, t->home, t->bytes);
  return EIN_OK;
}

// The hull of the block the task at `place` computes, in m->from and m->to.
static void eini_dist_block_hull(const eini_dist_stmt *e, int64_t place, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, -1, m->from, m->to);
}

// Elements of the block the task at `place` computes, by its free indices.
static int64_t eini_dist_elements(const eini_space *x, int64_t place, eini_dist_room *m) {
  eini_space_ranges(x, place, m->lo, m->hi);
  return (int64_t)eini_box_volume(x->s->nfree, m->lo, m->hi);
}

// Does the task at `place` merge at a level of the tree: two partial results, those whose numbers
// are multiples of 2^level, into one?
static int eini_dist_merges(const eini_space *x, int64_t place, int level) {
  const int64_t step = (int64_t)1 << level, part = eini_space_partial(x, place);
  return part % (2 * step) == 0 && part + step < x->nagg;
}

// What a task reads from other places, its merges aside.
static void eini_dist_task_bytes(const ein_dist *d, const eini_dist_stmt *e, int64_t place,
                                 eini_dist_room *m, eini_dist_read *r) {
  (void)eini_dist_task_transfers(d, e, place, m, eini_dist_read_of, r);
}

// ---- where the memory of places is ----

#ifndef EINI_DIST_GROUP
#define EINI_DIST_GROUP 4   // places at least, the home among them
#endif

// Is every coordinate one index, and every index one coordinate?
static int eini_dist_is_box(const eini_space *x) {
  const eini_map *map = &x->s->out_map;
  for (int r = 0; r < map->rows; r++)
    if (eini_map_terms(map, r) > 1) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (eini_map_uses(map, i) > 1) return 0;
  return 1;
}

// Does it matter in which tree partial results of a statement are merged, if not in which order?
static int eini_dist_any_tree(const eini_dist_stmt *e) {
  const ein_dtype type = ein_dtype_compute(e->s->type);
  const int fold = e->s->fold, kind = (int)eini_kind_of(type);
  if (e->folder != NULL || e->wide != (int64_t)ein_dtype_size(type)) return 0;
  if (fold == EIN_FOLD_SUM || fold == EIN_FOLD_PROD) return kind < EINI_KREAL;
  if (fold == EIN_FOLD_ANY || fold == EIN_FOLD_ALL) return kind == EINI_KBOOL;
  return (fold == EIN_FOLD_MAX || fold == EIN_FOLD_MIN) && kind <= EINI_KREAL;
}

// May the fabric fold its partial results? They are the host's then.
static int eini_dist_may_reduce(const ein_dist *d, const eini_dist_stmt *e) {
  return d->fabric.reduce_fn != NULL && e->space.nagg >= EINI_DIST_GROUP && eini_dist_any_tree(e);
}

// The provider in whose memory places that do not share any may have theirs. Plans of deterministic
// graphs have none.
static void eini_dist_provider(ein_dist *d) {
  const ein_fabric *f = &d->fabric;
  const ein_ctx *c = d->plans.ctx;
  if (f->shared || eini_dist_clocked(d) || d->g->ordered) return;
  for (int i = 0; i < c->nkernels && d->away == NULL; i++)
    if (c->kernels[i]->memory != NULL) d->away = c->kernels[i];
  if (d->away != NULL && d->away->memory->hold_fn == NULL) d->away = NULL;
  if (d->away == NULL || f->memory_fn == NULL) return;
  d->carried = f->memory_fn(f->user, d->away) == EIN_OK;
  (void)f->memory_fn(f->user, NULL);
}

// Tries statement e in the provider's memory, or not. What is moved there is boxes; states are
// merged by the host.
static void eini_dist_settle(const ein_dist *d, eini_dist_stmt *e, int away) {
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine; u++) away &= eini_dist_is_box(&d->stmt[t->define[u]].space);
  }
  e->away = away && d->away != NULL;
  e->own_away = e->away && e->folder == NULL && eini_dist_is_box(&e->space);
  e->part_away = e->away && e->folder == NULL && !eini_dist_may_reduce(d, e);
}

// Does all of task i of this process run where the provider's memory is, and can it be merged?
static int eini_dist_runs_away(const ein_dist *d, const eini_dist_stmt *e, int64_t i) {
  const int away = eini_dist_plan_away(d->plans.plan[e->plan[i]]);
  if (e->space.nagg == 1 || e->folder != NULL) return away;
  return away && d->plans.plan[e->merge[i]] != NULL &&
         (eini_space_partial(&e->space, d->fabric.first + i) > 0 ||
          d->plans.plan[e->last[i]] != NULL);
}

// ---- plans of tasks ----

typedef struct eini_dist_shapes {
  eini_forms forms;
  eini_keys strides;
} eini_dist_shapes;

// What a plan knows of a tensor, in order to be shared: where it is, and its strides.
static ein_status eini_dist_looks(ein_dist *d, eini_dist_shapes *f, int t, int64_t *word) {
  const eini_dist_tensor *x = &d->tensor[t];
  const int64_t id = eini_key_number(&f->forms.seen, &f->strides, x->stride, d->g->tensor[t].rank);
  word[0] = id;
  word[1] = !d->fabric.shared && x->ndefine == 0;
  return id < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Statement k in the words of the first whose plans its blocks may run, and its parts, NULL if it
// is not cut; room: for these. Extents and offsets do not count: a block has its own.
static ein_status eini_dist_spell(ein_dist *d, int k, eini_dist_shapes *f, ein_parts *room,
                                  const ein_parts **p) {
  eini_arena *a = &d->arena;
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = &d->g->stmt[k];
  const int n = s->noperand;
  int64_t *read = EINI_NEW(a, int64_t, 3 * (int64_t)n + 3), *cut = EINI_NEW(a, int64_t, s->nindex);
  const eini_besides b = {EINI_SAME_VALUES | EINI_SAME_AXES | EINI_SAME_ALONE | EINI_SAME_TENSORS,
                          1, 3, cut, read};
  eini_match m;
  eini_stmt *t;
  const int *at;
  int64_t pieces = 1;
  if (read == NULL || cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    if (*p == NULL) continue;
    cut[i] = eini_dist_uses(s, (*p)->cut, i);
    if (i >= s->nfree) pieces *= (*p)->cut[i];
  }
  for (int o = 0; o <= n; o++) {
    EINI_TRY(eini_dist_looks(d, f, o < n ? s->operand[o] : s->out, read + 3 * o));
    read[3 * o + 2] = o == n && pieces > 1;
  }
  EINI_TRY(eini_forms_find(&f->forms, d->g, s, &b, k, &m));
  e->form = (int)m.first;
  e->s = s;
  if (m.same) return EIN_OK;
  EINI_TRY(eini_stmt_respell(a, s, d->stmt[m.first].s, &m, &t, &at));
  e->s = t;
  if (*p == NULL) return EIN_OK;
  const ein_parts from = **p;
  *p = room;
  return eini_parts_respell(a, from, at, 0, room);
}

// What a plan of a task is made for, beside the form of its statement.
enum { EINI_KEY_FORM, EINI_KEY_WHAT, EINI_KEY_WHERE, EINI_KEYS };

// Where operands and results are.
static void eini_dist_spaces(const ein_dist *d, const eini_dist_stmt *e, eini_dist_job *job,
                             int *space, int64_t *key) {
  const int away = e->away ? d->away->memory->space : 0;
  for (int o = 0; o < e->s->noperand; o++)
    space[o] = d->tensor[e->s->operand[o]].ndefine > 0 ? away : 0;
  job->space = space;
  job->own_space = e->own_away ? away : 0;
  job->part_space = e->part_away ? away : 0;
  job->merged_space = d->carried ? job->part_space : 0;
  key[EINI_KEY_WHERE] = e->away | 2 * e->own_away | 4 * e->part_away;
}

static ein_status eini_dist_task_plans(ein_dist *d, int k, int64_t q, int64_t *key,
                                       const int64_t **stride, int *space, eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = e->s;
  const eini_space *x = &e->space;
  const eini_tensor *out = &d->g->tensor[s->out];
  eini_dist_job job;
  int64_t nkey = s->nindex + EINI_KEYS, part = eini_space_partial(x, q);
  int shared = d->fabric.shared, own = part == 0 && (x->nagg == 1 || e->direct);
  if (eini_dist_clocked(d)) return EIN_OK;
  memset(&job, 0, sizeof job);
  eini_space_ranges(x, q, m->lo, m->hi);
  for (int i = 0; i < s->nindex; i++) key[i + EINI_KEYS] = m->hi[i] - m->lo[i];
  for (int o = 0; o < s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[s->operand[o]];
    stride[o] = shared || t->ndefine == 0 ? t->stride : NULL;
  }
  job.g = d->g;
  job.s = s;
  job.block = eini_block_of(NULL, key + EINI_KEYS, NULL);
  job.cut = x->cut;
  job.stride = stride;
  job.out_stride = d->tensor[s->out].stride;
  job.by_index = !shared || !own;
  job.dtype = own ? out->dtype : ein_dtype_compute(s->type);
  job.folder = e->folder;
  job.own = own;
  eini_dist_spaces(d, e, &job, space, key);
  key[EINI_KEY_FORM] = e->form;
  key[EINI_KEY_WHAT] = own;
  const int64_t i = q - d->fabric.first;
  EINI_TRY(eini_dist_plan(&d->plans, &job, key, nkey, &e->plan[i]));
  if (x->nagg == 1 || e->folder != NULL) return EIN_OK;
  job.by_index = !shared;
  job.dtype = out->dtype;
  int how = own ? EINI_MERGE_FROM_OUT | EINI_MERGE_TO_OUT : 0;
  key[EINI_KEY_WHAT] = 2 + how;
  nkey = s->nfree + EINI_KEYS;
  EINI_TRY(eini_dist_merge_plan(&d->plans, &job, how, key, nkey, &e->merge[i]));
  if (part > 0) return EIN_OK;
  how |= EINI_MERGE_TO_OUT;
  key[EINI_KEY_WHAT] = 2 + how;
  return eini_dist_merge_plan(&d->plans, &job, how, key, nkey, &e->last[i]);
}

// The plans of all its tasks; in the provider's memory where all of them run there, else the
// host's.
static ein_status eini_dist_stmt_plans(ein_dist *d, int k, int64_t *key, eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  const eini_stmt *s = e->s;
  const int64_t **stride = EINI_NEW(&d->arena, const int64_t *, s->noperand);
  int *space = EINI_NEW(&d->arena, int, s->noperand);
  if (stride == NULL || space == NULL) return EIN_ERR_NO_MEMORY;
  for (int away = 1;; away = 0) {
    int there = 1;
    eini_dist_settle(d, e, away);
    for (int64_t i = 0; i < e->nown && there; i++) {
      const ein_status st =
          eini_dist_task_plans(d, k, d->fabric.first + i, key, stride, space, m);
      if (!e->away || st != EIN_ERR_UNSUPPORTED) EINI_TRY(st);
      if (st != EIN_OK) EINI_TRY(eini_dist_plan_none(&d->plans));
      there = !e->away || (st == EIN_OK && eini_dist_runs_away(d, e, i));
    }
    if (there) return EIN_OK;
  }
}

// What a statement's partial results are.
static ein_status eini_dist_partials_init(ein_dist *d, eini_dist_stmt *e) {
  const eini_stmt *s = e->s;
  e->wide = eini_partial_bytes(d->g, s);
  e->direct = d->g->tensor[s->out].dtype == ein_dtype_compute(s->type);
  if (e->space.nagg == 1 || !eini_fold_carries(s->fold)) return EIN_OK;
  eini_folder *f = EINI_NEW(&d->arena, eini_folder, 1);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_states_folder(d->g, s, f));
  e->folder = f;
  e->direct = 0;
  return EIN_OK;
}

static ein_status eini_dist_stmt_init(ein_dist *d, int k, const ein_parts *p, eini_dist_shapes *f,
                                      eini_dist_room *m) {
  eini_dist_stmt *e = &d->stmt[k];
  eini_arena *a = &d->arena;
  ein_parts respelled;
  EINI_TRY(eini_dist_spell(d, k, f, &respelled, &p));
  const eini_stmt *s = e->s;
  EINI_TRY(eini_dist_space_init(a, s, p, &e->space));
  EINI_TRY(eini_dist_partials_init(d, e));
  const int64_t first = d->fabric.first;
  const int64_t n = e->nown = eini_max64(0, eini_min64(e->space.ntask - first, d->fabric.count));
  e->item = -1;
  while ((int64_t)1 << e->levels < e->space.nagg) e->levels++;
  e->plan = EINI_NEW(a, int64_t, n);
  e->merge = EINI_NEW(a, int64_t, n);
  e->last = EINI_NEW(a, int64_t, n);
  e->fetched = EINI_NEW(a, int64_t, n);
  e->again = EINI_NEW(a, unsigned char, s->noperand);
  int64_t *key = EINI_NEW(a, int64_t, (int64_t)s->nindex + EINI_KEYS);
  if (e->plan == NULL || e->merge == NULL || e->last == NULL || e->fetched == NULL || key == NULL ||
      e->again == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int o = 0; o < s->noperand; o++) e->again[o] = eini_operand_first(s, o) < o;
  int64_t most = 0;
  for (int64_t q = first; q < first + n; q++) {
    const int64_t block = eini_dist_elements(&e->space, q, m);
    most = eini_max64(most, block);
    eini_dist_read r = {0, 0, NULL};
    eini_dist_task_bytes(d, e, q, m, &r);
    e->fetched[q - first] = r.bytes;
    for (int l = 0; l < e->levels; l++)
      if (eini_dist_merges(&e->space, q, l)) eini_dist_reads(&r, -1, block * e->wide);
    e->messages += r.messages;
    e->bytes += r.bytes;
    for (int l = 0; l < e->levels; l++) d->info.tasks += eini_dist_merges(&e->space, q, l);
  }
  EINI_TRY(eini_dist_stmt_plans(d, k, key, m));
  if (eini_muladd_overflow(most, e->wide, EINI_ALIGN, &most)) return EIN_ERR_TOO_LARGE;
  if (e->space.nagg > 1) e->partial_bytes = (size_t)most / EINI_ALIGN * EINI_ALIGN;
  d->info.tasks += n;
  d->info.bytes += e->bytes;
  d->info.messages += e->messages;
  return EIN_OK;
}

// ---- memory ----

// Temporaries and partial results in one memory.
static ein_status eini_dist_memory(ein_dist *d) {
  d->item = EINI_NEW(&d->arena, eini_dist_item, d->g->ntensor + d->nstmt);
  if (d->item == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    eini_dist_stmt *e = &d->stmt[k];
    eini_dist_tensor *t = &d->tensor[e->s->out];
    eini_dist_item *x = &d->item[d->nitem];
    if (t->port < 0 && t->item < 0) {
      t->item = d->nitem++;
      x->first = k;
      x->last = t->nread > 0 ? t->read[t->nread - 1] : t->define[t->ndefine - 1];
      x->tensor = e->s->out;
      x->bytes = (t->hi - t->lo + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
      x++;
    }
    if (e->space.nagg > 1) {
      e->item = d->nitem++;
      x->first = x->last = k;
      x->tensor = -1;
      if (eini_mul_overflow(e->space.ntask, (int64_t)e->partial_bytes, &x->bytes))
        return EIN_ERR_TOO_LARGE;
    }
  }
  eini_item *item = EINI_NEW(&d->arena, eini_item, d->nitem);
  int *alive = EINI_NEW(&d->arena, int, d->nitem);
  if (item == NULL || alive == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < d->nitem; i++) {
    item[i].from = d->item[i].first;
    item[i].to = d->desc.no_reuse ? d->nstmt : d->item[i].last;
    item[i].bytes = d->item[i].bytes;
    item[i].at = &d->item[i].at;
  }
  return eini_items_place(item, d->nitem, 0, alive, &d->temp_bytes);
}

// Adds to *bytes what a place reads of input t, which is not pinned.
static void eini_dist_input(const ein_dist *d, int t, int64_t place, eini_boxes *u,
                            eini_dist_room *m, int64_t *bytes) {
  const eini_dist_tensor *x = &d->tensor[t];
  u->n = 0;
  for (int i = 0; i < x->nread; i++) {
    const eini_dist_stmt *e = &d->stmt[x->read[i]];
    for (int k = 0; k < e->s->noperand && place < e->space.ntask; k++)
      if (e->s->operand[k] == t && eini_operand_first(e->s, k) == k &&
          eini_dist_box(e, place, k, m))
        eini_boxes_add(u, m->from, m->to);
  }
  *bytes += (int64_t)eini_boxes_volume(u) * (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
}

// Bytes of inputs at each place of this process, into d->peak.
static ein_status eini_dist_held(ein_dist *d, eini_dist_room *m) {
  ein_decomp_info info;
  ein_decomposition_info(d->desc.decomposition, &info);
  if (d->desc.decomposition == NULL) info.inputs = d->desc.inputs;
  for (int t = 0; t < d->g->ntensor; t++) {
    const eini_dist_tensor *x = &d->tensor[t];
    eini_boxes boxes;
    if (d->g->tensor[t].role != EIN_ROLE_INPUT) continue;
    if (x->ndefine == 0 && info.inputs == EIN_INPUTS_OUTSIDE) continue;
    EINI_TRY(eini_boxes_init(&d->arena, d->g->tensor[t].rank, &boxes));
    for (int i = 0; i < d->fabric.count; i++) {
      const eini_space *pin = x->ndefine > 0 ? &d->stmt[x->define[0]].space : NULL;
      const int64_t q = d->fabric.first + i;
      if (pin == NULL) eini_dist_input(d, t, q, &boxes, m, &d->peak[i]);
      else if (q < pin->ntask)
        d->peak[i] += eini_dist_elements(pin, q, m) *
                      (int64_t)ein_dtype_size(d->g->tensor[t].dtype);
    }
  }
  return EIN_OK;
}

// Most bytes alive at each such place: inputs, blocks, and of one statement at a time what its task
// fetches and its partial result.
static ein_status eini_dist_peaks(ein_dist *d, eini_dist_room *m) {
  const int n = d->nstmt + 1;
  int64_t *change = EINI_NEW(&d->arena, int64_t, n);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (change == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_held(d, m));
  for (int i = 0; i < d->fabric.count; i++) {
    const int64_t q = d->fabric.first + i;
    memset(change, 0, (size_t)n * sizeof *change);
    for (int k = 0; k < d->nstmt; k++) {
      const eini_dist_stmt *e = &d->stmt[k];
      const eini_dist_tensor *t = &d->tensor[e->s->out];
      if (q >= e->space.ntask) continue;
      int64_t block = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
      int64_t bytes = block * e->wide;
      change[k] += e->fetched[i];
      change[k + 1] -= e->fetched[i];
      int last = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT ? d->nstmt - 1
                 : t->nread > 0 ? t->read[t->nread - 1] : k;
      if (part > 0 || (e->space.nagg > 1 && !e->direct)) {
        change[k] += bytes;
        change[k + 1] -= bytes;
      }
      if (part > 0) continue;
      bytes = block * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype);
      change[k] += bytes;
      change[last + 1] -= bytes;
    }
    int64_t alive = d->peak[i];  // inputs
    for (int k = 0; k < d->nstmt; k++) d->peak[i] = eini_max64(d->peak[i], alive += change[k]);
  }
  return EIN_OK;
}
