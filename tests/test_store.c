// The tuning store: what was tuned is found again from every spelling, near sizes and functional
// operands; hostile texts change no result and never crash; stores merge without loss; every
// allocation may fail.
//
//   test_store [spellings [texts [seed]]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

enum { OPERANDS = 5, LABELS = 8, RANK = 4, ROOM = 1 << 13 };

typedef struct product {  // of operands of f64 with small whole numbers: every order is exact
  int nin, nout, rank[OPERANDS], label[OPERANDS][RANK], out[RANK];
  int64_t extent[LABELS], shape[OPERANDS + 1][RANK];
  char expr[128];
  ein_ztensor in[OPERANDS], view;
  double data[OPERANDS][256], result[256];
} product;

static void spell(product *p, const char *letters) {
  char *s = p->expr;
  for (int k = 0; k <= p->nin; k++) {
    const int out = k == p->nin, rank = out ? p->nout : p->rank[k];
    if (k > 0) s += sprintf(s, out ? "->" : ",");
    for (int r = 0; r < rank; r++) {
      const int c = out ? p->out[r] : p->label[k][r];
      *s++ = letters[c];
      p->shape[k][r] = p->extent[c];
    }
    *s = 0;
    *(out ? &p->view : &p->in[k]) =
        ein_tensor(EIN_F64, rank, p->shape[k], out ? p->result : p->data[k]);
  }
}

static void random_product(product *p) {
  int used[LABELS] = {0};
  memset(p, 0, sizeof *p);
  p->nin = (int)draw(2, OPERANDS);
  for (int c = 0; c < LABELS; c++) p->extent[c] = draw(1, 4);
  for (int k = 0; k < p->nin; k++) {
    p->rank[k] = (int)draw(1, 3);
    for (int r = 0; r < p->rank[k]; r++) {
      for (int again = 1; again;) {
        p->label[k][r] = (int)draw(0, LABELS - 1);
        again = 0;
        for (int q = 0; q < r; q++) again |= p->label[k][q] == p->label[k][r];
      }
      used[p->label[k][r]] = 1;
    }
    for (int i = 0; i < 256; i++) p->data[k][i] = (double)draw(-3, 3);
  }
  for (int c = 0; c < LABELS && p->nout < 3; c++)
    if (used[c] && chance(30)) p->out[p->nout++] = c;
  spell(p, "abcdefgh");
}

// The same with other letters, its operands in another order.
static void respell(const product *p, product *q) {
  char letters[LABELS + 1] = "hgfedcba";
  int at[OPERANDS];
  *q = *p;
  for (int k = 0; k < p->nin; k++) at[k] = k;
  for (int k = p->nin - 1; k > 0; k--) {
    const int j = (int)draw(0, k), x = at[k];
    at[k] = at[j];
    at[j] = x;
  }
  for (int c = LABELS - 1; c > 0; c--) {
    const int j = (int)draw(0, c);
    const char x = letters[c];
    letters[c] = letters[j];
    letters[j] = x;
  }
  for (int k = 0; k < p->nin; k++) {
    q->rank[k] = p->rank[at[k]];
    memcpy(q->label[k], p->label[at[k]], sizeof q->label[k]);
    memcpy(q->data[k], p->data[at[k]], sizeof q->data[k]);
  }
  spell(q, letters);
}

static void random_path(int n, char *s) {
  for (*s = 0; n > 1; n--) {
    const int a = (int)draw(0, n - 2), b = (int)draw(a + 1, n - 1);
    s += sprintf(s, "(%d,%d)", a, b);
  }
}

static ein_ctx *context(const char *store, const char *machine) {
  ein_ctx_desc d;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  d.store = store;
  d.store_bytes = store == NULL ? 0 : strlen(store);
  d.machine = machine;
  if (ein_ctx_create(&d, &ctx) != EIN_OK) exit(1);
  return ctx;
}

