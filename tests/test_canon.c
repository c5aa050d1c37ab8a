// Normal forms: batches are isomorphic exactly when every bijection there could be says so, and
// exactly then their forms are the same text; renamed and permuted spellings have one form, and the
// substitutions lead back to what was written; details that differ give other forms; graphs that
// defeat refinement end.
//
//   test_canon [batches [spellings [seed]]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"

enum { MOST = 6, ROWS = 5, OPERANDS = 4, RANK = 3, TENSORS = 24 };

// A batched einsum with a fold and, for each operand, a function of its elements.
typedef struct batch {
  int nindex, extent[MOST];
  int nout, out[MOST];
  int nop, rank[OPERANDS], index[OPERANDS][RANK], offset[OPERANDS][RANK], sine[OPERANDS];
  int nrow, arg[ROWS][OPERANDS];
  int ntensor, shape[TENSORS][RANK], order[TENSORS];  // of tensors: extents, rank
  int fold, apart;                                    // 1: the operands are added
} batch;

static int tensor_of(batch *b, int k, int want) {  // the want-th tensor that operand k could read
  int n = 0;
  for (int t = 0; t < b->ntensor; t++) {
    int fits = b->order[t] == b->rank[k];
    for (int d = 0; d < b->rank[k]; d++)
      fits = fits && b->shape[t][d] == b->extent[b->index[k][d]] + 1;
    if (fits && n++ == want) return t;
  }
  if (b->ntensor == TENSORS) return -1;
  b->order[b->ntensor] = b->rank[k];
  for (int d = 0; d < b->rank[k]; d++) b->shape[b->ntensor][d] = b->extent[b->index[k][d]] + 1;
  return b->ntensor++;
}

static void random_batch(batch *b, int small) {
  for (int done = 0; !done;) {
    int used[MOST] = {0};
    memset(b, 0, sizeof *b);
    b->nindex = (int)draw(1, small ? 3 : MOST);
    b->nop = (int)draw(1, small ? 3 : OPERANDS);
    b->nrow = (int)draw(1, small ? 3 : ROWS);
    b->fold = (int)draw(0, 9) == 0;
    b->apart = chance(20);
    for (int i = 0; i < b->nindex; i++) b->extent[i] = chance(70) ? 2 : 3;
    for (int k = 0; k < b->nop; k++) {
      b->rank[k] = (int)draw(0, small ? 2 : RANK);
      b->sine[k] = chance(15);
      for (int d = 0; d < b->rank[k]; d++) {
        used[b->index[k][d] = (int)draw(0, b->nindex - 1)] = 1;
        b->offset[k][d] = chance(10);
      }
    }
    b->apart = b->apart && b->nop == 2;
    for (int k = 0; b->nop > 2 && k < b->nop; k++) b->sine[k] = 0;  // functions are no set
    for (int i = 0; i < b->nindex; i++)
      if (used[i] && chance(50)) b->out[b->nout++] = i;
    for (int i = b->nout - 1; i > 0; i--) {
      int j = (int)draw(0, i), x = b->out[i];
      b->out[i] = b->out[j];
      b->out[j] = x;
    }
    done = 1;
    for (int i = 0; i < b->nindex; i++) done = done && used[i];
    for (int r = 0; r < b->nrow; r++)
      for (int k = 0; k < b->nop && done; k++)
        done = (b->arg[r][k] = tensor_of(b, k, (int)draw(0, small ? 1 : 2))) >= 0;
  }
}

static void shuffle(int *v, int n) {
  for (int i = 0; i < n; i++) v[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)draw(0, i), x = v[i];
    v[i] = v[j];
    v[j] = x;
  }
}

// The batch as a program: rows, operands, indices and tensors in an order, and so under names, of
// their own; plain: as they are; open: extents are sizes, under names of their own, too.
static void spell(const batch *b, int plain, int open, char *text, size_t size) {
  static const char *const closed[] = {"0", "1", "2", "3", "4"}, *const u = "u", *const w = "q0";
  const int turn = open && chance(50);
  const char *const sizes[] = {"", "", "", turn ? w : u, turn ? u : w};
  const char *const less[] = {"", "", turn ? "q0-1" : "u-1", turn ? "u-1" : "q0-1"};
  const char *const *shape = open ? sizes : closed, *const *extent = open ? less : closed;
  int row[ROWS], op[OPERANDS], index[MOST], tensor[TENSORS];
  size_t n = 0;
  shuffle(row, b->nrow);
  shuffle(op, b->nop);
  shuffle(index, b->nindex);
  shuffle(tensor, b->ntensor);
  for (int i = 0; plain && i < TENSORS; i++) {
    tensor[i] = i;
    if (i < MOST) index[i] = i;
    if (i < ROWS) row[i] = i;
    if (i < OPERANDS) op[i] = i;
  }
#define SAY(...) n += (size_t)snprintf(text + n, size - n, __VA_ARGS__)
  for (int i = 0; i < b->ntensor; i++) {
    for (int t = 0; t < b->ntensor; t++) {
      if (tensor[t] != i) continue;
      SAY("input T%d[", i);
      for (int d = 0; d < b->order[t]; d++) SAY("%s%s", d ? "," : "", shape[b->shape[t][d]]);
      SAY("]\n");
    }
  }
  for (int r = 0; r < b->nrow; r++) {
    SAY("R%d", r);
    for (int d = 0; d < b->nout; d++)
      SAY("%sq%d=%s", d ? "," : "[", index[b->out[d]], extent[b->extent[b->out[d]]]);
    SAY("%s = ", b->nout ? "]" : "");
    int folds = 0;
    for (int j = 0; j < b->nindex; j++) {
      for (int i = 0; i < b->nindex; i++) {
        int reduced = index[i] == j;
        for (int d = 0; d < b->nout; d++) reduced = reduced && b->out[d] != i;
        if (!reduced) continue;
        SAY("%sq%d=%s", folds ? "," : b->fold ? "max[" : "sum[", j, extent[b->extent[i]]);
        folds++;
      }
    }
    SAY("%s(", folds ? "]" : "");
    for (int k = 0; k < b->nop; k++) {
      const int o = op[k];
      SAY("%s%sT%d", k ? b->apart && k == 1 ? "+" : "*" : "", b->sine[o] ? "sin(" : "",
          tensor[b->arg[row[r]][o]]);
      for (int d = 0; d < b->rank[o]; d++)
        SAY("%sq%d%s", d ? "," : "[", index[b->index[o][d]], b->offset[o][d] ? "+1" : "");
      SAY("%s%s", b->rank[o] ? "]" : "", b->sine[o] ? ")" : "");
    }
    SAY(")\n");
  }
  for (int r = 0; r < b->nrow; r++) SAY("%sR%d", r ? ", " : "output ", r);
  SAY("\n");
#undef SAY
}

