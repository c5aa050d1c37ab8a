// SPDX-License-Identifier: MIT
//
// command_text.h - values and arrays as text and JSON.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// ================================================================================================
// Values as text.
// ================================================================================================

typedef struct number {
  double re, im;
  int64_t i;  // integers and bools, exactly
} number;

static double small_float(unsigned bits, int mant, int bias) {
  int e = (int)(bits >> mant) & (2 * bias + 1);
  double m = (double)(bits & ((1u << mant) - 1)), s = bits >> 15 ? -1.0 : 1.0;
  if (e == 2 * bias + 1) return m == 0 ? s * HUGE_VAL : NAN;
  if (e > 0) m += (double)(1u << mant);
  return s * ldexp(m, (e > 0 ? e : 1) - bias - mant);
}

static number element(ein_dtype t, const void *p) {
  number x = {0, 0, 0};
  float f[2];
  double d[2];
  switch (t) {
    case EIN_BOOL: x.i = *(const uint8_t *)p != 0; break;
    case EIN_U8: x.i = *(const uint8_t *)p; break;
    case EIN_I8: x.i = *(const int8_t *)p; break;
    case EIN_I16: x.i = *(const int16_t *)p; break;
    case EIN_I32: x.i = *(const int32_t *)p; break;
    case EIN_I64: x.i = *(const int64_t *)p; break;
    case EIN_F16: x.re = small_float(*(const uint16_t *)p, 10, 15); return x;
    case EIN_BF16: x.re = small_float(*(const uint16_t *)p, 7, 127); return x;
    case EIN_F32: x.re = (double)*(const float *)p; return x;
    case EIN_F64: x.re = *(const double *)p; return x;
    case EIN_C64:
      memcpy(f, p, sizeof f);
      x.re = (double)f[0];
      x.im = (double)f[1];
      return x;
    case EIN_C128:
      memcpy(d, p, sizeof d);
      x.re = d[0];
      x.im = d[1];
      return x;
    default: return x;
  }
  x.re = (double)x.i;
  return x;
}

static int is_complex(ein_dtype t) { return t == EIN_C64 || t == EIN_C128; }
static int is_float(ein_dtype t) { return t >= EIN_F16; }

// Bits of the significand, and the exponent of the least positive value.
static int precision(ein_dtype t, int *least) {
  *least = t == EIN_F16 ? -24 : t == EIN_BF16 ? -133 : t == EIN_F32 || t == EIN_C64 ? -149 : -1074;
  return t == EIN_F16 ? 11 : t == EIN_BF16 ? 8 : t == EIN_F32 || t == EIN_C64 ? 24 : 53;
}

// The shortest decimal that reads back as x in its dtype.
static void put_real(ein_dtype t, double x, char *buf, size_t size) {
  int least, bits = precision(t, &least), e;
  if (x - x != 0) {
    snprintf(buf, size, "%s", x != x ? "nan" : x > 0 ? "inf" : "-inf");
    return;
  }
  double m = fabs(frexp(x, &e));
  int subnormal = e - bits < least;
  double ulp = ldexp(1.0, subnormal ? least : e - bits);
  // Fewer digits than surely fit need no trial, except where precision is gradual.
  int digits = bits == 53 && !subnormal ? 15 : bits == 24 && !subnormal ? 6 : 1;
  for (; digits <= 17; digits++) {
    snprintf(buf, size, "%.*g", digits, x);
    double y = strtod(buf, NULL), off = fabs(y - x);
    if (y == x) return;
    int closer = m == 0.5 && fabs(y) < fabs(x) && !subnormal;  // below a power of two
    if (bits < 53 && off < (closer ? ulp / 4 : ulp / 2)) return;
  }
}

