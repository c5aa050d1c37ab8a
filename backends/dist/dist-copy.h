// ================================================================================================
// >>dist-copy  places with memory of their own
// Takes an ein_dist whose fabric moves data. Statement by statement, every driven place sends what
// others read of its blocks, receives what its task reads, computes, and folds partial results.
// Blocks are stored by the free indices of their statement, dense; a task's operands are boxes.
// ================================================================================================

// Where things lie in the memory of a place, in bytes; each has an entry per statement and place.
typedef struct eini_dist_copies {
  int64_t *block, *partial, *operand, *inbox, *outbox, *merged;
  int64_t *bytes;           // per place: of its memory
  int64_t most;             // transfers of one statement
} eini_dist_copies;

// One side of a move of a block's elements in a box.
typedef enum eini_dist_kind {
  EINI_AT_BLOCK,            // the block, by free indices
  EINI_AT_MESSAGE,          // these elements alone, in order
  EINI_AT_BOX               // by coordinates, from the corner of the box
} eini_dist_kind;

typedef struct eini_dist_end {
  eini_dist_kind kind;
  char *data;
  const int64_t *stride;    // of a box
} eini_dist_end;

// Is every coordinate one index, and every index one coordinate?
static int eini_dist_is_box(const eini_space *x) {
  const eini_map *map = &x->s->out_map;
  for (int r = 0; r < map->rows; r++)
    if (eini_map_terms(map, r) > 1) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (eini_map_uses(map, i) > 1) return 0;
  return 1;
}

// Strides of one side by free indices, and the address of the point a.
static char *eini_dist_end_at(const eini_space *x, const eini_dist_end *e, size_t size,
                              const int64_t *from, const int64_t *lo, const int64_t *hi,
                              const int64_t *a, const int64_t *b, int64_t *stride) {
  int64_t at = 0, n = 1;
  for (int i = x->s->nfree - 1; i >= 0 && e->kind != EINI_AT_BOX; i--) {
    stride[i] = n;
    n *= e->kind == EINI_AT_BLOCK ? hi[i] - lo[i] : b[i] - a[i];
    if (e->kind == EINI_AT_BLOCK) at += (a[i] - lo[i]) * stride[i];
  }
  if (e->kind == EINI_AT_BOX) {
    const eini_map *m = &x->s->out_map;
    for (int i = 0; i < x->s->nfree; i++) stride[i] = 0;
    for (int r = 0; r < m->rows; r++) {
      at += (m->offset[r] - from[r]) * e->stride[r];
      for (int k = m->first[r]; k < m->first[r + 1]; k++) {
        int64_t s = m->term[k].coef * e->stride[r];
        stride[m->term[k].index] += s;
        at += s * a[m->term[k].index];
      }
    }
  }
  return e->data + at * (int64_t)size;
}

// Coordinate r of a point of the index space.
static int64_t eini_dist_coordinate(const eini_map *m, int r, const int64_t *at) {
  int64_t y = m->offset[r];
  for (int e = m->first[r]; e < m->first[r + 1]; e++) y += m->term[e].coef * at[m->term[e].index];
  return y;
}

// Point by point, where coordinates are sums of indices.
static void eini_dist_move_points(const eini_space *x, const int64_t *from, const int64_t *to,
                                  size_t size, const eini_dist_end *dst, const eini_dist_end *src,
                                  eini_dist_room *m) {
  int64_t *at = m->bfrom, count = 0;
  for (int i = 0; i < x->s->nfree; i++) at[i] = m->blo[i];
  for (int i = 0; i >= 0;) {
    int64_t block = 0, dbox = 0, sbox = 0;
    int inside = 1;
    for (int r = 0; r < x->s->out_map.rows && inside; r++) {
      int64_t y = eini_dist_coordinate(&x->s->out_map, r, at);
      inside = y >= from[r] && y < to[r];
      if (dst->kind == EINI_AT_BOX) dbox += (y - from[r]) * dst->stride[r];
      if (src->kind == EINI_AT_BOX) sbox += (y - from[r]) * src->stride[r];
    }
    for (int c = 0; c < x->s->nfree; c++)
      block = block * (m->bhi[c] - m->blo[c]) + at[c] - m->blo[c];
    if (inside) {
      int64_t d = dst->kind == EINI_AT_BLOCK ? block : dst->kind == EINI_AT_BOX ? dbox : count;
      int64_t s = src->kind == EINI_AT_BLOCK ? block : src->kind == EINI_AT_BOX ? sbox : count;
      memcpy(dst->data + d * (int64_t)size, src->data + s * (int64_t)size, size);
      count++;
    }
    for (i = x->s->nfree - 1; i >= 0 && ++at[i] == m->bhi[i]; i--) at[i] = m->blo[i];
  }
}

