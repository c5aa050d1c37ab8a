// ================================================================================================
// >>syntax  words, tokens, and maps: expressions over operands
// Takes a text; gives tokens, and for the map of an einsum nodes of eini_expr. After a mistake the
// token is EINI_T_BAD, which no rule accepts.
// ================================================================================================

#define EINI_NODES_MAX ((int64_t)1 << 21)  // of a text

enum {  // tokens; a single character stands for itself
  EINI_T_END = 0, EINI_T_EOL = 256, EINI_T_NAME, EINI_T_NUM, EINI_T_LE, EINI_T_GE, EINI_T_EQ,
  EINI_T_NE, EINI_T_BAD
};

typedef struct eini_parser {
  eini_arena *arena;
  eini_diag *diag;
  const ein_graph *g;     // its registered functions and monoids
  struct eini_names *names;  // of a program, whose text this is; NULL for maps
  const char *s;
  int64_t n, at;
  int tok, exact;         // the current token
  int64_t pos, len, end;  // end: of the token before
  int64_t ival, open;     // open: position of the outermost open bracket
  double re;
  int brackets, unclosed, depth, max_depth;
  ein_status st, status;  // of the current statement; of the text
} eini_parser;

#define EINI_AT(v) (v)->pos, (v)->len

EINI_PRINTF(6, 7)
static ein_status eini_perr(eini_parser *p, ein_status st, int64_t pos, int64_t len,
                            const char *hint, const char *format, ...) {
  p->tok = EINI_T_BAD;
  if (p->st != EIN_OK) return p->st;  // one mistake per statement; the rest is noise
  p->st = st;
  if (p->status == EIN_OK || st == EIN_ERR_NO_MEMORY) p->status = st;
  va_list args;
  va_start(args, format);
  eini_vfail(p->diag, st, pos, len, hint, format, args);
  va_end(args);
  return st;
}

static ein_status eini_pmem(eini_parser *p) {
  return eini_perr(p, EIN_ERR_NO_MEMORY, -1, 0, NULL, "out of memory");
}

// Takes over a status that the graph reported itself.
EINI_UNUSED static ein_status eini_reported(eini_parser *p, ein_status st) {
  if (st == EIN_ERR_NO_MEMORY) return eini_pmem(p);
  if (st != EIN_OK && p->status == EIN_OK) p->status = st;
  return p->st = st;
}

// Length of a name in messages: long ones are cut between code points.
static int eini_cut(const char *s, int64_t n) {
  int k = n <= 60 ? (int)n : 60;
  while (k < n && k > 0 && ((unsigned char)s[k] & 0xC0) == 0x80) k--;
  return k;
}

// ---- tokens ----

static unsigned char eini_byte(const eini_parser *p, int64_t i) {
  return i < p->n ? (unsigned char)p->s[i] : 0;
}

static int eini_is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

// m * 10^e without the C library, whose result depends on the locale. Exact when both factors are.
static double eini_scale10(uint64_t m, int64_t e) {
  long double x = (long double)m, f = 1, b = 10;
  double exact = 1;
  if (e >= -22 && e <= 22 && m >> 53 == 0) {
    for (int64_t i = e < 0 ? -e : e; i > 0; i--) exact *= 10;
    return e < 0 ? (double)m / exact : (double)m * exact;
  }
  for (; e > 256 && x > 0 && x <= LDBL_MAX; e -= 256) x *= 1e256L;
  for (; e < -256 && x > 0; e += 256) x /= 1e256L;
  if (x <= 0 || x > LDBL_MAX) return (double)x;
  for (int64_t i = e < 0 ? -e : e; i > 0; i >>= 1, b = i > 0 ? b * b : b) f *= i & 1 ? b : 1;
  return (double)(e < 0 ? x / f : x * f);
}

