// ================================================================================================
// >>fold  monoids over chunks
// Every fold is merge (and for states of several scalars lift and finish) over arrays of states;
// sums and extrema also have a horizontal form that folds a chunk into one state.
// ================================================================================================

typedef void (*eini_merge_fn)(int64_t n, void *const *acc, const void *const *more, void *user);
typedef void (*eini_lift_fn)(int64_t n, const void *x, const int64_t *pos, void *const *state);
typedef void (*eini_horizontal_fn)(int64_t n, const void *x, void *acc);
typedef void (*eini_vertical_fn)(int64_t n, int64_t rows, int64_t step, const void *x, void *acc);

// acc[i] = op(acc[i], more[i]) for states of one scalar; x is acc's value, y the other.
#define EINI_MERGE(name, T, expr)                                                           \
  static void eini_v_##name(int64_t n, T *EINI_RESTRICT a, const T *EINI_RESTRICT b) {      \
    int64_t i = 0;                                                                          \
    for (; i + EINI_LANES <= n; i += EINI_LANES) {                                          \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = a[i + j], y = b[i + j];                                                 \
        a[i + j] = (T)(expr);                                                               \
      }                                                                                     \
    }                                                                                       \
    for (; i < n; i++) {                                                                    \
      const T x = a[i], y = b[i];                                                           \
      a[i] = (T)(expr);                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_##name(int64_t n, void *const *acc, const void *const *more, void *user) { \
    (void)user;                                                                             \
    eini_v_##name(n, (T *)acc[0], (const T *)more[0]);                                      \
  }                                                                                         \
  /* four rows, one after another; the four after them are `ahead` away */                  \
  static void eini_v4_##name(int64_t n, T *EINI_RESTRICT a, const T *EINI_RESTRICT b,       \
                             const T *EINI_RESTRICT c, const T *EINI_RESTRICT d,            \
                             const T *EINI_RESTRICT e, uintptr_t ahead) {                   \
    T v[EINI_LANES];                                                                        \
    for (; n >= EINI_LANES; n -= EINI_LANES) {                                              \
      EINI_AHEAD((uintptr_t)b + ahead);                                                     \
      EINI_AHEAD((uintptr_t)c + ahead);                                                     \
      EINI_AHEAD((uintptr_t)d + ahead);                                                     \
      EINI_AHEAD((uintptr_t)e + ahead);                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = a[j], y = b[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = c[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = d[j];                                                         \
        v[j] = (T)(expr);                                                                   \
      }                                                                                     \
      for (int j = 0; j < EINI_LANES; j++) {                                                \
        const T x = v[j], y = e[j];                                                         \
        a[j] = (T)(expr);                                                                   \
      }                                                                                     \
      a += EINI_LANES, b += EINI_LANES, c += EINI_LANES, d += EINI_LANES, e += EINI_LANES;  \
    }                                                                                       \
    eini_v_##name(n, a, b);                                                                 \
    eini_v_##name(n, a, c);                                                                 \
    eini_v_##name(n, a, d);                                                                 \
    eini_v_##name(n, a, e);                                                                 \
  }                                                                                         \
  /* acc = op(.. op(acc, row 0) .., last row) for n columns; rows lie step apart */         \
  static void eini_d_##name(int64_t n, int64_t rows, int64_t step, const void *px, void *acc) {\
    const T *x = (const T *)px;                                                             \
    const uintptr_t ahead = 4 * (uintptr_t)step * sizeof(T);                                \
    for (; rows >= 4; rows -= 4, x += rows > 0 ? 4 * step : 0)                              \
      eini_v4_##name(n, (T *)acc, x, x + step, x + 2 * step, x + 3 * step, ahead);          \
    for (int64_t k = 0; k < rows; k++) eini_v_##name(n, (T *)acc, x + k * step);            \
  }                                                                                         \
  /* acc[0] = op(acc[0], fold of v): EINI_LANES partial folds, then a tree over them */     \
  static void eini_h_##name(int64_t n, const void *EINI_RESTRICT pv, void *EINI_RESTRICT pacc) { \
    const T *v = (const T *)pv;                                                             \
    T lane[EINI_LANES];                                                                     \
    int64_t i = EINI_LANES;                                                                 \
    int64_t width = EINI_LANES;                                                             \
    if (n >= EINI_LANES) {                                                                  \
      for (int j = 0; j < EINI_LANES; j++) lane[j] = v[j];                                  \
      for (; i + EINI_LANES <= n; i += EINI_LANES) {                                        \
        for (int j = 0; j < EINI_LANES; j++) {                                              \
          const T x = lane[j], y = v[i + j];                                                \
          lane[j] = (T)(expr);                                                              \
        }                                                                                   \
      }                                                                                     \
    } else {                                                                                \
      width = n;                                                                            \
      for (int64_t j = 0; j < n; j++) lane[j] = v[j];                                       \
      i = n;                                                                                \
    }                                                                                       \
    for (int64_t j = 0; i < n; i++, j++) {                                                  \
      const T x = lane[j], y = v[i];                                                        \
      lane[j] = (T)(expr);                                                                  \
    }                                                                                       \
    while (width > 1) {                                                                     \
      int64_t half = width / 2;                                                             \
      for (int64_t j = 0; j < half; j++) {                                                  \
        const T x = lane[j], y = lane[width - half + j];                                    \
        lane[j] = (T)(expr);                                                                \
      }                                                                                     \
      width -= half;                                                                        \
    }                                                                                       \
    if (n > 0) {                                                                            \
      const T x = *(T *)pacc, y = lane[0];                                                  \
      *(T *)pacc = (T)(expr);                                                               \
    }                                                                                       \
  }
