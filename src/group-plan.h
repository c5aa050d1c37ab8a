// ================================================================================================
// >>group-plan  tasks of groups, and layouts
// Takes a group of units; gives its tasks for blocks of every shape, where predictions say that it
// is faster than its units one by one; and layouts of temporaries, by predicted seconds.
// ================================================================================================

#define EINI_LOCALS_MOST (5 * EINI_FUSE_MOST)  // temporaries of a group

static int eini_ref_moves(const eini_ref *r) {
  int moves = 0;
  for (int l = 0; l < EINI_GROUP_LOOPS; l++) moves |= r->step[l] != 0;
  return moves;
}

// Step i of a group, and what its task sees of the loops in blocks of a variant. 0: nothing. What
// comes when a fold has ended comes where the last block has nothing of the fold, too.
static int eini_group_step_at(const eini_trail *w, const eini_bundle *b, int i, int variant,
                              eini_group_step *step, eini_lowering *lo) {
  const int x = b->nstep > 0 ? b->step[i].unit : i;
  const eini_unit *u = &w->unit[b->from + x];
  eini_walk walk[2];
  const int none = eini_bundle_at(w, b, b->from + x, variant, lo);
  if (b->nstep > 0) {
    *step = b->step[i];
  } else {
    memset(step, 0, sizeof *step);
    step->s = u->s, step->f = u->f, step->via = u->via, step->unit = i;
    step->when = EINI_AT_ANY | EINI_AT_FIRST;
    if (b->range[i][b->nloop - 1].index >= 0) step->when |= EINI_AT_OTHERS;
  }
  eini_bundle_walk(w, b, b->from + x, walk);
  if (step->then) lo->walk = walk[1];
  for (int l = 0; l < b->nloop && step->axes; l++) {
    int axis = u->s->out_map.rows - 1;
    while (axis >= 0 && eini_plain_row(&u->s->out_map, axis) != walk[0].loop[l]) axis--;
    lo->walk.loop[l] = walk[0].loop[l] < 0 ? -1 : axis;
  }
  int sees = 0;
  for (int l = 0; l < b->nloop; l++) sees |= (lo->walk.loop[l] >= 0) << l;
  return none == 0 || ((step->when & EINI_AT_LAST) && !(none & sees));
}

// The tasks of a group for blocks of one shape; what they refer to becomes slots of the group.
static ein_status eini_group_tasks(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                   const eini_bundle *b, eini_group *gr, int number) {
  static const int64_t still[EINI_GROUP_LOOPS] = {0};
  eini_arena *a = &p->arena;
  eini_group_variant *v = &gr->variant[number];
  eini_lowering sub = *lo;
  int64_t cap = 0;
  int id, temps = p->nin + p->nout;
  const int n = eini_bundle_steps(b);
  v->task = EINI_NEW(a, eini_task, n);
  v->when = EINI_NEW(a, char, n);
  if (v->task == NULL || v->when == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_group_slot_add(a, v, &cap, -2, 0, still, &id));
  for (int i = 0; i < n; i++) {
    eini_task *t = &v->task[v->ntask];
    int empty = 0;
    eini_group_step step;
    if (!eini_group_step_at(w, b, i, number, &step, &sub)) continue;
    EINI_TRY(eini_plan_task(&sub, step.s, step.f, step.via, t, &empty));
    if (empty) continue;
    for (int k = 0; k < t->nstream; k++) {
      eini_ref *r = &t->ref[k];
      int local = r->slot >= temps && sub.local[r->slot - temps];
      if (r->slot >= 0) {
        EINI_TRY(eini_group_slot_add(a, v, &cap, local ? -1 : r->slot,
                                     local ? w->place[r->slot - temps] : 0, r->step, &r->slot));
      } else if (eini_ref_moves(r)) {
        EINI_TRY(eini_group_slot_add(a, v, &cap, -2, r->offset, r->step, &r->origin));
      }
    }
    if (t->scratch > gr->scratch) gr->scratch = t->scratch;
    v->when[v->ntask++] = (char)step.when;
  }
  if (b->mask) EINI_TRY(eini_mask_lower(p, lo, w, b, number, v, &cap));
  if (v->nslot > gr->slots) gr->slots = v->nslot;
  return EIN_OK;
}

