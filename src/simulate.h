// ================================================================================================
// >>simulate  tasks, messages, bytes and a time line, without data
// Takes a graph and a decomposition; enumerates every task at its place. A task starts when what it
// reads has arrived and its place is free: no barrier between statements.
// ================================================================================================

#define EINI_SIM_VISITS ((int64_t)1 << 26)  // blocks looked at, about; then homes share evenly
#define EINI_SIM_POSTS ((int64_t)1 << 20)   // and messages of an edge that are kept, with nodes

// What moves over an edge, whenever: edges of equal statements that are cut alike share it.
typedef struct eini_sim_traffic {
  double *fetched;         // [place] bytes that its task fetches
  unsigned char *own;      // [place] its task finds something at home
  double total, messages;
  int64_t n;               // messages, in turns; -1: too many to follow
  int *from, *to;          // places
  double *bytes;
} eini_sim_traffic;

typedef struct eini_sim {
  eini_decomposer dc;      // nodes, edges and machine
  const ein_decomposition *d;
  const ein_sim_desc *desc;
  eini_edges edges;
  eini_space *space;       // [node]
  double **done;           // [node][place] when a block is complete; NULL: not, or no more, needed
  double *last;            // [node] the latest of done
  int *reader;             // [node] its last reader; -1: none
  eini_links links;
  double *clock;           // [place] when it has computed all so far
  double *over[2];         // [place] when it was through with the statement before; and the one
                           //   before that, whose memory then takes what moves
  double *held, *peak;     // [place] bytes of inputs and blocks; and with those of its tasks
  double *pending;         // [place] end of the task of this statement, and of what it merged
  double *ready, *fetched;  // [place] when what its task reads is there, and what it fetches of it
  double *move;            // [place] bytes that its task fetches over one edge, or folds
  double *nodes[2];        // [node of the machine] of one edge: shares of the homes, bytes fetched
  eini_transit *post;      // messages of the statement that have not set out
  int64_t npost, cappost;
  eini_ranked *heap;       // of posts, the first one that comes to a link on top
  int64_t capheap;
  int64_t *lo, *hi, *from, *to, *nlo, *nhi, *s0, *s1, *key, *klo, *khi;  // of one task
  int64_t visits;          // blocks looked at that one edge may have
  eini_arena known;        // of traffic
  eini_keys keys;
  eini_sim_traffic *traffic;  // by number of their keys
  int64_t ntraffic, captraffic, stored;  // stored: entries of their lists
  eini_respelled kinds;
  int64_t *edgekey;
  double limit;            // seconds from which on it does not matter how long it takes
  double flops;
  int stmt;
  ein_sim_stmt now;        // of this statement
} eini_sim;

