// ================================================================================================
// >>staging  tensors in a provider's memory
// Takes tasks in their order; says what is copied before each of them, to the memory of who runs it
// or home. One law for planning, which counts the copies, and for runs, which make them.
// ================================================================================================

typedef struct eini_stays {
  const eini_stay *stay;        // per slot, as all that follows
  unsigned char *valid;         // EINI_HOME, EINI_AWAY: where its elements are; 0: nowhere yet
  unsigned char want;           // where the task at hand needs them
  int after;                    // 1: it has run
  ein_status (*move_fn)(void *user, int slot, int away, int copy);  // NULL: nothing moves
  void *user;
} eini_stays;

static ein_status eini_stays_touch(const eini_stays *x, int slot, int written) {
  const eini_stay *s = &x->stay[slot];
  unsigned char *valid = &x->valid[slot];
  if (!s->kept || s->bytes == 0) return EIN_OK;
  if (written && x->want == EINI_HOME && s->space != 0 && s->gaps) return EIN_ERR_UNSUPPORTED;
  if (x->after) {
    if (written) *valid = x->want;
    return EIN_OK;
  }
  if (*valid & x->want) return EIN_OK;
  if (x->move_fn != NULL)
    EINI_TRY(x->move_fn(x->user, slot, x->want == EINI_AWAY, *valid != 0));
  if (*valid != 0) *valid |= x->want;
  return EIN_OK;
}

// Does a task store to slot k of its own?
static int eini_task_stores(const eini_task *t, int k) {
  int yes = 0;
  for (int s = t->out; s < t->nstream; s++) yes |= t->ref[s].slot == k;
  return yes;
}

static ein_status eini_stays_group(const eini_stays *x, const eini_group *g) {
  for (int64_t i = 0; i < g->nrow; i++)
    for (int k = 0; k < g->row_slots; k++)
      EINI_TRY(eini_stays_touch(x, g->row[i * g->row_slots + k], eini_task_stores(g->form, k)));
  for (int n = 0; g->nrow == 0 && n < 1 << EINI_GROUP_LOOPS; n++) {
    const eini_group_variant *v = &g->variant[n];
    for (int k = 0; k < v->nslot; k++) {
      int written = 0;
      for (int i = 0; i < v->ntask; i++) written |= eini_task_stores(&v->task[i], k);
      if (v->slot[k].slot >= 0) EINI_TRY(eini_stays_touch(x, v->slot[k].slot, written));
    }
  }
  return EIN_OK;
}

// Before a task runs, or after.
static ein_status eini_stays_task(eini_stays *x, const eini_task *t, int after) {
  x->after = after;
  x->want = eini_task_away(t) ? EINI_AWAY : EINI_HOME;
  if (t->kind == EINI_TASK_GROUP) return eini_stays_group(x, t->group);
  for (int s = 0; s < t->nstream; s++)
    if (t->ref[s].slot >= 0) EINI_TRY(eini_stays_touch(x, t->ref[s].slot, s >= t->out));
  return EIN_OK;
}

// Where everything is before the first task.
static void eini_stays_begin(const ein_plan *p, const eini_stay *stay, unsigned char *valid) {
  const int keeps = p->keeps || p->alias >= 0;
  for (int k = 0; k < p->nslot; k++)
    valid[k] = k >= (keeps ? p->nin + p->nout : p->nin) ? 0 : stay[k].space ? EINI_AWAY : EINI_HOME;
}

// ---- planning ----

