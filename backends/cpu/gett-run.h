// ================================================================================================
// >>gett-run  runs of section gett
// Takes a choice; runs its boxes.
// ================================================================================================

// s: words of ein_choice.state as eini_gett_plan_cut writes them.
static void eini_gett_job_init(const eini_cpu *cpu, const ein_contract *c, const int64_t *s,
                               eini_gett_sketch *p, char *scratch, eini_gett_job *j) {
  const int64_t flags = s[0];
  memset(j, 0, sizeof *j);
  eini_gett_pick_form(cpu, c, (int)(flags >> EINI_GETT_FORM), &p->kit);
  eini_gett_orient(cpu, c, p, (s[0] & EINI_GETT_SWAP) != 0);
  p->direct = (s[0] & EINI_GETT_DIRECT) != 0, p->past = (s[0] & EINI_GETT_PAST) != 0;
  p->keep = (s[0] & EINI_GETT_KEEP) != 0, p->in_place = (s[0] & EINI_GETT_IN_PLACE) != 0;
  p->ahead = (s[0] & EINI_GETT_SOON) != 0;
  p->lanes = s[1], p->sub = s[2], p->pad = s[3];
  s += EINI_GETT_HEAD;
  j->cpu = cpu, j->c = c, j->kit = p->kit, j->swap = p->swap;
  if (eini_gett_converts(c)) {
    j->narrow = eini_cpu_chunk_fn(cpu->isa, EIN_OP_CAST, c->out_dtype);
    if (j->narrow == NULL) j->narrow = eini_storage_find(NULL, EIN_OP_CAST, c->out_dtype);
  }
  j->v.s = p->v, j->u.s = p->u, j->unit = p->unit;
  j->by = c->plain_out || !eini_gett_plain(c, &p->kit) ? NULL : c->alpha;
  eini_gett_axes_init(&j->v.g, p->vx, s);
  eini_gett_axes_init(&j->u.g, p->ux, s + p->vx->n);
  eini_gett_axes_init(&j->k, p->kx, s + p->vx->n + p->ux->n);
  const int64_t k = eini_gett_product(p->kx->n, p->kx->extent);
  eini_gett_follow(&j->v.g, p->v, k, eini_gett_product(p->ux->n, p->ux->extent));
  eini_gett_follow(&j->u.g, p->u, k, eini_gett_product(p->vx->n, p->vx->extent));
  const int64_t run = p->vx->n > 0 ? s[p->vx->n - 1] : 1;
  for (int i = 0; i < p->vx->n; i++) p->box_v[i] = s[i];
  j->v.granule = p->kit.gv, j->u.granule = p->kit.gu;
  j->v.fill = eini_max64(p->kit.gv, p->kit.w);
  j->u.fill = eini_max64(p->kit.gu, p->kit.cols);
  p->nv = eini_gett_product(p->vx->n, j->v.g.box) / run * eini_up(run, p->pad);
  p->nv = eini_up(p->nv, j->v.fill);
  p->nu = eini_up(eini_gett_product(p->ux->n, j->u.g.box), p->kit.nu);
  p->nk = eini_gett_product(p->kx->n, j->k.box);
  p->rows = p->kit.head + eini_gett_rows(&p->kit, p->nk);
  j->v.shift = flags & EINI_GETT_SHIFT ? p->kit.w : 0;
  j->v.lanes = p->lanes, j->u.lanes = p->kit.nu, j->v.pad = p->pad, j->u.pad = 1;
  j->v.pack = p->kit.pack_v, j->u.pack = p->kit.pack_u;
  j->v.nk = j->u.nk = -1;
  j->sub = p->sub, j->direct = p->direct, j->stream = p->past;
  const int64_t between = p->nu * eini_gett_product(p->vx->n, p->vx->extent) * p->kit.size;
  j->comes = p->direct && p->kit.cols == 1 && !p->in_place && between > cpu->l2 / 2;
  j->out_v = p->out_v, j->out_u = p->out_u;
  j->extra_v = p->swap ? c->extra_m : c->extra_n, j->extra_u = p->swap ? c->extra_n : c->extra_m;
  eini_gett_layout(cpu, c, p, scratch, j);
  if (p->past && scratch != NULL) memset(j->carry, 0, (size_t)j->carries * sizeof *j->carry);
}

