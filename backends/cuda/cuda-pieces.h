// ================================================================================================
// >>cuda-pieces  what a block does that goes along an index
// Takes a group with such a loop; gives acts: stages before, for each piece, and after, copies of
// what pieces of products read, and places in shared memory. 0: rules do not say how.
// ================================================================================================

enum { EINI_CUDA_ACTS = 3 * EINI_CUDA_STAGES, EINI_CUDA_PRODUCT = 64 };  // results of a thread

typedef struct eini_cuda_going {
  int n;
  int order[EINI_CUDA_ACTS];    // acts in order: stages by number, copies before all others
  size_t room, states;          // shared memory, and from where lanes' states lie there
  eini_cuda_act act[EINI_CUDA_ACTS];
} eini_cuda_going;

static int eini_cuda_moves(const eini_cuda_nest *x, int s, unsigned loops) {
  for (int i = 0; i < x->n; i++)
    if ((loops >> i & 1) && x->stride[s][i] != 0) return 1;
  return 0;
}

static int64_t eini_cuda_up64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The last stage before k that makes what its stream s is; -1: it comes from outside.
static int eini_cuda_maker(const ein_group *g, int k, int s) {
  for (int j = k - 1; j >= 0 && g->stage[k].tensor[s] >= 0; j--) {
    const ein_stage *y = &g->stage[j];
    if (g->same[y->tensor[y->map.nstream - 1]] == g->same[g->stage[k].tensor[s]]) return j;
  }
  return -1;
}

// Stages, and when they run.
static int eini_cuda_acts_of(const ein_group *g, eini_cuda_going *a) {
  for (int k = 0; k < g->nstage; k++) {
    const ein_stage *s = &g->stage[k];
    eini_cuda_act *x = &a->act[k];
    memset(x, 0, sizeof *x);
    if (!eini_cuda_of_stage(g, s, &x->x)) return 0;
    x->stage = k;
    x->along = s->along;
    x->when = s->along < 0 ? EINI_CUDA_BEFORE : s->along < x->x.nfree ? EINI_CUDA_PIECE
                                                                      : EINI_CUDA_FOLDED;
    x->state = x->moved = x->change = -1;
    for (int r = 0; r < EINI_CUDA_REFS; r++) x->place[r] = -1;
    x->only = x->x.nop == 1 && s->map.code->plain == 0 && !s->map.code->conj &&
                      x->x.store == NULL ? 0 : -1;
    for (int i = 0; i < x->x.nstream; i++) {
      x->step[i] = s->step + i * g->nloop;
      x->made[i] = i == x->x.out ? -1 : eini_cuda_maker(g, k, i);
      x->own[i] = s->tensor[i] >= 0 && g->local[s->tensor[i]] >= 0;
      if (x->made[i] >= 0 && a->act[x->made[i]].when >= EINI_CUDA_FOLDED && s->along < 0)
        x->when = EINI_CUDA_AFTER;
      // Another of these may overwrite it or read it too early.
      if (x->made[i] >= 0 && s->along < 0 && a->act[x->made[i]].when == EINI_CUDA_PIECE) return 0;
    }
  }
  a->n = g->nstage;
  return 1;
}

// What a stage's values wait for. 0: there is no rule.
static int eini_cuda_opened(eini_cuda_reader *r) {
  eini_cuda_act *k = r->k;
  eini_cuda_nest *x = &k->x;
  k->open = eini_cuda_known();
  if (k->when == EINI_CUDA_BEFORE || k->when == EINI_CUDA_AFTER) return 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN || x->fold == EIN_FOLD_USER)
    return 0;
  k->open = eini_cuda_read(r, x->code[0], 0, NULL);
  if (!eini_cuda_is_known(&k->open) && x->fold != EIN_FOLD_NONE &&
      (k->open.form != EINI_CUDA_LINEAR || !eini_cuda_real(x->type) ||
       (x->fold != EIN_FOLD_SUM && x->fold != EIN_FOLD_MEAN)))
    return 0;
  if (k->when == EINI_CUDA_PIECE && x->store != NULL)
    k->open = eini_cuda_read(r, x->store, x->extra - 1, &k->open);
  if (k->open.form > EINI_CUDA_ADDED || (!eini_cuda_is_known(&k->open) && !k->own[x->out] &&
                                         k->when == EINI_CUDA_PIECE))
    return 0;
  for (int s = 0; s < x->out; s++)
    if (k->own[s] == 2 && k->summed[s]) return 0;
  return 1;
}

