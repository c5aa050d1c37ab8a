// ================================================================================================
// >>notation  NumPy strings and integer labels
// Takes "ij,jk->ik" and views; gives the labels of each operand's axes, and of the output's.
// Everything numpy.einsum(..., optimize=False) accepts, with the same result.
// ================================================================================================

// One term of the notation as written: labels (code points or integers), EIN_ELLIPSIS.
typedef struct eini_term {
  int n;
  int *label;
  int64_t *pos;         // byte of each label in the text, or -1
} eini_term;

typedef struct eini_label {
  int key;                // as written; -2-d: ellipsis axis d counted from the right
  int owner, owner_axis;  // operand and axis that gave the extent
  int last, last_axis;    // operand + 1 and axis that used the label last, and its extent
  int64_t extent, last_n;
} eini_label;

typedef struct eini_notation {
  eini_arena *arena;
  eini_diag *diag;
  int nin;
  eini_term *term;      // nin operands, then the output
  int has_out;
  int is_text;
  int nlabel;           // dense ids
  eini_label *label;
  int *slot;            // hash table of ids + 1
  int nslot;
  int nellipsis;        // broadcast axes
} eini_notation;

// A label as text, for messages and plans.
static const char *eini_label_text(int key, char *buf, size_t size, int is_text) {
  if (key < 0) {
    snprintf(buf, size, ".%d", -2 - key);
  } else if (!is_text) {
    snprintf(buf, size, "#%d", key);
  } else {
    static const int head[] = {0, 0xC0, 0xE0, 0xF0};
    int more = key < 0x80 ? 0 : key < 0x800 ? 1 : key < 0x10000 ? 2 : 3;
    char u[5] = {0};
    u[0] = (char)(head[more] | key >> 6 * more);
    for (int i = 1; i <= more; i++) u[i] = (char)(0x80 | (key >> 6 * (more - i) & 0x3F));
    snprintf(buf, size, "%s", u);
  }
  return buf;
}

// Splits the text into terms. Labels of all terms share two arrays, carved as terms end.
static ein_status eini_notation_scan(eini_notation *no, const char *s, int64_t n) {
  int64_t commas = 0;
  for (int64_t i = 0; i < n; i++) commas += s[i] == ',';
  if (n > ((int64_t)1 << 28))
    return eini_fail(no->diag, EIN_ERR_TOO_LARGE, -1, 0, NULL, "the expression is too long");
  no->term = EINI_NEW(no->arena, eini_term, commas + 2);
  int *label = EINI_NEW(no->arena, int, n + 1);
  int64_t *pos = EINI_NEW(no->arena, int64_t, n + 1);
  if (no->term == NULL || label == NULL || pos == NULL) return EIN_ERR_NO_MEMORY;
  int t = 0, ellipsis = 0;
  no->term[0].label = label;
  no->term[0].pos = pos;
  for (int64_t i = 0; i < n;) {
    if (s[i] == ' ') {  // no other white space, as in NumPy
      i++;
    } else if (s[i] == ',' || (s[i] == '-' && i + 1 < n && s[i + 1] == '>')) {
      if (no->has_out)
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, NULL, "the output is one term, the last");
      label += no->term[t].n;
      pos += no->term[t].n;
      t++;
      no->term[t].label = label;
      no->term[t].pos = pos;
      no->has_out = s[i] == '-';
      i += s[i] == '-' ? 2 : 1;
      ellipsis = 0;
    } else {
      int64_t used = 1, c = eini_utf8(s + i, n - i, &used);
      if (c == '.') {
        if (n - i < 3 || s[i + 1] != '.' || s[i + 2] != '.')
          return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, "three dots without spaces: ...",
                           "a lone '.' is not an ellipsis");
        if (ellipsis++)
          return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 3, NULL, "a second ellipsis in one term");
        c = EIN_ELLIPSIS;
        used = 3;
      } else if (c < 0) {
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, 1, NULL, "invalid UTF-8");
      } else if (!eini_is_label(c)) {
        return eini_fail(no->diag, EIN_ERR_SYNTAX, i, used,
                         "labels are letters; terms are separated by ',', the output by '->'",
                         c < 32 || c == 127 ? "a control character is not a label"
                                            : "'%.*s' is not a label", (int)used, s + i);
      }
      eini_term *m = &no->term[t];
      m->label[m->n] = (int)c;
      m->pos[m->n++] = i;
      i += used;
    }
  }
  no->nin = no->has_out ? t : t + 1;
  return EIN_OK;
}

// The dense id of a label, made when new; -1 when out of room (cannot happen: nslot > labels).
static int eini_label_id(eini_notation *no, int key) {
  uint32_t h = (uint32_t)key * 0x9E3779B9u;
  for (uint32_t i = h ^ h >> 15;; i++) {
    int *slot = &no->slot[i & (uint32_t)(no->nslot - 1)];
    if (*slot == 0) {
      no->label[no->nlabel].key = key;
      no->label[no->nlabel].extent = -1;
      *slot = ++no->nlabel;
      return no->nlabel - 1;
    }
    if (no->label[*slot - 1].key == key) return *slot - 1;
  }
}

