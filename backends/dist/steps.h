// ================================================================================================
// >>steps  statements under a schedule
// Takes a schedule; runs each statement step by step: all points fetch, compute and, where a
// partial result is complete, send it home. The plans of blocks are made beforehand, by the same
// walk without data. One process drives all places.
// ================================================================================================

typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  size_t room;
} eini_step_box;

typedef struct eini_step_point {
  int works;
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step
  int64_t *lo, *hi;         // ranges of the step
  const void **in;
  ein_scalar *param;
  int64_t plan;
} eini_step_point;

typedef struct eini_staged {
  const ein_dist *d;
  eini_block_plans *plans;
  const ein_schedule *s;
  const ein_run *run;       // NULL: plans are made only
  eini_arena *a;
  char **home;              // tensors at places, all of one size; of a shared memory the same
  char **sum;               // at places, the result of the statement at hand in its own type
  int64_t **stride;         // of tensors at places
  const eini_stmt *stmt;
  int number;
  int64_t *sum_stride, *key;
  eini_step_point *point;
  eini_tour w;
  int64_t tag;
  char *message;
  size_t room;
} eini_staged;

static size_t eini_steps_bytes(int rank, const int64_t *shape, size_t size) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++) n *= eini_max64(shape[r], 1);
  return (size_t)n * size;
}

