// ================================================================================================
// >>schedule  schedules of graphs
// Takes a graph and commands; gives grid, distributions and nests, checked, and what they move.
// ================================================================================================

// ---- commands ----

static ein_status eini_do_machine(eini_scheduler *w, const eini_command *c) {
  eini_parser *p = &w->p;
  ein_grid *g = EINI_NEW(p->arena, ein_grid, 1);
  if (g == NULL) return eini_pmem(p);
  EINI_TRY(eini_grid_make(p, c, w->amounts.places, g));
  for (int k = 0; k < g->ndim; k++) {
    w->amounts.name[k] = g->dim[k].name;
    w->amounts.value[k] = g->dim[k].extent;
  }
  w->amounts.n = g->ndim;
  w->grid = g;
  if (w->to->grid == NULL) w->to->grid = g;
  return EIN_OK;
}

static int eini_scheduled_tensor(eini_scheduler *w, eini_span at) {
  const char *text = w->p.s + at.pos;
  eini_near near;
  eini_near_init(&near, text, at.len);
  for (int t = 0; t < w->g->ntensor; t++) {
    if (eini_word_is(text, at.len, w->g->tensor[t].name)) return t;
    eini_near_try(&near, w->g->tensor[t].name, (int64_t)strlen(w->g->tensor[t].name));
  }
  eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&at), eini_near_hint(&near), "no tensor that is needed is "
            "called '%.*s'", eini_cut(text, at.len), text);
  return -1;
}

static void eini_do_place(eini_scheduler *w, const eini_command *c) {
  eini_parser *p = &w->p;
  if (w->grid == NULL)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(&c->word), "machine gx=.., gy=.. before it",
              "there is no machine to place it on");
  for (int i = 0; i < c->list[0].n && p->st == EIN_OK; i++) {
    const int t = eini_scheduled_tensor(w, c->list[0].name[i]);
    ein_distribution *d = EINI_NEW(p->arena, ein_distribution, 1);
    if (d == NULL) eini_pmem(p);
    else if (t >= 0 && w->to->place[t] != NULL)
      eini_perr(p, EIN_ERR_NAME, EINI_AT(&c->list[0].name[i]), NULL, "'%.60s' is placed already",
                w->g->tensor[t].name);
    if (p->st != EIN_OK) return;
    eini_distribution_make(p, c, w->g->tensor[t].rank, w->grid, d);
    w->to->place[t] = d;
    w->to->said[t] = 1;
  }
}

enum { EINI_STMT_UNKNOWN = -2 };  // it was named, and there is none: its commands are passed over

static void eini_do_on(eini_scheduler *w, const eini_command *c) {
  const eini_span at = c->list[0].name[0];
  const int t = eini_scheduled_tensor(w, at);
  const int64_t n = t < 0 ? 0 : w->g->tensor[t].nstmt;
  int64_t left = c->amount[0];
  w->stmt = t < 0 ? EINI_STMT_UNKNOWN : -1;
  if (t < 0) return;
  if (n == 0)
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&at), NULL, "'%.60s' is an input",
              w->g->tensor[t].name);
  else if (n > 1 && left == 0)
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&at), "the first is NAME 1", "'%.60s' has %lld "
              "statements", w->g->tensor[t].name, (long long)n);
  else if (left > n)
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&c->number), NULL, "'%.60s' has %lld statement%s",
              w->g->tensor[t].name, (long long)n, n == 1 ? "" : "s");
  for (int k = 0; k < w->g->nstmt && w->p.st == EIN_OK && w->stmt < 0; k++)
    if (w->g->stmt[k].out == t && --left <= 0) w->stmt = k;
}

