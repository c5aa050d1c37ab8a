// ================================================================================================
// >>report  the text and the JSON of a plan
// Takes a plan, sliced or not; says how it was made and what runs, slices of one shape once.
// ================================================================================================

// What runs region k: the plan itself, or that of its whole slices.
static const ein_plan *eini_plan_of(const ein_plan *p, int k) {
  return eini_plan_sliced(p) ? p->budget->f.region[k].slice[0].plan : p;
}

static void eini_say_tasks(eini_text *t, const ein_plan *p, const double *seconds) {
  for (int k = 0; k < p->ntask; k++) {
    const eini_task *task;
    eini_task room;
    const int group = p->task[k].kind == EINI_TASK_GROUP;
    if (group) eini_say_group(t, p, &p->task[k], k);
    for (int i = 0; (task = eini_task_inner(&p->task[k], i, &room)) != NULL; i++) {
      eini_say_task(t, p, task, k, group && p->task[k].group->nrow == 0);
    }
    if (seconds != NULL) eini_say(t, "        measured: %.3g s\n", seconds[k]);
  }
}

// Bytes that any execution of a region must move into or out of what its budget gives; NAN: not
// known.
static double eini_region_io(const ein_plan *p, const eini_fit_choice *c) {
  int64_t list[EINI_FUSE_MOST];
  for (int m = 0; m < EINI_FUSE_MOST; m++) list[m] = c->from + m;
  return eini_joint_io(p, p->budget->f.base.g, list, c->to - c->from, (double)p->info.memory);
}

static void eini_say_region(eini_text *t, const ein_plan *p, int k) {
  const eini_fit_layout *f = &p->budget->f;
  const eini_fit_choice *c = &f->region[k].c;
  eini_say(t, "region %d:", k + 1);
  for (int u = c->from; u < c->to; u++) {
    eini_say(t, "%s%s", u > c->from ? ", " : " ", f->base.g->tensor[f->base.g->stmt[u].out].name);
  }
  if (c->nloop > 0) eini_say(t, " in %lld slices:", (long long)eini_fit_slice_count(c));
  for (int l = 0; l < c->nloop; l++) {
    eini_say(t, "%s%s = %lld by %lld", l > 0 ? ", " : " ", eini_fit_loop_name(f, c, l),
             (long long)c->extent[l], (long long)c->block[l]);
  }
  if (c->guess.again > 0)
    eini_say(t, "; %.3g of %.3g flops repeated", c->guess.again, c->guess.flops);
  eini_say(t, "\n");
  const double moves = f->region[k].moves, least = eini_region_io(p, c);
  if (c->nloop > 0 && least > 0)
    eini_say(t, "        moves %.3g bytes of other tensors, any order within the budget at least "
             "%.3g: %.2f times\n", moves, least, moves / least);
  eini_say_tasks(t, f->region[k].slice[0].plan, NULL);
}

EIN_API size_t ein_plan_explain_run(const ein_plan *p, const double *seconds, char *buf,
                                    size_t size) {
  eini_text t = eini_text_of(buf, size);
  if (p == NULL) return 0;
  int ntask = 0;
  for (int k = 0; k < p->info.nregion; k++) ntask += eini_plan_of(p, k)->ntask;
  eini_say(&t,
           "plan: %d input%s, %d output%s, %d task%s, workspace %lld bytes (temporaries %lld)\n",
           p->info.nin, p->info.nin == 1 ? "" : "s", p->nout, p->nout == 1 ? "" : "s", ntask,
           ntask == 1 ? "" : "s", (long long)p->info.workspace_bytes, (long long)p->temp_bytes);
  if (p->info.memory > 0) {
    eini_say(&t, "memory: at most %llu of %llu bytes, plan %llu, workspace %llu\n",
             (unsigned long long)p->info.peak_bytes, (unsigned long long)p->info.memory,
             (unsigned long long)p->info.plan_bytes, (unsigned long long)p->info.workspace_bytes);
  }
  if (p->graph->ordered)
    eini_say(&t, "deterministic: the same bits for any number of threads and places\n");
  eini_say(&t, "path: %s%s, %.4g flops, largest intermediate %.4g elements\n",
           p->info.method == NULL ? "none" : p->info.method,
           p->info.proved == 1 ? " (optimal)" : p->info.proved == 2
               ? " (optimal among paths without outer products)" : "",
           p->info.flops, p->info.largest);
  for (int64_t k = 0; k < p->nverdict; k++) {
    const eini_verdict *v = &p->verdict[k];
    eini_say(&t, "choice: %s", v->out);
    if (v->units > 0) eini_say(&t, " and the %d before it", v->units - 1);
    for (int i = 0; i < (v->units == 0 ? 3 : 2); i++)
      eini_say(&t, "%s %s %.3g s%s", i == 0 ? ":" : ",", eini_verdict_way(v, i), v->seconds[i],
               i == v->taken ? " (taken)" : "");
    eini_say(&t, "\n");
  }
  eini_say_tuned(&t, p);
  int fallbacks = 0;
  if (!eini_plan_sliced(p)) eini_say_tasks(&t, p, seconds);
  for (int k = 0; k < p->info.nregion; k++) {
    if (eini_plan_sliced(p)) eini_say_region(&t, p, k);
    fallbacks += eini_fallbacks(eini_plan_of(p, k));
  }
  if (p->nkernels > 0)
    eini_say(&t, "fallbacks: %d statement%s in portable kernels\n", fallbacks,
             fallbacks == 1 ? "" : "s");
  return t.at;
}

EIN_API size_t ein_plan_explain(const ein_plan *p, char *buf, size_t size) {
  return ein_plan_explain_run(p, NULL, buf, size);
}

