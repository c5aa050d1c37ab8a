// ================================================================================================
// >>group-mask  blocks of a softmax that a mask leaves out
// Takes a group whose folds go on from block to block, and what its mask compares; gives, for each
// block, whether all of it is kept, or nothing, which then need not be computed.
// ================================================================================================

// What exp makes of -inf is 0, and so is what finite factors make of that: they are looked at once.
typedef struct eini_mask_factor {
  int slot, n;                  // of the group
  ein_dtype dtype;
  int64_t extent[EINI_LAYOUT_RANK], stride[EINI_LAYOUT_RANK];  // of a block; elements
} eini_mask_factor;

typedef struct eini_mask_term {
  int64_t lo, hi;               // least and most of what is kept where it is at most 0, in the
                                //   block at 0, ..
  int64_t step[EINI_GROUP_LOOPS];  // .. and how it moves with the loops
} eini_mask_term;

struct eini_mask {
  int nterm, nfactor, all;      // all: what all terms keep is kept
  int none;                     // the mask ends before these blocks
  eini_mask_term term[EINI_MASK_TERMS];
  eini_mask_factor *factor;
};

static ein_status eini_group_slot_add(eini_arena *a, eini_group_variant *v, int64_t *cap, int slot,
                                      int64_t offset, const int64_t *step, int *id) {
  eini_group_slot *w = (eini_group_slot *)eini_grow(a, v->slot, v->nslot, cap, sizeof *w);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  v->slot = w;
  w += v->nslot;
  w->slot = slot;
  w->offset = offset;
  for (int l = 0; l < EINI_GROUP_LOOPS; l++) w->step[l] = step[l];
  *id = v->nslot++;
  return EIN_OK;
}

// ---- planning ----

// Operand k of s, in blocks that lo sees.
static ein_status eini_mask_factor_of(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                      const eini_stmt *s, int k, eini_group_variant *v,
                                      int64_t *cap, eini_mask_factor *to) {
  const eini_stmt_block block = eini_walk_block(&lo->walk, lo->len);
  const int local = lo->local[s->operand[k]];
  eini_task t;
  eini_ref ref;
  memset(&t, 0, sizeof t);
  memset(&ref, 0, sizeof ref);
  t.nop = 1;
  t.nindex = s->nindex;
  t.ref = &ref;
  t.stride = EINI_NEW(&p->arena, int64_t, s->nindex);
  if (t.stride == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_stream_tensor(lo, s, &t, 0, s->operand[k], &s->proj[k], NULL));
  to->dtype = ref.dtype;
  for (int i = 0; i < s->nindex; i++) {
    int64_t from, n;
    if (t.stride[i] == 0) continue;
    eini_block_range(s, &block, i, &from, &n);
    if (to->n == EINI_LAYOUT_RANK) return EIN_ERR_INTERNAL;
    to->extent[to->n] = n;
    to->stride[to->n++] = t.stride[i];
  }
  return eini_group_slot_add(&p->arena, v, cap, local ? -1 : ref.slot,
                             ref.offset + (local ? w->place[s->operand[k]] : 0), ref.step,
                             &to->slot);
}

