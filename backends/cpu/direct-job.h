// ================================================================================================
// >>direct-job  operands, loops and stores without packing
// (text)
// ================================================================================================

#define EINI_DIR_RANK 8      // axes of a group
#define EINI_DIR_OPS 4       // operands of a side, and extras, at most
#define EINI_DIR_OUT 8       // streams: operands of P from 0, Q from 4, the output, extras from 9
#define EINI_DIR_STREAMS 13

// A group of indices with the strides of all streams; its order may be changed.
typedef struct eini_dir_index {
  int n;
  int64_t size, extent[EINI_DIR_RANK], stride[EINI_DIR_STREAMS][EINI_DIR_RANK];
} eini_dir_index;

enum { EINI_DIR_B, EINI_DIR_M, EINI_DIR_N, EINI_DIR_K };

// One run. Addresses are those of the current batch; scratch is carved as eini_dir_carve says.
typedef struct eini_dir_job {
  const ein_contract *c;
  const eini_dir_kern *kern;
  int isa, planes, unit;                   // planes, unit: reals and bytes of an element
  eini_dir_index x[4];
  const char *base[EINI_DIR_STREAMS], *at[EINI_DIR_STREAMS];
  int64_t esize[EINI_DIR_STREAMS];
  int64_t *off;                            // [EINI_DIR_STREAMS][EIN_POINTS]
  char *val;                               // EIN_POINTS elements
} eini_dir_job;

static int eini_dir_planes(ein_dtype type) { return type == EIN_C64 || type == EIN_C128 ? 2 : 1; }

static const eini_dir_kern *eini_dir_kern_of(int isa, ein_dtype type) {
#if EINI_CPU_X86
  static const eini_dir_kern *const avx2[4] = {&eini_dir_kern_ys, &eini_dir_kern_yd,
                                               &eini_dir_kern_qi, &eini_dir_kern_ql};
  static const eini_dir_kern *const avx512[4] = {&eini_dir_kern_zs, &eini_dir_kern_zd,
                                                 &eini_dir_kern_qi, &eini_dir_kern_ql};
#else
  static const eini_dir_kern *const plain[4] = {&eini_dir_kern_cs, &eini_dir_kern_cd,
                                                &eini_dir_kern_ci, &eini_dir_kern_cl};
#endif
#if EINI_CPU_NEON
  static const eini_dir_kern *const neon[4] = {&eini_dir_kern_ns, &eini_dir_kern_nd,
                                               &eini_dir_kern_ci, &eini_dir_kern_cl};
#endif
  int t;
  switch (type) {
    case EIN_F32: case EIN_C64: t = 0; break;
    case EIN_F64: case EIN_C128: t = 1; break;
    case EIN_I32: t = 2; break;
    case EIN_I64: t = 3; break;
    default: return NULL;
  }
#if EINI_CPU_X86
  if (isa == EINI_ISA_AVX512) return avx512[t];
  return isa == EINI_ISA_AVX2 ? avx2[t] : NULL;
#else
#if EINI_CPU_NEON
  if (isa == EINI_ISA_NEON) return neon[t];
#endif
  (void)isa;
  return plain[t];
#endif
}

// Which tile has the most of `rows` rows, and how many those are. Sums of one or two vectors wait
// for each other: 5 to 7 rows take as long as 8, and half of what they take in two tiles.
static int eini_dir_tile_rows(const eini_dir_kern *kern, int64_t rows, int64_t vectors,
                              int64_t *most) {
  const int64_t n = eini_min64(kern->rows, rows);
  const int which = n >= (vectors < 3 ? 5 : 8) ? 4 : n >= 4 ? 3 : (int)n - 1;
  *most = which == 4 ? n : which + 1;
  return which;
}

// What every family needs: types with kernels, ranks and operands in bounds.
static int eini_dir_fits(const eini_cpu *cpu, const ein_contract *c) {
  const ein_axes *x[4] = {&c->batch, &c->m, &c->n, &c->k};
  const eini_dir_kern *kern = eini_dir_kern_of(cpu->isa, c->type);
  if (!kern || kern->lanes < eini_dir_planes(c->type)) return 0;
  if (c->p.nop > EINI_DIR_OPS || c->q.nop > EINI_DIR_OPS) return 0;
  if (c->nextra > EINI_DIR_OPS) return 0;
  for (int g = 0; g < 4; g++) {
    if (x[g]->n > EINI_DIR_RANK) return 0;
  }
  return 1;
}

