// ================================================================================================
// >>cuda-tiles  kernels of contractions through shared memory
// out[b,m,n] = store(fold over k of pair(P[b,m,k], Q[b,k,n])): a block makes a tile of m and n.
// Values of P and Q are made on the way to shared memory, the next while those there are folded.
// ================================================================================================

// 16 x 16 threads, each with rows x cols sums 16 apart; depth: of k that lie in shared memory.
typedef struct eini_cuda_shape {
  int rows, cols, split;
  int along[2];                  // 1: neighbours read P, Q along k, 0: along m, n
} eini_cuda_shape;

enum { EINI_CUDA_SIDE = 16, EINI_CUDA_DEPTH = 16 };

static void eini_cuda_say_product(eini_cuda_writer *w, const char *name, int from, int to) {
  eini_say(&w->t, "  const ix %s = 1", name);
  for (int i = from; i < to; i++) eini_say(&w->t, " * (ix)p.e[%d]", i);
  eini_say(&w->t, ";\n");
}

// One side of the product: its operands, where its rows are, and letters for names.
typedef struct eini_cuda_half {
  int first, nop, rows, upto, side, along, which;
  char letter;                   // p, q
  const char *tile, *extent;     // of its rows
} eini_cuda_half;

static eini_cuda_half eini_cuda_half_of(const eini_cuda_nest *x, const eini_cuda_shape *f, int q) {
  eini_cuda_half h;
  h.which = q;
  h.first = q ? x->second : 0;
  h.nop = q ? x->nop - x->second : x->second;
  h.rows = x->axes[1 + q];
  h.upto = x->axes[2 + q];
  h.side = EINI_CUDA_SIDE * (q ? f->cols : f->rows);
  h.along = f->along[q];
  h.letter = q ? 'q' : 'p';
  h.tile = q ? "tn" : "tm";
  h.extent = q ? "en" : "em";
  return h;
}

// Element h of a thread's share of a half: its row in the tile, and its k.
static void eini_cuda_say_share(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int depth = EINI_CUDA_DEPTH, threads = EINI_CUDA_THREADS;
  if (v->along)
    eini_say(&w->t, "  const int row = EIN_TID / %d + h * %d, at = EIN_TID %% %d;\n", depth,
             threads / depth, depth);
  else
    eini_say(&w->t, "  const int row = EIN_TID %% %d, at = EIN_TID / %d + h * %d;\n", v->side,
             v->side, threads / v->side);
}

static void eini_cuda_say_shares(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int share = v->side * EINI_CUDA_DEPTH / EINI_CUDA_THREADS;
  eini_say(&w->t, "#pragma unroll\n  for (int h = 0; h < %d; h++) {\n", share);
  eini_cuda_say_share(w, v);
}

// Offsets of the rows that a thread reads, f<stream>[h], and room for values.
static void eini_cuda_say_rows(eini_cuda_writer *w, const eini_cuda_half *v) {
  const int share = v->side * EINI_CUDA_DEPTH / EINI_CUDA_THREADS;
  eini_text *t = &w->t;
  eini_say(t, "  ein_t v%c[%d];\n", v->letter, share);
  for (int s = v->first; s < v->first + v->nop; s++) eini_say(t, "  ix f%d[%d];\n", s, share);
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix full = %s * %d + row, in = full < %s ? full : 0;\n  (void)at;\n", v->tile,
           v->side, v->extent);
  eini_cuda_say_split(w, "in", v->rows, v->upto);
  for (int s = v->first; s < v->first + v->nop; s++) {
    eini_say(t, "  f%d[h] = ", s);
    eini_cuda_say_offset(w, s, 0, w->x->axes[1]);
    eini_say(t, " + ");
    eini_cuda_say_offset(w, s, v->rows, v->upto);
    eini_say(t, ";\n");
  }
  eini_say(t, "  }\n");
}

// Values of the tile that begins at k.
static void eini_cuda_say_fetch(eini_cuda_writer *w, const eini_cuda_half *v) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_reads reads = {NULL, v->first, x->nop};
  char name[16] = "";
  eini_text *t = &w->t;
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix kk = k + at;\n  ein_t z = ein_none().v;\n"
              "  if (%s * %d + row < %s && kk < k1) {\n", v->tile, v->side, v->extent);
  eini_cuda_say_split(w, "kk", x->axes[3], x->n);
  for (int s = v->first; s < v->first + v->nop; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    eini_say(t, "  const %s r%d = ((const %s *)p.b[%d])[f%d[h] + ", type, s, type, s, s);
    eini_cuda_say_offset(w, s, x->axes[3], x->n);
    eini_say(t, "];\n");
  }
  eini_cuda_say_code(w, x->code[v->which], &reads, v->which ? 'u' : 'v', name);
  eini_say(t, "  z = %s;\n  }\n  v%c[h] = z;\n  }\n", name, v->letter);
}

