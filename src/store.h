// ================================================================================================
// >>store  what was tuned, as text
// Takes the text of a tuning store; gives its records by the normal form of a statement, and stores
// of several texts as one. Lines of other versions and broken ones are kept as they are.
// ================================================================================================

// A store is lines. The first says what the others are; those of an unknown kind are nobody's to
// drop. A record is its fields with tabs between. Of several with one key (machine, form, dtypes,
// extents) the last one holds.
#define EINI_STORE_KIND "einsum store "
#define EINI_STORE_HEAD EINI_STORE_KIND "1"
#define EINI_STORE_LINE 65536     // bytes of a line that may be a record

enum {  // fields
  EINI_S_MACHINE, EINI_S_FORM, EINI_S_DTYPES, EINI_S_EXTENTS, EINI_S_PATH, EINI_S_VARIANT,
  EINI_S_TIME, EINI_S_UNTUNED, EINI_S_FIELDS
};

static const char *const eini_store_fields =
    "machine\tform\tdtypes\textents\tpath\tvariant\tnanoseconds\tuntuned";

// Of another size a choice is taken up to this largest |log2| of a ratio of extents: 1 is half or
// twice. Assumed: blocks and caches then fit alike.
static const double eini_store_near = 1;

typedef struct eini_record {
  const char *field[EINI_S_FIELDS];
  int nextent;
  int64_t *extent;
  double seconds, untuned;
  int64_t next;                   // record of the same form and dtypes, or -1
} eini_record;

// A line that is no record. rank: before the header, below it, or of a section of another version.
typedef struct eini_alien {
  int rank;
  const char *text;
  int64_t n;
} eini_alien;

typedef struct eini_records {
  eini_arena arena;               // it lives in it
  eini_record *record;
  int64_t nrecord, caprecord;
  eini_alien *alien;
  int64_t nalien, capalien;
  eini_keys whole, form, strange;  // hashes of keys; of form and dtypes; of aliens
  int64_t *known, capknown;       // record of a key
  int64_t *head, caphead;         // first record of a form
  int64_t line, skipped, where;   // lines read; those that were skipped, and the first of them
} eini_records;

static ein_status eini_store_new(const ein_allocator *al, eini_records **to) {
  eini_arena arena;
  eini_arena_init(&arena, al);
  eini_records *s = EINI_NEW(&arena, eini_records, 1);
  *to = s;
  if (s == NULL) return EIN_ERR_NO_MEMORY;
  s->arena = arena;
  return EIN_OK;
}

static void eini_store_free(eini_records *s) {
  if (s == NULL) return;
  eini_arena arena = s->arena;
  eini_arena_free(&arena);
}

// ---- records from lines ----

// The whole number of one to 18 digits at *s, which moves behind it; -1: there is none.
static int64_t eini_store_digits(const char **s) {
  int64_t x = 0;
  int n = 0;
  for (; eini_is_digit((unsigned char)**s) && n < 18; n++) x = 10 * x + (*(*s)++ - '0');
  return n == 0 ? -1 : x;
}

// A field that is a number; -1: it is none.
static int64_t eini_store_number(const char *s) {
  const int64_t x = eini_store_digits(&s);
  return *s != 0 ? -1 : x;
}

// "3,4,5", or "-" for none. 0: it is neither.
static int eini_store_extents(const char *s, int *n, int64_t *extent) {
  *n = 0;
  if (strcmp(s, "-") == 0) return 1;
  for (;; s++) {
    const int64_t x = eini_store_digits(&s);
    if (x < 0) return 0;
    extent[(*n)++] = x;
    if (*s != ',') return *s == 0;
  }
}

static int eini_store_path_ok(const char *s) {
  if (strcmp(s, "auto") == 0 || strcmp(s, "none") == 0) return 1;
  return s[0] == '(' && s[strspn(s, "0123456789,() ")] == 0;
}

// The record of a line; *ok 0: it is none. Its fields are those of a copy of the line.
static ein_status eini_store_read(eini_arena *a, const char *line, int64_t n, eini_record *r,
                                  int *ok) {
  int tabs = 0, commas = 0;
  memset(r, 0, sizeof *r);
  *ok = 0;
  if (n >= EINI_STORE_LINE) return EIN_OK;
  for (int64_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)line[i];
    if ((c < 32 && c != '\t') || c == 127) return EIN_OK;
    tabs += c == '\t';
    commas += c == ',';
  }
  if (tabs != EINI_S_FIELDS - 1) return EIN_OK;
  char *copy = eini_strndup(a, line, n);
  r->extent = EINI_NEW(a, int64_t, commas + 1);
  if (copy == NULL || r->extent == NULL) return EIN_ERR_NO_MEMORY;
  r->field[0] = copy;
  for (int f = 1; f < EINI_S_FIELDS; f++) {
    copy = strchr(copy, '\t');
    *copy++ = 0;
    r->field[f] = copy;
  }
  for (int f = 0; f < EINI_S_FIELDS; f++)
    if (r->field[f][0] == 0) return EIN_OK;
  const int64_t time = eini_store_number(r->field[EINI_S_TIME]);
  const int64_t untuned = eini_store_number(r->field[EINI_S_UNTUNED]);
  r->seconds = 1e-9 * (double)time;
  r->untuned = 1e-9 * (double)untuned;
  *ok = time >= 0 && untuned >= 0 && eini_store_path_ok(r->field[EINI_S_PATH]) &&
        eini_store_extents(r->field[EINI_S_EXTENTS], &r->nextent, r->extent);
  return EIN_OK;
}

