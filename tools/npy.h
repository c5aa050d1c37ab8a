// SPDX-License-Identifier: MIT
//
// npy.h - read and write NumPy .npy files (format versions 1.0, 2.0 and 3.0); its writer also takes
// files of any other kind, so that a program needs one only.
//
// Use: include it anywhere; in exactly one file, define NPY_IMPLEMENTATION before including it.
// C99, also valid C++11. On Unix-like systems that one file must define _POSIX_C_SOURCE as 200809L
// (and, where off_t may have 32 bits, _FILE_OFFSET_BITS as 64) before its first #include.
//
// Macros that the implementing file may define first:
//   NPY_MALLOC(n), NPY_FREE(p)  the allocator; define both or neither (default malloc and free)
//   NPY_MAX_HEADER              longest header accepted, in bytes (default 16 MiB)
//   NPY_NO_MMAP                 never map files, always read them
//
// The content of a file is never trusted: memory is only allocated for bytes that have arrived or
// that the size of a regular file vouches for, plus at most 256 KiB. Nothing here prints, exits or
// keeps global state. Threads may work on different npy_array and npy_writer objects at the same
// time; one object needs outside locking. (Messages use strerror, as thread safe as the C library
// makes it.)
//
// Messages are one line without the path, always terminated, cut to fit; what they repeat of a
// file is made printable ASCII. "header byte N" counts from the start of the dictionary text,
// which follows the first 10 bytes (version 1.0) or 12 bytes (later versions) of the file.

#ifndef NPY_H
#define NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// What every function that can fail returns.
enum npy_status {
  NPY_OK = 0,
  NPY_BAD,  // the content or an argument is wrong
  NPY_IO,   // the system refused: open, read, write, rename
  NPY_MEM   // out of memory
};

// Element types. NPY_BF16 is any 2 bytes without a meaning, '<V2': so NumPy saves bfloat16, which
// the file cannot say. Who reads it must know.
enum npy_dtype {
  NPY_BOOL = 1, NPY_U8, NPY_I8, NPY_I16, NPY_I32, NPY_I64,
  NPY_F16, NPY_BF16, NPY_F32, NPY_F64, NPY_C64, NPY_C128
};

// One array. The data stands in native byte order, whatever the file used.
typedef struct npy_array {
  int dtype;          // an enum npy_dtype
  int rank;           // number of extents, limited only by the length of the header
  int fortran_order;  // 1: the first index varies fastest; 0: the last one does
  int swapped;        // 1: the file held the other byte order
  int mapped;         // 1: data is a read-only mapping of a file, writing to it faults
  int64_t *shape;     // rank extents, each >= 0; not NULL even for rank 0
  int64_t count;      // number of elements, 0 when any extent is 0
  size_t itemsize;    // bytes per element
  int64_t nbytes;     // count * itemsize
  void *data;         // nbytes bytes aligned for dtype; NULL only after npy_header_only
  void *map;          // private: start of the mapping
  size_t map_bytes;   // private: its length
} npy_array;

// Bytes per element of an enum npy_dtype; 0 for unknown values.
size_t npy_itemsize(int dtype);

// Reads the array in the file `path`, or from standard input when path is "-". A regular file in
// native byte order is mapped, so it must not be truncated while the array is open (the system
// then raises SIGBUS; replacing the file by rename is fine). Anything else is read to memory.
// Bytes after the data are allowed, and stay unread on standard input, so arrays that follow one
// another there can be read by repeated calls. Bools are not checked to be 0 or 1: take any byte
// but 0 as true. The product of the non-zero extents must fit as well, so strides cannot overflow.
// Returns NPY_OK, and *a owns memory until npy_close; or another npy_status, and *a is all zero
// and a message is in err[errlen] (err may be NULL when errlen is 0). Old content of *a is
// overwritten without being freed.
int npy_open(npy_array *a, const char *path, char *err, size_t errlen);

// As npy_open, for arrays larger than memory: what the file itself cannot be mapped for (the other
// byte order, a pipe) is copied piece by piece to an unnamed file in $TMPDIR or /tmp, and that is
// mapped. Where there is no such call, it is read to memory.
int npy_open_apart(npy_array *a, const char *path, char *err, size_t errlen);

// `bytes` bytes, zeroed, of an unnamed file in $TMPDIR or /tmp, to be written and read; NULL where
// that cannot be. They are aligned to 64, and given back when the process ends.
void *npy_apart(size_t bytes);

// As npy_open, but stops after the header: data is NULL and missing data is not noticed.
int npy_header_only(npy_array *a, const char *path, char *err, size_t errlen);

// As npy_open, from n bytes in memory. Copies what it needs; the bytes need no alignment.
int npy_parse(npy_array *a, const void *bytes, size_t n, char *err, size_t errlen);

// Frees what *a owns and zeroes it. Harmless on a zeroed array, hence also when called twice.
void npy_close(npy_array *a);

// A file being written. Only status and err are for reading; both survive commit and abort.
typedef struct npy_writer {
  int status;     // the first failure, or NPY_OK
  char err[256];  // its message, "" while there is none
  FILE *file;     // private
  char *temp;     // private: name of the temporary file, NULL when writing directly
  char *path;     // private: name it gets in the end
  int64_t left;   // private: data bytes still to come; -1: finished, -2: any number of bytes
  unsigned char *head, *head_end;  // private: prefix and header, until they are written
  size_t head_bytes;               // private
  void *map;      // private: the mapped file, and its length
  size_t map_bytes;
  int lock;       // private: holds the temporary file's lock until it is renamed; 0: none
  int64_t begin;  // private: of the data in a shared file, and its bytes
  int64_t bytes;
} npy_writer;

// Starts a file of native byte order with the `rank` extents of `shape` (may be NULL for rank 0).
// The bytes go to a hidden temporary file in the same directory, which commit renames to `path`:
// readers see the old file or the whole new one. (There is no fsync, so that holds when a process
// dies, not when the power fails; a killed process may leave ".npy-*.tmp" behind, which the next
// write to the directory from that host removes, where there is flock: a writer holds its lock.)
// The temporary name is random and the file is created for it: nothing that lies there is followed
// or replaced.
// A symbolic link at `path` is followed. A replaced file keeps its permission bits as far as the
// umask allows; a file without write permission is refused. "-", "/dev/stdout" and "/dev/fd/1" mean
// standard output, "/dev/fd/N" the open file N, where it stands; devices, pipes and other links
// below /dev and /proc are written directly. Where the order makes no difference (fewer than two
// extents above 1, or no elements), the file says C order, as NumPy's does.
// Nothing is written before data comes or the file is finished: what is dropped before that leaves
// pipes and standard output untouched. A failure is remembered in w->status and returned by all
// later calls, so it suffices to check commit. Old content of *w is overwritten, not freed.
int npy_write_begin(npy_writer *w, const char *path, int dtype, int rank, const int64_t *shape,
                    int fortran_order);

// As npy_write_begin, for a file of any kind: no header, and as many bytes as come.
int npy_write_begin_bytes(npy_writer *w, const char *path);

