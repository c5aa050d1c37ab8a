// ================================================================================================
// >>pathtree  improvement of contraction trees; strategies and budgets
// Invariant: the best tree is only ever replaced by a better one; left to right is a candidate.
// ================================================================================================

// A small problem. For a set S of its terms let U(S) be the product of the extents of all labels
// of S, and C(S) that of the labels that occur nowhere else (1 for a single term: its own labels
// are summed by the step that uses it). The step that joins A and B into S costs
// U(S) / (C(A) C(B)), twice that if S encloses more labels than A and B: constant time for a pair.
typedef struct eini_tree_small {
  int n;                     // at most 63
  const int *start, *label;  // term t has label[start[t]] .. label[start[t+1]-1]
  uint64_t *in;              // terms that have a label; EINI_TREE_REST: it also occurs outside
  const double *ext;
} eini_tree_small;

typedef struct eini_tree_set {
  uint64_t set, near;        // terms; for connected subsets: terms that share a label with these
  double cost, second;       // best tree found; HUGE_VAL: none below the cap
  double size, all, inside;  // elements, U(S), 1 / C(S)
  int ninside;               // labels in C(S)
  int a, b;                  // where the best tree divides, in the table; single: -1 and the term
} eini_tree_set;

static void eini_tree_empty(eini_tree_set *d) {
  memset(d, 0, sizeof *d);
  d->size = d->all = d->inside = 1;
  d->cost = HUGE_VAL;
}

// Add a term to a set.
static void eini_tree_extend(const eini_tree_small *p, eini_tree_set *d, int t) {
  uint64_t rest = d->set;
  d->set |= (uint64_t)1 << t;
  for (int i = p->start[t]; i < p->start[t + 1]; i++) {
    uint64_t in = p->in[p->label[i]];
    double e = p->ext[p->label[i]];
    int met = (in & rest) != 0;
    if (!met) d->all *= e;
    if ((in & ~d->set) == 0) {
      if (met) d->size /= e;
      d->inside /= e;
      d->ninside++;
    } else if (!met) {
      d->size *= e;
    }
  }
}

static void eini_tree_single(eini_tree_set *d, int t) {
  d->size = d->all;
  d->inside = 1;
  d->cost = d->ninside = 0;
  d->a = -1;
  d->b = t;
}

// Products that overflow leave no way to compare.
static int eini_tree_sane(const eini_tree_set *d) { return d->all < 1e300 && d->inside > 1e-300; }

static double eini_tree_flops(const eini_tree_set *d, const eini_tree_set *x,
                              const eini_tree_set *y) {
  return d->all * x->inside * y->inside *
         eini_product_flops(2, d->ninside > x->ninside + y->ninside);
}

// Is the set d better made from those at a and b in the table?
static void eini_tree_join(eini_path_goal goal, const eini_tree_set *sub, eini_tree_set *d, int a,
                           int b) {
  const eini_tree_set *x = &sub[a], *y = &sub[b];
  double c = x->cost + y->cost;
  if (goal == EINI_GOAL_BYTES) c += x->size + y->size + d->size;
  if (goal == EINI_GOAL_SIZE) c = fmax(d->size, fmax(x->cost, y->cost));
  if (c > d->cost) return;
  double flops = eini_tree_flops(d, x, y);
  double f = goal == EINI_GOAL_FLOPS ? 0 : flops + x->second + y->second;
  if (goal == EINI_GOAL_FLOPS) c += flops;
  if (c > d->cost || (c >= d->cost && f >= d->second)) return;
  d->cost = c;
  d->second = f;
  d->a = a;
  d->b = b;
}

// A set is of no use if making it and then reading it costs more than the cap.
static int eini_tree_over(eini_path_goal goal, double cost, double size, double cap) {
  return cost + (goal == EINI_GOAL_SIZE ? 0 : size) > cap;
}

// The tree of sub[root]; a node is numbered when it is met. made: the steps' places in the table.
static void eini_tree_read(const eini_tree_set *sub, int root, int n, int *made,
                           eini_path_pair *kid) {
  int next = n - 2;
  made[next--] = root;
  for (int i = n - 2; i >= 0; i--) {
    for (int k = 0; k < 2; k++) {
      int part = k == 0 ? sub[made[i]].a : sub[made[i]].b;
      kid[i][k] = sub[part].a < 0 ? sub[part].b : n + next;
      if (sub[part].a >= 0) made[next--] = part;
    }
  }
}

