// ================================================================================================
// >>path  contraction order of n operands
// Takes an index network; gives a pairwise order and its cost. Never worse than left to right.
// ================================================================================================
// An order is a binary tree in static-single-assignment form: operands are nodes 0..n-1, step i
// makes node n+i from two smaller nodes. Within the search extents are doubles and 0 is replaced
// by a tiny number, so that quotients of products stay defined; the costs reported are true.

typedef enum eini_path_algo {
  EINI_PATH_AUTO = 0,
  EINI_PATH_NAIVE,  // left to right
  EINI_PATH_OPTIMAL,
  EINI_PATH_DP,
  EINI_PATH_GREEDY,
  EINI_PATH_RANDOM
} eini_path_algo;

typedef enum eini_path_goal {
  EINI_GOAL_FLOPS = 0,
  EINI_GOAL_SIZE,  // largest intermediate, elements
  EINI_GOAL_BYTES  // sum over steps of elements read and written
} eini_path_goal;

typedef struct eini_net {  // the problem; label sets are sorted and without duplicates
  int nterm, nlabel;       // terms 0..nterm-1 are operands, term nterm is the output
  const int64_t *extent;   // [nlabel]
  const int *start;        // [nterm+2] term t has labels[start[t]] .. labels[start[t+1]-1]
  const int *labels;
} eini_net;

typedef struct eini_path_opts {
  eini_path_algo algo;
  eini_path_goal goal;
  double seconds;  // budget in seconds (needs the clock); 0: a default budget in work steps
  double (*now_fn)(void *user);
  void *now_user;
  int64_t steps;  // budget in work steps, about a nanosecond each (0: default)
  uint64_t seed;
  struct eini_given *given;  // a path to take where it will do; or NULL
} eini_path_opts;

// Linear format, as opt_einsum's: step i takes the positions pos[first[i]] .. pos[first[i+1] - 1],
// rising, of the current list; all of them are removed and the result is appended.
typedef struct eini_path {
  int nstep;
  int *first;      // [nstep + 1]
  int *pos;
  double flops;    // of the steps: product of extents, times eini_product_flops
  double largest;  // largest intermediate, elements (output included)
  double moved;    // sum over steps of elements of the inputs and the result
  const char *method;  // what produced it
  double seconds[3];   // predicted, see eini_path_way; 0: nothing was compared
  int plain;           // as found is from left to right
  int proved;          // 1: optimal for the goal; 2: optimal among connected subsets; 0: neither
} eini_path;

// Ways between which predictions choose.
enum { EINI_AS_FOUND, EINI_LEFT_TO_RIGHT, EINI_ONE_PASS };
static const char *const eini_path_way[] = {"as found", "left to right", "one pass"};

