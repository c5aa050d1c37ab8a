// ================================================================================================
// >>products  statements that are contractions
// Takes a folded product of two factors; gives a task for the contract kernel: indices grouped into
// batch, m, n and k, each side's expression compiled for packing, the epilogue for the store.
// ================================================================================================

// A factor of a store: a constant or a param.
typedef struct eini_factor {
  int given;                    // 0: none
  int skip;                     // 1: where it is 0, what it multiplies is not read
  ein_fill from;
} eini_factor;

typedef struct eini_contract_task {
  ein_contract c;               // all but addresses
  ein_part whole;
  ein_code code[2];            // P and Q, when they are not plain
  const int64_t **stride[2][3]; // per side: pointers to row, k, batch strides of its operands
  const int64_t **extra[3];     // batch, m, n
  ein_dtype *dtype[2], *extra_dtype;
  int first[2];                 // stream of each side's first operand
  int64_t values;               // of indices that factors read
  eini_factor factor[2];        // alpha and beta of a scaled store
} eini_contract_task;

// What the kernel's callbacks need while a task runs.
typedef struct eini_fill_ctx {
  eini_eval ev;
  int64_t *at, *step;
  const int64_t **table;
} eini_fill_ctx;

typedef struct eini_emit_ctx {
  const eini_task *t;
  eini_eval ev;
  int64_t *at, *step;
  const int64_t **table;
  const char **base;
  void *conv, *conv2;
} eini_emit_ctx;

// n offsets from the given one on: *at + i * *step where they are that (*use is NULL then), else
// *use. gap: what is known to be between two.
static void eini_table_step(const int64_t *table, const int64_t *gap, int64_t from, int64_t n,
                            int64_t *at, int64_t *step, const int64_t **use) {
  *use = NULL;
  *step = gap != NULL ? *gap : n > 1 ? table[from + 1] - table[from] : 1;
  *at = gap != NULL ? table[0] + from * *gap : table[from];
  for (int64_t j = 2; gap == NULL && j < n && *use == NULL; j++)
    if (table[from + j] - table[from + j - 1] != *step) *use = table + from;
  if (*use != NULL) *at = 0;
}

static void eini_contract_fill(void *user, int64_t n, const char *const *base,
                               const int64_t *const *off, const int64_t *gap, void *out) {
  eini_fill_ctx *f = (eini_fill_ctx *)user;
  const ein_code *code = f->ev.code;
  size_t size = ein_dtype_size((ein_dtype)code->type);
  const int called = code->nstep > 0 && code->step[code->nstep - 1].op == EIN_OP_CALL;
  int nop = 0;
  for (int i = 0; i < code->nstep; i++)
    if (code->step[i].op == EIN_OP_OPERAND && code->step[i].a >= nop) nop = code->step[i].a + 1;
  f->ev.base = base;
  f->ev.at = f->at;
  f->ev.step = f->step;
  f->ev.table = f->table;
  f->ev.run = 0;
  for (int64_t done = 0; done < n; done += code->chunk) {
    int64_t m = eini_min64(code->chunk, n - done);
    for (int k = 0; k < nop; k++)
      eini_table_step(off[k], gap == NULL ? NULL : &gap[k], done, m, &f->at[k], &f->step[k],
                      &f->table[k]);
    char *to = (char *)out + (size_t)done * size;
    const void *v = eini_code_run(&f->ev, m, called || m % EINI_LANES != 0 ? NULL : to);
    if (v != to) memcpy(to, v, (size_t)m * size);
  }
}

static void eini_contract_emit(void *user, int64_t n, const void *acc, char *out,
                               const int64_t *off, const char *const *base,
                               const int64_t *const *xoff, const int64_t *gap) {
  eini_emit_ctx *e = (eini_emit_ctx *)user;
  const eini_task *t = e->t;
  ein_dtype type = t->contract->c.type, to = t->ref[t->out].dtype;
  size_t size = ein_dtype_size(type);
  for (int64_t done = 0; done < n; done += t->epi.chunk) {
    int64_t m = eini_min64(t->epi.chunk, n - done);
    const void *v = (const char *)acc + (size_t)done * size;
    ein_dtype vt = type;
    if (t->has_epi) {
      e->base[0] = (const char *)v;
      e->table[0] = NULL;
      e->at[0] = 0;
      e->step[0] = 1;
      for (int k = 1; k <= t->nextra; k++) {
        e->base[k] = base[k - 1];
        eini_table_step(xoff[k - 1], gap == NULL ? NULL : &gap[k], done, m, &e->at[k],
                        &e->step[k], &e->table[k]);
      }
      e->ev.base = e->base;
      e->ev.at = e->at;
      e->ev.step = e->step;
      e->ev.table = e->table;
      e->ev.run = 0;
      v = eini_code_run(&e->ev, m, NULL);
      vt = (ein_dtype)t->epi.type;
    }
    if (vt != to) {
      if (v != e->conv) {  // conversions read padded chunks: move the sums to padded memory first
        memcpy(e->conv2, v, (size_t)m * ein_dtype_size(vt));
        v = e->conv2;
      }
      void *third = (char *)e->conv2 + eini_reg_bytes(&t->epi);
      v = eini_narrow(vt, to, m, v, t->store, e->conv, third);
    }
    const int64_t *table;
    int64_t at, step;
    eini_table_step(off, gap, done, m, &at, &step, &table);
    eini_scatter(ein_dtype_size(to), m, v, out + at * (int64_t)ein_dtype_size(to), step, table);
  }
}

