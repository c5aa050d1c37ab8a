// ================================================================================================
// >>cuda-along  groups that go along an index, in one kernel
// Takes acts; gives a kernel whose blocks of threads run them piece by piece, what folds along all
// pieces in registers or shared memory, and changed by how far an extreme has moved.
// ================================================================================================

static unsigned eini_cuda_free(const eini_cuda_act *k) { return eini_cuda_loops(0, k->x.nfree); }

// Steps of an act by the group's loops that are not 0.
static int eini_cuda_act_steps(const ein_group *g, const eini_cuda_act *k) {
  int n = 0;
  for (int s = 0; s < k->x.nstream; s++)
    for (int l = 0; l < g->nloop && k->step[s] != NULL && k->own[s] != 1; l++)
      n += k->step[s][l] != 0;
  return n;
}

static int eini_cuda_going_steps(const ein_group *g, const eini_cuda_going *a) {
  int n = 0;
  for (int k = 0; k < a->n; k++) n += eini_cuda_act_steps(g, &a->act[k]);
  return n;
}

// ---- functions of an act ----

// A function that is at block and piece; at: number of its first step.
static void eini_cuda_say_head(eini_cuda_writer *w, const ein_group *g, const eini_cuda_act *k,
                               const char *name, int at) {
  const eini_cuda_nest *x = w->x;
  eini_text *t = &w->t;
  eini_say(t, "EIN_DEVICE void %s(EIN_ARGS(ein_args) p, EIN_ARGS(ein_steps) u, char *ein_room",
           name);
  for (int l = 0; l < g->nloop; l++) eini_say(t, ", long long g%d", l);
  eini_say(t, k->rows > 0 && k->when == EINI_CUDA_FOLDED ? ", int n, ein_sums *c) {\n"
                                                         : ", int n) {\n");
  for (int i = 0; i < x->nstream; i++) {
    if (x->value[i]) eini_say(t, "  const long long at%d = p.at[%d]", i, i);
    else if (k->own[i]) eini_say(t, "  char *const b%d = ein_room + (long long)p.b[%d]", i, i);
    else eini_say(t, "  char *const b%d = p.b[%d]", i, i);
    for (int l = 0; l < g->nloop && k->step[i] != NULL && k->own[i] != 1; l++) {
      if (k->step[i][l] == 0) continue;
      if (k->own[i] != 2) eini_say(t, " + g%d * u.t[%d]", l, at);
      at++;
    }
    eini_say(t, ";\n");
  }
}

// The element of a stream by loops of a set, as stored.
static void eini_cuda_say_at(eini_cuda_writer *w, int s, unsigned loops) {
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  eini_say(&w->t, w->own[s] ? "((%s *)b%d)[" : "EIN_READ((%s *)b%d)[", type, s);
  eini_cuda_say_offset_in(w, s, loops);
  eini_say(&w->t, "]");
}

// e: by how much sums change, for loops of a set; what follows is done where they do.
static void eini_cuda_say_change(eini_cuda_writer *w, const eini_cuda_act *k, unsigned loops) {
  const ein_dtype type = k->x.type;
  eini_text *t = &w->t;
  eini_say(t, "  const %s far = (%s)", eini_cuda_type(type), eini_cuda_type(type));
  eini_cuda_say_at(w, k->change, loops);
  eini_say(t, ";\n  if (far != 0) {\n  const %s e = exp%s(far * ", eini_cuda_type(type),
           type == EIN_F32 ? "f" : "");
  eini_cuda_say_bits(t, type, k->open.by, 0);
  eini_say(t, ");\n");
}

