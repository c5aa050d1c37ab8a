// ================================================================================================
// >>dtensor  distributed tensors
// Takes layouts and a fabric; gives parts at places, and moves between tensors. All memory that a
// move needs is had, and messages are packed, before processes agree to go on.
// ================================================================================================

struct ein_dtensor {
  eini_arena arena;         // owns everything, itself included, but not what is adopted
  ein_fabric fabric;
  eini_layout l;
  ein_dtype dtype;
  int nparts, *first;       // parts of driven place number i: first[i] .. first[i + 1] - 1
  ein_dtensor_part *part;
};

static ein_dtensor *eini_dtensor_new(ein_ctx *ctx, const ein_fabric *f) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_dtensor *t = EINI_NEW(&arena, ein_dtensor, 1);
  if (t == NULL) return NULL;
  t->arena = arena;
  t->fabric = *f;
  return t;
}

// A part's view and ranges; its strides are row-major, its data comes later.
static ein_status eini_dtensor_part_init(ein_dtensor *t, int64_t block, int place,
                                         ein_dtensor_part *p) {
  const int rank = t->l.rank;
  int64_t *shape = EINI_NEW(&t->arena, int64_t, 3 * (int64_t)rank);
  const int64_t **range = EINI_NEW(&t->arena, const int64_t *, rank);
  int64_t count;
  if (shape == NULL || range == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stride = shape + rank, *n = stride + rank;
  for (int r = 0; r < rank; r++) {
    const eini_runs *run = eini_layout_piece(&t->l, block, r);
    shape[r] = run->length;
    range[r] = run->v;
    n[r] = run->n;
  }
  EINI_TRY(eini_view_elements(rank, shape, &count));
  eini_dist_dense(rank, shape, stride);
  p->place = place;
  p->view = ein_tensor(t->dtype, rank, shape, NULL);
  p->view.strides = stride;
  p->nrange = n;
  p->range = range;
  return EIN_OK;
}

static ein_status eini_dtensor_parts_init(ein_dtensor *t) {
  const ein_fabric *f = &t->fabric;
  t->first = EINI_NEW(&t->arena, int, (int64_t)f->count + 1);
  if (t->first == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->count; i++)
    t->first[i + 1] = t->first[i] + (int)t->l.nheld[f->first + i];
  t->nparts = t->first[f->count];
  t->part = EINI_NEW(&t->arena, ein_dtensor_part, t->nparts);
  if (t->part == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < f->count; i++)
    for (int k = t->first[i]; k < t->first[i + 1]; k++)
      EINI_TRY(eini_dtensor_part_init(t, t->l.held[f->first + i][k - t->first[i]], f->first + i,
                                      &t->part[k]));
  return EIN_OK;
}

// Takes the caller's views as parts, or memory of its own.
static ein_status eini_dtensor_memory(ein_ctx *ctx, ein_dtensor *t, int nadopt,
                                      const ein_ztensor *adopt) {
  if (adopt != NULL && nadopt != t->nparts)
    return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "%d buffers are given, but this process has %d "
                            "parts of the tensor", nadopt, t->nparts);
  for (int k = 0; k < t->nparts; k++) {
    ein_ztensor *v = &t->part[k].view;
    const int64_t n = ein_view_count(v);
    if (adopt == NULL) {
      v->data = eini_new(&t->arena, n, ein_dtype_size(t->dtype));
      if (v->data == NULL) return EIN_ERR_NO_MEMORY;
      continue;
    }
    const ein_ztensor *from = &adopt[k];
    EINI_TRY(eini_view_validate(from));
    if (from->dtype != t->dtype || from->rank != v->rank)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "buffer %d has another dtype or rank than the "
                              "tensor", k);
    for (int r = 0; r < v->rank; r++) {
      if (from->shape[r] != v->shape[r])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d of buffer %d has %lld elements, but "
                                "place %d holds %lld", r, k, (long long)from->shape[r],
                                t->part[k].place, (long long)v->shape[r]);
    }
    if (n > 0 && from->data == NULL)
      return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "buffer %d has no data", k);
    int64_t *stride = EINI_NEW(&t->arena, int64_t, v->rank);
    if (stride == NULL) return EIN_ERR_NO_MEMORY;
    for (int r = 0; r < v->rank; r++) stride[r] = n > 0 ? eini_stride(from, r) : 0;
    v->strides = stride;
    v->data = from->data;
  }
  return EIN_OK;
}

