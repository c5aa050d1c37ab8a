// Fuzz target of NumPy strings: ein_einsum_out, ein_plan_create and, when the work is small,
// ein_plan_execute. Bytes give operands, options and the expression.
//
//   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_expr.c -o fuzz_expr -lm
//   cc -g -O1 -DFUZZ_MAIN tests/fuzz_expr.c -o fuzz_expr -lm && ./fuzz_expr [inputs]
//
// What must hold, or abort(): every failed call leaves a message and no plan; memory is bounded and
// all of it comes back; results do not depend on the path when the arithmetic is exact; no byte
// beside the output's elements is written (they end where a heap block ends).
#define _POSIX_C_SOURCE 200809L  // posix_memalign
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_NIN = 5, MAX_RANK = 8, MAX_WORK = 200000 };

static const size_t memory_limit = (size_t)256 << 20;
static size_t live_bytes;
static long live_blocks;

static void need(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "fuzz_expr: broken: %s\n", what);
  abort();
}

// Blocks end where they are said to, so that sanitizers see what is read or written behind them.
static void *fuzz_alloc(size_t size, size_t align, void *user) {
  void *p = NULL;
  (void)user;
  if (size > memory_limit - live_bytes) return NULL;
  if (posix_memalign(&p, align, size > 0 ? size : 1) != 0) return NULL;
  live_bytes += size;
  live_blocks++;
  return p;
}

static void fuzz_free(void *ptr, size_t size, void *user) {
  (void)user;
  if (ptr == NULL) return;
  need(size <= live_bytes && live_blocks > 0, "free gives the size of the block");
  live_bytes -= size;
  live_blocks--;
  free(ptr);
}

typedef struct input {
  const uint8_t *p;
  size_t n, at;
} input;

static unsigned take(input *in) { return in->at < in->n ? in->p[in->at++] : 0; }

typedef struct testcase {
  int nin, fit;
  ein_dtype dtype;
  char *expr;
  ein_ztensor in[MAX_NIN], out;
  int64_t shape[MAX_NIN + 1][MAX_RANK], strides[MAX_NIN][MAX_RANK];
  void *block[MAX_NIN];
  ein_einsum_desc desc;
} testcase;

// Rank and extents of operand k as its part of the expression asks for: one axis per byte that is
// a letter, its extent from the table.
static void fit_operand(testcase *t, int k, const uint8_t *table) {
  const char *s = t->expr;
  ein_ztensor *v = &t->in[k];
  for (int i = 0; i < k && s != NULL; i++) {
    s = strchr(s, ',');
    if (s != NULL) s++;
  }
  for (; s != NULL && *s && *s != ',' && *s != '-' && v->rank < MAX_RANK; s++) {
    unsigned char c = (unsigned char)*s;
    if ((c | 32) >= 'a' && (c | 32) <= 'z') t->shape[k][v->rank++] = table[c & 7] % 5;
  }
}

static void make_operand(testcase *t, int k, input *in, const uint8_t *table) {
  static const ein_dtype types[] = {EIN_F64, EIN_I32, EIN_F32, EIN_C64, EIN_BOOL, EIN_U8, EIN_F16,
                                    EIN_C128};
  ein_ztensor *v = &t->in[k];
  unsigned how = take(in);
  size_t count = 1;
  v->dtype = t->dtype != EIN_NONE ? t->dtype : types[how & 7];
  v->shape = t->shape[k];
  if (t->fit) {
    fit_operand(t, k, table);
  } else {
    v->rank = (int)(how >> 3 & 3);
    for (int a = 0; a < v->rank; a++) t->shape[k][a] = take(in) % 5;
  }
  for (int a = v->rank - 1; a >= 0; a--) {
    t->strides[k][a] = (int64_t)count;
    count *= (size_t)t->shape[k][a];
  }
  if (how & 64) v->strides = t->strides[k];
  size_t bytes = count * ein_dtype_size(v->dtype);
  uint8_t *p = (uint8_t *)malloc(bytes ? bytes : 1);
  need(p != NULL, "malloc");
  for (size_t i = 0; i < bytes; i++) {
    p[i] = v->dtype == EIN_BOOL ? i & 1 : (uint8_t)(i * 37 + how);
  }
  v->data = t->block[k] = p;
}