static void eini_lex_number(eini_parser *p) {
  uint64_t m = 0;
  int64_t e = 0, x = 0, k;
  int digits = 0, real = 0, dropped = 0;  // digits beyond 19 only move the point
  for (;; p->at++) {
    unsigned char c = eini_byte(p, p->at);
    if (c == '.' && !real && eini_is_digit(eini_byte(p, p->at + 1))) {
      real = 1;
    } else if (!eini_is_digit(c)) {
      break;
    } else if (digits < 19) {
      m = m * 10 + (uint64_t)(c - '0');
      digits += m > 0;
      e -= real;
    } else {
      dropped = 1;
      e += !real;
    }
  }
  if (eini_byte(p, p->at) == 'e' || eini_byte(p, p->at) == 'E') {
    int minus = eini_byte(p, k = p->at + 1) == '-';
    if (minus || eini_byte(p, k) == '+') k++;
    for (; eini_is_digit(eini_byte(p, k)); p->at = ++k, real = 2)
      if (x < 100000000) x = x * 10 + (p->s[k] - '0');
    e += minus ? -x : x;
  }
  p->exact = !real && !dropped && m <= (uint64_t)INT64_MAX;
  p->ival = p->exact ? (int64_t)m : 0;
  p->re = p->exact ? (double)m : eini_scale10(m, e);
}

// Reads a code point beyond ASCII, of a name or, unless name, of a comment; 0 after a mistake.
static int eini_lex_point(eini_parser *p, int name) {
  int64_t used, u = eini_utf8(p->s + p->at, p->n - p->at, &used);
  int blank = u == 0x1680 || (u >= 0x2000 && u <= 0x200A) || u == 0x2028 || u == 0x2029 ||
              u == 0x202F || u == 0x205F || u == 0x3000 || u == 0xFEFF;
  if (u < 0 || eini_noncharacter(u) || (name && (u < 0xA1 || blank)))
    eini_perr(p, EIN_ERR_SYNTAX, p->at, used, NULL,
              u < 0 ? "the text is not UTF-8 here" : "this character is not in the language");
  p->at += used;
  return p->tok != EINI_T_BAD;
}

static void eini_lex_name(eini_parser *p) {
  for (p->tok = EINI_T_NAME; p->at < p->n;) {
    unsigned char c = eini_byte(p, p->at);
    if (c >= 0x80) {
      if (!eini_lex_point(p, 1)) return;
    } else if (eini_is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z')) {
      p->at++;
    } else {
      return;
    }
  }
}

// Skips blanks, comments, joined lines, and inside brackets the ends of lines; 0 after a mistake.
static int eini_lex_skip(eini_parser *p) {
  p->tok = EINI_T_END;
  for (int comment = 0; p->at < p->n; p->at++) {
    unsigned char c = eini_byte(p, p->at), d = eini_byte(p, p->at + 1);
    if (c == '\n') comment = 0;
    if (comment && c >= 0x80) {
      if (!eini_lex_point(p, 0)) return 0;
      p->at--;
    } else if (comment ? c >= 32 && c != 127 : c == '#') {
      comment = 1;
    } else if (c == '\\' && d == '\n') {
      p->at++;
    } else if (c == '\\' && d == '\r' && eini_byte(p, p->at + 2) == '\n') {
      p->at += 2;
    } else if (c != ' ' && c != '\t' && c != '\r' && !(c == '\n' && p->brackets > 0)) {
      return 1;
    }
  }
  return 1;
}

static void eini_token(eini_parser *p) {
  p->end = p->pos + p->len;
  int clean = eini_lex_skip(p);
  p->pos = p->at;
  p->len = 0;
  if (!clean || p->at >= p->n) return;
  unsigned char c = eini_byte(p, p->at), d = eini_byte(p, p->at + 1);
  if (c == '_' || c >= 0x80 || ((c | 32) >= 'a' && (c | 32) <= 'z')) {
    eini_lex_name(p);
  } else if (eini_is_digit(c) || (c == '.' && eini_is_digit(d))) {
    p->tok = EINI_T_NUM;
    eini_lex_number(p);
  } else if ((c == '<' || c == '>' || c == '=' || c == '!') && d == '=') {
    p->tok = c == '<' ? EINI_T_LE : c == '>' ? EINI_T_GE : c == '=' ? EINI_T_EQ : EINI_T_NE;
    p->at += 2;
  } else if (c != 0 && strchr("\n;()[],|:=+-*/^<>", c) != NULL) {
    p->tok = c == '\n' || c == ';' ? (int)EINI_T_EOL : (int)c;
    p->at++;
    if ((c == '(' || c == '[') && p->brackets++ == 0) p->open = p->pos;
    if ((c == ')' || c == ']') && p->brackets > 0) p->brackets--;
  } else {
    const char *hint = c == '\\' ? "'\\' joins two lines as the last byte of the first" :
                       c == '&' ? "write and" : c == '!' ? "write not" :
                       c == '%' ? "write mod(x, y)" :
                       c == '?' ? "a choice is where(c, x, y)" : NULL;
    eini_perr(p, EIN_ERR_SYNTAX, p->at++, 1, hint,
              c < 32 || c == 127 ? "a control character (0x%02x) in the text"
                                 : "'%c' is not in the language", c);
  }
  p->len = p->at - p->pos;
}

