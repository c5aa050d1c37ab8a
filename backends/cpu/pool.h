// ================================================================================================
// >>pool  threads that sleep when there is nothing to do
// One job at a time. Each thread runs the parts of its lane, then what others have not begun. A
// word counts the workers inside the open job; the caller, who does as they do, closes it and waits
// until nobody is inside. Invariant: the job's fields change only while the word is 0.
// ================================================================================================

#if EINI_CPU_POSIX && (defined(__GNUC__) || defined(__clang__))
#define EINI_CPU_THREADS 1
#else
#define EINI_CPU_THREADS 0
#endif

#define EINI_POOL_APART 128    // bytes that caches fetch together: two lines

#if EINI_CPU_THREADS

// Of a thread, 0 being whoever calls. Others look at it only to take what it has not begun.
typedef struct eini_pool_lane {
  uint64_t next;               // serial of the job << 32 | parts taken of this lane
  int64_t moved, wakes;        // parts of other lanes that this thread ran; threads it woke
  char apart[EINI_POOL_APART - 24];
} eini_pool_lane;

typedef struct eini_pool_worker {
  struct eini_pool *pool;
  int number;                  // its lane
  int asleep;                  // under lock
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work;
  char apart[EINI_POOL_APART];
} eini_pool_worker;

#endif  // EINI_CPU_THREADS

typedef struct eini_pool {
  int width;                   // with the caller
#if EINI_CPU_THREADS
  pid_t owner;                 // the process that has the threads; a fork of it has none
  int started, pin;
  int crowded;                 // more threads than processors: who waits sleeps soon
  eini_pool_lane *lane;        // [width]
  eini_pool_worker *worker;    // [width - 1]
  char apart[EINI_POOL_APART];  // between what threads write at different times
  uint32_t word;               // EINI_POOL_OPEN, and the workers inside
  char apart_left[EINI_POOL_APART];
  int64_t left;                // parts that nobody has taken
  char apart_job[EINI_POOL_APART];
  uint32_t serial;             // of the job: a worker enters each once
  int n, lanes;                // lanes: that have parts, the first ones
  void (*task)(void *arg, int i);
  void *arg;
  char apart_end[EINI_POOL_APART];
  int quit;
  int busy;                    // a caller has the pool
  int joining;                 // the caller sleeps in done
  int64_t jobs, parts;         // so far
  pthread_mutex_t lock;
  pthread_cond_t done;
#endif  // EINI_CPU_THREADS
} eini_pool;

#if EINI_CPU_THREADS

#define EINI_POOL_OPEN 0x80000000u
#define EINI_POOL_SPIN 300     // pauses at first, some microseconds
#define EINI_POOL_LINGER 1e-3  // seconds before sleeping: what waking costs where cores are rented
#define EINI_POOL_FAN 4        // threads that one wakes, who wake others

static void eini_pool_pause(void) {
#if EINI_CPU_X86
  _mm_pause();
#elif EINI_CPU_NEON
  __asm__ volatile("yield");
#endif
}

// One step of waiting; times counts them from 0. Pauses, then lets others that want this core have
// it, and reads the clock only now and then. 0: better to sleep.
static int eini_pool_wait(const eini_pool *p, int *times, double *since) {
  const int n = (*times)++;
  if (n < EINI_POOL_SPIN) {
    eini_pool_pause();
    return 1;
  }
  if (p->crowded) return 0;
  if (n == EINI_POOL_SPIN) *since = eini_cpu_now();
  sched_yield();
  if (n % 8 != 0) return 1;
  const double gone = eini_cpu_now() - *since;
  return gone >= 0 && gone < EINI_POOL_LINGER;  // clocks are set back, too
}

