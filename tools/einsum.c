// SPDX-License-Identifier: MIT
//
// einsum - tensor expressions and programs on .npy files, from the command line. Built on the
// public interface of einsum.h and on npy.h; `einsum --help` tells what it does.
//
// A command that cannot go on says why and exits (die), so that memory is given back by the
// system; only output files need care, and those are dropped on the way out.

#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#define POSIX 1
#else
#define POSIX 0
#endif

#ifndef EINSUM_LINKED  // then objects of the library are linked
#define EINSUM_IMPLEMENTATION
#endif
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "../backends/einsum_cuda.h"
#include "../backends/einsum_dist.h"
#ifdef WITH_OPENBLAS
#include "../backends/einsum_openblas.h"
#include <cblas.h>
#endif
#ifdef WITH_MPI
#include "../backends/einsum_mpi.h"
#endif
#define NPY_IMPLEMENTATION
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if POSIX
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#else
#define X86 0
#endif

#if defined(__GNUC__) && !defined(_WIN32)
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF(f, a)
#endif
#if defined(__GNUC__)
#define NORETURN __attribute__((noreturn))
#else
#define NORETURN
#endif

// ================================================================================================
// Failing: one line on stderr, and the exit status that says whose fault it was.
// ================================================================================================

enum { DONE = 0, WRONG_INPUT = 1, WRONG_COMMAND = 2, SYSTEM_FAILED = 3 };

typedef struct array array;

// A file that is being written. All of them get their names together, at the end.
typedef struct output {
  npy_writer w;
  const char *path;
  const array *data;      // what is still to be written of it; NULL: nothing
  struct output *next;
} output;

static output *outputs;   // never freed: a signal may look at them at any time

static void drop_outputs(void) {
  for (output *o = outputs; o != NULL; o = o->next) npy_write_abort(&o->w);
  outputs = NULL;
}

// Bytes of the code point at s, or 0 when there is none.
static size_t code_point(const char *s, uint32_t *cp) {
  const unsigned char *u = (const unsigned char *)s;
  size_t n = u[0] < 0x80 ? 1 : u[0] < 0xC2 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3
             : u[0] < 0xF5 ? 4 : 0;
  *cp = n > 1 ? u[0] & (0x7Fu >> n) : u[0];
  for (size_t i = 1; i < n; i++) {
    if ((u[i] & 0xC0) != 0x80) return 0;
    *cp = *cp << 6 | (u[i] & 0x3F);
  }
  return n;
}

// Text from outside, kept to one line and harmless to a terminal.
static void put_clean(FILE *f, const char *s) {
  while (*s) {
    uint32_t cp;
    size_t n = code_point(s, &cp);
    if (cp == '\t') {
      fputc(' ', f);
    } else if (n == 0 || cp < 32 || (cp >= 0x7F && cp < 0xA0) || (cp >= 0x2028 && cp <= 0x202E) ||
               (cp >= 0x2066 && cp <= 0x2069)) {
      fputc('?', f);
    } else {
      fwrite(s, 1, n, f);
    }
    s += n > 0 ? n : 1;
  }
}

static void progress_end(void);  // an error may end any work

#include "command_mpi.h"

static void put_error(const char *message, const char *hint) {
  progress_end();
  ranks_failing();
  fflush(stdout);
  fputs("einsum: error: ", stderr);
  put_clean(stderr, message);
  fputc('\n', stderr);
  if (hint == NULL || !hint[0]) return;
  fputs("  hint: ", stderr);
  put_clean(stderr, hint);
  fputc('\n', stderr);
}

NORETURN static void quit(int status) {
  drop_outputs();
  ranks_quit();
  exit(status);
}

NORETURN static void vdie(int status, const char *hint, const char *format, va_list list) {
  char line[2048];
  (void)vsnprintf(line, sizeof line, format, list);
  put_error(line, hint);
  quit(status);
}

PRINTF(3, 4) NORETURN static void die(int status, const char *hint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vdie(status, hint, format, list);
}

PRINTF(2, 3) NORETURN static void misuse(const char *hint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vdie(WRONG_COMMAND, hint, format, list);
}

// ================================================================================================
// Small tools: memory, numbers in text, time.
// ================================================================================================

static void *blocks;  // all that memory() gave out, linked, so that leak checkers find it in use

// n bytes, zeroed, aligned to 64; never given back.
static void *memory(uint64_t n) {
  char *p = n > SIZE_MAX - 128 ? NULL : (char *)calloc(1, (size_t)n + 128);
  if (p == NULL) die(SYSTEM_FAILED, NULL, "out of memory: %" PRIu64 " bytes", n);
#ifdef __GNUC__  // a search asks on several threads
  static char taken;
  while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE)) continue;
#endif
  memcpy(p, &blocks, sizeof blocks);
  blocks = p;
#ifdef __GNUC__
  __atomic_clear(&taken, __ATOMIC_RELEASE);
#endif
  p += sizeof blocks;
  return p + (64 - (uintptr_t)p % 64) % 64;
}

static char *copy_text(const char *s, size_t n) {
  char *p = (char *)memory(n + 1);
  memcpy(p, s, n);
  return p;
}

// A number without sign made of all n bytes of s; 0 when it is not one or is too large.
static int read_int(const char *s, size_t n, int64_t *value) {
  int64_t v = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] < '0' || s[i] > '9' || v > (INT64_MAX - (s[i] - '0')) / 10) return 0;
    v = v * 10 + (s[i] - '0');
  }
  *value = v;
  return n > 0;
}

// A real number, or a complex one written a+bj, as the whole of s.
static int read_scalar(const char *s, ein_scalar *value) {
  char *end;
  memset(value, 0, sizeof *value);
  value->set = 1;
  if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0) return value->re = s[0] == 't', 1;
  if (*s == 0 || *s == ' ') return 0;
  value->re = strtod(s, &end);
  if (end == s) return 0;
  if (*end == '+' || *end == '-') {
    s = end;
    value->im = strtod(s, &end);
    if (end == s || *end != 'j') return 0;
    end++;
  } else if (*end == 'j') {
    value->im = value->re;
    value->re = 0;
    end++;
  }
  return *end == 0;
}

#if !POSIX && defined(_WIN32)
__declspec(dllimport) int __stdcall QueryPerformanceCounter(int64_t *);  // without windows.h
__declspec(dllimport) int __stdcall QueryPerformanceFrequency(int64_t *);
#endif

