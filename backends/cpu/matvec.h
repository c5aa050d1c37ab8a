// ================================================================================================
// >>matvec  matrix-vector products, dot and inner products
// One side is a matrix, the other depends on k only, or has few rows. The matrix is read once, in
// place, along k as dot products of several rows, or along its rows as sums of several columns,
// with those of all vectors in the first- or second-level cache. What has no unit steps is fetched.
// ================================================================================================

#define EINI_DIR_ROWS 512    // rows of a block
#define EINI_DIR_KB 4096     // k of a block
#define EINI_DIR_Y 16384     // bytes of a block of the output
#define EINI_DIR_COLUMNS 4   // short columns that are asked for ahead
#define EINI_DIR_VECTORS 16  // at most; more are a matrix

typedef struct eini_dir_mv {
  eini_dir_job j;
  int group, other, a, x;      // groups of the rows and of the vectors; first streams of the
                               // matrix and the vectors
  int by_rows, fetch, direct;  // along k; the matrix is fetched; the vector is read in place
  int one, far;                // a single row; it, or short rows, come from memory
  int log;                     // of the number of columns at once
  int apart;                   // short columns come from memory, and do not follow each other
  int64_t vectors;             // how many
  int64_t block, pitch;        // bytes of a block of the output by columns, and from one vector's
                               // to the next
  int64_t run, kb;             // contiguous elements of the matrix
  char *xv, *xs, *y, *y2, *av, *sums;
  int64_t *row, *koff;
} eini_dir_mv;

// The stream of a side with the largest extent in memory.
static int eini_dir_largest(const eini_dir_job *j, int s0) {
  int best = s0;
  int64_t most = -1;
  for (int o = s0; o < s0 + (s0 ? j->c->q.nop : j->c->p.nop); o++) {
    int64_t reach = 0;
    for (int g = 0; g < 4; g++) {
      for (int d = 0; d < j->x[g].n; d++) {
        reach += eini_abs64(j->x[g].stride[o][d]) * (j->x[g].extent[d] - 1);
      }
    }
    if (reach > most) most = reach, best = o;
  }
  return best;
}

// How many rows or columns to read at once. What comes from memory is fastest as one stream, which
// needs the vector or the output in the first-level cache; else as a few that are far apart.
static void eini_dir_mv_streams(eini_dir_mv *v, const eini_cpu *cpu, int64_t step) {
  const eini_dir_job *j = &v->j;
  const int64_t k = j->x[EINI_DIR_K].size, run = v->run * j->unit;
  const double bytes = (double)j->x[EINI_DIR_B].size * (double)j->x[v->group].size * (double)k;
  const int far = !v->fetch && eini_cpu_far(cpu, bytes * j->unit);
  v->far = far && (v->one || (step == k && eini_min64(run, v->kb * j->unit) <= cpu->l1 / 2));
  v->log = 3;
  v->apart = 0;
  v->block = EINI_DIR_Y;
  if (v->vectors > 1) {  // far: as long runs as sums in the second-level cache allow
    const int64_t sums = (far ? cpu->l2 / 2 : EINI_DIR_Y) / v->vectors;
    v->block = eini_max64(EINI_DIR_Y / 8, eini_min64(run, sums));
    return;
  }
  if (!far || v->by_rows || v->run < 4 * j->kern->lanes) return;
  if (run <= cpu->l1 / 4) {
    v->log = 0;
    v->apart = eini_dir_step(&j->x[EINI_DIR_K], v->a) > v->run;
  } else if (run > cpu->l1 / 2 && j->planes == 1) {
    v->log = 2;
    v->block = eini_min64(run, cpu->l2 / 2);
  }
}

