// ================================================================================================
// >>cuda-groups  groups in one kernel
// Takes statements in blocks of common loops; gives a kernel whose blocks of threads run them one
// after another, what is between them in shared memory. Blocks of each shape are a launch.
// ================================================================================================

#define EINI_CUDA_STAGES 16

// What is remembered of a choice. lanes: threads that share a fold, by stage.
typedef struct eini_cuda_together {
  eini_cuda_kernel *kernel;
  int64_t blocks;
  size_t room, states;           // of shared memory, and from where states lie there
  unsigned char lanes[EINI_CUDA_STAGES];  // their logarithm
} eini_cuda_together;

// The nest of a stage in block 0; addresses of tensors that are the blocks' own count from theirs.
static int eini_cuda_of_stage(const ein_group *g, const ein_stage *s, eini_cuda_nest *x) {
  if (!eini_cuda_of_map(&s->map, x)) return 0;
  x->param = g->param;
  for (int k = 0; k < x->nstream; k++) {
    x->away[k] = 1;
    if (x->value[k]) x->at[k] = s->offset[k];
    if (x->value[k] || g->base == NULL) continue;
    const int64_t own = g->local[s->tensor[k]];
    x->base[k] = (char *)((own >= 0 ? (uintptr_t)own : (uintptr_t)g->base[s->tensor[k]]) +
                          (uintptr_t)s->offset[k]);
  }
  eini_cuda_strides(x);
  return 1;
}

// All of them; NULL: no memory, or one is not for kernels. Freed with eini_cuda_stages_end.
static eini_cuda_nest *eini_cuda_stages(ein_cuda *c, const ein_group *g) {
  const size_t bytes = (size_t)g->nstage * sizeof(eini_cuda_nest);
  if (g->nstage < 1 || g->nstage > EINI_CUDA_STAGES) return NULL;
  eini_cuda_nest *x = (eini_cuda_nest *)c->al.alloc_fn(bytes, 64, c->al.user);
  for (int k = 0; x != NULL && k < g->nstage; k++) {
    if (eini_cuda_of_stage(g, &g->stage[k], &x[k])) continue;
    c->al.free_fn(x, bytes, c->al.user);
    x = NULL;
  }
  return x;
}

static void eini_cuda_stages_end(ein_cuda *c, const ein_group *g, eini_cuda_nest *x) {
  c->al.free_fn(x, (size_t)g->nstage * sizeof *x, c->al.user);
}

// Threads that share a fold: as many as leave none idle, where there is enough to fold.
static int eini_cuda_lanes(const eini_cuda_nest *x) {
  const int64_t results = eini_cuda_extent(x, 0, x->nfree);
  const int64_t values = eini_cuda_extent(x, x->nfree, x->n);
  int log = 0;
  while (results << (log + 1) <= EINI_CUDA_THREADS && (int64_t)2 << log <= values) log++;
  return x->fold == EIN_FOLD_NONE ? 0 : log;
}

// Bytes of a state.
static size_t eini_cuda_state_bytes(const eini_cuda_nest *x) {
  const size_t scalars = x->fold == EIN_FOLD_VAR ? 3 : x->fold == EIN_FOLD_LOGSUMEXP ? 2 : 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN) return 16;  // with a position
  return ein_dtype_size(x->type) * scalars;
}

// Shared memory of a block: what is between stages, then states of threads that share a fold, whose
// place goes to *states.
static size_t eini_cuda_room_of(const ein_group *g, const eini_cuda_nest *x, size_t *states) {
  size_t most = 0;
  for (int k = 0; k < g->nstage; k++) {
    const size_t one = eini_cuda_state_bytes(&x[k]);
    if (eini_cuda_lanes(&x[k]) > 0 && one > most) most = one;
  }
  *states = (g->bytes + 63) / 64 * 64;
  return *states + most * EINI_CUDA_THREADS;
}

// ---- the source ----

static int eini_cuda_steps(const ein_group *g) {
  int n = 0;
  for (int k = 0; k < g->nstage; k++)
    for (int i = 0; i < g->stage[k].map.nstream * g->nloop; i++) n += g->stage[k].step[i] != 0;
  return n;
}

