// SPDX-License-Identifier: MIT
//
// command_run.h - `einsum EXPR` and `einsum run PROG`: on data, in one piece or over places.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// The fabric of --fabric and -p.
static ein_fabric run_fabric(const program *p) {
  const char *name = given(O_FABRIC);
  const int64_t n = option_places(name != NULL && strcmp(name, "threads") == 0 ? threads : 1);
  const int places = given(O_PLACES) != NULL;
  ein_fabric f;
  ein_status st;
  if (name == NULL || strcmp(name, "serial") == 0) st = ein_fabric_serial((int)n, &f);
  else if (strcmp(name, "threads") == 0) st = ein_fabric_threads((int)n, &f);
  else if (strcmp(name, "copying") == 0) st = ein_fabric_copying(p->ctx, (int)n, &f);
  else if (strcmp(name, "mpi") == 0) st = ranks_fabric(p->ctx, places ? (int)n : 0, &f);
  else misuse("serial, threads, copying, mpi or sim", "--fabric %s is not in this version", name);
  if (st == EIN_ERR_ARGUMENT && places && n < mpi_ranks)
    misuse(NULL, "-p %d is less than the %d ranks of MPI", (int)n, mpi_ranks);
  if (st == EIN_ERR_UNSUPPORTED)
    misuse("make MPI=yes builds one that has it", "--fabric mpi is not in this build");
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  if (strcmp(f.name, "mpi") == 0 && given(O_SVG) != NULL)
    misuse(NULL, "--svg does not go with --fabric mpi: no rank sees all of a run");
  if (strcmp(f.name, "mpi") == 0 && given(O_BUDGET) != NULL)
    misuse(NULL, "--budget does not go with --fabric mpi: ranks would find different paths");
  return f;
}

// What `run --json` prints; NAN: it does not apply, or is not known.
typedef struct figures_of_run {
  const char *fabric;       // NULL: one piece
  int64_t places;
  const ein_place_stats *place;  // NULL: there are none, or they are not known one by one
  int timed;                // they are of a clock
  int pool;                 // what the pool did is of this run alone
  double planned, seconds, tasks, messages, bytes, peak, workspace;
  words kernels;            // each once
  const char *machine;      // NULL: none is assumed
  ein_machine assumed;
} figures_of_run;

static figures_of_run no_figures(void) {
  figures_of_run f;
  memset(&f, 0, sizeof f);
  f.places = 1;
  f.planned = f.seconds = f.tasks = f.messages = f.peak = f.workspace = NAN;
  return f;
}

// Most memory that this process had, of the system; NAN: it does not say.
static double resident_bytes(void) {
#if POSIX
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u) != 0) return NAN;
#if defined(__APPLE__)
  return (double)u.ru_maxrss;
#else
  return 1024 * (double)u.ru_maxrss;
#endif
#else
  return NAN;
#endif
}

// The kernels that the JSON of a plan names.
static void kernels_of_json(words *list, const char *json) {
  const char *key = "\"kernels\": [\"";
  while ((json = strstr(json, key)) != NULL) {
    json += strlen(key);
    add_once(list, copy_text(json, strcspn(json, "\"")));
  }
}

static void put_figures(const figures_of_run *f) {
  fputs("{\"fabric\": ", stdout);
  if (f->fabric != NULL) put_json_string(f->fabric);
  else fputs("null", stdout);
  printf(", \"p\": %" PRId64 ", \"places\": ", f->places);
  for (int64_t q = 0; f->place != NULL && q < f->places; q++) {
    printf("%s{\"tasks\": %" PRId64 ", \"received_bytes\": %" PRId64 ", \"sent_bytes\": %" PRId64,
           q > 0 ? ", " : "[", f->place[q].tasks, f->place[q].received_bytes,
           f->place[q].sent_bytes);
    if (f->timed) printf(", \"messages\": %" PRId64, f->place[q].messages);
    if (f->timed) put_member("busy", f->place[q].busy);
    putchar('}');
  }
  fputs(f->place != NULL ? "]" : "null", stdout);
  printf(", \"threads\": %d, \"deterministic\": %s", threads,
         given(O_DETERMINISTIC) != NULL ? "true" : "false");
  put_member("planned_seconds", f->planned);
  put_member("seconds", f->seconds);
  put_member("tasks", f->tasks);
  put_member("messages", f->messages);
  put_member("bytes", f->bytes);
  put_member("peak_bytes", f->peak);
  put_member("workspace_bytes", f->workspace);
  put_member("resident_bytes", resident_bytes());
  put_pool_json(f->pool, 1);
  names_json("kernels", f->kernels.v, f->kernels.n);
  if (f->machine != NULL) machine_json(f->machine, &f->assumed);
  else fputs(", \"machine\": null", stdout);
  puts("}");
}