static double now(void *user) {
  (void)user;
#if POSIX
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#elif defined(_WIN32)
  int64_t t, f;
  QueryPerformanceCounter(&t);
  QueryPerformanceFrequency(&f);
  return (double)t / (double)f;
#else
  return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static uint64_t mix(uint64_t x) {  // splitmix64
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

// ================================================================================================
// The command line.
// ================================================================================================

enum { EVAL = 1, RUN = 2, PLAN = 4, BENCH = 8, INFO = 16, CANON = 32, TUNE = 64, STORE = 128,
       CALIBRATE = 256, BOUND = 512, REWRITE = 1024, SEARCH = 2048,
       ANY = EVAL | RUN | PLAN | BENCH | INFO | TUNE,
       PLACES = EVAL | RUN | PLAN };

typedef enum kind { FLAG, VALUE, LIST } kind;

typedef enum option_id {
  O_OUT, O_SHAPES, O_SIZES, O_DTYPE, O_SET, O_PATH, O_GOAL, O_BUDGET, O_SEED, O_CORES, O_PLACES,
  O_FABRIC, O_KERNELS, O_DETERMINISTIC, O_JSON, O_EXPLAIN, O_QUIET, O_FULL, O_VERIFY, O_DECOMP,
  O_COST, O_PARTS, O_KEEP, O_PIN, O_STRICT, O_FEWER, O_MACHINE, O_INPUTS, O_MEMORY, O_SVG,
  O_VECTORS, O_TABLE, O_BEAM, O_WORK, O_CHECK, O_VARIANT, O_CONSTANT, O_UNGROUPED, O_MAP, O_STORE,
  O_RATES, O_KERNEL_CACHE, O_FAST, O_GROUPS, O_GRIDS, O_SCHEDULE, O_SCHEDULE_OUT, O_COUNTED,
  O_SECONDS, O_NO_SCATTER, O_VIEW,
  O_LIST, O_APPLY, O_EQUAL, O_LOOSE, O_DIR, O_EVALUATIONS, O_COUNT
} option_id;

static const struct { const char *name; kind kind; unsigned commands; } options[O_COUNT] = {
  {"-o", LIST, EVAL | RUN | STORE | CALIBRATE},
  {"--shapes", VALUE,
   EVAL | RUN | PLAN | BENCH | TUNE | BOUND | REWRITE | SEARCH},
  {"--sizes", LIST,
   EVAL | RUN | PLAN | BENCH | CANON | TUNE | BOUND | REWRITE | SEARCH},
  {"--dtype", VALUE,
   EVAL | RUN | PLAN | BENCH | CANON | TUNE | BOUND | REWRITE | SEARCH},
  {"--set", LIST, RUN | PLAN},
  {"--path", VALUE, EVAL | RUN | PLAN | BENCH}, {"--goal", VALUE, EVAL | RUN | PLAN | BENCH},
  {"--budget", VALUE, EVAL | RUN | PLAN | BENCH | TUNE | CALIBRATE},
  {"--seed", VALUE, EVAL | RUN | PLAN | BENCH | TUNE | REWRITE | SEARCH},
  {"-j", VALUE, ANY | CALIBRATE | SEARCH}, {"-p", VALUE, ANY | BOUND | SEARCH},
  {"--fabric", VALUE, ANY},
  {"--kernels", VALUE, ANY | CALIBRATE}, {"--deterministic", FLAG, ANY - TUNE},
  {"--json", FLAG, ANY | CALIBRATE | BOUND | REWRITE | SEARCH},
  {"--explain", FLAG, ANY - INFO - TUNE},
  {"-q", FLAG, ANY | CALIBRATE | SEARCH}, {"--full", FLAG, EVAL | RUN},
  {"--verify", FLAG, BENCH | REWRITE},
  {"--decomp", VALUE, PLACES}, {"--cost", VALUE, PLACES}, {"--parts", LIST, PLACES},
  {"--keep", LIST, PLACES}, {"--pin", LIST, PLACES}, {"--strict", FLAG, PLACES},
  {"--fewer", FLAG, PLACES}, {"--machine", VALUE, PLACES | SEARCH},
  {"--inputs", VALUE, PLACES | SEARCH},
  {"--memory", VALUE, EVAL | RUN | PLAN | BENCH | SEARCH}, {"--svg", VALUE, PLACES},
  {"--max-vectors", VALUE, PLACES}, {"--max-table", VALUE, PLACES},
  {"--beam", VALUE, PLACES}, {"--max-work", VALUE, PLACES | SEARCH},
  {"--check-overflow", FLAG, EVAL | RUN}, {"--variant", VALUE, EVAL | RUN | PLAN | BENCH},
  {"--constant", VALUE, PLAN | BENCH}, {"--ungrouped", FLAG, EVAL | RUN | PLAN | BENCH},
  {"--map", FLAG, CANON}, {"--store", VALUE, ANY}, {"--rates", VALUE, ANY | BOUND},
  {"--kernel-cache", VALUE, ANY | CALIBRATE},
  {"--fast-memory", VALUE, BOUND}, {"--groups", FLAG, BOUND}, {"--grids", FLAG, BOUND},
  {"--schedule", VALUE, RUN | PLAN | TUNE}, {"--schedule-out", VALUE, PLAN},
  {"--count", VALUE, RUN | BENCH},
  {"--seconds", VALUE, BENCH | SEARCH}, {"--no-scatter", FLAG, PLACES},
  {"--view", VALUE, PLAN},
  {"--list", FLAG, REWRITE}, {"--apply", LIST, REWRITE},
  {"--equal", VALUE, REWRITE}, {"--loose", FLAG, REWRITE | SEARCH},
  {"--out", VALUE, SEARCH}, {"--evaluations", VALUE, SEARCH}};

static const struct { const char *name; unsigned command; } commands[] = {
  {"run", RUN}, {"plan", PLAN}, {"bench", BENCH}, {"info", INFO}, {"canon", CANON}, {"tune", TUNE},
  {"store", STORE}, {"calibrate", CALIBRATE}, {"bound", BOUND}, {"rewrite", REWRITE},
  {"search", SEARCH}};

// In two: compilers need not take a string of more than 4095 bytes.
static const char *const usage[] = {
  "einsum EXPR IN.npy ... [-o OUT.npy]                    evaluate a NumPy-style einsum\n"
  "einsum run PROG.ein NAME=IN.npy ... [-o NAME=OUT.npy]  evaluate a program (PROG may be -)\n"
  "einsum plan (EXPR | PROG.ein) [IN.npy ...] [options]   plan without data\n"
  "einsum bench EXPR [options] [--verify]                 time it on random operands\n"
  "einsum canon PROG.ein [--map]                          the normal form of a program\n"
  "einsum tune (EXPR | PROG.ein) --store FILE [options]   measure what is fastest, and keep it\n"
  "einsum store merge FILE ... -o FILE                    one store of several, or more into one\n"
  "einsum calibrate [-o FILE]                             measure the machine\n"
  "einsum bound (EXPR | PROG.ein) --fast-memory N         what must move, at least\n"
  "einsum rewrite PROG.ein (--list | --apply RULE@LINE)   programs that compute the same\n"
  "einsum search PROG.ein -p N [--memory M] --out DIR     the best of them, with schedules\n"
  "einsum info                                            what this build has\n"
  "\n"
  "Without -o the result is printed. The file name - is standard input or output.\n"
  "  -o FILE            where the result goes (run: -o NAME=FILE, several allowed)\n"
  "  --shapes 4x3,3,    operands without data, in order; an empty entry is a scalar\n"
  "  --sizes i=4,j=3    extents by index (expressions) or size name (programs)\n"
  "  --dtype T          of the result (EXPR), of operands without data (plan, bench), of inputs\n"
  "                     and params that declare none (programs)\n"
  "  --set NAME=VALUE   a param of a program: 2, -1e-3, 1+2j\n"
  "  --path P           auto, naive, none, optimal, dp, greedy, random, or '(0,2) (0,1)'\n"
  "  --goal G           what the path minimises: flops, size, bytes\n"
  "  --budget SECONDS   for the search of a path; tune: of measuring, for each statement;\n"
  "                     calibrate: for measuring (0.3)\n"
  "  --seconds SECONDS  bench: of runs (0.5); of planning, and of each ceiling, a fifth; search:\n"
  "                     at most (10)\n"
  "  --memory BYTES     budget for everything but operands and results: 4000000, 64K, 100M, 2G;\n"
  "                     over places: for blocks, copies and results alive at one of them\n"
  "  --seed N           of random data and randomised searches\n"
  "  -j N               threads (default: one per core)\n"
  "  --kernels LIST     of portable, cpu (default), openblas, cuda (alone: wherever it can run);\n"
  "                     cpu with less than the machine has: avx512, avx2, neon, plain\n"
  "  --kernel-cache DIR where compiled kernels of a GPU are kept; EINSUM_KERNEL_CACHE in the\n"
  "                     environment names one, too\n"
  "  --variant NAME     how all kernels run that can, 'cpu:gett direct' or the variant alone; a\n"
  "                     name that none has is answered with those there are\n"
  "  --constant NAMES   inputs that hold the same in every execution, x1 or W,B: packed once\n"
  "  --ungrouped        statements run one by one, small ones of one form too\n"
  "  --store FILE       what was tuned; EINSUM_STORE in the environment names one, too\n"
  "  --rates FILE       of calibrate, for predictions (default: the file that EINSUM_RATES names,\n"
  "                     else a table)\n"
  "  -p N               over N places (--fabric threads: default as -j); the steps of an EXPR are\n"
  "                     the statements t0, t1, .. and y, its operands are x0, x1, ..\n"
  "  --fabric F         what they are: serial (default), threads, or copying: one after another,\n"
  "                     each place in memory of its own; mpi: the ranks of mpirun (if built with\n"
  "                     make MPI=yes); sim: the run is simulated, nothing is computed, extents\n"
  "                     come from files, --shapes or --sizes\n",
  "  --decomp NAME      eindecomp (default), linear, none, sqrt, data, model, sequence,\n"
  "                     attention, given\n"
  "  --cost MODEL       seconds (default), paper, paper-code, bytes\n"
  "  --parts 'T[s=2,t=4]'   pieces of the indices of a statement\n"
  "  --keep i,j         indices that are not cut; T.j: in the statements of T\n"
  "  --pin 'X[s=8]'     an input or output that lies in a partition; W*[f=8]: all of such names\n"
  "                     that have the axis\n"
  "  --schedule FILE    machine, place and the loops of statements, one command a line, in place\n"
  "                     of those behind the statements of a program; tune -p N: in the names\n"
  "                     that einsum canon prints, each setting of param b = 16, 32 is tried\n"
  "  --schedule-out FILE   plan -p N: the plan as such a schedule, with the statements as it has\n"
  "                     them in comments\n"
  "  --max-vectors N    of a statement; --max-table N: entries; --beam N: states: the effort\n"
  "  --max-work N       places that planning may look at: 1e8 are about 10 seconds\n"
  "  --strict           only as many tasks per statement as there are places (or the most\n"
  "                     possible), as in the paper: so anyway but for --cost seconds\n"
  "  --no-scatter       results of folds that places share are folded at one, and not scattered\n"
  "                     over these places (reduce-scatter)\n"
  "  --fewer            also fewer tasks, by every divisor of the places: so anyway for\n"
  "                     --cost seconds\n"
  "  --machine FILE     lines 'flops 1e12', memory_bw, latency, bandwidth, overhead, memory,\n"
  "                     node (places of a node), node_latency, node_bandwidth; or\n"
  "                     threads: those of this machine, by table (so anyway under --fabric\n"
  "                     threads), or measured: the same, calibrated first\n"
  "  --inputs WHERE     inputs without a pin: held (default) by the places that read them, in\n"
  "                     their memory, outside, or dealt: each element at one place that reads\n"
  "                     it, from where it moves to others (--cost bytes)\n"
  "  --svg FILE         a picture: the graph, its partitions, bytes moved, and a time line,\n"
  "                     simulated (plan) or measured (run); with - nothing else is printed\n"
  "  --view V           plan --svg: of the plan (default), or teg: the program as written, its\n"
  "                     tensors, operators, selectors, generators, what is observed and pruned\n"
  "  --deterministic    the same bits for every -j, -p, --fabric and --memory\n"
  "  --map              canon: what every name was, as comments\n"
  "  --fast-memory N    bound: elements of a fast memory, between which and all others they move\n"
  "  --groups           bound: which statements best run block by block together there\n"
  "  --grids            bound -p N: the cuts of statements that move least, and the planner's\n"
  "  --count N[:lru|:ideal][:LINE]   run, bench: count what one execution in tiles moves\n"
  "                     between a fast memory of N elements, of lines of LINE, and all other\n",
  "  --list             rewrite: the places where rules apply, and what they change\n"
  "  --apply RULE@LINE  rewrite: print the program after, RULE@LINE.N: at the N-th place there;\n"
  "                     again: on the program after. --verify: both sides on random data agree\n"
  "  --equal OTHER.ein  rewrite: prove without data that it computes the same, as shards of it do\n"
  "  --out DIR          search: where programs, schedules and front.svg go\n"
  "  --evaluations N    search: so many; the same for one seed\n"
  "  --loose            also rules by which infinities and NaN may differ\n"
  "  --check-overflow   an integer that does not fit its dtype is an error, not wrapped\n"
  "  --full             print large arrays in full\n"
  "  --json             machine-readable, to stdout; run: figures of the run, and results go to\n"
  "                     the files of -o alone\n"
  "  --explain          how it is computed, to stderr\n"
  "  -q                 no notes, no progress\n"
  "  --                 ends the options: einsum -- '->' X.npy, einsum -- run X.npy\n"
  "einsum SUBCOMMAND --help tells more of one, with an example.\n"
  "Exit status: 0 done; 1 the input is wrong; 2 the command line is wrong; 3 the system failed.\n"};
enum { USAGE_PARTS = sizeof usage / sizeof *usage };

typedef struct words {
  const char **v;
  int n;
} words;

static words opt[O_COUNT];
static words args;  // what is no option, without the subcommand
static int tuning;  // 1: plans are made to be measured

// What a subcommand is for, behind its line of usage.
static const struct { unsigned command; const char *text, *example; } manuals[] = {
  {RUN,
   "Evaluates a program, whose inputs are NAME=FILE arguments. Outputs without -o are printed.",
   "einsum run examples/nearest.ein X=examples/data/iris.npy L=examples/data/iris_label.npy"},
  {PLAN,
   "Prints what evaluating would do: contraction order, kernels, memory and predicted time; with\n"
   "-p how every statement is cut over places, and what moves between them. Extents are those of\n"
   "--sizes, --shapes or of the .npy files, whose data are not read.",
   "einsum plan 'ij,jk,kl->il' --sizes i=100,j=20,k=300,l=5"},
  {BENCH,
   "Times an expression on random operands, and says which fraction of what this machine can do\n"
   "that is.", "einsum bench 'ij,jk->ik' --sizes i=64,j=64,k=64 --verify"},
  {CANON,
   "Prints a program that is the same for all programs that differ in names and orders alone.\n"
   "Statements of one form are a batch, whose rows, operands, indices and tensors may come in any\n"
   "order. Extents come from --sizes where the program leaves them open.",
   "einsum canon examples/attention.ein --sizes s=8,t=8,d=4,e=4 --map"},
  {TUNE,
   "Measures contraction orders and kernels of an expression, or of each statement of a program,\n"
   "on random operands, and keeps the fastest in the store, by normal form, sizes and machine.\n"
   "What is not measurably faster than the plan without tuning is kept as that.",
   "einsum tune 'ij,jk,kl->il' --sizes i=101,j=23,k=307,l=5 --store tuned.txt --budget 1"},
  {STORE,
   "Adds the records of stores to one, or prints all of them with -o -. Of records of one key the\n"
   "last holds; lines of other versions are kept.",
   "einsum store merge tuned.txt -o -"},
  {CALIBRATE,
   "Measures bandwidths of caches and memory, products of matrices, and what calls and threads\n"
   "take, on a machine that does nothing else, and prints it as text. With --rates, or under the\n"
   "name that EINSUM_RATES holds, the other commands predict from it.",
   "einsum calibrate --budget 0.05"},
  {BOUND,
   "Prints how many elements every execution moves at least between a fast memory of N elements\n"
   "and all other memory, each statement (an expression: all of it) alone; the most points that\n"
   "can be gone through per element moved, and the tile that does; with -p what the busiest place\n"
   "receives and sends. Without and with the extents as limits of tiles. With --grids a table of\n"
   "how -p places share the points of each statement: the planner's cut and the best of all.",
   "einsum bound 'ijk,ja,ka->ia' --sizes i=512,j=512,k=512,a=24 --fast-memory 32768"},
  {REWRITE,
   "Lists where rules apply that leave the outputs as they are, and by how much operations, bytes\n"
   "read and written, and bytes of temporaries change; or prints the program after some of them,\n"
   "which is a program that runs. What is rounded otherwise: split, join, hoist and factor.",
   "einsum rewrite examples/attention.ein --sizes s=8,t=8,d=4,e=4 --list"},
  {SEARCH,
   "Searches programs that compute the same, and how -p places share them, none of which is worse\n"
   "than another in seconds, peak bytes of a place, bytes moved and operations together, as plan\n"
   "says of them. What the planner answers is among the first; rules change them, those that led\n"
   "to something more often. A member is run DIR/m0.ein -p N --schedule DIR/m0.schedule.",
   "einsum search examples/attention.ein --sizes s=8,t=8,d=4,e=4 -p 4 --evaluations 50"},
  {INFO,
   "Prints version, compiler, backends, threads, processor, the rates that predictions are made\n"
   "from and where they come from, and dtypes.", "einsum info --json"}};

// Does the option mean something to the command, or is but its default taken?
static int applies(option_id o, unsigned command) {
  if (o == O_PLACES && (command & (BENCH | INFO | TUNE))) return 0;
  if (o == O_FABRIC && !(command & (RUN | EVAL))) return 0;
  return (options[o].commands & command) != 0;
}

// Prints what usage says of the command, if it is one of commands: its line, its options. For
// others, all of it.
static void put_usage(const char *command) {
  unsigned c = 0;
  size_t n = command == NULL ? 0 : strlen(command);
  for (size_t k = 0; n > 0 && k < sizeof commands / sizeof *commands; k++) {
    if (strcmp(commands[k].name, command) == 0) c = commands[k].command;
  }
  int shown = 1, part = 0;
  for (const char *line = usage[0], *next; c != 0; line = next) {
    if (*line == 0 && ++part == USAGE_PARTS) break;
    if (*line == 0) line = usage[part];
    next = strchr(line, '\n') + 1;
    if (strncmp(line, "einsum ", 7) == 0) {
      shown = strncmp(line + 7, command, n) == 0 && line[7 + n] == ' ';
    } else if (strncmp(line, "  -", 3) == 0) {
      size_t name = strcspn(line + 2, " ");
      shown = name == 2 && line[3] == '-';  // "--"
      for (int o = 0; o < O_COUNT; o++) {
        if (strlen(options[o].name) == name && memcmp(line + 2, options[o].name, name) == 0)
          shown = applies((option_id)o, c);
      }
    } else if (line[0] != ' ') {
      shown = 0;
    }
    if (line[0] == '\n') {
      for (size_t k = 0; k < sizeof manuals / sizeof *manuals; k++) {
        if (manuals[k].command == c)
          printf("\n%s\n\nExample: %s\n\n", manuals[k].text, manuals[k].example);
      }
    }
    if (shown) (void)fwrite(line, 1, (size_t)(next - line), stdout);
  }
  for (int k = 0; c == 0 && k < USAGE_PARTS; k++) fputs(usage[k], stdout);
}

static void add_word(words *w, const char *s) {
  if ((w->n & (w->n - 1)) == 0) {  // doubles when it reaches a power of two
    const char **v = (const char **)memory(sizeof *v * (w->n > 0 ? 2 * (size_t)w->n : 1));
    for (int i = 0; i < w->n; i++) v[i] = w->v[i];
    w->v = v;
  }
  w->v[w->n++] = s;
}

static const char *given(option_id o) { return opt[o].n > 0 ? opt[o].v[0] : NULL; }

// Reads the option at argv[i]; returns the index of the last word it used.
static int read_option(int argc, char **argv, int i) {
  const char *a = argv[i], *value = NULL;
  size_t n = strcspn(a, "=");
  int k = 0;
  if (a[1] != '-') n = strlen(a);
  while (k < O_COUNT && !(strlen(options[k].name) == n && memcmp(a, options[k].name, n) == 0)) k++;
  if (k < O_COUNT && a[n] == '=') value = a + n + 1;
  for (int s = 0; s < O_COUNT && k == O_COUNT && a[1] != '-'; s++) {  // -j4, -oFILE
    if (strlen(options[s].name) == 2 && options[s].kind != FLAG && a[1] == options[s].name[1]) {
      k = s;
      value = a + 2;
    }
  }
  if (k == O_COUNT) {
    misuse(a[1] == '>' ? "an expression that starts with - goes after --"
        : "einsum --help lists the options", "unknown option '%s'", a);
  }
  const char *name = options[k].name;
  if (options[k].kind == FLAG && value != NULL) misuse(NULL, "%s takes no value", name);
  if (options[k].kind != FLAG && value == NULL) {
    if (i + 1 >= argc) misuse(NULL, "%s needs a value", name);
    value = argv[++i];
  }
  if (options[k].kind == VALUE && opt[k].n > 0) misuse(NULL, "%s is given twice", name);
  if (options[k].kind != FLAG || opt[k].n == 0) add_word(&opt[k], value == NULL ? "" : value);
  return i;
}

// Options whose only value so far is the default one.
static void check_only(option_id o, const char *only) {
  const char *v = given(o);
  if (v == NULL || strcmp(v, only) == 0) return;
  misuse(NULL, "%s %s is not available in this version: only %s %s is",
      options[o].name, v, options[o].name, only);
}

// --fabric sim
static int simulated(void) {
  return given(O_FABRIC) != NULL && strcmp(given(O_FABRIC), "sim") == 0;
}

// Places of -p.
static int64_t option_places(int64_t otherwise) {
  const char *p = given(O_PLACES);
  int64_t n = otherwise;
  if (p != NULL && (!read_int(p, strlen(p), &n) || n < 1 || n > EIN_PLACES_MAX))
    misuse(NULL, "-p takes a number of places from 1 to %d, not '%s'", EIN_PLACES_MAX, p);
  return n;
}

// Splits argv into options and args; returns the command.
static unsigned read_command_line(int argc, char **argv) {
  unsigned command = EVAL;
  const char *name = NULL;
  int ended = 0, first = 1;
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i];
    if (!ended && strcmp(a, "--") == 0) {
      ended = 1;
      continue;
    }
    if (!ended && (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)) {
      put_usage(name);
      exit(ranks_end(fflush(stdout) == 0 ? DONE : SYSTEM_FAILED));
    }
    if (!ended && strcmp(a, "--version") == 0) {
      printf("einsum %s\n", ein_version());
      exit(ranks_end(fflush(stdout) == 0 ? DONE : SYSTEM_FAILED));
    }
    if (!ended && a[0] == '-' && a[1] != 0) {
      i = read_option(argc, argv, i);
      continue;
    }
    int is_command = 0;
    for (size_t k = 0; first && !ended && k < sizeof commands / sizeof *commands; k++) {
      if (strcmp(a, commands[k].name) != 0) continue;
      is_command = 1;
      name = a;
      command = commands[k].command;
    }
    first = 0;
    if (!is_command) add_word(&args, a);
  }
  for (int k = 0; k < O_COUNT; k++) {
    if (opt[k].n > 0 && !(options[k].commands & command)) {
      misuse(NULL, "%s does not apply here", options[k].name);
    }
  }
  const int apart = (command & (BENCH | INFO)) || (command == TUNE && given(O_SCHEDULE) == NULL);
  if (apart) check_only(O_PLACES, "1");
  tuning = command == TUNE;
  (void)option_places(1);
  if (command == PLAN && !simulated() && given(O_FABRIC) != NULL &&
      strcmp(given(O_FABRIC), "serial") != 0)
    misuse("serial or sim", "--fabric %s does not apply here: nothing runs", given(O_FABRIC));
  if (apart) check_only(O_FABRIC, "serial");
  for (int o = O_SHAPES; o <= O_SIZES; o++) {
    int known = command == RUN && o == O_SIZES;
    if (command == RUN && !known && opt[o].n > 0 && !simulated())
      misuse("--fabric sim needs no data", "%s goes with --fabric sim only", options[o].name);
    if (command == EVAL && opt[o].n > 0 && !simulated())
      misuse(NULL, "%s does not apply here", options[o].name);
  }
  return command;
}