// An axis meets its label: equal extents, or 1 against n between operands.
static ein_status eini_label_meet(eini_notation *no, int id, int k, int axis, int64_t n,
                                  int64_t pos) {
  eini_label *l = &no->label[id];
  char name[24];
  if (l->last == k + 1 && l->last_n != n) {
    eini_label_text(l->key, name, sizeof name, no->is_text);
    return eini_fail(no->diag, EIN_ERR_SHAPE, pos, 1, NULL,
                     "index '%s' repeats in operand %d: axis %d has extent %lld, axis %d has %lld",
                     name, k, l->last_axis, (long long)l->last_n, axis, (long long)n);
  }
  l->last = k + 1;
  l->last_axis = axis;
  l->last_n = n;
  if (l->extent < 0 || (l->extent == 1 && n != 1)) {
    l->extent = n;
    l->owner = k;
    l->owner_axis = axis;
    return EIN_OK;
  }
  if (n == l->extent || n == 1) return EIN_OK;
  eini_label_text(l->key, name, sizeof name, no->is_text);
  return eini_fail(no->diag, EIN_ERR_SHAPE, pos, 1, NULL,
                   "index '%s': operand %d axis %d has extent %lld, operand %d axis %d has %lld",
                   name, l->owner, l->owner_axis, (long long)l->extent, k, axis, (long long)n);
}

// The ids of a term's axes, ellipsis spelled out; ids has room for rank entries.
static ein_status eini_term_axes(eini_notation *no, int k, int rank, int *ids) {
  const eini_term *m = &no->term[k];
  int dots = 0, at = 0;
  for (int i = 0; i < m->n; i++) dots += m->label[i] == EIN_ELLIPSIS;
  int missing = rank - (m->n - dots);
  int64_t where = m->n > 0 ? m->pos[0] : (no->is_text ? 0 : -1);
  if (missing < 0 || (missing > 0 && !dots))
    return eini_fail(no->diag, EIN_ERR_SHAPE, where, m->n > 0 ? m->n : 1,
                     missing > 0 ? "an ellipsis '...' stands for the other axes" : NULL,
                     "operand %d has %d %s, its term names %d", k, rank,
                     rank == 1 ? "axis" : "axes", m->n - dots);
  for (int i = 0; i < m->n; i++) {
    if (m->label[i] != EIN_ELLIPSIS) {
      ids[at++] = eini_label_id(no, m->label[i]);
      continue;
    }
    for (int d = missing - 1; d >= 0; d--) ids[at++] = eini_label_id(no, -2 - d);
    if (missing > no->nellipsis) no->nellipsis = missing;
  }
  return EIN_OK;
}

static ein_status eini_notation_tables(eini_notation *no, const ein_ztensor *in) {
  int64_t total = 8;
  for (int k = 0; k < no->nin; k++) total += no->term[k].n + in[k].rank;
  total += no->has_out ? no->term[no->nin].n : 0;
  int64_t slots = 16;
  while (slots < 2 * total) slots *= 2;
  if (slots > ((int64_t)1 << 30)) return EIN_ERR_TOO_LARGE;
  no->nslot = (int)slots;
  no->slot = EINI_NEW(no->arena, int, slots);
  no->label = EINI_NEW(no->arena, eini_label, total);
  if (no->slot == NULL || no->label == NULL) return EIN_ERR_NO_MEMORY;
  return EIN_OK;
}

// Shell sort: lists are short, and nearly always sorted.
static void eini_sort_ints(int *v, int64_t n) {
  int64_t gap = 1;
  while (gap < n / 3) gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3) {
    for (int64_t i = gap; i < n; i++) {
      int x = v[i];
      int64_t j = i;
      for (; j >= gap && v[j - gap] > x; j -= gap) v[j] = v[j - gap];
      v[j] = x;
    }
  }
}

// Sorts, and drops what repeats; gives the number left.
static int eini_sort_unique(int *v, int n) {
  int kept = 0;
  eini_sort_ints(v, n);
  for (int i = 0; i < n; i++)
    if (kept == 0 || v[kept - 1] != v[i]) v[kept++] = v[i];
  return kept;
}