// Moves the elements of the block at `place` that lie in a box.
static void eini_dist_move(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, size_t size, const eini_dist_end *dst,
                           const eini_dist_end *src, eini_dist_room *m) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  if (eini_zrange_empty(x->s->nfree, m->blo, m->bhi)) return;
  if (!eini_dist_is_box(x)) {
    eini_dist_move_points(x, from, to, size, dst, src, m);
    return;
  }
  for (int i = 0; i < x->s->nfree; i++) {
    m->bfrom[i] = m->blo[i];
    m->bto[i] = m->bhi[i];
  }
  if (!eini_box_narrow(&x->s->out_map, x->s->nfree, from, to, m->bfrom, m->bto)) return;
  char *pd = eini_dist_end_at(x, dst, size, from, m->blo, m->bhi, m->bfrom, m->bto, m->dst);
  char *ps = eini_dist_end_at(x, src, size, from, m->blo, m->bhi, m->bfrom, m->bto, m->src);
  for (int i = 0; i < x->s->nfree; i++) m->bto[i] -= m->bfrom[i];
  eini_dist_copy(x->s->nfree, m->bto, pd, m->dst, ps, m->src, size);
}

// ---- the transfers of a statement, in an order all places know ----

// One transfer: the elements of block `home` of statement `define` that lie in the box operand
// `operand` of the task at `place` reads (m->from, m->to). home == place: no transfer.
typedef struct eini_dist_transfer {
  int64_t place, home;
  int operand, define;
  int64_t elements, bytes;
} eini_dist_transfer;

typedef ein_status (*eini_dist_transfer_fn)(void *user, const eini_dist_transfer *t,
                                            eini_dist_room *m);