// Addresses and values of the block at hand. at: of the steps.
static void eini_cuda_say_places(eini_cuda_writer *w, const ein_group *g, int k, int *at) {
  const eini_cuda_nest *x = w->x;
  const ein_stage *s = &g->stage[k];
  eini_text *t = &w->t;
  for (int i = 0; i < x->nstream; i++) {
    const int own = !x->value[i] && g->local[s->tensor[i]] >= 0;
    if (x->value[i]) eini_say(t, "  const long long at%d = p.at[%d]", i, i);
    else if (own) eini_say(t, "  char *const b%d = ein_room + (long long)p.b[%d]", i, i);
    else eini_say(t, "  char *const b%d = p.b[%d]", i, i);
    for (int l = 0; l < g->nloop; l++)
      if (s->step[i * g->nloop + l] != 0) eini_say(t, " + g%d * u.t[%d]", l, (*at)++);
    eini_say(t, ";\n");
  }
}

// Elements go round the threads.
static void eini_cuda_say_plainly(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "";
  eini_text *t = &w->t;
  eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]%s; i += %d) {\n",
           w->along > 0 ? " * n" : "", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(t, "  }\n");
}

// Results go round groups of threads that share a fold; what follows stands where the first of them
// has it, in a.
static void eini_cuda_say_shared_folds(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  const char *free = w->along > 0 && w->along <= x->nfree ? " * n" : "";
  const char *more = w->along > x->nfree ? " * n" : "";
  char name[16] = "", at[16];
  eini_text *t = &w->t;
  eini_say(t, "  ein_state *const all = (ein_state *)(ein_room + p.z[3]);\n"
              "  const int lanes = (int)p.z[2], lane = EIN_TID & (lanes - 1);\n"
              "  for (ix i0 = 0; i0 < (ix)p.z[0]%s; i0 += %d / lanes) {\n"
              "  const ix full = i0 + EIN_TID / lanes, i = full < (ix)p.z[0]%s ? full : 0;\n",
           free, EINI_CUDA_THREADS, free);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(t, "  ein_state a = ein_none();\n"
              "  for (ix k = lane; k < (ix)p.z[1]%s; k += lanes) {\n", more);
  eini_cuda_say_split(w, "k", x->nfree, x->n);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(t, "  if (lanes > 1) {\n  all[EIN_TID] = a;\n  EIN_SYNC;\n"
              "  for (int h = lanes / 2; h > 0; h >>= 1) {\n"
              "  if (lane < h) all[EIN_TID] = ein_merge(all[EIN_TID], all[EIN_TID + h]);\n"
              "  EIN_SYNC;\n  }\n  a = all[EIN_TID];\n  }\n"
              "  if (lane == 0 && full == i) {\n");
}

static void eini_cuda_say_results(eini_cuda_writer *w) {
  if (w->x->fold == EIN_FOLD_NONE) {
    eini_cuda_say_plainly(w);
    return;
  }
  eini_cuda_say_shared_folds(w);
  eini_say(&w->t, "  const %s y = ein_finish(a, p.q[%d]);\n", eini_cuda_type(w->x->result),
           2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n  }\n");
}

// A stage's own types and functions have names of their own. on 0: no longer.
static void eini_cuda_say_names(eini_text *t, int k, int on) {
  static const char *const names[] = {"ix", "ein_args", "ein_t", "ein_u", "ein_w", "ein_state",
                                      "ein_none", "ein_lift", "ein_merge", "ein_finish",
                                      "ein_stage", "ein_sums", "ein_begin", "ein_end"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (on) eini_say(t, "#define %s %s%d\n", names[i], names[i], k);
    else eini_say(t, "#undef %s\n", names[i]);
  }
}

static int eini_cuda_say_stage(eini_cuda_writer *w, const ein_group *g, int k, int *at) {
  unsigned char own[EINI_CUDA_STREAMS];
  eini_text *t = &w->t;
  for (int s = 0; s < w->x->nstream; s++)
    own[s] = !w->x->value[s] && g->local[g->stage[k].tensor[s]] >= 0;
  w->own = own;
  eini_cuda_say_names(t, k, 1);
  eini_cuda_say_args(w);
  if (!eini_cuda_say_fold(w)) return 0;
  eini_say(t, "EIN_DEVICE void ein_stage(EIN_ARGS(ein_args) p, EIN_ARGS(ein_steps) u, "
              "char *ein_room");
  for (int l = 0; l < g->nloop; l++) eini_say(t, ", long long g%d", l);
  eini_say(t, ") {\n");
  eini_cuda_say_places(w, g, k, at);
  eini_cuda_say_results(w);
  eini_say(t, "}\n");
  eini_cuda_say_names(t, k, 0);
  w->own = NULL;
  return 1;
}