// All subsets, outer products included: the best tree of at most EINI_PATH_EXACT terms if it
// costs at most `cap`; sub: [1 << n]. 1: found, in the table; 0: there is none; -1: gave up.
static int eini_tree_exact(eini_path_search *s, const eini_tree_small *p, eini_tree_set *sub,
                           double cap) {
  int full = (1 << p->n) - 1;
  cap *= 1 + 1e-12;  // for rounding in a different order
  int64_t cells = 0;  // labels of the terms that sets are extended by
  for (int t = 0; t < p->n; t++)
    cells += (int64_t)(p->start[t + 1] - p->start[t]) << (p->n - 1 - t);
  eini_path_spend(s, (int64_t)full * 4 + cells * 2);
  eini_tree_empty(&sub[0]);
  for (int set = 1; set <= full; set++) {
    sub[set] = sub[set & (set - 1)];
    eini_tree_extend(p, &sub[set], eini_path_bit((uint64_t)set));
  }
  if (!eini_tree_sane(&sub[full])) return -1;
  for (int t = 0; t < p->n; t++) eini_tree_single(&sub[1 << t], t);
  for (int set = 3; set <= full; set++) {
    int rest = set & (set - 1), count = 0;
    eini_tree_set *d = &sub[set];
    if (rest == 0 || (set != full && eini_tree_over(s->goal, d->size, d->size, cap))) continue;
    for (int b = rest; b != 0; b = (b - 1) & rest, count++) {
      eini_tree_join(s->goal, sub, d, set ^ b, b);
    }
    if (eini_path_spend(s, 2 * count)) return -1;
    if (set != full && eini_tree_over(s->goal, d->cost, d->size, cap)) d->cost = HUGE_VAL;
  }
  return sub[full].cost <= cap;
}

// Connected subsets, by size: a set is made from two disjoint sets that share a label, or that
// are both whole components, and kept if it stays below the cap. With the cap of a good tree that
// proves it optimal or finds a better one (compare the iterated cap of Pfeifer, Haegeman,
// Verstraete, Phys. Rev. E 90, 033315, 2014).
typedef struct eini_tree_linked {
  const eini_tree_small *p;
  eini_tree_set *sub;
  int64_t n, cap;
  int *slot;  // hash table of the size being made: index + 1
  double limit;
} eini_tree_linked;

// The index of a set, made if needed; -1 when out of memory.
static int64_t eini_tree_find(eini_path_search *s, eini_tree_linked *c, uint64_t set) {
  int64_t at = (int64_t)(eini_hash(&set, sizeof set, 0) & (uint64_t)(EINI_TREE_SLOTS - 1));
  for (; c->slot[at] != 0; at = (at + 1) & (EINI_TREE_SLOTS - 1))
    if (c->sub[c->slot[at] - 1].set == set) return c->slot[at] - 1;
  if (c->n == c->cap) eini_path_spend(s, 30 * c->cap);
  void *sub = eini_grow(s->arena, c->sub, c->n, &c->cap, sizeof *c->sub);
  if (sub == NULL) return -1;
  c->sub = (eini_tree_set *)sub;
  eini_tree_set *d = &c->sub[c->n++];
  c->slot[at] = (int)c->n;
  eini_tree_empty(d);
  for (uint64_t m = set; m != 0; m &= m - 1) {
    int t = eini_path_bit(m);
    eini_tree_extend(c->p, d, t);
    eini_path_spend(s, 4 + 2 * (c->p->start[t + 1] - c->p->start[t]));
  }
  return c->n - 1;
}

