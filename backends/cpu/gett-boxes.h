// ================================================================================================
// >>gett-boxes  boxes and tables of section gett
// The indices of both sides and k in boxes; offsets of a box's rows in tables.
// ================================================================================================

enum { EINI_GETT_AXES = 12, EINI_GETT_OPS = 8 };

typedef struct eini_gett_axes {      // V, U or K
  int n;
  const int64_t *extent, *box;
  int64_t total;                     // number of boxes
  int inner;                         // the axis along which boxes follow each other; -1: the last
  int64_t early;                     // boxes of the last axis but the first start so much earlier
  int64_t at[EINI_GETT_AXES], size[EINI_GETT_AXES];  // the current box
} eini_gett_axes;

// A packed box that several threads make and use: a pair of counts of its shares, begun and made.
typedef struct eini_gett_slot { uint32_t begun, made; } eini_gett_slot;

static uint32_t eini_gett_begun(const eini_gett_slot *slot) {
#if EINI_CPU_THREADS
  return __atomic_load_n(&slot->begun, __ATOMIC_RELAXED);
#else
  return slot->begun;
#endif
}

typedef struct eini_gett_hand {      // one side of the problem: V or U
  const ein_side *s;
  eini_gett_axes g;
  int64_t panel;                     // elements from panel to panel
  int64_t lanes, granule, fill, pad; // of a panel; np is a multiple of fill; runs of pad
  eini_gett_pack_fn pack;
  int64_t run, step, n, np;          // of the current box: last extent, filled up; positions
  int64_t *row[EINI_GETT_OPS], *col[EINI_GETT_OPS], *place, *out;
  int64_t *left;                     // V: positions up to the end of a run of the output, or
                                     // less than 0: as many to skip
  int64_t whole;                     // positions of such a run
  unsigned char *flat[EINI_GETT_OPS];
  int kind[EINI_GETT_OPS];
  int64_t kstep[EINI_GETT_OPS], kcount[EINI_GETT_OPS];
  int64_t *across[EINI_GETT_OPS], *first[EINI_GETT_OPS], nfirst[EINI_GETT_OPS];
  int64_t shape[EINI_GETT_AXES], nk; // what the tables were built for
  int64_t kshape[EINI_GETT_AXES];
  const char *have[EINI_GETT_OPS];   // what the panels hold
  int in_place;                      // read where it is: no panels
  int64_t shift;                     // w: the last vector of a run ends with it; 0: it is filled up
  int64_t lead, led;                 // positions that fill up runs in front; those of the tables
  int64_t even, row_step, kby;       // in place: positions in even steps; from k to k + 1
  int64_t block;                     // positions after which the lines of others are asked for
  int64_t *soon, nsoon, most_soon;   // bytes to the lines of a block; NULL: not asked for ahead
  int packed_soon;                   // they are those of the next panel
  int fresh;
  int odd;                           // panels have values that only the exact tile takes
  char *panels;
  eini_gett_slot *slots;             // of all boxes, and what lies in them; NULL: packed for itself
  char *all;
  int64_t slot_bytes, box;           // box: the current one's number
  int64_t packed;                    // bytes, so far
  char *spare[EINI_GETT_OPS];        // an operand as it is stored; NULL: in the panels
} eini_gett_hand;

static int64_t eini_gett_product(int n, const int64_t *x) {
  int64_t r = 1;
  for (int i = 0; i < n; i++) r *= x[i];
  return r;
}

static void eini_gett_axes_init(eini_gett_axes *g, const ein_axes *x, const int64_t *box) {
  g->n = x->n, g->extent = x->extent, g->box = box, g->total = 1, g->inner = -1, g->early = 0;
  for (int i = 0; i < g->n; i++) g->total *= (x->extent[i] + box[i] - 1) / box[i];
}

// Where an operand is most of the traffic, boxes follow its layout: what was fetched beside the
// lines of one box is still near for the next.
static void eini_gett_follow(eini_gett_axes *g, const ein_side *s, int64_t k, int64_t other) {
  if (s->nop == 0 || k < other) return;
  const int64_t *stride = s->row[0];
  for (int i = 0; i < g->n; i++) {
    if (g->box[i] >= g->extent[i] || stride[i] == 0) continue;
    if (g->inner < 0 || eini_abs64(stride[i]) < eini_abs64(stride[g->inner])) g->inner = i;
  }
}