// Calls fn for all transfers of the task at `place`.
static ein_status eini_dist_task_transfers(const ein_dist *d, int k, int64_t place,
                                           eini_dist_room *m, eini_dist_transfer_fn fn,
                                           void *user) {
  const eini_dist_stmt *e = &d->stmt[k];
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

static int64_t eini_dist_pad(int64_t bytes) {
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

static int eini_dist_driven(const ein_dist *d, int64_t q) {
  return q >= d->fabric.first && q - d->fabric.first < d->fabric.count;
}

// Bytes of the box operand o of the task at `place` reads; 0 for what lies everywhere.
static int64_t eini_dist_box_bytes(const ein_dist *d, const eini_dist_stmt *e, int64_t place, int o,
                                   eini_dist_room *m) {
  int t = e->s->operand[o];
  if (d->tensor[t].ndefine == 0 || eini_operand_first(e->s, o) < o) return 0;
  eini_dist_box(e, place, o, m);  // a scalar has a place even if it is not read
  return eini_dist_pad((int64_t)eini_box_volume(d->g->tensor[t].rank, m->from, m->to) *
                       (int64_t)ein_dtype_size(d->g->tensor[t].dtype));
}

// ---- memory of the places ----

typedef struct eini_dist_sizes {
  const ein_dist *d;
  int64_t *in, *out;        // bytes of messages, per place
} eini_dist_sizes;

static ein_status eini_dist_size_transfer(void *user, const eini_dist_transfer *t,
                                          eini_dist_room *m) {
  eini_dist_sizes *z = (eini_dist_sizes *)user;
  (void)m;
  if (t->home == t->place) return EIN_OK;
  z->in[t->place] += eini_dist_pad(t->bytes);
  z->out[t->home] += eini_dist_pad(t->bytes);
  return EIN_OK;
}

// Sizes of what lives at place q because of statement k: block, partial result, operands, inbox,
// outbox, and the partial result that is merged next.
static void eini_dist_sizes_at(const ein_dist *d, int k, int64_t q, const eini_dist_sizes *z,
                               eini_dist_room *m, int64_t size[6]) {
  const eini_dist_stmt *e = &d->stmt[k];
  memset(size, 0, 6 * sizeof *size);
  size[3] = z->in[(int64_t)k * d->fabric.places + q];
  size[4] = z->out[(int64_t)k * d->fabric.places + q];
  if (q >= e->space.ntask) return;
  int64_t n = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
  int64_t wide = n * e->wide;
  if (part == 0)
    size[0] = eini_dist_pad(n * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype));
  if (part > 0 || (e->space.nagg > 1 && !e->direct)) size[1] = eini_dist_pad(wide);
  for (int o = 0; o < e->s->noperand; o++) size[2] += eini_dist_box_bytes(d, e, q, o, m);
  if (part % 2 == 0 && part + 1 < e->space.nagg) size[5] = eini_dist_pad(wide);
}

// Lays out the memory of place q. Blocks live until their last reader, the rest for a statement.
static ein_status eini_dist_place_memory(ein_dist *d, int64_t q, const eini_dist_sizes *z,
                                         eini_item *item, int *alive, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  int64_t *at[6], size[6];
  int n = 0;
  at[0] = c->block, at[1] = c->partial, at[2] = c->operand, at[3] = c->inbox, at[4] = c->outbox;
  at[5] = c->merged;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
    eini_dist_sizes_at(d, k, q, z, m, size);
    for (int i = 0; i < 6; i++) {
      item[n].at = &at[i][(int64_t)k * d->fabric.places + q];
      item[n].from = item[n].to = k;
      if (i == 0 && t->nread > 0) item[n].to = (int)eini_max64(k, t->read[t->nread - 1]);
      if (d->desc.no_reuse) item[n].to = d->nstmt;
      item[n++].bytes = size[i];
    }
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, &c->bytes[q]));
  d->info.place_bytes = eini_max64(d->info.place_bytes, c->bytes[q]);
  return EIN_OK;
}

static ein_status eini_dist_copies_init(ein_dist *d, eini_dist_room *m) {
  eini_arena *a = &d->arena;
  int64_t n = (int64_t)d->nstmt * d->fabric.places;
  eini_dist_copies *c = d->copies = EINI_NEW(a, eini_dist_copies, 1);
  eini_item *item = EINI_NEW(a, eini_item, 6 * (int64_t)d->nstmt);
  int *alive = EINI_NEW(a, int, 6 * (int64_t)d->nstmt);
  eini_dist_sizes all, one;
  all.d = one.d = d;
  all.in = EINI_NEW(a, int64_t, n);
  all.out = EINI_NEW(a, int64_t, n);
  if (c == NULL || item == NULL || alive == NULL || all.in == NULL || all.out == NULL)
    return EIN_ERR_NO_MEMORY;
  int64_t *mem = EINI_NEW(a, int64_t, 6 * n);
  c->bytes = EINI_NEW(a, int64_t, d->fabric.places);
  if (mem == NULL || c->bytes == NULL) return EIN_ERR_NO_MEMORY;
  c->block = mem, c->partial = mem + n, c->operand = mem + 2 * n, c->inbox = mem + 3 * n;
  c->outbox = mem + 4 * n, c->merged = mem + 5 * n;
  for (int k = 0; k < d->nstmt; k++) {
    one.in = all.in + (int64_t)k * d->fabric.places;
    one.out = all.out + (int64_t)k * d->fabric.places;
    for (int64_t q = 0; q < d->stmt[k].space.ntask; q++)
      EINI_TRY(eini_dist_task_transfers(d, k, q, m, eini_dist_size_transfer, &one));
    c->most = eini_max64(c->most, 2 * d->stmt[k].messages);
  }
  for (int64_t q = 0; q < d->fabric.places; q++)
    EINI_TRY(eini_dist_place_memory(d, q, &all, item, alive, m));
  return EIN_OK;
}

