// Graphs made by calls: against the same program as text, against the brute-force oracle, with
// every kind of mistake, at random, and with every allocation failing once.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "check.h"
#include "util.h"

static ein_zmap zmap(int rows, int cols, int64_t *coef, int64_t *offset) {
  ein_zmap m;
  memset(&m, 0, sizeof m);
  m.rows = rows;
  m.cols = cols;
  m.coef = coef;
  m.offset = offset;
  return m;
}

// ---- graphs, each also as a program -------------------------------------------------------------

static int64_t rows_ik[] = {1, 0, 0, 0, 0, 1}, rows_kj[] = {0, 0, 1, 0, 1, 0};
static int64_t one[] = {1}, two[] = {2}, minus_two[] = {-2}, at_1[] = {1}, at_4[] = {4};
static int64_t window[] = {2, 1};
static const char *const ijk[] = {"i", "j", "k"};
static const char *const hr[] = {"h", "r"};
static const ein_scalar three = {1, 3, 0};

static ein_status tensor(ein_graph *g, const char *name, ein_role role, ein_dtype t, int rank,
                         int64_t a, int64_t b) {
  int64_t shape[2];
  int id;
  shape[0] = a;
  shape[1] = b;
  return ein_graph_add_tensor(g, name, role, t, rank, a < 0 ? NULL : shape, &id);
}

static ein_stmt_desc describe(int out, int nindex, int nfree, const int64_t *extent,
                              const char *const *index, int noperand, const int *operand,
                              const ein_zmap *proj) {
  ein_stmt_desc d;
  memset(&d, 0, sizeof d);
  d.out = out;
  d.nindex = nindex;
  d.nfree = nfree;
  d.extent = extent;
  d.index = index;
  d.noperand = noperand;
  d.operand = operand;
  d.proj = proj;
  return d;
}

static void build_matmul(ein_graph *g) {
  static const int64_t extent[] = {2, 4, 3};
  const int operand[] = {0, 1}, again[] = {2};
  ein_zmap proj[2];
  proj[0] = zmap(2, 3, rows_ik, NULL);
  proj[1] = zmap(2, 3, rows_kj, NULL);
  tensor(g, "A", EIN_ROLE_INPUT, EIN_F32, 2, 2, 3);
  tensor(g, "B", EIN_ROLE_INPUT, EIN_F32, 2, 3, 4);
  tensor(g, "C", EIN_ROLE_TEMP, EIN_NONE, 2, -1, 0);
  tensor(g, "Y", EIN_ROLE_OUTPUT, EIN_NONE, 1, 2, 0);
  ein_graph_add_param(g, "a", EIN_F32, &three, NULL);
  ein_stmt_desc d = describe(2, 3, 2, extent, ijk, 2, operand, proj);
  ein_graph_add_statement(g, &d);
  int64_t rows_ij[] = {1, 0, 0, 1};
  proj[0] = zmap(2, 2, rows_ij, NULL);
  d = describe(3, 2, 1, extent, ijk, 1, again, proj);
  d.map = "a*abs(x0) + 1";
  d.fold = "max";
  ein_graph_add_statement(g, &d);
}

static void build_window(ein_graph *g) {
  static const int64_t extent[] = {4, 3};
  const int operand[] = {0};
  ein_zmap proj = zmap(1, 2, window, NULL);
  tensor(g, "X", EIN_ROLE_INPUT, EIN_F64, 1, 10, 0);
  tensor(g, "Y", EIN_ROLE_OUTPUT, EIN_F64, 1, -1, 0);
  tensor(g, "P", EIN_ROLE_OUTPUT, EIN_NONE, 1, -1, 0);
  ein_stmt_desc d = describe(1, 2, 1, extent, hr, 1, operand, &proj);
  d.map = "x0^2 - r";
  ein_graph_add_statement(g, &d);
  d.out = 2;
  d.map = NULL;
  d.fold = "argmax";
  ein_graph_add_statement(g, &d);
}

static void build_pieces(ein_graph *g) {
  static const int64_t extent[] = {3, 1, 3};
  const int operand[] = {0};
  ein_zmap proj = zmap(1, 1, one, NULL);
  tensor(g, "X", EIN_ROLE_INPUT, EIN_I16, 1, 3, 0);
  tensor(g, "Y", EIN_ROLE_TEMP, EIN_NONE, 1, 6, 0);
  tensor(g, "Z", EIN_ROLE_OUTPUT, EIN_I64, 1, -1, 0);
  ein_stmt_desc d = describe(1, 1, 1, extent, ijk, 1, operand, &proj);
  d.out_map = zmap(1, 1, two, NULL);
  ein_graph_add_statement(g, &d);
  d.out_map = zmap(1, 1, two, at_1);
  d.map = "-x0";
  ein_graph_add_statement(g, &d);
  const int made[] = {1};
  proj = zmap(1, 1, minus_two, at_4);
  d = describe(2, 1, 1, extent + 2, ijk, 1, made, &proj);
  d.map = "x0 + i";
  ein_graph_add_statement(g, &d);
}

