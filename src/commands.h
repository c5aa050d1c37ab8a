// ================================================================================================
// >>commands  machines, distributions and schedules as text
// Reads one command of a line with the lexer of programs. Words of commands are none of the
// language: they are looked for at the beginning of a line alone.
// ================================================================================================

#define EINI_NAMES_MAX 32      // names of a list; dimensions of a machine or a tensor

enum {
  EINI_C_MACHINE, EINI_C_PLACE, EINI_C_ON, EINI_C_DIVIDE, EINI_C_SPLIT, EINI_C_COLLAPSE,
  EINI_C_REORDER, EINI_C_PARALLELIZE, EINI_C_DISTRIBUTE, EINI_C_COMMUNICATE, EINI_C_ROTATE,
  EINI_C_SUBSTITUTE, EINI_C_PRECOMPUTE, EINI_C_RFACTOR, EINI_COMMANDS
};

// What stands in the brackets: n a name, s one or a list of them, # a number, + one name or more,
// e an expression.
typedef struct eini_command_row {
  const char *word, *takes;
} eini_command_row;

static const eini_command_row eini_commands[EINI_COMMANDS] = {
    {"machine", NULL}, {"place", NULL}, {"on", NULL}, {"divide", "nnn#"}, {"split", "nnn#"},
    {"collapse", "nnn"}, {"reorder", "+"}, {"parallelize", "n"}, {"distribute", "+"},
    {"communicate", "sn"}, {"rotate", "nsn"}, {"substitute", "sn"},
    {"precompute", "essn"}, {"rfactor", "nnn#"}};

typedef struct eini_span {
  int64_t pos, len;
} eini_span;

typedef struct eini_nameset {
  eini_span all, name[EINI_NAMES_MAX];
  int n;
} eini_nameset;

// A command as written. machine: list 0 its dimensions, 1 the levels they are of, of no length
// where there is but one; amount: their extents. place: tensors, distributions, memory. on:
// amount[0] which statement, or 0. Others: lists in the order of their brackets, amount[0] the
// number.
typedef struct eini_command {
  int kind, level[EINI_NAMES_MAX];
  eini_span word, number;
  eini_nameset list[4];
  int64_t amount[EINI_NAMES_MAX];
  eini_syn *expr;          // whose text is list 0
} eini_command;

// Names that numbers may be made of: p, and dimensions.
typedef struct eini_amounts {
  int64_t places;
  int n;
  const char *name[EINI_NAMES_MAX];
  int64_t value[EINI_NAMES_MAX];
} eini_amounts;

// ---- numbers ----

static double eini_amount(eini_parser *p, const eini_amounts *a, int level);

// What is whole but for rounding, as 27^(1/3), is whole.
static double eini_amount_snap(double x) {
  const double whole = floor(x + 0.5);
  return fabs(x - whole) <= 1e-9 * (fabs(x) > 1 ? fabs(x) : 1) ? whole : x;
}

static double eini_amount_call(eini_parser *p, const eini_amounts *a, int f) {
  double x = eini_amount(p, a, 0);
  if (f == 0 && x < 0 && a != NULL)
    eini_perr(p, EIN_ERR_ARGUMENT, EINI_AT(p), NULL, "the root of a negative number");
  x = f == 0 ? sqrt(x < 0 ? 0 : x) : f == 1 ? floor(eini_amount_snap(x)) :
      f == 2 ? ceil(eini_amount_snap(x)) : x;
  while (f > 2 && eini_accept(p, ',')) {
    const double y = eini_amount(p, a, 0);
    x = (f == 3) == (y < x) ? y : x;
  }
  return x;
}

static double eini_amount_name(eini_parser *p, const eini_amounts *a) {
  static const char *const functions[] = {"sqrt", "floor", "ceil", "min", "max"};
  const eini_span at = {p->pos, p->len};
  const int f = eini_one_of(p, functions, 5);
  double x = 1;
  eini_lex(p);
  if (f >= 0 && eini_accept(p, '(')) {
    x = eini_amount_call(p, a, f);
    eini_expect(p, ')', "')' or an operator");
    return x;
  }
  if (a == NULL) return x;
  for (int k = 0; k < a->n; k++)
    if (eini_word_is(p->s + at.pos, at.len, a->name[k])) return (double)a->value[k];
  if (eini_word_is(p->s + at.pos, at.len, "p")) return (double)a->places;
  eini_perr(p, EIN_ERR_NAME, at.pos, at.len, "p is the number of places",
            "'%.*s' is no dimension of the machine", eini_cut(p->s + at.pos, at.len),
            p->s + at.pos);
  return x;
}

