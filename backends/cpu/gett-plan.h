// ================================================================================================
// >>gett-plan  ways of section gett by predicted time
// Takes a contraction and rates; gives boxes, orientation and seconds.
// ================================================================================================

// Pieces of the output of fewer bytes cost what turning to their places takes, about so many cycles
// where the output is beyond the second cache.
#define EINI_TURN_PIECE 128
#define EINI_TURN_CYCLES 20

// Cycles of an element for turning to another place of an output of so many bytes, in short pieces
// through the buffer: columns of a tile fill a line together where they follow each other.
static double eini_gett_turns(const eini_rated *cpu, const eini_gett_sketch *p, double out) {
  if (p->direct) return 0;
  const int64_t run = eini_gett_run_of(p->vx, p->out_v);
  const int64_t next = p->unit ? 1 : eini_gett_run_of(p->ux, p->out_u);
  const double turn = out > (double)cpu->is.l2 / 2 ? EINI_TURN_CYCLES : 2;
  if (run * p->kit.size >= EINI_TURN_PIECE) return 0;
  return turn / (double)(run * eini_min64(next, p->kit.nu)) + (p->unit ? 0 : 2);
}

// Seconds of a problem of a batch beyond its arithmetic: with tables of offsets, and without.
#define EINI_GETT_SECONDS 8e-8
#define EINI_BARE_SECONDS 5e-9

// Products per second of a kit at its best.
static double eini_gett_peak(const eini_rated *cpu, ein_dtype type, ein_pair pair,
                             const eini_gett_kit *k) {
  const double parts = (double)(k->parts * k->parts), times = pair == EIN_PAIR_SUM_MUL ? 1 : 2;
  double peak = cpu->hz * 2;
  if (k->form == EINI_GETT_AMX_BF16) peak = cpu->peak_bf16 / 2;
  else if (k->form == EINI_GETT_AMX_I8) peak = cpu->peak_i8 / 2;
  else if (k->form == EINI_GETT_BF16) peak = fmin(cpu->peak_bf16, 2 * cpu->peak_f32) / 2;
  else if (k->form == EINI_GETT_I8) peak = fmin(cpu->peak_i8, 4 * cpu->peak_f32) / 2;
  else if (k->form == EINI_GETT_I16) peak = cpu->peak_f32 / (k->w < 16 ? 2 : 1);
  else if (type == EIN_F64 || type == EIN_C128) peak = cpu->peak_f64 / 2;
  else if (type == EIN_F32 || type == EIN_C64) peak = cpu->peak_f32 / 2;
  else if (type == EIN_I64 && k->w > 4) peak = cpu->peak_f32 / 8;  // in vectors
  else if (type == EIN_I32 && k->w > 4) peak = cpu->peak_f32 / 4;
  return peak / parts / times;
}

// How often V is packed: for each box of U, unless the panels of all of it stay.
static double eini_gett_again(const eini_gett_sketch *p, double v, double u, double k) {
  return (double)p->nv < v || (double)p->nk < k ? ceil(u / (double)p->nu) : 1;
}

// Bytes that move to and from a core's second cache. Panels of V stay there. Those of U do if V is
// one box; else they are written, and come again for each box of V, as sums do for each of K.
static double eini_gett_traffic(const ein_contract *c, const eini_gett_sketch *p) {
  const double b = (double)eini_gett_product(c->batch.n, c->batch.extent);
  const double v = (double)eini_gett_product(p->vx->n, p->vx->extent);
  const double u = (double)eini_gett_product(p->ux->n, p->ux->extent);
  const double k = (double)eini_gett_product(p->kx->n, p->kx->extent);
  const double size = b * (double)p->kit.size;
  if (p->bare) return (k * (v + u) + v * u) * size;
  const double blocks_v = ceil(v / (double)p->nv), blocks_k = ceil(k / (double)p->nk);
  const double again_v = p->in_place ? ceil(u / (double)p->nu) : eini_gett_again(p, v, u, k);
  const double again_u = p->in_place || blocks_v <= 1 ? 1 : blocks_v + 2;
  return (k * (v * again_v + u * again_u) + v * u * (2 * blocks_k - 1)) * size;
}

