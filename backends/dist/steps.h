// ================================================================================================
// >>steps  statements under a schedule: boxes and plans of a point in a step
// Takes a schedule and what a worker is at: a point of the machine, a step, a message; gives boxes,
// plans and copies. Nothing is carried from step to step: a box follows from point and step.
// ================================================================================================

// A box in some memory: of a tensor, or of results by the free indices of their statement, dense:
// values, or states as eini_states_at has them. data NULL: plans are made only.
typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  int away;                 // 1: in the provider's memory
} eini_step_box;

// What a memory holds of a tensor: the hull.
typedef struct eini_step_home {
  eini_step_box box;
  int own;                  // it is the caller's: of the whole tensor, or the block of the place
  int64_t at, bytes;        // else where it lies; bytes: of a block of the caller's, too
} eini_step_home;

#define EINI_SHARES_MAX 16  // of a block, whatever the number of threads: it has the same bits

// A point of a place of this process in a step.
typedef struct eini_step_task {
  int64_t point, step;
  int64_t first, nmove;     // moves of what it fetches, and has at home; others are between them
  int32_t job, nshare;      // nshare: of a parallel loop; 0: the block is computed at once
  int16_t fresh, ends;      // fresh: nothing is in the partial result yet; ends: it goes home
} eini_step_task;

// A message of a point in a step as one of its places sees it, or what a place has itself.
typedef struct eini_step_move {
  int32_t kind;             // EINI_JOB_RECEIVE, EINI_JOB_SEND, EINI_JOB_NONE: at home
  int32_t place, peer;      // place: among those of the process
  int32_t access, owner;    // an operand, or behind them the result; which of its owners
  int32_t tag, job;         // tag: how many went between the places before
  int32_t round;            // how many steps with messages the place had before
  int32_t group, turn, turns;  // as of eini_dist_moved
  int64_t point, step;
  int64_t pieces;           // of the owner, along the axes; -1: all, the memory is shared
  int64_t bytes, at;        // in the place's memory of messages
} eini_step_move;

// Arrays by memory have one entry where it is shared, else one for each place of the process; those
// by side have these for what is at home and, behind them, for what is in the provider's memory.
typedef struct eini_steps_stmt {
  eini_tour w;              // its nest and owners; what changes is a worker's
  int whole, parallel;      // whole: what goes home is complete; parallel: a loop, or -1
  eini_folder states;
  const eini_folder *folder;  // states, where results are: folds cut that carry some; else NULL
  size_t wide;              // bytes of what is computed for a result
  int away, part_away;      // as of eini_dist_stmt: of operands that are fetched, and of results
  int64_t *cut;
  int64_t first, npoint;    // points of the places of this process
  size_t *box;              // per point: bytes of operands, of the partial result, and of a block
  int64_t *box_at;          // and where they lie, from the boxes of their side on
  eini_step_box *sum;       // by memory: partial results that come home, first of these boxes
  int64_t *boxes_at, *boxes_bytes, *inbox_at, *inbox_bytes;  // by side
  int64_t *in, *out;        // by side: bytes of the messages of a step, at most
  int64_t *nround;          // by memory: steps with messages
  int64_t *total;           // per place: tasks, messages, bytes received, sent
  int64_t plan;             // 1 + the number of its first plan; 0: none
  int64_t ntask, captask, nmove, capmove;
  eini_step_task *task;     // by step and point
  eini_step_move *move;     // by step: of operands, then of results
  int32_t room, zero, boxes, inbox, sums, finish, stored, done;  // jobs, by memory; -1: none
  int32_t *over;            // by memory: the first of its rounds
} eini_steps_stmt;

// A point in a step, as a worker has it.
typedef struct eini_step_point {
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step that is merged into it
  int64_t *lo, *hi;         // ranges of the step, or of a share of it
  const void **in;
  ein_scalar *param;
  int64_t plan, merge;      // -1: nothing is computed, or merged
  char *to;                 // where the plan writes: the block, merged into the partial result, or
  int apart;                //   not apart, that itself
} eini_step_point;

