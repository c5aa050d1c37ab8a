// ================================================================================================
// >>moved  contractions in blocks that are moved to their places
// Where short pieces of both operands, or of the batch, take turns in the output, sums of one tile
// go to many lines, and each line gets some of many tiles. Blocks of the output are computed in a
// layout that suits section gett and moved from the cache by section copy. Plain operands only.
// ================================================================================================

// Words of ein_choice.state: then come the box's axes, and what section gett says of a block.
enum { EINI_MOVED_V, EINI_MOVED_STREAM, EINI_MOVED_BOX };
enum { EINI_MOVED_AXES = 36, EINI_MOVED_RUN = 512 };

typedef struct eini_moved {
  const ein_contract *c;
  int v;                               // the group contiguous in a block: 1 m, 2 n
  int n;                               // axes of the output: batch, m, n
  int64_t size;                        // bytes of an element
  int64_t extent[EINI_MOVED_AXES], out[EINI_MOVED_AXES], box[EINI_MOVED_AXES];
  int64_t in[2][EINI_MOVED_AXES];      // strides of P and Q; 0: not its axis
  int group[EINI_MOVED_AXES];
  int64_t at[EINI_MOVED_AXES], some[EINI_MOVED_AXES];  // the block
  int64_t step[EINI_MOVED_AXES];       // in the block's memory
  int to[EINI_MOVED_AXES];             // the axis of its group in `one`
  // The contraction of one block.
  ein_contract one;
  int64_t one_extent[3][EINI_GETT_AXES], one_out[3][EINI_GETT_AXES];
  int64_t one_in[2][3][EINI_GETT_AXES];
  const int64_t *row[2], *batch[2];
  const char *base[2];
} eini_moved;

static void eini_moved_take(eini_moved *w, const ein_contract *c) {
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  const int64_t *out[3] = {c->out_batch, c->out_m, c->out_n};
  memset(w, 0, sizeof *w);
  w->c = c;
  w->size = (int64_t)ein_dtype_size(c->out_dtype);
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < x[g]->n; i++) {
      const int f = w->n++;
      w->group[f] = g, w->extent[f] = x[g]->extent[i], w->out[f] = out[g][i], w->box[f] = 1;
      w->in[0][f] = g == 0 ? c->p.batch[0][i] : g == 1 ? c->p.row[0][i] : 0;
      w->in[1][f] = g == 0 ? c->q.batch[0][i] : g == 2 ? c->q.row[0][i] : 0;
    }
}

// Axes with more than one element, the least of these strides first; returns how many.
static int eini_moved_sort(const eini_moved *w, const int64_t *stride, int *order) {
  int n = 0;
  for (int f = 0; f < w->n; f++) {
    if (w->extent[f] == 1) continue;
    int t = n++;
    for (; t > 0 && eini_abs64(stride[order[t - 1]]) > eini_abs64(stride[f]); t--)
      order[t] = order[t - 1];
    order[t] = f;
  }
  return n;
}

// Bytes of the output that follow each other and are of one group.
static int64_t eini_moved_piece(const eini_moved *w) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, w->out, order);
  int64_t run = 1;
  for (int t = 0; t < n && eini_abs64(w->out[order[t]]) == run; t++) {
    if (w->group[order[t]] != w->group[order[0]]) break;
    run *= w->extent[order[t]];
  }
  return n == 0 ? 0 : run * w->size;
}

// Axes of group g up to `want` positions, first those with the least steps of `stride`.
static void eini_moved_widen(eini_moved *w, int g, const int64_t *stride, int64_t want,
                             int64_t most) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, stride, order);
  int64_t have = 1;
  for (int f = 0; f < w->n; f++) have *= w->group[f] == g ? w->box[f] : 1;
  for (int t = 0; t < n && have < want; t++) {
    const int f = order[t];
    if (w->group[f] != g) continue;
    have /= w->box[f];
    eini_gett_grow(w->n, w->extent, w->box, f, (want + have - 1) / have, most, 1);
    have *= w->box[f];
  }
}