// Boxes are counted row-major, but first along the inner axis.
static void eini_gett_box(eini_gett_axes *g, int64_t index) {
  for (int t = g->inner >= 0 ? g->n : g->n - 1; t >= 0; t--) {
    if (t == g->inner) continue;
    const int i = t < g->n ? t : g->inner;
    const int64_t e = g->extent[i], b = g->box[i], count = (e + b - 1) / b;
    const int64_t c = index % count, early = i == g->n - 1 ? g->early : 0;
    g->at[i] = c > 0 ? c * b - early : 0;
    g->size[i] = (c < count - 1 ? (c + 1) * b - early : e) - g->at[i];
    index /= count;
  }
}

static int64_t eini_gett_offset(const eini_gett_axes *g, const int64_t *stride) {
  int64_t r = 0;
  for (int i = 0; i < g->n; i++) r += g->at[i] * stride[i];
  return r;
}

// Offsets of all positions of a box; runs along the last axis are filled up to pad, all to fill.
static void eini_gett_table(int n, const int64_t *size, const int64_t *stride, int64_t pad,
                            int64_t fill, int64_t *out) {
  int64_t count = 1;
  out[0] = 0;
  for (int i = n - 1; i >= 0; i--) {
    const int64_t s = stride[i];
    if (count == 1)
      for (int64_t j = 1; j < size[i]; j++) out[j] = j * s;
    else
      for (int64_t j = 1; j < size[i]; j++)
        for (int64_t p = 0; p < count; p++) out[j * count + p] = out[p] + j * s;
    count *= size[i];
    if (i == n - 1)
      for (; count % pad != 0; count++) out[count] = out[count - 1];
  }
  if (n == 0)
    for (; count % pad != 0; count++) out[count] = out[count - 1];
  for (; count % fill != 0; count++) out[count] = out[count - 1];
}

// The axis on which `run` elements that follow each other in memory go on; -1: none.
static int eini_gett_goes_on(int n, const int64_t *extent, const int64_t *stride, int64_t run) {
  for (int i = 0; i < n; i++)
    if (extent[i] > 1 && stride[i] == run) return i;
  return -1;
}

// Whether operand o has runs of memory across positions that are whole granules apart: of axes each
// of which continues the one before it. Makes the tables of a run and of where runs begin.
static int eini_gett_across(eini_gett_hand *h, int o) {
  const int n = h->g.n;
  int64_t run = 1, step, count = 1;
  int in[EINI_GETT_AXES] = {0};
  if (h->step % h->granule != 0) return 0;
  int64_t *across = h->across[o], *first = h->first[o];
  across[0] = 0;
  for (int i; (i = eini_gett_goes_on(n - 1, h->g.size, h->s->row[o], run)) >= 0;) {
    step = h->step;
    for (int t = i + 1; t < n - 1; t++) step *= h->g.size[t];
    for (int64_t j = 1; j < h->g.size[i]; j++)
      for (int64_t t = 0; t < run; t++) across[j * run + t] = across[t] + j * step;
    in[i] = 1, run *= h->g.size[i];
  }
  if (run < h->granule) return 0;
  first[0] = 0;
  step = h->step;
  for (int64_t p = h->granule; p < h->step; p += h->granule) first[count++] = p;
  for (int i = n - 2; i >= 0; step *= h->g.size[i--]) {
    if (in[i]) continue;
    for (int64_t j = 1; j < h->g.size[i]; j++)
      for (int64_t t = 0; t < count; t++) first[j * count + t] = first[t] + j * step;
    count *= h->g.size[i];
  }
  h->kind[o] = EINI_GETT_ACROSS, h->kcount[o] = run, h->nfirst[o] = count;
  return 1;
}

// Where operand o is contiguous within the current boxes.
static void eini_gett_kind(eini_gett_hand *h, const eini_gett_axes *k, int o) {
  const int n = h->g.n;
  h->kind[o] = n > 0 && h->s->row[o][n - 1] == 1 ? EINI_GETT_ROWS : EINI_GETT_NOWHERE;
  if (n > 0 && h->s->row[o][n - 1] == 1 && h->g.size[n - 1] >= h->granule) return;
  if (eini_gett_across(h, o)) return;
  int64_t step = h->step;
  for (int i = n - 2; i >= 0; step *= h->g.size[i--]) {
    if (h->s->row[o][i] != 1 || h->g.size[i] < h->granule) continue;
    h->kind[o] = EINI_GETT_UNEVEN, h->kstep[o] = step, h->kcount[o] = h->g.size[i];
    return;
  }
  step = 1;
  for (int i = k->n - 1; i >= 0; i--) {
    if (h->s->k[o][i] == 1 && k->size[i] >= h->granule) {
      h->kind[o] = EINI_GETT_ALONG, h->kstep[o] = step, h->kcount[o] = k->size[i];
      return;
    }
    step *= k->size[i];
  }
}