static ein_graph *parse_as(const char *text, int open) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.open = open;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return NULL;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n%s", ein_ctx_message(ctx), text);
  ein_ctx_destroy(ctx);
  CHECK(g != NULL);
  return g;
}

static ein_graph *parse(const char *text) { return parse_as(text, 0); }

// The form of a program as text, to be freed.
static char *form_as(const char *text, int open) {
  ein_graph *g = parse_as(text, open);
  ein_canon *c = NULL;
  CHECK(ein_canon_create(NULL, g, 0, &c) == EIN_OK);
  ein_graph_destroy(g);  // the form does not need it
  size_t n = ein_graph_print(ein_canon_graph(c), NULL, 0) + 1;
  char *form = (char *)malloc(n);
  ein_graph_print(ein_canon_graph(c), form, n);
  ein_canon_destroy(c);
  return form;
}

static char *form_of(const char *text) { return form_as(text, 0); }

// ---- every bijection there could be ----

static int next_order(int *v, int n) {  // the next permutation; 0 after the last
  int i = n - 2, j = n - 1;
  while (i >= 0 && v[i] > v[i + 1]) i--;
  if (i < 0) return 0;
  while (v[j] < v[i]) j--;
  int x = v[i];
  v[i] = v[j];
  v[j] = x;
  for (i++, j = n - 1; i < j; i++, j--) {
    x = v[i];
    v[i] = v[j];
    v[j] = x;
  }
  return 1;
}

static int first_order(int *v, int n) {
  for (int i = 0; i < n; i++) v[i] = i;
  return 1;
}

// Do operands, by op, and indices, by a map that is built here, take a's notation to b's?
static int same_notation(const batch *a, const batch *b, const int *op, int *index) {
  int back[MOST];
  for (int i = 0; i < MOST; i++) index[i] = back[i] = -1;
  for (int k = -1; k < a->nop; k++) {
    const int n = k < 0 ? a->nout : a->rank[k];
    if (n != (k < 0 ? b->nout : b->rank[op[k]])) return 0;
    if (k >= 0 && a->sine[k] != b->sine[op[k]]) return 0;
    for (int d = 0; d < n; d++) {
      const int i = k < 0 ? a->out[d] : a->index[k][d], j = k < 0 ? b->out[d] : b->index[op[k]][d];
      if (k >= 0 && a->offset[k][d] != b->offset[op[k]][d]) return 0;
      if (index[i] < 0 && back[j] < 0) index[i] = j, back[j] = i;
      if (index[i] != j || back[j] != i || a->extent[i] != b->extent[j]) return 0;
    }
  }
  return 1;
}

static int same_rows(const batch *a, const batch *b, const int *op, const int *row) {
  int to[TENSORS], back[TENSORS];
  for (int t = 0; t < TENSORS; t++) to[t] = back[t] = -1;
  for (int r = 0; r < a->nrow; r++) {
    for (int k = 0; k < a->nop; k++) {
      const int t = a->arg[r][k], u = b->arg[row[r]][op[k]];
      if (to[t] < 0 && back[u] < 0) to[t] = u, back[u] = t;
      if (to[t] != u || back[u] != t) return 0;
    }
  }
  return 1;
}

static int isomorphic(const batch *a, const batch *b) {
  int op[OPERANDS], row[ROWS], index[MOST];
  const int folds = a->nout < a->nindex;
  if (a->nindex != b->nindex || a->nop != b->nop || a->nrow != b->nrow || a->nout != b->nout ||
      (folds && a->fold != b->fold) || (a->nop > 1 && a->apart != b->apart)) return 0;
  for (int more = first_order(op, a->nop); more; more = next_order(op, a->nop)) {
    if (!same_notation(a, b, op, index)) continue;
    for (int other = first_order(row, a->nrow); other; other = next_order(row, a->nrow))
      if (same_rows(a, b, op, row)) return 1;
  }
  return 0;
}

