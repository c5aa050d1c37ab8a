// ================================================================================================
// >>cuda-text  expressions as source
// Takes an expression program; gives statements that compute it, one value a line, in the types of
// the program. What it cannot say makes the whole kernel none.
// ================================================================================================

#define EINI_CUDA_SOURCE ((size_t)1 << 17)  // bytes of a generated source at most
#define EINI_CUDA_REGS 192                  // registers and steps of an expression at most

// What a source is made with. q: how many numbers of doubles params have taken.
typedef struct eini_cuda_writer {
  eini_text t;
  const eini_cuda_nest *x;
  int q, bad;
  int staged;                 // 1: addresses and values are names, b<stream> and at<stream>
  const unsigned char *own;   // then, per stream: 1: in shared memory; 2: read as 1
  int along;                  // 1 + the loop of which there are n values, or 0
  int param[EINI_CUDA_REGS];  // which one pair of numbers is of
} eini_cuda_writer;

static void eini_cuda_say_bits(eini_text *t, ein_dtype type, double re, double im) {
  uint64_t a, b;
  const double x = type == EIN_F32 || type == EIN_C64 ? (double)(float)re : re;
  const double y = type == EIN_C64 ? (double)(float)im : im;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  if (type == EIN_F32) eini_say(t, "(float)ein_f64(0x%llxull)", (unsigned long long)a);
  else if (type == EIN_F64) eini_say(t, "ein_f64(0x%llxull)", (unsigned long long)a);
  else eini_say(t, type == EIN_C64 ? "ein_c((float)ein_f64(0x%llxull), (float)ein_f64(0x%llxull))"
                                   : "ein_z(ein_f64(0x%llxull), ein_f64(0x%llxull))",
                (unsigned long long)a, (unsigned long long)b);
}

// The value of a constant, or of a param: numbers 2k and 2k+1 of q.
static void eini_cuda_say_fill(eini_cuda_writer *w, const ein_fill *f) {
  const ein_dtype type = (ein_dtype)f->type;
  eini_text *t = &w->t;
  int k = 0;
  if (f->param < 0) {
    if (type == EIN_BOOL) eini_say(t, "%d", f->re != 0 || f->im != 0);
    else if (type == EIN_I32) eini_say(t, "(int)0x%xu", (unsigned)(uint64_t)f->ival);
    else if (type == EIN_I64) eini_say(t, "(long long)0x%llxull", (unsigned long long)f->ival);
    else eini_cuda_say_bits(t, type, f->re, f->im);
    return;
  }
  while (k < w->q && w->param[k] != f->param) k++;
  if (k == EINI_CUDA_REGS) {
    w->bad = 1;
    return;
  }
  if (k == w->q) w->param[w->q++] = f->param;
  const int re = 2 * k, im = 2 * k + 1;
  switch (type) {
    case EIN_BOOL: eini_say(t, "(ein_bool)(p.q[%d] != 0 || p.q[%d] != 0)", re, im); break;
    case EIN_I32: eini_say(t, "(int)ein_int(p.q[%d])", re); break;
    case EIN_I64: eini_say(t, "ein_int(p.q[%d])", re); break;
    case EIN_F32: eini_say(t, "(float)p.q[%d]", re); break;
    case EIN_F64: eini_say(t, "p.q[%d]", re); break;
    case EIN_C64: eini_say(t, "ein_c((float)p.q[%d], (float)p.q[%d])", re, im); break;
    default: eini_say(t, "ein_z(p.q[%d], p.q[%d])", re, im); break;
  }
}

// How operations read over names: %1$s would not be C99, so a, b, c are letters behind '$', and T,
// U and W the type, the unsigned one and 'f' of single precision. NULL: not said.
static const char *eini_cuda_arith(int op, int integer) {
  switch (op) {
    case EIN_OP_NEG: return integer ? "($T)(0 - ($U)$a)" : "-$a";
    case EIN_OP_ADD: return integer ? "($T)(($U)$a + ($U)$b)" : "$a + $b";
    case EIN_OP_SUB: return integer ? "($T)(($U)$a - ($U)$b)" : "$a - $b";
    case EIN_OP_MUL: return integer ? "($T)(($U)$a * ($U)$b)" : "$a * $b";
    case EIN_OP_SQUARE: return integer ? "($T)(($U)$a * ($U)$a)" : "$a * $a";
    case EIN_OP_ABS: return integer ? "$a < 0 ? ($T)(0 - ($U)$a) : $a" : "fabs$W($a)";
    case EIN_OP_SIGN: return integer ? "($a > 0) - ($a < 0)"
                                     : "$a > 0 ? ($T)1 : $a < 0 ? ($T)-1 : $a == 0 ? ($T)0 : $a";
    case EIN_OP_FLOORDIV: return integer ? "($T)ein_idiv($a, $b)" : "($T)ein_fdiv($a, $b)";
    case EIN_OP_MOD: return integer ? "($T)ein_imod($a, $b)" : "($T)ein_fmod($a, $b)";
    case EIN_OP_RELU: return "$a < 0 ? ($T)0 : $a";
    default: return NULL;
  }
}

