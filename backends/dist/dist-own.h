// ================================================================================================
// >>dist-own  what tasks and messages do at places with memory of their own
// Takes moves, and where the memory of a place is: the host's, or a provider's, whose kernels copy
// what is not dense there.
// ================================================================================================

// ---- memory of places ----

static char *eini_own_at(const eini_dist_exec *x, int kind, int64_t entry) {
  const ein_dist *d = x->d;
  const eini_dist_copies *c = d->copies;
  const int64_t i = entry % d->fabric.count, at = c->at[kind][entry];
  if (d->held_bytes[i] > 0 && at >= c->bytes[i]) return (char *)d->held[i] + (at - c->bytes[i]);
  return x->mem + c->start[i] + at;
}

// The provider's memory of all places of this process, which the plan keeps.
static ein_status eini_own_hold(const ein_dist *d) {
  const ein_kernels *k = d->away;
  for (int i = 0; k != NULL && i < d->fabric.count; i++) {
    if (d->held[i] != NULL || d->held_bytes[i] == 0) continue;
    eini_dist_here(k, d->fabric.first + i);
    const ein_status st =
        k->memory->hold_fn(k->user, (size_t)d->held_bytes[i], &d->held[i]);
    eini_dist_here(k, -1);
    if (st != EIN_OK) d->held[i] = NULL;
    EINI_TRY(st);
  }
  return EIN_OK;
}

static void eini_own_release(const ein_dist *d) {
  for (int i = 0; d->away != NULL && d->held != NULL && i < d->fabric.count; i++) {
    if (d->held[i] == NULL) continue;
    eini_dist_here(d->away, d->fabric.first + i);
    d->away->memory->release_fn(d->away->user, d->held[i]);
    eini_dist_here(d->away, -1);
  }
}

// Nothing is under way any more at any place.
static ein_status eini_own_end(const ein_dist *d, ein_status st) {
  for (int i = 0; d->away != NULL && i < d->fabric.count; i++) {
    ein_ticket ticket = 0;
    if (d->held_bytes[i] == 0) continue;
    eini_dist_here(d->away, d->fabric.first + i);
    ein_status own = d->away->memory->mark_fn(d->away->user, &ticket);
    if (own == EIN_OK && ticket != 0) own = d->away->memory->wait_fn(d->away->user, ticket);
    eini_dist_here(d->away, -1);
    if (st == EIN_OK) st = own;
  }
  if (d->carried) (void)d->fabric.memory_fn(d->fabric.user, NULL);
  return st;
}

// Says where what is posted next is. With the wires.
static ein_status eini_own_says(const ein_dist *d, int away) {
  const ein_fabric *f = &d->fabric;
  return d->carried ? f->memory_fn(f->user, away ? d->away : NULL) : EIN_OK;
}

// ---- copies there ----

enum { EINI_OWN_LOOPS = 12 };

typedef struct eini_own_loops {
  int n;
  int64_t extent[EINI_OWN_LOOPS], dst[EINI_OWN_LOOPS], src[EINI_OWN_LOOPS];
} eini_own_loops;

// The loops of a copy, those that continue others on both sides merged. 0: there are too many.
static int eini_own_loops_of(int rank, const int64_t *shape, const int64_t *dst,
                             const int64_t *src, eini_own_loops *l) {
  l->n = 0;
  for (int r = 0; r < rank; r++) {
    const int i = l->n - 1;
    if (shape[r] == 1) continue;
    if (i >= 0 && l->dst[i] == shape[r] * dst[r] && l->src[i] == shape[r] * src[r]) {
      l->extent[i] *= shape[r];
      l->dst[i] = dst[r];
      l->src[i] = src[r];
      continue;
    }
    if (l->n == EINI_OWN_LOOPS) return 0;
    l->extent[l->n] = shape[r];
    l->dst[l->n] = dst[r];
    l->src[l->n++] = src[r];
  }
  if (l->n == 0) l->n = 1, l->extent[0] = l->dst[0] = l->src[0] = 1;
  return 1;
}