#define EINI_MERGE_ARITH(s, T, W)                                                           \
  EINI_MERGE(sum_##s, T, (W)x + (W)y)                                                       \
  EINI_MERGE(prod_##s, T, (W)x *(W)y)
EINI_MERGE_ARITH(i32, int32_t, uint32_t)
EINI_MERGE_ARITH(i64, int64_t, uint64_t)
EINI_MERGE_ARITH(f32, float, float)
EINI_MERGE_ARITH(f64, double, double)
#undef EINI_MERGE_ARITH
#define EINI_MERGE_ORDERED(s, T)                                                            \
  EINI_MERGE(max_##s, T, ((x > y) | (x != x)) ? x : y)                                      \
  EINI_MERGE(min_##s, T, ((x < y) | (x != x)) ? x : y)                                      \
  /* argmax, argmin: state (value, position); position -1 is the fold of nothing; a NaN */  \
  /* beats numbers, ties go to the lowest position */                                       \
  static void eini_m_arg_##s(int64_t n, void *const *acc, const void *const *more, int sign) { \
    T *a = (T *)acc[0];                                                                     \
    int64_t *p = (int64_t *)acc[1];                                                         \
    const T *b = (const T *)more[0];                                                        \
    const int64_t *q = (const int64_t *)more[1];                                            \
    for (int64_t i = 0; i < n; i++) {                                                       \
      int an = a[i] != a[i], bn = b[i] != b[i];                                             \
      int better = sign > 0 ? b[i] > a[i] : b[i] < a[i];                                    \
      int equal = (an & bn) | (b[i] == a[i]);                                               \
      better = (better | bn) & !an;                                                         \
      if (q[i] >= 0 && (p[i] < 0 || (equal ? q[i] < p[i] : better))) {                      \
        a[i] = b[i];                                                                        \
        p[i] = q[i];                                                                        \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_argmax_##s(int64_t n, void *const *acc, const void *const *more,       \
                                void *user) {                                               \
    (void)user;                                                                             \
    eini_m_arg_##s(n, acc, more, 1);                                                        \
  }                                                                                         \
  static void eini_m_argmin_##s(int64_t n, void *const *acc, const void *const *more,       \
                                void *user) {                                               \
    (void)user;                                                                             \
    eini_m_arg_##s(n, acc, more, -1);                                                       \
  }
EINI_MERGE_ORDERED(i32, int32_t)
EINI_MERGE_ORDERED(i64, int64_t)
EINI_MERGE_ORDERED(f32, float)
EINI_MERGE_ORDERED(f64, double)
EINI_MERGE_ORDERED(bool, uint8_t)
#undef EINI_MERGE_ORDERED
EINI_MERGE(any_bool, uint8_t, x | y)
EINI_MERGE(all_bool, uint8_t, x &y)
#undef EINI_MERGE

// Complex sums are sums of twice as many reals; products need both parts.
#define EINI_MERGE_COMPLEX(s, T, R, r)                                                      \
  static void eini_m_sum_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    eini_m_sum_##r(2 * n, acc, more, user);                                                 \
  }                                                                                         \
  static void eini_m_prod_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    T *a = (T *)acc[0];                                                                     \
    const T *b = (const T *)more[0];                                                        \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T x = a[i], y = b[i];                                                           \
      a[i].re = x.re * y.re - x.im * y.im;                                                  \
      a[i].im = x.re * y.im + x.im * y.re;                                                  \
    }                                                                                       \
  }
EINI_MERGE_COMPLEX(c64, eini_c64, float, f32)
EINI_MERGE_COMPLEX(c128, eini_c128, double, f64)
#undef EINI_MERGE_COMPLEX

// logsumexp: state (max m, sum s of exp(x - m')), where m' is m if finite and 0 otherwise, so that
// infinities come out as libm's log and exp make them. var: Chan et al.'s pairwise update of
// (count, mean, sum of squared deviations).
#define EINI_MERGE_STATES(s, T)                                                             \
  static void eini_m_logsumexp_##s(int64_t n, void *const *acc, const void *const *more,    \
                                   void *user) {                                            \
    T *m = (T *)acc[0], *t = (T *)acc[1];                                                   \
    const T *m2 = (const T *)more[0], *t2 = (const T *)more[1];                             \
    T x[EINI_LANES], y[EINI_LANES], ex[EINI_LANES], ey[EINI_LANES];                         \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i += EINI_LANES) {                                           \
      int64_t k = eini_min64(EINI_LANES, n - i);                                            \
      for (int64_t j = 0; j < EINI_LANES; j++) {                                            \
        T a = j < k ? m[i + j] : 0, b = j < k ? m2[i + j] : 0;                              \
        T top = a > b || a != a ? a : b, shift = top - top == 0 ? top : 0;                  \
        x[j] = a - shift;                                                                   \
        y[j] = b - shift;                                                                   \
        if (j < k) m[i + j] = top;                                                          \
      }                                                                                     \
      eini_vexp_##s(EINI_LANES, x, ex);                                                     \
      eini_vexp_##s(EINI_LANES, y, ey);                                                     \
      for (int64_t j = 0; j < k; j++) t[i + j] = t[i + j] * ex[j] + t2[i + j] * ey[j];      \
    }                                                                                       \
  }                                                                                         \
  static void eini_l_logsumexp_##s(int64_t n, const void *x, const int64_t *pos,            \
                                   void *const *st) {                                       \
    T *t = (T *)st[1];                                                                      \
    (void)pos;                                                                              \
    memcpy(st[0], x, (size_t)n * sizeof(T));                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T v = ((const T *)x)[i];                                                              \
      t[i] = v - v == 0 ? 1 : v > 0 ? v : v < 0 ? 0 : v; /* exp(v - m') */                  \
    }                                                                                       \
  }                                                                                         \
  static void eini_m_var_##s(int64_t n, void *const *acc, const void *const *more, void *user) { \
    T *c = (T *)acc[0], *m = (T *)acc[1], *q = (T *)acc[2];                                 \
    const T *c2 = (const T *)more[0], *m2 = (const T *)more[1], *q2 = (const T *)more[2];   \
    (void)user;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T count = c[i] + c2[i], w = count > 0 ? c2[i] / count : 0, d = m2[i] - m[i];          \
      m[i] = c[i] > 0 ? m[i] + d * w : m2[i];                                               \
      q[i] += q2[i] + (c[i] > 0 ? d * d * c[i] * w : 0);                                    \
      c[i] = count;                                                                         \
    }                                                                                       \
  }                                                                                         \
  static void eini_l_var_##s(int64_t n, const void *x, const int64_t *pos, void *const *st) { \
    (void)pos;                                                                              \
    memcpy(st[1], x, (size_t)n * sizeof(T));                                                \
    for (int64_t i = 0; i < n; i++) {                                                       \
      ((T *)st[0])[i] = 1;                                                                  \
      ((T *)st[2])[i] = ((const T *)x)[i] - ((const T *)x)[i]; /* 0, NaN for inf */         \
    }                                                                                       \
  }