// What y waits for is there. An extreme that is no number makes none of what was summed.
static void eini_cuda_say_close(eini_cuda_writer *w, const eini_cuda_act *k) {
  const char *type = eini_cuda_type(k->x.type);
  eini_text *t = &w->t;
  for (int r = 0; r < k->nref; r++) {
    const int s = k->place[r];
    char name[16];
    if (s < 0) continue;
    snprintf(name, sizeof name, "r%d", s);
    eini_say(t, "  const %s %s = ", eini_cuda_stored(k->ref[r].dtype), name);
    eini_cuda_say_at(w, s, eini_cuda_free(k));
    eini_say(t, ";\n  const %s w%d = (%s)", type, r, type);
    eini_cuda_say_wide(t, k->ref[r].dtype, name);
    eini_say(t, ";\n");
    if (k->open.of == r) eini_say(t, "  y += w%d - w%d;\n", r, r);
    for (int i = 0; i < k->open.power[r]; i++) eini_say(t, "  y = y * w%d;\n", r);
    for (int i = 0; i > k->open.power[r]; i--) eini_say(t, "  y = y / w%d;\n", r);
  }
}

// The state of a fold along so far takes in that of a piece, a; an extreme moves where others see
// it: it stays a number, and counts as one only from the first on.
static void eini_cuda_say_taken(eini_cuda_writer *w, const eini_cuda_act *k) {
  const ein_dtype to = (ein_dtype)k->x.dtype[k->x.out];
  eini_text *t = &w->t;
  char name[2] = "c";
  eini_say(t, "  ein_state b = ((ein_state *)b%d)[i];\n", k->state);
  if (k->extreme) eini_say(t, "  const ein_t old = ein_finish(b, p.q[%d]);\n", 2 * w->q);
  if (k->change >= 0) {
    eini_cuda_say_change(w, k, eini_cuda_free(k));
    eini_say(t, "  b.v *= e;\n  }\n");
  }
  eini_say(t, "  b = ein_merge(b, a);\n  ((ein_state *)b%d)[i] = b;\n", k->state);
  if (!k->extreme) return;
  eini_say(t, "  const ein_t y = ein_finish(b, p.q[%d]), c = y - y == 0 ? y : 0;\n"
              "  const %s before = ", 2 * w->q, eini_cuda_stored(to));
  eini_cuda_say_at(w, k->x.out, eini_cuda_free(k));
  eini_say(t, ", after = ");
  eini_cuda_say_narrow(t, k->x.type, to, name);
  eini_say(t, ";\n  ");
  eini_cuda_say_at(w, k->x.out, eini_cuda_free(k));
  eini_say(t, " = after;\n  ");
  eini_cuda_say_at(w, k->moved, eini_cuda_free(k));
  eini_say(t, " = old - old == 0 ? (ein_t)");
  eini_cuda_say_wide(t, to, "after");
  eini_say(t, " - (ein_t)");
  eini_cuda_say_wide(t, to, "before");
  eini_say(t, " : 0;\n");
}

// ---- products ----

// Which thread has which results.
static void eini_cuda_say_grid(eini_cuda_writer *w, const eini_cuda_act *k) {
  const int by_piece = k->along >= 0 && (k->across >> k->along & 1);
  eini_say(&w->t, "  const ix rows = (ix)p.z[0], cols = (ix)p.z[1]%s;\n", by_piece ? " * n" : "");
  if (!k->cores)
    eini_say(&w->t, "  const int top = EIN_TID / %d, left = EIN_TID %% %d;\n", EINI_CUDA_SIDE,
             EINI_CUDA_SIDE);
  else
    eini_say(&w->t, "  const int top = EIN_TID / 32 %% %d * %d + EIN_TID %% 32 / 4;\n"
                    "  const int left = EIN_TID / %d * %d + EIN_TID %% 4 * 2;\n", k->warps,
             k->rows * 8, 32 * k->warps, k->cols * 4);
}

// Which row or column of the block a thread's number i is of.
static void eini_cuda_say_slot(eini_text *t, const eini_cuda_act *k, int col, const char *i) {
  const int m = eini_cuda_fragments[k->cores].m;
  if (!k->cores) eini_say(t, "%s + %d * %s", col ? "left" : "top", EINI_CUDA_SIDE, i);
  else if (col) eini_say(t, "left + %s / 2 * 8 + %s %% 2", i, i);
  else eini_say(t, "top + %s / %d * %d + %s %% %d * 8", i, m / 8, m, i, m / 8);
}