static void eini_do_command(eini_scheduler *w, const eini_command *c) {
  static void (*const calls[EINI_COMMANDS])(eini_scheduler *, eini_loops *,
                                            const eini_command *) = {
      NULL, NULL, NULL, eini_do_cut, eini_do_cut, eini_do_collapse, eini_do_reorder,
      eini_do_parallelize, eini_do_distribute, eini_do_communicate, eini_do_rotate,
      eini_do_substitute, NULL, NULL};
  if (c->kind == EINI_C_MACHINE) {
    eini_do_machine(w, c);
  } else if (c->kind == EINI_C_PLACE) {
    eini_do_place(w, c);
  } else if (c->kind == EINI_C_ON) {
    eini_do_on(w, c);
  } else if (w->stmt == EINI_STMT_UNKNOWN) {
    return;
  } else if (w->stmt < 0) {
    eini_perr(&w->p, EIN_ERR_NAME, EINI_AT(&c->word), "on NAME before it", "of which statement? "
              "There are %lld", (long long)w->g->nstmt);
  } else if (c->kind == EINI_C_PRECOMPUTE) {
    eini_do_precompute(w, c);
  } else if (c->kind == EINI_C_RFACTOR) {
    eini_do_rfactor(w, c);
  } else {
    eini_loops *n = &w->to->nest[w->stmt];
    if (n->grid == NULL) n->grid = w->grid;
    if (n->loop == NULL)
      eini_perr(&w->p, EIN_ERR_TOO_LARGE, EINI_AT(&c->word), NULL, "the statement has too many "
                "indices");
    else if (n->grid != w->grid)
      eini_perr(&w->p, EIN_ERR_SHAPE, EINI_AT(&c->word), "all of its commands before the next "
                "machine", "the statement runs on the machine before");
    else calls[c->kind](w, n, c);
    if (n->at.len == 0) n->at = c->word;
  }
}

// ---- commands as they are printed ----

static void eini_say_span(eini_text *t, const eini_parser *p, eini_span at) {
  eini_say(t, "%.*s", (int)at.len, p->s + at.pos);
}

// An expression, on one line.
static void eini_say_expression(eini_text *t, const eini_parser *p, eini_span at) {
  for (int64_t i = at.pos, comment = 0; i < at.pos + at.len; i++) {
    const char c = p->s[i], next = i + 1 < p->n ? p->s[i + 1] : 0;
    comment = c == '#' || (comment && c != '\n');
    if (comment || (c == '\\' && (next == '\n' || next == '\r'))) continue;
    eini_say(t, "%c", c == '\n' || c == '\r' ? ' ' : c);
  }
}

static void eini_say_names(eini_text *t, const eini_parser *p, const eini_nameset *g, int set) {
  set &= g->n > 1;
  for (int i = 0; i < g->n; i++) {
    eini_say(t, i > 0 ? ", " : set ? "[" : "");
    eini_say_span(t, p, g->name[i]);
  }
  if (set) eini_say(t, "]");
}

static void eini_say_command(eini_text *t, eini_scheduler *w, const eini_command *c) {
  const eini_parser *p = &w->p;
  const char *takes = eini_commands[c->kind].takes;
  if (takes == NULL) {
    eini_say(t, "%s ", eini_commands[c->kind].word);
    if (c->kind == EINI_C_MACHINE) eini_say_grid(t, w->grid);
    else eini_say_names(t, p, &c->list[0], 0);
    if (c->kind == EINI_C_ON && c->amount[0] > 0) eini_say(t, " %lld", (long long)c->amount[0]);
    if (c->kind != EINI_C_PLACE) return;
    eini_say(t, " ");
    eini_say_distribution(t, w->to->place[eini_scheduled_tensor(w, c->list[0].name[0])]);
    return;
  }
  if (c->list[1].n > 0 && c->kind == EINI_C_DISTRIBUTE) takes = "ssss";
  eini_say(t, "%s(", eini_commands[c->kind].word);
  for (int k = 0; takes[k] != 0; k++) {
    if (k > 0) eini_say(t, ", ");
    if (takes[k] == '#') eini_say(t, "%lld", (long long)c->amount[0]);
    else if (takes[k] == 'e') eini_say_expression(t, p, c->list[0].all);
    else if (*takes == 's' && takes[1] == 's' && c->list[k].n == 1) {
      eini_say(t, "[");
      eini_say_span(t, p, c->list[k].name[0]);
      eini_say(t, "]");
    } else eini_say_names(t, p, &c->list[k], takes[k] == 's');
  }
  eini_say(t, ")");
}