// Bytes and cycles of an element of a side that is packed; bytes of one of the output.
static double eini_gett_bytes(const ein_side *s) {
  double bytes = 0;
  for (int o = 0; o < s->nop; o++) bytes += (double)ein_dtype_size(s->dtype[o]);
  return bytes;
}
static double eini_gett_cycles(const eini_gett_kit *kit, const ein_side *s, int is_u) {
  return eini_gett_converter(kit, s, is_u) != NULL ? 0 : eini_side_cycles(s);
}

#define EINI_GETT_PACK 0.6   // cycles of an element that is packed in vectors
#define EINI_GETT_ALONE 2.5  // times as long for one that is packed by itself
#define EINI_GETT_MANY 512   // elements of pages of their own that no cache has the pages of

// Cycles beside those of elements: to make tables, a position; to pack, a position, beside what
// its elements take; of a tile; of a column whose run ends within a vector, and of a vector that
// does not start a line; of an element that leaves the buffer, by itself and where columns of U,
// which follow each other, leave as one.
#define EINI_GETT_TABLE_CYCLES 6
#define EINI_GETT_PANEL_CYCLES 4
#define EINI_GETT_TILE_CYCLES 10
#define EINI_GETT_RIM_CYCLES 15
#define EINI_GETT_BUFFER_CYCLES 0.7
#define EINI_GETT_LEAVE_CYCLES 0.21

// Positions of V for one of its elements: runs of a box are filled up to whole granules of it.
static double eini_gett_padded(const eini_gett_sketch *p) {
  const int n = p->vx->n;
  if (n == 0) return 1;
  const int64_t run = p->vx->extent[n - 1], box = p->box_v[n - 1];
  return (double)(run / box * eini_up(box, p->pad) + eini_up(run % box, p->pad)) / (double)run;
}

// All of them for b problems of v by u elements. (Tables stay while boxes have one shape.)
static double eini_gett_around(const eini_gett_sketch *p, double b, double v, double u,
                               double again_v, double blocks_k) {
  const int n = p->vx->n;
  const int64_t w = p->kit.w, run = n == 0 ? 1 : p->pad == 1 ? eini_gett_run_of(p->vx, p->out_v)
                                                             : p->vx->extent[n - 1];
  const double runs = v / (double)run, places = v * eini_gett_padded(p);
  const int64_t next = eini_least_step(p->ux->n, p->ux->extent, p->out_u, INT64_MAX);
  const int whole = runs <= 1 && next == run && (double)p->sub >= v;
  const double tiles = ceil(places / (double)p->lanes) * ceil(u / (double)p->kit.nu);
  const double all = fmin(places, 2 * (double)p->nv) + fmin(u, 2 * (double)p->nu);
  double each = EINI_GETT_PANEL_CYCLES * (places * again_v + (p->in_place ? 0 : u));
  each += EINI_GETT_TILE_CYCLES * tiles * blocks_k;
  if (!p->direct) each += (whole ? EINI_GETT_LEAVE_CYCLES : EINI_GETT_BUFFER_CYCLES) * v * u;
  else if (run % w != 0 && !p->shift) each += EINI_GETT_RIM_CYCLES * runs * u * blocks_k;
  int64_t odd = 0;
  for (int i = 0; i < p->ux->n; i++) odd |= p->out_u[i] % w;
  for (int i = 0; i + 1 < n; i++) odd |= p->out_v[i] % w;
  if (p->direct && odd != 0 && w * p->kit.size >= 64) each += places * u / (double)w * blocks_k;
  return EINI_GETT_TABLE_CYCLES * all + b * each;
}

#undef EINI_GETT_TABLE_CYCLES
#undef EINI_GETT_PANEL_CYCLES
#undef EINI_GETT_TILE_CYCLES
#undef EINI_GETT_RIM_CYCLES
#undef EINI_GETT_BUFFER_CYCLES
#undef EINI_GETT_LEAVE_CYCLES

