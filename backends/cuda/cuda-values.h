// ================================================================================================
// >>cuda-values  arguments, loops, values and folds as source
// Takes a nest; gives the pieces of which kernels are made. Loop i is j<i>, an operand's element
// r<stream>, an index's value i<stream>; all arguments are words of 8 bytes in one struct.
// ================================================================================================

// Numbers beside a nest's own, by their places in ein_args.z.
enum { EINI_CUDA_FREE, EINI_CUDA_REDUCED, EINI_CUDA_SPLIT, EINI_CUDA_SPLITS, EINI_CUDA_NUMBERS };

static int eini_cuda_words_of_strides(const eini_cuda_nest *x) {
  int n = 0;
  for (int s = 0; s < x->nstream; s++)
    for (int i = 0; i < x->n; i++) n += x->form[s][i] == EINI_CUDA_ANY;
  return n;
}

static void eini_cuda_params_of(eini_cuda_writer *w, const ein_code *c) {
  for (int i = 0; c != NULL && i < c->nfill; i++) {
    int k = 0;
    if (c->fill[i].param < 0) continue;
    while (k < w->q && w->param[k] != c->fill[i].param) k++;
    if (k == EINI_CUDA_REGS) w->bad = 1;
    else if (k == w->q) w->param[w->q++] = c->fill[i].param;
  }
}

static int eini_cuda_words(const eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  return x->nstream + 1 + x->n + 1 + eini_cuda_words_of_strides(x) + 1 + x->nstream +
         EINI_CUDA_NUMBERS + 2 * w->q + 1;
}

// The nest of a writer, and the params that it reads.
static void eini_cuda_writer_of(eini_cuda_writer *w, const eini_cuda_nest *x) {
  w->x = x;
  w->q = 0;
  eini_cuda_params_of(w, x->code[0]);
  eini_cuda_params_of(w, x->code[1]);
  eini_cuda_params_of(w, x->store);
}

// What all kernels begin with.
static void eini_cuda_say_helpers(eini_cuda_writer *w) {
  for (size_t i = 0; i < sizeof eini_cuda_helpers / sizeof *eini_cuda_helpers; i++)
    eini_say(&w->t, "%s", eini_cuda_helpers[i]);
}

// The type of offsets, and arguments.
static void eini_cuda_say_args(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  eini_text *t = &w->t;
  eini_say(t, "typedef %s ix;\n", eini_cuda_narrow(x) ? "int" : "long long");
  eini_say(t, "typedef struct {\n  char *b[%d];\n  long long e[%d], s[%d], at[%d], z[%d];\n"
              "  double q[%d];\n} ein_args;\n", x->nstream + 1, x->n + 1,
           eini_cuda_words_of_strides(x) + 1, x->nstream, EINI_CUDA_NUMBERS, 2 * w->q + 1);
  if (eini_cuda_words(w) > EINI_CUDA_WORDS) w->bad = 1;
}

// The arguments of a launch, as ein_args has them; returns how many.
static int eini_cuda_arguments(const eini_cuda_writer *w, const int64_t z[EINI_CUDA_NUMBERS],
                               const void *part, uint64_t *word) {
  const eini_cuda_nest *x = w->x;
  int n = 0;
  memset(word, 0, (size_t)eini_cuda_words(w) * sizeof *word);
  for (int s = 0; s < x->nstream; s++) word[n++] = (uint64_t)(uintptr_t)x->base[s];
  word[n++] = (uint64_t)(uintptr_t)part;
  for (int i = 0; i < x->n; i++) word[n++] = (uint64_t)x->extent[i];
  n++;
  for (int s = 0; s < x->nstream; s++)
    for (int i = 0; i < x->n; i++)
      if (x->form[s][i] == EINI_CUDA_ANY) word[n++] = (uint64_t)x->used[s][i];
  n++;
  for (int s = 0; s < x->nstream; s++) word[n++] = (uint64_t)x->at[s];
  for (int i = 0; i < EINI_CUDA_NUMBERS; i++) word[n++] = (uint64_t)z[i];
  for (int k = 0; k < w->q; k++) {
    memcpy(&word[n++], &x->param[w->param[k]].re, 8);
    memcpy(&word[n++], &x->param[w->param[k]].im, 8);
  }
  memcpy(&word[n++], &x->count, 8);
  return n;
}

