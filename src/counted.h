// ================================================================================================
// >>counted  contractions and copies in tiles, and the counted execution
// Takes a task; runs its points tile by tile, in the order of section tiling, and tells the
// model every element that is touched. Invariant: each point is run once.
// ================================================================================================

#define EINI_COUNT_POINTS 256     // of a run along one loop, at most

// o[i] += p[i] * q[i] for i < n, steps in elements; set: what is there is replaced.
#define EINI_COUNT_ADD(name, T, planes)                                                         \
  static void eini_count_add_##name(int64_t n, int set, const char *pp, int64_t ps, int pc,     \
                                    const char *qp, int64_t qs, int qc, char *op, int64_t os) { \
    const T *p = (const T *)(const void *)pp, *q = (const T *)(const void *)qp;                 \
    T *o = (T *)(void *)op;                                                                     \
    for (int64_t i = 0; i < n; i++, p += planes * ps, q += planes * qs, o += planes * os) {     \
      T re = p[0] * q[0], im = 0;                                                               \
      if (planes == 2) {                                                                        \
        const T x = pc ? 0 - p[planes - 1] : p[planes - 1];                                     \
        const T y = qc ? 0 - q[planes - 1] : q[planes - 1];                                     \
        re -= x * y;                                                                            \
        im = p[0] * y + x * q[0];                                                               \
      }                                                                                         \
      const int first = set && (i == 0 || os != 0);                                             \
      o[0] = first ? re : o[0] + re;                                                            \
      if (planes == 2) o[planes - 1] = first ? im : o[planes - 1] + im;                         \
    }                                                                                           \
  }
EINI_COUNT_ADD(i32, uint32_t, 1)
EINI_COUNT_ADD(i64, uint64_t, 1)
EINI_COUNT_ADD(f32, float, 1)
EINI_COUNT_ADD(f64, double, 1)
EINI_COUNT_ADD(c64, float, 2)
EINI_COUNT_ADD(c128, double, 2)
#undef EINI_COUNT_ADD

typedef void (*eini_count_fn)(int64_t n, int set, const char *p, int64_t ps, int pc, const char *q,
                              int64_t qs, int qc, char *o, int64_t os);

static eini_count_fn eini_count_add_of(ein_dtype t) {
  switch (t) {
    case EIN_I32: return eini_count_add_i32;
    case EIN_I64: return eini_count_add_i64;
    case EIN_F32: return eini_count_add_f32;
    case EIN_F64: return eini_count_add_f64;
    case EIN_C64: return eini_count_add_c64;
    default: return eini_count_add_c128;
  }
}

// A stream of a task whose points are run.
typedef struct eini_count_way {
  const char *base;             // address at index 0 of everything; of sums, at the tile's first
  size_t size;
  const int64_t *by;            // elements per value of a loop
  const eini_region *region;    // NULL: values
  int64_t off, line;            // elements, at the current point; the line there, or -1
} eini_count_way;

typedef struct eini_count_job {
  eini_count *c;
  const eini_task *t;
  eini_tiling *x;
  eini_contract_job *j;         // NULL: a copy
  int ns;                       // ways: those that are read, then the result or sums
  eini_count_way *way;
  int64_t *from, *at;           // first value of the tile, and the current one
  int *point;                   // loops within a tile, but the vector
  int npoint, nfree, none;      // none: there is nothing to fold
  int first[2];                 // ways of P and Q
  const int64_t **off;          // of fill_fn and emit_fn
  int64_t *gap;
} eini_count_job;

// ---- points ----

// Offsets at a point; those of sums count from the tile.
static void eini_count_place(eini_count_job *b) {
  const int last = b->ns - 1, sums = b->j != NULL && !b->j->c.plain_out;
  for (int s = 0; s < b->ns; s++) {
    eini_count_way *w = &b->way[s];
    w->off = 0;
    for (int i = 0; i < b->x->n; i++)
      w->off += (b->at[i] - (s == last && sums ? b->from[i] : 0)) * w->by[i];
  }
}