// How to run: from the whole contraction, so that parts have the same bits.
static void eini_dir_mv_init(eini_dir_mv *v, const eini_cpu *cpu, const ein_contract *c,
                             const ein_part *part) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  eini_dir_init(j, cpu, c);
  const int swap = j->x[EINI_DIR_M].size < j->x[EINI_DIR_N].size;
  v->group = swap ? EINI_DIR_N : EINI_DIR_M;
  v->other = swap ? EINI_DIR_M : EINI_DIR_N;
  v->vectors = j->x[v->other].size;
  v->a = swap ? EINI_DIR_OPS : 0;
  v->x = EINI_DIR_OPS - v->a;
  eini_dir_index *r = &j->x[v->group];
  const int64_t m = r->size;
  const ein_side *side = swap ? &c->q : &c->p, *vec = swap ? &c->p : &c->q;
  eini_dir_index whole = *r;
  const int big = eini_dir_largest(j, v->a);
  eini_dir_sort(&whole, big);
  eini_dir_sort(&j->x[EINI_DIR_K], big);
  const int64_t krun = eini_dir_run(k, big, 1), rrun = eini_dir_run(&whole, big, 1);
  v->one = m == 1;
  v->fetch = side->form != EIN_FORM_PLAIN || (krun == 1 && rrun == 1 && k->size > 1 && m > 1);
  v->by_rows = v->fetch || m == 1 || krun >= rrun;
  if (m == 1 && krun == 1) v->fetch = 1;
  v->run = v->by_rows ? (v->fetch ? k->size : krun) : rrun;
  v->direct = v->by_rows && v->vectors == 1 && j->planes == 1 && vec->form == EIN_FORM_PLAIN &&
              eini_dir_run(k, v->x, 1) == k->size;
  v->kb = v->fetch ? EIN_POINTS : EINI_DIR_KB;
  if (v->direct && m == 1 && !v->fetch && v->run == k->size) v->kb *= 16;
  if (v->vectors > 1 && v->by_rows) v->kb = EINI_DIR_KB / 8;  // rows stay in the first cache
  eini_dir_mv_streams(v, cpu, eini_dir_step(&whole, v->a));
  if (part != NULL) {
    const int64_t *cut = swap ? part->n : part->m;
    eini_dir_cut(j, v->group, cut[0], cut[1]);
  }
  eini_dir_sort(r, big);
  if (!v->by_rows) v->run = eini_dir_run(r, big, 1);
}

static size_t eini_dir_mv_carve(eini_dir_mv *v, char *base) {
  eini_dir_job *j = &v->j;
  const int64_t kb = eini_min64(v->kb, EINI_DIR_KB);
  size_t used = 0;
  eini_dir_carve_job(j, base, &used);
  v->xv = (char *)eini_carve(base, &used, v->direct ? 0 : v->vectors * kb * j->unit, 1);
  v->xs = (char *)eini_carve(base, &used, j->planes == 2 ? kb * j->unit : 0, 1);
  v->koff = (int64_t *)eini_carve(base, &used, kb * 8, 1);
  v->row = (int64_t *)eini_carve(base, &used, EINI_DIR_ROWS * 8, 1);
  v->sums = (char *)eini_carve(base, &used, 2 * 4 * 64, 1);
  v->pitch = eini_max64(eini_up(v->block, 64), EINI_DIR_ROWS * j->unit);
  v->y = (char *)eini_carve(base, &used, v->vectors * v->pitch, 1);
  v->y2 = (char *)eini_carve(base, &used, j->planes == 2 ? EINI_DIR_Y : 0, 1);
  v->av = (char *)eini_carve(base, &used, v->fetch ? 4 * kb * j->unit : 0, 1);
  return used;
}

// Store `n` values of a vector at rows from r on, in the order of the group.
static void eini_dir_mv_put(eini_dir_mv *v, int64_t r, int64_t n, int64_t vector, const char *y) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[v->group];
  const int last = x->n - 1;
  for (int64_t i = 0, run; i < n; i += run) {
    int64_t off[EINI_DIR_OPS + 1], step[EINI_DIR_OPS + 1];
    run = n - i;
    if (last > 0) run = eini_min64(run, x->extent[last] - (r + i) % x->extent[last]);
    for (int e = 0; e <= j->c->nextra; e++) {
      off[e] = eini_dir_offset(x, EINI_DIR_OUT + e, r + i) +
               eini_dir_offset(&j->x[v->other], EINI_DIR_OUT + e, vector);
      step[e] = last < 0 ? 0 : x->stride[EINI_DIR_OUT + e][last];
    }
    eini_dir_put(j, run, y + i * j->unit, off, step);
  }
}

