// ================================================================================================
// >>cuda-helpers  the text in front of every kernel
// C and CUDA at once: with EIN_HOST what runs blocks and threads is brought along, as the tests do.
// The functions are those of the portable kernels, with the same special values.
// ================================================================================================

static const char *const eini_cuda_helpers[] = {
    "#ifndef EIN_HOST\n"
    "#define EIN_KERNEL extern \"C\" __global__ void __launch_bounds__(256)\n"
    "#define EIN_DEVICE static __device__ __forceinline__\n"
    "#define EIN_SHARED __shared__\n"
    "#define EIN_SYNC __syncthreads()\n"
    "#define EIN_TID ((int)threadIdx.x)\n"
    "#define EIN_BID blockIdx.x\n"
    "#define EIN_BLOCKS gridDim.x\n"
    "#define EIN_ROOM extern __shared__ __align__(16) char ein_room[]\n"
    "#define EIN_ARGS(type) const type &\n"
    "#define EIN_READ(at) (at)\n#define EIN_WRITE(at) (at)\n"
    "#endif\n"
    "typedef unsigned char ein_bool;\n"
    "typedef struct { float re, im; } ein_c64;\n"
    "typedef struct { double re, im; } ein_c128;\n",
    "EIN_DEVICE float ein_f32(unsigned u) {\n"
    "  union { unsigned u; float f; } x; x.u = u; return x.f;\n}\n"
    "EIN_DEVICE unsigned ein_bits(float f) {\n"
    "  union { unsigned u; float f; } x; x.f = f; return x.u;\n}\n"
    "EIN_DEVICE double ein_f64(unsigned long long u) {\n"
    "  union { unsigned long long u; double f; } x; x.u = u; return x.f;\n}\n"
    "EIN_DEVICE ein_c128 ein_z(double re, double im) {\n"
    "  ein_c128 z; z.re = re; z.im = im; return z;\n}\n"
    "EIN_DEVICE ein_c64 ein_c(float re, float im) {\n"
    "  ein_c64 z; z.re = re; z.im = im; return z;\n}\n"
    "EIN_DEVICE ein_c128 ein_wide(ein_c64 x) { return ein_z(x.re, x.im); }\n"
    "EIN_DEVICE ein_c64 ein_less(ein_c128 x) { return ein_c((float)x.re, (float)x.im); }\n",
    "EIN_DEVICE float ein_f16_load(unsigned short h) {\n"
    "  unsigned sign = (unsigned)(h & 0x8000u) << 16, m = h & 0x7fffu;\n"
    "  float scaled = ein_f32(m << 13) * 5.192296858534828e33f;\n"
    "  return ein_f32((m >= 0x7c00u ? (m << 13) | 0x7f800000u : ein_bits(scaled)) | sign);\n}\n"
    "EIN_DEVICE unsigned short ein_f16_store(float f) {\n"
    "  unsigned u = ein_bits(f), sign = (u >> 16) & 0x8000u, r;\n"
    "  u &= 0x7fffffffu;\n"
    "  if (u > 0x7f800000u) r = 0x7e00u | ((u >> 13) & 0x3ffu);\n"
    "  else if (u >= 0x477ff000u) r = 0x7c00u;\n"
    "  else if (u < 0x38800000u) r = ein_bits(ein_f32(u) + 0.5f) - 0x3f000000u;\n"
    "  else r = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13;\n"
    "  return (unsigned short)(r | sign);\n}\n"
    "EIN_DEVICE float ein_bf16_load(unsigned short h) { return ein_f32((unsigned)h << 16); }\n"
    "EIN_DEVICE unsigned short ein_bf16_store(float f) {\n"
    "  unsigned u = ein_bits(f);\n"
    "  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((u >> 16) | 0x40u);\n"
    "  return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);\n}\n",
    "EIN_DEVICE float ein_odd(double d) {\n"
    "  float f = (float)d;\n"
    "  unsigned inexact = (unsigned)((double)f != d) & (unsigned)(f - f == 0.0f);\n"
    "  unsigned above = (unsigned)(fabs((double)f) > fabs(d));\n"
    "  return ein_f32((ein_bits(f) - (inexact & above)) | inexact);\n}\n"
    "EIN_DEVICE double ein_i64_odd(long long x) {\n"
    "  long long most = 1ll << 53, low = x & 2047;\n"
    "  return (double)(x <= most && x >= -most ? x : x - low + (low != 0 ? 1024 : 0));\n}\n"
    "EIN_DEVICE long long ein_int(double x) {\n"
    "  if (!(x > -9223372036854775808.0))\n"
    "    return x != x ? 0 : (long long)0x8000000000000000ull;\n"
    "  return x >= 9223372036854775808.0 ? 0x7fffffffffffffffll : (long long)x;\n}\n",
    "EIN_DEVICE long long ein_idiv(long long x, long long y) {\n"
    "  if (y == 0) return 0;\n"
    "  if (y == -1) return (long long)(0ull - (unsigned long long)x);\n"
    "  long long q = x / y;\n"
    "  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;\n}\n"
    "EIN_DEVICE long long ein_imod(long long x, long long y) {\n"
    "  if (y == 0 || y == -1) return 0;\n"
    "  long long r = x % y;\n"
    "  return r != 0 && (r < 0) != (y < 0) ? r + y : r;\n}\n"
    "EIN_DEVICE double ein_fmod(double x, double y) {\n"
    "  double r = fmod(x, y);\n"
    "  if (r != 0.0) return (r < 0.0) != (y < 0.0) ? r + y : r;\n"
    "  return y == y && x == x && y != 0.0 ? copysign(0.0, y) : r;\n}\n"
    "EIN_DEVICE double ein_fdiv(double x, double y) {\n"
    "  if (y == 0.0) return x / y;\n"
    "  double r = fmod(x, y), q = (x - r) / y;\n"
    "  if (r != 0.0 && (r < 0.0) != (y < 0.0)) q -= 1.0;\n"
    "  if (q == 0.0) return copysign(0.0, x / y);\n"
    "  double f = floor(q);\n"
    "  return q - f > 0.5 ? f + 1.0 : f;\n}\n",
    "EIN_DEVICE ein_c128 ein_cmul(ein_c128 x, ein_c128 y) {\n"
    "  return ein_z(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);\n}\n"
    "EIN_DEVICE ein_c128 ein_cdiv(ein_c128 x, ein_c128 y) {\n"
    "  if (fabs(y.re) >= fabs(y.im)) {\n"
    "    if (y.re == 0.0 && y.im == 0.0) return ein_z(x.re / y.re, x.im / y.re);\n"
    "    double r = y.im / y.re, d = y.re + y.im * r;\n"
    "    return ein_z((x.re + x.im * r) / d, (x.im - x.re * r) / d);\n  }\n"
    "  double r = y.re / y.im, d = y.re * r + y.im;\n"
    "  return ein_z((x.re * r + x.im) / d, (x.im * r - x.re) / d);\n}\n"
    "EIN_DEVICE ein_c128 ein_cexp(ein_c128 x) {\n"
    "  double e = exp(x.re);\n"
    "  if (x.im == 0.0) return ein_z(e, x.im);\n"
    "  if (e == 0.0) return ein_z(0.0, 0.0);\n"
    "  return ein_z(e * cos(x.im), e * sin(x.im));\n}\n"
    "EIN_DEVICE ein_c128 ein_clog(ein_c128 x) {\n"
    "  return ein_z(log(hypot(x.re, x.im)), atan2(x.im, x.re));\n}\n"
    "EIN_DEVICE ein_c128 ein_csqrt(ein_c128 x) {\n"
    "  if (x.re == 0.0 && x.im == 0.0) return ein_z(0.0, x.im);\n"
    "  double t = sqrt(0.5 * (hypot(x.re, x.im) + fabs(x.re)));\n"
    "  return x.re >= 0.0 ? ein_z(t, x.im / (2.0 * t))\n"
    "                     : ein_z(fabs(x.im) / (2.0 * t), copysign(t, x.im));\n}\n"
    "EIN_DEVICE ein_c128 ein_csign(ein_c128 x) {\n"
    "  double m = hypot(x.re, x.im);\n"
    "  return m == 0.0 ? ein_z(0.0, 0.0) : ein_z(x.re / m, x.im / m);\n}\n"};