static void eini_schedule_keep(eini_scheduler *w, const eini_command *c) {
  ein_schedule *s = w->to;
  eini_text t = eini_text_of(NULL, 0);
  const char **line = (const char **)eini_grow(w->p.arena, s->line, s->nline, &s->capline,
                                               sizeof *line);
  eini_say_command(&t, w, c);
  char *text = EINI_NEW(w->p.arena, char, t.at + 1);
  if (line == NULL || text == NULL) {
    eini_pmem(&w->p);
    return;
  }
  t = eini_text_of(text, t.at + 1);
  eini_say_command(&t, w, c);
  s->line = line;
  line[s->nline++] = text;
}

// ---- where results lie that are not placed ----

// How dimension m of the machine holds the result of a nest, by the loop over it; 0: it is none
// of the ways of distributions. axis: of each free index.
static int eini_home_held(const eini_loops *n, const ein_grid *g, int m, const int *axis,
                          eini_held *h) {
  int v = -1;
  for (int i = 0; i < n->norder; i++)
    if (n->loop[n->order[i]].dim == m) v = n->order[i];
  memset(h, 0, sizeof *h);
  h->kind = EINI_HELD_AT;
  if (v < 0 || n->loop[v].reduced) return 1;
  const eini_loop *x = &n->loop[v];
  int at = x->index, outer = -1;
  while (n->loop[at].as == EINI_AS_CUT && n->loop[at].outer != v) {
    outer = n->loop[at].outer;
    if (n->loop[outer].dim < 0 || n->loop[outer].dim > m) return 0;
    at = n->loop[at].inner;
  }
  if (n->loop[at].as != EINI_AS_CUT) return 0;
  h->kind = EINI_HELD_PIECES;
  h->axis = axis[x->index];
  h->block = n->loop[at].split ? n->loop[at].by : 0;
  return n->loop[at].split || x->extent == g->dim[m].extent;
}

// The axis of each free index of a statement that alone writes its tensor, by indices of their
// own; 0: it does not.
static int eini_home_axes(const ein_graph *g, const eini_stmt *s, int *axis) {
  const eini_tensor *t = &g->tensor[s->out];
  if (t->nstmt != 1 || t->rank != s->nfree || s->rest != EIN_REST_ERROR) return 0;
  for (int r = 0; r < t->rank; r++) {
    const int i = eini_plain_row(&s->out_map, r);
    if (i < 0 || s->index[i].extent != t->shape[r]) return 0;
    axis[i] = r;
  }
  return 1;
}

static ein_status eini_schedule_home_of(eini_arena *a, ein_schedule *w, int k) {
  const eini_stmt *s = &w->g->stmt[k];
  eini_loops *n = &w->nest[k];
  if (n->grid == NULL) n->grid = w->grid;
  const ein_grid *g = n->grid;
  int known = w->place[s->out] == NULL && n->loop != NULL;
  ein_distribution *d = EINI_NEW(a, ein_distribution, 1);
  int *axis = EINI_NEW(a, int, s->nfree);
  if (d == NULL || axis == NULL) return EIN_ERR_NO_MEMORY;
  const int alone = eini_home_axes(w->g, s, axis);
  d->grid = g;
  d->rank = s->nfree;
  d->held = EINI_NEW(a, eini_held, g->ndim);
  if (d->held == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nfree && !alone; i++) axis[i] = i;
  for (int m = 0; m < g->ndim && known; m++) known = eini_home_held(n, g, m, axis, &d->held[m]);
  if (known && alone) w->place[s->out] = d;
  else if (known) w->home[k] = d;
  return EIN_OK;
}

static ein_status eini_schedule_homes(eini_arena *a, ein_schedule *s) {
  for (int k = 0; k < s->g->nstmt && s->grid != NULL; k++)
    EINI_TRY(eini_schedule_home_of(a, s, k));
  for (int t = 0; t < s->g->ntensor; t++)
    if (s->place[t] != NULL) EINI_TRY(eini_stmt_of_tensor(a, s->g, t, &s->axes[t]));
  return EIN_OK;
}

// ---- the caller's side ----

