// ================================================================================================
// >>program  from trees to a graph
// Takes a program's text, views and sizes; gives statements whose every access is proved. Steps per
// statement: resolve names and macros, solve extents, check bounds, emit (GRAMMAR rules 1 to 11).
// ================================================================================================

enum {  // statements
  EINI_L_INPUT, EINI_L_PARAM, EINI_L_OUTPUT, EINI_L_DEF, EINI_L_DEFINE, EINI_L_GRAD
};

// A statement as written. INPUT: kids ACCESS, whose kids are dims (NUM, or NAME with a literal as
// kid); PARAM: NAME with a default as kid; DEF: sym, its parameters in bind, kid 0 the body;
// DEFINE: sym, kid 0 the right side, coordinates in the kids of left, extents in left->bext;
// GRAD: NAMEs, the loss, the seed or NULL, nparam after wrt and as many after as.
typedef struct eini_line {
  int kind, sym, n;
  int64_t pos, len;
  ein_dtype dtype;
  eini_syn **kid;
  eini_syn *left;
  eini_kids given;        // DEFINE: names and extents after "for", in turn
  int nparam, *param;     // DEF; GRAD: the number of gradients
  int64_t prev;           // DEFINE: the line of the piece before, + 1
  int64_t stmt;           // DEFINE: its statement in the graph, -1 before; DEF: its number
  eini_kids more;         // DEFINE: further left sides, of outputs of a function over blocks
  int output;             // of a line made of one of these: its number + 1; of the line of the
                          //   call: how many follow, below 0
} eini_line;

typedef struct eini_var {  // an index of one statement
  int sym, mark, prev;     // prev: the one it hides, + 1
  int kind;                // eini_var_kind
  int col;                 // its number in the statement being emitted
  int stamp, bound;        // of walks
  int block;               // 1: an argument of a function over blocks has it
  int64_t extent;          // -1: not known
  int64_t pos, len;
  const eini_syn *by;      // access and axis that gave the extent
  int axis;
  int64_t first;           // of walks: where an access with it stands
} eini_var;

typedef enum eini_var_kind {
  EINI_V_FREE, EINI_V_NAMED, EINI_V_UNNAMED, EINI_V_IMPLICIT, EINI_V_SCAN
} eini_var_kind;

typedef struct eini_dim {  // a declared size
  int sym, by, axis;       // by: the input whose view or literal fixed it, or -1
  int64_t value;           // -1: open
} eini_dim;

// A call of a def being expanded: arguments are trees in the caller's surroundings.
typedef struct eini_env {
  const struct eini_env *up;
  const eini_line *def;
  eini_syn **arg;
  int mark;
} eini_env;

typedef struct eini_padded {  // what edge rules made of a tensor
  struct eini_padded *next;
  int from, to;
  ein_dtype dtype;
  const eini_edge *edge;      // per axis, as are the elements added before and behind
  int64_t *low, *high;
} eini_padded;

typedef struct eini_macro {   // a macro of the language, parsed
  struct eini_names names;    // of its text
  ein_graph none;             // what is registered means nothing there
  eini_kids part;             // parameters; names and what they are, in turn; the macro
} eini_macro;

#define EINI_OPEN_WAYS 5

typedef struct eini_open {    // sizes that nothing says, as they come, and where they are read
  eini_arena *arena;
  const char **name;
  int64_t *base, cap, capbase;  // what stands for each at the first point
  int n, how, point;          // 0: the first one; 1 + a size: that one greater; < 0: far away
} eini_open;

// What stands for a size there. Ways to choose are tried in turn: sizes are larger than later ones,
// as those of images and their filters, or smaller, or as may be; numbers of programs are smaller.
static int64_t eini_open_value(const eini_open *o, int size) {
  static const int64_t all[EINI_OPEN_WAYS] = {1024, 128, 128, 32768, 16};
  const int64_t most = all[o->how], n = (int64_t)size + 1;
  const uint64_t who = eini_mix((uint64_t)o->how, (uint64_t)size);
  int64_t value = o->how == 1 ? most + 16 * n : most + (int64_t)(who % (uint64_t)(8 * n + most));
  if (o->how == 0 || o->how == 3) value = 24 + most / n + (int64_t)(who % (uint64_t)(4 + 2 * n));
  if (o->point >= 0) return value + (o->point == size + 1);
  const uint64_t far = eini_mix(who, (uint64_t)-o->point) % (uint64_t)(5 + value / 8);
  return (1 - 2 * o->point) * value + (int64_t)far;
}

