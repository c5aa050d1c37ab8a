// ================================================================================================
// >>steps-jobs  memory and jobs of places under a schedule
// Takes tasks and messages of steps; gives where things lie in the memory of each place, jobs, and
// what each waits for. Messages of a step have the memory of those two steps before, so that they
// are under way while the step before is computed.
// ================================================================================================

// ---- memory ----

enum { EINI_STEPS_TENSOR, EINI_STEPS_INBOX, EINI_STEPS_BOXES };

typedef struct eini_steps_item {
  int kind, of;             // a tensor, or a statement
} eini_steps_item;

// The items of a memory, at home or in the provider's, in the order in which they come to be.
// Returns how many.
static int eini_steps_items(ein_dist *d, int64_t memory, int away, eini_item *item,
                            eini_steps_item *is) {
  const int64_t memories = eini_steps_memories(d), side = eini_steps_side(d, memory, away);
  int n = 0;
  for (int k = 0; k < d->nstmt; k++) {
    for (int j = k; j <= k + 1 && j < d->nstmt; j++) {  // messages, while those before compute
      const int early = j > 0 && !d->desc.no_overlap ? j - 1 : j;
      if (early != k) continue;
      item[n].from = k, item[n].to = j;
      item[n].bytes = d->steps[j].inbox_bytes[side];
      item[n].at = &d->steps[j].inbox_at[side];
      is[n].kind = EINI_STEPS_INBOX, is[n].of = j;
      n += item[n].bytes > 0;
    }
    for (int t = 0; t < d->g->ntensor; t++) {
      eini_step_home *h = &d->home[t * memories + memory];
      eini_rooms_life(d->g, t, &item[n].from, &item[n].to);
      if (item[n].from != k || h->own || h->box.away != away) continue;
      item[n].to--;
      item[n].bytes = h->bytes;
      item[n].at = &h->at;
      is[n].kind = EINI_STEPS_TENSOR, is[n].of = t;
      n += h->bytes > 0;
    }
    item[n].from = item[n].to = k;
    item[n].bytes = d->steps[k].boxes_bytes[side];
    item[n].at = &d->steps[k].boxes_at[side];
    is[n].kind = EINI_STEPS_BOXES, is[n].of = k;
    n += item[n].bytes > 0;
  }
  for (int i = 0; i < n && d->desc.no_reuse; i++) item[i].to = d->nstmt;
  return n;
}

// Job `to` waits until nobody needs an item any more.
static void eini_steps_wait_users(ein_dist *d, const eini_steps_item *old, int64_t i, int64_t to) {
  const eini_dist_tensor *t = old->kind == EINI_STEPS_TENSOR ? &d->tensor[old->of] : NULL;
  if (t == NULL) eini_jobs_edge(&d->jobs, d->steps[old->of].done + i, to);
  for (int u = 0; t != NULL && u < t->ndefine; u++)
    eini_jobs_edge(&d->jobs, d->steps[t->define[u]].done + i, to);
  for (int u = 0; t != NULL && u < t->nread; u++)
    eini_jobs_edge(&d->jobs, d->steps[t->read[u]].done + i, to);
}

// Memory i has so many bytes at home, or in the provider's memory.
static ein_status eini_steps_memory_has(ein_dist *d, int64_t i, int away, int64_t bytes) {
  bytes = eini_dist_pad(bytes);
  if (away) {
    d->held_bytes[i] = bytes;
    d->info.away_bytes = eini_max64(d->info.away_bytes, bytes);
    if (eini_add_overflow(bytes, d->temp_bytes - d->start[i], &bytes)) return EIN_ERR_TOO_LARGE;
    if ((uint64_t)bytes > SIZE_MAX / 4) return EIN_ERR_TOO_LARGE;
  } else {
    d->start[i] = d->temp_bytes;
    if (eini_add_overflow(d->temp_bytes, bytes, &d->temp_bytes)) return EIN_ERR_TOO_LARGE;
  }
  if (!d->fabric.shared) d->info.place_bytes = eini_max64(d->info.place_bytes, bytes);
  return EIN_OK;
}

