// SPDX-License-Identifier: MIT
//
// Tests of tools/npy.h. Prints every check that failed; exit status 1 if there was any.
// Works in a directory of its own, which it removes; on systems without POSIX, in the current one.

#define _POSIX_C_SOURCE 200809L

#include <stddef.h>

// The allocator under test: counts live blocks and can fail on the n-th request from now.
static void *test_malloc(size_t n);
static void test_free(void *p);
#define NPY_MALLOC(n) test_malloc(n)
#define NPY_FREE(p) test_free(p)
#define NPY_IMPLEMENTATION
#include "../tools/npy.h"

#if NPYI_POSIX
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif

#if NPYI_POSIX && !defined(NPY_NO_MMAP)
#define MAPS 1
#else
#define MAPS 0
#endif

static int failures;
static long live_blocks;
static long fail_after = -1;  // requests that still succeed; -1: all
static size_t largest;        // largest request since it was last cleared
static char dir[256] = ".";

static void *test_malloc(size_t n) {
  void *p;
  if (n > largest) largest = n;
  if (fail_after == 0) return NULL;
  if (fail_after > 0) fail_after--;
  p = malloc(n);
  if (p) {
    live_blocks++;
    memset(p, 0xA5, n);  // nothing may rely on fresh memory being zero
  }
  return p;
}

static void test_free(void *p) {
  if (p) live_blocks--;
  free(p);
}

#define CHECK(c) check((c) != 0, #c, __LINE__, "")
#define CHECK_MSG(c, msg) check((c) != 0, #c, __LINE__, msg)

static void check(int ok, const char *what, int line, const char *msg) {
  if (ok) return;
  printf("test_npy.c:%d: failed: %s%s%s\n", line, what, *msg ? "; message: " : "", msg);
  failures++;
}

// The path of `name` in the test directory; valid until the next-but-one call.
static const char *in_dir(const char *name) {
  static char buf[2][512];
  static int turn;
  turn = !turn;
  (void)snprintf(buf[turn], sizeof buf[turn], "%s/%s", dir, name);
  return buf[turn];
}

static void spew(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  CHECK(f != NULL);
  if (!f) return;
  CHECK(n == 0 || fwrite(bytes, 1, n, f) == n);
  CHECK(fclose(f) == 0);
}

static size_t slurp(const char *path, void *bytes, size_t most) {
  FILE *f = fopen(path, "rb");
  size_t n;
  if (!f) return 0;
  n = fread(bytes, 1, most, f);
  (void)fclose(f);
  return n;
}

static int exists(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f) (void)fclose(f);
  return f != NULL;
}

// Builds a file image: version 1 to 3 with the header text as it is, then data. Returns its size.
static size_t image(unsigned char *out, int version, const char *head, size_t head_n,
                    const void *data, size_t n) {
  const size_t prefix = version == 1 ? 10 : 12;
  size_t i;
  memcpy(out, "\223NUMPY", 6);
  out[6] = (unsigned char)version;
  out[7] = 0;
  for (i = 8; i < prefix; i++) out[i] = (unsigned char)(head_n >> 8 * (i - 8) & 255);
  memcpy(out + prefix, head, head_n);
  if (n > 0) memcpy(out + prefix + head_n, data, n);
  return prefix + head_n + n;
}

// Parses a version 1 header with 64 zero bytes of data behind it.
static int parse_head(npy_array *a, const char *head, size_t head_n, char *err, size_t errlen) {
  static const unsigned char zeros[64] = {0};
  static unsigned char buf[8192];
  return npy_parse(a, buf, image(buf, 1, head, head_n, zeros, sizeof zeros), err, errlen);
}

static void expect_bad_n(int line, const char *head, size_t n, const char *message) {
  npy_array a;
  char err[256] = "";
  const int r = parse_head(&a, head, n, err, sizeof err);
  check(r == NPY_BAD, head, line, err);
  check(strstr(err, message) != NULL, message, line, err);
  check(a.data == NULL && a.shape == NULL && a.rank == 0, "array is zeroed", line, head);
  npy_close(&a);
}
#define BAD(head, message) expect_bad_n(__LINE__, head, sizeof head - 1, message)

static void expect_good(int line, const char *head, int dtype, int rank, int64_t count) {
  npy_array a;
  char err[256] = "";
  const int r = parse_head(&a, head, strlen(head), err, sizeof err);
  check(r == NPY_OK, head, line, err);
  check(a.dtype == dtype && a.rank == rank && a.count == count, head, line, "wrong result");
  npy_close(&a);
}
#define GOOD(head, dtype, rank, count) expect_good(__LINE__, head, dtype, rank, count)

#define D1(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (2,), }"
#define S1(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }\n"

static void test_header_accepts(void) {
  GOOD(S1("(2,)"), NPY_F32, 1, 2);
  GOOD(S1("( 2 , )"), NPY_F32, 1, 2);
  GOOD(S1("()"), NPY_F32, 0, 1);
  GOOD(S1("(2, 3)"), NPY_F32, 2, 6);
  GOOD(S1("(2,3,)"), NPY_F32, 2, 6);
  GOOD(S1("(2L, 3l)"), NPY_F32, 2, 6);
  GOOD(S1("(0, 3)"), NPY_F32, 2, 0);
  GOOD(S1("(1152921504606846976, 0)"), NPY_F32, 2, 0);
  GOOD("{'shape':(2,),'descr':'<f4','fortran_order':True}", NPY_F32, 1, 2);
  GOOD(" \t{ \"shape\" : ( 2 , ) ,\n \"fortran_order\" : False , u'descr' : u'<f4' } \n",
       NPY_F32, 1, 2);
  GOOD(D1("'|b1'"), NPY_BOOL, 1, 2);
  GOOD(D1("'|u1'"), NPY_U8, 1, 2);
  GOOD(D1("'|i1'"), NPY_I8, 1, 2);
  GOOD(D1("'<i1'"), NPY_I8, 1, 2);
  GOOD(D1("'>i2'"), NPY_I16, 1, 2);
  GOOD(D1("'=i4'"), NPY_I32, 1, 2);
  GOOD(D1("'i8'"), NPY_I64, 1, 2);
  GOOD(D1("'<f2'"), NPY_F16, 1, 2);
  GOOD(D1("'|f4'"), NPY_F32, 1, 2);
  GOOD(D1("'>f8'"), NPY_F64, 1, 2);
  GOOD(D1("'<c8'"), NPY_C64, 1, 2);
  GOOD(D1("'<c16'"), NPY_C128, 1, 2);
  GOOD(D1("'<V2'"), NPY_BF16, 1, 2);
  GOOD(D1("'|V2'"), NPY_BF16, 1, 2);
  GOOD(D1("'>V2'"), NPY_BF16, 1, 2);
}