#include "command_progress.h"

// Options that ask for a decomposition; -p 1 alone does not.
static int decomposed(void) {
  static const option_id o[] = {O_DECOMP, O_COST, O_PARTS, O_KEEP, O_PIN, O_STRICT, O_FEWER,
                                O_MACHINE, O_INPUTS, O_SVG, O_VECTORS, O_TABLE, O_BEAM, O_WORK,
                                O_SCHEDULE, O_SCHEDULE_OUT, O_NO_SCATTER};
  const char *p = given(O_PLACES);
  int any = simulated() || (p != NULL && strcmp(p, "1") != 0);
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) any |= opt[o[i]].n > 0;
  return any;
}

// Is a run to be decomposed?
static int on_places(void) { return decomposed() || given(O_FABRIC) != NULL; }

static int is_program(const char *s) {
  size_t n = strlen(s);
  return strcmp(s, "-") == 0 || (n >= 4 && strcmp(s + n - 4, ".ein") == 0);
}

static ein_dtype option_dtype(ein_dtype otherwise) {
  const char *s = given(O_DTYPE);
  if (s == NULL) return otherwise;
  ein_dtype t = ein_dtype_find(s);
  if (t == EIN_NONE) {
    misuse("bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128", "no dtype is called '%s'", s);
  }
  return t;
}