// Extents of a block: a run of the output, enough of both hands for whole tiles, then what is next
// in the output.
static void eini_moved_boxes(eini_moved *w, int64_t most) {
  int order[EINI_MOVED_AXES];
  const int n = eini_moved_sort(w, w->out, order);
  const int64_t want = EINI_MOVED_RUN / w->size;
  int64_t run = 1;
  for (int t = 0; t < n && run < want; t++) {
    eini_gett_grow(w->n, w->extent, w->box, order[t], (want + run - 1) / run, most, 1);
    run *= w->box[order[t]];
    if (w->box[order[t]] < w->extent[order[t]]) break;
  }
  eini_moved_widen(w, w->v, w->in[w->v - 1], 64, most);
  eini_moved_widen(w, 3 - w->v, w->in[2 - w->v], 32, most);
  for (int t = 0; t < n; t++)
    eini_gett_grow(w->n, w->extent, w->box, order[t], w->extent[order[t]], most, 1);
}

// Axes of a group as they lie in a block, the outermost first: as in the output, but the one along
// which the operand is contiguous last.
static int eini_moved_order(const eini_moved *w, int g, int *order) {
  int n = 0, last = -1;
  for (int f = 0; f < w->n; f++) {
    if (w->group[f] != g) continue;
    if (g > 0 && w->in[g - 1][f] == 1 && w->box[f] > 1) last = f;
    else order[n++] = f;
  }
  if (last >= 0) order[n++] = last;
  return n;
}

// Whether axis f continues axis e of the same group inward, in all operands.
static int eini_moved_merge(const eini_moved *w, int e, int f) {
  return w->box[f] == w->extent[f] && w->in[0][e] == w->in[0][f] * w->extent[f] &&
         w->in[1][e] == w->in[1][f] * w->extent[f];
}

// The contraction of a block whose extents are box[], but for its addresses.
static void eini_moved_one(eini_moved *w) {
  const ein_contract *c = w->c;
  const int groups[3] = {w->v, 3 - w->v, 0};
  int64_t step = 1;
  w->one = *c;
  for (int h = 0; h < 3; h++) {
    const int g = groups[h];
    int order[EINI_MOVED_AXES], m = 0;
    const int n = eini_moved_order(w, g, order);
    for (int t = 0; t < n; t++) {
      const int f = order[t];
      if (t == 0 || !eini_moved_merge(w, order[t - 1], f)) m++;
      w->to[f] = m - 1;
      for (int o = 0; o < 2; o++) w->one_in[o][g][m - 1] = w->in[o][f];
    }
    for (int t = n - 1; t >= 0; t--) {
      const int f = order[t];
      if (t == n - 1 || w->to[f] != w->to[order[t + 1]]) w->one_out[g][w->to[f]] = step;
      w->step[f] = step;
      step *= w->box[f];
    }
    ein_axes *x = g == 0 ? &w->one.batch : g == 1 ? &w->one.m : &w->one.n;
    x->n = m, x->extent = w->one_extent[g];
  }
  ein_side *side[2] = {&w->one.p, &w->one.q};
  for (int o = 0; o < 2; o++) {
    w->row[o] = w->one_in[o][o + 1], w->batch[o] = w->one_in[o][0];
    side[o]->row = &w->row[o], side[o]->batch = &w->batch[o], side[o]->base = &w->base[o];
  }
  w->one.out_batch = w->one_out[0], w->one.out_m = w->one_out[1], w->one.out_n = w->one_out[2];
}

// The block has some[] elements.
static void eini_moved_extents(eini_moved *w, const int64_t *some) {
  for (int g = 0; g < 3; g++)
    for (int i = 0; i < EINI_GETT_AXES; i++) w->one_extent[g][i] = 1;
  for (int f = 0; f < w->n; f++) w->one_extent[w->group[f]][w->to[f]] *= some[f];
}

static int64_t eini_moved_offset(const eini_moved *w, const int64_t *stride) {
  int64_t r = 0;
  for (int f = 0; f < w->n; f++) r += w->at[f] * stride[f];
  return r * w->size;
}

