// ================================================================================================
// >>dist-run  a run, and what tasks do in a memory that is shared
// Takes an ein_dist and the bindings of one call. Blocks are views of whole tensors. Everything
// mutable is in the workspace: temporaries, partial results, memory of places, jobs, scratch.
// ================================================================================================

// What one thread needs to run jobs.
typedef struct eini_dist_worker {
  eini_dist_room room;
  ein_scalar *param;        // of the graph, then origins
  const void **in;
  int64_t *sent;            // per place: bytes that were read of theirs; NULL: not counted
  eini_dist_read read;      // by the job at hand
  char *scratch;
  char error[192];          // of a task that failed
} eini_dist_worker;

typedef struct eini_dist_exec {
  const ein_dist *d;
  const ein_run *run;
  char *temp;               // temporaries and partial results
  char *mem;                // of places that have their own
  char **base;              // per tensor: element (0, .., 0)
  eini_dist_worker *worker;
  ein_dist_stats *stats;    // NULL: not counted
  eini_flow flow;
} eini_dist_exec;

// The next `bytes` of a memory; with mem NULL only *used moves.
static void *eini_dist_carve(char *mem, size_t *used, int64_t count, size_t size) {
  char *p = mem == NULL ? NULL : mem + *used;
  *used += ((size_t)count * size + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  return p;
}

static void eini_dist_layout_flow(const ein_dist *d, eini_flow *f, char *mem, size_t *n) {
  const eini_jobs *j = &d->jobs;
  const int64_t lists = (int64_t)d->nstmt * d->width;
  f->jobs = j;
  f->fabric = &d->fabric;
  f->nstmt = d->nstmt;
  f->width = d->width;
  f->wait = (int32_t *)eini_dist_carve(mem, n, j->n, sizeof(int32_t));
  f->link = (int32_t *)eini_dist_carve(mem, n, j->n, sizeof(int32_t));
  f->head = (int32_t *)eini_dist_carve(mem, n, lists, sizeof(int32_t));
  f->tail = (int32_t *)eini_dist_carve(mem, n, lists, sizeof(int32_t));
  f->ready = (int32_t *)eini_dist_carve(mem, n, d->nstmt, sizeof(int32_t));
  const int64_t posted = eini_dist_clocked(d) ? 0 : j->ntransfer;
  f->ticket = (ein_ticket *)eini_dist_carve(mem, n, posted, sizeof(ein_ticket));
  f->ticket_of = (int32_t *)eini_dist_carve(mem, n, posted > 0 ? posted : j->todo,
                                            sizeof(int32_t));
  f->over = (char *)eini_dist_carve(mem, n, posted, 1);
}

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_dist_layout(const ein_dist *d, eini_dist_exec *x, char *mem) {
  size_t n = 0;
  x->base = (char **)eini_dist_carve(mem, &n, d->g->ntensor, sizeof(char *));
  x->worker = (eini_dist_worker *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  eini_dist_layout_flow(d, &x->flow, mem, &n);
  for (int i = 0; i < d->width; i++) {
    int64_t *room = (int64_t *)eini_dist_carve(mem, &n, EINI_ROOM * (int64_t)d->rank,
                                               sizeof(int64_t));
    void *param = eini_dist_carve(mem, &n, d->g->nparam + d->rank, sizeof(ein_scalar));
    void *in = eini_dist_carve(mem, &n, d->rank, sizeof(void *));
    void *out = eini_dist_carve(mem, &n, d->fabric.shared ? d->fabric.places : 0,
                                sizeof(int64_t));
    void *scratch = eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
    if (mem == NULL) continue;
    eini_dist_worker *w = &x->worker[i];
    memset(w, 0, sizeof *w);
    eini_dist_room_carve(room, d->rank, &w->room);
    w->param = (ein_scalar *)param;
    w->in = (const void **)in;
    w->sent = x->stats != NULL && d->fabric.shared ? (int64_t *)out : NULL;
    for (int q = 0; w->sent != NULL && q < d->fabric.places; q++) w->sent[q] = 0;
    w->scratch = (char *)scratch;
  }
  if (eini_dist_clocked(d)) return n;
  x->temp = (char *)eini_dist_carve(mem, &n, d->temp_bytes, 1);
  x->mem = (char *)eini_dist_carve(mem, &n, d->copies == NULL ? 0 : d->copies->total, 1);
  return n;
}

// The element at coordinates `at` of a tensor, of which `base` is the first; `at` is the origin of
// a box that may be empty.
static char *eini_dist_at_of(const ein_dist *d, char *base, int tensor, const int64_t *at) {
  const eini_tensor *t = &d->g->tensor[tensor];
  int64_t n = 0;
  for (int r = 0; r < t->rank; r++) n += at[r] * d->tensor[tensor].stride[r];
  if (d->tensor[tensor].lo == d->tensor[tensor].hi) return base;
  return base + n * (int64_t)ein_dtype_size(t->dtype);
}

static char *eini_dist_at(const eini_dist_exec *x, int tensor, const int64_t *at) {
  return eini_dist_at_of(x->d, x->base[tensor], tensor, at);
}

// ---- blocks of tensors at places ----

// Does a place hold a part of a tensor? What nothing pins or defines lies everywhere.
static int eini_dist_owns(const ein_dist *d, int t, int64_t place) {
  const eini_dist_tensor *x = &d->tensor[t];
  if (x->ndefine == 0) return 1;
  const eini_space *s = &d->stmt[x->define[0]].space;
  return place < s->ntask && eini_space_partial(s, place) == 0;
}

// What it holds of axis r.
static void eini_dist_own(const ein_dist *d, int t, int64_t place, int r, int64_t *lo,
                          int64_t *hi) {
  const eini_dist_tensor *x = &d->tensor[t];
  const eini_space *s = x->ndefine == 0 ? NULL : &d->stmt[x->define[0]].space;
  const int i = s == NULL ? -1 : eini_plain_row(&s->s->out_map, r);
  *lo = 0;
  *hi = d->g->tensor[t].shape[r];
  if (i < 0) return;
  const int64_t k = eini_space_piece(s, place, i);
  *lo = eini_piece_start(s->s->index[i].extent, s->cut[i], k);
  *hi = eini_piece_start(s->s->index[i].extent, s->cut[i], k + 1);
}

// Why a tensor is not one box at each place; NULL: it is.
static const char *eini_dist_not_boxes(const ein_dist *d, int t) {
  const eini_dist_tensor *x = &d->tensor[t];
  const eini_tensor *e = &d->g->tensor[t];
  int64_t coef;
  if (x->ndefine > 1) return "several statements write it";
  const eini_stmt *s = x->ndefine == 0 ? NULL : d->stmt[x->define[0]].s;
  for (int r = 0; r < e->rank && s != NULL; r++) {
    const int one = e->shape[r] == 1 && eini_row_index(&s->out_map, r, &coef) < 0;
    if (s->rest != EIN_REST_ERROR || (eini_plain_row(&s->out_map, r) < 0 && !one))
      return "what places hold of it are not boxes";
  }
  return NULL;
}

// The elements of the block at a place.
static int64_t eini_dist_own_elements(const ein_dist *d, int t, int64_t place) {
  int64_t n = eini_dist_owns(d, t, place);
  for (int r = 0; r < d->g->tensor[t].rank && n > 0; r++) {
    int64_t lo, hi;
    eini_dist_own(d, t, place, r, &lo, &hi);
    n *= hi - lo;
  }
  return n;
}

// What a run binds for an input or output: the whole tensor, or its block at the i-th place of the
// process.
static char *eini_dist_bound(const ein_dist *d, const ein_run *run, int t, int i) {
  const int64_t at = (int64_t)d->tensor[t].port * (d->desc.blocks ? d->fabric.count : 1) + i;
  union { const void *c; char *v; } u;  // inputs are only read
  if (d->g->tensor[t].role == EIN_ROLE_INPUT) u.c = run->in[at];
  else u.v = (char *)run->out[at];
  return u.v;
}

// Memory of the partial result of the task at `place`.
static char *eini_dist_partial_at(const eini_dist_exec *x, const eini_dist_stmt *e,
                                  int64_t place) {
  return x->temp + x->d->item[e->item].at + place * (int64_t)e->partial_bytes;
}

// The address of that block.
static char *eini_dist_block_at(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t place,
                                eini_dist_room *m) {
  eini_dist_block_hull(e, place, m);
  return eini_dist_at(x, e->s->out, m->from);
}

// What the first of so many workers has to say of a task that failed.
static ein_status eini_dist_failed(const ein_run *run, ein_status st, int n, const char *error,
                                   size_t pitch) {
  for (int i = 0; st != EIN_OK && run != NULL && run->error != NULL && i < n; i++, error += pitch) {
    if (error[0] == 0 || run->error_bytes == 0) continue;
    snprintf(run->error, run->error_bytes, "%s", error);
    break;
  }
  return st;
}

// What is asked of a provider from here on is for place q; -1: for none.
static void eini_dist_here(const ein_kernels *k, int64_t q) {
  if (k->memory->place_fn != NULL) k->memory->place_fn(k->user, (int)q);
}

// Runs plan number id at place q. What it does in the memory of a provider may go on, unless
// somebody is told of tasks.
static ein_status eini_dist_run_at(const ein_dist *d, int64_t q, int64_t id, const ein_run *run) {
  const ein_plan *p = d->plans.plan[id];
  ein_ticket ticket;
  if (p->away == NULL) return ein_plan_execute(p, run);
  eini_dist_here(p->away, q);
  const ein_status st = d->away != NULL && d->desc.event_fn == NULL
                            ? ein_plan_enqueue(p, run, &ticket) : ein_plan_execute(p, run);
  eini_dist_here(p->away, -1);
  return st;
}

static ein_status eini_dist_execute_plan(const eini_dist_exec *x, eini_dist_worker *w, int64_t q,
                                         int64_t id, void *const *out) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = out;
  run.param = w->param;
  run.workspace = w->scratch;
  run.workspace_bytes = x->d->plans.workspace;
  run.error = w->error;
  run.error_bytes = sizeof w->error;
  return eini_dist_run_at(x->d, q, id, &run);
}

// Computes the block of task q: results, or states, which begin as those of nothing.
static ein_status eini_dist_execute_block(const eini_dist_exec *x, eini_dist_worker *w,
                                          const eini_dist_stmt *e, int64_t q, char *out) {
  void *data[4] = {out, NULL, NULL, NULL};
  if (e->folder != NULL) {
    int64_t n = eini_dist_elements(&e->space, q, &w->room);
    eini_states_at(e->folder, n, out, data);
    eini_fold_identity(e->folder, n, data);
  }
  return eini_dist_execute_plan(x, w, q, e->plan[q - x->d->fabric.first], data);
}

// Origins of the block at m->lo as params, behind those of the graph.
static void eini_dist_origins(const ein_dist *d, const eini_dist_stmt *e, eini_dist_worker *w) {
  ein_scalar *p = w->param + d->g->nparam;
  for (int i = 0; i < e->s->nindex; i++) {
    if (!eini_dist_uses(e->s, e->space.cut, i)) continue;
    p->set = 1;
    p->re = (double)w->room.lo[i];
    p->im = 0;
    p++;
  }
}

static ein_status eini_dist_compute(const eini_dist_exec *x, eini_dist_worker *w, int k,
                                    int64_t q) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  eini_dist_room *m = &w->room;
  int n = 0, own = e->space.nagg == 1 || (e->direct && eini_space_partial(&e->space, q) == 0);
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(x->d, e, w);
  for (int o = 0; o < e->s->noperand; o++) {
    if (eini_operand_first(e->s, o) < o) continue;
    eini_block_hull(e->s, &b, o, m->from, m->to);
    w->in[n++] = eini_dist_at(x, e->s->operand[o], m->from);
  }
  char *out = own ? eini_dist_block_at(x, e, q, m) : eini_dist_partial_at(x, e, q);
  return eini_dist_execute_block(x, w, e, q, out);
}

