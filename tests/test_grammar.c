// The grammar as data: texts derived from tests/grammar.ebnf are never a syntax error, and texts
// with a broken token are mistakes at a position inside the text.
//
//   test_grammar [grammar.ebnf] [texts] [seed]
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "oracle.h"
#include "util.h"

// ---- reading a grammar --------------------------------------------------------------------------

enum { ALT, SEQ, REPEAT, OPTION, WORD, RULE };

typedef struct part {
  int kind, first, next;    // its first inner part and the next one beside it, or -1
  int rule;                 // of RULE: which
  int depth;                // rules that its shortest text takes at least
  char text[24];            // of WORD
} part;

static part parts[4096];
static int nparts = 0;
static char rule_name[64][24];
static int rule_part[64], nrules = 0;
static const char *at;

static int rule_of(const char *name, size_t n) {
  for (int k = 0; k < nrules; k++)
    if (strlen(rule_name[k]) == n && memcmp(rule_name[k], name, n) == 0) return k;
  if (nrules == 64 || n >= sizeof rule_name[0]) orc_die("the grammar has too many rules");
  memcpy(rule_name[nrules], name, n);
  rule_part[nrules] = -1;
  return nrules++;
}

static int part_new(int kind) {
  if (nparts == 4096) orc_die("the grammar is too long");
  part *p = &parts[nparts];
  memset(p, 0, sizeof *p);
  p->kind = kind;
  p->first = p->next = p->rule = -1;
  return nparts++;
}

static void skip(void) {
  for (;;) {
    while (*at != 0 && strchr(" \t\r\n", *at) != NULL) at++;
    if (at[0] != '(' || at[1] != '*') return;
    at = strstr(at, "*)");
    if (at == NULL) orc_die("a comment of the grammar does not end");
    at += 2;
  }
}

static int read_alternatives(char end);

static int read_part(void) {
  int p;
  if (*at == '{' || *at == '[' || *at == '(') {
    char open = *at++, close = open == '{' ? '}' : open == '[' ? ']' : ')';
    p = part_new(open == '{' ? REPEAT : open == '[' ? OPTION : ALT);
    int inner = read_alternatives(close);
    parts[p].first = inner;
    at++;
  } else if (*at == '"') {
    const char *end = strchr(at + 1, '"');
    p = part_new(WORD);
    memcpy(parts[p].text, at + 1, (size_t)(end - at - 1));
    at = end + 1;
  } else {
    size_t n = 0;
    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= 'A' && at[n] <= 'Z')) n++;
    if (n == 0) orc_die("the grammar cannot be read");
    p = part_new(RULE);
    parts[p].rule = rule_of(at, n);
    at += n;
  }
  return p;
}

static int read_alternatives(char end) {
  int all = part_new(ALT), last_way = -1;
  for (skip(); *at != end;) {
    int way = part_new(SEQ), last = -1;
    if (last_way < 0) parts[all].first = way;
    else parts[last_way].next = way;
    last_way = way;
    for (; *at != '|' && *at != end; skip()) {
      if (*at == 0) orc_die("the grammar ends inside a rule");
      int p = read_part();
      if (last < 0) parts[way].first = p;
      else parts[last].next = p;
      last = p;
    }
    if (*at == '|') at++, skip();
  }
  return all;
}

#define FAR 1000

static int depth_of(const part *p) {
  int best = p->kind == ALT ? FAR : 0;
  if (p->kind == WORD || p->kind == REPEAT || p->kind == OPTION) return 0;
  if (p->kind == RULE) return rule_part[p->rule] < 0 ? 0 : parts[rule_part[p->rule]].depth + 1;
  for (int k = p->first; k >= 0; k = parts[k].next) {
    int d = parts[k].depth;
    if (p->kind == ALT ? d < best : d > best) best = d;
  }
  return best < FAR ? best : FAR;
}

static void read_grammar(const char *path) {
  static char text[1 << 16];
  FILE *f = fopen(path, "rb");
  size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
  if (n == 0) orc_die("no grammar");
  fclose(f);
  at = text;
  for (skip(); *at != 0; skip()) {
    size_t k = 0;
    while ((at[k] >= 'a' && at[k] <= 'z') || (at[k] >= 'A' && at[k] <= 'Z')) k++;
    int rule = rule_of(at, k);
    at += k;
    skip();
    if (*at++ != '=') orc_die("'=' expected in the grammar");
    rule_part[rule] = read_alternatives(';');
    at++;
  }
  for (int k = 0; k < nparts; k++) parts[k].depth = FAR;
  for (int changed = 1; changed;) {
    changed = 0;
    for (int k = 0; k < nparts; k++) {
      int d = depth_of(&parts[k]);
      changed |= d != parts[k].depth;
      parts[k].depth = d;
    }
  }
}