// Positions of a side as they are packed: whole granules, each lane by itself where the operand is
// contiguous along no run of a granule.
static double eini_gett_places(const eini_rated *cpu, const ein_side *s, const ein_axes *x,
                               const ein_axes *k, double n, int granule) {
  const double filled = (double)eini_up((int64_t)n, granule);
  if (s->nop == 0) return filled;
  const int along = eini_gett_unit_axis(s, s->k, k);
  if (along >= 0 && k->extent[along] >= granule) return filled;
  int64_t run = 1;
  for (int i; (i = eini_gett_goes_on(x->n, x->extent, s->row[0], run)) >= 0;) run *= x->extent[i];
  if (run >= granule) return filled;
  int64_t step = eini_least_step(x->n, x->extent, s->row[0], INT64_MAX);
  step = eini_least_step(k->n, k->extent, s->k[0], step);
  const int many = n * (double)eini_gett_product(k->n, k->extent) >= EINI_GETT_MANY;
  const int pages = many && eini_pages_apart(step, (int64_t)ein_dtype_size(s->dtype[0]));
  return (pages ? EINI_PAGE_SECONDS * cpu->hz / EINI_GETT_PACK : EINI_GETT_ALONE) * filled;
}

// Is a side packed in the first of many runs only?
static int eini_gett_lasts(const ein_contract *c, const eini_gett_sketch *p, const ein_side *s,
                           int is_u) {
  return s->constant && c->batch.n == 0 && !p->past && !(p->in_place && is_u) &&
         eini_gett_converter(&p->kit, s, is_u) == NULL;
}

// Of a share of batch, V and U.
static double eini_gett_seconds(const eini_rated *cpu, const ein_contract *c,
                                const eini_gett_sketch *p, const double *share) {
  const double b = share[0] * (double)eini_gett_product(c->batch.n, c->batch.extent);
  const double v = share[1] * (double)eini_gett_product(p->vx->n, p->vx->extent);
  const double u = share[2] * (double)eini_gett_product(p->ux->n, p->ux->extent);
  const double k = (double)eini_gett_product(p->kx->n, p->kx->extent);
  const double size = (double)p->kit.size, out_size = (double)ein_dtype_size(c->out_dtype);
  const double out = b * v * u * out_size / (share[0] * share[1] * share[2]);
  const double wide = (double)eini_up((int64_t)(v * eini_gett_padded(p)), p->kit.w);
  const double high = u < 4 ? u + (4 - u) * 0.7 : u;
  const double blocks_u = ceil(u / (double)p->nu), blocks_k = ceil(k / (double)p->nk);
  double t = b * wide * high * k / eini_gett_peak(cpu, c->type, c->pair, &p->kit);
  if (p->bare) {
    const double all = b * (k * (v + u) + v * u) * size / share[0];
    const double move = b * (k * (v + u) + 2 * v * u) * size / eini_cpu_bw(cpu, all);
    return eini_cpu_beside(t, move, EINI_CPU_BESIDE) + b * EINI_BARE_SECONDS;
  }
  const int lasts_v = eini_gett_lasts(c, p, p->v, 0), lasts_u = eini_gett_lasts(c, p, p->u, 1);
  if (p->in_place) {
    // Reads are asked for ahead and overlap the arithmetic.
    const double read = b * k * u * size / cpu->read_bw;
    t = t * 1.1 > read ? t * 1.1 : read;
    const double places = eini_gett_places(cpu, p->v, p->vx, p->kx, v, p->kit.gv);
    const double packed = fmax(v * (double)p->v->nop, places * EINI_GETT_PACK);
    if (!lasts_v) t += b * k * blocks_u * (packed + v * eini_side_cycles(p->v)) / cpu->hz;
    t += b * v * u * size * blocks_k / cpu->l2_bw;
    t += eini_gett_around(p, b, v, u, blocks_u, blocks_k) / cpu->hz;
    if (!p->beyond) t += b * v * u * size / cpu->l3_bw;
    const double lines = p->beyond ? 2 * b * v * u * size / eini_cpu_copy_bw(cpu, out) : 0;
    return eini_cpu_beside(t, lines, EINI_CPU_BESIDE) + b * EINI_GETT_SECONDS;
  }
  const double again_v = eini_gett_again(p, v, u, k);
  const double places_v =
      lasts_v ? 0 : eini_gett_places(cpu, p->v, p->vx, p->kx, v, p->kit.gv);
  const double places_u =
      lasts_u ? 0 : eini_gett_places(cpu, p->u, p->ux, p->kx, u, p->kit.gu);
  t += b * k * (places_v * again_v + places_u) * EINI_GETT_PACK / cpu->hz;
  const double in = b * k * (v * eini_gett_bytes(p->v) + u * eini_gett_bytes(p->u));
  t += in / eini_cpu_bw(cpu, in / share[0] + out);
  t += eini_gett_around(p, b, v, u, again_v, blocks_k) / cpu->hz;
  const int again = p->direct && !p->past && p->beyond;  // lines are read before they are written
  if (!again) t += b * v * u * out_size / (p->beyond ? cpu->copy_bw : cpu->l3_bw);
  t += b * v * u * eini_gett_turns(cpu, p, out) / cpu->hz;
  if (p->far) t += 2 * b * k * v * size / cpu->read_bw;  // lines compete for few sets
  if (!lasts_v) t += b * k * v * again_v * eini_gett_cycles(&p->kit, p->v, 0) / cpu->hz;
  if (!lasts_u) t += b * k * u * eini_gett_cycles(&p->kit, p->u, 1) / cpu->hz;
  if (!eini_gett_plain(c, &p->kit))
    t += b * v * u * (eini_gett_converts(c) ? 0.4 : 2) / cpu->hz;
  const double lines = again ? 2 * b * v * u * out_size / eini_cpu_copy_bw(cpu, out) : 0;
  return eini_cpu_beside(t, lines, EINI_CPU_BESIDE) + b * EINI_GETT_SECONDS;
}

