// ================================================================================================
// >>cuda-peers  what places keep on their devices, and copies between these
// Takes memory of two places; copies it directly where both devices can open each other's memory,
// else by pinned memory of the host. Which of the two is asked once for each pair of devices.
// ================================================================================================

static ein_status eini_slot_cuda_hold(void *user, size_t bytes, void **at) {
  ein_cuda *c = eini_cuda_here(user);
  uint64_t address = 0;
  EINI_TRY(eini_cuda_enter(c));
  const ein_status st = eini_cuda_status(c, c->api.hold(&address, bytes), "device memory");
  *at = (void *)(uintptr_t)address;
  return eini_cuda_exit(c, st);
}

static void eini_slot_cuda_release(void *user, void *at) {
  ein_cuda *c = eini_cuda_here(user);
  if (eini_cuda_enter(c) != EIN_OK) return;
  int code = c->api.stream_wait(c->up.stream);  // of a call that failed
  if (code == EINI_CUDA_OK) code = c->api.stream_wait(c->home.stream);
  if (code == EINI_CUDA_OK) code = c->api.stream_wait(c->stream);
  if (code == EINI_CUDA_OK) (void)c->api.release_held((uint64_t)(uintptr_t)at);
  (void)eini_cuda_exit(c, EIN_OK);
}

// The context is current meanwhile. Streams are not waited for.
static ein_status eini_slot_cuda_lend(void *user, int begin) {
  ein_cuda *c = eini_cuda_here(user);
  void *popped;
  if (begin) return eini_cuda_status(c, c->api.push(c->primary), "the device's context");
  return eini_cuda_status(c, c->api.pop(&popped), "the device's context");
}

// Opens the memory of `other` to a device; 0: it cannot be.
static int eini_cuda_open_peer(ein_cuda *c, const ein_cuda *other) {
  int can = 0;
  void *popped;
  if (c->api.peer_asked(&can, c->number, other->number) != EINI_CUDA_OK || can != 1) return 0;
  if (c->api.push(c->primary) != EINI_CUDA_OK) return 0;
  const int code = c->api.peer_open(other->primary, 0);
  (void)c->api.pop(&popped);
  return code == EINI_CUDA_OK || code == EINI_CUDA_OPENED;
}

// Do two devices, by their numbers among those of places, copy to each other?
static int eini_cuda_direct(ein_cuda *c, int a, int b) {
  ein_cuda *first = eini_cuda_at(c, a < b ? a : b), *second = eini_cuda_at(c, a < b ? b : a);
  unsigned char *said = &c->direct[a < b ? a : b][a < b ? b : a];
  eini_cuda_lock(c);
  if (*said == 0)
    *said = eini_cuda_open_peer(first, second) && eini_cuda_open_peer(second, first) ? 1 : 2;
  const int direct = *said == 1;
  eini_cuda_unlock(c);
  return direct;
}

// What the stream of a device has by now is behind c->met; with `other` it waits for that first.
static ein_status eini_cuda_meet(ein_cuda *c, const ein_cuda *other, int record) {
  ein_status st = EIN_OK;
  EINI_TRY(eini_cuda_enter(c));
  if (other != NULL)
    st = eini_cuda_status(c, c->api.stream_after(c->stream, other->met, 0), "an event");
  if (st == EIN_OK && record) st = eini_cuda_copies_here(c);
  if (st == EIN_OK && record) st = eini_cuda_join(c);
  if (st == EIN_OK && record)
    st = eini_cuda_status(c, c->api.event_record(c->met, c->stream), "an event");
  return eini_cuda_exit(c, st);
}

// In the stream of who gets it, behind what made it; who gave it waits before it changes that.
static ein_status eini_cuda_peer_copy(ein_cuda *src, uint64_t from, ein_cuda *dst, uint64_t to,
                                      size_t bytes) {
  EINI_TRY(eini_cuda_meet(src, NULL, 1));
  EINI_TRY(eini_cuda_meet(dst, src, 0));
  EINI_TRY(eini_cuda_enter(dst));
  ein_status st = eini_cuda_copies_here(dst);
  if (st == EIN_OK) st = eini_cuda_join(dst);
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.to_peer(to, dst->primary, from, src->primary, bytes,
                                                dst->stream), "a copy between devices");
  if (st == EIN_OK) dst->counts.peer += (int64_t)bytes;
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.event_record(dst->met, dst->stream), "an event");
  EINI_TRY(eini_cuda_exit(dst, st));
  return eini_cuda_meet(src, dst, 0);
}