// The stream of a file begun with npy_write_begin_bytes, for fprintf and its like; what fails there
// is noticed when the file is finished. NULL when there is none.
FILE *npy_write_stream(npy_writer *w);

// Instead of npy_write_data: all data still to come as memory, zeroed, which is the file itself.
// Space for it is reserved first, so that a full disk is an error here and no fault later. Its
// start is aligned to 64 where no data was written before. It is valid until finish, commit or
// abort. NULL where that cannot be (no regular file, no such call on the system, no data): then
// npy_write_data serves. NULL also on failure: see w->status.
void *npy_write_map(npy_writer *w);

// Instead of npy_write_data: several processes write the data, each its parts. The one that began
// the file gives the others the name that it has until commit, and the byte at which its data
// begins; space for all of it is reserved first. NULL where that cannot be: no regular file, no
// such call, no data, or a failure, see w->status. The name is the writer's. Its finish takes the
// data to be complete, unless it has begun to write it by npy_write_data.
const char *npy_write_share(npy_writer *w, int64_t *begin);

// Another process: opens a file by that name, whose data has `bytes` bytes. Its finish and commit
// close the file, and its abort, nothing else: it is for the first process to keep or to drop.
int npy_write_join(npy_writer *w, const char *name, int64_t begin, int64_t bytes);

// Writes `bytes` bytes of a shared file, from byte `at` of its data on; data has them. Bytes that
// several processes write are alike.
int npy_write_part(npy_writer *w, int64_t at, const void *data, size_t bytes);

// Appends `bytes` bytes of elements; may be called often, also with parts of an element. Bytes
// beyond what the shape needs are an error.
int npy_write_data(npy_writer *w, const void *data, size_t bytes);

// Checks that the data is complete, flushes and closes, all but the new name: finishing several
// writers before the first commit leaves little that can fail between their commits. Optional.
int npy_write_finish(npy_writer *w);

// Finishes if that is still to do, and renames. On failure no new file is left behind. Either way
// the writer owns nothing afterwards.
int npy_write_commit(npy_writer *w);

// Drops a file that is being written. Harmless after commit, abort or a failed begin.
void npy_write_abort(npy_writer *w);

#ifdef __cplusplus
}
#endif

#endif  // NPY_H

#if defined(NPY_IMPLEMENTATION) && !defined(NPYI_IMPLEMENTED)
#define NPYI_IMPLEMENTED

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__unix__) || defined(__APPLE__)
#define NPYI_POSIX 1
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#define NPYI_POSIX 0
#endif
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#ifndef NPY_MALLOC
#define NPY_MALLOC(n) malloc(n)
#define NPY_FREE(p) free(p)
#endif
#ifndef NPY_MAX_HEADER
#define NPY_MAX_HEADER (16u << 20)
#endif

#define NPYI_CHUNK ((size_t)256 << 10)  // bytes per read; a multiple of every element size
#define NPYI_QUOTE 64                   // most characters of a file that a message repeats
#define NPYI_NEST 32                    // deepest brackets followed in a structured dtype
#define NPYI_LINKS 40                   // most symbolic links followed to a target

enum { NPYI_FINISHED = -1, NPYI_ANY = -2 };  // npy_writer.left

#if defined(__GNUC__) && !defined(_WIN32)
#define NPYI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define NPYI_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef _WIN32
// rename() does not replace files there. Declared by hand because windows.h brings in too much.
__declspec(dllimport) int __stdcall MoveFileExA(const char *, const char *, unsigned long);
#endif

typedef struct npyi_err {
  char *buf;
  size_t len;
} npyi_err;

// Writes the message and returns `code`, for use in return statements.
NPYI_PRINTF(3, 4) static int npyi_fail(npyi_err *e, int code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (e->len > 0) (void)vsnprintf(e->buf, e->len, fmt, ap);
  va_end(ap);
  return code;
}

// "cannot <what>: <reason>". The C library need not set errno, and strerror(0) says "Success".
static int npyi_fail_io(npyi_err *e, const char *what) {
  return npyi_fail(e, NPY_IO, "cannot %s: %s", what, errno ? strerror(errno) : "unknown error");
}

typedef struct npyi_type {
  char code[4];
  unsigned char dtype, size, unit;  // unit: the bytes that a change of byte order reverses
} npyi_type;

static const npyi_type npyi_types[] = {
  {"b1", NPY_BOOL, 1, 1}, {"u1", NPY_U8, 1, 1},  {"i1", NPY_I8, 1, 1},  {"i2", NPY_I16, 2, 2},
  {"i4", NPY_I32, 4, 4},  {"i8", NPY_I64, 8, 8}, {"f2", NPY_F16, 2, 2}, {"f4", NPY_F32, 4, 4},
  {"f8", NPY_F64, 8, 8},  {"c8", NPY_C64, 8, 4}, {"c16", NPY_C128, 16, 8},
  {"V2", NPY_BF16, 2, 2}};

// Types that NumPy writes and this reader knows but refuses. One letter stands for any size.
static const struct npyi_refusal {
  const char *code, *why;
} npyi_refusals[] = {
  {"u2", "uint16 is not supported: convert to int32"},
  {"u4", "uint32 is not supported: convert to int64"},
  {"u8", "uint64 is not supported: convert to int64 or float64"},
  {"f12", "long double (float96) is not supported: convert to float64"},
  {"f16", "long double (float128) is not supported: convert to float64"},
  {"c24", "long double complex (complex192) is not supported: convert to complex128"},
  {"c32", "long double complex (complex256) is not supported: convert to complex128"},
  {"O", "object dtype is not supported (it needs pickle, which runs code)"},
  {"S", "byte string dtype is not supported"},
  {"a", "byte string dtype is not supported"},
  {"U", "unicode string dtype is not supported"},
  {"M", "datetime64 is not supported: convert to int64"},
  {"m", "timedelta64 is not supported: convert to int64"},
  {"V", "void dtype is not supported"}};

static const npyi_type *npyi_type_of(int dtype) {
  size_t i;
  for (i = 0; i < sizeof npyi_types / sizeof *npyi_types; i++)
    if (npyi_types[i].dtype == dtype) return &npyi_types[i];
  return NULL;
}

size_t npy_itemsize(int dtype) {
  const npyi_type *t = npyi_type_of(dtype);
  return t ? t->size : 0;
}

static int npyi_little(void) {
  const uint16_t one = 1;
  unsigned char low;
  memcpy(&low, &one, 1);
  return low == 1;
}

// Counts elements; every partial product, zeros left out, must fit so that strides fit, too.
static int npyi_count(const int64_t *shape, int rank, size_t size, int64_t *count, npyi_err *e) {
  int64_t n = 1, most = INT64_MAX / (int64_t)size;
  int i, empty = 0;
  for (i = 0; i < rank; i++) {
    if (shape[i] < 0) return npyi_fail(e, NPY_BAD, "extent %d of the shape is negative", i);
    if (shape[i] > 0 && n > most / shape[i])
      return npyi_fail(e, NPY_BAD, "the shape overflows: its size in bytes needs over 63 bits");
    if (shape[i] > 0) n *= shape[i];
    empty |= shape[i] == 0;
  }
  *count = empty ? 0 : n;
  return NPY_OK;
}