// A worker.
typedef struct eini_staged {
  const ein_dist *d;
  eini_block_plans *plans;  // of d, when they are made; NULL in a run
  const ein_run *run;       // NULL: plans are made only
  char *mem;                // of all memories of this process
  char *work, *spare;       // of plans; of states that are merged
  size_t spare_bytes;       // found when plans are made
  int number;               // the statement at hand
  int64_t place;            // where the job at hand runs
  eini_steps_stmt *e;
  const eini_stmt *stmt;
  eini_tour w;
  eini_owners o;            // the owner of the move at hand
  eini_axis_owners *axis;
  int64_t *meet, *pick;
  int64_t *key, *len, *boxes;
  const int64_t **stride;
  int *space;
  eini_step_point point;
  char error[192];          // of a task that failed
} eini_staged;

// Levels of events beside blocks, -1.
enum { EINI_STEPS_SENDS = -3, EINI_STEPS_FETCHES = -2 };

static int64_t eini_steps_memories(const ein_dist *d) {
  return d->fabric.shared ? 1 : d->fabric.count;
}

// The memory of a place of this process.
static int64_t eini_steps_memory(const ein_dist *d, int64_t place) {
  return d->fabric.shared ? 0 : place - d->fabric.first;
}

// Where what a memory has is counted, at home or in the provider's memory.
static int64_t eini_steps_side(const ein_dist *d, int64_t memory, int away) {
  return away ? eini_steps_memories(d) + memory : memory;
}

// Is box k of a point, an operand or behind them a result, in the provider's memory?
static int eini_steps_is_away(const eini_steps_stmt *e, int k) {
  return k < e->w.n->s->noperand ? e->away : e->part_away;
}

// Are messages of access k?
static int eini_steps_wired(const ein_dist *d, const eini_steps_stmt *e, int k) {
  return d->carried && eini_steps_is_away(e, k);
}

// Does every place read where the tensor is?
static int eini_steps_one(const ein_dist *d) { return d->fabric.shared || d->fabric.places == 1; }

// ---- a worker ----

// Scratch of a worker in mem (NULL: only the size). Returns the bytes.
static size_t eini_steps_scratch(const ein_dist *d, eini_staged *x, char *mem) {
  const int64_t r = (int64_t)d->rank + 1, boxes = r + 2;
  size_t n = 0;
  int64_t *p = (int64_t *)eini_dist_carve(mem, &n, EINI_LOOPS_MAX + 2 * EINI_NAMES_MAX + 16 * r +
                                          8 + 4 * r + r * r + 3 * boxes * r, sizeof *p);
  x->axis = (eini_axis_owners *)eini_dist_carve(mem, &n, EINI_NAMES_MAX, sizeof *x->axis);
  x->stride = (const int64_t **)eini_dist_carve(mem, &n, r, sizeof *x->stride);
  x->space = (int *)eini_dist_carve(mem, &n, r, sizeof *x->space);
  x->point.box = (eini_step_box *)eini_dist_carve(mem, &n, r, sizeof *x->point.box);
  x->point.in = (const void **)eini_dist_carve(mem, &n, r, sizeof *x->point.in);
  x->point.param = (ein_scalar *)eini_dist_carve(mem, &n, d->g->nparam + r, sizeof(ein_scalar));
  x->work = (char *)eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
  x->spare = (char *)eini_dist_carve(mem, &n, (int64_t)d->spare, 1);
  if (mem == NULL) return n;
  x->w.value = p, p += EINI_LOOPS_MAX;
  x->w.here = p, p += EINI_NAMES_MAX;
  x->meet = p, p += EINI_NAMES_MAX;
  int64_t **part[10];
  part[0] = &x->w.lo, part[1] = &x->w.hi, part[2] = &x->w.from, part[3] = &x->w.to;
  part[4] = &x->pick, part[5] = &x->o.lo, part[6] = &x->o.hi, part[7] = &x->len;
  part[8] = &x->point.lo, part[9] = &x->point.hi;
  for (int i = 0; i < 10; i++) *part[i] = p, p += r;
  x->o.room[0] = p, p += 2 * r;  // no sums of indices are counted in a run
  x->o.room[1] = p, p += 2 * r;
  x->key = p, p += 8 + 4 * r + r * r;
  x->boxes = p;
  for (int64_t i = 0; i < r; i++) x->pick[i] = 0;
  memset(x->point.param, 0, (size_t)(d->g->nparam + r) * sizeof *x->point.param);
  for (int64_t k = 0; k < d->g->nparam; k++) {
    const int given = x->run != NULL && x->run->param != NULL && x->run->param[k].set;
    x->point.param[k] = given ? x->run->param[k] : d->g->param[k].value;
  }
  for (int64_t k = 0; k < r; k++) x->point.param[d->g->nparam + k].set = 1;
  return n;
}

