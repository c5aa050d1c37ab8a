// ================================================================================================
// >>lower  statements become tasks
// Takes a statement (and an element-wise consumer fused into it); gives the task, with the provider
// that runs it and the code it runs.
// ================================================================================================

// A provider about what a task of this kind is.
static int eini_asked_at(eini_task_kind kind, const ein_kernels *p, const void *what, int width,
                         int nth, ein_choice *h) {
  if (kind == EINI_TASK_CONTRACT)
    return p->contract_plan != NULL &&
           p->contract_plan(p->user, (const ein_contract *)what, width, nth, h);
  if (kind == EINI_TASK_COPY)
    return p->copy_plan != NULL && p->copy_plan(p->user, (const ein_copy *)what, width, nth, h);
  return p->map_plan != NULL && p->map_plan(p->user, (const ein_map *)what, width, nth, h);
}

// The same; NULL: the portable kernels.
static int eini_asked(const eini_lowering *lo, eini_task_kind kind, const ein_kernels *p,
                      const void *what, int nth, ein_choice *h) {
  memset(h, 0, sizeof *h);
  if (p == NULL) {
    const int can = eini_contract_plan((const ein_contract *)what, lo->width, nth, h);
    if (can && lo->given != NULL) h->seconds *= lo->slower;
    return can;
  }
  return eini_asked_at(kind, p, what, lo->width, nth, h);
}

// The same by one thread while the others rest, where bandwidth is what they would share: taken
// where threads gain less than their start.
static void eini_asked_one(const eini_lowering *lo, eini_task_kind kind, const ein_kernels *p,
                           const void *what, ein_choice *h) {
  const double start = lo->given->start > 0 ? lo->given->start : EINI_START_SECONDS;
  ein_contract c;
  ein_copy y;
  ein_map m;
  ein_choice one;
  memset(&one, 0, sizeof one);
  if (kind == EINI_TASK_CONTRACT) {
    c = *(const ein_contract *)what;
    c.rates = lo->one;
    what = &c;
  } else if (kind == EINI_TASK_COPY) {
    y = *(const ein_copy *)what;
    y.rates = lo->one;
    what = &y;
  } else {
    m = *(const ein_map *)what;
    m.rates = lo->one;
    what = &m;
  }
  if (!eini_asked_at(kind, p, what, 1, -1, &one) || !(one.seconds <= h->seconds + start)) return;
  for (int i = 0; i < 3; i++) one.grid[i] = 1;
  *h = one;
}

// Has who runs a task a memory of its own?
static int eini_task_away(const eini_task *t) {
  return t->kernels != NULL && t->kernels->memory != NULL;
}

// Seconds of copies that a task needs if it runs away or at home. Those of outputs that go home or
// away in the end are counted where they are made.
static double eini_stay_seconds(const eini_lowering *lo, const eini_task *t, int away) {
  const ein_memory *m = lo->away->memory;
  const int known = lo->given != NULL && lo->given->away[0] > 0 && lo->given->away[1] > 0;
  const double start = known ? 1 / lo->given->away[0] : m->start;
  const double bandwidth = known ? lo->given->away[1] : m->bandwidth;
  const int want = away ? EINI_AWAY : EINI_HOME;
  double seconds = 0;
  for (int s = 0; s < t->nstream && m->bandwidth > 0 && lo->walk.nloop == 0; s++) {
    const int slot = t->ref[s].slot;
    int again = 0;
    for (int k = 0; k < s; k++) again |= t->ref[k].slot == slot;
    if (slot < 0 || again || !lo->stay[slot].kept) continue;
    const int elsewhere = s < t->out || lo->stay[slot].port == 0
                              ? lo->valid[slot] != 0 && !(lo->valid[slot] & want)
                              : (lo->stay[slot].space != 0) != away;
    if (elsewhere) seconds += start + (double)lo->stay[slot].bytes / bandwidth;
  }
  return seconds;
}

// Which of n streams lie in the provider's memory; NULL: none do.
static ein_status eini_stay_flags(const eini_lowering *lo, const eini_task *t, int n,
                                  const int *stream, const unsigned char **away) {
  unsigned char *list = lo->away == NULL ? NULL : EINI_NEW(lo->a, unsigned char, n);
  *away = list;
  if (list == NULL) return lo->away == NULL ? EIN_OK : EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) {
    const int slot = t->ref[stream == NULL ? k : stream[k]].slot;
    list[k] = (unsigned char)(slot >= 0 && lo->stay[slot].kept);
  }
  return EIN_OK;
}