// ---- runs ----

// The status of a process becomes that of all.
static ein_status eini_dist_agree(const ein_fabric *f, ein_status st) {
  ein_status all = st;
  if (f->agree_fn == NULL) return st;  // one process drives all places
  ein_status failed = f->agree_fn(f->user, &all);
  return failed != EIN_OK ? failed : all;
}

typedef struct eini_dist_mail {
  eini_dist_exec *x;
  int stmt;
  char **mem;               // per driven place
  ein_status *failed;       // per driven place
  int64_t *in, *out;        // per place: bytes of its boxes already used
  ein_ticket *ticket;
  int64_t nticket;
  eini_dist_worker *w;
} eini_dist_mail;

static char *eini_mail_at(const eini_dist_mail *b, const int64_t *at, int k, int64_t q) {
  const ein_dist *d = b->x->d;
  return b->mem[q - d->fabric.first] + at[(int64_t)k * d->fabric.places + q];
}

static eini_dist_end eini_mail_end(eini_dist_kind kind, char *data, const int64_t *stride) {
  eini_dist_end e;
  e.kind = kind;
  e.data = data;
  e.stride = stride;
  return e;
}

// Where the elements of a transfer are at home: in the block, or in the caller's pinned input.
static eini_dist_end eini_mail_home(const eini_dist_mail *b, const eini_dist_transfer *t,
                                    const eini_dist_room *m) {
  const ein_dist *d = b->x->d;
  int tensor = d->stmt[t->define].s->out;
  if (t->define >= d->nstmt && d->desc.blocks)  // its indices are the axes
    return eini_mail_end(EINI_AT_BLOCK, eini_dist_bound(d, b->x->run, tensor,
                                                        (int)t->home - d->fabric.first), NULL);
  if (t->define >= d->nstmt)
    return eini_mail_end(EINI_AT_BOX, eini_dist_at(b->x, tensor, m->from),
                         d->tensor[tensor].stride);
  return eini_mail_end(EINI_AT_BLOCK, eini_mail_at(b, d->copies->block, t->define, t->home), NULL);
}

// Posts one side or both of a transfer of `bytes`, which is counted where it is received.
static ein_status eini_mail_post(eini_dist_mail *b, int64_t from, int64_t to, const char *src,
                                 char *dst, int64_t bytes) {
  const ein_fabric *f = &b->x->d->fabric;
  if (eini_dist_driven(b->x->d, to)) {
    EINI_TRY(f->recv_fn(f->user, (int)to, (int)from, b->stmt, dst, (size_t)bytes,
                        &b->ticket[b->nticket]));
    b->nticket++;
    const eini_dist_read r = {bytes, 1, NULL};
    eini_dist_count(b->x->stats, b->stmt, to, 0, &r);
  }
  if (eini_dist_driven(b->x->d, from)) {
    EINI_TRY(f->send_fn(f->user, (int)from, (int)to, b->stmt, src, (size_t)bytes,
                        &b->ticket[b->nticket]));
    b->nticket++;
    eini_dist_sent(b->x->stats, from, bytes);
  }
  return EIN_OK;
}

static ein_status eini_mail_wait(eini_dist_mail *b) {
  const ein_fabric *f = &b->x->d->fabric;
  for (int64_t i = 0; i < b->nticket; i++) EINI_TRY(f->wait_fn(f->user, b->ticket[i]));
  b->nticket = 0;
  return EIN_OK;
}