static void build_constant(ein_graph *g) {
  static const int64_t extent[] = {5};
  int64_t none[1] = {0};
  const int operand[] = {0, 0};
  ein_zmap proj[2];
  proj[0] = proj[1] = zmap(0, 1, NULL, NULL);
  tensor(g, "s", EIN_ROLE_INPUT, EIN_BOOL, 0, 0, 0);
  tensor(g, "N", EIN_ROLE_OUTPUT, EIN_NONE, 0, 0, 0);
  tensor(g, "L", EIN_ROLE_OUTPUT, EIN_F32, 1, -1, 0);
  tensor(g, "E", EIN_ROLE_OUTPUT, EIN_NONE, 1, 0, 0);
  ein_stmt_desc d = describe(1, 1, 0, extent, ijk, 1, operand, proj);
  ein_graph_add_statement(g, &d);
  d = describe(2, 1, 1, extent, ijk, 0, NULL, NULL);
  d.map = "0.5*i";
  ein_graph_add_statement(g, &d);
  d = describe(3, 1, 1, none, ijk, 2, operand, proj);
  ein_graph_add_statement(g, &d);
}

// No text says this: elements off the diagonal are zero.
static void build_rest(ein_graph *g) {
  static const int64_t extent[] = {3, 2};
  const int operand[] = {0, 1};
  int64_t columns[] = {0, 1, 1, 0}, first[] = {1, 0};
  ein_zmap proj[2];
  proj[0] = zmap(1, 2, first, NULL);
  proj[1] = zmap(2, 2, columns, NULL);
  tensor(g, "v", EIN_ROLE_INPUT, EIN_F32, 1, 3, 0);
  tensor(g, "M", EIN_ROLE_INPUT, EIN_F32, 2, 2, 3);
  tensor(g, "D", EIN_ROLE_OUTPUT, EIN_NONE, 2, 4, 4);
  ein_stmt_desc d = describe(2, 2, 1, extent, NULL, 2, operand, proj);
  int64_t coef[] = {1, 0, 1, 0};
  d.out_map = zmap(2, 2, coef, NULL);
  d.rest = EIN_REST_ZERO;
  ein_graph_add_statement(g, &d);
}

// A statement by its fields, then lines that read it, define what was added and what was not.
static void build_text(ein_graph *g) {
  static const int64_t extent[] = {3, 4};
  static const int operand[] = {0};
  int64_t swap[] = {0, 1, 1, 0};
  ein_zmap proj = zmap(2, 2, swap, NULL);
  tensor(g, "A", EIN_ROLE_INPUT, EIN_F32, 2, 4, 3);
  tensor(g, "C", EIN_ROLE_TEMP, EIN_NONE, 2, -1, 0);
  tensor(g, "Y", EIN_ROLE_OUTPUT, EIN_NONE, 2, 3, 9);
  tensor(g, "P", EIN_ROLE_OUTPUT, EIN_NONE, 2, -1, 0);
  tensor(g, "D", EIN_ROLE_OUTPUT, EIN_NONE, 2, 4, 3);
  ein_graph_add_param(g, "a", EIN_F32, &three, NULL);
  ein_stmt_desc d = describe(1, 2, 2, extent, ijk, 1, operand, &proj);
  ein_graph_add_statement(g, &d);
  ein_graph_add_text(g, "");
  ein_graph_add_text(g, "# with a comment\nE[i=3,j=5] : f32 = where(i == j, a, 0)\n"
                        "Y[i,j] = concat[j](C[i,j], E[i,j])");
  ein_graph_add_text(g, "output C\nP[i,j] = pad[j](Y[i,j], 1, 2 | wrap)\n"
                        "L = sum[i=4,j=3](A[i,j]^2 + sin(Y[j,i]))\ngrad L wrt A as D\n");
}

typedef struct example {
  void (*build)(ein_graph *g);
  const char *text;
} example;

static const example examples[] = {
    {build_matmul,
     "input A[2,3], B[3,4] : f32\nparam a = 3 : f32\nC[i,j] = sum[k](A[i,k]*B[k,j])\n"
     "Y[i] = max[j](a*abs(C[i,j]) + 1)\noutput Y"},
    {build_window,
     "input X[10] : f64\nY[h] : f64 = sum[r=3](X[2*h+r]^2 - r)\nP[h] = argmax[r=3](X[2*h+r])\n"
     "output Y, P"},
    {build_pieces,
     "input X[3] : i16\nY[2*i] = X[i]\nY[2*i+1] = -X[i]\nZ[i=3] : i64 = Y[4-2*i] + i\noutput Z"},
    {build_constant,
     "input s[] : bool\nN = sum[i=5](s[])\nL[i=5] : f32 = 0.5*i\nE[i=0] = s[]*s[]\n"
     "output N, L, E"},
    {build_rest, NULL},
    {build_text,
     "input A[4,3] : f32\nparam a = 3 : f32\nC[i=3,j=4] = A[j,i]\n"
     "E[i=3,j=5] : f32 = where(i == j, a, 0)\nY[i,j] = concat[j](C[i,j], E[i,j])\n"
     "P[i,j] = pad[j](Y[i,j], 1, 2 | wrap)\n"
     "L = sum[i=4,j=3](A[i,j]^2 + sin(Y[j,i]))\ngrad L wrt A as D\noutput C, Y, D, P"},
};

#define EXAMPLES ((int)(sizeof examples / sizeof *examples))

