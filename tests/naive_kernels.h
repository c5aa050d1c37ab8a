// A provider of kernels that does everything the plainest way: it tests what the planner hands to
// providers (pairs, forms, parts, copies, chunk functions, stores), not speed. It promises least
// seconds, so that it is always chosen. Include after einsum.h's implementation.

#include "map_provider.h"

static int64_t naive_offset(const ein_axes *x, const int64_t *stride, int64_t at) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) {
    off += at % x->extent[d] * stride[d];
    at /= x->extent[d];
  }
  return off;
}

// One value of a side, 16 bytes at most, into aligned memory.
static void naive_value(const ein_contract *c, const ein_side *s, const ein_axes *row, int64_t b,
                        int64_t r, int64_t k, char *out) {
  int64_t off[8][8];  // one point, lines of 64 bytes
  const int64_t *offs[8];
  for (int o = 0; o < s->nop && o < 8; o++) {
    off[o][0] = naive_offset(&c->batch, s->batch[o], b) + naive_offset(row, s->row[o], r) +
                naive_offset(&c->k, s->k[o], k);
    offs[o] = off[o];
  }
  int64_t size = (int64_t)ein_dtype_size(c->type);
  if (s->form == EIN_FORM_PLAIN) {
    memcpy(out, s->base[0] + off[0][0] * size, (size_t)size);
    if (!s->conj) return;
    if (c->type == EIN_C64) ((float *)(void *)out)[1] = -((float *)(void *)out)[1];
    else ((double *)(void *)out)[1] = -((double *)(void *)out)[1];
    return;
  }
  double values[EIN_POINTS * 2];  // fill_fn may write a padded block
  s->fill_fn(s->user, 1, s->base, offs, NULL, values);
  memcpy(out, values, (size_t)size);
}

#define NAIVE_FOLD(T, W)                                                                    \
  {                                                                                         \
    T x, y, *a = (T *)acc, d, e;                                                            \
    memcpy(&x, xp, sizeof x);                                                               \
    memcpy(&y, yp, sizeof y);                                                               \
    d = (T)((W)x - (W)y);                                                                   \
    e = d < 0 ? (T)(0 - (W)d) : d;                                                          \
    switch (pair) {                                                                         \
      case EIN_PAIR_SUM_MUL: *a = (T)((W)*a + (W)((W)x * (W)y)); break;                     \
      case EIN_PAIR_SUM_SQDIFF: *a = (T)((W)*a + (W)((W)d * (W)d)); break;                  \
      case EIN_PAIR_SUM_ABSDIFF: *a = (T)((W)*a + (W)e); break;                             \
      default:                                                                              \
        if (pair != EIN_PAIR_MAX_ABSDIFF) e = (T)((W)x + (W)y);                             \
        if (first || *a != *a) *a = first ? e : *a;                                         \
        else if (e != e || (pair == EIN_PAIR_MIN_ADD ? e < *a : e > *a)) *a = e;            \
    }                                                                                       \
  }                                                                                         \
  break;
#define NAIVE_COMPLEX(R)                                                                    \
  {                                                                                         \
    const R *x = (const R *)xp, *y = (const R *)yp;                                         \
    ((R *)acc)[0] += x[0] * y[0] - x[1] * y[1];                                             \
    ((R *)acc)[1] += x[0] * y[1] + x[1] * y[0];                                             \
  }                                                                                         \
  break;

static void naive_fold(ein_pair pair, ein_dtype type, int first, const void *xp, const void *yp,
                       void *acc) {
  switch (type) {
    case EIN_BOOL: *(char *)acc |= *(const char *)xp && *(const char *)yp; break;
    case EIN_I32: NAIVE_FOLD(int32_t, uint32_t)
    case EIN_I64: NAIVE_FOLD(int64_t, uint64_t)
    case EIN_F32: NAIVE_FOLD(float, float)
    case EIN_F64: NAIVE_FOLD(double, double)
    case EIN_C64: NAIVE_COMPLEX(float)
    default: NAIVE_COMPLEX(double)
  }
}