// The same of connected subsets; all terms are then the last of the table.
static ein_status eini_tree_connected(eini_path_search *s, eini_tree_linked *c, int *found) {
  int64_t begin[EINI_PATH_LINKED + 2] = {0, 0};
  int n = c->p->n;
  c->slot = EINI_NEW(s->arena, int, EINI_TREE_SLOTS);
  if (c->slot == NULL) return EIN_ERR_NO_MEMORY;
  if (eini_tree_find(s, c, ((uint64_t)1 << n) - 1) < 0) return EIN_ERR_NO_MEMORY;
  if (!eini_tree_sane(c->sub)) return EIN_OK;
  c->n = 0;
  memset(c->slot, 0, (size_t)EINI_TREE_SLOTS * sizeof(int));
  for (int t = 0; t < n; t++) {
    uint64_t near = 0, set = (uint64_t)1 << t;
    if (eini_tree_find(s, c, set) < 0) return EIN_ERR_NO_MEMORY;
    for (int i = c->p->start[t]; i < c->p->start[t + 1]; i++) near |= c->p->in[c->p->label[i]];
    c->sub[t].near = near & ~set & ~EINI_TREE_REST;
    eini_tree_single(&c->sub[t], t);
  }
  for (int size = 2; size <= n; size++) {
    int64_t kept = begin[size] = c->n;
    memset(c->slot, 0, (size_t)EINI_TREE_SLOTS * sizeof(int));
    eini_path_spend(s, EINI_TREE_SLOTS / 16);
    for (int m = 1; m <= size / 2; m++) {
      for (int64_t i = begin[m]; i < begin[m + 1]; i++) {
        uint64_t set = c->sub[i].set, near = c->sub[i].near;
        int64_t j = m == size - m ? i + 1 : begin[size - m], end = begin[size - m + 1];
        if (eini_path_spend(s, end - j + 20) || c->n > EINI_TREE_SLOTS / 2) return EIN_OK;
        for (; j < end; j++) {
          uint64_t other = c->sub[j].set, around = near | c->sub[j].near;
          if ((set & other) != 0 || ((near & other) == 0 && around != 0)) continue;
          int64_t k = eini_tree_find(s, c, set | other);
          if (k < 0) return EIN_ERR_NO_MEMORY;
          eini_tree_set *d = &c->sub[k];
          d->near = around & ~d->set;
          if (size < n && eini_tree_over(s->goal, d->size, d->size, c->limit)) continue;
          eini_tree_join(s->goal, c->sub, d, (int)i, (int)j);
        }
      }
    }
    for (int64_t i = kept; i < c->n; i++) {
      eini_tree_set d = c->sub[i];
      if (!eini_tree_over(s->goal, d.cost, size < n ? d.size : 0, c->limit)) c->sub[kept++] = d;
    }
    c->n = kept;
  }
  *found = c->n > begin[n];
  return EIN_OK;
}

static ein_status eini_tree_prove(eini_path_search *s, int exact) {
  const eini_net *net = s->net;
  int n = net->nterm, found = -1, made[EINI_PATH_LINKED];
  double cap = eini_path_value(s->goal, &s->best);
  uint64_t *in = EINI_NEW(s->arena, uint64_t, net->nlabel);
  eini_tree_small p = {n, net->start, net->labels, in, s->run.ext};
  eini_tree_linked c = {&p, NULL, 0, 0, NULL, cap * (1 + 1e-12)};
  if (p.in == NULL) return EIN_ERR_NO_MEMORY;
  for (int t = 0; t <= n; t++) {
    uint64_t bit = t < n ? (uint64_t)1 << t : EINI_TREE_REST;
    for (int i = net->start[t]; i < net->start[t + 1]; i++) p.in[net->labels[i]] |= bit;
  }
  if (exact) {
    c.n = (int64_t)1 << n;
    c.sub = EINI_NEW(s->arena, eini_tree_set, c.n);
    if (c.sub == NULL) return EIN_ERR_NO_MEMORY;
    found = eini_tree_exact(s, &p, c.sub, cap);
  } else {
    EINI_TRY(eini_tree_connected(s, &c, &found));
  }
  if (found > 0) {
    eini_tree_read(c.sub, (int)c.n - 1, n, made, s->trial);
    eini_path_try(s, exact ? "optimal" : "connected subsets");
  }
  if (found >= 0) s->proved = exact ? 1 : 2;
  return EIN_OK;
}

// Number the nodes of a tree from the root down, so that children come before parents and the
// steps of a subtree are contiguous (what is made is used soon). The last of `in` is the root.
static void eini_tree_sort(int n, eini_path_pair *in, eini_path_pair *out, int *tmp) {
  int *stack = tmp, *slot = tmp + n, top = 1, next = 2 * n - 2;
  stack[0] = next;
  slot[0] = -1;
  while (top > 0) {
    int x = stack[--top], at = slot[top], name = next--;
    if (at >= 0) out[at / 2][at % 2] = name;
    for (int k = 0; k < 2; k++) {
      int c = out[name - n][k] = in[x - n][k];
      if (c < n) continue;
      stack[top] = c;
      slot[top++] = 2 * (name - n) + k;
    }
  }
}

typedef struct eini_tree_work {  // a tree open for changes; its nodes are in no particular order
  eini_path_search *s;
  int n, words, shuffle;  // shuffle: windows at random, not along the dearest nodes
  eini_path_pair *kid;   // the root is the last
  eini_path_term *node;  // size and flops of nodes
  uint64_t *legs;        // their open labels
  eini_tree_small small;  // the window in hand
  int start[EINI_TREE_WINDOW + 1], *label;
  eini_tree_set sub[1 << EINI_TREE_WINDOW];
} eini_tree_work;

