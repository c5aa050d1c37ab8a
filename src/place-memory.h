// ================================================================================================
// >>place-memory  the least cost that fits the memory of a place
// Takes the tables of the search and its answer without a limit; gives labels that fit: statements
// in their order, extended one by one, the cheapest kept. A place holds what it reads of inputs
// from the start: their bytes so far and the most of all else so far are part of a state.
// ================================================================================================

typedef struct eini_lim {
  eini_decomposer *dc;
  const eini_edges *q;
  const eini_sums *net;
  eini_reads reads;         // of inputs that places hold
  eini_boxes *boxes;        // [tensor] scratch of those
  double *rest;             // [node] bytes of inputs that are first read behind it
  double per_cost, per_byte;  // what orders states: costs, or bytes of the largest tasks
  int *last;                // [node] its last reader; nnode: it stays
  int64_t *at;              // [node] its first edge as a reader; [nnode]: their number
  int64_t *lo, *hi, *from, *to, *nlo, *nhi, *klo, *khi, *s0, *s1;
  int64_t cap;              // states
  int64_t n;
  int *label, *next;        // [state][node]
  double *held, *more;      // [state][3][place] blocks; the most of them with tasks; inputs
  double *cost, *mine;      // [state]
  uint64_t *shared;         // [state] see eini_lim_shared
  int *slot;                // hash table over the states of a step, by the labels of what lives on
  int64_t nslot;
  int *key;
  int cut_short;            // states fell out
  double limit;             // bytes that a place may have
  double refused, least;    // the least above it that was needed; the least of this statement
  int refused_at;           // where
  int64_t visits;           // places visited so far
} eini_lim;

static int eini_lim_ranges(const eini_lim *t, int x, const int *label, int64_t place, int home,
                           int64_t *lo, int64_t *hi) {
  return eini_way_ranges(eini_form(t->dc, x), label[x], place, home, lo, hi);
}

// Bytes of node x's block at a place.
static double eini_lim_block(const eini_lim *t, int x, const int *label, int64_t place) {
  const eini_stmt *s = t->dc->node[x].s;
  const eini_stmt_block b = eini_block_of(t->klo, t->khi, NULL);
  if (!eini_lim_ranges(t, x, label, place, 1, t->klo, t->khi)) return 0;
  return eini_points(s, &b, 0, s->nfree) * eini_element_bytes(t->dc, s->out);
}

// Bytes of the task's partial result when it is not made in the block; lo, hi: its ranges.
static double eini_partial_at(const ein_graph *g, const eini_stmt *s, const int64_t *cut,
                              const int64_t *lo, const int64_t *hi) {
  const eini_stmt_block b = eini_block_of(lo, hi, NULL);
  int home = 1, cuts = 0;
  for (int c = s->nfree; c < s->nindex; c++) {
    cuts |= cut[c] > 1;
    home &= lo[c] == 0;
  }
  int direct = s->fold < EIN_FOLD_ARGMAX && g->tensor[s->out].dtype == ein_dtype_compute(s->type);
  if (!cuts || (home && direct)) return 0;
  return eini_points(s, &b, 0, s->nfree) * (double)eini_partial_bytes(g, s);
}

// Bytes that live at a place while statement y runs, its block aside, beside what is held.
static double eini_lim_task(const eini_lim *t, int y, const int *label, int64_t place) {
  const eini_stmt_block b = eini_block_of(t->lo, t->hi, NULL);
  const eini_stmt *s = t->dc->node[y].s;
  const eini_dform *f = eini_form(t->dc, y);
  if (!eini_lim_ranges(t, y, label, place, 0, t->lo, t->hi)) return 0;
  double bytes = eini_partial_at(t->dc->g, s, f->ways.cut + (int64_t)label[y] * s->nindex, t->lo,
                                 t->hi);
  for (int64_t e = t->at[y]; e < t->at[y + 1]; e++) {
    const eini_dedge *d = &t->q->e[e];
    const eini_stmt *x = t->dc->node[d->x].s;
    double need, found = 0;
    eini_block_hull(s, &b, d->k, t->from, t->to);
    eini_box_ranges(x, t->from, t->to, t->nlo, t->nhi);
    need = eini_block_in_box(x, t->nlo, t->nhi, t->from, t->to, t->s0, t->s1);
    if (need > 0 && eini_lim_ranges(t, d->x, label, place, 1, t->klo, t->khi))
      found = eini_block_in_box(x, t->klo, t->khi, t->from, t->to, t->s0, t->s1);
    if (need > found) bytes += (need - found) * eini_element_bytes(t->dc, x->out);
  }
  return bytes;
}