// dst[i] = src[i] for i < shape at place q: by the provider where one of them is in its memory.
static ein_status eini_own_carry(const ein_dist *d, int64_t q, int rank, const int64_t *shape,
                                 const eini_dist_end *dst, const eini_dist_end *src,
                                 const int64_t *dst_stride, const int64_t *src_stride,
                                 size_t size) {
  const ein_kernels *k = d->away;
  eini_own_loops l;
  ein_copy c;
  ein_choice choice;
  unsigned char away[2];
  for (int r = 0; r < rank; r++)
    if (shape[r] == 0) return EIN_OK;
  if (!dst->away && !src->away) {
    eini_dist_copy(rank, shape, dst->data, dst_stride, src->data, src_stride, size);
    return EIN_OK;
  }
  if (!eini_own_loops_of(rank, shape, dst_stride, src_stride, &l)) {
    eini_dist_end to = *dst, from = *src;
    for (int64_t i = 0; i < shape[0]; i++) {
      EINI_TRY(eini_own_carry(d, q, rank - 1, shape + 1, &to, &from, dst_stride + 1,
                              src_stride + 1, size));
      to.data += dst_stride[0] * (int64_t)size;
      from.data += src_stride[0] * (int64_t)size;
    }
    return EIN_OK;
  }
  memset(&c, 0, sizeof c);
  c.n = l.n;
  c.extent = l.extent;
  c.src_stride = l.src;
  c.dst_stride = l.dst;
  c.size = (int)size;
  c.src = src->data;
  c.dst = dst->data;
  c.away = away;
  away[0] = (unsigned char)src->away;
  away[1] = (unsigned char)dst->away;
  ein_status st = EIN_ERR_NO_MEMORY;  // all that a copy may lack
  eini_dist_here(k, q);
  if (l.n == 1 && l.dst[0] == 1 && l.src[0] == 1 && src->away != dst->away)
    st = k->memory->copy_fn(k->user, (size_t)l.extent[0] * size, src->data, dst->data, dst->away);
  else if (k->copy_plan(k->user, &c, 1, -1, &choice))
    st = k->copy_run(k->user, &c, &choice, NULL);
  eini_dist_here(k, -1);
  return st;
}

// Bytes that are dense on both sides, or for all of them the same 16 (stride 0).
static ein_status eini_own_bytes(const ein_dist *d, int64_t q, char *dst, int dst_away,
                                 const char *src, int src_away, int64_t stride, int64_t bytes) {
  const int64_t one = 1;
  union { const char *c; char *v; } u;  // it is only read
  const size_t size = stride == 0 ? 16 : 1;
  const int64_t n = bytes / (int64_t)size;
  const eini_dist_end to = eini_dist_end_of(EINI_AT_MESSAGE, dst, NULL, dst_away);
  u.c = src;
  const eini_dist_end from = eini_dist_end_of(EINI_AT_MESSAGE, u.v, NULL, src_away);
  return eini_own_carry(d, q, 1, &n, &to, &from, &one, &stride, size);
}

// Moves the elements of the block at `place` that lie in a box, at place q.
static ein_status eini_own_move(const eini_dist_exec *x, int64_t q, int define, int64_t place,
                                const int64_t *from, const int64_t *to, size_t size,
                                const eini_dist_end *dst, const eini_dist_end *src,
                                eini_dist_room *m) {
  const eini_space *s = &x->d->stmt[define].space;
  eini_dist_end a = *dst, b = *src;
  int64_t at[2];
  if (!dst->away && !src->away) {
    eini_dist_move(s, place, from, to, size, dst, src, m);
    return EIN_OK;
  }
  if (!eini_dist_sides(s, place, from, to, dst, src, m, at)) return EIN_OK;
  a.data += at[0] * (int64_t)size;
  b.data += at[1] * (int64_t)size;
  return eini_own_carry(x->d, q, s->s->nfree, m->bto, &a, &b, m->dst, m->src, size);
}

