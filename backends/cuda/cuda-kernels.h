// ================================================================================================
// >>cuda-kernels  sources kept by their text, compiled when they first run
// A source is the normal form of what it computes: extents, strides, params and addresses are
// arguments, so that statements of one form share a kernel.
// ================================================================================================

// Room for a source; NULL: no memory. Ended by eini_cuda_writer_end.
static int eini_cuda_writer_begin(ein_cuda *c, eini_cuda_writer *w) {
  memset(w, 0, sizeof *w);
  char *room = (char *)c->al.alloc_fn(EINI_CUDA_SOURCE, 64, c->al.user);
  if (room == NULL) return 0;
  w->t = eini_text_of(room, EINI_CUDA_SOURCE);
  return 1;
}

static void eini_cuda_writer_end(ein_cuda *c, eini_cuda_writer *w) {
  c->al.free_fn(w->t.buf, EINI_CUDA_SOURCE, c->al.user);
}

// The kernel with this source; NULL: no memory, or the source is none.
static eini_cuda_kernel *eini_cuda_kernel_new(ein_cuda *c, const char *source, size_t bytes) {
  const uint64_t hash = eini_hash(source, bytes - 1, 0);
  eini_cuda_lock(c);
  eini_cuda_kernel *k = c->first;
  while (k != NULL && (k->hash != hash || k->bytes != bytes ||
                       memcmp(k->source, source, bytes) != 0))
    k = k->next;
  if (k == NULL) {
    k = (eini_cuda_kernel *)c->al.alloc_fn(sizeof *k, 64, c->al.user);
    char *text = k == NULL ? NULL : (char *)c->al.alloc_fn(bytes, 64, c->al.user);
    if (text == NULL && k != NULL) c->al.free_fn(k, sizeof *k, c->al.user);
    if (text == NULL) k = NULL;
    if (k != NULL) {
      memset(k, 0, sizeof *k);
      memcpy(text, source, bytes);
      k->source = text;
      k->owner = c;
      k->bytes = bytes;
      k->hash = hash;
      *c->last = k;
      c->last = &k->next;
    }
  }
  eini_cuda_unlock(c);
  return k;
}

static eini_cuda_kernel *eini_cuda_kernel_of(ein_cuda *c, const eini_cuda_writer *w) {
  if (w->bad || w->t.at + 1 > w->t.size) return NULL;
  return eini_cuda_kernel_new(c, w->t.buf, w->t.at + 1);
}

// That of a device's own, of one that was planned for the first of them.
static eini_cuda_kernel *eini_cuda_kernel_here(ein_cuda *c, eini_cuda_kernel *k) {
  return k->owner == c ? k : eini_cuda_kernel_new(c, k->source, k->bytes);
}

static void eini_cuda_kernels_free(ein_cuda *c) {
  for (eini_cuda_kernel *k = c->first, *next; k != NULL; k = next) {
    next = k->next;
    c->al.free_fn(k->source, k->bytes, c->al.user);
    c->al.free_fn(k, sizeof *k, c->al.user);
  }
}

// What NVRTC said of a source that it refuses.
static void eini_cuda_complain(ein_cuda *c, void *program, int code) {
  size_t bytes = 0;
  snprintf(c->why, sizeof c->why, "NVRTC refuses a generated kernel (%d)", code);
  if (c->api.log_size(program, &bytes) != 0 || bytes < 2 || bytes > EINI_CUDA_SOURCE) return;
  char *log = (char *)c->al.alloc_fn(bytes, 64, c->al.user);
  if (log == NULL) return;
  if (c->api.log_get(program, log) == 0)
    snprintf(c->why, sizeof c->why, "NVRTC refuses a generated kernel (%d): %.400s", code, log);
  c->al.free_fn(log, bytes, c->al.user);
}

// Source to code of the device.
static ein_status eini_cuda_compile(ein_cuda *c, eini_cuda_kernel *k, void **program,
                                    char **image, size_t *bytes) {
  char arch[48];
  const char *option[1];
  option[0] = arch;
  snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", c->device.major, c->device.minor);
  int code = c->api.program_create(program, k->source, "einsum.cu", 0, NULL, NULL);
  if (code == 0) code = c->api.program_compile(*program, 1, option);
  k->bad = code == EINI_CUDA_REFUSED;
  if (code != 0 && *program != NULL) eini_cuda_complain(c, *program, code);
  if (code == 0) code = c->api.cubin_size(*program, bytes);
  if (code != 0) return EIN_ERR_INTERNAL;
  *image = (char *)c->al.alloc_fn(*bytes, 64, c->al.user);
  if (*image == NULL) return EIN_ERR_NO_MEMORY;
  return c->api.cubin_get(*program, *image) == 0 ? EIN_OK : EIN_ERR_INTERNAL;
}

// ---- on a shelf ----

// What is saved: this, the source, the code of the device.
typedef struct eini_cuda_label {
  char magic[16];
  uint64_t source, code, hash;   // bytes of both, hash of the code
} eini_cuda_label;

static void eini_cuda_label_of(const eini_cuda_kernel *k, const char *code, size_t bytes,
                               eini_cuda_label *l) {
  memset(l, 0, sizeof *l);
  snprintf(l->magic, sizeof l->magic, "einsum kernel 1");
  l->source = k->bytes;
  l->code = bytes;
  l->hash = eini_hash(code, bytes, 0);
}

