// ================================================================================================
// >>gett-sketch  boxes of section gett
// Takes a contraction and the machine; gives orientation, and boxes that fit its caches.
// ================================================================================================

// choice.state: flags, lanes of V, sub, then the boxes of V, U and K.
enum { EINI_GETT_FORM = 12 };  // where a form begins in the flags
enum { EINI_GETT_SWAP = 1, EINI_GETT_DIRECT = 2, EINI_GETT_PAST = 4, EINI_GETT_KEEP = 8,
       EINI_GETT_BARE = 16, EINI_GETT_IN_PLACE = 32, EINI_GETT_SOON = 64, EINI_GETT_SHIFT = 128,
       EINI_GETT_SHARE_U = 256, EINI_GETT_SHARE_V = 512, EINI_GETT_LASTS_U = 1024,
       EINI_GETT_LASTS_V = 2048 };
#define EINI_GETT_WAYS 64      // sets of the flags that make different ways
enum { EINI_GETT_HEAD = 4, EINI_GETT_STATE = 39, EINI_GETT_BARE_K = 256,
       EINI_GETT_ORDERED = 4096 };  // bytes along K of a box in deterministic mode

// Gives an axis up to `want`, in even shares, while the box stays within `most` positions.
static void eini_gett_grow(int n, const int64_t *extent, int64_t *box, int i, int64_t want,
                           int64_t most, int64_t unit) {
  if (i < 0 || i >= n) return;
  const int64_t others = eini_gett_product(n, box) / box[i];
  int64_t b = eini_min64(extent[i], eini_min64(want, most / others));
  if (b <= box[i]) return;
  // In whole units where there is more than one; even shares.
  const int64_t step = b < extent[i] && b >= unit ? unit : 1;
  const int64_t units = (extent[i] + step - 1) / step, parts = (units + b / step - 1) / (b / step);
  b = (units + parts - 1) / parts * step;
  box[i] = eini_max64(box[i], eini_min64(b, extent[i]));
}

// The same, where the axis has unit steps in an operand, for a run of so many elements: axes where
// the run goes on grow, too. stride: of the operand; or NULL.
static void eini_gett_grow_run(int n, const int64_t *extent, const int64_t *stride, int64_t *box,
                               int i, int64_t want, int64_t most, int64_t unit) {
  int64_t run = 1;
  eini_gett_grow(n, extent, box, i, want, most, unit);
  if (stride == NULL || i < 0 || stride[i] != 1) return;
  while (i >= 0 && box[i] == extent[i] && (run *= extent[i]) < want) {
    i = eini_gett_goes_on(n, extent, stride, run);
    eini_gett_grow(n, extent, box, i, (want + run - 1) / run, most, 1);
  }
}

// A box of at most `most` positions: first some of axes x and y, then more of them, then the rest.
static void eini_gett_fit(int n, const int64_t *extent, const int64_t *stride, int64_t *box,
                          int64_t most, int x, int y, int64_t some, int64_t unit) {
  for (int i = 0; i < n; i++) box[i] = 1;
  eini_gett_grow_run(n, extent, stride, box, x, some, most, unit);
  eini_gett_grow_run(n, extent, stride, box, y, some, most, unit);
  eini_gett_grow(n, extent, box, x, 4 * some, most, unit);
  eini_gett_grow(n, extent, box, y, most, most, unit);
  eini_gett_grow(n, extent, box, x, most, most, unit);
  for (int i = n - 1; i >= 0; i--)
    eini_gett_grow(n, extent, box, i, most, most, i == x || i == y ? unit : 1);
}

// A little less of one axis where this makes a whole number of tiles, but no more boxes where they
// are few: threads share them.
static void eini_gett_whole(int n, const int64_t *extent, int64_t *box, int64_t tile,
                            int64_t granule, int64_t unit, int64_t few) {
  if (n == 0 || box[n - 1] % unit != 0) return;
  int64_t boxes = 1;
  for (int i = 0; i < n; i++) boxes *= (extent[i] + box[i] - 1) / box[i];
  for (int i = n - 1; i >= 0; i--) {
    const int64_t others = eini_gett_product(n, box) / box[i],
                  step = i == n - 1 ? unit : box[i] % granule == 0 ? granule : 1;
    for (int64_t b = box[i]; box[i] < extent[i] && b * 8 >= box[i] * 7; b -= step) {
      if (others * b % tile != 0) continue;
      if (boxes >= few || (extent[i] + b - 1) / b == (extent[i] + box[i] - 1) / box[i]) box[i] = b;
      return;
    }
  }
}

