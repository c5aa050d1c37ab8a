// ================================================================================================
// >>dtype  sizes, names, promotion, conversion
// Takes storage dtypes; gives the dtype kernels compute in. f16/bf16 compute in f32, i8/i16/u8 in
// i32; bool is one byte, 0 or 1.
// ================================================================================================

typedef enum eini_kind { EINI_KBOOL, EINI_KUINT, EINI_KINT, EINI_KREAL, EINI_KCOMPLEX } eini_kind;

typedef struct eini_dtype_row {
  const char *name;
  unsigned char size, kind, compute;
} eini_dtype_row;

static const eini_dtype_row eini_dtypes[EIN_DTYPE_COUNT] = {
    {"none", 0, EINI_KBOOL, EIN_NONE},  {"bool", 1, EINI_KBOOL, EIN_BOOL},
    {"u8", 1, EINI_KUINT, EIN_I32},     {"i8", 1, EINI_KINT, EIN_I32},
    {"i16", 2, EINI_KINT, EIN_I32},     {"i32", 4, EINI_KINT, EIN_I32},
    {"i64", 8, EINI_KINT, EIN_I64},     {"f16", 2, EINI_KREAL, EIN_F32},
    {"bf16", 2, EINI_KREAL, EIN_F32},   {"f32", 4, EINI_KREAL, EIN_F32},
    {"f64", 8, EINI_KREAL, EIN_F64},    {"c64", 8, EINI_KCOMPLEX, EIN_C64},
    {"c128", 16, EINI_KCOMPLEX, EIN_C128}};

static int eini_dtype_ok(ein_dtype t) { return (int)t > EIN_NONE && t < EIN_DTYPE_COUNT; }
static int eini_kind_of(ein_dtype t) { return eini_dtypes[t].kind; }

EIN_API size_t ein_dtype_size(ein_dtype t) { return eini_dtype_ok(t) ? eini_dtypes[t].size : 0; }
EIN_API const char *ein_dtype_name(ein_dtype t) {
  return eini_dtypes[eini_dtype_ok(t) ? (int)t : 0].name;
}
EIN_API ein_dtype ein_dtype_compute(ein_dtype t) {
  return (ein_dtype)eini_dtypes[eini_dtype_ok(t) ? (int)t : 0].compute;
}

EIN_API ein_dtype ein_dtype_find(const char *name) {
  if (name == NULL) return EIN_NONE;
  for (int t = 1; t < EIN_DTYPE_COUNT; t++)
    if (strcmp(eini_dtypes[t].name, name) == 0) return (ein_dtype)t;
  return EIN_NONE;
}

// The smallest real float that holds every value of an integer dtype, as NumPy decides it.
static ein_dtype eini_float_for(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: case EIN_U8: case EIN_I8: return EIN_F16;
    case EIN_I16: return EIN_F32;
    case EIN_I32: case EIN_I64: return EIN_F64;
    default: return t;
  }
}

EIN_API ein_dtype ein_dtype_promote(ein_dtype a, ein_dtype b) {
  if (!eini_dtype_ok(a)) return b;
  if (!eini_dtype_ok(b) || a == b) return a;
  if (a > b) {
    ein_dtype t = a;
    a = b;
    b = t;
  }
  if (a == EIN_BOOL) return b;
  int kb = eini_kind_of(b);
  if (kb == EINI_KINT) return a == EIN_U8 && b == EIN_I8 ? EIN_I16 : b;
  if (kb == EINI_KREAL) {
    ein_dtype a0 = a;
    if (eini_kind_of(a) < EINI_KREAL) a = eini_float_for(a);
    // bf16 is not NumPy's: with 8-bit integers it stays, with f16 neither holds the other.
    if (b == EIN_BF16) return a0 == EIN_F16 || a == EIN_F32 ? EIN_F32 : a == EIN_F64 ? EIN_F64 : b;
    return a > b ? a : b;
  }
  if (eini_kind_of(a) == EINI_KCOMPLEX) return b;
  return eini_float_for(a) == EIN_F64 ? EIN_C128 : b;
}