static ein_status eini_schedule_read(eini_scheduler *w) {
  eini_parser *p = &w->p;
  ein_schedule *s = w->to;
  eini_command c;
  while (!eini_diag_full(p)) {
    while (eini_accept(p, EINI_T_EOL)) continue;
    if (p->tok == EINI_T_END) break;
    const int64_t from = p->pos;
    eini_command_read(p, &w->amounts, &c);
    if (p->st == EIN_OK) eini_do_command(w, &c);
    if (p->st == EIN_OK) eini_schedule_keep(w, &c);
    if (p->st != EIN_OK) eini_parse_recover(p, from);
  }
  for (int k = 0; k < w->g->nstmt && p->status == EIN_OK; k++) {
    p->st = EIN_OK;
    if (s->nest[k].at.len > 0) eini_loops_check(w, &s->nest[k]);
    else s->nest[k].steps = 1;
  }
  return p->status;
}

static ein_status eini_schedule_make(eini_scheduler *w, ein_ctx *ctx,
                                     const ein_schedule_desc *desc, eini_arena *a) {
  const ein_graph *g = w->g;
  ein_schedule *s = w->to;
  const int own = desc->text == NULL;
  const char *text = own ? g->text : desc->text;
  int64_t n = own ? g->length : (int64_t)(desc->length > 0 || text == NULL ? desc->length
                                                                          : strlen(text));
  eini_diag *d = eini_diag_of(ctx);
  if (n > (int64_t)16 << 20)
    return eini_fail(d, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the schedule has more than 16 MiB");
  if (desc->machine != NULL) EINI_TRY(eini_validate_machine(d, desc->machine));
  s->machine = eini_machine_of(desc->machine);
  s->g = s->of = g;
  s->place = EINI_NEW(a, ein_distribution *, g->ntensor);
  s->said = EINI_NEW(a, unsigned char, g->ntensor);
  s->home = EINI_NEW(a, ein_distribution *, g->nstmt);
  s->axes = EINI_NEW(a, eini_stmt *, g->ntensor);
  s->nest = EINI_NEW(a, eini_loops, g->nstmt);
  if (s->place == NULL || s->said == NULL || s->home == NULL || s->axes == NULL ||
      s->nest == NULL)
    return EIN_ERR_NO_MEMORY;
  if (d != NULL && text != NULL) eini_diag_reset(d, text, n);
  if (d != NULL) d->max = desc->max_errors > 0 ? desc->max_errors : 20;
  w->ctx = ctx;
  w->amounts.places = desc->places > 0 ? desc->places : 1;
  w->stmt = g->nstmt == 1 ? 0 : -1;
  eini_parser_init(&w->p, a, d, g, text == NULL ? "" : text, text == NULL ? 0 : n, 256);
  w->p.names = &w->names;
  for (int k = 0; k < g->nstmt; k++) EINI_TRY(eini_loops_init(&w->p, &g->stmt[k], &s->nest[k]));
  if (own && text != NULL) {
    w->p.at = g->commands;
    eini_lex(&w->p);
  }
  EINI_TRY(eini_schedule_read(w));
  return eini_schedule_homes(a, s);
}

EIN_API ein_status ein_schedule_create(ein_ctx *ctx, const ein_graph *graph,
                                       const ein_schedule_desc *desc, ein_schedule **out) {
  eini_arena arena;
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  if (st == EIN_OK && (desc == NULL || desc->places < 0 || desc->places > EIN_PLACES_MAX))
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL,
                   desc == NULL ? "the description is NULL" : "places is out of range");
  if (st != EIN_OK) return eini_fail_status(ctx, st), st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_schedule *s = EINI_NEW(&arena, ein_schedule, 1);
  eini_scheduler *w = EINI_NEW(&arena, eini_scheduler, 1);
  st = s == NULL || w == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  if (st == EIN_OK) w->g = graph, w->to = s;
  if (st == EIN_OK) st = eini_schedule_make(w, ctx, desc, &arena);
  if (ctx != NULL) eini_diag_sort(&ctx->diag);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) s->arena = arena;
  else if (s != NULL) eini_graph_free(s->own);
  if (st != EIN_OK) eini_arena_free(&arena);
  if (ctx != NULL) ctx->diag.text = NULL;
  if (st == EIN_OK) *out = s;
  return st;
}

EIN_API int ein_graph_commands(const ein_graph *graph) {
  return graph != NULL && graph->text != NULL;
}

EIN_API void ein_schedule_destroy(ein_schedule *s) {
  if (s == NULL) return;
  eini_arena arena = s->arena;
  eini_graph_free(s->own);
  eini_arena_free(&arena);
}

