// ================================================================================================
// >>execute  running a plan
// Takes a plan and the bindings of one call. Writes only into them; everything mutable is in the
// workspace: slots, params, temporaries, scratch of each thread, copies of overlapping outputs.
// ================================================================================================

#define EINI_STACK_WORKSPACE 2048  // plans that need no more run without touching an allocator

typedef struct eini_exec {
  const ein_plan *p;
  const ein_run *run;
  char **slot;
  ein_scalar *param;
  ein_status *status;          // of every part of a task
  char *scratch;
  int no_direct;
  int alone;                   // 1: in a task of the executor, so on this thread only
  // What runs tasks in place of their kernels, one after another, or NULL.
  ein_status (*task_fn)(const struct eini_exec *x, const struct eini_task *t, char *scratch);
  void *task_user;
  eini_away *staged;         // with a provider's memory, or NULL
  int later;                 // as eini_away's
} eini_exec;

typedef struct eini_share {
  const eini_exec *x;
  const eini_task *t;
  int parts, n;                // n: of the first one: tasks of the wave
  char *shared;                // by its parts; NULL: nothing
} eini_share;

static ein_status eini_run_error(const ein_run *run, ein_status st, const char *what, int i,
                                 const char *name) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s %d ('%s')", what, i, name);
  return st;
}

static ein_status eini_run_small(const ein_run *run, size_t need) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "the workspace has %llu bytes, %llu are needed",
             (unsigned long long)run->workspace_bytes, (unsigned long long)need);
  return EIN_ERR_ARGUMENT;
}

// Does dtype t hold the value of a param?
static int eini_param_holds(ein_dtype t, const ein_scalar *v) {
  if (t == EIN_NONE || !v->set) return 1;
  return eini_dtype_holds(t, v->re) &&
         (eini_kind_of(t) == EINI_KCOMPLEX ? eini_dtype_holds(t, v->im) : v->im == 0);
}

// Tables where there are inputs and outputs; nothing is said of the run yet.
EINI_INLINE ein_status eini_run_begin(const ein_run *run, int nin, int nout) {
  if (run == NULL) return EIN_ERR_ARGUMENT;
  const int no_in = nin > 0 && run->in == NULL, no_out = nout > 0 && run->out == NULL;
  if (run->error != NULL && run->error_bytes > 0) run->error[0] = 0;
  if (!no_in && !no_out) return EIN_OK;
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "%s is NULL, not the addresses of %d %s",
             no_in ? "in" : "out", no_in ? nin : nout, no_in ? "inputs" : "outputs");
  return EIN_ERR_ARGUMENT;
}

// A param of dtype f16 or bf16 is a value of it.
static double eini_param_value(ein_dtype t, double x) {
  if (t != EIN_F16 && t != EIN_BF16) return x;
  const float f = eini_round_odd(x);
  return (double)(t == EIN_F16 ? eini_f16_load(eini_f16_store(f))
                               : eini_bf16_load(eini_bf16_store(f)));
}

// Every param has a value, and its dtype, or those it took where it stands, hold it.
static ein_status eini_params_check(const ein_graph *g, const ein_run *run) {
  for (int64_t k = 0; k < g->nparam; k++) {
    const eini_param *p = &g->param[k];
    const ein_scalar *v = run->param != NULL && run->param[k].set ? &run->param[k] : &p->value;
    ein_dtype t = p->dtype;
    if (!v->set)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no value for param", (int)k, p->name);
    for (int64_t i = 0; v->im != 0 && t == EIN_NONE && i < g->nstmt; i++) {
      const eini_expr *e = &g->stmt[i].expr;
      for (int64_t x = 0; x < e->n; x++)
        if (e->node[x].op == EIN_OP_PARAM && e->node[x].arg[0] == k &&
            eini_kind_of((ein_dtype)e->node[x].dtype) < EINI_KCOMPLEX)
          t = (ein_dtype)e->node[x].dtype;
    }
    if (eini_param_holds(t, v)) continue;
    if (run->error != NULL && run->error_bytes > 0)
      snprintf(run->error, run->error_bytes, "param '%s' is %s, which does not hold %.17g%s",
               p->name, ein_dtype_name(t), v->re, v->im != 0 ? " and an imaginary part" : "");
    return EIN_ERR_DTYPE;
  }
  return EIN_OK;
}