// ---- deriving a text ----------------------------------------------------------------------------

typedef struct tokens {
  char text[1024][24];
  int n;
} tokens;

static void put(tokens *t, const char *s) {
  if (t->n < 1024) snprintf(t->text[t->n++], sizeof t->text[0], "%s", s);
}

static void put_token(tokens *t, const char *class) {
  static const char *const names[] = {"A", "B", "x", "i", "j", "k", "n", "T", "p", "sq",
                                      "\xc3\xa9t\xc3\xa9", "_9"};
  static const char *const nums[] = {"0", "1", "2", "3", "12", "1.5", ".5", "1e-3", "1e2", "7e+1"};
  static const char *const spreads[] = {"xy->xy*", "->0", "i->i:3(12)", "xz->x0z", "ab->**",
                                        "\xc3\xa9->\xc3\xa9"};
  static const char *const consts[] = {"inf", "nan", "pi", "true", "false"};
  if (strcmp(class, "NAME") == 0) put(t, names[draw(0, 11)]);
  else if (strcmp(class, "NUM") == 0) put(t, nums[draw(0, 9)]);
  else if (strcmp(class, "INT") == 0) put(t, nums[draw(0, 4)]);
  else if (strcmp(class, "CONST") == 0) put(t, consts[draw(0, 4)]);
  else if (strcmp(class, "EOL") == 0) put(t, chance(60) ? "\n" : chance(50) ? ";" : "\r\n");
  else if (strcmp(class, "MONOID") == 0) put(t, "total");
  else if (strcmp(class, "OPERATOR") == 0) put(t, "halve");
  else if (strcmp(class, "FUNCTION") == 0) put(t, chance(50) ? "twice" : "sq");
  else if (strcmp(class, "SPREAD") == 0) put(t, spreads[draw(0, 5)]);
  else if (strcmp(class, "LETTER") == 0) put(t, names[draw(0, 7)]);
  else orc_die(class);
}

static void derive(tokens *t, int at_part, int left) {
  const part *p = &parts[at_part];
  int ways[64], n = 0;
  switch (p->kind) {
    case WORD: put(t, p->text); return;
    case RULE:
      if (rule_part[p->rule] < 0) put_token(t, rule_name[p->rule]);
      else derive(t, rule_part[p->rule], left - 1);
      return;
    case SEQ:
      for (int k = p->first; k >= 0; k = parts[k].next) derive(t, k, left);
      return;
    case ALT:  // what fits, else what is shortest
      for (int k = p->first; k >= 0; k = parts[k].next)
        if (parts[k].depth <= (left > p->depth ? left : p->depth) && n < 64) ways[n++] = k;
      derive(t, ways[draw(0, n - 1)], left);
      return;
    default:
      for (int k = 0; k < (p->kind == REPEAT ? 4 : 1) && chance(55); k++) {
        if (parts[p->first].depth > left) return;
        derive(t, p->first, left);
      }
  }
}

// Tokens with spaces between them, but after the start of a name ("cast_") and of what is one word
// in an expression string. where: token whose position is wanted.
static size_t join(const tokens *t, char *text, size_t size, int where, int *line, int *column) {
  size_t n = 0;
  int row = 1, col = 1, depth = 0;
  for (int k = 0; k < t->n; k++) {
    const char *s = t->text[k];
    if (k == where) *line = row, *column = col;
    if (n + 32 > size) break;
    for (const char *c = s; *c; c++) {
      text[n++] = *c;
      col += ((unsigned char)*c & 0xc0) != 0x80;
      if (*c == '\n') row++, col = 1;
    }
    depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
    if (s[strlen(s) - 1] == '_' && strlen(s) > 1) continue;
    if (chance(90)) text[n++] = ' ', col++;
    else if (depth > 0 && chance(20)) text[n++] = '\n', row++, col = 1;
    else text[n++] = '\t', col++;
  }
  text[n] = 0;
  return n;
}

// ---- parsing ------------------------------------------------------------------------------------

static const char prelude[] = "input A[n=3,k=4], B[k,i=2], x[n] : f64 ; param p = 2\n"
                              "def sq(u) = u*u ; T[i,j] = A[i,k]*B[k,j]\n";

