// ================================================================================================
// >>dist-jobs  jobs and the executor of all fabrics
// Takes jobs and what each waits for; runs what is ready, on any number of threads: transfers
// before computations, those of early statements first. No thread waits while a job is ready.
// ================================================================================================

#if defined(__unix__) || defined(__APPLE__)
#define EINI_DIST_THREADS 1
#include <pthread.h>
#include <sched.h>
static void eini_flow_yield(void) { (void)sched_yield(); }
#else
#define EINI_DIST_THREADS 0
static void eini_flow_yield(void) {}
#endif

typedef enum eini_job_kind {
  EINI_JOB_NONE,            // a number that is not used
  EINI_JOB_GATE,            // done as soon as what it waits for is
  EINI_JOB_RECEIVE,         // arg: a move
  EINI_JOB_SEND,
  EINI_JOB_ZERO,            // of a tensor, before the statement at hand writes it
  EINI_JOB_BLOCK,
  EINI_JOB_MERGE,           // arg: a level of the tree of partial results
  EINI_JOB_SHARE,           // under a schedule: of a block, which JOIN ends; arg: a task
  EINI_JOB_JOIN,
  EINI_JOB_ARRIVE,          // of what comes home; arg: a move
  EINI_JOB_SUM,             // of what is merged at home, before and behind; arg: a memory
  EINI_JOB_FINISH
} eini_job_kind;

typedef struct eini_job {
  int32_t kind, stmt;
  int32_t place;            // among those of the process
  int32_t arg;
} eini_job;

// Immutable once made.
typedef struct eini_jobs {
  int64_t n, todo;          // todo: without those of no kind
  int64_t ntransfer;
  eini_job *job;
  int32_t *wait;            // how many jobs each waits for
  int64_t *first;           // [n + 1]: those that wait for job j are next[first[j]] ..
  int32_t *next;
  int64_t *at;              // while they are filled in
} eini_jobs;

// ---- making ----

// Numbers one more job; it is filled in the second time round.
static int32_t eini_jobs_add(eini_jobs *j, eini_job_kind kind, int64_t stmt, int64_t place,
                             int64_t arg) {
  if (j->job != NULL) {
    eini_job *x = &j->job[j->n];
    x->kind = (int32_t)kind;
    x->stmt = (int32_t)stmt;
    x->place = (int32_t)place;
    x->arg = (int32_t)arg;
    j->todo += kind != EINI_JOB_NONE;
    j->ntransfer += kind == EINI_JOB_RECEIVE || kind == EINI_JOB_SEND;
  }
  return (int32_t)(j->n++ & INT32_MAX);  // more are refused before they are used
}

// Room for the jobs that were counted, which are numbered again.
static ein_status eini_jobs_room(eini_arena *a, eini_jobs *j) {
  if (j->n >= INT32_MAX) return EIN_ERR_TOO_LARGE;
  j->job = EINI_NEW(a, eini_job, j->n);
  j->wait = EINI_NEW(a, int32_t, j->n);
  j->first = EINI_NEW(a, int64_t, j->n + 1);
  if (j->job == NULL || j->wait == NULL || j->first == NULL) return EIN_ERR_NO_MEMORY;
  j->n = 0;
  return EIN_OK;
}

// Job `to` waits for `from`. The first time round these are counted.
static void eini_jobs_edge(eini_jobs *j, int64_t from, int64_t to) {
  if (j->next == NULL) {
    j->first[from + 1]++;
    j->wait[to]++;
  } else {
    j->next[j->at[from]++] = (int32_t)to;
  }
}

