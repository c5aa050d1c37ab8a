// SPDX-License-Identifier: MIT
//
// command_store.h - the file of a tuning store: whose records count, reading, and updates that no
// other update and no crash can spoil.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

#if POSIX
#include <fcntl.h>
#endif

// The file of --store, or of the environment; NULL: none.
static const char *store_path(void) {
  const char *path = given(O_STORE) != NULL ? given(O_STORE) : getenv("EINSUM_STORE");
  return path == NULL || path[0] == 0 ? NULL : path;
}

typedef struct content {
  char *s;
  size_t n;
} content;

// All of a file. must: 0 where a file that is not there is an empty one.
static content read_store(const char *path, int must) {
  content b = {NULL, 0};
  size_t room = 1 << 16;
  errno = 0;
  FILE *f = fopen(path, "rb");
  if (f == NULL && errno == ENOENT && !must) return b.s = copy_text("", 0), b;
  if (f == NULL) die(SYSTEM_FAILED, NULL, "%s: cannot open: %s", path, strerror(errno));
  b.s = (char *)memory(room);
  for (size_t got; (got = fread(b.s + b.n, 1, room - b.n, f)) > 0;) {
    b.n += got;
    if (b.n < room) continue;
    char *more = (char *)memory(2 * room);
    memcpy(more, b.s, b.n);
    b.s = more;
    room *= 2;
  }
  if (ferror(f)) die(SYSTEM_FAILED, NULL, "%s: cannot read: %s", path, strerror(errno));
  (void)fclose(f);
  return b;
}

static content merge_stores(int n, const content *b) {
  const char **text = (const char **)memory(sizeof *text * (size_t)n);
  size_t *length = (size_t *)memory(sizeof *length * (size_t)n);
  content all = {NULL, 0};
  for (int k = 0; k < n; k++) text[k] = b[k].s, length[k] = b[k].n;
  ein_status st = ein_store_merge(NULL, n, text, length, NULL, 0, &all.n);
  if (st == EIN_OK) {
    all.s = (char *)memory(all.n + 1);
    st = ein_store_merge(NULL, n, text, length, all.s, all.n, &all.n);
  }
  if (st != EIN_OK) die_library(NULL, st, NULL);
  return all;
}

static char *with_suffix(const char *path, const char *suffix) {
  size_t n = strlen(path);
  char *s = copy_text(path, n + strlen(suffix));
  memcpy(s + n, suffix, strlen(suffix) + 1);
  return s;
}

#if POSIX
// The folder of a path, as text of its own.
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? copy_text(".", 1) : copy_text(path, (size_t)(slash - path) + 1);
}

NORETURN static void store_failed(const char *path, const char *what) {
  die(SYSTEM_FAILED, NULL, "%s: cannot %s: %s", path, what, strerror(errno));
}

// Adds what texts say to a file: read, merged, written beside it and put in its place, while a lock
// on another file keeps other updates out. The system lets go of the lock when the process ends,
// however it does; what was left beside is written over next time.
static void update_store(const char *path, int n, const content *more) {
  content *all = (content *)memory(sizeof *all * ((size_t)n + 1));
  const char *lock = with_suffix(path, ".lock"), *fresh = with_suffix(path, ".new");
  struct flock whole;
  memset(&whole, 0, sizeof whole);
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int hold = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666), got;
  if (hold < 0) store_failed(lock, "open");
  while ((got = fcntl(hold, F_SETLKW, &whole)) != 0 && errno == EINTR) continue;
  if (got != 0) store_failed(lock, "lock");
  all[0] = read_store(path, 0);
  for (int k = 0; k < n; k++) all[k + 1] = more[k];
  const content made = merge_stores(n + 1, all);
  int to = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (to < 0) store_failed(fresh, "open");
  for (size_t at = 0; at < made.n;) {
    ssize_t w = write(to, made.s + at, made.n - at);
    if (w < 0 && errno != EINTR) store_failed(fresh, "write");
    if (w > 0) at += (size_t)w;
  }
  if (fsync(to) != 0 || close(to) != 0) store_failed(fresh, "write");
  if (rename(fresh, path) != 0) store_failed(path, "write");
  int folder = open(folder_of(path), O_RDONLY | O_CLOEXEC);
  if (folder >= 0) (void)fsync(folder), (void)close(folder);  // the name, where folders can
  (void)close(hold);
}
#else
static void update_store(const char *path, int n, const content *more) {
  content *all = (content *)memory(sizeof *all * ((size_t)n + 1));
  all[0] = read_store(path, 0);
  for (int k = 0; k < n; k++) all[k + 1] = more[k];
  const content made = merge_stores(n + 1, all);
  FILE *f = fopen(path, "wb");
  if (f == NULL || fwrite(made.s, 1, made.n, f) != made.n || fclose(f) != 0)
    die(SYSTEM_FAILED, NULL, "%s: cannot write: %s", path, strerror(errno));
}
#endif

// Puts the store into the description of a ctx. While tuning it is there, but empty.
static void use_store(ein_ctx_desc *d, int empty) {
  const char *path = store_path();
  content b = {copy_text("", 0), 0};
  if (!empty && path == NULL) return;
  if (!empty) b = read_store(path, given(O_STORE) != NULL);
  d->store = b.s;
  d->store_bytes = b.n;
}

static void warn_store(const ein_ctx *ctx) {
  ein_store_info info;
  if (given(O_QUIET) != NULL || !ein_ctx_store_info(ctx, &info) || info.skipped == 0) return;
  fprintf(stderr, "einsum: warning: %s:%" PRId64 ": %" PRId64 " line%s no record of this version, "
          "left out\n", store_path(), info.line, info.skipped,
          info.skipped == 1 ? " is" : "s are");
}
