// ================================================================================================
// >>cache  models of a fast memory: what moves for a sequence of accesses
// Takes accesses to numbered lines; gives how many lines are read and written, when the one used
// longest ago goes (LRU), or the one that is needed last (ideal: Belady 1966, from a record).
// ================================================================================================

// What a line is part of.
enum { EINI_LINE_INPUT, EINI_LINE_OUTPUT, EINI_LINE_TEMP, EINI_LINE_SCRATCH, EINI_LINE_KINDS };
// How it is accessed: EINI_SET needs nothing of what was there.
enum { EINI_READ = 0, EINI_WRITE = 1, EINI_SET = 3 };

#define EINI_LINE_KIND 3          // bits of a flag
#define EINI_LINE_FETCH 4         // has several elements: after it was stored once, SET reads it
#define EINI_LINE_DIRTY 8
#define EINI_LINE_STORED 16
#define EINI_LINES_MOST ((int64_t)1 << 30)
#define EINI_RECORD ((int64_t)1024)  // accesses of the first block of the record; others are twice
#define EINI_RECORDS 21              //   the one before

typedef struct eini_fast {
  eini_arena *a;
  int ideal;
  int64_t room, held, nline;      // lines that fit, that are there, and that there are
  unsigned char *flag;            // [nline] EINI_LINE_*
  int32_t *at;                    // [nline] ideal: place in the heap + 1; 0: not there
  int32_t *prev, *next;           // LRU: [nline] of a list, latest first; -2: not there
  int32_t first, last;
  int32_t *heap;                  // ideal: [room] lines, the one needed last on top
  uint32_t *need;                 // ideal: [nline] when a line is needed again; none: UINT32_MAX
  uint32_t *record[EINI_RECORDS], *again[EINI_RECORDS];  // ideal: blocks of line * 4 + access, and
  uint32_t *latest;               //   when the line comes next; the last access
  int64_t naccess;
  ein_status status;              // of recording
  double read[EINI_LINE_KINDS], written[EINI_LINE_KINDS];
} eini_fast;

static ein_status eini_fast_new(eini_arena *a, int ideal, int64_t room, int64_t nline,
                                eini_fast *f) {
  memset(f, 0, sizeof *f);
  if (nline > EINI_LINES_MOST) return EIN_ERR_TOO_LARGE;
  f->a = a;
  f->ideal = ideal;
  f->room = eini_min64(room, nline);
  f->nline = nline;
  f->first = f->last = -1;
  f->flag = EINI_NEW(a, unsigned char, nline + 1);
  if (f->flag == NULL) return EIN_ERR_NO_MEMORY;
  if (ideal) {
    f->at = EINI_NEW(a, int32_t, nline + 1);
    f->need = EINI_NEW(a, uint32_t, nline + 1);
    f->heap = EINI_NEW(a, int32_t, f->room + 1);
    return f->at == NULL || f->need == NULL || f->heap == NULL ? EIN_ERR_NO_MEMORY : EIN_OK;
  }
  f->prev = EINI_NEW(a, int32_t, nline + 1);
  f->next = EINI_NEW(a, int32_t, nline + 1);
  if (f->prev == NULL || f->next == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t i = 0; i < nline; i++) f->prev[i] = -2;
  return EIN_OK;
}

static double eini_fast_moved(const eini_fast *f) {
  double sum = 0;
  for (int k = 0; k < EINI_LINE_KINDS; k++) sum += f->read[k] + f->written[k];
  return sum;
}

// A line comes in. What was never stored, or is one element that is set, need not be read.
static void eini_fast_load(eini_fast *f, int64_t line, int how) {
  const int flag = f->flag[line];
  if (how != EINI_SET || (flag & EINI_LINE_FETCH && flag & EINI_LINE_STORED))
    f->read[flag & EINI_LINE_KIND]++;
}

// A line goes, or all is over: then temporaries are not needed any more.
static void eini_fast_store(eini_fast *f, int64_t line, int over) {
  unsigned char *flag = &f->flag[line];
  const int kind = *flag & EINI_LINE_KIND;
  if (*flag & EINI_LINE_DIRTY && !(over && kind >= EINI_LINE_TEMP)) {
    f->written[kind]++;
    *flag |= EINI_LINE_STORED;
  }
  *flag = (unsigned char)(*flag & ~EINI_LINE_DIRTY);
}

// ---- the one used longest ago ----

static void eini_fast_unlink(eini_fast *f, int32_t i) {
  const int32_t p = f->prev[i], n = f->next[i];
  if (p >= 0) f->next[p] = n;
  else f->first = n;
  if (n >= 0) f->prev[n] = p;
  else f->last = p;
}

static void eini_fast_front(eini_fast *f, int32_t i) {
  f->prev[i] = -1;
  f->next[i] = f->first;
  if (f->first >= 0) f->prev[f->first] = i;
  else f->last = i;
  f->first = i;
}

static void eini_fast_lru(eini_fast *f, int64_t line, int how) {
  const int32_t i = (int32_t)line;
  if (f->prev[i] == -2) {
    if (f->held == f->room) {
      const int32_t out = f->last;
      eini_fast_unlink(f, out);
      f->prev[out] = -2;
      eini_fast_store(f, out, 0);
    } else {
      f->held++;
    }
    eini_fast_load(f, line, how);
    eini_fast_front(f, i);
  } else if (f->first != i) {
    eini_fast_unlink(f, i);
    eini_fast_front(f, i);
  }
  if (how != EINI_READ) f->flag[i] |= EINI_LINE_DIRTY;
}

