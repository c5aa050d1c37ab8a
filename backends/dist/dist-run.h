// ================================================================================================
// >>dist-run  tasks of places that share memory
// Takes an ein_dist and the bindings of one call. Blocks are views of whole tensors; everything
// mutable is in the workspace: temporaries, partial results, the state of tasks, scratch.
// ================================================================================================

// What one thread needs to run tasks.
typedef struct eini_dist_worker {
  eini_dist_room room;
  ein_scalar *param;        // of the graph, then origins
  const void **in;
  int64_t *places;          // as many as there are places
  int64_t *sent;            // the same: bytes that were read of theirs; NULL: not counted
  char *scratch;
} eini_dist_worker;

// The state of a task: one job at a time.
typedef struct eini_dist_task {
  int32_t wait;             // what has to be done before its block is computed
  int32_t level;            // the job at hand: EINI_DIST_ZERO, EINI_DIST_BLOCK, or a merge
  uint32_t arrived;         // bit l: one of the two partial results of a merge at level l is there
  int32_t ready;
} eini_dist_task;

enum { EINI_DIST_ZERO = -2, EINI_DIST_BLOCK = -1 };

struct eini_dist_flow;

typedef struct eini_dist_exec {
  const ein_dist *d;
  const ein_run *run;
  char *temp;               // temporaries and partial results
  char **base;              // per tensor: element (0, .., 0)
  eini_dist_worker *worker;
  eini_dist_task *task;
  int64_t *left;            // per statement: jobs not yet done
  int32_t *ready;           // per statement: tasks that are ready
  int32_t *zero;            // per statement: those before, whose memory it takes
  ein_dist_stats *stats;    // NULL: not counted
  struct eini_dist_flow *flow;
} eini_dist_exec;

