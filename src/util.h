// ================================================================================================
// >>util  checked arithmetic, arena, growable arrays, hashing
// Invariant: no size is ever computed without an overflow check; all planner memory is in arenas.
// ================================================================================================

// Return the status of a failed call to the caller. The only macro that changes control flow.
#define EINI_TRY(expr)                          \
  do {                                          \
    ein_status eini_try_status = (expr);        \
    if (eini_try_status != EIN_OK) return eini_try_status; \
  } while (0)

// *r = a*b (a+b); 1 when that does not fit, and then *r stays as it is.
#if defined(__GNUC__) || defined(__clang__)
static int eini_mul_overflow(int64_t a, int64_t b, int64_t *r) {
  int64_t t;
  if (__builtin_mul_overflow(a, b, &t)) return 1;
  *r = t;
  return 0;
}
static int eini_add_overflow(int64_t a, int64_t b, int64_t *r) {
  int64_t t;
  if (__builtin_add_overflow(a, b, &t)) return 1;
  *r = t;
  return 0;
}
#else  // neither gcc nor clang
static int eini_ctz(uint64_t x) {
  int n = 0;
  while (((x >> n) & 1u) == 0) n++;
  return n;
}
static int eini_mul_overflow(int64_t a, int64_t b, int64_t *r) {
  if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
            : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a)) {
    return 1;
  }
  *r = a * b;
  return 0;
}
static int eini_add_overflow(int64_t a, int64_t b, int64_t *r) {
  if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 1;
  *r = a + b;
  return 0;
}
#endif  // gcc or clang

