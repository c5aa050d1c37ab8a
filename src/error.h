// ================================================================================================
// >>error  mistakes and their messages
// Takes positions in a text; gives ein_error records with line, column, caret and hint.
// ================================================================================================

#define EINI_ERRORS_MAX 64
#define EINI_ERROR_TEXT 16384

static const char *const eini_status_text[] = {
#define EINI_STATUS_TEXT(id, text) text,
    EIN_STATUS_LIST(EINI_STATUS_TEXT)
#undef EINI_STATUS_TEXT
};

static const char *const eini_status_id[] = {
#define EINI_STATUS_ID(id, text) #id,
    EIN_STATUS_LIST(EINI_STATUS_ID)
#undef EINI_STATUS_ID
};

// Collects mistakes. With error NULL (no ctx) only the first status is kept. text is the source
// the positions refer to; max limits the number of records of one pass.
typedef struct eini_diag {
  ein_error *error;  // EINI_ERRORS_MAX records, or NULL
  char *buf;         // EINI_ERROR_TEXT bytes: strings of the records, then the whole message
  size_t used;
  int count, max;
  ein_status status; // the first mistake's
  char where[96];    // stands before every message, or ""
  const char *text;
  int64_t length;
} eini_diag;

static void eini_diag_reset(eini_diag *d, const char *text, int64_t length) {
  d->used = 0;
  d->count = 0;
  d->max = 1;
  d->status = EIN_OK;
  d->where[0] = 0;
  d->text = text;
  d->length = length;
}

// From here on positions are those of another text.
static void eini_diag_text(eini_diag *d, const char *text, int64_t length) {
  if (d == NULL) return;
  d->text = text;
  d->length = length;
}

// Copies into the message buffer, cut at its end between code points; never fails.
static const char *eini_diag_str(eini_diag *d, const char *s, size_t n) {
  size_t room = EINI_ERROR_TEXT / 2 - d->used;
  if (room <= 1) return "";
  if (n > room - 1) {
    n = room - 1;
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80) n--;
  }
  char *p = d->buf + d->used;
  // A tab would move the caret under the line, a newline would break it.
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)s[i] < 32 ? ' ' : s[i];
  p[n] = 0;
  d->used += n + 1;
  return p;
}

static int64_t eini_count_points(const char *s, int64_t n) {
  int64_t points = 0;
  for (int64_t i = 0; i < n; i++) points += ((unsigned char)s[i] & 0xC0) != 0x80;
  return points;
}

// The code point at s, n bytes at most, and its length; -1, of one byte, where it is not UTF-8.
static int64_t eini_utf8(const char *s, int64_t n, int64_t *used) {
  unsigned char c = (unsigned char)s[0];
  *used = 1;
  if (c < 0x80) return c;
  int len = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
  if (len == 0 || len > n) return -1;
  int64_t v = c & (0xFF >> (len + 1));
  for (int i = 1; i < len; i++) {
    if (((unsigned char)s[i] & 0xC0) != 0x80) return -1;
    v = v << 6 | ((unsigned char)s[i] & 0x3F);
  }
  if ((len == 3 && v < 0x800) || (len == 4 && v < 0x10000) || v > 0x10FFFF ||
      (v >= 0xD800 && v <= 0xDFFF)) {
    return -1;
  }
  *used = len;
  return v;
}