// Takes the next part of a lane; -1: all are taken. What another job left there counts as none.
static int64_t eini_pool_claim(eini_pool *p, int lane) {
  const int64_t from = (int64_t)p->n * lane / p->lanes;
  const int64_t count = (int64_t)p->n * (lane + 1) / p->lanes - from;
  const uint64_t job = (uint64_t)p->serial << 32;
  uint64_t *next = &p->lane[lane].next, was = __atomic_load_n(next, __ATOMIC_RELAXED);
  for (;;) {
    const uint64_t taken = (was ^ job) >> 32 == 0 ? was & UINT32_MAX : 0;
    if ((int64_t)taken >= count) return -1;
    if (__atomic_compare_exchange_n(next, &was, job | (taken + 1), 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      __atomic_fetch_sub(&p->left, 1, __ATOMIC_RELAXED);
      return from + (int64_t)taken;
    }
  }
}

// All there is to do for the thread of a lane: its own parts, then those of the lanes behind it.
static void eini_pool_take(eini_pool *p, int own) {
  void (*task)(void *arg, int i) = p->task;
  void *arg = p->arg;
  const int lanes = p->lanes;
  int64_t moved = 0;
  for (int k = 0; k < lanes; k++) {
    const int lane = (own + k) % lanes;
    for (int64_t i; (i = eini_pool_claim(p, lane)) >= 0; moved += lane != own) task(arg, (int)i);
    if (__atomic_load_n(&p->left, __ATOMIC_RELAXED) <= 0) break;
  }
  if (moved > 0) __atomic_fetch_add(&p->lane[own].moved, moved, __ATOMIC_RELAXED);
}

// Wakes the threads below one in the tree, as far as they have parts.
static void eini_pool_wake(eini_pool *p, int own) {
  const int from = own * EINI_POOL_FAN + 1;
  for (int i = from; i < from + EINI_POOL_FAN && i < p->lanes; i++) {
    eini_pool_worker *w = &p->worker[i - 1];
    if (!__atomic_load_n(&w->asleep, __ATOMIC_SEQ_CST)) continue;
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    __atomic_fetch_add(&p->lane[own].wakes, 1, __ATOMIC_RELAXED);
  }
}

// Enters the open job unless it is the one numbered seen, or has no parts for it; 0: there is none.
static int eini_pool_enter(eini_pool *p, int own, uint32_t *seen) {
  uint32_t word = __atomic_load_n(&p->word, __ATOMIC_SEQ_CST);
  while ((word & EINI_POOL_OPEN) != 0) {
    if (__atomic_load_n(&p->serial, __ATOMIC_ACQUIRE) == *seen) return 0;
    if (own >= __atomic_load_n(&p->lanes, __ATOMIC_RELAXED)) return 0;
    if (__atomic_compare_exchange_n(&p->word, &word, word + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_ACQUIRE)) {
      *seen = __atomic_load_n(&p->serial, __ATOMIC_ACQUIRE);
      return 1;
    }
  }
  return 0;
}

static void eini_pool_leave(eini_pool *p) {
  uint32_t word = __atomic_sub_fetch(&p->word, 1, __ATOMIC_SEQ_CST);
  if (word == 0 && __atomic_load_n(&p->joining, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
  }
}

// Sleeps until there is a job to enter (1) or the pool ends (0).
static int eini_pool_sleep(eini_pool_worker *w, uint32_t *seen) {
  int entered = 0;
  pthread_mutex_lock(&w->lock);
  __atomic_store_n(&w->asleep, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&w->pool->quit, __ATOMIC_SEQ_CST) &&
         !(entered = eini_pool_enter(w->pool, w->number, seen)))
    pthread_cond_wait(&w->work, &w->lock);
  __atomic_store_n(&w->asleep, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&w->lock);
  return entered;
}

// Binds the calling thread to the i-th core the process may use, then to processors that share one.
static void eini_pool_bind(int i) {
#if defined(__linux__) && defined(SYS_sched_setaffinity)
  uint64_t mask[EINI_CPU_MASK_WORDS], one[EINI_CPU_MASK_WORDS];
  int n = eini_cpu_allowed(mask);
  memcpy(one, mask, sizeof one);
  const int cores = eini_cpu_cores("", one);
  if (i < cores) memcpy(mask, one, sizeof mask), n = cores;  // first one of each core
  int left = i % n;
  for (int core = 0; core < 64 * EINI_CPU_MASK_WORDS; core++) {
    if (!(mask[core / 64] >> core % 64 & 1) || left-- > 0) continue;
    memset(mask, 0, sizeof mask);
    mask[core / 64] = (uint64_t)1 << core % 64;
    syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
    return;
  }
#else  // defined(__linux__) && defined(SYS_sched_setaffinity)
  (void)i;
#endif
}

static void *eini_pool_main(void *user) {
  eini_pool_worker *w = (eini_pool_worker *)user;
  eini_pool *p = w->pool;
  const int number = w->number;
  uint32_t seen = 0;
  if (p->pin) eini_pool_bind(number);
  fesetenv(FE_DFL_ENV);
  for (;;) {
    int entered, times = 0;
    double since = 0;
    while (!(entered = eini_pool_enter(p, number, &seen)))
      if (__atomic_load_n(&p->quit, __ATOMIC_RELAXED) || !eini_pool_wait(p, &times, &since)) break;
    if (!entered && !eini_pool_sleep(w, &seen)) return NULL;
    eini_pool_wake(p, number);
    eini_pool_take(p, number);
    eini_pool_leave(p);
  }
}

static void eini_pool_join(eini_pool *p) {
  if (__atomic_and_fetch(&p->word, ~EINI_POOL_OPEN, __ATOMIC_SEQ_CST) == 0) return;
  int times = 0;
  double since = 0;
  do {
    if (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == 0) return;
  } while (eini_pool_wait(p, &times, &since));
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&p->joining, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p->word, __ATOMIC_SEQ_CST) != 0) pthread_cond_wait(&p->done, &p->lock);
  __atomic_store_n(&p->joining, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
}