// Seconds of tasks by statement.
static double *busy_seconds(const happened *of, int nstmt) {
  double *busy = (double *)memory(((size_t)nstmt + 1) * sizeof *busy);
  for (int w = 0; w < threads; w++)
    for (int i = 0; i < nstmt; i++) busy[i] += of[w].busy[i];
  ranks_sum_seconds(busy, nstmt);
  return busy;
}

// What places had on devices, and what went there and back, of all ranks.
static void explain_devices(int64_t away) {
  ein_cuda_counts n = ein_cuda_counts_get(cuda);
  if (cuda == NULL) return;
  ranks_most(&away);
  ranks_sum(&n.to_device), ranks_sum(&n.from_device), ranks_sum(&n.peer);
  fprintf(stderr, "devices: at most %" PRId64 " bytes of a place; %" PRId64 " bytes from the host, "
          "%" PRId64 " to it, %" PRId64 " from one device to another\n", away, n.to_device,
          n.from_device, n.peer);
}

// What was done, for --explain.
static void explain_places(const ein_dist *d, const ein_decomposition *how, const ein_fabric *f,
                           const ein_dist_stats *stats, const happened *of, double seconds,
                           const char *machine) {
  ein_dist_info info;
  words cells = {NULL, 0};
  double k, all = 0;
  char took[40];
  if (given(O_EXPLAIN) == NULL) return;
  (void)ein_dist_info_get(d, &info);
  ranks_most(&info.peak_bytes);
  const char *unit = time_unit(seconds, &k);
  double *busy = busy_seconds(of, info.nstmt);
  for (int i = 0; i < info.nstmt; i++) all += busy[i];
  add_word(&cells, "line"), add_word(&cells, "statement"), add_word(&cells, "index/pieces");
  add_word(&cells, "tasks"), add_word(&cells, "bytes moved");
  add_cell(&cells, "busy, %s", unit), add_word(&cells, "share");
  for (int i = 0; i < info.nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(how, i);
    ein_parts parts;
    (void)ein_decomposition_parts(how, i, &parts);
    line_cell(&cells, s.line);
    add_word(&cells, s.out), add_word(&cells, parts_text(&s, &parts));
    add_cell(&cells, "%" PRId64, parts.ntask), add_cell(&cells, "%" PRId64, stats->stmt_bytes[i]);
    time_cell(&cells, k * busy[i]), add_cell(&cells, "%.1f%%", all > 0 ? 100 * busy[i] / all : 0);
  }
  put_cells(stderr, &cells, 7, 3);
  if (given(O_DETERMINISTIC) != NULL)
    fputs("deterministic: the same bits for any number of threads and places\n", stderr);
  fprintf(stderr, "%s, %d places: %" PRId64 " tasks, %" PRId64 " messages, %" PRId64
          " bytes read from other places; at most %" PRId64 " bytes at a place; %s; planned for "
          "machine: %s\n",
          f->name, info.places, stats->tasks, stats->messages, stats->bytes, info.peak_bytes,
          svg_seconds(took, sizeof took, seconds, seconds), machine);
  explain_devices(info.away_bytes);
}