static ein_plan *plan_of(ein_ctx *ctx, const product *p, const char *path, const char *map) {
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  d.expr = p->expr;
  d.nin = p->nin;
  d.in = p->in;
  d.out = &p->view;
  d.map = map;
  d.options.path = path;
  if (ein_plan_create(ctx, &d, &plan) != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  return plan;
}

// What the plan says of the store: 'e' exact, 'n' nearest, 'E' and 'N' of the plain contraction,
// 0 nothing.
static int said(const ein_plan *plan) {
  static char text[1 << 16];
  ein_plan_explain(plan, text, sizeof text);
  const char *s = strstr(text, "\nstore: ");
  if (s == NULL) return 0;
  const char *end = strchr(s + 1, '\n'), *how = strchr(s + 8, ':') + 2, *ideal = strstr(s, "plain");
  return *how - (ideal != NULL && ideal < end ? 32 : 0);
}

// Equal as numbers: -0 is 0.
static int same(const product *p, const product *q) {
  int equal = 1;
  for (int i = 0; i < 256; i++) equal &= p->result[i] - q->result[i] == 0;
  return equal;
}

static void run_plan(const ein_plan *plan, product *p) {
  const void *in[OPERANDS];
  void *out[1] = {p->result};
  ein_run r;
  memset(&r, 0, sizeof r);
  memset(p->result, 0, sizeof p->result);
  for (int k = 0; k < p->nin; k++) in[k] = p->data[k];
  r.in = in;
  r.out = out;
  CHECK(ein_plan_execute(plan, &r) == EIN_OK);
}

// What runs: of each statement its kernel and the extents of its indices, without names.
static void runs(const ein_plan *plan, char *to) {
  static char json[1 << 16];
  ein_plan_json(plan, json, sizeof json);
  *to = 0;
  for (const char *s = json; (s = strstr(s, "\"indices\": {")) != NULL; s++) {
    for (const char *c = strchr(s, '{'); *c != '}'; c++)
      if (*c == ':') to += sprintf(to, "%d,", atoi(c + 1));
    const char *k = strstr(s, "\"kernels\": ");
    to += sprintf(to, "%.*s;", (int)strcspn(k, "]"), k);
  }
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The points of statements, ascending, then 0: the steps of a path, in any order of indices.
static void points(const ein_plan *plan, double *to) {
  char text[ROOM];
  int n = 0;
  runs(plan, text);
  for (const char *s = text; *s != 0; s = strchr(s, ';') + 1) {
    double all = 1;
    for (; *s != '"'; s = strchr(s, ',') + 1) all *= atof(s);
    to[n++] = all;
  }
  qsort(to, (size_t)n, sizeof *to, by_value);
  to[n] = 0;
}

static size_t record(ein_ctx *ctx, const product *p, const char *path, char *line) {
  ein_plan *plan = plan_of(ctx, p, path, NULL);
  const size_t n = plan == NULL ? 0 : ein_plan_store(plan, 1e-6, 2e-6, line, ROOM);
  ein_plan_destroy(plan);
  return n;
}

// A path that is recorded for one spelling is that of every other, and results stay.
static void test_spellings(int count) {
  static const char *const head = "einsum store 1\n";
  for (int i = 0; i < count; i++) {
    product p, q;
    char path[64], line[ROOM], again[ROOM], text[ROOM + 32], ran[ROOM], other[ROOM];
    random_product(&p);
    random_path(p.nin, path);
    ein_ctx *ctx = context("", "m");
    ein_plan *plan = plan_of(ctx, &p, path, NULL);
    ein_plan *plain = plan_of(NULL, &p, path, NULL);
    double steps[64] = {0}, same_steps[64] = {0};
    points(plan, steps);
    points(plain, same_steps);
    CHECK(memcmp(steps, same_steps, sizeof steps) == 0);  // the path is that of the text
    ein_plan_destroy(plain);
    runs(plan, ran);
    CHECK(ein_plan_store(plan, 1e-6, 2e-6, line, sizeof line) > 0);
    run_plan(plan, &p);
    ein_plan_destroy(plan);
    snprintf(text, sizeof text, "%s%s", head, line);
    CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK);
    for (int k = 0; k < 3; k++) {
      respell(&p, &q);
      plan = plan_of(ctx, &q, NULL, NULL);
      CHECK(said(plan) == 'e');
      CHECK(ein_plan_store(plan, 1e-6, 2e-6, again, sizeof again) > 0);
      // A path much worse than the one found is not taken: then there is none.
      runs(plan, other);
      if (strstr(again, "\tauto\t") == NULL)
        CHECK(strcmp(line, again) == 0 && strcmp(ran, other) == 0);
      run_plan(plan, &q);
      CHECK(same(&p, &q));
      ein_plan_destroy(plan);
      if (failures <= 3) continue;
      printf("%s (%s) as %s\n%s%s%s\n%s\n", p.expr, path, q.expr, line, again, ran, other);
      exit(1);
    }
    ein_ctx_destroy(ctx);
  }
}

static product chain(int64_t i, int64_t j, int64_t k, int64_t l) {
  product p;
  const int64_t extent[] = {i, j, k, l};
  memset(&p, 0, sizeof p);
  p.nin = 3;
  p.nout = 2;
  for (int x = 0; x < 3; x++) p.rank[x] = 2, p.label[x][0] = x, p.label[x][1] = x + 1;
  p.out[1] = 3;
  memcpy(p.extent, extent, sizeof extent);
  for (int x = 0; x < 3; x++)
    for (int y = 0; y < 256; y++) p.data[x][y] = (double)draw(-3, 3);
  spell(&p, "ijkl");
  return p;
}

// A product's views point into it.
static int says(ein_ctx *ctx, product p, const char *path, const char *map) {
  spell(&p, "ijkl");
  ein_plan *plan = plan_of(ctx, &p, path, map);
  const int s = plan == NULL ? -1 : said(plan);
  ein_plan_destroy(plan);
  return s;
}

static void test_lookup(void) {
  char line[ROOM], text[ROOM + 64];
  product p = chain(4, 6, 8, 2);
  spell(&p, "ijkl");
  ein_ctx *ctx = context("", "this");
  ein_store_info info;
  CHECK(record(ctx, &p, "(1,2)(0,1)", line) > 0);
  snprintf(text, sizeof text, "einsum store 1\nbroken\n%s", line);
  CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK);
  CHECK(ein_ctx_store_info(ctx, &info) && info.records == 1 && info.mine == 1 &&
        info.skipped == 1 && info.line == 2);
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, NULL) == 'e');
  CHECK(says(ctx, chain(4, 6, 8, 2), "auto", NULL) == 'e');
  CHECK(says(ctx, chain(4, 6, 8, 2), "greedy", NULL) == 0);
  CHECK(says(ctx, chain(4, 6, 8, 3), NULL, NULL) == 'n');
  CHECK(says(ctx, chain(8, 3, 4, 4), NULL, NULL) == 'n');
  CHECK(says(ctx, chain(9, 6, 8, 2), NULL, NULL) == 0);
  CHECK(says(ctx, chain(0, 6, 8, 2), NULL, NULL) == 0);
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, "exp(x0)*x1*(2*x2+1)") == 'E');
  CHECK(says(ctx, chain(4, 6, 8, 3), NULL, "exp(x0)*x1*(2*x2+1)") == 'N');
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, "exp(x0+x1+x2)") == 0);

  ein_einsum_desc d;  // what asks nothing, and what is of another form
  ein_plan *plan;
  memset(&d, 0, sizeof d);
  d.expr = p.expr;
  d.nin = 3;
  d.in = p.in;
  d.out = &p.view;
  for (int k = 0; k < 4; k++) {
    memset(&d.options, 0, sizeof d.options);
    d.options.deterministic = k == 0;
    d.options.memory = k == 1 ? 1 << 20 : 0;
    d.alpha.set = k == 2;
    d.alpha.re = 2;
    int64_t stride[] = {1, 4};
    ein_ztensor in[3] = {p.in[0], p.in[1], p.in[2]};
    if (k == 3) in[0].strides = stride, d.in = in;
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
    CHECK(said(plan) == (k == 2 ? 'E' : 0));
    CHECK((ein_plan_store(plan, 1, 1, NULL, 0) > 0) == (k >= 2));
    ein_plan_destroy(plan);
  }
  ein_ctx_destroy(ctx);
  ctx = context(text, "other");
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, NULL) == 0);
  CHECK(ein_ctx_store_info(ctx, &info) && info.records == 1 && info.mine == 0);
  ein_ctx_destroy(ctx);
  ctx = context(text, NULL);
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, NULL) == 'e');
  CHECK(ein_ctx_store(ctx, NULL, 0) == EIN_OK && !ein_ctx_store_info(ctx, &info));
  CHECK(says(ctx, chain(4, 6, 8, 2), NULL, NULL) == 0);
  ein_ctx_destroy(ctx);
}