// Offsets of what a thread reads, by rows f<stream>[i] or columns l<stream>[i].
static void eini_cuda_say_starts(eini_cuda_writer *w, const eini_cuda_act *k, int col) {
  const eini_cuda_nest *x = w->x;
  const unsigned loops = col ? k->across : eini_cuda_free(k) & ~k->across;
  const int many = col ? k->cols : k->rows;
  const char letter = col ? 'l' : 'f';
  eini_text *t = &w->t;
  for (int s = 0; s < x->extra; s++)
    if (eini_cuda_moves(x, s, loops)) eini_say(t, "  ix %c%d[%d];\n", letter, s, many);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) {\n  const ix full = ", many);
  eini_cuda_say_slot(t, k, col, "i");
  eini_say(t, ", in = full < %s ? full : 0;\n", col ? "cols" : "rows");
  eini_cuda_say_split_in(w, "in", loops);
  for (int s = 0; s < x->extra; s++) {
    if (!eini_cuda_moves(x, s, loops)) continue;
    eini_say(t, "  %c%d[i] = ", letter, s);
    eini_cuda_say_offset_in(w, s, loops);
    eini_say(t, ";\n");
  }
  if (!col && k->change >= 0) {
    eini_cuda_say_change(w, k, loops);
    eini_say(t, "#pragma unroll\n  for (int h = 0; h < %d; h++) c->a[i][h].v *= e;\n  }\n",
             k->cols);
  }
  eini_say(t, "  }\n");
}

// What is read once for all rows or columns: x<stream>, an array where the stream moves with them.
static void eini_cuda_say_sides(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  const unsigned fold = eini_cuda_loops(x->nfree, x->n), free = eini_cuda_free(k);
  eini_text *t = &w->t;
  for (int s = 0; s < x->nop; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    const int row = eini_cuda_moves(x, s, free & ~k->across);
    const int col = eini_cuda_moves(x, s, k->across), many = row ? k->rows : k->cols;
    if (k->own[s] == 2 || (row && col)) continue;
    if (row || col)
      eini_say(t, "  %s x%d[%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++) x%d[i] = ", type,
               s, many, many, s);
    else eini_say(t, "  const %s x%d = ", type, s);
    eini_say(t, k->own[s] ? "((const %s *)b%d)[" : "EIN_READ((const %s *)b%d)[", type, s);
    if (row || col) eini_say(t, "%c%d[i] + ", row ? 'f' : 'l', s);
    eini_cuda_say_offset_in(w, s, fold);
    eini_say(t, "];\n");
  }
}

// The streams of result i, h.
static void eini_cuda_say_pair(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  const unsigned fold = eini_cuda_loops(x->nfree, x->n), free = eini_cuda_free(k);
  eini_text *t = &w->t;
  for (int s = 0; s < x->extra; s++) {
    const char *type = eini_cuda_stored((ein_dtype)x->dtype[s]);
    const int row = eini_cuda_moves(x, s, free & ~k->across);
    const int col = eini_cuda_moves(x, s, k->across);
    if (k->own[s] == 2) {
      eini_say(t, "  const %s r%d = %s;\n", type, s, eini_cuda_one((ein_dtype)x->dtype[s]));
    } else if (x->value[s] || (row && col)) {
      if (x->value[s]) eini_say(t, "  const long long i%d = at%d + (", s, s);
      else eini_say(t, k->own[s] ? "  const %s r%d = ((const %s *)b%d)["
                                 : "  const %s r%d = EIN_READ((const %s *)b%d)[", type, s, type, s);
      if (row) eini_say(t, "f%d[i] + ", s);
      if (col) eini_say(t, "l%d[h] + ", s);
      eini_cuda_say_offset_in(w, s, fold);
      eini_say(t, x->value[s] ? ");\n" : "];\n");
    } else {
      eini_say(t, "  const %s r%d = x%d%s;\n", type, s, s, row ? "[i]" : col ? "[h]" : "");
    }
  }
}

static void eini_cuda_say_each(eini_text *t, const eini_cuda_act *k) {
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++)", k->rows, k->cols);
}