static void eini_json_moves(eini_text *t, double moves, double least) {
  eini_say(t, ", \"traffic\": ");
  eini_say_number(t, moves);
  eini_say(t, ", \"io_bound\": ");
  eini_say_number(t, least);
}

// The loops of region k, and which statements are its.
static void eini_json_region(eini_text *t, const ein_plan *p, int k, int from, int to) {
  const eini_fit_layout *f = eini_plan_sliced(p) ? &p->budget->f : NULL;
  const eini_fit_choice *c = f == NULL ? NULL : &f->region[k].c;
  eini_say(t, "%s{\"slices\": %lld, \"loops\": [", k > 0 ? ", " : "",
           c == NULL ? 1 : (long long)eini_fit_slice_count(c));
  for (int l = 0; c != NULL && l < c->nloop; l++) {
    eini_say(t, "%s{\"index\": ", l > 0 ? ", " : "");
    eini_say_string(t, eini_fit_loop_name(f, c, l));
    eini_say(t, ", \"extent\": %lld, \"block\": %lld}", (long long)c->extent[l],
             (long long)c->block[l]);
  }
  eini_say(t, "], \"statements\": [");
  for (int i = from; i < to; i++) eini_say(t, "%s%d", i > from ? ", " : "", i);
  eini_say(t, "]");
  eini_json_moves(t, c == NULL ? NAN : f->region[k].moves,
                  c == NULL ? NAN : eini_region_io(p, c));
  eini_say(t, "}");
}

// Groups of blocks of plan p, whose first statement is number `said`. Returns how many there are,
// with those before.
static int eini_json_groups(eini_text *t, const ein_plan *p, int said, int n) {
  for (int k = 0; k < p->ntask; k++) {
    const eini_group *g = p->task[k].kind == EINI_TASK_GROUP ? p->task[k].group : NULL;
    const int to = said + eini_task_statements(p, k);
    if (g != NULL && g->nrow == 0) {
      eini_say(t, "%s{\"blocks\": [", n++ > 0 ? ", " : "");
      for (int j = 0; j < g->nloop; j++)
        eini_say(t, "%s{\"extent\": %lld, \"block\": %lld}", j > 0 ? ", " : "",
                 (long long)g->extent[j], (long long)g->block[j]);
      eini_say(t, "], \"statements\": [");
      for (int i = said; i < to; i++) eini_say(t, "%s%d", i > said ? ", " : "", i);
      eini_say(t, "]");
      eini_json_moves(t, g->moves, eini_group_io(p, g));
      eini_say(t, "}");
    }
    said = to;
  }
  return n;
}

// What a budget has to do with it.
static void eini_json_memory(eini_text *t, const ein_plan *p) {
  if (p->info.memory == 0) {
    eini_say(t, ", \"memory\": null, \"regions\": []");
    return;
  }
  eini_say(t, ", \"memory\": %llu, \"plan_bytes\": %llu, \"slices\": %lld, \"repeated_flops\": ",
           (unsigned long long)p->info.memory, (unsigned long long)p->info.plan_bytes,
           (long long)p->info.nslice);
  eini_say_number(t, p->info.repeated_flops);
  eini_say(t, ", \"regions\": [");
  for (int k = 0, from = 0; k < p->info.nregion; k++) {
    const int n = eini_plan_stated(eini_plan_of(p, k));
    eini_json_region(t, p, k, from, from + n);
    from += n;
  }
  eini_say(t, "]");
}

// Statements are those of one slice of each region.
EIN_API size_t ein_plan_json(const ein_plan *p, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  int said = 0, fallbacks = 0;
  if (p == NULL) return 0;
  for (int k = 0; k < p->info.nregion; k++) fallbacks += eini_fallbacks(eini_plan_of(p, k));
  eini_say(&t, "{\"p\": 1, \"deterministic\": %s, \"cost_model\": \"flops\", \"total\": ",
           p->graph->ordered ? "true" : "false");
  eini_say_number(&t, p->info.flops);
  eini_say(&t, ", \"flops\": ");
  eini_say_number(&t, p->info.flops);
  eini_say(&t, ", \"naive_flops\": ");
  eini_say_number(&t, p->info.naive_flops);
  eini_say(&t, ", \"largest\": ");
  eini_say_number(&t, p->info.largest);
  eini_say(&t, ", \"peak_bytes\": %llu, \"workspace_bytes\": %llu",
           (unsigned long long)(p->info.memory > 0 ? p->info.peak_bytes : p->temp_bytes),
           (unsigned long long)p->info.workspace_bytes);
  eini_json_seconds(&t, p->info.seconds);
  eini_say(&t, ", \"fallbacks\": %d", fallbacks);
  eini_json_head(&t, p);
  eini_json_memory(&t, p);
  eini_say(&t, ", \"groups\": [");
  for (int k = 0, ngroup = 0; k < p->info.nregion; k++) {
    ngroup = eini_json_groups(&t, eini_plan_of(p, k), said, ngroup);
    said += eini_plan_stated(eini_plan_of(p, k));
  }
  said = 0;
  eini_say(&t, "], \"choices\": [");
  if (eini_plan_sliced(p)) said = eini_json_choices(&t, p, 0);
  for (int k = 0; k < p->info.nregion; k++) said = eini_json_choices(&t, eini_plan_of(p, k), said);
  eini_say(&t, "], \"store\": [");
  (void)eini_json_tuned(&t, p, 0);
  eini_say(&t, "], \"statements\": [");
  said = 0;
  for (int k = 0; k < p->info.nregion; k++)
    said = eini_json_statements(&t, eini_plan_of(p, k), said);
  eini_say(&t, "]}");
  return t.at;
}