// Statement k is at hand.
static void eini_steps_on(eini_staged *x, int k) {
  const eini_tour own = x->w;
  x->number = k;
  x->e = &x->d->steps[k];
  x->stmt = x->e->w.n->s;
  x->w = x->e->w;
  x->w.value = own.value, x->w.here = own.here, x->w.lo = own.lo, x->w.hi = own.hi;
  x->w.from = own.from, x->w.to = own.to;
}

// Point i is.
static void eini_steps_goto(eini_staged *x, int64_t i) {
  x->w.move.point = i;
  x->w.move.place = eini_grid_place(x->w.n->grid, i);
  eini_grid_coords(x->w.n->grid, i, x->w.here);
}

// The owner of a move is, of the boxes that this is about.
static eini_owners *eini_steps_owner(eini_staged *x, const eini_step_move *v) {
  const eini_owners *from = &x->w.owners[v->access][v->owner];
  const eini_owners own = x->o;
  int64_t left = v->pieces;
  x->o = *from;
  x->o.axis = x->axis, x->o.pick = x->pick, x->o.lo = own.lo, x->o.hi = own.hi;
  x->o.room[0] = own.room[0], x->o.room[1] = own.room[1];
  for (int r = x->o.rank - 1; r >= 0; left /= from->axis[r--].n) {
    x->meet[r] = left % from->axis[r].n;
    x->axis[r].run = from->axis[r].run;
    x->axis[r].meet = &x->meet[r];
  }
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  (void)eini_tour_meets(&x->w, &x->o, v->access == x->stmt->noperand);
  return &x->o;
}

static ein_dtype eini_steps_type(const eini_staged *x) {
  return eini_loops_type(x->d->g, x->stmt);
}

static size_t eini_steps_bytes(int rank, const int64_t *shape, size_t size) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++)
    if (shape[r] <= 0) return size;
  for (int r = 0; r < rank; r++) n *= shape[r];
  return (size_t)n * size;
}

// Address `at` of a memory, at home or in the provider's.
static char *eini_steps_mem(const eini_staged *x, int64_t memory, int away, int64_t at) {
  if (x->run == NULL) return NULL;
  return (away ? (char *)x->d->held[memory] : x->mem + x->d->start[memory]) + at;
}

// Tensor t in a memory.
static eini_step_box eini_steps_home(const eini_staged *x, int t, int64_t memory) {
  const eini_step_home *h = &x->d->home[(int64_t)t * eini_steps_memories(x->d) + memory];
  eini_step_box b = h->box;
  b.data = h->own && x->run != NULL
               ? eini_dist_bound(x->d, x->run, t, x->d->desc.blocks ? (int)memory : 0)
               : eini_steps_mem(x, memory, h->box.away, h->at);
  return b;
}

static eini_step_box eini_steps_sum(const eini_staged *x, int64_t memory) {
  eini_step_box b = x->e->sum[memory];
  b.away = x->e->part_away;
  b.data = eini_steps_mem(x, memory, b.away,
                          x->e->boxes_at[eini_steps_side(x->d, memory, b.away)]);
  return b;
}

// Element `at` of a box; NULL: it has no memory, as plans are made only.
static char *eini_steps_at(const eini_step_box *b, int rank, const int64_t *at, size_t size) {
  int64_t n = 0;
  if (b->data == NULL) return NULL;
  for (int r = 0; r < rank; r++) n += (at[r] - b->lo[r]) * b->stride[r];
  return b->data + n * (int64_t)size;
}

// What begins with that element, with the strides of the box.
static eini_dist_end eini_steps_end(const eini_step_box *b, int rank, const int64_t *at,
                                    size_t size) {
  return eini_dist_end_of(EINI_AT_BLOCK, eini_steps_at(b, rank, at, size), b->stride, b->away);
}

