// ================================================================================================
// >>cuda-opens  values that a block has before it has gone along all of an index
// Takes expressions of stages; says how their values will change by what is not known before the
// end: X * exp(by * M) * R / S, or X + by * M. M: an extreme along the way; R, S: other results.
// ================================================================================================

#define EINI_CUDA_REFS 6        // results that one stage's values wait for at most

// A result that is waited for, as the loops of a stage find it.
typedef struct eini_cuda_ref {
  int stage;                    // which makes it
  int64_t at;                   // bytes in a block's memory
  ein_dtype dtype;
  int64_t stride[EINI_CUDA_LOOPS];
} eini_cuda_ref;

// The form of a value. Values of form `alone` are such a result itself, and nothing else.
typedef enum eini_cuda_form {
  EINI_CUDA_LINEAR, EINI_CUDA_ADDED, EINI_CUDA_ALONE, EINI_CUDA_NEVER
} eini_cuda_form;

typedef struct eini_cuda_wait {
  eini_cuda_form form;
  int of;                       // the ref that is M, or -1
  double by;
  signed char power[EINI_CUDA_REFS];  // of refs that multiply, or (< 0) divide
} eini_cuda_wait;

enum { EINI_CUDA_BEFORE, EINI_CUDA_PIECE, EINI_CUDA_FOLDED, EINI_CUDA_AFTER };

// A stage, or (stage -1) a copy to shared memory.
typedef struct eini_cuda_act {
  eini_cuda_nest x;             // streams behind the output: what the end, and M's changes, need
  int stage, when;
  int along;                    // x's loop, or -1
  int only;                     // operand that a fold along takes as it is, or -1
  const int64_t *step[EINI_CUDA_STREAMS];  // by the group's loops; NULL: none
  int made[EINI_CUDA_STREAMS];  // act that makes it, or -1
  unsigned char own[EINI_CUDA_STREAMS];    // as eini_cuda_writer's
  unsigned char summed[EINI_CUDA_STREAMS]; // 1: what is waited for, as M
  int nref;
  eini_cuda_ref ref[EINI_CUDA_REFS];
  eini_cuda_wait open;          // of what it makes
  int extreme;                  // 1: it is M of another
  int rows, cols;               // > 0: a product, with so many results of a thread, and ..
  unsigned across;              // .. of its free loops, those of columns
  int cores, warps, side[2];    // of tensor cores: warps down the rows; streams of rows, columns
  int state, moved, place[EINI_CUDA_REFS], change;  // streams, or -1
} eini_cuda_act;

static eini_cuda_wait eini_cuda_known(void) {
  eini_cuda_wait v;
  memset(&v, 0, sizeof v);
  v.form = EINI_CUDA_LINEAR;
  v.of = -1;
  return v;
}

static eini_cuda_wait eini_cuda_never(void) {
  eini_cuda_wait v = eini_cuda_known();
  v.form = EINI_CUDA_NEVER;
  return v;
}

static int eini_cuda_is_known(const eini_cuda_wait *v) {
  int known = v->form == EINI_CUDA_LINEAR && v->of < 0;
  for (int i = 0; i < EINI_CUDA_REFS; i++) known &= v->power[i] == 0;
  return known;
}

static int eini_cuda_alike(const eini_cuda_wait *a, const eini_cuda_wait *b) {
  return a->form == b->form && a->of == b->of && !(a->by < b->by) && !(a->by > b->by) &&
         memcmp(a->power, b->power, sizeof a->power) == 0;
}

// The ref of a result, added where there is none like it; -1: there are too many.
static int eini_cuda_ref_add(eini_cuda_act *k, const eini_cuda_ref *r) {
  for (int i = 0; i < k->nref; i++)
    if (k->ref[i].stage == r->stage && k->ref[i].at == r->at &&
        memcmp(k->ref[i].stride, r->stride, sizeof r->stride) == 0)
      return i;
  if (k->nref == EINI_CUDA_REFS) return -1;
  k->ref[k->nref] = *r;
  return k->nref++;
}