// Reads the next token; after a mistake there is none.
static void eini_lex(eini_parser *p) {
  if (p->st == EIN_OK) eini_token(p);
}

// The current token is not what is wanted.
static void eini_unexpected(eini_parser *p, const char *want, const char *hint) {
  int eol = p->tok == EINI_T_END || p->tok == EINI_T_EOL;
  int later = !eol && p->end < p->pos && memchr(p->s + p->end, '\n', (size_t)(p->pos - p->end));
  if (p->tok == EINI_T_BAD) return;  // reported by the lexer
  if (p->brackets > 0 && (eol || later || p->tok == '=')) {
    p->unclosed = 1;
    eini_perr(p, EIN_ERR_SYNTAX, p->open, 1, NULL, "this '%c' is never closed", p->s[p->open]);
  } else if (eol) {
    eini_perr(p, EIN_ERR_SYNTAX, p->pos, 1, hint, "%s expected before the end of the line", want);
  } else {
    eini_perr(p, EIN_ERR_SYNTAX, p->pos, p->len, hint, "%s expected, not '%.*s'", want,
              eini_cut(p->s + p->pos, p->len), p->s + p->pos);
  }
}

static int eini_accept(eini_parser *p, int tok) {
  return p->tok == tok ? (eini_lex(p), 1) : 0;
}

static void eini_expect(eini_parser *p, int tok, const char *want) {
  if (!eini_accept(p, tok)) eini_unexpected(p, want, NULL);
}

static int eini_word(const eini_parser *p, const char *word) {
  return p->tok == EINI_T_NAME && eini_word_is(p->s + p->pos, p->len, word);
}

// Is the current token one of n words? Its number, or -1.
static int eini_one_of(const eini_parser *p, const char *const *words, int n) {
  while (--n >= 0 && !eini_word(p, words[n])) continue;
  return n;
}

static void eini_parser_init(eini_parser *p, eini_arena *arena, eini_diag *diag, const ein_graph *g,
                             const char *text, int64_t len, int max_depth) {
  memset(p, 0, sizeof *p);
  p->arena = arena;
  p->diag = diag;
  p->g = g;
  p->s = text;
  p->n = len;
  p->max_depth = max_depth;
  p->at = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  eini_lex(p);
}

// One level deeper into an expression; 0 when that is too deep.
static int eini_deeper(eini_parser *p) {
  if (++p->depth > p->max_depth)
    eini_perr(p, EIN_ERR_TOO_LARGE, p->pos, 1, NULL, "nested deeper than %d", p->max_depth);
  return p->st == EIN_OK;
}

// ---- operators, literals and calls ----

// Levels: 0 or, 1 and, 2 not and comparisons, 3 sums, 4 terms, 5 unary, 6 powers.
typedef struct eini_infix_row {
  const char *text;
  int tok, level, op, inverse;
} eini_infix_row;

static const eini_infix_row eini_infixes[] = {
    {" or ", 'o', 0, EIN_OP_OR, 0}, {" and ", 'a', 1, EIN_OP_AND, 0},
    {"<", '<', 2, EIN_OP_LT, 0},    {"<=", EINI_T_LE, 2, EIN_OP_LE, 0},
    {">", '>', 2, EIN_OP_GT, 0},    {">=", EINI_T_GE, 2, EIN_OP_GE, 0},
    {"+", '+', 3, EIN_OP_ADD, 0},   {"-", '-', 3, EIN_OP_SUB, 1},
    {"*", '*', 4, EIN_OP_MUL, 0},   {"/", '/', 4, EIN_OP_DIV, 1},
    {"^", '^', 6, EIN_OP_POW, 0},   {"==", EINI_T_EQ, 2, EIN_OP_EQ, 0},
    {"!=", EINI_T_NE, 2, EIN_OP_NE, 0}};

#define EINI_INFIXES 13

