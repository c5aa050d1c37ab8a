// ================================================================================================
// >>cuda-public  the provider and what a caller sees
// Without a device there is an object that says so, and no provider.
// ================================================================================================

static int eini_slot_cuda_contract_plan(void *user, const ein_contract *c, int width, int nth,
                                        ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_contract(c, &x) && eini_cuda_plan((ein_cuda *)user, &x, c, nth, choice);
}
static ein_status eini_slot_cuda_contract_run(void *user, const ein_contract *c,
                                              const ein_choice *choice, const ein_part *part,
                                              void *scratch) {
  eini_cuda_nest x;
  (void)part, (void)scratch;  // it is never cut
  return eini_cuda_of_contract(c, &x) ? eini_cuda_run(eini_cuda_here(user), &x, c, choice)
                                      : EIN_ERR_INTERNAL;
}
static int eini_slot_cuda_copy_plan(void *user, const ein_copy *c, int width, int nth,
                                    ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_copy(c, &x) && eini_cuda_plan((ein_cuda *)user, &x, NULL, nth, choice);
}
static ein_status eini_slot_cuda_copy_run(void *user, const ein_copy *c, const ein_choice *choice,
                                          void *scratch) {
  eini_cuda_nest x;
  (void)scratch;
  return eini_cuda_of_copy(c, &x) ? eini_cuda_run(eini_cuda_here(user), &x, NULL, choice)
                                  : EIN_ERR_INTERNAL;
}
static int eini_slot_cuda_map_plan(void *user, const ein_map *m, int width, int nth,
                                   ein_choice *choice) {
  eini_cuda_nest x;
  (void)width;
  return eini_cuda_of_map(m, &x) && eini_cuda_plan((ein_cuda *)user, &x, NULL, nth, choice);
}
static ein_status eini_slot_cuda_map_run(void *user, const ein_map *m, const ein_choice *choice,
                                         void *scratch) {
  eini_cuda_nest x;
  (void)scratch;
  return eini_cuda_of_map(m, &x) ? eini_cuda_run(eini_cuda_here(user), &x, NULL, choice)
                                 : EIN_ERR_INTERNAL;
}

static void eini_cuda_memory_slots(ein_cuda *c) {
  c->memory.space = EIN_CUDA_SPACE;
  c->memory.start = eini_cuda_copy_seconds;
  c->memory.bandwidth = c->only ? 0 : eini_cuda_link;
  c->memory.alloc_fn = eini_slot_cuda_alloc;
  c->memory.free_fn = eini_slot_cuda_free;
  c->memory.copy_fn = eini_slot_cuda_copy;
  c->memory.mark_fn = eini_slot_cuda_mark;
  c->memory.wait_fn = eini_slot_cuda_wait;
  c->memory.later_fn = eini_slot_cuda_later;
  c->memory.settle_fn = eini_slot_cuda_settle;
  c->memory.place_fn = eini_slot_cuda_place;
  c->memory.hold_fn = eini_slot_cuda_hold;
  c->memory.release_fn = eini_slot_cuda_release;
  c->memory.lend_fn = eini_slot_cuda_lend;
  c->memory.peer_fn = eini_slot_cuda_peer;
}

// Devices of places, as many as there are.
static ein_status eini_cuda_join_peers(ein_cuda *c, const ein_cuda_desc *d) {
  const int most = (int)eini_min64(d->devices, EINI_CUDA_DEVICES);
  if (d->devices < 0) return EIN_ERR_ARGUMENT;
  if (most < 2 || !c->ready) return EIN_OK;
  if (!eini_cuda_place_new(c)) return EIN_ERR_NO_MEMORY;
  while (c->npeer < most - 1) {
    ein_cuda_desc own = *d;
    own.devices = 1;
    own.device = d->device + c->npeer + 1;
    own.stream = NULL;
    own.shelf = NULL;
    ein_cuda **to = &c->peer[c->npeer++];
    EINI_TRY(ein_cuda_create(&own, &c->al, to));
    (*to)->chief = c;
    (*to)->shelf = c->shelf;
    if ((*to)->ready) continue;
    ein_cuda_destroy(*to);
    c->npeer--;
    if (c->npeer == 0) eini_cuda_place_end(c);
    break;
  }
  return EIN_OK;
}