// The types of values: of computation, and as they are stored.
static const char *eini_cuda_type(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: return "ein_bool";
    case EIN_I32: return "int";
    case EIN_I64: return "long long";
    case EIN_F32: return "float";
    case EIN_F64: return "double";
    case EIN_C64: return "ein_c64";
    default: return "ein_c128";
  }
}
static const char *eini_cuda_stored(ein_dtype t) {
  switch (t) {
    case EIN_U8: return "unsigned char";
    case EIN_I8: return "signed char";
    case EIN_I16: return "short";
    case EIN_F16: case EIN_BF16: return "unsigned short";
    default: return eini_cuda_type(t);
  }
}

static int eini_cuda_complex(ein_dtype t) { return t == EIN_C64 || t == EIN_C128; }
static int eini_cuda_real(ein_dtype t) { return t == EIN_F32 || t == EIN_F64; }

// What x, stored as t, is in its computation type.
static void eini_cuda_say_wide(eini_text *t, ein_dtype from, const char *x) {
  if (from == EIN_BOOL) eini_say(t, "(ein_bool)(%s != 0)", x);
  else if (from == EIN_F16) eini_say(t, "ein_f16_load(%s)", x);
  else if (from == EIN_BF16) eini_say(t, "ein_bf16_load(%s)", x);
  else if (from == EIN_U8 || from == EIN_I8 || from == EIN_I16) eini_say(t, "(int)%s", x);
  else eini_say(t, "%s", x);
}

