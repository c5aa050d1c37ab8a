// Fuzzes the program language: parse, print, list inputs. With libFuzzer, or with -DFUZZ_MAIN as a
// plain program: fuzz_program [mutations] [seed]. Sizes are kept small; memory is bounded.

#define _POSIX_C_SOURCE 200809L  // posix_memalign
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_input(const char *name, ein_dtype dtype, int rank, void *user) {
  *(size_t *)user += strlen(name) + (size_t)dtype + (size_t)rank;
}

// An allocator with a budget: every allocation after it fails, so that running out of memory is
// tested, and a leak is counted.
typedef struct fuzz_memory {
  long left, live;
} fuzz_memory;

static void *fuzz_alloc(size_t size, size_t align, void *user) {
  fuzz_memory *m = (fuzz_memory *)user;
  void *p = NULL;
  if (m->left-- <= 0 || size > ((size_t)1 << 28)) return NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (posix_memalign(&p, align, size > 0 ? size : 1) != 0) return NULL;
  m->live++;
  return p;
}

static void fuzz_free(void *ptr, size_t size, void *user) {
  (void)size;
  ((fuzz_memory *)user)->live--;
  free(ptr);
}

static ein_status fuzz_parse(const char *text, size_t size, long budget) {
  fuzz_memory memory = {budget, 0};
  ein_ctx_desc cd;
  memset(&cd, 0, sizeof cd);
  cd.allocator.alloc_fn = fuzz_alloc;
  cd.allocator.free_fn = fuzz_free;
  cd.allocator.user = &memory;
  ein_ctx *ctx;
  if (ein_ctx_create(&cd, &ctx) != EIN_OK) {
    if (memory.live != 0) abort();
    return EIN_ERR_NO_MEMORY;
  }
  ein_size sizes[2] = {{"n", 4}, {"m", 3}};
  ein_program_desc d;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.length = size;
  d.nsize = strstr(text, "[n,m") != NULL ? 2 : 0;
  d.size = sizes;
  d.max_source = 1 << 16;
  ein_graph *g;
  ein_status st = ein_graph_parse(ctx, &d, &g);
  if ((st == EIN_OK) != (g != NULL)) abort();
  if (st == EIN_OK) {
    size_t n = ein_graph_print(g, NULL, 0);
    char *buf = n < ((size_t)1 << 24) ? (char *)malloc(n + 1) : NULL;
    if (buf != NULL && ein_graph_print(g, buf, n + 1) != n) abort();
    free(buf);
  } else if (st != EIN_ERR_NO_MEMORY && ein_ctx_message(ctx)[0] == 0) {
    abort();  // a mistake without a message
  }
  ein_graph_destroy(g);
  size_t sum = 0;
  ein_program_inputs(ctx, &d, fuzz_input, &sum);
  ein_ctx_destroy(ctx);
  if (memory.live != 0) abort();
  return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  char *text = (char *)malloc(size + 1);
  if (text == NULL) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  fuzz_parse(text, size, 1000000);
  fuzz_parse(text, size, (long)(size * 7 % 40));
  free(text);
  return 0;
}

