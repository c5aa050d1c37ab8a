// ================================================================================================
// >>plan  from a graph to tasks and a workspace layout
// Takes a graph and the layouts of its inputs and outputs; gives an immutable plan without data
// pointers. Slots: inputs, outputs, then temporaries at fixed places of the workspace.
// ================================================================================================

// An input or output: what a caller binds, and the memory it spans (bytes from its data pointer).
typedef struct eini_port {
  ein_tensor_info info;
  const int64_t *stride;
  int space;                    // see ein_ztensor
  int64_t lo, hi;               // first and one-past-last byte; equal when nothing is accessed
  int64_t step;                 // gcd of the strides in bytes, for the overlap test
} eini_port;

// A choice between ways of computing `out`: predicted seconds of each, and which was taken. A group
// has the number of its units in `units`, and two ways: as a group, and one unit after another.
typedef struct eini_verdict {
  const char *out;
  int units, taken;
  double seconds[3];
} eini_verdict;

struct eini_budget;
struct eini_tuned;

struct ein_plan {
  eini_arena arena;             // owns everything, the plan itself included
  ein_allocator al;
  ein_executor executor;
  double (*now_fn)(void *user);
  void *now_user;
  int nkernels;
  const ein_kernels *const *kernels;  // the plan's own list
  const ein_kernels *away;      // whose memory tasks may use, or NULL,
  eini_stay *stay;              //   and what of slots may lie there (part staging)
  const ein_rates *rates;       // or NULL
  const ein_rates *one;         // where threads share bandwidths: of one alone; or NULL
  ein_graph *graph;             // lives in an arena of its own; statements name the tasks
  int nin, nout, nslot;
  eini_port *in, *out;
  int alias;                    // input that is output 0 itself (beta without C), or -1
  int keeps;                    // 1: output 0 keeps old elements: a copy must start from them
  int64_t *slot_offset;         // of temporaries, bytes from the start of the temporaries
  int ntask;
  eini_task *task;
  eini_task *copy_back;         // per output: from the copy to the output, and the other way
  eini_task *copy_in;
  size_t head_bytes;            // slots, params and the status of every part
  size_t temp_bytes;            // temporaries, and of them those of the workspace: all or none
  size_t home_bytes;
  size_t away_bytes;            // most that a run takes of the provider's memory
  size_t scratch_bytes;         // per part that runs at a time,
  int most_parts;               //   of which there are so many, at least one per thread
  size_t shared_bytes;          // of the parts of a task; behind all scratch
  size_t copy_bytes;            // copies of outputs that overlap inputs
  size_t workspace;
  int may_overlap;
  int unsplit;                  // 1: the path is "none": kernels must not split products either
  int as_found;                 // 1: steps are not weighed against those from left to right
  struct eini_wanted *wanted;   // the variant that was asked for, or NULL
  const char *constant;         // as ein_options.constant, or NULL
  int checked;                  // 1: integers are checked, see section overflow
  eini_watch **watch;           // of every task, or NULL
  double *bound;                // of each tensor of the graph: see eini_bound_tensors
  double slices;                // a run is one of so many slices of its folds; 0: of one
  double slice_unit;            // and what storing what is merged of them rounds by
  int together;                 // 1: tasks that do not depend on each other may run at one time:
  int *wave;                    //   of each how many from it on do; NULL: all follow one another
  int *turn;                    //   and the number of its wave
  int rows;                     // 1: small statements of one form may be one task
  int ungrouped;                // 1: no statements are one task
  int inner;                    // 1: part of a larger plan, whose tensors its inputs are
  ein_plan_info info;
  eini_path *path;              // one per split statement; path of the expression first
  int npath;
  eini_verdict *verdict;
  int64_t nverdict, capverdict;
  struct eini_tuned *tuned;     // what a store knows of statements (section tuned)
  int64_t ntuned, captuned;
  struct eini_budget *budget;   // made within one: what counts its memory, and perhaps slices,
};                              //   which run in place of tasks (part slices); or NULL

static ein_status eini_plan_verdict(ein_plan *p, const char *out, int units, const double *seconds,
                                    int taken) {
  eini_verdict *v = (eini_verdict *)eini_grow(&p->arena, p->verdict, p->nverdict, &p->capverdict,
                                              sizeof *v);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  p->verdict = v;
  v += p->nverdict++;
  v->out = out;
  v->units = units;
  v->taken = taken;
  for (int i = 0; i < 3; i++) v->seconds[i] = seconds[i];
  return EIN_OK;
}