// Sends and receives one transfer.
static ein_status eini_mail_transfer(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_mail *b = (eini_dist_mail *)user;
  const ein_dist *d = b->x->d;
  const eini_dist_copies *c = d->copies;
  char *src = NULL, *dst = NULL;
  if (t->home == t->place) return EIN_OK;
  if (eini_dist_driven(d, t->place)) {
    dst = eini_mail_at(b, c->inbox, b->stmt, t->place) + b->in[t->place];
    b->in[t->place] += eini_dist_pad(t->bytes);
  }
  if (eini_dist_driven(d, t->home)) {
    src = eini_mail_at(b, c->outbox, b->stmt, t->home) + b->out[t->home];
    b->out[t->home] += eini_dist_pad(t->bytes);
    eini_dist_end to = eini_mail_end(EINI_AT_MESSAGE, src, NULL), at = eini_mail_home(b, t, m);
    eini_dist_move(&d->stmt[t->define].space, t->home, m->from, m->to,
                   (size_t)(t->bytes / t->elements), &to, &at, m);
  }
  return eini_mail_post(b, t->home, t->place, src, dst, t->bytes);
}

// Puts what a transfer brought, or what is at home, into the operand's box.
static ein_status eini_mail_unpack(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_mail *b = (eini_dist_mail *)user;
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  int here = t->home == t->place, rank = d->g->tensor[e->s->operand[t->operand]].rank;
  eini_dist_end to, at = eini_mail_end(EINI_AT_MESSAGE, NULL, NULL);
  if (here) {
    at = eini_mail_home(b, t, m);
  } else {
    at.data = eini_mail_at(b, d->copies->inbox, b->stmt, t->place) + b->in[t->place];
    b->in[t->place] += eini_dist_pad(t->bytes);
  }
  for (int r = 0; r < rank; r++) m->len[r] = m->to[r] - m->from[r];
  eini_dist_dense(rank, m->len, m->box);
  union { const void *c; char *v; } u;
  u.c = b->w->in[t->operand];
  to = eini_mail_end(EINI_AT_BOX, u.v, m->box);
  eini_dist_move(&d->stmt[t->define].space, t->home, m->from, m->to,
                 (size_t)(t->bytes / t->elements), &to, &at, m);
  return EIN_OK;
}

// Addresses of the operands of task q, by operand; boxes with holes are zero first.
static void eini_mail_operands(eini_dist_mail *b, int64_t q) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  eini_dist_room *m = &b->w->room;
  char *next = eini_mail_at(b, d->copies->operand, b->stmt, q);
  for (int o = 0; o < e->s->noperand; o++) {
    int t = e->s->operand[o];
    int64_t bytes = eini_dist_box_bytes(d, e, q, o, m);
    b->w->in[o] = next;
    if (d->tensor[t].ndefine == 0) {
      if (d->desc.blocks)
        b->x->base[t] = eini_dist_bound(d, b->x->run, t, (int)q - d->fabric.first);
      eini_dist_box(e, q, o, m);
      b->w->in[o] = eini_dist_at(b->x, t, m->from);
    } else if (bytes > 0 && d->stmt[d->tensor[t].define[0]].s->rest == EIN_REST_ZERO) {
      memset(next, 0, (size_t)bytes);
    }
    next += bytes;
  }
}

// Unpacks and computes at place q.
static ein_status eini_mail_compute(eini_dist_mail *b, int64_t q) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  eini_dist_room *m = &b->w->room;
  int n = 0, own = eini_space_partial(&e->space, q) == 0 && (e->space.nagg == 1 || e->direct);
  b->in[q] = 0;
  eini_mail_operands(b, q);
  EINI_TRY(eini_dist_task_transfers(d, b->stmt, q, m, eini_mail_unpack, b));
  for (int o = 0; o < e->s->noperand; o++)
    if (eini_operand_first(e->s, o) == o) b->w->in[n++] = b->w->in[o];
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(d, e, b->w);
  return eini_dist_execute_block(
      b->x, b->w, e, q, eini_mail_at(b, own ? d->copies->block : d->copies->partial, b->stmt, q));
}