// ---- header: tokenizer and parser for the dictionary literal

typedef struct npyi_lex {
  const char *s;
  size_t n, pos;     // length of s; where the next token is looked for
  int kind;          // 's' string, 'n' number, 'w' word, 'e' end, or the punctuation itself
  size_t at;         // where the current token starts
  const char *text;  // its text, a string's without quotes
  size_t len;
  int status;        // the first error; it stays, and the kind is '!' from then on
  npyi_err *e;
} npyi_lex;

// Copies text for a message: cut when long, and no control bytes that a terminal would obey.
static const char *npyi_quote(char out[NPYI_QUOTE + 4], const char *s, size_t n) {
  size_t i, k = n > NPYI_QUOTE ? (size_t)NPYI_QUOTE : n;
  for (i = 0; i < k; i++) out[i] = (char)(s[i] >= ' ' && s[i] <= '~' ? s[i] : '?');
  memcpy(out + k, n > k ? "..." : "", n > k ? 4 : 1);
  return out;
}

// Reports "<what><more>" at the current token, unless an earlier error stands.
static int npyi_bad(npyi_lex *lx, const char *what, const char *more) {
  if (lx->status != NPY_OK) return lx->status;
  lx->kind = '!';
  return lx->status = npyi_fail(lx->e, NPY_BAD, "header byte %" PRIu64 ": %s%s",
                                (uint64_t)lx->at, what, more);
}

// As npyi_bad, with the text of the current token in the message.
static int npyi_bad_token(npyi_lex *lx, const char *what) {
  char q[NPYI_QUOTE + 4], more[NPYI_QUOTE + 16];
  (void)npyi_quote(q, lx->s + lx->at, lx->pos - lx->at);
  (void)snprintf(more, sizeof more, lx->kind == 'e' ? ", the header ends" : ", found %s", q);
  return npyi_bad(lx, what, more);
}

static int npyi_is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Moves to the next token and returns its kind.
static int npyi_next(npyi_lex *lx) {
  const char *s = lx->s;
  char c, q[8];
  if (lx->status != NPY_OK) return '!';
  while (lx->pos < lx->n && s[lx->pos] && strchr(" \t\n\r\f", s[lx->pos])) lx->pos++;
  lx->at = lx->pos;
  if (lx->pos == lx->n) return lx->kind = 'e';
  lx->text = s + lx->pos;
  c = *lx->text;
  while (lx->pos < lx->n && npyi_is_word(s[lx->pos])) lx->pos++;
  lx->len = lx->pos - lx->at;
  if (lx->len == 1 && c == 'u' && lx->pos < lx->n && strchr("'\"", s[lx->pos])) {
    c = s[lx->pos];  // u'...' of Python 2
    lx->len = 0;
  }
  if (lx->len > 0) return lx->kind = c >= '0' && c <= '9' ? 'n' : 'w';
  lx->pos++;
  lx->len = 1;
  if (c && strchr("{}()[],:-", c)) return lx->kind = c;
  if (c == '\'' || c == '"') {
    lx->text = s + lx->pos;
    // Escapes are kept as they stand: no name that matters here needs any.
    while (lx->pos < lx->n && s[lx->pos] && s[lx->pos] != c && s[lx->pos] != '\n')
      lx->pos += s[lx->pos] == '\\' && lx->pos + 1 < lx->n ? 2 : 1;
    if (lx->pos < lx->n && s[lx->pos] == c) {
      lx->len = (size_t)(s + lx->pos++ - lx->text);
      return lx->kind = 's';
    }
    (void)npyi_bad(lx, lx->pos < lx->n && !s[lx->pos] ? "NUL in a string" : "unclosed string", "");
  } else {
    (void)snprintf(q, sizeof q, "0x%02x", (unsigned)(unsigned char)c);
    (void)npyi_bad(lx, c ? "unexpected byte " : "NUL byte ", q);
  }
  return lx->kind;
}

static int npyi_is(const npyi_lex *lx, const char *text) {
  return lx->len == strlen(text) && memcmp(lx->text, text, lx->len) == 0;
}

// The current token opens a list or tuple: finds its end, then refuses it by name.
static int npyi_structured(npyi_lex *lx) {
  char closer[NPYI_NEST], q[NPYI_QUOTE + 4], msg[NPYI_QUOTE + 48];
  const size_t start = lx->at;
  int depth = 0;
  for (;;) {
    const int kind = lx->kind;
    if (kind == '(' || kind == '[' || kind == '{') {
      if (depth == NPYI_NEST) return npyi_bad(lx, "brackets nested too deeply", "");
      closer[depth++] = (char)(kind == '(' ? ')' : kind == '[' ? ']' : '}');
    } else if (kind == ')' || kind == ']' || kind == '}') {
      if (closer[--depth] != kind) return npyi_bad_token(lx, "brackets do not match");
      if (depth == 0) break;
    } else if (kind == 'e' || kind == '!') {
      return npyi_bad_token(lx, "expected a closing bracket");
    }
    (void)npyi_next(lx);
  }
  lx->at = start;
  (void)snprintf(msg, sizeof msg, "structured dtype %s is not supported",
                 npyi_quote(q, lx->s + start, lx->pos - start));
  return npyi_bad(lx, msg, "");
}

static int npyi_descr(npyi_lex *lx, npy_array *a) {
  char q[NPYI_QUOTE + 4], msg[NPYI_QUOTE + 32];
  size_t i;
  char order = '=';
  if (lx->kind == '[' || lx->kind == '(') return npyi_structured(lx);
  if (lx->kind != 's') return npyi_bad_token(lx, "expected a string after 'descr'");
  (void)snprintf(msg, sizeof msg, "descr '%s': ", npyi_quote(q, lx->text, lx->len));
  if (lx->len > 0 && strchr("<>=|", *lx->text)) {
    order = *lx->text++;
    lx->len--;
  }
  for (i = 0; i < sizeof npyi_types / sizeof *npyi_types; i++) {
    const npyi_type *t = &npyi_types[i];
    if (!npyi_is(lx, t->code)) continue;
    a->dtype = t->dtype;
    a->itemsize = t->size;
    a->swapped = t->unit > 1 && order == (npyi_little() ? '>' : '<');
    return NPY_OK;
  }
  for (i = 0; i < sizeof npyi_refusals / sizeof *npyi_refusals; i++) {
    const char *code = npyi_refusals[i].code;
    if (code[1] ? npyi_is(lx, code) : lx->len > 0 && *lx->text == *code)
      return npyi_bad(lx, msg, npyi_refusals[i].why);
  }
  return npyi_bad(lx, msg, "this dtype is not known");
}

static int npyi_fortran(npyi_lex *lx, npy_array *a) {
  a->fortran_order = lx->kind == 'w' && npyi_is(lx, "True");
  if (a->fortran_order || (lx->kind == 'w' && npyi_is(lx, "False"))) return NPY_OK;
  return npyi_bad_token(lx, "expected True or False after 'fortran_order'");
}

