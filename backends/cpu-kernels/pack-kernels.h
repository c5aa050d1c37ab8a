// ================================================================================================
// >>pack-kernels  the walk that packs a block for section gett
// Operands hold EINI_PACK_S, panels EINI_PACK_T: one value converted, or EINI_PACK_N of them that
// follow each other along k; where k ends within them the others are 0.
// ================================================================================================

// In what follows q counts T along k, c the offsets of its values. Narrow operands have a kind,
// EINI_PACK, with which names begin, and S; else both are T, the set's where it is not given.
// load_.. and run_.. load a granule, G lanes; save_.. and turn_.. of the set store and transpose.
// EINI_PACK_PLAIN: there are none of these.
#if EINI_KERNELS == EINI_KERNELS_PACK
#ifndef EINI_PACK_PLAIN
#define EINI_PACK_G (EINI_VBYTES * EINI_VW == 16 ? 16 / EINI_VBYTES : EINI_VBYTES * EINI_VW / 8)
#else
#define EINI_PACK_G (EINI_VBYTES < 8 ? 4 : 2)
#endif
#define EINI_PACK_NAME(name) EINI_CAT(EINI_CAT(name, EINI_PACK), EINI_X(TAG))
#define EINI_PACK_FN(name) EINI_PACK_NAME(eini_pack_##name##_)
#if EINI_PACK_N > 1
#define EINI_PACK_T int32_t
#define EINI_PACK_ONE(s, c, n) EINI_CAT(eini_one_, EINI_PACK)(s, c, n)
#define EINI_PACK_LOAD(s, c) EINI_PACK_NAME(eini_load_)(s, c)
#else
#define EINI_PACK_ONE(s, c, n) EINI_PACK_OF((s)[*(c)])
#define EINI_PACK_LOAD(s, c) EINI_PACK_NAME(eini_load_)(s)
#ifndef EINI_PACK_T
#define EINI_PACK_T EINI_VT
#endif
#ifdef EINI_PACK
#define EINI_PACK_OF(x) EINI_CAT(EINI_CAT(eini_, EINI_PACK), _load)(x)
#else
#define EINI_PACK
#define EINI_PACK_OF(x) (x)
#define EINI_PACK_S EINI_PACK_T
#endif
#endif  // EINI_PACK_N

// copy: G of T, from s + c[i] on. swap: from s + r[i] + c[..] on, transposed to d + o[i]; turn: the
// same where values follow each other along k in the operand, too. c is in s where N is 1.
#ifndef EINI_PACK_PLAIN
#define EINI_PACK_TURN EINI_CAT(eini_turn_, EINI_X(TAG))
#if EINI_PACK_G == 8
#define EINI_PACK_EACH(load) load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)
#elif EINI_PACK_G == 4
#define EINI_PACK_EACH(load) load(0), load(1), load(2), load(3)
#else
#define EINI_PACK_EACH(load) load(0), load(1)
#endif
EINI_VAT EINI_INLINE void EINI_PACK_FN(copy)(EINI_PACK_T *d, const EINI_PACK_S *s,
                                                 const int64_t *c) {
  (void)c;
  EINI_CAT(eini_save_, EINI_X(TAG))(d, EINI_PACK_LOAD(s, c));
}
EINI_VAT EINI_INLINE void EINI_PACK_FN(swap)(const EINI_PACK_S *s, const int64_t *r,
                                                 const int64_t *c, EINI_PACK_T *d,
                                                 const int64_t *o) {
#define EINI_PACK_ROW(i) EINI_PACK_LOAD(s + r[i], c)
  (void)c;
  EINI_PACK_TURN(EINI_PACK_EACH(EINI_PACK_ROW), d, o);
#undef EINI_PACK_ROW
}
#if EINI_PACK_N > 1
EINI_VAT EINI_INLINE void EINI_PACK_FN(turn)(const EINI_PACK_S *s, const int64_t *r,
                                                 EINI_PACK_T *d, const int64_t *o) {
#define EINI_PACK_ROW(i) EINI_PACK_NAME(eini_run_)(s + r[i])
  EINI_PACK_TURN(EINI_PACK_EACH(EINI_PACK_ROW), d, o);
#undef EINI_PACK_ROW
}
#endif
#undef EINI_PACK_EACH
#undef EINI_PACK_TURN
#else  // EINI_PACK_PLAIN
EINI_INLINE void EINI_PACK_FN(copy)(EINI_PACK_T *d, const EINI_PACK_S *s, const int64_t *c) {
  (void)c;
  d[0] = EINI_PACK_OF(s[0]), d[1] = EINI_PACK_OF(s[1]);
#if EINI_PACK_G > 2
  d[2] = EINI_PACK_OF(s[2]), d[3] = EINI_PACK_OF(s[3]);
#endif
}
EINI_INLINE void EINI_PACK_FN(swap)(const EINI_PACK_S *s, const int64_t *r, const int64_t *c,
                                    EINI_PACK_T *d, const int64_t *o) {
  (void)c;
  for (int i = 0; i < EINI_PACK_G; i++)
    for (int j = 0; j < EINI_PACK_G; j++) d[o[j] + i] = EINI_PACK_OF(s[r[i] + j]);
}
#endif  // EINI_PACK_PLAIN