EINI_MERGE_STATES(f32, float)
EINI_MERGE_STATES(f64, double)
#undef EINI_MERGE_STATES

// A fold made ready for its value type.
typedef struct eini_folder {
  int fold, nstate;
  ein_dtype type;              // of values, and of states but argmax's position
  ein_dtype logical;           // whose least and greatest values bound extrema of nothing
  ein_dtype result;            // computation type after finish
  eini_merge_fn merge;
  eini_lift_fn lift;           // NULL: state[0] is the value
  eini_horizontal_fn across;   // folds n values into the state at once, or NULL
  eini_vertical_fn down;       // folds rows of n values into n states as merge does, or NULL
  void (*whole)(const struct eini_folder *f, int64_t n, const void *x, void *room,
                void *const *state);  // the state of n values; NULL: lift, then merge halves
  eini_horizontal_fn sum_fn, max_fn;  // what it is made of
  eini_chunk_fn exp_fn;
  const ein_monoid *user;
  double count;                // size of the reduced space (mean, var)
} eini_folder;

#define EINI_BY_TYPE(n) {eini_##n##_bool, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, \
                         eini_##n##_f64, NULL, NULL}
#define EINI_BY_ARITH(n) {NULL, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, eini_##n##_f64, \
                          eini_##n##_c64, eini_##n##_c128}
