// I/O bounds: closed forms come out to 9 digits without being known to the library; extents as
// caps; segments of any length; and no box is better than the tile. What executions move is counted
// in test_count.c.
//
//   test_bound [boxes [seed]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "check.h"
#include "util.h"
#include "small_statements.h"

static int near(double a, double b) {
  const int same = (a - a != 0 && a == b) || fabs(a - b) <= 1e-9 * fabs(b);
  if (!same) printf("  %.15g, not %.15g\n", a, b);
  return same;
}

static double side(const ein_bound_stmt *s, const ein_intensity *x, const char *name) {
  for (int i = 0; i < s->nindex; i++)
    if (strcmp(s->index[i], name) == 0) return x->tile[i];
  return -1;
}

static void test_closed(void) {
  static const double memory[] = {100, 32768, 1e6, 3e9};
  ein_bound *b;
  for (int i = 0; i < 4; i++) {
    const double s = memory[i];
    ein_bound_stmt x = bound_of("input A[i=100000,k=100000], B[k,j=100000] : f64\n"
                                "C[i,j] = A[i,k]*B[k,j]", s, 8, &b);
    CHECK(near(x.paper.x0, 3 * s) && near(x.paper.rho, sqrt(s) / 2));
    CHECK(near(x.paper.bound, 2e15 / sqrt(s)) && near(x.paper.per_place, 2e15 / sqrt(s) / 8));
    CHECK(near(x.capped.rho, sqrt(s) / 2) && near(x.capped.x0, 3 * s));
    CHECK(near(side(&x, &x.paper, "i"), sqrt(s)) && near(side(&x, &x.capped, "k"), sqrt(s)));
    CHECK(x.bound <= x.paper.bound && x.bound >= x.paper.bound * (1 - 1e-6) - 3 * s);
    CHECK(x.compulsory == 3e10 && x.volume == 1e15 && x.flops == 2e15);
    ein_bound_destroy(b);
    // A matrix by a vector: what does not move with an index is S, for either.
    x = bound_of("input A[i=100000,k=100000], B[k] : f64\nC[i] = A[i,k]*B[k]", s, 1, &b);
    CHECK(near(x.paper.rho, s / (s + 1)) && near(x.paper.x0, s * s + 2 * s));
    CHECK(x.bound >= 1e10 && near(side(&x, &x.paper, "k"), s));
    ein_bound_destroy(b);
    // The product of Khatri and Rao, and what follows it as a product of matrices.
    x = bound_of("input X[i=1000,m=100000], M[m,a=1000] : f64\nU[i,a] = X[i,m]*M[m,a]", s, 1, &b);
    CHECK(near(x.paper.bound, 2e11 / sqrt(s)));
    ein_bound_destroy(b);
    x = bound_of("input X[i=1000,j=1000], Y[i,j] : f64\nZ[i,j] = X[i,j]*Y[i,j]", s, 1, &b);
    CHECK(near(x.paper.rho, 0.5) && x.paper.x0 == INFINITY && x.bound == 3e6);
    CHECK(side(&x, &x.paper, "i") == INFINITY && x.compulsory == 3e6);
    ein_bound_destroy(b);
    x = bound_of("input X[i=1000,j=1000] : f64\nZ[i] = sum[j](X[i,j])", s, 1, &b);
    CHECK(near(x.paper.rho, 1) && x.paper.x0 == INFINITY && x.bound == 1001000);
    CHECK(side(&x, &x.paper, "j") == INFINITY);
    ein_bound_destroy(b);
    x = bound_of("input X[i=100,j=100,k=100], v[k] : f64\nZ[i,j] = X[i,j,k]*v[k]", s, 4, &b);
    CHECK(x.bound == 1010100 && (i > 0 || near(x.paper.rho, s / (s + 1))));
    CHECK(i < 2 || x.per_place == 0);
    ein_bound_destroy(b);
  }
}

