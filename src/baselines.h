// ================================================================================================
// >>baselines  data, model, sequence, attention and sqrt
// What people do by hand: one kind of index is cut everywhere. Indices are of a kind when they name
// it, or meet one that does at an axis of a tensor.
// ================================================================================================

enum { EINI_KIND_BATCH, EINI_KIND_SEQUENCE, EINI_KIND_HEADS, EINI_KIND_HIDDEN, EINI_KINDS };

typedef struct eini_classuse {  // statements where a class of indices is, and where it stays free
  int64_t all, free;
} eini_classuse;

typedef struct eini_kinds {
  int *stmt_at, *tensor_at;  // first item of each statement's indices and tensor's axes
  int *parent;               // union-find over them
  unsigned char *kind;       // bits, of roots
  eini_classuse *use;        // of roots
} eini_kinds;

static int eini_root(int *parent, int x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

static int eini_list_has(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *s = list; n > 0 && (s = strstr(s, name)) != NULL; s += n)
    if ((s == list || s[-1] == ',') && (s[n] == 0 || s[n] == ',')) return 1;
  return 0;
}

static const char *eini_kind_names(const ein_decompose_desc *d, int kind) {
  const char *given = kind == EINI_KIND_BATCH ? d->batch : kind == EINI_KIND_SEQUENCE ? d->sequence
                      : kind == EINI_KIND_HEADS ? d->heads : d->hidden;
  static const char *const names[] = {"b,batch,n", "s,seq,sequence", "h,head,heads",
                                      "f,hidden,ff"};
  return given != NULL ? given : names[kind];
}

// Follows indices through the axes where they stand alone.
static ein_status eini_kinds_find(eini_decomposer *dc, eini_kinds *q) {
  const ein_graph *g = dc->g;
  int n = 0;
  q->stmt_at = EINI_NEW(&dc->arena, int, g->nstmt);
  q->tensor_at = EINI_NEW(&dc->arena, int, g->ntensor);
  if (q->stmt_at == NULL || q->tensor_at == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; n += g->tensor[t++].rank) q->tensor_at[t] = n;
  for (int64_t i = 0; i < g->nstmt; n += g->stmt[i++].nindex) q->stmt_at[i] = n;
  q->parent = EINI_NEW(&dc->arena, int, n);
  q->kind = EINI_NEW(&dc->arena, unsigned char, n);
  if (q->parent == NULL || q->kind == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < n; k++) q->parent[k] = k;
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = dc->node[i].s;
    for (int k = -1; k < s->noperand; k++) {
      const eini_map *m = eini_access(s, k);
      for (int r = 0; r < m->rows; r++) {
        int64_t coef;
        int c = eini_row_index(m, r, &coef);
        if (c < 0) continue;
        int a = eini_root(q->parent, q->stmt_at[i] + c);
        int b = eini_root(q->parent, q->tensor_at[k < 0 ? s->out : s->operand[k]] + r);
        q->parent[a > b ? a : b] = a > b ? b : a;
      }
    }
  }
  for (int64_t i = 0; i < g->nstmt; i++) {
    const eini_stmt *s = dc->node[i].s;
    for (int c = 0; c < s->nindex; c++) {
      int root = eini_root(q->parent, q->stmt_at[i] + c);
      for (int k = 0; k < EINI_KINDS; k++)
        if (eini_list_has(eini_kind_names(dc->desc, k), s->index[c].name))
          q->kind[root] = (unsigned char)(q->kind[root] | 1u << k);
    }
  }
  return EIN_OK;
}

