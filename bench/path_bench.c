// Time and cost of the contraction order search.
//
//   cc -std=c99 -O2 bench/path_bench.c -lm -o path_bench
//   ./path_bench            chains, the interval optimum, latency of small networks
//   ./path_bench -          commands from standard input (bench/path_peers.py writes them):
//     net NAME NTERM NLABEL, the extents, then NTERM+1 times: COUNT and that many labels
//     run ALGO GOAL SECONDS STEPS SEED REPEAT SHOW
//       answers: result NAME ALGO SECONDS(median) FLOPS LARGEST MOVED PROVED METHOD, with the
//       steps of the path behind it if SHOW is 1
//     cost NSTEP, then NSTEP pairs: answers cost FLOPS LARGEST MOVED, or cost error
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 199309L
#endif
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void *user) {
  (void)user;
#if defined(CLOCK_MONOTONIC)
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
  return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static int by_value(const void *a, const void *b) {
  double x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

static void *need(size_t n) {
  void *p = malloc(n > 0 ? n : 1);
  if (p == NULL) exit(2);
  return p;
}

typedef struct problem {
  char name[64];
  eini_net net;
  int64_t *extent;
  int *start, *labels;
} problem;

static void problem_free(problem *p) {
  free(p->extent);
  free(p->start);
  free(p->labels);
  memset(p, 0, sizeof *p);
}

static void problem_alloc(problem *p, int nterm, int nlabel, int room) {
  problem_free(p);
  p->extent = (int64_t *)need((size_t)nlabel * sizeof(int64_t));
  p->start = (int *)need((size_t)(nterm + 2) * sizeof(int));
  p->labels = (int *)need((size_t)room * sizeof(int));
  p->net.nterm = nterm;
  p->net.nlabel = nlabel;
  p->net.extent = p->extent;
  p->net.start = p->start;
  p->net.labels = p->labels;
}

static int read_int(void) {
  int x;
  if (scanf("%d", &x) != 1) exit(3);
  return x;
}

static void read_problem(problem *p) {
  char name[64];
  if (scanf("%63s", name) != 1) exit(3);
  int nterm = read_int(), nlabel = read_int(), at = 0, room = 1024;
  problem_alloc(p, nterm, nlabel, room);
  memcpy(p->name, name, sizeof name);
  for (int l = 0; l < nlabel; l++) {
    long long e;
    if (scanf("%lld", &e) != 1) exit(3);
    p->extent[l] = e;
  }
  for (int t = 0; t <= nterm; t++) {
    int n = read_int();
    p->start[t] = at;
    if (at + n > room) {
      room = 2 * (at + n);
      p->labels = (int *)realloc(p->labels, (size_t)room * sizeof(int));
      if (p->labels == NULL) exit(2);
    }
    for (int i = 0; i < n; i++) p->labels[at++] = read_int();
  }
  p->start[nterm + 1] = at;
  p->net.labels = p->labels;
}

// Median time of `repeat` searches; the path stays in the arena.
static double timed(eini_arena *arena, const eini_net *net, eini_path_opts *o, int repeat,
                    eini_path *path) {
  double *t = (double *)need((size_t)repeat * sizeof(double));
  o->now_fn = now;
  for (int r = 0; r < repeat; r++) {
    eini_arena_free(arena);
    eini_arena_init(arena, NULL);
    double t0 = now(NULL);
    if (eini_path_find(arena, net, o, path) != EIN_OK) exit(4);
    t[r] = now(NULL) - t0;
  }
  qsort(t, (size_t)repeat, sizeof(double), by_value);
  double median = t[repeat / 2];
  free(t);
  return median;
}

static const char *const algo_names[] = {"auto", "naive", "optimal", "dp", "greedy", "random"};

static void run_command(problem *p) {
  char algo[16];
  eini_path_opts o;
  eini_path path;
  eini_arena arena;
  int goal, repeat, show;
  long long steps, seed;
  memset(&o, 0, sizeof o);
  if (scanf("%15s %d %lf %lld %lld %d %d", algo, &goal, &o.seconds, &steps, &seed, &repeat,
            &show) != 7) {
    exit(3);
  }
  for (int i = 0; i < 6; i++) {
    if (strcmp(algo, algo_names[i]) == 0) o.algo = (eini_path_algo)i;
  }
  o.goal = (eini_path_goal)goal;
  o.steps = steps;
  o.seed = (uint64_t)seed;
  eini_arena_init(&arena, NULL);
  double t = timed(&arena, &p->net, &o, repeat, &path);
  printf("result %s %s %.9f %.17g %.17g %.17g %d %s", p->name, algo, t, path.flops, path.largest,
         path.moved, path.proved, path.method);
  if (show) {
    printf(" |");
    for (int i = 0; i < path.nstep; i++) printf(" %d %d", path.pos[2 * i], path.pos[2 * i + 1]);
  }
  printf("\n");
  fflush(stdout);
  eini_arena_free(&arena);
}

static void cost_command(problem *p) {
  eini_path path;
  eini_arena arena;
  memset(&path, 0, sizeof path);
  path.nstep = read_int();
  path.first = (int *)need(((size_t)path.nstep + 1) * sizeof(int));
  path.pos = (int *)need((size_t)path.nstep * sizeof(int[2]));
  for (int i = 0; i <= path.nstep; i++) path.first[i] = 2 * i;
  for (int i = 0; i < 2 * path.nstep; i++) path.pos[i] = read_int();
  eini_arena_init(&arena, NULL);
  int bad;
  if (eini_path_cost(&arena, &p->net, &path, &bad) == EIN_OK) {
    printf("cost %.17g %.17g %.17g\n", path.flops, path.largest, path.moved);
  } else {
    printf("cost error\n");
  }
  fflush(stdout);
  free(path.first);
  free(path.pos);
  eini_arena_free(&arena);
}

// ---- without a peer ----

static void make_chain(problem *p, int n, uint64_t seed) {
  problem_alloc(p, n, n + 1, 2 * n + 2);
  for (int l = 0; l <= n; l++) p->extent[l] = 2 + eini_path_below(&seed, 63);
  for (int t = 0; t < n; t++) {
    p->start[t] = 2 * t;
    p->labels[2 * t] = t;
    p->labels[2 * t + 1] = t + 1;
  }
  p->start[n] = 2 * n;
  p->labels[2 * n] = 0;
  p->labels[2 * n + 1] = n;
  p->start[n + 1] = 2 * n + 2;
}

// Optimal cost of a matrix chain, O(n^3).
static double chain_optimum(const problem *p) {
  int n = p->net.nterm;
  size_t w = (size_t)n;
  double *c = (double *)need(w * w * sizeof(double)), *r = (double *)need(w * w * sizeof(double));
  for (int i = 0; i < n; i++) c[(size_t)i * w + (size_t)i] = r[(size_t)i * w + (size_t)i] = 0;
  for (int len = 2; len <= n; len++) {
    for (int i = 0; i + len <= n; i++) {
      int j = i + len - 1;
      double best = HUGE_VAL, ends = 2.0 * (double)p->extent[i] * (double)p->extent[j + 1];
      const double *left = c + (size_t)i * w, *right = r + (size_t)j * w + 1;
      for (int k = i; k < j; k++) {
        double x = left[k] + right[k] + ends * (double)p->extent[k + 1];
        if (x < best) best = x;
      }
      c[(size_t)i * w + (size_t)j] = best;  // by rows, and by columns for `right`
      r[(size_t)j * w + (size_t)i] = best;
    }
  }
  double best = c[w - 1];
  free(c);
  free(r);
  return best;
}

static void show(problem *p, const char *what, eini_path_algo algo, double seconds, int repeat,
                 double optimum) {
  eini_path_opts o;
  eini_path path;
  eini_arena arena;
  memset(&o, 0, sizeof o);
  o.algo = algo;
  o.seconds = seconds;
  eini_arena_init(&arena, NULL);
  double t = timed(&arena, &p->net, &o, repeat, &path);
  printf("%-24s %-8s %8.3f s budget %12.3f us  flops %.6g", what, algo_names[algo], seconds,
         1e6 * t, path.flops);
  if (optimum > 0) printf("  %.4f of the optimum", path.flops / optimum);
  printf("  (%s, %d)\n", path.method, path.proved);
  eini_arena_free(&arena);
}

static void self(void) {
  problem p;
  memset(&p, 0, sizeof p);
  for (int n = 2; n <= 14; n += n < 4 ? 1 : 2) {
    char what[32];
    make_chain(&p, n, 1);
    snprintf(what, sizeof what, "chain of %d", n);
    show(&p, what, EINI_PATH_AUTO, 0, 101, chain_optimum(&p));
  }
  for (uint64_t seed = 1; seed <= 3; seed++) {
    make_chain(&p, 1000, seed);
    double best = chain_optimum(&p);
    show(&p, "chain of 1000", EINI_PATH_GREEDY, 0, 51, best);
    show(&p, "chain of 1000", EINI_PATH_AUTO, 0, 5, best);
    show(&p, "chain of 1000", EINI_PATH_RANDOM, 0.2, 1, best);
  }
  make_chain(&p, 20000, 1);
  show(&p, "chain of 20000", EINI_PATH_GREEDY, 0, 3, 0);
  show(&p, "chain of 20000", EINI_PATH_AUTO, 0, 1, 0);
  problem_free(&p);
}

int main(int argc, char **argv) {
  if (argc < 2 || strcmp(argv[1], "-") != 0) {
    self();
    return 0;
  }
  char word[16];
  problem p;
  memset(&p, 0, sizeof p);
  while (scanf("%15s", word) == 1) {
    if (strcmp(word, "net") == 0) {
      read_problem(&p);
    } else if (strcmp(word, "run") == 0) {
      run_command(&p);
    } else if (strcmp(word, "cost") == 0) {
      cost_command(&p);
    }
  }
  problem_free(&p);
  return 0;
}
