// ================================================================================================
// >>explain  plans as text and JSON
// Takes a plan; writes into a caller's buffer as snprintf does: the whole length is returned, what
// does not fit is cut.
// ================================================================================================

// A string in JSON quotes; control bytes and quotes escaped, UTF-8 kept.
static void eini_say_string(eini_text *t, const char *s) {
  eini_say(t, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') eini_say(t, "\\%c", c);
    else if (c < 32) eini_say(t, "\\u%04x", c);
    else eini_say(t, "%c", c);
  }
  eini_say(t, "\"");
}

// A number in JSON: integers exactly, NaN and infinity as null.
static void eini_say_number(eini_text *t, double x) {
  if (x - x != 0) eini_say(t, "null");
  else if (fabs(x) < 9e15 && x == floor(x)) eini_say(t, "%.0f", x);
  else eini_say(t, "%.17g", x);
}

// The labels of an access, as far as its axes are plain indices, without commas.
static void eini_say_labels(eini_text *t, const eini_stmt *s, const eini_map *m) {
  for (int r = 0; r < m->rows; r++) {
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      int64_t c = m->term[e].coef;
      if (c != 1) eini_say(t, c == -1 ? "-" : e > m->first[r] && c > 0 ? "+" : "");
      if (c != 1 && c != -1) eini_say(t, "%lld*", (long long)c);
      eini_say(t, "%s", s->index[m->term[e].index].name);
    }
  }
}

// "ij,jk->ik"
static void eini_say_einsum(eini_text *t, const eini_stmt *s) {
  for (int k = 0; k < s->noperand; k++) {
    if (k > 0) eini_say(t, ",");
    eini_say_labels(t, s, &s->proj[k]);
  }
  eini_say(t, "->");
  eini_say_labels(t, s, &s->out_map);
}

// Provider and variant; the portable kernels go by what they do.
static void eini_say_kernel(eini_text *t, const eini_task *task) {
  const char *what = task->kind == EINI_TASK_CONTRACT ? "contract"
                     : task->kind == EINI_TASK_COPY ? "copy"
                     : task->kind == EINI_TASK_OPERATOR ? "operator"
                     : task->folder.fold == EIN_FOLD_NONE ? "map" : "map-reduce";
  if (task->kernels == NULL) eini_say(t, "%s", what);
  else eini_say(t, "%s", task->kernels->name);
  if (task->choice.variant[0]) eini_say(t, "-%s", task->choice.variant);
}

// What is known of a task's result; *from: of what its error is counted from.
static double eini_task_bound(const ein_plan *p, const eini_task *task, const char **from) {
  int known;
  const double e = eini_plan_bound(p, task->fused != NULL ? task->fused : task->stmt, &known);
  *from = e < 0 ? NULL : known && !p->inner ? "inputs" : "operands";
  return e;
}

// ---- fallbacks: statements that no provider of kernels takes, where there is any ----

// Is one of the operations not the portable one?
static int eini_code_fast(const ein_code *code, int *nop) {
  int found = 0;
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *step = &code->step[i];
    int portable = step->op == EIN_OP_CALL;
    if (step->op == EIN_OP_OPERAND || step->op == EIN_OP_INDEX || step->op == EIN_OP_CAST) continue;
    ++*nop;
    for (size_t r = 0; r < sizeof eini_chunk_table / sizeof *eini_chunk_table; r++)
      for (int c = 0; c < 7 && eini_chunk_table[r].op == step->op; c++)
        portable |= eini_chunk_table[r].fn[c] == step->fn;
    found |= !portable;
  }
  return found;
}

// Is a map or its fold done by operations that a provider has, or has none of them any?
static int eini_map_fast(const ein_plan *p, const eini_task *task) {
  const eini_folder *f = &task->folder;
  int nop = f->fold != EIN_FOLD_NONE, any = 0, found = eini_code_fast(&task->code, &nop);
  if (task->has_epi) found |= eini_code_fast(&task->epi, &nop);
  if (f->fold != EIN_FOLD_NONE && f->fold <= EIN_FOLD_ALL)
    found |= f->across != eini_across_find(NULL, f->fold, f->type);
  if (f->max_fn != NULL) found |= f->max_fn != eini_across_find(NULL, EIN_FOLD_MAX, f->type);
  for (int k = 0; k < p->nkernels; k++) {
    const ein_kernels *fast = p->kernels[k];
    any |= fast->chunk_fn != NULL && (fast->ordered || !p->graph->ordered) &&
           fast->chunk_fn(fast->user, EIN_OP_EXP, EIN_F32) != NULL;
  }
  return found || nop == 0 || !any;
}