// The kernel around the stages.
static void eini_cuda_say_together(eini_text *t, const ein_group *g) {
  eini_say(t, "typedef struct {\n");
  for (int k = 0; k < g->nstage; k++) eini_say(t, "  ein_args%d a%d;\n", k, k);
  eini_say(t, "  ein_steps u;\n} ein_args;\nEIN_KERNEL ein_kernel(const ein_args p) {\n"
              "  EIN_ROOM;\n  long long d = EIN_BID;\n");
  for (int l = g->nloop - 1; l >= 0; l--)
    eini_say(t, "  const long long g%d = p.u.o[%d] + d %% p.u.n[%d] * p.u.k[%d]; d /= p.u.n[%d];\n",
             l, l, l, l, l);
  for (int k = 0; k < g->nstage; k++) {
    eini_say(t, "%s  ein_stage%d(p.a%d, p.u, ein_room", k > 0 ? "  EIN_SYNC;\n" : "", k, k);
    for (int l = 0; l < g->nloop; l++) eini_say(t, ", g%d", l);
    eini_say(t, ");\n");
  }
  eini_say(t, "}\n");
}

static eini_cuda_kernel *eini_cuda_group_write(ein_cuda *c, const ein_group *g,
                                               const eini_cuda_nest *x) {
  eini_cuda_writer w;
  eini_cuda_kernel *kernel = NULL;
  int at = 0, said = 1, words = 3 * g->nloop + eini_cuda_steps(g) + 1;
  if (!eini_cuda_writer_begin(c, &w)) return NULL;
  w.staged = 1;
  eini_cuda_say_helpers(&w);
  eini_say(&w.t, "typedef struct { long long o[%d], n[%d], k[%d], t[%d]; } ein_steps;\n", g->nloop,
           g->nloop, g->nloop, eini_cuda_steps(g) + 1);
  for (int k = 0; k < g->nstage && said; k++) {
    eini_cuda_writer_of(&w, &x[k]);
    said = eini_cuda_say_stage(&w, g, k, &at);
    words += eini_cuda_words(&w);
  }
  eini_cuda_say_together(&w.t, g);
  if (said && words <= EINI_CUDA_WORDS) kernel = eini_cuda_kernel_of(c, &w);
  eini_cuda_writer_end(c, &w);
  return kernel;
}

// ---- choosing ----

// Has a stage before k read or made the tensor of stream i, or a stream before it?
static int eini_cuda_seen(const ein_group *g, int k, int i) {
  for (int b = 0; b <= k; b++)
    for (int s = 0; s < (b < k ? g->stage[b].map.nstream : i); s++)
      if (g->stage[b].tensor[s] >= 0 &&
          g->same[g->stage[b].tensor[s]] == g->same[g->stage[k].tensor[i]]) return 1;
  return 0;
}

// Seconds of all blocks: what they move of the device's memory, once, and of its cache, each; and
// what they compute. Few threads on a multiprocessor, and idle ones, make both slower.
static double eini_cuda_together_seconds(const ein_cuda *c, const ein_group *g,
                                         const eini_cuda_nest *x, double blocks) {
  size_t states;
  const double resident = floor((double)c->device.shared /
                                (double)(eini_cuda_room_of(g, x, &states) + 1024));
  const double wide = fmin(1, blocks / c->device.processors);
  const double full = wide * fmin(1, fmax(1, resident) * EINI_CUDA_THREADS / eini_cuda_busy);
  double once = 0, cached = 0, compute = 0;
  for (int k = 0; k < g->nstage; k++) {
    const ein_stage *s = &g->stage[k];
    const double results = (double)eini_cuda_extent(&x[k], 0, x[k].nfree);
    const double points = results * (double)eini_cuda_extent(&x[k], x[k].nfree, x[k].n);
    const double rounds = ldexp(results, eini_cuda_lanes(&x[k])) / EINI_CUDA_THREADS;
    const double idle = ceil(rounds) / rounds;
    const int single = x[k].type == EIN_F32 || x[k].type == EIN_C64 || x[k].type == EIN_I32;
    const double planes = eini_cuda_complex(x[k].type) ? 4 : 1;
    compute += idle * (4 * planes + eini_cuda_load_flops * x[k].nop) * points * blocks /
               (single ? c->device.flops_f32 : c->device.flops_f64);
    for (int i = 0; i < x[k].nstream; i++) {
      double bytes = (double)eini_cuda_points(&x[k], i) * x[k].size[i];
      if (x[k].value[i] || g->local[s->tensor[i]] >= 0) continue;
      cached += idle * bytes * blocks;
      for (int l = 0; l < g->nloop; l++)
        if (s->step[i * g->nloop + l] != 0) bytes *= (double)g->count[l];
      if (!eini_cuda_seen(g, k, i)) once += bytes;
    }
  }
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x[0].rates);
  return 1 / v.launches +
         fmax(fmax(once / v.stream, cached / (eini_cuda_cached * v.stream)), compute) / full;
}