// The shape of a block of what unit u of a group makes, or what is fused into it, in blocks of a
// variant.
static ein_status eini_group_shape(const eini_lowering *lo, const eini_trail *w,
                                   const eini_bundle *b, int u, int variant, int fused,
                                   int64_t **shape) {
  const eini_unit *x = &w->unit[u];
  eini_lowering at = *lo;
  eini_walk walk[2];
  int64_t *low;
  (void)eini_bundle_at(w, b, u, variant, &at);
  eini_bundle_walk(w, b, u, walk);
  const eini_stmt_block block = eini_walk_block(&walk[fused], at.len);
  return eini_block_hull_new(lo->a, fused ? x->f : x->s, &block, -1, &low, shape);
}

// Elements of unit u's result in front of its block: coordinates count from where that begins.
static int64_t eini_group_shift(const eini_bundle *b, const eini_unit *x, int u, int fused,
                                const int64_t *stride) {
  const eini_stmt *last = fused ? x->f : x->s;
  int64_t shift = 0;
  for (int r = 0; r < last->out_map.rows; r++) {
    int c = eini_plain_row(&last->out_map, r);
    if (c >= 0 && fused) c = x->column[c];
    for (int l = 0; l < b->nloop && c >= 0; l++)
      if (b->range[u - b->from][l].index == c) shift += b->range[u - b->from][l].lo * stride[r];
  }
  return shift;
}

// Strides of one of a group's own temporaries, of the shape of what unit u makes, with its axes in
// the order of `like`; whole: those of the largest blocks.
static ein_status eini_group_local(const eini_lowering *lo, const eini_trail *w,
                                   const eini_bundle *b, int u, int variant, int fused, int out,
                                   int like, eini_seat *own, eini_item *item,
                                   const int64_t **whole) {
  const eini_tensor *t = &lo->g->tensor[out];
  int64_t *shape, count, most;
  EINI_TRY(eini_group_shape(lo, w, b, u, 0, fused, &shape));
  EINI_TRY(eini_dense_strides(lo->a, t->rank, shape, own[like].stride, whole, &most));
  EINI_TRY(eini_group_shape(lo, w, b, u, variant, fused, &shape));
  EINI_TRY(eini_dense_strides(lo->a, t->rank, shape, own[like].stride, &own[out].stride, &count));
  w->shift[out] = eini_group_shift(b, &w->unit[u], u, fused, own[out].stride);
  const int l = b->along - 1, i = l < 0 ? -1 : b->range[u - b->from][l].index;
  const int brief = w->as_found && (l < 0 || (i >= 0 && i < w->unit[u].s->nfree));
  item->from = brief ? u : 0;  // else some stay from block to block
  item->to = brief ? w->last[out] : b->to;
  item->at = &w->place[out];
  // Of the largest blocks: what stays from one to the next is in one place in both.
  item->bytes = (most * (int64_t)ein_dtype_size(t->dtype) + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  return EIN_OK;
}

// The temporary, new in every block, whose place what unit u makes can take: u is a map, the last
// one that reads it, each element where its own goes. -1: none.
static int eini_group_over(const eini_lowering *lo, const eini_trail *w, const eini_bundle *b,
                           int u, const int64_t *const *whole) {
  const eini_unit *x = &w->unit[u];
  const eini_stmt *s = x->s;
  const eini_tensor *to = &lo->g->tensor[x->out];
  if (x->f != NULL || s->fold != EIN_FOLD_NONE || !b->stream || to->nstmt != 1) return -1;
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k];
    const eini_tensor *from = &lo->g->tensor[t];
    if (!w->local[t] || w->last[t] != u || w->made[t] < b->from) continue;
    const int made = w->made[t], i = b->range[made - b->from][b->nloop - 1].index;
    int same = i >= 0 && i < w->unit[made].s->nfree && from->dtype == to->dtype &&
               from->rank == to->rank && w->shift[t] == w->shift[x->out];
    for (int j = 0; j < s->noperand && same; j++) same = j == k || s->operand[j] != t;
    for (int r = 0; r < to->rank && same; r++) {
      const int row = eini_plain_row(&s->out_map, r);
      same = row >= 0 && eini_plain_row(&s->proj[k], r) == row &&
             from->shape[r] == to->shape[r] &&
             whole[made - b->from][r] == whole[u - b->from][r];
    }
    if (same) return t;
  }
  return -1;
}