// Plans, executes, and compares the outputs with the oracle's.
static void compare_with_oracle(ein_ctx *ctx, const ein_graph *g) {
  int n = (int)g->ntensor, nin = 0, nout = 0;
  void **data = (void **)orc_alloc(n, sizeof *data), **out = (void **)orc_alloc(n, sizeof *out);
  const void **in = (const void **)orc_alloc(n, sizeof *in);
  double **err = (double **)orc_alloc(n, sizeof *err);
  ein_scalar param[4] = {three, three, three, three};
  ein_plan *plan = NULL;
  ein_run run;
  for (int t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    data[t] = orc_alloc(orc_count(x), orc_size(x->dtype));
    err[t] = (double *)orc_alloc(orc_count(x), sizeof **err);
    if (x->role == EIN_ROLE_INPUT)
      orc_random_fill(x->dtype, orc_count(x), data[t], 7 + (uint64_t)t);
    if (x->role == EIN_ROLE_INPUT) in[nin++] = data[t];
    if (x->role == EIN_ROLE_OUTPUT) out[nout++] = orc_alloc(orc_count(x), orc_size(x->dtype));
  }
  ein_status st = ein_plan_graph(ctx, g, 0, NULL, NULL, &plan);
  CHECK(st == EIN_OK);
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.param = param;
  if (st == EIN_OK) CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  orc_eval_err(g, data, err, param);
  nout = 0;
  for (int t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (x->role == EIN_ROLE_OUTPUT) {
      if (st == EIN_OK)
        CHECK(orc_compare_err(x->dtype, orc_count(x), out[nout], data[t], err[t]));
      free(out[nout++]);
    }
    free(data[t]);
    free(err[t]);
  }
  ein_plan_destroy(plan);
  free(data);
  free(out);
  free((void *)in);
  free(err);
}

static void test_examples(ein_ctx *ctx) {
  static char built[4096], parsed[4096];
  for (int k = 0; k < EXAMPLES; k++) {
    ein_graph *g, *text = NULL;
    CHECK(ein_graph_create(k == 1 ? NULL : ctx, &g) == EIN_OK);
    examples[k].build(g);
    ein_status st = ein_graph_finish(g);
    if (st != EIN_OK) printf("example %d: %s\n", k, ein_ctx_message(ctx));
    CHECK(st == EIN_OK);
    if (st == EIN_OK) compare_with_oracle(ctx, g);
    if (examples[k].text != NULL) {
      ein_program_desc d;
      memset(&d, 0, sizeof d);
      d.text = examples[k].text;
      CHECK(ein_graph_parse(ctx, &d, &text) == EIN_OK);
      ein_graph_print(g, built, sizeof built);
      ein_graph_print(text, parsed, sizeof parsed);
      CHECK(strcmp(built, parsed) == 0);
      if (strcmp(built, parsed) != 0) printf("built:\n%sparsed:\n%s", built, parsed);
      ein_graph_destroy(text);
    }
    ein_graph_destroy(g);
  }
}

// ---- lines added to a graph ---------------------------------------------------------------------

static int has(const char *text, const char *part) { return strstr(text, part) != NULL; }

static ein_graph *finished_form(ein_ctx *ctx, ein_graph *g, char *form, size_t size) {
  ein_canon *c = NULL;
  CHECK(ein_canon_create(ctx, g, 0, &c) == EIN_OK);
  CHECK(ein_graph_print(ein_canon_graph(c), form, size) < size);
  ein_canon_destroy(c);
  return g;
}

// Selectors, generators, folds and macros, all at once and line by line, at random places, with
// some of the tensors added before: the same forms, and the oracle's values.
static void test_text(ein_ctx *ctx) {
  static const char *const name[] = {"Z", "E", "I", "S", "T", "P", "R", "U", "V", "W", "Y"};
  static const char *const line[] = {
      "Z[i=4,j=3] = 0", "E[i=4,j=3] = where(i == j, 1, 0)", "I[i=4] = 2*i + 1",
      "S[s,i,j] = stack[s](A[i,j], Z[i,j], E[i,j])", "T[i,j] = sum[s](S[s,i,j]*I[i])",
      "P[i,j] = concat[j](pad[j](T[i,j], 1, 0), reverse[j](A[i,j]))",
      "R[i,j] = softmax[j](P[i,j]) + roll[i](P[i,j], 1)",
      "U[i,j] = interleave[i](tile[j](T[i,j], 2), slice[j](P[i,j], 0, -1))",
      "V[i,j] = repeat[i](split[j](R[i,j], 1, 2), 2)", "W[i] = sum[j](U[i,j]*rand(7,i,j))",
      "Y[i] = W[i] + max[j](V[i,j])"};
  enum { N = sizeof line / sizeof *line };
  for (uint64_t seed = 1; seed <= 200 && failures == 0; seed++) {
    static char whole[8192], parts[8192];
    char text[2048], all[2048] = "input A[4,3] : f32\noutput U, Y\n";
    ein_graph *g = NULL;
    ein_program_desc d;
    rng_state = seed;
    memset(&d, 0, sizeof d);
    for (int k = 0; k < N; k++) strcat(strcat(all, line[k]), "\n");
    d.text = all;
    CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
    ein_graph_destroy(finished_form(ctx, g, whole, sizeof whole));
    CHECK(ein_graph_create(ctx, &g) == EIN_OK);
    tensor(g, "A", EIN_ROLE_INPUT, EIN_F32, 2, 4, 3);
    for (int k = 0; k < N;) {
      const int end = (int)draw(k + 1, N);
      for (text[0] = 0; k < end; k++) {
        const int out = k == 7 || k == N - 1, rank = k == 3 ? 3 : k == 2 || k >= 9 ? 1 : 2;
        if (chance(50))
          tensor(g, name[k], out ? EIN_ROLE_OUTPUT : EIN_ROLE_TEMP, EIN_NONE, rank, -1, 0);
        else if (out) strcat(strcat(strcat(text, "output "), name[k]), "\n");
        strcat(strcat(text, line[k]), "\n");
      }
      CHECK(ein_graph_add_text(g, text) == EIN_OK);
    }
    CHECK(ein_graph_finish(g) == EIN_OK);
    if (failures == 0) compare_with_oracle(ctx, finished_form(ctx, g, parts, sizeof parts));
    CHECK(strcmp(whole, parts) == 0);
    if (failures > 0) printf("at seed %d: %s\n%s%s", (int)seed, ein_ctx_message(ctx), whole, parts);
    ein_graph_destroy(g);
  }
}