static int npyi_extent(npyi_lex *lx, int64_t *out) {
  size_t i, n = lx->len;
  int64_t v = 0;
  if (lx->kind == '-') return npyi_bad(lx, "negative extent in shape", "");
  if (lx->kind != 'n') return npyi_bad_token(lx, "expected an extent in shape");
  if (lx->text[n - 1] == 'L' || lx->text[n - 1] == 'l') n--;  // Python 2 long
  for (i = 0; i < n; i++) {
    const int digit = lx->text[i] - '0';
    if (digit < 0 || digit > 9 || (i > 0 && lx->text[0] == '0'))
      return npyi_bad_token(lx, "extent is not a plain decimal integer");
    if (v > (INT64_MAX - digit) / 10) return npyi_bad_token(lx, "extent does not fit in 63 bits");
    v = v * 10 + digit;
  }
  *out = v;
  return NPY_OK;
}

static int npyi_shape(npyi_lex *lx, npy_array *a) {
  size_t i, most = 1;
  int comma = 0;
  if (lx->kind != '(') return npyi_bad_token(lx, "expected a tuple after 'shape'");
  // Commas up to the bracket bound the rank, and so does "1," for each extent: memory stays within
  // four times the bytes that have arrived, whatever stands there.
  for (i = lx->pos; i < lx->n && lx->s[i] != ')'; i++) most += lx->s[i] == ',';
  if (most > (i - lx->pos) / 2 + 1) most = (i - lx->pos) / 2 + 1;
  a->shape = (int64_t *)NPY_MALLOC(most * sizeof *a->shape);
  if (!a->shape) return lx->status = npyi_fail(lx->e, NPY_MEM, "out of memory for the shape");
  (void)npyi_next(lx);
  while (lx->kind != ')') {
    if (npyi_extent(lx, &a->shape[a->rank]) != NPY_OK) return lx->status;
    a->rank++;
    comma = npyi_next(lx) == ',';
    if (comma) (void)npyi_next(lx);
    else if (lx->kind != ')') return npyi_bad_token(lx, "expected ',' or ')' in shape");
  }
  if (a->rank == 1 && !comma)
    return npyi_bad(lx, "shape is a number, not a tuple: rank 1 is written (n,)", "");
  return NPY_OK;
}

// Reads the whole header text into *a.
static int npyi_dict(npyi_lex *lx, npy_array *a) {
  static const char *const keys[3] = {"descr", "fortran_order", "shape"};
  int seen[3] = {0, 0, 0}, k, r;
  if (npyi_next(lx) != '{') return npyi_bad_token(lx, "expected '{'");
  (void)npyi_next(lx);
  while (lx->kind != '}') {
    if (lx->kind != 's') return npyi_bad_token(lx, "expected a key");
    for (k = 0; k < 3 && !npyi_is(lx, keys[k]); k++) continue;
    if (k == 3) return npyi_bad_token(lx, "unknown key");
    if (seen[k]) return npyi_bad_token(lx, "duplicate key");
    seen[k] = 1;
    if (npyi_next(lx) != ':') return npyi_bad_token(lx, "expected ':' after a key");
    (void)npyi_next(lx);
    r = k == 0 ? npyi_descr(lx, a) : k == 1 ? npyi_fortran(lx, a) : npyi_shape(lx, a);
    if (r != NPY_OK) return r;
    if (npyi_next(lx) == ',') (void)npyi_next(lx);
    else if (lx->kind != '}') return npyi_bad_token(lx, "expected ',' or '}'");
  }
  for (k = 0; k < 3; k++)
    if (!seen[k]) return npyi_bad(lx, "missing key ", keys[k]);
  if (npyi_next(lx) != 'e') return npyi_bad_token(lx, "expected nothing after the dictionary");
  r = npyi_count(a->shape, a->rank, a->itemsize, &a->count, lx->e);
  a->nbytes = a->count * (int64_t)a->itemsize;
  return r;
}

// ---- reading

// Where bytes come from: a stream, or memory when file is NULL.
typedef struct npyi_src {
  FILE *file;
  const unsigned char *mem;
  int64_t left;    // bytes known to remain; -1 when only reading tells
  int64_t offset;  // bytes taken so far
} npyi_src;

// Returns less than n only at the end or, with ferror() set, after a failure.
static size_t npyi_get(npyi_src *s, void *to, size_t n) {
  errno = 0;
  if (s->file) {
    n = fread(to, 1, n, s->file);
  } else {
    if ((uint64_t)s->left < n) n = (size_t)s->left;
    if (n > 0) memcpy(to, s->mem + s->offset, n);
  }
  s->offset += (int64_t)n;
  if (s->left >= 0) s->left = s->left > (int64_t)n ? s->left - (int64_t)n : 0;
  return n;
}

// Reports fewer bytes than needed: "file has <have> bytes of <what> needs <need>".
static int npyi_short(npyi_src *s, uint64_t have, const char *what, uint64_t need, npyi_err *e) {
  if (s->file && ferror(s->file)) return npyi_fail_io(e, "read");
  return npyi_fail(e, NPY_BAD, "file has %" PRIu64 " bytes of %s needs %" PRIu64, have, what,
                   need);
}

static void npyi_swap(unsigned char *p, size_t n, size_t unit) {
  size_t i, k;
  for (i = 0; i < n; i += unit)
    for (k = 0; k < unit / 2; k++) {
      const unsigned char t = p[i + k];
      p[i + k] = p[i + unit - 1 - k];
      p[i + unit - 1 - k] = t;
    }
}

// Reads `need` bytes to new memory, reversing each `unit` of them. Without a known size the buffer
// doubles as bytes arrive, because `need` is only what the file claims.
static int npyi_fill(npyi_src *s, uint64_t need, size_t unit, const char *what, void **out,
                     npyi_err *e) {
  unsigned char *buf = NULL, *more;
  size_t cap = 0, got = 0, piece, r;
  if (s->left >= 0 && (uint64_t)s->left < need)
    return npyi_short(s, (uint64_t)s->left, what, need, e);
  if (need > (uint64_t)PTRDIFF_MAX)
    return npyi_fail(e, NPY_MEM, "%" PRIu64 " bytes do not fit in this address space", need);
  do {
    if (got == cap) {
      size_t next = cap ? cap * 2 : NPYI_CHUNK;
      if (s->left >= 0 || next > need) next = (size_t)need;
      more = (unsigned char *)NPY_MALLOC(next ? next : 1);
      if (more && got > 0) memcpy(more, buf, got);
      if (buf) NPY_FREE(buf);
      if (!more) return npyi_fail(e, NPY_MEM, "out of memory for %" PRIu64 " bytes", need);
      buf = more;
      cap = next;
    }
    piece = cap - got < NPYI_CHUNK ? cap - got : NPYI_CHUNK;
    r = npyi_get(s, buf + got, piece);
    if (r < piece) {
      NPY_FREE(buf);
      return npyi_short(s, got + r, what, need, e);
    }
    if (unit > 1) npyi_swap(buf + got, r, unit);
    got += r;
  } while (got < need);
  *out = buf;
  return NPY_OK;
}

