// ================================================================================================
// >>dist-fabric  a fabric of one process whose places have memory of their own
// Every transfer is a copy, made when the second of a send and a receive is posted: by the host, or
// by a provider from or to its memory.
// ================================================================================================

// A send or receive without a partner, or whose ticket nobody has waited for yet.
typedef struct eini_post {
  int from, to, send, done;
  int64_t tag;
  const void *src;
  void *dst;
  size_t bytes;
  int64_t next;             // in its list: the post's number + 1; 0: none
  const ein_kernels *away;  // in whose memory src, dst is; NULL: the host's
} eini_post;

typedef struct eini_posts {
  ein_allocator al;
  eini_post *post;          // a ticket is a number here + 1
  int64_t cap, free;        // free: those that are not in use are linked, low ones first
  int64_t *head, *tail;     // [cap] posts without a partner, in the order they were made, by hash
  int64_t messages, bytes;  // moved
  const ein_kernels *away;  // of what is posted next
} eini_posts;

// The list of a post. Where there are twice as many, each has those of one before.
static int64_t eini_posts_list(const eini_posts *c, const eini_post *p) {
  int64_t word[3];
  word[0] = p->from, word[1] = p->to, word[2] = p->tag;
  return (int64_t)(eini_hash(word, sizeof word, 0) & (uint64_t)(c->cap - 1));
}

// A post is kept until its partner comes.
static void eini_posts_keep(eini_posts *c, ein_ticket ticket) {
  const int64_t list = eini_posts_list(c, &c->post[ticket - 1]);
  if (c->head[list] == 0) c->head[list] = ticket;
  else c->post[c->tail[list] - 1].next = ticket;
  c->tail[list] = ticket;
  c->post[ticket - 1].next = 0;
}

// Post `at` leaves its list, in which it comes behind `before`, 0: it is the first.
static void eini_posts_drop(eini_posts *c, int64_t list, int64_t before, int64_t at) {
  if (before == 0) c->head[list] = c->post[at - 1].next;
  else c->post[before - 1].next = c->post[at - 1].next;
  if (c->tail[list] == at) c->tail[list] = before;
}

static size_t eini_posts_bytes(int64_t cap) {
  return (size_t)cap * (sizeof(eini_post) + 2 * sizeof(int64_t));
}

static void eini_posts_end(eini_posts *c) {
  if (c->post != NULL) c->al.free_fn(c->post, eini_posts_bytes(c->cap), c->al.user);
}

static ein_status eini_posts_grow(eini_posts *c) {
  const int64_t cap = c->cap < 16 ? 16 : 2 * c->cap;
  eini_posts more = *c;
  more.post = (eini_post *)c->al.alloc_fn(eini_posts_bytes(cap), 16, c->al.user);
  if (more.post == NULL) return EIN_ERR_NO_MEMORY;
  more.cap = cap;
  more.head = (int64_t *)(void *)(more.post + cap);
  more.tail = more.head + cap;
  memset(more.head, 0, 2 * (size_t)cap * sizeof *more.head);
  if (c->cap > 0) memcpy(more.post, c->post, (size_t)c->cap * sizeof *c->post);
  for (int64_t i = 0; i < c->cap; i++)
    for (int64_t at = c->head[i]; at != 0; at = c->post[at - 1].next) eini_posts_keep(&more, at);
  for (int64_t i = cap; i > c->cap; i--) {
    more.post[i - 1].next = more.free;
    more.free = i;
  }
  eini_posts_end(c);
  *c = more;
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
  const int64_t list = c->cap == 0 ? 0 : eini_posts_list(c, p);
  int64_t before = 0, at = c->cap == 0 ? 0 : c->head[list];
  for (; at != 0; before = at, at = c->post[at - 1].next) {
    const eini_post *o = &c->post[at - 1];
    if (o->send == p->send || o->from != p->from || o->to != p->to || o->tag != p->tag) continue;
    eini_posts_drop(c, list, before, at);
    c->messages++;
    c->bytes += (int64_t)p->bytes;
    break;
  }
  return at;
}

// Between the memories of two places.
static ein_status eini_copying_move(const eini_post *send, const eini_post *recv) {
  const ein_kernels *k = send->away != NULL ? send->away : recv->away;
  if (send->bytes == 0) return EIN_OK;
  if (k == NULL) {
    memcpy(recv->dst, send->src, send->bytes);
    return EIN_OK;
  }
  const ein_memory *m = k->memory;
  if (send->away == recv->away)
    return m->peer_fn(k->user, send->bytes, send->src, send->from, recv->dst, recv->to);
  if (m->place_fn != NULL) m->place_fn(k->user, recv->away != NULL ? recv->to : send->from);
  const ein_status st =
      m->copy_fn(k->user, send->bytes, send->src, recv->dst, recv->away != NULL);
  if (m->place_fn != NULL) m->place_fn(k->user, -1);
  return st;
}

// Completes with the first post that matches, or keeps the new one. A copy that fails is done, too:
// who has posted waits for nothing.
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
  o->done = 1;
  return eini_copying_move(p->send ? p : o, p->send ? o : p);
}

static ein_status eini_copying_memory(void *user, const ein_kernels *k) {
  ((eini_posts *)user)->away = k;
  return k == NULL || k->memory->peer_fn != NULL ? EIN_OK : EIN_ERR_UNSUPPORTED;
}

static ein_status eini_copying_send(void *user, int from, int to, int64_t tag, const void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_posts *c = (eini_posts *)user;
  const eini_post p = {from, to, 1, 0, tag, data, NULL, bytes, 0, c->away};
  return eini_copying_post(c, &p, ticket);
}

static ein_status eini_copying_recv(void *user, int to, int from, int64_t tag, void *data,
                                    size_t bytes, ein_ticket *ticket) {
  eini_posts *c = (eini_posts *)user;
  const eini_post p = {from, to, 0, 0, tag, NULL, data, bytes, 0, c->away};
  return eini_copying_post(c, &p, ticket);
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
  const int64_t list = eini_posts_list(c, o);
  int64_t before = 0, at = c->head[list];
  for (; !done && at != ticket; before = at) at = c->post[at - 1].next;
  if (!done) eini_posts_drop(c, list, before, at);
  eini_posts_free(c, ticket);
  return done ? EIN_OK : EIN_ERR_INTERNAL;
}

static void eini_copying_destroy(void *user) {
  eini_posts *c = (eini_posts *)user;
  const ein_allocator al = c->al;
  eini_posts_end(c);
  al.free_fn(c, sizeof *c, al.user);
}
