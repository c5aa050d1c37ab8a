// ================================================================================================
// >>count  executions whose traffic is counted
// Takes a plan and the bindings of a call; runs its tasks by kernels that tell a model of a fast
// memory what they touch. Invariant: an element is told when, and only when, it is read or written.
// ================================================================================================

// Memory whose lines are numbered: a tensor of the caller's, the workspace, sums.
typedef struct eini_region {
  uintptr_t lo, hi;
  int shift;                // log2 of the bytes of a line
  int64_t first;            // number of the first line
  int kind;                 // EINI_LINE_*
} eini_region;

typedef struct eini_count {
  eini_arena *a;
  const ein_plan *p;
  ein_count *d;
  eini_fast fast;
  eini_region *region;
  int nregion;
  double accesses;
  struct eini_count_kept *kept;  // what was made of tasks
  int64_t *mark;            // [ntask] accesses before each task
  double *moved;            // [ntask + 1] lines before each task, and in all
  int ntask;                // tasks that have begun
  char *room, *sums, *value[2];
  size_t room_bytes;
  int64_t nsum;             // bytes
} eini_count;

// ---- addresses ----

static const eini_region *eini_count_region(const eini_count *c, const void *at) {
  for (int i = 0; i < c->nregion; i++)
    if ((uintptr_t)at >= c->region[i].lo && (uintptr_t)at < c->region[i].hi) return &c->region[i];
  return NULL;
}

// The lines of an element at an address of a region.
static void eini_count_touch(eini_count *c, const eini_region *r, const char *at, size_t size,
                             int how) {
  const uintptr_t from = (uintptr_t)at - r->lo;
  for (uintptr_t i = from >> r->shift; i <= (from + size - 1) >> r->shift; i++)
    eini_fast_touch(&c->fast, r->first + (int64_t)i, how);
}

static int eini_line_bits(size_t x) {
  int n = 0;
  while ((size_t)2 << n <= x) n++;
  return n;
}

// A region of these bytes; what overlaps an earlier one becomes part of it.
static void eini_count_add(eini_count *c, const char *at, int64_t lo, int64_t hi, size_t size,
                           int kind) {
  eini_region r = {(uintptr_t)at + (uintptr_t)lo, (uintptr_t)at + (uintptr_t)hi, 0, 0, kind};
  if (lo >= hi) return;
  r.shift = eini_line_bits(size * (size_t)(c->d->line > 1 ? c->d->line : 1));
  for (int i = 0; i < c->nregion;) {
    eini_region *o = &c->region[i];
    if (r.lo >= o->hi || o->lo >= r.hi) {
      i++;
      continue;
    }
    r.lo = o->lo < r.lo ? o->lo : r.lo;
    r.hi = o->hi > r.hi ? o->hi : r.hi;
    r.shift = o->shift < r.shift ? o->shift : r.shift;
    if (o->kind == EINI_LINE_OUTPUT) r.kind = o->kind;
    *o = c->region[--c->nregion];
    i = 0;
  }
  c->region[c->nregion++] = r;
}

// Bytes of the sums of a contraction that is not stored as it is: never more than a tile.
static int64_t eini_count_sums(const ein_plan *p, const eini_task *t, double room) {
  int64_t most = 0;
  if (t->kind == EINI_TASK_GROUP) {
    const eini_group *g = t->group;
    if (g->nrow > 0) return eini_count_sums(p, g->form, room);
    for (int v = 0; v < 1 << g->nloop; v++)
      for (int k = 0; k < g->variant[v].ntask; k++)
        most = eini_max64(most, eini_count_sums(p, &g->variant[v].task[k], room));
    return most;
  }
  if (t->kind != EINI_TASK_CONTRACT || t->contract->c.plain_out) return 0;
  const double all = (double)t->contract->whole.batch[1] * (double)t->contract->whole.m[1] *
                     (double)t->contract->whole.n[1];
  const double most_here = fmax(fmin(all, room), 1);
  return (int64_t)(most_here * (double)ein_dtype_size(t->contract->c.type));
}

// Lines of the caller's tensors, of the workspace, and of sums.
static ein_status eini_count_places(eini_count *c, const ein_run *run, const char *mem,
                                    size_t bytes) {
  const ein_plan *p = c->p;
  size_t least = 16, sum = 16;
  for (int64_t t = 0; t < p->graph->ntensor; t++)
    if (p->graph->tensor[t].role == EIN_ROLE_TEMP)
      least = (size_t)eini_min64((int64_t)least,
                                 (int64_t)ein_dtype_size(p->graph->tensor[t].dtype));
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *t = &p->task[k];
    c->nsum = eini_max64(c->nsum, eini_count_sums(p, t, c->d->fast_memory));
    if (t->kind != EINI_TASK_CONTRACT || t->contract->c.plain_out) continue;
    sum = (size_t)eini_min64((int64_t)sum, (int64_t)ein_dtype_size(t->contract->c.type));
  }
  c->region = EINI_NEW(c->a, eini_region, p->info.nin + p->nout + 2);
  c->sums = EINI_NEW(c->a, char, c->nsum + 1);
  if (c->region == NULL || c->sums == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < p->info.nin; i++)
    eini_count_add(c, (const char *)run->in[i], p->in[i].lo, p->in[i].hi,
                   ein_dtype_size(p->in[i].info.dtype), EINI_LINE_INPUT);
  for (int o = 0; o < p->nout; o++)
    eini_count_add(c, (const char *)run->out[o], p->out[o].lo, p->out[o].hi,
                   ein_dtype_size(p->out[o].info.dtype), EINI_LINE_OUTPUT);
  eini_count_add(c, mem, 0, (int64_t)bytes, least, EINI_LINE_TEMP);
  eini_count_add(c, c->sums, 0, c->nsum, sum, EINI_LINE_SCRATCH);
  return EIN_OK;
}