// The sizes of a batch exchanged.
static batch exchanged(const batch *b) {
  batch x = *b;
  for (int i = 0; i < x.nindex; i++) x.extent[i] = 5 - x.extent[i];
  return x;
}

static void test_pairs(int count) {
  static batch b[40];
  static char text[4096];
  char *form[40], *open[40];
  int same = 0, more = 0, pairs = 0;
  for (int round = 0; round < count; round++) {
    const int nop = (int)draw(1, 3), nindex = (int)draw(1, nop == 1 ? 2 : 3);
    const int nrow = (int)draw(1, 3);
    for (int i = 0; i < 40; i++) {
      do random_batch(&b[i], 1);  // of one size, so that many are alike
      while (b[i].nindex != nindex || b[i].nop != nop || b[i].nrow != nrow);
      spell(&b[i], 0, 0, text, sizeof text);
      form[i] = form_of(text);
      spell(&b[i], 0, 1, text, sizeof text);
      open[i] = form_as(text, 1);
    }
    for (int i = 0; i < 40; i++) {
      for (int j = 0; j < i; j++, pairs++) {
        const int alike = isomorphic(&b[i], &b[j]), equal = strcmp(form[i], form[j]) == 0;
        same += alike;
        CHECK(alike == equal);
        if (alike != equal && failures < 4) printf("%d\n%s%s", alike, form[i], form[j]);
        const batch x = exchanged(&b[j]);
        const int renamed = alike || isomorphic(&b[i], &x);
        more += renamed;
        CHECK(renamed == (strcmp(open[i], open[j]) == 0));
        if (renamed != (strcmp(open[i], open[j]) == 0) && failures < 4)
          printf("open %d\n%s%s", renamed, open[i], open[j]);
      }
    }
    for (int i = 0; i < 40; i++) free(form[i]), free(open[i]);
  }
  printf("  %d pairs, %d isomorphic, %d with sizes left open\n", pairs, same, more);
  CHECK(same > pairs / 1000 && more >= same && more < pairs);
}

// ---- spellings ----

// Values of a tensor of the source, by its number.
static double value_of(int64_t tensor, int64_t k) { return sin(1.7 * (double)(tensor * 64 + k)); }

static int64_t elements(const eini_tensor *t) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  return n;
}

// Evaluates a graph whose tensor i holds the values of tensor from[i] (NULL: i) of the source.
static void evaluate(const ein_graph *g, const ein_canon *c, double **value) {
  ein_plan *plan = NULL;
  ein_run run;
  const void *in[64];
  void *out[64];
  memset(&run, 0, sizeof run);
  int nin = 0, nout = 0;
  for (int64_t t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    const int64_t n = elements(x), id = c == NULL ? t : ein_canon_tensor(c, (int)t);
    value[t] = (double *)calloc((size_t)n + 1, sizeof(double));
    for (int64_t k = 0; x->role == EIN_ROLE_INPUT && k < n; k++) value[t][k] = value_of(id, k);
    if (x->role == EIN_ROLE_INPUT) in[nin++] = value[t];
    else out[nout++] = value[t];
  }
  run.in = in;
  run.out = out;
  CHECK(ein_plan_graph(NULL, g, 0, NULL, NULL, &plan) == EIN_OK);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  ein_plan_destroy(plan);
}

// The form computes what the source does, and its substitutions name it.
static void check_substitution(const char *text) {
  ein_graph *g = parse(text);
  ein_canon *c = NULL;
  double *mine[64], *other[64];
  CHECK(ein_canon_create(NULL, g, 0, &c) == EIN_OK);
  const ein_graph *f = ein_canon_graph(c);
  evaluate(g, NULL, mine);
  evaluate(f, c, other);
  for (int64_t t = 0; t < f->ntensor; t++) {
    const int64_t id = ein_canon_tensor(c, (int)t), n = elements(&f->tensor[t]);
    CHECK(id >= 0 && id < g->ntensor && n == elements(&g->tensor[id]));
    for (int64_t k = 0; k < n; k++) CHECK(fabs(other[t][k] - mine[id][k]) < 1e-12);
  }
  CHECK(f->nstmt == g->nstmt);
  for (int64_t k = 0; k < f->nstmt; k++) {
    ein_canon_stmt info;
    CHECK(ein_canon_statement(c, k, &info) && info.stmt >= 0 && info.stmt < g->nstmt);
    const eini_stmt *a = &f->stmt[k], *b = &g->stmt[info.stmt];
    CHECK(ein_canon_tensor(c, a->out) == b->out && a->noperand >= b->noperand);
    for (int i = 0; i < a->nindex; i++)
      CHECK(a->index[i].extent == b->index[info.index[i]].extent);
    for (int o = 0; o < a->noperand; o++) {
      CHECK(ein_canon_tensor(c, a->operand[o]) == b->operand[info.operand[o]]);
      for (int r = 0; r < a->proj[o].rows; r++)
        for (int i = 0; i < a->nindex; i++)
          CHECK(eini_map_coef(&a->proj[o], r, i) ==
                eini_map_coef(&b->proj[info.operand[o]], r, info.index[i]));
    }
  }
  for (int64_t t = 0; t < g->ntensor; t++) free(mine[t]);
  for (int64_t t = 0; t < f->ntensor; t++) free(other[t]);
  ein_graph_destroy(g);
  ein_canon_destroy(c);
}