static int eini_better(const eini_candidate *x, const eini_candidate *than) {
  return than == NULL || (x->fixed == than->fixed ? x->seconds < than->seconds : x->fixed);
}

// Asks a provider, about all its ways where a variant is wanted. The variant wins, then the fastest
// prediction, on a tie that of who was asked first.
static void eini_ask(const eini_lowering *lo, eini_task *t, const ein_kernels *p,
                     const void *what) {
  eini_candidate one = {p == NULL ? "portable" : p->name, "", 0, 0}, *own = NULL;
  const eini_hint *hint = lo->wanted == NULL && t->stmt != NULL ? t->stmt->hint : NULL;
  const char *tuned = hint == NULL ? NULL : hint->variant;
  const int ways = lo->wanted != NULL || tuned != NULL ? EINI_VARIANTS : 0;
  const int away = p != NULL && p->memory != NULL;
  ein_choice h;
  if (away && (p != lo->away || lo->at_home || lo->walk.nloop > 0)) return;
  if (!away && t->best != NULL && lo->away != NULL && lo->away->alone) return;  // it runs there
  for (int nth = ways > 0 ? 0 : -1; nth < ways; nth++) {
    if (!eini_asked(lo, t->kind, p, what, nth, &h)) break;
    if (lo->one != NULL && p != NULL && ways == 0 && lo->width > 1 && !away)
      eini_asked_one(lo, t->kind, p, what, &h);
    if (lo->away != NULL) h.seconds += eini_stay_seconds(lo, t, away);
    memcpy(one.variant, h.variant, sizeof one.variant);
    one.seconds = h.seconds;
    one.fixed = lo->wanted != NULL ? eini_wanted_is(lo->wanted, one.name, h.variant)
                                   : tuned != NULL && eini_variant_is(tuned, one.name, h.variant);
    if (!eini_better(&one, own)) continue;
    if (own == NULL) own = &t->candidate[t->ncandidate++];
    *own = one;
    if (t->best != own && !eini_better(own, t->best)) continue;
    t->best = own;
    t->kernels = p;
    t->choice = h;
  }
}

// Seconds of a map or copy in the portable kernels, which make no prediction: as in groups its
// traffic and the cycles of its values, here of all elements that streams have.
static double eini_home_seconds(const eini_lowering *lo, const eini_task *t) {
  eini_speed speed = eini_core_speed(lo->rates, 1 / EINI_ADD_SECONDS);
  double bytes = 0, alone = 0;
  for (int s = 0; s < t->nstream; s++) {
    double n = (double)ein_dtype_size(t->ref[s].dtype);
    for (int i = 0; i < t->nindex; i++)
      if (t->stride[(int64_t)s * t->nindex + i] != 0) n *= (double)t->extent[i];
    if (t->ref[s].slot >= 0) bytes += n;
  }
  if (t->kind == EINI_TASK_MAP && lo->rates->hz > 0)
    alone = t->work * eini_value_cycles(&t->code) / lo->rates->hz * speed.flops *
            (double)ein_dtype_size((ein_dtype)t->code.type) / 8;
  speed.bandwidth = eini_core_bandwidth(lo->rates, bytes);
  const double one = eini_seconds(&speed, alone, bytes);
  const double start = lo->rates->start > 0 ? lo->rates->start : EINI_START_SECONDS;
  const double moves = lo->away != NULL ? eini_stay_seconds(lo, t, 0) : 0;
  return moves + fmin(one, one / lo->width + start);
}

// Where nobody but who has a memory of its own answered, the portable kernels stand against it.
static void eini_home_ask(const eini_lowering *lo, eini_task *t) {
  eini_candidate one = {"portable", "map", 0, 0};
  if (lo->away == NULL || t->kernels != lo->away || t->ncandidate > 1 || t->best->fixed ||
      lo->away->alone || lo->rates == NULL || !(lo->rates->copy_bw[EIN_MEMORY] > 0))
    return;
  one.seconds = eini_home_seconds(lo, t);
  t->candidate[t->ncandidate++] = one;
  if (!(one.seconds < t->best->seconds)) return;
  t->best = &t->candidate[t->ncandidate - 1];
  t->kernels = NULL;
  memset(&t->choice, 0, sizeof t->choice);
  t->choice.seconds = one.seconds;
}