static const eini_merge_fn eini_merge_table[EIN_FOLD_USER][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
    EINI_BY_ARITH(m_sum), EINI_BY_ARITH(m_prod), EINI_BY_TYPE(m_max), EINI_BY_TYPE(m_min),
    {eini_m_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_m_all_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {NULL, NULL, NULL, eini_m_logsumexp_f32, eini_m_logsumexp_f64, NULL, NULL},
    EINI_BY_TYPE(m_argmax), EINI_BY_TYPE(m_argmin), EINI_BY_ARITH(m_sum),
    {NULL, NULL, NULL, eini_m_var_f32, eini_m_var_f64, NULL, NULL}};
static const eini_horizontal_fn eini_across_table[EIN_FOLD_ALL + 1][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
    {NULL, eini_h_sum_i32, eini_h_sum_i64, eini_h_sum_f32, eini_h_sum_f64, NULL, NULL},
    {NULL, eini_h_prod_i32, eini_h_prod_i64, eini_h_prod_f32, eini_h_prod_f64, NULL, NULL},
    EINI_BY_TYPE(h_max), EINI_BY_TYPE(h_min),
    {eini_h_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_h_all_bool, NULL, NULL, NULL, NULL, NULL, NULL}};
#define EINI_BY_REAL(n) {NULL, eini_##n##_i32, eini_##n##_i64, eini_##n##_f32, eini_##n##_f64, \
                         NULL, NULL}
static const eini_vertical_fn eini_down_table[EIN_FOLD_ALL + 1][7] = {
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL}, EINI_BY_REAL(d_sum), EINI_BY_REAL(d_prod),
    EINI_BY_TYPE(d_max), EINI_BY_TYPE(d_min),
    {eini_d_any_bool, NULL, NULL, NULL, NULL, NULL, NULL},
    {eini_d_all_bool, NULL, NULL, NULL, NULL, NULL, NULL}};
