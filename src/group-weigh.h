// ================================================================================================
// >>group-weigh  seconds of groups, and layouts of temporaries
// Takes tasks; gives their seconds in blocks and one by one, and layouts of temporaries, by
// predicted seconds.
// ================================================================================================

#define EINI_LAYOUT_UNITS 64

static int eini_bundle_steps(const eini_bundle *b) {
  return b->nstep > 0 ? b->nstep : b->to - b->from + 1;
}

// Do predictions say how long the task takes? What maps take is their traffic, whoever runs them.
static int eini_task_told(const eini_task *t) {
  return t->ncandidate > 0 && t->kind != EINI_TASK_MAP;
}

// Bytes that a unit moves, as if all came from memory: what stays in a cache counts less, be it the
// group's own (local) or of a statement that is small.
static double eini_unit_bytes(const eini_lowering *lo, const eini_unit *u, const char *local) {
  const eini_cost all = eini_cost_of(lo->g, u->s, u->f, NULL, NULL, NULL, NULL);
  const double some = eini_cost_of(lo->g, u->s, u->f, NULL, NULL, local, NULL).traffic;
  const double own = (all.traffic - some) / (1 - EINI_CACHED);
  const double slower = eini_core_bandwidth(lo->rates, all.bytes) / lo->rates->copy_bw[EIN_MEMORY];
  return (all.traffic - own) / fmax(1, slower) + EINI_CACHED * own;
}

// Seconds of a unit's task, `runs` times: as predicted, else by its traffic and the cycles of its
// values, with elements that are added up alone. Those that lie apart along the chunk bring a line
// each.
static double eini_task_seconds(const eini_lowering *lo, const eini_unit *u, const eini_task *t,
                                const char *local, double runs, double alone) {
  if (eini_task_told(t) || eini_task_away(t)) return t->choice.seconds * runs;
  if (lo->rates == NULL) return 0;
  eini_speed speed = eini_core_speed(lo->rates, 1 / EINI_ADD_SECONDS);
  double bytes = eini_unit_bytes(lo, u, local);
  for (int s = 0; s < t->nstream && t->nchunk > 0; s++) {
    int c = t->chunk[t->nchunk - 1];
    int64_t step = eini_abs64(t->stride[(int64_t)s * t->nindex + c]);
    if (t->ref[s].slot < 0 || step < 2 || (s == t->out && t->reduced[c])) continue;
    step *= (int64_t)ein_dtype_size(t->ref[s].dtype);
    bytes += runs * t->work * (double)eini_min64(EINI_LINE_BYTES, step);
  }
  speed.overhead = 0;
  const double lanes = 8 / (double)ein_dtype_size((ein_dtype)t->code.type);
  if (lo->rates->hz > 0 && t->kind == EINI_TASK_MAP)
    alone += runs * t->work * eini_value_cycles(&t->code) / lanes / lo->rates->hz * speed.flops;
  return eini_seconds(&speed, alone, bytes);
}

// A group that is being weighed.
typedef struct eini_weighed {
  const eini_trail *w;
  const eini_bundle *b;
  const eini_lowering *block;  // of its blocks
  double parts;                // threads that share them
} eini_weighed;

// Adds the seconds of unit u, of its blocks where it is one of the group gr, which may be NULL. A
// variant that was asked for does not weigh: the plan is the one that it would be without.
static ein_status eini_unit_seconds(const eini_lowering *lo, const eini_weighed *gr,
                                    const eini_unit *unit, int u, double *seconds) {
  const eini_arena_at graph = eini_arena_mark(&lo->g->arena);  // lo->a is the caller's scratch
  const int in = gr != NULL && u <= gr->b->to;
  eini_lowering sub = in ? *gr->block : *lo;
  eini_task t;
  int empty;
  if (in && eini_bundle_at(gr->w, gr->b, u, 0, &sub)) return EIN_OK;
  sub.a = lo->a;
  sub.wanted = NULL;
  EINI_TRY(eini_plan_task(&sub, unit[u].s, unit[u].f, unit[u].via, &t, &empty));
  const double runs = in ? eini_bundle_runs(gr->b, u) / gr->parts : 1;
  if (!empty)
    *seconds += eini_task_seconds(lo, &unit[u], &t, in ? gr->w->local : NULL, runs, 0);
  eini_arena_rollback(&lo->g->arena, &graph);
  return EIN_OK;
}