// Is loop i of a stage's operand o the loop m of the stage that makes it?
static int eini_cuda_same_loop(const eini_cuda_act *k, int o, int i, const eini_cuda_act *j,
                               int m) {
  return i != k->along && m != j->along && k->x.stride[o][i] == j->x.stride[j->x.out][m] &&
         k->x.extent[i] == j->x.extent[m];
}

// A ref of the stage j that makes operand o, as stage k finds it; -1: its loops do not say where.
static int eini_cuda_ref_moved(eini_cuda_act *k, int o, const eini_cuda_act *j, int r) {
  eini_cuda_ref y = j->ref[r];
  memset(y.stride, 0, sizeof y.stride);
  for (int m = 0; m < j->x.n; m++) {
    int i = 0;
    if (j->ref[r].stride[m] == 0) continue;
    while (i < k->x.nfree && !eini_cuda_same_loop(k, o, i, j, m)) i++;
    if (i == k->x.nfree) return -1;
    y.stride[i] = j->ref[r].stride[m];
  }
  return eini_cuda_ref_add(k, &y);
}

// Operand o of stage k, which act j makes.
static eini_cuda_wait eini_cuda_open_of(eini_cuda_act *all, eini_cuda_act *k, int o,
                                        const ein_group *g) {
  eini_cuda_wait v = eini_cuda_known(), never = eini_cuda_never();
  const eini_cuda_act *j = k->made[o] < 0 ? NULL : &all[k->made[o]];
  if (j == NULL || j->when == EINI_CUDA_BEFORE) return v;
  if (j->when == EINI_CUDA_PIECE) {
    v = j->open;
    memset(v.power, 0, sizeof v.power);
    for (int r = 0; r < EINI_CUDA_REFS; r++) {
      if (j->open.power[r] == 0 && j->open.of != r) continue;
      const int to = eini_cuda_ref_moved(k, o, j, r);
      if (to < 0) return never;
      if (j->open.of == r) v.of = to;
      v.power[to] = (signed char)(v.power[to] + j->open.power[r]);
    }
    return v;
  }
  eini_cuda_ref r;
  memset(&r, 0, sizeof r);
  r.stage = k->made[o];
  r.dtype = (ein_dtype)k->x.dtype[o];
  r.at = g->local[g->stage[k->stage].tensor[o]] + g->stage[k->stage].offset[o];
  memcpy(r.stride, k->x.stride[o], sizeof r.stride);
  for (int i = k->x.nfree; i < k->x.n; i++)
    if (r.stride[i] != 0) return never;
  if (!k->own[o] || (v.of = eini_cuda_ref_add(k, &r)) < 0) return never;
  v.form = EINI_CUDA_ALONE;
  return v;
}

// ---- the extreme of what an exponential takes ----

// Is operand o of stage k where stage j, an extreme along the way of what it reads as it is, has
// its result c? Then it is on the safe side of it.
static int eini_cuda_bounded(const eini_cuda_act *k, int o, const eini_cuda_act *j,
                             const eini_cuda_ref *c, const ein_group *g) {
  const eini_cuda_nest *x = &k->x, *y = &j->x;
  if (j->only < 0 || j->x.n - j->x.nfree != 1 || k->along < 0 || k->along >= x->nfree) return 0;
  const ein_stage *s = &g->stage[k->stage], *t = &g->stage[j->stage];
  if (k->made[o] != j->made[j->only] || g->same[s->tensor[o]] != g->same[t->tensor[j->only]] ||
      s->offset[o] != t->offset[j->only] || x->dtype[o] != y->dtype[j->only] ||
      x->stride[o][k->along] != y->stride[j->only][j->along])
    return 0;
  for (int l = 0; l < g->nloop; l++)
    if (s->step[o * g->nloop + l] != t->step[j->only * g->nloop + l]) return 0;
  for (int i = 0; i < x->n; i++) {
    int m = 0;
    if (i == k->along || (x->stride[o][i] == 0 && c->stride[i] == 0)) continue;
    while (m < y->nfree && (y->stride[j->only][m] != x->stride[o][i] ||
                            y->extent[m] != x->extent[i] ||
                            y->stride[y->out][m] != c->stride[i]))
      m++;
    if (m == y->nfree) return 0;
  }
  return c->at == g->local[t->tensor[y->out]] + t->offset[y->out];
}