static void eini_cuda_say_put(eini_cuda_writer *w, const eini_cuda_half *v) {
  eini_cuda_say_shares(w, v);
  eini_say(&w->t, "  s%c[b][at][row] = v%c[h];\n  }\n", v->letter, v->letter);
}

static void eini_cuda_say_sums(eini_cuda_writer *w, const eini_cuda_shape *f) {
  eini_text *t = &w->t;
  const int side = EINI_CUDA_SIDE, depth = EINI_CUDA_DEPTH;
  eini_say(t, "  if (k > k0) {\n  const ix rest = k1 - (k - %d);\n"
              "  const int kb = rest < %d ? (int)rest : %d;\n", depth, depth, depth);
  eini_say(t, "#pragma unroll 8\n  for (int at = 0; at < kb; at++) {\n  ein_t x[%d], y[%d];\n",
           f->rows, f->cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) x[i] = sp[b ^ 1][at][ty + %d * i];\n",
           f->rows, side);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) y[i] = sq[b ^ 1][at][tx + %d * i];\n",
           f->cols, side);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++)\n"
              "  a[i][h] = ein_merge(a[i][h], ein_lift(ein_join(x[i], y[h]), 0));\n  }\n  }\n",
           f->rows, f->cols);
}

// Stores the sums, or of a split contraction leaves them for the kernel that folds the splits.
static void eini_cuda_say_ends(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const eini_cuda_nest *x = w->x;
  eini_text *t = &w->t;
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) {\n", f->rows, f->cols);
  eini_say(t, "  const ix m = tm * %d + ty + %d * i, n = tn * %d + tx + %d * h;\n",
           EINI_CUDA_SIDE * f->rows, EINI_CUDA_SIDE, EINI_CUDA_SIDE * f->cols, EINI_CUDA_SIDE);
  eini_say(t, "  if (m < em && n < en) {\n  const ein_t y = a[i][h].v;\n");
  if (f->split) {
    eini_say(t, "  ((ein_t *)p.b[%d])[(((long long)sk * eb + tb) * em + m) * en + n] = y;\n",
             x->nstream);
  } else {
    eini_cuda_say_split(w, "m", x->axes[1], x->axes[2]);
    eini_cuda_say_split(w, "n", x->axes[2], x->axes[3]);
    eini_cuda_say_store(w, "y");
  }
  eini_say(t, "  }\n  }\n}\n");
}

static void eini_cuda_say_tiles(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_half p = eini_cuda_half_of(x, f, 0), q = eini_cuda_half_of(x, f, 1);
  eini_text *t = &w->t;
  eini_cuda_say_begin(w);
  eini_say(t, "  EIN_SHARED ein_t sp[2][%d][%d], sq[2][%d][%d];\n", EINI_CUDA_DEPTH, p.side + 1,
           EINI_CUDA_DEPTH, q.side + 1);
  eini_cuda_say_product(w, "eb", 0, x->axes[1]);
  eini_cuda_say_product(w, "em", x->axes[1], x->axes[2]);
  eini_cuda_say_product(w, "en", x->axes[2], x->axes[3]);
  eini_cuda_say_product(w, "ek", x->axes[3], x->n);
  eini_say(t, "  const ix nm = (em + %d) / %d, nn = (en + %d) / %d;\n", p.side - 1, p.side,
           q.side - 1, q.side);
  eini_say(t, "  ix d = (ix)EIN_BID;\n  const ix tn = d %% nn; d /= nn;\n"
              "  const ix tm = d %% nm; d /= nm;\n  const ix tb = d %% eb, sk = d / eb;\n"
              "  const ix k0 = sk * (ix)p.z[2], kx = k0 + (ix)p.z[2], k1 = kx < ek ? kx : ek;\n"
              "  const int tx = EIN_TID %% %d, ty = EIN_TID / %d;\n", EINI_CUDA_SIDE,
           EINI_CUDA_SIDE);
  eini_cuda_say_split(w, "tb", 0, x->axes[1]);
  eini_say(t, "  ein_state a[%d][%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
              "#pragma unroll\n  for (int h = 0; h < %d; h++) a[i][h] = ein_none();\n", f->rows,
           f->cols, f->rows, f->cols);
  eini_cuda_say_rows(w, &p);
  eini_cuda_say_rows(w, &q);
  eini_say(t, "  int b = 0;\n  for (ix k = k0; ; k += %d) {\n  if (k < k1) {\n", EINI_CUDA_DEPTH);
  eini_cuda_say_fetch(w, &p);
  eini_cuda_say_fetch(w, &q);
  eini_say(t, "  }\n");
  eini_cuda_say_sums(w, f);
  eini_say(t, "  if (k >= k1) break;\n");
  eini_cuda_say_put(w, &p);
  eini_cuda_say_put(w, &q);
  eini_say(t, "  EIN_SYNC;\n  b ^= 1;\n  }\n");
  eini_cuda_say_ends(w, f);
}
