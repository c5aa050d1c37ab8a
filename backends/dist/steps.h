// ================================================================================================
// >>steps  statements under a schedule
// Takes a schedule; runs each statement step by step: all points fetch, compute and, where a
// partial result is complete, send it home. Plans are made beforehand, by the same walk without
// data.
// ================================================================================================

// Of several processes each walks all points in the same order, computes those of its places, and
// takes part in the messages of these one by one: the process that stands at the least message
// waits for none that comes later, so nobody waits in vain.

// A box of a tensor in some memory.
typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  size_t room;
} eini_step_box;

typedef struct eini_step_point {
  int works, fresh;         // fresh: nothing is in the partial result yet
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step that is merged into it
  int64_t *lo, *hi;         // ranges of the step
  const void **in;
  ein_scalar *param;
  int64_t plan, merge;      // of the step; -1: nothing is computed, or merged
  char *to;                 // where the plan writes, and
  char *into;               //   what that is merged into
  ein_status st;
} eini_step_point;

// The most that boxes of a statement take, found when its plans were made.
typedef struct eini_steps_rooms {
  size_t *box;              // per point: of each operand, of the partial result, and of a block
  size_t message;
  int64_t plan;             // 1 + the number of its first plan; 0: none
} eini_steps_rooms;

typedef struct eini_staged {
  const ein_dist *d;
  eini_block_plans *plans;  // of d, when they are made; NULL in a run
  const ein_schedule *s;
  const ein_run *run;       // NULL: plans are made only
  eini_arena *a, *scratch;  // scratch: of the statement at hand
  int nmemory;              // 1 where it is shared, else one for each place
  eini_step_box *home;      // of tensors in memories: the hull of what is held there
  eini_arena *lives;        // of each tensor: where its homes are, while it is needed
  eini_step_box *sum;       // in memories: partial results of the statement, in its own type
  char *work;               // of plans, for each worker
  int width;
  const eini_stmt *stmt;
  int number, whole;        // whole: what goes home is complete
  int64_t *key, *cut;
  const int64_t **stride;
  eini_step_point *point;
  eini_tour w;
  ein_schedule_info info;   // of w; a run's figures are its stats
  ein_dist_stats *stats;
  int64_t tag;
  char *message;
  size_t room;
  ein_status failed;        // of several processes: this one only moves on
} eini_staged;

static int eini_steps_alone(const eini_staged *x) {
  return x->d->fabric.count == x->d->fabric.places;
}

static int eini_steps_mine(const eini_staged *x, int64_t place) {
  return eini_dist_driven(x->d, place);
}

static ein_dtype eini_steps_type(const eini_staged *x) {
  return eini_loops_type(x->d->g, x->stmt);
}

// A mistake ends a run, but for one of several processes, which others wait for: its messages hold
// what they may.
static ein_status eini_steps_goes_on(eini_staged *x, ein_status st) {
  if (st == EIN_OK || x->run == NULL || eini_steps_alone(x)) return st;
  if (x->failed == EIN_OK) x->failed = st;
  return EIN_OK;
}

static size_t eini_steps_bytes(int rank, const int64_t *shape, size_t size) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++)
    if (shape[r] <= 0) return size;
  for (int r = 0; r < rank; r++) n *= shape[r];
  return (size_t)n * size;
}