// Merges states of the block of task q into those at left, and finishes the last ones: into dst,
// with strides by free index.
static void eini_dist_states_join(const eini_dist_exec *x, eini_dist_worker *w,
                                  const eini_dist_stmt *e, int64_t q, char *left, char *right,
                                  char *dst, const int64_t *stride) {
  eini_dist_room *m = &w->room;
  int64_t n = eini_dist_elements(&e->space, q, m);
  void *state[4];
  eini_states_merge(e->folder, n, left, right);
  if (dst == NULL) return;
  for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
  eini_states_at(e->folder, n, left, state);
  eini_states_finish(e->folder, e->s->nfree, m->len, state, NULL,
                     x->d->g->tensor[e->s->out].dtype, dst, stride);
}

// The address of the first element of the block of task q, and strides by free index.
static char *eini_dist_block_first(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t q,
                                   eini_dist_room *m, int64_t *stride) {
  const eini_map *map = &e->s->out_map;
  const int64_t *step = x->d->tensor[e->s->out].stride;
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  for (int i = 0; i < e->s->nfree; i++) stride[i] = 0;
  for (int r = 0; r < map->rows; r++) {
    m->from[r] = map->offset[r];
    for (int k = map->first[r]; k < map->first[r + 1]; k++) {
      const int i = map->term[k].index;
      int64_t c = map->term[k].coef;
      m->from[r] += c * m->lo[i];
      stride[i] += c * step[r];
    }
  }
  return eini_dist_at(x, e->s->out, m->from);
}

