// ================================================================================================
// >>dist-moves  what places with memory of their own send, receive and keep
// Takes an ein_dist whose fabric moves data; gives, for the places of this process, the moves of
// every statement and where in a place's memory things lie. Blocks are stored by the free indices
// of their statement, dense; a task's operands are boxes.
// ================================================================================================

// ---- blocks and boxes ----

// One side of a move of a block's elements in a box.
typedef enum eini_dist_kind {
  EINI_AT_BLOCK,            // the block, by free indices
  EINI_AT_MESSAGE,          // these elements alone, in order
  EINI_AT_BOX               // by coordinates, from the corner of the box
} eini_dist_kind;

typedef struct eini_dist_end {
  eini_dist_kind kind;
  char *data;
  const int64_t *stride;    // of a box, or of the tensor that it is in
  int away;                 // 1: in the provider's memory
} eini_dist_end;

// Strides of one side by free indices; gives the place of the point a, in elements.
static int64_t eini_dist_end_at(const eini_space *x, const eini_dist_end *e, const int64_t *from,
                                const int64_t *lo, const int64_t *hi, const int64_t *a,
                                const int64_t *b, int64_t *stride) {
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
  return at;
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

// The elements of the block at `place` that lie in a box, as strides of both sides by free indices
// and extents in m->bto; 0: there are none, or they are not a box of free indices.
static int eini_dist_sides(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, const eini_dist_end *dst, const eini_dist_end *src,
                           eini_dist_room *m, int64_t *at) {
  eini_space_ranges(x, place, m->blo, m->bhi);
  if (eini_zrange_empty(x->s->nfree, m->blo, m->bhi) || !eini_dist_is_box(x)) return 0;
  for (int i = 0; i < x->s->nfree; i++) {
    m->bfrom[i] = m->blo[i];
    m->bto[i] = m->bhi[i];
  }
  if (!eini_box_narrow(&x->s->out_map, x->s->nfree, from, to, m->bfrom, m->bto)) return 0;
  at[0] = eini_dist_end_at(x, dst, from, m->blo, m->bhi, m->bfrom, m->bto, m->dst);
  at[1] = eini_dist_end_at(x, src, from, m->blo, m->bhi, m->bfrom, m->bto, m->src);
  for (int i = 0; i < x->s->nfree; i++) m->bto[i] -= m->bfrom[i];
  return 1;
}

// Moves the elements of the block at `place` that lie in a box.
static void eini_dist_move(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, size_t size, const eini_dist_end *dst,
                           const eini_dist_end *src, eini_dist_room *m) {
  int64_t at[2];
  if (eini_dist_sides(x, place, from, to, dst, src, m, at))
    eini_dist_copy(x->s->nfree, m->bto, dst->data + at[0] * (int64_t)size, m->dst,
                   src->data + at[1] * (int64_t)size, m->src, size);
  else if (!eini_zrange_empty(x->s->nfree, m->blo, m->bhi) && !eini_dist_is_box(x))
    eini_dist_move_points(x, from, to, size, dst, src, m);
}

// Do both sides lie alike, so that nothing has to be copied? *at: where the first element is in
// dst and in src.
static int eini_dist_alike(const eini_space *x, int64_t place, const int64_t *from,
                           const int64_t *to, const eini_dist_end *dst, const eini_dist_end *src,
                           eini_dist_room *m, int64_t *at) {
  if (!eini_dist_sides(x, place, from, to, dst, src, m, at)) return 0;
  for (int i = 0; i < x->s->nfree; i++)
    if (m->bto[i] > 1 && m->dst[i] != m->src[i]) return 0;
  return 1;
}

// ---- the moves of a statement ----

// The tasks of statement r that read block q of statement k through operand o, one after another:
// their transfers.
static ein_status eini_dist_block_transfers(const ein_dist *d, int r, int o, int k, int64_t q,
                                            eini_dist_room *m, eini_dist_transfer_fn fn,
                                            void *user) {
  const eini_dist_stmt *e = &d->stmt[r];
  const eini_space *block = &d->stmt[k].space;
  eini_dist_transfer t = {0, q, o, k, 0, 0};
  eini_dist_near w;
  if (q >= block->ntask || eini_space_partial(block, q) != 0) return EIN_OK;
  eini_dist_block_hull(&d->stmt[k], q, m);
  int more = eini_dist_near_begin(&e->space, &e->s->proj[o], e->s->nindex, m->from, m->to, m, &w);
  for (; more; more = eini_dist_near_next(&w)) {
    t.place = eini_dist_near_place(&e->space, &w);
    if (!eini_dist_box(e, t.place, o, m)) continue;
    t.elements = eini_dist_overlap(block, q, m->from, m->to, m);
    t.bytes = t.elements * (int64_t)ein_dtype_size(d->g->tensor[e->s->operand[o]].dtype);
    if (t.elements > 0) EINI_TRY(fn(user, &t, m));
  }
  return EIN_OK;
}

enum { EINI_FOLLOWS = -2 };

// A transfer as one of its places sees it. Messages are dense, elements in the order of the free
// indices of the statement that defines them.
typedef struct eini_dist_moved {
  int32_t kind;             // EINI_JOB_RECEIVE, EINI_JOB_SEND, or EINI_JOB_NONE: home == place
  int32_t place, peer;      // place: among those of the process; peer: the other one
  int32_t operand;          // of the reading statement; -1: a partial result
  int32_t define;           // the statement that defines the elements
  int32_t level;            // of a partial result: where in the tree it is merged; else -1
  int32_t direct;           // 1: as it lies in the block, or in the box, nothing is copied
  int32_t away;             // 1: the message is in the provider's memory
  int32_t job;
  int32_t group;            // of places that get one message; EINI_FOLLOWS: another move posts it
  int32_t turn, turns;      // in the group, in a run
  int64_t elements, bytes;
  int64_t at;               // in the inbox or outbox; direct: in the box or the block; bytes
} eini_dist_moved;

// The memory of places. Each has an entry per statement and place of this process. Messages are
// packed in one of two boxes, at home and in the provider's memory.
enum { EINI_AT_OPERAND, EINI_AT_INBOX, EINI_AT_OUTBOX, EINI_AT_OUTSIDE, EINI_AT_MERGED,
       EINI_AT_OWN, EINI_AT_PART, EINI_AT_KINDS };

typedef struct eini_dist_copies {
  int64_t *at[EINI_AT_KINDS], *size[EINI_AT_KINDS];  // in bytes
  int64_t *first;           // of its moves; one more at the end
  eini_dist_moved *move;
  int64_t nmove, cap;
  int64_t **box;            // where its operands lie in EINI_AT_OPERAND; -1 - a move: in the block
                            //   that the move would copy
  int64_t *bytes, *start;   // per place of this process: of its memory, and where that begins;
                            //   what is in the provider's memory has addresses behind these
  int64_t total;
} eini_dist_copies;

static int64_t eini_dist_pad(int64_t bytes) {
  return (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// The entry of statement k and a place of this process.
static int64_t eini_dist_entry(const ein_dist *d, int64_t k, int64_t q) {
  return k * d->fabric.count + q - d->fabric.first;
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

static eini_dist_end eini_dist_end_of(eini_dist_kind kind, char *data, const int64_t *stride,
                                      int away) {
  eini_dist_end e;
  e.kind = kind;
  e.data = data;
  e.stride = stride;
  e.away = away;
  return e;
}

// The box in m->from and m->to, as it lies in a task's memory; strides go to m->box.
static eini_dist_end eini_dist_end_box(int rank, char *data, int away, eini_dist_room *m) {
  for (int r = 0; r < rank; r++) m->len[r] = m->to[r] - m->from[r];
  eini_dist_dense(rank, m->len, m->box);
  return eini_dist_end_of(EINI_AT_BOX, data, m->box, away);
}

// Is what places have of statement k in the provider's memory?
static int eini_dist_is_away(const ein_dist *d, int k, int kind) {
  const eini_dist_stmt *e = &d->stmt[k];
  switch (kind) {
    case EINI_AT_OPERAND: return e->away;
    case EINI_AT_INBOX: return e->away && d->carried;
    case EINI_AT_OUTSIDE: return 1;
    case EINI_AT_MERGED: return e->part_away && d->carried;
    case EINI_AT_OWN: return e->own_away;  // of a pinned input: no
    case EINI_AT_PART: return e->part_away;
    default: return 0;
  }
}

// Does the caller hold the blocks of a statement, as it stands for a pinned input that is whole?
static int eini_dist_whole(const ein_dist *d, int define) {
  return define >= d->nstmt && !d->desc.blocks;
}

// How the elements of a transfer lie at home, without data: in the block, or in the caller's
// pinned input, from the corner of the box.
static eini_dist_end eini_dist_end_home(const ein_dist *d, int define) {
  const int whole = eini_dist_whole(d, define);
  return eini_dist_end_of(whole ? EINI_AT_BOX : EINI_AT_BLOCK, NULL,
                          d->tensor[d->stmt[define].s->out].stride,
                          eini_dist_is_away(d, define, EINI_AT_OWN));
}

typedef struct eini_dist_noting {
  ein_dist *d;
  int stmt, send;
  int64_t place;            // whose moves are noted
  int64_t in, out[2];       // bytes of its boxes so far: out: at home and away
} eini_dist_noting;

static eini_dist_moved *eini_dist_note_new(eini_dist_noting *z, int kind, int64_t peer,
                                           int64_t bytes) {
  eini_dist_copies *c = z->d->copies;
  eini_dist_moved *all = (eini_dist_moved *)eini_grow(&z->d->arena, c->move, c->nmove, &c->cap,
                                                      sizeof *all);
  if (all == NULL) return NULL;
  c->move = all;
  eini_dist_moved *v = &all[c->nmove++];
  memset(v, 0, sizeof *v);
  v->kind = kind;
  v->place = (int32_t)(z->place - z->d->fabric.first);
  v->peer = (int32_t)peer;
  v->operand = v->define = v->level = v->job = v->group = -1;
  v->bytes = bytes;
  return v;
}

// Room to pack a message in.
static int64_t eini_dist_outbox(eini_dist_noting *z, int away, int64_t bytes) {
  const int64_t at = z->out[away];
  z->out[away] += eini_dist_pad(bytes);
  return at;
}

// Notes a transfer: one that a task receives, or has at home, or that a place sends.
static ein_status eini_dist_note(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  eini_dist_noting *z = (eini_dist_noting *)user;
  const ein_dist *d = z->d;
  const int here = t->home == t->place, rank = d->g->tensor[d->stmt[t->define].s->out].rank;
  const eini_space *x = &d->stmt[t->define].space;
  const int zeros = d->tensor[d->stmt[t->define].s->out].define[0] < d->nstmt &&
                    d->stmt[t->define].s->rest == EIN_REST_ZERO;
  const eini_dist_end message = eini_dist_end_of(EINI_AT_MESSAGE, NULL, NULL, 0);
  const eini_dist_end home = eini_dist_end_home(d, t->define);
  const int away = eini_dist_is_away(d, z->stmt, EINI_AT_OPERAND);
  const int64_t size = t->bytes / t->elements;
  int64_t at[2];
  if (z->send && here) return EIN_OK;
  eini_dist_moved *v = eini_dist_note_new(
      z, here ? EINI_JOB_NONE : z->send ? EINI_JOB_SEND : EINI_JOB_RECEIVE,
      z->send ? t->place : t->home, t->bytes);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  v->operand = t->operand;
  v->define = t->define;
  v->elements = t->elements;
  const eini_dist_end box = eini_dist_end_box(rank, NULL, away, m);
  v->away = (z->send ? home.away : away) && d->carried;
  if (z->send) {
    v->direct = v->away == home.away &&
                eini_dist_alike(x, t->home, m->from, m->to, &message, &home, m, at);
    v->at = v->direct ? at[1] * size : eini_dist_outbox(z, v->away, t->bytes);
  } else if (here) {  // all of the box, as the block has it
    v->direct = !zeros && t->elements == (int64_t)eini_box_volume(rank, m->from, m->to) &&
                home.away == away &&
                eini_dist_alike(x, t->home, m->from, m->to, &box, &home, m, at) && at[0] == 0;
    v->at = v->direct ? at[1] * size : 0;
  } else {
    v->direct = !zeros && v->away == away &&
                eini_dist_alike(x, t->home, m->from, m->to, &box, &message, m, at);
    v->at = v->direct ? at[0] * size : z->in;
    if (!v->direct) z->in += eini_dist_pad(t->bytes);
  }
  return EIN_OK;
}

// Notes the partial results that task q of a statement receives and sends.
static ein_status eini_dist_note_partials(eini_dist_noting *z, eini_dist_room *m) {
  const eini_dist_stmt *e = &z->d->stmt[z->stmt];
  const int64_t part = eini_space_partial(&e->space, z->place);
  const int64_t n = eini_dist_elements(&e->space, z->place, m);
  for (int l = 0; l < e->levels && n > 0; l++) {
    const int64_t step = (int64_t)1 << l, low = part & -part;
    const int merges = eini_dist_merges(&e->space, z->place, l);
    if (!merges && low != step) continue;
    const int64_t other = merges ? part + step : part - step;
    eini_dist_moved *v = eini_dist_note_new(z, merges ? EINI_JOB_RECEIVE : EINI_JOB_SEND,
                                            eini_space_partner(&e->space, z->place, other),
                                            n * e->wide);
    if (v == NULL) return EIN_ERR_NO_MEMORY;
    v->level = l;
    v->define = z->stmt;
    v->away = e->part_away && z->d->carried;
    v->direct = merges || v->away == e->part_away;
    if (!v->direct) v->at = eini_dist_outbox(z, 0, n * e->wide);
    v->elements = n;
  }
  return EIN_OK;
}

// Where the operands of a task lie.
static ein_status eini_dist_boxes(ein_dist *d, int k, int64_t q, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  int64_t *box = c->box[entry] = EINI_NEW(&d->arena, int64_t, e->s->noperand);
  if (box == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = c->first[entry]; i < c->nmove; i++) {
    const eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_NONE && v->direct) box[v->operand] = -1 - i;
  }
  for (int o = 0; o < e->s->noperand; o++) {
    if (box[o] < 0) continue;
    box[o] = c->size[EINI_AT_OPERAND][entry];
    c->size[EINI_AT_OPERAND][entry] += eini_dist_box_bytes(d, e, q, o, m);
  }
  return EIN_OK;
}

// The moves of statement k at place q, and what they take there.
static ein_status eini_dist_note_place(ein_dist *d, int k, int64_t q, eini_dist_room *m) {
  eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  const int works = q < e->space.ntask;
  eini_dist_noting z = {d, k, 0, q, 0, {0, 0}};
  c->first[entry] = c->nmove;
  if (works) EINI_TRY(eini_dist_task_transfers(d, e, q, m, eini_dist_note, &z));
  if (works) EINI_TRY(eini_dist_boxes(d, k, q, m));
  z.send = 1;
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    for (int u = 0; u < t->ndefine && eini_operand_first(e->s, o) == o; u++)
      EINI_TRY(eini_dist_block_transfers(d, k, o, t->define[u], q, m, eini_dist_note, &z));
  }
  if (works) EINI_TRY(eini_dist_note_partials(&z, m));
  c->first[entry + 1] = c->nmove;
  c->size[EINI_AT_INBOX][entry] = z.in;
  c->size[EINI_AT_OUTBOX][entry] = z.out[0];
  c->size[EINI_AT_OUTSIDE][entry] = z.out[1];
  if (!works) return EIN_OK;
  const int64_t n = eini_dist_elements(&e->space, q, m), part = eini_space_partial(&e->space, q);
  const int64_t wide = eini_dist_pad(n * e->wide);
  if (part == 0)
    c->size[EINI_AT_OWN][entry] =
        eini_dist_pad(n * (int64_t)ein_dtype_size(d->g->tensor[e->s->out].dtype));
  if (part > 0 || (e->space.nagg > 1 && !e->direct)) c->size[EINI_AT_PART][entry] = wide;
  if (eini_dist_merges(&e->space, q, 0)) c->size[EINI_AT_MERGED][entry] = wide;
  return EIN_OK;
}

// ---- memory of the places ----

// What of statement k lies at a place while statements [from, to] run. What moves is there from
// the statement before on, so that it can move while that one computes.
static eini_item eini_dist_lives(const ein_dist *d, int k, int kind, int64_t entry) {
  const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
  const eini_dist_copies *c = d->copies;
  eini_item x;
  x.from = x.to = k;
  if (kind < EINI_AT_OWN && k > 0 && !d->desc.no_overlap) x.from = k - 1;
  if (kind == EINI_AT_OWN && t->nread > 0) x.to = (int)eini_max64(k, t->read[t->nread - 1]);
  if (d->desc.no_reuse) x.to = d->nstmt;
  x.at = &c->at[kind][entry];
  x.bytes = c->size[kind][entry];
  return x;
}

// What a place has at home or, behind that, in the provider's memory.
static ein_status eini_dist_place_items(ein_dist *d, int i, int away, eini_item *item, int *alive,
                                        int64_t *bytes) {
  eini_dist_copies *c = d->copies;
  int n = 0;
  for (int k = 0; k < d->nstmt; k++) {
    for (int kind = 0; kind < EINI_AT_KINDS; kind++) {
      if (eini_dist_is_away(d, k, kind) != away) continue;
      item[n] = eini_dist_lives(d, k, kind, (int64_t)k * d->fabric.count + i);
      n += item[n].bytes > 0;
    }
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, bytes));
  *bytes = eini_dist_pad(*bytes);
  for (int t = 0; t < n && away; t++)
    if (eini_add_overflow(*item[t].at, c->bytes[i], item[t].at)) return EIN_ERR_TOO_LARGE;
  return EIN_OK;
}

// Lays out the memory of the places.
static ein_status eini_dist_place_memory(ein_dist *d) {
  eini_dist_copies *c = d->copies;
  eini_item *item = EINI_NEW(&d->arena, eini_item, EINI_AT_KINDS * (int64_t)d->nstmt);
  int *alive = EINI_NEW(&d->arena, int, EINI_AT_KINDS * (int64_t)d->nstmt);
  if (item == NULL || alive == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < d->fabric.count; i++) {
    int64_t both;
    EINI_TRY(eini_dist_place_items(d, i, 0, item, alive, &c->bytes[i]));
    EINI_TRY(eini_dist_place_items(d, i, 1, item, alive, &d->held_bytes[i]));
    c->start[i] = c->total;
    if (eini_add_overflow(c->total, c->bytes[i], &c->total) ||
        eini_add_overflow(c->bytes[i], d->held_bytes[i], &both)) return EIN_ERR_TOO_LARGE;
    if ((uint64_t)both > SIZE_MAX / 4) return EIN_ERR_TOO_LARGE;
    d->info.place_bytes = eini_max64(d->info.place_bytes, both);
    d->info.away_bytes = eini_max64(d->info.away_bytes, d->held_bytes[i]);
  }
  return (uint64_t)c->total > SIZE_MAX / 4 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

static ein_status eini_dist_copies_init(ein_dist *d, eini_dist_room *m) {
  eini_arena *a = &d->arena;
  const int64_t n = (int64_t)d->nstmt * d->fabric.count;
  eini_dist_copies *c = d->copies = EINI_NEW(a, eini_dist_copies, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  for (int kind = 0; kind < EINI_AT_KINDS; kind++) {
    c->at[kind] = EINI_NEW(a, int64_t, n);
    c->size[kind] = EINI_NEW(a, int64_t, n);
    if (c->at[kind] == NULL || c->size[kind] == NULL) return EIN_ERR_NO_MEMORY;
  }
  c->first = EINI_NEW(a, int64_t, n + 1);
  c->box = EINI_NEW(a, int64_t *, n);
  c->bytes = EINI_NEW(a, int64_t, d->fabric.count);
  c->start = EINI_NEW(a, int64_t, d->fabric.count);
  if (c->first == NULL || c->box == NULL || c->bytes == NULL || c->start == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++)
    for (int i = 0; i < d->fabric.count; i++)
      EINI_TRY(eini_dist_note_place(d, k, (int64_t)d->fabric.first + i, m));
  return eini_dist_place_memory(d);
}