// Declared ahead: a group's task runs tasks.
static ein_status eini_group_run(const eini_exec *x, const eini_task *t, char *scratch, int part);

static ein_status eini_task_run(const eini_exec *x, const eini_task *t, char *scratch, int64_t lo,
                                int64_t hi) {
  if (x->task_fn != NULL) return x->task_fn(x, t, scratch);
  switch (t->kind) {
    case EINI_TASK_GROUP: return eini_group_run(x, t, scratch, -1);
    case EINI_TASK_CONTRACT: return eini_contract_task_run(t, x->slot, x->param, scratch, -1);
    case EINI_TASK_OPERATOR: return eini_operation_run(t, x->slot, scratch, lo, hi);
    case EINI_TASK_COPY:
      if (t->kernels == NULL) {
        eini_copy_run(t, x->slot, scratch, lo, hi);
        return EIN_OK;
      }
      return eini_provided_run(t, x->slot, x->param, scratch, lo, hi);
    default:
      if (t->kernels != NULL) return eini_provided_run(t, x->slot, x->param, scratch, lo, hi);
      eini_mapreduce_run(t, x->slot, x->param, scratch, lo, hi, x->no_direct);
      if (t->stream != NULL) t->stream->stream_fn(t->stream->user, 0, NULL, NULL);
      return EIN_OK;
  }
}

// Rows of one form.
static ein_status eini_rowset_run(const eini_exec *x, const eini_task *t, char *scratch, int part) {
  const eini_group *g = t->group;
  const int64_t from = part < 0 ? 0 : g->nrow * part / t->parts;
  const int64_t to = part < 0 ? g->nrow : g->nrow * (part + 1) / t->parts;
  const int *row = g->row + from * g->row_slots;
  eini_exec y = *x;
  size_t used = 0;
  y.slot = (char **)(void *)eini_nest_carve(scratch, &used, (size_t)g->row_slots * sizeof(char *));
  const int64_t hi = g->form->cut >= 0 ? g->form->extent[g->form->cut] : 0;
  // Which has nothing to begin again.
  const int contract = g->form->kind == EINI_TASK_CONTRACT && x->task_fn == NULL;
  eini_contract_job job;
  if (contract) eini_contract_begin(g->form, x->param, scratch + used, &job);
  for (int64_t i = from; i < to; i++, row += g->row_slots) {
    for (int k = 0; k < g->row_slots; k++) y.slot[k] = x->slot[row[k]];
    if (contract) EINI_TRY(eini_contract_at(&job, y.slot, -1));
    else EINI_TRY(eini_task_run(&y, g->form, scratch + used, 0, hi));
  }
  return EIN_OK;
}

// A group that its provider runs, blocks of one shape after those of another.
static ein_status eini_group_told_run(const eini_exec *x, const eini_task *t, char *scratch) {
  char **base = (char **)(void *)scratch;
  for (int n = 0; n < 1 << EINI_GROUP_LOOPS; n++) {
    const eini_group_variant *v = &t->group->variant[n];
    if (v->told == NULL) continue;
    for (int k = 0; k < v->nslot; k++)
      base[k] = v->slot[k].slot < 0 ? NULL : x->slot[v->slot[k].slot];
    ein_group g = *v->told;
    g.base = base;
    g.param = x->param;
    EINI_TRY(t->kernels->group_run(t->kernels->user, &g, &v->choice));
  }
  return EIN_OK;
}

// Which of n parts has row u of blocks where a mask leaves out some: parts take turns, forth and
// back, so that under one like t <= s all have as much to do.
static int64_t eini_group_turn(int64_t u, int n) {
  const int64_t r = u % (2 * (int64_t)n);
  return r < n ? r : 2 * (int64_t)n - 1 - r;
}

// Where block b is; returns the number of its variant.
static int eini_group_at(const eini_group *g, int64_t b, int64_t *at) {
  int number = 0;
  for (int l = g->nloop - 1; l >= 0; l--) {
    const int64_t n = eini_ceil_div(g->extent[l], g->block[l]);
    at[l] = b % n * g->block[l];
    if (l == g->along - 1) at[l] = eini_min64(at[l], g->extent[l] - g->block[l]);
    b /= n;
    number |= (at[l] >= g->edge[l]) << l;
  }
  return number;
}