// Two hashes of a text, behind what is there.
static void eini_store_hash(int64_t *key, const char *s, size_t n) {
  const uint64_t a = eini_hash(s, n, (uint64_t)key[0]), b = eini_hash(s, n, ~(uint64_t)key[1]);
  key[0] = (int64_t)a;
  key[1] = (int64_t)b;
}

static void eini_store_key(const eini_record *r, int from, int to, int64_t *key) {
  key[0] = key[1] = 0;
  for (int f = from; f < to; f++) eini_store_hash(key, r->field[f], strlen(r->field[f]) + 1);
}

// Adds a record, or puts it in the place of that with its key.
static ein_status eini_store_add(eini_records *s, const eini_record *r) {
  int64_t key[2];
  eini_store_key(r, EINI_S_MACHINE, EINI_S_PATH, key);
  const int64_t count = s->whole.n, i = eini_key_number(&s->arena, &s->whole, key, 2);
  if (i < 0) return EIN_ERR_NO_MEMORY;
  if (i < count) {
    eini_record *old = &s->record[s->known[i]];
    const int64_t next = old->next;
    *old = *r;
    old->next = next;
    return EIN_OK;
  }
  eini_store_key(r, EINI_S_FORM, EINI_S_EXTENTS, key);
  const int64_t forms = s->form.n, f = eini_key_number(&s->arena, &s->form, key, 2);
  int64_t *known = (int64_t *)eini_grow(&s->arena, s->known, count, &s->capknown, sizeof *known);
  eini_record *p = (eini_record *)eini_grow(&s->arena, s->record, s->nrecord, &s->caprecord,
                                            sizeof *p);
  if (f < 0 || known == NULL || p == NULL) return EIN_ERR_NO_MEMORY;
  s->known = known;
  s->record = p;
  if (f == forms) {
    int64_t *head = (int64_t *)eini_grow(&s->arena, s->head, forms, &s->caphead, sizeof *head);
    if (head == NULL) return EIN_ERR_NO_MEMORY;
    s->head = head;
    head[f] = -1;
  }
  known[i] = s->nrecord;
  p += s->nrecord;
  *p = *r;
  p->next = s->head[f];
  s->head[f] = s->nrecord++;
  return EIN_OK;
}