// Reads the operator of a level, below 5; NULL when there is none. nth: of a list on that level.
static const eini_infix_row *eini_accept_infix(eini_parser *p, int level, int nth) {
  int tok = eini_word(p, "or") ? 'o' : eini_word(p, "and") ? 'a' : p->tok, i = 0;
  while (i < EINI_INFIXES && (eini_infixes[i].tok != tok || eini_infixes[i].level != level)) i++;
  if (i == EINI_INFIXES) return NULL;
  if (level == 2 && nth > 0)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(p), "write a < b and b < c", "chained comparison");
  eini_lex(p);
  return &eini_infixes[i];
}

typedef struct eini_literal {
  int64_t pos, len, ival;
  double re;
  int truth, exact;        // true or false; an integer
} eini_literal;

// Reads a number or constant; 0 when there is none.
static int eini_accept_literal(eini_parser *p, eini_literal *v) {
  static const char *const words[] = {"inf", "nan", "pi", "false", "true"};
  const double values[] = {(double)INFINITY, (double)NAN, 3.14159265358979323846, 0, 1};
  int word = eini_one_of(p, words, 5);
  if (p->tok != EINI_T_NUM && word < 0) return 0;
  v->pos = p->pos;
  v->len = p->len;
  v->truth = word >= 3;
  v->exact = word < 0 && p->exact;
  v->ival = word < 0 ? p->ival : word == 4;
  v->re = word < 0 ? p->re : values[word];
  eini_lex(p);
  if (word < 0 && p->tok == EINI_T_NAME && p->pos == p->end)
    eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(p),
              eini_word(p, "j") || eini_word(p, "J")
                  ? "1j is written complex(0,1), a product with *: 2*j"
                  : "write the product with *: 2*h",
              "a name directly after a number");
  return 1;
}

// A word of the language stands where a value should.
static void eini_no_value(eini_parser *p, int cls) {
  eini_unexpected(p, "an expression", p->tok == '*' ? "powers are written ^" :
                  p->tok == '/' ? "the quotient rounded down is div(x, y)" :
                  p->tok == EINI_T_EOL ? "lines are joined inside ( ) and by '\\' at their end" :
                  cls == EINI_W_DTYPE ? "conversions are written cast_f32(x)" : NULL);
}

struct eini_syn;

// An expression being emitted as nodes. Functions give the number of a node, -1 after a mistake.
typedef struct eini_emit {
  eini_parser *p;
  eini_arena *arena;
  eini_expr e;
  int nin, nindex;         // operands and indices a map may name
  const eini_index *index;
  // Of trees: a leaf, which the surroundings decide.
  int (*leaf_fn)(struct eini_emit *em, const struct eini_syn *v);
} eini_emit;

static int eini_emit_op(eini_emit *em, int op, int64_t pos, int x, int y) {
  if (x < 0 || y < 0) return -1;
  int id = eini_expr_add(em->arena, &em->e, op, pos, x, y, 0);
  if (id < 0) eini_pmem(em->p);
  return id;
}

static int eini_emit_literal(eini_emit *em, const eini_literal *v) {
  int id = v->truth ? eini_expr_bool(em->arena, &em->e, v->pos, (int)v->ival) :
           v->exact ? eini_expr_int(em->arena, &em->e, v->pos, v->ival)
                    : eini_expr_real(em->arena, &em->e, v->pos, v->re);
  if (id < 0) eini_pmem(em->p);
  return id;
}

// A word of the text that is called with n arguments.
typedef struct eini_called {
  const char *s;
  int64_t pos, len, full;  // full: the length of the whole call
  int cls, word, n;
} eini_called;

static void eini_wrong_count(eini_parser *p, const eini_called *f, int want, const char *hint) {
  eini_perr(p, EIN_ERR_SYNTAX, f->pos, f->full, hint, "%.*s takes %d argument%s, not %d",
            eini_cut(f->s, f->len), f->s, want, want == 1 ? "" : "s", f->n);
}

