// ================================================================================================
// >>bound-graph  bounds of all statements of a graph
// Takes a graph; gives what each statement must move, with names and tiles.
// ================================================================================================

struct ein_bound {
  eini_arena arena;
  int64_t nstmt;
  ein_bound_stmt *stmt;
};

static ein_status eini_bound_intensity(eini_arena *a, const eini_io *b, double volume,
                                       double places, ein_intensity *to) {
  double *tile = EINI_NEW(a, double, b->n);
  if (tile == NULL) return EIN_ERR_NO_MEMORY;
  if (b->n > 0) memcpy(tile, b->tile, (size_t)b->n * sizeof *tile);
  to->rho = b->rho;
  to->x0 = b->x0;
  to->tile = tile;
  to->bound = volume > 0 ? volume / b->rho : 0;
  to->per_place = to->bound / places;
  return EIN_OK;
}

static ein_status eini_bound_stmt(ein_bound *b, eini_arena *scratch, const ein_graph *g,
                                  const eini_stmt *s, const ein_bound_desc *d,
                                  ein_bound_stmt *to) {
  eini_arena *a = &b->arena;
  const double places = d->places > 1 ? (double)d->places : 1;
  const char **name = EINI_NEW(a, const char *, s->nindex);
  int64_t *extent = EINI_NEW(a, int64_t, s->nindex);
  const char *out = g->tensor[s->out].name;
  eini_limit limit;
  eini_touch touch;
  if (name == NULL || extent == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++) {
    const char *was = s->index[i].name == NULL ? "" : s->index[i].name;
    extent[i] = s->index[i].extent;
    if ((name[i] = eini_strndup(a, was, (int64_t)strlen(was))) == NULL) return EIN_ERR_NO_MEMORY;
  }
  to->nindex = s->nindex;
  to->index = name;
  to->extent = extent;
  to->line = s->line;
  if ((to->out = eini_strndup(a, out, (int64_t)strlen(out))) == NULL) return EIN_ERR_NO_MEMORY;
  to->volume = eini_points(s, NULL, 0, s->nindex);
  to->flops = to->volume * eini_point_flops(s);
  EINI_TRY(eini_touch_statement(scratch, s, &touch));
  EINI_TRY(eini_limit_find(scratch, &touch, d->fast_memory, places, &limit));
  to->compulsory = limit.compulsory;
  to->bound = limit.bound;
  to->per_place = limit.per_place;
  EINI_TRY(eini_bound_intensity(a, &limit.paper, to->volume, places, &to->paper));
  return eini_bound_intensity(a, &limit.capped, to->volume, places, &to->capped);
}

// Operations of a core while an element comes from memory.
static double eini_balance(const ein_rates *r, ein_dtype dtype) {
  const double flops = ein_dtype_compute(dtype) == EIN_F32 ? r->flops_f32 : r->flops_f64;
  const double bw = r->read_bw[EIN_MEMORY];
  return bw > 0 ? flops / bw * (double)ein_dtype_size(dtype) : 0;
}

static ein_status eini_bound_make(ein_bound *b, const ein_graph *g, const ein_bound_desc *d,
                                  const ein_rates *r) {
  ein_status st = EIN_OK;
  eini_arena scratch;
  eini_arena_init(&scratch, &b->arena.al);
  if ((b->stmt = EINI_NEW(&b->arena, ein_bound_stmt, g->nstmt)) == NULL) return EIN_ERR_NO_MEMORY;
  const eini_arena_at mark = eini_arena_mark(&scratch);
  for (; b->nstmt < g->nstmt && st == EIN_OK; b->nstmt++) {
    const eini_stmt *s = &g->stmt[b->nstmt];
    st = eini_bound_stmt(b, &scratch, g, s, d, &b->stmt[b->nstmt]);
    if (r != NULL) b->stmt[b->nstmt].balance = eini_balance(r, g->tensor[s->out].dtype);
    eini_arena_rollback(&scratch, &mark);
  }
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_validate_fast(ein_ctx *ctx, double fast) {
  if (fast >= 1 && fast < 1e18) return EIN_OK;
  return eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL,
                   "fast_memory is %g elements; it must be from 1 to 1e18", fast);
}

EIN_API ein_status ein_bound_create(ein_ctx *ctx, const ein_graph *graph,
                                    const ein_bound_desc *desc, ein_bound **bound) {
  eini_arena arena;
  if (bound == NULL) return EIN_ERR_ARGUMENT;
  *bound = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  if (st == EIN_OK && desc == NULL) st = EIN_ERR_ARGUMENT;
  if (st == EIN_OK) st = eini_validate_fast(ctx, desc->fast_memory);
  if (st == EIN_OK && desc->places < 0)
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "places is %lld",
                   (long long)desc->places);
  if (st != EIN_OK) return eini_fail_status(ctx, st), st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_bound *b = EINI_NEW(&arena, ein_bound, 1);
  if (b == NULL) return eini_fail_status(ctx, EIN_ERR_NO_MEMORY), EIN_ERR_NO_MEMORY;
  b->arena = arena;
  st = eini_bound_make(b, graph, desc, eini_rates_of(ctx));
  if (st == EIN_ERR_TOO_LARGE)
    eini_fail(eini_diag_of(ctx), st, -1, 0, NULL, "a statement has more than %d indices, or %d "
              "accesses", EINI_IO_INDICES, 4 * EINI_IO_INDICES);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *bound = b;
  else ein_bound_destroy(b);
  return st;
}

EIN_API void ein_bound_destroy(ein_bound *b) {
  if (b == NULL) return;
  eini_arena arena = b->arena;  // it lives in its own arena
  eini_arena_free(&arena);
}

EIN_API int ein_bound_statement(const ein_bound *b, int64_t k, ein_bound_stmt *info) {
  if (b == NULL || info == NULL || k < 0 || k >= b->nstmt) return 0;
  *info = b->stmt[k];
  return 1;
}