#undef EINI_BY_REAL
#undef EINI_BY_TYPE
#undef EINI_BY_ARITH

// The dtype values are converted to before they are folded.
static ein_dtype eini_fold_value_dtype(const ein_graph *g, int fold, ein_dtype t, int numpy) {
  if (fold >= EIN_FOLD_USER) return g->monoid[fold - EIN_FOLD_USER].dtype;
  switch (fold) {
    case EIN_FOLD_ANY: case EIN_FOLD_ALL: return EIN_BOOL;
    case EIN_FOLD_LOGSUMEXP: case EIN_FOLD_MEAN: case EIN_FOLD_VAR:
      return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : ein_dtype_compute(t);
    case EIN_FOLD_SUM: case EIN_FOLD_PROD:
      if (t == EIN_BOOL) return numpy ? EIN_BOOL : EIN_I64;
      return ein_dtype_compute(t);
    default: return ein_dtype_compute(t);
  }
}

// The state of n > 0 values at once; x, d and states are padded to whole lanes.
#define EINI_WHOLE_STATES(s, T)                                                             \
  static void eini_w_var_##s(const struct eini_folder *f, int64_t n,                        \
                             const void *EINI_RESTRICT px, void *EINI_RESTRICT pd,          \
                             void *const *st) {                                             \
    const T *x = (const T *)px;                                                             \
    T *d = (T *)pd, sum = 0, q = 0;                                                         \
    eini_c_apart_##s(n, x, x, NULL, d); /* so that large values sum without overflow */     \
    f->sum_fn(n, d, &sum);                                                                  \
    const T mean = sum / (T)n;                                                              \
    eini_c_apart_##s(n, d, &mean, NULL, st[1]);                                             \
    eini_c_square_##s(n, st[1], NULL, NULL, d);                                             \
    f->sum_fn(n, d, &q);                                                                    \
    *(T *)st[0] = (T)n;                                                                     \
    *(T *)st[1] = x[0] + mean;                                                              \
    *(T *)st[2] = q;                                                                        \
  }                                                                                         \
  static void eini_w_logsumexp_##s(const struct eini_folder *f, int64_t n,                  \
                                   const void *EINI_RESTRICT px, void *EINI_RESTRICT pd,    \
                                   void *const *st) {                                       \
    const T *x = (const T *)px;                                                             \
    T *d = (T *)pd, top = x[0], sum = 0;                                                    \
    f->max_fn(n, x, &top);                                                                  \
    const T shift = top - top == 0 ? top : 0;                                               \
    eini_c_apart_##s(n, x, &shift, NULL, d);                                                \
    f->exp_fn(eini_whole_lanes(n), d, d, d, st[1]);                                         \
    f->sum_fn(n, st[1], &sum);                                                              \
    *(T *)st[0] = top;                                                                      \
    *(T *)st[1] = sum;                                                                      \
  }
EINI_WHOLE_STATES(f32, float)
EINI_WHOLE_STATES(f64, double)
#undef EINI_WHOLE_STATES

static eini_horizontal_fn eini_across_find(const ein_kernels *fast, int fold, ein_dtype type) {
  eini_horizontal_fn fn = eini_across_table[fold][eini_type_column(type)], own = NULL;
  if (fn != NULL && fast != NULL && fast->across_fn != NULL)
    own = fast->across_fn(fast->user, fold, type);
  return own != NULL ? own : fn;
}

