// ================================================================================================
// >>operators  signatures of functions over blocks
// Takes "(n,n),(n)->(n)"; gives axes of blocks as numbers of their sizes' names. An output may have
// a name, "(n)->low(m),high(m)".
// ================================================================================================

#define EINI_BLOCK_SIDES 16    // inputs and outputs
#define EINI_BLOCK_SIZES 8
#define EINI_BLOCK_AXES 32

typedef struct eini_signature {
  int nin, nout, nsize, naxis;
  int first[EINI_BLOCK_SIDES + 1];  // axes of a side, inputs before outputs, begin here in ..
  int size[EINI_BLOCK_AXES];        // .. this list of sizes by number
  int64_t pos[EINI_BLOCK_SIZES], len[EINI_BLOCK_SIZES];  // their names in the text
  int inner;                        // sizes that inputs have; they come first
} eini_signature;

static int64_t eini_signature_word(const char *text, int64_t at) {
  int64_t used = 0, n = (int64_t)strlen(text);
  while (at + used < n) {
    const char c = text[at + used];
    if (c != '_' && !((c | 32) >= 'a' && (c | 32) <= 'z') && !(used > 0 && c >= '0' && c <= '9'))
      break;
    used++;
  }
  return used;
}

static int64_t eini_signature_blank(const char *text, int64_t at) {
  while (text[at] == ' ') at++;
  return at;
}

// The number of the size that is named there, which may be new; -1: there are too many.
static int eini_signature_size(eini_signature *s, const char *text, int64_t at, int64_t len) {
  int k = 0;
  while (k < s->nsize &&
         (s->len[k] != len || memcmp(text + s->pos[k], text + at, (size_t)len) != 0)) k++;
  if (k < s->nsize) return k;
  if (k == EINI_BLOCK_SIZES) return -1;
  s->pos[k] = at;
  s->len[k] = len;
  return s->nsize++;
}

// One side, "(m,n)", from `at` on; where it ends, or -1.
static int64_t eini_signature_side(eini_signature *s, const char *text, int64_t at) {
  if (text[at] != '(' || s->nin + s->nout == EINI_BLOCK_SIDES) return -1;
  s->first[s->nin + s->nout] = s->naxis;
  at = eini_signature_blank(text, at + 1);
  for (int more = text[at] != ')'; more;) {
    const int64_t len = eini_signature_word(text, at);
    const int k = len == 0 ? -1 : eini_signature_size(s, text, at, len);
    if (k < 0 || s->naxis == EINI_BLOCK_AXES) return -1;
    s->size[s->naxis++] = k;
    at = eini_signature_blank(text, at + len);
    more = text[at] == ',';
    if (more) at = eini_signature_blank(text, at + 1);
  }
  return text[at] == ')' ? eini_signature_blank(text, at + 1) : -1;
}

// 0: the text is none, or too large.
static int eini_signature_read(const char *text, eini_signature *s) {
  int64_t at = eini_signature_blank(text, 0);
  memset(s, 0, sizeof *s);
  for (int out = 0; out < 2; out++) {
    for (int more = 1; more;) {
      if (out) at = eini_signature_blank(text, at + eini_signature_word(text, at));
      if ((at = eini_signature_side(s, text, at)) < 0) return 0;
      if (out) s->nout++;
      else s->nin++;
      more = text[at] == ',';
      if (more) at = eini_signature_blank(text, at + 1);
    }
    if (out) break;
    s->inner = s->nsize;
    if (text[at] != '-' || text[at + 1] != '>') return 0;
    at = eini_signature_blank(text, at + 2);
  }
  s->first[s->nin + s->nout] = s->naxis;
  return text[at] == 0 && s->nin <= EINI_ARGS_MAX && s->nout <= EINI_ARGS_MAX;
}

// Axes of the blocks of a side; outputs are behind inputs.
static int eini_signature_rank(const eini_signature *s, int side) {
  return s->first[side + 1] - s->first[side];
}

// Elements of the block of a side; -1: too many.
static int64_t eini_signature_count(const eini_signature *s, int side, const int64_t *size) {
  int64_t n = 1;
  for (int a = s->first[side]; a < s->first[side + 1]; a++)
    if (eini_mul_overflow(n, size[s->size[a]], &n)) return -1;
  return n;
}

// Elements of the blocks of all outputs together, and of all inputs; -1: too many.
static int64_t eini_signature_total(const eini_signature *s, int out, const int64_t *size) {
  int64_t n = 0;
  for (int k = out ? s->nin : 0; k < (out ? s->nin + s->nout : s->nin); k++) {
    const int64_t one = eini_signature_count(s, k, size);
    if (one < 0 || eini_add_overflow(n, one, &n)) return -1;
  }
  return n;
}

// Sizes that inputs do not have, from those that they have.
static ein_status eini_signature_outer(const ein_operator *f, const eini_signature *s,
                                       int64_t *size, int64_t pos, eini_diag *diag) {
  for (int k = s->inner; k < s->nsize; k++) size[k] = -1;
  if (f->size_fn != NULL && !f->size_fn(size, f->user))
    return eini_fail(diag, EIN_ERR_SHAPE, pos, 1, NULL, "'%.60s' refuses blocks of these sizes",
                     f->name);
  for (int k = s->inner; k < s->nsize; k++)
    if (size[k] < 0)
      return eini_fail(diag, EIN_ERR_SHAPE, pos, 1, NULL, "size_fn of '%.60s' does not give '%.*s'",
                       f->name, (int)s->len[k], f->signature + s->pos[k]);
  if (eini_signature_total(s, 0, size) < 0 || eini_signature_total(s, 1, size) < 0)
    return eini_fail(diag, EIN_ERR_TOO_LARGE, pos, 1, NULL, "a block of '%.60s' is too large",
                     f->name);
  return EIN_OK;
}
