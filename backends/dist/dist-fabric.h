// ================================================================================================
// >>dist-fabric  a fabric of one process whose places have memory of their own
// Every transfer is a copy, made when the second of a send and a receive is posted.
// ================================================================================================

enum { EINI_POST_LISTS = 1024 };

// A send or receive without a partner, or whose ticket nobody has waited for yet.
typedef struct eini_post {
  int from, to, send, done;
  int64_t tag;
  const void *src;
  void *dst;
  size_t bytes;
  int64_t next;             // in its list: the post's number + 1; 0: none
} eini_post;

typedef struct eini_posts {
  ein_allocator al;
  eini_post *post;          // a ticket is a number here + 1
  int64_t cap, free;        // free: those that are not in use are linked, low ones first
  int64_t list[EINI_POST_LISTS];  // posts without a partner, in the order they were made
  int64_t messages, bytes;  // moved
} eini_posts;

static int64_t *eini_posts_list(eini_posts *c, const eini_post *p) {
  int64_t word[3];
  word[0] = p->from, word[1] = p->to, word[2] = p->tag;
  return &c->list[eini_hash(word, sizeof word, 0) % EINI_POST_LISTS];
}

static ein_status eini_posts_grow(eini_posts *c) {
  const int64_t cap = c->cap < 16 ? 16 : 2 * c->cap;
  eini_post *more = (eini_post *)c->al.alloc_fn((size_t)cap * sizeof *more, 16, c->al.user);
  if (more == NULL) return EIN_ERR_NO_MEMORY;
  if (c->cap > 0) memcpy(more, c->post, (size_t)c->cap * sizeof *more);
  if (c->post != NULL) c->al.free_fn(c->post, (size_t)c->cap * sizeof *c->post, c->al.user);
  for (int64_t i = cap; i > c->cap; i--) {
    more[i - 1].next = c->free;
    c->free = i;
  }
  c->post = more;
  c->cap = cap;
  return EIN_OK;
}

// A ticket for a post, which is in no list.
static ein_status eini_posts_new(eini_posts *c, const eini_post *p, ein_ticket *ticket) {
  *ticket = 0;
  if (c->free == 0) EINI_TRY(eini_posts_grow(c));
  *ticket = c->free;
  c->free = c->post[*ticket - 1].next;
  c->post[*ticket - 1] = *p;
  return EIN_OK;
}

static void eini_posts_free(eini_posts *c, ein_ticket ticket) {
  c->post[ticket - 1].next = c->free;
  c->free = ticket;
}

// The first post that matches leaves its list; 0: there is none.
static int64_t eini_posts_partner(eini_posts *c, const eini_post *p) {
  int64_t *at = eini_posts_list(c, p);
  for (; *at != 0; at = &c->post[*at - 1].next) {
    const eini_post *o = &c->post[*at - 1];
    const int64_t n = *at;
    if (o->send == p->send || o->from != p->from || o->to != p->to || o->tag != p->tag) continue;
    *at = o->next;
    c->messages++;
    c->bytes += (int64_t)p->bytes;
    return n;
  }
  return 0;
}

// A post is kept until its partner comes.
static void eini_posts_keep(eini_posts *c, ein_ticket ticket) {
  int64_t *at = eini_posts_list(c, &c->post[ticket - 1]);
  while (*at != 0) at = &c->post[*at - 1].next;
  *at = ticket;
  c->post[ticket - 1].next = 0;
}

static void eini_posts_end(eini_posts *c) {
  if (c->post != NULL) c->al.free_fn(c->post, (size_t)c->cap * sizeof *c->post, c->al.user);
}

// Completes with the first post that matches, or keeps the new one.
static ein_status eini_copying_post(eini_posts *c, const eini_post *p, ein_ticket *ticket) {
  const int64_t partner = eini_posts_partner(c, p);
  *ticket = 0;
  if (partner == 0) {
    EINI_TRY(eini_posts_new(c, p, ticket));
    eini_posts_keep(c, *ticket);
    return EIN_OK;
  }
  eini_post *o = &c->post[partner - 1];
  if (o->bytes != p->bytes) return EIN_ERR_INTERNAL;
  if (p->bytes > 0) memcpy(p->send ? o->dst : p->dst, p->send ? p->src : o->src, p->bytes);
  o->done = 1;
  return EIN_OK;
}

static ein_status eini_copying_send(void *user, int from, int to, int64_t tag, const void *data,
                                    size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 1, 0, tag, data, NULL, bytes, 0};
  return eini_copying_post((eini_posts *)user, &p, ticket);
}

static ein_status eini_copying_recv(void *user, int to, int from, int64_t tag, void *data,
                                    size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 0, 0, tag, NULL, data, bytes, 0};
  return eini_copying_post((eini_posts *)user, &p, ticket);
}

static ein_status eini_copying_test(void *user, ein_ticket ticket, int *done) {
  *done = ticket == 0 || ((const eini_posts *)user)->post[ticket - 1].done;
  return EIN_OK;
}

// What has no partner by now will have none, nobody else can post: it is taken back.
static ein_status eini_copying_wait(void *user, ein_ticket ticket) {
  eini_posts *c = (eini_posts *)user;
  if (ticket == 0) return EIN_OK;
  const eini_post *o = &c->post[ticket - 1];
  const int done = o->done;
  int64_t *at = eini_posts_list(c, o);
  while (!done && *at != ticket) at = &c->post[*at - 1].next;
  if (!done) *at = o->next;
  eini_posts_free(c, ticket);
  return done ? EIN_OK : EIN_ERR_INTERNAL;
}

static void eini_copying_destroy(void *user) {
  eini_posts *c = (eini_posts *)user;
  const ein_allocator al = c->al;
  eini_posts_end(c);
  al.free_fn(c, sizeof *c, al.user);
}