static int64_t eini_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }  // b > 0
EINI_UNUSED static int64_t eini_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static int64_t eini_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t eini_max64(int64_t a, int64_t b) { return a > b ? a : b; }
EINI_UNUSED static int eini_count_bits(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  return (int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}
// The absolute value; of INT64_MIN the largest there is.
static int64_t eini_abs64(int64_t x) { return x >= 0 ? x : x == INT64_MIN ? INT64_MAX : -x; }

// r = a*b + c, or 1 when it does not fit.
EINI_UNUSED static int eini_muladd_overflow(int64_t a, int64_t b, int64_t c, int64_t *r) {
  int64_t t;
  return eini_mul_overflow(a, b, &t) || eini_add_overflow(t, c, r);
}

static int64_t eini_gcd64(int64_t a, int64_t b) {
  for (int64_t t; b != 0; b = t) {
    t = a % b;
    a = b;
  }
  return eini_abs64(a);
}

// Arena: one owner, freed at once. Slabs grow so that a plan is a handful of allocations;
// memory comes zeroed, so that a struct's all-zero state is its default state.
typedef struct eini_slab {
  struct eini_slab *next;
  size_t size, used;  // bytes, this header included
} eini_slab;

typedef struct eini_arena {
  ein_allocator al;
  eini_slab *head;
  size_t next_size, total;
} eini_arena;

// Bytes of an arena's first slab. With 1 each allocation is a slab, as sanitizers want it.
#ifndef EINI_ARENA_FIRST
#define EINI_ARENA_FIRST 8192
#endif
#define EINI_ALIGN 64u
#define EINI_NEW(arena, T, n) ((T *)eini_new((arena), (int64_t)(n), sizeof(T)))

static void *eini_default_alloc(size_t size, size_t align, void *user) {
  // Over-allocate and keep the original pointer just below the aligned one.
  (void)user;
  if (size > SIZE_MAX - align - sizeof(void *)) return NULL;
  char *raw = (char *)EINSUM_MALLOC(size + align + sizeof(void *));
  if (raw == NULL) return NULL;
  uintptr_t p = ((uintptr_t)raw + sizeof(void *) + align - 1) / align * align;
  memcpy((void *)(p - sizeof(void *)), &raw, sizeof raw);
  return (void *)p;
}

static void eini_default_free(void *ptr, size_t size, void *user) {
  (void)size;
  (void)user;
  if (ptr == NULL) return;
  void *raw;
  memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  EINSUM_FREE(raw);
}

static void eini_arena_init(eini_arena *a, const ein_allocator *al) {
  memset(a, 0, sizeof *a);
  if (al != NULL && al->alloc_fn != NULL) {
    a->al = *al;
  } else {
    a->al.alloc_fn = eini_default_alloc;
    a->al.free_fn = eini_default_free;
  }
  a->next_size = EINI_ARENA_FIRST;
}

static void eini_arena_free(eini_arena *a) {
  eini_slab *b = a->head;
  while (b != NULL) {
    eini_slab *next = b->next;
    a->al.free_fn(b, b->size, a->al.user);
    b = next;
  }
  a->head = NULL;
  a->total = 0;
}

// Where an arena stands. What was allocated since is freed by eini_arena_rollback.
typedef struct eini_arena_at {
  eini_slab *head;
  size_t used, next_size;
} eini_arena_at;

static eini_arena_at eini_arena_mark(const eini_arena *a) {
  eini_arena_at m;
  m.head = a->head;
  m.used = a->head == NULL ? 0 : a->head->used;
  m.next_size = a->next_size;
  return m;
}

static void eini_arena_rollback(eini_arena *a, const eini_arena_at *m) {
  while (a->head != m->head) {
    eini_slab *b = a->head;
    a->head = b->next;
    a->total -= b->size;
    a->al.free_fn(b, b->size, a->al.user);
  }
  if (a->head != NULL) a->head->used = m->used;
  a->next_size = m->next_size;
}

// count*size zeroed bytes, aligned to 16 (to 64 from 1 KiB on); NULL when out of memory or when
// the size overflows. count 0 gives a valid pointer.
static void *eini_new(eini_arena *a, int64_t count, size_t size) {
  if (count < 0 || (size != 0 && (uint64_t)count > (SIZE_MAX / 4) / size)) return NULL;
  size_t bytes = (size_t)count * size;
  size_t align = bytes >= 1024 ? EINI_ALIGN : 16;
  size_t at = 0;
  if (a->head != NULL) at = (a->head->used + align - 1) & ~(align - 1);
  if (a->head == NULL || at > a->head->size || bytes > a->head->size - at) {
    size_t head = EINI_ALIGN;  // the header, padded so that its data is aligned
    size_t need = bytes + head;
    size_t want = need > a->next_size ? need : a->next_size;
    eini_slab *b = (eini_slab *)a->al.alloc_fn(want, EINI_ALIGN, a->al.user);
    if (b == NULL) return NULL;
    b->next = a->head;
    b->size = want;
    b->used = at = head;
    a->head = b;
    a->total += want;
    if (a->next_size > 1 && a->next_size < ((size_t)1 << 20)) a->next_size *= 2;
  }
  void *p = (char *)a->head + at;
  a->head->used = at + bytes;
  memset(p, 0, bytes);
  return p;
}

// Make room for one more element in an arena array of *cap elements, len of them used.
// Returns the (possibly moved) array, NULL when out of memory (the old array stays valid).
EINI_UNUSED static void *eini_grow(eini_arena *a, void *old, int64_t len, int64_t *cap,
                                   size_t size) {
  if (len < *cap) return old;
  int64_t want = *cap < 8 ? 8 : *cap * 2;
  void *p = eini_new(a, want, size);
  if (p == NULL) return NULL;
  if (len > 0) memcpy(p, old, (size_t)len * size);
  *cap = want;
  return p;
}

EINI_UNUSED static char *eini_strndup(eini_arena *a, const char *s, int64_t n) {
  char *p = EINI_NEW(a, char, n + 1);
  if (p != NULL && n > 0) memcpy(p, s, (size_t)n);
  return p;
}

// Is a name one of a list's, by comma?
EINI_UNUSED static int eini_listed(const char *list, const char *name) {
  const size_t n = strlen(name);
  while (strncmp(list, name, n) != 0 || (list[n] != 0 && list[n] != ',')) {
    list = strchr(list, ',');
    if (list == NULL) return 0;
    list++;
  }
  return 1;
}

// Bytes that are needed while steps [from, to] run; their place goes to *at.
typedef struct eini_item {
  int from, to;
  int64_t bytes, *at;
} eini_item;

// Places items, which come in the order of `from`, each at the lowest address from `head` on that
// is free while it is alive. alive: [n], those placed that are, by address. *top: bytes in all.
static ein_status eini_items_place(const eini_item *item, int n, int64_t head, int *alive,
                                   int64_t *top) {
  int live = 0;
  *top = head;
  for (int i = 0; i < n; i++) {
    int kept = 0, where = 0;
    int64_t at = head, end;
    for (int k = 0; k < live; k++)
      if (item[alive[k]].to >= item[i].from) alive[kept++] = alive[k];
    live = kept;
    for (; where < live; where++) {
      const eini_item *o = &item[alive[where]];
      if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
      if (end <= *o->at) break;
      at = eini_max64(at, *o->at + o->bytes);
    }
    if (eini_add_overflow(at, item[i].bytes, &end)) return EIN_ERR_TOO_LARGE;
    *item[i].at = at;
    *top = eini_max64(*top, end);
    memmove(alive + where + 1, alive + where, (size_t)(live - where) * sizeof *alive);
    alive[where] = i;
    live++;
  }
  return (uint64_t)*top > SIZE_MAX / 4 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

// FNV-1a over 8-byte words; only for hash tables, never stored.
EINI_UNUSED static uint64_t eini_hash(const void *data, size_t n, uint64_t h) {
  const unsigned char *p = (const unsigned char *)data;
  h ^= 0xcbf29ce484222325u;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    h = (h ^ w) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  for (; n > 0; n--, p++) h = (h ^ *p) * 0x100000001b3u;
  return h ^ (h >> 32);
}

// Keys of integers, numbered as they come.
typedef struct eini_keys {
  int64_t *word, *end;          // all keys one after another, and where each ends
  int64_t n, capword, cap, nslot;
  int *slot;                    // hash table: a key's number + 1
} eini_keys;

// Where in the hash table a key is, or would be.
static int64_t eini_key_slot(const eini_keys *t, const int64_t *key, int64_t len) {
  const size_t bytes = (size_t)len * sizeof *key;
  int64_t at = (int64_t)(eini_hash(key, bytes, 0) & (uint64_t)(t->nslot - 1));
  for (; t->slot[at] != 0; at = (at + 1) & (t->nslot - 1)) {
    const int64_t i = t->slot[at] - 1, from = i > 0 ? t->end[i - 1] : 0;
    if (t->end[i] - from == len && memcmp(t->word + from, key, bytes) == 0) break;
  }
  return at;
}

// The number of a key that is there, else -1. Nothing changes, so that many threads may ask.
EINI_UNUSED static int64_t eini_key_find(const eini_keys *t, const int64_t *key, int64_t len) {
  return t->nslot > 0 ? (int64_t)t->slot[eini_key_slot(t, key, len)] - 1 : -1;
}

// The number of a key: that of the last one when it is new. -1: out of memory.
EINI_UNUSED static int64_t eini_key_number(eini_arena *a, eini_keys *t, const int64_t *key,
                                           int64_t len) {
  if (t->word == NULL && (t->word = EINI_NEW(a, int64_t, 1)) == NULL) return -1;  // empty keys
  if (2 * t->n >= t->nslot) {
    const int64_t want = t->nslot < 16 ? 32 : 4 * t->nslot;
    if ((t->slot = EINI_NEW(a, int, want)) == NULL) return -1;
    t->nslot = want;
    for (int64_t i = 0, from = 0; i < t->n; from = t->end[i++])
      t->slot[eini_key_slot(t, t->word + from, t->end[i] - from)] = (int)i + 1;
  }
  const int64_t at = eini_key_slot(t, key, len), used = t->n > 0 ? t->end[t->n - 1] : 0;
  if (t->slot[at] != 0) return t->slot[at] - 1;
  for (int64_t full = t->capword; full < used + len; full = t->capword)
    if ((t->word = (int64_t *)eini_grow(a, t->word, full, &t->capword, sizeof *key)) == NULL)
      return -1;
  int64_t *end = (int64_t *)eini_grow(a, t->end, t->n, &t->cap, sizeof *end);
  if (end == NULL) return -1;
  t->end = end;
  if (len > 0) memcpy(t->word + used, key, (size_t)len * sizeof *key);
  t->end[t->n] = used + len;
  t->slot[at] = (int)++t->n;
  return t->n - 1;
}

// A heap with the least item on top, by key and then by seq.
typedef struct eini_ranked {
  double key;
  int64_t seq, what;
} eini_ranked;

static int eini_ranked_less(const eini_ranked *a, const eini_ranked *b) {
  return a->key < b->key || (a->key <= b->key && a->seq < b->seq);
}

// Lets the item at i sink among n.
EINI_UNUSED static void eini_heap_sink(eini_ranked *heap, int64_t n, int64_t i) {
  const eini_ranked x = heap[i];
  for (int64_t c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && eini_ranked_less(&heap[c + 1], &heap[c])) c++;
    if (!eini_ranked_less(&heap[c], &x)) break;
    heap[i] = heap[c];
  }
  heap[i] = x;
}

// Takes the least of n > 0 out.
EINI_UNUSED static eini_ranked eini_heap_pop(eini_ranked *heap, int64_t *n) {
  const eini_ranked least = heap[0];
  heap[0] = heap[--*n];
  if (*n > 0) eini_heap_sink(heap, *n, 0);
  return least;
}

// Lets it rise.
EINI_UNUSED static void eini_heap_rise(eini_ranked *heap, int64_t i) {
  const eini_ranked x = heap[i];
  for (; i > 0 && eini_ranked_less(&x, &heap[(i - 1) / 2]); i = (i - 1) / 2)
    heap[i] = heap[(i - 1) / 2];
  heap[i] = x;
}