static double *eini_sim_array(eini_sim *m, int64_t n) {
  size_t bytes = (size_t)n * sizeof(double);
  double *p = (double *)m->dc.arena.al.alloc_fn(bytes, EINI_ALIGN, m->dc.arena.al.user);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

static void eini_sim_drop(eini_sim *m, double **p, int64_t n) {
  if (*p != NULL)
    m->dc.arena.al.free_fn(*p, (size_t)n * sizeof(double), m->dc.arena.al.user);
  *p = NULL;
}

// Message x is where it goes.
static void eini_sim_arrive(eini_sim *m, const eini_transit *x) {
  ein_sim_move v;
  if (x->end > m->ready[x->to]) m->ready[x->to] = x->end;
  m->now.messages++;
  if (m->desc->move_fn == NULL) return;
  v.stmt = m->stmt;
  v.from = x->from;
  v.to = x->to;
  v.bytes = x->bytes;
  v.sent = x->sent;
  v.arrived = x->end;
  m->desc->move_fn(m->desc->user, &v);
}

// All messages that were posted go their ways: at every link, first come first served.
static ein_status eini_sim_deliver(eini_sim *m) {
  int64_t n = m->npost;
  if (n > m->capheap) {
    m->heap = EINI_NEW(&m->dc.arena, eini_ranked, m->cappost);
    m->capheap = m->heap == NULL ? 0 : m->cappost;
    if (m->heap == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int64_t i = 0; i < n; i++) {
    m->heap[i].key = m->post[i].begin;
    m->heap[i].seq = i;
  }
  for (int64_t i = n / 2; i-- > 0;) eini_heap_sink(m->heap, n, i);
  while (n > 0) {
    eini_transit *x = &m->post[m->heap[0].seq];
    if (eini_links_hop(&m->links, x)) {
      eini_sim_arrive(m, x);
      m->heap[0] = m->heap[--n];
    } else {
      m->heap[0].key = x->begin;
    }
    if (n > 0) eini_heap_sink(m->heap, n, 0);
  }
  m->npost = 0;
  return EIN_OK;
}

// A message sets out at `since`; m->ready[to] will be when it is there, or later. Where there are
// no nodes it goes behind those before it, else when all are delivered.
static ein_status eini_sim_send(eini_sim *m, int64_t from, int64_t to, double bytes,
                                double since) {
  if (m->over[1][from] > since) since = m->over[1][from];
  if (m->over[1][to] > since) since = m->over[1][to];
  if (m->links.nnodes == 0) {
    const eini_transit x = eini_links_pass(&m->links, from, to, bytes, since);
    eini_sim_arrive(m, &x);
    return EIN_OK;
  }
  const eini_transit x = {from, to, bytes, 0, since, since, 0};
  eini_transit *all = (eini_transit *)eini_grow(&m->dc.arena, m->post, m->npost, &m->cappost,
                                                sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  m->post = all;
  m->post[m->npost++] = x;
  return EIN_OK;
}

// Bytes that the task at a place fetches over one edge; *own: 1 where it has some at home. The box
// it reads is then in from and to, the index ranges of its producer in nlo and nhi, and the pieces
// of those in klo and khi: *blocks of them.
static double eini_sim_needs(eini_sim *m, const eini_dedge *e, int64_t place, int64_t *blocks,
                             unsigned char *own) {
  const eini_stmt *s = m->dc.node[e->x].s, *t = m->dc.node[e->y].s;
  const ein_parts *p = &m->d->parts[e->x], *q = &m->d->parts[e->y];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  double need, found = 0;
  *blocks = *own = 0;
  eini_task_ranges(t, q->cut, q->order, q->norder, place, 0, m->lo, m->hi);
  eini_block_hull(t, &b, e->k, m->from, m->to);
  if (!eini_box_ranges(s, m->from, m->to, m->nlo, m->nhi)) return 0;
  need = eini_block_in_box(s, m->nlo, m->nhi, m->from, m->to, m->s0, m->s1);
  if (eini_task_ranges(s, p->cut, p->order, p->norder, place, 1, m->klo, m->khi))
    found = eini_block_in_box(s, m->klo, m->khi, m->from, m->to, m->s0, m->s1);
  *own = found > 0;
  if (need - found <= 0) return 0;
  *blocks = 1;
  for (int c = 0; c < s->nfree; c++) {
    m->klo[c] = eini_piece_of(s->index[c].extent, p->cut[c], m->nlo[c]);
    m->khi[c] = eini_piece_of(s->index[c].extent, p->cut[c], m->nhi[c] - 1) + 1;
    *blocks *= m->khi[c] - m->klo[c];
  }
  for (int c = s->nfree; c < s->nindex; c++) m->key[c] = 0;
  return (need - found) * eini_element_bytes(&m->dc, s->out);
}

// The task at a place receives the blocks of klo to khi.
static void eini_sim_receive(eini_sim *m, const eini_dedge *e, int64_t place, int64_t blocks,
                             eini_sim_traffic *t) {
  const eini_stmt *s = m->dc.node[e->x].s;
  const ein_parts *p = &m->d->parts[e->x];
  double size = eini_element_bytes(&m->dc, s->out);
  for (int c = 0; c < s->nfree; c++) m->key[c] = m->klo[c];
  for (int64_t i = 0; i < blocks; i++) {
    int64_t home = eini_space_place(&m->space[e->x], m->key);
    for (int c = 0; c < s->nfree; c++) {
      int64_t x = s->index[c].extent;
      m->lo[c] = eini_max64(m->nlo[c], eini_piece_start(x, p->cut[c], m->key[c]));
      m->hi[c] = eini_min64(m->nhi[c], eini_piece_start(x, p->cut[c], m->key[c] + 1));
    }
    double n = home == place ? 0
               : eini_block_in_box(s, m->lo, m->hi, m->from, m->to, m->s0, m->s1);
    if (n > 0) {
      t->from[t->n] = (int)home;
      t->to[t->n] = (int)place;
      t->bytes[t->n++] = n * size;
    }
    for (int c = s->nfree - 1; c >= 0 && ++m->key[c] == m->khi[c]; c--) m->key[c] = m->klo[c];
  }
}

// Puts messages in turns; in each of them a place sends one at most, and receives one.
static ein_status eini_sim_turns(eini_arena *a, int64_t places, eini_sim_traffic *t) {
  int64_t *next = EINI_NEW(a, int64_t, places + 1), *end = EINI_NEW(a, int64_t, places + 1);
  if (next == NULL || end == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < t->n; i++) end[eini_links_turn(places, t->from[i], t->to[i])]++;
  for (int64_t k = 1; k <= places; k++) next[k] = end[k - 1], end[k] += end[k - 1];
  for (int64_t k = 0; k < places; k++) {
    while (next[k] < end[k]) {
      const int64_t i = next[k], turn = eini_links_turn(places, t->from[i], t->to[i]);
      const int64_t j = next[turn]++;
      const int from = t->from[i], to = t->to[i];
      const double bytes = t->bytes[i];
      t->from[i] = t->from[j], t->to[i] = t->to[j], t->bytes[i] = t->bytes[j];
      t->from[j] = from, t->to[j] = to, t->bytes[j] = bytes;
    }
  }
  return EIN_OK;
}

// Looks at what all tasks of a statement read over one edge.
static ein_status eini_sim_look(eini_sim *m, const eini_dedge *e, eini_sim_traffic *t) {
  const eini_stmt *s = m->dc.node[e->x].s;
  const int64_t ntask = m->d->parts[e->y].ntask;
  int64_t visits = 0, most = 0, blocks;
  unsigned char own;
  int several = 0;
  memset(t, 0, sizeof *t);
  for (int r = 0; r < s->out_map.rows; r++) {
    int64_t coef;
    several |= eini_row_index(&s->out_map, r, &coef) < 0 && coef != 0;
  }
  t->fetched = EINI_NEW(&m->known, double, ntask);
  t->own = EINI_NEW(&m->known, unsigned char, ntask);
  if (t->fetched == NULL || t->own == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t q = 0; q < ntask; q++) {
    t->fetched[q] = eini_sim_needs(m, e, q, &blocks, &t->own[q]);
    if (t->fetched[q] <= 0) continue;
    visits += several ? 16 * blocks : blocks;
    most += blocks;
    t->messages += (double)(blocks - t->own[q]);
    t->total += t->fetched[q];
  }
  m->stored += ntask + (visits > m->visits ? 0 : most);
  t->n = visits > m->visits ? -1 : 0;
  if (visits > m->visits) return EIN_OK;
  t->from = EINI_NEW(&m->known, int, most);
  t->to = EINI_NEW(&m->known, int, most);
  t->bytes = EINI_NEW(&m->known, double, most);
  if (t->from == NULL || t->to == NULL || t->bytes == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t q = 0; q < ntask; q++) {
    if (t->fetched[q] <= 0) continue;
    eini_sim_needs(m, e, q, &blocks, &own);
    eini_sim_receive(m, e, q, blocks, t);
  }
  eini_arena a;
  eini_arena_init(&a, &m->known.al);
  const ein_status st = eini_sim_turns(&a, m->d->info.p, t);
  eini_arena_free(&a);
  return st;
}

// What tells a node's tasks and blocks from others'.
static int64_t eini_sim_key(const eini_sim *m, int node, int64_t *key) {
  const eini_stmt *s = m->dc.node[node].s;
  const ein_parts *p = &m->d->parts[node];
  const int pin = node >= m->d->info.nstmt;
  const int *at = pin ? NULL : m->kinds.at[node];
  int64_t n = 0;
  key[n++] = pin ? -1 - node : m->kinds.first[node];
  for (int c = 0; c < s->nindex; c++) {
    key[n++] = at == NULL ? c : at[c];
    key[n++] = p->cut[c];
  }
  for (int i = 0; i < p->norder; i++) key[n++] = p->order[i];
  return n;
}

#define EINI_SIM_STORED ((int64_t)1 << 23)  // entries of what edges share

// The traffic of an edge, valid until the next one is asked for.
static ein_status eini_sim_traffic_of(eini_sim *m, const eini_dedge *e, eini_sim_traffic *t) {
  int64_t n = eini_sim_key(m, e->x, m->edgekey);
  m->edgekey[n++] = e->k;
  n += eini_sim_key(m, e->y, m->edgekey + n);
  if (m->stored > EINI_SIM_STORED) {  // all is forgotten
    eini_arena_free(&m->known);
    memset(&m->keys, 0, sizeof m->keys);
    m->traffic = NULL;
    m->ntraffic = m->captraffic = m->stored = 0;
  }
  const int64_t id = eini_key_number(&m->known, &m->keys, m->edgekey, n);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  if (id < m->ntraffic) {
    *t = m->traffic[id];
    return EIN_OK;
  }
  eini_sim_traffic *all = (eini_sim_traffic *)eini_grow(&m->known, m->traffic, m->ntraffic,
                                                        &m->captraffic, sizeof *all);
  if (all == NULL) return EIN_ERR_NO_MEMORY;
  m->traffic = all;
  m->ntraffic++;
  EINI_TRY(eini_sim_look(m, e, &all[id]));
  *t = all[id];
  return EIN_OK;
}

// Of `total` bytes over an edge, what nodes fetch and send lies in equal shares at all homes: their
// links carry what is not their own.
static void eini_sim_gather_nodes(eini_sim *m, int64_t ntask, double total, double first,
                                  double *sent) {
  double *share = m->nodes[0], *fetch = m->nodes[1];
  for (int64_t q = 0; q < ntask; q++) fetch[eini_links_node(&m->links, q)] += m->move[q];
  for (int64_t n = 0; n < m->links.nnodes; n++) {
    const double bandwidth = m->dc.machine.node_bandwidth;
    double *out = &m->links.node[0][n], *in = &m->links.node[1][n];
    const double leaves = share[n] * (total - fetch[n]), comes = (1 - share[n]) * fetch[n];
    if (leaves > 0) *out = (*out > first ? *out : first) + leaves / bandwidth;
    if (leaves > 0 && *out > *sent) *sent = *out;
    const double begin = first + m->dc.machine.node_latency;
    if (comes > 0) *in = (*in > begin ? *in : begin) + comes / bandwidth;
    share[n] = comes > 0 ? *in : 0;  // from here on: when it is all there
    fetch[n] = 0;
  }
}

// Too many messages to follow: homes send shares of `total` as large as their blocks, and tasks
// have what they read when all is sent.
static void eini_sim_gather(eini_sim *m, const eini_dedge *e, double total) {
  const eini_stmt *s = m->dc.node[e->x].s;
  const ein_parts *p = &m->d->parts[e->x];
  const eini_stmt_block b = eini_block_of(m->klo, m->khi, NULL);
  double whole = eini_points(s, NULL, 0, s->nfree), bandwidth = m->dc.machine.bandwidth;
  double first = INFINITY, sent = 0, latency = m->dc.machine.latency;
  const int64_t ntask = m->d->parts[e->y].ntask;
  for (int64_t q = 0; q < p->ntask; q++) {
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->klo, m->khi)) continue;
    double block = eini_points(s, &b, 0, s->nfree), since = m->done[e->x][q];
    if (m->links.out[q] > since) since = m->links.out[q];
    m->links.out[q] = since + total * (block / whole) / bandwidth;
    if (m->links.nnodes > 0) m->nodes[0][eini_links_node(&m->links, q)] += block / whole;
    if (since < first) first = since;
    if (m->links.out[q] > sent) sent = m->links.out[q];
  }
  if (m->links.nnodes > 0) {
    eini_sim_gather_nodes(m, ntask, total, first, &sent);
    if (latency < m->dc.machine.node_latency) latency = m->dc.machine.node_latency;
  }
  first += latency;
  sent += latency;
  for (int64_t q = 0; q < ntask; q++) {
    if (m->move[q] <= 0) continue;
    m->links.in[q] = (m->links.in[q] > first ? m->links.in[q] : first) + m->move[q] / bandwidth;
    if (m->links.in[q] > m->ready[q]) m->ready[q] = m->links.in[q];
    if (sent > m->ready[q]) m->ready[q] = sent;
    if (m->links.nnodes == 0) continue;
    const double there = m->nodes[0][eini_links_node(&m->links, q)];
    if (there > m->ready[q]) m->ready[q] = there;
  }
  for (int64_t n = 0; n < m->links.nnodes; n++) m->nodes[0][n] = 0;
}

// What all tasks of a statement fetch over one edge, and when it is there.
static ein_status eini_sim_edge(eini_sim *m, const eini_dedge *e) {
  const int64_t ntask = m->d->parts[e->y].ntask;
  const double *done = m->done[e->x];
  eini_sim_traffic t;
  EINI_TRY(eini_sim_traffic_of(m, e, &t));
  for (int64_t q = 0; q < ntask; q++) {
    double bytes = m->move[q] = t.fetched[q];
    if (t.own[q] && done[q] > m->ready[q]) m->ready[q] = done[q];
    if (bytes <= 0) continue;
    m->fetched[q] += bytes;
    if (m->desc->fetch_fn != NULL)
      m->desc->fetch_fn(m->desc->user, e->x < m->d->info.nstmt ? e->x : -1, e->y, e->k, q, bytes);
  }
  m->now.join += t.total;
  for (int64_t i = 0; i < t.n; i++)
    EINI_TRY(eini_sim_send(m, t.from[i], t.to[i], t.bytes[i], done[t.from[i]]));
  if (t.n >= 0) return EIN_OK;
  eini_sim_gather(m, e, t.total);
  m->now.messages += t.messages;
  return EIN_OK;
}

// Runs all tasks of statement y. edge: its first edge.
static ein_status eini_sim_tasks(eini_sim *m, int y, int64_t edge) {
  const eini_stmt *s = m->dc.node[y].s;
  const ein_parts *p = &m->d->parts[y];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  m->now.start = INFINITY;
  for (int64_t q = 0; q < p->ntask; q++) m->ready[q] = m->fetched[q] = 0;
  for (int64_t e = edge; e < m->edges.n && m->edges.e[e].y == y; e++)
    EINI_TRY(eini_sim_edge(m, &m->edges.e[e]));
  EINI_TRY(eini_sim_deliver(m));
  for (int64_t q = 0; q < p->ntask; q++) {
    eini_task_ranges(s, p->cut, p->order, p->norder, q, 0, m->lo, m->hi);
    const eini_cost work = eini_place_cost(&m->dc, &m->dc.node[y], &b);
    double ready = m->ready[q], start = ready > m->clock[q] ? ready : m->clock[q];
    m->pending[q] = m->clock[q] = start + work.seconds;
    m->now.busy += work.seconds;
    m->flops += work.flops;
    m->now.tasks++;
    if (start < m->now.start) m->now.start = start;
    if (m->clock[q] > m->now.end) m->now.end = m->clock[q];
    double bytes = m->held[q] + m->fetched[q] +
                   eini_partial_at(m->dc.g, s, p->cut, m->lo, m->hi);
    int home = 1;
    for (int c = s->nfree; c < s->nindex; c++) home &= m->lo[c] == 0;
    if (home) bytes += eini_points(s, &b, 0, s->nfree) * eini_element_bytes(&m->dc, s->out);
    if (bytes > m->peak[q]) m->peak[q] = bytes;
    if (m->desc->task_fn != NULL)
      m->desc->task_fn(m->desc->user, y, q, start, m->clock[q]);
  }
  return EIN_OK;
}

// One level of the tree: at every home, partial results k + step go to k, which has merged those
// of the level before: they lie in the same memory.
static ein_status eini_sim_meet(eini_sim *m, int y, int64_t step) {
  const eini_space *x = &m->space[y];
  const double size = (double)eini_partial_bytes(m->dc.g, x->s);
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t q = 0; q < x->ntask; q++) {
      const double block = m->move[q];
      for (int64_t k = 0; k + step < x->nagg && block > 0; k += 2 * step) {
        const int64_t to = eini_space_partner(x, q, k), from = eini_space_partner(x, q, k + step);
        if (pass == 0) {
          double since = m->pending[from];
          if (step > 1 && m->pending[to] > since) since = m->pending[to];
          m->ready[to] = m->pending[to];
          m->now.agg += block * size;
          EINI_TRY(eini_sim_send(m, from, to, block * size, since));
        } else {  // meanwhile the place computed what it could
          m->pending[to] = m->ready[to] + eini_merge_seconds(&m->dc.machine, block);
          m->clock[to] += eini_merge_seconds(&m->dc.machine, block);
        }
      }
    }
    if (pass == 0) EINI_TRY(eini_sim_deliver(m));
  }
  return EIN_OK;
}