static ein_graph *parse(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.length = strlen(text);
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  return g;
}

// A statement measured alone is found in its program, and so is an expression.
static void test_programs(void) {
  static const char *const program =
      "input A[4,6], B[6,8], C[8,2] : f64\n"
      "T[l,i] = sum[j,k](C[k,l] * A[i,j] * B[j,k])\n"
      "U[i,l] = sum[j,k](tanh(A[i,j]) * B[j,k] * C[k,l]) + 1\n"
      "output T, U\n";
  char text[3 * ROOM] = "einsum store 1\n", line[ROOM];
  ein_ctx *ctx = context("", NULL);
  ein_graph *g = parse(ctx, program), *alone;
  ein_plan *plan;
  ein_options o;
  memset(&o, 0, sizeof o);
  o.path = "greedy";
  CHECK(ein_graph_statement(ctx, g, -1, &alone) == EIN_ERR_ARGUMENT && alone == NULL);
  CHECK(ein_graph_statement(ctx, g, ein_graph_statements(g), &alone) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_statement(ctx, g, 0, &alone) == EIN_OK);
  CHECK(ein_plan_graph(ctx, alone, 0, NULL, &o, &plan) == EIN_OK);
  CHECK(ein_plan_store(plan, 1e-6, 1e-6, line, sizeof line) > 0);
  strcat(text, line);
  ein_plan_destroy(plan);
  ein_graph_destroy(alone);
  product p = chain(4, 6, 8, 2);
  spell(&p, "ijkl");
  CHECK(record(ctx, &p, "none", line) > 0);
  strcat(text, line);
  CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK);
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  CHECK(ein_plan_store(plan, 1e-6, 1e-6, line, sizeof line) > 0);  // of the whole program
  CHECK(strncmp(strchr(line, 9), "\tprogram of ", 12) == 0);
  static char json[1 << 16];
  ein_plan_json(plan, json, sizeof json);
  const char *t = strstr(json, "\"store\": [{\"out\": \"T\", \"match\": \"exact\", "
                               "\"idealised\": false");
  CHECK(t != NULL && strstr(t, "\"match\": \"exact\", \"idealised\": true") != NULL);
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// A program of n small products; spelling 1 has other names, orders of operands, indices and
// statements. change: of the extents of one of them.
static const char *products_text(int n, int spelling, int change) {
  static char text[1 << 14];
  char *at = text;
  for (int i = 0; i < n; i++) {
    const int k = spelling ? n - 1 - i : i, m = 3 + (k == 4 ? change : 0);
    if (spelling)
      at += sprintf(at, "input y%d[4,5], x%d[%d,4]\nz%d[u,v] = sum[w](y%d[w,v]*x%d[u,w])\n", k, k,
                    m, k, k, k);
    else
      at += sprintf(at, "input A%d[%d,4], B%d[4,5]\nC%d[i,j] = A%d[i,k]*B%d[k,j]\n", k, m, k, k, k,
                    k);
  }
  at += sprintf(at, "output ");
  for (int k = 0; k < n; k++)
    at += sprintf(at, "%s%c%d", k > 0 ? ", " : "", spelling ? 'z' : 'C', k);
  return text;
}