// Where statement s writes the values `lo` of its free indices in a box of its tensor (NULL: it has
// no memory), with strides by free index.
static eini_dist_end eini_steps_written(const eini_stmt *s, const eini_step_box *b,
                                        const int64_t *lo, size_t size, int64_t *stride) {
  const eini_map *m = &s->out_map;
  int64_t n = 0;
  for (int i = 0; i < s->nfree; i++) stride[i] = 0;
  for (int r = 0; r < m->rows; r++) {
    n += (m->offset[r] - b->lo[r]) * b->stride[r];
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      n += m->term[e].coef * lo[m->term[e].index] * b->stride[r];
      stride[m->term[e].index] += m->term[e].coef * b->stride[r];
    }
  }
  return eini_dist_end_of(EINI_AT_BLOCK, b->data == NULL ? NULL : b->data + n * (int64_t)size,
                          stride, b->away);
}

static int64_t eini_steps_volume(int rank, const int64_t *lo, const int64_t *hi) {
  return (int64_t)eini_box_volume(rank, lo, hi);
}

// Adds numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(eini_staged *x, int64_t id, const void *const *in,
                                     void *const *out, const ein_scalar *param) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.param = param;
  run.workspace_bytes = x->d->plans.workspace;
  run.workspace = x->work;
  run.error = x->error;
  run.error_bytes = sizeof x->error;
  return eini_dist_run_at(x->d, x->place, id, &run);
}

// The space of views of what is in the provider's memory, or not.
static int eini_steps_space(const ein_dist *d, int away) {
  return away ? d->away->memory->space : 0;
}

// A plan was made, or not. EIN_ERR_UNSUPPORTED: the statement stays at home, as one there cannot be
// made, or, of a block, would not run there.
static ein_status eini_steps_planned(eini_staged *x, ein_status st, int block, int64_t id) {
  if (!x->e->away) return st;
  if (st == EIN_ERR_UNSUPPORTED) EINI_TRY(eini_dist_plan_none(x->plans));
  if (st != EIN_OK) return st;
  const ein_plan *p = x->plans->plan[id];
  return p != NULL && (!block || eini_dist_plan_away(p)) ? EIN_OK : EIN_ERR_UNSUPPORTED;
}

// The plan that merges a box of `right` into one of `left`; fold EIN_FOLD_NONE: left becomes right,
// whose type may be another.
static ein_status eini_steps_merge_plan(eini_staged *x, int fold, int rank, const int64_t *shape,
                                        ein_dtype to, const eini_dist_end *left, ein_dtype from,
                                        const eini_dist_end *right, int64_t *id) {
  int64_t n = eini_steps_key(x, 5, shape, rank);
  x->key[0] = -1 - fold;
  x->key[1] = to;
  x->key[2] = from;
  x->key[3] = rank;
  x->key[4] = left->away | 2 * right->away;
  n = eini_steps_key(x, n, left->stride, rank);
  n = eini_steps_key(x, n, right->stride, rank);
  if (eini_dist_clocked(x->d)) return *id = 0, EIN_OK;
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  const eini_merge_side l = {to, rank, shape, left->stride, NULL, NULL,
                             eini_steps_space(x->d, left->away)};
  const eini_merge_side r = {from, rank, shape, right->stride, NULL, NULL,
                             eini_steps_space(x->d, right->away)};
  eini_block_merge m = {fold, 0, from, rank, shape, l, r, l};
  if (fold == EIN_FOLD_NONE) m.left = r;
  const ein_status st = eini_block_merge_plan(x->plans, &m, x->key, n, id);
  return eini_steps_planned(x, st, 0, *id);
}

static ein_status eini_steps_merge_run(eini_staged *x, int fold, int64_t id, char *left,
                                       const char *right) {
  const void *in[2];
  void *out[1];
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  out[0] = left;
  return eini_steps_execute(x, id, in, out, NULL);
}

static ein_status eini_steps_merge(eini_staged *x, int fold, int rank, const int64_t *shape,
                                   ein_dtype to, const eini_dist_end *left, ein_dtype from,
                                   const eini_dist_end *right) {
  int64_t id;
  EINI_TRY(eini_steps_merge_plan(x, fold, rank, shape, to, left, from, right, &id));
  return x->run == NULL ? EIN_OK : eini_steps_merge_run(x, fold, id, left->data, right->data);
}

