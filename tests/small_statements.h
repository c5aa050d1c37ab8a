// Programs as text, their bounds, and small random statements. Include after einsum.h's
// implementation, check.h and util.h.

#include <stdio.h>
#include <string.h>

enum { MOST = 4, OPERANDS = 3, RANK = 3, CELLS = 1 << 12 };

static ein_graph *parse(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL);
  ein_ctx_destroy(ctx);
  return g;
}

// The bounds of the last statement of a program; the caller destroys *b.
EINI_UNUSED static ein_bound_stmt bound_of(const char *text, double fast, int64_t places,
                                           ein_bound **b) {
  ein_bound_desc d;
  ein_bound_stmt s;
  ein_graph *g = parse(text);
  memset(&d, 0, sizeof d);
  memset(&s, 0, sizeof s);
  d.fast_memory = fast;
  d.places = places;
  CHECK(ein_bound_create(NULL, g, &d, b) == EIN_OK);
  for (int64_t k = 0; ein_bound_statement(*b, k, &s);) k++;
  CHECK(!ein_bound_statement(*b, -1, &s));
  ein_graph_destroy(g);
  return s;
}

// ---- random statements ----

typedef struct statement {
  int n, extent[MOST], nfree;
  int nop, rank[OPERANDS], index[OPERANDS][RANK], add[OPERANDS][RANK];  // -1: a plain coordinate
} statement;

static int free_index(const statement *s, int i) { return i < s->nfree; }

static void random_statement(statement *s, int most, int compound) {
  for (int done = 0; !done;) {
    int used[MOST] = {0};
    memset(s, 0, sizeof *s);
    s->n = (int)draw(1, MOST);
    s->nfree = (int)draw(0, s->n);
    s->nop = (int)draw(1, OPERANDS);
    for (int i = 0; i < s->n; i++) s->extent[i] = (int)draw(1, most);
    for (int k = 0; k < s->nop; k++) {
      s->rank[k] = (int)draw(chance(90), RANK);
      for (int d = 0; d < s->rank[k]; d++) {
        used[s->index[k][d] = (int)draw(0, s->n - 1)] = 1;
        s->add[k][d] = compound && chance(20) ? (int)draw(0, s->n - 1) : -1;
        if (s->add[k][d] == s->index[k][d]) s->add[k][d] = -1;
        if (s->add[k][d] >= 0) used[s->add[k][d]] = 1;
      }
    }
    done = 1;
    for (int i = 0; i < s->n; i++) done = done && used[i];
  }
}

static int shape_of(const statement *s, int k, int d) {
  return s->extent[s->index[k][d]] + (s->add[k][d] < 0 ? 0 : s->extent[s->add[k][d]] - 1);
}

static void spell(const statement *s, char *text, size_t size) {
  size_t n = 0;
#define SAY(...) n += (size_t)snprintf(text + n, size - n, __VA_ARGS__)
  for (int k = 0; k < s->nop; k++) {
    SAY("input T%d", k);
    for (int d = 0; d < s->rank[k]; d++) SAY("%s%d", d ? "," : "[", shape_of(s, k, d));
    SAY("%s : f64\n", s->rank[k] ? "]" : "[]");
  }
  SAY("Y");
  for (int i = 0; i < s->nfree; i++) SAY("%si%d=%d", i ? "," : "[", i, s->extent[i]);
  SAY("%s = ", s->nfree ? "]" : "");
  for (int i = s->nfree; i < s->n; i++)
    SAY("%si%d=%d%s", i == s->nfree ? "sum[" : ",", i, s->extent[i], i + 1 == s->n ? "](" : "");
  for (int k = 0; k < s->nop; k++) {
    SAY("%sT%d", k ? "*" : "", k);
    for (int d = 0; d < s->rank[k]; d++) {
      SAY("%si%d", d ? "," : "[", s->index[k][d]);
      if (s->add[k][d] >= 0) SAY("+i%d", s->add[k][d]);
    }
    SAY("%s", s->rank[k] ? "]" : "");
  }
  SAY("%s\n", s->nfree < s->n ? ")" : "");
}
#undef SAY