static int eini_find_sorted(const int *v, int n, int x) {
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if (v[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && v[lo] == x ? lo : -1;
}

// The output's axes: as written, or the ellipsis axes and then the labels that occur once.
static ein_status eini_output_axes(eini_notation *no, const int *count, int allow_repeats,
                                   int **axes, int *rank) {
  int *ids = EINI_NEW(no->arena, int,
                      no->nellipsis + (no->has_out ? no->term[no->nin].n : no->nlabel) + 1);
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  *axes = ids;
  if (!no->has_out) {
    for (int d = no->nellipsis - 1; d >= 0; d--) ids[n++] = eini_label_id(no, -2 - d);
    int *once = EINI_NEW(no->arena, int, no->nlabel);
    if (once == NULL) return EIN_ERR_NO_MEMORY;
    int m = 0;
    for (int i = 0; i < no->nlabel; i++)
      if (no->label[i].key >= 0 && count[i] == 1) once[m++] = no->label[i].key;
    eini_sort_ints(once, m);
    for (int i = 0; i < m; i++) ids[n++] = eini_label_id(no, once[i]);
    *rank = n;
    return EIN_OK;
  }
  const eini_term *o = &no->term[no->nin];
  int known = no->nlabel, dots = 0;
  char *seen = EINI_NEW(no->arena, char, known);
  if (seen == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < o->n; i++) {
    if (o->label[i] == EIN_ELLIPSIS) {
      dots = 1;
      for (int d = no->nellipsis - 1; d >= 0; d--) ids[n++] = eini_label_id(no, -2 - d);
      continue;
    }
    int id = eini_label_id(no, o->label[i]);
    char name[24];
    eini_label_text(o->label[i], name, sizeof name, no->is_text);
    if (id >= known) {
      no->nlabel = known;  // forget it: the tables have no room for strangers
      return eini_fail(no->diag, EIN_ERR_NAME, o->pos[i], 1, NULL,
                       "output index '%s' is in no operand", name);
    }
    if (seen[id]++ && !allow_repeats)
      return eini_fail(no->diag, EIN_ERR_NAME, o->pos[i], 1,
                       "the C descriptor's 'rest' says what happens off the diagonal",
                       "output index '%s' is repeated", name);
    ids[n++] = id;
  }
  if (!dots && no->nellipsis > 0)
    return eini_fail(no->diag, EIN_ERR_SHAPE, o->n > 0 ? o->pos[0] : -1, o->n,
                     "write the ellipsis in the output too",
                     "the output has no ellipsis for %d broadcast axes", no->nellipsis);
  *rank = n;
  return EIN_OK;
}

static ein_status eini_fail_count(const eini_notation *no, const ein_einsum_desc *d) {
  return eini_fail(no->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                   "the expression names %d operands, %d are given", no->nin, d->nin);
}

// Reads the notation of a descriptor. (*in)[k]: the label ids of operand k's axes; axes/rank: of
// the output's.
static ein_status eini_notation_read(eini_notation *no, const ein_einsum_desc *d, int ***in,
                                     int **axes, int *rank) {
  if (d->expr != NULL) {
    no->is_text = 1;
    EINI_TRY(eini_notation_scan(no, d->expr, (int64_t)strlen(d->expr)));
  } else {
    no->nin = d->nin;
    no->term = EINI_NEW(no->arena, eini_term, d->nin + 1);
    if (no->term == NULL) return EIN_ERR_NO_MEMORY;
    no->has_out = d->labels[d->nin] != NULL;
    for (int k = 0; k < d->nin + no->has_out; k++) {
      eini_term *m = &no->term[k];
      m->n = d->nlabels[k] < 0 || d->labels[k] == NULL ? 0 : d->nlabels[k];
      m->label = EINI_NEW(no->arena, int, m->n);
      m->pos = EINI_NEW(no->arena, int64_t, m->n);
      if (m->label == NULL || m->pos == NULL) return EIN_ERR_NO_MEMORY;
      int dots = 0;
      for (int i = 0; i < m->n; i++) {
        m->label[i] = d->labels[k][i];
        m->pos[i] = -1;
        dots += m->label[i] == EIN_ELLIPSIS;
        if (m->label[i] < EIN_ELLIPSIS || dots > 1)
          return eini_fail(no->diag, EIN_ERR_ARGUMENT, -1, 0, NULL,
                           "labels of operand %d: integers >= 0, at most one ellipsis", k);
      }
    }
  }
  if (no->nin != d->nin) return eini_fail_count(no, d);
  EINI_TRY(eini_notation_tables(no, d->in));
  int **ids = *in = EINI_NEW(no->arena, int *, no->nin);
  if (ids == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < no->nin; k++) {
    const ein_ztensor *x = &d->in[k];
    ids[k] = EINI_NEW(no->arena, int, x->rank);
    if (ids[k] == NULL) return EIN_ERR_NO_MEMORY;
    EINI_TRY(eini_term_axes(no, k, x->rank, ids[k]));
    int first = -1;  // axis of the ellipsis' first label, to place the caret
    for (int a = 0; a < x->rank; a++) {
      if (no->label[ids[k][a]].key < 0 && first < 0) first = a;
      int at = first < 0 ? a : no->label[ids[k][a]].key < 0 ? first : a - (x->rank - no->term[k].n);
      EINI_TRY(eini_label_meet(no, ids[k][a], k, a, x->shape[a],
                               at >= 0 && at < no->term[k].n ? no->term[k].pos[at] : -1));
    }
  }
  int *count = EINI_NEW(no->arena, int, no->nlabel);
  if (count == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < no->nin; k++)
    for (int a = 0; a < d->in[k].rank; a++) count[ids[k][a]]++;
  return eini_output_axes(no, count, d->rest != EIN_REST_ERROR, axes, rank);
}
