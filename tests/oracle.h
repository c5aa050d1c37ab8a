// Brute-force evaluation of graphs, for tests only. Include it after einsum.h's implementation.
//
// Every statement is a loop over its whole index space; every element is evaluated node by node.
// Values are held in double (integers in int64), each float operation is rounded to its
// computation type, folds run in long double. Nothing is shared with the library's kernels; the
// conversions of storage dtypes are written again, from the formats' definitions.
//
// Next to each value goes a bound of the error a legal implementation may make: rounding, library
// functions of a few ulp, sums in another order. A bound of infinity means that the value is
// undetermined (a comparison or a floor() of an inexact value too close to its edge, overflow).
//
//   orc_eval(g, data, param)           evaluates all statements; data[t]: dense row-major buffers
//   orc_eval_err(g, data, err, param)  the same; err[t]: NULL or one bound per element
//   orc_compare(dtype, n, got, want, terms)       tolerance from eps, terms and magnitude
//   orc_compare_err(dtype, n, got, want, err)     tolerance from the bounds
//   orc_random_fill(dtype, n, buf, seed)          values that depend on (seed, position) only
//   orc_special_fill(dtype, n, buf, seed)         the same with NaN, infinities, zeros, subnormals
//
// A product's split may meet infinities and NaN in another order than one pass does (inf - inf
// against finite - inf), so that a fold of several operands in which they occur is undetermined.
// orc_one_pass = 1 says that nothing is split (path "none"): then they are determined.
#ifndef ORACLE_H
#define ORACLE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct orc_val {
  int64_t i;       // bool, i32, i64
  double re, im;   // f32, f64, c64, c128
  double err;      // bound of |error|; of integers: 0 or infinity
} orc_val;

static int orc_one_pass = 0;

static void orc_die(const char *what) {
  printf("oracle: %s\n", what);
  exit(2);
}

static void *orc_alloc(int64_t count, size_t size) {
  void *p = calloc(count < 1 ? 1 : (size_t)count, size);
  if (p == NULL) orc_die("out of memory");
  return p;
}

// ---- dtypes -------------------------------------------------------------------------------------

static int orc_is_complex(ein_dtype t) { return t == EIN_C64 || t == EIN_C128; }
static int orc_is_float(ein_dtype t) { return t >= EIN_F16; }

static size_t orc_size(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: case EIN_U8: case EIN_I8: return 1;
    case EIN_I16: case EIN_F16: case EIN_BF16: return 2;
    case EIN_I32: case EIN_F32: return 4;
    case EIN_I64: case EIN_F64: case EIN_C64: return 8;
    case EIN_C128: return 16;
    default: orc_die("no dtype"); return 0;
  }
}

// What a dtype is computed in.
static ein_dtype orc_wide(ein_dtype t) {
  switch (t) {
    case EIN_U8: case EIN_I8: case EIN_I16: return EIN_I32;
    case EIN_F16: case EIN_BF16: return EIN_F32;
    default: return t;
  }
}

static ein_dtype orc_real_of(ein_dtype t) {
  return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
}

// Distance from 1 to the next number, the largest number, the least normal one.
static double orc_eps(ein_dtype t) {
  switch (t) {
    case EIN_F16: return 1.0 / 1024;
    case EIN_BF16: return 1.0 / 128;
    case EIN_F32: case EIN_C64: return (double)FLT_EPSILON;
    default: return DBL_EPSILON;
  }
}

static double orc_max(ein_dtype t) {
  switch (t) {
    case EIN_F16: return 65504.0;
    case EIN_BF16: return 3.3895313892515355e38;
    case EIN_F32: case EIN_C64: return (double)FLT_MAX;
    default: return DBL_MAX;
  }
}

static double orc_tiny(ein_dtype t) {
  switch (t) {
    case EIN_F16: return ldexp(1.0, -14);
    case EIN_BF16: case EIN_F32: case EIN_C64: return (double)FLT_MIN;
    default: return DBL_MIN;
  }
}

static int64_t orc_least(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: case EIN_U8: return 0;
    case EIN_I8: return -128;
    case EIN_I16: return -32768;
    case EIN_I32: return INT32_MIN;
    default: return INT64_MIN;
  }
}

static int64_t orc_greatest(ein_dtype t) {
  switch (t) {
    case EIN_BOOL: return 1;
    case EIN_U8: return 255;
    case EIN_I8: return 127;
    case EIN_I16: return 32767;
    case EIN_I32: return INT32_MAX;
    default: return INT64_MAX;
  }
}

static int64_t orc_wrap(ein_dtype t, int64_t v) {
  uint64_t u = (uint64_t)v;
  switch (t) {
    case EIN_BOOL: return v != 0;
    case EIN_U8: return (int64_t)(u & 0xff);
    case EIN_I8: u &= 0xff; return u < 0x80 ? (int64_t)u : (int64_t)u - 0x100;
    case EIN_I16: u &= 0xffff; return u < 0x8000 ? (int64_t)u : (int64_t)u - 0x10000;
    case EIN_I32: u &= 0xffffffffu; return u < 0x80000000u ? (int64_t)u : (int64_t)u - 0x100000000;
    default: return v;
  }
}

// A finite number rounded to `bits` significant bits, quantum at least 2^low; ties to even.
static double orc_round_bits(double x, int bits, int low) {
  int e;
  if (x == 0.0 || x - x != 0.0) return x;
  (void)frexp(x, &e);
  e -= bits;
  if (e < low) e = low;
  return ldexp(rint(ldexp(x, -e)), e);
}

static double orc_round_to(ein_dtype t, double x) {
  if (x - x != 0.0) return x;
  if (t == EIN_F16) {
    double r = orc_round_bits(x, 11, -24);
    return fabs(r) > 65504.0 ? copysign(HUGE_VAL, x) : r;
  }
  if (t == EIN_BF16) {
    double r = orc_round_bits(x, 8, -133);
    return fabs(r) > orc_max(EIN_BF16) ? copysign(HUGE_VAL, x) : r;
  }
  if (t == EIN_F32 || t == EIN_C64) {
    if (fabs(x) >= 3.4028235677973366e38) return copysign(HUGE_VAL, x);
    return (double)(float)x;
  }
  return x;
}

static double orc_f16_value(unsigned h) {
  int e = (int)(h >> 10 & 31u), m = (int)(h & 1023u);
  double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? nan("") : HUGE_VAL) : ldexp(1024 + m, e - 25);
  return h & 0x8000u ? -v : v;
}

static double orc_bf16_value(unsigned h) {
  int e = (int)(h >> 7 & 255u), m = (int)(h & 127u);
  double v = e == 0 ? ldexp(m, -133) : ldexp(128 + m, e - 134);
  if (e == 255) v = m ? nan("") : HUGE_VAL;
  return h & 0x8000u ? -v : v;
}

// The bits of a number that is a value of the format; mant: bits of the mantissa field.
static unsigned orc_half_bits(double x, int mant, int bias, int low) {
  int e;
  unsigned sign = signbit(x) ? 0x8000u : 0, top = 1u << mant;
  unsigned all = (0x7fffu >> mant) << mant;
  if (x != x) return sign | all | (top >> 1);
  if (x - x != 0.0) return sign | all;
  x = fabs(x);
  if (x < ldexp(1.0, low + mant)) return sign | (unsigned)ldexp(x, -low);
  double f = frexp(x, &e);
  return sign | ((unsigned)(e - 1 + bias) << mant) | ((unsigned)ldexp(f, mant + 1) - top);
}

static orc_val orc_int(int64_t i) {
  orc_val v = {0, 0, 0, 0};
  v.i = i;
  return v;
}

static orc_val orc_float(double re, double im) {
  orc_val v = {0, 0, 0, 0};
  v.re = re;
  v.im = im;
  return v;
}