// The axis along which the first operand with one is contiguous; -1: none.
static int eini_gett_unit_axis(const ein_side *s, const int64_t *const *stride,
                               const ein_axes *x) {
  for (int o = 0; o < s->nop; o++)
    for (int i = 0; i < x->n; i++)
      if (stride[o][i] == 1 && x->extent[i] > 1) return i;
  return -1;
}

// Extents may be less when it runs; but not those of the group that has unit steps in the output.
enum { EINI_GETT_CUT = 1, EINI_GETT_CUT_OTHERS };

typedef struct eini_gett_sketch {  // a plan while it is being made
  eini_gett_kit kit;
  const ein_axes *vx, *ux, *kx;
  const ein_side *v, *u;
  const int64_t *out_v, *out_u;
  int swap, direct, past, keep, unit, bare, in_place, ahead, far, shift;
  int cut;                                  // EINI_GETT_CUT, .._OTHERS, or 0
  int without;                              // flags: what is not to be; of SWAP, as it would be
  int beyond;                               // the output would not stay in the caches
  int ordered;                              // boxes of K from extents and dtype alone
  int64_t lanes, sub, pad, nv, nu, nk;      // positions of the boxes
  int64_t rows;                             // of a panel
  int64_t shares[3];                        // of batch, V and U that threads are to take
  int64_t box_v[EINI_GETT_AXES], box_u[EINI_GETT_AXES], box_k[EINI_GETT_AXES];
} eini_gett_sketch;

static void eini_gett_orient(const eini_cpu *cpu, const ein_contract *c, eini_gett_sketch *p,
                             int swap) {
  p->swap = swap;
  p->vx = swap ? &c->m : &c->n, p->ux = swap ? &c->n : &c->m, p->kx = &c->k;
  p->v = swap ? &c->p : &c->q, p->u = swap ? &c->q : &c->p;
  p->out_v = swap ? c->out_m : c->out_n, p->out_u = swap ? c->out_n : c->out_m;
  const int n = p->vx->n;
  p->unit = n == 0 || p->out_v[n - 1] == 1;
  eini_gett_dress(cpu, &p->kit, p->v, p->u);
}

// Elements that follow each other in the output along a group.
static int64_t eini_gett_run_of(const ein_axes *x, const int64_t *out) {
  int64_t run = 1;
  for (int i = x->n - 1; i >= 0 && out[i] == run; i--) run *= x->extent[i];
  return run;
}

// How well a group fills vectors of w: its run along the unit stride of the output, or what it is
// joined to.
static double eini_gett_filled(const ein_axes *x, const int64_t *out, int64_t w) {
  if (x->n == 0) return 1.0 / (double)w;
  if (out[x->n - 1] != 1) {
    const int64_t all = eini_gett_product(x->n, x->extent);
    return 0.5 * (double)all / (double)eini_up(all, w);
  }
  const int64_t run = x->extent[x->n - 1], whole = eini_gett_run_of(x, out);
  const double one = (double)run / (double)eini_up(run, w);
  return one > 0.85 ? one : (double)whole / (double)eini_up(whole, w);
}

// The panel width with the least work for np positions: narrow tiles are less efficient.
static int64_t eini_gett_lanes(const eini_gett_kit *kit, int64_t np, int64_t *cost) {
  static const int price[4] = {0, 10, 17, 24};
  int64_t best = 0;
  const int64_t vectors = (np + kit->w - 1) / kit->w;
  for (int nv = kit->nv; nv > 0; nv--) {
    const int64_t lanes = nv * kit->w;
    if (lanes % kit->gv != 0 && nv != kit->nv) continue;
    const int64_t price_all = vectors / nv * price[nv] + price[vectors % nv];
    if (best == 0 || price_all < *cost) best = lanes, *cost = price_all;
  }
  return best;
}

// Sets of the second-level cache (of 16 ways) that steps of an axis reach, at most `sets`.
static int64_t eini_gett_sets(int64_t sets, int n, const int64_t *box, const int64_t *stride,
                              int64_t size, int64_t reached) {
  for (int i = 0; i < n; i++) {
    int64_t a = eini_abs64(stride[i]) * size % (sets * 64), b = sets * 64;
    while (a != 0) {
      const int64_t r = b % a;
      b = a, a = r;
    }
    if (b < 64) b = 64;  // lines that follow each other
    reached *= eini_min64(stride[i] == 1 ? (box[i] * size + 63) / 64 : box[i], sets * 64 / b);
    reached = eini_min64(reached, sets);
  }
  return reached;
}

