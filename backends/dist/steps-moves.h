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

// The message of a move: elements one behind another.
static eini_dist_end eini_steps_message(const eini_staged *x, const eini_step_move *v) {
  const int away = eini_steps_wired(x->d, x->e, v->access);
  if (v->kind == EINI_JOB_NONE) return eini_dist_end_of(EINI_AT_MESSAGE, NULL, NULL, 0);
  const int64_t at = x->e->inbox_at[eini_steps_side(x->d, v->place, away)] + v->at;
  return eini_dist_end_of(EINI_AT_MESSAGE, eini_steps_mem(x, v->place, away, at), NULL, away);
}

// What a place holds of an operand's box goes into a message, or into the box: from there, or, of
// what it receives, out of a message.
static ein_status eini_steps_fetch(eini_staged *x, const eini_step_move *v, eini_step_box *to) {
  const int t = x->stmt->operand[v->access], received = v->kind == EINI_JOB_RECEIVE;
  const size_t size = ein_dtype_size(x->d->g->tensor[t].dtype);
  const eini_step_box home = eini_steps_home(x, t, v->place);
  int64_t stride[EINI_NAMES_MAX], other[EINI_NAMES_MAX], n;
  eini_dist_end message = eini_steps_message(x, v);
  eini_step_parts p;
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const eini_dist_end dst =
        to == NULL ? message : eini_steps_written(p.o->s, to, p.p.lo, size, stride);
    const eini_dist_end src =
        received ? message : eini_steps_written(p.o->s, &home, p.p.lo, size, other);
    EINI_TRY(eini_steps_copy(x, p.o, &p.p, x->w.from, x->w.to, &dst, &src, size, &n));
    if (message.data != NULL) message.data += n * (int64_t)size;
  }
  return EIN_OK;
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
                                    const eini_dist_end *message) {
  const eini_steps_stmt *e = x->e;
  const int rank = x->stmt->nfree;
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  if (e->whole) return eini_steps_store(x, p->shape, message, acc, p->lo);
  if (x->run == NULL) return EIN_OK;
  const eini_dist_end own = eini_steps_end(acc, rank, p->lo, e->wide);
  if (e->folder == NULL)
    return eini_own_carry(x->d, x->place, rank, p->shape, message, &own, message->stride,
                          own.stride, e->wide);
  eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, message->data);
  return EIN_OK;
}

// What a part becomes at home: it is stored, or merged into what is there. message: it was
// received; acc: it is of the point at hand.
static ein_status eini_steps_arrives(eini_staged *x, int64_t memory, const eini_step_box *acc,
                                     const eini_owned *p, const eini_dist_end *message) {
  const eini_stmt *s = x->stmt;
  const eini_steps_stmt *e = x->e;
  const int rank = s->nfree;
  const size_t size = ein_dtype_size(x->d->g->tensor[s->out].dtype);
  const int64_t n = eini_steps_volume(rank, p->lo, p->hi);
  int64_t stride[EINI_NAMES_MAX];
  if (e->whole) {
    const eini_step_box home = eini_steps_home(x, s->out, memory);
    const eini_dist_end to = eini_steps_written(s, &home, p->lo, size, stride);
    if (acc != NULL) return eini_steps_store(x, p->shape, &to, acc, p->lo);
    return x->run == NULL ? EIN_OK
                          : eini_own_carry(x->d, x->place, rank, p->shape, &to, message, stride,
                                           message->stride, size);
  }
  const eini_step_box sum = eini_steps_sum(x, memory);
  if (e->folder == NULL) {
    const ein_dtype type = eini_steps_type(x);
    const eini_dist_end to = eini_steps_end(&sum, rank, p->lo, e->wide);
    const eini_dist_end from =
        acc == NULL ? *message : eini_steps_end(acc, rank, p->lo, e->wide);
    return eini_steps_merge(x, s->fold, rank, p->shape, type, &to, type, &from);
  }
  if ((size_t)n * e->wide > x->spare_bytes) x->spare_bytes = (size_t)n * e->wide;
  if (x->run == NULL) return EIN_OK;
  if (acc == NULL) memcpy(x->spare, message->data, (size_t)n * e->wide);  // aligned
  else eini_steps_pack(e->folder, rank, p->shape, acc, p->lo, n, x->spare);
  eini_steps_states(e->folder, rank, p->shape, &sum, p->lo, n, x->spare);
  return EIN_OK;
}

// A part of a result leaves its point, or arrives at home.
static ein_status eini_steps_homeward(eini_staged *x, const eini_step_move *v) {
  const size_t size = x->e->whole ? ein_dtype_size(x->d->g->tensor[x->stmt->out].dtype)
                                  : x->e->wide;
  const eini_step_box *acc = NULL;
  int64_t dense[EINI_NAMES_MAX];
  eini_step_parts p;
  if (v->kind != EINI_JOB_RECEIVE) {
    eini_steps_goto(x, v->point);
    acc = eini_steps_result(x, v->step);
  }
  eini_dist_end message = eini_steps_message(x, v);
  message.stride = dense;
  eini_steps_parts(x, v, &p);
  while (eini_steps_next(x, &p)) {
    const int64_t n = eini_steps_volume(x->stmt->nfree, p.p.lo, p.p.hi);
    if (n == 0) continue;
    eini_dist_dense(x->stmt->nfree, p.p.shape, dense);
    if (v->kind == EINI_JOB_SEND) EINI_TRY(eini_steps_leaves(x, acc, &p.p, &message));
    else EINI_TRY(eini_steps_arrives(x, eini_steps_one(x->d) ? 0 : v->place, acc, &p.p, &message));
    if (message.data != NULL) message.data += n * (int64_t)size;
  }
  return EIN_OK;
}