typedef struct eini_prog {
  eini_parser p;            // texts, mistakes
  eini_open *open;          // NULL: all sizes are known
  int nopen;                // met so far
  struct eini_names names;
  ein_graph *g;
  const ein_program_desc *desc;
  eini_line *line;
  int64_t nline, capline, cur;
  eini_dim *dim;
  int64_t ndim, capdim;
  eini_line **def;          // by id
  int64_t ndef, capdef;
  eini_macro *macro[EINI_MACRO_NORM + 1];  // NULL: not used yet
  ein_dtype dtype;          // of inputs without one
  ein_dtype *declared;      // per input tensor: what reads are converted to, or EIN_NONE
  int64_t ndeclared, capdeclared;
  int outputs;              // there is an output statement
  int64_t commands;         // where the commands of a schedule begin; -1: there are none
  // the current statement
  eini_var *var;
  int64_t nvar, capvar;
  int stamp, mark;
  int64_t expanded, fresh;
  eini_forms temps;         // by tensor
  eini_kids access;         // resolved
  eini_padded *padded;
} eini_prog;

// ---- statements ----

// A new name of the program, not one of the language's, as a tree.
static eini_syn *eini_parse_new(eini_parser *p, int kind, const char *what) {
  eini_syn *v = eini_part(p, kind, p->pos);
  v->sym = eini_here(p);
  if (v->sym >= 0 && p->names->sym[v->sym].cls != EINI_W_FREE)
    eini_perr(p, EIN_ERR_NAME, EINI_AT(p), NULL, "'%.*s' is a word of the language",
              EINI_NAME_OF(p, v->sym));
  eini_expect(p, EINI_T_NAME, what);
  v->len = p->end - v->pos;
  return v;
}

// NAME[dim, ..] of an input.
static eini_syn *eini_parse_input(eini_parser *p) {
  eini_syn *v = eini_parse_new(p, EINI_S_ACCESS, "the name of an input"), *d;
  int64_t len = v->len;
  eini_kids k = {NULL, NULL, 0, 0};
  eini_expect(p, '[', "'[' and the extents");
  for (int more = p->tok != ']'; more; more = eini_accept(p, ',')) {
    if (p->tok == EINI_T_NUM) {
      d = eini_parse_num(p);
    } else {
      d = eini_parse_new(p, EINI_S_NAME, "a size or an extent");
      d->op = eini_accept(p, '=');
      d->exact = d->op ? (unsigned char)p->exact : 1;
      d->ival = d->op ? p->ival : -1;
      if (d->op) eini_expect(p, EINI_T_NUM, "an extent");
    }
    d->len = p->end - d->pos;
    if (!d->exact) eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(d), NULL, "an extent is an int64");
    eini_kids_add(p, &k, d, 0);
  }
  eini_expect(p, ']', "',' or ']'");
  eini_close(p, v, &k)->len = len;
  return v;
}

// NAME or NAME = number of a param or an output.
static eini_syn *eini_parse_param(eini_parser *p, int param) {
  eini_syn *v = eini_parse_new(p, EINI_S_NAME, param ? "the name of a param"
                                                     : "the name of a tensor");
  v->op = param && eini_accept(p, '=');
  v->re = v->op && eini_accept(p, '-') ? -p->re : p->re;
  if (v->op) eini_expect(p, EINI_T_NUM, "a number");
  return v;
}

