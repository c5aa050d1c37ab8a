// Programs that are proved equal without data, as shards of one are to it, and others that are not:
// what is proved is compared with the oracle.
//
//   test_equal [count] [seed]
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "check.h"
#include "util.h"

static ein_ctx *ctx;

static ein_graph *parse(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

static ein_status equal(const char *a, const char *b) {
  ein_graph *g = parse(a), *h = parse(b);
  const ein_status st = ein_rewrite_equal(ctx, g, h);
  ein_graph_destroy(g);
  ein_graph_destroy(h);
  return st;
}

// ---- cases ----

static const struct { const char *a, *b; } same[] = {
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",
     "input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // rows
     "input A[m=4,k=8], B[k,n=6]\nP[i=2,j] = A[i,k]*B[k,j]; Q[i=2,j] = A[i+2,k]*B[k,j]\n"
     "C[i,j] = P[i,j]; C[i+2,j] = Q[i,j]\noutput C\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // the sum
     "input A[m=4,k=8], B[k,n=6]\nP[i,j] = sum[k=4](A[i,k]*B[k,j])\n"
     "Q[i,j] = sum[k=4](A[i,k+4]*B[k+4,j])\nC[i,j] = P[i,j] + Q[i,j]\noutput C\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // the sum, dealt in turn, and ragged
     "input A[m=4,k=8], B[k,n=6]\nP[i,j] = sum[k=3](A[i,3*k]*B[3*k,j])\n"
     "Q[i,j] = sum[k=3](A[i,3*k+1]*B[3*k+1,j])\nR[i,j] = sum[k=2](A[i,3*k+2]*B[3*k+2,j])\n"
     "C[i,j] = P[i,j] + Q[i,j] + R[i,j]\noutput C\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // partial results as a tensor
     "input A[m=4,k=8], B[k,n=6]\nP[q=4,i,j] = sum[k=2](A[i,2*q+k]*B[2*q+k,j])\n"
     "C[i,j] = sum[q](P[q,i,j])\noutput C\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // one value left over
     "input A[m=4,k=8], B[k,n=6]\nC[i,j] = sum[k=7](A[i,k]*B[k,j]) + A[i,7]*B[7,j]\n"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",  // backwards
     "input A[m=4,k=8], B[k,n=6]\nC[i,j] = sum[k](A[i,7-k]*B[7-k,j])\n"},
    {"input X[n=12] : f32\nY[i] = exp(X[i]) + 1\n",  // interleaved
     "input X[n=12] : f32\nE[i=6] = exp(X[2*i]) + 1; O[i=6] = exp(X[2*i+1]) + 1\n"
     "Y[2*i] = E[i]; Y[2*i+1] = O[i]\noutput Y\n"},
    {"input X[n=12] : f32\nY[i=10] = X[i] + X[i+1] + X[i+2]\n",  // halos
     "input X[n=12] : f32\nP[i=7] = X[i]; Q[i=7] = X[i+5]\nY[i=5] = P[i] + P[i+1] + P[i+2]\n"
     "Y[i+5] = Q[i] + Q[i+1] + Q[i+2] for i=5\noutput Y\n"},
    {"input X[a=6,b=5]\nm = max[i,j](X[i,j])\n",  // an extreme of extremes
     "input X[a=6,b=5]\nP[q=3] = max[i=2,j](X[2*q+i,j])\nm = max[q](P[q])\noutput m\n"},
    {"input X[a=6,b=5]\nY[i] = softmax[i](sum[j](X[i,j]))\n",
     "input X[a=6,b=5]\nS[i=3] = sum[j](X[i,j]); S[i+3] = sum[j](X[i+3,j]) for i=3\n"
     "Y[i] = softmax[i](S[i])\noutput Y\n"},
    {"input X[s=8,d=4], W[d,e=4], V[e,f=6]\nH[s,e] = relu(sum[d](X[s,d]*W[d,e]))\n"
     "Y[s,f] = H[s,e]*V[e,f]\noutput Y\n",  // Megatron
     "input X[s=8,d=4], W[d,e=4], V[e,f=6]\nG[s,e=2] = relu(sum[d](X[s,d]*W[d,e]))\n"
     "I[s,e=2] = relu(sum[d](X[s,d]*W[d,e+2]))\nP[s,f] = sum[e=2](G[s,e]*V[e,f])\n"
     "Q[s,f] = sum[e=2](I[s,e]*V[e+2,f])\nY[s,f] = P[s,f] + Q[s,f]\noutput Y\n"},
    {"input X[n=6] : i32\nY[i] = X[i]*i\n",
     "input X[n=6] : i32\nY[i=2] = X[i]*i; Y[i+2] = X[i+2]*(i+2) for i=4\n"},
    {"input A[n=6,n]\nY[i] = sum[j](A[i,j])*2\n",  // what is between has one name
     "input A[n=6,n]\nT[i] = sum[j](A[i,j])\nY[i] = T[i]*2\noutput Y\n"},
    {"input A[n=4,k=6]\nY[i] = mean[j](A[i,j]); Z[i] = argmax[j](A[i,j])\n",
     "input A[n=4,k=6]\nP[i=1] = mean[j](A[i,j]); P[i+1] = mean[j](A[i+1,j]) for i=3\nY[i] = P[i]\n"
     "Z[i=2] = argmax[j](A[i,j]); Z[i+2] = argmax[j](A[i+2,j]) for i=2\noutput Y, Z\n"},
    {"input X[n=12]\nY[i] = where(i<6, X[i], 2*X[i])\n",  // conditions that a region decides
     "input X[n=12]\nY[i=6] = X[i]; Y[i+6] = 2*X[i+6] for i=6\n"},
    {"input X[n=12]\nY[i] = where((i>=3)*(i!=7), X[i], 5)\n",
     "input X[n=12]\nY[i=3] = 5; Y[i+3] = X[i+3] for i=4; Y[i+7] = 5 for i=1\n"
     "Y[i+8] = X[i+8] for i=4\n"},
    {"input A[n=4,k=6]\nY[i] = sum[j](where(j<2, A[i,j], 3*A[i,j]))\n",
     "input A[n=4,k=6]\nY[i] = sum[j=2](A[i,j]) + sum[j=4](3*A[i,j+2])\n"},
    {"input X[n=12]\nZ[i] = pad[i](X[i], 1, 1 | 0); R[i] = roll[i](X[i], 3)\n"
     "V[i] = interleave[i](X[i], 2*X[i])\n",
     "input X[n=12]\nZ[i=1] = 0; Z[i+1] = X[i]; Z[i+13] = 0 for i=1\n"
     "R[i=3] = X[i+9]; R[i+3] = X[i] for i=9\nV[2*i] = X[i]; V[2*i+1] = 2*X[i]\n"},
    {"input X[n=12]\nY[i] = X[i-1 | 0] + X[i+1 | wrap] for i=12\n",
     "input X[n=12]\nY[i=6] = X[i-1 | 0] + X[i+1]; Y[i+6] = X[i+5] + X[i+7 | wrap] for i=6\n"},
    {"input A[n=4,k=6], B[k,l=3]\nY = sum[i,k,l](A[i,k]*B[k,l])\n",
     "input A[n=4,k=6], B[k,l=3]\nT[i,l] = A[i,k]*B[k,l]\nY = sum[i,l](T[i,l])\noutput Y\n"}};