// A copy as providers see it, over the live loops.
static ein_copy eini_copy_of(const eini_task *t) {
  ein_copy c;
  memset(&c, 0, sizeof c);
  c.n = t->live;
  c.extent = t->extent;
  c.src_stride = t->stride;
  c.dst_stride = t->stride + (int64_t)t->out * t->nindex;
  c.size = (int)ein_dtype_size(t->ref[t->out].dtype);
  c.away = t->away;
  return c;
}

// Asks the providers; without an answer the portable copy runs.
static ein_status eini_copy_choose(const eini_lowering *lo, eini_task *t) {
  const int stream[2] = {0, t->out};
  EINI_TRY(eini_stay_flags(lo, t, 2, stream, &t->away));
  ein_copy c = eini_copy_of(t);
  c.rates = lo->given;
  t->candidate = EINI_NEW(lo->a, eini_candidate, lo->nkernels + 1);
  if (t->candidate == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < lo->nkernels; i++) eini_ask(lo, t, lo->kernels[i], &c);
  eini_home_ask(lo, t);
  return EIN_OK;
}

// A map as providers see it, without what runs bind.
static ein_map eini_map_of(const eini_task *t) {
  ein_map m;
  memset(&m, 0, sizeof m);
  m.n = t->live;
  while (m.nfree < m.n && !t->reduced[m.nfree]) m.nfree++;
  m.extent = t->extent;
  m.nstream = t->nstream;
  m.pitch = t->nindex;
  m.stride = t->stride;
  m.dtype = t->dtype;
  m.nop = t->nop;
  m.nvalue = t->niota;
  m.nposition = t->pos >= 0;
  m.nextra = t->nextra;
  m.nextra_value = t->nepi_iota;
  m.code = &t->code;
  m.store = t->has_epi ? &t->epi : NULL;
  m.fold = (ein_fold)eini_min64(t->folder.fold, EIN_FOLD_USER);
  m.monoid = t->folder.user;
  m.count = t->folder.count;
  m.out_bytes = t->out_bytes;
  m.away = t->away;
  return m;
}

// Asks the providers; without an answer the portable map runs. Where the order of folds counts, or
// that all blocks do alike, nobody is asked, nor where states are not finished.
static ein_status eini_map_choose(const eini_lowering *lo, eini_task *t) {
  int asked = 0;
  for (int i = 0; i < lo->nkernels; i++) asked |= lo->kernels[i]->map_plan != NULL;
  if (!asked || lo->g->ordered || t->no_reduction || t->carries) return EIN_OK;
  t->candidate = EINI_NEW(lo->a, eini_candidate, lo->nkernels + 1);
  t->dtype = EINI_NEW(lo->a, ein_dtype, t->nstream);
  if (t->candidate == NULL || t->dtype == NULL) return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < t->nstream; s++) t->dtype[s] = t->ref[s].dtype;
  if (lo->maps) return EIN_OK;
  EINI_TRY(eini_stay_flags(lo, t, t->nstream, NULL, &t->away));
  ein_map m = eini_map_of(t);
  m.rates = lo->given;
  for (int i = 0; i < lo->nkernels; i++) eini_ask(lo, t, lo->kernels[i], &m);
  eini_home_ask(lo, t);
  return EIN_OK;
}

static int eini_exceeds(int64_t x, int64_t times, int64_t of) {  // x > times * of
  return (x - 1) / times >= of;
}

// The free loop threads cut: the outermost long one; of a chunk's, one that chunks cut as well.
static void eini_task_cut(eini_task *t) {
  t->cut = -1;
  int64_t best = 1;
  for (int k = 0; k < t->nouter; k++) {
    int64_t e = t->extent[t->outer[k]];
    if (eini_exceeds(e, 4, best)) best = e, t->cut = t->outer[k];
  }
  if (t->kind == EINI_TASK_COPY) {
    for (int k = 0; k < t->nchunk; k++) {
      int64_t e = t->extent[t->chunk[k]];
      if (eini_exceeds(e, 4, best)) best = e, t->cut = t->chunk[k];
    }
  } else if (t->nchunk > 0 && !t->chunk_reduced && t->extent[t->chunk[0]] > t->chunk_steps &&
             eini_exceeds(t->extent[t->chunk[0]], 16, best)) {
    t->cut = t->chunk[0];
  }
}

// ---- from statement to task ----

