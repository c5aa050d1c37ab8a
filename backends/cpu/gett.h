// ================================================================================================
// >>gett  contractions as products of packed blocks
// One contraction as a matrix product over blocks that are boxes in index space. The side that
// holds the unit stride of the output lies along vectors ("V"), the other is broadcast ("U").
// ================================================================================================

//   for each box of U, of K, of V:   pack both into panels [k][lane], tables say from where;
//     for each panel of V, of U:     a tile of the output in registers, over all k of the box;
//                                    stored in place, or through a buffer and then to its layout
//
// A box holds some of the index along which an operand is contiguous and some of the index along
// which the output is, so reads and writes use whole lines whatever the order of the indices.
// Complex problems run on the real tiles: V holds (re, im) as two lanes, U as two columns; what
// comes out are the sums of v*re(u) and v*im(u), put together when they leave the buffer.
//
// Part of a problem: the linear index of m (n) is cut at multiples of unit; the i-th stretch of
// unit elements stands for the i-th box, in the order of eini_gett_box.

#define EINI_GETT_NONE

// How a tile leaves the registers: stored, added to what is there, past the caches.
enum { EINI_GETT_STORE, EINI_GETT_ADD, EINI_GETT_STREAM };
// Steps in which lines of the output come from memory; what marks a tile that asks for them.
enum { EINI_GETT_LATE = 128, EINI_GETT_LATE_TILE = 256 };
enum { EINI_GETT_COLUMNS = 32 };   // of U in a tile at most

// A register tile: nv vectors of V times nu columns of U over k. V steps by sv from k to k + 1, U
// by uk; columns of U lie us apart. Row j, vector i goes to dst + uoff[j] + voff[i] (elements).
// Each k asks for one line that a later block needs: soon_base + *soon, then soon += soon_step. The
// lines that are added to are asked for when `late` steps are left; 0: not. Such tiles are whole,
// of packed panels of U (uk = nu, us = 1), which leaves registers for it.
typedef struct eini_gett_tile_arg {
  int nv, nu, how;
  int soon_step;
  uintptr_t soon_base;
  const int64_t *soon;         // bytes
  int64_t k, late, sv, uk, us;
  const void *v, *u;
  void *dst;
  const int64_t *uoff, *voff;
  const unsigned *lanes;       // of each vector those that are streamed; ~0: the whole vector
} eini_gett_tile_arg;

typedef void (*eini_gett_tile_fn)(const eini_gett_tile_arg *a);

// Plain C: four scalars. A holds the type sums and products are formed in (unsigned: they wrap).
#define EINI_GETT_PLAIN(P, T, A)                                                                 \
  typedef struct P##V { T x[4]; } P##V;                                                          \
  EINI_INLINE P##V P##LOAD(const T *p) {                                                    \
    const P##V r = {{p[0], p[1], p[2], p[3]}};                                                   \
    return r;                                                                                    \
  }                                                                                              \
  EINI_INLINE void P##STORE(T *p, P##V r) {                                                 \
    p[0] = r.x[0], p[1] = r.x[1], p[2] = r.x[2], p[3] = r.x[3];                                  \
  }                                                                                              \
  EINI_INLINE P##V P##SET(T x) {                                                            \
    const P##V r = {{x, x, x, x}};                                                               \
    return r;                                                                                    \
  }                                                                                              \
  EINI_GETT_PLAIN_OP(P, T, ADD, (T)((A)a.x[i] + (A)b.x[i]))                                      \
  EINI_GETT_PLAIN_OP(P, T, SUB, (T)((A)a.x[i] - (A)b.x[i]))                                      \
  EINI_GETT_PLAIN_OP(P, T, MUL, (T)((A)a.x[i] * (A)b.x[i]))                                      \
  EINI_GETT_PLAIN_OP(P, T, MIN, a.x[i] < b.x[i] ? a.x[i] : b.x[i])                               \
  EINI_GETT_PLAIN_OP(P, T, MAX, a.x[i] > b.x[i] ? a.x[i] : b.x[i])                               \
  EINI_GETT_PLAIN_OP(P, T, KEEP, a.x[i] == a.x[i] ? b.x[i] : a.x[i])