// Stores the results that there are.
static void eini_cuda_say_sums_end(eini_cuda_writer *w, const eini_cuda_act *k) {
  eini_text *t = &w->t;
  eini_cuda_say_each(t, k);
  eini_say(t, " {\n  const ix row = ");
  eini_cuda_say_slot(t, k, 0, "i");
  eini_say(t, ", col = ");
  eini_cuda_say_slot(t, k, 1, "h");
  eini_say(t, ";\n  if (row < rows && col < cols) {\n");
  eini_cuda_say_split_in(w, "row", eini_cuda_free(k) & ~k->across);
  eini_cuda_say_split_in(w, "col", k->across);
  eini_say(t, "  %s y = ein_finish(c->a[i][h], p.q[%d]);\n", eini_cuda_type(k->x.result), 2 * w->q);
  eini_cuda_say_close(w, k);
  eini_cuda_say_store(w, "y");
  eini_say(t, "  }\n  }\n");
}

// Registers of fragments of one side, of `many` along it, for k on.
static void eini_cuda_say_fragments(eini_cuda_writer *w, const eini_cuda_act *k, int col,
                                    int many) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[k->cores];
  const int s = k->side[col], two = f->k == 16 || f->a == 2, wide = f->m == 16, j = w->x->nfree;
  const char *type = eini_cuda_stored((ein_dtype)w->x->dtype[s]);
  eini_text *t = &w->t;
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++) {\n", many);
  for (int i = 0; i < (col ? f->b : f->a); i++) {
    const int at = col ? i : wide ? i / 2 : 0;
    eini_say(t, "  {\n  ix j%d = k + %d * (EIN_TID %% 4) + %d;\n", j, two ? 2 : 1,
             (two ? 8 : 4) * at);
    for (int h = 0; h <= two; h++) {
      eini_say(t, "  const %s e%d = j%d < depth ? ((const %s *)b%d)[", type, h, j, type, s);
      if (col) eini_say(t, "l%d[i] + ", s);
      else eini_say(t, "f%d[%d * i + %d] + ", s, f->m / 8, wide ? i % 2 : 0);
      eini_cuda_say_offset_in(w, s, eini_cuda_loops(j, w->x->n));
      eini_say(t, h < two ? "] : 0;\n  j%d++;\n" : "] : 0;\n", j);
    }
    eini_say(t, "  %c[i][%d] = %s;\n  }\n", col ? 'y' : 'x', i,
             two ? "e0 | (unsigned)e1 << 16"
             : k->cores == EINI_CUDA_CORES_TF32 ? "ein_bits(ein_tf32(e0))" : "e0");
  }
  eini_say(t, "  }\n");
}

// The same on tensor cores: fragments are read from shared memory as they lie.
static void eini_cuda_say_cored(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_fragment *f = &eini_cuda_fragments[k->cores];
  const int q = f->m / 8, rows = k->rows / q, cols = k->cols / 2, s = k->side[1];
  eini_text *t = &w->t;
  eini_cuda_say_starts(w, k, 0);
  eini_say(t, "  ix l%d[%d];\n#pragma unroll\n  for (int i = 0; i < %d; i++) {\n"
              "  const ix full = left - EIN_TID %% 4 * 2 + EIN_TID %% 32 / 4 + 8 * i;\n"
              "  const ix in = full < cols ? full : 0;\n", s, cols, cols);
  eini_cuda_say_split_in(w, "in", k->across);
  eini_say(t, "  l%d[i] = ", s);
  eini_cuda_say_offset_in(w, s, k->across);
  eini_say(t, ";\n  }\n  const ix depth = (ix)p.z[2]%s;\n"
              "  for (ix k = 0; k < depth; k += %d) {\n  %s x[%d][%d], y[%d][%d];\n",
           k->along >= w->x->nfree ? " * n" : "", f->k, f->reg, rows, f->a, cols, f->b);
  eini_cuda_say_fragments(w, k, 0, rows);
  eini_cuda_say_fragments(w, k, 1, cols);
  eini_say(t, "#pragma unroll\n  for (int i = 0; i < %d; i++)\n#pragma unroll\n"
              "  for (int h = 0; h < %d; h++) {\n  ein_t z[%d];\n#pragma unroll\n"
              "  for (int o = 0; o < %d; o++) z[o] = c->a[%d * i + o / 2][2 * h + o %% 2].v;\n",
           rows, cols, f->c, f->c, q);
  eini_say(t, "  ein_mma_%s(z, x[i], y[h]);\n#pragma unroll\n"
              "  for (int o = 0; o < %d; o++) c->a[%d * i + o / 2][2 * h + o %% 2].v = z[o];\n"
              "  }\n  }\n", f->name, f->c, q);
}