// Where tasks of a block find what they refer to.
static void eini_group_slots(const eini_exec *x, const eini_group_variant *v, int nloop,
                             const int64_t *at, char *local, char **slot) {
  for (int k = 0; k < v->nslot; k++) {
    const eini_group_slot *w = &v->slot[k];
    int64_t shift = w->offset;
    for (int l = 0; l < nloop; l++) shift += at[l] * w->step[l];
    const char *base = w->slot >= 0 ? x->slot[w->slot] : local;  // values count from local
    slot[k] = (char *)((uintptr_t)base + (uintptr_t)shift);
  }
}

static ein_status eini_group_run(const eini_exec *x, const eini_task *t, char *scratch, int part) {
  const eini_group *g = t->group;
  if (g->nrow > 0) return eini_rowset_run(x, t, scratch, part);
  if (t->kernels != NULL && x->task_fn == NULL) return eini_group_told_run(x, t, scratch);
  const int inner = g->nloop - 1;
  eini_exec y = *x;
  y.no_direct |= g->in_place;
  size_t used = 0;
  int64_t blocks = 1, at[EINI_GROUP_LOOPS];
  for (int l = 0; l < g->nloop; l++) blocks *= eini_ceil_div(g->extent[l], g->block[l]);
  const int64_t along = eini_ceil_div(g->extent[inner], g->block[inner]);
  const int64_t step = g->streams ? along : 1;  // blocks that one thread runs
  const int turns = g->streams && g->known > 0 && part >= 0;
  const int64_t from = part < 0 || turns ? 0 : blocks / step * part / t->parts * step;
  const int64_t to = part < 0 || turns ? blocks : blocks / step * (part + 1) / t->parts * step;
  y.slot = (char **)(void *)eini_nest_carve(scratch, &used, (size_t)g->slots * sizeof(char *));
  char *known = (char *)eini_nest_carve(scratch, &used, g->known);
  const char *factor[EINI_MASK_FACTORS] = {NULL};
  int begun = 0, again = 0;     // a block along the innermost loop was computed; the first one is
                                //   to be, although a mask leaves it out
  if (g->known > 0) memset(known, 0, g->known);
  char *local = scratch + used, *rest = local + g->local_bytes;
  for (int64_t b = from; b < to; b++) {
    if (turns && eini_group_turn(b / step, t->parts) != part) {
      b += step - 1;
      continue;
    }
    const eini_group_variant *v = &g->variant[eini_group_at(g, b, at)];
    const int last = at[inner] + g->block[inner] >= g->extent[inner];
    if (at[inner] == 0 || b == from) begun = 0;
    eini_group_slots(x, v, g->nloop, at, local, y.slot);
    int block = EINI_AT_MIXED;  // as if there were no mask
    if (v->mask != NULL) {
      if (at[inner] == 0) eini_mask_begin(v->mask, y.slot, factor, known, g->known);
      block = eini_mask_state(v->mask, g->nloop, at, y.slot, known, at[inner] / g->block[inner]);
      if (block == 0 && last && !begun && !again) {  // there is something to fold
        again = 1;
        b -= along;
        continue;
      }
      if (block == 0 && again) block = EINI_AT_MIXED;
      again = 0;
    }
    const int when = (begun ? EINI_AT_OTHERS : EINI_AT_FIRST) | (last ? EINI_AT_LAST : 0);
    begun |= block != 0;
    for (int k = 0; k < v->ntask; k++) {
      const eini_task *s = &v->task[k];
      if (!(v->when[k] & when & EINI_AT_LAST) &&
          (!(v->when[k] & when) || !(v->when[k] & block))) continue;
      EINI_TRY(eini_task_run(&y, s, rest, 0, s->cut >= 0 ? s->extent[s->cut] : 0));
    }
  }
  return EIN_OK;
}

static char *eini_exec_shared(const eini_exec *x) {
  return x->scratch + (size_t)x->p->most_parts * x->p->scratch_bytes;
}

static ein_status eini_share_part(const eini_share *part, int i, char *scratch) {
  const eini_task *t = part->t;
  if (t->kind == EINI_TASK_GROUP) return eini_group_run(part->x, t, scratch, i);
  if (t->kind == EINI_TASK_CONTRACT) {
    eini_contract_job j;
    eini_contract_begin(t, part->x->param, scratch, &j);
    j.c.shared = part->shared;
    return eini_contract_at(&j, part->x->slot, i);
  }
  int64_t n = t->extent[t->cut], size = (n + part->parts - 1) / part->parts;
  if (t->kind == EINI_TASK_MAP && t->nchunk > 0 && t->cut == t->chunk[0])
    size = (size + t->chunk_steps - 1) / t->chunk_steps * t->chunk_steps;  // whole chunks
  int64_t lo = eini_min64((int64_t)i * size, n), hi = eini_min64(lo + size, n);
  return lo < hi ? eini_task_run(part->x, t, scratch, lo, hi) : EIN_OK;
}