// The vectors at k from k0; complex by rows: and with its parts swapped; complex by columns: real
// parts in xv and imaginary parts in xs.
static const char *eini_dir_mv_x(eini_dir_mv *v, int64_t k0, int64_t kn) {
  eini_dir_job *j = &v->j;
  const int z = j->kern->size;
  if (v->direct) {
    return j->at[v->x] + eini_dir_offset(&j->x[EINI_DIR_K], v->x, k0) * j->unit;
  }
  eini_dir_fetch(j, v->x, &j->x[v->other], 0, v->vectors, &j->x[EINI_DIR_K], k0, kn, kn, v->xv);
  if (j->planes == 1) return v->xv;
  for (int64_t k = 0; k < kn; k++) {
    char t[8];
    if (v->by_rows) {
      memcpy(v->xs + 2 * k * z, v->xv + (2 * k + 1) * z, (size_t)z);
      memcpy(v->xs + (2 * k + 1) * z, v->xv + 2 * k * z, (size_t)z);
    } else {
      memcpy(t, v->xv + (2 * k + 1) * z, (size_t)z);
      memmove(v->xv + k * z, v->xv + 2 * k * z, (size_t)z);
      memcpy(v->xs + k * z, t, (size_t)z);
    }
  }
  return v->xv;
}

// y[r] += a[row[r], k0 ..] * x, four rows at a time; the last rows are repeated.
static void eini_dir_mv_dots(eini_dir_mv *v, int64_t r0, int64_t rn, int64_t k0, int64_t kn,
                             const char *x, int64_t runs) {
  eini_dir_job *j = &v->j;
  const int p = j->planes, ca = eini_dir_conj(j, v->a), cx = eini_dir_conj(j, v->x);
  char *sums[2] = {v->sums, v->sums + 4 * 64};
  int64_t fetched[4] = {0};
  for (int64_t r = 0; r < rn; r += 4) {
    const int n = (int)eini_min64(4, rn - r);
    const int64_t len = p * kn / runs;
    eini_dir_dots d = {runs, len, len, v->koff, v->row + r, 0, j->at[v->a], x, NULL};
    if (v->fetch) {
      eini_dir_fetch(j, v->a, &j->x[v->group], r0 + r, n, &j->x[EINI_DIR_K], k0, kn, kn,
                     v->av);
      for (int i = 0; i < 4; i++) fetched[i] = (i < n ? i : 0) * kn * p;
      d.row = fetched;
      d.a = v->av;
    }
    for (int h = 0; h < p; h++) {
      d.sums = sums[h];
      if (h) d.x = v->xs;
      if (v->one && v->far) {
        memset(d.sums, 0, 64);
        j->kern->dot_far(&d);
      } else if (v->one) {
        j->kern->dot_long(&d);
      } else if (v->far) {  // one after another, as they lie
        for (int i = 0; i < n; i++, d.row++, d.sums += j->kern->lanes * j->kern->size) {
          j->kern->dots1(&d);
        }
        d.row -= n;
      } else {
        j->kern->dots4(&d);
      }
    }
    j->kern->fold(n, p, sums[0], sums[1], ca, cx, v->y + r * j->unit);
  }
}

// The same of several real vectors, of a matrix in place.
static void eini_dir_mv_dots_several(eini_dir_mv *v, int64_t rn, int64_t kn, const char *x,
                                     int64_t runs) {
  const eini_dir_job *j = &v->j;
  for (int64_t r = 0; r < rn; r += 4) {
    eini_dir_dots d = {runs, kn / runs, kn / runs, v->koff, v->row + r, 0,
                       j->at[v->a], x, v->sums};
    char *y = v->y + r * j->unit;
    for (int64_t i = 0; i < v->vectors; i++, d.x += kn * j->unit, y += v->pitch) {
      j->kern->dots4(&d);
      j->kern->fold((int)eini_min64(4, rn - r), 1, v->sums, v->sums, 0, 0, y);
    }
  }
}

static void eini_dir_mv_by_rows(eini_dir_mv *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_K], *rows = &j->x[v->group];
  const char *xv = NULL;
  for (int64_t r = 0, rn; r < rows->size; r += rn) {
    rn = eini_min64(EINI_DIR_ROWS, rows->size - r);
    eini_dir_table(rows, v->a, r, rn, v->row);
    for (int64_t i = 0; i < rn; i++) v->row[i] *= j->planes;
    for (int64_t i = rn; i % 4; i++) v->row[i] = v->row[rn - 1];
    memset(v->y, 0, (size_t)((v->vectors - 1) * v->pitch + rn * j->unit));
    for (int64_t k = 0, kn; k < x->size; k += kn) {
      int64_t runs = 1;
      kn = eini_min64(v->kb, x->size - k);
      if (!v->fetch) {
        if (v->run >= v->kb) {
          kn = eini_min64(kn, v->run - k % v->run);
        } else {
          runs = kn / v->run;
          kn = runs * v->run;
        }
      }
      if (kn < x->size || r == 0) xv = eini_dir_mv_x(v, k, kn);
      for (int64_t i = 0; i < runs; i++) {
        v->koff[i] = v->fetch ? 0 : j->planes * eini_dir_offset(x, v->a, k + i * v->run);
      }
      if (v->vectors > 1) eini_dir_mv_dots_several(v, rn, kn, xv, runs);
      else eini_dir_mv_dots(v, r, rn, k, kn, xv, runs);
    }
    for (int64_t i = 0; i < v->vectors; i++) eini_dir_mv_put(v, r, rn, i, v->y + i * v->pitch);
  }
}