static void eini_cuda_say_summed(eini_cuda_writer *w, const eini_cuda_act *k) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_text *t = &w->t;
  eini_cuda_say_starts(w, k, 0);
  eini_cuda_say_starts(w, k, 1);
  eini_say(t, "#pragma unroll 4\n  for (ix k = 0; k < (ix)p.z[2]%s; k++) {\n",
           k->along >= x->nfree ? " * n" : "");
  eini_cuda_say_split_in(w, "k", eini_cuda_loops(x->nfree, x->n));
  eini_cuda_say_sides(w, k);
  eini_cuda_say_each(t, k);
  eini_say(t, " {\n");
  eini_cuda_say_pair(w, k);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(t, "  c->a[i][h] = ein_merge(c->a[i][h], ein_lift(%s, %s));\n  }\n  }\n", name, at);
}

static void eini_cuda_say_piece_product(eini_cuda_writer *w, const eini_cuda_act *k) {
  eini_text *t = &w->t;
  eini_cuda_say_grid(w, k);
  if (k->when == EINI_CUDA_PIECE) {
    eini_say(t, "  ein_sums own, *const c = &own;\n");
    eini_cuda_say_each(t, k);
    eini_say(t, " c->a[i][h] = ein_none();\n");
  }
  if (k->cores) eini_cuda_say_cored(w, k);
  else eini_cuda_say_summed(w, k);
  if (k->when == EINI_CUDA_PIECE) eini_cuda_say_sums_end(w, k);
}

// ---- the source ----

// How a fold along begins and ends.
static void eini_cuda_say_fold_ends(eini_cuda_writer *w, const ein_group *g,
                                    const eini_cuda_act *k, int at) {
  eini_text *t = &w->t;
  eini_cuda_say_head(w, g, k, "ein_begin", at);
  if (k->rows > 0) {
    eini_cuda_say_each(t, k);
    eini_say(t, " c->a[i][h] = ein_none();\n}\n");
  } else {
    eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]; i += %d)\n"
                "  ((ein_state *)b%d)[i] = ein_none();\n}\n", EINI_CUDA_THREADS, k->state);
  }
  eini_cuda_say_head(w, g, k, "ein_end", at);
  if (k->rows > 0) {
    eini_cuda_say_grid(w, k);
    eini_cuda_say_sums_end(w, k);
    eini_say(t, "}\n");
    return;
  }
  eini_say(t, "  for (ix i = EIN_TID; i < (ix)p.z[0]; i += %d) {\n", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, k->x.nfree);
  eini_say(t, "  %s y = ein_finish(((ein_state *)b%d)[i], p.q[%d]);\n",
           eini_cuda_type(k->x.result), k->state, 2 * w->q);
  eini_cuda_say_close(w, k);
  eini_cuda_say_store(w, "y");
  eini_say(t, "  }\n}\n");
}

static int eini_cuda_say_act(eini_cuda_writer *w, const ein_group *g, const eini_cuda_act *k,
                             int number, int at) {
  eini_text *t = &w->t;
  w->own = k->own;
  w->along = k->along + 1;
  eini_cuda_say_names(t, number, 1);
  eini_cuda_say_args(w);
  if (!eini_cuda_say_fold(w)) return 0;
  if (k->rows > 0)
    eini_say(t, "typedef struct { ein_state a[%d][%d]; } ein_sums;\n", k->rows, k->cols);
  if (k->when == EINI_CUDA_FOLDED) eini_cuda_say_fold_ends(w, g, k, at);
  eini_cuda_say_head(w, g, k, "ein_stage", at);
  if (k->rows > 0) {
    eini_cuda_say_piece_product(w, k);
  } else if (k->when == EINI_CUDA_FOLDED) {
    eini_cuda_say_shared_folds(w);
    eini_cuda_say_taken(w, k);
    eini_say(t, "  }\n  }\n");
  } else {
    eini_cuda_say_results(w);
  }
  eini_say(t, "}\n");
  eini_cuda_say_names(t, number, 0);
  w->own = NULL;
  w->along = 0;
  return 1;
}