// Why a task runs in portable kernels although there are others; NULL: it does not. room: for it.
static const char *eini_fallback(const ein_plan *p, const eini_task *task, eini_text *room) {
  int asked = 0;
  if (task->kind == EINI_TASK_OPERATOR) return NULL;  // it is the caller's
  if (p->nkernels == 0 || task->kernels != NULL || task->stmt == NULL) return NULL;
  for (int i = 0; i < task->ncandidate; i++)
    asked |= strcmp(task->candidate[i].name, "portable") != 0;
  if (asked) return NULL;  // one could, and would take longer
  if (task->kind == EINI_TASK_CONTRACT) {
    eini_say(room, "no provider contracts %s by %s", ein_dtype_name(task->contract->c.type),
             eini_fold_name(p->graph, task->stmt->fold));
  } else if (task->kind == EINI_TASK_COPY) {
    eini_say(room, "no provider copies elements of %d bytes that way",
             (int)ein_dtype_size(task->ref[task->out].dtype));
  } else {
    if (eini_map_fast(p, task)) return NULL;
    eini_say(room, "no provider has an operation of it in %s",
             ein_dtype_name((ein_dtype)task->code.type));
  }
  return room->buf;
}

// What it adds in, how far from the truth it may be, and why it is slow.
static void eini_say_accuracy(eini_text *t, const ein_plan *p, const eini_task *task) {
  char why[128];
  eini_text room = eini_text_of(why, sizeof why);
  const ein_dtype sums = eini_stmt_accumulates(p->graph, task->stmt);
  const char *from, *fallback = eini_fallback(p, task, &room);
  const double e = eini_task_bound(p, task, &from);
  eini_say(t, "\n        ");
  if (sums != EIN_NONE) eini_say(t, "accumulates in %s; ", ein_dtype_name(sums));
  if (e < 0) eini_say(t, "no error bound is known");
  else if (e > 0) eini_say(t, "error at most %.3g of the sum of absolute values, ", e);
  else if (sums == EIN_NONE || eini_kind_of(sums) >= EINI_KREAL) eini_say(t, "exact, ");
  else eini_say(t, "exact, but integers wrap, ");
  if (from != NULL)
    eini_say(t, strcmp(from, "inputs") == 0 ? "from the inputs on" : "operands taken as stored");
  if (fallback != NULL) eini_say(t, "\n        fallback: portable kernels, %s", fallback);
}

// The least bytes that an element of an operand has, or `size`.
static size_t eini_least_bytes(const ein_graph *g, const eini_stmt *s, size_t size) {
  for (int k = 0; k < s->noperand; k++) {
    const size_t b = ein_dtype_size(g->tensor[s->operand[k]].dtype);
    size = b < size ? b : size;
  }
  return size;
}

// Bytes that a statement moves at least, to and from a core's cache; NAN where none is known, or no
// memory is left to find out. What is fused behind it is read from registers: its result stands for
// the statement's, in what must be stored alone.
static double eini_task_io(const ein_plan *p, const eini_task *task) {
  const eini_stmt *s = task->stmt;
  const int out = (task->fused != NULL ? task->fused : s)->out;
  size_t size = ein_dtype_size(p->graph->tensor[out].dtype);
  eini_arena a;
  eini_touch touch;
  eini_limit limit;
  if (p->rates == NULL || !(p->rates->fast_bytes >= 16)) return NAN;
  if (s->nindex > 16 || s->noperand > 32) return NAN;  // plans are shown in no time
  size = eini_least_bytes(p->graph, s, size);
  eini_arena_init(&a, &p->al);
  ein_status st = eini_touch_statement(&a, s, &touch);
  if (st == EIN_OK && task->fused != NULL && touch.nimage > 0 && touch.image->tensor == s->out)
    touch.image++, touch.nimage--;
  if (st == EIN_OK)
    st = eini_limit_find(&a, &touch, p->rates->fast_bytes / (double)size, 1, &limit);
  eini_arena_free(&a);
  return st == EIN_OK ? limit.bound * (double)size : NAN;
}

