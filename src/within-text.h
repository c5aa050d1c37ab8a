// ================================================================================================
// >>within-text  what was found, as commands
// Takes states of the search; gives schedules, whose own walk says what they move and take.
// ================================================================================================

typedef struct eini_within_said {
  const ein_graph *g;
  ein_decomp_stmt s;        // the words of the statement at hand
  ein_parts p;
  const eini_streamed *plan;
  int index[EINI_STREAM_LOOPS];  // of its loops, in these words
  char was[256 * EINI_NAMES_MAX];
} eini_within_said;

// A loop of index c behind commands: the whole of it in a step.
static void eini_say_inside(eini_text *t, const eini_within_said *x, int c) {
  for (int l = 0; l < x->plan->nloop; l++)
    if (x->index[l] == c) {
      eini_say_half(t, &x->s, c, 'w');
      return;
    }
  for (int k = 0; k < x->p.norder; k++)
    if (x->p.order[k] == c) {
      eini_say_half(t, &x->s, c, 'i');
      return;
    }
  eini_say(t, "%s", x->s.index[c]);
}

// The loop that the first `depth` loops over time end with; 0: the last over places.
static void eini_say_under(eini_text *t, const eini_within_said *x, const char *name, int depth) {
  eini_say(t, "communicate(%s, ", name);
  if (depth > 0) eini_say_half(t, &x->s, x->index[depth - 1], 's');
  else eini_say_half(t, &x->s, x->p.order[x->p.norder - 1], 'o');
  eini_say(t, ")\n");
}

// Loops over time, and what is fetched in which.
static void eini_say_time(eini_text *t, const eini_within_said *x, const eini_stmt *s,
                          const unsigned char *placed) {
  const eini_streamed *plan = x->plan;
  for (int l = 0; l < plan->nloop; l++) {
    const int c = x->index[l];
    int cut = 0;
    for (int k = 0; k < x->p.norder; k++) cut |= x->p.order[k] == c;
    eini_say(t, "divide(");
    if (cut) eini_say_half(t, &x->s, c, 'i');
    else eini_say(t, "%s", x->s.index[c]);
    eini_say(t, ", ");
    eini_say_half(t, &x->s, c, 's');
    eini_say(t, ", ");
    eini_say_half(t, &x->s, c, 'w');
    eini_say(t, ", %lld)\n", (long long)plan->parts[l]);
  }
  eini_say(t, "reorder(");
  for (int k = 0; k < x->p.norder; k++) {
    eini_say(t, k > 0 ? ", " : "");
    eini_say_half(t, &x->s, x->p.order[k], 'o');
  }
  for (int l = 0; l < plan->nloop; l++) {
    eini_say(t, ", ");
    eini_say_half(t, &x->s, x->index[l], 's');
  }
  for (int c = 0; c < x->s.nindex; c++) {
    eini_say(t, ", ");
    eini_say_inside(t, x, c);
  }
  eini_say(t, ")\n");
  for (int k = 0; k <= s->noperand; k++) {
    const int of = k < s->noperand ? s->operand[k] : s->out;
    if ((k == s->noperand || eini_share_operand(s, of) == k) && placed[of])
      eini_say_under(t, x, x->g->tensor[of].name, plan->depth[k]);
  }
}

// Where an input lies in shares: over the machine of its first reader, or where an axis is cut
// twice over one with a level for each dimension.
static void eini_say_share(eini_text *t, eini_within_said *x, const eini_stmt *s, int tensor) {
  const eini_tensor *e = &x->g->tensor[tensor];
  int64_t left[EINI_NAMES_MAX];
  int axis[EINI_CUTS_MAX], twice = 0;
  (void)eini_share_axes(s, eini_share_operand(s, tensor), e->shape, x->p.cut, x->p.order,
                        x->p.norder, left, axis);
  for (int k = 0; k < x->p.norder; k++)
    for (int i = 0; i < k; i++) twice |= axis[k] >= 0 && axis[i] == axis[k];
  if (twice) {
    char dims[256 * EINI_NAMES_MAX];
    eini_text m = eini_text_of(dims, sizeof dims);
    for (int k = 0; k < x->p.norder; k++)
      eini_say(&m, "%sl%d[g%d=%lld]", k > 0 ? ", " : "", k, k,
               (long long)x->p.cut[x->p.order[k]]);
    eini_say_machine(t, x->was, sizeof x->was, dims);
  } else {
    eini_say_cuts_over(t, &x->s, &x->p, x->was, sizeof x->was);
  }
  eini_say(t, "place %s ", e->name);
  for (int k = 0; k < x->p.norder; k++) {
    if (k == 0 || twice) {
      eini_say(t, k > 0 ? ", " : "");
      for (int r = 0; r < e->rank; r++) eini_say_axis(t, r);
      eini_say(t, "->");
    }
    if (axis[k] < 0) eini_say(t, "*");
    else eini_say_axis(t, axis[k]);
  }
  eini_say(t, "\n");
}

