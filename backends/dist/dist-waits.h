// ================================================================================================
// >>dist-waits  the jobs of a plan and what each waits for
// Takes statements, moves and memory of the places of this process; gives jobs. Where places share
// memory, that is one place for what follows.
// ================================================================================================

// Places of this process with memory of their own.
static int64_t eini_dist_memories(const ein_dist *d) {
  return d->fabric.shared ? 1 : d->fabric.count;
}

// The job after which the partial result of task q of a statement is merged no further where it is;
// of partial result 0: after which the block is complete.
static int64_t eini_dist_final(const ein_dist *d, const eini_dist_stmt *e, int64_t q) {
  const int64_t i = q - d->fabric.first;
  int l = 0;
  while (l < e->levels && eini_dist_merges(&e->space, q, l)) l++;
  return l == 0 ? e->block + i : e->merges + i * e->levels + l - 1;
}

// The moves of all statements in the order of their jobs, into turn: of a statement first those of
// operands, then those of partial results level by level, so that a job waits for none of a later
// number.
static ein_status eini_dist_turns(eini_arena *a, const ein_dist *d, int64_t *turn) {
  const eini_dist_copies *c = d->copies;
  eini_turns x = {0, EINI_NEW(a, eini_ranked, c->nmove)};
  if (x.heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < d->nstmt; k++) {
    for (int64_t p = 0; p < d->fabric.count; p++) {
      const int64_t entry = (int64_t)k * d->fabric.count + p, own = d->fabric.first + p;
      for (int64_t i = c->first[entry]; i < c->first[entry + 1]; i++) {
        const eini_dist_moved *v = &c->move[i];
        const int send = v->kind == EINI_JOB_SEND;
        eini_turns_add(&x, &d->fabric, v->level + 1, send ? own : v->peer, send ? v->peer : own, i);
      }
    }
    while (x.n > 0) *turn++ = eini_heap_pop(x.heap, &x.n).what;
  }
  return EIN_OK;
}

// Numbers the moves of statement k.
static void eini_dist_number_moves(ein_dist *d, int k, const int64_t *turn) {
  eini_dist_copies *c = d->copies;
  const int64_t n = d->fabric.count, from = c->first[k * n], to = c->first[k * n + n];
  for (int64_t i = from; i < to; i++) {
    eini_dist_moved *v = &c->move[turn[i]];
    if (v->kind != EINI_JOB_NONE)
      v->job = eini_jobs_add(&d->jobs, (eini_job_kind)v->kind, k, v->place, turn[i]);
  }
}

static int32_t eini_dist_number_gates(ein_dist *d, int k, int64_t n) {
  const int32_t first = (int32_t)(d->jobs.n & INT32_MAX);
  for (int64_t i = 0; i < n; i++) (void)eini_jobs_add(&d->jobs, EINI_JOB_GATE, k, i, 0);
  return first;
}

// Numbers all jobs.
static void eini_dist_number(ein_dist *d, const int64_t *turn) {
  eini_jobs *j = &d->jobs;
  for (int k = 0; k < d->nstmt; k++) {
    eini_dist_stmt *e = &d->stmt[k];
    const int output = d->g->tensor[e->s->out].role == EIN_ROLE_OUTPUT;
    e->zero = e->fetches = -1;
    e->memory = eini_dist_number_gates(d, k, eini_dist_memories(d));
    if (!d->fabric.shared) eini_dist_number_moves(d, k, turn);
    if (!d->fabric.shared && d->desc.no_overlap) e->fetches = eini_dist_number_gates(d, k, 1);
    if (e->s->rest == EIN_REST_ZERO && (d->fabric.shared || output))
      e->zero = eini_jobs_add(j, EINI_JOB_ZERO, k, 0, 0);
    e->block = (int32_t)(j->n & INT32_MAX);
    for (int64_t i = 0; i < e->nown; i++) (void)eini_jobs_add(j, EINI_JOB_BLOCK, k, i, 0);
    e->merges = (int32_t)(j->n & INT32_MAX);
    for (int64_t i = 0; i < e->nown; i++)
      for (int l = 0; l < e->levels; l++)
        (void)eini_jobs_add(j, eini_dist_merges(&e->space, d->fabric.first + i, l) ? EINI_JOB_MERGE
                                                                          : EINI_JOB_NONE, k, i, l);
    e->done = eini_dist_number_gates(d, k, eini_dist_memories(d));
  }
}