// X[i,j,k,..] * A[j,a] * B[k,a] * ..: order d, S elements.
static void test_mttkrp(void) {
  for (int d = 3; d <= 8; d++) {
    for (double s = 1000; s < 1e10; s *= 37) {
      char text[512];
      size_t n = 0;
      ein_bound *b;
#define SAY(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
      SAY("input X[");
      for (int k = 0; k < d; k++) SAY("%si%d=10000", k ? "," : "", k);
      SAY("]\n");
      for (int k = 1; k < d; k++) SAY("input A%d[i%d,a=1000000000]\n", k, k);
      SAY("Y[i0,a] = X[");
      for (int k = 0; k < d; k++) SAY("%si%d", k ? "," : "", k);
      SAY("]");
      for (int k = 1; k < d; k++) SAY("*A%d[i%d,a]", k, k);
      const double v = pow(1e4, d) * 1e9, root = pow(s, 1.0 / d);
      ein_bound_stmt x = bound_of(text, s, 1, &b);
      CHECK(near(x.paper.rho, s / root / d));
      CHECK(near(x.paper.bound, d * v * root / s));
      CHECK(near(x.paper.x0, (2 * d - 1) * s / (d - 1)));
      CHECK(near(side(&x, &x.paper, "i1"), root));
      CHECK(near(side(&x, &x.paper, "a"), s / root / (d - 1)));
      CHECK(x.bound <= x.paper.bound && x.bound >= x.paper.bound * (1 - 1e-9 - 1 / (s * s)));
      ein_bound_destroy(b);
    }
  }
}

static void test_caps(void) {
  ein_bound *b;
  const double s = 10000;
  // With i <= 50 < sqrt(S), what does not move with j, and with k, is S.
  ein_bound_stmt x = bound_of("input A[i=50,k=100000], B[k,j=100000]\nC[i,j] = A[i,k]*B[k,j]", s, 1,
                              &b);
  CHECK(near(x.capped.rho, s * 50 / (2500 + s)) && near(x.capped.x0, 2 * s + s * s / 2500));
  CHECK(near(side(&x, &x.capped, "j"), s / 50) && near(side(&x, &x.capped, "i"), 50));
  CHECK(near(x.paper.rho, 50));
  ein_bound_destroy(b);
  // Everything fits; and 1 is an extent like any other.
  x = bound_of("input A[i=50,k=10], B[k,j=10]\nC[i,j] = A[i,k]*B[k,j]", s, 4, &b);
  CHECK(x.capped.rho == INFINITY && x.capped.bound == 0 && x.bound == 1100 && x.per_place == 0);
  ein_bound_destroy(b);
  x = bound_of("input A[i=1000,k=1], B[k,j=1000]\nC[i,j] = A[i,k]*B[k,j]", 100, 1, &b);
  CHECK(near(x.paper.rho, 5) && near(x.capped.rho, 100.0 / 101) && side(&x, &x.capped, "k") == 1);
  ein_bound_destroy(b);
  // Columns of equal indices are one variable; their sides share it, as far as they can.
  x = bound_of("input A[i=100,h=3,k=10000], B[k,j=10000]\nC[i,h,j] = A[i,h,k]*B[k,j]", s, 1, &b);
  CHECK(near(side(&x, &x.paper, "i"), 10) && near(side(&x, &x.paper, "h"), 10));
  CHECK(near(side(&x, &x.capped, "h"), 3) && near(side(&x, &x.capped, "i"), 100 / 3.0));
  ein_bound_destroy(b);
  // An index in no access.
  x = bound_of("input A[i=1000000]\nC[i] = sum[k=7](A[i]*k)", 100, 1, &b);
  CHECK(x.paper.rho == INFINITY && x.paper.bound == 0 && side(&x, &x.paper, "k") == INFINITY);
  CHECK(x.bound == 2000000 && side(&x, &x.capped, "k") == 7);
  ein_bound_destroy(b);
  // i moves everything, but larger j and k are worth more.
  x = bound_of("input A[i=1000,j=1000], B[i,k=1000]\nY[i,j,k] = A[i,j]*B[i,k]", 300, 1, &b);
  CHECK(near(x.paper.rho, 300) && near(x.paper.x0, 600) && near(side(&x, &x.paper, "i"), 1));
  ein_bound_destroy(b);
  // The rows of one tensor twice: they count once.
  x = bound_of("input X[i=10000,k=10000]\nD[i,j] = sum[k]((X[i,k]-X[j,k])^2)", s, 1, &b);
  CHECK(near(x.paper.rho, 100) && near(x.paper.x0, 3 * s) && near(side(&x, &x.paper, "k"), 200));
  ein_bound_destroy(b);
}