// Levels: 0 sums, 1 terms, 2 signs and powers. a NULL: it is read only, names stand for 1.
static double eini_amount(eini_parser *p, const eini_amounts *a, int level) {
  double x = 1;
  if (!eini_deeper(p)) return x;
  if (level < 2) {
    x = eini_amount(p, a, level + 1);
    while (p->tok == (level == 0 ? '+' : '*') || p->tok == (level == 0 ? '-' : '/')) {
      const int inverse = p->tok == '-' || p->tok == '/';
      eini_lex(p);
      const double y = eini_amount(p, a, level + 1);
      x = level == 0 ? (inverse ? x - y : x + y) : (inverse ? x / y : x * y);
    }
  } else if (eini_accept(p, '-')) {
    x = -eini_amount(p, a, 2);
  } else {
    if (p->tok == EINI_T_NAME) {
      x = eini_amount_name(p, a);
    } else if (eini_accept(p, '(')) {
      x = eini_amount(p, a, 0);
      eini_expect(p, ')', "')' or an operator");
    } else {
      x = p->re;
      eini_expect(p, EINI_T_NUM, "a number");
    }
    if (eini_accept(p, '^')) x = pow(x, eini_amount(p, a, 2));
  }
  p->depth--;
  return x;
}

// A whole number from 1 to most.
static int64_t eini_amount_whole(eini_parser *p, const eini_amounts *a, int64_t most,
                                 eini_span *at) {
  at->pos = p->pos;
  const double x = eini_amount_snap(eini_amount(p, a, 0));
  at->len = p->end - at->pos;
  if (p->st != EIN_OK || a == NULL) return 1;
  if (x >= 1 && x <= (double)most && floor(x) == x) return (int64_t)x;
  eini_perr(p, EIN_ERR_ARGUMENT, at->pos, at->len, "ceil(..) and floor(..) round",
            "a whole number from 1 to %lld is needed here, not %.10g", (long long)most, x);
  return 1;
}

// ---- distributions ----

// How a dimension of the machine holds a tensor: pieces of an axis, one coordinate only, or all.
enum { EINI_HELD_PIECES, EINI_HELD_AT, EINI_HELD_EVERY };

typedef struct eini_held {
  eini_span span;
  int kind, axis;
  int64_t at;              // the coordinate
  int64_t block;           // blocks of so many elements are dealt in turn; 0: equal pieces
} eini_held;

typedef struct eini_spread {  // one level: xy->x0*
  int rank, ndim;
  eini_held held[EINI_NAMES_MAX];
} eini_spread;

static int64_t eini_spread_number(eini_parser *p, int64_t *i, int64_t end) {
  int64_t x = 0, from = *i;
  while (*i < end && eini_is_digit(eini_byte(p, *i)) && x <= EIN_PLACES_MAX)
    x = 10 * x + (p->s[(*i)++] - '0');
  if (*i == from || x > EIN_PLACES_MAX)
    eini_perr(p, EIN_ERR_SYNTAX, from, 1, NULL, *i == from ? "a number expected here" :
              "this number is too large");
  return x;
}

// The axis of a name on the right.
static void eini_spread_axis(eini_parser *p, const eini_span *axis, const eini_spread *s,
                             eini_held *h) {
  const eini_span x = h->span;
  while (h->axis < s->rank && (axis[h->axis].len != x.len ||
                               memcmp(p->s + axis[h->axis].pos, p->s + x.pos, (size_t)x.len) != 0))
    h->axis++;
  if (h->axis == s->rank)
    eini_perr(p, EIN_ERR_NAME, x.pos, x.len, "* replicates, a number is a coordinate",
              "'%.*s' is no axis left of the arrow", (int)x.len, p->s + x.pos);
  for (int k = 0; k < s->ndim; k++)
    if (s->held[k].kind == EINI_HELD_PIECES && s->held[k].axis == h->axis)
      eini_perr(p, EIN_ERR_NAME, x.pos, x.len, NULL, "'%.*s' stands twice right of the arrow",
                (int)x.len, p->s + x.pos);
}

