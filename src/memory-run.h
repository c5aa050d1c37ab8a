// ================================================================================================
// >>memory-run  running the slices
// Takes a plan's slices and the bindings of one call. Everything mutable is in the workspace:
// tables, tensors between regions, partial results, workspaces of plans.
// ================================================================================================

typedef struct eini_fit_state {
  const eini_fit_layout *f;
  const ein_run *run;
  char *mem, **data;            // data: address of element 0 per tensor of the base
  const void **in;
  void **out;
  ein_scalar *param;
  int64_t at[EINI_FIT_LOOPS];   // first index of the slice
} eini_fit_state;

// Addresses of tensors. That outputs share no element with anything was checked before.
static ein_status eini_fit_bind(eini_fit_state *x) {
  const eini_fit_layout *f = x->f;
  const eini_fit_base *b = &f->base;
  int in = 0, out = 0;
  for (int64_t t = 0; t < b->g->ntensor; t++) {
    union { const void *c; char *v; } u;  // inputs share the table; they are only read
    ein_role role = b->g->tensor[t].role;
    if ((int)t == b->plan->alias) continue;
    if (role == EIN_ROLE_TEMP) u.v = x->mem + f->place[t];
    else if (role == EIN_ROLE_INPUT) u.c = x->run->in[in];
    else u.c = x->run->out[out];
    x->data[t] = u.v;
    const eini_port *port = role == EIN_ROLE_INPUT ? &b->plan->in[in] : &b->plan->out[out];
    if (role != EIN_ROLE_TEMP && u.v == NULL && port->lo != port->hi) {
      return eini_run_error(x->run, EIN_ERR_ARGUMENT,
                            role == EIN_ROLE_INPUT ? "no data for input" : "no data for output",
                            role == EIN_ROLE_INPUT ? in : out, b->g->tensor[t].name);
    }
    in += role == EIN_ROLE_INPUT;
    out += role == EIN_ROLE_OUTPUT;
  }
  return eini_params_check(b->g, x->run);
}

static char *eini_fit_at(const eini_fit_state *x, char *data, int64_t base, const int64_t *step,
                         int nloop) {
  if (data == NULL) return NULL;
  for (int l = 0; l < nloop; l++) base += x->at[l] * step[l];
  return data + base;
}

// Runs one of the plans with what stands in x->in, x->out and x->param. later: see ein_memory.
static ein_status eini_fit_call(const eini_fit_state *x, const eini_fit_sliced *r,
                                const ein_plan *plan, int later) {
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = x->in;
  run.out = x->out;
  run.param = x->param;
  run.workspace = x->mem + r->at;
  run.workspace_bytes = (size_t)r->work;
  run.error = x->run->error;
  run.error_bytes = x->run->error_bytes;
  return eini_execute_by(plan, &run, 0, later, NULL);
}

// The slice at hand: are the loops from `first` on at their first (last) one?
static int eini_fit_stands(const eini_fit_state *x, const eini_fit_sliced *r, int first, int last) {
  for (int l = first; l < r->c.nloop; l++)
    if (last ? x->at[l] < r->c.extent[l] - r->c.block[l] : x->at[l] > 0) return 0;
  return 1;
}

// Is one of the first `to` loops that part p lacks behind its first slice? Then its results were
// merged before.
static int eini_fit_again(const eini_fit_state *x, const eini_fit_part *p, int to) {
  for (int l = 0; l < to; l++)
    if (x->at[l] > 0 && (p->absent >> l & 1)) return 1;
  return 0;
}

// States begin as those of nothing.
static void eini_fit_begin(const eini_fit_state *x, const eini_fit_sliced *r) {
  for (int i = 0; i < r->npart; i++) {
    const eini_fit_part *p = &r->part[i];
    void *state[4] = {NULL, NULL, NULL, NULL};
    if (p->state != 0 || !eini_fit_stands(x, r, p->outer, 0)) continue;
    for (int k = 0; k < p->folder->nstate; k++) state[k] = x->mem + r->part[i + k].own_at;
    eini_fold_identity(p->folder, p->count, state);
  }
}

// Merges partial results of the slice at hand that are values.
static ein_status eini_fit_merge(const eini_fit_state *x, const eini_fit_sliced *r,
                                 const eini_fit_slice *s) {
  for (int i = 0; i < r->npart; i++) {
    const eini_fit_part *p = &r->part[i];
    int first = 1;
    if (p->state >= 0 || eini_fit_again(x, p, r->c.nloop)) continue;
    for (int l = 0; l < r->c.nloop; l++)
      first = first && (x->at[l] == 0 || !(p->folded >> l & 1));
    char *data = p->own ? x->mem + p->own_at : x->data[p->view.tensor];
    x->in[0] = x->out[0] = eini_fit_at(x, data, s->base[r->nin + r->nout + i], p->view.step,
                                       r->c.nloop);
    x->in[1] = x->mem + p->at;
    memset(x->param, 0, sizeof *x->param);
    x->param[0].set = 1;
    x->param[0].re = first;
    EINI_TRY(eini_fit_call(x, r, x->f->each->plan[s->merge[i]], 0));
  }
  return EIN_OK;
}