// Plans a block by the kernels that its statement's nest names, or any. The first is kept: its
// kernels are shown for the statement.
static ein_status eini_steps_leaf(eini_staged *x, const eini_dist_job *job, int64_t n,
                                  int64_t *id) {
  const char *leaf = x->w.n->leaf;
  ein_ctx *ctx = x->plans->ctx;
  const int nkernels = ctx->nkernels;
  const ein_kernels **kernels = ctx->kernels;
  int k = 0;
  while (leaf != NULL && k < nkernels && strcmp(kernels[k]->name, leaf) != 0) k++;
  if (leaf != NULL) ctx->nkernels = k < nkernels, ctx->kernels = kernels + k;
  const ein_status st = eini_dist_plan(x->plans, job, x->key, n, id);
  ctx->nkernels = nkernels, ctx->kernels = kernels;
  if (st == EIN_OK && x->e->plan == 0) x->e->plan = *id + 1;
  return eini_steps_planned(x, st, job->space != NULL, *id);
}

// Merges n states of extents `shape` at `right` into those from lo on of a box.
static void eini_steps_states(const eini_folder *f, int rank, const int64_t *shape,
                              const eini_step_box *left, const int64_t *lo, int64_t n,
                              char *right) {
  const int64_t row = rank > 0 ? shape[rank - 1] : 1;
  void *a[4], *b[4], *acc[4], *from[4];
  eini_states_at(f, eini_steps_volume(rank, left->lo, left->hi), left->data, a);
  eini_states_at(f, n, right, b);
  for (int64_t at = 0; at < n; at += row) {
    int64_t rest = at / row, to = 0;
    for (int r = rank - 1; r >= 0; r--) {
      to += (lo[r] - left->lo[r]) * left->stride[r];
      if (r < rank - 1) to += rest % shape[r] * left->stride[r], rest /= shape[r];
    }
    for (int64_t k = 0; k < row; k += EINI_CHUNK) {
      const void *more[4];
      eini_states_from(f, a, to + k, acc);
      eini_states_from(f, b, at + k, from);
      for (int s = 0; s < 4; s++) more[s] = from[s];
      f->merge(eini_min64(EINI_CHUNK, row - k), acc, more, f->user == NULL ? NULL : f->user->user);
    }
  }
}

// Copies n states of extents `shape` from lo on of a box, one after another.
static void eini_steps_pack(const eini_folder *f, int rank, const int64_t *shape,
                            const eini_step_box *box, const int64_t *lo, int64_t n, char *to) {
  void *a[4], *b[4], *from[4];
  int64_t dense[EINI_NAMES_MAX], at = 0;
  eini_states_at(f, eini_steps_volume(rank, box->lo, box->hi), box->data, a);
  eini_states_at(f, n, to, b);
  for (int r = 0; r < rank; r++) at += (lo[r] - box->lo[r]) * box->stride[r];
  eini_states_from(f, a, at, from);
  eini_dist_dense(rank, shape, dense);
  for (int s = 0; s < f->nstate; s++)
    eini_dist_copy(rank, shape, (char *)b[s], dense, (const char *)from[s], box->stride,
                   ein_dtype_size(eini_state_dtype(f, s)));
}

// Stores complete results from lo on of a box, converted or finished.
static ein_status eini_steps_store(eini_staged *x, const int64_t *shape, const eini_dist_end *to,
                                   const eini_step_box *box, const int64_t *lo) {
  const ein_dtype type = eini_steps_type(x), stored = x->d->g->tensor[x->stmt->out].dtype;
  const int rank = x->stmt->nfree;
  void *a[4], *from[4];
  int64_t at = 0;
  const eini_dist_end own = eini_steps_end(box, rank, lo, x->e->wide);
  if (x->e->folder == NULL)
    return eini_steps_merge(x, EIN_FOLD_NONE, rank, shape, stored, to, type, &own);
  if (x->run == NULL) return EIN_OK;
  eini_states_at(x->e->folder, eini_steps_volume(rank, box->lo, box->hi), box->data, a);
  for (int r = 0; r < rank; r++) at += (lo[r] - box->lo[r]) * box->stride[r];
  eini_states_from(x->e->folder, a, at, from);
  eini_states_finish(x->e->folder, rank, shape, from, box->stride, stored, to->data, to->stride);
  return EIN_OK;
}