static uint64_t *eini_tree_legs(const eini_tree_work *w, int x) {
  return w->legs + (size_t)x * (size_t)w->words;
}

static void eini_tree_load(eini_tree_work *w, eini_path_pair *kid) {
  eini_path_run *r = &w->s->run;
  int cells = 0;
  eini_path_reset(r);
  memcpy(w->kid, kid, (size_t)(w->n - 1) * sizeof kid[0]);
  memset(w->legs, 0, (size_t)w->words * (size_t)w->n * 2 * sizeof *w->legs);
  for (int x = 0; x < 2 * w->n - 1; x++) {
    if (x >= w->n) cells += eini_path_step(r, kid[x - w->n][0], kid[x - w->n][1]);
    w->node[x] = r->term[x];
    for (int i = r->term[x].head; i >= 0; i = r->next[i]) {
      int l = r->net->labels[i];
      eini_tree_legs(w, x)[l >> 6] |= (uint64_t)1 << (l & 63);
    }
  }
  eini_path_spend(w->s, (20 + w->words) * (int64_t)w->n + 5 * (int64_t)cells);
}

// The window below v: open the dearest node until there are k; inner: the nodes opened, v first.
static int eini_tree_open(const eini_tree_work *w, int v, int k, int *leaf, int *inner) {
  int n = 1;
  leaf[0] = v;
  while (n < k) {
    int at = -1, from = w->shuffle ? eini_path_below(&w->s->rng, n) : 0;
    for (int i = from; i < from + n; i++) {
      int x = leaf[i % n];
      if (x < w->n || (at >= 0 && w->node[x].flops <= w->node[leaf[at]].flops)) continue;
      at = i % n;
      if (w->shuffle) break;
    }
    if (at < 0) break;
    int x = inner[n - 1] = leaf[at];
    leaf[at] = w->kid[x - w->n][0];
    leaf[n++] = w->kid[x - w->n][1];
  }
  return n;
}

// The window as a small problem.
static void eini_tree_problem(eini_tree_work *w, int v, const int *leaf, int k) {
  eini_tree_small *p = &w->small;
  int at = 0;
  p->n = k;
  for (int t = 0; t < k; t++) {
    w->start[t] = at;
    for (int i = 0; i < w->words; i++) {
      uint64_t up = eini_tree_legs(w, v)[i];
      for (uint64_t m = eini_tree_legs(w, leaf[t])[i]; m != 0; m &= m - 1) {
        int l = w->label[at++] = 64 * i + eini_path_bit(m);
        p->in[l] = (up >> (l & 63)) << 63;
      }
    }
  }
  w->start[k] = at;
  for (int t = 0; t < k; t++) {
    for (int i = w->start[t]; i < w->start[t + 1]; i++) p->in[w->label[i]] |= (uint64_t)1 << t;
  }
}

// Find the best tree of the window of nodes below v. 1: improved.
static int eini_tree_window(eini_tree_work *w, int v) {
  int leaf[EINI_TREE_WINDOW], inner[EINI_TREE_WINDOW], made[EINI_TREE_WINDOW];
  eini_path_pair kid[EINI_TREE_WINDOW];
  eini_path_sums sums = {0, 0, 0};
  int k = eini_tree_open(w, v, EINI_TREE_WINDOW, leaf, inner);
  eini_path_spend(w->s, (int64_t)k * (k + 20 + 4 * w->words));
  if (k < 3) return 0;
  eini_tree_problem(w, v, leaf, k);
  for (int i = 0; i < k - 1; i++) {
    const int *c = w->kid[inner[i] - w->n];
    const eini_path_term *d = &w->node[inner[i]];
    eini_path_add(&sums, d->flops, d->size, w->node[c[0]].size + w->node[c[1]].size);
  }
  double cap = eini_path_value(w->s->goal, &sums) * (1 - 1e-9);
  if (eini_tree_exact(w->s, &w->small, w->sub, cap) <= 0) return 0;
  eini_tree_read(w->sub, (1 << k) - 1, k, made, kid);
  for (int i = 0; i < k - 1; i++) {
    const eini_tree_set *d = &w->sub[made[i]];
    int x = inner[k - 2 - i];  // inner[0] = v stays the root
    uint64_t *legs = eini_tree_legs(w, x);
    for (int j = 0; j < 2; j++) {
      w->kid[x - w->n][j] = kid[i][j] < k ? leaf[kid[i][j]] : inner[2 * k - 2 - kid[i][j]];
    }
    w->node[x].size = d->size;
    w->node[x].flops = eini_tree_flops(d, &w->sub[d->a], &w->sub[d->b]);
    memset(legs, 0, (size_t)w->words * sizeof *legs);
    for (uint64_t m = d->set; m != 0; m &= m - 1) {
      int t = eini_path_bit(m);
      for (int j = w->start[t]; j < w->start[t + 1]; j++) {
        int l = w->label[j], open = (w->small.in[l] & ~d->set) != 0;
        legs[l >> 6] |= (uint64_t)open << (l & 63);
      }
    }
  }
  return 1;
}