static ein_status eini_count_regions(eini_count *c, const ein_run *run, const char *mem,
                                     size_t bytes) {
  int64_t nline = 0;
  EINI_TRY(eini_count_places(c, run, mem, bytes));
  for (int i = 0; i < c->nregion; i++) {
    c->region[i].first = nline;
    nline += (int64_t)((c->region[i].hi - c->region[i].lo - 1) >> c->region[i].shift) + 1;
  }
  const double line = c->d->line > 1 ? (double)c->d->line : 1;
  const double room = fmax(floor(c->d->fast_memory / line), 1);
  EINI_TRY(eini_fast_new(c->a, c->d->ideal, (int64_t)fmin(room, 9e15), nline,
                         &c->fast));
  for (int i = 0; i < c->nregion; i++) {
    const eini_region *r = &c->region[i];
    const int flag = r->kind | (line > 1 ? EINI_LINE_FETCH : 0);
    memset(c->fast.flag + r->first, flag, (size_t)((r->hi - r->lo - 1) >> r->shift) + 1);
  }
  return EIN_OK;
}

// Room for what a task needs beside its tiles, from one task to the next.
static char *eini_count_room(eini_count *c, size_t bytes) {
  if (bytes > c->room_bytes) {
    c->room_bytes = bytes > 2 * c->room_bytes ? bytes : 2 * c->room_bytes;
    c->room = EINI_NEW(c->a, char, c->room_bytes);
  }
  return c->room;
}

// ---- maps ----

// n elements of a stream at the current place of a walk; one: along the chunk nothing moves.
static void eini_count_stream(eini_count *c, const eini_nest *w, int s, int64_t n, int one,
                              int how) {
  const eini_task *t = w->t;
  const eini_ref *r = &t->ref[s];
  if (r->slot < 0) return;
  const size_t size = eini_dtypes[r->dtype].size;
  const char *base = w->slot[r->slot] + r->offset;
  const int64_t *table = t->table != NULL && !one ? t->table[s] : NULL;
  const int64_t step = one ? 0 : w->step[s];
  const eini_region *region = NULL;
  for (int64_t i = 0; i < n; i++) {
    const int64_t off = w->at[s] + (table != NULL ? table[i] : i * step);
    const char *at = base + off * (int64_t)size;
    if (region == NULL) region = eini_count_region(c, at);
    if (region != NULL) eini_count_touch(c, region, at, size, how);
  }
  c->accesses += (double)n;
}

static void *eini_count_values(eini_count *c, eini_nest *w, int64_t n) {
  for (int s = 0; s < w->t->nop; s++) eini_count_stream(c, w, s, n, 0, EINI_READ);
  return eini_code_run(&w->ev, n, NULL);
}

static void eini_count_open(eini_count *c, eini_nest *w, int64_t n) {
  const int one = w->t->chunk_reduced;
  for (int k = 0; w->t->carries && k < w->t->folder.nstate; k++)
    eini_count_stream(c, w, w->t->out + k, n, one, EINI_READ);
  eini_nest_open(w, n);
}

static void eini_count_close(eini_count *c, eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  const int states = t->carries ? t->folder.nstate : 1;
  for (int k = 0; k < t->nextra && !t->carries; k++)
    eini_count_stream(c, w, t->extra + k, n, t->chunk_reduced, EINI_READ);
  for (int k = 0; k < states; k++)
    eini_count_stream(c, w, t->out + k, n, t->chunk_reduced, EINI_SET);
  eini_nest_close(w, n);
}

// As eini_nest_chunk.
static void eini_count_chunk(eini_count *c, eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  if (t->folder.fold == EIN_FOLD_NONE) {
    const void *v = eini_count_values(c, w, n);
    eini_count_stream(c, w, t->out, n, 0, EINI_SET);
    eini_nest_store(w, n, (ein_dtype)t->code.type, v);
    return;
  }
  if (t->chunk_reduced) {
    void *v = eini_count_values(c, w, n);
    eini_fold_across(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    return;
  }
  eini_count_open(c, w, n);
  if (!t->no_reduction) {
    do {
      void *v = eini_count_values(c, w, n);
      eini_fold_down(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    } while (eini_nest_next(w, t->ninner, t->inner));
  }
  eini_count_close(c, w, n);
}

// As eini_nest_chunks.
static void eini_count_chunks(eini_count *c, eini_nest *w) {
  for (int64_t done = -1, n; (n = eini_nest_piece(w, &done)) > 0;) eini_count_chunk(c, w, n);
}

static ein_status eini_count_map(eini_count *c, const eini_exec *x, const eini_task *t) {
  eini_nest w;
  char *room = eini_count_room(c, eini_nest_layout(t, &w, NULL));
  if (room == NULL) return EIN_ERR_NO_MEMORY;
  eini_nest_begin(&w, t, x->slot, x->param, room);
  do {
    if (t->folder.fold == EIN_FOLD_NONE || !t->chunk_reduced) {
      eini_count_chunks(c, &w);
      continue;
    }
    eini_count_open(c, &w, 1);
    if (!t->no_reduction) {
      do {
        eini_count_chunks(c, &w);
      } while (eini_nest_next(&w, t->ninner, t->inner));
    }
    eini_count_close(c, &w, 1);
  } while (eini_nest_next(&w, t->nouter, t->outer));
  return c->fast.status;
}