static ein_status eini_mail_merge(eini_dist_mail *b, int64_t q, int level) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_dist_copies *c = d->copies;
  int first = eini_space_partial(&e->space, q) == 0;
  int last = first && (int64_t)2 << level >= e->space.nagg;
  b->w->in[0] = eini_mail_at(b, first && e->direct ? c->block : c->partial, b->stmt, q);
  if (e->folder != NULL) {
    eini_dist_room *m = &b->w->room;
    eini_space_ranges(&e->space, q, m->lo, m->hi);
    for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
    eini_dist_dense(e->s->nfree, m->len, m->dst);
    eini_dist_states_join(b->x, b->w, e, q, eini_mail_at(b, c->partial, b->stmt, q),
                          eini_mail_at(b, c->merged, b->stmt, q),
                          last ? eini_mail_at(b, c->block, b->stmt, q) : NULL, m->dst);
    return EIN_OK;
  }
  b->w->in[1] = eini_mail_at(b, c->merged, b->stmt, q);
  void *out = eini_mail_at(b, first && (e->direct || last) ? c->block : c->partial, b->stmt, q);
  return eini_dist_execute_plan(b->x, b->w, last ? e->last[q] : e->merge[q], &out);
}

// A job at place q; a place that failed does no more, but goes on sending, so that nobody waits in
// vain.
static void eini_mail_job(eini_dist_mail *b, int64_t q, int level) {
  static const eini_dist_read nothing = {0, 0, NULL};
  const ein_dist *d = b->x->d;
  ein_status *st = &b->failed[q - d->fabric.first];
  ein_dist_event v;
  if (*st != EIN_OK) return;
  memset(&v, 0, sizeof v);
  v.begin = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  *st = level < 0 ? eini_mail_compute(b, q) : eini_mail_merge(b, q, level);
  eini_dist_count(b->x->stats, b->stmt, q, 1, &nothing);
  v.end = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  v.stmt = b->stmt;
  v.place = (int)q;
  v.level = level;
  if (*st == EIN_OK && d->desc.event_fn != NULL)
    *st = d->desc.event_fn(d->desc.event_user, &v);
}

// Merges at one level of the tree: right halves travel to left ones.
static ein_status eini_mail_level(eini_dist_mail *b, int level) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_space *x = &e->space;
  const int64_t step = (int64_t)1 << level;
  for (int turn = 0; turn < 2; turn++) {
    for (int64_t q = 0; q < x->ntask; q++) {
      int64_t part = eini_space_partial(x, q);
      if (part % (2 * step) != 0 || part + step >= x->nagg) continue;
      if (turn > 0) {
        if (eini_dist_driven(d, q)) eini_mail_job(b, q, level);
        continue;
      }
      int64_t from = eini_space_partner(x, q, part + step);
      int64_t bytes = eini_dist_elements(x, q, &b->w->room) *
                      e->wide;
      char *dst = eini_dist_driven(d, q) ? eini_mail_at(b, d->copies->merged, b->stmt, q) : NULL;
      const char *src = eini_dist_driven(d, from)
                            ? eini_mail_at(b, d->copies->partial, b->stmt, from) : NULL;
      if (bytes > 0) EINI_TRY(eini_mail_post(b, from, q, src, dst, bytes));
    }
    EINI_TRY(eini_mail_wait(b));
  }
  return EIN_OK;
}

