// SPDX-License-Identifier: MIT
//
// command_mpi.h - --fabric mpi: the ranks that mpirun started, each of which runs this command.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.
//
// Every rank reads the command line and what its places need of the inputs, which are mapped. Rank
// 0 alone prints, begins files and gives them their names; all write the results, each its part.
// Ranks meet before each step that all must take: one that failed since the last time makes all
// end, and it alone, the lowest of several, says why and has an exit status, which the launcher
// passes on.

static int mpi_rank, mpi_ranks = 1;  // of this process; without MPI one

#ifdef WITH_MPI
static int ranks_began, ranks_lost, ranks_stderr = -1;

// Lets others compute while it waits: libraries may not.
static void ranks_wait(MPI_Request request) {
  for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;)
    (void)sched_yield();
}

static void ranks_all(void *x, int n, MPI_Datatype type, MPI_Op op) {
  MPI_Request r;
  if (!ranks_began) return;
  if (MPI_Iallreduce(MPI_IN_PLACE, x, n, type, op, MPI_COMM_WORLD, &r) == MPI_SUCCESS)
    ranks_wait(r);
}

// Does a rank say that it has failed? Then which: the lowest; else their number.
static int ranks_lowest(int failed) {
  int lowest = failed ? mpi_rank : mpi_ranks;
  ranks_all(&lowest, 1, MPI_INT, MPI_MIN);
  return lowest;
}

// Another rank ends with the status, and this one with none: a launcher that sees one may drop
// what others still say.
NORETURN static void ranks_follow(void) {
  drop_outputs();
  MPI_Finalize();
  exit(DONE);
}

// Before an error is printed, or the command ends with one: of several ranks one goes on.
static void ranks_failing(void) {
  if (!ranks_began || ranks_lost) return;
  ranks_lost = 1;
  const int lowest = ranks_lowest(1);
  if (lowest != mpi_rank) ranks_follow();
  if (ranks_stderr >= 0) (void)dup2(ranks_stderr, STDERR_FILENO);
}

static void ranks_quit(void) {
  if (!ranks_began) return;
  ranks_failing();
  MPI_Finalize();
}

static void ranks_meet(void) {
  if (!ranks_began) return;
  if (ranks_lowest(0) < mpi_ranks) ranks_follow();
}

// Is MPI asked for? It has to begin before anything can fail.
static int ranks_asked(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--fabric=mpi") == 0) return 1;
    if (strcmp(argv[i], "--fabric") == 0 && i + 1 < argc && strcmp(argv[i + 1], "mpi") == 0)
      return 1;
  }
  return 0;
}

static void ranks_begin(int argc, char **argv) {
  int level;
  if (!ranks_asked(argc, argv)) return;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
    fputs("einsum: error: MPI does not start\n", stderr);
    exit(SYSTEM_FAILED);
  }
  ranks_began = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_ranks);
  if (mpi_rank == 0) return;
  ranks_stderr = dup(STDERR_FILENO);
  if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
    ranks_quit(), exit(SYSTEM_FAILED);
}

// All ranks have come to the end.
static int ranks_end(int status) {
  if (!ranks_began) return status;
  ranks_meet();
  MPI_Finalize();
  return status;
}

// The number of this rank among those of its machine, and how many they are.
static int ranks_of_machine(int *n) {
  MPI_Comm node;
  int number = 0;
  *n = 1;
  if (!ranks_began) return 0;
  ranks_meet();
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mpi_rank, MPI_INFO_NULL, &node) ==
      MPI_SUCCESS) {
    MPI_Comm_rank(node, &number);
    MPI_Comm_size(node, n);
    MPI_Comm_free(&node);
  }
  return number;
}

static int ranks_here(void) {
  int n;
  return ranks_of_machine(&n);
}

// Threads of a rank, unless -j says: ranks of a machine share its cores.
static int64_t ranks_threads(void) {
  int here;
  if (!ranks_began) return 0;
  (void)ranks_of_machine(&here);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > here ? cores / here : 1;
}