static ein_status eini_folder_init(eini_folder *f, const ein_graph *g, int fold, ein_dtype type,
                                   double count, const ein_kernels *fast) {
  memset(f, 0, sizeof *f);
  f->fold = fold;
  f->type = f->result = f->logical = type;
  f->count = count;
  f->nstate = 1;
  if (fold == EIN_FOLD_NONE) return EIN_OK;
  if (fold >= EIN_FOLD_USER) {
    f->user = &g->monoid[fold - EIN_FOLD_USER];
    f->nstate = f->user->nstate;
    f->merge = f->user->merge_fn;
    return EIN_OK;
  }
  if (type == EIN_BOOL && fold == EIN_FOLD_SUM) f->fold = fold = EIN_FOLD_ANY;
  if (type == EIN_BOOL && fold == EIN_FOLD_PROD) f->fold = fold = EIN_FOLD_ALL;
  int column = eini_type_column(type);
  f->nstate = eini_folds[fold].nstate;
  f->merge = eini_merge_table[fold][column];
  if (fold <= EIN_FOLD_ALL) f->across = eini_across_find(fast, fold, type);
  if (fold <= EIN_FOLD_ALL) f->down = eini_down_table[fold][column];
  if (fold == EIN_FOLD_MEAN) f->across = eini_across_find(fast, EIN_FOLD_SUM, type);
  if (fold == EIN_FOLD_MEAN) f->down = eini_down_table[EIN_FOLD_SUM][column];
  if (fold == EIN_FOLD_LOGSUMEXP || fold == EIN_FOLD_VAR) {
    f->sum_fn = eini_across_find(fast, EIN_FOLD_SUM, type);
    f->max_fn = eini_across_find(fast, EIN_FOLD_MAX, type);
    f->exp_fn = eini_chunk_find(fast, EIN_OP_EXP, type);
    const int var = fold == EIN_FOLD_VAR;
    if (type == EIN_F32) f->lift = var ? eini_l_var_f32 : eini_l_logsumexp_f32;
    else f->lift = var ? eini_l_var_f64 : eini_l_logsumexp_f64;
    if (type == EIN_F32) f->whole = var ? eini_w_var_f32 : eini_w_logsumexp_f32;
    else f->whole = var ? eini_w_var_f64 : eini_w_logsumexp_f64;
  }
  if (fold == EIN_FOLD_ARGMAX || fold == EIN_FOLD_ARGMIN) f->result = EIN_I64;
  EINSUM_ASSERT(f->merge != NULL);
  return f->merge == NULL ? EIN_ERR_DTYPE : EIN_OK;
}

static ein_dtype eini_state_dtype(const eini_folder *f, int s) {
  return s == 1 && eini_fold_counts(f->fold) ? EIN_I64 : f->type;
}

// The least (sign -1) or greatest value of an integer dtype.
static int64_t eini_int_limit(ein_dtype t, int sign) {
  int bits = 8 * (int)ein_dtype_size(t);
  if (t == EIN_U8) return sign < 0 ? 0 : 255;
  if (bits >= 64 || bits == 0) return sign < 0 ? INT64_MIN : INT64_MAX;
  return sign < 0 ? -((int64_t)1 << (bits - 1)) : ((int64_t)1 << (bits - 1)) - 1;
}

static void eini_fold_identity(const eini_folder *f, int64_t n, void *const *state) {
  for (int s = 0; s < f->nstate; s++) {
    double re = 0;
    int64_t i = 0;
    ein_dtype t = eini_state_dtype(f, s);
    if (f->user != NULL) {
      re = f->user->identity[s];
      i = eini_f64_to_i64(re);
    } else if (f->fold == EIN_FOLD_PROD || f->fold == EIN_FOLD_ALL) {
      re = 1;
      i = 1;
    } else if (s == 1 && t == EIN_I64) {
      i = -1;
    } else if (f->fold == EIN_FOLD_MAX || (f->fold == EIN_FOLD_LOGSUMEXP && s == 0)) {
      re = t == EIN_BOOL ? 0 : -HUGE_VAL;
      i = eini_int_limit(f->logical, -1);
    } else if (f->fold == EIN_FOLD_MIN) {
      re = HUGE_VAL;
      i = eini_int_limit(f->logical, 1);
    }
    eini_fill_value(t, re, 0, i, n, state[s]);
  }
}

