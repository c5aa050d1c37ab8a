// backends/einsum_cpu.h: detection, pool, copies, chunk operations, against plain loops.
//
//   test_cpu             a few seconds
//   test_cpu SEED N      N random copies per instruction set from that seed
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "check.h"
#include "util.h"
#include "scaled.h"
#include "spellings.h"

#if EINI_CPU_POSIX
#include <sys/mman.h>
#endif

static uint64_t seed = 1;
static int64_t pick(int64_t n) {  // in [0, n)
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

static ein_cpu *open_isa(const char *isa, int threads) {
  ein_cpu_desc d;
  ein_cpu *cpu = NULL;
  memset(&d, 0, sizeof d);
  d.isa = isa;
  d.threads = threads;
  ein_status st = ein_cpu_create(&d, NULL, &cpu);
  CHECK(st == EIN_OK || (st == EIN_ERR_UNSUPPORTED && cpu == NULL));
  return cpu;
}

// ---- the object ----

static void test_create(void) {
  ein_cpu *cpu = NULL;
  ein_cpu_desc d;
  counter c = {0, 0, 0};
  ein_allocator a = {count_alloc, count_free, NULL};
  a.user = &c;
  memset(&d, 0, sizeof d);
  CHECK(ein_cpu_create(NULL, &a, &cpu) == EIN_ERR_NO_MEMORY && cpu == NULL && c.live == 0);
  CHECK(ein_cpu_create(NULL, &a, &cpu) == EIN_OK && c.live == 1);
  ein_cpu_destroy(cpu);
  CHECK(c.live == 0);
  ein_cpu_destroy(NULL);
  CHECK(ein_cpu_create(NULL, NULL, NULL) == EIN_ERR_ARGUMENT);
  d.threads = -1;
  CHECK(ein_cpu_create(&d, NULL, &cpu) == EIN_ERR_ARGUMENT);
  d.threads = 0;
  d.isa = "avx3";
  CHECK(ein_cpu_create(&d, NULL, &cpu) == EIN_ERR_UNSUPPORTED && cpu == NULL);
  a.free_fn = NULL;
  CHECK(ein_cpu_create(NULL, &a, &cpu) == EIN_ERR_ARGUMENT);
}

static void test_text(void) {
  char text[1000];
  ein_cpu *cpu = open_isa("plain", 1);
  CHECK(ein_cpu_info(cpu, text, sizeof text) == strlen(text) && strstr(text, "plain") != NULL);
  ein_cpu_destroy(cpu);
}

static void test_use(void) {
  double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {0, 0, 0, 0};
  const int64_t sa[2] = {2, 3}, sb[2] = {3, 2}, sc[2] = {2, 2};
  ein_ztensor in[2], out;
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  ein_cpu *cpu = NULL;
  CHECK(ein_cpu_create(NULL, NULL, &cpu) == EIN_OK);
  memset(&d, 0, sizeof d);
  memset(in, 0, sizeof in);
  memset(&out, 0, sizeof out);
  CHECK(ein_cpu_use(cpu, &d) == EIN_OK && d.nuse == 1);
  CHECK(d.use[0] == ein_cpu_kernels(cpu) && d.executor.parallel_for != NULL);
  CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
  in[0].dtype = in[1].dtype = out.dtype = EIN_F64;
  in[0].rank = in[1].rank = out.rank = 2;
  in[0].shape = sa;
  in[1].shape = sb;
  out.shape = sc;
  in[0].data = a;
  in[1].data = b;
  out.data = c;
  CHECK(ein_einsum(ctx, "ij,jk->ik", 2, in, &out) == EIN_OK);
  CHECK(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
  ein_ctx_destroy(ctx);
  d.nuse = 8;
  CHECK(ein_cpu_use(cpu, &d) == EIN_ERR_TOO_LARGE && ein_cpu_use(cpu, NULL) == EIN_ERR_ARGUMENT);
  ein_cpu_destroy(cpu);
}

// ---- the pool ----

typedef struct {
  int *hits;
  ein_executor inner;
} job;

static void hit(void *arg, int i) { ((job *)arg)->hits[i]++; }

static void nested(void *arg, int i) {  // runs inline, in the same thread
  job *j = (job *)arg;
  job mine = *j;
  mine.hits = j->hits + 8 * i;
  j->inner.parallel_for(8, hit, &mine, j->inner.user);
}

static void test_pool_width(int threads, int rounds) {
  ein_cpu *cpu = open_isa("", threads);
  ein_executor e = ein_cpu_executor(cpu);
  static int hits[4096];
  job j;
  j.hits = hits;
  j.inner = e;
  CHECK(e.width >= 1 && e.width <= threads);
  for (int r = 0; r < rounds; r++) {
    int n = r % 7 == 0 ? (int)pick(4096) : (int)pick(40), good = 1;
    memset(hits, 0, sizeof hits);
    e.parallel_for(n, hit, &j, e.user);
    for (int i = 0; i < 4096; i++) good &= hits[i] == (i < n);
    CHECK(good);
  }
  memset(hits, 0, sizeof hits);
  e.parallel_for(100, nested, &j, e.user);
  for (int i = 0; i < 800; i++) CHECK(hits[i] == 1);
  ein_cpu_destroy(cpu);
}

#if EINI_CPU_THREADS
typedef struct {
  ein_executor e;
  int bad;
} user_thread;

static void *many_jobs(void *arg) {
  user_thread *u = (user_thread *)arg;
  int hits[64];
  job j;
  j.hits = hits;
  for (int r = 0; r < 2000; r++) {
    memset(hits, 0, sizeof hits);
    u->e.parallel_for(64, hit, &j, u->e.user);
    for (int i = 0; i < 64; i++) u->bad += hits[i] != 1;
  }
  return NULL;
}

static void test_pool_shared(void) {  // several callers at the same time
  ein_cpu *cpu = open_isa("", 3);
  user_thread u[3];
  pthread_t t[3];
  for (int i = 0; i < 3; i++) {
    u[i].e = ein_cpu_executor(cpu);
    u[i].bad = 0;
    CHECK(pthread_create(&t[i], NULL, many_jobs, &u[i]) == 0);
  }
  for (int i = 0; i < 3; i++) {
    pthread_join(t[i], NULL);
    CHECK(u[i].bad == 0);
  }
  ein_cpu_destroy(cpu);
}
#endif

// Parts of a contraction: never more than threads or than a family allows, and all threads work
// where there are parts for them.
static void test_share(void) {
  static const int64_t most[][3] = {{100, 2, 2}, {1, 1, 1}, {2, 5, 1}, {1, 3, 900}, {0, 7, 7}};
  for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
    for (int64_t width = 1; width <= 70; width++) {
      ein_choice h;
      int64_t all = 1, possible = 1;
      memset(&h, 0, sizeof h);
      memcpy(h.grid, most[k], sizeof most[k]);
      eini_cpu_share(&h, width);
      for (int i = 0; i < 3; i++) {
        CHECK(h.grid[i] >= 1 && h.grid[i] <= (most[k][i] > 0 ? most[k][i] : 1));
        all *= h.grid[i];
        possible *= most[k][i] > 0 ? most[k][i] : 1;
      }
      CHECK(all <= width && 2 * all > (possible < width ? possible : width));
    }
  }
}

static void test_pool(void) {
  for (int threads = 1; threads <= 5; threads++) test_pool_width(threads, 300);
  for (int i = 0; i < 50; i++) ein_cpu_destroy(open_isa("", 1 + i % 6));  // unused, at once
#if EINI_CPU_THREADS
  test_pool_shared();
#endif
}

// ---- copies ----

// Memory that ends at a page nobody may touch.
static char *guarded(size_t bytes, char **whole, size_t *length) {
#if EINI_CPU_POSIX && defined(MAP_PRIVATE) && (defined(MAP_ANONYMOUS) || defined(MAP_ANON))
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
  size_t page = 65536, n = (bytes + page - 1) / page * page;
  void *p = mmap(NULL, n + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != MAP_FAILED) {
    *whole = (char *)p;
    *length = n + 2 * page;
    if (mprotect(p, page, PROT_NONE) == 0 && mprotect((char *)p + page + n, page, PROT_NONE) == 0)
      return (char *)p + page + (pick(2) ? n - bytes : 0);
  }
#endif
  *length = 0;
  return *whole = (char *)malloc(bytes > 0 ? bytes : 1);
}

static void unguard(char *whole, size_t length) {
#if EINI_CPU_POSIX
  if (length > 0) {
    munmap(whole, length);
    return;
  }
#endif
  (void)length;
  free(whole);
}

#define RANK 20

typedef struct {
  ein_copy c;
  int64_t extent[RANK], src[RANK], dst[RANK];
  int64_t src_span, dst_span;  // elements
  int64_t src_at, dst_at;      // element of index 0
  size_t src_shift, dst_shift; // bytes that the arrays are away from where memory begins
} problem;

// Strides of a random order of the axes, some reversed, some with gaps, sources sometimes still.
static int64_t random_strides(int n, const int64_t *extent, int64_t *stride, int still,
                              int64_t *at) {
  int order[RANK];
  int64_t span = 1;
  *at = 0;
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)pick(i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  if (pick(8) == 0) span += pick(3);
  for (int i = 0; i < n; i++) {
    int k = order[i];
    stride[k] = span;
    if (still && pick(8) == 0) stride[k] = 0;
    int64_t last = (extent[k] > 0 ? extent[k] - 1 : 0) * stride[k];
    if (stride[k] != 0) span = last + span + (pick(6) == 0 ? pick(20) : 0);
    if (pick(5) == 0) {
      *at += last;
      stride[k] = -stride[k];
    }
  }
  return span;
}

static void random_problem(problem *p, int size) {
  int n = (int)pick(7);
  int64_t room = 60000;
  memset(p, 0, sizeof *p);
  for (int i = 0; i < n; i++) {
    int64_t most = room < 2 ? 1 : pick(3) == 0 ? room : room < 24 ? room : 24;
    p->extent[i] = pick(40) == 0 ? 0 : 1 + pick(most);
    if (p->extent[i] > 0) room /= p->extent[i];
  }
  p->src_span = random_strides(n, p->extent, p->src, 1, &p->src_at);
  p->dst_span = random_strides(n, p->extent, p->dst, 0, &p->dst_at);
  p->c.n = n;
  p->c.size = size;
  p->c.extent = p->extent;
  p->c.src_stride = p->src;
  p->c.dst_stride = p->dst;
}

static void naive_copy(const problem *p, const char *src, char *dst) {
  int64_t index[RANK] = {0}, total = 1;
  for (int i = 0; i < p->c.n; i++) total *= p->extent[i];
  for (int64_t k = 0; k < total; k++) {
    int64_t s = 0, d = 0;
    for (int i = 0; i < p->c.n; i++) {
      s += index[i] * p->src[i];
      d += index[i] * p->dst[i];
    }
    memcpy(dst + d * p->c.size, src + s * p->c.size, (size_t)p->c.size);
    for (int i = p->c.n - 1; i >= 0 && ++index[i] == p->extent[i]; i--) index[i] = 0;
  }
}

// Runs it whole, or in parts of one loop, as threads would; with the choice of the whole.
static void run_copy(const ein_kernels *k, const problem *p, const ein_choice *choice) {
  char *scratch = (char *)malloc(choice->scratch + 128), rim[64];
  char *aligned = scratch + (64 - (uintptr_t)scratch % 64) % 64;
  memset(rim, 0x5a, sizeof rim);
  memcpy(aligned + choice->scratch, rim, sizeof rim);
  int loop = p->c.n > 0 ? (int)pick(p->c.n) : -1;
  if (loop < 0 || pick(2)) {
    CHECK(k->copy_run(k->user, &p->c, choice, aligned) == EIN_OK);
  } else {
    problem part = *p;
    part.c.extent = part.extent;
    for (int64_t lo = 0; lo < p->extent[loop];) {
      int64_t n = 1 + pick(p->extent[loop] - lo);
      part.extent[loop] = n;
      part.c.src = p->c.src + lo * p->src[loop] * p->c.size;
      part.c.dst = p->c.dst + lo * p->dst[loop] * p->c.size;
      CHECK(k->copy_run(k->user, &part.c, choice, aligned) == EIN_OK);
      lo += n;
    }
  }
  CHECK(memcmp(aligned + choice->scratch, rim, sizeof rim) == 0);
  free(scratch);
}

// How copies went, by the size that elements were taken as; strips by what is special of them.
static long ways[EINI_COPY_WAYS][17], strips_of_loops, strips_of_blocks, strips_rests;

static void count_way(const ein_kernels *k, const problem *p, int stream) {
  eini_move w;
  eini_chain chain;
  eini_strips t;
  if (p->c.n > EINI_COPY_LOOPS || !eini_move_take(&w, &p->c)) return;
  const int isa = ((const ein_cpu *)k->user)->machine.is.isa;
  const eini_copy_way way = eini_move_way(&w, &chain, &t, isa, stream);
  if (way != EINI_COPY_DIRECT || stream) ways[way][w.size]++;
  for (int s = 0; s < 2 && way == EINI_COPY_STRIPS; s++) {
    const int last = t.loop[s][t.count[s] - 1];
    const int64_t cut = t.w.extent[last] % t.w.blk[last];
    strips_of_loops += t.count[s] > 1;
    strips_of_blocks += t.w.blk[last] < t.w.extent[last];
    strips_rests += cut > 0 && cut * t.n[s] / t.w.blk[last] < t.tile.b;
  }
}

// Each way was gone, and those by lines with all sizes; few copies do not reach all of it.
static void check_ways(const ein_kernels *k, int64_t count) {
  const int lines = ((const ein_cpu *)k->user)->machine.is.isa != EINI_ISA_PLAIN;
  for (int way = 0; way < EINI_COPY_WAYS && count >= 100; way++) {
    const int by_lines = way <= EINI_COPY_CARRIED || way == EINI_COPY_STRIPS;
    long all = 0;
    for (int size = 1; size <= 16; size *= 2) {
      all += ways[way][size];
      const int any = way > EINI_COPY_LINED && way != EINI_COPY_STRIPS;
      const int reached = ways[way][size] > 0 || size < 4 || any || !lines;
      CHECK(reached || count < 1000);
      if (!reached) printf("  way %d of size %d: not once\n", way, size);
    }
    CHECK((all > 0) == (lines || !by_lines));
    if (all == 0 && lines) printf("  way %d: not once\n", way);
  }
  if (lines && count >= 1000) CHECK(strips_of_loops && strips_of_blocks && strips_rests);
  memset(ways, 0, sizeof ways);
  strips_of_loops = strips_of_blocks = strips_rests = 0;
}

static int check_copy(const ein_kernels *k, problem *p, int stream) {
  size_t size = (size_t)p->c.size, ns = (size_t)p->src_span * size, nd = (size_t)p->dst_span * size;
  char *w1, *w2;
  size_t l1, l2;
  char *src = guarded(ns + p->src_shift, &w1, &l1) + p->src_shift;
  char *dst = guarded(nd + p->dst_shift, &w2, &l2) + p->dst_shift, *want = (char *)malloc(nd + 1);
  ein_choice choice;
  for (size_t i = 0; i < ns; i++) src[i] = (char)pick(256);
  memset(dst, 0x55, nd);
  memset(want, 0x55, nd);
  naive_copy(p, src + p->src_at * p->c.size, want + p->dst_at * p->c.size);
  CHECK(k->copy_plan(k->user, &p->c, 2, -1, &choice) == 1 && choice.seconds > 0);
  if (stream) {
    choice.state[EINI_COPY_STREAM] = 1;
    choice.scratch = EINI_COPY_BUFFER;
  }
  p->c.src = src + p->src_at * p->c.size;
  p->c.dst = dst + p->dst_at * p->c.size;
  count_way(k, p, stream);
  run_copy(k, p, &choice);
  int same = memcmp(dst, want, nd) == 0;
  free(want);
  unguard(w1, l1);
  unguard(w2, l2);
  return same;
}

static void test_copies(const ein_kernels *k, const char *isa, int64_t count) {
  problem p;
  for (int64_t i = 0; i < count; i++) {
    uint64_t at = seed;
    int size = 1 << pick(5), stream = (int)pick(2);
    random_problem(&p, size);
    int ok = check_copy(k, &p, stream);
    CHECK(ok);
    if (ok) continue;
    printf("  %s, seed %llu, size %d, stream %d:", isa, (unsigned long long)at, size, stream);
    for (int j = 0; j < p.c.n; j++)
      printf(" (%lld: %lld -> %lld)", (long long)p.extent[j], (long long)p.src[j],
             (long long)p.dst[j]);
    printf("\n");
  }
}

// Streamed copies whose blocks have the most rows, or the longest; rows that complete each other's
// lines, those of other places between them, with gaps or without.
static void test_full_buffers(const ein_kernels *k) {
  enum { N = 7, TIMES = N + 5 };  // the last one more often: where its buffers end is random
  static const int64_t shape[N][3] = {{1, 500, 500}, {1, 330, 3000}, {1, 1400, 3},  {64, 2, 128},
                                      {600, 40, 37}, {70, 130, 45},  {1, 2049, 48}};
  static const int64_t src[N][3] = {{0, 1, 500},    {0, 1, 330},   {0, 3, 1},
                                    {1, 8192, 64}, {37, 22200, 1}, {50, 3600, 1}, {0, 1, 2049}};
  static const int64_t dst[N][3] = {{0, 500, 1},   {0, 3001, 1},  {0, 5, 1},
                                    {300, 128, 1}, {1480, 37, 1}, {5850, 45, 1}, {0, 48, 1}};
  for (int i = 0; i < TIMES * 5; i++) {
    const int at = i % TIMES < N ? i % TIMES : N - 1;
    problem p;
    memset(&p, 0, sizeof p);
    p.c.n = 3;
    p.c.size = 1 << i / TIMES;
    p.src_span = p.dst_span = 1;
    for (int d = 0; d < 3; d++) {
      p.extent[d] = shape[at][d], p.src[d] = src[at][d], p.dst[d] = dst[at][d];
      p.src_span += (p.extent[d] - 1) * p.src[d];
      p.dst_span += (p.extent[d] - 1) * p.dst[d];
    }
    p.c.extent = p.extent;
    p.c.src_stride = p.src;
    p.c.dst_stride = p.dst;
    CHECK(check_copy(k, &p, 1));
  }
}

// Streamed copies whose rows all start lines of the destination; the source has any order.
static void test_lines(const ein_kernels *k, const char *isa, int64_t count) {
  for (int64_t c = 0; c < count; c++) {
    uint64_t at = seed;
    problem p;
    int n = 2 + (int)pick(4), first = (int)pick(n), size = 4 << pick(3);
    int64_t line = 64 / size, room = 100000 / size;
    random_problem(&p, size);
    p.c.n = n;
    for (int i = 0; i < n; i++) {
      int64_t most = eini_max64(1, eini_min64(room, pick(3) ? 4 * line + 4 : room));
      p.extent[i] = 1 + pick(most);
      if (i == first && p.extent[i] >= line && pick(2)) p.extent[i] -= p.extent[i] % line;
      room /= p.extent[i];
    }
    p.src_span = random_strides(n, p.extent, p.src, 1, &p.src_at);
    p.dst_at = 0;
    p.dst_span = p.dst[first] = 1;
    for (int j = 0, i = first; j < n; j++, i = (i + 1) % n) {
      if (j > 0) p.dst[i] = p.dst_span = (p.dst_span + line - 1) / line * line;
      p.dst_span += (p.extent[i] - 1) * p.dst[i];
      if (pick(6) == 0) p.dst_span += pick(3 * line);
      if (j == 0 || pick(5) > 0) continue;
      p.dst_at += (p.extent[i] - 1) * p.dst[i];
      p.dst[i] = -p.dst[i];
    }
    p.dst_span = (p.dst_span + line - 1) / line * line;
    int ok = check_copy(k, &p, 1);
    CHECK(ok);
    if (!ok) printf("  lines, %s, seed %llu, size %d\n", isa, (unsigned long long)at, size);
  }
}

// Streamed transposes whose rows start anywhere: long ones of few columns' loops, which follow each
// other in the destination or not, of blocks of runs around the sizes of tiles and of the buffer.
static void test_anywhere(const ein_kernels *k, const char *isa, int64_t count) {
  static const size_t shift[4] = {0, 8, 16, 40};
  for (int64_t c = 0; c < count; c++) {
    uint64_t at = seed;
    problem p;
    int n = 2 + (int)pick(3), row = 1 + (int)pick(n - 1), size = 1 << pick(5), order[4], left = 0;
    int64_t line = 64 / size, room = (pick(4) == 0 ? 1 << 21 : 1 << 18) / size;
    memset(&p, 0, sizeof p);
    p.c.n = n;
    p.c.size = size;
    p.extent[row] = pick(4) ? 1 + pick(4 * line) : 1 + pick(2200);
    p.extent[0] = pick(4) ? eini_max64(1, 8 * line - 3 + pick(4 * line)) : 1 + pick(9 * line);
    room = eini_max64(1, room / p.extent[row] / p.extent[0]);
    for (int i = 1; i < n; i++) {
      if (i != row) p.extent[i] = 1 + pick(eini_min64(room, 40)), room /= p.extent[i];
    }
    p.dst_span = p.src_span = 1;
    for (int i = 0; i < n; i++) {
      if (i != row) order[left++] = i;
      p.dst[i] = p.dst_span;
      p.dst_span += (p.extent[i] - 1) * p.dst[i];
      if (pick(6) == 0) p.dst_span += pick(2 * line + 1);
      if (i > 0 && pick(8) == 0) p.dst_at += (p.extent[i] - 1) * p.dst[i], p.dst[i] = -p.dst[i];
      if (i > 0 && pick(4) == 0) p.dst_span = (p.dst_span + line - 1) / line * line;
    }
    p.src[row] = 1;
    p.src_span = p.extent[row];
    if (pick(8) == 0) p.src_at = p.extent[row] - 1, p.src[row] = -1;
    for (; left > 0; left--) {
      const int j = (int)pick(left), i = order[j];
      order[j] = order[left - 1];
      if (pick(6) == 0) p.src_span += pick(2 * line + 1);
      p.src[i] = p.src_span;
      p.src_span += (p.extent[i] - 1) * p.src[i];
      if (pick(8) == 0) p.src_at += (p.extent[i] - 1) * p.src[i], p.src[i] = -p.src[i];
    }
    p.c.extent = p.extent;
    p.c.src_stride = p.src;
    p.c.dst_stride = p.dst;
    p.src_shift = shift[pick(4)];
    p.dst_shift = shift[pick(4)];
    int ok = check_copy(k, &p, 1);
    CHECK(ok);
    if (!ok) printf("  anywhere, %s, seed %llu, size %d\n", isa, (unsigned long long)at, size);
  }
}

// Permutations of short axes, of the longest blocks, and of those that leave less than a tile.
static void test_strips(const ein_kernels *k, const char *isa, int64_t count) {
  for (int64_t c = 0; c < count; c++) {
    uint64_t at = seed;
    problem p;
    const int n = 2 + (int)pick(5), size = 1 << pick(5);
    int64_t room = (pick(4) == 0 ? 1 << 21 : 1 << 17) / size;
    memset(&p, 0, sizeof p);
    p.c.n = n;
    p.c.size = size;
    for (int i = 0; i < n; i++) {
      const int64_t most = pick(6) == 0 ? EINI_STRIPS_MOST + 40 : 12;
      p.extent[i] = 1 + pick(eini_max64(1, eini_min64(room, most)));
      room /= p.extent[i];
    }
    p.src_span = random_strides(n, p.extent, p.src, pick(6) == 0, &p.src_at);
    p.dst_span = random_strides(n, p.extent, p.dst, 0, &p.dst_at);
    p.c.extent = p.extent;
    p.c.src_stride = p.src;
    p.c.dst_stride = p.dst;
    int ok = check_copy(k, &p, (int)pick(2));
    CHECK(ok);
    if (!ok) printf("  strips, %s, seed %llu, size %d\n", isa, (unsigned long long)at, size);
  }
}

static void test_many_loops(const ein_kernels *k) {
  problem p;
  memset(&p, 0, sizeof p);
  p.c.n = RANK;
  p.c.size = 2;
  p.c.extent = p.extent;
  p.c.src_stride = p.src;
  p.c.dst_stride = p.dst;
  for (int i = 0; i < RANK; i++) {
    p.extent[i] = i % 2 ? 2 : 1;
    p.src[i] = (int64_t)1 << (i / 2);
    p.dst[i] = (int64_t)1 << (RANK / 2 - 1 - i / 2);
  }
  p.src_span = p.dst_span = 1 << (RANK / 2);
  CHECK(check_copy(k, &p, 0) && check_copy(k, &p, 1));
}

// ---- chunks and folds ----

static double ulps(double x, double y, int single) {
  if (x == y || (x != x && y != y)) return 0;
  if (x - x != 0 || y - y != 0) return 1e9;
  int e;
  frexp(fabs(x) > fabs(y) ? x : y, &e);
  int least = single ? -125 : -1021;
  return fabs(x - y) / ldexp(1.0, (e < least ? least : e) - (single ? 24 : 53));
}

static const ein_dtype types[4] = {EIN_I32, EIN_I64, EIN_F32, EIN_F64};
static const int sizes[4] = {4, 8, 4, 8};

static int mild;  // no special values, none far from 0: what vectors of such are made by

static double random_value(void) {
  static const double special[] = {0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, 0.5, 2.5, 1e-310};
  int64_t r = pick(20);
  if (mild) return (double)(pick(1 << 30) - (1 << 29)) / (1 << 25);
  if (r < 9) return special[r];
  if (r == 9) return HUGE_VAL - HUGE_VAL;
  return ((double)pick(1 << 30) - (1 << 29)) / (double)((int64_t)1 << pick(40));
}

static void fill_values(ein_dtype t, int64_t n, void *d) {
  for (int64_t i = 0; i < n; i++) {
    double v = random_value();
    int64_t k = (pick((int64_t)1 << 30) - ((int64_t)1 << 29)) * (1 + pick((int64_t)1 << 30));
    if (t == EIN_F32) ((float *)d)[i] = (float)v;
    if (t == EIN_F64) ((double *)d)[i] = v;
    if (t == EIN_I32) ((int32_t *)d)[i] = (int32_t)(uint32_t)(uint64_t)k;
    if (t == EIN_I64) ((int64_t *)d)[i] = pick(3) ? k : pick(5) - 2;
    if (t == EIN_BOOL) ((uint8_t *)d)[i] = (uint8_t)pick(2);
  }
}

static int function_op(int op) {  // contraction may round these in another way
  return op == EIN_OP_EXP || op == EIN_OP_LOG || op == EIN_OP_SIN || op == EIN_OP_COS ||
         op == EIN_OP_TANH || op == EIN_OP_ERF || op == EIN_OP_SIGMOID || op == EIN_OP_SILU ||
         op == EIN_OP_GELU;
}

static int compare_op(int op) { return op >= EIN_OP_LT && op <= EIN_OP_NE; }

static void test_chunk(const char *isa, int op, int t, ein_chunk_fn fn) {
  static int64_t a[256], b[256], c[256], x[256], y[256];
  eini_chunk_fn plain = eini_chunk_find(NULL, op, types[t]);
  double worst = 0;
  CHECK(plain != NULL);
  for (int r = 0; plain != NULL && r < 20; r++) {
    int64_t n = 16 * (1 + pick(16));
    fill_values(op == EIN_OP_WHERE ? EIN_BOOL : types[t], 256, a);
    fill_values(types[t], 256, b);
    fill_values(types[t], 256, c);
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    plain(n, a, b, c, x);
    fn(n, a, b, c, y);
    int size = compare_op(op) ? 1 : sizes[t];
    if (t < 2 || compare_op(op)) {
      CHECK(memcmp(x, y, (size_t)(n * size)) == 0);
      continue;
    }
    for (int64_t i = 0; i < n; i++) {
      double u = t == 2 ? (double)((float *)x)[i] : ((double *)x)[i];
      double v = t == 2 ? (double)((float *)y)[i] : ((double *)y)[i];
      double d = ulps(u, v, t == 2);
      if (op == EIN_OP_GELU && d > 0) {  // 1 + erf(x) cancels: relative to x
        double in = t == 2 ? (double)((float *)a)[i] : ((double *)a)[i];
        d = ulps(in, in + (u - v), t == 2);
      }
      if (d == 0 && u == u && signbit(u) != signbit(v)) d = 1e9;
      worst = d > worst ? d : worst;
    }
  }
  CHECK(worst <= (function_op(op) ? 4.0 : 0.0));
  if (worst > (function_op(op) ? 4.0 : 0.0))
    printf("  %s: operation %d, type %d: %g ulp\n", isa, op, t, worst);
}

static void test_across(int fold, int t, void (*fn)(int64_t n, const void *x, void *acc)) {
  static int64_t x[2000];
  for (int r = 0; r < 60; r++) {
    int64_t n = pick(3) ? pick(70) : pick(2000), want = 0, got = 0;
    fill_values(types[t], n, x);
    if (r % 2) {  // without infinities and NaN
      for (int64_t i = 0; i < n; i++) {
        if (t == 2) ((float *)x)[i] = (float)pick(1000) / 7;
        if (t == 3) ((double *)x)[i] = (double)pick(1000) / 7;
      }
    }
    fill_values(types[t], 1, &want);
    got = want;
    eini_across_table[fold][eini_type_column(types[t])](n, x, &want);
    fn(n, x, &got);
    double u = 0, v = 0;
    if (t == 2) {
      float f[2];
      memcpy(&f[0], &want, 4);
      memcpy(&f[1], &got, 4);
      u = (double)f[0], v = (double)f[1];
    } else if (t == 3) {
      memcpy(&u, &want, 8);
      memcpy(&v, &got, 8);
    }
    int same = u != u ? v != v : memcmp(&want, &got, (size_t)sizes[t]) == 0;
    CHECK(same);
    if (!same) printf("  fold %d, type %d, %lld values: %g, not %g\n", fold, t, (long long)n, v, u);
  }
}

// Against libm in long double, where that is wider: the bound of section math.
static void test_accuracy(const ein_kernels *k, const char *isa) {
  static const int op[6] = {EIN_OP_EXP, EIN_OP_LOG, EIN_OP_SIN, EIN_OP_COS, EIN_OP_TANH,
                            EIN_OP_ERF};
  static long double (*const ref[6])(long double x) = {expl, logl, sinl, cosl, tanhl, erfl};
  static double x[256], y[256];
  static float x32[256], y32[256];
  for (int f = 0; f < 6 && LDBL_MANT_DIG > DBL_MANT_DIG; f++) {
    ein_chunk_fn fn = k->chunk_fn(k->user, op[f], EIN_F64);
    ein_chunk_fn fn32 = k->chunk_fn(k->user, op[f], EIN_F32);
    double worst = 0, worst32 = 0;
    for (int r = 0; fn != NULL && fn32 != NULL && r < 100; r++) {
      double scale = ldexp(1.0, (int)pick(20) - 12);
      for (int i = 0; i < 256; i++) x[i] = scale * ((double)pick(1 << 30) / (1 << 29) - (f != 1));
      fn(256, x, x, x, y);
      for (int i = 0; i < 256; i++) worst = fmax(worst, ulps((double)ref[f]((long double)x[i]),
                                                             y[i], 0));
      for (int i = 0; i < 256; i++) x32[i] = (float)x[i];
      fn32(256, x32, x32, x32, y32);
      for (int i = 0; i < 256; i++) {
        double want = (double)ref[f]((long double)x32[i]);
        if (fabs(want) < 3e38) worst32 = fmax(worst32, ulps(want, (double)y32[i], 1));
      }
    }
    CHECK(worst <= 2.5 && worst32 <= 2.0);
    if (worst > 2.5 || worst32 > 2.0)
      printf("  %s: operation %d: %g and %g ulp\n", isa, op[f], worst, worst32);
  }
}

// exp of doubles where it switches, overflows or loses bits, and anywhere else; each value also at
// another place of a chunk of another length.
static double exp_input(int64_t kind) {
  static const double edge[] = {0.0, 709.78271289338397, 710.0, -708.3964185322641,
                                -744.44007192138126, -745.13321910194122, -746.0, 1e3, -1e3, 1e13,
                                2.6e14, -1e15, 1e17, 1e300, -1.7e308};
  double at = edge[pick((int64_t)(sizeof edge / sizeof *edge))];
  double unit = (double)pick(1 << 30) / (1 << 30);
  switch (kind) {
    case 0: return at + fabs(at) * ldexp((double)(pick(9) - 4), -53);
    case 1: return at + (unit - 0.5) * ldexp(1.0, (int)pick(8) - 4);
    case 2: return (double)(pick(70000) - 35000) * 0.021660849392498291 * (1 + ldexp(unit, -50));
    case 3: return (double)(pick(1200) - 600) * 0.69314718055994529 + ldexp(unit - 0.5, -20);
    case 4: return ldexp(unit - 0.5, (int)pick(60) - 50);
    case 5: return ldexp(unit - 0.5, (int)pick(2000) - 1000);
    case 6: return random_value();
    default: return -760 + 1500 * unit;
  }
}

static void test_exp(const ein_kernels *k, const char *isa) {
  enum { N = 256 };
  static double x[N], y[N], x2[N], y2[N];
  static float x32[N], y32[N];
  ein_chunk_fn fn = k->chunk_fn(k->user, EIN_OP_EXP, EIN_F64);
  ein_chunk_fn fn32 = k->chunk_fn(k->user, EIN_OP_EXP, EIN_F32);
  double worst = 0, where = 0, worst32 = 0;
  const int has = strcmp(isa, "plain") != 0;
  CHECK((fn != NULL) == has && (fn32 != NULL) == has);
  for (int r = 0; fn != NULL && fn32 != NULL && r < 2000; r++) {
    int64_t n = 16 * (1 + pick(N / 16)), turn = pick(n);
    int same = 1;
    for (int i = 0; i < N; i++) x[i] = exp_input(pick(8));
    for (int64_t i = 0; i < n; i++) x2[i] = x[(i + turn) % n];
    fn(N, x, x, x, y);
    fn(n, x2, x2, x2, y2);
    for (int64_t i = 0; i < n; i++) {
      const double *u = &y[(i + turn) % n], *v = &y2[i];
      same &= memcmp(u, v, sizeof *u) == 0 || (*u != *u && *v != *v);
    }
    CHECK(same);
    for (int i = 0; i < N; i++) {
      long double want = expl((long double)x[i]);
      double d = ulps((double)want, y[i], 0);
      if (d > 0 && d < 1e9)  // in the same unit, but of the exact value
        d *= (double)(fabsl(y[i] - want) / fabsl(y[i] - (long double)(double)want));
      if (signbit(y[i]) && y[i] == y[i]) d = 1e9;
      if (d > worst) worst = d, where = x[i];
      if (x[i] == 0) CHECK(y[i] == 1);
    }
    for (int i = 0; i < N; i++) {
      double at = pick(3) ? 88.722839 : pick(2) ? -87.336544 : -103.97208;
      x32[i] = (float)(pick(2) ? x[i] : pick(2) ? x[i] / 8 : at * (1 + ldexp(x[i], -30)));
    }
    fn32(N, x32, x32, x32, y32);
    for (int i = 0; i < N; i++) {
      double want = exp((double)x32[i]), d = ulps(want, (double)y32[i], 1);
      if (want > 3.4028235e38) d = want > 3.4028236e38 && y32[i] - y32[i] == 0 ? 1e9 : 0;
      if (signbit(y32[i]) && y32[i] == y32[i]) d = 1e9;
      worst32 = fmax(worst32, d);
      if (x32[i] == 0) CHECK(y32[i] == 1);
    }
  }
  CHECK(worst <= (LDBL_MANT_DIG > DBL_MANT_DIG ? 1.15 : 2.0));
  CHECK(worst32 <= 1.1);
  if (worst > 1.15 || worst32 > 1.1)
    printf("  %s: exp off by %g ulp at %.17g, and by %g\n", isa, worst, where, worst32);
}

static void test_chunks(const ein_kernels *k, const char *isa) {
  for (int t = 0; t < 4; t++) {
    for (int op = 0; op < EIN_OP_COUNT; op++) {
      ein_chunk_fn fn = k->chunk_fn(k->user, op, types[t]);
      if (fn != NULL) test_chunk(isa, op, t, fn);
    }
    for (int fold = EIN_FOLD_SUM; fold <= EIN_FOLD_MIN; fold++) {
      void (*fn)(int64_t n, const void *x, void *acc) = k->across_fn(k->user, fold, types[t]);
      if (fn != NULL) test_across(fold, t, fn);
    }
  }
  CHECK(k->across_fn(k->user, EIN_FOLD_ARGMAX, EIN_F64) == NULL);
  CHECK(k->chunk_fn(k->user, EIN_OP_CONST, EIN_F64) == NULL);
}

static void test_stream(const ein_kernels *k) {
  static char a[2000], b[2000];
  if (k->stream_fn == NULL) return;
  for (int r = 0; r < 500; r++) {
    size_t n = (size_t)pick(1500), s = (size_t)pick(200), d = (size_t)pick(200);
    int good = 1;
    for (size_t i = 0; i < sizeof a; i++) a[i] = (char)pick(256);
    memset(b, 0x33, sizeof b);
    k->stream_fn(k->user, n, a + s, b + d);
    for (size_t i = 0; i < sizeof b; i++) {
      good &= b[i] == (i >= d && i < d + n ? a[s + i - d] : 0x33);
    }
    CHECK(good);
  }
}

// ---- rows ----

static const char *const row_maps[] = {
    "(x0-x1)*(x0+x1)*0.5", "max(min(x0*x1+x0,1.0),0.0)", "x0*x1+x2", "2.5-x0*x1", "x1-(x0-x1)/x2",
    "(x0*x0)/(x1*x1+x2*x2)", "min(x1,max(x2,x0*x1))", "max(x0,x2)-min(x2,x1)", "-relu(x0-x2)*x0",
    "abs(x0)-abs(x1*x2)", "x0-x1*(x2-x0*(x1-x2*(x0-x1)))", "(x0-x1)*(x1-x2)-(x2-x0)*(x0+x1)",
    "exp(x0)", "sqrt(abs(x0))*x1", "floor(x0*x1)+ceil(x2)-round(x0)", "tanh(x0)*sigmoid(x1)-x2",
    "log(abs(x1)+1.0)/(x0-x2)", "silu(x0)+gelu(x1)*erf(x2)", "sin(x0)*cos(x1)+rsqrt(abs(x2))",
    "where(x0<x1,x0*x2,x1-x2)", "pow(abs(x0),2.0)*x1+x2", "x0*x1*3.0-x0*x1*x2",
    "exp(x0-x1)*x2-exp(x2)"};
enum { ROW_MAPS = sizeof row_maps / sizeof *row_maps };

// The maps of a provider alone, as if their output took `bytes`, which decides how it is stored.
typedef struct row_user {
  const ein_kernels *own;
  double bytes;
} row_user;

static int rows_made, rows_turned;

static int rows_plan(void *user, const ein_map *m, int width, int nth, ein_choice *choice) {
  const row_user *u = (const row_user *)user;
  ein_map as = *m;
  as.out_bytes = u->bytes;
  return u->own->map_plan(u->own->user, &as, width, nth, choice);
}

static ein_status rows_run(void *user, const ein_map *m, const ein_choice *choice, void *scratch) {
  const row_user *u = (const row_user *)user;
  rows_made++;
  rows_turned += strstr(choice->variant, "turned") != NULL;
  return u->own->map_run(u->own->user, m, choice, scratch);
}

static ein_kernels rows_of(row_user *u, const ein_kernels *own) {
  ein_kernels k;
  memset(&k, 0, sizeof k);
  k.name = "rows";
  k.user = u;
  k.map_plan = rows_plan;
  k.map_run = rows_run;
  u->own = own;
  u->bytes = pick(2) ? 1e15 : 0;
  return k;
}

// Parts of a run one after the other.
static void in_turn(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = 0; i < n; i++) task(arg, i);
}

