// ================================================================================================
// >>map-masked  maps with a mask of indices
// In where(t <= s, X, c) a comparison of affine indices holds for one range of each row, and so do
// several of which all are to hold: X is made by section map-rows, a few rows at a time and no more
// than their ranges need, or is a constant; c is filled in.
// ================================================================================================

enum { EINI_MASKED = EINI_TURNED_BOX + (int)EINI_TURNED_LOOPS };  // word of ein_choice.state
enum { EINI_MASKED_VALUES = 4, EINI_MASKED_LOOPS = EINI_TURNED_LOOPS + 1, EINI_MASKED_TERMS = 6 };
#define EINI_MASKED_BYTES (1 << 15)       // of rows that are made at once
#define EINI_MASKED_FACTOR 1048576.0      // of indices, at most
#define EINI_MASKED_NUMBER 1099511627776.0
#define EINI_MASKED_CYCLES 60             // of a row's range: an estimate

// A number that is the same for all elements but for indices: factors of values, then a constant.
typedef struct eini_masked_sum {
  int is;
  int64_t by[EINI_MASKED_VALUES + 1];
} eini_masked_sum;

// A comparison: less op 0, where less grows with the loops and is `now` in the row at hand.
typedef struct eini_masked_term {
  eini_masked_sum less;
  int op;                        // LT, LE, or EQ
  int64_t first, now, grows[EINI_MASKED_LOOPS];
} eini_masked_term;

// A condition: all of some terms hold, or, if not, that is not so. None: another one.
typedef struct eini_masked_set {
  unsigned terms;
  int is_not;
} eini_masked_set;

typedef struct eini_masked {
  int64_t size;
  int nterm;
  eini_masked_term term[EINI_MASKED_TERMS];
  unsigned terms;                // those that are to hold
  int inside;                    // X is where they hold, or where they do not
  int copies;                    // X is operand number copies - 1
  const ein_fill *c, *x;         // x: X is a constant, or NULL
  ein_code code;                 // of X
  ein_step step[EINI_ROW_STEPS];
  ein_fill fill[EINI_ROW_REGS];
  ein_map all;                   // X of all rows; its first loop has one value, so that there are
                                 //   always rows
  ein_map some;                  // of the last two loops
  int64_t extent[EINI_MASKED_LOOPS], rows[2];
  int64_t stride[(EINI_ROW_REGS + 1) * EINI_MASKED_LOOPS];
  char *base[EINI_ROW_REGS + 1];
  ein_dtype dtype[EINI_ROW_REGS + 1];
  char block[2][EINI_ROW_BLOCK]; // of c, and of a constant X
} eini_masked;

// What a step of integers makes of such numbers.
static eini_masked_sum eini_masked_step(const ein_step *s, const eini_masked_sum *reg) {
  static const eini_masked_sum none = {0, {0}};
  const eini_masked_sum *x = &reg[s->a], *y = &reg[s->b];
  eini_masked_sum z = none;
  const int two = eini_ops[s->op].args == 2, last = EINI_MASKED_VALUES;
  if (s->op == EIN_OP_INDEX) {
    z.is = s->a < EINI_MASKED_VALUES;
    if (z.is) z.by[s->a] = 1;
    return z;
  }
  if (s->from != EIN_I64 || eini_step_loads(s) || s->op == EIN_OP_CALL) return none;
  if (!x->is || (two && !y->is)) return none;
  int moves[2] = {0, 0};
  for (int v = 0; v < last; v++) moves[0] |= x->by[v] != 0, moves[1] |= two && y->by[v] != 0;
  if (s->op == EIN_OP_MUL && moves[0]) y = x, x = &reg[s->b];
  if (s->op == EIN_OP_MUL && moves[0] && moves[1]) return none;
  z.is = s->op == EIN_OP_NEG || s->op == EIN_OP_ADD || s->op == EIN_OP_SUB || s->op == EIN_OP_MUL;
  for (int v = 0; v <= last && z.is; v++) {
    const double a = (double)x->by[v], b = (double)y->by[v];
    const double by = s->op == EIN_OP_NEG   ? -a
                      : s->op == EIN_OP_ADD ? a + b
                      : s->op == EIN_OP_SUB ? a - b
                                            : (double)x->by[last] * b;
    z.is = fabs(by) <= (v < last ? EINI_MASKED_FACTOR : EINI_MASKED_NUMBER);
    z.by[v] = z.is ? (int64_t)by : 0;
  }
  return z;
}

