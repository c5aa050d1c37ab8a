// ================================================================================================
// >>sums  sums and extrema over one operand
// Takes contractions with a side that has no operands, so is one number; goes along the operand in
// the order of memory, whatever the order of its indices is. Nothing is packed. Below, sums are
// extrema too: what is added may be merged as section fold does it.
// ================================================================================================

// Runs of len reals, step apart, are added to sums `to` apart: `along` to the lanes of one vector
// each; `down` each real to its own sum, all runs to the same ones. page: bytes of each of four
// pages that are read together, or 0.
typedef void (*eini_dir_sums_fn)(int64_t runs, int64_t step, int64_t to, int64_t len, int64_t page,
                                 const void *x, void *sums);

typedef struct eini_dir_sums_kern {
  eini_dir_sums_fn along, down;
  // y[i] = what the lanes of sums[i] add up to, or (not along) sums[i], plus a number; the sums are
  // lost, and half a vector behind them is read. NULL: functions of section direct do it.
  void (*end)(int64_t n, int along, void *sums, const void *one, void *y);
} eini_dir_sums_kern;

#define EINI_KERNELS EINI_KERNELS_SUMS
#if EINI_CPU_X86
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_QL
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#else  // EINI_CPU_X86
#define EINI_VEC EINI_CS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CI
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_CL
#include "einsum_cpu_kernels.h"
#endif  // EINI_CPU_X86
#undef EINI_KERNELS

// The functions that go with those of section direct.
static const eini_dir_sums_kern *eini_dir_sums_kern_of(const eini_dir_kern *kern, ein_pair pair) {
#define EINI_SUMS_OF(tag, sums) {&eini_dir_kern_##tag, eini_sums_kern_##sums}
  static const struct { const eini_dir_kern *kern; const eini_dir_sums_kern *sums; } table[] = {
#if EINI_CPU_X86
      EINI_SUMS_OF(ys, ys), EINI_SUMS_OF(yd, yd), EINI_SUMS_OF(qi, qi), EINI_SUMS_OF(ql, ql),
      EINI_SUMS_OF(zs, zs), EINI_SUMS_OF(zd, zd)};
#else
#if EINI_CPU_NEON  // without products they are those of plain C
      EINI_SUMS_OF(ns, cs), EINI_SUMS_OF(nd, cd),
#endif
      EINI_SUMS_OF(cs, cs), EINI_SUMS_OF(cd, cd), EINI_SUMS_OF(ci, ci), EINI_SUMS_OF(cl, cl)};
#endif
#undef EINI_SUMS_OF
  size_t i = 0;
  while (table[i].kern != kern) i++;
  return table[i].sums + (pair == EIN_PAIR_MAX_ADD) + 2 * (pair == EIN_PAIR_MIN_ADD);
}

typedef struct eini_dir_sums {
  eini_dir_mv mv;              // its job, rows and block of the output, in which sums end
  const eini_dir_sums_kern *kern;
  int along;                   // whether runs of memory are summed,
  int64_t spread;              //   or short ones: reals of them, each of which has a sum; or 0
  int64_t wide;                // reals of the sum of a row, in a block
  int64_t block, most;         // bytes of the sums of a block, and how many
  int64_t page;                // see eini_dir_sums_fn
  char *sums;                  // their vectors, or reals, where runs are summed
  char *one;                   // the other side's number
} eini_dir_sums;

typedef struct eini_dir_sums_loop {
  int64_t extent, step, to, key;
} eini_dir_sums_loop;

static void eini_dir_sums_init(eini_dir_sums *s, const eini_cpu *cpu, const ein_contract *c,
                               const ein_part *part) {
  eini_dir_job *j = &s->mv.j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  eini_dir_init(j, cpu, c);
  s->mv.group = c->p.nop > 0 ? EINI_DIR_M : EINI_DIR_N;
  s->mv.other = EINI_DIR_M + EINI_DIR_N - s->mv.group;
  s->mv.a = c->p.nop > 0 ? 0 : EINI_DIR_OPS;
  s->mv.x = EINI_DIR_OPS - s->mv.a;
  eini_dir_sort(&j->x[EINI_DIR_K], s->mv.a);
  s->kern = eini_dir_sums_kern_of(j->kern, c->pair);
  s->along = k->n > 0 && k->stride[s->mv.a][k->n - 1] == 1;
  s->spread = s->along && k->n > 1 && k->extent[k->n - 1] * j->unit < 64 ? k->extent[k->n - 1] : 0;
  if (s->spread > 0) s->along = 0;
  s->wide = s->along ? j->kern->lanes : eini_max64(s->spread, 1);
  s->block = eini_max64(cpu->l2 / 8, 4096);
  s->most = s->block / (s->wide * j->unit);
  if (part != NULL) {
    const int64_t *cut = s->mv.a == 0 ? part->m : part->n;
    eini_dir_cut(j, s->mv.group, cut[0], cut[1]);
  }
  eini_dir_sort(&j->x[s->mv.group], s->mv.a);
}