// A row, a matrix or a tensor by rows, or with NULL by chunks: operands have strides per axis or
// not, also in place.
static void run_rows(const ein_kernels *chunks, const ein_kernels *rows, int width, const char *map,
                     int t, int rank, const int64_t *shape, int64_t step[4][3], char *const *data,
                     int place) {
  static const char *const expr[3][3] = {{"i->i", "i,i->i", "i,i,i->i"},
                                         {"ij->ij", "ij,ij->ij", "ij,ij,ij->ij"},
                                         {"ijk->ijk", "ijk,ijk->ijk", "ijk,ijk,ijk->ijk"}};
  const ein_kernels *const list[2] = {chunks, rows};
  ein_ctx_desc desc;
  ein_ctx *ctx;
  ein_einsum_desc d;
  ein_ztensor in[3], out;
  memset(&desc, 0, sizeof desc);
  memset(&d, 0, sizeof d);
  memset(in, 0, sizeof in);
  desc.kernels = list;
  desc.nkernels = rows == NULL ? 1 : 2;
  desc.executor.width = width;
  if (width > 1) desc.executor.parallel_for = in_turn;
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  for (int i = 0; i < 3; i++) {
    in[i].dtype = types[t];
    in[i].rank = rank;
    in[i].shape = shape;
    in[i].strides = step[i];
    in[i].data = data[i];
  }
  out = in[0];
  if (!place) out.strides = step[3], out.data = data[3];
  d.nin = strstr(map, "x2") ? 3 : strstr(map, "x1") ? 2 : 1;
  d.expr = expr[rank - 1][d.nin - 1];
  d.in = in;
  d.out = &out;
  d.map = map;
  CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
  if (ein_ctx_message(ctx)[0]) printf("  %s: %s\n", map, ein_ctx_message(ctx));
  ein_ctx_destroy(ctx);
}