// Adds a term; none: there are too many.
static eini_masked_set eini_masked_add(eini_masked *w, const eini_masked_sum *less, int op) {
  eini_masked_set set = {0, 0};
  if (w->nterm == EINI_MASKED_TERMS) return set;
  w->term[w->nterm].less = *less, w->term[w->nterm].op = op;
  set.terms = 1u << w->nterm++;
  return set;
}

// The condition said as `is_not` asks, which a single inequality can be either way; or none.
static eini_masked_set eini_masked_said(eini_masked *w, eini_masked_set x, int is_not) {
  static const eini_masked_set none = {0, 0};
  int t = 0;
  if (x.terms == 0 || x.is_not == is_not) return x;
  while (!(x.terms >> t & 1)) t++;
  if (x.terms != 1u << t || w->term[t].op == EIN_OP_EQ) return none;
  eini_masked_sum more = w->term[t].less;
  for (int v = 0; v <= EINI_MASKED_VALUES; v++) more.by[v] = -more.by[v];
  x = eini_masked_add(w, &more, w->term[t].op == EIN_OP_LT ? EIN_OP_LE : EIN_OP_LT);
  x.is_not = is_not;
  return x;
}

// What a step makes of conditions, or of numbers that it compares.
static eini_masked_set eini_masked_condition(eini_masked *w, const ein_step *s,
                                             const eini_masked_sum *reg,
                                             const eini_masked_set *set) {
  static const eini_masked_set none = {0, 0};
  const int both = s->op == EIN_OP_AND, either = s->op == EIN_OP_OR;
  if (s->type != EIN_BOOL || eini_step_loads(s)) return none;
  if (s->op == EIN_OP_NOT) {
    eini_masked_set x = set[s->a];
    x.is_not = !x.is_not;
    return x;
  }
  if (both || either) {
    eini_masked_set x = eini_masked_said(w, set[s->a], either);
    const eini_masked_set y = eini_masked_said(w, set[s->b], either);
    x.terms = x.terms != 0 && y.terms != 0 ? x.terms | y.terms : 0;
    return x;
  }
  const int back = s->op == EIN_OP_GT || s->op == EIN_OP_GE;
  const eini_masked_sum *x = &reg[back ? s->b : s->a], *y = &reg[back ? s->a : s->b];
  if (s->op < EIN_OP_LT || s->op > EIN_OP_NE || s->from != EIN_I64 || !x->is || !y->is) return none;
  eini_masked_sum less = {1, {0}};
  for (int v = 0; v <= EINI_MASKED_VALUES; v++) less.by[v] = x->by[v] - y->by[v];
  const int op = s->op == EIN_OP_LT || s->op == EIN_OP_GT   ? EIN_OP_LT
                 : s->op == EIN_OP_LE || s->op == EIN_OP_GE ? EIN_OP_LE
                                                            : EIN_OP_EQ;
  eini_masked_set z = eini_masked_add(w, &less, op);
  z.is_not = s->op == EIN_OP_NE;
  return z;
}

static const ein_fill *eini_masked_fill(const ein_code *code, int reg) {
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].reg == reg) return &code->fill[i];
  return NULL;
}