static const struct { const char *a, *b, *says; } other[] = {
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",
     "input A[m=4,k=8], B[k,n=6]\nP[i=2,j] = A[i,k]*B[k,j]; Q[i=2,j] = A[i+1,k]*B[k,j]\n"
     "C[i,j] = P[i,j]; C[i+2,j] = Q[i,j]\noutput C\n", "at [2..3, 0..5] line 2 and line 3"},
    {"input A[m=4,k=8], B[k,n=6]\nC[i,j] = A[i,k]*B[k,j]\n",
     "input A[m=4,k=8], B[k,n=6]\nP[i,j] = sum[k=4](A[i,k]*B[k,j])\n"
     "Q[i,j] = sum[k=4](A[i,k+3]*B[k+3,j])\nC[i,j] = P[i,j] + Q[i,j]\noutput C\n", "not proved"},
    {"input X[n=12] : f32\nY[i] = exp(X[i]) + 1\n",
     "input X[n=12] : f32\nY[2*i] = exp(X[2*i]) + 1; Y[2*i+1] = exp(X[2*i+1]) + 2\n",
     "at [1..11 by 2]"},
    {"input X[n=12] : f32\nY[i] = exp(X[i]) + 1\n",
     "input X[n=12] : f32\nT[i] : f16 = exp(X[i])\nY[i] : f32 = T[i] + 1\noutput Y\n",
     "not proved"},
    {"input X[n=6] : i32\nY[i] = X[i]*i\n",
     "input X[n=6] : i32\nY[i=2] = X[i]*i; Y[i+2] = X[i+2]*i for i=4\n", "at [2..5]"},
    {"input X[n=12]\nY[i] = where(i<6, X[i], 2*X[i])\n",
     "input X[n=12]\nY[i=7] = X[i]; Y[i+7] = 2*X[i+7] for i=5\n", "at [6]"},
    {"input X[n=12]\nY[i] = where(i>=3, X[i], where(i==1, X[i], 5))\n",
     "input X[n=12]\nY[i=3] = 5; Y[i+3] = X[i+3] for i=9\n", "at [1]"},
    {"input X[n=6]\nY[i] = X[i]\n", "input X[n=6]\nZ[i] = X[i]\n", "only one"},
    {"input X[n=6]\nY[i] = X[i]\n", "input X[n=5]\nY[i] = X[i]\n", "extents"},
    {"input A[n=4,k=6]\nY[i] = mean[j](A[i,j])\n",
     "input A[n=4,k=6]\nP[i] = mean[j=3](A[i,j]); Q[i] = mean[j=3](A[i,j+3])\n"
     "Y[i] = (P[i] + Q[i])/2\noutput Y\n", "not proved"}};