// By architecture, compiler and source.
static void eini_cuda_name(const ein_cuda *c, const eini_cuda_kernel *k, char name[96]) {
  snprintf(name, 96, "sm_%d%d-nvrtc%d.%d-%016llx%016llx", c->device.major, c->device.minor,
           c->nvrtc[0], c->nvrtc[1], (unsigned long long)k->hash,
           (unsigned long long)eini_hash(k->source, k->bytes, 1));
}

static void eini_cuda_save(ein_cuda *c, const eini_cuda_kernel *k, const char *code,
                           size_t bytes) {
  const size_t all = sizeof(eini_cuda_label) + k->bytes + bytes;
  char name[96];
  eini_cuda_label label;
  char *p = c->shelf.save_fn == NULL ? NULL : (char *)c->al.alloc_fn(all, 64, c->al.user);
  if (p == NULL) return;  // it is compiled again next time
  eini_cuda_name(c, k, name);
  eini_cuda_label_of(k, code, bytes, &label);
  memcpy(p, &label, sizeof label);
  memcpy(p + sizeof label, k->source, k->bytes);
  memcpy(p + sizeof label + k->bytes, code, bytes);
  eini_cuda_shelf_lock(c, 1);
  c->shelf.save_fn(c->shelf.user, name, p, all);
  eini_cuda_shelf_lock(c, 0);
  c->al.free_fn(p, all, c->al.user);
}

// The code of a kernel from the shelf: *at of what was allocated, *all bytes of it; 0: compile.
static int eini_cuda_load_code(ein_cuda *c, const eini_cuda_kernel *k, char **at, size_t *all,
                               const char **code) {
  const size_t head = sizeof(eini_cuda_label) + k->bytes;
  char name[96];
  eini_cuda_label label;
  size_t bytes = 0;
  *at = NULL;
  eini_cuda_name(c, k, name);
  if (c->shelf.load_fn == NULL) return 0;
  eini_cuda_shelf_lock(c, 1);
  int there = c->shelf.load_fn(c->shelf.user, name, NULL, 0, all) && *all > head &&
              *all <= SIZE_MAX / 4;
  char *p = there ? (char *)c->al.alloc_fn(*all, 64, c->al.user) : NULL;
  there = p != NULL && c->shelf.load_fn(c->shelf.user, name, p, *all, &bytes) && bytes == *all;
  eini_cuda_shelf_lock(c, 0);
  if (p == NULL) return 0;
  if (there) eini_cuda_label_of(k, p + head, *all - head, &label);
  if (there && memcmp(p, &label, sizeof label) == 0 &&
      memcmp(p + sizeof label, k->source, k->bytes) == 0) {
    *at = p;
    *code = p + head;
    return 1;
  }
  c->al.free_fn(p, *all, c->al.user);
  return 0;
}

static ein_status eini_cuda_ready_code(ein_cuda *c, eini_cuda_kernel *k, const char *code) {
  ein_status st = eini_cuda_status(c, c->api.module_load(&k->module, code), "a kernel's code");
  if (st == EIN_OK)
    st = eini_cuda_status(c, c->api.module_function(&k->function, k->module, "ein_kernel"),
                          "a kernel");
  if (st != EIN_OK && k->module != NULL) {
    (void)c->api.module_unload(k->module);
    k->module = NULL;
  }
  return st;
}

// Makes a kernel ready. Called with the lock, in the device's context.
static ein_status eini_cuda_ready_kernel(ein_cuda *c, eini_cuda_kernel *k) {
  void *program = NULL;
  char *image = NULL;
  const char *code;
  size_t bytes = 0;
  if (k->function != NULL) return EIN_OK;
  if (k->bad) return EIN_ERR_INTERNAL;
  if (eini_cuda_load_code(c, k, &image, &bytes, &code)) {
    const ein_status st = eini_cuda_ready_code(c, k, code);
    c->al.free_fn(image, bytes, c->al.user);
    c->counts.loaded += st == EIN_OK;
    return st;
  }
  ein_status st = eini_cuda_compile(c, k, &program, &image, &bytes);
  if (st == EIN_OK) st = eini_cuda_ready_code(c, k, image);
  if (st == EIN_OK) eini_cuda_save(c, k, image, bytes);
  if (image != NULL) c->al.free_fn(image, bytes, c->al.user);
  if (program != NULL) (void)c->api.program_destroy(&program);
  c->counts.compiled += st == EIN_OK;
  return st;
}

// room: bytes of shared memory beside what the source declares.
static ein_status eini_cuda_launch(ein_cuda *c, eini_cuda_kernel *k, int64_t blocks, size_t room,
                                   uint64_t word[EINI_CUDA_WORDS]) {
  void *argument[1];
  argument[0] = word;
  EINI_TRY(eini_cuda_ready_kernel(c, k));
  if (room > k->room) {
    EINI_TRY(eini_cuda_status(c, c->api.function_set(k->function, EINI_CUDA_ROOM, (int)room),
                              "shared memory"));
    k->room = room;
  }
  c->counts.launches++;
  return eini_cuda_status(c, c->api.launch(k->function, (unsigned)blocks, 1, 1, EINI_CUDA_THREADS,
                                           1, 1, (unsigned)room, c->stream, argument, NULL),
                          "a launch");
}
