// ================================================================================================
// >>relation  tensor relations: join, aggregate, repartition
// Takes views and relations; gives relations, whose blocks are views or memory of their own.
// ================================================================================================

struct ein_relation {
  eini_arena arena;          // owns everything, the relation itself included
  ein_relation_info info;
  ein_dtype result;          // of the tensor once all is aggregated
  int64_t *bound, *pieces;
  const char *monoid;        // blocks are its states, in planes; NULL: they are values
  eini_folder folder;        // of it
  ein_monoid own;            // and what it is, when it is one of the caller's
  ein_ztensor *block;        // nblock of them, row-major by key
  int64_t *origin;           // nblock * rank
};

static ein_relation *eini_rel_new(ein_ctx *ctx, int rank, int nkey) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_relation *r = EINI_NEW(&arena, ein_relation, 1);
  if (r == NULL) return NULL;
  r->bound = EINI_NEW(&arena, int64_t, rank);
  r->pieces = EINI_NEW(&arena, int64_t, nkey);
  r->arena = arena;
  if (r->bound != NULL && r->pieces != NULL) {
    r->info.rank = rank;
    r->info.nkey = nkey;
    r->info.nstate = 1;
    r->info.bound = r->bound;
    r->info.pieces = r->pieces;
    return r;
  }
  ein_relation_destroy(r);
  return NULL;
}

// A message about a call of this section.
EINI_PRINTF(3, 4)
static ein_status eini_dist_refuse(ein_ctx *ctx, ein_status st, const char *format, ...) {
  va_list args;
  if (ctx == NULL) return st;
  eini_diag_reset(&ctx->diag, NULL, 0);
  va_start(args, format);
  eini_vfail(&ctx->diag, st, -1, 0, NULL, format, args);
  va_end(args);
  return st;
}

// Sets bounds, pieces and origins of the blocks, whose number must be sane.
static ein_status eini_rel_shape(ein_relation *r, ein_dtype dtype, const int64_t *bound,
                                 const int64_t *pieces) {
  int rank = r->info.rank;
  r->info.dtype = r->result = dtype;
  r->info.nblock = 1;
  for (int k = 0; k < rank; k++) r->bound[k] = bound[k];
  for (int k = 0; k < r->info.nkey; k++) {
    int64_t most = k < rank ? eini_max64(bound[k], 1) : INT32_MAX;
    if (pieces[k] < 1 || pieces[k] > most) return EIN_ERR_SHAPE;
    r->pieces[k] = pieces[k];
    if (eini_mul_overflow(r->info.nblock, pieces[k], &r->info.nblock) ||
        r->info.nblock > INT32_MAX) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  int64_t n = r->info.nblock;
  r->block = EINI_NEW(&r->arena, ein_ztensor, n);
  r->origin = EINI_NEW(&r->arena, int64_t, n * rank);
  if (r->block == NULL || r->origin == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t b = 0; b < n; b++) {
    int64_t *shape = EINI_NEW(&r->arena, int64_t, 2 * (int64_t)rank), left = b;
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = r->info.nkey - 1; k >= 0; k--) {
      int64_t digit = left % pieces[k];
      left /= pieces[k];
      if (k >= rank) continue;
      int64_t from = eini_piece_start(bound[k], pieces[k], digit);
      r->origin[b * rank + k] = from;
      shape[k] = eini_piece_start(bound[k], pieces[k], digit + 1) - from;
    }
    r->block[b].dtype = dtype;
    r->block[b].rank = rank;
    r->block[b].shape = shape;
    r->block[b].strides = shape + rank;
  }
  return EIN_OK;
}

static int64_t *eini_rel_strides(const ein_relation *r, int64_t b) {
  union { const int64_t *c; int64_t *v; } u;  // the relation's own memory
  u.c = r->block[b].shape;
  return u.v + r->info.rank;
}

// Bytes of one element of a block.
static size_t eini_rel_wide(const ein_relation *r) {
  return r->monoid != NULL ? eini_states_bytes(&r->folder) : ein_dtype_size(r->info.dtype);
}

