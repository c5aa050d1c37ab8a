// ================================================================================================
// >>operate  functions over blocks
// Takes a task whose loops are the indices that no block has, and streams; calls the function at
// each of its points, with blocks gathered where they do not lie as it wants them.
// ================================================================================================

// The block of an argument or of the result: n loops of the task in row-major order.
typedef struct eini_operation_side {
  int stream, n;
  const int *loop;
  int64_t count;               // elements
  int placed;                  // 1: it lies row-major without gaps in the function's own type
  ein_code code;               // of an argument: what is stored, converted to that type
} eini_operation_side;

typedef struct eini_operation {
  const ein_operator *op;
  int64_t size[EINI_BLOCK_SIZES];
  int nin, nout;               // outputs are one behind another in the block of the result
  int nouter, *outer;          // loops around
  eini_operation_side *side;       // [nin + 1]
  int64_t *from;               // [nout + 1] where outputs begin
} eini_operation;

// What one thread needs.
typedef struct eini_operating {
  int64_t *index, *at;         // of loops around; element offset of each stream
  char *block[EINI_ARGS_MAX + 1];
  void **reg;
  char *mem, *raw, *conv, *conv2;
} eini_operating;

static size_t eini_operation_layout(const eini_task *t, eini_operating *w, char *mem) {
  const eini_operation *b = t->operation;
  const size_t own = ein_dtype_size(b->op->dtype), wide = EINI_CHUNK * 16;
  size_t used = 0, bytes = 0;
  int regs = 0;
  w->index = (int64_t *)(void *)eini_nest_carve(mem, &used, (size_t)b->nouter * 8);
  w->at = (int64_t *)(void *)eini_nest_carve(mem, &used, (size_t)t->nstream * 8);
  for (int k = 0; k <= b->nin; k++) {
    const eini_operation_side *x = &b->side[k];
    w->block[k] = eini_nest_carve(mem, &used, (size_t)x->count * own);
    if (k == b->nin) break;
    regs = x->code.nreg > regs ? x->code.nreg : regs;
    const size_t need = (size_t)x->code.nreg * eini_reg_bytes(&x->code);
    bytes = need > bytes ? need : bytes;
  }
  w->reg = (void **)(void *)eini_nest_carve(mem, &used, (size_t)regs * sizeof(void *));
  w->mem = eini_nest_carve(mem, &used, bytes);
  w->raw = eini_nest_carve(mem, &used, wide);
  w->conv = eini_nest_carve(mem, &used, wide);
  w->conv2 = eini_nest_carve(mem, &used, wide);
  return used;
}

// Advances the loops of a list, the last first, and the offset of a stream; 0: they wrapped around.
static int eini_operation_next(const eini_task *t, const eini_operation_side *x, int n,
                               int64_t *index, int64_t *at) {
  for (int d = n - 1; d >= 0; d--) {
    const int64_t step = t->stride[(int64_t)x->stream * t->nindex + x->loop[d]];
    *at += step;
    if (++index[d] < t->extent[x->loop[d]]) return 1;
    *at -= index[d] * step;
    index[d] = 0;
  }
  return 0;
}

static char *eini_operation_base(const eini_task *t, char *const *slot, int stream) {
  const eini_ref *r = &t->ref[stream];
  return (char *)((uintptr_t)slot[r->slot] + (uintptr_t)r->offset);
}

// A block as the function wants it: rows in chunks, converted.
static void eini_operation_gather(const eini_task *t, int k, char *const *slot, eini_operating *w) {
  const eini_operation_side *x = &t->operation->side[k];
  const size_t size = ein_dtype_size(t->operation->op->dtype);
  const int last = x->n - 1, loop = last < 0 ? 0 : x->loop[last];
  const int64_t row = last < 0 ? 1 : t->extent[loop];
  const int64_t step = last < 0 ? 1 : t->stride[(int64_t)x->stream * t->nindex + loop];
  const char *base = eini_operation_base(t, slot, x->stream);
  int64_t index[EINI_BLOCK_AXES] = {0}, at = w->at[x->stream], here;
  char *to = w->block[k];
  eini_eval ev;
  memset(&ev, 0, sizeof ev);
  ev.code = &x->code;
  ev.base = &base;
  ev.at = &here;
  ev.step = &step;
  ev.reg = w->reg;
  ev.mem = w->mem;
  eini_code_begin(&ev, NULL, EINI_CHUNK);
  do {
    for (int64_t i = 0; i < row; i += EINI_CHUNK) {
      const int64_t n = eini_min64(EINI_CHUNK, row - i);
      here = at + i * step;
      memcpy(to, eini_code_run(&ev, n, NULL), (size_t)n * size);
      to += (size_t)n * size;
    }
  } while (eini_operation_next(t, x, last, index, &at));
}