// One letter, digit, (number) or * of the right side, up to `end`.
static void eini_spread_held(eini_parser *p, const eini_span *axis, int64_t *i, int64_t end,
                             eini_spread *s) {
  eini_held *h = &s->held[s->ndim];
  memset(h, 0, sizeof *h);
  h->span.pos = *i;
  const int64_t u = eini_utf8(p->s + *i, end - *i, &h->span.len);
  if (u == '*') {
    h->kind = EINI_HELD_EVERY;
    ++*i;
  } else if (u == '(' || (u >= '0' && u <= '9')) {
    h->kind = EINI_HELD_AT;
    if (u != '(') {
      h->at = u - '0';
      ++*i;
    } else {
      ++*i;
      h->at = eini_spread_number(p, i, end);
      if (*i >= end || p->s[*i] != ')')
        eini_perr(p, EIN_ERR_SYNTAX, h->span.pos, 1, NULL, "this '(' is never closed");
      else ++*i;
    }
  } else if (eini_is_label(u)) {
    *i += h->span.len;
    eini_spread_axis(p, axis, s, h);
    if (*i < end && p->s[*i] == ':') {
      ++*i;
      h->block = eini_spread_number(p, i, end);
      if (p->st == EIN_OK && h->block == 0)
        eini_perr(p, EIN_ERR_SYNTAX, *i - 1, 1, NULL, "blocks have one element at least");
    }
  } else {
    eini_perr(p, EIN_ERR_SYNTAX, *i, h->span.len, "a distribution is written like xy->x0*",
              "a letter, a digit, (number) or * expected here");
  }
  h->span.len = *i - h->span.pos;
  s->ndim++;
}

// What stands at `at`, without blanks.
static void eini_spread_read(eini_parser *p, eini_span at, eini_spread *s) {
  int64_t i = at.pos, end = at.pos + at.len, used;
  eini_span axis[EINI_NAMES_MAX];
  memset(s, 0, sizeof *s);
  while (p->st == EIN_OK && i < end && eini_is_label(eini_utf8(p->s + i, end - i, &used))) {
    for (int k = 0; k < s->rank; k++)
      if (axis[k].len == used && memcmp(p->s + axis[k].pos, p->s + i, (size_t)used) == 0)
        eini_perr(p, EIN_ERR_NAME, i, used, NULL, "'%.*s' stands twice left of the arrow",
                  (int)used, p->s + i);
    if (s->rank == EINI_NAMES_MAX)
      eini_perr(p, EIN_ERR_TOO_LARGE, i, 1, NULL, "more than %d axes", EINI_NAMES_MAX);
    if (p->st != EIN_OK) return;
    axis[s->rank].pos = i;
    axis[s->rank++].len = used;
    i += used;
  }
  if (p->st == EIN_OK && (end - i < 2 || p->s[i] != '-' || p->s[i + 1] != '>'))
    eini_perr(p, EIN_ERR_SYNTAX, i < end ? i : at.pos, 1, "a distribution is written like xy->x0*",
              "'->' expected here");
  for (i += 2; p->st == EIN_OK && i < end;) {
    if (s->ndim == EINI_NAMES_MAX)
      eini_perr(p, EIN_ERR_TOO_LARGE, i, 1, NULL, "more than %d dimensions", EINI_NAMES_MAX);
    else eini_spread_held(p, axis, &i, end, s);
  }
  if (p->st == EIN_OK && s->ndim == 0)
    eini_perr(p, EIN_ERR_SYNTAX, at.pos, at.len, "* replicates, a number is a coordinate",
              "nothing stands right of the arrow");
}

