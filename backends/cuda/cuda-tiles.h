// ================================================================================================
// >>cuda-tiles  kernels of contractions through shared memory
// out[b,m,n] = store(fold over k of pair(P[b,m,k], Q[b,k,n])): a block makes a tile of m and n.
// Values of P and Q are made on the way to shared memory, the next while those there are folded;
// what is as it is stored goes there by itself (cp.async) on devices that have that.
// ================================================================================================

// What tensor cores multiply: nothing, f64, f32 rounded to TF32, f16 and bf16 as they are stored.
typedef enum eini_cuda_cores {
  EINI_CUDA_CORES_NONE, EINI_CUDA_CORES_F64, EINI_CUDA_CORES_TF32, EINI_CUDA_CORES_F16,
  EINI_CUDA_CORES_BF16, EINI_CUDA_CORES_F16_8
} eini_cuda_cores;

// 16 x 16 threads, each with rows x cols sums 16 apart; depth: of k that lie in shared memory. With
// tensor cores 4 x 2 warps share the tile.
typedef struct eini_cuda_shape {
  int rows, cols, split, cores;
  int async;                     // 1: the device has cp.async
  int along[2];                  // 1: neighbours read P, Q along k, 0: along m, n
} eini_cuda_shape;

enum { EINI_CUDA_SIDE = 16, EINI_CUDA_DEPTH = 16 };

static void eini_cuda_say_product(eini_cuda_writer *w, const char *name, int from, int to) {
  eini_say(&w->t, "  const ix %s = 1", name);
  for (int i = from; i < to; i++) eini_say(&w->t, " * (ix)p.e[%d]", i);
  eini_say(&w->t, ";\n");
}

// Fragments of tensor cores: rows and k of P's, registers of P's and Q's, and of sums. Those of Q
// have 8 columns. Where a lane's elements are: PTX ISA, matrix fragments of mma.m8n8k4, m16n8k8 and
// m16n8k16.
typedef struct eini_cuda_fragment {
  const char *name, *type, *reg;  // of ein_mma_.., of what lies in shared memory, of registers
  int m, k, a, b, c;
  int pitch;                      // elements from row to row there: no two lanes meet in a bank
} eini_cuda_fragment;

static const eini_cuda_fragment eini_cuda_fragments[] = {
    {"", "ein_t", "", 0, 0, 0, 0, 0, 0},
    {"f64", "double", "double", 8, 4, 1, 1, 2, 20},
    {"tf32", "float", "unsigned", 16, 8, 4, 2, 4, 20},
    {"f16", "unsigned short", "unsigned", 16, 16, 4, 2, 4, 24},
    {"bf16", "unsigned short", "unsigned", 16, 16, 4, 2, 4, 24},
    {"f16_8", "unsigned short", "unsigned", 16, 8, 2, 1, 4, 24}};

// One side of the product: its operands, where its rows are, and letters for names.
typedef struct eini_cuda_half {
  int cores, first, nop, rows, upto, side, along, which;
  int async;                     // copied as it is stored
  char letter;                   // p, q
  const char *tile, *extent;     // of its rows
} eini_cuda_half;

static eini_cuda_half eini_cuda_half_of(const eini_cuda_nest *x, const eini_cuda_shape *f, int q) {
  eini_cuda_half h;
  h.cores = f->cores;
  h.which = q;
  h.first = q ? x->second : 0;
  h.nop = q ? x->nop - x->second : x->second;
  h.rows = x->axes[1 + q];
  h.upto = x->axes[2 + q];
  h.side = EINI_CUDA_SIDE * (q ? f->cols : f->rows);
  h.along = f->along[q];
  h.async = f->async && h.nop == 1 && x->code[q]->plain == 0 && !x->code[q]->conj &&
            x->dtype[h.first] == (unsigned char)x->type && f->cores <= EINI_CUDA_CORES_F64 &&
            (x->type == EIN_F32 || x->type == EIN_F64 || x->type == EIN_I32 || x->type == EIN_I64);
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
  if (!v->async) eini_say(t, "  ein_m v%c[%d];\n", v->letter, share);
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

// Elements of the tile that begins at k go to shared memory, zero where there are none.
static void eini_cuda_say_async(eini_cuda_writer *w, const eini_cuda_half *v) {
  const eini_cuda_nest *x = w->x;
  const int s = v->first;
  eini_text *t = &w->t;
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix kk = k + at;\n  const int there = %s * %d + row < %s && kk < k1;\n"
              "  const ein_m *from = (const ein_m *)p.b[%d];\n  if (there) {\n", v->tile, v->side,
           v->extent, s);
  eini_cuda_say_split(w, "kk", x->axes[3], x->n);
  eini_say(t, "  from += f%d[h] + ", s);
  eini_cuda_say_offset(w, s, x->axes[3], x->n);
  eini_say(t, v->cores ? ";\n  }\n  ein_async(&s%c[b][row][at], from, there);\n  }\n"
                       : ";\n  }\n  ein_async(&s%c[b][at][row], from, there);\n  }\n", v->letter);
}

