// Maps with a mask of indices, on every instruction set of the machine, against plain loops: random
// comparisons of affine indices, one or several of which all or some have to hold, or not, either
// way round, of what is copied, what is computed, and what is a constant, of rows
// longer and shorter than a block, with one to three axes, in parts for threads; and where the
// output is an operand, as in groups. What lies around the output stays.
//
//   test_cpu_masked [count [seed]]      defaults: 600 1
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_cpu.h"
#include "check.h"
#include "util.h"

enum { GUARD = 64 };
static int pick(int n) { return (int)draw(0, n - 1); }
static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
static const char *const made[] = {"A[%s]", "A[%s]*2", "A[%s]*B[j]", "(A[%s] - B[j])/3", "B[j]",
                                   "2"};

typedef struct compared {
  int64_t by[2][3], more[2];  // h, i, j: those of the two sides
  int op, is_not;
} compared;

typedef struct masked {
  int64_t extent[3];
  compared of[3];
  int rank, terms, either, is_not, x, swapped, f32, turned;
  double c;
} masked;

static compared compared_draw(int rank) {
  compared c;
  memset(&c, 0, sizeof c);
  for (int s = 0; s < 2; s++) {
    for (int r = 3 - rank; r < 3; r++) c.by[s][r] = pick(3) ? pick(7) - 3 : 0;
    c.more[s] = pick(3) == 0 ? pick(3) * pick(300) - 150 : 0;
  }
  if (pick(2)) {  // j against i
    memset(c.by, 0, sizeof c.by);
    c.by[0][2] = 1, c.by[1][1] = rank > 1;
  }
  c.op = pick(6), c.is_not = pick(6) == 0;
  return c;
}

static masked masked_draw(void) {
  masked p;
  const int64_t wide = 1 + pick(6) * pick(140);
  memset(&p, 0, sizeof p);
  p.rank = 1 + pick(3);
  for (int r = 0; r < 3; r++) p.extent[r] = r < 3 - p.rank ? 1 : 1 + pick(r == 0 ? 4 : 40);
  p.extent[2] = wide;
  p.terms = pick(2) ? 1 : 2 + pick(2), p.either = pick(3) == 0, p.is_not = pick(6) == 0;
  for (int t = 0; t < p.terms; t++) p.of[t] = compared_draw(p.rank);
  p.x = pick(6), p.swapped = pick(2), p.f32 = pick(2);
  p.turned = pick(8) == 0 && p.rank > 1;
  p.c = pick(3) == 0 ? -(double)INFINITY : pick(2) ? 0 : 1.5;
  return p;
}

static int side_text(const compared *c, int s, char *text, size_t size) {
  int n = snprintf(text, size, "%d", (int)c->more[s]);
  for (int r = 0; r < 3; r++)
    if (c->by[s][r] != 0)
      n += snprintf(text + n, size - (size_t)n, " + %d*%c", (int)c->by[s][r], "hij"[r]);
  return n;
}

static void condition_text(const masked *p, char *text, size_t size) {
  int n = snprintf(text, size, p->is_not ? "not (" : "(");
  for (int t = 0; t < p->terms; t++) {
    const compared *c = &p->of[t];
    n += snprintf(text + n, size - (size_t)n, "%s%s(", t == 0 ? "" : p->either ? " or " : " and ",
                  c->is_not ? "not " : "");
    n += side_text(c, 0, text + n, size - (size_t)n);
    n += snprintf(text + n, size - (size_t)n, " %s ", ops[c->op]);
    n += side_text(c, 1, text + n, size - (size_t)n);
    n += snprintf(text + n, size - (size_t)n, ")");
  }
  snprintf(text + n, size - (size_t)n, ")");
}

static void masked_text(const masked *p, char *text, size_t size) {
  static const char *const axes[] = {"", "j", "i,j", "h,i,j"};
  static const char *const back[] = {"", "j", "j,i", "j,i,h"};
  static const char *const inputs[] = {"A[%s]", "A[%s]", "A[%s], B[j]", "A[%s], B[j]", "B[j]",
                                       "A[%s]"};
  char x[64], input[64], condition[512], c[16];
  const char *in = p->turned ? back[p->rank] : axes[p->rank];
  snprintf(x, sizeof x, made[p->x], in);
  snprintf(input, sizeof input, inputs[p->x], in);
  if (isinf(p->c)) snprintf(c, sizeof c, "-inf");
  else snprintf(c, sizeof c, "%g", p->c);
  condition_text(p, condition, sizeof condition);
  snprintf(text, size, "input %s\nY[%s] : %s = where(%s, %s, %s)\noutput Y\n", input,
           axes[p->rank], p->f32 ? "f32" : "f64", condition, p->swapped ? c : x,
           p->swapped ? x : c);
}