static void test_descr_refuses(void) {
  BAD(D1("[('a', '<f4')]"), "header byte 10: structured dtype [('a', '<f4')] is not supported");
  BAD(D1("('<f4', (2,))"), "structured dtype ('<f4', (2,)) is not supported");
  BAD(D1("[('\303\251\033', '<f4')]"), "structured dtype [('??\?', '<f4')] is not supported");
  BAD("{'descr': [('a', '<f4')", "expected a closing bracket, the header ends");
  BAD("{'descr': [('a', '<f4'", "expected a closing bracket, the header ends");
  BAD("{'descr': [('a', '<f4", "unclosed string");
  BAD(D1("[('a', '<f4'])"), "brackets do not match");
  BAD(D1("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["), "nested too deeply");
  BAD(D1("'|O'"), "object dtype is not supported (it needs pickle, which runs code)");
  BAD(D1("'|S5'"), "byte string dtype is not supported");
  BAD(D1("'<U7'"), "descr '<U7': unicode string dtype is not supported");
  BAD(D1("'<M8[ns]'"), "datetime64 is not supported");
  BAD(D1("'<m8[D]'"), "timedelta64 is not supported");
  BAD(D1("'|V3'"), "void dtype is not supported");
  BAD(D1("'<V22'"), "void dtype is not supported");
  BAD(D1("'<u2'"), "uint16 is not supported: convert to int32");
  BAD(D1("'<u4'"), "uint32 is not supported: convert to int64");
  BAD(D1("'>u8'"), "uint64 is not supported");
  BAD(D1("'<f16'"), "long double (float128) is not supported");
  BAD(D1("'<c32'"), "long double complex (complex256) is not supported");
  BAD(D1("'<i16'"), "descr '<i16': this dtype is not known");
  BAD(D1("''"), "this dtype is not known");
  BAD(D1("'<'"), "this dtype is not known");
  BAD(D1("'<<f4'"), "this dtype is not known");
  BAD(D1("'<f4 '"), "this dtype is not known");
  BAD(D1("4"), "expected a string after 'descr', found 4");
  BAD(D1("None"), "expected a string after 'descr', found None");
}

static void test_shape_refuses(void) {
  BAD(S1("(-1,)"), "header byte 51: negative extent");
  BAD(S1("(2)"), "rank 1 is written (n,)");
  BAD(S1("2"), "expected a tuple");
  BAD(S1("[2]"), "expected a tuple");
  BAD(S1("(,)"), "expected an extent");
  BAD(S1("(2,,)"), "expected an extent in shape, found ,");
  BAD(S1("(2 3)"), "expected ',' or ')'");
  BAD(S1("(True,)"), "expected an extent");
  BAD(S1("(2.0,)"), "unexpected byte 0x2e");
  BAD(S1("(0x2,)"), "not a plain decimal");
  BAD(S1("(02,)"), "not a plain decimal");
  BAD(S1("(2LL,)"), "not a plain decimal");
  BAD(S1("(1_0,)"), "not a plain decimal");
  BAD(S1("('2',)"), "expected an extent");
  BAD(S1("(9223372036854775808,)"), "does not fit in 63 bits");
  BAD(S1("(9223372036854775807,)"), "the shape overflows");
  BAD(S1("(4294967296, 4294967296)"), "the shape overflows");
  BAD(S1("(4294967296, 4294967296, 0)"), "the shape overflows");
  BAD(S1("(2"), "expected an extent in shape, found }");
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "the header ends");
  BAD(S1("(1000000000000,)"), "file has 64 bytes of data, shape needs 4000000000000");
}

static void test_dict_refuses(void) {
  BAD("", "header byte 0: expected '{', the header ends");
  BAD("{", "expected a key, the header ends");
  BAD("{}", "missing key descr");
  BAD("{,}", "expected a key, found ,");
  BAD("[]", "expected '{', found [");
  BAD("{'descr': '<f4', 'shape': (2,)}", "missing key fortran_order");
  BAD("{'descr': '<f4', 'fortran_order': False}", "missing key shape");
  BAD("{'descr': '<f4', 'descr': '<f4'}", "header byte 17: duplicate key, found 'descr'");
  BAD("{'shape': (2,), 'shape': (3, 4)}", "duplicate key");
  BAD("{'descr': '<f4', 'color': 1}", "unknown key, found 'color'");
  BAD("{descr: '<f4'}", "expected a key, found descr");
  BAD("{'descr' '<f4'}", "expected ':' after a key, found '<f4'");
  BAD("{'descr': '<f4' 'shape': ()}", "expected ',' or '}', found 'shape'");
  BAD("{'descr': '<f4', 'fortran_order': 0}", "expected True or False");
  BAD("{'descr': '<f4', 'fortran_order': 'True'}", "expected True or False");
  BAD("{'fortran_order': False, 'shape': (2,), 'descr': '<f4", "unclosed string");
  BAD("{'fortran_order': False, 'shape': (2,), 'descr': '<f\n4'}", "unclosed string");
  BAD("{'descr': '<f4\\", "unclosed string");
  BAD(S1("(2,)") "x", "expected nothing after the dictionary, found x");
  BAD("{'descr': '<f4',\0 'fortran_order': False, 'shape': (2,)}", "header byte 16: NUL byte");
  BAD("{'descr': '<\0f4', 'fortran_order': False, 'shape': (2,)}", "NUL in a string");
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\0", "header byte 55: NUL byte");
  BAD("{'descr': '<f4'; }", "unexpected byte 0x3b");
  BAD("{\303\251}", "unexpected byte 0xc3");
}