// Adds to in[place] what statement y reads of inputs for the first time there.
static void eini_lim_inputs(const eini_lim *t, int y, const int *label, double *in) {
  const eini_stmt_block b = eini_block_of(t->lo, t->hi, NULL);
  const eini_decomposer *dc = t->dc;
  const eini_stmt *s = dc->node[y].s;
  for (int k = 0; k < s->noperand; k++) {
    int tensor = s->operand[k], same = 0;
    int64_t first = t->reads.at[tensor], i = first;
    double size = eini_element_bytes(dc, tensor);
    eini_boxes *u = &t->boxes[tensor];
    for (; i < t->reads.at[tensor + 1]; i++) {
      const eini_read *r = &t->reads.list[i];
      if (r->node == y && r->k == k) break;
      same |= dc->form_of[r->node] == dc->form_of[y] && r->k == k && label[r->node] == label[y];
    }
    if (i == t->reads.at[tensor + 1] || same) continue;
    for (int64_t q = 0; q < dc->p; q++) {
      double before = 0;
      u->n = 0;
      for (int64_t j = first; j <= i; j++) {
        const eini_read *r = &t->reads.list[j];
        const eini_stmt *x = dc->node[r->node].s;
        if (j == i) before = eini_boxes_volume(u);
        if (!eini_lim_ranges(t, r->node, label, q, 0, t->lo, t->hi)) continue;
        if (eini_points(x, &b, 0, x->nindex) <= 0) continue;
        eini_block_hull(x, &b, r->k, t->from, t->to);
        eini_boxes_add(u, t->from, t->to);
      }
      in[q] += (eini_boxes_volume(u) - before) * size;
    }
  }
}

// Most bytes at a place up to statement y, and, behind it, what places hold. None can have less
// than the mean with the inputs that are still to be read.
static double eini_lim_need(const eini_lim *t, int y, const int *label, const double *held,
                            double *after) {
  int64_t p = t->dc->p;
  double most = 0, all = t->rest[y];
  memcpy(after + 2 * p, held + 2 * p, (size_t)p * sizeof *held);
  if (t->boxes != NULL) eini_lim_inputs(t, y, label, after + 2 * p);
  for (int64_t q = 0; q < p; q++) {
    double block = eini_lim_block(t, y, label, q);
    double need = held[q] + block + eini_lim_task(t, y, label, q);
    after[q] = held[q] + (t->last[y] == y ? 0 : block);
    after[p + q] = need > held[p + q] ? need : held[p + q];
    need = after[p + q] + after[2 * p + q];
    if (need > most) most = need;
    all += need;
  }
  for (int x = 0; x < t->dc->nnode; x++) {
    if (t->last[x] != y || x == y) continue;
    for (int64_t q = 0; q < p; q++) after[q] -= eini_lim_block(t, x, label, q);
  }
  return all / (double)p > most ? all / (double)p : most;
}

// Is every coordinate of a map one index of its own?
static int eini_lim_plain(const eini_map *m) {
  int64_t coef;
  for (int r = 0; r < m->rows; r++) {
    int c = eini_row_index(m, r, &coef);
    if (c < 0 || (coef != 1 && coef != -1) || eini_map_uses(m, c) > 1) return 0;
  }
  return 1;
}

// What places hold of inputs: readers, scratch, and how much is still to come.
static ein_status eini_lim_make_inputs(eini_lim *t) {
  eini_decomposer *dc = t->dc;
  const ein_graph *g = dc->g;
  t->rest = EINI_NEW(&dc->arena, double, dc->nnode + 1);
  if (t->rest == NULL) return EIN_ERR_NO_MEMORY;
  if (dc->desc->inputs == EIN_INPUTS_OUTSIDE) return EIN_OK;
  EINI_TRY(eini_reads_find(dc, &t->reads));
  t->boxes = EINI_NEW(&dc->arena, eini_boxes, g->ntensor);
  if (t->boxes == NULL) return EIN_ERR_NO_MEMORY;
  for (int x = 0; x < g->ntensor; x++) {
    if (t->reads.at[x] == t->reads.at[x + 1]) continue;
    EINI_TRY(eini_boxes_init(&dc->arena, g->tensor[x].rank, &t->boxes[x]));
    const eini_read *r = &t->reads.list[t->reads.at[x]];
    const eini_stmt *s = dc->node[r->node].s;
    double bytes = eini_element_bytes(dc, x);  // that it reads in all
    for (int c = 0; c < s->proj[r->k].rows; c++) {
      int64_t coef;
      int i = eini_row_index(&s->proj[r->k], c, &coef);
      bytes *= i < 0 ? 0 : (double)s->index[i].extent;
    }
    if (!eini_lim_plain(&s->proj[r->k]) || eini_stmt_empty(s, 0, s->nindex)) continue;
    for (int y = 0; y < r->node; y++) t->rest[y] += bytes;
  }
  return EIN_OK;
}

