// ================================================================================================
// >>elimination  least sum of tables over variables, by elimination and beam search
// Bucket elimination (non-serial dynamic programming) on shared tables: equal eliminations are done
// once. A bucket too large is split (mini-buckets): its messages then bound from below, and guide.
// ================================================================================================

// Values over nvar variables with size[i] labels each, row-major; of two, where labels are alike,
// of their classes: of[i] is that of each label.
typedef struct eini_sumtable {
  int nvar;
  int *size;
  const double *v;
  const int *of[2];        // NULL: labels are their classes
  int nclass[2];
} eini_sumtable;

typedef struct eini_sumfactor {
  int table, gone;
  int *var;
} eini_sumfactor;

typedef struct eini_sumbucket {  // factors of an eliminated variable, messages it sent
  int var, nin, nout;
  int *in, *out;
} eini_sumbucket;

typedef struct eini_sums {
  eini_arena *a;
  int nvar, *size;
  eini_sumtable *table;
  int64_t ntable, captable;
  eini_sumfactor *factor;
  int64_t nfactor, capfactor;
  int **of;                 // factors of each variable
  int64_t *nof, *capof;
  eini_keys keys;           // what was eliminated
  int *memo;                // per key: the table it gave
  int64_t nmemo, capmemo;
  double max_table;
  int split;                // buckets that were split
  eini_sumbucket *bucket;
  int nbucket;
  int *sep, *more;          // scratch of an elimination
  int norig;                // factors before elimination
} eini_sums;