// Elements of a line that stand before the output's first one and before each of its runs;
// -1: they differ.
static int64_t eini_gett_odd(const eini_gett_job *j) {
  const ein_contract *c = j->c;
  const int64_t lane = 64 / j->kit.size, bytes = (int64_t)((uintptr_t)c->out & 63);
  int64_t other = bytes % j->kit.size;
  for (int i = 0; i < j->v.g.n - 1; i++) other |= j->out_v[i] % lane;
  for (int i = 0; i < j->u.g.n; i++) other |= j->out_u[i] % lane;
  for (int i = 0; i < c->batch.n; i++) other |= c->out_batch[i] % lane;
  return other != 0 ? -1 : bytes / j->kit.size;
}

// Whether boxes of V come in the order of the output, so that each run is followed by the one
// behind it. Where reading asks for another order that is worth more.
static int eini_gett_in_order(const eini_gett_job *j) {
  const eini_gett_axes *g = &j->v.g;
  const int last = g->n - 1;
  if (last < 1 || j->v.s->nop == 0 || j->out_v[last - 1] != g->extent[last] ||
      (g->box[last] < g->extent[last] && g->box[last - 1] > 1))
    return 0;
  for (int i = 0; i < g->n; i++)
    if (j->v.s->row[0][i] == 1 && g->box[i] < g->extent[i]) return 0;
  for (int i = g->inner + 1; i < g->n && g->inner >= 0; i++)
    if (g->box[i] < g->extent[i]) return 0;
  return eini_gett_product(last, g->box) * eini_gett_product(j->u.g.n, j->u.g.box) <= j->carries;
}

// Whether runs are so long that it pays to fill them up to lines of the output.
static int eini_gett_pays(const eini_gett_job *j, int64_t odd) {
  const int last = j->v.g.n - 1;
  const int64_t run = last < 0 ? 1 : j->v.g.box[last];
  return eini_up(run + odd, j->kit.w) * 7 <= run * 8;
}

// Streamed vectors start lines. Where the output's runs do not, boxes that end within runs are
// moved to where lines start, for parts of a line would be stored twice. What is left of a line at
// the ends of a run is stored from a vector that is filled up, where that is little more to
// compute; otherwise all goes through the buffer, but for boxes without such ends.
static void eini_gett_align(eini_gett_job *j) {
  const int64_t lane = 64 / j->kit.size, odd = eini_gett_odd(j);
  const int last = j->v.g.n - 1;
  const int moved = odd > 0 && j->unit && last >= 0 && j->v.g.box[last] < j->v.g.extent[last] &&
                    j->v.g.box[last] % lane == 0;
  j->inner_direct = j->direct && j->kit.w == lane;
  j->masked = j->inner_direct && j->kit.cols == 1 && odd > 0 && (moved || eini_gett_pays(j, odd));
  j->direct = j->inner_direct && (odd == 0 || j->masked);
  j->parted = odd != 0 && j->unit && !j->masked;
  j->chained = j->parted && eini_gett_in_order(j);
  if (moved) j->v.g.early = odd;
  j->odd = odd;
}

// Whether the tiles of the current box of V, one of those that were moved, store whole lines.
static int eini_gett_inner(const eini_gett_job *j) {
  const int last = j->v.g.n - 1;
  return j->inner_direct && j->v.g.at[last] > 0 && j->v.g.size[last] % j->kit.w == 0;
}

// The operands of one side at the current boxes.
static void eini_gett_bases(const eini_gett_hand *h, const eini_gett_axes *k,
                            const int64_t *batch_at, int nbatch, const char **base) {
  for (int o = 0; o < h->s->nop; o++) {
    int64_t at = eini_gett_offset(&h->g, h->s->row[o]) + eini_gett_offset(k, h->s->k[o]);
    for (int i = 0; i < nbatch; i++) at += batch_at[i] * h->s->batch[o][i];
    base[o] = h->s->base[o] + at * (int64_t)ein_dtype_size(h->s->dtype[o]);
  }
}

static void eini_gett_pack_hand(eini_gett_job *j, eini_gett_hand *h, const int64_t *stride,
                                const int64_t *batch_at) {
  const char *base[EINI_GETT_OPS];
  const int64_t nk = eini_gett_product(j->k.n, j->k.size);
  eini_gett_tables(h, &j->k, nk, &j->kit, stride);
  eini_gett_bases(h, &j->k, batch_at, j->c->batch.n, base);
  eini_gett_pack(h, &j->kit, h == &j->u, base, nk);
}

