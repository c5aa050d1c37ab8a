// ================================================================================================
// >>nodes  which process drives which places, where nodes have several
// Takes what places send each other under a plan; gives runs of places to processes so that few
// bytes go between nodes: grids turned over, one node filled after the other, then exchanges.
// ================================================================================================

enum { EINI_NODES_MOST = 2048 };

typedef struct eini_nodes {
  int n, nnode;             // runs of places and processes; nodes
  int64_t places;
  const int *node;          // per process, from 0 in the order in which they come
  int *room;                // per node: how many processes it has
  double *w;                // [n][n]: bytes between two runs, either way
  double *near;             // [n][nnode]: bytes between a run and all those of a node
  int *at, *best;           // per run: a node
} eini_nodes;

static void eini_nodes_add(eini_nodes *x, int64_t from, int64_t to, double bytes) {
  const int a = (int)(((from + 1) * x->n - 1) / x->places);
  const int b = (int)(((to + 1) * x->n - 1) / x->places);
  if (a == b) return;
  x->w[(int64_t)a * x->n + b] += bytes;
  x->w[(int64_t)b * x->n + a] += bytes;
}

static void eini_nodes_sim(void *user, const ein_sim_move *m) {
  eini_nodes_add((eini_nodes *)user, m->from, m->to, m->bytes);
}

static ein_status eini_nodes_step(void *user, const ein_schedule_move *m) {
  eini_nodes_add((eini_nodes *)user, m->from, m->to, (double)m->bytes);
  return EIN_OK;
}

static double eini_nodes_between(const eini_nodes *x, const int *at) {
  double bytes = 0;
  for (int a = 0; a < x->n; a++)
    for (int b = 0; b < a; b++)
      if (at[a] != at[b]) bytes += x->w[(int64_t)a * x->n + b];
  return bytes;
}

// Exchanges two runs while that helps.
static void eini_nodes_exchange(eini_nodes *x) {
  const int n = x->n, k = x->nnode;
  for (int a = 0; a < n; a++) {
    for (int b = 0; b < k; b++) x->near[a * k + b] = 0;
    for (int b = 0; b < n; b++) x->near[a * k + x->at[b]] += x->w[(int64_t)a * n + b];
  }
  for (int better = 1; better;) {
    better = 0;
    for (int a = 0; a < n; a++) {
      for (int b = 0; b < a; b++) {
        const int u = x->at[a], v = x->at[b];
        const double gain = x->near[a * k + v] - x->near[a * k + u] + x->near[b * k + u] -
                            x->near[b * k + v] - 2 * x->w[(int64_t)a * n + b];
        if (u == v || gain < 0.5) continue;  // bytes are whole
        for (int c = 0; c < n; c++) {
          const double change = x->w[(int64_t)c * n + b] - x->w[(int64_t)c * n + a];
          x->near[c * k + u] += change;
          x->near[c * k + v] -= change;
        }
        x->at[a] = v;
        x->at[b] = u;
        better = 1;
      }
    }
  }
}

// Fills nodes with runs, in the order of a grid of t columns that is turned over.
static void eini_nodes_turned(eini_nodes *x, int t) {
  int node = 0, used = 0;
  for (int i = 0; i < x->n; i++, used++) {
    while (used == x->room[node]) used = 0, node++;
    x->at[i % (x->n / t) * t + i / (x->n / t)] = node;
  }
}

// Fills nodes one after another, each with what has most to do with those that it has; run `seed`
// first, at node `seed` of them, in turn.
static void eini_nodes_grown(eini_nodes *x, int seed) {
  const int n = x->n;
  double *to = x->near;  // here of the node at hand
  for (int a = 0; a < n; a++) x->at[a] = -1;
  for (int k = 0, next = seed; k < x->nnode; k++, next = -1) {
    const int node = (seed + k) % x->nnode;
    for (int a = 0; a < n; a++) to[a] = 0;
    for (int used = 0; used < x->room[node]; used++, next = -1) {
      for (int a = 0; a < n && (used > 0 || k > 0); a++)
        if (x->at[a] < 0 && (next < 0 || to[a] > to[next])) next = a;
      x->at[next] = node;
      for (int a = 0; a < n; a++) to[a] += x->w[(int64_t)a * n + next];
    }
  }
}