// How many trailing positions of a box lie in even steps, and the step.
static int64_t eini_gett_even(int n, const int64_t *size, const int64_t *stride, int64_t *step) {
  int64_t count = 1;
  *step = 0;
  for (int i = n - 1; i >= 0; i--) {
    if (size[i] == 1) continue;
    if (count == 1) *step = stride[i];
    else if (stride[i] != *step * count) break;
    count *= size[i];
  }
  return count;
}

// The lines of a block of a side that is read in place: all k of the positions in even steps if it
// is contiguous along them, else of the columns of one tile.
static void eini_gett_soon_in_place(eini_gett_hand *h, int64_t nk, int64_t size) {
  const int64_t lane = 64 / size;
  h->nsoon = 0;
  if (h->soon == NULL || (h->row_step != 1 && h->kby != 1)) return;
  h->block = h->row_step == 1 ? h->even : eini_min64(h->even, h->lanes);
  int64_t n = 0;
  if (h->row_step == 1) {
    for (int64_t q = 0; q < nk; q++)
      for (int64_t t = 0; t < h->even && n < h->most_soon; t += lane)
        h->soon[n++] = (q * h->kby + t) * size;
  } else {
    for (int64_t q = 0; q < nk; q += lane)
      for (int64_t t = 0; t < h->block && n < h->most_soon; t++)
        h->soon[n++] = (t * h->row_step + q) * size;
  }
  for (; n % nk != 0 && n < h->most_soon; n++) h->soon[n] = h->soon[n - 1];
  h->nsoon = n;
}

// The lines of a block that is packed, about in the order in which packing reads them. Where rows
// do not start lines, each stretch of a line lies in two: its last element's is asked for, as the
// other came with the stretch before.
static void eini_gett_soon_packed(eini_gett_hand *h, int64_t nk, int64_t size) {
  const int64_t lane = 64 / size, step = h->kstep[0], count = h->kcount[0], most = h->most_soon;
  const int64_t *row = h->row[0], *col = h->col[0];
  int64_t n = 0;
  h->nsoon = 0;
  if (most == 0) return;
  if (h->kind[0] == EINI_GETT_ROWS)
    for (int64_t q = 0; q < nk; q++)
      for (int64_t p = 0; p < h->n; p += h->step)
        for (int64_t t = p, end = p + h->step; t < end && n < most; t += lane)
          h->soon[n++] = (row[eini_min64(t + lane, end) - 1] + col[q]) * size;
  if (h->kind[0] == EINI_GETT_ALONG)
    for (int64_t p = 0; p < h->n; p++)
      for (int64_t q = 0; q < nk; q += step * count)
        for (int64_t t = q; t < q + step * count; t += step * lane)
          for (int64_t i = eini_min64(t + step * lane, q + step * count) - step, end = i + step;
               i < end && n < most; i++)
            h->soon[n++] = (row[p] + col[i]) * size;
  if (h->kind[0] == EINI_GETT_ACROSS)
    for (int64_t i = 0; i < h->nfirst[0]; i++)
      for (int64_t p = h->first[0][i], end = p + h->granule; p < end; p++)
        for (int64_t q = 0; q < nk; q++)
          for (int64_t t = 0; t < count && n < most; t += lane)
            h->soon[n++] =
                (row[p + h->across[0][eini_min64(t + lane, count) - 1]] + col[q]) * size;
  for (; n % nk != 0 && n < h->most_soon; n++) h->soon[n] = h->soon[n - 1];
  h->nsoon = n;
}

// The lines of a panel.
static void eini_gett_soon_panel(eini_gett_hand *h, int64_t rows, int64_t size) {
  const int64_t last = (h->lanes * rows * size + 63) / 64 - 1;
  for (int64_t q = 0; q < rows; q++) h->soon[q] = eini_min64(q, last) * 64;
  h->nsoon = rows;
}

