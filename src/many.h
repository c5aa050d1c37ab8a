// ================================================================================================
// >>many  one plan for many problems
// Takes a plan, a run and what its addresses step by. All is checked and bound once; problems that
// touch nothing of each other's are shared by threads, others follow one another.
// ================================================================================================

enum { EINI_MANY_FEW = 16 };     // inputs and outputs, of which room is on the stack

typedef struct eini_many {
  const ein_plan *p;
  ein_run run;
  int64_t n;
  int nport;                   // inputs, then outputs
  eini_port *port;             // what all problems span
  int64_t *step;               // bytes
  void **at;                   // addresses of the problem at hand
  double *seconds;             // of it
  char *mem;                   // of the first part
  size_t room;                 // of each
  int parts, alone;            // alone: a part's problems run on one thread
} eini_many;

typedef struct eini_many_end {  // what stands in a part's memory when it has ended
  int64_t at;
  ein_status st;
} eini_many_end;

static const eini_port *eini_many_port(const ein_plan *p, int i) {
  return i < p->info.nin ? &p->in[i] : &p->out[i - p->info.nin];
}

// Steps in bytes and what all problems span. What is empty does not move.
static ein_status eini_many_steps(eini_many *m, const int64_t *in_step, const int64_t *out_step) {
  const int nin = m->p->info.nin;
  for (int i = 0; i < m->nport; i++) {
    eini_port *port = &m->port[i];
    int64_t way, to;
    *port = *eini_many_port(m->p, i);
    if (port->lo == port->hi) continue;
    const int64_t elements = i < nin ? in_step[i] : out_step[i - nin];
    if (eini_mul_overflow(elements, (int64_t)ein_dtype_size(port->info.dtype), &m->step[i]) ||
        eini_mul_overflow(m->step[i], m->n - 1, &way) || way == INT64_MIN ||
        eini_add_overflow(way < 0 ? port->lo : port->hi, way, &to))
      return EIN_ERR_TOO_LARGE;
    if (way < 0) port->lo = to;
    else port->hi = to;
    port->step = eini_gcd64(port->step, m->step[i]);
  }
  return EIN_OK;
}

// Are all elements of an output apart, of one problem and of all? Each axis then steps over all
// that those of smaller steps span.
static int eini_many_apart(const eini_many *m, int i) {
  const eini_port *one = eini_many_port(m->p, i);
  const int64_t size = (int64_t)ein_dtype_size(one->info.dtype), step = m->step[i] / size;
  if (one->lo == one->hi || eini_abs64(m->step[i]) >= one->hi - one->lo) return 1;
  for (int a = 0; a <= one->info.rank; a++) {
    const int own = a == one->info.rank;
    const int64_t by = eini_abs64(own ? step : one->stride[a]);
    int64_t below = 0;
    if (!own && one->info.shape[a] <= 1) continue;
    for (int b = 0; b <= one->info.rank; b++) {
      const int last = b == one->info.rank;
      const int64_t other = eini_abs64(last ? step : one->stride[b]);
      const int64_t extent = last ? m->n : one->info.shape[b];
      if (b == a || extent <= 1 || other > by) continue;
      if (other == by || (extent - 1) > (INT64_MAX - below) / eini_max64(other, 1)) return 0;
      below += (extent - 1) * other;
    }
    if (by <= below) return 0;
  }
  return 1;
}

// May problems run in any order?
static int eini_many_free(const eini_many *m) {
  const ein_plan *p = m->p;
  if (m->n < 2 || eini_plan_sliced(p) || p->away != NULL || p->checked || m->seconds != NULL)
    return 0;
  for (int o = 0; o < p->nout; o++)
    if (!eini_many_apart(m, p->info.nin + o)) return 0;
  ein_plan all = *p;
  eini_ports ports;
  all.in = m->port;
  all.out = m->port + p->info.nin;
  ports.p = &all;
  ports.run = &m->run;
  return eini_exec_overlap(&ports) == EIN_OK && ports.copy == 0 && !ports.no_direct;
}

