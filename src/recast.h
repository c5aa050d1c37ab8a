// ================================================================================================
// >>recast  programs written again
// Takes a graph and a change to one of its statements; gives another graph, whose text is a program
// that computes the same.
// ================================================================================================

#define EINI_RECAST_NODES 4096  // of an expression that a rule may make
#define EINI_RECAST_INPUT "it reads an input"  // the least of reasons

typedef struct eini_recast {
  const ein_graph *from;
  ein_graph *g;             // what is being made; NULL: a rule is only asked whether it applies
  eini_arena *scratch;
  eini_grad w;              // writes drafts into g
  int *alias;               // per tensor: what is read in its place; NULL: itself
  int64_t skip;             // a statement that another one takes in; -1: none
  const char *why;          // the reason why a rule does not apply; NULL: it does
} eini_recast;

// A rule says no: its reason is a whole sentence.
static ein_status eini_recast_no(eini_recast *x, const char *why) {
  x->why = why;
  return EIN_OK;
}

// ---- drafts ----

// A statement of the source as a draft over nindex indices, the first nfree of which are free, with
// room for `more` operands. Index i of s becomes at[i]; NULL: they stay.
static ein_status eini_recast_draft(eini_recast *x, const eini_stmt *s, int nindex, int nfree,
                                    int more, const int *at, eini_stmt *f) {
  eini_arena *a = x->scratch;
  *f = *s;
  f->nindex = nindex;
  f->nfree = nfree;
  f->hint = NULL;
  f->index = EINI_NEW(a, eini_index, nindex);
  f->operand = EINI_NEW(a, int, (int64_t)s->noperand + more);
  f->proj = EINI_NEW(a, eini_map, (int64_t)s->noperand + more);
  if (f->index == NULL || f->operand == NULL || f->proj == NULL) return EIN_ERR_NO_MEMORY;
  f->expr.cap = f->expr.n;  // what is added goes elsewhere
  f->expr.caplist = f->expr.nlist;
  for (int i = 0; i < s->nindex; i++) {
    const int to = at == NULL ? i : at[i];
    if (to >= 0 && to < nindex) f->index[to] = s->index[i];
  }
  EINI_TRY(eini_map_new(a, s->out_map.rows, nindex, &f->out_map));
  EINI_TRY(eini_map_copy(a, &f->out_map, &s->out_map, at));
  for (int k = 0; k < s->noperand; k++) {
    f->operand[k] = s->operand[k];
    EINI_TRY(eini_map_new(a, s->proj[k].rows, nindex, &f->proj[k]));
    EINI_TRY(eini_map_copy(a, &f->proj[k], &s->proj[k], at));
  }
  return EIN_OK;
}

// The draft reads one more tensor, by a map of its own; the node is -1 when out of memory.
static int eini_recast_read(eini_recast *x, eini_stmt *f, int tensor, const eini_map *map) {
  const int k = f->noperand++;
  f->operand[k] = tensor;
  f->proj[k] = *map;
  return eini_expr_add(x->scratch, &f->expr, EIN_OP_OPERAND, -1, k, 0, 0);
}

static ein_status eini_recast_append(eini_recast *x, const eini_stmt *f, int root) {
  const ein_rest rest = f->rest;
  EINI_TRY(eini_draft_append(&x->w, f, root));
  x->g->stmt[x->g->nstmt - 1].rest = rest;
  return EIN_OK;
}

// A node of a draft converted as a statement's result is when it is stored in dtype t and read.
static int eini_recast_cast(eini_recast *x, eini_expr *e, int id, ein_dtype t) {
  id = id < 0 ? -1 : eini_expr_add(x->scratch, e, EIN_OP_CAST, -1, id, 0, 0);
  if (id >= 0) e->node[id].dtype = (unsigned char)t;
  return id;
}

// Is what a statement computes what readers of its tensor see? Then no conversion is between.
static int eini_recast_kept(const ein_graph *g, const eini_stmt *s) {
  const ein_dtype t = g->tensor[s->out].dtype;
  return s->type == t && ein_dtype_compute(t) == t;
}

// A new temporary over n of the draft's indices, each an axis, and the map that reads it there.
static ein_status eini_recast_temp(eini_recast *x, const eini_stmt *f, int n, const int *index,
                                   int *tensor, eini_map *map) {
  int64_t *shape = EINI_NEW(x->scratch, int64_t, n + 1);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_map_new(x->scratch, n, f->nindex, map));
  for (int i = 0; i < n; i++) {
    shape[i] = f->index[index[i]].extent;
    EINI_TRY(eini_map_set(x->scratch, map, i, index[i], 1));
  }
  return eini_grad_tensor(&x->w, f->out, EIN_NONE, n, shape, tensor);
}

