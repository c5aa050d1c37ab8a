// ================================================================================================
// >>dist-clock  a fabric with a clock instead of data
// Takes what is posted and computed, and a machine; gives tickets in the order in which operations
// are over. A message sets out when both of its places have posted it.
// ================================================================================================

typedef enum eini_timer_kind {
  EINI_TIMER_WAITS,         // for its partner, or its place
  EINI_TIMER_MOVES,         // a message that comes to its next link
  EINI_TIMER_COMPUTES,
  EINI_TIMER_OVER
} eini_timer_kind;

// What is known of a post besides. A computation has no partner: its place is `to`, its tag is its
// order, and `next` is the one behind it at its place.
typedef struct eini_timed {
  int kind;
  int64_t partner;          // ticket of the send
  double begin, end;        // of a computation that waits: 0 and its seconds
  eini_transit way;
} eini_timed;

typedef struct eini_timer {
  eini_posts posts;
  eini_arena arena;         // has what follows by place
  int places;
  ein_machine machine;
  eini_links links;
  int64_t *first;           // [place] computations that wait, by order; 0: there are none
  char *busy, *listed;      // [place] it computes; it is in
  int64_t *idle, nidle;     // those where something waits and nothing is computed
  eini_timed *op;           // by ticket, as posts
  int64_t cap;
  eini_ranked *event;       // what is over next, on top; what: a ticket
  int64_t nevent, turn;
  double now;
} eini_timer;

// Room for what is known of every post, and behind that for an event of each.
static ein_status eini_timer_room(eini_timer *c) {
  const ein_allocator *al = &c->posts.al;
  const size_t each = sizeof *c->op + sizeof *c->event, n = (size_t)c->posts.cap;
  if (c->posts.cap <= c->cap) return EIN_OK;
  eini_timed *op = (eini_timed *)al->alloc_fn(n * each, 16, al->user);
  if (op == NULL) return EIN_ERR_NO_MEMORY;
  eini_ranked *event = (eini_ranked *)(void *)(op + n);
  if (c->cap > 0) memcpy(op, c->op, (size_t)c->cap * sizeof *op);
  if (c->nevent > 0) memcpy(event, c->event, (size_t)c->nevent * sizeof *event);
  if (c->cap > 0) al->free_fn(c->op, (size_t)c->cap * each, al->user);
  c->op = op;
  c->event = event;
  c->cap = (int64_t)n;
  return EIN_OK;
}

static ein_status eini_timer_new(eini_timer *c, const eini_post *p, int kind, ein_ticket *ticket) {
  EINI_TRY(eini_posts_new(&c->posts, p, ticket));
  const ein_status st = eini_timer_room(c);
  if (st != EIN_OK) {
    eini_posts_free(&c->posts, *ticket);
    *ticket = 0;
    return st;
  }
  memset(&c->op[*ticket - 1], 0, sizeof *c->op);
  c->op[*ticket - 1].kind = kind;
  return EIN_OK;
}

// Something happens with an operation: of what happens at once, in the order in which it came up;
// messages that set out come last, those of lower tags first, in turns, whoever posted first.
static void eini_timer_event(eini_timer *c, ein_ticket ticket, int kind, double when) {
  eini_ranked *e = &c->event[c->nevent];
  const eini_transit *x = &c->op[ticket - 1].way;
  const int64_t tag = eini_min64(c->posts.post[ticket - 1].tag, ((int64_t)1 << 36) / c->places);
  const int64_t turn = kind == EINI_TIMER_MOVES && x->hops == 0
                           ? 1 + tag * c->places + eini_links_turn(c->places, x->from, x->to) : 0;
  e->key = when;
  e->seq = (turn << 26) + c->turn++;
  e->what = ticket;
  c->op[ticket - 1].kind = kind;
  eini_heap_rise(c->event, c->nevent++);
}

static ein_status eini_timer_post(eini_timer *c, const eini_post *p, ein_ticket *ticket) {
  EINI_TRY(eini_timer_new(c, p, EINI_TIMER_WAITS, ticket));
  const int64_t partner = eini_posts_partner(&c->posts, p);
  if (partner == 0) return eini_posts_keep(&c->posts, *ticket), EIN_OK;
  if (c->posts.post[partner - 1].bytes != p->bytes) return EIN_ERR_INTERNAL;
  const int64_t receive = p->send ? partner : *ticket;
  eini_timed *x = &c->op[receive - 1];
  x->partner = p->send ? *ticket : partner;
  x->way.from = p->from;
  x->way.to = p->to;
  x->way.bytes = (double)p->bytes;
  x->way.begin = x->way.end = c->now;
  eini_timer_event(c, receive, EINI_TIMER_MOVES, c->now);
  return EIN_OK;
}

static ein_status eini_timer_send(void *user, int from, int to, int64_t tag, const void *data,
                                  size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 1, 0, tag, data, NULL, bytes, 0, NULL};
  return eini_timer_post((eini_timer *)user, &p, ticket);
}

static ein_status eini_timer_recv(void *user, int to, int from, int64_t tag, void *data,
                                  size_t bytes, ein_ticket *ticket) {
  const eini_post p = {from, to, 0, 0, tag, NULL, data, bytes, 0, NULL};
  return eini_timer_post((eini_timer *)user, &p, ticket);
}

// Nobody computes at a place where something waits: it is looked at before time goes on.
static void eini_timer_idle(eini_timer *c, int place) {
  if (c->busy[place] || c->listed[place] || c->first[place] == 0) return;
  c->listed[place] = 1;
  c->idle[c->nidle++] = place;
}

