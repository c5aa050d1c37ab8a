// ================================================================================================
// >>mapreduce  the portable map-reduce kernel
// D[f] = epilogue(fold over r of E(f, r)) over per-index strides (DESIGN: the kernels). Elements
// are evaluated in chunks along one index, or along several with offset tables where needed.
// Invariant: the fold of an output element does not depend on how free indices are cut.
// ================================================================================================

#define EINI_GROUP_LOOPS EINI_WALK_LOOPS  // of a group's blocks

// Where an operand lives: a slot (see eini_plan) and the byte offset of index 0 of everything.
typedef struct eini_ref {
  int slot;                    // -1: an index's value
  ein_dtype dtype;
  int64_t offset;
  int origin;                  // slot that holds the value at index 0 of everything, or 0
  int64_t step[EINI_GROUP_LOOPS];  // in a group: bytes (values) per value of its loops
} eini_ref;

// A provider's answer, for explain.
typedef struct eini_candidate {
  const char *name;
  char variant[24];
  double seconds;
  int fixed;                   // 1: the variant that was asked for
} eini_candidate;

#define EINI_VARIANTS 64        // of one provider for one task at most

// The variant that was asked for, and those that tasks of the plan have.
typedef struct eini_wanted {
  const char *name;            // EINI_ANY: none of them, but to know which there are
  size_t at;
  char known[4096];            // a line each
} eini_wanted;

#define EINI_ANY "any"

// Is a name, with the provider or without, that of this variant?
static int eini_variant_is(const char *name, const char *provider, const char *variant) {
  const size_t n = strlen(provider);
  return strcmp(name, variant) == 0 || (strncmp(name, provider, n) == 0 && name[n] == ':' &&
                                        strcmp(name + n + 1, variant) == 0);
}

// Is this the one? It is known from now on.
static int eini_wanted_is(eini_wanted *w, const char *provider, const char *variant) {
  char line[128];
  const size_t n = (size_t)snprintf(line, sizeof line, "%.60s:%s\n", provider, variant);
  const char *at = w->known;
  while (*at != 0 && strncmp(at, line, n) != 0) at = strchr(at, '\n') + 1;
  if (*at == 0 && w->at + n < sizeof w->known) memcpy(w->known + w->at, line, n), w->at += n;
  return eini_variant_is(w->name, provider, variant);
}

typedef enum eini_task_kind {
  EINI_TASK_MAP, EINI_TASK_COPY, EINI_TASK_CONTRACT, EINI_TASK_GROUP, EINI_TASK_OPERATOR
} eini_task_kind;