// Seconds to move all blocks. Tiles of elements, or short rows where the contiguous axis stays.
static double eini_moved_seconds(const eini_rated *cpu, const eini_moved *w, double all,
                                 int stream) {
  int order[EINI_MOVED_AXES];
  eini_moved_sort(w, w->out, order);  // (blocks are of many elements)
  const double run = (double)w->box[order[0]], size = (double)w->size, wide = 64 / size;
  const double t = all * size / (stream ? cpu->copy_bw : cpu->l3_bw);
  if (w->step[order[0]] == 1) return t + all / run * (20 + run / wide) / cpu->hz;
  return t + all * (run >= wide ? 0.5 : run >= wide / 2 ? 2 : 4) / cpu->hz;
}

// Are all blocks as long along group v, which is contiguous in them?
static int eini_moved_even(const eini_moved *w) {
  int64_t all = 1;
  for (int f = 0; f < w->n; f++) {
    if (w->group[f] != w->v) continue;
    if (w->box[f] < w->extent[f]) return 0;
    all *= w->box[f];
  }
  return all > 1;
}

// Blocks with group v contiguous.
static int eini_moved_try(const eini_rated *cpu, const ein_contract *c, int v, int width,
                          ein_choice *choice) {
  eini_moved w;
  ein_choice one;
  eini_moved_take(&w, c);
  w.v = v;
  eini_moved_boxes(&w, cpu->is.l2 / 4 / w.size);
  eini_moved_one(&w);
  eini_moved_extents(&w, w.box);
  const int words = EINI_GETT_HEAD + w.one.m.n + w.one.n.n + w.one.k.n;
  if (EINI_MOVED_BOX + w.n + words > EINI_GETT_STATE) return 0;
  const int cut = eini_moved_even(&w) ? EINI_GETT_CUT_OTHERS : EINI_GETT_CUT;
  if (!eini_gett_plan_cut(cpu, &w.one, 1, cut, EINI_GETT_WHOLE, 0, &one)) return 0;
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  double blocks = 1, all = 1, threads = width;
  for (int g = 0, f = 0; g < 3; f += x[g++]->n) {
    const int64_t size = eini_axes_size(x[g]);
    eini_gett_axes boxes;
    eini_gett_axes_init(&boxes, x[g], w.box + f);
    choice->grid[g] = boxes.total;
    choice->unit[g] = eini_gett_stretch(size, boxes.total);
    blocks *= (double)boxes.total, all *= (double)size;
  }
  const int stream = EINI_STREAM_LINE > 0 && eini_cpu_past(cpu, all * (double)w.size);
  if (threads > blocks) threads = blocks;
  choice->seconds = cpu->call + (blocks * (one.seconds + 3e-7) +
                                 eini_moved_seconds(cpu, &w, all, stream)) / threads;
  choice->scratch = one.scratch + EINI_COPY_BUFFER + 128;
  choice->scratch += (size_t)(eini_gett_product(w.n, w.box) * w.size);
  choice->state[EINI_MOVED_V] = v, choice->state[EINI_MOVED_STREAM] = stream;
  for (int f = 0; f < w.n; f++) choice->state[EINI_MOVED_BOX + f] = w.box[f];
  for (int i = 0; i < words; i++) choice->state[EINI_MOVED_BOX + w.n + i] = one.state[i];
  eini_cpu_name(choice, "gett moved");
  return 1;
}

static int eini_moved_plan(const eini_rated *cpu, const ein_contract *c, int width,
                           ein_choice *choice) {
  eini_moved w;
  const ein_side *side[2] = {&c->p, &c->q};
  if (!eini_gett_able(c) || !c->plain_out) return 0;
  if (c->batch.n + c->m.n + c->n.n > EINI_MOVED_AXES || c->type == EIN_BOOL) return 0;
  for (int o = 0; o < 2; o++)
    if (side[o]->form != EIN_FORM_PLAIN || side[o]->nop != 1) return 0;
  eini_moved_take(&w, c);
  const double all = (double)w.size * (double)eini_axes_size(&c->batch) *
                     (double)eini_axes_size(&c->m) * (double)eini_axes_size(&c->n);
  if (all < (double)cpu->is.l2 / 2 || eini_moved_piece(&w) >= EINI_TURN_PIECE) return 0;
  ein_choice other;
  memset(&other, 0, sizeof other);
  const int m = eini_moved_try(cpu, c, 1, width, choice);
  const int n = eini_moved_try(cpu, c, 2, width, &other);
  if (n && (!m || other.seconds < choice->seconds)) *choice = other;
  return m || n;
}

