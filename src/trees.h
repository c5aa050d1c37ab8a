// ================================================================================================
// >>trees  syntax trees, and trees as expression nodes
// Takes tokens; gives trees in an arena. Chains of + - * / and or are flat lists, so the depth of
// a tree is bounded by the nesting limit. After a mistake new trees are scrap.
// ================================================================================================

#define EINI_EXPAND_MAX ((int64_t)1 << 20)  // nodes after macros

// ---- suggestions ----

typedef struct eini_near {
  const char *s, *best;   // what was written; the nearest so far
  int64_t n, nbest;
  int distance;           // only nearer names are taken
  char hint[96];
} eini_near;

static void eini_near_init(eini_near *w, const char *s, int64_t n) {
  memset(w, 0, sizeof *w);
  w->s = s;
  w->n = n;
  w->distance = n < 2 ? 0 : n < 4 ? 2 : 3;
}

// Takes a name that differs in one place only, in fewer bytes than the best so far.
static void eini_near_try(eini_near *w, const char *s, int64_t n) {
  int64_t most = eini_max64(w->n, n), least = eini_min64(w->n, n), a = 0, b = 0;
  while (a < least && s[a] == w->s[a]) a++;
  while (b < least - a && s[n - 1 - b] == w->s[w->n - 1 - b]) b++;
  if (most - a - b == 0 || most - a - b >= w->distance) return;
  w->distance = (int)(most - a - b);
  w->best = s;
  w->nbest = n;
}

static const char *eini_near_hint(eini_near *w) {
  if (w->best == NULL) return NULL;
  snprintf(w->hint, sizeof w->hint, "did you mean '%.*s'?", eini_cut(w->best, w->nbest), w->best);
  return w->hint;
}

static void eini_near_words(eini_near *w, const ein_graph *g) {
  const char *word;
  for (int i = 0, cls, id; (word = eini_known_word(g, i, &cls, &id)) != NULL; i++) {
    if (cls != EINI_W_DTYPE && cls != EINI_W_WORD) eini_near_try(w, word, (int64_t)strlen(word));
  }
}

static eini_called eini_called_of(eini_parser *p, const eini_syn *v) {
  const eini_sym *s = &p->names->sym[v->sym];
  eini_called f = {s->s, v->pos, s->n, v->len, s->cls, s->word, v->n};
  return f;
}

static void eini_unknown_function(eini_parser *p, const eini_syn *v) {
  eini_called f = eini_called_of(p, v);
  eini_near w;
  eini_near_init(&w, f.s, f.len);
  eini_near_words(&w, p->g);
  for (int64_t i = 0; i < p->names->n; i++) {
    const eini_sym *s = &p->names->sym[i];
    if (s->kind == EINI_N_DEF) eini_near_try(&w, s->s, s->n);
  }
  eini_no_function(p, &f, eini_near_hint(&w));
}

// ---- trees ----

static eini_syn *eini_syn_new(eini_parser *p, int kind, int64_t pos) {
  if (p->st == EIN_OK && p->names->nodes++ >= EINI_NODES_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, pos, 1, NULL, "the program has too many parts");
  eini_syn *v = p->st == EIN_OK ? EINI_NEW(p->arena, eini_syn, 1) : NULL;
  if (v == NULL) return eini_pmem(p), v;
  v->kind = (unsigned char)kind;
  v->pos = pos;
  v->size = 1;
  v->sym = v->id = -1;
  return v;
}

// A new tree for a rule of the grammar: never NULL.
static eini_syn *eini_part(eini_parser *p, int kind, int64_t pos) {
  eini_syn *v = eini_syn_new(p, kind, pos);
  return v != NULL ? v : &p->names->scrap;
}

static ein_status eini_kids_add(eini_parser *p, eini_kids *k, eini_syn *v, int inv) {
  if (v == NULL || p->st != EIN_OK) return p->st;
  int64_t cap = k->cap;
  eini_syn **kid = (eini_syn **)eini_grow(p->arena, (void *)k->kid, k->n, &cap, sizeof *kid);
  unsigned char *flag = (unsigned char *)eini_grow(p->arena, k->inv, k->n, &k->cap, 1);
  if (kid == NULL || flag == NULL) return eini_pmem(p);
  k->kid = kid;
  k->inv = flag;
  kid[k->n] = v;
  flag[k->n++] = (unsigned char)inv;
  return EIN_OK;
}

