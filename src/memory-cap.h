// ================================================================================================
// >>memory-cap  an allocator that counts and refuses
// Invariant: live <= limit. Planning and ein_plan_destroy use it, so it needs no lock.
// ================================================================================================

typedef struct eini_cap {
  ein_allocator al;         // the ctx's
  size_t limit, live;
  size_t peak, top;         // most alive since peak was set back, and ever
  int refused, failed;      // the limit was hit; al had no memory
} eini_cap;

static void *eini_cap_alloc(size_t size, size_t align, void *user) {
  eini_cap *c = (eini_cap *)user;
  if (c->live > c->limit || size > c->limit - c->live) {
    c->refused = 1;
    return NULL;
  }
  void *p = c->al.alloc_fn(size, align, c->al.user);
  if (p == NULL) {
    c->failed = 1;
    return NULL;
  }
  c->live += size;
  if (c->live > c->peak) c->peak = c->live;
  if (c->live > c->top) c->top = c->live;
  return p;
}

static void eini_cap_free(void *p, size_t size, void *user) {
  eini_cap *c = (eini_cap *)user;
  if (p == NULL) return;
  c->live -= size;
  c->al.free_fn(p, size, c->al.user);
}

static ein_allocator eini_cap_allocator(eini_cap *c) {
  ein_allocator al;
  al.alloc_fn = eini_cap_alloc;
  al.free_fn = eini_cap_free;
  al.user = c;
  return al;
}

// Was the status due to the budget, so that something smaller may do? What a candidate makes may
// also not fit 64 bits: descriptors, views and layouts were found valid before the search.
static int eini_cap_hit(eini_cap *c, ein_status st) {
  int yes = !c->failed && ((st == EIN_ERR_NO_MEMORY && c->refused) || st == EIN_ERR_TOO_LARGE);
  c->refused = 0;
  return yes;
}