// A statement made ready for a kernel. Streams are everything that moves with the indices: the
// operands of E, index values in E, the position (arg folds), the epilogue's operands and index
// values, the output; stride[s * nindex + i], in elements.
typedef struct eini_task {
  eini_task_kind kind;
  int nindex, nstream;
  int64_t *extent;
  unsigned char *reduced;
  int order;                   // of the statement's folds, EINI_ORDER_*
  int64_t *stride;
  int nop, niota, pos, extra, nextra, epi_iota, nepi_iota, out;  // stream numbers and counts
  eini_ref *ref;               // of streams that are tensors
  ein_code code, epi;
  eini_chunk_fn store;         // of the output's dtype, as eini_storage_find gives it
  int has_epi;
  eini_folder folder;
  int no_reduction;            // the reduced space is empty: only identities are stored
  int carries;                 // streams out, out + 1, .. are states: read first, and not finished
  int norigin, *origin;        // params that positions count from, and how far each moves them
  int64_t *origin_step;
  int nouter, *outer;          // free loops around the chunk, outermost first
  int ninner, *inner;          // reduced loops around the chunk (inside the accumulators)
  int nchunk, *chunk;          // indices the chunk runs over, innermost last
  int chunk_reduced;
  int64_t chunk_row;           // elements over all chunk indices but the outermost,
  int64_t chunk_steps;         //   of which a chunk takes so many values at most
  int64_t chunk_len;           // elements of a chunk at most
  int64_t **table;             // offsets within the chunk per stream; NULL: even steps, as of all
  int cut;                     // free index threads cut, or -1
  double work;                 // elements visited
  size_t scratch;              // bytes per thread
  struct eini_contract_task *contract;
  struct eini_group *group;
  struct eini_operation *operation;  // of a function over blocks
  const ein_kernels *kernels;  // who runs it; NULL: the portable kernels
  ein_choice choice;
  int parts;                   // a contraction's: tasks for threads
  char *kept;                  //   addresses of its constant sides, then choice.kept bytes; or NULL
  const ein_kernels *stream;   // whose stream_fn stores the output, or NULL
  int ahead;                   // then 1 + the only operand as large, to be asked for ahead; 0: none
  int live;                    // loops of extent > 1, which come first
  int along;                   // 1 + the loop that its group goes along, never merged; 0: none
  ein_dtype *dtype;            // of streams, for a provider's map
  const unsigned char *away;   // see ein_map
  double out_bytes;            // see ein_map
  eini_candidate *candidate;   // the best answers of all who were asked, and whose is the choice
  int ncandidate;
  const eini_candidate *best;
  const eini_stmt *stmt;       // what it came from (and the fused consumer), for explain
  const eini_stmt *fused;
  double flops;
} eini_task;

// Everything one thread's run of a task mutates.
typedef struct eini_nest {
  const eini_task *t;
  char *const *slot;
  int64_t *at, *extent, *index;     // stream offsets; extents of this part; loop counters
  const char **base;                // per stream
  int64_t *step, *epi_step;         // along the chunk
  const int64_t **epi_table;
  const char **epi_base;
  int64_t *epi_at;
  eini_eval ev, epi;
  void *acc[4], *tmp[4];
  void *out, *conv, *conv2;
  int no_direct;                    // the output aliases an operand: never write it early
} eini_nest;

// The next bytes of a block being laid out; NULL while the block is only being measured.
static char *eini_nest_carve(char *mem, size_t *used, size_t bytes) {
  char *r = mem == NULL ? NULL : mem + *used;
  *used += (bytes + EINI_ALIGN - 1) / EINI_ALIGN * EINI_ALIGN;
  return r;
}

// Lays out a walk in memory; with mem NULL only counts. Returns the bytes needed.
static size_t eini_nest_layout(const eini_task *t, eini_nest *w, char *mem) {
  const size_t bytes = eini_reg_bytes(&t->code);
  size_t used = 0, ns = (size_t)t->nstream, ni = (size_t)t->nindex, nx = (size_t)t->nextra + 1;
  w->at = (int64_t *)(void *)eini_nest_carve(mem, &used, ns * 8);
  w->step = (int64_t *)(void *)eini_nest_carve(mem, &used, ns * 8);
  w->extent = (int64_t *)(void *)eini_nest_carve(mem, &used, ni * 8);
  w->index = (int64_t *)(void *)eini_nest_carve(mem, &used, ni * 8);
  w->base = (const char **)(void *)eini_nest_carve(mem, &used, ns * sizeof(char *));
  w->ev.reg = (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->code.nreg * sizeof(void *));
  w->ev.mem = eini_nest_carve(mem, &used, (size_t)t->code.nreg * bytes);
  if (t->has_epi) {
    w->epi_step = (int64_t *)(void *)eini_nest_carve(mem, &used, nx * 8);
    w->epi_at = (int64_t *)(void *)eini_nest_carve(mem, &used, nx * 8);
    w->epi_base = (const char **)(void *)eini_nest_carve(mem, &used, nx * sizeof(char *));
    w->epi_table = (const int64_t **)(void *)eini_nest_carve(mem, &used, nx * sizeof(int64_t *));
    w->epi.reg = (void **)(void *)eini_nest_carve(mem, &used, (size_t)t->epi.nreg * sizeof(void *));
    w->epi.mem = eini_nest_carve(mem, &used, (size_t)t->epi.nreg * eini_reg_bytes(&t->epi));
  }
  if (t->folder.fold != EIN_FOLD_NONE) {
    for (int s = 0; s < t->folder.nstate; s++) {
      w->acc[s] = eini_nest_carve(mem, &used, bytes);
      w->tmp[s] = eini_nest_carve(mem, &used, bytes);
    }
    w->out = eini_nest_carve(mem, &used, bytes);
  }
  w->conv = eini_nest_carve(mem, &used, bytes);
  w->conv2 = eini_nest_carve(mem, &used, bytes);
  return used;
}