// Memory for every block, dense, uninitialised values zero.
static ein_status eini_rel_alloc(ein_relation *r) {
  for (int64_t b = 0; b < r->info.nblock; b++) {
    int64_t n;
    EINI_TRY(eini_view_elements(r->info.rank, r->block[b].shape, &n));
    eini_dist_dense(r->info.rank, r->block[b].shape, eini_rel_strides(r, b));
    char *memory = (char *)eini_new(&r->arena, n, eini_rel_wide(r));
    if (memory == NULL) return EIN_ERR_NO_MEMORY;
    r->block[b].data = memory;
    if (r->monoid == NULL) continue;
    void *plane[4];
    eini_states_at(&r->folder, n, memory, plane);
    r->block[b].data = plane[0];
  }
  return EIN_OK;
}

// Hands a relation out, or what went wrong.
static ein_status eini_rel_give(ein_ctx *ctx, ein_status st, ein_relation *r, ein_relation **out) {
  if (st == EIN_OK) {
    *out = r;
    return EIN_OK;
  }
  ein_relation_destroy(r);
  if (ctx != NULL && ctx->diag.count == 0)
    eini_dist_refuse(ctx, st, "a tensor relation: %s", ein_status_text(st));
  return st;
}

EIN_API void ein_relation_destroy(ein_relation *r) {
  if (r == NULL) return;
  eini_arena arena = r->arena;
  eini_arena_free(&arena);
}

EIN_API void ein_relation_get(const ein_relation *r, ein_relation_info *info) {
  if (r != NULL && info != NULL) *info = r->info;
}