#define EINI_GETT_PLAIN_OP(P, T, NAME, e)                                                        \
  EINI_INLINE P##V P##NAME(P##V a, P##V b) {                                                \
    P##V r;                                                                                      \
    int i = 0;                                                                                   \
    r.x[0] = e, i = 1;                                                                           \
    r.x[1] = e, i = 2;                                                                           \
    r.x[2] = e, i = 3;                                                                           \
    r.x[3] = e;                                                                                  \
    return r;                                                                                    \
  }
EINI_GETT_PLAIN(EINI_GETT_PD_, double, double)
EINI_GETT_PLAIN(EINI_GETT_PS_, float, float)
EINI_GETT_PLAIN(EINI_GETT_PL_, int64_t, uint64_t)
EINI_GETT_PLAIN(EINI_GETT_PI_, int32_t, uint32_t)
EINI_GETT_PLAIN(EINI_GETT_PB_, unsigned char, unsigned)
#undef EINI_GETT_PLAIN
#undef EINI_GETT_PLAIN_OP
#define EINI_GETT_PD_T double
#define EINI_GETT_PS_T float
#define EINI_GETT_PL_T int64_t
#define EINI_GETT_PI_T int32_t
#define EINI_GETT_PB_T unsigned char
#define EINI_GETT_PD_W 4
#define EINI_GETT_PS_W 4
#define EINI_GETT_PL_W 4
#define EINI_GETT_PI_W 4
#define EINI_GETT_PB_W 4
#define EINI_GETT_PD_STREAM(p, x, m) EINI_GETT_PD_STORE(p, x)
#define EINI_GETT_PS_STREAM(p, x, m) EINI_GETT_PS_STORE(p, x)
#define EINI_GETT_PL_STREAM(p, x, m) EINI_GETT_PL_STORE(p, x)
#define EINI_GETT_PI_STREAM(p, x, m) EINI_GETT_PI_STORE(p, x)
#define EINI_GETT_PB_STREAM(p, x, m) EINI_GETT_PB_STORE(p, x)
#define EINI_GETT_PLAIN_ABS(X, a) X##MAX(a, X##SUB(X##SET(0), a))
#define EINI_GETT_PD_ABS(a) EINI_GETT_PLAIN_ABS(EINI_GETT_PD_, a)
#define EINI_GETT_PS_ABS(a) EINI_GETT_PLAIN_ABS(EINI_GETT_PS_, a)
#define EINI_GETT_PL_ABS(a) EINI_GETT_PLAIN_ABS(EINI_GETT_PL_, a)
#define EINI_GETT_PI_ABS(a) EINI_GETT_PLAIN_ABS(EINI_GETT_PI_, a)
#define EINI_GETT_PD_FMA(a, b, c) EINI_GETT_PD_ADD(c, EINI_GETT_PD_MUL(a, b))
#define EINI_GETT_PS_FMA(a, b, c) EINI_GETT_PS_ADD(c, EINI_GETT_PS_MUL(a, b))
#define EINI_GETT_PL_FMA(a, b, c) EINI_GETT_PL_ADD(c, EINI_GETT_PL_MUL(a, b))
#define EINI_GETT_PI_FMA(a, b, c) EINI_GETT_PI_ADD(c, EINI_GETT_PI_MUL(a, b))

// The pairs: one step of the fold, and two folds in one. KEEP: what is NaN already stays so.
// min and max give their second argument when one is NaN.
#define EINI_GETT_SUM_MUL(X, c, v, b) X##FMA(v, b, c)
#define EINI_GETT_MIN_ADD(X, c, v, b) X##KEEP(c, X##MIN(c, X##ADD(v, b)))
#define EINI_GETT_MAX_ADD(X, c, v, b) X##KEEP(c, X##MAX(c, X##ADD(v, b)))
#define EINI_GETT_ANY_AND(X, c, v, b) X##MAX(c, X##MIN(v, b))
#define EINI_GETT_SUM_SQDIFF(X, c, v, b) X##FMA(X##SUB(v, b), X##SUB(v, b), c)
#define EINI_GETT_SUM_ABSDIFF(X, c, v, b) X##ADD(c, X##ABS(X##SUB(v, b)))
#define EINI_GETT_MAX_ABSDIFF(X, c, v, b) X##KEEP(c, X##MAX(c, X##ABS(X##SUB(v, b))))
#define EINI_GETT_FOLD_SUM(X, c, d) X##ADD(d, c)
#define EINI_GETT_FOLD_MIN(X, c, d) X##KEEP(d, X##MIN(d, c))
#define EINI_GETT_FOLD_MAX(X, c, d) X##KEEP(d, X##MAX(d, c))

