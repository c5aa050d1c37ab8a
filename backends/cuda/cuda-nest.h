// ================================================================================================
// >>cuda-nest  what is to be computed, as loops over operands
// Takes a map, a copy or a contraction; gives loops, operands with strides, and in which order of
// memory host operands are staged. Nothing is generated, nothing is chosen.
// ================================================================================================

enum {
  EINI_CUDA_LOOPS = 16, EINI_CUDA_STREAMS = 24,  // of a nest at most; others run elsewhere
  EINI_CUDA_WORDS = 480                          // of 8 bytes, of the arguments of a kernel
};

// How a stride stands in the source: as nothing, as 1, or as an argument.
enum { EINI_CUDA_ZERO, EINI_CUDA_ONE, EINI_CUDA_ANY };

// EINI_CUDA_PARTS: operand 0 is what parts of a contraction left, one loop of which is folded.
typedef enum eini_cuda_kind {
  EINI_CUDA_MAP, EINI_CUDA_COPY, EINI_CUDA_CONTRACT, EINI_CUDA_PARTS
} eini_cuda_kind;

// Operands are streams 0 .. nop - 1 of the values, then those of the store, then the output; index
// values are streams between them, as in ein_map. Of a contraction P's come before Q's, and its
// loops are batch, m, n and k.
typedef struct eini_cuda_nest {
  eini_cuda_kind kind;
  int n, nfree, nstream, nop, out;  // nop: of the values
  int axes[4];                   // contract: first loops of batch, m, n and k
  int64_t extent[EINI_CUDA_LOOPS];
  unsigned char dtype[EINI_CUDA_STREAMS], size[EINI_CUDA_STREAMS];
  unsigned char value[EINI_CUDA_STREAMS];  // 1: of an index, 2: position
  unsigned char away[EINI_CUDA_STREAMS];   // lies on the device; others are staged
  unsigned char packed[EINI_CUDA_STREAMS]; // staged without gaps
  int64_t stride[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];  // as they lie at home
  int64_t used[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];    // as kernels see them
  unsigned char form[EINI_CUDA_STREAMS][EINI_CUDA_LOOPS];
  char *base[EINI_CUDA_STREAMS];
  int64_t at[EINI_CUDA_STREAMS];           // of values
  const ein_code *code[2];       // of the value; of a contraction P's and Q's
  const ein_code *store;         // or NULL
  int extra, extra_value;        // streams of the store's operand 1 and of its first index value
  int second;                    // stream of Q's first operand
  ein_dtype type, result;        // of values, and of what is stored or given to the store
  ein_fold fold;
  ein_pair pair;                 // contract
  double count;
  const ein_scalar *param;
  const ein_rates *rates;        // to predict from, or NULL
} eini_cuda_nest;

static const ein_dtype eini_cuda_opaque[17] = {  // by size, of what is only copied
    EIN_NONE, EIN_U8, EIN_I16, EIN_NONE, EIN_I32, EIN_NONE, EIN_NONE, EIN_NONE, EIN_I64,
    EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_NONE, EIN_C128};

// Elements from least to most address of a stream, at home or as kernels see it; the least one's
// offset in *low; 0: too many.
static int64_t eini_cuda_hull(const eini_cuda_nest *x, int used, int s, int64_t *low) {
  const int64_t *stride = used ? x->used[s] : x->stride[s];
  int64_t lo = 0, hi = 0, far;
  for (int i = 0; i < x->n; i++) {
    if (eini_mul_overflow(stride[i], x->extent[i] - 1, &far)) return 0;
    if (eini_add_overflow(far < 0 ? lo : hi, far, far < 0 ? &lo : &hi)) return 0;
  }
  *low = lo;
  return eini_add_overflow(hi, 1 - lo, &far) ? 0 : far;
}

// Elements of a stream, each once if no two loops move it alike.
static int64_t eini_cuda_points(const eini_cuda_nest *x, int s) {
  int64_t n = 1;
  for (int i = 0; i < x->n; i++)
    if (x->stride[s][i] != 0 && eini_mul_overflow(n, x->extent[i], &n)) return 0;
  return n;
}

static void eini_cuda_forms(eini_cuda_nest *x, int s) {
  int last = -1;
  for (int i = 0; i < x->n; i++)
    if (x->stride[s][i] != 0) last = i;
  for (int i = 0; i < x->n; i++) {
    const int64_t by = x->stride[s][i];
    x->form[s][i] = by == 0 ? EINI_CUDA_ZERO : EINI_CUDA_ANY;
    if (x->packed[s] ? i == last : by == 1) x->form[s][i] = EINI_CUDA_ONE;
  }
}

