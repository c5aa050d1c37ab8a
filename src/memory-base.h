// ================================================================================================
// >>memory-base  the statements to be planned, and their order
// Takes what the caller gave; gives a graph whose statements are split by contraction order, with
// the layout of every tensor. The graph lives in a plan that is never built.
// ================================================================================================

#define EINI_FIT_LOOPS EINI_WALK_LOOPS  // nested loops of a region
#define EINI_FIT_CLASSES 8      // sliceable indices of a region that are looked at

// What is to be planned: a finished graph, with strides of its inputs and outputs by name, or one
// einsum. options: all that it says, the budget included.
typedef struct eini_want {
  const ein_graph *graph;
  const ein_einsum_desc *einsum;
  int nlayout;
  const ein_binding *layout;
  ein_options options;
} eini_want;

// What the search works on.
typedef struct eini_fit_job {
  ein_ctx *ctx;
  const eini_want *desc;
  eini_cap *cap;
  eini_speed speed;             // of all threads
  int whole;                    // 1: loops are chosen as if results were merged as a whole: others
                                //   are, where blocks of them make loops look small
  int64_t packing;              // most bytes that buffers of kernels take, of all threads
  int away;                     // 1: a provider copies all that statements read and make
  int ahead;                    // 1: with room for the next slice's, see ein_memory
} eini_fit_job;

typedef struct eini_fit_base {
  ein_plan *plan;               // owns the graph
  ein_graph *g;
  int *first, *last, *read;     // per tensor: the first and the last statement that define it, and
                                //   the last that reads it; -1: none
  const int64_t **stride;       // per tensor, in elements
  int64_t *bytes;               // per tensor, padded
  double *made, *gone;          // per statement: bytes of tensors that are read, first defined
                                //   before it, and last read before it
  int split;                    // statements were split by contraction order
} eini_fit_base;

// Predicted bytes add up to this at most: more than any memory, and sums of two do not overflow.
#define EINI_FIT_MOST (INT64_MAX / 4)

static int64_t eini_fit_sum(int64_t a, int64_t b) {  // of numbers >= 0
  return eini_min64(eini_min64(a, EINI_FIT_MOST) + eini_min64(b, EINI_FIT_MOST), EINI_FIT_MOST);
}

