// ================================================================================================
// >>recast-api  the rules, where they apply, and what they do
// Takes a graph; gives the places where its statements may be written again, and the graph after.
// ================================================================================================

// What the parts of a statement are to a rule.
enum { EINI_PART_ONE, EINI_PART_OPERAND, EINI_PART_NODE, EINI_PART_PAIR, EINI_PART_FREE,
       EINI_PART_TENSOR };

typedef struct eini_rule {
  const char *name, *what;
  int kind, part;
  ein_status (*rule_fn)(eini_recast *x, int64_t i, int part);
} eini_rule;

static const eini_rule eini_rules[] = {
    {"prune", "what nobody observes is not computed", 0, EINI_PART_TENSOR, eini_rule_prune},
    {"constants", "constants and decided conditions are folded", 0, EINI_PART_ONE,
     eini_rule_constants},
    {"identity", "identities that keep every bit", 0, EINI_PART_ONE, eini_rule_identity},
    {"reuse", "an equal statement is read in its place", 0, EINI_PART_ONE, eini_rule_reuse},
    {"inline", "what is read once is computed where it is read", 0, EINI_PART_OPERAND,
     eini_rule_inline},
    {"recompute", "what others read, too, is computed again", 0, EINI_PART_OPERAND,
     eini_rule_recompute},
    {"outline", "what moves over fewer indices is stored", 0, EINI_PART_NODE, eini_rule_outline},
    {"unfold", "what is folded is stored before", 0, EINI_PART_ONE, eini_rule_unfold},
    {"merge", "pieces that adjoin become one", 0, EINI_PART_ONE, eini_rule_merge},
    {"shard", "an index is cut into two pieces", 0, EINI_PART_FREE, eini_rule_shard},
    {"join", "a fold of folds, or of a product with one, becomes one", 1, EINI_PART_OPERAND,
     eini_rule_join},
    {"split", "two factors of a product are contracted first", 1, EINI_PART_PAIR, eini_rule_split},
    {"hoist", "factors that a sum does not depend on stand outside", 1, EINI_PART_ONE,
     eini_rule_hoist},
    {"factor", "a common factor of a sum is taken out", 1, EINI_PART_NODE, eini_rule_factor},
    {"relax", "identities of real numbers without rounding", 2, EINI_PART_ONE, eini_rule_relax}};

// The graph as it has a text, by no rule.
static ein_status eini_rule_none(eini_recast *x, int64_t tensor, int part) {
  (void)x, (void)tensor, (void)part;
  return EIN_OK;
}

static const eini_rule eini_no_rule = {"", "", 0, EINI_PART_TENSOR, eini_rule_none};

#define EINI_RULES ((int)(sizeof eini_rules / sizeof *eini_rules))

static int eini_rule_parts(const eini_rule *r, const eini_stmt *s) {
  const int64_t n = s->noperand < 16 ? s->noperand : 16;
  switch (r->part) {
    case EINI_PART_OPERAND: return s->noperand;
    case EINI_PART_NODE: return (int)eini_min64(s->expr.n, EINI_RECAST_NODES);
    case EINI_PART_PAIR: return (int)(n * (n - 1) / 2);
    case EINI_PART_FREE: return s->nfree;
    default: return 1;
  }
}

// What a graph does: operations, bytes of all that is read and written, bytes of temporaries.
static void eini_recast_work(const ein_graph *g, double *flops, double *bytes, double *held) {
  *flops = *bytes = *held = 0;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = &g->stmt[i];
    *flops += eini_points(s, NULL, 0, s->nindex) * eini_point_flops(s);
    for (int k = -1; k < s->noperand; k++) {
      const eini_tensor *t = &g->tensor[k < 0 ? s->out : s->operand[k]];
      double n = (double)ein_dtype_size(t->dtype), points = n;
      for (int r = 0; r < t->rank; r++) n *= (double)t->shape[r];
      points *= eini_points(s, NULL, 0, k < 0 ? s->nfree : s->nindex);
      *bytes += fmin(n, points);
      if (k < 0 && t->role == EIN_ROLE_TEMP) *held += fmin(n, points);
    }
  }
}