// Whether the next box of V stays in the cache until it is packed: not with steps of large powers
// of two. Long runs are worth it still, for the last-level cache has them then.
static int eini_gett_stays(const eini_cpu *cpu, const eini_gett_sketch *p) {
  const int64_t sets = eini_max64(cpu->l2 / 1024, 1), size = p->kit.size;
  const int x = eini_gett_unit_axis(p->v, p->v->row, p->vx);
  if (x >= 0 && p->box_v[x] * size >= 512) return 1;
  int64_t reached = eini_gett_sets(sets, p->vx->n, p->box_v, p->v->row[0], size, 1);
  reached = eini_gett_sets(sets, p->kx->n, p->box_k, p->v->k[0], size, reached);
  return p->nv * p->rows * size / 64 <= reached * 12;
}

// Positions of V per pass through the buffer. Streamed output leaves in small portions, so that
// stores and arithmetic overlap: a number of lines, or whole runs.
static void eini_gett_passes(const eini_cpu *cpu, int64_t run, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t step = eini_up(run, p->pad), column = kit->nu * kit->parts * kit->size;
  const int last = p->vx->n - 1;
  if (p->past && !p->direct && step == run && last > 0 && p->out_v[last - 1] == run) {
    p->sub = eini_max64(cpu->l1 / 8 / column / (4 * p->lanes), 1) * 4 * p->lanes;
    return;
  }
  if (p->past && !p->direct && step % p->lanes != 0) {
    p->sub = step;
    while (p->sub % p->lanes != 0) p->sub += step;
    if (p->sub * column <= cpu->l1 / 4) return;
  }
  if (p->past && step < p->lanes && p->lanes % step != 0 && step % kit->w == 0) p->lanes = step;
  const int64_t fit = eini_max64(cpu->l1 / 2 / column / p->lanes, 16) * p->lanes;  // U goes again
  p->sub = p->past ? eini_min64(fit, eini_up(step, p->lanes)) : fit;
  p->sub = eini_max64(p->sub, p->lanes);
}

// The most positions of a box, less where boxes are so few that shares of them would be unequal.
static int64_t eini_gett_even_share(int64_t all, int64_t most, int64_t shares, int64_t unit) {
  const int64_t boxes = (all + most - 1) / most;
  if (boxes >= 8 * shares || boxes % shares == 0) return most;
  return eini_min64(most, eini_up((all - 1) / eini_up(boxes, shares) + 1, unit));
}

#define EINI_GETT_KEPT 512  // positions of either side in the buffer at most, while boxes of K pass

// The box of K. In deterministic mode extents and dtype alone make it: all tiles add along K alike.
static void eini_gett_box_k(const eini_cpu *cpu, eini_gett_sketch *p, int64_t k) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size;
  // Each box of K reads and writes the output; from the second cache tiles have full speed.
  int64_t kc = eini_min64(cpu->l1 / 3 * 4 / kit->nu, cpu->l2 / 8 / (kit->nv * kit->w)) / size;
  kc = eini_max64(kc / kit->round, 1) * kit->round * kit->group;
  if (p->ordered) kc = EINI_GETT_ORDERED / size;
  // Tile registers take little longer to multiply than it takes to pack again, or to add to sums.
  if (k < (eini_gett_tiled(kit) ? 4 * kc : kc + kc / 4)) kc = k;
  const int ku = p->ordered ? -1 : eini_gett_unit_axis(p->u, p->u->k, p->kx);
  const int kv = p->ordered ? -1 : eini_gett_unit_axis(p->v, p->v->k, p->kx);
  eini_gett_fit(p->kx->n, p->kx->extent, NULL, p->box_k, kc, kv, ku, 16,
               eini_max64(8, kit->round * kit->group));
  p->nk = eini_gett_product(p->kx->n, p->box_k);
  p->rows = kit->head + eini_gett_rows(kit, p->nk);
}