// The plan of a block of so many values of each index, of operands and the result that lie as these
// boxes; nothing: it reads nothing, and the host makes it.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  const eini_step_box *out, int nothing, int64_t *id) {
  const eini_stmt *s = x->stmt;
  eini_dist_job job;
  x->key[0] = x->number;
  x->key[1] = nothing ? 0 : x->e->away | 2 * x->e->part_away;
  int64_t n = eini_steps_key(x, 2, len, s->nindex);
  n = eini_steps_key(x, n, out->stride, s->nfree);
  for (int o = 0; o < s->noperand; o++) {
    x->space[o] = eini_steps_space(x->d, box[o].away);
    x->stride[o] = box[o].stride;
    n = eini_steps_key(x, n, x->stride[o], x->d->g->tensor[s->operand[o]].rank);
  }
  if (eini_dist_clocked(x->d)) return *id = 0, EIN_OK;
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  memset(&job, 0, sizeof job);
  job.g = x->d->g;
  job.s = s;
  job.block = eini_block_of(NULL, len, NULL);
  job.cut = x->e->cut;
  job.stride = x->stride;
  job.out_stride = out->stride;
  job.space = nothing ? NULL : x->space;
  job.part_space = nothing ? 0 : eini_steps_space(x->d, out->away);
  job.by_index = 2;
  job.folder = x->e->folder;
  job.dtype = eini_steps_type(x);
  return eini_steps_leaf(x, &job, n, id);
}

// ---- parts of boxes ----

// Copies what of an owned box writes between `from` and `to`, at the place at hand. Strides by free
// index, NULL: one element behind another. *count: of the elements.
static ein_status eini_steps_copy(const eini_staged *x, const eini_owners *o, const eini_owned *p,
                                  const int64_t *from, const int64_t *to, const eini_dist_end *dst,
                                  const eini_dist_end *src, size_t size, int64_t *count) {
  const int n = o->s->nfree;
  const eini_map *m = &o->s->out_map;
  int64_t at[EINI_NAMES_MAX], dense[EINI_NAMES_MAX];
  const int64_t volume = *count = eini_steps_volume(n, p->lo, p->hi);
  eini_dist_dense(n, p->shape, dense);
  if (!o->several && volume > 0)
    return eini_own_carry(x->d, x->place, n, p->shape, dst, src,
                          dst->stride == NULL ? dense : dst->stride,
                          src->stride == NULL ? dense : src->stride, size);
  if (volume == 0) return EIN_OK;
  *count = 0;
  for (int i = 0; i < n; i++) at[i] = p->lo[i];
  for (int i = n; i >= 0;) {  // rows of the last index
    int64_t lo = p->lo[n - 1], hi = p->hi[n - 1], a = 0, b = 0;
    const int64_t one = 1;
    for (int r = 0; r < m->rows; r++) {
      int64_t c = 0, base = m->offset[r];
      for (int e = m->first[r]; e < m->first[r + 1]; e++)
        if (m->term[e].index == n - 1) c = m->term[e].coef;
        else base += m->term[e].coef * at[m->term[e].index];
      if (c != 0) eini_narrow_range(c, base, from[r], to[r], &lo, &hi);
      else if (base < from[r] || base >= to[r]) hi = lo;
    }
    at[n - 1] = lo;
    for (i = 0; i < n; i++) {
      a += dst->stride == NULL ? 0 : (at[i] - p->lo[i]) * dst->stride[i];
      b += src->stride == NULL ? 0 : (at[i] - p->lo[i]) * src->stride[i];
    }
    if (dst->stride == NULL) a = *count;
    if (src->stride == NULL) b = *count;
    const int64_t length = eini_max64(hi - lo, 0);
    eini_dist_end left = *dst, right = *src;
    left.data += a * (int64_t)size;
    right.data += b * (int64_t)size;
    EINI_TRY(eini_own_carry(x->d, x->place, 1, &length, &left, &right,
                            dst->stride == NULL ? &one : &dst->stride[n - 1],
                            src->stride == NULL ? &one : &src->stride[n - 1], size));
    *count += length;
    for (i = n - 2; i >= 0 && ++at[i] == p->hi[i]; i--) at[i] = p->lo[i];
  }
  return EIN_OK;
}