// Splits a code into the condition, the constant and X; 0: it is another one.
static int eini_masked_split(eini_masked *w, const ein_code *code) {
  eini_masked_sum reg[EINI_ROW_REGS];
  eini_masked_set set[EINI_ROW_REGS];
  const ein_step *last = &code->step[code->nstep - 1];
  if (code->nstep < 3 || code->nstep > EINI_ROW_STEPS || code->nreg > EINI_ROW_REGS) return 0;
  if (last->op != EIN_OP_WHERE || last->dst != code->result) return 0;
  memset(reg, 0, sizeof reg);
  memset(set, 0, sizeof set);
  w->code = *code;
  w->code.step = w->step, w->code.fill = w->fill, w->code.plain = -1;
  w->code.nstep = w->code.nfill = 0;
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    const int whole = f->type == EIN_I64 && f->param < 0;
    reg[f->reg].is = whole && fabs((double)f->ival) <= EINI_MASKED_NUMBER;
    reg[f->reg].by[EINI_MASKED_VALUES] = f->ival;
    if (f->type == code->type) w->fill[w->code.nfill++] = *f;
  }
  w->inside = (w->c = eini_masked_fill(code, last->c)) != NULL;
  if (!w->inside && (w->c = eini_masked_fill(code, last->b)) == NULL) return 0;
  w->code.result = w->inside ? last->b : last->c;
  w->x = eini_masked_fill(code, w->code.result);
  for (const ein_step *s = code->step; s < last; s++) {
    reg[s->dst] = eini_masked_step(s, reg);
    set[s->dst] = eini_masked_condition(w, s, reg, set);
    if (w->x != NULL || s->type == EIN_BOOL || (s->type == EIN_I64 && code->type != EIN_I64))
      continue;
    if (s->type != code->type || s->op == EIN_OP_INDEX || s->from != code->type) return 0;
    if (s->op == EIN_OP_WHERE) return 0;
    w->step[w->code.nstep++] = *s;
    w->copies = s->op == EIN_OP_OPERAND && s->dst == w->code.result ? s->a + 1 : 0;
  }
  w->terms = set[last->a].terms;
  if (set[last->a].is_not) w->inside = !w->inside;
  return w->terms != 0;
}

// 0: not such a map.
static int eini_masked_take(eini_masked *w, const ein_map *m) {
  const int type = m->code->type, to = (int)m->dtype[m->nstream - 1];
  memset(w, 0, sizeof *w);
  w->size = to == EIN_F32 ? 4 : 8;
  if (m->nvalue == 0 || m->nvalue > EINI_MASKED_VALUES || m->fold != EIN_FOLD_NONE) return 0;
  if (m->store != NULL || m->n == 0 || m->n > EINI_TURNED_LOOPS || m->nop > EINI_ROW_REGS ||
      (to != EIN_F32 && to != EIN_F64) || !eini_masked_split(w, m->code) ||
      (w->x == NULL ? type != to : type != EIN_F32 && type != EIN_F64 && type != EIN_I64))
    return 0;
  if (type == EIN_I64 && (w->x->param >= 0 || w->c->param >= 0)) return 0;  // cut to integers
  w->code.type = (unsigned char)to;
  w->extent[0] = 1;
  memcpy(w->extent + 1, m->extent, (size_t)m->n * sizeof *m->extent);
  for (int s = 0; s <= m->nop; s++) {
    const int from = s < m->nop ? s : m->nstream - 1;
    w->dtype[s] = m->dtype[from];
    for (int i = 0; i < m->n; i++)
      w->stride[s * EINI_MASKED_LOOPS + i + 1] = eini_row_stride(m, from, i);
  }
  w->all = *m;
  w->all.n = w->all.nfree = m->n + 1;
  w->all.extent = w->extent;
  w->all.code = &w->code;
  w->all.nvalue = 0, w->all.nstream = m->nop + 1;
  w->all.stride = w->stride, w->all.pitch = EINI_MASKED_LOOPS, w->all.dtype = w->dtype;
  w->all.out_bytes = 0;  // what is made is filled in while it is in a cache
  w->some = w->all;
  w->some.n = w->some.nfree = 2;
  w->some.extent = w->rows, w->some.base = w->base;
  w->some.stride = w->stride + m->n - 1;
  if (w->copies == 0 && w->x == NULL) return 1;
  return eini_row_stride(&w->some, m->nop, 1) == 1 &&
         (w->x != NULL || ((int)w->dtype[w->copies - 1] == type &&
                           eini_row_stride(&w->some, w->copies - 1, 1) == 1));
}

static int eini_masked_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                            ein_choice *choice) {
  eini_masked w;
  if (nth > 0 || !eini_masked_take(&w, m)) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  const double rows = eini_rows_count(m);
  const double bytes = rows * (double)(m->extent[m->n - 1] * w.size);
  const int made = w.copies == 0 && w.x == NULL;
  if (made && !eini_map_rows_plan(cpu, &w.all, width, nth, choice)) return 0;
  if (!made) {
    const double rate = 2 * bytes > (double)cpu->is.l2 ? cpu->copy_bw : cpu->l2_bw;
    choice->seconds = cpu->call + 2 * bytes / rate / threads;
  }
  choice->seconds += (rows * EINI_MASKED_CYCLES / cpu->hz + bytes / 2 / cpu->l2_bw) / threads;
  choice->scratch = (size_t)eini_rows_room(&w.some);
  choice->state[EINI_MASKED] = 1;
  eini_cpu_name(choice, "rows masked");
  return 1;
}