static void test_spellings(int count, int spellings) {
  static char text[8192];
  for (int i = 0; i < count; i++) {
    batch b;
    random_batch(&b, 0);
    spell(&b, 1, 1, text, sizeof text);
    char *open = form_as(text, 1), *other = form_as(open, 1);
    CHECK(strcmp(open, other) == 0);
    free(other);
    for (int k = 0; k < (spellings + 9) / 10; k++) {
      spell(&b, 0, 1, text, sizeof text);
      other = form_as(text, 1);
      CHECK(strcmp(open, other) == 0);
      if (strcmp(open, other) != 0 && failures < 4) printf("%s\n%s%s", text, open, other);
      free(other);
    }
    free(open);
    spell(&b, 1, 0, text, sizeof text);
    char *form = form_of(text), *again = form_of(form);
    CHECK(strcmp(form, again) == 0);  // a form is its own
    free(again);
    for (int k = 0; k < spellings; k++) {
      spell(&b, 0, 0, text, sizeof text);
      again = form_of(text);
      CHECK(strcmp(form, again) == 0);
      if (strcmp(form, again) != 0 && failures < 4) printf("%s\n%s%s", text, form, again);
      free(again);
      if (k % 50 == 0) check_substitution(text);
    }
    free(form);
  }
}

// ---- single details, and the examples of the paper ----

static int same_form(const char *a, const char *b) {
  char *x = form_of(a), *y = form_of(b);
  const int same = strcmp(x, y) == 0;
  free(x);
  free(y);
  return same;
}

static void test_details(void) {
  static const char *const texts[] = {  // no two are alike
      "input A[3,3], B[3,3]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,3], B[3,3]\nY[k,i] = A[i,j]*B[j,k]\n",
      "input A[3,3]\nY[i,k] = A[i,j]*A[j,k]\n",
      "input A[3,3]\nY[i,k] = A[i,j]*A[k,j]\n",
      "input A[3,4], B[4,3]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input B[3,3]\ninput A[3,3] : f32\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,3]\ninput B[3,3] : f32\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,3], B[3,3]\nY[i,k] = max[j](A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](A[i,j]+B[j,k])\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](A[i,j]-B[j,k])\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](sin(A[i,j])*B[j,k])\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](A[i,j]*cos(B[j,k]))\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](2*A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,3]\nY[i,k] = sum[j](3*A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,3]\nparam s\nY[i,k] = sum[j](s*A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,3]\nparam s = 2.0\nY[i,k] = sum[j](s*A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,4]\nY[i,k=3] = sum[j=3](A[i,j]*B[j,k+1])\n",
      "input A[3,3], B[3,4]\nY[i,k=3] = sum[j=3](A[i,j]*B[j,k])\n",
      "input A[3,3], B[3,5]\nY[i,k=3] = sum[j=3](A[i,j]*B[j,2*k])\n",
      "input A[3,3], B[3,5]\nY[i,k=3] = sum[j=3](A[i,j]*B[j,4-2*k])\n",
      "input A[3,3]\nY[i] = A[i,i]\n",
      "input A[3,3]\nY[i] = sum[j](A[i,j])\n",
      "input A[3,3]\nY[i] = sum[j](A[j,i])\n",
      "input A[3,3]\nY[i,j] = A[i,j]\n",
      "input A[3,3]\nY[j,i] = A[i,j]\n",
      "input A[3,3]\nY[i,j] = A[i,j] + i\n",
      "input A[3,3]\nY[i,j] = A[i,j] + j\n",
      "input A[3,3]\nY = argmax[i,j](A[i,j])\n",
      "input A[3,3]\nY = argmax[j,i](A[i,j])\n"};
  const int n = (int)(sizeof texts / sizeof *texts);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) CHECK(same_form(texts[i], texts[j]) == (i == j));
  // Section 4: the batch i | ij,ik of (A,B) and i | ik,ij of (X,Y).
  char *form = form_of("input X[72,18], Y[72,18]\nR[i] = X[i,k]*Y[i,j]\n");
  CHECK(strstr(form, "Y0[a=72] : f64 = sum[b=18,c=18](A0[a,b]*A1[a,c])") != NULL);
  free(form);
  // Rows and operands in another order under other names, as in figure 1.
  static const char one[] =
      "input A[3,3,3], B[3,3,3], C[3,3,3], D[3,3,3], E[3,3,3]\n"
      "R1[i,j,k,l] = A[m,n,j]*B[m,n,i]*C[k,l,i]\nR2[i,j,k,l] = D[m,n,j]*E[m,n,i]*A[k,l,i]\n";
  CHECK(!same_form(one,
      "input A[3,3,3], B[3,3,3], C[3,3,3], D[3,3,3], E[3,3,3]\n"
      "R1[i,j,k,l] = A[m,n,j]*B[m,n,i]*C[k,l,i]\nR2[i,j,k,l] = D[m,n,j]*A[m,n,i]*E[k,l,i]\n"));
  CHECK(same_form(one,
      "input P[3,3,3], Q[3,3,3], S[3,3,3], T[3,3,3], U[3,3,3]\n"
      "R2[n,m,k,j] = P[k,j,n]*T[l,i,m]*U[l,i,n]\nR1[n,m,k,j] = Q[k,j,n]*P[l,i,m]*S[l,i,n]\n"));
  // Commutative operations; rows of several groups; several rows of one text.
  CHECK(same_form("input A[3], B[3]\nY[i] = max(A[i]+sin(B[i]), 1-A[i])\n",
                  "input V[3], U[3]\nY[i] = max(1-V[i], sin(U[i])+V[i])\n"));
  CHECK(!same_form("input A[3], B[3]\nY[i] = max(A[i]+sin(B[i]), 1-A[i])\n",
                   "input V[3], U[3]\nY[i] = max(1-U[i], sin(U[i])+V[i])\n"));
  CHECK(same_form("input A[3,4], x[4]\nY[i] = A[i,j]*x[j]\nZ[i] = exp(Y[i])\noutput Y, Z\n",
                  "input x[3,4], b[4]\nU[k] = b[m]*x[k,m]\nV[k] = exp(U[k])\noutput U, V\n"));
}