static void test_text_mistakes(ein_ctx *ctx) {
  static const struct {
    ein_status st;
    const char *text, *want;
  } bad[] = {
      {EIN_ERR_ARGUMENT, NULL, "text is NULL"},
      {EIN_ERR_SYNTAX, "Y[i] = X[i", "1:9: this '[' is never closed"},
      {EIN_ERR_NAME, "Y[i] = X[i]\nX[i] = 2*Y[i]", "2:1: 'X' is an input already"},
      {EIN_ERR_NAME, "Y[i] = Q[i]", "1:8: 'Q' is no tensor"},
      {EIN_ERR_NAME, "Y[i] = T[i]", "1:8: 'T'"},
      {EIN_ERR_NAME, "Y[i] = X[i]\ninput p[3]", "2:7: the name 'p' is taken"},
      {EIN_ERR_NAME, "Y[i] = X[i]\noutput X", "2:8: 'X' is an input"},
      {EIN_ERR_SHAPE, "T[i] = X[i]", "1:1: axis 0 of 'T' has extent 4, its statements give 10"},
      {EIN_ERR_SHAPE, "Y[i,j=2] = X[i]", "1:1: 'Y' has 1 axes, here 2"},
      {EIN_ERR_DTYPE, "T[i=4] : f64 = X[i]", "'T' is given two dtypes, f32 and f64"},
      {EIN_ERR_SHAPE, "L = X[0]^2\ngrad L wrt X as T", "2:12: 'T' does not have the shape of 'X'"},
      {EIN_ERR_SHAPE, "Y[i] = X[i]\nT[2*i] = X[i] for i=2", "'T[1]'"},
      {EIN_ERR_NAME, "C[i] = X[i]", "'C'"},
  };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    static const int64_t extent[] = {10};
    static const int operand[] = {0};
    ein_graph *g;
    ein_zmap proj = zmap(1, 1, one, NULL);
    CHECK(ein_graph_create(ctx, &g) == EIN_OK);
    tensor(g, "X", EIN_ROLE_INPUT, EIN_F64, 1, 10, 0);
    tensor(g, "Y", EIN_ROLE_OUTPUT, EIN_NONE, 1, -1, 0);
    tensor(g, "T", EIN_ROLE_TEMP, EIN_F32, 1, 4, 0);
    tensor(g, "C", EIN_ROLE_TEMP, EIN_NONE, 1, -1, 0);
    ein_graph_add_param(g, "p", EIN_NONE, NULL, NULL);
    ein_stmt_desc d = describe(3, 1, 1, extent, NULL, 1, operand, &proj);
    ein_graph_add_statement(g, &d);
    ein_status st = ein_graph_add_text(g, bad[k].text);
    CHECK(st == bad[k].st && has(ein_ctx_message(ctx), bad[k].want));
    if (st != bad[k].st || !has(ein_ctx_message(ctx), bad[k].want))
      printf("text %d: %d, %s\n", (int)k, (int)st, ein_ctx_message(ctx));
    CHECK(ein_graph_add_text(g, "Y[i] = X[i]") == st && ein_graph_finish(g) == st);
    ein_graph_destroy(g);
  }
  CHECK(ein_graph_add_text(NULL, "") == EIN_ERR_ARGUMENT);
}

// No bracket is printed that the language can do without, and none is missing.
static void test_print(ein_ctx *ctx) {
  static const char head[] = "input A[4,4] : f64\ninput M[4] : bool\n", tail[] = "output X\n";
  static const char *const right[] = {
      "(A[i,i]+1)*A[0,i]-(A[i,1]-(A[i,2]-2))", "-(A[i,0]*2)/(A[i,1]/A[i,2])*A[i,3]+1",
      "where(not (M[i] and A[i,0]<2 or M[i]), -A[i,i]^2, (-A[i,i])^2)",
      "mod(min(A[i,0], -1), 3)+cast_f32(A[i,1]-1)*2^A[i,2]", "0^A[i,0]*A[i,1]-(-1)^A[i,2]"};
  for (size_t k = 0; k < sizeof right / sizeof *right; k++) {
    char text[1024], printed[1024];
    ein_program_desc d;
    ein_graph *g = NULL;
    memset(&d, 0, sizeof d);
    snprintf(text, sizeof text, "%sX[i=4] : f64 = %s\n%s", head, right[k], tail);
    d.text = text;
    CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
    ein_graph_print(g, printed, sizeof printed);
    CHECK(strcmp(text, printed) == 0);
    if (strcmp(text, printed) != 0) printf("%s%s", text, printed);
    ein_graph_destroy(g);
  }
}