// The same for a store that is scaled.
static void eini_contract_emit_scaled(void *user, int64_t n, const void *folds, char *out,
                                      const int64_t *off, const char *const *base,
                                      const int64_t *const *xoff, const int64_t *gap) {
  const ein_contract *c = (const ein_contract *)user;
  const eini_ckern *t = eini_ckern_of(c->type);
  const int64_t size = t->size * t->planes;
  const char *y = c->beta == NULL ? NULL : base[0], *x = (const char *)folds;
  int64_t on[EINI_LANES], yn[EINI_LANES];
  if (gap == NULL) {
    t->scale(n, t->planes, c->alpha, c->beta, x, y, y == NULL ? NULL : xoff[0], out, off);
    return;
  }
  out += off[0] * size;
  if (y != NULL) y += xoff[0][0] * size;
  const int even = gap[0] == 1 && (y == NULL || gap[1] == 1);
  for (int64_t i = 0, m; i < n; i += m, x += m * size) {
    m = even ? n : eini_min64(n - i, EINI_LANES);
    for (int64_t j = 0; !even && j < m; j++) {
      on[j] = (i + j) * gap[0];
      yn[j] = y == NULL ? 0 : (i + j) * gap[1];
    }
    t->scale(m, t->planes, c->alpha, c->beta, x, y, even ? NULL : yn, out, even ? NULL : on);
  }
}

typedef struct eini_contract_room {
  char *kernel;
  const char **base[2], **extra;
  eini_fill_ctx fill[2];
  eini_emit_ctx emit;
  int64_t *value;               // of indices that factors read, stream after stream
  char *factor;                 // of a scaled store: alpha and beta, 16 bytes each
} eini_contract_room;

// How many values of an index a stream reads: none where it is a tensor.
static int64_t eini_values_of(const eini_task *t, int stream) {
  const int64_t *by = t->stride + (int64_t)stream * t->nindex;
  int64_t n = 1;
  if (t->ref[stream].slot >= 0) return 0;
  for (int i = 0; i < t->nindex; i++) n += by[i] * (t->extent[i] - 1);
  return n;
}

EINI_INLINE size_t eini_contract_layout(const eini_task *t, eini_contract_room *r, char *mem) {
  const eini_contract_task *ct = t->contract;
  size_t used = 0;
  for (int side = 0; side < 2; side++) {
    const ein_side *s = side ? &ct->c.q : &ct->c.p;
    size_t n = (size_t)s->nop;
    r->base[side] = (const char **)(void *)eini_nest_carve(mem, &used, n * sizeof(char *));
    if (s->form == EIN_FORM_PLAIN) continue;
    const ein_code *code = &ct->code[side];
    r->fill[side].at = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->fill[side].step = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->fill[side].table = (const int64_t **)(void *)eini_nest_carve(mem, &used, n * sizeof(void *));
    r->fill[side].ev.reg =
        (void **)(void *)eini_nest_carve(mem, &used, (size_t)code->nreg * sizeof(void *));
    r->fill[side].ev.mem = eini_nest_carve(mem, &used, (size_t)code->nreg * eini_reg_bytes(code));
  }
  if (!ct->c.plain_out)
    r->extra = (const char **)(void *)eini_nest_carve(
        mem, &used, ((size_t)t->nextra + 1) * sizeof(char *));
  if (ct->c.scaled) r->factor = eini_nest_carve(mem, &used, 32);
  if (!ct->c.plain_out && !ct->c.scaled) {
    size_t n = (size_t)t->nextra + 1;
    r->emit.at = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->emit.step = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
    r->emit.table = (const int64_t **)(void *)eini_nest_carve(mem, &used, n * sizeof(void *));
    r->emit.base = (const char **)(void *)eini_nest_carve(mem, &used, n * sizeof(char *));
    r->emit.ev.reg =
        (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->epi.nreg * sizeof(void *));
    const size_t bytes = eini_reg_bytes(&t->epi);
    r->emit.ev.mem = eini_nest_carve(mem, &used, (size_t)t->epi.nreg * bytes);
    r->emit.conv = eini_nest_carve(mem, &used, bytes);
    r->emit.conv2 = eini_nest_carve(mem, &used, 2 * bytes);
  }
  r->value = (int64_t *)(void *)eini_nest_carve(mem, &used, (size_t)ct->values * 8);
  r->kernel = eini_nest_carve(mem, &used, t->choice.scratch);
  return used;
}

