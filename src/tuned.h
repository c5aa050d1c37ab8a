// ================================================================================================
// >>tuned  plans ask the store
// Takes a statement before it is split; gives its normal form, and what the store says of it or of
// the plain contraction behind it, as a path in the statement's own order and a variant.
// ================================================================================================

typedef struct eini_tuned {
  const char *out;          // tensor it defines; NULL: of the whole program
  const char *machine;      // for the record
  eini_normal own;
  int n, *at;               // factors; factor k is factor at[k] of the form. 0: no path is kept
  const char *path, *variant;  // what was asked for, in the form's order, for the record
  int found, ideal;         // 1: the store had it; for the plain contraction
  double distance;
  const char *had_path, *had_variant;
  double seconds, untuned;  // measured then
  eini_given given;
  eini_path steps;
  eini_hint hint;
} eini_tuned;

// May the store choose?
static int eini_tuned_free(const ein_options *o) { return eini_path_auto(o) && o->variant == NULL; }

// Is there anything for a store to do?
static int eini_tuned_wanted(const ein_ctx *ctx, const ein_options *o) {
  return ctx != NULL && ctx->store != NULL && !o->deterministic && o->memory == 0 &&
         !o->overflow_check;
}

// ---- the order of factors ----

// Factors in the order of the first of their operands in the form. at: as in eini_tuned.
static ein_status eini_tuned_order(eini_split *sp, int n, const eini_member *val, const int *rank,
                                   int *at) {
  uint64_t *key = EINI_NEW(&sp->g->arena, uint64_t, n);
  int *list = EINI_NEW(&sp->g->arena, int, n);
  if (key == NULL || list == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) {
    uint64_t least = INT_MAX;
    sp->nlist = 0;
    for (int i = 0; i < val[k].nroot; i++) EINI_TRY(eini_split_walk(sp, val[k].root[i]));
    for (int64_t i = 0; i < sp->nlist; i++) {
      const eini_node *v = &sp->w.expr.node[sp->list[i]];
      if (v->op == EIN_OP_OPERAND && (uint64_t)rank[v->arg[0]] < least)
        least = (uint64_t)rank[v->arg[0]];
    }
    key[k] = least << 32 | (uint64_t)k;
    list[k] = k;
  }
  eini_sort_by(list, n, key);
  for (int k = 0; k < n; k++) at[list[k]] = k;
  return EIN_OK;
}

// ---- the plain contraction ----

// The labels of a factor, in the order in which its accesses have them; *plain: the one operand
// that has each of them as an axis and is the whole of it, or -1.
static ein_status eini_ideal_labels(eini_split *sp, const eini_member *m, int *label, int *plain) {
  const eini_stmt *s = &sp->w;
  int n = 0;
  *plain = -1;
  sp->nlist = 0;
  for (int i = 0; i < m->nroot; i++) EINI_TRY(eini_split_walk(sp, m->root[i]));
  for (int64_t i = 0; i <= sp->nlist; i++) {
    const eini_node *v = i < sp->nlist ? &s->expr.node[sp->list[i]] : NULL;
    const eini_map *x = v != NULL && v->op == EIN_OP_OPERAND ? &s->proj[v->arg[0]] : NULL;
    const int terms = x != NULL ? x->first[x->rows] : v == NULL ? m->nlabel : 0;
    if (x != NULL) *plain = *plain == -1 && x->rows == m->nlabel ? v->arg[0] : -2;
    for (int e = 0; e < terms; e++) {
      const int c = x != NULL ? x->term[e].index : m->label[e];
      int k = 0;
      while (k < n && label[k] != c) k++;
      if (k == n) label[n++] = c;
    }
  }
  return EIN_OK;
}

// A tensor of some of the statement's indices.
static ein_status eini_ideal_tensor(ein_graph *g, const eini_stmt *s, const char *name,
                                    ein_role role, ein_dtype dtype, int n, const int *label) {
  int64_t *shape = EINI_NEW(&g->arena, int64_t, n);
  int id;
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < n; i++) shape[i] = s->index[label[i]].extent;
  return eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, n, shape, &id);
}

