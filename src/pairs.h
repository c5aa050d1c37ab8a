// ================================================================================================
// >>pairs  one pass over a product, or pairs
// Takes a product of values and a path; predicts one pass and pairs, and emits what is chosen.
// ================================================================================================

#define EINI_PASS_MOST 10  // factors for which all assignments to P and Q are tried

// A product as the time model sees it: labels as bits.
typedef struct eini_pass {
  const eini_split *sp;
  int n;
  uint64_t mask[2 * EINI_PASS_MOST], out;
  int stored[2 * EINI_PASS_MOST];  // 1: in memory; 0: a temporary that stays in a cache
  double last[2 * EINI_PASS_MOST];  // extent of the last axis
  ein_dtype type;
  double size;                     // bytes per element
} eini_pass;

static double eini_mask_size(const eini_split *sp, uint64_t mask) {
  double n = 1;
  for (; mask != 0; mask &= mask - 1) n *= (double)sp->w.index[EINI_CTZ(mask)].extent;
  return n;
}

static double eini_mask_longest(const eini_split *sp, uint64_t mask) {
  double n = 1;
  for (; mask != 0; mask &= mask - 1) n = fmax(n, (double)sp->w.index[EINI_CTZ(mask)].extent);
  return n;
}

// Elements of a run of products of the factors f, which have the labels of mask: of any axis, but
// where the last ones of all factors, as written, do not fill vectors, products are made by these.
static double eini_pass_run(const eini_pass *w, uint32_t f, uint64_t mask) {
  double last = 1;
  for (int k = 0; k < w->n; k++)
    if (f >> k & 1) last = fmax(last, w->last[k]);
  return last < EINI_RUN_SHORT ? last : fmin(eini_mask_longest(w->sp, mask), EINI_RUN_LENGTH);
}

// Work of one pass over two factors along an index that a third lacks, pair after pair in the best
// order, for kernels that go along it in blocks.
static double eini_pass_fused(const eini_pass *w, uint32_t p, uint32_t q, uint64_t out,
                              double work) {
  if (eini_count_bits(p) != 2 || eini_count_bits(q) != 1 || w->sp->rates->fused <= 0) return work;
  uint64_t f[3] = {w->mask[EINI_CTZ(p)], w->mask[EINI_CTZ(p & (p - 1))], w->mask[EINI_CTZ(q)]};
  double most = 0;
  for (uint64_t m = f[0] & f[1] & out & ~f[2]; m != 0; m &= m - 1)
    most = fmax(most, (double)w->sp->w.index[EINI_CTZ(m)].extent);
  for (int i = 0; i < 3 && most >= w->sp->rates->fused; i++) {
    uint64_t last = f[i], pair = f[(i + 1) % 3] | f[(i + 2) % 3];
    work = fmin(work, 2 * (eini_mask_size(w->sp, pair) +
                           eini_mask_size(w->sp, (pair & (out | last)) | last)));
  }
  return work;
}

// Seconds of one contraction with the factors `p` on one side and `q` on the other. A short panel
// keeps the arithmetic from its peak; products of factors are made while packing, run by run.
static double eini_pass_seconds(const eini_pass *w, uint32_t p, uint32_t q, uint64_t out,
                                int out_stored) {
  uint64_t mp = 0, mq = 0;
  double bytes = out_stored ? eini_mask_size(w->sp, out) : 0;
  for (int k = 0; k < w->n; k++) {
    if (p >> k & 1) mp |= w->mask[k];
    if (q >> k & 1) mq |= w->mask[k];
    if ((p | q) >> k & 1 && w->stored[k]) bytes += eini_mask_size(w->sp, w->mask[k]);
  }
  double m = eini_mask_size(w->sp, mp & ~mq & out), n = eini_mask_size(w->sp, mq & ~mp & out);
  double fit = (m < EINI_PANEL ? m / EINI_PANEL : 1) * (n < EINI_PANEL ? n / EINI_PANEL : 1);
  double work = 2 * eini_mask_size(w->sp, mp | mq) /
                (fit > EINI_PANEL_LEAST ? fit : EINI_PANEL_LEAST);
  if (p != 0) work += EINI_JOIN_FLOPS * (eini_count_bits(p) - 1) * eini_mask_size(w->sp, mp);
  if (q != 0) work += EINI_JOIN_FLOPS * (eini_count_bits(q) - 1) * eini_mask_size(w->sp, mq);
  work = eini_pass_fused(w, p, q, out, eini_pass_fused(w, q, p, out, work));
  double runs = 0, batch = eini_mask_size(w->sp, mp & mq & out);
  for (int side = 0; side < 2; side++) {
    const uint64_t mask = side ? mq : mp;
    const int factors = eini_count_bits(side ? q : p);
    if (factors > 1)
      runs += factors * eini_mask_size(w->sp, mask) / eini_pass_run(w, side ? q : p, mask);
  }
  if (eini_mask_size(w->sp, mp | mq) > batch) runs += batch;
  const double flops = eini_core_flops(w->sp->rates, w->type,
                                       eini_mask_size(w->sp, mp | mq) / batch);
  const eini_speed speed = eini_core_speed(w->sp->rates, flops);
  return eini_seconds(&speed, work + EINI_RUN_SECONDS * runs * flops, bytes * w->size);
}

