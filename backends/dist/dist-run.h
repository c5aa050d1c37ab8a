// ================================================================================================
// >>dist-run  what jobs do
// Takes an ein_dist and the bindings of one call. In a memory that is shared blocks are views of
// whole tensors. Everything mutable is in the workspace: temporaries, partial results, memory of
// places, the state of jobs, scratch.
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

// Plan number id at place q.
static ein_status eini_dist_execute_plan(const eini_dist_exec *x, eini_dist_worker *w, int64_t q,
                                         int64_t id, void *const *out) {
  const ein_plan *p = x->d->plans.plan[id];
  const ein_kernels *k = p->away;
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = w->in;
  run.out = out;
  run.param = w->param;
  run.workspace = w->scratch;
  run.workspace_bytes = x->d->plans.workspace;
  run.error = w->error;
  run.error_bytes = sizeof w->error;
  if (k == NULL || k->memory->place_fn == NULL) return ein_plan_execute(p, &run);
  k->memory->place_fn(k->user, (int)q);
  const ein_status st = ein_plan_execute(p, &run);
  k->memory->place_fn(k->user, -1);
  return st;
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

// ---- places with memory of their own ----

static char *eini_own_at(const eini_dist_exec *x, int kind, int64_t entry) {
  const eini_dist_copies *c = x->d->copies;
  return x->mem + c->start[entry % x->d->fabric.count] + c->at[kind][entry];
}

// Where the elements of a move are at home, at place q; m->from: the corner of the box they lie in.
static eini_dist_end eini_own_home(const eini_dist_exec *x, const eini_dist_moved *v, int64_t q,
                                   const eini_dist_room *m) {
  const ein_dist *d = x->d;
  const int tensor = d->stmt[v->define].s->out;
  eini_dist_end e = eini_dist_end_home(d, v->define);
  if (eini_dist_whole(d, v->define)) e.data = eini_dist_at(x, tensor, m->from);
  else if (v->define < d->nstmt)
    e.data = eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, v->define, q));
  else e.data = eini_dist_bound(d, x->run, tensor, (int)q - d->fabric.first);
  return e;
}

static char *eini_own_box(const eini_dist_exec *x, int64_t entry, int o) {
  return eini_own_at(x, EINI_AT_OPERAND, entry) + x->d->copies->box[entry][o];
}

static int64_t eini_own_tag(const ein_dist *d, const eini_job *j, const eini_dist_moved *v) {
  int64_t slot = d->tags - 1;
  if (v->level >= 0) return j->stmt * d->tags + slot;
  const eini_dist_tensor *t = &d->tensor[d->stmt[j->stmt].s->operand[v->operand]];
  for (slot = 0; t->define[slot] != v->define;) slot++;
  return j->stmt * d->tags + v->operand * d->defines + slot;
}

// Posts what a place gives to a fold by the fabric. At the first of its places, which merges the
// result with its own once more, that is 0 in a sum, 1 in a product; in others twice does no harm.
static ein_status eini_own_reduce(eini_dist_exec *x, int k, const eini_dist_moved *v, char *data,
                                  ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, d->fabric.first);
  const ein_dtype type = ein_dtype_compute(e->s->type);
  const int product = e->s->fold == EIN_FOLD_PROD;
  if (v->kind == EINI_JOB_RECEIVE && (product || e->s->fold == EIN_FOLD_SUM))
    eini_fill_value(type, product, 0, product, v->bytes / (int64_t)ein_dtype_size(type), data);
  else if (v->kind == EINI_JOB_RECEIVE)
    memcpy(data, eini_own_at(x, e->direct ? EINI_AT_OWN : EINI_AT_PART, entry), (size_t)v->bytes);
  eini_flow_wires(&x->flow, 1);
  const ein_status st = d->fabric.reduce_fn(d->fabric.user, v->group, v->turns, v->turn,
                                            e->s->fold, type, data, (size_t)v->bytes, ticket);
  eini_flow_wires(&x->flow, 0);
  return st;
}

static ein_status eini_own_receive(eini_dist_exec *x, const eini_job *j, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  if (eini_dist_clocked(d))
    return f->recv_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  char *to = v->level >= 0 ? eini_own_at(x, EINI_AT_MERGED, entry)
             : v->direct ? eini_own_box(x, entry, v->operand) + v->at
                         : eini_own_at(x, EINI_AT_INBOX, entry) + v->at;
  if (v->level >= 0 && v->group >= 0) return eini_own_reduce(x, j->stmt, v, to, ticket);
  eini_flow_wires(&x->flow, 1);
  const ein_status st =
      v->group >= 0 ? f->spread_fn(f->user, v->group, v->turns, v->turn, v->peer, to,
                                   (size_t)v->bytes, ticket)
                    : f->recv_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), to,
                                 (size_t)v->bytes, ticket);
  eini_flow_wires(&x->flow, 0);
  return st;
}