static const char *eini_verdict_way(const eini_verdict *v, int i) {
  return v->units == 0 ? eini_path_way[i] : i == 0 ? "group" : "one after another";
}

enum { EINI_WAVE = 16 };        // tasks that run at one time, at most
#define EINI_WAVE_BYTES ((size_t)1 << 18)  // temporaries that need no more may live longer for it

// Into how many parts threads take a task.
static int eini_task_parts(const ein_plan *p, const eini_task *t) {
  if (p->executor.width < 2) return 1;
  if (t->kind == EINI_TASK_CONTRACT || t->kind == EINI_TASK_GROUP) return t->parts;
  return t->cut >= 0 && t->work >= 32768 && t->choice.grid[0] != 1 ? p->executor.width : 1;
}

// Strides without gaps, the axes in the order `like` has them in memory; NULL: row-major. All 0
// where there are no elements: the extents beside a 0 may be anything.
static ein_status eini_dense_strides(eini_arena *a, int rank, const int64_t *shape,
                                     const int64_t *like, const int64_t **out, int64_t *count) {
  int64_t *s = EINI_NEW(a, int64_t, rank), n = 1;
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  *out = s;
  EINI_TRY(eini_view_elements(rank, shape, count));
  if (*count == 0) return EIN_OK;
  for (int k = rank - 1; k >= 0; k--) {  // the least stride not yet taken; later axes on a tie
    int least = like == NULL ? k : -1;
    for (int i = rank - 1; i >= 0 && like != NULL; i--)
      if (s[i] == 0 && (least < 0 || like[i] < like[least])) least = i;
    s[least] = n;
    if (eini_mul_overflow(n, shape[least], &n)) return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

static ein_status eini_port_init(eini_arena *a, const eini_tensor *t, const ein_ztensor *view,
                                 eini_port *p) {
  p->info.name = t->name;
  p->info.role = t->role;
  p->info.dtype = t->dtype;
  p->info.rank = t->rank;
  p->info.shape = t->shape;
  p->space = view == NULL ? 0 : view->space;
  int64_t count;
  if (view == NULL || view->strides == NULL) {
    EINI_TRY(eini_dense_strides(a, t->rank, t->shape, NULL, &p->stride, &count));
  } else {
    int64_t *s = EINI_NEW(a, int64_t, t->rank);
    if (s == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_view_elements(t->rank, t->shape, &count));
    // What is never stepped may be any number: the plan has 0 there. Others fit in bytes.
    for (int i = 0; i < t->rank; i++)
      if (count > 0 && t->shape[i] > 1) s[i] = view->strides[i];
    p->stride = s;
  }
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = t->dtype;
  v.rank = t->rank;
  v.shape = t->shape;
  v.strides = p->stride;
  int64_t lo, hi, size = (int64_t)ein_dtype_size(t->dtype);
  EINI_TRY(eini_view_extent(&v, &lo, &hi));
  p->lo = lo * size;
  p->hi = lo > hi ? p->lo : (hi + 1) * size;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] > 1) p->step = eini_gcd64(p->step, p->stride[i] * size);
  return EIN_OK;
}

// Room for finding overlaps among many inputs and outputs; 0: few, which are compared one by one.
static size_t eini_overlap_bytes(const ein_plan *p) {
  const int64_t nout = p->nout, n = nout + p->nin;
  return nout * n < 128 ? 0 : 2 * (size_t)n * (sizeof(uintptr_t) + sizeof(int));
}

// ---- fusion of element-wise consumers ----

// Can statement j be the epilogue of the fold i, reading it as operand *via? Each index of j is one
// axis of the temporary, the temporary keeps the computation type, and nobody else reads it.
static int eini_fusable(const ein_graph *g, const int *readers, const eini_stmt *i,
                        const eini_stmt *j, int *via) {
  const eini_tensor *t = &g->tensor[i->out];
  if (t->role != EIN_ROLE_TEMP || t->nstmt != 1 || readers[i->out] != 1) return 0;
  if (j->fold != EIN_FOLD_NONE || i->fold == EIN_FOLD_NONE || i->fold == EIN_FOLD_BLOCK ||
      t->rank != j->nindex ||
      j->nindex != i->nfree || i->rest != EIN_REST_ERROR || j->rest == EIN_REST_ZERO ||
      t->dtype != ein_dtype_compute(t->dtype) || eini_stmt_empty(j, 0, j->nindex) ||
      t->dtype != ein_dtype_compute(i->type) ||
      (g->ordered && j->noperand > EINI_ORDER_FACTORS))
    return 0;
  int x, y, kernel = eini_pair_match(i, &x, &y) >= 0 || eini_plain_sum(i);
  for (int64_t k = 0; kernel && k < j->expr.n; k++)  // they store without index values
    if (j->expr.node[k].op == EIN_OP_INDEX) return 0;
  *via = -1;
  for (int k = 0; k < j->noperand; k++)
    if (j->operand[k] == i->out) *via = k;
  if (*via < 0) return 0;
  const eini_map *m = &j->proj[*via];
  for (int r = 0; r < m->rows; r++) {
    int64_t coef;
    const int c = eini_plain_row(m, r);
    if (c < 0 || j->index[c].extent != t->shape[r]) return 0;
    for (int r2 = 0; r2 < r; r2++)
      if (eini_map_coef(m, r2, c) != 0) return 0;
    if (eini_row_index(&i->out_map, r, &coef) < 0 || coef != 1) return 0;  // no axis is reversed
  }
  return 1;
}