// Room for the edges that were counted; at: [n].
static ein_status eini_jobs_edges(eini_arena *a, eini_jobs *j, int64_t *at) {
  for (int64_t i = 0; i < j->n; i++) {
    j->first[i + 1] += j->first[i];
    at[i] = j->first[i];
  }
  j->at = at;
  j->next = EINI_NEW(a, int32_t, j->first[j->n] + 1);
  return j->next == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// Those that wait for a job come in the order of their numbers. at: [n + 1].
static ein_status eini_jobs_ordered(eini_arena *a, eini_jobs *j, int64_t *at) {
  int32_t *from = EINI_NEW(a, int32_t, j->first[j->n] + 1), *list = from;
  if (from == NULL) return EIN_ERR_NO_MEMORY;
  at[0] = 0;
  for (int64_t i = 0; i < j->n; i++) at[i + 1] = at[i] + j->wait[i];
  for (int64_t i = j->n; i-- > 0;)
    for (int64_t k = j->first[i]; k < j->first[i + 1]; k++) from[--at[j->next[k] + 1]] = (int32_t)i;
  for (int64_t i = 0; i < j->n; i++) at[i] = j->first[i];
  for (int64_t i = 0; i < j->n; i++)
    for (int32_t k = 0; k < j->wait[i]; k++) j->next[at[*list++]++] = (int32_t)i;
  return EIN_OK;
}

// ---- the order of messages ----

// Messages that may be posted at once, in turns.
typedef struct eini_turns {
  int64_t n;
  eini_ranked *heap;
} eini_turns;

// Message number `what`; group: those of a lower one come first.
static void eini_turns_add(eini_turns *x, const ein_fabric *f, int64_t group, int64_t from,
                           int64_t to, int64_t what) {
  eini_ranked *e = &x->heap[x->n];
  e->key = (double)(group * f->places + eini_links_turn(f->places, from, to));
  e->seq = e->what = what;
  eini_heap_rise(x->heap, x->n++);
}

// ---- both ----

// Makes jobs: number(user) adds them, wait(user) the edges; each is called twice, first to count.
static ein_status eini_jobs_make(eini_arena *a, eini_jobs *j, void (*number)(void *user),
                                 ein_status (*wait)(void *user), void *user) {
  eini_arena scratch;
  number(user);
  EINI_TRY(eini_jobs_room(a, j));
  number(user);
  EINI_TRY(wait(user));
  eini_arena_init(&scratch, &a->al);
  int64_t *at = EINI_NEW(&scratch, int64_t, j->n + 1);
  ein_status st = at == NULL ? EIN_ERR_NO_MEMORY : eini_jobs_edges(a, j, at);
  if (st == EIN_OK) st = wait(user);
  if (st == EIN_OK) st = eini_jobs_ordered(&scratch, j, at);
  eini_arena_free(&scratch);
  return st;
}

// ---- running ----

// What a run of jobs needs: a list of ready ones for each statement and worker, and one of
// transfers. Lists are linked through `link`; -1 ends them.
typedef struct eini_flow {
  const eini_jobs *jobs;
  const ein_fabric *fabric;
  int nstmt, width;
  // Runs a job; failed: no more is computed, but transfers go on, so that nobody waits in vain.
  ein_status (*run_fn)(void *user, int worker, const eini_job *job, int failed,
                       ein_ticket *ticket);
  void (*done_fn)(void *user, int worker, const eini_job *job);  // it has run; one at a time
  // On a clock: it is over.
  ein_status (*over_fn)(void *user, const eini_job *job, double begin, double end);
  void *user;
  int32_t *wait, *link;     // per job
  int32_t *head, *tail;     // per statement and worker
  int32_t *ready;           // per statement
  int32_t *ticket_of;       // jobs of transfers under way, and their tickets; on a clock: of ticket
                            //   k the job is at k - 1
  ein_ticket *ticket;
  char *over;               // tickets that are done
  int64_t nticket, left;
  int32_t wire, wire_last;  // transfers that can be posted
  int lowest;               // no statement before has a ready job
  int busy, polling, sleepers;
  ein_status status;        // the first failure
#if EINI_DIST_THREADS
  pthread_mutex_t lock, wires;  // wires: whoever calls the fabric
  pthread_cond_t work;
#endif
} eini_flow;

#if EINI_DIST_THREADS
static void eini_flow_lock(eini_flow *f) {
  if (f->width > 1) pthread_mutex_lock(&f->lock);
}

static void eini_flow_unlock(eini_flow *f) {
  if (f->width > 1) pthread_mutex_unlock(&f->lock);
}

static void eini_flow_wires(eini_flow *f, int mine) {
  if (f->width > 1 && mine) pthread_mutex_lock(&f->wires);
  else if (f->width > 1) pthread_mutex_unlock(&f->wires);
}

static void eini_flow_sleep(eini_flow *f) {
  f->sleepers++;
  pthread_cond_wait(&f->work, &f->lock);
  f->sleepers--;
}

static void eini_flow_wake(eini_flow *f) {
  if (f->sleepers > 0) pthread_cond_broadcast(&f->work);
}

// Between two looks at transfers, of which none is done while others compute.
static void eini_flow_rest(eini_flow *f, int64_t found) {
  if (found > 0 || f->width == 1) return;
  eini_flow_unlock(f);
  eini_flow_yield();
  eini_flow_lock(f);
}

static int eini_flow_open(eini_flow *f) {
  if (f->width == 1) return 1;
  if (pthread_mutex_init(&f->lock, NULL) != 0) return 0;
  if (pthread_mutex_init(&f->wires, NULL) == 0) {
    if (pthread_cond_init(&f->work, NULL) == 0) return 1;
    pthread_mutex_destroy(&f->wires);
  }
  pthread_mutex_destroy(&f->lock);
  return 0;
}

static void eini_flow_close(eini_flow *f) {
  if (f->width == 1) return;
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->wires);
  pthread_mutex_destroy(&f->lock);
}
#else  // EINI_DIST_THREADS
static void eini_flow_lock(eini_flow *f) { (void)f; }
static void eini_flow_unlock(eini_flow *f) { (void)f; }
static void eini_flow_wires(eini_flow *f, int mine) { (void)f, (void)mine; }
static void eini_flow_sleep(eini_flow *f) { (void)f; }
static void eini_flow_wake(eini_flow *f) { (void)f; }
static void eini_flow_rest(eini_flow *f, int64_t found) { (void)f, (void)found; }
static int eini_flow_open(const eini_flow *f) { return f->width == 1; }
static void eini_flow_close(eini_flow *f) { (void)f; }
#endif  // EINI_DIST_THREADS