EIN_API ein_status ein_cuda_create(const ein_cuda_desc *desc, const ein_allocator *allocator,
                                   ein_cuda **cuda) {
  ein_cuda_desc d;
  eini_arena arena;
  if (cuda == NULL) return EIN_ERR_ARGUMENT;
  *cuda = NULL;
  if (allocator != NULL && (allocator->alloc_fn == NULL) != (allocator->free_fn == NULL))
    return EIN_ERR_ARGUMENT;
  memset(&d, 0, sizeof d);
  if (desc != NULL) d = *desc;
  eini_arena_init(&arena, allocator);
  const ein_allocator al = arena.al;
  eini_arena_free(&arena);
  ein_cuda *c = (ein_cuda *)al.alloc_fn(sizeof *c, 64, al.user);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  memset(c, 0, sizeof *c);
  c->al = al;
  c->chief = c;
  c->last = &c->first;
  if (!eini_cuda_lock_new(c)) {
    al.free_fn(c, sizeof *c, al.user);
    return EIN_ERR_NO_MEMORY;
  }
  const ein_status st = eini_cuda_look(c, &d);
  if (st != EIN_OK) {
    ein_cuda_destroy(c);
    return st;
  }
  c->kernels.name = "cuda";
  if (c->ready) {
    snprintf(c->machine, sizeof c->machine, "%.64s, sm_%d%d", c->device.name, c->device.major,
             c->device.minor);
    c->kernels.machine = c->machine;
  }
  c->kernels.user = c;
  c->kernels.contract_plan = eini_slot_cuda_contract_plan;
  c->kernels.contract_run = eini_slot_cuda_contract_run;
  c->kernels.copy_plan = eini_slot_cuda_copy_plan;
  c->kernels.copy_run = eini_slot_cuda_copy_run;
  c->kernels.map_plan = eini_slot_cuda_map_plan;
  c->kernels.map_run = eini_slot_cuda_map_run;
  c->kernels.alone = c->only > 1;
  c->kernels.memory = &c->memory;
  c->kernels.measure_fn = eini_slot_cuda_measure;
  c->kernels.group_plan = eini_slot_cuda_group_plan;
  c->kernels.group_run = eini_slot_cuda_group_run;
  if (c->ready) c->kernels.group_bytes = c->device.shared - (size_t)EINI_CUDA_THREADS * 24;
  eini_cuda_memory_slots(c);
  const ein_status joined = eini_cuda_join_peers(c, &d);
  if (joined == EIN_OK) *cuda = c;
  else ein_cuda_destroy(c);
  return joined;
}

EIN_API void ein_cuda_destroy(ein_cuda *c) {
  if (c == NULL) return;
  for (int i = 0; i < c->npeer; i++) ein_cuda_destroy(c->peer[i]);
  if (c->npeer > 0) eini_cuda_place_end(c);
  eini_cuda_end_device(c);
  eini_cuda_kernels_free(c);
  eini_cuda_lock_end(c);
  c->al.free_fn(c, sizeof *c, c->al.user);
}

EIN_API int ein_cuda_ready(const ein_cuda *c) { return c != NULL && c->ready; }

EIN_API const ein_kernels *ein_cuda_kernels(const ein_cuda *c) {
  return ein_cuda_ready(c) ? &c->kernels : NULL;
}

EIN_API ein_status ein_cuda_use(ein_cuda *c, ein_ctx_desc *desc) {
  const int room = desc == NULL ? 0 : (int)(sizeof desc->use / sizeof *desc->use);
  if (c == NULL || desc == NULL || desc->nuse < 0) return EIN_ERR_ARGUMENT;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  if (desc->nuse >= room) return EIN_ERR_TOO_LARGE;
  desc->use[desc->nuse++] = &c->kernels;
  return EIN_OK;
}

// What was asked for is before what is put into the stream of kernels, by whom ever.
static ein_status eini_cuda_ordered(ein_cuda *c) {
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, eini_cuda_captured(c) ? EIN_OK : eini_cuda_join(c));
}