static ein_status eini_lim_make(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                eini_lim *t) {
  eini_arena *a = &dc->arena;
  int64_t room = 1, ways = 1, **part[10];
  memset(t, 0, sizeof *t);
  t->dc = dc;
  t->q = q;
  t->net = net;
  t->limit = dc->machine.memory;
  for (int i = 0; i < dc->nnode; i++) {
    const eini_stmt *s = dc->node[i].s;
    ways = eini_max64(ways, net->size[i]);
    room = eini_max64(room, s->nindex + s->out_map.rows);
    for (int k = 0; k < s->noperand; k++) room = eini_max64(room, s->nindex + s->proj[k].rows);
  }
  t->cap = ((int64_t)1 << 20) / eini_max64(1, dc->nnode) / dc->p;
  t->cap = eini_min64(t->cap, ((int64_t)1 << 20) / ways);
  t->cap = eini_max64(dc->p <= 65536 ? 16 : 4, t->cap);
  t->last = EINI_NEW(a, int, dc->nnode);
  t->at = EINI_NEW(a, int64_t, dc->nnode + 1);
  t->lo = EINI_NEW(a, int64_t, 10 * ++room);
  t->label = EINI_NEW(a, int, t->cap * dc->nnode);
  t->next = EINI_NEW(a, int, t->cap * dc->nnode);
  t->held = EINI_NEW(a, double, 3 * t->cap * dc->p);
  t->more = EINI_NEW(a, double, 3 * t->cap * dc->p);
  t->cost = EINI_NEW(a, double, t->cap);
  t->mine = EINI_NEW(a, double, t->cap);
  for (t->nslot = 32; t->nslot < 2 * t->cap;) t->nslot *= 2;
  t->slot = EINI_NEW(a, int, t->nslot);
  t->key = EINI_NEW(a, int, dc->nnode);
  t->shared = EINI_NEW(a, uint64_t, t->cap);
  if (t->last == NULL || t->at == NULL || t->lo == NULL || t->label == NULL || t->next == NULL ||
      t->held == NULL || t->more == NULL || t->cost == NULL || t->mine == NULL ||
      t->slot == NULL || t->key == NULL || t->shared == NULL)
    return EIN_ERR_NO_MEMORY;
  part[0] = &t->lo, part[1] = &t->hi, part[2] = &t->from, part[3] = &t->to, part[4] = &t->nlo;
  part[5] = &t->nhi, part[6] = &t->klo, part[7] = &t->khi, part[8] = &t->s0, part[9] = &t->s1;
  for (int i = 1; i < 10; i++) *part[i] = t->lo + i * room;
  for (int i = 0; i < dc->nnode; i++) {
    int pinned = i >= dc->nnode - dc->npinned;
    t->last[i] = pinned || dc->g->tensor[dc->node[i].s->out].role == EIN_ROLE_OUTPUT ? dc->nnode
                                                                                     : i;
  }
  for (int64_t e = 0; e < q->n; e++) {
    t->at[q->e[e].y + 1] = e + 1;
    if (t->last[q->e[e].x] < q->e[e].y) t->last[q->e[e].x] = q->e[e].y;
  }
  for (int i = 0; i < dc->nnode; i++) t->at[i + 1] = eini_max64(t->at[i + 1], t->at[i]);
  return eini_lim_make_inputs(t);
}

// The state before the first statement: pinned inputs have one way.
static void eini_lim_begin(eini_lim *t) {
  const eini_decomposer *dc = t->dc;
  t->n = 1;
  t->cost[0] = 0;
  for (int64_t q = 0; q < 3 * dc->p; q++) t->held[q] = 0;
  for (int x = 0; x < dc->nnode; x++) t->label[x] = 0;
  for (int x = dc->nnode - dc->npinned; x < dc->nnode; x++)
    for (int64_t q = 0; q < dc->p; q++) t->held[q] += eini_lim_block(t, x, t->label, q);
  for (int64_t q = 0; q < dc->p; q++) t->held[dc->p + q] = t->held[q];
}