// Registers for as many values as there are points: a kernel may ask for padded ones as well, which
// then take another chunk.
static void eini_contract_chunks(eini_task *t) {
  eini_contract_task *ct = t->contract;
  int64_t m = ct->whole.m[1], n = ct->whole.n[1], k = eini_axes_size(&ct->c.k);
  t->epi.chunk = eini_chunk_of(eini_max64(m * n, 1));
  ct->code[0].chunk = eini_chunk_of(eini_max64(m * k, 1));
  ct->code[1].chunk = eini_chunk_of(eini_max64(k * n, 1));
}

static const char *eini_ref_address(const eini_ref *r, char *const *slot) {
  return slot[r->slot] + r->offset;
}

// A provider's map or copy of the range [lo, hi) of the cut loop.
static ein_status eini_provided_run(const eini_task *t, char *const *slot, const ein_scalar *param,
                                    char *scratch, int64_t lo, int64_t hi) {
  const ein_kernels *k = t->kernels;
  eini_provided v;
  scratch += eini_provided_layout(t, &v, scratch);
  for (int i = 0; i < t->live; i++) v.extent[i] = i == t->cut ? hi - lo : t->extent[i];
  for (int s = 0; s < t->nstream; s++) {
    const eini_ref *r = &t->ref[s];
    const int64_t by = t->cut < 0 ? 0 : lo * t->stride[(int64_t)s * t->nindex + t->cut];
    v.at[s] = r->slot < 0 ? eini_ref_value(r, slot) + by : 0;
    v.base[s] = r->slot < 0 ? NULL
                            : slot[r->slot] + r->offset + by * (int64_t)eini_dtypes[r->dtype].size;
  }
  if (t->kind == EINI_TASK_COPY) {
    ein_copy c = eini_copy_of(t);
    c.extent = v.extent;
    c.src = v.base[0];
    c.dst = v.base[t->out];
    return k->copy_run(k->user, &c, &t->choice, scratch);
  }
  ein_map m = eini_map_of(t);
  m.extent = v.extent;
  m.base = v.base;
  m.at = v.at;
  m.param = param;
  return k->map_run(k->user, &m, &t->choice, scratch);
}

// The value of a factor at d; NULL where there is none to apply.
static const void *eini_factor_run(const eini_factor *f, ein_dtype type, const ein_scalar *param,
                                   void *d) {
  static const char zero[16] = {0};
  if (!f->given) return NULL;
  eini_fill_run(&f->from, type, param, 1, d);
  if (f->skip && eini_kind_of(type) < EINI_KREAL && memcmp(d, zero, ein_dtype_size(type)) == 0)
    return NULL;
  const float *s = (const float *)d;
  const double *w = (const double *)d;
  int none = type == EIN_F32 ? s[0] == 0 : type == EIN_F64 ? w[0] == 0
             : type == EIN_C64 ? s[0] == 0 && s[1] == 0
             : type == EIN_C128 && w[0] == 0 && w[1] == 0;
  return f->skip && none ? NULL : d;
}

// A contraction that runs once or, at other addresses, again.
typedef struct eini_contract_job {
  const eini_task *t;
  ein_contract c;
  eini_contract_room r;
} eini_contract_job;