// A task has a stride for every loop and operand: one pass over thousands of operands with as many
// indices would take gigabytes.
#define EINI_STRIDES_MOST ((int64_t)1 << 26)

static ein_status eini_graph_lowers(const ein_graph *g, eini_diag *diag) {
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    if (((int64_t)s->noperand + 1) * s->nindex > EINI_STRIDES_MOST)
      return eini_fail(diag, EIN_ERR_TOO_LARGE, -1, 0, "a path in steps needs less",
                       "'%.60s' has too many indices and operands in one pass",
                       g->tensor[s->out].name);
  }
  return EIN_OK;
}

// The index values an expression uses become streams that count; *e is renumbered to them.
static ein_status eini_expr_iotas(eini_arena *a, eini_expr *e, int **index, int *n) {
  eini_node *copy = EINI_NEW(a, eini_node, e->n);
  *index = EINI_NEW(a, int, e->n);
  if (copy == NULL || *index == NULL) return EIN_ERR_NO_MEMORY;
  *n = 0;
  for (int64_t i = 0; i < e->n; i++) {
    copy[i] = e->node[i];
    if (copy[i].op != EIN_OP_INDEX) continue;
    int k = 0;
    while (k < *n && (*index)[k] != copy[i].arg[0]) k++;
    if (k == *n) (*index)[(*n)++] = copy[i].arg[0];
    copy[i].arg[0] = k;
  }
  e->node = copy;
  return EIN_OK;
}

#define EINI_RECIPROCAL_NODES 1024  // longer expressions are taken as they are

// Divisions by literals become products, which are faster: by powers of two, where both round
// alike, and those of operand `sum` (-1: none) also by others whose reciprocal is normal: what a
// fold rounds is not fixed to the last bit. The nodes are the caller's own.
static void eini_expr_reciprocals(eini_expr *e, int sum) {
  for (int i = 0; i < e->n && e->n <= EINI_RECIPROCAL_NODES; i++) {
    eini_node *v = &e->node[i];
    if (v->op != EIN_OP_DIV || (v->dtype != EIN_F32 && v->dtype != EIN_F64)) continue;
    eini_node *c = &e->node[v->arg[1]];
    const eini_node *x = &e->node[v->arg[0]];
    int uses = 0, power;
    for (int j = 0; j < e->n; j++)
      for (int q = 0; q < eini_node_args(&e->node[j]); q++)
        uses += eini_node_arg(e, &e->node[j], q) == v->arg[1];
    if (c->op != EIN_OP_CONST || c->dtype != v->dtype || uses != 1) continue;
    const double by = v->dtype == EIN_F32 ? (double)(float)c->re : c->re;
    const double one = v->dtype == EIN_F32 ? (double)(1 / (float)c->re) : 1 / by;
    const double least = v->dtype == EIN_F32 ? (double)FLT_MIN : DBL_MIN;
    const int alike = fabs(frexp(by, &power)) == 0.5;
    if (!alike && (x->op != EIN_OP_OPERAND || x->arg[0] != sum)) continue;
    if (!(fabs(one) >= least && fabs(one) < INFINITY && fabs(by) >= least)) continue;
    c->re = one;
    c->exact = 0;
    v->op = EIN_OP_MUL;
  }
}

// Wraps the root of a typed expression in a conversion to a computation type.
static ein_status eini_expr_to(eini_arena *a, eini_expr *e, ein_dtype t) {
  ein_dtype from = ein_dtype_compute((ein_dtype)e->node[e->n - 1].dtype);
  if (from == t) return EIN_OK;
  int id = eini_expr_add(a, e, EIN_OP_CAST, e->node[e->n - 1].pos, (int)e->n - 1, 1, 0);
  if (id < 0) return EIN_ERR_NO_MEMORY;
  e->node[id].dtype = (unsigned char)t;
  return EIN_OK;
}

// The fused consumer's expression: operand `via` becomes operand 0, the others follow.
static ein_status eini_epilogue_expr(const eini_lowering *lo, const eini_stmt *f, int via,
                                     eini_expr *e, int *extra, int *nextra) {
  *e = f->expr;
  e->node = EINI_NEW(lo->a, eini_node, f->expr.n);
  if (e->node == NULL) return EIN_ERR_NO_MEMORY;
  *nextra = 0;
  for (int k = 0; k < f->noperand; k++)
    if (k != via) extra[(*nextra)++] = k;
  for (int64_t i = 0; i < f->expr.n; i++) {
    e->node[i] = f->expr.node[i];
    if (e->node[i].op != EIN_OP_OPERAND) continue;
    int k = e->node[i].arg[0];
    e->node[i].arg[0] = k == via ? 0 : k < via ? k + 1 : k;
  }
  e->cap = f->expr.n;
  return EIN_OK;
}