EIN_API ein_status ein_cuda_alloc(ein_cuda *c, size_t bytes, void **at) {
  if (c == NULL || at == NULL || bytes == 0) return EIN_ERR_ARGUMENT;
  *at = NULL;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_slot_cuda_alloc(c, bytes, at));
  const ein_status st = eini_cuda_ordered(c);
  if (st == EIN_OK) return EIN_OK;
  eini_slot_cuda_free(c, *at);
  *at = NULL;
  return st;
}

EIN_API void ein_cuda_free(ein_cuda *c, void *at) {
  if (ein_cuda_ready(c) && at != NULL) eini_slot_cuda_free(c, at);
}

static ein_status eini_cuda_copy(ein_cuda *c, size_t bytes, const void *from, void *to, int away) {
  if (c == NULL || (bytes > 0 && (from == NULL || to == NULL))) return EIN_ERR_ARGUMENT;
  if (!c->ready) return EIN_ERR_UNSUPPORTED;
  if (bytes == 0) return EIN_OK;
  EINI_TRY(eini_slot_cuda_copy(c, bytes, from, to, away));
  return eini_cuda_ordered(c);
}

EIN_API ein_status ein_cuda_write(ein_cuda *c, void *at, const void *from, size_t bytes) {
  return eini_cuda_copy(c, bytes, from, at, 1);
}

EIN_API ein_status ein_cuda_read(ein_cuda *c, const void *at, void *to, size_t bytes) {
  return eini_cuda_copy(c, bytes, at, to, 0);
}

EIN_API size_t ein_cuda_info(const ein_cuda *c, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (c == NULL) return 0;
  if (!c->ready) {
    eini_say(&t, "cuda: no device: %s", c->why);
    return t.at;
  }
  int blas = 0;
  if (c->blas != NULL) (void)c->api.blas_version(c->blas, &blas);
  eini_say(&t, "cuda: %s, sm_%d%d, %d multiprocessors, %.1f GiB, %.1f TFLOP/s in f64, %.0f GB/s",
           c->device.name, c->device.major, c->device.minor, c->device.processors,
           c->device.bytes / 1073741824.0, c->device.flops_f64 * 1e-12,
           c->device.bandwidth * 1e-9);
  eini_say(&t, "\ncuda: driver %d.%d, NVRTC %d.%d, ", c->driver / 1000, c->driver % 1000 / 10,
           c->nvrtc[0], c->nvrtc[1]);
  if (c->blas == NULL) eini_say(&t, "no cuBLAS: generated kernels run");
  else eini_say(&t, "cuBLAS %d.%d.%d", blas / 10000, blas / 100 % 100, blas % 100);
  if (c->npeer > 0) eini_say(&t, "\ncuda: %d more for places", c->npeer);
  if (c->why[0] != 0) eini_say(&t, "\ncuda: last error: %s", c->why);
  return t.at;
}

EIN_API ein_cuda_counts ein_cuda_counts_get(const ein_cuda *c) {
  ein_cuda_counts none;
  memset(&none, 0, sizeof none);
  if (c == NULL) return none;
  ein_cuda_counts n = c->counts;
  for (int i = 0; i < c->npeer; i++) {
    const ein_cuda_counts *m = &c->peer[i]->counts;
    n.launches += m->launches, n.gemms += m->gemms;
    n.compiled += m->compiled, n.loaded += m->loaded;
    n.to_device += m->to_device, n.from_device += m->from_device, n.peer += m->peer;
    n.seconds += m->seconds;
  }
  return n;
}

EIN_API const char *ein_cuda_source(const ein_cuda *c, int i) {
  const eini_cuda_kernel *k = c == NULL ? NULL : c->first;
  while (k != NULL && i-- > 0) k = k->next;
  return k == NULL ? NULL : k->source;
}

// What EINSUM_CUDA brings into a ctx.
EINI_UNUSED static ein_status eini_cuda_start(const ein_allocator *al, ein_ctx_desc *desc,
                                              void **own) {
  ein_cuda *cuda;
  EINI_TRY(ein_cuda_create(NULL, al, &cuda));
  *own = cuda;
  return ein_cuda_use(cuda, desc);
}

EINI_UNUSED static void eini_cuda_end(void *own) { ein_cuda_destroy((ein_cuda *)own); }