// ---- memory that is used again ----

// Who was the last to take each range of a memory.
typedef struct eini_reuse {
  int n;
  int64_t *lo, *hi;
  int *item;
} eini_reuse;

static int eini_reuse_init(eini_arena *a, int64_t nitem, eini_reuse *r) {
  r->n = 0;
  r->lo = EINI_NEW(a, int64_t, 2 * nitem + 2);
  r->hi = EINI_NEW(a, int64_t, 2 * nitem + 2);
  r->item = EINI_NEW(a, int, 2 * nitem + 2);
  return r->lo != NULL && r->hi != NULL && r->item != NULL;
}

static void eini_reuse_put(eini_reuse *r, int at, int64_t lo, int64_t hi, int item) {
  const size_t n = (size_t)(r->n++ - at);
  memmove(r->lo + at + 1, r->lo + at, n * sizeof *r->lo);
  memmove(r->hi + at + 1, r->hi + at, n * sizeof *r->hi);
  memmove(r->item + at + 1, r->item + at, n * sizeof *r->item);
  r->lo[at] = lo;
  r->hi[at] = hi;
  r->item[at] = item;
}

static void eini_reuse_drop(eini_reuse *r, int at) {
  const size_t n = (size_t)(--r->n - at);
  memmove(r->lo + at, r->lo + at + 1, n * sizeof *r->lo);
  memmove(r->hi + at, r->hi + at + 1, n * sizeof *r->hi);
  memmove(r->item + at, r->item + at + 1, n * sizeof *r->item);
}

// An item takes a range. Gives one after another those that had a part of it, then -1.
static int eini_reuse_take(eini_reuse *r, int64_t lo, int64_t hi, int item) {
  int i = 0;
  while (i < r->n && r->hi[i] <= lo) i++;
  if (i == r->n || r->lo[i] >= hi) {
    eini_reuse_put(r, i, lo, hi, item);
    return -1;
  }
  const int old = r->item[i];
  const int64_t from = r->lo[i], to = r->hi[i];
  eini_reuse_drop(r, i);
  if (to > hi) eini_reuse_put(r, i, hi, to, old);
  if (from < lo) eini_reuse_put(r, i, from, lo, old);
  return old;
}

// Job `to` waits until nobody needs any more what statement k wrote at memory i: its tensor, or
// what it alone uses.
static void eini_dist_wait_users(ein_dist *d, int k, int tensor, int64_t i, int64_t to) {
  const eini_dist_tensor *t = &d->tensor[d->stmt[k].s->out];
  eini_jobs_edge(&d->jobs, d->stmt[k].done + i, to);
  for (int u = 0; tensor && u < t->nread; u++)
    eini_jobs_edge(&d->jobs, d->stmt[t->read[u]].done + i, to);
  for (int u = 0; tensor && d->fabric.shared && u < t->ndefine; u++)
    if (t->define[u] != k) eini_jobs_edge(&d->jobs, d->stmt[t->define[u]].done + i, to);
}

// Where places share memory.
static ein_status eini_dist_reuse_shared(ein_dist *d, eini_arena *a) {
  eini_reuse r;
  if (!eini_reuse_init(a, d->nitem, &r)) return EIN_ERR_NO_MEMORY;
  for (int i = 0, old; i < d->nitem; i++) {
    const eini_dist_item *b = &d->item[i];
    const eini_dist_tensor *t = b->tensor < 0 ? NULL : &d->tensor[b->tensor];
    while (b->bytes > 0 && (old = eini_reuse_take(&r, b->at, b->at + b->bytes, i)) >= 0) {
      const eini_dist_item *x = &d->item[old];
      for (int u = 0; u < (t == NULL ? 1 : t->ndefine); u++)
        eini_dist_wait_users(d, x->first, x->tensor >= 0, 0,
                             d->stmt[t == NULL ? b->first : t->define[u]].memory);
    }
  }
  return EIN_OK;
}

