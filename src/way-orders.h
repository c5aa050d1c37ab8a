// ================================================================================================
// >>way-orders  orders of a vector's digits, and where its results are scattered
// Takes the vectors of forms; gives their ways: those that differ on an edge.
// ================================================================================================

// What tells way `way` from others of the same vector: its digits on every edge it may have. In
// limited memory also what lies where: those of inputs; and digits of even pieces of free indices,
// and of reduced ones, are alike among themselves.
static int64_t eini_way_signature(const eini_decomposer *dc, const eini_dform *f, int64_t way,
                                  int64_t *digit) {
  int limited = dc->machine.memory > 0, nindex = f->s->nindex;
  int moved = limited || dc->desc->cost >= EIN_COST_BYTES;
  const int64_t *cut = f->ways.cut + way * nindex;
  const int *order = f->ways.order + way * nindex;
  int64_t n = 0;
  for (int k = -1; k < f->s->noperand; k++) {
    int held = limited && k >= 0 && dc->desc->inputs != EIN_INPUTS_OUTSIDE &&
               dc->g->tensor[f->s->operand[k]].role == EIN_ROLE_INPUT;
    if (!held && !f->active[k < 0 ? f->s->noperand : k]) continue;
    n += eini_way_digits(f, way, k, moved, digit + n);
    digit[n++] = -2;
  }
  for (int i = 0, last = 0; i < f->ways.norder[way] && limited; i++) {
    int c = order[i], even = f->s->index[c].extent % cut[c] == 0;
    int kind = !even ? c + 1 : c < f->s->nfree ? -3 : -4;
    if (kind < 0 && kind == last) {
      digit[n - 1] *= cut[c];
      continue;
    }
    digit[n++] = last = kind;
    digit[n++] = cut[c];
  }
  if (f->ways.sent[way] < 0) return n;
  digit[n++] = -5;
  for (int c = 0; c < f->s->nfree; c++)
    if (f->ways.home[way * nindex + c] != cut[c]) digit[n++] = c;
  return n;
}

static int64_t eini_signature_room(const eini_stmt *s) {
  int64_t digits = eini_min64(2 * (int64_t)s->nindex, EINI_DIGITS_MAX);
  return (digits + 1) * (s->noperand + 1) + digits + 2;
}

// Room for so many ways of a statement of n indices.
static ein_status eini_ways_make(eini_arena *a, int64_t most, int64_t n, eini_ways *w) {
  w->n = 0;
  w->cap = most;
  w->cut = EINI_NEW(a, int64_t, 2 * most * n);
  w->order = EINI_NEW(a, int, 2 * most * n);
  w->norder = EINI_NEW(a, int, 3 * most);
  if (w->cut == NULL || w->order == NULL || w->norder == NULL) return EIN_ERR_NO_MEMORY;
  w->home = w->cut + most * n;
  w->home_order = w->order + most * n;
  w->home_norder = w->norder + most;
  w->sent = w->norder + 2 * most;
  return EIN_OK;
}

// Way x of w becomes way y of v, of n indices; they may be the same.
static void eini_way_copy(const eini_ways *w, int64_t x, eini_ways *v, int64_t y, int n) {
  for (int c = 0; c < n; c++) {
    v->cut[y * n + c] = w->cut[x * n + c];
    v->home[y * n + c] = w->home[x * n + c];
    v->order[y * n + c] = w->order[x * n + c];
    v->home_order[y * n + c] = w->home_order[x * n + c];
  }
  v->norder[y] = w->norder[x];
  v->home_norder[y] = w->home_norder[x];
  v->sent[y] = w->sent[x];
}

#define EINI_ORDERS_MAX 120   // of one vector
#define EINI_ORDERS_TRIED 720  // it takes more than six cut indices to have more

// Scratch of the orders of one vector.
typedef struct eini_orders {
  int64_t room, *digits, *length;  // signatures, room entries each
  int *rank;               // the permutation: numbers of cut indices, the preferred first
} eini_orders;

// Is the way after the last one like one of the `found` before it? Else it is number `found`.
static int eini_way_known(eini_decomposer *dc, const eini_dform *f, int only, int64_t found,
                          eini_orders *o) {
  int64_t *mine = o->digits + found * o->room, again = 0;
  o->length[found] = only ? 0 : eini_way_signature(dc, f, f->ways.n, mine);
  while (again < found && (o->length[again] != o->length[found] ||
                           memcmp(o->digits + again * o->room, mine,
                                  (size_t)o->length[found] * sizeof *mine) != 0)) again++;
  return again < found;
}