// What n points along loop v touch, point by point. One that touches the same lines as the one
// before it changes nothing: they are the latest, in this order.
static void eini_count_run(eini_count_job *b, int64_t n, int v, int set) {
  eini_count *c = b->c;
  for (int64_t i = 0; i < n; i++) {
    int same = i > 0;
    for (int s = b->none ? b->ns - 1 : 0; s < b->ns; s++) {
      eini_count_way *w = &b->way[s];
      if (w->region == NULL) continue;
      const char *at = w->base + (w->off + i * w->by[v]) * (int64_t)w->size;
      const int64_t line = (int64_t)(((uintptr_t)at - w->region->lo) >> w->region->shift);
      same = same && line == w->line;
      w->line = line;
    }
    for (int s = b->none ? b->ns - 1 : 0; s < b->ns; s++) {
      const eini_count_way *w = &b->way[s];
      if (w->region == NULL || (i > 0 && w->by[v] == 0)) continue;  // it is in a register
      c->accesses++;
      if (same) continue;
      const int how = s < b->ns - 1 ? EINI_READ : set ? EINI_SET : EINI_WRITE;
      eini_count_touch(c, w->region, w->base + (w->off + i * w->by[v]) * (int64_t)w->size, w->size,
                       how);
    }
  }
}

// The values of a side at n points along loop v: where they lie, and how far apart.
static const char *eini_count_side(eini_count_job *b, int side, int64_t n, int v, int64_t *step) {
  const ein_side *s = side ? &b->j->c.q : &b->j->c.p;
  const eini_count_way *w = b->way + b->first[side];
  int moves = 0;
  if (s->form == EIN_FORM_PLAIN) {
    *step = w->by[v];
    return w->base + w->off * (int64_t)w->size;
  }
  for (int k = 0; k < s->nop; k++) {
    b->off[k] = &w[k].off;
    b->gap[k] = w[k].by[v];
    moves |= b->gap[k] != 0;
  }
  s->fill_fn(s->user, moves ? n : 1, s->base, b->off, b->gap, b->c->value[side]);
  *step = moves;
  return b->c->value[side];
}

// n points along loop v from the current one on.
static void eini_count_vector(eini_count_job *b, int64_t n, int v) {
  eini_count_way *o = &b->way[b->ns - 1];
  union { const char *c; char *v; } out;
  int set = 1;
  eini_count_place(b);
  for (int i = 0; i < b->x->n; i++) set = set && (!b->x->reduced[i] || b->at[i] == 0);
  eini_count_run(b, n, v, set);
  out.c = o->base + o->off * (int64_t)o->size;
  if (b->j == NULL) {
    const char *in = b->way[0].base + b->way[0].off * (int64_t)o->size;
    for (int64_t i = 0; i < n; i++)
      memcpy(out.v + i * o->by[v] * (int64_t)o->size,
             in + i * b->way[0].by[v] * (int64_t)o->size, o->size);
    return;
  }
  for (int64_t i = 0; b->none && i < n; i++)
    memset(out.v + i * o->by[v] * (int64_t)o->size, 0, o->size);
  if (b->none) return;
  const ein_contract *c = &b->j->c;
  int64_t ps, qs;
  const char *p = eini_count_side(b, 0, n, v, &ps), *q = eini_count_side(b, 1, n, v, &qs);
  eini_count_add_of(c->type)(n, set, p, ps, c->p.conj, q, qs, c->q.conj, out.v, o->by[v]);
}

// The next values of the loops listed, within tiles (or of tiles); 0: it was the last.
static int eini_count_next(eini_count_job *b, int n, const int *list, int tiles) {
  const eini_tiling *x = b->x;
  for (int k = n - 1; k >= 0; k--) {
    const int i = list[k];
    if (tiles) {
      if ((b->from[i] += x->tile[i]) < x->extent[i]) return 1;
      b->from[i] = 0;
    } else {
      if (++b->at[i] < eini_min64(b->from[i] + x->tile[i], x->extent[i])) return 1;
      b->at[i] = b->from[i];
    }
  }
  return 0;
}

static void eini_count_tile(eini_count_job *b) {
  const eini_tiling *x = b->x;
  const int v = x->vector;
  for (int i = 0; i < x->n; i++) b->at[i] = b->from[i];
  do {
    const int64_t end = eini_min64(b->from[v] + x->tile[v], x->extent[v]);
    for (int64_t at = b->from[v]; at < end; at += EINI_COUNT_POINTS) {
      b->at[v] = at;
      eini_count_vector(b, eini_min64(EINI_COUNT_POINTS, end - at), v);
    }
    b->at[v] = b->from[v];
  } while (eini_count_next(b, b->npoint, b->point, 0));
}

