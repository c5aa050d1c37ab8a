// ================================================================================================
// >>cuda-maps  kernels of maps and copies
// Takes a nest; gives the source of a kernel: an element a thread, tiles through shared memory
// where two memory orders meet, a fold a thread, or a fold a block. All are of 256 threads.
// ================================================================================================

#define EINI_CUDA_THREADS 256
#define EINI_CUDA_TILE 32      // sides of a tile that is turned

// Loops of a map that is turned: a is dense in the operands marked, b in the output.
typedef struct eini_cuda_turn {
  int a, b;
  unsigned char turned[EINI_CUDA_STREAMS];
} eini_cuda_turn;

static void eini_cuda_say_begin(eini_cuda_writer *w) {
  eini_say(&w->t, "EIN_KERNEL ein_kernel(const ein_args p) {\n");
}

// The position of the value at hand, or 0.
static void eini_cuda_say_position(eini_cuda_writer *w, char name[16]) {
  snprintf(name, 16, "0");
  for (int s = 0; s < w->x->extra; s++)
    if (w->x->value[s] == 2) snprintf(name, 16, "i%d", s);
}

static void eini_cuda_say_elements(eini_cuda_writer *w) {
  char name[16] = "";
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID * %d + EIN_TID; i < (ix)p.z[0];\n"
                  "       i += (ix)EIN_BLOCKS * %d) {\n", EINI_CUDA_THREADS, EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, w->x->nfree);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(&w->t, "  }\n}\n");
}