// The output and what the store reads, at the current boxes of V and U.
static void eini_gett_target(eini_gett_job *j, const int64_t *batch_at) {
  const ein_contract *c = j->c;
  int64_t at = eini_gett_offset(&j->v.g, j->out_v) + eini_gett_offset(&j->u.g, j->out_u);
  for (int i = 0; i < c->batch.n; i++) at += batch_at[i] * c->out_batch[i];
  j->out = c->out + at * (int64_t)ein_dtype_size(c->out_dtype);
  if (eini_gett_plain(c, &j->kit)) return;
  for (int e = 0; e < c->nextra; e++) {
    at = eini_gett_offset(&j->v.g, j->extra_v[e]) + eini_gett_offset(&j->u.g, j->extra_u[e]);
    for (int i = 0; i < c->batch.n; i++) at += batch_at[i] * c->extra_batch[e][i];
    j->extra[e] = c->extra_base[e] + at * (int64_t)ein_dtype_size(c->extra_dtype[e]);
    eini_gett_table(j->v.g.n, j->v.g.size, j->extra_v[e], j->v.pad, j->v.fill, j->xv[e]);
    eini_gett_table(j->u.g.n, j->u.g.size, j->extra_u[e], 1, j->u.fill, j->xu[e]);
  }
}

// One box of V, U and K: pack what is not there yet, then multiply.
static void eini_gett_step(eini_gett_job *j, int64_t kb, const int64_t *batch_at, int keep,
                           int64_t then_v, int64_t then_k) {
  if (j->masked) j->v.lead = (j->odd + j->v.g.at[j->v.g.n - 1]) % j->kit.w;
  eini_gett_pack_hand(j, &j->u, j->out_u, batch_at);
  eini_gett_pack_hand(j, &j->v, j->out_v, batch_at);
  if (kb == 0 || !keep) eini_gett_target(j, batch_at);
  if (j->v.g.early > 0 && !j->masked) j->direct = eini_gett_inner(j);
  j->soon_left = 0, j->next_u = NULL;
  if (then_k < j->k.total && j->u.s->nop > 0 && j->v.s->nop > 0) {
    eini_gett_axes k = j->k, v = j->v.g;
    eini_gett_box(&k, then_k);
    eini_gett_box(&v, then_v);
    const int64_t *ku = j->u.s->k[0], *kv = j->v.s->k[0], *row = j->v.s->row[0];
    j->next_u = j->u.have[0] + (eini_gett_offset(&k, ku) - eini_gett_offset(&j->k, ku)) *
                                   j->kit.size;
    j->soon = j->v.soon, j->soon_left = j->v.nsoon;
    j->soon_base = (uintptr_t)j->v.have[0] +
                   (uintptr_t)((eini_gett_offset(&k, kv) - eini_gett_offset(&j->k, kv) +
                                eini_gett_offset(&v, row) - eini_gett_offset(&j->v.g, row)) *
                               j->kit.size);
  }
  eini_gett_tiles(j, eini_gett_product(j->k.n, j->k.size), kb == 0, kb == j->k.total - 1, keep);
}

static void eini_gett_boxes_of(const eini_gett_axes *g, const int64_t *part, int64_t all,
                               int64_t unit, int64_t *from, int64_t *to) {
  *from = eini_min64(part[0] / unit, g->total);
  *to = part[1] >= all ? g->total : eini_min64(part[1] / unit, g->total);
}

// The boxes of one side that threads share, in memory of theirs. Returns where they end.
static size_t eini_gett_slots(eini_gett_job *j, eini_gett_hand *h, int64_t np, int64_t nk,
                              char *base, size_t at) {
  const int64_t bytes = (np + h->lanes - 1) / h->lanes *
                        eini_gett_panel(h->lanes, nk, j->kit.size) * j->kit.size;
  h->slot_bytes = eini_up(bytes, 64);
  h->all = base == NULL ? NULL : base + at;
  return at + (size_t)h->slot_bytes * (size_t)(h->g.total * j->k.total);
}