// The act behind number i in order of those of a kind, or -1.
static int eini_cuda_next(const eini_cuda_going *a, int i, int from, int to) {
  while (++i < a->n)
    if (a->act[a->order[i]].when >= from && a->act[a->order[i]].when <= to) return a->order[i];
  return -1;
}

// Calls what acts of a kind do, one after another; copies need not wait for each other. `of`:
// ein_stage, ..
static void eini_cuda_say_calls(eini_text *t, const ein_group *g, const eini_cuda_going *a,
                                const char *of, int from, int to) {
  for (int i = 0; i < a->n; i++) {
    const int k = a->order[i], next = eini_cuda_next(a, i, from, to);
    const eini_cuda_act *x = &a->act[k];
    if (x->when < from || x->when > to) continue;
    eini_say(t, "  %s%d(p.a%d, p.u, ein_room", x->when == EINI_CUDA_AFTER ? "ein_stage" : of, k, k);
    for (int l = 0; l < g->nloop; l++) {
      if (l != g->along) eini_say(t, ", g%d", l);
      else eini_say(t, from == EINI_CUDA_PIECE ? ", at" : ", 0");
    }
    eini_say(t, from == EINI_CUDA_PIECE ? ", n" : ", 0");
    eini_say(t, x->rows > 0 && x->when == EINI_CUDA_FOLDED ? ", &c%d);\n" : ");\n", k);
    if (x->stage >= 0 || next < 0 || a->act[next].stage >= 0) eini_say(t, "  EIN_SYNC;\n");
  }
}

// The kernel around the acts.
static void eini_cuda_say_going(eini_text *t, const ein_group *g, const eini_cuda_going *a) {
  const int l = g->along;
  eini_say(t, "typedef struct {\n");
  for (int k = 0; k < a->n; k++) eini_say(t, "  ein_args%d a%d;\n", k, k);
  eini_say(t, "  ein_steps u;\n} ein_args;\nEIN_KERNEL ein_kernel(const ein_args p) {\n"
              "  EIN_ROOM;\n  long long d = EIN_BID;\n");
  for (int i = l - 1; i >= 0; i--)
    eini_say(t, "  const long long g%d = p.u.o[%d] + d %% p.u.n[%d] * p.u.k[%d]; d /= p.u.n[%d];\n",
             i, i, i, i, i);
  for (int k = 0; k < a->n; k++)
    if (a->act[k].rows > 0 && a->act[k].when == EINI_CUDA_FOLDED)
      eini_say(t, "  ein_sums%d c%d;\n", k, k);
  eini_cuda_say_calls(t, g, a, "ein_begin", EINI_CUDA_FOLDED, EINI_CUDA_FOLDED);
  eini_cuda_say_calls(t, g, a, "ein_stage", EINI_CUDA_BEFORE, EINI_CUDA_BEFORE);
  eini_say(t, "  for (long long at = 0; at < p.u.length; at += p.u.k[%d]) {\n"
              "  const int n = (int)(p.u.length - at < p.u.k[%d] ? p.u.length - at : p.u.k[%d]);\n",
           l, l, l);
  eini_cuda_say_calls(t, g, a, "ein_stage", EINI_CUDA_PIECE, EINI_CUDA_FOLDED);
  eini_say(t, "  }\n");
  eini_cuda_say_calls(t, g, a, "ein_end", EINI_CUDA_FOLDED, EINI_CUDA_AFTER);
  eini_say(t, "}\n");
}

// The instructions of tensor cores that acts use, each once.
static void eini_cuda_say_mmas(eini_text *t, const eini_cuda_going *a) {
  for (int c = 1; c <= EINI_CUDA_CORES_F16_8; c++) {
    int used = 0;
    for (int k = 0; k < a->n; k++) used |= a->act[k].cores == c;
    if (!used) continue;
    if (c == EINI_CUDA_CORES_TF32) eini_cuda_say_tf32(t);
    eini_cuda_say_mma(t, &eini_cuda_fragments[c], c);
  }
}