EIN_API ein_status ein_relation_view(ein_ctx *ctx, const ein_ztensor *view, const int64_t *pieces,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (view == NULL || (view->rank > 0 && pieces == NULL)) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_status st = ein_view_check(view);
  ein_relation *r = NULL;
  if (st == EIN_OK) r = eini_rel_new(ctx, view->rank, view->rank);
  if (st == EIN_OK && r == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_rel_shape(r, view->dtype, view->shape, pieces);
  for (int64_t b = 0; st == EIN_OK && b < r->info.nblock; b++) {
    int64_t *stride = eini_rel_strides(r, b), at = 0;
    for (int k = 0; k < view->rank; k++) {
      stride[k] = eini_stride(view, k);
      if (r->block[b].shape[k] > 0) at += stride[k] * r->origin[b * view->rank + k];
    }
    r->block[b].data = view->data;
    if (view->data != NULL && ein_view_count(&r->block[b]) > 0)
      r->block[b].data = (char *)view->data + at * (int64_t)ein_dtype_size(view->dtype);
  }
  return eini_rel_give(ctx, st, r, out);
}

// The number of a key's block, or -1.
static int64_t eini_rel_at(const ein_relation *r, const int64_t *key) {
  int64_t b = 0;
  for (int k = 0; k < r->info.nkey; k++) {
    if (key[k] < 0 || key[k] >= r->pieces[k]) return -1;
    b = b * r->pieces[k] + key[k];
  }
  return b;
}

EIN_API ein_status ein_relation_block(const ein_relation *r, const int64_t *key,
                                      ein_ztensor *block, int64_t *origin) {
  if (r == NULL || block == NULL || (r->info.nkey > 0 && key == NULL)) return EIN_ERR_ARGUMENT;
  int64_t b = eini_rel_at(r, key);
  if (b < 0) return EIN_ERR_BOUNDS;
  *block = r->block[b];
  for (int k = 0; origin != NULL && k < r->info.rank; k++)
    origin[k] = r->origin[b * r->info.rank + k];
  return EIN_OK;
}

// Where the states of block b begin.
static char *eini_rel_states(const ein_relation *r, int64_t b) {
  char *at = (char *)r->block[b].data;
  if (!eini_fold_counts(r->folder.fold)) return at;
  return at - ein_view_count(&r->block[b]) * (int64_t)ein_dtype_size(EIN_I64);
}

EIN_API ein_status ein_relation_state(const ein_relation *r, const int64_t *key, int state,
                                      ein_ztensor *block) {
  void *plane[4];
  EINI_TRY(ein_relation_block(r, key, block, NULL));
  if (state < 0 || state >= r->info.nstate) return EIN_ERR_ARGUMENT;
  if (r->monoid == NULL) return EIN_OK;
  eini_states_at(&r->folder, ein_view_count(block), eini_rel_states(r, eini_rel_at(r, key)),
                 plane);
  block->dtype = eini_state_dtype(&r->folder, state);
  block->data = plane[state];
  return EIN_OK;
}

// Copies what the box [from, from + shape) shares with block b of r into dst, which holds the box.
static void eini_rel_part(const ein_relation *r, int64_t b, const int64_t *from, char *dst,
                          const int64_t *shape, const int64_t *stride, int64_t *common) {
  const ein_ztensor *x = &r->block[b];
  const int64_t *origin = r->origin + b * r->info.rank;
  int64_t at = 0, to = 0, size = (int64_t)ein_dtype_size(x->dtype);
  for (int k = 0; k < x->rank; k++) {
    int64_t lo = eini_max64(from[k], origin[k]);
    int64_t hi = eini_min64(from[k] + shape[k], origin[k] + x->shape[k]);
    if (hi <= lo) return;
    common[k] = hi - lo;
    at += (lo - origin[k]) * x->strides[k];
    to += (lo - from[k]) * stride[k];
  }
  eini_dist_copy(x->rank, common, dst + to * size, stride, (const char *)x->data + at * size,
                 x->strides, (size_t)size);
}

// Puts a box together from all blocks of a relation without further keys.
static void eini_rel_gather(const ein_relation *r, const int64_t *from, char *dst,
                            const int64_t *shape, const int64_t *stride, int64_t *common) {
  for (int64_t b = 0; b < r->info.nblock; b++)
    eini_rel_part(r, b, from, dst, shape, stride, common);
}

EIN_API ein_status ein_relation_read(const ein_relation *r, const ein_ztensor *out) {
  if (r == NULL || out == NULL || r->info.nkey != r->info.rank) return EIN_ERR_ARGUMENT;
  EINI_TRY(ein_view_check(out));
  if (out->rank != r->info.rank) return EIN_ERR_SHAPE;
  if (out->dtype != r->info.dtype) return EIN_ERR_DTYPE;
  for (int k = 0; k < out->rank; k++)
    if (out->shape[k] != r->bound[k]) return EIN_ERR_SHAPE;
  if (ein_view_count(out) == 0) return EIN_OK;
  eini_arena a = r->arena;
  eini_arena_init(&a, &r->arena.al);
  int64_t *dims = EINI_NEW(&a, int64_t, 3 * (int64_t)out->rank);
  if (dims == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stride = dims + out->rank, *common = stride + out->rank;
  for (int k = 0; k < out->rank; k++) stride[k] = eini_stride(out, k);
  eini_rel_gather(r, dims, (char *)out->data, out->shape, stride, common);
  eini_arena_free(&a);
  return EIN_OK;
}

typedef struct eini_rel_move {
  const ein_relation *from;
  ein_relation *to;
  int64_t *common;          // scratch
} eini_rel_move;

static ein_status eini_rel_move_block(void *user, int64_t b) {
  const eini_rel_move *m = (const eini_rel_move *)user;
  const ein_ztensor *x = &m->to->block[b];
  eini_rel_gather(m->from, m->to->origin + b * x->rank, (char *)x->data, x->shape, x->strides,
                  m->common);
  return EIN_OK;
}

EIN_API ein_status ein_relation_repartition(ein_ctx *ctx, const ein_relation *r,
                                            const int64_t *pieces, ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || r->info.nkey != r->info.rank || (r->info.rank > 0 && pieces == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  int rank = r->info.rank;
  ein_relation *x = eini_rel_new(ctx, rank, rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY
                            : eini_rel_shape(x, r->info.dtype, r->bound, pieces);
  if (st == EIN_OK) st = eini_rel_alloc(x);
  eini_rel_move m = {r, x, st == EIN_OK ? EINI_NEW(&x->arena, int64_t, rank) : NULL};
  if (st == EIN_OK && m.common == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK)
    st = eini_flow_tasks(&x->arena.al, x->info.nblock, eini_rel_move_block, &m);
  return eini_rel_give(ctx, st, x, out);
}