// Rows in registers have the bits of chunks, for every length, place and stride.
static void test_rows(const ein_kernels *own) {
  enum { ROOM = 36000 };  // from 32768 elements on there are parts, some less than a block
  static double memory[5][ROOM + 16];
  for (int r = 0; r < 40 * ROW_MAPS; r++) {
    row_user user;
    ein_kernels rows = rows_of(&user, own), chunks = *own;
    int t = 2 + (int)pick(2), place = pick(4) == 0, width = pick(9) ? 1 : 2 + (int)pick(9);
    int64_t n = pick(3) ? 250 + pick(60) : 250 + pick(1750), size = sizes[t];
    if (width > 1) n = 32768 + pick(ROOM - 32768);
    int64_t step[4][3] = {{0}, {0}, {0}, {1}};
    char *data[4];
    chunks.stream_bytes = pick(2) ? 64 : (size_t)1 << 40;
    chunks.map_plan = NULL;
    mild = pick(3) == 0;
    for (int i = 0; i < 5; i++) fill_values(types[t], ROOM, memory[i]);
    for (int i = 0; i < 4; i++) data[i] = (char *)memory[i] + pick(8) * size;
    for (int i = 0; i < 3; i++) step[i][0] = pick(4) || (i == 0 && place) ? 1 : 0;
    const char *map = row_maps[r % ROW_MAPS];
    memcpy(memory[4], place ? memory[0] : memory[3], sizeof memory[4]);
    int from = place ? 0 : 3;
    run_rows(&chunks, NULL, width, map, t, 1, &n, step, data, place);
    for (int64_t i = 0; i < ROOM + 16; i++) {  // what chunks made goes to [4], what was there back
      double x = memory[4][i];
      memory[4][i] = memory[from][i];
      memory[from][i] = x;
    }
    run_rows(&chunks, &rows, width, map, t, 1, &n, step, data, place);
    int same = memcmp(memory[4], memory[from], (size_t)(data[from] - (char *)memory[from])) == 0;
    for (int64_t i = 0; i < ROOM + 16; i++) {
      const float *f = (const float *)memory[4] + i, *g = (const float *)memory[from] + i;
      const double *u = memory[4] + i, *v = memory[from] + i;
      same &= t == 2 ? memcmp(f, g, 4) == 0 || (*f != *f && *g != *g)
                     : memcmp(u, v, 8) == 0 || (*u != *u && *v != *v);
    }
    CHECK(same);
    if (!same) printf("  row of %lld: %s, type %d%s\n", (long long)n, map, t, place ? "*" : "");
  }
  mild = 0;
}