// Both are on one device.
static ein_status eini_cuda_beside(ein_cuda *c, uint64_t from, uint64_t to, size_t bytes) {
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_join(c);
  if (st == EIN_OK)
    st = eini_cuda_status(c, c->api.beside(to, from, bytes, c->stream), "a copy on the device");
  return eini_cuda_exit(c, st);
}

// ---- by the host ----

// A part of what `src` gives is in one of its pinned buffers, which `dst` has read.
static ein_status eini_cuda_give(ein_cuda *src, const ein_cuda *dst, uint64_t from, size_t bytes,
                                 int slot) {
  void *popped;
  EINI_TRY(eini_cuda_status(src, src->api.push(src->primary), "the device's context"));
  ein_status st = eini_cuda_status(src, src->api.event_wait(dst->up.event[slot]), "a copy");
  if (st == EIN_OK) st = eini_cuda_fetch(src, slot, from, bytes);
  if (st == EIN_OK)
    st = eini_cuda_status(src, src->api.event_wait(src->home.event[slot]), "a copy");
  (void)src->api.pop(&popped);
  return st;
}

// It goes to `dst`.
static ein_status eini_cuda_get(ein_cuda *dst, const ein_cuda *src, uint64_t to, size_t bytes,
                                int slot) {
  void *popped;
  EINI_TRY(eini_cuda_status(dst, dst->api.push(dst->primary), "the device's context"));
  ein_status st = eini_cuda_status(
      dst, dst->api.to_device(to, src->home.pinned[slot], bytes, dst->up.stream),
      "a copy to the device");
  if (st == EIN_OK)
    st = eini_cuda_status(dst, dst->api.event_record(dst->up.event[slot], dst->up.stream),
                          "a copy");
  if (st == EIN_OK) dst->counts.to_device += (int64_t)bytes;
  dst->ahead = 1;
  (void)dst->api.pop(&popped);
  return st;
}

// A lane of copies is behind all that the device was asked for.
static ein_status eini_cuda_lane_behind(ein_cuda *c, void *lane) {
  void *popped;
  EINI_TRY(eini_cuda_status(c, c->api.push(c->primary), "the device's context"));
  ein_status st = eini_cuda_copies_here(c);
  if (st == EIN_OK) st = eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_after(c, c->order, lane, c->stream);
  (void)c->api.pop(&popped);
  return st;
}

// What was given has been read: the buffers are another's from here on.
static ein_status eini_cuda_got(ein_cuda *c) {
  void *popped;
  EINI_TRY(eini_cuda_status(c, c->api.push(c->primary), "the device's context"));
  const ein_status st = eini_cuda_status(c, c->api.stream_wait(c->up.stream),
                                         "a copy to the device");
  (void)c->api.pop(&popped);
  return st;
}

// Parts in turn: one is fetched while the one before goes on. The locks of both are taken in the
// order of devices.
static ein_status eini_cuda_by_host(ein_cuda *src, uint64_t from, ein_cuda *dst, uint64_t to,
                                    size_t bytes, int ascending) {
  eini_cuda_lock(ascending ? src : dst);
  eini_cuda_lock(ascending ? dst : src);
  ein_status st = eini_cuda_lane_behind(src, src->home.stream);
  if (st == EIN_OK) st = eini_cuda_lane_behind(dst, dst->up.stream);
  for (int slot = 0; bytes > 0 && st == EIN_OK; slot ^= 1) {
    const size_t n = bytes < EINI_CUDA_PINNED ? bytes : EINI_CUDA_PINNED;
    st = eini_cuda_give(src, dst, from, n, slot);
    if (st == EIN_OK) st = eini_cuda_get(dst, src, to, n, slot);
    from += n, to += n, bytes -= n;
  }
  const ein_status ended = eini_cuda_got(dst);
  eini_cuda_unlock(ascending ? dst : src);
  eini_cuda_unlock(ascending ? src : dst);
  return st != EIN_OK ? st : ended;
}

static ein_status eini_slot_cuda_peer(void *user, size_t bytes, const void *from, int from_place,
                                      void *to, int to_place) {
  ein_cuda *c = (ein_cuda *)user;
  const int a = eini_cuda_of_place(c, from_place), b = eini_cuda_of_place(c, to_place);
  const uint64_t x = (uint64_t)(uintptr_t)from, y = (uint64_t)(uintptr_t)to;
  ein_cuda *src = eini_cuda_at(c, a), *dst = eini_cuda_at(c, b);
  if (bytes == 0) return EIN_OK;
  if (a == b) return eini_cuda_beside(src, x, y, bytes);
  if (eini_cuda_direct(c, a, b)) return eini_cuda_peer_copy(src, x, dst, y, bytes);
  return eini_cuda_by_host(src, x, dst, y, bytes, a < b);
}