// The statement that its factors would make if each were an array, in graph g, which has none yet.
static ein_status eini_ideal_make(eini_split *sp, const eini_product *q, const int64_t *layout,
                                  ein_graph *g, int64_t *plain) {
  const eini_stmt *s = &sp->w;
  eini_arena *a = &g->arena;
  const int n = q->n, room = s->nindex + 1;
  int *label = EINI_NEW(a, int, (int64_t)room * (n + 1)), *op = EINI_NEW(a, int, n), last = -1;
  eini_stmt *t;
  if (label == NULL || op == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) {
    const eini_node *root = &sp->w.expr.node[q->val[k].root[0]];
    const int stored = eini_member_operand(sp, &q->val[k]);
    int from;
    op[k] = k;
    EINI_TRY(eini_ideal_labels(sp, &q->val[k], label + k * room, &from));
    plain[k] = from >= 0 && layout != NULL ? layout[from] : 0;
    EINI_TRY(eini_ideal_tensor(g, s, "x", EIN_ROLE_INPUT,
                               stored >= 0 ? sp->g->tensor[s->operand[stored]].dtype
                                           : ein_dtype_compute((ein_dtype)root->dtype),
                               q->val[k].nlabel, label + k * room));
  }
  int *out = label + n * room;
  int nout = 0;
  for (int e = 0; e < s->out_map.first[s->out_map.rows]; e++) {
    int known = 0;
    for (int i = 0; i < nout; i++) known |= out[i] == s->out_map.term[e].index;
    if (!known) out[nout++] = s->out_map.term[e].index;
  }
  plain[n] = layout != NULL && nout == s->out_map.rows ? layout[s->noperand] : 0;
  EINI_TRY(eini_ideal_tensor(g, s, "y", EIN_ROLE_OUTPUT, sp->g->tensor[s->out].dtype, nout, out));
  EINI_TRY(eini_graph_add_stmt(g, n, s->nindex, n, op, &t));
  t->nfree = s->nfree;
  t->fold = s->fold;
  for (int c = 0; c < s->nindex; c++) t->index[c] = s->index[c];
  for (int i = 0; i < nout; i++) EINI_TRY(eini_map_set(a, &t->out_map, i, out[i], 1));
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < q->val[k].nlabel; i++)
      EINI_TRY(eini_map_set(a, &t->proj[k], i, label[k * room + i], 1));
    const int leaf = eini_expr_add(a, &t->expr, EIN_OP_OPERAND, -1, k, 0, 0);
    last = k == 0 ? leaf : eini_expr_pair(a, &t->expr, sp->join, last, leaf);
    if (leaf < 0 || last < 0) return EIN_ERR_NO_MEMORY;
  }
  return eini_stmt_finish(g, t, NULL);
}

// ---- asking ----

// A record that was found, in the words of the statement. at: factors as in eini_tuned, or NULL.
static ein_status eini_tuned_take(eini_arena *a, eini_tuned *t, const eini_record *r, int n,
                                  const int *at, const uint64_t *letter) {
  const char *path = r->field[EINI_S_PATH], *variant = r->field[EINI_S_VARIANT];
  t->found = 1;
  t->seconds = r->seconds;
  t->untuned = r->untuned;
  t->had_path = eini_strndup(a, path, (int64_t)strlen(path));
  t->had_variant = eini_strndup(a, variant, (int64_t)strlen(variant));
  if (t->had_path == NULL || t->had_variant == NULL) return EIN_ERR_NO_MEMORY;
  if (strcmp(variant, "-") != 0) t->hint.variant = t->had_variant;
  t->given.at = at;
  t->given.n = n;
  t->given.letter = letter;
  t->given.order = t->hint.variant != NULL || strcmp(path, "auto") != 0;
  if (strcmp(path, "auto") == 0) return EIN_OK;
  if (strcmp(path, "none") != 0) {
    eini_path_text text;
    ein_status st = eini_path_read(a, NULL, t->had_path, &text, &t->steps);
    if (st == EIN_ERR_NO_MEMORY) return st;
    if (st != EIN_OK) return EIN_OK;
    t->given.path = &t->steps;
  }
  t->given.wanted = 1;
  return EIN_OK;
}

// The letters of indices that have other numbers, by their names.
static ein_status eini_tuned_rename(eini_arena *a, eini_tuned *t, const eini_stmt *from,
                                    const eini_stmt *to) {
  uint64_t *letter = EINI_NEW(a, uint64_t, to->nindex);
  if (letter == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < to->nindex; c++) {
    letter[c] = (uint64_t)from->nindex + (uint64_t)c;
    for (int i = 0; i < from->nindex; i++)
      if (strcmp(from->index[i].name, to->index[c].name) == 0) letter[c] = t->given.letter[i];
  }
  t->given.letter = letter;
  return EIN_OK;
}

