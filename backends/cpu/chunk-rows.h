// ================================================================================================
// >>chunk-rows  expressions over rows
// Takes an expression program; runs it over rows of a map with its values in registers.
// ================================================================================================

// A row is made block by block. The value at hand stays in eight vectors, which a step hands on to
// the next as arguments, so in registers; the other operand is memory: a row of an operand, or a
// block that is always the same (constants, operands without a stride) or holds a value put away.
// The last step stores. Steps round as the operations of chunks do, so the bits are the same.
//
// A block is eight vectors that follow each other, or a vector of each of eight tracks: rows that
// follow each other in a walk. What they share, like the x of A[i,j]*x[j], is then read from the
// second cache once for eight, and what is done per row is done once. So short rows run; where they
// follow each other in the output, they are joined to longer ones instead, for which operands that
// do not follow each other are laid out.

#define EINI_ROW_BLOCK 512   // bytes at most
#define EINI_ROW_NEAR 8192   // bytes of a row whose operands are likely to be in the first cache
#define EINI_ROW_STEPS 32
#define EINI_ROW_REGS 32
#define EINI_ROW_LEAST 256   // elements of a row; shorter ones are joined or run in eight tracks,
#define EINI_ROW_SHORT 64    //   from so many bytes on; else they are chunks of several loops
#define EINI_ROW_JOIN 4096   // bytes of joined rows at most
#define EINI_ROW_CYCLES 8    // of a short row of an operand, laid out or found: an estimate
#define EINI_ROW_FOUND 120   // of a longer one
// What an operation takes, as flops of what the peak counts: from a cache, and called. Estimates:
// they say only which of several providers is asked to run a map.
#define EINI_ROW_FLOPS 4
#define EINI_ROW_CALL_FLOPS 64

// Steps have the type eini_row_zs or another, by the vectors of a set; they are kept as this one.
typedef void (*eini_row_fn)(void);
typedef struct eini_row_step {
  eini_row_fn fn;
  char *const *with;         // where the other operand is, or where the value goes
  const int64_t *off;        // from there to each of its eight vectors, in bytes
  int64_t moves;             // -1: that moves with the row; 0: it stays
  ein_chunk_fn chunk;        // what the step calls, with two blocks of room
  char *room;
} eini_row_step;

// Operands that move with the row. A block's lines are asked for first, one of each operand in
// turn: processors foresee this order, that of a plain loop, better than the order of the steps.
typedef struct eini_row_from {
  int n;
  uintptr_t p[EINI_ROW_REGS];
  const int64_t *off[EINI_ROW_REGS];
} eini_row_from;

enum { EINI_ROW_LOAD = EIN_OP_COUNT, EINI_ROW_SAVE, EINI_ROW_STORE, EINI_ROW_STREAM };

// Steps of an operation, in lines and in tracks; the second of a pair has its operands exchanged.
typedef struct eini_row_op {
  int op;
  eini_row_fn fn[2][2];
} eini_row_op;

enum { EINI_ROW_CALLED = 14, EINI_ROW_OPS = 28 };  // the first that takes long; all

// The steps of a set and what runs them. equal: a block of one value, or of one for each track.
// lay: `each` bytes, or the first value, from every one of rows that are `by` bytes apart.
typedef struct eini_row_set {
  int wide;                        // bytes of a vector
  const eini_row_op *op;
  void (*go[2])(const eini_row_step *t, const eini_row_from *from, int64_t at, int64_t to);
  void (*equal)(const char *p, const int64_t *track, char *block);
  void (*lay)(int64_t rows, int64_t each, int along, const char *p, int64_t by, char *to);
} eini_row_set;

#define EINI_KERNELS EINI_KERNELS_STEPS
#if EINI_CPU_X86
#define EINI_VEC EINI_ZS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ZD
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_YD
#include "einsum_cpu_kernels.h"
#elif EINI_CPU_NEON
#define EINI_VEC EINI_NS
#include "einsum_cpu_kernels.h"
#define EINI_VEC EINI_ND
#include "einsum_cpu_kernels.h"
#endif
#undef EINI_KERNELS