// What a provider's map or copy is given beside its scratch.
typedef struct eini_provided {
  int64_t *extent, *at;             // of loops; per stream
  char **base;
} eini_provided;

static size_t eini_provided_layout(const eini_task *t, eini_provided *v, char *mem) {
  const size_t n = (size_t)t->nstream;
  size_t used = 0;
  v->extent = (int64_t *)(void *)eini_nest_carve(mem, &used, (size_t)t->live * 8);
  v->at = (int64_t *)(void *)eini_nest_carve(mem, &used, n * 8);
  v->base = (char **)(void *)eini_nest_carve(mem, &used, n * sizeof(char *));
  return used;
}

// The value that an index has at index 0 of everything.
static int64_t eini_ref_value(const eini_ref *r, char *const *slot) {
  return r->origin > 0 ? (int64_t)((uintptr_t)slot[r->origin] - (uintptr_t)slot[0]) : 0;
}

// Advances the loops listed in dim (innermost last) by one; 0 when they have wrapped around.
static int eini_nest_next(eini_nest *w, int n, const int *dim) {
  const eini_task *t = w->t;
  for (int d = n - 1; d >= 0; d--) {
    int i = dim[d];
    const int64_t *st = t->stride + i;
    if (++w->index[i] < w->extent[i]) {
      for (int s = 0; s < t->nstream; s++) w->at[s] += st[(int64_t)s * t->nindex];
      return 1;
    }
    int64_t back = w->extent[i] - 1;
    w->index[i] = 0;
    for (int s = 0; s < t->nstream; s++) w->at[s] -= back * st[(int64_t)s * t->nindex];
  }
  return 0;
}

// The next chunk of the current place: its elements. 0: there is none, and the place is as it was.
// *done: -1 before the first.
static int64_t eini_nest_piece(eini_nest *w, int64_t *done) {
  const eini_task *t = w->t;
  const int c = t->nchunk > 0 ? t->chunk[0] : -1;
  const int64_t total = c < 0 ? 1 : w->extent[c];
  int64_t by = *done < 0 ? 0 : t->chunk_steps;
  *done = eini_max64(*done, 0) + by;
  if (*done >= total) by -= *done;
  for (int s = 0; s < t->nstream && by != 0 && c >= 0; s++)
    w->at[s] += by * t->stride[(int64_t)s * t->nindex + c];
  return eini_max64(0, eini_min64(t->chunk_steps, total - *done)) * t->chunk_row;
}

// Stores n results of computation type `type` at the current place.
static void eini_nest_store(eini_nest *w, int64_t n, ein_dtype type, const void *v) {
  const eini_task *t = w->t;
  ein_dtype to = t->ref[t->out].dtype;
  size_t size = eini_dtypes[to].size;
  char *dst = w->slot[t->ref[t->out].slot] + t->ref[t->out].offset + w->at[t->out] * (int64_t)size;
  if ((const char *)v == dst) return;  // written in place by the last operation
  if (type != to) v = eini_narrow(type, to, n, v, t->store, w->conv, w->conv2);
  const int64_t *table = t->table != NULL && !t->chunk_reduced ? t->table[t->out] : NULL;
  if (t->stream != NULL) {
    t->stream->stream_fn(t->stream->user, (size_t)n * size, v, dst);
    return;
  }
  eini_scatter(size, n, v, dst, t->chunk_reduced ? 1 : w->step[t->out], table);
}

