// Views: transposes, slices, diagonals and broadcasts are views of the same memory and cost no
// copy; every call takes them, as input or as output.
//   cc examples/02_views.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include <stdio.h>

static void print(const char *title, const ein_ztensor *t) {
  printf("%s\n", title);
  for (int64_t i = 0; i < t->shape[0]; i++) {
    for (int64_t j = 0; j < t->shape[1]; j++) {
      int64_t at[2] = {i, j};
      printf(" %3g", *(double *)ein_view_at(t, at));
    }
    printf("\n");
  }
}

int main(void) {
  double a[4][6], row[6], total = 0;
  int64_t shape[] = {4, 6}, six[] = {6}, dims[4][4];
  for (int i = 0; i < 24; i++) (&a[0][0])[i] = i;
  ein_ztensor t = ein_tensor(EIN_F64, 2, shape, a);
  ein_ztensor rows = ein_tensor(EIN_F64, 1, six, row);
  ein_ztensor sum = {.dtype = EIN_F64, .data = &total};
  ein_ztensor even, flipped, turned, wide;

  // Each view brings its shape and strides in memory of yours, 2 * rank numbers.
  if (ein_view_slice(&t, 1, 0, 6, 2, &even, dims[0]) != EIN_OK) return 1;
  if (ein_view_reverse(&even, 0, &flipped, dims[1]) != EIN_OK) return 1;
  int swap[] = {1, 0};
  if (ein_view_permute(&flipped, swap, &turned, dims[2]) != EIN_OK) return 1;
  print("every second column:", &even);
  print("its rows from the last:", &flipped);
  print("transposed:", &turned);

  // A row, repeated by stride 0 and never stored, against the matrix.
  for (int j = 0; j < 6; j++) row[j] = j % 2;
  if (ein_view_broadcast(&rows, 2, shape, &wide, dims[3]) != EIN_OK) return 1;
  ein_ztensor in[] = {t, wide};
  if (ein_einsum(NULL, "ij,ij->", 2, in, &sum) != EIN_OK) return 1;
  printf("sum of the odd columns: %g\n", total);

  // An output may be a view, too: this writes the columns of turned into the even columns of a.
  double b[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
  int64_t sb[] = {3, 4};
  ein_ztensor from = ein_tensor(EIN_F64, 2, sb, b);
  if (ein_einsum(NULL, "ij->ij", 1, &from, &turned) != EIN_OK) return 1;
  print("written through the view:", &t);
  return 0;
}
