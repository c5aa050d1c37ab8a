// ================================================================================================
// >>steps  statements under a schedule
// Takes a schedule; runs each statement step by step: all points fetch, compute and, where a
// partial result is complete, send it home. Plans are made beforehand, by the same walk without
// data.
// ================================================================================================

// Of several processes each walks all points in the same order, computes those of its places, and
// takes part in the messages of these one by one: the process that stands at the least message
// waits for none that comes later, so nobody waits in vain.

// A box in some memory: of a tensor, or of results by the free indices of their statement, dense:
// values, or states as eini_states_at has them.
typedef struct eini_step_box {
  int64_t *lo, *hi, *stride;
  char *data;
  size_t room;
} eini_step_box;

// Some iterations of a parallel loop.
typedef struct eini_step_share {
  int64_t plan, *lo, *hi;
  const void **in;
  ein_scalar *param;
  char *to;
  ein_status st;
} eini_step_share;

#define EINI_SHARES_MAX 16  // of a block, whatever the number of threads: it has the same bits

typedef struct eini_step_point {
  int works, fresh;         // fresh: nothing is in the partial result yet
  eini_step_box *box;       // of each operand, what was fetched, and of the partial result
  eini_step_box block;      // the result of a step that is merged into it
  int64_t *lo, *hi;         // ranges of the step
  const void **in;
  ein_scalar *param;
  int64_t plan, merge;      // of the step; -1: nothing is computed, or merged
  char *to;                 // where the plan writes: the block, merged into the partial result, or
  int apart;                //   not apart, that itself
  int nshare;               // 0: the block is computed at once
  eini_step_share *share;
  ein_status st;
} eini_step_point;