// Room for nstep steps of npos positions in all.
static ein_status eini_path_room(eini_arena *a, int nstep, int npos, eini_path *path) {
  path->first = EINI_NEW(a, int, (int64_t)nstep + 1);
  path->pos = EINI_NEW(a, int, npos);
  return path->first == NULL || path->pos == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

#define EINI_PATH_EXACT 14   // operands for the all-subsets search
#define EINI_PATH_LINKED 63  // operands for the connected-subsets search: one word per subset
#define EINI_PATH_FAN 24     // neighbours looked at through one label
#define EINI_TREE_REST ((uint64_t)1 << 63)
#define EINI_TREE_SLOTS ((int64_t)1 << 18)
#define EINI_TREE_WINDOW 8    // terms of a window
#define EINI_TREE_MAX 400000  // operands times words of labels: the largest bitset form
typedef int eini_path_pair[2];
typedef struct eini_path_sums { double flops, largest, moved; } eini_path_sums;  // see eini_path

// Account for a step. NaN is inf * 0: some extent is 0, and so is the product.
static void eini_path_add(eini_path_sums *s, double flops, double size, double read) {
  if (flops >= 0) s->flops += flops;
  if (size + read >= 0) s->moved += size + read;
  if (size > s->largest) s->largest = size;
}

static double eini_path_value(eini_path_goal goal, const eini_path_sums *s) {
  return goal == EINI_GOAL_SIZE ? s->largest : goal == EINI_GOAL_BYTES ? s->moved : s->flops;
}

static int eini_path_better(eini_path_goal goal, const eini_path_sums *a, const eini_path_sums *b) {
  double x = eini_path_value(goal, a), y = eini_path_value(goal, b);
  if (x < y || x > y) return x < y;
  return goal == EINI_GOAL_FLOPS ? a->largest < b->largest : a->flops < b->flops;
}

typedef struct eini_path_term {
  double size, open;  // elements; the same without labels that no other term has
  double flops;       // of the step that made it
  int head;           // its labels: a list of cells, rising; cell i has label net->labels[i]
  int into;           // itself, or a later node that it became part of
} eini_path_term;

typedef struct eini_path_run {  // an order being carried out
  const eini_net *net;
  double *ext;
  int nnode;
  eini_path_term *term;
  int *next;   // cell after a cell, or -1. A step splices the lists of its operands
  int *count;  // [nlabel] terms left that have the label, and the output
  eini_path_sums sums;
} eini_path_run;

static ein_status eini_path_run_init(eini_path_run *r, eini_arena *arena, const eini_net *net,
                                     int nnode) {
  r->net = net;
  r->ext = EINI_NEW(arena, double, net->nlabel);
  r->term = EINI_NEW(arena, eini_path_term, nnode);
  r->count = EINI_NEW(arena, int, (int64_t)net->nlabel + net->start[net->nterm]);
  if (r->ext == NULL || r->term == NULL || r->count == NULL) return EIN_ERR_NO_MEMORY;
  r->next = r->count + net->nlabel;
  for (int l = 0; l < net->nlabel; l++) r->ext[l] = (double)net->extent[l];
  return EIN_OK;
}

static void eini_path_reset(eini_path_run *r) {
  const eini_net *net = r->net;
  int n = r->nnode = net->nterm;
  memset(&r->sums, 0, sizeof r->sums);
  memset(r->count, 0, (size_t)net->nlabel * sizeof(int));
  for (int i = 0; i < net->start[n + 1]; i++) r->count[net->labels[i]]++;
  for (int t = 0; t < n; t++) {
    eini_path_term *d = &r->term[t];
    int end = net->start[t + 1];
    d->head = net->start[t] < end ? net->start[t] : -1;
    d->into = t;
    d->size = d->open = 1;
    for (int i = net->start[t]; i < end; i++) {
      double e = r->ext[net->labels[i]];
      d->size *= e;
      if (r->count[net->labels[i]] > 1) d->open *= e;
      r->next[i] = i + 1 < end ? i + 1 : -1;
    }
  }
}

// Contract nodes a and b (b = -1: a alone) into a new node. Returns the number of labels.
static int eini_path_step(eini_path_run *r, int a, int b) {
  const int *labels = r->net->labels;
  eini_path_term *x = &r->term[a], *y = b < 0 ? NULL : &r->term[b], *z = &r->term[r->nnode];
  int i = x->head, j = y == NULL ? -1 : y->head, *tail = &z->head, summed = 0, n = 0;
  double all = 1, size = 1;
  for (; i >= 0 || j >= 0; n++) {
    int li = i < 0 ? INT_MAX : labels[i], lj = j < 0 ? INT_MAX : labels[j];
    int cell = li <= lj ? i : j, l = li <= lj ? li : lj;
    if (li <= lj) i = r->next[i];
    if (lj <= li) j = r->next[j];
    r->count[l] -= li == lj;
    all *= r->ext[l];
    summed |= r->count[l] == 1;  // nobody else has it
    if (r->count[l] == 1) continue;
    size *= r->ext[l];
    *tail = cell;
    tail = &r->next[cell];
  }
  *tail = -1;
  z->size = z->open = size;
  z->flops = all * eini_product_flops(2, summed);
  eini_path_add(&r->sums, z->flops, size, x->size + (y == NULL ? 0 : y->size));
  z->into = x->into = r->nnode++;
  if (y != NULL) y->into = z->into;
  return n;
}

// Fenwick tree (Fenwick, A new data structure for cumulative frequency tables, 1994) over node
// numbers: sum[0..n], which nodes are in the current list, and at which position.
static void eini_path_mark(int *sum, int n, int x, int by) {
  for (int i = x + 1; i <= n; i += i & -i) sum[i] += by;
}

// Operands 0..n-1 of room nodes.
static int *eini_path_marks(eini_arena *arena, int n, int room) {
  int *sum = EINI_NEW(arena, int, room + 1);
  for (int t = 0; t < n && sum != NULL; t++) eini_path_mark(sum, room, t, 1);
  return sum;
}

static int eini_path_position(const int *sum, int x) {
  int s = 0;
  for (int i = x; i > 0; i -= i & -i) s += sum[i];
  return s;
}

static int eini_path_node(const int *sum, int n, int position) {
  int x = 0, bit = 1;
  while (bit <= n / 2) bit *= 2;
  for (; bit > 0; bit /= 2) {
    if (x + bit > n || sum[x + bit] > position) continue;
    x += bit;
    position -= sum[x];
  }
  return x;
}

// Contracts m nodes into one, which is accounted for as one step.
static void eini_path_all(eini_path_run *r, const int *node, int m, int *stamp, int step) {
  const eini_path_sums before = r->sums;
  double all = 1, read = 0;
  int x = node[0], closed = 0;  // labels that the result lacks
  for (int k = 0; k < m; k++) {
    read += r->term[node[k]].size;
    for (int i = r->term[node[k]].head; i >= 0; i = r->next[i]) {
      int l = r->net->labels[i];
      if (stamp[l] == step) continue;
      stamp[l] = step;
      all *= r->ext[l];
      closed++;
    }
  }
  for (int k = 1; k < m || k == 1; k++) {
    eini_path_step(r, x, k < m ? node[k] : -1);
    x = r->nnode - 1;
  }
  for (int i = r->term[x].head; i >= 0; i = r->next[i]) closed--;
  r->sums = before;
  r->term[x].flops = all * eini_product_flops(m, closed > 0);
  eini_path_add(&r->sums, r->term[x].flops, r->term[x].size, read);
}

// Costs of a path's steps. EIN_ERR_ARGUMENT: they are not a path of the network; *bad is the entry
// of path->pos that does not fit, or -1 when what is left at the end is not one operand.
static ein_status eini_path_cost_in(eini_arena *scratch, const eini_net *net, eini_path *path,
                                    int *bad) {
  eini_path_run r;
  int count = net->nterm, npos = path->first[path->nstep], room = count + npos;
  EINI_TRY(eini_path_run_init(&r, scratch, net, room));
  int *sum = eini_path_marks(scratch, count, room), *node = EINI_NEW(scratch, int, npos);
  int *stamp = EINI_NEW(scratch, int, net->nlabel), *taken = EINI_NEW(scratch, int, room);
  if (sum == NULL || node == NULL || stamp == NULL || taken == NULL) return EIN_ERR_NO_MEMORY;
  eini_path_reset(&r);
  for (int i = 0; i < path->nstep; i++) {
    int *p = path->pos + path->first[i], m = path->first[i + 1] - path->first[i];
    for (int k = 0; k < m; k++) {
      *bad = (int)(p - path->pos) + k;
      if (p[k] < 0 || p[k] >= count || taken[p[k]] == i + 1) return EIN_ERR_ARGUMENT;
      taken[p[k]] = i + 1;
    }
    eini_sort_ints(p, m);
    for (int k = 0; k < m; k++) node[k] = eini_path_node(sum, room, p[k]);
    for (int k = 0; k < m; k++) eini_path_mark(sum, room, node[k], -1);
    eini_path_all(&r, node, m, stamp, i + 1);
    eini_path_mark(sum, room, r.nnode - 1, 1);
    count -= m - 1;
  }
  path->flops = r.sums.flops;
  path->largest = r.sums.largest;
  path->moved = r.sums.moved;
  *bad = -1;
  return count == 1 ? EIN_OK : EIN_ERR_ARGUMENT;
}

// Fills in the costs of the steps of `path`; see eini_path_cost_in.
static ein_status eini_path_cost(eini_arena *arena, const eini_net *net, eini_path *path,
                                 int *bad) {
  eini_arena scratch;
  path->flops = path->largest = path->moved = 0;
  *bad = -1;
  if (net->nterm == 0) return path->nstep == 0 ? EIN_OK : EIN_ERR_ARGUMENT;
  if (path->nstep < 1 || path->first[path->nstep] > INT_MAX / 2 - net->nterm)
    return EIN_ERR_ARGUMENT;
  for (int i = 0; i < path->nstep; i++)
    if (path->first[i + 1] <= path->first[i]) return EIN_ERR_ARGUMENT;
  eini_arena_init(&scratch, &arena->al);
  ein_status status = eini_path_cost_in(&scratch, net, path, bad);
  eini_arena_free(&scratch);
  return status;
}

// A pair that may be contracted, in a heap. That of eini_ranked would serve, but greedy runs are
// little else than this heap, and it makes them 1.5 times as long (bench/path_bench.c).
typedef struct eini_path_offer {
  int64_t key;                     // ordered as the double it is made from
  int a, b;
} eini_path_offer;

typedef struct eini_path_near {  // what a node shares with the node in hand
  double all, closed;            // extents of the shared labels, and of those no other node has
  int with, label;               // the node in hand; the label seen last
  int found;                     // [i]: neighbour i of the node in hand
} eini_path_near;

typedef struct eini_path_search {
  eini_arena *arena;  // scratch, freed when the search ends
  const eini_net *net;
  const eini_path_opts *opts;
  eini_path_goal goal;
  uint64_t rng;
  int64_t left, tick;  // work steps left; to the next look at the clock
  double end;          // time at which to stop, if > 0
  eini_path_run run;
  eini_path_pair *kid, *trial;  // the best tree so far; another
  int *tmp;                     // [2n]
  eini_path_sums best;
  const char *method;  // NULL: no tree yet
  int proved;
  // Of greedy runs: operands that have a label, as nodes they are part of; a heap of pairs.
  int *lstart, *member, *len;
  eini_path_near *near;
  eini_path_offer *heap;
  int64_t nheap, heap_cap;
  double temperature, weight;
} eini_path_search;

// Account for work done; 1 when the budget is used up.
static int eini_path_spend(eini_path_search *s, int64_t units) {
  s->left -= units;
  s->tick -= units;
  if (s->end > 0 && s->tick < 0) {
    s->tick = 20000;
    if (s->opts->now_fn(s->opts->now_user) >= s->end) s->left = -1;
  }
  return s->left < 0;
}

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t eini_path_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int eini_path_below(uint64_t *state, int n) {
  return (int)(((eini_path_random(state) >> 32) * (uint64_t)n) >> 32);
}

static double eini_path_unit(uint64_t *state) {  // in (0, 1)
  return ((double)(eini_path_random(state) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

static int eini_path_bit(uint64_t x) { return EINI_CTZ(x); }  // the lowest

static void eini_path_make(eini_path_search *s, int a, int b) {
  int *kid = s->trial[s->run.nnode - s->net->nterm];
  kid[0] = a;
  kid[1] = b;
  eini_path_spend(s, 40 + 5 * eini_path_step(&s->run, a, b));
}

static int eini_path_hope(const eini_path_search *s) {
  return s->method == NULL || eini_path_better(s->goal, &s->run.sums, &s->best);
}

// The tree `trial`, just carried out, becomes the best one if it is better.
static void eini_path_keep(eini_path_search *s, const char *method) {
  if (!eini_path_hope(s)) return;
  memcpy(s->kid, s->trial, (size_t)(s->net->nterm - 1) * sizeof s->kid[0]);
  s->best = s->run.sums;
  s->method = method;
}

static void eini_path_try(eini_path_search *s, const char *method) {
  eini_path_reset(&s->run);
  for (int i = 0; i < s->net->nterm - 1; i++) {
    eini_path_make(s, s->trial[i][0], s->trial[i][1]);
    if (!eini_path_hope(s)) return;  // costs only grow
  }
  eini_path_keep(s, method);
}

static ein_status eini_path_push(eini_path_search *s, double cost, int a, int b) {
  int64_t key;
  memcpy(&key, &cost, sizeof key);
  if (key < 0) key ^= INT64_MAX;  // sign and magnitude to two's complement
  void *p = eini_grow(s->arena, s->heap, s->nheap, &s->heap_cap, sizeof *s->heap);
  if (p == NULL) return EIN_ERR_NO_MEMORY;
  eini_path_offer *h = s->heap = (eini_path_offer *)p;
  int64_t i = s->nheap++;
  for (; i > 0 && key < h[(i - 1) / 2].key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i].key = key;
  h[i].a = a;
  h[i].b = b;
  return EIN_OK;
}

// Remove the smallest key. The hole goes down to a leaf, then the last pair goes up from there.
static eini_path_offer eini_path_pop(eini_path_search *s) {
  eini_path_offer *h = s->heap, top = h[0], c = h[--s->nheap];
  int64_t i = 0, k = 1;
  h[s->nheap].key = INT64_MAX;  // so that the choice of a child needs no branch
  for (; k < s->nheap; i = k, k = 2 * k + 1) {
    k += h[k + 1].key < h[k].key;
    h[i] = h[k];
  }
  for (; i > 0 && c.key < h[(i - 1) / 2].key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = c;
  return top;
}

// The cost of Smith and Gray (opt_einsum, JOSS 2018); with a temperature, the perturbed form of
// Gray and Kourtis (Hyper-optimized tensor network contraction, Quantum 5, 410, 2021).
static double eini_path_key(eini_path_search *s, int a, int b) {
  const eini_path_term *x = &s->run.term[a], *y = &s->run.term[b];
  const eini_path_near *near = &s->near[b];
  if (near->all >= x->open && near->all >= y->open) return -HUGE_VAL;  // the same labels
  double size = x->open / near->all * (y->open / near->closed);
  if (!(size < 1e300)) size = 1e300;
  if (s->temperature <= 0) return size - s->weight * (x->size + y->size);
  double d = size / s->weight - s->weight * (x->size + y->size);
  return (d < 0 ? -log1p(-d) : log1p(d)) + s->temperature * log(-log(eini_path_unit(&s->rng)));
}

// Push the pairs of node a with its neighbours before it.
static ein_status eini_path_pairs(eini_path_search *s, int a) {
  eini_path_run *r = &s->run;
  int nfound = 0;
  for (int i = r->term[a].head; i >= 0; i = r->next[i]) {
    int l = r->net->labels[i], *member = s->member + s->lstart[l];
    for (int m = s->len[l] - 1, seen = 0; m >= 0 && seen <= EINI_PATH_FAN; m--) {
      int b = member[m];
      while (r->term[b].into != b) b = r->term[b].into = r->term[r->term[b].into].into;
      eini_path_near *near = &s->near[b];
      if (near->with == a && near->label == l) {  // two operands have become one node
        member[m] = member[--s->len[l]];
        continue;
      }
      member[m] = b;
      seen++;
      if (near->with != a) {
        near->with = a;
        near->all = near->closed = 1;
        if (b != a) s->near[nfound++].found = b;
      }
      near->label = l;
      near->all *= r->ext[l];
      if (r->count[l] == 2) near->closed *= r->ext[l];
    }
  }
  eini_path_spend(s, 50 * nfound + 20);
  for (int i = 0; i < nfound; i++) {
    int b = s->near[i].found;
    if (b < a) EINI_TRY(eini_path_push(s, eini_path_key(s, a, b), a, b));
  }
  return EIN_OK;
}

// A greedy run fills `trial`. Where results have no more labels than operands (chains), the
// smallest result is the better guide; elsewhere it loses to the reduction in memory by far.
static ein_status eini_path_greedy(eini_path_search *s, int random) {
  const eini_net *net = s->net;
  eini_path_run *r = &s->run;
  int n = net->nterm, nlabel = net->nlabel;
  if (s->heap == NULL) {
    s->lstart = EINI_NEW(s->arena, int, 2 * (int64_t)nlabel + 1 + net->start[n]);
    s->near = EINI_NEW(s->arena, eini_path_near, 2 * n);
    s->heap_cap = 2 * (int64_t)n + 8;
    s->heap = EINI_NEW(s->arena, eini_path_offer, s->heap_cap);
    if (s->lstart == NULL || s->near == NULL || s->heap == NULL) return EIN_ERR_NO_MEMORY;
    s->len = s->lstart + nlabel + 1;
    s->member = s->len + nlabel;
    for (int i = 0; i < net->start[n]; i++) s->lstart[net->labels[i] + 1]++;
    for (int l = 0; l < nlabel; l++) s->lstart[l + 1] += s->lstart[l];
  }
  s->temperature = random ? eini_path_unit(&s->rng) : 0;
  s->weight = net->start[n] <= 2 * n + 2 ? 0.1 : 1;
  if (random) s->weight = exp(2 * eini_path_unit(&s->rng) - 1);
  eini_path_reset(r);
  s->nheap = 0;
  memset(s->len, 0, (size_t)nlabel * sizeof(int));
  for (int t = 0; t < n; t++) {
    for (int i = net->start[t]; i < net->start[t + 1]; i++) {
      int l = net->labels[i];
      s->member[s->lstart[l] + s->len[l]++] = t;
    }
  }
  for (int x = 0; x < 2 * n; x++) s->near[x].with = -1;
  for (int t = 0; t < n; t++) EINI_TRY(eini_path_pairs(s, t));
  while (s->nheap > 0) {
    eini_path_offer c = eini_path_pop(s);
    if (r->term[c.a].into != c.a || r->term[c.b].into != c.b) continue;
    eini_path_make(s, c.a, c.b);
    EINI_TRY(eini_path_pairs(s, r->nnode - 1));
  }
  for (int x = 0; x < r->nnode; x++) {  // outer products of what is left, smallest first
    if (r->term[x].into == x) EINI_TRY(eini_path_push(s, r->term[x].size, x, x));
  }
  while (s->nheap > 1) {
    int x = eini_path_pop(s).a;
    eini_path_make(s, x, eini_path_pop(s).a);
    EINI_TRY(eini_path_push(s, r->term[r->nnode - 1].size, r->nnode - 1, 0));
  }
  eini_path_keep(s, random ? "random greedy" : "greedy");
  return EIN_OK;
}
