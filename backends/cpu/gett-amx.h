// ================================================================================================
// >>gett-amx  tiles of section gett in tile registers
// 32 columns of U by 32 lanes of V, of panels of section gett-narrow: 16 rows a step. Operands in
// lines along k, or in lanes, are packed here, whole lines at a time.
// ================================================================================================

#if EINI_CPU_DOTS

typedef struct eini_gett_regs { unsigned char t[8][16][64]; } eini_gett_regs;

// What is multiplied: U and V, unsigned or signed bytes; pairs of bf16.
enum { EINI_AMX_UU, EINI_AMX_US, EINI_AMX_SU, EINI_AMX_SS, EINI_AMX_BF16 };
enum { EINI_AMX_LANES = 32, EINI_AMX_RUNS = 4 };  // of a panel; runs of memory of its lanes

// Vectors of a row may overlap: what they add to is taken before any of them is stored.
EINI_T512 static void eini_gett_amx_leave(int ints, const eini_gett_tile_arg *a,
                                          const float *sums) {
  for (int j = 0; j < a->nu; j++, sums += 32) {
    float *d = (float *)a->dst + a->uoff[j];
    __m512 x[2] = {_mm512_loadu_ps(sums), _mm512_loadu_ps(sums + 16)};
    for (int i = 0; i < a->nv && a->how == EINI_GETT_ADD; i++) {
      const __m512 y = _mm512_loadu_ps(d + a->voff[i]);
      x[i] = ints ? _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y),
                                                         _mm512_castps_si512(x[i])))
                  : _mm512_add_ps(y, x[i]);
    }
    for (int i = 0; i < a->nv; i++)
      if (a->how == EINI_GETT_STREAM) EINI_ZS_STREAM(d + a->voff[i], x[i], a->lanes[i]);
      else _mm512_storeu_ps(d + a->voff[i], x[i]);
  }
}

// Reals from column to column of a whole tile whose columns are evenly apart, each one run; 0: of
// another.
EINI_T512 static int64_t eini_gett_amx_even(const eini_gett_tile_arg *a) {
  __mmask8 odd = 0;
  if (a->nu != EINI_AMX_LANES || a->nv != 2 || a->how == EINI_GETT_STREAM) return 0;
  const int64_t ld = a->uoff[1] - a->uoff[0];
  const __m512i next = _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                          _mm512_set1_epi64(ld));
  if (ld < EINI_AMX_LANES || a->voff[1] != a->voff[0] + 16) return 0;
  for (int j = 0; j < EINI_AMX_LANES; j += 8) {
    const __m512i to = _mm512_add_epi64(_mm512_set1_epi64(a->uoff[0] + j * ld), next);
    odd |= _mm512_cmpneq_epi64_mask(to, _mm512_loadu_si512(a->uoff + j));
  }
  return odd == 0 ? ld : 0;
}

static void eini_gett_regs_load(unsigned char (*t)[64], const char *from, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(t[i], from + i * step, 64);
}

static void eini_gett_regs_save(unsigned char (*t)[64], char *to, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(to + i * step, t[i], 64);
}

// c[i][j] += the sum over k of the dot product of a[i][k] and b[k][j], four bytes each. What this
// takes as well, tile registers take for 0: subnormal values.
EINI_T512 static void eini_gett_regs_sum_bf16(unsigned char (*c)[64], unsigned char (*a)[64],
                                              unsigned char (*b)[64]) {
  for (int i = 0; i < 16; i++) {
    __m512 sum = _mm512_loadu_ps(c[i]), other = _mm512_setzero_ps();
    for (int k = 0; k < 16; k++) {
      int32_t pair;
      memcpy(&pair, a[i] + 4 * k, 4);
      const __m512 x = EINI_EZ_SET(eini_f32_from_bits((uint32_t)pair)), y = EINI_EZ_LOAD(b[k]);
      sum = _mm512_fmadd_ps(EINI_EZ_BOTTOM(x), EINI_EZ_BOTTOM(y), sum);
      other = _mm512_fmadd_ps(EINI_EZ_UPPER(x), EINI_EZ_UPPER(y), other);
    }
    _mm512_storeu_ps(c[i], _mm512_add_ps(sum, other));
  }
}