#ifdef FUZZ_MAIN
static const char *const fuzz_seeds[] = {
    "input A[2,3], x[3], b[2]\nY[i] = A[i,j]*x[j] + b[i]\nZ[i] = sum[j]((A[i,j]-x[j])^2)\n",
    "input A[n,m=3]\nY[i,j] = softmax[j](A[i,j])\nW[i] = max(A[i,j]) ; V[i,j] = max(A[i,j], "
    "2)\noutput Y, W",
    "input X[10], K[3]\nY[h] = X[2*h+r]*K[r]\nD[i=10] = X[i+1 | 0] - X[i]\n",
    "input b[2], x[3]\nC[i] = b[i]\nC[i+2] = x[i]\nS = C[3] + norm(C[i])\n",
    "input X[n=4], Z[m=3,n] : f32\nP[i=n] = X[i-3 | wrap] + X[i+9 | reflect] * X[2*i | clamp]\n"
    "Q[i=6,j=9] = Z[i-1, j-2 | -inf]\n",
    "param a = 2, eps = -1e-3 : f64\ndef sq(x) = x*x\ndef f(x,y) = sq(x) + sum[k=4](y*k)\ninput "
    "V[n=3]\n"
    "R[k] = f(V[k], sum[j](V[j]*k)) * a\n",
    "input Q[s=5,d=4], K[t=6,d], V[t,e=3] : f32\nT[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))\n"
    "Y[s,e] = softmax[t](T[s,t]) * V[t,e]\nL[s,e] = layernorm[e](Y[s,e], V[0,e], V[1,e])\n"
    "N[s,e] : f64 = rmsnorm[e](Y[s,e], V[0,e])\noutput L, Y : f16\n",
    "input X[10], K[3], A[4,5] : f64\nY[h] = X[2*h+r]*K[r]\nL = sum(Y[h]^2) + sum[i](A[i,i])\n"
    "grad L wrt X, K, A as dX, dK, dA\nN[i] = K[i] - 0.1*dK[i]\nT = max(N[i])*prod[i](A[i,i+1])\n"
    "grad T wrt X as H\n",
    "input Q[s=2,d=3] : c64\ninput S[s] : c64\nY[s] = sum[d](abs(Q[s,d])*conj(Q[s,2-d])/(2+d))\n"
    "grad Y wrt Q as dQ seed S\noutput dQ\n",
    "P[s=2,t=4] = where(t<=s and not (s==1 or t>2), true, false)\nB = argmax[t](P[0,t])\n"
    "U[2*i+1] = P[0,i]\nU[2*i] = P[1,i]\nS = -2^2 + 2^-1 + 2^3^2 \\\n  - 8/2*4  # end\n"};

static uint64_t fuzz_next(uint64_t *s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  *s ^= *s << 17;
  return *s;
}

// Mutates with pieces of the seeds, so that many mutants stay near the language.
static size_t fuzz_mutate(char *text, size_t n, size_t cap, uint64_t *rng) {
  static const char alphabet[] = "()[]|,:=+-*/^<>;\n #\\.019ijnxAY_\xC3\xA9\x01";
  const char *other = fuzz_seeds[fuzz_next(rng) % (sizeof fuzz_seeds / sizeof *fuzz_seeds)];
  size_t at = n > 0 ? (size_t)(fuzz_next(rng) % n) : 0, len = (size_t)(fuzz_next(rng) % 12) + 1;
  size_t m = strlen(other), from = (size_t)(fuzz_next(rng) % m);
  if (len > m - from) len = m - from;
  switch (fuzz_next(rng) % 4) {
    case 0:
      if (n > 0) text[at] = alphabet[fuzz_next(rng) % (sizeof alphabet - 1)];
      return n;
    case 1:
      if (len > n - at) len = n - at;
      memmove(text + at, text + at + len, n - at - len);
      return n - len;
    case 2:
      if (n + len > cap) return n;
      memmove(text + at + len, text + at, n - at);
      memcpy(text + at, other + from, len);
      return n + len;
    default:
      if (n + 1 > cap) return n;
      memmove(text + at + 1, text + at, n - at);
      text[at] = alphabet[fuzz_next(rng) % (sizeof alphabet - 1)];
      return n + 1;
  }
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 20000, ok = 0;
  uint64_t rng = argc > 2 ? (uint64_t)atol(argv[2]) * 2 + 1 : 88172645463325253u;
  size_t seeds = sizeof fuzz_seeds / sizeof *fuzz_seeds;
  for (size_t k = 0; k < seeds; k++) {  // running out of memory at every allocation
    for (long budget = 0; budget < 200; budget++)
      fuzz_parse(fuzz_seeds[k], strlen(fuzz_seeds[k]), budget);
  }
  for (long i = 0; i < count; i++) {
    char text[4096];
    const char *seed = fuzz_seeds[(size_t)i % seeds];
    size_t n = strlen(seed);
    memcpy(text, seed, n + 1);
    for (uint64_t k = fuzz_next(&rng) % 3 + 1; k > 0; k--)
      n = fuzz_mutate(text, n, sizeof text - 1, &rng);
    text[n] = 0;
    if (n == 0) continue;
    ok += fuzz_parse(text, n, 1000000) == EIN_OK;
    if (i % 2 == 0) fuzz_parse(text, n, (long)(fuzz_next(&rng) % 30));
  }
  printf("fuzz_program: %ld mutants, %ld parsed\n", count, ok);
  return 0;
}
#endif