#define EINI_GETT_STEP(X, OP, j, p)                                              \
  if (nu > j) {                                                                  \
    const X##V b = X##SET(p);                                                    \
    c##j##0 = OP(X, c##j##0, v0, b);                                             \
    if (nv > 1) c##j##1 = OP(X, c##j##1, v1, b);                                 \
    if (nv > 2) c##j##2 = OP(X, c##j##2, v2, b);                                 \
  }
#define EINI_GETT_ROW(X, OP)                                                     \
  EINI_GETT_STEP(X, OP, 0, u0[0]) EINI_GETT_STEP(X, OP, 1, u0[us])               \
  EINI_GETT_STEP(X, OP, 2, u0[2 * us]) EINI_GETT_STEP(X, OP, 3, u3[0])           \
  EINI_GETT_STEP(X, OP, 4, u3[us]) EINI_GETT_STEP(X, OP, 5, u3[2 * us])          \
  EINI_GETT_STEP(X, OP, 6, u6[0]) EINI_GETT_STEP(X, OP, 7, u6[us])
// All that is there is taken before anything is stored: a load that looks like it overlaps a store
// (the same place in a page) would wait for it.
#define EINI_GETT_TAKE(X, FOLD, j)                                               \
  if (nu > j) {                                                                  \
    const X##T *d = dst + a->uoff[j];                                            \
    c##j##0 = FOLD(X, c##j##0, X##LOAD(d + o0));                                 \
    if (nv > 1) c##j##1 = FOLD(X, c##j##1, X##LOAD(d + o1));                     \
    if (nv > 2) c##j##2 = FOLD(X, c##j##2, X##LOAD(d + o2));                     \
  }
#define EINI_GETT_LEAVE(X, j)                                                    \
  if (nu > j) {                                                                  \
    X##T *d = dst + a->uoff[j];                                                  \
    if (how == EINI_GETT_STREAM) {                                               \
      X##STREAM(d + o0, c##j##0, a->lanes[0]);                                   \
      if (nv > 1) X##STREAM(d + o1, c##j##1, a->lanes[1]);                       \
      if (nv > 2) X##STREAM(d + o2, c##j##2, a->lanes[2]);                       \
    } else {                                                                     \
      X##STORE(d + o0, c##j##0);                                                 \
      if (nv > 1) X##STORE(d + o1, c##j##1);                                     \
      if (nv > 2) X##STORE(d + o2, c##j##2);                                     \
    }                                                                            \
  }
#define EINI_GETT_ACC(X, j) X##V c##j##0 = zero, c##j##1 = zero, c##j##2 = zero;

#define EINI_GETT_FIRST(X, c, v, b) X##ADD(v, b)