// The own form, then that of the plain contraction.
static ein_status eini_tuned_ask(ein_ctx *ctx, ein_plan *p, eini_split *sp, const eini_product *q,
                                 const int64_t *layout, eini_tuned *t) {
  const eini_record *r = eini_store_find(ctx->store, ctx->machine, &t->own, &t->distance);
  eini_normal ideal;
  if (r != NULL) return eini_tuned_take(&p->arena, t, r, t->n, t->at, t->own.letter);
  if (q->n < 1) return EIN_OK;
  int64_t *plain = EINI_NEW(&sp->g->arena, int64_t, q->n + 1);
  ein_graph *g = eini_graph_new(ctx);
  ein_status st = plain == NULL || g == NULL ? EIN_ERR_NO_MEMORY
                                             : eini_ideal_make(sp, q, layout, g, plain);
  if (st == EIN_OK) st = eini_normal_make(&p->arena, g, &g->stmt[0], plain, "", &ideal);
  eini_graph_free(g);
  if (st == EIN_ERR_NO_MEMORY) return st;
  if (st != EIN_OK) return EIN_OK;
  r = eini_store_find(ctx->store, ctx->machine, &ideal, &t->distance);
  if (r == NULL) return EIN_OK;
  t->ideal = 1;
  return eini_tuned_take(&p->arena, t, r, t->n, ideal.rank, ideal.letter);
}

static ein_status eini_tuned_fill(ein_ctx *ctx, ein_plan *p, ein_graph *scratch,
                                  const eini_stmt *s, const int64_t *layout, const char *more,
                                  int each, int use, eini_tuned *t) {
  eini_split sp;
  eini_product q;
  memset(&sp, 0, sizeof sp);
  sp.g = scratch;
  EINI_TRY(eini_normal_make(&p->arena, scratch, s, layout, more, &t->own));
  EINI_TRY(eini_split_factors(&sp, s, &q));
  if (!each || q.n == s->noperand) {
    t->n = q.n;
    t->at = EINI_NEW(&p->arena, int, q.n);
    if (t->at == NULL) return EIN_ERR_NO_MEMORY;
    if (q.n > 0) EINI_TRY(eini_tuned_order(&sp, q.n, q.val, t->own.rank, t->at));
  }
  t->given.n = t->n;
  t->given.at = t->at;
  t->given.letter = t->own.letter;
  t->given.order = !use;  // what is to be kept is made as it will be from the store
  return use ? eini_tuned_ask(ctx, p, &sp, &q, layout, t) : EIN_OK;
}

// What the store says of statement s of graph g. layout, more: see eini_normal_make. each: a path
// takes operands, not factors. use: the store may choose. *to NULL: the statement has no form.
static ein_status eini_tuned_add(ein_ctx *ctx, ein_plan *p, const ein_graph *g, const eini_stmt *s,
                                 const int64_t *layout, const char *more, int each, int use,
                                 eini_tuned **to) {
  ein_graph scratch = *g;  // read only, what is made of it goes elsewhere
  eini_tuned *list = (eini_tuned *)eini_grow(&p->arena, p->tuned, p->ntuned, &p->captuned,
                                             sizeof *list);
  *to = NULL;
  if (list == NULL) return EIN_ERR_NO_MEMORY;
  p->tuned = list;
  eini_tuned *t = &list[p->ntuned];
  const char *name = g->tensor[s->out].name, *machine = ctx->machine == NULL ? "-" : ctx->machine;
  memset(t, 0, sizeof *t);
  t->out = eini_strndup(&p->arena, name, (int64_t)strlen(name));
  t->machine = eini_strndup(&p->arena, machine, (int64_t)strlen(machine));
  if (t->out == NULL || t->machine == NULL) return EIN_ERR_NO_MEMORY;
  eini_arena_init(&scratch.arena, &p->arena.al);
  const ein_status st = eini_tuned_fill(ctx, p, &scratch, s, layout, more, each, use, t);
  eini_arena_free(&scratch.arena);
  if (st == EIN_ERR_TOO_LARGE) return EIN_OK;
  if (st != EIN_OK) return st;
  p->ntuned++;
  *to = t;
  return EIN_OK;
}

// ---- what was done ----

// Statements from the given one on are to be computed as the store says.
static ein_status eini_tuned_hint(ein_plan *p, const eini_tuned *t, int64_t from) {
  if (t == NULL || (t->hint.variant == NULL && !t->hint.unsplit)) return EIN_OK;
  eini_hint *h = EINI_NEW(&p->graph->arena, eini_hint, 1);
  if (h == NULL) return EIN_ERR_NO_MEMORY;
  *h = t->hint;
  for (int64_t i = from; i < p->graph->nstmt; i++) p->graph->stmt[i].hint = h;
  return EIN_OK;
}

// Steps as text: "(0,1) (0,1)".
static void eini_say_path(eini_text *t, const eini_path *path) {
  for (int i = 0; i < path->nstep; i++) {
    eini_say(t, i == 0 ? "(" : " (");
    for (int k = path->first[i]; k < path->first[i + 1]; k++)
      eini_say(t, k > path->first[i] ? ",%d" : "%d", path->pos[k]);
    eini_say(t, ")");
  }
}