static int eini_cuda_opens(const ein_group *g, eini_cuda_going *a) {
  eini_cuda_reader r;
  r.all = a->act;
  r.g = g;
  for (int k = 0; k < g->nstage; k++) {
    r.k = &a->act[k];
    if (!eini_cuda_opened(&r)) return 0;
  }
  return 1;
}

// ---- products ----

// The operands of which a value is the plain product, as bits; 0: it is another.
static unsigned eini_cuda_factors(const eini_cuda_act *k) {
  const ein_code *c = k->x.code[0];
  unsigned value[EINI_CUDA_REGS];
  char one[EINI_CUDA_REGS];
  if (c->nfill > 0 || c->nreg > EINI_CUDA_REGS || k->x.extra != k->x.nop) return 0;
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    const int load = s->op == EIN_OP_OPERAND;
    if (s->op != EIN_OP_OPERAND && s->op != EIN_OP_MUL && s->op != EIN_OP_DIV) return 0;
    if (s->type != (unsigned char)k->x.type || (load && s->a > 30)) return 0;
    const unsigned a = load ? 1u << s->a : value[s->a], b = load ? 0 : value[s->b];
    if (!load && (a & b) != 0) return 0;
    if (s->op == EIN_OP_DIV && !one[s->b]) return 0;
    one[s->dst] = (char)(load ? k->own[s->a] == 2 : one[s->a] && one[s->b]);
    value[s->dst] = one[s->dst] ? 0 : a | b;
  }
  return value[c->result];
}

// Does a product of `rows` and `cols` go to tensor cores? Then its operands are set.
static int eini_cuda_cored(const ein_cuda *c, eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  const unsigned all = eini_cuda_loops(0, x->nfree);
  unsigned two = x->fold == EIN_FOLD_SUM && x->n - x->nfree == 1 ? eini_cuda_factors(k) : 0;
  k->side[0] = k->side[1] = -1;
  for (int s = 0; s < x->nop && two != 0; s++) {
    const int row = eini_cuda_moves(x, s, all & ~k->across), col = eini_cuda_moves(x, s, k->across);
    if (!(two >> s & 1)) continue;
    if (row == col || k->side[col] >= 0) return EINI_CUDA_CORES_NONE;
    k->side[col] = s;
  }
  if (k->side[0] < 0 || k->side[1] < 0) return EINI_CUDA_CORES_NONE;
  const ein_dtype p = (ein_dtype)x->dtype[k->side[0]], q = (ein_dtype)x->dtype[k->side[1]];
  const int cores = eini_cuda_cores_for(c, x->type, p, q);
  const int plain = cores >= EINI_CUDA_CORES_F16 || (p == x->type && q == x->type);
  return plain ? cores : EINI_CUDA_CORES_NONE;
}

// Results of a thread where warps share fragments of tensor cores: as few as can be.
static void eini_cuda_fragmented(eini_cuda_act *k, int64_t rows, int64_t cols) {
  const int m = eini_cuda_fragments[k->cores].m;
  int64_t least = 0;
  for (int warps = 1; warps <= 8; warps *= 2) {
    const int64_t r = eini_ceil_div(eini_ceil_div(rows, m), warps) * (m / 8);
    const int64_t c = eini_ceil_div(eini_ceil_div(cols, 8), 8 / warps) * 2;
    if (least > 0 && r * c >= least) continue;
    least = r * c;
    k->warps = warps;
    k->rows = (int)r;
    k->cols = (int)c;
  }
}

// Is a stage a product of rows and columns? Columns are what goes along, or what no operand that is
// made here moves with.
static void eini_cuda_product(const ein_cuda *cuda, eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  unsigned across = 0;
  int64_t rows = 1, cols = 1;
  if (x->fold == EIN_FOLD_NONE || (k->when != EINI_CUDA_PIECE && k->when != EINI_CUDA_FOLDED))
    return;
  for (int i = 0; i < x->nfree; i++) {
    int made = 0;
    for (int s = 0; s < x->nop; s++) made |= k->made[s] >= 0 && x->stride[s][i] != 0;
    const int col = k->when == EINI_CUDA_PIECE ? i == k->along : !made;
    if (col) across |= 1u << i, cols *= x->extent[i];
    else rows *= x->extent[i];
  }
  const int64_t r = (rows + EINI_CUDA_SIDE - 1) / EINI_CUDA_SIDE;
  const int64_t c = (cols + EINI_CUDA_SIDE - 1) / EINI_CUDA_SIDE;
  const int64_t most = EINI_CUDA_PRODUCT * 4 / (int64_t)eini_cuda_state_bytes(x);
  if (cols < 8 || rows < 4 || r * c > most) return;
  k->across = across;
  k->rows = (int)r;
  k->cols = (int)c;
  k->cores = eini_cuda_cored(cuda, k);
  if (k->cores) eini_cuda_fragmented(k, rows, cols);
}