static uint64_t option_seed(void) {
  int64_t v = 0;
  const char *s = given(O_SEED);
  if (s != NULL && !read_int(s, strlen(s), &v)) misuse(NULL, "--seed takes a number, not '%s'", s);
  return (uint64_t)v;
}

// Of --budget and --seconds.
static double option_seconds(option_id id, double otherwise) {
  ein_scalar v;
  const char *s = given(id);
  if (s == NULL) return otherwise;
  if (!read_scalar(s, &v) || v.im != 0 || !(v.re > 0) || v.re > 1e9)
    misuse(NULL, "%s takes seconds, not '%s'", options[id].name, s);
  return v.re;
}

static void option_search(ein_options *o) {
  static const char *const goals[] = {"flops", "size", "bytes"};
  const char *goal = given(O_GOAL);
  memset(o, 0, sizeof *o);
  o->path = given(O_PATH);
  o->variant = given(O_VARIANT);
  o->constant = given(O_CONSTANT);
  o->ungrouped = given(O_UNGROUPED) != NULL;
  o->seed = option_seed();
  o->deterministic = given(O_DETERMINISTIC) != NULL;
  o->overflow_check = given(O_CHECK) != NULL;
  if (o->overflow_check && (on_places() || o->deterministic || given(O_MEMORY) != NULL))
    misuse(NULL, "--check-overflow does not go with -p, --fabric, --memory or --deterministic");
  if (goal != NULL) {
    int g = 0;
    while (g < 3 && strcmp(goal, goals[g]) != 0) g++;
    if (g == 3) misuse("flops, size or bytes", "no goal is called '%s'", goal);
    o->goal = (ein_goal)g;
  }
  o->path_seconds = option_seconds(O_BUDGET, 0);
}

// Bytes of --memory; 0: no limit.
static size_t option_memory(void) {
  const char *s = given(O_MEMORY);
  int64_t v = 0;
  int shift = 0;
  if (s == NULL) return 0;
  size_t n = strlen(s);
  if (n > 0 && strchr("KMG", s[n - 1]) != NULL)
    shift = s[n - 1] == 'K' ? 10 : s[n - 1] == 'M' ? 20 : 30;
  if (!read_int(s, n - (shift > 0), &v) || v < 1 || (uint64_t)v > (SIZE_MAX / 2) >> shift)
    misuse("for example 4000000, 64K, 100M or 2G", "--memory takes bytes, not '%s'", s);
  return (size_t)v << shift;
}

static int cuda_alone;  // --kernels cuda: what no GPU does is the system's failure

// What a failed call of the library means for the exit status. Of its arguments, only path and
// variant are taken unseen from the command line.
static int exit_status(ein_status st) {
  if (st == EIN_ERR_NO_MEMORY || st == EIN_ERR_INTERNAL) return SYSTEM_FAILED;
  if (st == EIN_ERR_UNSUPPORTED && cuda_alone) return SYSTEM_FAILED;
  const int unseen = given(O_PATH) != NULL || given(O_VARIANT) != NULL;
  return st == EIN_ERR_ARGUMENT && unseen ? WRONG_COMMAND : WRONG_INPUT;
}

// The mistakes the library found in a text. file: where the text came from; NULL for arguments,
// whose line and column say nothing that the caret does not.
NORETURN static void die_library(const ein_ctx *ctx, ein_status st, const char *file) {
  int n = ein_ctx_errors(ctx);
  for (int i = 0; i < n; i++) {
    const ein_error *e = ein_ctx_error(ctx, i);
    const char *hint = e->hint;
    char line[2048];
    size_t length = strlen(e->source);
    if (file == NULL && length > 0 && e->source[length - 1] == '-')  // left of ij,jk->ik
      hint = "the shell takes '>' and what follows for a file: quote it, 'ij,jk->ik'";
    if (file == NULL) snprintf(line, sizeof line, "%s", e->message);
    else if (e->line == 0) snprintf(line, sizeof line, "%s: %s", file, e->message);
    else snprintf(line, sizeof line, "%s:%d:%d: %s", file, e->line, e->column, e->message);
    put_error(line, NULL);
    if (e->line > 0 && e->source[0]) {
      fputs("  ", stderr);
      put_clean(stderr, e->source);
      fprintf(stderr, "\n  %*s", e->caret, "");
      for (int k = 0; k < e->mark; k++) fputc('^', stderr);
      fputc('\n', stderr);
    }
    if (hint[0]) {
      fputs("  hint: ", stderr);
      put_clean(stderr, hint);
      fputc('\n', stderr);
    }
  }
  if (n == 0) put_error(ein_status_text(st), NULL);
  quit(exit_status(st));
}

// Launchers of MPI give standard input to one rank, and others may wait for it.
static void check_source(const char *path) {
  if (mpi_ranks > 1 && strcmp(path, "-") == 0)
    misuse("name a file", "standard input does not go to all ranks");
}

static char *read_text(const char *path, size_t *length) {
  size_t room = 1 << 16, n = 0, most = ((size_t)16 << 20) + 2;  // one byte past the library's limit
  int from_stdin = strcmp(path, "-") == 0;
  const char *shown = from_stdin ? "standard input" : path;
  check_source(path);
  errno = 0;
  FILE *f = from_stdin ? stdin : fopen(path, "rb");
  if (f == NULL) die(SYSTEM_FAILED, NULL, "%s: cannot open: %s", shown, strerror(errno));
  char *s = (char *)memory(room);
  for (;;) {
    size_t got = fread(s + n, 1, room - n - 1, f);
    n += got;
    if (n < room - 1 || n >= most) break;
    char *more = (char *)memory(2 * room);
    memcpy(more, s, n);
    s = more;
    room *= 2;
  }
  if (ferror(f)) die(SYSTEM_FAILED, NULL, "%s: cannot read: %s", shown, strerror(errno));
  if (!from_stdin) (void)fclose(f);
  s[n] = 0;
  *length = n;
  return s;
}

// ================================================================================================
// Threads: the library's executor.
// ================================================================================================

static ein_cpu *cpu;  // NULL with --kernels portable on one thread
#include "command_kernels.h"

static ein_cuda *cuda;
static int threads = 1;
#ifdef WITH_OPENBLAS
static ein_openblas *blas;
#endif

// What --kernels names, by comma.
typedef struct wanted {
  int portable, cpu, openblas, cuda;
  const char *isa;
} wanted;

static wanted wanted_kernels(void) {
  static const char *const isas[] = {"avx512", "avx2", "neon", "plain"};
  const char *list = given(O_KERNELS);
  wanted w = {0, 0, 0, 0, NULL};
  if (list == NULL) w.cpu = 1;
  for (const char *at = list; at != NULL;) {
    size_t n = strcspn(at, ",");
    int known = 0;
    if (n == 8 && memcmp(at, "portable", n) == 0) known = w.portable = 1;
    if (n == 3 && memcmp(at, "cpu", n) == 0) known = w.cpu = 1;
    if (n == 4 && memcmp(at, "cuda", n) == 0) known = w.cuda = 1;
    for (int i = 0; i < 4; i++) {
      if (strlen(isas[i]) != n || memcmp(at, isas[i], n) != 0) continue;
      w.isa = isas[i];
      known = w.cpu = 1;
    }
#ifdef WITH_OPENBLAS
    if (n == 8 && memcmp(at, "openblas", n) == 0) known = w.openblas = 1;
#endif
    if (!known) {
      misuse("portable, cpu, openblas (if found when building), cuda, avx512, avx2, neon, plain",
             "--kernels %.*s is not in this build", (int)n, at);
    }
    at = at[n] == ',' ? at + n + 1 : NULL;
  }
  return w;
}

// The GPU of --kernels cuda, which has to be there. only: it does all of it, however slow.
static void use_cuda(ein_ctx_desc *d, int only) {
  char facts[1024];
  ein_cuda_desc want;
  memset(&want, 0, sizeof want);
  ein_cuda_shelf shelf;
  want.only = only ? 2 : 0;
  want.device = ranks_here();
  want.around = 1;
  // of places in one process all devices, of ranks one each
  want.devices = given(O_FABRIC) != NULL && strcmp(given(O_FABRIC), "mpi") != 0 ? 16 : 1;
  want.shelf = kernel_shelf(&shelf);
  cuda_alone = only;
  const ein_status st = ein_cuda_create(&want, NULL, &cuda);
  if (st != EIN_OK) die_library(NULL, st, NULL);
  if (ein_cuda_use(cuda, d) == EIN_OK) return;
  (void)ein_cuda_info(cuda, facts, sizeof facts);
  die(SYSTEM_FAILED, NULL, "--kernels cuda: %s", facts + strlen("cuda: "));
}