// Where the expression may write its result directly, or NULL.
static void *eini_nest_direct(const eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  ein_dtype to = t->ref[t->out].dtype;
  if ((t->table != NULL && t->table[t->out] != NULL) || w->step[t->out] != 1 ||
      n % EINI_LANES != 0 || to != t->code.type ||
      t->code.nstep == 0 || t->code.step[t->code.nstep - 1].op <= EIN_OP_INDEX ||
      t->code.step[t->code.nstep - 1].dst != t->code.result) {
    return NULL;
  }
  size_t size = eini_dtypes[to].size;
  char *dst = w->slot[t->ref[t->out].slot] + t->ref[t->out].offset + w->at[t->out] * (int64_t)size;
  return (uintptr_t)dst % (size > 8 ? 8 : size) == 0 ? dst : NULL;
}

static void eini_nest_epilogue(eini_nest *w, int64_t n, void *v) {
  const eini_task *t = w->t;
  if (!t->has_epi) {
    eini_nest_store(w, n, t->folder.result, v);
    return;
  }
  w->epi_base[0] = (const char *)v;
  for (int k = 1; k <= t->nextra; k++) w->epi_at[k] = w->at[t->extra + k - 1];
  w->epi.index_at = w->at + t->epi_iota;
  void *r = eini_code_run(&w->epi, n, NULL);
  eini_nest_store(w, n, (ein_dtype)t->epi.type, r);
}

// n states at the current place into the accumulators, or back.
static void eini_nest_states(eini_nest *w, int64_t n, int back) {
  const eini_task *t = w->t;
  for (int k = 0; k < t->folder.nstate; k++) {
    const int o = t->out + k;
    const size_t size = eini_dtypes[t->ref[o].dtype].size;
    const int64_t *table = t->table != NULL && !t->chunk_reduced ? t->table[o] : NULL;
    const int64_t step = t->chunk_reduced ? 1 : w->step[o];
    char *p = w->slot[t->ref[o].slot] + t->ref[o].offset + w->at[o] * (int64_t)size;
    if (back) eini_scatter(size, n, w->acc[k], p, step, table);
    else eini_gather(size, n, p, step, table, w->acc[k]);
  }
}

// Before and after the fold of n results.
static void eini_nest_open(eini_nest *w, int64_t n) {
  if (w->t->carries) eini_nest_states(w, n, 0);
  else eini_fold_identity(&w->t->folder, n, w->acc);
}

static void eini_nest_close(eini_nest *w, int64_t n) {
  if (w->t->carries) eini_nest_states(w, n, 1);
  else eini_nest_epilogue(w, n, eini_fold_finish(&w->t->folder, n, w->acc, w->out));
}

static const int64_t *eini_nest_pos(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  if (t->pos < 0) return NULL;
  int64_t *p = (int64_t *)w->conv;
  const int64_t *table = t->table != NULL ? t->table[t->pos] : NULL;
  for (int64_t j = 0; j < n; j++)
    p[j] = w->at[t->pos] + (table != NULL ? table[j] : j * w->step[t->pos]);
  return p;
}

// Where the values of the current chunk are already as they are folded; NULL: nowhere.
static const char *eini_nest_run(const eini_nest *w) {
  const eini_task *t = w->t;
  if ((t->table != NULL && t->table[0] != NULL) || t->nchunk == 0 || t->nop != 1 ||
      t->code.plain != 0 || t->code.conj || w->step[0] != 1 ||
      t->ref[0].dtype != t->folder.type || t->ref[0].dtype == EIN_BOOL)
    return NULL;
  const char *p = w->base[0] + w->at[0] * (int64_t)eini_dtypes[t->folder.type].size;
  return (uintptr_t)p % eini_dtypes[t->folder.type].size == 0 ? p : NULL;
}