static const char *eini_cuda_order(int op) {  // of all types that have one, bool too
  switch (op) {
    case EIN_OP_MAX: return "($a > $b) | ($a != $a) ? $a : $b";
    case EIN_OP_MIN: return "($a < $b) | ($a != $a) ? $a : $b";
    case EIN_OP_LT: return "(ein_bool)($a < $b)";
    case EIN_OP_LE: return "(ein_bool)($a <= $b)";
    case EIN_OP_GT: return "(ein_bool)($a > $b)";
    case EIN_OP_GE: return "(ein_bool)($a >= $b)";
    case EIN_OP_EQ: return "(ein_bool)($a == $b)";
    case EIN_OP_NE: return "(ein_bool)($a != $b)";
    case EIN_OP_AND: return "(ein_bool)($a & $b)";
    case EIN_OP_OR: return "(ein_bool)($a | $b)";
    case EIN_OP_NOT: return "(ein_bool)($a ^ 1)";
    default: return NULL;
  }
}

static const char *eini_cuda_function(int op) {  // of f32 and f64
  switch (op) {
    case EIN_OP_DIV: return "$a / $b";
    case EIN_OP_POW: return "pow$W($a, $b)";
    case EIN_OP_EXP: return "exp$W($a)";
    case EIN_OP_LOG: return "log$W($a)";
    case EIN_OP_SQRT: return "sqrt$W($a)";
    case EIN_OP_RSQRT: return "($T)1 / sqrt$W($a)";
    case EIN_OP_EXPM1: return "expm1$W($a)";
    case EIN_OP_LOG1P: return "log1p$W($a)";
    case EIN_OP_SIN: return "sin$W($a)";
    case EIN_OP_COS: return "cos$W($a)";
    case EIN_OP_TAN: return "tan$W($a)";
    case EIN_OP_TANH: return "tanh$W($a)";
    case EIN_OP_ATAN2: return "atan2$W($a, $b)";
    case EIN_OP_ERF: return "erf$W($a)";
    case EIN_OP_SIGMOID: return "($T)1 / (($T)1 + exp$W(-$a))";
    case EIN_OP_SILU: return "$a / (($T)1 + exp$W(-$a))";
    case EIN_OP_GELU: return "($T)0.5 * $a * (($T)1 + erf$W($a * ($T)0.70710678118654752440))";
    case EIN_OP_FLOOR: return "floor$W($a)";
    case EIN_OP_CEIL: return "ceil$W($a)";
    case EIN_OP_ROUND: return "rint$W($a)";
    case EIN_OP_COMPLEX: return "ein_$Z($a, $b)";
    default: return NULL;
  }
}

// Of c64 and c128, in double: $A and $B are $a and $b widened, $L( .. ) brings the result back.
static const char *eini_cuda_complex_op(int op) {
  switch (op) {
    case EIN_OP_NEG: return "$L(ein_z(-$A.re, -$A.im))";
    case EIN_OP_ADD: return "$L(ein_z($A.re + $B.re, $A.im + $B.im))";
    case EIN_OP_SUB: return "$L(ein_z($A.re - $B.re, $A.im - $B.im))";
    case EIN_OP_MUL: return "$L(ein_cmul($A, $B))";
    case EIN_OP_SQUARE: return "$L(ein_cmul($A, $A))";
    case EIN_OP_DIV: return "$L(ein_cdiv($A, $B))";
    case EIN_OP_CONJ: return "$L(ein_z($A.re, -$A.im))";
    case EIN_OP_EXP: return "$L(ein_cexp($A))";
    case EIN_OP_LOG: return "$L(ein_clog($A))";
    case EIN_OP_SQRT: return "$L(ein_csqrt($A))";
    case EIN_OP_SIGN: return "$L(ein_csign($A))";
    case EIN_OP_ABS: return "hypot($A.re, $A.im)";
    case EIN_OP_REAL: return "$a.re";
    case EIN_OP_IMAG: return "$a.im";
    case EIN_OP_EQ: return "(ein_bool)(($a.re == $b.re) & ($a.im == $b.im))";
    case EIN_OP_NE: return "(ein_bool)(($a.re != $b.re) | ($a.im != $b.im))";
    default: return NULL;
  }
}