// The block of the result goes where it is stored.
static void eini_operation_scatter(const eini_task *t, char *const *slot, eini_operating *w) {
  const eini_operation *b = t->operation;
  const eini_operation_side *x = &b->side[b->nin];
  const ein_dtype own = b->op->dtype, stored = t->ref[x->stream].dtype;
  const size_t size = ein_dtype_size(own), out = ein_dtype_size(stored);
  const int last = x->n - 1, loop = last < 0 ? 0 : x->loop[last];
  const int64_t row = last < 0 ? 1 : t->extent[loop];
  const int64_t step = last < 0 ? 1 : t->stride[(int64_t)x->stream * t->nindex + loop];
  char *base = eini_operation_base(t, slot, x->stream);
  int64_t index[EINI_BLOCK_AXES] = {0}, at = w->at[x->stream];
  const char *from = w->block[b->nin];
  do {
    for (int64_t i = 0; i < row; i += EINI_CHUNK) {
      const int64_t n = eini_min64(EINI_CHUNK, row - i);
      const void *v = from;
      if (own != stored) {  // whole lanes are read
        memcpy(w->raw, from, (size_t)n * size);
        v = eini_narrow(own, stored, n, w->raw, eini_storage_find(NULL, EIN_OP_CAST, stored),
                        w->conv, w->conv2);
      }
      eini_scatter(out, n, v, base + (at + i * step) * (int64_t)out, step, NULL);
      from += (size_t)n * size;
    }
  } while (eini_operation_next(t, x, last, index, &at));
}

// The address of a block that lies as it is wanted; NULL: it does not, or is not aligned.
static char *eini_operation_here(const eini_task *t, int k, char *const *slot,
                              const eini_operating *w) {
  const eini_operation_side *x = &t->operation->side[k];
  const size_t size = ein_dtype_size(t->operation->op->dtype);
  if (!x->placed) return NULL;
  char *p = eini_operation_base(t, slot, x->stream) + w->at[x->stream] * (int64_t)size;
  return (uintptr_t)p % (size > 8 ? 8 : size) == 0 ? p : NULL;
}

static ein_status eini_operation_call(const eini_task *t, char *const *slot, eini_operating *w) {
  const eini_operation *b = t->operation;
  const void *in[EINI_ARGS_MAX];
  void *out[EINI_ARGS_MAX];
  for (int k = 0; k < b->nin; k++) {
    const char *p = eini_operation_here(t, k, slot, w);
    if (p == NULL) eini_operation_gather(t, k, slot, w);
    in[k] = p != NULL ? p : w->block[k];
  }
  char *p = eini_operation_here(t, b->nin, slot, w);
  char *to = p != NULL ? p : w->block[b->nin];
  for (int o = 0; o < b->nout; o++)
    out[o] = to + b->from[o] * (int64_t)ein_dtype_size(b->op->dtype);
  EINI_TRY(b->op->fn(b->size, in, out, b->op->user));
  if (p == NULL) eini_operation_scatter(t, slot, w);
  return EIN_OK;
}

// Points whose loop `cut` has values [lo, hi).
static ein_status eini_operation_run(const eini_task *t, char *const *slot, char *scratch,
                                       int64_t lo, int64_t hi) {
  const eini_operation *b = t->operation;
  eini_operating w;
  (void)eini_operation_layout(t, &w, scratch);
  memset(w.index, 0, (size_t)b->nouter * 8);
  memset(w.at, 0, (size_t)t->nstream * 8);
  for (int s = 0; s < t->nstream && t->cut >= 0; s++)
    w.at[s] = lo * t->stride[(int64_t)s * t->nindex + t->cut];
  for (int more = 1; more;) {
    EINI_TRY(eini_operation_call(t, slot, &w));
    more = 0;
    for (int d = b->nouter - 1; d >= 0 && !more; d--) {
      const int i = b->outer[d];
      const int64_t n = i == t->cut ? hi - lo : t->extent[i];
      more = ++w.index[d] < n;
      for (int s = 0; s < t->nstream; s++)
        w.at[s] += (more ? 1 : 1 - n) * t->stride[(int64_t)s * t->nindex + i];
      if (!more) w.index[d] = 0;
    }
  }
  return EIN_OK;
}

static ein_status eini_operation_failed(const eini_task *t, ein_status st, const char *out,
                                        char *error, size_t size) {
  if (error != NULL && size > 0)
    snprintf(error, size, "the operator '%.60s' failed in '%.60s': %s", t->operation->op->name, out,
             ein_status_text(st));
  return st;
}