static void put_value(ein_dtype t, const void *p, int json, char *buf, size_t size) {
  number x = element(t, p);
  char re[40], im[40];
  if (t == EIN_BOOL) {
    snprintf(buf, size, "%s", json ? (x.i ? "true" : "false") : x.i ? "True" : "False");
  } else if (!is_float(t)) {
    snprintf(buf, size, "%" PRId64, x.i);
  } else {
    put_real(t, x.re, re, sizeof re);
    put_real(t, x.im, im, sizeof im);
    if (json && x.re - x.re != 0) snprintf(re, sizeof re, "null");
    if (json && x.im - x.im != 0) snprintf(im, sizeof im, "null");
    if (!is_complex(t)) snprintf(buf, size, "%s", re);
    else if (json) snprintf(buf, size, "[%s, %s]", re, im);
    else snprintf(buf, size, "(%s%s%sj)", re, im[0] == '-' ? "" : "+", im);
  }
}

typedef struct printer {
  const ein_ztensor *v;
  int json, edge;  // edge: elements shown at each end of a long axis; 0: all
  int width;       // of a column
} printer;

#define EDGE 3
#define SUMMARY 1000  // more elements than these are summarised

static void print_axis(printer *p, int axis, const char *at) {
  char buf[96];
  const ein_ztensor *v = p->v;
  if (axis == v->rank) {
    put_value(v->dtype, at, p->json, buf, sizeof buf);
    printf("%*s", p->width, buf);
    return;
  }
  int64_t n = v->shape[axis], step = v->strides[axis] * (int64_t)ein_dtype_size(v->dtype);
  int last = axis == v->rank - 1;
  putchar('[');
  for (int64_t i = 0; i < n; i++) {
    int gap = p->edge > 0 && n > 2 * p->edge && i == p->edge;
    if (i > 0 && p->json) fputs(", ", stdout);
    if (i > 0 && !p->json && last) putchar(' ');
    for (int k = axis; i > 0 && !p->json && k < v->rank - 1; k++) putchar('\n');
    if (i > 0 && !p->json && !last) printf("%*s", axis + 1, "");
    if (gap) {
      fputs("...", stdout);
      i = n - p->edge - 1;
      continue;
    }
    print_axis(p, axis + 1, at + i * step);
  }
  putchar(']');
}

// The widest value among those that print_axis shows.
static int measure(const printer *p, int axis, const char *at) {
  char buf[96];
  const ein_ztensor *v = p->v;
  if (axis == v->rank) {
    put_value(v->dtype, at, 0, buf, sizeof buf);
    return (int)strlen(buf);
  }
  int64_t n = v->shape[axis], step = v->strides[axis] * (int64_t)ein_dtype_size(v->dtype);
  int width = 0;
  for (int64_t i = 0; i < n; i++) {
    if (p->edge > 0 && n > 2 * p->edge && i == p->edge) i = n - p->edge;
    int w = measure(p, axis + 1, at + i * step);
    if (w > width) width = w;
  }
  return width;
}

static void put_json_string(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') printf("\\%c", *s);
    else if ((unsigned char)*s < 32) printf("\\u%04x", (unsigned)*s);
    else putchar(*s);
  }
  putchar('"');
}

// A number of JSON: what is not finite is null.
static void put_number(double v) {
  if (v - v != 0) fputs("null", stdout);
  else printf("%.17g", v);
}

// A member that follows another one.
static void put_member(const char *name, double v) {
  printf(", \"%s\": ", name);
  put_number(v);
}

static void print_array(const array *a, int json) {
  printer p;
  p.v = &a->v;
  p.json = json;
  p.edge = !json && given(O_FULL) == NULL && count_of(a) > SUMMARY ? EDGE : 0;
  p.width = 0;
  if (json) {
    printf("{\"dtype\": \"%s\", \"shape\": [", ein_dtype_name(a->v.dtype));
    for (int k = 0; k < a->v.rank; k++) printf("%s%" PRId64, k > 0 ? ", " : "", a->v.shape[k]);
    fputs("], \"data\": ", stdout);
    print_axis(&p, 0, (const char *)a->v.data);
    putchar('}');
  } else if (a->nbytes == 0) {
    fputs("[]\n", stdout);
  } else {
    p.width = measure(&p, 0, (const char *)a->v.data);
    print_axis(&p, 0, (const char *)a->v.data);
    putchar('\n');
  }
}