// def NAME(a, b); the right side follows.
static void eini_parse_def(eini_parser *p, eini_line *l) {
  eini_lex(p);
  eini_syn *v = eini_parse_new(p, EINI_S_NAME, "the name of a macro");
  l->pos = v->pos;
  l->len = v->len;
  l->sym = v->sym;
  l->param = EINI_NEW(p->arena, int, 64);
  if (l->param == NULL) eini_pmem(p);
  eini_expect(p, '(', "'('");
  do {
    int sym = eini_parse_new(p, EINI_S_NAME, "the name of a parameter")->sym;
    if (l->nparam >= 64)
      eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(v), NULL, "more than 64 parameters");
    for (int i = 0; p->st == EIN_OK && i < l->nparam; i++) {
      if (l->param[i] == sym)
        eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "the parameter '%.*s' occurs twice",
                  EINI_NAME_OF(p, sym));
    }
    if (p->st == EIN_OK) l->param[l->nparam++] = sym;
  } while (eini_accept(p, ','));
  eini_expect(p, ')', "',' or ')'");
}

// The left side of a definition: NAME[left, ..] : dtype
static eini_syn *eini_parse_left(eini_parser *p) {
  eini_kids k = {NULL, NULL, 0, 0}, e = {NULL, NULL, 0, 0};
  eini_syn *left = eini_parse_new(p, EINI_S_ACCESS, "a statement");
  int more = eini_accept(p, '['), list = more;
  for (more = more && p->tok != ']'; more; more = eini_accept(p, ',')) {
    eini_syn *x = eini_parse_expr(p, 3), *extent = x;
    if (x != NULL && x->kind == EINI_S_NAME && eini_accept(p, '=')) extent = eini_parse_expr(p, 3);
    eini_kids_add(p, &k, x, 0);
    eini_kids_add(p, &e, extent, extent == x);  // inv: no extent
  }
  if (list) eini_expect(p, ']', "',' or ']'");
  eini_close(p, left, &k);
  left->bext = e.kid;
  left->inv = e.inv;
  return left;
}

// [: dtype] at the end of a declaration or before '='.
static void eini_parse_dtype(eini_parser *p, eini_line *l) {
  if (!eini_accept(p, ':')) return;
  int sym = eini_here(p);
  if (sym >= 0 && p->names->sym[sym].cls == EINI_W_DTYPE)
    l->dtype = (ein_dtype)p->names->sym[sym].word;
  else
    eini_unexpected(p, "a dtype", "f32 f64 c64 c128 f16 bf16 i8 i16 i32 i64 u8 bool");
  eini_lex(p);
}

static void eini_parse_word(eini_parser *p, const char *word) {
  if (eini_word(p, word)) eini_lex(p);
  else eini_unexpected(p, word, NULL);
}

// NAME wrt NAME, .. as NAME, .. seed NAME
static void eini_parse_grad(eini_parser *p, eini_line *l, eini_kids *k) {
  int64_t n[2];
  eini_syn *seed = eini_part(p, EINI_S_NAME, p->pos);
  eini_lex(p);
  eini_kids_add(p, k, eini_parse_new(p, EINI_S_NAME, "the name of a scalar"), 0);
  eini_kids_add(p, k, seed, 0);
  for (int as = 0; as < 2; as++) {
    eini_parse_word(p, as ? "as" : "wrt");
    do eini_kids_add(p, k, eini_parse_new(p, EINI_S_NAME, "the name of a tensor"), 0);
    while (eini_accept(p, ','));
    n[as] = k->n;
  }
  l->len = p->end - l->pos;
  l->nparam = (int)(n[0] - 2);
  if (p->st == EIN_OK && n[1] - n[0] != l->nparam)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(l), NULL, "%d names after wrt, but %d after as",
              l->nparam, (int)(n[1] - n[0]));
  if (p->st == EIN_OK && eini_word(p, "seed")) {
    eini_lex(p);
    k->kid[1] = eini_parse_new(p, EINI_S_NAME, "the name of a tensor");
  }
}