// near: a name like it, or NULL. Names that other languages have are known.
static void eini_no_function(eini_parser *p, const eini_called *f, const char *near) {
  static const char *const foreign[] = {
      "if", "a choice is where(c, x, y)", "ln", "log(x) is the natural logarithm",
      "arctan2", "write atan2(y, x)", "avg", "write mean[j](x)", "fabs", "write abs(x)"};
  const char *hint = near;
  for (int i = 0; i < 10; i += 2)
    if (eini_word_is(f->s, f->len, foreign[i])) hint = foreign[i + 1];
  eini_perr(p, EIN_ERR_NAME, f->pos, f->len, hint, "'%.*s' is not a function",
            eini_cut(f->s, f->len), f->s);
}

// The number of arguments of a function or conversion, of n that it has; -1 when the word is none.
static int eini_call_arity(const ein_graph *g, int cls, int word, int n) {
  if (cls == EINI_W_OP && word == EIN_OP_RAND)  // a seed and indices
    return n < 1 ? 1 : n > EINI_ARGS_MAX ? EINI_ARGS_MAX : n;
  return cls == EINI_W_OP ? eini_ops[word].args : cls == EINI_W_CAST ? 1 :
         cls == EINI_W_FUNCTION || cls == EINI_W_BLOCK ? g->function[word].nargs : -1;
}

// A call with the right number of arguments.
static int eini_emit_call(eini_emit *em, const eini_called *f, const int *arg) {
  if (f->cls == EINI_W_OP && f->word == EIN_OP_RAND) {
    int all = arg[0];
    for (int i = 1; i < f->n; i++) all = eini_emit_op(em, EIN_OP_HASH, f->pos, all, arg[i]);
    return eini_emit_op(em, EIN_OP_RAND, f->pos, all, 0);
  }
  int id = f->cls == EINI_W_FUNCTION || f->cls == EINI_W_BLOCK
               ? eini_expr_call(em->arena, &em->e, f->pos, f->word, f->n, arg)
               : eini_expr_add(em->arena, &em->e, f->cls == EINI_W_CAST ? EIN_OP_CAST : f->word,
                               f->pos, arg[0], arg[1], arg[2]);
  if (id < 0) eini_pmem(em->p);
  else if (f->cls == EINI_W_CAST) em->e.node[id].dtype = (unsigned char)f->word;
  return id;
}

// ---- maps ----

static int eini_map_expr(eini_emit *em, int level);  // expressions nest

// An operand; in a statement also a param or the value of an index.
static int eini_map_name(eini_emit *em, const eini_called *f) {
  const ein_graph *g = em->p->g;
  int k = -1, ok = f->s[0] == 'x' && f->len >= 2 && f->len < 11 && (f->s[1] != '0' || f->len == 2);
  for (int64_t i = 1; i < f->len && ok; i++) {
    ok = eini_is_digit((unsigned char)f->s[i]);
    k = (k < 0 ? 0 : k * 10) + (f->s[i] - '0');
  }
  if (ok && k < em->nin) return eini_emit_op(em, EIN_OP_OPERAND, f->pos, k, 0);
  for (k = 0; k < em->nindex; k++) {
    if (eini_word_is(f->s, f->len, em->index[k].name))
      return eini_emit_op(em, EIN_OP_INDEX, f->pos, k, 0);
  }
  for (k = 0; k < g->nparam; k++) {
    if (eini_word_is(f->s, f->len, g->param[k].name))
      return eini_emit_op(em, EIN_OP_PARAM, f->pos, k, 0);
  }
  eini_perr(em->p, EIN_ERR_NAME, f->pos, f->len, NULL,
            "'%.*s' is not an operand: there are x0 to x%d", eini_cut(f->s, f->len), f->s,
            em->nin - 1);
  return -1;
}

static void eini_not_scalar(eini_parser *p, const eini_called *f) {
  eini_perr(p, EIN_ERR_SYNTAX, f->pos, f->full, "operands are written x0, x1, ..",
            "a map is an expression over scalars");
}