// ---- places ----

// Adds a stream behind the others. 0: there are too many.
static int eini_cuda_extra(eini_cuda_act *k, ein_dtype type, int64_t at, const int64_t *stride) {
  eini_cuda_nest *x = &k->x;
  const int s = x->nstream;
  if (s == EINI_CUDA_STREAMS) return -1;
  x->nstream++;
  x->dtype[s] = (unsigned char)type;
  x->size[s] = (unsigned char)ein_dtype_size(type);
  x->away[s] = 1;
  x->value[s] = x->packed[s] = 0;
  x->base[s] = (char *)(uintptr_t)at;
  for (int i = 0; i < x->n; i++) x->stride[s][i] = stride == NULL ? 0 : stride[i];
  k->step[s] = NULL;
  k->own[s] = 1;
  return s;
}

// Elements from where the memory of what a stage makes begins to the last.
static int64_t eini_cuda_reach(const ein_group *g, const eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  int64_t low, hull = eini_cuda_hull(x, 0, x->out, &low);
  return g->stage[k->stage].offset[x->out] / x->size[x->out] + low + hull;
}

// States, how far an extreme has moved, and where what is waited for lies.
static int eini_cuda_places(const ein_group *g, eini_cuda_going *a) {
  int64_t moved[EINI_CUDA_STAGES] = {0};
  for (int k = 0; k < g->nstage; k++) {
    eini_cuda_act *x = &a->act[k];
    if (x->when != EINI_CUDA_FOLDED) continue;
    if (x->rows == 0) {
      const int64_t results = eini_cuda_extent(&x->x, 0, x->x.nfree);
      x->state = eini_cuda_extra(x, x->x.type, (int64_t)a->room, NULL);
      a->room += (size_t)eini_cuda_up64(results * (int64_t)eini_cuda_state_bytes(&x->x));
      if (x->state < 0) return 0;
    }
    const int64_t own = g->stage[k].offset[x->x.out] / x->x.size[x->x.out];
    const int64_t size = (int64_t)ein_dtype_size(x->x.type);
    if (x->extreme) {
      moved[k] = (int64_t)a->room;
      x->moved = eini_cuda_extra(x, x->x.type, moved[k] + own * size, x->x.stride[x->x.out]);
      a->room += (size_t)eini_cuda_up64(eini_cuda_reach(g, x) * size);
      if (x->moved < 0 || x->rows > 0 || !x->own[x->x.out]) return 0;
    }
    for (int r = 0; r < x->nref; r++) {
      const eini_cuda_ref *f = &x->ref[r];
      const eini_cuda_act *m = &a->act[f->stage];
      if (x->open.of != r && x->open.power[r] == 0) continue;
      if ((x->place[r] = eini_cuda_extra(x, f->dtype, f->at, f->stride)) < 0) return 0;
      if (x->open.of != r) continue;
      const int64_t element = (f->at - g->local[g->stage[f->stage].tensor[m->x.out]]) /
                              (int64_t)ein_dtype_size(f->dtype);
      x->change = eini_cuda_extra(x, m->x.type, moved[f->stage] + element *
                                  (int64_t)ein_dtype_size(m->x.type), f->stride);
      if (x->change < 0) return 0;
    }
  }
  return 1;
}

// ---- copies ----

// The loops of a copy of stream s of stage k, those of large steps first.
static int eini_cuda_copied(const eini_cuda_act *k, int s, int *loop) {
  int n = 0;
  for (int i = 0; i < k->x.n; i++) {
    int to = n;
    if (k->x.stride[s][i] == 0) continue;
    for (; to > 0 && eini_abs64(k->x.stride[s][loop[to - 1]]) < eini_abs64(k->x.stride[s][i]); to--)
      loop[to] = loop[to - 1];
    loop[to] = i;
    n++;
  }
  return n;
}

// Steps from row to row in shared memory: no two neighbours meet in a bank.
static int64_t eini_cuda_pitch(int64_t n, int size) {
  return size >= 4 ? n | 1 : size == 2 ? ((n + 1) / 2 | 1) * 2 : n;
}