EIN_API const ein_graph *ein_schedule_graph(const ein_schedule *s) {
  return s == NULL ? NULL : s->g;
}

EIN_API size_t ein_schedule_print(const ein_schedule *s, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  for (int64_t i = 0; s != NULL && i < s->nline; i++) eini_say(&t, "%s\n", s->line[i]);
  return t.at;
}

EIN_API const ein_grid *ein_schedule_grid(const ein_schedule *s, int stmt) {
  if (s == NULL || stmt >= s->g->nstmt) return NULL;
  return stmt < 0 ? s->grid : s->nest[stmt].grid;
}

EIN_API const ein_distribution *ein_schedule_distribution(const ein_schedule *s, int tensor) {
  return s == NULL || tensor < 0 || tensor >= s->g->ntensor ? NULL : s->place[tensor];
}

EIN_API int ein_schedule_loop(const ein_schedule *s, int stmt, int k, ein_loop *loop) {
  if (s == NULL || loop == NULL || stmt < 0 || stmt >= s->g->nstmt || k < 0) return 0;
  const eini_loops *n = &s->nest[stmt];
  if (n->at.len == 0 || k >= n->norder) return 0;
  const eini_loop *x = &n->loop[n->order[k]];
  memset(loop, 0, sizeof *loop);
  loop->name = x->name;
  loop->extent = x->extent;
  loop->dimension = x->dim;
  loop->kind = x->dim >= 0 ? EIN_LOOP_PLACE : k < n->nstep ? EIN_LOOP_TIME :
               x->parallel ? EIN_LOOP_PARALLEL : EIN_LOOP_WHOLE;
  return 1;
}

EIN_API ein_status ein_schedule_cost(ein_ctx *ctx, const ein_schedule *s, int stmt, ein_move_fn fn,
                                     void *user, ein_schedule_info *info) {
  eini_arena arena;
  eini_tour w;
  if (s == NULL || info == NULL || stmt < 0 || stmt >= s->g->nstmt) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  memset(info, 0, sizeof *info);
  memset(&w, 0, sizeof w);
  info->out = s->g->tensor[s->g->stmt[stmt].out].name;
  info->line = s->g->stmt[stmt].line;
  info->steps = s->nest[stmt].steps;
  info->tasks = 1;
  if (s->grid == NULL || s->nest[stmt].loop == NULL) return EIN_OK;
  info->tasks = 0;
  w.w = s;
  w.n = &s->nest[stmt];
  w.info = info;
  w.fn = fn;
  w.user = user;
  w.move.stmt = stmt;
  eini_arena_init(&arena, &s->arena.al);
  ein_status st = eini_tour_init(&arena, &w);
  if (st == EIN_OK && eini_tour_work(&w) > EINI_TOUR_MAX)
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_TOO_LARGE, -1, 0, NULL, "there are too many points "
                   "and steps to count what they move");
  if (st == EIN_OK) st = eini_tour_run(&w);
  eini_arena_free(&arena);
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_schedule_peaks(ein_ctx *ctx, const ein_schedule *s, ein_inputs inputs,
                                      double *stmt, double *place) {
  eini_arena arena;
  if (s == NULL || (stmt == NULL && place == NULL)) return EIN_ERR_ARGUMENT;
  const eini_places all = {0, s->grid == NULL ? 0 : s->grid->places};
  eini_begin_call(ctx, NULL);
  eini_arena_init(&arena, &s->arena.al);
  ein_status st = eini_schedule_rooms(&arena, s, all, inputs, stmt, place);
  eini_arena_free(&arena);
  if (st == EIN_ERR_TOO_LARGE)
    st = eini_fail(eini_diag_of(ctx), st, -1, 0, NULL, "there are too many points and steps to "
                   "count what they take");
  eini_fail_status(ctx, st);
  return st;
}