static void eini_flow_append(eini_flow *f, int32_t *head, int32_t *tail, int32_t j) {
  f->link[j] = -1;
  if (*head < 0) *head = j;
  else f->link[*tail] = j;
  *tail = j;
}

static int32_t eini_flow_first(eini_flow *f, int32_t *head) {
  const int32_t j = *head;
  *head = f->link[j];
  return j;
}

// With the lock: the job may run. A place's jobs are its worker's.
static void eini_flow_ready(eini_flow *f, int32_t j) {
  const eini_job *x = &f->jobs->job[j];
  if (x->kind == EINI_JOB_RECEIVE || x->kind == EINI_JOB_SEND) {
    eini_flow_append(f, &f->wire, &f->wire_last, j);
    return;
  }
  const int64_t list = (int64_t)x->stmt * f->width + x->place % f->width;
  eini_flow_append(f, &f->head[list], &f->tail[list], j);
  f->ready[x->stmt]++;
  if (x->stmt < f->lowest) f->lowest = x->stmt;
}

// With the lock: a job is done, and gates that waited for it alone.
static void eini_flow_done(eini_flow *f, int32_t j) {
  int32_t gates = -1;
  for (f->link[j] = -1;;) {
    f->left--;
    for (int64_t i = f->jobs->first[j]; i < f->jobs->first[j + 1]; i++) {
      const int32_t to = f->jobs->next[i];
      if (--f->wait[to] > 0) continue;
      if (f->jobs->job[to].kind != EINI_JOB_GATE) {
        eini_flow_ready(f, to);
      } else {
        f->link[to] = gates;
        gates = to;
      }
    }
    if (gates < 0) return;
    j = eini_flow_first(f, &gates);
  }
}

// With the lock: takes a ready job; -1: there is none.
static int32_t eini_flow_take(eini_flow *f, int worker) {
  if (f->wire >= 0) return eini_flow_first(f, &f->wire);
  while (f->lowest < f->nstmt && f->ready[f->lowest] == 0) f->lowest++;
  if (f->lowest == f->nstmt) return -1;
  int32_t *list = &f->head[(int64_t)f->lowest * f->width];
  int from = worker;
  for (int i = 0; list[from] < 0 && i < f->width; i++) from = i;
  f->ready[f->lowest]--;
  return eini_flow_first(f, &list[from]);
}