static ein_status eini_dtensor_check(ein_ctx *ctx, const ein_fabric *f, const ein_distribution *how,
                                     ein_dtype dtype, const int64_t *shape) {
  if (how == NULL || (shape == NULL && how->rank > 0))
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, how == NULL ? "the distribution is NULL"
                                                               : "the shape is NULL");
  if (ein_dtype_size(dtype) == 0)
    return eini_dist_refuse(ctx, EIN_ERR_DTYPE, "there is no such dtype");
  if (f->machine != NULL)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "a fabric with a clock holds no data");
  if (how->grid->places != f->places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the distribution is over %d places, the fabric "
                            "has %d", (int)how->grid->places, f->places);
  for (int r = 0; r < how->rank; r++)
    if (shape[r] < 0)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "axis %d has extent %lld", r,
                              (long long)shape[r]);
  return EIN_OK;
}

// Agrees, gives the tensor or a message.
static ein_status eini_dtensor_made(ein_ctx *ctx, const ein_fabric *f, ein_status st,
                                    ein_dtensor *t, ein_dtensor **out) {
  const ein_status all = eini_dist_agree(f, st);
  if (all != EIN_OK) ein_dtensor_destroy(t);
  else *out = t;
  if (all != EIN_OK && (st == EIN_OK || ctx == NULL || ctx->diag.count == 0))
    eini_dist_refuse(ctx, all, st == EIN_OK ? "another process: %s" : "a distributed tensor: %s",
                     ein_status_text(all));
  return all;
}

static size_t eini_print_distribution(const void *x, char *buf, size_t size) {
  return ein_distribution_print((const ein_distribution *)x, buf, size);
}

static size_t eini_print_grid(const void *x, char *buf, size_t size) {
  return ein_grid_print((const ein_grid *)x, buf, size);
}

// Have all processes been given the same tensor? st: whether this one has been given one.
static ein_status eini_dtensor_same(ein_ctx *ctx, const ein_fabric *f, ein_status st,
                                    const ein_distribution *how, ein_dtype dtype,
                                    const int64_t *shape) {
  static const char *const what[3] = {"shapes or dtypes", "distributions", "machines"};
  uint64_t word[3] = {0, 0, 0};
  eini_arena arena;  // for the allocator alone
  if (f->same_fn == NULL) return st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  if (st == EIN_OK) {
    word[0] = eini_hash(shape, (size_t)how->rank * sizeof *shape, 1 + (uint64_t)dtype);
    st = eini_print_hash(&arena.al, how, eini_print_distribution, &word[1]);
  }
  if (st == EIN_OK) st = eini_print_hash(&arena.al, how->grid, eini_print_grid, &word[2]);
  return eini_dist_same(ctx, f, st, 3, word, what);
}