// What may lie in the memory of the plan's provider: all temporaries, and of inputs and outputs
// those that have no gaps there, or lie there anyway.
static ein_status eini_plan_stays(ein_plan *p, eini_lowering *lo, const eini_seat *seat) {
  const ein_graph *g = p->graph;
  for (int i = 0; i < p->nkernels && p->away == NULL && !g->ordered; i++)
    if (p->kernels[i]->memory != NULL) p->away = p->kernels[i];
  for (int i = 0; i < p->nin + p->nout; i++) {
    const int space = i < p->nin ? p->in[i].space : p->out[i - p->nin].space;
    if (space != 0 && (p->away == NULL || p->away->memory->space != space))
      return EIN_ERR_UNSUPPORTED;
  }
  if (p->away == NULL) return EIN_OK;
  p->stay = EINI_NEW(&p->arena, eini_stay, p->nslot);
  lo->valid = EINI_NEW(&p->arena, unsigned char, p->nslot);
  if (p->stay == NULL || lo->valid == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    eini_stay *s = &p->stay[seat[t].slot];
    const int port = seat[t].slot < p->nin + p->nout, out = seat[t].slot >= p->nin;
    int64_t n = (int64_t)ein_dtype_size(g->tensor[t].dtype);
    for (int a = 0; a < g->tensor[t].rank; a++)
      if (eini_mul_overflow(n, g->tensor[t].shape[a], &n)) return EIN_ERR_TOO_LARGE;
    s->bytes = n;
    s->kept = 1;
    s->port = port;
    if (!port) continue;
    const eini_port *x = out ? &p->out[seat[t].slot - p->nin] : &p->in[seat[t].slot];
    s->space = x->space;
    s->lo = x->lo;
    s->bytes = x->hi - x->lo;
    s->gaps = s->bytes > n;
    s->kept = !s->gaps || s->space != 0;
  }
  lo->away = p->away;
  lo->stay = p->stay;
  eini_stays_begin(p, p->stay, lo->valid);
  if (p->away->alone) p->rows = 0;  // others would run them
  return EIN_OK;
}

// A task is planned: what the next ones find.
static ein_status eini_plan_stayed(const eini_lowering *lo, const eini_task *t) {
  eini_stays x;
  memset(&x, 0, sizeof x);
  if (lo->away == NULL) return EIN_OK;
  x.stay = lo->stay;
  x.valid = lo->valid;
  EINI_TRY(eini_stays_task(&x, t, 0));
  return eini_stays_task(&x, t, 1);
}

static ein_status eini_apart_touch(void *user, int slot, int away, int copy) {
  (void)copy;
  if (away) ((unsigned char *)user)[slot] = 1;
  return EIN_OK;
}

// What the tasks of a plan take of both memories. Temporaries lie in each where a task runs that
// has some.
static ein_status eini_plan_apart(ein_plan *p) {
  double most = 0, bytes = 0;
  int ports = p->nin + p->nout, temps = 0;
  p->home_bytes = p->temp_bytes;
  if (p->away == NULL) return EIN_OK;
  unsigned char *room = EINI_NEW(&p->arena, unsigned char, 2 * (int64_t)p->nslot);
  if (room == NULL) return EIN_ERR_NO_MEMORY;
  int here = 0;
  for (int k = 0; k < p->ntask; k++) {
    eini_stays x = {p->stay, room, 0, 0, eini_apart_touch, room + p->nslot};
    EINI_TRY(eini_stays_task(&x, &p->task[k], 0));  // nothing is anywhere: all is touched
    here |= !eini_task_away(&p->task[k]);
    if (eini_task_away(&p->task[k])) most = fmax(most, (double)p->task[k].choice.away);
  }
  for (int k = 0; k < p->nslot; k++) {
    if (room[p->nslot + k] == 0) continue;
    if (k >= ports) temps = 1;
    else if (p->stay[k].space == 0) bytes += (double)p->stay[k].bytes;
  }
  bytes += most + temps * (double)p->temp_bytes;
  if (!(bytes < 9e18)) return EIN_ERR_TOO_LARGE;
  p->away_bytes = (size_t)bytes;
  if (!here) p->home_bytes = 0;
  return EIN_OK;
}

// ---- runs ----

typedef struct eini_away {
  const ein_plan *p;
  char **home, **own;           // per slot: addresses at home and in the memory, or NULL,
  void **taken;                 //   and what was allocated for it where it does not lie
  void *temps;                  // all temporaries in the memory
  eini_stays stays;
  int later;                    // outputs may come home later, see ein_memory
} eini_away;