static int compared_holds(const compared *c, const int64_t *at) {
  int64_t v[2];
  for (int s = 0; s < 2; s++) {
    v[s] = c->more[s];
    for (int r = 0; r < 3; r++) v[s] += c->by[s][r] * at[r];
  }
  switch (c->op) {
    case 0: return (v[0] < v[1]) != c->is_not;
    case 1: return (v[0] <= v[1]) != c->is_not;
    case 2: return (v[0] > v[1]) != c->is_not;
    case 3: return (v[0] >= v[1]) != c->is_not;
    case 4: return (v[0] == v[1]) != c->is_not;
    default: return (v[0] != v[1]) != c->is_not;
  }
}

static int masked_holds(const masked *p, const int64_t *at) {
  int all = 1, some = 0;
  for (int t = 0; t < p->terms; t++) {
    const int holds = compared_holds(&p->of[t], at);
    all &= holds, some |= holds;
  }
  return (p->either ? some : all) != p->is_not;
}

// Elements as double; of f32 every operation is rounded.
static double rounded(const masked *p, double x) { return p->f32 ? (double)(float)x : x; }

static double masked_value(const masked *p, const int64_t *at, const double *a, const double *b) {
  const int64_t *e = p->extent;
  const int64_t k = p->turned ? (at[2] * e[1] + at[1]) * e[0] + at[0]
                              : (at[0] * e[1] + at[1]) * e[2] + at[2];
  const double x = a[k], y = b[at[2]];
  if (masked_holds(p, at) == p->swapped) return p->c;
  switch (p->x) {
    case 0: return x;
    case 1: return 2 * x;
    case 2: return rounded(p, x * y);
    case 3: return rounded(p, rounded(p, x - y) / 3);
    case 4: return y;
    default: return 2;
  }
}

static void put(int f32, void *to, int64_t k, double v) {
  if (f32) ((float *)to)[k] = (float)v;
  else ((double *)to)[k] = v;
}

static double get(int f32, const void *from, int64_t k) {
  return f32 ? (double)((const float *)from)[k] : ((const double *)from)[k];
}

// ---- maps in place ----

// The CPU's kernels, but maps run where their first operand is, if it lies as the output does.
static const ein_kernels *inner;
static int in_place;

static void place_copy(const ein_map *m, int64_t size) {
  int64_t index[8] = {0};
  const int out = m->nstream - 1;
  for (int more = 1; more;) {
    int64_t at = 0;
    for (int i = 0; i < m->n; i++) at += index[i] * m->stride[i] * size;
    memcpy(m->base[out] + at, m->base[0] + at, (size_t)size);
    more = 0;
    for (int i = m->n - 1; i >= 0 && !more; i--) {
      more = ++index[i] < m->extent[i];
      if (!more) index[i] = 0;
    }
  }
}

static ein_status place_run(void *user, const ein_map *m, const ein_choice *choice, void *scratch) {
  const int out = m->nstream - 1;
  char *base[8];
  ein_map here = *m;
  int same = m->nop > 0 && m->n <= 8 && m->nstream <= 8 && m->dtype[0] == m->dtype[out];
  for (int i = 0; i < m->n && same; i++)
    same = m->stride[i] == m->stride[(int64_t)out * m->pitch + i];
  if (!same) return inner->map_run(user, m, choice, scratch);
  place_copy(m, (int64_t)ein_dtype_size(m->dtype[out]));
  memcpy(base, m->base, (size_t)m->nstream * sizeof *base);
  base[0] = base[out];
  here.base = base;
  in_place += strstr(choice->variant, "masked") != NULL;
  return inner->map_run(user, &here, choice, scratch);
}

// Parts one after another, the last one first.
static void backwards(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  (void)user;
  for (int i = n - 1; i >= 0; i--) task(arg, i);
}

// ---- one program ----