// Counts of all boxes, first of U, then of V; then the boxes. The counts begin as 0.
static size_t eini_gett_shared(eini_gett_job *j, const eini_gett_sketch *p, int in_u, int in_v,
                               char *base, size_t *cleared) {
  const int64_t u = in_u ? j->u.g.total * j->k.total : 0;
  const int64_t v = in_v ? j->v.g.total * j->k.total : 0;
  eini_gett_slot *slots = (eini_gett_slot *)(void *)base;
  size_t at = (size_t)eini_up((u + v) * (int64_t)sizeof *slots, 64);
  *cleared = at;
  if (u > 0) at = eini_gett_slots(j, &j->u, p->nu, p->nk, base, at);
  if (v > 0) at = eini_gett_slots(j, &j->v, p->nv, p->nk, base, at);
  if (base != NULL && u > 0) j->u.slots = slots;
  if (base != NULL && v > 0) j->v.slots = slots + u;
  return at;
}

// The boxes of constant sides, as they last. Those that have begun do not come from operands.
static void eini_gett_lasting(eini_gett_job *j, const eini_gett_sketch *p, int64_t flags,
                              char *base) {
  size_t cleared;
  const int u = (flags & EINI_GETT_LASTS_U) != 0, v = (flags & EINI_GETT_LASTS_V) != 0;
  (void)eini_gett_shared(j, p, u, v, base, &cleared);
  if (u && eini_gett_begun(&j->u.slots[0]) > 0) j->u.most_soon = 0;
  if (v && eini_gett_begun(&j->v.slots[0]) > 0) j->v.most_soon = 0;
}

// Which sides parts of a plan's grid would pack several times, as far as all their boxes fit beside
// what else is in the caches; and which are constant.
static void eini_gett_share(const eini_cpu *cpu, const ein_contract *c, ein_choice *choice) {
  eini_gett_sketch p;
  eini_gett_job j;
  const int64_t flags = choice->state[0];
  size_t cleared;
  if (c->batch.n > 0 || flags & (EINI_GETT_BARE | EINI_GETT_PAST)) return;
  eini_gett_job_init(cpu, c, choice->state, &p, NULL, &j);
  const int64_t in_v = choice->grid[p.swap ? 1 : 2], in_u = choice->grid[p.swap ? 2 : 1];
  int lasts[2] = {0, 0};
  for (int side = 0; side < 2; side++) {
    const eini_gett_hand *h = side ? &j.v : &j.u;
    if (h->in_place || eini_gett_converter(&j.kit, h->s, !side) != NULL) continue;
    lasts[side] = eini_gett_lasts(c, &p, h->s, !side);
    if (lasts[side]) choice->state[0] |= side ? EINI_GETT_LASTS_V : EINI_GETT_LASTS_U;
    if (lasts[side] || !EINI_CPU_THREADS || (side ? in_u : in_v) < 2) continue;
    const int before = !side ? 0 : (choice->state[0] & EINI_GETT_SHARE_U) != 0;
    const size_t bytes = eini_gett_shared(&j, &p, !side || before, side, NULL, &cleared);
    if ((double)bytes > fmax(0.5 * eini_cpu_l3(cpu), 1 << 20)) continue;
    choice->state[0] |= side ? EINI_GETT_SHARE_V : EINI_GETT_SHARE_U;
    choice->shared = bytes, choice->cleared = cleared;
  }
  if (lasts[0] || lasts[1])
    choice->kept = eini_gett_shared(&j, &p, lasts[0], lasts[1], NULL, &cleared);
}

static void eini_gett_batch(eini_gett_job *j, const int64_t *batch_at, const int64_t *vr,
                            const int64_t *ur, int keep) {
  for (int64_t u = ur[0]; u < ur[1]; u++) {
    eini_gett_box(&j->u.g, u);
    // Either all of k for one box of V, or all boxes of V for some of k.
    const int64_t outer = keep ? vr[1] - vr[0] : j->k.total;
    const int64_t inner = keep ? j->k.total : vr[1] - vr[0];
    for (int64_t a = 0; a < outer; a++)
      for (int64_t b = 0; b < inner; b++) {
        const int64_t kb = keep ? b : a, v = vr[0] + (keep ? a : b);
        eini_gett_box(&j->k, kb);
        eini_gett_box(&j->v.g, v);
        j->u.box = u * j->k.total + kb, j->v.box = v * j->k.total + kb;
        const int64_t then = b + 1 < inner ? b + 1 : 0, next = a + (b + 1 == inner);
        eini_gett_step(j, kb, batch_at, keep, keep ? vr[0] + next : vr[0] + then,
                       keep ? (next < outer ? then : j->k.total) : next);
      }
  }
}

static void eini_gett_odometer(const ein_axes *x, int64_t index, int64_t *at) {
  for (int i = x->n - 1; i >= 0; i--) at[i] = index % x->extent[i], index /= x->extent[i];
}