// ---- rows ----

// The range of a row of n elements for which the comparison holds, less being `first` at its begin
// and growing by `step`.
static void eini_masked_range(int op, int64_t first, int64_t step, int64_t n, int64_t *range) {
  const int64_t room = (op == EIN_OP_LT ? 0 : 1) - first;  // step * j < room
  range[0] = 0, range[1] = n;
  if (op == EIN_OP_EQ) {
    if (step == 0) range[1] = first == 0 ? n : 0;
    else if (first % step != 0 || -(first / step) < 0 || -(first / step) >= n) range[1] = 0;
    else range[0] = -(first / step), range[1] = range[0] + 1;
  } else if (step == 0) {
    range[1] = room > 0 ? n : 0;
  } else if (step > 0) {
    range[1] = room <= 0 ? 0 : eini_min64(n, step == 1 ? room : (room - 1) / step + 1);
  } else {
    range[0] = room > 0 ? 0 : eini_min64(n, (step == -1 ? -room : -room / -step) + 1);
  }
}

// The range of row r of those at hand, of n elements, for which all terms hold.
static void eini_masked_row(const eini_masked *w, int64_t r, int64_t n, int64_t *range) {
  const int last = w->all.n - 1;
  range[0] = 0, range[1] = n;
  for (int t = 0; t < w->nterm; t++) {
    const eini_masked_term *x = &w->term[t];
    int64_t one[2];
    if (!(w->terms >> t & 1)) continue;
    eini_masked_range(x->op, x->now + r * x->grows[last - 1], x->grows[last], n, one);
    range[0] = eini_max64(range[0], one[0]), range[1] = eini_min64(range[1], one[1]);
  }
  if (range[0] >= range[1]) range[0] = range[1] = 0;
}

// Elements [from, to) of the row at p become a constant, of which there is a block.
static void eini_masked_put(const eini_masked *w, char *p, int64_t from, int64_t to,
                            const char *block) {
  for (int64_t left; (left = (to - from) * w->size) > 0; from += EINI_ROW_BLOCK / w->size)
    memcpy(p + from * w->size, block, (size_t)eini_min64(left, EINI_ROW_BLOCK));
}

// X of elements [from, to) of so many rows, of which the first are at `base`.
static ein_status eini_masked_make(eini_masked *w, const eini_cpu *cpu, char *const *base,
                                   int64_t rows, int64_t from, int64_t to,
                                   const ein_choice *choice, char *scratch) {
  const int x = w->copies - 1, out = w->some.nop;
  if (to <= from) return EIN_OK;
  for (int s = 0; s <= out; s++)
    w->base[s] = base[s] + from * w->size * eini_row_stride(&w->some, s, 1);
  w->rows[0] = rows, w->rows[1] = to - from;
  if (x < 0 && w->x == NULL) return eini_map_rows_run(cpu, &w->some, choice, scratch);
  for (int64_t r = 0; r < rows; r++) {
    char *p = w->base[out] + r * eini_row_stride(&w->some, out, 0) * w->size;
    if (w->x != NULL) {
      eini_masked_put(w, p, 0, to - from, w->block[1]);
    } else {
      memmove(p, w->base[x] + r * eini_row_stride(&w->some, x, 0) * w->size,
              (size_t)((to - from) * w->size));
    }
  }
  return EIN_OK;
}

// So many rows.
static ein_status eini_masked_rows(eini_masked *w, const eini_cpu *cpu, char *const *base,
                                   int64_t rows, const ein_choice *choice, char *scratch) {
  const int64_t n = w->extent[w->all.n - 1];
  const int64_t pitch = eini_row_stride(&w->some, w->some.nop, 0) * w->size;
  int64_t low = n, high = 0, range[2];
  for (int64_t r = 0; r < rows && w->inside; r++) {
    eini_masked_row(w, r, n, range);
    if (range[0] < range[1]) low = eini_min64(low, range[0]), high = eini_max64(high, range[1]);
  }
  if (!w->inside) low = 0, high = n;
  const int64_t least = eini_min64(n, EINI_ROW_SHORT / w->size);  // which rows can be made
  if (low < high && high - low < least) high = eini_min64(n, low + least), low = high - least;
  EINI_TRY(eini_masked_make(w, cpu, base, rows, low, high, choice, scratch));
  for (int64_t r = 0; r < rows; r++) {
    char *p = base[w->some.nop] + r * pitch;
    eini_masked_row(w, r, n, range);
    if (!w->inside) {
      eini_masked_put(w, p, range[0], range[1], w->block[0]);
      continue;
    }
    eini_masked_put(w, p, 0, range[0], w->block[0]);
    eini_masked_put(w, p, range[1], n, w->block[0]);
  }
  return EIN_OK;
}