static int eini_dir_able(const eini_cpu *cpu, const ein_contract *c) {
  return c->pair == EIN_PAIR_SUM_MUL && eini_dir_fits(cpu, c);
}

// The same of elements: integers have no such kernels.
static int eini_dir_able_elements(const eini_cpu *cpu, const ein_contract *c) {
  return eini_dir_able(cpu, c) && eini_dir_kern_of(cpu->isa, c->type)->bands[0] != NULL;
}

static void eini_dir_strides(eini_dir_index *x, const ein_axes *axes, int stream,
                             const int64_t *stride) {
  for (int i = 0; i < axes->n; i++) x->stride[stream][i] = stride == NULL ? 0 : stride[i];
}

// The job of a whole contraction; scratch NULL while planning.
static void eini_dir_init(eini_dir_job *j, const eini_cpu *cpu, const ein_contract *c) {
  const ein_axes *axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  const int64_t *const out[4] = {c->out_batch, c->out_m, c->out_n, NULL};
  const int64_t *const *const extra[4] = {c->extra_batch, c->extra_m, c->extra_n, NULL};
  j->c = c;
  j->isa = cpu->isa;
  j->kern = eini_dir_kern_of(cpu->isa, c->type);
  j->planes = eini_dir_planes(c->type);
  j->unit = j->planes * j->kern->size;
  for (int g = 0; g < 4; g++) {
    eini_dir_index *x = &j->x[g];
    x->n = axes[g]->n;
    x->size = eini_axes_size(axes[g]);
    for (int i = 0; i < x->n; i++) x->extent[i] = axes[g]->extent[i];
    eini_dir_strides(x, axes[g], EINI_DIR_OUT, out[g]);
    for (int e = 0; e < c->nextra; e++) {
      eini_dir_strides(x, axes[g], EINI_DIR_OUT + 1 + e, extra[g] ? extra[g][e] : NULL);
    }
    for (int s = 0; s < 2; s++) {
      const ein_side *side = s ? &c->q : &c->p;
      const int64_t *const *const st[4] = {side->batch, s ? NULL : side->row, s ? side->row : NULL,
                                           side->k};
      for (int o = 0; o < EINI_DIR_OPS; o++) {
        const int64_t *t = o < side->nop && st[g] ? st[g][o] : NULL;
        eini_dir_strides(x, axes[g], s * EINI_DIR_OPS + o, t);
      }
    }
  }
  for (int s = 0; s < 2; s++) {
    const ein_side *side = s ? &c->q : &c->p;
    for (int o = 0; o < side->nop; o++) {
      j->esize[s * EINI_DIR_OPS + o] = (int)eini_dtype_bytes(side->dtype[o]);
      j->base[s * EINI_DIR_OPS + o] = side->base[o];
    }
  }
  j->base[EINI_DIR_OUT] = c->out;
  j->esize[EINI_DIR_OUT] = (int)eini_dtype_bytes(c->out_dtype);
  for (int e = 0; e < c->nextra; e++) {
    j->base[EINI_DIR_OUT + 1 + e] = c->extra_base[e];
    j->esize[EINI_DIR_OUT + 1 + e] = (int)eini_dtype_bytes(c->extra_dtype[e]);
  }
}

static int eini_dir_used(const eini_dir_job *j, int stream) {
  if (stream < EINI_DIR_OPS) return stream < j->c->p.nop;
  if (stream < EINI_DIR_OUT) return stream - EINI_DIR_OPS < j->c->q.nop;
  return stream - EINI_DIR_OUT <= j->c->nextra;
}

// Restrict a group to the linear range [from, to), whole steps of its first axis.
static void eini_dir_cut(eini_dir_job *j, int group, int64_t from, int64_t to) {
  eini_dir_index *x = &j->x[group];
  if (from >= to) x->size = 0;
  if (x->size == 0 || (from == 0 && to == x->size)) return;
  int64_t inner = x->size / x->extent[0], lo = from / inner;
  x->extent[0] = to / inner - lo;
  x->size = x->extent[0] * inner;
  for (int s = 0; s < EINI_DIR_STREAMS; s++) {
    if (eini_dir_used(j, s)) j->base[s] += lo * x->stride[s][0] * j->esize[s];
  }
}

// Offset of a stream at a linear index, in elements.
static int64_t eini_dir_offset(const eini_dir_index *x, int stream, int64_t at) {
  int64_t off = 0;
  for (int d = x->n - 1; d >= 0; d--) {
    int64_t e = x->extent[d];
    off += (d == 0 ? at : at % e) * x->stride[stream][d];
    if (d > 0) at /= e;
  }
  return off;
}