// A job's number. Lanes have those of earlier ones, so they are cleared before numbers come again.
static uint32_t eini_pool_number(eini_pool *p) {
  uint32_t serial = p->serial + 1;
  for (int i = 0; serial == 0 && i < p->width; i++)
    __atomic_store_n(&p->lane[i].next, 0, __ATOMIC_RELAXED);
  return serial == 0 ? 1 : serial;
}

// The slot of ein_executor. A second caller, a task of the pool itself, or a process that has the
// pool from its parent works alone.
static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  eini_pool *p = (eini_pool *)user;
  if (n < 2 || p->width < 2 || p->owner != getpid() ||
      __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < n; i++) task(arg, i);
    return;
  }
  p->task = task;
  p->arg = arg;
  p->n = n;
  __atomic_store_n(&p->lanes, n < p->width ? n : p->width, __ATOMIC_RELAXED);
  __atomic_store_n(&p->left, n, __ATOMIC_RELAXED);
  __atomic_store_n(&p->serial, eini_pool_number(p), __ATOMIC_RELEASE);
  __atomic_store_n(&p->word, EINI_POOL_OPEN, __ATOMIC_SEQ_CST);
  eini_pool_wake(p, 0);
  eini_pool_take(p, 0);
  eini_pool_join(p);
  __atomic_fetch_add(&p->jobs, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&p->parts, n, __ATOMIC_RELAXED);
  __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

static int eini_pool_add(eini_pool *p, int i) {
  eini_pool_worker *w = &p->worker[i];
  w->pool = p;
  w->number = i + 1;
  if (pthread_mutex_init(&w->lock, NULL) != 0) return 0;
  if (pthread_cond_init(&w->work, NULL) == 0) {
    if (pthread_create(&w->thread, NULL, eini_pool_main, w) == 0) return 1;
    pthread_cond_destroy(&w->work);
  }
  pthread_mutex_destroy(&w->lock);
  return 0;
}

// Threads get every signal blocked, so that a program's handlers run on its own threads.
static void eini_pool_start(eini_pool *p) {
#ifdef SIG_BLOCK
  sigset_t all, old;
  sigfillset(&all);
  int masked = pthread_sigmask(SIG_BLOCK, &all, &old) == 0;
#endif
  while (p->started < p->width - 1 && eini_pool_add(p, p->started)) p->started++;
#ifdef SIG_BLOCK
  if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
  p->width = p->started + 1;
}

// Bytes of lanes and workers.
static size_t eini_pool_bytes(int width) {
  return (size_t)width * (sizeof(eini_pool_lane) + sizeof(eini_pool_worker)) + EINI_POOL_APART;
}

// room: so many zero bytes. Fewer threads than asked for are no mistake.
static void eini_pool_init(eini_pool *p, int width, int pin, char *room) {
  uint64_t mask[EINI_CPU_MASK_WORDS];
  room += (EINI_POOL_APART - (uintptr_t)room % EINI_POOL_APART) % EINI_POOL_APART;
  p->owner = getpid();
  p->width = width;
  p->lane = (eini_pool_lane *)(void *)room;
  p->worker = (eini_pool_worker *)(void *)(p->lane + width);
  p->pin = pin;
  if (width < 2) return;
  const int64_t online = eini_cpu_allowed(mask), quota = eini_cpu_quota("");
  p->crowded = width > online || (quota > 0 && width > quota);
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    p->width = 1;
    return;
  }
  if (pthread_cond_init(&p->done, NULL) != 0) {
    p->width = 1;  // what was made needs no destruction on systems where making it can fail
    return;
  }
  eini_pool_start(p);
}

// In a fork there is nobody to wait for, and the locks are as some thread left them.
static void eini_pool_end(eini_pool *p) {
  if (p->started == 0 || p->owner != getpid()) return;
  __atomic_store_n(&p->quit, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < p->started; i++) {
    eini_pool_worker *w = &p->worker[i];
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
  }
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
}

#else  // EINI_CPU_THREADS

static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = 0; i < n; i++) task(arg, i);
}

#endif  // EINI_CPU_THREADS
