// ================================================================================================
// >>constraints  vectors, pins and kept indices as texts
// "T[s=2,t=4]", "X[s=8]", "j", "T.j": each names a tensor or an index, or is a mistake.
// ================================================================================================

#define EINI_SPEC_MAX 64

typedef struct eini_specword {
  const char *s;
  int n;
} eini_specword;

typedef struct eini_spec {  // NAME[name=value,..]
  eini_specword name, item[EINI_SPEC_MAX];
  int64_t value[EINI_SPEC_MAX];
  int n;
} eini_spec;

static int eini_specword_eq(eini_specword w, const char *s) {
  return w.n == (int)strlen(s) && memcmp(w.s, s, (size_t)w.n) == 0;
}

// A name up to one of `ends`.
static const char *eini_specword_read(const char *s, const char *ends, eini_specword *w) {
  while (*s == ' ') s++;
  w->s = s;
  while (*s != 0 && strchr(ends, *s) == NULL) s++;
  w->n = (int)eini_min64(s - w->s, 256);
  while (*s == ' ') s++;
  return s;
}

static ein_status eini_spec_read(eini_decomposer *dc, const char *what, const char *text,
                                 eini_spec *spec) {
  spec->n = 0;
  const char *s = text == NULL ? "" : eini_specword_read(text, "[]=, ", &spec->name);
  int ok = text != NULL && spec->name.n > 0 && *s == '[';
  if (ok && *s == '[' && s[1] == ']') s += 2;
  else while (ok && (*s == '[' || *s == ',') && spec->n < EINI_SPEC_MAX) {
    int64_t value = 0;
    s = eini_specword_read(s + 1, "[]=, ", &spec->item[spec->n]);
    ok = spec->item[spec->n].n > 0 && *s == '=';
    if (!ok) break;
    const char *from = ++s;
    for (; *s >= '0' && *s <= '9' && value <= EIN_PLACES_MAX; s++) value = 10 * value + (*s - '0');
    ok = s > from && (*s == ',' || *s == ']');
    spec->value[spec->n++] = value;
    if (*s == ']') {
      s++;
      break;
    }
  }
  if (ok && *s == 0 && s[-1] == ']') return EIN_OK;
  return eini_fail(dc->diag, EIN_ERR_SYNTAX, -1, 0, "for example T[s=2,t=4]",
                   "%s '%.80s' is not NAME[index=pieces,..]", what, text == NULL ? "" : text);
}

static int eini_find_index(const eini_stmt *s, eini_specword w) {
  for (int c = 0; c < s->nindex; c++)
    if (eini_specword_eq(w, s->index[c].name)) return c;
  return -1;
}

static const char *eini_node_name(const eini_decomposer *dc, int i) {
  return dc->g->tensor[dc->node[i].s->out].name;
}

// Asks for `pieces` of an index of node i; a mistake when it cannot have them.
static ein_status eini_need(eini_decomposer *dc, int i, int c, int64_t pieces) {
  eini_dform *f = &dc->node[i];
  const eini_index *x = &f->s->index[c];
  const char *name = eini_node_name(dc, i);
  if (pieces < 1 || pieces > eini_max64(1, x->extent))
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' of extent %lld cannot have %lld pieces", name,
                     x->name, (long long)x->extent, (long long)pieces);
  if (pieces > f->limit[c])
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' must not be cut: %s", name, x->name,
                     eini_index_whole(f->s, c) ? "it is an axis of a block" :
                     c >= f->s->nfree ? "it is kept" : "it shares a coordinate, or it is kept");
  if (f->need[c] != 0 && f->need[c] != pieces)
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': index '%s' is asked to have %lld and %lld pieces", name,
                     x->name, (long long)f->need[c], (long long)pieces);
  f->need[c] = pieces;
  return EIN_OK;
}

static ein_status eini_need_product(eini_decomposer *dc, int i) {
  const eini_dform *f = &dc->node[i];
  int64_t tasks = 1;
  for (int c = 0; c < f->s->nindex; c++) {
    if (f->need[c] == 0 || tasks * f->need[c] <= dc->p) {
      tasks *= eini_max64(1, f->need[c]);
      continue;
    }
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL,
                     "statement '%s': with index '%s' its pieces make more tasks than the %lld "
                     "places", eini_node_name(dc, i), f->s->index[c].name, (long long)dc->p);
  }
  return EIN_OK;
}

