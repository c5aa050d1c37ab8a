// ================================================================================================
// >>fusion-tile  the blocks of a group that move least
// Takes a group and a fast memory; gives sides of blocks, and the class along which they follow
// each other, by what the execution moves. Invariant: what a block holds fits.
// ================================================================================================

#define EINI_FUSE_AGAIN 2.0      // points gone through, at most, times those there are: blocks that
                                 //   move little may compute again what they do not keep
#define EINI_FUSE_FAT 1.02       // what moves may be so many times the least for longer sides
#define EINI_FUSE_LOST 4.0       // no class is tried as the last one, and ..
#define EINI_FUSE_FAR 1.5        // sides are not refined where what moves is so many times too much

// Elements of an access in a block. one: the member streams along it and what is like it; -1: not.
static double eini_fuse_image(const eini_fuse *f, const eini_fuse_access *x, int mean, int one) {
  double n = 1;
  for (int r = x->from; r < x->to; r++) {
    const eini_fuse_row *row = &f->row[r];
    double span = 1 + row->longer, count = 1 + row->longer;
    for (int e = row->from; e < row->to; e++) {
      const eini_fuse_index *i = &f->index[f->term[e].index];
      const double side = i->like == one ? 1 : mean ? i->mean : i->side;
      span += f->term[e].coef * (side - 1);
      count *= side;
    }
    const double some = span < count ? span : count;
    n *= some < row->most ? some : row->most;
  }
  return n;
}

// Sides of classes become those of indices.
static void eini_fuse_sides(eini_fuse *f) {
  for (int c = 0; c < f->ncls; c++) f->times[c] = ceil(f->extent[c] / f->side[c]);
  for (int k = 0; k < f->nindex; k++) {
    eini_fuse_index *i = &f->index[k];
    const double d = f->side[i->cls], times = f->times[i->cls];
    i->side = i->mean = i->extent;
    if (times <= 1) continue;
    i->side = i->mean = i->mul * (d - 1) + i->hi - i->lo + 1;
    if (i->side >= i->extent) i->side = i->mean = i->extent;
    else i->mean = fmax(1, i->side - i->mul * (times * d - f->extent[i->cls]) / times);
  }
}

// How often a member's block comes, or what has these classes is moved: not with every block along
// `last`, where it has none.
static double eini_fuse_visits(const eini_fuse *f, uint64_t in) {
  double n = 1;
  for (int c = 0; c < f->ncls; c++) n *= c != f->last || (in >> c & 1) ? f->times[c] : 1;
  return n;
}

static int eini_fuse_stays(const eini_fuse *f, uint64_t in) {
  return f->last >= 0 && f->times[f->last] > 1 && !(in >> f->last & 1);
}

// Are its elements those of the values of all indices that have several in a block?
static int eini_fuse_each(const eini_fuse *f, const eini_fuse_access *x) {
  uint64_t in = 0;
  for (int r = x->from; r < x->to; r++) {
    const eini_fuse_row *row = &f->row[r];
    if (row->to - row->from > 1 || row->longer > 0) return 0;
    in |= (uint64_t)1 << f->index[f->term[row->from].index].cls;
  }
  for (int c = 0; c < f->ncls; c++)
    if ((f->member[x->member].in >> c & 1) && !(in >> c & 1) && f->side[c] > 1) return 0;
  return 1;
}

// Is it there from an earlier member, or for a later one?
static int eini_fuse_kept(const eini_fuse *f, const eini_fuse_access *x) {
  return f->keeps && x->kind == EINI_FUSE_READ && (x->same >= 0 || x->until > x->member);
}

// Room that member m takes for what it reads and stores, if it streams along index `one` and those
// like it; along all indices (-1).
static double eini_fuse_passing(const eini_fuse *f, int m, int one) {
  double sum = 0;
  for (int k = f->member[m].from; k < f->member[m].to; k++) {
    const eini_fuse_access *x = &f->access[k];
    if (x->stays || eini_fuse_kept(f, x)) continue;
    if (x->kind == EINI_FUSE_STORE && f->member[m].held) continue;
    if (one < 0 && eini_fuse_each(f, x)) sum += 1;
    else if (one >= 0 && (x->in >> f->index[one].cls & 1)) sum += eini_fuse_image(f, x, 0, one);
    else sum += x->room;
  }
  return sum;
}