// At least so many bytes at *data; what was there is lost. While plans are made, how many that are.
static ein_status eini_steps_room(eini_staged *x, char **data, size_t *room, size_t bytes) {
  if (bytes <= *room) return EIN_OK;
  *room = bytes;
  if (x->run == NULL) return EIN_OK;
  *data = EINI_NEW(x->scratch, char, bytes);
  return *data == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Notes the rooms of a statement whose plans are made, or takes those that were noted.
static ein_status eini_steps_rooms_of(eini_staged *x) {
  eini_steps_rooms *r = &x->d->rooms[x->number];
  const int n = x->stmt->noperand;
  const int64_t npoint = x->w.n->grid->npoint;
  if (x->run == NULL && (r->box = EINI_NEW(x->plans->a, size_t, npoint * (n + 2))) == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < npoint; i++) {
    eini_step_point *pt = &x->point[i];
    for (int k = 0; k <= n + 1 && pt->box != NULL; k++) {
      eini_step_box *b = k <= n ? &pt->box[k] : &pt->block;
      size_t *room = &r->box[i * (n + 2) + k];
      if (x->run == NULL) *room = k < n && x->w.again[k] >= 0 ? 0 : b->room;
      else EINI_TRY(eini_steps_room(x, &b->data, &b->room, *room));
    }
  }
  if (x->run == NULL) return r->message = x->room, EIN_OK;
  return eini_steps_room(x, &x->message, &x->room, r->message);
}

static ein_status eini_steps_box_new(eini_arena *a, eini_step_box *b, int rank) {
  memset(b, 0, sizeof *b);
  b->lo = EINI_NEW(a, int64_t, rank);
  b->hi = EINI_NEW(a, int64_t, rank);
  b->stride = EINI_NEW(a, int64_t, rank);
  return b->lo == NULL || b->hi == NULL || b->stride == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Tensor t at a place.
static eini_step_box *eini_steps_home(const eini_staged *x, int t, int64_t place) {
  return &x->home[(int64_t)t * x->nmemory + (x->nmemory > 1 ? place : 0)];
}

// Element `at` of a box; NULL: it has no memory, as plans are made only.
static char *eini_steps_at(const eini_step_box *b, int rank, const int64_t *at, size_t size) {
  int64_t n = 0;
  if (b->data == NULL) return NULL;
  for (int r = 0; r < rank; r++) n += (at[r] - b->lo[r]) * b->stride[r];
  return b->data + n * (int64_t)size;
}

// Adds numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(const eini_staged *x, int worker, int64_t id,
                                     const void *const *in, char *out, const ein_scalar *param) {
  void *to[1];
  ein_run run;
  memset(&run, 0, sizeof run);
  to[0] = out;
  run.in = in;
  run.out = to;
  run.param = param;
  run.workspace_bytes = x->d->plans.workspace;
  run.workspace = x->work + (size_t)worker * (run.workspace_bytes + EINI_ALIGN);
  return ein_plan_execute(x->d->plans.plan[id], &run);
}

// The plan that merges a box of `right` into one of `left`; fold EIN_FOLD_NONE: left becomes right,
// whose type may be another.
static ein_status eini_steps_merge_plan(eini_staged *x, int fold, int rank, const int64_t *shape,
                                        ein_dtype to, const int64_t *left, ein_dtype from,
                                        const int64_t *right, int64_t *id) {
  int64_t n = eini_steps_key(x, 4, shape, rank);
  x->key[0] = -1 - fold;
  x->key[1] = to;
  x->key[2] = from;
  x->key[3] = rank;
  n = eini_steps_key(x, n, left, rank);
  n = eini_steps_key(x, n, right, rank);
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  const eini_merge_side l = {to, rank, shape, left, NULL, NULL};
  const eini_merge_side r = {from, rank, shape, right, NULL, NULL};
  eini_block_merge m = {fold, 0, from, rank, shape, l, r, l};
  if (fold == EIN_FOLD_NONE) m.left = r;
  return eini_block_merge_plan(x->plans, &m, x->key, n, id);
}

static ein_status eini_steps_merge_run(const eini_staged *x, int worker, int fold, int64_t id,
                                       char *left, const char *right) {
  const void *in[2];
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  return eini_steps_execute(x, worker, id, in, left, NULL);
}

static ein_status eini_steps_merge(eini_staged *x, int fold, int rank, const int64_t *shape,
                                   ein_dtype to, char *left, const int64_t *left_stride,
                                   ein_dtype from, const char *right,
                                   const int64_t *right_stride) {
  int64_t id;
  EINI_TRY(eini_steps_merge_plan(x, fold, rank, shape, to, left_stride, from, right_stride, &id));
  return x->run == NULL ? EIN_OK : eini_steps_merge_run(x, 0, fold, id, left, right);
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
  if (st == EIN_OK && x->d->rooms[x->number].plan == 0) x->d->rooms[x->number].plan = *id + 1;
  return st;
}

// The plan of a block of so many values of each index, with these strides of the operands and the
// result.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  const int64_t *out, int64_t *id) {
  const eini_stmt *s = x->stmt;
  eini_dist_job job;
  x->key[0] = x->number;
  int64_t n = eini_steps_key(x, 1, len, s->nindex);
  n = eini_steps_key(x, n, out, x->d->g->tensor[s->out].rank);
  for (int o = 0; o < s->noperand; o++) {
    x->stride[o] = box[o].stride;
    n = eini_steps_key(x, n, x->stride[o], x->d->g->tensor[s->operand[o]].rank);
  }
  if (x->plans == NULL) return *id = eini_key_find(&x->d->plans.keys, x->key, n), EIN_OK;
  memset(&job, 0, sizeof job);
  job.g = x->d->g;
  job.s = s;
  job.block = eini_block_of(NULL, len, NULL);
  job.cut = x->cut;
  job.stride = x->stride;
  job.out_stride = out;
  job.dtype = eini_steps_type(x);
  return eini_steps_leaf(x, &job, n, id);
}