static int npyi_header(npyi_src *s, npy_array *a, npyi_err *e) {
  unsigned char p[8];
  uint32_t length = 0;
  size_t i, wide, got = npyi_get(s, p, 8);
  npyi_lex lx;
  void *text = NULL;
  int r;
  if (got < 8 && s->file && ferror(s->file)) return npyi_fail_io(e, "read");
  if (got == 0) return npyi_fail(e, NPY_BAD, "file is empty");
  if (got >= 4 && memcmp(p, "PK\003\004", 4) == 0)
    return npyi_fail(e, NPY_BAD, "this is a zip file (.npz?), not a .npy file");
  if (memcmp(p, "\223NUMPY", got < 6 ? got : 6) != 0)
    return npyi_fail(e, NPY_BAD, "not a .npy file: it does not start with \\x93NUMPY");
  if (got < 8) return npyi_short(s, got, "magic and version, a .npy file", 8, e);
  if (p[6] < 1 || p[6] > 3 || p[7] != 0)
    return npyi_fail(e, NPY_BAD, "format version %d.%d is not supported", p[6], p[7]);
  wide = p[6] == 1 ? 2 : 4;
  got = npyi_get(s, p, wide);
  if (got < wide) return npyi_short(s, got, "header length, a .npy file", wide, e);
  for (i = wide; i > 0; i--) length = length << 8 | p[i - 1];
  if (length > NPY_MAX_HEADER)
    return npyi_fail(e, NPY_BAD, "header length %" PRIu32 " is over the limit of %" PRIu32, length,
                     (uint32_t)NPY_MAX_HEADER);
  r = npyi_fill(s, length, 1, "header, its length field", &text, e);
  if (r != NPY_OK) return r;
  memset(&lx, 0, sizeof lx);
  lx.s = (const char *)text;
  lx.n = length;
  lx.e = e;
  r = npyi_dict(&lx, a);
  NPY_FREE(text);
  return r;
}

// Tries to map the data; 0 when it has to be read instead.
static int npyi_map(npyi_src *s, npy_array *a, size_t unit) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP)
  void *p;
  if (!s->file || s->left < a->nbytes || a->nbytes == 0 || a->swapped) return 0;
  if ((uint64_t)s->offset % unit != 0 || a->nbytes > PTRDIFF_MAX - s->offset) return 0;
  // From the start of the file, because the data hardly ever starts on a page.
  a->map_bytes = (size_t)(s->offset + a->nbytes);
  p = mmap(NULL, a->map_bytes, PROT_READ, MAP_PRIVATE, fileno(s->file), 0);
  if (p == MAP_FAILED) return 0;
  a->map = p;
  a->data = (unsigned char *)p + s->offset;
  return a->mapped = 1;
#else
  return (void)s, (void)a, (void)unit, 0;
#endif
}

// A file without a name, there until it is closed and no longer mapped; NULL where that cannot be.
static FILE *npyi_unnamed(void) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
  const char *dir = getenv("TMPDIR");
  char *name;
  FILE *f = NULL;
  size_t n;
  int fd;
  if (dir == NULL || dir[0] == 0) dir = "/tmp";
  n = strlen(dir);
  name = (char *)NPY_MALLOC(n + sizeof "/.npy-XXXXXX");
  if (name == NULL) return NULL;
  memcpy(name, dir, n);
  memcpy(name + n, "/.npy-XXXXXX", sizeof "/.npy-XXXXXX");
  fd = mkstemp(name);
  if (fd >= 0) {
    (void)unlink(name);
    if ((f = fdopen(fd, "w+b")) == NULL) (void)close(fd);
  }
  NPY_FREE(name);
  return f;
#else
  return NULL;
#endif
}

static void *npyi_map_all(FILE *f, size_t bytes, int writes) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP)
  void *p = mmap(NULL, bytes, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED, fileno(f), 0);
  return p == MAP_FAILED ? NULL : p;
#else
  return (void)f, (void)bytes, (void)writes, NULL;
#endif
}

// Copies the data to `to`, reversing each `unit` of them, and maps it.
static int npyi_copy_apart(npyi_src *s, npy_array *a, size_t unit, FILE *to, npyi_err *e) {
  unsigned char *piece = (unsigned char *)NPY_MALLOC(NPYI_CHUNK);
  int64_t got = 0;
  int r = piece == NULL ? npyi_fail(e, NPY_MEM, "out of memory") : NPY_OK;
  while (r == NPY_OK && got < a->nbytes) {
    const int64_t left = a->nbytes - got;
    const size_t n = left < (int64_t)NPYI_CHUNK ? (size_t)left : NPYI_CHUNK;
    const size_t have = npyi_get(s, piece, n);
    got += (int64_t)have;
    if (have < n) {
      r = npyi_short(s, (uint64_t)got, "data, shape", (uint64_t)a->nbytes, e);
    } else {
      if (unit > 1) npyi_swap(piece, n, unit);
      errno = 0;
      if (fwrite(piece, 1, n, to) != n) r = npyi_fail_io(e, "write a temporary file");
    }
  }
  errno = 0;
  if (r == NPY_OK && fflush(to) != 0) r = npyi_fail_io(e, "write a temporary file");
  if (piece) NPY_FREE(piece);
  if (r != NPY_OK) return r;
  a->map_bytes = (size_t)a->nbytes;
  a->data = a->map = npyi_map_all(to, a->map_bytes, 0);
  a->mapped = 1;
  return a->map ? NPY_OK : npyi_fail_io(e, "map a temporary file");
}

void *npy_apart(size_t bytes) {
  void *p = NULL;
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
  FILE *f = bytes == 0 || bytes > PTRDIFF_MAX ? NULL : npyi_unnamed();
  if (f == NULL) return NULL;
  if (posix_fallocate(fileno(f), 0, (off_t)bytes) == 0) p = npyi_map_all(f, bytes, 1);
  (void)fclose(f);  // the mapping outlives it
#else
  (void)bytes;
#endif
  return p;
}

enum { NPYI_DATA, NPYI_HEADER, NPYI_APART };  // what is read

static int npyi_read(npyi_src *s, npy_array *a, int what, npyi_err *e) {
  FILE *apart = NULL;
  int r;
  memset(a, 0, sizeof *a);
  r = npyi_header(s, a, e);
  if (r == NPY_OK && what != NPYI_HEADER) {
    const size_t unit = npyi_type_of(a->dtype)->unit, swap = a->swapped ? unit : 1;
    if (npyi_map(s, a, unit)) return r;
    if (what == NPYI_APART && a->nbytes > 0) apart = npyi_unnamed();
    if (apart) r = npyi_copy_apart(s, a, swap, apart, e);
    else r = npyi_fill(s, (uint64_t)a->nbytes, swap, "data, shape", &a->data, e);
    if (apart) (void)fclose(apart);  // a mapping outlives it
  }
  if (r != NPY_OK) npy_close(a);
  return r;
}

static int npyi_open(npy_array *a, const char *path, int what, npyi_err *e) {
  npyi_src s = {NULL, NULL, -1, 0};
  int r;
  memset(a, 0, sizeof *a);
  errno = 0;
  s.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!s.file) return npyi_fail_io(e, "open");
#ifdef _WIN32
  if (s.file == stdin) (void)_setmode(_fileno(stdin), _O_BINARY);