// Takes the text up to a blank, a comma or the end of the line as one token.
static eini_span eini_command_spread(eini_parser *p) {
  eini_span at = {p->pos, 0};
  eini_spread s;
  if (p->tok == EINI_T_END || p->tok == EINI_T_EOL || (p->tok != EINI_T_NAME && p->tok != '-')) {
    eini_unexpected(p, "a distribution", "written like xy->x0*");
    return at;
  }
  while (p->st == EIN_OK && at.pos + at.len < p->n &&
         strchr(" \t\r\n,;#", p->s[at.pos + at.len]) == NULL)
    at.len++;
  eini_spread_read(p, at, &s);
  p->at = at.pos + at.len;
  p->len = at.len;
  eini_lex(p);
  return at;
}

// ---- commands ----

// The command that the current token is a word of; -1: none.
static int eini_command_word(const eini_parser *p) {
  int k = EINI_COMMANDS - 1;
  while (k >= 0 && !eini_word(p, eini_commands[k].word)) k--;
  return k;
}

// Is a line among statements one of a command, whose word is read?
static int eini_command_begins(const eini_parser *p) {
  int64_t i = p->at;
  const int k = eini_command_word(p);
  while (eini_byte(p, i) == ' ' || eini_byte(p, i) == '\t') i++;
  const unsigned char c = eini_byte(p, i);
  const int name = c == '_' || c >= 0x80 || ((c | 32) >= 'a' && (c | 32) <= 'z');
  return k >= 0 && (eini_commands[k].takes == NULL ? name : c == '(');
}

// Names of parts of statements have points: T.1, T.d2.
static void eini_command_name(eini_parser *p, eini_nameset *g, const char *what) {
  while (p->tok == EINI_T_NAME && eini_byte(p, p->at) == '.') {
    int64_t end = p->at + 1 + (eini_byte(p, p->at + 1) == 'd');
    if (!eini_is_digit(eini_byte(p, end))) break;
    while (eini_is_digit(eini_byte(p, end))) end++;
    p->at = end;
    p->len = end - p->pos;
  }
  const eini_span at = {p->pos, p->len};
  if (g->n == EINI_NAMES_MAX)
    eini_perr(p, EIN_ERR_TOO_LARGE, EINI_AT(p), NULL, "more than %d names", EINI_NAMES_MAX);
  eini_expect(p, EINI_T_NAME, what);
  if (p->st != EIN_OK) return;
  g->name[g->n++] = at;
  if (g->n == 1) g->all.pos = at.pos;
  g->all.len = p->end - g->all.pos;
}

static void eini_command_names(eini_parser *p, eini_nameset *g, int set, const char *what) {
  if (!set || !eini_accept(p, '[')) {
    eini_command_name(p, g, what);
    return;
  }
  do eini_command_name(p, g, what);
  while (eini_accept(p, ','));
  eini_expect(p, ']', "',' or ']'");
}

// NAME = number, .. or LEVEL[NAME = number, ..], ..
static void eini_command_machine(eini_parser *p, const eini_amounts *a, eini_command *c) {
  eini_nameset *g = &c->list[0], *level = &c->list[1];
  eini_amounts known;
  int depth = 0;
  memset(&known, 0, sizeof known);
  known.places = a == NULL ? 1 : a->places;
  do {
    eini_nameset head = {{0, 0}, {{0, 0}}, 0};
    eini_command_name(p, &head, "the name of a dimension");
    const int inside = eini_accept(p, '[');
    const int more = g->n > 0 && p->st == EIN_OK && inside != (level->name[0].len > 0);
    if (more) eini_unexpected(p, inside ? "'='" : "'['", "all dimensions are of levels, or none");
    do {
      const int k = g->n;
      char *name;
      if (inside) eini_command_name(p, g, "the name of a dimension");
      else if (p->st == EIN_OK && k < EINI_NAMES_MAX) g->name[g->n++] = head.name[0];
      else if (p->st == EIN_OK) eini_unexpected(p, "the end of the line", NULL);
      eini_expect(p, '=', inside ? "'='" : "'=' or '['");
      if (p->st != EIN_OK) return;
      c->level[k] = depth;
      level->name[k].pos = head.name[0].pos;
      level->name[k].len = inside ? head.name[0].len : 0;
      c->amount[k] = eini_amount_whole(p, a == NULL ? NULL : &known, EIN_PLACES_MAX, &c->number);
      name = eini_strndup(p->arena, p->s + g->name[k].pos, g->name[k].len);
      if (name == NULL) eini_pmem(p);
      known.name[k] = name;
      known.value[k] = c->amount[k];
      known.n = k + 1;
    } while (inside && eini_accept(p, ','));
    if (inside) eini_expect(p, ']', "',' or ']'");
    depth += inside;
  } while (eini_accept(p, ','));
}

