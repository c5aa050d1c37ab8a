// ================================================================================================
// >>rearrange  axes split, merged and put into another order
// Takes "b (h w) c -> b c h w", extents by name and a view; gives the view, or copies. Splitting
// never needs a copy: both sides are split into parts, and parts of the two sides are paired.
// ================================================================================================

#define EINI_PARTS_MAX 4096

// A part of an axis: a name, or one of the axes that "..." stands for.
typedef struct eini_axpart {
  int64_t pos, len;       // in the pattern
  int dot;                // 1 + its number among those of "..."; 0: a name
  int64_t extent, stride;
} eini_axpart;

// One side: axis g is made of parts first[g] .. first[g + 1], the last of which runs fastest.
typedef struct eini_side {
  eini_axpart *part;
  int *first, npart, naxis;
  int64_t *pos, *len;     // where axes are in the pattern
  int dots, inside;       // "..." occurs; in brackets
} eini_side;

typedef struct eini_rearranging {
  eini_arena arena;
  eini_diag *diag;
  const char *s;
  int64_t n;
  eini_side side[2];
} eini_rearranging;

// ---- the pattern ----

// The length of the token at a position: a name, 1, "...", a bracket; 0 after a mistake.
static int64_t eini_side_token(eini_rearranging *x, int64_t at, int64_t end) {
  int64_t n = 0, used = 1;
  const int digit = x->s[at] >= '0' && x->s[at] <= '9';
  if (x->s[at] == '(' || x->s[at] == ')') return 1;
  if (end - at >= 3 && memcmp(x->s + at, "...", 3) == 0) return 3;
  while (at + n < end) {
    const int64_t c = eini_utf8(x->s + at + n, end - at - n, &used);
    if (!((c >= '0' && c <= '9') || c == '_' || eini_is_label(c))) break;
    n += used;
  }
  if (n == 0)
    eini_fail(x->diag, EIN_ERR_SYNTAX, at, used, "axes are names with spaces between",
              "neither a name, 1, '...' nor a bracket");
  if (!digit || (n == 1 && x->s[at] == '1')) return n;
  eini_fail(x->diag, EIN_ERR_SYNTAX, at, n, "name the axis, and give its extent",
            "the only number in a pattern is 1");
  return 0;
}

// Reads a side, where "..." is so many axes.
static ein_status eini_side_read(eini_rearranging *x, int64_t at, int64_t end, int dots,
                                 eini_side *v) {
  int64_t open = -1, len = 0, room = end - at + dots + 1;
  memset(v, 0, sizeof *v);
  v->part = EINI_NEW(&x->arena, eini_axpart, room);
  v->first = EINI_NEW(&x->arena, int, room + 1);
  v->pos = EINI_NEW(&x->arena, int64_t, room);
  v->len = EINI_NEW(&x->arena, int64_t, room);
  if (v->part == NULL || v->first == NULL || v->pos == NULL || v->len == NULL)
    return EIN_ERR_NO_MEMORY;
  for (; at < end; at += len) {
    const char c = x->s[at];
    if ((len = c == ' ') > 0) continue;
    if ((len = eini_side_token(x, at, end)) == 0) return EIN_ERR_SYNTAX;
    if ((c == '(' && open >= 0) || (c == ')' && open < 0) || (c == '.' && v->dots))
      return eini_fail(x->diag, EIN_ERR_SYNTAX, at, len, NULL, c == '.' ? "a second '...'"
                       : c == '(' ? "brackets in brackets" : "nothing is open here");
    if (c == '(') open = at;
    if (c == '.') v->dots = 1, v->inside = open >= 0;
    for (int k = 0; k < (c == '.' ? dots : 1); k++) {
      if (open < 0 || c == '(') {
        v->pos[v->naxis] = at;
        v->len[v->naxis++] = len;
      }
      if (c != '(' && c != ')' && c != '1') {
        eini_axpart *p = &v->part[v->npart++];
        p->pos = at;
        p->len = len;
        p->dot = c == '.' ? k + 1 : 0;
      }
      if (v->naxis > 0) v->first[v->naxis] = v->npart;
    }
    if (c == ')') {
      v->len[v->naxis - 1] = at + 1 - open;
      open = -1;
    }
  }
  if (open >= 0)
    return eini_fail(x->diag, EIN_ERR_SYNTAX, open, 1, NULL, "this '(' is never closed");
  return v->npart <= EINI_PARTS_MAX && v->naxis <= EINI_PARTS_MAX ? EIN_OK
             : eini_fail(x->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL, "more than %d axes",
                         EINI_PARTS_MAX);
}

static int eini_part_same(const eini_rearranging *x, const eini_axpart *a, const eini_axpart *b) {
  return a->dot == b->dot && (a->dot > 0 || (a->len == b->len && memcmp(x->s + a->pos,
                                             x->s + b->pos, (size_t)a->len) == 0));
}