// Element k of a buffer of storage dtype t, as a value of its computation type.
static orc_val orc_load(ein_dtype t, const void *buf, int64_t k) {
  const char *p = (const char *)buf + (size_t)k * orc_size(t);
  int16_t h;
  uint16_t w;
  int32_t i;
  int64_t l;
  float f[2];
  double d[2];
  switch (t) {
    case EIN_BOOL: return orc_int(*(const unsigned char *)p != 0);
    case EIN_U8: return orc_int(*(const unsigned char *)p);
    case EIN_I8: return orc_int(*(const signed char *)p);
    case EIN_I16: memcpy(&h, p, 2); return orc_int(h);
    case EIN_I32: memcpy(&i, p, 4); return orc_int(i);
    case EIN_I64: memcpy(&l, p, 8); return orc_int(l);
    case EIN_F16: memcpy(&w, p, 2); return orc_float(orc_f16_value(w), 0);
    case EIN_BF16: memcpy(&w, p, 2); return orc_float(orc_bf16_value(w), 0);
    case EIN_F32: memcpy(f, p, 4); return orc_float((double)f[0], 0);
    case EIN_F64: memcpy(d, p, 8); return orc_float(d[0], 0);
    case EIN_C64: memcpy(f, p, 8); return orc_float((double)f[0], (double)f[1]);
    default: memcpy(d, p, 16); return orc_float(d[0], d[1]);
  }
}

static void orc_put(ein_dtype t, void *buf, int64_t k, orc_val v) {
  char *p = (char *)buf + (size_t)k * orc_size(t);
  uint64_t u = (uint64_t)v.i;
  uint8_t b = (uint8_t)u;
  uint16_t w = (uint16_t)u;
  uint32_t q = (uint32_t)u;
  float f[2];
  double d[2];
  f[0] = (float)orc_round_to(EIN_F32, v.re);
  f[1] = (float)orc_round_to(EIN_F32, v.im);
  d[0] = v.re;
  d[1] = v.im;
  if (t == EIN_BOOL) b = v.i != 0;
  if (t == EIN_F16) w = (uint16_t)orc_half_bits(orc_round_to(t, v.re), 10, 15, -24);
  if (t == EIN_BF16) w = (uint16_t)orc_half_bits(orc_round_to(t, v.re), 7, 127, -133);
  switch (t) {
    case EIN_BOOL: case EIN_U8: case EIN_I8: memcpy(p, &b, 1); break;
    case EIN_I16: case EIN_F16: case EIN_BF16: memcpy(p, &w, 2); break;
    case EIN_I32: memcpy(p, &q, 4); break;
    case EIN_I64: memcpy(p, &u, 8); break;
    case EIN_F32: memcpy(p, f, 4); break;
    case EIN_F64: memcpy(p, d, 8); break;
    case EIN_C64: memcpy(p, f, 8); break;
    default: memcpy(p, d, 16); break;
  }
}

// ---- conversions --------------------------------------------------------------------------------

static int orc_loose(orc_val v) { return !(v.err < HUGE_VAL); }

static orc_val orc_spoil(orc_val v) {
  v.err = HUGE_VAL;
  return v;
}

static int64_t orc_to_int(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  return x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

// Rounds a computed value to its computation type; u units of eps are its own error, and a finite
// value close to overflow is undetermined.
static orc_val orc_done(ein_dtype t, orc_val v, double u) {
  if (t < EIN_F16) {
    v.i = orc_wrap(t, v.i);
    return v;
  }
  double size = orc_is_complex(t) ? hypot(v.re, v.im) : fabs(v.re);
  v.re = orc_round_to(t, v.re);
  v.im = orc_is_complex(t) ? orc_round_to(t, v.im) : 0.0;
  if (size - size == 0.0) {
    if (size + v.err > orc_max(t) / 4) return orc_spoil(v);
    v.err += u * orc_eps(t) * size;
    if (u > 0) v.err += 4 * orc_tiny(t) * orc_eps(t) + (size < orc_tiny(t) * 2 ? size : 0);
  } else if (!orc_loose(v)) {
    v.err = 0;
  }
  return v;
}

// From one computation type to another, or to bool.
static orc_val orc_cast(orc_val v, ein_dtype from, ein_dtype to) {
  orc_val r = v;
  if (from == to) return v;
  if (!orc_is_float(from)) {
    if (to == EIN_BOOL) r.i = v.i != 0;
    else if (!orc_is_float(to)) r.i = orc_wrap(to, v.i);
    else {
      r.re = orc_real_of(to) == EIN_F32 ? (double)(float)v.i : (double)v.i;
      r.im = 0;
    }
    return r;
  }
  double size = orc_is_complex(from) ? hypot(v.re, v.im) : fabs(v.re);
  if (to == EIN_BOOL) {
    r = orc_int(v.re != 0 || (orc_is_complex(from) && v.im != 0));
    r.err = v.err > 0 && !(size > v.err) ? HUGE_VAL : 0;
    return r;
  }
  if (!orc_is_float(to)) {
    r = orc_int(orc_wrap(to, orc_to_int(v.re)));
    if (v.err > 0 && orc_to_int(v.re - v.err) != orc_to_int(v.re + v.err)) r.err = HUGE_VAL;
    return orc_loose(v) ? orc_spoil(r) : r;
  }
  if (!orc_is_complex(to)) r.im = 0;
  return orc_done(to, r, orc_eps(to) > orc_eps(from) ? 1 : 0);
}

// Do numbers of a computation type go to t by none other, so that they are rounded once?
static int orc_direct(ein_dtype from, ein_dtype t) {
  return (t == EIN_F16 || t == EIN_BF16) && from != EIN_BOOL && !orc_is_complex(from);
}

// Rounded to a storage dtype, held in its computation type.
static orc_val orc_narrow(orc_val v, ein_dtype from, ein_dtype t) {
  if (!orc_is_float(t)) {
    v.i = orc_wrap(t, v.i);
  } else if (t == EIN_F16 || t == EIN_BF16) {
    const int64_t low = fabs((double)v.i) > 4e15 ? v.i % 2048 : 0;
    if (!orc_is_float(from))  // in place of what double does not hold: on the same side of ties
      v.re = (double)(v.i - low) + (low > 0 ? 1024 : low < 0 ? -1024 : 0);
    double size = fabs(v.re), step = orc_eps(t) * size + orc_tiny(t) * orc_eps(t);
    v.re = orc_round_to(t, v.re);
    if (v.err > 0) v.err += step;
    if (size - size == 0 && v.err > 0 && size + v.err > orc_max(t)) v.err = HUGE_VAL;
  }
  return v;
}

// ---- operations ---------------------------------------------------------------------------------

static double orc_floormod(double x, double y) {
  if (y == 0 || x - x != 0) return nan("");
  double r = fmod(x, y);
  if (r != 0 && (r < 0) != (y < 0)) r += y;
  return r;
}

static double orc_floordiv(double x, double y) {  // as NumPy's npy_divmod
  if (y == 0) return x / y;
  double r = fmod(x, y), q = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0)) q -= 1.0;
  if (q == 0) return copysign(0.0, x / y);
  double f = floor(q);
  return q - f > 0.5 ? f + 1.0 : f;
}

static int64_t orc_idiv(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0 - (uint64_t)x);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t orc_imod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static uint64_t orc_mix(uint64_t x) {  // splitmix64
  x += 11400714819323198485u;
  x = (x ^ x / 1073741824u) * 13787848793156543929u;
  x = (x ^ x / 134217728u) * 10723151780598845931u;
  return x ^ x / 2147483648u;
}