// ---- the one needed last ----

// The first access of block b of the record.
static int64_t eini_fast_start(int b) { return EINI_RECORD * (((int64_t)1 << b) - 1); }

// Accesses one after another to one line are one: the first says what is read, all what is written.
static void eini_fast_note(eini_fast *f, int64_t line, int how) {
  int b = 0;
  if (f->latest != NULL && *f->latest >> 2 == (uint32_t)line) {
    if (how != EINI_READ) *f->latest |= EINI_WRITE;
    return;
  }
  while (b < EINI_RECORDS && f->naccess >= eini_fast_start(b + 1)) b++;
  if (f->status != EIN_OK) return;
  if (b == EINI_RECORDS) f->status = EIN_ERR_TOO_LARGE;
  else if (f->record[b] == NULL &&
           (f->record[b] = EINI_NEW(f->a, uint32_t, EINI_RECORD << b)) == NULL)
    f->status = EIN_ERR_NO_MEMORY;
  if (f->status != EIN_OK) return;
  f->latest = &f->record[b][f->naccess++ - eini_fast_start(b)];
  *f->latest = (uint32_t)line << 2 | (uint32_t)how;
}

static void eini_fast_put(eini_fast *f, int64_t place, int32_t line) {
  f->heap[place] = line;
  f->at[line] = (int32_t)place + 1;
}

static void eini_fast_up(eini_fast *f, int64_t i, int32_t line) {
  for (; i > 0 && f->need[f->heap[(i - 1) / 2]] < f->need[line]; i = (i - 1) / 2)
    eini_fast_put(f, i, f->heap[(i - 1) / 2]);
  eini_fast_put(f, i, line);
}

// Takes the line that is needed last out of the heap.
static int32_t eini_fast_pop(eini_fast *f) {
  const int32_t top = f->heap[0], line = f->heap[--f->held];
  const int64_t n = f->held;
  int64_t i = 0;
  f->at[top] = 0;
  for (int64_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && f->need[f->heap[k + 1]] > f->need[f->heap[k]]) k++;
    if (f->need[f->heap[k]] <= f->need[line]) break;
    eini_fast_put(f, i, f->heap[k]);
  }
  if (n > 0) eini_fast_put(f, i, line);
  return top;
}

// When each line of the record comes again.
static ein_status eini_fast_ahead(eini_fast *f) {
  EINI_TRY(f->status);
  for (int64_t i = 0; i < f->nline; i++) f->need[i] = UINT32_MAX;
  for (int b = EINI_RECORDS - 1; b >= 0; b--) {
    const int64_t start = eini_fast_start(b), n = eini_min64(f->naccess - start, EINI_RECORD << b);
    if (n <= 0) continue;
    if ((f->again[b] = EINI_NEW(f->a, uint32_t, n)) == NULL) return EIN_ERR_NO_MEMORY;
    for (int64_t i = n - 1; i >= 0; i--) {
      const uint32_t line = f->record[b][i] >> 2;
      f->again[b][i] = f->need[line];
      f->need[line] = (uint32_t)(start + i);
    }
  }
  return EIN_OK;
}

static void eini_fast_ideal(eini_fast *f, uint32_t x, uint32_t again) {
  const int32_t line = (int32_t)(x >> 2);
  int64_t place = f->at[line] - 1;
  if (place < 0) {
    if (f->held == f->room) {
      const int32_t out = eini_fast_pop(f);
      eini_fast_store(f, out, f->need[out] == UINT32_MAX);
    }
    eini_fast_load(f, line, (int)(x & 3));
    place = f->held++;
  }
  f->need[line] = again;
  eini_fast_up(f, place, line);
  if ((x & 3) != EINI_READ) f->flag[line] |= EINI_LINE_DIRTY;
}

// ---- both ----

static void eini_fast_touch(eini_fast *f, int64_t line, int how) {
  if (f->ideal) eini_fast_note(f, line, how);
  else eini_fast_lru(f, line, how);
}

// Ends: results that are still there are written. ideal: goes through the record; moved[k]: lines
// moved before access mark[k], and in the end moved[nmark].
static ein_status eini_fast_end(eini_fast *f, int64_t nmark, const int64_t *mark, double *moved) {
  int64_t k = 0;
  if (f->ideal) EINI_TRY(eini_fast_ahead(f));
  for (int b = 0; b < EINI_RECORDS && eini_fast_start(b) < f->naccess; b++) {
    const int64_t start = eini_fast_start(b), n = eini_min64(f->naccess - start, EINI_RECORD << b);
    for (int64_t i = 0; i < n; i++) {
      for (; k < nmark && mark[k] <= start + i; k++) moved[k] = eini_fast_moved(f);
      eini_fast_ideal(f, f->record[b][i], f->again[b][i]);
    }
  }
  for (; f->ideal && k < nmark; k++) moved[k] = eini_fast_moved(f);
  for (int64_t i = 0; i < f->nline; i++) eini_fast_store(f, i, 1);
  moved[nmark] = eini_fast_moved(f);
  return EIN_OK;
}