// ---- one after another ----

static ein_status eini_many_turns(eini_many *m, ein_run *run) {
  const ein_plan *p = m->p;
  const size_t bytes = p->info.workspace_bytes;
  void *own = NULL;
  ein_status st = EIN_OK;
  m->run.in = (const void *const *)m->at;
  m->run.out = m->at + p->info.nin;
  m->run.error = run->error;
  m->run.error_bytes = run->error_bytes;
  m->run.seconds = m->seconds;
  if (run->workspace == NULL && bytes > EINI_STACK_WORKSPACE) {
    m->run.workspace = own = p->al.alloc_fn(bytes, EINI_ALIGN, p->al.user);
    m->run.workspace_bytes = bytes;
    if (own == NULL) return EIN_ERR_NO_MEMORY;
  }
  for (int k = 0; k < p->ntask && m->seconds != NULL; k++) run->seconds[k] = 0;
  for (int64_t i = 0; i < m->n && st == EIN_OK; i++) {
    for (int k = 0; k < m->nport; k++) {
      const void *from = k < p->info.nin ? run->in[k] : run->out[k - p->info.nin];
      m->at[k] = (void *)((uintptr_t)from + (uintptr_t)(i * m->step[k]));
    }
    st = eini_execute(p, &m->run, 0);
    for (int k = 0; k < p->ntask && m->seconds != NULL; k++) run->seconds[k] += m->seconds[k];
  }
  if (own != NULL) p->al.free_fn(own, bytes, p->al.user);
  return st;
}

// ---- shared ----

// Problems [lo, hi) of a contraction as a batch of it; 0: its kernel takes none.
static int eini_many_batch(const eini_many *m, const eini_exec *x, int64_t lo, int64_t hi,
                           ein_status *st) {
  const eini_task *t = &m->p->task[0];
  int64_t step[EINI_MANY_FEW];
  const int64_t *way[EINI_MANY_FEW];
  eini_contract_job j;
  if (!t->choice.batches || t->contract->c.batch.n > 0 || t->contract->values > 0 ||
      t->nstream > EINI_MANY_FEW)
    return 0;
  for (int s = 0; s < t->nstream; s++) {
    const eini_ref *ref = &t->ref[s];
    if (ref->slot < 0) return 0;
    const int k = ref->slot < m->p->nin ? ref->slot : ref->slot - m->p->nin + m->p->info.nin;
    const int64_t size = (int64_t)ein_dtype_size(ref->dtype);
    if (k >= m->nport || m->step[k] % size != 0) return 0;
    step[s] = m->step[k] / size, way[s] = &step[s];
  }
  eini_contract_begin(t, x->param, x->scratch, &j);
  eini_contract_place(&j, x->slot);
  const int64_t count = hi - lo;
  ein_part part = t->contract->whole;
  part.batch[0] = 0, part.batch[1] = count;
  j.c.batch.n = 1;
  j.c.batch.extent = &count;
  j.c.p.batch = way + t->contract->first[0];
  j.c.q.batch = way + t->contract->first[1];
  j.c.extra_batch = way + t->extra;
  j.c.out_batch = way[t->out];
  *st = EIN_OK;
  if (t->kernels != NULL)
    *st = t->kernels->contract_run(t->kernels->user, &j.c, &t->choice, &part, j.r.kernel);
  else eini_contract_run(&j.c, &t->choice, &part, j.r.kernel);
  return 1;
}

