// ================================================================================================
// >>map-rows  maps by rows
// Which maps run over rows, how rows are taken from a walk, joined and put together, and when.
// ================================================================================================

// Words of ein_choice.state; together: eight rows at a time.
enum { EINI_ROWS_STREAM, EINI_ROWS_TOGETHER };

// Do rows that follow each other in a walk do so in the output?
static int eini_rows_joins(const ein_map *m) {
  return m->n > 1 && eini_row_stride(m, m->nop, m->n - 2) == m->extent[m->n - 1];
}

// Do tracks gain? Few operands come from memory, and nothing is called, which takes longer than
// memory does. They are faster on Zen 4; on Zen 5 they take 1.2 to 1.8 times as long.
static int eini_rows_together(const eini_cpu *cpu, const eini_steps *r) {
  const ein_map *m = r->map;
  int own = 0, shared = 0;
  if (!cpu->halves || r->wide < 64 || m->n < 2 || r->calls > 0) return 0;
  for (int o = 0; o < m->nop; o++) {
    const int moves = eini_row_stride(m, o, m->n - 2) != 0;
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    own += moves && along;
    shared += !moves && along;
  }
  return own < 2 || (own == 2 && shared > 0);
}

// The steps of an instruction set for the type of a map; 0: none.
static int eini_rows_set(eini_steps *r, int isa, const ein_map *m) {
  const int type = m->code->type;
  r->map = m;
  r->isa = isa;
  r->set = &eini_row_sets[isa][type == EIN_F64];
  r->wide = r->set->wide;
  r->whole = 8 * r->wide;
  r->tracks = 1;
  r->block = NULL;
  r->pitch = r->joined = 0;
  return r->wide > 0 && (type == EIN_F32 || type == EIN_F64);
}

// A row that all operations have steps for: values of f32 or f64, stored as they are, one after the
// other, read one after the other or always the same.
static int eini_rows_fit(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int out = m->nstream - 1;
  if (m->fold != EIN_FOLD_NONE || m->store != NULL || m->nvalue > 0 || m->n == 0) return 0;
  if (code->nreg > EINI_ROW_REGS || m->nop > EINI_ROW_REGS || m->dtype[out] != code->type) return 0;
  if (eini_row_stride(m, out, m->n - 1) != 1) return 0;
  for (int i = 0; i < code->nfill; i++)
    if (code->fill[i].type != code->type) return 0;
  return eini_steps_make(r);
}

static int eini_rows_short(const ein_map *m) { return m->extent[m->n - 1] < EINI_ROW_LEAST; }

// Bytes of a register: behind rows that are laid out there is room for a line.
static int64_t eini_rows_pitch(const ein_map *m) {
  return eini_rows_short(m) ? EINI_ROW_JOIN + 64 : EINI_ROW_BLOCK;
}

// Bytes of scratch, for rows of any length.
static int64_t eini_rows_room(const ein_map *m) {
  return m->code->nreg * (EINI_ROW_JOIN + 64) + m->n * (int64_t)sizeof(int64_t);
}

static double eini_rows_count(const ein_map *m) {
  double rows = 1;
  for (int i = 0; i < m->n - 1; i++) rows *= (double)m->extent[i];
  return rows;
}

// Seconds of memory, or of operations where these take longer.
static double eini_rows_seconds(const eini_rated *cpu, const eini_steps *r, int stream,
                                int threads) {
  const ein_map *m = r->map;
  const int f32 = m->code->type == EIN_F32;
  const double rows = eini_rows_count(m), work = rows * (double)m->extent[m->n - 1];
  double bytes = 0, out = 0;
  for (int s = 0; s < m->nstream; s++) {
    out = f32 ? 4 : 8;  // of the last stream, in the end
    for (int i = 0; i < m->n; i++) out *= eini_row_stride(m, s, i) != 0 ? (double)m->extent[i] : 1;
    bytes += out;
  }
  const double move = stream ? bytes / cpu->copy_bw : eini_cpu_move(cpu, bytes - out, out, 0);
  const double flops = EINI_ROW_FLOPS * (r->n - r->calls) + EINI_ROW_CALL_FLOPS * r->calls;
  double time = work * flops / (f32 ? cpu->peak_f32 : cpu->peak_f64);
  const double each = (double)m->extent[m->n - 1] * (f32 ? 4 : 8);
  const double found = eini_rows_short(m) ? 0 : rows * EINI_ROW_FOUND / cpu->hz;
  if (eini_rows_short(m)) time += rows * (EINI_ROW_CYCLES + each / 32) * (m->nop + 1) / cpu->hz;
  return cpu->call + (fmax(time, move) + found) / threads;
}

