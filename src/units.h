// ================================================================================================
// >>units  a plan's tasks
// Takes a graph; gives its statements with what is fused into them, as tasks, rows and groups, and
// seats of its tensors.
// ================================================================================================

// Statements with what is fused into them, in order. Tasks point at statements, so these are
// copies at their final address.
static ein_status eini_plan_units(ein_plan *p, const eini_lowering *lo, eini_unit **list, int *n) {
  ein_graph *g = p->graph;
  int *fused, *via;
  char *gone;
  EINI_TRY(eini_plan_fusion(p, &fused, &gone, &via));
  eini_stmt *own = EINI_NEW(&p->arena, eini_stmt, g->nstmt);
  *list = EINI_NEW(&p->arena, eini_unit, g->nstmt);
  *n = 0;
  if (own == NULL || *list == NULL) return EIN_ERR_NO_MEMORY;
  if (g->nstmt > 0) memcpy(own, g->stmt, (size_t)g->nstmt * sizeof *own);
  for (int64_t i = 0; i < g->nstmt; i++) {
    if (gone[i]) continue;
    eini_unit *u = &(*list)[(*n)++];
    u->s = fused[i] >= 0 ? &own[fused[i]] : &own[i];
    u->f = fused[i] >= 0 ? &own[i] : NULL;
    u->via = via[i];
    u->out = own[i].out;
    u->number[0] = fused[i] >= 0 ? fused[i] : i;
    u->number[1] = fused[i] >= 0 ? i : -1;
    if (u->f != NULL) EINI_TRY(eini_fused_columns(lo, u->s, u->f, u->via, &u->column));
  }
  return EIN_OK;
}

// Seconds that one task adds to the plan's, in no group: what its kernel predicts. Portable ones
// predict nothing, and small folds are not as fast there as their bytes are.
static double eini_task_share(const eini_lowering *lo, const eini_unit *u, const eini_task *t) {
  return EINI_TASK_SECONDS + (t->parts > 1 ? lo->rates->start : 0) +
         (t->ncandidate > 0 ? t->choice.seconds : eini_task_seconds(lo, u, t, NULL, 1, t->work));
}

// Rows are shared by as many threads as are busy longer than it takes to start them.
static void eini_plan_rows(ein_plan *p, const eini_lowering *lo, const eini_unit *u, eini_task *t) {
  const double n = (double)t->group->nrow, points = eini_points(u->s, NULL, 0, u->s->nindex);
  const double all = n * (lo->rates != NULL ? eini_task_share(lo, u, t->group->form)
                                            : EINI_TASK_SECONDS + points * EINI_ADD_SECONDS);
  const double start = lo->rates != NULL && lo->rates->start > 0 ? lo->rates->start
                                                                 : EINI_START_SECONDS;
  t->parts = (int)fmax(1, fmin(fmin(n, lo->width), floor(all / start)));
  if (lo->rates != NULL) p->info.seconds += all / t->parts;
}

// The tasks of n units; w: the search for groups among them, where machine rates are known; away:
// for those of a provider with a memory of its own; rows: batches among them.
static ein_status eini_plan_each(ein_plan *p, eini_lowering *lo, eini_trail *w,
                                 eini_away_search *away, eini_rowset *rows, const eini_unit *unit,
                                 int n, eini_seat *seat) {
  for (int u = 0; u < n; u++) {
    if (rows->sorted != NULL && rows->length[u] > 0) {
      const int64_t length = rows->length[u];
      eini_task *all = &p->task[p->ntask++];
      EINI_TRY(eini_rowset_lower(rows, lo, u, all));
      EINI_TRY(eini_plan_stayed(lo, all));
      eini_plan_rows(p, lo, &unit[u], all);
      u += (int)length - 1;
      continue;
    }
    const eini_stmt *last = unit[u].f != NULL ? unit[u].f : unit[u].s;
    int empty = 0, grouped = 0;
    EINI_TRY(eini_plan_away(p, lo, away, u, seat, &grouped));
    if (!grouped) EINI_TRY(eini_plan_group(p, lo, w, u, seat, &grouped));
    if (grouped) {
      EINI_TRY(eini_plan_stayed(lo, &p->task[p->ntask]));
      p->ntask++, u = grouped;
      continue;
    }
    if (last->rest == EIN_REST_ZERO) {
      EINI_TRY(eini_plan_zero(p, lo, last->out, &p->task[p->ntask], &empty));
      if (!empty) EINI_TRY(eini_plan_stayed(lo, &p->task[p->ntask]));
      p->ntask += !empty;
      empty = 0;
    }
    EINI_TRY(eini_plan_task(lo, unit[u].s, unit[u].f, unit[u].via, &p->task[p->ntask], &empty));
    if (p->checked && !empty) EINI_TRY(eini_watch_make(lo, unit[u].s, &p->watch[p->ntask]));
    if (!empty && lo->rates != NULL)
      p->info.seconds += eini_task_share(lo, &unit[u], &p->task[p->ntask]);
    if (!empty) EINI_TRY(eini_plan_stayed(lo, &p->task[p->ntask]));
    p->ntask += !empty;
  }
  return EIN_OK;
}

