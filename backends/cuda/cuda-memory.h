// ================================================================================================
// >>cuda-memory  host operands on the device and back
// Takes a nest with addresses of the host; gives one with addresses of the device, and brings the
// output home. Each direction has a stream beside that of the kernels and two pinned buffers.
// ================================================================================================

// Elements of a stream at home, in the order in which the device has them.
typedef struct eini_cuda_walk {
  int n;
  int64_t extent[EINI_CUDA_LOOPS], stride[EINI_CUDA_LOOPS], index[EINI_CUDA_LOOPS];
  int64_t size, left;
  char *at;
} eini_cuda_walk;

// low: offset of the least element, from which on all is taken where nothing is packed.
static void eini_cuda_walk_begin(const eini_cuda_nest *x, int s, eini_cuda_walk *w, int64_t *low) {
  const int64_t hull = eini_cuda_hull(x, 0, s, low);
  w->n = 0;
  w->size = x->size[s];
  w->at = x->base[s];
  if (!x->packed[s]) {
    w->at = (char *)((uintptr_t)w->at + (uintptr_t)(*low * w->size));
    w->n = 1;
    w->extent[0] = w->left = hull;
    w->stride[0] = 1;
    w->index[0] = 0;
    return;
  }
  *low = 0;
  w->left = eini_cuda_points(x, s);
  for (int i = 0; i < x->n; i++) {
    if (x->stride[s][i] == 0) continue;
    w->extent[w->n] = x->extent[i];
    w->stride[w->n] = x->stride[s][i];
    w->index[w->n++] = 0;
  }
}

// The next elements that lie next to each other, most of them at most; where they are is in *at.
static int64_t eini_cuda_walk_run(eini_cuda_walk *w, int64_t most, char **at) {
  int i = w->n - 1;
  int64_t run = 1;
  *at = w->at;
  if (i >= 0 && w->stride[i] == 1) run = eini_min64(most, w->extent[i] - w->index[i]);
  w->left -= run;
  if (i >= 0) w->index[i] += run;
  intptr_t by = i < 0 ? 0 : (intptr_t)(run * w->stride[i]);
  for (; i >= 0 && w->index[i] == w->extent[i]; i--) {
    by -= (intptr_t)(w->extent[i] * w->stride[i]);
    w->index[i] = 0;
    if (i == 0) break;
    w->index[i - 1]++;
    by += (intptr_t)w->stride[i - 1];
  }
  w->at = (char *)((uintptr_t)w->at + (uintptr_t)(by * (intptr_t)w->size));
  return run;
}

// What a run has on the device.
typedef struct eini_cuda_room {
  uint64_t at[EINI_CUDA_STREAMS + 1];
  char *home[EINI_CUDA_STREAMS];
} eini_cuda_room;

// What a stream does from here on comes after what another has by now.
static ein_status eini_cuda_after(ein_cuda *c, void *event, void *stream, void *other) {
  EINI_TRY(eini_cuda_status(c, c->api.event_record(event, other), "an event"));
  return eini_cuda_status(c, c->api.stream_after(stream, event, 0), "an event");
}

// Kernels come after the copies and allocations that were asked for.
static ein_status eini_cuda_join(ein_cuda *c) {
  c->nfresh = 0;
  if (!c->ahead) return EIN_OK;
  c->ahead = 0;
  return eini_cuda_after(c, c->order, c->stream, c->up.stream);
}

// Memory is taken in the order of copies, which need not wait for kernels then; of a stream that is
// captured, in its own.
static ein_status eini_cuda_take(ein_cuda *c, size_t bytes, uint64_t *at) {
  const int captured = eini_cuda_captured(c);
  void *stream = captured ? c->stream : c->up.stream;
  EINI_TRY(eini_cuda_status(c, c->api.alloc(at, bytes, stream), "device memory"));
  if (captured) return EIN_OK;
  c->ahead = 1;
  if (c->nfresh < EINI_CUDA_FRESH) c->fresh[c->nfresh++] = *at;
  return EIN_OK;
}

static void eini_cuda_drop(ein_cuda *c, uint64_t at) {
  if (!eini_cuda_captured(c)) (void)eini_cuda_join(c);
  (void)c->api.free_fn(at, c->stream);
}

