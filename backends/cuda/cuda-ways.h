// ================================================================================================
// >>cuda-ways  which kernel runs, and how fast
// Takes a nest; gives the ways there are with predicted seconds, the copies of host operands
// counted, and runs the one that was chosen. All that is decided is in ein_choice.state.
// ================================================================================================

typedef enum eini_cuda_way_id {
  EINI_CUDA_ELEMENTS, EINI_CUDA_TURN, EINI_CUDA_DOWN, EINI_CUDA_ACROSS, EINI_CUDA_TILES,
  EINI_CUDA_PARTED, EINI_CUDA_CORES, EINI_CUDA_CORES_PARTED, EINI_CUDA_BLAS, EINI_CUDA_LT,
  EINI_CUDA_WAYS
} eini_cuda_way_id;

static int eini_cuda_is_tiled(int id) {
  return id >= EINI_CUDA_TILES && id <= EINI_CUDA_CORES_PARTED;
}
static int eini_cuda_is_parted(int id) {
  return id == EINI_CUDA_PARTED || id == EINI_CUDA_CORES_PARTED;
}

typedef struct eini_cuda_way {
  int id;
  int32_t packed;                // a bit for each stream
  eini_cuda_kernel *kernel, *ends;
  int64_t splits, chunk;
  eini_cuda_shape shape;
  int a, b;                      // of a turn
  int64_t calls;                 // of cuBLAS for products of several places; 0: one
} eini_cuda_way;

// What is assumed of machines that nobody calibrated. NVIDIA's guides give about these for a
// launch, a PCIe 4 link, and kernels like these.
static const double eini_cuda_launch_seconds = 6e-6, eini_cuda_copy_seconds = 1e-5;
static const double eini_cuda_link = 2.2e10;        // bytes per second between host and device
static const double eini_cuda_share = 0.8;          // of the bandwidth that a streaming kernel has
static const double eini_cuda_tile_share = 0.4;     // of the peak, and cuBLAS
static const double eini_cuda_blas_share = 0.8;
static const double eini_cuda_cores_share = 0.35;   // of what tensor cores do at best
static const double eini_cuda_cached = 3;           // times the bandwidth of memory, of its cache
static const double eini_cuda_load_flops = 8;       // operations in the time of a load
static const double eini_cuda_busy = 1024;          // threads of a multiprocessor that is busy
static const double eini_cuda_apart = 4;            // how much more a gathered read moves

// What the device's tensor cores have for sums of products of type `type` whose factors are stored
// as p and q (EIN_NONE: are not as they are stored). f32 is rounded where that was asked for.
static int eini_cuda_cores_for(const ein_cuda *c, ein_dtype type, ein_dtype p, ein_dtype q) {
  const int arch = 10 * c->device.major + c->device.minor;
  if (arch < 75) return EINI_CUDA_CORES_NONE;
  if (type == EIN_F64) return arch < 80 ? EINI_CUDA_CORES_NONE : EINI_CUDA_CORES_F64;
  if (type != EIN_F32) return EINI_CUDA_CORES_NONE;
  if (p == q && p == EIN_F16) return arch < 80 ? EINI_CUDA_CORES_F16_8 : EINI_CUDA_CORES_F16;
  if (p == q && p == EIN_BF16 && arch >= 80) return EINI_CUDA_CORES_BF16;
  return c->tf32 && arch >= 80 ? EINI_CUDA_CORES_TF32 : EINI_CUDA_CORES_NONE;
}

static int eini_cuda_cores_of(const ein_cuda *c, const ein_contract *of) {
  const int stored = eini_cuda_as_stored(&of->p) && eini_cuda_as_stored(&of->q);
  if (of->pair != EIN_PAIR_SUM_MUL) return EINI_CUDA_CORES_NONE;
  return eini_cuda_cores_for(c, of->type, stored ? of->p.dtype[0] : EIN_NONE,
                             stored ? of->q.dtype[0] : EIN_NONE);
}