// The part of a side that is this one; -1: none.
static int eini_side_find(const eini_rearranging *x, const eini_side *v, const eini_axpart *p) {
  int k = 0;
  while (k < v->npart && !eini_part_same(x, &v->part[k], p)) k++;
  return k < v->npart ? k : -1;
}

// Every name once on both sides.
static ein_status eini_sides_check(eini_rearranging *x) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < x->side[k].npart; i++) {
      const eini_axpart *p = &x->side[k].part[i];
      if (eini_side_find(x, &x->side[k], p) != i)
        return eini_fail(x->diag, EIN_ERR_NAME, p->pos, p->len, NULL, "'%.*s' occurs twice",
                         eini_cut(x->s + p->pos, p->len), x->s + p->pos);
      if (eini_side_find(x, &x->side[1 - k], p) < 0)
        return eini_fail(x->diag, EIN_ERR_NAME, p->pos, p->len, k == 0
                         ? "a fold is an einsum or a program" : "a new axis is 1, or broadcast",
                         "'%.*s' is on one side only", eini_cut(x->s + p->pos, p->len),
                         x->s + p->pos);
    }
  return EIN_OK;
}

// Reads both sides for a tensor of that rank.
static ein_status eini_sides_read(eini_rearranging *x, int rank) {
  int64_t arrow = 0, again;
  while (arrow + 1 < x->n && memcmp(x->s + arrow, "->", 2) != 0) arrow++;
  if (arrow + 1 >= x->n)
    return eini_fail(x->diag, EIN_ERR_SYNTAX, x->n, 1, "b (h w) -> h b w",
                     "'->' and the axes of the result expected");
  for (again = arrow + 2; again + 1 < x->n && memcmp(x->s + again, "->", 2) != 0;) again++;
  if (again + 1 < x->n) return eini_fail(x->diag, EIN_ERR_SYNTAX, again, 2, NULL, "a second '->'");
  EINI_TRY(eini_side_read(x, 0, arrow, 0, &x->side[0]));
  const eini_side left = x->side[0];
  const int more = rank - left.naxis;
  if (left.inside)
    return eini_fail(x->diag, EIN_ERR_SYNTAX, 0, arrow, "on the right it may be",
                     "'...' is in brackets");
  if (more < 0 || (more > 0 && !left.dots))
    return eini_fail(x->diag, EIN_ERR_SHAPE, 0, arrow, left.dots ? NULL : "'...' stands for others",
                     "the tensor has %d axes, the pattern %s%d", rank,
                     left.dots ? "at least " : "", left.naxis);
  if (more > EINI_PARTS_MAX)
    return eini_fail(x->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL, "more than %d axes", EINI_PARTS_MAX);
  EINI_TRY(eini_side_read(x, 0, arrow, more, &x->side[0]));
  EINI_TRY(eini_side_read(x, arrow + 2, x->n, more, &x->side[1]));
  if (x->side[0].dots != x->side[1].dots)
    return eini_fail(x->diag, EIN_ERR_NAME, 0, x->n, NULL, "'...' is on one side only");
  return eini_sides_check(x);
}

// ---- extents ----

static ein_status eini_sides_given(eini_rearranging *x, int nsize, const ein_size *size) {
  eini_side *v = &x->side[0];
  if (nsize < 0 || (nsize > 0 && size == NULL))
    return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "nsize is %d%s", nsize,
                     nsize < 0 ? "" : ", but the list is NULL");
  for (int i = 0; i < v->npart; i++) v->part[i].extent = -1;
  for (int k = 0; k < nsize; k++) {
    const char *name = size[k].name;
    int i = 0;
    if (name == NULL)
      return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "size[%d] has no name: it is NULL",
                       k);
    while (i < v->npart && (v->part[i].dot > 0 ||
                            !eini_word_is(x->s + v->part[i].pos, v->part[i].len, name)))
      i++;
    if (i == v->npart)
      return eini_fail(x->diag, EIN_ERR_NAME, -1, 0, NULL, "no axis is named '%.60s'", name);
    if (size[k].value < 0 || (v->part[i].extent >= 0 && v->part[i].extent != size[k].value))
      return eini_fail(x->diag, EIN_ERR_SHAPE, v->part[i].pos, v->part[i].len, NULL,
                       size[k].value < 0 ? "size '%.60s' is %lld"
                                         : "'%.60s' is given two sizes, %lld and another", name,
                       (long long)size[k].value);
    v->part[i].extent = size[k].value;
  }
  return EIN_OK;
}

