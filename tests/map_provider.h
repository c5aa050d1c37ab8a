// A provider of element-wise and map-reduce kernels, of public names only: it reads the expression
// program and strides, an element at a time. Operations of f64 and f32 that it knows it does
// itself, others by the functions of the steps. What it cannot do it leaves to others: f16 and
// bf16, and the folds logsumexp and var. Include after einsum.h's declarations.

#include <string.h>

enum { MAPS_REG = 256 };  // bytes of a register: 16 values, of which the first counts

static int maps_stored(ein_dtype t) { return t != EIN_NONE && t != EIN_F16 && t != EIN_BF16; }

static int maps_code_fits(const ein_code *c) {
  for (int i = 0; i < c->nstep; i++)
    if (c->step[i].op == EIN_OP_OPERAND && !maps_stored((ein_dtype)c->step[i].from)) return 0;
  return 1;
}

// The type of what is stored.
static ein_dtype maps_result(const ein_map *m) {
  if (m->store != NULL) return (ein_dtype)m->store->type;
  if (m->fold == EIN_FOLD_ARGMAX || m->fold == EIN_FOLD_ARGMIN) return EIN_I64;
  return (ein_dtype)m->code->type;
}

static int maps_stores(ein_dtype from, ein_dtype to) {
  const int ints = (from == EIN_I32 || from == EIN_I64) && to >= EIN_U8 && to <= EIN_I64;
  return from == to || ints || (from == EIN_F64 && to == EIN_F32);
}

static size_t maps_scratch(const ein_map *m) {
  const int regs = m->code->nreg + (m->store == NULL ? 0 : m->store->nreg);
  return (size_t)regs * MAPS_REG + (size_t)(m->nstream + m->n) * sizeof(int64_t);
}

static int maps_plan(void *user, const ein_map *m, int width, int nth, ein_choice *choice) {
  (void)user, (void)width;
  if (nth > 0) return 0;
  if (m->fold == EIN_FOLD_LOGSUMEXP || m->fold == EIN_FOLD_VAR) return 0;
  if (!maps_code_fits(m->code) || (m->store != NULL && !maps_code_fits(m->store))) return 0;
  if (!maps_stores(maps_result(m), m->dtype[m->nstream - 1])) return 0;
  choice->seconds = 0;
  choice->scratch = maps_scratch(m);
  memcpy(choice->variant, "elements", 9);
  return 1;
}

// ---- values ----

static void maps_load(ein_dtype t, const char *p, void *reg) {
  int32_t i = 0;
  int16_t h;
  if (t == EIN_BOOL) *(uint8_t *)reg = *p != 0;
  else if (t == EIN_U8) i = *(const uint8_t *)p;
  else if (t == EIN_I8) i = *(const int8_t *)p;
  else if (t == EIN_I16) memcpy(&h, p, sizeof h), i = h;
  else memcpy(reg, p, ein_dtype_size(t));
  if (t == EIN_U8 || t == EIN_I8 || t == EIN_I16) memcpy(reg, &i, sizeof i);
}

static void maps_store(ein_dtype from, ein_dtype to, const void *reg, char *p) {
  int64_t i = 0;
  double d;
  float f;
  if (from == EIN_I32) i = *(const int32_t *)reg;
  if (from == EIN_I64) i = *(const int64_t *)reg;
  if (from == to) {
    memcpy(p, reg, ein_dtype_size(to));
  } else if (from == EIN_F64) {
    memcpy(&d, reg, sizeof d), f = (float)d;
    memcpy(p, &f, sizeof f);
  } else {  // the low bytes, whatever their order
    for (size_t b = 0; b < ein_dtype_size(to); b++) {
      const uint16_t one = 1;
      const int little = *(const unsigned char *)&one == 1;
      p[little ? b : ein_dtype_size(to) - 1 - b] = (char)(unsigned char)((uint64_t)i >> (8 * b));
    }
  }
}

static void maps_fill(const ein_fill *f, const ein_scalar *param, void *reg) {
  const double re = f->param < 0 ? f->re : param[f->param].re;
  const double im = f->param < 0 ? f->im : param[f->param].im;
  const int64_t i = f->param < 0 ? f->ival : (int64_t)re;
  switch (f->type) {
    case EIN_BOOL: *(uint8_t *)reg = re != 0 || im != 0; break;
    case EIN_I32: *(int32_t *)reg = (int32_t)(uint32_t)(uint64_t)i; break;
    case EIN_I64: *(int64_t *)reg = i; break;
    case EIN_F32: *(float *)reg = (float)re; break;
    case EIN_F64: *(double *)reg = re; break;
    case EIN_C64: ((float *)reg)[0] = (float)re, ((float *)reg)[1] = (float)im; break;
    default: ((double *)reg)[0] = re, ((double *)reg)[1] = im; break;
  }
}

