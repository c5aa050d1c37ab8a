// ================================================================================================
// >>map-turned  maps whose operands are turned
// Operands that do not move by single elements along rows of the output are copied, a block of the
// map at a time, into a layout in which they do; section map-rows does the rest.
// ================================================================================================

enum { EINI_TURNED = EINI_ROWS_TOGETHER + 1, EINI_TURNED_BOX };  // words of ein_choice.state
enum { EINI_TURNED_LOOPS = EINI_GETT_AXES };
#define EINI_TURNED_ROW 4096   // bytes of a row of a block, where the output has as many
#define EINI_TURNED_RUN 512    // bytes read at a place of an operand
#define EINI_TURNED_LEAST 512  // elements of a map; chunks take less time for fewer
// An estimate, from the second cache: elements that go through tiles in registers, and others.
#define EINI_TURNED_CYCLES 0.7
#define EINI_TURNED_SINGLE 2.0

typedef struct eini_turned {
  const ein_map *m;
  int64_t size;                                  // bytes of an element
  int64_t box[EINI_TURNED_LOOPS];
  eini_gett_axes g;                              // the block
  int ncopy, op[EINI_ROW_REGS];                  // operands that are copied
  int64_t place[EINI_ROW_REGS], bytes;           // where, and all of them: per block
  int64_t step[EINI_ROW_REGS][EINI_TURNED_LOOPS];  // there; 0: it does not move
  ein_map one;                                   // the map of a block: its last loops are one
                                                 //   where all operands go on
  int64_t extent[EINI_TURNED_LOOPS];             // of its loops
  int64_t stride[(EINI_ROW_REGS + 1) * EINI_TURNED_LOOPS];
  char *base[EINI_ROW_REGS + 1];
} eini_turned;

// The loop along which operand o moves least; -1: it does not move.
static int eini_turned_loop(const ein_map *m, int o) {
  int best = -1;
  for (int i = m->n - 1; i >= 0; i--) {
    const int64_t s = eini_abs64(eini_row_stride(m, o, i));
    if (s != 0 && (best < 0 || s < eini_abs64(eini_row_stride(m, o, best)))) best = i;
  }
  return best;
}

// The operands to copy. 0: none, or more loops and operands than there is room for.
static int eini_turned_take(eini_turned *w, const ein_map *m) {
  memset(w, 0, sizeof *w);
  w->m = m;
  w->size = m->code->type == EIN_F32 ? 4 : 8;
  if (m->n < 2 || m->n > EINI_TURNED_LOOPS || m->nop > EINI_ROW_REGS || m->nvalue > 0) return 0;
  for (int o = 0; o < m->nop; o++) {
    if (m->dtype[o] != m->code->type) return 0;
    if (eini_row_stride(m, o, m->n - 1) >> 1 != 0) w->op[w->ncopy++] = o;
  }
  return w->ncopy > 0;
}

// Does any operand that is copied move along loop i?
static int eini_turned_moves(const eini_turned *w, int i) {
  int moves = 0;
  for (int k = 0; k < w->ncopy; k++) moves |= eini_row_stride(w->m, w->op[k], i) != 0;
  return moves;
}

// Extents of a block: a row of the output, a run of each operand, then what is next in the output,
// while there is room for what is copied.
static void eini_turned_boxes(eini_turned *w, int64_t room) {
  const ein_map *m = w->m;
  const int64_t most = eini_max64(room / w->size / w->ncopy, 1);
  for (int i = 0; i < m->n; i++) w->box[i] = 1;
  eini_gett_grow(m->n, m->extent, w->box, m->n - 1, EINI_TURNED_ROW / w->size, most, 64 / w->size);
  for (int k = 0; k < w->ncopy; k++)
    eini_gett_grow(m->n, m->extent, w->box, eini_turned_loop(m, w->op[k]),
                   EINI_TURNED_RUN / w->size, most, 1);
  for (int i = m->n - 2; i >= 0; i--)
    if (eini_turned_moves(w, i)) eini_gett_grow(m->n, m->extent, w->box, i, m->extent[i], most, 1);
  for (int i = m->n - 2; i >= 0; i--)  // what is copied is used for all of the others
    if (!eini_turned_moves(w, i)) w->box[i] = m->extent[i];
}

// Bytes of rows of what is copied that begin in few sets of a cache: they are a line longer.
#define EINI_TURNED_SETS 512

// Does loop i of a block go on where the next one, which is whole, ends?
static int eini_turned_goes_on(const eini_turned *w, int i) {
  int on = w->box[i + 1] == w->m->extent[i + 1];
  for (int s = 0; s < w->m->nstream; s++) {
    const int64_t *stride = w->stride + s * EINI_TURNED_LOOPS;
    on &= stride[i] == stride[i + 1] * w->box[i + 1];
  }
  return on;
}

// The map of a block but for its addresses and extents.
static void eini_turned_one(eini_turned *w) {
  const ein_map *m = w->m;
  const int64_t line = 64 / w->size;
  for (int s = 0; s < m->nstream; s++)
    for (int i = 0; i < m->n; i++) w->stride[s * EINI_TURNED_LOOPS + i] = eini_row_stride(m, s, i);
  w->bytes = 0;
  for (int k = 0; k < w->ncopy; k++) {
    int64_t step = 1, *stride = w->stride + w->op[k] * EINI_TURNED_LOOPS;
    w->place[k] = w->bytes;
    for (int i = m->n - 1; i >= 0; i--) {
      if (stride[i] == 0) continue;
      w->step[k][i] = stride[i] = step;
      step *= w->box[i];
      if (i == m->n - 1 && step * w->size % EINI_TURNED_SETS == 0) step += line;
    }
    w->bytes += eini_up(step * w->size, 64);
  }
  int last = m->n - 1;
  while (last > 0 && eini_turned_goes_on(w, last - 1)) last--;
  for (int s = 0; s < m->nstream; s++)
    w->stride[s * EINI_TURNED_LOOPS + last] = w->stride[s * EINI_TURNED_LOOPS + m->n - 1];
  w->one = *m;
  w->one.n = last + 1;
  w->one.extent = w->extent, w->one.stride = w->stride, w->one.pitch = EINI_TURNED_LOOPS;
  w->one.base = w->base;
}