// Gives a tree its children.
static eini_syn *eini_syn_with(eini_syn *v, const eini_kids *k) {
  v->n = (int)k->n;
  v->kid = k->kid;
  v->inv = k->inv;
  for (int64_t i = 0; i < k->n; i++) v->size += k->kid[i]->size;
  return v;
}

// The same; the tree ends at the last token read.
static eini_syn *eini_close(eini_parser *p, eini_syn *v, const eini_kids *k) {
  v->len = p->end - v->pos;
  return eini_syn_with(v, k);
}

// A tree of one child or two; NULL after a mistake.
static eini_syn *eini_syn_of(eini_parser *p, int kind, int64_t pos, eini_syn *x, eini_syn *y) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_kids_add(p, &k, x, 0);
  eini_kids_add(p, &k, y, 0);
  eini_syn *v = eini_syn_new(p, kind, pos);
  return v == NULL ? v : eini_close(p, v, &k);
}

// ---- expressions ----

static eini_syn *eini_parse_expr(eini_parser *p, int level);  // expressions nest

// The number or constant at the current token, or NULL.
static eini_syn *eini_parse_num(eini_parser *p) {
  eini_literal c;
  if (!eini_accept_literal(p, &c)) return NULL;
  eini_syn *v = eini_part(p, c.truth ? EINI_S_BOOL : EINI_S_NUM, c.pos);
  v->len = c.len;
  v->exact = (unsigned char)c.exact;
  v->ival = c.ival;
  v->re = c.re;
  return v;
}

// name, name, ..] or name=extent: what a reduction or macro binds.
static void eini_parse_binds(eini_parser *p, eini_syn *v, int extents) {
  int64_t n = 0, cap[3] = {0, 0, 0};
  do {
    v->bind = (int *)eini_grow(p->arena, v->bind, n, &cap[0], sizeof *v->bind);
    v->bpos = (int64_t *)eini_grow(p->arena, v->bpos, n, &cap[1], sizeof *v->bpos);
    v->bext = (eini_syn **)eini_grow(p->arena, (void *)v->bext, n, &cap[2], sizeof *v->bext);
    if (v->bind == NULL || v->bpos == NULL || v->bext == NULL) {
      eini_pmem(p);
      return;
    }
    v->bind[n] = eini_here(p);
    v->bpos[n] = p->pos;
    eini_expect(p, EINI_T_NAME, "the name of an index");
    v->bext[n++] = extents && eini_accept(p, '=') ? eini_parse_expr(p, 3) : NULL;
  } while (eini_accept(p, ','));
  v->nbind = (int)n;
  eini_expect(p, ']', "',' or ']'");
}

// Expressions with commas between them.
static void eini_parse_list(eini_parser *p, eini_kids *k, int level) {
  do eini_kids_add(p, k, eini_parse_expr(p, level), 0);
  while (eini_accept(p, ','));
}

// A constant, wrap, clamp or reflect; '|' is read.
static eini_edge eini_parse_edge(eini_parser *p) {
  static const char *const words[] = {"wrap", "clamp", "reflect"};
  int word = eini_one_of(p, words, 3), minus = eini_accept(p, '-');
  eini_syn *c = word >= 0 ? NULL : eini_parse_num(p);
  eini_edge edge = {EINI_EDGE_CONST + word + 1, c};
  if (word >= 0) eini_lex(p);
  else if (c == NULL) eini_unexpected(p, "a number, wrap, clamp or reflect", NULL);
  else if (minus && c->kind == EINI_S_BOOL)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(c), NULL, "true and false have no sign");
  if (c != NULL && minus) c->ival = -c->ival;
  if (c != NULL && minus) c->re = -c->re;
  return edge;
}

// Selectors: words of the language where NAME[index](..) is written, and nowhere else.
typedef enum eini_selector {
  EINI_SEL_CONCAT, EINI_SEL_STACK, EINI_SEL_INTERLEAVE,  // parts of what is made
  EINI_SEL_REPEAT, EINI_SEL_TILE,                        // copies
  EINI_SEL_PAD, EINI_SEL_REVERSE, EINI_SEL_ROLL, EINI_SEL_SLICE, EINI_SEL_SPLIT
} eini_selector;

static const struct {
  const char *name;
  int least, most;        // arguments
} eini_selectors[] = {{"concat", 1, INT_MAX}, {"stack", 1, INT_MAX}, {"interleave", 1, INT_MAX},
                      {"repeat", 2, 2}, {"tile", 2, 2}, {"pad", 3, 3}, {"reverse", 1, 1},
                      {"roll", 2, 2}, {"slice", 3, 4}, {"split", 3, 3}};

