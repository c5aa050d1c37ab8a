// Statements of one form as one task, and calls that run together: against the same calls made one
// by one, to the bit.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "util.h"

enum { K = 4, KK = K * K, MOST = 200 };

static char text[1 << 16], said[1 << 20];

static void serial_for(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

static ein_ctx *ctx_of(int width, counter *c) {
  ein_ctx_desc d;
  ein_ctx *ctx = NULL;
  memset(&d, 0, sizeof d);
  d.bare = 1;
  d.executor.width = width;
  d.executor.parallel_for = serial_for;
  if (c != NULL) {
    d.allocator.alloc_fn = count_alloc;
    d.allocator.free_fn = count_free;
    d.allocator.user = c;
  }
  ein_ctx_create(&d, &ctx);
  return ctx;
}

static ein_ztensor matrix(const int64_t *shape, void *data) {
  ein_ztensor v;
  memset(&v, 0, sizeof v);
  v.dtype = EIN_F64;
  v.rank = 2;
  v.shape = shape;
  v.data = data;
  return v;
}

static void fill(double *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (double)draw(-1000, 1000) / 997;
}

// How a statement is written. The first three are one form, and so are the next two.
static const struct { const char *rhs, *lhs, *expr; int swap; } spelling[] = {
    {"sum[j](%s[i,j] * %s[j,k])", "i,k", "ij,jk->ik", 0},
    {"sum[x](%s[x,b] * %s[a,x])", "a,b", "ij,jk->ik", 1},
    {"sum[i](%s[k,i] * %s[i,j])", "k,j", "ij,jk->ik", 0},
    {"%s[i,j] * %s[j,i]", "i,j", "ij,ji->ij", 0},
    {"%s[b,a] * %s[a,b]", "a,b", "ij,ji->ij", 1},
    {"sum[j](%s[i,j] * %s[k,j])", "i,k", "ij,kj->ik", 0}};

typedef struct program {
  int n, nin, how[MOST], x[MOST], y[MOST], out[MOST];  // operands: inputs, then statements
} program;

static void name(char *to, const program *p, int id) {
  if (id < p->nin) sprintf(to, "A%d", id);
  else sprintf(to, "T%d", id - p->nin);
}

static void write_program(const program *p) {
  char *at = text, x[16], y[16];
  for (int i = 0; i < p->nin; i++) at += sprintf(at, "input A%d[%d,%d]\n", i, K, K);
  for (int i = 0; i < p->n; i++) {
    const int swap = spelling[p->how[i]].swap;
    name(x, p, swap ? p->y[i] : p->x[i]);
    name(y, p, swap ? p->x[i] : p->y[i]);
    at += sprintf(at, "T%d[%s] = ", i, spelling[p->how[i]].lhs);
    at += sprintf(at, spelling[p->how[i]].rhs, x, y);
    at += sprintf(at, "\n");
  }
  for (int i = 0; i < p->n; i++)
    if (p->out[i]) at += sprintf(at, "output T%d\n", i);
}

static int ungrouped = 0;  // options.ungrouped of plans

static ein_status plan_text(ein_ctx *ctx, int deterministic, ein_plan **plan) {
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_options o;
  memset(&d, 0, sizeof d);
  memset(&o, 0, sizeof o);
  d.text = text;
  o.deterministic = deterministic;
  o.ungrouped = ungrouped;
  *plan = NULL;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if (st == EIN_OK) st = ein_plan_graph(ctx, g, 0, NULL, &o, plan);
  ein_graph_destroy(g);
  return st;
}

// Runs the program and its statements one by one.
static void same(ein_ctx *ctx, const program *p, int deterministic) {
  static double value[2][2 * MOST][KK];
  static const int64_t shape[2] = {K, K};
  const void *in[2 * MOST];
  void *out[MOST];
  ein_plan *plan;
  ein_run run;
  int nin = 0, nout = 0;
  ein_tensor_info info;
  fill(value[0][0], p->nin * KK);
  memcpy(value[1], value[0], sizeof value[0]);
  memset(&run, 0, sizeof run);
  CHECK(plan_text(ctx, deterministic, &plan) == EIN_OK);
  if (plan == NULL) return;
  for (; ein_plan_input(plan, nin, &info); nin++) in[nin] = value[0][atoi(info.name + 1)];
  for (; ein_plan_output(plan, nout, &info); nout++)
    out[nout] = value[0][p->nin + atoi(info.name + 1)];
  run.in = in;
  run.out = out;
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  for (int i = 0; i < p->n; i++) {
    ein_einsum_desc d;
    const ein_ztensor v[2] = {matrix(shape, value[1][p->x[i]]), matrix(shape, value[1][p->y[i]])};
    const ein_ztensor o = matrix(shape, value[1][p->nin + i]);
    memset(&d, 0, sizeof d);
    d.expr = spelling[p->how[i]].expr;
    d.nin = 2;
    d.in = v;
    d.out = &o;
    d.options.deterministic = deterministic;
    CHECK(ein_einsum_ex(ctx, &d) == EIN_OK);
    if (p->out[i])
      CHECK(memcmp(value[0][p->nin + i], value[1][p->nin + i], sizeof value[0][0]) == 0);
  }
  ein_plan_destroy(plan);
}

static int groups(ein_ctx *ctx, int deterministic, int *rows) {
  ein_plan *plan;
  int n = 0;
  *rows = 0;
  if (plan_text(ctx, deterministic, &plan) != EIN_OK) return -1;
  CHECK(ein_plan_explain(plan, said, sizeof said) < sizeof said);
  for (const char *s = said; (s = strstr(s, " group of ")) != NULL; n++, s++)
    if (strstr(s, "of one form") != NULL) *rows += atoi(s + 10);
  CHECK(ein_plan_json(plan, said, sizeof said) < sizeof said);
  int in = 0;  // statements that the JSON has in groups
  for (const char *s = said; (s = strstr(s, "\"group\": ")) != NULL; s++)
    in += s[9] >= '0' && s[9] <= '9';
  CHECK(in >= *rows && (in > 0) == (n > 0));
  ein_plan_destroy(plan);
  return n;
}

static void test_forms(ein_ctx *ctx) {
  program p;
  int rows;
  memset(&p, 0, sizeof p);
  p.n = 60;
  p.nin = 61;
  for (int i = 0; i < p.n; i++) p.how[i] = i % 6, p.x[i] = i, p.y[i] = i + 1, p.out[i] = 1;
  write_program(&p);  // three forms: 30, 20 and 10 statements
  CHECK(groups(ctx, 0, &rows) == 3 && rows == 60);
  CHECK(groups(ctx, 1, &rows) > 0);
  same(ctx, &p, 0);
  same(ctx, &p, 1);
  ungrouped = 1;
  CHECK(groups(ctx, 0, &rows) == 0 && groups(ctx, 1, &rows) == 0);
  same(ctx, &p, 0);
  ungrouped = 0;
  for (int i = 0; i < p.n; i++) p.how[i] = 1, p.x[i] = 0;  // an operand that all share
  write_program(&p);
  CHECK(groups(ctx, 0, &rows) == 1 && rows == 60);
  same(ctx, &p, 0);
  for (int i = 0; i < p.n; i++) p.y[i] = i % 2 ? p.x[i] = i : 1 + i;  // squares are another form
  write_program(&p);
  CHECK(groups(ctx, 0, &rows) == 2 && rows == 60);
  same(ctx, &p, 0);
  p.n = 7;  // too few
  write_program(&p);
  CHECK(groups(ctx, 0, &rows) == 0);
}

// Chains, one after another: what is of one depth is together.
static void test_chains(ein_ctx *ctx) {
  program p;
  int rows;
  memset(&p, 0, sizeof p);
  p.nin = 40;
  for (int i = 0; i < 40; i++) {
    for (int k = 0; k < 3; k++, p.n++) {
      p.how[p.n] = k == 1 ? 3 + i % 2 : i % 3;
      p.x[p.n] = k == 0 ? i : p.nin + p.n - 1;
      p.y[p.n] = (i * 7 + k + 1) % 40;  // never x
      p.out[p.n] = k != 1;  // or the second would be fused into the first
    }
  }
  write_program(&p);
  CHECK(groups(ctx, 0, &rows) == 3 && rows == 120);
  same(ctx, &p, 0);
  same(ctx, &p, 1);
}

static void test_random(ein_ctx *ctx, int n) {
  for (int t = 0; t < n; t++) {
    program p;
    memset(&p, 0, sizeof p);
    p.n = (int)draw(8, 90);
    p.nin = (int)draw(1, 20);
    const int forms = (int)draw(1, 6), back = (int)draw(1, 60), deterministic = chance(30);
    for (int i = 0; i < p.n; i++) {
      const int most = p.nin + i - 1, least = most > back ? most - back : 0;
      p.how[i] = (int)draw(0, forms - 1);
      p.x[i] = (int)draw(least, most);
      p.y[i] = (int)draw(0, most);
      // What is fused runs in other kernels, which add in another order.
      p.out[i] = i == p.n - 1 || !deterministic || chance(30);
    }
    write_program(&p);
    same(ctx, &p, deterministic);
  }
}

// What is fused goes along; params, constants and shapes tell statements apart.
static void test_apart(ein_ctx *ctx) {
  int rows;
  char *at = text;
  at += sprintf(at, "param s, t\n");
  for (int i = 0; i < 24; i++) {
    at += sprintf(at, "input A%d[3,5], B%d[5,2]\n", i, i);
    at += sprintf(at, "C%d[i,k] = exp(sum[j](A%d[i,j] * B%d[j,k])) + B%d[0,k] * %s\noutput C%d\n",
                  i, i, i, i, i % 2 ? "s" : "t", i);
  }
  CHECK(groups(ctx, 0, &rows) == 2 && rows == 24);
  at = text;
  for (int i = 0; i < 24; i++)
    at += sprintf(at, "input A%d[3,%d]\nC%d[i] = sum[j](A%d[i,j] + %d)\noutput C%d\n", i,
                  5 + i % 2, i, i, i % 4 / 2, i);
  CHECK(groups(ctx, 0, &rows) == 0);  // four times six
}

// Overlaps among many inputs and outputs are found as among few.
static void test_overlap(ein_ctx *ctx, int n) {
  enum { N = 40, PLACES = 400 };
  static double memory[2 * PLACES + KK];
  program p;
  ein_plan *plan;
  int clash = 0, clear = 0;
  memset(&p, 0, sizeof p);
  p.n = p.nin = N;
  for (int i = 0; i < N; i++) p.x[i] = p.y[i] = i, p.out[i] = 1;
  write_program(&p);
  CHECK(plan_text(ctx, 0, &plan) == EIN_OK);
  for (int t = 0; t < n && plan != NULL; t++) {
    const void *in[N];
    void *out[N];
    double *at[2 * N];
    char said_now[128], first[128];
    ein_run run;
    static double room[4 * N * KK];
    const int spread = (int)draw(0, 2);
    for (int i = 0; i < 2 * N; i++)
      at[i] = spread ? room + 2 * i * KK + draw(0, KK) : memory + draw(0, 2 * PLACES);
    for (int i = 0; i < 3 && spread > 1; i++) at[draw(0, 2 * N - 1)] = at[draw(0, 2 * N - 1)];
    first[0] = 0;
    for (int i = 0; i < N; i++) in[i] = at[i], out[i] = at[N + i];
    for (int o = 0; o < N && !first[0]; o++)
      for (int i = 0; i < N + o && !first[0]; i++) {
        const double *x = at[N + o], *y = at[i];
        if (x < y + KK && y < x + KK)
          sprintf(first, "the output overlaps %s %d ('%s%d')", i < N ? "input" : "output", i % N,
                  i < N ? "A" : "T", i % N);
      }
    memset(&run, 0, sizeof run);
    run.in = in;
    run.out = out;
    run.error = said_now;
    run.error_bytes = sizeof said_now;
    const ein_status st = ein_plan_execute(plan, &run);
    CHECK(st == (first[0] ? EIN_ERR_OVERLAP : EIN_OK));
    CHECK(strcmp(first, said_now) == 0);
    clash += first[0] != 0;
    clear += first[0] == 0;
  }
  CHECK(clash > 0 && clear > 0);
  ein_plan_destroy(plan);
}

// ---- ein_batch ----

typedef struct call {
  int how, swap, at[3];
} call;

enum { ROOM = 4096 };

// Calls in one memory, whose views may overlap: the batch does what they do one by one.
static void test_calls(ein_ctx *ctx, int n) {
  static double memory[2][ROOM];
  static const int64_t shape[2] = {K, K};
  for (int t = 0; t < n; t++) {
    call c[64];
    const int calls = (int)draw(1, 64), tight = (int)draw(0, 2);
    ein_batch *b = NULL;
    CHECK(ein_batch_create(ctx, &b) == EIN_OK);
    fill(memory[0], ROOM);
    memcpy(memory[1], memory[0], sizeof memory[0]);
    for (int i = 0; i < calls; i++) {
      c[i].how = (int)draw(0, 5);
      c[i].swap = chance(50);
      for (int k = 0; k < 3; k++)
        c[i].at[k] = tight == 0 ? (3 * i + k) * KK : tight == 1 ? (int)draw(0, 60) * KK
                                                                : (int)draw(0, 1000);
    }
    for (int pass = 0; pass < 2; pass++) {  // after a run more calls may come
      const int from = pass == 0 ? 0 : calls / 2, to = pass == 0 ? calls / 2 : calls;
      for (int i = from; i < to; i++) {
        const ein_ztensor v[2] = {matrix(shape, memory[0] + c[i].at[0]),
                                  matrix(shape, memory[0] + c[i].at[1])};
        const ein_ztensor w[2] = {v[1], v[0]}, out = matrix(shape, memory[0] + c[i].at[2]);
        if (c[i].swap) CHECK(ein_batch_add(b, "jk,ij->ik", 2, w, &out) == EIN_OK);
        else CHECK(ein_batch_add(b, spelling[c[i].how].expr, 2, v, &out) == EIN_OK);
      }
      for (int again = 0; again < 2; again++) {
        CHECK(ein_batch_run(b) == EIN_OK);
        for (int i = 0; i < to; i++) {
          const ein_ztensor v[2] = {matrix(shape, memory[1] + c[i].at[0]),
                                    matrix(shape, memory[1] + c[i].at[1])};
          const ein_ztensor out = matrix(shape, memory[1] + c[i].at[2]);
          CHECK(ein_einsum(ctx, c[i].swap ? "ij,jk->ik" : spelling[c[i].how].expr, 2, v, &out) ==
                EIN_OK);
        }
        CHECK(memcmp(memory[0], memory[1], sizeof memory[0]) == 0);
        fill(memory[0], ROOM);
        memcpy(memory[1], memory[0], sizeof memory[0]);
      }
    }
    ein_batch_destroy(b);
  }
}

static void test_call_kinds(ein_ctx *ctx) {
  static const int64_t shape[2] = {K, K};
  static double memory[3 * KK], want[KK], got[KK], total, trace;
  ein_ztensor v[3], out = matrix(shape, got), none = matrix(shape, NULL), scalar;
  ein_batch *b = NULL;
  CHECK(ein_batch_create(ctx, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_batch_add(NULL, "i->i", 0, NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_batch_run(NULL) == EIN_ERR_ARGUMENT);
  ein_batch_destroy(NULL);
  CHECK(ein_batch_create(ctx, &b) == EIN_OK);
  CHECK(ein_batch_run(b) == EIN_OK);  // nothing
  fill(memory, 3 * KK);
  for (int k = 0; k < 3; k++) v[k] = matrix(shape, memory + k * KK);
  memset(&scalar, 0, sizeof scalar);
  scalar.dtype = EIN_F64;
  scalar.data = &total;
  CHECK(ein_batch_add(b, "ij,jk,kl->il", 3, v, &out) == EIN_OK);  // split in two
  CHECK(ein_batch_add(b, "ij,jk->il", 2, v, &out) != EIN_OK);
  if (ctx != NULL) CHECK(strstr(ein_ctx_message(ctx), "call 1: ") != NULL);
  if (ctx != NULL) CHECK(strstr(ein_ctx_message(ctx), "\n  ij,jk->il\n") != NULL);
  none.data = NULL;
  CHECK(ein_batch_add(b, "ij,jk->ik", 2, v, &none) == EIN_ERR_ARGUMENT);
  CHECK(ein_batch_add(b, NULL, 2, v, &out) == EIN_ERR_ARGUMENT);
  CHECK(ein_batch_add(b, "ij->", 1, &out, &scalar) == EIN_OK);  // waits
  scalar.data = &trace;
  CHECK(ein_batch_add(b, "ii", 1, v, &scalar) == EIN_OK);
  CHECK(ein_batch_run(b) == EIN_OK);
  out.data = want;
  CHECK(ein_einsum(ctx, "ij,jk,kl->il", 3, v, &out) == EIN_OK);
  double sum = 0, diagonal = 0;
  for (int i = 0; i < KK; i++) {
    sum += want[i];
    CHECK(fabs(want[i] - got[i]) < 1e-13);
  }
  for (int i = 0; i < K; i++) diagonal += memory[i * K + i];
  CHECK(fabs(total - sum) < 1e-12 && fabs(trace - diagonal) < 1e-13);
  ein_batch_destroy(b);
}

// Memory that runs out is a status, wherever it does, and nothing stays behind.
static void test_memory(void) {
  static double memory[60 * KK];
  static const int64_t shape[2] = {K, K};
  for (int what = 0; what < 2; what++) {
    for (long n = 0, ok = 0; !ok; n++) {
      counter c = {0, -1, 0};
      ein_ctx *ctx = ctx_of(2, &c);
      ein_status st;
      program p;
      memset(&p, 0, sizeof p);
      p.n = p.nin = 20;
      for (int i = 0; i < p.n; i++) p.how[i] = i % 2, p.x[i] = p.y[i] = i, p.out[i] = 1;
      write_program(&p);
      c.fail_at = c.calls + n;
      if (what == 0) {
        ein_plan *plan;
        const void *in[20];
        void *out[20];
        ein_run run;
        memset(&run, 0, sizeof run);
        for (int i = 0; i < 20; i++) in[i] = memory + i * KK, out[i] = memory + (20 + i) * KK;
        run.in = in;
        run.out = out;
        st = plan_text(ctx, 0, &plan);
        if (st == EIN_OK) st = ein_plan_execute(plan, &run);
        ein_plan_destroy(plan);
      } else {
        ein_batch *b;
        st = ein_batch_create(ctx, &b);
        for (int i = 0; i < 20 && st == EIN_OK; i++) {
          const ein_ztensor v[2] = {matrix(shape, memory + 3 * i * KK),
                                    matrix(shape, memory + (3 * i + 1) * KK)};
          const ein_ztensor out = matrix(shape, memory + (3 * i + 2) * KK);
          st = ein_batch_add(b, i % 2 ? "ij,jk->ik" : "jk,ij->ik", 2, v, &out);
        }
        if (st == EIN_OK) st = ein_batch_run(b);
        if (st == EIN_OK) {
          ein_batch_explain(b, said, sizeof said);
          CHECK(strstr(said, "group of 20 of one form") != NULL);
        }
        ein_batch_destroy(b);
      }
      ein_ctx_destroy(ctx);
      ok = st == EIN_OK;
      CHECK(ok || st == EIN_ERR_NO_MEMORY);
      CHECK(c.live == 0);
    }
  }
}

static void test_all(ein_ctx *ctx) {
  test_forms(ctx);
  test_chains(ctx);
  test_random(ctx, FEW(60));
  test_apart(ctx);
  test_overlap(ctx, FEW(200));
  test_calls(ctx, FEW(40));
  test_call_kinds(ctx);
}

int main(void) {
  for (int width = 1; width <= 3; width++) {
    ein_ctx *ctx = ctx_of(width, NULL);
    test_all(ctx);
    ein_ctx_destroy(ctx);
    ein_cpu_desc c;
    ein_ctx_desc d;
    ein_cpu *cpu;
    memset(&c, 0, sizeof c);
    memset(&d, 0, sizeof d);
    c.threads = width;
    CHECK(ein_cpu_create(&c, NULL, &cpu) == EIN_OK && ein_cpu_use(cpu, &d) == EIN_OK);
    CHECK(ein_ctx_create(&d, &ctx) == EIN_OK);
    test_all(ctx);
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  test_call_kinds(NULL);
  test_memory();
  if (failures == 0) printf("ok %d checks\n", checks);
  return failures > 0;
}