// Adds a vector with the orders that matter, those that differ on an edge, the preferred one first,
// and with its results scattered where they can be. from, to: which of them, as numbers; what was
// added before counts.
static ein_status eini_way_orders(eini_decomposer *dc, eini_dform *f, const int64_t *vector,
                                  int64_t from, int64_t to, eini_orders *o) {
  eini_ways *w = &f->ways;
  const int n = f->s->nindex, nfree = f->s->nfree, sent = eini_scatter_index(dc, f, vector);
  const int lacks = eini_scatter_lacks(f, vector);  // then its digits lie as the pin says
  int m = 0, tried = 0, full = 0, cuts[EINI_CUTS_MAX];
  int64_t found = 0;
  for (int i = 0; i < n; i++) {
    int c = !f->pinned ? f->prefer[i] : i < n - nfree ? nfree + i : i - (n - nfree);
    if (vector[c] > 1 && (lacks < 0 || c != sent)) cuts[m++] = c;
    if (c == lacks && sent >= 0) cuts[m++] = sent;
  }
  int only = f->pinned || f->fixed != NULL ||
             (dc->desc->cost <= EIN_COST_PAPER_CODE && dc->machine.memory <= 0);
  for (int i = 0; i < m; i++) o->rank[i] = i;
  do {
    const int end = lacks >= 0 ? lacks + 1 : sent < 0 || only ? 0 : nfree;
    for (int over = lacks; over < end && !full; over++) {
      if (over >= 0 && !eini_scatter_over(f, vector, sent, over)) continue;
      dc->cut_short |= w->n == w->cap;
      if (w->n == w->cap) return EIN_OK;
      int *order = w->order + w->n * n;
      if (n > 0) memcpy(w->cut + w->n * n, vector, (size_t)n * sizeof *vector);
      for (int i = 0; i < m; i++)
        order[i] = f->fixed != NULL ? f->fixed->order[i] : cuts[o->rank[i]];
      w->norder[w->n] = m;
      if (!eini_scatter_home(f, w, w->n, over < 0 ? -1 : sent, over)) continue;
      if (eini_way_known(dc, f, only, found, o)) continue;
      w->n += found >= from && found < to;
      full = ++found == to || found == EINI_ORDERS_MAX;
    }
    if (only) return EIN_OK;
  } while (!full && ++tried < EINI_ORDERS_TRIED && eini_permute(o->rank, m));
  dc->cut_short |= to > 1 && ((full && sent >= 0) || eini_permute(o->rank, m));
  return EIN_OK;
}

// Gives the vectors their rules of placement, keeping `most` ways: first the preferred order of
// half as many vectors, then what else there is. A pinned tensor's statement puts the reduced
// indices first, so that its blocks lie as the pin says.
static ein_status eini_ways_place(eini_decomposer *dc, eini_dform *f, eini_ways *w,
                                  eini_orders *o) {
  int n = f->s->nindex;
  int64_t first = eini_min64(f->nvector, (w->cap + 1) / 2), i;
  o->room = eini_signature_room(f->s);
  w->n = 0;
  f->ways = *w;
  for (i = 0; i < first; i++) EINI_TRY(eini_way_orders(dc, f, f->vector + i * n, 0, 1, o));
  const int64_t share = (w->cap - f->ways.n) / eini_max64(1, f->nraised) + 1;
  for (i = 0; i < f->nvector && f->ways.n < w->cap; i++)
    EINI_TRY(eini_way_orders(dc, f, f->vector + i * n, i < first,
                             i < f->nraised ? eini_min64(share + (i < first), EINI_ORDERS_MAX)
                                            : EINI_ORDERS_MAX, o));
  dc->cut_short |= i < f->nvector;
  w->n = f->ways.n;
  EINI_TRY(eini_ways_make(&dc->arena, w->n, n, &f->ways));
  for (f->ways.n = 0; f->ways.n < w->n; f->ways.n++)
    eini_way_copy(w, f->ways.n, &f->ways, f->ways.n, n);
  return EIN_OK;
}

#define EINI_WAYS_MAX 65536

// How many ways of a statement the tables have room for.
static int64_t eini_ways_most(const eini_decomposer *dc) {
  if (dc->desc->max_vectors > 0) return eini_min64(dc->desc->max_vectors, EINI_WAYS_MAX);
  int64_t most = 16, words = (dc->p + 63) / 64, cap = dc->machine.memory > 0 ? 256 : 2048;
  // With a limit to the memory no way can be dropped, so there are fewer from the start.
  if (dc->desc->cost <= EIN_COST_PAPER_CODE) return dc->machine.memory > 0 ? 1024 : 4096;
  while (most < cap && 4 * most * most * words <= (int64_t)1 << 22) most *= 2;
  return most;
}

#define EINI_VECTORS_KEPT 2048  // of a statement, to know what must move

// Scratch of the ways of one form.
typedef struct eini_formwork {
  eini_pick pick;
  eini_orders orders;
  eini_ways vectors, ways;
} eini_formwork;

