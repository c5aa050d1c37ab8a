// ================================================================================================
// >>fusion  the best partition of a graph into groups
// Takes a graph; gives its groups in order, with names, sides of blocks, what they move and must.
// ================================================================================================

struct ein_fusion {
  eini_arena arena;
  ein_fusion_info info;
  int64_t capgroup;
  ein_fusion_group *group;
};

// Names, extents and sides of the classes of a group; a class is called as in its last member.
static ein_status eini_fusion_classes(eini_arena *a, const eini_fuse *f, ein_fusion_group *to) {
  const char **name = EINI_NEW(a, const char *, f->ncls);
  int64_t *extent = EINI_NEW(a, int64_t, f->ncls), *side = EINI_NEW(a, int64_t, f->ncls);
  if (name == NULL || extent == NULL || side == NULL) return EIN_ERR_NO_MEMORY;
  for (int m = 0; m < f->n; m++) {
    const eini_fuse_member *x = &f->member[m];
    for (int c = 0; c < x->s->nindex; c++) {
      const char *was = x->s->index[c].name == NULL ? "" : x->s->index[c].name;
      const int cls = f->index[x->first + c].cls;
      extent[cls] = (int64_t)f->extent[cls];
      side[cls] = (int64_t)f->side[cls];
      if ((name[cls] = eini_strndup(a, was, (int64_t)strlen(was))) == NULL)
        return EIN_ERR_NO_MEMORY;
    }
  }
  to->nindex = f->ncls;
  to->index = name;
  to->extent = extent;
  to->tile = side;
  to->last = f->last;
  return EIN_OK;
}

static ein_status eini_fusion_members(eini_arena *a, const ein_graph *g, const int64_t *list,
                                      int n, ein_fusion_group *to) {
  int64_t *stmt = EINI_NEW(a, int64_t, n), *line = EINI_NEW(a, int64_t, n);
  const char **out = EINI_NEW(a, const char *, n);
  if (stmt == NULL || line == NULL || out == NULL) return EIN_ERR_NO_MEMORY;
  for (int m = 0; m < n; m++) {
    const char *name = g->tensor[g->stmt[list[m]].out].name;
    stmt[m] = list[m];
    line[m] = g->stmt[list[m]].line;
    if ((out[m] = eini_strndup(a, name, (int64_t)strlen(name))) == NULL) return EIN_ERR_NO_MEMORY;
  }
  to->nstmt = n;
  to->stmt = stmt;
  to->line = line;
  to->out = out;
  return EIN_OK;
}

// A group that was chosen, with what is known of its form.
static ein_status eini_fusion_add(ein_fusion *x, eini_fuse_search *z, const int64_t *list, int n) {
  const eini_arena_at mark = eini_arena_mark(&z->scratch);
  eini_fuse_known *k;
  eini_fuse f;
  int fits;
  ein_fusion_group *to = (ein_fusion_group *)eini_grow(&x->arena, x->group, x->info.ngroup,
                                                       &x->capgroup, sizeof *to);
  if (to == NULL) return EIN_ERR_NO_MEMORY;
  x->group = to;
  memset(to += x->info.ngroup, 0, sizeof *to);
  EINI_TRY(eini_fusion_members(&x->arena, z->w.g, list, n, to));
  for (int m = 0; m < n; m++) {
    EINI_TRY(eini_fuse_ask(z, &list[m], 1, INFINITY, &k));
    to->alone += k->io;
  }
  EINI_TRY(eini_fuse_ask(z, list, n, to->alone, &k));
  EINI_TRY(eini_fuse_recall(z, list, n, k, &f, &fits));
  if (fits && !k->bounded)
    EINI_TRY(eini_fuse_bound(&z->scratch, &z->w, &f, z->fast, &k->compulsory, &k->bound));
  k->bounded = 1;
  if (fits) EINI_TRY(eini_fusion_classes(&x->arena, &f, to));
  to->volume = f.points;
  to->again = f.again > f.points ? f.again - f.points : 0;
  to->held = f.room;
  to->io = k->io;
  to->compulsory = k->compulsory;
  to->bound = k->bound;
  x->info.ngroup++;
  x->info.io += to->io;
  x->info.alone += to->alone;
  eini_arena_rollback(&z->scratch, &mark);
  return EIN_OK;
}