static int same_open(const char *a, const char *b) {
  char *x = form_as(a, 1), *y = form_as(b, 1), *again = form_as(x, 1);
  const int same = strcmp(x, y) == 0;
  CHECK(strcmp(x, again) == 0);
  free(x);
  free(y);
  free(again);
  return same;
}

static void refuse_open(const char *text, ein_status status, const char *part) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.open = 1;
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(ein_graph_parse(ctx, &d, &g) == status && g == NULL);
  CHECK(strstr(ein_ctx_message(ctx), part) != NULL);
  ein_ctx_destroy(ctx);
}

// Sizes left open: what they share counts, their names do not.
static void test_open(void) {
  static const char *const texts[] = {  // no two are alike
      "input A[m,n], B[n,k]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[m,n], B[n,m]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[m,n], B[n,n]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[n,n], B[n,k]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[n,n], B[n,n]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,n], B[n,k]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,n], B[n,3]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,n], B[n,4]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[3,3], B[3,3]\nY[i,k] = A[i,j]*B[j,k]\n",
      "input A[m,n], B[n,k], C[n,k]\nY[i,k] = A[i,j]*B[j,k]\nZ[i,k] = A[i,j]*C[j,k]\n"
      "output Y, Z\n",
      "input A[m,n], B[n,k], C[n,l]\nY[i,k] = A[i,j]*B[j,k]\nZ[i,k] = A[i,j]*C[j,k]\n"
      "output Y, Z\n",
      "input X[n]\nD[i=n-1] = X[i+1]-X[i]\n",
      "input X[n]\nD[i=n-2] = X[i+1]-X[i]\n",
      "input X[n], K[k]\nY[h] = X[h+r]*K[r]\n",
      "input X[n], K[n]\nY[i] = X[i]*K[i]\n",
      "input X[n,m]\nY[i,j] = X[i,j]/sqrt(size(n))\n",
      "input X[n,m]\nY[i,j] = X[i,j]/sqrt(size(m))\n",
      "input X[n,n]\nY[i,j] = X[i,j]/sqrt(size(n))\n",
      "input X[n,n]\nY[i,j] = X[i,j]/(size(n)+1)\n",
      "input X[n]\nY[i] = X[size(n)-1-i]\n",
      "input X[n]\nY[i] = X[i]\n",
      "input X[n], Z[m]\nY[i,j=m] = X[i]*Z[0]\n",
      "input X[n], Z[m]\nY[i,j=n] = X[i]*Z[0]\n",
      "input X[n], Z[m]\nY[i,j=m] = X[i]\n",  // no input of the statement has m
      "input X[n], Z[m]\nY[i,j=m-1] = X[i]\n"};
  const int n = (int)(sizeof texts / sizeof *texts);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) CHECK(same_open(texts[i], texts[j]) == (i == j));
  CHECK(same_open("input A[m,n], B[n,k]\nY[i,k] = A[i,j]*B[j,k]\n",
                  "input Q[n,m], P[k,n]\nY[a,b] = Q[c,b]*P[a,c]\n"));
  CHECK(same_open("input X[n], K[k]\nY[h] = X[h+r]*K[r]\n",
                  "input F[n], Z[k]\nW[x] = F[y]*Z[y+x]\n"));
  CHECK(same_open("input X[n,m]\nY[i,j] = X[i,j]/sqrt(size(n))\n",
                  "input X[m,n]\nY[j,i] = X[j,i]/sqrt(size(m))\n"));
  // Nothing but what sizes share tells the operands apart.
  CHECK(same_open("input A[m,n], B[n,n]\nY = A[i,j]*B[k,l]\n",
                  "input B[n,n], A[m,n]\nY = B[k,l]*A[i,j]\n"));
  // Groups stand alone: what they share of sizes is not said, and each can be read.
  CHECK(same_open("input A[m,n]\nY[i] = A[i,j]\nZ[i] = exp(Y[i])\noutput Y, Z\n",
                  "input B[n,q]\nU[i] = B[i,j]\nV[i] = exp(U[i])\noutput U, V\n"));
  // A form with numbers is another, and what has no numbers is not planned.
  char *x = form_as(texts[8], 1), *y = form_as(texts[8], 0);
  CHECK(strcmp(x, y) == 0);
  free(x);
  free(y);
  ein_graph *g = parse_as(texts[0], 1);
  ein_plan *plan = NULL;
  CHECK(strcmp(ein_graph_size(g, 0), "m") == 0 && ein_graph_size(g, 3) == NULL);
  CHECK(ein_plan_graph(NULL, g, 0, NULL, NULL, &plan) == EIN_ERR_SHAPE && plan == NULL);
  ein_canon *c = NULL;
  CHECK(ein_canon_create(NULL, g, 0, &c) == EIN_OK);
  for (int i = 0; i < 3; i++) CHECK(ein_canon_size(c, i) >= 0 && ein_canon_size(c, i) < 3);
  CHECK(ein_canon_size(c, 3) == -1 && ein_canon_size(NULL, 0) == -1);
  ein_canon_destroy(c);
  ein_graph_destroy(g);
  refuse_open("input A[m], B[n]\nY[i] = A[i]*B[i]\n", EIN_ERR_SHAPE, "numbers here: m=");
  refuse_open("input A[n]\nY[i] = A[2*i]\n", EIN_ERR_UNSUPPORTED, "no sum of the sizes");
  refuse_open("input A[n]\nY[i=div(n,2)] = A[i]\n", EIN_ERR_UNSUPPORTED, "left open: n");
  refuse_open("input A[n], B[m]\nY[i=n*m] = A[0]*B[0]\n", EIN_ERR_UNSUPPORTED, "left open: n, m");
}