// Rows that are made together, past the caches or because they are short, have the bits of chunks,
// and leave what is between.
static void test_rows_together(const ein_kernels *own) {
  enum { ROOM = 12000, BYTES = ROOM * 8 };
  static double from[4][ROOM], made[2][ROOM];
  for (int r = 0; r < 40 * ROW_MAPS; r++) {
    row_user user;
    ein_kernels rows = rows_of(&user, own), chunks = *own;
    const int t = 2 + (int)pick(2), place = pick(4) == 0;
    const int few = pick(2) == 0;  // elements of a row
    int64_t shape[2] = {1 + pick(35), few ? 8 + pick(248) : 256 + pick(70)}, step[4][3];
    const int64_t size = sizes[t];
    const char *map = row_maps[r % ROW_MAPS];
    char *data[4];
    user.bytes = 1e15;
    chunks.stream_bytes = 64;
    chunks.map_plan = NULL;
    for (int i = 0; i < 4; i++) {
      const int whole = i == 3 || (i == 0 && place);
      step[i][0] = pick(3) || whole ? shape[1] + (pick(3) ? 0 : pick(17)) : 0;
      step[i][1] = pick(4) || whole ? 1 : 0;
      fill_values(types[t], ROOM, from[i]);
      data[i] = (char *)from[i] + pick(8) * size;
    }
    const int out = place ? 0 : 3;
    const int64_t at = data[out] - (char *)from[out];
    for (int w = 0; w < 2; w++) {
      memcpy(made[w], from[out], BYTES);
      data[out] = (char *)made[w] + at;
      run_rows(&chunks, w ? &rows : NULL, 1, map, t, 2, shape, step, data, place);
    }
    int same = 1;
    for (int64_t i = 0; i < BYTES / size; i++) {
      const float *f = (const float *)made[0] + i, *g = (const float *)made[1] + i;
      const double *u = made[0] + i % ROOM, *v = made[1] + i % ROOM;
      same &= t == 2 ? memcmp(f, g, 4) == 0 || (*f != *f && *g != *g)
                     : memcmp(u, v, 8) == 0 || (*u != *u && *v != *v);
    }
    CHECK(same);
    if (!same) printf("  %lld rows of %lld: %s, type %d%s\n", (long long)shape[0],
                      (long long)shape[1], map, t, place ? "*" : "");
  }
}