// y[0 .. n) (+)= columns k of the block at a, several at a time. Complex products are those with
// two vectors, of real parts and of imaginary ones.
static void eini_dir_mv_axpy(eini_dir_mv *v, const char *a, int64_t n, int64_t kn, int first) {
  const eini_dir_job *j = &v->j;
  const eini_dir_kern *t = j->kern;
  const int several = v->vectors > 1 || j->planes == 2;
  eini_dir_axpys d = {n * j->planes, v->vectors * j->planes, 0, kn * t->size, v->pitch, NULL, NULL,
                      v->y};
  if (j->planes == 2) d.xstep = v->xs - v->xv, d.ystep = v->y2 - v->y;
  for (int64_t k = 0; k < kn;) {
    const int64_t left = kn - k;
    const int most = several ? t->columns : v->log;
    int log = left >= 8 ? 3 : left >= 4 ? 2 : left >= 2;
    if (log > most) log = most;
    if (several && log < most) log = 0;
    const char *col[8];
    for (int i = 0; i < 1 << log; i++) col[i] = a + v->koff[k + i] * j->unit;
    for (int64_t b = 0; v->apart && left > EINI_DIR_COLUMNS && b < n * j->unit; b += 64)
      EINI_FETCH((uintptr_t)a + (uintptr_t)(v->koff[k + EINI_DIR_COLUMNS] * j->unit + b));
    d.first = first && k == 0;
    d.a = col;
    d.x = v->xv + k * t->size;
    if (several) t->axpys[log > 0](&d);
    else (v->log > 0 ? t->axpy[log] : t->axpy_far)(n, d.first, col, d.x, v->y);
    k += 1 << log;
  }
}

static void eini_dir_mv_by_columns(eini_dir_mv *v) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *x = &j->x[EINI_DIR_K], *rows = &j->x[v->group];
  const int64_t most = v->block / j->unit;
  for (int64_t r = 0, rn; r < rows->size; r += rn) {
    const char *a = j->at[v->a] + eini_dir_offset(rows, v->a, r) * j->unit;
    rn = eini_min64(most, v->run - r % v->run);
    if (x->size == 0) memset(v->y, 0, (size_t)(v->vectors * v->pitch));
    if (x->size == 0 && j->planes == 2) memset(v->y2, 0, (size_t)(rn * j->unit));
    for (int64_t k = 0, kn; k < x->size; k += kn) {
      kn = eini_min64(v->kb, x->size - k);
      if (kn < x->size || r == 0) {
        eini_dir_mv_x(v, k, kn);
        eini_dir_table(x, v->a, k, kn, v->koff);
      }
      eini_dir_mv_axpy(v, a, rn, kn, k == 0);
    }
    if (j->planes == 2) {
      j->kern->join(rn, v->y, v->y2, eini_dir_conj(j, v->a), eini_dir_conj(j, v->x));
    }
    for (int64_t i = 0; i < v->vectors; i++) eini_dir_mv_put(v, r, rn, i, v->y + i * v->pitch);
  }
}

static ein_status eini_dir_mv_run(const eini_cpu *cpu, const ein_contract *c,
                                  const ein_choice *choice, const ein_part *part, void *scratch) {
  eini_dir_mv v;
  (void)choice;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  eini_dir_mv_init(&v, cpu, c, part);
  eini_dir_mv_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0]; b < part->batch[1]; b++) {
    eini_dir_at(&v.j, b);
    if (v.by_rows) {
      eini_dir_mv_by_rows(&v);
    } else {
      eini_dir_mv_by_columns(&v);
    }
  }
  return EIN_OK;
}

static double eini_dir_peak(const eini_rated *cpu, ein_dtype type) {
  switch (type) {
    case EIN_F32: case EIN_C64: return cpu->peak_f32;
    case EIN_F64: case EIN_C128: return cpu->peak_f64;
    case EIN_I32: return cpu->peak_f32 / 4;
    default: return cpu->peak_f64 / 4;
  }
}