static ein_status eini_sums_init(eini_sums *net, eini_arena *a, int nvar, double max_table) {
  memset(net, 0, sizeof *net);
  net->a = a;
  net->nvar = nvar;
  net->max_table = max_table;
  net->size = EINI_NEW(a, int, nvar);
  net->of = EINI_NEW(a, int *, nvar);
  net->nof = EINI_NEW(a, int64_t, nvar);
  net->capof = EINI_NEW(a, int64_t, nvar);
  net->bucket = EINI_NEW(a, eini_sumbucket, nvar);
  net->sep = EINI_NEW(a, int, nvar);
  net->more = EINI_NEW(a, int, nvar);
  if (net->size == NULL || net->of == NULL || net->nof == NULL || net->capof == NULL ||
      net->bucket == NULL || net->sep == NULL || net->more == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

static ein_status eini_sums_table(eini_sums *net, int nvar, const int *size, const double *v,
                                 int *id) {
  eini_sumtable *t = (eini_sumtable *)eini_grow(net->a, net->table, net->ntable, &net->captable,
                                          sizeof *t);
  if (t == NULL) return EIN_ERR_NO_MEMORY;
  net->table = t;
  t = &net->table[net->ntable];
  t->nvar = nvar;
  t->v = v;
  t->of[0] = t->of[1] = NULL;
  t->size = EINI_NEW(net->a, int, nvar);
  if (t->size == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nvar; i++) t->size[i] = size[i];
  for (int i = 0; i < nvar && i < 2; i++) t->nclass[i] = size[i];
  *id = (int)net->ntable++;
  return EIN_OK;
}

static ein_status eini_sums_factor(eini_sums *net, int table, const int *var, int *id) {
  int n = net->table[table].nvar;
  eini_sumfactor *f = (eini_sumfactor *)eini_grow(net->a, net->factor, net->nfactor,
                                                  &net->capfactor, sizeof *f);
  if (f == NULL) return EIN_ERR_NO_MEMORY;
  net->factor = f;
  f = &net->factor[net->nfactor];
  f->table = table;
  f->gone = 0;
  f->var = EINI_NEW(net->a, int, n);
  if (f->var == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) {
    int x = var[i];
    int *of = (int *)eini_grow(net->a, net->of[x], net->nof[x], &net->capof[x], sizeof *of);
    if (of == NULL) return EIN_ERR_NO_MEMORY;
    f->var[i] = x;
    net->of[x] = of;
    of[net->nof[x]++] = (int)net->nfactor;
  }
  *id = (int)net->nfactor++;
  return EIN_OK;
}

static int eini_table_class(const eini_sumtable *t, int i, int label) {
  return t->of[i] == NULL ? label : t->of[i][label];
}

// The value of a table of two variables.
static double eini_table_at(const eini_sumtable *t, int a, int b) {
  return t->v[(int64_t)eini_table_class(t, 0, a) * t->nclass[1] + eini_table_class(t, 1, b)];
}

// Tables of two variables by labels: of those in left[i], or of all (NULL).
static ein_status eini_table_expand(eini_arena *a, eini_sumtable *t, const int *const *left,
                                    const int *nleft) {
  const int n0 = left == NULL ? t->size[0] : nleft[0], n1 = left == NULL ? t->size[1] : nleft[1];
  if (left == NULL && t->of[0] == NULL && t->of[1] == NULL) return EIN_OK;
  double *v = EINI_NEW(a, double, (int64_t)n0 * n1);
  if (v == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n0; i++)
    for (int j = 0; j < n1; j++)
      v[(int64_t)i * n1 + j] = eini_table_at(t, left == NULL ? i : left[0][i],
                                             left == NULL ? j : left[1][j]);
  t->v = v;
  t->of[0] = t->of[1] = NULL;
  t->size[0] = t->nclass[0] = n0;
  t->size[1] = t->nclass[1] = n1;
  return EIN_OK;
}

// All tables by labels, as they are eliminated.
static ein_status eini_sums_expand(eini_sums *net) {
  for (int64_t k = 0; k < net->ntable; k++)
    if (net->table[k].nvar == 2) EINI_TRY(eini_table_expand(net->a, &net->table[k], NULL, NULL));
  return EIN_OK;
}

// The value of a factor for labels of all its variables.
static double eini_factor_at(const eini_sums *net, int factor, const int *label) {
  const eini_sumfactor *f = &net->factor[factor];
  const eini_sumtable *t = &net->table[f->table];
  int64_t at = 0;
  if (t->nvar == 2) return eini_table_at(t, label[f->var[0]], label[f->var[1]]);
  for (int i = 0; i < t->nvar; i++) at = at * t->size[i] + label[f->var[i]];
  return t->v[at];
}

static double eini_sums_value(const eini_sums *net, const int *label) {
  double sum = 0;
  for (int i = 0; i < net->norig; i++) sum += eini_factor_at(net, i, label);
  return sum;
}

// ---- eliminating a variable ---------------------------------------------------------------------

// What a message is made of: factors over x and the variables sep (ascending), strides in each.
typedef struct eini_sumjoin {
  int nsep, *sep, nfac;
  int kx, *ksep;
  const double **v;
  int64_t *xstride, *stride;  // stride: nfac x nsep
} eini_sumjoin;

static int eini_find_int(const int *list, int n, int x) {
  int i = 0;
  while (i < n && list[i] != x) i++;
  return i < n ? i : -1;
}

// Adds a factor's variables other than x, and those that have just one label, to the sorted list
// sep; *n grows.
static void eini_sep_add(const eini_sums *net, const eini_sumfactor *f, int x, int *sep, int *n) {
  for (int i = 0; i < net->table[f->table].nvar; i++) {
    int v = f->var[i], at = *n;
    if (v == x || net->size[v] == 1 || eini_find_int(sep, *n, v) >= 0) continue;
    for (; at > 0 && sep[at - 1] > v; at--) sep[at] = sep[at - 1];
    sep[at] = v;
    ++*n;
  }
}

static ein_status eini_sumjoin_make(eini_sums *net, int x, int nfac, const int *fac, const int *sep,
                                 int nsep, eini_sumjoin *j) {
  memset(j, 0, sizeof *j);
  j->nsep = nsep;
  j->nfac = nfac;
  j->kx = net->size[x];
  j->ksep = EINI_NEW(net->a, int, nsep);
  j->v = EINI_NEW(net->a, const double *, nfac + 1);  // and a matrix of eini_sumjoin_last
  j->xstride = EINI_NEW(net->a, int64_t, nfac + 1);
  j->stride = EINI_NEW(net->a, int64_t, ((int64_t)nfac + 1) * nsep);
  if (j->ksep == NULL || j->v == NULL || j->xstride == NULL || j->stride == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nsep; i++) j->ksep[i] = net->size[sep[i]];
  for (int k = 0; k < nfac; k++) {
    const eini_sumfactor *f = &net->factor[fac[k]];
    const eini_sumtable *t = &net->table[f->table];
    int64_t step = 1;
    j->v[k] = t->v;
    for (int i = t->nvar - 1; i >= 0; step *= t->size[i--]) {
      int at = f->var[i] == x ? -1 : eini_find_int(sep, nsep, f->var[i]);
      if (f->var[i] == x) j->xstride[k] += step;
      else if (at >= 0) j->stride[(int64_t)k * nsep + at] += step;
    }
  }
  return EIN_OK;
}

// Sums factors over {x, last} and over {x} into one matrix of kx rows, so that the inner loop of
// the minimum runs over one contiguous row; those leave the join. Others with last are copied so.
static ein_status eini_sumjoin_last(eini_sums *net, eini_sumjoin *j) {
  int last = j->nsep - 1, kept = 0;
  int64_t kl = j->ksep[last], cells = kl * j->kx;
  double *m = EINI_NEW(net->a, double, cells);
  if (m == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < j->nfac; k++) {
    const int64_t *stride = j->stride + (int64_t)k * j->nsep;
    int only = 1;
    for (int i = 0; i < last; i++) only &= stride[i] == 0;
    if (!only) {
      j->v[kept] = j->v[k];
      j->xstride[kept] = j->xstride[k];
      memmove(j->stride + (int64_t)kept * j->nsep, stride, (size_t)j->nsep * sizeof *stride);
      kept++;
      continue;
    }
    for (int64_t x = 0; x < j->kx; x++)
      for (int64_t l = 0; l < kl; l++)
        m[x * kl + l] += j->v[k][x * j->xstride[k] + l * stride[last]];
  }
  // The matrix takes the place of at least x's own table.
  j->v[kept] = m;
  j->xstride[kept] = kl;
  memset(j->stride + (int64_t)kept * j->nsep, 0, (size_t)j->nsep * sizeof *j->stride);
  j->stride[(int64_t)kept * j->nsep + last] = 1;
  j->nfac = kept + 1;
  return EIN_OK;
}

// row[l] = min(row[l], base + sum of factors that depend on the last separator).
static void eini_min_row(const eini_sumjoin *j, const int64_t *at, double base, double *row) {
  int last = j->nsep - 1, kl = j->ksep[last], k = 0;
  for (; k < j->nfac - 1; k++)
    if (j->stride[(int64_t)k * j->nsep + last] != 0) break;
  const double *EINI_RESTRICT m = j->v[j->nfac - 1] + at[j->nfac - 1];
  if (k == j->nfac - 1) {
    double *EINI_RESTRICT out = row;
    for (int l = 0; l < kl; l++) {
      double x = base + m[l];
      out[l] = x < out[l] ? x : out[l];
    }
    return;
  }
  for (int l = 0; l < kl; l++) {
    double x = base + m[l];
    for (int i = k; i < j->nfac - 1; i++) {
      int64_t s = j->stride[(int64_t)i * j->nsep + last];
      if (s != 0) x += j->v[i][at[i] + l * s];
    }
    row[l] = x < row[l] ? x : row[l];
  }
}

// out[sep] = min over x of the sum of the factors.
static ein_status eini_sumjoin_min(eini_sums *net, eini_sumjoin *j, double *out) {
  int last = j->nsep - 1;
  int64_t *at = EINI_NEW(net->a, int64_t, j->nfac + 1), outer = 1;
  int *i = EINI_NEW(net->a, int, j->nsep + 1);
  if (at == NULL || i == NULL) return EIN_ERR_NO_MEMORY;
  if (j->nsep == 0) {
    *out = INFINITY;
    for (int64_t x = 0; x < j->kx; x++) {
      double sum = 0;
      for (int k = 0; k < j->nfac; k++) sum += j->v[k][x * j->xstride[k]];
      if (sum < *out) *out = sum;
    }
    return EIN_OK;
  }
  EINI_TRY(eini_sumjoin_last(net, j));
  for (int k = 0; k < last; k++) outer *= j->ksep[k];
  for (int64_t o = 0; o < outer; o++, out += j->ksep[last]) {
    for (int l = 0; l < j->ksep[last]; l++) out[l] = INFINITY;
    for (int64_t x = 0; x < j->kx; x++) {
      double base = 0;
      for (int k = 0; k < j->nfac; k++) {
        const int64_t *stride = j->stride + (int64_t)k * j->nsep;
        at[k] = x * j->xstride[k];
        for (int q = 0; q < last; q++) at[k] += i[q] * stride[q];
        if (stride[last] == 0) base += j->v[k][at[k]];
      }
      eini_min_row(j, at, base, out);
    }
    for (int q = last - 1; q >= 0 && ++i[q] == j->ksep[q]; q--) i[q] = 0;
  }
  return EIN_OK;
}

// The message that eliminating x from the given factors leaves, as a factor over sep. What was
// computed for equal tables in equal places before is used again.
static ein_status eini_message(eini_sums *net, int x, int nfac, const int *fac, const int *sep,
                               int nsep, int *id) {
  int n = 0, cells = 3 + nsep, table;
  for (int k = 0; k < nfac; k++) cells += 1 + net->table[net->factor[fac[k]].table].nvar;
  int64_t *key = EINI_NEW(net->a, int64_t, cells);
  if (key == NULL) return EIN_ERR_NO_MEMORY;
  key[n++] = net->size[x];
  key[n++] = nsep;
  for (int i = 0; i < nsep; i++) key[n++] = net->size[sep[i]];
  for (int k = 0; k < nfac; k++) {
    const eini_sumfactor *f = &net->factor[fac[k]];
    key[n++] = f->table;
    for (int i = 0; i < net->table[f->table].nvar; i++)
      key[n++] = f->var[i] == x ? -1 : eini_find_int(sep, nsep, f->var[i]);
  }
  const int64_t known = eini_key_number(net->a, &net->keys, key, n);
  if (known < 0) return EIN_ERR_NO_MEMORY;
  if (known < net->nmemo) return eini_sums_factor(net, net->memo[known], sep, id);
  eini_sumjoin j;
  int *size = EINI_NEW(net->a, int, nsep);
  int64_t count = 1;
  for (int i = 0; i < nsep; i++) count *= net->size[sep[i]];
  double *v = EINI_NEW(net->a, double, count);
  if (size == NULL || v == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < nsep; i++) size[i] = net->size[sep[i]];
  const eini_arena_at mark = eini_arena_mark(net->a);
  EINI_TRY(eini_sumjoin_make(net, x, nfac, fac, sep, nsep, &j));
  EINI_TRY(eini_sumjoin_min(net, &j, v));
  eini_arena_rollback(net->a, &mark);
  EINI_TRY(eini_sums_table(net, nsep, size, v, &table));
  int *memo = (int *)eini_grow(net->a, net->memo, net->nmemo, &net->capmemo, sizeof *memo);
  if (memo == NULL) return EIN_ERR_NO_MEMORY;
  net->memo = memo;
  memo[net->nmemo++] = table;
  return eini_sums_factor(net, table, sep, id);
}

// Eliminates x: its factors in few groups, as tables of max_table entries allow; each sends one
// message.
static ein_status eini_eliminate(eini_sums *net, int x) {
  eini_sumbucket *b = &net->bucket[net->nbucket++];
  int64_t n = net->nof[x];
  b->var = x;
  b->in = EINI_NEW(net->a, int, n);
  b->out = EINI_NEW(net->a, int, n);
  int *rest = EINI_NEW(net->a, int, n), *group = EINI_NEW(net->a, int, n), nrest = 0;
  int *sep = net->sep, *more = net->more;
  if (b->in == NULL || b->out == NULL || rest == NULL || group == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < n; k++) {
    int id = net->of[x][k];
    if (net->factor[id].gone) continue;
    net->factor[id].gone = 1;
    b->in[b->nin++] = rest[nrest++] = id;
  }
  for (int groups = 0; nrest > 0; groups++) {
    int ngroup = 0, nsep = 0, left = 0;
    for (int k = 0; k < nrest; k++) {
      const eini_sumfactor *f = &net->factor[rest[k]];
      int nmore = nsep;
      double cells = 1;
      memcpy(more, sep, (size_t)nsep * sizeof *sep);
      eini_sep_add(net, f, x, more, &nmore);
      for (int i = 0; i < nmore; i++) cells *= net->size[more[i]];
      int fits = ngroup == 0 || nmore == nsep ||
                 (cells <= net->max_table && cells * net->size[x] <= 512 * net->max_table);
      if (!fits) {
        rest[left++] = rest[k];
        continue;
      }
      group[ngroup++] = rest[k];
      memcpy(sep, more, (size_t)nmore * sizeof *sep);
      nsep = nmore;
    }
    nrest = left;
    net->split += groups > 0;
    EINI_TRY(eini_message(net, x, ngroup, group, sep, nsep, &b->out[b->nout++]));
  }
  return EIN_OK;
}

#define EINI_SUMS_HOPELESS 1e18  // steps: no matter how many more

// Steps that eliminating x takes: entries of the table it makes, times labels of x.
static double eini_sums_work(const eini_sums *net, int x) {
  double cells = net->size[x];
  int n = 0;
  for (int64_t k = 0; k < net->nof[x] && cells < EINI_SUMS_HOPELESS; k++) {
    const eini_sumfactor *f = &net->factor[net->of[x][k]];
    int before = n;
    if (!f->gone) eini_sep_add(net, f, x, net->sep, &n);
    if (n == before) continue;
    cells = net->size[x];
    for (int i = 0; i < n; i++) cells *= net->size[net->sep[i]];
  }
  return cells;
}

// Variables by what they take to eliminate, the least on top. What takes no more than one before
// did waits for its turn among these: so all copies of one are eliminated before their neighbours,
// alike, by one computation.
typedef struct eini_sumturns {
  eini_ranked *heap;
  int64_t n, cap, pushed;
  int64_t *turn;           // [variable] its last one; -1: it is gone
  double level;            // the most that one took so far
} eini_sumturns;

static ein_status eini_turns_push(eini_sums *net, eini_sumturns *t, int x, double work) {
  eini_ranked *h = (eini_ranked *)eini_grow(net->a, t->heap, t->n, &t->cap, sizeof *h);
  if (h == NULL) return EIN_ERR_NO_MEMORY;
  t->heap = h;
  h[t->n].key = work > t->level ? work : t->level;
  h[t->n].seq = t->turn[x] = t->pushed++;
  h[t->n].what = x;
  eini_heap_rise(h, t->n++);
  return EIN_OK;
}

// The variables around x, once each; mark: which have been seen, by step.
static int eini_sums_around(const eini_sums *net, int x, int step, int *mark, int *around) {
  int n = 0;
  for (int64_t k = 0; k < net->nof[x]; k++) {
    const eini_sumfactor *f = &net->factor[net->of[x][k]];
    for (int i = 0; i < net->table[f->table].nvar && !f->gone; i++) {
      if (f->var[i] == x || mark[f->var[i]] == step) continue;
      mark[f->var[i]] = step;
      around[n++] = f->var[i];
    }
  }
  return n;
}

// Eliminates all variables, always one that takes the fewest steps.
static ein_status eini_sums_eliminate(eini_sums *net) {
  eini_sumturns turns;
  double *work = EINI_NEW(net->a, double, net->nvar);
  int *mark = EINI_NEW(net->a, int, net->nvar), *around = EINI_NEW(net->a, int, net->nvar);
  memset(&turns, 0, sizeof turns);
  turns.turn = EINI_NEW(net->a, int64_t, net->nvar);
  if (work == NULL || mark == NULL || around == NULL || turns.turn == NULL)
    return EIN_ERR_NO_MEMORY;
  net->norig = (int)net->nfactor;
  for (int x = 0; x < net->nvar; x++) {
    work[x] = eini_sums_work(net, x);
    EINI_TRY(eini_turns_push(net, &turns, x, work[x]));
  }
  for (int step = 1; step <= net->nvar;) {
    const eini_ranked least = eini_heap_pop(turns.heap, &turns.n);
    const int x = (int)least.what;
    if (least.seq != turns.turn[x]) continue;  // it has changed since
    turns.level = least.key;
    int n = eini_sums_around(net, x, step++, mark, around);
    EINI_TRY(eini_eliminate(net, x));
    turns.turn[x] = -1;
    for (int i = 0; i < n; i++) {
      double now = eini_sums_work(net, around[i]);
      if (!(now < work[around[i]] || now > work[around[i]])) continue;
      work[around[i]] = now;
      EINI_TRY(eini_turns_push(net, &turns, around[i], now));
    }
  }
  return EIN_OK;
}

// ---- labels from messages -----------------------------------------------------------------------

// Keeps the `room` states of least bound in a heap with the largest on top; returns the bound of
// what fell out, INFINITY when nothing did.
static double eini_beam_push(eini_ranked *heap, int *n, int room, double bound, int64_t what) {
  const int full = *n == room, i = full ? 0 : (*n)++;
  const double out = full ? -heap[0].key : INFINITY;
  if (full && bound >= out) return bound;
  heap[i].key = -bound;
  heap[i].seq = 0;
  heap[i].what = what;
  if (full) eini_heap_sink(heap, room, 0);
  else eini_heap_rise(heap, i);
  return out;
}

// Assigns labels in reverse order of elimination, keeping the `beam` states of least bound. Bounds
// never exceed what a state can lead to: *lower holds for every assignment. Exact with beam 1 when
// no bucket was split.
static ein_status eini_sums_decode(eini_sums *net, int beam, int *label, double *lower) {
  int64_t cells = (int64_t)beam * net->nvar;
  int *have = EINI_NEW(net->a, int, cells), *next = EINI_NEW(net->a, int, cells), n = 1;
  double *bound = EINI_NEW(net->a, double, beam), dropped = INFINITY;
  eini_ranked *heap = EINI_NEW(net->a, eini_ranked, beam);
  if (have == NULL || next == NULL || bound == NULL || heap == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < net->nfactor; k++)  // messages of no variables: the bound to begin with
    if (net->table[net->factor[k].table].nvar == 0)
      bound[0] += net->table[net->factor[k].table].v[0];
  for (int b = net->nbucket - 1; b >= 0; b--) {
    const eini_sumbucket *q = &net->bucket[b];
    int count = 0;
    for (int s = 0; s < n; s++) {
      int *mine = have + (int64_t)s * net->nvar;
      double base = bound[s];
      for (int k = 0; k < q->nout; k++) base -= eini_factor_at(net, q->out[k], mine);
      for (int x = 0; x < net->size[q->var]; x++) {
        double least = base;
        mine[q->var] = x;
        for (int k = 0; k < q->nin; k++) least += eini_factor_at(net, q->in[k], mine);
        double out = eini_beam_push(heap, &count, beam, least, (int64_t)s * net->size[q->var] + x);
        if (out < dropped) dropped = out;
      }
    }
    for (int s = 0; s < count; s++) {
      int *to = next + (int64_t)s * net->nvar;
      const int64_t from = heap[s].what / net->size[q->var];
      memcpy(to, have + from * net->nvar, (size_t)net->nvar * sizeof *to);
      to[q->var] = (int)(heap[s].what % net->size[q->var]);
      bound[s] = -heap[s].key;
    }
    n = count;
    int *swap = have;
    have = next;
    next = swap;
  }
  double best = INFINITY;
  for (int s = 0; s < n; s++) {
    double value = eini_sums_value(net, have + (int64_t)s * net->nvar);
    if (value >= best) continue;
    best = value;
    memcpy(label, have + (int64_t)s * net->nvar, (size_t)net->nvar * sizeof *label);
  }
  *lower = dropped < best ? dropped : best;
  return EIN_OK;
}

// Changes one label at a time as long as the sum falls.
static void eini_sums_improve(const eini_sums *net, int *label) {
  for (int round = 0, better = 1; better && round < 100; round++) {
    better = 0;
    for (int x = 0; x < net->nvar; x++) {
      double best = INFINITY;
      int was = label[x], to = was;
      for (int k = -1; k < net->size[x]; k++) {  // what there is comes first: ties stay
        double sum = 0;
        label[x] = k < 0 ? was : k;
        for (int64_t f = 0; f < net->nof[x] && net->of[x][f] < net->norig; f++)
          sum += eini_factor_at(net, net->of[x][f], label);
        if (sum >= best || (k >= 0 && sum >= best - 1e-12 * (best < 0 ? -best : best))) continue;
        best = sum;
        to = label[x];
      }
      label[x] = to;
      better |= to != was;
    }
  }
}

// The least sum, its labels, and a bound from below that is equal to it when proved.
static ein_status eini_sums_solve(eini_sums *net, int beam, int *label, double *total,
                                 double *lower) {
  EINI_TRY(eini_sums_eliminate(net));
  EINI_TRY(eini_sums_decode(net, net->split ? beam : 1, label, lower));
  if (net->split) eini_sums_improve(net, label);
  *total = eini_sums_value(net, label);
  if (*lower > *total || !net->split) *lower = *total;
  return EIN_OK;
}