// Strides and places of a group's own temporaries in blocks of a variant.
// in_place: some take the places of others.
static ein_status eini_group_locals(const eini_lowering *lo, const eini_trail *w,
                                    const eini_bundle *b, int variant, eini_seat *own,
                                    int64_t *bytes, int *in_place) {
  eini_item item[EINI_LOCALS_MOST];
  const int64_t *whole[EINI_FUSE_MOST], *other;
  int alive[EINI_LOCALS_MOST], over[EINI_FUSE_MOST], n = 0;
  for (int u = b->from; u <= b->to; u++) {
    const eini_unit *x = &w->unit[u];
    over[u - b->from] = -1;
    if (w->local[x->out]) {
      EINI_TRY(eini_group_local(lo, w, b, u, variant, x->f != NULL, x->out, x->out, own,
                                &item[n], &whole[u - b->from]));
      over[u - b->from] = eini_group_over(lo, w, b, u, whole);
      n += over[u - b->from] < 0;
    }
    for (int i = 0, t; b->stream && (t = eini_online_extra(w, b, u - b->from, i)) >= 0; i++)
      EINI_TRY(eini_group_local(lo, w, b, u, variant, 0, t, x->s->out, own, &item[n++],
                                &other));
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, bytes));
  for (int u = b->from; u <= b->to; u++)
    if (over[u - b->from] >= 0)
      w->place[w->unit[u].out] = w->place[over[u - b->from]], *in_place = 1;
  return EIN_OK;
}

// Layouts of what a group makes: what is fastest for whole tensors, which come from memory, may not
// be for blocks.
static ein_status eini_group_layouts(const eini_lowering *lo, const eini_weighed *gr, int nunit,
                                     eini_seat *seat) {
  const eini_trail *w = gr->w;
  int64_t bytes = 0, *shape;
  int in_place = 0;
  EINI_TRY(eini_group_locals(gr->block, w, gr->b, 0, seat, &bytes, &in_place));
  for (int u = gr->b->from; u <= gr->b->to; u++) {
    const int out = w->unit[u].out, local = w->local[out];
    if (!eini_unit_lays(lo, &w->unit[u]) || (!local && u != gr->b->to)) continue;
    shape = lo->g->tensor[out].shape;
    if (local)
      EINI_TRY(eini_group_shape(gr->block, w, gr->b, u, 0, w->unit[u].f != NULL, &shape));
    EINI_TRY(eini_unit_layout(lo, gr, w->unit, local ? gr->b->to + 1 : nunit, u, shape, seat));
  }
  return EIN_OK;
}

// Keeps the layouts of what a group makes, or gives them back.
static void eini_group_keep(const eini_trail *w, const eini_bundle *b, eini_seat *seat,
                            const int64_t **kept, int back) {
  for (int u = b->from; u <= b->to; u++) {
    const int of[2] = {w->unit[u].s->out, w->unit[u].out};
    for (int i = 0; i < 2; i++, kept++) {
      if (back) seat[of[i]].stride = *kept;
      else *kept = seat[of[i]].stride;
    }
  }
}

// Makes the tasks of a group for blocks of a variant. While they are made, local temporaries have
// seats of a block's shape.
static ein_status eini_group_blocks(ein_plan *p, const eini_lowering *sub, const eini_trail *w,
                                    const eini_bundle *b, eini_seat *seat, eini_group *gr,
                                    int variant) {
  const int64_t *kept[2 * EINI_FUSE_MOST];
  int64_t bytes = 0;
  eini_group_keep(w, b, seat, kept, 0);
  ein_status st = eini_group_locals(sub, w, b, variant, seat, &bytes, &gr->in_place);
  if ((size_t)bytes > gr->local_bytes) gr->local_bytes = (size_t)bytes;
  if (st == EIN_OK) st = eini_group_tasks(p, sub, w, b, gr, variant);
  eini_group_keep(w, b, seat, kept, 1);
  return st;
}