// The best of several beginnings, in x->best; the first is that nothing changes.
static void eini_nodes_search(eini_nodes *x, double *between) {
  const int grown = x->n <= 64 ? x->n : 64 * 64 / x->n + 1;
  double least = eini_nodes_between(x, x->node);
  between[0] = least;
  for (int a = 0; a < x->n; a++) x->best[a] = x->node[a];
  for (int t = 0; t < x->n + grown; t++) {
    if (t > 0 && t < x->n && x->n % t != 0) continue;
    for (int a = 0; a < x->n && t == 0; a++) x->at[a] = x->node[a];
    if (t >= x->n) eini_nodes_grown(x, t - x->n);
    else if (t > 0) eini_nodes_turned(x, t);
    eini_nodes_exchange(x);
    const double bytes = eini_nodes_between(x, x->at);
    if (bytes > least - 0.5) continue;
    least = bytes;
    memcpy(x->best, x->at, (size_t)x->n * sizeof *x->at);
  }
  between[1] = least;
}

// Processes of the nodes that were found: those stay that can.
static void eini_nodes_processes(eini_nodes *x, int *process) {
  int *taken = x->at;
  memset(taken, 0, (size_t)x->n * sizeof *taken);
  for (int a = 0; a < x->n; a++) {
    process[a] = x->best[a] == x->node[a] ? a : -1;
    if (process[a] >= 0) taken[a] = 1;
  }
  for (int a = 0; a < x->n; a++) {
    for (int s = 0; s < x->n && process[a] < 0; s++) {
      if (taken[s] || x->node[s] != x->best[a]) continue;
      process[a] = s;
      taken[s] = 1;
    }
  }
}

// What places send each other.
static ein_status eini_nodes_count(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *d,
                                   const ein_schedule *s, eini_nodes *x) {
  ein_sim_desc desc;
  ein_sim_info info;
  memset(&desc, 0, sizeof desc);
  desc.move_fn = eini_nodes_sim;
  desc.user = x;
  if (d != NULL) return ein_simulate(ctx, g, d, &desc, &info);
  for (int k = 0; k < (int)g->nstmt; k++) {
    ein_schedule_info one;
    EINI_TRY(ein_schedule_cost(ctx, s, k, eini_nodes_step, x, &one));
  }
  return EIN_OK;
}

// Numbers nodes in the order in which they come; given: by any names.
static ein_status eini_nodes_init(eini_arena *a, int n, const int *given, eini_nodes *x) {
  int *node = EINI_NEW(a, int, n);
  x->n = n;
  x->room = EINI_NEW(a, int, n);
  x->at = EINI_NEW(a, int, n);
  x->best = EINI_NEW(a, int, n);
  x->w = EINI_NEW(a, double, (int64_t)n * n);
  if (node == NULL || x->room == NULL || x->at == NULL || x->best == NULL || x->w == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int s = 0; s < n; s++) {
    int k = 0;
    while (k < s && given[k] != given[s]) k++;
    node[s] = k < s ? node[k] : x->nnode++;
    x->room[node[s]]++;
  }
  x->node = node;
  x->near = EINI_NEW(a, double, (int64_t)n * x->nnode);
  return x->near == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

EIN_API ein_status ein_nodes_map(ein_ctx *ctx, const ein_graph *graph, const ein_decomposition *d,
                                 const ein_schedule *s, int places, int n, const int *node,
                                 int *process, double *between) {
  eini_arena arena;
  eini_nodes x;
  double bytes[2];
  memset(&x, 0, sizeof x);
  if (graph == NULL || (d == NULL) == (s == NULL) || n < 1 || places < n || node == NULL ||
      process == NULL) return EIN_ERR_ARGUMENT;
  for (int a = 0; a < n; a++) process[a] = a;
  if (n > EINI_NODES_MOST) return EIN_ERR_TOO_LARGE;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  x.places = places;
  ein_status st = eini_nodes_init(&arena, n, node, &x);
  if (st == EIN_OK && x.nnode > 1) st = eini_nodes_count(ctx, graph, d, s, &x);
  if (st == EIN_OK) {
    eini_nodes_search(&x, bytes);
    eini_nodes_processes(&x, process);
    if (between != NULL) between[0] = bytes[0], between[1] = bytes[1];
  }
  eini_arena_free(&arena);
  return st;
}