static void test_prefix(void) {
  unsigned char buf[256];
  const char *head = S1("(2,)");
  const float data[2] = {1.5f, -2.0f};
  npy_array a;
  char err[128], tiny[8];
  int version;
  size_t n = 0, cut;
  for (version = 1; version <= 3; version++) {
    n = image(buf, version, head, strlen(head), data, sizeof data);
    CHECK_MSG(npy_parse(&a, buf, n, err, sizeof err) == NPY_OK, err);
    CHECK(a.count == 2 && memcmp(a.data, data, sizeof data) == 0);
    npy_close(&a);
    npy_close(&a);
    for (cut = 0; cut < n; cut++) {
      err[0] = '\0';
      CHECK(npy_parse(&a, buf, cut, err, sizeof err) == NPY_BAD && err[0] != '\0');
    }
    CHECK(strstr(err, "file has 7 bytes of data, shape needs 8") != NULL);
    CHECK(npy_parse(&a, buf, n + 1, err, sizeof err) == NPY_OK);  // bytes behind are allowed
    npy_close(&a);
  }
  CHECK(npy_parse(&a, NULL, 0, err, sizeof err) == NPY_BAD && strstr(err, "file is empty"));
  CHECK(npy_parse(&a, buf, 7, err, sizeof err) == NPY_BAD);
  CHECK_MSG(strstr(err, "file has 7 bytes of magic and version, a .npy file needs 8"), err);
  CHECK(npy_parse(&a, buf, 20, err, sizeof err) == NPY_BAD);
  CHECK_MSG(strstr(err, "file has 8 bytes of header, its length field needs 58"), err);
  CHECK(npy_parse(&a, "PK\003\004....", 8, err, sizeof err) == NPY_BAD && strstr(err, ".npz"));
  CHECK(npy_parse(&a, "not numpy", 9, err, sizeof err) == NPY_BAD && strstr(err, "not a .npy"));
  CHECK(npy_parse(&a, "not numpy", 9, tiny, sizeof tiny) == NPY_BAD && strlen(tiny) == 7);
  CHECK(npy_parse(&a, "not numpy", 9, NULL, 0) == NPY_BAD);
  buf[6] = 4;
  CHECK(npy_parse(&a, buf, n, err, sizeof err) == NPY_BAD && strstr(err, "version 4.0"));
  buf[6] = 2;
  buf[7] = 1;
  CHECK(npy_parse(&a, buf, n, err, sizeof err) == NPY_BAD && strstr(err, "version 2.1"));
  buf[7] = 0;
  buf[11] = 0x7f;  // a header of 2 GiB
  largest = 0;
  CHECK(npy_parse(&a, buf, n, err, sizeof err) == NPY_BAD && strstr(err, "over the limit"));
  CHECK(largest == 0);
}

static const int all_types[] = {NPY_BOOL, NPY_U8,  NPY_I8,  NPY_I16, NPY_I32, NPY_I64,
                                NPY_F16,  NPY_F32, NPY_F64, NPY_C64, NPY_C128};
#define TYPES (sizeof all_types / sizeof *all_types)

// Writes bytes 0, 1, 2, ... as the data, in pieces, and reads them back in every way.
static void round_trip(int dtype, int rank, const int64_t *shape, int fortran) {
  static unsigned char data[1 << 15], file[1 << 16];
  const char *path = in_dir("round.npy");
  npy_writer w;
  npy_array a;
  char err[128] = "";
  size_t n = npy_itemsize(dtype), i, len;
  int k, wide = 0, mode;
  for (k = 0; k < rank; k++) {
    n *= (size_t)shape[k];
    wide += shape[k] > 1;
  }
  for (i = 0; i < n; i++) data[i] = (unsigned char)(dtype == NPY_BOOL ? i & 1 : i * 7 + 1);
  CHECK_MSG(npy_write_begin(&w, path, dtype, rank, shape, fortran) == NPY_OK, w.err);
  for (i = 0; i < n; i += 100)
    CHECK(npy_write_data(&w, data + i, n - i < 100 ? n - i : 100) == NPY_OK);
  CHECK_MSG(npy_write_commit(&w) == NPY_OK, w.err);
  len = slurp(path, file, sizeof file);
  CHECK(len > 64 && (len - n) % 64 == 0);
  for (mode = 0; mode < 3; mode++) {
    const int r = mode == 0   ? npy_open(&a, path, err, sizeof err)
                  : mode == 1 ? npy_parse(&a, file, len, err, sizeof err)
                              : npy_header_only(&a, path, err, sizeof err);
    CHECK_MSG(r == NPY_OK, err);
    if (r != NPY_OK) continue;
    CHECK(a.dtype == dtype && a.rank == rank && a.itemsize == npy_itemsize(dtype));
    CHECK(a.fortran_order == (fortran && wide > 1 && n > 0) && !a.swapped && a.shape);
    CHECK(rank == 0 || memcmp(a.shape, shape, (size_t)rank * sizeof *shape) == 0);
    CHECK(a.nbytes == (int64_t)n && a.count * (int64_t)a.itemsize == a.nbytes);
    CHECK((a.data == NULL) == (mode == 2));
    if (a.data) CHECK(memcmp(a.data, data, n) == 0);
    CHECK(a.mapped == (MAPS && mode == 0 && n > 0));
    npy_close(&a);
  }
}