#endif
#if NPYI_POSIX
  if (s.file != stdin) {
    struct stat st;
    // Some files of /proc are regular and say 0 bytes, whatever they hold.
    if (fstat(fileno(s.file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
      s.left = st.st_size;
  }
#endif
  r = npyi_read(&s, a, what, e);
  if (s.file != stdin) (void)fclose(s.file);  // only read from, and a mapping outlives it
  return r;
}

int npy_open(npy_array *a, const char *path, char *err, size_t errlen) {
  npyi_err e = {err, errlen};
  return npyi_open(a, path, NPYI_DATA, &e);
}

int npy_open_apart(npy_array *a, const char *path, char *err, size_t errlen) {
  npyi_err e = {err, errlen};
  return npyi_open(a, path, NPYI_APART, &e);
}

int npy_header_only(npy_array *a, const char *path, char *err, size_t errlen) {
  npyi_err e = {err, errlen};
  return npyi_open(a, path, NPYI_HEADER, &e);
}

int npy_parse(npy_array *a, const void *bytes, size_t n, char *err, size_t errlen) {
  npyi_err e = {err, errlen};
  npyi_src s = {NULL, (const unsigned char *)bytes, (int64_t)n, 0};
  return npyi_read(&s, a, NPYI_DATA, &e);
}

void npy_close(npy_array *a) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP)
  if (a->map) (void)munmap(a->map, a->map_bytes);
#endif
  if (a->data && !a->map) NPY_FREE(a->data);
  if (a->shape) NPY_FREE(a->shape);
  memset(a, 0, sizeof *a);
}

// ---- writing

// Builds prefix and header byte for byte as NumPy does, with the spaces that it leaves for the
// extent that may grow. They are the last *len bytes before *end; *mem is to be freed.
static int npyi_build(const npyi_type *t, int rank, const int64_t *shape, int fortran,
                      unsigned char **mem, unsigned char **end, size_t *len, npyi_err *e) {
  size_t cap = 256 + 22 * (size_t)rank, n, pad, i, prefix = 10;
  char *text;
  if ((size_t)rank > NPY_MAX_HEADER / 32u)
    return npyi_fail(e, NPY_BAD, "rank %d is too large for a header", rank);
  if (!(*mem = (unsigned char *)NPY_MALLOC(cap))) return npyi_fail(e, NPY_MEM, "out of memory");
  text = (char *)*mem + 12;
  cap -= 12;
  n = (size_t)snprintf(text, cap, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                       t->size == 1 ? '|' : npyi_little() ? '<' : '>', t->code,
                       fortran ? "True" : "False");
  for (i = 0; i < (size_t)rank; i++)
    n += (size_t)snprintf(text + n, cap - n, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  n += (size_t)snprintf(text + n, cap - n, rank == 1 ? ",), }" : "), }");
  if (rank > 0) {
    pad = 21 - (size_t)snprintf(NULL, 0, "%" PRId64, shape[fortran ? rank - 1 : 0]);
    memset(text + n, ' ', pad);
    n += pad;
  }
  pad = 64 - (prefix + n + 1) % 64;  // 64, not 0, when it fits already: so does NumPy
  if (n + pad + 1 > 65535) {
    prefix = 12;
    pad = 64 - (prefix + n + 1) % 64;
  }
  memset(text + n, ' ', pad);
  n += pad;
  text[n++] = '\n';
  *end = (unsigned char *)text + n;
  *len = prefix + n;
  memcpy(*end - *len, prefix == 10 ? "\223NUMPY\001" : "\223NUMPY\002", 8);
  for (i = 8; i < prefix; i++) (*end - *len)[i] = (unsigned char)(n >> 8 * (i - 8) & 255);
  return NPY_OK;
}

// Opens a new file, failing with EEXIST when there is one.
static FILE *npyi_create(const char *name, unsigned mode) {
#if NPYI_POSIX
  const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
  if (fd >= 0 && !f) {
    (void)close(fd);
    (void)unlink(name);
  }
#else
  FILE *f = fopen(name, "rb");  // plain C99 has nothing that is free of the race
  (void)mode;
  if (!f) return fopen(name, "wb");
  (void)fclose(f);
  f = NULL;
  errno = EEXIST;
#endif
  return f;
}

// Bits that nobody can foresee, where the system has them. Names made of them need not be secret:
// npyi_create takes none that is there. But nobody can lay a hundred of them in the way.
static uint64_t npyi_random(const void *salt) {
  uint64_t bits = 0;
#if NPYI_POSIX
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, &bits, sizeof bits) != (ssize_t)sizeof bits) bits = 0;
  if (fd >= 0) (void)close(fd);
#endif
  return bits ^ (uint64_t)time(NULL) << 20 ^ (uint64_t)clock() ^ (uint64_t)(uintptr_t)salt;
}

#define NPYI_TEMP ".npy-%08" PRIx32  // of a host; 13 random digits and ".tmp" follow

// A number for this host: a lock may say nothing of a process of another.
static uint32_t npyi_host(void) {
  uint32_t hash = 2166136261u;
#if NPYI_POSIX
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) name[0] = 0;
  for (size_t i = 0; name[i] != 0; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
#endif
  return hash;
}