static eini_cuda_kernel *eini_cuda_going_write(ein_cuda *c, const ein_group *g,
                                               const eini_cuda_going *a) {
  eini_cuda_writer w;
  eini_cuda_kernel *kernel = NULL;
  int at = 0, said = 1, words = 3 * g->nloop + 1 + eini_cuda_going_steps(g, a) + 1;
  if (!eini_cuda_writer_begin(c, &w)) return NULL;
  w.staged = 1;
  eini_cuda_say_helpers(&w);
  eini_cuda_say_mmas(&w.t, a);
  eini_say(&w.t, "typedef struct { long long o[%d], n[%d], k[%d], length, t[%d]; } ein_steps;\n",
           g->nloop, g->nloop, g->nloop, eini_cuda_going_steps(g, a) + 1);
  for (int k = 0; k < a->n && said; k++) {
    eini_cuda_writer_of(&w, &a->act[k].x);
    said = eini_cuda_say_act(&w, g, &a->act[k], k, at);
    words += eini_cuda_words(&w);
    at += eini_cuda_act_steps(g, &a->act[k]);
  }
  eini_cuda_say_going(&w.t, g, a);
  if (said && words <= EINI_CUDA_WORDS) kernel = eini_cuda_kernel_of(c, &w);
  eini_cuda_writer_end(c, &w);
  return kernel;
}

// ---- choosing ----

// Seconds of a value of an act. Products of fewer results for a thread than tiles of contractions
// have read more.
static double eini_cuda_act_seconds(const ein_cuda *c, const eini_cuda_speeds *v,
                                    const eini_cuda_act *k) {
  const eini_cuda_nest *x = &k->x;
  const int wide = x->type == EIN_F64 || x->type == EIN_C128 || x->type == EIN_I64;
  const double planes = eini_cuda_complex(x->type) ? 4 : 1;
  if (k->cores) return 2 / v->cores[k->cores - 1];
  if (k->rows > 0) return 2 * planes * fmax(1, 2.0 / k->rows + 2.0 / k->cols) / v->tiles[wide];
  return (4 * planes + eini_cuda_load_flops * (1 + x->nop)) /
         (wide ? c->device.flops_f64 : c->device.flops_f32);
}

// Seconds of all blocks, and in *traffic bytes to and from multiprocessors.
static double eini_cuda_going_seconds(const ein_cuda *c, const ein_group *g,
                                      const eini_cuda_going *a, double blocks, double *traffic) {
  const double resident = floor((double)c->device.shared / (double)(a->room + 1024));
  const double wide = fmin(1, blocks / c->device.processors);
  const double busy = fmax(1, resident) * EINI_CUDA_THREADS / eini_cuda_busy;
  const double full = wide * fmin(1, busy);
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, a->act[0].x.rates);
  double once = 0, compute = 0;
  *traffic = 0;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    const eini_cuda_nest *x = &k->x;
    const int pieces = k->when == EINI_CUDA_PIECE || k->when == EINI_CUDA_FOLDED;
    const double times = blocks * (pieces ? (double)g->count[g->along] : 1);
    // Several results of a thread are as good as several threads.
    const double alone = wide * fmin(1, busy * fmin(4, fmax(1, k->rows * k->cols / 4.0)));
    compute += (double)eini_cuda_extent(x, 0, x->n) * times * eini_cuda_act_seconds(c, &v, k) /
               alone;
    for (int s = 0; s < x->nstream; s++) {
      double bytes = (double)eini_cuda_points(x, s) * x->size[s];
      if (x->value[s] || k->own[s]) continue;
      *traffic += bytes * times;
      for (int l = 0; l < g->nloop; l++)
        if (k->step[s] != NULL && k->step[s][l] != 0) bytes *= (double)g->count[l];
      once += bytes;
    }
  }
  return 1 / v.launches +
         fmax(fmax(once / v.stream, *traffic / (eini_cuda_cached * v.stream)) / full, compute);
}