// The sums of a tile are stored, point by point.
static void eini_count_emit(eini_count_job *b) {
  const ein_contract *c = &b->j->c;
  const eini_task *t = b->t;
  const int nextra = c->scaled && c->beta == NULL ? 0 : c->nextra;
  eini_count_way *sum = &b->way[b->ns - 1];
  for (int i = 0; i < b->x->n; i++) b->at[i] = b->from[i];
  do {
    eini_count_place(b);
    const char *at = sum->base + sum->off * (int64_t)sum->size;
    if (sum->region != NULL) eini_count_touch(b->c, sum->region, at, sum->size, EINI_READ);
    for (int e = -1; e < c->nextra; e++) {
      const int s = e < 0 ? t->out : t->extra + e;
      const size_t size = ein_dtype_size(t->ref[s].dtype);
      const char *base = e < 0 ? c->out : c->extra_base[e];
      int64_t off = 0;
      for (int i = 0; i < b->x->n; i++) off += b->at[i] * t->stride[(int64_t)s * t->nindex + i];
      b->gap[e + 1] = off;
      b->off[e + 1] = &b->gap[e + 1];
      const char *p = base + off * (int64_t)size;
      const eini_region *r = e < nextra ? eini_count_region(b->c, p) : NULL;
      if (r != NULL && e >= 0) eini_count_touch(b->c, r, p, size, EINI_READ);
    }
    c->emit_fn(c->emit_user, 1, at, c->out, b->off[0], c->extra_base, b->off + 1, NULL);
    const char *out = c->out + b->gap[0] * (int64_t)ein_dtype_size(c->out_dtype);
    const eini_region *r = eini_count_region(b->c, out);
    if (r != NULL) eini_count_touch(b->c, r, out, ein_dtype_size(c->out_dtype), EINI_SET);
    b->c->accesses += 2 + nextra;
  } while (eini_count_next(b, b->nfree, b->x->order, 0));
}

// ---- tasks ----

// What a task's points need, without addresses, kept for the next time that it runs.
typedef struct eini_count_kept {
  const eini_task *t;
  eini_tiling tiles;
  eini_count_job job;
  struct eini_count_kept *next;
} eini_count_kept;

static ein_status eini_count_tiles(eini_count *c, const eini_task *t, const int *stream,
                                   eini_count_job *b) {
  eini_tiling *x = b->x;
  const int contract = t->kind == EINI_TASK_CONTRACT, n = t->live;
  unsigned char *reduced = EINI_NEW(c->a, unsigned char, n);
  int64_t *extent = EINI_NEW(c->a, int64_t, n), *by = EINI_NEW(c->a, int64_t, (int64_t)n * b->ns);
  if (reduced == NULL || extent == NULL || by == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    reduced[i] = contract && t->reduced[i] == EINI_AXES_K;
    extent[i] = reduced[i] ? eini_max64(t->extent[i], 1) : t->extent[i];
    if (extent[i] != t->extent[i]) b->none = 1;
    b->nfree += !reduced[i];
    for (int s = 0; s < b->ns; s++)
      if (t->ref[stream[s]].slot >= 0)
        by[(int64_t)s * n + i] = t->stride[(int64_t)stream[s] * t->nindex + i];
  }
  x->n = n, x->ns = b->ns, x->extent = extent, x->reduced = reduced, x->by = by;
  x->room = c->d->fast_memory;
  x->line = c->d->line > 1 ? (double)c->d->line : 1;
  x->inside = contract && !t->contract->c.plain_out;
  return eini_tiling_make(c->a, x);
}

// Sums lie row by row over the sides of a tile.
static ein_status eini_count_sum_way(eini_count *c, eini_count_job *b) {
  const eini_tiling *x = b->x;
  int64_t *by = EINI_NEW(c->a, int64_t, x->n), step = 1;
  if (by == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = x->n - 1; i >= 0; i--) {
    if (x->reduced[i]) continue;
    by[i] = step;
    step *= x->tile[i];
  }
  b->way[b->ns - 1].by = by;
  b->way[b->ns - 1].size = ein_dtype_size(b->t->contract->c.type);
  return EIN_OK;
}