// Orders the indices of every statement: first those that, followed along axes, are reduced least
// and met most. What is cut in this order is cut alike by many statements.
static ein_status eini_prefer(eini_decomposer *dc, eini_kinds *q) {
  int n = 0, nstmt = dc->nnode - dc->npinned;
  for (int64_t t = 0; t < dc->g->ntensor; t++)
    n = (int)eini_max64(n, q->tensor_at[t] + dc->g->tensor[t].rank);
  for (int i = 0; i < nstmt; i++)
    n = (int)eini_max64(n, q->stmt_at[i] + dc->node[i].s->nindex);
  eini_classuse *use = EINI_NEW(&dc->arena, eini_classuse, n);
  if (use == NULL) return EIN_ERR_NO_MEMORY;
  q->use = use;
  for (int i = 0; i < nstmt; i++) {
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      eini_classuse *u = &use[eini_root(q->parent, q->stmt_at[i] + c)];
      u->all++;
      u->free += c < dc->node[i].s->nfree;
    }
  }
  for (int i = 0; i < nstmt; i++) {
    int *by = dc->node[i].prefer;
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      int mine = eini_root(q->parent, q->stmt_at[i] + c), k = c;
      for (; k > 0; k--) {
        int other = eini_root(q->parent, q->stmt_at[i] + by[k - 1]);
        int64_t more = use[other].free * use[mine].all - use[mine].free * use[other].all;
        if (more == 0) more = use[other].all - use[mine].all;
        if (more > 0 || (more == 0 && other <= mine)) break;
        by[k] = by[k - 1];
      }
      by[k] = c;
    }
  }
  return EIN_OK;
}

enum { EINI_BASE_NONE, EINI_BASE_SQRT, EINI_BASE_DATA, EINI_BASE_MODEL, EINI_BASE_SEQUENCE,
       EINI_BASE_ATTENTION, EINI_BASES, EINI_METHOD_GIVEN = EINI_BASES, EINI_METHOD_BEST,
       EINI_METHOD_LINEAR, EINI_METHOD_FIXED,    // fixed: what the hint says
       EINI_METHOD_CLASS };  // and on: classes of indices cut everywhere, see eini_classes_all

#define EINI_CLASSES 6  // classes that are tried

static const char *const eini_method_names[] = {"none", "sqrt", "data", "model", "sequence",
                                                "attention", "given", "eindecomp", "linear",
                                                "", "class"};

static int eini_method_find(const char *name) {
  if (name == NULL) return EINI_METHOD_BEST;
  for (int i = 0; i <= EINI_METHOD_LINEAR; i++)
    if (strcmp(name, eini_method_names[i]) == 0) return i;
  return strcmp(name, "megatron") == 0 ? EINI_BASE_MODEL : -1;
}

// The first index of a kind that can be cut; the free ones come first.
static int eini_kind_index(const eini_decomposer *dc, eini_kinds *q, int i, int kind) {
  const eini_dform *f = &dc->node[i];
  for (int c = 0; c < f->s->nindex; c++) {
    int root = eini_root(q->parent, q->stmt_at[i] + c);
    if ((q->kind[root] >> kind & 1) != 0 && f->limit[c] > 1) return c;
  }
  return -1;
}

// Slices a matrix sqrt(p) x sqrt(p): the two longest indices of the output (of the index space
// when it has none) get the factors of p nearest to its root, the longer one more.
static void eini_sqrt_cut(const eini_decomposer *dc, int i, int64_t *cut) {
  const eini_dform *f = &dc->node[i];
  int64_t best = 0;
  int a = -1, b = -1, to = f->s->nfree, any = 0;
  for (int c = 0; c < f->s->nfree; c++) any |= f->limit[c] > 1;
  if (!any) to = f->s->nindex;
  for (int c = 0; c < to; c++)
    if (f->limit[c] > 1 && (a < 0 || f->limit[c] > f->limit[a])) a = c;
  for (int c = 0; c < to; c++)
    if (c != a && f->limit[c] > 1 && (b < 0 || f->limit[c] > f->limit[b])) b = c;
  if (a >= 0 && b < 0) cut[a] = eini_min64(dc->p, f->limit[a]);
  for (int k = 0; k < dc->ndivisor && b >= 0; k++) {
    int64_t less = dc->divisor[k];
    if (less * less > dc->p) break;
    int64_t x = eini_min64(dc->p / less, f->limit[a]), y = eini_min64(less, f->limit[b]);
    if (x * y < best) continue;
    best = x * y;
    cut[a] = x;
    cut[b] = y;
  }
}

// The vector of a baseline for statement i; 1 when it cuts something.
static int eini_baseline(const eini_decomposer *dc, eini_kinds *q, int base, int i, int64_t *cut) {
  static const int kinds[EINI_BASES][2] = {{-1, -1}, {-1, -1}, {EINI_KIND_BATCH, -1},
      {EINI_KIND_HEADS, EINI_KIND_HIDDEN}, {EINI_KIND_SEQUENCE, -1}, {EINI_KIND_HEADS, -1}};
  const eini_dform *f = &dc->node[i];
  int at = -1;
  for (int c = 0; c < f->s->nindex; c++) cut[c] = 1;
  if (base == EINI_BASE_SQRT) eini_sqrt_cut(dc, i, cut);
  for (int k = 0; k < 2 && at < 0; k++)
    if (kinds[base][k] >= 0) at = eini_kind_index(dc, q, i, kinds[base][k]);
  if (at >= 0) cut[at] = eini_min64(dc->p, f->limit[at]);
  return eini_tasks(cut, f->s->nindex) > 1;
}