// Bytes that a task moves as it is planned. Kernels know sides, which may be of several operands,
// and not what is fused behind them: no less than all of that once.
static double eini_task_traffic(const eini_task *task, const eini_cost *once) {
  return fmax(task->ncandidate > 0 ? task->choice.traffic : 0, once->traffic);
}

// Bytes that any execution of statements together must move between memory and `fast` bytes; NAN:
// not known.
static double eini_joint_io(const ein_plan *p, const ein_graph *graph, const int64_t *list, int n,
                            double fast) {
  size_t size = 16;
  double least = 0, bound = NAN;
  eini_fuse_graph w;
  eini_arena a;
  eini_fuse f;
  int fits = 0;
  if (n > EINI_FUSE_MOST || !(fast >= 16)) return NAN;
  for (int m = 0; m < n; m++) {
    const eini_stmt *s = &graph->stmt[list[m]];
    const size_t out = ein_dtype_size(graph->tensor[s->out].dtype);
    size = eini_least_bytes(graph, s, out < size ? out : size);
  }
  eini_arena_init(&a, &p->al);
  ein_status st = eini_fuse_graph_make(&a, graph, &w);
  eini_fuse_of(&w, list, n, &f);
  if (st == EIN_OK) st = eini_fuse_make(&a, &w, &f, &fits);
  if (st == EIN_OK && fits)
    st = eini_fuse_bound(&a, &w, &f, fast / (double)size, &least, &bound);
  eini_arena_free(&a);
  return st == EIN_OK ? bound * (double)size : NAN;
}

static double eini_group_io(const ein_plan *p, const eini_group *g) {
  return p->rates == NULL ? NAN
                          : eini_joint_io(p, p->graph, g->stmt, g->nstmt, p->rates->fast_bytes);
}

// The ways that providers have for a contraction besides those that were told.
static void eini_say_others(eini_text *t, const ein_plan *p, const eini_task *task, int width) {
  int said = 0;
  for (int i = 0; i < p->nkernels && task->kind == EINI_TASK_CONTRACT; i++) {
    const ein_kernels *k = p->kernels[i];
    ein_contract c = task->contract->c;
    c.rates = p->rates;
    for (int nth = 0; nth < EINI_VARIANTS && k->contract_plan != NULL && k->memory == NULL; nth++) {
      ein_choice h;
      int told = 0;
      memset(&h, 0, sizeof h);
      if (!k->contract_plan(k->user, &c, width, nth, &h)) break;
      for (int j = 0; j < task->ncandidate; j++)
        told |= strcmp(task->candidate[j].name, k->name) == 0 &&
                strcmp(task->candidate[j].variant, h.variant) == 0;
      if (told) continue;
      eini_say(t, "%s%s-%s %.3g s", said++ == 0 ? "\n        others: " : ", ", k->name, h.variant,
               h.seconds);
    }
  }
}