static ein_status eini_exec_whole(const eini_exec *x, const eini_task *t, char *scratch) {
  return eini_task_run(x, t, scratch, 0, t->cut >= 0 ? t->extent[t->cut] : 0);
}

// Part i of all: first parts of all tasks, then second ones, so that a thread has its part of each.
static void eini_wave_run(void *arg, int i) {
  const eini_share *share = (const eini_share *)arg;
  const eini_exec *x = share->x;
  char *scratch = x->scratch + (size_t)i * x->p->scratch_bytes;
  int left = i, k = 0;
  for (int part = 0;; part++)
    for (k = 0; k < share->n; k++) {
      if (part >= share[k].parts || left-- > 0) continue;
      x->status[i] = share[k].parts > 1 ? eini_share_part(&share[k], part, scratch)
                                        : eini_exec_whole(x, share[k].t, scratch);
      return;
    }
}

// n tasks that do not depend on each other, as one job of the executor. *at: the one that failed.
static ein_status eini_exec_wave(const eini_exec *x, const eini_task *t, int n, int *at) {
  const ein_executor *e = &x->p->executor;
  eini_share share[EINI_WAVE];
  char *shared = eini_exec_shared(x);
  int all = 0, i = 0;
  for (int k = 0; k < n; k++, t++) {
    const size_t bytes = eini_task_shared(t);
    const eini_share one = {x, t, eini_task_parts(x->p, t), n, bytes > 0 ? shared : NULL};
    share[k] = one;
    if (bytes > 0) memset(shared, 0, t->choice.cleared);
    shared += bytes;
    all += one.parts;
  }
  e->parallel_for(all, eini_wave_run, share, e->user);
  for (int part = 0; i < all; part++)
    for (*at = 0; *at < n; ++*at)
      if (part < share[*at].parts) EINI_TRY(x->status[i++]);
  return EIN_OK;
}

static ein_status eini_exec_here(const eini_exec *x, const eini_task *t) {
  int at;
  if (eini_task_parts(x->p, t) > 1 && x->task_fn == NULL && !x->alone)
    return eini_exec_wave(x, t, 1, &at);
  return eini_exec_whole(x, t, x->scratch);
}

// With what it needs where it runs.
static ein_status eini_exec_away(const eini_exec *x, const eini_task *t) {
  eini_exec y = *x;
  EINI_TRY(eini_stays_task(&x->staged->stays, t, 0));
  if (eini_task_away(t)) y.slot = x->staged->own;
  EINI_TRY(eini_exec_here(&y, t));
  return eini_stays_task(&x->staged->stays, t, 1);
}

static ein_status eini_exec_task(const eini_exec *x, const eini_task *t) {
  return x->staged == NULL ? eini_exec_here(x, t) : eini_exec_away(x, t);
}

// ---- overlap ----

// Do two ports share an element? Address intervals, then lattices: if the elements of both lie on
// grids of one pitch, they miss each other when their phases differ by at least an element.
static int eini_ports_overlap(const eini_port *a, const char *pa, const eini_port *b,
                              const char *pb) {
  if (a->lo == a->hi || b->lo == b->hi) return 0;
  uintptr_t a0 = (uintptr_t)pa + (uintptr_t)a->lo, a1 = (uintptr_t)pa + (uintptr_t)a->hi;
  uintptr_t b0 = (uintptr_t)pb + (uintptr_t)b->lo, b1 = (uintptr_t)pb + (uintptr_t)b->hi;
  if (a1 <= b0 || b1 <= a0) return 0;
  int64_t g = eini_gcd64(a->step, b->step);
  if (g == 0) return 1;
  int64_t sa = (int64_t)ein_dtype_size(a->info.dtype), sb = (int64_t)ein_dtype_size(b->info.dtype);
  int64_t phase = (int64_t)(((uintptr_t)pb - (uintptr_t)pa) % (uintptr_t)g);
  if ((uintptr_t)pb < (uintptr_t)pa) {
    phase = (int64_t)(((uintptr_t)pa - (uintptr_t)pb) % (uintptr_t)g);
    phase = phase == 0 ? 0 : g - phase;
  }
  return !(phase >= sa && phase + sb <= g);
}