// Loops [from, to) as bits.
static unsigned eini_cuda_loops(int from, int to) {
  return from < to ? (1u << to) - (1u << from) : 0;
}

// Loops of a set of one number.
static void eini_cuda_say_split_in(eini_cuda_writer *w, const char *of, unsigned loops) {
  eini_text *t = &w->t;
  int first = 0, more;
  while (first < w->x->n && !(loops >> first & 1)) first++;
  if (first == w->x->n) return;
  more = (loops >> first) > 1;
  if (more) eini_say(t, "  ix d%d = %s;\n", first, of);
  for (int i = w->x->n - 1; i > first; i--) {
    if (!(loops >> i & 1)) continue;
    if (w->along == i + 1) eini_say(t, "  const ix j%d = d%d %% n; d%d /= n;\n", i, first, first);
    else eini_say(t, "  const ix j%d = d%d %% (ix)p.e[%d]; d%d /= (ix)p.e[%d];\n", i, first, i,
                  first, i);
  }
  if (more) eini_say(t, "  const ix j%d = d%d;\n", first, first);
  else eini_say(t, "  const ix j%d = %s;\n", first, of);
}

static void eini_cuda_say_split(eini_cuda_writer *w, const char *of, int from, int to) {
  eini_cuda_say_split_in(w, of, eini_cuda_loops(from, to));
}

// The offset of a stream by loops of a set.
static void eini_cuda_say_offset_in(eini_cuda_writer *w, int s, unsigned loops) {
  const eini_cuda_nest *x = w->x;
  int word = 0, said = 0;
  for (int k = 0; k <= s; k++) {
    for (int i = 0; i < x->n; i++) {
      const int any = x->form[k][i] == EINI_CUDA_ANY;
      if (k == s && (loops >> i & 1) && x->form[k][i] != EINI_CUDA_ZERO) {
        eini_say(&w->t, "%sj%d", said++ > 0 ? " + " : "", i);
        if (any) eini_say(&w->t, " * (ix)p.s[%d]", word);
      }
      word += any;
    }
  }
  if (said == 0) eini_say(&w->t, "0");
}

static void eini_cuda_say_offset(eini_cuda_writer *w, int s, int from, int to) {
  eini_cuda_say_offset_in(w, s, eini_cuda_loops(from, to));
}

// What 1 is as it is stored.
static const char *eini_cuda_one(ein_dtype t) {
  return t == EIN_F16 ? "0x3c00" : t == EIN_BF16 ? "0x3f80" : "1";
}

// Reads of the device's memory in groups are marked: EIN_READ.
static void eini_cuda_say_load(eini_cuda_writer *w, int s, int from, int to) {
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  const int own = w->staged && w->own != NULL ? w->own[s] : 0;
  if (w->x->value[s]) {
    eini_say(&w->t, w->staged ? "  const long long i%d = at%d + ("
                              : "  const long long i%d = p.at[%d] + (", s, s);
    eini_cuda_say_offset(w, s, from, to);
    eini_say(&w->t, ");\n");
    return;
  }
  if (own == 2) {
    eini_say(&w->t, "  const %s r%d = %s;\n", type, s, eini_cuda_one((ein_dtype)w->x->dtype[s]));
    return;
  }
  eini_say(&w->t, !w->staged ? "  const %s r%d = ((const %s *)p.b[%d])["
                  : own      ? "  const %s r%d = ((const %s *)b%d)["
                             : "  const %s r%d = EIN_READ((const %s *)b%d)[", type, s, type, s);
  eini_cuda_say_offset(w, s, from, to);
  eini_say(&w->t, "];\n");
}