// The labels of factor x that something else has too: the output, or one of the n factors listed.
// What is left out is summed in a task of its own, whose seconds are added.
static uint64_t eini_pass_reduce(const eini_pass *w, const int *list, int n, int x,
                                 double *seconds) {
  uint64_t others = w->out, mask = w->mask[x];
  for (int k = 0; k < n; k++) others |= list[k] == x ? 0 : w->mask[list[k]];
  if (eini_mask_size(w->sp, mask & ~others) == 1) return mask;
  const eini_speed speed = eini_core_speed(w->sp->rates, 1 / EINI_ADD_SECONDS);
  const double all = eini_mask_size(w->sp, mask);
  *seconds += eini_seconds(&speed, all, w->stored[x] ? all * w->size : 0);
  return mask & others;
}

// Seconds along a path of pairs; temporaries that fit a core's cache cost no traffic. *spills: some
// do not.
static double eini_path_seconds(eini_pass w, const eini_path *path, int *spills) {
  int list[EINI_PASS_MOST], left = w.n;
  double seconds = 0;
  for (int k = 0; k < left; k++) list[k] = k;
  for (int i = 0; i < path->nstep; i++) {
    if (path->first[i + 1] - path->first[i] < 2) continue;
    int a = path->pos[path->first[i]], b = path->pos[path->first[i] + 1];
    int x = list[a], y = list[b], last = left == 2;
    uint64_t kept = w.out;
    for (int side = 0; side < 2; side++) {
      const int z = side ? y : x;
      const uint64_t mask = eini_pass_reduce(&w, list, left, z, &seconds);
      if (mask != w.mask[z]) w.stored[z] = 0;
      w.mask[z] = mask;
    }
    for (int k = 0; k < left; k++) kept |= k == a || k == b ? 0 : w.mask[list[k]];
    kept &= w.mask[x] | w.mask[y];
    w.stored[w.n] = last || eini_mask_size(w.sp, kept) * w.size > w.sp->rates->fast_bytes;
    *spills |= !last && w.stored[w.n];
    w.mask[w.n++] = kept;
    seconds += eini_pass_seconds(&w, 1u << x, 1u << y, kept, w.stored[w.n - 1]);
    for (int k = a, to = a; k < left; k++) {
      if (k != a && k != b) list[to++] = list[k];
    }
    list[left - 2] = w.n - 1;
    left--;
  }
  return seconds;
}

// A product as the time model needs it; 0: it has none.
static int eini_pass_init(const eini_split *sp, int n, const eini_member *val,
                          const eini_member *out, eini_pass *w) {
  memset(w, 0, sizeof *w);
  if (sp->rates == NULL || sp->rates->copy_bw[EIN_MEMORY] <= 0 || n < 3 || n > EINI_PASS_MOST ||
      sp->w.nindex > 64 || sp->w.fold != EIN_FOLD_SUM || sp->join != EIN_OP_MUL) {
    return 0;
  }
  for (int k = 0; k < n; k++)
    if (eini_member_operand(sp, &val[k]) < 0) return 0;
  const int first = sp->w.operand[eini_member_operand(sp, &val[0])];
  ein_dtype t = ein_dtype_compute(sp->g->tensor[first].dtype);
  w->sp = sp;
  w->n = n;
  w->size = (double)ein_dtype_size(t);
  w->type = t;
  if (eini_core_flops(sp->rates, t, 1) <= 0 || t == EIN_BOOL) return 0;
  for (int c = 0; c < out->nlabel; c++) w->out |= (uint64_t)1 << out->label[c];
  for (int k = 0; k < n; k++) {
    w->stored[k] = 1;
    const int last = val[k].nlabel - 1;
    w->last[k] = last < 0 ? 1 : (double)sp->w.index[val[k].label[last]].extent;
    for (int c = 0; c < val[k].nlabel; c++) w->mask[k] |= (uint64_t)1 << val[k].label[c];
  }
  return 1;
}