// The pool and kernels of -j and --kernels.
static void use_backends(ein_ctx_desc *d, int64_t n) {
  wanted w = wanted_kernels();
  ein_cpu_desc machine;
  memset(&machine, 0, sizeof machine);
  machine.threads = (int)n;
  machine.isa = w.isa;
  ein_status st = ein_cpu_create(&machine, NULL, &cpu);
  if (st == EIN_ERR_UNSUPPORTED) misuse(NULL, "this machine has no %s", w.isa);
  if (st == EIN_OK && w.cpu) st = ein_cpu_use(cpu, d);
  if (st != EIN_OK) die_library(NULL, st, NULL);
  if (!w.cpu) d->executor = ein_cpu_executor(cpu);
  threads = ein_cpu_executor(cpu).width;
  if (w.cuda) use_cuda(d, !w.portable && !w.cpu && !w.openblas);
#ifdef WITH_OPENBLAS
  ein_openblas_desc b;
  memset(&b, 0, sizeof b);
  b.now_fn = now;
  if (w.portable && given(O_DETERMINISTIC) != NULL) w.openblas = 0;  // it would not be asked
  if (w.openblas && given(O_MEMORY) != NULL)
    misuse(NULL, "--memory does not reach the buffers that openblas keeps");
  openblas_set_num_threads(1);  // the executor's threads call it side by side
  if (w.openblas) st = ein_openblas_create(&b, NULL, &blas);
  if (w.openblas && st == EIN_OK) st = ein_openblas_use(blas, d);
  if (st != EIN_OK) die_library(NULL, st, NULL);
#endif
}

static void note_warnings(ein_level level, const char *message, void *user) {
  (void)user;
  if (level != EIN_LOG_WARNING || given(O_QUIET) != NULL) return;
  fputs("einsum: note: ", stderr);
  put_clean(stderr, message);
  fputc('\n', stderr);
}

static const char *rates_from = "by table";  // where the rates in use come from

// Gives the ctx the rates of --rates, or of the file that EINSUM_RATES names: what is wrong with
// those is but a note, as for one of another machine.
static void use_rates(ein_ctx *ctx) {
  const char *path = given(O_RATES), *named = getenv("EINSUM_RATES");
  ein_rates r;
  FILE *f;
  size_t length;
  if (path == NULL && (named == NULL || !named[0])) return;
  if (path == NULL && (f = fopen(named, "rb")) != NULL) (void)fclose(f);
  else if (path == NULL) {
    if (given(O_QUIET) == NULL)
      fprintf(stderr, "einsum: note: no rates, EINSUM_RATES: %s: %s\n", named, strerror(errno));
    return;
  }
  const char *from = path != NULL ? path : named, *text = read_text(from, &length);
  ein_status st = strlen(text) == length ? ein_rates_parse(ctx, text, &r) : EIN_ERR_SYNTAX;
  if (st == EIN_OK) st = ein_ctx_rates(ctx, &r);
  if (st == EIN_OK) rates_from = from;
  else if (path != NULL && strlen(text) == length) die_library(ctx, st, path);
  else if (path != NULL) die(WRONG_INPUT, NULL, "%s: a NUL byte", path);
  else if (given(O_QUIET) == NULL)
    fprintf(stderr, "einsum: note: no rates, EINSUM_RATES: %s: %s\n", named,
            ein_ctx_errors(ctx) > 0 ? ein_ctx_error(ctx, 0)->message : "a NUL byte");
}
#include "command_store.h"

static ein_ctx *make_ctx(void) {
  const char *j = given(O_CORES);
  int64_t n = 0;
  ein_ctx_desc d;
  ein_ctx *ctx;
  memset(&d, 0, sizeof d);
  if (j != NULL && (!read_int(j, strlen(j), &n) || n < 1 || n > 1024)) {
    misuse(NULL, "-j takes a number of threads from 1 to 1024, not '%s'", j);
  }
  use_backends(&d, n > 0 ? n : ranks_threads());
  d.now_fn = now;
  d.cache_plans = -1;
  use_store(&d, tuning);
  d.logger.log_fn = note_warnings;
  ein_status st = ein_ctx_create(&d, &ctx);
  if (st != EIN_OK) die_library(NULL, st, NULL);
  warn_store(ctx);
  use_rates(ctx);
  return ctx;
}

// ================================================================================================
// Arrays: files, results, random data.
// ================================================================================================

struct array {
  const char *name;   // file or tensor, for messages
  ein_ztensor v;      // shape and strides are its own
  int64_t nbytes;
  npy_array file;     // what holds the data, if it came from a file
  output *to;         // the file that it is written to at the end, if any
};

typedef char same_numbers[(int)NPY_BOOL == (int)EIN_BOOL && (int)NPY_F16 == (int)EIN_F16 &&
                          (int)NPY_C128 == (int)EIN_C128 ? 1 : -1];  // dtypes of both headers

// Shape and strides of its own; strides as if axes of extent 0 had one element.
static void set_shape(array *a, ein_dtype dtype, int rank, const int64_t *shape, int fortran) {
  int64_t *dims = (int64_t *)memory(sizeof *dims * 2 * (size_t)rank), step = 1;
  int64_t size = (int64_t)ein_dtype_size(dtype), empty = 0;
  memset(&a->v, 0, sizeof a->v);
  a->v.dtype = dtype;
  a->v.rank = rank;
  a->v.shape = dims;
  a->v.strides = dims + rank;
  for (int k = 0; k < rank; k++) {
    int i = fortran ? k : rank - 1 - k;
    dims[i] = shape[i];
    dims[rank + i] = step;
    empty |= shape[i] == 0;
    if (shape[i] > 1 && step > INT64_MAX / size / shape[i]) {
      die(WRONG_INPUT, NULL, "%s: its size does not fit 64 bits", a->name);
    }
    step *= shape[i] > 1 ? shape[i] : 1;
  }
  a->nbytes = empty ? 0 : step * size;
}

static void allocate(array *a) {
  a->v.data = memory((uint64_t)a->nbytes);
  a->v.buffer = a->v.data;
  a->v.buffer_bytes = (size_t)a->nbytes;
}

static int64_t count_of(const array *a) { return a->nbytes / (int64_t)ein_dtype_size(a->v.dtype); }

static int64_t unmapped;  // bytes of inputs that are in memory, not mapped; part of --memory

static int within_budget(void) { return given(O_MEMORY) != NULL && !on_places(); }

// Counts `bytes` more of them, where they cannot be kept in a file.
static void count_unmapped(const char *shown, int64_t bytes) {
  unmapped += bytes;
  if (!within_budget() || (uint64_t)unmapped < option_memory()) return;
  die(WRONG_INPUT, "TMPDIR may name a folder with room for them",
      "%s: inputs that are read or converted, not mapped, take %" PRIu64 " bytes, --memory is %s",
      shown, (uint64_t)unmapped, given(O_MEMORY));
}

// Memory for what an input becomes; within a budget that of an unnamed file, which is none.
static void allocate_input(array *a) {
  void *p = within_budget() && a->nbytes > 0 ? npy_apart((size_t)a->nbytes) : NULL;
  if (p == NULL) count_unmapped(a->name, a->nbytes);
  a->v.data = p != NULL ? p : memory((uint64_t)a->nbytes);
  a->v.buffer = a->v.data;
  a->v.buffer_bytes = (size_t)a->nbytes;
}

// Opens a file, or reads its header only; it stays open. said: what it should hold, or EIN_NONE.
static void load(array *a, const char *path, int header_only, ein_dtype said) {
  npy_array f;
  char err[256];
  const char *shown = strcmp(path, "-") == 0 ? "standard input" : path;
  check_source(path);
  if (!header_only) progress_begin("reading", NULL, 0);
  int r = header_only       ? npy_header_only(&f, path, err, sizeof err)
          : within_budget() ? npy_open_apart(&f, path, err, sizeof err)
                            : npy_open(&f, path, err, sizeof err);
  if (r != NPY_OK) die(r == NPY_BAD ? WRONG_INPUT : SYSTEM_FAILED, NULL, "%s: %s", shown, err);
  if (f.dtype == NPY_BF16 && said != EIN_BF16)
    die(WRONG_INPUT, "if it holds bfloat16, a program says so: input X[i,j] : bf16",
        "%s: descr '<V2': 2 bytes without a meaning", shown);
  a->name = shown;
  set_shape(a, (ein_dtype)f.dtype, f.rank, f.shape, f.fortran_order);
  if (header_only) {
    npy_close(&f);
    return;
  }
  a->file = f;
  a->v.data = f.data;
  if (!f.mapped) count_unmapped(shown, f.nbytes);
  unsigned char *raw = (unsigned char *)f.data;
  for (int64_t i = 0; f.dtype == NPY_BOOL && i < f.nbytes; i++) {
    if (raw[i] <= 1) continue;  // other bytes count as true; the file itself stays untouched
    allocate_input(a);
    unsigned char *own = (unsigned char *)a->v.data;
    for (int64_t k = 0; k < f.nbytes; k++) own[k] = raw[k] != 0;
    break;
  }
  a->v.buffer = a->v.data;
  a->v.buffer_bytes = (size_t)a->nbytes;
  progress_end();
}

// The same array in another dtype.
static void convert(ein_ctx *ctx, array *a, ein_dtype dtype) {
  array to = *a;
  set_shape(&to, dtype, a->v.rank, a->v.shape, 0);
  allocate_input(&to);
  ein_status st = ein_einsum(ctx, "...->...", 1, &a->v, &to.v);
  if (st != EIN_OK) die_library(ctx, st, a->name);
  *a = to;
}

// "64x32,32x16,": one array per entry. An empty entry, or 0d, is a scalar.
static array *parse_shapes(const char *text, ein_dtype dtype, int *n) {
  *n = 1;
  for (const char *s = text; *s; s++) *n += *s == ',';
  array *a = (array *)memory(sizeof *a * (size_t)*n);
  int64_t *shape = (int64_t *)memory(sizeof *shape * (strlen(text) + 1));
  for (int k = 0; k < *n; k++) {
    size_t end = strcspn(text, ",");
    int rank = 0;
    a[k].name = copy_text(text, end);
    if (end > 0 && strcmp(a[k].name, "0d") != 0) {
      for (const char *s = a[k].name;; s++) {
        size_t m = strcspn(s, "x");
        if (!read_int(s, m, &shape[rank++])) {
          misuse("shapes look like 64x32,32x16; an empty entry is a scalar",
              "'%s' is not a shape", a[k].name);
        }
        s += m;
        if (*s == 0) break;
      }
    }
    set_shape(&a[k], dtype, rank, shape, 0);
    text += end + (text[end] == ',');
  }
  return a;
}