// Tries a rule at a place; g NULL: only asks.
static ein_status eini_recast_try(const ein_graph *from, const eini_rule *r, int64_t i, int part,
                                  ein_graph *g, eini_diag *diag, const char **why) {
  eini_arena scratch;
  eini_recast x;
  eini_arena_init(&scratch, &from->arena.al);
  ein_status st = eini_recast_begin(&x, from, g, &scratch, diag);
  const int64_t at = r->part == EINI_PART_TENSOR ? -1 : i;
  if (st == EIN_OK && (at < 0 || g == NULL)) st = r->rule_fn(&x, i, part);
  for (int64_t k = 0; g != NULL && k < from->nstmt && st == EIN_OK && x.why == NULL; k++)
    st = k == at ? r->rule_fn(&x, i, part) : eini_recast_keep(&x, &from->stmt[k]);
  if (st == EIN_OK && x.skip >= 0) {  // before `at`, so it has the same number
    g->tensor[g->stmt[x.skip].out].nstmt--;
    g->nstmt--;
    memmove(&g->stmt[x.skip], &g->stmt[x.skip + 1],
            (size_t)(g->nstmt - x.skip) * sizeof *g->stmt);
  }
  if (st == EIN_OK && x.why == NULL && g != NULL) st = eini_recast_close(&x);
  *why = x.why;
  eini_arena_free(&scratch);
  return st;
}

static ein_status eini_recast_graph(const ein_graph *from, const eini_rule *r, int64_t i, int part,
                                    eini_diag *diag, ein_graph **made, const char **why) {
  ein_graph *g;
  eini_arena arena;
  *made = NULL;
  eini_arena_init(&arena, &from->arena.al);
  g = EINI_NEW(&arena, ein_graph, 1);
  if (g == NULL) return EIN_ERR_NO_MEMORY;
  g->arena = arena;
  const ein_status st = eini_recast_try(from, r, i, part, g, diag, why);
  if (st == EIN_OK && *why == NULL) *made = g;
  else eini_graph_free(g);
  return st;
}

static ein_status eini_recast_check(ein_ctx *ctx, const ein_graph *g) {
  eini_begin_call(ctx, NULL);
  EINI_TRY(eini_validate_graph(ctx, g, 0, NULL, NULL));
  EINI_TRY(eini_graph_closed(eini_diag_of(ctx), g));
  for (int64_t i = 0; i < g->nstmt; i++)
    if (g->stmt[i].numpy || g->stmt[i].carry != NULL || g->ordered)
      return eini_fail(eini_diag_of(ctx), EIN_ERR_UNSUPPORTED, -1, 0, NULL,
                       "the graph is not one of a program");
  return EIN_OK;
}

// What is known of a place, with what the rule changes there.
static ein_status eini_recast_tell(const ein_graph *g, const eini_rule *r, int64_t i, int part,
                                   int effects, eini_diag *diag, ein_rewrite *to) {
  ein_graph *made;
  const char *why;
  double was[3], is[3];
  const int dead = r->part == EINI_PART_TENSOR;
  memset(to, 0, sizeof *to);
  to->rule = r->name;
  to->what = r->what;
  to->kind = r->kind;
  to->stmt = i;
  to->part = part;
  to->line = dead ? g->tensor[i].line : g->stmt[i].line;
  to->out = g->tensor[dead ? (int)i : g->stmt[i].out].name;
  if (!effects) return EIN_OK;
  EINI_TRY(eini_recast_graph(g, r, i, part, diag, &made, &why));
  if (made == NULL) return EIN_OK;
  eini_recast_work(g, &was[0], &was[1], &was[2]);
  eini_recast_work(made, &is[0], &is[1], &is[2]);
  to->flops = is[0] - was[0];
  to->bytes = is[1] - was[1];
  to->held = is[2] - was[2];
  eini_graph_free(made);
  return EIN_OK;
}