// ---- mistakes -----------------------------------------------------------------------------------

// A graph with X[10], Y[] open and T[4] given, and one statement with one thing wrong.
static ein_status mistake(ein_ctx *ctx, int k, ein_graph **graph, const char **want) {
  int64_t extent[] = {4, 3}, coef[] = {2, 1, 0, 0}, zero[] = {0, 0}, wide[] = {INT64_MAX, 1};
  int operand[] = {0, 0}, y, t;
  const char *bad[] = {"i", "2x"};
  ein_zmap proj[2];
  proj[0] = proj[1] = zmap(1, 2, coef, NULL);
  CHECK(ein_graph_create(ctx, graph) == EIN_OK);
  ein_graph *g = *graph;
  tensor(g, "X", EIN_ROLE_INPUT, EIN_F64, 1, 10, 0);
  ein_graph_add_tensor(g, "Y", EIN_ROLE_OUTPUT, EIN_NONE, 1, NULL, &y);
  ein_graph_add_tensor(g, "T", EIN_ROLE_TEMP, EIN_NONE, 1, extent, &t);
  CHECK(y == 1 && t == 2);
  ein_stmt_desc d = describe(y, 2, 1, extent, NULL, 1, operand, proj), e = d;
  *want = "statement 0, 'Y': ";
  switch (k) {
    case 0: d.out = 3; *want = "wrong"; break;
    case 1: d.out = -1; *want = "wrong"; break;
    case 2: d.nfree = 3; *want = "wrong"; break;
    case 3: d.nindex = -1; *want = "wrong"; break;
    case 4: d.extent = NULL; *want = "wrong"; break;
    case 5: d.noperand = -1; *want = "wrong"; break;
    case 6: d.operand = NULL; *want = "wrong"; break;
    case 7: d.proj = NULL; *want = "wrong"; break;
    case 8: d.noperand = 0; *want = "wrong"; break;
    case 9: d.out = 0; *want = "statement 0, 'X': it is an input"; break;
    case 10: extent[1] = -3; *want = "'Y': index 1 has extent -3"; break;
    case 11: d.index = bad; *want = "index 1 has no proper name"; break;
    case 12: bad[1] = NULL; d.index = bad; *want = "index 1 has no proper name"; break;
    case 13: d.rest = EIN_REST_KEEP; *want = "only be zero"; break;
    case 14: d.rest = EIN_REST_ZERO; *want = "a given shape"; break;
    case 15: d.nfree = 2; *want = "2 free indices for 1 axes"; break;
    case 16: d.out_map = zmap(1, 2, coef, NULL); *want = "axis 0 of 'Y' depends on the reduced";
      break;
    case 17: d.out_map = zmap(2, 2, coef, NULL); *want = "2 rows and 2 columns for 'Y' of 1 axes";
      break;
    case 18: operand[0] = 3; *want = "operand 0 is no tensor"; break;
    case 19: operand[0] = y; *want = "operand 0 is no tensor"; break;
    case 20: operand[0] = t; *want = "'Y': 'T' is not defined"; break;
    case 21: proj[0].rows = 2; *want = "'X' of 1 axes and 2 indices"; break;
    case 22: proj[0].cols = 1; *want = "1 columns for 'X'"; break;
    case 23: proj[0].coef = NULL; *want = "no coefficients"; break;
    case 24: proj[0].block = zero; *want = "block"; break;
    case 25: extent[0] = 5; *want = "coordinate 0 of 'X' reaches 10, its extent is 10"; break;
    case 26: proj[0].offset = minus_two; *want = "coordinate 0 of 'X' reaches -2"; break;
    case 27: proj[0].coef = wide; *want = "coordinate 0 of 'X'"; break;
    case 28: d.fold = "summ"; *want = "no monoid is called 'summ'"; break;
    case 29: d.nindex = d.nfree = 1; d.fold = "max"; proj[0].cols = 1; *want = "no reduced index";
      break;
    case 30: d.map = "x0 + x1"; *want = "'x1' is not an operand"; break;
    case 31: d.map = "x0 +"; *want = "x0 +"; break;
    case 32: d.map = "sum(x0)"; *want = "over scalars"; break;
    case 33: d.map = "cos(x0"; *want = "never closed"; break;
    case 34: d.map = "sine(x0)"; *want = "not a function"; break;
    case 35: d.map = "complex(x0,1)"; d.fold = "max"; *want = "max of complex"; break;
    case 36: extent[1] = 0; d.fold = "mean"; *want = "mean of nothing"; break;
    case 37: d.map = ""; *want = "an expression expected"; break;
    case 38:  // a tensor that is read gets no more pieces
      d.out = t;
      CHECK(ein_graph_add_statement(g, &d) == EIN_OK);
      e.operand = &t;
      coef[0] = 0;
      CHECK(ein_graph_add_statement(g, &e) == EIN_OK);
      *want = "statement 2, 'T': it is read already";
      break;
    case 39:
      d.out = t;
      d.rest = EIN_REST_ZERO;
      CHECK(ein_graph_add_statement(g, &d) == EIN_OK);
      d.rest = EIN_REST_ERROR;
      *want = "single statement";
      break;
    case 40: d.out = t; extent[0] = 3; *want = "axis 0 of 'T' has extent 4, its statements give 3";
      break;
    case 41: *want = "'Y[0]' is defined twice"; ein_graph_add_statement(g, &d); break;
    case 42: d.out_map = zmap(1, 2, coef + 2, at_1); extent[0] = 1; *want = "'Y[0]' is undefined";
      break;
    case 43: coef[1] = 0; d.out_map = zmap(1, 2, coef, NULL); *want = "'Y[1]' is undefined"; break;
    case 44: coef[1] = 0; d.out_map = zmap(1, 2, coef, minus_two); *want = "coordinates start at 0";
      break;
    case 45: wide[1] = 0; d.out_map = zmap(1, 2, wide, NULL); *want = "too large"; break;
    case 46: d.out = t; *want = "'Y' is not defined"; break;
    case 47: d.map = "x0 == x0 == x0"; *want = "chained"; break;
    case 48:
      CHECK(ein_graph_add_statement(g, NULL) == EIN_ERR_ARGUMENT);
      *want = "wrong";
      break;
    default: return EIN_OK;
  }
  if (k == 40) {  // noticed when all statements are there
    CHECK(ein_graph_add_statement(g, &d) == EIN_OK);
    d.out = y;
  }
  ein_status st = ein_graph_add_statement(g, &d);
  if (st != EIN_OK) CHECK(ein_graph_finish(g) == st && ein_graph_add_statement(g, &d) == st);
  return st == EIN_OK ? ein_graph_finish(g) : st;
}