static ein_status ranks_fabric(ein_ctx *ctx, int p, ein_fabric *fabric) {
  ranks_meet();
  return ein_fabric_mpi(ctx, MPI_COMM_WORLD, p, fabric);
}

// Ranks take the places of a plan with which little goes between nodes. each: ranks of a node; 0:
// those that share memory.
static ein_status ranks_map(ein_ctx *ctx, ein_fabric *f, const ein_graph *g,
                            const ein_decomposition *how, const ein_schedule *said, int each,
                            double *between) {
  ranks_meet();
  return ranks_began ? ein_mpi_map(ctx, f, g, how, said, each, between) : EIN_OK;
}

// Sums over all ranks.
static void ranks_sum(int64_t *x) { ranks_all(x, 1, MPI_INT64_T, MPI_SUM); }

// The largest of all ranks.
static void ranks_most(int64_t *x) { ranks_all(x, 1, MPI_INT64_T, MPI_MAX); }

static void ranks_sum_seconds(double *x, int n) { ranks_all(x, n, MPI_DOUBLE, MPI_SUM); }

// What rank 0 has measured, at all: they must come to one decomposition.
static void ranks_share(void *data, size_t bytes) {
  ranks_meet();
  MPI_Request r;
  if (ranks_began &&
      MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &r) == MPI_SUCCESS) ranks_wait(r);
}

static ein_status ranks_gather(const ein_fabric *f, const ein_ztensor *out, int root) {
  ein_ztensor dense = *out;
  dense.strides = NULL;  // results are
  return ranks_began ? ein_mpi_gather(f, &dense, root) : EIN_OK;
}

// Opens a file of so many bytes of data, which the first rank has begun, at all. 0: one does not
// see it, it is no regular file, or there is one rank; the first alone has it then.
static int ranks_share_output(output *o, int64_t bytes) {
  char name[4096] = "";
  int64_t said[2] = {0, 0};  // where data begins, and the length of the name
  if (!ranks_began || mpi_ranks == 1) return 0;
  const char *temp = mpi_rank == 0 ? npy_write_share(&o->w, &said[0]) : NULL;
  const size_t length = temp == NULL ? 0 : strlen(temp) + 1;
  if (length > 0 && length <= sizeof name) {
    memcpy(name, temp, length);
    said[1] = (int64_t)length;
  }
  ranks_share(said, sizeof said);
  if (said[1] == 0) return 0;
  ranks_share(name, (size_t)said[1]);
  int all = mpi_rank == 0 || npy_write_join(&o->w, name, said[0], bytes) == NPY_OK;
  ranks_all(&all, 1, MPI_INT, MPI_MIN);
  if (!all && mpi_rank > 0) npy_write_abort(&o->w);
  return all;
}

#else
static void ranks_failing(void) {}
static void ranks_quit(void) {}
static void ranks_meet(void) {}
static void ranks_begin(int argc, char **argv) { (void)argc, (void)argv; }
static int ranks_end(int status) { return status; }
static int64_t ranks_threads(void) { return 0; }
static int ranks_here(void) { return 0; }
static void ranks_sum(int64_t *x) { (void)x; }
static void ranks_most(int64_t *x) { (void)x; }
static void ranks_sum_seconds(double *x, int n) { (void)x, (void)n; }
static void ranks_share(void *data, size_t bytes) { (void)data, (void)bytes; }

static ein_status ranks_fabric(ein_ctx *ctx, int p, ein_fabric *fabric) {
  (void)ctx, (void)p, (void)fabric;
  return EIN_ERR_UNSUPPORTED;
}

static ein_status ranks_map(ein_ctx *ctx, const ein_fabric *f, const ein_graph *g,
                            const ein_decomposition *how, const ein_schedule *said, int each,
                            const double *between) {
  (void)ctx, (void)f, (void)g, (void)how, (void)said, (void)each, (void)between;
  return EIN_OK;
}

static ein_status ranks_gather(const ein_fabric *f, const ein_ztensor *out, int root) {
  (void)f, (void)out, (void)root;
  return EIN_OK;
}

static int ranks_share_output(output *o, int64_t bytes) {
  (void)o, (void)bytes;
  return 0;
}
#endif