static ein_graph *products(ein_ctx *ctx, int n, int spelling, int change) {
  return parse(ctx, products_text(n, spelling, change));
}

// The products with one input for two of them: other programs with the same statements.
static ein_graph *products_sharing(ein_ctx *ctx, int n) {
  static char text[1 << 14];
  snprintf(text, sizeof text, "%s", products_text(n, 0, 0));
  char *at = strstr(text, "= A1[");
  CHECK(at != NULL);
  if (at != NULL) at[3] = '0';
  return parse(ctx, text);
}

// Is a task of the plan more than one statement? found: what a store said, how often.
static int grouped(ein_ctx *ctx, const ein_graph *g, const ein_options *o, char *line, int *found) {
  static char json[1 << 16];
  ein_plan *plan = NULL;
  CHECK(ein_plan_graph(ctx, g, 0, NULL, o, &plan) == EIN_OK);
  ein_plan_json(plan, json, sizeof json);
  if (line != NULL) CHECK(ein_plan_store(plan, 1e-6, 2e-6, line, ROOM) > 0);
  *found = strstr(json, "\"store\": [{\"out\": null, \"match\": \"exact\"") != NULL;
  ein_plan_destroy(plan);
  return strstr(json, "\"group\": 0") != NULL;
}

// That a program is faster one by one is a record that its other spellings find, and no others.
static void test_groups(void) {
  char text[ROOM + 32] = "einsum store 1\n", line[ROOM];
  ein_ctx *ctx = context("", NULL);
  ein_options o;
  int found;
  memset(&o, 0, sizeof o);
  ein_graph *g = products(ctx, 10, 0, 0), *h = products(ctx, 10, 1, 0);
  ein_graph *other = products(ctx, 10, 1, 1), *shared = products_sharing(ctx, 10);
  CHECK(grouped(ctx, g, NULL, line, &found) && !found && strstr(line, "\tauto\t-\t") != NULL);
  o.ungrouped = 1;
  CHECK(!grouped(ctx, g, &o, line, &found) && strstr(line, "\tauto\tungrouped\t") != NULL);
  strcat(text, line);
  CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK);
  CHECK(!grouped(ctx, g, NULL, NULL, &found) && found);
  CHECK(!grouped(ctx, h, NULL, NULL, &found) && found);
  CHECK(grouped(ctx, other, NULL, NULL, &found) && !found);
  CHECK(grouped(ctx, shared, NULL, NULL, &found) && !found);
  o.ungrouped = 0;
  o.deterministic = 1;
  CHECK(grouped(ctx, g, &o, NULL, &found) && !found);
  ein_graph_destroy(g);
  ein_graph_destroy(h);
  ein_graph_destroy(other);
  ein_graph_destroy(shared);
  ein_ctx_destroy(ctx);
}