// group: it is one of several statements in blocks, which move what the group does.
static void eini_say_task(eini_text *t, const ein_plan *p, const eini_task *task, int k,
                          int group) {
  char kernel[64];
  eini_text name = eini_text_of(kernel, sizeof kernel);
  eini_say_kernel(&name, task);
  eini_say(t, "%4d  %-16s ", k, kernel);
  eini_say_stmt(t, p->graph, task->stmt);
  if (task->fused != NULL) eini_say(t, ", then ");
  if (task->fused != NULL) eini_say_stmt(t, p->graph, task->fused);
  const eini_cost cost = eini_cost_of(p->graph, task->stmt, task->fused, NULL, NULL, NULL, NULL);
  eini_say(t, "  %.3g flops, %.3g bytes", cost.flops, cost.bytes);
  eini_say_accuracy(t, p, task);
  const double least = eini_task_io(p, task), moves = eini_task_traffic(task, &cost);
  if (least > 0 && !group)
    eini_say(t, "\n        moves %.3g bytes, any order at least %.3g: %.2f times", moves, least,
             moves / least);
  for (int i = 0; i < task->ncandidate && p->nkernels > 0; i++) {
    const eini_candidate *x = &task->candidate[i];
    eini_say(t, "%s%s-%s %.3g s", i == 0 ? "\n        predicted: " : ", ", x->name, x->variant,
             x->seconds);
  }
  eini_say_others(t, p, task, group ? 1 : p->executor.width);
  if (task->kept != NULL)
    eini_say(t, "\n        keeps what is packed of constant inputs: %llu bytes",
             (unsigned long long)task->choice.kept);
  eini_say(t, "\n");
}

static int eini_fallbacks(const ein_plan *p) {
  const eini_task *task;
  eini_task room;
  int n = 0;
  for (int k = 0; k < p->ntask; k++) {
    for (int i = 0; (task = eini_task_inner(&p->task[k], i, &room)) != NULL; i++) {
      char why[128];
      eini_text text = eini_text_of(why, sizeof why);
      n += eini_fallback(p, task, &text) != NULL;
    }
  }
  return n;
}

static void eini_say_group(eini_text *t, const ein_plan *p, const eini_task *task, int k) {
  const eini_group *g = task->group;
  if (g->nrow > 0) {
    eini_say(t, "%4d  group of %lld of one form, planned once, in %d part%s\n", k,
             (long long)g->nrow, task->parts, task->parts == 1 ? "" : "s");
    return;
  }
  eini_say(t, "%4d  group of %d, %s", k, g->units,
           g->along == 1 ? "one block" : "blocks of");
  for (int j = 0; j < g->nloop; j++) {
    eini_say(t, "%s%lld of %lld", j + 1 == g->along ? " along " : j > 0 ? " x " : " ",
             (long long)g->block[j], (long long)g->extent[j]);
  }
  eini_say(t, "; %.3g bytes of temporaries are never stored", g->saved);
  if (g->room > 0) eini_say(t, ", %lld in a block's memory", (long long)g->room);
  if (task->best != NULL)
    eini_say(t, "\n        predicted: %s-%s %.3g s", task->best->name, task->best->variant,
             task->best->seconds);
  eini_say(t, "\n");
  const double least = eini_group_io(p, g);
  if (least > 0)
    eini_say(t, "        moves %.3g bytes, any order of them at least %.3g: %.2f times\n", g->moves,
             least, g->moves / least);
}

static void eini_json_names(eini_text *t, const char *key, const eini_stmt *s, int from, int to) {
  eini_say(t, ", \"%s\": [", key);
  for (int i = from; i < to; i++) {
    const char *name = s->index[i].name;
    if (i > from) eini_say(t, ", ");
    eini_say_string(t, name == NULL || !name[0] ? "?" : name);
  }
  eini_say(t, "]");
}

static void eini_json_accuracy(eini_text *t, const ein_plan *p, const eini_task *task) {
  char why[128];
  eini_text room = eini_text_of(why, sizeof why);
  const eini_stmt *s = task->stmt;
  const ein_dtype sums = eini_stmt_accumulates(p->graph, s);
  const char *from, *fallback = eini_fallback(p, task, &room);
  const double e = eini_task_bound(p, task, &from);
  eini_json_names(t, "free", s, 0, s->nfree);
  eini_json_names(t, "reduced", s, s->nfree, s->nindex);
  eini_say(t, ", \"dtype\": \"%s\", \"accumulates\": ",
           ein_dtype_name((task->fused != NULL ? task->fused : s)->type));
  if (sums != EIN_NONE) eini_say(t, "\"%s\"", ein_dtype_name(sums));
  else eini_say(t, "null");
  eini_say(t, ", \"error_bound\": ");
  if (e < 0) eini_say(t, "null");
  else eini_say(t, "%.17g", e);
  if (from != NULL) eini_say(t, ", \"error_from\": \"%s\", \"fallback\": ", from);
  else eini_say(t, ", \"error_from\": null, \"fallback\": ");
  if (fallback != NULL) eini_say_string(t, fallback);
  else eini_say(t, "null");
}