// A group without tasks, and how many threads share its blocks.
static ein_status eini_group_new(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                 const eini_bundle *b, eini_task *t) {
  eini_group *gr = EINI_NEW(&p->arena, eini_group, 1);
  double blocks = 1;
  memset(t, 0, sizeof *t);
  if (gr == NULL) return EIN_ERR_NO_MEMORY;
  t->kind = EINI_TASK_GROUP;
  t->group = gr;
  t->cut = -1;
  gr->moves = b->moves;
  gr->stmt = EINI_NEW(&p->arena, int64_t, EINI_FUSE_MOST);
  if (gr->stmt == NULL) return EIN_ERR_NO_MEMORY;
  gr->nstmt = eini_bundle_list(w, b->from, b->to, gr->stmt);
  gr->units = b->to - b->from + 1;
  gr->nloop = b->nloop;
  gr->along = b->along;
  for (int l = 0; l < b->nloop; l++) {
    gr->extent[l] = b->extent[l];
    gr->block[l] = b->block[l];
    gr->edge[l] = b->edge[l];
    if (l < b->nloop - 1 || !b->stream)
      blocks *= (double)eini_ceil_div(b->extent[l], b->block[l]);
  }
  gr->streams = b->stream > 0;
  if (b->mask) gr->known = (size_t)eini_ceil_div(b->extent[b->nloop - 1], b->block[b->nloop - 1]);
  t->parts = blocks < lo->width ? (int)blocks : lo->width;
  gr->saved = eini_bundle_mark(w, b->from, b->to);
  eini_online_own(w, b, 1);
  return EIN_OK;
}

// Are there blocks of a variant?
static int eini_group_has(const eini_group *gr, int variant) {
  for (int l = 0; l < gr->nloop; l++)
    if (variant >> l & 1 ? gr->edge[l] == gr->extent[l] : gr->edge[l] == 0) return 0;
  return 1;
}

// Makes the task of a group; seat gives the layout of temporaries, local ones get block shapes.
// keep: where the group is faster, seats become as it needs them; with a variant that was asked for
// it has been weighed without.
static ein_status eini_group_lower(ein_plan *p, const eini_lowering *lo, const eini_trail *w,
                                   const eini_bundle *b, eini_seat *seat, eini_task *t, int keep,
                                   double *seconds, int *yes) {
  const int64_t *kept[2 * EINI_FUSE_MOST], *made;
  eini_lowering sub = *lo;
  eini_weighed of;
  EINI_TRY(eini_group_new(p, lo, w, b, t));
  eini_group *gr = t->group;
  sub.width = 1;
  sub.local = w->local;
  sub.shift = w->shift;
  sub.seat = seat;
  if (!keep) sub.wanted = NULL;
  of.w = w, of.b = b, of.block = &sub, of.parts = t->parts;
  eini_group_keep(w, b, seat, kept, 0);
  ein_status st = eini_group_layouts(lo, &of, w->nunit, seat);
  for (int v = 0; v < (keep ? 1 << gr->nloop : 1) && st == EIN_OK; v++)  // 0: what is weighed
    if (eini_group_has(gr, v)) st = eini_group_blocks(p, &sub, w, b, seat, gr, v);
  made = seat[w->unit[b->to].out].stride;
  eini_group_keep(w, b, seat, kept, 1);
  if (st == EIN_OK) st = eini_group_wins(lo, w, b, gr, t->parts, seconds, yes);
  if (keep && lo->wanted != NULL) *yes = 1;
  for (int u = b->from; u <= b->to && st == EIN_OK && *yes && keep; u++) {
    int out = w->unit[u].out;
    if (w->local[out]) seat[out].slot = -1;  // needs no place of its own
    for (int i = 0, x; b->stream && (x = eini_online_extra(w, b, u - b->from, i)) >= 0; i++)
      seat[x].slot = -1;
  }
  if (st == EIN_OK && *yes && keep) seat[w->unit[b->to].out].stride = made;
  eini_bundle_unmark(w, b->from, b->to);
  eini_online_own(w, b, 0);
  eini_nest_carve(NULL, &t->scratch, (size_t)gr->slots * sizeof(char *));
  eini_nest_carve(NULL, &t->scratch, gr->known);
  t->scratch += gr->local_bytes + gr->scratch;
  return st;
}

// Lowers a group; what it took is given back where it is only tried, or not faster.
static ein_status eini_group_try(ein_plan *p, eini_lowering *lo, eini_trail *w,
                                 const eini_bundle *b, eini_seat *seat, int keep, double *seconds,
                                 int *yes) {
  const eini_arena_at plan = eini_arena_mark(&p->arena), graph = eini_arena_mark(&lo->g->arena);
  EINI_TRY(eini_group_lower(p, lo, w, b, seat, &p->task[p->ntask], keep, seconds, yes));
  if (*yes && keep) return EIN_OK;
  eini_arena_rollback(&p->arena, &plan);
  eini_arena_rollback(&lo->g->arena, &graph);
  return EIN_OK;
}

