// ================================================================================================
// >>within  schedules that fit the memory of a place
// Takes a graph and a limit; extends states by statement after statement, its cut and its steps,
// and keeps the cheapest. Sizes are those of a place with a block of everything, all the largest.
// ================================================================================================

enum { EINI_WITHIN_CAP = 48, EINI_WITHIN_SHARED = 3 };  // states; inputs that one reads first

typedef struct eini_within_state {
  int *label;               // [node]
  const eini_streamed **plan;  // [node]; NULL: not reached
  double *input;            // [tensor] what of an input was read, if it is held
  int *by;                  // [tensor] who read it last; -2: it is in shares
  double cost;              // bytes moved
  double held, always, most;  // bytes: blocks that live; inputs; most of blocks with a task
} eini_within_state;

// What was found for a form, a way and which inputs are in shares.
typedef struct eini_within_memo {
  double limit;             // it was searched with; 0: it was not
  const eini_streamed *plan;  // NULL: none fits
} eini_within_memo;

typedef struct eini_within {
  eini_decomposer dc;
  eini_edges edges;
  eini_sums net;
  int *last;                // [node] its last reader; nnode: it stays
  int64_t *at;              // [node] its first edge as a reader
  int *first;               // [tensor] first reader of an input that is not pinned; else -1
  double *rest;             // [node] the least that inputs take which are first read behind it
  eini_within_memo **memo;     // [form]
  eini_within_state *now, *next;
  int64_t n;
  eini_stream_task task;
  double *moved;
  double limit, per_byte;   // bytes of a place; what a byte there costs in the order of states
  double least;             // the least that was too much
  // The statement at hand: inputs that it reads first, and what moves of them if they are in
  // shares, by way and input.
  int nfresh, fresh[EINI_WITHIN_SHARED];
  double *share;            // bytes of a share
  double *shared;           // moved
  eini_ranked *heap;
} eini_within;

// ---- inputs in shares ----

// Over the grid of its first reader an input is cut as that needs it, and by dimensions that do not
// cut what it reads, once more along the axis with most left. axis: of each digit, -1: replicated.
// Elements of a share.
static double eini_share_axes(const eini_stmt *s, int k, const int64_t *shape, const int64_t *cut,
                              const int *order, int norder, int64_t *left, int *axis) {
  const eini_map *m = &s->proj[k];
  double size = 1;
  for (int r = 0; r < m->rows; r++) left[r] = shape[r];
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < norder; i++) {
      int64_t coef;
      int to = pass == 0 ? -1 : axis[i];
      for (int r = 0; r < m->rows && pass == 0; r++)
        if (eini_row_index(m, r, &coef) == order[i] && coef == 1 && m->offset[r] == 0 &&
            s->index[order[i]].extent == shape[r])
          to = r;
      for (int r = 0; r < m->rows && pass == 1 && axis[i] < 0; r++)
        if (left[r] >= cut[order[i]] && (to < 0 || left[r] > left[to])) to = r;
      if (to >= 0 && (pass == 0 || axis[i] < 0)) left[to] = eini_ceil_div(left[to], cut[order[i]]);
      axis[i] = to;
    }
  }
  for (int r = 0; r < m->rows; r++) size *= (double)left[r];
  return size;
}

// The operand that reads tensor t first in a statement.
static int eini_share_operand(const eini_stmt *s, int t) {
  int k = 0;
  while (s->operand[k] != t) k++;
  return k;
}

static double eini_within_box(eini_within *f, const eini_stmt *s, const int64_t *cut, int k) {
  for (int c = 0; c < s->nindex; c++) f->task.hi[c] = eini_ceil_div(s->index[c].extent, cut[c]);
  f->task.s = s;
  return eini_stream_box(&f->task, k, f->task.hi,
                         eini_element_bytes(&f->dc, k < s->noperand ? s->operand[k] : s->out));
}

// The cuts of node y under a way.
static const int64_t *eini_within_cut(const eini_within *f, int y, int64_t way) {
  const eini_dform *form = eini_form(&f->dc, y);
  return form->ways.cut + way * form->s->nindex;
}

// Bytes that operand k fetches of an input in shares: of one as this statement reads it, else all
// but what a place has by chance.
static double eini_within_fetch(eini_within *f, int y, int way, int k, int aligned) {
  const eini_dform *form = eini_form(&f->dc, y);
  const eini_stmt *s = f->dc.node[y].s;
  const int64_t *cut = eini_within_cut(f, y, way);
  const double tasks = (double)eini_tasks(cut, s->nindex), box = eini_within_box(f, s, cut, k);
  int64_t left[EINI_NAMES_MAX];
  int axis[EINI_CUTS_MAX];
  if (!aligned) return tasks * box * (1 - 1 / (double)f->dc.p);
  const int t = s->operand[k];
  const double share = eini_share_axes(s, k, f->dc.g->tensor[t].shape, cut,
                                       form->ways.order + (int64_t)way * s->nindex,
                                       form->ways.norder[way], left, axis);
  return fmax(0, tasks * (box - share * eini_element_bytes(&f->dc, t)));
}