// The blocks of an output at driven places go to the caller's view, or to what it binds for each.
static void eini_mail_output(eini_dist_mail *b) {
  const ein_dist *d = b->x->d;
  const eini_dist_stmt *e = &d->stmt[b->stmt];
  const eini_tensor *t = &d->g->tensor[e->s->out];
  eini_dist_room *m = &b->w->room;
  if (t->role != EIN_ROLE_OUTPUT) return;
  if (e->s->rest == EIN_REST_ZERO) eini_dist_zero(b->x, e->s->out, m);
  for (int64_t q = 0; q < e->space.ntask; q++) {
    if (!eini_dist_driven(d, q) || eini_space_partial(&e->space, q) != 0) continue;
    for (int r = 0; r < t->rank; r++) {
      m->from[r] = 0;
      m->to[r] = t->shape[r];
      if (d->desc.blocks) eini_dist_own(d, e->s->out, q, r, &m->from[r], &m->to[r]);
      m->len[r] = m->to[r] - m->from[r];
    }
    eini_dist_dense(t->rank, m->len, m->box);
    eini_dist_end to = eini_mail_end(EINI_AT_BOX, b->x->base[e->s->out],
                                     d->tensor[e->s->out].stride);
    if (d->desc.blocks)
      to = eini_mail_end(EINI_AT_BOX, eini_dist_bound(d, b->x->run, e->s->out,
                                                      (int)q - d->fabric.first), m->box);
    eini_dist_end at = eini_mail_end(EINI_AT_BLOCK,
                                     eini_mail_at(b, d->copies->block, b->stmt, q), NULL);
    eini_dist_move(&e->space, q, m->from, m->to, ein_dtype_size(t->dtype), &to, &at, m);
  }
}

static ein_status eini_mail_stmt(eini_dist_mail *b, int k) {
  const ein_dist *d = b->x->d;
  const eini_space *x = &d->stmt[k].space;
  b->stmt = k;
  memset(b->in, 0, (size_t)d->fabric.places * sizeof *b->in);
  memset(b->out, 0, (size_t)d->fabric.places * sizeof *b->out);
  for (int64_t q = 0; q < x->ntask; q++)
    EINI_TRY(eini_dist_task_transfers(d, k, q, &b->w->room, eini_mail_transfer, b));
  EINI_TRY(eini_mail_wait(b));
  for (int64_t q = 0; q < x->ntask; q++)
    if (eini_dist_driven(d, q)) eini_mail_job(b, q, EINI_DIST_BLOCK);
  for (int level = 0; (int64_t)1 << level < x->nagg; level++) EINI_TRY(eini_mail_level(b, level));
  eini_mail_output(b);
  return EIN_OK;
}

static ein_status eini_dist_copy_run(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  eini_arena arena;
  eini_dist_mail b;
  ein_status st = EIN_OK;
  memset(&b, 0, sizeof b);
  eini_arena_init(&arena, &d->al);
  b.x = x;
  b.w = &x->worker[0];
  b.mem = EINI_NEW(&arena, char *, d->fabric.count);
  b.failed = EINI_NEW(&arena, ein_status, d->fabric.count);
  b.in = EINI_NEW(&arena, int64_t, d->fabric.places);
  b.out = EINI_NEW(&arena, int64_t, d->fabric.places);
  b.ticket = EINI_NEW(&arena, ein_ticket, d->copies->most);
  if (b.mem == NULL || b.failed == NULL || b.in == NULL || b.out == NULL || b.ticket == NULL)
    st = EIN_ERR_NO_MEMORY;
  int64_t bytes = 0;
  for (int i = 0; i < d->fabric.count && st == EIN_OK; i++) {
    bytes += d->copies->bytes[d->fabric.first + i];
    b.mem[i] = (char *)eini_new(&arena, d->copies->bytes[d->fabric.first + i] + EINI_ALIGN, 1);
    if (b.mem[i] == NULL) st = EIN_ERR_NO_MEMORY;
    else b.mem[i] += (EINI_ALIGN - (uintptr_t)b.mem[i] % EINI_ALIGN) % EINI_ALIGN;
  }
  if (st == EIN_OK && d->fabric.room_fn != NULL)
    st = d->fabric.room_fn(d->fabric.user, d->copies->most, bytes);
  st = eini_dist_agree(&d->fabric, st);  // before anybody waits for a message
  if (st == EIN_OK) {
    for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_mail_stmt(&b, k);
    for (int i = 0; i < d->fabric.count && st == EIN_OK; i++) st = b.failed[i];
    st = eini_dist_agree(&d->fabric, st);
  }
  eini_arena_free(&arena);
  return st;
}