static ein_status eini_many_range(const eini_many *m, eini_exec *x, int64_t lo, int64_t hi,
                                  int64_t *at) {
  const ein_plan *p = m->p;
  const int contract = p->ntask == 1 && p->task[0].kind == EINI_TASK_CONTRACT &&
                       (m->alone || p->task[0].parts < 2);
  eini_contract_job job;
  ein_status st = EIN_OK;
  for (int k = 0; k < m->nport; k++)
    x->slot[k < p->info.nin ? k : p->nin + k - p->info.nin] += lo * m->step[k];
  *at = lo;
  if (contract && eini_many_batch(m, x, lo, hi, &st)) return st;
  if (contract) eini_contract_begin(&p->task[0], x->param, x->scratch, &job);
  for (; *at < hi; ++*at) {
    st = contract ? eini_contract_at(&job, x->slot, -1) : eini_exec_tasks(x);
    if (st != EIN_OK) return st;
    for (int k = 0; k < m->nport; k++)
      x->slot[k < p->info.nin ? k : p->nin + k - p->info.nin] += m->step[k];
  }
  return EIN_OK;
}

// Part i in its memory, which holds how it ended when it has.
static void eini_many_part(void *arg, int i) {
  const eini_many *m = (const eini_many *)arg;
  eini_exec x;
  eini_many_end end = {0, EIN_OK};
  char *mem = m->mem + (size_t)i * m->room;
  memset(&x, 0, sizeof x);
  mem += (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN;
  x.p = m->p;
  x.run = &m->run;
  x.alone = m->alone;
  end.st = eini_exec_bind(&x, mem);
  if (end.st == EIN_OK)
    end.st = eini_many_range(m, &x, m->n / m->parts * i + eini_min64(i, m->n % m->parts),
                             m->n / m->parts * (i + 1) + eini_min64(i + 1, m->n % m->parts),
                             &end.at);
  memcpy(mem, &end, sizeof end);  // over the slots, which are done with
}

// Do threads take whole problems? Where a problem alone does not keep them busy, or where what it
// touches stays in what a core has of the caches and there are enough for equal shares.
static int eini_many_share(const eini_many *m) {
  const ein_plan *p = m->p;
  const ein_rates *r = p->rates != NULL ? p->rates : eini_rates_table(p->nkernels, p->kernels);
  double work = 0, bytes = (double)p->temp_bytes;
  int most = 1;
  for (int k = 0; k < p->ntask; k++) {
    work += p->task[k].work;
    most = most > eini_task_parts(p, &p->task[k]) ? most : eini_task_parts(p, &p->task[k]);
  }
  const double seconds = p->info.seconds > 0 ? p->info.seconds : work * EINI_CYCLE_SECONDS;
  const double start = r != NULL && r->start > 0 ? r->start : EINI_START_SECONDS;
  if (seconds * (double)m->n < start) return 0;
  if (most == 1) return 1;
  for (int k = 0; k < m->nport; k++)
    bytes += (double)(eini_many_port(p, k)->hi - eini_many_port(p, k)->lo);
  const double cache = r == NULL ? 0 : r->cache_bytes[EIN_L3];
  return m->n >= 4 * (int64_t)p->executor.width &&
         bytes < EINI_CACHE_PART * (cache > 0 ? cache : 1 << 20);
}

static ein_status eini_many_failed(const ein_run *run, const eini_many_end *end) {
  if (run->error != NULL && run->error_bytes > 0)
    snprintf(run->error, run->error_bytes, "problem %lld failed: %s", (long long)end->at,
             ein_status_text(end->st));
  return end->st;
}

// Problems by parts; each has slots, temporaries and scratch of its own.
static ein_status eini_many_shared(eini_many *m, const ein_run *run) {
  const ein_plan *p = m->p;
  ein_status st = EIN_OK;
  void *own = NULL;
  m->alone = p->executor.width > 1 && eini_many_share(m);
  m->room = m->alone ? p->head_bytes + p->home_bytes + p->scratch_bytes + EINI_ALIGN : p->workspace;
  m->parts = m->alone ? (int)eini_min64(p->executor.width, m->n) : 1;
  size_t bytes = (size_t)m->parts * m->room;
  m->mem = (char *)run->workspace;
  char stack[EINI_STACK_WORKSPACE + EINI_ALIGN];
  if (m->mem != NULL && bytes > run->workspace_bytes)
    m->parts = (int)(run->workspace_bytes / m->room);  // there is room for one
  if (m->parts == 1) m->alone = 0;
  if (m->mem == NULL && bytes <= EINI_STACK_WORKSPACE) m->mem = stack;
  if (m->mem == NULL) m->mem = (char *)(own = p->al.alloc_fn(bytes, EINI_ALIGN, p->al.user));
  if (m->mem == NULL) return EIN_ERR_NO_MEMORY;
  if (m->parts > 1) p->executor.parallel_for(m->parts, eini_many_part, m, p->executor.user);
  else eini_many_part(m, 0);
  for (int i = 0; i < m->parts && st == EIN_OK; i++) {
    eini_many_end end;
    const char *mem = m->mem + (size_t)i * m->room;
    memcpy(&end, mem + (EINI_ALIGN - (uintptr_t)mem % EINI_ALIGN) % EINI_ALIGN, sizeof end);
    if (end.st != EIN_OK) st = eini_many_failed(run, &end);
  }
  if (own != NULL) p->al.free_fn(own, bytes, p->al.user);
  return st;
}

// ---- the call ----

static ein_status eini_many_run(eini_many *m, ein_run *run, const int64_t *in_step,
                                const int64_t *out_step) {
  EINI_TRY(eini_many_steps(m, in_step, out_step));
  if (!eini_many_free(m)) return eini_many_turns(m, run);
  if (run->workspace != NULL && run->workspace_bytes < m->p->workspace)
    return eini_run_small(run, m->p->workspace);
  for (int k = 0; k < m->nport; k++) {
    const void *at = k < m->p->info.nin ? run->in[k] : run->out[k - m->p->info.nin];
    if (at == NULL && m->port[k].lo != m->port[k].hi) return eini_many_turns(m, run);  // which says
  }
  const ein_status st = eini_params_check(m->p->graph, run);
  return st != EIN_OK ? st : eini_many_shared(m, run);
}

EIN_API ein_status ein_plan_execute_many(const ein_plan *p, const ein_run *run, int64_t n,
                                         const int64_t *in_step, const int64_t *out_step) {
  eini_port port[EINI_MANY_FEW];
  int64_t step[EINI_MANY_FEW];
  void *at[EINI_MANY_FEW], *own = NULL;
  eini_many m;
  if (p == NULL || n < 0) return EIN_ERR_ARGUMENT;
  EINI_TRY(eini_run_begin(run, p->info.nin, p->nout));
  if (n > 1 && ((in_step == NULL && p->info.nin > 0) || (out_step == NULL && p->nout > 0)))
    return EIN_ERR_ARGUMENT;
  if (n < 2) return n == 0 ? EIN_OK : eini_execute(p, run, 0);
  memset(&m, 0, sizeof m);
  m.p = p;
  m.run = *run;
  m.run.error = NULL;  // several threads would write it
  m.run.seconds = NULL;
  m.n = n;
  m.nport = p->info.nin + p->nout;
  const int timed = run->seconds != NULL && p->now_fn != NULL;
  const size_t of_ports = (size_t)m.nport * (sizeof *port + sizeof *step + sizeof *at);
  const size_t bytes = of_ports + (timed ? (size_t)p->ntask * sizeof(double) : 0);
  m.port = port, m.step = step, m.at = at;
  if (m.nport > EINI_MANY_FEW || timed) {
    own = p->al.alloc_fn(bytes, EINI_ALIGN, p->al.user);
    if (own == NULL) return EIN_ERR_NO_MEMORY;
    m.port = (eini_port *)own;
    m.step = (int64_t *)(void *)(m.port + m.nport);
    m.seconds = timed ? (double *)(void *)(m.step + m.nport) : NULL;
    m.at = (void **)(void *)((char *)own + bytes - (size_t)m.nport * sizeof *at);
  }
  memset(m.step, 0, (size_t)m.nport * sizeof *step);
  ein_run mine = *run;
  const ein_status st = eini_many_run(&m, &mine, in_step, out_step);
  if (own != NULL) p->al.free_fn(own, bytes, p->al.user);
  return st;
}