// A pattern over names of arguments, of type `from`.
static void eini_cuda_say_pattern(eini_text *t, const char *pattern, ein_dtype from,
                                  char name[3][16]) {
  const int wide = from == EIN_F64 || from == EIN_C128, z = from == EIN_C64;
  for (const char *at = pattern; *at != 0; at++) {
    if (*at != '$') {
      eini_say(t, "%c", *at);
      continue;
    }
    switch (*++at) {
      case 'a': case 'b': case 'c': eini_say(t, "%s", name[*at - 'a']); break;
      case 'A': case 'B': eini_say(t, z ? "ein_wide(%s)" : "%s", name[*at - 'A']); break;
      case 'T': eini_say(t, "%s", eini_cuda_type(from)); break;
      case 'U': eini_say(t, from == EIN_I32 ? "unsigned" : "unsigned long long"); break;
      case 'L': eini_say(t, z ? "ein_less" : ""); break;
      case 'Z': eini_say(t, wide ? "z" : "c"); break;
      default: eini_say(t, wide ? "" : "f"); break;
    }
  }
}

static void eini_cuda_say_round(eini_text *t, const ein_step *s, const char *x) {
  const ein_dtype to = (ein_dtype)s->round;
  const int half = to == EIN_F16 || to == EIN_BF16;
  eini_say(t, to == EIN_F16 ? "ein_f16_load(" : half ? "ein_bf16_load(" : "(int)(");
  eini_cuda_say_narrow(t, (ein_dtype)s->from, to, x);
  eini_say(t, ")");
}

// What a step is; 0: it is not said.
static int eini_cuda_say_step(eini_text *t, const ein_step *s, char name[3][16]) {
  const ein_dtype from = (ein_dtype)s->from;
  const char *pattern = NULL;
  if (s->op == EIN_OP_CAST) {
    eini_cuda_say_cast(t, from, (ein_dtype)s->type, name[0]);
  } else if (s->op == EIN_OP_ROUNDTO) {
    eini_cuda_say_round(t, s, name[0]);
  } else if (s->op == EIN_OP_WHERE) {
    eini_say(t, "%s ? %s : %s", name[0], name[1], name[2]);
  } else {
    if (eini_cuda_complex(from)) pattern = eini_cuda_complex_op(s->op);
    else if (eini_cuda_order(s->op) != NULL) pattern = eini_cuda_order(s->op);
    else if (from != EIN_BOOL) pattern = eini_cuda_arith(s->op, !eini_cuda_real(from));
    if (pattern == NULL && eini_cuda_real(from)) pattern = eini_cuda_function(s->op);
    if (pattern == NULL) return 0;
    eini_cuda_say_pattern(t, pattern, from, name);
  }
  return 1;
}

// Which streams an expression reads: operand 0 is `zero` where it has a name; others are streams
// from `first` on, index values those from `values` on.
typedef struct eini_cuda_reads {
  const char *zero;
  int first, values;
} eini_cuda_reads;

// The statements of an expression, and in `result` the name of its value. tag: in front of names.
// Operand stream s was read as r<s>, the value of an index is i<s>.
static void eini_cuda_say_code(eini_cuda_writer *w, const ein_code *c, const eini_cuda_reads *r,
                               char tag, char result[16]) {
  eini_text *t = &w->t;
  int now[EINI_CUDA_REGS];
  char name[3][16], raw[16];
  if (c->nreg > EINI_CUDA_REGS || c->nstep + c->nfill > EINI_CUDA_REGS) w->bad = 1;
  if (w->bad) return;
  for (int i = 0; i < c->nreg; i++) now[i] = 0;
  for (int i = 0; i < c->nfill; i++) {
    now[c->fill[i].reg] = i;
    eini_say(t, "  const %s %c%d = ", eini_cuda_type((ein_dtype)c->fill[i].type), tag, i);
    eini_cuda_say_fill(w, &c->fill[i]);
    eini_say(t, ";\n");
  }
  for (int i = 0; i < c->nstep; i++) {
    const ein_step *s = &c->step[i];
    const int load = s->op == EIN_OP_OPERAND || s->op == EIN_OP_INDEX;
    if (s->op == EIN_OP_CALL) w->bad = 1;
    if (w->bad) return;
    if (!load) {
      snprintf(name[0], sizeof name[0], "%c%d", tag, now[s->a]);
      snprintf(name[1], sizeof name[1], "%c%d", tag, now[s->b]);
      snprintf(name[2], sizeof name[2], "%c%d", tag, now[s->c]);
    }
    now[s->dst] = c->nfill + i;
    eini_say(t, "  const %s %c%d = ", eini_cuda_type((ein_dtype)s->type), tag, c->nfill + i);
    if (s->op == EIN_OP_INDEX) {
      eini_say(t, "i%d", r->values + s->a);
    } else if (s->op == EIN_OP_OPERAND && s->a == 0 && r->zero != NULL) {
      eini_say(t, "%s", r->zero);
    } else if (load) {
      snprintf(raw, sizeof raw, "r%d", r->first + s->a);
      eini_cuda_say_wide(t, (ein_dtype)s->from, raw);
    } else if (!eini_cuda_say_step(t, s, name)) {
      w->bad = 1;
    }
    eini_say(t, ";\n");
  }
  snprintf(result, 16, "%c%d", tag, now[c->result]);
}
