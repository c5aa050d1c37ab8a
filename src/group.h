// ================================================================================================
// >>group  statements that run inside one loop nest
// Takes units (statements with what is fused into them) in order; finds runs of them that share one
// or two free indices, so that temporaries between them need only a block of it and stay in a
// cache. Invariant: a unit reads of the group's tensors only the block at hand.
// ================================================================================================

typedef struct eini_unit {
  const eini_stmt *s, *f;       // f: the consumer fused into s, or NULL
  int via, out;
  int *column;                  // f's columns as indices of s
} eini_unit;

// Where a slot of a group's tasks points: a slot of the plan or a place among its temporaries.
typedef struct eini_group_slot {
  int slot;                     // -1: local, at offset; -2: a value, not an address
  int64_t offset;
  int64_t step[2];
} eini_group_slot;

typedef struct eini_group {
  int nloop;
  int64_t extent[2], block[2];
  int ntask;
  eini_task *task[2];           // whole blocks, and the shorter last one
  eini_group_slot *slot[2];     // slot 0 is the zero of values
  int nslot[2];
  size_t local_bytes, scratch;
  double saved;                 // bytes of temporaries that are never stored
  // Without loops: rows of one form, a task each. Its slot k is slot row[i * row_slots + k] of
  // row i.
  int64_t nrow;
  eini_task *form;
  const eini_unit *unit;        // of each row
  const int *row;
  int row_slots;
} eini_group;

// Operand k of a unit: s's, then f's but the fused one. *map is its access, *column as in the unit.
static int eini_unit_operand(const eini_unit *u, int k, const eini_map **map, const int **column) {
  int f = k - u->s->noperand;
  *column = f < 0 ? NULL : u->column;
  if (f < 0) {
    *map = &u->s->proj[k];
    return u->s->operand[k];
  }
  if (u->f == NULL || f >= u->f->noperand) return -1;
  *map = &u->f->proj[f];
  return u->f->operand[f];
}

static int eini_unit_reads(const eini_unit *u, int id) {
  const eini_map *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(u, k, &m, &column)) >= 0; k++)
    if (t == id) return 1;
  return 0;
}

// Most units of a group. Where more could share a loop, one temporary in so many is stored; and the
// search for groups takes time in proportion to the units.
enum { EINI_GROUP_UNITS = 64 };

// The search for groups.
typedef struct eini_trail {
  const ein_graph *g;
  const eini_unit *unit;
  int nunit;
  const ein_rates *rates;
  int *made, *first, *last;     // per tensor: the unit that makes it, those that read it
  int *axis;                    // per tensor, of one loop: axis + 1 that it runs over; -1: made in
                                //   the group, without a plain axis; 0 between searches
  char *local;                  // per tensor: made and read in the group only; 0 between searches
  int64_t *place;               // per tensor: of local ones, among the group's temporaries
  int from, *loop;              // per unit, counted from `from`: index of s
} eini_trail;

// Marks the output of unit u over index i; 0 when it cannot be in a group.
static int eini_trail_out(eini_trail *w, int u, int i) {
  const eini_unit *x = &w->unit[u];
  const eini_stmt *last = x->f != NULL ? x->f : x->s;
  const eini_tensor *t = &w->g->tensor[x->out];
  int found = -1, uses = 0;
  if (i >= x->s->nfree || last->rest != EIN_REST_ERROR || t->nstmt != 1) return 0;
  for (int r = 0; r < last->out_map.rows; r++) {
    for (int e = last->out_map.first[r]; e < last->out_map.first[r + 1]; e++) {
      int c = last->out_map.term[e].index;
      if ((x->f != NULL ? x->column[c] : c) != i) continue;
      uses++;
      if (eini_plain_row(&last->out_map, r) == c) found = r;
    }
  }
  int whole = found >= 0 && uses == 1 && t->shape[found] == x->s->index[i].extent;
  w->loop[u - w->from] = i;
  w->axis[x->out] = whole ? found + 1 : -1;
  return whole || (t->role != EIN_ROLE_TEMP && uses > 0);
}