static int eini_cuda_group_plan(ein_cuda *c, const ein_group *g, int nth, ein_choice *h) {
  eini_cuda_together way;
  double blocks = 1;
  for (int l = 0; l < g->nloop; l++) blocks *= (double)g->count[l];
  if (nth > 0 || blocks > INT32_MAX) return 0;
  eini_cuda_nest *x = eini_cuda_stages(c, g);
  if (x == NULL) return 0;
  memset(&way, 0, sizeof way);
  way.room = eini_cuda_room_of(g, x, &way.states);
  way.blocks = (int64_t)blocks;
  for (int k = 0; k < g->nstage; k++) way.lanes[k] = (unsigned char)eini_cuda_lanes(&x[k]);
  if (way.room <= c->device.shared) way.kernel = eini_cuda_group_write(c, g, x);
  memset(h, 0, sizeof *h);
  h->seconds = c->only == 1 ? 0 : eini_cuda_together_seconds(c, g, x, blocks);
  eini_cuda_stages_end(c, g, x);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  snprintf(h->variant, sizeof h->variant, "group");
  h->scratch = way.room;
  memcpy(h->state, &way, sizeof way);
  return way.kernel != NULL;
}

// ---- running ----

static void eini_cuda_group_words(const ein_group *g, const eini_cuda_nest *x,
                                  const eini_cuda_together *way, uint64_t *word) {
  int n = 0;
  for (int k = 0; k < g->nstage; k++) {
    const int64_t z[EINI_CUDA_NUMBERS] = {eini_cuda_extent(&x[k], 0, x[k].nfree),
                                          eini_cuda_extent(&x[k], x[k].nfree, x[k].n),
                                          (int64_t)1 << way->lanes[k], (int64_t)way->states};
    eini_cuda_writer w;
    memset(&w, 0, sizeof w);
    eini_cuda_writer_of(&w, &x[k]);
    n += eini_cuda_arguments(&w, z, NULL, word + n);
  }
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->from[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->count[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->block[l];
  for (int k = 0; k < g->nstage; k++)
    for (int i = 0; i < g->stage[k].map.nstream * g->nloop; i++)
      if (g->stage[k].step[i] != 0) word[n++] = (uint64_t)g->stage[k].step[i];
}

static ein_status eini_cuda_together_go(ein_cuda *c, const eini_cuda_together *way,
                                        uint64_t *word) {
  eini_cuda_kernel *kernel = eini_cuda_kernel_here(c, way->kernel);
  if (kernel == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_ready_kernel(c, kernel);
  if (st == EIN_OK) st = eini_cuda_clock(c, 0);
  if (st == EIN_OK) st = eini_cuda_launch(c, kernel, way->blocks, way->room, word);
  if (st == EIN_OK) st = eini_cuda_clock(c, 1);
  return eini_cuda_exit(c, st);
}

static ein_status eini_cuda_group_run(ein_cuda *c, const ein_group *g, const ein_choice *h) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_together way;
  memcpy(&way, h->state, sizeof way);
  eini_cuda_nest *x = eini_cuda_stages(c, g);
  if (x == NULL) return EIN_ERR_NO_MEMORY;
  memset(word, 0, sizeof word);
  eini_cuda_group_words(g, x, &way, word);
  eini_cuda_stages_end(c, g, x);
  return eini_cuda_together_go(c, &way, word);
}