static int eini_selector_of(const eini_parser *p, int sym) {
  int k = EINI_SEL_SPLIT;
  while (k >= 0 && !eini_word_is(p->names->sym[sym].s, p->names->sym[sym].n,
                                 eini_selectors[k].name)) k--;
  return k;
}

// NAME[index](expression, ..): read up to '('. What stands in brackets are its coordinates so far.
static eini_syn *eini_parse_select(eini_parser *p, eini_syn *v, const eini_kids *index) {
  eini_kids k = {NULL, NULL, 0, 0};
  v->op = eini_selector_of(p, v->sym);
  if (index->n != 1 || index->kid[0]->kind != EINI_S_NAME || v->edge != NULL)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), "like concat[j](A[i,j], B[i,j])",
              "%.*s takes the index in whose direction it goes", EINI_NAME_OF(p, v->sym));
  if (p->st != EIN_OK) return v;
  v->kind = EINI_S_SELECT;
  v->bind = &index->kid[0]->sym;
  v->nbind = 1;
  eini_expect(p, '(', "'('");
  eini_parse_list(p, &k, 0);
  if (v->op == EINI_SEL_PAD && eini_accept(p, '|')) {
    if ((v->edge = EINI_NEW(p->arena, eini_edge, 1)) == NULL) return eini_pmem(p), v;
    v->edge[0] = eini_parse_edge(p);
  }
  eini_expect(p, ')', "',' or ')'");
  if (k.n < eini_selectors[v->op].least || k.n > eini_selectors[v->op].most)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), NULL, "%.*s takes %d arguments, not %d",
              EINI_NAME_OF(p, v->sym), eini_selectors[v->op].least, (int)k.n);
  return eini_close(p, v, &k);
}

// NAME[coordinate | edge, ..]: NAME and '[' are read. A rule after the last coordinate only is that
// of all.
static eini_syn *eini_parse_access(eini_parser *p, eini_syn *v) {
  eini_kids k = {NULL, NULL, 0, 0};
  eini_edge *rule = NULL;
  int64_t rules = 0, cap = 0, *at = NULL, cap2 = 0;
  for (int more = p->tok != ']'; more && p->st == EIN_OK; more = k.n > 0 && eini_accept(p, ',')) {
    eini_kids_add(p, &k, eini_parse_expr(p, 3), 0);
    if (!eini_accept(p, '|')) continue;
    rule = (eini_edge *)eini_grow(p->arena, rule, rules, &cap, sizeof *rule);
    at = (int64_t *)eini_grow(p->arena, at, rules, &cap2, sizeof *at);
    if (rule == NULL || at == NULL) return eini_pmem(p), v;
    at[rules] = k.n - 1;
    rule[rules++] = eini_parse_edge(p);
  }
  eini_expect(p, ']', "',' or ']'");
  if (rules > 0 && (v->edge = EINI_NEW(p->arena, eini_edge, k.n)) == NULL) eini_pmem(p);
  for (int64_t i = 0; i < k.n && v->edge != NULL && rules == 1 && at[0] == k.n - 1; i++)
    v->edge[i] = rule[0];
  for (int64_t i = 0; i < rules && v->edge != NULL; i++) v->edge[at[i]] = rule[i];
  if (p->tok == '(' && eini_selector_of(p, v->sym) >= 0) return eini_parse_select(p, v, &k);
  static const char *const behind[] = {"for", "and", "or"};
  if (p->tok == '[' || p->tok == '(' || (p->tok == EINI_T_NAME && eini_one_of(p, behind, 3) < 0))
    eini_unexpected(p, "an operator", "write products with *");
  return eini_close(p, v, &k);
}

// size(NAME) or size(NAME, axis)
static eini_syn *eini_parse_size(eini_parser *p, eini_syn *v) {
  eini_expect(p, '(', "'('");
  v->kind = EINI_S_SIZE;
  v->sym = eini_here(p);
  eini_expect(p, EINI_T_NAME, "the name of a size, an index or a tensor");
  int axis = eini_accept(p, ',');
  v->ival = axis ? p->ival : -1;
  if (axis && !p->exact) eini_unexpected(p, "the number of an axis", NULL);
  if (axis) eini_expect(p, EINI_T_NUM, "the number of an axis");
  eini_expect(p, ')', "')'");
  v->len = p->end - v->pos;
  return v;
}