// At most so many tasks: an output that is set to zero first has two.
static int64_t eini_plan_most(const eini_rowset *rows, int n) {
  int64_t most = 2 * (int64_t)n + 1;
  for (int u = 0; u < n && rows->sorted != NULL; u++)
    if (rows->length[u] > 0) most -= 2 * (int64_t)rows->length[u] - 1;
  return most;
}

static ein_status eini_plan_ordered(ein_plan *p, eini_lowering *lo, eini_arena *scratch,
                                    const eini_unit *unit, int n, eini_seat *seat) {
  eini_trail search;
  eini_away_search away;
  eini_rowset rows;
  memset(&rows, 0, sizeof rows);
  memset(&search, 0, sizeof search);
  if (p->rows && !p->checked && !p->ungrouped)
    EINI_TRY(eini_rowset_find(&rows, scratch, &p->arena, lo, unit, n));
  if (rows.sorted != NULL) unit = rows.sorted;
  const int64_t most = eini_plan_most(&rows, n);
  p->task = EINI_NEW(&p->arena, eini_task, most);
  if (p->checked) p->watch = EINI_NEW(&p->arena, eini_watch *, most);
  if (p->task == NULL || (p->checked && p->watch == NULL)) return EIN_ERR_NO_MEMORY;
  const int *length = rows.sorted == NULL ? NULL : rows.length;
  const int here = p->rates != NULL && !p->ungrouped && (p->away == NULL || !p->away->alone);
  ein_status st = eini_away_search_make(&away, scratch, p, unit, n, length);
  if (st == EIN_OK && here)
    st = eini_trail_make(&search, scratch, p->graph, unit, n, p->rates, length);
  if (st == EIN_OK) st = eini_plan_each(p, lo, here ? &search : NULL, &away, &rows, unit, n, seat);
  if (here) eini_trail_free(&search);
  eini_away_search_free(&away);
  return st;
}

static ein_status eini_plan_tasks(ein_plan *p, eini_lowering *lo, eini_seat *seat) {
  eini_unit *unit;
  eini_arena scratch;
  int n;
  EINI_TRY(eini_plan_units(p, lo, &unit, &n));
  if (p->rates != NULL) EINI_TRY(eini_plan_layouts(lo, unit, n, seat));
  eini_arena_init(&scratch, &p->arena.al);
  ein_status st = eini_plan_ordered(p, lo, &scratch, unit, n, seat);
  eini_arena_free(&scratch);
  return st;
}

// Seats of tensors: inputs and outputs in their slots, every temporary in one of its own.
static ein_status eini_plan_seats(ein_plan *p, int nlayout, const ein_binding *layout,
                                  const ein_ztensor *const *view, eini_seat **seat) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  *seat = EINI_NEW(a, eini_seat, g->ntensor);
  p->slot_offset = EINI_NEW(a, int64_t, g->ntensor);
  p->in = EINI_NEW(a, eini_port, g->ntensor);
  p->out = EINI_NEW(a, eini_port, g->ntensor);
  if (*seat == NULL || p->slot_offset == NULL || p->in == NULL || p->out == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    p->nin += g->tensor[t].role == EIN_ROLE_INPUT;
    p->nout += g->tensor[t].role == EIN_ROLE_OUTPUT;
  }
  int in = 0, out = 0;
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    eini_seat *h = &(*seat)[t];
    const ein_ztensor *v = view == NULL ? NULL : view[t];
    for (int k = 0; view == NULL && k < nlayout; k++)
      if (strcmp(layout[k].name, x->name) == 0) v = layout[k].view;
    if (x->role == EIN_ROLE_TEMP) {
      int64_t count;
      h->slot = p->nin + p->nout + (int)t;
      EINI_TRY(eini_dense_strides(a, x->rank, x->shape, NULL, &h->stride, &count));
      continue;
    }
    int input = x->role == EIN_ROLE_INPUT;
    eini_port *port = input ? &p->in[in] : &p->out[out];
    h->slot = input ? in++ : p->nin + out++;
    EINI_TRY(eini_port_init(a, x, v, port));
    h->stride = port->stride;
  }
  p->nslot = p->nin + 2 * p->nout + (int)g->ntensor;  // the last nout: copies of outputs
  return EIN_OK;
}