static double eini_dir_out_bytes(const eini_dir_job *j) {
  return (double)j->x[EINI_DIR_B].size * (double)j->x[EINI_DIR_M].size *
         (double)j->x[EINI_DIR_N].size * j->unit;
}

// Into how many parts a group may be cut: along its first axis, in steps of at least `step`.
static void eini_dir_grid(const eini_dir_index *x, int64_t step, int64_t *grid, int64_t *unit) {
  const int64_t inner = x->n > 0 && x->size > 0 ? x->size / x->extent[0] : 1;
  step = (step + inner - 1) / inner;
  *unit = inner * step;
  *grid = x->n > 0 && x->size > 0 ? (x->extent[0] + step - 1) / step : 1;
}

static double eini_dir_threads(const ein_choice *choice, int width) {
  const double most = (double)choice->grid[0] * (double)choice->grid[1] * (double)choice->grid[2];
  return most < 1 ? 1 : most < (double)width ? most : (double)width;
}

// Of several vectors by rows: what dot products take, which wait for what they load, and adding up
// those of four rows; vectors that the first cache does not keep come from the second for each.
static double eini_dir_mv_several_rows(const eini_dir_mv *v, const eini_rated *cpu, double read) {
  const double lanes = v->j.kern->lanes, rows = ceil((double)v->j.x[v->group].size / 4);
  const double some = (double)v->j.x[EINI_DIR_B].size * (double)v->vectors * rows;
  const double k = (double)v->j.x[EINI_DIR_K].size, run = (double)eini_min64(v->run, v->kb);
  const double four = 4 * 2 * lanes / eini_dir_peak(cpu, v->j.c->type);  // seconds, of a vector
  const double held = ((double)v->vectors + 4) * (double)eini_min64(v->kb, (int64_t)k) * v->j.unit;
  if (held > (double)cpu->is.l1) read += some * k * v->j.unit / cpu->l2_bw;
  return read + some * k / run * (1.5 * ceil(run / lanes) + 20) * four;
}

// The same by columns, in `calls` of some vectors of columns: these are read, sums are read and
// written, and products are added at less than the peak, as each waits for the one before; results
// are written, each for itself where they do not lie along the output. Each run of a block takes
// calls for its columns, and is written for each vector.
static double eini_dir_mv_several_columns(const eini_dir_mv *v, const eini_rated *cpu,
                                          double calls, double vectors, double peak) {
  const eini_dir_kern *t = v->j.kern;
  const double rows = (double)v->vectors, sums = rows * vectors * t->lanes * t->size;
  const double out = 2 * eini_dir_out_bytes(&v->j);
  const int64_t k = v->j.x[EINI_DIR_K].size, some = (int64_t)1 << t->columns;
  const double runs = out / (2 * rows * (double)eini_min64(v->run * v->j.unit, v->block));
  const double each = (double)(k / some + k % some) * 15e-9 + rows * 8e-9;
  return runs * each + 1.4 * peak + calls * vectors * 10 / cpu->hz + out / eini_cpu_bw(cpu, out) +
         calls * sums / eini_cpu_bw(cpu, rows * (double)v->block) +
         (eini_dir_step(&v->j.x[v->group], EINI_DIR_OUT) == 1 ? 0 : out / v->j.unit * 1e-9);
}