static void test_cases(void) {
  for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
    for (int turn = 0; turn < 2; turn++) {
      const ein_status st = equal(turn ? same[k].b : same[k].a, turn ? same[k].a : same[k].b);
      if (st != EIN_OK) printf("%s---\n%s%s\n", same[k].a, same[k].b, ein_ctx_message(ctx));
      CHECK(st == EIN_OK);
    }
  }
  for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
    CHECK(equal(other[k].a, other[k].b) != EIN_OK);
    const int says = strstr(ein_ctx_message(ctx), other[k].says) != NULL;
    if (!says) printf("%s---\n%s%s\n", other[k].a, other[k].b, ein_ctx_message(ctx));
    CHECK(says);
  }
}

// ---- random shards ----

static char text[16384];
static size_t length;

EINI_PRINTF(1, 2) static void put(const char *format, ...) {
  va_list args;
  va_start(args, format);
  length += (size_t)vsnprintf(text + length, sizeof text - length, format, args);
  va_end(args);
}

// Ranges that make up 0 .. extent-1: one after another, or dealt in turn. Returns how many.
static int draw_ranges(int extent, eini_vrange *r) {
  const int n = (int)draw(1, extent < 4 ? extent : 4), dealt = chance(40);
  int at = 0;
  for (int k = 0; k < n; k++) {
    const int end = k + 1 == n ? extent : at + (int)draw(1, extent - at - (n - k - 1));
    r[k].lo = dealt ? k : at;
    r[k].step = dealt ? n : 1;
    r[k].n = dealt ? (extent - k + n - 1) / n : end - at;
    at = end;
  }
  return n;
}

static const char *at_range(const eini_vrange *r, const char *index) {
  static char room[8][40];
  static int next;
  char *s = room[next++ % 8];
  if (r->step == 1) snprintf(s, 40, "%s+%d", index, (int)r->lo);
  else snprintf(s, 40, "%d*%s+%d", (int)r->step, index, (int)r->lo);
  return s;
}

// exp(sum of products) of matrices, whole and as shards along rows and along the sum.
static void draw_pair(char *whole, size_t size) {
  const int m = (int)draw(1, 7), n = (int)draw(1, 4), k = (int)draw(1, 9), kind = (int)draw(0, 2);
  const char *fold = kind == 0 ? "sum" : kind == 1 ? "max" : "sum";
  const char *after = chance(50) ? "exp" : "";
  const char *join = kind == 1 ? "max" : "";
  eini_vrange row[4], red[4];
  const int nrow = draw_ranges(m, row), nred = draw_ranges(k, red);
  snprintf(whole, size, "input A[m=%d,k=%d], B[k,n=%d], w[k]\n"
           "C[i,j] = %s(%s[k](A[i,k]*B[k,j]*w[k]))*3\n", m, k, n, after, fold);
  length = 0;
  put("input A[m=%d,k=%d], B[k,n=%d], w[k]\n", m, k, n);
  for (int a = 0; a < nrow; a++)
    for (int b = 0; b < nred; b++)
      put("P%d%d[i=%d,j] = %s[k=%d](A[%s,%s]*B[%s,j]*w[%s])\n", a, b, (int)row[a].n, fold,
          (int)red[b].n, at_range(&row[a], "i"), at_range(&red[b], "k"), at_range(&red[b], "k"),
          at_range(&red[b], "k"));
  for (int a = 0; a < nrow; a++) {
    put("C[%s,j] = %s(", at_range(&row[a], "i"), after);
    for (int b = 0; b + 1 < nred && *join; b++) put("%s(P%d%d[i,j], ", join, a, b);
    if (*join) put("P%d%d[i,j]", a, nred - 1);
    for (int b = 0; b + 1 < nred && *join; b++) put(")");
    for (int b = 0; b < nred && !*join; b++) put("%sP%d%d[i,j]", b > 0 ? " + " : "", a, b);
    put(")*3\n");
  }
  put("output C\n");
}