// Which way the result of a stage bounds what it folds: 1: from above, -1: from below, 0: not.
static int eini_cuda_bounds(const eini_cuda_act *j) {
  if (j->when != EINI_CUDA_FOLDED || j->only < 0 || !eini_cuda_real(j->x.type)) return 0;
  if (j->x.fold == EIN_FOLD_MAX || j->x.fold == EIN_FOLD_LOGSUMEXP) return 1;
  return j->x.fold == EIN_FOLD_MIN ? -1 : 0;
}

// ---- steps ----

// What the registers of an expression are. operand: that a register is as it is, or -1; number: of
// a constant, else NAN.
typedef struct eini_cuda_reader {
  eini_cuda_act *all, *k;
  const ein_group *g;
  eini_cuda_wait value[EINI_CUDA_REGS];
  int operand[EINI_CUDA_REGS];
  double number[EINI_CUDA_REGS];
} eini_cuda_reader;

// A result itself as a factor. 0: it is M of the stage, too.
static int eini_cuda_factor(eini_cuda_reader *r, eini_cuda_wait *v) {
  if (v->form != EINI_CUDA_ALONE) return v->form == EINI_CUDA_LINEAR;
  const int of = v->of;
  *v = eini_cuda_known();
  v->power[of] = 1;
  for (int s = 0; s < r->k->x.out && s < EINI_CUDA_STREAMS; s++)  // (gcc warns without the second)
    if (r->k->made[s] == r->k->ref[of].stage) r->k->own[s] = 2;
  return 1;
}

static eini_cuda_wait eini_cuda_times(eini_cuda_reader *r, eini_cuda_wait a, eini_cuda_wait b,
                                      int sign) {
  eini_cuda_wait v = eini_cuda_never();
  if (!eini_cuda_factor(r, &a) || !eini_cuda_factor(r, &b)) return v;
  if (b.of >= 0 && (sign < 0 || a.of >= 0)) return v;
  v = a;
  if (b.of >= 0) v.of = b.of, v.by = b.by;
  for (int i = 0; i < EINI_CUDA_REFS; i++)
    v.power[i] = (signed char)(a.power[i] + sign * b.power[i]);
  return v;
}

// a - b, where one is a result that bounds the other.
static eini_cuda_wait eini_cuda_exceeds(eini_cuda_reader *r, const ein_step *s) {
  const eini_cuda_wait *a = &r->value[s->a], *b = &r->value[s->b];
  const int flip = a->form == EINI_CUDA_ALONE;
  const eini_cuda_wait *m = flip ? a : b;
  const int o = r->operand[flip ? s->b : s->a], c = r->operand[flip ? s->a : s->b];
  eini_cuda_wait v = eini_cuda_never();
  if (m->form != EINI_CUDA_ALONE || o < 0 || c < 0) return v;
  const eini_cuda_ref *ref = &r->k->ref[m->of];
  eini_cuda_act *j = &r->all[ref->stage];
  if (eini_cuda_bounds(j) != (flip ? -1 : 1) || !eini_cuda_bounded(r->k, o, j, ref, r->g))
    return v;
  v.form = EINI_CUDA_ADDED;
  v.of = m->of;
  v.by = flip ? 1 : -1;
  for (int i = 0; i < r->k->x.nop && i < EINI_CUDA_STREAMS; i++)  // (as above)
    if (r->k->made[i] == ref->stage) r->k->summed[i] = 1;
  j->extreme = 1;
  return v;
}