// Folds n columns at the current place down the reduced loops; 0: they are no rows of memory.
static int eini_nest_down(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  const int last = t->ninner > 0 ? t->inner[t->ninner - 1] : -1;
  if (t->folder.down == NULL || eini_nest_run(w) == NULL) return 0;
  do {
    t->folder.down(n, last < 0 ? 1 : w->extent[last], last < 0 ? 0 : t->stride[last],
                   eini_nest_run(w), w->acc[0]);
  } while (eini_nest_next(w, t->ninner - 1, t->inner));
  return 1;
}

// One chunk of n elements starting at the current place is mapped and stored, or folded.
static void eini_nest_chunk(eini_nest *w, int64_t n) {
  const eini_task *t = w->t;
  for (int64_t i = 0, o = t->ahead - 1; o >= 0 && w->step[o] == 1 && i < n; i += 8) {
    int64_t to = (w->at[o] + 2 * EINI_CHUNK + i) * (int64_t)eini_dtypes[t->ref[o].dtype].size;
    EINI_AHEAD((uintptr_t)w->base[o] + (uintptr_t)to);
  }
  if (t->folder.fold == EIN_FOLD_NONE) {
    void *to = w->no_direct || t->stream != NULL ? NULL : eini_nest_direct(w, n);
    void *v = eini_code_run(&w->ev, n, to);
    eini_nest_store(w, n, (ein_dtype)t->code.type, v);
    return;
  }
  if (t->chunk_reduced) {
    void *v = eini_code_run(&w->ev, n, NULL);
    eini_fold_across(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    return;
  }
  eini_nest_open(w, n);
  if (!t->no_reduction && !eini_nest_down(w, n)) {
    do {
      void *v = eini_code_run(&w->ev, n, NULL);
      eini_fold_down(&t->folder, n, v, eini_nest_pos(w, n), w->acc, w->tmp);
    } while (eini_nest_next(w, t->ninner, t->inner));
  }
  eini_nest_close(w, n);
}

// All chunks of the current place, then back to it.
static void eini_nest_chunks(eini_nest *w) {
  const eini_task *t = w->t;
  const char *run =
      t->chunk_reduced && t->folder.across != NULL && t->nchunk == 1 ? eini_nest_run(w) : NULL;
  if (run != NULL) {  // in a fixed order as chunks are folded, which other places may have
    const int64_t n = w->extent[t->chunk[0]], most = t->order ? EINI_CHUNK : n;
    const int64_t size = (int64_t)eini_dtypes[t->folder.type].size;
    for (int64_t i = 0; i < n; i += most)
      t->folder.across(eini_min64(most, n - i), run + i * size, w->acc[0]);
    return;
  }
  for (int64_t done = -1, n; (n = eini_nest_piece(w, &done)) > 0;) eini_nest_chunk(w, n);
}

static void eini_nest_begin(eini_nest *w, const eini_task *t, char *const *slot,
                            const ein_scalar *param, char *scratch) {
  memset(w, 0, sizeof *w);
  eini_nest_layout(t, w, scratch);
  w->t = t;
  w->slot = slot;
  for (int s = 0; s < t->nstream; s++) {
    w->at[s] = eini_ref_value(&t->ref[s], slot);
    w->step[s] = t->nchunk > 0 ? t->stride[(int64_t)s * t->nindex + t->chunk[t->nchunk - 1]] : 0;
    w->base[s] = t->ref[s].slot < 0 ? NULL : slot[t->ref[s].slot] + t->ref[s].offset;
  }
  for (int k = 0; k < t->norigin; k++)
    w->at[t->pos] += eini_f64_to_i64(param[t->origin[k]].re) * t->origin_step[k];
  for (int i = 0; i < t->nindex; i++) {
    w->extent[i] = t->extent[i];
    w->index[i] = 0;
  }
  w->ev.code = &t->code;
  w->ev.base = w->base;
  w->ev.at = w->at;
  w->ev.index_at = w->at + t->nop;
  w->ev.step = w->step;
  w->ev.index_step = w->step + t->nop;
  if (t->table != NULL) {
    w->ev.run = w->extent[t->chunk[t->nchunk - 1]];
    w->ev.table = (const int64_t *const *)t->table;
    w->ev.index_table = (const int64_t *const *)(t->table + t->nop);
  }
  eini_code_begin(&w->ev, param, t->chunk_len);
  if (!t->has_epi) return;
  w->epi.code = &t->epi;
  w->epi.base = w->epi_base;
  w->epi.at = w->epi_at;
  w->epi.step = w->epi_step;
  w->epi.index_step = w->step + t->epi_iota;
  w->epi_at[0] = 0;
  w->epi_step[0] = 1;
  int tables = t->table != NULL && !t->chunk_reduced;
  if (tables) {
    w->epi.table = w->epi_table;
    w->epi.index_table = (const int64_t *const *)(t->table + t->epi_iota);
    w->epi_table[0] = NULL;
  }
  for (int k = 1; k <= t->nextra; k++) {
    w->epi_base[k] = w->base[t->extra + k - 1];
    w->epi_step[k] = w->step[t->extra + k - 1];
    if (tables) w->epi_table[k] = t->table[t->extra + k - 1];
  }
  eini_code_begin(&w->epi, param, t->chunk_reduced ? 1 : t->chunk_len);
}

// Runs the part [lo, hi) of the index threads cut (all of it with cut < 0).
static void eini_mapreduce_run(const eini_task *t, char *const *slot, const ein_scalar *param,
                               char *scratch, int64_t lo, int64_t hi, int no_direct) {
  eini_nest w;
  eini_nest_begin(&w, t, slot, param, scratch);
  w.no_direct = no_direct;
  if (t->cut >= 0) {
    w.extent[t->cut] = hi - lo;
    for (int s = 0; s < t->nstream; s++) w.at[s] += lo * t->stride[(int64_t)s * t->nindex + t->cut];
  }
  do {
    if (t->folder.fold == EIN_FOLD_NONE || !t->chunk_reduced) {
      eini_nest_chunks(&w);
      continue;
    }
    eini_nest_open(&w, 1);
    if (!t->no_reduction) {
      do {
        eini_nest_chunks(&w);
      } while (eini_nest_next(&w, t->ninner, t->inner));
    }
    eini_nest_close(&w, 1);
  } while (eini_nest_next(&w, t->nouter, t->outer));
}

// ---- copies ----

// A B x B block: src is read along its unit-stride index a, dst written along b. Both fit L1, so
// every cache line is used whole whatever the strides are.
#define EINI_TILE 16
#define EINI_COPY_TILE(bits)                                                                \
  static void eini_tile_##bits(const char *src, int64_t sa, int64_t sb, char *dst, int64_t da, \
                               int64_t db, int64_t na, int64_t nb) {                        \
    uint##bits##_t tile[EINI_TILE][EINI_TILE];                                              \
    const int64_t e = bits / 8;                                                             \
    if (na == EINI_TILE && nb == EINI_TILE && sa == 1 && db == 1) {                         \
      for (int b = 0; b < EINI_TILE; b++) memcpy(tile[b], src + b * sb * e, sizeof tile[b]); \
      for (int a = 0; a < EINI_TILE; a++) {                                                 \
        uint##bits##_t row[EINI_TILE];                                                      \
        for (int b = 0; b < EINI_TILE; b++) row[b] = tile[b][a];                            \
        memcpy(dst + a * da * e, row, EINI_TILE * (bits / 8));                              \
      }                                                                                     \
      return;                                                                               \
    }                                                                                       \
    for (int64_t a = 0; a < na; a++) {                                                      \
      for (int64_t b = 0; b < nb; b++) {                                                    \
        memcpy(dst + (a * da + b * db) * e, src + (a * sa + b * sb) * e, bits / 8);         \
      }                                                                                     \
    }                                                                                       \
  }
