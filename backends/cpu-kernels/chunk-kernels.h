// ================================================================================================
// >>chunk-kernels  operations of expressions and folds, of one set
// EINI_CHUNK_REAL: whether the set's type has the functions of reals.
// ================================================================================================

#if EINI_KERNELS == EINI_KERNELS_CHUNKS
#if EINI_CHUNK_REAL
// libm's names keep compilers from vector code (errno, traps), so these say it themselves.
EINI_VAT EINI_INLINE EINI_V EINI_FN(c_value)(int op, EINI_V x) {
  switch (op) {
    case EIN_OP_SQRT: return EINI_VSQRT(x);
    case EIN_OP_RSQRT: return EINI_VDIV(EINI_VSET(1), EINI_VSQRT(x));
#if EINI_VW * EINI_VBYTES < 64
    case EIN_OP_FLOOR: return EINI_VFLOOR(x);
    case EIN_OP_CEIL: return EINI_VCEIL(x);
    case EIN_OP_ROUND: return EINI_VRINT(x);
#endif
    case EIN_OP_EXP: return EINI_VEXP(x);
    default: break;
  }
  const EINI_V y = EINI_VADD(EINI_VSET(1), EINI_VEXP(EINI_VSUB(EINI_VSET(0), x)));
  return EINI_VDIV(op == EIN_OP_SILU ? x : EINI_VSET(1), y);
}

EINI_VAT EINI_INLINE void EINI_FN(c_values)(int op, EINI_OP_ARGS) {
  const EINI_VT *x = (const EINI_VT *)a;
  EINI_VT *y = (EINI_VT *)d;
  (void)b;
  (void)c;
  for (int64_t i = 0; i < n; i += EINI_VW)
    EINI_VSTORE(y + i, EINI_FN(c_value)(op, EINI_VLOAD(x + i)));
}

#define EINI_SELF(op) EINI_FN(c_values)(op, n, a, b, c, d)
EINI_VAT static void EINI_FN(c_sqrt)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SQRT); }
EINI_VAT static void EINI_FN(c_rsqrt)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_RSQRT); }
EINI_VAT static void EINI_FN(c_exp)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_EXP); }
EINI_VAT static void EINI_FN(c_sigmoid)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SIGMOID); }
EINI_VAT static void EINI_FN(c_silu)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_SILU); }
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT static void EINI_FN(c_floor)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_FLOOR); }
EINI_VAT static void EINI_FN(c_ceil)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_CEIL); }
EINI_VAT static void EINI_FN(c_round)(EINI_OP_ARGS) { EINI_SELF(EIN_OP_ROUND); }
#endif
#undef EINI_SELF
#endif  // EINI_CHUNK_REAL