// ---- parts of boxes ----

typedef struct eini_steps_part {
  int64_t at[EINI_NAMES_MAX], lo[EINI_NAMES_MAX], hi[EINI_NAMES_MAX], shape[EINI_NAMES_MAX];
} eini_steps_part;

// The next box of the owner's runs that meets w->from and w->to; first: the first one.
static int eini_steps_next(const eini_tour *w, const eini_owners *o, eini_steps_part *p,
                           int first) {
  const int rank = o->d->rank;
  int r = rank - 1;
  for (int k = 0; k < rank && first; k++) p->at[k] = 0;
  for (; r >= 0 && !first; r--) {
    const eini_axis_owners *x = &o->axis[r];
    if (++p->at[r] < x->run[x->meet[o->pick[r]]].n) break;
    p->at[r] = 0;
  }
  if (!first && r < 0) return 0;
  for (r = 0; r < rank; r++) {
    const eini_axis_owners *x = &o->axis[r];
    const int64_t *v = x->run[x->meet[o->pick[r]]].v + 2 * p->at[r];
    p->lo[r] = eini_max64(v[0], w->from[r]);
    p->hi[r] = eini_max64(p->lo[r], eini_min64(v[1], w->to[r]));
    p->shape[r] = p->hi[r] - p->lo[r];
  }
  return 1;
}

// Sends `bytes` at x->message, if `from` is a place of this process, and receives them behind, if
// `to` is one. What is under way is waited for, whatever fails.
static ein_status eini_steps_send(eini_staged *x, int64_t from, int64_t to, size_t bytes) {
  const ein_fabric *f = &x->d->fabric;
  ein_ticket sent = 0, there = 0;
  ein_status st = EIN_OK, own;
  const int64_t tag = x->tag++;
  if (eini_steps_mine(x, from))
    st = f->send_fn(f->user, (int)from, (int)to, tag, x->message, bytes, &sent);
  if (st == EIN_OK && eini_steps_mine(x, to))
    st = f->recv_fn(f->user, (int)to, (int)from, tag, x->message + bytes, bytes, &there);
  if (st == EIN_OK && there != 0) st = f->wait_fn(f->user, there);
  own = sent != 0 ? f->wait_fn(f->user, sent) : EIN_OK;
  return st != EIN_OK ? st : own;
}

// What an owner has of an operand's box goes to the point, through a message where it is another
// place.
static ein_status eini_steps_fetch(eini_staged *x, eini_owners *o, int64_t owner, int k) {
  const int t = x->stmt->operand[k], rank = o->d->rank;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box *b = &x->point[x->w.move.point].box[k], *from = eini_steps_home(x, t, owner);
  const int away = owner != x->w.move.place;
  const int has = eini_steps_mine(x, owner), wants = eini_steps_mine(x, x->w.move.place);
  eini_steps_part p;
  size_t n = 0;
  int64_t dense[EINI_NAMES_MAX];
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1) EINI_TRY(eini_steps_send(x, owner, x->w.move.place, n));
    const char *message = x->message + n;
    for (int more = eini_steps_next(&x->w, o, &p, 1); more;
         more = eini_steps_next(&x->w, o, &p, 0)) {
      if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
      char *have = has ? eini_steps_at(from, rank, p.lo, size) : NULL;
      char *want = wants ? eini_steps_at(b, rank, p.lo, size) : NULL;
      eini_dist_dense(rank, p.shape, dense);
      if (!away) eini_dist_copy(rank, p.shape, want, b->stride, have, from->stride, size);
      else if (pass == 0 && has)
        eini_dist_copy(rank, p.shape, x->message + n, dense, have, from->stride, size);
      else if (pass == 1 && wants)
        eini_dist_copy(rank, p.shape, want, b->stride, message, dense, size);
      if (pass == 0) n += eini_steps_bytes(rank, p.shape, size);
      else message += eini_steps_bytes(rank, p.shape, size);
    }
  }
  return EIN_OK;
}