// ---- maps through maps ----

// Coordinates of m, whose indices are those rows of `inner`.
static ein_status eini_map_through(eini_arena *a, const eini_map *m, const eini_map *inner,
                                   eini_map *to) {
  EINI_TRY(eini_map_new(a, m->rows, inner->cols, to));
  for (int r = 0; r < m->rows; r++) {
    to->offset[r] = m->offset[r];
    for (int e = m->first[r]; e < m->first[r + 1]; e++) {
      const int i = m->term[e].index;
      int64_t by = m->term[e].coef, add;
      if (eini_mul_overflow(by, inner->offset[i], &add) ||
          eini_add_overflow(to->offset[r], add, &to->offset[r])) return EIN_ERR_TOO_LARGE;
      for (int q = inner->first[i]; q < inner->first[i + 1]; q++) {
        const eini_mapterm t = inner->term[q];
        if (eini_mul_overflow(by, t.coef, &add) ||
            eini_add_overflow(add, eini_map_coef(to, r, t.index), &add)) return EIN_ERR_TOO_LARGE;
        EINI_TRY(eini_map_set(a, to, r, t.index, add));
      }
    }
  }
  return EIN_OK;
}

// The value of row r of a map over a draft's indices, as an expression; -1: out of memory.
static int eini_recast_row(eini_recast *x, eini_expr *e, const eini_map *m, int r) {
  eini_arena *a = x->scratch;
  int sum = -1;
  for (int q = m->first[r]; q < m->first[r + 1]; q++) {
    const int64_t by = m->term[q].coef;
    int id = eini_expr_add(a, e, EIN_OP_INDEX, -1, m->term[q].index, 0, 0);
    if (by != 1) id = eini_expr_pair(a, e, EIN_OP_MUL, id, eini_expr_int(a, e, -1, by));
    sum = sum < 0 ? id : eini_expr_pair(a, e, EIN_OP_ADD, sum, id);
    if (sum < 0) return -1;
  }
  if (sum < 0) return eini_recast_cast(x, e, eini_expr_int(a, e, -1, m->offset[r]), EIN_I64);
  if (m->offset[r] == 0) return sum;
  return eini_expr_pair(a, e, EIN_OP_ADD, sum, eini_expr_int(a, e, -1, m->offset[r]));
}

// ---- spelling: a text that is read again as what it was ----

// A node as the text has it: what typing inserted is not there, and literals adopt what they meet.
static eini_node eini_spell_node(const eini_typing *ty, const eini_node *v) {
  eini_node t = *v;
  if (t.op == EIN_OP_CONST && t.dtype != EIN_BOOL) t.weak = 1;
  if (t.op == EIN_OP_PARAM && ty->param[t.arg[0]].dtype == EIN_NONE) t.dtype = EIN_NONE;
  if (t.op == EIN_OP_CONST && t.weak) t.dtype = EIN_NONE;
  return t;
}

// Would node `id` of the text compute what node i of e does?
static int eini_spells(const eini_expr *e, int i, const eini_expr *text, int id) {
  const eini_node *v = &e->node[i], *t = &text->node[id];
  if (t->weak || v->op <= EIN_OP_PARAM) return 1;
  if (t->op != v->op || t->dtype != v->dtype || eini_node_args(t) != eini_node_args(v)) return 0;
  for (int k = 0; k < eini_node_args(v); k++) {
    const eini_node *c = &text->node[eini_node_arg(text, t, k)];
    const ein_dtype want = (ein_dtype)e->node[eini_node_arg(e, v, k)].dtype;
    if (ein_dtype_compute((ein_dtype)c->dtype) != ein_dtype_compute(want)) return 0;
  }
  return 1;
}