// The next `bytes` of a memory; with mem NULL only *used moves.
static char *eini_dist_carve(char *mem, size_t *used, int64_t count, size_t size) {
  char *p = mem == NULL ? NULL : mem + *used;
  *used += ((size_t)count * size + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
  return p;
}

// Lays out a run in mem (NULL: only the size). Returns the bytes.
static size_t eini_dist_layout(const ein_dist *d, eini_dist_exec *x, char *mem) {
  size_t n = 0;
  int flow = d->fabric.threads;
  x->base = (char **)(void *)eini_dist_carve(mem, &n, d->g->ntensor, sizeof(char *));
  x->worker = (eini_dist_worker *)(void *)eini_dist_carve(mem, &n, d->width, sizeof *x->worker);
  x->task = (eini_dist_task *)(void *)eini_dist_carve(mem, &n, flow ? d->ntask : 0,
                                                      sizeof *x->task);
  x->left = (int64_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->left);
  x->ready = (int32_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->ready);
  x->zero = (int32_t *)(void *)eini_dist_carve(mem, &n, flow ? d->nstmt : 0, sizeof *x->zero);
  for (int i = 0; i < d->width; i++) {
    int64_t *room = (int64_t *)(void *)eini_dist_carve(mem, &n, EINI_ROOM * (int64_t)d->rank,
                                                        sizeof(int64_t));
    char *param = eini_dist_carve(mem, &n, d->g->nparam + d->rank, sizeof(ein_scalar));
    char *in = eini_dist_carve(mem, &n, d->rank, sizeof(void *));
    char *places = eini_dist_carve(mem, &n, flow ? d->fabric.places : 0, sizeof(int64_t));
    char *out = eini_dist_carve(mem, &n, d->fabric.shared ? d->fabric.places : 0,
                                 sizeof(int64_t));
    char *scratch = eini_dist_carve(mem, &n, (int64_t)d->plans.workspace, 1);
    if (mem == NULL) continue;
    eini_dist_worker *w = &x->worker[i];
    eini_dist_room_carve(room, d->rank, &w->room);
    w->param = (ein_scalar *)(void *)param;
    w->in = (const void **)(void *)in;
    w->places = (int64_t *)(void *)places;
    w->sent = x->stats != NULL && d->fabric.shared ? (int64_t *)(void *)out : NULL;
    for (int q = 0; w->sent != NULL && q < d->fabric.places; q++) w->sent[q] = 0;
    w->scratch = scratch;
  }
  x->temp = eini_dist_carve(mem, &n, d->temp_bytes, 1);
  return n;
}

// The element at coordinates `at` of a tensor; `at` is the origin of a box that may be empty.
static char *eini_dist_at(const eini_dist_exec *x, int tensor, const int64_t *at) {
  const eini_tensor *t = &x->d->g->tensor[tensor];
  int64_t n = 0;
  for (int r = 0; r < t->rank; r++) n += at[r] * x->d->tensor[tensor].stride[r];
  if (x->d->tensor[tensor].lo == x->d->tensor[tensor].hi) return x->base[tensor];
  return x->base[tensor] + n * (int64_t)ein_dtype_size(t->dtype);
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

// The hull of the block the task at `place` computes, in m->from and m->to.
static void eini_dist_block_hull(const eini_dist_stmt *e, int64_t place, eini_dist_room *m) {
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  eini_space_ranges(&e->space, place, m->lo, m->hi);
  eini_block_hull(e->s, &b, -1, m->from, m->to);
}

// The address of that block.
static char *eini_dist_block_at(const eini_dist_exec *x, const eini_dist_stmt *e, int64_t place,
                                eini_dist_room *m) {
  eini_dist_block_hull(e, place, m);
  return eini_dist_at(x, e->s->out, m->from);
}

static ein_status eini_dist_execute_plan(const eini_dist_exec *x, eini_dist_worker *w, int64_t id,
                                         void *const *out) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = out;
  run.param = w->param;
  run.workspace = w->scratch;
  run.workspace_bytes = x->d->plans.workspace;
  return ein_plan_execute(x->d->plans.plan[id], &run);
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
  return eini_dist_execute_plan(x, w, e->plan[q], data);
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
  return eini_dist_execute_plan(x, w, last ? e->last[q] : e->merge[q], &out);
}

// Zero for all elements of a tensor, before its only statement writes those it defines.
static void eini_dist_zero(const eini_dist_exec *x, int tensor, eini_dist_room *m) {
  static const char zero[16] = {0};
  const eini_tensor *t = &x->d->g->tensor[tensor];
  for (int r = 0; r < t->rank; r++) m->from[r] = 0;
  eini_dist_copy(t->rank, t->shape, x->base[tensor], x->d->tensor[tensor].stride, zero, m->from,
                 ein_dtype_size(t->dtype));
}

// One job: a block, a merge, or zeros. Counts what it reads from other places.
static ein_status eini_dist_job_run(eini_dist_exec *x, int worker, int k, int64_t q, int level,
                                    eini_dist_read *r) {
  const ein_dist *d = x->d;
  eini_dist_worker *w = &x->worker[worker];
  ein_dist_event v;
  ein_status st = EIN_OK;
  r->bytes = r->messages = 0;
  r->sent = w->sent;
  memset(&v, 0, sizeof v);
  v.begin = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  if (level == EINI_DIST_ZERO) {
    eini_dist_zero(x, d->stmt[k].s->out, &w->room);
    return EIN_OK;
  }
  if (level >= 0) {
    st = eini_dist_merge(x, w, k, q, level, r);
  } else {
    st = eini_dist_compute(x, w, k, q);
    if (x->stats != NULL) eini_dist_task_bytes(d, &d->stmt[k], q, &w->room, r);
  }
  if (st != EIN_OK || d->desc.event_fn == NULL) return st;
  v.stmt = k;
  v.place = (int)q;
  v.level = level;
  v.worker = worker;
  v.end = d->now_fn == NULL ? 0 : d->now_fn(d->now_user);
  return d->desc.event_fn(d->desc.event_user, &v);
}

// What a place did and received for statement k; what it sent is told where it is known.
static void eini_dist_count(ein_dist_stats *s, int k, int64_t place, int64_t tasks,
                            const eini_dist_read *r) {
  if (s == NULL) return;
  s->tasks += tasks;
  s->bytes += r->bytes;
  s->messages += r->messages;
  if (s->stmt_bytes != NULL && k < s->nstmt) s->stmt_bytes[k] += r->bytes;
  if (s->place == NULL || place >= s->nplace) return;
  s->place[place].tasks += tasks;
  s->place[place].received_bytes += r->bytes;
}

static void eini_dist_sent(ein_dist_stats *s, int64_t place, int64_t bytes) {
  if (s != NULL && s->place != NULL && place < s->nplace) s->place[place].sent_bytes += bytes;
}

// Statements in order, places one after another, merges level by level.
static ein_status eini_dist_serial(eini_dist_exec *x) {
  const ein_dist *d = x->d;
  eini_dist_read r;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_space *s = &d->stmt[k].space;
    if (d->stmt[k].s->rest == EIN_REST_ZERO)
      EINI_TRY(eini_dist_job_run(x, 0, k, 0, EINI_DIST_ZERO, &r));
    for (int64_t q = 0; q < s->ntask; q++) {
      EINI_TRY(eini_dist_job_run(x, 0, k, q, EINI_DIST_BLOCK, &r));
      eini_dist_count(x->stats, k, q, 1, &r);
    }
    for (int level = 0; (int64_t)1 << level < s->nagg; level++) {
      for (int64_t q = 0; q < s->ntask; q++) {
        int64_t part = eini_space_partial(s, q), step = (int64_t)1 << level;
        if (part % (2 * step) != 0 || part + step >= s->nagg) continue;
        EINI_TRY(eini_dist_job_run(x, 0, k, q, level, &r));
        eini_dist_count(x->stats, k, q, 1, &r);
      }
    }
  }
  return EIN_OK;
}