// ---- a statement ----

// Inputs that statement y reads first and that may be in shares.
static void eini_within_fresh(eini_within *f, int y) {
  const eini_dform *form = eini_form(&f->dc, y);
  const eini_stmt *s = f->dc.node[y].s;
  const int64_t n = s->nindex;
  f->nfresh = 0;
  for (int k = 0; k < s->noperand && f->dc.desc->inputs != EIN_INPUTS_OUTSIDE; k++) {
    const int t = s->operand[k], rank = f->dc.g->tensor[t].rank;
    if (f->first[t] != y || eini_share_operand(s, t) < k || rank == 0 || rank > EINI_NAMES_MAX)
      continue;
    if (f->nfresh < EINI_WITHIN_SHARED) f->fresh[f->nfresh++] = t;
  }
  for (int64_t w = 0; w < form->ways.n; w++) {
    for (int i = 0; i < f->nfresh; i++) {
      const int t = f->fresh[i];
      const int64_t *cut = eini_within_cut(f, y, w);
      double *moved = &f->shared[w * EINI_WITHIN_SHARED + i];
      int64_t left[EINI_NAMES_MAX];
      int axis[EINI_CUTS_MAX];
      *moved = 0;
      for (int k = 0; k < s->noperand; k++)
        if (s->operand[k] == t && eini_operand_first(s, k) == k)
          *moved += eini_within_fetch(f, y, (int)w, k, k == eini_share_operand(s, t));
      f->share[w * EINI_WITHIN_SHARED + i] = eini_element_bytes(&f->dc, t) *
          eini_share_axes(s, eini_share_operand(s, t), f->dc.g->tensor[t].shape, cut,
                          form->ways.order + w * n, form->ways.norder[w], left, axis);
    }
  }
}

static int eini_within_is_shared(const eini_within *f, const eini_within_state *a, int t,
                                 int mask) {
  for (int i = 0; i < f->nfresh; i++)
    if (f->fresh[i] == t) return mask >> i & 1;
  return a->by[t] == -2;
}

// What accesses of statement y move once under a way, into f->moved; -1: not fetched. Their sum.
static double eini_within_moved(eini_within *f, const eini_within_state *a, int y, int way,
                                int mask) {
  const eini_decomposer *dc = &f->dc;
  const eini_dform *form = eini_form(dc, y);
  const eini_stmt *s = dc->node[y].s;
  double sum = f->moved[s->noperand] = form->agg[way];
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k], input = dc->g->tensor[t].role == EIN_ROLE_INPUT;
    f->moved[k] = input && dc->tensor_node[t] < 0 ? -1 : 0;
    if (f->moved[k] < 0 && eini_within_is_shared(f, a, t, mask))
      f->moved[k] = eini_within_fetch(f, y, way, k,
                                      f->first[t] == y && k == eini_share_operand(s, t));
  }
  for (int64_t e = f->at[y]; e < f->at[y + 1]; e++) {
    const eini_dedge *d = &f->edges.e[e];
    f->moved[d->k] += f->net.table[d->table].v[(int64_t)a->label[d->x] * form->ways.n + way];
  }
  for (int k = 0; k < s->noperand; k++)
    if (eini_operand_first(s, k) == k) sum += fmax(0, f->moved[k]);
  return sum;
}