// A part of the partial result goes home: what is complete is stored there, as the tensor is, the
// rest is merged, as it was computed.
static ein_status eini_steps_flush(eini_staged *x, eini_owners *o, int64_t owner) {
  const eini_stmt *s = x->stmt;
  const int rank = o->d->rank, away = owner != x->w.move.place && x->nmemory > 1;
  const ein_dtype type = eini_steps_type(x);
  const ein_dtype sent = x->whole ? x->d->g->tensor[s->out].dtype : type;
  const size_t size = ein_dtype_size(sent);
  const eini_step_box *b = &x->point[x->w.move.point].box[s->noperand];
  const eini_step_box *to = x->whole ? eini_steps_home(x, s->out, owner)
                                     : &x->sum[x->nmemory > 1 ? owner : 0];
  const int fold = x->whole ? EIN_FOLD_NONE : s->fold;
  const int has = eini_steps_mine(x, x->w.move.place), wants = eini_steps_mine(x, owner);
  eini_steps_part p;
  size_t n = 0;
  int64_t dense[EINI_NAMES_MAX];
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1 && x->run != NULL) EINI_TRY(eini_steps_send(x, x->w.move.place, owner, n));
    const char *message = x->message == NULL ? NULL : x->message + n;
    for (int more = eini_steps_next(&x->w, o, &p, 1); more;
         more = eini_steps_next(&x->w, o, &p, 0)) {
      if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
      const size_t bytes = eini_steps_bytes(rank, p.shape, size);
      char *have = has ? eini_steps_at(b, rank, p.lo, ein_dtype_size(type)) : NULL;
      char *want = wants ? eini_steps_at(to, rank, p.lo, size) : NULL;
      eini_dist_dense(rank, p.shape, dense);
      ein_status st = EIN_OK;
      if (!away)
        st = eini_steps_merge(x, fold, rank, p.shape, sent, want, to->stride, type, have,
                              b->stride);
      else if (pass == 0 && has)
        st = eini_steps_merge(x, EIN_FOLD_NONE, rank, p.shape, sent,
                              x->message == NULL ? NULL : x->message + n, dense, type, have,
                              b->stride);
      else if (pass == 1 && wants)
        st = eini_steps_merge(x, fold, rank, p.shape, sent, want, to->stride, sent, message,
                              dense);
      EINI_TRY(eini_steps_goes_on(x, st));
      if (pass == 0) n += bytes;
      else if (message != NULL) message += bytes;
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_part_of(eini_tour *w, eini_owners *o, int64_t owner) {
  eini_staged *x = (eini_staged *)w->user;
  if (w->move.operand < 0) return eini_steps_flush(x, o, owner);
  return x->run == NULL || x->nmemory == 1 ? EIN_OK : eini_steps_fetch(x, o, owner,
                                                                       w->move.operand);
}

// ---- a step of a point ----

// Room for messages of the box in w->from and w->to.
static ein_status eini_steps_message(eini_staged *x, int rank, size_t size) {
  int64_t *shape = x->w.value;  // scratch
  if (x->nmemory == 1 || size == 0) return EIN_OK;
  for (int r = 0; r < rank; r++) shape[r] = x->w.to[r] - x->w.from[r];
  return eini_steps_room(x, &x->message, &x->room, 2 * eini_steps_bytes(rank, shape, size));
}

// A box of its own for w->from and w->to; send: messages of it are for elements of so many bytes.
static ein_status eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, size_t size,
                                   size_t send) {
  int64_t *shape = x->w.value;  // scratch
  for (int r = 0; r < rank; r++) {
    b->lo[r] = x->w.from[r];
    b->hi[r] = x->w.to[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  EINI_TRY(eini_steps_room(x, &b->data, &b->room, eini_steps_bytes(rank, shape, size)));
  return eini_steps_message(x, rank, send);
}

// The box of an operand: in a memory that is shared, or of an input that lies everywhere, that of
// the tensor; else a copy.
static ein_status eini_steps_operand(eini_staged *x, eini_step_point *pt, int64_t step, int k) {
  const eini_stmt *s = x->stmt;
  const int t = s->operand[k];
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  eini_owners *o = &x->w.owners[k];
  const int mine = eini_steps_mine(x, x->w.move.place), again = x->w.again[k];
  if (!eini_tour_due(&x->w, step, k, 0)) return EIN_OK;
  if (again >= 0) {
    if (mine) pt->box[k] = pt->box[again];
    return EIN_OK;
  }
  const int some = eini_tour_box(&x->w, step, k);
  x->w.move.operand = k;
  x->w.move.step = step;
  if (!mine) EINI_TRY(eini_steps_message(x, x->d->g->tensor[t].rank, o->d == NULL ? 0 : size));
  else if (x->nmemory == 1 || o->d == NULL) pt->box[k] = *eini_steps_home(x, t, x->w.move.place);
  else EINI_TRY(eini_steps_dense(x, &pt->box[k], x->d->g->tensor[t].rank, size, size));
  return some && o->d != NULL ? eini_tour_owners(&x->w, o, (int64_t)size, 0) : EIN_OK;
}

// The fold of nothing for all results of some ranges; lo is lost.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_point *pt, int64_t *lo,
                                     const int64_t *hi, const eini_step_box *to) {
  int64_t id;
  for (int i = 0; i < x->stmt->nindex; i++) lo[i] = i < x->stmt->nfree ? hi[i] - lo[i] : 0;
  EINI_TRY(eini_steps_plan(x, lo, pt->box, to->stride, &id));
  return x->run == NULL ? EIN_OK : eini_steps_execute(x, 0, id, pt->in, to->data, pt->param);
}

// Addresses and origins of the block of a step.
static void eini_steps_bind(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  ein_scalar *p = pt->param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_block_origin(s, i)) (p++)->re = (double)pt->lo[i];
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    pt->in[n++] = eini_steps_at(&pt->box[k], t->rank, x->w.from, ein_dtype_size(t->dtype));
  }
}

