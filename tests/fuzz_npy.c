// SPDX-License-Identifier: MIT
//
// Fuzz target of tools/npy.h: header parser, in-memory reader and streaming reader.
//
//   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_npy.c -o fuzz_npy
//   gcc -g -O1 -fsanitize=address,undefined -DFUZZ_MAIN tests/fuzz_npy.c -o fuzz_npy
//
// With FUZZ_MAIN, a main that runs mutations of valid files from a fixed seed; its argument is
// their number (default 200000). A broken promise of the header stops either one with abort().

#define _POSIX_C_SOURCE 200809L

#include <stddef.h>

static void *fuzz_malloc(size_t n);
static void fuzz_free(void *p);
#define NPY_MALLOC(n) fuzz_malloc(n)
#define NPY_FREE(p) fuzz_free(p)
#define NPY_IMPLEMENTATION
#include "../tools/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t allowed;     // largest request that the input justifies
static long live_blocks;

static void need(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "fuzz_npy: broken: %s\n", what);
  abort();
}

static void *fuzz_malloc(size_t n) {
  void *p = malloc(n);
  need(n <= allowed, "memory stays within what the input justifies");
  if (p) live_blocks++;
  return p;
}

static void fuzz_free(void *p) {
  need(p != NULL, "free is not called with NULL");
  live_blocks--;
  free(p);
}

// What must hold of every array that was accepted.
static void inspect(const npy_array *a, size_t size) {
  int64_t count = 1, i;
  const size_t item = npy_itemsize(a->dtype);
  volatile unsigned char sum = 0;
  need(item > 0 && a->itemsize == item, "dtype and itemsize");
  need(a->shape && a->rank >= 0 && (size_t)a->rank <= size, "shape and rank");
  for (i = 0; i < a->rank; i++) {
    need(a->shape[i] >= 0, "extents");
    count *= a->shape[i];
  }
  need(count == a->count && a->nbytes == count * (int64_t)item, "count and nbytes");
  need(a->data && (uint64_t)a->nbytes <= size, "data");
  need((uintptr_t)a->data % npyi_type_of(a->dtype)->unit == 0, "alignment");
  for (i = 0; i < a->nbytes; i++) sum = (unsigned char)(sum + ((const uint8_t *)a->data)[i]);
}

static void same(const npy_array *a, const npy_array *b, int data) {
  need(a->dtype == b->dtype && a->rank == b->rank && a->count == b->count, "same array");
  need(memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0, "same shape");
  need(!data || memcmp(a->data, b->data, (size_t)a->nbytes) == 0, "same data");
}

// Writes the header of *a as the writer does, reads that back and compares.
static void rebuild(const npy_array *a, size_t size) {
  unsigned char *mem = NULL, *end = NULL;
  size_t len = 0;
  npy_array b;
  char err[64] = "";
  npyi_err e;
  npyi_src s;
  e.buf = err;
  e.len = sizeof err;
  allowed = 1024 + 64 * size;
  need(npyi_build(npyi_type_of(a->dtype), a->rank, a->shape, a->fortran_order, &mem, &end, &len,
                  &e) == NPY_OK, err);
  need(len % 64 == 0, "padding");
  memset(&s, 0, sizeof s);
  s.mem = end - len;
  s.left = (int64_t)len;
  need(npyi_read(&s, &b, 1, &e) == NPY_OK, err);
  need(b.fortran_order == a->fortran_order && !b.swapped, "order");
  same(a, &b, 0);
  npy_close(&b);
  fuzz_free(mem);
}

#if NPYI_POSIX
// Reads the same bytes as a stream of unknown length, which must give the same result.
static void stream(const uint8_t *data, size_t size, const npy_array *a, int status,
                   const char *message) {
  union {
    const uint8_t *in;
    void *out;
  } bytes;
  npyi_src s = {NULL, NULL, -1, 0};
  npy_array b;
  char err[160] = "";
  npyi_err e;
  int r;
  bytes.in = data;
  e.buf = err;
  e.len = sizeof err;
  s.file = fmemopen(bytes.out, size, "rb");
  if (!s.file) return;
  r = npyi_read(&s, &b, 0, &e);
  need(r == status || r == NPY_MEM || status == NPY_MEM, "stream and memory agree");
  need(r != status || strcmp(err, message) == 0, "stream and memory agree on the message");
  if (r == NPY_OK) same(a, &b, 1);
  npy_close(&b);
  (void)fclose(s.file);
}
#endif