// Does unit u continue the group? It must read a tensor of the group, all of them at one index.
static int eini_trail_next(eini_trail *w, int u) {
  const eini_map *m;
  const int *column;
  int found = -1;
  for (int k = 0, t; (t = eini_unit_operand(&w->unit[u], k, &m, &column)) >= 0; k++) {
    if (w->axis[t] == 0) continue;
    if (w->axis[t] < 0) return 0;
    int c = eini_plain_row(m, w->axis[t] - 1);
    if (c < 0 || eini_map_uses(m, c) != 1) return 0;
    if (column != NULL) c = column[c];
    if (c < 0 || (found >= 0 && c != found)) return 0;
    found = c;
    if (w->unit[u].s->index[c].extent != w->g->tensor[t].shape[w->axis[t] - 1]) return 0;
  }
  return found >= 0 && eini_trail_out(w, u, found);
}

// What a candidate group of units [from, to] would save.
typedef struct eini_bundle {
  int from, to, nloop;
  int loop[2][EINI_GROUP_UNITS];  // per unit, counted from `from`
  int64_t extent[2], block[2];
  double gain;                  // bytes of traffic
} eini_bundle;

static ein_status eini_trail_make(eini_trail *w, eini_arena *a, const ein_graph *g,
                                  const eini_unit *unit, int nunit, const ein_rates *rates) {
  const eini_map *m;
  const int *column;
  memset(w, 0, sizeof *w);
  w->g = g, w->unit = unit, w->nunit = nunit, w->rates = rates;
  w->made = EINI_NEW(a, int, g->ntensor);
  w->first = EINI_NEW(a, int, g->ntensor);
  w->last = EINI_NEW(a, int, g->ntensor);
  w->axis = EINI_NEW(a, int, g->ntensor);
  w->local = EINI_NEW(a, char, g->ntensor);
  w->place = EINI_NEW(a, int64_t, g->ntensor);
  if (w->made == NULL || w->first == NULL || w->last == NULL || w->axis == NULL ||
      w->local == NULL || w->place == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) w->made[t] = w->last[t] = -1, w->first[t] = nunit;
  for (int u = 0; u < nunit; u++) {
    w->made[unit[u].out] = u;
    for (int k = 0, t; (t = eini_unit_operand(&unit[u], k, &m, &column)) >= 0; k++) {
      if (w->first[t] == nunit) w->first[t] = u;
      w->last[t] = u;
    }
  }
  return EIN_OK;
}

// Is tensor t made in [from, to] and read there only?
static int eini_bundle_keeps(const eini_trail *w, int t, int from, int to) {
  return w->g->tensor[t].role == EIN_ROLE_TEMP && w->made[t] >= from && w->made[t] <= to &&
         w->first[t] >= from && w->last[t] <= to;
}

// Marks such tensors; returns their bytes.
static double eini_bundle_mark(const eini_trail *w, int from, int to) {
  double bytes = 0;
  for (int u = from; u <= to; u++) {
    int t = w->unit[u].out;
    w->local[t] = (char)eini_bundle_keeps(w, t, from, to);
    if (w->local[t]) bytes += eini_tensor_bytes(&w->g->tensor[t]);
  }
  return bytes;
}

static void eini_bundle_unmark(const eini_trail *w, int from, int to) {
  for (int u = from; u <= to; u++) w->local[w->unit[u].out] = 0;
}

// Does unit `to`, the last one of a group, read a tensor that is not stored for it?
static int eini_bundle_ends(const eini_trail *w, int from, int to) {
  const eini_map *m;
  const int *column;
  for (int k = 0, t; (t = eini_unit_operand(&w->unit[to], k, &m, &column)) >= 0; k++)
    if (eini_bundle_keeps(w, t, from, to)) return 1;
  return 0;
}

// Does a block leave only short runs along the innermost axis of an operand?
static int eini_short_runs(const ein_graph *g, int tensor, const eini_map *m, const int *column,
                           int loop, int64_t block) {
  int c = m->rows == 0 ? -1 : eini_plain_row(m, m->rows - 1);
  if (c < 0 || (column != NULL ? column[c] : c) != loop) return 0;
  return block * (int64_t)ein_dtype_size(g->tensor[tensor].dtype) < EINI_SHORT_BYTES;
}