EIN_API ein_status ein_dtensor_create(ein_ctx *ctx, const ein_fabric *fabric,
                                      const ein_distribution *how, ein_dtype dtype,
                                      const int64_t *shape, int nadopt, const ein_ztensor *adopt,
                                      ein_dtensor **out) {
  if (fabric == NULL || out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_dtensor *t = NULL;
  ein_status st = eini_dtensor_check(ctx, fabric, how, dtype, shape);
  st = eini_dtensor_same(ctx, fabric, st, how, dtype, shape);
  if (st != EIN_OK && fabric->same_fn != NULL) return st;  // on all
  if (st == EIN_OK) t = eini_dtensor_new(ctx, fabric);
  if (st == EIN_OK && t == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) t->dtype = dtype;
  if (st == EIN_OK) st = eini_layout_of(&t->arena, how, shape, &t->l);
  if (st == EIN_OK) st = eini_dtensor_parts_init(t);
  if (st == EIN_OK) st = eini_dtensor_memory(ctx, t, nadopt, adopt);
  return eini_dtensor_made(ctx, fabric, st, t, out);
}

EIN_API ein_status ein_dtensor_of_plan(ein_ctx *ctx, const ein_dist *d, int tensor,
                                       ein_dtensor **out) {
  if (d == NULL || out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_dtensor *t = NULL;
  ein_status st = tensor < 0 || tensor >= d->g->ntensor ? EIN_ERR_ARGUMENT
                  : eini_dist_clocked(d) ? EIN_ERR_UNSUPPORTED : EIN_OK;  // it holds no data
  for (int q = 0; q < d->fabric.count && st == EIN_OK; q++)
    st = ein_dist_block(d, tensor, d->fabric.first + q, NULL, NULL, NULL);
  if (st != EIN_OK)
    eini_dist_refuse(ctx, st, "tensor %d of the plan: %s", tensor, ein_status_text(st));
  if (st == EIN_OK) t = eini_dtensor_new(ctx, &d->fabric);
  if (st == EIN_OK && t == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) t->dtype = d->g->tensor[tensor].dtype;
  if (st == EIN_OK) st = eini_layout_of_plan(&t->arena, d, tensor, &t->l);
  if (st == EIN_OK) st = eini_dtensor_parts_init(t);
  if (st == EIN_OK) st = eini_dtensor_memory(ctx, t, 0, NULL);
  return eini_dtensor_made(ctx, &d->fabric, st, t, out);
}

EIN_API void ein_dtensor_destroy(ein_dtensor *t) {
  if (t == NULL) return;
  eini_arena arena = t->arena;
  eini_arena_free(&arena);
}

EIN_API int ein_dtensor_parts(const ein_dtensor *t) { return t == NULL ? 0 : t->nparts; }

EIN_API int ein_dtensor_part_get(const ein_dtensor *t, int k, ein_dtensor_part *part) {
  if (t == NULL || part == NULL || k < 0 || k >= t->nparts) return 0;
  *part = t->part[k];
  return 1;
}

// ---- elements ----

// at: room for coordinates, ranges and positions of every axis.
static ein_status eini_dtensor_part_each(const ein_dtensor_part *p, int64_t *room,
                                         ein_element_fn fn, void *user) {
  const int rank = p->view.rank;
  int64_t *coord = room, *run = room + rank;
  char *at = (char *)p->view.data;
  const int64_t size = (int64_t)ein_dtype_size(p->view.dtype);
  if (ein_view_count(&p->view) == 0) return EIN_OK;
  for (int r = 0; r < rank; r++) {
    run[r] = 0;
    coord[r] = p->range[r][0];
  }
  for (int r = 0; r >= 0;) {
    EINI_TRY(fn(user, coord, at));
    for (r = rank - 1; r >= 0; r--) {
      at += p->view.strides[r] * size;
      if (++coord[r] < p->range[r][2 * run[r] + 1]) break;
      if (++run[r] == p->nrange[r]) run[r] = 0;
      coord[r] = p->range[r][2 * run[r]];
      if (run[r] > 0) break;
      at -= p->view.strides[r] * size * p->view.shape[r];
    }
  }
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_each(const ein_dtensor *t, ein_element_fn fn, void *user) {
  eini_arena arena;
  if (t == NULL || fn == NULL) return EIN_ERR_ARGUMENT;
  eini_arena_init(&arena, &t->arena.al);
  int64_t *room = EINI_NEW(&arena, int64_t, 2 * (int64_t)t->l.rank + 1);
  ein_status st = room == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < t->nparts && st == EIN_OK; k++)
    st = eini_dtensor_part_each(&t->part[k], room, fn, user);
  eini_arena_free(&arena);
  return st;
}

EIN_API void ein_random_element(ein_dtype dtype, uint64_t seed, int64_t number, void *element) {
  const uint64_t hash = eini_hash_step(eini_hash_step(seed) ^ (uint64_t)number);
  const double x = (double)(hash >> 40) / 8388608.0 - 1.0;  // 24 bits
  const float f[2] = {(float)x, (float)(hash & 0xffffff) / 8388608.0f - 1.0f};
  const double d[2] = {x, (double)f[1]};
  const int64_t small = (int64_t)(hash % 9) - 4;
  const float few = (float)((int)(hash >> 8 & 127) - 64) / 64;  // exact in f16 and bf16
  uint16_t half = 0;
  int32_t i32 = (int32_t)small;
  int16_t i16 = (int16_t)small;
  switch (dtype) {
    case EIN_BOOL: *(unsigned char *)element = (unsigned char)(hash & 1); break;
    case EIN_U8: *(uint8_t *)element = (uint8_t)(small + 4); break;
    case EIN_I8: *(int8_t *)element = (int8_t)small; break;
    case EIN_I16: memcpy(element, &i16, sizeof i16); break;
    case EIN_I32: memcpy(element, &i32, sizeof i32); break;
    case EIN_I64: memcpy(element, &small, sizeof small); break;
    case EIN_F32: memcpy(element, f, sizeof *f); break;
    case EIN_F64: memcpy(element, d, sizeof *d); break;
    case EIN_C64: memcpy(element, f, sizeof f); break;
    case EIN_C128: memcpy(element, d, sizeof d); break;
    case EIN_F16: half = eini_f16_store(few); memcpy(element, &half, sizeof half); break;
    case EIN_BF16: half = eini_bf16_store(few); memcpy(element, &half, sizeof half); break;
    default: break;
  }
}

typedef struct eini_dtensor_filling {
  const ein_dtensor *t;
  uint64_t seed;
} eini_dtensor_filling;

// The number of an element in the whole tensor; it may wrap, which is no matter here.
static ein_status eini_dtensor_fill(void *user, const int64_t *coord, void *element) {
  const eini_dtensor_filling *f = (const eini_dtensor_filling *)user;
  uint64_t n = 0;
  for (int r = 0; r < f->t->l.rank; r++)
    n = n * (uint64_t)f->t->l.shape[r] + (uint64_t)coord[r];
  ein_random_element(f->t->dtype, f->seed, (int64_t)n, element);
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_random(ein_dtensor *t, uint64_t seed) {
  eini_dtensor_filling f;
  f.t = t;
  f.seed = seed;
  return ein_dtensor_each(t, eini_dtensor_fill, &f);
}

// ---- moves ----

// One side: blocks of a layout where a process has them. NULL parts: one whole view.
typedef struct eini_swap_side {
  const eini_layout *l;
  const ein_dtensor *t;
  const ein_ztensor *whole;
} eini_swap_side;

typedef struct eini_swap {
  eini_arena arena;
  ein_fabric f;
  eini_swap_side from, to;
  ein_dtype dtype;
  int only;                 // what is done: what EINI_SWAP_.. says
  eini_layout_walk w;
  int64_t *in, *out;        // [driven place][place]: bytes that are received and sent; then where
  char *inbox, *outbox;     //   the next go
  int64_t received, sent, messages;
  ein_ticket *ticket;
  int64_t nticket;
} eini_swap;

enum { EINI_SWAP_COUNT, EINI_SWAP_PACK, EINI_SWAP_UNPACK };

// Does data go from place to place without a message?
static int eini_swap_direct(const eini_swap *x, const eini_layout_move *m) {
  return m->home == m->place || x->f.shared;
}

// The element of a block's part, and its strides; at: where each range of a move begins in it.
static char *eini_swap_part(const eini_swap_side *s, const eini_layout_move *m, int64_t block,
                            int64_t place, int64_t *const *at, int64_t *stride) {
  const eini_layout *l = s->l;
  const ein_ztensor *v = s->whole;
  if (v == NULL) {
    const int i = (int)place - s->t->fabric.first;
    int k = s->t->first[i];
    while (l->held[place][k - s->t->first[i]] != block) k++;
    v = &s->t->part[k].view;
  }
  for (int r = 0; r < l->rank; r++) {
    const eini_runs *run = eini_layout_piece(l, block, r);
    stride[r] = eini_stride(v, r);
    for (int64_t i = 0, k = 0, before = 0; i < m->run[r].n; i++) {
      for (; run->v[2 * k + 1] <= m->run[r].v[2 * i]; k++)
        before += run->v[2 * k + 1] - run->v[2 * k];
      at[r][i] = before + m->run[r].v[2 * i] - run->v[2 * k];
    }
  }
  return (char *)v->data;
}

// The same of a message, which has the elements of a move one after another.
static char *eini_swap_message(const eini_layout_move *m, int rank, char *data, int64_t *const *at,
                               int64_t *stride) {
  int64_t n = 1;
  for (int r = rank - 1; r >= 0; r--) {
    int64_t before = 0;
    stride[r] = n;
    n *= m->run[r].length;
    for (int64_t i = 0; i < m->run[r].n; i++) {
      at[r][i] = before;
      before += m->run[r].v[2 * i + 1] - m->run[r].v[2 * i];
    }
  }
  return data;
}

// Box by box: all combinations of a range of each axis.
static void eini_swap_boxes(const eini_layout_move *m, int rank, size_t size, char *dst,
                            int64_t *const *dat, const int64_t *dstride, const char *src,
                            int64_t *const *sat, const int64_t *sstride, int64_t *room) {
  int64_t *i = room, *len = room + rank;
  for (int r = 0; r < rank; r++) i[r] = 0;
  for (int r = 0; r >= 0;) {
    int64_t d = 0, s = 0;
    for (r = 0; r < rank; r++) {
      len[r] = m->run[r].v[2 * i[r] + 1] - m->run[r].v[2 * i[r]];
      d += dat[r][i[r]] * dstride[r];
      s += sat[r][i[r]] * sstride[r];
    }
    eini_dist_copy(rank, len, dst + d * (int64_t)size, dstride, src + s * (int64_t)size, sstride,
                   size);
    for (r = rank - 1; r >= 0 && ++i[r] == m->run[r].n; r--) i[r] = 0;
  }
}

// Copies what moves: part to message, message to part, or part to part.
static ein_status eini_swap_copy(eini_swap *x, const eini_layout_move *m, char *message) {
  const int rank = x->from.l->rank;
  int64_t *room = EINI_NEW(&x->arena, int64_t, 4 * (int64_t)rank + 1);
  int64_t **at = EINI_NEW(&x->arena, int64_t *, 2 * (int64_t)rank);
  if (room == NULL || at == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < 2 * rank; r++)
    if ((at[r] = EINI_NEW(&x->arena, int64_t, m->run[r % rank].n)) == NULL)
      return EIN_ERR_NO_MEMORY;
  int64_t *dstride = room + 2 * rank, *sstride = dstride + rank;
  int64_t **dat = at, **sat = at + rank;
  char *dst = message, *src = message;
  if (message == NULL || x->only == EINI_SWAP_UNPACK)
    dst = eini_swap_part(&x->to, m, m->target, m->place, dat, dstride);
  else eini_swap_message(m, rank, message, dat, dstride);
  if (message == NULL || x->only == EINI_SWAP_PACK)
    src = eini_swap_part(&x->from, m, m->source, m->home, sat, sstride);
  else eini_swap_message(m, rank, message, sat, sstride);
  eini_swap_boxes(m, rank, ein_dtype_size(x->dtype), dst, dat, dstride, src, sat, sstride, room);
  return EIN_OK;
}

// A move is counted, packed or unpacked.
static ein_status eini_swap_move(void *user, const eini_layout_move *m) {
  eini_swap *x = (eini_swap *)user;
  const int64_t bytes = m->elements * (int64_t)ein_dtype_size(x->dtype);
  const int out = eini_fabric_drives(&x->f, m->home), in = eini_fabric_drives(&x->f, m->place);
  int64_t *to = out ? &x->out[(m->home - x->f.first) * x->f.places + m->place] : NULL;
  int64_t *from = in ? &x->in[(m->place - x->f.first) * x->f.places + m->home] : NULL;
  if (eini_swap_direct(x, m))
    return in && x->only == EINI_SWAP_UNPACK ? eini_swap_copy(x, m, NULL) : EIN_OK;
  if (x->only == EINI_SWAP_COUNT) {
    if (out) *to += bytes;
    if (in) *from += bytes;
    return EIN_OK;
  }
  char *message = x->only == EINI_SWAP_PACK ? (out ? x->outbox + *to : NULL)
                                            : in ? x->inbox + *from : NULL;
  if (message == NULL) return EIN_OK;
  *(x->only == EINI_SWAP_PACK ? to : from) += bytes;
  return eini_swap_copy(x, m, message);
}

static ein_status eini_swap_pass(eini_swap *x, int only) {
  x->only = only;
  return eini_layout_walk_all(&x->arena, &x->w, eini_swap_move, x);
}

// Bytes become where each message begins; *total: all.
static void eini_swap_begins(int64_t *at, int64_t n, int64_t *total, int64_t *messages) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t bytes = at[i];
    at[i] = *total;
    *total += bytes;
    *messages += bytes > 0;
  }
}

// The end of message i is the beginning of the next one.
static int64_t eini_swap_bytes(const int64_t *at, int64_t i, int64_t n, int64_t total) {
  return (i + 1 < n ? at[i + 1] : total) - at[i];
}

// Everything that can fail on one process alone: memory, packing.
static ein_status eini_swap_prepare(eini_swap *x) {
  const int64_t n = (int64_t)x->f.count * x->f.places;
  EINI_TRY(eini_layout_walk_init(&x->arena, x->from.l, x->to.l, x->f.first, x->f.count, &x->w));
  x->in = EINI_NEW(&x->arena, int64_t, 2 * n);
  if (x->in == NULL) return EIN_ERR_NO_MEMORY;
  x->out = x->in + n;
  EINI_TRY(eini_swap_pass(x, EINI_SWAP_COUNT));
  eini_swap_begins(x->in, n, &x->received, &x->messages);
  eini_swap_begins(x->out, n, &x->sent, &x->messages);
  x->ticket = EINI_NEW(&x->arena, ein_ticket, x->messages);
  x->inbox = (char *)eini_new(&x->arena, x->received, 1);
  x->outbox = (char *)eini_new(&x->arena, x->sent, 1);
  int64_t *keep = EINI_NEW(&x->arena, int64_t, n);
  if (x->ticket == NULL || x->inbox == NULL || x->outbox == NULL || keep == NULL)
    return EIN_ERR_NO_MEMORY;
  memcpy(keep, x->out, (size_t)n * sizeof *keep);
  EINI_TRY(eini_swap_pass(x, EINI_SWAP_PACK));
  memcpy(x->out, keep, (size_t)n * sizeof *keep);
  return x->f.room_fn == NULL ? EIN_OK
                              : x->f.room_fn(x->f.user, x->messages, x->received + x->sent);
}

// One message for each pair of places; receives first.
static ein_status eini_swap_post(eini_swap *x) {
  const int64_t n = (int64_t)x->f.count * x->f.places;
  for (int64_t i = 0; i < 2 * n; i++) {
    const int64_t k = i % n, q = k % x->f.places, here = x->f.first + k / x->f.places;
    const int64_t bytes = i < n ? eini_swap_bytes(x->in, k, n, x->received)
                                : eini_swap_bytes(x->out, k, n, x->sent);
    if (bytes == 0) continue;
    ein_ticket *t = &x->ticket[x->nticket];
    EINI_TRY(i < n ? x->f.recv_fn(x->f.user, (int)here, (int)q, 0, x->inbox + x->in[k],
                                  (size_t)bytes, t)
                   : x->f.send_fn(x->f.user, (int)here, (int)q, 0, x->outbox + x->out[k],
                                  (size_t)bytes, t));
    x->nticket++;
  }
  return EIN_OK;
}

// Collective; st: what this process knows already.
static ein_status eini_swap_run(eini_swap *x, ein_status st) {
  if (st == EIN_OK) st = eini_swap_prepare(x);
  st = eini_dist_agree(&x->f, st);
  if (st != EIN_OK) return st;
  st = eini_swap_post(x);
  for (int64_t i = 0; i < x->nticket; i++) {
    const ein_status failed = x->f.wait_fn(x->f.user, x->ticket[i]);
    if (st == EIN_OK) st = failed;
  }
  if (st == EIN_OK) st = eini_swap_pass(x, EINI_SWAP_UNPACK);
  return eini_dist_agree(&x->f, st);
}

static void eini_swap_init(const ein_dtensor *t, eini_swap *x) {
  memset(x, 0, sizeof *x);
  eini_arena_init(&x->arena, &t->arena.al);
  x->f = t->fabric;
  x->dtype = t->dtype;
  x->from.t = x->to.t = t;
  x->from.l = x->to.l = &t->l;
}

// Are they the same tensor in two distributions?
static ein_status eini_dtensor_alike(const ein_dtensor *a, const ein_dtensor *b) {
  if (a == NULL || b == NULL) return EIN_ERR_ARGUMENT;
  if (a->dtype != b->dtype) return EIN_ERR_DTYPE;
  if (a->fabric.user != b->fabric.user || a->fabric.places != b->fabric.places ||
      a->fabric.first != b->fabric.first || a->fabric.count != b->fabric.count)
    return EIN_ERR_ARGUMENT;
  if (a->l.rank != b->l.rank) return EIN_ERR_SHAPE;
  for (int r = 0; r < a->l.rank; r++)
    if (a->l.shape[r] != b->l.shape[r]) return EIN_ERR_SHAPE;
  return EIN_OK;
}

EIN_API ein_status ein_dtensor_copy(const ein_dtensor *from, ein_dtensor *to, int64_t *bytes) {
  eini_swap x;
  if (from == NULL || to == NULL) return EIN_ERR_ARGUMENT;
  eini_swap_init(from, &x);
  x.to.l = &to->l;
  x.to.t = to;
  const ein_status st = eini_swap_run(&x, eini_dtensor_alike(from, to));
  if (bytes != NULL) *bytes = st == EIN_OK ? x.received : 0;
  eini_arena_free(&x.arena);
  return st;
}

// Adds up what moves.
static ein_status eini_dtensor_count(void *user, const eini_layout_move *m) {
  if (m->home != m->place) *(int64_t *)user += m->elements;
  return EIN_OK;
}

EIN_API int64_t ein_dtensor_bytes(const ein_dtensor *from, const ein_dtensor *to) {
  eini_arena arena;
  eini_layout_walk w;
  int64_t n = 0;
  if (eini_dtensor_alike(from, to) != EIN_OK) return -1;
  eini_arena_init(&arena, &from->arena.al);
  ein_status st = eini_layout_walk_init(&arena, &from->l, &to->l, 0, from->fabric.places, &w);
  if (st == EIN_OK) st = eini_layout_walk_all(&arena, &w, eini_dtensor_count, &n);
  eini_arena_free(&arena);
  return st == EIN_OK ? n * (int64_t)ein_dtype_size(from->dtype) : -1;
}

// Is a view what this process may give for the whole tensor?
static ein_status eini_dtensor_whole(const ein_dtensor *t, const ein_ztensor *whole) {
  if (whole == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_view_validate(whole));
  if (whole->dtype != t->dtype) return EIN_ERR_DTYPE;
  if (whole->rank != t->l.rank) return EIN_ERR_SHAPE;
  for (int r = 0; r < t->l.rank; r++)
    if (whole->shape[r] != t->l.shape[r]) return EIN_ERR_SHAPE;
  return whole->data == NULL && ein_view_count(whole) > 0 ? EIN_ERR_ARGUMENT : EIN_OK;
}

// Between a tensor and a whole one at a place.
static ein_status eini_dtensor_root(const ein_dtensor *t, int root, const ein_ztensor *whole,
                                    int scatter) {
  eini_swap x;
  eini_layout l;
  if (t == NULL) return EIN_ERR_ARGUMENT;
  eini_swap_init(t, &x);
  const int sane = root >= 0 && root < t->fabric.places;
  ein_status st = sane ? eini_layout_whole(&x.arena, t->l.rank, t->l.shape, t->fabric.places, root,
                                           root + 1, &l) : EIN_ERR_ARGUMENT;
  if (st == EIN_OK && eini_fabric_drives(&x.f, root)) st = eini_dtensor_whole(t, whole);
  eini_swap_side *side = scatter ? &x.from : &x.to;
  side->l = &l;
  side->whole = whole;
  st = eini_swap_run(&x, st);
  eini_arena_free(&x.arena);
  return st;
}

EIN_API ein_status ein_dtensor_scatter(ein_dtensor *t, int root, const ein_ztensor *whole) {
  return eini_dtensor_root(t, root, whole, 1);
}

EIN_API ein_status ein_dtensor_gather(const ein_dtensor *t, int root, const ein_ztensor *whole) {
  return eini_dtensor_root(t, root, whole, 0);
}

// One part of a tensor against the whole one of this process.
static ein_status eini_dtensor_local(const ein_dtensor *t, const ein_ztensor *whole, int load) {
  eini_swap x;
  eini_layout l;
  eini_layout_move m;
  if (t == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_dtensor_whole(t, whole));
  eini_swap_init(t, &x);
  x.only = EINI_SWAP_UNPACK;
  ein_status st = eini_layout_whole(&x.arena, t->l.rank, t->l.shape, t->fabric.places, 0, 1, &l);
  m.run = EINI_NEW(&x.arena, eini_runs, t->l.rank);
  if (st == EIN_OK && m.run == NULL) st = EIN_ERR_NO_MEMORY;
  eini_swap_side *side = load ? &x.from : &x.to;
  side->l = &l;
  side->whole = whole;
  for (int i = 0; i < t->fabric.count; i++) {
    const int64_t q = t->fabric.first + i;
    for (int64_t k = 0, block; st == EIN_OK && (block = eini_layout_next(&t->l, q, &k)) >= 0;) {
      if (!load && t->l.holder[block][0] != q) continue;
      const eini_arena_at mark = eini_arena_mark(&x.arena);
      for (int r = 0; r < t->l.rank; r++) m.run[r] = *eini_layout_piece(&t->l, block, r);
      m.source = load ? 0 : block;
      m.target = load ? block : 0;
      m.home = m.place = q;
      st = eini_swap_copy(&x, &m, NULL);
      eini_arena_rollback(&x.arena, &mark);
    }
  }
  eini_arena_free(&x.arena);
  return st;
}

EIN_API ein_status ein_dtensor_load(ein_dtensor *t, const ein_ztensor *whole) {
  return eini_dtensor_local(t, whole, 1);
}

EIN_API ein_status ein_dtensor_store(const ein_dtensor *t, const ein_ztensor *whole) {
  return eini_dtensor_local(t, whole, 0);
}