static void make_options(testcase *t, input *in) {
  static const char *const paths[] = {NULL, "naive", "none", "optimal", "dp", "greedy", "random",
                                      "(0,1)"};
  static const char *const folds[] = {NULL, NULL, "max", "prod", "logsumexp", "any", "min", "nope"};
  static const char *const maps[] = {NULL, NULL, NULL, "x0", "x0+x1", "exp(x0)",
                                     "where(x0<x1,x0,2)", "(x0-x1)^2"};
  unsigned a = take(in), b = take(in);
  ein_einsum_desc *d = &t->desc;
  d->expr = t->expr;
  d->nin = t->nin;
  d->in = t->in;
  d->options.path = paths[a & 7];
  if (a & 8) d->monoid = folds[a >> 4 & 7];
  if (b & 1) d->map = maps[b >> 1 & 7];
  if (b & 16) {
    d->alpha.set = 1;
    d->alpha.re = 2;
  }
  d->rest = (ein_rest)(b >> 5 & 3);
  d->options.may_overlap = (int)(b >> 7 & 1);
}

// Plans and executes into fresh memory; returns it, or NULL.
static void *run_case(testcase *t, ein_ctx *ctx, const char *path, size_t bytes) {
  ein_plan *plan = NULL;
  ein_plan_info info;
  void *result = NULL;
  ein_einsum_desc desc = t->desc;
  desc.out = &t->out;
  if (path != NULL) desc.options.path = path;
  ein_status st = ein_plan_create(ctx, &desc, &plan);
  need((st == EIN_OK) == (plan != NULL), "a plan exactly on success");
  need(st != EIN_ERR_INTERNAL, "no internal error");
  need(st == EIN_OK || ein_ctx_message(ctx)[0] != 0, "a failed call leaves a message");
  if (st != EIN_OK) return NULL;
  need(ein_plan_info_get(plan, &info) == EIN_OK, "the plan has an info");
  if (info.naive_flops <= MAX_WORK && info.flops <= MAX_WORK) {
    const void *inputs[MAX_NIN];
    void *outputs[1];
    ein_run run;
    memset(&run, 0, sizeof run);
    for (int k = 0; k < t->nin; k++) inputs[k] = t->in[k].data;
    result = malloc(bytes ? bytes : 1);
    need(result != NULL, "malloc");
    memset(result, 0, bytes);
    outputs[0] = result;
    run.in = inputs;
    run.out = outputs;
    st = ein_plan_execute(plan, &run);
    const int scale = t->desc.alpha.set && t->out.dtype == EIN_BOOL;  // no bool is 2
    need(st == EIN_OK || st == EIN_ERR_EMPTY || st == EIN_ERR_NO_MEMORY ||
         (scale && st == EIN_ERR_DTYPE), "the plan executes");
    if (st != EIN_OK) {
      free(result);
      result = NULL;
    }
  }
  ein_plan_destroy(plan);
  return result;
}