// Reconfigure windows until none improves; in turn of the best tree, of the best tree with other
// windows, and of a random greedy tree; for so many work steps. The first turn is always done.
static ein_status eini_path_improve(eini_path_search *s, int64_t steps) {
  int n = s->net->nterm, nlabel = s->net->nlabel;
  int64_t stop = s->left - steps;
  eini_tree_work *w = EINI_NEW(s->arena, eini_tree_work, 1);
  if (w == NULL) return EIN_ERR_NO_MEMORY;
  w->s = s;
  w->n = n;
  w->words = (nlabel + 63) / 64;
  w->kid = EINI_NEW(s->arena, eini_path_pair, n);
  w->node = EINI_NEW(s->arena, eini_path_term, 2 * n);
  w->legs = EINI_NEW(s->arena, uint64_t, (int64_t)w->words * 2 * n + nlabel);
  w->label = EINI_NEW(s->arena, int, (int64_t)nlabel * EINI_TREE_WINDOW);
  if (w->kid == NULL || w->node == NULL || w->legs == NULL || w->label == NULL)
    return EIN_ERR_NO_MEMORY;
  w->small.in = w->legs + (size_t)w->words * (size_t)n * 2;
  w->small.start = w->start;
  w->small.label = w->label;
  w->small.ext = s->run.ext;
  for (int round = 0; round == 0 || (s->left >= 0 && s->left > stop); round++) {
    int restart = round % 3 == 2, x = 2 * n - 2;
    w->shuffle = round % 3 == 1;
    if (restart) EINI_TRY(eini_path_greedy(s, 1));
    eini_tree_load(w, restart ? s->trial : s->kid);
    for (int quiet = 0; quiet < n - 1 && !eini_path_spend(s, 50); quiet++) {
      if (eini_tree_window(w, x)) quiet = 0;
      x = x > n ? x - 1 : 2 * n - 2;
    }
    eini_tree_sort(n, w->kid, s->trial, s->tmp);
    eini_path_try(s, "reconfigured greedy");
  }
  return EIN_OK;
}

static ein_status eini_path_choose(eini_path_search *s, eini_path_algo algo) {
  int n = s->net->nterm;
  int exact = algo == EINI_PATH_AUTO || algo == EINI_PATH_OPTIMAL;
  int dp = algo == EINI_PATH_DP || algo == EINI_PATH_OPTIMAL || (exact && n <= 32);
  int tiny = exact && n <= 7;
  if (algo != EINI_PATH_NAIVE && !tiny) EINI_TRY(eini_path_greedy(s, 0));
  for (int back = algo == EINI_PATH_AUTO; back >= 0; back--) {  // on a tie inner axes go first
    for (int i = 0; i < n - 1; i++) {
      s->trial[i][0] = i == 0 ? 0 : n + i - 1;
      s->trial[i][1] = back ? n - 1 - i : i + 1;
    }
    eini_path_try(s, back ? "right to left" : "left to right");
  }
  if (tiny) return eini_tree_prove(s, 1);
  if (algo == EINI_PATH_GREEDY || algo == EINI_PATH_NAIVE) return EIN_OK;
  int large = (int64_t)n * ((s->net->nlabel + 63) / 64) > EINI_TREE_MAX;
  for (int i = n <= 64 ? 8 : 2; (large || i > 0) && s->left >= 0; i--) {
    EINI_TRY(eini_path_greedy(s, 1));
  }
  if (large) return EIN_OK;
  if (exact && n <= EINI_PATH_EXACT) {
    if (n > 10) EINI_TRY(eini_path_improve(s, 0));
    return eini_tree_prove(s, 1);
  }
  EINI_TRY(eini_path_improve(s, dp ? eini_min64(50000 * (int64_t)n, s->left / 2) : s->left));
  if (dp && n <= EINI_PATH_LINKED) EINI_TRY(eini_tree_prove(s, 0));
  return s->proved || !dp ? EIN_OK : eini_path_improve(s, s->left);
}