EINI_COPY_TILE(8)
EINI_COPY_TILE(16)
EINI_COPY_TILE(32)
EINI_COPY_TILE(64)
#undef EINI_COPY_TILE

static void eini_tile_128(const char *src, int64_t sa, int64_t sb, char *dst, int64_t da,
                          int64_t db, int64_t na, int64_t nb) {
  for (int64_t a = 0; a < na; a++) {
    for (int64_t b = 0; b < nb; b++)
      memcpy(dst + (a * da + b * db) * 16, src + (a * sa + b * sb) * 16, 16);
  }
}

static void eini_copy_tile(size_t size, const char *s, int64_t sa, int64_t sb, char *d, int64_t da,
                           int64_t db, int64_t na, int64_t nb) {
  switch (size) {
    case 1: eini_tile_8(s, sa, sb, d, da, db, na, nb); break;
    case 2: eini_tile_16(s, sa, sb, d, da, db, na, nb); break;
    case 4: eini_tile_32(s, sa, sb, d, da, db, na, nb); break;
    case 8: eini_tile_64(s, sa, sb, d, da, db, na, nb); break;
    default: eini_tile_128(s, sa, sb, d, da, db, na, nb); break;
  }
}

// One plane of a copy: indices a (short stride in src) and b (short stride in dst).
static void eini_copy_plane(size_t size, const char *src, int64_t sa, int64_t sb, char *dst,
                            int64_t da, int64_t db, int64_t na, int64_t nb) {
  int64_t e = (int64_t)size;
  if (sa == 1 && da == 1) {
    for (int64_t b = 0; b < nb; b++) memcpy(dst + b * db * e, src + b * sb * e, (size_t)na * size);
    return;
  }
  for (int64_t b = 0; b < nb; b += EINI_TILE) {
    for (int64_t a = 0; a < na; a += EINI_TILE) {
      eini_copy_tile(size, src + (a * sa + b * sb) * e, sa, sb, dst + (a * da + b * db) * e, da, db,
                     eini_min64(EINI_TILE, na - a), eini_min64(EINI_TILE, nb - b));
    }
  }
}