// Ways: through the caches, past them, and eight rows at a time where that gains. Short rows that
// are not joined go through the caches: what is past them has many lines of two rows.
static int eini_map_rows_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                              ein_choice *choice) {
  static const char *const names[] = {"rows", "rows stream", "rows of eight"};
  eini_steps r;
  if (!eini_rows_set(&r, cpu->is.isa, m) || !eini_rows_fit(&r)) return 0;
  const int few = eini_rows_short(m);
  if (few && (nth > 1 || m->extent[m->n - 1] * eini_steps_size(&r) < EINI_ROW_SHORT ||
              eini_rows_count(m) < 8))
    return 0;
  const int past = (!few || eini_rows_joins(m)) && eini_cpu_past(cpu, m->out_bytes);
  const int gains = !few && eini_rows_together(&cpu->is, &r);
  const int best = past ? 1 + gains : 0, way = nth < 0 ? best : nth;
  if (way > 1 + gains) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  choice->seconds = eini_rows_seconds(cpu, &r, past, threads);
  if (way != best) choice->seconds *= 1.5;  // memory is read once more
  choice->scratch = (size_t)(m->code->nreg * eini_rows_pitch(m)) + (size_t)m->n * sizeof(int64_t);
  choice->state[EINI_ROWS_STREAM] = way > 0;
  choice->state[EINI_ROWS_TOGETHER] = way > 1;
  eini_cpu_name(choice, names[way]);
  return 1;
}

