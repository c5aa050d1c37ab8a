// ================================================================================================
// >>gett-forms  which form of panels a problem may have
// Takes dtypes of operands and what the machine has; gives kernels and packing.
// ================================================================================================

// Whether an operand is to be converted, alone.
static int eini_gett_narrow(const ein_side *s) {
  return s->form == EIN_FORM_CONVERT && s->nop == 1;
}

// Whether the store is a conversion from the compute dtype of what is stored, and nothing else.
static int eini_gett_converts(const ein_contract *c) {
  return !c->plain_out && !c->scaled && c->store == NULL && c->nextra == 0 &&
         c->out_dtype != EIN_BOOL && c->out_dtype != c->type &&
         ein_dtype_compute(c->out_dtype) == c->type;
}

// What packs a narrow operand into panels as they are; NULL: it is packed as it is, and values made
// of that.
static eini_gett_pack_fn eini_gett_converter(const eini_gett_kit *k, const ein_side *s, int is_u) {
  if (!eini_gett_narrow(s)) return NULL;
  const ein_dtype t = s->dtype[0];
#if EINI_CPU_X86
  const int wide = (is_u ? k->gu : k->gv) == 8, vectors = k->isa >= EINI_ISA_AVX2;
  const int flip = is_u ? k->flip_u : k->flip_v;
  if (k->form == EINI_GETT_BF16 || k->form == EINI_GETT_AMX_BF16) return eini_pack_wzs;
  if (k->form == EINI_GETT_I8 || k->form == EINI_GETT_AMX_I8)
    return flip ? eini_pack_fzs : eini_pack_qzs;
  if (k->form == EINI_GETT_I16)
    return t == EIN_I16  ? (wide ? eini_pack_wzs : eini_pack_wys)
           : t == EIN_I8 ? (wide ? eini_pack_szs : eini_pack_sys)
                         : (wide ? eini_pack_uzs : eini_pack_uys);
  if (k->type == EIN_F32 && vectors && t == EIN_F16)
    return wide ? eini_pack_f16zs : eini_pack_f16ys;
  if (k->type == EIN_F32 && vectors && t == EIN_BF16)
    return wide ? eini_pack_bf16zs : eini_pack_bf16ys;
#else  // EINI_CPU_X86
  (void)is_u;
#endif
  if (k->type == EIN_F32 && t == EIN_F16) return eini_pack_f16ps;
  return k->type == EIN_F32 && t == EIN_BF16 ? eini_pack_bf16ps : NULL;
}

#if EINI_CPU_X86
// Whether panels of a form hold what a side converts.
static int eini_gett_takes(int form, const ein_side *s) {
  if (!eini_gett_narrow(s)) return 0;
  const ein_dtype t = s->dtype[0];
  if (form == EINI_GETT_BF16 || form == EINI_GETT_AMX_BF16) return t == EIN_BF16;
  return t == EIN_I8 || t == EIN_U8 || (form == EINI_GETT_I16 && t == EIN_I16);
}