// The classes that are free in most statements, by their roots: EINI_CLASSES at most.
static int eini_classes_top(const eini_decomposer *dc, eini_kinds *q, int *top) {
  int ntop = 0;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      int root = eini_root(q->parent, q->stmt_at[i] + c), k = ntop;
      if (dc->node[i].limit[c] == 1 || eini_find_int(top, ntop, root) >= 0) continue;
      for (; k > 0; k--) {
        const eini_classuse *a = &q->use[top[k - 1]], *b = &q->use[root];
        if (a->free > b->free || (a->free == b->free && a->all <= b->all)) break;
        top[k] = top[k - 1];
      }
      top[k] = root;
      if (ntop < EINI_CLASSES) ntop++;
    }
  }
  return ntop;
}

// Methods of classes, as bits: each class by itself; and with the first one behind it that no
// statement has beside it, as Megatron's heads and hidden width.
static uint64_t eini_classes_all(const eini_decomposer *dc, eini_kinds *q) {
  int top[EINI_CLASSES + 1], n = eini_classes_top(dc, q, top);
  uint64_t all = 0, meet[EINI_CLASSES] = {0};
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    uint64_t here = 0;
    for (int c = 0; c < dc->node[i].s->nindex; c++) {
      const int k = eini_find_int(top, n, eini_root(q->parent, q->stmt_at[i] + c));
      if (k >= 0) here |= (uint64_t)1 << k;
    }
    for (int k = 0; k < n; k++)
      if (here >> k & 1) meet[k] |= here;
  }
  for (int a = 0; a < n; a++) {
    int b = a + 1;
    while (b < n && (meet[a] >> b & 1) != 0) b++;
    all |= (uint64_t)1 << (a * EINI_CLASSES + a);
    if (b < n) all |= (uint64_t)1 << (a * EINI_CLASSES + b);
  }
  return all;
}

// Marks the classes of method n for eini_baseline.
static ein_status eini_class_mark(const eini_decomposer *dc, eini_kinds *q, int n) {
  int top[EINI_CLASSES + 1];
  const int ntop = eini_classes_top(dc, q, top), a = n / EINI_CLASSES, b = n % EINI_CLASSES;
  for (int i = 0; i < dc->nnode - dc->npinned; i++)
    for (int c = 0; c < dc->node[i].s->nindex; c++)
      q->kind[eini_root(q->parent, q->stmt_at[i] + c)] = 0;
  if (a >= ntop || b >= ntop) return EIN_ERR_NAME;
  q->kind[top[b]] = 1u << EINI_KIND_HIDDEN;
  q->kind[top[a]] = 1u << EINI_KIND_HEADS;
  return EIN_OK;
}

// A baseline as the only choice of every statement; what is asked for otherwise stays.
static ein_status eini_baseline_need(eini_decomposer *dc, eini_kinds *q, int base) {
  int cuts = 0;
  for (int i = 0; i < dc->nnode - dc->npinned; i++) {
    eini_dform *f = &dc->node[i];
    int64_t *cut = EINI_NEW(&dc->arena, int64_t, f->s->nindex), asked = 1;
    if (cut == NULL) return EIN_ERR_NO_MEMORY;
    cuts |= eini_baseline(dc, q, base, i, cut);
    for (int c = 0; c < f->s->nindex; c++) asked *= f->need[c] != 0 ? f->need[c] : cut[c];
    for (int c = 0; c < f->s->nindex; c++)
      if (f->need[c] == 0) f->need[c] = asked > dc->p ? 1 : cut[c];
  }
  if (cuts || base <= EINI_BASE_SQRT || dc->p == 1) return EIN_OK;
  return eini_fail(dc->diag, EIN_ERR_NAME, -1, 0, "name the indices it cuts",
                   "method '%s': no statement has an index of its kind", dc->desc->method);
}