// The loops of a bundle as indices of unit u, and of what is fused into it.
static void eini_bundle_walk(const eini_trail *w, const eini_bundle *b, int u, eini_walk *walk) {
  const eini_unit *x = &w->unit[u];
  walk[0].nloop = walk[1].nloop = b->nloop;
  for (int j = 0; j < b->nloop; j++) {
    int c = x->f == NULL ? -1 : x->f->nindex - 1;
    walk[0].loop[j] = b->loop[j][u - b->from];
    while (c >= 0 && x->column[c] != walk[0].loop[j]) c--;
    walk[1].loop[j] = c;
    walk[0].times[j] = walk[1].times[j] = (double)eini_ceil_div(b->extent[j], b->block[j]);
  }
}

// What the blocks of a bundle read again, in bytes.
static double eini_bundle_again(const eini_trail *w, const eini_bundle *b) {
  const eini_map *m;
  const int *column;
  double again = 0;
  for (int u = b->from; u <= b->to; u++) {
    const eini_unit *x = &w->unit[u];
    eini_walk walk[2];
    const eini_stmt_block all[2] = {eini_walk_block(&walk[0], NULL),
                                    eini_walk_block(&walk[1], NULL)};
    eini_bundle_walk(w, b, u, walk);
    for (int j = 0; j < b->nloop; j++)
      for (int k = 0, t; (t = eini_unit_operand(x, k, &m, &column)) >= 0; k++)
        if (!w->local[t] && eini_short_runs(w->g, t, m, column, walk[0].loop[j], b->block[j]))
          again += EINI_SHORT_TIMES * eini_tensor_bytes(&w->g->tensor[t]);
    const eini_cost c = eini_cost_of(w->g, x->s, x->f, all, NULL, NULL, NULL);
    again += c.traffic - c.bytes;
  }
  return again;
}

// Chooses blocks and weighs: what is not stored, against what every block reads again.
static void eini_bundle_weigh(const eini_trail *w, eini_bundle *b) {
  double rows = 1;
  b->gain = 0;
  while (b->to > b->from && !eini_bundle_ends(w, b->from, b->to)) b->to--;
  if (b->to == b->from) return;
  double bytes = eini_bundle_mark(w, b->from, b->to);
  for (int j = 0; j < b->nloop; j++) rows *= (double)b->extent[j];
  double fit = floor(EINI_CACHE_PART * w->rates->fast_bytes / (bytes / rows));
  if (bytes > w->rates->fast_bytes && fit >= 1) {
    int last = b->nloop - 1;
    int64_t e = b->extent[last], most = fit < (double)e ? (int64_t)fit : e;
    if (most >= 16) most -= most % 8;
    b->block[0] = 1;
    b->block[last] = most;
    double blocks = rows / (double)e * (double)eini_ceil_div(e, most);
    double overhead = EINI_BLOCK_SECONDS * (b->to - b->from + 1) * blocks *
                      w->rates->copy_bw[EIN_MEMORY];
    b->gain = 2 * bytes - EINI_CACHED * eini_bundle_again(w, b) - overhead;
  }
  eini_bundle_unmark(w, b->from, b->to);
}

// Extends a group that starts at unit `from` with a loop over each axis of its output; the best.
static void eini_bundle_find(eini_trail *w, const eini_bundle *outer, int from,
                             eini_bundle *best) {
  const eini_stmt *s = w->unit[from].s;
  for (int i = 0; i < s->nfree; i++) {
    eini_bundle b;
    memset(&b, 0, sizeof b);
    if (outer != NULL) b = *outer;
    int j = b.nloop++;
    int most = outer != NULL ? outer->to : w->nunit - 1;
    if (most > from + EINI_GROUP_UNITS - 1) most = from + EINI_GROUP_UNITS - 1;
    if (s->index[i].extent < 2 || (j > 0 && b.loop[0][0] == i)) continue;
    w->from = b.from = b.to = from;
    w->loop = b.loop[j];
    b.extent[j] = s->index[i].extent;
    int fits = eini_trail_out(w, from, i);
    while (fits && b.to < most && eini_trail_next(w, b.to + 1) &&
           (j == 0 || b.loop[0][b.to + 1 - from] != b.loop[1][b.to + 1 - from])) {
      b.to++;
    }
    for (int u = from; u <= most && u <= b.to + 1; u++) w->axis[w->unit[u].out] = 0;
    if (!fits) continue;
    eini_bundle_weigh(w, &b);
    if (b.gain > best->gain) *best = b;
    if (j == 0 && b.to > b.from && b.gain <= 0) eini_bundle_find(w, &b, from, best);
  }
}