static int eini_cuda_has(const eini_cuda_nest *x, int id, const ein_contract *c, ein_cuda *cuda,
                         eini_cuda_way *w) {
  const int folds = x->fold != EIN_FOLD_NONE, product = x->kind == EINI_CUDA_CONTRACT;
  eini_cuda_turn u;
  eini_cuda_gemm g;
  eini_cuda_lt lt;
  switch (id) {
    case EINI_CUDA_ELEMENTS: return !folds;
    case EINI_CUDA_TURN:
      if (!eini_cuda_turns(x, &u)) return 0;
      w->a = u.a;
      w->b = u.b;
      return 1;
    case EINI_CUDA_DOWN: case EINI_CUDA_ACROSS: return folds;
    case EINI_CUDA_TILES: case EINI_CUDA_PARTED: return product;
    case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED:
      w->shape.cores = product && c != NULL ? eini_cuda_cores_of(cuda, c) : EINI_CUDA_CORES_NONE;
      return w->shape.cores != EINI_CUDA_CORES_NONE;
    case EINI_CUDA_BLAS:
      if (!product || c == NULL || !eini_cuda_gemm_of(cuda, x, c, &g)) return 0;
      w->calls = !g.apart ? 0 : eini_cuda_gemm_groups(cuda, x) ? 1 : g.batch;
      return 1;
    default:
      return product && c != NULL && eini_cuda_lt_of(cuda, x, c, &lt) &&
             eini_cuda_lt_known(cuda, x, &lt);
  }
}

// Rows and columns of a thread by the extents; 16-byte values have half.
static void eini_cuda_shape_of(const ein_cuda *c, const eini_cuda_nest *x, eini_cuda_way *w) {
  const int64_t batch = eini_cuda_extent(x, 0, x->axes[1]);
  const int64_t m = eini_cuda_extent(x, x->axes[1], x->axes[2]);
  const int64_t n = eini_cuda_extent(x, x->axes[2], x->axes[3]);
  const int64_t k = eini_cuda_extent(x, x->axes[3], x->n);
  const int most = x->type == EIN_C128 ? 2 : 4;
  eini_cuda_shape *f = &w->shape;
  f->async = c->device.major >= 8;
  f->rows = m > 32 ? most : m > 16 ? 2 : 1;
  f->cols = n > 32 ? most : n > 16 ? 2 : 1;
  if (f->cores) {  // fragments have 16 rows, or 8: as many as leave each warp one
    const int wide = f->cores == EINI_CUDA_CORES_F64 ? 4 : 8;
    f->rows = m > 64 ? wide : 4;
    f->cols = n > 64 ? wide : n > 32 ? 4 : n > 16 ? 2 : 1;
  }
  for (int side = 0; side < 2; side++) {  // which neighbours are closer in the first operand
    const int s = side ? x->second : 0, last = x->axes[2 + side] - 1;
    if (s >= (side ? x->nop : x->second)) continue;
    const int64_t row = last < x->axes[1 + side] ? 0 : eini_abs64(x->used[s][last]);
    const int64_t by = x->n > x->axes[3] ? eini_abs64(x->used[s][x->n - 1]) : 0;
    f->along[side] = by != 0 && (row == 0 || by < row);
  }
  const double tiles = (double)batch * (double)eini_ceil_div(m, EINI_CUDA_SIDE * f->rows) *
                       (double)eini_ceil_div(n, EINI_CUDA_SIDE * f->cols);
  const double want = 2.0 * c->device.processors / tiles, deep = (double)k / 128;
  w->splits = 1;
  if (want > 1 && deep > 1) w->splits = (int64_t)fmin(ceil(want), ceil(deep));
  w->chunk = eini_up(eini_ceil_div(eini_max64(k, 1), w->splits), EINI_CUDA_DEPTH);
  w->splits = eini_ceil_div(k, w->chunk);
}

static double eini_cuda_blocks_of(const eini_cuda_nest *x, const eini_cuda_way *w) {
  const double free_points = (double)eini_cuda_extent(x, 0, x->nfree);
  double n = 1;
  switch (w->id) {
    case EINI_CUDA_ACROSS: return free_points;
    case EINI_CUDA_TURN:
      for (int i = 0; i < x->nfree; i++)
        n *= i == w->a || i == w->b ? ceil((double)x->extent[i] / EINI_CUDA_TILE)
                                    : (double)x->extent[i];
      return n;
    case EINI_CUDA_TILES: case EINI_CUDA_PARTED: case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED:
      n = (double)eini_cuda_extent(x, 0, x->axes[1]);
      n *= ceil((double)eini_cuda_extent(x, x->axes[1], x->axes[2]) /
                (EINI_CUDA_SIDE * w->shape.rows));
      n *= ceil((double)eini_cuda_extent(x, x->axes[2], x->axes[3]) /
                (EINI_CUDA_SIDE * w->shape.cols));
      return n * (double)(eini_cuda_is_parted(w->id) ? w->splits : 1);
    default: return ceil(free_points / EINI_CUDA_THREADS);
  }
}