// Adds those of unit u by itself; they are asked for once while layouts stay as they are.
static ein_status eini_unit_apart(const eini_lowering *lo, const eini_trail *w, int u,
                                  double *seconds) {
  if (!(w->apart[u] >= 0)) {
    w->apart[u] = 0;
    EINI_TRY(eini_unit_seconds(lo, NULL, w->unit, u, &w->apart[u]));
  }
  *seconds += w->apart[u];
  return EIN_OK;
}

// Seconds of step i of a group whose folds go on: what runs in some of the blocks has that part of
// its unit's traffic.
static double eini_group_step_seconds(const eini_lowering *lo, const eini_trail *w,
                                      const eini_bundle *b, const eini_mask *mask, int i,
                                      const eini_task *t) {
  const eini_group_step *s = &b->step[i];
  const int u = b->from + s->unit;
  const double runs = eini_group_step_runs(b, mask, s), all = eini_bundle_runs(b, u);
  if (eini_task_told(t)) return t->choice.seconds * runs;
  if (s->axes || s->then) {
    const double size = (double)ein_dtype_size(w->g->tensor[w->unit[u].s->out].dtype);
    return runs * (EINI_STEP_SECONDS +
                   EINI_CACHED * t->work * 3 * size / lo->rates->copy_bw[EIN_MEMORY]);
  }
  return eini_task_seconds(lo, &w->unit[u], t, w->local, all, 0) * runs / all +
         EINI_STEP_SECONDS * runs;
}

// Is the group predicted to be faster than its units one after another, or as fast: it takes less
// memory.
static ein_status eini_group_wins(const eini_lowering *lo, const eini_trail *w,
                                  const eini_bundle *b, const eini_group *gr, int parts,
                                  double *seconds, int *yes) {
  const eini_unit *unit = w->unit;
  eini_lowering sub = *lo;
  eini_arena scratch;
  double apart = 0, grouped = 0;
  ein_status st = EIN_OK;
  eini_arena_init(&scratch, &lo->a->al);
  sub.a = &scratch;
  const int whole = gr->variant[0].ntask == eini_bundle_steps(b);
  for (int u = b->from; u <= b->to && whole && st == EIN_OK; u++)
    st = eini_unit_apart(&sub, w, u, &apart);
  for (int i = 0; i < gr->variant[0].ntask && whole; i++) {
    const eini_task *t = &gr->variant[0].task[i];
    const int u = b->from + (b->nstep > 0 ? b->step[i].unit : i);
    if (b->nstep > 0) {
      grouped += eini_group_step_seconds(lo, w, b, gr->variant[0].mask, i, t);
      continue;
    }
    grouped += eini_task_seconds(lo, &unit[u], t, w->local, eini_bundle_runs(b, u), 0);
    if (!eini_task_told(t)) grouped += eini_bundle_beyond(w, b, u);
  }
  eini_arena_free(&scratch);
  seconds[0] = grouped / parts;
  seconds[1] = apart;
  *yes = whole && EINI_SURELY * seconds[0] < seconds[1];
  return st;
}

// Axes of what a unit makes lie as in its operand of most axes, of those the largest; others' where
// its folded ones do.
static ein_status eini_unit_order(const eini_lowering *lo, const eini_unit *u, int64_t *like) {
  const eini_stmt *s = u->s, *last = u->f != NULL ? u->f : s;
  int64_t *step = EINI_NEW(lo->a, int64_t, s->nindex), at, fold = 0;
  int x = 0;
  if (step == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 1; k < s->noperand; k++) {
    const int more = s->proj[k].rows - s->proj[x].rows;
    const eini_tensor *t = &lo->g->tensor[s->operand[k]], *most = &lo->g->tensor[s->operand[x]];
    if (more > 0 || (more == 0 && eini_tensor_bytes(t) > eini_tensor_bytes(most))) x = k;
  }
  if (s->noperand > 0)
    EINI_TRY(eini_access_strides(s, s->nindex, &s->proj[x], NULL, lo->seat[s->operand[x]].stride,
                                 step, &at));
  for (int i = s->nfree; i < s->nindex; i++) fold = eini_max64(fold, eini_abs64(step[i]));
  for (int r = 0; r < last->out_map.rows; r++) {
    int c = eini_plain_row(&last->out_map, r);
    if (c >= 0 && u->f != NULL) c = u->column[c];
    like[r] = c >= 0 && step[c] != 0 ? eini_abs64(step[c]) : fold;
  }
  return EIN_OK;
}