#undef EINI_GETT_PACK
#undef EINI_GETT_ALONE
#undef EINI_GETT_MANY

static size_t eini_gett_layout(const eini_cpu *cpu, const ein_contract *c,
                               const eini_gett_sketch *p, char *base, eini_gett_job *job);

static int eini_gett_able(const ein_contract *c) {
  const ein_axes *x[4] = {&c->batch, &c->m, &c->n, &c->k};
  int axes = 0;
  if (c->pair != EIN_PAIR_SUM_MUL && (c->p.nop == 0 || c->q.nop == 0)) return 0;
  for (int g = 0; g < 4; g++) {
    if (x[g]->n > EINI_GETT_AXES) return 0;
    if (g > 0) axes += x[g]->n;
    for (int i = 0; i < x[g]->n; i++)
      if (x[g]->extent[i] <= 0) return 0;
  }
  return axes + EINI_GETT_HEAD <= EINI_GETT_STATE && c->p.nop <= EINI_GETT_OPS &&
         c->q.nop <= EINI_GETT_OPS && c->nextra < EINI_GETT_OPS;
}

// The grid of at most `width` parts with the least time for the busiest thread; returns the time.
static double eini_gett_cut(const eini_rated *cpu, const ein_contract *c, const eini_gett_sketch *p,
                            int64_t width, ein_choice *choice) {
  eini_gett_axes v, u;
  eini_gett_axes_init(&v, p->vx, p->box_v);
  eini_gett_axes_init(&u, p->ux, p->box_u);
  const int64_t all_v = eini_gett_product(p->vx->n, p->vx->extent);
  const int64_t all_u = eini_gett_product(p->ux->n, p->ux->extent);
  const int64_t batch = eini_gett_product(c->batch.n, c->batch.extent);
  const int iv = p->swap ? 1 : 2, iu = p->swap ? 2 : 1;
  if (p->bare) v.total = u.total = 1;
  choice->unit[0] = 1;
  choice->unit[iv] = eini_gett_stretch(all_v, v.total);
  choice->unit[iu] = eini_gett_stretch(all_u, u.total);
  choice->grid[0] = eini_min64(batch, p->shares[0]);
  const int64_t left = eini_max64(width / choice->grid[0], 1);
  double best = 0;
  for (int64_t gv = 1; gv <= eini_min64(left, v.total); gv++) {
    const int64_t gu = eini_min64(u.total, left / gv);
    const double share[3] = {eini_gett_most(batch, choice->grid[0]), eini_gett_most(v.total, gv),
                             eini_gett_most(u.total, gu)};
    const double seconds = eini_gett_seconds(cpu, c, p, share);
    if (gv > 1 && seconds >= best) continue;
    best = seconds, choice->grid[iv] = gv, choice->grid[iu] = gu;
  }
  return best;
}