// Asks for the lines at s + r[i]. Vectors may lie in two lines: the one where a row starts, or
// ends, is asked for besides those of its vectors.
EINI_INLINE void EINI_PACK_FN(ahead)(const EINI_PACK_S *s, const int64_t *r) {
  EINI_FETCH(s + r[0]), EINI_FETCH(s + r[1]);
#if EINI_PACK_G > 2
  EINI_FETCH(s + r[2]), EINI_FETCH(s + r[3]);
#endif
#if EINI_PACK_G > 4
  EINI_FETCH(s + r[4]), EINI_FETCH(s + r[5]), EINI_FETCH(s + r[6]), EINI_FETCH(s + r[7]);
#endif
}

#if EINI_PACK_N == 1
// n granules of rows, ss apart, turned to columns, ds apart: for section lanes. What is so far
// behind each row is asked for, unless that is 0.
EINI_UNUSED EINI_VAT static void EINI_PACK_FN(turned)(int64_t n, const void *src, const int64_t *r,
                                                      int64_t ss, void *dst, const int64_t *o,
                                                      int64_t ds, int64_t behind) {
  const EINI_PACK_S *s = (const EINI_PACK_S *)src;
  EINI_PACK_T *d = (EINI_PACK_T *)dst;
  for (; n > 0; n--, s += ss, d += ds) {
    EINI_PACK_FN(swap)(s, r, NULL, d, o);
    const uintptr_t then = (uintptr_t)s + (uintptr_t)behind * sizeof *s;
    if (behind != 0) EINI_PACK_FN(ahead)((const EINI_PACK_S *)then, r);
  }
}
#endif  // EINI_PACK_N

EINI_VAT static void EINI_PACK_FN(some)(const eini_gett_pack_arg *a, int64_t p, int64_t q,
                                            int64_t to, int64_t by) {
  const EINI_PACK_S *src = (const EINI_PACK_S *)a->src;
  EINI_PACK_T *d = (EINI_PACK_T *)a->dst + a->place[p / EINI_PACK_G];
  const int64_t *r = a->row + p;
  for (; q < to; q += by)
    for (int i = 0; i < EINI_PACK_G; i++)
      d[q * a->lanes + i] =
          EINI_PACK_ONE(src + r[i], a->col + q * EINI_PACK_N, a->nk - q * EINI_PACK_N);
}