// Bytes that move in the device's memory: streams that neighbouring threads read far apart count
// more. along: the loop that neighbours differ in.
static double eini_cuda_traffic(const eini_cuda_nest *x, int along, const eini_cuda_turn *u) {
  double sum = 0;
  for (int s = 0; s < x->nstream; s++) {
    if (x->value[s]) continue;
    const int far = along >= 0 && eini_abs64(x->used[s][along]) > 1 && !(u != NULL && u->turned[s]);
    sum += (double)eini_cuda_points(x, s) * x->size[s] * (far ? eini_cuda_apart : 1);
  }
  return sum;
}

// What the device does, as it was measured (ein_rates.away, in this order, each per second) or as
// it is assumed.
typedef struct eini_cuda_speeds {
  double copies, link;           // between host and device, bytes
  double launches, stream;       // bytes of a streaming kernel
  double tiles[2], cores[5], blas[2];  // operations, of f32 and f64, and by eini_cuda_cores - 1
} eini_cuda_speeds;

static eini_cuda_speeds eini_cuda_speeds_of(const ein_cuda *c, const ein_rates *r) {
  eini_cuda_speeds v;
  if (r != NULL && r->away[0] > 0) {
    memcpy(&v, r->away, sizeof v);
    return v;
  }
  v.copies = 1 / eini_cuda_copy_seconds;
  v.link = eini_cuda_link;
  v.launches = 1 / eini_cuda_launch_seconds;
  v.stream = eini_cuda_share * c->device.bandwidth;
  for (int wide = 0; wide < 2; wide++) {
    const double peak = wide ? c->device.flops_f64 : c->device.flops_f32;
    v.tiles[wide] = eini_cuda_tile_share * peak;
    v.blas[wide] = eini_cuda_blas_share * peak;
  }
  for (int i = 0; i < 5; i++) v.cores[i] = eini_cuda_cores_share * c->device.flops_cores[1 + i];
  return v;
}

// Seconds on the device.
static double eini_cuda_seconds(const ein_cuda *c, const eini_cuda_nest *x,
                                const eini_cuda_way *w) {
  const double all = (double)eini_cuda_extent(x, 0, x->nfree) *
                     (double)eini_cuda_extent(x, x->nfree, x->n);
  const int single = x->type == EIN_F32 || x->type == EIN_C64 || x->type == EIN_I32;
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x->rates);
  const double planes = eini_cuda_complex(x->type) ? 4 : 1, wide = c->device.processors;
  const double blocks = eini_cuda_blocks_of(x, w), full = fmin(1, blocks / wide);
  double bytes = 0, flops = 0, speed = single ? c->device.flops_f32 : c->device.flops_f64;
  eini_cuda_turn u;
  switch (w->id) {
    case EINI_CUDA_TURN:
      (void)eini_cuda_turns(x, &u);
      bytes = eini_cuda_traffic(x, w->b, &u);
      break;
    case EINI_CUDA_ELEMENTS: case EINI_CUDA_DOWN:
      bytes = eini_cuda_traffic(x, x->nfree - 1, NULL);
      flops = 4 * all * planes;
      break;
    case EINI_CUDA_ACROSS:
      bytes = eini_cuda_traffic(x, x->n - 1, NULL);
      flops = 4 * planes * (all + 16.0 * EINI_CUDA_THREADS * blocks);
      break;
    case EINI_CUDA_BLAS: speed = v.blas[!single]; break;
    case EINI_CUDA_LT:
      speed = v.blas[!single];
      if (x->size[0] == 2)
        speed = eini_cuda_blas_share / eini_cuda_cores_share * v.cores[EINI_CUDA_CORES_F16 - 1];
      break;
    case EINI_CUDA_CORES: case EINI_CUDA_CORES_PARTED: speed = v.cores[w->shape.cores - 1]; break;
    default: speed = v.tiles[!single]; break;
  }
  if (w->id >= EINI_CUDA_TILES) {
    bytes = eini_cuda_traffic(x, -1, NULL);
    flops = 2 * planes * all;
    if (w->id < EINI_CUDA_BLAS)  // tiles that are not full
      flops = 2 * planes * blocks * (double)(EINI_CUDA_SIDE * EINI_CUDA_SIDE) * w->shape.rows *
              w->shape.cols * (double)(eini_cuda_is_parted(w->id)
                                           ? w->chunk : eini_cuda_extent(x, x->axes[3], x->n));
  } else if (x->kind == EINI_CUDA_CONTRACT) {
    bytes += 0.1 * all * x->size[0];  // read again, mostly from caches
  }
  const double launches = eini_cuda_is_parted(w->id) ? 2 : fmax(1, (double)w->calls);
  const double busy = w->id >= EINI_CUDA_BLAS ? 1 : full;
  return launches / v.launches + fmax(bytes / v.stream, flops / speed) / busy;
}