// NumPy's 'same_kind': a safe cast, or one within the kind (bool < integer < real < complex).
EIN_API int ein_dtype_same_kind(ein_dtype from, ein_dtype to) {
  if (!eini_dtype_ok(from) || !eini_dtype_ok(to)) return 0;
  if (from == to) return 1;
  int kf = eini_kind_of(from), kt = eini_kind_of(to);
  if (kt == EINI_KUINT && kf == EINI_KINT) return 0;
  return kf <= kt;
}

static float eini_f32_from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static uint32_t eini_f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static float eini_f16_load(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, m = h & 0x7fffu;
  // Shifting the exponent into place and scaling by 2^112 also normalises subnormals.
  float scaled = eini_f32_from_bits(m << 13) * 5.192296858534828e33f;
  uint32_t bits = m >= 0x7c00u ? (m << 13) | 0x7f800000u : eini_f32_bits(scaled);
  return eini_f32_from_bits(bits | sign);
}

// Round to nearest, ties to even.
static inline uint16_t eini_f16_store(float f) {
  uint32_t u = eini_f32_bits(f), sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  // No branches, for loops. Below 2^-14 adding 0.5 aligns the subnormal's last bit; 65520 and above
  // round to infinity.
  const float low = eini_f32_from_bits(u < 0x38800000u ? u : 0) + 0.5f;
  uint32_t r = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13;
  r = u < 0x38800000u ? eini_f32_bits(low) - 0x3f000000u : r;
  r = u >= 0x477ff000u ? 0x7c00u : r;
  r = u > 0x7f800000u ? 0x7e00u | ((u >> 13) & 0x3ffu) : r;
  return (uint16_t)(r | sign);
}

// What a value is converted to before it is rounded to t: f16 and bf16 take numbers as they are,
// which would be rounded twice by f32.
static ein_dtype eini_round_from(ein_dtype from, ein_dtype t) {
  const int kind = eini_kind_of(from), half = t == EIN_F16 || t == EIN_BF16;
  return half && kind > EINI_KBOOL && kind < EINI_KCOMPLEX ? from : t;
}

// f64 on the way to f16 and bf16: the f32 step keeps a sticky bit (round to odd).
static float eini_round_odd(double d) {
  const float f = (float)d;
  const uint32_t inexact = (uint32_t)((double)f != d) & (uint32_t)(f - f == 0.0f);
  const uint32_t above = (uint32_t)(fabs((double)f) > fabs(d));  // no branch in loops
  return eini_f32_from_bits((eini_f32_bits(f) - (inexact & above)) | inexact);
}

// i64 on the same way: what f64 could not hold becomes a sticky bit.
static double eini_i64_odd(int64_t x) {
  const int64_t most = (int64_t)1 << 53, low = x & 2047;
  return (double)(x <= most && x >= -most ? x : x - low + (low != 0 ? 1024 : 0));
}

static float eini_bf16_load(uint16_t h) { return eini_f32_from_bits((uint32_t)h << 16); }

static uint16_t eini_bf16_store(float f) {
  const uint32_t u = eini_f32_bits(f), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : r);
}

// Float to integer without undefined behaviour: NaN gives 0, out of range saturates.
static int64_t eini_f64_to_i64(double x) {
  if (!(x > -9223372036854775808.0)) return x != x ? 0 : INT64_MIN;
  return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}

// Can a dtype hold a value: an integer exactly, a real one without becoming infinite?
static int eini_dtype_holds(ein_dtype t, double x) {
  int kind = eini_kind_of(t), bits = 8 * (int)ein_dtype_size(t);
  if (kind == EINI_KBOOL) return x == 0 || x == 1;
  if (kind <= EINI_KINT) {
    double most = ldexp(1, kind == EINI_KUINT ? bits : bits - 1);
    return x < most && x >= (kind == EINI_KUINT ? 0 : -most) && floor(x) == x;
  }
  double most = t == EIN_F16 ? 65520.0 : t == EIN_BF16 ? ldexp(511, 119) :
                t == EIN_F32 || t == EIN_C64 ? ldexp(33554431, 103) : INFINITY;
  return !(fabs(x) >= most) || x - x != 0;
}