// HEAD 1: panels begin with a row of V and one of U, of which sums begin as v + u.
#define EINI_GETT_TILE(NAME, ATTR, X, OP, FOLD, INIT, HEAD)                      \
  ATTR EINI_INLINE void NAME##_body(const int nv, const int nu, const int late,  \
                                    const eini_gett_tile_arg *a) {               \
    const X##V zero = X##SET(INIT);                                              \
    EINI_GETT_ACC(X, 0) EINI_GETT_ACC(X, 1) EINI_GETT_ACC(X, 2)                  \
    EINI_GETT_ACC(X, 3) EINI_GETT_ACC(X, 4) EINI_GETT_ACC(X, 5)                  \
    EINI_GETT_ACC(X, 6) EINI_GETT_ACC(X, 7)                                      \
    const int64_t sv = a->sv, uk = late ? nu : a->uk, us = late ? 1 : a->us;     \
    const X##T *v = (const X##T *)a->v, *u0 = (const X##T *)a->u;                \
    const X##T *u3 = u0 + 3 * us, *u6 = u0 + 6 * us;                             \
    const int64_t *soon = a->soon, soon_step = a->soon_step;                     \
    const uintptr_t soon_base = a->soon_base;                                    \
    if (HEAD) {                                                                  \
      const X##V v0 = X##LOAD(v), v1 = nv > 1 ? X##LOAD(v + X##W) : v0,          \
                 v2 = nv > 2 ? X##LOAD(v + 2 * X##W) : v0;                       \
      (void)v1, (void)v2;                                                        \
      EINI_GETT_ROW(X, EINI_GETT_FIRST)                                          \
      v += sv, u0 += uk, u3 += uk, u6 += uk;                                     \
    }                                                                            \
    for (int64_t left = late ? a->late : 0, k = a->k - left;; k = left, left = 0) {\
      for (; k > 0; k--) {                                                       \
        EINI_FETCH2(soon_base + (uintptr_t)*soon);                               \
        soon += soon_step;                                                       \
        const X##V v0 = X##LOAD(v), v1 = nv > 1 ? X##LOAD(v + X##W) : v0,        \
                   v2 = nv > 2 ? X##LOAD(v + 2 * X##W) : v0;                     \
        (void)v1, (void)v2;                                                      \
        EINI_GETT_ROW(X, OP)                                                     \
        v += sv, u0 += uk, u3 += uk, u6 += uk;                                   \
      }                                                                          \
      if (!late || left == 0) break;                                             \
      for (int j = 0; j < nu; j++) {                                             \
        const X##T *d = (const X##T *)a->dst + a->uoff[j];                       \
        for (int i = 0; i < nv; i++) EINI_FETCH(d + a->voff[i]);                 \
        EINI_FETCH(d + a->voff[nv - 1] + X##W - 1);                              \
      }                                                                          \
    }                                                                            \
    X##T *dst = (X##T *)a->dst;                                                  \
    const int how = a->how;                                                      \
    const int64_t o0 = a->voff[0], o1 = nv > 1 ? a->voff[1] : 0,                 \
                  o2 = nv > 2 ? a->voff[2] : 0;                                  \
    if (how == EINI_GETT_ADD) {                                                  \
      EINI_GETT_TAKE(X, FOLD, 0) EINI_GETT_TAKE(X, FOLD, 1)                      \
      EINI_GETT_TAKE(X, FOLD, 2) EINI_GETT_TAKE(X, FOLD, 3)                      \
      EINI_GETT_TAKE(X, FOLD, 4) EINI_GETT_TAKE(X, FOLD, 5)                      \
      EINI_GETT_TAKE(X, FOLD, 6) EINI_GETT_TAKE(X, FOLD, 7)                      \
    }                                                                            \
    EINI_GETT_LEAVE(X, 0) EINI_GETT_LEAVE(X, 1) EINI_GETT_LEAVE(X, 2)            \
    EINI_GETT_LEAVE(X, 3) EINI_GETT_LEAVE(X, 4) EINI_GETT_LEAVE(X, 5)            \
    EINI_GETT_LEAVE(X, 6) EINI_GETT_LEAVE(X, 7)                                  \
  }

#define EINI_GETT_4(NAME, nv)                                                    \
  case nv * 16 + 1: NAME##_body(nv, 1, 0, a); break;                                \
  case nv * 16 + 2: NAME##_body(nv, 2, 0, a); break;                                \
  case nv * 16 + 3: NAME##_body(nv, 3, 0, a); break;                                \
  case nv * 16 + 4: NAME##_body(nv, 4, 0, a); break;
#define EINI_GETT_8(NAME, nv)                                                    \
  case nv * 16 + 5: NAME##_body(nv, 5, 0, a); break;                                \
  case nv * 16 + 6: NAME##_body(nv, 6, 0, a); break;                                \
  case nv * 16 + 7: NAME##_body(nv, 7, 0, a); break;                                \
  case nv * 16 + 8: NAME##_body(nv, 8, 0, a); break;
#define EINI_GETT_ONLY(NAME, nv, nu)                                             \
  case nv * 16 + nu: NAME##_body(nv, nu, 0, a); break;
#define EINI_GETT_WITH_LATE(NAME, nv, nu)                                        \
  case EINI_GETT_LATE_TILE + nv * 16 + nu: NAME##_body(nv, nu, 1, a); break;
#define EINI_GETT_CASES_3X8(NAME)                                                \
  EINI_GETT_WITH_LATE(NAME, 3, 8)                                                \
  EINI_GETT_4(NAME, 1) EINI_GETT_4(NAME, 2) EINI_GETT_4(NAME, 3)                 \
  EINI_GETT_8(NAME, 1) EINI_GETT_8(NAME, 2) EINI_GETT_8(NAME, 3)
#define EINI_GETT_CASES_2X8(NAME)                                                \
  EINI_GETT_WITH_LATE(NAME, 2, 8)                                                \
  EINI_GETT_4(NAME, 1) EINI_GETT_4(NAME, 2) EINI_GETT_8(NAME, 1) EINI_GETT_8(NAME, 2)
#define EINI_GETT_CASES_3X4(NAME)                                                \
  EINI_GETT_WITH_LATE(NAME, 3, 4)                                                \
  EINI_GETT_4(NAME, 1) EINI_GETT_4(NAME, 2) EINI_GETT_4(NAME, 3)
#define EINI_GETT_CASES_1X4(NAME) EINI_GETT_WITH_LATE(NAME, 1, 4) EINI_GETT_4(NAME, 1)
// Tiles of integers and of narrow types come with four or all columns, tiles of the other pairs
// with all: what is too much stays in the buffer.
#define EINI_GETT_FEW_3X8(NAME)                                                  \
  EINI_GETT_ONLY(NAME, 1, 4) EINI_GETT_ONLY(NAME, 2, 4) EINI_GETT_ONLY(NAME, 3, 4) \
  EINI_GETT_FULL_3X8(NAME)
#define EINI_GETT_FEW_2X8(NAME)                                                  \
  EINI_GETT_ONLY(NAME, 1, 4) EINI_GETT_ONLY(NAME, 2, 4) EINI_GETT_FULL_2X8(NAME)
#define EINI_GETT_FEW_3X4(NAME) EINI_GETT_FULL_3X4(NAME)
#define EINI_GETT_FULL_3X8(NAME)                                                 \
  EINI_GETT_ONLY(NAME, 1, 8) EINI_GETT_ONLY(NAME, 2, 8) EINI_GETT_ONLY(NAME, 3, 8)
#define EINI_GETT_FULL_2X8(NAME) EINI_GETT_ONLY(NAME, 1, 8) EINI_GETT_ONLY(NAME, 2, 8)
#define EINI_GETT_FULL_3X4(NAME)                                                 \
  EINI_GETT_ONLY(NAME, 1, 4) EINI_GETT_ONLY(NAME, 2, 4) EINI_GETT_ONLY(NAME, 3, 4)
#define EINI_GETT_FULL_1X4(NAME) EINI_GETT_ONLY(NAME, 1, 4)
#define EINI_GETT_TILES(NAME, ATTR, X, OP, FOLD, INIT, CASES)                    \
  EINI_GETT_HEADED(NAME, ATTR, X, OP, FOLD, INIT, CASES, 0)
#define EINI_GETT_HEADED(NAME, ATTR, X, OP, FOLD, INIT, CASES, HEAD)             \
  EINI_GETT_TILE(NAME, ATTR, X, OP, FOLD, INIT, HEAD)                            \
  ATTR static void NAME(const eini_gett_tile_arg *a) {                           \
    switch ((a->late > 0 ? EINI_GETT_LATE_TILE : 0) + a->nv * 16 + a->nu) {      \
      CASES(NAME)                                                                \
      default: break;                                                            \
    }                                                                            \
  }
// d[i] = the fold of d[i] and s[i], which may be read on to the end of a vector. H: half a vector,
// where there is one, else X.
typedef void (*eini_gett_fold_fn)(int64_t n, void *d, const void *s);
#define EINI_GETT_FOLD(NAME, ATTR, X, H, FOLD)                                   \
  ATTR static void NAME(int64_t n, void *dv, const void *sv) {                   \
    X##T *d = (X##T *)dv, x[X##W] = {0};                                         \
    const X##T *s = (const X##T *)sv;                                            \
    for (; n >= X##W; n -= X##W, d += X##W, s += X##W)                           \
      X##STORE(d, FOLD(X, X##LOAD(s), X##LOAD(d)));                              \
    for (; n >= H##W; n -= H##W, d += H##W, s += H##W)                           \
      H##STORE(d, FOLD(H, H##LOAD(s), H##LOAD(d)));                              \
    if (n == 0) return;                                                          \
    memcpy(x, d, (size_t)n * sizeof *d);                                         \
    X##STORE(x, FOLD(X, X##LOAD(s), X##LOAD(x)));                                \
    memcpy(d, x, (size_t)n * sizeof *d);                                         \
  }
// d[i] *= *s. What is added to products keeps their signs.
#define EINI_GETT_SCALE(NAME, ATTR, X)                                           \
  ATTR static void NAME(int64_t n, void *dv, const void *sv) {                   \
    X##T *d = (X##T *)dv, x[X##W] = {0};                                         \
    const X##V s = X##SET(*(const X##T *)sv), zero = X##SET((X##T)-0.0);         \
    for (; n >= X##W; n -= X##W, d += X##W)                                      \
      X##STORE(d, X##FMA(X##LOAD(d), s, zero));                                  \
    if (n == 0) return;                                                          \
    memcpy(x, d, (size_t)n * sizeof *d);                                         \
    X##STORE(x, X##FMA(X##LOAD(x), s, zero));                                    \
    memcpy(d, x, (size_t)n * sizeof *d);                                         \
  }
#define EINI_GETT_FOLDS(N, ATTR, X, H)                                           \
  EINI_GETT_FOLD(N##_sum, ATTR, X, H, EINI_GETT_FOLD_SUM)                        \
  EINI_GETT_FOLD(N##_min, ATTR, X, H, EINI_GETT_FOLD_MIN)                        \
  EINI_GETT_FOLD(N##_max, ATTR, X, H, EINI_GETT_FOLD_MAX)
// All pairs of one floating type at one instruction set.
#define EINI_GETT_FLOATS(N, ATTR, X, H, SHAPE, BIG)                                               \
  EINI_GETT_FOLDS(N, ATTR, X, H)                                                                  \
  EINI_GETT_SCALE(N##_by, ATTR, X)                                                                \
  EINI_GETT_TILES(N##_sm, ATTR, X, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM, 0,                      \
                  EINI_GETT_CASES_##SHAPE)                                                        \
  EINI_GETT_TILES(N##_na, ATTR, X, EINI_GETT_MIN_ADD, EINI_GETT_FOLD_MIN, BIG,                    \
                  EINI_GETT_FULL_##SHAPE)                                                         \
  EINI_GETT_TILES(N##_xa, ATTR, X, EINI_GETT_MAX_ADD, EINI_GETT_FOLD_MAX, -BIG,                   \
                  EINI_GETT_FULL_##SHAPE)                                                         \
  EINI_GETT_TILES(N##_sq, ATTR, X, EINI_GETT_SUM_SQDIFF, EINI_GETT_FOLD_SUM, 0,                   \
                  EINI_GETT_FULL_##SHAPE)                                                         \
  EINI_GETT_TILES(N##_sd, ATTR, X, EINI_GETT_SUM_ABSDIFF, EINI_GETT_FOLD_SUM, 0,                  \
                  EINI_GETT_FULL_##SHAPE)                                                         \
  EINI_GETT_TILES(N##_xd, ATTR, X, EINI_GETT_MAX_ABSDIFF, EINI_GETT_FOLD_MAX, -BIG,               \
                  EINI_GETT_FULL_##SHAPE)
#define EINI_GETT_INTS(N, X, LOW, HIGH)                                                           \
  EINI_GETT_FOLDS(N, EINI_GETT_NONE, X, X)                                                        \
  EINI_GETT_TILES(N##_sm, EINI_GETT_NONE, X, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM, 0,            \
                  EINI_GETT_FULL_1X4)                                                             \
  EINI_GETT_TILES(N##_na, EINI_GETT_NONE, X, EINI_GETT_MIN_ADD, EINI_GETT_FOLD_MIN, HIGH,    \
                  EINI_GETT_FULL_1X4)                                                             \
  EINI_GETT_TILES(N##_xa, EINI_GETT_NONE, X, EINI_GETT_MAX_ADD, EINI_GETT_FOLD_MAX, LOW,     \
                  EINI_GETT_FULL_1X4)                                                             \
  EINI_GETT_TILES(N##_sq, EINI_GETT_NONE, X, EINI_GETT_SUM_SQDIFF, EINI_GETT_FOLD_SUM, 0,         \
                  EINI_GETT_FULL_1X4)                                                             \
  EINI_GETT_TILES(N##_sd, EINI_GETT_NONE, X, EINI_GETT_SUM_ABSDIFF, EINI_GETT_FOLD_SUM, 0,        \
                  EINI_GETT_FULL_1X4)                                                             \
  EINI_GETT_TILES(N##_xd, EINI_GETT_NONE, X, EINI_GETT_MAX_ABSDIFF, EINI_GETT_FOLD_MAX, LOW, \
                  EINI_GETT_FULL_1X4)

#if EINI_CPU_X86
EINI_GETT_FLOATS(eini_gett_zd, EINI_T512, EINI_ZD_, EINI_YD_, 3X8, (double)HUGE_VAL)
EINI_GETT_FLOATS(eini_gett_zs, EINI_T512, EINI_ZS_, EINI_YS_, 3X8, (float)HUGE_VAL)
EINI_GETT_FLOATS(eini_gett_yd, EINI_T256, EINI_YD_, EINI_YD_, 3X4, (double)HUGE_VAL)
EINI_GETT_FLOATS(eini_gett_ys, EINI_T256, EINI_YS_, EINI_YS_, 3X4, (float)HUGE_VAL)
// Integers: sums of products; the other pairs in plain C.
EINI_GETT_FOLD(eini_gett_zl_sum, EINI_T512, EINI_ZL_, EINI_ZL_, EINI_GETT_FOLD_SUM)
EINI_GETT_FOLD(eini_gett_zi_sum, EINI_T512, EINI_ZI_, EINI_YI_, EINI_GETT_FOLD_SUM)
EINI_GETT_FOLD(eini_gett_yi_sum, EINI_T256, EINI_YI_, EINI_YI_, EINI_GETT_FOLD_SUM)
EINI_GETT_TILES(eini_gett_zl, EINI_T512, EINI_ZL_, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM,
                0, EINI_GETT_FEW_3X8)
EINI_GETT_TILES(eini_gett_zi, EINI_T512, EINI_ZI_, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM,
                0, EINI_GETT_FEW_3X8)
EINI_GETT_TILES(eini_gett_yi, EINI_T256, EINI_YI_, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM,
                0, EINI_GETT_FEW_3X4)
#endif  // EINI_CPU_X86
#if EINI_CPU_NEON
EINI_GETT_FLOATS(eini_gett_nd, EINI_GETT_NONE, EINI_ND_, EINI_ND_, 2X8,
                 (double)HUGE_VAL)
EINI_GETT_FLOATS(eini_gett_ns, EINI_GETT_NONE, EINI_NS_, EINI_NS_, 2X8,
                 (float)HUGE_VAL)
EINI_GETT_FOLD(eini_gett_ni_sum, EINI_GETT_NONE, EINI_NI_, EINI_NI_, EINI_GETT_FOLD_SUM)
EINI_GETT_TILES(eini_gett_ni, EINI_GETT_NONE, EINI_NI_, EINI_GETT_SUM_MUL, EINI_GETT_FOLD_SUM,
                0, EINI_GETT_FEW_2X8)
#endif
EINI_GETT_FLOATS(eini_gett_pd, EINI_GETT_NONE, EINI_GETT_PD_, EINI_GETT_PD_, 1X4,
                 (double)HUGE_VAL)
EINI_GETT_FLOATS(eini_gett_ps, EINI_GETT_NONE, EINI_GETT_PS_, EINI_GETT_PS_, 1X4,
                 (float)HUGE_VAL)
EINI_GETT_INTS(eini_gett_pl, EINI_GETT_PL_, INT64_MIN, INT64_MAX)
EINI_GETT_INTS(eini_gett_pi, EINI_GETT_PI_, INT32_MIN, INT32_MAX)
EINI_GETT_FOLD(eini_gett_pb_max, EINI_GETT_NONE, EINI_GETT_PB_, EINI_GETT_PB_, EINI_GETT_FOLD_MAX)
EINI_GETT_TILES(eini_gett_pb_and, EINI_GETT_NONE, EINI_GETT_PB_, EINI_GETT_ANY_AND,
                EINI_GETT_FOLD_MAX, 0, EINI_GETT_FULL_1X4)
