// ================================================================================================
// >>budget  plans within a budget
// Takes what is to be planned and a number of bytes; gives a plan whose memory, and that of what
// made it, is counted by a cap.
// ================================================================================================

static void eini_budget_free(eini_budget *b) {
  if (b == NULL) return;
  ein_allocator al = b->cap.al;
  al.free_fn(b, sizeof *b, al.user);
}

// What a plan says of itself.
static void eini_budget_facts(ein_plan *p, const eini_budget *b) {
  const eini_fit_layout *f = &b->f;
  ein_plan_info *i = &p->info;
  i->memory = b->cap.limit;
  i->plan_bytes = b->cap.live;
  i->peak_bytes = b->cap.live + (size_t)(f->workspace + f->away);
  if (b->cap.top > i->peak_bytes) i->peak_bytes = b->cap.top;
  if (!b->sliced) return;
  p->workspace = i->workspace_bytes = (size_t)f->workspace;
  i->nin = p->nin - (p->alias >= 0);
  i->nout = p->nout;
  i->nparam = (int)p->graph->nparam;
  i->nregion = f->nregion;
  i->nslice = 0;
  i->flops = i->seconds = 0;
  for (int k = 0; k < f->nregion; k++) {
    const eini_fit_choice *c = &f->region[k].c;
    i->nloop += c->nloop;
    i->nslice += eini_fit_slice_count(c);
    i->flops += c->guess.flops;
    i->repeated_flops += c->guess.again;
    i->seconds += c->guess.seconds;
  }
  eini_plan_largest(p);
}

// Searches with a copy of the ctx whose memory comes from the cap; the ctx gets its messages.
static ein_status eini_budget_search(ein_ctx *ctx, const eini_want *want, eini_budget *b) {
  eini_fit_search s;
  ein_ctx inner = *ctx;
  memset(&s, 0, sizeof s);
  s.f = &b->f;
  s.j.ctx = &inner;
  s.j.desc = want;
  s.j.cap = &b->cap;
  inner.al = eini_cap_allocator(&b->cap);
  inner.logger.log_fn = NULL;  // what does not fit is no error
  inner.store = NULL;
  ein_status st = eini_fit_search_run(&s);
  ctx->diag = inner.diag;
  if (st == EIN_OK) eini_begin_call(ctx, NULL);
  return st;
}

// The budget's plan: that of the whole, or the one that owns the graph of the slices.
static ein_plan *eini_budget_give(eini_budget *b) {
  ein_plan *p = b->f.whole;
  b->sliced = p == NULL;
  if (b->sliced) p = b->f.base.plan;
  b->f.whole = NULL;
  p->budget = b;
  p->al = b->cap.al;  // runs are not counted, several may be under way
  eini_budget_facts(p, b);
  return p;
}

// What is wanted is valid. ctx may be NULL.
static ein_status eini_budget_plan(ein_ctx *ctx, const eini_want *want, ein_plan **plan) {
  ein_ctx_desc cd;
  ein_ctx *own = NULL;
  eini_arena a;
  eini_arena_init(&a, ctx == NULL ? NULL : &ctx->al);  // resolves the default allocator
  eini_budget *b = (eini_budget *)a.al.alloc_fn(sizeof *b, EINI_ALIGN, a.al.user);
  if (b == NULL) return EIN_ERR_NO_MEMORY;
  memset(b, 0, sizeof *b);
  b->cap.al = a.al;
  b->cap.live = b->cap.top = sizeof *b;
  b->cap.limit = want->options.memory - want->options.reserved;
  eini_arena_init(&b->f.arena, &a.al);
  memset(&cd, 0, sizeof cd);
  cd.allocator = eini_cap_allocator(&b->cap);
  ein_status st = ctx != NULL ? EIN_OK : eini_ctx_new(&cd, &own);
  if (st == EIN_OK) st = eini_budget_search(ctx == NULL ? own : ctx, want, b);
  eini_ctx_free(own);
  if (st == EIN_OK) {
    *plan = eini_budget_give(b);
  } else {
    eini_fit_layout_free(&b->f);
    eini_fit_base_close(&b->f.base);
    eini_budget_free(b);
  }
  return st;
}

// The plan of an einsum, within its budget if it has one; such a plan copies no overlapping output.
static ein_status eini_plan_within(ein_ctx *ctx, const ein_einsum_desc *desc, int may_overlap,
                                   ein_plan **p) {
  if (desc == NULL || desc->options.memory == 0) return eini_plan_make(ctx, desc, may_overlap, p);
  eini_begin_call(ctx, desc->expr);
  EINI_TRY(eini_validate_desc(ctx, desc, 1));
  ein_einsum_desc d = eini_desc_normal(desc);
  EINI_TRY(eini_overflow_options(eini_diag_of(ctx), &d.options));
  const eini_want want = {NULL, &d, 0, NULL, d.options};
  return eini_budget_plan(ctx, &want, p);
}
