// Time of normal forms: the contractions of TCCG, batches of DG-FEM, a batch of many rows.
//
//   cc -std=c99 -O2 bench/canon.c -lm -o canon && ./canon bench/cases/tccg.txt
//
// Prints microseconds, medians of many forms made one after another, the memory given back.
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 199309L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 20];

// Median time of the form of the program in text.
static double measure(void) {
  enum { MOST = 201 };
  static double t[MOST];
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_canon *c = NULL;
  ein_ctx *ctx = NULL;
  int n = 0;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK || ein_graph_parse(ctx, &d, &g) != EIN_OK) {
    fprintf(stderr, "%s\n%s", ein_ctx_message(ctx), text);
    exit(1);
  }
  for (double begin = now(); n < MOST && (n < 5 || now() - begin < 1e6); n++) {
    const double at = now();
    if (ein_canon_create(ctx, g, 0, &c) != EIN_OK) exit(1);
    ein_canon_destroy(c);
    t[n] = now() - at;
  }
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
  return median(t, n);
}

static void put_access(char **at, char name, const char *label, int n) {
  *at += sprintf(*at, "%c[", name);
  for (int i = 0; i < n; i++) *at += sprintf(*at, "%s%c", i > 0 ? "," : "", label[i]);
  *at += sprintf(*at, "]");
}

// "adb,cd->cba" and "a=3,b=4,.." as a program.
static void contraction(const char *expr, const char *sizes) {
  const char *arrow = strstr(expr, "->"), *comma = strchr(expr, ',');
  const char *operand[2] = {expr, comma + 1};
  const int n[2] = {(int)(comma - expr), (int)(arrow - comma - 1)};
  char *at = text;
  for (int k = 0; k < 2; k++) {
    at += sprintf(at, "input %c[", 'A' + k);
    for (int i = 0; i < n[k]; i++) {
      char key[3] = {operand[k][i], '=', 0};
      at += sprintf(at, "%s%d", i > 0 ? "," : "", atoi(strstr(sizes, key) + 2));
    }
    at += sprintf(at, "]\n");
  }
  put_access(&at, 'Y', arrow + 2, (int)strlen(arrow + 2));
  at += sprintf(at, " = ");
  put_access(&at, 'A', operand[0], n[0]);
  at += sprintf(at, "*");
  put_access(&at, 'B', operand[1], n[1]);
  sprintf(at, "\n");
}

static void tccg(const char *path) {
  static double t[256];
  char line[512], name[64], expr[64], sizes[256];
  int n = 0;
  FILE *f = fopen(path, "r");
  if (f == NULL) {
    perror(path);
    exit(1);
  }
  while (n < 256 && fgets(line, sizeof line, f) != NULL) {
    if (sscanf(line, "%63s | %*s | %63s | %255s", name, expr, sizes) != 3) continue;
    contraction(expr, sizes);
    t[n] = measure();
    printf("%-8s %-20s %8.2f\n", name, expr, t[n]);
    n++;
  }
  fclose(f);
  if (n == 0) return;
  const double middle = median(t, n);
  printf("TCCG: %d, median %.2f us, least %.2f, most %.2f\n", n, middle, t[0], t[n - 1]);
}

// A batch of b fields that share the geometry and a matrix.
static double fields(const char *shared, const char *field, const char *row, int b) {
  char *at = text + sprintf(text, "%s", shared);
  for (int k = 0; k < b; k++) at += sprintf(at, field, k);
  for (int k = 0; k < b; k++) at += sprintf(at, row, k, k);
  return measure();
}

int main(int argc, char **argv) {
  static const int batch[] = {1, 2, 5, 10, 20, 500};
  if (argc < 2) {
    fprintf(stderr, "usage: canon TCCG.txt\n");
    return 2;
  }
  tccg(argv[1]);
  printf("rows  face mass  divergence   gradient (us)\n");
  for (int i = 0; i < 6; i++) {
    const int b = batch[i];
    printf("%4d %10.1f", b, fields("input J[4,100000], M[15,4,15]\n", "input F%d[4,100000,15]\n",
                                   "Y%d[e,i] = J[f,e]*M[i,f,j]*F%d[f,e,j]\n", b));
    printf(" %11.1f", fields("input J[3,3,100000], D[3,35,35]\n", "input U%d[3,100000,35]\n",
                             "Y%d[e,i] = J[x,r,e]*D[r,i,j]*U%d[x,e,j]\n", b));
    printf(" %10.1f\n", fields("input J[3,3,100000], D[3,35,35]\n", "input U%d[100000,35]\n",
                               "Y%d[x,e,i] = J[x,r,e]*D[r,i,j]*U%d[e,j]\n", b));
  }
  return 0;
}