// For each statement the producer fused into it (or -1), and whether it is such a producer.
static ein_status eini_plan_fusion(ein_plan *p, int **fused, char **gone, int **via) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  int *readers = EINI_NEW(a, int, g->ntensor), *producer = EINI_NEW(a, int, g->ntensor);
  *fused = EINI_NEW(a, int, g->nstmt);
  *gone = EINI_NEW(a, char, g->nstmt);
  *via = EINI_NEW(a, int, g->nstmt);
  if (readers == NULL || producer == NULL || *fused == NULL || *gone == NULL || *via == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    (*fused)[i] = -1;
    producer[s->out] = (int)i + 1;
    for (int k = 0; k < s->noperand; k++) readers[s->operand[k]]++;
  }
  for (int64_t j = 0; j < g->nstmt && !p->checked; j++) {  // checks read every result
    const eini_stmt *s = &g->stmt[j];
    for (int k = 0; k < s->noperand && (*fused)[j] < 0; k++) {
      int i = producer[s->operand[k]] - 1;
      if (i < 0 || i >= j || (*gone)[i] || !eini_fusable(g, readers, &g->stmt[i], s, &(*via)[j]))
        continue;
      (*fused)[j] = i;
      (*gone)[i] = 1;
    }
  }
  return EIN_OK;
}

// ---- temporaries ----

// Task i inside a task: of a group, else the task itself; NULL after the last. What it came from
// goes to *s and *f: rows share a task.
static const eini_task *eini_task_from(const eini_task *t, int i, const eini_stmt **s,
                                       const eini_stmt **f) {
  const eini_group *g = t->group;
  if (t->kind == EINI_TASK_GROUP && g->nrow > 0) {
    if (i >= g->nrow) return NULL;
    *s = g->unit[i].s;
    *f = g->unit[i].f;
    return g->form;
  }
  if (t->kind == EINI_TASK_GROUP) t = i < g->variant[0].ntask ? &g->variant[0].task[i] : NULL;
  else if (i > 0) t = NULL;
  if (t == NULL) return NULL;
  *s = t->stmt;
  *f = t->fused;
  return t;
}

// The same as a task that says what it came from, which may be in `room`.
static const eini_task *eini_task_inner(const eini_task *t, int i, eini_task *room) {
  const eini_stmt *s = NULL, *f = NULL;
  const eini_task *inner = eini_task_from(t, i, &s, &f);
  if (inner == NULL || (inner->stmt == s && inner->fused == f)) return inner;
  *room = *inner;
  room->stmt = s;
  room->fused = f;
  return room;
}

// Places temporaries so that those alive at the same time do not overlap, in the order in which
// tasks bring them.
static ein_status eini_plan_temps(ein_plan *p, eini_seat *seat) {
  ein_graph *g = p->graph;
  eini_arena *a = &p->arena;
  int *of = EINI_NEW(a, int, g->ntensor), *alive = EINI_NEW(a, int, g->ntensor), n = 0;  // item + 1
  eini_item *item = EINI_NEW(a, eini_item, g->ntensor);
  int64_t top;
  if (of == NULL || alive == NULL || item == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < p->ntask; k++) {
    const int turn = p->wave == NULL ? k : p->turn[k];
    const eini_stmt *first, *fused;
    for (int i = 0; eini_task_from(&p->task[k], i / 2, &first, &fused) != NULL; i++) {
      const eini_stmt *s = i % 2 ? fused : first;
      for (int o = -1; s != NULL && o < s->noperand; o++) {
        int t = o < 0 ? s->out : s->operand[o];
        if (fused != NULL && t == first->out) continue;  // never stored
        if (seat[t].slot < p->nin + p->nout) continue;
        if (of[t] == 0) {
          const eini_tensor *x = &g->tensor[t];
          int64_t bytes = (int64_t)ein_dtype_size(x->dtype);
          for (int r = 0; r < x->rank; r++)
            if (eini_mul_overflow(bytes, x->shape[r], &bytes)) return EIN_ERR_TOO_LARGE;
          if (eini_add_overflow(bytes, EINI_ALIGN, &bytes)) return EIN_ERR_TOO_LARGE;
          item[n].bytes = bytes / EINI_ALIGN * EINI_ALIGN;
          item[n].from = turn;
          item[n].at = &p->slot_offset[t];
          of[t] = ++n;
        }
        item[of[t] - 1].to = turn;
      }
    }
  }
  EINI_TRY(eini_items_place(item, n, 0, alive, &top));
  p->temp_bytes = (size_t)top;
  return EIN_OK;
}