static size_t eini_away_bytes(const ein_plan *p) {
  const size_t n = (size_t)p->nslot;
  if (p->away == NULL) return 0;
  return (n * (3 * sizeof(void *) + 1) + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// At an offset of an address, which may lie before what it is the address in.
static char *eini_beside(const void *p, int64_t by) {
  return (char *)((uintptr_t)p + (uintptr_t)by);
}

static ein_status eini_away_room(eini_away *x, int slot, int away) {
  const ein_plan *p = x->p;
  const ein_kernels *k = p->away;
  const eini_stay *s = &p->stay[slot];
  const int temp = slot - p->nin - p->nout;
  if (away && temp >= 0) {
    if (x->temps == NULL) EINI_TRY(k->memory->alloc_fn(k->user, p->temp_bytes, &x->temps));
    x->own[slot] = eini_beside(x->temps, p->slot_offset[temp]);
    return EIN_OK;
  }
  if (away) EINI_TRY(k->memory->alloc_fn(k->user, (size_t)s->bytes, &x->taken[slot]));
  else x->taken[slot] = p->al.alloc_fn((size_t)s->bytes, EINI_ALIGN, p->al.user);
  if (x->taken[slot] == NULL) return EIN_ERR_NO_MEMORY;
  (away ? x->own : x->home)[slot] = eini_beside(x->taken[slot], -s->lo);
  return EIN_OK;
}

static ein_status eini_away_move(void *user, int slot, int away, int copy) {
  eini_away *x = (eini_away *)user;
  const ein_kernels *k = x->p->away;
  const eini_stay *s = &x->p->stay[slot];
  char **to = away ? x->own : x->home, **from = away ? x->home : x->own;
  if (to[slot] == NULL) EINI_TRY(eini_away_room(x, slot, away));
  if (!copy) return EIN_OK;
  return k->memory->copy_fn(k->user, (size_t)s->bytes, eini_beside(from[slot], s->lo),
                            eini_beside(to[slot], s->lo), away);
}

// room: eini_away_bytes; home: the slots of the run.
static void eini_away_begin(eini_away *x, const ein_plan *p, char **home, char *room) {
  memset(room, 0, eini_away_bytes(p));
  memset(x, 0, sizeof *x);
  x->p = p;
  x->home = home;
  x->own = (char **)(void *)room;
  x->taken = (void **)(void *)(x->own + p->nslot);
  x->stays.stay = p->stay;
  x->stays.valid = (unsigned char *)(x->taken + p->nslot);
  x->stays.move_fn = eini_away_move;
  x->stays.user = x;
  eini_stays_begin(p, p->stay, x->stays.valid);
  for (int k = 0; k < p->nin + p->nout; k++) {
    const eini_stay *s = &p->stay[k];
    if (k >= p->info.nin && k < p->nin) continue;  // the output itself
    if (!s->kept || s->space != 0) x->own[k] = home[k];
    if (s->space != 0) home[k] = NULL;
  }
}

static ein_status eini_away_wait(const eini_away *x) {
  const ein_kernels *k = x->p->away;
  ein_ticket ticket;
  EINI_TRY(k->memory->mark_fn(k->user, &ticket));
  return k->memory->wait_fn(k->user, ticket);
}

// Outputs go where they belong.
static ein_status eini_away_finish(eini_away *x) {
  const ein_plan *p = x->p;
  for (int k = p->nin; k < p->nin + p->nout; k++) {
    const unsigned char valid = x->stays.valid[k], want = p->stay[k].space ? EINI_AWAY : EINI_HOME;
    if (!p->stay[k].kept || valid == 0 || (valid & want)) continue;
    const eini_stay *s = &p->stay[k];
    if (x->later && want == EINI_HOME && x->taken[k] != NULL && x->home[k] != NULL) {
      void *from = x->taken[k];
      EINI_TRY(p->away->memory->later_fn(p->away->user, (size_t)s->bytes, from,
                                         eini_beside(x->home[k], s->lo)));
      x->taken[k] = NULL;
      continue;
    }
    EINI_TRY(eini_away_move(x, k, want == EINI_AWAY, 1));
  }
  return EIN_OK;
}

// Gives back what was taken. ticket: of what may go on; NULL: nothing does.
static ein_status eini_away_end(eini_away *x, ein_status st, ein_ticket *ticket) {
  const ein_plan *p = x->p;
  const ein_kernels *k = p->away;
  int here = 0, there = 0;
  for (int i = 0; i < p->nin + p->nout; i++) {
    there |= p->stay[i].space != 0;
    here |= p->stay[i].space == 0 && p->stay[i].bytes > 0;
  }
  if (st == EIN_OK && ticket != NULL && !here && there) st = k->memory->mark_fn(k->user, ticket);
  else if (st == EIN_OK && there) st = eini_away_wait(x);
  if (st != EIN_OK) (void)eini_away_wait(x);
  for (int i = 0; i < p->nin + p->nout; i++) {
    if (x->taken[i] == NULL) continue;
    if (p->stay[i].space == 0) k->memory->free_fn(k->user, x->taken[i]);
    else p->al.free_fn(x->taken[i], (size_t)p->stay[i].bytes, p->al.user);
  }
  if (x->temps != NULL) k->memory->free_fn(k->user, x->temps);
  return st;
}