// Bytes of what lasts of a contraction: its operands' addresses, and its kernel's.
static size_t eini_task_keeps(const eini_task *t) {
  return EINI_ALIGN + (t->choice.kept + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// Is *at this address? The first one that asks makes it so.
#if defined(__GNUC__) || defined(__clang__)
static int eini_address_is(const char **at, const char *address) {
  const char *was = NULL;
  return __atomic_compare_exchange_n(at, &was, address, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
         was == address;
}
#else
static int eini_address_is(const char **at, const char *address) {
  if (*at == NULL) *at = address;
  return *at == address;
}
#endif

// What lasts, for a kernel; NULL where it is of other operands than these.
static void *eini_contract_kept(const eini_task *t, const ein_contract *c) {
  const char **at = (const char **)(void *)t->kept;
  for (int side = 0; side < 2; side++) {
    const ein_side *s = side ? &c->q : &c->p;
    if (s->constant && !eini_address_is(&at[side], s->base[0])) return NULL;
  }
  return t->kept + EINI_ALIGN;
}

// All but addresses. Inline, as what follows: of the 65 ns of a call of two by two, calls were 9.
EINI_INLINE void eini_contract_begin(const eini_task *t, const ein_scalar *param, char *scratch,
                                     eini_contract_job *j) {
  const eini_contract_task *ct = t->contract;
  ein_contract *c = &j->c;  // copied by parts: compilers make a slow string instruction of one copy
  const size_t half = offsetof(ein_contract, p), rest = offsetof(ein_contract, unsplit);
  j->t = t;
  memcpy(c, &ct->c, half);
  c->p = ct->c.p;
  c->q = ct->c.q;
  memcpy((char *)c + rest, (const char *)&ct->c + rest, sizeof *c - rest);
  c->param = param;
  eini_contract_layout(t, &j->r, scratch);  // sets what this task uses
  for (int side = 0; side < 2; side++) {
    ein_side *s = side ? &c->q : &c->p;
    s->base = j->r.base[side];
    if (s->form == EIN_FORM_PLAIN) continue;
    eini_fill_ctx *f = &j->r.fill[side];
    f->ev.index_at = f->ev.index_step = NULL;
    f->ev.index_table = NULL;
    f->ev.code = &ct->code[side];
    eini_code_begin(&f->ev, param, f->ev.code->chunk);
    s->fill_fn = eini_contract_fill;
    s->user = f;
  }
  if (!c->plain_out) c->extra_base = j->r.extra;
  if (c->scaled) {
    c->alpha = eini_factor_run(&ct->factor[0], c->type, param, j->r.factor);
    c->beta = eini_factor_run(&ct->factor[1], c->type, param, j->r.factor + 16);
    c->emit_fn = eini_contract_emit_scaled;
    c->emit_user = c;
  } else if (!c->plain_out) {
    eini_emit_ctx *e = &j->r.emit;
    e->t = t;
    e->ev.index_at = e->ev.index_step = NULL;
    e->ev.index_table = NULL;
    e->ev.code = &t->epi;
    if (t->has_epi) eini_code_begin(&e->ev, param, t->epi.chunk);
    c->emit_fn = eini_contract_emit;
    c->emit_user = e;
  }
}

// The addresses of these slots.
EINI_INLINE void eini_contract_place(eini_contract_job *j, char *const *slot) {
  const eini_task *t = j->t;
  const eini_contract_task *ct = t->contract;
  ein_contract *c = &j->c;
  int64_t *value = j->r.value;
  for (int side = 0; side < 2; side++) {
    const int first = ct->first[side], nop = side ? c->q.nop : c->p.nop;
    const char **base = j->r.base[side];
    for (int k = 0; k < nop; k++) {
      const eini_ref *ref = &t->ref[first + k];
      if (ref->slot >= 0) {
        base[k] = eini_ref_address(ref, slot);
        continue;
      }
      base[k] = (const char *)value;
      for (int64_t v = 0, n = eini_values_of(t, first + k); v < n; v++)
        *value++ = eini_ref_value(ref, slot) + v;
    }
  }
  union { const char *c; char *v; } out;
  out.c = eini_ref_address(&t->ref[t->out], slot);
  c->out = out.v;
  for (int k = 0; !c->plain_out && k < t->nextra; k++)
    j->r.extra[k] = eini_ref_address(&t->ref[t->extra + k], slot);
}

// Runs part i of the grid the kernel chose, or all of it (-1), at the addresses of these slots.
EINI_INLINE ein_status eini_contract_at(eini_contract_job *j, char *const *slot, int i) {
  const eini_task *t = j->t;
  const eini_contract_task *ct = t->contract;
  ein_contract *c = &j->c;
  eini_contract_place(j, slot);
  c->kept = t->kept == NULL ? NULL : eini_contract_kept(t, c);
  ein_part one;
  if (i >= 0 && !eini_grid_part(&t->choice, &ct->whole, i, &one)) return EIN_OK;
  const ein_part *part = i >= 0 ? &one : &ct->whole;
  if (t->kernels != NULL)
    return t->kernels->contract_run(t->kernels->user, c, &t->choice, part, j->r.kernel);
  eini_contract_run(c, &t->choice, part, j->r.kernel);
  return EIN_OK;
}

static ein_status eini_contract_task_run(const eini_task *t, char *const *slot,
                                         const ein_scalar *param, char *scratch, int i) {
  eini_contract_job j;
  eini_contract_begin(t, param, scratch, &j);
  return eini_contract_at(&j, slot, i);
}