static void test_mistakes(ein_ctx *ctx) {
  for (int k = 0; k < 49; k++) {
    for (int quiet = 0; quiet < 2; quiet++) {
      ein_graph *g = NULL;
      ein_plan *plan;
      const char *want = "";
      char text[2048];
      ein_status st = mistake(quiet ? NULL : ctx, k, &g, &want);
      CHECK(st != EIN_OK && st != EIN_ERR_INTERNAL);
      if (!quiet && !has(ein_ctx_message(ctx), want))
        printf("case %d: '%s' lacks '%s'\n", k, ein_ctx_message(ctx), want);
      CHECK(quiet || has(ein_ctx_message(ctx), want));
      CHECK(ein_plan_graph(NULL, g, 0, NULL, NULL, &plan) == EIN_ERR_ARGUMENT);
      ein_graph_print(g, text, sizeof text);
      ein_graph_destroy(g);
    }
  }
}

static ein_status add_tensor(ein_ctx *ctx, const char *name, int role, int dtype, int rank,
                             const int64_t *shape) {
  ein_graph *g = NULL;
  int id = 5;
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  tensor(g, "taken", EIN_ROLE_INPUT, EIN_F64, 0, 0, 0);
  ein_status st = ein_graph_add_tensor(g, name, (ein_role)role, (ein_dtype)dtype, rank, shape, &id);
  CHECK(id == (st == EIN_OK ? 1 : -1));
  ein_graph_destroy(g);
  return st;
}

static int says(const ein_ctx *ctx, const char *text) { return has(ein_ctx_message(ctx), text); }

// What is wrong with a call around a graph: the field and its value.
static void test_fields(ein_ctx *ctx) {
  static const int64_t s2[] = {2}, s3[] = {3}, neg[] = {-4};
  double data[4] = {0};
  ein_ztensor v, bad;
  memset(&v, 0, sizeof v);
  v.dtype = EIN_F64;
  v.rank = 1;
  v.shape = s2;
  v.data = data;
  ein_binding bind = {"x", &v}, other = {"z", &v}, none = {NULL, &v}, blind = {"x", NULL};
  ein_size size = {"n", 2}, less = {"n", -2};
  ein_program_desc d;
  ein_graph *g = NULL, *open = NULL;
  ein_plan *plan = NULL;
  memset(&d, 0, sizeof d);
  CHECK(ein_graph_parse(ctx, NULL, &g) == EIN_ERR_ARGUMENT && says(ctx, "description is NULL"));
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "text is NULL"));
  d.text = "input x[n]\nY[i] = 2*x[i]";
  d.nbind = 1;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT);
  CHECK(says(ctx, "nbind is 1, but the list is NULL"));
  d.bind = &none;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "bind[0] has no name"));
  d.bind = &blind;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "bind[0] has no view"));
  d.bind = &bind;
  v.shape = neg;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_SHAPE && says(ctx, "'x' has shape[0] = -4"));
  v.shape = NULL;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "its shape is NULL"));
  v.shape = s2;
  v.dtype = EIN_NONE;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_DTYPE && says(ctx, "'x' has no dtype, but 0"));
  v.dtype = EIN_F64;
  d.nsize = 1;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "nsize is 1, but"));
  d.size = &less;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_SHAPE && says(ctx, "size 'n' is -2"));
  d.size = &size;
  d.dtype = (ein_dtype)99;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_ERR_ARGUMENT && says(ctx, "dtype is no dtype, but 99"));
  d.dtype = EIN_F64;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  CHECK(ein_plan_graph(ctx, NULL, 0, NULL, NULL, &plan) == EIN_ERR_ARGUMENT);
  CHECK(says(ctx, "graph is NULL"));
  CHECK(ein_graph_create(ctx, &open) == EIN_OK);
  CHECK(ein_plan_graph(ctx, open, 0, NULL, NULL, &plan) == EIN_ERR_ARGUMENT);
  CHECK(says(ctx, "not finished"));
  CHECK(ein_plan_graph(ctx, g, 2, NULL, NULL, &plan) == EIN_ERR_ARGUMENT);
  CHECK(says(ctx, "nlayout is 2, but the list is NULL"));
  CHECK(ein_plan_graph(ctx, g, 1, &blind, NULL, &plan) == EIN_ERR_ARGUMENT);
  CHECK(says(ctx, "layout[0] has no view"));
  CHECK(ein_plan_graph(ctx, g, 1, &other, NULL, &plan) == EIN_ERR_NAME);
  CHECK(says(ctx, "'z' is no input or output"));
  const struct {
    ein_dtype dtype;
    int rank;
    const int64_t *shape;
    ein_status status;
    const char *message;
  } wrong[] = {{EIN_F32, 1, s2, EIN_ERR_SHAPE, "the layout of 'x' is f32, 'x' f64"},
               {EIN_F64, 0, s2, EIN_ERR_SHAPE, "the layout of 'x' has 0 axes, not 1"},
               {EIN_F64, 1, s3, EIN_ERR_SHAPE, "the layout of 'x' has shape[0] = 3, not 2"},
               {EIN_F64, 1, neg, EIN_ERR_SHAPE, "'x' has shape[0] = -4"},
               {EIN_F64, -1, s2, EIN_ERR_ARGUMENT, "'x' has rank -1"}};
  for (int i = 0; i < 5; i++) {
    bad = v;
    bad.dtype = wrong[i].dtype;
    bad.rank = wrong[i].rank;
    bad.shape = wrong[i].shape;
    bind.view = &bad;
    CHECK(ein_plan_graph(ctx, g, 1, &bind, NULL, &plan) == wrong[i].status);
    CHECK(plan == NULL && says(ctx, wrong[i].message));
  }
  ein_graph_destroy(g);
  ein_graph_destroy(open);
}