static void check_case(testcase *t, ein_ctx *ctx) {
  int64_t *shape = t->shape[MAX_NIN];
  ein_status st = ein_einsum_out_ex(ctx, &t->desc, &t->out, shape, MAX_RANK);
  need(st != EIN_ERR_INTERNAL, "no internal error");
  if (st != EIN_OK) {
    need(ein_ctx_message(ctx)[0] != 0, "a failed call leaves a message");
    return;
  }
  int64_t count = ein_view_count(&t->out);
  need(t->out.rank >= 0 && t->out.rank <= MAX_RANK, "a rank that fits");
  need(count >= 0, "a countable output");
  if (count > MAX_WORK) return;
  size_t bytes = (size_t)count * ein_dtype_size(t->out.dtype);
  void *result = run_case(t, ctx, NULL, bytes);
  if (result != NULL && t->dtype == EIN_I64 && t->desc.map == NULL) {
    void *again = run_case(t, ctx, "none", bytes);
    need(again == NULL || memcmp(result, again, bytes) == 0, "the path does not change integers");
    free(again);
  }
  free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t ones[8] = {2, 3, 1, 4, 2, 1, 0, 3};
  input in = {data, size, 0};
  testcase t;
  uint8_t table[8];
  ein_ctx_desc cd;
  ein_ctx *ctx;
  memset(&t, 0, sizeof t);
  memset(&cd, 0, sizeof cd);
  unsigned head = take(&in);
  t.nin = 1 + (int)(head % MAX_NIN);
  t.fit = (head & 64) == 0;
  t.dtype = head & 128 ? EIN_NONE : EIN_I64;
  for (int i = 0; i < 8; i++) table[i] = head & 32 ? (uint8_t)take(&in) : ones[i];
  // The head is at most this long; the expression is what follows, made a string.
  uint8_t fixed[MAX_NIN * 5 + 2];
  for (size_t i = 0; i < sizeof fixed; i++) fixed[i] = (uint8_t)(i < 7 ? take(&in) : 0);
  size_t n = in.n - in.at;
  t.expr = (char *)malloc(n + 1);
  need(t.expr != NULL, "malloc");
  if (n > 0) memcpy(t.expr, in.p + in.at, n);
  t.expr[n] = 0;
  input head_bytes = {fixed, sizeof fixed, 0};
  make_options(&t, &head_bytes);
  for (int k = 0; k < t.nin; k++) make_operand(&t, k, &head_bytes, table);
  cd.allocator.alloc_fn = fuzz_alloc;
  cd.allocator.free_fn = fuzz_free;
  need(ein_ctx_create(&cd, &ctx) == EIN_OK, "a ctx");
  check_case(&t, ctx);
  ein_ctx_destroy(ctx);
  for (int k = 0; k < t.nin; k++) free(t.block[k]);
  free(t.expr);
  need(live_bytes == 0 && live_blocks == 0, "all memory comes back");
  return 0;
}

#ifdef FUZZ_MAIN
static uint64_t state = 1;

static unsigned draw(size_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

int main(int argc, char **argv) {
  static const char *const samples[] = {
      "ij,jk->ik", "ij,jk,kl->il", "i,i->", "ii->i", "ijk,ja,ka->ia", "...ij,...jk->...ik",
      ",ij->ji", "ab,cd,ef->", "i->ii", "ij", "bdik,acaj,ikab->", " i j , j -> i ",
      "a...,...->...", "->", "\xc3\xa9\xc3\xa8"};
  static const char alphabet[] = "abcijk,.->  ...ABZ0(";
  const long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
  for (long i = 0; i < runs; i++) {
    char text[256];
    size_t n = 8;
    const char *s = samples[draw(sizeof samples / sizeof *samples)];
    unsigned commas = 0;
    for (size_t k = 0; k < n; k++) text[k] = (char)draw(256);
    for (; *s; s++) {
      commas += *s == ',';
      text[n++] = *s;
    }
    // Most inputs have as many operands as the expression, and extents that fit it.
    if (draw(8)) text[0] = (char)(draw(2) * 128 + commas);
    for (unsigned k = draw(4); k > 0 && n > 9; k--) {
      size_t at = 8 + draw(n - 8);
      if (draw(2)) text[at] = alphabet[draw(sizeof alphabet - 1)];
      else if (draw(2)) memmove(text + at, text + at + 1, --n - at);
    }
    uint8_t *copy = (uint8_t *)malloc(n);
    if (copy == NULL) return 1;
    memcpy(copy, text, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
  }
  printf("fuzz_expr: %ld inputs\n", runs);
  return 0;
}
#endif