static int eini_dir_mv_plan(const eini_rated *cpu, const ein_contract *c, int width,
                            ein_choice *choice) {
  eini_dir_mv v;
  eini_dir_job *j = &v.j;
  if (!eini_dir_able(&cpu->is, c)) return 0;
  eini_dir_mv_init(&v, &cpu->is, c, NULL);
  const int several = v.vectors > 1;
  if (several && (v.vectors > EINI_DIR_VECTORS || v.fetch || j->planes == 2)) return 0;
  if (v.vectors < 1 || j->x[EINI_DIR_K].size < 2) return 0;
  const double batch = (double)j->x[EINI_DIR_B].size, m = (double)j->x[v.group].size;
  const double k = (double)j->x[EINI_DIR_K].size;
  double bytes = batch * (m + v.one) * k * j->unit;
  if (v.by_rows && !v.fetch && m > 1)  // a pass for each row brings whole lines for short runs
    bytes *= fmax(1, EINI_LINE_BYTES / (double)(v.run * j->unit));
  const double flops = 2 * batch * m * k * j->planes * j->planes * (double)v.vectors;
  const double peak = flops / eini_dir_peak(cpu, c->type), read = bytes / eini_cpu_bw(cpu, bytes);
  const double calls = batch * ceil(k / 8), vectors = ceil(m / j->kern->lanes);
  double seconds = fmax(read, peak);
  const int short_runs = v.run * j->unit < EINI_PAGE_BYTES && eini_cpu_beyond(&cpu->is, bytes);
  if (!v.by_rows)  // eight at a time, each vector of their sum waits for the eight before
    seconds = fmax(seconds, calls * (40 + 16 * vectors) / cpu->hz);
  if (several && v.by_rows) seconds = eini_dir_mv_several_rows(&v, cpu, read);
  else if (several)
    seconds = eini_cpu_beside(eini_dir_mv_several_columns(&v, cpu, calls, vectors, peak), read,
                              short_runs ? 1 : EINI_CPU_BESIDE);
  if (v.fetch) seconds += batch * m * k * 2e-9;
  if (!v.by_rows && v.run < 8) seconds += batch * m * k / (double)v.run * 1e-9;
  if (!v.direct) seconds += batch * k * (double)v.vectors * 1e-9;
  seconds += batch * (1e-7 + m * (several ? 0 : v.by_rows ? 5e-9 : 1e-9));
  eini_dir_grid(&j->x[EINI_DIR_B], 1, &choice->grid[0], &choice->unit[0]);
  choice->unit[0] = 1;
  choice->grid[0] = j->x[EINI_DIR_B].size;
  choice->grid[1] = choice->grid[2] = choice->unit[1] = choice->unit[2] = 1;
  const int g = v.group == EINI_DIR_M ? 1 : 2;
  eini_dir_init(j, &cpu->is, c);
  eini_dir_grid(&j->x[v.group], v.by_rows ? 16 : 256, &choice->grid[g], &choice->unit[g]);
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  choice->scratch = eini_dir_mv_carve(&v, NULL);
  static const char *const name[] = {"matvec columns", "matvec rows", "matvec several columns",
                                     "matvec several rows"};
  eini_cpu_name(choice, name[2 * several + v.by_rows]);
  return 1;
}

static int eini_dir_matvec_plan(const eini_rated *cpu, const ein_contract *c, int width,
                                ein_choice *choice) {
  if (eini_axes_size(&c->m) == 1 && eini_axes_size(&c->n) == 1) return 0;
  return eini_dir_mv_plan(cpu, c, width, choice);
}

static int eini_dir_dot_plan(const eini_rated *cpu, const ein_contract *c, int width,
                             ein_choice *choice) {
  if (eini_axes_size(&c->m) != 1 || eini_axes_size(&c->n) != 1) return 0;
  return eini_dir_mv_plan(cpu, c, width, choice);
}

EINI_UNUSED static const eini_cpu_family eini_dir_matvec = {
    "matvec", eini_dir_matvec_plan, eini_dir_mv_run};
EINI_UNUSED static const eini_cpu_family eini_dir_dot = {
    "dot", eini_dir_dot_plan, eini_dir_mv_run};

// ---- inner products of permuted operands --------------------------------------------------------
// P is contiguous along one axis of k, u, and Q along another, v. Blocks of Q are turned into the
// second-level cache, then multiplied with rows of P: both are read in runs as they lie, and what
// comes next is asked for, as runs are too short and too far apart for the machine to foresee.
// Q may go on from one sum of the batch to the next: then a block is of several sums. Rows of one
// axis are multiplied as they are.

#define EINI_DIR_TURN 256      // elements of a row of a turned block
#define EINI_DIR_TURNED 128    // rows of one, at most
#define EINI_DIR_TURN_AHEAD 256  // bytes of what is turned to read ahead

typedef struct eini_dir_inner {
  eini_dir_job j;
  int u, v;                    // axes of k along which P and Q are contiguous; v -1: the batch
  int same;                    // both are along u; v is another axis, and nothing is turned
  eini_dir_index rest;         // the others
  int64_t nv, at_once;         // extent of v; sums at once
  int64_t *run, pitch;         // pitch: bytes from row to row of a block
  char *block, *sums;
} eini_dir_inner;