// The strides that kernels see, for the extents at hand.
static void eini_cuda_strides(eini_cuda_nest *x) {
  for (int s = 0; s < x->nstream; s++) {
    int64_t step = 1;
    for (int i = x->n - 1; i >= 0; i--) {
      x->used[s][i] = x->stride[s][i];
      if (!x->packed[s] || x->stride[s][i] == 0) continue;
      x->used[s][i] = step;
      step *= x->extent[i];
    }
    eini_cuda_forms(x, s);
  }
}

// How host operands are staged: as they lie with the gaps between them, or element by element where
// that is less. Outputs with gaps always are: what lies there is not theirs. 0: sizes do not fit.
static int eini_cuda_stage(eini_cuda_nest *x) {
  for (int s = 0; s < x->nstream; s++) {
    int64_t low, hull, points;
    if (x->value[s]) continue;
    if (x->away[s] && eini_cuda_hull(x, 0, s, &low) == 0) return 0;
    if (x->away[s]) continue;
    hull = eini_cuda_hull(x, 0, s, &low);
    points = eini_cuda_points(x, s);
    if (hull == 0 || points == 0 || points > INT64_MAX / 16 || hull > INT64_MAX / 16) return 0;
    x->packed[s] = points < hull;
  }
  return 1;
}

// Ends a nest: its streams are known.
static int eini_cuda_whole(eini_cuda_nest *x) {
  int64_t all = 1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] < 1 || eini_mul_overflow(all, x->extent[i], &all)) return 0;
  for (int s = 0; s < x->nstream; s++)
    x->size[s] = (unsigned char)ein_dtype_size((ein_dtype)x->dtype[s]);
  x->out = x->nstream - 1;
  eini_cuda_strides(x);
  return 1;
}

static int eini_cuda_of_map(const ein_map *m, eini_cuda_nest *x) {
  const int values = m->nop, position = m->nop + m->nvalue;
  memset(x, 0, sizeof *x);
  if (m->n > EINI_CUDA_LOOPS || m->nstream > EINI_CUDA_STREAMS) return 0;
  x->kind = EINI_CUDA_MAP;
  x->n = m->n;
  x->nfree = m->nfree;
  x->nstream = m->nstream;
  x->nop = m->nop;
  for (int i = 0; i < m->n; i++) x->extent[i] = m->extent[i];
  x->extra = position + m->nposition;
  x->extra_value = x->extra + m->nextra;
  if (m->nstream != x->extra_value + m->nextra_value + 1) return 0;  // states of a fold
  for (int s = 0; s < m->nstream; s++) {
    const int after = s >= x->extra_value && s < m->nstream - 1;
    x->dtype[s] = (unsigned char)m->dtype[s];
    x->value[s] = (unsigned char)(s >= position && s < x->extra ? 2
                                  : (s >= values && s < position) || after);
    x->away[s] = (unsigned char)(m->away != NULL && m->away[s]);
    if (m->base != NULL && !x->value[s]) x->base[s] = m->base[s];
    if (m->at != NULL && x->value[s]) x->at[s] = m->at[s];
    for (int i = 0; i < m->n; i++) x->stride[s][i] = m->stride[(int64_t)s * m->pitch + i];
  }
  x->code[0] = m->code;
  x->store = m->store;
  x->type = (ein_dtype)m->code->type;
  x->fold = m->fold;
  const int arg = m->fold == EIN_FOLD_ARGMAX || m->fold == EIN_FOLD_ARGMIN;
  x->result = arg ? EIN_I64 : x->type;
  x->count = m->count;
  x->param = m->param;
  x->rates = m->rates;
  return eini_cuda_whole(x);
}

static int eini_cuda_of_copy(const ein_copy *c, eini_cuda_nest *x) {
  union { const char *c; char *v; } src;  // it is only read
  memset(x, 0, sizeof *x);
  src.c = c->src;
  if (c->n > EINI_CUDA_LOOPS || c->size > 16 || eini_cuda_opaque[c->size] == EIN_NONE) return 0;
  x->kind = EINI_CUDA_COPY;
  x->n = x->nfree = c->n;
  x->nstream = 2;
  x->nop = 1;
  for (int i = 0; i < c->n; i++) {
    x->extent[i] = c->extent[i];
    x->stride[0][i] = c->src_stride[i];
    x->stride[1][i] = c->dst_stride[i];
  }
  x->dtype[0] = x->dtype[1] = (unsigned char)eini_cuda_opaque[c->size];
  for (int s = 0; s < 2 && c->away != NULL; s++) x->away[s] = c->away[s];
  x->base[0] = src.v;
  x->base[1] = c->dst;
  x->extra = x->extra_value = 1;
  x->count = 1;
  x->rates = c->rates;
  return eini_cuda_whole(x);
}