static ein_status eini_own_send(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                int failed, ein_ticket *ticket) {
  const ein_dist *d = x->d;
  const ein_fabric *f = &d->fabric;
  const eini_dist_moved *v = &d->copies->move[j->arg];
  const int64_t q = f->first + j->place, entry = eini_dist_entry(d, j->stmt, q);
  eini_dist_room *m = &w->room;
  char *from;
  if (v->group == EINI_FOLLOWS) return EIN_OK;
  if (eini_dist_clocked(d))
    return f->send_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), NULL, (size_t)v->bytes,
                      ticket);
  if (v->level >= 0) {
    from = eini_own_at(x, EINI_AT_PART, entry);
  } else {
    eini_dist_box(&d->stmt[j->stmt], v->peer, v->operand, m);
    const eini_dist_end home = eini_own_home(x, v, q, m);
    const eini_dist_end to = eini_dist_end_of(
        EINI_AT_MESSAGE, eini_own_at(x, EINI_AT_OUTBOX, entry) + (v->direct ? 0 : v->at), NULL);
    from = v->direct ? home.data + v->at : to.data;
    if (!v->direct && !failed)
      eini_dist_move(&d->stmt[v->define].space, q, m->from, m->to,
                     (size_t)(v->bytes / v->elements), &to, &home, m);
  }
  if (v->level >= 0 && v->group >= 0) return eini_own_reduce(x, j->stmt, v, from, ticket);
  eini_flow_wires(&x->flow, 1);
  const ein_status st =
      v->group >= 0 ? f->spread_fn(f->user, v->group, v->turns, v->turn, (int)q, from,
                                   (size_t)v->bytes, ticket)
                    : f->send_fn(f->user, (int)q, v->peer, eini_own_tag(d, j, v), from,
                                 (size_t)v->bytes, ticket);
  eini_flow_wires(&x->flow, 0);
  return st;
}

// Addresses of the operands of task q, by operand; boxes with holes are zero first.
static void eini_own_operands(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q), *box = d->copies->box[entry];
  eini_dist_room *m = &w->room;
  for (int o = 0; o < e->s->noperand; o++) {
    const int t = e->s->operand[o];
    if (eini_operand_first(e->s, o) < o) continue;
    if (d->tensor[t].ndefine == 0) {
      char *base = x->base[t];
      if (d->desc.blocks) base = eini_dist_bound(d, x->run, t, (int)q - d->fabric.first);
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_dist_at_of(d, base, t, m->from);
    } else if (box[o] < 0) {
      const eini_dist_moved *v = &d->copies->move[-1 - box[o]];
      eini_dist_box(e, q, o, m);
      w->in[o] = eini_own_home(x, v, q, m).data + v->at;
    } else {
      w->in[o] = eini_own_box(x, entry, o);
      if (d->stmt[d->tensor[t].define[0]].s->rest == EIN_REST_ZERO)
        memset(eini_own_box(x, entry, o), 0, (size_t)eini_dist_box_bytes(d, e, q, o, m));
    }
  }
}

// Puts together the boxes of task q's operands, and computes.
static ein_status eini_own_compute(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_copies *c = d->copies;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t entry = eini_dist_entry(d, k, q);
  const int own = eini_space_partial(&e->space, q) == 0 && (e->space.nagg == 1 || e->direct);
  eini_dist_room *m = &w->room;
  int n = 0;
  eini_own_operands(x, w, k, q);
  for (int64_t i = c->first[entry]; i < c->first[entry + 1]; i++) {
    const eini_dist_moved *v = &c->move[i];
    if (v->kind == EINI_JOB_SEND || v->level >= 0 || v->direct) continue;
    eini_dist_box(e, q, v->operand, m);
    const eini_dist_end from =
        v->kind == EINI_JOB_NONE
            ? eini_own_home(x, v, q, m)
            : eini_dist_end_of(EINI_AT_MESSAGE, eini_own_at(x, EINI_AT_INBOX, entry) + v->at, NULL);
    const eini_dist_end to = eini_dist_end_box(d->g->tensor[e->s->operand[v->operand]].rank,
                                               eini_own_box(x, entry, v->operand), m);
    eini_dist_move(&d->stmt[v->define].space, v->kind == EINI_JOB_NONE ? q : v->peer, m->from,
                   m->to, (size_t)(v->bytes / v->elements), &to, &from, m);
  }
  for (int o = 0; o < e->s->noperand; o++)
    if (eini_operand_first(e->s, o) == o) w->in[n++] = w->in[o];
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  eini_dist_origins(d, e, w);
  return eini_dist_execute_block(x, w, e, q,
                                 eini_own_at(x, own ? EINI_AT_OWN : EINI_AT_PART, entry));
}