EIN_API const char *ein_rewrite_rule(int i, const char **what, int *kind) {
  if (i < 0 || i >= EINI_RULES) return NULL;
  if (what != NULL) *what = eini_rules[i].what;
  if (kind != NULL) *kind = eini_rules[i].kind;
  return eini_rules[i].name;
}

EIN_API ein_status ein_rewrites(ein_ctx *ctx, const ein_graph *graph, int kind, int effects,
                                void (*fn)(const ein_rewrite *rewrite, void *user), void *user) {
  if (fn == NULL) return EIN_ERR_ARGUMENT;
  ein_status st = eini_recast_check(ctx, graph);
  eini_diag *diag = eini_diag_of(ctx);
  for (int r = 0; r < EINI_RULES && st == EIN_OK; r++) {
    const eini_rule *rule = &eini_rules[r];
    const int dead = rule->part == EINI_PART_TENSOR;
    if (rule->kind > kind) continue;
    for (int64_t i = 0; i < (dead ? graph->ntensor : graph->nstmt) && st == EIN_OK; i++) {
      const int n = dead ? 1 : eini_rule_parts(rule, &graph->stmt[i]);
      for (int part = 0; part < n && st == EIN_OK; part++) {
        const char *why;
        ein_rewrite w;
        st = eini_recast_try(graph, rule, i, part, NULL, diag, &why);
        if (st != EIN_OK || why != NULL) continue;
        st = eini_recast_tell(graph, rule, i, part, effects, diag, &w);
        if (st == EIN_OK) fn(&w, user);
      }
    }
  }
  return eini_fail_status(ctx, st), st;
}

EIN_API ein_status ein_rewrite_apply(ein_ctx *ctx, const ein_graph *graph, const char *rule,
                                     int64_t stmt, int part, ein_graph **made) {
  int r = 0;
  const char *why = NULL, *reason = NULL;
  if (made == NULL) return EIN_ERR_ARGUMENT;
  *made = NULL;
  EINI_TRY(eini_recast_check(ctx, graph));
  eini_diag *diag = eini_diag_of(ctx);
  if (rule == NULL) {
    const ein_status st = eini_recast_graph(graph, &eini_no_rule, 0, 0, diag, made, &why);
    return eini_fail_status(ctx, st), st;
  }
  while (r < EINI_RULES && strcmp(eini_rules[r].name, rule) != 0) r++;
  if (r == EINI_RULES)
    return eini_fail(diag, EIN_ERR_NAME, -1, 0, NULL, "there is no rule '%.40s'", rule);
  const int dead = eini_rules[r].part == EINI_PART_TENSOR;
  if (stmt < 0 || stmt >= (dead ? graph->ntensor : graph->nstmt))
    return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "there is no statement %lld",
                     (long long)stmt);
  const int n = dead ? 1 : eini_rule_parts(&eini_rules[r], &graph->stmt[stmt]);
  if (n == 0) reason = "nothing in it is of that kind";
  for (int k = part < 0 ? 0 : part; *made == NULL && k < n; k++) {
    const ein_status st = eini_recast_graph(graph, &eini_rules[r], stmt, k, diag, made, &why);
    if (st != EIN_OK) return eini_fail_status(ctx, st), st;
    if (reason == NULL || strcmp(reason, EINI_RECAST_INPUT) == 0) reason = why;
    if (part >= 0) break;
  }
  if (*made != NULL) return EIN_OK;
  return eini_fail(diag, EIN_ERR_UNSUPPORTED, -1, 0, NULL, "%s does not apply at line %lld ('%s'): "
                   "%s", rule, (long long)(dead ? graph->tensor[stmt].line
                                                : graph->stmt[stmt].line),
                   graph->tensor[dead ? (int)stmt : graph->stmt[stmt].out].name,
                   reason == NULL ? "there is no such part" : reason);
}