// Stores past the caches that go through a buffer must be predicted to save so much where U can be
// read in place: such reads overlap what predictions add up. ij,jk->ik, 2,000,000 by 16 and 16 by
// 16 f64 on a Xeon: 42 ms in place, 54 past the caches; 23 and 27 on two threads, where 1.24 times
// as much was predicted. Where tiles can store at once they must save anything: lines are asked for
// before. mk,kn->mn, 2,001 by 2,003 f64, k = 25: 3.7 ms at once, 4.9 past the caches.
#define EINI_GETT_PAST_GAIN 1.3

// The rest of a sketch of which shares and flags are set, and its grid.
static void eini_gett_settle(const eini_rated *cpu, const ein_contract *c, int64_t width,
                             eini_gett_sketch *p, ein_choice *choice) {
  eini_gett_sketch q = *p;
  eini_gett_sketch_make(&cpu->is, c, p);
  memset(choice, 0, sizeof *choice);
  choice->seconds = eini_gett_cut(cpu, c, p, width, choice);
  if (!p->past) return;
  ein_choice other;
  memset(&other, 0, sizeof other);
  q.without |= EINI_GETT_PAST;
  eini_gett_sketch_make(&cpu->is, c, &q);
  if (!q.in_place && !q.bare && !(q.direct && !p->direct)) return;
  other.seconds = eini_gett_cut(cpu, c, &q, width, &other);
  const double gain = q.in_place || q.bare ? EINI_GETT_PAST_GAIN : 1;
  if (other.seconds < gain * choice->seconds) *p = q, *choice = other;
}

// The sketch of one thread, or one with boxes for some way to share batch, V and U that takes
// clearly less time.
static int eini_gett_best(const eini_rated *cpu, const ein_contract *c, int64_t width, int cut,
                          int form, int without, eini_gett_sketch *best, ein_choice *choice) {
  const int64_t batch = eini_gett_product(c->batch.n, c->batch.extent);
  const double m = (double)eini_gett_product(c->m.n, c->m.extent);
  const double n = (double)eini_gett_product(c->n.n, c->n.extent);
  const double out = (double)batch * m * n;
  const double in = (double)batch * (double)eini_gett_product(c->k.n, c->k.extent) *
                    (m * eini_gett_bytes(&c->p) + n * eini_gett_bytes(&c->q));
  int found = 0;
  for (int64_t b = eini_min64(width, batch); b > 0; b--) {
    const int64_t left = width / b;
    for (int64_t v = 0; v <= left; v++) {
      if (v == 0 ? b < eini_min64(width, batch) : left == 1 || left % v != 0) continue;
      eini_gett_sketch p;
      ein_choice one;
      memset(&p, 0, sizeof p);
      if (!eini_gett_pick_form(&cpu->is, c, form, &p.kit)) return 0;
      p.shares[0] = b, p.shares[1] = v > 0 ? v : 1, p.shares[2] = v > 0 ? left / v : 1;
      p.cut = cut;
      p.without = without;
      p.beyond = eini_cpu_past_with(cpu, out * (double)p.kit.size, in);
      eini_gett_settle(cpu, c, width, &p, &one);
      if (found && one.seconds >= 0.98 * choice->seconds) continue;
      *best = p, *choice = one, found = 1;
    }
    if (batch % b == 0 || batch >= 8 * b) break;  // equal enough
  }
  return found;
}