// Elements that are held while member m runs.
static double eini_fuse_holds(const eini_fuse *f, int m) {
  const eini_fuse_member *y = &f->member[m];
  double sum = 0;
  for (int k = 0; k < f->naccess; k++) {
    const eini_fuse_access *x = &f->access[k];
    if (eini_fuse_kept(f, x)) {
      if (x->same < 0 && (x->stays || (m >= x->member && m <= x->until))) sum += x->room;
      continue;
    }
    if (x->kind != EINI_FUSE_HOLD) {
      sum += x->stays && !(x->kind == EINI_FUSE_STORE && f->member[x->member].held) ? x->room : 0;
      continue;
    }
    if (!x->stays && (m < x->member || m > x->until)) continue;
    if (x->member == m && y->over && !x->stays) continue;
    sum += x->room;
  }
  double passing = eini_fuse_passing(f, m, -1);
  for (int i = y->first; i < y->first + y->s->nindex; i++) {
    const double one = f->index[i].like == i ? eini_fuse_passing(f, m, i) : passing;
    passing = one < passing ? one : passing;
  }
  return sum + passing;
}

// What of an access moves with the sides at hand, by weight or by number; INFINITY: sums would
// begin again.
static double eini_fuse_moved_by(const eini_fuse *f, const eini_fuse_access *x, int weighed) {
  const uint64_t fold = f->member[x->member].fold;
  double often, first = 1, loops = 1;
  int parts = 0;
  if (x->kind == EINI_FUSE_HOLD || (x->same >= 0 && eini_fuse_kept(f, x))) return 0;
  often = eini_fuse_visits(f, x->in);
  for (int c = 0; c < f->ncls && x->kind == EINI_FUSE_STORE && fold != 0; c++) {
    parts |= (fold >> c & 1) && f->times[c] > 1;
    first *= x->in >> c & 1 ? f->times[c] : 1;
    loops *= c != f->last && !(f->member[x->member].in >> c & 1) ? f->times[c] : 1;
  }
  if (parts && loops > 1) return INFINITY;
  if (parts) often += often - first;  // where sums come again, they are loaded
  return often * (weighed ? x->weight : 1) * eini_fuse_image(f, x, 1, -1);
}

static double eini_fuse_moves(const eini_fuse *f, int weighed) {
  double io = 0;
  for (int k = 0; k < f->naccess && io < INFINITY; k++)
    io += eini_fuse_moved_by(f, &f->access[k], weighed);
  return io;
}

// Does what the members hold fit?
static int eini_fuse_fits(eini_fuse *f, double fast) {
  f->room = 0;
  for (int m = 0; m < f->n; m++) {
    const double holds = eini_fuse_holds(f, m);
    if (holds > fast) return 0;
    f->room = holds > f->room ? holds : f->room;
  }
  return 1;
}

// What moves and what is held, with the sides at hand. Returns what moves, made larger where points
// are gone through too often; INFINITY: that is no less than `most`, or it does not fit.
static double eini_fuse_weigh(eini_fuse *f, double fast, double most) {
  eini_fuse_sides(f);
  f->again = f->room = 0;
  for (int m = 0; m < f->n; m++) {
    const eini_fuse_member *x = &f->member[m];
    double points = eini_fuse_visits(f, x->in);
    for (int i = x->first; i < x->first + x->s->nindex; i++) points *= f->index[i].mean;
    f->again += points;
  }
  const double over = f->again / (EINI_FUSE_AGAIN * f->points);
  for (f->keeps = f->shared; f->keeps >= 0; f->keeps--) {
    const double io = f->io = eini_fuse_moves(f, 1);
    const double to = over > 1 + 1e-9 ? io * over * over + f->points : io;
    if (!(to < most)) return INFINITY;
    for (int k = 0; k < f->naccess; k++) {
      f->access[k].room = eini_fuse_image(f, &f->access[k], 0, -1);
      f->access[k].stays = eini_fuse_stays(f, f->access[k].in);
    }
    if (eini_fuse_fits(f, fast)) return to;
  }
  f->keeps = 0;
  return INFINITY;
}

// ---- sides ----