static void eini_json_task(eini_text *t, const ein_plan *p, const eini_task *task, int group) {
  const eini_stmt *s = task->stmt, *f = task->fused;
  const eini_cost cost = eini_cost_of(p->graph, s, f, NULL, NULL, NULL, NULL);
  eini_say(t, "{\"out\": ");
  eini_say_string(t, p->graph->tensor[(f ? f : s)->out].name);
  eini_say(t, ", \"from\": [");
  if (s->line > 0) eini_say(t, "%lld", (long long)s->line);
  if (f != NULL && f->line > 0 && f->line != s->line)
    eini_say(t, "%s%lld", s->line > 0 ? ", " : "", (long long)f->line);
  eini_say(t, group < 0 ? "], \"group\": null, \"path\": [[" : "], \"group\": %d, \"path\": [[",
           group);
  for (int k = 0; k < s->noperand; k++) eini_say(t, "%s%d", k > 0 ? ", " : "", k);
  for (int part = 0; part < 2; part++) {
    eini_say(t, part ? "}, \"parts\": {" : "]], \"indices\": {");
    for (int i = 0; i < s->nindex; i++) {
      const char *name = s->index[i].name;
      if (i > 0) eini_say(t, ", ");
      eini_say_string(t, name == NULL || !name[0] ? "?" : name);
      eini_say(t, ": %lld", part ? 1LL : (long long)s->index[i].extent);
    }
  }
  eini_say(t, "}, \"join\": 0, \"agg\": 0, \"repart\": 0, \"tasks\": 1, \"bytes\": 0, "
           "\"kernels\": [\"");
  eini_say_kernel(t, task);
  eini_say(t, "\"], \"seconds\": ");
  if (task->ncandidate > 0) eini_say(t, "%.3g", task->choice.seconds);
  else eini_say(t, "null");
  eini_say(t, ", \"io_bound\": ");
  eini_say_number(t, eini_task_io(p, task));
  eini_say(t, ", \"flops\": ");
  eini_say_number(t, cost.flops);
  eini_say(t, ", \"traffic\": ");
  // Statements in blocks move what their group does.
  eini_say_number(t, group < 0 ? eini_task_traffic(task, &cost) : NAN);
  eini_json_accuracy(t, p, task);
  eini_say(t, ", \"fold\": ");
  if (s->fold == EIN_FOLD_NONE) eini_say(t, "null");
  else eini_say_string(t, eini_fold_name(p->graph, s->fold));
  eini_say(t, ", \"einsum\": ");
  char label[256];
  eini_text e = eini_text_of(label, sizeof label);
  eini_say_einsum(&e, s);
  if (e.at < sizeof label) eini_say_string(t, label);
  else eini_say(t, "null");
  eini_say(t, ", \"operands\": [");
  for (int k = 0; k < s->noperand; k++) {
    if (k > 0) eini_say(t, ", ");
    eini_say_string(t, p->graph->tensor[s->operand[k]].name);
  }
  eini_say(t, "]}");
}

static void eini_json_seconds(eini_text *t, double seconds) {
  eini_say(t, ", \"seconds\": ");
  eini_say_number(t, seconds > 0 ? seconds : NAN);
}

// Members that every plan has, whatever it was made for; what is not known is null.
static void eini_json_head(eini_text *t, const ein_plan *p) {
  const eini_path *path = p != NULL && p->npath > 0 && p->path[0].first != NULL ? p->path : NULL;
  const int proved = p != NULL ? p->info.proved : 0;
  eini_say(t, ", \"method\": ");
  eini_say_string(t, p == NULL || p->info.method == NULL ? "none" : p->info.method);
  eini_say(t, ", \"proved\": %s, \"proved_of\": %s",
           proved ? "true" : path == NULL ? "null" : "false",
           proved == 1 ? "\"paths\"" : proved == 2 ? "\"paths without outer products\"" : "null");
  eini_say(t, ", \"lower\": null, \"gap\": null, \"family\": null, \"inputs\": null, "
           "\"machine\": null, \"path\": ");
  for (int i = 0; path != NULL && i < path->nstep; i++) {
    eini_say(t, i == 0 ? "[" : ", ");
    for (int k = path->first[i]; k < path->first[i + 1]; k++)
      eini_say(t, "%s%d", k > path->first[i] ? ", " : "[", path->pos[k]);
    eini_say(t, "]");
  }
  eini_say(t, path == NULL ? "null" : path->nstep == 0 ? "[]" : "]");
}