// Blocks are complete where their partial results meet, in a binary tree over their numbers: the
// right half of two goes to the left one.
static ein_status eini_sim_fold(eini_sim *m, int y) {
  const eini_stmt *s = m->dc.node[y].s;
  const ein_parts *p = &m->d->parts[y];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  for (int64_t q = 0; q < p->ntask; q++)  // -1: not a home
    m->move[q] = eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->lo, m->hi)
                 ? eini_points(s, &b, 0, s->nfree) : -1;
  for (int64_t step = 1; step < m->space[y].nagg; step *= 2) EINI_TRY(eini_sim_meet(m, y, step));
  for (int64_t q = 0; q < p->ntask; q++) {
    if (m->move[q] < 0) continue;
    m->done[y][q] = m->pending[q];
    if (m->done[y][q] > m->last[y]) m->last[y] = m->done[y][q];
    m->held[q] += m->move[q] * eini_element_bytes(&m->dc, s->out);
    if (m->held[q] > m->peak[q]) m->peak[q] = m->held[q];
  }
  if (m->last[y] > m->now.end) m->now.end = m->last[y];
  return EIN_OK;
}

// The blocks of a tensor go when its last reader is done; those of outputs and pinned inputs stay.
static void eini_sim_release(eini_sim *m, int x) {
  const eini_stmt *s = m->dc.node[x].s;
  const ein_parts *p = &m->d->parts[x];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  int stays = m->dc.g->tensor[s->out].role != EIN_ROLE_TEMP;
  for (int64_t q = 0; q < p->ntask && !stays; q++) {
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, q, 1, m->lo, m->hi)) continue;
    m->held[q] -= eini_points(s, &b, 0, s->nfree) * eini_element_bytes(&m->dc, s->out);
  }
  eini_sim_drop(m, &m->done[x], p->ntask);
}

