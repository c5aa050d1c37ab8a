// ================================================================================================
// >>dist-flow  the threads fabric: tasks run as their inputs are ready
// Takes a laid-out run; any number of threads take ready tasks from one locked set, those of early
// statements first, a thread's own places before others. No thread waits while a task is ready.
// ================================================================================================

#if defined(__unix__) || defined(__APPLE__)
#define EINI_DIST_THREADS 1
#include <pthread.h>
#else
#define EINI_DIST_THREADS 0
#endif

#if EINI_DIST_THREADS

struct eini_dist_flow {
  pthread_mutex_t lock;
  pthread_cond_t work;
  int sleepers, width;
  int lowest;               // no statement before has a ready task
  int64_t left;             // jobs of all statements not yet done
  ein_status status;        // the first failure: nobody takes another task
};

// With the lock: the task's next job may run.
static void eini_flow_ready(eini_dist_exec *x, int k, int64_t q, int level) {
  eini_dist_task *t = &x->task[x->d->stmt[k].first + q];
  t->level = level;
  t->ready = 1;
  x->ready[k]++;
  if (k < x->flow->lowest) x->flow->lowest = k;
}

static void eini_flow_release(eini_dist_exec *x, int k, int64_t q) {
  if (--x->task[x->d->stmt[k].first + q].wait == 0) eini_flow_ready(x, k, q, EINI_DIST_BLOCK);
}

// With the lock: takes a ready task, if there is one.
static int eini_flow_take(eini_dist_exec *x, int worker, int *stmt, int64_t *place, int *level) {
  struct eini_dist_flow *f = x->flow;
  int k = f->lowest;
  while (k < x->d->nstmt && x->ready[k] == 0) k++;
  f->lowest = k;
  if (k == x->d->nstmt) return 0;
  const eini_dist_stmt *e = &x->d->stmt[k];
  int64_t found = -1;
  for (int64_t q = 0; q < e->space.ntask; q++) {
    if (!x->task[e->first + q].ready) continue;
    if (found < 0) found = q;
    if (q % f->width != worker) continue;
    found = q;
    break;
  }
  x->ready[k]--;
  x->task[e->first + found].ready = 0;
  *stmt = k;
  *place = found;
  *level = x->task[e->first + found].level;
  return 1;
}

// Tasks of statement r that read block q of statement k through operand o, into w->places.
static int64_t eini_flow_readers(const eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                 int r, int o) {
  const eini_dist_stmt *e = &x->d->stmt[r];
  const eini_space *block = &x->d->stmt[k].space;
  eini_dist_room *m = &w->room;
  eini_dist_near near;
  int64_t n = 0;
  if (e->s->operand[o] != x->d->stmt[k].s->out || eini_operand_first(e->s, o) < o) return 0;
  eini_dist_block_hull(&x->d->stmt[k], q, m);
  int more = eini_dist_near_begin(&e->space, &e->s->proj[o], e->s->nindex, m->from, m->to, m,
                                  &near);
  for (; more; more = eini_dist_near_next(&near)) {
    int64_t place = eini_dist_near_place(&e->space, &near);
    if (!eini_dist_box(e, place, o, m)) continue;
    if (eini_dist_overlap(block, q, m->from, m->to, m) > 0) w->places[n++] = place;
  }
  return n;
}

// A block is there: whoever reads it waits for one thing less.
static void eini_flow_block_done(eini_dist_exec *x, int worker, int k, int64_t q) {
  const eini_dist_tensor *t = &x->d->tensor[x->d->stmt[k].s->out];
  eini_dist_worker *w = &x->worker[worker];
  for (int u = 0; u < t->nread; u++) {
    int r = t->read[u];
    for (int o = 0; o < x->d->stmt[r].s->noperand; o++) {
      int64_t n = eini_flow_readers(x, w, k, q, r, o);
      if (n == 0) continue;
      pthread_mutex_lock(&x->flow->lock);
      for (int64_t i = 0; i < n; i++) eini_flow_release(x, r, w->places[i]);
      pthread_mutex_unlock(&x->flow->lock);
    }
  }
}

// A partial result is there, merged up to level: the second of two to arrive starts their merge. 1:
// the block is complete.
static int eini_flow_arrive(eini_dist_exec *x, int k, int64_t q, int level) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  int64_t part = eini_space_partial(&e->space, q), step = (int64_t)1 << level;
  for (; step < e->space.nagg; level++, step *= 2) {
    int64_t left = part & ~(2 * step - 1);
    if (left + step >= e->space.nagg) continue;  // alone at this level
    q = eini_space_partner(&e->space, q, left);
    eini_dist_task *t = &x->task[e->first + q];
    if (t->arrived >> level & 1) eini_flow_ready(x, k, q, level);
    t->arrived |= (uint32_t)1 << level;
    return 0;
  }
  return 1;
}

// With the lock: a job of statement k is done; at its last one, those that reuse its memory go on.
static void eini_flow_stmt_done(eini_dist_exec *x, int k) {
  const ein_dist *d = x->d;
  x->flow->left--;
  if (--x->left[k] > 0) return;
  for (int u = k + 1; u < d->nstmt; u++) {
    if (!(d->after[(int64_t)u * d->words + k / 64] >> k % 64 & 1)) continue;
    int zeros = d->stmt[u].s->rest == EIN_REST_ZERO;
    if (zeros && --x->zero[u] == 0) eini_flow_ready(x, u, 0, EINI_DIST_ZERO);
    for (int64_t q = 0; !zeros && q < d->stmt[u].space.ntask; q++) eini_flow_release(x, u, q);
  }
}

