// SPDX-License-Identifier: MIT
//
// What benchmarks against ScaLAPACK share: its interface, and bytes that a rank sends, counted
// through the profiling interface of MPI: the calls that BLACS and einsum_mpi.h move data by.
#include <stdint.h>

#include <mpi.h>

static int64_t sent;

static void count(int n, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  sent += (int64_t)n * size;
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(n, type);
  return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  count(n, type);
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

int MPI_Rsend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(n, type);
  return PMPI_Rsend(data, n, type, to, tag, comm);
}

int MPI_Sendrecv(const void *data, int n, MPI_Datatype type, int to, int tag, void *into, int m,
                 MPI_Datatype type2, int from, int tag2, MPI_Comm comm, MPI_Status *status) {
  count(n, type);
  return PMPI_Sendrecv(data, n, type, to, tag, into, m, type2, from, tag2, comm, status);
}

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
  int own;
  PMPI_Comm_rank(comm, &own);
  if (own != root) count(n, type);
  return PMPI_Ibcast(data, n, type, root, comm, request);
}

// Of collective operations the least that any way to do them moves.
int MPI_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  int own;
  PMPI_Comm_rank(comm, &own);
  if (own != root) count(n, type);
  return PMPI_Bcast(data, n, type, root, comm);
}

int MPI_Reduce(const void *data, void *to, int n, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  int own;
  PMPI_Comm_rank(comm, &own);
  if (own != root) count(n, type);
  return PMPI_Reduce(data, to, n, type, op, root, comm);
}

int MPI_Allreduce(const void *data, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int all;
  PMPI_Comm_size(comm, &all);
  if (all > 1) count((int)(2 * (int64_t)n * (all - 1) / all), type);
  return PMPI_Allreduce(data, to, n, type, op, comm);
}

// The C interface of BLACS, and Fortran's of PBLAS.
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridexit(int context);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb,
               const int *first_row, const int *first_col, const int *context, const int *ld,
               int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *da,
             const double *b, const int *ib, const int *jb, const int *db, const double *beta,
             double *c, const int *ic, const int *jc, const int *dc);