static int naive_contract_plan(void *user, const ein_contract *c, int width, int nth,
                               ein_choice *h) {
  (void)user;
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  if (nth > 0 || c->p.nop > 8 || c->q.nop > 8) return 0;
  h->seconds = 0;
  h->scratch = 64;
  h->grid[c->n.n > c->m.n ? 2 : 1] = width;
  h->unit[1] = 3;
  snprintf(h->variant, sizeof h->variant, "loops");
  return 1;
}

static ein_status naive_contract_run(void *user, const ein_contract *c, const ein_choice *h,
                                     const ein_part *part, void *scratch) {
  int64_t size = (int64_t)ein_dtype_size(c->type), out_size = (int64_t)ein_dtype_size(c->out_dtype);
  int64_t kn = 1, xo[8][8];
  const int64_t *xoff[8];
  (void)user, (void)h, (void)scratch;
  for (int d = 0; d < c->k.n; d++) kn *= c->k.extent[d];
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    for (int64_t m = part->m[0]; m < part->m[1]; m++) {
      for (int64_t n = part->n[0]; n < part->n[1]; n++) {
        double x[2], y[2], acc[2] = {0, 0};
        for (int64_t k = 0; k < kn; k++) {
          naive_value(c, &c->p, &c->m, b, m, k, (char *)x);
          naive_value(c, &c->q, &c->n, b, n, k, (char *)y);
          naive_fold(c->pair, c->type, k == 0, x, y, acc);
        }
        int64_t off[8];
        off[0] = naive_offset(&c->batch, c->out_batch, b) + naive_offset(&c->m, c->out_m, m) +
                 naive_offset(&c->n, c->out_n, n);
        if (c->plain_out) {
          memcpy(c->out + off[0] * out_size, acc, (size_t)size);
          continue;
        }
        for (int e = 0; e < c->nextra && e < 8; e++) {
          xo[e][0] = naive_offset(&c->batch, c->extra_batch[e], b) +
                     naive_offset(&c->m, c->extra_m[e], m) + naive_offset(&c->n, c->extra_n[e], n);
          xoff[e] = xo[e];
        }
        c->emit_fn(c->emit_user, 1, acc, c->out, off, c->extra_base, xoff, NULL);
      }
    }
  }
  return EIN_OK;
}

static int naive_copy_plan(void *user, const ein_copy *c, int width, int nth, ein_choice *h) {
  (void)user, (void)c, (void)width;
  if (nth > 0) return 0;
  h->seconds = 0;
  h->scratch = 64;
  snprintf(h->variant, sizeof h->variant, "loops");
  return 1;
}

static ein_status naive_copy_run(void *user, const ein_copy *c, const ein_choice *h,
                                 void *scratch) {
  ein_axes x;
  int64_t n = 1;
  (void)user, (void)h, (void)scratch;
  x.n = c->n;
  x.extent = c->extent;
  for (int d = 0; d < c->n; d++) n *= c->extent[d];
  for (int64_t i = 0; i < n; i++) {
    memcpy(c->dst + naive_offset(&x, c->dst_stride, i) * c->size,
           c->src + naive_offset(&x, c->src_stride, i) * c->size, (size_t)c->size);
  }
  return EIN_OK;
}

static void naive_add_f32(int64_t n, const void *a, const void *b, const void *c, void *d) {
  (void)c;
  for (int64_t i = 0; i < n; i++) ((float *)d)[i] = ((const float *)a)[i] + ((const float *)b)[i];
}

static ein_chunk_fn naive_chunk(void *user, int op, ein_dtype type) {
  (void)user;
  return op == EIN_OP_ADD && type == EIN_F32 ? naive_add_f32 : NULL;
}

static void naive_stream(void *user, size_t bytes, const void *src, void *dst) {
  (void)user;
  if (bytes > 0) memcpy(dst, src, bytes);
}

static const ein_kernels naive_kernels = {
    "naive", NULL, naive_contract_plan, naive_contract_run, naive_copy_plan, naive_copy_run,
    naive_chunk, NULL, maps_plan, maps_run, naive_stream, 64,
    {1e10, 1e10, 0, 0, {0, 0, 0, 1e7}, {0, 0, 0, 1e7}, {0, 0, 0}, 512, 0, 0, {0}, {0}, {0}, {0},
     0, 0, 0, 0, {0}, 0, ""},
    NULL, NULL, NULL, NULL, NULL, 0, 0, 0};