static void test_round_trips(void) {
  static const int64_t small[8] = {2, 3, 1, 2, 4, 1, 2, 3}, empty[3] = {3, 0, 5};
  int64_t many[40];
  size_t t;
  int rank;
  for (rank = 0; rank < 40; rank++) many[rank] = rank % 8 == 3 ? 2 : 1;
  for (t = 0; t < TYPES; t++) {
    for (rank = 0; rank <= 8; rank++) {
      round_trip(all_types[t], rank, small, 0);
      round_trip(all_types[t], rank, small, 1);
    }
    round_trip(all_types[t], 40, many, 0);
    for (rank = 1; rank <= 3; rank++) round_trip(all_types[t], rank, empty + 3 - rank, 1);
  }
  CHECK(npy_itemsize(NPY_BF16) == 2 && npy_itemsize(0) == 0 && npy_itemsize(13) == 0);
}

// The exact bytes that NumPy writes, padding included.
static void test_exact_header(void) {
  static const int64_t shape[2] = {3, 4};
  static const char text[] = "{'descr': '|i1', 'fortran_order': True, 'shape': (3, 4), }";
  unsigned char want[128], got[256];
  const char *path = in_dir("exact.npy");
  npy_writer w;
  memset(want, ' ', sizeof want);
  memcpy(want, "\223NUMPY\001\000\166\000", 10);
  memcpy(want + 10, text, sizeof text - 1);
  want[127] = '\n';
  CHECK(npy_write_begin(&w, path, NPY_I8, 2, shape, 1) == NPY_OK);
  CHECK(npy_write_data(&w, "abcdefghijkl", 12) == NPY_OK);
  CHECK(npy_write_commit(&w) == NPY_OK);
  CHECK(slurp(path, got, sizeof got) == 140 && memcmp(got, want, 128) == 0);
}

// A header beyond 65535 bytes takes version 2.0, and rank has no limit of its own.
static void test_long_header(void) {
  const int rank = 30000;
  int64_t *shape = (int64_t *)malloc((size_t)rank * sizeof *shape);
  const char *path = in_dir("long.npy");
  unsigned char head[16];
  npy_writer w;
  npy_array a;
  char err[128] = "";
  int i;
  if (!shape) return;
  for (i = 0; i < rank; i++) shape[i] = 1;
  shape[rank / 2] = 3;
  CHECK(npy_write_begin(&w, path, NPY_U8, rank, shape, 0) == NPY_OK);
  CHECK(npy_write_data(&w, "xyz", 3) == NPY_OK);
  CHECK_MSG(npy_write_commit(&w) == NPY_OK, w.err);
  CHECK(slurp(path, head, sizeof head) == 16 && head[6] == 2 && head[7] == 0);
  CHECK_MSG(npy_open(&a, path, err, sizeof err) == NPY_OK, err);
  CHECK(a.rank == rank && a.count == 3 && a.data && memcmp(a.data, "xyz", 3) == 0);
  CHECK(a.rank == rank && memcmp(a.shape, shape, (size_t)rank * sizeof *shape) == 0);
  npy_close(&a);
  free(shape);
}

// Both byte orders, as a file and from memory, over more than one chunk.
static void test_swapped(void) {
  static unsigned char file[1 << 20];
  const size_t count = 60000;
  const char *path = in_dir("swapped.npy");
  size_t t, i, n;
  char head[128], err[128] = "";
  npy_array a;
  int from;
  for (t = 0; t < TYPES; t++) {
    const npyi_type *type = npyi_type_of(all_types[t]);
    unsigned char *data;
    (void)snprintf(head, sizeof head,
                   "{'descr': '%c%s', 'fortran_order': True, 'shape': (%d, 3), }",
                   npyi_little() ? '>' : '<', type->code, (int)(count / 3));
    n = image(file, 1, head, strlen(head), NULL, 0);
    data = file + n;
    for (i = 0; i < count * type->size; i++) data[i] = (unsigned char)(i * 31 + (i >> 8));
    n += count * type->size;
    spew(path, file, n);
    for (from = 0; from < 3; from++) {
      int same = 1;
      const int r = from == 2 ? npy_open_apart(&a, path, err, sizeof err)
                    : from    ? npy_open(&a, path, err, sizeof err)
                              : npy_parse(&a, file, n, err, sizeof err);
      CHECK_MSG(r == NPY_OK, err);
      if (r != NPY_OK) continue;
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
      CHECK(a.mapped == (from == 2 || (from == 1 && type->unit == 1)));
#endif
      CHECK(a.swapped == (type->unit > 1) && a.fortran_order && a.count == (int64_t)count);
      for (i = 0; i < count * type->size; i++) {
        const size_t u = type->unit, j = i / u * u + (u - 1 - i % u);
        same &= ((const unsigned char *)a.data)[j] == data[i];
      }
      CHECK(same);
      npy_close(&a);
    }
  }
}

