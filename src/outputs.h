// ================================================================================================
// >>outputs  several outputs of one function over blocks
// Takes lines `Q[b,i], R[b,j] = f[t](X[b,t])`; gives the statement of the call, whose result holds
// its outputs one behind another, and for each output one that reads its part.
// ================================================================================================

// The lines of one with several left sides.
static void eini_outputs_expand(eini_selecting *x, const eini_line *now) {
  eini_parser *p = &x->q->p;
  eini_syn *call = now->kid[0];
  eini_indices w;
  while (call->kind == EINI_S_PAREN) call = call->kid[0];
  if (call->kind != EINI_S_REDUCE || call->op != EIN_FOLD_BLOCK)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(now), "Q[i], R[j] = f[t](X[t])",
              "several tensors on the left are the outputs of one function over blocks");
  else if (now->dtype != EIN_NONE)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(now), "output Q : f32",
              "several tensors on the left have no common dtype");
  if (p->st != EIN_OK || eini_sel_indices_of(x, call, &w) != EIN_OK) return;
  const int sym = eini_sel_fresh(x, "blocks"), at = eini_sel_fresh(x, "at"), nbatch = w.n;
  if (sym < 0 || at < 0) return;
  w.sym[w.n++] = at;
  eini_line *l = eini_sel_line(x, now->left, sym, &w, call);
  if (l == NULL) return;
  l->given = now->given;
  l->output = -(int)now->more.n - 1;
  w.n = nbatch;
  for (int64_t o = 0; o <= now->more.n; o++) {
    eini_syn *left = o == 0 ? now->left : now->more.kid[o - 1];
    l = eini_sel_line(x, left, left->sym, &w, eini_sel_whole(x, left, sym, &w));
    if (l == NULL) return;
    l->left = left;
    l->output = (int)o + 1;
  }
}

static void eini_output_lines(eini_prog *q) {
  eini_parser *p = &q->p;
  eini_selecting x;
  int any = 0;
  for (int64_t i = 0; i < q->nline && !any; i++) any = q->line[i].more.n > 0;
  if (!any || p->st != EIN_OK) return;
  memset(&x, 0, sizeof x);
  x.q = q;
  for (int64_t i = 0; i < q->nline && !eini_diag_full(p); i++) {
    eini_line now = q->line[i];
    x.into = &now;
    p->st = EIN_OK;
    if (now.more.n > 0) eini_outputs_expand(&x, &now);
    for (int64_t o = 0; p->st != EIN_OK && o <= now.more.n; o++)
      eini_sym_of(q, o == 0 ? now.sym : now.more.kid[o - 1]->sym)->bad = 1;
    if (now.more.n > 0 || p->st != EIN_OK) continue;
    eini_line *l = (eini_line *)eini_grow(p->arena, x.line, x.n, &x.cap, sizeof *l);
    if (l == NULL) eini_pmem(p);
    else (x.line = l)[x.n++] = now;
  }
  q->line = x.line;
  q->nline = x.n;
  p->st = EIN_OK;
}

// The indices on the left that are axes of output o's block get their extents; the coordinate of
// its elements in the result of the call.
static eini_syn *eini_outputs_at(eini_selecting *x, const eini_line *call, eini_line *l,
                                 const eini_signature *s, const int64_t *size, int64_t from) {
  const int side = s->nin + l->output - 1, want = eini_signature_rank(s, side);
  eini_syn *at = eini_sel_num(x, l->left, from);
  int64_t step = eini_signature_count(s, side, size);
  int found = 0;
  for (int i = 0; i < l->left->n; i++) {
    eini_syn *v = l->left->kid[i];
    int batch = 0;
    for (int k = 0; k + 1 < call->left->n; k++) batch |= call->left->kid[k]->sym == v->sym;
    if (v->kind == EINI_S_NAME && batch) continue;
    if (v->kind != EINI_S_NAME || found == want) {
      found = v->kind == EINI_S_NAME ? found + 1 : -1;
      break;
    }
    const int64_t n = size[s->size[s->first[side] + found++]];
    step = n > 0 ? step / n : 0;
    at = eini_sel_op(x, v, '+', at, eini_sel_op(x, v, '*', eini_sel_num(x, v, step), v));
    eini_kids_add(&x->q->p, &l->given, v, 0);
    eini_kids_add(&x->q->p, &l->given, eini_sel_num(x, v, n), 0);
  }
  if (found != want)
    eini_perr(&x->q->p, EIN_ERR_SHAPE, EINI_AT(l->left), "one index for each, by itself",
              "output %d has %d axes in its block", l->output - 1, want);
  return at;
}

// The statement of the call is there: what its outputs read of it.
static void eini_outputs_read(eini_prog *q, const eini_line *call) {
  eini_parser *p = &q->p;
  const ein_operator *f = eini_stmt_operator(q->g, &q->g->stmt[call->stmt]);
  eini_signature s;
  eini_selecting x;
  int64_t size[EINI_BLOCK_SIZES], from = 0;
  memset(&x, 0, sizeof x);
  x.q = q;
  if (f == NULL || !eini_signature_read(f->signature, &s)) return;
  if (eini_reported(p, eini_operator_sizes(q->g, &q->g->stmt[call->stmt], &s, size, p->diag)))
    return;
  if (s.nout != -call->output)
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(call), NULL, "'%.60s' %s has %d outputs, not %d", f->name,
              f->signature, s.nout, -call->output);
  for (int o = 0; o < s.nout && p->st == EIN_OK; o++) {
    eini_line *l = &q->line[q->cur + 1 + o];
    eini_kids k = {NULL, NULL, 0, 0};
    eini_syn *read = l->kid[0], *at = eini_outputs_at(&x, call, l, &s, size, from);
    for (int i = 0; i + 1 < call->left->n; i++) eini_kids_add(p, &k, call->left->kid[i], 0);
    eini_kids_add(p, &k, at, 0);
    read->n = 0;
    read->size = 1;
    l->kid[0] = eini_syn_with(read, &k);
    from += eini_signature_count(&s, s.nin + o, size);
  }
}