// Is the distribution that of a pin: equal pieces, and the places that the cut axes give, in order?
static const char *eini_pin_reason(const ein_distribution *d, int64_t *cut) {
  const ein_grid *g = d->grid;
  int last = -1;  // the axis cut before
  if (g->npoint > g->places) return "the machine has more points than places";
  for (int m = 0; m < g->ndim; m++) {
    const eini_held *h = &d->held[m];
    if (g->dim[m].extent == 1) continue;
    if (h->kind == EINI_HELD_EVERY) return "it is replicated";
    if (h->kind == EINI_HELD_AT && h->at > 0) return "it does not begin at place 0";
    if (h->kind == EINI_HELD_AT) {
      if (last >= 0) return "its pieces are not at consecutive places";
      continue;
    }
    if (h->block > 0) return "its blocks are dealt in turn";
    if (h->axis <= last) return "its axes are cut twice, or not in order";
    last = h->axis;
    cut[last] = g->dim[m].extent;
  }
  return NULL;
}

EIN_API ein_status ein_schedule_pin(ein_ctx *ctx, const ein_schedule *s, int tensor, char *buf,
                                    size_t size) {
  int64_t cut[EINI_NAMES_MAX];
  if (s == NULL || tensor < 0 || tensor >= s->g->ntensor || size < 1) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  const ein_distribution *d = s->place[tensor];
  eini_text t = eini_text_of(buf, size);
  if (!s->said[tensor]) return EIN_OK;
  for (int r = 0; r < d->rank; r++) cut[r] = 1;
  const char *why = eini_pin_reason(d, cut), *name = s->g->tensor[tensor].name;
  if (why != NULL)
    return eini_fail(eini_diag_of(ctx), EIN_ERR_UNSUPPORTED, -1, 0, "distribute its statement",
                     "where '%.60s' is placed is no partition that a decomposition can have: %s",
                     name, why);
  eini_say(&t, "%s[", name);
  for (int r = 0, n = 0; r < d->rank; r++)
    if (cut[r] > 1) eini_say(&t, "%s%d=%lld", n++ > 0 ? "," : "", r, (long long)cut[r]);
  eini_say(&t, "]");
  return t.at < size ? EIN_OK : EIN_ERR_ARGUMENT;
}

// ---- decompositions as schedules ----

// A machine of some dimensions, if it is another one than the last; `was`: its text.
static void eini_say_machine(eini_text *t, char *was, size_t room, const char *dims) {
  if (strcmp(was, dims) == 0) return;
  eini_say(t, "machine %s\n", dims);
  snprintf(was, room, "%s", dims);
}

// Where a tensor is pinned: dimensions g0, g1, .. cut axes in the order of the places.
static void eini_say_pin(eini_text *t, const char *name, const ein_parts *pin, char *was,
                         size_t room) {
  char dims[64 * EINI_NAMES_MAX];
  eini_text m = eini_text_of(dims, sizeof dims);
  for (int k = 0; k < pin->norder; k++)
    eini_say(&m, "%sg%d=%lld", k > 0 ? ", " : "", k, (long long)pin->cut[pin->order[k]]);
  if (pin->norder == 0) eini_say(&m, "g=1");
  eini_say_machine(t, was, room, dims);
  eini_say(t, "place %s ", name);
  for (int r = 0; r < pin->nindex; r++) eini_say_axis(t, r);
  eini_say(t, pin->norder == 0 ? "->0" : "->");
  for (int k = 0; k < pin->norder; k++) eini_say_axis(t, pin->order[k]);
  eini_say(t, "\n");
}

// The name of an index in that of a loop or a dimension: without points.
static void eini_say_stem(eini_text *t, const char *index) {
  for (; *index != 0; index++) eini_say(t, "%c", *index == '.' ? '_' : *index);
}

// The name of loop "io" (outer) or "ii" of index i, or, over time, "is" or "iw"; longer where an
// index is called so.
static void eini_say_half(eini_text *t, const ein_decomp_stmt *s, int c, char end) {
  const size_t n = strlen(s->index[c]);
  int taken = strchr(s->index[c], '.') != NULL;
  for (int k = 0; k < s->nindex; k++)
    taken |= strncmp(s->index[k], s->index[c], n) == 0 && s->index[k][n] == end;
  eini_say_stem(t, s->index[c]);
  eini_say(t, taken ? "%c_%d" : "%c", end, c);
}

// The machine that a statement is cut over.
static void eini_say_cuts_over(eini_text *t, const ein_decomp_stmt *s, const ein_parts *p,
                               char *was, size_t room) {
  char dims[256 * EINI_NAMES_MAX];
  eini_text m = eini_text_of(dims, sizeof dims);
  for (int k = 0; k < p->norder; k++) {
    eini_say(&m, k > 0 ? ", g" : "g");
    eini_say_stem(&m, s->index[p->order[k]]);
    eini_say(&m, "=%lld", (long long)p->cut[p->order[k]]);
  }
  eini_say_machine(t, was, room, dims);
}