// Data at an odd offset cannot be used in place; a file cut at any length is an error.
static void test_files(void) {
  const char *path = in_dir("plain.npy");
  unsigned char buf[256];
  const double data[2] = {1.25, -7.0};
  const char *heads[2] = {"{'descr': '=f8', 'fortran_order': False, 'shape': (2,), }",
                          "{'descr': '=f8', 'fortran_order': False, 'shape': (2,), } "};
  npy_array a;
  char err[128] = "";
  size_t k, n = 0, cut;
  for (k = 0; k < 2; k++) {
    n = image(buf, 1, heads[k], strlen(heads[k]), data, sizeof data);
    spew(path, buf, n);
    CHECK_MSG(npy_open(&a, path, err, sizeof err) == NPY_OK, err);
    CHECK(a.count == 2 && a.data && (uintptr_t)a.data % sizeof(double) == 0);
    CHECK(a.data && memcmp(a.data, data, sizeof data) == 0 && !a.mapped);
    npy_close(&a);
  }
  for (cut = 0; cut < n; cut++) {
    spew(path, buf, cut);
    CHECK(npy_open(&a, path, err, sizeof err) == NPY_BAD && !a.shape);
    CHECK(npy_open_apart(&a, path, err, sizeof err) == NPY_BAD && !a.shape && !a.map);
  }
  CHECK(npy_header_only(&a, path, err, sizeof err) == NPY_OK && a.count == 2 && !a.data);
  npy_close(&a);
  n = image(buf, 1, S1("(1000000000000,)"), sizeof S1("(1000000000000,)") - 1, data, 4);
  spew(path, buf, n);
  largest = 0;
  CHECK(npy_open(&a, path, err, sizeof err) == NPY_BAD);
  CHECK_MSG(strstr(err, "file has 4 bytes of data, shape needs 4000000000000"), err);
  CHECK(npy_open_apart(&a, path, err, sizeof err) == NPY_BAD && strstr(err, "file has 4 bytes"));
  CHECK(largest <= NPYI_CHUNK);
  CHECK(npy_open(&a, in_dir("none.npy"), err, sizeof err) == NPY_IO && strstr(err, "cannot open"));
  CHECK(npy_open(&a, dir, err, sizeof err) == NPY_IO);
}

// Memory that is a file without a name.
static void test_apart(void) {
  const size_t n = 100000;
  unsigned char *p = (unsigned char *)npy_apart(n);
  size_t i;
  int zero = 1;
  CHECK(npy_apart(0) == NULL);
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
  CHECK(p && (uintptr_t)p % 64 == 0);
#endif
  for (i = 0; p && i < n; i++) zero &= p[i] == 0, p[i] = 1;
  CHECK(zero);
}

// Every allocation fails once, in every entry point; nothing may leak or be left behind.
static void test_memory(void) {
  static const int64_t shape[2] = {3, 5};
  const char *path = in_dir("memory.npy"), *odd = in_dir("odd.npy");
  unsigned char buf[256];
  npy_array a;
  npy_writer w;
  char err[128];
  long n;
  int r, way;
  spew(odd, buf, image(buf, 2, S1("(2, 2)"), sizeof S1("(2, 2)") - 1, "0123456789abcdef", 16));
  for (way = 0; way < 4; way++)
    for (n = 0, r = NPY_MEM; r != NPY_OK && n < 20; n++) {
      err[0] = '\0';
      fail_after = n;
      if (way == 0) r = npy_open(&a, odd, err, sizeof err);
      if (way == 1) r = npy_header_only(&a, odd, err, sizeof err);
      if (way == 3) r = npy_open_apart(&a, odd, err, sizeof err);
      if (way == 2) {
        (void)npy_write_begin(&w, path, NPY_U8, 2, shape, 0);
        (void)npy_write_data(&w, "0123456789abcde", 15);
        r = npy_write_commit(&w);
        CHECK((strstr(w.err, "out of memory") != NULL) == (r != NPY_OK) && w.status == r);
        CHECK(exists(path) == (r == NPY_OK));
      } else {
        CHECK((strstr(err, "out of memory") != NULL) == (r != NPY_OK));
        npy_close(&a);
      }
      fail_after = -1;
      CHECK(r == NPY_OK || r == NPY_MEM);
      CHECK(live_blocks == 0);
    }
  CHECK(n > 2);
}

static void test_writer_misuse(void) {
  static const int64_t shape[2] = {2, 2}, bad[2] = {2, -2}, huge[2] = {INT64_MAX, 2};
  const char *path = in_dir("misuse.npy");
  npy_writer w;
  spew(path, "old", 3);
  CHECK(npy_write_begin(&w, path, 99, 2, shape, 0) == NPY_BAD && strstr(w.err, "dtype 99"));
  CHECK(npy_write_begin(&w, path, NPY_F32, -1, shape, 0) == NPY_BAD && strstr(w.err, "rank -1"));
  CHECK(npy_write_begin(&w, path, NPY_F32, 2, bad, 0) == NPY_BAD && strstr(w.err, "negative"));
  CHECK(npy_write_begin(&w, path, NPY_F32, 2, huge, 0) == NPY_BAD && strstr(w.err, "overflows"));
  CHECK(npy_write_data(&w, "x", 1) == NPY_BAD && strstr(w.err, "overflows"));
  CHECK(npy_write_commit(&w) == NPY_BAD && strstr(w.err, "overflows"));
  npy_write_abort(&w);
  CHECK(npy_write_begin(&w, "", NPY_F32, 2, shape, 0) == NPY_IO);
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
  CHECK(npy_write_data(&w, "12345", 5) == NPY_BAD && strstr(w.err, "too many"));
  CHECK(npy_write_commit(&w) == NPY_BAD);
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
  CHECK(npy_write_data(&w, "123", 3) == NPY_OK && exists(w.temp));
  CHECK(npy_write_commit(&w) == NPY_BAD && strstr(w.err, "1 bytes of data are missing"));
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
  npy_write_abort(&w);
  npy_write_abort(&w);
  CHECK(w.status == NPY_OK && npy_write_commit(&w) == NPY_BAD);
  {
    char old[8];
    CHECK(slurp(path, old, sizeof old) == 3 && memcmp(old, "old", 3) == 0);
  }
  CHECK(npy_write_begin(&w, in_dir("no/such.npy"), NPY_U8, 2, shape, 0) == NPY_IO);
  CHECK_MSG(strstr(w.err, "directory"), w.err);
  CHECK(live_blocks == 0);
}

