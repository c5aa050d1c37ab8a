// SPDX-License-Identifier: MIT
//
// command_run.h - `einsum run PROG`: a program on data, in one piece or over places.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// Is the program to be decomposed?
static int on_places(void) { return decomposed() || given(O_FABRIC) != NULL; }

// The fabric of --fabric and -p.
static ein_fabric run_fabric(const program *p) {
  const char *name = given(O_FABRIC), *places = given(O_PLACES);
  int64_t n = name != NULL && strcmp(name, "threads") == 0 ? threads : 1;
  ein_fabric f;
  ein_status st;
  if (places != NULL && !read_int(places, strlen(places), &n))
    misuse(NULL, "-p takes a number, not '%s'", places);
  if (n < 1 || n > EIN_PLACES_MAX)
    die(WRONG_INPUT, NULL, "-p takes 1 to %d places, not %s", EIN_PLACES_MAX, places);
  if (name == NULL || strcmp(name, "serial") == 0) st = ein_fabric_serial((int)n, &f);
  else if (strcmp(name, "threads") == 0) st = ein_fabric_threads((int)n, &f);
  else if (strcmp(name, "copying") == 0) st = ein_fabric_copying(p->ctx, (int)n, &f);
  else misuse("serial, threads or copying", "--fabric %s is not in this version", name);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  return f;
}

// What was done, for --explain.
static void explain_places(const ein_dist *d, const ein_decomposition *how, const ein_fabric *f,
                           const ein_dist_stats *stats, double seconds) {
  ein_dist_info info;
  if (given(O_EXPLAIN) == NULL) return;
  (void)ein_dist_info_get(d, &info);
  for (int i = 0; i < info.nstmt; i++) {
    ein_decomp_stmt s;
    ein_parts parts;
    (void)ein_decomposition_parts(how, i, &parts);
    (void)ein_decomposition_stmt(how, i, &s);
    fprintf(stderr, "%-12s %-40s %12" PRId64 " bytes\n", s.out, parts_text(&s, &parts),
            stats->stmt_bytes[i]);
  }
  fprintf(stderr, "%s, %d places: %" PRId64 " tasks, %" PRId64 " messages, %" PRId64
          " bytes read from other places; at most %" PRId64 " bytes at a place; %.3g ms\n",
          f->name, info.places, stats->tasks, stats->messages, stats->bytes, info.peak_bytes,
          1e3 * seconds);
}

// Decomposes the program and runs it over the places of the fabric.
static void run_on_places(program *p, const ein_run *bound) {
  ein_decompose_desc desc;
  ein_machine machine;
  ein_decomposition *how;
  ein_dist_desc places;
  ein_dist *d;
  ein_dist_stats stats;
  ein_dist_info info;
  ein_run run = *bound;
  char error[256] = "";
  ein_fabric f = run_fabric(p);
  option_decompose(&desc, &machine);
  desc.p = f.places;
  ein_status st = ein_decompose(p->ctx, p->graph, &desc, &how);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  memset(&places, 0, sizeof places);
  places.fabric = &f;
  places.decomposition = how;
  places.nlayout = p->d.nbind;
  places.layout = p->d.bind;
  st = ein_dist_create(p->ctx, p->graph, &places, &d);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  (void)ein_dist_info_get(d, &info);
  memset(&stats, 0, sizeof stats);
  stats.nstmt = info.nstmt;
  stats.stmt_bytes = (int64_t *)memory(sizeof(int64_t) * ((size_t)info.nstmt + 1));
  run.workspace_bytes = info.workspace_bytes;
  run.workspace = memory(run.workspace_bytes);
  run.error = error;
  run.error_bytes = sizeof error;
  double begin = now(NULL);
  st = ein_dist_execute(d, &run, &stats);
  if (st != EIN_OK)
    die(exit_status(st), NULL, "%s%s%s", ein_status_text(st), error[0] ? ": " : "", error);
  explain_places(d, how, &f, &stats, now(NULL) - begin);
  ein_dist_destroy(d);
  ein_decomposition_destroy(how);
  ein_fabric_destroy(&f);
}

static int command_run(void) {
  const char *path = program_argument("einsum run PROG.ein NAME=IN.npy ...");
  words names = {NULL, 0}, paths = {NULL, 0};
  program p;
  program_targets(&names, &paths);
  program_open(&p, path);
  program_inputs(&p, 0);
  for (int k = 0; k < p.nin; k++) {
    const char *name = p.in[k].name;
    if (!p.in[k].bound) misuse(NULL, "no file for input '%s': write %s=FILE.npy", name, name);
  }
  if (on_places() && given(O_MEMORY) != NULL)
    misuse(NULL, "--memory is for programs in one piece, not over places");
  program_plan(&p);
  ein_tensor_info t;
  int nin = 0, nout = 0;
  while (bound_input(&p, nin, &t)) nin++;
  while (bound_output(&p, nout, &t)) nout++;
  const void **in = (const void **)memory(sizeof *in * ((size_t)nin + 1));
  void **data = (void **)memory(sizeof *data * ((size_t)nout + 1));
  array *out = (array *)memory(sizeof *out * ((size_t)nout + 1));
  const array **chosen = (const array **)memory(sizeof *chosen * ((size_t)names.n + 1));
  for (int i = 0; bound_input(&p, i, &t); i++) {
    for (int k = 0; k < p.nin; k++) {
      if (strcmp(p.in[k].name, t.name) == 0) in[i] = p.in[k].a.v.data;
    }
  }
  for (int i = 0; bound_output(&p, i, &t); i++) {
    out[i].name = t.name;
    set_shape(&out[i], t.dtype, t.rank, t.shape, 0);
    for (int k = 0; k < names.n; k++) {
      if (strcmp(names.v[k], t.name) == 0) chosen[k] = &out[i];
    }
  }
  for (int k = 0; k < names.n; k++) {
    if (chosen[k] == NULL) misuse(NULL, "%s has no output '%s'", p.file, names.v[k]);
    check_storable(chosen[k]);
  }
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = data;
  run.param = program_params(&p);
  for (int i = 0; i < nout; i++) {
    allocate(&out[i]);
    data[i] = out[i].v.data;
  }
  if (on_places()) run_on_places(&p, &run);
  else execute(p.plan, &run);
  if (names.n > 0) write_outputs(names.n, chosen, &paths);
  else print_outputs(out, nout);
  return finish(p.ctx, p.plan, p.graph);
}
