// Time of I/O bounds, of one statement each: intensities without and with extents as limits, and
// the elements that must move; and of the search for groups of a decoder in the shape of LLaMA.
//
//   cc -std=c99 -O2 bench/bound.c -lm -o bound && ./bound
//
// Prints microseconds, medians and least of many bounds made one after another.
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 199309L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void measure(const char *name, const char *text) {
  enum { MOST = 501 };
  static double t[MOST];
  ein_program_desc d;
  ein_bound_desc b;
  ein_bound_stmt s;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  memset(&b, 0, sizeof b);
  memset(&s, 0, sizeof s);
  d.text = text;
  b.fast_memory = 32768;
  if (ein_graph_parse(NULL, &d, &g) != EIN_OK) exit(1);
  for (int i = 0; i < MOST; i++) {
    ein_bound *made = NULL;
    const double start = now();
    if (ein_bound_create(NULL, g, &b, &made) != EIN_OK) exit(1);
    t[i] = now() - start;
    (void)ein_bound_statement(made, 0, &s);
    ein_bound_destroy(made);
  }
  const double middle = median(t, MOST);
  printf("%-40s %8.1f %8.1f   at least %.6g elements\n", name, middle, t[0], s.bound);
  ein_graph_destroy(g);
}

#include "../examples/models/llama.h"

// Groups of a decoder: milliseconds, and what moves in them and one statement after another.
static void measure_groups(int layers, double fast) {
  enum { MOST = 7 };
  static char text[1 << 17];
  static double t[MOST];
  llama m = llama_7b;
  ein_program_desc d;
  ein_fusion_desc f;
  ein_fusion_info info;
  ein_graph *g = NULL;
  m.layers = layers;
  memset(&d, 0, sizeof d);
  memset(&f, 0, sizeof f);
  memset(&info, 0, sizeof info);
  (void)llama_program(&m, text, sizeof text);
  d.text = text;
  f.fast_memory = fast;
  if (ein_graph_parse(NULL, &d, &g) != EIN_OK) exit(1);
  for (int i = 0; i < MOST; i++) {
    ein_fusion *made = NULL;
    const double start = now();
    if (ein_fusion_create(NULL, g, &f, &made) != EIN_OK) exit(1);
    t[i] = now() - start;
    (void)ein_fusion_get(made, &info);
    ein_fusion_destroy(made);
  }
  const double middle = median(t, MOST);
  printf("LLaMA, %2d layers, %8.0f elements %8.1f %8.1f   %lld groups, %lld searched: %.4g "
         "elements move, %.4g alone\n", layers, fast, middle / 1000, t[0] / 1000,
         (long long)info.ngroup, (long long)info.looked, info.io, info.alone);
  ein_graph_destroy(g);
}

int main(void) {
  printf("%-40s %8s %8s\n", "microseconds", "median", "least");
  measure("ij,jk->ik, 4096",
          "input A[i=4096,j=4096], B[j,k=4096]\nY[i,k] = A[i,j]*B[j,k]");
  measure("ijk,ja,ka->ia, 1024, rank 24",
          "input X[i=1024,j=1024,k=1024], A[j,a=24], B[k,a]\nY[i,a] = X[i,j,k]*A[j,a]*B[k,a]");
  measure("ijklm,ja,ka,la,ma->ia, 60, rank 24",
          "input X[i=60,j=60,k=60,l=60,m=60], A[j,a=24], B[k,a], C[l,a], D[m,a]\n"
          "Y[i,a] = X[i,j,k,l,m]*A[j,a]*B[k,a]*C[l,a]*D[m,a]");
  measure("xre,rij,ej->xei, 100,000 elements",
          "input J[x=3,r=3,e=100000], D[r,i=35,j=35], U[e,j]\nY[x,e,i] = J[x,r,e]*D[r,i,j]*U[e,j]");
  measure("squared distances, 10,000 x 64",
          "input X[i=10000,k=64]\nY[i,j] = sum[k]((X[i,k]-X[j,k])^2)");
  measure("convolution, 8 x 64 x 56 x 56, 3 x 3",
          "input X[n=8,c=64,58,58], K[o=64,c,r=3,s=3]\nY[n,o,h,w] = X[n,c,h+r,w+s]*K[o,c,r,s]");
  printf("%-40s %8s %8s\n", "milliseconds", "median", "least");
  measure_groups(1, 32768);
  measure_groups(32, 32768);
  measure_groups(32, 1e6);
  return 0;
}