// Of values of which one waits for a result: those that stay in form.
static eini_cuda_wait eini_cuda_step_open(eini_cuda_reader *r, const ein_step *s) {
  const eini_cuda_wait *a = &r->value[s->a], *b = &r->value[s->b], *c = &r->value[s->c];
  eini_cuda_wait v = eini_cuda_never();
  const int added = a->form == EINI_CUDA_ADDED || b->form == EINI_CUDA_ADDED;
  const int real = eini_cuda_real((ein_dtype)s->from) && eini_cuda_real((ein_dtype)s->type);
  if (!real) return v;
  switch (s->op) {
    case EIN_OP_CAST: case EIN_OP_ROUNDTO:
      return a->form == EINI_CUDA_LINEAR || a->form == EINI_CUDA_ADDED ? *a : v;
    case EIN_OP_NEG:
      return a->form == EINI_CUDA_LINEAR ? *a : v;
    case EIN_OP_SUB: case EIN_OP_ADD:
      if (a->form == EINI_CUDA_LINEAR && eini_cuda_alike(a, b)) return *a;
      if (a->form == EINI_CUDA_ADDED && eini_cuda_is_known(b)) return *a;
      if (s->op == EIN_OP_ADD && b->form == EINI_CUDA_ADDED && eini_cuda_is_known(a)) return *b;
      return s->op == EIN_OP_SUB ? eini_cuda_exceeds(r, s) : v;
    case EIN_OP_MUL: case EIN_OP_DIV:
      if (!added) return eini_cuda_times(r, *a, *b, s->op == EIN_OP_MUL ? 1 : -1);
      if (a->form == EINI_CUDA_ADDED && r->number[s->b] > 0) {
        v = *a;
        v.by = s->op == EIN_OP_MUL ? v.by * r->number[s->b] : v.by / r->number[s->b];
      } else if (s->op == EIN_OP_MUL && b->form == EINI_CUDA_ADDED && r->number[s->a] > 0) {
        v = *b;
        v.by *= r->number[s->a];
      }
      return v;
    case EIN_OP_EXP:
      if (a->form != EINI_CUDA_ADDED) return v;
      v = *a;
      v.form = EINI_CUDA_LINEAR;
      return v;
    case EIN_OP_WHERE:
      if (!eini_cuda_is_known(a) || b->form != EINI_CUDA_LINEAR || c->form != EINI_CUDA_LINEAR)
        return v;
      if (eini_cuda_alike(b, c)) return *b;
      if (b->of >= 0 || c->of >= 0) return v;  // what M makes of infinities would be lost
      return r->number[s->c] == 0 ? *b : r->number[s->b] == 0 ? *c : v;
    default: return v;
  }
}

// The value of an expression, operand 0 of which is `zero` where that is not NULL; others are
// streams from `first` on.
static eini_cuda_wait eini_cuda_read(eini_cuda_reader *r, const ein_code *c, int first,
                                     const eini_cuda_wait *zero) {
  if (c->nreg > EINI_CUDA_REGS) return eini_cuda_never();
  for (int i = 0; i < c->nfill; i++) {
    const ein_fill *f = &c->fill[i];
    r->value[f->reg] = eini_cuda_known();
    r->operand[f->reg] = -1;
    r->number[f->reg] = f->param < 0 && eini_cuda_real((ein_dtype)f->type) ? f->re : NAN;
  }
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    eini_cuda_wait v = eini_cuda_known();
    int operand = -1;
    if (s->op == EIN_OP_OPERAND && s->a == 0 && zero != NULL) {
      v = *zero;
    } else if (s->op == EIN_OP_OPERAND) {
      operand = first + s->a;
      v = eini_cuda_open_of(r->all, r->k, operand, r->g);
    } else if (s->op == EIN_OP_CALL) {
      v = eini_cuda_never();
    } else if (s->op != EIN_OP_INDEX) {
      if (!eini_cuda_is_known(&r->value[s->a]) || !eini_cuda_is_known(&r->value[s->b]) ||
          !eini_cuda_is_known(&r->value[s->c]))
        v = eini_cuda_step_open(r, s);
    }
    r->value[s->dst] = v;
    r->operand[s->dst] = operand;
    r->number[s->dst] = NAN;
  }
  return r->value[c->result];
}