// In place is safe when the only task is element-wise and reads the input where it writes.
static int eini_in_place(const ein_plan *p, int in, const void *pi, const void *po) {
  if (p->ntask != 1 || p->nout != 1 || pi != po || p->task[0].kind != EINI_TASK_MAP) return 0;
  const eini_task *t = &p->task[0];
  if (t->folder.fold != EIN_FOLD_NONE) return 0;
  for (int s = 0; s < t->out; s++) {
    if (t->ref[s].slot != in) continue;
    if (t->ref[s].offset != t->ref[t->out].offset ||
        ein_dtype_size(t->ref[s].dtype) != ein_dtype_size(t->ref[t->out].dtype)) {
      return 0;
    }
    for (int i = 0; i < t->nindex; i++) {
      if (t->extent[i] > 1 && t->stride[(int64_t)s * t->nindex + i] !=
                                  t->stride[(int64_t)t->out * t->nindex + i]) {
        return 0;
      }
    }
  }
  return 1;
}

// What an execution has at its ports: inputs, then outputs.
typedef struct eini_ports {
  const ein_plan *p;
  const ein_run *run;
  uint32_t copy;               // a bit for every output that must go through a copy (31 at most,
                               //   then all)
  int no_direct;               // there is in-place work
  ein_ticket *ticket;           // of a run that may go on, or NULL
  int later;                   // outputs may come home later, see ein_memory
} eini_ports;

// Port i and its address.
static const eini_port *eini_ports_at(const eini_ports *x, int i, const char **at) {
  const int o = i - x->p->info.nin;
  *at = o < 0 ? (const char *)x->run->in[i] : (const char *)x->run->out[o];
  return o < 0 ? &x->p->in[i] : &x->p->out[o];
}

// Output o and port i, an input or an output before it.
static ein_status eini_ports_pair(eini_ports *x, int o, int i) {
  const ein_plan *p = x->p;
  const int nin = p->info.nin;
  const char *po, *pi;
  const eini_port *out = eini_ports_at(x, nin + o, &po), *port = eini_ports_at(x, i, &pi);
  if (!eini_ports_overlap(out, po, port, pi)) return EIN_OK;
  if (i < nin && eini_in_place(p, i, pi, po)) {
    x->no_direct = 1;
    return EIN_OK;
  }
  if (i >= nin)
    return eini_run_error(x->run, EIN_ERR_OVERLAP, "the output overlaps output", i - nin,
                          port->info.name);
  if (!p->may_overlap)
    return eini_run_error(x->run, EIN_ERR_OVERLAP, "the output overlaps input", i,
                          port->info.name);
  x->copy |= o < 31 ? (uint32_t)1 << o : ~(uint32_t)0;
  return EIN_OK;
}

// Do the bytes of a port at this address meet [lo, hi)?
EINI_INLINE int eini_port_meets(const eini_port *x, const void *at, uintptr_t lo, uintptr_t hi) {
  return lo < (uintptr_t)at + (uintptr_t)x->hi && (uintptr_t)at + (uintptr_t)x->lo < hi;
}

EINI_INLINE ein_status eini_ports_all(eini_ports *x) {
  const eini_port *in = x->p->in, *out = x->p->out;
  const ein_run *run = x->run;
  const int nin = x->p->info.nin, nout = x->p->nout;
  for (int o = 0; o < nout; o++) {
    const uintptr_t lo = (uintptr_t)run->out[o] + (uintptr_t)out[o].lo;
    const uintptr_t hi = (uintptr_t)run->out[o] + (uintptr_t)out[o].hi;
    for (int i = 0; i < nin; i++)
      if (eini_port_meets(&in[i], run->in[i], lo, hi)) EINI_TRY(eini_ports_pair(x, o, i));
    for (int i = 0; i < o; i++)
      if (eini_port_meets(&out[i], run->out[i], lo, hi)) EINI_TRY(eini_ports_pair(x, o, nin + i));
  }
  return EIN_OK;
}

// Intervals of addresses, the first nread of them read and the others written, and what is called
// for a written one w that meets another one i before it.
typedef struct eini_sweep {
  int n, nread;
  uintptr_t *lo, *hi;          // first byte of each, and the one past the last
  int *list;                   // room for 2 * n
  ein_status (*meet_fn)(void *user, int w, int i);
  void *user;
} eini_sweep;