// A fold a thread: neighbours are next to each other in the output.
static void eini_cuda_say_down(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID * %d + EIN_TID; i < (ix)p.z[0];\n"
                  "       i += (ix)EIN_BLOCKS * %d) {\n", EINI_CUDA_THREADS, EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(&w->t, "  ein_state a = ein_none();\n");
  for (int i = x->nfree; i < x->n; i++)
    eini_say(&w->t, "  for (ix j%d = 0; j%d < (ix)p.e[%d]; j%d++)\n", i, i, i, i);
  eini_say(&w->t, "  {\n");
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(&w->t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(&w->t, "  const %s y = ein_finish(a, p.q[%d]);\n", eini_cuda_type(x->result), 2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n}\n");
}

// A fold a block: threads go along the reduced loops, then a tree over their states.
static void eini_cuda_say_across(eini_cuda_writer *w) {
  const eini_cuda_nest *x = w->x;
  char name[16] = "", at[16];
  eini_cuda_say_begin(w);
  eini_say(&w->t, "  EIN_SHARED ein_state all[%d];\n", EINI_CUDA_THREADS);
  eini_say(&w->t, "  for (ix i = (ix)EIN_BID; i < (ix)p.z[0]; i += (ix)EIN_BLOCKS) {\n");
  eini_cuda_say_split(w, "i", 0, x->nfree);
  eini_say(&w->t, "  ein_state a = ein_none();\n"
                  "  for (ix k = EIN_TID; k < (ix)p.z[1]; k += %d) {\n", EINI_CUDA_THREADS);
  eini_cuda_say_split(w, "k", x->nfree, x->n);
  eini_cuda_say_loads(w, NULL);
  eini_cuda_say_value(w, name);
  eini_cuda_say_position(w, at);
  eini_say(&w->t, "  a = ein_merge(a, ein_lift(%s, %s));\n  }\n", name, at);
  eini_say(&w->t, "  all[EIN_TID] = a;\n  EIN_SYNC;\n"
                  "  for (int h = %d; h > 0; h >>= 1) {\n"
                  "  if (EIN_TID < h) all[EIN_TID] = ein_merge(all[EIN_TID], all[EIN_TID + h]);\n"
                  "  EIN_SYNC;\n  }\n  if (EIN_TID == 0) {\n", EINI_CUDA_THREADS / 2);
  eini_say(&w->t, "  const %s y = ein_finish(all[0], p.q[%d]);\n", eini_cuda_type(x->result),
           2 * w->q);
  eini_cuda_say_store(w, "y");
  eini_say(&w->t, "  }\n  EIN_SYNC;\n  }\n}\n");
}

// ---- tiles that are turned ----

// The loop that a stream is densest along, of free ones, or -1.
static int eini_cuda_dense(const eini_cuda_nest *x, int s) {
  int best = -1;
  for (int i = 0; i < x->nfree; i++) {
    const int64_t by = eini_abs64(x->used[s][i]);
    if (by != 0 && x->extent[i] > 1 && (best < 0 || by < eini_abs64(x->used[s][best]))) best = i;
  }
  return best;
}

// Is it a map whose operands, two at most, are dense along another loop than the output is?
static int eini_cuda_turns(const eini_cuda_nest *x, eini_cuda_turn *u) {
  int n = 0;
  memset(u, 0, sizeof *u);
  u->b = eini_cuda_dense(x, x->out);
  if (x->fold != EIN_FOLD_NONE || x->kind == EINI_CUDA_CONTRACT || u->b < 0) return 0;
  for (int s = 0; s < x->nop; s++) {
    const int a = eini_cuda_dense(x, s);
    if (a < 0 || a == u->b || x->used[s][u->b] == 0 || (n > 0 && a != u->a) || n == 2) continue;
    u->a = a;
    u->turned[s] = 1;
    n++;
  }
  return n > 0 && x->extent[u->a] >= 8 && x->extent[u->b] >= 8;
}

// Loops of a tile: threads along `fast`, eight rows of them along `slow`.
static void eini_cuda_say_tile(eini_cuda_writer *w, int fast, int slow) {
  const int side = EINI_CUDA_TILE;
  eini_say(&w->t, "  for (int y = EIN_TID / %d; y < %d; y += %d) {\n"
                  "  const int x = EIN_TID %% %d;\n", side, side, EINI_CUDA_THREADS / side, side);
  eini_say(&w->t, "  const ix j%d = t%d * %d + x, j%d = t%d * %d + y;\n", fast, fast, side, slow,
           slow, side);
  eini_say(&w->t, "  if (j%d < (ix)p.e[%d] && j%d < (ix)p.e[%d]) {\n", fast, fast, slow, slow);
}

static void eini_cuda_say_turn(eini_cuda_writer *w, const eini_cuda_turn *u) {
  const eini_cuda_nest *x = w->x;
  const int side = EINI_CUDA_TILE;
  char name[16] = "";
  eini_text *t = &w->t;
  eini_cuda_say_begin(w);
  for (int s = 0; s < x->nop; s++)
    if (u->turned[s])
      eini_say(t, "  EIN_SHARED %s m%d[%d][%d];\n", eini_cuda_stored((ein_dtype)x->dtype[s]), s,
               side, side + 1);
  eini_say(t, "  const ix na = ((ix)p.e[%d] + %d) / %d, nb = ((ix)p.e[%d] + %d) / %d;\n", u->a,
           side - 1, side, u->b, side - 1, side);
  eini_say(t, "  ix d = (ix)EIN_BID;\n  const ix t%d = d %% na; d /= na;\n"
              "  const ix t%d = d %% nb; d /= nb;\n", u->a, u->b);
  for (int i = x->nfree - 1; i >= 0; i--)
    if (i != u->a && i != u->b)
      eini_say(t, "  const ix j%d = d %% (ix)p.e[%d]; d /= (ix)p.e[%d];\n", i, i, i);
  eini_cuda_say_tile(w, u->a, u->b);
  for (int s = 0; s < x->nop; s++) {
    if (!u->turned[s]) continue;
    eini_say(t, "  m%d[y][x] = ((const %s *)p.b[%d])[", s,
             eini_cuda_stored((ein_dtype)x->dtype[s]), s);
    eini_cuda_say_offset(w, s, 0, x->n);
    eini_say(t, "];\n");
  }
  eini_say(t, "  }\n  }\n  EIN_SYNC;\n");
  eini_cuda_say_tile(w, u->b, u->a);
  for (int s = 0; s < x->nop; s++)
    if (u->turned[s])
      eini_say(t, "  const %s r%d = m%d[x][y];\n", eini_cuda_stored((ein_dtype)x->dtype[s]), s, s);
  eini_cuda_say_loads(w, u->turned);
  eini_cuda_say_value(w, name);
  eini_cuda_say_store(w, name);
  eini_say(t, "  }\n  }\n}\n");
}