// Do labels fit the memory? Else *least is what the first statement that does not needs.
static int eini_lim_check(eini_lim *t, const int *label) {
  eini_lim_begin(t);
  for (int y = 0; y < t->dc->nnode - t->dc->npinned; y++) {
    if (eini_lim_need(t, y, label, t->held, t->more) > t->dc->machine.memory) return 0;
    double *swap = t->held;
    t->held = t->more;
    t->more = swap;
  }
  return 1;
}

// The inputs that are read before and behind statement y: the parts of them that places have. Equal
// numbers mean equal parts. *later: some input is read behind y.
static uint64_t eini_lim_shared(const eini_lim *t, int y, const int *label, int *later) {
  uint64_t sum = 0;
  *later = 0;
  for (int x = 0; x < t->dc->g->ntensor && t->boxes != NULL; x++) {
    int64_t n = t->reads.at[x + 1];
    uint64_t seen[64];
    int nseen = 0;
    if (t->reads.at[x] == n || t->reads.list[n - 1].node <= y) continue;
    *later = 1;
    for (int64_t i = t->reads.at[x]; i < n && t->reads.list[i].node <= y; i++) {
      const eini_read *r = &t->reads.list[i];
      int key[4], k = 0;
      key[0] = x, key[1] = t->dc->form_of[r->node], key[2] = r->k, key[3] = label[r->node];
      uint64_t h = eini_hash(key, sizeof key, 0);
      while (k < nseen && seen[k] != h) k++;
      if (k < nseen) continue;  // it reads what another does
      if (nseen < 64) seen[nseen++] = h;
      sum += h;
    }
  }
  return sum;
}

// Does state `other` hold no more than state `mine` at any place?
static int eini_lim_holds_less(const eini_lim *t, int64_t other, int64_t mine, int later) {
  const double *a = t->more + 3 * other * t->dc->p, *b = t->more + 3 * mine * t->dc->p;
  for (int64_t q = t->dc->p; q < 3 * t->dc->p && t->boxes != NULL; q++)
    if (a[q] > b[q] && (later || q >= 2 * t->dc->p)) return 0;
  return 1;
}

// Is there a state, cheaper since it came first, with the same labels for all that lives on behind
// statement y, that holds no more? What it leads to is no worse then. Else state `kept` enters the
// table, unless it has many with the same labels.
static int eini_lim_seen(eini_lim *t, int y, int64_t kept) {
  const int nnode = t->dc->nnode, *mine = t->next + kept * nnode;
  int n = 0, later;
  int64_t most = eini_max64(4, t->cap / 64), same = 0;
  for (int x = 0; x < nnode; x++)
    if ((x <= y || x >= nnode - t->dc->npinned) && t->last[x] > y) t->key[n++] = x;
  uint64_t shared = eini_lim_shared(t, y, mine, &later), hash = shared;
  for (int i = 0; i < n; i++) hash = eini_hash(&mine[t->key[i]], sizeof *mine, hash);
  int64_t at = (int64_t)(hash & (uint64_t)(t->nslot - 1));
  for (; t->slot[at] != 0; at = (at + 1) & (t->nslot - 1)) {
    int64_t one = t->slot[at] - 1;
    const int *other = t->next + one * nnode;
    int i = 0;
    while (i < n && other[t->key[i]] == mine[t->key[i]]) i++;
    if (i < n || t->shared[one] != shared) continue;
    if (eini_lim_holds_less(t, one, kept, later)) return 1;
    if (++same < most) continue;
    t->cut_short = 1;
    return 1;
  }
  t->slot[at] = (int)kept + 1;
  t->shared[kept] = shared;
  return 0;
}

#define EINI_LIM_EFFORT ((int64_t)1 << 24)  // places visited for a statement, about