static ein_status eini_path_find_in(eini_arena *scratch, const eini_net *net,
                                    const eini_path_opts *o, eini_path *path) {
  eini_path_search s;
  int n = net->nterm, zeros = 0;
  memset(&s, 0, sizeof s);
  s.arena = scratch;
  s.net = net;
  s.opts = o;
  s.goal = o->goal;
  s.rng = o->seed;
  // Below 0.1 ms for an operand; more for those who ask for more, but always below ten seconds.
  double steps = o->algo == EINI_PATH_AUTO ? 6e4 * (n < 4000 ? n : 4000)
                                           : 1e6 * (n < 2000 ? n : 2000);
  if (o->algo == EINI_PATH_OPTIMAL || o->algo == EINI_PATH_DP) steps = steps / 2 + 2e9;
  if (o->seconds > 0) steps = o->now_fn != NULL ? 1e18 : o->seconds * 1e9;
  if (o->steps > 0) steps = (double)o->steps;
  s.left = steps < 1e18 ? (int64_t)steps : (int64_t)1000000000 * 1000000000;
  if (o->seconds > 0 && o->now_fn != NULL) s.end = o->now_fn(o->now_user) + o->seconds;
  EINI_TRY(eini_path_run_init(&s.run, scratch, net, 2 * n - 1));
  s.kid = EINI_NEW(scratch, eini_path_pair, n);
  s.trial = EINI_NEW(scratch, eini_path_pair, n);
  s.tmp = EINI_NEW(scratch, int, 2 * n);
  if (s.kid == NULL || s.trial == NULL || s.tmp == NULL) return EIN_ERR_NO_MEMORY;
  for (int l = 0; l < net->nlabel; l++) zeros += net->extent[l] <= 0;
  for (int l = 0; l < net->nlabel && zeros > 0; l++)
    if (net->extent[l] <= 0) s.run.ext[l] = ldexp(1.0, -(zeros > 8 ? 480 / zeros : 60));
  EINI_TRY(eini_path_choose(&s, o->algo));
  eini_tree_sort(n, s.kid, s.trial, s.tmp);
  int *sum = eini_path_marks(scratch, n, 2 * n);
  if (sum == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n - 1; i++) {  // to the linear format
    const int *k = o->algo == EINI_PATH_NAIVE ? s.kid[i] : s.trial[i];
    int a = k[0] < k[1] ? k[0] : k[1], b = k[0] + k[1] - a;
    path->pos[2 * i] = eini_path_position(sum, a);
    path->pos[2 * i + 1] = eini_path_position(sum, b);
    eini_path_mark(sum, 2 * n, a, -1);
    eini_path_mark(sum, 2 * n, b, -1);
    eini_path_mark(sum, 2 * n, n + i, 1);
  }
  path->flops = s.best.flops;
  path->largest = s.best.largest;
  path->moved = s.best.moved;
  path->method = s.method;
  path->proved = s.proved;
  int bad;
  return zeros > 0 ? eini_path_cost_in(scratch, net, path, &bad) : EIN_OK;
}

// Find a contraction order of `net`. The path is in `arena`; nothing else stays there.
static ein_status eini_path_find(eini_arena *arena, const eini_net *net,
                                 const eini_path_opts *opts, eini_path *path) {
  int n = net->nterm, bad;
  memset(path, 0, sizeof *path);
  path->method = "trivial";
  path->proved = 1;
  if (n == 0) return EIN_OK;
  if (n > INT_MAX / 8 || net->start[n] > INT_MAX / 8) return EIN_ERR_TOO_LARGE;
  path->nstep = n == 1 ? 1 : n - 1;
  EINI_TRY(eini_path_room(arena, path->nstep, 2 * path->nstep, path));
  for (int i = 0; i <= path->nstep; i++) path->first[i] = n == 1 ? i : 2 * i;
  if (n <= 2) {
    path->pos[1] = 1;
    return eini_path_cost(arena, net, path, &bad);
  }
  eini_arena scratch;
  eini_arena_init(&scratch, &arena->al);
  scratch.next_size += (size_t)(n < 2000 ? n : 2000) * 320;  // one block for most searches
  ein_status status = eini_path_find_in(&scratch, net, opts, path);
  eini_arena_free(&scratch);
  return status;
}
