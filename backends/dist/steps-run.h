// ================================================================================================
// >>steps-run  graphs under a schedule
// Takes a plan of steps and the bindings of one call; gives places what they hold, runs the jobs,
// and returns what places hold of outputs.
// ================================================================================================

typedef struct eini_steps_exec {
  const ein_dist *d;
  const ein_run *run;
  eini_staged *worker;
  ein_dist_stats *stats;    // NULL: not counted
  eini_flow flow;
} eini_steps_exec;

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_steps_layout(const ein_dist *d, eini_steps_exec *x, char *mem) {
  size_t n = 0;
  x->worker = (eini_staged *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  eini_dist_layout_flow(d, &x->flow, mem, &n);
  for (int i = 0; i < d->width; i++) {
    eini_staged none;
    eini_staged *w = mem == NULL ? &none : &x->worker[i];
    memset(w, 0, sizeof *w);
    w->d = d;
    w->run = x->run;
    n += eini_steps_scratch(d, w, mem == NULL ? NULL : mem + n);
  }
  char *all = (char *)eini_dist_carve(mem, &n, eini_dist_clocked(d) ? 0 : d->temp_bytes, 1);
  for (int i = 0; i < d->width && mem != NULL; i++) x->worker[i].mem = all;
  return n;
}

// ---- jobs ----

// Tells who asks for events. level: see ein_dist_event.
static ein_status eini_steps_event(const eini_staged *x, int level, int worker, const eini_job *j,
                                   int64_t step, double begin) {
  const ein_dist *d = x->d;
  ein_dist_event v;
  if (d->desc.event_fn == NULL) return EIN_OK;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = (int)x->place;
  v.level = level;
  v.worker = worker;
  v.step = step;
  v.begin = begin;
  v.end = eini_dist_now(d);
  return d->desc.event_fn(d->desc.event_user, &v);
}

// Merges the block of a step into the partial result.
static ein_status eini_steps_join(eini_staged *x) {
  const eini_step_point *pt = &x->point;
  const eini_step_box *acc = &pt->box[x->stmt->noperand];
  const int rank = x->stmt->nfree;
  int64_t shape[EINI_NAMES_MAX];
  if (!pt->apart) return EIN_OK;
  if (x->e->folder == NULL)
    return eini_steps_merge_run(x, x->stmt->fold, pt->merge,
                                eini_steps_at(acc, rank, pt->lo, x->e->wide), pt->block.data);
  for (int r = 0; r < rank; r++) shape[r] = pt->hi[r] - pt->lo[r];
  eini_steps_states(x->e->folder, rank, shape, acc, pt->lo,
                    eini_steps_volume(rank, pt->lo, pt->hi), pt->block.data);
  return EIN_OK;
}

// Computes the block of a step, or its share, which are at hand.
static ein_status eini_steps_compute(eini_staged *x) {
  const eini_step_point *pt = &x->point;
  const eini_step_box *to = pt->apart ? &pt->block : &pt->box[x->stmt->noperand];
  void *out[4] = {NULL, NULL, NULL, NULL};
  out[0] = pt->to;
  if (x->e->folder != NULL) {
    eini_steps_identity(x, to);
    eini_states_at(x->e->folder, eini_steps_volume(x->stmt->nfree, to->lo, to->hi), to->data, out);
  }
  return eini_steps_execute(x, pt->plan, pt->in, out, pt->param);
}

// Zeros for all elements of a box at the place at hand.
static ein_status eini_steps_clear(const eini_staged *x, const eini_step_box *b, int rank,
                                   size_t size) {
  char zero[16] = {0};
  int64_t shape[EINI_NAMES_MAX], none[EINI_NAMES_MAX] = {0};
  const eini_dist_end from = eini_dist_end_of(EINI_AT_BOX, zero, none, 0);
  const eini_dist_end to = eini_dist_end_of(EINI_AT_BOX, b->data, b->stride, b->away);
  for (int r = 0; r < rank; r++) shape[r] = b->hi[r] - b->lo[r];
  if (b->data == NULL || eini_zrange_empty(rank, b->lo, b->hi)) return EIN_OK;
  return eini_own_carry(x->d, x->place, rank, shape, &to, &from, b->stride, none, size);
}

// What the point at hand fetched goes into its boxes.
static ein_status eini_steps_fetched(eini_staged *x, const eini_step_task *t, const eini_job *j,
                                     int worker) {
  const eini_stmt *s = x->stmt;
  const double begin = eini_dist_now(x->d);
  int received = 0;
  for (int k = 0; k < s->noperand && !eini_steps_one(x->d); k++) {
    const eini_tensor *e = &x->d->g->tensor[s->operand[k]];
    const eini_step_box *b = &x->point.box[k];
    if (x->w.nowners[k] > 0 && x->w.again[k] < 0 && eini_tour_due(&x->w, t->step, k, 0) &&
        eini_steps_zeros(x->d, s->operand[k]))
      EINI_TRY(eini_steps_clear(x, b, e->rank, ein_dtype_size(e->dtype)));
  }
  for (int64_t i = t->first; i < t->first + t->nmove; i++) {
    const eini_step_move *v = &x->e->move[i];
    if (v->kind == EINI_JOB_SEND) continue;
    received |= v->kind == EINI_JOB_RECEIVE;
    EINI_TRY(eini_steps_fetch(x, v, &x->point.box[v->access]));
  }
  return received ? eini_steps_event(x, EINI_STEPS_FETCHES, worker, j, t->step, begin) : EIN_OK;
}

// A block, a share of one, or what is behind shares.
static ein_status eini_steps_task_run(eini_staged *x, const eini_job *j, int worker) {
  const eini_step_task *t = &x->e->task[j->arg];
  const int64_t share = (j - x->d->jobs.job) - t->job - 1;
  eini_steps_goto(x, t->point);
  x->place = x->w.move.place;  // of a share, too
  eini_steps_boxes(x, t->step);
  if (j->kind == EINI_JOB_BLOCK) EINI_TRY(eini_steps_fetched(x, t, j, worker));
  const double begin = eini_dist_now(x->d);
  EINI_TRY(eini_steps_block(x, t, j->kind == EINI_JOB_BLOCK));
  if (x->point.plan < 0 || (j->kind == EINI_JOB_BLOCK && t->nshare > 0)) return EIN_OK;
  if (j->kind == EINI_JOB_JOIN) return eini_steps_join(x);
  if (j->kind == EINI_JOB_SHARE) {
    if (!eini_steps_share(x, t->step, share, t->nshare)) return EIN_OK;
    EINI_TRY(eini_steps_share_plan(x));
  }
  EINI_TRY(eini_steps_compute(x));
  if (j->kind == EINI_JOB_BLOCK) EINI_TRY(eini_steps_join(x));
  return eini_steps_event(x, -1, worker, j, t->step, begin);
}

// Posts a message. What it should hold may be missing: it is posted nevertheless.
static ein_status eini_steps_post(eini_steps_exec *x, int worker, const eini_job *j, int failed,
                                  ein_ticket *ticket) {
  eini_staged *w = &x->worker[worker];
  const ein_fabric *f = &x->d->fabric;
  const eini_step_move *v = &w->e->move[j->arg];
  const int home = v->access == w->stmt->noperand, send = v->kind == EINI_JOB_SEND;
  const int own = f->first + v->place;
  const double begin = eini_dist_now(x->d);
  ein_status st = EIN_OK;
  if (eini_dist_clocked(x->d))
    return send ? f->send_fn(f->user, own, v->peer, v->tag, NULL, (size_t)v->bytes, ticket)
                : f->recv_fn(f->user, own, v->peer, v->tag, NULL, (size_t)v->bytes, ticket);
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  if (send && !failed && home) st = eini_steps_homeward(w, v);
  else if (send && !failed) st = eini_steps_fetch(w, v, NULL);
  const eini_dist_end message = eini_steps_message(w, v);
  const eini_own_wire wire = {send, message.away, v->peer, v->group, v->turns, v->turn, own, v->tag,
                              v->bytes};
  const ein_status posted = eini_own_wired(x->d, &x->flow, &wire, message.data, ticket);
  if (posted != EIN_OK || st != EIN_OK || failed) return posted != EIN_OK ? posted : st;
  return send && home ? eini_steps_event(w, EINI_STEPS_SENDS, worker, j, v->step, begin)
                      : EIN_OK;
}

// Seconds of a job on the fabric's machine: a block, or what is merged where it arrives.
static double eini_steps_takes(eini_staged *x, const eini_job *j) {
  const ein_machine *m = x->d->fabric.machine;
  const eini_step_point *pt = &x->point;
  const eini_stmt_block b = eini_block_of(pt->lo, pt->hi, NULL);
  if (j->kind == EINI_JOB_ARRIVE && !x->e->whole)
    return eini_merge_seconds(m, (double)(x->e->move[j->arg].bytes / (int64_t)x->e->wide));
  if (j->kind != EINI_JOB_BLOCK) return 0;
  eini_steps_goto(x, x->e->task[j->arg].point);
  eini_tour_values(&x->w, x->e->task[j->arg].step, x->w.n->nstep);
  eini_loops_ranges(x->w.n, x->w.value, pt->lo, pt->hi);
  return eini_zrange_empty(x->stmt->nindex, pt->lo, pt->hi)
             ? 0 : eini_machine_cost(m, x->d->g, x->stmt, NULL, &b).seconds;
}

// On a clock: a job is over.
static ein_status eini_steps_job_over(void *user, const eini_job *j, double begin, double end) {
  const eini_steps_exec *x = (const eini_steps_exec *)user;
  const ein_dist *d = x->d;
  const eini_steps_stmt *e = &d->steps[j->stmt];
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = -1;
  v.begin = begin;
  v.end = end;
  eini_dist_timed(x->stats, v.place, j, begin, end);
  if (d->desc.event_fn == NULL || (j->kind != EINI_JOB_RECEIVE && j->kind != EINI_JOB_BLOCK &&
                                   (j->kind != EINI_JOB_ARRIVE || e->whole)))
    return EIN_OK;
  if (j->kind == EINI_JOB_ARRIVE) {
    v.step = e->move[j->arg].step;
    v.level = 0;
    v.operand = -1;
  } else if (j->kind == EINI_JOB_RECEIVE) {
    const eini_step_move *u = &e->move[j->arg];
    v.level = EINI_EVENT_MESSAGE;
    v.step = u->step;
    v.from = u->peer;
    v.operand = u->access == e->w.n->s->noperand ? -1 : u->access;
    v.bytes = u->bytes;
  } else {
    v.step = e->task[j->arg].step;
  }
  return d->desc.event_fn(d->desc.event_user, &v);
}

static ein_status eini_steps_job_run(void *user, int worker, const eini_job *j, int failed,
                                     ein_ticket *ticket) {
  eini_steps_exec *x = (eini_steps_exec *)user;
  eini_staged *w = &x->worker[worker];
  eini_steps_on(w, j->stmt);
  w->place = x->d->fabric.first + j->place;
  if (j->kind == EINI_JOB_RECEIVE || j->kind == EINI_JOB_SEND)
    return eini_steps_post(x, worker, j, failed, ticket);
  if (failed) return EIN_OK;
  if (eini_dist_clocked(x->d))
    return x->d->fabric.compute_fn(x->d->fabric.user, x->d->fabric.first + j->place, j->stmt,
                                   eini_steps_takes(w, j), ticket);
  if (j->kind == EINI_JOB_ARRIVE) return eini_steps_homeward(w, &w->e->move[j->arg]);
  if (j->kind == EINI_JOB_SUM) return eini_steps_sum_begin(w, j->arg);
  if (j->kind == EINI_JOB_FINISH) return eini_steps_sum_end(w, j->arg);
  if (j->kind != EINI_JOB_ZERO) return eini_steps_task_run(w, j, worker);
  const eini_tensor *t = &x->d->g->tensor[w->stmt->out];
  const eini_step_box b = eini_steps_home(w, w->stmt->out, j->arg);
  return eini_steps_clear(w, &b, t->rank, ein_dtype_size(t->dtype));
}

static void eini_steps_job_done(void *user, int worker, const eini_job *j) {
  (void)user, (void)worker, (void)j;
}

// ---- between the caller and places ----

// A tensor between a place and the memory of the caller.
typedef struct eini_steps_handing {
  const eini_staged *x;
  const eini_stmt *s;       // whose free indices the boxes are of
  int back;                 // from the place to the caller
  size_t size;
  eini_step_box place, caller;
} eini_steps_handing;

static ein_status eini_steps_give(void *user, const int64_t *lo, const int64_t *hi) {
  const eini_steps_handing *c = (const eini_steps_handing *)user;
  const int n = c->s->nfree;
  int64_t shape[EINI_NAMES_MAX], a[EINI_NAMES_MAX], b[EINI_NAMES_MAX];
  if (eini_zrange_empty(n, lo, hi)) return EIN_OK;
  for (int i = 0; i < n; i++) shape[i] = hi[i] - lo[i];
  const eini_dist_end p = eini_steps_written(c->s, &c->place, lo, c->size, a);
  const eini_dist_end w = eini_steps_written(c->s, &c->caller, lo, c->size, b);
  return eini_own_carry(c->x->d, c->x->place, n, shape, c->back ? &w : &p, c->back ? &p : &w,
                        c->back ? b : a, c->back ? a : b, c->size);
}

// What places hold of an input, from the caller, or, of an output, to it.
static ein_status eini_steps_hand(eini_staged *x, int t, eini_arena *a) {
  const ein_dist *d = x->d;
  const eini_tensor *e = &d->g->tensor[t];
  eini_steps_handing c;
  int64_t zero[EINI_NAMES_MAX] = {0}, shape[EINI_NAMES_MAX], stride[EINI_NAMES_MAX];
  eini_owners *o;
  int n;
  memset(&c, 0, sizeof c);
  c.x = x;
  c.back = e->role == EIN_ROLE_OUTPUT;
  c.size = ein_dtype_size(e->dtype);
  for (int r = 0; r < e->rank; r++) shape[r] = e->shape[r], stride[r] = d->tensor[t].stride[r];
  c.caller.lo = zero, c.caller.hi = shape, c.caller.stride = stride;
  c.caller.data = eini_dist_bound(d, x->run, t, 0);
  EINI_TRY(eini_schedule_owners(a, d->desc.schedule, t, &o, &n));
  if (c.back && eini_steps_zeros(d, t)) EINI_TRY(eini_steps_clear(x, &c.caller, e->rank, c.size));
  for (int64_t q = 0; q < eini_steps_memories(d); q++) {
    c.place = eini_steps_home(x, t, q);
    x->place = d->fabric.first + q;
    for (int i = 0; i < n && !d->home[(int64_t)t * eini_steps_memories(d) + q].own; i++) {
      c.s = o[i].s;
      EINI_TRY(eini_owners_boxes(a, d->g, &o[i], d->fabric.first + q, eini_steps_give, &c));
    }
  }
  return EIN_OK;
}

static ein_status eini_steps_hand_all(eini_staged *x, ein_role role) {
  const ein_graph *g = x->d->g;
  ein_status st = EIN_OK;
  for (int t = 0; t < g->ntensor && st == EIN_OK; t++) {
    eini_arena a;
    if (g->tensor[t].role != role || x->d->desc.blocks) continue;
    eini_arena_init(&a, &x->d->al);
    st = eini_steps_hand(x, t, &a);
    eini_arena_free(&a);
  }
  return st;
}

// What the places of this process did.
static void eini_steps_count(const ein_dist *d, ein_dist_stats *stats) {
  for (int k = 0; k < d->nstmt; k++) {
    for (int64_t i = 0; i < d->fabric.count; i++) {
      const int64_t *n = &d->steps[k].total[4 * i];
      const eini_dist_read r = {n[2], n[1], NULL};
      eini_dist_count(stats, k, d->fabric.first + i, n[0], &r);
      eini_dist_sent(stats, d->fabric.first + i, n[3]);
    }
  }
}

// Runs in `mem`, in which places have what they hold of inputs.
static ein_status eini_steps_run(eini_steps_exec *x, ein_dist_stats *stats) {
  x->flow.run_fn = eini_steps_job_run;
  x->flow.done_fn = eini_steps_job_done;
  x->flow.over_fn = eini_steps_job_over;
  x->flow.user = x;
  x->stats = stats;
  ein_status st = eini_flow_all(&x->flow, &x->d->executor);
  if (st == EIN_OK && !eini_dist_clocked(x->d))
    st = eini_steps_hand_all(&x->worker[0], EIN_ROLE_OUTPUT);
  st = eini_own_end(x->d, st);
  if (st == EIN_OK) eini_steps_count(x->d, stats);
  return eini_dist_failed(x->run, st, x->d->width, x->worker[0].error, sizeof *x->worker);
}

static ein_status eini_steps_begin(const ein_dist *d, const ein_run *run, char *mem,
                                   eini_steps_exec *x) {
  const uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  memset(x, 0, sizeof *x);
  x->d = d;
  x->run = run;
  (void)eini_steps_layout(d, x, mem + skew);
  return eini_dist_clocked(d) ? EIN_OK : eini_steps_hand_all(&x->worker[0], EIN_ROLE_INPUT);
}

// ---- plans ----

// Why a statement cannot be run so; NULL: it can.
static const char *eini_steps_reason(const ein_schedule *sc, int k) {
  const eini_stmt *s = &sc->g->stmt[k];
  const eini_loops *n = &sc->nest[k];
  int used[EINI_NAMES_MAX] = {0};
  int64_t coef;
  eini_owners o;
  memset(&o, 0, sizeof o);
  eini_schedule_home(sc, k, &o);
  if (n->loop == NULL) return "it has too many indices";
  if (o.d == NULL) return "nothing says where its result lies: place it";
  if (sc->g->ordered && !eini_order_exact(sc->g, s) && eini_loops_folds(n, n->nstep - 1))
    return "it is deterministic, and its fold would be cut";
  if (s->out_map.rows > EINI_NAMES_MAX || s->nfree > EINI_NAMES_MAX)
    return "its result has too many axes";
  for (int r = 0; r < s->out_map.rows && o.rows; r++) {
    const int i = eini_row_index(&s->out_map, r, &coef);
    if (eini_map_terms(&s->out_map, r) > 1 || (i >= 0 && used[i]++))
      return "its result is placed, and not written by an index for each axis";
  }
  return NULL;
}

// The peaks of the places of this process, which the machine of the schedule must have; other
// processes look after theirs.
static ein_status eini_steps_peaks(ein_ctx *ctx, ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  const eini_places own = {d->fabric.first, (int64_t)d->fabric.first + d->fabric.count};
  double *place = EINI_NEW(&d->arena, double, d->fabric.places);
  d->peak = EINI_NEW(&d->arena, int64_t, d->fabric.count);
  if (place == NULL || d->peak == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_schedule_rooms(&d->arena, s, own, d->desc.inputs, NULL, place));
  for (int q = 0; q < d->fabric.count; q++)
    d->peak[q] = (int64_t)place[d->fabric.first + q];
  for (int64_t q = own.from; q < own.to; q++)
    if (s->machine.memory > 0 && place[q] > s->machine.memory)
      return eini_dist_refuse(ctx, EIN_ERR_TOO_LARGE, "under the schedule a place has %.0f bytes "
                              "alive, more than the %.0f it may have", place[q],
                              s->machine.memory);
  return EIN_OK;
}

// Plans of all blocks, and what moves.
static ein_status eini_steps_noted(ein_dist *d) {
  const int64_t memories = eini_steps_memories(d);
  eini_steps_noting z;
  eini_arena a;
  eini_arena_init(&a, &d->al);
  memset(&z, 0, sizeof z);
  z.x.d = d;
  z.x.plans = &d->plans;
  const size_t bytes = eini_steps_scratch(d, &z.x, NULL);
  char *scratch = EINI_NEW(&a, char, bytes);
  for (int i = 0; i < 2; i++) z.tag[i] = EINI_NEW(&a, int32_t, memories * d->fabric.places);
  ein_status st = scratch == NULL || z.tag[0] == NULL || z.tag[1] == NULL ? EIN_ERR_NO_MEMORY
                                                                           : EIN_OK;
  if (st == EIN_OK) (void)eini_steps_scratch(d, &z.x, scratch);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_stmt_init(d, k);
  for (int t = 0; t < d->g->ntensor && st == EIN_OK; t++) st = eini_steps_tensor(d, t);
  if (st == EIN_OK) st = eini_steps_hulls(&a, &z);
  for (int k = 0; k < d->nstmt && st == EIN_OK; k++) st = eini_steps_derive(d, k, &z);
  if (st == EIN_OK) eini_steps_settle_inputs(d);
  d->spare = z.x.spare_bytes;
  eini_arena_free(&a);
  return st;
}

// Is the schedule of this graph, and for these places?
static ein_status eini_steps_fits(ein_ctx *ctx, const ein_dist *d) {
  const ein_schedule *s = d->desc.schedule;
  if (s->g != d->g) return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is of another "
                                                                  "graph");
  if (s->grid == NULL || s->grid->places != d->fabric.places)
    return eini_dist_refuse(ctx, EIN_ERR_ARGUMENT, "the schedule is not for the fabric's places");
  for (int k = 0; k < d->nstmt; k++) {
    const char *why = eini_steps_reason(s, k);
    if (why != NULL)
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "statement '%.60s' cannot be run by a "
                              "schedule: %s", d->g->tensor[d->g->stmt[k].out].name, why);
  }
  return EIN_OK;
}

