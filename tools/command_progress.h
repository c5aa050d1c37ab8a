// SPDX-License-Identifier: MIT
//
// command_progress.h - one line on a terminal that says what long work is at, and then goes.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.
//
// A thread of its own draws it, so that no loop needs to look at the clock. Nothing is drawn before
// two seconds of work, without a terminal, or with -q.

#if POSIX
enum { PROGRESS_AFTER = 2 };  // seconds

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int tried, running, drawn;
  const char *what;         // NULL: nothing is under way
  const char *unit;         // of done and total
  double begin, done, total;
} progress = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, NULL, NULL, 0, 0, 0};

static void progress_erase(void) {
  if (progress.drawn) fputs("\r\033[K", stderr);
  progress.drawn = 0;
  fflush(stderr);
}

static void progress_draw(double seconds) {
  fprintf(stderr, "\r\033[Keinsum: %s", progress.what);
  if (progress.total > 0 && progress.unit != NULL)
    fprintf(stderr, ", %.0f of %.0f %s", progress.done, progress.total, progress.unit);
  fprintf(stderr, ", %.0f s", seconds);
  if (progress.total > 0 && progress.unit == NULL)
    fprintf(stderr, " (predicted: %.0f s)", progress.total);
  fflush(stderr);
  progress.drawn = 1;
}

// Draws four times a second while something is under way.
static void *progress_thread(void *unused) {
  (void)pthread_mutex_lock(&progress.lock);
  while (progress.running) {
    const double seconds = now(NULL) - progress.begin;
    struct timespec until;
    if (progress.what == NULL) {
      (void)pthread_cond_wait(&progress.changed, &progress.lock);
      continue;
    }
    if (seconds >= PROGRESS_AFTER) progress_draw(seconds);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&progress.changed, &progress.lock, &until);
  }
  (void)pthread_mutex_unlock(&progress.lock);
  return unused;
}

// Is anything to be drawn? Starts the thread, which leaves signals to the others.
static int progress_on(void) {
  pthread_t thread;
  sigset_t all, old;
  if (progress.tried++ > 0) return progress.running;
  if (given(O_QUIET) != NULL || !isatty(STDERR_FILENO)) return 0;
  progress.begin = now(NULL);
  progress.running = 1;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, &old);
  if (pthread_create(&thread, NULL, progress_thread, NULL) != 0) progress.running = 0;
  else (void)pthread_detach(thread);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  return progress.running;
}

// Work begins; total: of its units; without a unit the seconds that are predicted; 0: not known.
// Until progress_end nothing else may be written to the terminal.
static void progress_begin(const char *what, const char *unit, double total) {
  if (!progress_on()) return;
  (void)pthread_mutex_lock(&progress.lock);
  progress.what = what, progress.unit = unit, progress.done = 0, progress.total = total;
  (void)pthread_cond_signal(&progress.changed);
  (void)pthread_mutex_unlock(&progress.lock);
}

// One of the units is done; called by any thread.
static void progress_step(void) {
  if (!progress.running) return;
  (void)pthread_mutex_lock(&progress.lock);
  progress.done++;
  (void)pthread_mutex_unlock(&progress.lock);
}

static void progress_end(void) {
  if (!progress.running) return;
  (void)pthread_mutex_lock(&progress.lock);
  progress.what = NULL;
  progress_erase();
  (void)pthread_mutex_unlock(&progress.lock);
}
#else
static int progress_on(void) { return 0; }
static void progress_begin(const char *what, const char *unit, double total) {
  (void)what, (void)unit, (void)total;
}
static void progress_step(void) {}
static void progress_end(void) {}
#endif