// Blocks of half the length along the loop of the longest ones, if kernels are predicted to like
// them better.
static ein_status eini_group_halve(ein_plan *p, eini_lowering *lo, eini_trail *w, eini_seat *seat,
                                   eini_bundle *b) {
  eini_bundle other = *b;
  double was[2] = {0, 0}, is[2] = {0, 0};
  int at = 0, yes = 0;
  for (int l = 1; l < b->nloop; l++)
    if (b->block[l] > b->block[at]) at = l;
  if (b->block[at] < 16) return EIN_OK;
  other.block[at] = (b->block[at] / 2 + 7) / 8 * 8;
  if (!eini_bundle_edge(w, &other, at)) return EIN_OK;
  EINI_TRY(eini_group_try(p, lo, w, b, seat, 0, was, &yes));
  EINI_TRY(eini_group_try(p, lo, w, &other, seat, 0, is, &yes));
  if (is[0] > 0 && is[0] < EINI_SURELY * was[0]) *b = other;
  return EIN_OK;
}

// Weighs blocks of a side along class c of f in every room; *b, the fastest with their seconds
// least. now: of the fastest of this side.
static ein_status eini_group_side(ein_plan *p, eini_lowering *lo, eini_trail *w, eini_seat *seat,
                                  const eini_fuse *f, const int64_t *list, int c, double side,
                                  const eini_bundle *whole, eini_bundle *b, double *least,
                                  double *now) {
  int64_t before[EINI_GROUP_LOOPS] = {0};
  *now = INFINITY;
  for (int room = 0; side > 0 && room < EINI_ONLINE_ROOMS; room++) {
    eini_bundle other = *whole;
    double is[2] = {0, 0};
    int yes = 0;
    EINI_TRY(eini_online_bundle(w, p->graph, f, list, c, side, room, &other));
    if (other.nloop == 0 || memcmp(before, other.block, sizeof before) == 0) continue;
    memcpy(before, other.block, sizeof before);
    EINI_TRY(eini_group_try(p, lo, w, &other, seat, 0, is, &yes));
    if (is[0] > 0) *now = fmin(*now, is[0]);
    if (is[0] > 0 && (*least == 0 || is[0] < *least)) *least = is[0], *b = other;
  }
  return EIN_OK;
}

// Blocks along an index that the group folds as well, if they are predicted to be faster: those of
// all of it may be too large for a cache where other loops have blocks that kernels like. Shorter
// sides are weighed while they get faster.
static ein_status eini_group_stream(ein_plan *p, eini_lowering *lo, eini_trail *w, eini_seat *seat,
                                    eini_bundle *b) {
  const eini_arena_at mark = eini_arena_mark(&w->z.scratch);
  const eini_bundle whole = *b;
  int64_t list[EINI_FUSE_MOST];
  double least[2] = {0, 0}, now;
  eini_fuse f;
  int fits = 0, yes = 0;
  if (b->nloop > 0) EINI_TRY(eini_group_try(p, lo, w, b, seat, 0, least, &yes));
  eini_fuse_of(&w->z.w, list, eini_bundle_list(w, b->from, b->to, list), &f);
  EINI_TRY(eini_fuse_make(&w->z.scratch, &w->z.w, &f, &fits));
  for (int c = 0; fits && c < f.ncls; c++) {
    for (int vectors = 0; vectors < 2 && f.whole[c]; vectors++) {
      double before = INFINITY;
      for (int k = 0; k < EINI_ONLINE_SIDES; k++, before = fmin(before, now)) {
        const double side = eini_online_side(f.extent[c], k, vectors);
        EINI_TRY(eini_group_side(p, lo, w, seat, &f, list, c, side, &whole, b, least, &now));
        if (now > before && now < INFINITY) break;
      }
    }
  }
  eini_arena_rollback(&w->z.scratch, &mark);
  return EIN_OK;
}

// The blocks of units [u, v] that are predicted to be fastest; without loops: there are none.
static ein_status eini_plan_blocks(ein_plan *p, eini_lowering *lo, eini_trail *w, int u, int v,
                                   eini_seat *seat, eini_bundle *b) {
  EINI_TRY(eini_bundle_make(w, u, v, 0, b));
  if (!eini_bundle_pays(b)) b->nloop = 0;
  if (b->nloop == 0) return EIN_OK;
  EINI_TRY(eini_group_halve(p, lo, w, seat, b));
  return eini_group_stream(p, lo, w, seat, b);
}