// 1: the kernels that this is a test of ran; -1: the result is wrong.
static int masked_run(ein_ctx *ctx, const masked *p, const char *text) {
  static char said[1 << 14];
  const int64_t *e = p->extent, n = e[0] * e[1] * e[2];
  double *a = (double *)malloc((size_t)n * 8), *b = (double *)malloc((size_t)e[2] * 8);
  char *in[2] = {(char *)malloc((size_t)n * 8), (char *)malloc((size_t)e[2] * 8)};
  char *out = (char *)malloc((size_t)n * 8 + 2 * GUARD);
  const void *ins[2] = {in[p->x == 4], in[1]};  // those that the text has
  const ein_size sizes[3] = {{"h", e[0]}, {"i", e[1]}, {"j", e[2]}};
  void *outs[1] = {out + GUARD};
  ein_program_desc d;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_run run;
  if (a == NULL || b == NULL || in[0] == NULL || in[1] == NULL || out == NULL) exit(3);
  for (int64_t k = 0; k < n; k++) put(p->f32, in[0], k, a[k] = (double)pick(2000) / 8 - 125);
  for (int64_t k = 0; k < e[2]; k++) put(p->f32, in[1], k, b[k] = (double)pick(2000) / 8 - 125);
  memset(out, 0x5A, (size_t)n * 8 + 2 * GUARD);
  memset(&d, 0, sizeof d);
  memset(&run, 0, sizeof run);
  d.text = text;
  d.dtype = p->f32 ? EIN_F32 : EIN_F64;
  d.size = sizes + 3 - p->rank, d.nsize = p->rank;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  if (g == NULL) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL && ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  run.in = ins, run.out = outs;
  CHECK(plan != NULL && ein_plan_execute(plan, &run) == EIN_OK);
  int good = 1, took = 0;
  int64_t at[3], k = 0;
  for (at[0] = 0; at[0] < e[0]; at[0]++)
    for (at[1] = 0; at[1] < e[1]; at[1]++)
      for (at[2] = 0; at[2] < e[2]; at[2]++, k++) {
        const double v = masked_value(p, at, a, b), is = get(p->f32, outs[0], k);
        if (!(v == is) && good)
          printf("%s%d %d %d: %g, not %g\n", text, (int)at[0], (int)at[1], (int)at[2], is, v);
        good &= v == is;
      }
  const char *end = out + GUARD + n * (p->f32 ? 4 : 8);
  for (int i = 0; i < GUARD; i++) good &= out[i] == 0x5A && end[i] == 0x5A;
  CHECK(good);
  if (plan != NULL && ein_plan_explain(plan, said, sizeof said) > 0)
    took = strstr(said, "rows masked") != NULL;
  ein_plan_destroy(plan);
  ein_graph_destroy(g);
  free(a), free(b), free(in[0]), free(in[1]), free(out);
  return good ? took : -1;
}

// Of every comparison, beginning and growth a row's range is what a walk over it finds.
static void test_ranges(void) {
  static const int op[3] = {EIN_OP_LT, EIN_OP_LE, EIN_OP_EQ};
  for (int o = 0; o < 3; o++)
    for (int64_t first = -9; first <= 9; first++)
      for (int64_t step = -4; step <= 4; step++)
        for (int64_t n = 1; n <= 6; n++) {
          int64_t range[2];
          int good = 1;
          eini_masked_range(op[o], first, step, n, range);
          for (int64_t j = 0; j < n; j++) {
            const int64_t v = first + step * j;
            const int holds = o == 0 ? v < 0 : o == 1 ? v <= 0 : v == 0;
            good &= holds == (j >= range[0] && j < range[1]);
          }
          CHECK(good && range[0] >= 0 && range[1] <= n);
        }
}

int main(int argc, char **argv) {
  static const char *const isa[] = {"plain", "neon", "avx2", "avx512"};
  const int64_t count = argc > 1 ? atoll(argv[1]) : FEW(600);
  const int64_t seed = argc > 2 ? atoll(argv[2]) : 1;
  int64_t cases = 0, joined = 0, constant = 0;
  rng_state = (uint64_t)seed;
  test_ranges();
  for (int i = 0; i < 4; i++) {
    ein_cpu_desc machine = {3, isa[i], 0, 0};
    ein_cpu *cpu = NULL;
    ein_ctx *ctx = NULL;
    ein_ctx_desc desc;
    ein_kernels here;
    int64_t taken = 0, wrong = 0;
    if (ein_cpu_create(&machine, NULL, &cpu) != EIN_OK) continue;
    memset(&desc, 0, sizeof desc);
    CHECK(ein_cpu_use(cpu, &desc) == EIN_OK);
    inner = ein_cpu_kernels(cpu);
    here = *inner;
    here.map_run = place_run;
    desc.use[0] = &here;
    desc.executor.width = 3;
    desc.executor.parallel_for = backwards;
    in_place = 0;
    CHECK(ein_ctx_create(&desc, &ctx) == EIN_OK);
    for (int64_t k = 0; k < count && wrong < 5; k++) {
      char text[1024];
      const masked p = masked_draw();
      masked_text(&p, text, sizeof text);
      const int took = masked_run(ctx, &p, text);
      cases++, taken += took > 0, wrong += took < 0;
      joined += took > 0 && p.terms > 1, constant += took > 0 && p.x == 5;
    }
    printf("  %s: %d of %d masked; %d parts in place\n", isa[i], (int)taken, (int)count, in_place);
    CHECK(in_place > count / 10);
    CHECK(taken > (i == 0 ? count / 8 : count / 3));  // without vectors copies alone
    ein_ctx_destroy(ctx);
    ein_cpu_destroy(cpu);
  }
  printf("  %d of several comparisons, %d of constants\n", (int)joined, (int)constant);
  CHECK(joined > cases / 20 && constant > cases / 40);  // of all sets: of few cases none is sure
  printf("cpu_masked: %d checks, %d failed, seed %d\n", checks, failures, (int)seed);
  return failures != 0;
}