static int64_t eini_gett_dot(int n, const int64_t *at, const int64_t *stride) {
  int64_t r = 0;
  for (int i = 0; i < n; i++) r += at[i] * stride[i];
  return r;
}

// Bytes to the lines of a tile's columns of U, at most one for every k. An earlier tile asks for
// them: U is often in memory, and each line is read by one tile.
static void eini_gett_soon_bare(const eini_gett_tile_arg *a, int64_t nu, int64_t size,
                                int64_t *soon) {
  const int64_t lane = 64 / size;
  int64_t n = 0;
  if (a->us == 1)
    for (; n < a->k; n++) soon[n] = n * a->uk * size;
  else
    for (int64_t q = 0; q < a->k; q += lane)
      for (int64_t t = 0; t < nu && n < a->k; t++) soon[n++] = (t * a->us + q * a->uk) * size;
  for (; n < a->k; n++) soon[n] = soon[n - 1];
}

static void eini_gett_run_bare(const eini_cpu *cpu, const ein_contract *c, int swap,
                               const ein_part *part) {
  eini_gett_sketch p;
  eini_gett_pick(cpu, c->type, c->pair, &p.kit);
  eini_gett_orient(cpu, c, &p, swap);
  const int64_t size = p.kit.size, lanes = p.kit.w * p.kit.nv, nv = p.vx->extent[0];
  const int64_t nu = p.ux->n > 0 ? p.ux->extent[0] : 1, step = p.ux->n > 0 ? p.out_u[0] : 0;
  static const unsigned whole[3] = {~0u, ~0u, ~0u};
  int64_t at[EINI_GETT_AXES], uoff[8], voff[3], soon[EINI_GETT_BARE_K];
  for (int i = 0; i < 8; i++) uoff[i] = i * step, voff[i % 3] = i % 3 * p.kit.w;
  eini_next next;
  eini_gett_tile_arg a;
  memset(&next, 0, sizeof next);
  a.how = EINI_GETT_STORE, a.uoff = uoff, a.voff = voff, a.soon = soon, a.lanes = whole;
  a.k = p.kx->n > 0 ? p.kx->extent[0] : 1, a.late = 0;
  a.sv = p.kx->n > 0 ? p.v->k[0][0] : 0, a.uk = p.kx->n > 0 ? p.u->k[0][0] : 0;
  a.us = p.ux->n > 0 ? p.u->row[0][0] : 0;
  eini_gett_soon_bare(&a, p.kit.nu, size, soon);
  const int64_t later = 2 * p.kit.nu * a.us * size;
  const int64_t reads = a.k * (nv + nu) + nv * nu, batches = part->batch[1] - part->batch[0];
  const double all = (double)eini_axes_size(&c->batch) * (double)(reads * size);
  const int ahead = batches > 1 && eini_cpu_far(cpu, all);
  const int64_t tiles = (nu + p.kit.nu - 1) / p.kit.nu * ((nv + lanes - 1) / lanes);
  const char *v, *u, *next_v = NULL, *next_u = NULL;
  char *out, *next_out = NULL;
  for (int64_t b = part->batch[0]; b <= part->batch[1]; b++) {
    v = next_v, u = next_u, out = next_out;
    const int64_t then = eini_min64(b, part->batch[1] - 1);
    eini_gett_odometer(&c->batch, then, at);
    next_v = p.v->base[0] + eini_gett_dot(c->batch.n, at, p.v->batch[0]) * size;
    next_u = p.u->base[0] + eini_gett_dot(c->batch.n, at, p.u->batch[0]) * size;
    next_out = c->out + eini_gett_dot(c->batch.n, at, c->out_batch) * size;
    if (b == part->batch[0]) continue;
    const uintptr_t odd = (uintptr_t)out | (uintptr_t)(step * size);
    const int stream = ahead && p.kit.w * size == 64 && (odd & 63) == 0;
    a.how = stream ? EINI_GETT_STREAM : EINI_GETT_STORE;
    if (ahead) {
      const int by = a.us == 1;  // U contiguous along its rows
      eini_next_row(&next, 0, (uintptr_t)next_v, a.k, a.sv * size, nv * size);
      eini_next_row(&next, 1, (uintptr_t)next_u, by ? a.k : nu, (by ? a.uk : a.us) * size,
                    (by ? nu : a.k) * size);
      eini_next_row(&next, 2, (uintptr_t)next_out, stream ? 0 : nu, step * size, nv * size);
      eini_next_start(&next, tiles);
    }
    for (int64_t j = 0; j < nu; j += p.kit.nu) {
      a.nu = (int)eini_min64(p.kit.nu, nu - j);
      a.u = u + j * a.us * size;
      for (int64_t i = 0; i < nv; i += lanes) {
        a.nv = (int)(eini_min64(lanes, nv - i) / p.kit.w);
        a.v = v + i * size, a.dst = out + (j * step + i) * size;
        a.soon_step = i == 0 && j + 2 * p.kit.nu < nu;
        a.soon_base = (uintptr_t)a.u + (uintptr_t)(a.soon_step ? later : 0);
        eini_next_some(&next);
        p.kit.tile(&a);
      }
    }
  }
  if (ahead) eini_stream_end();
}