// A vector for the statements of a tensor that have all its indices; those not named stay whole.
static ein_status eini_constrain_parts(eini_decomposer *dc, const char *text) {
  eini_spec spec;
  int named = 0, found = 0, lacking = 0;
  EINI_TRY(eini_spec_read(dc, "parts", text, &spec));
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = dc->node[i].s;
    int k = 0;
    if (!eini_specword_eq(spec.name, eini_node_name(dc, i))) continue;
    named = 1;
    while (k < spec.n && eini_find_index(s, spec.item[k]) >= 0) k++;
    if (k < spec.n) lacking = k;
    if (k < spec.n) continue;
    found = 1;
    for (k = 0; k < spec.n; k++)
      EINI_TRY(eini_need(dc, i, eini_find_index(s, spec.item[k]), spec.value[k]));
    for (int c = 0; c < s->nindex; c++) {
      for (k = 0; k < spec.n && !eini_specword_eq(spec.item[k], s->index[c].name);) k++;
      if (k == spec.n) EINI_TRY(eini_need(dc, i, c, 1));
    }
    EINI_TRY(eini_need_product(dc, i));
  }
  if (found) return EIN_OK;
  if (!named)
    return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "parts '%.80s': no statement defines "
                     "'%.*s'", text, spec.name.n, spec.name.s);
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "parts '%.80s': statement '%.*s' has no "
                   "index '%.*s'", text, spec.name.n, spec.name.s, spec.item[lacking].n,
                   spec.item[lacking].s);
}

static ein_status eini_constrain_keep(eini_decomposer *dc, const char *text) {
  eini_specword tensor, index;
  int found = 0;
  const char *s = eini_specword_read(text == NULL ? "" : text, "[]=,. ", &index);
  memset(&tensor, 0, sizeof tensor);
  if (*s == '.') {
    tensor = index;
    s = eini_specword_read(s + 1, "[]=,. ", &index);
  }
  if (index.n == 0 || *s != 0)
    return eini_fail(dc->diag, EIN_ERR_SYNTAX, -1, 0, "for example j, or T.j",
                     "keep '%.80s' is not an index", text == NULL ? "" : text);
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    int c = eini_find_index(dc->node[i].s, index);
    if (c < 0 || (tensor.n > 0 && !eini_specword_eq(tensor, eini_node_name(dc, i)))) continue;
    found = 1;
    dc->node[i].limit[c] = 1;
  }
  return found ? EIN_OK : eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL,
                                    "keep '%.80s': no statement has this index", text);
}

// Is row r of a map the index that a word names, or what splits its axis: q*E + i, i from 0 to E?
static int eini_row_names(const eini_stmt *s, const eini_map *m, int r, eini_specword w) {
  const eini_mapterm *x = &m->term[m->first[r]];
  int64_t coef;
  const int c = eini_row_index(m, r, &coef);
  if (c >= 0) return coef == 1 && eini_specword_eq(w, s->index[c].name);
  for (int k = 0; k < 2 && eini_map_terms(m, r) == 2; k++)
    if (x[k].coef == 1 && x[1 - k].coef == s->index[x[k].index].extent &&
        eini_specword_eq(w, s->index[x[k].index].name)) return 1;
  return 0;
}

// The axis of a tensor that a word names, by number or by an index that stands alone there; -1:
// none, -2: several.
static int eini_pin_axis(const eini_decomposer *dc, int tensor, eini_specword w) {
  const eini_tensor *t = &dc->g->tensor[tensor];
  int axis = -1;
  for (int r = 0; r < t->rank; r++) {
    char number[16];
    snprintf(number, sizeof number, "%d", r);
    int names = eini_specword_eq(w, number);
    for (int64_t i = 0; i < dc->g->nstmt && !names; i++) {
      const eini_stmt *s = &dc->g->stmt[i];
      for (int k = -1; k < s->noperand; k++)
        if ((k < 0 ? s->out : s->operand[k]) == tensor)
          names |= eini_row_names(s, eini_access(s, k), r, w);
    }
    if (names) axis = axis == -1 ? r : -2;
  }
  return axis;
}

// Is it a pattern of names? A "*" stands for any text.
static int eini_pin_pattern(eini_specword w) {
  return w.n > 0 && memchr(w.s, '*', (size_t)w.n) != NULL;
}

static int eini_pin_fits(eini_specword w, const char *name) {
  int at = 0, star = -1;
  const char *again = name;
  while (*name != 0) {
    if (at < w.n && w.s[at] == '*') star = at++, again = name;
    else if (at < w.n && w.s[at] == *name) at++, name++;
    else if (star >= 0) at = star + 1, name = ++again;
    else return 0;
  }
  while (at < w.n && w.s[at] == '*') at++;
  return at == w.n;
}