// Distributions, one for each level, and the memory.
static void eini_command_spreads(eini_parser *p, eini_command *c) {
  static const char *const memories[] = {"host", "device"};
  do {
    eini_nameset *g = &c->list[1];
    if (g->n == EINI_NAMES_MAX) eini_unexpected(p, "the end of the line", NULL);
    const eini_span at = eini_command_spread(p);
    if (p->st == EIN_OK) g->name[g->n++] = at;
  } while (eini_accept(p, ','));
  if (!eini_word(p, "in")) return;
  eini_lex(p);
  if (eini_one_of(p, memories, 2) < 0) eini_unexpected(p, "host or device", NULL);
  else eini_command_name(p, &c->list[2], "host or device");
}

static void eini_command_place(eini_parser *p, eini_command *c) {
  do eini_command_name(p, &c->list[0], "the name of a tensor");
  while (eini_accept(p, ','));
  eini_command_spreads(p, c);
}

// The number of its statement, from 1 on, where there are several.
static void eini_command_on(eini_parser *p, const eini_amounts *a, eini_command *c) {
  eini_command_name(p, &c->list[0], "the name of a tensor");
  if (p->st == EIN_OK && p->tok == EINI_T_NUM)
    c->amount[0] = eini_amount_whole(p, a, (int64_t)1 << 40, &c->number);
}

static void eini_command_expr(eini_parser *p, eini_command *c) {
  eini_nameset *g = &c->list[0];
  g->all.pos = p->pos;
  c->expr = eini_parse_expr(p, 0);
  g->all.len = p->end - g->all.pos;
  g->name[0] = g->all;
  g->n = 1;
}

static void eini_command_call(eini_parser *p, const eini_amounts *a, eini_command *c) {
  const char *takes = eini_commands[c->kind].takes;
  eini_expect(p, '(', "'('");
  if (c->kind == EINI_C_DISTRIBUTE && p->tok == '[') takes = "ssss";
  for (int k = 0; takes[k] != 0; k++) {
    if (k > 0) eini_expect(p, ',', "','");
    if (takes[k] == '#') c->amount[0] = eini_amount_whole(p, a, (int64_t)1 << 40, &c->number);
    else if (takes[k] == 'e') eini_command_expr(p, c);
    else eini_command_names(p, &c->list[k], takes[k] == 's', "a name");
    while (takes[k] == '+' && eini_accept(p, ',')) eini_command_name(p, &c->list[k], "a name");
  }
  eini_expect(p, ')', *takes == '+' ? "',' or ')'" : "')'");
}

// Reads the command of a line and its end. a NULL: its numbers are not known yet.
static void eini_command_read(eini_parser *p, const eini_amounts *a, eini_command *c) {
  eini_near w;
  memset(c, 0, sizeof *c);
  c->kind = eini_command_word(p);
  c->word.pos = p->pos;
  c->word.len = p->len;
  if (c->kind < 0) {
    eini_near_init(&w, p->s + p->pos, p->tok == EINI_T_NAME ? p->len : 0);
    for (int k = 0; k < EINI_COMMANDS; k++)
      eini_near_try(&w, eini_commands[k].word, (int64_t)strlen(eini_commands[k].word));
    const char *hint = eini_near_hint(&w);
    if (hint == NULL && a == NULL) hint = "statements stand before all commands";
    eini_unexpected(p, "a command of a schedule", hint);
    return;
  }
  eini_lex(p);
  if (c->kind == EINI_C_MACHINE) eini_command_machine(p, a, c);
  else if (c->kind == EINI_C_PLACE) eini_command_place(p, c);
  else if (c->kind == EINI_C_ON) eini_command_on(p, a, c);
  else eini_command_call(p, a, c);
  if (p->tok != EINI_T_EOL && p->tok != EINI_T_END) eini_unexpected(p, "the end of the line", NULL);
}