static size_t eini_dir_sums_carve(eini_dir_sums *s, char *base) {
  const eini_dir_job *j = &s->mv.j;
  size_t used = 0;
  eini_dir_carve_job(&s->mv.j, base, &used);
  s->mv.y = (char *)eini_carve(base, &used, s->most * j->unit, 1);
  s->sums = !s->along && s->spread == 0 ? s->mv.y
                                        : (char *)eini_carve(base, &used, s->block + 64, 1);
  s->one = (char *)eini_carve(base, &used, 64, 1);
  return used;
}

// The loops over `chunk` values of axis d of the rows, all of the axes behind it and all of k, in
// the order of memory, innermost first; the first of them is along a run. Two that are one are.
static int eini_dir_sums_loops(const eini_dir_sums *s, int d, int64_t chunk,
                               eini_dir_sums_loop *loop) {
  const eini_dir_job *j = &s->mv.j;
  int64_t to = s->wide;
  int n = 0;
  for (int g = 0; g < 2; g++) {
    const eini_dir_index *x = &j->x[g ? s->mv.group : EINI_DIR_K];
    for (int i = x->n - 1; i >= (g ? d : 0); i--) {
      eini_dir_sums_loop one = {g && i == d ? chunk : x->extent[i], x->stride[s->mv.a][i],
                                g ? to : s->spread > 0 && i == x->n - 1,
                                eini_dir_key(x, s->mv.a, i)};
      int at = n++;
      if (g) to *= one.extent;
      for (; at > 0 && loop[at - 1].key > one.key; at--) loop[at] = loop[at - 1];
      loop[at] = one;
    }
  }
  for (int i = n - 1; i > 0; i--) {
    eini_dir_sums_loop *in = &loop[i - 1];
    if (loop[i].step != in->step * in->extent || loop[i].to != in->to * in->extent) continue;
    in->extent *= loop[i].extent;
    memmove(loop + i, loop + i + 1, (size_t)(--n - i) * sizeof *loop);
  }
  if (s->along || (n > 0 && loop[0].to == 1 && loop[0].step == 1)) return n;
  memmove(loop + 1, loop, (size_t)n * sizeof *loop);
  loop[0].extent = loop[0].step = loop[0].to = 1;
  return n + 1;
}

// Adds up a block that starts at x.
static void eini_dir_sums_block(const eini_dir_sums *s, const char *x, int d, int64_t chunk) {
  const int size = s->mv.j.kern->size;
  eini_dir_sums_loop loop[2 * EINI_DIR_RANK + 1], one = {1, 0, 0, 0};
  int64_t at[2 * EINI_DIR_RANK + 1] = {0};
  const int n = eini_dir_sums_loops(s, d, chunk, loop);
  const eini_dir_sums_fn add = s->along ? s->kern->along : s->kern->down;
  int first = 1, i;
  char *y = s->sums;
  if (n > 1 && (s->along || loop[1].to == 0)) one = loop[first++];
  do {
    add(one.extent, one.step, one.to, loop[0].extent, s->page, x, y);
    for (i = first; i < n; i++) {
      x += loop[i].step * size, y += loop[i].to * size;
      if (++at[i] < loop[i].extent) break;
      x -= loop[i].extent * loop[i].step * size, y -= loop[i].extent * loop[i].to * size;
      at[i] = 0;
    }
  } while (i < n);
}

// n sums that nothing has been added to.
static void eini_dir_sums_begin(const eini_dir_sums *s, char *sums, int64_t n) {
  const eini_dir_job *j = &s->mv.j;
  const int max = j->c->pair == EIN_PAIR_MAX_ADD;
  if (s->kern->end == NULL) {
    memset(sums, 0, (size_t)(n * j->unit));
    return;
  }
  eini_fill_value(j->c->type, max ? -HUGE_VAL : HUGE_VAL, 0,
                  eini_int_limit(j->c->type, max ? -1 : 1), n, sums);
}

// Values of n rows from their sums: vectors, or (not along) the reals at y.
static void eini_dir_sums_end(const eini_dir_sums *s, int64_t n, int along, char *sums, char *y) {
  const eini_dir_job *j = &s->mv.j;
  const char *col[1] = {y};
  if (s->kern->end != NULL) {
    s->kern->end(n, along, sums, s->one, y);
    return;
  }
  if (along) {
    memset(y, 0, (size_t)(n * j->unit));
    j->kern->fold((int)n, 1, sums, sums, 0, 0, y);
  }
  j->kern->axpy[0](n, 1, col, s->one, y);
}

// The same of short runs whose reals have sums.
static void eini_dir_sums_gather(const eini_dir_sums *s, int64_t n) {
  const eini_dir_job *j = &s->mv.j;
  eini_dir_sums_begin(s, s->mv.y, n);
  for (int64_t i = 0; i < n; i++)
    s->kern->down(s->spread, 1, 0, 1, 0, s->sums + i * s->spread * j->unit,
                  s->mv.y + i * j->unit);
  eini_dir_sums_end(s, n, 0, s->mv.y, s->mv.y);
}