// By instruction set: f32, f64. wide 0: none.
#define EINI_ROW_SET(s, wide)                                                               \
  {wide, eini_row_table_##s, {eini_q_lines_go_##s, eini_q_tracks_go_##s}, eini_q_equal_##s, \
   eini_q_lay_##s}
#define EINI_ROW_NONE {{0, NULL, {NULL, NULL}, NULL, NULL}, {0, NULL, {NULL, NULL}, NULL, NULL}}
static const eini_row_set eini_row_sets[EINI_ISA_COUNT][2] = {
    EINI_ROW_NONE,
#if EINI_CPU_NEON
    {EINI_ROW_SET(ns, 16), EINI_ROW_SET(nd, 16)}, EINI_ROW_NONE, EINI_ROW_NONE};
#elif EINI_CPU_X86
    EINI_ROW_NONE,
    {EINI_ROW_SET(ys, 32), EINI_ROW_SET(yd, 32)},
    {EINI_ROW_SET(zs, 64), EINI_ROW_SET(zd, 64)}};
#else
    EINI_ROW_NONE, EINI_ROW_NONE, EINI_ROW_NONE};
#endif
#undef EINI_ROW_NONE
#undef EINI_ROW_SET

// A code as steps. Streams: operands, then the output.
typedef struct eini_steps {
  const ein_map *map;
  int isa;
  const eini_row_set *set;
  int64_t wide, whole;             // bytes of a vector, of a block
  int tracks;                      // 1, or 8
  int n, calls;                    // steps, and those that call chunks or take as long
  eini_row_step step[EINI_ROW_STEPS];
  eini_row_from from;
  char *block;                     // of each register a block, or room for rows laid out,
  int64_t pitch;                   //   so many bytes apart
  int64_t bytes;                   // of a row
  int64_t joined;                  // rows to one, of so many bytes each, or 0
  int64_t each;
  const char *laid[EINI_ROW_REGS]; // a row that a register has so many times, or NULL
  int64_t times[EINI_ROW_REGS];
  int near;                        // nothing is asked for ahead
  char *next[EINI_ROW_REGS + 1];   // streams at the row that comes next
  char *at[EINI_ROW_REGS + 1];     // .. at the row of the first track,
  int64_t track[EINI_ROW_REGS + 1][8];  // and from there to those of all
  char *with[EINI_ROW_REGS + 1];   // where registers are; then where the last step stores
  int64_t moves[EINI_ROW_REGS];
  int64_t off[EINI_ROW_REGS][8];
  char room[2 * EINI_ROW_BLOCK + 64];
} eini_steps;

// Appends one, with register reg; 0 where the operation has no step.
static int eini_steps_put(eini_steps *r, int op, int swapped, eini_row_step with) {
  eini_row_step *t = &r->step[r->n];
  for (int i = 0; i < EINI_ROW_OPS; i++) {
    const eini_row_op *o = &r->set->op[i];
    if (o->op != op) continue;
    *t = with;
    t->fn = o->fn[r->tracks > 1][swapped];
    t->room = r->room + eini_to_line(r->room);
    r->calls += i >= EINI_ROW_CALLED;
    r->n++;
    return 1;
  }
  return 0;
}

static int eini_steps_add(eini_steps *r, int op, int swapped, int reg, ein_chunk_fn chunk) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  with.with = &r->with[reg];
  with.off = r->off[reg];
  with.moves = r->moves[reg];
  with.chunk = chunk;
  return eini_steps_put(r, op, swapped, with);
}

static int eini_step_loads(const ein_step *s) {
  return s->op == EIN_OP_OPERAND || s->op == EIN_OP_INDEX;
}

// Whether a step from the i-th on needs what register reg holds.
static int eini_steps_needs(const ein_code *code, int i, int reg) {
  for (; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) continue;
    if (s->a == reg || s->b == reg || s->c == reg) return 1;
    if (s->dst == reg) return 0;
  }
  return 0;
}

// Of an operand or the output: the stride along loop i.
static int64_t eini_row_stride(const ein_map *m, int stream, int i) {
  return m->stride[(int64_t)stream * m->pitch + i];
}