// The mask of a group in blocks of a variant.
static ein_status eini_mask_lower(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                  const eini_bundle *b, int number, eini_group_variant *v,
                                  int64_t *cap) {
  const eini_stmt *s = w->unit[b->from + b->mask - 1].s;
  eini_mask *m = v->mask = EINI_NEW(&p->arena, eini_mask, 1);
  eini_lowering sub = *lo;
  if (m == NULL) return EIN_ERR_NO_MEMORY;
  m->factor = EINI_NEW(&p->arena, eini_mask_factor, EINI_MASK_FACTORS);
  if (m->factor == NULL) return EIN_ERR_NO_MEMORY;
  m->none = eini_bundle_at(w, b, b->from + b->mask - 1, number, &sub) != 0;
  if (m->none) return EIN_OK;
  m->nterm = b->mask_terms, m->all = b->mask_all;
  for (int k = 0; k < m->nterm; k++) {
    const int64_t *coef = b->mask_by + (int64_t)k * (s->nindex + 1);
    eini_mask_term *t = &m->term[k];
    t->lo = t->hi = coef[s->nindex];
    for (int i = 0; i < s->nindex; i++) {
      int64_t from = 0, n = s->index[i].extent;
      for (int l = 0; l < b->nloop; l++) {
        if (sub.walk.loop[l] != i) continue;
        from = sub.from[l], n = sub.len[l];
        t->step[l] += coef[i] * sub.mul[l];
      }
      t->lo += coef[i] * (coef[i] > 0 ? from : from + n - 1);
      t->hi += coef[i] * (coef[i] > 0 ? from + n - 1 : from);
    }
  }
  for (int i = 0; i < b->nfactor; i++) {
    const int x = b->factor[i][0];
    if (eini_bundle_at(w, b, b->from + x, number, &sub)) continue;
    EINI_TRY(eini_mask_factor_of(p, &sub, w, w->unit[b->from + x].s, b->factor[i][1], v, cap,
                                 &m->factor[m->nfactor++]));
  }
  return EIN_OK;
}

// ---- runs ----

// Runs of EINI_LANES at a time, of a length that is known, so that compilers use vectors: the top
// bit of `bad` is set where the exponent is that of infinities and NaN.
static void eini_finite_see32(const uint32_t *x, uint32_t *bad) {
  for (int k = 0; k < EINI_LANES; k++) bad[k] |= (x[k] & 0x7f800000u) + 0x800000u;
}

static int eini_finite_f32(int64_t n, const char *p) {
  uint32_t x[EINI_LANES], bad[EINI_LANES] = {0}, any = 0;
  for (; n >= EINI_LANES; n -= EINI_LANES, p += sizeof x) {
    memcpy(x, p, sizeof x);
    eini_finite_see32(x, bad);
  }
  memset(x, 0, sizeof x);
  memcpy(x, p, (size_t)n * sizeof *x);
  eini_finite_see32(x, bad);
  for (int k = 0; k < EINI_LANES; k++) any |= bad[k];
  return any >> 31 == 0;
}

static void eini_finite_see64(const uint64_t *x, uint64_t *bad) {
  const uint64_t all = (uint64_t)0x7ff << 52;
  for (int k = 0; k < EINI_LANES; k++) bad[k] |= (x[k] & all) + ((uint64_t)1 << 52);
}

static int eini_finite_f64(int64_t n, const char *p) {
  uint64_t x[EINI_LANES], bad[EINI_LANES] = {0}, any = 0;
  for (; n >= EINI_LANES; n -= EINI_LANES, p += sizeof x) {
    memcpy(x, p, sizeof x);
    eini_finite_see64(x, bad);
  }
  memset(x, 0, sizeof x);
  memcpy(x, p, (size_t)n * sizeof *x);
  eini_finite_see64(x, bad);
  for (int k = 0; k < EINI_LANES; k++) any |= bad[k];
  return any >> 63 == 0;
}

// Are all elements of a factor's block at p finite?
static int eini_mask_finite(const eini_mask_factor *f, const char *p) {
  const int64_t size = (int64_t)ein_dtype_size(f->dtype);
  int64_t at[EINI_LAYOUT_RANK] = {0};
  int run = -1, i = 0;
  for (int d = 0; d < f->n; d++)
    if (f->stride[d] == 1) run = d;
  const int64_t n = run < 0 ? 1 : f->extent[run];
  while (i >= 0) {
    const char *row = p;
    for (int d = 0; d < f->n; d++) row += at[d] * f->stride[d] * size;
    if (!(size == 4 ? eini_finite_f32(n, row) : eini_finite_f64(n, row))) return 0;
    for (i = f->n - 1; i >= 0; i--) {
      if (i == run) continue;
      if (++at[i] < f->extent[i]) break;
      at[i] = 0;
    }
  }
  return 1;
}

