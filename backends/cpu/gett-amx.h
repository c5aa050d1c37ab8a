// ================================================================================================
// >>gett-amx  tiles of section gett in tile registers
// 32 columns of U by 32 lanes of V, of panels of section gett-narrow: 16 rows a step.
// ================================================================================================

// The same walk with the instructions and, where there are none, in plain C. Registers 0 to 3 hold
// sums: U's halves by V's; 4 and 5 U, 6 and 7 V. U's panel has each 16 rows of 16 lanes turned.
#if EINI_CPU_DOTS

typedef struct eini_gett_regs { unsigned char t[8][16][64]; } eini_gett_regs;

// Vectors of a row may overlap: what they add to is taken before any of them is stored.
#define EINI_GETT_AMX_LEAVE(NAME, X)                                                             \
  EINI_T512 static void NAME(const eini_gett_tile_arg *a, const X##T *sums) {                    \
    for (int j = 0; j < a->nu; j++, sums += 32) {                                                \
      X##T *d = (X##T *)a->dst + a->uoff[j];                                                     \
      X##V x[2] = {X##LOAD(sums), X##LOAD(sums + 16)};                                           \
      for (int i = 0; i < a->nv && a->how == EINI_GETT_ADD; i++)                                 \
        x[i] = X##ADD(X##LOAD(d + a->voff[i]), x[i]);                                            \
      for (int i = 0; i < a->nv; i++)                                                            \
        if (a->how == EINI_GETT_STREAM) X##STREAM(d + a->voff[i], x[i], a->lanes[i]);            \
        else X##STORE(d + a->voff[i], x[i]);                                                     \
    }                                                                                            \
  }
EINI_GETT_AMX_LEAVE(eini_gett_amx_leave_f, EINI_ZS_)
EINI_GETT_AMX_LEAVE(eini_gett_amx_leave_i, EINI_ZI_)
#undef EINI_GETT_AMX_LEAVE