// Mistakes that parsing finds though the grammar allows them: its static rules and its comments say
// why. What follows such a mistake in a statement that goes over several lines is not judged.
static int is_static(const char *message) {
  static const char *const rules[] = {
      "is not affine", "takes 1 argument", "takes 2 arguments", "takes 3 arguments",
      "names after wrt", "true and false have no sign", "an integer of 64 bits is needed",
      "takes one expression", "an extent is an int64", "occurs twice"};
  for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
    if (strstr(message, rules[k]) != NULL) return 1;
  return 0;
}

static int64_t columns_of(const char *text, int line) {
  int64_t n = 1;
  for (; *text && line > 1; text++) line -= *text == '\n';
  for (; *text && *text != '\n'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return line == 1 ? n : 0;
}

typedef struct outcome {
  long derived, good, broken, noticed;
} outcome;

// Parses; every mistake has a place in the text. Returns the status.
static ein_status parse(ein_ctx *ctx, const char *text, int from_grammar) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.length = strlen(text);
  ein_status st = ein_graph_parse(ctx, &d, &g);
  int ok = (st == EIN_OK) == (g != NULL), broken = 0;
  const ein_error *e;
  for (int k = 0; st != EIN_OK && (e = ein_ctx_error(ctx, k)) != NULL; k++) {
    ok &= e->line >= 1 && e->column >= 1 && e->column <= columns_of(text, e->line) &&
          e->message[0] != 0;
    broken |= is_static(e->message);
    if (from_grammar && e->status == EIN_ERR_SYNTAX) ok &= broken;
  }
  ok &= st == EIN_OK || ein_ctx_error(ctx, 0) != NULL;
  CHECK(ok);
  if (!ok) printf("%s\n---\n%s\n", text, ein_ctx_message(ctx));
  ein_graph_destroy(g);
  return st;
}

static void one_text(ein_ctx *ctx, int program, outcome *o) {
  static char text[1 << 16];
  static tokens t;
  int line = 0, column = 0;
  size_t n = 0;
  t.n = 0;
  if (chance(60)) n = (size_t)snprintf(text, sizeof text, "%s", prelude);
  derive(&t, program, (int)draw(4, 40));
  if (t.n >= 1024) return;
  join(&t, text + n, sizeof text - n, -1, &line, &column);
  o->derived++;
  o->good += parse(ctx, text, 1) == EIN_OK;
  if (t.n == 0) return;
  // A token that is none, at a place that is known; then tokens lost, doubled and taken for others.
  tokens whole = t;
  int k = (int)draw(0, t.n - 1);
  snprintf(t.text[k], sizeof t.text[0], "%s", chance(50) ? "$" : "@");
  join(&t, text + n, sizeof text - n, k, &line, &column);
  if (n > 0) line += 2;
  o->broken++;
  ein_status st = parse(ctx, text, 0);
  int found = 0;
  const ein_error *e;
  for (int i = 0; st != EIN_OK && (e = ein_ctx_error(ctx, i)) != NULL; i++)
    found |= (e->status == EIN_ERR_SYNTAX && e->line == line && e->column == column) ||
             is_static(e->message);
  CHECK(st != EIN_OK && found);
  if (!found)
    printf("%s\n---\nno mistake at %d:%d\n%s\n", text, line, column, ein_ctx_message(ctx));
  o->noticed += st != EIN_OK;
  for (int way = 0; way < 3; way++) {
    t = whole;
    k = (int)draw(0, t.n - 1);
    if (way == 0) {
      memmove(t.text[k], t.text[k + 1], (size_t)(t.n - k - 1) * sizeof t.text[0]);
      t.n--;
    } else {
      memcpy(t.text[k], t.text[way == 1 && k > 0 ? k - 1 : draw(0, t.n - 1)], sizeof t.text[0]);
    }
    join(&t, text + n, sizeof text - n, -1, &line, &column);
    o->broken++;
    o->noticed += parse(ctx, text, 0) != EIN_OK;
  }
}

// ---- expression strings -------------------------------------------------------------------------

// Derived strings, with operands of their ranks: a syntax error only where "..." stands twice.
static void one_string(ein_ctx *ctx, int rule) {
  static tokens t;
  char text[256] = "";
  double data[1] = {0};
  const int64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  ein_ztensor in[8], out;
  int nin = 0, output = 0, dots = 0, label = 0, more_dots = 0;
  memset(in, 0, sizeof in);
  t.n = 0;
  derive(&t, rule, 8);
  for (int k = 0; k <= t.n; k++) {
    const char *s = k < t.n ? t.text[k] : ",";
    if (*s == ',' || *s == '-') {
      if (nin == 8 || label > 12) return;
      if (!output) in[nin].rank = label, nin++;
      more_dots |= dots > 1;
      dots = label = 0;
      output |= *s == '-';
    } else if (*s == '.') {
      dots++;
    } else {
      label++;
    }
    if (k < t.n) strcat(strcat(text, s), chance(30) ? " " : "");
    if (strlen(text) > 200) return;
  }
  for (int k = 0; k < nin; k++) {
    in[k].dtype = EIN_F64;
    in[k].shape = ones;
    in[k].data = data;
  }
  memset(&out, 0, sizeof out);
  out.dtype = EIN_F64;
  out.shape = ones;
  out.data = data;
  ein_status st = ein_einsum(ctx, text, nin, in, &out);
  const ein_error *e = st == EIN_OK ? NULL : ein_ctx_error(ctx, 0);
  int ok = st != EIN_ERR_SYNTAX || more_dots;
  CHECK(ok);
  if (!ok) printf("'%s': %s\n", text, e == NULL ? "" : e->message);
}