// ---- extrema ----

// Values with many zeros of both signs, some infinities and, for one array in two, NaNs.
static void fill_odd(int t, int64_t n, void *d) {
  static const double odd[] = {0.0, -0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, NAN};
  const int nans = (int)pick(2), few = (int)pick(2), shift = (int)pick(7) - 3;
  for (int64_t i = 0; i < n; i++) {
    double v = pick(few ? 300 : 3) ? -0.0 : odd[pick(pick(100) ? 5 : 7 + nans)];
    if (t == 0) ((int32_t *)d)[i] = (int32_t)pick(5) + (pick(9) ? shift : INT32_MIN);
    if (t == 1) ((int64_t *)d)[i] = pick(5) + (pick(9) ? shift : INT64_MIN);
    if (t == 2) ((float *)d)[i] = (float)v;
    if (t == 3) ((double *)d)[i] = v;
  }
}

static void run_fold(const ein_kernels *k, const char *expr, const char *fold,
                     const ein_ztensor *in, const ein_ztensor *out) {
  ein_ctx_desc desc;
  ein_einsum_desc d;
  ein_ctx *ctx;
  memset(&desc, 0, sizeof desc);
  memset(&d, 0, sizeof d);
  desc.kernels = &k;
  desc.nkernels = k != NULL;
  d.expr = expr, d.nin = 1, d.in = in, d.out = out, d.monoid = fold;
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK && ein_einsum_ex(ctx, &d) == EIN_OK);
  ein_ctx_destroy(ctx);
}