// All that a value reads, at loops [0, n). but: streams that were read before.
static void eini_cuda_say_loads(eini_cuda_writer *w, const unsigned char *but) {
  for (int s = 0; s < w->x->extra; s++)
    if (but == NULL || !but[s]) eini_cuda_say_load(w, s, 0, w->x->n);
}

// ---- values ----

// ein_join: what is folded, made of a value of P and one of Q.
static void eini_cuda_say_join(eini_cuda_writer *w) {
  const ein_dtype type = w->x->type;
  const char *d = eini_cuda_real(type) ? "x - y" : "(ein_t)((ein_u)x - (ein_u)y)";
  const char *mul = eini_cuda_real(type) ? "x * y" : "(ein_t)((ein_u)x * (ein_u)y)";
  eini_text *t = &w->t;
  if (type == EIN_I32 || type == EIN_I64)
    eini_say(t, "typedef unsigned %s ein_u;\n", eini_cuda_type(type));
  eini_say(t, "EIN_DEVICE ein_t ein_join(ein_t x, ein_t y) {\n");
  if (eini_cuda_complex(type)) {
    eini_say(t, "  ein_t z; z.re = x.re * y.re - x.im * y.im;\n"
                "  z.im = x.re * y.im + x.im * y.re; return z;\n}\n");
    return;
  }
  switch (w->x->pair) {
    case EIN_PAIR_SUM_MUL: eini_say(t, "  return %s;\n}\n", mul); break;
    case EIN_PAIR_ANY_AND: eini_say(t, "  return x & y;\n}\n"); break;
    case EIN_PAIR_MIN_ADD: case EIN_PAIR_MAX_ADD:
      eini_say(t, eini_cuda_real(type) ? "  return x + y;\n}\n"
                                       : "  return (ein_t)((ein_u)x + (ein_u)y);\n}\n");
      break;
    default:
      eini_say(t, "  ein_t d = %s;\n", d);
      if (w->x->pair == EIN_PAIR_SUM_SQDIFF)
        eini_say(t, eini_cuda_real(type) ? "  return d * d;\n}\n"
                                         : "  return (ein_t)((ein_u)d * (ein_u)d);\n}\n");
      else if (eini_cuda_real(type)) eini_say(t, "  return d < 0 ? -d : d;\n}\n");
      else eini_say(t, "  return d < 0 ? (ein_t)(0 - (ein_u)d) : d;\n}\n");
      break;
  }
}

// Statements of the value at hand; its name goes to `name`.
static void eini_cuda_say_value(eini_cuda_writer *w, char name[16]) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_reads p = {NULL, 0, x->nop}, q = {NULL, x->second, x->nop};
  char left[16] = "", right[16] = "";
  if (x->kind == EINI_CUDA_COPY || x->kind == EINI_CUDA_PARTS) {
    snprintf(name, 16, "r0");
  } else if (x->kind == EINI_CUDA_MAP) {
    eini_cuda_say_code(w, x->code[0], &p, 'v', name);
  } else {
    eini_cuda_say_code(w, x->code[0], &p, 'v', left);
    eini_cuda_say_code(w, x->code[1], &q, 'u', right);
    eini_say(&w->t, "  const ein_t w0 = ein_join(%s, %s);\n", left, right);
    snprintf(name, 16, "w0");
  }
}

// Stores the value `name` where loops of the output are.
static void eini_cuda_say_store(eini_cuda_writer *w, const char *name) {
  const eini_cuda_nest *x = w->x;
  const ein_dtype to = (ein_dtype)x->dtype[x->out];
  ein_dtype from = x->result;
  char made[16];
  eini_text *t = &w->t;
  snprintf(made, sizeof made, "%s", name);
  if (x->store != NULL) {
    const eini_cuda_reads r = {name, x->extra - 1, x->extra_value};
    for (int s = x->extra; s < x->out; s++) eini_cuda_say_load(w, s, 0, x->nfree);
    eini_cuda_say_code(w, x->store, &r, 's', made);
    from = (ein_dtype)x->store->type;
  }
  eini_say(t, !w->staged ? "  ((%s *)p.b[%d])["
              : w->own != NULL && w->own[x->out] ? "  ((%s *)b%d)[" : "  EIN_WRITE((%s *)b%d)[",
           eini_cuda_stored(to), x->out);
  eini_cuda_say_offset(w, x->out, 0, x->nfree);
  eini_say(t, "] = ");
  if (x->kind == EINI_CUDA_COPY) eini_say(t, "%s", made);
  else eini_cuda_say_narrow(t, from, to, made);
  eini_say(t, ";\n");
}