// A group of axes becomes the next loops.
static int eini_cuda_group(eini_cuda_nest *x, const ein_axes *a) {
  const int first = x->n;
  for (int i = 0; i < a->n; i++, x->n++)
    if (x->n < EINI_CUDA_LOOPS) x->extent[x->n] = a->extent[i];
  return first;
}

static void eini_cuda_axes(eini_cuda_nest *x, int s, const ein_axes *a, int first,
                           const int64_t *stride) {
  for (int i = 0; i < a->n; i++) x->stride[s][first + i] = stride[i];
}

static void eini_cuda_side(eini_cuda_nest *x, const ein_contract *c, const ein_side *side,
                           int first, int group, const ein_axes *rows) {
  for (int o = 0; o < side->nop; o++) {
    union { const char *c; char *v; } u;  // it is only read
    const int s = first + o;
    u.c = side->base == NULL ? NULL : side->base[o];
    x->base[s] = u.v;
    x->dtype[s] = (unsigned char)side->dtype[o];
    eini_cuda_axes(x, s, &c->batch, x->axes[0], side->batch[o]);
    eini_cuda_axes(x, s, rows, x->axes[group], side->row[o]);
    eini_cuda_axes(x, s, &c->k, x->axes[3], side->k[o]);
  }
}

static int eini_cuda_of_contract(const ein_contract *c, eini_cuda_nest *x) {
  static const ein_fold folds[] = {EIN_FOLD_SUM, EIN_FOLD_MIN, EIN_FOLD_MAX, EIN_FOLD_ANY,
                                   EIN_FOLD_SUM, EIN_FOLD_SUM, EIN_FOLD_MAX};
  memset(x, 0, sizeof *x);
  x->kind = EINI_CUDA_CONTRACT;
  x->axes[0] = eini_cuda_group(x, &c->batch);
  x->axes[1] = eini_cuda_group(x, &c->m);
  x->axes[2] = eini_cuda_group(x, &c->n);
  x->nfree = x->axes[3] = eini_cuda_group(x, &c->k);
  x->second = c->p.nop;
  x->nop = x->extra = x->extra_value = c->p.nop + c->q.nop;
  x->extra_value += c->nextra;
  x->nstream = x->extra_value + 1;
  if (x->n > EINI_CUDA_LOOPS || x->nstream > EINI_CUDA_STREAMS) return 0;
  eini_cuda_side(x, c, &c->p, 0, 1, &c->m);
  eini_cuda_side(x, c, &c->q, x->second, 2, &c->n);
  for (int e = 0; e <= c->nextra; e++) {
    union { const char *c; char *v; } u;  // extras are only read
    const int s = x->extra + e, last = e == c->nextra;
    u.c = last || c->extra_base == NULL ? NULL : c->extra_base[e];
    x->base[s] = last ? c->out : u.v;
    x->dtype[s] = (unsigned char)(last ? c->out_dtype : c->extra_dtype[e]);
    eini_cuda_axes(x, s, &c->batch, x->axes[0], last ? c->out_batch : c->extra_batch[e]);
    eini_cuda_axes(x, s, &c->m, x->axes[1], last ? c->out_m : c->extra_m[e]);
    eini_cuda_axes(x, s, &c->n, x->axes[2], last ? c->out_n : c->extra_n[e]);
  }
  for (int s = 0; s < x->nstream && c->away != NULL; s++) x->away[s] = c->away[s];
  x->code[0] = c->p.code;
  x->code[1] = c->q.code;
  x->store = c->store;
  x->type = x->result = c->type;
  x->pair = c->pair;
  x->fold = folds[c->pair];
  x->count = 1;
  x->param = c->param;
  x->rates = c->rates;
  return eini_cuda_whole(x);
}

// Loops [from, to) together.
static int64_t eini_cuda_extent(const eini_cuda_nest *x, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) n *= x->extent[i];
  return n;
}

// Do 32 bits hold every offset and every number of an element, and what loops add to it?
static int eini_cuda_narrow(const eini_cuda_nest *x) {
  const int64_t most = (int64_t)1 << 30;
  int64_t low;
  for (int s = 0; s < x->nstream; s++) {
    const int64_t hull = eini_cuda_hull(x, 1, s, &low);
    if (!x->value[s] && (hull == 0 || hull > most)) return 0;
  }
  return eini_cuda_extent(x, 0, x->nfree) <= most && eini_cuda_extent(x, x->nfree, x->n) <= most;
}