static void test_special(void) {
  ein_bound *b;
  ein_bound_stmt x = bound_of("Y[i=1000] = i", 10, 1, &b);
  CHECK(x.bound == 1000 && x.compulsory == 1000 && x.paper.rho == INFINITY);
  ein_bound_destroy(b);
  x = bound_of("input a[], b[] : f64\nY = a[]*b[]", 10, 1, &b);
  CHECK(x.bound == 3 && x.volume == 1 && x.nindex == 0);
  ein_bound_destroy(b);
  x = bound_of("input A[i=0,k=7], B[k,j=5]\nY[i,j] = A[i,k]*B[k,j]", 10, 3, &b);
  CHECK(x.bound == 0 && x.volume == 0 && x.paper.bound == 0 && x.per_place == 0);
  ein_bound_destroy(b);
  x = bound_of("input A[i=6,k=0], B[k,j=5]\nY[i,j] = A[i,k]*B[k,j]", 10, 3, &b);
  CHECK(x.bound == 30 && x.compulsory == 30);
  ein_bound_destroy(b);
  x = bound_of("input A[i=1048576,k=1048576], B[k,j=1048576]\nY[i,j] = A[i,k]*B[k,j]", 1024, 1, &b);
  CHECK(near(x.volume, ldexp(1, 60)) && near(x.bound, ldexp(1, 56)));
  ein_bound_destroy(b);
  // A diagonal, windows that do not overlap, and windows that do.
  x = bound_of("input A[i=1000,i2=1000]\nY = sum[j=1000](A[j,j])", 10, 1, &b);
  CHECK(x.compulsory == 1001);
  ein_bound_destroy(b);
  x = bound_of("input X[400], K[r=4]\nY[h=100] = X[4*h+r]*K[r]", 10, 1, &b);
  CHECK(x.compulsory == 504);
  ein_bound_destroy(b);
  x = bound_of("input X[203], K[r=5]\nY[h=100] = X[2*h+r]*K[r]", 10, 1, &b);
  CHECK(x.compulsory == 308);
  ein_bound_destroy(b);
  // h, r and h+r: boxes have 2 D + (2 D - 1) <= X, any set |V|^2 <= product of the three images.
  x = bound_of("input A[h=101], B[r=101], C[201]\ny = sum[h,r](A[h]*B[r]*C[h+r])", 50, 1, &b);
  CHECK(near(x.paper.rho, 12.5) && near(x.paper.x0, 100) && near(side(&x, &x.paper, "h"), 25));
  double best = 404;
  for (int n = 51; n < 404; n++)
    best = fmax(best, (n - 50) * (ceil(10201 / pow((n - 1) / 3.0, 2) - 1e-8) - 1));
  CHECK(x.bound == best);
  ein_bound_destroy(b);
  x = bound_of("input X[n=8,c=16,34,34], K[o=32,c,r=3,s=3]\n"
               "Y[n,o,h,w] = X[n,c,h+r,w+s]*K[o,c,r,s]", 2000, 1, &b);
  CHECK(x.bound == 8 * 16 * 34 * 34 + 32 * 16 * 9 + 8 * 32 * 32 * 32);
  ein_bound_destroy(b);
}

// ---- boxes ----

// What a box touches, operand by operand; the result where something is reduced.
static double touched(const statement *s, const double *box) {
  double sum = 0;
  for (int k = 0; k <= s->nop; k++) {
    double n = 1;
    int in[MOST] = {0};
    if (k == s->nop && s->nfree == s->n) break;
    for (int d = 0; k < s->nop && d < s->rank[k]; d++) in[s->index[k][d]] = 1;
    for (int i = 0; k == s->nop && i < s->n; i++) in[i] = free_index(s, i);
    for (int i = 0; i < s->n; i++) n *= in[i] ? box[i] : 1;
    sum += n;
  }
  return sum;
}