// What such a kernel needs.
static void eini_cuda_say_asyncs(eini_text *t, int bytes) {
  eini_say(t, "EIN_DEVICE void ein_async(ein_m *to, const ein_m *from, int there) {\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
              "  const unsigned at = (unsigned)__cvta_generic_to_shared(to);\n"
              "  asm volatile(\"cp.async.ca.shared.global [%%0], [%%1], %d, %%2;\"\n"
              "    :: \"r\"(at), \"l\"(from), \"r\"(there ? %d : 0) : \"memory\");\n"
              "#else\n  if (there) *to = *from; else *to = 0;\n#endif\n}\n", bytes, bytes);
  eini_say(t, "EIN_DEVICE void ein_async_wait() {\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
              "  asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n#endif\n}\n");
}

// Values of the tile that begins at k.
static void eini_cuda_say_fetch(eini_cuda_writer *w, const eini_cuda_half *v) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_reads reads = {NULL, v->first, x->nop};
  char name[16] = "";
  eini_text *t = &w->t;
  if (v->async) {
    eini_cuda_say_async(w, v);
    return;
  }
  eini_cuda_say_shares(w, v);
  eini_say(t, "  const ix kk = k + at;\n  ein_m z = %s;\n"
              "  if (%s * %d + row < %s && kk < k1) {\n", v->cores ? "0" : "ein_none().v", v->tile,
           v->side, v->extent);
  eini_cuda_say_split(w, "kk", x->axes[3], x->n);
  for (int s = v->first; s < v->first + v->nop; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    eini_say(t, "  const %s r%d = ((const %s *)p.b[%d])[f%d[h] + ", type, s, type, s, s);
    eini_cuda_say_offset(w, s, x->axes[3], x->n);
    eini_say(t, "];\n");
  }
  if (v->cores >= EINI_CUDA_CORES_F16) snprintf(name, sizeof name, "r%d", v->first);
  else eini_cuda_say_code(w, x->code[v->which], &reads, v->which ? 'u' : 'v', name);
  eini_say(t, v->cores == EINI_CUDA_CORES_TF32 ? "  z = ein_tf32(%s);\n" : "  z = %s;\n", name);
  eini_say(t, "  }\n  v%c[h] = z;\n  }\n", v->letter);
}

static void eini_cuda_say_put(eini_cuda_writer *w, const eini_cuda_half *v) {
  if (v->async) return;
  eini_cuda_say_shares(w, v);
  eini_say(&w->t, v->cores ? "  s%c[b][row][at] = v%c[h];\n  }\n"
                           : "  s%c[b][at][row] = v%c[h];\n  }\n", v->letter, v->letter);
}

// ---- tensor cores ----

// What a lane holds of a fragment, of side a or b of the product: register i, from row `row` and k
// `at` of a tile on. Registers of 16-bit values have two neighbours along k.
static void eini_cuda_say_lane(eini_text *t, const eini_cuda_fragment *f, int q) {
  const int n = q ? f->b : f->a, two = f->k == 16 || f->a == 2, wide = f->m == 16;
  eini_say(t, "EIN_DEVICE void ein_lane_%c(%s *x, const ein_m *s) {\n"
              "  const int g = (EIN_TID & 31) >> 2, t = EIN_TID & 3;\n", q ? 'q' : 'p', f->reg);
  for (int i = 0; i < n; i++) {
    const int row = q || !wide ? 0 : i % 2 * 8;
    const int k = q ? i : wide ? i / 2 : 0;
    eini_say(t, "  x[%d] = ", i);
    if (two) eini_say(t, "*(const unsigned *)(s + (g + %d) * %d + 2 * t + %d);\n", row, f->pitch,
                      8 * k);
    else eini_say(t, f->k == 8 ? "ein_bits(s[(g + %d) * %d + t + %d]);\n"
                               : "s[(g + %d) * %d + t + %d];\n", row, f->pitch, 4 * k);
  }
  eini_say(t, "}\n");
}