// Integers and bool, in type t. cmp is the order of a and b.
static orc_val orc_op_int(int op, ein_dtype t, orc_val a, orc_val b) {
  uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
  orc_val r = orc_int(0);
  if (orc_loose(a) || orc_loose(b)) r.err = HUGE_VAL;
  switch (op) {
    case EIN_OP_NEG: r.i = (int64_t)(0 - x); break;
    case EIN_OP_ADD: r.i = t == EIN_BOOL ? (int64_t)(x | y) : (int64_t)(x + y); break;
    case EIN_OP_SUB: r.i = (int64_t)(x - y); break;
    case EIN_OP_MUL: r.i = (int64_t)(x * y); break;
    case EIN_OP_SQUARE: r.i = (int64_t)(x * x); break;
    case EIN_OP_FLOORDIV: r.i = orc_idiv(a.i, b.i); break;
    case EIN_OP_MOD: r.i = orc_imod(a.i, b.i); break;
    case EIN_OP_MAX: r.i = a.i > b.i ? a.i : b.i; break;
    case EIN_OP_MIN: r.i = a.i < b.i ? a.i : b.i; break;
    case EIN_OP_LT: r.i = a.i < b.i; return r;
    case EIN_OP_LE: r.i = a.i <= b.i; return r;
    case EIN_OP_GT: r.i = a.i > b.i; return r;
    case EIN_OP_GE: r.i = a.i >= b.i; return r;
    case EIN_OP_EQ: r.i = a.i == b.i; return r;
    case EIN_OP_NE: r.i = a.i != b.i; return r;
    case EIN_OP_AND: r.i = a.i != 0 && b.i != 0; return r;
    case EIN_OP_OR: r.i = a.i != 0 || b.i != 0; return r;
    case EIN_OP_NOT: r.i = a.i == 0; return r;
    case EIN_OP_RELU: r.i = a.i < 0 ? 0 : a.i; break;
    case EIN_OP_ABS: r.i = a.i < 0 ? (int64_t)(0 - x) : a.i; break;
    case EIN_OP_SIGN: r.i = (a.i > 0) - (a.i < 0); break;
    case EIN_OP_FLOOR: case EIN_OP_CEIL: case EIN_OP_ROUND: case EIN_OP_CONJ:
    case EIN_OP_REAL: r.i = a.i; break;
    case EIN_OP_IMAG: r.i = 0; break;
    case EIN_OP_HASH: r.i = (int64_t)(orc_mix(x) ^ y); break;
    case EIN_OP_RAND:
      a = orc_float((double)(orc_mix(x) >> 11) / 9007199254740992.0, 0);
      a.err = r.err;
      return a;
    default: orc_die("an operation integers do not have");
  }
  r.i = orc_wrap(t, r.i);
  return r;
}

// Comparisons of floats; undetermined when the operands' errors overlap.
static orc_val orc_compare_op(int op, orc_val a, orc_val b) {
  orc_val r = orc_int(0);
  double e = a.err + b.err;
  if (e > 0 && fabs(a.re - b.re) <= e && fabs(a.im - b.im) <= e) r.err = HUGE_VAL;
  if (!(e < HUGE_VAL)) r.err = HUGE_VAL;
  switch (op) {
    case EIN_OP_LT: r.i = a.re < b.re; break;
    case EIN_OP_LE: r.i = a.re <= b.re; break;
    case EIN_OP_GT: r.i = a.re > b.re; break;
    case EIN_OP_GE: r.i = a.re >= b.re; break;
    case EIN_OP_EQ: r.i = a.re == b.re && a.im == b.im; break;
    default: r.i = a.re != b.re || a.im != b.im; break;
  }
  return r;
}

// A step function of an inexact value: the bound covers the neighbouring steps.
static double orc_step_err(double (*fn)(double), double x, double e) {
  return e > 0 ? fn(x + e) - fn(x - e) : 0;
}

// Real floats of type t.
static orc_val orc_op_real(int op, ein_dtype t, orc_val a, orc_val b) {
  double x = a.re, y = b.re, ea = x - x == 0 ? a.err : 0, eb = y - y == 0 ? b.err : 0;
  double r = 0, e = 0, u = 1, q, low = fabs(y) - eb;
  int pole = 0;  // an infinite or NaN result that is meant
  switch (op) {
    case EIN_OP_NEG: r = -x; e = ea; u = 0; break;
    case EIN_OP_ADD: r = x + y; e = ea + eb; break;
    case EIN_OP_SUB: r = x - y; e = ea + eb; break;
    case EIN_OP_MUL: r = x * y; e = fabs(x) * eb + fabs(y) * ea + ea * eb; break;
    case EIN_OP_SQUARE: r = x * x; e = 2 * fabs(x) * ea + ea * ea; break;
    case EIN_OP_DIV:
      r = x / y;
      pole = y == 0 && eb == 0 && ea == 0;
      if (y == 0) e = ea > 0 || eb > 0 ? HUGE_VAL : 0;
      else e = low <= 0 ? HUGE_VAL : (ea + fabs(r) * eb) / low;
      break;
    case EIN_OP_FLOORDIV:
    case EIN_OP_MOD:
      r = op == EIN_OP_MOD ? orc_floormod(x, y) : orc_floordiv(x, y);
      pole = y == 0 && eb == 0;
      if (ea + eb > 0) {
        q = low > 0 ? (ea + fabs(x / y) * eb) / low : HUGE_VAL;
        if (!(q < 1e6)) e = HUGE_VAL;
        else if (op == EIN_OP_FLOORDIV) e = orc_step_err(floor, x / y, q);
        else if (floor(x / y - q) != floor(x / y + q)) e = HUGE_VAL;
        else e = ea + fabs(floor(x / y)) * eb;
      }
      break;
    case EIN_OP_MAX:
    case EIN_OP_MIN:
      r = (op == EIN_OP_MAX ? x > y : x < y) ? x : y;
      if (x != x || y != y) r = nan("");
      e = ea > eb ? ea : eb;
      u = 0;
      break;
    case EIN_OP_POW:
      r = pow(x, y);
      u = 16;
      pole = ea == 0 && eb == 0 && (x == 0 || x < 0);
      if (ea + eb > 0) {
        q = fabs(x) - ea <= 0 ? HUGE_VAL : fabs(y) * ea / (fabs(x) - ea) + fabs(log(fabs(x))) * eb;
        e = x - ea <= 0 ? HUGE_VAL : fabs(r) * expm1(q);
      }
      break;
    case EIN_OP_EXP: r = exp(x); e = ea > 0 ? r * expm1(ea) : 0; u = 8; break;
    case EIN_OP_LOG:
    case EIN_OP_SQRT:
    case EIN_OP_RSQRT:
      r = op == EIN_OP_LOG ? log(x) : op == EIN_OP_SQRT ? sqrt(x) : 1 / sqrt(x);
      u = 8;
      pole = x + ea < 0 || (x == 0 && ea == 0);
      if (ea > 0 && x + ea >= 0) {
        q = x - ea;
        e = q <= 0 ? HUGE_VAL : op == EIN_OP_LOG ? ea / q : op == EIN_OP_SQRT ? ea / sqrt(q)
                                                                                : r * ea / q;
      }
      break;
    case EIN_OP_EXPM1: r = expm1(x); e = ea > 0 ? exp(x) * expm1(ea) : 0; u = 8; break;
    case EIN_OP_LOG1P:
      r = log1p(x);
      u = 8;
      pole = 1 + x + ea < 0 || (x == -1 && ea == 0);
      if (ea > 0 && 1 + x + ea >= 0) e = 1 + x - ea <= 0 ? HUGE_VAL : ea / (1 + x - ea);
      break;
    case EIN_OP_TAN:
      r = tan(x);
      u = 8;
      q = 1 + r * r;
      e = q * ea < 0.01 ? 2 * q * ea : HUGE_VAL;
      break;
    case EIN_OP_ATAN2:  // 7 at the cut, and where the sign of a zero counts
      r = atan2(x, y);
      u = 8;
      q = hypot(x, y) - ea - eb;
      e = ea + eb == 0 ? 0 : q <= 0 ? 7 : (ea + eb) / q;
      if ((y - eb <= 0 && fabs(x) <= ea) || (x == 0 && y == 0)) e = 7;
      break;
    case EIN_OP_SIGN:
      r = x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
      e = fabs(x) > ea || ea == 0 ? 0 : 2;
      u = 0;
      break;
    case EIN_OP_SIN: r = sin(x); e = ea + 4 * orc_eps(t); u = 8; break;
    case EIN_OP_COS: r = cos(x); e = ea + 4 * orc_eps(t); u = 8; break;
    case EIN_OP_TANH: r = tanh(x); e = ea; u = 8; break;
    case EIN_OP_ERF: r = erf(x); e = 1.2 * ea; u = 8; break;
    case EIN_OP_SIGMOID: r = 1 / (1 + exp(-x)); e = ea; u = 8; break;
    case EIN_OP_SILU: r = x / (1 + exp(-x)); e = 1.2 * ea; u = 8; break;
    case EIN_OP_GELU:
      r = 0.5 * x * (1 + erf(x * 0.70710678118654752440));
      e = 1.2 * ea + 8 * orc_eps(t) * fabs(x);
      break;
    case EIN_OP_RELU: r = x < 0 ? 0 : x; e = ea; u = 0; break;
    case EIN_OP_ABS: r = fabs(x); e = ea; u = 0; break;
    case EIN_OP_FLOOR: r = floor(x); e = orc_step_err(floor, x, ea); u = 0; break;
    case EIN_OP_CEIL: r = ceil(x); e = orc_step_err(ceil, x, ea); u = 0; break;
    case EIN_OP_ROUND: r = rint(x); e = orc_step_err(rint, x, ea); u = 0; break;
    case EIN_OP_CONJ: case EIN_OP_REAL: r = x; e = ea; u = 0; break;
    case EIN_OP_IMAG: r = 0; u = 0; break;
    default: orc_die("an operation floats do not have");
  }
  orc_val v = orc_float(r, 0);
  v.err = orc_loose(a) || orc_loose(b) || !(e < HUGE_VAL) ? HUGE_VAL : e;
  if (r - r != 0 && x - x == 0 && y - y == 0 && !pole) v.err = HUGE_VAL;  // overflow
  return orc_done(t, v, u);
}