// Many forms, each written twice, from the first to the last and back: tables grow in between.
static void test_many(void) {
  static char text[2][8192];
  for (int way = 0; way < 2; way++) {
    size_t n = (size_t)sprintf(text[way], "input A[3], B[3]\n");
    for (int k = 0; k < 100; k++) {
      const int form = way ? 99 - k : k;
      n += (size_t)sprintf(text[way] + n, "Y%d[i] = %d*%c[i]\n", k, form / 2 % 33,
                           form % 2 ? 'A' : 'B');
    }
    n += (size_t)sprintf(text[way] + n, "output Y0");
    for (int k = 1; k < 100; k++) n += (size_t)sprintf(text[way] + n, ", Y%d", k);
    sprintf(text[way] + n, "\n");
  }
  CHECK(same_form(text[0], text[1]));
  ein_graph *g = parse(text[0]);
  ein_canon *c = NULL;
  CHECK(ein_canon_create(NULL, g, 0, &c) == EIN_OK && ein_canon_groups(c) == 33);
  ein_canon_destroy(c);
  ein_graph_destroy(g);
}

// ---- graphs that defeat refinement: every arc is an operand, every vertex an index ----

// A simple graph as a product over its edges, its vertices numbered by `order`.
static char *product_of(int n, const char *edge, const int *order) {
  char *text = (char *)malloc(65536);
  size_t at = (size_t)sprintf(text, "input A[2,2]\nY = ");
  int first = 1;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      if (!edge[order[i] * n + order[j]]) continue;
      at += (size_t)sprintf(text + at, "%sA[v%d,v%d]", first ? "" : "*", i, j);
      first = 0;
    }
  }
  sprintf(text + at, "\n");
  return text;
}

static void test_regular(void) {
  enum { N = 16 };
  static char rook[N * N], shrikhande[N * N], cycle[N * N], pair[N * N], cube[N * N];
  static char *const graphs[] = {rook, shrikhande, cycle, pair, cube};
  char *form[5];
  for (int x = 0; x < N; x++) {
    for (int y = 0; y < N; y++) {
      const int a = x / 4, b = x % 4, c = y / 4, d = y % 4;
      const int e = (c - a + 4) % 4, f = (d - b + 4) % 4;
      rook[x * N + y] = x != y && (a == c || b == d);
      shrikhande[x * N + y] = (e == 0 && (f == 1 || f == 3)) || (f == 0 && (e == 1 || e == 3)) ||
                              (e == f && (e == 1 || e == 3));
      cycle[x * N + y] = (x + 1) % N == y || (y + 1) % N == x;
      pair[x * N + y] = x / 8 == y / 8 && ((x + 1) % 8 == y % 8 || (y + 1) % 8 == x % 8);
      cube[x * N + y] = (x ^ y) == 1 || (x ^ y) == 2 || (x ^ y) == 4 || (x ^ y) == 8;
    }
  }
  for (int k = 0; k < 5; k++) {
    for (int turn = 0; turn < FEW(6); turn++) {
      int order[N];
      shuffle(order, N);
      char *text = product_of(N, graphs[k], order), *f = form_of(text);
      if (turn > 0) CHECK(strcmp(f, form[k]) == 0);
      if (turn > 0) free(f);
      else form[k] = f;
      free(text);
    }
    for (int j = 0; j < k; j++) CHECK(strcmp(form[j], form[k]) != 0);
  }
  for (int k = 0; k < 5; k++) free(form[k]);
}

// ---- larger ones: every edge is two rows of a batch, every vertex a tensor ----

enum { VERTICES = 240, EDGES = 1200 };

typedef struct network {
  int n, nedge, end[EDGES][2];
} network;

static void join(network *g, int a, int b) {
  g->end[g->nedge][0] = a;
  g->end[g->nedge++][1] = b;
}

// Beside g: other, its vertices numbered after those of g.
static void unite(network *g, const network *other) {
  for (int e = 0; e < other->nedge; e++)
    join(g, g->n + other->end[e][0], g->n + other->end[e][1]);
  g->n += other->n;
}