static void eini_gett_regs_sum_i8(unsigned char (*c)[64], unsigned char (*a)[64],
                              unsigned char (*b)[64], int a_signed, int b_signed) {
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 16; k++)
      for (int j = 0; j < 16; j++) {
        uint32_t sum;
        memcpy(&sum, c[i] + 4 * j, 4);
        for (int h = 0; h < 4; h++) {
          const int x = a[i][4 * k + h], y = b[k][4 * j + h];
          sum += (uint32_t)((a_signed && x > 127 ? x - 256 : x) *
                            (b_signed && y > 127 ? y - 256 : y));
        }
        memcpy(c[i] + 4 * j, &sum, 4);
      }
}

static void eini_gett_regs_dot(int kind, unsigned char (*c)[64], unsigned char (*a)[64],
                               unsigned char (*b)[64]) {
  if (kind == EINI_AMX_BF16) eini_gett_regs_sum_bf16(c, a, b);
  else eini_gett_regs_sum_i8(c, a, b, (kind & EINI_AMX_SU) != 0, (kind & EINI_AMX_US) != 0);
}

#define EINI_KERNELS EINI_KERNELS_AMX
#define EINI_AMX regs
#define EINI_AMX_AT
#define EINI_AMX_ZERO(n) memset(regs.t[n], 0, sizeof regs.t[n])
#define EINI_AMX_LOAD(n, p, step) eini_gett_regs_load(regs.t[n], (const char *)(p), step)
#define EINI_AMX_SAVE(n, p, step) eini_gett_regs_save(regs.t[n], (char *)(void *)(p), step)
#define EINI_AMX_DOT(c, a, b) eini_gett_regs_dot(kind, regs.t[c], regs.t[a], regs.t[b])
#include "einsum_cpu_kernels.h"
#undef EINI_AMX_DOT
#if EINI_CPU_AMX
#define EINI_AMX amx
#define EINI_AMX_AT EINI_TAMX
#define EINI_AMX_ZERO(n) _tile_zero(n)
#define EINI_AMX_LOAD(n, p, step) _tile_loadd(n, p, step)
#define EINI_AMX_SAVE(n, p, step) _tile_stored(n, p, step)
#define EINI_AMX_DOT(c, a, b)                            \
  do {                                                   \
    if (kind == EINI_AMX_BF16) _tile_dpbf16ps(c, a, b);  \
    else if (kind == EINI_AMX_SS) _tile_dpbssd(c, a, b); \
    else if (kind == EINI_AMX_SU) _tile_dpbsud(c, a, b); \
    else if (kind == EINI_AMX_US) _tile_dpbusd(c, a, b); \
    else _tile_dpbuud(c, a, b);                          \
  } while (0)
#include "einsum_cpu_kernels.h"
#undef EINI_AMX_DOT