typedef struct eini_steps_laying {
  eini_item *item;
  eini_steps_item *is;
  int *alive;
  eini_reuse r;
} eini_steps_laying;

// Jobs that bring an item of memory i to be wait for who had its ranges before.
static void eini_steps_memory_waits(ein_dist *d, int64_t i, eini_steps_laying *z, int n) {
  z->r.n = 0;
  for (int k = 0, old; k < n; k++) {
    const eini_item *x = &z->item[k];
    const int of = z->is[k].of, kind = z->is[k].kind;
    const int64_t to = kind == EINI_STEPS_INBOX ? d->steps[of].inbox + i
                       : kind == EINI_STEPS_BOXES ? d->steps[of].boxes + i
                       : d->tensor[of].ndefine > 0 && d->tensor[of].define[0] < d->nstmt
                           ? d->steps[d->tensor[of].define[0]].room + i : -1;
    while ((old = eini_reuse_take(&z->r, *x->at, *x->at + x->bytes, k)) >= 0)
      if (to >= 0) eini_steps_wait_users(d, &z->is[old], i, to);
  }
}

// Lays out each memory (place), or waits for what had its ranges before.
static ein_status eini_steps_memory_all(ein_dist *d, int place) {
  const int64_t most = (int64_t)d->g->ntensor + 2 * (int64_t)d->nstmt + 1;
  eini_steps_laying z;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  z.item = EINI_NEW(&a, eini_item, most);
  z.is = EINI_NEW(&a, eini_steps_item, most);
  z.alive = EINI_NEW(&a, int, most);
  ein_status st = z.item == NULL || z.is == NULL || z.alive == NULL ||
                  !eini_reuse_init(&a, most, &z.r) ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int64_t i = 0; i < eini_steps_memories(d); i++) {
    for (int away = 0; away <= (d->away != NULL) && st == EIN_OK; away++) {
      const int n = eini_steps_items(d, i, away, z.item, z.is);
      int64_t bytes = 0;
      if (!place) eini_steps_memory_waits(d, i, &z, n);
      else st = eini_items_place(z.item, n, 0, z.alive, &bytes);
      if (place && st == EIN_OK) st = eini_steps_memory_has(d, i, away, bytes);
    }
  }
  if (st == EIN_OK && (uint64_t)d->temp_bytes > SIZE_MAX / 4) st = EIN_ERR_TOO_LARGE;
  eini_arena_free(&a);
  return st;
}

// ---- jobs ----

typedef struct eini_steps_jobs {
  ein_dist *d;
  int k;                    // the statement at hand
  eini_steps_stmt *e;
  int64_t *last, *end;      // by point: its task before, and after which the next one may begin
  int64_t *chain;           // by memory: after which a partial result is merged
  int64_t **turn;           // by statement: its moves in the order of their jobs
} eini_steps_jobs;

// The moves of a statement as their jobs come: in a step first what is fetched.
static ein_status eini_steps_turns(eini_arena *a, const ein_dist *d, int k, int64_t **turn) {
  const eini_steps_stmt *e = &d->steps[k];
  eini_turns x = {0, EINI_NEW(a, eini_ranked, e->nmove)};
  *turn = EINI_NEW(a, int64_t, e->nmove);
  if (*turn == NULL || x.heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < e->nmove; i++) {
    const eini_step_move *v = &e->move[i];
    const int64_t own = d->fabric.first + v->place, send = v->kind == EINI_JOB_SEND;
    eini_turns_add(&x, &d->fabric, 2 * v->step + (v->access == e->w.n->s->noperand),
                   send ? own : v->peer, send ? v->peer : own, i);
  }
  for (int64_t i = 0; i < e->nmove; i++) (*turn)[i] = eini_heap_pop(x.heap, &x.n).what;
  return EIN_OK;
}