static int eini_gett_plan_cut(const eini_rated *cpu, const ein_contract *c, int width, int cut,
                              int form, int without, ein_choice *choice) {
  static const char *const names[EINI_GETT_FORMS] = {"gett", "bf16", "i16", "i8", "amx", "amx"};
  eini_gett_sketch p;
  if (!eini_gett_able(c) || !eini_gett_best(cpu, c, width, cut, form, without, &p, choice))
    return 0;
  int64_t *s = choice->state;
  s[0] = (p.swap ? EINI_GETT_SWAP : 0) | (p.direct ? EINI_GETT_DIRECT : 0) |
         (p.past ? EINI_GETT_PAST : 0) | (p.keep ? EINI_GETT_KEEP : 0) |
         (p.bare ? EINI_GETT_BARE : 0) |
         (p.in_place ? EINI_GETT_IN_PLACE : 0) | (p.ahead ? EINI_GETT_SOON : 0) |
         (p.shift ? EINI_GETT_SHIFT : 0) | form << EINI_GETT_FORM;
  s[1] = p.lanes, s[2] = p.sub, s[3] = p.pad;
  s += EINI_GETT_HEAD;
  for (int i = 0; i < p.vx->n; i++) *s++ = p.box_v[i];
  for (int i = 0; i < p.ux->n; i++) *s++ = p.box_u[i];
  for (int i = 0; i < p.kx->n; i++) *s++ = p.box_k[i];
  choice->batches = 1;
  choice->seconds += cpu->call;
  choice->traffic = eini_gett_traffic(c, &p);
  choice->scratch = p.bare ? 0 : eini_gett_layout(&cpu->is, c, &p, NULL, NULL);
  const char *how = p.bare ? "bare"
                    : p.in_place ? "in place"
                    : p.direct ? (p.past ? "stream" : "direct")
                    : p.keep ? "keep"
                             : (p.past ? "buffer past" : "buffer");
  snprintf(choice->variant, sizeof choice->variant, "%s %s%s", names[form], how,
           without & EINI_GETT_SWAP ? " turned" : "");
  return 1;
}

// V and U turned are to be predicted to take so much less: the rules of a sketch know better where
// it is close.
#define EINI_GETT_TURN_GAIN 0.8

static int eini_gett_plan(const eini_rated *cpu, const ein_contract *c, int width,
                          ein_choice *choice) {
  ein_choice turned;
  if (!eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, 0, choice)) return 0;
  if (c->ordered || choice->state[0] & EINI_GETT_BARE) return 1;
  memset(&turned, 0, sizeof turned);
  eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, EINI_GETT_SWAP, &turned);
  if (turned.seconds < EINI_GETT_TURN_GAIN * choice->seconds) *choice = turned;
  return 1;
}

// The nth of the ways that differ from that plan: without what it does, and with V and U turned.
// The model is not to overrule the rules, so none is predicted to take less.
static int eini_gett_other(const eini_rated *cpu, const ein_contract *c, int width, int nth,
                           ein_choice *choice) {
  static const int without[] = {0, EINI_GETT_BARE, EINI_GETT_BARE | EINI_GETT_IN_PLACE,
                                EINI_GETT_DIRECT};
  if (c->ordered || !eini_gett_plan(cpu, c, width, choice)) return 0;
  const double least = choice->seconds;
  uint64_t seen = (uint64_t)1 << choice->state[0] % EINI_GETT_WAYS;
  for (int i = 0; i < 16; i++) {
    const int less = without[i % 4] | (i & 4 ? EINI_GETT_PAST : 0) | (i & 8 ? EINI_GETT_SWAP : 0);
    memset(choice, 0, sizeof *choice);
    if (!eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_WHOLE, less, choice)) return 0;
    const uint64_t how = (uint64_t)1 << choice->state[0] % EINI_GETT_WAYS;
    if (!(seen & how) && nth-- == 0) {
      choice->seconds = fmax(choice->seconds, least);
      return 1;
    }
    seen |= how;
  }
  return 0;
}

// Takes bytes off the scratch memory, on lines of their own.
static char *eini_gett_take(char *base, size_t *at, int64_t bytes) {
  char *r = base != NULL ? base + *at : NULL;
  *at += (size_t)eini_up(bytes, 64) + 64;
  return r;
}