// At least so many bytes at *data; what was there is lost.
static ein_status eini_steps_room(eini_staged *x, char **data, size_t *room, size_t bytes) {
  if (x->run == NULL || bytes <= *room) return EIN_OK;
  *data = EINI_NEW(x->a, char, bytes);
  *room = bytes;
  return *data == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Adds the words of some numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(eini_staged *x, int64_t id, const void *const *in, char *out,
                                     const ein_scalar *param) {
  void *to[1];
  ein_run run;
  memset(&run, 0, sizeof run);
  to[0] = out;
  run.in = in;
  run.out = to;
  run.param = param;
  return ein_plan_execute(x->d->plans.plan[id], &run);
}

// A box of `right` is merged into one of `left`; fold EIN_FOLD_NONE: left becomes right, whose type
// may be another.
static ein_status eini_steps_merge(eini_staged *x, int fold, int rank, const int64_t *shape,
                                   ein_dtype to, char *left, const int64_t *left_stride,
                                   ein_dtype from, const char *right,
                                   const int64_t *right_stride) {
  const eini_merge_side l = {to, rank, shape, left_stride, NULL, NULL};
  const eini_merge_side r = {from, rank, shape, right_stride, NULL, NULL};
  eini_block_merge m = {fold, 0, from, rank, shape, l, r, l};
  const void *in[2];
  int64_t id, n = eini_steps_key(x, 4, shape, rank);
  x->key[0] = -1 - fold;
  x->key[1] = to;
  x->key[2] = from;
  x->key[3] = rank;
  n = eini_steps_key(x, n, left_stride, rank);
  n = eini_steps_key(x, n, right_stride, rank);
  if (fold == EIN_FOLD_NONE) m.left = r;
  EINI_TRY(eini_block_merge_plan(x->plans, &m, x->key, n, &id));
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  return x->run == NULL ? EIN_OK : eini_steps_execute(x, id, in, left, NULL);
}

// The plan of a block of so many values of each index, the operands with these strides.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  int64_t *id) {
  const eini_stmt *s = x->stmt;
  const int64_t **stride = EINI_NEW(x->a, const int64_t *, s->noperand);
  int64_t *cut = EINI_NEW(x->a, int64_t, s->nindex), n;
  eini_dist_job job;
  if (stride == NULL || cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) cut[i] = 2;  // all have an origin
  memset(&job, 0, sizeof job);
  x->key[0] = x->number;
  n = eini_steps_key(x, 1, len, s->nindex);
  for (int o = 0; o < s->noperand; o++) {
    stride[o] = box[o].stride;
    n = eini_steps_key(x, n, stride[o], x->d->g->tensor[s->operand[o]].rank);
  }
  job.g = x->d->g;
  job.s = s;
  job.block = eini_block_of(NULL, len, NULL);
  job.cut = cut;
  job.stride = stride;
  job.dtype = ein_dtype_compute(s->type);
  return eini_dist_plan(x->plans, &job, x->key, n, id);
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

static char *eini_steps_at(char *data, int rank, const int64_t *at, const int64_t *low,
                           const int64_t *stride, size_t size) {
  int64_t n = 0;
  for (int r = 0; r < rank; r++) n += (at[r] - (low == NULL ? 0 : low[r])) * stride[r];
  return data + n * (int64_t)size;
}

// Sends `bytes` at x->message, and receives them there.
static ein_status eini_steps_send(eini_staged *x, int64_t from, int64_t to, size_t bytes) {
  const ein_fabric *f = &x->d->fabric;
  ein_ticket ticket;
  EINI_TRY(f->send_fn(f->user, (int)from, (int)to, x->tag, x->message, bytes, &ticket));
  char *into = x->message + bytes;
  ein_ticket there;
  EINI_TRY(f->recv_fn(f->user, (int)to, (int)from, x->tag++, into, bytes, &there));
  if (ticket != 0) EINI_TRY(f->wait_fn(f->user, ticket));
  return there != 0 ? f->wait_fn(f->user, there) : EIN_OK;
}

// What an owner has of an operand's box goes to the point, through a message where it is another
// place.
static ein_status eini_steps_fetch(eini_staged *x, eini_owners *o, int64_t owner, int k) {
  const int t = x->stmt->operand[k], rank = o->d->rank;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  eini_step_box *b = &x->point[x->w.move.point].box[k];
  char *from = x->home[(int64_t)t * x->d->fabric.places + owner];
  const int away = owner != x->w.move.place;
  eini_steps_part p;
  size_t n = 0;
  int64_t dense[EINI_NAMES_MAX];
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1) EINI_TRY(eini_steps_send(x, owner, x->w.move.place, n));
    size_t at = n;
    for (int more = eini_steps_next(&x->w, o, &p, 1); more;
         more = eini_steps_next(&x->w, o, &p, 0)) {
      const size_t bytes = eini_steps_bytes(rank, p.shape, size);
      if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
      char *have = eini_steps_at(from, rank, p.lo, NULL, x->stride[t], size);
      char *want = eini_steps_at(b->data, rank, p.lo, b->lo, b->stride, size);
      eini_dist_dense(rank, p.shape, dense);
      if (!away) eini_dist_copy(rank, p.shape, want, b->stride, have, x->stride[t], size);
      else if (pass == 0) eini_dist_copy(rank, p.shape, x->message + n, dense, have, x->stride[t],
                                         size);
      else eini_dist_copy(rank, p.shape, want, b->stride, x->message + at, dense, size);
      if (pass == 0) n += bytes;
      else at += bytes;
    }
  }
  return EIN_OK;
}

// A part of the partial result goes home and is merged there.
static ein_status eini_steps_flush(eini_staged *x, eini_owners *o, int64_t owner) {
  const eini_stmt *s = x->stmt;
  const int rank = o->d->rank, shared = x->d->fabric.shared;
  const ein_dtype type = ein_dtype_compute(s->type);
  const size_t size = ein_dtype_size(type);
  eini_step_box *b = &x->point[x->w.move.point].box[s->noperand];
  const int away = owner != x->w.move.place && !shared;
  eini_steps_part p;
  int64_t dense[EINI_NAMES_MAX];
  size_t n = 0, at = 0;
  for (int more = eini_steps_next(&x->w, o, &p, 1); more && away && x->run != NULL;
       more = eini_steps_next(&x->w, o, &p, 0)) {
    if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
    eini_dist_dense(rank, p.shape, dense);
    eini_dist_copy(rank, p.shape, x->message + n, dense,
                   eini_steps_at(b->data, rank, p.lo, b->lo, b->stride, size), b->stride, size);
    n += eini_steps_bytes(rank, p.shape, size);
  }
  if (away && x->run != NULL) EINI_TRY(eini_steps_send(x, x->w.move.place, owner, n));
  for (int more = eini_steps_next(&x->w, o, &p, 1); more;
       more = eini_steps_next(&x->w, o, &p, 0)) {
    if (eini_zrange_empty(rank, p.lo, p.hi)) continue;
    eini_dist_dense(rank, p.shape, dense);
    const int sent = x->run != NULL && away;
    char *to = x->run == NULL ? NULL :
               eini_steps_at(x->sum[shared ? 0 : owner], rank, p.lo, NULL, x->sum_stride, size);
    const char *have = x->run == NULL ? NULL : sent ? x->message + n + at :
                       eini_steps_at(b->data, rank, p.lo, b->lo, b->stride, size);
    EINI_TRY(eini_steps_merge(x, s->fold, rank, p.shape, type, to, x->sum_stride, type, have,
                              away ? dense : b->stride));
    at += eini_steps_bytes(rank, p.shape, size);
  }
  return EIN_OK;
}