// The moves and tasks of a statement, step by step: what is fetched, tasks, what goes home. turn:
// NULL, or the order of moves.
static void eini_steps_each(eini_steps_jobs *z, const int64_t *turn,
                            void (*move)(eini_steps_jobs *z, eini_step_move *v, int64_t i),
                            void (*task)(eini_steps_jobs *z, eini_step_task *t, int64_t i)) {
  eini_steps_stmt *e = z->e;
  const int n = e->w.n->s->noperand;
  int64_t v = 0, q = 0;
  while (v < e->nmove || q < e->ntask) {
    const int64_t step = q == e->ntask || (v < e->nmove && e->move[v].step < e->task[q].step)
                             ? e->move[v].step : e->task[q].step;
    for (; v < e->nmove && e->move[v].step == step && e->move[v].access < n; v++)
      move(z, &e->move[turn == NULL ? v : turn[v]], turn == NULL ? v : turn[v]);
    for (; q < e->ntask && e->task[q].step == step; q++) task(z, &e->task[q], q);
    for (; v < e->nmove && e->move[v].step == step && e->move[v].access == n; v++)
      move(z, &e->move[turn == NULL ? v : turn[v]], turn == NULL ? v : turn[v]);
  }
}

static void eini_steps_number_move(eini_steps_jobs *z, eini_step_move *v, int64_t i) {
  eini_jobs *j = &z->d->jobs;
  const int home = v->access == z->e->w.n->s->noperand;
  v->job = (int32_t)(j->n & INT32_MAX);
  if (v->kind != EINI_JOB_NONE)
    (void)eini_jobs_add(j, (eini_job_kind)v->kind, z->k, v->place, i);
  if (home && v->kind != EINI_JOB_SEND)
    (void)eini_jobs_add(j, EINI_JOB_ARRIVE, z->k, v->place, i);
}

// The jobs of a task: a block, or what is before its shares, these, and what is behind.
static void eini_steps_number_task(eini_steps_jobs *z, eini_step_task *t, int64_t i) {
  eini_jobs *j = &z->d->jobs;
  const int64_t place = eini_grid_place(z->e->w.n->grid, t->point) - z->d->fabric.first;
  t->job = eini_jobs_add(j, EINI_JOB_BLOCK, z->k, place, i);
  for (int k = 0; k < t->nshare; k++) (void)eini_jobs_add(j, EINI_JOB_SHARE, z->k, place + k, i);
  if (t->nshare > 0) (void)eini_jobs_add(j, EINI_JOB_JOIN, z->k, place, i);
  if (t->ends) (void)eini_jobs_add(j, EINI_JOB_GATE, z->k, place, 0);  // its result is away
}

static int64_t eini_steps_last(const eini_step_task *t) {
  return t->job + (t->nshare > 0 ? t->nshare + 1 : 0);
}

static int32_t eini_steps_gates(eini_steps_jobs *z, eini_job_kind kind) {
  const int64_t n = eini_steps_memories(z->d);
  const int32_t first = (int32_t)(z->d->jobs.n & INT32_MAX);
  for (int64_t i = 0; i < n; i++) (void)eini_jobs_add(&z->d->jobs, kind, z->k, i, i);
  return first;
}