// With the lock: the zeros of statement k's tensor are there. Its tasks and those of its readers,
// which may read nothing but zeros, go on.
static void eini_flow_zeros_done(eini_dist_exec *x, int worker, int k) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  const eini_dist_tensor *t = &x->d->tensor[e->s->out];
  for (int64_t q = 0; q < e->space.ntask; q++) eini_flow_release(x, k, q);
  for (int u = 0; u < t->nread; u++) {
    const eini_dist_stmt *r = &x->d->stmt[t->read[u]];
    for (int o = 0; o < r->s->noperand; o++) {
      if (r->s->operand[o] != e->s->out || eini_operand_first(r->s, o) < o) continue;
      for (int64_t q = 0; q < r->space.ntask; q++)
        if (eini_dist_box(r, q, o, &x->worker[worker].room))
          eini_flow_release(x, t->read[u], q);
    }
  }
}

// Everything that follows from a job that is done.
static void eini_flow_finish(eini_dist_exec *x, int worker, int k, int64_t q, int level) {
  struct eini_dist_flow *f = x->flow;
  const eini_space *s = &x->d->stmt[k].space;
  int whole = level != EINI_DIST_ZERO && s->nagg == 1;
  if (!whole && level != EINI_DIST_ZERO) {
    pthread_mutex_lock(&f->lock);
    whole = eini_flow_arrive(x, k, q, level + 1);
    pthread_mutex_unlock(&f->lock);
  }
  if (whole) eini_flow_block_done(x, worker, k, eini_space_partner(s, q, 0));
  pthread_mutex_lock(&f->lock);
  if (level == EINI_DIST_ZERO) eini_flow_zeros_done(x, worker, k);
  eini_flow_stmt_done(x, k);
}

static void eini_flow_worker(void *arg, int worker) {
  eini_dist_exec *x = (eini_dist_exec *)arg;
  struct eini_dist_flow *f = x->flow;
  int k, level;
  eini_dist_read r;
  int64_t q;
  pthread_mutex_lock(&f->lock);
  while (f->left > 0 && f->status == EIN_OK) {
    if (!eini_flow_take(x, worker, &k, &q, &level)) {
      f->sleepers++;
      pthread_cond_wait(&f->work, &f->lock);
      f->sleepers--;
      continue;
    }
    pthread_mutex_unlock(&f->lock);
    ein_status st = eini_dist_job_run(x, worker, k, q, level, &r);
    if (st == EIN_OK) {
      eini_flow_finish(x, worker, k, q, level);  // returns with the lock
      if (level != EINI_DIST_ZERO) eini_dist_count(x->stats, k, q, 1, &r);
    } else {
      pthread_mutex_lock(&f->lock);
      if (f->status == EIN_OK) f->status = st;
    }
    if (f->sleepers > 0) pthread_cond_broadcast(&f->work);
  }
  pthread_mutex_unlock(&f->lock);
}

// The run's first state: who waits for what, and who waits for nothing.
static void eini_flow_begin(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  struct eini_dist_flow *f = x->flow;
  f->lowest = d->nstmt;
  memset(x->ready, 0, (size_t)d->nstmt * sizeof *x->ready);
  memset(x->task, 0, (size_t)d->ntask * sizeof *x->task);
  for (int k = 0; k < d->nstmt; k++) {
    const eini_dist_stmt *e = &d->stmt[k];
    x->left[k] = e->jobs;
    f->left += e->jobs;
    x->zero[k] = e->before;
    if (e->s->rest == EIN_REST_ZERO && x->zero[k] == 0) eini_flow_ready(x, k, 0, EINI_DIST_ZERO);
    for (int64_t q = 0; q < e->space.ntask; q++) {
      x->task[e->first + q].wait = d->wait[e->first + q];
      if (d->wait[e->first + q] == 0) eini_flow_ready(x, k, q, EINI_DIST_BLOCK);
    }
  }
}

static ein_status eini_dist_flow_run(eini_dist_exec *x) {
  struct eini_dist_flow f;
  memset(&f, 0, sizeof f);
  x->flow = &f;
  f.width = x->d->width;
  if (pthread_mutex_init(&f.lock, NULL) != 0) return eini_dist_serial(x);
  if (pthread_cond_init(&f.work, NULL) != 0) {
    pthread_mutex_destroy(&f.lock);
    return eini_dist_serial(x);
  }
  eini_flow_begin(x);
  const ein_executor *e = &x->d->executor;
  if (e->parallel_for != NULL && f.width > 1)
    e->parallel_for(f.width, eini_flow_worker, x, e->user);
  else
    eini_flow_worker(x, 0);
  pthread_cond_destroy(&f.work);
  pthread_mutex_destroy(&f.lock);
  return f.status;
}

#else  // EINI_DIST_THREADS

static ein_status eini_dist_flow_run(eini_dist_exec *x) { return eini_dist_serial(x); }

#endif  // EINI_DIST_THREADS