static int64_t eini_steps_size(const eini_steps *r) {
  return r->map->code->type == EIN_F32 ? 4 : 8;
}

// Does a register hold what was laid out until another row is?
static int eini_steps_keeps(const ein_code *code, int load) {
  for (int i = 0; i < code->nstep; i++)
    if (i != load && code->step[i].dst == code->step[load].dst) return 0;
  return 1;
}

// Operands are at the rows that are joined. One row for all of them is laid out once.
static void eini_rows_lay(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  const int64_t size = eini_steps_size(r);
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    r->with[reg] = r->block + reg * r->pitch;
    const int along = eini_row_stride(m, o, m->n - 1) != 0;
    const int64_t by = eini_row_stride(m, o, m->n - 2) * size;
    if (r->bytes >= r->whole && along && by == r->each) {
      r->with[reg] = r->at[o];
      continue;
    }
    if (by == 0 && r->laid[reg] == r->at[o] && r->times[reg] >= r->joined) continue;
    r->set->lay(r->joined, r->each, along, r->at[o], by, r->with[reg]);
    r->laid[reg] = by == 0 && eini_steps_keeps(code, i) ? r->at[o] : NULL;
    r->times[reg] = r->joined;
  }
}

// Operands are at the rows of the tracks; one that does not move along rows is a block of its
// values.
static void eini_steps_aim(eini_steps *r) {
  const ein_code *code = r->map->code;
  r->from.n = 0;
  for (int i = 0; i < code->nstep; i++) {
    const int o = code->step[i].a, reg = code->step[i].dst;
    if (!eini_step_loads(&code->step[i])) continue;
    if (r->moves[reg] == 0) {
      r->set->equal(r->at[o], r->track[o], r->with[reg]);
      continue;
    }
    r->with[reg] = r->at[o];
    if (r->tracks > 1) memcpy(r->off[reg], r->track[o], sizeof r->off[reg]);
    if (r->near || (r->tracks > 1 && r->track[o][7] == 0)) continue;
    r->from.p[r->from.n] = (uintptr_t)r->at[o];
    r->from.off[r->from.n++] = r->off[reg];
  }
}

// All steps but the one that stores. 0: there is an operation or an operand without steps.
static int eini_steps_make(eini_steps *r) {
  const ein_map *m = r->map;
  const ein_code *code = m->code;
  int hand = -1;  // the register whose value is at hand
  r->n = r->calls = 0;
  for (int i = 0; i < code->nreg; i++) {
    r->with[i] = r->block == NULL ? NULL : r->block + i * r->pitch;
    r->moves[i] = 0;
    for (int k = 0; k < 8; k++) r->off[i][k] = k * r->wide;
  }
  for (int i = 0; i < code->nstep; i++) {
    const ein_step *s = &code->step[i];
    if (eini_step_loads(s)) {
      if (s->op != EIN_OP_OPERAND || s->from != code->type) return 0;
      const int64_t stride = eini_row_stride(m, s->a, m->n - 1);
      if (stride >> 1 != 0) return 0;
      r->moves[s->dst] = r->joined > 0 ? -1 : -stride;
      continue;
    }
    if (s->op == EIN_OP_CALL || r->n + 4 > EINI_ROW_STEPS) return 0;
    const int two = eini_ops[s->op].args == 2, swapped = two && hand == s->b && hand != s->a;
    int with = swapped ? s->a : s->b;
    if (hand >= 0 && ((two && hand == with) || eini_steps_needs(code, i + 1, hand)))
      eini_steps_add(r, EINI_ROW_SAVE, 0, hand, NULL);
    if (hand != s->a && !swapped) eini_steps_add(r, EINI_ROW_LOAD, 0, s->a, NULL);
    if (!eini_steps_add(r, s->op, swapped, with, s->fn)) return 0;
    hand = s->dst;
  }
  return hand >= 0 && hand == code->result;
}