// Registers of constants and params, once.
static void eini_rows_begin(eini_steps *r, char *scratch) {
  static const int64_t same[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  r->block = scratch;
  for (int i = 0; i < code->nreg; i++)  // of a short last group a whole block is read
    if (r->bytes < r->whole) memset(r->block + i * r->pitch, 0, (size_t)r->whole);
  for (int i = 0; i < code->nfill; i++) {
    const ein_fill *f = &code->fill[i];
    const double v = f->param >= 0 ? m->param[f->param].re : f->re;
    const float s = (float)v;
    char *block = r->block + f->reg * r->pitch;
    r->set->equal(f->type == EIN_F32 ? (const char *)&s : (const char *)&v, same, block);
  }
}

// Moves on by `rows` along the innermost outer loop, which has as many left; 0: all rows are made.
static int eini_rows_next(eini_steps *r, int64_t *index, int64_t rows) {
  const ein_map *m = r->map;
  const int64_t size = eini_steps_size(r);
  for (int i = m->n - 2; i >= 0; i--, rows = 1) {
    index[i] += rows;
    const int ends = index[i] == m->extent[i];
    const int64_t by = ends ? rows - m->extent[i] : rows;
    if (ends) index[i] = 0;
    for (int s = 0; s <= m->nop; s++) r->next[s] += by * eini_row_stride(m, s, i) * size;
    if (!ends) return 1;
  }
  return 0;
}

// The rows of the tracks; where there are no more, the last one again. 0: they are the last.
static int eini_rows_take(eini_steps *r, int64_t *index) {
  const int streams = r->map->nop + 1;
  int more = 1;
  memcpy(r->at, r->next, (size_t)streams * sizeof *r->at);
  if (r->tracks == 1) {
    for (int s = 0; s < streams; s++) memset(r->track[s], 0, sizeof r->track[s]);
    return eini_rows_next(r, index, 1);
  }
  for (int k = 0; k < 8; k++) {
    for (int s = 0; s < streams; s++)
      r->track[s][k] = k == 0 || more ? r->next[s] - r->at[s] : r->track[s][k - 1];
    if (more) more = eini_rows_next(r, index, 1);
  }
  return more;
}

// Short rows, joined along the innermost outer loop where the output's follow each other.
static void eini_rows_join(eini_steps *r, int64_t *index, int stream) {
  const ein_map *m = r->map;
  r->each = r->bytes;
  r->joined = r->tracks = 1;
  memset(r->laid, 0, sizeof r->laid);
  eini_steps_make(r);
  for (int more = 1; more;) {
    r->joined = !eini_rows_joins(m) ? 1
                : eini_min64(EINI_ROW_JOIN / r->each, m->extent[m->n - 2] - index[m->n - 2]);
    r->bytes = r->joined * r->each;
    memcpy(r->at, r->next, (size_t)(m->nop + 1) * sizeof *r->at);
    eini_rows_lay(r);
    eini_steps_row(r, stream && r->bytes >= 2 * EINI_ROW_BLOCK);
    more = eini_rows_next(r, index, r->joined);
  }
}

// Bytes of rows of so many that are made before others: what rows share stays in the second cache.
static int64_t eini_rows_columns(const eini_cpu *cpu, const ein_map *m, int64_t bytes) {
  int64_t shared = 0;
  for (int s = 0; s < m->nop; s++) {
    int again = 0;
    for (int i = 0; i < m->n - 1; i++) again |= m->extent[i] > 1 && eini_row_stride(m, s, i) == 0;
    shared += again && eini_row_stride(m, s, m->n - 1) != 0;
  }
  const int64_t most = eini_max64(cpu->l2 / 2 / eini_max64(shared, 1), EINI_PAGE_BYTES);
  if (shared == 0 || bytes <= most) return bytes;
  const int64_t parts = (bytes + most - 1) / most;  // of one size
  return eini_up((bytes + parts - 1) / parts, 64);
}

// All rows' bytes [from, from + r->bytes).
static void eini_rows_each(eini_steps *r, int64_t *index, int64_t from, int stream, int together,
                          double left) {
  const ein_map *m = r->map;
  const int few = eini_rows_short(m);
  r->tracks = 0;
  memset(index, 0, (size_t)m->n * sizeof *index);
  for (int s = 0; s <= m->nop; s++)
    r->next[s] = m->base[s] + eini_row_stride(m, s, m->n - 1) * from;
  for (int more = left > 0; more;) {
    const int rows = together && (few || left >= 8) ? 8 : 1;
    if (rows != r->tracks) {
      r->tracks = rows;
      eini_steps_make(r);
    }
    more = eini_rows_take(r, index);
    left -= rows;
    eini_steps_aim(r);
    if (few) eini_steps_short(r);
    else if (rows == 8) eini_steps_rows(r);
    else eini_steps_row(r, stream);
  }
}

static ein_status eini_map_rows_run(const eini_cpu *cpu, const ein_map *m,
                                    const ein_choice *choice, char *scratch) {
  eini_steps r;
  int64_t *index = (int64_t *)(void *)(scratch + m->code->nreg * eini_rows_pitch(m));
  const int few = eini_rows_short(m);
  double left = eini_rows_count(m);
  if (!eini_rows_set(&r, cpu->isa, m)) return EIN_ERR_INTERNAL;
  r.pitch = eini_rows_pitch(m);
  r.bytes = m->extent[m->n - 1] * eini_steps_size(&r);
  const int whole =
      ((uintptr_t)m->base[m->nop] & (uintptr_t)(eini_steps_size(&r) - 1)) == 0;
  const int stream = choice->state[EINI_ROWS_STREAM] && whole;
  const int together =
      few || (stream && choice->state[EINI_ROWS_TOGETHER] && r.bytes >= 2 * EINI_ROW_BLOCK);
  r.near = !stream && r.bytes <= EINI_ROW_NEAR;
  const int64_t all = r.bytes, some = few ? all : eini_rows_columns(cpu, m, all);
  eini_rows_begin(&r, scratch);
  if (few && (eini_rows_joins(m) || r.bytes < r.wide)) {
    memset(index, 0, (size_t)m->n * sizeof *index);
    for (int s = 0; s <= m->nop; s++) r.next[s] = m->base[s];
    eini_rows_join(&r, index, stream);
    left = 0;
  }
  for (int64_t c = 0; c < all && left > 0; c += some) {
    r.bytes = eini_min64(some, all - c);
    eini_rows_each(&r, index, c, stream, together && (few || r.bytes >= 2 * EINI_ROW_BLOCK), left);
  }
  if (stream) eini_stream_end();
  return EIN_OK;
}