// Bytes of tensor t that the tasks of a place read, in parts: reads of the same go together.
static double eini_sim_input(eini_sim *m, int t, const eini_reads *r, int64_t place,
                             eini_boxes *u) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  u->n = 0;
  for (int64_t i = r->at[t]; i < r->at[t + 1]; i++) {
    const eini_stmt *s = m->dc.node[r->list[i].node].s;
    const ein_parts *p = &m->d->parts[r->list[i].node];
    if (!eini_task_ranges(s, p->cut, p->order, p->norder, place, 0, m->lo, m->hi)) continue;
    if (eini_points(s, &b, 0, s->nindex) <= 0) continue;
    eini_block_hull(s, &b, r->list[i].k, m->from, m->to);
    eini_boxes_add(u, m->from, m->to);
  }
  return eini_boxes_volume(u) * eini_element_bytes(&m->dc, t);
}

// What places hold of inputs that are not pinned.
static ein_status eini_sim_inputs(eini_sim *m) {
  const ein_graph *g = m->dc.g;
  eini_reads reads;
  if (m->d->info.inputs == EIN_INPUTS_OUTSIDE) return EIN_OK;
  EINI_TRY(eini_reads_find(&m->dc, &reads));
  for (int t = 0; t < g->ntensor; t++) {
    eini_boxes boxes;
    if (reads.at[t] == reads.at[t + 1]) continue;
    EINI_TRY(eini_boxes_init(&m->dc.arena, g->tensor[t].rank, &boxes));
    for (int64_t q = 0; q < m->dc.p; q++) m->held[q] += eini_sim_input(m, t, &reads, q, &boxes);
  }
  return EIN_OK;
}