// Extends all states by statement y; the cheapest that fit are kept. Item seq of the heap is state
// seq / ways with way seq % ways.
static void eini_lim_step(eini_lim *t, int y, eini_ranked *heap) {
  const eini_decomposer *dc = t->dc;
  int64_t n = 0, kept = 0, nnode = dc->nnode;
  int ways = t->net->size[y];
  for (int64_t s = 0; s < t->n; s++) {
    const eini_dform *f = eini_form(dc, y);
    for (int w = 0; w < ways; w++) {
      double cost = f->unary[w];
      for (int64_t e = t->at[y]; e < t->at[y + 1]; e++) {
        const eini_dedge *d = &t->q->e[e];
        cost += t->net->table[d->table].v[(int64_t)t->label[s * nnode + d->x] * ways + w];
      }
      cost *= t->per_cost;
      if (t->per_byte > 0)
        cost += t->per_byte * eini_result_bytes(dc, f->s, f->ways.cut + (int64_t)w * f->s->nindex);
      heap[n].key = t->cost[s] + cost;
      heap[n].seq = n;
      n++;
    }
  }
  for (int64_t i = n / 2; i-- > 0;) eini_heap_sink(heap, n, i);
  t->least = INFINITY;
  // A look visits all places.
  int64_t looks = 0, most = eini_min64(16 * t->cap + 4096, EINI_LIM_EFFORT / dc->p + 16);
  memset(t->slot, 0, (size_t)t->nslot * sizeof *t->slot);
  while (n > 0 && kept < t->cap && looks++ < most) {
    const eini_ranked c = eini_heap_pop(heap, &n);
    const int64_t from = c.seq / ways;
    int *label = t->next + kept * nnode;
    memcpy(label, t->label + from * nnode, (size_t)nnode * sizeof *label);
    label[y] = (int)(c.seq % ways);
    double need = eini_lim_need(t, y, label, t->held + 3 * from * dc->p,
                                t->more + 3 * kept * dc->p);
    t->visits += dc->p;
    if (need < t->least) t->least = need;
    if (need > t->limit && need < t->refused) t->refused = need, t->refused_at = y;
    if (need > t->limit || eini_lim_seen(t, y, kept)) continue;
    t->mine[kept++] = c.key;
  }
  t->cut_short |= n > 0;
  int *label = t->label;
  double *held = t->held, *cost = t->cost;
  t->label = t->next, t->held = t->more, t->cost = t->mine;
  t->next = label, t->more = held, t->mine = cost;
  t->n = kept;
}

// All statements in their order; returns how many of them it came through.
static int eini_lim_pass(eini_lim *t, eini_ranked *heap) {
  int nstmt = t->dc->nnode - t->dc->npinned, y = 0;
  t->refused = INFINITY;
  eini_lim_begin(t);
  for (; y < nstmt; y++) {
    eini_lim_step(t, y, heap);
    if (t->n == 0) break;
  }
  return y;
}

// Nothing fits the memory: an error that names the least that does. Where all was looked at, all
// was refused somewhere, so that no less than `refused` will do: the search is done again with it.
// Else `least` is what statement `node` needs in what was looked at.
static ein_status eini_lim_fail(eini_lim *t, eini_ranked *heap, int node, double least) {
  const eini_decomposer *dc = t->dc;
  if (t->cut_short) return eini_no_memory_for(dc, node, least, 1);
  t->visits = 0;
  do {
    t->limit = least = t->refused;
    node = t->refused_at;
    if (eini_lim_pass(t, heap) == dc->nnode - dc->npinned) break;
  } while (!t->cut_short && t->visits < EINI_LIM_EFFORT);
  if (dc->over > 0 && dc->over < least) least = dc->over, node = dc->over_at;
  return eini_no_memory_for(dc, node, least, dc->cut_short);
}

// The least cost among what fits the memory, statement by statement in their order. *proved: it is
// the least of all; else states fell out. label: the least without a limit. Where the cheapest
// states lead nowhere, those that take less are kept.
static ein_status eini_lim_search(eini_decomposer *dc, const eini_edges *q, const eini_sums *net,
                                  int *label, int *proved) {
  eini_lim t;
  double least = 0, cost = INFINITY, total = eini_sums_value(net, label);
  int nstmt = dc->nnode - dc->npinned, node = 0, missing = -1;
  *proved = 1;
  EINI_TRY(eini_lim_make(dc, q, net, &t));
  if (eini_lim_check(&t, label)) return EIN_OK;
  int64_t ways = 1;
  for (int i = 0; i < dc->nnode; i++) ways = eini_max64(ways, net->size[i]);
  eini_ranked *heap = EINI_NEW(&dc->arena, eini_ranked, t.cap * ways);
  if (heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int pass = 0; pass < 3; pass++) {
    t.per_cost = pass == 0 ? 1 : pass == 1 && total > 0 ? dc->machine.memory / total : 0;
    t.per_byte = pass > 0;
    node = eini_lim_pass(&t, heap);
    if (node > missing) missing = node, least = t.least;
    if (node == nstmt || !t.cut_short) break;
  }
  if (node < nstmt) return eini_lim_fail(&t, heap, missing, least);
  for (int64_t s = 0; s < t.n; s++) {
    double c = eini_sums_value(net, t.label + s * dc->nnode);
    if (s > 0 && c >= cost) continue;
    cost = c;
    memcpy(label, t.label + s * dc->nnode, (size_t)dc->nnode * sizeof *label);
  }
  *proved = !t.cut_short;
  return EIN_OK;
}