// Keeps what is no record, once.
static ein_status eini_store_alien(eini_records *s, int rank, const char *text, int64_t n) {
  int64_t key[2] = {rank, rank};
  eini_store_hash(key, text, (size_t)n);
  const int64_t count = s->strange.n, i = eini_key_number(&s->arena, &s->strange, key, 2);
  eini_alien *p = (eini_alien *)eini_grow(&s->arena, s->alien, s->nalien, &s->capalien, sizeof *p);
  if (i < 0 || p == NULL) return EIN_ERR_NO_MEMORY;
  s->alien = p;
  if (i < count) return EIN_OK;
  p += s->nalien++;
  p->rank = rank;
  p->n = n;
  p->text = eini_strndup(&s->arena, text, n);
  return p->text == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static int eini_store_begins(const char *line, int64_t n, const char *with) {
  const size_t k = strlen(with);
  return n >= (int64_t)k && memcmp(line, with, k) == 0;
}

static int eini_store_is_head(const char *line, int64_t n) {
  const int64_t k = (int64_t)strlen(EINI_STORE_HEAD);
  return eini_store_begins(line, n, EINI_STORE_HEAD) && (n == k || line[k] == ':');
}

static ein_status eini_store_line(eini_records *s, int rank, const char *line, int64_t n) {
  eini_record r;
  int ok = 0;
  const eini_arena_at at = eini_arena_mark(&s->arena);
  if (n == 0) return EIN_OK;
  if (rank == 1) EINI_TRY(eini_store_read(&s->arena, line, n, &r, &ok));
  if (ok) return eini_store_add(s, &r);
  eini_arena_rollback(&s->arena, &at);
  if (line[0] != '#' && s->skipped++ == 0) s->where = s->line;
  return eini_store_alien(s, rank, line, n);
}

// Adds what a text says.
static ein_status eini_store_text(eini_records *s, const char *text, size_t bytes) {
  const char *end = text + bytes, *next;
  int rank = 0;
  s->line = 0;
  for (const char *line = text; line < end; line = next) {
    const char *stop = (const char *)memchr(line, '\n', (size_t)(end - line));
    next = stop == NULL ? end : stop + 1;
    const int64_t n = (stop == NULL ? end : stop) - line;
    s->line++;
    if (eini_store_is_head(line, n)) {
      rank = 1;
      continue;
    }
    if (!eini_store_begins(line, n, EINI_STORE_KIND)) {
      EINI_TRY(eini_store_line(s, rank, line, n));
      continue;
    }
    rank = 2;  // another version, up to the next header
    if (s->skipped++ == 0) s->where = s->line;
    for (const char *l = next; l < end; l = next) {
      if (eini_store_begins(l, end - l, EINI_STORE_KIND)) break;
      stop = (const char *)memchr(l, '\n', (size_t)(end - l));
      next = stop == NULL ? end : stop + 1;
      s->line++;
      s->skipped++;
    }
    const int64_t all = next - line;
    EINI_TRY(eini_store_alien(s, 2, line, line[all - 1] == '\n' ? all - 1 : all));
  }
  return EIN_OK;
}

// ---- text of a store ----

typedef struct eini_bytes {  // written as snprintf does, but bytes may be 0
  char *buf;
  size_t size, at;
} eini_bytes;

static void eini_bytes_add(eini_bytes *t, const char *s, size_t n) {
  for (size_t i = 0; i < n && t->at + i < t->size; i++) t->buf[t->at + i] = s[i];
  t->at += n;
}

static void eini_store_aliens(const eini_records *s, int rank, eini_bytes *t) {
  for (int64_t i = 0; i < s->nalien; i++) {
    if (s->alien[i].rank != rank) continue;
    eini_bytes_add(t, s->alien[i].text, (size_t)s->alien[i].n);
    eini_bytes_add(t, "\n", 1);
  }
}

static void eini_store_print(const eini_records *s, eini_bytes *t) {
  eini_store_aliens(s, 0, t);
  eini_bytes_add(t, EINI_STORE_HEAD, strlen(EINI_STORE_HEAD));
  eini_bytes_add(t, ":\t", 2);
  eini_bytes_add(t, eini_store_fields, strlen(eini_store_fields));
  eini_bytes_add(t, "\n", 1);
  for (int64_t i = 0; i < s->nrecord; i++) {
    for (int f = 0; f < EINI_S_FIELDS; f++) {
      const char *x = s->record[i].field[f];
      eini_bytes_add(t, x, strlen(x));
      eini_bytes_add(t, f + 1 < EINI_S_FIELDS ? "\t" : "\n", 1);
    }
  }
  eini_store_aliens(s, 1, t);
  eini_store_aliens(s, 2, t);
}

// ---- lookup ----

// The largest |log2| of a ratio of extents; INFINITY: one of them is 0 and the other is not.
static double eini_store_distance(const eini_record *r, const eini_normal *n) {
  double most = 0;
  for (int i = 0; i < n->nindex; i++) {
    const int64_t a = r->extent[i], b = n->extent[i];
    if (a == b) continue;
    if (a == 0 || b == 0) return INFINITY;
    most = fmax(most, fabs(log2((double)a / (double)b)));
  }
  return most;
}

// The record nearest to a form, among those of the machine (NULL: of any); NULL: none is near
// enough. Of several as near that which came last.
static const eini_record *eini_store_find(const eini_records *s, const char *machine,
                                          const eini_normal *n, double *distance) {
  const eini_record *best = NULL;
  eini_record key;
  int64_t word[2];
  memset(&key, 0, sizeof key);
  key.field[EINI_S_FORM] = n->form;
  key.field[EINI_S_DTYPES] = n->dtypes;
  eini_store_key(&key, EINI_S_FORM, EINI_S_EXTENTS, word);
  if (s->form.n == 0) return NULL;
  const int f = s->form.slot[eini_key_slot(&s->form, word, 2)] - 1;
  for (int64_t i = f < 0 ? -1 : s->head[f]; i >= 0; i = s->record[i].next) {
    const eini_record *r = &s->record[i];
    if (r->nextent != n->nindex || strcmp(r->field[EINI_S_FORM], n->form) != 0 ||
        strcmp(r->field[EINI_S_DTYPES], n->dtypes) != 0 ||
        (machine != NULL && strcmp(r->field[EINI_S_MACHINE], machine) != 0))
      continue;
    const double d = eini_store_distance(r, n);
    if (d > eini_store_near || (best != NULL && d >= *distance)) continue;
    best = r;
    *distance = d;
  }
  return best;
}