#if NPYI_POSIX && defined(LOCK_EX)
// Locks a temporary file as long as it is one; 0: another process has just taken it for a leftover.
static int npyi_hold(npy_writer *w) {
  struct stat st;
  const int fd = fileno(w->file);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  w->lock = fcntl(fd, F_DUPFD_CLOEXEC, 3);  // outlives the stream, which is closed before
  if (w->lock < 0) w->lock = 0;
  return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

// Removes what killed processes of this host have left in the directory: nobody holds its lock.
static void npyi_sweep(const char *folder) {
  char begin[32];
  DIR *all = opendir(folder);
  const int n = snprintf(begin, sizeof begin, NPYI_TEMP, npyi_host());
  if (!all) return;
  for (struct dirent *one; (one = readdir(all)) != NULL;) {
    const size_t length = strlen(one->d_name);
    struct stat st;
    if (strncmp(one->d_name, begin, (size_t)n) != 0 || length != (size_t)n + 17 ||
        strcmp(one->d_name + n + 13, ".tmp") != 0) continue;
    const int fd = openat(dirfd(all), one->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(dirfd(all), one->d_name, 0);
    (void)close(fd);
  }
  (void)closedir(all);
}
#endif

// Gives up a lock, and with it the right to a name.
static void npyi_release(npy_writer *w) {
#if NPYI_POSIX
  if (w->lock > 0) (void)close(w->lock);
#endif
  w->lock = 0;
}

// A temporary file of a name of its own, locked; 0: that one is taken.
static int npyi_take(npy_writer *w, const char *temp, unsigned mode) {
  w->file = npyi_create(temp, mode);
  if (!w->file) return errno != EEXIST;
#if NPYI_POSIX && defined(LOCK_EX)
  if (!npyi_hold(w)) {
    (void)fclose(w->file);
    w->file = NULL;
    return npyi_release(w), 0;
  }
#endif
  return 1;
}

// Opens a temporary file in the directory of `path` and keeps both names in *w.
static int npyi_open_temp(npy_writer *w, const char *path, unsigned mode, npyi_err *e) {
  const size_t n = strlen(path), room = 32;
  const char *separators = NPYI_POSIX ? "/" : "/\\:";
  uint64_t mix = npyi_random(w);
  size_t dir = n;
  char *temp;
  int tries = 100;
  while (dir > 0 && !strchr(separators, path[dir - 1])) dir--;
  w->path = (char *)NPY_MALLOC(n + 1);
  temp = (char *)NPY_MALLOC(dir + room);
  if (w->path && temp) {
    memcpy(w->path, path, n + 1);
    memcpy(temp, path, dir);
#if NPYI_POSIX && defined(LOCK_EX)
    memcpy(temp + dir, ".", 2);
    npyi_sweep(temp);
#endif
    do {
      mix = mix * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      (void)snprintf(temp + dir, room, NPYI_TEMP "%013" PRIx64 ".tmp", npyi_host(), mix >> 12);
      errno = 0;
    } while (!npyi_take(w, temp, mode) && --tries > 0);
    if (w->file) return w->temp = temp, NPY_OK;  // only now it is ours to remove
    (void)npyi_fail_io(e, "create a file in the directory of the target");
    return NPY_FREE(temp), NPY_IO;
  }
  if (temp) NPY_FREE(temp);
  return npyi_fail(e, NPY_MEM, "out of memory");
}

#if NPYI_POSIX
// The number of the open file that `path` names by convention, else -1.
static int npyi_descriptor(const char *path) {
  static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
  size_t i, k, n;
  int fd = 0;
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  for (i = 0; i < sizeof folder / sizeof *folder; i++) {
    n = strlen(folder[i]);
    if (strncmp(path, folder[i], n) != 0) continue;
    for (k = n; path[k] >= '0' && path[k] <= '9' && fd < 1000000; k++)
      fd = 10 * fd + (path[k] - '0');
    return k > n && path[k] == '\0' ? fd : -1;
  }
  return -1;
}

static int npyi_target(npy_writer *w, const char *path, int links, npyi_err *e);

// Goes on with what the symbolic link `path` names, relative to the directory of the link.
static int npyi_link(npy_writer *w, const char *path, int links, npyi_err *e) {
  const size_t most = 4096;
  const char *slash = strrchr(path, '/');
  const size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
  char *to = (char *)NPY_MALLOC(dir + most);
  ssize_t n;
  int r;
  if (!to) return npyi_fail(e, NPY_MEM, "out of memory");
  memcpy(to, path, dir);
  n = readlink(path, to + dir, most);
  errno = n < 0 ? errno : n == (ssize_t)most ? ENAMETOOLONG : links == 0 ? ELOOP : 0;
  if (errno == 0) {
    to[dir + (size_t)n] = '\0';
    r = npyi_target(w, to[dir] == '/' ? to + dir : to, links - 1, e);
  } else {
    r = npyi_fail_io(e, "follow the symbolic link");
  }
  NPY_FREE(to);
  return r;
}
#endif

// Decides whether `path` is written directly or through a temporary file, and opens that. Calls
// itself for what a symbolic link names; `links` is how many more of them it may follow.
static int npyi_target(npy_writer *w, const char *path, int links, npyi_err *e) {
  unsigned mode = 0666;
  int direct = 0, to_stdout = links == NPYI_LINKS && strcmp(path, "-") == 0;
#if NPYI_POSIX
  const int fd = npyi_descriptor(path);
  struct stat st;
  to_stdout |= fd == STDOUT_FILENO;
#else
  to_stdout |= strcmp(path, "/dev/stdout") == 0;
#endif
  if (to_stdout) {
#ifdef _WIN32
    (void)_setmode(_fileno(stdout), _O_BINARY);
#endif
    w->file = stdout;
    return NPY_OK;
  }
#if NPYI_POSIX
  if (fd >= 0) {  // not opened anew, which would cut off what is there
    const int own = dup(fd);
    errno = 0;
    w->file = own < 0 ? NULL : fdopen(own, "wb");
    if (own >= 0 && !w->file) (void)close(own);
    return w->file ? NPY_OK : npyi_fail_io(e, "open");
  }
  if (lstat(path, &st) == 0) {
    const int is_link = S_ISLNK(st.st_mode);
    if (is_link && stat(path, &st) != 0) return npyi_fail_io(e, "follow the symbolic link");
    // Links there name what a process has open: their target must be written, not replaced.
    direct = !S_ISREG(st.st_mode) ||
             (is_link && (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0));
    if (!direct && is_link) return npyi_link(w, path, links, e);
    if (!direct && access(path, W_OK) != 0) return npyi_fail_io(e, "replace the file");
    mode = (unsigned)st.st_mode & 0777;
  }
#else
  (void)links;
#ifdef _WIN32
  direct = strcmp(path, "NUL") == 0 || strcmp(path, "nul") == 0;
#endif
#endif
  errno = *path ? 0 : ENOENT;
  if (*path && !direct) return npyi_open_temp(w, path, mode, e);
  if (*path) w->file = fopen(path, "wb");
  return w->file ? NPY_OK : npyi_fail_io(e, "open");
}

// Passes a status on; a failure is kept and drops the file.
static int npyi_settle(npy_writer *w, int r) {
  if (r != NPY_OK) npy_write_abort(w);
  if (r != NPY_OK) w->status = r;
  return r;
}

int npy_write_begin(npy_writer *w, const char *path, int dtype, int rank, const int64_t *shape,
                    int fortran_order) {
  const npyi_type *t = npyi_type_of(dtype);
  npyi_err e = {w->err, sizeof w->err};
  int64_t count = 0;
  int i, wide = 0, r;
  memset(w, 0, sizeof *w);
  if (!t)
    r = npyi_fail(&e, NPY_BAD, "dtype %d is not known", dtype);
  else if (rank < 0)
    r = npyi_fail(&e, NPY_BAD, "rank %d is negative", rank);
  else
    r = npyi_count(shape, rank, t->size, &count, &e);
  if (r != NPY_OK) return npyi_settle(w, r);
  for (i = 0; i < rank; i++) wide += shape[i] > 1;
  w->left = count * t->size;
  r = npyi_build(t, rank, shape, fortran_order && wide > 1 && count > 0, &w->head, &w->head_end,
                 &w->head_bytes, &e);
  if (r == NPY_OK) r = npyi_target(w, path, NPYI_LINKS, &e);
  return npyi_settle(w, r);
}

int npy_write_begin_bytes(npy_writer *w, const char *path) {
  npyi_err e = {w->err, sizeof w->err};
  memset(w, 0, sizeof *w);
  w->left = NPYI_ANY;
  return npyi_settle(w, npyi_target(w, path, NPYI_LINKS, &e));
}

FILE *npy_write_stream(npy_writer *w) {
  return w->status == NPY_OK && w->left == NPYI_ANY ? w->file : NULL;
}

// Writes prefix and header where they are still to be written.
static int npyi_write_head(npy_writer *w, npyi_err *e) {
  int r = NPY_OK;
  if (w->status != NPY_OK) return w->status;
  if (!w->file) return npyi_fail(e, NPY_BAD, "no file is being written");
  errno = 0;
  if (w->head && fwrite(w->head_end - w->head_bytes, 1, w->head_bytes, w->file) != w->head_bytes)
    r = npyi_fail_io(e, "write");
  if (w->head) NPY_FREE(w->head);
  w->head = NULL;
  return r;
}

int npy_write_data(npy_writer *w, const void *data, size_t bytes) {
  npyi_err e = {w->err, sizeof w->err};
  int r = npyi_write_head(w, &e);
  if (w->status != NPY_OK) return w->status;
  if (r != NPY_OK) return npyi_settle(w, r);
  errno = 0;
  if (w->left != NPYI_ANY && bytes > (uint64_t)w->left)
    r = npyi_fail(&e, NPY_BAD, "%" PRIu64 " bytes of data are too many: the shape takes %" PRId64
                  " more", (uint64_t)bytes, w->left);
  else if (bytes > 0 && fwrite(data, 1, bytes, w->file) != bytes)
    r = npyi_fail_io(&e, "write");
  else if (w->left != NPYI_ANY)
    w->left -= (int64_t)bytes;
  return npyi_settle(w, r);
}

#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
// Writes the header and reserves space for the data, where there is a regular file; gives the byte
// at which data begins, or -1.
static int64_t npyi_reserve(npy_writer *w) {
  npyi_err e = {w->err, sizeof w->err};
  if (w->status != NPY_OK || !w->temp || w->left <= 0) return -1;
  int r = npyi_write_head(w, &e);
  errno = 0;
  if (r == NPY_OK && fflush(w->file) != 0) r = npyi_fail_io(&e, "write");
  const int64_t at = r == NPY_OK ? (int64_t)ftello(w->file) : -1;
  if (at < 0 || w->left > PTRDIFF_MAX - at) return npyi_settle(w, r), -1;
  errno = posix_fallocate(fileno(w->file), (off_t)at, (off_t)w->left);
  if (errno == ENOSPC || errno == EFBIG || errno == EIO) r = npyi_fail_io(&e, "write");
  const int there = errno == 0;  // other reasons: not on this file system
  return npyi_settle(w, r) == NPY_OK && there ? at : -1;
}
#endif

void *npy_write_map(npy_writer *w) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
  const int64_t at = npyi_reserve(w);
  if (at < 0) return NULL;
  void *p = mmap(NULL, (size_t)(at + w->left), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(w->file),
                 0);
  if (p == MAP_FAILED) return NULL;
  w->map = p;
  w->map_bytes = (size_t)(at + w->left);
  w->left = 0;
  return (unsigned char *)p + at;
#else
  (void)w;
  return NULL;
#endif
}

const char *npy_write_share(npy_writer *w, int64_t *begin) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP) && !defined(__APPLE__)
  const int64_t at = npyi_reserve(w);
  if (at < 0) return NULL;
  *begin = w->begin = at;
  w->bytes = w->left;
  return w->temp;