// A file of any kind: what fprintf and npy_write_data write, whole or not at all.
static void test_bytes(void) {
  const char *path = in_dir("bytes.txt");
  char got[64];
  npy_writer w;
  size_t n;
  spew(path, "old", 3);
  CHECK(npy_write_begin_bytes(&w, path) == NPY_OK && npy_write_stream(&w) != NULL);
  CHECK(fprintf(npy_write_stream(&w), "%d, ", 12) == 4);
  CHECK(npy_write_data(&w, "and more", 8) == NPY_OK);
  CHECK(slurp(path, got, sizeof got) == 3);  // not before commit
  CHECK(npy_write_commit(&w) == NPY_OK && npy_write_stream(&w) == NULL);
  n = slurp(path, got, sizeof got);
  CHECK(n == 12 && memcmp(got, "12, and more", 12) == 0);
  CHECK(npy_write_begin_bytes(&w, path) == NPY_OK);
  npy_write_abort(&w);
  CHECK(npy_write_commit(&w) == NPY_BAD && slurp(path, got, sizeof got) == 12);
  CHECK(npy_write_begin_bytes(&w, path) == NPY_OK && npy_write_map(&w) == NULL);
  CHECK(npy_write_commit(&w) == NPY_OK && slurp(path, got, sizeof got) == 0);
  CHECK(npy_write_begin_bytes(&w, in_dir("no/such.txt")) == NPY_IO && !npy_write_stream(&w));
  CHECK(live_blocks == 0);
}

#if NPYI_POSIX
// Writes a file of n bytes of data; returns the status of commit.
static int write_bytes(npy_writer *w, const char *path, size_t n) {
  static const unsigned char zeros[4096] = {0};
  int64_t shape[1];
  size_t i;
  shape[0] = (int64_t)n;
  (void)npy_write_begin(w, path, NPY_U8, 1, shape, 0);
  for (i = 0; i < n; i += sizeof zeros)
    (void)npy_write_data(w, zeros, n - i < sizeof zeros ? n - i : sizeof zeros);
  return npy_write_commit(w);
}

static void test_write_errors(void) {
  struct rlimit old, low;
  npy_writer w;
  const char *path = in_dir("limit.npy");
  if (exists("/dev/full")) {
    CHECK(write_bytes(&w, "/dev/full", 10) == NPY_IO);
    CHECK_MSG(strstr(w.err, "cannot write"), w.err);
    CHECK(write_bytes(&w, "/dev/full", 1 << 20) == NPY_IO);
  }
  CHECK(write_bytes(&w, "/dev/null", 1 << 20) == NPY_OK);
  CHECK(write_bytes(&w, dir, 10) == NPY_IO);
  // A full disk in the middle of a file: the temporary file goes, too (seen by leave_test_dir).
  (void)signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  low = old;
  low.rlim_cur = 8192;
  CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
  CHECK(write_bytes(&w, path, 100000) == NPY_IO && !exists(path));
  CHECK(write_bytes(&w, path, 8100) == NPY_IO && !exists(path));
  CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(live_blocks == 0);
}

// The data as memory: the same file as written in pieces, or nothing of it.
static void test_map(void) {
  static const int64_t shape[2] = {3, 5}, none[1] = {0};
  const char *path = in_dir("map.npy");
  unsigned char whole[512], mapped[512];
  char *data;
  npy_writer w;
  struct rlimit old, low;
  size_t n, i;
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
  CHECK(npy_write_data(&w, "abcdefghijklmno", 15) == NPY_OK && npy_write_commit(&w) == NPY_OK);
  n = slurp(path, whole, sizeof whole);
  for (i = 0; i < 15; i += 7) {  // after as many bytes that were written
    CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
    CHECK(npy_write_data(&w, "abcdefghijklmno", i) == NPY_OK);
    data = (char *)npy_write_map(&w);
    CHECK_MSG((data != NULL) == MAPS, w.err);
    if (!data) npy_write_abort(&w);
    if (!data) return;
    CHECK((uintptr_t)data % 64 == i && data[0] == 0 && data[14 - i] == 0);
    CHECK(npy_write_map(&w) == NULL && npy_write_data(&w, "x", 1) == NPY_BAD);
    CHECK(slurp(path, mapped, sizeof mapped) == n);
    CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK);
    CHECK(npy_write_data(&w, "abcdefghijklmno", i) == NPY_OK);
    data = (char *)npy_write_map(&w);
    if (data) memcpy(data, &"abcdefghijklmno"[i], 15 - i);
    CHECK_MSG(npy_write_commit(&w) == NPY_OK, w.err);
    CHECK(slurp(path, mapped, sizeof mapped) == n && memcmp(whole, mapped, n) == 0);
  }
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK && npy_write_map(&w) != NULL);
  npy_write_abort(&w);
  CHECK(slurp(path, mapped, sizeof mapped) == n && memcmp(whole, mapped, n) == 0);
  CHECK(npy_write_begin(&w, path, NPY_U8, 1, none, 0) == NPY_OK && npy_write_map(&w) == NULL);
  CHECK(npy_write_commit(&w) == NPY_OK);
  CHECK(npy_write_begin(&w, "/dev/null", NPY_U8, 2, shape, 0) == NPY_OK && !npy_write_map(&w));
  CHECK(w.status == NPY_OK && npy_write_data(&w, whole, 15) == NPY_OK);
  CHECK(npy_write_commit(&w) == NPY_OK);
  // Space that is not there is an error here, not a fault when the memory is written.
  (void)signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  low = old, low.rlim_cur = 130;
  CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
  CHECK(npy_write_begin(&w, path, NPY_U8, 2, shape, 0) == NPY_OK && npy_write_map(&w) == NULL);
  CHECK_MSG(npy_write_commit(&w) == NPY_IO && strstr(w.err, "cannot write"), w.err);
  CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(live_blocks == 0);
}