static ein_status eini_own_merge(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q,
                                 int level) {
  const eini_dist_stmt *e = &x->d->stmt[k];
  const int64_t entry = eini_dist_entry(x->d, k, q);
  const int first = eini_space_partial(&e->space, q) == 0;
  const int last = first && level == e->levels - 1;
  if (e->reduced && !last) return EIN_OK;
  char *own = eini_own_at(x, EINI_AT_OWN, entry), *part = eini_own_at(x, EINI_AT_PART, entry);
  char *merged = eini_own_at(x, EINI_AT_MERGED, entry);
  if (e->folder != NULL) {
    eini_dist_room *m = &w->room;
    eini_space_ranges(&e->space, q, m->lo, m->hi);
    for (int i = 0; i < e->s->nfree; i++) m->len[i] = m->hi[i] - m->lo[i];
    eini_dist_dense(e->s->nfree, m->len, m->dst);
    eini_dist_states_join(x, w, e, q, part, merged, last ? own : NULL, m->dst);
    return EIN_OK;
  }
  void *out = first && (e->direct || last) ? own : part;
  w->in[0] = first && e->direct ? own : part;
  w->in[1] = merged;
  return eini_dist_execute_plan(x, w, q, (last ? e->last : e->merge)[q - x->d->fabric.first],
                                &out);
}

// The complete block of an output goes to the caller's view, or to what it binds for the place.
static void eini_own_output(eini_dist_exec *x, eini_dist_worker *w, int k, int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[k];
  const eini_tensor *t = &d->g->tensor[e->s->out];
  const int64_t *stride = d->tensor[e->s->out].stride;
  eini_dist_room *m = &w->room;
  char *base = x->base[e->s->out];
  for (int r = 0; r < t->rank; r++) {
    m->from[r] = 0;
    m->to[r] = t->shape[r];
    if (d->desc.blocks) eini_dist_own(d, e->s->out, q, r, &m->from[r], &m->to[r]);
    m->len[r] = m->to[r] - m->from[r];
  }
  if (d->desc.blocks) {
    eini_dist_dense(t->rank, m->len, m->box);
    stride = m->box;
    base = eini_dist_bound(d, x->run, e->s->out, (int)q - d->fabric.first);
  }
  const eini_dist_end to = eini_dist_end_of(EINI_AT_BOX, base, stride);
  const eini_dist_end at = eini_dist_end_of(
      EINI_AT_BLOCK, eini_own_at(x, EINI_AT_OWN, eini_dist_entry(d, k, q)), NULL);
  eini_dist_move(&e->space, q, m->from, m->to, ein_dtype_size(t->dtype), &to, &at, m);
}

// ---- jobs ----

enum { EINI_EVENT_MESSAGE = -4 };  // see ein_dist_event

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
  s->place[place].messages += r->messages;
}

// A job is over on a clock.
static void eini_dist_timed(ein_dist_stats *s, int64_t place, const eini_job *j, double begin,
                            double end) {
  if (s == NULL) return;
  if (end > s->seconds) s->seconds = end;
  if (j->kind == EINI_JOB_RECEIVE || j->kind == EINI_JOB_SEND) return;
  if (s->place != NULL && place < s->nplace) s->place[place].busy += end - begin;
}

static void eini_dist_sent(ein_dist_stats *s, int64_t place, int64_t bytes) {
  if (s != NULL && s->place != NULL && place < s->nplace) s->place[place].sent_bytes += bytes;
}