// Elements from panel to panel: an odd number of lines, so that stores to one place of each panel
// in turn reach all sets of the cache.
static int64_t eini_gett_panel(int64_t lanes, int64_t rows, int64_t size) {
  return ((lanes * rows * size + 63) / 64 | 1) * 64 / size;
}

// Runs are filled up in front, too, so that vectors start where lines of the output do: with copies
// of the first element, or, in the table of the output, with what lies before it and is not stored.
static void eini_gett_lead(const eini_gett_hand *h, int64_t by, int64_t *table) {
  if (h->lead == 0) return;
  for (int64_t p = 0; p < h->n; p += h->step) {
    memmove(table + p + h->lead, table + p, (size_t)(h->step - h->lead) * sizeof(int64_t));
    for (int64_t i = 0; i < h->lead; i++) table[p + i] = table[p + h->lead] - by * (h->lead - i);
  }
}

// Moves the last vector of each run back to where it ends with the run: lanes that two vectors of
// one tile hold are the same sums, stored twice.
static void eini_gett_shift(const eini_gett_hand *h, int64_t *table) {
  if (h->shift == 0) return;
  for (int64_t p = 0; p < h->n; p += h->step)
    memmove(table + p + h->step - h->shift, table + p + h->run - h->shift,
            (size_t)h->shift * sizeof(int64_t));
}

// Runs of the output go on over axes that follow each other in it, where nothing is filled up.
static void eini_gett_runs(eini_gett_hand *h, const int64_t *out_stride) {
  int64_t run = h->run, step = h->step;
  for (int i = h->g.n - 2; i >= 0 && run == step && out_stride[h->g.n - 1] == 1; i--) {
    if (h->g.size[i] == 1) continue;
    if (out_stride[i] != run) break;
    run *= h->g.size[i], step = run;
  }
  h->whole = run;
  for (int64_t p = 0, at = 0; p < h->np; p++, at = at + 1 < step ? at + 1 : 0)
    h->left[p] = at < run ? run - at : at - step;
}

// Builds the tables of one side for its current box and the current box of K, if they changed.
static void eini_gett_tables(eini_gett_hand *h, const eini_gett_axes *k, int64_t nk,
                             const eini_gett_kit *kit, const int64_t *out_stride) {
  const size_t bytes = (size_t)h->g.n * sizeof(int64_t), kbytes = (size_t)k->n * sizeof(int64_t);
  const int same = h->nk >= 0 && h->led == h->lead && memcmp(h->shape, h->g.size, bytes) == 0;
  if (same && memcmp(h->kshape, k->size, kbytes) == 0) return;
  const int n = h->g.n;
  h->fresh = 0;
  if (!same) {
    const int64_t runs = eini_gett_product(n - 1, h->g.size);
    h->run = n > 0 ? h->g.size[n - 1] : 1;
    h->step = eini_up(h->lead + h->run, h->pad), h->led = h->lead;
    h->n = runs * h->step;
    h->np = eini_up(h->n, h->fill);
    eini_gett_table(n, h->g.size, out_stride, h->step, h->fill, h->out);
    eini_gett_shift(h, h->out);
    eini_gett_lead(h, 1, h->out);
    if (h->left != NULL) eini_gett_runs(h, out_stride);
  }
  const int64_t g = h->granule, rows = eini_gett_rows(kit, nk), size = kit->size;
  const int64_t panel = eini_gett_panel(h->lanes, kit->head + rows, size);
  h->panel = panel;
  for (int o = 0; o < h->s->nop; o++) {
    eini_gett_table(k->n, k->size, h->s->k[o], 1, 1, h->col[o]);
    if (!same) {
      int64_t *row = h->row[o];
      eini_gett_table(n, h->g.size, h->s->row[o], h->step, h->fill, row);
      eini_gett_shift(h, row);
      eini_gett_lead(h, 0, row);
      for (int64_t p = 0; p < h->np; p += g) {
        int flat = 1;
        for (int64_t i = 1; i < g; i++) flat &= row[p + i] == row[p] + i;
        h->flat[o][p / g] = (unsigned char)flat;
      }
    }
    eini_gett_kind(h, k, o);
  }
  for (int64_t p = 0; p < h->np; p += g)
    h->place[p / g] = p / h->lanes * panel + p % h->lanes;
  if (h->in_place) {
    h->even = eini_gett_even(n, h->g.size, h->s->row[0], &h->row_step);
    eini_gett_even(k->n, k->size, h->s->k[0], &h->kby);
    eini_gett_soon_in_place(h, nk, size);
  } else if (h->packed_soon) {
    eini_gett_soon_panel(h, rows, size);
  } else {
    eini_gett_soon_packed(h, nk, size);
  }
  memcpy(h->shape, h->g.size, bytes);
  memcpy(h->kshape, k->size, kbytes);
  h->nk = nk;
}