static ein_status eini_steps_part_of(eini_tour *w, eini_owners *o, int64_t owner) {
  eini_staged *x = (eini_staged *)w->user;
  if (w->move.operand < 0) return eini_steps_flush(x, o, owner);
  return x->run == NULL || x->d->fabric.shared ? EIN_OK
                                               : eini_steps_fetch(x, o, owner, w->move.operand);
}

// ---- a step of a point ----

static ein_status eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, size_t size) {
  int64_t *shape = x->w.value;  // scratch
  for (int r = 0; r < rank; r++) {
    b->lo[r] = x->w.from[r];
    b->hi[r] = x->w.to[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  const size_t bytes = eini_steps_bytes(rank, shape, size);
  EINI_TRY(eini_steps_room(x, &b->data, &b->room, bytes));
  return x->d->fabric.shared ? EIN_OK : eini_steps_room(x, &x->message, &x->room, 2 * bytes);
}

// The box of an operand: in a memory that is shared, or of an input that lies everywhere, all of
// the tensor; else a copy.
static ein_status eini_steps_operand(eini_staged *x, eini_step_point *pt, int64_t step, int k) {
  const eini_stmt *s = x->stmt;
  const int t = s->operand[k], rank = x->d->g->tensor[t].rank;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  eini_step_box *b = &pt->box[k];
  eini_owners *o = &x->w.owners[k];
  if (!eini_tour_due(&x->w, step, k, 0)) return EIN_OK;
  for (int j = 0; j < k && x->w.again[k]; j++) {
    if (s->operand[j] != t || !eini_map_equal(&s->proj[j], &s->proj[k]) ||
        eini_loops_depth(x->w.n, j) != eini_loops_depth(x->w.n, k))
      continue;
    *b = pt->box[j];
    return EIN_OK;
  }
  const int some = eini_tour_box(&x->w, step, k);
  x->w.move.operand = k;
  x->w.move.step = step;
  if (x->d->fabric.shared || o->d == NULL) {
    for (int r = 0; r < rank; r++) b->lo[r] = 0, b->stride[r] = x->stride[t][r];
    b->data = x->home[(int64_t)t * x->d->fabric.places + x->w.move.place];
  } else {
    EINI_TRY(eini_steps_dense(x, b, rank, size));
  }
  return some && o->d != NULL ? eini_tour_owners(&x->w, o, (int64_t)size, 0) : EIN_OK;
}

// The fold of nothing for all results of some ranges.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_point *pt, int64_t *lo,
                                     const int64_t *hi, char *out) {
  int64_t id;
  if (x->stmt->fold == EIN_FOLD_NONE) return EIN_OK;
  for (int i = 0; i < x->stmt->nindex; i++) lo[i] = i < x->stmt->nfree ? hi[i] - lo[i] : 0;
  EINI_TRY(eini_steps_plan(x, lo, pt->box, &id));
  return x->run == NULL ? EIN_OK : eini_steps_execute(x, id, pt->in, out, pt->param);
}

// Addresses and origins of the block of a step.
static void eini_steps_bind(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  ein_scalar *p = pt->param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++) {
    if (!eini_block_origin(s, i)) continue;
    p->re = (double)pt->lo[i];
    p++->im = 0;
  }
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    pt->in[n++] = pt->box[k].data == NULL ? NULL :
                  eini_steps_at(pt->box[k].data, t->rank, x->w.from, pt->box[k].lo,
                                pt->box[k].stride, ein_dtype_size(t->dtype));
  }
}