// Statement i, cut over it.
static void eini_say_cuts(eini_text *t, const ein_graph *g, int i, const ein_decomp_stmt *s,
                          const ein_parts *p) {
  int number = g->tensor[g->stmt[i].out].nstmt > 1;
  for (int k = 0; k < i && number > 0; k++) number += g->stmt[k].out == g->stmt[i].out;
  eini_say(t, "on %s", s->out);
  if (number > 0) eini_say(t, " %d", number);
  eini_say(t, "\ndistribute(");
  for (int list = 0; list < 4; list++) {
    for (int k = 0; k < p->norder; k++) {
      const int c = p->order[k];
      eini_say(t, "%s%s", k > 0 ? ", " : list > 0 ? ", [" : "[", list == 3 ? "g" : "");
      if (list == 1 || list == 2) eini_say_half(t, s, c, list == 1 ? 'o' : 'i');
      else if (list == 3) eini_say_stem(t, s->index[c]);
      else eini_say(t, "%s", s->index[c]);
    }
    eini_say(t, "]");
  }
  eini_say(t, ")\n");
}

// Nothing is cut: a statement says so, for what has no commands is left to a decomposition.
static void eini_say_uncut(eini_text *t, const ein_graph *g, const ein_decomposition *d, char *was,
                           size_t room) {
  int first = 0;
  for (int i = 0; i < d->info.nstmt && i < g->nstmt; i++) {
    ein_parts p;
    ein_decomp_stmt s;
    if (ein_decomposition_parts(d, i, &p) != EIN_OK || p.nindex == 0) continue;
    if (ein_decomposition_stmt(d, i, &s) != EIN_OK) continue;
    p.norder = 1;
    p.order = &first;
    eini_say_cuts_over(t, &s, &p, was, room);
    eini_say_cuts(t, g, i, &s, &p);
    return;
  }
}

// The folds that were split where their results are scattered: the graph is the one decomposed.
static void eini_say_factored(eini_text *t, const ein_graph *graph, const ein_decomposition *d) {
  const eini_stmt *x = d->graph->stmt;
  for (int64_t k = 0; k < graph->nstmt; k++, x++) {
    const eini_stmt *s = &graph->stmt[k];
    if (d->factored[k] < 0) continue;
    eini_say(t, "on %s\nrfactor(%s, %s, %s, %lld)\n", graph->tensor[s->out].name,
             s->index[d->factored[k]].name, x->index[0].name, d->graph->tensor[x->out].name,
             (long long)x->index[0].extent);
    x++;
  }
}

EIN_API size_t ein_decomposition_schedule(const ein_graph *graph, const ein_decomposition *d,
                                          char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  char was[256 * EINI_NAMES_MAX] = "";
  ein_parts p;
  ein_decomp_stmt s;
  int cut = 0;
  if (graph == NULL || d == NULL) return 0;
  if (d->graph != NULL && d->graph != graph) eini_say_factored(&t, graph, d);
  if (d->graph != NULL) graph = d->graph;
  for (int k = 0; k < (int)graph->ntensor; k++)
    if (ein_decomposition_pin(d, k, &p) == EIN_OK && p.nindex <= EINI_NAMES_MAX)
      eini_say_pin(&t, graph->tensor[k].name, &p, was, sizeof was);
  for (int i = 0; i < d->info.nstmt; i++) {
    if (ein_decomposition_parts(d, i, &p) != EIN_OK || p.norder > EINI_NAMES_MAX) continue;
    if (ein_decomposition_stmt(d, i, &s) != EIN_OK || i >= graph->nstmt) continue;
    if (p.norder == 0) continue;
    cut++;
    eini_say_cuts_over(&t, &s, &p, was, sizeof was);
    eini_say_cuts(&t, graph, i, &s, &p);
  }
  if (cut == 0) eini_say_uncut(&t, graph, d, was, sizeof was);
  if (t.at == 0) eini_say(&t, "machine g=1\n");
  return t.at;
}