// Along the innermost loop again: what is known of its factors stays if they are those of before.
static void eini_mask_begin(const eini_mask *m, char *const *slot, const char **factor,
                            char *known, size_t blocks) {
  int same = 1;
  for (int k = 0; k < m->nfactor; k++) {
    same &= factor[k] == slot[m->factor[k].slot];
    factor[k] = slot[m->factor[k].slot];
  }
  if (!same) memset(known, 0, blocks);
}

// Which tasks a block needs: EINI_AT_MIXED, EINI_AT_OPEN, or 0: none. known[i]: of block i along
// the innermost loop, 1 where its factors are finite, 2 where not, 0 where nobody has looked.
static int eini_mask_state(const eini_mask *m, int nloop, const int64_t *at, char *const *slot,
                           char *known, int64_t i) {
  int open = m->all, none = m->none;  // all is 0 where none is not
  for (const eini_mask_term *t = m->term; t < m->term + m->nterm; t++) {
    int64_t by = 0;
    for (int l = 0; l < nloop; l++) by += at[l] * t->step[l];
    open &= t->hi + by <= 0;
    none |= t->lo + by > 0;
  }
  if (open) return EINI_AT_OPEN;
  if (!none) return EINI_AT_MIXED;
  if (known[i] == 0) {
    known[i] = 1;
    for (int k = 0; k < m->nfactor; k++)
      if (!eini_mask_finite(&m->factor[k], slot[m->factor[k].slot])) known[i] = 2;
  }
  return known[i] == 1 ? 0 : EINI_AT_MIXED;
}

// ---- predictions ----

#define EINI_MASK_LOOKS 32  // blocks along a loop that are looked at

static int eini_mask_moves(const eini_mask *m, int l) {
  for (int k = 0; k < m->nterm; k++)
    if (m->term[k].step[l] != 0) return 1;
  return 0;
}

// Of the blocks of a group the parts that a mask keeps in part and wholly, if factors are finite.
static void eini_mask_parts(const eini_bundle *b, const eini_mask *m, double *mixed,
                            double *open) {
  int64_t at[EINI_GROUP_LOOPS] = {0}, by[EINI_GROUP_LOOPS];
  char known = 1;
  double n = 0;
  int l = 0;
  *mixed = *open = 0;
  for (int i = 0; i < b->nloop; i++)
    by[i] = eini_ceil_div(eini_ceil_div(b->extent[i], b->block[i]), EINI_MASK_LOOKS) * b->block[i];
  while (l >= 0) {
    const int state = eini_mask_state(m, b->nloop, at, NULL, &known, 0);
    *mixed += state == EINI_AT_MIXED, *open += state == EINI_AT_OPEN, n++;
    for (l = b->nloop - 1; l >= 0; at[l--] = 0)
      if (eini_mask_moves(m, l) && (at[l] += by[l]) < b->extent[l]) break;
  }
  *mixed /= n, *open /= n;
}

// How often a step runs; mask may be NULL.
static double eini_group_step_runs(const eini_bundle *b, const eini_mask *mask,
                                   const eini_group_step *s) {
  double runs = 1, mixed = 0, open = 1;
  if (mask != NULL) eini_mask_parts(b, mask, &mixed, &open);
  for (int l = 0; l < b->nloop - 1; l++) runs *= (double)eini_ceil_div(b->extent[l], b->block[l]);
  const double inner = (double)eini_ceil_div(b->extent[b->nloop - 1], b->block[b->nloop - 1]);
  const double part = (s->when & EINI_AT_MIXED ? mixed : 0) + (s->when & EINI_AT_OPEN ? open : 0);
  const int once = (s->when & EINI_AT_FIRST) != 0, rest = (s->when & EINI_AT_OTHERS) != 0;
  if (mask != NULL && once && rest) return runs * inner * part;
  return runs * (once + rest * fmax(inner * (mixed + open) - 1, 0) +
                 ((s->when & EINI_AT_LAST) != 0));
}