// Rows in an order, and tensors under names, of their own.
static char *batch_of(const network *g) {
  static int name[VERTICES], row[2 * EDGES];
  char *text = (char *)malloc(200000), *at = text;
  shuffle(name, g->n);
  shuffle(row, 2 * g->nedge);
  for (int v = 0; v < g->n; v++) at += sprintf(at, "input T%d[2]\n", v);
  for (int r = 0; r < 2 * g->nedge; r++) {
    const int *end = g->end[row[r] / 2], turn = row[r] % 2;
    at += sprintf(at, "R%d[i] = T%d[i]-T%d[i]\n", r, name[end[turn]], name[end[1 - turn]]);
  }
  for (int r = 0; r < 2 * g->nedge; r++) at += sprintf(at, "%sR%d", r > 0 ? ", " : "output ", r);
  sprintf(at, "\n");
  return text;
}

// The form of a network, or NULL: it takes more than the work given.
static char *network_form(const network *g) {
  char *text = batch_of(g), *form = NULL;
  ein_graph *b = parse(text);
  ein_canon *c = NULL;
  const ein_status st = ein_canon_create(NULL, b, 0, &c);
  CHECK(st == EIN_OK || st == EIN_ERR_TOO_LARGE);
  if (st == EIN_OK) {
    const size_t n = ein_graph_print(ein_canon_graph(c), NULL, 0) + 1;
    form = (char *)malloc(n);
    ein_graph_print(ein_canon_graph(c), form, n);
  }
  ein_canon_destroy(c);
  ein_graph_destroy(b);
  free(text);
  return form;
}

// Cai, Fuerer and Immerman 1992 over a base where every vertex has three edges: a vertex for each
// even set of the edges at a vertex of the base, two for each end of an edge; twist: one edge is
// crossed. Refinement by tuples of less than the base's separators does not tell the two apart.
static void cai(const network *base, int twist, network *g) {
  int count[VERTICES] = {0};
  g->n = 10 * base->n;
  g->nedge = 0;
  for (int e = 0; e < base->nedge; e++) {
    int first[2];
    for (int k = 0; k < 2; k++) {
      const int v = base->end[e][k], slot = count[v]++;
      first[k] = 10 * v + 4 + 2 * slot;
      for (int set = 0; set < 4; set++) {  // 000, 011, 101, 110
        const int in = slot == 2 ? (set == 1 || set == 2) : slot == 1 ? set % 2 : set / 2;
        join(g, 10 * v + set, first[k] + in);
      }
    }
    for (int i = 0; i < 2; i++) join(g, first[0] + i, first[1] + (i ^ (twist && e == 0)));
  }
}

// Cells of a square of a group's table that share a row, a column or an entry.
static void latin(int n, int kind, network *g) {
  g->n = n * n;
  g->nedge = 0;
  for (int x = 0; x < n * n; x++) {
    for (int y = 0; y < x; y++) {
      int entry[2];
      for (int k = 0; k < 2; k++) {
        const int a = (k ? y : x) / n, b = (k ? y : x) % n;
        entry[k] = kind == 0 ? (a + b) % n : kind == 1 ? a ^ b  // Z(n), Z(2) x Z(2), S(3)
                 : (a % 3 + (a < 3 ? b % 3 : 3 - b % 3)) % 3 + 3 * ((a / 3) ^ (b / 3));
      }
      if (x / n == y / n || x % n == y % n || entry[0] == entry[1]) join(g, x, y);
    }
  }
}

// Elements of the field with 25 elements, a + b*sqrt(2), whose difference is a square.
static void paley(network *g) {
  char square[25] = {0};
  for (int a = 0; a < 5; a++)
    for (int b = 0; b < 5; b++) square[(a * a + 2 * b * b) % 5 * 5 + 2 * a * b % 5] = 1;
  g->n = 25;
  g->nedge = 0;
  for (int x = 0; x < 25; x++)
    for (int y = 0; y < x; y++)
      if (square[(x / 5 - y / 5 + 5) % 5 * 5 + (x % 5 - y % 5 + 5) % 5]) join(g, x, y);
}

// Pairs of 8 points that share one, switched by a set of pairs: the triangular graph (which 0) and
// the three of Chang 1959: four apart, a circle of 8, circles of 3 and 5.
static void chang(int which, network *g) {
  static const char *const sets[] = {"", "01234567", "0112233445566770", "0112203445566773"};
  int pair[28][2], n = 0;
  char in[28] = {0};
  g->n = 28;
  g->nedge = 0;
  for (int a = 0; a < 8; a++)
    for (int b = 0; b < a; b++, n++) {
      pair[n][0] = a;
      pair[n][1] = b;
      for (const char *s = sets[which]; *s; s += 2)
        in[n] |= (s[0] - '0' == a && s[1] - '0' == b) || (s[0] - '0' == b && s[1] - '0' == a);
    }
  for (int x = 0; x < 28; x++)
    for (int y = 0; y < x; y++) {
      const int share = pair[x][0] == pair[y][0] || pair[x][0] == pair[y][1] ||
                        pair[x][1] == pair[y][0] || pair[x][1] == pair[y][1];
      if (share != (in[x] != in[y])) join(g, x, y);
    }
}

// A circle with chords across: every vertex has three edges.
static void moebius(int n, network *g) {
  g->n = n;
  g->nedge = 0;
  for (int v = 0; v < n; v++) join(g, v, (v + 1) % n);
  for (int v = 0; v < n / 2; v++) join(g, v, v + n / 2);
}