// A block or a merge; w->read: what it reads from other places in a memory that is shared.
static ein_status eini_dist_task_run(eini_dist_exec *x, eini_dist_worker *w, const eini_job *j,
                                     int64_t q) {
  const ein_dist *d = x->d;
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const int merge = j->kind == EINI_JOB_MERGE, k = j->stmt;
  if (d->fabric.shared && merge) return eini_dist_merge(x, w, k, q, j->arg, &w->read);
  if (d->fabric.shared) {
    EINI_TRY(eini_dist_compute(x, w, k, q));
    if (x->stats != NULL) eini_dist_task_bytes(d, e, q, &w->room, &w->read);
    return EIN_OK;
  }
  EINI_TRY(merge ? eini_own_merge(x, w, k, q, j->arg) : eini_own_compute(x, w, k, q));
  const int whole = eini_space_partial(&e->space, q) == 0 &&
                    (merge ? j->arg == e->levels - 1 : e->space.nagg == 1);
  if (whole && d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT) eini_own_output(x, w, k, q);
  return EIN_OK;
}

// Seconds of a block, or a merge, on the fabric's machine.
static double eini_dist_takes(const ein_dist *d, const eini_job *j, int64_t q, eini_dist_room *m) {
  const eini_dist_stmt *e = &d->stmt[j->stmt];
  const eini_stmt_block b = eini_block_of(m->lo, m->hi, NULL);
  if (j->kind == EINI_JOB_ZERO) return 0;
  if (j->kind == EINI_JOB_MERGE)
    return eini_merge_seconds(d->fabric.machine, (double)eini_dist_elements(&e->space, q, m));
  eini_space_ranges(&e->space, q, m->lo, m->hi);
  return eini_machine_cost(d->fabric.machine, d->g, e->s, e->again, &b).seconds;
}

// On a clock: a job is over.
static ein_status eini_dist_job_over(void *user, const eini_job *j, double begin, double end) {
  const eini_dist_exec *x = (const eini_dist_exec *)user;
  const ein_dist *d = x->d;
  ein_dist_event v;
  memset(&v, 0, sizeof v);
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.begin = begin;
  v.end = end;
  eini_dist_timed(x->stats, v.place, j, begin, end);
  if (j->kind == EINI_JOB_SEND || j->kind == EINI_JOB_ZERO || d->desc.event_fn == NULL)
    return EIN_OK;
  if (j->kind == EINI_JOB_RECEIVE) {
    const eini_dist_moved *u = &d->copies->move[j->arg];
    v.level = EINI_EVENT_MESSAGE;
    v.from = u->peer;
    v.operand = u->operand;
    v.bytes = u->bytes;
  }
  return d->desc.event_fn(d->desc.event_user, &v);
}

static ein_status eini_dist_job_run(void *user, int worker, const eini_job *j, int failed,
                                    ein_ticket *ticket) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  eini_dist_worker *w = &x->worker[worker];
  const ein_dist *d = x->d;
  ein_dist_event v;
  if (j->kind == EINI_JOB_RECEIVE) return eini_own_receive(x, j, ticket);
  if (j->kind == EINI_JOB_SEND) return eini_own_send(x, w, j, failed, ticket);
  if (failed) return EIN_OK;
  if (eini_dist_clocked(d))
    return d->fabric.compute_fn(d->fabric.user, d->fabric.first + j->place, j->stmt,
                                eini_dist_takes(d, j, d->fabric.first + j->place, &w->room),
                                ticket);
  if (j->kind == EINI_JOB_ZERO) return eini_dist_zero(x, d->stmt[j->stmt].s->out, &w->room), EIN_OK;
  memset(&v, 0, sizeof v);
  memset(&w->read, 0, sizeof w->read);
  w->read.sent = w->sent;
  v.stmt = j->stmt;
  v.place = d->fabric.first + j->place;
  v.level = j->kind == EINI_JOB_MERGE ? j->arg : -1;
  v.worker = worker;
  v.begin = eini_dist_now(d);
  EINI_TRY(eini_dist_task_run(x, w, j, v.place));
  v.end = eini_dist_now(d);
  return d->desc.event_fn == NULL ? EIN_OK : d->desc.event_fn(d->desc.event_user, &v);
}

static void eini_dist_job_done(void *user, int worker, const eini_job *j) {
  eini_dist_exec *x = (eini_dist_exec *)user;
  const int64_t q = x->d->fabric.first + j->place;
  eini_dist_read r = {0, 1, NULL};
  if (j->kind == EINI_JOB_BLOCK || j->kind == EINI_JOB_MERGE)
    eini_dist_count(x->stats, j->stmt, q, 1, &x->worker[worker].read);
  if (j->kind != EINI_JOB_RECEIVE && j->kind != EINI_JOB_SEND) return;
  r.bytes = x->d->copies->move[j->arg].bytes;
  if (j->kind == EINI_JOB_SEND) eini_dist_sent(x->stats, q, r.bytes);
  else eini_dist_count(x->stats, j->stmt, q, 0, &r);
}