// dst[v * pitch + u] = src[u * step + v], in bytes, along v first, as src lies. Tiles overlap.
static void eini_dir_turn(int isa, int size, int64_t nu, int64_t nv, const char *src, int64_t step,
                          char *dst, int64_t pitch) {
  const eini_tile_kind *kind = eini_tile_kinds[isa][size == 8 ? 3 : 2];
  while (kind->b > eini_min64(nu, nv)) kind++;
  const int64_t b = kind->b, ahead = EINI_DIR_TURN_AHEAD;
  for (int64_t u = 0; u < nu; u += b > 0 ? b : 1) {
    if (b == 0) {
      eini_dir_scatter(src + u * step, nv, pitch / size, size, dst + u * size);
      continue;
    }
    const int64_t w = eini_min64(u, nu - b), then = eini_min64(u + b, nu - b);
    for (int64_t v = 0; v < nv; v += b) {
      const int64_t at = eini_min64(v, nv - b) * size, next = v * size + ahead;
      const char *f = src + (next < nv * size ? w * step + next : then * step + next - nv * size);
      for (int64_t i = 0; i < b; i++) EINI_FETCH(f + i * step);
      kind->fn(src + w * step + at, step, dst + at / size * pitch + w * size, pitch);
    }
  }
}

static int eini_dir_inner_init(eini_dir_inner *v, const eini_cpu *cpu, const ein_contract *c) {
  eini_dir_job *j = &v->j;
  if (eini_axes_size(&c->m) != 1 || eini_axes_size(&c->n) != 1 || !eini_dir_able(cpu, c)) return 0;
  if (c->p.form != EIN_FORM_PLAIN || c->q.form != EIN_FORM_PLAIN) return 0;
  eini_dir_init(j, cpu, c);
  if (j->planes == 2) return 0;
  const eini_dir_index *k = &j->x[EINI_DIR_K], *batch = &j->x[EINI_DIR_B];
  v->u = v->v = -1;
  for (int d = 0; d < k->n; d++) {
    if (k->extent[d] > 1 && k->stride[0][d] == 1) v->u = d;
    if (k->extent[d] > 1 && k->stride[EINI_DIR_OPS][d] == 1) v->v = d;
  }
  if (v->u < 0 || k->size == 0) return 0;
  v->same = v->u == v->v;
  if (v->same && k->n < 2) return 0;
  if (v->same) v->v = v->u == k->n - 1 ? k->n - 2 : k->n - 1;
  v->nv = v->v < 0 ? 1 : k->extent[v->v];
  const int joined = batch->n == 1 && batch->stride[EINI_DIR_OPS][0] == v->nv && !v->same;
  if (v->v < 0 && !joined) return 0;
  v->at_once = joined ? eini_max64(EINI_DIR_TURNED / v->nv, 1) : 1;
  v->rest = *k;
  v->rest.extent[v->u] = 1;
  if (v->v >= 0) v->rest.extent[v->v] = 1;
  v->rest.size = k->size / k->extent[v->u] / v->nv;
  v->pitch = EINI_DIR_TURN * j->unit + 64;  // columns in different sets of the caches
  eini_dir_sort(&v->rest, EINI_DIR_OPS);
  return 1;
}

static size_t eini_dir_inner_carve(eini_dir_inner *v, char *base) {
  size_t used = 0;
  eini_dir_carve_job(&v->j, base, &used);
  v->sums = (char *)eini_carve(base, &used, 64, 1);
  v->run = (int64_t *)eini_carve(base, &used, 8 * EINI_DIR_TURNED, 1);
  v->block = (char *)eini_carve(base, &used, v->same ? 0 : EINI_DIR_TURNED * v->pitch, 1);
  return used;
}

// y[i] += the sum over u0 .. u0 + un and v0 .. v0 + vn of each of n products at p and q.
static void eini_dir_inner_block(eini_dir_inner *v, int isa, int64_t n, int64_t un, int64_t vn,
                                 const char *p, const char *q, char *y) {
  eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const int64_t zero = 0, unit = j->unit, sv = v->v < 0 ? 0 : k->stride[0][v->v];
  const int64_t next = n > 1 ? j->x[EINI_DIR_B].stride[0][0] : 0;
  eini_dir_dots d = {vn, un, v->pitch / unit, v->run, &zero, (vn > 1 ? sv : next) * unit,
                     p, v->block, v->sums};
  if (v->same) {
    d.ahead = 0, d.x = q, d.xrun = k->stride[EINI_DIR_OPS][v->v];
  } else {
    eini_dir_turn(isa, (int)unit, un, n * vn, q, k->stride[EINI_DIR_OPS][v->u] * unit, v->block,
                  v->pitch);
  }
  for (int64_t i = 0; i < n; i++) {
    j->kern->dot_long(&d);
    j->kern->fold(1, 1, v->sums, v->sums, 0, 0, y + i * unit);
    d.a += next * unit, d.x += vn * v->pitch;
  }
}