// Operands that are turned first, in blocks, give the bits of chunks: axes in any order, backwards,
// without strides, and one that is the output.
static void test_rows_turned(ein_cpu *cpu, const ein_kernels *own) {
  enum { ROOM = 40000, BYTES = ROOM * 8 };
  static double from[4][ROOM], made[2][ROOM];
  const eini_rated rated = cpu->machine;
  rows_turned = 0;
  for (int r = 0; r < 20 * ROW_MAPS; r++) {
    row_user user;
    ein_kernels rows = rows_of(&user, own), chunks = *own;
    const int t = 2 + (int)pick(2), place = pick(4) == 0, width = pick(4) ? 1 : 3;
    const int64_t shape[3] = {1 + pick(9), 1 + pick(pick(2) ? 20 : 60), 1 + pick(70)};
    int64_t step[4][3];
    char *data[4];
    cpu->machine.is.l2 = 16384 << pick(6);
    chunks.map_plan = NULL;
    for (int i = 0; i < 4; i++) {
      const int out = i == 3 || (i == 0 && place);
      const int first = out ? 2 : (int)pick(3), next = (first + 1 + (out ? 1 : (int)pick(2))) % 3;
      int64_t by = 1, at = pick(8);
      for (int k = 0; k < 3; k++) {
        const int axis = k == 0 ? first : k == 1 ? next : 3 - first - next;
        step[i][axis] = by;
        by *= shape[axis] + (k == 0 && pick(3) == 0);
      }
      for (int axis = 0; axis < 3 && !out; axis++) {
        if (pick(5) == 0) step[i][axis] = 0;
        if (pick(6) == 0) at += (shape[axis] - 1) * step[i][axis], step[i][axis] *= -1;
      }
      fill_values(types[t], ROOM, from[i]);
      data[i] = (char *)from[i] + at * sizes[t];
    }
    const int out = place ? 0 : 3;
    for (int w = 0; w < 2; w++) {
      static double keep[ROOM];
      memcpy(keep, from[out], BYTES);
      run_rows(&chunks, w ? &rows : NULL, width, row_maps[r % ROW_MAPS], t, 3, shape, step, data,
               place);
      memcpy(made[w], from[out], BYTES);
      memcpy(from[out], keep, BYTES);
    }
    int same = 1;
    for (int64_t i = 0; i < ROOM; i++) {
      const float *f = (const float *)made[0] + i, *g = (const float *)made[1] + i;
      const double *u = made[0] + i, *v = made[1] + i;
      same &= t == 2 ? memcmp(f, g, 4) == 0 || (*f != *f && *g != *g)
                     : memcmp(u, v, 8) == 0 || (*u != *u && *v != *v);
    }
    CHECK(same);
    if (!same)
      printf("  %d x %d x %d turned: %s, type %d%s\n", (int)shape[0], (int)shape[1],
             (int)shape[2], row_maps[r % ROW_MAPS], t, place ? "*" : "");
    cpu->machine = rated;
  }
  printf("  %d turned\n", rows_turned);
  CHECK(rows_turned > 6 * ROW_MAPS || eini_row_sets[rated.is.isa][0].wide == 0);
}

// Extrema of one operand by k are those without, and those of negative zeros are negative.
static void test_extrema(const ein_kernels *k) {
  static const char *const exprs[] = {"abc->", "abc->a", "abc->b", "abc->c", "abc->ab", "abc->ca",
                                      "abc->bc"};
  enum { ROOM = 60000 };
  static double memory[ROOM], result[2][ROOM];
  for (int r = 0; r < 700; r++) {
    const char *expr = exprs[r % 7], *fold = pick(2) ? "max" : "min";
    const int t = (int)pick(4), zeros = t > 1 && pick(8) == 0;
    int64_t shape[3] = {1 + pick(40), 1 + pick(40), 1 + pick(90)}, to[3], n = 1;
    while (shape[0] * shape[1] * shape[2] > ROOM) shape[pick(3)] = 1 + pick(20);
    ein_ztensor in, out;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    in.dtype = out.dtype = types[t];
    in.rank = 3, in.shape = shape, in.data = memory;
    out.shape = to;
    for (const char *c = strchr(expr, '>') + 1; *c; c++) n *= to[out.rank++] = shape[*c - 'a'];
    fill_odd(t, shape[0] * shape[1] * shape[2], memory);
    for (int64_t i = 0; zeros && i < ROOM; i++) {
      if (t == 2) ((float *)memory)[i] = -0.0f;
      else memory[i] = -0.0;
    }
    out.data = result[0];
    run_fold(NULL, expr, fold, &in, &out);
    out.data = result[1];
    run_fold(k, expr, fold, &in, &out);
    int same = (t > 1 && !zeros) || memcmp(result[0], result[1], (size_t)(n * sizes[t])) == 0;
    same &= !zeros || memcmp(memory, result[1], (size_t)(n * sizes[t])) == 0;
    for (int64_t i = 0; i < n && t > 1; i++) {
      const double x = t == 2 ? (double)((float *)result[0])[i] : result[0][i];
      const double y = t == 2 ? (double)((float *)result[1])[i] : result[1][i];
      same &= x == y || (x != x && y != y);
    }
    CHECK(same);
    if (!same) printf("  %s of %s, type %d%s\n", fold, expr, t, zeros ? ", zeros" : "");
  }
}