// ---- folds ----

static const char *eini_cuda_least(ein_dtype t, int most) {
  switch (t) {
    case EIN_BOOL: return most ? "1" : "0";
    case EIN_I32: return most ? "0x7fffffff" : "(int)0x80000000u";
    case EIN_I64: return most ? "0x7fffffffffffffffll" : "(long long)0x8000000000000000ull";
    case EIN_F32: return most ? "ein_f32(0x7f800000u)" : "ein_f32(0xff800000u)";
    default: return most ? "ein_f64(0x7ff0000000000000ull)" : "ein_f64(0xfff0000000000000ull)";
  }
}

// Folds of one scalar: what nothing is, and how two become one.
static void eini_cuda_say_simple(eini_cuda_writer *w) {
  const ein_dtype type = w->x->type;
  const int z = eini_cuda_complex(type), integer = type == EIN_I32 || type == EIN_I64;
  const char *none = "0", *merge = "a.v | b.v";
  switch (w->x->fold) {
    case EIN_FOLD_SUM: case EIN_FOLD_MEAN:
      merge = integer ? "(ein_t)((ein_w)a.v + (ein_w)b.v)" : "a.v + b.v";
      break;
    case EIN_FOLD_PROD:
      none = "1";
      merge = integer ? "(ein_t)((ein_w)a.v * (ein_w)b.v)" : "a.v * b.v";
      break;
    case EIN_FOLD_MAX: case EIN_FOLD_MIN:
      none = eini_cuda_least(type, w->x->fold == EIN_FOLD_MIN);
      merge = w->x->fold == EIN_FOLD_MAX ? "(a.v > b.v) | (a.v != a.v) ? a.v : b.v"
                                         : "(a.v < b.v) | (a.v != a.v) ? a.v : b.v";
      break;
    case EIN_FOLD_ALL: none = "1", merge = "a.v & b.v"; break;
    default: break;
  }
  eini_say(&w->t, "typedef struct { ein_t v; } ein_state;\n");
  if (integer) eini_say(&w->t, "typedef unsigned %s ein_w;\n", eini_cuda_type(type));
  eini_say(&w->t, "EIN_DEVICE ein_state ein_none(void) {\n  ein_state a; a.v%s = %s; %s"
                  "return a;\n}\n", z ? ".re" : "", none, z ? "a.v.im = 0; " : "");
  eini_say(&w->t, "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
                  "  ein_state a; a.v = x; return a;\n}\n"
                  "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n");
  if (!z) eini_say(&w->t, "  a.v = %s; return a;\n}\n", merge);
  else if (w->x->fold == EIN_FOLD_PROD)
    eini_say(&w->t, "  ein_t x = a.v; a.v.re = x.re * b.v.re - x.im * b.v.im;\n"
                    "  a.v.im = x.re * b.v.im + x.im * b.v.re; return a;\n}\n");
  else eini_say(&w->t, "  a.v.re += b.v.re; a.v.im += b.v.im; return a;\n}\n");
  eini_say(&w->t, "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n");
  if (w->x->fold != EIN_FOLD_MEAN) eini_say(&w->t, "  return a.v;\n}\n");
  else if (!z) eini_say(&w->t, "  return (ein_t)(a.v / count);\n}\n");
  else eini_say(&w->t, "  a.v.re /= count; a.v.im /= count; return a.v;\n}\n");
}