// ---- a point in a step ----

// A dense box; at: in its memory.
static size_t eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, const int64_t *lo,
                               const int64_t *hi, size_t size, char *at) {
  int64_t *shape = x->len;
  for (int r = 0; r < rank; r++) {
    b->lo[r] = lo[r];
    b->hi[r] = hi[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  b->data = at;
  return eini_steps_bytes(rank, shape, size);
}

// Box k of the point at hand in its memory; while plans are made: the bytes it takes are noted.
static void eini_steps_box(eini_staged *x, eini_step_box *b, int k, int rank, const int64_t *lo,
                           const int64_t *hi, size_t size) {
  eini_steps_stmt *e = x->e;
  const int64_t i = (x->w.move.point - e->first) * (x->stmt->noperand + 2) + k;
  const int64_t memory = eini_steps_memory(x->d, x->w.move.place);
  b->away = eini_steps_is_away(e, k);
  const int64_t from = e->boxes_at[eini_steps_side(x->d, memory, b->away)];
  char *at = eini_steps_mem(x, memory, b->away, from + e->box_at[i]);
  const size_t bytes = eini_steps_dense(x, b, rank, lo, hi, size, at);
  if (x->run == NULL && bytes > e->box[i]) e->box[i] = bytes;
}

// Are elements of tensor t that its statement does not write zeros?
static int eini_steps_zeros(const ein_dist *d, int t) {
  return d->tensor[t].ndefine == 1 && d->g->stmt[d->tensor[t].define[0]].rest == EIN_REST_ZERO;
}

// The boxes of the point at hand: of operands, in a memory that is shared, or of an input that lies
// everywhere, those of the tensor; else of what was fetched last; and the ranges of the step.
static void eini_steps_boxes(eini_staged *x, int64_t step) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const int64_t r = (int64_t)x->d->rank + 1;
  const int n = s->noperand;
  for (int k = 0; k <= n + 1; k++) {
    eini_step_box *b = k <= n ? &pt->box[k] : &pt->block;
    b->lo = x->boxes + 3 * r * k, b->hi = b->lo + r, b->stride = b->hi + r;
  }
  for (int k = 0; k < n; k++) {
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    if (x->w.again[k] >= 0) {
      pt->box[k] = pt->box[x->w.again[k]];
    } else if (eini_steps_one(x->d) || x->w.nowners[k] == 0) {
      pt->box[k] = eini_steps_home(x, s->operand[k], eini_steps_memory(x->d, x->w.move.place));
    } else {
      (void)eini_tour_box(&x->w, step, k);
      eini_steps_box(x, &pt->box[k], k, t->rank, x->w.from, x->w.to, ein_dtype_size(t->dtype));
    }
  }
  (void)eini_tour_box(&x->w, step, n);
  eini_steps_box(x, &pt->box[n], n, s->nfree, x->w.lo, x->w.hi, x->e->wide);
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
}

// The states of nothing in a box.
static void eini_steps_identity(const eini_staged *x, const eini_step_box *b) {
  void *state[4];
  const int64_t n = eini_steps_volume(x->stmt->nfree, b->lo, b->hi);
  eini_states_at(x->e->folder, n, b->data, state);
  eini_fold_identity(x->e->folder, n, state);
}

// The fold of nothing for all results of a box, by a plan that reads nothing. In the provider's
// memory all become one that is made at home.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_box *to) {
  static const double none[2] = {0, 0};
  const eini_step_point *pt = &x->point;
  const int n = x->stmt->nfree;
  int64_t *len = x->w.lo, shape[EINI_NAMES_MAX], same[EINI_NAMES_MAX] = {0}, id;
  double one[2];
  void *out[1];
  out[0] = to->away ? (void *)one : to->data;
  if (x->e->folder != NULL && x->run != NULL) eini_steps_identity(x, to);
  if (x->e->folder != NULL) return EIN_OK;
  for (int o = 0; o < x->stmt->noperand; o++) pt->in[o] = none;
  for (int i = 0; i < n; i++) shape[i] = to->hi[i] - to->lo[i];
  for (int i = 0; i < x->stmt->nindex; i++) len[i] = i >= n ? 0 : to->away ? 1 : shape[i];
  EINI_TRY(eini_steps_plan(x, len, pt->box, to, 1, &id));
  if (x->run == NULL) return EIN_OK;
  EINI_TRY(eini_steps_execute(x, id, pt->in, out, pt->param));
  const eini_dist_end from = eini_dist_end_of(EINI_AT_BLOCK, (char *)one, same, 0);
  const eini_dist_end all = eini_dist_end_of(EINI_AT_BLOCK, to->data, to->stride, 1);
  return !to->away ? EIN_OK : eini_own_carry(x->d, x->place, n, shape, &all, &from, to->stride,
                                             same, x->e->wide);
}