static int eini_sweep_order(const void *lo, int a, int b) {
  const uintptr_t *x = (const uintptr_t *)lo;
  return (x[a] > x[b]) - (x[a] < x[b]);
}

// Interval i against those of a list that reach it; the others are dropped, for those that follow
// do not reach them either.
static ein_status eini_sweep_reach(const eini_sweep *s, int i, int *list, int *n) {
  int kept = 0;
  for (int k = 0; k < *n; k++) {
    const int j = list[k];
    if (s->hi[j] <= s->lo[i]) continue;
    list[kept++] = j;
    EINI_TRY(s->meet_fn(s->user, i > j ? i : j, i < j ? i : j));
  }
  *n = kept;
  return EIN_OK;
}

// All pairs that meet, in the order of addresses.
static ein_status eini_sweep_run(const eini_sweep *s) {
  int *list = s->list, *other = list + s->n, *outs = list, nreach = 0, nouts = 0;
  for (int i = 0; i < s->n; i++) list[i] = i;
  eini_merge_sort(list, other, s->n, s->lo, eini_sweep_order);
  for (int k = 0; k < s->n; k++) {  // outputs that reach further take the place of what is done
    const int i = list[k];
    if (s->lo[i] == s->hi[i]) continue;
    EINI_TRY(eini_sweep_reach(s, i, outs, &nouts));
    if (i < s->nread) {
      other[nreach++] = i;
      continue;
    }
    EINI_TRY(eini_sweep_reach(s, i, other, &nreach));
    outs[nouts++] = i;
  }
  return EIN_OK;
}

static ein_status eini_ports_meet(void *user, int w, int i) {
  eini_ports *x = (eini_ports *)user;
  return eini_ports_pair(x, w - x->p->info.nin, i);
}

// As all pairs. room: two addresses and two numbers of each port.
static ein_status eini_ports_sweep(eini_ports *x, char *room) {
  const int nin = x->p->info.nin, n = nin + x->p->nout;
  uintptr_t *lo = (uintptr_t *)(void *)room;
  const eini_sweep s = {n, nin, lo, lo + n, (int *)(void *)(lo + 2 * n), eini_ports_meet, x};
  for (int i = 0; i < n; i++) {
    const char *at;
    const eini_port *port = eini_ports_at(x, i, &at);
    s.lo[i] = (uintptr_t)at + (uintptr_t)port->lo;
    s.hi[i] = (uintptr_t)at + (uintptr_t)port->hi;
  }
  return eini_sweep_run(&s);
}

// The sweep with so many bytes of room, found somewhere.
static ein_status eini_ports_roomy(eini_ports *x, size_t bytes) {
  const ein_run *run = x->run;
  const ein_allocator *al = &x->p->al;
  char *own = NULL, *room = (char *)run->workspace, stack[1024 + EINI_ALIGN];
  if (bytes + EINI_ALIGN <= sizeof stack) room = stack;
  else if (room == NULL || run->workspace_bytes < bytes + EINI_ALIGN)
    room = own = (char *)al->alloc_fn(bytes + EINI_ALIGN, EINI_ALIGN, al->user);
  if (room == NULL) return EIN_ERR_NO_MEMORY;
  const uintptr_t skew = (EINI_ALIGN - (uintptr_t)room % EINI_ALIGN) % EINI_ALIGN;
  ein_status st = eini_ports_sweep(x, room + skew);
  if (own != NULL) al->free_fn(own, bytes + EINI_ALIGN, al->user);
  return st;
}

// Finds overlaps. The mistake that is told is the first one of all pairs.
EINI_INLINE ein_status eini_exec_overlap(eini_ports *x) {
  const size_t bytes = eini_overlap_bytes(x->p);
  x->copy = 0;
  x->no_direct = 0;
  const ein_status st = bytes > 0 ? eini_ports_roomy(x, bytes) : EIN_ERR_OVERLAP;
  return st == EIN_OK || st == EIN_ERR_NO_MEMORY ? st : eini_ports_all(x);
}

// ---- one call ----