// Between computation types; x is a name.
static void eini_cuda_say_cast(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  const char *part = eini_cuda_complex(from) ? ".re" : "";
  const int real = eini_cuda_complex(from) || eini_cuda_real(from);
  if (from == to) {
    eini_say(t, "%s", x);
  } else if (to == EIN_BOOL) {
    if (part[0]) eini_say(t, "(ein_bool)((%s.re != 0) | (%s.im != 0))", x, x);
    else eini_say(t, "(ein_bool)(%s != 0)", x);
  } else if (to == EIN_I32 || to == EIN_I64) {
    eini_say(t, real ? "(%s)ein_int((double)%s%s)" : "(%s)%s%s", eini_cuda_type(to), x, part);
  } else if (to == EIN_C64) {
    if (from == EIN_C128) eini_say(t, "ein_less(%s)", x);
    else eini_say(t, "ein_c((float)%s, 0)", x);
  } else if (to == EIN_C128) {
    if (from == EIN_C64) eini_say(t, "ein_wide(%s)", x);
    else eini_say(t, "ein_z((double)%s, 0)", x);
  } else {
    eini_say(t, "(%s)%s%s", eini_cuda_type(to), x, part);
  }
}

// x of computation type `from` as it is stored: rounded once, integers wrap. half: what is rounded
// to f16 or bf16 stays f32.
static void eini_cuda_say_half(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  eini_say(t, to == EIN_F16 ? "ein_f16_store(" : "ein_bf16_store(");
  if (from == EIN_I64) eini_say(t, "ein_odd(ein_i64_odd(%s))", x);
  else if (from == EIN_I32 || from == EIN_F64) eini_say(t, "ein_odd((double)%s)", x);
  else eini_cuda_say_cast(t, from, EIN_F32, x);
  eini_say(t, ")");
}
static void eini_cuda_say_narrow(eini_text *t, ein_dtype from, ein_dtype to, const char *x) {
  if (to == EIN_F16 || to == EIN_BF16) {
    eini_cuda_say_half(t, from, to, x);
  } else if (to == EIN_U8 || to == EIN_I8 || to == EIN_I16) {
    eini_say(t, "(%s)(", eini_cuda_stored(to));
    eini_cuda_say_cast(t, from, EIN_I32, x);
    eini_say(t, ")");
  } else {
    eini_cuda_say_cast(t, from, to, x);
  }
}