static void eini_parse_line(eini_parser *p, eini_line *l) {
  static const char *const words[] = {"input", "param", "output", "def"};
  eini_kids k = {NULL, NULL, 0, 0};
  int word = eini_one_of(p, words, 4);
  memset(l, 0, sizeof *l);
  l->pos = p->pos;
  l->sym = -1;
  l->stmt = -1;
  l->kind = eini_word(p, "grad") ? EINI_L_GRAD : word < 0 ? EINI_L_DEFINE : word;
  if (l->kind == EINI_L_DEF) {
    eini_parse_def(p, l);
  } else if (l->kind == EINI_L_GRAD) {
    eini_parse_grad(p, l, &k);
  } else if (l->kind == EINI_L_DEFINE) {
    l->left = eini_parse_left(p);
    l->sym = l->left->sym;
    while (eini_accept(p, ',')) eini_kids_add(p, &l->more, eini_parse_left(p), 0);
    l->len = p->end - l->pos;
  } else {
    eini_lex(p);
    do eini_kids_add(p, &k, word == 0 ? eini_parse_input(p) : eini_parse_param(p, word == 1), 0);
    while (eini_accept(p, ','));
  }
  if (l->kind != EINI_L_DEF && l->kind != EINI_L_GRAD) eini_parse_dtype(p, l);
  if (l->kind == EINI_L_DEF || l->kind == EINI_L_DEFINE) {
    if (p->tok == EINI_T_NAME) {
      eini_near w;
      eini_near_init(&w, p->names->sym[l->sym].s, p->names->sym[l->sym].n);
      for (int i = 0; i < 4; i++) eini_near_try(&w, words[i], (int64_t)strlen(words[i]));
      eini_unexpected(p, "'='", eini_near_hint(&w));
    }
    eini_expect(p, '=', "'='");
    eini_kids_add(p, &k, eini_parse_expr(p, 0), 0);
  }
  for (int more = l->kind == EINI_L_DEFINE && eini_word(p, "for"); more; more = p->tok == ',') {
    eini_lex(p);
    eini_kids_add(p, &l->given, eini_parse_new(p, EINI_S_NAME, "the name of an index"), 0);
    eini_expect(p, '=', "'='");
    eini_kids_add(p, &l->given, eini_parse_expr(p, 3), 0);
  }
  l->kid = k.kid;
  l->n = (int)k.n;
  if (p->tok != EINI_T_EOL && p->tok != EINI_T_END)
    eini_unexpected(p, "an operator or the end of the line", NULL);
}

// After a mistake: names on the failed lines are marked, so that their users stay silent; reading
// goes on behind the line, or at the line where an unclosed bracket was noticed.
static void eini_parse_recover(eini_parser *p, int64_t from) {
  int64_t to = p->pos;
  const char *eol = (const char *)memchr(p->s + from, '\n', (size_t)(to - from));
  if (eol != NULL && p->unclosed) to = eol - p->s;
  else while (to < p->n && p->s[to] != '\n' && p->s[to] != ';') to++;
  p->brackets = p->depth = p->unclosed = 0;
  for (p->at = from; p->at < to;) {
    eini_token(p);
    int sym = p->pos < to ? eini_here(p) : -1;
    if (sym >= 0) p->names->sym[sym].bad = 1;
  }
  p->at = to;
  p->brackets = 0;
  p->st = EIN_OK;
  eini_lex(p);
}

static int eini_diag_full(const eini_parser *p) {
  return p->status == EIN_ERR_NO_MEMORY ||
         (p->diag != NULL && p->diag->error != NULL && p->diag->count >= p->diag->max);
}

static void eini_parse_program(eini_prog *q) {
  eini_parser *p = &q->p;
  while (!eini_diag_full(p)) {
    while (eini_accept(p, EINI_T_EOL)) continue;
    if (p->tok == EINI_T_END) return;
    int64_t from = p->pos;
    if (q->commands >= 0 || eini_command_begins(p)) {
      eini_command c;
      if (q->commands < 0) q->commands = from;
      eini_command_read(p, NULL, &c);
      if (p->st != EIN_OK) eini_parse_recover(p, from);
      continue;
    }
    eini_line *l = (eini_line *)eini_grow(p->arena, q->line, q->nline, &q->capline, sizeof *l);
    if (l == NULL) eini_pmem(p);
    else eini_parse_line(p, &(q->line = l)[q->nline]);
    if (p->st == EIN_OK) q->nline++;
    else eini_parse_recover(p, from);
  }
}