static void eini_steps_number(void *user) {
  eini_steps_jobs *z = (eini_steps_jobs *)user;
  ein_dist *d = z->d;
  for (z->k = 0; z->k < d->nstmt; z->k++) {
    eini_steps_stmt *e = z->e = &d->steps[z->k];
    const int t = e->w.n->s->out, first = d->tensor[t].define[0] == z->k;
    e->room = first ? eini_steps_gates(z, EINI_JOB_GATE) : -1;
    e->zero = first && eini_steps_zeros(d, t) ? eini_steps_gates(z, EINI_JOB_ZERO) : -1;
    e->boxes = eini_steps_gates(z, EINI_JOB_GATE);
    e->inbox = eini_steps_gates(z, EINI_JOB_GATE);
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      e->over[i] = (int32_t)(d->jobs.n & INT32_MAX);
      for (int64_t r = 0; r < e->nround[i]; r++)
        (void)eini_jobs_add(&d->jobs, EINI_JOB_GATE, z->k, i, 0);
    }
    e->sums = e->whole ? -1 : eini_steps_gates(z, EINI_JOB_SUM);
    eini_steps_each(z, z->turn[z->k], eini_steps_number_move, eini_steps_number_task);
    e->finish = e->whole ? -1 : eini_steps_gates(z, EINI_JOB_FINISH);
    e->stored = eini_steps_gates(z, EINI_JOB_GATE);
    e->done = eini_steps_gates(z, EINI_JOB_GATE);
  }
}

// Job `to` waits for what memory i holds of a tensor.
static void eini_steps_wait_tensor(const eini_steps_jobs *z, int t, int64_t i, int64_t to) {
  const eini_dist_tensor *x = &z->d->tensor[t];
  for (int u = 0; u < x->ndefine && x->define[u] < z->d->nstmt; u++)
    eini_jobs_edge(&z->d->jobs, z->d->steps[x->define[u]].stored + i, to);
}

// Until the result of the statement at hand may be written there.
static void eini_steps_wait_room(const eini_steps_jobs *z, int64_t i, int64_t to) {
  const eini_steps_stmt *e = &z->d->steps[z->d->tensor[z->e->w.n->s->out].define[0]];
  eini_jobs_edge(&z->d->jobs, (e->zero >= 0 ? e->zero : e->room) + i, to);
}

// What comes home is there, or merged behind what came before.
static void eini_steps_wait_home(eini_steps_jobs *z, int64_t i, int64_t job) {
  const eini_steps_stmt *e = z->e;
  eini_jobs *j = &z->d->jobs;
  eini_jobs_edge(j, job, e->done + i);
  if (e->whole) {
    eini_steps_wait_room(z, i, job);
    eini_jobs_edge(j, job, e->stored + i);
  } else {
    eini_jobs_edge(j, z->chain[i], job);
    z->chain[i] = job;
  }
}

static void eini_steps_wait_move(eini_steps_jobs *z, eini_step_move *v, int64_t number) {
  const ein_dist *d = z->d;
  eini_steps_stmt *e = z->e;
  eini_jobs *j = &z->d->jobs;
  const int64_t i = eini_steps_memory(d, d->fabric.first + v->place), point = v->point - e->first;
  const int home = v->access == e->w.n->s->noperand, rounds = d->desc.no_overlap ? 1 : 2;
  (void)number;
  if (v->kind != EINI_JOB_NONE) {
    const int64_t over = e->over[i] + v->round;
    eini_jobs_edge(j, v->round < rounds ? e->inbox + i : over - rounds, v->job);
    eini_jobs_edge(j, v->job, over);
    eini_jobs_edge(j, v->job, e->done + i);
    if (home && v->kind == EINI_JOB_RECEIVE) eini_jobs_edge(j, v->job + 1, over);
  }
  if (!home && v->kind == EINI_JOB_SEND)
    eini_steps_wait_tensor(z, e->w.n->s->operand[v->access], i, v->job);
  if (!home) return;
  if (v->kind != EINI_JOB_RECEIVE) {
    eini_jobs_edge(j, z->last[point], v->job);
    eini_jobs_edge(j, v->job, z->end[point]);
  } else {
    eini_jobs_edge(j, v->job, v->job + 1);
  }
  if (v->kind != EINI_JOB_SEND) eini_steps_wait_home(z, i, v->job + (v->kind == EINI_JOB_RECEIVE));
}