// Column c of the consumer's index space as an index of the producer's, through the temporary.
static ein_status eini_fused_columns(const eini_lowering *lo, const eini_stmt *s,
                                     const eini_stmt *f, int via, int **column) {
  *column = EINI_NEW(lo->a, int, f->nindex + 1);
  if (*column == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < f->nindex; c++) (*column)[c] = -1;
  for (int r = 0; r < f->proj[via].rows; r++) {
    const eini_map *x = &f->proj[via], *y = &s->out_map;
    if (eini_map_terms(x, r) > 0 && eini_map_terms(y, r) > 0)
      (*column)[x->term[x->first[r]].index] = y->term[y->first[r]].index;
  }
  return EIN_OK;
}

static void eini_stream_iotas(const eini_lowering *lo, eini_task *t, int first, int n,
                              const int *index, const int *column) {
  for (int k = 0; k < n; k++) {
    int c = column == NULL ? index[k] : column[index[k]];
    t->ref[first + k].slot = -1;
    t->ref[first + k].dtype = EIN_I64;
    if (c >= 0) t->stride[(int64_t)(first + k) * t->nindex + c] = 1;
    for (int j = 0; j < lo->walk.nloop; j++) {
      const int moves = c >= 0 && c == lo->walk.loop[j];
      t->ref[first + k].step[j] = moves ? lo->mul[j] : 0;
      t->ref[first + k].offset += moves ? lo->from[j] : 0;
    }
  }
}

static ein_status eini_task_arrays(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  const eini_stmt_block block = eini_walk_block(&lo->walk, lo->len);
  int64_t cells, from;
  t->nindex = s->nindex;
  if (eini_mul_overflow(t->nstream, t->nindex, &cells)) return EIN_ERR_TOO_LARGE;
  t->extent = EINI_NEW(lo->a, int64_t, t->nindex);
  t->reduced = EINI_NEW(lo->a, unsigned char, t->nindex);
  t->stride = EINI_NEW(lo->a, int64_t, cells);
  t->ref = EINI_NEW(lo->a, eini_ref, t->nstream);
  if (t->extent == NULL || t->reduced == NULL || t->stride == NULL || t->ref == NULL)
    return EIN_ERR_NO_MEMORY;
  t->work = 1;
  t->order = s->order;
  if (lo->along > 0) t->along = lo->walk.loop[lo->along - 1] + 1;
  for (int i = 0; i < t->nindex; i++) {
    eini_block_range(s, &block, i, &from, &t->extent[i]);
    t->reduced[i] = i >= s->nfree;
    t->work *= (double)t->extent[i];
  }
  return EIN_OK;
}

// What follows a fold: the fused consumer f, or only the store of s itself.
typedef struct eini_epilogue {
  eini_expr e;
  int *extra;    // its operands other than the fold's result
  int *iota;     // indices it uses as values
  int *column;   // its columns as indices of the fold; NULL: no consumer
} eini_epilogue;

// Counts the epilogue's streams; ends with the number of the output's, behind `first` others.
static ein_status eini_epilogue_begin(const eini_lowering *lo, const eini_stmt *s,
                                      const eini_stmt *f, int via, int first, eini_task *t,
                                      eini_epilogue *ep) {
  memset(ep, 0, sizeof *ep);
  t->has_epi = f != NULL;
  if (f != NULL) {
    ep->extra = EINI_NEW(lo->a, int, f->noperand + 1);
    if (ep->extra == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_epilogue_expr(lo, f, via, &ep->e, ep->extra, &t->nextra));
    EINI_TRY(eini_expr_iotas(lo->a, &ep->e, &ep->iota, &t->nepi_iota));
    eini_expr_reciprocals(&ep->e, s->fold == EIN_FOLD_SUM && !lo->g->ordered ? 0 : -1);
    EINI_TRY(eini_fused_columns(lo, s, f, via, &ep->column));
  }
  t->extra = first;
  t->epi_iota = first + t->nextra;
  t->out = t->epi_iota + t->nepi_iota;
  t->carries = s->carry != NULL;
  t->nstream = t->out + (t->carries ? t->folder.nstate : 1);
  return eini_task_arrays(lo, s, t);
}