// Solves window after window of statements that are in no group yet, and keeps of each the groups
// of its first half.
static ein_status eini_fusion_windows(ein_fusion *x, eini_fuse_search *z) {
  const int64_t nstmt = z->w.g->nstmt;
  eini_fuse_window win;
  int64_t next = 0, groups[EINI_FUSE_MOST + 1], list[EINI_FUSE_MOST];
  memset(&win, 0, sizeof win);
  while (win.n > 0 || next < nstmt) {
    unsigned gone = 0;
    while (win.n < EINI_FUSE_MOST && next < nstmt) win.list[win.n++] = next++;
    const unsigned half = next < nstmt ? (1u << EINI_FUSE_MOST / 2) - 1 : ~0u;
    win.set = NULL;
    win.nset = win.capset = 0;
    z->proved &= next == nstmt && win.n == nstmt;
    EINI_TRY(eini_fuse_window_solve(z, &win, groups));
    for (int k = 0; groups[k] != 0; k++) {
      const unsigned mask = (unsigned)groups[k];
      if (k > 0 && (mask & ~half)) break;
      EINI_TRY(eini_fusion_add(x, z, list, eini_fuse_members(&win, mask, list)));
      gone |= mask;
    }
    int left = 0;
    for (int i = 0; i < win.n; i++)
      if (!(gone >> i & 1)) win.list[left++] = win.list[i];
    win.n = left;
  }
  return EIN_OK;
}

static ein_status eini_fusion_make(ein_fusion *x, const ein_graph *g, const ein_fusion_desc *d) {
  eini_fuse_search z;
  eini_arena own;
  eini_arena_init(&own, &x->arena.al);
  ein_status st = eini_fuse_search_make(&z, &own, g, d->fast_memory, d->work);
  if (st == EIN_OK) {
    z.best = EINI_NEW(&own, double, 1 << EINI_FUSE_MOST);
    z.from = EINI_NEW(&own, int, 1 << EINI_FUSE_MOST);
    st = z.best == NULL || z.from == NULL ? EIN_ERR_NO_MEMORY : eini_fusion_windows(x, &z);
    eini_arena_free(&z.scratch);
  }
  x->info.looked = z.looked;
  x->info.proved = z.proved;
  eini_arena_free(&own);
  return st;
}

EIN_API ein_status ein_fusion_create(ein_ctx *ctx, const ein_graph *graph,
                                     const ein_fusion_desc *desc, ein_fusion **fusion) {
  eini_arena arena;
  if (fusion == NULL) return EIN_ERR_ARGUMENT;
  *fusion = NULL;
  eini_begin_call(ctx, NULL);
  ein_status st = eini_validate_graph(ctx, graph, 0, NULL, NULL);
  if (st == EIN_OK && desc == NULL) st = EIN_ERR_ARGUMENT;
  if (st == EIN_OK) st = eini_validate_fast(ctx, desc->fast_memory);
  if (st == EIN_OK && desc->work < 0)
    st = eini_fail(eini_diag_of(ctx), EIN_ERR_ARGUMENT, -1, 0, NULL, "work is %lld",
                   (long long)desc->work);
  if (st != EIN_OK) return eini_fail_status(ctx, st), st;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_fusion *x = EINI_NEW(&arena, ein_fusion, 1);
  if (x == NULL) return eini_fail_status(ctx, EIN_ERR_NO_MEMORY), EIN_ERR_NO_MEMORY;
  x->arena = arena;
  st = eini_fusion_make(x, graph, desc);
  eini_fail_status(ctx, st);
  if (st == EIN_OK) *fusion = x;
  else ein_fusion_destroy(x);
  return st;
}

EIN_API void ein_fusion_destroy(ein_fusion *x) {
  if (x == NULL) return;
  eini_arena arena = x->arena;  // it lives in its own arena
  eini_arena_free(&arena);
}

EIN_API int ein_fusion_get(const ein_fusion *x, ein_fusion_info *info) {
  if (x == NULL || info == NULL) return 0;
  *info = x->info;
  return 1;
}

EIN_API int ein_fusion_part(const ein_fusion *x, int64_t k, ein_fusion_group *group) {
  if (x == NULL || group == NULL || k < 0 || k >= x->info.ngroup) return 0;
  *group = x->group[k];
  return 1;
}