#define MAPS_OWN(T)                                                    \
  {                                                                    \
    const T x = *(const T *)a, y = *(const T *)b;                      \
    if (op == EIN_OP_ADD) *(T *)d = x + y;                             \
    else if (op == EIN_OP_SUB) *(T *)d = x - y;                        \
    else if (op == EIN_OP_MUL) *(T *)d = x * y;                        \
    else if (op == EIN_OP_DIV) *(T *)d = x / y;                        \
    else if (op == EIN_OP_NEG) *(T *)d = -x;                           \
    else return 0;                                                     \
    return 1;                                                          \
  }
static int maps_own(int op, int type, const void *a, const void *b, void *d) {
  if (type == EIN_F64) MAPS_OWN(double)
  if (type == EIN_F32) MAPS_OWN(float)
  return 0;
}
#undef MAPS_OWN

typedef struct maps_walk {
  const ein_map *m;
  char *reg[2];          // of code and store
  int64_t *off, *index;  // per stream: elements from the base; per loop
} maps_walk;

static const char *maps_address(const maps_walk *w, int s) {
  return w->m->base[s] + w->off[s] * (int64_t)ein_dtype_size(w->m->dtype[s]);
}

// The value of one element. first: stream of operand 0; fold: operand 0 itself, or NULL.
static const void *maps_eval(const maps_walk *w, const ein_code *c, char *reg, int first,
                             int values, const void *fold) {
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    char *d = reg + s->dst * MAPS_REG, *a = reg + s->a * MAPS_REG, *b = reg + s->b * MAPS_REG;
    if (s->op == EIN_OP_OPERAND) {
      if (fold != NULL && s->a == 0) memcpy(d, fold, ein_dtype_size((ein_dtype)s->from));
      else maps_load((ein_dtype)s->from, maps_address(w, first + s->a), d);
    } else if (s->op == EIN_OP_INDEX) {
      *(int64_t *)(void *)d = w->m->at[values + s->a] + w->off[values + s->a];
    } else if (s->op == EIN_OP_CALL) {
      const ein_function *f = &c->function[s->a];
      const void *in[8];
      for (int k = 0; k < s->c; k++) in[k] = reg + c->list[s->b + k] * MAPS_REG;
      f->fn(1, in, d, f->user);
    } else if (!maps_own(s->op, s->type, a, b, d)) {
      s->fn(16, a, b, reg + s->c * MAPS_REG, d);
    }
  }
  return reg + c->result * MAPS_REG;
}

static const void *maps_value(const maps_walk *w) {
  return maps_eval(w, w->m->code, w->reg[0], 0, w->m->nop, NULL);
}

// ---- folds ----

#define MAPS_FOLD(T, W)                                                                     \
  {                                                                                         \
    const T y = *(const T *)v;                                                              \
    T *x = (T *)s->value;                                                                   \
    const int less = fold == EIN_FOLD_MIN || fold == EIN_FOLD_ARGMIN;                       \
    if (s->first) *x = y;                                                                   \
    else if (fold == EIN_FOLD_SUM || fold == EIN_FOLD_MEAN) *x = (T)((W)*x + (W)y);         \
    else if (fold == EIN_FOLD_PROD) *x = (T)((W)*x * (W)y);                                 \
    else if (*x == *x && (y != y || (less ? y < *x : y > *x))) *x = y;                      \
    else if ((y != *x && (y == y || *x == *x)) || position > s->position) return;           \
    s->position = position;                                                                 \
  }
#define MAPS_COMPLEX(T)                                                                     \
  {                                                                                         \
    const T *y = (const T *)v;                                                              \
    T *x = (T *)s->value, re = x[0], im = x[1];                                             \
    if (s->first) x[0] = y[0], x[1] = y[1];                                                 \
    else if (fold == EIN_FOLD_PROD) x[0] = re * y[0] - im * y[1], x[1] = re * y[1] + im * y[0]; \
    else x[0] += y[0], x[1] += y[1];                                                        \
  }

typedef struct maps_state {
  int first;
  int64_t position;
  double value[32], more[4][32], acc[4][32];  // the latter: states of monoids
} maps_state;

static void maps_fold(ein_fold fold, ein_dtype t, const void *v, int64_t position,
                      maps_state *s) {
  uint8_t *bits = (uint8_t *)s->value;
  switch (t) {
    case EIN_BOOL:
      if (fold == EIN_FOLD_ARGMAX || fold == EIN_FOLD_ARGMIN) MAPS_FOLD(uint8_t, unsigned)
      else if (s->first) *bits = *(const uint8_t *)v;
      else if (fold == EIN_FOLD_ANY || fold == EIN_FOLD_MAX) *bits |= *(const uint8_t *)v;
      else *bits &= *(const uint8_t *)v;
      break;
    case EIN_I32: MAPS_FOLD(int32_t, uint32_t) break;
    case EIN_I64: MAPS_FOLD(int64_t, uint64_t) break;
    case EIN_F32: MAPS_FOLD(float, float) break;
    case EIN_F64: MAPS_FOLD(double, double) break;
    case EIN_C64: MAPS_COMPLEX(float) break;
    default: MAPS_COMPLEX(double) break;
  }
}
#undef MAPS_FOLD
#undef MAPS_COMPLEX