// ---- messages ----

// Where the elements of a move are at home, at place q; m->from: the corner of the box they lie in.
static eini_dist_end eini_own_home(const eini_dist_exec *x, const eini_dist_moved *v, int64_t q,
                                   const eini_dist_room *m) {
  const ein_dist *d = x->d;
  const int tensor = d->stmt[v->define].s->out;
  eini_dist_end e = eini_dist_end_home(d, v->define);
  if (eini_dist_whole(d, v->define)) e.data = eini_dist_at(x, tensor, m->from);
  else if (v->define < d->nstmt)
    e.data = eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, v->define, q));
  else e.data = eini_dist_bound(d, x->run, tensor, (int)q - d->fabric.first);
  return e;
}

static char *eini_own_box(const eini_dist_exec *x, int64_t entry, int o) {
  return eini_own_at(x, EINI_AT_OPERAND, entry) + x->d->copies->box[entry][o];
}

static int64_t eini_own_tag(const ein_dist *d, const eini_job *j, const eini_dist_moved *v) {
  int64_t slot = d->tags - 1;
  if (v->level >= 0) return j->stmt * d->tags + slot;
  const eini_dist_tensor *t = &d->tensor[d->stmt[j->stmt].s->operand[v->operand]];
  for (slot = 0; t->define[slot] != v->define;) slot++;
  return j->stmt * d->tags + v->operand * d->defines + slot;
}

// Posts what a place gives to a fold by the fabric. At the first of its places, which merges the
// result with its own once more, that is 0 in a sum, 1 in a product; in others twice does no harm.
static ein_status eini_own_reduce(eini_dist_exec *x, int k, const eini_dist_moved *v, char *data,
                                  ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, d->fabric.first);
  const ein_dtype type = ein_dtype_compute(e->s->type);
  const int product = e->s->fold == EIN_FOLD_PROD, own = e->direct ? EINI_AT_OWN : EINI_AT_PART;
  ein_status made = EIN_OK;
  if (v->kind == EINI_JOB_RECEIVE && (product || e->s->fold == EIN_FOLD_SUM))
    eini_fill_value(type, product, 0, product, v->bytes / (int64_t)ein_dtype_size(type), data);
  else if (v->kind == EINI_JOB_RECEIVE)
    made = eini_own_bytes(d, d->fabric.first, data, 0, eini_own_at(x, own, entry),
                          eini_dist_is_away(d, k, own), 1, v->bytes);
  eini_flow_wires(&x->flow, 1);
  ein_status st = eini_own_says(d, 0);
  if (st == EIN_OK)
    st = d->fabric.reduce_fn(d->fabric.user, v->group, v->turns, v->turn, e->s->fold, type, data,
                             (size_t)v->bytes, ticket);
  eini_flow_wires(&x->flow, 0);
  return st != EIN_OK ? st : made;
}

// A message of place q.
typedef struct eini_own_wire {
  int send, away;           // away: it is in the provider's memory
  int peer, group, turns, turn;  // as of eini_dist_moved
  int64_t q, tag, bytes;
} eini_own_wire;

// Posts what is at `data`, or goes there.
static ein_status eini_own_wired(const ein_dist *d, eini_flow *flow, const eini_own_wire *v,
                                 char *data, ein_ticket *ticket) {
  const ein_fabric *f = &d->fabric;
  const int q = (int)v->q;
  eini_flow_wires(flow, 1);
  ein_status st = eini_own_says(d, v->away);
  if (st != EIN_OK) st = EIN_ERR_INTERNAL;  // others wait in vain: it said yes before
  else if (v->group >= 0)
    st = f->spread_fn(f->user, v->group, v->turns, v->turn, v->send ? q : v->peer, data,
                      (size_t)v->bytes, ticket);
  else if (v->send) st = f->send_fn(f->user, q, v->peer, v->tag, data, (size_t)v->bytes, ticket);
  else st = f->recv_fn(f->user, q, v->peer, v->tag, data, (size_t)v->bytes, ticket);
  eini_flow_wires(flow, 0);
  return st;
}