// Bytes of operands that are staged, of *n of them.
static double eini_cuda_staged(const eini_cuda_nest *x, int *n) {
  double bytes = 0;
  int64_t low;
  *n = 0;
  for (int s = 0; s < x->nstream; s++) {
    if (x->value[s] || x->away[s]) continue;
    bytes += x->size[s] * (double)(x->packed[s] ? eini_cuda_points(x, s)
                                                : eini_cuda_hull(x, 0, s, &low));
    ++*n;
  }
  return bytes;
}

// Bytes that the parts of a contraction take.
static double eini_cuda_parts_bytes(const eini_cuda_nest *x, const eini_cuda_way *w) {
  return !eini_cuda_is_parted(w->id) ? 0 : (double)eini_cuda_extent(x, 0, x->nfree) *
                                             (double)w->splits * (double)ein_dtype_size(x->type);
}

// ---- choosing ----

// The nest that folds what the parts of a contraction left: a loop over parts behind the free ones.
static int eini_cuda_parts(const eini_cuda_nest *x, int64_t splits, eini_cuda_nest *y) {
  const int shift = x->extra - 1;
  int64_t step = 1;
  memset(y, 0, sizeof *y);
  if (x->nfree + 1 > EINI_CUDA_LOOPS) return 0;
  y->kind = EINI_CUDA_PARTS;
  y->n = x->nfree + 1;
  y->nfree = x->nfree;
  y->nop = y->extra = 1;
  y->extra_value = x->extra_value - shift;
  y->nstream = x->nstream - shift;
  y->out = y->nstream - 1;
  y->dtype[0] = (unsigned char)x->type;
  y->size[0] = (unsigned char)ein_dtype_size(x->type);
  y->extent[x->nfree] = splits;
  for (int i = x->nfree - 1; i >= 0; i--) {
    y->extent[i] = x->extent[i];
    y->stride[0][i] = step;
    step *= x->extent[i];
  }
  y->stride[0][x->nfree] = step;
  for (int s = 1; s < y->nstream; s++) {
    y->dtype[s] = x->dtype[s + shift];
    y->size[s] = x->size[s + shift];
    y->base[s] = x->base[s + shift];
    for (int i = 0; i < x->nfree; i++) y->stride[s][i] = x->used[s + shift][i];
  }
  y->store = x->store;
  y->type = y->result = x->type;
  y->fold = x->fold;
  y->count = 1;
  y->param = x->param;
  eini_cuda_strides(y);
  return 1;
}

// The source of a way; NULL: it cannot be said.
static eini_cuda_kernel *eini_cuda_write(ein_cuda *c, const eini_cuda_nest *x,
                                         const eini_cuda_way *w) {
  eini_cuda_writer t;
  eini_cuda_turn u;
  eini_cuda_kernel *k = NULL;
  if (!eini_cuda_writer_begin(c, &t)) return NULL;
  eini_cuda_writer_of(&t, x);
  eini_cuda_say_helpers(&t);
  eini_cuda_say_args(&t);
  int said = eini_cuda_say_fold(&t);
  if (said && w->id == EINI_CUDA_ELEMENTS) eini_cuda_say_elements(&t);
  else if (said && w->id == EINI_CUDA_DOWN) eini_cuda_say_down(&t);
  else if (said && w->id == EINI_CUDA_ACROSS) eini_cuda_say_across(&t);
  else if (said && w->id == EINI_CUDA_TURN) said = eini_cuda_turns(x, &u);
  else if (said) eini_cuda_say_tiles(&t, &w->shape);
  if (said && w->id == EINI_CUDA_TURN) eini_cuda_say_turn(&t, &u);
  if (said) k = eini_cuda_kernel_of(c, &t);
  eini_cuda_writer_end(c, &t);
  return k;
}