// The tiles of dot products; 0: the machine has none.
static int eini_gett_kit_dots(const eini_cpu *cpu, int form, eini_gett_kit *k) {
  k->size = 4, k->group = 2, k->cols = 4;
  if (form == EINI_GETT_I16) k->tile = eini_gett_sum_mul_wy, k->fold = eini_gett_sum_yi;
  eini_gett_shape(k, 8, 3, 4);
#if EINI_CPU_DOTS
  const int plain = (cpu->has & EINI_HAS_AMX_PLAIN) != 0;
  if (form == EINI_GETT_BF16 && cpu->has & EINI_HAS_BF16) {
    k->tile = eini_gett_sum_mul_bz, k->exact = eini_gett_sum_mul_ez, k->fold = eini_gett_sum_zs;
    k->done = eini_gett_done_bf16;
  }
  if (form == EINI_GETT_I16 && cpu->has & EINI_HAS_VNNI)
    k->tile = eini_gett_sum_mul_wz, k->fold = eini_gett_sum_zi;
  if (form == EINI_GETT_I8 && cpu->has & EINI_HAS_VNNI) {
    k->tile = eini_gett_sum_mul_qz, k->fold = eini_gett_sum_zi;
    k->group = 4, k->head = 1, k->done = eini_gett_done_i8;
  }
  if (k->tile != NULL && k->tile != eini_gett_sum_mul_wy) eini_gett_shape(k, 16, 3, 8);
  if (form == EINI_GETT_AMX_BF16 && (plain || cpu->has & EINI_HAS_AMX_BF16))
    k->exact = eini_gett_regs_bf16, k->fold = eini_gett_sum_zs;
  if (form == EINI_GETT_AMX_I8 && (plain || cpu->has & EINI_HAS_AMX_I8))
    k->fold = eini_gett_sum_zi, k->group = 4;
  if (eini_gett_tiled(k) && k->fold != NULL) {
    k->tile = eini_gett_amx_tile(cpu->has, form == EINI_GETT_AMX_BF16, 0, 0);
    k->done = eini_gett_done_amx, k->round = 16, k->cols = 1;
    eini_gett_shape(k, 16, 2, 32);
  }
#endif  // EINI_CPU_DOTS
  return k->tile != NULL && cpu->isa >= EINI_ISA_AVX2;
}
#endif  // EINI_CPU_X86

// The kernels of a contraction with panels of a form; 0: there are none.
static int eini_gett_pick_form(const eini_cpu *cpu, const ein_contract *c, int form,
                               eini_gett_kit *k) {
  if (form == EINI_GETT_WHOLE) return eini_gett_pick(cpu, c->type, c->pair, k);
#if EINI_CPU_X86
  const ein_dtype type = form == EINI_GETT_BF16 || form == EINI_GETT_AMX_BF16 ? EIN_F32 : EIN_I32;
  memset(k, 0, sizeof *k);
  if (c->pair != EIN_PAIR_SUM_MUL || c->type != type || !eini_gett_takes(form, &c->p) ||
      !eini_gett_takes(form, &c->q))
    return 0;
  k->parts = k->round = 1;
  k->isa = cpu->isa, k->type = (int)type, k->form = form;
  if (!eini_gett_kit_dots(cpu, form, k)) return 0;
  eini_gett_kit_pack(cpu->isa, type, k);
  return 1;
#else  // EINI_CPU_X86
  return 0;
#endif
}

// What depends on which side is U.
static void eini_gett_dress(const eini_cpu *cpu, eini_gett_kit *k, const ein_side *v,
                            const ein_side *u) {
#if EINI_CPU_DOTS
  const int u_signed = u->nop > 0 && u->dtype[0] == EIN_I8;
  const int v_signed = v->nop > 0 && v->dtype[0] == EIN_I8;
  if (k->form == EINI_GETT_I8) k->flip_u = u_signed, k->flip_v = !v_signed;
  if (k->form == EINI_GETT_AMX_I8) k->tile = eini_gett_amx_tile(cpu->has, 0, u_signed, v_signed);
#else
  (void)cpu, (void)k, (void)v, (void)u;
#endif
}

// Around the tiles of a run.
static void eini_gett_begin(const eini_cpu *cpu, const eini_gett_kit *k) {
#if EINI_CPU_AMX
  if (eini_gett_tiled(k) && !(cpu->has & EINI_HAS_AMX_PLAIN)) eini_gett_amx_begin();
#else
  (void)cpu, (void)k;
#endif
}

static void eini_gett_end(const eini_cpu *cpu, const eini_gett_kit *k) {
#if EINI_CPU_AMX
  if (eini_gett_tiled(k) && !(cpu->has & EINI_HAS_AMX_PLAIN)) eini_gett_amx_end();
#else
  (void)cpu, (void)k;
#endif
}