// `said` of them are there already. Returns how many there are then.
static int eini_json_choices(eini_text *t, const ein_plan *p, int said) {
  for (int64_t k = 0; k < p->nverdict; k++) {
    const eini_verdict *v = &p->verdict[k];
    eini_say(t, said++ == 0 ? "{\"out\": " : ", {\"out\": ");
    eini_say_string(t, v->out);
    eini_say(t, ", \"taken\": \"%s\", \"seconds\": {", eini_verdict_way(v, v->taken));
    for (int i = 0; i < (v->units == 0 ? 3 : 2); i++) {
      eini_say(t, "%s\"%s\": ", i > 0 ? ", " : "", eini_verdict_way(v, i));
      eini_say_number(t, v->seconds[i]);
    }
    eini_say(t, "}}");
  }
  return said;
}

// ---- what a store said ----

static const char *eini_tuned_how(const eini_tuned *t) {
  return t->distance > 0 ? "nearest" : "exact";
}

static void eini_say_tuned(eini_text *t, const ein_plan *p) {
  for (int64_t k = 0; k < p->ntuned; k++) {
    const eini_tuned *x = &p->tuned[k];
    if (!x->found) continue;
    eini_say(t, "store: %s: %s%s", x->out == NULL ? "program" : x->out, eini_tuned_how(x),
             x->ideal ? ", of the plain contraction" : "");
    if (x->distance > 0)
      eini_say(t, ", distance %.3g, confidence %.2g", x->distance, exp2(-x->distance));
    eini_say(t, "; path %s, variant %s, %.3g s then, untuned %.3g s\n", x->had_path,
             x->had_variant, x->seconds, x->untuned);
  }
}

// `said` of them are there already. Returns how many there are then.
static int eini_json_tuned(eini_text *t, const ein_plan *p, int said) {
  for (int64_t k = 0; k < p->ntuned; k++) {
    const eini_tuned *x = &p->tuned[k];
    if (!x->found) continue;
    eini_say(t, said++ == 0 ? "{\"out\": " : ", {\"out\": ");
    if (x->out == NULL) eini_say(t, "null");
    else eini_say_string(t, x->out);
    eini_say(t, ", \"match\": \"%s\", \"idealised\": %s, \"distance\": %.17g, "
             "\"confidence\": %.17g, \"path\": ", eini_tuned_how(x), x->ideal ? "true" : "false",
             x->distance, exp2(-x->distance));
    eini_say_string(t, x->had_path);
    eini_say(t, ", \"variant\": ");
    eini_say_string(t, x->had_variant);
    eini_say(t, ", \"seconds\": %.17g, \"untuned\": %.17g}", x->seconds, x->untuned);
  }
  return said;
}

// Statements of task k: those of a group, or one.
static int eini_task_statements(const ein_plan *p, int k) {
  eini_task room;
  int n = 0;
  while (eini_task_inner(&p->task[k], n, &room) != NULL) n++;
  return n;
}

static int eini_plan_stated(const ein_plan *p) {
  int n = 0;
  for (int k = 0; k < p->ntask; k++) n += eini_task_statements(p, k);
  return n;
}

static int eini_json_statements(eini_text *t, const ein_plan *p, int said) {
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *task;
    eini_task room;
    for (int i = 0; (task = eini_task_inner(&p->task[k], i, &room)) != NULL; i++) {
      if (said++ > 0) eini_say(t, ", ");
      eini_json_task(t, p, task, p->task[k].kind == EINI_TASK_GROUP ? k : -1);
    }
  }
  return said;
}