// Adds up what kernels took that are done.
static void eini_cuda_harvest(ein_cuda *c) {
  for (int i = 0; i < c->ntimed; i++) {
    float ms = 0;
    if (c->api.event_time(&ms, c->timed[2 * i], c->timed[2 * i + 1]) == EINI_CUDA_OK)
      c->counts.seconds += 1e-3 * (double)ms;
  }
  c->ntimed = 0;
}

// Before what is timed, or after it. What is captured is not.
static ein_status eini_cuda_clock(ein_cuda *c, int after) {
  if (eini_cuda_captured(c)) return EIN_OK;
  if (!after) EINI_TRY(eini_cuda_join(c));
  if (!after && c->ntimed == EINI_CUDA_TIMED) {
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->timed[2 * c->ntimed - 1]), "a kernel"));
    eini_cuda_harvest(c);
  }
  EINI_TRY(eini_cuda_status(c, c->api.event_record(c->timed[2 * c->ntimed + after], c->stream),
                            "an event"));
  c->ntimed += after;
  return EIN_OK;
}

// Copies wait for the host, which a graph does not.
static ein_status eini_cuda_copies_here(ein_cuda *c) {
  if (!eini_cuda_captured(c)) return EIN_OK;
  snprintf(c->why, sizeof c->why, "what is captured reads and writes memory of the device alone");
  return EIN_ERR_UNSUPPORTED;
}

static ein_status eini_cuda_upload(ein_cuda *c, eini_cuda_walk *w, uint64_t to) {
  const int64_t most = (int64_t)EINI_CUDA_PINNED / w->size;
  int fresh = 0;
  EINI_TRY(eini_cuda_copies_here(c));
  for (int i = 0; i < c->nfresh; i++) fresh |= c->fresh[i] == to;
  if (!fresh)  // it may be read now
    EINI_TRY(eini_cuda_after(c, c->order, c->up.stream, c->stream));
  c->ahead = 1;
  for (int slot = 0; w->left > 0; slot ^= 1) {
    int64_t n = 0;
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->up.event[slot]), "a copy"));
    while (n < most && w->left > 0) {
      char *from;
      const int64_t run = eini_cuda_walk_run(w, most - n, &from);
      memcpy(c->up.pinned[slot] + n * w->size, from, (size_t)(run * w->size));
      n += run;
    }
    const size_t bytes = (size_t)(n * w->size);
    EINI_TRY(eini_cuda_status(c, c->api.to_device(to, c->up.pinned[slot], bytes, c->up.stream),
                              "a copy to the device"));
    EINI_TRY(eini_cuda_status(c, c->api.event_record(c->up.event[slot], c->up.stream),
                              "a copy"));
    to += bytes;
    c->counts.to_device += (int64_t)bytes;
  }
  return EIN_OK;
}

// The next part of what comes back goes into a pinned buffer; n elements.
static ein_status eini_cuda_fetch(ein_cuda *c, int slot, uint64_t from, size_t bytes) {
  void *stream = c->home.stream;
  EINI_TRY(eini_cuda_status(c, c->api.from_device(c->home.pinned[slot], from, bytes, stream),
                            "a copy from the device"));
  c->counts.from_device += (int64_t)bytes;
  return eini_cuda_status(c, c->api.event_record(c->home.event[slot], stream), "a copy");
}

// The lane is behind what makes it.
static ein_status eini_cuda_bring_home(ein_cuda *c, eini_cuda_walk *w, uint64_t from) {
  const int64_t most = (int64_t)EINI_CUDA_PINNED / w->size;
  int64_t n = eini_min64(most, w->left), asked = w->left - n;
  EINI_TRY(eini_cuda_fetch(c, 0, from, (size_t)(n * w->size)));
  for (int slot = 0; w->left > 0; slot ^= 1) {
    const int64_t next = eini_min64(most, asked);
    from += (uint64_t)(n * w->size);
    if (next > 0) EINI_TRY(eini_cuda_fetch(c, slot ^ 1, from, (size_t)(next * w->size)));
    asked -= next;
    EINI_TRY(eini_cuda_status(c, c->api.event_wait(c->home.event[slot]), "a kernel or a copy"));
    for (int64_t i = 0; i < n;) {
      char *to;
      const int64_t run = eini_cuda_walk_run(w, n - i, &to);
      memcpy(to, c->home.pinned[slot] + i * w->size, (size_t)(run * w->size));
      i += run;
    }
    n = next;
  }
  return EIN_OK;
}