// Copies of outputs that overlap inputs mirror the output's layout, gaps included.
static ein_status eini_plan_copies(ein_plan *p, eini_lowering *lo) {
  if (!p->may_overlap) return EIN_OK;
  p->copy_back = EINI_NEW(&p->arena, eini_task, p->nout);
  p->copy_in = EINI_NEW(&p->arena, eini_task, p->nout);
  if (p->copy_back == NULL || p->copy_in == NULL) return EIN_ERR_NO_MEMORY;
  int out = 0, mirror = p->nslot - p->nout;
  for (int64_t t = 0; t < p->graph->ntensor; t++) {
    if (p->graph->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    eini_stmt like;
    memset(&like, 0, sizeof like);
    like.out = (int)t;
    EINI_TRY(eini_plan_copier(p, lo, &like, mirror + out, p->nin + out, &p->copy_back[out]));
    EINI_TRY(eini_plan_copier(p, lo, &like, p->nin + out, mirror + out, &p->copy_in[out]));
    if (p->copy_back[out].scratch > p->scratch_bytes) p->scratch_bytes = p->copy_back[out].scratch;
    int64_t span = p->out[out].hi - p->out[out].lo;
    p->copy_bytes += ((size_t)span + EINI_ALIGN) / EINI_ALIGN * EINI_ALIGN;
    out++;
  }
  return EIN_OK;
}

// As eini_stmt_bound, of the whole of which a run of the plan may be a slice.
static double eini_plan_bound(const ein_plan *p, const eini_stmt *s, int *known) {
  const double e = eini_stmt_bound(p->graph, s, p->bound, p->slices > 1 ? p->slices : 1, known);
  return eini_bound_then(e, p->slice_unit);
}

// The bounds of all tensors, from the inputs on; less than 0 behind what has none.
static ein_status eini_plan_bounds(ein_plan *p) {
  unsigned char *defined = EINI_NEW(&p->arena, unsigned char, p->graph->ntensor + 1);
  const eini_stmt *s, *f;
  p->bound = EINI_NEW(&p->arena, double, p->graph->ntensor + 1);
  if (defined == NULL || p->bound == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < p->ntask; k++) {
    for (int i = 0; eini_task_from(&p->task[k], i, &s, &f) != NULL; i++) {
      int known;
      double e = eini_plan_bound(p, s, &known);
      eini_bound_set(p->bound, defined, s->out, known ? e : -1);
      if (f == NULL) continue;
      e = eini_plan_bound(p, f, &known);
      eini_bound_set(p->bound, defined, f->out, known ? e : -1);
    }
  }
  return EIN_OK;
}

// The largest intermediate of a plan that no path says it of.
static void eini_plan_largest(ein_plan *p) {
  for (int64_t t = 0; p->npath == 0 && t < p->graph->ntensor; t++) {
    double n = p->graph->tensor[t].role != EIN_ROLE_INPUT && p->graph->tensor[t].nstmt > 0;
    for (int a = 0; a < p->graph->tensor[t].rank; a++) n *= (double)p->graph->tensor[t].shape[a];
    if (n > p->info.largest) p->info.largest = n;
  }
}

static size_t eini_task_shared(const eini_task *t) {
  if (t->kind != EINI_TASK_CONTRACT || t->parts < 2) return 0;
  return (t->choice.shared + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
}

// Does either of two tasks store to what the other one reads or stores to?
static int eini_tasks_meet(const eini_task *a, const eini_task *b) {
  for (int i = 0; i < a->nstream; i++)
    for (int j = 0; j < b->nstream; j++)
      if (a->ref[i].slot >= 0 && a->ref[i].slot == b->ref[j].slot && (i >= a->out || j >= b->out))
        return 1;
  return 0;
}

// Whether task k may run at one time with those from `from` on: none depends on another, and there
// are few enough parts for threads to be done with them at about the same time.
static int eini_wave_takes(const ein_plan *p, int from, int k) {
  int parts = 0;
  for (int i = from; i <= k; i++) {
    const eini_task *t = &p->task[i];
    if (t->kind != EINI_TASK_CONTRACT && t->kind != EINI_TASK_COPY && t->kind != EINI_TASK_MAP)
      return 0;
    if (i < k && eini_tasks_meet(t, &p->task[k])) return 0;
    parts += eini_task_parts(p, t);
  }
  return parts <= 2 * p->executor.width && k - from < EINI_WAVE;
}

// Do threads have enough to do in a wave of tasks that one of them would run alone?
static int eini_wave_pays(const ein_plan *p, int from, int n) {
  double seconds = 0;
  for (int i = from; i < from + n; i++) {
    const eini_task *t = &p->task[i];
    if (eini_task_parts(p, t) > 1) return 1;
    seconds += t->choice.seconds > 0 ? t->choice.seconds : t->work * EINI_CYCLE_SECONDS;
  }
  const double start = p->rates != NULL && p->rates->start > 0 ? p->rates->start
                                                               : EINI_START_SECONDS;
  return seconds >= start;
}

// Waves of tasks that follow each other in the plan. p->wave stays NULL where all are of one task.
static ein_status eini_plan_waves(ein_plan *p) {
  int all = 1;
  if (!p->together || p->executor.width < 2 || p->ntask < 2 || p->checked || p->away != NULL)
    return EIN_OK;
  int *wave = EINI_NEW(&p->arena, int, p->ntask);
  p->turn = EINI_NEW(&p->arena, int, p->ntask);
  if (wave == NULL || p->turn == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0, n, turn = 0; k < p->ntask; k += n, turn++) {
    for (n = 1; k + n < p->ntask && eini_wave_takes(p, k, k + n); n++) continue;
    if (!eini_wave_pays(p, k, n)) n = 1;
    wave[k] = n;
    for (int i = k; i < k + n; i++) p->turn[i] = turn;
    if (n > all) all = n;
  }
  if (all > 1) p->wave = wave;
  return EIN_OK;
}

// Temporaries live to the end of a wave. Where that takes more memory than EINI_WAVE_BYTES there
// are no waves.
static ein_status eini_plan_places(ein_plan *p, eini_seat *seat) {
  EINI_TRY(eini_plan_waves(p));
  EINI_TRY(eini_plan_temps(p, seat));
  if (p->wave == NULL) return EIN_OK;
  const size_t bytes = p->temp_bytes;
  int *wave = p->wave;
  p->wave = NULL;
  EINI_TRY(eini_plan_temps(p, seat));
  if (bytes > p->temp_bytes && bytes > EINI_WAVE_BYTES) return EIN_OK;
  p->wave = wave;
  return eini_plan_temps(p, seat);
}

// Room for the parts that run at one time, and for what they share.
static void eini_plan_parts(ein_plan *p) {
  for (int k = 0; k < p->ntask; k++) {
    if (p->task[k].scratch > p->scratch_bytes) p->scratch_bytes = p->task[k].scratch;
    if (p->checked && p->watch[k] != NULL && p->watch[k]->scratch > p->scratch_bytes)
      p->scratch_bytes = p->watch[k]->scratch;
  }
  p->most_parts = p->executor.width;
  for (int k = 0; k < p->ntask; k++) {
    const int n = p->wave == NULL ? 1 : p->wave[k];
    size_t shared = 0;
    int parts = 0;
    for (int i = k; i < k + n; i++) {
      shared += eini_task_shared(&p->task[i]);
      parts += eini_task_parts(p, &p->task[i]);
    }
    if (shared > p->shared_bytes) p->shared_bytes = shared;
    if (parts > p->most_parts) p->most_parts = parts;
  }
}

// Memory for what kernels pack of constant inputs, which lasts as long as the plan.
static ein_status eini_plan_keep(ein_plan *p) {
  for (int k = 0; k < p->ntask; k++) {
    eini_task *t = &p->task[k];
    if (t->kind != EINI_TASK_CONTRACT || t->choice.kept == 0) continue;
    if (t->choice.kept > SIZE_MAX / 4) return EIN_ERR_TOO_LARGE;
    const size_t bytes = eini_task_keeps(t);
    t->kept = EINI_NEW(&p->arena, char, bytes + EINI_ALIGN);
    if (t->kept == NULL) return EIN_ERR_NO_MEMORY;
    t->kept += (EINI_ALIGN - (uintptr_t)t->kept % EINI_ALIGN) % EINI_ALIGN;
    memset(t->kept, 0, bytes);
    p->info.kept_bytes += bytes;
  }
  return EIN_OK;
}

// Fills a plan whose graph is complete. view: layouts per tensor, or NULL and bindings by name.
static ein_status eini_plan_build(ein_plan *p, int nlayout, const ein_binding *layout,
                                  const ein_ztensor *const *view) {
  const ein_rates *table = eini_rates_table(p->nkernels, p->kernels);
  eini_lowering lo;
  eini_seat *seat;
  memset(&lo, 0, sizeof lo);
  if (p->rates != NULL && p->graph->ordered) p->rates = table;
  if (p->rates != NULL && !p->graph->ordered) EINI_TRY(eini_leaf_graph(p->graph));
  EINI_TRY(eini_online_spares(p));
  EINI_TRY(eini_plan_seats(p, nlayout, layout, view, &seat));
  if (p->alias >= 0) seat[p->alias].slot = p->nin;  // reads output 0
  lo.a = &p->arena, lo.g = p->graph, lo.seat = seat;
  lo.width = p->executor.width;
  lo.nkernels = p->nkernels;
  lo.kernels = p->kernels;
  lo.rates = p->rates;
  lo.given = p->rates == table ? NULL : p->rates;
  lo.one = lo.given == NULL ? NULL : p->one;
  lo.slower = eini_rates_slower(table, lo.given);
  lo.unsplit = p->unsplit;
  lo.wanted = p->wanted;
  lo.constant = p->constant;
  for (int i = p->nkernels - 1; i >= 0; i--)
    if ((p->kernels[i]->chunk_fn != NULL || p->kernels[i]->stream_fn != NULL) &&
        (p->kernels[i]->ordered || !p->graph->ordered))
      lo.fast = p->kernels[i];
  EINI_TRY(eini_plan_stays(p, &lo, seat));
  EINI_TRY(eini_plan_tasks(p, &lo, seat));
  EINI_TRY(eini_plan_places(p, seat));
  EINI_TRY(eini_plan_apart(p));
  eini_plan_parts(p);
  lo.wanted = NULL;
  lo.at_home = 1;
  EINI_TRY(eini_plan_copies(p, &lo));
  EINI_TRY(eini_plan_bounds(p));
  EINI_TRY(eini_plan_keep(p));
  size_t head = (size_t)p->nslot * sizeof(char *) + (size_t)p->graph->nparam * sizeof(ein_scalar);
  const size_t width = (size_t)p->most_parts;
  if (p->executor.width > 1) head += width * sizeof(ein_status);
  if (eini_overlap_bytes(p) > head) head = eini_overlap_bytes(p);
  p->head_bytes = (head + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN + eini_away_bytes(p);
  if (p->scratch_bytes > (SIZE_MAX / 4) / width || p->temp_bytes > SIZE_MAX / 4 ||
      p->copy_bytes > SIZE_MAX / 8 || p->shared_bytes > SIZE_MAX / 8)
    return EIN_ERR_TOO_LARGE;
  p->workspace = p->head_bytes + p->home_bytes + p->scratch_bytes * width;
  p->workspace += p->shared_bytes + EINI_ALIGN;
  eini_plan_largest(p);
  p->info.nin = p->nin - (p->alias >= 0);
  p->info.nout = p->nout;
  p->info.nparam = (int)p->graph->nparam;
  p->info.ntask = p->ntask;
  p->info.nregion = 1;
  p->info.nslice = 1;
  p->info.workspace_bytes = p->workspace + p->copy_bytes;
  p->info.plan_bytes = p->arena.total + p->graph->arena.total;
  return EIN_OK;
}
