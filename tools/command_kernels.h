// Compiled kernels of a GPU in a folder, from call to call: --kernel-cache DIR, or the folder that
// EINSUM_KERNEL_CACHE names. A file appears whole or not at all; what cannot be written is not
// kept.

static char *kernel_path(const char *folder, const char *name, const char *suffix) {
  const size_t n = strlen(folder) + strlen(name) + strlen(suffix) + 2;
  char *path = (char *)memory(n);
  snprintf(path, n, "%s/%s%s", folder, name, suffix);
  return path;
}

static int kernel_load(void *folder, const char *name, void *to, size_t room, size_t *bytes) {
  char *path = kernel_path((const char *)folder, name, "");
  FILE *f = fopen(path, "rb");
  long end = -1;
  if (f == NULL) return 0;
  if (fseek(f, 0, SEEK_END) == 0) end = ftell(f);
  int there = end >= 0 && fseek(f, 0, SEEK_SET) == 0;
  *bytes = there ? (size_t)end : 0;
  if (there && room > 0) there = room >= *bytes && fread(to, 1, *bytes, f) == *bytes;
  (void)fclose(f);
  return there;
}

static void kernel_save(void *folder, const char *name, const void *from, size_t bytes) {
  char suffix[32];
#if POSIX
  snprintf(suffix, sizeof suffix, ".%ld.new", (long)getpid());  // others may write the same
#else
  snprintf(suffix, sizeof suffix, ".new");
#endif
  char *path = kernel_path((const char *)folder, name, "");
  char *fresh = kernel_path((const char *)folder, name, suffix);
  FILE *f = fopen(fresh, "wb");
  int whole = f != NULL && fwrite(from, 1, bytes, f) == bytes;
  if (f != NULL && fclose(f) != 0) whole = 0;
  if (f != NULL && (!whole || rename(fresh, path) != 0)) (void)remove(fresh);
}

// The shelf that was asked for; NULL: none.
static const ein_cuda_shelf *kernel_shelf(ein_cuda_shelf *shelf) {
  const char *folder = given(O_KERNEL_CACHE);
  if (folder == NULL) folder = getenv("EINSUM_KERNEL_CACHE");
  if (folder == NULL || folder[0] == 0) return NULL;
  shelf->load_fn = kernel_load;
  shelf->save_fn = kernel_save;
  shelf->user = copy_text(folder, strlen(folder));
  return shelf;
}