static eini_cuda_going *eini_cuda_going_new(ein_cuda *c, const ein_group *g) {
  eini_cuda_going *a = (eini_cuda_going *)c->al.alloc_fn(sizeof *a, 64, c->al.user);
  if (a == NULL || eini_cuda_going_of(c, g, a)) return a;
  c->al.free_fn(a, sizeof *a, c->al.user);
  return NULL;
}

static int eini_cuda_going_plan(ein_cuda *c, const ein_group *g, int nth, ein_choice *h) {
  eini_cuda_together way;
  double blocks = 1, traffic;
  for (int l = 0; l < g->along; l++) blocks *= (double)g->count[l];
  if (nth > 0 || blocks > INT32_MAX || g->length > INT64_MAX / 2) return 0;
  eini_cuda_going *a = eini_cuda_going_new(c, g);
  if (a == NULL) return 0;
  memset(&way, 0, sizeof way);
  way.room = a->room;
  way.blocks = (int64_t)blocks;
  way.kernel = eini_cuda_going_write(c, g, a);
  memset(h, 0, sizeof *h);
  h->seconds = eini_cuda_going_seconds(c, g, a, blocks, &traffic);
  if (c->only == 1) h->seconds = 0;
  h->traffic = traffic;
  c->al.free_fn(a, sizeof *a, c->al.user);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  h->scratch = way.room;
  snprintf(h->variant, sizeof h->variant, "along");
  memcpy(h->state, &way, sizeof way);
  return way.kernel != NULL;
}

// ---- running ----

static void eini_cuda_going_words(const ein_group *g, const eini_cuda_going *a, uint64_t *word) {
  int n = 0;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    int64_t z[EINI_CUDA_NUMBERS] = {1, 1, 1, 1};
    eini_cuda_writer w;
    for (int j = 0; j < k->x.n; j++) {
      const int across = k->across >> j & 1;
      const int to = k->rows > 0 ? (j >= k->x.nfree ? 2 : across) : j >= k->x.nfree;
      if (j != k->along) z[to] *= k->x.extent[j];
    }
    if (k->rows == 0) {
      z[2] = (int64_t)1 << eini_cuda_lanes(&k->x);
      z[3] = (int64_t)a->states;
    }
    memset(&w, 0, sizeof w);
    eini_cuda_writer_of(&w, &k->x);
    n += eini_cuda_arguments(&w, z, NULL, word + n);
  }
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->from[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->count[l];
  for (int l = 0; l < g->nloop; l++) word[n++] = (uint64_t)g->block[l];
  word[n++] = (uint64_t)g->length;
  for (int i = 0; i < a->n; i++) {
    const eini_cuda_act *k = &a->act[i];
    for (int s = 0; s < k->x.nstream; s++)
      for (int l = 0; l < g->nloop && k->step[s] != NULL && k->own[s] != 1; l++)
        if (k->step[s][l] != 0) word[n++] = (uint64_t)k->step[s][l];
  }
}

static ein_status eini_cuda_going_run(ein_cuda *c, const ein_group *g, const ein_choice *h) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_together way;
  memcpy(&way, h->state, sizeof way);
  eini_cuda_going *a = eini_cuda_going_new(c, g);
  if (a == NULL) return EIN_ERR_NO_MEMORY;
  memset(word, 0, sizeof word);
  eini_cuda_going_words(g, a, word);
  c->al.free_fn(a, sizeof *a, c->al.user);
  return eini_cuda_together_go(c, &way, word);
}

// ---- slots ----

static int eini_slot_cuda_group_plan(void *user, const ein_group *g, int nth, ein_choice *h) {
  ein_cuda *c = (ein_cuda *)user;
  return g->along < 0 ? eini_cuda_group_plan(c, g, nth, h) : eini_cuda_going_plan(c, g, nth, h);
}

static ein_status eini_slot_cuda_group_run(void *user, const ein_group *g, const ein_choice *h) {
  ein_cuda *c = eini_cuda_here(user);
  return g->along < 0 ? eini_cuda_group_run(c, g, h) : eini_cuda_going_run(c, g, h);
}