static ein_status eini_cuda_download(ein_cuda *c, eini_cuda_walk *w, uint64_t from) {
  EINI_TRY(eini_cuda_copies_here(c));
  EINI_TRY(eini_cuda_join(c));
  EINI_TRY(eini_cuda_after(c, c->order, c->home.stream, c->stream));
  EINI_TRY(eini_cuda_bring_home(c, w, from));
  eini_cuda_harvest(c);
  return EIN_OK;
}

// An operand before s that is the same one, or -1.
static int eini_cuda_same(const eini_cuda_nest *x, const eini_cuda_room *r, int s) {
  for (int k = 0; k < s; k++)
    if (!x->value[k] && !x->away[k] && r->home[k] == r->home[s] && x->dtype[k] == x->dtype[s] &&
        memcmp(x->stride[k], x->stride[s], sizeof x->stride[k]) == 0)
      return k;
  return -1;
}

// Operands go to the device, and all streams get its addresses.
static ein_status eini_cuda_bring(ein_cuda *c, eini_cuda_nest *x, eini_cuda_room *r) {
  memset(r, 0, sizeof *r);
  for (int s = 0; s < x->nstream; s++) r->home[s] = x->base[s];
  for (int s = 0; s < x->nstream; s++) {
    const int same = s == x->out ? -1 : eini_cuda_same(x, r, s);
    eini_cuda_walk w;
    int64_t low;
    if (x->value[s] || x->away[s]) continue;
    if (same >= 0) {
      x->base[s] = x->base[same];
      continue;
    }
    eini_cuda_walk_begin(x, s, &w, &low);
    EINI_TRY(eini_cuda_take(c, (size_t)(w.left * w.size), &r->at[s]));
    x->base[s] = (char *)(uintptr_t)(r->at[s] - (uint64_t)(low * w.size));
    if (s != x->out) EINI_TRY(eini_cuda_upload(c, &w, r->at[s]));
  }
  return EIN_OK;
}

// The output comes home.
static ein_status eini_cuda_return(ein_cuda *c, eini_cuda_nest *x, const eini_cuda_room *r) {
  eini_cuda_walk w;
  int64_t low;
  if (x->away[x->out]) return EIN_OK;
  x->base[x->out] = r->home[x->out];
  eini_cuda_walk_begin(x, x->out, &w, &low);
  return eini_cuda_download(c, &w, r->at[x->out]);
}

static void eini_cuda_leave(ein_cuda *c, eini_cuda_room *r) {
  for (int s = 0; s <= EINI_CUDA_STREAMS; s++)
    if (r->at[s] != 0) eini_cuda_drop(c, r->at[s]);
}

// ---- what plans keep there ----

// Begins a call: the lock, the device's context.
static ein_status eini_cuda_enter(ein_cuda *c) {
  eini_cuda_lock(c);
  const ein_status st = eini_cuda_status(c, c->api.push(c->primary), "the device's context");
  if (st != EIN_OK) eini_cuda_unlock(c);
  return st;
}

static ein_status eini_cuda_exit(ein_cuda *c, ein_status st) {
  void *popped;
  (void)c->api.pop(&popped);
  eini_cuda_unlock(c);
  return st;
}

static ein_status eini_slot_cuda_alloc(void *user, size_t bytes, void **at) {
  ein_cuda *c = eini_cuda_here(user);
  uint64_t address = 0;
  EINI_TRY(eini_cuda_enter(c));
  const ein_status st = eini_cuda_take(c, bytes, &address);
  *at = (void *)(uintptr_t)address;
  return eini_cuda_exit(c, st);
}