// Steps of statement y under a way in so much memory; NULL: none do. f->moved is set.
static ein_status eini_within_steps(eini_within *f, int y, int way, int mask, double limit,
                                 const eini_streamed **plan) {
  const eini_stmt *s = f->dc.node[y].s;
  eini_stream_task *t = &f->task;
  eini_within_memo *m = &f->memo[f->dc.form_of[y]][(way << EINI_WITHIN_SHARED) + mask];
  // What was found for nearly as much is good enough, though what is moved may be other bytes.
  if (m->plan == NULL ? m->limit >= limit : m->plan->room <= limit && m->limit >= 0.8 * limit) {
    *plan = m->plan;
    return EIN_OK;
  }
  t->g = f->dc.g;
  t->s = s;
  t->cut = eini_within_cut(f, y, way);
  t->moved = f->moved;
  t->limit = limit;
  t->nacc = 0;
  t->acc[t->nacc++] = s->noperand;
  for (int k = 0; k < s->noperand; k++)
    if (f->moved[k] >= 0 && eini_share_operand(s, s->operand[k]) == k) t->acc[t->nacc++] = k;
  for (int c = 0; c < s->nindex; c++) t->hi[c] = eini_ceil_div(s->index[c].extent, t->cut[c]);
  eini_stream_plan(t);
  m->limit = limit;
  m->plan = *plan = NULL;
  if (t->best.bytes >= EINI_STREAM_NONE) return EIN_OK;
  eini_streamed *p = EINI_NEW(&f->dc.arena, eini_streamed, 1);
  if (p != NULL) p->depth = EINI_NEW(&f->dc.arena, int, s->noperand + 1);
  if (p == NULL || p->depth == NULL) return EIN_ERR_NO_MEMORY;
  eini_streamed_copy(p, &t->best, s->noperand + 1);
  m->plan = *plan = p;
  return EIN_OK;
}

// What a plan moves that was found for other bytes.
static double eini_within_cost(const eini_within *f, const eini_stmt *s, const eini_streamed *p) {
  double sum = 0;
  for (int k = 0; k <= s->noperand; k++) {
    double again = 1;
    if (f->moved[k] < 0 || (k < s->noperand && eini_operand_first(s, k) < k)) continue;
    for (int l = 0; l < p->depth[k]; l++)
      if (k < s->noperand ? !eini_stream_uses(s, k, p->index[l]) : p->index[l] >= s->nfree)
        again *= (double)p->parts[l];
    sum += again * f->moved[k];
  }
  return sum;
}

// ---- states ----

static void eini_within_copy(const eini_within *f, eini_within_state *to,
                             const eini_within_state *from) {
  const size_t n = (size_t)f->dc.nnode, m = (size_t)f->dc.g->ntensor;
  const eini_within_state was = *to;
  *to = *from;
  to->label = was.label, to->plan = was.plan, to->input = was.input, to->by = was.by;
  memcpy(to->label, from->label, n * sizeof *to->label);
  memcpy(to->plan, from->plan, n * sizeof *to->plan);
  memcpy(to->input, from->input, m * sizeof *to->input);
  memcpy(to->by, from->by, m * sizeof *to->by);
}

// What statement y reads of inputs that places hold.
static void eini_within_inputs(eini_within *f, eini_within_state *a, int y, int way, int mask) {
  const eini_decomposer *dc = &f->dc;
  const eini_stmt *s = dc->node[y].s;
  const int64_t *cut = eini_within_cut(f, y, way);
  if (dc->desc->inputs == EIN_INPUTS_OUTSIDE) return;
  for (int i = 0; i < f->nfresh; i++) {
    if (!(mask >> i & 1)) continue;
    a->always += f->share[(int64_t)way * EINI_WITHIN_SHARED + i];
    a->by[f->fresh[i]] = -2;
  }
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k], by = a->by[t];
    const eini_tensor *e = &dc->g->tensor[t];
    if (f->first[t] < 0 || by == -2 || eini_operand_first(s, k) < k) continue;
    double whole = eini_element_bytes(dc, t);
    for (int r = 0; r < e->rank; r++) whole *= (double)e->shape[r];
    const int same = by >= 0 && by != y && dc->form_of[by] == dc->form_of[y] &&
                     a->label[by] == way && eini_share_operand(dc->node[by].s, t) == k;
    const double more = same ? 0 : fmin(eini_within_box(f, s, cut, k), whole - a->input[t]);
    a->input[t] += more;
    a->always += more;
    a->by[t] = y;
  }
}

// State `to` is state `from` with statement y under a way; 0: it does not fit.
static ein_status eini_within_extend(eini_within *f, const eini_within_state *from, int y, int way,
                                     int mask, eini_within_state *to, int *fits) {
  const eini_decomposer *dc = &f->dc;
  const eini_stmt *s = dc->node[y].s;
  const int64_t *cut = eini_within_cut(f, y, way);
  const eini_streamed *plan = NULL;
  *fits = 0;
  eini_within_copy(f, to, from);
  eini_within_inputs(f, to, y, way, mask);
  to->held += eini_within_box(f, s, cut, s->noperand);
  const double room = f->limit - to->always - f->rest[y];
  (void)eini_within_moved(f, from, y, way, mask);
  if (room < from->most || room < to->held) return EIN_OK;
  EINI_TRY(eini_within_steps(f, y, way, mask, room - to->held, &plan));
  if (plan == NULL) return EIN_OK;
  *fits = 1;
  to->label[y] = way;
  to->plan[y] = plan;
  to->cost = from->cost + eini_within_cost(f, s, plan);
  to->most = fmax(to->most, to->held + plan->room);
  if (f->last[y] == y) to->held -= eini_within_box(f, s, cut, s->noperand);
  for (int64_t e = f->at[y]; e < f->at[y + 1]; e++) {
    const int x = f->edges.e[e].x;
    int again = f->last[x] != y || x == y;
    for (int64_t d = f->at[y]; d < e; d++) again |= f->edges.e[d].x == x;
    if (again) continue;
    const eini_stmt *of = dc->node[x].s;
    const int64_t *was = eini_within_cut(f, x, to->label[x]);
    to->held -= eini_within_box(f, of, was, of->noperand);
  }
  return EIN_OK;
}