// Makes a way ready to run; 0: it cannot.
static int eini_cuda_make(ein_cuda *c, const eini_cuda_nest *x, eini_cuda_way *w) {
  eini_cuda_nest ends;
  eini_cuda_way fold;
  if (w->id >= EINI_CUDA_BLAS) return 1;
  if (eini_cuda_blocks_of(x, w) > INT32_MAX) return 0;
  w->shape.split = eini_cuda_is_parted(w->id);
  w->kernel = eini_cuda_write(c, x, w);
  if (w->kernel == NULL || !w->shape.split) return w->kernel != NULL;
  memset(&fold, 0, sizeof fold);
  fold.id = EINI_CUDA_DOWN;
  if (!eini_cuda_parts(x, w->splits, &ends)) return 0;
  w->ends = eini_cuda_write(c, &ends, &fold);
  return w->ends != NULL;
}

// The nth way, or the fastest; 0: there is none.
static int eini_cuda_plan(ein_cuda *c, eini_cuda_nest *x, const ein_contract *of, int nth,
                          ein_choice *h) {
  static const char *const names[] = {"elements", "turn", "down", "across", "tiles", "parts",
                                      "cores", "cores parts", "gemm", "lt"};
  eini_cuda_way best, w;
  double least = 0;
  int found = 0, ways = 0;
  if (!eini_cuda_stage(x)) return 0;
  eini_cuda_strides(x);
  memset(&best, 0, sizeof best);
  for (int id = 0; id < EINI_CUDA_WAYS; id++) {
    memset(&w, 0, sizeof w);
    w.id = id;
    if (!eini_cuda_has(x, id, of, c, &w)) continue;
    if (eini_cuda_is_tiled(id)) eini_cuda_shape_of(c, x, &w);
    if (eini_cuda_is_parted(id) && w.splits < 2) continue;
    if (id == EINI_CUDA_TILES || id == EINI_CUDA_CORES) {
      w.splits = 1;
      w.chunk = eini_up(eini_cuda_extent(x, x->axes[3], x->n), EINI_CUDA_DEPTH);
    }
    const double seconds = eini_cuda_seconds(c, x, &w);
    if (nth < 0 ? !found || seconds < least : ways == nth) best = w, least = seconds, found = 1;
    ways++;
  }
  if (!found || !eini_cuda_make(c, x, &best)) return 0;
  for (int s = 0; s < x->nstream; s++) best.packed |= (int32_t)x->packed[s] << s;
  memset(h, 0, sizeof *h);
  for (int i = 0; i < 3; i++) h->grid[i] = h->unit[i] = 1;
  int staged;
  const double bytes = eini_cuda_staged(x, &staged);
  const double room = bytes + eini_cuda_parts_bytes(x, &best);
  h->away = room < 9e18 ? (size_t)room : SIZE_MAX / 4;
  const eini_cuda_speeds v = eini_cuda_speeds_of(c, x->rates);
  h->seconds = c->only == 1 ? 0 : least + staged / v.copies + bytes / v.link;
  snprintf(h->variant, sizeof h->variant, "%s", best.calls > 0 ? "grouped" : names[best.id]);
  memcpy(h->state, &best, sizeof best);
  return 1;
}

// ---- running ----