static void eini_steps_wait_task(eini_steps_jobs *z, eini_step_task *t, int64_t number) {
  const ein_dist *d = z->d;
  eini_steps_stmt *e = z->e;
  const eini_stmt *s = e->w.n->s;
  eini_jobs *j = &z->d->jobs;
  const int64_t i = eini_steps_memory(d, eini_grid_place(e->w.n->grid, t->point));
  const int64_t point = t->point - e->first, last = eini_steps_last(t);
  int32_t round = -1;
  (void)number;
  eini_jobs_edge(j, z->end[point] >= 0 ? z->end[point] : e->boxes + i, t->job);
  for (int64_t m = t->first; m < t->first + t->nmove; m++) {
    const eini_step_move *v = &e->move[m];
    if (v->kind == EINI_JOB_SEND) continue;
    if (v->kind == EINI_JOB_NONE) {
      eini_steps_wait_tensor(z, s->operand[v->access], i, t->job);
      continue;
    }
    eini_jobs_edge(j, v->job, t->job);
    round = v->round;
  }
  if (round >= 0) eini_jobs_edge(j, t->job, e->over[i] + round);
  for (int k = 0; k < s->noperand && eini_steps_one(d); k++)
    eini_steps_wait_tensor(z, s->operand[k], i, t->job);
  for (int k = 1; k <= t->nshare; k++) {
    eini_jobs_edge(j, t->job, t->job + k);
    eini_jobs_edge(j, t->job + k, last);
  }
  eini_jobs_edge(j, last, e->done + i);
  z->last[point] = z->end[point] = last;
  if (!t->ends) return;
  z->end[point] = last + 1;
  eini_jobs_edge(j, last, last + 1);
}

static ein_status eini_steps_wait(void *user) {
  eini_steps_jobs *z = (eini_steps_jobs *)user;
  ein_dist *d = z->d;
  eini_jobs *j = &d->jobs;
  for (z->k = 0; z->k < d->nstmt; z->k++) {
    eini_steps_stmt *e = z->e = &d->steps[z->k];
    for (int64_t i = 0; i < e->npoint; i++) z->end[i] = -1;
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      z->chain[i] = e->sums + i;
      if (e->zero >= 0) eini_jobs_edge(j, e->room + i, e->zero + i);
      if (e->zero >= 0) eini_jobs_edge(j, e->zero + i, e->done + i);
      if (!e->whole) eini_jobs_edge(j, e->boxes + i, e->sums + i);
    }
    eini_steps_each(z, NULL, eini_steps_wait_move, eini_steps_wait_task);
    for (int64_t i = 0; i < eini_steps_memories(d); i++) {
      if (!e->whole) eini_jobs_edge(j, z->chain[i], e->finish + i);
      if (!e->whole) eini_jobs_edge(j, e->finish + i, e->done + i);
      if (!e->whole) eini_jobs_edge(j, e->finish + i, e->stored + i);
      eini_steps_wait_room(z, i, e->whole ? e->stored + i : e->finish + i);
    }
  }
  return eini_steps_memory_all(d, 0);
}

static ein_status eini_steps_jobs_make(ein_dist *d) {
  eini_steps_jobs z;
  eini_arena a;
  int64_t most = 1;
  memset(&z, 0, sizeof z);
  z.d = d;
  for (int k = 0; k < d->nstmt; k++) most = eini_max64(most, d->steps[k].npoint);
  eini_arena_init(&a, &d->al);
  z.last = EINI_NEW(&a, int64_t, most);
  z.end = EINI_NEW(&a, int64_t, most);
  z.chain = EINI_NEW(&a, int64_t, eini_steps_memories(d));
  z.turn = EINI_NEW(&a, int64_t *, d->nstmt);
  ein_status st = z.last == NULL || z.end == NULL || z.chain == NULL || z.turn == NULL
                      ? EIN_ERR_NO_MEMORY : EIN_OK;
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_turns(&a, d, k, &z.turn[k]);
  if (st == EIN_OK)
    st = eini_jobs_make(&d->arena, &d->jobs, eini_steps_number, eini_steps_wait, &z);
  eini_arena_free(&a);
  return st;
}