#else
  (void)w, (void)begin;
  return NULL;
#endif
}

int npy_write_join(npy_writer *w, const char *name, int64_t begin, int64_t bytes) {
  npyi_err e = {w->err, sizeof w->err};
  memset(w, 0, sizeof *w);
#if NPYI_POSIX
  struct stat st;
  const int fd = open(name, O_WRONLY | O_CLOEXEC);
  errno = 0;
  w->begin = begin;
  w->bytes = bytes;
  w->file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (fd >= 0 && !w->file) (void)close(fd);
  if (w->file && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == begin + bytes)
    return NPY_OK;
#else
  (void)name, (void)begin, (void)bytes;
#endif
  return npyi_settle(w, npyi_fail(&e, NPY_IO, "the file that another process began is not here"));
}

int npy_write_part(npy_writer *w, int64_t at, const void *data, size_t bytes) {
  npyi_err e = {w->err, sizeof w->err};
  if (w->status != NPY_OK) return w->status;
  if (!w->file || at < 0 || at > w->bytes || bytes > (uint64_t)(w->bytes - at))
    return npyi_settle(w, npyi_fail(&e, NPY_BAD, "no such part of a shared file"));
#if NPYI_POSIX
  for (size_t done = 0; done < bytes;) {
    errno = 0;
    const ssize_t n = pwrite(fileno(w->file), (const char *)data + done, bytes - done,
                             (off_t)(w->begin + at + (int64_t)done));
    if (n <= 0 && errno != EINTR) return npyi_settle(w, npyi_fail_io(&e, "write"));
    if (n > 0) done += (size_t)n;
  }
#else
  (void)data;
#endif
  return NPY_OK;
}

static void npyi_unmap(npy_writer *w) {
#if NPYI_POSIX && !defined(NPY_NO_MMAP)
  if (w->map) (void)munmap(w->map, w->map_bytes);
#endif
  w->map = NULL;
}

int npy_write_finish(npy_writer *w) {
  npyi_err e = {w->err, sizeof w->err};
  FILE *f = w->file;
  int r;
  if (w->status == NPY_OK && w->left == NPYI_FINISHED) return NPY_OK;
  r = npy_write_data(w, NULL, 0);  // an earlier failure, or no file
  if (r != NPY_OK) return r;
  if (w->left > 0 && w->left != w->bytes)
    return npyi_settle(w, npyi_fail(&e, NPY_BAD, "%" PRId64 " bytes of data are missing",
                                    w->left));
  npyi_unmap(w);
  errno = 0;
  if (fflush(f) != 0 || ferror(f)) return npyi_settle(w, npyi_fail_io(&e, "write"));
  w->file = NULL;  // fclose takes it away even when it fails
  if (f != stdout && fclose(f) != 0) return npyi_settle(w, npyi_fail_io(&e, "write"));
  w->left = NPYI_FINISHED;
  return NPY_OK;
}

int npy_write_commit(npy_writer *w) {
  npyi_err e = {w->err, sizeof w->err};
  int r = npy_write_finish(w);
  if (r != NPY_OK) return r;
  w->left = 0;
  errno = 0;
#ifdef _WIN32
  if (w->temp && !MoveFileExA(w->temp, w->path, 1))  // 1: replace what is there
#else
  if (w->temp && rename(w->temp, w->path) != 0)
#endif
    return npyi_settle(w, npyi_fail_io(&e, "rename"));
  if (w->temp) NPY_FREE(w->temp);
  w->temp = NULL;  // the name is gone, so there is nothing to remove
  npy_write_abort(w);
  return NPY_OK;
}

void npy_write_abort(npy_writer *w) {
  npyi_unmap(w);
  if (w->head) NPY_FREE(w->head);
  if (w->file && w->file != stdout) (void)fclose(w->file);
  if (w->temp) (void)remove(w->temp);
  npyi_release(w);
  if (w->temp) NPY_FREE(w->temp);
  if (w->path) NPY_FREE(w->path);
  w->head = NULL;
  w->file = NULL;
  w->temp = w->path = NULL;
}

#ifdef __cplusplus
}
#endif

#endif  // NPY_IMPLEMENTATION