// Networks of one kind number are isomorphic, others are not. most: that may be refused.
static void check_networks(const char *what, const network *g, const int *kind, int n, int most) {
  char *form[16][2];
  int refused = 0;
  for (int i = 0; i < n; i++)
    for (int turn = 0; turn < 2; turn++) refused += (form[i][turn] = network_form(&g[i])) == NULL;
  for (int i = 0; i < 2 * n; i++)
    for (int j = 0; j < i; j++) {
      const char *x = form[i / 2][i % 2], *y = form[j / 2][j % 2];
      if (x != NULL && y != NULL) CHECK((strcmp(x, y) == 0) == (kind[i / 2] == kind[j / 2]));
    }
  for (int i = 0; i < 2 * n; i++) free(form[i / 2][i % 2]);
  printf("  %s: %d networks, %d forms refused\n", what, n, refused);
  CHECK(refused <= most);
}

static void test_networks(void) {
  static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const int kind[] = {0, 0, 1, 1, 2, 3, 4};
  static network g[8], base;
  for (int n = 4, k = 0; n <= FEW(20); n *= 2, k++) {
    moebius(n == 16 ? 20 : n, &base);
    cai(&base, 0, &g[0]);
    cai(&base, 1, &g[1]);
    char name[32];
    sprintf(name, "Cai-Fuerer-Immerman %d", g[0].n);
    check_networks(name, g, each, 2, 0);
  }
  latin(5, 0, &g[0]);
  paley(&g[1]);
  latin(4, 0, &g[2]);
  g[3] = g[2];
  latin(4, 1, &g[4]);
  latin(6, 0, &g[5]);
  latin(6, 2, &g[6]);
  check_networks("Paley, squares of groups", g, kind, 7, 0);
  for (int i = 0; i < 4; i++) chang(i, &g[i]);
  check_networks("triangular and Chang", g, each, 4, 0);
  static const int parts[][4] = {{0, 0, 1, 1}, {0, 1, 1, 1}, {1, 0, 1, 0}, {0, 1, 2, 3},
                                 {3, 1, 0, 2}, {1, 1, 1, 1}};
  static network part[4];
  const int alike[] = {0, 1, 0, 2, 2, 3};
  for (int i = 0; i < 4; i++) chang(i, &part[i]);
  for (int i = 0; i < 6; i++) {
    g[i].n = g[i].nedge = 0;
    for (int k = 0; k < 4; k++) unite(&g[i], &part[parts[i][k]]);
  }
  check_networks("unions of four", g, alike, 6, 0);
}

// Too much is refused in time, and the message says so.
static void test_work(void) {
  enum { N = 40 };
  static char edge[N * N];
  int order[N];
  ein_ctx *ctx;
  ein_canon *c;
  for (int x = 0; x < N; x++)  // edges that no refinement tells apart: a random regular graph
    for (int s = 0; s < 3; s++) {
      const int y = (x * (2 * s + 3) + 7 * s + 1) % N;
      if (x != y) edge[x * N + y] = edge[y * N + x] = 1;
    }
  shuffle(order, N);
  char *text = product_of(N, edge, order);
  ein_graph *g = parse(text);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(ein_canon_create(ctx, g, 20, &c) == EIN_ERR_TOO_LARGE && c == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "work") != NULL);
  CHECK(ein_canon_create(ctx, g, 0, &c) == EIN_OK);
  ein_canon_destroy(c);
  CHECK(ein_canon_create(ctx, g, -1, &c) == EIN_ERR_ARGUMENT);
  CHECK(ein_canon_create(ctx, NULL, 0, &c) != EIN_OK && c == NULL);
  ein_canon_destroy(NULL);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  free(text);
}

// Every allocation fails once: a status, and nothing is left.
static void test_memory(int open) {
  static const char numbers[] =
      "input A[3,3], B[3,3]\nparam s\nY[i,k] = s*A[i,j]*B[j,k]\nZ[i] = max(A[i,i], Y[i,i]+1)\n"
      "W[i,k] = s*B[i,j]*A[j,k]\noutput Y, Z, W\n";
  static const char sizes[] =
      "input A[m,n], B[n,k], X[p]\nY[i,k] = A[i,j]*B[j,k]/sqrt(size(n))\nZ[i=p-1] = X[i+1]\n"
      "W[i,j=k] = A[i,0]\noutput Y, Z, W\n";
  ein_program_desc desc;
  long n = 0;
  memset(&desc, 0, sizeof desc);
  desc.text = open ? sizes : numbers;
  desc.open = open;
  for (int done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_ctx_desc d;
    ein_ctx *ctx;
    ein_graph *g = NULL;
    ein_canon *c = NULL;
    memset(&d, 0, sizeof d);
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = &count;
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    count.fail_at = count.calls + n;
    ein_status st = ein_graph_parse(ctx, &desc, &g);
    if (st == EIN_OK) st = ein_canon_create(ctx, g, 0, &c);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && c == NULL));
    done = st == EIN_OK;
    ein_canon_destroy(c);
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
  CHECK(n > 2);
}

int main(int argc, char **argv) {
  const int batches = argc > 1 ? atoi(argv[1]) : FEW(200);
  const int spellings = argc > 2 ? atoi(argv[2]) : FEW(1000);
  rng_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_details();
  test_open();
  test_many();
  test_pairs(FEW(30));
  test_spellings(batches, spellings);
  test_regular();
  test_networks();
  test_work();
  test_memory(0);
  test_memory(1);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
