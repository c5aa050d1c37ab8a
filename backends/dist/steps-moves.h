// ================================================================================================
// >>steps-moves  what messages of steps hold, and where it goes
// Takes a worker and a move; fills a message from what a place holds, or from the partial result of
// a point, and the other way round. Without data it makes the plans.
// ================================================================================================

// Calls for parts of the move at hand that lie in boxes of the free indices: in a memory that is
// shared all of a result is one.
typedef struct eini_step_parts {
  eini_owners *o;           // NULL: one part
  int first;
  eini_owned p;
} eini_step_parts;

static void eini_steps_parts(eini_staged *x, const eini_step_move *v, eini_step_parts *p) {
  p->first = 1;
  p->o = v->pieces < 0 ? NULL : eini_steps_owner(x, v);
  if (p->o != NULL) return;
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  for (int i = 0; i < x->stmt->nfree; i++) {
    p->p.lo[i] = x->w.lo[i], p->p.hi[i] = x->w.hi[i];
    p->p.shape[i] = p->p.hi[i] - p->p.lo[i];
  }
}

static int eini_steps_next(eini_staged *x, eini_step_parts *p) {
  const int first = p->first;
  p->first = 0;
  return p->o == NULL ? first : eini_owners_next(p->o, x->w.lo, x->w.hi, &p->p, first);
}

// The message of a move.
static char *eini_steps_message(const eini_staged *x, const eini_step_move *v) {
  return eini_steps_mem(x, v->place, x->e->inbox_at[v->place] + v->at);
}

// What a place holds of an operand's box goes into a message, or into the box: from there, or, of
// what it receives, out of a message.
static void eini_steps_fetch(eini_staged *x, const eini_step_move *v, eini_step_box *to) {
  const int t = x->stmt->operand[v->access], own = v->kind == EINI_JOB_NONE;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box home = eini_steps_home(x, t, v->place);
  char *message = own ? NULL : eini_steps_message(x, v);
  int64_t have[EINI_NAMES_MAX], want[EINI_NAMES_MAX], n;
  eini_step_parts p;
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const eini_stmt *s = p.o->s;
    const int64_t *lo = x->w.from, *hi = x->w.to;
    char *at = to == NULL ? message : eini_steps_written(s, to, p.p.lo, size, want);
    const char *from = v->kind == EINI_JOB_RECEIVE
                           ? message : eini_steps_written(s, &home, p.p.lo, size, have);
    n = eini_steps_copy(p.o, &p.p, lo, hi, at, to == NULL ? NULL : want, from,
                        v->kind == EINI_JOB_RECEIVE ? NULL : have, size);
    if (!own) message += n * (int64_t)size;
  }
}

// The partial result of the point at hand.
static eini_step_box *eini_steps_result(eini_staged *x, int64_t step) {
  const int n = x->stmt->noperand;
  eini_step_box *b = &x->point.box[n];
  const int64_t r = (int64_t)x->d->rank + 1;
  b->lo = x->boxes, b->hi = b->lo + r, b->stride = b->hi + r;
  (void)eini_tour_box(&x->w, step, n);
  eini_steps_box(x, b, n, x->stmt->nfree, x->w.lo, x->w.hi, x->e->wide);
  return b;
}

// A part of the partial result into a message: what is complete as the tensor is, the rest as it
// was computed.
static ein_status eini_steps_leaves(eini_staged *x, const eini_step_box *acc, const eini_owned *p,
                                    char *message) {
  const eini_steps_stmt *e = x->e;
  const int rank = x->stmt->nfree;
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t dense[EINI_NAMES_MAX];
  eini_dist_dense(rank, p->shape, dense);
  if (e->whole) return eini_steps_store(x, p->shape, message, dense, acc, p->lo);
  if (x->run == NULL) return EIN_OK;
  if (e->folder != NULL) eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, message);
  else eini_dist_copy(rank, p->shape, message, dense, eini_steps_at(acc, rank, p->lo, e->wide),
                      acc->stride, e->wide);
  return EIN_OK;
}

// What a part becomes at home: it is stored, or merged into what is there. message: it was
// received; acc: it is of the point at hand.
static ein_status eini_steps_arrives(eini_staged *x, int64_t memory, const eini_step_box *acc,
                                     const eini_owned *p, const char *message) {
  const eini_stmt *s = x->stmt;
  const eini_steps_stmt *e = x->e;
  const int rank = s->nfree;
  const size_t size = ein_dtype_size(x->d->g->tensor[s->out].dtype);
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t dense[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  eini_dist_dense(rank, p->shape, dense);
  if (e->whole) {
    const eini_step_box home = eini_steps_home(x, s->out, memory);
    char *to = eini_steps_written(s, &home, p->lo, size, stride);
    if (acc != NULL) return eini_steps_store(x, p->shape, to, stride, acc, p->lo);
    if (x->run != NULL) eini_dist_copy(rank, p->shape, to, stride, message, dense, size);
    return EIN_OK;
  }
  const eini_step_box sum = eini_steps_sum(x, memory);
  if (e->folder == NULL) {
    const ein_dtype type = eini_steps_type(x);
    return eini_steps_merge(x, s->fold, rank, p->shape, type,
                            eini_steps_at(&sum, rank, p->lo, e->wide), sum.stride, type,
                            acc == NULL ? message : eini_steps_at(acc, rank, p->lo, e->wide),
                            acc == NULL ? dense : acc->stride);
  }
  if ((size_t)n * e->wide > x->spare_bytes) x->spare_bytes = (size_t)n * e->wide;
  if (x->run == NULL) return EIN_OK;
  if (acc == NULL) memcpy(x->spare, message, (size_t)n * e->wide);  // aligned
  else eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, x->spare);
  eini_steps_states(e->folder, rank, p->shape, &sum, p->lo, n, x->spare);
  return EIN_OK;
}

// A part of a result leaves its point, or arrives at home.
static ein_status eini_steps_homeward(eini_staged *x, const eini_step_move *v) {
  const size_t size = x->e->whole ? ein_dtype_size(x->d->g->tensor[x->stmt->out].dtype)
                                  : x->e->wide;
  const eini_step_box *acc = NULL;
  char *message = v->kind == EINI_JOB_NONE ? NULL : eini_steps_message(x, v);
  eini_step_parts p;
  if (v->kind != EINI_JOB_RECEIVE) {
    eini_steps_goto(x, v->point);
    acc = eini_steps_result(x, v->step);
  }
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const int64_t n = eini_steps_volume(x->stmt->nfree, p.p.lo, p.p.hi);
    if (n == 0) continue;
    if (v->kind == EINI_JOB_SEND) EINI_TRY(eini_steps_leaves(x, acc, &p.p, message));
    else EINI_TRY(eini_steps_arrives(x, eini_steps_one(x->d) ? 0 : v->place, acc, &p.p, message));
    if (message != NULL) message += n * (int64_t)size;
  }
  return EIN_OK;
}