// Numbers of places and nodes.
static ein_status eini_sim_arrays(eini_sim *m) {
  eini_decomposer *dc = &m->dc;
  double **place[] = {&m->clock, &m->ready, &m->fetched, &m->move, &m->held,
                      &m->peak, &m->pending, &m->over[0], &m->over[1]};
  for (int i = 0; i < 9; i++)
    if ((*place[i] = eini_sim_array(m, dc->p)) == NULL) return EIN_ERR_NO_MEMORY;
  m->visits = EINI_SIM_VISITS / eini_max64(1, m->edges.n);
  EINI_TRY(eini_links_init(&dc->arena, &dc->machine, dc->p, &m->links));
  if (m->links.nnodes > 0) m->visits = eini_min64(m->visits, EINI_SIM_POSTS);
  for (int i = 0; i < 2; i++)
    if ((m->nodes[i] = EINI_NEW(&dc->arena, double, m->links.nnodes)) == NULL)
      return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

static ein_status eini_sim_make(eini_sim *m, const ein_graph *g, const ein_decomposition *d) {
  eini_decomposer *dc = &m->dc;
  int64_t room = 1;
  dc->g = g;
  dc->p = d->info.p;
  dc->nnode = d->info.nstmt + d->npinned;
  dc->npinned = d->npinned;
  dc->node = EINI_NEW(&dc->arena, eini_dform, dc->nnode);
  m->done = EINI_NEW(&dc->arena, double *, dc->nnode);
  m->last = EINI_NEW(&dc->arena, double, dc->nnode);
  m->reader = EINI_NEW(&dc->arena, int, dc->nnode);
  m->space = EINI_NEW(&dc->arena, eini_space, dc->nnode);
  if (dc->node == NULL || m->space == NULL || m->done == NULL || m->last == NULL ||
      m->reader == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < dc->nnode; i++) {
    const int pin = i - d->info.nstmt;
    eini_stmt *s = pin >= 0 ? NULL : &g->stmt[i];
    if (pin >= 0) EINI_TRY(eini_stmt_of_tensor(&dc->arena, g, d->pinned[pin], &s));
    dc->node[i].s = s;
    dc->node[i].active = EINI_NEW(&dc->arena, unsigned char, s->noperand + 1);
    if (dc->node[i].active == NULL) return EIN_ERR_NO_MEMORY;
    m->reader[i] = -1;
    const ein_parts *p = &d->parts[i];
    EINI_TRY(eini_space_init(&dc->arena, s, p->cut, p->order, p->norder, &m->space[i]));
    room = eini_max64(room, s->nindex + s->out_map.rows);
    for (int k = 0; k < s->noperand; k++) room = eini_max64(room, s->nindex + s->proj[k].rows);
  }
  EINI_TRY(eini_nodes_repeat(dc));
  EINI_TRY(eini_edges_find(dc, &m->edges));
  for (int64_t e = 0; e < m->edges.n; e++) m->reader[m->edges.e[e].x] = m->edges.e[e].y;
  m->lo = EINI_NEW(&dc->arena, int64_t, 18 * ++room + 3);
  if (m->lo == NULL) return EIN_ERR_NO_MEMORY;
  int64_t **part[11]; part[10] = &m->edgekey;  // of two nodes
  part[0] = &m->hi; part[1] = &m->from; part[2] = &m->to; part[3] = &m->nlo; part[4] = &m->nhi;
  part[5] = &m->s0; part[6] = &m->s1; part[7] = &m->key; part[8] = &m->klo; part[9] = &m->khi;
  for (int i = 0; i < 11; i++) *part[i] = m->lo + (i + 1) * room;
  return eini_sim_arrays(m);
}

// Seconds that place 0, which has a task of every statement, computes those of statement y.
static double eini_sim_first(eini_sim *m, int y) {
  const ein_parts *p = &m->d->parts[y];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_task_ranges(m->dc.node[y].s, p->cut, p->order, p->norder, 0, 0, m->lo, m->hi);
  return eini_place_cost(&m->dc, &m->dc.node[y], &b).seconds;
}

static ein_status eini_sim_run(eini_sim *m, ein_sim_info *info) {
  int64_t edge = 0;
  int nstmt = m->d->info.nstmt;
  double rest = 0;         // seconds that place 0 has yet to compute at least
  if (m->limit >= INFINITY) EINI_TRY(eini_sim_inputs(m));  // for what lives at places only
  for (int y = 0; y < nstmt && m->limit < INFINITY; y++) rest += eini_sim_first(m, y);
  for (int i = nstmt; i < m->dc.nnode; i++) {  // pinned inputs are there from the start
    m->done[i] = eini_sim_array(m, m->d->parts[i].ntask);
    if (m->done[i] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_sim_fold(m, i));
    for (int64_t q = 0; q < m->dc.p; q++) m->clock[q] = 0;
  }
  for (int64_t q = 0; q < m->dc.p; q++)
    if (m->held[q] > info->input_bytes) info->input_bytes = m->held[q];
  for (int y = 0; y < nstmt; y++) {
    memset(&m->now, 0, sizeof m->now);
    m->stmt = y;
    m->done[y] = eini_sim_array(m, m->d->parts[y].ntask);
    if (m->done[y] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_sim_tasks(m, y, edge));
    EINI_TRY(eini_sim_fold(m, y));
    for (int64_t q = 0; q < m->dc.p; q++) {
      m->over[1][q] = m->over[0][q];
      m->over[0][q] = m->clock[q] > m->links.out[q] ? m->clock[q] : m->links.out[q];
    }
    while (edge < m->edges.n && m->edges.e[edge].y == y) edge++;
    for (int x = 0; x < m->dc.nnode; x++)
      if (m->reader[x] == y && m->done[x] != NULL) eini_sim_release(m, x);
    if (m->reader[y] < 0) eini_sim_release(m, y);
    info->tasks += m->now.tasks;
    info->messages += m->now.messages;
    info->join += m->now.join;
    info->agg += m->now.agg;
    if (m->now.end > info->seconds) info->seconds = m->now.end;
    if (m->limit < INFINITY) rest -= eini_sim_first(m, y);
    if (m->clock[0] + rest * (1 - 1e-9) >= m->limit || info->seconds >= m->limit) {
      info->seconds = INFINITY;
      return EIN_OK;
    }
    info->busy += m->now.busy;
    if (m->desc->stmt != NULL) m->desc->stmt[y] = m->now;
  }
  info->flops = m->flops;
  info->machine = m->dc.machine;
  for (int64_t q = 0; q < m->dc.p; q++) {
    if (m->peak[q] > info->peak_bytes) info->peak_bytes = m->peak[q];
    if (m->desc->peak != NULL) m->desc->peak[q] = m->peak[q];
  }
  return EIN_OK;
}

// Ends with info->seconds infinite as soon as it is known to take `limit` seconds.
static ein_status eini_simulate(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                const ein_sim_desc *desc, double limit, ein_sim_info *info) {
  eini_sim m;
  ein_sim_desc none;
  ein_decompose_desc cost;
  if (ctx != NULL) eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  if (d != NULL && d->graph != NULL) graph = d->graph;
  if (graph == NULL || d == NULL || info == NULL || graph->open || graph->nstmt != d->info.nstmt)
    return EIN_ERR_ARGUMENT;
  memset(info, 0, sizeof *info);
  memset(&m, 0, sizeof m);
  memset(&none, 0, sizeof none);
  memset(&cost, 0, sizeof cost);
  eini_arena_init(&m.dc.arena, ctx == NULL ? NULL : &ctx->al);
  eini_arena_init(&m.known, ctx == NULL ? NULL : &ctx->al);
  m.dc.desc = &cost;
  m.d = d;
  m.limit = limit;
  m.desc = desc == NULL ? &none : desc;
  EINI_TRY(eini_validate_machine(eini_diag_of(ctx), m.desc->machine));
  if (d->sim_work > (m.desc->max_work > 0 ? m.desc->max_work : 1e8))
    return eini_fail(eini_diag_of(ctx), EIN_ERR_TOO_LARGE, -1, 0, "fewer places",
                     "%d statements over %lld places take too long to simulate", d->info.nstmt,
                     (long long)d->info.p);
  m.dc.machine = eini_machine_of(m.desc->machine);
  ein_status st = eini_sim_make(&m, graph, d);
  if (st == EIN_OK) st = eini_respelled_find(&m.dc.arena, graph, &m.kinds);
  if (st == EIN_OK) st = eini_sim_run(&m, info);
  for (int i = 0; i < m.dc.nnode && m.done != NULL; i++)
    eini_sim_drop(&m, &m.done[i], d->parts[i].ntask);
  eini_sim_drop(&m, &m.clock, m.dc.p);
  eini_sim_drop(&m, &m.ready, m.dc.p);
  eini_sim_drop(&m, &m.fetched, m.dc.p);
  eini_sim_drop(&m, &m.move, m.dc.p);
  eini_sim_drop(&m, &m.held, m.dc.p);
  eini_sim_drop(&m, &m.peak, m.dc.p);
  eini_sim_drop(&m, &m.pending, m.dc.p);
  eini_sim_drop(&m, &m.over[0], m.dc.p);
  eini_sim_drop(&m, &m.over[1], m.dc.p);
  eini_arena_free(&m.known);
  eini_arena_free(&m.dc.arena);
  return st;
}

EIN_API ein_status ein_simulate(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                const ein_sim_desc *desc, ein_sim_info *info) {
  return eini_simulate(ctx, graph, d, desc, INFINITY, info);
}