static ein_status eini_count_make(eini_count *c, const eini_task *t, eini_count_kept *kept) {
  eini_count_job *b = &kept->job;
  const int contract = t->kind == EINI_TASK_CONTRACT;
  const int np = contract ? t->contract->c.p.nop : 1, nq = contract ? t->contract->c.q.nop : 0;
  const int most = (int)eini_max64(eini_max64(np, nq), t->nextra + 1);
  kept->t = t;
  b->c = c, b->t = t, b->x = &kept->tiles;
  b->ns = np + nq + 1;
  b->first[1] = np;
  int *stream = EINI_NEW(c->a, int, b->ns);
  b->way = EINI_NEW(c->a, eini_count_way, b->ns);
  b->from = EINI_NEW(c->a, int64_t, t->live + 1);
  b->at = EINI_NEW(c->a, int64_t, t->live + 1);
  b->point = EINI_NEW(c->a, int, t->live + 1);
  b->off = EINI_NEW(c->a, const int64_t *, most + 1);
  b->gap = EINI_NEW(c->a, int64_t, most + 1);
  if (stream == NULL || b->way == NULL || b->from == NULL || b->at == NULL || b->point == NULL ||
      b->off == NULL || b->gap == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < b->ns; s++) {
    stream[s] = s == b->ns - 1 ? t->out : !contract ? 0
                : t->contract->first[s >= np] + (s >= np ? s - np : s);
    b->way[s].by = t->stride + (int64_t)stream[s] * t->nindex;
    b->way[s].size = ein_dtype_size(t->ref[stream[s]].dtype);
  }
  EINI_TRY(eini_count_tiles(c, t, stream, b));
  for (int k = 0; k < b->x->n; k++)
    if (b->x->order[k] != b->x->vector) b->point[b->npoint++] = b->x->order[k];
  return b->x->inside ? eini_count_sum_way(c, b) : EIN_OK;
}

static ein_status eini_count_kept_of(eini_count *c, const eini_task *t, eini_count_kept **found) {
  for (*found = c->kept; *found != NULL && (*found)->t != t;) *found = (*found)->next;
  if (*found != NULL) return EIN_OK;
  if ((*found = EINI_NEW(c->a, eini_count_kept, 1)) == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_count_make(c, t, *found));
  (*found)->next = c->kept;
  c->kept = *found;
  return EIN_OK;
}

static ein_status eini_count_tiled(eini_count *c, const eini_exec *x, const eini_task *t) {
  eini_contract_job j;
  eini_contract_room r;
  eini_count_kept *kept;
  const int contract = t->kind == EINI_TASK_CONTRACT;
  for (int i = 0; i < t->live; i++)
    if (t->extent[i] == 0 && !(contract && t->reduced[i] == EINI_AXES_K)) return EIN_OK;
  if (contract && t->contract->c.pair != EIN_PAIR_SUM_MUL) return EIN_ERR_UNSUPPORTED;
  EINI_TRY(eini_count_kept_of(c, t, &kept));
  eini_count_job *b = &kept->job;
  eini_count_way *o = &b->way[b->ns - 1];
  b->j = contract ? &j : NULL;
  if (contract) {
    memset(&r, 0, sizeof r);
    char *room = eini_count_room(c, eini_contract_layout(t, &r, NULL));
    if (room == NULL) return EIN_ERR_NO_MEMORY;
    eini_contract_begin(t, x->param, room, &j);
    eini_contract_place(&j, x->slot);
    for (int s = 0; s < b->ns - 1; s++)
      b->way[s].base = s < b->first[1] ? j.c.p.base[s] : j.c.q.base[s - b->first[1]];
  } else {
    b->way[0].base = eini_ref_address(&t->ref[0], x->slot);
  }
  o->base = b->x->inside ? c->sums : eini_ref_address(&t->ref[t->out], x->slot);
  for (int s = 0; s < b->ns; s++) b->way[s].region = eini_count_region(c, b->way[s].base);
  const int nred = b->x->n - b->nfree;
  do {
    if (b->x->n == 0) eini_count_vector(b, 1, 0);
    else eini_count_tile(b);
    int ends = b->x->inside;
    for (int k = b->nfree; ends && k < b->nfree + nred; k++) {
      const int i = b->x->order[k];
      ends = b->from[i] + b->x->tile[i] >= b->x->extent[i];
    }
    if (ends) eini_count_emit(b);
    EINI_TRY(c->fast.status);
  } while (eini_count_next(b, b->x->n, b->x->order, 1));
  return EIN_OK;
}