// A statement's words. Where nothing is cut, but goes in steps, a dimension of one point.
static ein_status eini_within_words(eini_arena *a, const eini_within *f,
                                    const eini_within_state *of, int i, eini_within_said *x) {
  const eini_stmt *s = &f->dc.g->stmt[i];
  const eini_dform *form = eini_form(&f->dc, i);
  const int n = s->nindex, *at = f->dc.node[i].at;
  const int64_t w = of->label[i];
  const char **name = EINI_NEW(a, const char *, n);
  int *order = EINI_NEW(a, int, 1);
  if (name == NULL || order == NULL) return EIN_ERR_NO_MEMORY;
  memset(&x->s, 0, sizeof x->s);
  memset(&x->p, 0, sizeof x->p);
  for (int c = 0; c < n; c++) name[c] = s->index[c].name;
  x->s.out = f->dc.g->tensor[s->out].name;
  x->s.nindex = n;
  x->s.nfree = s->nfree;
  x->s.index = name;
  x->plan = of->plan[i];
  x->p.nindex = n;
  x->p.cut = form->ways.cut + w * n;
  x->p.norder = form->ways.norder[w];
  x->p.order = form->ways.order + w * n;
  EINI_TRY(eini_parts_respell(a, x->p, at, 1, &x->p));
  for (int l = 0; l < x->plan->nloop; l++) {
    x->index[l] = x->plan->index[l];
    for (int c = 0; c < n && at != NULL; c++)
      if (at[c] == x->plan->index[l]) x->index[l] = c;
  }
  if (x->p.norder > 0 || n == 0) return EIN_OK;
  order[0] = x->plan->nloop > 0 ? x->index[0] : 0;
  x->p.order = order;
  x->p.norder = 1;
  return EIN_OK;
}

static ein_status eini_within_say(eini_arena *a, const eini_within *f, const eini_within_state *of,
                               eini_text *t) {
  const ein_graph *g = f->dc.g;
  eini_within_said *x = EINI_NEW(a, eini_within_said, 1);
  unsigned char *placed = EINI_NEW(a, unsigned char, g->ntensor);
  if (x == NULL || placed == NULL) return EIN_ERR_NO_MEMORY;
  x->g = g;
  for (int k = 0; k < g->ntensor; k++) placed[k] = g->tensor[k].role != EIN_ROLE_INPUT;
  for (int k = f->dc.nnode - f->dc.npinned; k < f->dc.nnode; k++) {
    const eini_dform *form = eini_form(&f->dc, k);
    const eini_stmt *s = f->dc.node[k].s;
    ein_parts p;
    memset(&p, 0, sizeof p);
    p.nindex = s->nindex;
    p.cut = form->ways.cut;
    p.norder = form->ways.norder[0];
    p.order = form->ways.order;
    placed[s->out] = 1;
    eini_say_pin(t, g->tensor[s->out].name, &p, x->was, sizeof x->was);
  }
  for (int i = 0; i < f->dc.nnode - f->dc.npinned; i++) {
    const eini_stmt *s = &g->stmt[i];
    EINI_TRY(eini_within_words(a, f, of, i, x));
    for (int k = 0; k < s->noperand; k++) {
      const int tensor = s->operand[k];
      if (of->by[tensor] != -2 || f->first[tensor] != i || eini_share_operand(s, tensor) < k)
        continue;
      placed[tensor] = 1;
      eini_say_share(t, x, s, tensor);
    }
    if (s->nindex == 0) continue;
    eini_say_cuts_over(t, &x->s, &x->p, x->was, sizeof x->was);
    eini_say_cuts(t, g, i, &x->s, &x->p);
    if (x->plan->nloop > 0) eini_say_time(t, x, s, placed);
  }
  if (t->at == 0) eini_say(t, "machine g=1\n");
  return EIN_OK;
}

// ---- what was found, gone through ----

typedef struct eini_within_best {
  ein_ctx *ctx;
  double limit;             // that must not be passed
  double bytes, peak;       // of what was found
  ein_schedule *s;          // NULL: nothing
} eini_within_best;