// Notes for the record what was asked for. path: the steps taken; NULL: none, or one pass.
static ein_status eini_tuned_done(ein_plan *p, eini_tuned *t, const ein_options *o, int unsplit,
                                  const eini_path *path) {
  const int named = o->variant != NULL && strcmp(o->variant, EINI_ANY) != 0;
  const char *variant = named ? o->variant : t->hint.variant;
  t->variant = variant == NULL ? "-" : eini_strndup(&p->arena, variant, (int64_t)strlen(variant));
  if (t->variant == NULL) return EIN_ERR_NO_MEMORY;
  const int free = eini_path_auto(o);
  t->path = "auto";
  if (free && !t->given.taken) return EIN_OK;
  if (free ? t->given.path == NULL : unsplit) t->path = "none";
  if (t->path[0] == 'n' || path == NULL || path->first == NULL || t->n < 2) return EIN_OK;
  int *back = EINI_NEW(&p->arena, int, t->n);
  eini_path own;
  if (back == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < t->n; k++) back[t->at[k]] = k;
  const ein_status st = eini_path_reorder(&p->arena, path, t->n, back, &own);
  if (st == EIN_ERR_ARGUMENT) return EIN_OK;  // of other factors
  if (st != EIN_OK) return st;
  eini_text text = eini_text_of(NULL, 0);
  for (int pass = 0; pass < 2; pass++) {
    if (pass > 0) EINI_TRY(eini_text_room(&p->arena, &text, &t->path));
    eini_say_path(&text, &own);
  }
  return EIN_OK;
}

// ---- whole programs ----

#define EINI_APART "ungrouped"  // the choice that no statements are one task

// A number that programs share which differ in names, the order of operands and of statements that
// do not wait for each other: an input is who reads it, a statement its form, extents, and what its
// operands are. Programs that are not the same share it in rare cases; that costs time alone.
static ein_status eini_tuned_number(eini_arena *scratch, const ein_plan *p, const ein_graph *g,
                                    uint64_t *number) {
  uint64_t *form = EINI_NEW(scratch, uint64_t, g->nstmt);
  uint64_t *is = EINI_NEW(scratch, uint64_t, g->ntensor);
  if (form == NULL || is == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_normal *x = &p->tuned[i].own;
    form[i] = eini_hash(x->form, strlen(x->form), eini_hash(x->dtypes, strlen(x->dtypes), 0));
    for (int c = 0; c < x->nindex; c++) form[i] = eini_mix(form[i], (uint64_t)x->extent[c]);
    for (int k = 0; k < g->stmt[i].noperand; k++) {
      const int t = g->stmt[i].operand[k];
      if (g->tensor[t].nstmt == 0) is[t] += eini_mix(form[i], 1);
    }
  }
  *number = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    uint64_t sum = 0;
    for (int k = 0; k < s->noperand; k++) sum += eini_mix(is[s->operand[k]], 2);
    sum = eini_mix(form[i], sum);
    is[s->out] += sum;
    *number += eini_mix(sum, g->tensor[s->out].role == EIN_ROLE_OUTPUT);
  }
  return EIN_OK;
}

// Asks the store how the program is to be run: one of which every statement was asked about.
static ein_status eini_tuned_program(ein_ctx *ctx, ein_plan *p, const ein_graph *g,
                                     const ein_options *o) {
  uint64_t number = 0;
  eini_arena scratch;
  if (g->nstmt < 2 || p->ntuned != g->nstmt) return EIN_OK;
  eini_arena_init(&scratch, &p->arena.al);
  const ein_status st = eini_tuned_number(&scratch, p, g, &number);
  eini_arena_free(&scratch);
  eini_tuned *t = (eini_tuned *)eini_grow(&p->arena, p->tuned, p->ntuned, &p->captuned, sizeof *t);
  char *form = EINI_NEW(&p->arena, char, 64);
  if (st != EIN_OK || t == NULL || form == NULL) return EIN_ERR_NO_MEMORY;
  eini_text text = eini_text_of(form, 64);
  eini_say(&text, "program of %lld #%016llx", (long long)g->nstmt, (unsigned long long)number);
  p->tuned = t;
  t += p->ntuned++;
  memset(t, 0, sizeof *t);
  t->machine = t[-1].machine;
  t->own.form = form;
  t->own.dtypes = t->path = "-";
  const eini_record *r = !eini_tuned_free(o) || p->ungrouped ? NULL
                         : eini_store_find(ctx->store, ctx->machine, &t->own, &t->distance);
  if (r != NULL) EINI_TRY(eini_tuned_take(&p->arena, t, r, 0, NULL, NULL));
  if (r != NULL && strcmp(t->had_variant, EINI_APART) == 0) p->ungrouped = 1;
  t->path = "auto";
  t->variant = p->ungrouped ? EINI_APART : "-";
  return EIN_OK;
}