// One block: computed where `block` is, then moved.
static void eini_moved_block(eini_moved *w, eini_gett_job *j, int keep, int stream, char *block,
                             char *buffer) {
  const ein_contract *c = w->c;
  const int64_t batches = eini_gett_product(w->one.batch.n, w->one.batch.extent);
  int64_t at[EINI_GETT_AXES];
  eini_gett_axes_init(&j->v.g, j->swap ? &w->one.m : &w->one.n, j->v.g.box);
  eini_gett_axes_init(&j->u.g, j->swap ? &w->one.n : &w->one.m, j->u.g.box);
  const int64_t vr[2] = {0, j->v.g.total}, ur[2] = {0, j->u.g.total};
  w->base[0] = c->p.base[0] + eini_moved_offset(w, w->in[0]);
  w->base[1] = c->q.base[0] + eini_moved_offset(w, w->in[1]);
  for (int64_t b = 0; b < batches; b++) {
    eini_gett_odometer(&w->one.batch, b, at);
    eini_gett_batch(j, at, vr, ur, keep);
  }
  const ein_copy copy = {w->n, w->some, w->step, w->out, (int)w->size, block,
                         c->out + eini_moved_offset(w, w->out), NULL, NULL};
  eini_copy_go(j->cpu->isa, &copy, stream, buffer);
}

static ein_status eini_moved_run(const eini_cpu *cpu, const ein_contract *c,
                                 const ein_choice *choice, const ein_part *part, void *scratch) {
  const ein_axes *x[3] = {&c->batch, &c->m, &c->n};
  const int64_t *ranges[3] = {part->batch, part->m, part->n};
  eini_moved w;
  eini_gett_sketch p;
  eini_gett_job j;
  eini_gett_axes g[3];
  int64_t from[3], to[3], i[3];
  eini_moved_take(&w, c);
  w.v = (int)choice->state[EINI_MOVED_V];
  for (int f = 0; f < w.n; f++) w.box[f] = choice->state[EINI_MOVED_BOX + f];
  for (int h = 0, f = 0; h < 3; f += x[h++]->n) {
    eini_gett_axes_init(&g[h], x[h], w.box + f);
    eini_gett_boxes_of(&g[h], ranges[h], eini_axes_size(x[h]), choice->unit[h], &from[h], &to[h]);
  }
  eini_moved_one(&w);
  char *block = (char *)scratch, *buffer, *rest;
  buffer = block + eini_up(eini_gett_product(w.n, w.box) * w.size, 64);
  rest = buffer + EINI_COPY_BUFFER;
  eini_moved_extents(&w, w.box);
  w.one.out = block;
  eini_gett_job_init(cpu, &w.one, choice->state + EINI_MOVED_BOX + w.n, &p, rest, &j);
  const int stream = choice->state[EINI_MOVED_STREAM] != 0;
  for (i[0] = from[0]; i[0] < to[0]; i[0]++)
    for (i[1] = from[1]; i[1] < to[1]; i[1]++)
      for (i[2] = from[2]; i[2] < to[2]; i[2]++) {
        for (int h = 0, f = 0; h < 3; f += x[h++]->n) {
          eini_gett_box(&g[h], i[h]);
          memcpy(w.at + f, g[h].at, (size_t)x[h]->n * sizeof(int64_t));
          memcpy(w.some + f, g[h].size, (size_t)x[h]->n * sizeof(int64_t));
        }
        eini_moved_extents(&w, w.some);
        eini_moved_block(&w, &j, p.keep, stream, block, buffer);
      }
  if (stream) eini_stream_end();
  return EIN_OK;
}

static const eini_cpu_family eini_moved_family = {"moved", eini_moved_plan, eini_moved_run};