static size_t merged(int n, const char *const *text, char *buf, size_t size) {
  size_t bytes[4], length = 0;
  for (int k = 0; k < n; k++) bytes[k] = strlen(text[k]);
  CHECK(ein_store_merge(NULL, n, text, bytes, buf, size, &length) == EIN_OK);
  if (length < size) buf[length] = 0;
  return length;
}

static void test_merge(void) {
  static const char *const a = "lost\neinsum store 1: fields\n# note\n"
                               "m\tf\tf64->f64\t3,4\tauto\t-\t5\t6\nbad line\n"
                               "m\tf\tf64->f64\t3,5\tauto\t-\t5\t6\n"
                               "einsum store 2\nm\tf\tnew\n\nodd";
  static const char *const b = "einsum store 1\nm\tf\tf64->f64\t3,4\tnone\tcpu:x\t4\t6\n"
                               "n\tf\tf64->f64\t3,4\tauto\t-\t5\t6\nbad line";
  const char *both[] = {a, b, NULL};
  char one[1024], two[1024], small[10];
  const size_t n = merged(2, both, one, sizeof one);
  CHECK(n < sizeof one);
  CHECK(strncmp(one, "lost\neinsum store 1", 19) == 0);
  CHECK(strstr(one, "3,4\tauto\t-\t5\t6\nm\tf\tf64->f64\t3,5") == NULL);
  CHECK(strstr(one, "3,4\tnone\tcpu:x\t4\t6\nm\tf\tf64->f64\t3,5\tauto\t-\t5\t6\nn\tf\t") != NULL);
  CHECK(strstr(one, "# note\nbad line\neinsum store 2\nm\tf\tnew\n\nodd\n") != NULL);
  const size_t none = merged(0, NULL, two, sizeof two);  // to which records may be added
  CHECK(strncmp(two, "einsum store 1", 14) == 0 && two[none - 1] == '\n');
  snprintf(two + none, sizeof two - none, "m\tf\tf64->f64\t3,4\tauto\t-\t5\t6\n");
  const char *added[] = {two};
  CHECK(merged(1, added, small, 0) == strlen(two));
  const char *again[] = {one, a, b};
  CHECK(merged(1, again, two, sizeof two) == n && strcmp(one, two) == 0);
  CHECK(merged(3, again, two, sizeof two) == n && strcmp(one, two) == 0);
  CHECK(merged(2, both, small, sizeof small) == n);
  // A line with an empty field is no record: both are kept as they are.
  const char *const empty = "einsum store 1\nm\tf\t\t3,4\tauto\t-\t5\t6\n"
                            "m\tf\t\t3,4\tauto\t-\t4\t6\n";
  merged(1, &empty, one, sizeof one);
  CHECK(strcmp(strchr(one, '\n'), strchr(empty, '\n')) == 0);
}

