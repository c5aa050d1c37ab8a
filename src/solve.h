// ================================================================================================
// >>solve  extents and bounds
// Takes resolved accesses; gives every index its extent (GRAMMAR rule 5) and proves that accesses
// without an edge rule stay inside their tensors (rule 6).
// ================================================================================================

static int eini_edge_kind_of(const eini_syn *v, int axis) {
  return v->edge == NULL ? EINI_EDGE_NONE : v->edge[axis].kind;
}

// Calls fn for every coordinate, or those without an edge rule; 1 when one of the calls gave 1.
static int eini_each_row(eini_prog *q, int ruled,
                         int (*fn)(eini_prog *q, const eini_syn *v, int axis)) {
  int any = 0;
  for (int64_t k = 0; k < q->access.n; k++) {
    const eini_syn *v = q->access.kid[k];
    int rank = v->row != NULL ? q->g->tensor[v->id].rank : 0;
    for (int r = 0; r < rank && q->p.st == EIN_OK; r++)
      if (ruled || eini_edge_kind_of(v, r) == EINI_EDGE_NONE) any |= fn(q, v, r);
  }
  return any;
}

// (b) Indices that stand alone as a coordinate: all places agree.
static int eini_solve_alone(eini_prog *q, const eini_syn *v, int axis) {
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  if (w->n != 1 || w->coef[0] != 1 || w->offset != 0) return 0;
  eini_var *x = &q->var[w->var[0]];
  if (x->axis == -2 || x->extent == t->shape[axis]) return 0;
  if (x->extent >= 0) {
    eini_perr(&q->p, EIN_ERR_SHAPE, EINI_AT(w),
              "extents do not broadcast in programs: write b[0,j]",
              "'%.*s' has extent %lld in axis %d of '%s', but %lld in axis %d of '%s'",
              EINI_NAME_OF(&q->p, x->sym), (long long)t->shape[axis], axis, t->name,
              (long long)x->extent, x->axis, q->g->tensor[x->by->id].name);
    return 0;
  }
  x->extent = t->shape[axis];
  x->by = v;
  x->axis = axis;
  return 1;
}

// (c) The largest extent of the only open index that keeps a coordinate inside. Until the round is
// over, the least extent e found is noted as -2 - e, which still counts as open.
static int eini_solve_open(eini_prog *q, const eini_syn *v, int axis) {
  eini_parser *p = &q->p;
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  eini_var *open = NULL;
  int64_t lo = w->offset, hi = w->offset, coef = 0, d, room;
  int over = 0;
  for (int i = 0; i < w->n; i++) {
    eini_var *x = &q->var[w->var[i]];
    if (x->extent < 0 && open != NULL) return 0;
    if (x->extent < 0) {
      open = x;
      coef = w->coef[i];
    } else if (eini_mul_overflow(w->coef[i], eini_max64(x->extent - 1, 0), &d)) {
      over = 1;
    } else {
      over |= eini_add_overflow(d < 0 ? lo : hi, d, d < 0 ? &lo : &hi);
    }
  }
  if (open == NULL && !over) return 0;
  room = lo;  // how far the index may move the coordinate
  over |= coef > 0 && (hi == INT64_MIN || eini_add_overflow(t->shape[axis] - 1, -hi, &room));
  if (over || room > INT64_MAX / 2) return eini_too_wide(p, EINI_AT(w)), 0;
  int64_t e = eini_floor_div(room, eini_abs64(coef)) + 1;
  if (e < 1) {
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(w), NULL,
              "no extent of '%.*s' keeps this inside axis %d of '%s', whose extent is %lld",
              EINI_NAME_OF(p, open->sym), axis, t->name, (long long)t->shape[axis]);
  }
  if (e < 1 || (open->extent < -1 && -2 - open->extent <= e)) return 0;
  open->extent = -2 - e;
  open->by = v;
  open->axis = axis;
  return 1;
}

// Sizes the caller gave for indices left open; 1 when one was used.
static int eini_solve_given(eini_prog *q) {
  int found = 0;
  for (int64_t i = 0; i < q->nvar; i++) {
    eini_var *x = &q->var[i];
    const eini_sym *s = &q->names.sym[x->sym];
    for (int k = 0; x->extent < 0 && x->kind != EINI_V_SCAN && k < q->desc->nsize; k++) {
      if (!eini_word_is(s->s, s->n, q->desc->size[k].name)) continue;
      x->extent = q->desc->size[k].value;
      x->axis = -2;
      found = 1;
    }
  }
  return found;
}