// The plans of the block in w->from and w->to: it goes to the partial result where there is nothing
// of it yet or each of its elements is computed once; else it is merged into that.
static ein_status eini_steps_block(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank, n = s->noperand;
  const ein_dtype type = eini_steps_type(x);
  const eini_step_box *acc = &pt->box[n];
  const size_t bytes = (size_t)rank * sizeof(int64_t);
  const int all = memcmp(acc->lo, x->w.from, bytes) == 0 && memcmp(acc->hi, x->w.to, bytes) == 0;
  int64_t *len = x->w.lo;
  pt->into = eini_steps_at(acc, rank, x->w.from, ein_dtype_size(type));
  pt->merge = -1;
  if ((pt->fresh && all) || !eini_loops_folds(x->w.n, x->w.n->nstep - 1)) {
    pt->to = pt->into;
  } else {
    if (pt->fresh) {
      (void)eini_tour_box(&x->w, x->w.move.step, n);
      EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, x->w.hi, acc));
    }
    const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
    eini_block_hull(s, &b, -1, x->w.from, x->w.to);
    EINI_TRY(eini_steps_dense(x, &pt->block, rank, ein_dtype_size(type), 0));
    for (int r = 0; r < rank; r++) x->w.value[r] = pt->block.hi[r] - pt->block.lo[r];
    EINI_TRY(eini_steps_merge_plan(x, s->fold, rank, x->w.value, type, acc->stride, type,
                                   pt->block.stride, &pt->merge));
    pt->to = pt->block.data;
  }
  pt->fresh = 0;
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, pt->merge < 0 ? acc->stride : pt->block.stride,
                         &pt->plan);
}

// What a point does before it computes.
static ein_status eini_steps_before(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int n = s->noperand;
  const eini_tensor *out = &x->d->g->tensor[s->out];
  const size_t size = ein_dtype_size(eini_steps_type(x));
  for (int k = 0; k < n; k++) EINI_TRY(eini_steps_operand(x, pt, step, k));
  x->w.move.step = step;
  if (!eini_steps_mine(x, x->w.move.place)) {
    if (!eini_tour_due(&x->w, step, n, 0)) return EIN_OK;
    (void)eini_tour_box(&x->w, step, n);
    return eini_steps_message(x, out->rank, x->whole ? ein_dtype_size(out->dtype) : size);
  }
  if (eini_tour_due(&x->w, step, n, 0)) {
    (void)eini_tour_box(&x->w, step, n);
    EINI_TRY(eini_steps_dense(x, &pt->box[n], out->rank, size,
                              x->whole ? ein_dtype_size(out->dtype) : size));
    pt->fresh = 1;
  }
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  pt->plan = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  eini_steps_bind(x, pt);
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  eini_block_hull(s, &b, -1, x->w.from, x->w.to);
  return eini_steps_block(x, pt);
}

// Worker i computes the blocks of a step of points i, i + width, ..
static void eini_steps_worker(void *arg, int i) {
  eini_staged *x = (eini_staged *)arg;
  for (int64_t q = i; q < x->w.n->grid->npoint; q += x->width) {
    eini_step_point *pt = &x->point[q];
    if (!pt->works || pt->plan < 0) continue;
    pt->st = eini_steps_execute(x, i, pt->plan, pt->in, pt->to, pt->param);
    if (pt->st == EIN_OK && pt->merge >= 0)
      pt->st = eini_steps_merge_run(x, i, x->stmt->fold, pt->merge, pt->into, pt->to);
  }
}