// Types node i over what its children became; where the text would mean something else, they are
// converted.
static ein_status eini_spell(eini_recast *x, const eini_typing *ty, const eini_expr *e, int i,
                             const int *map, eini_expr *text, int *id) {
  const eini_node v = eini_spell_node(ty, &e->node[i]);
  const int n = eini_node_args(&v);
  int child[EINI_ARGS_MAX] = {0}, literals = n > 0;
  for (int k = 0; k < n; k++) {
    child[k] = map[eini_node_arg(e, &v, k)];
    literals &= text->node[child[k]].op == EIN_OP_CONST && text->node[child[k]].weak;
  }
  if (!literals || v.op == EIN_OP_ROUNDTO) {
    EINI_TRY(eini_type_node(x->scratch, ty, text, v, child, id));
    if (eini_spells(e, i, text, *id)) return EIN_OK;
  }
  for (int k = 0; k < n; k++) {
    const ein_dtype t = (ein_dtype)e->node[eini_node_arg(e, &v, k)].dtype;
    eini_node cast;
    memset(&cast, 0, sizeof cast);
    cast.op = EIN_OP_CAST;
    cast.dtype = (unsigned char)t;
    cast.pos = -1;
    EINI_TRY(eini_type_node(x->scratch, ty, text, cast, &child[k], &child[k]));
  }
  return eini_type_node(x->scratch, ty, text, v, child, id);
}

// Has every param in the expression a dtype there that it had before, too?
static int eini_recast_params(const eini_expr *e, const eini_expr *was) {
  for (int i = 0; i < e->n; i++) {
    int had = e->node[i].op != EIN_OP_PARAM;
    for (int k = 0; k < was->n && !had; k++)
      had = was->node[k].op == EIN_OP_PARAM && was->node[k].arg[0] == e->node[i].arg[0] &&
            was->node[k].dtype == e->node[i].dtype;
    if (!had) return 0;
  }
  return 1;
}

// The expression of a finished statement, e, as one whose text means the same. firm: params without
// dtype are converted to the one that they adopted in e, so that they adopt no other.
static ein_status eini_recast_spelled(eini_recast *x, const eini_stmt *s, const eini_expr *e,
                                      int firm, eini_expr *to_expr) {
  eini_typing ty;
  eini_expr text;
  ein_dtype *od = EINI_NEW(x->scratch, ein_dtype, s->noperand);
  int *map = EINI_NEW(x->scratch, int, e->n);
  if (od == NULL || map == NULL) return EIN_ERR_NO_MEMORY;
  memset(&ty, 0, sizeof ty);
  memset(&text, 0, sizeof text);
  for (int k = 0; k < s->noperand; k++) od[k] = x->g->tensor[s->operand[k]].dtype;
  ty.operand = od;
  ty.param = x->g->param;
  ty.function = x->g->function;
  for (int i = 0; i < e->n; i++) {
    const eini_node *v = &e->node[i];
    if (v->op == EIN_OP_CAST && v->arg[1] == 1) map[i] = map[v->arg[0]];
    else EINI_TRY(eini_spell(x, &ty, e, i, map, &text, &map[i]));
    if (firm && v->op == EIN_OP_PARAM && text.node[map[i]].weak) {
      map[i] = eini_recast_cast(x, &text, map[i], (ein_dtype)v->dtype);
      if (map[i] < 0) return EIN_ERR_NO_MEMORY;
    }
  }
  int root = map[e->n - 1];
  const ein_dtype want = (ein_dtype)e->node[e->n - 1].dtype;
  if (eini_node_dtype(&text.node[root]) != want) {
    root = eini_recast_cast(x, &text, root, want);
    if (root < 0) return EIN_ERR_NO_MEMORY;
  }
  eini_expr clean;
  char *need = EINI_NEW(x->scratch, char, root + 1);
  int *to = EINI_NEW(x->scratch, int, root + 1);
  memset(&clean, 0, sizeof clean);
  if (need == NULL || to == NULL) return EIN_ERR_NO_MEMORY;
  eini_mark_needed(&text, root, need);
  for (int i = 0; i <= root; i++) {
    if (!need[i]) continue;
    to[i] = eini_node_copy(x->scratch, &text, i, to, &clean);
    if (to[i] < 0) return EIN_ERR_NO_MEMORY;
    if (text.node[i].op == EIN_OP_PARAM || text.node[i].op == EIN_OP_CONST)
      clean.node[to[i]] = text.node[i];
  }
  return eini_expr_type(&x->g->arena, &ty, &clean, to_expr);
}

static ein_status eini_recast_spell(eini_recast *x, eini_stmt *s) {
  const eini_expr was = s->expr;
  EINI_TRY(eini_recast_spelled(x, s, &was, 0, &s->expr));
  if (eini_recast_params(&s->expr, &was)) return EIN_OK;
  return eini_recast_spelled(x, s, &was, 1, &s->expr);
}

// ---- names ----