static void eini_gett_take_hand(const eini_gett_kit *kit, eini_gett_hand *h, const ein_side *s,
                                int64_t np, int64_t nk, int64_t lanes, int ahead, int is_u,
                                char *base, size_t *at) {
  const int64_t size = kit->size, rows = eini_gett_rows(kit, nk);
  const int64_t panel = eini_gett_panel(lanes, kit->head + rows, size);
  const int64_t bytes = (np + lanes - 1) / lanes * panel * size;
  h->panels = h->in_place ? NULL : eini_gett_take(base, at, bytes);
  h->most_soon = 0;
  if (h->in_place) h->most_soon = eini_up((np / (64 / size) + lanes + 1) * nk, nk);
  else if (h->packed_soon) h->most_soon = rows;
  else if (ahead) h->most_soon = eini_up(np * nk * size / 32, nk);
  h->soon = (int64_t *)(void *)eini_gett_take(base, at, h->most_soon * 8);
  for (int o = 0; o < s->nop; o++) {
    const int64_t one = (int64_t)ein_dtype_size(s->dtype[o]);
    const int own = o > 0 || (one != size && eini_gett_converter(kit, s, is_u) == NULL);
    if (own && (o < 2 || eini_gett_made(s, kit, is_u)))
      h->spare[o] = eini_gett_take(base, at, bytes / size * one);
    else h->spare[o] = own ? h->spare[1] : NULL;
  }
  h->place = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  h->out = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  for (int o = 0; o < s->nop; o++) {
    h->row[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
    h->col[o] = (int64_t *)(void *)eini_gett_take(base, at, nk * 8);
    h->flat[o] = (unsigned char *)eini_gett_take(base, at, np);
    h->across[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
    h->first[o] = (int64_t *)(void *)eini_gett_take(base, at, np * 8);
  }
}

// Positions of a box of V at most: boxes of streamed output may be moved to where lines start, or
// their runs are filled up in front.
static int64_t eini_gett_room(const eini_gett_sketch *p) {
  const int last = p->vx->n - 1;
  if (!p->past || last < 0) return p->nv;
  const int64_t run = eini_up(p->box_v[last], p->pad);
  const int64_t more = eini_up(p->box_v[last] + 64 / p->kit.size, p->pad);
  return eini_up((p->nv + run - 1) / run * more, eini_max64(p->kit.gv, p->kit.w));
}

// One carry for each run of a box of V and each column of U, as far as there are so many.
static int64_t eini_gett_carries(const eini_gett_sketch *p) {
  const int last = p->vx->n - 1;
  const int64_t runs = last < 0 ? 1 : eini_gett_product(last, p->box_v);
  int64_t n = 64;
  while (n < runs * p->nu && n < EINI_GETT_CARRIES) n *= 2;
  return n;
}

static size_t eini_gett_layout(const eini_cpu *cpu, const ein_contract *c,
                               const eini_gett_sketch *p, char *base, eini_gett_job *job) {
  eini_gett_job none;
  eini_gett_job *j = job != NULL ? job : &none;
  const eini_gett_kit *kit = &p->kit;
  size_t at = 0;
  j->v.in_place = 0, j->u.in_place = p->in_place;
  // Panels of U that do not stay in the second cache, several tiles long.
  j->v.packed_soon = 0;
  j->u.packed_soon = !p->in_place && p->nu * p->rows * kit->size > cpu->l2 / 2 &&
                     p->sub > p->lanes;
  const int64_t room = eini_gett_room(p);
  j->v.left = (int64_t *)(void *)eini_gett_take(base, &at, room * 8);
  eini_gett_take_hand(kit, &j->v, p->v, room, p->nk, p->lanes, p->ahead, 0, base, &at);
  eini_gett_take_hand(kit, &j->u, p->u, p->nu, p->nk, kit->nu, 0, 1, base, &at);
  j->ld = p->keep ? eini_up(p->nv, p->lanes) : p->sub;
  if (!p->direct || p->past)
    j->buffer = eini_gett_take(base, &at, j->ld * kit->parts * kit->size *
                                              (p->keep ? p->nu : 2 * kit->nu));
  j->carries = p->past ? eini_gett_carries(p) : 0;
  if (p->past)
    j->carry = (eini_tail *)(void *)eini_gett_take(
        base, &at, j->carries * (int64_t)sizeof(eini_tail));
  j->edge = eini_gett_take(base, &at, p->lanes * kit->nu * kit->size);
  if (!c->plain_out && !c->scaled) {
    j->off = (int64_t *)(void *)eini_gett_take(base, &at, 8 * EIN_POINTS * (c->nextra + 1));
    j->values = eini_gett_take(base, &at, 16 * EIN_POINTS);
  }
  for (int e = 0; !c->plain_out && e < c->nextra; e++) {
    j->xv[e] = (int64_t *)(void *)eini_gett_take(base, &at, p->nv * 8);
    j->xu[e] = (int64_t *)(void *)eini_gett_take(base, &at, p->nu * 8);
  }
  return at;
}