// Folds a value into the states of a monoid.
static void maps_merge(const ein_monoid *u, const void *v, maps_state *s) {
  void *acc[4] = {s->acc[0], s->acc[1], s->acc[2], s->acc[3]};
  void *more[4] = {s->more[0], s->more[1], s->more[2], s->more[3]};
  const void *in[4] = {s->more[0], s->more[1], s->more[2], s->more[3]};
  for (int k = 0; s->first && k < u->nstate; k++) {
    ein_fill f;
    memset(&f, 0, sizeof f);
    f.param = -1;
    f.type = (unsigned char)(u->dtype == EIN_NONE ? EIN_F64 : u->dtype);
    f.re = u->identity[k];
    f.ival = (int64_t)f.re;
    maps_fill(&f, NULL, acc[k]);
  }
  if (u->lift_fn != NULL) u->lift_fn(1, v, more, u->user);
  else memcpy(more[0], v, 16);
  u->merge_fn(1, acc, in, u->user);
}

static const void *maps_finish(const ein_map *m, maps_state *s) {
  const ein_dtype t = (ein_dtype)m->code->type;
  const int n = t == EIN_C64 || t == EIN_C128 ? 2 : 1;
  if (m->fold == EIN_FOLD_ARGMAX || m->fold == EIN_FOLD_ARGMIN) return &s->position;
  if (m->fold == EIN_FOLD_USER) {
    const void *in[4] = {s->acc[0], s->acc[1], s->acc[2], s->acc[3]};
    if (m->monoid->finish_fn == NULL) return s->acc[0];
    m->monoid->finish_fn(1, in, s->value, m->monoid->user);
  }
  for (int k = 0; m->fold == EIN_FOLD_MEAN && k < n; k++) {
    float *f = (float *)s->value;
    if (t == EIN_F32 || t == EIN_C64) f[k] = (float)(f[k] / m->count);
    else s->value[k] /= m->count;
  }
  return s->value;
}

// ---- loops ----

// The next values of loops [from, to), the last one fastest; 0: it was the last.
static int maps_next(maps_walk *w, int from, int to) {
  const ein_map *m = w->m;
  for (int i = to - 1; i >= from; i--) {
    const int ends = ++w->index[i] == m->extent[i];
    const int64_t by = ends ? 1 - m->extent[i] : 1;
    if (ends) w->index[i] = 0;
    for (int s = 0; s < m->nstream; s++) w->off[s] += by * m->stride[s * m->pitch + i];
    if (!ends) return 1;
  }
  return 0;
}

static const void *maps_folded(maps_walk *w, maps_state *s) {
  const ein_map *m = w->m;
  const int position = m->nop + m->nvalue;
  if (m->fold == EIN_FOLD_NONE) return maps_value(w);
  s->first = 1;
  do {
    const void *v = maps_value(w);
    const int64_t at = m->nposition > 0 ? m->at[position] + w->off[position] : 0;
    if (m->fold == EIN_FOLD_USER) maps_merge(m->monoid, v, s);
    else maps_fold(m->fold, (ein_dtype)m->code->type, v, at, s);
    s->first = 0;
  } while (maps_next(w, m->nfree, m->n));
  return maps_finish(m, s);
}

static ein_status maps_run(void *user, const ein_map *m, const ein_choice *choice, void *scratch) {
  const int out = m->nstream - 1, extra = m->nop + m->nvalue + m->nposition;
  maps_walk w;
  maps_state s;
  if (user != NULL) ++*(int *)user;
  memset(scratch, 0, choice->scratch);
  memset(&s, 0, sizeof s);
  w.m = m;
  w.off = (int64_t *)scratch;
  w.index = w.off + m->nstream;
  w.reg[0] = (char *)(w.index + m->n);
  w.reg[1] = w.reg[0] + m->code->nreg * MAPS_REG;
  for (int k = 0; k < 2; k++) {
    const ein_code *c = k == 0 ? m->code : m->store;
    for (int i = 0; c != NULL && i < c->nfill; i++)
      maps_fill(&c->fill[i], m->param, w.reg[k] + c->fill[i].reg * MAPS_REG);
  }
  do {
    const void *v = maps_folded(&w, &s);
    if (m->store != NULL)
      v = maps_eval(&w, m->store, w.reg[1], extra - 1, extra + m->nextra, v);
    maps_store(maps_result(m), m->dtype[out], v, m->base[out] + w.off[out] *
               (int64_t)ein_dtype_size(m->dtype[out]));
  } while (maps_next(&w, 0, m->nfree));
  return EIN_OK;
}