// The data by two writers of one file, each its parts, in any order.
static void test_share(void) {
  static const int64_t shape[1] = {15}, none[1] = {0};
  const char *path = in_dir("share.npy"), *name;
  char temp[512];
  unsigned char whole[512], shared[512];
  npy_writer w, other;
  int64_t begin = 0;
  CHECK(npy_write_begin(&w, path, NPY_U8, 1, shape, 0) == NPY_OK);
  CHECK(npy_write_data(&w, "abcdefghijklmno", 15) == NPY_OK && npy_write_commit(&w) == NPY_OK);
  const size_t n = slurp(path, whole, sizeof whole);
  for (int drop = 1; drop >= 0; drop--) {  // the file that was there, then the new one
    CHECK(npy_write_begin(&w, path, NPY_U8, 1, shape, 0) == NPY_OK);
    name = npy_write_share(&w, &begin);
    CHECK_MSG((name != NULL) == MAPS, w.err);
    if (!name) npy_write_abort(&w);
    if (!name) return;
    (void)snprintf(temp, sizeof temp, "%s", name);
    CHECK(npy_write_join(&other, temp, begin, 16) == NPY_IO && strstr(other.err, "not here"));
    CHECK_MSG(npy_write_join(&other, temp, begin, 15) == NPY_OK, other.err);
    CHECK(npy_write_part(&other, 5, "fghijklmno", 10) == NPY_OK);
    CHECK(npy_write_part(&w, 0, "abcdef", 6) == NPY_OK && npy_write_part(&w, 15, "", 0) == NPY_OK);
    CHECK(npy_write_commit(&other) == NPY_OK && exists(temp));
    CHECK(slurp(temp, shared, sizeof shared) == n && memcmp(whole, shared, n) == 0);
    if (drop) CHECK(npy_write_part(&w, 10, "abcdef", 6) == NPY_BAD && !exists(temp));
    else CHECK_MSG(npy_write_commit(&w) == NPY_OK, w.err);
    CHECK(slurp(path, shared, sizeof shared) == n && memcmp(whole, shared, n) == 0);
  }
  CHECK(npy_write_join(&other, in_dir("nowhere.npy"), 128, 15) == NPY_IO);
  CHECK(npy_write_part(&other, 0, "a", 1) == NPY_IO && npy_write_commit(&other) == NPY_IO);
  // Nobody has joined: the first writes all of it after all.
  CHECK(npy_write_begin(&w, path, NPY_U8, 1, shape, 0) == NPY_OK);
  CHECK(npy_write_share(&w, &begin) != NULL && npy_write_data(&w, "abcdefghijklmno", 15) == NPY_OK);
  CHECK(npy_write_commit(&w) == NPY_OK);
  CHECK(slurp(path, shared, sizeof shared) == n && memcmp(whole, shared, n) == 0);
  CHECK(npy_write_begin(&w, path, NPY_U8, 1, none, 0) == NPY_OK && !npy_write_share(&w, &begin));
  CHECK(npy_write_commit(&w) == NPY_OK && live_blocks == 0);
}

// Names of open files: what is there stays, and writing goes on where it stands. A writer that is
// dropped before its data leaves nothing.
static void test_descriptors(void) {
  const char *path = in_dir("open.bin");
  static const int64_t shape[1] = {2};
  char name[64], got[512];
  npy_writer w;
  int fd;
  spew(path, "old", 3);
  fd = open(path, O_WRONLY | O_APPEND);
  CHECK(fd >= 0);
  (void)snprintf(name, sizeof name, "/dev/fd/%d", fd);
  CHECK(npy_write_begin(&w, name, NPY_U8, 1, shape, 0) == NPY_OK && npy_write_map(&w) == NULL);
  npy_write_abort(&w);
  CHECK(slurp(path, got, sizeof got) == 3);
  CHECK_MSG(write_bytes(&w, name, 5) == NPY_OK, w.err);
  CHECK(slurp(path, got, sizeof got) == 3 + 128 + 5 && memcmp(got, "old\223NUMPY", 9) == 0);
  CHECK(close(fd) == 0);
  CHECK(write_bytes(&w, name, 5) == NPY_IO && strstr(w.err, "cannot open"));
  CHECK(live_blocks == 0);
}

static void test_targets(void) {
  const char *path = in_dir("target.npy");
  char link_path[512], hop[512];
  struct stat st;
  npy_writer w;
  const mode_t mask = umask(022);
  (void)snprintf(link_path, sizeof link_path, "%s/link.npy", dir);
  (void)snprintf(hop, sizeof hop, "%s/hop.npy", dir);
  CHECK(write_bytes(&w, path, 5) == NPY_OK);
  CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0644);
  CHECK(chmod(path, 0600) == 0 && symlink("target.npy", link_path) == 0);
  CHECK(symlink(link_path, hop) == 0);
  CHECK(write_bytes(&w, hop, 7) == NPY_OK);
  CHECK(lstat(hop, &st) == 0 && S_ISLNK(st.st_mode));
  CHECK(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
  CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == 128 + 7);
  CHECK(chmod(path, 0400) == 0);
  if (geteuid() != 0) CHECK(write_bytes(&w, path, 9) == NPY_IO && strstr(w.err, "replace"));
  CHECK(unlink(path) == 0);
  CHECK(write_bytes(&w, hop, 7) == NPY_IO && strstr(w.err, "symbolic link"));
  CHECK(unlink(hop) == 0 && unlink(link_path) == 0);
  (void)umask(mask);
}