static ein_status eini_exec_bind(eini_exec *x, char *mem) {
  const ein_plan *p = x->p;
  const ein_run *run = x->run;
  x->slot = (char **)(void *)mem;
  x->param = (ein_scalar *)(void *)(mem + (size_t)p->nslot * sizeof(char *));
  x->status = (ein_status *)(void *)(x->param + p->info.nparam);
  char *temps = mem + p->head_bytes;
  x->scratch = temps + p->home_bytes;
  for (int i = 0; i < p->info.nin; i++) {
    union { const void *c; char *v; } u;  // inputs share the slot table; they are only read
    u.c = run->in[i];
    x->slot[i] = u.v != NULL ? u.v : mem;  // empty: no element is read, but addresses are formed
    if (u.v == NULL && p->in[i].lo != p->in[i].hi)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no data for input", i, p->in[i].info.name);
  }
  for (int o = 0; o < p->nout; o++) {
    x->slot[p->nin + o] = run->out[o] != NULL ? (char *)run->out[o] : mem;
    if (run->out[o] == NULL && p->out[o].lo != p->out[o].hi)
      return eini_run_error(run, EIN_ERR_ARGUMENT, "no data for output", o, p->out[o].info.name);
  }
  if (p->home_bytes > 0) {
    for (int64_t t = 0; t < p->graph->ntensor; t++) {
      x->slot[p->nin + p->nout + t] = temps + p->slot_offset[t];
    }
  }
  for (int k = 0; k < p->info.nparam; k++) {
    int given = run->param != NULL && run->param[k].set;
    x->param[k] = given ? run->param[k] : p->graph->param[k].value;
    x->param[k].re = eini_param_value(p->graph->param[k].dtype, x->param[k].re);
  }
  return eini_params_check(p->graph, run);
}