// Damage to a text, of any kind.
static size_t damage(char *s, size_t n) {
  for (int64_t k = draw(1, 6); k > 0; k--) {
    const size_t at = (size_t)draw(0, (int64_t)n - 1);
    static const char *const bits[] = {"\t", "\n", "(0,0)", "(99999999999)", "none", "-", "9", ",",
                                       "einsum store 1\n", "einsum store 9\n", "(0) (0) (0)"};
    const char *bit = bits[draw(0, 10)];
    const size_t more = strlen(bit);
    if (chance(40)) {
      s[at] = (char)draw(0, 255);
    } else if (chance(30) && n > 40) {
      memmove(s + at, s + at + 1, n - at - 1);
      n--;
    } else if (n + more < ROOM) {
      memmove(s + at + more, s + at, n - at);
      memcpy(s + at, bit, more);
      n += more;
    }
  }
  return n;
}

static void test_hostile(int count) {
  for (int i = 0; i < count; i++) {
    product p, q;
    char path[64], line[ROOM], *text = (char *)malloc(2 * ROOM);
    random_product(&p);
    q = p;
    spell(&q, "abcdefgh");
    random_path(p.nin, path);
    ein_ctx *ctx = context("", NULL);
    size_t n = 0, length, fields = 0;
    CHECK(record(ctx, &p, path, line) > 0);
    // Half of them well formed but for the path or the variant.
    for (char *s = line; *s != 0 && fields < 4; s++) fields += *s == '\t';
    if (chance(50)) {
      static const char *const paths[] = {"(0)", "(0,1,2,3,4,5,6)", "(7,8)", "(0,1)", "none",
                                          "(0) (0) (0) (0)", "(0,", "()", "(0,1) (0,1) (0,1)",
                                          "(99999999999999999999,1)", "auto", "(1,0) (1,0)"};
      char *at = line;
      for (fields = 0; fields < 4; at++) fields += *at == '\t';
      sprintf(at, "%s\t%s\t5\t6\n", paths[draw(0, 11)], chance(50) ? "-" : "cpu:none such");
    }
    n = (size_t)sprintf(text, "einsum store 1\n%s", line);
    if (chance(70)) n = damage(text, n);
    char *exact = (char *)malloc(n);  // so that reading past it is seen
    memcpy(exact, text, n);
    CHECK(ein_ctx_store(ctx, exact, n) == EIN_OK);
    const char *const one = exact;
    char *out = (char *)malloc(4 * ROOM);
    CHECK(ein_store_merge(ctx, 1, &one, &n, out, 4 * ROOM, &length) == EIN_OK);
    const char *const two = out;
    size_t size = length;
    CHECK(ein_store_merge(ctx, 1, &two, &size, NULL, 0, &length) == EIN_OK && length == size);
    ein_plan *plan = plan_of(ctx, &p, NULL, NULL), *plain = plan_of(NULL, &q, NULL, NULL);
    CHECK(plan != NULL && plain != NULL);
    if (plan != NULL && plain != NULL) {
      run_plan(plan, &p);
      run_plan(plain, &q);
      CHECK(same(&p, &q));
    }
    ein_plan_destroy(plan);
    ein_plan_destroy(plain);
    ein_ctx_destroy(ctx);
    free(text);
    free(exact);
    free(out);
  }
}