// Stores what was merged in memory of the region's, where all of it was.
static ein_status eini_fit_end(const eini_fit_state *x, const eini_fit_sliced *r,
                               const eini_fit_slice *s) {
  for (int i = 0; i < r->npart; i++) {
    const eini_fit_part *p = &r->part[i];
    const eini_tensor *t = &x->f->base.g->tensor[p->view.tensor];
    void *state[4] = {NULL, NULL, NULL, NULL};
    if (!p->own || p->state > 0 || !eini_fit_stands(x, r, p->outer, 1)) continue;
    if (eini_fit_again(x, p, p->outer)) continue;
    char *to = eini_fit_at(x, x->data[p->view.tensor], s->to[i], p->to, p->outer);
    if (p->state == 0) {
      for (int k = 0; k < p->folder->nstate; k++) state[k] = x->mem + r->part[i + k].own_at;
      eini_states_finish(p->folder, t->rank, s->len[i], state, p->view.stride, t->dtype, to,
                         x->f->base.stride[p->view.tensor]);
      continue;
    }
    x->in[0] = x->mem + p->own_at;
    x->out[0] = to;
    EINI_TRY(eini_fit_call(x, r, x->f->each->plan[s->store[i]], 0));
  }
  return EIN_OK;
}

static ein_status eini_fit_slice_run(const eini_fit_state *x, const eini_fit_sliced *r,
                                     const eini_fit_slice *s) {
  const ein_graph *g = x->f->base.g;
  const int nloop = r->c.nloop;
  eini_fit_begin(x, r);
  for (int i = 0; i < eini_fit_views(r); i++) {
    const eini_fit_view *v = eini_fit_nth_view(r, i);
    const eini_fit_part *p = i < r->nin + r->nout ? NULL : &r->part[i - r->nin - r->nout];
    if (i < r->nin && i >= r->nin - r->alias) continue;
    char *data = p == NULL ? x->data[v->tensor] : x->mem + (p->state < 0 ? p->at : p->own_at);
    if (p == NULL || p->state >= 0) data = eini_fit_at(x, data, s->base[i], v->step, nloop);
    if (i < r->nin) x->in[i] = data;
    else x->out[i - r->nin] = data;
  }
  for (int64_t k = 0; k < g->nparam + nloop; k++) {
    memset(&x->param[k], 0, sizeof *x->param);
    if (k >= g->nparam) {
      x->param[k].set = 1;
      x->param[k].re = (double)x->at[k - g->nparam];
    } else if (x->run->param != NULL) {
      x->param[k] = x->run->param[k];
    }
  }
  EINI_TRY(eini_fit_call(x, r, s->plan, r->ahead));
  EINI_TRY(eini_fit_merge(x, r, s));
  return eini_fit_end(x, r, s);
}

static ein_status eini_fit_slices_run(eini_fit_state *x, const eini_fit_sliced *r) {
  for (int l = 0; l < EINI_FIT_LOOPS; l++) x->at[l] = 0;
  for (int done = 0; !done;) {
    int v = 0;
    for (int l = 0; l < r->c.nloop; l++)
      v |= (x->at[l] > r->c.extent[l] - r->c.block[l]) << l;
    EINI_TRY(eini_fit_slice_run(x, r, &r->slice[v]));
    done = 1;
    for (int l = r->c.nloop - 1; l >= 0 && done; l--) {
      done = x->at[l] >= r->c.extent[l] - r->c.block[l];
      x->at[l] = done ? 0 : x->at[l] + r->c.block[l];
    }
  }
  return EIN_OK;
}

// With ahead a slice begins while results of the one before come home.
static ein_status eini_fit_region_run(eini_fit_state *x, const eini_fit_sliced *r) {
  ein_status st = eini_fit_slices_run(x, r);
  if (r->ahead) {
    const ein_kernels *k = r->slice[0].plan->away;
    const ein_status settled = k->memory->settle_fn(k->user);
    if (st == EIN_OK) st = settled;
  }
  return st;
}

static ein_status eini_slices_run(const ein_plan *p, const ein_run *run, char *mem) {
  const eini_fit_layout *f = &p->budget->f;
  eini_fit_state x;
  memset(&x, 0, sizeof x);
  x.f = f;
  x.run = run;
  x.mem = mem;
  size_t at = 0;
  x.param = (ein_scalar *)(void *)mem;
  at += (size_t)(f->base.g->nparam + EINI_FIT_LOOPS) * sizeof(ein_scalar);
  x.data = (char **)(void *)(mem + at);
  at += (size_t)f->base.g->ntensor * sizeof(char *);
  x.in = (const void **)(void *)(mem + at);
  at += (size_t)f->widest_in * sizeof(char *);
  x.out = (void **)(void *)(mem + at);
  EINI_TRY(eini_fit_bind(&x));
  for (int k = 0; k < f->nregion; k++) EINI_TRY(eini_fit_region_run(&x, &f->region[k]));
  return EIN_OK;
}

static int eini_plan_sliced(const ein_plan *p) { return p->budget != NULL && p->budget->sliced; }

static const char *eini_fit_loop_name(const eini_fit_layout *f, const eini_fit_choice *c, int l) {
  return f->base.g->stmt[c->stmt[l]].index[c->index[l]].name;
}

static int64_t eini_fit_slice_count(const eini_fit_choice *c) {
  int64_t n = 1;
  for (int l = 0; l < c->nloop; l++) n *= eini_fit_slices(c->extent[l], c->block[l]);
  return n;
}