// Packs an operand of another size than the panels' elements, few k at a time: lines that are
// contiguous along k are then read once.
static void eini_gett_pack_other(const eini_gett_pack_arg *a, int64_t granule, int64_t size) {
  for (int64_t q0 = 0; q0 < a->nk; q0 += 16)
    for (int64_t p = 0; p < a->np; p += granule)
      for (int64_t q = q0; q < eini_min64(q0 + 16, a->nk); q++) {
        const int64_t *row = a->row + p;
        const char *s = (const char *)a->src + a->col[q] * size;
        char *d = (char *)a->dst + (a->place[p / granule] + q * a->lanes) * size;
        const int flat = a->flat[p / granule];
        eini_gather((size_t)size, granule, s + (flat ? row[0] * size : 0), 1, flat ? NULL : row, d);
      }
}

// Lanes of the last panel that hold nothing become copies of the last that does.
static void eini_gett_rest(const eini_gett_hand *h, int64_t rows, int64_t size, char *panels) {
  const int64_t n = h->np % h->lanes;
  char *d = panels + h->np / h->lanes * h->panel * size;
  for (int64_t q = 0; q < rows && n > 0; q++, d += h->lanes * size)
    eini_gather((size_t)size, h->lanes - n, d + (n - 1) * size, 0, NULL, d + n * size);
}

// Positions that stand for a box, so that as many of them as there are boxes make all.
static int64_t eini_gett_stretch(int64_t all, int64_t boxes) {
  const int64_t more = (all + boxes - 1) / boxes;
  return (all + more - 1) / more == boxes ? more : eini_max64(all / boxes, 1);
}

// The part of `boxes` that the busiest of so many takes.
static double eini_gett_most(int64_t boxes, int64_t shares) {
  return (double)((boxes + shares - 1) / shares) / (double)boxes;
}

// Whether values of a side are made of operands that were packed as they are stored.
static int eini_gett_made(const ein_side *s, const eini_gett_kit *kit, int is_u) {
  return s->form != EIN_FORM_PLAIN && (s->form != EIN_FORM_PRODUCT || kit->times == NULL) &&
         eini_gett_converter(kit, s, is_u) == NULL;
}

// Packs a narrow operand, converted, and does what remains to be done with its panels.
static void eini_gett_pack_narrow(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  eini_gett_pack_fn pack, const eini_gett_pack_arg *a) {
  const int64_t used = (a->nk + kit->group - 1) / kit->group, rows = eini_gett_rows(kit, a->nk);
  const int64_t panels = (h->np + h->lanes - 1) / h->lanes, row = h->lanes * kit->size;
#if EINI_CPU_DOTS
  h->odd = eini_gett_tiled(kit) ? eini_gett_amx_pack(kit, is_u, a, h->panel, rows) : -1;
  if (h->odd >= 0) return;
#endif
  h->odd = 0;
  pack(a);
  if (kit->done == NULL) return;
  eini_gett_rest(h, used, kit->size, (char *)a->dst);
  for (int64_t i = 0; i < panels; i++) {
    char *p = h->panels + i * h->panel * kit->size;
    memset(p + (kit->head + used) * row, 0, (size_t)((rows - used) * row));
    h->odd |= kit->done(kit, is_u, h->lanes, rows, p);
  }
}