static void eini_dir_at(eini_dir_job *j, int64_t batch) {
  for (int s = 0; s < EINI_DIR_STREAMS; s++) {
    if (!eini_dir_used(j, s)) continue;
    j->at[s] = j->base[s] + eini_dir_offset(&j->x[EINI_DIR_B], s, batch) * j->esize[s];
  }
}

// table[i] = offset of linear index start + i
static void eini_dir_table(const eini_dir_index *x, int stream, int64_t start, int64_t count,
                           int64_t *table) {
  const int last = x->n - 1;
  for (int64_t i = 0, run; i < count; i += run) {
    int64_t off = eini_dir_offset(x, stream, start + i);
    int64_t step = last < 0 ? 0 : x->stride[stream][last];
    run = count - i;
    if (last > 0) run = eini_min64(run, x->extent[last] - (start + i) % x->extent[last]);
    for (int64_t l = 0; l < run; l++) table[i + l] = off + l * step;
  }
}

// The step along the last axis.
static int64_t eini_dir_step(const eini_dir_index *x, int stream) {
  return x->n == 0 ? 0 : x->stride[stream][x->n - 1];
}

static int64_t eini_dir_key(const eini_dir_index *x, int stream, int i) {
  return x->stride[stream][i] == 0 ? INT64_MAX : eini_abs64(x->stride[stream][i]);
}

// Order a group by the steps of a stream, 0 and large ones first; axes of extent 1 go.
static void eini_dir_sort(eini_dir_index *x, int stream) {
  int n = 0;
  for (int i = 0; i < x->n; i++) {
    int d = n;
    int64_t e = x->extent[i], key = eini_dir_key(x, stream, i), keep[EINI_DIR_STREAMS];
    if (e == 1) continue;
    for (int s = 0; s < EINI_DIR_STREAMS; s++) keep[s] = x->stride[s][i];
    for (; d > 0 && eini_dir_key(x, stream, d - 1) < key; d--) {
      x->extent[d] = x->extent[d - 1];
      for (int s = 0; s < EINI_DIR_STREAMS; s++) x->stride[s][d] = x->stride[s][d - 1];
    }
    x->extent[d] = e;
    for (int s = 0; s < EINI_DIR_STREAMS; s++) x->stride[s][d] = keep[s];
    n++;
  }
  x->n = n;
}

// Of a side of several operands: an axis along which all of them have steps 0 or 1 goes last.
static void eini_dir_units_last(eini_dir_index *x, int s0) {
  for (int d = x->n - 2; d >= 0; d--) {
    int ones = 0, others = 0;
    for (int s = s0; s < s0 + EINI_DIR_OPS; s++) {
      ones += x->stride[s][d] == 1;
      others += x->stride[s][d] != 1 && x->stride[s][d] != 0;
    }
    if (ones == 0 || others > 0) continue;
    for (int s = 0; s <= EINI_DIR_STREAMS; s++) {
      int64_t *t = s < EINI_DIR_STREAMS ? x->stride[s] : x->extent, keep = t[d];
      memmove(t + d, t + d + 1, (size_t)(x->n - 1 - d) * sizeof *t);
      t[x->n - 1] = keep;
    }
    return;
  }
}

// How many of the last elements, in the order of the group, have steps of `step` in a stream.
static int64_t eini_dir_run(const eini_dir_index *x, int stream, int64_t step) {
  int64_t run = 1;
  for (int d = x->n - 1; d >= 0 && x->stride[stream][d] == run * step; d--) run *= x->extent[d];
  return run;
}

static void eini_dir_gather(const char *src, const int64_t *off, int64_t n, int unit, char *dst) {
  for (int64_t i = 0; i < n; i++) {
    switch (unit) {
      case 4: ((eini_any_i32 *)dst)[i] = ((const eini_any_i32 *)src)[off[i]]; break;
      case 8: memcpy(dst + 8 * i, src + 8 * off[i], 8); break;
      default: memcpy(dst + 16 * i, src + 16 * off[i], 16);
    }
  }
}

