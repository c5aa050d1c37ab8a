// ================================================================================================
// >>links  what messages take on the links of places and nodes
// Takes messages in the order in which they come to a link; gives when they leave and arrive. All
// that predicts seconds of messages goes by this law: simulations, schedules, fabrics with a clock.
// ================================================================================================

typedef struct eini_links {
  ein_machine is;
  int64_t nnodes;          // 0: all places are in one
  double *out, *in;        // [place] when its link has carried all so far, out of it and into it
  double *node[2];         // [node] the same
} eini_links;

// A message on its way through the links of its places and, between nodes, of these.
typedef struct eini_transit {
  int64_t from, to;
  double bytes, sent;
  double begin, end;       // of what is there: its first byte and its last
  int hops;                // links that it is through
} eini_transit;

static ein_status eini_links_init(eini_arena *a, const ein_machine *is, int64_t places,
                                  eini_links *l) {
  l->is = *is;
  l->nnodes = is->node > 0 && is->node < places ? (places + is->node - 1) / is->node : 0;
  l->out = EINI_NEW(a, double, places);
  l->in = EINI_NEW(a, double, places);
  for (int i = 0; i < 2; i++)
    if ((l->node[i] = EINI_NEW(a, double, l->nnodes)) == NULL) return EIN_ERR_NO_MEMORY;
  return l->out == NULL || l->in == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// The turn of a message among those that may set out at once: how far behind its sender the
// receiver is. In a turn every place sends to another one: no link has to carry all of them first.
static int64_t eini_links_turn(int64_t places, int64_t from, int64_t to) {
  return to >= from ? to - from : to - from + places;
}

static int64_t eini_links_node(const eini_links *l, int64_t place) {
  return l->nnodes > 0 ? place / l->is.node : 0;
}

// A message comes to a link at `begin` and has it behind those before it. Returns when it begins to
// go through; *link: when it has passed.
static double eini_link_take(double *link, double begin, double bytes, double rate) {
  if (*link > begin) begin = *link;
  *link = begin + bytes / rate;
  return begin;
}

// A message comes to its next link, and has it behind those that came before. Where the link is
// faster than the one before, it ends as that one does. 1: the message is there.
static int eini_links_hop(eini_links *l, eini_transit *x) {
  const ein_machine *is = &l->is;
  const int64_t from = eini_links_node(l, x->from), to = eini_links_node(l, x->to);
  const int far = from != to, hop = x->hops++, last = far ? 3 : 1;
  double *link = hop == 0 ? &l->out[x->from] : hop == last ? &l->in[x->to]
                 : hop == 1 ? &l->node[0][from] : &l->node[1][to];
  const double rate = hop == 0 || hop == last ? is->bandwidth : is->node_bandwidth;
  x->begin = eini_link_take(link, x->begin, x->bytes, rate);
  if (*link > x->end) x->end = *link;
  if (hop == 0) x->sent = x->begin;
  if (hop == last) return 1;
  if (hop == last / 2) {
    x->begin += far ? is->node_latency : is->latency;
    x->end += far ? is->node_latency : is->latency;
  }
  return 0;
}

// A message may set out at `since`, and has all links behind those before it.
static eini_transit eini_links_pass(eini_links *l, int64_t from, int64_t to, double bytes,
                                    double since) {
  eini_transit x = {0, 0, 0, 0, 0, 0, 0};
  x.from = from;
  x.to = to;
  x.bytes = bytes;
  x.begin = x.end = since;
  while (!eini_links_hop(l, &x)) continue;
  return x;
}