// The most that boxes of a statement take, found when its plans were made.
typedef struct eini_steps_rooms {
  size_t *box;              // per point: of each operand, of the partial result, and of a block
  size_t message, spare;
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
  eini_step_box *sum;       // in memories: partial results of the statement, of computed type
  char *work;               // of plans, for each worker
  int width;
  const eini_stmt *stmt;
  int number, whole;        // whole: what goes home is complete
  eini_folder states;
  const eini_folder *folder;  // states, where results are: folds cut that carry some; else NULL
  size_t wide;              // bytes of what is computed for a result
  int64_t *key, *cut;
  const int64_t **stride;
  eini_step_point *point;
  eini_tour w;
  ein_schedule_info info;   // of w; a run's figures are its stats
  ein_dist_stats *stats;
  int64_t tag, step;
  char *message, *spare;    // spare: states that are merged
  size_t room, spare_room;
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

static double eini_steps_now(const ein_dist *d) {
  return d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
}

// Levels of events beside blocks, -1.
enum { EINI_STEPS_SENDS = -3, EINI_STEPS_FETCHES = -2 };

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
  if (x->run == NULL) return r->message = x->room, r->spare = x->spare_room, EIN_OK;
  EINI_TRY(eini_steps_room(x, &x->spare, &x->spare_room, r->spare));
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

// Where statement s writes the values `lo` of its free indices in a box of its tensor (NULL: it has
// no memory), and the strides by free index.
static char *eini_steps_written(const eini_stmt *s, const eini_step_box *b, const int64_t *lo,
                                size_t size, int64_t *stride) {
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
  return b->data == NULL ? NULL : b->data + n * (int64_t)size;
}

static int64_t eini_steps_volume(int rank, const int64_t *lo, const int64_t *hi) {
  return (int64_t)eini_box_volume(rank, lo, hi);
}

// Adds numbers to the key; gives its length.
static int64_t eini_steps_key(eini_staged *x, int64_t n, const int64_t *word, int count) {
  for (int i = 0; i < count; i++) x->key[n++] = word[i];
  return n;
}

static ein_status eini_steps_execute(const eini_staged *x, int worker, int64_t id,
                                     const void *const *in, void *const *out,
                                     const ein_scalar *param) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
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
  void *out[1];
  in[0] = fold == EIN_FOLD_NONE ? right : left;
  in[1] = right;
  out[0] = left;
  return eini_steps_execute(x, worker, id, in, out, NULL);
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
static ein_status eini_steps_store(eini_staged *x, const int64_t *shape, char *to,
                                   const int64_t *stride, const eini_step_box *box,
                                   const int64_t *lo) {
  const ein_dtype type = eini_steps_type(x), stored = x->d->g->tensor[x->stmt->out].dtype;
  const int rank = x->stmt->nfree;
  void *a[4], *from[4];
  int64_t at = 0;
  if (x->folder == NULL)
    return eini_steps_merge(x, EIN_FOLD_NONE, rank, shape, stored, to, stride, type,
                            eini_steps_at(box, rank, lo, x->wide), box->stride);
  if (x->run == NULL) return EIN_OK;
  eini_states_at(x->folder, eini_steps_volume(rank, box->lo, box->hi), box->data, a);
  for (int r = 0; r < rank; r++) at += (lo[r] - box->lo[r]) * box->stride[r];
  eini_states_from(x->folder, a, at, from);
  eini_states_finish(x->folder, rank, shape, from, box->stride, stored, to, stride);
  return EIN_OK;
}

// The plan of a block of so many values of each index, with these strides of the operands and the
// result.
static ein_status eini_steps_plan(eini_staged *x, const int64_t *len, const eini_step_box *box,
                                  const int64_t *out, int64_t *id) {
  const eini_stmt *s = x->stmt;
  eini_dist_job job;
  x->key[0] = x->number;
  int64_t n = eini_steps_key(x, 1, len, s->nindex);
  n = eini_steps_key(x, n, out, s->nfree);
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
  job.by_index = 2;
  job.folder = x->folder;
  job.dtype = eini_steps_type(x);
  return eini_steps_leaf(x, &job, n, id);
}

// ---- parts of boxes ----

// Copies what of an owned box writes between `from` and `to`, and gives how many elements that are.
// dst NULL: counts them; strides by free index, NULL: one element behind another.
static int64_t eini_steps_copy(const eini_owners *o, const eini_owned *p, const int64_t *from,
                               const int64_t *to, char *dst, const int64_t *dst_stride,
                               const char *src, const int64_t *src_stride, size_t size) {
  const int n = o->s->nfree;
  const eini_map *m = &o->s->out_map;
  int64_t at[EINI_NAMES_MAX], dense[EINI_NAMES_MAX], count = 0;
  const int64_t volume = eini_steps_volume(n, p->lo, p->hi);
  eini_dist_dense(n, p->shape, dense);
  if (!o->several && dst != NULL && volume > 0)
    eini_dist_copy(n, p->shape, dst, dst_stride == NULL ? dense : dst_stride, src,
                   src_stride == NULL ? dense : src_stride, size);
  if (!o->several || volume == 0) return volume;
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
    for (i = 0; i < n && dst != NULL; i++) {
      a += dst_stride == NULL ? 0 : (at[i] - p->lo[i]) * dst_stride[i];
      b += src_stride == NULL ? 0 : (at[i] - p->lo[i]) * src_stride[i];
    }
    if (dst_stride == NULL) a = count;
    if (src_stride == NULL) b = count;
    const int64_t length = eini_max64(hi - lo, 0);
    if (dst != NULL && length > 0)
      eini_dist_copy(1, &length, dst + a * (int64_t)size,
                     dst_stride == NULL ? &one : &dst_stride[n - 1], src + b * (int64_t)size,
                     src_stride == NULL ? &one : &src_stride[n - 1], size);
    count += length;
    for (i = n - 2; i >= 0 && ++at[i] == p->hi[i]; i--) at[i] = p->lo[i];
  }
  return count;
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
  const int t = x->stmt->operand[k];
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box *b = &x->point[x->w.move.point].box[k], *from = eini_steps_home(x, t, owner);
  const int away = owner != x->w.move.place;
  const int has = eini_steps_mine(x, owner), wants = eini_steps_mine(x, x->w.move.place);
  int64_t home[EINI_NAMES_MAX], box[EINI_NAMES_MAX];
  eini_owned p;
  size_t n = 0;
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1) EINI_TRY(eini_steps_send(x, owner, x->w.move.place, n));
    const char *message = x->message + n;
    for (int more = eini_owners_next(o, NULL, NULL, &p, 1); more;
         more = eini_owners_next(o, NULL, NULL, &p, 0)) {
      char *have = has ? eini_steps_written(o->s, from, p.lo, size, home) : NULL;
      char *want = wants ? eini_steps_written(o->s, b, p.lo, size, box) : NULL;
      const int64_t *lo = x->w.from, *hi = x->w.to;
      int64_t count;
      if (!away) count = eini_steps_copy(o, &p, lo, hi, want, box, have, home, size);
      else if (pass == 0)
        count = eini_steps_copy(o, &p, lo, hi, has ? x->message + n : NULL, NULL, have, home, size);
      else count = eini_steps_copy(o, &p, lo, hi, want, box, message, NULL, size);
      if (pass == 0) n += (size_t)count * size;
      else message += (size_t)count * size;
    }
  }
  return EIN_OK;
}