// What terms begin with, and how they grow.
static void eini_masked_begin(eini_masked *w, const ein_map *m) {
  for (eini_masked_term *t = w->term; t < w->term + w->nterm; t++) {
    t->first = t->less.by[EINI_MASKED_VALUES];
    for (int v = 0; v < m->nvalue; v++) {
      t->first += t->less.by[v] * m->at[m->nop + v];
      for (int i = 0; i < m->n; i++)
        t->grows[i + 1] += t->less.by[v] * eini_row_stride(m, m->nop + v, i);
    }
  }
  for (int k = 0; k < 2; k++) {
    const ein_fill *f = k ? w->x : w->c;
    const double c = f == NULL ? 0 : f->param >= 0 ? m->param[f->param].re
                     : f->type == EIN_I64 ? (double)f->ival : f->re;
    // Rounded once.
    const float single = f != NULL && f->type == EIN_I64 ? (float)f->ival : (float)c;
    for (int64_t at = 0; f != NULL && at < EINI_ROW_BLOCK; at += w->size)
      memcpy(w->block[k] + at, w->size == 4 ? (const void *)&single : (const void *)&c,
             (size_t)w->size);
  }
}

static ein_status eini_masked_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                  char *scratch) {
  eini_masked w;
  eini_steps r;  // walks over the rows
  int64_t index[EINI_MASKED_LOOPS] = {0};
  if (!eini_masked_take(&w, m)) return EIN_ERR_INTERNAL;
  eini_masked_begin(&w, m);
  const int64_t *last = w.extent + m->n - 1;  // rows, and their elements
  const int64_t some = eini_max64(1, EINI_MASKED_BYTES / eini_max64(1, last[1] * w.size));
  r.map = &w.all;
  for (int s = 0; s <= m->nop; s++) r.next[s] = m->base[s < m->nop ? s : m->nstream - 1];
  for (int more = 1; more;) {
    const int64_t rows = eini_min64(some, last[0] - index[m->n - 1]);
    for (eini_masked_term *t = w.term; t < w.term + w.nterm; t++) {
      t->now = t->first;
      for (int i = 0; i < m->n; i++) t->now += index[i] * t->grows[i];
    }
    EINI_TRY(eini_masked_rows(&w, cpu, r.next, rows, choice, scratch));
    more = eini_rows_next(&r, index, rows);
  }
  return EIN_OK;
}

// ---- the provider's slots ----

static int eini_cpu_map_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                             ein_choice *choice) {
  return eini_map_rows_plan(cpu, m, width, nth, choice) ||
         eini_turned_plan(cpu, m, width, nth, choice) ||
         eini_masked_plan(cpu, m, width, nth, choice);
}

static ein_status eini_cpu_map_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                   void *scratch) {
  if (choice->state[EINI_TURNED]) return eini_turned_run(cpu, m, choice, (char *)scratch);
  if (choice->state[EINI_MASKED]) return eini_masked_run(cpu, m, choice, (char *)scratch);
  return eini_map_rows_run(cpu, m, choice, (char *)scratch);
}
#undef EINI_ROW_BLOCK
#undef EINI_ROW_NEAR
#undef EINI_ROW_STEPS
#undef EINI_ROW_REGS
#undef EINI_ROW_LEAST
#undef EINI_ROW_SHORT
#undef EINI_ROW_JOIN
#undef EINI_ROW_CYCLES
#undef EINI_ROW_FOUND
#undef EINI_ROW_FLOPS
#undef EINI_ROW_CALL_FLOPS
#undef EINI_MASKED_BYTES
#undef EINI_MASKED_FACTOR
#undef EINI_MASKED_NUMBER
#undef EINI_MASKED_CYCLES