// Packs panels [from, to) of the current box. Values of expressions are made panel by panel, where
// all operands stand one after the other, and of all panels.
static void eini_gett_pack_panels(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  const char *const *base, int64_t nk, int64_t from,
                                  int64_t to) {
  static const int64_t start = 0;
  const int64_t p = from * h->lanes, np = eini_min64(to * h->lanes, h->np) - p, g = h->granule;
  const int made = eini_gett_made(h->s, kit, is_u);
  const char *at[EINI_GETT_OPS];
  const int64_t *offs[EINI_GETT_OPS];
  int64_t gap[EINI_GETT_OPS];
  for (int o = 0; o < h->s->nop; o++) {
    char *into = h->spare[o] != NULL ? h->spare[o] : h->panels;
    const int64_t size = (int64_t)ein_dtype_size(h->s->dtype[o]), first = from * h->panel;
    const eini_gett_pack_arg a = {
        h->kind[o], eini_min64(h->n - p, np), np, nk, h->lanes, h->kstep[o], h->kcount[o],
        h->row[o] + p, h->col[o], h->place + p / g, h->flat[o] + p / g, h->across[o], h->first[o],
        h->nfirst[o], base[o], into};
    if (size == kit->size) h->pack(&a);
    else eini_gett_pack_other(&a, g, size);
    if (made) eini_gett_rest(h, nk, size, into);
    else if (o > 0)
      kit->times((to - from) * h->panel, h->panels + first * size, into + first * size);
    at[o] = into, offs[o] = &start, gap[o] = 1;
  }
  for (int64_t i = from; i < to && made; i++) {
    h->s->fill_fn(h->s->user, h->lanes * nk, at, offs, gap, h->panels + i * h->panel * kit->size);
    for (int o = 0; o < h->s->nop; o++)
      at[o] += h->panel * (int64_t)ein_dtype_size(h->s->dtype[o]);
  }
  h->packed += (to - from) * h->panel * kit->size;
}

#define EINI_GETT_SHARES 16  // of a box that threads pack together

// The same for threads that share the box: each takes shares while there are some, and waits for
// those of others, who are at work on them.
static void eini_gett_pack_shared(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                                  const char *const *base, int64_t nk, int64_t panels) {
#if EINI_CPU_THREADS
  eini_gett_slot *slot = &h->slots[h->box];
  const int whole = eini_gett_made(h->s, kit, is_u) || h->lanes % h->granule != 0;
  int64_t shares = whole ? 1 : EINI_GETT_SHARES;
  for (int o = 0; o < h->s->nop; o++)
    if (h->kind[o] == EINI_GETT_ACROSS) shares = 1;  // whose positions are not packed by panels
  shares = eini_min64(shares, panels);
  while (eini_gett_begun(slot) < (uint32_t)shares) {
    const int64_t i = (int64_t)__atomic_fetch_add(&slot->begun, 1, __ATOMIC_RELAXED);
    if (i >= shares) break;
    eini_gett_pack_panels(h, kit, is_u, base, nk, panels * i / shares, panels * (i + 1) / shares);
    __atomic_fetch_add(&slot->made, 1, __ATOMIC_RELEASE);
  }
  for (int turn = 0; __atomic_load_n(&slot->made, __ATOMIC_ACQUIRE) < (uint32_t)shares; turn++)
    if (turn < EINI_POOL_SPIN) eini_pool_pause();
    else sched_yield();
#else  // EINI_CPU_THREADS
  if (h->slots[h->box].begun == 0) eini_gett_pack_panels(h, kit, is_u, base, nk, 0, panels);
  h->slots[h->box].begun = 1;
#endif
}

// Packs the current box of one side; base: the operands at the current box of V or U, K and batch.
static void eini_gett_pack(eini_gett_hand *h, const eini_gett_kit *kit, int is_u,
                           const char *const *base, int64_t nk) {
  const int64_t panels = (h->np + h->lanes - 1) / h->lanes;
  const eini_gett_pack_fn convert = eini_gett_converter(kit, h->s, is_u);
  char *into = h->slots == NULL ? h->panels : h->all + h->box * h->slot_bytes;
  int same = h->fresh && into == h->panels;
  for (int o = 0; o < h->s->nop; o++) same &= h->have[o] == base[o];
  if (same) return;
  for (int o = 0; o < h->s->nop; o++) h->have[o] = base[o];
  h->fresh = 1;
  if (h->in_place) return;
  h->panels = into;
  if (convert != NULL) {  // never shared
    const eini_gett_pack_arg n = {h->kind[0], h->n, h->np, nk, h->lanes, h->kstep[0], h->kcount[0],
                                  h->row[0], h->col[0], h->place, h->flat[0], h->across[0],
                                  h->first[0], h->nfirst[0], base[0],
                                  into + kit->head * h->lanes * kit->size};
    eini_gett_pack_narrow(h, kit, is_u, convert, &n);
    h->packed += panels * h->panel * kit->size;
  } else if (h->slots == NULL) {
    eini_gett_pack_panels(h, kit, is_u, base, nk, 0, panels);
  } else {
    eini_gett_pack_shared(h, kit, is_u, base, nk, panels);
  }
}