static ein_status eini_cuda_go(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                               eini_cuda_kernel *k, const void *part) {
  uint64_t word[EINI_CUDA_WORDS];
  eini_cuda_writer t;
  const int64_t z[EINI_CUDA_NUMBERS] = {eini_cuda_extent(x, 0, x->nfree),
                                        eini_cuda_extent(x, x->nfree, x->n), w->chunk, w->splits};
  double blocks = eini_cuda_blocks_of(x, w);
  if (w->id < EINI_CUDA_TILES && w->id != EINI_CUDA_TURN)
    blocks = fmin(blocks, 32.0 * c->device.processors);
  if (!(blocks <= INT32_MAX)) return EIN_ERR_TOO_LARGE;
  memset(&t, 0, sizeof t);
  eini_cuda_writer_of(&t, x);
  (void)eini_cuda_arguments(&t, z, part, word);
  return eini_cuda_launch(c, k, (int64_t)blocks, 0, word);
}

// A contraction in parts: each leaves its folds, then these are folded and stored.
static ein_status eini_cuda_go_parts(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w) {
  eini_cuda_nest ends;
  eini_cuda_way fold = *w;
  uint64_t part = 0;
  fold.id = EINI_CUDA_DOWN;
  if (!eini_cuda_parts(x, w->splits, &ends)) return EIN_ERR_INTERNAL;
  const double bytes = eini_cuda_parts_bytes(x, w);
  if (!(bytes < 9e18)) return EIN_ERR_TOO_LARGE;
  EINI_TRY(eini_cuda_take(c, (size_t)bytes, &part));
  ends.base[0] = (char *)(uintptr_t)part;
  ein_status st = eini_cuda_captured(c) ? EIN_OK : eini_cuda_join(c);
  if (st == EIN_OK) st = eini_cuda_go(c, x, w, w->kernel, ends.base[0]);
  if (st == EIN_OK) st = eini_cuda_go(c, &ends, &fold, w->ends, NULL);
  eini_cuda_drop(c, part);
  return st;
}

static ein_status eini_cuda_start_way(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                                      const ein_contract *of) {
  eini_cuda_gemm g;
  eini_cuda_lt lt;
  if (eini_cuda_is_parted(w->id)) return eini_cuda_go_parts(c, x, w);
  if (w->id < EINI_CUDA_BLAS) return eini_cuda_go(c, x, w, w->kernel, NULL);
  if (w->id == EINI_CUDA_LT)
    return eini_cuda_lt_of(c, x, of, &lt) ? eini_cuda_lt_run(c, x, of, &lt) : EIN_ERR_INTERNAL;
  if (!eini_cuda_gemm_of(c, x, of, &g)) return EIN_ERR_INTERNAL;
  return eini_cuda_gemm_run(c, x, &g, of->scaled ? of->alpha : NULL);
}

// The same between two events. A kernel's compilation is not in between.
static ein_status eini_cuda_timed(ein_cuda *c, const eini_cuda_nest *x, const eini_cuda_way *w,
                                  const ein_contract *of) {
  if (w->kernel != NULL) EINI_TRY(eini_cuda_ready_kernel(c, w->kernel));
  if (w->ends != NULL) EINI_TRY(eini_cuda_ready_kernel(c, w->ends));
  EINI_TRY(eini_cuda_clock(c, 0));
  EINI_TRY(eini_cuda_start_way(c, x, w, of));
  return eini_cuda_clock(c, 1);
}

// Runs what was chosen. What lies on the host is staged; then it is done, else it may go on.
static ein_status eini_cuda_run(ein_cuda *c, eini_cuda_nest *x, const ein_contract *of,
                                const ein_choice *h) {
  eini_cuda_way w;
  eini_cuda_room room;
  memcpy(&w, h->state, sizeof w);
  for (int s = 0; s < x->nstream; s++) x->packed[s] = (unsigned char)(w.packed >> s & 1);
  eini_cuda_strides(x);
  if (w.kernel != NULL && (w.kernel = eini_cuda_kernel_here(c, w.kernel)) == NULL)
    return EIN_ERR_NO_MEMORY;
  if (w.ends != NULL && (w.ends = eini_cuda_kernel_here(c, w.ends)) == NULL)
    return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_cuda_enter(c));
  ein_status st = eini_cuda_bring(c, x, &room);
  if (st == EIN_OK) st = eini_cuda_timed(c, x, &w, of);
  if (st == EIN_OK) st = eini_cuda_return(c, x, &room);
  eini_cuda_leave(c, &room);
  if (st != EIN_OK && !eini_cuda_captured(c))
    (void)c->api.stream_wait(c->stream);  // nothing of this call is under way
  return eini_cuda_exit(c, st);
}