#if EINI_CPU_X86
// A function of sections math, eval and fold for the type.
#define EINI_OF(name) EINI_CAT(eini_##name##_, EINI_X(TYPE))
#define EINI_FLAT_OP(name) EINI_OF(c_##name)(n, a, b, c, d)
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_add)(EINI_OP_ARGS) { EINI_FLAT_OP(add); }
EINI_VAT EINI_FLAT static void EINI_FN(c_sub)(EINI_OP_ARGS) { EINI_FLAT_OP(sub); }
EINI_VAT EINI_FLAT static void EINI_FN(c_mul)(EINI_OP_ARGS) { EINI_FLAT_OP(mul); }
EINI_VAT EINI_FLAT static void EINI_FN(c_square)(EINI_OP_ARGS) { EINI_FLAT_OP(square); }
EINI_VAT EINI_FLAT static void EINI_FN(c_neg)(EINI_OP_ARGS) { EINI_FLAT_OP(neg); }
EINI_VAT EINI_FLAT static void EINI_FN(c_max)(EINI_OP_ARGS) { EINI_FLAT_OP(max); }
EINI_VAT EINI_FLAT static void EINI_FN(c_min)(EINI_OP_ARGS) { EINI_FLAT_OP(min); }
EINI_VAT EINI_FLAT static void EINI_FN(c_lt)(EINI_OP_ARGS) { EINI_FLAT_OP(lt); }
EINI_VAT EINI_FLAT static void EINI_FN(c_le)(EINI_OP_ARGS) { EINI_FLAT_OP(le); }
EINI_VAT EINI_FLAT static void EINI_FN(c_gt)(EINI_OP_ARGS) { EINI_FLAT_OP(gt); }
EINI_VAT EINI_FLAT static void EINI_FN(c_ge)(EINI_OP_ARGS) { EINI_FLAT_OP(ge); }
EINI_VAT EINI_FLAT static void EINI_FN(c_eq)(EINI_OP_ARGS) { EINI_FLAT_OP(eq); }
EINI_VAT EINI_FLAT static void EINI_FN(c_ne)(EINI_OP_ARGS) { EINI_FLAT_OP(ne); }
EINI_VAT EINI_FLAT static void EINI_FN(c_where)(EINI_OP_ARGS) { EINI_FLAT_OP(where); }
EINI_VAT EINI_FLAT static void EINI_FN(c_relu)(EINI_OP_ARGS) { EINI_FLAT_OP(relu); }
EINI_VAT EINI_FLAT static void EINI_FN(c_abs)(EINI_OP_ARGS) { EINI_FLAT_OP(abs); }
#endif  // EINI_VW, EINI_VBYTES
#if EINI_CHUNK_REAL
EINI_VAT EINI_FLAT static void EINI_FN(c_quot)(EINI_OP_ARGS) { EINI_FLAT_OP(quot); }
EINI_VAT EINI_FLAT static void EINI_FN(c_log)(EINI_OP_ARGS) { EINI_FLAT_OP(log); }
EINI_VAT EINI_FLAT static void EINI_FN(c_sin)(EINI_OP_ARGS) { EINI_FLAT_OP(sin); }
EINI_VAT EINI_FLAT static void EINI_FN(c_cos)(EINI_OP_ARGS) { EINI_FLAT_OP(cos); }
EINI_VAT EINI_FLAT static void EINI_FN(c_tanh)(EINI_OP_ARGS) { EINI_FLAT_OP(tanh); }
EINI_VAT EINI_FLAT static void EINI_FN(c_erf)(EINI_OP_ARGS) { EINI_FLAT_OP(erf); }
#if EINI_VW * EINI_VBYTES < 64  // clang makes no good 512-bit code of it
EINI_VAT EINI_FLAT static void EINI_FN(c_gelu)(EINI_OP_ARGS) { EINI_FLAT_OP(gelu); }
#endif
#endif  // EINI_CHUNK_REAL
// Storage dtypes: NaN keeps its bits, which instructions that convert f16 would make quiet.
#define EINI_STORED(name) eini_c_##name(n, a, b, c, d)
#if EINI_VBYTES == 4 && EINI_CHUNK_REAL
EINI_VAT EINI_FLAT static void EINI_FN(c_load_f16)(EINI_OP_ARGS) { EINI_STORED(load_f16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_bf16)(EINI_OP_ARGS) { EINI_STORED(load_bf16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_f16)(EINI_OP_ARGS) { EINI_STORED(store_f16); }
#if EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_store_bf16)(EINI_OP_ARGS) { EINI_STORED(store_bf16); }
#endif
#elif EINI_VBYTES == 4 && EINI_VW * EINI_VBYTES < 64
EINI_VAT EINI_FLAT static void EINI_FN(c_load_i8)(EINI_OP_ARGS) { EINI_STORED(load_i8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_u8)(EINI_OP_ARGS) { EINI_STORED(load_u8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_load_i16)(EINI_OP_ARGS) { EINI_STORED(load_i16); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_8)(EINI_OP_ARGS) { EINI_STORED(store_8); }
EINI_VAT EINI_FLAT static void EINI_FN(c_store_16)(EINI_OP_ARGS) { EINI_STORED(store_16); }
#endif
#undef EINI_STORED
#undef EINI_FLAT_OP

EINI_VAT EINI_INLINE EINI_V EINI_FN(h_value)(int fold, EINI_V x, EINI_V y) {
  return fold == EIN_FOLD_SUM    ? EINI_VADD(x, y)
         : fold == EIN_FOLD_PROD ? EINI_VMUL(x, y)
         : fold == EIN_FOLD_MAX  ? EINI_VTOP(x, y)
                                 : EINI_VLOW(x, y);
}

// Folds in EINI_LANES lanes as section fold does, so that the bits are the same: the body here,
// the rest with its functions. Callers fold one chunk after the other: what comes next is on its
// way when a short one ends. Along longer ones the processor asks by itself.
#define EINI_ACROSS_AHEAD 4096  // bytes
EINI_VAT EINI_INLINE void EINI_FN(h_fold)(int fold, eini_horizontal_fn few,
                                          void (*into)(int64_t n, EINI_VT *a, const EINI_VT *b),
                                          int64_t n, const void *px, void *acc) {
  const EINI_VT *x = (const EINI_VT *)px;
  EINI_VT lane[EINI_LANES];
  EINI_V v[EINI_LANES / EINI_VW];
  int64_t i = EINI_LANES;
  const int ahead = n * (int64_t)sizeof *x <= 2 * EINI_ACROSS_AHEAD;
  if (n < EINI_LANES) {
    few(n, px, acc);
    return;
  }
  for (int k = 0; k < EINI_LANES / EINI_VW; k++) v[k] = EINI_VLOAD(x + k * EINI_VW);
  for (; i + EINI_LANES <= n; i += EINI_LANES) {
    for (size_t line = 0; ahead && line < sizeof lane; line += 64)
      EINI_FETCH((uintptr_t)(x + i) + EINI_ACROSS_AHEAD + line);
    for (int k = 0; k < EINI_LANES / EINI_VW; k++)
      v[k] = EINI_FN(h_value)(fold, v[k], EINI_VLOAD(x + i + k * EINI_VW));
  }
  memcpy(lane, v, sizeof lane);
  _mm256_zeroupper();  // gcc 12 forgets it here: SSE code after it would wait
  into(n - i, lane, x + i);
  for (int64_t w = EINI_LANES / 2; w > 0; w /= 2) into(w, lane, lane + w);
  into(1, (EINI_VT *)acc, lane);
}
#undef EINI_ACROSS_AHEAD

EINI_VAT static void EINI_FN(h_sum)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_SUM, EINI_OF(h_sum), EINI_OF(v_sum), n, x, acc);
}
EINI_VAT static void EINI_FN(h_prod)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_PROD, EINI_OF(h_prod), EINI_OF(v_prod), n, x, acc);
}
EINI_VAT static void EINI_FN(h_max)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_MAX, EINI_OF(h_max), EINI_OF(v_max), n, x, acc);
}
EINI_VAT static void EINI_FN(h_min)(int64_t n, const void *x, void *acc) {
  EINI_FN(h_fold)(EIN_FOLD_MIN, EINI_OF(h_min), EINI_OF(v_min), n, x, acc);
}
#undef EINI_OF
#endif  // EINI_CPU_X86
#endif  // EINI_KERNELS_CHUNKS
