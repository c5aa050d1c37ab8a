// ================================================================================================
// >>pool  threads that sleep when there is nothing to do
// One job at a time. A word counts the workers inside the open job; the caller takes indices as
// they do, then closes the job and waits until nobody is inside, so that a late worker costs
// nothing. Invariant: the job's fields change only while the word is 0.
// ================================================================================================

#if EINI_CPU_POSIX && (defined(__GNUC__) || defined(__clang__))
#define EINI_CPU_THREADS 1
#else
#define EINI_CPU_THREADS 0
#endif

typedef struct eini_pool {
  int width;                   // with the caller
#if EINI_CPU_THREADS
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  pthread_t *thread;           // width - 1 of them
  pid_t owner;                 // the process that has the threads; a fork of it has none
  int started, pin, numbered;
  int sleepers, quit;          // under lock
  int busy;                    // a caller has the pool
  int joining;                 // the caller sleeps in done
  uint32_t word;               // EINI_POOL_OPEN, and the workers inside
  uint32_t serial;             // of the job: a worker enters each once
  int64_t next;
  int n;
  void (*task)(void *arg, int i);
  void *arg;
  char apart[64];
#endif  // EINI_CPU_THREADS
} eini_pool;

#if EINI_CPU_THREADS

#define EINI_POOL_OPEN 0x80000000u
#define EINI_POOL_SPIN 300     // pauses before sleeping, some microseconds

static void eini_pool_pause(void) {
#if EINI_CPU_X86
  _mm_pause();
#elif EINI_CPU_NEON
  __asm__ volatile("yield");
#endif
}

static void eini_pool_take(eini_pool *p) {
  void (*task)(void *arg, int i) = p->task;
  void *arg = p->arg;
  int n = p->n;
  for (;;) {
    int64_t i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED);
    if (i >= n) return;
    task(arg, (int)i);
  }
}

// Enters the open job unless it is the one numbered seen; 0 when there is none.
static int eini_pool_enter(eini_pool *p, uint32_t *seen) {
  uint32_t word = __atomic_load_n(&p->word, __ATOMIC_SEQ_CST);
  while ((word & EINI_POOL_OPEN) != 0) {
    if (__atomic_load_n(&p->serial, __ATOMIC_ACQUIRE) == *seen) return 0;
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
static int eini_pool_sleep(eini_pool *p, uint32_t *seen) {
  int entered = 0;
  pthread_mutex_lock(&p->lock);
  __atomic_add_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  while (!p->quit && !(entered = eini_pool_enter(p, seen))) pthread_cond_wait(&p->work, &p->lock);
  __atomic_sub_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
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
  eini_pool *p = (eini_pool *)user;
  uint32_t seen = 0;
  int number = __atomic_add_fetch(&p->numbered, 1, __ATOMIC_RELAXED);
  if (p->pin) eini_pool_bind(number);
  fesetenv(FE_DFL_ENV);
  for (;;) {
    int entered = 0;
    for (int i = 0; i < EINI_POOL_SPIN && !entered; i++) {
      entered = eini_pool_enter(p, &seen);
      if (!entered) eini_pool_pause();
    }
    if (!entered && !eini_pool_sleep(p, &seen)) return NULL;
    eini_pool_take(p);
    eini_pool_leave(p);
  }
}

static void eini_pool_join(eini_pool *p) {
  if (__atomic_and_fetch(&p->word, ~EINI_POOL_OPEN, __ATOMIC_SEQ_CST) == 0) return;
  for (int i = 0; i < EINI_POOL_SPIN; i++) {
    if (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == 0) return;
    eini_pool_pause();
  }
  pthread_mutex_lock(&p->lock);
  __atomic_store_n(&p->joining, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&p->word, __ATOMIC_SEQ_CST) != 0) pthread_cond_wait(&p->done, &p->lock);
  __atomic_store_n(&p->joining, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->lock);
}

static void eini_pool_wake(eini_pool *p, int n) {
  if (__atomic_load_n(&p->sleepers, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&p->lock);
  if (n - 1 >= p->sleepers) {
    pthread_cond_broadcast(&p->work);
  } else {
    for (int i = 1; i < n; i++) pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
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
  __atomic_store_n(&p->next, 0, __ATOMIC_RELAXED);
  __atomic_add_fetch(&p->serial, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&p->word, EINI_POOL_OPEN, __ATOMIC_SEQ_CST);
  eini_pool_wake(p, n);
  eini_pool_take(p);
  eini_pool_join(p);
  __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

// Threads get every signal blocked, so that a program's handlers run on its own threads.
static void eini_pool_start(eini_pool *p) {
#ifdef SIG_BLOCK
  sigset_t all, old;
  sigfillset(&all);
  int masked = pthread_sigmask(SIG_BLOCK, &all, &old) == 0;
#endif
  while (p->started < p->width - 1) {
    if (pthread_create(&p->thread[p->started], NULL, eini_pool_main, p) != 0) break;
    p->started++;
  }
#ifdef SIG_BLOCK
  if (masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
  p->width = p->started + 1;
}

// thread: room for width - 1. Fewer threads than asked for are no mistake.
static void eini_pool_init(eini_pool *p, int width, int pin, pthread_t *thread) {
  p->owner = getpid();
  p->width = width;
  p->thread = thread;
  p->pin = pin;
  if (width < 2) return;
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    p->width = 1;
    return;
  }
  if (pthread_cond_init(&p->work, NULL) != 0 || pthread_cond_init(&p->done, NULL) != 0) {
    p->width = 1;  // what was made needs no destruction on systems where making it can fail
    return;
  }
  eini_pool_start(p);
}

// In a fork there is nobody to wait for, and the locks are as some thread left them.
static void eini_pool_end(eini_pool *p) {
  if (p->started > 0 && p->owner == getpid()) {
    pthread_mutex_lock(&p->lock);
    p->quit = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
  }
}

#else  // EINI_CPU_THREADS

static void eini_pool_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = 0; i < n; i++) task(arg, i);
}

#endif  // EINI_CPU_THREADS