// Path "none" multiplies all factors of an element before it adds anything: inf * 0 is not lost,
// as it would be where a kernel adds up one factor's elements first.
static void test_unsplit(const ein_kernels *k) {
  static const char *const expr[] = {"ae,be,abc->ce", "ae,be,cab->ec", "ea,be,abc->ce"};
  static double x[3][1600], got[1600], want[1600];
  const int64_t size[] = {8, 8, 8, 0, 200};  // of a, b, c and e
  for (int round = 0; round < 12; round++) {
    ein_ztensor in[3], out;
    ein_einsum_desc d;
    ein_ctx_desc desc;
    ein_ctx *ctx;
    int64_t shape[4][3], n = 1;
    int t = 0;
    memset(in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    memset(&d, 0, sizeof d);
    memset(&desc, 0, sizeof desc);
    d.expr = expr[round % 3];
    for (const char *c = d.expr; *c; c++) {
      ein_ztensor *v = t < 3 ? &in[t] : &out;
      if (*c == ',' || *c == '-') t++;
      if (*c >= 'a') shape[t][v->rank++] = size[*c - 'a'];
    }
    for (t = 0; t < 4; t++) {
      ein_ztensor *v = t < 3 ? &in[t] : &out;
      v->dtype = EIN_F64;
      v->shape = shape[t];
      if (t < 3) v->data = x[t];
    }
    for (int a = 0; a < out.rank; a++) n *= out.shape[a];
    for (t = 0; t < 3; t++) {
      for (int i = 0; i < 1600; i++) {
        x[t][i] = (double)draw(-2, 2);
        if (t == round % 2 && draw(0, 40) == 0) x[t][i] = HUGE_VAL;
      }
    }
    d.nin = 3;
    d.in = in;
    d.out = &out;
    d.options.path = "none";
    out.data = want;
    CHECK(ein_einsum_ex(NULL, &d) == EIN_OK);
    desc.nkernels = 1;
    desc.kernels = &k;
    CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
    out.data = got;
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
    int wrong = 0;
    for (int64_t i = 0; i < n; i++)
      wrong += want[i] != want[i] ? got[i] == got[i] : got[i] != want[i];
    CHECK(wrong == 0);
    ein_ctx_destroy(ctx);
  }
}

// Of every family that products of few or many elements get, on one thread and on two.
static void test_scaled(const char *isa, int64_t count) {
  for (int threads = 1; threads < 3; threads++) {
    ein_cpu *cpu = open_isa(isa, threads);
    ein_ctx_desc d;
    ein_ctx *ctx = NULL;
    memset(&d, 0, sizeof d);
    CHECK(ein_cpu_use(cpu, &d) == EIN_OK && ein_ctx_create(&d, &ctx) == EIN_OK);
    test_scaled_store(ctx, (int)count);
    test_scaled_room(ctx, (size_t)threads, "gett buffer");
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
}

// ---- spellings ----

// The kernels of a plan and their predicted seconds, as its JSON has them.
static void kernels_of(ein_ctx *ctx, const spelled *s, char *text, size_t size) {
  static char json[1 << 14];
  ein_einsum_desc d;
  ein_plan *plan = NULL;
  size_t n = 0;
  memset(&d, 0, sizeof d);
  d.expr = s->expr;
  d.nin = s->nin;
  d.in = s->view;
  d.out = &s->view[s->nin];
  text[0] = 0;
  CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
  CHECK(ein_plan_json(plan, json, sizeof json) < sizeof json);
  for (const char *at = json; (at = strstr(at, "\"kernels\"")) != NULL && n < size; at++)
    n += (size_t)snprintf(text + n, size - n, "%.*s", (int)(strstr(at, "\"io") - at), at);
  ein_plan_destroy(plan);
}

// Every spelling of a contraction of one or two operands gets the same kernels and the same
// predicted time. (Of more, intermediate results may lie in several ways.)
static void test_spellings(ein_cpu *cpu) {
  static const char *const exprs[] = {"ab,bc->ac", "abc,cd->abd", "abcd,dbea->ec", "ab,b->a",
                                      "abc,abd->acd", "ab,ab->ab", "ab->ba", "abc->cab", "abc->b"};
  static const int64_t extents[3][5] = {{5, 4, 7, 3, 6}, {48, 40, 33, 24, 20}, {96, 8, 64, 72, 2}};
  static const ein_dtype dtypes[] = {EIN_F32, EIN_F64, EIN_C64, EIN_I32};
  for (int c = 0; c < 2 * 9 * 3 * 4; c++) {
    const char *expr = exprs[c / 24];
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    char first[1024], other[1024];
    int same = 1;
    spelled s;
    memset(&desc, 0, sizeof desc);
    CHECK((c & 1) || ein_cpu_use(cpu, &desc) == EIN_OK);  // or the portable kernels
    CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
    const int step = strlen(expr) > 11 ? 7 : 1;  // orders count by twos and threes
    for (int64_t k = 0; same && spell(expr, extents[c / 2 % 3], dtypes[c / 6 % 4], k, &s);
         k += step) {
      kernels_of(ctx, &s, k == 0 ? first : other, sizeof first);
      same = k == 0 || strcmp(first, other) == 0;
      if (!same) printf("  %s as %s: %s, not %s\n", expr, s.expr, other, first);
    }
    CHECK(same);
    ein_ctx_destroy(ctx);
  }
}

// No spelling of a short product of three is planned to take much longer than another does: the
// kernels say which order of pairs is taken, and not how operands are written.
static void test_spellings_of_three(ein_cpu *cpu) {
  static const char *const exprs[] = {"ab,bc,cd->ad", "abc,bd,cd->ad", "ab,ac,ad->bcd"};
  static const int64_t extents[3][4] = {{5, 4, 7, 3}, {20, 30, 25, 10}, {60, 70, 80, 16}};
  ein_ctx_desc desc;
  ein_ctx *ctx = NULL;
  memset(&desc, 0, sizeof desc);
  CHECK(ein_cpu_use(cpu, &desc) == EIN_OK);
  CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
  for (int c = 0; c < 9; c++) {
    double least = INFINITY, most = 0;
    spelled s;
    for (int64_t k = 0; spell(exprs[c / 3], extents[c % 3], EIN_F32, k, &s); k += 7) {
      ein_einsum_desc d;
      ein_plan_info info;
      ein_plan *plan = NULL;
      memset(&d, 0, sizeof d);
      d.expr = s.expr;
      d.nin = s.nin;
      d.in = s.view;
      d.out = &s.view[s.nin];
      CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
      CHECK(ein_plan_info_get(plan, &info) == EIN_OK);
      least = fmin(least, info.seconds);
      most = fmax(most, info.seconds);
      ein_plan_destroy(plan);
    }
    CHECK(most > 0 && most < 3 * least);
    if (most >= 3 * least) printf("  %s: %g to %g s\n", exprs[c / 3], least, most);
  }
  ein_ctx_destroy(ctx);
}

// ---- variants ----

// Element i of the values at p, and the same to write.
static double value_at(ein_dtype t, const char *p, int64_t i) {
  float f;
  double x;
  if (t == EIN_F32) return memcpy(&f, p + 4 * i, 4), (double)f;
  memcpy(&x, p + 8 * i, 8);
  return x;
}
static void value_put(ein_dtype t, char *p, int64_t i, double x) {
  const float f = (float)x;
  if (t == EIN_F32) memcpy(p + 4 * i, &f, 4);
  else memcpy(p + 8 * i, &x, 8);
}

static int64_t view_size(const ein_ztensor *v) {
  int64_t n = 1;
  for (int a = 0; a < v->rank; a++) n *= v->shape[a];
  return n;
}

// What the einsum, or 2*x0*x1+1, is by loops over all values of all letters.
static void loops_of(const spelled *s, int map, char *const *data) {
  char letter[8], term[3][8];
  int64_t extent[8], at[8] = {0}, n = 0;
  const char *c = s->expr;
  const ein_ztensor *out = &s->view[s->nin];
  for (int64_t i = 0; i < view_size(out); i++) value_put(out->dtype, data[s->nin], i, 0);
  for (int t = 0; t <= s->nin; t++, c += t == s->nin ? 2 : 1) {
    for (int a = 0; a < s->view[t].rank; a++, c++) {
      int64_t l = 0;
      while (l < n && letter[l] != *c) l++;
      if (l == n) letter[n] = *c, extent[n++] = s->view[t].shape[a];
      term[t][a] = (char)l;
    }
  }
  for (int64_t l = n; l >= 0;) {
    int64_t off[3] = {0, 0, 0};
    for (int t = 0; t <= s->nin; t++)
      for (int a = 0; a < s->view[t].rank; a++) off[t] += at[(int)term[t][a]] * s->stride[t][a];
    double x = value_at(out->dtype, data[0], off[0]);
    if (s->nin > 1) x *= value_at(out->dtype, data[1], off[1]);
    x = map ? 2 * x + 1 : x + value_at(out->dtype, data[s->nin], off[s->nin]);
    value_put(out->dtype, data[s->nin], off[s->nin], x);
    for (l = n - 1; l >= 0 && ++at[l] == extent[l]; l--) at[l] = 0;
  }
}

// Runs a plan, and once more after all rates were changed: with the same bits, as nothing is
// decided but while planning. by: how far results may be from those of the loops.
static void run_variant(ein_cpu *cpu, const ein_plan *plan, const spelled *s, char *const *data,
                        const char *want, double by, const char *name) {
  const eini_rated rated = cpu->machine;
  const ein_dtype t = s->view[0].dtype;
  const int64_t n = view_size(&s->view[s->nin]);
  const size_t bytes = (size_t)n * ein_dtype_size(t);
  char *first = (char *)malloc(bytes);
  const void *in[2] = {data[0], data[1]};
  void *out[1];
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  for (int twice = 0; twice < 2; twice++) {
    out[0] = data[s->nin];
    memset(out[0], 0x55, bytes);
    if (twice) {
      cpu->machine.hz *= 50, cpu->machine.peak_f64 /= 50, cpu->machine.peak_f32 /= 50;
      cpu->machine.l2_bw /= 90, cpu->machine.past = rated.past < 1e6 ? 1e12 : 64;
      eini_cpu_rates(cpu);
    }
    CHECK(ein_plan_execute(plan, &run) == EIN_OK);
    int same = !twice || memcmp(out[0], first, bytes) == 0;
    if (!twice) memcpy(first, out[0], bytes);
    for (int64_t i = 0; i < n; i++)
      same &= fabs(value_at(t, first, i) - value_at(t, want, i)) <= by;
    CHECK(same);
    if (!same) printf("  %s by %s\n", s->expr, name);
  }
  free(first);
  cpu->machine = rated;
  eini_cpu_rates(cpu);
}

// All variants that the answer to an unknown one lists; gives how many, and their least prediction.
static int each_variant(ein_cpu *cpu, ein_ctx *ctx, ein_einsum_desc *d, const spelled *s,
                        char *const *data, const char *want, double by, double *least) {
  char hint[1200], list[4096], line[128], shown[2][4096], *name = hint, *end;
  ein_plan *plan = NULL;
  ein_plan_info info;
  int n = 0;
  d->options.variant = "no such";
  CHECK(ein_plan_create(ctx, d, &plan) == EIN_ERR_ARGUMENT && plan == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "no such") != NULL && ein_ctx_errors(ctx) == 1);
  snprintf(hint, sizeof hint, "%s", ein_ctx_error(ctx, 0)->hint);
  CHECK(strncmp(hint, "known here: ", 12) == 0);
  d->options.variant = "any";
  CHECK(ein_plan_create(ctx, d, &plan) == EIN_OK);
  size_t listed = ein_plan_variants(plan, list, sizeof list);
  CHECK(listed == strlen(list) && ein_plan_variants(plan, NULL, 0) == listed);
  ein_plan_destroy(plan);
  for (; (name = strchr(name, '\'')) != NULL && (end = strchr(name + 1, '\'')) != NULL; n++) {
    *end = 0;
    for (int alone = 0; alone < 2; alone++) {
      d->options.variant = alone ? strchr(name + 1, ':') + 1 : name + 1;
      CHECK(ein_plan_create(ctx, d, &plan) == EIN_OK && ein_plan_info_get(plan, &info) == EIN_OK);
      ein_plan_explain(plan, shown[alone], sizeof shown[alone]);
      CHECK(strstr(shown[alone], strchr(name + 1, ':') + 1) != NULL);
      if (!alone) run_variant(cpu, plan, s, data, want, by, name + 1);
      ein_plan_destroy(plan);
      if (!alone && (n == 0 || info.seconds < *least)) *least = info.seconds;
    }
    listed -= (size_t)snprintf(line, sizeof line, "%s\n", name + 1);
    CHECK(strstr(list, line) != NULL);
    name = end + 1;
  }
  CHECK(listed == 0);
  d->options.variant = NULL;
  CHECK(ein_plan_create(ctx, d, &plan) == EIN_OK && ein_plan_variants(plan, list, 9) == 0);
  ein_plan_destroy(plan);
  return n;
}

// Random contractions, copies and maps by every variant that they have, against loops: on small
// integers, whose sums have one value in any order, and on thirds of them.
static void test_variants(ein_cpu *cpu, int count) {
  static const char *const exprs[] = {"ab,bc->ac", "abc,cd->abd", "ab,b->a", "abc,abd->acd",
                                      "ab,ab->a", "abc->b", "ab->ba", "abc->cab", "ab,ab->ab"};
  int total[3] = {0, 0, 0};
  const eini_rated rated = cpu->machine;
  for (int r = 0; r < count; r++) {
    const int which = r % 9, kind = which < 6 ? 0 : which < 8 ? 1 : 2;
    const ein_dtype t = pick(2) ? EIN_F32 : EIN_F64;
    int64_t extent[5];
    char *data[3], *want;
    const double part = pick(2) ? 3 : 1, by = part > 1 ? 0.02 : 0;
    double least = 0;
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    ein_einsum_desc d;
    ein_plan *plan = NULL;
    ein_plan_info info;
    spelled s;
    for (int i = 0; i < 5; i++) extent[i] = 2 + (pick(3) ? pick(12) : pick(40));
    if (kind == 2) extent[1] = 250 + pick(300);
    if (pick(2)) cpu->machine.past = 512;
    eini_cpu_rates(cpu);
    memset(&desc, 0, sizeof desc);
    memset(&d, 0, sizeof d);
    CHECK(ein_cpu_use(cpu, &desc) == EIN_OK && ein_ctx_create(&desc, &ctx) == EIN_OK);
    (void)spell(exprs[which], extent, t, kind == 2 ? 0 : pick(4), &s);
    for (int k = 0; k <= s.nin; k++) {
      const int64_t n = view_size(&s.view[k]);
      data[k] = (char *)malloc((size_t)n * 8 + 8);
      for (int64_t i = 0; i < n; i++) value_put(t, data[k], i, (double)(pick(15) - 7) / part);
    }
    loops_of(&s, kind == 2, data);
    want = (char *)malloc((size_t)view_size(&s.view[s.nin]) * 8 + 8);
    memcpy(want, data[s.nin], (size_t)view_size(&s.view[s.nin]) * ein_dtype_size(t));
    d.expr = s.expr, d.nin = s.nin, d.in = s.view, d.out = &s.view[s.nin];
    d.map = kind == 2 ? "2*x0*x1+1" : NULL;
    const int n = each_variant(cpu, ctx, &d, &s, data, want, by, &least);
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK && ein_plan_info_get(plan, &info) == EIN_OK);
    CHECK(n == 0 || info.seconds == least);
    total[kind] += n;
    ein_plan_destroy(plan);
    for (int k = 0; k <= s.nin; k++) s.view[k].data = data[k];
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
    d.options.variant = "no such";  // is part of what calls with a kept plan are known by
    CHECK(ein_einsum_ex(ctx, &d) == EIN_ERR_ARGUMENT);
    ein_ctx_destroy(ctx);
    for (int k = 0; k <= s.nin; k++) free(data[k]);
    free(want);
    cpu->machine = rated;
    eini_cpu_rates(cpu);
  }
  const int packs = eini_dir_kern_of(cpu->machine.is.isa, EIN_F64) == NULL;
  CHECK(total[0] > (packs ? 1 : 3) * count && (packs || total[1] >= count / 9));
  CHECK(total[2] > 0 || cpu->machine.is.isa == EINI_ISA_PLAIN);
}