// What a point does before it computes.
static ein_status eini_steps_before(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank, n = s->noperand;
  const size_t size = ein_dtype_size(ein_dtype_compute(s->type));
  for (int k = 0; k < n; k++) EINI_TRY(eini_steps_operand(x, pt, step, k));
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  eini_steps_bind(x, pt);
  if (eini_tour_due(&x->w, step, n, 0)) {
    (void)eini_tour_box(&x->w, step, n);
    EINI_TRY(eini_steps_dense(x, &pt->box[n], rank, size));
    EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, x->w.hi, pt->box[n].data));
  }
  pt->plan = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  eini_block_hull(s, &b, -1, x->w.from, x->w.to);
  EINI_TRY(eini_steps_dense(x, &pt->block, rank, size));
  for (int i = 0; i < s->nindex; i++) x->w.lo[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, x->w.lo, pt->box, &pt->plan);
}

// And after that.
static ein_status eini_steps_after(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int rank = x->d->g->tensor[s->out].rank, n = s->noperand;
  const ein_dtype type = ein_dtype_compute(s->type);
  const eini_step_box *acc = &pt->box[n];
  int64_t *shape = x->w.from;
  for (int r = 0; r < rank; r++) shape[r] = pt->block.hi[r] - pt->block.lo[r];
  if (pt->plan >= 0)
    EINI_TRY(eini_steps_merge(x, s->fold, rank, shape, type, x->run == NULL ? NULL :
                              eini_steps_at(acc->data, rank, pt->block.lo, acc->lo, acc->stride,
                                            ein_dtype_size(type)),
                              acc->stride, type, pt->block.data, pt->block.stride));
  if (!eini_tour_due(&x->w, step, n, 1) || !eini_tour_box(&x->w, step, n)) return EIN_OK;
  x->w.move.operand = -1;
  x->w.move.step = step;
  return eini_tour_owners(&x->w, &x->w.owners[n], eini_tour_wide(&x->w), 1);
}

static void eini_steps_task(void *arg, int i) {
  eini_staged *x = (eini_staged *)arg;
  eini_step_point *pt = &x->point[i];
  if (!pt->works || pt->plan < 0) return;
  const ein_status st = eini_steps_execute(x, pt->plan, pt->in, pt->block.data, pt->param);
  if (st != EIN_OK) pt->plan = -1 - (int64_t)st;
}

// ---- a statement ----