// The block of a function over blocks: what it reads, and so the axes of what it gives, in the
// order in which the left side has the indices that no argument has.
static void eini_solve_block(eini_prog *q, const eini_syn *over) {
  eini_parser *p = &q->p;
  const eini_syn *call = over->kid[0];
  const ein_operator *f = q->g->block[call->op];
  int64_t size[EINI_BLOCK_SIZES];
  eini_signature x;
  if (!eini_signature_read(f->signature, &x)) return;
  if (call->n != x.nin) {
    eini_called w = eini_called_of(p, call);
    eini_wrong_count(p, &w, x.nin, NULL);
    return;
  }
  for (int k = 0; k < EINI_BLOCK_SIZES; k++) size[k] = -1;
  for (int k = 0; k < call->n; k++) {
    eini_vars u = {NULL, 0, 0};
    eini_used(q, call->kid[k], &u, ++q->stamp);
    if (call->kid[k]->kind != EINI_S_ACCESS) eini_vars_sort(&u);
    for (int64_t i = 0, a = 0; i < u.n; i++) {
      int bound = 0;
      for (int b = 0; b < over->nbind; b++) bound |= over->bind[b] == u.v[i];
      if (!bound) q->var[u.v[i]].block = 1;
      else if (a < eini_signature_rank(&x, k))
        size[x.size[x.first[k] + a++]] = q->var[u.v[i]].extent;
    }
  }
  for (int k = 0; k < x.inner; k++)
    if (size[k] < 0) return;
  if (eini_reported(p, eini_signature_outer(f, &x, size, over->pos, p->diag)) != EIN_OK) return;
  for (int64_t i = 0, a = 0; i < q->nvar; i++) {
    eini_var *y = &q->var[i];
    if (y->kind != EINI_V_FREE || y->block) continue;
    if (y->extent < 0 && x.nout > 1) y->extent = eini_signature_total(&x, 1, size);
    else if (y->extent < 0 && a < eini_signature_rank(&x, x.nin))
      y->extent = size[x.size[x.first[x.nin] + a]];
    a++;
  }
}

// over: a function over blocks that is the whole right side, or NULL.
static void eini_solve(eini_prog *q, const eini_syn *over) {
  eini_parser *p = &q->p;
  int rounds = 0;
  char hint[320];
  eini_each_row(q, 1, eini_solve_alone);
  do {
    while (p->st == EIN_OK && eini_each_row(q, 0, eini_solve_open)) {
      for (int64_t i = 0; i < q->nvar; i++)
        if (q->var[i].extent < -1) q->var[i].extent = -2 - q->var[i].extent;
      if (++rounds > 1000)
        eini_perr(p, EIN_ERR_TOO_LARGE, -1, 0, NULL, "extents depend on each other too deeply");
    }
  } while (p->st == EIN_OK && eini_solve_given(q));
  if (p->st == EIN_OK && over != NULL) eini_solve_block(q, over);
  for (int64_t i = 0; i < q->nvar && p->st == EIN_OK; i++) {
    const eini_var *x = &q->var[i];
    if (x->kind == EINI_V_SCAN || x->extent >= 0) continue;
    snprintf(hint, sizeof hint, "write [%.*s=..] or 'for %.*s=..', or use it alone as a coordinate",
             EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, x->sym));
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(x), hint, "nothing gives '%.*s' an extent",
              EINI_NAME_OF(p, x->sym));
  }
}

// The range of a coordinate.
static ein_status eini_row_range(eini_prog *q, const eini_row *w, int64_t *lo, int64_t *hi) {
  int64_t *extent = EINI_NEW(q->p.arena, int64_t, w->n);
  if (extent == NULL) return eini_pmem(&q->p);
  for (int i = 0; i < w->n; i++) extent[i] = q->var[w->var[i]].extent;
  if (eini_zmap_row_range(w->coef, w->n, w->offset, extent, lo, hi) == EIN_OK) return EIN_OK;
  return eini_too_wide(&q->p, EINI_AT(w));
}

static int eini_check_row(eini_prog *q, const eini_syn *v, int axis) {
  eini_parser *p = &q->p;
  const eini_tensor *t = &q->g->tensor[v->id];
  const eini_row *w = &v->row[axis];
  int64_t lo, hi;
  char why[160] = "";
  if (eini_row_range(q, w, &lo, &hi) != EIN_OK || (lo >= 0 && hi < t->shape[axis])) return 0;
  for (int i = 0; i < w->n && why[0] == 0; i++) {
    const eini_var *x = &q->var[w->var[i]];
    if (x->by == NULL || x->by == v || x->axis < 0) continue;
    snprintf(why, sizeof why, " ('%.*s' has extent %lld from axis %d of '%s')",
             EINI_NAME_OF(p, x->sym), (long long)x->extent, x->axis, q->g->tensor[x->by->id].name);
  }
  eini_perr(p, EIN_ERR_BOUNDS, EINI_AT(w), "an edge rule says what is read outside: X[i-1 | 0];"
            " 'for i=..' gives fewer values",
            "this reaches %lld in axis %d of '%s', whose extent is %lld%s",
            (long long)(lo < 0 ? lo : hi), axis, t->name, (long long)t->shape[axis], why);
  return 0;
}

static void eini_check_bounds(eini_prog *q) {
  for (int64_t i = 0; i < q->nvar; i++) {
    if (q->var[i].extent == 0) return;  // an empty index space: the statement's own proof decides
  }
  eini_each_row(q, 0, eini_check_row);
}