static void try_file(const uint8_t *data, size_t size) {
  npy_array a;
  char err[160];
  int r;
  size_t i;
  memset(err, 'x', sizeof err);
  live_blocks = 0;
  allowed = 16 + 4 * size;  // an extent takes 8 bytes, and at least 2 of the input
  r = npy_parse(&a, data, size, err, sizeof err);
  if (r == NPY_OK) {
    err[0] = '\0';
    inspect(&a, size);
    rebuild(&a, size);
  } else {
    need(r == NPY_BAD || r == NPY_MEM, "status");
    need(memchr(err, '\0', sizeof err) != NULL && err[0] != '\0', "message");
    for (i = 0; err[i]; i++) need(err[i] >= ' ' && err[i] <= '~', "message is printable");
    need(!a.data && !a.shape && a.rank == 0, "array is zeroed");
  }
#if NPYI_POSIX
  allowed = 2 * NPYI_CHUNK + 4 * size;
  if (size > 0) stream(data, size, &a, r, err);
#endif
  npy_close(&a);
  need(live_blocks == 0, "no leak");
}

// The input is a file. If it does not start like one it is, in a second try, the header text of a
// file with 64 bytes of data, which spares the fuzzer from guessing the length field.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const size_t prefix = 12, tail = 64;
  uint8_t *file;
  size_t k;
  try_file(data, size);
  if (size > 0 && data[0] == 0x93) return 0;
  file = (uint8_t *)malloc(prefix + size + tail);
  if (!file) return 0;
  memcpy(file, "\223NUMPY\002", 8);
  for (k = 8; k < prefix; k++) file[k] = (uint8_t)(size >> 8 * (k - 8) & 255);
  if (size > 0) memcpy(file + prefix, data, size);
  for (k = 0; k < tail; k++) file[prefix + size + k] = (uint8_t)k;
  try_file(file, prefix + size + tail);
  free(file);
  return 0;
}

#ifdef FUZZ_MAIN
static uint64_t state = UINT64_C(0x9E3779B97F4A7C15);

static unsigned draw(unsigned below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)((state >> 32) % below);
}

static const char *const samples[] = {
  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
  "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 2L, 1), }\n",
  "{'shape': (), 'descr': '|b1', 'fortran_order': False}",
  "{'descr': '>c16', 'fortran_order': False, 'shape': (3,), }",
  "{'descr': '=i2', 'fortran_order': False, 'shape': (0, 9223372036854775807), }",
  "{'descr': [('a', '<f4'), ('b', [('c', '|O')], (2,))], 'fortran_order': False, 'shape': ()}",
  "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1, 1), }"};
static const char *const pieces[] = {
  "{", "}", "(", ")", "[", "]", ",", ":", "'", "\"", "-", "\\", "\n", " ", "L", "u'", "0", "1", "9",
  "99999999999", "9223372036854775807", "'descr'", "'shape'", "'fortran_order'", "True", "False",
  "'<f4'", "'|O'", "'>c8'", "(3,)", "()", "1,", "None", "<", ">", "|", "\303\251", "\033"};

// Changes bytes, cuts, or puts in a piece of the grammar. Returns the new length.
static size_t mutate(uint8_t *buf, size_t n, size_t room) {
  const size_t at = draw((unsigned)n + 1);
  const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
  const size_t len = strlen(piece);
  size_t cut = draw(8);
  switch (draw(5)) {
    case 0:
      if (at < n) buf[at] = (uint8_t)draw(256);
      return n;
    case 1:
      if (at < n) buf[at] = (uint8_t)(buf[at] ^ 1u << draw(8));
      return n;
    case 2:
      if (cut > n - at) cut = n - at;
      memmove(buf + at, buf + at + cut, n - at - cut);
      return n - cut;
    case 3:
      return draw(8) == 0 ? at : n;
    default:
      if (n + len > room) return n;
      memmove(buf + at + len, buf + at, n - at);
      memcpy(buf + at, piece, len);
      return n + len;
  }
}

int main(int argc, char **argv) {
  const long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
  long i;
  for (i = 0; i < runs; i++) {
    uint8_t text[1024], file[2048];
    const char *sample = samples[draw(sizeof samples / sizeof *samples)];
    const size_t prefix = draw(3) ? 10 : 12;
    size_t n = strlen(sample), k, total;
    unsigned changes = draw(5);
    memcpy(text, sample, n);
    while (changes-- > 0) n = mutate(text, n, sizeof text);
    memcpy(file, "\223NUMPY\001", 8);
    if (prefix == 12) file[6] = (uint8_t)(2 + draw(2));
    for (k = 8; k < prefix; k++) file[k] = (uint8_t)(n >> 8 * (k - 8) & 255);
    memcpy(file + prefix, text, n);
    total = prefix + n + draw(64);
    for (k = prefix + n; k < total; k++) file[k] = (uint8_t)draw(256);
    if (draw(8) == 0) total = mutate(file, total, sizeof file);
    // An exact copy on the heap lets the sanitizer see a read past the end.
    {
      uint8_t *copy = (uint8_t *)malloc(total ? total : 1);
      if (!copy) return 1;
      memcpy(copy, file, total);
      (void)LLVMFuzzerTestOneInput(copy, total);
      free(copy);
    }
  }
  printf("fuzz_npy: %ld runs\n", runs);
  return 0;
}
#endif