// The box of V of at most most_v positions, of a sum of k over all_u columns.
static void eini_gett_box_v(eini_gett_sketch *p, int64_t most_v, int64_t k, int64_t all_u) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, line = eini_max64(128 / size, 1);
  const int64_t unit_v = eini_max64(p->pad, kit->gv);
  const int za = eini_gett_unit_axis(p->v, p->v->row, p->vx);
  const int64_t *run_v = p->v->nop > 0 ? p->v->row[0] : NULL;
  // More of the side with more traffic: what is read or what is written.
  // Runs of the output that end within lines stay whole.
  const int64_t row = p->vx->n > 0 ? p->vx->extent[p->vx->n - 1] : 1;
  const int whole = p->past && row * size % 64 != 0 && row * line / 2 <= most_v;
  const int read_more = k >= all_u && !whole;
  // Of a line of what is read a share that leaves room for a vector of what is written.
  const int64_t vector = eini_max64(eini_min64(row, p->pad), 1);
  int64_t some = whole ? row : most_v < 16 * line ? line : 2 * line;
  if (!whole) some = eini_min64(some, eini_max64(most_v / vector / kit->gv * kit->gv, kit->gv));
  // Rows of V from memory stay whole where a line of the output fits beside: what is fetched ahead
  // of a part of one would often be gone before its turn comes.
  if (read_more && p->ahead && za >= 0 && za + 1 < p->vx->n &&
      p->vx->extent[za] <= most_v / eini_max64(line / 2, unit_v))
    some = eini_max64(some, p->vx->extent[za]);
  eini_gett_fit(p->vx->n, p->vx->extent, run_v, p->box_v, most_v, read_more ? za : p->vx->n - 1,
                read_more ? p->vx->n - 1 : za, some, unit_v);
  if (p->vx->n > 0 && p->box_v[p->vx->n - 1] < vector)  // less of a vector than there is
    eini_gett_fit(p->vx->n, p->vx->extent, run_v, p->box_v, most_v, p->vx->n - 1, za, vector,
                  unit_v);
  eini_gett_whole(p->vx->n, p->vx->extent, p->box_v, kit->nv * kit->w, kit->gv, unit_v,
                  8 * p->shares[1]);
}

static void eini_gett_boxes(const eini_cpu *cpu, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, line = eini_max64(128 / size, 1);
  const int64_t k = eini_gett_product(p->kx->n, p->kx->extent);
  const int64_t all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  eini_gett_box_k(cpu, p, k);
  p->keep = !p->direct && p->nk < k;
  // Where V comes from memory the next box waits in the cache too.
  p->ahead = p->v->nop == 1 && ein_dtype_size(p->v->dtype[0]) == (size_t)size && !p->far &&
             all_v * k * size > cpu->l2 * 2;
  const int64_t room = (p->ahead ? cpu->l2 / 8 * 3 : cpu->l2 / 4 * 3) / (p->rows * size);
  const int64_t unit_v = eini_max64(p->pad, kit->gv);
  const int64_t kept = eini_gett_tiled(kit) ? 4 * EINI_GETT_KEPT : EINI_GETT_KEPT;
  int64_t most_v = eini_max64(p->keep ? eini_min64(room, kept) : room, 4 * kit->w);
  most_v = eini_gett_even_share(all_v, most_v, p->shares[1], unit_v);
  const int64_t *run_u = p->u->nop > 0 ? p->u->row[0] : NULL;
  eini_gett_box_v(p, most_v, k, all_u);
  const int64_t run = p->vx->n > 0 ? p->box_v[p->vx->n - 1] : 1;
  p->nv = eini_gett_product(p->vx->n, p->box_v) / run * eini_up(run, p->pad);
  p->nv = eini_up(p->nv, eini_max64(kit->gv, kit->w));
  if (p->ahead && !eini_gett_stays(cpu, p)) {
    p->far = 1;
    eini_gett_boxes(cpu, p);
    return;
  }
  int64_t most_u = (p->nv >= all_v ? cpu->l2 * 3 / 8 : cpu->l3 / 4) / (p->rows * size);
  if (p->keep) most_u = eini_min64(most_u, kept);
  most_u = eini_max64(most_u, 4 * kit->nu);
  most_u = eini_gett_even_share(all_u, most_u, p->shares[2], kit->nu);
  const int zu = eini_gett_unit_axis(p->u, p->u->row, p->ux);
  eini_gett_fit(p->ux->n, p->ux->extent, run_u, p->box_u, most_u, zu, p->ux->n - 1, line,
                kit->nu);
  p->nu = eini_up(eini_gett_product(p->ux->n, p->box_u), kit->nu);
  int64_t cost = 0;
  p->lanes = eini_gett_lanes(kit, p->nv, &cost);
  p->sub = p->nv;
  if (p->keep || (p->direct && !p->past)) return;
  eini_gett_passes(cpu, run, p);
}
#undef EINI_GETT_KEPT