// Addresses and origins of the block at pt->lo.
static void eini_steps_bind(eini_staged *x) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  ein_scalar *p = pt->param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_dist_uses(s, x->e->cut, i)) (p++)->re = (double)pt->lo[i];
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    pt->in[n++] = eini_steps_at(&pt->box[k], t->rank, x->w.from, ein_dtype_size(t->dtype));
  }
}

// The plans of the block of a step, whose boxes are at hand: it goes to the partial result where
// there is nothing of it yet or each of its elements is computed once; else it is merged into that.
// begin: the partial result of nothing is made where it has to be.
static ein_status eini_steps_block(eini_staged *x, const eini_step_task *t, int begin) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const int rank = s->nfree, n = s->noperand;
  const ein_dtype type = eini_steps_type(x);
  const eini_step_box *acc = &pt->box[n];
  const size_t bytes = (size_t)rank * sizeof(int64_t);
  const int all = memcmp(acc->lo, pt->lo, bytes) == 0 && memcmp(acc->hi, pt->hi, bytes) == 0;
  const int once = x->e->folder == NULL && !eini_loops_folds(x->w.n, x->w.n->nstep - 1);
  int64_t *len = x->w.lo;
  pt->plan = pt->merge = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  pt->apart = !((t->fresh && all) || once);
  if (pt->apart && t->fresh && begin) EINI_TRY(eini_steps_nothing(x, acc));
  eini_steps_bind(x);
  const eini_dist_end own = eini_steps_end(acc, rank, pt->lo, x->e->wide);
  pt->to = own.data;
  if (pt->apart) {
    eini_steps_box(x, &pt->block, n + 1, rank, pt->lo, pt->hi, x->e->wide);
    for (int r = 0; r < rank; r++) x->w.value[r] = pt->block.hi[r] - pt->block.lo[r];
    const eini_dist_end block = eini_steps_end(&pt->block, rank, pt->lo, x->e->wide);
    if (x->e->folder == NULL)
      EINI_TRY(eini_steps_merge_plan(x, s->fold, rank, x->w.value, type, &own, type, &block,
                                     &pt->merge));
    pt->to = block.data;
  }
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, pt->apart ? &pt->block : acc, 0, &pt->plan);
}

// Share k of n of the ranges of a step, by the parallel loop, into pt->lo and pt->hi; 0: they are
// not one range.
static int eini_steps_share(eini_staged *x, int64_t step, int64_t k, int64_t n) {
  const int v = x->e->parallel;
  const eini_loop *loop = &x->w.n->loop[v];
  eini_step_point *pt = &x->point;
  eini_tour_values(&x->w, step, x->w.n->nstep);
  x->w.value[v] = eini_piece_start(loop->extent, n, k);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  const int64_t from = pt->lo[loop->index];
  x->w.value[v] = eini_piece_start(loop->extent, n, k + 1) - 1;
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  pt->lo[loop->index] = from;
  return !eini_zrange_empty(x->stmt->nindex, pt->lo, pt->hi);
}

// The plan of the share at hand, as pt->plan, and where it writes.
static ein_status eini_steps_share_plan(eini_staged *x) {
  const eini_stmt *s = x->stmt;
  eini_step_point *pt = &x->point;
  const eini_step_box *to = pt->apart ? &pt->block : &pt->box[s->noperand];
  int64_t *len = x->w.lo;
  eini_steps_bind(x);
  pt->to = eini_steps_at(to, s->nfree, pt->lo, x->e->wide);
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, to, 0, &pt->plan);
}