// Extents and strides of the parts of an axis of the tensor; one extent may be left.
static ein_status eini_axis_split(eini_rearranging *x, const eini_side *v, int axis, int64_t extent,
                                  int64_t stride) {
  int64_t known = 1;
  eini_axpart *open = NULL;
  for (int i = v->first[axis]; i < v->first[axis + 1]; i++) {
    eini_axpart *p = &v->part[i];
    if (p->extent < 0 && open != NULL)
      return eini_fail(x->diag, EIN_ERR_SHAPE, v->pos[axis], v->len[axis], "give all but one",
                       "nothing says how large '%.*s' and '%.*s' are",
                       eini_cut(x->s + open->pos, open->len), x->s + open->pos,
                       eini_cut(x->s + p->pos, p->len), x->s + p->pos);
    if (p->extent < 0) open = p;
    else if (eini_mul_overflow(known, p->extent, &known))
      return eini_fail(x->diag, EIN_ERR_TOO_LARGE, v->pos[axis], v->len[axis], NULL,
                       "the extent of this is no int64");
  }
  if (open != NULL && known == 0 && extent == 0)
    return eini_fail(x->diag, EIN_ERR_SHAPE, open->pos, open->len, NULL,
                     "nothing says how large '%.*s' is: others are 0",
                     eini_cut(x->s + open->pos, open->len), x->s + open->pos);
  if (open != NULL && known > 0 && extent % known == 0) open->extent = extent / known;
  else if (open != NULL || known != extent)
    return eini_fail(x->diag, EIN_ERR_SHAPE, v->pos[axis], v->len[axis], NULL,
                     open != NULL ? "axis %d has extent %lld, which is no multiple of %lld"
                                  : "axis %d has extent %lld, here it is %lld",
                     axis, (long long)extent, (long long)known);
  for (int i = v->first[axis + 1] - 1; i >= v->first[axis]; i--) {
    v->part[i].stride = stride;
    if (eini_mul_overflow(stride, v->part[i].extent, &stride)) stride = 0;  // of an extent 1, or 0
  }
  return EIN_OK;
}

static ein_status eini_side_split(eini_rearranging *x, const eini_side *v, const ein_ztensor *t) {
  for (int a = 0; a < v->naxis; a++)
    EINI_TRY(eini_axis_split(x, v, a, t->shape[a], eini_stride(t, a)));
  return EIN_OK;
}

// Reads the pattern for a tensor; parts of both sides get extents, and strides of the tensor.
static ein_status eini_rearrange_read(eini_rearranging *x, ein_ctx *ctx, const char *pattern,
                                      int nsize, const ein_size *size, const ein_ztensor *t) {
  const eini_where where = {eini_ctx_space(ctx), NULL};
  x->diag = eini_diag_of(ctx);
  x->s = pattern;
  if (pattern == NULL || t == NULL)
    return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the %s is NULL",
                     pattern == NULL ? "pattern" : "view");
  x->n = (int64_t)strlen(pattern);
  if (x->n > 1 << 20)
    return eini_fail(x->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the pattern is too long");
  EINI_TRY(eini_validate_view(x->diag, t, &where, "the view"));
  EINI_TRY(eini_sides_read(x, t->rank));
  EINI_TRY(eini_sides_given(x, nsize, size));
  EINI_TRY(eini_side_split(x, &x->side[0], t));
  for (int i = 0; i < x->side[1].npart; i++) {
    eini_axpart *p = &x->side[1].part[i];
    const eini_axpart *from = &x->side[0].part[eini_side_find(x, &x->side[0], p)];
    p->extent = from->extent;
    p->stride = from->stride;
  }
  return EIN_OK;
}

// ---- views and copies ----

// The extent and stride of an axis of the result; 0: it is no view. Parts of extent 1 do not count.
static int eini_axis_merge(const eini_side *v, int axis, int64_t *extent, int64_t *stride) {
  int64_t next = 0;  // stride of a part before which all that follow are one axis
  int view = 1, any = 0;
  *extent = *stride = 1;
  for (int i = v->first[axis + 1] - 1; i >= v->first[axis]; i--) {
    const eini_axpart *p = &v->part[i];
    if (p->extent == 1) continue;
    if (!any) *stride = p->stride;
    else view &= p->stride == next;
    any = 1;
    if (eini_mul_overflow(p->stride, p->extent, &next)) next = INT64_MIN;
    if (eini_mul_overflow(*extent, p->extent, extent)) *extent = -1;  // unless one is 0
  }
  return view;
}