#define EINI_GETT_AMX(NAME, ATTR, T, LEAVE, ZERO, LOAD, SAVE, DOT)                               \
  ATTR static void NAME(const eini_gett_tile_arg *a) {                                           \
    eini_gett_regs regs;                                                                         \
    T sums[32 * 32];                                                                             \
    const char *v = (const char *)a->v, *u = (const char *)a->u;                                 \
    const int64_t sv = 4 * a->sv, su = 4 * a->uk;                                                \
    const int low = a->nu > 16, right = a->nv > 1;                                               \
    (void)regs;                                                                                  \
    ZERO(0);                                                                                     \
    ZERO(1);                                                                                     \
    ZERO(2);                                                                                     \
    ZERO(3);                                                                                     \
    for (int64_t k = 0; k < a->k; k += 16, v += 16 * sv, u += 16 * su) {                         \
      LOAD(4, u, su);                                                                            \
      LOAD(6, v, sv);                                                                            \
      DOT(0, 4, 6);                                                                              \
      if (right) {                                                                               \
        LOAD(7, v + 64, sv);                                                                     \
        DOT(1, 4, 7);                                                                            \
      }                                                                                          \
      if (low) {                                                                                 \
        LOAD(5, u + 64, su);                                                                     \
        DOT(2, 5, 6);                                                                            \
        if (right) {                                                                             \
          DOT(3, 5, 7);                                                                          \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    SAVE(0, sums, 128);                                                                          \
    SAVE(1, sums + 16, 128);                                                                     \
    SAVE(2, sums + 16 * 32, 128);                                                                \
    SAVE(3, sums + 16 * 32 + 16, 128);                                                           \
    LEAVE(a, sums);                                                                              \
  }

static void eini_gett_regs_load(unsigned char (*t)[64], const char *from, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(t[i], from + i * step, 64);
}

static void eini_gett_regs_save(unsigned char (*t)[64], char *to, int64_t step) {
  for (int i = 0; i < 16; i++) memcpy(to + i * step, t[i], 64);
}

// c[i][j] += the sum over k of the dot product of a[i][k] and b[k][j], four bytes each.
static void eini_gett_regs_bf16(unsigned char (*c)[64], unsigned char (*a)[64],
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

static void eini_gett_regs_i8(unsigned char (*c)[64], unsigned char (*a)[64],
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

#define EINI_GETT_REGS_ZERO(n) memset(regs.t[n], 0, sizeof regs.t[n])
#define EINI_GETT_REGS_LOAD(n, p, step) eini_gett_regs_load(regs.t[n], p, step)
#define EINI_GETT_REGS_SAVE(n, p, step) \
  eini_gett_regs_save(regs.t[n], (char *)(void *)(p), step)
#define EINI_GETT_REGS_BF16(c, a, b) eini_gett_regs_bf16(regs.t[c], regs.t[a], regs.t[b])
#define EINI_GETT_REGS_SS(c, a, b) eini_gett_regs_i8(regs.t[c], regs.t[a], regs.t[b], 1, 1)
#define EINI_GETT_REGS_SU(c, a, b) eini_gett_regs_i8(regs.t[c], regs.t[a], regs.t[b], 1, 0)
#define EINI_GETT_REGS_US(c, a, b) eini_gett_regs_i8(regs.t[c], regs.t[a], regs.t[b], 0, 1)
#define EINI_GETT_REGS_UU(c, a, b) eini_gett_regs_i8(regs.t[c], regs.t[a], regs.t[b], 0, 0)
#define EINI_GETT_AMX_IN_C(NAME, T, LEAVE, DOT)                                                  \
  EINI_GETT_AMX(NAME, EINI_UNUSED, T, LEAVE, EINI_GETT_REGS_ZERO, EINI_GETT_REGS_LOAD,        \
                EINI_GETT_REGS_SAVE, DOT)
EINI_GETT_AMX_IN_C(eini_gett_regs_fn_bf16, float, eini_gett_amx_leave_f, EINI_GETT_REGS_BF16)
EINI_GETT_AMX_IN_C(eini_gett_regs_fn_ss, int32_t, eini_gett_amx_leave_i, EINI_GETT_REGS_SS)
EINI_GETT_AMX_IN_C(eini_gett_regs_fn_su, int32_t, eini_gett_amx_leave_i, EINI_GETT_REGS_SU)
EINI_GETT_AMX_IN_C(eini_gett_regs_fn_us, int32_t, eini_gett_amx_leave_i, EINI_GETT_REGS_US)
EINI_GETT_AMX_IN_C(eini_gett_regs_fn_uu, int32_t, eini_gett_amx_leave_i, EINI_GETT_REGS_UU)
#undef EINI_GETT_AMX_IN_C

#if EINI_CPU_AMX
#define EINI_GETT_AMX_ZERO(n) _tile_zero(n)
#define EINI_GETT_AMX_LOAD(n, p, step) _tile_loadd(n, p, step)
#define EINI_GETT_AMX_SAVE(n, p, step) _tile_stored(n, p, step)
#define EINI_GETT_AMX_BF16(c, a, b) _tile_dpbf16ps(c, a, b)
#define EINI_GETT_AMX_SS(c, a, b) _tile_dpbssd(c, a, b)
#define EINI_GETT_AMX_SU(c, a, b) _tile_dpbsud(c, a, b)
#define EINI_GETT_AMX_US(c, a, b) _tile_dpbusd(c, a, b)
#define EINI_GETT_AMX_UU(c, a, b) _tile_dpbuud(c, a, b)
#define EINI_GETT_AMX_OWN(NAME, T, LEAVE, DOT)                                                   \
  EINI_GETT_AMX(NAME, EINI_TAMX, T, LEAVE, EINI_GETT_AMX_ZERO, EINI_GETT_AMX_LOAD,               \
                EINI_GETT_AMX_SAVE, DOT)
EINI_GETT_AMX_OWN(eini_gett_amx_bf16, float, eini_gett_amx_leave_f, EINI_GETT_AMX_BF16)
EINI_GETT_AMX_OWN(eini_gett_amx_ss, int32_t, eini_gett_amx_leave_i, EINI_GETT_AMX_SS)
EINI_GETT_AMX_OWN(eini_gett_amx_su, int32_t, eini_gett_amx_leave_i, EINI_GETT_AMX_SU)
EINI_GETT_AMX_OWN(eini_gett_amx_us, int32_t, eini_gett_amx_leave_i, EINI_GETT_AMX_US)
EINI_GETT_AMX_OWN(eini_gett_amx_uu, int32_t, eini_gett_amx_leave_i, EINI_GETT_AMX_UU)
#undef EINI_GETT_AMX_OWN

// All eight registers whole: 16 rows of 64 bytes.
EINI_TAMX static void eini_gett_amx_begin(void) {
  unsigned char config[64];
  memset(config, 0, sizeof config);
  config[0] = 1;
  for (int i = 0; i < 8; i++) config[16 + 2 * i] = 64, config[48 + i] = 16;
  _tile_loadconfig(config);
}
EINI_TAMX static void eini_gett_amx_end(void) { _tile_release(); }
#endif  // EINI_CPU_AMX
#undef EINI_GETT_AMX

// By whether U and V are signed; in C where the machine has no such tiles.
static eini_gett_tile_fn eini_gett_amx_tile(int has, int bf16, int u_signed, int v_signed) {
  static const eini_gett_tile_fn in_c[4] = {eini_gett_regs_fn_uu, eini_gett_regs_fn_us,
                                            eini_gett_regs_fn_su, eini_gett_regs_fn_ss};
  const int i = 2 * u_signed + v_signed;
#if EINI_CPU_AMX
  static const eini_gett_tile_fn own[4] = {eini_gett_amx_uu, eini_gett_amx_us, eini_gett_amx_su,
                                           eini_gett_amx_ss};
  if (!(has & EINI_HAS_AMX_PLAIN)) return bf16 ? eini_gett_amx_bf16 : own[i];
#endif
  (void)has;
  return bf16 ? eini_gett_regs_fn_bf16 : in_c[i];
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
        eini_pack_swap_4z(b + h / 2 * 8 * lanes + h % 2 * 8, step, NULL,
                          turned + h % 2 * 128 + h / 2 * 8, o);
      for (int r = 0; r < 16; r++) memcpy(b + r * lanes, turned + 16 * r, 64);
    }
  return subnormal;
}
#endif  // EINI_CPU_DOTS