static ein_status eini_gett_run(const eini_cpu *cpu, const ein_contract *c,
                                const ein_choice *choice, const ein_part *part, void *scratch) {
  if (choice->state[0] & EINI_GETT_BARE) {
    if (part->m[0] == 0 && part->n[0] == 0 && part->m[1] > 0 && part->n[1] > 0)
      eini_gett_run_bare(cpu, c, (int)(choice->state[0] & EINI_GETT_SWAP), part);
    return EIN_OK;
  }
  eini_gett_sketch p;
  eini_gett_job j;
  int64_t vr[2], ur[2], at[EINI_GETT_AXES];
  eini_gett_job_init(cpu, c, choice->state, &p, (char *)scratch, &j);
  const int iv = p.swap ? 1 : 2, iu = p.swap ? 2 : 1;
  eini_gett_boxes_of(&j.v.g, p.swap ? part->m : part->n,
                     eini_gett_product(p.vx->n, p.vx->extent), choice->unit[iv], &vr[0], &vr[1]);
  eini_gett_boxes_of(&j.u.g, p.swap ? part->n : part->m,
                     eini_gett_product(p.ux->n, p.ux->extent), choice->unit[iu], &ur[0], &ur[1]);
  size_t cleared;
  if (c->shared != NULL && choice->shared > 0)
    eini_gett_shared(&j, &p, (choice->state[0] & EINI_GETT_SHARE_U) != 0,
                     (choice->state[0] & EINI_GETT_SHARE_V) != 0, (char *)c->shared, &cleared);
  if (c->kept != NULL && choice->kept > 0)
    eini_gett_lasting(&j, &p, choice->state[0], (char *)c->kept);
  if (j.stream) eini_gett_align(&j);
  eini_gett_begin(cpu, &j.kit);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_gett_odometer(&c->batch, b, at);
    eini_gett_batch(&j, at, vr, ur, p.keep);
  }
  eini_gett_end(cpu, &j.kit);
  for (int64_t i = 0; j.stream && i < j.carries; i++) eini_tail_send(&j.carry[i]);
  if (j.stream) eini_stream_end();
  eini_cpu_packed(cpu, j.v.packed + j.u.packed);
  return EIN_OK;
}

static const eini_cpu_family eini_gett_family = {"gett", eini_gett_plan, eini_gett_run};

// A family for each form of panels of dot products.
static int eini_gett_bf16_plan(const eini_rated *cpu, const ein_contract *c, int width,
                               ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_BF16, 0, choice);
}
static int eini_gett_i16_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_I16, 0, choice);
}
static int eini_gett_i8_plan(const eini_rated *cpu, const ein_contract *c, int width,
                             ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_I8, 0, choice);
}
static int eini_gett_amx_f_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_AMX_BF16, 0, choice);
}
static int eini_gett_amx_i_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  return eini_gett_plan_cut(cpu, c, width, 0, EINI_GETT_AMX_I8, 0, choice);
}
static const eini_cpu_family eini_gett_bf16 = {"bf16", eini_gett_bf16_plan, eini_gett_run};
static const eini_cpu_family eini_gett_i16 = {"i16", eini_gett_i16_plan, eini_gett_run};
static const eini_cpu_family eini_gett_i8 = {"i8", eini_gett_i8_plan, eini_gett_run};
static const eini_cpu_family eini_gett_amx_f = {"amx bf16", eini_gett_amx_f_plan, eini_gett_run};
static const eini_cpu_family eini_gett_amx_i = {"amx i8", eini_gett_amx_i_plan, eini_gett_run};