// Outputs that overlap inputs are computed in mirrors at `copies` and moved at the end.
static ein_status eini_exec_mirrors(eini_exec *x, uint32_t copy, char *copies) {
  const ein_plan *p = x->p;
  int mirror = p->nslot - p->nout;
  for (int o = 0; o < p->nout; o++) {
    x->slot[mirror + o] = copies - p->out[o].lo;
    int64_t span = p->out[o].hi - p->out[o].lo;
    copies += ((size_t)span + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
    if (!(copy >> (o < 31 ? o : 31) & 1) || p->out[o].lo == p->out[o].hi) continue;
    if (p->keeps) EINI_TRY(eini_exec_task(x, &p->copy_in[o]));
  }
  return EIN_OK;
}

// Copies of overlapping outputs are at home.
static ein_status eini_exec_overlapped(eini_exec *x, uint32_t copy, char *copies) {
  const ein_plan *p = x->p;
  const int mirror = p->nslot - p->nout;
  for (int i = 0; i < p->nin + p->nout; i++)
    if (p->away != NULL && p->stay[i].space != 0)
      return eini_run_error(x->run, EIN_ERR_OVERLAP, "no copy can be made in the memory of tensor",
                            i, p->away->name);
  EINI_TRY(eini_exec_mirrors(x, copy, copies));
  for (int o = 0; o < p->nout; o++)
    if (copy >> (o < 31 ? o : 31) & 1) x->slot[p->nin + o] = x->slot[mirror + o];
  return EIN_OK;
}

static ein_status eini_exec_failed(const eini_exec *x, int k, ein_status st) {
  const ein_plan *p = x->p;
  const ein_kernels *by = p->task[k].kernels;
  if (p->task[k].kind == EINI_TASK_OPERATOR)
    return eini_operation_failed(&p->task[k], st, p->graph->tensor[p->task[k].stmt->out].name,
                                 x->run->error, x->run->error_bytes);
  return eini_run_error(x->run, st, "a kernel failed in task", k,
                        by != NULL ? by->name : "portable");
}

// All tasks, and outputs where they belong.
static ein_status eini_exec_tasks(eini_exec *x) {
  const ein_plan *p = x->p;
  double *seconds = p->now_fn == NULL ? NULL : x->run->seconds;
  for (int k = 0, n; k < p->ntask; k += n) {
    int at = 0;
    n = p->wave == NULL || seconds != NULL || x->alone || x->task_fn != NULL ? 1 : p->wave[k];
    double from = seconds == NULL ? 0 : p->now_fn(p->now_user);
    if (p->checked && p->watch[k] != NULL)
      EINI_TRY(eini_watch_run(p->watch[k], x->slot, x->param, x->scratch, x->run->error,
                              x->run->error_bytes));
    const ein_status st = n > 1 ? eini_exec_wave(x, &p->task[k], n, &at)
                                : eini_exec_task(x, &p->task[k]);
    if (st != EIN_OK) return eini_exec_failed(x, k + at, st);
    if (seconds != NULL && x->staged != NULL) EINI_TRY(eini_away_wait(x->staged));
    if (seconds != NULL) seconds[k] = p->now_fn(p->now_user) - from;
  }
  if (x->staged == NULL) return EIN_OK;
  const ein_status st = eini_away_finish(x->staged);
  return st == EIN_OK ? st : eini_run_error(x->run, st, "a copy failed behind task", p->ntask - 1,
                                            p->away->name);
}

static ein_status eini_exec_run(eini_exec *x, uint32_t copy, char *mem, char *copies,
                                ein_ticket *ticket) {
  const ein_plan *p = x->p;
  eini_away staged;
  EINI_TRY(eini_exec_bind(x, mem));
  if (copy != 0) EINI_TRY(eini_exec_overlapped(x, copy, copies));
  if (p->away == NULL || x->task_fn != NULL) {
    EINI_TRY(eini_exec_tasks(x));
  } else {
    eini_away_begin(&staged, p, x->slot, mem + p->head_bytes - eini_away_bytes(p));
    staged.later = x->later;
    x->staged = &staged;
    EINI_TRY(eini_away_end(&staged, eini_exec_tasks(x), ticket));
    x->staged = NULL;
  }
  if (copy != 0) {
    for (int o = 0; o < p->nout; o++) {
      x->slot[p->nin + o] = (char *)x->run->out[o];
      if ((copy >> (o < 31 ? o : 31) & 1) && p->out[o].lo != p->out[o].hi)
        EINI_TRY(eini_exec_task(x, &p->copy_back[o]));
    }
  }
  return EIN_OK;
}

// What runs in place of a plan's tasks; mem: its workspace.
typedef ein_status (*eini_run_fn)(const ein_plan *p, const ein_run *run, char *mem);

// A run whose ports are known. grow: a workspace without room for copies of overlapping outputs is
// replaced by an own one.
EINI_INLINE ein_status eini_execute_at(const ein_plan *p, const ein_run *run,
                                       const eini_ports *ports, int grow, eini_run_fn other) {
  eini_exec x;
  x.p = p;
  x.run = run;
  x.no_direct = ports->no_direct;
  x.alone = 0;
  x.task_fn = NULL;
  x.task_user = NULL;
  x.staged = NULL;
  x.later = ports->later;
  const uint32_t copy = ports->copy;
  size_t need = p->workspace + (copy != 0 ? p->copy_bytes : 0);
  char *mem = (char *)run->workspace, *own = NULL;
  if (grow && run->workspace_bytes < need) mem = NULL;
  if (mem != NULL && run->workspace_bytes < need) return eini_run_small(run, need);
  char stack[EINI_STACK_WORKSPACE + EINI_ALIGN];
  if (mem == NULL && need <= EINI_STACK_WORKSPACE) mem = stack;
  if (mem == NULL) {
    mem = own = (char *)p->al.alloc_fn(need, EINI_ALIGN, p->al.user);
    if (mem == NULL) return EIN_ERR_NO_MEMORY;
  }
  uintptr_t skew = (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  char *base = mem + skew;  // the workspace has EINI_ALIGN spare bytes
  ein_status st = other != NULL
                      ? other(p, run, base)
                      : eini_exec_run(&x, copy, base, base + p->workspace - EINI_ALIGN,
                                      ports->ticket);
  if (own != NULL) p->al.free_fn(own, need, p->al.user);
  return st;
}

// later: outputs may come home later.
static ein_status eini_execute_by(const ein_plan *p, const ein_run *run, int grow, int later,
                                  eini_run_fn other) {
  eini_ports ports;
  EINI_TRY(eini_run_begin(run, p->info.nin, p->nout));
  ports.p = p;
  ports.run = run;
  ports.ticket = NULL;
  ports.later = later;
  EINI_TRY(eini_exec_overlap(&ports));
  return eini_execute_at(p, run, &ports, grow, other);
}

// Frees a plan that is not kept within a budget.
static void eini_plan_free(ein_plan *p) {
  if (p == NULL) return;
  eini_arena arena = p->arena;
  eini_graph_free(p->graph);
  eini_arena_free(&arena);
}