// Rows of products of plain operands, in vectors. 0: their steps along columns are not 0 or 1.
static int eini_dir_product(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                            int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                            int64_t pitch, char *dst) {
  const int nop = s0 ? j->c->q.nop : j->c->p.nop, last = x->n - 1;
  int unit[EINI_DIR_OPS], units = 0;
  int64_t *whole = j->off + EINI_DIR_OPS * EIN_POINTS, n;
  const int64_t len = last > 0 && in > 1 ? x->extent[last] : in;
  if (j->planes == 2 || in % len != 0 || (last > 0 && i0 % len != 0)) return 0;
  for (int o = 0; o < nop; o++) {
    unit[o] = last >= 0 && len > 1 && x->stride[s0 + o][last] == 1;
    if (len > 1 && !unit[o] && x->stride[s0 + o][last] != 0) return 0;
    units += unit[o];
  }
  if (len > 1 && units == 0) return 0;
  for (int64_t r = 0; r < rn; r += n) {
    n = eini_min64(rn - r, EIN_POINTS);
    for (int o = 0; o < nop; o++) {
      eini_dir_table(rows, s0 + o, row0 + r, n, j->off + o * EIN_POINTS);
    }
    for (int64_t l = 0; l < n; l++) whole[l] = l * pitch;
    for (int64_t i = 0; i < in; i += len) {
      eini_dir_mul d = {n, len, pitch, NULL, NULL, NULL, NULL, {0, 0}, 1, 0, NULL};
      int first = 0;
      while (first < nop - 1 && !unit[first]) first++;
      d.y = dst + (r * pitch + i) * j->unit;
      d.a = j->at[s0 + first] + eini_dir_offset(x, s0 + first, i0 + i) * j->unit;
      d.aoff = j->off + first * EIN_POINTS;
      d.ahead[0] = n * eini_dir_step(rows, s0 + first) * j->unit;
      for (int o = 0; o < nop; o++) {
        if (o == first) continue;
        d.b = j->at[s0 + o] + eini_dir_offset(x, s0 + o, i0 + i) * j->unit;
        d.boff = j->off + o * EIN_POINTS;
        d.sb = unit[o];
        d.ahead[1] = n * eini_dir_step(rows, s0 + o) * j->unit;
        j->kern->mul(&d);
        d.a = d.y;
        d.aoff = whole;
        d.ahead[0] = 0;
      }
    }
  }
  return 1;
}

// How many of the next n positions from `at` on go on along the last axis.
static int64_t eini_dir_goes_on(const eini_dir_index *x, int64_t at, int64_t n) {
  const int64_t last = x->n > 0 ? x->extent[x->n - 1] : 1;
  return eini_min64(n, x->n == 1 ? n : last - at % last);
}

// Is a plain side turned by tiles? Where its rows follow each other in memory, and what is fetched
// of each does not.
static int eini_dir_turns_in(const eini_dir_job *j, int s0, const eini_dir_index *rows,
                             const eini_dir_index *x) {
  const int unit = x->n == 0 || (x->n == 1 && x->stride[s0][0] == 1);
  return !unit && j->planes == 1 && rows->n > 0 && rows->stride[s0][rows->n - 1] == 1;
}

// The same of such a side: blocks are turned.
static void eini_dir_fetch_turned(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                                  int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                                  int64_t pitch, char *dst) {
  const int64_t step = x->stride[s0][x->n - 1] * j->unit;
  for (int64_t r = 0, nr; r < rn; r += nr) {
    nr = eini_dir_goes_on(rows, row0 + r, rn - r);
    const char *a = j->at[s0] + eini_dir_offset(rows, s0, row0 + r) * j->unit;
    for (int64_t i = 0, ni; i < in; i += ni) {
      ni = eini_dir_goes_on(x, i0 + i, in - i);
      eini_turn(j->isa, j->unit, nr, ni, a + eini_dir_offset(x, s0, i0 + i) * j->unit, step,
                dst + (r * pitch + i) * j->unit, pitch * j->unit);
    }
  }
}

// dst[r * pitch + i] = value of a plain side at rows row0 + r and columns from i0; both groups.
static void eini_dir_fetch_plain(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                                 int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                                 int64_t pitch, char *dst) {
  const int unit = x->n == 0 || (x->n == 1 && x->stride[s0][0] == 1);
  if (rn > 1 && eini_dir_turns_in(j, s0, rows, x)) {
    eini_dir_fetch_turned(j, s0, rows, row0, rn, x, i0, in, pitch, dst);
    return;
  }
  for (int64_t i = 0, n; i < in; i += n) {
    n = eini_min64(in - i, EIN_POINTS);
    eini_dir_table(x, s0, i0 + i, n, j->off);
    for (int64_t r = 0; r < rn; r++) {
      const char *a = j->at[s0] + eini_dir_offset(rows, s0, row0 + r) * j->unit;
      char *d = dst + (r * pitch + i) * j->unit;
      if (unit) {
        memcpy(d, a + j->off[0] * j->unit, (size_t)(n * j->unit));
      } else {
        eini_dir_gather(a, j->off, n, j->unit, d);
      }
    }
  }
}