// Fills in bytes along edges and bars, and writes the picture.
static void picture_run(const program *p, const ein_decomposition *how, const ein_machine *machine,
                        const ein_fabric *f, happened *of, double begin, double seconds) {
  picture drawn;
  ein_sim_desc desc;
  ein_sim_info sim;
  picture_begin(&drawn, p, how);
  memset(&desc, 0, sizeof desc);
  desc.machine = machine;
  desc.stmt = (ein_sim_stmt *)memory(((size_t)drawn.nstmt + 1) * sizeof *desc.stmt);
  desc.fetch_fn = picture_fetch;
  desc.user = &drawn;
  desc.max_work = option_count(O_WORK, 1e18);
  ein_status st = ein_simulate(p->ctx, p->graph, how, &desc, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  picture_events(&drawn, of, threads, begin);
  picture_end(&drawn, given(O_SVG), &sim, desc.stmt, seconds, f->threads ? threads : 0, f->name);
}

// What the decomposition is predicted to take, and what runs it.
static void figures_predicted(figures_of_run *made, const program *p, const ein_decomposition *how,
                              const ein_dist *d, const ein_machine *machine, const char *name) {
  ein_sim_desc desc;
  ein_sim_info sim;
  ein_dist_info info;
  memset(&desc, 0, sizeof desc);
  desc.machine = machine;
  desc.max_work = option_count(O_WORK, 1e18);
  ein_status st = ein_simulate(p->ctx, p->graph, how, &desc, &sim);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  explain_machine(name, &sim.machine);
  explain_accuracy(how);
  made->planned = sim.seconds;
  made->machine = name, made->assumed = sim.machine;
  (void)ein_dist_info_get(d, &info);
  for (int i = 0; i < info.nstmt; i++) add_kernels(&made->kernels, d, i);
}

// A task has run; of: NULL, or what keeps it.
static ein_status run_event(void *of, const ein_dist_event *event) {
  if (event->level >= -1) progress_step();
  return of == NULL ? EIN_OK : picture_event(of, event);
}

// The part of a result that lives at a place, to its file: row by row, rows that follow each other
// in one piece. Each element is written by the place that has it.
static void part_write(const ein_dist *d, int tensor, int place, array *a) {
  const int rank = a->v.rank;
  int64_t *lo = (int64_t *)memory(3 * sizeof *lo * ((size_t)rank + 1)), *n = lo + rank, count;
  int64_t *at = n + rank, run = (int64_t)ein_dtype_size(a->v.dtype), stride = run;
  int outer = rank;  // the axes from here on are one run of bytes
  if (ein_dist_block(d, tensor, place, lo, n, &count) != EIN_OK || count == 0) return;
  while (outer > 0 && n[outer - 1] == a->v.shape[outer - 1]) stride *= n[--outer];
  run = stride * (outer > 0 ? n[outer - 1] : 1);
  for (int i = 0; i >= 0;) {
    int64_t from = 0;
    for (int r = 0; r < rank; r++) from = from * a->v.shape[r] + lo[r] + (r < outer ? at[r] : 0);
    from *= (int64_t)ein_dtype_size(a->v.dtype);
    npy_write_part(&a->to->w, from, (const char *)a->v.data + from, (size_t)run);
    for (i = outer - 2; i >= 0 && ++at[i] == n[i]; i--) at[i] = 0;
  }
}

// A result to its file by all ranks, each the blocks of its places; where these are not boxes of
// it, or not known, an equal share, which comes to it first. 0: not everybody has the file.
static int parts_write(const ein_dist *d, const ein_graph *g, const ein_fabric *f, array *a) {
  ein_tensor_info t;
  int tensor = 0;
  if (!ranks_share_output(a->to, a->nbytes)) return 0;
  if (mpi_rank > 0) watch_output(a->to);
  else a->to->data = NULL;  // nothing is left to write
  while (ein_graph_tensor(g, tensor, &t) &&
         (t.role != EIN_ROLE_OUTPUT || strcmp(t.name, a->name) != 0)) tensor++;
  if (ein_dist_block(d, tensor, 0, NULL, NULL, NULL) == EIN_OK) {
    for (int q = f->first; q < f->first + f->count; q++) part_write(d, tensor, q, a);
  } else {
    for (int r = 0; r < mpi_ranks; r++) {
      int64_t lo = a->nbytes / mpi_ranks * r;
      int64_t n = (r + 1 == mpi_ranks ? a->nbytes : a->nbytes / mpi_ranks * (r + 1)) - lo;
      ein_ztensor share = ein_tensor(EIN_U8, 1, &n, (char *)a->v.data + lo);
      const ein_status st = ranks_gather(f, &share, r);
      if (st != EIN_OK) die(exit_status(st), NULL, "%s", ein_status_text(st));
      if (r == mpi_rank) npy_write_part(&a->to->w, lo, share.data, (size_t)n);
    }
  }
  if (mpi_rank > 0) npy_write_finish(&a->to->w);  // the first renames it
  check_output(a->to);
  ranks_meet();
  return 1;
}

// Results where they are wanted: in their files, else at the first rank; and what all ranks
// together have done.
static void run_gather(const ein_dist *d, const ein_graph *g, const ein_fabric *f, array *out,
                       int nout, ein_dist_stats *stats) {
  for (int i = 0; i < nout; i++) {
    ranks_meet();
    if (out[i].to == NULL && opt[O_OUT].n > 0) continue;
    if (out[i].to != NULL && parts_write(d, g, f, &out[i])) continue;
    const ein_status st = ranks_gather(f, &out[i].v, 0);
    if (st != EIN_OK) die(exit_status(st), NULL, "%s", ein_status_text(st));
  }
  ranks_sum(&stats->tasks), ranks_sum(&stats->messages), ranks_sum(&stats->bytes);
  for (int64_t i = 0; i < stats->nstmt; i++) ranks_sum(&stats->stmt_bytes[i]);
  for (int64_t q = 0; q < stats->nplace; q++) {
    ein_place_stats *x = &stats->place[q];
    ranks_sum(&x->tasks), ranks_sum(&x->received_bytes), ranks_sum(&x->sent_bytes);
  }
}

// Runs a plan for places, bound; stats: its figures.
static double run_places(const ein_dist *d, const ein_run *bound, ein_dist_stats *stats,
                         double *begin) {
  ein_run run = *bound;
  char error[256] = "";
  ein_dist_info info;
  (void)ein_dist_info_get(d, &info);
  run.workspace_bytes = info.workspace_bytes;
  run.workspace = memory(info.workspace_bytes);
  run.error = error;
  run.error_bytes = sizeof error;
  memset(stats, 0, sizeof *stats);
  stats->nstmt = info.nstmt, stats->nplace = info.places;
  stats->stmt_bytes = (int64_t *)memory(sizeof(int64_t) * ((size_t)info.nstmt + 1));
  stats->place = (ein_place_stats *)memory(sizeof *stats->place * (size_t)info.places);
  progress_begin("running", "tasks", (double)info.tasks);
  ranks_meet();
  *begin = now(NULL);
  ein_status st = ein_dist_execute(d, &run, stats);
  const double seconds = now(NULL) - *begin;
  progress_end();
  if (st != EIN_OK)
    die(exit_status(st), NULL, "%s%s%s", ein_status_text(st), error[0] ? ": " : "", error);
  return seconds;
}

// A plan for places, decomposed or as a schedule says; of: NULL, or what keeps its events.
static ein_dist *plan_places(const program *p, const ein_decomposition *how,
                             const ein_schedule *said, const ein_fabric *f, happened *of) {
  ein_dist_desc places;
  ein_dist *d;
  ein_decompose_desc lie;
  memset(&places, 0, sizeof places);
  memset(&lie, 0, sizeof lie);
  option_inputs(&lie);
  places.inputs = lie.inputs;
  places.fabric = f;
  places.decomposition = how;
  places.schedule = said;
  places.nlayout = p->d.nbind;
  places.layout = p->d.bind;
  if (of != NULL || progress_on()) places.event_fn = run_event;
  places.event_user = of;
  progress_begin("planning", NULL, 0);
  ranks_meet();
  const ein_status st = ein_dist_create(p->ctx, p->graph, &places, &d);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
  return d;
}

// What keeps the events of a run; NULL: nobody asks.
static happened *run_happens(const program *p, int asked) {
  happened *of = NULL;
  if (asked) of = (happened *)memory(sizeof *of * (size_t)threads);
  for (int w = 0; of != NULL && w < threads; w++)
    of[w].busy = (double *)memory(sizeof(double) *
                                  ((size_t)ein_graph_statements(p->graph) + 1));
  return of;
}

// Runs the program as a schedule says; name: of the machine that it is predicted for.
static figures_of_run run_scheduled(program *p, const ein_run *bound, const ein_schedule *said,
                                    ein_fabric *f, array *out, int nout, const char *name,
                                    const ein_decompose_desc *desc) {
  figures_of_run made = no_figures();
  ein_dist_stats stats;
  double begin;
  happened *of = run_happens(p, given(O_SVG) != NULL);
  ein_dist_info info;
  ein_dist *d = plan_places(p, NULL, said, f, of);
  (void)ein_dist_info_get(d, &info);
  ranks_most(&info.peak_bytes);
  if (given(O_EXPLAIN) != NULL) fputs(schedule_text(said), stderr);
  made.seconds = run_places(d, bound, &stats, &begin);
  run_gather(d, p->graph, f, out, nout, &stats);
  if (given(O_SVG) != NULL) {
    steps_picture drawn;
    char how[80];
    snprintf(how, sizeof how, "measured, fabric %s", f->name);
    steps_picture_begin(&drawn, p, said);
    steps_picture_run(&drawn, of, threads, begin);
    steps_picture_end(&drawn, steps_of_all(p, said, desc->inputs, NULL), f->places, how,
                      made.seconds, f->threads ? threads : 0);
  }
  if (given(O_JSON) != NULL || given(O_EXPLAIN) != NULL) {
    made.planned = schedule_seconds(p, said, desc);
    made.machine = name, made.assumed = machine_assumed(p, desc->machine);
  }
  made.fabric = f->name, made.places = f->places;
  made.place = stats.place;
  made.tasks = (double)stats.tasks, made.messages = (double)stats.messages;
  made.bytes = (double)stats.bytes, made.peak = (double)info.peak_bytes;
  made.workspace = (double)info.workspace_bytes;
  for (int i = 0; i < ein_graph_statements(p->graph); i++) add_kernels(&made.kernels, d, i);
  ein_dist_destroy(d);
  return made;
}

// Ranks take the places of a plan that are best for them, see ein_mpi_map. A plan for which that
// cannot be told keeps the order of ranks.
static void run_map(const program *p, ein_fabric *f, const ein_decomposition *how,
                    const ein_schedule *said, const ein_machine *machine) {
  double between[2] = {0, 0};
  int each = 0;  // ranks of a node
  if (machine->node > 0) each = (int)(machine->node * mpi_ranks / f->places);
  if (machine->node > 0 && each == 0) each = 1;
  const ein_status st = ranks_map(p->ctx, f, p->graph, how, how == NULL ? said : NULL, each,
                                  between);
  if (st == EIN_ERR_NO_MEMORY) die_library(p->ctx, st, p->file);
  if (given(O_EXPLAIN) != NULL && between[0] > 0)
    fprintf(stderr, "nodes: %.10g bytes go between them, %.10g in the order of ranks\n",
            between[1], between[0]);
}

// Decomposes the program and runs it over the places of the fabric; out: its results.
static figures_of_run run_on_places(program *p, const ein_run *bound, array *out, int nout) {
  ein_decompose_desc desc;
  ein_machine machine;
  ein_decomposition *how = NULL;
  ein_dist_stats stats;
  ein_dist_info info;
  const char *name;
  figures_of_run made = no_figures();
  ein_fabric f = run_fabric(p);
  option_decompose(p, f.threads, &desc, &machine, &name);
  ranks_share(&machine, sizeof machine);
  desc.p = f.places;
  ein_schedule *said = schedule_of(p, desc.p, &machine);
  if (has_loops(p, said)) schedule_only();
  else {
    schedule_pins(p, said, &desc);
    schedule_end(p, said);
    how = decompose(p, &desc, &machine, &said);
    scattered(p, how);
  }
  run_map(p, &f, how, said, &machine);
  if (how == NULL) {
    made = run_scheduled(p, bound, said, &f, out, nout, name, &desc);
    p->graph = own_graph(p);
    ein_schedule_destroy(said);
    ein_fabric_destroy(&f);
    return made;
  }
  happened *of = run_happens(p, given(O_SVG) != NULL || given(O_EXPLAIN) != NULL);
  ein_dist *d = plan_places(p, how, NULL, &f, of);
  (void)ein_dist_info_get(d, &info);
  ranks_most(&info.peak_bytes);
  if (given(O_MEMORY) != NULL && (double)info.peak_bytes > machine.memory)
    die(WRONG_INPUT, "more places have less each", "a place has %" PRId64 " bytes alive, more than "
        "the %.10g it may have", info.peak_bytes, machine.memory);
  double begin, seconds = run_places(d, bound, &stats, &begin);
  run_gather(d, p->graph, &f, out, nout, &stats);
  explain_places(d, how, &f, &stats, of, seconds, name);
  if (given(O_SVG) != NULL) picture_run(p, how, &machine, &f, of, begin, seconds);
  if (given(O_JSON) != NULL || given(O_EXPLAIN) != NULL)
    figures_predicted(&made, p, how, d, &machine, name);
  made.fabric = f.name, made.places = f.places, made.seconds = seconds;
  made.place = stats.place;
  made.tasks = (double)stats.tasks, made.messages = (double)stats.messages;
  made.bytes = (double)stats.bytes, made.peak = (double)info.peak_bytes;
  made.workspace = (double)info.workspace_bytes;
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  ein_fabric_destroy(&f);
  return made;
}

// The same of a plan for one place.
static figures_of_run run_in_one(const ein_plan *plan, const ein_run *bound) {
  figures_of_run made = no_figures();
  const char *json = plan_text(plan, ein_plan_json);
  ein_plan_info info = {0};
  (void)ein_plan_info_get(plan, &info);
  made.seconds = execute_once(plan, bound);
  made.pool = 1;
  made.planned = info.seconds > 0 ? info.seconds : NAN;
  made.workspace = (double)info.workspace_bytes;
  made.peak = peak_of_json(json);
  made.tasks = info.nloop > 0 ? NAN : (double)info.ntask;
  made.messages = 0;
  kernels_of_json(&made.kernels, json);
  return made;
}

// When every statement begins and ends, and what it moves.
static void print_time_line(const ein_decomposition *d, const ein_sim_info *sim,
                            const ein_sim_stmt *each, const char *machine) {
  ein_decomp_info info;
  words cells = {NULL, 0};
  double k;
  const char *unit = time_unit(sim->seconds, &k);
  ein_decomposition_info(d, &info);
  add_word(&cells, "line"), add_word(&cells, "statement"), add_word(&cells, "tasks");
  add_cell(&cells, "start, %s", unit), add_cell(&cells, "end, %s", unit);
  add_word(&cells, "idle"), add_word(&cells, "messages"), add_word(&cells, "bytes moved");
  for (int i = 0; i < info.nstmt; i++) {
    const ein_decomp_stmt s = stmt_of(d, i);
    const ein_sim_stmt *x = &each[i];
    line_cell(&cells, s.line);
    add_word(&cells, s.out), add_cell(&cells, "%.10g", x->tasks);
    time_cell(&cells, k * x->start), time_cell(&cells, k * x->end);
    add_cell(&cells, "%.1f%%", 100 * idle_share(x->busy, x->end - x->start, info.p));
    add_cell(&cells, "%.10g", x->messages), add_cell(&cells, "%.10g", x->join + x->agg);
  }
  put_cells(stdout, &cells, 8, 2);
  decomposed_total(&info, sim, machine);
}

// --fabric sim: what a run over the places would do and when, without data.
static void print_simulated(const simulation *x) {
  const ein_sim_info *sim = &x->sim;
  figures_of_run made = no_figures();
  made.fabric = "sim", made.places = x->places, made.planned = sim->seconds;
  made.tasks = sim->tasks, made.messages = sim->messages, made.bytes = sim->join + sim->agg;
  made.peak = sim->peak_bytes;
  made.machine = x->machine, made.assumed = sim->machine;
  if (x->clock != NULL) {
    made.place = x->places <= 1 << 16 ? x->clock->stats.place : NULL, made.timed = 1;
    made.tasks = (double)x->clock->stats.tasks;  // merges, too
  }
  if (given(O_JSON) != NULL) put_figures(&made);
  else if (x->d != NULL) print_time_line(x->d, sim, x->each, x->machine);
}

static int run_simulated(program *p) {
  if (opt[O_OUT].n > 0) misuse(NULL, "-o does not apply: --fabric sim computes nothing");
  return simulate_decomposed(p, print_simulated);
}

// An expression without data.
static int eval_simulated(const char *expr) {
  job j;
  program p;
  int n;
  memset(&j, 0, sizeof j);
  array *in = shapes_of_operands(expr, &n);
  j.ctx = make_ctx();
  job_plan(&j, expr, n, in, option_dtype(EIN_NONE));
  program_of_expression(&p, &j);
  ein_plan_destroy(j.plan);
  return run_simulated(&p);
}

static int command_eval(void) {
  const char *expr = expression();
  if (is_program(expr)) {
    misuse("einsum run PROG.ein NAME=IN.npy ...", "'%s' is a program, not an expression", expr);
  }
  int n = args.n - 1;
  if (simulated()) return eval_simulated(expr);
  if (n == 0) misuse("einsum EXPR IN.npy ...", "no operands are given for '%s'", expr);
  if (opt[O_OUT].n > 1) misuse(NULL, "-o is given twice, but there is one result");
  ein_dtype dtype = option_dtype(EIN_NONE);
  job j;
  memset(&j, 0, sizeof j);
  j.ctx = make_ctx();
  check_targets(&opt[O_OUT], opt[O_OUT].n == 0 && !svg_only());
  array *in = (array *)memory(sizeof *in * (size_t)n);
  for (int k = 0; k < n; k++) load(&in[k], args.v[k + 1], 0, EIN_NONE);
  job_plan(&j, expr, n, in, dtype);
  ein_run run;
  program p;
  void *out[1];
  memset(&p, 0, sizeof p);
  if (opt[O_OUT].n > 0) output_array(&j.out, opt[O_OUT].v[0]);
  else allocate(&j.out);
  job_bind(&j, &run, out);
  int ordered = given(O_DETERMINISTIC) != NULL;  // then one place does as several do
  if (on_places() || ordered) program_of_expression(&p, &j);
  if (on_places()) (void)run_on_places(&p, &run, &j.out, 1);
  if (!on_places() && ordered) program_schedule(&p);
  if (!on_places()) (void)execute_once(ordered ? p.plan : j.plan, &run);
  ein_plan_destroy(p.plan);
  if (opt[O_OUT].n == 0 && !svg_only()) {
    print_array(&j.out, given(O_JSON) != NULL);
    if (given(O_JSON) != NULL) putchar('\n');
  }
  return finish(j.ctx, j.plan, own_graph(&p));
}

static int command_run(void) {
  const char *path = program_argument("einsum run PROG.ein NAME=IN.npy ...");
  words names = {NULL, 0}, paths = {NULL, 0};
  program p;
  program_targets(&names, &paths);
  counted_kernels();
  program_open(&p, path);
  counted_rates(p.ctx);
  program_inputs(&p, simulated());
  if (simulated()) {
    program_parse(&p);
    return run_simulated(&p);
  }
  for (int k = 0; k < p.nin; k++) {
    const char *name = p.in[k].name;
    if (!p.in[k].bound) misuse(NULL, "no file for input '%s': write %s=FILE.npy", name, name);
  }
  program_plan(&p);
  ein_tensor_info t;
  ein_run run;
  int nin = 0, nout = 0;
  while (ein_plan_input(p.plan, nin, &t)) nin++;
  while (ein_plan_output(p.plan, nout, &t)) nout++;
  const void **in = (const void **)memory(sizeof *in * ((size_t)nin + 1));
  void **data = (void **)memory(sizeof *data * ((size_t)nout + 1));
  array *out = (array *)memory(sizeof *out * ((size_t)nout + 1));
  array **chosen = (array **)memory(sizeof *chosen * ((size_t)names.n + 1));
  for (int i = 0; ein_plan_input(p.plan, i, &t); i++) {
    for (int k = 0; k < p.nin; k++) {
      if (strcmp(p.in[k].name, t.name) == 0) in[i] = p.in[k].a.v.data;
    }
  }
  for (int i = 0; ein_plan_output(p.plan, i, &t); i++) {
    out[i].name = t.name;
    set_shape(&out[i], t.dtype, t.rank, t.shape, 0);
    for (int k = 0; k < names.n; k++) {
      if (strcmp(names.v[k], t.name) == 0) chosen[k] = &out[i];
    }
  }
  for (int k = 0; k < names.n; k++) {
    if (chosen[k] == NULL) misuse(NULL, "%s has no output '%s'", p.file, names.v[k]);
  }
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = data;
  run.param = program_params(&p);
  for (int k = 0; k < names.n; k++) output_array(chosen[k], paths.v[k]);
  for (int i = 0; i < nout; i++) {
    if (out[i].v.data == NULL) allocate(&out[i]);
    data[i] = out[i].v.data;
  }
  if (given(O_COUNTED) != NULL)
    return count_plan(p.ctx, p.graph, p.plan, &run), finish(p.ctx, p.plan, p.graph);
  const figures_of_run made =
      on_places() ? run_on_places(&p, &run, out, nout) : run_in_one(p.plan, &run);
  if (given(O_JSON) != NULL) put_figures(&made);
  else if (names.n == 0 && !svg_only()) print_outputs(out, nout);
  return finish(p.ctx, p.plan, own_graph(&p));
}