static orc_val orc_cmul(orc_val a, orc_val b) {
  return orc_float(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

static orc_val orc_cdiv(orc_val a, orc_val b) {
  double s = fmax(fabs(b.re), fabs(b.im)), c = b.re / s, d = b.im / s, n = c * c + d * d;
  if (s == 0) return orc_float(a.re / b.re, a.im / b.re);
  return orc_float((a.re * c + a.im * d) / n / s, (a.im * c - a.re * d) / n / s);
}

static orc_val orc_cexp(orc_val a) {
  return orc_float(exp(a.re) * cos(a.im), exp(a.re) * sin(a.im));
}

static orc_val orc_clog(orc_val a) { return orc_float(log(hypot(a.re, a.im)), atan2(a.im, a.re)); }

static orc_val orc_csqrt(orc_val a) {
  double m = hypot(a.re, a.im);
  if (m == 0) return orc_float(0, a.im);
  double big = sqrt((m + fabs(a.re)) / 2), small = fabs(a.im) / (2 * big);
  return a.re >= 0 ? orc_float(big, copysign(small, a.im)) : orc_float(small, copysign(big, a.im));
}

// Complex numbers of type t; a.err bounds |error| of the number.
static orc_val orc_op_complex(int op, ein_dtype t, orc_val a, orc_val b) {
  double ma = hypot(a.re, a.im), mb = hypot(b.re, b.im), ea = a.err, eb = b.err, e = ea;
  double u = 8, c, m;
  orc_val r = a;
  int cut = a.re <= 0 && fabs(a.im) <= ea && ea > 0;
  int special = a.re - a.re != 0 || a.im - a.im != 0;
  switch (op) {
    case EIN_OP_NEG: r = orc_float(-a.re, -a.im); u = 0; special = 0; break;
    case EIN_OP_CONJ: r.im = -a.im; u = 0; special = 0; break;
    case EIN_OP_ADD: r = orc_float(a.re + b.re, a.im + b.im); e = ea + eb; u = 2; break;
    case EIN_OP_SUB: r = orc_float(a.re - b.re, a.im - b.im); e = ea + eb; u = 2; break;
    case EIN_OP_MUL:
    case EIN_OP_SQUARE:
      if (op == EIN_OP_SQUARE) { b = a; mb = ma; eb = ea; }
      r = orc_cmul(a, b);
      e = ma * eb + mb * ea + ea * eb;
      break;
    case EIN_OP_DIV:
      r = orc_cdiv(a, b);
      e = mb <= eb ? HUGE_VAL : (ea + ma / mb * eb) / (mb - eb);
      break;
    case EIN_OP_EXP: r = orc_cexp(a); e = exp(a.re) * expm1(ea); break;
    case EIN_OP_LOG: r = orc_clog(a); e = ma <= ea || cut ? HUGE_VAL : ea / (ma - ea); break;
    case EIN_OP_SQRT:
    case EIN_OP_RSQRT:
      r = orc_csqrt(a);
      m = hypot(r.re, r.im);
      e = cut ? HUGE_VAL : ea == 0 ? 0 : ma > 2 * ea ? ea / m : HUGE_VAL;
      if (op == EIN_OP_RSQRT) {
        r = orc_cdiv(orc_float(1, 0), r);
        e = ma == 0 ? HUGE_VAL : e / (m * m) * 2;
        u = 16;
      }
      break;
    case EIN_OP_SIN:
    case EIN_OP_COS:
      c = cosh(fabs(a.im) + ea);
      r = op == EIN_OP_SIN ? orc_float(sin(a.re) * cosh(a.im), cos(a.re) * sinh(a.im))
                            : orc_float(cos(a.re) * cosh(a.im), -sin(a.re) * sinh(a.im));
      e = c * (expm1(ea) + 8 * orc_eps(t));
      break;
    case EIN_OP_EXPM1:
      r = orc_cexp(a);
      m = sin(a.im / 2);
      r.re = expm1(a.re) * cos(a.im) - 2 * m * m;
      e = exp(a.re) * expm1(ea) + 8 * orc_eps(t) * exp(a.re);
      break;
    case EIN_OP_LOG1P:
      b = orc_float(1 + a.re, a.im);
      m = hypot(b.re, b.im);
      r = orc_clog(b);
      if (m < 2) r.re = log1p(a.re * a.re + 2 * a.re + a.im * a.im) / 2;
      e = m <= 2 * ea || (b.re <= 0 && fabs(b.im) <= ea) ? HUGE_VAL : ea / (m - ea);
      break;
    case EIN_OP_SIGN:
      r = ma == 0 ? orc_float(0, 0) : orc_float(a.re / ma, a.im / ma);
      e = ea == 0 ? 0 : ma <= 2 * ea ? 2 : 2 * ea / (ma - ea);
      break;
    case EIN_OP_TAN:
      c = fabs(a.im) > 300 ? HUGE_VAL : cos(2 * a.re) + cosh(2 * a.im);
      r = c < HUGE_VAL ? orc_float(sin(2 * a.re) / c, sinh(2 * a.im) / c)
                       : orc_float(0, copysign(1, a.im));
      m = hypot(r.re, r.im);
      e = (1 + m * m) * (4 * ea + 16 * orc_eps(t));
      if (m > 1000 || ea > 0.01) e = HUGE_VAL;
      break;
    case EIN_OP_TANH:
      c = fabs(a.re) > 300 ? HUGE_VAL : cosh(2 * a.re) + cos(2 * a.im);
      r = c < HUGE_VAL ? orc_float(sinh(2 * a.re) / c, sin(2 * a.im) / c)
                       : orc_float(copysign(1, a.re), 0);
      m = hypot(r.re, r.im);
      e = (1 + m * m) * (4 * ea + 16 * orc_eps(t));
      if (m > 1000 || ea > 0.01) e = HUGE_VAL;
      break;
    case EIN_OP_POW:
      if (mb == 0 && eb == 0) {
        r = orc_float(1, 0);
      } else if (ma == 0 && ea == 0) {
        r = orc_float(0, 0);
        if (b.re <= 0) special = 1;
      } else {
        orc_val l = orc_clog(a);
        m = hypot(l.re, l.im);
        r = orc_cexp(orc_cmul(b, l));
        c = 16 * orc_eps(t) * (1 + mb * m) + m * eb;
        c += ma <= ea || cut ? HUGE_VAL : mb * ea / (ma - ea);
        e = hypot(r.re, r.im) * expm1(c);
      }
      if (b.re - b.re != 0 || b.im - b.im != 0) special = 1;
      break;
    default: orc_die("an operation complex numbers do not have");
  }
  if (op == EIN_OP_ADD || op == EIN_OP_SUB) special = 0;
  if (op != EIN_OP_NEG && op != EIN_OP_CONJ && (r.re - r.re != 0 || r.im - r.im != 0)) {
    special = 1;
  }
  // What infinities become in complex arithmetic is left to the implementation.
  r.err = special || orc_loose(a) || orc_loose(b) || !(e < HUGE_VAL) ? HUGE_VAL : e;
  return orc_done(t, r, u);
}

// Parts of complex numbers of type t.
static orc_val orc_op_part(int op, ein_dtype t, orc_val a) {
  double m = hypot(a.re, a.im);
  orc_val r = orc_float(op == EIN_OP_REAL ? a.re : op == EIN_OP_IMAG ? a.im : m, 0);
  r.err = a.err;
  if (r.re - r.re != 0 && !(op == EIN_OP_REAL || op == EIN_OP_IMAG)) return orc_spoil(r);
  return orc_done(orc_real_of(t), r, op == EIN_OP_REAL || op == EIN_OP_IMAG ? 0 : 4);
}

// ---- expressions --------------------------------------------------------------------------------

// A registered function on one element; the bound comes from evaluating it nearby.
static orc_val orc_call(const ein_function *f, int n, const orc_val *arg) {
  double in[EINI_ARGS_MAX][2], out[2];
  const void *ptr[EINI_ARGS_MAX];
  orc_val r = orc_int(0), base = r;
  int loose = 0;
  for (int shift = -1; shift < 2 * n; shift++) {
    double e = 0;
    if (shift >= 0 && arg[shift / 2].err == 0) continue;
    for (int k = 0; k < n; k++) {
      orc_val v = arg[k];
      if (orc_loose(v)) loose = 1;
      if (!loose && shift / 2 == k && shift >= 0) {
        e = shift % 2 ? v.err : -v.err;
        v.re += e;
        v.im += orc_is_complex(f->dtype) ? e : 0;
      }
      orc_put(f->dtype, in[k], 0, v);
      ptr[k] = in[k];
    }
    memset(out, 0, sizeof out);
    f->fn(1, ptr, out, f->user);
    r = orc_load(f->dtype, out, 0);
    if (shift < 0) base = r;
    else base.err += 4 * (fabs(r.re - base.re) + fabs(r.im - base.im));
  }
  if (loose || base.err != base.err) base.err = HUGE_VAL;
  return orc_done(f->dtype, base, 16);
}

typedef struct orc_env {
  const ein_graph *g;
  const eini_stmt *s;
  void *const *data;
  double *const *err;
  const ein_scalar *param;
  const int64_t *x;   // the point of the index space
  orc_val *val;       // of nodes
} orc_env;

// Row-major position of a map's value in a tensor; every coordinate is checked.
static int64_t orc_address(const eini_tensor *t, const eini_map *m, const int64_t *x) {
  int64_t at = 0;
  for (int r = 0; r < m->rows; r++) {
    int64_t c = m->offset[r];
    for (int e = m->first[r]; e < m->first[r + 1]; e++) c += m->term[e].coef * x[m->term[e].index];
    if (c < 0 || c >= t->shape[r]) orc_die("an access leaves its tensor");
    at = at * t->shape[r] + c;
  }
  return at;
}

static orc_val orc_leaf(const orc_env *env, const eini_node *v, ein_dtype t) {
  orc_val r = orc_int(0);
  if (v->op == EIN_OP_OPERAND) {
    int id = env->s->operand[v->arg[0]];
    const eini_tensor *x = &env->g->tensor[id];
    int64_t at = orc_address(x, &env->s->proj[v->arg[0]], env->x);
    r = orc_load(x->dtype, env->data[id], at);
    if (env->err != NULL && env->err[id] != NULL) r.err = env->err[id][at];
  } else if (v->op == EIN_OP_INDEX) {
    r = orc_int(env->x[v->arg[0]]);
  } else {
    double re = v->re, im = v->im;
    int64_t i = v->ival;
    if (v->op == EIN_OP_PARAM) {
      const ein_scalar *p = &env->g->param[v->arg[0]].value;
      if (env->param != NULL && env->param[v->arg[0]].set) p = &env->param[v->arg[0]];
      re = p->re;
      im = p->im;
      re = orc_round_to(env->g->param[v->arg[0]].dtype, re);
      i = orc_to_int(re);
    }
    if (t == EIN_BOOL) r = orc_int(re != 0 || im != 0);
    else if (!orc_is_float(t)) r = orc_int(orc_wrap(t, i));
    else r = orc_float(orc_round_to(t, re), orc_is_complex(t) ? orc_round_to(t, im) : 0);
  }
  return r;
}

static orc_val orc_node(const orc_env *env, const eini_node *v) {
  const eini_expr *e = &env->s->expr;
  ein_dtype t = orc_wide((ein_dtype)v->dtype), from = t;
  orc_val a[EINI_ARGS_MAX];
  int n = eini_node_args(v);
  if (n == 0) return orc_leaf(env, v, t);
  for (int k = 0; k < n; k++) a[k] = env->val[eini_node_arg(e, v, k)];
  if (n < 2) a[1] = orc_int(0);
  from = orc_wide((ein_dtype)e->node[eini_node_arg(e, v, 0)].dtype);
  if (v->op == EIN_OP_CALL) return orc_call(&env->g->function[v->arg[0]], n, a);
  if (v->op == EIN_OP_WHERE) {
    orc_val r = a[0].i ? a[1] : a[2];
    return orc_loose(a[0]) ? orc_spoil(r) : r;
  }
  if (v->op == EIN_OP_CAST) return orc_cast(a[0], from, t);
  if (v->op == EIN_OP_ROUNDTO) return orc_narrow(a[0], from, (ein_dtype)v->dtype);
  if (v->op == EIN_OP_COMPLEX) {
    orc_val r = orc_float(a[0].re, a[1].re);
    r.err = a[0].err + a[1].err;
    return r;
  }
  if (!orc_is_float(from)) return orc_op_int(v->op, t, a[0], a[1]);
  if (v->op >= EIN_OP_LT && v->op <= EIN_OP_NE) return orc_compare_op(v->op, a[0], a[1]);
  if (!orc_is_complex(from)) return orc_op_real(v->op, from, a[0], a[1]);
  if (v->op == EIN_OP_ABS || v->op == EIN_OP_REAL || v->op == EIN_OP_IMAG)
    return orc_op_part(v->op, from, a[0]);
  return orc_op_complex(v->op, from, a[0], a[1]);
}

// ---- folds --------------------------------------------------------------------------------------

// The computation type values are folded in.
static ein_dtype orc_fold_type(const ein_graph *g, const eini_stmt *s, ein_dtype t) {
  if (s->fold >= EIN_FOLD_USER) return g->monoid[s->fold - EIN_FOLD_USER].dtype;
  if (s->fold == EIN_FOLD_ANY || s->fold == EIN_FOLD_ALL) return EIN_BOOL;
  if (s->fold == EIN_FOLD_LOGSUMEXP || s->fold == EIN_FOLD_MEAN || s->fold == EIN_FOLD_VAR) {
    return orc_is_float(t) ? orc_wide(t) : EIN_F64;
  }
  if ((s->fold == EIN_FOLD_SUM || s->fold == EIN_FOLD_PROD) && t == EIN_BOOL && !s->numpy)
    return EIN_I64;
  return orc_wide(t);
}

static orc_val orc_fold_int(int fold, ein_dtype t, ein_dtype logical, const orc_val *v, int64_t n) {
  orc_val r = orc_int(0);
  if (fold == EIN_FOLD_PROD || fold == EIN_FOLD_ALL) r.i = 1;
  if (fold == EIN_FOLD_MAX) r.i = orc_least(logical);
  if (fold == EIN_FOLD_MIN) r.i = orc_greatest(logical);
  for (int64_t k = 0; k < n; k++) {
    int64_t x = v[k].i;
    if (orc_loose(v[k])) r.err = HUGE_VAL;
    switch (fold) {
      case EIN_FOLD_SUM:
        if (t == EIN_BOOL) r.i |= x;
        else r.i = (int64_t)((uint64_t)r.i + (uint64_t)x);
        break;
      case EIN_FOLD_PROD: r.i = (int64_t)((uint64_t)r.i * (uint64_t)x); break;
      case EIN_FOLD_MAX: if (k == 0 || x > r.i) r.i = x; break;
      case EIN_FOLD_MIN: if (k == 0 || x < r.i) r.i = x; break;
      case EIN_FOLD_ANY: r.i = r.i || x; break;
      case EIN_FOLD_ALL: r.i = r.i && x; break;
      default: orc_die("a fold integers do not have");
    }
  }
  r.i = orc_wrap(t, r.i);
  return r;
}

// Sum and mean of floats. Rounding of n terms in any order: n * eps * sum of magnitudes.
static orc_val orc_fold_sum(ein_dtype t, const orc_val *v, int64_t n, int mean, int nary) {
  long double re = 0, im = 0, size = 0, err = 0;
  int special = 0;
  for (int64_t k = 0; k < n; k++) {
    double m = hypot(v[k].re, v[k].im);
    re += (long double)v[k].re;
    im += (long double)v[k].im;
    if (m - m != 0) special = 1;
    else size += (long double)m;
    err += (long double)v[k].err;
  }
  orc_val r = orc_float((double)re, (double)im);
  r.err = (double)err;
  if (size > (long double)(orc_max(t) / 8)) r.err = HUGE_VAL;
  r.err += (double)(n + 4) * orc_eps(t) * (double)size;
  // A product's split may meet infinities in another order.
  if (special && (nary || orc_is_complex(t))) r.err = HUGE_VAL;
  if (mean) {
    r.re /= (double)n;
    r.im /= (double)n;
    r.err /= (double)n;
  }
  return orc_done(t, r, 1);
}

static orc_val orc_fold_prod(ein_dtype t, const orc_val *v, int64_t n) {
  orc_val r = orc_float(1, 0);
  double high = 1, size = 1, up = 1, down = 1, u = orc_is_complex(t) ? 4 : 1;
  int special = 0;
  long double acc = 1;
  for (int64_t k = 0; k < n; k++) {
    double m = hypot(v[k].re, v[k].im), h = m + v[k].err + u * orc_eps(t) * m;
    if (m - m != 0) special = 1;
    r = orc_cmul(r, v[k]);
    acc *= (long double)v[k].re;
    high *= h;
    size *= m;
    if (h > 1) up *= h;
    if (m < 1 && m > 0) down *= m;
  }
  if (!orc_is_complex(t)) r = orc_float((double)acc, 0);
  r.err = high - size + (double)n * u * orc_eps(t) * high;
  int over = !(up < orc_max(t) / 16), under = down < orc_tiny(t) / orc_eps(t);
  if (special) r.err = orc_is_complex(t) || over || under ? HUGE_VAL : 0;
  else if (over || (under && up > 2)) r.err = HUGE_VAL;
  else if (under) r.err += orc_tiny(t) * 4;
  for (int64_t k = 0; k < n; k++) {
    if (orc_loose(v[k])) r.err = HUGE_VAL;
  }
  return orc_done(t, r, 1);
}

static orc_val orc_fold_extremum(int fold, const orc_val *v, int64_t n) {
  int up = fold == EIN_FOLD_MAX;
  orc_val r = orc_float(up ? -HUGE_VAL : HUGE_VAL, 0);
  double err = 0;
  for (int64_t k = 0; k < n; k++) {
    if (v[k].err > err) err = v[k].err;
    if (r.re != r.re) continue;
    if (v[k].re != v[k].re || (up ? v[k].re > r.re : v[k].re < r.re)) r.re = v[k].re;
  }
  r.err = r.re - r.re != 0 && err < HUGE_VAL ? 0 : err;
  return r;
}

// The position; undetermined when another inexact value comes as close as the bounds allow.
static orc_val orc_fold_arg(int fold, ein_dtype t, const orc_val *v, int64_t n) {
  int64_t best = 0;
  int up = fold == EIN_FOLD_ARGMAX, f = orc_is_float(t);
  for (int64_t k = 1; k < n; k++) {
    if (f && v[best].re != v[best].re) break;
    int better = f ? (up ? v[k].re > v[best].re : v[k].re < v[best].re)
                   : (up ? v[k].i > v[best].i : v[k].i < v[best].i);
    if (better || (f && v[k].re != v[k].re)) best = k;
  }
  orc_val r = orc_int(best);
  for (int64_t k = 0; k < n; k++) {
    double e = v[k].err + v[best].err;
    if (!(e < HUGE_VAL)) r.err = HUGE_VAL;
    if (f && k != best && e > 0 && v[best].re == v[best].re && fabs(v[k].re - v[best].re) <= e) {
      r.err = HUGE_VAL;
    }
  }
  return r;
}

static orc_val orc_fold_logsumexp(ein_dtype t, const orc_val *v, int64_t n, int nary) {
  orc_val top = orc_fold_extremum(EIN_FOLD_MAX, v, n), r = top;
  long double s = 0;
  if (top.re - top.re != 0) {  // all -inf, some inf, or NaN
    if (nary && n > 0) r.err = HUGE_VAL;
    return r;
  }
  for (int64_t k = 0; k < n; k++) s += expl((long double)v[k].re - (long double)top.re);
  r.re = (double)((long double)top.re + logl(s));
  r.err = top.err + (double)(n + 16) * orc_eps(t) + 8 * orc_eps(t) * (fabs(top.re) + fabs(r.re));
  return orc_done(t, r, 1);
}

static orc_val orc_fold_var(ein_dtype t, const orc_val *v, int64_t n) {
  long double mr = 0, mi = 0, s = 0, err = 0, top = 0;
  double count = (double)n, eps = orc_eps(t);
  for (int64_t k = 0; k < n; k++) {
    mr += (long double)v[k].re / n;
    mi += (long double)v[k].im / n;
    if ((long double)v[k].err > err) err = (long double)v[k].err;
    top = fmaxl(top, fabsl((long double)v[k].re) + fabsl((long double)v[k].im));
  }
  for (int64_t k = 0; k < n; k++) {
    long double a = (long double)v[k].re - mr, b = (long double)v[k].im - mi;
    s += (a * a + b * b) / n;
  }
  orc_val r = orc_float((double)s, 0);
  double sd = sqrt(r.re), m = (double)top, e = (double)err;
  r.err = 8 * (count + 8) * eps * (r.re + sd * m + eps * m * m) + 4 * sd * e + 4 * e * e;
  if (m * m * count > orc_max(t) / 16 && m < HUGE_VAL) r.err = HUGE_VAL;
  if (r.re != r.re && e < HUGE_VAL) r.err = 0;
  return orc_done(orc_real_of(t), r, 1);
}

// A registered monoid: lift, merge and finish of one element at a time.
static orc_val orc_fold_user(const ein_monoid *m, const orc_val *v, int64_t n) {
  double acc[4][2], more[4][2], x[2], out[2], s1 = 0, s2 = 0, top = 0, err = 0;
  void *pa[4], *pm[4];
  const void *ca[4], *cm[4];
  for (int s = 0; s < 4; s++) {
    orc_val id = orc_float(m->identity[s], 0);
    id.i = orc_to_int(m->identity[s]);
    orc_put(m->dtype, acc[s], 0, id);
    ca[s] = pa[s] = acc[s];
    cm[s] = pm[s] = more[s];
  }
  for (int64_t k = 0; k < n; k++) {
    orc_put(m->dtype, x, 0, v[k]);
    if (m->lift_fn != NULL) m->lift_fn(1, x, pm, m->user);
    else orc_put(m->dtype, more[0], 0, v[k]);
    m->merge_fn(1, pa, cm, m->user);
    s1 += fabs(v[k].re);
    s2 += v[k].re * v[k].re;
    top = fmax(top, fabs(v[k].re));
    err += v[k].err;
  }
  memcpy(out, acc[0], sizeof out);
  if (m->finish_fn != NULL) m->finish_fn(1, ca, out, m->user);
  orc_val r = orc_load(m->dtype, out, 0);
  if (!orc_is_float(m->dtype)) {
    r.err = err > 0 ? HUGE_VAL : 0;
    return r;
  }
  r.err = 8 * (double)(n + 8) * orc_eps(m->dtype) * (fabs(r.re) + s1 + s2) + 4 * (1 + top) * err;
  if (r.err != r.err) r.err = HUGE_VAL;
  return orc_done(m->dtype, r, 1);
}

// The fold of n values of computation type t; logical is the dtype of the result.
static orc_val orc_fold(const orc_env *env, ein_dtype t, orc_val *v, int64_t n) {
  const eini_stmt *s = env->s;
  int fold = s->fold, nary = s->expr.n > 1 && !orc_one_pass;
  if (fold == EIN_FOLD_NONE) return v[0];
  if (fold >= EIN_FOLD_USER) return orc_fold_user(&env->g->monoid[fold - EIN_FOLD_USER], v, n);
  if (fold == EIN_FOLD_ARGMAX || fold == EIN_FOLD_ARGMIN) return orc_fold_arg(fold, t, v, n);
  if (!orc_is_float(t)) return orc_fold_int(fold, t, s->type, v, n);
  switch (fold) {
    case EIN_FOLD_SUM: return orc_fold_sum(t, v, n, 0, nary);
    case EIN_FOLD_MEAN: return orc_fold_sum(t, v, n, 1, nary);
    case EIN_FOLD_PROD: return orc_fold_prod(t, v, n);
    case EIN_FOLD_LOGSUMEXP: return orc_fold_logsumexp(t, v, n, nary);
    case EIN_FOLD_VAR: return orc_fold_var(t, v, n);
    default: return orc_fold_extremum(fold, v, n);
  }
}

// Computation type of the fold's result.
static ein_dtype orc_fold_result(const eini_stmt *s, ein_dtype t) {
  if (s->fold == EIN_FOLD_ARGMAX || s->fold == EIN_FOLD_ARGMIN) return EIN_I64;
  return s->fold == EIN_FOLD_VAR ? orc_real_of(t) : t;
}

// ---- statements ---------------------------------------------------------------------------------

static int64_t orc_count(const eini_tensor *t) {
  int64_t n = 1;
  for (int r = 0; r < t->rank; r++) n *= t->shape[r];
  return n;
}

// Steps x[from..to) through its extents in row-major order; 0 after the last point.
static int orc_next(const eini_index *index, int from, int to, int64_t *x) {
  for (int k = to - 1; k >= from; k--) {
    if (++x[k] < index[k].extent) return 1;
    x[k] = 0;
  }
  return 0;
}

static int orc_empty(const eini_index *index, int from, int to) {
  for (int k = from; k < to; k++) {
    if (index[k].extent <= 0) return 1;
  }
  return 0;
}

static void orc_write(const orc_env *env, orc_val v, ein_dtype t) {
  const eini_stmt *s = env->s;
  const eini_tensor *out = &env->g->tensor[s->out];
  ein_dtype wide = orc_wide(out->dtype);
  int64_t at = orc_address(out, &s->out_map, env->x);
  double *err = env->err == NULL ? NULL : env->err[s->out];
  const int direct = s->rest != EIN_REST_ACCUMULATE && orc_direct(t, out->dtype);
  if (!direct) v = orc_cast(v, t, wide);
  if (s->rest == EIN_REST_ACCUMULATE) {
    orc_val old = orc_load(out->dtype, env->data[s->out], at);
    if (err != NULL) old.err = err[at];
    if (!orc_is_float(wide)) v = orc_op_int(EIN_OP_ADD, wide, old, v);
    else if (orc_is_complex(wide)) v = orc_op_complex(EIN_OP_ADD, wide, old, v);
    else v = orc_op_real(EIN_OP_ADD, wide, old, v);
  }
  v = orc_narrow(v, direct ? t : wide, out->dtype);
  orc_put(out->dtype, env->data[s->out], at, v);
  if (err != NULL) err[at] = v.err;
}

// The axes of the block that access k has of a function over blocks: of reduced indices, of the
// result those that no operand has. In the order of coordinates.
static int orc_axes(const eini_stmt *s, int k, int *axis) {
  const eini_map *m = k < 0 ? &s->out_map : &s->proj[k];
  int n = 0;
  for (int r = 0; r < m->rows; r++) {
    for (int i = 0; i < s->nindex; i++) {
      int read = i >= s->nfree;
      for (int o = 0; o < s->noperand && i < s->nfree && k < 0; o++)
        for (int q = 0; q < s->proj[o].rows; q++) read |= eini_map_coef(&s->proj[o], q, i) != 0;
      if (eini_map_coef(m, r, i) != 0 && (k < 0 ? !read : read)) axis[n++] = i;
    }
  }
  return n;
}

// One call: what access k has at the point goes to the block, or, of the result, comes from it.
static void orc_block(orc_env *env, int k, ein_dtype own, char *block, int64_t *x) {
  const eini_stmt *s = env->s;
  const eini_tensor *t = &env->g->tensor[k < 0 ? s->out : s->operand[k]];
  const eini_map *m = k < 0 ? &s->out_map : &s->proj[k];
  int axis[32], n = orc_axes(s, k, axis), more = 1;
  for (int a = 0; a < n; a++) x[axis[a]] = 0;
  for (int64_t at = 0; more; at++) {
    if (k < 0) {
      orc_val v = orc_cast(orc_load(own, block, at), own, orc_wide(t->dtype));
      orc_put(t->dtype, env->data[s->out], orc_address(t, m, x),
              orc_narrow(v, orc_wide(t->dtype), t->dtype));
    } else {
      orc_val v = orc_load(t->dtype, env->data[s->operand[k]], orc_address(t, m, x));
      orc_put(own, block, at, orc_cast(v, orc_wide(t->dtype), own));
    }
    for (more = 0; n > 0 && !more;) {
      int a = n - 1;
      while (a >= 0 && ++x[axis[a]] == s->index[axis[a]].extent) x[axis[a--]] = 0;
      if (a < 0) break;
      more = 1;
    }
  }
}

static void orc_operator(orc_env *env) {
  const eini_stmt *s = env->s;
  const eini_node *root = &s->expr.node[s->expr.n - 1];
  const ein_operator *f = env->g->block[root->arg[0]];
  int64_t *x = (int64_t *)orc_alloc(s->nindex, sizeof *x), size[8] = {0}, used = 0;
  char *block[9] = {NULL};
  const void *in[8];
  void *out[8];
  eini_signature sig;
  if (orc_empty(s->index, 0, s->nfree)) {
    free(x);
    return;
  }
  eini_signature_read(f->signature, &sig);
  for (int k = 0; k <= sig.nin; k++) {
    int axis[32], side = k < sig.nin ? eini_operator_operand(s, k) : -1;
    int n = orc_axes(s, side, axis);
    int64_t count = 1;
    for (int a = 0; a < n; a++) {
      count *= s->index[axis[a]].extent;
      if (k < sig.nin) size[sig.size[sig.first[k] + a]] = s->index[axis[a]].extent;
    }
    in[k < 8 ? k : 7] = block[k] = (char *)orc_alloc(count + 1, 16);
  }
  if (f->size_fn != NULL) f->size_fn(size, f->user);
  for (int o = 0; o < sig.nout; o++) {
    int64_t count = 1;
    out[o] = block[sig.nin] + used * (int64_t)ein_dtype_size(f->dtype);
    for (int a = sig.first[sig.nin + o]; a < sig.first[sig.nin + o + 1]; a++)
      count *= size[sig.size[a]];
    used += count;
  }
  for (int more = 1; more;) {
    for (int k = 0; k < sig.nin; k++)
      orc_block(env, eini_operator_operand(s, k), f->dtype, block[k], x);
    f->fn(size, in, out, f->user);
    orc_block(env, -1, f->dtype, block[sig.nin], x);
    more = 0;
    for (int i = s->nfree - 1; i >= 0 && !more; i--) {
      int axis[32], own = 0;
      const int n = orc_axes(s, -1, axis);
      for (int a = 0; a < n; a++) own |= axis[a] == i;
      if (own) continue;
      if (++x[i] < s->index[i].extent) more = 1;
      else x[i] = 0;
    }
  }
  for (int k = 0; k <= sig.nin; k++) free(block[k]);
  free(x);
}

static void orc_stmt(orc_env *env) {
  const eini_stmt *s = env->s;
  if (s->fold == EIN_FOLD_BLOCK) {
    orc_operator(env);
    return;
  }
  const eini_tensor *out = &env->g->tensor[s->out];
  int64_t *x = (int64_t *)orc_alloc(s->nindex, sizeof *x), size = 1, n;
  ein_dtype t = orc_wide((ein_dtype)s->expr.node[s->expr.n - 1].dtype), ft = t;
  if (s->rest == EIN_REST_ZERO) {
    memset(env->data[s->out], 0, (size_t)orc_count(out) * orc_size(out->dtype));
  }
  if (s->fold != EIN_FOLD_NONE) ft = orc_fold_type(env->g, s, t);
  for (int k = s->nfree; k < s->nindex; k++) size *= s->index[k].extent;
  orc_val *list = (orc_val *)orc_alloc(size, sizeof *list);
  env->val = (orc_val *)orc_alloc(s->expr.n, sizeof *env->val);
  env->x = x;
  int more = !orc_empty(s->index, 0, s->nfree);
  while (more) {
    int inner = !orc_empty(s->index, s->nfree, s->nindex);
    for (n = 0; inner; n++) {
      for (int64_t k = 0; k < s->expr.n; k++) env->val[k] = orc_node(env, &s->expr.node[k]);
      list[n] = env->val[s->expr.n - 1];
      if (s->fold != EIN_FOLD_NONE) list[n] = orc_cast(list[n], t, ft);
      inner = orc_next(s->index, s->nfree, s->nindex, x);
    }
    orc_write(env, orc_fold(env, ft, list, n), orc_fold_result(s, ft));
    more = orc_next(s->index, 0, s->nfree, x);
  }
  free(env->val);
  free(list);
  free(x);
}

static void orc_eval_err(const ein_graph *g, void *const *data, double *const *err,
                         const ein_scalar *param) {
  orc_env env;
  memset(&env, 0, sizeof env);
  env.g = g;
  env.data = data;
  env.err = err;
  env.param = param;
  for (int64_t k = 0; k < g->nstmt; k++) {
    env.s = &g->stmt[k];
    orc_stmt(&env);
  }
}

EINI_UNUSED static void orc_eval(const ein_graph *g, void *const *data, const ein_scalar *param) {
  orc_eval_err(g, data, NULL, param);
}

// ---- comparing and filling ----------------------------------------------------------------------

static int orc_close(double got, double want, double tol) {
  if (!(tol < HUGE_VAL)) return 1;
  if (want != want) return got != got;
  if (want - want != 0) return got == want;
  return fabs(got - want) <= tol;
}

static void orc_print(ein_dtype t, orc_val v) {
  if (!orc_is_float(t)) printf("%lld", (long long)v.i);
  else if (orc_is_complex(t)) printf("(%.17g, %.17g)", v.re, v.im);
  else printf("%.17g", v.re);
}

static int orc_mismatch(ein_dtype t, int64_t k, orc_val got, orc_val want, double tol) {
  printf("  element %lld (%s): got ", (long long)k, ein_dtype_name(t));
  orc_print(t, got);
  printf(", want ");
  orc_print(t, want);
  printf(" within %.3g\n", tol);
  return 0;
}

// 1 if equal within the bounds err[k] (NULL: exactly). Prints the first mismatch.
EINI_UNUSED static int orc_compare_err(ein_dtype t, int64_t n, const void *got, const void *want,
                                       const double *err) {
  for (int64_t k = 0; k < n; k++) {
    orc_val a = orc_load(t, got, k), b = orc_load(t, want, k);
    double tol = err == NULL ? 0 : err[k];
    int same = orc_is_float(t) ? orc_close(a.re, b.re, tol) && orc_close(a.im, b.im, tol)
                               : a.i == b.i || tol == HUGE_VAL;
    // One step of a 16-bit storage format: the value may sit on the other side of a tie.
    if (!same && (t == EIN_F16 || t == EIN_BF16) && tol > 0) {
      same = orc_close(a.re, b.re, tol + orc_eps(t) * fabs(b.re) + orc_tiny(t) * orc_eps(t));
    }
    if (!same) return orc_mismatch(t, k, a, b, tol);
  }
  return 1;
}

// 1 if equal within eps * (4 + terms) * the largest finite magnitude (at least that of the element
// itself); terms 0: bit for bit but for NaN. Integers and bool are always exact.
EINI_UNUSED static int orc_compare(ein_dtype t, int64_t n, const void *got, const void *want,
                                   double terms) {
  double top = 0;
  for (int64_t k = 0; orc_is_float(t) && k < n; k++) {
    orc_val b = orc_load(t, want, k);
    double m = hypot(b.re, b.im);
    if (m - m == 0 && m > top) top = m;
  }
  double tol = terms <= 0 ? 0 : (4 + terms) * orc_eps(t) * (top > 0 ? top : 1);
  for (int64_t k = 0; k < n; k++) {
    orc_val a = orc_load(t, got, k), b = orc_load(t, want, k);
    int same = orc_is_float(t) ? orc_close(a.re, b.re, tol) && orc_close(a.im, b.im, tol)
                               : a.i == b.i;
    if (!same) return orc_mismatch(t, k, a, b, tol);
  }
  return 1;
}

static uint64_t orc_hash(uint64_t seed, uint64_t k) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + k * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Floats: multiples of 1/16 in [-2, 2]; integers: -4 .. 4 (u8: 0 .. 8); bool: 0 and 1.
EINI_UNUSED static void orc_random_fill(ein_dtype t, int64_t n, void *buf, uint64_t seed) {
  for (int64_t k = 0; k < n; k++) {
    uint64_t h = orc_hash(seed, (uint64_t)k);
    orc_val v = orc_float((double)(h % 65) / 16 - 2, (double)(h / 65 % 65) / 16 - 2);
    v.i = t == EIN_BOOL ? (int64_t)(h >> 40 & 1) : (int64_t)(h % 9) - (t == EIN_U8 ? 0 : 4);
    orc_put(t, buf, k, v);
  }
}

// What dtypes of floats hold besides: a subset of these, drawn for the buffer, at a share of the
// places that is drawn too, now and then at all of them.
static double orc_special(ein_dtype t, uint64_t h) {
  static const double list[8] = {0.0, -0.0, 0, 0, -HUGE_VAL, HUGE_VAL, 0, -0.0};
  double least = orc_tiny(t) * orc_eps(t);  // the least subnormal; 1 .. 1023/1024 of orc_tiny
  if (h % 8 == 2 || h % 8 == 3) {
    double x = least * rint((double)(h >> 8 & 1023) / 1024 / orc_eps(t));
    return h % 8 == 2 ? x : -x;
  }
  return h % 8 == 6 ? nan("") : list[h % 8];
}

EINI_UNUSED static void orc_special_fill(ein_dtype t, int64_t n, void *buf, uint64_t seed) {
  static const unsigned kinds[] = {0xff, 0xff, 0x10, 0x20, 0x30, 0x40, 0x8f, 0x4c};  // of h % 8
  static const unsigned shares[] = {2, 8, 32, 64, 128, 256};  // of 256
  uint64_t how = orc_hash(seed, UINT64_MAX);
  unsigned kind = kinds[how % 8], share = shares[(how >> 8) % 6];
  orc_random_fill(t, n, buf, seed);
  for (int64_t k = 0; k < n && orc_is_float(t); k++) {
    uint64_t h = orc_hash(seed ^ 0x5bd1e995u, (uint64_t)k);
    orc_val v = orc_load(t, buf, k);
    for (int part = 0; part < 2; part++, h = orc_hash(h, 1)) {
      uint64_t pick = h >> 32;
      if ((h & 255) >= share) continue;
      while (!(kind >> pick % 8 & 1)) pick++;
      *(part ? &v.im : &v.re) = orc_special(t, pick);
    }
    orc_put(t, buf, k, v);
  }
}

#endif  // ORACLE_H