// Which way is predicted to be fastest? *p gets the factors of P in one pass, *plain the pairs from
// left to right; predictions go to path->seconds. Where tasks are short, steps as found must win by
// more than the doubt about so many of them, else they are left only for what is surely faster. One
// pass must save traffic: what stays in a cache costs less than products of factors do.
static ein_status eini_pass_choose(const eini_split *sp, int n, const eini_member *val,
                                   const eini_member *out, eini_path *path, uint32_t *p,
                                   eini_path *plain, int *way) {
  eini_pass w;
  double *sec = path->seconds;
  int spills = 0;
  *way = EINI_AS_FOUND;
  if (!eini_pass_init(sp, n, val, out, &w)) return EIN_OK;
  *plain = *path;
  plain->method = "left to right";
  EINI_TRY(eini_path_room(&sp->g->arena, n - 1, 2 * n, plain));
  for (int i = 0; i < n - 1; i++) {
    plain->first[i + 1] = 2 * (i + 1);
    plain->pos[2 * i + 1] = i == 0 ? 1 : n - 1 - i;
  }
  path->plain = path->nstep == n - 1;
  for (int i = 0; i < 2 * (n - 1) && path->plain; i++)
    path->plain = path->first[i / 2] == plain->first[i / 2] && path->pos[i] == plain->pos[i];
  sec[EINI_LEFT_TO_RIGHT] = eini_path_seconds(w, plain, &spills);
  spills = 0;
  sec[EINI_AS_FOUND] = eini_path_seconds(w, path, &spills);
  for (uint32_t s = 1; s < (1u << n) - 1; s += 2) {  // P has the first factor
    double x = eini_pass_seconds(&w, s, ((1u << n) - 1) & ~s, w.out, 1);
    if (s == 1 || x < sec[EINI_ONE_PASS]) sec[EINI_ONE_PASS] = x, *p = s;
  }
  const double doubt = (n - 1) * EINI_DOUBT_SECONDS, found = sec[EINI_AS_FOUND];
  if (sec[EINI_LEFT_TO_RIGHT] <
      (found < EINI_DOUBTS * doubt ? found + doubt : EINI_SURELY * found))
    *way = EINI_LEFT_TO_RIGHT;
  if (spills && sec[EINI_ONE_PASS] < sec[*way]) *way = EINI_ONE_PASS;
  return EIN_OK;
}

static ein_status eini_emit_pass(eini_split *sp, int n, const eini_member *val,
                                 const eini_member *out, uint32_t p, ein_rest rest) {
  eini_member side[2];
  const eini_member *both[2];
  const uint32_t q = ((1u << n) - 1) & ~p;
  EINI_TRY(eini_member_join(sp, n, val, &p, &side[0]));
  EINI_TRY(eini_member_join(sp, n, val, &q, &side[1]));
  both[0] = &side[0];
  both[1] = &side[1];
  return eini_emit_stmt(sp, out, 2, both, rest);
}

// A product being carried out along a path.
typedef struct eini_along {
  eini_member *val;
  int *list, nval;          // the values still there, in the order positions count them
  int *uses, *kept, *seen;  // per label: values and outputs that have it; room; the last step
  const eini_member **part;  // of a step
} eini_along;