static ein_status eini_steps_box_new(eini_staged *x, eini_step_box *b, int rank) {
  b->lo = EINI_NEW(x->a, int64_t, rank);
  b->hi = EINI_NEW(x->a, int64_t, rank);
  b->stride = EINI_NEW(x->a, int64_t, rank);
  return b->lo == NULL || b->hi == NULL || b->stride == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static ein_status eini_steps_point_new(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const ein_graph *g = x->d->g;
  memset(pt, 0, sizeof *pt);
  pt->works = eini_tour_works(&x->w);
  if (!pt->works) return EIN_OK;
  pt->box = EINI_NEW(x->a, eini_step_box, s->noperand + 1);
  pt->lo = EINI_NEW(x->a, int64_t, s->nindex);
  pt->hi = EINI_NEW(x->a, int64_t, s->nindex);
  pt->in = EINI_NEW(x->a, const void *, s->noperand);
  pt->param = EINI_NEW(x->a, ein_scalar, g->nparam + s->nindex);
  if (pt->box == NULL || pt->lo == NULL || pt->hi == NULL || pt->in == NULL || pt->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < g->nparam; k++) {
    const int given = x->run != NULL && x->run->param != NULL && x->run->param[k].set;
    pt->param[k] = given ? x->run->param[k] : g->param[k].value;
  }
  for (int i = 0; i < s->nindex; i++) pt->param[g->nparam + i].set = 1;
  EINI_TRY(eini_steps_box_new(x, &pt->block, g->tensor[s->out].rank));
  for (int k = 0; k <= s->noperand; k++)
    EINI_TRY(eini_steps_box_new(x, &pt->box[k],
                                g->tensor[k < s->noperand ? s->operand[k] : s->out].rank));
  return EIN_OK;
}

// The point at hand is number i; 0: it has no task.
static int eini_steps_goto(eini_staged *x, int64_t i) {
  x->w.move.point = i;
  x->w.move.place = eini_grid_place(x->s->grid, i);
  eini_grid_coords(x->s->grid, i, x->w.here);
  return x->point[i].works;
}

static ein_status eini_steps_walk(eini_staged *x) {
  const int n = (int)x->s->grid->npoint;
  const ein_executor *e = &x->d->executor;
  for (int64_t step = 0; step < x->w.n->steps; step++) {
    memset(x->w.sent, 0, (size_t)x->d->fabric.places * sizeof *x->w.sent);
    for (int i = 0; i < n; i++)
      if (eini_steps_goto(x, i)) EINI_TRY(eini_steps_before(x, &x->point[i], step));
    if (x->run != NULL && x->d->fabric.threads && e->parallel_for != NULL)
      e->parallel_for(n, eini_steps_task, x, e->user);
    else for (int i = 0; x->run != NULL && i < n; i++) eini_steps_task(x, i);
    for (int i = 0; i < n; i++) {
      if (!eini_steps_goto(x, i)) continue;
      if (x->point[i].plan < -1) return (ein_status)(-1 - x->point[i].plan);
      EINI_TRY(eini_steps_after(x, &x->point[i], step));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_begin(eini_staged *x, int k, ein_schedule_info *info) {
  const ein_graph *g = x->d->g;
  const eini_stmt *s = x->stmt = &g->stmt[k];
  const eini_tensor *out = &g->tensor[s->out];
  int64_t key = 8 + 3 * (int64_t)out->rank + s->nindex;
  memset(&x->w, 0, sizeof x->w);
  memset(info, 0, sizeof *info);
  x->number = k;
  x->w.w = x->s;
  x->w.n = &x->s->nest[k];
  x->w.info = info;
  x->w.move.stmt = k;
  x->w.part_fn = eini_steps_part_of;
  x->w.user = x;
  EINI_TRY(eini_tour_init(x->a, &x->w));
  for (int o = 0; o < s->noperand; o++) key += g->tensor[s->operand[o]].rank;
  x->key = EINI_NEW(x->a, int64_t, key);
  x->sum_stride = EINI_NEW(x->a, int64_t, out->rank);
  x->point = EINI_NEW(x->a, eini_step_point, x->s->grid->npoint);
  if (x->key == NULL || x->sum_stride == NULL || x->point == NULL) return EIN_ERR_NO_MEMORY;
  eini_dist_dense(out->rank, out->shape, x->sum_stride);
  for (int64_t i = 0; i < x->s->grid->npoint; i++) {
    (void)eini_steps_goto(x, i);
    EINI_TRY(eini_steps_point_new(x, &x->point[i]));
    info->tasks += x->point[i].works ? x->w.n->steps : 0;
  }
  return EIN_OK;
}

static ein_status eini_steps_stmt(eini_staged *x, int k, ein_schedule_info *info) {
  static const double nothing[2] = {0, 0};
  EINI_TRY(eini_steps_begin(x, k, info));
  const ein_graph *g = x->d->g;
  const eini_stmt *s = x->stmt;
  const eini_tensor *out = &g->tensor[s->out];
  const ein_dtype type = ein_dtype_compute(s->type);
  const int shared = x->d->fabric.shared, places = x->d->fabric.places;
  for (int o = 0; o < s->noperand; o++) {  // as those of a block; nothing is read
    memcpy(x->point[0].box[o].stride, x->stride[s->operand[o]],
           (size_t)g->tensor[s->operand[o]].rank * sizeof(int64_t));
    x->point[0].in[o] = nothing;
  }
  for (int q = 0; q < (shared ? 1 : places); q++) {
    const size_t bytes = eini_steps_bytes(out->rank, out->shape, ein_dtype_size(type));
    if (x->run != NULL && (x->sum[q] = EINI_NEW(x->a, char, bytes)) == NULL)
      return EIN_ERR_NO_MEMORY;
    for (int i = 0; i < s->nindex; i++) x->w.lo[i] = 0, x->w.hi[i] = s->index[i].extent;
    EINI_TRY(eini_steps_nothing(x, &x->point[0], x->w.lo, x->w.hi, x->sum[q]));
  }
  EINI_TRY(eini_steps_walk(x));
  for (int q = 0; q < (shared ? 1 : places); q++)
    EINI_TRY(eini_steps_merge(x, EIN_FOLD_NONE, out->rank, out->shape, out->dtype,
                              x->home[(int64_t)s->out * places + q], x->stride[s->out], type,
                              x->sum[q], x->sum_stride));
  return EIN_OK;
}

// ---- all of a graph ----

// A box of a tensor between a place and the memory of the caller.
typedef struct eini_steps_share {
  int rank, home;          // home: from the place to the caller
  size_t size;
  char *place, *whole;
  const int64_t *place_stride, *whole_stride;
} eini_steps_share;

static ein_status eini_steps_shared(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_share *c = (const eini_steps_share *)user;
  int64_t shape[EINI_NAMES_MAX];
  for (int r = 0; r < c->rank; r++) shape[r] = hi[r] - lo[r];
  char *p = eini_steps_at(c->place, c->rank, lo, NULL, c->place_stride, c->size);
  char *w = eini_steps_at(c->whole, c->rank, lo, NULL, c->whole_stride, c->size);
  if (c->home) eini_dist_copy(c->rank, shape, w, c->whole_stride, p, c->place_stride, c->size);
  else eini_dist_copy(c->rank, shape, p, c->place_stride, w, c->whole_stride, c->size);
  return EIN_OK;
}

// The caller's memory of a tensor; NULL: it has none.
static char *eini_steps_whole(const eini_staged *x, int t) {
  const eini_dist_tensor *e = &x->d->tensor[t];
  union { const void *c; char *v; } u;  // inputs are only read
  u.v = NULL;
  if (x->run == NULL || e->port < 0) return NULL;
  if (x->d->g->tensor[t].role == EIN_ROLE_INPUT) u.c = x->run->in[e->port];
  else u.v = (char *)x->run->out[e->port];
  return u.v;
}

// Memory of a tensor at places, and what places hold of an input.
static ein_status eini_steps_tensor(eini_staged *x, int t, int home) {
  const eini_tensor *e = &x->d->g->tensor[t];
  const int places = x->d->fabric.places, input = e->role == EIN_ROLE_INPUT;
  const size_t size = ein_dtype_size(e->dtype);
  const int own = input ? x->d->fabric.shared || x->s->place[t] == NULL
                        : x->d->fabric.shared && x->d->tensor[t].port >= 0;
  eini_steps_share c = {e->rank, home, size, NULL, eini_steps_whole(x, t), x->stride[t],
                        x->d->tensor[t].stride};
  if (!home && own) memcpy(x->stride[t], x->d->tensor[t].stride, (size_t)e->rank * sizeof(int64_t));
  else if (!home) eini_dist_dense(e->rank, e->shape, x->stride[t]);
  for (int q = 0; q < places && x->run != NULL; q++) {
    char **at = &x->home[(int64_t)t * places + q];
    if (!home && own) *at = c.whole;
    else if (!home) *at = q > 0 && x->d->fabric.shared ? at[-1] :
                          EINI_NEW(x->a, char, eini_steps_bytes(e->rank, e->shape, size));
    if (*at == NULL) return EIN_ERR_NO_MEMORY;
    c.place = *at;
    if (!own && (home || input))
      EINI_TRY(eini_distribution_boxes(x->a, x->s->place[t], e->shape, q, eini_steps_shared, &c));
  }
  return EIN_OK;
}

// Plans (run NULL) or runs all statements.
static ein_status eini_steps_all(const ein_dist *d, eini_block_plans *plans, const ein_run *run,
                                 ein_dist_stats *stats) {
  const ein_graph *g = d->g;
  eini_arena arena;
  eini_staged x;
  ein_status st = EIN_OK;
  memset(&x, 0, sizeof x);
  eini_arena_init(&arena, &d->al);
  x.d = d;
  x.plans = plans;
  x.s = d->desc.schedule;
  x.run = run;
  x.a = &arena;
  x.home = EINI_NEW(&arena, char *, g->ntensor * d->fabric.places);
  x.sum = EINI_NEW(&arena, char *, d->fabric.places);
  x.stride = EINI_NEW(&arena, int64_t *, g->ntensor);
  if (x.home == NULL || x.sum == NULL || x.stride == NULL) st = EIN_ERR_NO_MEMORY;
  for (int t = 0; t < g->ntensor && st == EIN_OK; t++) {
    x.stride[t] = EINI_NEW(&arena, int64_t, g->tensor[t].rank);
    st = x.stride[t] == NULL ? EIN_ERR_NO_MEMORY : eini_steps_tensor(&x, t, 0);
  }
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) {
    ein_schedule_info info;
    st = eini_steps_stmt(&x, k, &info);
    if (stats == NULL) continue;
    stats->tasks += info.tasks;
    stats->messages += info.messages;
    stats->bytes += info.bytes;
    if (stats->stmt_bytes != NULL && k < stats->nstmt) stats->stmt_bytes[k] += info.bytes;
  }
  for (int t = 0; t < g->ntensor && st == EIN_OK && run != NULL && !d->fabric.shared; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) st = eini_steps_tensor(&x, t, 1);
  eini_arena_free(&arena);
  return st;
}

// Why a statement cannot be run so; NULL: it can.
static const char *eini_steps_reason(const ein_schedule *sc, const eini_stmt *s) {
  const eini_tensor *t = &sc->g->tensor[s->out];
  const ein_distribution *d = sc->place[s->out];
  int64_t coef;
  if (d == NULL || t->nstmt != 1) return "nothing says where its result lies: place it";
  for (int m = 0; m < d->grid->ndim; m++)
    if (d->held[m].kind == EINI_HELD_EVERY && d->grid->dim[m].extent > 1)
      return "its result is replicated";
  if (eini_fold_carries(s->fold)) return "its fold has states of several scalars";
  if (sc->g->ordered) return "it is deterministic";
  if (t->rank > EINI_NAMES_MAX) return "its result has too many axes";
  int plain = s->rest == EIN_REST_ERROR && t->rank == s->nfree;
  for (int r = 0; r < t->rank && plain; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    plain = i >= 0 && coef == 1 && s->out_map.offset[r] == 0 && s->index[i].extent == t->shape[r];
  }
  return plain ? NULL : "it does not write each element of its result by an index of its own";
}

static ein_status eini_steps_prepare(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  ein_dist_stats made;
  memset(&made, 0, sizeof made);
  if (s->g != d->g) return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is of another "
                                                                  "graph");
  if (s->grid == NULL || s->grid->places != d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is not for the fabric's places");
  if (d->fabric.count < d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "one process has to drive all places");
  for (int k = 0; k < d->nstmt; k++) {
    const char *why = eini_steps_reason(s, &d->g->stmt[k]);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.places);
  if (made.stmt_bytes == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  d->lookup = &d->plans;
  EINI_TRY(eini_steps_all(d, d->lookup, NULL, &made));
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
}