// The result as a view of t; where it is none, its shape, and which axis needs a copy.
static ein_status eini_rearrange_view(eini_rearranging *x, const ein_ztensor *t, ein_ztensor *view,
                                      int64_t *dims, int max_rank) {
  const eini_side *v = &x->side[1];
  const ein_ztensor from = *t;
  int copied = -1;
  if (view == NULL || max_rank < 0 || (max_rank > 0 && dims == NULL))
    return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "view, dims or max_rank is wrong");
  if (v->naxis > max_rank)
    return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                     "the result has %d axes, room is for %d", v->naxis, max_rank);
  const int empty = ein_view_count(&from) == 0;
  for (int a = v->naxis - 1; a >= 0; a--) {
    if (!eini_axis_merge(v, a, &dims[a], &dims[v->naxis + a]) && !empty) copied = a;
    if (dims[a] < 0)
      return eini_fail(x->diag, EIN_ERR_TOO_LARGE, v->pos[a], v->len[a], NULL,
                       "the extent of this is no int64");
  }
  eini_view_end(&from, v->naxis, 0, 0, view, dims);
  if (copied < 0) return EIN_OK;
  view->data = NULL;
  view->buffer = NULL;
  view->buffer_bytes = 0;
  view->strides = NULL;
  return eini_fail(x->diag, EIN_ERR_UNSUPPORTED, v->pos[copied], v->len[copied],
                   "ein_rearrange copies", "the tensor's strides do not make this one axis");
}

// A view of one axis for each part of a side.
static ein_ztensor eini_side_view(const eini_side *v, const ein_ztensor *t, int64_t *dims) {
  ein_ztensor r;
  for (int i = 0; i < v->npart; i++) {
    dims[i] = v->part[i].extent;
    dims[v->npart + i] = v->part[i].stride;
  }
  eini_view_end(t, v->npart, 0, 0, &r, dims);
  return r;
}

// The copy: an einsum of the parts.
static ein_status eini_rearrange_copy(eini_rearranging *x, ein_ctx *ctx, const ein_ztensor *t,
                                      const ein_ztensor *out) {
  eini_side *to = &x->side[1];
  const int n = to->npart;
  const eini_where where = {eini_ctx_space(ctx), NULL};
  const int *labels[2];
  int nlabels[2];
  ein_ztensor view[2];
  ein_einsum_desc d;
  int *label = EINI_NEW(&x->arena, int, 2 * n);
  int64_t *dims = EINI_NEW(&x->arena, int64_t, 4 * n);
  if (label == NULL || dims == NULL) return EIN_ERR_NO_MEMORY;
  if (out == NULL) return eini_fail(x->diag, EIN_ERR_ARGUMENT, -1, 0, NULL, "the output is NULL");
  EINI_TRY(eini_validate_view(x->diag, out, &where, "the output"));
  if (out->rank != to->naxis)
    return eini_fail(x->diag, EIN_ERR_SHAPE, -1, 0, NULL, "the output has %d axes, the result %d",
                     out->rank, to->naxis);
  EINI_TRY(eini_side_split(x, to, out));
  for (int i = 0; i < n; i++) {
    label[i] = i;
    label[n + i] = eini_side_find(x, &x->side[0], &to->part[i]);
  }
  for (int k = 0; k < 2; k++) {
    labels[k] = label + k * n;
    nlabels[k] = n;
    view[k] = eini_side_view(&x->side[k], k == 0 ? t : out, dims + 2 * k * n);
  }
  memset(&d, 0, sizeof d);
  d.labels = labels;
  d.nlabels = nlabels;
  d.nin = 1;
  d.in = &view[0];
  d.out = &view[1];
  return ein_einsum_ex(ctx, &d);
}

// With out a copy, else a view.
static ein_status eini_rearrange(ein_ctx *ctx, const char *pattern, int nsize,
                                 const ein_size *size, const ein_ztensor *t, int copy,
                                 const ein_ztensor *out, ein_ztensor *view, int64_t *dims,
                                 int max_rank) {
  eini_rearranging x;
  eini_begin_call(ctx, pattern);
  memset(&x, 0, sizeof x);
  eini_arena_init(&x.arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_rearrange_read(&x, ctx, pattern, nsize, size, t);
  if (st == EIN_OK)
    st = copy ? eini_rearrange_copy(&x, ctx, t, out)
              : eini_rearrange_view(&x, t, view, dims, max_rank);
  eini_arena_free(&x.arena);
  eini_fail_status(ctx, st);
  return st;
}

EIN_API ein_status ein_view_rearrange(ein_ctx *ctx, const char *pattern, int nsize,
                                      const ein_size *size, const ein_ztensor *t,
                                      ein_ztensor *view, int64_t *dims, int max_rank) {
  return eini_rearrange(ctx, pattern, nsize, size, t, 0, NULL, view, dims, max_rank);
}

EIN_API ein_status ein_rearrange(ein_ctx *ctx, const char *pattern, int nsize,
                                 const ein_size *size, const ein_ztensor *in,
                                 const ein_ztensor *out) {
  return eini_rearrange(ctx, pattern, nsize, size, in, 1, out, NULL, NULL, 0);
}