// Step i takes m values, whose positions are p, into *target (NULL: a temporary) and appends the
// result. One value alone is reduced to the labels that others need; where there is nothing to
// reduce, it only moves to the end.
static ein_status eini_split_step(eini_split *sp, eini_along *w, int i, const int *p, int m,
                                  const eini_member *target, ein_rest rest) {
  eini_member t;
  int n = 0;
  for (int k = 0; k < m; k++) {
    eini_member *v = &w->val[w->list[p[k]]];
    if (m > 1) EINI_TRY(eini_prereduce(sp, w->uses, v, w->kept));
    w->part[k] = v;
  }
  for (int k = 0; k < m; k++) eini_count_labels(w->uses, w->part[k], -1);
  for (int k = 0; k < m; k++) {
    for (int c = 0; c < w->part[k]->nlabel; c++) {
      int id = w->part[k]->label[c];
      if (w->uses[id] > 0 && w->seen[id] != i + 1) w->kept[n++] = id;
      w->seen[id] = i + 1;
    }
  }
  if (sp->rank != NULL) eini_sort_by(w->kept, n, sp->rank);
  int same = target == NULL && m == 1 && n == w->part[0]->nlabel &&
             eini_member_plain(sp, w->part[0]);
  if (same) t = *w->part[0];
  else if (target == NULL) EINI_TRY(eini_temp_member(sp, n, w->kept, &t));
  if (!same)
    EINI_TRY(eini_emit_stmt(sp, target == NULL ? &t : target, m, w->part, rest));
  if (target != NULL) return EIN_OK;
  int room = w->list[p[0]], left = p[0];
  for (int k = p[0], q = 0; k < w->nval; k++) {
    if (q < m && p[q] == k) q++;
    else w->list[left++] = w->list[k];
  }
  w->val[room] = t;
  w->list[left++] = room;
  w->nval = left;
  eini_count_labels(w->uses, &t, 1);
  return EIN_OK;
}

// Emits a product of values along a path. val is consumed.
static ein_status eini_split_along(eini_split *sp, int nval, eini_member *val,
                                   const eini_member *out, const eini_path *path, ein_rest rest) {
  eini_arena *a = &sp->g->arena;
  eini_along w;
  w.val = val;
  w.nval = nval;
  w.list = EINI_NEW(a, int, nval);
  w.uses = EINI_NEW(a, int, sp->w.nindex);
  w.kept = EINI_NEW(a, int, sp->w.nindex);
  w.seen = EINI_NEW(a, int, sp->w.nindex);
  w.part = EINI_NEW(a, const eini_member *, nval);
  if (w.list == NULL || w.uses == NULL || w.kept == NULL || w.seen == NULL || w.part == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < nval; k++) {
    eini_count_labels(w.uses, &val[k], 1);
    w.list[k] = k;
  }
  eini_count_labels(w.uses, out, 1);
  for (int i = 0; i < path->nstep; i++) {
    const int *p = path->pos + path->first[i], m = path->first[i + 1] - path->first[i];
    int last = i == path->nstep - 1;
    EINI_TRY(eini_split_step(sp, &w, i, p, m, last ? out : NULL, last ? rest : EIN_REST_ERROR));
  }
  return EIN_OK;
}

// Emits a product along a path; where that may be, in the way that is predicted to be fastest. Then
// the path becomes that: for one pass, one step of all values.
static ein_status eini_split_best(eini_split *sp, const eini_net *net, eini_member *val,
                                  const eini_member *out, eini_path *path, ein_rest rest) {
  uint32_t side = 0;
  int n = net->nterm, bad, way = EINI_AS_FOUND;
  eini_path plain;
  if (sp->fastest) EINI_TRY(eini_pass_choose(sp, n, val, out, path, &side, &plain, &way));
  if (way == EINI_AS_FOUND) return eini_split_along(sp, n, val, out, path, rest);
  path->method = eini_path_way[way];
  path->proved = 0;
  if (way == EINI_LEFT_TO_RIGHT) {
    memcpy(path->first, plain.first, (size_t)n * sizeof *path->first);
    memcpy(path->pos, plain.pos, 2 * ((size_t)n - 1) * sizeof *path->pos);
  } else {
    path->nstep = 1;
    path->first[1] = n;
    for (int k = 0; k < n; k++) path->pos[k] = k;
  }
  EINI_TRY(eini_path_cost(&sp->g->arena, net, path, &bad));
  return way == EINI_ONE_PASS ? eini_emit_pass(sp, n, val, out, side, rest)
                              : eini_split_along(sp, n, val, out, path, rest);
}