static ein_status eini_dir_sums_run(const eini_cpu *cpu, const ein_contract *c,
                                    const ein_choice *choice, const ein_part *part,
                                    void *scratch) {
  static const eini_dir_index none = {0, 1, {0}, {{0}}};
  eini_dir_sums s;
  eini_dir_job *j = &s.mv.j;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  eini_dir_sums_init(&s, cpu, c, part);
  eini_dir_sums_carve(&s, (char *)scratch);
  s.page = choice->state[0];
  const eini_dir_index *m = &j->x[s.mv.group];
  int d = 0;
  int64_t inner = m->size, chunk = 1;  // axes from d on lie in a block, and `chunk` of that before
  while (inner > s.most) inner /= m->extent[d++];
  if (d > 0) chunk = s.most / inner;
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(j, b);
    eini_dir_fetch(j, s.mv.x, &none, 0, 1, &none, 0, 1, 1, s.one);
    for (int64_t r = 0, rn; r < m->size; r += rn) {
      const int64_t left = d > 0 ? m->extent[d - 1] - r / inner % m->extent[d - 1] : 1;
      const int64_t some = eini_min64(chunk, left);
      rn = some * inner;
      eini_dir_sums_begin(&s, s.sums, rn * s.wide);
      const char *x = j->at[s.mv.a] + eini_dir_offset(m, s.mv.a, r) * j->unit;
      if (d > 0) eini_dir_sums_block(&s, x, d - 1, some);
      else eini_dir_sums_block(&s, x, 0, m->n > 0 ? m->extent[0] : 1);
      if (s.spread > 0) eini_dir_sums_gather(&s, rn);
      else eini_dir_sums_end(&s, rn, s.along, s.sums, s.mv.y);
      eini_dir_mv_put(&s.mv, r, rn, 0, s.mv.y);
    }
  }
  return EIN_OK;
}

// Cycles of a run that is added to sums as wide: vectors eight, four, two and one at a time, each
// time through all runs, and each time a sum waits for the one before it.
static double eini_dir_sums_waits(int64_t run, int lanes) {
  const int64_t v = run / lanes;
  return 5 * (double)(v / 8 + (v >> 2 & 1) + (v >> 1 & 1) + (v & 1) + (run % lanes != 0));
}

static int eini_dir_sums_plan(const eini_rated *cpu, const ein_contract *c, int width,
                              ein_choice *choice) {
  eini_dir_sums s;
  eini_dir_job *j = &s.mv.j;
  const ein_side *side = c->p.nop > 0 ? &c->p : &c->q, *other = c->p.nop > 0 ? &c->q : &c->p;
  if (c->pair != EIN_PAIR_SUM_MUL && c->pair != EIN_PAIR_MAX_ADD && c->pair != EIN_PAIR_MIN_ADD)
    return 0;
  if (!eini_dir_fits(&cpu->is, c) || side->form != EIN_FORM_PLAIN || other->nop > 0) return 0;
  eini_dir_sums_init(&s, &cpu->is, c, NULL);
  const int g = s.mv.group == EINI_DIR_M ? 1 : 2;
  const eini_dir_index *m = &j->x[s.mv.group], *k = &j->x[EINI_DIR_K];
  const eini_dir_index *in = s.along ? k : m;
  if (j->planes > 1 || k->size < 2 || in->n == 0) return 0;
  if (j->x[s.mv.other].size != 1) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, all = batch * (double)m->size;
  int64_t run = in->extent[in->n - 1];
  if (in->stride[s.mv.a][in->n - 1] != eini_max64(s.spread, 1)) return 0;
  run *= eini_max64(s.spread, 1);
  if (run * j->unit < (s.along ? 64 : 16)) return 0;  // along: a vector at least
  const double reals = all * (double)k->size, bytes = reals * j->unit;
  double seconds = bytes / eini_cpu_bw(cpu, bytes);
  double cycles = reals * (4 / (double)run + 0.5 / j->kern->lanes);
  const double waits = eini_dir_sums_waits(run, j->kern->lanes);
  if (!s.along) cycles = fmax(cycles, reals / (double)run * waits);
  if (cycles / cpu->hz > seconds) seconds = cycles / cpu->hz;
  choice->unit[0] = choice->grid[1] = choice->grid[2] = choice->unit[1] = choice->unit[2] = 1;
  choice->grid[0] = j->x[EINI_DIR_B].size;
  choice->scratch = eini_dir_sums_carve(&s, NULL);
  choice->state[0] = cpu->pages > 1 ? EINI_PAGE_BYTES : 0;
  eini_dir_init(j, &cpu->is, c);
  eini_dir_grid(&j->x[s.mv.group], s.along ? 16 : 256, &choice->grid[g], &choice->unit[g]);
  seconds += batch * 5e-8 + all * 1e-9;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  eini_cpu_name(choice, s.along ? "sums along" : s.spread > 0 ? "sums spread" : "sums down");
  return 1;
}

static const eini_cpu_family eini_dir_sums_family = {"sums", eini_dir_sums_plan, eini_dir_sums_run};