// On a clock: time goes on until something is over.
static int64_t eini_flow_tick(eini_flow *f) {
  ein_ticket ticket = 0;
  double begin = 0, end = 0;
  ein_status st = f->fabric->next_fn(f->fabric->user, &ticket, &begin, &end);
  if (st != EIN_OK || ticket == 0) {  // what waits will wait for ever
    if (f->status == EIN_OK) f->status = st;
    f->nticket = 0;
    return 0;
  }
  const int32_t j = f->ticket_of[ticket - 1];
  f->nticket--;
  st = f->over_fn(f->user, &f->jobs->job[j], begin, end);
  if (f->status == EIN_OK) f->status = st;
  eini_flow_done(f, j);
  return 1;
}

// With the lock: ends transfers that are done. idle: nobody computes, so that without any the
// earliest is waited for; those of others wait for nothing later, so nobody waits in vain.
static int64_t eini_flow_poll(eini_flow *f, int idle) {
  const ein_fabric *fabric = f->fabric;
  const int64_t n = f->nticket;
  int64_t found = 0, first = 0, kept = 0;
  ein_status st = EIN_OK;
  if (fabric->next_fn != NULL) return eini_flow_tick(f);
  f->polling = 1;
  eini_flow_unlock(f);
  eini_flow_wires(f, 1);
  for (int64_t i = 0; i < n; i++) {
    int done = 0;
    if (fabric->test_fn != NULL && fabric->test_fn(fabric->user, f->ticket[i], &done) != EIN_OK)
      done = 1;  // waiting tells why
    f->over[i] = (char)(done != 0);
    found += done != 0;
    if (f->ticket_of[i] < f->ticket_of[first]) first = i;
  }
  if (found == 0 && idle) f->over[first] = 1;
  for (int64_t i = 0; i < n; i++) {
    const ein_status one =
        f->over[i] ? fabric->wait_fn(fabric->user, f->ticket[i]) : EIN_OK;
    if (st == EIN_OK) st = one;
  }
  eini_flow_wires(f, 0);
  eini_flow_lock(f);
  f->polling = 0;
  if (f->status == EIN_OK) f->status = st;
  for (int64_t i = 0; i < f->nticket; i++) {
    if (i < n && f->over[i]) {
      eini_flow_done(f, f->ticket_of[i]);
      continue;
    }
    f->ticket[kept] = f->ticket[i];
    f->ticket_of[kept++] = f->ticket_of[i];
  }
  f->nticket = kept;
  if (found > 0 || idle) eini_flow_wake(f);
  return found;
}

// With the lock, which it gives up: runs job j.
static void eini_flow_run(eini_flow *f, int worker, int32_t j) {
  const eini_job *x = &f->jobs->job[j];
  const int failed = f->status != EIN_OK;
  ein_ticket ticket = 0;
  f->busy++;
  eini_flow_unlock(f);
  const ein_status st = f->run_fn(f->user, worker, x, failed, &ticket);
  eini_flow_lock(f);
  f->busy--;
  if (st != EIN_OK && f->status == EIN_OK) f->status = st;
  if (st == EIN_OK && !failed) f->done_fn(f->user, worker, x);
  if (ticket != 0 && f->fabric->next_fn != NULL) {
    f->nticket++;
    f->ticket_of[ticket - 1] = j;
  } else if (ticket != 0) {  // also of a job that failed
    f->ticket[f->nticket] = ticket;
    f->ticket_of[f->nticket++] = j;
  } else {
    eini_flow_done(f, j);
  }
  eini_flow_wake(f);
}

static void eini_flow_worker(void *arg, int worker) {
  eini_flow *f = (eini_flow *)arg;
  const int several = f->fabric->count < f->fabric->places;
  eini_flow_lock(f);
  while (f->left > 0) {
    if (several && f->wire < 0 && f->nticket > 0 && !f->polling && f->fabric->test_fn != NULL)
      (void)eini_flow_poll(f, 0);  // what others sent meanwhile
    const int32_t j = eini_flow_take(f, worker);
    if (j >= 0) eini_flow_run(f, worker, j);
    else if (f->nticket > 0 && !f->polling && (f->busy == 0 || f->fabric->test_fn != NULL))
      eini_flow_rest(f, eini_flow_poll(f, f->busy == 0));
    else if (f->width > 1) eini_flow_sleep(f);
    else break;  // a ring: jobs that wait for each other
  }
  eini_flow_wake(f);
  eini_flow_unlock(f);
}