static ein_status eini_own_post(eini_dist_exec *x, const eini_job *j, char *data,
                                ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const eini_own_wire w = {v->kind == EINI_JOB_SEND, v->away, v->peer, v->group, v->turns, v->turn,
                           (int64_t)d->fabric.first + j->place, eini_own_tag(d, j, v), v->bytes};
  return eini_own_wired(d, &x->flow, &w, data, ticket);
}

static ein_status eini_own_receive(eini_dist_exec *x, const eini_job *j, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  if (eini_dist_clocked(d))
    return f->recv_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  char *to = v->level >= 0 ? eini_own_at(x, EINI_AT_MERGED, entry)
             : v->direct ? eini_own_box(x, entry, v->operand) + v->at
                         : eini_own_at(x, EINI_AT_INBOX, entry) + v->at;
  if (v->level >= 0 && v->group >= 0) return eini_own_reduce(x, j->stmt, v, to, ticket);
  return eini_own_post(x, j, to, ticket);
}

static ein_status eini_own_send(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                int failed, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  eini_dist_room *m = &w->room;
  ein_status packed = EIN_OK;
  char *from;
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  if (eini_dist_clocked(d))
    return f->send_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->level >= 0) {
    from = eini_own_at(x, EINI_AT_PART, entry);
    if (!v->direct) {
      char *to = eini_own_at(x, EINI_AT_OUTBOX, entry) + v->at;
      if (!failed) packed = eini_own_bytes(d, q, to, 0, from, 1, 1, v->bytes);
      from = to;
    }
  } else {
    eini_dist_box(&d->stmt[j->stmt], v->peer, v->operand, m);
    const eini_dist_end home = eini_own_home(x, v, q, m);
    const int box = v->away ? EINI_AT_OUTSIDE : EINI_AT_OUTBOX;
    const eini_dist_end to = eini_dist_end_of(
        EINI_AT_MESSAGE, eini_own_at(x, box, entry) + (v->direct ? 0 : v->at), NULL, v->away);
    from = v->direct ? home.data + v->at : to.data;
    if (!v->direct && !failed)
      packed = eini_own_move(x, q, v->define, q, m->from, m->to, (size_t)(v->bytes / v->elements),
                             &to, &home, m);
  }
  const ein_status st = v->level >= 0 && v->group >= 0
                            ? eini_own_reduce(x, j->stmt, v, from, ticket)
                            : eini_own_post(x, j, from, ticket);
  return st != EIN_OK ? st : packed;
}

// ---- tasks ----

// Addresses of the operands of task q, by operand; boxes with holes are zero first.
static ein_status eini_own_operands(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  static const char zero[16] = {0};
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q), *box = d->copies->box[entry];
  eini_dist_room *m = &w->room;
  for (int o = 0; o < e->s->noperand; o++) {
    const int t = e->s->operand[o];
    if (eini_operand_first(e->s, o) < o) continue;
    if (d->tensor[t].ndefine == 0) {
      char *base = x->base[t];
      if (d->desc.blocks) base = eini_dist_bound(d, x->run, t, (int)q - d->fabric.first);
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_dist_at_of(d, base, t, m->from);
    } else if (box[o] < 0) {
      const eini_dist_moved *v = &d->copies->move[-1 - box[o]];
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_own_home(x, v, q, m).data + v->at;
    } else {
      w->in[o] = eini_own_box(x, entry, o);
      if (d->stmt[d->tensor[t].define[0]].s->rest == EIN_REST_ZERO)
        EINI_TRY(eini_own_bytes(d, q, eini_own_box(x, entry, o), e->away, zero, 0, 0,
                                eini_dist_box_bytes(d, e, q, o, m)));
    }
  }
  return EIN_OK;
}