// Code points that Unicode never gives a meaning; XML does not take them.
static int eini_noncharacter(int64_t c) {
  return (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

// A letter, as names and labels know them.
static int eini_is_label(int64_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= 0xA1 && !eini_noncharacter(c));
}

// Columns that a code point takes on a screen: marks 0, East Asian wide ones and emoji 2.
static int eini_screen_width(int64_t c) {
  static const int ranges[][3] = {
      {0x300, 0x36F, 0}, {0x483, 0x489, 0}, {0x591, 0x5BD, 0}, {0x610, 0x61A, 0},
      {0x64B, 0x65F, 0}, {0x6D6, 0x6DC, 0}, {0x1100, 0x115F, 2}, {0x1AB0, 0x1AFF, 0},
      {0x1DC0, 0x1DFF, 0}, {0x200B, 0x200F, 0}, {0x20D0, 0x20FF, 0}, {0x2E80, 0x303E, 2},
      {0x3041, 0x33FF, 2}, {0x3400, 0x4DBF, 2}, {0x4E00, 0x9FFF, 2}, {0xA000, 0xA4CF, 2},
      {0xA960, 0xA97F, 2}, {0xAC00, 0xD7A3, 2}, {0xF900, 0xFAFF, 2}, {0xFE00, 0xFE0F, 0},
      {0xFE20, 0xFE2F, 0}, {0xFE30, 0xFE6F, 2}, {0xFEFF, 0xFEFF, 0}, {0xFF00, 0xFF60, 2},
      {0xFFE0, 0xFFE6, 2}, {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2}, {0x1F900, 0x1FAFF, 2},
      {0x20000, 0x3FFFD, 2}, {0xE0100, 0xE01EF, 0}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (c >= ranges[i][0] && c <= ranges[i][1]) return ranges[i][2];
  return 1;
}

static int64_t eini_screen_columns(const char *s, int64_t n) {
  int64_t columns = 0, used;
  for (int64_t i = 0; i < n; i += used)
    columns += eini_screen_width(eini_utf8(s + i, n - i, &used));
  return columns;
}

// Line, column and the excerpt of the source around byte pos.
static void eini_diag_place(eini_diag *d, ein_error *e, int64_t pos, int64_t width) {
  const char *s = d->text;
  int64_t start = d->length >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, line = 1;
  if (pos > d->length) pos = d->length;
  if (pos < start) pos = start;
  for (int64_t i = 0; i < pos; i++) {
    if (s[i] == '\n') {
      line++;
      start = i + 1;
    }
  }
  int64_t end = pos;
  while (end < d->length && s[end] != '\n' && s[end] != '\r') end++;
  if (width > end - pos) width = end - pos;
  e->line = line > INT_MAX ? INT_MAX : (int)line;
  e->column = (int)eini_min64(eini_count_points(s + start, pos - start) + 1, INT_MAX);
  // A very long line is shown around the mistake only, so that the caret stays in sight.
  int64_t from = eini_max64(start, pos - 160);
  while (from < pos && from > start && ((unsigned char)s[from] & 0xC0) == 0x80) from++;
  if (end - from > 240) {
    end = from + 240;
    while (end > pos && ((unsigned char)s[end] & 0xC0) == 0x80) end--;
  }
  if (width > end - pos) width = end - pos;
  e->width = (int)eini_max64(width < 1 ? 1 : eini_count_points(s + pos, width), 1);
  e->caret = (int)eini_screen_columns(s + from, pos - from);
  e->mark = (int)eini_max64(width < 1 ? 1 : eini_screen_columns(s + pos, width), 1);
  e->source = eini_diag_str(d, s + from, (size_t)(end - from));
}

// Records a mistake at bytes [pos, pos+width) of the text (pos -1: none) and returns status.
static ein_status eini_vfail(eini_diag *d, ein_status status, int64_t pos, int64_t width,
                             const char *hint, const char *format, va_list args) {
  if (d == NULL) return status;
  if (d->status == EIN_OK) d->status = status;
  if (d->error == NULL || d->count >= d->max || d->count >= EINI_ERRORS_MAX) return status;
  char line[512];
  int from = snprintf(line, sizeof line, "%s", d->where);
  int n = vsnprintf(line + from, sizeof line - (size_t)from, format, args);
  n = n < 0 ? from : n + from;
  if ((size_t)n >= sizeof line) n = (int)sizeof line - 1;
  for (int i = 0; i < n; i++) {
    if ((unsigned char)line[i] < 32) line[i] = '?';  // names from hostile texts stay one line
  }
  ein_error *e = &d->error[d->count++];
  memset(e, 0, sizeof *e);
  e->status = status;
  e->message = eini_diag_str(d, line, (size_t)n);
  e->source = e->hint = "";
  if (pos >= 0 && d->text != NULL) eini_diag_place(d, e, pos, width);
  if (hint != NULL) e->hint = eini_diag_str(d, hint, strlen(hint));
  return status;
}

EINI_PRINTF(6, 7)
static ein_status eini_fail(eini_diag *d, ein_status status, int64_t pos, int64_t width,
                            const char *hint, const char *format, ...) {
  va_list args;
  va_start(args, format);
  eini_vfail(d, status, pos, width, hint, format, args);
  va_end(args);
  return status;
}

// All records as text, in the second half of the buffer.
static const char *eini_diag_message(const eini_diag *d) {
  char *out = d->buf + EINI_ERROR_TEXT / 2;
  size_t room = EINI_ERROR_TEXT / 2, at = 0;
  out[0] = 0;
  for (int i = 0; i < d->count && at < room; i++) {
    const ein_error *e = &d->error[i];
    int n = e->line > 0 ? snprintf(out + at, room - at, "%s%d:%d: %s", i ? "\n" : "", e->line,
                                   e->column, e->message)
                        : snprintf(out + at, room - at, "%s%s", i ? "\n" : "", e->message);
    at += n > 0 ? (size_t)n : 0;
    if (e->line > 0 && e->source[0] && at < room) {
      n = snprintf(out + at, room - at, "\n  %s\n  %*s", e->source, e->caret, "");
      at += n > 0 ? (size_t)n : 0;
      for (int k = 0; k < e->mark && at + 1 < room; k++) out[at++] = '^';
      if (at < room) out[at] = 0;
    }
    if (e->hint[0] && at < room) {
      n = snprintf(out + at, room - at, "\n  hint: %s", e->hint);
      at += n > 0 ? (size_t)n : 0;
    }
  }
  return out;
}

EIN_API const char *ein_status_name(ein_status s) {
  return (int)s >= 0 && s < EIN_STATUS_COUNT ? eini_status_id[s] : "unknown status";
}

EIN_API const char *ein_status_text(ein_status s) {
  return (int)s >= 0 && s < EIN_STATUS_COUNT ? eini_status_text[s] : "unknown status";
}

EIN_API const char *ein_version(void) { return EINSUM_VERSION; }