// Fills the epilogue's streams and the output's. acc: the type of the fold's result.
static ein_status eini_epilogue_end(const eini_lowering *lo, const eini_stmt *s,
                                    const eini_stmt *f, const eini_epilogue *ep, ein_dtype acc,
                                    eini_task *t) {
  const eini_stmt *last = f != NULL ? f : s;
  ein_dtype *od = EINI_NEW(lo->a, ein_dtype, t->nextra + 1);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  od[0] = acc;
  for (int k = 0; k < t->nextra; k++) {
    int op = ep->extra[k];
    EINI_TRY(eini_stream_tensor(lo, s, t, t->extra + k, f->operand[op], &f->proj[op],
                                ep->column));
    od[k + 1] = t->ref[t->extra + k].dtype;
  }
  if (f != NULL) {
    eini_stream_iotas(lo, t, t->epi_iota, t->nepi_iota, ep->iota, ep->column);
    EINI_TRY(eini_code_compile(lo->a, &ep->e, od, lo->g->function, lo->fast, &t->epi));
  }
  for (int k = 1; t->carries && k < t->folder.nstate; k++)
    EINI_TRY(eini_stream_tensor(lo, s, t, t->out + k, s->carry->state[k], &s->out_map,
                                ep->column));
  EINI_TRY(eini_stream_tensor(lo, s, t, t->out, last->out, &last->out_map, ep->column));
  t->store = eini_storage_find(lo->fast, EIN_OP_CAST, t->ref[t->out].dtype);
  return EIN_OK;
}

// The stream of positions, row-major over the reduced indices: of all points, where the statement
// has a block of them.
static ein_status eini_task_positions(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  const eini_carry *c = s->carry;
  int64_t stride = 1;
  t->ref[t->pos].slot = -1;
  t->ref[t->pos].dtype = EIN_I64;
  t->origin = EINI_NEW(lo->a, int, c == NULL ? 0 : s->nindex);
  t->origin_step = EINI_NEW(lo->a, int64_t, c == NULL ? 0 : s->nindex);
  if (t->origin == NULL || t->origin_step == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = s->nindex - 1; i >= s->nfree; i--) {
    t->stride[(int64_t)t->pos * t->nindex + i] = stride;
    if (c != NULL && c->origin[i] >= 0) {
      t->origin[t->norigin] = c->origin[i];
      t->origin_step[t->norigin++] = stride;
    }
    const int64_t extent = c == NULL ? s->index[i].extent : c->extent[i];
    if (eini_mul_overflow(stride, eini_max64(extent, 1), &stride)) return EIN_ERR_TOO_LARGE;
  }
  return EIN_OK;
}

// The fold of a statement, and its expression converted to the fold's value type.
static ein_status eini_task_fold(const eini_lowering *lo, const eini_stmt *s, eini_expr *e,
                                 eini_task *t) {
  ein_dtype value = (ein_dtype)e->node[e->n - 1].dtype;
  ein_dtype ft = eini_fold_value_dtype(lo->g, s->fold, value, s->numpy);
  const double count = eini_points(s, NULL, s->nfree, s->nindex);
  if (s->fold != EIN_FOLD_NONE) EINI_TRY(eini_expr_to(lo->a, e, ft));
  EINI_TRY(eini_folder_init(&t->folder, lo->g, s->fold, ft, count, lo->fast));
  if (count == 0 && ein_dtype_compute(value) == ft) t->folder.logical = value;
  t->no_reduction = count == 0;
  return EIN_OK;
}

// Streams and codes of a statement s with an optional consumer f fused through operand via.
static ein_status eini_task_streams(const eini_lowering *lo, const eini_stmt *s,
                                    const eini_stmt *f, int via, eini_task *t) {
  eini_expr e = s->expr;
  eini_epilogue ep;
  int *iota;
  EINI_TRY(eini_expr_iotas(lo->a, &e, &iota, &t->niota));
  eini_expr_reciprocals(&e, -1);
  e.cap = e.n;
  EINI_TRY(eini_task_fold(lo, s, &e, t));
  int arg = eini_fold_counts(s->fold);
  t->nop = s->noperand;
  t->pos = arg ? t->nop + t->niota : -1;
  EINI_TRY(eini_epilogue_begin(lo, s, f, via, t->nop + t->niota + arg, t, &ep));
  ein_dtype *od = EINI_NEW(lo->a, ein_dtype, s->noperand + 1);
  if (od == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    EINI_TRY(eini_stream_tensor(lo, s, t, k, s->operand[k], &s->proj[k], NULL));
    od[k] = t->ref[k].dtype;
  }
  eini_stream_iotas(lo, t, t->nop, t->niota, iota, NULL);
  if (arg) EINI_TRY(eini_task_positions(lo, s, t));
  EINI_TRY(eini_code_compile(lo->a, &e, od, lo->g->function, lo->fast, &t->code));
  return eini_epilogue_end(lo, s, f, &ep, t->folder.result, t);
}