static void fill_random(array *a, uint64_t seed, int operand) {
  size_t size = ein_dtype_size(a->v.dtype);
  int64_t n = count_of(a);
  const uint64_t key = mix(seed) + (uint64_t)operand;
  for (int64_t i = 0; i < n; i++)
    ein_random_element(a->v.dtype, key, i, (char *)a->v.data + (size_t)i * size);
}

#include "command_text.h"

// ================================================================================================
// Outputs: all of them appear, or none.
// ================================================================================================

#if POSIX
// An interrupted command leaves no temporary file. Only what a signal handler may use.
static void on_signal(int sig) {
  for (output *o = outputs; o != NULL; o = o->next) {
    if (o->w.temp != NULL) (void)unlink(o->w.temp);
  }
  (void)signal(sig, SIG_DFL);
  (void)raise(sig);
}

static void watch_signals(void) {
  static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_signal;
  for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
    struct sigaction old;
    if (sigaction(sigs[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    (void)sigaction(sigs[i], &a, NULL);
  }
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static int found_file(const char *path, struct stat *st) {
  return (strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, st) : stat(path, st)) == 0;
}

static int same_node(const struct stat *x, const struct stat *y) {
  return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

// Would one of two outputs be lost, or mixed with the other? "-" is what standard output is, by
// whatever name. The null device loses all anyway.
static int same_file(const char *a, const char *b) {
  struct stat x, y, null;
  int has_a = found_file(a, &x), has_b = found_file(b, &y);
  if (has_a && has_b && same_node(&x, &y))
    return !(S_ISCHR(x.st_mode) && stat("/dev/null", &null) == 0 && same_node(&x, &null));
  if (strcmp(a, b) == 0) return 1;
  if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0 || has_a || has_b) return 0;
  return strcmp(base_of(a), base_of(b)) == 0 && stat(folder_of(a), &x) == 0 &&
         stat(folder_of(b), &y) == 0 && same_node(&x, &y);
}

// Finds out before the work what would be found out after it.
static void check_target(const char *path) {
  struct stat st;
  if (strcmp(path, "-") == 0) return;
  errno = 0;
  int there = stat(path, &st) == 0;
  if (*path == 0) errno = ENOENT;
  else if (there && S_ISDIR(st.st_mode)) errno = EISDIR;
  else if (access(there ? path : folder_of(path), W_OK) == 0) return;
  die(SYSTEM_FAILED, NULL, "%s: cannot write: %s", path, strerror(errno));
}
#else
static void watch_signals(void) {}
static int same_file(const char *a, const char *b) { return strcmp(a, b) == 0; }
static void check_target(const char *path) { (void)path; }
#endif

// Is nothing but the picture printed?
static int svg_only(void) { return given(O_SVG) != NULL && strcmp(given(O_SVG), "-") == 0; }

// Every output of a command: arrays, the picture, and standard output where something is printed.
static void check_targets(const words *paths, int prints) {
  words all = {NULL, 0};
  if (mpi_rank > 0) return;  // it writes nothing
  if (prints) add_word(&all, "-");
  for (int i = 0; i < paths->n; i++) add_word(&all, paths->v[i]);
  if (given(O_SVG) != NULL) add_word(&all, given(O_SVG));
  if (given(O_SCHEDULE_OUT) != NULL) add_word(&all, given(O_SCHEDULE_OUT));
  for (int i = 0; i < all.n; i++) {
    for (int k = 0; k < i; k++) {
      if (!same_file(all.v[i], all.v[k])) continue;
      int first = strcmp(all.v[k], "-") == 0, named = strcmp(all.v[i], "-") != 0;
      misuse(first && named ? "it is standard output" : !first && !named ? "it is - as well" : NULL,
             "two outputs go to the same file %s", all.v[named ? i : k]);
    }
    check_target(all.v[i]);
  }
}

static void check_output(const output *o) {
  if (o->w.status == NPY_OK) return;
  die(o->w.status == NPY_BAD ? WRONG_INPUT : SYSTEM_FAILED, NULL, "%s: %s",
      strcmp(o->path, "-") == 0 ? "standard output" : o->path, o->w.err);
}

static void watch_output(output *o) {
  o->next = outputs;
  outputs = o;
  watch_signals();
}

static output *add_output(const char *path) {
  output *o = (output *)memory(sizeof *o);
  o->path = path;
  watch_output(o);
  return o;
}

// Begins the file of an array, and gives the array its memory: the file itself where that can be
// mapped, so that a result needs no memory beside it.
static void output_array(array *a, const char *path) {
  output *o = a->to = mpi_rank > 0 ? (output *)memory(sizeof *o) : add_output(path);
  o->path = path;
  if (mpi_rank > 0) {  // the first has it, others may join
    allocate(a);
    return;
  }
  npy_write_begin(&o->w, path, (int)a->v.dtype, a->v.rank, a->v.shape, 0);
  if (mpi_ranks == 1) a->v.data = npy_write_map(&o->w);
  check_output(o);
  if (a->v.data == NULL) {
    allocate(a);
    o->data = a;
  }
  a->v.buffer = a->v.data;
  a->v.buffer_bytes = (size_t)a->nbytes;
}

// Begins a file of another kind; "-" is standard output.
static FILE *output_stream(const char *path) {
  output *o = add_output(path);
  npy_write_begin_bytes(&o->w, path);
  check_output(o);
  return npy_write_stream(&o->w);
}

// Writes what is still to be written, and gives every output its name: first all data, then all
// names.
static void keep_outputs(void) {
  if (outputs != NULL) progress_begin("writing", NULL, 0);
  for (output *o = outputs; o != NULL; o = o->next) {
    if (o->data != NULL) npy_write_data(&o->w, o->data->v.data, (size_t)o->data->nbytes);
    npy_write_finish(&o->w);
    check_output(o);
  }
  for (output *o = outputs; o != NULL; o = o->next) {
    npy_write_commit(&o->w);
    check_output(o);
  }
  progress_end();
  outputs = NULL;
}

// ================================================================================================
// One expression: operands, result, plan.
// ================================================================================================

// The plan keeps within --memory, less what inputs take that could not be mapped.
static void keep_within(ein_options *o) {
  o->memory = option_memory();
  o->reserved = (size_t)unmapped;
}

static int is_within(const ein_plan *p) {
  ein_plan_info info = {0};
  (void)ein_plan_info_get(p, &info);
  return info.memory > 0;
}

typedef struct job {
  ein_ctx *ctx;
  ein_einsum_desc d;
  ein_ztensor *view;
  array *in, out;
  ein_plan *plan;
} job;

// Finds the result's shape and plans. dtype: of the result, or EIN_NONE.
static void job_plan(job *j, const char *expr, int nin, array *in, ein_dtype dtype) {
  int room = 64;
  int64_t *shape = NULL;
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  j->in = in;
  j->view = (ein_ztensor *)memory(sizeof *j->view * (size_t)nin);
  for (int k = 0; k < nin; k++) j->view[k] = in[k].v;
  memset(&j->d, 0, sizeof j->d);
  j->d.expr = expr;
  j->d.nin = nin;
  j->d.in = j->view;
  option_search(&j->d.options);
  ein_status st;
  do {
    if (v.rank > room) room = v.rank;
    shape = (int64_t *)memory(sizeof *shape * (size_t)room);
    st = ein_einsum_out_ex(j->ctx, &j->d, &v, shape, room);
  } while (st == EIN_ERR_ARGUMENT && v.rank > room);
  if (st != EIN_OK) die_library(j->ctx, st, NULL);
  j->out.name = "the result";
  set_shape(&j->out, dtype == EIN_NONE ? v.dtype : dtype, v.rank, shape, 0);
  j->d.out = &j->out.v;
  if (given(O_MEMORY) != NULL && !on_places() && given(O_DETERMINISTIC) == NULL)
    keep_within(&j->d.options);
  progress_begin("planning", NULL, 0);
  st = ein_plan_create(j->ctx, &j->d, &j->plan);
  if (st != EIN_OK) die_library(j->ctx, st, NULL);
  progress_end();
}

static char *plan_text(const ein_plan *p, size_t (*fn)(const ein_plan *, char *, size_t)) {
  size_t n = fn(p, NULL, 0);
  char *s = (char *)memory(n + 1);
  (void)fn(p, s, n + 1);
  return s;
}

// Bytes of temporaries that are alive at once, as the JSON of a plan says.
static double peak_of_json(const char *json) {
  const char *key = "\"peak_bytes\": ", *at = strstr(json, key);
  return at == NULL ? 0 : strtod(at + strlen(key), NULL);
}

// What predictions assume of this machine.
static void explain_cores(void) {
  char facts[1024];
  if (!wanted_kernels().cpu) {
    fputs("machine: nothing is assumed of these kernels\n", stderr);
    return;
  }
  (void)ein_cpu_info(cpu, facts, sizeof facts);
  for (char *line = strtok(facts, "\n"); line != NULL; line = strtok(NULL, "\n"))
    fprintf(stderr, "machine: %s\n", line);
  fputs("machine: rates in use: ", stderr);
  put_clean(stderr, rates_from);
  fputc('\n', stderr);
}

static void explain(const ein_plan *p) {
  if (given(O_EXPLAIN) == NULL) return;
  explain_cores();
  fputs(plan_text(p, ein_plan_explain), stderr);
}

static void execute(const ein_plan *plan, const ein_run *bound) {
  ein_run run = *bound;
  char error[256] = "";
  run.workspace_bytes = ein_plan_workspace(plan);
  if (run.workspace == NULL) run.workspace = memory(run.workspace_bytes);
  run.error = error;
  run.error_bytes = sizeof error;
  ein_status st = ein_plan_execute(plan, &run);
  if (st != EIN_OK) {
    die(exit_status(st), NULL, "%s%s%s", ein_status_text(st), error[0] ? ": " : "", error);
  }
}

// Executes, and tells with --explain what it took beside what was predicted. Returns the seconds.
// What the pool and its kernels did from one call to another; parts is 0 where they were not asked.
static ein_cpu_counts pool_did;

static void count_pool(int begins) {
  ein_cpu_counts n;
  ein_cpu_counts_get(cpu, &n);
  if (begins) {
    pool_did = n;
    return;
  }
  pool_did.jobs = n.jobs - pool_did.jobs;
  pool_did.parts = n.parts - pool_did.parts;
  pool_did.moved = n.moved - pool_did.moved;
  pool_did.wakes = n.wakes - pool_did.wakes;
  pool_did.packed = n.packed - pool_did.packed;
}

static void put_pool_json(int known, int64_t runs) {
  const double k = 1 / (double)runs;
  fputs(", \"pool\": ", stdout);
  if (!known || cpu == NULL) fputs("null", stdout);
  if (!known || cpu == NULL) return;
  printf("{\"jobs\": %.6g, \"parts\": %.6g, \"moved\": %.6g, \"wakes\": %.6g, \"packed\": %.15g}",
         k * (double)pool_did.jobs, k * (double)pool_did.parts, k * (double)pool_did.moved,
         k * (double)pool_did.wakes, k * (double)pool_did.packed);
}

static void explain_pool(FILE *to, int64_t runs) {
  const double k = 1 / (double)runs;
  if (cpu == NULL) return;
  fprintf(to, "pool: %.6g jobs of %.6g parts, %.6g of them on another thread than their own, "
          "%.6g threads woken; %.15g bytes packed\n", k * (double)pool_did.jobs,
          k * (double)pool_did.parts, k * (double)pool_did.moved, k * (double)pool_did.wakes,
          k * (double)pool_did.packed);
}

static double execute_once(const ein_plan *plan, const ein_run *bound) {
  ein_run run = *bound;
  ein_plan_info info = {0};
  (void)ein_plan_info_get(plan, &info);
  if (given(O_EXPLAIN) != NULL && !is_within(plan))
    run.seconds = (double *)memory(sizeof *run.seconds * ((size_t)info.ntask + 1));
  run.workspace = memory(info.workspace_bytes);
  progress_begin("running", NULL, info.seconds);
  count_pool(1);
  const double begin = now(NULL);
  execute(plan, &run);
  const double seconds = now(NULL) - begin;
  count_pool(0);
  progress_end();
  if (given(O_EXPLAIN) != NULL) explain_pool(stderr, 1);
  if (run.seconds == NULL) return explain(plan), seconds;
  size_t n = ein_plan_explain_run(plan, run.seconds, NULL, 0);
  char *s = (char *)memory(n + 1);
  (void)ein_plan_explain_run(plan, run.seconds, s, n + 1);
  explain_cores();
  fputs(s, stderr);
  return seconds;
}

static void job_bind(const job *j, ein_run *run, void **out) {
  const void **in = (const void **)memory(sizeof *in * (size_t)j->d.nin);
  for (int k = 0; k < j->d.nin; k++) in[k] = j->in[k].v.data;
  out[0] = j->out.v.data;
  memset(run, 0, sizeof *run);
  run->in = in;
  run->out = out;
}

// Gives back what the library holds and sees to it that all that was printed arrives; then outputs
// appear.
static int finish(ein_ctx *ctx, ein_plan *plan, ein_graph *graph) {
  ein_plan_destroy(plan);
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  ein_cpu_destroy(cpu);
  ein_cuda_destroy(cuda);
#ifdef WITH_OPENBLAS
  ein_openblas_destroy(blas);
#endif
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return keep_outputs(), DONE;
  die(SYSTEM_FAILED, NULL, "standard output: cannot write: %s",
      errno ? strerror(errno) : "unknown error");
}

static const char *expression(void) {
  if (args.n == 0) misuse("einsum --help shows how it is used", "no expression is given");
  return args.v[0];
}

// ================================================================================================
// Programs.
// ================================================================================================

typedef struct input {
  char *name;
  ein_dtype declared;  // EIN_NONE when the program does not say
  int bound;
  array a;
} input;

typedef struct program {
  ein_ctx *ctx;
  const char *file;    // for messages
  ein_program_desc d;
  input *in;
  int nin;
  ein_graph *graph;
  ein_graph *written;  // where a schedule's graph is in its place: the program's own; else NULL
  const ein_graph *decomposed;  // where results are scattered: the graph without that; else NULL
  const char *first;   // of that schedule, what is computed first
  ein_plan *plan;
  const char *path;    // of an expression, as JSON
  int commands;        // 1: there are commands of a schedule behind its statements
} program;

// The graph that is the program's to destroy.
static ein_graph *own_graph(const program *p) { return p->written != NULL ? p->written : p->graph; }

static void add_input(const char *name, ein_dtype dtype, int rank, void *user) {
  program *p = (program *)user;
  (void)rank;
  if ((p->nin & (p->nin - 1)) == 0) {
    input *in = (input *)memory(sizeof *in * (p->nin > 0 ? 2 * (size_t)p->nin : 1));
    if (p->nin > 0) memcpy(in, p->in, sizeof *in * (size_t)p->nin);
    p->in = in;
  }
  memset(&p->in[p->nin], 0, sizeof *p->in);
  p->in[p->nin].name = copy_text(name, strlen(name));
  p->in[p->nin++].declared = dtype;
}

// NAME=VALUE of an argument; the name is copied.
static char *split_name(const char *s, const char **value, const char *what) {
  const char *eq = strchr(s, '=');
  if (eq == NULL || eq == s) misuse(NULL, "'%s' is not %s", s, what);
  *value = eq + 1;
  return copy_text(s, (size_t)(eq - s));
}

// All --sizes as one list; the same name twice is an error.
static ein_size *option_sizes(int *count) {
  int n = 0, room = 0;
  for (int k = 0; k < opt[O_SIZES].n; k++) {
    for (const char *s = opt[O_SIZES].v[k]; *s; s++) room += *s == '=';
  }
  ein_size *size = (ein_size *)memory(sizeof *size * ((size_t)room + 1));
  for (int k = 0; k < opt[O_SIZES].n; k++) {
    const char *s = opt[O_SIZES].v[k], *value;
    for (;;) {
      size_t len = strcspn(s, ",");
      char *entry = copy_text(s, len);
      size[n].name = split_name(entry, &value, "a size: --sizes takes i=64,j=32");
      if (!read_int(value, strlen(value), &size[n].value)) {
        misuse(NULL, "the size of %s is not a number: '%s'", size[n].name, value);
      }
      for (int i = 0; i < n; i++) {
        if (strcmp(size[i].name, size[n].name) != 0) continue;
        misuse(NULL, "two sizes for %s", size[n].name);
      }
      n++;
      if (s[len] == 0) break;
      s += len + 1;
    }
  }
  *count = n;
  return size;
}

// Reads a program and finds its inputs.
static void program_open(program *p, const char *path) {
  memset(p, 0, sizeof *p);
  p->ctx = make_ctx();
  p->file = strcmp(path, "-") == 0 ? "standard input" : path;
  p->d.text = read_text(path, &p->d.length);
  p->d.dtype = option_dtype(EIN_NONE);
  p->d.size = option_sizes(&p->d.nsize);
  ein_status st = ein_program_inputs(p->ctx, &p->d, add_input, p);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
}

static void program_bind(program *p, int k, int header_only) {
  input *in = &p->in[k];
  ein_dtype t = in->declared;
  in->bound = 1;
  if (t == EIN_NONE || t == in->a.v.dtype) return;
  if (!ein_dtype_same_kind(in->a.v.dtype, t)) {
    die(WRONG_INPUT, NULL, "%s: holds %s, but %s declares %s as %s", in->a.name,
        ein_dtype_name(in->a.v.dtype), p->file, in->name, ein_dtype_name(t));
  }
  // Within a budget the plan reads the file as it is, and converts what it reads; integers, by
  // which there would be no gradient, are converted before.
  if (within_budget() && ein_dtype_same_kind(t, in->a.v.dtype)) return;
  if (header_only) in->a.v.dtype = t;
  else convert(p->ctx, &in->a, t);
}

// Binds NAME=FILE arguments, or --shapes in the order of declaration.
static void program_inputs(program *p, int header_only) {
  for (int i = 1; i < args.n; i++) {
    const char *path;
    char *name = split_name(args.v[i], &path, "an input: write NAME=FILE.npy");
    int k = 0;
    while (k < p->nin && strcmp(p->in[k].name, name) != 0) k++;
    if (k == p->nin) misuse(NULL, "%s has no input '%s'", p->file, name);
    if (p->in[k].bound) misuse(NULL, "input '%s' is given twice", name);
    if (strcmp(path, "-") == 0 && strcmp(args.v[0], "-") == 0) {
      misuse(NULL, "standard input cannot be both the program and input '%s'", name);
    }
    ein_dtype said = p->in[k].declared != EIN_NONE ? p->in[k].declared : p->d.dtype;
    load(&p->in[k].a, path, header_only, said);
    program_bind(p, k, header_only);
  }
  if (given(O_SHAPES) == NULL) return;
  int n;
  array *a = parse_shapes(given(O_SHAPES), option_dtype(EIN_F64), &n);
  if (args.n > 1) misuse(NULL, "give files or --shapes, not both");
  if (n != p->nin) {
    misuse(NULL, "--shapes has %d entries, %s has %d inputs", n, p->file, p->nin);
  }
  for (int k = 0; k < n; k++) {
    input *in = &p->in[k];
    in->a = a[k];
    in->bound = 1;
    if (in->declared != EIN_NONE) set_shape(&in->a, in->declared, a[k].v.rank, a[k].v.shape, 0);
  }
}

// Steps of an expression are its statements already; none of them is split again.
static void program_search(const program *p, ein_options *o) {
  option_search(o);
  if (p->path != NULL && o->path != NULL) o->path = "none";
}

// With --deterministic, the graph gives way to the one that fixes every order.
static void program_order(program *p) {
  ein_options search;
  ein_graph *ordered;
  if (given(O_DETERMINISTIC) == NULL) return;
  program_search(p, &search);
  progress_begin("planning", NULL, 0);
  ein_status st = ein_graph_deterministic(p->ctx, p->graph, &search, &ordered);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
  ein_graph_destroy(p->graph);
  p->graph = ordered;
}

// The graph; bound inputs are in d.bind.
static void program_parse(program *p) {
  ein_binding *bind = (ein_binding *)memory(sizeof *bind * ((size_t)p->nin + 1));
  for (int k = 0; k < p->nin; k++) {
    if (!p->in[k].bound) continue;
    bind[p->d.nbind].name = p->in[k].name;
    bind[p->d.nbind++].view = &p->in[k].a.v;
  }
  p->d.bind = bind;
  ein_status st = ein_graph_parse(p->ctx, &p->d, &p->graph);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  p->commands = ein_graph_commands(p->graph);
  program_order(p);
}

// Plans the graph, or fits it into --memory.
static void program_schedule(program *p) {
  ein_binding *bind = (ein_binding *)memory(sizeof *bind * ((size_t)p->d.nbind + 1));
  if (p->d.nbind > 0) memcpy(bind, p->d.bind, sizeof *bind * (size_t)p->d.nbind);
  int n = 0;  // inputs that nothing needs are not part of the graph
  for (int k = 0; k < p->d.nbind; k++) {
    ein_tensor_info t;
    for (int i = 0; i < ein_graph_tensors(p->graph); i++) {
      if (!ein_graph_tensor(p->graph, i, &t) || t.role != EIN_ROLE_INPUT) continue;
      if (strcmp(t.name, bind[k].name) == 0) {
        bind[n++] = bind[k];
        break;
      }
    }
  }
  ein_options search;
  program_search(p, &search);
  if (given(O_MEMORY) != NULL && !on_places()) keep_within(&search);
  progress_begin("planning", NULL, 0);
  ein_status st = ein_plan_graph(p->ctx, p->graph, n, bind, &search, &p->plan);
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  progress_end();
}

static void program_plan(program *p) {
  program_parse(p);
  program_schedule(p);
}

// Values of --set, in the order of the plan's params.
static ein_scalar *program_params(const program *p) {
  int n = 0, declared = ein_graph_params(p->graph);
  ein_param_info info;
  while (ein_plan_param(p->plan, n, &info)) n++;
  ein_scalar *value = (ein_scalar *)memory(sizeof *value * ((size_t)n + 1));
  char *seen = (char *)memory((uint64_t)n + 1);
  for (int i = 0; i < opt[O_SET].n; i++) {
    const char *text;
    char *name = split_name(opt[O_SET].v[i], &text, "a param: --set takes NAME=VALUE");
    ein_scalar v;
    int known = 0;
    if (!read_scalar(text, &v)) misuse(NULL, "the value of %s is not a number: '%s'", name, text);
    for (int k = 0; k < declared && !known; k++) {
      known = ein_graph_param(p->graph, k, &info) && strcmp(info.name, name) == 0;
    }
    if (!known) misuse(NULL, "%s has no param '%s'", p->file, name);
    for (int k = 0; ein_plan_param(p->plan, k, &info); k++) {
      if (strcmp(info.name, name) != 0) continue;
      if (seen[k]++) misuse(NULL, "param '%s' is set twice", name);
      if (v.im != 0 && !is_complex(info.dtype)) {
        die(WRONG_INPUT, NULL, "param '%s' is %s, its value %s is complex", name,
            ein_dtype_name(info.dtype), text);
      }
      value[k] = v;
    }
  }
  for (int k = 0; ein_plan_param(p->plan, k, &info); k++) {
    if (!value[k].set && !info.has_default) {
      misuse("--set NAME=VALUE", "param '%s' has no value", info.name);
    }
  }
  return value;
}

// Fills names and paths with the -o options, in their order.
static void program_targets(words *names, words *paths) {
  for (int i = 0; i < opt[O_OUT].n; i++) {
    const char *path;
    char *name = split_name(opt[O_OUT].v[i], &path, "an output: write -o NAME=FILE.npy");
    for (int k = 0; k < names->n; k++) {
      if (strcmp(names->v[k], name) == 0) misuse(NULL, "output '%s' is given twice", name);
    }
    add_word(names, name);
    add_word(paths, path);
  }
  check_targets(paths, given(O_JSON) != NULL || (paths->n == 0 && !svg_only()));
}

static void print_outputs(const array *out, int n) {
  for (int i = 0; i < n; i++) {
    if (n > 1) printf("%s =%c", out[i].name, out[i].v.rank < 2 ? ' ' : '\n');
    print_array(&out[i], 0);
  }
}

static const char *program_argument(const char *how) {
  if (args.n == 0) misuse(how, "no program is given");
  if (!is_program(args.v[0])) {
    misuse(how, "'%s' is no program: its name ends in .ein, or it is -", args.v[0]);
  }
  return args.v[0];
}

#include "command_plan.h"
#include "command_count.h"
#include "command_run.h"
#include "command_bench.h"
#include "command_canon.h"
#include "command_tune.h"
#include "command_rates.h"
#include "command_bound.h"
#include "command_rewrite.h"
#include "command_search.h"

// ================================================================================================
// info, and the way into every command.
// ================================================================================================

static const char *compiler(void) {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

#ifdef WITH_OPENBLAS
#define BACKENDS_TEXT " openblas cuda"
#define BACKENDS_JSON ", \"openblas\", \"cuda\""
#else
#define BACKENDS_TEXT " cuda"
#define BACKENDS_JSON ", \"cuda\""
#endif
#ifdef WITH_MPI
#define FABRICS_TEXT "serial threads copying mpi sim"
#define FABRICS_JSON "\"serial\", \"threads\", \"copying\", \"mpi\", \"sim\""
#else
#define FABRICS_TEXT "serial threads copying sim"
#define FABRICS_JSON "\"serial\", \"threads\", \"copying\", \"sim\""
#endif

// The lines of a text, indented, or as strings of JSON.
static void put_lines(char *facts, int json) {
  for (char *line = strtok(facts, "\n"), *next; line != NULL; line = next) {
    next = strtok(NULL, "\n");
    if (json) put_json_string(line);
    else printf("  %s", line);
    fputs(next == NULL ? "" : json ? ", " : "\n", stdout);
  }
}

// The processor's name where the system tells it, else "".
static const char *cpu_name(char *line, size_t size) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  const char *name = "";
  while (f != NULL && !name[0] && fgets(line, (int)size, f) != NULL) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    line[strcspn(line, "\n")] = 0;
    name = colon + 1 + (colon[1] == ' ');
  }
  if (f != NULL) (void)fclose(f);
  return name;
}

// What there is of a GPU, or why there is none.
static void info_cuda(int json) {
  char facts[1024];
  ein_cuda *one = cuda;
  if (one == NULL && ein_cuda_create(NULL, NULL, &one) != EIN_OK) return;
  (void)ein_cuda_info(one, facts, sizeof facts);
  if (json) {
    fputs(", \"cuda\": [", stdout);
    put_lines(facts, 1);
    fputs("]", stdout);
  } else {
    puts(facts);
  }
  if (one != cuda) ein_cuda_destroy(one);
}

static int command_info(void) {
  char line[256], facts[1024];
  const char *name = cpu_name(line, sizeof line);
  int json = given(O_JSON) != NULL;
  if (args.n > 0) misuse(NULL, "info takes no argument: '%s'", args.v[0]);
  ein_ctx *ctx = make_ctx();  // checks -j, --kernels and --rates
  const ein_rates rates = ein_ctx_rates_get(ctx);
  (void)ein_cpu_info(cpu, facts, sizeof facts);
  if (json) {
    printf("{\"version\": \"%s\", \"compiler\": ", ein_version());
    put_json_string(compiler());
    printf(", \"backends\": [\"portable\", \"cpu\"%s], "
           "\"fabrics\": [" FABRICS_JSON "], \"threads\": %d, \"cpu\": ", BACKENDS_JSON, threads);
    put_json_string(name);
    fputs(", \"processor\": [", stdout);
    put_lines(facts, 1);
    fputs("], \"rates\": {\"from\": ", stdout);
    put_json_string(rates_from);
    put_rates_json(&rates);
    fputs("}", stdout);
    info_store(ctx, 1);
    info_cuda(1);
    fputs(", \"dtypes\": [", stdout);
  } else {
    printf("version   %s\ncompiler  %s\n", ein_version(), compiler());
    printf("backends  portable cpu%s\nfabrics   " FABRICS_TEXT "\n", BACKENDS_TEXT);
    printf("threads   %d\ncpu       %s\n", threads, name[0] ? name : "unknown");
    put_lines(facts, 0);
    printf("\nrates     ");
    put_clean(stdout, rates_from);
    puts("");
    if (rates.call > 0) put_rates(&rates);
    info_store(ctx, 0);
    info_cuda(0);
#ifdef WITH_OPENBLAS
    ein_openblas_desc b;
    ein_openblas *o = NULL;
    memset(&b, 0, sizeof b);
    b.now_fn = now;
    openblas_set_num_threads(1);
    if (ein_openblas_create(&b, NULL, &o) == EIN_OK) {
      (void)ein_openblas_info(o, facts, sizeof facts);
      puts(facts);
    }
    ein_openblas_destroy(o);
#endif
    printf("dtypes   ");
  }
  for (int t = 1; t < EIN_DTYPE_COUNT; t++) {
    if (json) printf("%s\"%s\"", t > 1 ? ", " : "", ein_dtype_name((ein_dtype)t));
    else printf(" %s", ein_dtype_name((ein_dtype)t));
  }
  puts(json ? "]}" : "");
  return finish(ctx, NULL, NULL);
}

static int run_command(unsigned command) {
  if (given(O_VARIANT) != NULL && (on_places() || given(O_MEMORY) != NULL))
    misuse(NULL, "--variant does not go with -p, --fabric or --memory");
  if (given(O_CONSTANT) != NULL && (on_places() || given(O_MEMORY) != NULL))
    misuse(NULL, "--constant does not go with -p, --fabric or --memory");
  if (given(O_UNGROUPED) != NULL && (on_places() || given(O_MEMORY) != NULL))
    misuse(NULL, "--ungrouped does not go with -p, --fabric or --memory");
  switch (command) {
    case RUN: return command_run();
    case PLAN: return command_plan();
    case BENCH: return command_bench();
    case CANON: return command_canon();
    case TUNE: return command_tune();
    case STORE: return command_store();
    case CALIBRATE: return command_calibrate();
    case BOUND: return command_bound();
    case REWRITE: return command_rewrite();
    case SEARCH: return command_search();
    case INFO: return command_info();
    default: return command_eval();
  }
}

int main(int argc, char **argv) {
  ranks_begin(argc, argv);
  const unsigned command = read_command_line(argc, argv);
  if (argc < 2) {
    for (int k = 0; k < USAGE_PARTS; k++) fputs(usage[k], stderr);
    return WRONG_COMMAND;
  }
  return ranks_end(run_command(command));
}