// Bytes of n elements, padded; -1: too large.
static int64_t eini_fit_padded(int64_t n, ein_dtype dtype) {
  if (eini_mul_overflow(n, (int64_t)ein_dtype_size(dtype), &n)) return -1;
  return n > INT64_MAX / 2 ? -1 : (n + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// Who defines and who reads each tensor, in the present order of statements.
static void eini_fit_spans(eini_fit_base *b) {
  const ein_graph *g = b->g;
  for (int64_t t = 0; t < g->ntensor; t++) b->first[t] = b->last[t] = b->read[t] = -1;
  for (int u = 0; u < (int)g->nstmt; u++) {
    const eini_stmt *s = &g->stmt[u];
    if (b->first[s->out] < 0) b->first[s->out] = u;
    b->last[s->out] = u;
    for (int k = 0; k < s->noperand; k++) b->read[s->operand[k]] = u;
  }
  for (int64_t u = 0; u <= g->nstmt; u++) b->made[u] = b->gone[u] = 0;
  for (int64_t t = 0; t < g->ntensor; t++) {
    if (b->first[t] < 0 || b->read[t] < 0) continue;
    b->made[b->first[t] + 1] += (double)b->bytes[t];
    b->gone[b->read[t] + 1] += (double)b->bytes[t];
  }
  for (int64_t u = 1; u <= g->nstmt; u++) {
    b->made[u] += b->made[u - 1];
    b->gone[u] += b->gone[u - 1];
  }
}

static ein_status eini_fit_layouts(const eini_fit_job *j, eini_fit_base *b,
                                   const ein_ztensor *const *view) {
  eini_arena *a = &b->plan->arena;
  ein_graph *g = b->g;
  int64_t n = g->ntensor;
  b->first = EINI_NEW(a, int, n);
  b->last = EINI_NEW(a, int, n);
  b->read = EINI_NEW(a, int, n);
  b->stride = EINI_NEW(a, const int64_t *, n);
  b->bytes = EINI_NEW(a, int64_t, n);
  b->made = EINI_NEW(a, double, g->nstmt + 1);
  b->gone = EINI_NEW(a, double, g->nstmt + 1);
  if (b->first == NULL || b->last == NULL || b->read == NULL || b->stride == NULL ||
      b->bytes == NULL || b->made == NULL || b->gone == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  eini_seat *seat;
  EINI_TRY(eini_plan_seats(b->plan, j->desc->nlayout, j->desc->layout, view, &seat));
  for (int64_t t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    int64_t count = 1;
    b->stride[t] = seat[t].stride;
    for (int r = 0; x->role == EIN_ROLE_TEMP && r < x->rank; r++)
      if (eini_mul_overflow(count, x->shape[r], &count)) return EIN_ERR_TOO_LARGE;
    if (x->role == EIN_ROLE_TEMP) b->bytes[t] = eini_fit_padded(count, x->dtype);
    if (b->bytes[t] < 0) return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

static ein_status eini_fit_base_fill(const eini_fit_job *j, const ein_options *o,
                                     eini_fit_base *b) {
  ein_plan *p = b->plan;
  const ein_ztensor **view = NULL;
  if (j->desc->graph != NULL) {
    EINI_TRY(eini_graph_copy_head(p->graph, j->desc->graph));
    EINI_TRY(eini_plan_statements(j->ctx, p, j->desc->graph, 0, NULL, o));
  } else {
    ein_einsum_desc d = *j->desc->einsum;
    d.options = *o;
    int64_t room = 8 * (int64_t)d.nin + 16;  // inputs, C, output and temporaries
    eini_request r;
    memset(&r, 0, sizeof r);
    r.d = &d;
    r.ctx = j->ctx;
    r.diag = eini_diag_of(j->ctx);
    view = EINI_NEW(&p->arena, const ein_ztensor *, room);
    if (view == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_request_graph(&r, p, view));
    if (p->graph->ntensor > room / 2) return EIN_ERR_INTERNAL;
    if (o->deterministic) EINI_TRY(eini_order_graph(p->graph));
  }
  b->g = p->graph;
  b->split = p->npath > 0;
  EINI_TRY(eini_fit_layouts(j, b, view));
  eini_fit_spans(b);
  return EIN_OK;
}

static void eini_fit_base_close(eini_fit_base *b) {
  eini_plan_free(b->plan);
  memset(b, 0, sizeof *b);
}

static ein_status eini_fit_base_open(const eini_fit_job *j, const ein_options *o,
                                     eini_fit_base *b) {
  memset(b, 0, sizeof *b);
  eini_begin_call(j->ctx, j->desc->graph != NULL ? NULL : j->desc->einsum->expr);
  ein_status st = eini_plan_new(j->ctx, &b->plan);
  if (st == EIN_OK) st = eini_fit_base_fill(j, o, b);
  if (st != EIN_OK) eini_fit_base_close(b);
  return st;
}

// ---- the order of statements ----

// The state of a list schedule: what is still to be done for each tensor.
typedef struct eini_fit_list {
  int *defs, *reads;            // statements left that define it, operands left that read it
  int *mine;                    // operands of the statement at hand that read it; else 0
  char *done, *live;
} eini_fit_list;

// May statement u come next? *after: the change of live bytes that it makes.
static int eini_fit_ready(const eini_fit_base *b, const eini_fit_list *w, int u, int64_t *after) {
  const eini_stmt *s = &b->g->stmt[u];
  *after = w->live[s->out] ? 0 : b->bytes[s->out];
  for (int k = 0; k < s->noperand; k++)
    if (w->defs[s->operand[k]] > 0) return 0;
  for (int k = 0; k < s->noperand; k++)
    if (++w->mine[s->operand[k]] == w->reads[s->operand[k]]) *after -= b->bytes[s->operand[k]];
  for (int k = 0; k < s->noperand; k++) w->mine[s->operand[k]] = 0;
  return 1;
}

// Orders the statements so that few temporaries are alive: of those that are ready, the one that
// leaves the least (the earliest on a tie). Takes square time, and orders no longer lists. *moved:
// something changed.
#define EINI_FIT_ORDER 4096

static ein_status eini_fit_reorder(eini_fit_base *b, eini_arena *scratch, int *moved) {
  ein_graph *g = b->g;
  int n = (int)g->nstmt;
  eini_fit_list w;
  eini_stmt *order = EINI_NEW(scratch, eini_stmt, n);
  w.defs = EINI_NEW(scratch, int, g->ntensor);
  w.reads = EINI_NEW(scratch, int, g->ntensor);
  w.mine = EINI_NEW(scratch, int, g->ntensor);
  w.done = EINI_NEW(scratch, char, n);
  w.live = EINI_NEW(scratch, char, g->ntensor);
  if (order == NULL || w.defs == NULL || w.reads == NULL || w.mine == NULL || w.done == NULL ||
      w.live == NULL) {
    return EIN_ERR_NO_MEMORY;
  }
  *moved = 0;
  if (n < 2 || n > EINI_FIT_ORDER) return EIN_OK;
  for (int u = 0; u < n; u++) {
    w.defs[g->stmt[u].out]++;
    for (int k = 0; k < g->stmt[u].noperand; k++) w.reads[g->stmt[u].operand[k]]++;
  }
  for (int at = 0; at < n; at++) {
    int best = -1;
    int64_t least = 0, after;
    for (int u = 0; u < n; u++) {
      if (w.done[u] || !eini_fit_ready(b, &w, u, &after)) continue;
      if (best < 0 || after < least) {
        best = u;
        least = after;
      }
    }
    if (best < 0) return EIN_ERR_INTERNAL;
    const eini_stmt *s = &g->stmt[best];
    w.done[best] = w.live[s->out] = 1;
    w.defs[s->out]--;
    for (int k = 0; k < s->noperand; k++) w.reads[s->operand[k]]--;
    *moved |= best != at;
    order[at] = *s;
  }
  if (*moved) memcpy(g->stmt, order, (size_t)n * sizeof *order);
  eini_fit_spans(b);
  return EIN_OK;
}