// The axis of K with the least step of an operand; -1: none.
static int eini_gett_least_axis(const ein_axes *x, const int64_t *stride) {
  int r = -1;
  for (int i = 0; i < x->n; i++)
    if (x->extent[i] > 1 && (r < 0 || eini_abs64(stride[i]) <= eini_abs64(stride[r]))) r = i;
  return r;
}

// Boxes for a V of few panels: U is read where it is, in even steps along K.
static int eini_gett_in_place(const eini_cpu *cpu, eini_gett_sketch *p) {
  const eini_gett_kit *kit = &p->kit;
  const int64_t size = kit->size, all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  const int64_t wide = eini_up(all_v, kit->w);
  if (p->ordered || kit->cols > 1 || kit->parts != 1 || p->u->form != EIN_FORM_PLAIN || p->past ||
      !p->direct || p->vx->n == 0 || all_u < 2 * kit->nu)
    return 0;
  eini_gett_sketch t = *p;
  const int along = eini_gett_unit_axis(p->u, p->u->row, p->ux);
  const int x = eini_gett_least_axis(p->kx, p->u->k[0]);
  if (x < 0 || (along < 0 && p->u->k[0][x] != 1)) return 0;
  // Along K its lines are read whole, again from the first cache: while V stays in the second one.
  if (along < 0 ? wide * cpu->l1 / kit->nu > cpu->l2 : wide > 2 * kit->nv * kit->w) return 0;
  int64_t most_u = eini_max64(cpu->l2 / 4 / (wide * size), 4 * kit->nu);
  const int last = p->ux->n - 1;
  eini_gett_fit(p->ux->n, p->ux->extent, NULL, t.box_u, most_u, along, last, most_u, kit->nu);
  int64_t step, kc = cpu->l1 / 2 / (kit->nu * size);
  const int64_t even = eini_gett_even(p->ux->n, t.box_u, p->u->row[0], &step);
  if (even < kit->nu || (along >= 0 && step != 1)) return 0;
  if (step == 1) kc = eini_min64(kc, eini_max64(cpu->l2 / 4 / (even * size), 32));
  // The boxes of K are the same for any number of threads.
  most_u = eini_gett_even_share(all_u, most_u, p->shares[2], kit->nu);
  int64_t less[EINI_GETT_AXES];
  eini_gett_fit(p->ux->n, p->ux->extent, NULL, less, most_u, along, last, most_u, kit->nu);
  if (eini_gett_even(p->ux->n, less, p->u->row[0], &step) >= kit->nu)
    memcpy(t.box_u, less, sizeof less);
  for (int i = 0; i < p->kx->n; i++) t.box_k[i] = 1;
  eini_gett_grow(p->kx->n, p->kx->extent, t.box_k, x, kc, kc, 8);
  for (int i = x - 1; i >= 0 && t.box_k[i + 1] == p->kx->extent[i + 1]; i--) {
    if (p->u->k[0][i] != p->u->k[0][i + 1] * p->kx->extent[i + 1]) break;
    eini_gett_grow(p->kx->n, p->kx->extent, t.box_k, i, kc, kc, 1);
  }
  t.nk = t.rows = eini_gett_product(p->kx->n, t.box_k);
  if (t.nk < eini_min64(32, eini_gett_product(p->kx->n, p->kx->extent))) return 0;
  // What V has along another axis of K it would read in parts of lines, again for each box.
  const int kv = eini_gett_unit_axis(p->v, p->v->k, p->kx);
  if (kv >= 0 && t.box_k[kv] < eini_min64(p->kx->extent[kv], 64 / size)) return 0;
  for (int i = 0; i < p->vx->n; i++) t.box_v[i] = p->vx->extent[i];
  const int64_t run = p->vx->extent[p->vx->n - 1];
  t.nv = eini_up(all_v / run * eini_up(run, p->pad), eini_max64(kit->gv, kit->w));
  t.nu = eini_up(eini_gett_product(p->ux->n, t.box_u), kit->nu);
  int64_t cost = 0;
  t.lanes = eini_gett_lanes(kit, t.nv, &cost);
  t.sub = t.nv, t.ahead = 0;
  *p = t;
  return 1;
}