// The instruction, but where the shim has it.
static void eini_cuda_say_mma(eini_text *t, const eini_cuda_fragment *f, int cores) {
  static const char *const types[] = {"", "m8n8k4.row.col.f64.f64.f64.f64",
                                      "m16n8k8.row.col.f32.tf32.tf32.f32",
                                      "m16n8k16.row.col.f32.f16.f16.f32",
                                      "m16n8k16.row.col.f32.bf16.bf16.f32",
                                      "m16n8k8.row.col.f32.f16.f16.f32"};
  const char *sum = f->c == 2 ? "double" : "float", *letter = f->c == 2 ? "d" : "f";
  const char *reg = f->c == 2 ? "d" : "r";
  int n = 0;
  eini_say(t, "#ifndef EIN_HOST  // needs sm_%d\n"
              "EIN_DEVICE void ein_mma_%s(%s *c, const %s *a, const %s *b) {\n"
              "  asm volatile(\"mma.sync.aligned.%s \"\n    \"", cores == EINI_CUDA_CORES_F16_8
           ? 75 : 80, f->name, sum, f->reg, f->reg, types[cores]);
  for (int part = 0; part < 4; part++) {
    const int size = part == 1 ? f->a : part == 2 ? f->b : f->c;
    eini_say(t, part > 0 ? ", {" : "{");
    for (int i = 0; i < size; i++)
      eini_say(t, "%s%%%d", i > 0 ? ", " : "", part == 3 ? i : n++);
    eini_say(t, "}");
  }
  eini_say(t, ";\"\n    :");
  for (int i = 0; i < f->c; i++) eini_say(t, "%s \"+%s\"(c[%d])", i > 0 ? "," : "", letter, i);
  eini_say(t, "\n    :");
  for (int i = 0; i < f->a; i++) eini_say(t, "%s \"%s\"(a[%d])", i > 0 ? "," : "", reg, i);
  for (int i = 0; i < f->b; i++) eini_say(t, ", \"%s\"(b[%d])", reg, i);
  eini_say(t, ");\n}\n#endif\n");
}

static void eini_cuda_say_tf32(eini_text *t) {
  eini_say(t, "EIN_DEVICE float ein_tf32(float f) {\n  unsigned u = ein_bits(f);\n"
              "  if ((u & 0x7f800000u) == 0x7f800000u) return f;\n"
              "  return ein_f32((u + 0x1000u) & 0xffffe000u);\n}\n");
}

// What such a kernel needs beside the fold.
static void eini_cuda_say_cores(eini_cuda_writer *w, const eini_cuda_shape *s) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[s->cores];
  eini_say(&w->t, "typedef %s ein_m;\n", f->type);
  if (s->cores == EINI_CUDA_CORES_NONE) return;
  if (s->cores == EINI_CUDA_CORES_TF32) eini_cuda_say_tf32(&w->t);
  eini_cuda_say_lane(&w->t, f, 0);
  eini_cuda_say_lane(&w->t, f, 1);
  eini_cuda_say_mma(&w->t, f, s->cores);
}

// Fragments of P's rows and Q's columns that a warp has.
static int eini_cuda_warp_rows(const eini_cuda_shape *s) {
  return EINI_CUDA_SIDE * s->rows / 4 / eini_cuda_fragments[s->cores].m;
}
static int eini_cuda_warp_cols(const eini_cuda_shape *s) { return EINI_CUDA_SIDE * s->cols / 16; }