// Outputs of a program of these, of whole numbers.
static int run(const char *program, double *c) {
  static double in[3][128];
  const void *data[3] = {in[0], in[1], in[2]};
  void *out[1] = {c};
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_run r;
  memset(&d, 0, sizeof d), memset(&r, 0, sizeof r);
  d.text = program;
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 128; i++) in[k][i] = (double)((i * 37 + k * 11) % 13 - 6) / 16;
  r.in = data, r.out = out;
  const int ok = ein_graph_parse(ctx, &d, &g) == EIN_OK &&
                 ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK &&
                 ein_plan_execute(plan, &r) == EIN_OK;
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  return ok;
}

static void test_random(int count) {
  int proved = 0, mutants = 0, survived = 0;
  for (int n = 0; n < count; n++) {
    char whole[512];
    draw_pair(whole, sizeof whole);
    const ein_status st = equal(whole, text);
    if (st != EIN_OK) printf("%s---\n%s%s\n", whole, text, ein_ctx_message(ctx));
    CHECK(st == EIN_OK);
    proved += st == EIN_OK;
    // One digit, or sign, is another one: what is proved then is still true.
    for (int tries = 0; tries < 8; tries++) {
      ein_program_desc d;
      ein_graph *g = parse(whole), *h = NULL;
      const int from = (int)(strchr(text, '\n') - text);
      char *at = &text[draw(from, (int)length - 1)];
      for (int k = 0; k < 40 && (*at < '0' || *at > '9') && *at != '+'; k++)
        at = &text[draw(from, (int)length - 1)];
      const char old = *at;
      if (*at >= '0' && *at <= '9') *at = (char)('0' + draw(0, 9));
      else if (*at == '+') *at = '-';
      memset(&d, 0, sizeof d);
      d.text = text;
      if (*at != old && ein_graph_parse(ctx, &d, &h) == EIN_OK) {
        mutants++;
        if (ein_rewrite_equal(ctx, g, h) == EIN_OK) {
          double a[64] = {0}, b[64] = {0};
          int good = run(whole, a) && run(text, b);
          for (int i = 0; i < 64; i++) good &= fabs(a[i] - b[i]) <= 1e-12 * (1 + fabs(a[i]));
          if (!good) printf("proved equal, and is not:\n%s---\n%s", whole, text);
          CHECK(good);
          survived++;
        }
      }
      *at = old;
      ein_graph_destroy(g);
      ein_graph_destroy(h);
    }
  }
  printf("%d of %d shards proved; of %d with one character changed %d, which agree\n", proved,
         count, mutants, survived);
  CHECK(mutants > count);
}

// Every allocation fails once.
static void test_memory(void) {
  ein_graph *g = parse(same[2].a), *h = parse(same[2].b);
  for (long n = 0, done = 0; !done; n += 1 + n / 32) {
    counter c = {0, -1, 0};
    ein_ctx_desc d;
    ein_ctx *own;
    memset(&d, 0, sizeof d);
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = &c;
    CHECK(ein_ctx_create(&d, &own) == EIN_OK);
    c.fail_at = c.calls + n;
    const ein_status st = ein_rewrite_equal(own, g, h);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    done = st == EIN_OK;
    ein_ctx_destroy(own);
    CHECK(c.live == 0);
  }
  ein_graph_destroy(g);
  ein_graph_destroy(h);
}

int main(int argc, char **argv) {
  const int count = argc > 1 ? atoi(argv[1]) : FEW(400);
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  test_cases();
  test_random(count);
  test_memory();
  ein_ctx_destroy(ctx);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