static void test_declarations(ein_ctx *ctx) {
  const int64_t shape[] = {2, -1};
  ein_graph *g = NULL;
  int id = 3;
  CHECK(add_tensor(ctx, "a", EIN_ROLE_INPUT, EIN_F64, 1, shape) == EIN_OK);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_INPUT, EIN_F64, 2, shape) == EIN_ERR_SHAPE);
  CHECK(has(ein_ctx_message(ctx), "axis 1 of 'a' has extent -1"));
  CHECK(add_tensor(ctx, "a", EIN_ROLE_INPUT, EIN_NONE, 1, shape) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_INPUT, EIN_F64, 1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_TEMP, EIN_NONE, 1, NULL) == EIN_OK);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_TEMP, EIN_DTYPE_COUNT, 1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_TEMP, -1, 1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", 3, EIN_NONE, 1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", -1, EIN_NONE, 1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "a", EIN_ROLE_TEMP, EIN_NONE, -1, NULL) == EIN_ERR_ARGUMENT);
  CHECK(add_tensor(ctx, "taken", EIN_ROLE_TEMP, EIN_NONE, 0, NULL) == EIN_ERR_NAME);
  CHECK(add_tensor(ctx, "sum", EIN_ROLE_TEMP, EIN_NONE, 0, NULL) == EIN_ERR_NAME);
  CHECK(add_tensor(ctx, "", EIN_ROLE_TEMP, EIN_NONE, 0, NULL) == EIN_ERR_NAME);
  CHECK(add_tensor(ctx, "a b", EIN_ROLE_TEMP, EIN_NONE, 0, NULL) == EIN_ERR_NAME);
  CHECK(add_tensor(ctx, NULL, EIN_ROLE_TEMP, EIN_NONE, 0, NULL) == EIN_ERR_NAME);
  CHECK(ein_graph_create(ctx, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_add_tensor(NULL, "a", EIN_ROLE_TEMP, EIN_NONE, 0, NULL, &id) ==
        EIN_ERR_ARGUMENT && id == -1);
  CHECK(ein_graph_add_param(NULL, "a", EIN_F64, NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_add_statement(NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_finish(NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  CHECK(ein_graph_add_param(g, "p", EIN_NONE, NULL, &id) == EIN_OK && id == 0);
  ein_param_info info;
  CHECK(ein_graph_param(g, 0, &info) && info.dtype == EIN_NONE && !info.has_default);
  ein_scalar half = {1, 0.5, 0};
  CHECK(ein_graph_add_param(g, "h", EIN_F16, &half, NULL) == EIN_OK);
  CHECK(ein_graph_add_param(g, "p", EIN_F64, NULL, &id) == EIN_ERR_NAME && id == -1);
  CHECK(ein_graph_add_param(g, "q", EIN_F64, NULL, &id) == EIN_ERR_NAME);  // the first one sticks
  ein_graph_destroy(g);
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  CHECK(ein_graph_add_param(g, "p", EIN_DTYPE_COUNT, NULL, NULL) == EIN_ERR_ARGUMENT);
  ein_graph_destroy(g);
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  CHECK(ein_graph_finish(g) == EIN_ERR_ARGUMENT && has(ein_ctx_message(ctx), "no output"));
  ein_graph_destroy(g);
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  build_matmul(g);
  CHECK(ein_graph_finish(g) == EIN_OK && ein_graph_finish(g) == EIN_ERR_ARGUMENT);
  CHECK(ein_graph_add_param(g, "q", EIN_F64, NULL, NULL) == EIN_ERR_ARGUMENT);
  ein_graph_destroy(g);
}

// ---- at random, and without memory --------------------------------------------------------------

// Statements whose numbers are mostly right. Returns 1 when the graph was accepted.
static int random_graph(ein_ctx *ctx, uint64_t seed) {
  static const char *const maps[] = {"x0*x1", "x1 < x0", "x1 - a",
                                      "exp(x0) + i0", "x0", "i1 + x0"};
  static const char *const folds[] = {"sum", "max", "argmin", "logsumexp", "var", "any"};
  static const char *const names[] = {"A", "B", "C", "D", "E"};
  ein_graph *g;
  rng_state = seed;
  CHECK(ein_graph_create(ctx, &g) == EIN_OK);
  for (int t = 0; t < 5; t++) {
    tensor(g, names[t], t < 2 ? EIN_ROLE_INPUT : t < 4 ? EIN_ROLE_TEMP : EIN_ROLE_OUTPUT,
           t < 2 ? (ein_dtype)draw(1, EIN_DTYPE_COUNT - 1) : draw(0, 5) ? EIN_NONE : EIN_F32,
           (int)draw(0, 2), t >= 2 && draw(0, 3) ? -1 : draw(2, 4), draw(2, 4));
  }
  ein_graph_add_param(g, "a", EIN_F32, &three, NULL);
  for (int n = (int)draw(3, 5), k = 0; k < n; k++) {
    int64_t extent[3], coef[3][6], offset[3][2];
    int operand[2];
    ein_zmap proj[3];
    int out = k < 3 ? k + 2 : (int)draw(2, 4), nindex = (int)draw(0, 3);
    int free = g->ntensor > out ? g->tensor[out].rank : 0, noperand = (int)draw(1, 2);
    if (nindex < free) nindex = free;
    for (int i = 0; i < 3; i++) extent[i] = draw(0, 60) ? draw(1, 3) : draw(-1, 0);
    for (int m = 0; m < 3; m++) {
      int id = m < 2 ? operand[m] = (int)draw(0, out - 1 < 0 ? 0 : out - 1) : out;
      int rank = g->ntensor > id ? g->tensor[id].rank : 0;
      for (int i = 0; i < 6; i++) coef[m][i] = 0;
      for (int r = 0; r < 2; r++) {
        int64_t col = draw(0, nindex > 0 ? nindex - 1 : 0);
        if (m == 2) col = r;
        if (nindex > 0 && col < nindex) coef[m][r * nindex + col] = draw(0, 12) ? 1 : draw(-2, 2);
        offset[m][r] = draw(0, 20) ? 0 : draw(-1, 2);
      }
      proj[m] = zmap(draw(0, 40) ? rank : 1, nindex, coef[m], offset[m]);
    }
    int nfree = draw(0, 40) ? free : (int)draw(0, 3);
    ein_stmt_desc d = describe(out, nindex, nfree, extent, NULL, noperand, operand, proj);
    if (draw(0, 1)) d.out_map = proj[2];
    if (draw(0, 1)) d.map = maps[noperand > 1 ? draw(0, 2) : draw(3, 5)];
    if (draw(0, 1) && nfree < nindex) d.fold = folds[draw(0, 5)];
    d.rest = (ein_rest)(draw(0, 12) ? 0 : draw(0, 2));
    ein_graph_add_statement(g, &d);
  }
  int good = ein_graph_finish(g) == EIN_OK;
  if (good) compare_with_oracle(ctx, g);
  ein_graph_destroy(g);
  return good;
}

static void test_memory(void) {
  for (int k = 0; k < EXAMPLES; k++) {
    for (long n = 0;; n++) {
      counter c = {0, n, 0};
      ein_ctx_desc desc;
      ein_ctx *ctx;
      ein_graph *g = NULL;
      memset(&desc, 0, sizeof desc);
      desc.allocator.alloc_fn = count_alloc;
      desc.allocator.free_fn = count_free;
      desc.allocator.user = &c;
      ein_status st = ein_ctx_create(&desc, &ctx);
      if (st == EIN_OK) st = ein_graph_create(ctx, &g);
      if (st == EIN_OK) {
        examples[k].build(g);
        st = ein_graph_finish(g);
      }
      ein_graph_destroy(g);
      ein_ctx_destroy(ctx);
      CHECK(c.live == 0 && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
      if (st != EIN_ERR_NO_MEMORY) break;
    }
  }
}

int main(void) {
  ein_ctx *ctx;
  int good = 0;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  test_examples(ctx);
  test_print(ctx);
  test_text(ctx);
  test_text_mistakes(ctx);
  test_mistakes(ctx);
  test_declarations(ctx);
  test_fields(ctx);
  for (uint64_t seed = 1; seed <= 20000 && failures == 0; seed++) {
    good += random_graph(ctx, seed);
    if (failures > 0) printf("at seed %d: %s\n", (int)seed, ein_ctx_message(ctx));
  }
  CHECK(good > 500);
  test_memory();
  ein_ctx_destroy(ctx);
  if (failures == 0) printf("ok %d checks, %d of the random graphs are sound\n", checks, good);
  return failures != 0;
}