// ---- tasks ----

// A statement that visits every element of a tensor, and reads the operand, if any, where it is.
static ein_status eini_plan_identity(ein_graph *g, int tensor, int nop, eini_stmt **out) {
  EINI_TRY(eini_graph_add_each(g, tensor, nop, &tensor, out));
  eini_stmt *s = *out;
  int id = nop > 0 ? eini_expr_add(&g->arena, &s->expr, EIN_OP_OPERAND, -1, 0, 0, 0)
                   : eini_expr_int(&g->arena, &s->expr, -1, 0);
  return id < 0 ? EIN_ERR_NO_MEMORY : eini_stmt_finish(g, s, NULL);
}

// Fills the whole output with zero before its scattered elements are written.
static ein_status eini_plan_zero(ein_plan *p, eini_lowering *lo, int tensor, eini_task *t,
                                 int *empty) {
  eini_stmt *s;
  EINI_TRY(eini_plan_identity(p->graph, tensor, 0, &s));
  return eini_task_lower(lo, s, NULL, -1, t, empty);
}

// Is a contraction's task a product without a sum, which a map makes as well? Not where the order
// of folds counts.
static int eini_plan_outer(const eini_lowering *lo, const eini_stmt *s, const eini_task *t) {
  return s->nfree == s->nindex && lo->away == NULL && !lo->g->ordered && lo->rates != NULL &&
         lo->rates->copy_bw[EIN_MEMORY] > 0 && t->choice.seconds > 0;
}

static ein_status eini_plan_task(eini_lowering *lo, const eini_stmt *s, const eini_stmt *f, int via,
                                 eini_task *t, int *empty) {
  const eini_arena_at plan = eini_arena_mark(lo->a), graph = eini_arena_mark(&lo->g->arena);
  int yes = 0;
  *empty = 0;
  if (!lo->maps) EINI_TRY(eini_contract_lower(lo, s, f, via, t, &yes));
  if (yes && eini_plan_outer(lo, s, t)) {
    const eini_arena_at before = eini_arena_mark(lo->a), then = eini_arena_mark(&lo->g->arena);
    eini_task map;
    EINI_TRY(eini_task_lower(lo, s, f, via, &map, empty));
    const int said = map.kernels != NULL && map.choice.seconds > 0;
    const double known = said ? map.choice.seconds
                              : EINI_MAP_DOUBT * eini_home_seconds(lo, &map) +
                                    map.work * EINI_ADD_SECONDS;
    const int has = t->best != NULL && t->best->fixed, more = map.best != NULL && map.best->fixed;
    if (has == more ? known < t->choice.seconds : more) {
      if (map.ncandidate > 0) map.candidate[map.ncandidate++] = *t->best;  // shown beside it
      *t = map;
      return EIN_OK;
    }
    eini_arena_rollback(lo->a, &before);
    eini_arena_rollback(&lo->g->arena, &then);
    return EIN_OK;
  }
  if (yes) return EIN_OK;
  eini_arena_rollback(lo->a, &plan);
  eini_arena_rollback(&lo->g->arena, &graph);
  return eini_task_lower(lo, s, f, via, t, empty);
}

// A copy between two places of one layout: from slot `from` to slot `to`.
static ein_status eini_plan_copier(ein_plan *p, eini_lowering *lo, const eini_stmt *like, int from,
                                   int to, eini_task *t) {
  eini_stmt *s;
  EINI_TRY(eini_plan_identity(p->graph, like->out, 1, &s));
  int empty;
  EINI_TRY(eini_task_lower(lo, s, NULL, -1, t, &empty));
  if (empty) return EIN_OK;
  t->ref[0].slot = from;
  t->ref[t->out].slot = to;
  t->stmt = NULL;
  return EIN_OK;
}