// Memory i of places with memory of their own.
static ein_status eini_dist_reuse_own(ein_dist *d, int64_t i, eini_arena *a) {
  const eini_dist_copies *c = d->copies;
  eini_reuse r;
  if (!eini_reuse_init(a, EINI_AT_KINDS * (int64_t)d->nstmt, &r)) return EIN_ERR_NO_MEMORY;
  for (int n = 0, old; n < EINI_AT_KINDS * d->nstmt; n++) {
    const int k = n / EINI_AT_KINDS, kind = n % EINI_AT_KINDS;
    const eini_dist_stmt *e = &d->stmt[k];
    const int64_t entry = (int64_t)k * d->fabric.count + i;
    const int64_t at = c->at[kind][entry], bytes = c->size[kind][entry];
    while (bytes > 0 && (old = eini_reuse_take(&r, at, at + bytes, n)) >= 0)
      eini_dist_wait_users(d, old / EINI_AT_KINDS, old % EINI_AT_KINDS == EINI_AT_OWN, i,
                           kind < EINI_AT_OWN ? e->memory + i : e->block + i);
  }
  return EIN_OK;
}

// ---- what is read, sent and merged ----

typedef struct eini_dist_waiting {
  ein_dist *d;
  int64_t job;
} eini_dist_waiting;

// What a task reads of pinned inputs is there.
static ein_status eini_dist_wait_block(void *user, const eini_dist_transfer *t, eini_dist_room *m) {
  const eini_dist_waiting *w = (const eini_dist_waiting *)user;
  (void)m;
  if (t->define < w->d->nstmt)
    eini_jobs_edge(&w->d->jobs, eini_dist_final(w->d, &w->d->stmt[t->define], t->home), w->job);
  return EIN_OK;
}

// Task q waits for the blocks that it reads, and for zeros where it reads a tensor with holes.
static void eini_dist_wait_reads(ein_dist *d, const eini_dist_stmt *e, int64_t q,
                                 eini_dist_room *m) {
  eini_dist_waiting w = {d, e->block + q - d->fabric.first};
  for (int o = 0; o < e->s->noperand; o++) {
    const eini_dist_tensor *t = &d->tensor[e->s->operand[o]];
    if (t->ndefine == 0 || t->define[0] >= d->nstmt || d->stmt[t->define[0]].zero < 0) continue;
    if (eini_operand_first(e->s, o) == o && eini_dist_box(e, q, o, m))
      eini_jobs_edge(&d->jobs, d->stmt[t->define[0]].zero, w.job);
  }
  (void)eini_dist_task_transfers(d, e, q, m, eini_dist_wait_block, &w);
}

// A move of statement k at place i of this process.
static void eini_dist_wait_move(ein_dist *d, int k, int64_t i, const eini_dist_moved *v) {
  eini_jobs *j = &d->jobs;
  const eini_dist_stmt *e = &d->stmt[k];
  const int64_t q = d->fabric.first + i, block = e->block + i;
  const int64_t merge = e->merges + i * e->levels + v->level;
  if (v->kind != EINI_JOB_NONE) eini_jobs_edge(j, v->job, e->done + i);
  if (v->kind != EINI_JOB_NONE && v->kind != EINI_JOB_SEND)
    eini_jobs_edge(j, e->memory + i, v->job);
  if (v->level >= 0 && v->kind == EINI_JOB_SEND) {
    eini_jobs_edge(j, eini_dist_final(d, e, q), v->job);
  } else if (v->level >= 0) {  // into the memory of the merge before
    if (v->level > 0) eini_jobs_edge(j, merge - 1, v->job);
    eini_jobs_edge(j, v->job, merge);
  } else if (v->kind == EINI_JOB_RECEIVE) {
    eini_jobs_edge(j, v->job, e->fetches >= 0 ? e->fetches : block);
  } else {
    const int64_t to = v->kind == EINI_JOB_SEND ? v->job : block;
    if (v->kind == EINI_JOB_SEND && !v->direct) eini_jobs_edge(j, e->memory + i, to);
    if (v->define < d->nstmt) eini_jobs_edge(j, eini_dist_final(d, &d->stmt[v->define], q), to);
  }
}

// Merges of task q wait for what they merge.
static void eini_dist_wait_merges(ein_dist *d, const eini_dist_stmt *e, int64_t q) {
  const int64_t i = q - d->fabric.first, part = eini_space_partial(&e->space, q);
  for (int l = 0; l < e->levels; l++) {
    if (!eini_dist_merges(&e->space, q, l)) continue;
    const int64_t merge = e->merges + i * e->levels + l;
    eini_jobs_edge(&d->jobs, l == 0 ? e->block + i : merge - 1, merge);
    eini_jobs_edge(&d->jobs, merge, e->done + (d->fabric.shared ? 0 : i));
    if (!d->fabric.shared) continue;  // they wait for a message
    const int64_t other = eini_space_partner(&e->space, q, part + ((int64_t)1 << l));
    eini_jobs_edge(&d->jobs, eini_dist_final(d, e, other), merge);
  }
}