// A function over blocks, NAME[index, ..](access, ..): what is called under the indices it takes.
static eini_syn *eini_parse_operator(eini_parser *p, eini_syn *v) {
  eini_kids k = {NULL, NULL, 0, 0}, one = {NULL, NULL, 0, 0};
  eini_syn *call = eini_part(p, EINI_S_CALL, v->pos);
  call->sym = v->sym;
  call->op = p->names->sym[v->sym].word;
  v->kind = EINI_S_REDUCE;
  v->op = EIN_FOLD_BLOCK;
  if (!eini_accept(p, '['))
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), "like f[j](X[i,j])",
              "%.*s needs the axes of its blocks in brackets", EINI_NAME_OF(p, v->sym));
  eini_parse_binds(p, v, 1);
  eini_expect(p, '(', "'('");
  eini_parse_list(p, &k, 0);
  eini_expect(p, ')', "',' or ')'");
  eini_kids_add(p, &one, eini_close(p, call, &k), 0);
  return eini_close(p, v, &one);
}

// Calls, reductions and macros; the name is read.
static eini_syn *eini_parse_apply(eini_parser *p, eini_syn *v) {
  int cls = p->names->sym[v->sym].cls, macro = cls == EINI_W_MACRO, listed = p->tok == '[';
  int fold = cls == EINI_W_FOLD || cls == EINI_W_NORM || cls == EINI_W_MONOID;
  eini_kids k = {NULL, NULL, 0, 0};
  if (cls == EINI_W_BLOCK) return eini_parse_operator(p, v);
  v->kind = fold ? EINI_S_REDUCE : macro ? EINI_S_MACRO : EINI_S_CALL;
  v->op = p->names->sym[v->sym].word;
  if ((fold || macro) && eini_accept(p, '['))
    eini_parse_binds(p, v, fold);
  else if (macro)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), "like softmax[j](A[i,j])",
              "%.*s needs its indices in brackets", EINI_NAME_OF(p, v->sym));
  if (!eini_accept(p, '('))
    eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL,
              "'%.*s' is a word of the language: '(' must follow", EINI_NAME_OF(p, v->sym));
  if (p->tok == ')') eini_unexpected(p, "an expression", NULL);
  eini_parse_list(p, &k, 0);
  eini_expect(p, ')', "')' or an operator");
  if (fold && k.n > 1) {  // max and min of several expressions are functions
    v->kind = EINI_S_CALL;
    if (listed || (v->op != EIN_FOLD_MAX && v->op != EIN_FOLD_MIN) || cls != EINI_W_FOLD)
      eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), NULL, "the reduction %.*s takes one expression",
                EINI_NAME_OF(p, v->sym));
  }
  return eini_close(p, v, &k);
}

static eini_syn *eini_parse_primary(eini_parser *p) {
  eini_syn *v = eini_parse_num(p);
  if (v != NULL) return v;
  int64_t pos = p->pos;
  if (eini_accept(p, '(')) {
    v = eini_parse_expr(p, 0);
    eini_expect(p, ')', "')' or an operator");
    return eini_syn_of(p, EINI_S_PAREN, pos, v, NULL);
  }
  int size = eini_word(p, "size"), sym = eini_here(p);
  int cls = sym >= 0 ? p->names->sym[sym].cls : EINI_W_WORD;
  if ((cls == EINI_W_WORD || cls == EINI_W_DTYPE) && !size) eini_no_value(p, cls);
  if (p->st != EIN_OK) return NULL;
  v = eini_part(p, EINI_S_NAME, pos);
  v->sym = sym;
  v->len = p->len;
  eini_lex(p);
  if (size) return eini_parse_size(p, v);
  if (cls != EINI_W_FREE || p->tok == '(') return eini_parse_apply(p, v);
  if (!eini_accept(p, '[')) return v;
  v->kind = EINI_S_ACCESS;
  return eini_parse_access(p, v);
}