// What a plan says that its tasks move is never less than what any order moves at least, for second
// caches of 512 KiB to 4 MiB, which hold the blocks of all kernels.
static void test_traffic(ein_cpu *cpu, int count) {
  static const char *const exprs[] = {"ab,bc->ac", "abc,cd->abd", "ab,b->a", "abc,abd->acd",
                                      "abc,bd,cd->ad", "abc->b", "ab->ba", "ab,ab->ab"};
  static char json[1 << 15];
  const eini_rated rated = cpu->machine;
  int told = 0, above = 0;
  for (int r = 0; r < count; r++) {
    int64_t extent[5];
    ein_ctx_desc desc;
    ein_ctx *ctx = NULL;
    ein_einsum_desc d;
    ein_plan *plan = NULL;
    spelled s;
    for (int i = 0; i < 5; i++) extent[i] = 1 + pick(1 << (3 + pick(8)));
    cpu->machine.is.l2 = (int64_t)(16 << 10) << pick(9);
    eini_cpu_rates(cpu);
    memset(&desc, 0, sizeof desc);
    memset(&d, 0, sizeof d);
    CHECK(ein_cpu_use(cpu, &desc) == EIN_OK && ein_ctx_create(&desc, &ctx) == EIN_OK);
    (void)spell(exprs[r % 8], extent, pick(2) ? EIN_F32 : EIN_F64, pick(4), &s);
    d.expr = s.expr, d.nin = s.nin, d.in = s.view, d.out = &s.view[s.nin];
    CHECK(ein_plan_create(ctx, &d, &plan) == EIN_OK);
    CHECK(ein_plan_json(plan, json, sizeof json) < sizeof json);
    for (const char *at = json; (at = strstr(at, "\"io_bound\": ")) != NULL; at++) {
      // Of a statement it stands before what the statement moves, of a group behind it.
      const char *end = strpbrk(at + 12, ",}"), *is = strstr(at, "\"traffic\": ");
      if (*end == '}')
        for (is = at; strncmp(is, "\"traffic\": ", 11) != 0; is--) {}
      const double least = atof(at + 12), moves = atof(is + 11);
      if (strncmp(at + 12, "null", 4) == 0 || strncmp(is + 11, "null", 4) == 0) continue;
      const int fits = moves >= least * (1 - 1e-5);  // as printed
      if (!fits) printf("  %s: %g of at least %g bytes\n%s\n", s.expr, moves, least, json);
      CHECK(fits);
      told++, above += moves > 1.01 * least;
    }
    ein_plan_destroy(plan);
    ein_ctx_destroy(ctx);
  }
  CHECK(told >= count && above > count / 80);
  cpu->machine = rated;
  eini_cpu_rates(cpu);
}

int main(int argc, char **argv) {
  static const char *const isa[] = {"plain", "neon", "avx2", "avx512"};
  int64_t count = argc > 2 ? atoll(argv[2]) : FEW(1500);
  if (argc > 1) seed = (uint64_t)atoll(argv[1]);
  test_create();
  test_text();
  test_use();
  test_share();
  test_pool();
  for (int i = 0; i < 4; i++) {
    ein_cpu *cpu = open_isa(isa[i], 1);
    if (cpu == NULL) {
      printf("  %s: not here\n", isa[i]);
      continue;
    }
    const ein_kernels *k = ein_cpu_kernels(cpu);
    test_copies(k, isa[i], count);
    test_scaled(isa[i], count / 2);
    test_lines(k, isa[i], count);
    test_anywhere(k, isa[i], count);
    test_strips(k, isa[i], count);
    test_full_buffers(k);
    test_many_loops(k);
    check_ways(k, count);
    test_chunks(k, isa[i]);
    test_accuracy(k, isa[i]);
    test_exp(k, isa[i]);
    test_stream(k);
    rows_made = 0;
    test_rows(k);
    CHECK((rows_made > 0) == (strcmp(isa[i], "plain") != 0));
    for (int halves = cpu->machine.is.halves, once = 0; once < 2; once++) {
      cpu->machine.is.halves = once;
      test_rows_together(k);
      cpu->machine.is.halves = halves;
    }
    test_rows_turned(cpu, k);
    test_extrema(k);
    test_unsplit(k);
    test_variants(cpu, FEW(300));
    test_traffic(cpu, FEW(400));
    ein_cpu_destroy(cpu);
  }
  ein_cpu *best = open_isa(NULL, 1);
  test_spellings(best);
  test_spellings_of_three(best);
  ein_cpu_destroy(best);
  printf("cpu: %d checks, %d failed\n", checks, failures);
  return failures != 0;
}