// Is there a state with the same labels of what lives on that is better in nothing?
static int eini_within_seen(const eini_within *f, int y, const eini_within_state *a) {
  for (int64_t i = 0; i < f->n; i++) {
    const eini_within_state *b = &f->next[i];
    int same = b->cost <= a->cost && b->always <= a->always && b->held <= a->held &&
               b->most <= a->most;
    for (int x = 0; x <= y && same; x++) same = f->last[x] <= y || a->label[x] == b->label[x];
    for (int t = 0; t < f->dc.g->ntensor && same; t++)
      same = f->first[t] < 0 || a->by[t] == b->by[t] || (a->by[t] != -2 && b->by[t] != -2);
    if (same) return 1;
  }
  return 0;
}

// Extends all states by statement y.
static ein_status eini_within_step(eini_within *f, int y) {
  const int64_t ways = eini_form(&f->dc, y)->ways.n, had = f->n;
  int64_t n = 0, looks = 0;
  eini_within_fresh(f, y);
  const int64_t masks = (int64_t)1 << f->nfresh;
  for (int64_t a = 0; a < had; a++) {
    for (int64_t w = 0; w < ways * masks; w++) {
      const int way = (int)(w / masks), mask = (int)(w % masks);
      double key = f->now[a].cost + eini_within_moved(f, &f->now[a], y, way, mask);
      for (int i = 0; i < f->nfresh && f->per_byte > 0; i++)
        if (mask >> i & 1) key += f->per_byte * f->share[way * EINI_WITHIN_SHARED + i];
      if (f->per_byte > 0) {
        const eini_stmt *s = f->dc.node[y].s;
        const int64_t *cut = eini_within_cut(f, y, way);
        key += f->per_byte * (f->now[a].always + f->now[a].held +
                              eini_within_box(f, s, cut, s->noperand));
        for (int i = 0; i < f->nfresh; i++)
          if (!(mask >> i & 1))
            key += f->per_byte * eini_within_box(f, s, cut, eini_share_operand(s, f->fresh[i]));
      }
      f->heap[n].key = key;
      f->heap[n].seq = n;
      n++;
    }
  }
  for (int64_t i = n / 2; i-- > 0;) eini_heap_sink(f->heap, n, i);
  f->n = 0;
  while (n > 0 && f->n < EINI_WITHIN_CAP && looks++ < 64 * EINI_WITHIN_CAP) {
    const int64_t what = eini_heap_pop(f->heap, &n).seq;
    const int64_t from = what / (ways * masks), w = what % (ways * masks);
    int fits;
    EINI_TRY(eini_within_extend(f, &f->now[from], y, (int)(w / masks), (int)(w % masks),
                             &f->next[f->n], &fits));
    if (fits && !eini_within_seen(f, y, &f->next[f->n])) f->n++;
  }
  eini_within_state *swap = f->now;
  f->now = f->next;
  f->next = swap;
  return EIN_OK;
}

// All statements; 0 states: nothing fits.
static ein_status eini_within_pass(eini_within *f) {
  eini_within_state *a = &f->now[0];
  f->n = 1;
  a->cost = a->held = a->always = a->most = 0;
  for (int x = 0; x < f->dc.nnode; x++) a->label[x] = 0, a->plan[x] = NULL;
  for (int t = 0; t < f->dc.g->ntensor; t++) a->input[t] = 0, a->by[t] = -1;
  for (int x = f->dc.nnode - f->dc.npinned; x < f->dc.nnode; x++) {
    const eini_stmt *s = f->dc.node[x].s;
    a->held += eini_within_box(f, s, eini_within_cut(f, x, 0), s->noperand);
  }
  for (int y = 0; y < f->dc.nnode - f->dc.npinned && f->n > 0; y++)
    EINI_TRY(eini_within_step(f, y));
  return EIN_OK;
}