static void eini_turned_extents(eini_turned *w, const int64_t *size) {
  const int last = w->one.n - 1;
  for (int i = 0; i < w->m->n; i++) {
    if (i <= last) w->extent[i] = size[i];
    else w->extent[last] *= size[i];
  }
}

// Seconds to copy them, beside memory's.
static double eini_turned_seconds(const eini_rated *cpu, const eini_turned *w) {
  double cycles = 0;
  for (int k = 0; k < w->ncopy; k++) {
    const int o = w->op[k], loop = eini_turned_loop(w->m, o);
    const int unit = eini_abs64(eini_row_stride(w->m, o, loop)) == 1;
    double all = unit ? EINI_TURNED_CYCLES : EINI_TURNED_SINGLE;
    for (int i = 0; i < w->m->n; i++)
      all *= eini_row_stride(w->m, o, i) != 0 ? (double)w->m->extent[i] : 1;
    cycles += all;
  }
  return cycles / cpu->hz;
}

// Ways: as of the rows of a block.
static int eini_turned_plan(const eini_rated *cpu, const ein_map *m, int width, int nth,
                            ein_choice *choice) {
  static const char *const names[] = {"rows turned", "rows turned stream", "rows turned of eight"};
  eini_turned w;
  double all = 1;
  for (int i = 0; i < m->n; i++) all *= (double)m->extent[i];
  if (!(all >= EINI_TURNED_LEAST) || !eini_turned_take(&w, m)) return 0;
  eini_turned_boxes(&w, cpu->is.l2 / 4);
  eini_turned_one(&w);
  eini_turned_extents(&w, w.box);
  if (!eini_map_rows_plan(cpu, &w.one, 1, nth, choice)) return 0;
  const int way = (int)choice->state[EINI_ROWS_STREAM] + (int)choice->state[EINI_ROWS_TOGETHER];
  eini_turned_extents(&w, m->extent);
  if (!eini_map_rows_plan(cpu, &w.one, width, nth, choice)) return 0;
  const int threads = (int)eini_max64(1, eini_min64(width, cpu->is.width));
  choice->seconds += eini_turned_seconds(cpu, &w) / threads;
  choice->scratch = (size_t)(w.bytes + eini_rows_room(m));  // a last block may have short rows
  choice->state[EINI_ROWS_STREAM] = way > 0, choice->state[EINI_ROWS_TOGETHER] = way > 1;
  choice->state[EINI_TURNED] = 1;
  for (int i = 0; i < m->n; i++) choice->state[EINI_TURNED_BOX + i] = w.box[i];
  eini_cpu_name(choice, names[way]);
  return 1;
}

// Operand k of a block, of the loops along which it moves, to where it is read.
static void eini_turned_copy(eini_turned *w, const eini_cpu *cpu, int k, char *to) {
  const int o = w->op[k], n = w->m->n;
  int64_t extent[EINI_TURNED_LOOPS], src[EINI_TURNED_LOOPS], dst[EINI_TURNED_LOOPS];
  int x = 0;
  for (int i = 0; i < n; i++) {
    if (eini_row_stride(w->m, o, i) == 0) continue;
    extent[x] = w->g.size[i], src[x] = eini_row_stride(w->m, o, i), dst[x++] = w->step[k][i];
  }
  const ein_copy c = {x, extent, src, dst, (int)w->size, w->base[o], to, NULL, NULL};
  eini_copy_go(cpu->isa, &c, 0, NULL);
  w->base[o] = to;
}

static ein_status eini_turned_run(const eini_cpu *cpu, const ein_map *m, const ein_choice *choice,
                                  char *scratch) {
  eini_turned w;
  const ein_axes loops = {m->n, m->extent};
  if (!eini_turned_take(&w, m)) return EIN_ERR_INTERNAL;
  for (int i = 0; i < m->n; i++) w.box[i] = choice->state[EINI_TURNED_BOX + i];
  eini_turned_one(&w);
  eini_gett_axes_init(&w.g, &loops, w.box);
  for (int64_t b = 0; b < w.g.total; b++) {
    eini_gett_box(&w.g, b);
    eini_turned_extents(&w, w.g.size);
    for (int s = 0; s < m->nstream; s++)
      w.base[s] = m->base[s] + eini_gett_offset(&w.g, m->stride + (int64_t)s * m->pitch) * w.size;
    for (int k = 0; k < w.ncopy; k++) eini_turned_copy(&w, cpu, k, scratch + w.place[k]);
    EINI_TRY(eini_map_rows_run(cpu, &w.one, choice, scratch + w.bytes));
  }
  return EIN_OK;
}
#undef EINI_TURNED_ROW
#undef EINI_TURNED_RUN
#undef EINI_TURNED_LEAST
#undef EINI_TURNED_CYCLES
#undef EINI_TURNED_SINGLE
#undef EINI_TURNED_SETS