// Puts together the boxes of task q's operands, and computes.
static ein_status eini_own_compute(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  const int own = eini_space_partial(&e->space, q) == 0 && (e->space.nagg == 1 || e->direct);
  eini_dist_room *m = &w->room;
  int n = 0;
  EINI_TRY(eini_own_operands(x, w, k, q));
  for (int64_t i = c->first[entry]; i < c->first[entry + 1]; i++) {
    const eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_SEND || v->level >= 0 || v->direct) continue;
    eini_dist_box(e, q, v->operand, m);
    const eini_dist_end from =
        v->kind == EINI_JOB_NONE
            ? eini_own_home(x, v, q, m)
            : eini_dist_end_of(EINI_AT_MESSAGE, eini_own_at(x, EINI_AT_INBOX, entry) + v->at, NULL,
                               v->away);
    const eini_dist_end to = eini_dist_end_box(d->g->tensor[e->s->operand[v->operand]].rank,
                                               eini_own_box(x, entry, v->operand), e->away, m);
    EINI_TRY(eini_own_move(x, q, v->define, v->kind == EINI_JOB_NONE ? q : v->peer, m->from, m->to,
                           (size_t)(v->bytes / v->elements), &to, &from, m));
  }
  for (int o = 0; o < e->s->noperand; o++)
    if (eini_operand_first(e->s, o) == o) w->in[n++] = w->in[o];
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(d, e, w);
  return eini_dist_execute_block(x, w, e, q,
                                 eini_own_at(x, own ? EINI_AT_OWN : EINI_AT_PART, entry));
}

static ein_status eini_own_merge(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                 int level) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  const int64_t entry = eini_dist_entry(x->d, k, q);
  const int first = eini_space_partial(&e->space, q) == 0;
  const int last = first && level == e->levels - 1;
  if (e->reduced && !last) return EIN_OK;
  char *own = eini_own_at(x, EINI_AT_OWN, entry), *part = eini_own_at(x, EINI_AT_PART, entry);
  char *merged = eini_own_at(x, EINI_AT_MERGED, entry);
  if (e->folder != NULL) {
    eini_dist_room *m = &w->room;
    eini_space_ranges(&e->space, q, m->lo, m->hi);
    for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
    eini_dist_dense(e->s->nfree, m->len, m->dst);
    eini_dist_states_join(x, w, e, q, part, merged, last ? own : NULL, m->dst);
    return EIN_OK;
  }
  void *out = first && (e->direct || last) ? own : part;
  w->in[0] = first && e->direct ? own : part;
  w->in[1] = merged;
  return eini_dist_execute_plan(x, w, q, (last ? e->last : e->merge)[q - x->d->fabric.first],
                                &out);
}

// The complete block of an output goes to the caller's view, or to what it binds for the place.
static ein_status eini_own_output(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const eini_tensor *t = &d->g->tensor[e->s->out];
  const int64_t *stride = d->tensor[e->s->out].stride;
  eini_dist_room *m = &w->room;
  char *base = x->base[e->s->out];
  for (int r = 0; r < t->rank; r++) {
    m->from[r] = 0;
    m->to[r] = t->shape[r];
    if (d->desc.blocks) eini_dist_own(d, e->s->out, q, r, &m->from[r], &m->to[r]);
    m->len[r] = m->to[r] - m->from[r];
  }
  if (d->desc.blocks) {
    eini_dist_dense(t->rank, m->len, m->box);
    stride = m->box;
    base = eini_dist_bound(d, x->run, e->s->out, (int)q - d->fabric.first);
  }
  const eini_dist_end to = eini_dist_end_of(EINI_AT_BOX, base, stride, 0);
  const eini_dist_end at = eini_dist_end_of(
      EINI_AT_BLOCK, eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, k, q)), NULL, e->own_away);
  return eini_own_move(x, q, k, q, m->from, m->to, ein_dtype_size(t->dtype), &to, &at, m);
}