// Does a pin mean this tensor? A pattern means inputs and outputs that have all its axes.
static int eini_pin_means(const eini_decomposer *dc, const eini_spec *spec, int tensor) {
  const eini_tensor *t = &dc->g->tensor[tensor];
  if (!eini_pin_pattern(spec->name)) return eini_specword_eq(spec->name, t->name);
  if (t->role != EIN_ROLE_INPUT && t->role != EIN_ROLE_OUTPUT) return 0;
  if (!eini_pin_fits(spec->name, t->name)) return 0;
  for (int k = 0; k < spec->n; k++)
    if (eini_pin_axis(dc, tensor, spec->item[k]) < 0) return 0;
  return 1;
}

// The only statement that defines a tensor, with plain indices; -1: none.
static int eini_pin_stmt(const eini_decomposer *dc, int tensor) {
  int found = -1;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    const eini_stmt *s = dc->node[i].s;
    int64_t coef;
    if (s->out != tensor) continue;
    if (found >= 0) return -1;
    found = i;
    for (int r = 0; r < s->out_map.rows; r++)
      if (eini_row_index(&s->out_map, r, &coef) < 0 || coef != 1) return -1;
  }
  return found;
}

static ein_status eini_constrain_pinned(eini_decomposer *dc, const char *text,
                                        const eini_spec *spec, int tensor) {
  const char *name = dc->g->tensor[tensor].name;
  int i = dc->tensor_node[tensor], input = i >= 0;
  int64_t coef;
  if (i < 0) i = eini_pin_stmt(dc, tensor);
  if (i < 0)
    return eini_fail(dc->diag, EIN_ERR_SHAPE, -1, 0, NULL, "pin '%.80s': '%.60s' is not read, or "
                     "its pieces cannot be pinned", text, name);
  const eini_stmt *s = dc->node[i].s;
  for (int k = 0; k < spec->n; k++) {
    const eini_specword w = spec->item[k];
    int axis = eini_pin_axis(dc, tensor, w);
    if (axis < 0)
      return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, "number the axis, from 0", axis == -1 ?
                       "pin '%.80s': no statement has index '%.*s' alone at an axis of '%.60s'" :
                       "pin '%.80s': '%.*s' stands at several axes of '%.60s'", text, w.n, w.s,
                       name);
    int c = eini_row_index(&s->out_map, axis, &coef);
    if (input) {  // its axes have no names but this one, for messages
      s->index[c].name = eini_strndup(&dc->arena, w.s, w.n);
      if (s->index[c].name == NULL) return EIN_ERR_NO_MEMORY;
    }
    EINI_TRY(eini_need(dc, i, c, spec->value[k]));
  }
  for (int c = 0; c < s->nfree; c++)
    if (dc->node[i].need[c] == 0) dc->node[i].need[c] = 1;
  dc->node[i].pinned = 1;
  return eini_need_product(dc, i);
}

static ein_status eini_constrain_pin(eini_decomposer *dc, const char *text) {
  eini_spec spec;
  int found = 0;
  EINI_TRY(eini_spec_read(dc, "pin", text, &spec));
  for (int t = 0; t < dc->g->ntensor; t++) {
    if (!eini_pin_means(dc, &spec, t)) continue;
    if (eini_pin_pattern(spec.name) && dc->tensor_node[t] < 0 && eini_pin_stmt(dc, t) < 0) continue;
    EINI_TRY(eini_constrain_pinned(dc, text, &spec, t));
    found = 1;
  }
  if (found) return EIN_OK;
  if (eini_pin_pattern(spec.name))
    return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "pin '%.80s': no input or output of such "
                     "a name has these axes", text);
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, NULL, "pin '%.80s': there is no tensor '%.*s'",
                   text, spec.name.n, spec.name.s);
}

static ein_status eini_constrain(eini_decomposer *dc) {
  const ein_decompose_desc *d = dc->desc;
  for (int k = 0; k < d->nkeep; k++) EINI_TRY(eini_constrain_keep(dc, d->keep[k]));
  for (int k = 0; k < d->npin; k++) EINI_TRY(eini_constrain_pin(dc, d->pin[k]));
  for (int k = 0; k < d->nparts; k++) EINI_TRY(eini_constrain_parts(dc, d->parts[k]));
  return EIN_OK;
}