// A child writes through a FIFO, which can be neither mapped nor measured.
static void test_pipe(void) {
  static const int64_t shape[2] = {1000, 900};
  const char *path = in_dir("pipe");
  char head[128], err[128] = "";
  unsigned char buf[256];
  npy_array a;
  npy_writer w;
  int status = 0, round;
  CHECK(mkfifo(path, 0600) == 0);
  for (round = 0; round < 2; round++) {
    const pid_t child = fork();
    if (child == 0) {
      size_t i;
      double row[900];
      for (i = 0; i < 900; i++) row[i] = (double)i;
      if (round == 0) {
        (void)npy_write_begin(&w, path, NPY_F64, 2, shape, 0);
        for (i = 0; i < 1000; i++) (void)npy_write_data(&w, row, sizeof row);
        _exit(npy_write_commit(&w));
      }
      (void)snprintf(head, sizeof head, "%s", S1("(1000000000000,)"));
      spew(path, buf, image(buf, 3, head, strlen(head), row, 100));
      _exit(0);
    }
    largest = 0;
    if (round == 0) {
      CHECK_MSG(npy_open(&a, path, err, sizeof err) == NPY_OK, err);
      CHECK(a.count == 900000 && !a.mapped && a.data && ((double *)a.data)[899999] == 899.0);
      npy_close(&a);
    } else {
      CHECK(npy_open(&a, path, err, sizeof err) == NPY_BAD);
      CHECK_MSG(strstr(err, "file has 100 bytes of data, shape needs 4000000000000"), err);
      CHECK(largest <= NPYI_CHUNK);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  CHECK(unlink(path) == 0);
}

// Two arrays one after another through "-", on both ends.
static void test_standard_streams(void) {
  const char *path = in_dir("stream.bin");
  npy_array a;
  npy_writer w;
  char err[128] = "";
  int keep, file;
  CHECK(fflush(stdout) == 0);
  keep = dup(1);
  file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  CHECK(keep >= 0 && file >= 0 && dup2(file, 1) == 1 && close(file) == 0);
  CHECK(write_bytes(&w, "-", 5) == NPY_OK);
  CHECK(write_bytes(&w, "/dev/fd/1", 7) == NPY_OK);
  CHECK(write_bytes(&w, "/dev/stdout", 9) == NPY_OK);
  CHECK(dup2(keep, 1) == 1 && close(keep) == 0);
  CHECK(freopen(path, "rb", stdin) != NULL);
  CHECK_MSG(npy_open(&a, "-", err, sizeof err) == NPY_OK, err);
  CHECK(a.count == 5 && !a.mapped);
  npy_close(&a);
  CHECK_MSG(npy_open(&a, "-", err, sizeof err) == NPY_OK, err);
  CHECK(a.count == 7);
  npy_close(&a);
  CHECK_MSG(npy_open(&a, "-", err, sizeof err) == NPY_OK, err);
  CHECK(a.count == 9);
  npy_close(&a);
  CHECK(npy_open(&a, "-", err, sizeof err) == NPY_BAD && strstr(err, "file is empty"));
}

static int temps(void) {
  int n = 0;
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) n += strncmp(e->d_name, ".npy-", 5) == 0;
  if (d) (void)closedir(d);
  return n;
}

// What a killed process leaves goes with the next write; what another still writes stays, even
// when its stream is closed and only its new name is missing.
static void test_leftovers(void) {
  const double x = 3;
  npy_writer own, next;
  int status = 0;
  CHECK(temps() == 0);
  CHECK(npy_write_begin(&own, in_dir("own.npy"), NPY_F64, 0, NULL, 0) == NPY_OK);
  CHECK(npy_write_data(&own, &x, sizeof x) == NPY_OK && npy_write_finish(&own) == NPY_OK);
  const pid_t child = fork();
  if (child == 0) {
    npy_writer left;
    (void)npy_write_begin(&left, in_dir("left.npy"), NPY_F64, 0, NULL, 0);
    (void)kill(getpid(), SIGKILL);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  CHECK(temps() == 2);
  CHECK(npy_write_begin(&next, in_dir("next.npy"), NPY_F64, 0, NULL, 0) == NPY_OK);
  CHECK(temps() == 2);
  npy_write_abort(&next);
  CHECK(temps() == 1);
  CHECK(npy_write_commit(&own) == NPY_OK && temps() == 0);
}

static void enter_test_dir(void) {
  const char *base = getenv("TMPDIR");
  (void)snprintf(dir, sizeof dir, "%s/test_npy.XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(dir)) {
    printf("test_npy.c: cannot make a directory in %s\n", base ? base : "/tmp");
    exit(1);
  }
  (void)setenv("TMPDIR", dir, 1);
}

// Empties the directory; a temporary file in it means that a reader or writer left one behind.
static void leave_test_dir(void) {
  DIR *d = opendir(dir);
  struct dirent *entry;
  while (d && (entry = readdir(d)) != NULL) {
    CHECK_MSG(strncmp(entry->d_name, ".npy-", 5) != 0, entry->d_name);
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      (void)unlink(in_dir(entry->d_name));
  }
  if (d) (void)closedir(d);
  CHECK(rmdir(dir) == 0);
}
#else
static void leave_test_dir(void) {
  static const char *const names[] = {"round.npy", "exact.npy", "long.npy",  "swapped.npy",
                                      "plain.npy", "odd.npy",   "memory.npy", "misuse.npy",
                                      "bytes.txt"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; i++) (void)remove(in_dir(names[i]));
}
#endif

int main(void) {
#if NPYI_POSIX
  enter_test_dir();
  test_leftovers();
#endif
  test_header_accepts();
  test_descr_refuses();
  test_shape_refuses();
  test_dict_refuses();
  test_prefix();
  test_round_trips();
  test_exact_header();
  test_long_header();
  test_swapped();
  test_apart();
  test_files();
  test_memory();
  test_writer_misuse();
  test_bytes();
#if NPYI_POSIX
  test_map();
  test_share();
  test_descriptors();
  test_write_errors();
  test_targets();
  test_pipe();
  test_standard_streams();
#endif
  CHECK(live_blocks == 0);
  leave_test_dir();
  if (failures == 0) printf("test_npy: all passed\n");
  return failures != 0;
}