static void eini_cuda_say_products(eini_cuda_writer *w, const eini_cuda_shape *s) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[s->cores];
  const int rows = eini_cuda_warp_rows(s), cols = eini_cuda_warp_cols(s);
  eini_text *t = &w->t;
  eini_say(t, "  if (k > k0) {\n#pragma unroll\n  for (int at = 0; at < %d; at += %d) {\n"
              "  %s x[%d][%d], y[%d][%d];\n", EINI_CUDA_DEPTH, f->k, f->reg, rows, f->a, cols,
           f->b);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
              "  ein_lane_p(x[i], &sp[b ^ 1][wm + %d * i][at]);\n", rows, f->m);
  eini_say(t, "#pragma unroll\n  for (int h = 0; h < %d; h++)\n"
              "  ein_lane_q(y[h], &sq[b ^ 1][wn + 8 * h][at]);\n", cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) ein_mma_%s(a[i][h], x[i], y[h]);\n  }\n  }\n", rows,
           cols, f->name);
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
  const eini_cuda_fragment *g = &eini_cuda_fragments[f->cores];
  const int rows = f->cores ? eini_cuda_warp_rows(f) : f->rows;
  const int cols = f->cores ? eini_cuda_warp_cols(f) * g->c : f->cols;
  eini_text *t = &w->t;
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) {\n", rows, cols);
  if (f->cores)
    eini_say(t, "  const ix m = tm * %d + wm + %d * i + (EIN_TID & 31) / 4 + h %% %d / 2 * 8;\n"
                "  const ix n = tn * %d + wn + h / %d * 8 + EIN_TID %% 4 * 2 + h %% 2;\n",
             EINI_CUDA_SIDE * f->rows, g->m, g->c, EINI_CUDA_SIDE * f->cols, g->c);
  else
    eini_say(t, "  const ix m = tm * %d + ty + %d * i, n = tn * %d + tx + %d * h;\n",
             EINI_CUDA_SIDE * f->rows, EINI_CUDA_SIDE, EINI_CUDA_SIDE * f->cols, EINI_CUDA_SIDE);
  eini_say(t, "  if (m < em && n < en) {\n  const ein_t y = ");
  if (f->cores) eini_say(t, "a[i][h / %d][h %% %d];\n", g->c, g->c);
  else eini_say(t, "a[i][h].v;\n");
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

// Tiles in shared memory, aligned to what fragments are read by.
static void eini_cuda_say_shared(eini_cuda_writer *w, const eini_cuda_shape *f, int p, int q) {
  const int pitch = eini_cuda_fragments[f->cores].pitch;
  if (!f->cores)
    eini_say(&w->t, "  EIN_SHARED ein_t sp[2][%d][%d], sq[2][%d][%d];\n", EINI_CUDA_DEPTH, p + 1,
             EINI_CUDA_DEPTH, q + 1);
  else if (f->cores < EINI_CUDA_CORES_F16)
    eini_say(&w->t, "  EIN_SHARED ein_m sp[2][%d][%d], sq[2][%d][%d];\n", p, pitch, q, pitch);
  else
    eini_say(&w->t, "  EIN_SHARED unsigned both[%d];\n"
                    "  ein_m (*const sp)[%d][%d] = (ein_m (*)[%d][%d])both;\n"
                    "  ein_m (*const sq)[%d][%d] = (ein_m (*)[%d][%d])(both + %d);\n",
             (p + q) * pitch, p, pitch, p, pitch, q, pitch, q, pitch, p * pitch);
}

// Sums of a thread.
static void eini_cuda_say_none(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const int c = eini_cuda_fragments[f->cores].c;
  eini_text *t = &w->t;
  if (!f->cores) {
    eini_say(t, "  ein_state a[%d][%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
                "#pragma unroll\n  for (int h = 0; h < %d; h++) a[i][h] = ein_none();\n", f->rows,
             f->cols, f->rows, f->cols);
    return;
  }
  const int rows = eini_cuda_warp_rows(f), cols = eini_cuda_warp_cols(f);
  eini_say(t, "  const int wm = EIN_TID / 64 * %d, wn = EIN_TID / 32 %% 2 * %d;\n"
              "  ein_t a[%d][%d][%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++)\n"
              "#pragma unroll\n  for (int h = 0; h < %d; h++) a[i][h / %d][h %% %d] = 0;\n",
           4 * f->rows, 8 * f->cols, rows, cols, c, rows, cols * c, c, c);
}

static void eini_cuda_say_tiles(eini_cuda_writer *w, const eini_cuda_shape *f) {
  const eini_cuda_nest *x = w->x;
  const eini_cuda_half p = eini_cuda_half_of(x, f, 0), q = eini_cuda_half_of(x, f, 1);
  eini_text *t = &w->t;
  eini_cuda_say_cores(w, f);
  if (p.async || q.async) eini_cuda_say_asyncs(t, x->size[(p.async ? &p : &q)->first]);
  eini_cuda_say_begin(w);
  eini_cuda_say_shared(w, f, p.side, q.side);
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
  eini_cuda_say_none(w, f);
  eini_cuda_say_rows(w, &p);
  eini_cuda_say_rows(w, &q);
  eini_say(t, "  int b = 0;\n  for (ix k = k0; ; k += %d) {\n  if (k < k1) {\n", EINI_CUDA_DEPTH);
  eini_cuda_say_fetch(w, &p);
  eini_cuda_say_fetch(w, &q);
  eini_say(t, "  }\n");
  if (f->cores) eini_cuda_say_products(w, f);
  else eini_cuda_say_sums(w, f);
  eini_say(t, "  if (k >= k1) break;\n");
  eini_cuda_say_put(w, &p);
  eini_cuda_say_put(w, &q);
  if (p.async || q.async) eini_say(t, "  ein_async_wait();\n");
  eini_say(t, "  EIN_SYNC;\n  b ^= 1;\n  }\n");
  eini_cuda_say_ends(w, f);
}