static void twice(int64_t n, const void *const *in, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = 2 * ((const double *)in[0])[i];
}

static ein_status halve(const int64_t *size, const void *const *in, void *const *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < size[0]; i++)
    ((double *)out[0])[i] = ((const double *)in[0])[i] / 2;
  return EIN_OK;
}

static void total(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)acc[0])[i] += ((const double *)more[0])[i];
}

// Names in the texts of macros mean what the macros say, whatever is registered; names outside mean
// what is registered.
static void test_macro_names(void) {
  static const char *const names[] = {"e", "d", "x", "g", "b", "eps", "j"};
  static const char *const calls[] = {
      "softmax[k](A[i,k])", "logsoftmax[k](A[i,k])", "layernorm[k](A[i,k], w[k], v[k])",
      "rmsnorm[k](A[i,k], w[k])", "rmsnorm[k](A[i,k], w[k], 0.5)",
      "norm[k](A[i,k])", "eps(A[i,k])"};
  ein_ctx *ctx;
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  for (int i = 0; i < 7; i++) {
    ein_function fn = {"", 1, EIN_F64, twice, NULL};
    fn.name = names[i];
    CHECK(ein_ctx_function(ctx, &fn) == EIN_OK);
  }
  for (int i = 0; i < 7; i++) {
    char text[128], plain[2048], named[2048];
    ein_program_desc d;
    ein_graph *g = NULL, *h = NULL;
    memset(&d, 0, sizeof d);
    snprintf(text, sizeof text, "input A[2,3], w[3], v[3]\nY[i%s] = %s\n", i == 5 ? "" : ",k",
             calls[i]);
    d.text = text;
    ein_status st = ein_graph_parse(NULL, &d, &g);
    CHECK(ein_graph_parse(ctx, &d, &h) == EIN_OK && (st == EIN_OK) == (i < 6));
    if (i == 6) CHECK(st == EIN_ERR_NAME);
    if (g != NULL && h != NULL) {
      CHECK(ein_graph_print(g, plain, sizeof plain) < sizeof plain);
      CHECK(ein_graph_print(h, named, sizeof named) < sizeof named && strcmp(plain, named) == 0);
    }
    ein_graph_destroy(g);
    ein_graph_destroy(h);
  }
  ein_ctx_destroy(ctx);
}

int main(int argc, char **argv) {
  long texts = argc > 2 ? atol(argv[2]) : FEW(6000);
  static const ein_function fn = {"twice", 1, EIN_F64, twice, NULL};
  static const ein_monoid mo = {"total", 1, EIN_F64, {0, 0, 0, 0}, 0, NULL, total, NULL, 0, NULL};
  static const ein_operator op = {"halve", "(n)->(n)", EIN_F64, halve, NULL, NULL, NULL};
  outcome o = {0, 0, 0, 0};
  ein_ctx *ctx;
  read_grammar(argc > 1 ? argv[1] : "tests/grammar.ebnf");
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  CHECK(ein_ctx_function(ctx, &fn) == EIN_OK && ein_ctx_monoid(ctx, &mo) == EIN_OK);
  CHECK(ein_ctx_operator(ctx, &op) == EIN_OK);
  int program = rule_part[rule_of("program", 7)], string = rule_part[rule_of("string", 6)];
  CHECK(program >= 0 && string >= 0 && parts[program].depth < FAR);
  for (long k = 0; k < texts && failures < 10; k++) one_text(ctx, program, &o);
  for (long k = 0; k < texts && failures < 10; k++) one_string(ctx, string);
  ein_ctx_destroy(ctx);
  test_macro_names();
  printf("%ld texts derived, %ld of them good; %ld broken, %ld mistakes noticed\n", o.derived,
         o.good, o.broken, o.noticed);
  CHECK(o.good > texts / 100 && o.good < o.derived);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