static ein_status eini_formwork_make(eini_decomposer *dc, int64_t most, eini_formwork *w) {
  eini_arena *a = &dc->arena;
  int64_t n = 1, room = 1, cells = 1;  // of the maps of one statement, walked over for each way
  memset(w, 0, sizeof *w);
  for (int i = 0; i < dc->nnode; i++) {
    const eini_stmt *s = dc->node[i].s;
    n = eini_max64(n, s->nindex);
    room = eini_max64(room, eini_signature_room(s));
    int64_t rows = s->out_map.rows;
    for (int k = 0; k < s->noperand; k++) rows += s->proj[k].rows + 1;
    cells = eini_max64(cells, rows * s->nindex);
  }
  most = eini_min64(most, eini_max64(4096, ((int64_t)1 << 23) / n));
  most = eini_min64(most, eini_max64(16, ((int64_t)1 << 29) / cells));
  w->pick.room = most + 1;
  w->pick.most = dc->desc->cost < EIN_COST_BYTES ? most + 1
                 : eini_max64(most + 1, eini_min64(EINI_VECTORS_KEPT, ((int64_t)1 << 20) / n));
  w->pick.cut = EINI_NEW(a, int64_t, w->pick.most * n);
  w->pick.heap = EINI_NEW(a, eini_ranked, w->pick.most);
  w->orders.digits = EINI_NEW(a, int64_t, room * (EINI_ORDERS_MAX + 1));
  w->orders.length = EINI_NEW(a, int64_t, EINI_ORDERS_MAX + 1);
  w->orders.rank = EINI_NEW(a, int, n);
  w->vectors.cut = EINI_NEW(a, int64_t, w->pick.most * n);
  EINI_TRY(eini_ways_make(a, most + 1, n, &w->ways));
  w->ways.cap = most;
  return w->pick.cut == NULL || w->pick.heap == NULL || w->orders.digits == NULL ||
         w->orders.length == NULL ||
         w->orders.rank == NULL || w->vectors.cut == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

// What is asked of a node, as a key: those of one key are of one form.
static int64_t eini_form_key(const eini_decomposer *dc, int node, int64_t *key) {
  const eini_dform *f = &dc->node[node];
  const eini_stmt *s = f->s;
  const eini_tensor *t = &dc->g->tensor[s->out];
  const int pin = node >= dc->nnode - dc->npinned;
  int64_t n = 0;
  key[n++] = pin ? -1 - (int64_t)t->dtype : f->kind;
  key[n++] = s->nindex;
  key[n++] = f->pinned;
  key[n++] = f->hint != NULL;
  key[n++] = f->fixed == NULL ? -1 : f->fixed->norder;
  for (int c = 0; c < s->nindex; c++) {
    key[n++] = f->limit[c];
    key[n++] = f->need[c];
    key[n++] = f->prefer[c];
    key[n++] = f->hint != NULL ? f->hint[c] : pin ? s->index[c].extent : 0;
  }
  for (int j = 0; f->fixed != NULL && j < f->fixed->norder; j++) key[n++] = f->fixed->order[j];
  for (int k = 0; k < s->noperand; k++) key[n++] = 2 * f->active[k] + f->again[k];
  key[n++] = f->active[s->noperand];
  return n;
}

// The forms of all nodes, and their vectors.
static ein_status eini_dforms_find(eini_decomposer *dc, eini_formwork *work) {
  eini_keys seen;
  int64_t room = 0;
  memset(&seen, 0, sizeof seen);
  EINI_TRY(eini_formwork_make(dc, dc->most, work));
  for (int i = 0; i < dc->nnode; i++) {
    const eini_stmt *s = dc->node[i].s;
    room = eini_max64(room, 5 * (int64_t)s->nindex + s->noperand + 6);
  }
  int *first = EINI_NEW(&dc->arena, int, dc->nnode);  // node of a form
  int64_t *key = EINI_NEW(&dc->arena, int64_t, room);
  if (first == NULL || key == NULL) return EIN_ERR_NO_MEMORY;
  dc->effort = EINI_VECTORS_TOTAL;
  for (int i = 0; i < dc->nnode; i++) {
    const int64_t form = eini_key_number(&dc->arena, &seen, key, eini_form_key(dc, i, key));
    if (form < 0) return EIN_ERR_NO_MEMORY;
    if (form == dc->nform) first[dc->nform++] = i;
    dc->form_of[i] = first[form];
    if (dc->form_of[i] != i) continue;
    eini_dform *f = &dc->node[i];
    EINI_TRY(eini_vectors_make(dc, f, i, &work->pick, &work->vectors));
    EINI_TRY(eini_vectors_keep(dc, f, &work->pick, &work->vectors));
    if (i >= dc->nnode - dc->npinned) f->least = 0;
  }
  return EIN_OK;
}

// Ways of all forms, with what they cost by themselves.
static ein_status eini_dforms_place(eini_decomposer *dc, eini_formwork *work) {
  for (int i = 0; i < dc->nnode; i++) {
    eini_dform *f = &dc->node[i];
    if (dc->form_of[i] != i) continue;
    EINI_TRY(eini_ways_place(dc, f, &work->ways, &work->orders));
    EINI_TRY(eini_form_costs(dc, f));
    if (i >= dc->nnode - dc->npinned) f->unary[0] = f->join[0] = f->seconds[0] = 0;
    dc->nvector += f->ways.n;
  }
  return EIN_OK;
}