// A call; the name is read.
static int eini_map_call(eini_emit *em, eini_called *f) {
  eini_parser *p = em->p;
  int list = f->cls == EINI_W_FOLD && (f->word == EIN_FOLD_MAX || f->word == EIN_FOLD_MIN);
  int op = f->word == EIN_FOLD_MAX ? EIN_OP_MAX : EIN_OP_MIN, arg[EINI_ARGS_MAX] = {0};
  int want;
  if (!eini_accept(p, '('))
    eini_perr(p, EIN_ERR_NAME, f->pos, f->len, NULL,
              "'%.*s' is a word of the language: '(' must follow", eini_cut(f->s, f->len), f->s);
  if (p->tok == ')') eini_unexpected(p, "an expression", NULL);
  do {
    int64_t pos = p->pos;
    int x = eini_map_expr(em, 0);
    if (list && f->n > 0) arg[0] = eini_emit_op(em, op, pos, arg[0], x);
    else if (f->n < EINI_ARGS_MAX) arg[f->n] = x;
    f->n++;
  } while (eini_accept(p, ','));
  eini_expect(p, ')', "')' or an operator");
  f->full = p->end - f->pos;
  if (p->st != EIN_OK || (list && f->n > 1)) return arg[0];
  want = eini_call_arity(p->g, f->cls, f->word, f->n);
  if (want == f->n) return eini_emit_call(em, f, arg);
  if (want >= 0) eini_wrong_count(p, f, want, NULL);
  else if (f->cls == EINI_W_FREE) eini_no_function(p, f, NULL);
  else eini_not_scalar(p, f);
  return -1;
}

static int eini_map_primary(eini_emit *em) {
  eini_parser *p = em->p;
  eini_called f = {p->s + p->pos, p->pos, p->len, p->len, EINI_W_WORD, 0, 0};
  eini_literal c;
  if (eini_accept_literal(p, &c)) return eini_emit_literal(em, &c);
  if (eini_accept(p, '(')) {
    int x = eini_map_expr(em, 0);
    eini_expect(p, ')', "')' or an operator");
    return x;
  }
  if (p->tok == EINI_T_NAME) f.cls = eini_word_class(p->g, f.s, f.len, &f.word);
  if (f.cls == EINI_W_WORD || f.cls == EINI_W_DTYPE) eini_no_value(p, f.cls);
  eini_lex(p);
  if (p->tok == '[') eini_not_scalar(p, &f);
  if (p->st != EIN_OK) return -1;
  return f.cls != EINI_W_FREE || p->tok == '(' ? eini_map_call(em, &f) : eini_map_name(em, &f);
}

// Signs, powers, and not, which stands on level 2.
static int eini_map_unary(eini_emit *em, int level) {
  eini_parser *p = em->p;
  int64_t pos = p->pos;
  int x, minus = p->tok == '-';
  if (em->e.n > EINI_NODES_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, pos, 1, NULL, "the map has too many parts");
  if (!eini_deeper(p)) return -1;
  if (level == 2) {
    eini_lex(p);
    x = eini_emit_op(em, EIN_OP_NOT, pos, eini_map_expr(em, 2), 0);
  } else if (eini_accept(p, '+') || eini_accept(p, '-')) {
    x = eini_map_unary(em, 5);
    if (minus) x = eini_emit_op(em, EIN_OP_NEG, pos, x, 0);
  } else {
    x = eini_map_primary(em);
    if (eini_accept(p, '^')) {
      pos = p->pos;
      x = eini_emit_op(em, EIN_OP_POW, pos, x, eini_map_unary(em, 5));
    }
  }
  p->depth--;
  return x;
}

static int eini_map_expr(eini_emit *em, int level) {
  eini_parser *p = em->p;
  if (level == 5 || (level == 2 && eini_word(p, "not"))) return eini_map_unary(em, level);
  int x = eini_map_expr(em, level + 1), n = 0;
  for (const eini_infix_row *op; (op = eini_accept_infix(p, level, n)) != NULL; n++) {
    int64_t pos = p->pos;
    x = eini_emit_op(em, op->op, pos, x, eini_map_expr(em, level + 1));
  }
  return x;
}

// Parses one expression in which x0 .. x{nin-1} are operands, params have their names, and indices
// those in index. The diag's text must be text.
static ein_status eini_parse_map(ein_graph *g, eini_diag *d, const char *text, int nin, int nindex,
                                 const eini_index *index, eini_expr *e) {
  eini_parser p;
  eini_emit em;
  eini_parser_init(&p, &g->arena, d, g, text, (int64_t)strlen(text), 256);
  memset(&em, 0, sizeof em);
  em.p = &p;
  em.arena = &g->arena;
  em.nin = nin;
  em.nindex = nindex;
  em.index = index;
  eini_map_expr(&em, 0);
  if (p.tok != EINI_T_END) eini_unexpected(&p, "an operator or the end", NULL);
  *e = em.e;
  return p.st;
}
