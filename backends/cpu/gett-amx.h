// ================================================================================================
// >>gett-amx  tiles of section gett in tile registers
// 32 columns of U by 32 lanes of V, of panels of section gett-narrow: 16 rows a step.
// ================================================================================================

#if EINI_CPU_DOTS

typedef struct eini_gett_regs { unsigned char t[8][16][64]; } eini_gett_regs;

// What is multiplied: U and V, unsigned or signed bytes; pairs of bf16.
enum { EINI_AMX_UU, EINI_AMX_US, EINI_AMX_SU, EINI_AMX_SS, EINI_AMX_BF16 };

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
static int64_t eini_gett_amx_even(const eini_gett_tile_arg *a) {
  const int64_t ld = a->uoff[1] - a->uoff[0];
  if (a->nu != 32 || a->nv != 2 || a->how == EINI_GETT_STREAM || ld < 32) return 0;
  if (a->voff[1] != a->voff[0] + 16) return 0;
  for (int j = 2; j < 32; j++)
    if (a->uoff[j] - a->uoff[j - 1] != ld) return 0;
  return ld;
}

static void eini_gett_regs_load(unsigned char (*t)[64], const char *from, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(t[i], from + i * step, 64);
}

static void eini_gett_regs_save(unsigned char (*t)[64], char *to, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(to + i * step, t[i], 64);
}

// c[i][j] += the sum over k of the dot product of a[i][k] and b[k][j], four bytes each.
static void eini_gett_regs_sum_bf16(unsigned char (*c)[64], unsigned char (*a)[64],
                                unsigned char (*b)[64]) {
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 16; k++)
      for (int j = 0; j < 16; j++) {
        uint16_t x[2], y[2];
        float sum;
        memcpy(x, a[i] + 4 * k, 4);
        memcpy(y, b[k] + 4 * j, 4);
        memcpy(&sum, c[i] + 4 * j, 4);
        for (int h = 0; h < 2; h++) sum += eini_bf16_load(x[h]) * eini_bf16_load(y[h]);
        memcpy(c[i] + 4 * j, &sum, 4);
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
#define EINI_AMX_LOAD(n, p, step) eini_gett_regs_load(regs.t[n], p, step)
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
EINI_T512 static int eini_gett_done_amx(const eini_gett_kit *kit, int is_u, int64_t lanes,
                                        int64_t rows, void *panel) {
  static const int64_t o[8] = {0, 16, 32, 48, 64, 80, 96, 112};
  const int64_t step[8] = {0, lanes, 2 * lanes, 3 * lanes, 4 * lanes, 5 * lanes, 6 * lanes,
                           7 * lanes};
  float *p = (float *)panel;
  const int subnormal = kit->form == EINI_GETT_AMX_BF16 &&
                        eini_gett_done_bf16(kit, is_u, lanes, rows, panel);
  for (int64_t q = 0; is_u && q < rows; q += 16)
    for (int64_t i = 0; i < lanes; i += 16) {
      float turned[16 * 16], *b = p + q * lanes + i;
      for (int h = 0; h < 4; h++)
        eini_pack_swap_zs(b + h / 2 * 8 * lanes + h % 2 * 8, step, NULL,
                          turned + h % 2 * 128 + h / 2 * 8, o);
      for (int r = 0; r < 16; r++) memcpy(b + r * lanes, turned + 16 * r, 64);
    }
  return subnormal;
}
#endif  // EINI_CPU_DOTS