static ein_status eini_timer_compute(void *user, int place, int order, double seconds,
                                     ein_ticket *ticket) {
  eini_timer *c = (eini_timer *)user;
  const eini_post p = {place, place, 0, 0, order, NULL, NULL, 0, 0, NULL};
  EINI_TRY(eini_timer_new(c, &p, EINI_TIMER_WAITS, ticket));
  c->op[*ticket - 1].end = seconds;
  int64_t *at = &c->first[place];
  while (*at != 0 && c->posts.post[*at - 1].tag <= order) at = &c->posts.post[*at - 1].next;
  c->posts.post[*ticket - 1].next = *at;
  *at = *ticket;
  eini_timer_idle(c, place);
  return EIN_OK;
}

// Places that are idle begin with the first that waits.
static void eini_timer_begin(eini_timer *c) {
  for (int64_t i = 0; i < c->nidle; i++) {
    const int64_t q = c->idle[i], ticket = c->first[q];
    eini_timed *x = &c->op[ticket - 1];
    c->first[q] = c->posts.post[ticket - 1].next;
    c->listed[q] = 0;
    c->busy[q] = 1;
    x->begin = c->now;
    x->end += c->now;
    eini_timer_event(c, ticket, EINI_TIMER_COMPUTES, x->end);
  }
  c->nidle = 0;
}

// A message comes to a link. Its sender is done when the first one has carried it.
static void eini_timer_hop(eini_timer *c, ein_ticket ticket) {
  eini_timed *x = &c->op[ticket - 1];
  const int there = eini_links_hop(&c->links, &x->way);
  if (x->way.hops == 1) {
    eini_timed *from = &c->op[x->partner - 1];
    from->begin = x->way.sent;
    from->end = c->links.out[x->way.from];
    eini_timer_event(c, x->partner, EINI_TIMER_OVER, from->end);
  }
  x->begin = x->way.sent;
  x->end = x->way.end;
  eini_timer_event(c, ticket, there ? EINI_TIMER_OVER : EINI_TIMER_MOVES,
                   there ? x->end : x->way.begin);
}

// What is over at one time is told before places begin with what they have got by then.
static ein_status eini_timer_next(void *user, ein_ticket *ticket, double *begin, double *end) {
  eini_timer *c = (eini_timer *)user;
  *ticket = 0;
  *begin = *end = c->now;
  for (;;) {
    if (c->nidle > 0 && (c->nevent == 0 || c->event[0].key > c->now)) eini_timer_begin(c);
    if (c->nevent == 0) return EIN_OK;
    const eini_ranked e = eini_heap_pop(c->event, &c->nevent);
    c->now = e.key;
    const eini_timed *x = &c->op[e.what - 1];
    if (x->kind == EINI_TIMER_MOVES) {
      eini_timer_hop(c, e.what);
      continue;
    }
    const int place = c->posts.post[e.what - 1].to;
    if (x->kind == EINI_TIMER_COMPUTES) {
      c->busy[place] = 0;
      eini_timer_idle(c, place);
    }
    *ticket = e.what;
    *begin = x->begin;
    *end = x->end;
    eini_posts_free(&c->posts, e.what);
    return EIN_OK;
  }
}

// A run begins, at 0 seconds; what is left of one that failed is forgotten.
static ein_status eini_timer_start(void *user, int64_t tickets, int64_t bytes) {
  eini_timer *c = (eini_timer *)user;
  eini_posts *posts = &c->posts;
  const int places = c->places;
  (void)tickets, (void)bytes;
  for (int64_t i = 0; i < posts->cap; i++) posts->head[i] = 0;
  posts->free = 0;
  for (int64_t i = posts->cap; i > 0; i--) {
    posts->post[i - 1].next = posts->free;
    posts->free = i;
  }
  c->nidle = c->nevent = c->turn = 0;
  c->now = 0;
  for (int q = 0; q < places; q++) {
    c->first[q] = c->busy[q] = c->listed[q] = 0;
    c->links.in[q] = c->links.out[q] = 0;
  }
  for (int64_t n = 0; n < c->links.nnodes; n++) c->links.node[0][n] = c->links.node[1][n] = 0;
  return EIN_OK;
}

static ein_status eini_timer_wait(void *user, ein_ticket ticket) {
  (void)user;
  return ticket == 0 ? EIN_OK : EIN_ERR_UNSUPPORTED;  // time goes on with next_fn
}

static void eini_timer_destroy(void *user) {
  eini_timer *c = (eini_timer *)user;
  eini_arena arena = c->arena;  // which it lies in
  const ein_allocator *al = &arena.al;
  eini_posts_end(&c->posts);
  if (c->cap > 0)
    al->free_fn(c->op, (size_t)c->cap * (sizeof *c->op + sizeof *c->event), al->user);
  eini_arena_free(&arena);
}

static ein_status eini_timer_make(eini_arena *a, int places, const ein_machine *machine,
                                  eini_timer **out) {
  eini_timer *c = *out = EINI_NEW(a, eini_timer, 1);
  if (c == NULL) return EIN_ERR_NO_MEMORY;
  c->posts.al = a->al;
  c->places = places;
  c->machine = eini_machine_of(machine);
  c->first = EINI_NEW(a, int64_t, places);
  c->busy = EINI_NEW(a, char, places);
  c->listed = EINI_NEW(a, char, places);
  c->idle = EINI_NEW(a, int64_t, places);
  if (c->first == NULL || c->busy == NULL || c->listed == NULL || c->idle == NULL)
    return EIN_ERR_NO_MEMORY;
  return eini_links_init(a, &c->machine, places, &c->links);
}
