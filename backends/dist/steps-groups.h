// ================================================================================================
// >>steps-groups  boxes that many places fetch in a step
// Takes the moves of a process that drives one place under a schedule; gives those of a box, from
// one holder, a turn in the group of all places that fetch it.
// ================================================================================================

typedef struct eini_steps_grouping {
  eini_dist_groups groups;
  eini_staged x;
  int64_t *order;           // of a statement's moves
  int64_t *from, *to;       // the box at hand
} eini_steps_grouping;

// What all places of a group order its messages by.
static int eini_steps_group_before(const eini_step_move *a, const eini_step_move *b) {
  if (a->step != b->step) return a->step < b->step;
  if (a->access != b->access) return a->access < b->access;
  return a->owner != b->owner ? a->owner < b->owner : a->pieces < b->pieces;
}

// The moves that a group may make, in that order; they nearly are. Returns how many.
static int64_t eini_steps_group_order(const ein_dist *d, const eini_steps_stmt *e,
                                      int64_t *order) {
  int64_t n = 0;
  if (e->w.n->grid->npoint > d->fabric.places) return 0;
  for (int64_t i = 0; i < e->nmove; i++) {
    const eini_step_move *v = &e->move[i];
    int several = v->kind == EINI_JOB_NONE || v->access == e->w.n->s->noperand || v->pieces < 0;
    const ein_distribution *held = several ? NULL : e->w.owners[v->access][v->owner].d;
    for (int m = 0; held != NULL && m < held->grid->ndim; m++)  // who of them sends, depends
      several |= held->held[m].kind == EINI_HELD_EVERY && held->grid->dim[m].extent > 1;
    if (several) continue;
    int64_t at = n++;
    for (; at > 0 && eini_steps_group_before(v, &e->move[order[at - 1]]); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  return n;
}

// The places that fetch what v moves, and its holder, into z->groups.reader.
static void eini_steps_group_readers(eini_steps_grouping *z, const eini_step_move *v, int holder) {
  eini_staged *x = &z->x;
  eini_dist_groups *g = &z->groups;
  const int rank = x->d->g->tensor[x->stmt->operand[v->access]].rank;
  g->nreader = 0;
  eini_steps_goto(x, v->point);
  (void)eini_tour_box(&x->w, v->step, v->access);
  for (int r = 0; r < rank; r++) z->from[r] = x->w.from[r], z->to[r] = x->w.to[r];
  for (int64_t point = 0; point < x->w.n->grid->npoint; point++) {
    eini_steps_goto(x, point);
    if (x->w.move.place == holder || !eini_tour_works(&x->w) ||
        !eini_tour_box(&x->w, v->step, v->access)) continue;
    int same = 1;
    for (int r = 0; r < rank && same; r++)
      same = z->from[r] == x->w.from[r] && z->to[r] == x->w.to[r];
    if (same) g->reader[g->nreader++] = (int)x->w.move.place;
  }
  g->reader[g->nreader++] = holder;
  eini_dist_group_sort(g->nreader, g->reader);
}

// Does move v go to a place of group number g?
static int eini_steps_group_has(const eini_dist_groups *x, int g, const eini_step_move *v) {
  for (int i = x->first[g]; i < x->first[g + 1]; i++)
    if (x->place[i] == v->peer) return 1;
  return 0;
}

static ein_status eini_steps_group_stmt(ein_dist *d, int k, eini_steps_grouping *z) {
  eini_steps_stmt *e = &d->steps[k];
  eini_dist_groups *x = &z->groups;
  const int q = d->fabric.first;
  if ((z->order = EINI_NEW(&x->arena, int64_t, e->nmove)) == NULL) return EIN_ERR_NO_MEMORY;
  const int64_t n = eini_steps_group_order(d, e, z->order);
  eini_steps_on(&z->x, k);
  for (int64_t i = 0; i < n; i++) {
    eini_step_move *v = &e->move[z->order[i]];
    const int sends = v->kind == EINI_JOB_SEND;
    for (int64_t j = i - 1; j >= 0 && sends && v->group == -1; j--) {  // the same once more?
      const eini_step_move *u = &e->move[z->order[j]];
      if (eini_steps_group_before(u, v)) break;
      if (u->group >= 0 && eini_steps_group_has(x, u->group, v)) v->group = -2 - u->group;
    }
    if (v->group != -1) continue;
    eini_steps_group_readers(z, v, sends ? q : v->peer);
    if (x->nreader < EINI_DIST_GROUP) continue;
    const int g = eini_dist_group_of(x, x->nreader);
    if (g < 0) return EIN_ERR_NO_MEMORY;
    v->group = g;
    v->turn = x->turns[g]++;
  }
  return EIN_OK;
}

// Collective: all processes have made their plans.
static ein_status eini_steps_groups_make(ein_dist *d) {
  eini_steps_grouping z;
  eini_dist_groups *x = &z.groups;
  if (d->fabric.groups_fn == NULL) return EIN_OK;
  memset(&z, 0, sizeof z);
  eini_arena_init(&x->arena, &d->al);
  z.x.d = d;
  char *scratch = EINI_NEW(&x->arena, char, eini_steps_scratch(d, &z.x, NULL));
  x->reader = EINI_NEW(&x->arena, int, (int64_t)d->fabric.places + 1);
  z.from = EINI_NEW(&x->arena, int64_t, d->rank);
  z.to = EINI_NEW(&x->arena, int64_t, d->rank);
  ein_status st = scratch == NULL || x->reader == NULL || z.from == NULL || z.to == NULL
                      ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) (void)eini_steps_scratch(d, &z.x, scratch);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_group_stmt(d, k, &z);
  const ein_status all = eini_dist_groups_number(d, x, &st);
  for (int k = 0; k < d->nstmt && st == EIN_OK && all == EIN_OK; k++)
    for (int64_t i = 0; i < d->steps[k].nmove; i++)
      (void)eini_dist_group_said(x, &d->steps[k].move[i].group, &d->steps[k].move[i].turns);
  eini_arena_free(&x->arena);
  return all;
}