// Adds the seconds of units [u, to], in the groups that the search found.
static ein_status eini_plan_found(ein_plan *p, eini_lowering *lo, eini_trail *w, int u, int to,
                                  eini_seat *seat, double *sum) {
  eini_lowering sub = *lo;
  eini_arena scratch;
  ein_status st = EIN_OK;
  eini_arena_init(&scratch, &lo->a->al);
  sub.a = &scratch;
  for (int yes = 0; u <= to && st == EIN_OK; yes = 0) {
    double seconds[2] = {0, 0};
    eini_bundle b;
    for (int v = w->then[u] < to ? w->then[u] : to; v > u && !yes && st == EIN_OK; v--) {
      st = eini_plan_blocks(p, lo, w, u, v, seat, &b);
      if (st == EIN_OK && b.nloop > 0)
        st = eini_group_try(p, lo, w, &b, seat, 0, seconds, &yes);
    }
    if (yes) *sum += seconds[0];
    else if (st == EIN_OK) st = eini_unit_apart(&sub, w, u, sum);
    u = yes ? b.to + 1 : u + 1;
  }
  eini_arena_free(&scratch);
  return st;
}

// A longer group than the search found, whose folds go on from block to block: the search knows
// only blocks that have all of what they fold. Of those predicted to be faster than what was found,
// or as fast, as they store less, it gains most. b->nloop 0: there is none.
static ein_status eini_plan_longer(ein_plan *p, eini_lowering *lo, eini_trail *w, int u,
                                   eini_seat *seat, eini_bundle *b) {
  double most = -INFINITY;
  b->nloop = 0;
  if (!w->joins[u] || w->g->tensor[w->unit[u].out].role != EIN_ROLE_TEMP) return EIN_OK;
  for (int v = u + 1; v < w->nunit && v < u + EINI_FUSE_MOST && w->joins[v]; v++) {
    eini_bundle other;
    double is[2] = {0, 0}, found = 0;
    int yes = 0;
    if (!eini_unit_follows(w, u, v)) break;
    if (v <= w->then[u]) continue;
    const double held = eini_bundle_mark(w, u, v);
    eini_bundle_unmark(w, u, v);
    if (!(held > w->rates->fast_bytes)) continue;
    EINI_TRY(eini_bundle_make(w, u, v, 0, &other));
    other.nloop = 0;  // the search has weighed these blocks
    EINI_TRY(eini_group_stream(p, lo, w, seat, &other));
    if (other.nloop == 0) continue;
    EINI_TRY(eini_group_try(p, lo, w, &other, seat, 0, is, &yes));
    if (!yes) continue;
    EINI_TRY(eini_plan_found(p, lo, w, u, v, seat, &found));
    if (!(EINI_SURELY * is[0] < found) || found - is[0] < most) continue;
    most = found - is[0];
    *b = other;
  }
  return EIN_OK;
}

// The group that begins at unit u, if one is predicted to be faster: *last, its last unit. Where it
// is not, shorter ones may be.
static ein_status eini_plan_group(ein_plan *p, eini_lowering *lo, eini_trail *w, int u,
                                  eini_seat *seat, int *last) {
  eini_bundle b;
  int yes = 0;
  *last = 0;
  if (w == NULL || w->then == NULL) return EIN_OK;
  EINI_TRY(eini_plan_longer(p, lo, w, u, seat, &b));
  for (int v = b.nloop > 0 ? b.to : w->then[u]; v > u && !yes; v--) {
    double seconds[3] = {0, 0, 0};
    if (b.nloop == 0 || b.to != v) EINI_TRY(eini_plan_blocks(p, lo, w, u, v, seat, &b));
    if (b.nloop == 0) continue;
    if (lo->wanted != NULL) EINI_TRY(eini_group_try(p, lo, w, &b, seat, 0, seconds, &yes));
    if (lo->wanted == NULL || yes)
      EINI_TRY(eini_group_try(p, lo, w, &b, seat, 1, seconds, &yes));
    EINI_TRY(eini_plan_verdict(p, lo->g->tensor[w->unit[v].out].name, v - u + 1, seconds, !yes));
    if (!yes) continue;
    p->info.seconds += seconds[0];
    *last = v;
    for (int i = u; i < w->nunit; i++) w->apart[i] = -1;  // layouts have changed
  }
  return EIN_OK;
}