static void eini_slot_cuda_free(void *user, void *at) {
  ein_cuda *c = eini_cuda_here(user);
  if (eini_cuda_enter(c) != EIN_OK) return;
  eini_cuda_drop(c, (uint64_t)(uintptr_t)at);
  (void)eini_cuda_exit(c, EIN_OK);
}

// Bytes as they lie.
static eini_cuda_walk eini_cuda_walk_bytes(char *at, size_t bytes) {
  eini_cuda_walk w;
  memset(&w, 0, sizeof w);
  w.n = 1;
  w.size = w.stride[0] = 1;
  w.extent[0] = w.left = (int64_t)bytes;
  w.at = at;
  return w;
}

static ein_status eini_slot_cuda_copy(void *user, size_t bytes, const void *from, void *to,
                                      int away) {
  ein_cuda *c = eini_cuda_here(user);
  union { const void *c; char *v; } source;  // it is only read
  source.c = from;
  eini_cuda_walk w = eini_cuda_walk_bytes(away ? source.v : (char *)to, bytes);
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, away ? eini_cuda_upload(c, &w, (uint64_t)(uintptr_t)to)
                                : eini_cuda_download(c, &w, (uint64_t)(uintptr_t)source.v));
}

// Copies home that were left for later: those behind which kernels were started since, or all.
static ein_status eini_cuda_settle(ein_cuda *c, int all) {
  const int64_t started = c->counts.launches + c->counts.gemms;
  ein_status st = EIN_OK;
  int left = 0;
  for (int i = 0; i < c->nlater; i++) {
    eini_cuda_later *l = &c->later[i], was = c->later[left];
    if (!all && c->nlater < EINI_CUDA_LATERS && l->started == started) {
      c->later[left++] = *l;
      *l = was;
      continue;
    }
    eini_cuda_walk w = eini_cuda_walk_bytes(l->to, l->bytes);
    if (st == EIN_OK)
      st = eini_cuda_status(c, c->api.stream_after(c->home.stream, l->event, 0), "an event");
    if (st == EIN_OK) st = eini_cuda_bring_home(c, &w, l->from);
    (void)c->api.free_fn(l->from, c->home.stream);
  }
  c->nlater = left;
  if (all) eini_cuda_harvest(c);
  return st;
}

static ein_status eini_slot_cuda_later(void *user, size_t bytes, void *from, void *to) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_copies_here(c);
  if (st == EIN_OK) st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_settle(c, 0);
  eini_cuda_later *l = &c->later[c->nlater];
  if (st == EIN_OK) st = eini_cuda_status(c, c->api.event_record(l->event, c->stream), "an event");
  if (st == EIN_OK) {
    l->from = (uint64_t)(uintptr_t)from;
    l->to = (char *)to;
    l->bytes = bytes;
    l->started = c->counts.launches + c->counts.gemms;
    c->nlater++;
  }
  return eini_cuda_exit(c, st);
}

static ein_status eini_slot_cuda_settle(void *user) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  return eini_cuda_exit(c, eini_cuda_settle(c, 1));
}

// A ticket counts marks from 1 on; its event may be another's by now, which is behind it.
static ein_status eini_slot_cuda_mark(void *user, ein_ticket *ticket) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  *ticket = 0;
  if (eini_cuda_captured(c)) return eini_cuda_exit(c, EIN_OK);
  void *event = c->mark[c->marks % EINI_CUDA_MARKS];
  ein_status st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_status(c, c->api.event_record(event, c->stream), "an event");
  if (st == EIN_OK) *ticket = ++c->marks;
  return eini_cuda_exit(c, st);
}

static ein_status eini_slot_cuda_wait(void *user, ein_ticket ticket) {
  ein_cuda *c = eini_cuda_here(user);
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = ticket > c->marks ? EIN_ERR_ARGUMENT : EIN_OK;
  if (st == EIN_OK && ticket > c->waited) {
    void *event = c->mark[(ticket - 1) % EINI_CUDA_MARKS];
    st = eini_cuda_status(c, c->api.event_wait(event), "a kernel");
    if (st == EIN_OK) c->waited = ticket;
    if (st == EIN_OK && ticket == c->marks) eini_cuda_harvest(c);
  }
  return eini_cuda_exit(c, st);
}