// A path that is one, and a hundred times worse than another, is not taken.
static void test_worse(void) {
  char line[ROOM], text[ROOM + 32];
  product p = chain(200, 201, 202, 203);
  spell(&p, "ijkl");
  ein_ctx *ctx = context("", NULL);
  CHECK(record(ctx, &p, "none", line) > 0);
  snprintf(text, sizeof text, "einsum store 1\n%s", line);
  CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK);
  ein_plan *plan = plan_of(ctx, &p, NULL, NULL);
  ein_plan_info info;
  CHECK(said(plan) == 'e' && ein_plan_info_get(plan, &info) == EIN_OK && info.flops < 1e8 &&
        strcmp(info.method, "store") != 0 && strcmp(info.method, "none") != 0);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
}

// Calls of one ctx see a new store: plans in the cache are dropped.
static void test_cache(void) {
  product p = chain(4, 6, 8, 2), q = p;
  char line[ROOM], text[ROOM + 32];
  spell(&p, "ijkl");
  spell(&q, "ijkl");
  ein_ctx *ctx = context("", NULL);
  CHECK(ein_einsum(ctx, p.expr, 3, p.in, &p.view) == EIN_OK);
  CHECK(record(ctx, &p, "(1,2)(0,1)", line) > 0);
  snprintf(text, sizeof text, "einsum store 1\n%s", line);
  CHECK(ein_ctx_store(ctx, text, strlen(text)) == EIN_OK && ctx->cache->n == 0);
  for (int k = 0; k < 2; k++) CHECK(ein_einsum(ctx, q.expr, 3, q.in, &q.view) == EIN_OK);
  CHECK(ctx->cache->n == 1 && said(ctx->cache->entry[0].plan) == 'e');
  CHECK(same(&p, &q));
  ein_ctx_destroy(ctx);
}

static ein_status whole(const ein_ctx_desc *d, const char *map) {
  product p = chain(2, 3, 4, 2);
  ein_ctx *ctx = NULL;
  ein_plan *plan = NULL;
  ein_einsum_desc e;
  size_t length;
  spell(&p, "ijkl");
  memset(&e, 0, sizeof e);
  e.expr = p.expr;
  e.nin = 3;
  e.in = p.in;
  e.out = &p.view;
  e.map = map;
  ein_status st = ein_ctx_create(d, &ctx);
  if (st == EIN_OK) st = ein_plan_create(ctx, &e, &plan);
  if (st == EIN_OK) CHECK(said(plan) == (map == NULL ? 'e' : 'E'));
  if (st == EIN_OK)
    st = ein_store_merge(ctx, 1, &d->store, &d->store_bytes, NULL, 0, &length);
  ein_plan_destroy(plan);
  ein_ctx_destroy(ctx);
  return st;
}