// Stream s of stage k is read from shared memory, where a copy of its own puts it. 0: no room.
static int eini_cuda_copy_act(eini_cuda_going *a, eini_cuda_act *k, int s, size_t most) {
  int loop[EINI_CUDA_LOOPS];
  int64_t step[EINI_CUDA_LOOPS], all = 1;
  const int n = eini_cuda_copied(k, s, loop), size = k->x.size[s];
  eini_cuda_act *const c = &a->act[a->n < EINI_CUDA_ACTS ? a->n : 0];
  eini_cuda_nest *const x = &c->x;
  for (int i = n - 1; i >= 0; i--) {
    step[i] = all;
    all = i == n - 1 ? eini_cuda_pitch(k->x.extent[loop[i]], size) : all * k->x.extent[loop[i]];
  }
  const int64_t bytes = eini_cuda_up64(all * size);
  if (a->n == EINI_CUDA_ACTS || n == 0 || eini_cuda_opaque[size] == EIN_NONE ||
      bytes > (int64_t)(most - a->room))
    return n == 0;
  memset(c, 0, sizeof *c);
  x->kind = EINI_CUDA_COPY;
  x->n = x->nfree = n;
  x->nstream = 2;
  x->nop = x->extra = x->extra_value = x->out = 1;
  x->count = 1;
  c->stage = c->along = c->state = c->moved = c->change = c->made[0] = c->made[1] = c->only = -1;
  c->when = EINI_CUDA_BEFORE;
  for (int i = 0; i < n; i++) {
    x->extent[i] = k->x.extent[loop[i]];
    x->stride[0][i] = k->x.stride[s][loop[i]];
    x->stride[1][i] = k->x.stride[s][loop[i]] = step[i];
    if (loop[i] == k->along) c->along = i, c->when = EINI_CUDA_PIECE;
  }
  for (int i = 0; i < 2; i++) {
    x->dtype[i] = (unsigned char)eini_cuda_opaque[size];
    x->size[i] = (unsigned char)size;
    x->away[i] = 1;
  }
  x->base[0] = k->x.base[s];
  x->base[1] = k->x.base[s] = (char *)(uintptr_t)a->room;
  c->step[0] = k->step[s];
  c->own[1] = k->own[s] = 1;
  k->step[s] = NULL;
  a->room += (size_t)bytes;
  a->n++;
  return 1;
}

// What products read again and again. 0: there is not room for all of it.
static int eini_cuda_copies(const ein_group *g, eini_cuda_going *a, size_t most) {
  for (int k = 0; k < g->nstage; k++) {
    eini_cuda_act *x = &a->act[k];
    for (int s = 0; s < x->x.nop && x->rows > 0; s++)
      if (!x->x.value[s] && !x->own[s] && x->made[s] < 0 && !eini_cuda_copy_act(a, x, s, most))
        return 0;
  }
  return 1;
}

// Copies come first, then stages as they are.
static void eini_cuda_acts_order(const ein_group *g, eini_cuda_going *a) {
  int n = 0;
  for (int k = g->nstage; k < a->n; k++) a->order[n++] = k;
  for (int k = 0; k < g->nstage; k++) a->order[n++] = k;
}

static int eini_cuda_going_of(const ein_cuda *c, const ein_group *g, eini_cuda_going *a) {
  const size_t most = c->device.shared;
  size_t lanes = 0;
  a->n = 0;
  if (g->nstage < 1 || g->nstage > EINI_CUDA_STAGES || !eini_cuda_acts_of(g, a) ||
      !eini_cuda_opens(g, a))
    return 0;
  a->room = (size_t)eini_cuda_up64((int64_t)g->bytes);
  for (int k = 0; k < g->nstage; k++) eini_cuda_product(c, &a->act[k]);
  if (!eini_cuda_places(g, a)) return 0;
  for (int k = 0; k < g->nstage; k++)
    if (a->act[k].rows == 0 && a->act[k].x.fold != EIN_FOLD_NONE)
      lanes = eini_cuda_state_bytes(&a->act[k].x) > lanes ? eini_cuda_state_bytes(&a->act[k].x)
                                                          : lanes;
  lanes *= EINI_CUDA_THREADS;
  if (a->room + lanes > most || !eini_cuda_copies(g, a, most - lanes)) return 0;
  eini_cuda_acts_order(g, a);
  for (int k = 0; k < a->n; k++) eini_cuda_strides(&a->act[k].x);
  a->states = a->room;
  a->room += lanes;
  return a->room <= most;
}