// Blocks from byte `at` on until `to`, stored at out (of tracks: and off), or always at the same
// place.
static void eini_steps_go(eini_steps *r, int64_t at, int64_t to, int op, char *out,
                          const int64_t *off, int64_t moves) {
  eini_row_step with;
  memset(&with, 0, sizeof with);
  r->with[EINI_ROW_REGS] = out;
  with.with = &r->with[EINI_ROW_REGS];
  with.off = off;
  with.moves = moves;
  eini_steps_put(r, op, 0, with);
  r->n--;
  r->set->go[r->tracks > 1](r->step, &r->from, at, to);
}

// Eight rows past the caches, by vectors that are lines. A track is the lines of a row's output;
// the ends, which share a line with others, are taken from blocks of the first and the last bytes
// of each row.
static void eini_steps_rows(eini_steps *r) {
  static const int64_t ones[8] = {0, 64, 128, 192, 256, 320, 384, 448};
  static const int64_t twos[8] = {0, 128, 256, 384, 512, 640, 768, 896};
  char first[EINI_ROW_BLOCK], last[2 * EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *pitch = r->track[r->map->nop], bytes = r->bytes;
  int64_t head[8], off[8], end = bytes / 64 * 64, odd = bytes % 64;
  for (int k = 0; k < 8; k++) {
    head[k] = eini_to_line(to + pitch[k]);
    odd |= head[k];
    end = eini_min64(end, (bytes - head[k]) / 64 * 64);
    off[k] = pitch[k] + head[k];
  }
  if (odd != 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, first, ones, 0);
    eini_steps_go(r, bytes - 128, bytes - 127, EINI_ROW_STORE, last, twos, 0);
    eini_steps_go(r, bytes - 64, bytes - 63, EINI_ROW_STORE, last + 64, twos, 0);
  }
  for (int k = 0; odd != 0 && k < 8; k++) {
    const int64_t tail = bytes - head[k] - end;
    memcpy(to + pitch[k], first + 64 * k, (size_t)head[k]);
    memcpy(to + pitch[k] + bytes - tail, last + twos[k] + 128 - tail, (size_t)tail);
    for (int i = 0; i < r->map->code->nreg; i++) r->off[i][k] += head[k] & r->moves[i];
  }
  eini_steps_go(r, 0, end, EINI_ROW_STREAM, to, off, -1);
}

// Eight short rows. Their last vectors, which overlap those before, are made first: the output may
// be an operand.
static void eini_steps_short(eini_steps *r) {
  char last[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  const int64_t *off = r->track[r->map->nop], bytes = r->bytes, wide = r->wide;
  const int64_t end = bytes / wide * wide;
  int64_t each[8];
  for (int k = 0; k < 8; k++) each[k] = k * wide;
  if (end < bytes)
    eini_steps_go(r, bytes - wide, bytes - wide + 1, EINI_ROW_STORE, last, each, 0);
  eini_steps_go(r, 0, end, EINI_ROW_STORE, to, off, -1);
  for (int k = 0; k < 8 && end < bytes; k++)
    memcpy(to + off[k] + bytes - wide, last + each[k], (size_t)wide);
}

// One row. What blocks do not fill at its ends is taken from a whole block.
static void eini_steps_row(eini_steps *r, int stream) {
  const int64_t bytes = r->bytes, whole = r->whole;
  char part[EINI_ROW_BLOCK], *to = r->at[r->map->nop];
  if (bytes < whole) {  // operands are laid out
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)bytes);
    return;
  }
  const int64_t head = stream ? eini_to_line(to) : 0;
  const int64_t end = head + (bytes - head) / whole * whole;
  if (head > 0) {
    eini_steps_go(r, 0, 1, EINI_ROW_STORE, part, NULL, 0);
    memcpy(to, part, (size_t)head);
  }
  eini_steps_go(r, head, end, stream ? EINI_ROW_STREAM : EINI_ROW_STORE, to, NULL, -1);
  if (end < bytes) {
    eini_steps_go(r, bytes - whole, bytes, EINI_ROW_STORE, part, NULL, 0);
    char *last = part + whole - (bytes - end);
    if (stream) eini_stream_row(r->isa, (size_t)(bytes - end), last, to + end);
    else memcpy(to + end, last, (size_t)(bytes - end));
  }
}