// Merges partial result k + 2^level of the block of task q, whose number is k, into k.
static ein_status eini_dist_merge(const eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                  int level, eini_dist_read *r) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  eini_dist_room *m = &w->room;
  int64_t part = eini_space_partial(&e->space, q), step = (int64_t)1 << level;
  int64_t from = eini_space_partner(&e->space, q, part + step);
  int last = part == 0 && 2 * step >= e->space.nagg;
  eini_dist_reads(r, from, eini_dist_elements(&e->space, q, m) * e->wide);
  if (e->folder != NULL) {
    char *dst = last ? eini_dist_block_first(x, e, q, m, m->dst) : NULL;
    eini_dist_states_join(x, w, e, q, eini_dist_partial_at(x, e, q),
                          eini_dist_partial_at(x, e, from), dst, m->dst);
    return EIN_OK;
  }
  char *block = part == 0 ? eini_dist_block_at(x, e, q, m) : NULL;
  w->in[0] = part == 0 && e->direct ? block : eini_dist_partial_at(x, e, q);
  w->in[1] = eini_dist_partial_at(x, e, from);
  void *out = part == 0 && (e->direct || last) ? block : eini_dist_partial_at(x, e, q);
  return eini_dist_execute_plan(x, w, q, (last ? e->last : e->merge)[q - x->d->fabric.first],
                                &out);
}

// Zero for all elements of a tensor, before its only statement writes those it defines.
static void eini_dist_zero(const eini_dist_exec *x, int tensor, eini_dist_room *m) {
  static const char zero[16] = {0};
  const eini_tensor *t = &x->d->g->tensor[tensor];
  for (int r = 0; r < t->rank; r++) m->from[r] = 0;
  eini_dist_copy(t->rank, t->shape, x->base[tensor], x->d->tensor[tensor].stride, zero, m->from,
                 ein_dtype_size(t->dtype));
}