// Signs, powers, and not, which stands on level 2.
static eini_syn *eini_parse_unary(eini_parser *p, int level) {
  int64_t pos = p->pos;
  int minus = p->tok == '-';
  eini_syn *v = NULL;
  if (!eini_deeper(p)) return NULL;
  if (level == 2) {
    eini_lex(p);
    v = eini_syn_of(p, EINI_S_NOT, pos, eini_parse_expr(p, 2), NULL);
  } else if (eini_accept(p, '+') || eini_accept(p, '-')) {
    v = eini_parse_unary(p, 5);
    if (minus) v = eini_syn_of(p, EINI_S_NEG, pos, v, NULL);
  } else {
    v = eini_parse_primary(p);
    if (eini_accept(p, '^')) v = eini_syn_of(p, EINI_S_POW, pos, v, eini_parse_unary(p, 5));
  }
  p->depth--;
  return v;
}

// The trees of the operators of a level.
static const unsigned char eini_level_kind[] = {EINI_S_OR,  EINI_S_AND,  EINI_S_CMP, EINI_S_SUM,
                                                EINI_S_TERM, EINI_S_NEG, EINI_S_POW};

static eini_syn *eini_parse_expr(eini_parser *p, int level) {
  if (level == 5 || (level == 2 && eini_word(p, "not"))) return eini_parse_unary(p, level);
  eini_syn *x = eini_parse_expr(p, level + 1), *v = NULL;
  eini_kids k = {NULL, NULL, 0, 0};
  int n = 0;
  for (const eini_infix_row *op; x && (op = eini_accept_infix(p, level, n)) != NULL; n++) {
    if (v == NULL) {
      v = eini_part(p, eini_level_kind[level], x->pos);
      v->op = op->op;
      eini_kids_add(p, &k, x, 0);
    }
    eini_kids_add(p, &k, eini_parse_expr(p, level + 1), op->inverse);
  }
  return v == NULL ? x : eini_close(p, v, &k);
}

// ---- trees to expression nodes ----

static int eini_emit_tree(eini_emit *em, const eini_syn *v);  // trees nest

// A flat list as a chain from the left.
static int eini_emit_list(eini_emit *em, const eini_syn *v, int op, int inverse) {
  int x = eini_emit_tree(em, v->kid[0]);
  for (int i = 1; i < v->n && x >= 0; i++) {
    int y = eini_emit_tree(em, v->kid[i]);
    x = eini_emit_op(em, v->inv[i] ? inverse : op, v->kid[i]->pos, x, y);
  }
  return x;
}

static int eini_tree_call(eini_emit *em, const eini_syn *v) {
  eini_called f = eini_called_of(em->p, v);
  int op = f.word == EIN_FOLD_MAX ? EIN_OP_MAX : EIN_OP_MIN, arg[EINI_ARGS_MAX] = {0};
  int want = eini_call_arity(em->p->g, f.cls, f.word, f.n);
  if (f.cls == EINI_W_FOLD) return eini_emit_list(em, v, op, op);  // max and min of several
  if (want < 0) eini_unknown_function(em->p, v);
  else if (v->n != want) eini_wrong_count(em->p, &f, want, NULL);
  if (v->n != want) return -1;
  for (int i = 0; i < v->n; i++) {
    if ((arg[i] = eini_emit_tree(em, v->kid[i])) < 0) return -1;
  }
  return eini_emit_call(em, &f, arg);
}

static int eini_emit_tree(eini_emit *em, const eini_syn *v) {
  eini_literal c = {v->pos, v->len, v->ival, v->re, v->kind == EINI_S_BOOL, v->exact};
  switch (v->kind) {
    case EINI_S_NUM: case EINI_S_BOOL: return eini_emit_literal(em, &c);
    case EINI_S_PAREN: return eini_emit_tree(em, v->kid[0]);
    case EINI_S_NEG: case EINI_S_NOT:
      return eini_emit_op(em, v->kind == EINI_S_NEG ? EIN_OP_NEG : EIN_OP_NOT, v->pos,
                          eini_emit_tree(em, v->kid[0]), 0);
    case EINI_S_CMP: return eini_emit_list(em, v, v->op, v->op);
    case EINI_S_CALL: return eini_tree_call(em, v);
    case EINI_S_SUM: return eini_emit_list(em, v, EIN_OP_ADD, EIN_OP_SUB);
    case EINI_S_TERM: return eini_emit_list(em, v, EIN_OP_MUL, EIN_OP_DIV);
    case EINI_S_AND: return eini_emit_list(em, v, EIN_OP_AND, EIN_OP_AND);
    case EINI_S_OR: return eini_emit_list(em, v, EIN_OP_OR, EIN_OP_OR);
    case EINI_S_POW: return eini_emit_list(em, v, EIN_OP_POW, EIN_OP_POW);
    default: return em->leaf_fn(em, v);
  }
}