// A pure copy: stream 0 to stream out. chunk[0], chunk[1] are the plane's b and a.
static void eini_copy_run(const eini_task *t, char *const *slot, char *scratch, int64_t lo,
                          int64_t hi) {
  eini_nest w;
  eini_nest_begin(&w, t, slot, NULL, scratch);
  if (t->cut >= 0) {
    w.extent[t->cut] = hi - lo;
    for (int s = 0; s < t->nstream; s++) w.at[s] += lo * t->stride[(int64_t)s * t->nindex + t->cut];
  }
  size_t size = ein_dtype_size(t->ref[0].dtype);
  int b = t->nchunk > 1 ? t->chunk[0] : -1, a = t->nchunk > 0 ? t->chunk[t->nchunk - 1] : -1;
  const int64_t *in = t->stride, *out = t->stride + (int64_t)t->out * t->nindex;
  do {
    const char *src = w.base[0] + w.at[0] * (int64_t)size;
    char *dst = slot[t->ref[t->out].slot] + t->ref[t->out].offset + w.at[t->out] * (int64_t)size;
    eini_copy_plane(size, src, a < 0 ? 1 : in[a], b < 0 ? 0 : in[b], dst, a < 0 ? 1 : out[a],
                    b < 0 ? 0 : out[b], a < 0 ? 1 : w.extent[a], b < 0 ? 1 : w.extent[b]);
  } while (eini_nest_next(&w, t->nouter, t->outer));
}