// Small problems of one index per group, contiguous along V, need no panels: tiles read in place.
static int eini_gett_bare(const eini_cpu *cpu, const eini_gett_sketch *p) {
  const int64_t size = p->kit.size;
  if (!p->direct || p->past || p->kit.cols > 1 || p->vx->n != 1 || p->ux->n > 1 || p->kx->n > 1 ||
      p->v->form != EIN_FORM_PLAIN || p->u->form != EIN_FORM_PLAIN || p->v->row[0][0] != 1)
    return 0;
  const int64_t v = p->vx->extent[0], u = p->ux->n > 0 ? p->ux->extent[0] : 1;
  const int64_t k = p->kx->n > 0 ? p->kx->extent[0] : 1;
  const int64_t sv = p->kx->n > 0 ? p->v->k[0][0] * size : 0;
  const int64_t su = p->ux->n > 0 ? p->u->row[0][0] * size : 0;
  // Rows a multiple of many lines apart compete for few sets of the cache.
  return v % p->kit.w == 0 && k <= EINI_GETT_BARE_K &&
         v * k * size <= (sv % 512 == 0 ? cpu->l1 : cpu->l2 / 2) &&
         u * k * size <= (su % 512 == 0 ? cpu->l1 : cpu->l2 / 2);
}

static void eini_gett_sketch_make(const eini_cpu *cpu, const ein_contract *c,
                                  eini_gett_sketch *p) {
  const int64_t w = p->kit.w;
  p->ordered = c->ordered;
  const double m = eini_gett_filled(&c->m, c->out_m, w), n = eini_gett_filled(&c->n, c->out_n, w);
  const int plain = eini_gett_plain(c, &p->kit);
  const int direct = plain && p->kit.parts == 1 && !(p->without & EINI_GETT_DIRECT);
  eini_gett_orient(cpu, c, p, (m > n) != (p->without & EINI_GETT_SWAP));
  int64_t run = p->vx->n > 0 ? p->vx->extent[p->vx->n - 1] : 1;
  p->direct = direct && p->unit && p->vx->n > 0 &&
              (p->vx->n == 1 || run * 20 >= eini_up(run, w) * 17);
  // Short runs that go on in the output are one, with vectors across them.
  const int64_t whole = eini_gett_run_of(p->vx, p->out_v);
  const int joined = !p->direct && direct && whole > run && whole * 20 >= eini_up(whole, w) * 17;
  if (joined) p->direct = 1, run = whole;
  const int64_t full = joined ? 1 : eini_max64(w, p->kit.gv);
  p->pad = p->direct ? full : p->kit.gv;
  if (!p->direct && (!p->unit || run * 5 < eini_up(run, p->kit.gv) * 4)) p->pad = 1;
  // Whole runs are not filled up where what is saved pays for vectors across two of them.
  const int across = p->direct && !joined && p->vx->n > 1 && run % w != 0 && run % p->kit.gv == 0 &&
                     eini_gett_product(c->k.n, c->k.extent) >= 128;
  if (across) p->pad = p->kit.gv;
  eini_gett_boxes(cpu, p);
  if (across && p->box_v[p->vx->n - 1] < run) p->pad = full, eini_gett_boxes(cpu, p);
  p->past = !p->cut && plain && p->unit && p->beyond && run * p->kit.size >= 64 &&
            p->nk >= eini_gett_product(c->k.n, c->k.extent) && !(p->without & EINI_GETT_PAST);
  if (p->past) {
    if (!c->plain_out) p->direct = 0;  // they are scaled in the buffer
    if (p->direct) p->pad = full;
    // Vectors that would not start lines go through the buffer.
    if (p->kit.w * p->kit.size == 64 && run % w != 0) p->direct = 0, p->pad = p->kit.gv;
    if (joined) p->direct = 0, p->pad = 1;
    eini_gett_boxes(cpu, p);
  }
  p->bare = !p->cut && c->plain_out && !(p->without & EINI_GETT_BARE) && eini_gett_bare(cpu, p);
  p->in_place = !(p->without & EINI_GETT_IN_PLACE) && !p->bare && eini_gett_in_place(cpu, p);
  // Runs of more than a vector, no whole number of them, each within one tile.
  const int64_t step = eini_up(run, w);
  p->shift = p->cut != EINI_GETT_CUT && p->direct && !p->past && p->kit.cols == 1 &&
             p->pad == w && run > w && run < step && step <= p->kit.nv * w &&
             p->box_v[p->vx->n - 1] == run;
  if (p->shift) p->lanes = step;
}