// Every allocation of a merge of many odd lines fails once: a status, and nothing is left out.
// A program that the store is asked about, whichever allocation fails.
static void test_groups_memory(void) {
  char text[ROOM + 32] = "einsum store 1\n", line[ROOM];
  counter c = {0, -1, 0};
  ein_ctx_desc d;
  int found;
  ein_options o;
  memset(&o, 0, sizeof o);
  o.ungrouped = 1;
  ein_ctx *ctx = context("", NULL);
  ein_graph *g = products(ctx, 3, 0, 0);
  (void)grouped(ctx, g, &o, line, &found);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  strcat(text, line);
  memset(&d, 0, sizeof d);
  d.allocator.alloc_fn = count_alloc;
  d.allocator.free_fn = count_free;
  d.allocator.user = &c;
  d.bare = 1;
  d.store = text;
  d.store_bytes = strlen(text);
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK && (g = products(ctx, 3, 1, 0)) != NULL);
  for (long at = 0;; at++) {
    ein_plan *plan = NULL;
    const long live = c.live;
    static char json[1 << 16];
    c.calls = 0;
    c.fail_at = at;
    const ein_status st = ein_plan_graph(ctx, g, 0, NULL, NULL, &plan);
    CHECK(st == (c.calls > at ? EIN_ERR_NO_MEMORY : EIN_OK));
    c.fail_at = -1;
    if (st == EIN_OK) ein_plan_json(plan, json, sizeof json);
    if (st == EIN_OK) CHECK(strstr(json, "\"variant\": \"ungrouped\"") != NULL);
    ein_plan_destroy(plan);
    CHECK(c.live == live);
    if (c.calls <= at) break;
  }
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

static void test_merge_memory(void) {
  static char text[1 << 16], out[1 << 16];
  size_t n = (size_t)sprintf(text, "einsum store 1\n"), length = 0;
  for (int k = 0; k < 3000; k++) n += (size_t)sprintf(text + n, "odd line %d\n", k);
  const char *const one = text;
  counter c = {0, -1, 0};
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  d.allocator.alloc_fn = count_alloc;
  d.allocator.free_fn = count_free;
  d.allocator.user = &c;
  d.bare = 1;
  for (long at = 0;; at++) {
    ein_ctx *ctx = NULL;
    c.calls = c.live = 0;
    c.fail_at = at;
    ein_status st = ein_ctx_create(&d, &ctx);
    if (st == EIN_OK) st = ein_store_merge(ctx, 1, &one, &n, out, sizeof out, &length);
    CHECK(st == (c.calls > at ? EIN_ERR_NO_MEMORY : EIN_OK));
    if (st == EIN_OK && length < sizeof out) {
      out[length] = 0;
      CHECK(strcmp(strchr(out, '\n'), strchr(text, '\n')) == 0);
    }
    ein_ctx_destroy(ctx);
    CHECK(c.live == 0);
    if (c.calls <= at) break;
  }
}

static void test_memory(void) {
  product p = chain(2, 3, 4, 2);
  char line[ROOM], text[ROOM + 64];
  counter c = {0, -1, 0};
  ein_ctx_desc d;
  spell(&p, "ijkl");
  ein_ctx *ctx = context("", NULL);
  CHECK(record(ctx, &p, "(1,2)(0,1)", line) > 0);
  ein_ctx_destroy(ctx);
  snprintf(text, sizeof text, "einsum store 1\nbroken\n%s", line);
  memset(&d, 0, sizeof d);
  d.allocator.alloc_fn = count_alloc;
  d.allocator.free_fn = count_free;
  d.allocator.user = &c;
  d.bare = 1;
  d.store = text;
  d.store_bytes = strlen(text);
  d.machine = "-";
  for (int m = 0; m < 2; m++) {
    for (long at = 0;; at++) {
      c.calls = c.live = 0;
      c.fail_at = at;
      const ein_status st = whole(&d, m == 0 ? NULL : "exp(x0)*x1*x2");
      CHECK(c.live == 0);
      CHECK(st == (c.calls > at ? EIN_ERR_NO_MEMORY : EIN_OK));
      if (c.calls <= at) break;
    }
  }
}

int main(int argc, char **argv) {
  const int spellings = argc > 1 ? atoi(argv[1]) : FEW(2000);
  const int texts = argc > 2 ? atoi(argv[2]) : FEW(6000);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 51;
  printf("test_store: %d spellings, %d texts, seed %llu\n", spellings, texts,
         (unsigned long long)rng_state);
  test_lookup();
  test_programs();
  test_groups();
  test_merge();
  test_worse();
  test_cache();
  test_memory();
  test_groups_memory();
  test_merge_memory();
  test_spellings(spellings);
  test_hostile(texts);
  printf("test_store: %d checks, %d failures\n", checks, failures);
  return failures > 0;
}