// argmax, argmin; least positions win ties, NaN is beyond all numbers.
static void eini_cuda_say_arg(eini_cuda_writer *w) {
  eini_say(&w->t,
           "typedef struct { ein_t v; long long p; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) { ein_state a; a.v = 0; a.p = -1; return a; }\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
           "  ein_state a; a.v = x; a.p = at; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  int an = a.v != a.v, bn = b.v != b.v, better = b.v %s a.v;\n"
           "  int equal = (an & bn) | (b.v == a.v);\n"
           "  better = (better | bn) & !an;\n"
           "  if (b.p >= 0 && (a.p < 0 || (equal ? b.p < a.p : better))) a = b;\n"
           "  return a;\n}\n"
           "EIN_DEVICE long long ein_finish(ein_state a, double count) { return a.p; }\n",
           w->x->fold == EIN_FOLD_ARGMAX ? ">" : "<");
}

static void eini_cuda_say_logsumexp(eini_cuda_writer *w) {
  const char *f = w->x->type == EIN_F32 ? "f" : "";
  eini_say(&w->t,
           "typedef struct { ein_t m, s; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) {\n  ein_state a; a.m = %s; a.s = 0; return a;\n}\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n  ein_state a; a.m = x;\n"
           "  a.s = x - x == 0 ? 1 : x > 0 ? x : x < 0 ? 0 : x; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  ein_t top = (a.m > b.m) | (a.m != a.m) ? a.m : b.m;\n"
           "  ein_t shift = top - top == 0 ? top : 0;\n"
           "  a.s = a.s * exp%s(a.m - shift) + b.s * exp%s(b.m - shift);\n"
           "  a.m = top; return a;\n}\n"
           "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n"
           "  ein_t s = log%s(a.s); return a.m - a.m == 0 ? a.m + s : a.m != a.m ? a.m : s;\n}\n",
           eini_cuda_least(w->x->type, 0), f, f, f);
}

static void eini_cuda_say_var(eini_cuda_writer *w) {
  eini_say(&w->t,
           "typedef struct { ein_t c, m, q; } ein_state;\n"
           "EIN_DEVICE ein_state ein_none(void) {\n"
           "  ein_state a; a.c = 0; a.m = 0; a.q = 0; return a;\n}\n"
           "EIN_DEVICE ein_state ein_lift(ein_t x, long long at) {\n"
           "  ein_state a; a.c = 1; a.m = x; a.q = x - x; return a;\n}\n"
           "EIN_DEVICE ein_state ein_merge(ein_state a, ein_state b) {\n"
           "  ein_t n = a.c + b.c, r = n > 0 ? b.c / n : 0, d = b.m - a.m;\n"
           "  a.q += b.q + (a.c > 0 ? d * d * a.c * r : 0);\n"
           "  a.m = a.c > 0 ? a.m + d * r : b.m;\n"
           "  a.c = n; return a;\n}\n"
           "EIN_DEVICE ein_t ein_finish(ein_state a, double count) {\n"
           "  return (ein_t)(a.q / count);\n}\n");
}

// ein_t and the fold's functions; 0: a fold that is not said.
static int eini_cuda_say_fold(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  if (x->fold == EIN_FOLD_USER) return 0;
  if (x->kind != EINI_CUDA_COPY) eini_say(&w->t, "typedef %s ein_t;\n", eini_cuda_type(x->type));
  if (x->kind == EINI_CUDA_CONTRACT) eini_cuda_say_join(w);
  if (x->fold == EIN_FOLD_NONE) return 1;
  if (x->fold == EIN_FOLD_ARGMAX || x->fold == EIN_FOLD_ARGMIN) eini_cuda_say_arg(w);
  else if (x->fold == EIN_FOLD_LOGSUMEXP) eini_cuda_say_logsumexp(w);
  else if (x->fold == EIN_FOLD_VAR) eini_cuda_say_var(w);
  else eini_cuda_say_simple(w);
  return 1;
}