// The next row is asked for: rows are often as far apart as pages, where prefetchers end.
EINI_VAT static void EINI_PACK_FN(rows)(const eini_gett_pack_arg *a) {
  const int64_t *place = a->place, *row = a->row;
  const int64_t ng = a->np / EINI_PACK_G, whole = a->nk / EINI_PACK_N;
  const unsigned char *flat = a->flat;
  for (int64_t q = 0; q < whole; q++) {
    const int64_t *c = a->col + q * EINI_PACK_N;
    const EINI_PACK_S *src = (const EINI_PACK_S *)a->src, *s = EINI_PACK_N == 1 ? src + *c : src;
    EINI_PACK_T *d = (EINI_PACK_T *)a->dst + q * a->lanes;
    const EINI_PACK_S *then = src + a->col[eini_min64((q + 1) * EINI_PACK_N, a->nk - 1)];
    for (int64_t g = 0; g < ng; g++) {
      EINI_FETCH(then + row[g * EINI_PACK_G]);
      if (flat[g]) EINI_PACK_FN(copy)(d + place[g], s + row[g * EINI_PACK_G], c);
      else
        for (int i = 0; i < EINI_PACK_G; i++)
          d[place[g] + i] = EINI_PACK_ONE(src + row[g * EINI_PACK_G + i], c, EINI_PACK_N);
    }
  }
  for (int64_t p = 0; EINI_PACK_N > 1 && p < a->np; p += EINI_PACK_G)
    EINI_PACK_FN(some)(a, p, whole, (a->nk + EINI_PACK_N - 1) / EINI_PACK_N, 1);
}

EINI_VAT static void EINI_PACK_FN(along)(const eini_gett_pack_arg *a) {
  const int run = EINI_PACK_N > 1 && a->step == 1;
  const int64_t along = run ? EINI_PACK_N : 1;
  const int64_t whole = a->count / along / EINI_PACK_G * EINI_PACK_G;
  const int64_t step = run || EINI_PACK_N == 1 ? a->step : a->step / EINI_PACK_N;
  const int64_t by = step * a->lanes, units = (a->count + along - 1) / along;
  int64_t o[EINI_PACK_G];
  for (int i = 0; i < EINI_PACK_G; i++) o[i] = i * by;
  for (int64_t p = 0; p < a->np; p += EINI_PACK_G)
    for (int64_t q0 = 0; q0 < a->nk; q0 += a->step * a->count)
      for (int64_t q = q0; q < q0 + a->step; q += EINI_PACK_N) {
        const int64_t *c = a->col + q, at = q / EINI_PACK_N;
        const EINI_PACK_S *s = (const EINI_PACK_S *)a->src + (EINI_PACK_N == 1 || run ? *c : 0);
        EINI_PACK_T *d = (EINI_PACK_T *)a->dst + a->place[p / EINI_PACK_G] + at * a->lanes;
        const int64_t *then = p + EINI_PACK_G < a->np ? a->row + p + EINI_PACK_G : a->row + p;
        EINI_PACK_FN(ahead)(s + (EINI_PACK_N == 1 || run ? 0 : *c), then);
        for (int64_t t = 0; t < whole; t += EINI_PACK_G) {
          EINI_PACK_FN(ahead)(s + (EINI_PACK_N == 1 || run ? 0 : *c) +
                              (t + EINI_PACK_G) * along - 1, then);
#if EINI_PACK_N > 1
          if (run) {
            EINI_PACK_FN(turn)(s + t * along, a->row + p, d + t * by, o);
            continue;
          }
#endif
          EINI_PACK_FN(swap)(s + t, a->row + p, c, d + t * by, o);
        }
#if EINI_PACK_N == 1
        if (whole < a->count && whole > 0) {  // the last granule ends with the run
          const int64_t t = a->count - EINI_PACK_G;
          EINI_PACK_FN(swap)(s + t, a->row + p, c, d + t * by, o);
          continue;
        }
#endif
        EINI_PACK_FN(some)(a, p, at + whole * step, at + units * step, step);
      }
}