static void eini_fold_lift(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                           void *const *state) {
  if (f->user != NULL && f->user->lift_fn != NULL) {
    f->user->lift_fn(n, x, state, f->user->user);
  } else if (f->lift != NULL) {
    f->lift(n, x, pos, state);
  } else {
    memcpy(state[0], x, (size_t)n * ein_dtype_size(f->type));
    if (f->nstate == 2) memcpy(state[1], pos, (size_t)n * sizeof *pos);
  }
}

// acc[i] = merge(acc[i], lift(x[i])), i < n.
static void eini_fold_down(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                           void *const *acc, void *const *tmp) {
  const void *more[4] = {x, pos, NULL, NULL};
  void *user = f->user == NULL ? NULL : f->user->user;
  if (f->lift != NULL || (f->user != NULL && f->user->lift_fn != NULL)) {
    eini_fold_lift(f, n, x, pos, tmp);
    for (int s = 0; s < 4; s++) more[s] = tmp[s];
  }
  f->merge(n, acc, more, user);
}

// acc[0] = merge(acc[0], lift(x[0]), .., lift(x[n-1])), n > 0, by halves where there is no better.
static void eini_fold_across(const eini_folder *f, int64_t n, void *x, const int64_t *pos,
                             void *const *acc, void *const *tmp) {
  if (f->across != NULL) {
    f->across(n, x, acc[0]);
    return;
  }
  void *user = f->user == NULL ? NULL : f->user->user;
  if (f->whole != NULL) f->whole(f, n, x, tmp[0], tmp);
  else eini_fold_lift(f, n, x, pos, tmp);
  if (f->whole != NULL) n = 1;
  while (n > 0) {
    int64_t half = n > 1 ? n / 2 : 1;
    const void *upper[4] = {NULL, NULL, NULL, NULL};
    for (int s = 0; s < f->nstate; s++) {
      size_t size = ein_dtype_size(eini_state_dtype(f, s));
      upper[s] = (const char *)tmp[s] + (size_t)(n - half) * size;
    }
    if (n == 1) {
      f->merge(1, acc, upper, user);
      return;
    }
    f->merge(half, tmp, upper, user);
    n -= half;
  }
}

// Values of n finished states; returns where they are (state memory or out).
static void *eini_fold_finish(const eini_folder *f, int64_t n, void *const *state, void *out) {
  if (f->user != NULL) {
    if (f->user->finish_fn == NULL) return state[0];
    const void *in[4] = {state[0], state[1], state[2], state[3]};
    f->user->finish_fn(n, in, out, f->user->user);
    return out;
  }
  switch (f->fold) {
    case EIN_FOLD_ARGMAX: case EIN_FOLD_ARGMIN: return state[1];
    case EIN_FOLD_LOGSUMEXP:
      for (int64_t i = 0; i < n; i++) {
        if (f->type == EIN_F32) {
          float m = ((float *)state[0])[i], s = logf(((float *)state[1])[i]);
          ((float *)out)[i] = m - m == 0 ? m + s : m != m ? m : s;
        } else {
          double m = ((double *)state[0])[i], s = log(((double *)state[1])[i]);
          ((double *)out)[i] = m - m == 0 ? m + s : m != m ? m : s;
        }
      }
      return out;
    case EIN_FOLD_MEAN:
    case EIN_FOLD_VAR: {
      const void *v = state[f->fold == EIN_FOLD_VAR ? 2 : 0];
      int64_t k = eini_kind_of(f->type) == EINI_KCOMPLEX ? 2 * n : n;
      if (f->type == EIN_F32 || f->type == EIN_C64) {
        for (int64_t i = 0; i < k; i++)
          ((float *)out)[i] = (float)(((const float *)v)[i] / f->count);
      } else {
        for (int64_t i = 0; i < k; i++) ((double *)out)[i] = ((const double *)v)[i] / f->count;
      }
      return out;
    }
    default: return state[0];
  }
}