// A copy keeps the bits: one operand, no operation, equal storage dtypes. (bool is normalised.)
static int eini_task_is_copy(const eini_task *t, const eini_stmt *s) {
  return t->folder.fold == EIN_FOLD_NONE && t->nop == 1 && s->expr.n == 1 &&
         s->expr.node[0].op == EIN_OP_OPERAND && t->ref[0].dtype == t->ref[t->out].dtype &&
         t->ref[0].dtype != EIN_BOOL;
}

// Outputs that exceed the caches are stored past them where chunks are runs of the output.
static void eini_task_stream(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  if (lo->walk.nloop > 0 && lo->local[t->fused != NULL ? t->fused->out : s->out]) return;
  t->out_bytes = (double)ein_dtype_size(t->ref[t->out].dtype) * eini_points(s, NULL, 0, s->nfree);
  if (lo->fast == NULL || lo->fast->stream_fn == NULL || t->kind != EINI_TASK_MAP) return;
  const double past = lo->given != NULL && lo->given->stream_bytes > 0
                          ? lo->given->stream_bytes : (double)lo->fast->stream_bytes;
  if (t->out_bytes <= past || (t->table != NULL && t->table[t->out] != NULL) || t->nchunk == 0 ||
      t->chunk_reduced ||
      t->stride[(int64_t)t->out * t->nindex + t->chunk[t->nchunk - 1]] != 1) {
    return;
  }
  t->stream = lo->fast;
  for (int o = 0, large = 0, all; o < t->nop; o++) {
    for (int i = all = 0; i < t->nindex; i++)
      all += t->extent[i] == 1 || t->stride[(int64_t)o * t->nindex + i] != 0;
    if (all == t->nindex) t->ahead = large++ > 0 ? 0 : o + 1;
  }
}

// ---- functions over blocks ----

// The block of a side: its loops, and whether it lies there as the function wants it.
static ein_status eini_operation_side_of(const eini_lowering *lo, const eini_stmt *s, eini_task *t,
                                   int operand, eini_operation_side *x) {
  const ein_dtype own = t->operation->op->dtype;
  int axis[EINI_BLOCK_AXES], *loop;
  x->stream = operand < 0 ? t->out : operand;
  x->n = eini_operator_axes(s, operand, axis);
  if ((x->loop = loop = EINI_NEW(lo->a, int, x->n)) == NULL) return EIN_ERR_NO_MEMORY;
  x->count = 1;
  x->placed = t->ref[x->stream].dtype == own;
  for (int d = x->n - 1; d >= 0; d--) {
    loop[d] = axis[d];
    const int64_t n = t->extent[axis[d]];
    x->placed &= n == 1 || t->stride[(int64_t)x->stream * t->nindex + axis[d]] == x->count;
    if (eini_mul_overflow(x->count, n, &x->count)) return EIN_ERR_TOO_LARGE;
  }
  if (x->count > (int64_t)1 << 48) return EIN_ERR_TOO_LARGE;
  if (operand < 0) return EIN_OK;
  const ein_dtype stored = t->ref[x->stream].dtype;
  eini_expr e;
  memset(&e, 0, sizeof e);
  if (eini_expr_add(lo->a, &e, EIN_OP_OPERAND, -1, 0, 0, 0) < 0) return EIN_ERR_NO_MEMORY;
  e.node[0].dtype = (unsigned char)stored;
  EINI_TRY(eini_expr_to(lo->a, &e, own));
  EINI_TRY(eini_code_compile(lo->a, &e, &stored, NULL, lo->fast, &x->code));
  x->code.chunk = EINI_CHUNK;
  return EIN_OK;
}