static void eini_fuse_begin(eini_fuse *f) {
  for (int c = 0; c < f->ncls; c++) f->side[c] = f->whole[c] ? f->extent[c] : 1;
}

// Multiplies sides, each time the one that is worth most for the room that it takes.
static void eini_fuse_grow(eini_fuse *f, double fast, double by) {
  double best = eini_fuse_weigh(f, fast, INFINITY);
  while (best < INFINITY) {
    const double room = f->room;
    double most = 0, io = best;
    int at = -1;
    for (int c = 0; c < f->ncls; c++) {
      const double was = f->side[c];
      if (was >= f->extent[c]) continue;
      f->side[c] = fmin(by * was, f->extent[c]);
      const double to = eini_fuse_weigh(f, fast, best);
      const double worth = to < best ? log(best / to) / (log(f->room / room) + 1e-3) : 0;
      if (worth > most) most = worth, at = c, io = to;
      f->side[c] = was;
    }
    if (at < 0) break;
    f->side[at] = fmin(by * f->side[at], f->extent[at]);
    best = io;
  }
}

// Halves sides of the whole, each time the one that costs least for the room that it gives.
static void eini_fuse_shrink(eini_fuse *f, double fast) {
  for (int c = 0; c < f->ncls; c++) f->side[c] = f->extent[c];
  double best = eini_fuse_weigh(f, INFINITY, INFINITY);
  while (f->room > fast) {
    const double room = f->room;
    double least = INFINITY;
    int at = -1;
    for (int c = 0; c < f->ncls; c++) {
      const double was = f->side[c];
      if (f->whole[c] || was <= 1) continue;
      f->side[c] = ceil(was / 2);
      const double to = eini_fuse_weigh(f, INFINITY, INFINITY);
      const double cost = f->room < room ? log(to / best) / log(room / f->room) : INFINITY;
      if (to < INFINITY && (at < 0 || cost < least)) least = cost, at = c;
      f->side[c] = was;
    }
    if (at < 0) return;
    f->side[at] = ceil(f->side[at] / 2);
    best = eini_fuse_weigh(f, INFINITY, INFINITY);
  }
}

// A side that is longer or shorter by about a factor, of equal blocks.
static double eini_fuse_step(double extent, double side, double by, int longer) {
  const double n = ceil(extent / side);
  const double to = longer ? floor(n / by) : ceil(n * by);
  const double d = ceil(extent / (longer ? fmax(1, fmin(n - 1, to)) : fmax(n + 1, to)));
  return longer || d < side ? d : ceil(extent / ceil(extent / fmax(1, side - 1)));
}

// Makes one side longer, and another shorter where that is needed, as long as it pays.
static double eini_fuse_trade(eini_fuse *f, double fast, double best) {
  static const double by[] = {2, 1.4, 1.1, 1.02};
  for (size_t b = 0; b < sizeof by / sizeof *by; b++) {
    int better = 1;
    for (int turn = 0; turn < 16 && better; turn++) {
      better = 0;
      for (int c = 0; c < f->ncls; c++) {
        for (int d = 0; d < f->ncls; d++) {  // d == c: none is shorter
          const double up = f->side[c], down = f->side[d];
          if (up >= f->extent[c] || (d != c && (f->whole[d] || down <= 1))) continue;
          if (d != c) f->side[d] = eini_fuse_step(f->extent[d], down, by[b], 0);
          f->side[c] = eini_fuse_step(f->extent[c], up, by[b], 1);
          const double to = eini_fuse_weigh(f, fast, best * (1 - 1e-9));
          if (to < INFINITY) {
            best = to;
            better = 1;
          } else {
            f->side[c] = up;
            f->side[d] = down;
          }
        }
      }
    }
  }
  return best;
}

// The class along which blocks follow each other has to leave something where it is.
static int eini_fuse_may_last(const eini_fuse *f, int c) {
  int stays = 0;
  for (int k = 0; k < f->naccess; k++) stays |= !(f->access[k].in >> c & 1);
  return !f->whole[c] && f->extent[c] > 1 && stays;
}

typedef struct eini_fuse_choice {  // of sides
  double io, side[EINI_FUSE_CLASSES];
  int last;
} eini_fuse_choice;