// A provider that promises least seconds for what another one can do, in one of the ways that the
// other has, by the extents, and has the rates of the naive one, so that all it can do is tested.
static int eager_way(int n, const int64_t *extent, int ways) {
  uint64_t sum = 7;
  for (int i = 0; i < n; i++) sum = sum * 31 + (uint64_t)extent[i];
  return (int)(sum % (uint64_t)ways);
}

static int eager_contract(void *user, const ein_contract *c, int width, int nth, ein_choice *h) {
  const ein_kernels *k = (const ein_kernels *)user;
  const int64_t extent[4] = {eini_axes_size(&c->batch), eini_axes_size(&c->m),
                             eini_axes_size(&c->n), eini_axes_size(&c->k)};
  int ways = 0;
  while (nth <= 0 && k->contract_plan(k->user, c, width, ways, h)) ways++;
  if (ways == 0) return 0;
  memset(h, 0, sizeof *h);
  k->contract_plan(k->user, c, width, eager_way(4, extent, ways), h);
  h->seconds = 0;
  return 1;
}

static ein_status eager_contract_run(void *user, const ein_contract *c, const ein_choice *h,
                                     const ein_part *part, void *scratch) {
  const ein_kernels *k = (const ein_kernels *)user;
  return k->contract_run(k->user, c, h, part, scratch);
}

static int eager_copy(void *user, const ein_copy *c, int width, int nth, ein_choice *h) {
  const ein_kernels *k = (const ein_kernels *)user;
  int ways = 0;
  while (nth <= 0 && k->copy_plan(k->user, c, width, ways, h)) ways++;
  if (ways == 0) return 0;
  memset(h, 0, sizeof *h);
  k->copy_plan(k->user, c, width, eager_way(c->n, c->extent, ways), h);
  h->seconds = 0;
  return 1;
}

static ein_status eager_copy_run(void *user, const ein_copy *c, const ein_choice *h,
                                 void *scratch) {
  const ein_kernels *k = (const ein_kernels *)user;
  return k->copy_run(k->user, c, h, scratch);
}

static int eager_map(void *user, const ein_map *m, int width, int nth, ein_choice *h) {
  const ein_kernels *k = (const ein_kernels *)user;
  int ways = 0;
  while (nth <= 0 && k->map_plan != NULL && k->map_plan(k->user, m, width, ways, h)) ways++;
  if (ways == 0) return 0;
  memset(h, 0, sizeof *h);
  k->map_plan(k->user, m, width, eager_way(m->n, m->extent, ways), h);
  h->seconds = 0;
  return 1;
}

static ein_status eager_map_run(void *user, const ein_map *m, const ein_choice *h, void *scratch) {
  const ein_kernels *k = (const ein_kernels *)user;
  return k->map_run(k->user, m, h, scratch);
}

static ein_chunk_fn eager_chunk(void *user, int op, ein_dtype type) {
  const ein_kernels *k = (const ein_kernels *)user;
  return k->chunk_fn == NULL ? NULL : k->chunk_fn(k->user, op, type);
}

static void (*eager_across(void *user, int fold, ein_dtype type))(int64_t, const void *, void *) {
  const ein_kernels *k = (const ein_kernels *)user;
  return k->across_fn == NULL ? NULL : k->across_fn(k->user, fold, type);
}

static void eager_stream(void *user, size_t bytes, const void *src, void *dst) {
  const ein_kernels *k = (const ein_kernels *)user;
  if (k->stream_fn == NULL) naive_stream(user, bytes, src, dst);
  else k->stream_fn(k->user, bytes, src, dst);
}

EINI_UNUSED static ein_kernels eager_of(const ein_kernels *k) {
  ein_kernels e = naive_kernels;
  union { const ein_kernels *c; void *v; } inner;  // it is only read
  inner.c = k;
  e.name = k->name;
  e.user = inner.v;
  e.contract_plan = eager_contract;
  e.contract_run = eager_contract_run;
  e.copy_plan = k->copy_plan == NULL ? NULL : eager_copy;
  e.copy_run = eager_copy_run;
  e.map_plan = eager_map;
  e.map_run = eager_map_run;
  e.chunk_fn = eager_chunk;
  e.across_fn = eager_across;
  e.stream_fn = eager_stream;
  return e;
}