// Of all boxes that touch X0 elements none has more points than the tile has; the tile has those
// that intensity says.
static void test_boxes(int statements) {
  for (int r = 0; r < statements; r++) {
    statement s;
    char text[1024];
    ein_bound *b;
    random_statement(&s, 50, 0);
    spell(&s, text, sizeof text);
    const double fast = (double)draw(4, 4000);
    const ein_bound_stmt x = bound_of(text, fast, 1, &b);
    for (int capped = 0; capped < 2; capped++) {
      const ein_intensity *y = capped ? &x.capped : &x.paper;
      if (!(y->x0 < INFINITY)) continue;
      double points = 1, most = 0;
      for (int i = 0; i < s.n; i++) points *= y->tile[i];
      int ok = near(touched(&s, y->tile), y->x0) && near(points, y->rho * (y->x0 - fast));
      for (int q = 0; q < 200; q++) {
        double box[MOST], low = 0, high = 1;
        for (int step = 0; step < 60; step++) {  // the largest multiple of a random direction
          const double at = (low + high) / 2;
          double lean[MOST];
          const uint64_t keep = rng_state;
          rng_state = (uint64_t)(r * 1000 + q) * 7919;
          for (int i = 0; i < s.n; i++) lean[i] = (double)draw(0, 1000) / 1000;
          rng_state = keep;
          for (int i = 0; i < s.n; i++) {
            box[i] = q < 100 ? exp(60 * at * lean[i])
                             : y->tile[i] * exp(at * (lean[i] - 0.5)) * exp(60 * (at - 0.5));
            if (box[i] < 1) box[i] = 1;
            if (capped && box[i] > s.extent[i]) box[i] = s.extent[i];
          }
          if (touched(&s, box) <= y->x0) low = at;
          else high = at;
        }
        if (touched(&s, box) > y->x0 * (1 + 1e-9)) continue;
        double n = 1;
        for (int i = 0; i < s.n; i++) n *= box[i];
        most = fmax(most, n);
      }
      ok = ok && most <= points * (1 + 1e-9);
      if (!ok) printf("fast %g %s\n%s\n", fast, capped ? "capped" : "paper", text);
      CHECK(ok);
    }
    ein_bound_destroy(b);
  }
}

static void test_errors(void) {
  ein_bound_desc d;
  ein_bound *b = NULL;
  ein_ctx *ctx;
  ein_graph *g = parse("input A[i=5]\nY[i] = A[i]");
  memset(&d, 0, sizeof d);
  CHECK(ein_ctx_create(NULL, &ctx) == EIN_OK);
  CHECK(ein_bound_create(ctx, g, &d, &b) == EIN_ERR_ARGUMENT && b == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "fast_memory") != NULL);
  d.fast_memory = NAN;
  CHECK(ein_bound_create(ctx, g, &d, &b) == EIN_ERR_ARGUMENT);
  d.fast_memory = 10;
  d.places = -1;
  CHECK(ein_bound_create(ctx, g, &d, &b) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "places") != NULL);
  CHECK(ein_bound_create(ctx, NULL, &d, &b) != EIN_OK && b == NULL);
  char text[2048];
  size_t n = 0;
  n += (size_t)snprintf(text + n, sizeof text - n, "input B[i=2]\nY = sum[i,q0=1");
  for (int i = 1; i < 130; i++) n += (size_t)snprintf(text + n, sizeof text - n, ",q%d=1", i);
  (void)snprintf(text + n, sizeof text - n, "](B[i])");
  ein_graph *many = parse(text);
  d.places = 0;
  CHECK(ein_bound_create(ctx, many, &d, &b) == EIN_ERR_TOO_LARGE && b == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "128 indices") != NULL);
  ein_graph_destroy(many);
  CHECK(ein_bound_create(ctx, g, NULL, &b) == EIN_ERR_ARGUMENT);
  CHECK(ein_bound_create(ctx, g, &d, NULL) == EIN_ERR_ARGUMENT);
  ein_bound_destroy(NULL);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// Every allocation fails once: a status, and nothing is left.
static void test_memory(void) {
  static const char text[] =
      "input A[9,9], B[9,9], X[20]\nY[i,k] = A[i,j]*B[j,k]\nD[i,j] = sum[k](abs(Y[i,k]-Y[j,k]))\n"
      "Z[h=12] = sum[r=9](X[h+r]*D[r,r])\n";
  ein_graph *g = parse(text);
  long n = 0;
  for (int done = 0; !done; n++) {
    counter count = {0, -1, 0};
    ein_bound_desc b;
    ein_ctx_desc d;
    ein_ctx *ctx;
    ein_bound *made;
    memset(&d, 0, sizeof d);
    memset(&b, 0, sizeof b);
    b.fast_memory = 16;
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = &count;
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    count.fail_at = count.calls + n;
    const ein_status st = ein_bound_create(ctx, g, &b, &made);
    CHECK(st == EIN_OK || (st == EIN_ERR_NO_MEMORY && made == NULL));
    done = st == EIN_OK;
    ein_bound_destroy(made);
    ein_ctx_destroy(ctx);
    CHECK(count.live == 0);
  }
  CHECK(n > 2);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  const int boxes = argc > 1 ? atoi(argv[1]) : FEW(500);
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  test_closed();
  test_mttkrp();
  test_caps();
  test_special();
  test_errors();
  test_memory();
  test_boxes(boxes);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