static ein_status eini_count_task(const eini_exec *x, const eini_task *t, char *scratch) {
  eini_count *c = (eini_count *)x->task_user;
  const uintptr_t at = (uintptr_t)t, first = (uintptr_t)c->p->task;
  if (at >= first && at < first + (size_t)c->p->ntask * sizeof *t) {
    for (const int k = (int)((at - first) / sizeof *t); c->ntask <= k; c->ntask++) {
      c->mark[c->ntask] = c->fast.naccess;
      c->moved[c->ntask] = eini_fast_moved(&c->fast);
    }
  }
  if (t->kind == EINI_TASK_OPERATOR) return EIN_ERR_UNSUPPORTED;  // how it goes is its own
  if (t->kind == EINI_TASK_GROUP) return eini_group_run(x, t, scratch, -1);
  if (t->kind == EINI_TASK_MAP) return eini_count_map(c, x, t);
  return eini_count_tiled(c, x, t);
}

// ---- the call ----

static ein_status eini_count_execute(eini_count *c, const ein_run *run) {
  const ein_plan *p = c->p;
  eini_ports ports;
  eini_exec x;
  ports.p = p;
  ports.run = run;
  ports.ticket = NULL;
  ports.later = 0;
  EINI_TRY(eini_exec_overlap(&ports));
  const size_t bytes = p->workspace + (ports.copy != 0 ? p->copy_bytes : 0);
  char *mem = EINI_NEW(c->a, char, bytes);
  c->mark = EINI_NEW(c->a, int64_t, p->ntask + 1);
  c->moved = EINI_NEW(c->a, double, p->ntask + 1);
  for (int k = 0; k < 2; k++) c->value[k] = EINI_NEW(c->a, char, 16 * EINI_COUNT_POINTS + 1024);
  if (mem == NULL || c->mark == NULL || c->moved == NULL || c->value[0] == NULL ||
      c->value[1] == NULL)
    return EIN_ERR_NO_MEMORY;
  mem += (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  EINI_TRY(eini_count_regions(c, run, mem, bytes - EINI_ALIGN));
  memset(&x, 0, sizeof x);
  x.p = p;
  x.run = run;
  x.no_direct = ports.no_direct;
  x.task_fn = eini_count_task;
  x.task_user = c;
  EINI_TRY(eini_exec_run(&x, ports.copy, mem, mem + p->workspace - EINI_ALIGN, NULL));
  EINI_TRY(c->fast.status);
  return eini_fast_end(&c->fast, c->ntask, c->mark, c->moved);
}

static void eini_count_tell(const eini_count *c) {
  const eini_fast *f = &c->fast;
  const double line = c->d->line > 1 ? (double)c->d->line : 1;
  for (int k = 0; k < EINI_LINE_KINDS; k++)
    c->d->read[k] = line * f->read[k], c->d->written[k] = line * f->written[k];
  c->d->moved = line * eini_fast_moved(f);
  c->d->accesses = c->accesses;
  for (int k = 0; k < c->p->ntask && c->d->task != NULL; k++)
    c->d->task[k] = k < c->ntask ? line * (c->moved[k + 1] - c->moved[k]) : 0;
}

static ein_status eini_count_check(const ein_plan *p, const ein_run *run,
                                   const ein_count *d) {
  if (p == NULL || d == NULL) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_run_begin(run, p->info.nin, p->nout));
  const char *what = !(d->fast_memory >= 1 && d->fast_memory <= 1e15) ? "fast_memory"
                     : d->line < 0 || d->line > 1 << 20 || (d->line & (d->line - 1)) != 0 ? "line"
                     : (unsigned)d->ideal > 1 ? "ideal" : NULL;
  if (what != NULL && run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s is out of range", what);
  if (what != NULL) return EIN_ERR_ARGUMENT;
  return eini_plan_sliced(p) ? EIN_ERR_UNSUPPORTED : EIN_OK;
}

EIN_API ein_status ein_plan_count(const ein_plan *p, const ein_run *run, ein_count *count) {
  eini_count c;
  eini_arena arena;
  EINI_TRY(eini_count_check(p, run, count));
  memset(&c, 0, sizeof c);
  eini_arena_init(&arena, &p->al);
  c.a = &arena;
  c.p = p;
  c.d = count;
  const ein_status st = eini_count_execute(&c, run);
  if (st == EIN_OK) eini_count_tell(&c);
  eini_arena_free(&arena);
  return st;
}