static ein_status eini_steps_prepare(ein_ctx *ctx, ein_dist *d) {
  const int64_t memories = eini_steps_memories(d);
  ein_dist_stats made;
  memset(&made, 0, sizeof made);
  made.nstmt = d->nstmt;
  made.stmt_bytes = EINI_NEW(&d->arena, int64_t, d->nstmt);
  d->steps = EINI_NEW(&d->arena, eini_steps_stmt, d->nstmt);
  d->home = EINI_NEW(&d->arena, eini_step_home, d->g->ntensor * memories);
  d->start = EINI_NEW(&d->arena, int64_t, memories);
  if (!d->fabric.shared) d->kept = EINI_NEW(&d->arena, char *, 1);
  if (made.stmt_bytes == NULL || d->steps == NULL || d->home == NULL || d->start == NULL ||
      (!d->fabric.shared && d->kept == NULL))
    return EIN_ERR_NO_MEMORY;
  ein_status st = eini_steps_noted(d);
  if (st == EIN_OK) st = eini_steps_memory_all(d, 1);
  if (st == EIN_OK) st = eini_steps_jobs_make(d);
  if (st == EIN_ERR_TOO_LARGE)
    return eini_dist_refuse(ctx, st, "there are too many points and steps to run");
  EINI_TRY(st);
  EINI_TRY(eini_steps_peaks(ctx, d));
  eini_steps_count(d, &made);
  for (int k = 0; k < d->nstmt; k++) d->stmt[k].bytes = made.stmt_bytes[k];
  d->info.tasks = made.tasks;
  d->info.messages = made.messages;
  d->info.bytes = made.bytes;
  return EIN_OK;
}