// Improves the sides at hand, and takes them if they are better than those that were chosen.
static void eini_fuse_try(eini_fuse *f, double fast, int trade, eini_fuse_choice *x) {
  double to = eini_fuse_weigh(f, fast, INFINITY);
  if (!(to < INFINITY)) return;
  if (trade) {
    for (int c = 0; c < f->ncls; c++)  // of equal blocks
      f->side[c] = ceil(f->extent[c] / ceil(f->extent[c] / f->side[c]));
    to = eini_fuse_trade(f, fast, eini_fuse_weigh(f, fast, INFINITY));
  }
  if (!(to < x->io * (1 - 1e-9))) return;
  x->io = to;
  x->last = f->last;
  memcpy(x->side, f->side, sizeof x->side);
}

// Chooses sides and the last class. io becomes INFINITY where no block fits, and may be more than
// need be where it is much more than `enough`.
static void eini_fuse_tile(eini_fuse *f, double fast, double enough) {
  eini_fuse_choice any, grown, best;  // any: without a last class; others go on
                                      //   from there, too
  memset(&grown, 0, sizeof grown);
  any = grown;
  any.io = 0;
  grown.io = INFINITY;
  for (int c = -1; c < f->ncls; c++) {
    if (c >= 0 && (!eini_fuse_may_last(f, c) || any.io > EINI_FUSE_LOST * enough)) continue;
    f->last = c;
    eini_fuse_begin(f);
    eini_fuse_grow(f, fast, c < 0 ? 2 : 4);
    eini_fuse_try(f, fast, 0, &grown);
    if (c < 0) any = grown;
    if (c < 0 || !(any.io < INFINITY)) continue;
    memcpy(f->side, any.side, sizeof f->side);
    f->side[c] = 1;
    eini_fuse_grow(f, fast, 2);
    eini_fuse_try(f, fast, 0, &grown);
  }
  best = grown;
  if (grown.io < EINI_FUSE_FAR * enough) {
    f->last = grown.last;
    memcpy(f->side, grown.side, sizeof f->side);
    eini_fuse_try(f, fast, 1, &best);
    f->last = grown.last;
    eini_fuse_shrink(f, fast);
    eini_fuse_try(f, fast, 1, &best);
  }
  f->io = INFINITY;
  if (!(best.io < INFINITY)) return;
  f->last = best.last;
  memcpy(f->side, best.side, sizeof f->side);
  eini_fuse_weigh(f, fast, INFINITY);
  if (f->again > EINI_FUSE_AGAIN * f->points * (1 + 1e-9)) f->io = INFINITY;
}

// What moves with the sides at hand, which becomes io, too; INFINITY: a block does not fit.
static double eini_fuse_settle(eini_fuse *f, double fast) {
  const double io = eini_fuse_weigh(f, fast, INFINITY);
  if (!(io < INFINITY)) f->io = INFINITY;
  return io;
}

// Halves the longest side but that of class c until a block fits, if one does.
static void eini_fuse_narrow(eini_fuse *f, int c, double fast) {
  while (!(eini_fuse_settle(f, fast) < INFINITY)) {
    int at = -1;
    for (int d = 0; d < f->ncls; d++)
      if (d != c && !f->whole[d] && f->side[d] > 1 && (at < 0 || f->side[d] > f->side[at])) at = d;
    if (at < 0) return;
    f->side[at] = ceil(f->side[at] / 2);
  }
}

// Makes sides longer as long as that moves hardly more: there is less to begin, and kernels like
// long ones, and multiples of 8.
static void eini_fuse_fatten(eini_fuse *f, double fast) {
  static const double by[] = {2, 1.5, 1.25};
  const double most = EINI_FUSE_FAT * eini_fuse_settle(f, fast);
  for (size_t b = 0; b < sizeof by / sizeof *by && most < INFINITY; b++) {
    int more = 1;
    while (more) {
      more = 0;
      for (int c = 0; c < f->ncls; c++) {
        const double was = f->side[c], to = floor(by[b] * was);
        if (was >= f->extent[c] || to <= was) continue;
        f->side[c] = fmin(to >= 16 ? floor(to / 8) * 8 : to, f->extent[c]);
        if (f->side[c] > was && eini_fuse_weigh(f, fast, INFINITY) <= most) more = 1;
        else f->side[c] = was;
      }
    }
  }
  eini_fuse_settle(f, fast);
}