// *found: it fits.
static ein_status eini_within_look(eini_within *f, const eini_within_state *of,
                                   eini_within_best *b, int *found) {
  eini_arena a;
  ein_schedule_desc how;
  ein_schedule *s = NULL;
  double bytes = 0, peak = 0;
  eini_text t = eini_text_of(NULL, 0);
  eini_arena_init(&a, &f->dc.arena.al);
  ein_status st = eini_within_say(&a, f, of, &t);
  const size_t n = t.at + 1;
  char *text = st == EIN_OK ? EINI_NEW(&a, char, (int64_t)n) : NULL;
  if (st == EIN_OK && text == NULL) st = EIN_ERR_NO_MEMORY;
  t = eini_text_of(text, n);
  if (st == EIN_OK) st = eini_within_say(&a, f, of, &t);
  memset(&how, 0, sizeof how);
  how.text = text;
  how.places = f->dc.desc->p;
  how.machine = f->dc.desc->machine;
  if (st == EIN_OK) st = ein_schedule_create(b->ctx, f->dc.g, &how, &s);
  double *place = st == EIN_OK ? EINI_NEW(&a, double, how.places) : NULL;
  if (st == EIN_OK && place == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = ein_schedule_peaks(b->ctx, s, f->dc.desc->inputs, NULL, place);
  for (int64_t q = 0; q < how.places && st == EIN_OK; q++) peak = fmax(peak, place[q]);
  for (int k = 0; k < f->dc.g->nstmt && st == EIN_OK && peak <= b->limit; k++) {
    ein_schedule_info info;
    st = ein_schedule_cost(b->ctx, s, k, NULL, NULL, &info);
    bytes += (double)info.bytes;
  }
  eini_arena_free(&a);
  const int better = st == EIN_OK && peak <= b->limit &&
                     (b->s == NULL || bytes < b->bytes || (bytes <= b->bytes && peak < b->peak));
  *found |= st == EIN_OK && peak <= b->limit;
  if (better) {
    ein_schedule *swap = b->s;
    b->s = s, b->bytes = bytes, b->peak = peak;
    s = swap;
  }
  ein_schedule_destroy(s);
  return st == EIN_ERR_TOO_LARGE ? EIN_OK : st;  // too many steps to go through
}

enum { EINI_WITHIN_LOOKS = 6, EINI_WITHIN_PASSES = 4, EINI_WITHIN_SMALL = 8 };

// Searches with a limit; of a small graph in several orders of states, else until one is found.
static ein_status eini_within_at(eini_within *f, double limit, eini_within_best *b) {
  static const double per_byte[EINI_WITHIN_PASSES] = {0, 1, 16, 1e6};
  int found = 0;
  b->limit = limit;
  for (int round = 0; round < 3 && !found; round++) {
    f->limit = limit * (1 - 0.06 * round);  // ragged blocks may take more than was thought
    for (int pass = 0; pass < EINI_WITHIN_PASSES; pass++) {
      if (found && f->dc.nnode > EINI_WITHIN_SMALL) break;
      f->per_byte = per_byte[pass];
      EINI_TRY(eini_within_pass(f));
      for (int64_t i = 0; i < f->n && i < EINI_WITHIN_LOOKS; i++) {
        int64_t best = i;
        for (int64_t k = i + 1; k < f->n; k++)
          if (f->now[k].cost < f->now[best].cost) best = k;
        const eini_within_state swap = f->now[i];
        f->now[i] = f->now[best];
        f->now[best] = swap;
        EINI_TRY(eini_within_look(f, &f->now[i], b, &found));
      }
    }
  }
  return EIN_OK;
}

// ---- the whole ----

static ein_status eini_within_tensors(eini_within *f) {
  eini_decomposer *dc = &f->dc;
  const ein_graph *g = dc->g;
  const int nstmt = dc->nnode - dc->npinned;
  for (int i = 0; i < dc->nnode; i++)
    f->last[i] = i >= nstmt || g->tensor[dc->node[i].s->out].role == EIN_ROLE_OUTPUT ? dc->nnode
                                                                                     : i;
  for (int64_t e = 0; e < f->edges.n; e++) {
    const eini_dedge *d = &f->edges.e[e];
    f->at[d->y + 1] = e + 1;
    if (f->last[d->x] < d->y) f->last[d->x] = d->y;
  }
  for (int i = 0; i < dc->nnode; i++) f->at[i + 1] = eini_max64(f->at[i + 1], f->at[i]);
  for (int t = 0; t < g->ntensor; t++) f->first[t] = -1;
  for (int y = nstmt - 1; y >= 0; y--)
    for (int k = 0; k < dc->node[y].s->noperand; k++) {
      const int t = dc->node[y].s->operand[k];
      if (g->tensor[t].role == EIN_ROLE_INPUT && dc->tensor_node[t] < 0) f->first[t] = y;
    }
  for (int t = 0; t < g->ntensor; t++) {
    double bytes = eini_element_bytes(dc, t) / (double)dc->p;
    for (int r = 0; r < g->tensor[t].rank; r++) bytes *= (double)g->tensor[t].shape[r];
    for (int y = 0; y < f->first[t] && dc->desc->inputs != EIN_INPUTS_OUTSIDE; y++)
      f->rest[y] += bytes;
  }
  return EIN_OK;
}

static ein_status eini_within_states(eini_within *f) {
  eini_arena *a = &f->dc.arena;
  const int64_t n = f->dc.nnode, m = f->dc.g->ntensor;
  f->now = EINI_NEW(a, eini_within_state, EINI_WITHIN_CAP + 1);
  f->next = EINI_NEW(a, eini_within_state, EINI_WITHIN_CAP + 1);
  if (f->now == NULL || f->next == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < 2 * (EINI_WITHIN_CAP + 1); i++) {
    eini_within_state *s = i <= EINI_WITHIN_CAP ? &f->now[i] : &f->next[i - EINI_WITHIN_CAP - 1];
    s->label = EINI_NEW(a, int, n);
    s->plan = EINI_NEW(a, const eini_streamed *, n);
    s->input = EINI_NEW(a, double, m);
    s->by = EINI_NEW(a, int, m);
    if (s->label == NULL || s->plan == NULL || s->input == NULL || s->by == NULL)
      return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Room for the largest of all statements.
static ein_status eini_within_make(eini_within *f) {
  eini_arena *a = &f->dc.arena;
  const eini_decomposer *dc = &f->dc;
  const int64_t n = dc->nnode, wide = EINI_STREAM_LOOPS + 1;
  int64_t index = 1, rank = 1, operand = 1, ways = 1;
  for (int i = 0; i < n; i++) {
    const eini_stmt *s = dc->node[i].s;
    index = eini_max64(index, s->nindex);
    operand = eini_max64(operand, s->noperand + 1);
    rank = eini_max64(rank, s->out_map.rows);
    for (int k = 0; k < s->noperand; k++) rank = eini_max64(rank, s->proj[k].rows);
    ways = eini_max64(ways, eini_form(dc, i)->ways.n);
  }
  eini_stream_task *t = &f->task;
  int64_t *room = EINI_NEW(a, int64_t, (wide + 1) * index + 2 * rank);
  f->last = EINI_NEW(a, int, n);
  f->at = EINI_NEW(a, int64_t, n + 1);
  f->first = EINI_NEW(a, int, dc->g->ntensor);
  f->rest = EINI_NEW(a, double, n);
  f->memo = EINI_NEW(a, eini_within_memo *, n);
  f->moved = EINI_NEW(a, double, operand);
  f->share = EINI_NEW(a, double, ways * EINI_WITHIN_SHARED);
  f->shared = EINI_NEW(a, double, ways * EINI_WITHIN_SHARED);
  f->heap = EINI_NEW(a, eini_ranked, (ways << EINI_WITHIN_SHARED) * EINI_WITHIN_CAP);
  t->mem = EINI_NEW(a, double, 2 * operand * wide);
  t->acc = EINI_NEW(a, int, 2 * operand);
  t->got.depth = EINI_NEW(a, int, 2 * operand);
  if (room == NULL || f->last == NULL || f->at == NULL || f->first == NULL || f->rest == NULL ||
      f->memo == NULL || f->moved == NULL || f->share == NULL || f->shared == NULL ||
      f->heap == NULL || t->mem == NULL || t->acc == NULL || t->got.depth == NULL)
    return EIN_ERR_NO_MEMORY;
  t->g = dc->g;
  t->alone = dc->desc->p == 1;
  t->zero = room;
  t->hi = room + index, t->from = t->hi + wide * index, t->to = t->from + rank;
  t->bytes = t->mem + operand * wide;
  t->pick = t->acc + operand;
  t->best.depth = t->got.depth + operand;
  for (int i = 0; i < n; i++) {
    if (dc->form_of[i] != i) continue;
    f->memo[i] = EINI_NEW(a, eini_within_memo, eini_form(dc, i)->ways.n << EINI_WITHIN_SHARED);
    if (f->memo[i] == NULL) return EIN_ERR_NO_MEMORY;
  }
  EINI_TRY(eini_within_states(f));
  return eini_within_tensors(f);
}

// The tables of the search: bytes, with as many tasks as there are places.
static ein_status eini_within_tables(eini_within *f) {
  eini_decomposer *dc = &f->dc;
  eini_formwork work;
  EINI_TRY(eini_nodes_make(dc));
  EINI_TRY(eini_constrain(dc));
  EINI_TRY(eini_decompose_method(dc, eini_method_find(dc->desc->method)));
  EINI_TRY(eini_edges_find(dc, &f->edges));
  dc->most = eini_ways_most(dc);
  EINI_TRY(eini_dforms_find(dc, &work));
  EINI_TRY(eini_dforms_place(dc, &work));
  EINI_TRY(eini_edges_share(dc, &f->edges));
  EINI_TRY(eini_edges_fit(dc, &f->edges));
  return eini_sums_make(dc, &f->edges, &eini_way_labels, &f->net);
}

// The least memory for which something is found, within a hundredth or so.
static ein_status eini_within_least(eini_within *f, double memory, eini_within_best *b,
                                    double *least) {
  double low = memory, high = INFINITY;
  for (int i = 0; i < 60 && !(high / low < 1.01); i++) {
    EINI_TRY(eini_within_at(f, high < INFINITY ? sqrt(low * high) : 2 * low, b));
    if (b->s != NULL) high = fmin(b->peak, b->limit);
    else low = b->limit;
    ein_schedule_destroy(b->s);
    b->s = NULL;
  }
  *least = high;
  return EIN_OK;
}

// last: when nothing is found, that is an error.
static ein_status eini_within_run(eini_within *f, int last, eini_within_best *b) {
  const double memory = f->dc.machine.memory;
  double least = 0;
  f->dc.machine.memory = 0;  // ways are not refused for it
  EINI_TRY(eini_within_tables(f));
  EINI_TRY(eini_within_make(f));
  EINI_TRY(eini_within_at(f, memory > 0 ? memory : INFINITY, b));
  if (b->s != NULL || !last) return EIN_OK;
  EINI_TRY(eini_within_least(f, memory, b, &least));
  return eini_fail(f->dc.diag, EIN_ERR_TOO_LARGE, -1, 0, "more places have less each", least <
                   INFINITY ? "no schedule found keeps every place within %.0f bytes; %.0f are "
                   "enough" : "no schedule found keeps every place within %.0f bytes", memory,
                   least);
}

// Searches with so many tasks; *b: the best so far.
static ein_status eini_within_try(ein_ctx *ctx, const ein_graph *graph,
                                  const ein_decompose_desc *desc, int64_t tasks, int last,
                                  eini_within_best *b) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  eini_within *f = EINI_NEW(&arena, eini_within, 1);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  eini_arena_init(&f->dc.arena, &arena.al);
  f->dc.diag = eini_diag_of(ctx);
  f->dc.g = graph;
  f->dc.desc = desc;
  f->dc.p = tasks;
  f->dc.ndivisor = eini_divisors(f->dc.p, f->dc.divisor);
  f->dc.machine = eini_machine_of(desc->machine);
  const ein_status st = eini_within_run(f, last, b);
  eini_arena_free(&f->dc.arena);
  eini_arena_free(&arena);
  return st;
}

// The most points of a grid nearly square in p: so many tasks may move less than more do.
static int64_t eini_nearly_square(int64_t p) {
  int64_t root = (int64_t)sqrt((double)p);
  while (root * root > p) root--;
  while ((root + 1) * (root + 1) <= p) root++;
  return p / root * root;
}

EIN_API ein_status ein_schedule_fit(ein_ctx *ctx, const ein_graph *graph,
                                    const ein_decompose_desc *desc, ein_schedule **out) {
  ein_decompose_desc how;
  eini_within_best best;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  EINI_TRY(eini_validate_decompose(ctx, graph, desc));
  how = *desc;
  how.cost = EIN_COST_BYTES;
  how.fewer = 0;
  how.max_vectors = how.max_vectors > 0 ? how.max_vectors : 256;
  memset(&best, 0, sizeof best);
  best.ctx = ctx;
  const int64_t square = eini_nearly_square(desc->p);
  const int two = square < desc->p && graph->nstmt <= EINI_WITHIN_SMALL && desc->npin == 0 &&
                  desc->nparts == 0;
  ein_status st = EIN_OK;
  if (two) st = eini_within_try(ctx, graph, &how, square, 0, &best);
  if (st == EIN_OK) st = eini_within_try(ctx, graph, &how, desc->p, 1, &best);
  eini_fail_status(ctx, st);
  if (st == EIN_OK && ctx != NULL) eini_diag_reset(eini_diag_of(ctx), NULL, 0);
  if (st == EIN_OK) *out = best.s;
  else ein_schedule_destroy(best.s);
  return st;
}
