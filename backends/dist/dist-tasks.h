// ================================================================================================
// >>dist-tasks  what jobs do
// Takes jobs as they are ready; calls the sections above, counts, and tells of each.
// ================================================================================================

enum { EINI_EVENT_MESSAGE = -4 };  // see ein_dist_event

// What a place did and received for statement k; what it sent is told where it is known.
static void eini_dist_count(ein_dist_stats *s, int k, int64_t place, int64_t tasks,
                            const eini_dist_read *r) {
  if (s == NULL) return;
  s->tasks += tasks;
  s->bytes += r->bytes;
  s->messages += r->messages;
  if (s->stmt_bytes != NULL && k < s->nstmt) s->stmt_bytes[k] += r->bytes;
  if (s->place == NULL || place >= s->nplace) return;
  s->place[place].tasks += tasks;
  s->place[place].received_bytes += r->bytes;
  s->place[place].messages += r->messages;
}

// A job is over on a clock.
static void eini_dist_timed(ein_dist_stats *s, int64_t place, const eini_job *j, double begin,
                            double end) {
  if (s == NULL) return;
  if (end > s->seconds) s->seconds = end;
  if (j->kind == EINI_JOB_RECEIVE || j->kind == EINI_JOB_SEND) return;
  if (s->place != NULL && place < s->nplace) s->place[place].busy += end - begin;
}

static void eini_dist_sent(ein_dist_stats *s, int64_t place, int64_t bytes) {
  if (s != NULL && s->place != NULL && place < s->nplace) s->place[place].sent_bytes += bytes;
}

// A block or a merge; w->read: what it reads from other places in a memory that is shared.
static ein_status eini_dist_task_run(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                     int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const int merge = j->kind == EINI_JOB_MERGE, k = j->stmt;
  if (d->fabric.shared && merge) return eini_dist_merge(x, w, k, q, j->arg, &w->read);
  if (d->fabric.shared) {
    EINI_TRY(eini_dist_compute(x, w, k, q));
    if (x->stats != NULL) eini_dist_task_bytes(d, e, q, &w->room, &w->read);
    return EIN_OK;
  }
  EINI_TRY(merge ? eini_own_merge(x, w, k, q, j->arg) : eini_own_compute(x, w, k, q));
  const int whole = eini_space_partial(&e->space, q) == 0 &&
                    (merge ? j->arg == e->levels - 1 : e->space.nagg == 1);
  const int output = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT;
  return whole && output ? eini_own_output(x, w, k, q) : EIN_OK;
}

// Seconds of a block, or a merge, on the fabric's machine.
static double eini_dist_takes(const ein_dist *d, const eini_job *j, int64_t q, eini_dist_room *m) {
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  if (j->kind == EINI_JOB_ZERO) return 0;
  if (j->kind == EINI_JOB_MERGE)
    return eini_merge_seconds(d->fabric.machine, (double)eini_dist_elements(&e->space, q, m));
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  return eini_machine_cost(d->fabric.machine, d->g, e->s, e->again, &b).seconds;
}

// On a clock: a job is over.
static ein_status eini_dist_job_over(void *user, const eini_job *j, double begin, double end) {
  const eini_dist_exec *x = (const eini_dist_exec *)user;
  const ein_dist *d = x->d;
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.begin = begin;
  v.end = end;
  eini_dist_timed(x->stats, v.place, j, begin, end);
  if (j->kind == EINI_JOB_SEND || j->kind == EINI_JOB_ZERO || d->desc.event_fn == NULL)
    return EIN_OK;
  if (j->kind == EINI_JOB_RECEIVE) {
    const eini_dist_moved *u = &d->copies->move[j->arg];
    v.level = EINI_EVENT_MESSAGE;
    v.from = u->peer;
    v.operand = u->operand;
    v.bytes = u->bytes;
  }
  return d->desc.event_fn(d->desc.event_user, &v);
}

static ein_status eini_dist_job_run(void *user, int worker, const eini_job *j, int failed,
                                    ein_ticket *ticket) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  eini_dist_worker *w = &x->worker[worker];
  const ein_dist *d = x->d;
  ein_dist_event v;
  if (j->kind == EINI_JOB_RECEIVE) return eini_own_receive(x, j, ticket);
  if (j->kind == EINI_JOB_SEND) return eini_own_send(x, w, j, failed, ticket);
  if (failed) return EIN_OK;
  if (eini_dist_clocked(d))
    return d->fabric.compute_fn(d->fabric.user, d->fabric.first + j->place, j->stmt,
                                eini_dist_takes(d, j, d->fabric.first + j->place, &w->room),
                                ticket);
  if (j->kind == EINI_JOB_ZERO) return eini_dist_zero(x, d->stmt[j->stmt].s->out, &w->room), EIN_OK;
  memset(&v, 0, sizeof v);
  memset(&w->read, 0, sizeof w->read);
  w->read.sent = w->sent;
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.worker = worker;
  v.begin = eini_dist_now(d);
  EINI_TRY(eini_dist_task_run(x, w, j, v.place));
  v.end = eini_dist_now(d);
  return d->desc.event_fn == NULL ? EIN_OK : d->desc.event_fn(d->desc.event_user, &v);
}

static void eini_dist_job_done(void *user, int worker, const eini_job *j) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  const int64_t q = x->d->fabric.first + j->place;
  eini_dist_read r = {0, 1, NULL};
  if (j->kind == EINI_JOB_BLOCK || j->kind == EINI_JOB_MERGE)
    eini_dist_count(x->stats, j->stmt, q, 1, &x->worker[worker].read);
  if (j->kind != EINI_JOB_RECEIVE && j->kind != EINI_JOB_SEND) return;
  r.bytes = x->d->copies->move[j->arg].bytes;
  if (j->kind == EINI_JOB_SEND) eini_dist_sent(x->stats, q, r.bytes);
  else eini_dist_count(x->stats, j->stmt, q, 0, &r);
}