static void eini_dist_wait_stmt(ein_dist *d, int k, eini_dist_room *m) {
  const eini_dist_stmt *e = &d->stmt[k];
  eini_jobs *j = &d->jobs;
  const int shared = d->fabric.shared;
  if (e->zero >= 0) eini_jobs_edge(j, e->zero, e->done);
  if (e->zero >= 0 && shared) eini_jobs_edge(j, e->memory, e->zero);
  for (int64_t i = 0; i < e->nown; i++) {
    const int64_t q = d->fabric.first + i;
    eini_jobs_edge(j, e->memory + (shared ? 0 : i), e->block + i);
    eini_jobs_edge(j, e->block + i, e->done + (shared ? 0 : i));
    if (e->zero >= 0) eini_jobs_edge(j, e->zero, e->block + i);
    if (e->fetches >= 0) eini_jobs_edge(j, e->fetches, e->block + i);
    if (shared) eini_dist_wait_reads(d, e, q, m);
    eini_dist_wait_merges(d, e, q);
  }
  for (int64_t i = 0; i < d->fabric.count && !shared; i++) {
    const int64_t entry = (int64_t)k * d->fabric.count + i;
    for (int64_t v = d->copies->first[entry]; v < d->copies->first[entry + 1]; v++)
      eini_dist_wait_move(d, k, i, &d->copies->move[v]);
    for (int64_t u = 0; u < d->fabric.count && e->fetches >= 0 && k > 0; u++)
      eini_jobs_edge(j, d->stmt[k - 1].done + u, e->memory + i);
  }
}

// All edges, which are counted the first time round.
static ein_status eini_dist_wait_all(ein_dist *d, eini_dist_room *m) {
  eini_arena scratch;
  ein_status st = EIN_OK;
  for (int k = 0; k < d->nstmt; k++) eini_dist_wait_stmt(d, k, m);
  eini_arena_init(&scratch, &d->al);
  const eini_arena_at clean = eini_arena_mark(&scratch);
  if (d->fabric.shared) st = eini_dist_reuse_shared(d, &scratch);
  for (int64_t i = 0; i < d->fabric.count && !d->fabric.shared && st == EIN_OK; i++) {
    st = eini_dist_reuse_own(d, i, &scratch);
    eini_arena_rollback(&scratch, &clean);
  }
  eini_arena_free(&scratch);
  return st;
}

typedef struct eini_dist_making {
  ein_dist *d;
  eini_dist_room *m;
  int64_t *turn;            // of places with memory of their own: moves as eini_dist_turns has them
} eini_dist_making;

static void eini_dist_number_all(void *user) {
  const eini_dist_making *x = (const eini_dist_making *)user;
  eini_dist_number(x->d, x->turn);
}

static ein_status eini_dist_wait(void *user) {
  const eini_dist_making *x = (const eini_dist_making *)user;
  return eini_dist_wait_all(x->d, x->m);
}

// Makes the jobs of a plan.
static ein_status eini_dist_jobs(ein_dist *d, eini_dist_room *m) {
  eini_dist_making x = {d, m, NULL};
  eini_arena a;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_stmt *s = d->stmt[k].s;
    for (int o = 0; o < s->noperand; o++)
      d->defines = eini_max64(d->defines, d->tensor[s->operand[o]].ndefine);
    d->tags = eini_max64(d->tags, s->noperand);
  }
  d->tags = d->tags * d->defines + 1;
  eini_arena_init(&a, &d->al);
  ein_status st = EIN_OK;
  if (!d->fabric.shared) {
    x.turn = EINI_NEW(&a, int64_t, d->copies->nmove);
    st = x.turn == NULL ? EIN_ERR_NO_MEMORY : eini_dist_turns(&a, d, x.turn);
  }
  if (st == EIN_OK)
    st = eini_jobs_make(&d->arena, &d->jobs, eini_dist_number_all, eini_dist_wait, &x);
  eini_arena_free(&a);
  return st;
}