// n sums, from the one at the current addresses on. Their bits do not depend on n.
static void eini_dir_inner_sum(eini_dir_inner *v, int isa, int64_t n, char *y) {
  const eini_dir_job *j = &v->j;
  const eini_dir_index *k = &j->x[EINI_DIR_K];
  const int64_t su = k->stride[EINI_DIR_OPS][v->u], sv = v->v < 0 ? 0 : k->stride[0][v->v];
  const int64_t qv = v->v < 0 ? 0 : k->stride[EINI_DIR_OPS][v->v], nu = k->extent[v->u];
  const int64_t wide = v->same ? 8 * EINI_DIR_TURN : EINI_DIR_TURN;
  for (int i = 0; i < EINI_DIR_TURNED; i++) v->run[i] = i * sv;
  for (int64_t r = 0; r < v->rest.size; r++) {
    const int64_t p = eini_dir_offset(&v->rest, 0, r);
    const int64_t q = eini_dir_offset(&v->rest, EINI_DIR_OPS, r);
    for (int64_t v0 = 0; v0 < v->nv; v0 += EINI_DIR_TURNED) {
      for (int64_t u0 = 0; u0 < nu; u0 += wide) {
        eini_dir_inner_block(v, isa, n, eini_min64(wide, nu - u0),
                             eini_min64(EINI_DIR_TURNED, v->nv - v0),
                             j->at[0] + (p + u0 + v0 * sv) * j->unit,
                             j->at[EINI_DIR_OPS] + (q + u0 * su + v0 * qv) * j->unit, y);
      }
    }
  }
}

static ein_status eini_dir_inner_run(const eini_cpu *cpu, const ein_contract *c,
                                     const ein_choice *choice, const ein_part *part,
                                     void *scratch) {
  eini_dir_inner v;
  const int64_t off[EINI_DIR_OPS + 1] = {0}, step[EINI_DIR_OPS + 1] = {0};
  (void)choice;
  if (part->m[0] >= part->m[1] || part->n[0] >= part->n[1]) return EIN_OK;
  if (!eini_dir_inner_init(&v, cpu, c)) return EIN_ERR_INTERNAL;
  eini_dir_inner_carve(&v, (char *)scratch);
  for (int64_t b = part->batch[0], n; b < part->batch[1]; b += n) {
    char y[8 * EINI_DIR_TURNED] = {0};
    n = eini_min64(v.at_once, part->batch[1] - b);
    eini_dir_at(&v.j, b);
    eini_dir_inner_sum(&v, cpu->isa, n, y);
    for (int64_t i = 0; i < n; i++) {
      eini_dir_at(&v.j, b + i);
      eini_dir_put(&v.j, 1, y + i * v.j.unit, off, step);
    }
  }
  return EIN_OK;
}

static int eini_dir_inner_plan(const eini_rated *cpu, const ein_contract *c, int width,
                               ein_choice *choice) {
  eini_dir_inner v;
  if (!eini_dir_inner_init(&v, &cpu->is, c)) return 0;
  const eini_dir_index *k = &v.j.x[EINI_DIR_K];
  const double batch = (double)v.j.x[EINI_DIR_B].size, all = batch * (double)k->size;
  const double nu = (double)k->extent[v.u], nv = (double)v.nv, rows = nv * (double)v.at_once;
  const double bytes = 2 * all * v.j.unit;
  double seconds = bytes / eini_cpu_bw(cpu, bytes);
  if (!v.same) seconds += all * (1.5 + 4 / (rows < 8 ? rows : 8)) / cpu->hz;
  seconds += all / (nu < EINI_DIR_TURN ? nu : EINI_DIR_TURN) /
             (nv < EINI_DIR_TURNED ? nv : EINI_DIR_TURNED) * 2e-8;
  choice->unit[0] = choice->unit[1] = choice->unit[2] = choice->grid[1] = choice->grid[2] = 1;
  choice->grid[0] = v.j.x[EINI_DIR_B].size;
  choice->seconds = cpu->call + seconds / eini_dir_threads(choice, width);
  choice->scratch = eini_dir_inner_carve(&v, NULL);
  eini_cpu_name(choice, v.same ? "inner in rows" : "inner turned");
  return 1;
}

EINI_UNUSED static const eini_cpu_family eini_dir_inner_family = {
    "inner", eini_dir_inner_plan, eini_dir_inner_run};