static int eini_recast_taken(const ein_graph *g, const char *name, int64_t tensors) {
  int id;
  if (!eini_is_name(name) || eini_word_class(g, name, (int64_t)strlen(name), &id) != EINI_W_FREE)
    return 1;
  for (int64_t i = 0; i < tensors; i++)
    if (strcmp(g->tensor[i].name, name) == 0) return 1;
  for (int64_t i = 0; i < g->nparam; i++)
    if (strcmp(g->param[i].name, name) == 0) return 1;
  return 0;
}

// Tensors under names of the language: what is before a dot, and a number where that is taken.
static ein_status eini_recast_tensors(eini_recast *x) {
  ein_graph *g = x->g;
  for (int64_t i = 0; i < g->ntensor; i++) {
    eini_tensor *t = &g->tensor[i];
    char name[96];
    if (t->nstmt == 0 || eini_is_name(t->name)) continue;
    const int len = eini_cut(t->name, (int64_t)strcspn(t->name, "."));
    for (int64_t k = 1; k <= g->ntensor + g->nparam + 1; k++) {
      snprintf(name, sizeof name, "%.*s_%lld", len, t->name, (long long)k);
      if (!eini_recast_taken(g, name, g->ntensor)) break;
    }
    t->name = eini_strndup(&g->arena, name, (int64_t)strlen(name));
    if (t->name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Indices under names of the language, each of its own, in memory of the graph.
static ein_status eini_recast_indices(eini_recast *x, eini_stmt *s) {
  ein_graph *g = x->g;
  int next = 0;
  for (int i = 0; i < s->nindex; i++) {
    const char *name = s->index[i].name;
    char made[24];
    int taken = name == NULL || eini_recast_taken(g, name, g->ntensor);
    for (int k = 0; k < i && !taken; k++) taken = strcmp(s->index[k].name, name) == 0;
    while (taken) {
      snprintf(made, sizeof made, "i%d", next++);
      name = made;
      taken = eini_recast_taken(g, name, g->ntensor);
      for (int k = 0; k < s->nindex && !taken; k++)
        taken = s->index[k].name != NULL && strcmp(s->index[k].name, name) == 0;
    }
    s->index[i].name = eini_strndup(&g->arena, name, (int64_t)strlen(name));
    if (s->index[i].name == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// ---- the whole ----

// The graph becomes what its text says: unobserved statements go, and lines are those of the text.
static ein_status eini_recast_close(eini_recast *x) {
  ein_graph *g = x->g;
  int64_t line = 0;
  EINI_TRY(eini_graph_prune(g));
  EINI_TRY(eini_recast_tensors(x));
  for (int64_t t = 0; t < g->ntensor; t++) {
    line += g->tensor[t].role == EIN_ROLE_INPUT;
    if (g->tensor[t].nstmt == 0) g->tensor[t].line = 0;
  }
  line += g->nparam;
  for (int64_t i = 0; i < g->nstmt; i++) {
    eini_stmt *s = &g->stmt[i];
    EINI_TRY(eini_recast_indices(x, s));
    EINI_TRY(eini_recast_spell(x, s));
    s->line = ++line;
    s->pos = -1;
    s->hint = NULL;
  }
  return EIN_OK;
}

// A statement of the source as it is, but for what is read in place of tensors.
static ein_status eini_recast_keep(eini_recast *x, const eini_stmt *s) {
  int *operand = EINI_NEW(x->scratch, int, s->noperand);
  if (operand == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++)
    operand[k] = x->alias == NULL ? s->operand[k] : x->alias[s->operand[k]];
  return eini_stmt_copy(x->g, s, s->out, operand);
}

static ein_status eini_recast_begin(eini_recast *x, const ein_graph *from, ein_graph *g,
                                    eini_arena *scratch, eini_diag *diag) {
  memset(x, 0, sizeof *x);
  x->from = from;
  x->g = g;
  x->scratch = scratch;
  x->w.g = g;
  x->w.scratch = scratch;
  x->w.diag = diag;
  x->w.pos = -1;
  x->skip = -1;
  return g == NULL ? EIN_OK : eini_graph_copy_head(g, from);
}

// How often tensors are read, of all statements.
static int eini_recast_readers(const ein_graph *g, int tensor) {
  int n = g->tensor[tensor].role == EIN_ROLE_OUTPUT;
  for (int64_t i = 0; i < g->nstmt; i++)
    for (int k = 0; k < g->stmt[i].noperand; k++) n += g->stmt[i].operand[k] == tensor;
  return n;
}