// ---- a fabric of one process ----

// A send or receive that has no partner yet.
typedef struct eini_post {
  ein_ticket ticket;
  int from, to, send;
  int64_t tag;
  const void *src;
  void *dst;
  size_t bytes;
} eini_post;

typedef struct eini_copying {
  ein_allocator al;
  eini_post *post;          // in the order they were made
  int64_t npost, cap;
  ein_ticket last;
  int64_t messages, bytes;  // moved
} eini_copying;

// Completes with the first post that matches, or keeps the new one.
static ein_status eini_copying_post(eini_copying *c, const eini_post *p, ein_ticket *ticket) {
  *ticket = 0;
  for (int64_t i = 0; i < c->npost; i++) {
    const eini_post *o = &c->post[i];
    if (o->send == p->send || o->from != p->from || o->to != p->to || o->tag != p->tag) continue;
    if (o->bytes != p->bytes) return EIN_ERR_INTERNAL;
    if (p->bytes > 0) memcpy(p->send ? o->dst : p->dst, p->send ? p->src : o->src, p->bytes);
    c->messages++;
    c->bytes += (int64_t)p->bytes;
    c->npost--;
    memmove(c->post + i, c->post + i + 1, (size_t)(c->npost - i) * sizeof *c->post);
    return EIN_OK;
  }
  if (c->npost == c->cap) {
    int64_t cap = c->cap < 16 ? 16 : 2 * c->cap;
    eini_post *more = (eini_post *)c->al.alloc_fn((size_t)cap * sizeof *more, 16, c->al.user);
    if (more == NULL) return EIN_ERR_NO_MEMORY;
    if (c->npost > 0) memcpy(more, c->post, (size_t)c->npost * sizeof *more);
    if (c->post != NULL) c->al.free_fn(c->post, (size_t)c->cap * sizeof *more, c->al.user);
    c->post = more;
    c->cap = cap;
  }
  c->post[c->npost] = *p;
  *ticket = c->post[c->npost++].ticket = ++c->last;
  return EIN_OK;
}

static ein_status eini_copying_send(void *user, int from, int to, int64_t tag, const void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_post p;
  memset(&p, 0, sizeof p);
  p.from = from;
  p.to = to;
  p.tag = tag;
  p.send = 1;
  p.src = data;
  p.bytes = bytes;
  return eini_copying_post((eini_copying *)user, &p, ticket);
}

static ein_status eini_copying_recv(void *user, int to, int from, int64_t tag, void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_post p;
  memset(&p, 0, sizeof p);
  p.from = from;
  p.to = to;
  p.tag = tag;
  p.dst = data;
  p.bytes = bytes;
  return eini_copying_post((eini_copying *)user, &p, ticket);
}

static ein_status eini_copying_test(void *user, ein_ticket ticket, int *done) {
  const eini_copying *c = (const eini_copying *)user;
  *done = 1;
  for (int64_t i = 0; i < c->npost; i++) *done &= c->post[i].ticket != ticket;
  return EIN_OK;
}

// What has no partner by now will have none: nobody else can post.
static ein_status eini_copying_wait(void *user, ein_ticket ticket) {
  int done;
  EINI_TRY(eini_copying_test(user, ticket, &done));
  return done ? EIN_OK : EIN_ERR_INTERNAL;
}

static void eini_copying_destroy(void *user) {
  eini_copying *c = (eini_copying *)user;
  ein_allocator al = c->al;
  if (c->post != NULL) al.free_fn(c->post, (size_t)c->cap * sizeof *c->post, al.user);
  al.free_fn(c, sizeof *c, al.user);
}