// What a box of a partial result becomes at home, a memory of this process: it is stored, or merged
// into what is there. message: it was received; else it is that of the point at hand.
static ein_status eini_steps_arrives(eini_staged *x, int64_t owner, const eini_owned *p,
                                     const char *message) {
  const eini_stmt *s = x->stmt;
  const eini_tensor *t = &x->d->g->tensor[s->out];
  const int rank = s->nfree, q = x->nmemory > 1 ? (int)owner : 0;
  const eini_step_box *acc = &x->point[x->w.move.point].box[s->noperand], *sum = &x->sum[q];
  const size_t size = ein_dtype_size(t->dtype);
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t dense[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  eini_dist_dense(rank, p->shape, dense);
  if (x->whole) {
    char *to = eini_steps_written(s, eini_steps_home(x, s->out, owner), p->lo, size, stride);
    if (message == NULL) return eini_steps_store(x, p->shape, to, stride, acc, p->lo);
    return eini_dist_copy(rank, p->shape, to, stride, message, dense, size), EIN_OK;
  }
  if (x->folder == NULL) {
    const ein_dtype type = eini_steps_type(x);
    return eini_steps_merge(x, s->fold, rank, p->shape, type,
                            eini_steps_at(sum, rank, p->lo, x->wide), sum->stride, type,
                            message != NULL ? message : eini_steps_at(acc, rank, p->lo, x->wide),
                            message != NULL ? dense : acc->stride);
  }
  EINI_TRY(eini_steps_room(x, &x->spare, &x->spare_room, (size_t)n * x->wide));
  if (x->run == NULL) return EIN_OK;
  if (message != NULL) memcpy(x->spare, message, (size_t)n * x->wide);  // aligned
  else eini_steps_pack(x->folder, rank, p->shape, acc, p->lo, n, x->spare);
  eini_steps_states(x->folder, rank, p->shape, sum, p->lo, n, x->spare);
  return EIN_OK;
}

// A box of the point's partial result into a message.
static ein_status eini_steps_leaves(eini_staged *x, const eini_owned *p, char *message) {
  const int rank = x->stmt->nfree;
  const eini_step_box *acc = &x->point[x->w.move.point].box[x->stmt->noperand];
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t dense[EINI_NAMES_MAX];
  eini_dist_dense(rank, p->shape, dense);
  if (x->whole) return eini_steps_store(x, p->shape, message, dense, acc, p->lo);
  if (x->run == NULL) return EIN_OK;
  if (x->folder != NULL) eini_steps_pack(x->folder, rank, p->shape, acc, p->lo, n, message);
  else eini_dist_copy(rank, p->shape, message, dense, eini_steps_at(acc, rank, p->lo, x->wide),
                      acc->stride, x->wide);
  return EIN_OK;
}

// A part of the partial result goes home: what is complete is stored there, as the tensor is, the
// rest is merged, as it was computed.
static ein_status eini_steps_flush(eini_staged *x, eini_owners *o, int64_t owner) {
  const int rank = x->stmt->nfree, away = owner != x->w.move.place && x->nmemory > 1;
  const size_t size = x->whole ? ein_dtype_size(x->d->g->tensor[x->stmt->out].dtype) : x->wide;
  const int has = eini_steps_mine(x, x->w.move.place), wants = eini_steps_mine(x, owner);
  eini_owned p;
  size_t n = 0;
  if (x->nmemory == 1 && o->copy > 0) return EIN_OK;  // they share it
  if (!has && !wants) return x->tag += away, EIN_OK;
  for (int pass = 0; pass < 1 + away; pass++) {
    if (pass == 1 && x->run != NULL) EINI_TRY(eini_steps_send(x, x->w.move.place, owner, n));
    static const char none[1] = {0};  // where none is sent
    const char *message = x->message == NULL ? none : x->message + n;
    for (int more = eini_owners_next(o, x->w.lo, x->w.hi, &p, 1); more;
         more = eini_owners_next(o, x->w.lo, x->w.hi, &p, 0)) {
      const int64_t count = eini_steps_volume(rank, p.lo, p.hi);
      ein_status st = EIN_OK;
      if (count == 0) continue;
      if (!away) st = eini_steps_arrives(x, owner, &p, NULL);
      else if (pass == 0 && has)
        st = eini_steps_leaves(x, &p, x->run == NULL ? NULL : x->message + n);
      else if (pass == 1 && wants && (x->run != NULL || !x->whole))
        st = eini_steps_arrives(x, owner, &p, message);
      EINI_TRY(eini_steps_goes_on(x, st));
      if (pass == 0) n += (size_t)count * size;
      else if (away && x->run != NULL) message += (size_t)count * size;
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

// Room for messages of a box.
static ein_status eini_steps_message(eini_staged *x, int rank, const int64_t *lo,
                                     const int64_t *hi, size_t size) {
  if (x->nmemory == 1 || size == 0) return EIN_OK;
  const size_t n = (size_t)eini_max64(eini_steps_volume(rank, lo, hi), 1);
  return eini_steps_room(x, &x->message, &x->room, 2 * n * size);
}

// A box of its own; send: messages of it are for elements of so many bytes.
static ein_status eini_steps_dense(eini_staged *x, eini_step_box *b, int rank, const int64_t *lo,
                                   const int64_t *hi, size_t size, size_t send) {
  int64_t *shape = x->w.value;  // scratch
  for (int r = 0; r < rank; r++) {
    b->lo[r] = lo[r];
    b->hi[r] = hi[r];
    shape[r] = b->hi[r] - b->lo[r];
  }
  eini_dist_dense(rank, shape, b->stride);
  EINI_TRY(eini_steps_room(x, &b->data, &b->room, eini_steps_bytes(rank, shape, size)));
  return eini_steps_message(x, rank, lo, hi, send);
}

// Are elements of tensor t that its statement does not write zeros?
static int eini_steps_zeros(const ein_dist *d, int t) {
  return d->tensor[t].ndefine == 1 && d->g->stmt[d->tensor[t].define[0]].rest == EIN_REST_ZERO;
}

// The box of an operand: in a memory that is shared, or of an input that lies everywhere, that of
// the tensor; else a copy.
static ein_status eini_steps_operand(eini_staged *x, eini_step_point *pt, int64_t step, int k) {
  const int t = x->stmt->operand[k], rank = x->d->g->tensor[t].rank;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const int n = x->w.nowners[k], again = x->w.again[k];
  const int mine = eini_steps_mine(x, x->w.move.place);
  if (!eini_tour_due(&x->w, step, k, 0)) return EIN_OK;
  if (again >= 0) {
    if (mine) pt->box[k] = pt->box[again];
    return EIN_OK;
  }
  const int some = eini_tour_box(&x->w, step, k);
  const int64_t *lo = x->w.from, *hi = x->w.to;
  x->w.move.operand = k;
  x->w.move.step = step;
  if (!mine) EINI_TRY(eini_steps_message(x, rank, lo, hi, n == 0 ? 0 : size));
  else if (x->nmemory == 1 || n == 0) pt->box[k] = *eini_steps_home(x, t, x->w.move.place);
  else EINI_TRY(eini_steps_dense(x, &pt->box[k], rank, lo, hi, size, size));
  if (mine && x->nmemory > 1 && x->run != NULL && eini_steps_zeros(x->d, t))
    memset(pt->box[k].data, 0, (size_t)eini_steps_volume(rank, lo, hi) * size);
  for (int i = 0; i < n && some; i++)
    EINI_TRY(eini_tour_owners(&x->w, &x->w.owners[k][i], (int64_t)size, 0));
  return EIN_OK;
}

// Room for a box of results, and its bytes.
static ein_status eini_steps_results(eini_staged *x, eini_step_box *b, const int64_t *lo,
                                     const int64_t *hi, size_t send) {
  return eini_steps_dense(x, b, x->stmt->nfree, lo, hi, x->wide, send);
}

// The states of nothing in a box.
static void eini_steps_identity(const eini_staged *x, const eini_step_box *b) {
  void *state[4];
  const int64_t n = eini_steps_volume(x->stmt->nfree, b->lo, b->hi);
  eini_states_at(x->folder, n, b->data, state);
  eini_fold_identity(x->folder, n, state);
}

// The fold of nothing for all results of a box; len: scratch.
static ein_status eini_steps_nothing(eini_staged *x, const eini_step_point *pt, int64_t *len,
                                     const eini_step_box *to) {
  void *out[1];
  int64_t id;
  out[0] = to->data;
  if (x->folder != NULL && x->run != NULL) eini_steps_identity(x, to);
  if (x->folder != NULL) return EIN_OK;
  for (int i = 0; i < x->stmt->nindex; i++) len[i] = i < x->stmt->nfree ? to->hi[i] - to->lo[i] : 0;
  EINI_TRY(eini_steps_plan(x, len, pt->box, to->stride, &id));
  return x->run == NULL ? EIN_OK : eini_steps_execute(x, 0, id, pt->in, out, pt->param);
}

// Addresses and origins of a block of a step.
static void eini_steps_bind(eini_staged *x, const eini_step_point *pt, const int64_t *lo,
                            const int64_t *hi, const void **in, ein_scalar *param) {
  const eini_stmt *s = x->stmt;
  const eini_stmt_block b = eini_block_of(lo, hi, NULL);
  ein_scalar *p = param + x->d->g->nparam;
  int n = 0;
  for (int i = 0; i < s->nindex; i++)
    if (eini_dist_uses(s, x->cut, i)) (p++)->re = (double)lo[i];
  for (int k = 0; k < s->noperand; k++) {
    if (eini_operand_first(s, k) < k) continue;
    const eini_tensor *t = &x->d->g->tensor[s->operand[k]];
    eini_block_hull(s, &b, k, x->w.from, x->w.to);
    in[n++] = eini_steps_at(&pt->box[k], t->rank, x->w.from, ein_dtype_size(t->dtype));
  }
}

// The plans of the block of a step: it goes to the partial result where there is nothing of it yet
// or each of its elements is computed once; else it is merged into that.
static ein_status eini_steps_block(eini_staged *x, eini_step_point *pt) {
  const eini_stmt *s = x->stmt;
  const int rank = s->nfree, n = s->noperand;
  const ein_dtype type = eini_steps_type(x);
  const eini_step_box *acc = &pt->box[n];
  const size_t bytes = (size_t)rank * sizeof(int64_t);
  const int all = memcmp(acc->lo, pt->lo, bytes) == 0 && memcmp(acc->hi, pt->hi, bytes) == 0;
  const int once = x->folder == NULL && !eini_loops_folds(x->w.n, x->w.n->nstep - 1);
  int64_t *len = x->w.lo;
  pt->to = eini_steps_at(acc, rank, pt->lo, x->wide);
  pt->merge = -1;
  pt->apart = !((pt->fresh && all) || once);
  if (pt->apart) {
    if (pt->fresh) EINI_TRY(eini_steps_nothing(x, pt, x->w.lo, acc));
    EINI_TRY(eini_steps_results(x, &pt->block, pt->lo, pt->hi, 0));
    for (int r = 0; r < rank; r++) x->w.value[r] = pt->block.hi[r] - pt->block.lo[r];
    if (x->folder == NULL)
      EINI_TRY(eini_steps_merge_plan(x, s->fold, rank, x->w.value, type, acc->stride, type,
                                     pt->block.stride, &pt->merge));
    pt->to = pt->block.data;
  }
  pt->fresh = 0;
  for (int i = 0; i < s->nindex; i++) len[i] = pt->hi[i] - pt->lo[i];
  return eini_steps_plan(x, len, pt->box, pt->apart ? pt->block.stride : acc->stride, &pt->plan);
}

// What a point does before it computes.
static ein_status eini_steps_before(eini_staged *x, eini_step_point *pt, int64_t step) {
  const eini_stmt *s = x->stmt;
  const int n = s->noperand;
  const size_t send = x->whole ? ein_dtype_size(x->d->g->tensor[s->out].dtype) : x->wide;
  for (int k = 0; k < n; k++) EINI_TRY(eini_steps_operand(x, pt, step, k));
  x->w.move.step = step;
  if (eini_tour_due(&x->w, step, n, 0)) {
    (void)eini_tour_box(&x->w, step, n);
    if (!eini_steps_mine(x, x->w.move.place))
      return eini_steps_message(x, s->nfree, x->w.lo, x->w.hi, send);
    EINI_TRY(eini_steps_results(x, &pt->box[n], x->w.lo, x->w.hi, send));
    pt->fresh = 1;
  }
  if (!eini_steps_mine(x, x->w.move.place)) return EIN_OK;
  eini_tour_values(&x->w, step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  pt->plan = -1;
  if (eini_zrange_empty(s->nindex, pt->lo, pt->hi)) return EIN_OK;
  eini_steps_bind(x, pt, pt->lo, pt->hi, pt->in, pt->param);
  return eini_steps_block(x, pt);
}