// Rows are often so far apart that eight of them fill a set of the cache, so lines are asked for
// when those before them are done with, and no more than four of a row ahead. Columns of a run in
// whole granules, of which the last one ends with the run.
EINI_VAT static void EINI_PACK_FN(across_at)(const eini_gett_pack_arg *a, int64_t p,
                                                 int64_t t0, int64_t t1) {
  const int64_t ahead = eini_max64(256 / ((t1 - t0) * (int64_t)sizeof(EINI_PACK_S)), 1);
  int64_t o[8][EINI_PACK_G], from[8];
  int n = 0;
  for (int64_t t = t0; t < t1; t += EINI_PACK_G, n++) {
    from[n] = eini_min64(t, a->count - EINI_PACK_G);
    for (int i = 0; i < EINI_PACK_G; i++)
      o[n][i] = a->place[(p + a->across[from[n] + i]) / EINI_PACK_G];
  }
  for (int64_t q = 0; q < a->nk / EINI_PACK_N; q++) {
    const int64_t *c = a->col + q * EINI_PACK_N;
    const EINI_PACK_S *src = (const EINI_PACK_S *)a->src, *s = src + (EINI_PACK_N == 1 ? *c : 0);
    const EINI_PACK_S *then = src + a->col[eini_min64(q * EINI_PACK_N + ahead, a->nk - 1)];
    EINI_PACK_T *d = (EINI_PACK_T *)a->dst + q * a->lanes;
    EINI_PACK_FN(ahead)(src + *c + t1 - 1, a->row + p);
    for (int i = 0; i < n; i++) {
      EINI_PACK_FN(swap)(s + from[i], a->row + p, c, d, o[i]);
      EINI_PACK_FN(ahead)(then + from[i], a->row + p);
    }
  }
}

EINI_VAT static void EINI_PACK_FN(across)(const eini_gett_pack_arg *a) {
  const int64_t units = (a->nk + EINI_PACK_N - 1) / EINI_PACK_N;
  for (int64_t i = 0; i < a->nfirst; i++)
    for (int64_t t = 0; t < a->count; t += 8 * EINI_PACK_G)
      EINI_PACK_FN(across_at)(a, a->first[i], t, eini_min64(t + 8 * EINI_PACK_G, a->count));
  for (int64_t p = a->n; p < a->np; p += EINI_PACK_G) EINI_PACK_FN(some)(a, p, 0, units, 1);
  for (int64_t p = 0; a->nk / EINI_PACK_N < units && p < a->n; p += EINI_PACK_G)
    EINI_PACK_FN(some)(a, p, units - 1, units, 1);
}

EINI_VAT static void EINI_PACK_NAME(eini_pack_)(const eini_gett_pack_arg *a) {
  const int n = EINI_PACK_N;
  const int kind = n > 1 && a->kind == EINI_GETT_ALONG &&
                   (a->step == 1 ? a->count % n != 0 && a->count < a->nk : a->step % n != 0)
                       ? EINI_GETT_NOWHERE : a->kind;
  if (kind == EINI_GETT_ROWS) EINI_PACK_FN(rows)(a);
  else if (kind == EINI_GETT_ALONG) EINI_PACK_FN(along)(a);
  else if (kind == EINI_GETT_ACROSS) EINI_PACK_FN(across)(a);
  else {  // uneven: few k at a time, so that other positions find their lines in the cache
    const int64_t few = kind == EINI_GETT_UNEVEN ? 2 : a->nk, units = (a->nk + n - 1) / n;
    for (int64_t q = 0; q < units; q += few)
      for (int64_t p = 0; p < a->np; p += EINI_PACK_G)
        EINI_PACK_FN(some)(a, p, q, eini_min64(q + few, units), 1);
  }
}
#undef EINI_PACK_G
#undef EINI_PACK_NAME
#undef EINI_PACK_FN
#undef EINI_PACK_ONE
#undef EINI_PACK_LOAD
#undef EINI_PACK_OF
#undef EINI_PACK_S
#undef EINI_PACK_T
#undef EINI_PACK
#endif  // EINI_KERNELS_PACK