// The task of a function over blocks: where nothing is cut, its blocks are those of the whole.
static ein_status eini_operation_lower(const eini_lowering *lo, const eini_stmt *s, eini_task *t) {
  eini_signature x;
  eini_operation *b = t->operation = EINI_NEW(lo->a, eini_operation, 1);
  eini_operating w;
  int64_t best = 1;
  if (b == NULL) return EIN_ERR_NO_MEMORY;
  b->op = eini_stmt_operator(lo->g, s);
  if (b->op == NULL || !eini_signature_read(b->op->signature, &x)) return EIN_ERR_INTERNAL;
  EINI_TRY(eini_operator_sizes(lo->g, s, &x, b->size, NULL));
  t->kind = EINI_TASK_OPERATOR;
  t->nop = t->out = s->noperand;
  t->pos = -1;
  t->nstream = t->out + 1;
  b->nin = x.nin;
  b->nout = x.nout;
  EINI_TRY(eini_task_arrays(lo, s, t));
  for (int k = 0; k < s->noperand; k++)
    EINI_TRY(eini_stream_tensor(lo, s, t, k, s->operand[k], &s->proj[k], NULL));
  EINI_TRY(eini_stream_tensor(lo, s, t, t->out, s->out, &s->out_map, NULL));
  b->side = EINI_NEW(lo->a, eini_operation_side, (int64_t)b->nin + 1);
  b->from = EINI_NEW(lo->a, int64_t, (int64_t)b->nout + 1);
  b->outer = EINI_NEW(lo->a, int, s->nfree);
  if (b->side == NULL || b->from == NULL || b->outer == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < b->nin; k++)
    EINI_TRY(eini_operation_side_of(lo, s, t, eini_operator_operand(s, k), &b->side[k]));
  EINI_TRY(eini_operation_side_of(lo, s, t, -1, &b->side[b->nin]));
  for (int o = 0; o < b->nout; o++)
    b->from[o + 1] = b->from[o] + eini_signature_count(&x, b->nin + o, b->size);
  for (int i = 0; i < s->nfree; i++) {
    if (eini_index_whole(s, i)) continue;
    b->outer[b->nouter++] = i;
    if (t->extent[i] > best) best = t->extent[i], t->cut = i;
  }
  t->work *= fmax(1, s->block_flops);
  t->live = t->nindex;
  t->scratch = eini_operation_layout(t, &w, NULL);
  return EIN_OK;
}

// Makes the map-reduce task. *empty: there is nothing to do at all.
static ein_status eini_task_lower(const eini_lowering *lo, const eini_stmt *s, const eini_stmt *f,
                             int via, eini_task *t, int *empty) {
  memset(t, 0, sizeof *t);
  t->cut = -1;
  *empty = eini_stmt_empty(s, 0, s->nfree);
  t->stmt = s;
  t->fused = f;
  if (*empty) return EIN_OK;
  if (s->fold == EIN_FOLD_BLOCK) return eini_operation_lower(lo, s, t);
  EINI_TRY(eini_task_streams(lo, s, f, via, t));
  if (eini_task_is_copy(t, s) && !lo->maps) t->kind = EINI_TASK_COPY;
  int live = eini_task_merge(t);
  if (t->no_reduction) {  // no loop may run over nothing: only the free ones stay
    for (int i = live - 1; i >= 0; i--)
      if (t->reduced[i]) eini_task_drop(t, i, &live);
  }
  EINI_TRY(t->kind == EINI_TASK_COPY ? eini_task_plane(lo->a, t, live)
                                     : eini_task_chunk(lo->a, t, live));
  t->live = live;
  if (t->kind == EINI_TASK_COPY) EINI_TRY(eini_copy_choose(lo, t));
  if (t->folder.fold != EIN_FOLD_NONE && t->nchunk == 0) t->chunk_reduced = 0;
  eini_task_cut(t);
  eini_task_stream(lo, s, t);
  if (t->kind == EINI_TASK_MAP) EINI_TRY(eini_map_choose(lo, t));
  t->code.chunk = eini_chunk_of(t->chunk_len);
  t->epi.chunk = t->chunk_reduced ? eini_chunk_of(1) : t->code.chunk;
  eini_nest w;
  eini_provided v;
  memset(&w, 0, sizeof w);
  if (t->kernels == NULL) t->scratch = eini_nest_layout(t, &w, NULL);
  else t->scratch = eini_provided_layout(t, &v, NULL) + t->choice.scratch;
  return EIN_OK;
}