// The axes of what unit u makes, by how close together their elements lie in the largest other
// operand of the first unit that reads it: where predictions do not differ, that is the order in
// which both are read.
static ein_status eini_unit_axes(const eini_lowering *lo, const eini_unit *unit, int nunit, int u,
                                 int *axis) {
  const int id = unit[u].out, rank = lo->g->tensor[id].rank;
  int64_t apart[EINI_LAYOUT_RANK], at, *step;
  int v = u + 1, own = -1, x = -1;
  while (v < nunit && !eini_unit_reads(&unit[v], id)) v++;
  const eini_stmt *s = v < nunit ? unit[v].s : unit[u].s;
  for (int k = 0; k < s->noperand; k++) {
    const int t = s->operand[k];
    if (t == id) own = k;
    else if (x < 0 || eini_tensor_bytes(&lo->g->tensor[t]) >
                          eini_tensor_bytes(&lo->g->tensor[s->operand[x]])) x = k;
  }
  if ((step = EINI_NEW(lo->a, int64_t, s->nindex)) == NULL) return EIN_ERR_NO_MEMORY;
  if (own >= 0 && x >= 0)
    EINI_TRY(eini_access_strides(s, s->nindex, &s->proj[x], NULL, lo->seat[s->operand[x]].stride,
                                 step, &at));
  for (int r = 0; r < rank; r++) {
    const int c = own >= 0 && x >= 0 ? eini_plain_row(&s->proj[own], r) : -1;
    apart[r] = c >= 0 && step[c] != 0 ? eini_abs64(step[c]) : INT64_MAX;
  }
  for (int r = 0; r < rank; r++) {  // later axes on a tie
    int to = r;
    for (; to > 0 && apart[axis[to - 1]] >= apart[r]; to--) axis[to] = axis[to - 1];
    axis[to] = r;
  }
  return EIN_OK;
}

// Which axis of a temporary lies innermost is free: of those that are innermost where it is made or
// read, the one that makes these statements fastest. Of the group gr, which may be NULL, its own
// temporaries are blocks of that shape.
static ein_status eini_unit_layout(const eini_lowering *lo, const eini_weighed *gr,
                                   const eini_unit *unit, int nunit, int u, const int64_t *shape,
                                   eini_seat *seat) {
  int id = unit[u].out;
  const eini_tensor *t = &lo->g->tensor[id];
  const int64_t *best = NULL;
  int64_t like[EINI_LAYOUT_RANK], count;
  int axis[EINI_LAYOUT_RANK];
  double least = 0;
  eini_lowering sub = *lo;
  eini_arena scratch;
  eini_arena_init(&scratch, &lo->a->al);
  sub.a = &scratch;
  ein_status st = eini_unit_order(&sub, &unit[u], like);
  if (st == EIN_OK) st = eini_unit_axes(&sub, unit, nunit, u, axis);
  for (int i = 0; i < t->rank && st == EIN_OK; i++) {
    const int a = axis[i];
    double seconds = 0;
    if (shape[a] == 1 && (best != NULL || i + 1 < t->rank)) continue;  // no other strides
    like[a] = -1 - like[a];  // the least
    st = eini_dense_strides(lo->a, t->rank, shape, like, &seat[id].stride, &count);
    like[a] = -1 - like[a];
    if (st == EIN_OK) st = eini_unit_seconds(&sub, gr, unit, u, &seconds);
    for (int v = u + 1; v < nunit && st == EIN_OK; v++)
      if (eini_unit_reads(&unit[v], id)) st = eini_unit_seconds(&sub, gr, unit, v, &seconds);
    if (best == NULL || seconds < EINI_SURELY * least) best = seat[id].stride, least = seconds;
  }
  seat[id].stride = best;
  eini_arena_free(&scratch);
  return st;
}

// Is the layout of what the unit makes ours to choose?
static int eini_unit_lays(const eini_lowering *lo, const eini_unit *u) {
  const eini_tensor *t = &lo->g->tensor[u->out];
  return t->role == EIN_ROLE_TEMP && t->nstmt == 1 && t->rank >= 2 && t->rank <= EINI_LAYOUT_RANK;
}

static ein_status eini_plan_layouts(const eini_lowering *lo, const eini_unit *unit, int nunit,
                                    eini_seat *seat) {
  for (int u = 0; u + 1 < nunit && nunit <= EINI_LAYOUT_UNITS; u++) {
    if (!eini_unit_lays(lo, &unit[u])) continue;
    const int64_t *shape = lo->g->tensor[unit[u].out].shape;
    EINI_TRY(eini_unit_layout(lo, NULL, unit, nunit, u, shape, seat));
  }
  return EIN_OK;
}