// The same for sides of any form, in the compute dtype; a plain side is not conjugated.
static void eini_dir_fetch(eini_dir_job *j, int s0, const eini_dir_index *rows, int64_t row0,
                           int64_t rn, const eini_dir_index *x, int64_t i0, int64_t in,
                           int64_t pitch, char *dst) {
  const ein_side *side = s0 ? &j->c->q : &j->c->p;
  if (side->form == EIN_FORM_PLAIN) {
    eini_dir_fetch_plain(j, s0, rows, row0, rn, x, i0, in, pitch, dst);
    return;
  }
  if (side->form == EIN_FORM_PRODUCT &&
      eini_dir_product(j, s0, rows, row0, rn, x, i0, in, pitch, dst)) {
    return;
  }
  for (int64_t r = 0; r < rn; r++, dst += pitch * j->unit) {
    int64_t row[EINI_DIR_OPS];
    const int64_t *offp[EINI_DIR_OPS];
    for (int o = 0; o < side->nop; o++) row[o] = eini_dir_offset(rows, s0 + o, row0 + r);
    for (int64_t i = 0, n; i < in; i += n) {
      n = eini_min64(in - i, EIN_POINTS);
      for (int o = 0; o < side->nop; o++) {
        int64_t *off = j->off + o * EIN_POINTS;
        eini_dir_table(x, s0 + o, i0 + i, n, off);
        for (int64_t l = 0; l < n; l++) off[l] += row[o];
        offp[o] = off;
      }
      side->fill_fn(side->user, n, j->at + s0, offp, NULL, j->val);
      memcpy(dst + i * j->unit, j->val, (size_t)(n * j->unit));
    }
  }
}

static void eini_dir_scatter(const char *src, int64_t n, int64_t step, int unit, char *dst) {
  for (int64_t i = 0; i < n; i++) {
    switch (unit) {
      case 4: ((eini_any_i32 *)dst)[i * step] = ((const eini_any_i32 *)src)[i]; break;
      case 8: memcpy(dst + 8 * i * step, src + 8 * i, 8); break;
      default: memcpy(dst + 16 * i * step, src + 16 * i, 16);
    }
  }
}

// Store n finished sums at offset off[s] + i * step[s] of the output and of the extras; both arrays
// are indexed from 0.
static void eini_dir_put(eini_dir_job *j, int64_t n, const char *folds, const int64_t *off,
                         const int64_t *step) {
  const ein_contract *c = j->c;
  if (c->plain_out) {
    char *d = c->out == NULL ? NULL : (char *)(uintptr_t)j->at[EINI_DIR_OUT] + off[0] * j->unit;
    if (step[0] == 1) {
      memcpy(d, folds, (size_t)(n * j->unit));
    } else {
      eini_dir_scatter(folds, n, step[0], j->unit, d);
    }
    return;
  }
  for (int64_t i = 0, m; i < n; i += m) {
    const int64_t *offp[EINI_DIR_OPS + 1];
    int64_t at[EINI_DIR_OPS + 1];
    m = c->scaled ? n : eini_min64(n - i, EIN_POINTS);
    for (int e = 0; e <= c->nextra; e++) {
      at[e] = off[e] + i * step[e];
      offp[e] = &at[e];
    }
    const char *x = folds + i * j->unit;
    if (!c->scaled) x = (const char *)memcpy(j->val, x, (size_t)(m * j->unit));
    c->emit_fn(c->emit_user, m, x, (char *)(uintptr_t)j->at[EINI_DIR_OUT], offp[0],
               j->at + EINI_DIR_OUT + 1, offp + 1, step);
  }
}

static int eini_dir_conj(const eini_dir_job *j, int s0) {
  const ein_side *s = s0 ? &j->c->q : &j->c->p;
  return s->form == EIN_FORM_PLAIN && s->conj;
}

// The part of scratch that fetch and put use.
static void eini_dir_carve_job(eini_dir_job *j, char *base, size_t *used) {
  j->off = (int64_t *)eini_carve(base, used, EINI_DIR_OPS * EIN_POINTS * 8 + EIN_POINTS * 8, 1);
  j->val = (char *)eini_carve(base, used, EIN_POINTS * j->unit, 1);
}