// All eight registers whole: 16 rows of 64 bytes. A constant, since some compilers take the
// instruction to read 8 bytes, and leave out what is stored behind them.
EINI_TAMX static void eini_gett_amx_begin(void) {
  static const struct {
    unsigned char palette, zero[15];
    uint16_t bytes[16];
    unsigned char rows[16];
  } config = {1, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
}
EINI_TAMX static void eini_gett_amx_end(void) { _tile_release(); }
#endif  // EINI_CPU_AMX
#undef EINI_KERNELS

// By whether U and V are signed; in C where the machine has no such tiles.
static eini_gett_tile_fn eini_gett_amx_tile(int has, int bf16, int u_signed, int v_signed) {
  static const eini_gett_tile_fn in_c[4] = {eini_gett_regs_uu, eini_gett_regs_us,
                                            eini_gett_regs_su, eini_gett_regs_ss};
  const int i = 2 * u_signed + v_signed;
#if EINI_CPU_AMX
  static const eini_gett_tile_fn own[4] = {eini_gett_amx_uu, eini_gett_amx_us, eini_gett_amx_su,
                                           eini_gett_amx_ss};
  if (!(has & EINI_HAS_AMX_PLAIN)) return bf16 ? eini_gett_amx_bf16 : own[i];
#endif
  (void)has;
  return bf16 ? eini_gett_regs_bf16 : in_c[i];
}

// U's panels are turned, 16 lanes by 16 rows at a time.
EINI_T512 static void eini_gett_amx_turn(int64_t lanes, int64_t rows, float *p) {
  static const int64_t o[8] = {0, 16, 32, 48, 64, 80, 96, 112};
  const int64_t step[8] = {0, lanes, 2 * lanes, 3 * lanes, 4 * lanes, 5 * lanes, 6 * lanes,
                           7 * lanes};
  for (int64_t q = 0; q < rows; q += 16)
    for (int64_t i = 0; i < lanes; i += 16) {
      float turned[16 * 16], *b = p + q * lanes + i;
      for (int h = 0; h < 4; h++)
        eini_pack_swap_zs(b + h / 2 * 8 * lanes + h % 2 * 8, step, NULL,
                          turned + h % 2 * 128 + h / 2 * 8, o);
      for (int r = 0; r < 16; r++) memcpy(b + r * lanes, turned + 16 * r, 64);
    }
}
static int eini_gett_done_amx(const eini_gett_kit *kit, int is_u, int64_t lanes, int64_t rows,
                              void *panel) {
  if (is_u) eini_gett_amx_turn(lanes, rows, (float *)panel);
  return kit->form == EINI_GETT_AMX_BF16 && eini_gett_done_bf16(kit, is_u, lanes, rows, panel);
}

// Panels of U whose 64 bytes along k follow each other: they are rows of tiles as they are.
EINI_T512 static int eini_gett_amx_lines(const eini_gett_kit *kit, const eini_gett_pack_arg *a,
                                         int64_t panel) {
  const int64_t lanes = EINI_AMX_LANES, size = 4 / kit->group, each = 16 * kit->group;
  uint32_t odd = 0;
  for (int64_t p = 0; p < eini_up(a->np, lanes); p++) {
    const char *s = (const char *)a->src + a->row[eini_min64(p, a->np - 1)] * size;
    int32_t *d = (int32_t *)a->dst + p / lanes * panel + p % 16 * lanes + p % lanes / 16 * 16;
    for (int64_t q = 0; q < a->nk; q += each, d += 16 * lanes) {
      const int64_t rest = (a->nk - q) * size;
      const __mmask64 m = rest < 64 ? ((__mmask64)1 << rest) - 1 : ~(__mmask64)0;
      const __m512i x = _mm512_maskz_loadu_epi8(m, s + a->col[q] * size);
      odd |= eini_gett_subnormal(x);
      _mm512_storeu_si512(d, x);
    }
  }
  return kit->form == EINI_GETT_AMX_BF16 && odd != 0;
}

// What the lanes of a panel are made of: from where each run, less its first lane.
typedef struct eini_amx_runs {
  int n;
  int64_t from[EINI_AMX_RUNS];
  uint32_t lanes[EINI_AMX_RUNS];
} eini_amx_runs;

// Of the panel whose first position is p. 0: they are too many.
static int eini_gett_amx_runs(const eini_gett_pack_arg *a, int64_t p, eini_amx_runs *r) {
  r->n = 0;
  for (int64_t i = 0; i < EINI_AMX_LANES && p + i < a->np; i++) {
    const int64_t from = a->row[p + i] - i;
    if (r->n == 0 || from != r->from[r->n - 1]) {
      if (r->n == EINI_AMX_RUNS) return 0;
      r->from[r->n] = from, r->lanes[r->n++] = 0;
    }
    r->lanes[r->n - 1] |= 1u << i;
  }
  return 1;
}

// 32 values of two bytes, or as many pairs of one byte, of which the second may not be there.
EINI_T512 EINI_INLINE __m512i eini_gett_amx_row(const eini_amx_runs *r, const void *src, int bytes,
                                                const int64_t *col, int64_t n) {
  __m512i x = _mm512_setzero_si512();
  if (!bytes) {
    for (int i = 0; i < r->n && n > 0; i++)
      x = _mm512_mask_loadu_epi16(x, r->lanes[i], (const void *)((uintptr_t)src +
                                      2 * (uintptr_t)(r->from[i] + col[0])));
    return x;
  }
  for (int h = 0; h < 2 && h < n; h++) {
    __m256i y = _mm256_setzero_si256();
    for (int i = 0; i < r->n; i++)
      y = _mm256_mask_loadu_epi8(y, r->lanes[i], (const void *)((uintptr_t)src +
                                     (uintptr_t)(r->from[i] + col[h])));
    const __m512i z = _mm512_cvtepu8_epi16(y);
    x = h == 0 ? z : _mm512_or_si512(x, _mm512_slli_epi16(z, 8));
  }
  return x;
}

// Panels whose lanes are few runs of memory: two rows of values of two bytes become one of pairs.
// -1: they are not.
EINI_T512 static int eini_gett_amx_zip(const eini_gett_kit *kit, int is_u,
                                       const eini_gett_pack_arg *a, int64_t panel, int64_t rows) {
  const int bytes = kit->group == 4, half = kit->group / 2;
  const __m512i first = _mm512_set_epi32(
      0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a, 0x290009, 0x280008, 0x270007,
      0x260006, 0x250005, 0x240004, 0x230003, 0x220002, 0x210001, 0x200000);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  uint32_t odd = 0;
  eini_amx_runs r;
  for (int64_t p = 0; p < a->np; p += EINI_AMX_LANES) {
    int32_t *to = (int32_t *)a->dst + p / EINI_AMX_LANES * panel, *d = to;
    if (!eini_gett_amx_runs(a, p, &r)) return -1;
    for (int64_t q = 0; q < a->nk; q += kit->group, d += EINI_AMX_LANES) {
      const __m512i x = eini_gett_amx_row(&r, a->src, bytes, a->col + q, a->nk - q);
      const __m512i y = eini_gett_amx_row(&r, a->src, bytes, a->col + q + half, a->nk - q - half);
      odd |= eini_gett_subnormal(x) | eini_gett_subnormal(y);
      _mm512_storeu_si512(d, _mm512_permutex2var_epi16(x, first, y));
      _mm512_storeu_si512(d + 16, _mm512_permutex2var_epi16(x, second, y));
    }
    memset(d, 0, (size_t)(rows * EINI_AMX_LANES - (d - to)) * sizeof *d);
    if (is_u) eini_gett_amx_turn(EINI_AMX_LANES, rows, (float *)(void *)to);
  }
  return kit->form == EINI_GETT_AMX_BF16 && odd != 0;
}

// Packs all panels of a side, of so many rows, where its lines, or its lanes, lie so. 1: some value
// is subnormal; -1: they do not.
static int eini_gett_amx_pack(const eini_gett_kit *kit, int is_u, const eini_gett_pack_arg *a,
                              int64_t panel, int64_t rows) {
  if (a->lanes != EINI_AMX_LANES) return -1;
  if (is_u && a->kind == EINI_GETT_ALONG && a->step == 1 &&
      (a->count == a->nk || a->count % (16 * kit->group) == 0))
    return eini_gett_amx_lines(kit, a, panel);
  return eini_gett_amx_zip(kit, is_u, a, panel, rows);
}
#endif  // EINI_CPU_DOTS