// Runs all jobs; lists and arrays are there. e: has the threads.
static ein_status eini_flow_all(eini_flow *f, const ein_executor *e) {
  const eini_jobs *jobs = f->jobs;
  const int64_t lists = (int64_t)f->nstmt * f->width;
  if (!eini_flow_open(f)) f->width = 1;
  f->left = jobs->todo;
  f->lowest = f->nstmt;
  f->wire = -1;
  for (int64_t i = 0; i < lists; i++) f->head[i] = -1;
  memset(f->ready, 0, (size_t)f->nstmt * sizeof *f->ready);
  if (jobs->n > 0) memcpy(f->wait, jobs->wait, (size_t)jobs->n * sizeof *f->wait);
  for (int64_t j = 0; j < jobs->n; j++) {
    if (jobs->wait[j] > 0 || jobs->job[j].kind == EINI_JOB_NONE) continue;
    if (jobs->job[j].kind == EINI_JOB_GATE) eini_flow_done(f, (int32_t)j);
    else eini_flow_ready(f, (int32_t)j);
  }
  if (f->width > 1) e->parallel_for(f->width, eini_flow_worker, f, e->user);
  else eini_flow_worker(f, 0);
  eini_flow_close(f);
  return f->status != EIN_OK ? f->status : f->left > 0 ? EIN_ERR_INTERNAL : EIN_OK;
}

// ---- tasks that wait for nothing ----

typedef struct eini_flow_each {
  int64_t n;
  eini_jobs jobs;
  ein_status (*fn)(void *user, int64_t i);
  void *user;
} eini_flow_each;

static void eini_flow_each_number(void *user) {
  eini_flow_each *x = (eini_flow_each *)user;
  for (int64_t i = 0; i < x->n; i++) (void)eini_jobs_add(&x->jobs, EINI_JOB_BLOCK, 0, 0, i);
}

static ein_status eini_flow_each_wait(void *user) { return (void)user, EIN_OK; }

static ein_status eini_flow_each_run(void *user, int worker, const eini_job *job, int failed,
                                     ein_ticket *ticket) {
  const eini_flow_each *x = (const eini_flow_each *)user;
  (void)worker, (void)ticket;
  return failed ? EIN_OK : x->fn(x->user, job->arg);
}

static void eini_flow_each_done(void *user, int worker, const eini_job *job) {
  (void)user, (void)worker, (void)job;
}

// Runs tasks 0 .. n - 1 at one place; none after one that fails.
static ein_status eini_flow_tasks(const ein_allocator *al, int64_t n,
                                  ein_status (*fn)(void *user, int64_t i), void *user) {
  eini_flow_each x;
  eini_flow f;
  ein_fabric one;
  eini_arena a;
  memset(&x, 0, sizeof x), memset(&f, 0, sizeof f), memset(&one, 0, sizeof one);
  x.n = n, x.fn = fn, x.user = user;
  one.places = one.count = 1;
  eini_arena_init(&a, al);
  ein_status st = eini_jobs_make(&a, &x.jobs, eini_flow_each_number, eini_flow_each_wait, &x);
  f.jobs = &x.jobs;
  f.fabric = &one;
  f.nstmt = f.width = 1;
  f.run_fn = eini_flow_each_run;
  f.done_fn = eini_flow_each_done;
  f.user = &x;
  f.wait = EINI_NEW(&a, int32_t, n);
  f.link = EINI_NEW(&a, int32_t, n);
  f.head = EINI_NEW(&a, int32_t, 1);
  f.tail = EINI_NEW(&a, int32_t, 1);
  f.ready = EINI_NEW(&a, int32_t, 1);
  if (f.wait == NULL || f.link == NULL || f.head == NULL || f.tail == NULL || f.ready == NULL)
    st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_flow_all(&f, NULL);
  eini_arena_free(&a);
  return st;
}
